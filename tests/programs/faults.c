/* faults.c - every system call of FILE fails in turn, in every way it may

   Each scenario runs with its first call failing, then its second, and so on
   to its last. It must end in success or a clear error, with the old content
   or the new, and leave no temporary and no descriptor. Then the program
   counts how often a root lists a directory. tests/checks/faults.sh */
#include "../support/fakes.h"
#ifdef HFSBI_LINUX
#include <sys/inotify.h>
FAKE(int, inotify_init1, (int f), (f))
FAKE(int, inotify_add_watch, (int fd, const char *p, uint32_t m), (fd, p, m))
#endif
FAKE(int, symlinkat, (const char *t, int d, const char *p), (t, d, p))

/* ---- scenarios ---- */

#define OLD "old content, which is longer than one byte\n"
#define NEW "the new content, and some more of it than of the old one\n"

static hfsb_root *inside;
static hfsb_err    err;
static hfsb_buf    got;

static hfsb_status put(const hfsb_root *place, const char *path,
                       const hfsb_file_write_opts *opts) {
    return hfsb_file_write(place, hfsb_cstr(path), HFSB_LIT(NEW), opts, NULL,
                           &err);
}

static hfsb_status replaces(void) {
    return put(NULL, "f", NULL);
}
static hfsb_status follows_a_link(void) {
    return put(NULL, "link", NULL);
}
static hfsb_status rewrites_in_place(void) {
    return put(NULL, "hard", NULL);
}
static hfsb_status keeps_to_the_root(void) {
    hfsb_file_write_opts opts = HFSB_INIT;
    char                 hex[HFSB_SHA256_HEX];
    hfsb_sha256_hex(HFSB_LIT(OLD), hex);
    opts.if_sha256 = hfsb_cstr(hex);
    return put(inside, "link", &opts);
}
static hfsb_status creates(void) {
    hfsb_file_write_opts opts = HFSB_INIT;
    opts.create = true;
    return put(inside, "a/b/new", &opts);
}
static hfsb_status reads(void) {
    got.len = 0;
    return hfsb_file_read(inside, HFSB_LIT("link"), 0, &got, NULL, &err);
}
static hfsb_status hashes(void) {
    char        hex[HFSB_SHA256_HEX];
    hfsb_status st = hfsb_file_sha256(NULL, HFSB_LIT("f"), hex, &err);
    if (st == HFSB_OK) hfsb_sha256_hex(HFSB_LIT(OLD), got.ptr + 100);
    if (st == HFSB_OK && strcmp(hex, got.ptr + 100) != 0) return HFSB_ARG;
    return st;
}
static hfsb_status removes(void) {
    return hfsb_file_remove(inside, HFSB_LIT("f"), &err);
}
static hfsb_status removes_if_same(void) {
    hfsb_file_info info;
    hfsb_status    st = hfsb_file_stat(inside, HFSB_LIT("f"), &info, &err);
    if (st != HFSB_OK) return st;
    return hfsbi_file_remove_if(inside, HFSB_LIT("f"), NULL, &info, &err);
}
static hfsb_status looks(void) {
    hfsbi_path_info info;
    hfsb_status     st;
    got.len = 0;
    st = hfsbi_path_stat(inside, HFSB_LIT("link"), false, &info, &got, &err);
    return st == HFSB_OK && (info.type != HFSBI_ENTRY_LINK || got.len != 1)
               ? HFSB_ARG
               : st;
}
static hfsb_status count_entry(void *user, const hfsbi_list_entry *entry) {
    (void)entry;
    ++*(int *)user;
    return HFSB_OK;
}
static hfsb_status lists(void) {
    hfsbi_list_opts opts = HFSB_INIT;
    hfsbi_listed    listed;
    hfsb_status     st;
    int             n = 0;
    opts.fn = count_entry;
    opts.user = &n;
    st = hfsbi_path_list(inside, HFSB_LIT("."), &opts, &listed, &err);
    return st == HFSB_OK && n + (int)listed.failed < 5 ? HFSB_ARG : st;
}
static hfsb_status makes_a_folder(void) {
    return hfsbi_path_make_folder(inside, HFSB_LIT("a/b"), 0,
                                  HFSBI_MAKE_PARENTS, NULL, &err);
}
static hfsb_status moves(void) {
    return hfsbi_path_move(inside, HFSB_LIT("f"), HFSB_LIT("a/b/new"),
                           HFSBI_MOVE_PARENTS, &err);
}
static hfsb_status moves_over(void) {
    return hfsbi_path_move(inside, HFSB_LIT("t/x"), HFSB_LIT("f"),
                           HFSBI_MOVE_REPLACE, &err);
}
static hfsb_status removes_a_tree(void) {
    hfsbi_remove_opts opts = HFSB_INIT;
    hfsb_status       st;
    struct stat       at;
    opts.tree = true;
    st = hfsbi_path_remove_all(inside, HFSB_LIT("t"), &opts, NULL, &err);
    return st == HFSB_OK && lstat("t", &at) == 0 ? HFSB_ARG : st;
}
static hfsb_status copies_a_tree(void) {
    hfsbi_copy_opts opts = HFSB_INIT;
    opts.tree = true;
    return hfsbi_path_copy(inside, HFSB_LIT("t"), HFSB_LIT("a/b"), &opts,
                           NULL, &err);
}
static hfsb_status reads_a_range(void) {
    hfsbi_file_range range;
    size_t           n = 1;
    hfsb_status      st = hfsbi_file_range_open(inside, HFSB_LIT("link"), 4, 7,
                                                &range, &err);
    if (st != HFSB_OK) return st;
    for (got.len = 0; st == HFSB_OK && n; got.len += n)
        st = hfsbi_file_range_read(&range, got.ptr + got.len, 10, &n, &err);
    hfsbi_file_range_close(&range);
    return st == HFSB_OK && memcmp(got.ptr, OLD + 4, 7) != 0 ? HFSB_ARG : st;
}
static hfsb_status writes_a_range(void) {
    hfsbi_range_opts    opts = HFSB_INIT;
    hfsbi_range_writer *w;
    hfsb_status         st;
    opts.truncate = true;
    opts.truncate_to = sizeof NEW - 1;
    opts.mode = 0600;
    st = hfsbi_range_writer_open(inside, HFSB_LIT("link"), &opts, &w, &err);
    if (st != HFSB_OK) return st;
    st = hfsbi_range_writer_append(w, HFSB_LIT(NEW), &err);
    if (st == HFSB_OK) st = hfsbi_range_writer_commit(w, NULL, &err);
    hfsbi_range_writer_close(w);
    return st;
}
static hfsb_status watches(void) {
#ifdef HFSBI_LINUX
    hfsbi_folder_watch_opts opts = HFSB_INIT;
    hfsbi_folder_watch     *w;
    hfsb_status             st;
    opts.recursive = true;
    st = hfsbi_folder_watch_open(inside, HFSB_LIT("."), &opts, &w, &err);
    hfsbi_folder_watch_close(w);
    return st;
#else
    return HFSB_OK;
#endif
}
static hfsb_status opens_a_root(void) {
    hfsb_root_opts opts = HFSB_INIT;
    hfsb_root     *place;
    hfsb_status     st;
    opts.root = HFSB_LIT(".");
    st = hfsb_root_open(&opts, &place, &err);
    hfsb_root_close(place);
    return st;
}

static const struct scenario {
    const char *name;
    hfsb_status (*run)(void);
    const char *path;           /* look here afterwards */
    const char *before, *after; /* its content; NULL: it does not exist */
    bool        either; /* after a failure it may be old, new or in between */
} scenarios[] = {
    {"replaces", replaces, "f", OLD, NEW, false},
    {"follows a link", follows_a_link, "f", OLD, NEW, false},
    {"rewrites in place", rewrites_in_place, "hard2", OLD, NEW, false},
    {"keeps to the root", keeps_to_the_root, "f", OLD, NEW, false},
    {"creates", creates, "a/b/new", NULL, NEW, false},
    {"reads", reads, "f", OLD, OLD, false},
    {"hashes", hashes, "f", OLD, OLD, false},
    {"removes", removes, "f", OLD, NULL, false},
    {"removes if same", removes_if_same, "f", OLD, NULL, false},
    {"looks", looks, "f", OLD, OLD, false},
    {"lists", lists, "f", OLD, OLD, false},
    {"makes a folder", makes_a_folder, "f", OLD, OLD, false},
    {"moves", moves, "a/b/new", NULL, OLD, false},
    {"moves over", moves_over, "f", OLD, NEW, false},
    {"removes a tree", removes_a_tree, "t/x", NEW, NULL, true},
    {"copies a tree", copies_a_tree, "a/b/x", NULL, NEW, true},
    {"reads a range", reads_a_range, "f", OLD, OLD, false},
    {"writes a range", writes_a_range, "f", OLD, NEW, true},
    {"watches", watches, "f", OLD, OLD, false},
    {"opens a root", opens_a_root, "f", OLD, OLD, false}};

/* ---- before and after ---- */

static void begin(void) {
    (void)unlink("f");
    (void)unlink("a/b/new");
    (void)unlink("a/b/x");
    (void)unlink("a/b/l");
    (void)unlink("a/b/s/y");
    (void)rmdir("a/b/s");
    (void)mkdir("t", 0755);
    (void)mkdir("t/s", 0755);
    spill("t/x", NEW);
    spill("t/s/y", OLD);
    (void)symlink("x", "t/l");
    (void)rmdir("a/b");
    (void)rmdir("a");
    spill("f", OLD);
    (void)chmod("f", 04755);
    (void)setxattr("f", "user.x", "value", 5, 0);
    spill("hard", OLD);
    (void)unlink("hard2");
    (void)link("hard", "hard2");
    (void)symlink("f", "link");
}

/* Why the end of a scenario is wrong, or NULL. */
static const char *verdict(const struct scenario *s, hfsb_status st,
                           int fds) {
    bool temps = leftovers(".");
    if (leftovers("a/b")) temps = true;
    if (leftovers("a/b/s")) temps = true;
    if (descriptors() != fds) return "a descriptor is left";
    if (temps && !fault.stuck) return "a temporary is left";
    if (st == HFSB_OK)
        return holds(s->path, s->after) ? NULL : "success, but not the new";
    if (err.code != st || err.msg[0] == '\0') return "no message";
    if (strstr(err.msg, "system error")) return "no words for the error";
    if (fault.code == EINTR) return "an interruption is no error";
    if (fault.how == SHORT) return "a short count is no error";
    if (strstr(err.msg, "could not be put back"))
        return fault.how == FOREVER ? NULL : "not put back";
    return s->either || holds(s->path, s->before)
               ? NULL
               : "failure, but not the old";
}

/* ---- the sweep ---- */

static int  bad;
static long points;

/* Calls that signals do not interrupt, or that cannot be repeated. */
static bool interruptible(const char *name) {
    static const char *const no[] = {"renameat", "linkat", "fstat", "fstatat",
                                     "faccessat", "readlinkat", "flistxattr",
                                     "fgetxattr", "fsetxattr", "fdopendir",
                                     "symlinkat", "inotify_init1",
                                     "inotify_add_watch", "syscall"};
    size_t                   i;
    for (i = 0; i < sizeof no / sizeof *no; i++)
        if (strcmp(name, no[i]) == 0) return false;
    return true;
}

static void sweep(const struct scenario *s, int code, int how,
                  const char *only) {
    long k;
    int  fds = descriptors();
    for (k = 1;; k++) {
        const char *why;
        hfsb_status st;
        begin();
        memset(&err, 0, sizeof err);
        fault.count = 0;
        fault.name = NULL;
        fault.stuck = false;
        fault.only = only;
        fault.code = code;
        fault.how = how;
        fault.at = k;
        st = s->run();
        fault.at = 0;
        if (!fault.name) break;
        points++;
        why = verdict(s, st, fds);
        if (why && code == EINTR && !interruptible(fault.name) &&
            strcmp(why, "an interruption is no error") == 0)
            why = NULL;
        if (!why) continue;
        bad++;
        printf("FAIL  %s, call %ld (%s) %s %s: %s: %s\n", s->name, k,
               fault.name, how == SHORT ? "short" : hfsbi_os_text(code),
               how == FOREVER ? "from then on" : "", why, err.msg);
    }
}

/* ---- how often a directory is listed ---- */

/* Writes "f"; how many directories were listed for it. */
static long listed(const hfsb_root *place) {
    fault.only = "fdopendir";
    fault.count = 0;
    fault.how = ONCE;
    fault.at = LONG_MAX; /* counts only */
    if (put(place, "f", NULL) != HFSB_OK) bad++;
    fault.at = 0;
    return fault.count;
}

static void expect(const char *what, long is, long want) {
    points++;
    if (is == want) return;
    bad++;
    printf("FAIL  %s: %ld directories listed, not %ld\n", what, is, want);
}

static void counts_listings(const hfsb_root_opts *opts) {
    hfsb_root *other;
    begin();
    fault.name = NULL;
    if (hfsb_root_open(opts, &other, &err) != HFSB_OK) {
        bad++;
        return;
    }
    expect("first write of a root", listed(other), 1);
    expect("second write", listed(other), 0);
    expect("third write", listed(other), 0);
    (void)poll(NULL, 0, 20); /* past a tick of the file system's clock */
    spill("theirs", "");
    expect("write after a foreign change", listed(other), 1);
    expect("write after that", listed(other), 0);
    fault.later = 59;
    expect("write before the entry expires", listed(other), 0);
    fault.later = 61;
    expect("write after the entry expired", listed(other), 1);
    expect("write after that", listed(other), 0);
    fault.later = 0;
    expect("write without a root", listed(NULL), 1);
    hfsb_root_close(other);
    (void)unlink("theirs");
}

int main(void) {
    static const int codes[] = {EINTR,  EIO,    ENOSPC, EACCES, EPERM,
                                ENOMEM, ENOSYS, EBUSY,  EROFS};
    hfsb_root_opts  opts = HFSB_INIT;
    char             top[] = "/tmp/hfsb-faults.XXXXXX";
    size_t           i, c;
    if (!mkdtemp(top) || chdir(top) != 0) return 1;
    opts.root = hfsb_cstr(top);
    if (hfsb_root_open(&opts, &inside, &err) != HFSB_OK ||
        hfsb_buf_reserve(&got, 1000) != HFSB_OK)
        return 1;
    for (i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        for (c = 0; c < sizeof codes / sizeof *codes; c++)
            sweep(&scenarios[i], codes[c], ONCE, NULL);
        sweep(&scenarios[i], 0, SHORT, NULL);
        sweep(&scenarios[i], EIO, FOREVER, NULL);
        sweep(&scenarios[i], ENOSPC, FOREVER, "pwrite");
        sweep(&scenarios[i], ENOSPC, FOREVER, "write");
        sweep(&scenarios[i], ENOSYS, FOREVER, "syscall");
        sweep(&scenarios[i], EPERM, FOREVER, "syscall");
        sweep(&scenarios[i], EPERM, FOREVER, "linkat");
    }
    counts_listings(&opts);
    hfsb_root_close(inside);
    hfsb_buf_free(&got);
    begin();
    (void)unlink("t/x");
    (void)unlink("t/l");
    (void)unlink("t/s/y");
    (void)rmdir("t/s");
    (void)rmdir("t");
    (void)unlink("f");
    (void)unlink("hard");
    (void)unlink("hard2");
    (void)unlink("link");
    if (chdir("/") != 0 || rmdir(top) != 0) bad++;
    printf("%ld faults, %d failed\n", points, bad);
    return bad != 0;
}
