/* undo_faults.c - every system call of an undo, and of a checkpoint, fails in
   turn. The undo succeeds and all is restored, or it reports an error and each
   path is old or new; in either case the next undo restores all. A checkpoint
   never damages those before it. tests/checks/faults.sh */
#include "../support/fakes.h"

FAKE(int, symlinkat, (const char *t, int d, const char *p), (t, d, p))
FAKE(int, fchmodat, (int d, const char *p, mode_t m, int f), (d, p, m, f))
FAKE(off_t, lseek, (int fd, off_t at, int from), (fd, at, from))

static int         bad;
static long        points;
static hfsb_tools *tools;

/* ---- the tree: its old and its new state ---- */

static const struct path {
    const char *name;
    char        kind;      /* f: file, d: folder, l: symlink; 0: absent */
    const char *text;      /* content or target */
    unsigned    mode;
    char        new_kind;
    const char *new_text;
    unsigned    new_mode;
} paths[] = {{"root/changed", 'f', "old\n", 0644, 'f', "new\n", 0600},
             {"root/deleted", 'f', "old\n", 04711, 0, NULL, 0},
             {"root/created", 0, NULL, 0, 'f', "new\n", 0644},
             {"root/link", 'l', "changed", 0, 'l', "deleted", 0},
             {"root/kind", 'd', NULL, 0750, 'f', "new\n", 0644},
             {"root/kind/in", 'f', "old\n", 0644, 0, NULL, 0},
             {"root/folder", 0, NULL, 0, 'd', NULL, 0755},
             {"root/folder/in", 0, NULL, 0, 'f', "new\n", 0644}};

enum { PATHS = sizeof paths / sizeof *paths };

static void put(const char *name, char kind, const char *text,
                unsigned mode) {
    if (kind == 'd') (void)mkdir(name, 0755);
    if (kind == 'f') spill(name, text);
    if (kind == 'l') (void)symlink(text, name);
    if (kind == 'f' || kind == 'd') (void)chmod(name, (mode_t)mode);
}

static void clear(void) {
    size_t i = PATHS;
    (void)leftovers("root");
    (void)leftovers("root/kind");
    (void)leftovers("root/folder");
    while (i-- > 0) {
        if (unlink(paths[i].name) != 0) (void)rmdir(paths[i].name);
    }
}

static void put_all(bool is_new) {
    size_t i;
    clear();
    for (i = 0; i < PATHS; i++)
        put(paths[i].name, is_new ? paths[i].new_kind : paths[i].kind,
            is_new ? paths[i].new_text : paths[i].text,
            is_new ? paths[i].new_mode : paths[i].mode);
}

/* True when the path is so; loose: a folder may have any mode. */
static bool is_so(const char *name, char kind, const char *text,
                  unsigned mode, bool loose) {
    struct stat st;
    char        target[64];
    ssize_t     n;
    if (lstat(name, &st) != 0) return !kind;
    if (kind == 'd')
        return S_ISDIR(st.st_mode) && (loose || (st.st_mode & 07777) == mode);
    if (kind == 'f')
        return S_ISREG(st.st_mode) && (st.st_mode & 07777) == mode &&
               holds(name, text);
    n = readlink(name, target, sizeof target);
    return kind == 'l' && n == (ssize_t)strlen(text) &&
           !memcmp(target, text, (size_t)n);
}

/* ---- the state of all paths ---- */

static bool is_old(size_t i, bool loose) {
    return is_so(paths[i].name, paths[i].kind, paths[i].text, paths[i].mode,
                 loose);
}

static const char *first_not_old(void) {
    size_t i;
    for (i = 0; i < PATHS; i++)
        if (!is_old(i, false)) return paths[i].name;
    return NULL;
}

/* The first path that is neither old nor new; one that changes its kind may
   also be absent, and what is in it. */
static const char *first_wrong(void) {
    size_t i;
    for (i = 0; i < PATHS; i++)
        if (!is_old(i, true) &&
            !is_so(paths[i].name, paths[i].new_kind, paths[i].new_text,
                   paths[i].new_mode, true) &&
            (paths[i].kind == paths[i].new_kind ||
             access(paths[i].name, F_OK) == 0))
            return paths[i].name;
    return NULL;
}

/* ---- calls ---- */

static bool open_tools(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_err        err;
    opts.root = HFSB_LIT("root");
    opts.checkpoints.dir = "store";
    if (hfsb_tools_open(&opts, &tools, &err) == HFSB_OK) return true;
    printf("FAIL  %s\n", err.msg);
    bad++;
    return false;
}

/* Calls a tool; false with the reason in *why. */
static bool call(const char *name, const char *arguments, char why[600]) {
    hfsb_tool_result r;
    hfsb_status st = hfsb_tools_call_text(tools, hfsb_cstr(name),
                                          hfsb_cstr(arguments), NULL, &r);
    bool        ok = st == HFSB_OK && r.success;
    snprintf(why, 600, "%s",
             r.error.ptr ? r.error.ptr : hfsb_status_text(st));
    hfsb_tool_result_free(&r);
    return ok;
}

static void fail(const char *what, const char *path, const char *why) {
    bad++;
    printf("FAIL  call %ld (%s) %s: %s %s: %s\n", fault.count,
           fault.name ? fault.name : "none", hfsbi_os_text(fault.code), what,
           path ? path : "", why);
}

static void begin_fault(long at, int code, int how) {
    fault.count = 0;
    fault.name = NULL;
    fault.stuck = false;
    fault.only = NULL;
    fault.code = code;
    fault.how = how;
    fault.at = at;
}

/* ---- the sweeps ---- */

/* The new state, as if a command had made it. */
static void change_all(void) {
    put_all(true);
    hfsbi_history_changed(tools->history, "bash", HFSB_LIT("a change"));
}

/* Checkpoint 1 is the old state, 2 the new one. False when no call failed: the
   sweep is over. */
static bool fail_undo(long at, int code, int how) {
    char why[600], again[600];
    bool ok, over;
    int  fds;
    (void)system("rm -rf store");
    put_all(false);
    if (!open_tools()) return false;
    if (!call("checkpoint", "{}", why)) fail("no checkpoint", NULL, why);
    change_all();
    if (!call("checkpoint", "{}", why)) fail("no checkpoint", NULL, why);
    fds = descriptors();
    begin_fault(at, code, how);
    ok = call("undo", "{\"to\":1}", why);
    fault.at = 0;
    over = !fault.name;
    if (descriptors() != fds) fail("a descriptor is left", NULL, why);
    if (first_wrong()) fail("neither old nor new:", first_wrong(), why);
    if (ok && first_not_old()) fail("not restored:", first_not_old(), why);
    if (!ok && !why[0]) fail("no message", NULL, why);
    if (!call("undo", "{\"to\":1,\"force\":true}", again))
        fail("the next undo failed:", why, again);
    if (first_not_old()) fail("not restored later:", first_not_old(), why);
    if (leftovers("root") && !fault.stuck)
        fail("a temporary is left", NULL, why);
    hfsb_tools_close(tools);
    points++;
    return !over;
}

/* The same for the checkpoint of the new state. */
static bool fail_checkpoint(long at, int code, int how) {
    char why[600], again[600];
    bool over;
    int  fds;
    (void)system("rm -rf store");
    put_all(false);
    if (!open_tools()) return false;
    if (!call("checkpoint", "{}", why)) fail("no checkpoint", NULL, why);
    change_all();
    fds = descriptors();
    begin_fault(at, code, how);
    (void)call("checkpoint", "{}", why);
    fault.at = 0;
    over = !fault.name;
    if (descriptors() != fds) fail("a descriptor is left", NULL, why);
    hfsb_tools_close(tools);
    if (!open_tools()) return false; /* checkpoints may have stopped */
    if (!call("undo", "{\"to\":1,\"force\":true}", again))
        fail("the next undo failed:", why, again);
    if (first_not_old()) fail("not restored:", first_not_old(), why);
    hfsb_tools_close(tools);
    points++;
    return !over;
}

int main(void) {
    static const int codes[] = {EINTR, EIO, EACCES};
    char             top[] = "/tmp/hfsb-undo-faults.XXXXXX";
    size_t           c;
    long             k;
    if (!mkdtemp(top) || chdir(top) != 0 || mkdir("root", 0755) != 0) return 1;
    (void)umask(022);
    for (c = 0; c < sizeof codes / sizeof *codes; c++) {
        for (k = 1; fail_undo(k, codes[c], ONCE); k++) continue;
        for (k = 1; fail_checkpoint(k, codes[c], ONCE); k++) continue;
    }
    for (k = 1; fail_undo(k, 0, SHORT); k++) continue;
    for (k = 1; fail_undo(k, EIO, FOREVER); k += 7) continue;
    for (k = 1; fail_checkpoint(k, ENOSPC, FOREVER); k += 7) continue;
    clear();
    if (system("rm -rf root store") != 0 || chdir("/") != 0 ||
        rmdir(top) != 0)
        bad++;
    printf("%ld faults, %d failed\n", points, bad);
    return bad != 0;
}
