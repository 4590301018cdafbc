/* test_file_root.c - no path leads outside the root

   in/            the root               out/secret    must never be read
   in/dir/sub/    subdirectories         in2/          a sibling directory
   in/LINK        links of all kinds                                       */
#include "../support/t_file.h"
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif
#if defined(HFSBI_LINUX) && defined(__has_include)
#if __has_include(<linux/seccomp.h>) && __has_include(<linux/filter.h>)
#include <linux/filter.h>
#include <linux/seccomp.h>
#define HAVE_SECCOMP 1
#endif
#endif

static hfsb_err err;

/* text with each "$" replaced by the directory of this test */
static const char *at_top(const char *text, char out[PATH_MAX]) {
    size_t n = 0;
    for (; *text && n + strlen(t_top) < PATH_MAX - 1; text++) {
        if (*text != '$') {
            out[n++] = *text;
            continue;
        }
        memcpy(out + n, t_top, strlen(t_top));
        n += strlen(t_top);
    }
    out[n] = '\0';
    return out;
}

static hfsb_root *open_root(const char *root, const char *work) {
    hfsb_root_opts opts;
    hfsb_root     *place = NULL;
    memset(&opts, 0, sizeof opts);
    opts.root = hfsb_cstr(root);
    opts.work_dir = hfsb_cstr(work);
    T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_OK);
    if (!place) {
        printf("no place: %s\n", err.msg);
        exit(1);
    }
    return place;
}

static void make_link(const char *target, const char *path) {
    char text[PATH_MAX];
    T_CHECK(symlink(at_top(target, text), path) == 0);
}

static void make_tree(void) {
    static const char *const dirs[] = {"in", "in/dir", "in/dir/sub", "in2",
                                       "out", "out/dir"};
    size_t                   i;
    for (i = 0; i < sizeof dirs / sizeof *dirs; i++)
        T_CHECK(mkdir(dirs[i], 0755) == 0);
    t_put("in/file", "inside");
    t_put("in/dir/file", "deeper");
    t_put("in2/file", "sibling");
    t_put("out/secret", "secret");
    make_link("dir/file", "in/good");
    make_link("../dir/sub/../file", "in/dir/good");
    make_link("dir", "in/good-dir");
    make_link("../out/secret", "in/out-file");
    make_link("$/out/secret", "in/out-absolute");
    make_link("../out", "in/out-dir");
    make_link("out-dir", "in/out-chain");
    make_link("dir/../../out/secret", "in/out-up");
    make_link("../out/new", "in/out-new");
    make_link("$/in/file", "in/absolute");
    make_link("$/in/dir", "in/absolute-dir");
    make_link("$/in", "in/absolute-root");
    make_link("$/in/../out/secret", "in/absolute-up");
    make_link("$/in/dir/../../out", "in/absolute-up-dir");
    make_link("$/in/dir/absolute-loop/x", "in/dir/absolute-loop");
    make_link("/proc/self/root", "in/magic");
    make_link("turn2", "in/turn");
    make_link("turn", "in/turn2");
    make_link("in", "in-link");
}

/* ---- one path, every call ---- */

static void check_refused(const char *what, hfsb_status st, const char *path,
                          const char *root) {
    char want[3 * PATH_MAX];
    bool ok;
    (void)snprintf(want, sizeof want, "Path is outside the root %s: %s",
                   root, path);
    ok = st == HFSB_OUTSIDE && err.code == st && strcmp(err.msg, want) == 0;
    T_CHECK(ok);
    if (!ok) printf("  %s %s: %d %s\n", what, path, (int)st, err.msg);
}

/* remove takes a link itself: not tried for paths that end in a link */
static void each_call_refuses(const hfsb_root *place, const char *name,
                              bool is_link) {
    hfsb_file_write_opts opts;
    hfsb_str             path = hfsb_cstr(name);
    hfsb_buf             out = HFSB_INIT;
    hfsb_file_info       info;
    char                 hex[HFSB_SHA256_HEX], root[PATH_MAX];
    int                  fd;
    memset(&opts, 0, sizeof opts);
    opts.no_sync = true;
    (void)snprintf(root, sizeof root, "%.*s",
                   (int)hfsb_root_path(place).len,
                   hfsb_root_path(place).ptr);
    check_refused("stat", hfsb_file_stat(place, path, &info, &err), name,
                  root);
    check_refused("key", hfsb_file_key(place, path, &out, &err), name, root);
    check_refused("open", hfsb_file_open(place, path, &fd, &info, &err),
                  name, root);
    check_refused("read", hfsb_file_read(place, path, 0, &out, &info, &err),
                  name, root);
    check_refused("sha256", hfsb_file_sha256(place, path, hex, &err), name,
                  root);
    check_refused("write",
                  hfsb_file_write(place, path, HFSB_LIT("evil"), &opts, NULL,
                                  &err),
                  name, root);
    opts.create = true;
    check_refused("create",
                  hfsb_file_write(place, path, HFSB_LIT("evil"), &opts, NULL,
                                  &err),
                  name, root);
    if (!is_link)
        check_refused("remove", hfsb_file_remove(place, path, &err), name,
                      root);
    T_CHECK(out.len == 0);
    hfsb_buf_free(&out);
}

static void outside_is_untouched(void) {
    T_FILE("out/secret", "secret");
    T_FILE("in2/file", "sibling");
    T_CHECK(t_entries("out", "") == 2 && t_entries("out/dir", "") == 0);
    T_CHECK(t_entries("in2", "") == 1);
    T_CHECK(t_entries(".", "") == 4);
    T_CLEAN("in");
}

/* ---- the tables ---- */

static void no_path_leads_outside(void) {
    static const struct {
        const char *path;
        bool        is_link;
    } cases[] = {{"..", false},
                 {"../out/secret", false},
                 {"../out/none", false}, /* the same message */
                 {"../out/none/none", false},
                 {"dir/../../out/secret", false},
                 {"dir/../../in/file", false},
                 {"good-dir/../../out/secret", false},
                 {"$/out/secret", false},
                 {"$/out/none", false},
                 {"$/in2/file", false},
                 {"$/in/../out/secret", false},
                 {"$/in/../in2/file", false},
                 {"$", false},
                 {"/", false},
                 {"/$/out/secret", false},
                 {"/.//$/out/secret", false},
                 {"/proc/self/root/$/out/secret", false},
                 {"out-file", true},
                 {"out-absolute", true},
                 {"out-up", true},
                 {"out-new", true},
                 {"magic", true},
                 {"out-dir/secret", false},
                 {"out-dir/none", false},
                 {"out-dir/new/dir/file", false},
                 {"out-dir/", false},
                 {"out-chain/secret", false},
                 {"out-chain/dir/../secret", false},
                 {"absolute-dir/../../out/secret", false},
                 {"absolute-up", true},
                 {"absolute-up-dir/secret", false},
                 {"magic/$/out/secret", false},
                 {"dir/sub/../../../out/secret", false}};
    hfsb_root *place = open_root("in", "");
    int         fds = t_descriptors();
    char        text[PATH_MAX];
    size_t      i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        each_call_refuses(place, at_top(cases[i].path, text),
                          cases[i].is_link);
    T_CHECK(t_descriptors() == fds);
    outside_is_untouched();
    hfsb_root_close(place);
}

static void paths_inside_work(void) {
    static const struct {
        const char *path, *text;
    } cases[] = {{"file", "inside"},
                 {"./dir//file", "deeper"},
                 {"dir/../file", "inside"},
                 {"dir/sub/../../file", "inside"},
                 {"good", "deeper"},
                 {"dir/good", "deeper"},
                 {"good-dir/good", "deeper"},
                 {"good-dir/../file", "inside"},
                 {"$/in/file", "inside"},
                 {"$//in/./dir/file", "deeper"},
                 {"$/in-link/file", "inside"},
                 {"$/out/../in/file", "inside"},
                 {"$/none/../in-link/dir/file", "deeper"},
                 {"absolute", "inside"},
                 {"absolute-dir/file", "deeper"},
                 {"absolute-dir/../file", "inside"},
                 {"dir/sub/../../absolute-dir/good", "deeper"},
                 {"absolute-root/absolute-dir/../absolute", "inside"}};
    hfsb_root *place = open_root("in-link", "");
    hfsb_buf    out = HFSB_INIT;
    char        text[PATH_MAX];
    size_t      i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str    path = hfsb_cstr(at_top(cases[i].path, text));
        hfsb_status st = hfsb_file_read(place, path, 0, &out, NULL, &err);
        T_CHECK(st == HFSB_OK);
        if (st != HFSB_OK) printf("  %s\n", err.msg);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&out), hfsb_cstr(cases[i].text)));
        hfsb_buf_truncate(&out, 0);
        T_CHECK(hfsb_file_write(place, path, hfsb_cstr(cases[i].text), NULL,
                                NULL, &err) == HFSB_OK);
    }
    T_CHECK(hfsb_file_write(place, HFSB_LIT("new/dir/x"), HFSB_LIT("x"), NULL,
                            NULL, &err) == HFSB_OK);
    T_FILE("in/new/dir/x", "x");
    T_CHECK(hfsb_file_remove(place, HFSB_LIT("good-dir/../new/dir/x"),
                             &err) == HFSB_OK);
    T_CHECK(rmdir("in/new/dir") == 0 && rmdir("in/new") == 0);
    T_CHECK(hfsb_file_read(place, HFSB_LIT("turn"), 0, &out, NULL, &err) ==
            HFSB_ARG);
    T_STR(hfsb_cstr(err.msg), "Cannot read turn: too many symbolic links");
    T_CHECK(hfsb_file_read(place, HFSB_LIT("turn/x"), 0, &out, NULL, &err) ==
            HFSB_ARG);
    T_STR(hfsb_cstr(err.msg), "Cannot read turn/x: too many symbolic links");
    T_CHECK(hfsb_file_read(place, HFSB_LIT("dir/absolute-loop/x"), 0, &out,
                           NULL, &err) == HFSB_ARG);
    T_CHECK(hfsb_file_write(place, HFSB_LIT("absolute-dir/new/x"),
                            HFSB_LIT("x"), NULL, NULL, &err) == HFSB_OK);
    T_FILE("in/dir/new/x", "x");
    T_CHECK(unlink("in/dir/new/x") == 0 && rmdir("in/dir/new") == 0);
    T_CHECK(hfsb_file_read(place, HFSB_LIT("dir"), 0, &out, NULL, &err) ==
            HFSB_IS_DIR);
    T_STR(hfsb_cstr(err.msg), "Is a directory: dir");
    T_CHECK(hfsb_file_read(place, HFSB_LIT("."), 0, &out, NULL, &err) ==
            HFSB_IS_DIR);
    T_STR(hfsb_cstr(err.msg), "Is a directory: .");
    T_CHECK(hfsb_file_read(place, HFSB_LIT("file/x"), 0, &out, NULL, &err) ==
            HFSB_NOT_FOUND);
    T_CHECK(hfsb_file_read(place, HFSB_LIT("none/x"), 0, &out, NULL, &err) ==
            HFSB_NOT_FOUND);
    T_STR(hfsb_cstr(err.msg), "File not found: none/x");
    outside_is_untouched();
    hfsb_buf_free(&out);
    hfsb_root_close(place);
}

static void long_paths_inside_are_errors(void) {
    hfsb_root *place = open_root("in", "");
    hfsb_buf    path = HFSB_INIT, out = HFSB_INIT;
    t_repeat(&path, "dir/../", 720); /* 5,040 bytes */
    t_repeat(&path, "file", 1);
    T_CHECK(hfsb_file_read(place, hfsb_buf_str(&path), 0, &out, NULL, &err) ==
            HFSB_ARG);
    T_CHECK(strstr(err.msg, "...: the name is too long") != NULL);
    hfsb_buf_truncate(&path, 0);
    t_repeat(&path, "dir/../", 500); /* and one that is not too long */
    t_repeat(&path, "file", 1);
    T_CHECK(hfsb_file_read(place, hfsb_buf_str(&path), 0, &out, NULL, &err) ==
            HFSB_OK);
    T_STR(out, "inside");
    hfsb_buf_truncate(&path, 0);
    t_repeat(&path, "n", 256);
    t_repeat(&path, "/x", 1);
    T_CHECK(hfsb_file_read(place, hfsb_buf_str(&path), 0, &out, NULL, &err) ==
            HFSB_ARG);
    hfsb_buf_free(&path);
    hfsb_buf_free(&out);
    hfsb_root_close(place);
}

static void remove_takes_a_link_that_leads_outside(void) {
    hfsb_root *place = open_root("in", "");
    make_link("../out/secret", "in/remove-me");
    T_CHECK(hfsb_file_remove(place, HFSB_LIT("remove-me"), &err) == HFSB_OK);
    T_CHECK(!t_exists("in/remove-me"));
    outside_is_untouched();
    hfsb_root_close(place);
}

static void work_directory_must_lie_beneath_the_root(void) {
    static const struct {
        const char *work;
        hfsb_status code;
    } cases[] = {{"$/out", HFSB_OUTSIDE},  {"..", HFSB_OUTSIDE},
                 {"$/in2", HFSB_OUTSIDE},  {"out-dir", HFSB_OUTSIDE},
                 {"/", HFSB_OUTSIDE},      {"$/in/dir", HFSB_OK},
                 {"dir", HFSB_OK},         {"good-dir", HFSB_OK},
                 {"dir/sub/..", HFSB_OK},  {"$/in-link/dir", HFSB_OUTSIDE},
                 {"none", HFSB_NOT_FOUND}, {"file", HFSB_NOT_FOUND}};
    hfsb_root_opts opts;
    hfsb_root     *place;
    hfsb_buf        out = HFSB_INIT;
    char            text[PATH_MAX];
    size_t          i;
    memset(&opts, 0, sizeof opts);
    opts.root = HFSB_LIT("in");
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        opts.work_dir = hfsb_cstr(at_top(cases[i].work, text));
        T_CHECK(hfsb_root_open(&opts, &place, &err) == cases[i].code);
        if (err.code != cases[i].code) printf("  %s %s\n", text, err.msg);
        if (!place) continue;
        hfsb_buf_truncate(&out, 0);
        T_CHECK(hfsb_file_read(place, HFSB_LIT("file"), 0, &out, NULL,
                               &err) == HFSB_OK);
        T_CHECK(hfsb_file_read(place, HFSB_LIT("../file"), 0, &out, NULL,
                               &err) == HFSB_OK);
        T_STR(out, "deeperinside");
        each_call_refuses(place, "../../out/secret", false);
        hfsb_root_close(place);
    }
    place = open_root("in", "");
    T_CHECK(hfsb_str_equal(hfsb_root_path(place),
                           hfsb_cstr(at_top("$/in", text))));
    T_CHECK(hfsb_str_equal(hfsb_root_work_dir(place),
                           hfsb_root_path(place)));
    hfsb_root_close(place);
    hfsb_buf_free(&out);
}

/* With the root "/" everything is inside, but the links of /proc lead to what
   a path cannot tell. */
static void magic_links_are_not_followed(void) {
    hfsb_root *place;
    char        path[64], text[PATH_MAX];
    int         fd;
    if (!t_exists("/proc/self/root")) {
        printf("skipped: no /proc\n");
        t_skipped++;
        return;
    }
    place = open_root("/", "");
    fd = open("out/secret", O_RDONLY | O_CLOEXEC);
    each_call_refuses(place, at_top("/proc/self/root/$/out/secret", text),
                      false);
    each_call_refuses(place, "proc/self/cwd/out/secret", false);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    each_call_refuses(place, path, true);
    (void)snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)getpid(), fd);
    each_call_refuses(place, path, true);
    close(fd);
    fd = open("out", O_RDONLY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d/secret", fd);
    each_call_refuses(place, path, false);
    close(fd);
    outside_is_untouched();
    hfsb_root_close(place);
}

/* ---- races ---- */

#ifdef SYS_renameat2
static bool exchange(const char *a, const char *b) {
    const unsigned swap = 2; /* RENAME_EXCHANGE */
    return syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, swap) == 0;
}

/* Swaps a directory and a file for links to the outside, and plants one where
   a directory is about to be made, until killed. */
static pid_t start_racer(void) {
    pid_t parent = getpid(), pid;
    fflush(stdout);
    pid = fork();
    if (pid != 0) return pid;
    while (getppid() == parent) {
        (void)exchange("in/race", "in/race-link");
        (void)exchange("in/still/f", "in/still/f-link");
        if (symlink("../../far", "in/still/made") == 0)
            (void)unlink("in/still/made");
    }
    _exit(0);
}

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Proves that the racer works: a plain open() gets outside. */
static bool plain_path_escapes(const char *path) {
    double end = now() + 20;
    char   text[16];
    while (now() < end) {
        int     fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
        if (fd >= 0) close(fd);
        if (n == 7 && memcmp(text, "OUTSIDE", 7) == 0) return true;
    }
    return false;
}

typedef struct race_score {
    unsigned long good, refused, failed;
} race_score;

static void count(race_score *score, hfsb_status st) {
    if (st == HFSB_OK) score->good++;
    else if (st == HFSB_OUTSIDE) score->refused++;
    else score->failed++;
}

static void race_round(const hfsb_root *place, race_score *score) {
    static const char *const files[] = {"race/f", "still/f",
                                        "race/../race/f"};
    static const char *const others[] = {"race/new", "race/a/b/c",
                                         "still/new"};
    hfsb_file_write_opts     opts;
    hfsb_file_info           info;
    hfsb_buf                 out = HFSB_INIT;
    size_t                   i;
    memset(&opts, 0, sizeof opts);
    opts.no_sync = true;
    for (i = 0; i < 3; i++) {
        hfsb_str    path = hfsb_cstr(files[i]);
        hfsb_status st = hfsb_file_read(place, path, 0, &out, NULL, &err);
        count(score, st);
        if (st == HFSB_OK) T_STR(out, "in");
        hfsb_buf_truncate(&out, 0);
        st = hfsb_file_stat(place, path, &info, &err);
        if (st == HFSB_OK) T_CHECK(info.size == 2);
        count(score, hfsb_file_write(place, path, HFSB_LIT("in"), &opts, NULL,
                                     &err));
        path = hfsb_cstr(others[i]);
        count(score, hfsb_file_write(place, path, HFSB_LIT("new"), &opts,
                                     NULL, &err));
        count(score, hfsb_file_remove(place, path, &err));
    }
    for (i = 0; i < 20; i++) {
        hfsb_str path = HFSB_LIT("still/made/x");
        count(score, hfsb_file_write(place, path, HFSB_LIT("new"), &opts,
                                     NULL, &err));
        (void)unlinkat(AT_FDCWD, "in/still/made/x", 0);
        (void)rmdir("in/still/made");
    }
    hfsb_buf_free(&out);
}

static bool raced_before; /* the long race was run already */

static void race(void) {
    double      end;
    race_score  score = HFSB_INIT;
    hfsb_root *place = open_root("in", "");
    int         status, fds = t_descriptors();
    pid_t       racer;
    T_CHECK(mkdir("in/race", 0755) == 0 && mkdir("in/still", 0755) == 0);
    T_CHECK(mkdir("far", 0755) == 0);
    t_put("in/race/f", "in");
    t_put("in/still/f", "in");
    t_put("far/f", "OUTSIDE");
    make_link("../far", "in/race-link");
    make_link("../../far/f", "in/still/f-link");
    T_CHECK(exchange("in/race", "in/race-link"));
    racer = start_racer();
    T_CHECK(racer > 0 && plain_path_escapes("in/race/f") &&
            plain_path_escapes("in/still/f"));
    end = now() + (t_long() && !raced_before ? 30 : t_quick() ? 0.3 : 1);
    do race_round(place, &score);
    while (now() < end && t_failed == 0);
    if (racer > 0) kill(racer, SIGKILL);
    while (racer > 0 && waitpid(racer, &status, 0) < 0 && errno == EINTR) {}
    T_CHECK(score.good > 0 && score.refused > 0);
    printf("  race: %lu done, %lu refused, %lu failed\n", score.good,
           score.refused, score.failed);
    T_FILE("far/f", "OUTSIDE");
    T_CHECK(t_entries("far", "") == 1);
    T_CHECK(t_descriptors() == fds);
    T_CHECK(unlink("far/f") == 0 && rmdir("far") == 0);
    t_remove_tree("in/race");
    t_remove_tree("in/race-link");
    t_remove_tree("in/still");
    outside_is_untouched();
    hfsb_root_close(place);
}
#else
static void race(void) {
    printf("skipped: names cannot be exchanged here\n");
    t_skipped++;
}
#endif

/* ---- the same without openat2 ---- */

static const char *all_of_it(void) {
    no_path_leads_outside();
    paths_inside_work();
    long_paths_inside_are_errors();
    remove_takes_a_link_that_leads_outside();
    work_directory_must_lie_beneath_the_root();
    magic_links_are_not_followed();
    race();
    return NULL;
}

#if defined(HAVE_SECCOMP) && defined(SYS_openat2)
/* A kernel without openat2, or a container whose filter does not know it. */
static bool take_openat2_away(int code) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K,
                 SECCOMP_RET_ERRNO | ((unsigned)code & 0xFFFFu)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program;
    program.len = sizeof filter / sizeof *filter;
    program.filter = filter;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return false;
    return syscall(SYS_openat2, -1, "", NULL, 0) < 0 && errno == code;
}

static const char *without_openat2(void) {
    return take_openat2_away(ENOSYS) ? all_of_it() : "no seccomp";
}

static const char *with_openat2_forbidden(void) {
#ifdef SYS_renameat2
    raced_before = true; /* the walk is the same as without it */
#endif
    return take_openat2_away(EPERM) ? all_of_it() : "no seccomp";
}
#endif

int main(void) {
    t_begin_files();
    make_tree();
    T_RUN(all_of_it);
#if defined(HAVE_SECCOMP) && defined(SYS_openat2)
    t_name = "without_openat2";
    t_in_child(without_openat2);
    t_name = "with_openat2_forbidden";
    t_in_child(with_openat2_forbidden);
#endif
    return t_end_files(__FILE__);
}
