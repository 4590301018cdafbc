/* swaps.c - before every system call of FILE in turn, a link is planted

   A race lost on purpose: a directory or a file beneath the root becomes a
   link to the outside before the first call of a scenario, before the second
   and so on, for one call, for two or for good. Nothing outside may be read or
   changed. tests/checks/faults.sh

   in/d/f    far/f       the links d-link, f-link and h-link lead to far
   in/s/f    in/s/h      (two names)                                       */
#include "../support/fakes.h"

static hfsb_root *inside;
static hfsb_err    err;
static hfsb_buf    got;
static int         bad;
static long        points;
static bool        planted; /* by make_file() */

/* ---- planting ---- */

static bool exchange(const char *a, const char *b) {
    const unsigned swap = 2; /* RENAME_EXCHANGE */
    return syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, swap) == 0;
}

static void swap_directory(void) {
    (void)exchange("in/d", "in/d-link");
}
static void swap_file(void) {
    (void)exchange("in/s/f", "in/s/f-link");
}
static void swap_hard(void) {
    (void)exchange("in/s/h", "in/s/h-link");
}
static void swap_made(void) { /* where a directory is about to be made */
    if (symlink("../../far", "in/s/made") != 0) (void)unlink("in/s/made");
}
static void make_file(void) { /* where a file is about to be created */
    int fd = open("in/s/new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return;
    planted = true;
    if (write(fd, "THEIRS", 6) != 6) bad++;
    close(fd);
}

/* ---- scenarios ---- */

static hfsb_status put(const char *path, bool create) {
    hfsb_file_write_opts opts = HFSB_INIT;
    opts.create = create;
    return hfsb_file_write(inside, hfsb_cstr(path), HFSB_LIT("in"), &opts,
                           NULL, &err);
}
static hfsb_status get(const char *path) {
    got.len = 0;
    return hfsb_file_read(inside, hfsb_cstr(path), 0, &got, NULL, &err);
}

static hfsb_status reads_d(void) {
    return get("d/f");
}
static hfsb_status reads_up(void) {
    return get("d/../d/f");
}
static hfsb_status reads_f(void) {
    return get("s/f");
}
static hfsb_status writes_d(void) {
    return put("d/f", false);
}
static hfsb_status writes_new(void) {
    return put("d/new", false);
}
static hfsb_status writes_deep(void) {
    return put("d/a/b/c", false);
}
static hfsb_status writes_f(void) {
    return put("s/f", false);
}
static hfsb_status writes_hard(void) {
    return put("s/h", false);
}
static hfsb_status writes_made(void) {
    return put("s/made/x", false);
}
static hfsb_status creates(void) {
    return put("s/new", true);
}
static hfsb_status removes_d(void) {
    return hfsb_file_remove(inside, HFSB_LIT("d/f"), &err);
}
static hfsb_status removes_f_if_same(void) {
    hfsb_file_info info;
    hfsb_status    st = hfsb_file_stat(inside, HFSB_LIT("s/f"), &info, &err);
    if (st != HFSB_OK) return st;
    return hfsbi_file_remove_if(inside, HFSB_LIT("s/f"), NULL, &info, &err);
}
static hfsb_status hashes_f(void) {
    char        hex[HFSB_SHA256_HEX], want[HFSB_SHA256_HEX];
    hfsb_status st = hfsb_file_sha256(inside, HFSB_LIT("s/f"), hex, &err);
    hfsb_sha256_hex(HFSB_LIT("in"), want);
    if (st == HFSB_OK && strcmp(hex, want) != 0) bad++;
    return st;
}
static hfsb_status looks_at_f(void) {
    hfsb_file_info info;
    hfsb_status    st = hfsb_file_stat(inside, HFSB_LIT("s/f"), &info, &err);
    if (st == HFSB_OK && info.size != 2) bad++;
    return st;
}

static hfsb_status looks_at_d(void) {
    hfsbi_path_info info;
    hfsb_status     st = hfsbi_path_stat(inside, HFSB_LIT("d/f"), true, &info,
                                         NULL, &err);
    if (st == HFSB_OK && info.file.size != 2) bad++;
    return st;
}
static hfsb_status see_size(void *user, const hfsbi_list_entry *entry) {
    (void)user;
    if (entry->info.type == HFSBI_ENTRY_FILE && entry->info.file.size != 2)
        bad++;
    return HFSB_OK;
}
static hfsb_status lists_d(void) {
    hfsbi_list_opts opts = HFSB_INIT;
    hfsbi_listed    listed;
    opts.depth = 3;
    opts.fn = see_size;
    return hfsbi_path_list(inside, HFSB_LIT("d"), &opts, &listed, &err);
}
static hfsb_status lists_all(void) {
    hfsbi_list_opts opts = HFSB_INIT;
    hfsbi_listed    listed;
    opts.depth = 3;
    opts.fn = see_size;
    return hfsbi_path_list(inside, HFSB_LIT("."), &opts, &listed, &err);
}
static hfsb_status makes_folders(void) {
    return hfsbi_path_make_folder(inside, HFSB_LIT("d/a/b"), 0,
                                  HFSBI_MAKE_PARENTS, NULL, &err);
}
static hfsb_status moves_out_of_d(void) {
    return hfsbi_path_move(inside, HFSB_LIT("d/f"), HFSB_LIT("s/new"), 0,
                           &err);
}
static hfsb_status moves_into_d(void) {
    return hfsbi_path_move(inside, HFSB_LIT("s/h2"), HFSB_LIT("d/f"),
                           HFSBI_MOVE_REPLACE, &err);
}
static hfsb_status sets_a_mode(void) {
    return hfsbi_path_set_mode(inside, HFSB_LIT("s/f"), 0600, true, &err);
}
static hfsb_status removes_the_tree(void) {
    hfsbi_remove_opts opts = HFSB_INIT;
    opts.tree = true;
    return hfsbi_path_remove_all(inside, HFSB_LIT("d"), &opts, NULL, &err);
}
static hfsb_status empties_the_root(void) {
    hfsbi_remove_opts opts = HFSB_INIT;
    opts.tree = true;
    return hfsbi_path_remove_all(inside, HFSB_LIT("."), &opts, NULL, &err);
}
static hfsb_status copies_d(void) {
    hfsbi_copy_opts opts = HFSB_INIT;
    hfsb_status     st;
    opts.tree = true;
    st = hfsbi_path_copy(inside, HFSB_LIT("d"), HFSB_LIT("s/made"), &opts,
                         NULL, &err);
    if (holds("in/s/made/f", "OUTSIDE")) bad++;
    return st;
}
static hfsb_status copies_f(void) {
    hfsb_status st = hfsbi_path_copy(inside, HFSB_LIT("s/f"),
                                     HFSB_LIT("s/new"), NULL, NULL, &err);
    if (holds("in/s/new", "OUTSIDE")) bad++;
    return st;
}
static hfsb_status range_of(const char *path) {
    hfsbi_range_opts    opts = HFSB_INIT;
    hfsbi_range_writer *w;
    hfsbi_file_range    range;
    hfsb_status         st;
    size_t              n;
    char                bytes[16];
    opts.truncate = true;
    opts.truncate_to = 2;
    opts.mode = 0600;
    st = hfsbi_range_writer_open(inside, hfsb_cstr(path), &opts, &w, &err);
    if (st == HFSB_OK) {
        st = hfsbi_range_writer_append(w, HFSB_LIT("in"), &err);
        if (st == HFSB_OK) st = hfsbi_range_writer_commit(w, NULL, &err);
        hfsbi_range_writer_close(w);
    }
    if (hfsbi_file_range_open(inside, hfsb_cstr(path), 0, 9, &range, NULL) !=
        HFSB_OK)
        return st;
    if (hfsbi_file_range_read(&range, bytes, sizeof bytes, &n, NULL) ==
            HFSB_OK &&
        n > 2)
        bad++;
    hfsbi_file_range_close(&range);
    return st;
}
static hfsb_status range_of_d(void) {
    return range_of("d/f");
}
static hfsb_status range_of_f(void) {
    return range_of("s/f");
}
static hfsb_status range_made(void) {
    return range_of("s/made/x");
}

static const struct scenario {
    const char *name;
    hfsb_status (*run)(void);
    void (*act)(void);
} scenarios[] = {{"reads d/f", reads_d, swap_directory},
                 {"reads d/../d/f", reads_up, swap_directory},
                 {"reads s/f", reads_f, swap_file},
                 {"writes d/f", writes_d, swap_directory},
                 {"writes d/new", writes_new, swap_directory},
                 {"writes d/a/b/c", writes_deep, swap_directory},
                 {"writes s/f", writes_f, swap_file},
                 {"writes s/h", writes_hard, swap_hard},
                 {"writes s/made/x", writes_made, swap_made},
                 {"creates s/new", creates, make_file},
                 {"removes d/f", removes_d, swap_directory},
                 {"removes s/f if same", removes_f_if_same, swap_file},
                 {"hashes s/f", hashes_f, swap_file},
                 {"looks at s/f", looks_at_f, swap_file},
                 {"looks at d/f", looks_at_d, swap_directory},
                 {"lists d", lists_d, swap_directory},
                 {"lists all", lists_all, swap_directory},
                 {"makes d/a/b", makes_folders, swap_directory},
                 {"moves d/f", moves_out_of_d, swap_directory},
                 {"moves to d/f", moves_into_d, swap_directory},
                 {"sets the mode of s/f", sets_a_mode, swap_file},
                 {"removes d", removes_the_tree, swap_directory},
                 {"removes all", empties_the_root, swap_directory},
                 {"copies d", copies_d, swap_directory},
                 {"copies s/f", copies_f, swap_file},
                 {"range of d/f", range_of_d, swap_directory},
                 {"range of s/f", range_of_f, swap_file},
                 {"range of s/made/x", range_made, swap_made}};

/* ---- before and after ---- */

static void clear(void) {
    static const char *const files[] = {
        "in/d", "in/s/made", "in/d-link", /* first: they may be links */
        "in/d-link/f", "in/d-link/new", "in/s/made/f",
        "in/d/f", "in/d/new", "in/d/a/b/c", "in/s/f", "in/s/h", "in/s/h2",
        "in/s/new", "in/s/made/x", "in/s/f-link",
        "in/s/h-link"};
    static const char *const dirs[] = {"in/d/a/b", "in/d/a", "in/d",
                                       "in/d-link/a/b", "in/d-link/a",
                                       "in/d-link",
                                       "in/s/made", "in/s"};
    size_t                   i;
    for (i = 0; i < sizeof files / sizeof *files; i++) (void)unlink(files[i]);
    for (i = 0; i < sizeof dirs / sizeof *dirs; i++) (void)rmdir(dirs[i]);
}

static void begin(void) {
    clear();
    (void)mkdir("in/d", 0755);
    (void)mkdir("in/s", 0755);
    spill("in/d/f", "in");
    spill("in/s/f", "in");
    spill("in/s/h", "in");
    (void)link("in/s/h", "in/s/h2");
    if (symlink("../far", "in/d-link") != 0 ||
        symlink("../../far/f", "in/s/f-link") != 0 ||
        symlink("../../far/f", "in/s/h-link") != 0)
        bad++;
    planted = false;
    memset(&err, 0, sizeof err);
    if (hfsb_buf_append(&got, HFSB_LIT("")) != HFSB_OK) bad++;
    got.len = 0;
}

static int entries(const char *path) {
    DIR *dir = opendir(path);
    int  n = 0;
    while (dir && readdir(dir)) n++;
    if (dir) closedir(dir);
    return n - 2;
}

static const char *verdict(hfsb_status st, int fds) {
    struct stat far;
    if (!holds("far/f", "OUTSIDE") || entries("far") != 1 ||
        stat("far/f", &far) != 0 || (far.st_mode & 07777) != 0644)
        return "the outside was changed";
    if (st == HFSB_OK && got.len > 0 &&
        !hfsb_str_equal(hfsb_buf_str(&got), HFSB_LIT("in")))
        return "the outside was read";
    if (descriptors() != fds) return "a descriptor is left";
    if (leftovers("in/d") || leftovers("in/s") || leftovers("in/s/made"))
        return "a temporary is left";
    if (st != HFSB_OK && err.msg[0] == '\0') return "no message";
    return NULL;
}

static void sweep(const struct scenario *s, long span) {
    int fds = descriptors(), acted;
    for (fault.act = s->act;;) {
        static long k;
        const char *why;
        hfsb_status st;
        int         before = bad;
        begin();
        fault.count = 0;
        fault.acted = 0;
        fault.at = ++k;
        fault.again = span ? k + span : 0;
        st = s->run();
        fault.at = 0;
        acted = fault.acted;
        if (acted % 2 && s->act != make_file) s->act();
        why = verdict(st, fds);
        if (planted && (st != HFSB_EXISTS || !holds("in/s/new", "THEIRS")))
            why = "created over another's";
        points++;
        if (why || bad != before)
            printf("FAIL  %s, planted before call %ld for %ld: %s: %s\n",
                   s->name, k, span, why ? why : "wrong", err.msg);
        if (why) bad++;
        if (!acted) {
            k = 0;
            break;
        }
    }
    fault.act = NULL;
}

int main(void) {
    hfsb_root_opts opts = HFSB_INIT;
    char            top[] = "/tmp/hfsb-swaps.XXXXXX";
    size_t          i;
    long            span;
    if (!mkdtemp(top) || chdir(top) != 0 || mkdir("in", 0755) != 0 ||
        mkdir("far", 0755) != 0)
        return 1;
    spill("far/f", "OUTSIDE");
    (void)chmod("far/f", 0644);
    begin();
    if (!exchange("in/d", "in/d-link")) {
        printf("skipped: names cannot be exchanged here\n");
        return 77;
    }
    swap_directory();
    opts.root = HFSB_LIT("in");
    if (hfsb_root_open(&opts, &inside, &err) != HFSB_OK) return 1;
    for (i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        for (span = 0; span < 5; span++) sweep(&scenarios[i], span);
    hfsb_root_close(inside);
    hfsb_buf_free(&got);
    clear();
    (void)unlink("far/f");
    if (rmdir("in") != 0 || rmdir("far") != 0 || chdir("/") != 0 ||
        rmdir(top) != 0)
        bad++;
    printf("%ld links planted, %d failed\n", points, bad);
    return bad != 0;
}
