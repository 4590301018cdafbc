/* t_undo.h - what the tests of checkpoints share: tools with a root and a
   store, and photos of a tree that can be compared. */
#ifndef T_UNDO_H
#define T_UNDO_H
#include "t_tools.h"

#define TU_ROOT  "root"
#define TU_STORE "store"

/* ---- a photo: every path with kind, mode, content and hard links ---- */

/* Appends the content; a file that we may not read is made readable for a
   moment. */
static void tu_content(const char *path, const struct stat *st,
                       hfsb_buf *out) {
    hfsb_buf b = HFSB_INIT;
    char     hex[HFSB_SHA256_HEX];
    bool     closed = access(path, R_OK) != 0;
    if (closed && chmod(path, 0600)) abort();
    if (!t_read_file(path, &b)) abort();
    if (closed && chmod(path, st->st_mode & 07777)) abort();
    hfsb_sha256_hex(hfsb_buf_str(&b), hex);
    tt_fill(out, hex, 1);
    hfsb_buf_free(&b);
}

static int tu_by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

typedef struct tu_names {
    char  *list[512];
    size_t count;
} tu_names;

static void tu_list(const char *path, tu_names *out) {
    DIR           *d = opendir(path);
    struct dirent *e;
    out->count = 0;
    while (d && (e = readdir(d)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
            out->count < TT_COUNT(out->list))
            out->list[out->count++] = strdup(e->d_name);
    if (d) closedir(d);
    qsort(out->list, out->count, sizeof *out->list, tu_by_name);
}

/* Files seen with several links, in the order of their first paths. */
typedef struct tu_links {
    ino_t  list[512];
    size_t count;
} tu_links;

static void tu_photo_path(const char *path, tu_links *links, hfsb_buf *out);

static void tu_photo_folder(const char *path, tu_links *links,
                            hfsb_buf *out) {
    tu_names    names;
    struct stat st;
    size_t      i;
    bool        closed = access(path, R_OK | X_OK) != 0;
    if (lstat(path, &st)) abort();
    if (closed && chmod(path, 0700)) abort();
    tu_list(path, &names);
    for (i = 0; i < names.count; i++) {
        char next[1024];
        snprintf(next, sizeof next, "%s/%s", path, names.list[i]);
        tu_photo_path(next, links, out);
        free(names.list[i]);
    }
    if (closed && chmod(path, st.st_mode & 07777)) abort();
}

static void tu_photo_path(const char *path, tu_links *links, hfsb_buf *out) {
    struct stat st;
    char        text[1024];
    ssize_t     n;
    size_t      i;
    if (lstat(path, &st)) abort();
    tt_fill(out, path, 1);
    if (S_ISLNK(st.st_mode)) {
        n = readlink(path, text, sizeof text - 1);
        text[n > 0 ? n : 0] = '\0';
        tt_fill(out, " -> ", 1);
        tt_fill(out, text, 1);
    } else {
        snprintf(text, sizeof text, " %o ", (unsigned)st.st_mode);
        tt_fill(out, text, 1);
    }
    if (S_ISREG(st.st_mode)) tu_content(path, &st, out);
    if (S_ISREG(st.st_mode) && st.st_nlink > 1) {
        for (i = 0; i < links->count && links->list[i] != st.st_ino; i++)
            continue;
        if (i == links->count && i < TT_COUNT(links->list))
            links->list[links->count++] = st.st_ino;
        snprintf(text, sizeof text, " link %u", (unsigned)i);
        tt_fill(out, text, 1);
    }
    tt_fill(out, "\n", 1);
    if (S_ISDIR(st.st_mode)) tu_photo_folder(path, links, out);
}

HFSBI_UNUSED static char *tu_photo(void) {
    tu_links links;
    hfsb_buf out = HFSB_INIT;
    char    *copy;
    links.count = 0;
    tu_photo_path(TU_ROOT, &links, &out);
    copy = strdup(out.ptr);
    hfsb_buf_free(&out);
    return copy;
}

/* Compares, prints the first line that differs, and frees `is`. */
HFSBI_UNUSED static bool tu_same(const char *want, char *is) {
    const char *a = want, *b = is;
    bool        same = !strcmp(want, is);
    while (!same && *a && *a == *b) {
        a++;
        b++;
    }
    while (!same && a > want && a[-1] != '\n') a--, b--;
    if (!same)
        printf("  is   %.*s\n  want %.*s\n", (int)strcspn(b, "\n"), b,
               (int)strcspn(a, "\n"), a);
    free(is);
    return same;
}

/* ---- tools ---- */

HFSBI_UNUSED static hfsb_tools *tu_open(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    (void)mkdir(TU_ROOT, 0755);
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = TU_STORE;
    opts.no_checks = true;
    return tt_open(&opts);
}

/* Removes root and store, so that the next test begins without them. */
HFSBI_UNUSED static void tu_close(hfsb_tools *tools) {
    hfsb_tools_close(tools);
    tt_remove_all(TU_ROOT, NULL);
    tt_remove_all(TU_STORE, NULL);
}

/* Runs a command, or writes "SCRIPT" as a reader of the test sees it. */
HFSBI_UNUSED static void tu_bash(hfsb_tools *tools, const char *command) {
    tt_reply r = HFSB_INIT;
    tt_call(&r, tools, "bash", "command=s", command);
    T_CHECK(r.st == HFSB_OK);
    tt_drop(&r);
}

/* The number of the checkpoint that is equal to the present state. */
HFSBI_UNUSED static long long tu_checkpoint(hfsb_tools *tools) {
    tt_reply  r = HFSB_INIT;
    long long n;
    tt_call(&r, tools, "checkpoint", "");
    T_CHECK(r.res.success);
    n = hfsb_json_int(hfsb_json_get(r.extra.root, "checkpoint"), 0);
    tt_drop(&r);
    return n;
}

/* Undoes to a checkpoint (0: one step); true when all is restored. */
HFSBI_UNUSED static bool tu_undo(hfsb_tools *tools, long long to) {
    tt_reply r = HFSB_INIT;
    char     text[32];
    bool     ok;
    snprintf(text, sizeof text, "%lld", to);
    tt_call(&r, tools, "undo", "to=j", to ? text : NULL);
    ok = r.st == HFSB_OK && r.res.success;
    if (!ok) printf("undo: %s\n", r.res.error.ptr ? r.res.error.ptr : "");
    tt_drop(&r);
    return ok;
}

/* Called as root in the folder of the next test; NULL: nothing. */
static void (*tu_as_root)(void);

/* Runs a test in a folder "nobody" that is that user's, if we are root: only
   then are there files and folders that the test may not use. */
HFSBI_UNUSED static void tu_as_nobody(void (*test)(void)) {
    char  here[4096];
    pid_t pid;
    int   status = 1;
    if (geteuid() != 0) {
        test();
        return;
    }
    if (mkdir("nobody", 0755) || chown("nobody", 65534, 65534)) abort();
    pid = fork();
    if (pid == 0) {
        if (chdir("nobody")) _exit(2);
        if (tu_as_root) tu_as_root();
        if (setgid(65534) || setuid(65534)) _exit(2);
        if (!getcwd(here, sizeof here) || access(here, X_OK) ||
            system("ls > /dev/null 2>&1"))
            _exit(77);
        t_failed = 0;
        test();
        _exit(t_failed != 0);
    }
    T_CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        printf("skipped: the user nobody cannot get here\n");
        t_skipped++;
    } else {
        T_CHECK(status == 0);
    }
    if (system("rm -rf nobody")) abort();
}
#endif
