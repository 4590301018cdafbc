/* test_file.c - stat, keys, reading, removing; invalid paths; opening a
   root. */
#include "../support/t_file.h"

static hfsb_err   err;
static const char old_text[] = "old\n";

/* ---- metadata ---- */

static void stat_reports_metadata(void) {
    hfsb_file_info info;
    struct stat    st;
    t_put("seen", "12345");
    T_CHECK(chmod("seen", 0751) == 0 && link("seen", "seen2") == 0);
    T_CHECK(symlink("seen", "seen-link") == 0);
    T_CHECK(hfsb_file_stat(NULL, HFSB_LIT("seen-link"), &info, &err) ==
            HFSB_OK);
    T_CHECK(stat("seen", &st) == 0);
    T_CHECK(info.type == HFSB_FILE_REGULAR && info.mode == 0751 &&
            info.size == 5 && info.links == 2);
    T_CHECK(info.inode == (unsigned long long)st.st_ino &&
            info.device == (unsigned long long)st.st_dev &&
            info.changed == (long long)st.st_mtime);
    T_CHECK(hfsb_file_stat(NULL, HFSB_LIT("."), &info, &err) == HFSB_OK &&
            info.type == HFSB_FILE_DIRECTORY);
    T_CHECK(hfsb_file_stat(NULL, HFSB_LIT("/"), &info, &err) == HFSB_OK &&
            info.type == HFSB_FILE_DIRECTORY);
    T_CHECK(hfsb_file_stat(NULL, HFSB_LIT("/dev/null"), &info, &err) ==
                HFSB_OK &&
            info.type == HFSB_FILE_OTHER);
    T_CHECK(hfsb_file_stat(NULL, HFSB_LIT("unseen"), &info, &err) ==
            HFSB_NOT_FOUND);
    T_ERR(HFSB_NOT_FOUND, "File not found: unseen");
}

static hfsb_str key(hfsb_buf *out, const char *path) {
    hfsb_buf_truncate(out, 0);
    T_CHECK(hfsb_file_key(NULL, hfsb_cstr(path), out, &err) == HFSB_OK);
    return hfsb_buf_str(out);
}

static void every_path_to_a_file_gives_one_key(void) {
    static const char *const same[][2] = {
        {"keys/file", "./keys//./file"},
        {"keys/file", "keys/../keys/file"},
        {"keys/file", "keys-link/file"},
        {"keys/file", "keys/file-link"},
        {"keys/none", "keys-link/./none"},
        {"keys/none", "keys/none-link"},
        {"keys/no/such/file", "keys-link/no//./such/file"},
        {"keys", "keys/"},
        {"keys", "keys/."},
        {"keys", "keys-link"},
        {"keys", "keys/../keys-link/../keys"}};
    static const char *const other[][2] = {
        {"keys/file", "keys/file2"},
        {"keys/file", "file"},
        {"keys/no/such/file", "keys/no/such/file2"},
        {"keys/no/such", "keys/no"},
        {"keys", "."}};
    hfsb_buf a = HFSB_INIT, b = HFSB_INIT;
    char     absolute[PATH_MAX + 16];
    size_t   i;
    (void)mkdir("keys", 0755);
    t_put("keys/file", "");
    T_CHECK(link("keys/file", "keys/file2") == 0);
    T_CHECK(symlink("keys", "keys-link") == 0);
    T_CHECK(symlink("file", "keys/file-link") == 0);
    T_CHECK(symlink("none", "keys/none-link") == 0);
    for (i = 0; i < sizeof same / sizeof *same; i++) {
        T_CHECK(hfsb_str_equal(key(&a, same[i][0]), key(&b, same[i][1])));
        if (strcmp(a.ptr, b.ptr) != 0) printf("  %s\n", same[i][1]);
    }
    for (i = 0; i < sizeof other / sizeof *other; i++)
        T_CHECK(!hfsb_str_equal(key(&a, other[i][0]), key(&b, other[i][1])));
    (void)snprintf(absolute, sizeof absolute, "%s/keys/file", t_top);
    T_CHECK(hfsb_str_equal(key(&a, "keys/file"), key(&b, absolute)));
    T_CHECK(hfsb_file_key(NULL, HFSB_LIT("keys/no/../file"), &a, &err) ==
            HFSB_NOT_FOUND);
    T_CHECK(hfsb_file_key(NULL, HFSB_LIT("keys/file/x"), &a, &err) ==
            HFSB_NOT_FOUND);
    T_ERR(HFSB_NOT_FOUND, "File not found: keys/file/x (a part of the path "
                          "is not a directory)");
    hfsb_buf_truncate(&a, 0);
    a.max = 5;
    T_CHECK(hfsb_file_key(NULL, HFSB_LIT("keys/file"), &a, &err) ==
            HFSB_LIMIT);
    T_ERR(HFSB_LIMIT, "Key of a file: size limit exceeded.");
    T_CHECK(a.len == 0);
    hfsb_buf_free(&a);
    hfsb_buf_free(&b);
}

/* ---- reading ---- */

static void read_stops_at_its_limits(void) {
    static const struct {
        size_t max, buf_max;
        bool   fits;
    } cases[] = {{10, 0, true},  {9, 0, false},  {0, 13, true},
                 {0, 12, false}, {10, 13, true}, {11, 12, false},
                 {0, 0, true},   {0, 3, false}};
    size_t i;
    t_put("ten", "0123456789");
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_buf    out = HFSB_INIT;
        hfsb_status st;
        T_CHECK(hfsb_buf_append(&out, HFSB_LIT("was")) == HFSB_OK);
        out.max = cases[i].buf_max;
        st = hfsb_file_read(NULL, HFSB_LIT("ten"), cases[i].max, &out, NULL,
                            &err);
        T_CHECK(st == (cases[i].fits ? HFSB_OK : HFSB_LIMIT));
        if (cases[i].fits) T_STR(out, "was0123456789");
        else T_STR(out, "was");
        hfsb_buf_free(&out);
    }
    T_ERR(HFSB_LIMIT, "File is too large to be read whole: ten (the limit is "
                      "0 bytes)");
}

static void read_takes_files_that_claim_no_size(void) {
    hfsb_buf out = HFSB_INIT;
    char     hex[HFSB_SHA256_HEX];
    if (!t_exists("/proc/self/status")) {
        printf("skipped: no /proc\n");
        t_skipped++;
        return;
    }
    T_CHECK(hfsb_file_read(NULL, HFSB_LIT("/proc/self/status"), 0, &out,
                           NULL, &err) == HFSB_OK);
    T_CHECK(out.len > 100 && out.len == strlen(out.ptr));
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsb_file_read(NULL, HFSB_LIT("/proc/self/status"), 100, &out,
                           NULL, &err) == HFSB_LIMIT);
    T_CHECK(out.len == 0);
    T_CHECK(hfsb_file_sha256(NULL, HFSB_LIT("/proc/version"), hex, &err) ==
            HFSB_OK);
    T_CHECK(hfsb_file_read(NULL, HFSB_LIT("/proc/self/mem"), 0, &out, NULL,
                           &err) == HFSB_IO);
    T_ERR(HFSB_IO, "Cannot read /proc/self/mem: input/output error");
    hfsb_buf_free(&out);
}

static void read_and_write_refuse_devices_and_fifos(void) {
    int fd;
    T_CHECK(mkfifo("fifo", 0600) == 0);
    T_CHECK(symlink("fifo", "fifo-link") == 0);
    T_CHECK(t_read_fails("fifo", &err) == HFSB_NOT_REGULAR);
    T_ERR(HFSB_NOT_REGULAR, "Is a FIFO, not a regular file: fifo");
    T_CHECK(t_read_fails("fifo-link", &err) == HFSB_NOT_REGULAR);
    T_CHECK(t_write_fails("fifo-link", NULL, &err) == HFSB_NOT_REGULAR);
    T_ERR(HFSB_NOT_REGULAR, "Is a FIFO, not a regular file: fifo-link");
    T_CHECK(t_read_fails("/dev/zero", &err) == HFSB_NOT_REGULAR);
    T_ERR(HFSB_NOT_REGULAR, "Is a device, not a regular file: /dev/zero");
    T_CHECK(t_write_fails("/dev/zero", NULL, &err) == HFSB_NOT_REGULAR);
    T_CHECK(t_read_fails(".", &err) == HFSB_IS_DIR);
    T_ERR(HFSB_IS_DIR, "Is a directory: .");
    T_CHECK(hfsb_file_open(NULL, HFSB_LIT("fifo"), &fd, NULL, &err) ==
            HFSB_NOT_REGULAR);
    T_CHECK(fd == -1);
}

/* Also for a host without standard input, output and error. */
static void open_returns_a_descriptor_above_2(void) {
    hfsb_file_info info;
    hfsb_status    st;
    char           text[8];
    int            keep[3], fd = -1, i, low = 0;
    t_put("plain", "text");
    fflush(stdout);
    for (i = 0; i < 3; i++) {
        keep[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
        close(i);
    }
    st = hfsb_file_open(NULL, HFSB_LIT("plain"), &fd, &info, &err);
    for (i = 0; i < 3; i++) {
        low += fcntl(i, F_GETFD) != -1;
        if (keep[i] < 0) continue;
        (void)dup2(keep[i], i);
        close(keep[i]);
    }
    T_CHECK(st == HFSB_OK && low == 0 && fd >= 3 && info.size == 4);
    T_CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
    T_CHECK((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
    T_CHECK(read(fd, text, sizeof text) == 4);
    close(fd);
}

static void sha256_of_a_large_file_needs_no_memory(void) {
    static const char zeros[] = /* of 64 MiB of zeros */
        "3b6a07d0d404fab4e23b6d34bc6696a6a312dd92821332385e5af7c01c421351";
    t_heap          heap = HFSB_INIT;
    hfsb_root_opts opts;
    hfsb_root     *place = NULL;
    hfsb_buf        out = HFSB_INIT;
    char            hex[HFSB_SHA256_HEX];
    memset(&opts, 0, sizeof opts);
    opts.alloc.fn = out.alloc.fn = t_heap_fn;
    opts.alloc.user = out.alloc.user = &heap;
    t_put("huge", "");
    T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_OK);
    T_CHECK(truncate("huge", (off_t)1 << 30) == 0);
    T_CHECK(hfsb_file_read(place, HFSB_LIT("huge"), 1 << 20, &out, NULL,
                           &err) == HFSB_LIMIT);
    T_ERR(HFSB_LIMIT, "File is too large to be read whole: huge (the limit "
                      "is 1048576 bytes)");
    T_CHECK(truncate("huge", ((off_t)1 << 30) + 1) == 0);
    T_CHECK(hfsb_file_read(place, HFSB_LIT("huge"), 0, &out, NULL, &err) ==
            HFSB_LIMIT);
    T_CHECK(truncate("huge", t_quick() ? 1 << 20 : 1 << 26) == 0);
    heap.fail_at = 0;
    T_CHECK(hfsb_file_sha256(place, HFSB_LIT("huge"), hex, &err) == HFSB_OK);
    T_CHECK(t_quick() || strcmp(hex, zeros) == 0);
    T_CHECK(heap.live < 8192);
    hfsb_buf_free(&out);
    hfsb_root_close(place);
    T_CHECK(heap.live == 0);
    T_CHECK(unlink("huge") == 0);
}

/* ---- removing ---- */

static void remove_takes_files_and_links(void) {
    t_put("gone", "");
    T_CHECK(symlink("gone", "gone-link") == 0);
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("gone-link"), &err) == HFSB_OK);
    T_CHECK(!t_exists("gone-link") && t_exists("gone"));
    T_CHECK(symlink("nowhere", "gone-link") == 0);
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("gone-link"), &err) == HFSB_OK);
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("./gone"), &err) == HFSB_OK);
    T_CHECK(!t_exists("gone"));
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("gone"), &err) ==
            HFSB_NOT_FOUND);
    T_ERR(HFSB_NOT_FOUND, "File not found: gone");
    (void)mkdir("gone-dir", 0755);
    T_CHECK(symlink("gone-dir", "gone-link") == 0);
    T_CHECK(mkfifo("gone-fifo", 0600) == 0);
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("gone-fifo"), &err) ==
            HFSB_NOT_REGULAR);
    T_ERR(HFSB_NOT_REGULAR, "Is a FIFO, not a regular file: gone-fifo");
    T_CHECK(unlink("gone-fifo") == 0);
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("gone-dir"), &err) ==
            HFSB_IS_DIR);
    T_ERR(HFSB_IS_DIR, "Is a directory: gone-dir");
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("gone-link/"), &err) ==
            HFSB_IS_DIR);
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("gone-dir/.."), &err) ==
            HFSB_IS_DIR);
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("gone-link"), &err) == HFSB_OK);
    T_CHECK(t_exists("gone-dir") && !t_exists("gone-link"));
}

static hfsb_status remove_if(const char *path, const char *sha256,
                             const hfsb_file_info *same) {
    return hfsbi_file_remove_if(NULL, hfsb_cstr(path), sha256, same, &err);
}

static void remove_if_same_spares_another_file(void) {
    hfsb_file_info info, other;
    char           hex[HFSB_SHA256_HEX];
    t_put("cond", "mine");
    T_CHECK(symlink("cond", "cond-link") == 0);
    T_CHECK(hfsb_file_stat(NULL, HFSB_LIT("cond"), &info, &err) == HFSB_OK);
    other = info;
    other.inode++;
    T_CHECK(remove_if("cond", NULL, &other) == HFSB_STALE);
    T_ERR(HFSB_STALE,
          "File has changed since it was read: cond (read it again)");
    other = info;
    other.changed_nanos ^= 1;
    T_CHECK(remove_if("cond", NULL, &other) == HFSB_STALE);
    hfsb_sha256_hex(HFSB_LIT("theirs"), hex);
    T_CHECK(remove_if("cond", hex, &info) == HFSB_STALE);
    T_ERR(HFSB_STALE,
          "File has changed since it was read: cond (read it again)");
    T_FILE("cond", "mine");
    /* a symlink is compared by the file it leads to */
    T_CHECK(remove_if("cond-link", NULL, &other) == HFSB_STALE);
    T_CHECK(t_exists("cond-link"));
    T_CHECK(remove_if("cond-link", NULL, &info) == HFSB_OK);
    T_CHECK(!t_exists("cond-link") && t_exists("cond"));
    T_CHECK(symlink("nowhere", "cond-link") == 0);
    T_CHECK(remove_if("cond-link", NULL, &info) == HFSB_NOT_FOUND);
    T_CHECK(unlink("cond-link") == 0);
    /* a write since the stat */
    T_CHECK(hfsb_file_write(NULL, HFSB_LIT("cond"), HFSB_LIT("theirs"), NULL,
                            NULL, &err) == HFSB_OK);
    T_CHECK(remove_if("cond", NULL, &info) == HFSB_STALE);
    T_FILE("cond", "theirs");
    T_CHECK(hfsb_file_stat(NULL, HFSB_LIT("cond"), &info, &err) == HFSB_OK);
    T_CHECK(remove_if("cond", hex, &info) == HFSB_OK);
    T_CHECK(!t_exists("cond"));
    T_CHECK(remove_if("cond", NULL, &info) == HFSB_NOT_FOUND);
}

/* ---- invalid paths ---- */

static void bad_paths_have_clear_errors(void) {
    static const struct {
        const char *path;
        hfsb_status read, write;
        const char *read_message, *write_message;
    } cases[] = {
        {"", HFSB_REFUSED, HFSB_REFUSED, "The path is empty.",
         "The path is empty."},
        {"bad/none", HFSB_NOT_FOUND, HFSB_OK, "File not found: bad/none",
         NULL},
        {"bad/file/x", HFSB_NOT_FOUND, HFSB_NOT_FOUND,
         "File not found: bad/file/x (a part of the path is not a "
         "directory)",
         "File not found: bad/file/x (a part of the path is not a "
         "directory)"},
        {"bad/file/", HFSB_NOT_FOUND, HFSB_NOT_FOUND,
         "File not found: bad/file/ (a part of the path is not a directory)",
         "File not found: bad/file/ (a part of the path is not a "
         "directory)"},
        {"bad/", HFSB_IS_DIR, HFSB_IS_DIR, "Is a directory: bad/",
         "Is a directory: bad/"},
        {"bad/new/", HFSB_NOT_FOUND, HFSB_IS_DIR, "File not found: bad/new/",
         "Is a directory: bad/new/"},
        {"bad/..", HFSB_IS_DIR, HFSB_IS_DIR, "Is a directory: bad/..",
         "Is a directory: bad/.."},
        {".", HFSB_IS_DIR, HFSB_IS_DIR, "Is a directory: .",
         "Is a directory: ."},
        {"/", HFSB_IS_DIR, HFSB_IS_DIR, "Is a directory: /",
         "Is a directory: /"},
        {"bad/no/../x", HFSB_NOT_FOUND, HFSB_NOT_FOUND,
         "File not found: bad/no/../x", "File not found: bad/no/../x"},
        {"bad/hollow/x", HFSB_NOT_FOUND, HFSB_NOT_FOUND,
         "File not found: bad/hollow/x",
         "File not found: bad/hollow/x (a part of the path is not a "
         "directory)"},
        {"~", HFSB_NOT_FOUND, HFSB_NOT_FOUND,
         "File not found: ~ (\"~\" is not expanded: give the full path)",
         "File not found: ~ (\"~\" is not expanded: give the full path)"},
        {"~/x", HFSB_NOT_FOUND, HFSB_NOT_FOUND,
         "File not found: ~/x (\"~\" is not expanded: give the full path)",
         "File not found: ~/x (\"~\" is not expanded: give the full path)"},
        {"~me/x/y", HFSB_NOT_FOUND, HFSB_NOT_FOUND,
         "File not found: ~me/x/y (\"~\" is not expanded: give the full "
         "path)",
         "File not found: ~me/x/y (\"~\" is not expanded: give the full "
         "path)"},
        {"~file", HFSB_NOT_FOUND, HFSB_OK,
         "File not found: ~file (\"~\" is not expanded: give the full path)",
         NULL},
        {"bad/new\nline\xFF", HFSB_NOT_FOUND, HFSB_OK,
         "File not found: bad/new line\xEF\xBF\xBD", NULL}};
    size_t i;
    (void)mkdir("bad", 0755);
    t_put("bad/file", "");
    T_CHECK(symlink("nowhere", "bad/hollow") == 0);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str    path = hfsb_cstr(cases[i].path);
        hfsb_status st;
        T_CHECK(t_read_fails(cases[i].path, &err) == cases[i].read);
        T_CHECK(strcmp(err.msg, cases[i].read_message) == 0);
        if (strcmp(err.msg, cases[i].read_message) != 0)
            printf("  is   %s\n  want %s\n", err.msg, cases[i].read_message);
        st = hfsb_file_write(NULL, path, HFSB_LIT(""), NULL, NULL, &err);
        T_CHECK(st == cases[i].write && st == err.code);
        if (!cases[i].write_message) continue;
        T_CHECK(strcmp(err.msg, cases[i].write_message) == 0);
        if (strcmp(err.msg, cases[i].write_message) != 0)
            printf("  is   %s\n  want %s\n", err.msg, cases[i].write_message);
    }
    T_CHECK(!t_exists("~") && !t_exists("~me"));
    T_CHECK(t_entries("bad", "") == 4);
    T_CLEAN("bad");
}

static void nul_bytes_and_long_paths_are_refused(void) {
    hfsb_buf       path = HFSB_INIT, out = HFSB_INIT;
    hfsb_file_info info;
    T_CHECK(hfsb_file_stat(NULL, HFSB_LIT("a\0b"), &info, &err) ==
            HFSB_REFUSED);
    T_ERR(HFSB_REFUSED, "The path contains a NUL byte: a b");
    t_repeat(&path, "dir/", 1250); /* 5,000 bytes */
    T_CHECK(hfsb_buf_append(&path, HFSB_LIT("x")) == HFSB_OK);
    T_CHECK(t_read_fails(path.ptr, &err) == HFSB_ARG);
    T_CHECK(strstr(err.msg, "dir/...: the name is too long") != NULL);
    T_CHECK(t_write_fails(path.ptr, NULL, &err) == HFSB_ARG);
    T_CHECK(hfsb_file_remove(NULL, hfsb_buf_str(&path), &err) == HFSB_ARG);
    T_CHECK(hfsb_file_key(NULL, hfsb_buf_str(&path), &out, &err) == HFSB_ARG);
    T_CHECK(!t_exists("dir"));
    hfsb_buf_free(&path);
    hfsb_buf_free(&out);
}

/* ---- opening a root ---- */

static void relative_paths_begin_in_the_work_directory(void) {
    hfsb_root_opts opts;
    hfsb_root     *place = NULL;
    hfsb_buf        out = HFSB_INIT;
    char            want[PATH_MAX + 16];
    memset(&opts, 0, sizeof opts);
    (void)mkdir("work", 0755);
    (void)mkdir("work/deep", 0755);
    t_put("work/deep/file", "1");
    t_put("work/file", "2");
    opts.work_dir = HFSB_LIT("work/deep/");
    T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_OK);
    (void)snprintf(want, sizeof want, "%s/work/deep", t_top);
    T_CHECK(hfsb_str_equal(hfsb_root_work_dir(place), hfsb_cstr(want)));
    T_STR(hfsb_root_path(place), "");
    T_CHECK(chdir("/") == 0);
    T_CHECK(hfsb_file_read(place, HFSB_LIT("file"), 0, &out, NULL, &err) ==
            HFSB_OK);
    T_CHECK(hfsb_file_read(place, HFSB_LIT("../file"), 0, &out, NULL, &err) ==
            HFSB_OK);
    T_STR(out, "12");
    T_CHECK(hfsb_file_write(place, HFSB_LIT("new/file"), HFSB_LIT("3"), NULL,
                            NULL, &err) == HFSB_OK);
    T_CHECK(hfsb_file_remove(place, HFSB_LIT("../file"), &err) == HFSB_OK);
    T_CHECK(chdir(t_top) == 0);
    T_FILE("work/deep/new/file", "3");
    T_CHECK(!t_exists("work/file"));
    hfsb_root_close(place);
    opts.work_dir = HFSB_LIT("work/../work/deep");
    T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_root_work_dir(place), hfsb_cstr(want)));
    hfsb_root_close(place);
    T_CHECK(hfsb_root_open(NULL, &place, &err) == HFSB_OK);
    T_STR(hfsb_root_work_dir(place), "");
    T_STR(hfsb_root_work_dir(NULL), "");
    T_STR(hfsb_root_path(NULL), "");
    hfsb_root_close(place);
    hfsb_root_close(NULL);
    hfsb_buf_free(&out);
}

static void root_open_reports_missing_directories(void) {
    static const struct {
        const char *root, *work;
        const char *message;
        hfsb_status code;
    } cases[] = {
        {"", "no/work", "Working directory not found: no/work",
         HFSB_NOT_FOUND},
        {"no root", "", "Root directory not found: no root", HFSB_NOT_FOUND},
        {"no root", "no/work", "Root directory not found: no root",
         HFSB_NOT_FOUND},
        {"", "a file",
         "Working directory not found: a file (it is not a directory)",
         HFSB_NOT_FOUND},
        {"a file", "",
         "Root directory not found: a file (it is not a directory)",
         HFSB_NOT_FOUND},
        {".", "no/work", "Working directory not found: no/work",
         HFSB_NOT_FOUND}};
    hfsb_root_opts opts;
    hfsb_root     *place = NULL;
    size_t          i;
    memset(&opts, 0, sizeof opts);
    t_put("a file", "");
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        opts.root = hfsb_cstr(cases[i].root);
        opts.work_dir = hfsb_cstr(cases[i].work);
        T_CHECK(hfsb_root_open(&opts, &place, &err) == cases[i].code);
        T_CHECK(place == NULL && err.code == cases[i].code);
        T_CHECK(strcmp(err.msg, cases[i].message) == 0);
        if (strcmp(err.msg, cases[i].message) != 0) printf("  %s\n", err.msg);
    }
    opts.work_dir = HFSB_LIT("a\0b");
    T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_REFUSED);
}

/* ---- memory ---- */

static void each_call(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_root_opts   opts;
    hfsb_root       *place = NULL;
    hfsb_buf          out = HFSB_INIT;
    hfsb_file_info    info;
    hfsb_status       st[8];
    char              hex[HFSB_SHA256_HEX];
    size_t            i;
    int               fds = t_descriptors(), fd;
    memset(&opts, 0, sizeof opts);
    opts.alloc = out.alloc = alloc;
    opts.root = heap->fail_at % 2 ? HFSB_LIT("memory") : HFSB_LIT("");
    opts.work_dir = HFSB_LIT("memory");
    if (heap->fail_at % 2) opts.work_dir = HFSB_LIT("sub/..");
    st[0] = hfsb_root_open(&opts, &place, &err);
    T_CHECK(st[0] == HFSB_OK || st[0] == HFSB_NOMEM);
    T_CHECK(heap->fail_at || st[0] == HFSB_OK);
    t_put("memory/file", old_text);
    if (place) {
        st[0] = hfsb_file_stat(place, HFSB_LIT("link"), &info, &err);
        st[1] = hfsb_file_key(place, HFSB_LIT("no/x"), &out, NULL);
        st[2] = hfsb_file_read(place, HFSB_LIT("link"), 0, &out, &info, NULL);
        st[3] = hfsb_file_sha256(place, HFSB_LIT("file"), hex, NULL);
        st[4] = hfsb_file_write(place, HFSB_LIT("link"), HFSB_LIT("new"),
                                NULL, NULL, NULL);
        st[5] = hfsb_file_write(place, HFSB_LIT("a/b/c"), HFSB_LIT("new"),
                                NULL, NULL, NULL);
        st[6] = hfsb_file_remove(place, HFSB_LIT("a/b/c"), NULL);
        st[7] = hfsb_file_open(place, HFSB_LIT("file"), &fd, NULL, NULL);
        if (st[7] == HFSB_OK) close(fd);
        for (i = 0; i < 8; i++) {
            bool fine = st[i] == HFSB_OK ||
                        (heap->fail_at &&
                         (st[i] == HFSB_NOMEM ||
                          (i == 6 && st[i] == HFSB_NOT_FOUND)));
            T_CHECK(fine);
            if (!fine) printf("  call %zu: %d\n", i, (int)st[i]);
        }
        T_FILE("memory/file", st[4] == HFSB_OK ? "new" : old_text);
    }
    hfsb_buf_free(&out);
    hfsb_root_close(place);
    T_CLEAN("memory");
    T_CHECK(t_descriptors() == fds);
}

static void every_allocation_may_fail(void) {
    (void)mkdir("memory", 0755);
    (void)mkdir("memory/sub", 0755);
    T_CHECK(symlink("file", "memory/link") == 0);
    t_put("memory/file", old_text);
#ifdef HFSBI_LINUX
    (void)setxattr("memory/file", "user.x", "value", 5, 0);
#endif
    t_each_allocation_fails(each_call);
}

int main(void) {
    int fds = t_descriptors();
    t_begin_files();
    T_RUN(stat_reports_metadata);
    T_RUN(every_path_to_a_file_gives_one_key);
    T_RUN(read_stops_at_its_limits);
    T_RUN(read_takes_files_that_claim_no_size);
    T_RUN(read_and_write_refuse_devices_and_fifos);
    T_RUN(open_returns_a_descriptor_above_2);
    T_RUN(sha256_of_a_large_file_needs_no_memory);
    T_RUN(remove_takes_files_and_links);
    T_RUN(remove_if_same_spares_another_file);
    T_RUN(bad_paths_have_clear_errors);
    T_RUN(nul_bytes_and_long_paths_are_refused);
    T_RUN(relative_paths_begin_in_the_work_directory);
    T_RUN(root_open_reports_missing_directories);
    T_RUN(every_allocation_may_fail);
    T_CHECK(t_descriptors() == fds);
    return t_end_files(__FILE__);
}
