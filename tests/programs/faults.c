/* faults.c - every system call of FILE fails in turn, in every way it may

   Each scenario runs with its first call failing, then its second, and so on
   to its last. It must end in success or a clear error, with the old content
   or the new, and leave no temporary and no descriptor. Then the program
   counts how often a root lists a directory. tests/checks/faults.sh */
#include "../support/fakes.h"

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
} scenarios[] = {
    {"replaces", replaces, "f", OLD, NEW},
    {"follows a link", follows_a_link, "f", OLD, NEW},
    {"rewrites in place", rewrites_in_place, "hard2", OLD, NEW},
    {"keeps to the root", keeps_to_the_root, "f", OLD, NEW},
    {"creates", creates, "a/b/new", NULL, NEW},
    {"reads", reads, "f", OLD, OLD},
    {"hashes", hashes, "f", OLD, OLD},
    {"removes", removes, "f", OLD, NULL},
    {"removes if same", removes_if_same, "f", OLD, NULL},
    {"opens a root", opens_a_root, "f", OLD, OLD}};

/* ---- before and after ---- */

static void begin(void) {
    (void)unlink("f");
    (void)unlink("a/b/new");
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
    bool temps = leftovers(".") || leftovers("a/b");
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
    return holds(s->path, s->before) ? NULL : "failure, but not the old";
}

/* ---- the sweep ---- */

static int  bad;
static long points;

/* Calls that signals do not interrupt, or that cannot be repeated. */
static bool interruptible(const char *name) {
    static const char *const no[] = {"renameat", "linkat", "fstat", "fstatat",
                                     "faccessat", "readlinkat", "flistxattr",
                                     "fgetxattr", "fsetxattr", "fdopendir",
                                     "syscall"};
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
    (void)unlink("f");
    (void)unlink("hard");
    (void)unlink("hard2");
    (void)unlink("link");
    if (chdir("/") != 0 || rmdir(top) != 0) bad++;
    printf("%ld faults, %d failed\n", points, bad);
    return bad != 0;
}
