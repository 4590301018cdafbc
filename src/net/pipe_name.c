/* pipe_name.c - commands that lead to another machine, by name.

   The command that opens a shell is known for the usual ways to reach a
   machine, so a name is enough:

       ssh:HOST                ssh HOST exec sh
       docker:CONTAINER        docker exec -i CONTAINER sh
       podman:CONTAINER        podman exec -i CONTAINER sh
       kubectl:POD, kubectl:NAMESPACE/POD, kubectl:NAMESPACE/POD/CONTAINER
                               kubectl exec -i POD -- sh
       slurm:OPTIONS           srun OPTIONS sh
       exec:COMMAND            COMMAND, which is a shell or hfsb-server --stdio

   Names of machines stay one word each and cannot be options; OPTIONS and
   COMMAND go to the local shell, as the user has quoted them. */
#include "net_private.h"

typedef enum hfsbi_pipe_kind {
    HFSBI_PIPE_SSH,
    HFSBI_PIPE_DOCKER,
    HFSBI_PIPE_PODMAN,
    HFSBI_PIPE_KUBECTL,
    HFSBI_PIPE_SLURM,
    HFSBI_PIPE_EXEC,
    HFSBI_PIPE_KINDS
} hfsbi_pipe_kind;

static const char hfsbi_pipe_prefixes[HFSBI_PIPE_KINDS][9] = {
    "ssh:", "docker:", "podman:", "kubectl:", "slurm:", "exec:"};

/* Returns the kind of the name, and *rest after it; HFSBI_PIPE_KINDS: none. */
static hfsbi_pipe_kind hfsbi_pipe_kind_of(hfsb_str name, hfsb_str *rest) {
    int i = 0;
    for (; i < HFSBI_PIPE_KINDS; i++) {
        hfsb_str prefix = hfsb_cstr(hfsbi_pipe_prefixes[i]);
        if (!hfsb_str_starts(name, prefix)) continue;
        *rest = hfsb_str_slice(name, prefix.len, name.len);
        break;
    }
    return (hfsbi_pipe_kind)i;
}

bool hfsb_pipe_is_name(hfsb_str name) {
    hfsb_str rest;
    return hfsbi_pipe_kind_of(name, &rest) != HFSBI_PIPE_KINDS;
}

HFSBI_FN void hfsbi_pipe_add(hfsbi_pipe_words *w, hfsb_str word) {
    hfsb_buf_append(&w->text, word);
    hfsb_buf_append_byte(&w->text, '\0');
    w->count++;
}

/* Appends the words of a line that are separated by one blank each. */
static void hfsbi_pipe_add_all(hfsbi_pipe_words *w, const char *line) {
    while (*line) {
        size_t len = strcspn(line, " ");
        hfsbi_pipe_add(w, hfsb_str_make(line, len));
        line += line[len] ? len + 1 : len;
    }
}

/* Moves the part of *path before its first slash to *first; false: there is
   none. */
static bool hfsbi_pipe_split(hfsb_str *path, hfsb_str *first) {
    size_t slash = hfsb_str_find_byte(*path, '/');
    if (slash == HFSB_NPOS) return false;
    *first = hfsb_str_slice(*path, 0, slash);
    *path = hfsb_str_slice(*path, slash + 1, path->len);
    return true;
}

static void hfsbi_pipe_add_pod(hfsbi_pipe_words *w, hfsb_str path) {
    hfsb_str space, pod;
    hfsbi_pipe_add_all(w, "kubectl exec -i");
    if (hfsbi_pipe_split(&path, &space)) {
        hfsbi_pipe_add(w, HFSB_LIT("-n"));
        hfsbi_pipe_add(w, space);
    }
    if (hfsbi_pipe_split(&path, &pod)) {
        hfsbi_pipe_add(w, HFSB_LIT("-c"));
        hfsbi_pipe_add(w, path);
        path = pod;
    }
    hfsbi_pipe_add(w, path);
    hfsbi_pipe_add_all(w, "-- sh");
}

static void hfsbi_pipe_add_shell(hfsbi_pipe_words *w, hfsb_str before,
                                 hfsb_str line, hfsb_str after) {
    hfsbi_pipe_add_all(w, "sh -c");
    hfsb_buf_append(&w->text, before);
    hfsb_buf_append(&w->text, line);
    hfsbi_pipe_add(w, after);
}

/* True when a part between slashes is empty or looks like an option. */
static bool hfsbi_pipe_is_wrong(hfsbi_pipe_kind kind, hfsb_str rest) {
    hfsb_str part;
    if (kind == HFSBI_PIPE_SLURM) return false;
    if (kind == HFSBI_PIPE_EXEC) return !rest.len;
    while (kind == HFSBI_PIPE_KUBECTL && hfsbi_pipe_split(&rest, &part))
        if (!part.len || *part.ptr == '-') return true;
    return !rest.len || *rest.ptr == '-';
}

HFSBI_FN hfsb_status hfsbi_pipe_name(hfsb_str name, hfsbi_pipe_words *w,
                                     hfsb_err *err) {
    hfsb_str        rest = HFSB_INIT;
    hfsbi_pipe_kind kind = hfsbi_pipe_kind_of(name, &rest);
    if (kind == HFSBI_PIPE_KINDS || hfsbi_pipe_is_wrong(kind, rest)) {
        (void)hfsbi_fail(err, HFSB_ARG, 0, "Not the name of a sandbox: ");
        hfsbi_err_quote(err, name, 200);
        hfsbi_err_add(err, ". It is ssh:HOST, docker:CONTAINER, "
                           "podman:CONTAINER, kubectl:NAMESPACE/POD, "
                           "slurm:OPTIONS or exec:COMMAND.");
        return HFSB_ARG;
    }
    switch (kind) {
    case HFSBI_PIPE_SSH:
        /* Options given here override ~/.ssh/config. ssh has no terminal to
           ask on, and without BatchMode it sends empty passwords instead. */
        hfsbi_pipe_add_all(w, "ssh -T -o BatchMode=yes");
        hfsbi_pipe_add(w, rest);
        hfsbi_pipe_add(w, HFSB_LIT("exec sh"));
        break;
    case HFSBI_PIPE_DOCKER:
    case HFSBI_PIPE_PODMAN:
        hfsbi_pipe_add_all(w, kind == HFSBI_PIPE_DOCKER ? "docker exec -i"
                                                        : "podman exec -i");
        hfsbi_pipe_add(w, rest);
        hfsbi_pipe_add(w, HFSB_LIT("sh"));
        break;
    case HFSBI_PIPE_KUBECTL: hfsbi_pipe_add_pod(w, rest); break;
    case HFSBI_PIPE_SLURM:
        hfsbi_pipe_add_shell(w, HFSB_LIT("exec srun -N1 -n1 "), rest,
                             HFSB_LIT(" sh"));
        break;
    default: hfsbi_pipe_add_shell(w, HFSB_LIT(""), rest, HFSB_LIT(""));
    }
    return w->text.status == HFSB_OK
               ? HFSB_OK
               : hfsbi_fail_status(err, w->text.status, "pipe");
}
