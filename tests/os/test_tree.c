/* test_tree.c - whole trees are removed and copied

   in/     the root                    out/     must stay as it is */
#include "../support/t_file.h"
#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#endif

static hfsb_err   err;
static hfsb_root *in;

static hfsb_root *open_root(const char *deny, const hfsb_alloc *alloc) {
    hfsb_root_opts opts;
    hfsb_root     *root = NULL;
    memset(&opts, 0, sizeof opts);
    opts.root = HFSB_LIT("in");
    if (deny) {
        opts.deny = &deny;
        opts.deny_count = 1;
    }
    if (alloc) opts.alloc = *alloc;
    (void)hfsb_root_open(&opts, &root, &err);
    return root;
}

static void make_tree(void) {
    (void)mkdir("in/d", 0755);
    (void)mkdir("in/d/e", 0750);
    (void)mkdir("in/d/e/empty", 0755);
    t_put("in/d/f", "f");
    t_put("in/d/e/g", "gg");
    (void)chmod("in/d/e/g", 0751);
    (void)symlink("../../out", "in/d/olink");
    (void)symlink("e/g", "in/d/link");
}

static void begin(void) {
    t_remove_tree("in");
    t_remove_tree("out");
    T_CHECK(mkdir("in", 0755) == 0 && mkdir("out", 0755) == 0);
    t_put("out/secret", "secret");
    t_put("in/top", "top");
    make_tree();
    in = open_root(NULL, NULL);
    if (!in) abort();
}

static void end(void) {
    T_FILE("out/secret", "secret");
    T_CHECK(t_entries("out", "") == 1);
    hfsb_root_close(in);
}

static hfsb_status remove_it(const hfsb_root *root, const char *path,
                             bool tree, unsigned long long *removed) {
    hfsbi_remove_opts opts = HFSB_INIT;
    opts.tree = tree;
    return hfsbi_path_remove_all(root, hfsb_cstr(path), &opts, removed, &err);
}

/* ---- remove ---- */

static void remove_takes_anything_but_a_full_folder(void) {
    unsigned long long n;
    begin();
    T_CHECK(mkfifo("in/fifo", 0600) == 0);
    T_CHECK(remove_it(in, "fifo", false, &n) == HFSB_OK && n == 1);
    T_CHECK(remove_it(in, "d/olink", false, &n) == HFSB_OK);
    T_CHECK(!t_exists("in/d/olink"));
    T_CHECK(remove_it(in, "d/link", true, &n) == HFSB_OK);
    T_FILE("in/d/e/g", "gg");
    T_CHECK(remove_it(in, "d/e/empty/", false, &n) == HFSB_OK);
    T_CHECK(remove_it(in, "d", false, &n) == HFSB_EXISTS && n == 0);
    T_ERR(HFSB_EXISTS, "The folder is not empty: d");
    T_CHECK(remove_it(in, "none", true, &n) == HFSB_NOT_FOUND);
    T_CHECK(hfsbi_path_remove_all(in, HFSB_LIT("top"), NULL, NULL, &err) ==
            HFSB_OK);
    T_CHECK(remove_it(in, "../out/secret", true, &n) == HFSB_OUTSIDE);
    T_CHECK(remove_it(in, "../out", true, &n) == HFSB_OUTSIDE);
    end();
}

static void remove_takes_a_tree_but_no_links_out_of_it(void) {
    unsigned long long n;
    begin();
    T_CHECK(remove_it(in, "d", true, &n) == HFSB_OK && n == 7);
    T_CHECK(!t_exists("in/d"));
    T_FILE("in/top", "top");
    end();
}

static void a_root_is_emptied_but_not_removed(void) {
    unsigned long long n;
    begin();
    T_CHECK(remove_it(in, ".", false, &n) == HFSB_REFUSED);
    T_ERR(HFSB_REFUSED, "A root cannot be removed: .");
    T_CHECK(remove_it(in, "d/e/..", true, &n) == HFSB_REFUSED);
    T_CHECK(remove_it(in, ".", true, &n) == HFSB_OK && n == 8);
    T_CHECK(t_entries("in", "") == 0);
    T_CHECK(remove_it(in, ".", true, &n) == HFSB_OK && n == 0);
    make_tree();
    T_CHECK(remove_it(in, "d/..", true, &n) == HFSB_OK && n == 7);
    end();
}

/* Deeper than a path may be long, and than our descriptors go. */
static void remove_takes_a_tree_of_any_depth(void) {
    enum { DEEP = 2500 };
    char               name[64];
    unsigned long long n;
    int                i, at, fds;
    begin();
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    at = open("in/d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (i = 0; i < DEEP && at >= 0; i++) {
        int next, file = openat(at, "file", O_WRONLY | O_CREAT, 0600);
        if (file >= 0) close(file);
        T_CHECK(mkdirat(at, name, 0755) == 0);
        next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    T_CHECK(at >= 0);
    close(at);
    fds = t_descriptors();
    T_CHECK(remove_it(in, "d", true, &n) == HFSB_OK);
    T_CHECK(n == 7 + 2 * DEEP && !t_exists("in/d"));
    T_CHECK(t_descriptors() == fds);
    end();
}

static void remove_takes_many_entries(void) {
    unsigned long long n;
    char               path[64];
    int                i;
    begin();
    for (i = 0; i < 3000; i++) {
        (void)snprintf(path, sizeof path, "in/d/file-%d", i);
        t_put(path, "");
    }
    T_CHECK(remove_it(in, "d", true, &n) == HFSB_OK && n == 3007);
    end();
}

static void remove_leaves_what_is_denied_and_goes_on(void) {
    hfsb_root         *root;
    unsigned long long n;
    begin();
    root = open_root("/d/e/g", NULL);
    T_CHECK(remove_it(root, "d", true, &n) == HFSB_DENIED && n == 4);
    T_ERR(HFSB_DENIED, "Path is on the deny list: d/e/g");
    T_FILE("in/d/e/g", "gg");
    T_CHECK(!t_exists("in/d/f") && !t_exists("in/d/e/empty"));
    T_CHECK(remove_it(root, ".", true, &n) == HFSB_DENIED);
    T_ERR(HFSB_DENIED, "Path is on the deny list: ./d/e/g");
    T_CHECK(!t_exists("in/top"));
    hfsb_root_close(root);
    end();
}

static void remove_stops_when_cancelled_or_late(void) {
    hfsbi_remove_opts opts = HFSB_INIT;
    hfsb_cancel      *cancel;
    begin();
    opts.tree = true;
    T_CHECK(hfsb_cancel_open(NULL, &cancel, &err) == HFSB_OK);
    hfsb_cancel_set(cancel);
    opts.cancel = cancel;
    T_CHECK(hfsbi_path_remove_all(in, HFSB_LIT("d"), &opts, NULL, &err) ==
            HFSB_CANCELLED);
    opts.cancel = NULL;
    opts.until = hfsb_clock_ms() - 1;
    T_CHECK(hfsbi_path_remove_all(in, HFSB_LIT("d"), &opts, NULL, &err) ==
            HFSB_TIMEOUT);
    T_FILE("in/d/f", "f");
    hfsb_cancel_close(cancel);
    end();
}

/* As a user who is not root, in a child. */
static const char *without_permission(void) {
    hfsbi_remove_opts opts = HFSB_INIT;
    if (t_root_user() && (chown("in", 1000, 1000) != 0 ||
                          setgid(1000) != 0 || setuid(1000) != 0))
        return "cannot become another user";
    T_CHECK(mkdir("in/p", 0755) == 0 && mkdir("in/p/closed", 0755) == 0);
    T_CHECK(mkdir("in/p/none", 0) == 0);
    t_put("in/p/closed/f", "");
    t_put("in/p/open", "");
    T_CHECK(chmod("in/p/closed", 0500) == 0);
    opts.tree = true;
    T_CHECK(hfsbi_path_remove_all(in, HFSB_LIT("p"), &opts, NULL, &err) ==
            HFSB_DENIED);
    T_ERR(HFSB_DENIED, "Cannot remove p/closed/f: permission denied");
    T_CHECK(!t_exists("in/p/open") && !t_exists("in/p/none"));
    T_CHECK(mkdir("in/p/none", 0) == 0);
    opts.force = true;
    T_CHECK(hfsbi_path_remove_all(in, HFSB_LIT("p"), &opts, NULL, &err) ==
            HFSB_OK);
    T_CHECK(!t_exists("in/p"));
    return NULL;
}

static void remove_goes_on_without_permission(void) {
    begin();
    t_in_child(without_permission);
    end();
}

static const char *with_a_mount(void) {
#ifdef __linux__
    unsigned long long n;
    hfsb_root         *here;
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return "no mounts here";
    T_CHECK(mkdir("in/d/bind", 0755) == 0 && mkdir("in/d/tmp", 0755) == 0);
    if (mount("out", "in/d/bind", NULL, MS_BIND, NULL) != 0 ||
        mount("tmpfs", "in/d/tmp", "tmpfs", 0, NULL) != 0)
        return "no mounts here";
    t_put("in/d/tmp/x", "x");
    here = open_root(NULL, NULL); /* in the new name space */
    if (!here) abort();
#ifdef HFSBI_LINUX /* a part of the same file system */
    T_CHECK(remove_it(here, "d", true, &n) == HFSB_BUSY);
    T_CHECK(t_exists("out/secret"));
#endif
    T_CHECK(umount("in/d/bind") == 0);
    T_CHECK(remove_it(here, "d", true, &n) == HFSB_BUSY);
    T_ERR(HFSB_BUSY, "Is a mount point, the root of a running sandbox, or in "
                     "use: d/tmp");
    T_FILE("in/d/tmp/x", "x");
    T_CHECK(!t_exists("in/d/f"));
    T_CHECK(hfsbi_path_move(here, HFSB_LIT("top"), HFSB_LIT("d/tmp/top"), 0,
                            &err) == HFSB_REFUSED);
    hfsb_root_close(here);
    T_CHECK(umount("in/d/tmp") == 0);
    return NULL;
#else
    return "only on Linux";
#endif
}

static void remove_stays_within_its_mount(void) {
    begin();
    t_in_child(with_a_mount);
    end();
}

/* ---- copy ---- */

static hfsb_status copy(const char *from, const char *to, bool tree,
                        hfsbi_copied *copied) {
    hfsbi_copy_opts opts = HFSB_INIT;
    opts.tree = tree;
    return hfsbi_path_copy(in, hfsb_cstr(from), hfsb_cstr(to), &opts, copied,
                           &err);
}

static void copy_takes_a_file_with_its_mode(void) {
    hfsbi_copy_opts opts = HFSB_INIT;
    hfsbi_copied    copied;
    begin();
    T_CHECK(copy("d/link", "new/g", false, &copied) == HFSB_OK);
    T_FILE("in/new/g", "gg");
    T_CHECK(t_mode("in/new/g") == 0751 && copied.bytes == 2);
    T_CHECK(copy("d/e/g", "top", false, &copied) == HFSB_OK);
    T_FILE("in/top", "gg");
    T_CHECK(t_mode("in/top") == 0644); /* it keeps its own */
    opts.create = true;
    T_CHECK(hfsbi_path_copy(in, HFSB_LIT("d/f"), HFSB_LIT("top"), &opts,
                            NULL, &err) == HFSB_EXISTS);
    opts.create = false;
    opts.max_bytes = 1;
    T_CHECK(hfsbi_path_copy(in, HFSB_LIT("d/e/g"), HFSB_LIT("n"), &opts, NULL,
                            &err) == HFSB_LIMIT);
    T_CHECK(!t_exists("in/n"));
    T_CHECK(copy("d", "n", false, &copied) == HFSB_IS_DIR);
    T_CHECK(copy("d/olink/secret", "n", false, &copied) == HFSB_OUTSIDE);
    T_CHECK(copy("top", "d/olink/n", false, &copied) == HFSB_OUTSIDE);
    T_CHECK(mkfifo("in/fifo", 0600) == 0);
    T_CHECK(copy("fifo", "n", true, &copied) == HFSB_NOT_REGULAR);
    T_CHECK(copy("none", "n", true, &copied) == HFSB_NOT_FOUND);
    T_CLEAN("in");
    end();
}

static void copy_takes_a_tree_and_makes_its_links_again(void) {
    char         text[16];
    hfsbi_copied copied;
    begin();
    T_CHECK(copy("d", "a/copy/", true, &copied) == HFSB_OK);
    T_CHECK(copied.entries == 7 && copied.bytes == 3);
    T_FILE("in/a/copy/e/g", "gg");
    T_CHECK(t_mode("in/a/copy/e/g") == 0751 && t_mode("in/a/copy/e") == 0750);
    T_CHECK(readlink("in/a/copy/olink", text, sizeof text) == 9);
    T_CHECK(t_exists("in/a/copy/e/empty"));
    T_CHECK(copy("d", "d/e/x", true, &copied) == HFSB_ARG);
    T_CHECK(copy("d", "d", true, &copied) == HFSB_ARG);
    T_CHECK(copy(".", "d/all", true, &copied) == HFSB_ARG);
    T_CHECK(copy("d", "d2", true, &copied) == HFSB_OK);
    /* into what exists: the links are there already */
    T_CHECK(copy("d/e", "d2/e", true, &copied) == HFSB_OK);
    T_CHECK(copy("d", "d2", true, &copied) == HFSB_EXISTS);
    end();
}

static void copy_has_limits(void) {
    hfsbi_copy_opts opts = HFSB_INIT;
    hfsbi_copied    copied;
    hfsb_cancel    *cancel;
    begin();
    opts.tree = true;
    opts.max_entries = 3;
    T_CHECK(hfsbi_path_copy(in, HFSB_LIT("d"), HFSB_LIT("x"), &opts, &copied,
                            &err) == HFSB_LIMIT);
    T_CHECK(copied.entries == 3);
    opts.max_entries = 0;
    opts.max_bytes = 2;
    T_CHECK(hfsbi_path_copy(in, HFSB_LIT("d"), HFSB_LIT("y"), &opts, &copied,
                            &err) == HFSB_LIMIT);
    opts.max_bytes = 0;
    T_CHECK(mkfifo("in/d/z", 0600) == 0);
    T_CHECK(hfsbi_path_copy(in, HFSB_LIT("d"), HFSB_LIT("z"), &opts, &copied,
                            &err) == HFSB_NOT_REGULAR);
    T_ERR(HFSB_NOT_REGULAR, "Is a FIFO, not a regular file: z/z");
    opts.create = true;
    T_CHECK(hfsbi_path_copy(in, HFSB_LIT("d"), HFSB_LIT("x"), &opts, &copied,
                            &err) == HFSB_EXISTS);
    opts.create = false;
    T_CHECK(hfsb_cancel_open(NULL, &cancel, &err) == HFSB_OK);
    hfsb_cancel_set(cancel);
    opts.cancel = cancel;
    T_CHECK(hfsbi_path_copy(in, HFSB_LIT("d"), HFSB_LIT("c"), &opts, &copied,
                            &err) == HFSB_CANCELLED);
    hfsb_cancel_close(cancel);
    end();
}

static void copy_leaves_out_what_is_denied(void) {
    hfsbi_copy_opts opts = HFSB_INIT;
    hfsb_root      *root;
    begin();
    root = open_root("g", NULL);
    opts.tree = true;
    T_CHECK(hfsbi_path_copy(root, HFSB_LIT("d"), HFSB_LIT("x"), &opts, NULL,
                            &err) == HFSB_OK);
    T_CHECK(t_exists("in/x/f") && !t_exists("in/x/e/g"));
    T_CHECK(hfsbi_path_copy(root, HFSB_LIT("top"), HFSB_LIT("g"), &opts, NULL,
                            &err) == HFSB_DENIED);
    hfsb_root_close(root);
    end();
}

/* ---- faults and races ---- */

static void trees_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsbi_copy_opts   opts = HFSB_INIT;
    hfsbi_remove_opts all = HFSB_INIT;
    hfsb_root        *root = open_root("secret", &alloc);
    hfsb_status       st;
    if (!root) return;
    opts.tree = all.tree = true;
    st = hfsbi_path_copy(root, HFSB_LIT("d"), HFSB_LIT("x"), &opts, NULL,
                         &err);
    T_CHECK(st == HFSB_OK || (heap->fail_at && (st == HFSB_NOMEM ||
                                                st == HFSB_DENIED)));
    T_CHECK(st == HFSB_OK || err.code == st);
    (void)mkdir("in/x", 0755);
    st = hfsbi_path_remove_all(root, HFSB_LIT("x"), &all, NULL, &err);
    T_CHECK(st == HFSB_OK || (heap->fail_at && (st == HFSB_NOMEM ||
                                                st == HFSB_DENIED)));
    hfsb_root_close(root);
    t_remove_tree("in/x");
}

static void every_allocation_of_a_tree_fails(void) {
    begin();
    t_each_allocation_fails(trees_without_memory);
    end();
}

static int busy;

/* Moves, links and fills what is being removed. */
static void *disturb(void *user) {
    unsigned long long seed = 5;
    (void)user;
    while (__atomic_load_n(&busy, __ATOMIC_SEQ_CST)) {
        switch (t_random(&seed) % 6) {
        case 0: (void)rename("in/d/e", "in/d/e2"); break;
        case 1: (void)symlink("../../out", "in/d/e"); break;
        case 2: (void)rename("in/d/e2", "in/moved"); break;
        case 3: (void)rename("in/moved", "in/d/e"); break;
        case 4: (void)mkdir("in/d/e/new", 0755); break;
        default:
            (void)rename("in/d", "in/dd");
            (void)symlink("../out", "in/d");
            (void)unlink("in/d");
            (void)rename("in/dd", "in/d");
        }
    }
    return NULL;
}

/* What the test itself has made outside, through its own links. */
static void clear_outside(void) {
    t_remove_tree("out/e");
    t_remove_tree("out/e2");
    t_remove_tree("out/new");
    t_remove_tree("out/g");
}

static void others_change_the_tree_meanwhile(void) {
    pthread_t    thread;
    hfsbi_copied copied;
    struct stat  st;
    int          i, n = t_quick() ? 50 : 300, fds;
    begin();
    fds = t_descriptors();
    __atomic_store_n(&busy, 1, __ATOMIC_SEQ_CST);
    T_CHECK(pthread_create(&thread, NULL, disturb, NULL) == 0);
    for (i = 0; i < n; i++) {
        int fd;
        (void)mkdir("in/d/e", 0755);
        fd = open("in/d/e/g", O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
        if (fd >= 0) close(fd);
        (void)copy("d", "c", true, &copied);
        T_CHECK(!t_exists("in/c/secret"));
        if (lstat("in/c/e", &st) == 0 && S_ISDIR(st.st_mode))
            T_CHECK(!t_exists("in/c/e/secret"));
        (void)remove_it(in, "c", true, NULL);
        (void)remove_it(in, "d", true, NULL);
        T_CHECK(t_exists("out/secret"));
        (void)mkdir("in/d", 0755);
    }
    __atomic_store_n(&busy, 0, __ATOMIC_SEQ_CST);
    T_CHECK(pthread_join(thread, NULL) == 0);
    T_CHECK(remove_it(in, ".", true, NULL) == HFSB_OK);
    T_CHECK(t_descriptors() == fds);
    clear_outside();
    end();
}

/* The root of a sandbox lies in the root of its host. */
static void remove_keeps_a_root_nested_in_this_one(void) {
    hfsb_root_opts opts = HFSB_INIT;
    hfsb_root     *inner = NULL;
    begin();
    opts.root = HFSB_LIT("in/d/e/empty");
    T_CHECK(hfsb_root_open(&opts, &inner, &err) == HFSB_OK);
    hfsbi_root_nest(in, inner);
    T_CHECK(remove_it(in, "d", true, NULL) == HFSB_BUSY);
    T_ERR(HFSB_BUSY, "Is a mount point, the root of a running sandbox, or in "
                     "use: d/e/empty");
    T_CHECK(t_exists("in/d/e/empty") && !t_exists("in/d/f"));
    T_CHECK(remove_it(in, "d/e/empty", true, NULL) == HFSB_BUSY);
    T_CHECK(remove_it(in, ".", true, NULL) == HFSB_BUSY);
    T_CHECK(t_exists("in/d/e/empty"));
    hfsbi_root_nest(NULL, inner); /* its owner removes it */
    hfsbi_root_nest(in, inner);
    hfsb_root_close(inner);
    T_CHECK(remove_it(in, "d", true, NULL) == HFSB_OK && !t_exists("in/d"));
    end();
}

int main(void) {
    int fds;
    t_begin_files();
    fds = t_descriptors();
    T_RUN(remove_takes_anything_but_a_full_folder);
    T_RUN(remove_takes_a_tree_but_no_links_out_of_it);
    T_RUN(a_root_is_emptied_but_not_removed);
    T_RUN(remove_takes_a_tree_of_any_depth);
    T_RUN(remove_takes_many_entries);
    T_RUN(remove_leaves_what_is_denied_and_goes_on);
    T_RUN(remove_stops_when_cancelled_or_late);
    T_RUN(remove_goes_on_without_permission);
    T_RUN(remove_stays_within_its_mount);
    T_RUN(remove_keeps_a_root_nested_in_this_one);
    T_RUN(copy_takes_a_file_with_its_mode);
    T_RUN(copy_takes_a_tree_and_makes_its_links_again);
    T_RUN(copy_has_limits);
    T_RUN(copy_leaves_out_what_is_denied);
    T_RUN(every_allocation_of_a_tree_fails);
    T_RUN(others_change_the_tree_meanwhile);
    T_CHECK(t_descriptors() == fds);
    return t_end_files(__FILE__);
}
