/* test_file.c - files looked at, read, written and removed. */
#include "t_file.h"

static hfsb_err   err;
static const char old_text[] = "old\n";

/* Writes and wants that to go well. */
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

/* The last error was this one. */
#define T_ERR(status, text)                                                 \
    (T_CHECK(err.code == (status)), T_STR(hfsb_cstr(err.msg), text))

static hfsb_status put_fails(const char *path,
                             const hfsb_file_write_opts *opts) {
    hfsb_status st = hfsb_file_write(NULL, hfsb_cstr(path), HFSB_LIT("new"),
                                     opts, NULL, &err);
    T_CHECK(st != HFSB_OK && st == err.code);
    return st;
}

static hfsb_status get_fails(const char *path) {
    hfsb_buf    out = HFSB_INIT;
    hfsb_status st =
        hfsb_file_read(NULL, hfsb_cstr(path), 0, &out, NULL, &err);
    T_CHECK(st != HFSB_OK && st == err.code && out.len == 0);
    hfsb_buf_free(&out);
    return st;
}

/* ---- content ---- */

static void what_is_written_is_read(void) {
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
    T_STR(hfsb_cstr(err.msg), "The file is written: only close() is left.");
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

static void a_writer_given_up_leaves_no_trace(void) {
    hfsb_file_writer *w;
    char              temp[64];
    t_put("kept", old_text);
    T_CHECK(hfsb_file_writer_open(NULL, HFSB_LIT("kept"), NULL, &w, &err) ==
            HFSB_OK);
    T_CHECK(hfsb_file_writer_append(w, HFSB_LIT("new"), &err) == HFSB_OK);
    (void)snprintf(temp, sizeof temp, ".kept.hfsb-%ld-1", (long)getpid());
    T_CHECK(t_mode(temp) == 0600); /* nobody reads it before it is done */
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

/* ---- what stays ---- */

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
    T_CHECK(put_fails("turn", NULL) == HFSB_IO);
    T_ERR(HFSB_IO, "Cannot write turn: too many symbolic links");
    T_CHECK(get_fails("turn") == HFSB_IO);
    T_CHECK(get_fails("turn/x") == HFSB_IO);
}

static void hard_links_stay_one_file(void) {
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
    /* what a directory gives to new files is not for those that were there */
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

static void create_refuses_what_exists(void) {
    hfsb_file_write_opts opts;
    hfsb_file_writer    *w;
    memset(&opts, 0, sizeof opts);
    opts.create = true;
    T_CHECK(put("created", "new", &opts).created);
    T_CHECK(put_fails("created", &opts) == HFSB_REFUSED);
    T_ERR(HFSB_REFUSED, "File exists already: created");
    T_CHECK(hfsb_file_writer_open(NULL, HFSB_LIT("created"), &opts, &w,
                                  &err) == HFSB_REFUSED); /* at once */
    T_CHECK(w == NULL);
    /* also when it appears while we write */
    T_CHECK(hfsb_file_writer_open(NULL, HFSB_LIT("late"), &opts, &w, &err) ==
            HFSB_OK);
    t_put("late", "theirs");
    T_CHECK(hfsb_file_writer_commit(w, NULL, &err) == HFSB_REFUSED);
    T_ERR(HFSB_REFUSED, "File exists already: late");
    T_CHECK(hfsb_file_writer_append(w, HFSB_LIT("x"), &err) == HFSB_REFUSED);
    T_ERR(HFSB_REFUSED, "File exists already: late");
    hfsb_file_writer_close(w);
    T_FILE("late", "theirs");
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
    for (i = 0; hex[i]; i++) /* capitals count as well */
        if (hex[i] >= 'a') hex[i] = (char)(hex[i] - 'a' + 'A');
    put("sha", "new", &opts);
    T_CHECK(put_fails("sha", &opts) == HFSB_REFUSED);
    T_ERR(HFSB_REFUSED,
          "File has changed since it was read: sha (read it again)");
    T_CHECK(put_fails("no/such", &opts) == HFSB_NOT_FOUND);
    T_ERR(HFSB_NOT_FOUND, "File not found: no/such");
    T_CHECK(!t_exists("no"));
    t_put("sha", old_text);
    T_CHECK(hfsb_file_writer_open(NULL, HFSB_LIT("sha"), &opts, &w, &err) ==
            HFSB_OK);
    t_put("sha", "OLD\n");
    T_CHECK(hfsb_file_writer_commit(w, NULL, &err) == HFSB_REFUSED);
    hfsb_file_writer_close(w);
    T_FILE("sha", "OLD\n");
    opts.if_sha256 = HFSB_LIT("12ab");
    T_CHECK(put_fails("sha", &opts) == HFSB_ARG);
    T_ERR(HFSB_ARG, "A sha256 is 64 hexadecimal digits, not \"12ab\".");
    hex[5] = 'g';
    opts.if_sha256 = hfsb_cstr(hex);
    T_CHECK(put_fails("sha", &opts) == HFSB_ARG);
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
    T_CHECK(put_fails("same", &opts) == HFSB_REFUSED); /* another inode */
    T_ERR(HFSB_REFUSED,
          "File has changed since it was read: same (read it again)");
    info = done.info; /* that of the file that is there now */
    done = put("same", "newer\n", &opts);
    other = done.info;
    opts.if_same = &other;
    other.size++;
    T_CHECK(put_fails("same", &opts) == HFSB_REFUSED);
    other.size--;
    other.changed--;
    T_CHECK(put_fails("same", &opts) == HFSB_REFUSED);
    other.changed++;
    other.changed_nanos ^= 1;
    T_CHECK(put_fails("same", &opts) == HFSB_REFUSED);
    other.changed_nanos ^= 1;
    T_CHECK(hfsb_file_writer_open(NULL, HFSB_LIT("same"), &opts, &w, &err) ==
            HFSB_OK);
    memset(&other, 0, sizeof other); /* not needed any more */
    t_put("same", "theirs");
    T_CHECK(hfsb_file_writer_commit(w, NULL, &err) == HFSB_REFUSED);
    hfsb_file_writer_close(w);
    T_FILE("same", "theirs");
    T_CHECK(unlink("same") == 0);
    T_CHECK(put_fails("same", &opts) == HFSB_NOT_FOUND);
    T_CLEAN(".");
}

/* ---- temporaries ---- */

static void temporaries_of_the_dead_are_removed(void) {
    /* %ld is the process; true: it must go */
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
    /* no file, or one that someone holds: never */
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
    T_CHECK(t_entries(".", ".dir.") == 1 && t_entries(".", ".link.") == 1 &&
            t_entries(".", ".fifo.") == 1 && t_entries(".", ".held.") == 1);
    close(fd);
    put("g", "z", NULL);
    T_CHECK(t_entries(".", ".held.") == 0);
    T_CHECK(chdir("..") == 0);
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

/* Names of temporaries can be guessed: what is planted there is not used. */
static void planted_temporaries_are_passed_by(void) {
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

/* While two processes write, whoever reads sees one text or the other. */
static void readers_see_whole_contents(void) {
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
    T_CHECK(put_fails(name, NULL) == HFSB_IO);
    T_CHECK(strstr(err.msg, "yyy: the name is too long") != NULL);
    T_CHECK(get_fails(name) == HFSB_IO);
    T_CLEAN(".");
    T_CHECK(chdir("..") == 0);
}

/* ---- looking ---- */

static void stat_tells_what_is_there(void) {
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

static void one_file_has_one_key(void) {
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

static void a_read_has_its_limits(void) {
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

static void files_without_a_size_are_read(void) {
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

static void what_may_never_answer_is_not_opened(void) {
    int fd;
    T_CHECK(mkfifo("fifo", 0600) == 0);
    T_CHECK(symlink("fifo", "fifo-link") == 0);
    T_CHECK(get_fails("fifo") == HFSB_REFUSED);
    T_ERR(HFSB_REFUSED, "Is a FIFO, not a regular file: fifo");
    T_CHECK(get_fails("fifo-link") == HFSB_REFUSED);
    T_CHECK(put_fails("fifo-link", NULL) == HFSB_REFUSED);
    T_ERR(HFSB_REFUSED, "Is a FIFO, not a regular file: fifo-link");
    T_CHECK(get_fails("/dev/zero") == HFSB_REFUSED);
    T_ERR(HFSB_REFUSED, "Is a device, not a regular file: /dev/zero");
    T_CHECK(put_fails("/dev/zero", NULL) == HFSB_REFUSED);
    T_CHECK(get_fails(".") == HFSB_REFUSED);
    T_ERR(HFSB_REFUSED, "Is a directory: .");
    T_CHECK(hfsb_file_open(NULL, HFSB_LIT("fifo"), &fd, NULL, &err) ==
            HFSB_REFUSED);
    T_CHECK(fd == -1);
}

/* Also for a host without standard input, output and error. */
static void an_opened_file_is_plain(void) {
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

static void a_gigabyte_takes_no_memory(void) {
    static const char zeros[] = /* of 64 MiB of zeros */
        "3b6a07d0d404fab4e23b6d34bc6696a6a312dd92821332385e5af7c01c421351";
    t_heap          heap = HFSB_INIT;
    hfsb_place_opts opts;
    hfsb_place     *place = NULL;
    hfsb_buf        out = HFSB_INIT;
    char            hex[HFSB_SHA256_HEX];
    memset(&opts, 0, sizeof opts);
    opts.alloc.fn = out.alloc.fn = t_heap_fn;
    opts.alloc.user = out.alloc.user = &heap;
    t_put("huge", "");
    T_CHECK(hfsb_place_open(&opts, &place, &err) == HFSB_OK);
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
    hfsb_place_close(place);
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
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("gone-dir"), &err) ==
            HFSB_REFUSED);
    T_ERR(HFSB_REFUSED, "Is a directory: gone-dir");
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("gone-link/"), &err) ==
            HFSB_REFUSED);
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("gone-dir/.."), &err) ==
            HFSB_REFUSED);
    T_CHECK(hfsb_file_remove(NULL, HFSB_LIT("gone-link"), &err) == HFSB_OK);
    T_CHECK(t_exists("gone-dir") && !t_exists("gone-link"));
}

/* ---- paths that cannot be ---- */

static void bad_paths_have_clear_errors(void) {
    static const struct {
        const char *path;
        hfsb_status read, write;
        const char *read_says, *write_says;
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
        {"bad/", HFSB_REFUSED, HFSB_REFUSED, "Is a directory: bad/",
         "Is a directory: bad/"},
        {"bad/new/", HFSB_NOT_FOUND, HFSB_REFUSED, "File not found: bad/new/",
         "Is a directory: bad/new/"},
        {"bad/..", HFSB_REFUSED, HFSB_REFUSED, "Is a directory: bad/..",
         "Is a directory: bad/.."},
        {".", HFSB_REFUSED, HFSB_REFUSED, "Is a directory: .",
         "Is a directory: ."},
        {"/", HFSB_REFUSED, HFSB_REFUSED, "Is a directory: /",
         "Is a directory: /"},
        {"bad/no/../x", HFSB_NOT_FOUND, HFSB_NOT_FOUND,
         "File not found: bad/no/../x", "File not found: bad/no/../x"},
        {"bad/hollow/x", HFSB_NOT_FOUND, HFSB_NOT_FOUND,
         "File not found: bad/hollow/x",
         "File not found: bad/hollow/x (a part of the path is not a "
         "directory)"},
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
        T_CHECK(get_fails(cases[i].path) == cases[i].read);
        T_CHECK(strcmp(err.msg, cases[i].read_says) == 0);
        if (strcmp(err.msg, cases[i].read_says) != 0)
            printf("  is   %s\n  want %s\n", err.msg, cases[i].read_says);
        st = hfsb_file_write(NULL, path, HFSB_LIT(""), NULL, NULL, &err);
        T_CHECK(st == cases[i].write && st == err.code);
        if (!cases[i].write_says) continue;
        T_CHECK(strcmp(err.msg, cases[i].write_says) == 0);
        if (strcmp(err.msg, cases[i].write_says) != 0)
            printf("  is   %s\n  want %s\n", err.msg, cases[i].write_says);
    }
    T_CHECK(!t_exists("~") && !t_exists("~me"));
    T_CHECK(t_entries("bad", "") == 4);
    T_CLEAN("bad");
}

static void unusual_bytes_and_lengths_are_refused(void) {
    hfsb_buf       path = HFSB_INIT, out = HFSB_INIT;
    hfsb_file_info info;
    T_CHECK(hfsb_file_stat(NULL, HFSB_LIT("a\0b"), &info, &err) ==
            HFSB_REFUSED);
    T_ERR(HFSB_REFUSED, "The path has a NUL byte in it: a b");
    t_repeat(&path, "dir/", 1250); /* 5,000 bytes */
    T_CHECK(hfsb_buf_append(&path, HFSB_LIT("x")) == HFSB_OK);
    T_CHECK(get_fails(path.ptr) == HFSB_IO);
    T_CHECK(strstr(err.msg, "dir/...: the name is too long") != NULL);
    T_CHECK(put_fails(path.ptr, NULL) == HFSB_IO);
    T_CHECK(hfsb_file_remove(NULL, hfsb_buf_str(&path), &err) == HFSB_IO);
    T_CHECK(hfsb_file_key(NULL, hfsb_buf_str(&path), &out, &err) == HFSB_IO);
    T_CHECK(!t_exists("dir"));
    hfsb_buf_free(&path);
    hfsb_buf_free(&out);
}

static void no_parents_makes_none(void) {
    hfsb_file_write_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.no_parents = true;
    opts.no_sync = true;
    T_CHECK(put_fails("orphan/file", &opts) == HFSB_NOT_FOUND);
    T_ERR(HFSB_NOT_FOUND, "File not found: orphan/file");
    T_CHECK(!t_exists("orphan"));
    opts.no_parents = false;
    put("orphan/./and//more/file", "x", &opts);
    T_FILE("orphan/and/more/file", "x");
    (void)mkdir("~", 0755); /* once it is there, a name like any other */
    put("~/new/file", "x", NULL);
    T_FILE("~/new/file", "x");
}

/* ---- places ---- */

static void relative_paths_begin_in_the_work_directory(void) {
    hfsb_place_opts opts;
    hfsb_place     *place = NULL;
    hfsb_buf        out = HFSB_INIT;
    char            want[PATH_MAX + 16];
    memset(&opts, 0, sizeof opts);
    (void)mkdir("work", 0755);
    (void)mkdir("work/deep", 0755);
    t_put("work/deep/file", "1");
    t_put("work/file", "2");
    opts.work_dir = HFSB_LIT("work/deep/");
    T_CHECK(hfsb_place_open(&opts, &place, &err) == HFSB_OK);
    (void)snprintf(want, sizeof want, "%s/work/deep", t_top);
    T_CHECK(hfsb_str_equal(hfsb_place_work_dir(place), hfsb_cstr(want)));
    T_STR(hfsb_place_root(place), "");
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
    hfsb_place_close(place);
    opts.work_dir = HFSB_LIT("work/../work/deep");
    T_CHECK(hfsb_place_open(&opts, &place, &err) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_place_work_dir(place), hfsb_cstr(want)));
    hfsb_place_close(place);
    T_CHECK(hfsb_place_open(NULL, &place, &err) == HFSB_OK);
    T_STR(hfsb_place_work_dir(place), "");
    T_STR(hfsb_place_work_dir(NULL), "");
    T_STR(hfsb_place_root(NULL), "");
    hfsb_place_close(place);
    hfsb_place_close(NULL);
    hfsb_buf_free(&out);
}

static void a_place_that_is_not_there_is_an_error(void) {
    static const struct {
        const char *root, *work;
        const char *says;
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
    hfsb_place_opts opts;
    hfsb_place     *place = NULL;
    size_t          i;
    memset(&opts, 0, sizeof opts);
    t_put("a file", "");
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        opts.root = hfsb_cstr(cases[i].root);
        opts.work_dir = hfsb_cstr(cases[i].work);
        T_CHECK(hfsb_place_open(&opts, &place, &err) == cases[i].code);
        T_CHECK(place == NULL && err.code == cases[i].code);
        T_CHECK(strcmp(err.msg, cases[i].says) == 0);
        if (strcmp(err.msg, cases[i].says) != 0) printf("  %s\n", err.msg);
    }
    opts.work_dir = HFSB_LIT("a\0b");
    T_CHECK(hfsb_place_open(&opts, &place, &err) == HFSB_REFUSED);
}

/* ---- memory ---- */

static void each_call(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_place_opts   opts;
    hfsb_place       *place = NULL;
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
    st[0] = hfsb_place_open(&opts, &place, &err);
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
    hfsb_place_close(place);
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
    T_RUN(what_is_written_is_read);
    T_RUN(a_large_file_is_written_in_pieces);
    T_RUN(a_writer_given_up_leaves_no_trace);
    T_RUN(write_keeps_the_mode);
    T_RUN(a_new_file_follows_the_umask);
    T_RUN(write_keeps_the_owner);
    T_RUN(write_keeps_symbolic_links);
    T_RUN(write_through_a_dangling_link_makes_its_target);
    T_RUN(hard_links_stay_one_file);
#ifdef HFSBI_LINUX
    T_RUN(write_keeps_extended_attributes);
#endif
    T_RUN(create_refuses_what_exists);
    T_RUN(if_sha256_refuses_another_content);
    T_RUN(if_same_refuses_another_file);
    T_RUN(temporaries_of_the_dead_are_removed);
    T_RUN(a_living_writer_keeps_its_temporary);
    T_RUN(planted_temporaries_are_passed_by);
    T_RUN(readers_see_whole_contents);
    T_RUN(the_longest_names_can_be_written);
    T_RUN(stat_tells_what_is_there);
    T_RUN(one_file_has_one_key);
    T_RUN(a_read_has_its_limits);
    T_RUN(files_without_a_size_are_read);
    T_RUN(what_may_never_answer_is_not_opened);
    T_RUN(an_opened_file_is_plain);
    T_RUN(a_gigabyte_takes_no_memory);
    T_RUN(remove_takes_files_and_links);
    T_RUN(bad_paths_have_clear_errors);
    T_RUN(unusual_bytes_and_lengths_are_refused);
    T_RUN(no_parents_makes_none);
    T_RUN(relative_paths_begin_in_the_work_directory);
    T_RUN(a_place_that_is_not_there_is_an_error);
    T_RUN(every_allocation_may_fail);
    T_CHECK(t_descriptors() == fds);
    return t_end_files(__FILE__);
}
