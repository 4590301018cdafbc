/* test_file_write.c - writing: kept metadata, conditions, temporaries, several
   writers at once. */
#include "../support/t_file.h"

static hfsb_err   err;
static const char old_text[] = "old\n";

/* A write that must succeed. */
static hfsb_file_written put(const char *path, const char *text,
                             const hfsb_file_write_opts *opts) {
    hfsb_file_written w;
    hfsb_status       st;
    memset(&w, 0, sizeof w);
    st = hfsb_file_write(NULL, hfsb_cstr(path), hfsb_cstr(text), opts, &w,
                         &err);
    T_CHECK(st == HFSB_OK && err.code == HFSB_OK);
    if (st != HFSB_OK) printf("  %s: %s\n", path, err.msg);
    T_CHECK(st != HFSB_OK || w.bytes == strlen(text));
    T_CHECK(st != HFSB_OK || w.info.size == strlen(text));
    return w;
}

/* ---- content ---- */

static void read_returns_the_bytes_written(void) {
    static const struct {
        const char *bytes;
        size_t      len;
    } cases[] = {{"", 0},
                 {"no last newline", 15},
                 {"a\r\nb\r\n", 6},
                 {"\xEF\xBB\xBFmark\n", 8},
                 {"nul\0inside", 10},
                 {"\xFF\xFE\x80 not UTF-8", 13}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str       s = t_exact(cases[i].bytes, cases[i].len);
        hfsb_buf       out = HFSB_INIT;
        hfsb_file_info info;
        T_CHECK(hfsb_file_write(NULL, HFSB_LIT("bytes"), s, NULL, NULL,
                                NULL) == HFSB_OK);
        T_CHECK(hfsb_buf_append(&out, HFSB_LIT("before")) == HFSB_OK);
        T_CHECK(hfsb_file_read(NULL, HFSB_LIT("bytes"), 0, &out, &info,
                               &err) == HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_str_slice(hfsb_buf_str(&out), 6, out.len),
                               s));
        T_CHECK(info.size == s.len && info.type == HFSB_FILE_REGULAR);
        T_CHECK(out.ptr[out.len] == '\0');
        hfsb_buf_free(&out);
        t_drop(s);
    }
    T_CLEAN(".");
}

static void a_large_file_is_written_in_pieces(void) {
    hfsb_file_writer *w;
    hfsb_file_written done;
    hfsb_buf          all = HFSB_INIT, got = HFSB_INIT;
    char              hex[2][HFSB_SHA256_HEX];
    int               i;
    t_put("large", old_text);
    T_CHECK(hfsb_file_writer_open(NULL, HFSB_LIT("large"), NULL, &w, &err) ==
            HFSB_OK);
    for (i = 0; i < 300; i++) {
        char piece[1111];
        memset(piece, 'a' + i % 26, sizeof piece);
        T_CHECK(hfsb_file_writer_append(
                    w, hfsb_str_make(piece, sizeof piece), &err) == HFSB_OK);
        T_CHECK(hfsb_buf_append(&all, hfsb_str_make(piece, sizeof piece)) ==
                HFSB_OK);
    }
    T_FILE("large", old_text);
    T_CHECK(t_entries(".", ".large.hfsb-") == 1);
    T_CHECK(hfsb_file_writer_commit(w, &done, &err) == HFSB_OK);
    T_CHECK(done.bytes == all.len && !done.created && !done.in_place);
    T_CLEAN(".");
    T_CHECK(hfsb_file_writer_append(w, HFSB_LIT("x"), &err) == HFSB_ARG);
    T_STR(hfsb_cstr(err.msg), "Writer already committed; only close() is allowed.");
    T_CHECK(hfsb_file_writer_commit(w, &done, &err) == HFSB_ARG);
    hfsb_file_writer_close(w);
    T_CHECK(hfsb_file_read(NULL, HFSB_LIT("large"), 0, &got, NULL, &err) ==
            HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&got), hfsb_buf_str(&all)));
    hfsb_sha256_hex(hfsb_buf_str(&all), hex[0]);
    T_CHECK(hfsb_file_sha256(NULL, HFSB_LIT("large"), hex[1], &err) ==
            HFSB_OK);
    T_CHECK(strcmp(hex[0], hex[1]) == 0);
    hfsb_buf_free(&all);
    hfsb_buf_free(&got);
}

static void close_before_commit_leaves_no_trace(void) {
    hfsb_file_writer *w;
    char              temp[64];
    t_put("kept", old_text);
    T_CHECK(hfsb_file_writer_open(NULL, HFSB_LIT("kept"), NULL, &w, &err) ==
            HFSB_OK);
    T_CHECK(hfsb_file_writer_append(w, HFSB_LIT("new"), &err) == HFSB_OK);
    (void)snprintf(temp, sizeof temp, ".kept.hfsb-%ld-1", (long)getpid());
    T_CHECK(t_mode(temp) == 0600); /* private until it is complete */
    hfsb_file_writer_close(w);
    T_FILE("kept", old_text);
    T_CHECK(hfsb_file_writer_open(NULL, HFSB_LIT("never"), NULL, &w, &err) ==
            HFSB_OK);
    T_CHECK(!t_exists("never"));
    hfsb_file_writer_close(w);
    T_CHECK(!t_exists("never"));
    hfsb_file_writer_close(NULL);
    T_CLEAN(".");
}

/* ---- kept metadata ---- */

static void write_keeps_the_mode(void) {
    static const mode_t modes[] = {0755, 0640, 0600, 0666, 04755, 02711};
    size_t              i;
    hfsb_file_written   w;
    for (i = 0; i < sizeof modes / sizeof *modes; i++) {
        t_put("mode", old_text);
        T_CHECK(chmod("mode", modes[i]) == 0);
        w = put("mode", "new", NULL);
        T_FILE("mode", "new");
        T_CHECK(t_mode("mode") == modes[i] && w.info.mode == modes[i]);
        T_CHECK(!w.created && !w.in_place);
    }
}

static void a_new_file_follows_the_umask(void) {
    hfsb_file_write_opts opts;
    hfsb_file_written    w;
    memset(&opts, 0, sizeof opts);
    (void)umask(027);
    w = put("umask/dir/file", "x", NULL);
    T_CHECK(w.created && t_mode("umask/dir/file") == 0640);
    T_CHECK(t_mode("umask") == 0750 && t_mode("umask/dir") == 0750);
    opts.mode = 0777;
    put("umask/wide", "x", &opts);
    T_CHECK(t_mode("umask/wide") == 0777);
    opts.mode = 0400;
    w = put("umask/wide", "x", &opts);
    T_CHECK(t_mode("umask/wide") == 0400 && w.info.mode == 0400);
    (void)umask(022);
}

static void write_keeps_the_owner(void) {
    struct stat st;
    if (!t_root_user()) {
        printf("skipped: owners need root\n");
        t_skipped++;
        return;
    }
    t_put("owned", old_text);
    T_CHECK(chown("owned", 1234, 2345) == 0 && chmod("owned", 06755) == 0);
    T_CHECK(!put("owned", "new", NULL).in_place);
    T_CHECK(stat("owned", &st) == 0 && st.st_uid == 1234 &&
            st.st_gid == 2345 && (st.st_mode & 07777) == 06755);
    T_FILE("owned", "new");
}

static void write_keeps_symbolic_links(void) {
    char absolute[PATH_MAX + 16];
    (void)mkdir("links", 0755);
    (void)mkdir("links/to", 0755);
    t_put("links/to/file", old_text);
    T_CHECK(symlink("to/file", "links/relative") == 0);
    T_CHECK(symlink("../links/./relative", "links/chain") == 0);
    T_CHECK(symlink("links/to", "links-dir") == 0);
    (void)snprintf(absolute, sizeof absolute, "%s/links/chain", t_top);
    T_CHECK(symlink(absolute, "links/absolute") == 0);
    put("links/relative", "1", NULL);
    T_FILE("links/to/file", "1");
    put("links/chain", "2", NULL);
    T_FILE("links/to/file", "2");
    put("links/absolute", "3", NULL);
    T_FILE("links/to/file", "3");
    put("links-dir/file", "4", NULL);
    T_FILE("links/to/file", "4");
    put("links-dir/../to/file", "5", NULL);
    T_FILE("links/to/file", "5");
    T_CHECK(readlink("links/relative", absolute, 8) == 7);
    T_CHECK(readlink("links/chain", absolute, 99) == 19);
    T_CHECK(readlink("links/absolute", absolute, 99) > 12);
    T_CHECK(t_entries("links/to", "") == 1);
    T_CHECK(t_entries("links", "") == 4);
}

static void write_through_a_dangling_link_makes_its_target(void) {
    T_CHECK(symlink("hollow/way/file", "dangling") == 0);
    T_CHECK(put("dangling", "new", NULL).created);
    T_FILE("hollow/way/file", "new");
    T_CHECK(symlink("turn", "turn") == 0);
    T_CHECK(t_write_fails("turn", NULL, &err) == HFSB_ARG);
    T_ERR(HFSB_ARG, "Cannot write turn: too many symbolic links");
    T_CHECK(t_read_fails("turn", &err) == HFSB_ARG);
    T_CHECK(t_read_fails("turn/x", &err) == HFSB_ARG);
}

static void write_keeps_hard_links(void) {
    struct stat       a, b;
    hfsb_file_written w;
    t_put("hard", "long old content");
    T_CHECK(chmod("hard", 04751) == 0 && link("hard", "hard2") == 0);
    w = put("hard", "short", NULL);
    T_CHECK(w.in_place && !w.created);
    T_FILE("hard", "short");
    T_FILE("hard2", "short");
    T_CHECK(t_mode("hard") == 04751);
    put("hard2", "a longer content than before", NULL);
    T_FILE("hard", "a longer content than before");
    T_CHECK(put("hard", "", NULL).in_place);
    T_FILE("hard2", "");
    T_CHECK(stat("hard", &a) == 0 && stat("hard2", &b) == 0 &&
            a.st_ino == b.st_ino && a.st_nlink == 2);
    T_CLEAN(".");
}

#ifdef HFSBI_LINUX
static void write_keeps_extended_attributes(void) {
    /* user::rw- user:1:r-- group::r-- mask::r-- other::--- */
    static const unsigned char acl[] = {
        2, 0, 0, 0, 1,    0, 6, 0, 0xFF, 0xFF, 0xFF, 0xFF, 2,    0, 4,
        0, 1, 0, 0, 0,    4, 0, 4, 0,    0xFF, 0xFF, 0xFF, 0xFF, 0x10, 0,
        4, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x20, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF};
    unsigned char got[sizeof acl + 9];
    t_put("attributes", old_text);
    if (setxattr("attributes", "user.x", "value", 5, 0) != 0) {
        printf("skipped: no extended attributes here\n");
        t_skipped++;
        return;
    }
    T_CHECK(setxattr("attributes", "user.empty", "", 0, 0) == 0);
    T_CHECK(!put("attributes", "new", NULL).in_place);
    T_FILE("attributes", "new");
    T_CHECK(getxattr("attributes", "user.x", got, sizeof got) == 5 &&
            memcmp(got, "value", 5) == 0);
    T_CHECK(getxattr("attributes", "user.empty", got, sizeof got) == 0);
    if (setxattr("attributes", "system.posix_acl_access", acl, sizeof acl,
                 0) != 0) {
        printf("skipped: no access control lists here\n");
        t_skipped++;
        return;
    }
    put("attributes", "newer", NULL);
    T_CHECK(getxattr("attributes", "system.posix_acl_access", got,
                     sizeof got) == (ssize_t)sizeof acl &&
            memcmp(got, acl, sizeof acl) == 0);
    T_CHECK(t_mode("attributes") == 0640);
    /* a default ACL of the directory is not for an existing file */
    (void)mkdir("heirs", 0755);
    t_put("heirs/file", old_text);
    T_CHECK(setxattr("heirs", "system.posix_acl_default", acl, sizeof acl,
                     0) == 0);
    put("heirs/file", "new", NULL);
    T_CHECK(getxattr("heirs/file", "system.posix_acl_access", got,
                     sizeof got) < 0);
    put("heirs/new", "new", NULL);
    T_CHECK(getxattr("heirs/new", "system.posix_acl_access", got,
                     sizeof got) > 0);
}
#endif

/* ---- conditions ---- */

static void create_refuses_an_existing_file(void) {
    hfsb_file_write_opts opts;
    hfsb_file_writer    *w;
    memset(&opts, 0, sizeof opts);
    opts.create = true;
    T_CHECK(put("created", "new", &opts).created);
    T_CHECK(t_write_fails("created", &opts, &err) == HFSB_EXISTS);
    T_ERR(HFSB_EXISTS, "File exists already: created");
    T_CHECK(hfsb_file_writer_open(NULL, HFSB_LIT("created"), &opts, &w,
                                  &err) == HFSB_EXISTS); /* at once */
    T_CHECK(w == NULL);
    /* also when the file appears during the write */
    T_CHECK(hfsb_file_writer_open(NULL, HFSB_LIT("late"), &opts, &w, &err) ==
            HFSB_OK);
    t_put("late", "theirs");
    T_CHECK(hfsb_file_writer_commit(w, NULL, &err) == HFSB_EXISTS);
    T_ERR(HFSB_EXISTS, "File exists already: late");
    T_CHECK(hfsb_file_writer_append(w, HFSB_LIT("x"), &err) == HFSB_EXISTS);
    T_ERR(HFSB_EXISTS, "File exists already: late");
    hfsb_file_writer_close(w);
    T_FILE("late", "theirs");
    T_CLEAN(".");
}

/* Longer, shorter, other bytes, at the border of a block too, and none. */
static void if_content_refuses_another_content(void) {
    hfsb_file_write_opts opts;
    hfsb_buf             want = HFSB_INIT, has = HFSB_INIT;
    size_t               sizes[4] = {1, 16384, 16385, 100000}, i;
    memset(&opts, 0, sizeof opts);
    for (i = 0; i < 4; i++) {
        hfsb_buf_truncate(&want, 0);
        hfsb_buf_truncate(&has, 0);
        t_repeat(&want, "x", sizes[i]);
        t_repeat(&has, "x", sizes[i]);
        opts.if_content = hfsb_buf_str(&want);
        t_put("same", has.ptr);
        put("same", has.ptr, &opts);
        has.ptr[sizes[i] - 1] = 'y';
        t_put("same", has.ptr);
        T_CHECK(t_write_fails("same", &opts, &err) == HFSB_STALE);
        T_ERR(HFSB_STALE,
              "File has changed since it was read: same (read it again)");
        has.ptr[sizes[i] - 1] = '\0';
        t_put("same", has.ptr);
        T_CHECK(t_write_fails("same", &opts, &err) == HFSB_STALE);
        has.ptr[sizes[i] - 1] = 'x';
        t_repeat(&has, "x", 1);
        t_put("same", has.ptr);
        T_CHECK(t_write_fails("same", &opts, &err) == HFSB_STALE);
    }
    opts.if_content = HFSB_LIT("");
    T_CHECK(t_write_fails("same", &opts, &err) == HFSB_STALE);
    t_put("same", "");
    put("same", "new", &opts);
    T_CHECK(t_write_fails("no/such", &opts, &err) == HFSB_NOT_FOUND);
    T_CHECK(!t_exists("no"));
    hfsb_buf_free(&want);
    hfsb_buf_free(&has);
    T_CLEAN(".");
}

static void if_sha256_refuses_another_content(void) {
    hfsb_file_write_opts opts;
    hfsb_file_writer    *w;
    char                 hex[HFSB_SHA256_HEX];
    size_t               i;
    memset(&opts, 0, sizeof opts);
    t_put("sha", old_text);
    hfsb_sha256_hex(hfsb_cstr(old_text), hex);
    opts.if_sha256 = hfsb_cstr(hex);
    for (i = 0; hex[i]; i++) /* upper case is accepted */
        if (hex[i] >= 'a') hex[i] = (char)(hex[i] - 'a' + 'A');
    put("sha", "new", &opts);
    T_CHECK(t_write_fails("sha", &opts, &err) == HFSB_STALE);
    T_ERR(HFSB_STALE,
          "File has changed since it was read: sha (read it again)");
    T_CHECK(t_write_fails("no/such", &opts, &err) == HFSB_NOT_FOUND);
    T_ERR(HFSB_NOT_FOUND, "File not found: no/such");
    T_CHECK(!t_exists("no"));
    t_put("sha", old_text);
    T_CHECK(hfsb_file_writer_open(NULL, HFSB_LIT("sha"), &opts, &w, &err) ==
            HFSB_OK);
    t_put("sha", "OLD\n");
    T_CHECK(hfsb_file_writer_commit(w, NULL, &err) == HFSB_STALE);
    hfsb_file_writer_close(w);
    T_FILE("sha", "OLD\n");
    opts.if_sha256 = HFSB_LIT("12ab");
    T_CHECK(t_write_fails("sha", &opts, &err) == HFSB_ARG);
    T_ERR(HFSB_ARG, "A sha256 is 64 hexadecimal digits, not \"12ab\".");
    hex[5] = 'g';
    opts.if_sha256 = hfsb_cstr(hex);
    T_CHECK(t_write_fails("sha", &opts, &err) == HFSB_ARG);
    T_CLEAN(".");
}

static void if_same_refuses_another_file(void) {
    hfsb_file_write_opts opts;
    hfsb_file_info       info, other;
    hfsb_file_writer    *w;
    hfsb_file_written    done;
    memset(&opts, 0, sizeof opts);
    t_put("same", old_text);
    T_CHECK(hfsb_file_stat(NULL, HFSB_LIT("same"), &info, &err) == HFSB_OK);
    opts.if_same = &info;
    done = put("same", "new\n", &opts);
    /* another inode */
    T_CHECK(t_write_fails("same", &opts, &err) == HFSB_STALE);
    T_ERR(HFSB_STALE,
          "File has changed since it was read: same (read it again)");
    info = done.info; /* of the current file */
    done = put("same", "newer\n", &opts);
    other = done.info;
    opts.if_same = &other;
    other.size++;
    T_CHECK(t_write_fails("same", &opts, &err) == HFSB_STALE);
    other.size--;
    other.changed--;
    T_CHECK(t_write_fails("same", &opts, &err) == HFSB_STALE);
    other.changed++;
    other.changed_nanos ^= 1;
    T_CHECK(t_write_fails("same", &opts, &err) == HFSB_STALE);
    other.changed_nanos ^= 1;
    T_CHECK(hfsb_file_writer_open(NULL, HFSB_LIT("same"), &opts, &w, &err) ==
            HFSB_OK);
    memset(&other, 0, sizeof other); /* the writer has its own copy */
    t_put("same", "theirs");
    T_CHECK(hfsb_file_writer_commit(w, NULL, &err) == HFSB_STALE);
    hfsb_file_writer_close(w);
    T_FILE("same", "theirs");
    T_CHECK(unlink("same") == 0);
    T_CHECK(t_write_fails("same", &opts, &err) == HFSB_NOT_FOUND);
    T_CLEAN(".");
}

static void no_parents_makes_no_directory(void) {
    hfsb_file_write_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.no_parents = true;
    opts.no_sync = true;
    T_CHECK(t_write_fails("orphan/file", &opts, &err) == HFSB_NOT_FOUND);
    T_ERR(HFSB_NOT_FOUND, "File not found: orphan/file");
    T_CHECK(!t_exists("orphan"));
    opts.no_parents = false;
    put("orphan/./and//more/file", "x", &opts);
    T_FILE("orphan/and/more/file", "x");
    (void)mkdir("~", 0755); /* an existing "~" is a name like any other */
    put("~/new/file", "x", NULL);
    T_FILE("~/new/file", "x");
}

/* ---- temporaries ---- */

static void write_removes_temporaries_of_dead_processes(void) {
    /* %ld is the process id; goes: it must be removed */
    static const struct {
        const char *name;
        bool        dead, old, goes;
    } cases[] = {{".f.hfsb-%ld-1", true, false, true},
                 {".other name.hfsb-%ld-12", true, false, true},
                 {".f.hfsb-%ld-7", false, false, false},
                 {".f.hfsb-%ld-8", false, true, true},
                 {"f.hfsb-%ld-1", true, true, false},
                 {".hfsb-%ld-1", true, true, false},
                 {".f.hfsb-%ld-", true, true, false},
                 {".f.hfsb-%ld-1x", true, true, false},
                 {".f.hfsb-x%ld-1", true, true, false},
                 {".f.hfsb%ld-1", true, true, false},
                 {".f.hfsb--1%.0ld", true, true, false},
                 {".f.hfsb-0-1%.0ld", true, true, false}};
    struct timespec times[2];
    char            name[64];
    int             status, fd;
    size_t          i;
    pid_t           dead = fork();
    if (dead == 0) _exit(0);
    T_CHECK(dead > 0 && waitpid(dead, &status, 0) == dead);
    (void)mkdir("dead", 0755);
    T_CHECK(chdir("dead") == 0);
    memset(times, 0, sizeof times);
    times[0].tv_sec = times[1].tv_sec = time(NULL) - 100;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)snprintf(name, sizeof name, cases[i].name,
                       (long)(cases[i].dead ? dead : getpid()));
        t_put(name, "x");
        if (cases[i].old)
            T_CHECK(utimensat(AT_FDCWD, name, times, 0) == 0);
    }
    put("g", "x", NULL);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)snprintf(name, sizeof name, cases[i].name,
                       (long)(cases[i].dead ? dead : getpid()));
        T_CHECK(t_exists(name) == !cases[i].goes);
        if (t_exists(name) == cases[i].goes) printf("  %s\n", name);
    }
    /* neither a regular file nor a symlink, or locked: never removed */
    (void)snprintf(name, sizeof name, ".dir.hfsb-%ld-1", (long)dead);
    T_CHECK(mkdir(name, 0755) == 0);
    (void)snprintf(name, sizeof name, ".link.hfsb-%ld-1", (long)dead);
    T_CHECK(symlink("g", name) == 0);
    (void)snprintf(name, sizeof name, ".fifo.hfsb-%ld-1", (long)dead);
    T_CHECK(mkfifo(name, 0600) == 0);
    (void)snprintf(name, sizeof name, ".held.hfsb-%ld-1", (long)dead);
    t_put(name, "x");
    fd = open(name, O_RDONLY | O_CLOEXEC);
    T_CHECK(fd >= 0 && flock(fd, LOCK_SH) == 0);
    put("g", "y", NULL);
    T_CHECK(t_entries(".", ".dir.") == 1 && t_entries(".", ".fifo.") == 1 &&
            t_entries(".", ".held.") == 1);
    T_CHECK(t_entries(".", ".link.") == 0); /* one of file_put.c */
    close(fd);
    put("g", "z", NULL);
    T_CHECK(t_entries(".", ".held.") == 0);
    T_CHECK(chdir("..") == 0);
}

/* A stale temporary in "swept", which exists. */
static void plant_stale(void) {
    char  name[64];
    int   status;
    pid_t dead = fork();
    if (dead == 0) _exit(0);
    T_CHECK(dead > 0 && waitpid(dead, &status, 0) == dead);
    (void)snprintf(name, sizeof name, "swept/.f.hfsb-%ld-1", (long)dead);
    t_put(name, "x");
}

static void put_through(hfsb_root *place) {
    T_CHECK(hfsb_file_write(place, HFSB_LIT("swept/g"), HFSB_LIT("x"), NULL,
                            NULL, &err) == HFSB_OK);
}

static void root_sweeps_a_directory_that_changed(void) {
    hfsb_root *place = NULL, *other = NULL;
    int         i;
    (void)mkdir("swept", 0755);
    T_CHECK(hfsb_root_open(NULL, &place, &err) == HFSB_OK);
    for (i = 0; i < 3; i++) {
        put_through(place);
        put_through(place);
        (void)poll(NULL, 0, 20); /* past a tick of the clock */
        plant_stale();
        put_through(place);
        T_CLEAN("swept");
    }
    hfsb_root_close(place);
    T_CHECK(hfsb_root_open(NULL, &other, &err) == HFSB_OK);
    plant_stale();
    put_through(other);
    T_CLEAN("swept");
    hfsb_root_close(other);
}

/* The temporary becomes stale without another change of the directory. */
static void root_sweeps_again_while_a_temporary_is_in_use(void) {
    hfsb_root *place = NULL;
    char        name[64];
    int         status, ready[2];
    char        c;
    pid_t       pid;
    (void)mkdir("swept", 0755);
    T_CHECK(pipe(ready) == 0);
    pid = fork();
    if (pid == 0) {
        close(ready[1]);
        _exit(read(ready[0], &c, 1) < 0);
    }
    close(ready[0]);
    (void)snprintf(name, sizeof name, "swept/.f.hfsb-%ld-1", (long)pid);
    t_put(name, "x");
    T_CHECK(hfsb_root_open(NULL, &place, &err) == HFSB_OK);
    put_through(place);
    put_through(place);
    T_CHECK(t_exists(name));
    close(ready[1]);
    T_CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    put_through(place);
    T_CLEAN("swept");
    hfsb_root_close(place);
}

/* More directories than the root remembers, from several threads. */
static void *sweep_many(void *place) {
    void *failed = NULL;
    int   i;
    for (i = 0; i < 2 * HFSBI_SWEEPS; i++) {
        char                 path[32];
        hfsb_file_write_opts opts = HFSB_INIT;
        (void)snprintf(path, sizeof path, "many/%d/f", i);
        opts.no_sync = true;
        if (hfsb_file_write((hfsb_root *)place, hfsb_cstr(path),
                            HFSB_LIT("x"), &opts, NULL, NULL) != HFSB_OK)
            failed = place;
    }
    return failed;
}

static void threads_share_the_sweeps_of_a_root(void) {
    hfsb_root *place = NULL;
    pthread_t   thread[3];
    void       *failed;
    size_t      i;
    T_CHECK(hfsb_root_open(NULL, &place, &err) == HFSB_OK);
    T_CHECK(!sweep_many(place));
    for (i = 0; i < 3; i++)
        T_CHECK(pthread_create(&thread[i], NULL, sweep_many, place) == 0);
    for (i = 0; i < 3; i++)
        T_CHECK(pthread_join(thread[i], &failed) == 0 && !failed);
    T_CLEAN("many/0");
    hfsb_root_close(place);
}

static void a_living_writer_keeps_its_temporary(void) {
    hfsb_file_writer *w[3];
    struct timespec   times[2];
    char              name[64];
    int               i;
    memset(times, 0, sizeof times);
    times[0].tv_sec = times[1].tv_sec = time(NULL) - 1000;
    (void)mkdir("alive", 0755);
    for (i = 0; i < 3; i++) {
        T_CHECK(hfsb_file_writer_open(NULL, HFSB_LIT("alive/f"), NULL, &w[i],
                                      &err) == HFSB_OK);
        (void)snprintf(name, sizeof name, "alive/.f.hfsb-%ld-%d",
                       (long)getpid(), i + 1);
        T_CHECK(t_exists(name));
        T_CHECK(utimensat(AT_FDCWD, name, times, 0) == 0);
    }
    put("alive/g", "x", NULL);
    T_CHECK(t_entries("alive", ".f.hfsb-") == 3);
    for (i = 0; i < 3; i++) {
        T_CHECK(hfsb_file_writer_append(w[i], HFSB_LIT("012") , &err) ==
                HFSB_OK);
        T_CHECK(hfsb_file_writer_commit(w[i], NULL, &err) == HFSB_OK);
        hfsb_file_writer_close(w[i]);
    }
    T_FILE("alive/f", "012");
    T_CLEAN("alive");
}

/* The names of temporaries can be guessed: planted files are not used. */
static void planted_temporaries_are_not_used(void) {
    char name[64];
    t_put("planted", old_text);
    t_put("victim", "victim");
    (void)snprintf(name, sizeof name, ".planted.hfsb-%ld-1", (long)getpid());
    T_CHECK(symlink("victim", name) == 0);
    (void)snprintf(name, sizeof name, ".planted.hfsb-%ld-2", (long)getpid());
    T_CHECK(link("victim", name) == 0);
    (void)snprintf(name, sizeof name, ".planted.hfsb-%ld-3", (long)getpid());
    T_CHECK(symlink("nowhere", name) == 0);
    T_CHECK(!put("planted", "new", NULL).in_place);
    T_FILE("planted", "new");
    T_FILE("victim", "victim");
    T_CHECK(!t_exists("nowhere") && t_entries(".", ".planted.hfsb-") == 3);
    for (; name[strlen(name) - 1] > '0'; name[strlen(name) - 1]--)
        T_CHECK(unlink(name) == 0);
}

/* While two processes write, a reader sees one text or the other. */
static void readers_see_the_old_or_the_new_content(void) {
    hfsb_file_write_opts opts;
    char                 text[30000];
    pid_t                pid[2];
    int                  i, n = t_quick() ? 20 : 300, status;
    memset(&opts, 0, sizeof opts);
    opts.no_sync = true;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    put("read", text, &opts);
    fflush(stdout);
    for (i = 0; i < 2; i++) {
        pid[i] = fork();
        if (pid[i] != 0) continue;
        memset(text, 'a' + i, sizeof text / (size_t)(i + 1));
        for (;;)
            if (hfsb_file_write(NULL, HFSB_LIT("read"),
                                hfsb_str_make(text, sizeof text /
                                                        (size_t)(i + 1)),
                                &opts, NULL, &err) != HFSB_OK ||
                getppid() == 1)
                _exit(1);
    }
    for (i = 0; i < n; i++) {
        hfsb_buf out = HFSB_INIT;
        T_CHECK(hfsb_file_read(NULL, HFSB_LIT("read"), 0, &out, NULL, &err) ==
                HFSB_OK);
        T_CHECK(out.len >= sizeof text / 2 && out.ptr &&
                hfsb_str_count_byte(hfsb_buf_str(&out), out.ptr[0]) ==
                    out.len);
        hfsb_buf_free(&out);
    }
    for (i = 0; i < 2; i++) {
        T_CHECK(pid[i] > 0 && kill(pid[i], SIGKILL) == 0);
        T_CHECK(waitpid(pid[i], &status, 0) == pid[i] &&
                WIFSIGNALED(status));
    }
    put("read", "end", NULL);
    T_CHECK(t_entries(".", ".read.hfsb-") == 0);
}

/* ---- several writers ---- */

typedef struct tw_writer {
    const char *path;
    hfsb_str    content;
    bool        remove; /* the file instead */
    hfsb_status st;
    hfsb_err    err;
    pthread_t   thread;
} tw_writer;

static void *tw_write(void *user) {
    tw_writer *w = (tw_writer *)user;
    w->st = w->remove ? hfsb_file_remove(NULL, hfsb_cstr(w->path), &w->err)
                      : hfsb_file_write(NULL, hfsb_cstr(w->path), w->content,
                                        NULL, NULL, &w->err);
    return NULL;
}

/* All of them at once. */
static void tw_run(tw_writer *w, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        T_CHECK(pthread_create(&w[i].thread, NULL, tw_write, &w[i]) == 0);
    for (i = 0; i < n; i++) T_CHECK(pthread_join(w[i].thread, NULL) == 0);
}

/* Two names of one file, in two directories. */
static void parallel_writes_in_place_never_mix(void) {
    enum { WRITERS = 4, SIZE = 1 << 20 };
    tw_writer w[WRITERS];
    char     *text = (char *)malloc((size_t)WRITERS * SIZE);
    int       i, round, rounds = t_quick() ? 5 : 20;
    T_CHECK(text && mkdir("mix", 0755) == 0);
    if (!text) return;
    t_put("mixed", "");
    T_CHECK(link("mixed", "mix/other") == 0);
    memset(w, 0, sizeof w);
    for (i = 0; i < WRITERS; i++) {
        memset(text + (size_t)i * SIZE, 'a' + i, SIZE);
        w[i].path = i % 2 ? "mixed" : "mix/other";
        w[i].content = hfsb_str_make(text + (size_t)i * SIZE, SIZE);
    }
    for (round = 0; round < rounds; round++) {
        hfsb_buf got = HFSB_INIT;
        tw_run(w, WRITERS);
        for (i = 0; i < WRITERS; i++) T_CHECK(w[i].st == HFSB_OK);
        T_CHECK(t_read_file("mixed", &got) && got.len == SIZE &&
                hfsb_str_count_byte(hfsb_buf_str(&got), got.ptr[0]) == SIZE);
        hfsb_buf_free(&got);
    }
    free(text);
}

/* A write waits for the lock of another program, about 2 s. */
static void write_is_busy_while_another_holds_the_lock(void) {
    static const char reason[] =
        " (it or its directory was locked with flock for 2 seconds: wait for "
        "that program, or end it, and try again)";
    tw_writer w[4];
    char      want[256];
    int       dir, file, i;
    memset(w, 0, sizeof w);
    T_CHECK(mkdir("held", 0755) == 0);
    t_put("held/f", old_text);
    t_put("two", old_text);
    T_CHECK(link("two", "two2") == 0);
    dir = open("held", O_RDONLY | O_CLOEXEC);
    file = open("two", O_RDONLY | O_CLOEXEC);
    T_CHECK(dir >= 0 && flock(dir, LOCK_SH) == 0);
    T_CHECK(file >= 0 && flock(file, LOCK_SH) == 0);
    w[0].path = "held/f";
    w[1].path = "held/new";
    w[2].path = "held/f";
    w[2].remove = true;
    w[3].path = "two2"; /* in place: its own lock counts */
    for (i = 0; i < 4; i++) w[i].content = HFSB_LIT("new");
    tw_run(w, 4);
    for (i = 0; i < 4; i++) {
        (void)snprintf(want, sizeof want,
                       "File is locked by another program: %s%s", w[i].path,
                       reason);
        T_CHECK(w[i].st == HFSB_BUSY && w[i].err.code == HFSB_BUSY);
        T_CHECK(strcmp(w[i].err.msg, want) == 0);
    }
    T_FILE("held/f", old_text);
    T_FILE("two", old_text);
    T_CHECK(!t_exists("held/new"));
    T_CLEAN("held");
    T_CLEAN(".");
    close(dir);
    close(file);
    tw_run(w, 2);
    T_CHECK(w[0].st == HFSB_OK && w[1].st == HFSB_OK);
    T_FILE("held/f", "new");
}

static void *release_soon(void *fd) {
    (void)poll(NULL, 0, 100);
    (void)flock(*(int *)fd, LOCK_UN);
    return NULL;
}

static void write_waits_for_a_lock_that_is_released(void) {
    int       dir;
    pthread_t thread;
    T_CHECK(mkdir("soon", 0755) == 0);
    dir = open("soon", O_RDONLY | O_CLOEXEC);
    T_CHECK(dir >= 0 && flock(dir, LOCK_EX) == 0);
    T_CHECK(pthread_create(&thread, NULL, release_soon, &dir) == 0);
    put("soon/f", "new", NULL);
    T_CHECK(pthread_join(thread, NULL) == 0);
    T_FILE("soon/f", "new");
    close(dir);
}

/* The longest name still has a temporary, cut between characters. */
static void the_longest_names_can_be_written(void) {
    char              name[300];
    hfsb_file_writer *w;
    DIR              *dir;
    struct dirent    *e;
    int               part, seen = 0;
    (void)mkdir("longest", 0755);
    T_CHECK(chdir("longest") == 0);
    for (part = 0; part < 3; part++) { /* 255 bytes, borders at 3k + part */
        size_t i;
        memset(name, 'x', 255);
        for (i = (size_t)part; i + 3 <= 255; i += 3)
            memcpy(name + i, "\xE2\x82\xAC", 3);
        name[255] = '\0';
        T_CHECK(hfsb_file_writer_open(NULL, hfsb_cstr(name), NULL, &w,
                                      &err) == HFSB_OK);
        dir = opendir(".");
        while (dir && (e = readdir(dir)) != NULL)
            if (strstr(e->d_name, ".hfsb-")) {
                seen++;
                T_CHECK(strlen(e->d_name) <= 255 &&
                        strlen(e->d_name) >= 253);
                T_CHECK(hfsb_utf8_validate(hfsb_cstr(e->d_name)) ==
                        strlen(e->d_name));
            }
        if (dir) closedir(dir);
        T_CHECK(hfsb_file_writer_commit(w, NULL, &err) == HFSB_OK);
        hfsb_file_writer_close(w);
        T_CHECK(t_exists(name));
    }
    T_CHECK(seen == 3);
    memset(name, 'y', 256);
    name[256] = '\0';
    T_CHECK(t_write_fails(name, NULL, &err) == HFSB_ARG);
    T_CHECK(strstr(err.msg, "yyy: the name is too long") != NULL);
    T_CHECK(t_read_fails(name, &err) == HFSB_ARG);
    T_CLEAN(".");
    T_CHECK(chdir("..") == 0);
}

int main(void) {
    int fds = t_descriptors();
    t_begin_files();
    T_RUN(read_returns_the_bytes_written);
    T_RUN(a_large_file_is_written_in_pieces);
    T_RUN(close_before_commit_leaves_no_trace);
    T_RUN(write_keeps_the_mode);
    T_RUN(a_new_file_follows_the_umask);
    T_RUN(write_keeps_the_owner);
    T_RUN(write_keeps_symbolic_links);
    T_RUN(write_through_a_dangling_link_makes_its_target);
    T_RUN(write_keeps_hard_links);
#ifdef HFSBI_LINUX
    T_RUN(write_keeps_extended_attributes);
#endif
    T_RUN(create_refuses_an_existing_file);
    T_RUN(if_sha256_refuses_another_content);
    T_RUN(if_content_refuses_another_content);
    T_RUN(if_same_refuses_another_file);
    T_RUN(no_parents_makes_no_directory);
    T_RUN(write_removes_temporaries_of_dead_processes);
    T_RUN(root_sweeps_a_directory_that_changed);
    T_RUN(root_sweeps_again_while_a_temporary_is_in_use);
    T_RUN(threads_share_the_sweeps_of_a_root);
    T_RUN(a_living_writer_keeps_its_temporary);
    T_RUN(planted_temporaries_are_not_used);
    T_RUN(readers_see_the_old_or_the_new_content);
    T_RUN(parallel_writes_in_place_never_mix);
    T_RUN(write_is_busy_while_another_holds_the_lock);
    T_RUN(write_waits_for_a_lock_that_is_released);
    T_RUN(the_longest_names_can_be_written);
    T_CHECK(t_descriptors() == fds);
    return t_end_files(__FILE__);
}
