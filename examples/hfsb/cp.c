/* cp.c - hfsb cp: copy one file to a sandbox or from it, byte for byte.

   One of the two words is SANDBOX:PATH. The library copies in blocks and
   resumes after a lost connection; this file finds out which word is remote,
   completes a path that is a directory, and draws a progress bar. */
#define _XOPEN_SOURCE 700 /* isatty(); before any include */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- SANDBOX:PATH ---- */

static bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/* The length of scheme://host[:port][/path] if a colon follows it, or 0. */
static size_t url_end(const char *word) {
    const char *p = strstr(word, "://");
    size_t      digits;
    if (!p) return 0;
    p += 3;
    if (*p == '[') p += strcspn(p, "]");
    p += strcspn(p, ":/");
    digits = *p == ':' ? strspn(p + 1, "0123456789") : 0;
    if (digits && (p[1 + digits] == ':' || p[1 + digits] == '/'))
        p += 1 + digits;
    p += strcspn(p, ":");
    return *p ? (size_t)(p - word) : 0;
}

/* True for SANDBOX:PATH, and :PATH for $HFSB_SANDBOX; *end is the offset of
   the colon. A local file with a colon in its name is written ./a:b. */
static bool is_remote(const char *word, size_t *end) {
    size_t i = 0, slashes = 0;
    if (strstr(word, "://")) return (*end = url_end(word)) > 0;
    if (word[0] == '.' || word[0] == '/') return false;
    for (; is_name_byte(word[i]) || word[i] == '/'; i++)
        if (word[i] == '/') slashes++;
    *end = i;
    return word[i] == ':' && slashes <= (strncmp(word, "jobs/", 5) ? 1 : 2);
}

/* ---- the progress bar ---- */

enum { BAR = 24, DRAW_MS = 100 };

typedef struct bar {
    bool               wanted; /* stderr is a terminal */
    bool               drawn;
    hfsb_str           name;
    long long          began, last;
    unsigned long long done;
} bar;

/* Without a total only the number of bytes so far is shown. */
static void draw(bar *b, unsigned long long total) {
    char      hashes[BAR + 1];
    long long ms = hfsb_clock_ms() - b->began;
    double    mb = (double)b->done / 1e6;
    double    part = total ? (double)b->done / (double)total : 0;
    size_t    i;
    for (i = 0; i < BAR; i++) hashes[i] = (double)i < part * BAR ? '#' : '.';
    hashes[BAR] = '\0';
    fprintf(stderr, "\r%.*s ", (int)hfsb_utf8_offset(b->name, 30),
            b->name.ptr);
    if (total) fprintf(stderr, "[%s] %3.0f%%", hashes, part * 100);
    fprintf(stderr, "  %.1f MB  %.1f MB/s\033[K", mb,
            ms > 0 ? mb * 1000 / (double)ms : 0);
    fflush(stderr);
    b->drawn = true;
}

static void note_progress(void *user, unsigned long long done,
                          unsigned long long total) {
    bar      *b = (bar *)user;
    long long now = hfsb_clock_ms();
    b->done = done;
    if (!b->wanted || (now - b->last < DRAW_MS && done != total)) return;
    b->last = now;
    draw(b, total);
}

/* ---- copying ---- */

typedef struct cp_call {
    const char *local, *remote; /* remote: SANDBOX:PATH */
    size_t      end;            /* of SANDBOX in it */
    bool        up;
    hfsb_buf    from, to; /* the completed paths */
    bar         shown;
} cp_call;

/* Appends the name of the file to a directory. */
static void add_base(hfsb_buf *to, hfsb_str from) {
    if (to->len && !hfsb_str_ends(hfsb_buf_str(to), HFSB_LIT("/")))
        must(hfsb_buf_append_byte(to, '/'));
    must(hfsb_buf_append(to, hfsb_path_base(from)));
}

static hfsb_status find_paths(cp_call *c, hfsb_err *err) {
    hfsb_str       there = hfsb_cstr(c->remote + c->end + 1);
    hfsb_str       here = hfsb_cstr(c->local);
    hfsb_file_info info;
    hfsb_status    st = hfsb_file_stat(NULL, here, &info, err);
    bool directory = st == HFSB_OK && info.type == HFSB_FILE_DIRECTORY;
    must(hfsb_buf_append(&c->from, c->up ? here : there));
    must(hfsb_buf_append(&c->to, c->up ? there : here));
    if (c->up && directory)
        return fail(err, HFSB_REFUSED,
                    "%s is a directory, and cp copies one file: pack it "
                    "first, as in `tar -czf d.tgz %s`, copy d.tgz, and unpack "
                    "it there with `hfsb bash --on SANDBOX tar -xzf d.tgz`",
                    c->local, c->local);
    if (c->up && st != HFSB_OK) return st;
    if (!c->up && (!there.len || hfsb_str_ends(there, HFSB_LIT("/"))))
        return fail(err, HFSB_ARG,
                    "Which file? %s is a directory, and cp "
                    "copies one file: pack it there first with `hfsb bash "
                    "--on SANDBOX tar -czf d.tgz ...`",
                    c->remote);
    if (c->up ? !there.len || hfsb_str_ends(there, HFSB_LIT("/"))
              : directory || hfsb_str_ends(here, HFSB_LIT("/")))
        add_base(&c->to, hfsb_buf_str(&c->from));
    return HFSB_OK;
}

static hfsb_status copy(cp_call *c, const char *name, hfsb_err *err) {
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_copy_opts    how = HFSB_INIT;
    client            via = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_status       st = open_named(&via, name, &opts, &sandbox, err);
    how.progress = note_progress;
    how.user = &c->shown;
    c->shown.began = hfsb_clock_ms();
    if (st == HFSB_OK && c->up)
        st = hfsb_sandbox_upload(sandbox, NULL, hfsb_buf_str(&c->from),
                                 hfsb_buf_str(&c->to), &how, err);
    else if (st == HFSB_OK)
        st = hfsb_sandbox_download(sandbox, hfsb_buf_str(&c->from), NULL,
                                   hfsb_buf_str(&c->to), &how, err);
    if (c->shown.drawn) fprintf(stderr, "\n");
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    close_client(&via);
    return st;
}

static void describe(const cp_call *c, hfsb_tool_result *result) {
    hfsb_json_writer w;
    must(hfsb_buf_printf(&result->output, "Copied %llu bytes to %s%s",
                         c->shown.done, c->up ? "" : c->to.ptr,
                         c->up ? c->remote : ""));
    if (c->up) { /* with the completed path */
        hfsb_buf_truncate(&result->output,
                          result->output.len - strlen(c->remote + c->end + 1));
        must(hfsb_buf_append(&result->output, hfsb_buf_str(&c->to)));
    }
    begin_object(&w, &result->fields);
    put_str(&w, "from", hfsb_buf_str(&c->from));
    put_str(&w, "to", hfsb_buf_str(&c->to));
    put_int(&w, "bytes", (long long)c->shown.done);
    put_int(&w, "duration_ms", hfsb_clock_ms() - c->shown.began);
    end_object(&w);
}

/* Finds out which word is remote; false unless exactly one is. */
static bool take_sides(args *a, const char *const words[2], cp_call *c) {
    size_t end[2] = {0, 0};
    bool   from = is_remote(words[0], &end[0]);
    bool   to = is_remote(words[1], &end[1]);
    if (from == to)
        return usage(a, "one of FROM and TO must be SANDBOX:PATH, the other a "
                        "local file (./NAME if it has a colon)") == DONE;
    c->up = to;
    c->remote = words[to ? 1 : 0];
    c->local = words[to ? 0 : 1];
    c->end = end[to ? 1 : 0];
    return true;
}

static int copy_named(cp_call *c, const char *name, bool json) {
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st = find_paths(c, &err);
    c->shown.wanted = !json && isatty(2);
    c->shown.name = hfsb_path_base(hfsb_buf_str(&c->from));
    if (st == HFSB_OK) st = copy(c, name, &err);
    if (st == HFSB_OK) describe(c, &result);
    hfsb_buf_free(&c->from);
    hfsb_buf_free(&c->to);
    return show_outcome(&result, st, &err, json);
}

int run_cp(args *a) {
    cp_call     c;
    const char *words[2], *on = NULL, *name;
    bool        json = false;
    hfsb_buf    sandbox = HFSB_INIT;
    int         code;

    const option options[] = {
        {"--on SANDBOX", OPTION_TEXT, &on, "the sandbox of :PATH"},
        OPTION_JSON(&json, ", from, to, bytes, duration_ms"),
        OPTIONS_END};
    memset(&c, 0, sizeof c);
    if (!take_words(a, options, words, 2)) return a->status;
    if (!words[1]) return usage(a, "FROM or TO is missing");
    if (!take_sides(a, words, &c)) return a->status;
    must(hfsb_buf_append(&sandbox, hfsb_str_make(c.remote, c.end)));
    name = sandbox.len ? sandbox.ptr : named_sandbox(on);
    if (name) code = copy_named(&c, name, json);
    else
        code = usage(a, "which sandbox? Use SANDBOX:%s, or set HFSB_SANDBOX",
                     c.remote + c.end + 1);
    hfsb_buf_free(&sandbox);
    return code;
}
