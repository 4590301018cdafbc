/* test_server_files.c - /api/files over real connections: bytes go up and
   come down as they are, in parts, under conditions, and not at all when they
   should not. */
#include "../support/t_server_files.h"

/* ---- round trips ---- */

static void up_and_down(size_t n, bool chunked, size_t cut) {
    hfsb_buf bytes = HFSB_INIT, there = HFSB_INIT;
    char     hex[HFSB_SHA256_HEX], text[64];
    ts_reply r = HFSB_INIT;
    ts_conn  c = ts_connect(&srv);
    hfsb_str rest;
    make_bytes(&bytes, n);
    unlink("trip");
    if (!chunked) {
        ts_ask(&c, "PUT", "/api/files?path=trip", "", hfsb_buf_str(&bytes));
    } else {
        ts_ask(&c, "PUT", "/api/files?path=trip",
               "Transfer-Encoding: chunked\r\n", nothing);
        for (rest = hfsb_buf_str(&bytes); rest.len;
             rest = hfsb_str_slice(rest, cut, rest.len)) {
            hfsb_str one = hfsb_str_slice(rest, 0, cut);
            snprintf(text, sizeof text, "%zx\r\n", one.len);
            ts_send(&c, hfsb_cstr(text));
            ts_send(&c, one);
            ts_send(&c, HFSB_LIT("\r\n"));
        }
        ts_send(&c, HFSB_LIT("0\r\n\r\n"));
    }
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 201, "\"success\":true");
    hfsb_sha256_hex(hfsb_buf_str(&bytes), hex);
    T_CHECK(hfsb_str_equal(ts_text(&r, "sha256"), hfsb_cstr(hex)));
    T_CHECK(ts_int(&r, "bytes") == (long long)n);
    T_CHECK(ts_flag(&r, "created") && !ts_flag(&r, "in_place"));
    snprintf(text, sizeof text, "Wrote %zu bytes to trip", n);
    T_CHECK(hfsb_str_equal(ts_text(&r, "output"), hfsb_cstr(text)));
    T_STR(ts_text(&r, "error"), "");
    T_CHECK(t_read_file("trip", &there));
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&there), hfsb_buf_str(&bytes)));
    /* and down, on the same connection */
    ts_ask(&c, "GET", "/api/files?path=trip", "", nothing);
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, NULL);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.body), hfsb_buf_str(&bytes)));
    ts_hang_up(&c);
    ts_drop(&r);
    hfsb_buf_free(&bytes);
    hfsb_buf_free(&there);
}

static void bytes_go_up_and_come_down_as_they_are(void) {
    static const size_t sizes[] = {0,      1,      65535,   65536,
                                   65537,  196607, 196608,  196609,
                                   400000, 999999, 5 << 20, (5 << 20) + 1};
    size_t i;
    start();
    for (i = 0; i < TT_COUNT(sizes); i++) {
        up_and_down(sizes[i], false, 0);
        if (sizes[i] > 1000000) continue;
        up_and_down(sizes[i], true, 100000);
        up_and_down(sizes[i], true, 777);
    }
    T_CLEAN(".");
    stop();
}

static void the_same_without_threads(void) {
    hfsb_server_opts o = HFSB_INIT;
    o.no_threads = true;
    start_with("", &o);
    up_and_down(0, false, 0);
    up_and_down(1000000, false, 0);
    up_and_down(1000000, true, 5000);
    stop();
}

/* ---- the head ---- */

static void download_describes_the_file_in_its_head(void) {
    ts_reply       r = HFSB_INIT, head = HFSB_INIT;
    struct timespec when[2];
    hfsb_str       none = HFSB_INIT;
    start();
    t_put("file", "some text");
    T_CHECK(chmod("file", 0751) == 0);
    when[0].tv_sec = when[1].tv_sec = 784111777; /* the date of the RFCs */
    when[0].tv_nsec = when[1].tv_nsec = 5;
    T_CHECK(utimensat(AT_FDCWD, "file", when, 0) == 0);
    get(&r, "path=file", "");
    TS_IS(&r, 200, "some text");
    FIELD(&r, "Content-Length", "9");
    FIELD(&r, "Content-Type", "application/octet-stream");
    FIELD(&r, "Accept-Ranges", "bytes");
    FIELD(&r, "X-Hfsb-Mode", "0751");
    FIELD(&r, "X-Hfsb-Size", "9");
    FIELD(&r, "Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT");
    T_CHECK(hfsb_str_starts(ts_field(&r, "ETag"), HFSB_LIT("\"")));
    T_CHECK(hfsb_str_ends(ts_field(&r, "ETag"), HFSB_LIT(".5\"")));
    ts_call(&srv, &head, "HEAD", "/api/files?path=file", "", none);
    TS_IS(&head, 200, NULL);
    T_CHECK(head.body.len == 0);
    FIELD(&head, "Content-Length", "9");
    T_CHECK(hfsb_str_equal(ts_field(&head, "ETag"), ts_field(&r, "ETag")));
    /* a Range is for GET alone */
    ts_call(&srv, &head, "HEAD", "/api/files?path=file",
            "Range: bytes=0-1\r\n", none);
    TS_IS(&head, 200, NULL);
    FIELD(&head, "Content-Length", "9");
    ts_call(&srv, &head, "HEAD", "/api/files?path=none", "", none);
    TS_IS(&head, 404, NULL);
    ts_drop(&r);
    ts_drop(&head);
    stop();
}

/* Their size reads as 0. */
static void files_of_proc_come_whole(void) {
    ts_reply r = HFSB_INIT;
    hfsb_buf there = HFSB_INIT;
    if (!t_read_file("/proc/self/cmdline", &there) || !there.len) {
        t_skipped++;
        hfsb_buf_free(&there);
        return;
    }
    start();
    get(&r, "path=/proc/self/cmdline", "Range: bytes=0-0\r\n");
    TS_IS(&r, 200, NULL);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.body), hfsb_buf_str(&there)));
    T_CHECK(!ts_field(&r, "ETag").ptr && !ts_field(&r, "Accept-Ranges").ptr);
    ts_call(&srv, &r, "HEAD", "/api/files?path=/proc/self/cmdline", "",
            nothing);
    TS_IS(&r, 200, NULL);
    T_CHECK(atoi(ts_field(&r, "Content-Length").ptr) == (int)there.len);
    hfsb_buf_free(&there);
    ts_drop(&r);
    stop();
}

/* ---- ranges ---- */

static void a_range_is_a_part_of_the_file(void) {
    static const struct {
        const char *range;
        int         status;
        const char *content_range, *body;
    } cases[] = {
        {"bytes=0-0", 206, "bytes 0-0/10", "0"},
        {"bytes=2-4", 206, "bytes 2-4/10", "234"},
        {"bytes=9-9", 206, "bytes 9-9/10", "9"},
        {"bytes=7-", 206, "bytes 7-9/10", "789"},
        {"bytes=0-", 206, "bytes 0-9/10", "0123456789"},
        {"bytes=8-10", 206, "bytes 8-9/10", "89"},
        {"bytes=-3", 206, "bytes 7-9/10", "789"},
        {"bytes=-10", 206, "bytes 0-9/10", "0123456789"},
        {"bytes=-11", 206, "bytes 0-9/10", "0123456789"},
        {"BYTES=1-2", 206, "bytes 1-2/10", "12"},
        {"bytes= 1-2", 206, "bytes 1-2/10", "12"},
        {"bytes=-9223372036854775807", 206, "bytes 0-9/10", "0123456789"},
        {"bytes=-18446744073709551616", 206, "bytes 0-9/10", "0123456789"},
        {"bytes=-99999999999999999999999", 206, "bytes 0-9/10", "0123456789"},
        {"bytes=0-18446744073709551615", 206, "bytes 0-9/10", "0123456789"},
        {"bytes=3-18446744073709551616", 206, "bytes 3-9/10", "3456789"},
        {"bytes=000003-0000000000000000000000004", 206, "bytes 3-4/10", "34"},
        {"bytes=10-", 416, "bytes */10", NULL},
        {"bytes=10-20", 416, "bytes */10", NULL},
        {"bytes=18446744073709551615-", 416, "bytes */10", NULL},
        {"bytes=18446744073709551616-18446744073709551617", 416, "bytes */10",
         NULL},
        {"bytes=-0", 416, "bytes */10", NULL},
        {"bytes=4-2", 200, NULL, "0123456789"},
        {"bytes=-", 200, NULL, "0123456789"},
        {"bytes=", 200, NULL, "0123456789"},
        {"bytes", 200, NULL, "0123456789"},
        {"bytes=1", 200, NULL, "0123456789"},
        {"bytes=1-2,4-5", 200, NULL, "0123456789"},
        {"bytes=1-2,", 200, NULL, "0123456789"},
        {"bytes=a-b", 200, NULL, "0123456789"},
        {"bytes=1-2x", 200, NULL, "0123456789"},
        {"bytes=+1-2", 200, NULL, "0123456789"},
        {"bytes=1--2", 200, NULL, "0123456789"},
        {"bytes=0x1-2", 200, NULL, "0123456789"},
        {"lines=1-2", 200, NULL, "0123456789"},
        {"", 200, NULL, "0123456789"},
        {"bytes=1-2\r\nRange: bytes=3-4", 200, NULL, "0123456789"},
    };
    ts_reply r = HFSB_INIT;
    hfsb_buf many = HFSB_INIT;
    char     line[256];
    size_t   i;
    start();
    t_put("digits", "0123456789");
    for (i = 0; i < TT_COUNT(cases); i++) {
        hfsb_str got;
        field_line(line, sizeof line, "Range", hfsb_cstr(cases[i].range));
        get(&r, "path=digits", line);
        TS_IS(&r, cases[i].status, cases[i].body);
        got = ts_field(&r, "Content-Range");
        T_CHECK(cases[i].content_range
                    ? hfsb_str_equal(got, hfsb_cstr(cases[i].content_range))
                    : !got.ptr);
        T_CHECK(!cases[i].body || r.body.len == strlen(cases[i].body));
        if (cases[i].status == 416) TS_REFUSED(&r, 416, "10 bytes");
        if (t_failed) printf("  at %s\n", cases[i].range);
        if (t_failed) break;
    }
    t_repeat(&many, "Range: bytes=0-1", 1);
    t_repeat(&many, ",0-1", 1000);
    t_repeat(&many, "\r\n", 1);
    get(&r, "path=digits", many.ptr);
    TS_IS(&r, 200, "0123456789");
    t_put("empty", "");
    get(&r, "path=empty", "Range: bytes=-5\r\n");
    TS_IS(&r, 416, NULL);
    FIELD(&r, "Content-Range", "bytes */0");
    get(&r, "path=empty", "");
    TS_IS(&r, 200, NULL);
    T_CHECK(r.body.len == 0);
    ts_drop(&r);
    hfsb_buf_free(&many);
    stop();
}

/* The parser alone, at sizes that no disk has. */
static void ranges_do_not_overflow(void) {
    unsigned long long max = ~0ull, first, length;
    T_CHECK(hfsbi_range_parse(HFSB_LIT("bytes=0-"), max, &first, &length) ==
            HFSBI_RANGE_PART);
    T_CHECK(first == 0 && length == max);
    T_CHECK(hfsbi_range_parse(HFSB_LIT("bytes=-18446744073709551615"), max,
                              &first, &length) == HFSBI_RANGE_PART);
    T_CHECK(first == 0 && length == max);
    T_CHECK(hfsbi_range_parse(
                HFSB_LIT("bytes=18446744073709551614-18446744073709551615"),
                max, &first, &length) == HFSBI_RANGE_PART);
    T_CHECK(first == max - 1 && length == 1);
    T_CHECK(hfsbi_range_parse(HFSB_LIT("bytes=18446744073709551615-"), max,
                              &first, &length) == HFSBI_RANGE_BEYOND);
}

/* ---- conditions ---- */

static void conditions_of_a_download(void) {
    ts_reply r = HFSB_INIT;
    char     etag[96], line[400], date[64];
    start();
    t_put("cond", "0123456789");
    get(&r, "path=cond", "");
    snprintf(etag, sizeof etag, "%.*s", (int)ts_field(&r, "ETag").len,
             ts_field(&r, "ETag").ptr);
    snprintf(date, sizeof date, "%.*s",
             (int)ts_field(&r, "Last-Modified").len,
             ts_field(&r, "Last-Modified").ptr);
    {
        const struct {
            const char *format;
            int         status;
        } cases[] = {
            {"If-None-Match: %s\r\n", 304},
            {"If-None-Match: W/%s\r\n", 304},
            {"If-None-Match: \"a,b\", %s\r\n", 304},
            {"If-None-Match: \"x\"\r\nIf-None-Match: %s\r\n", 304},
            {"If-None-Match: *%.0s\r\n", 304},
            {"If-None-Match: \"x%.0s\"\r\n", 200},
            {"If-None-Match: x%s\r\n", 200},
            {"If-None-Match: \"%.0s\r\n", 200},
            {"If-None-Match: \r\n%.0s", 200},
            {"If-Match: %s\r\n", 200},
            {"If-Match: *%.0s\r\n", 200},
            {"If-Match: W/%s\r\n", 412},
            {"If-Match: \"x%.0s\"\r\n", 412},
            {"Range: bytes=1-1\r\nIf-Range: %s\r\n", 206},
            {"Range: bytes=1-1\r\nIf-Range: W/%s\r\n", 200},
            {"Range: bytes=1-1\r\nIf-Range: \"x%.0s\"\r\n", 200},
            {"Range: bytes=99-\r\nIf-Range: \"x%.0s\"\r\n", 200},
            {"Range: bytes=1-1\r\nIf-None-Match: %s\r\n", 304},
        };
        size_t i;
        for (i = 0; i < TT_COUNT(cases); i++) {
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#endif
            snprintf(line, sizeof line, cases[i].format, etag);
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
            get(&r, "path=cond", line);
            TS_IS(&r, cases[i].status, NULL);
            if (r.status == 304) {
                T_CHECK(r.body.len == 0);
                T_CHECK(hfsb_str_equal(ts_field(&r, "ETag"),
                                       hfsb_cstr(etag)));
            }
            if (r.status == 412) TS_REFUSED(&r, 412, "If-Match");
        }
    }
    field_line(line, sizeof line, "If-Modified-Since", hfsb_cstr(date));
    get(&r, "path=cond", line);
    TS_IS(&r, 304, NULL);
    get(&r, "path=cond",
        "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    TS_IS(&r, 200, "0123456789");
    get(&r, "path=none", "If-Match: *\r\n");
    TS_REFUSED(&r, 404, "File not found: none");
    ts_drop(&r);
    stop();
}

static void conditions_of_an_upload(void) {
    ts_reply r = HFSB_INIT;
    char     line[200];
    start();
    put(&r, "path=if", "If-Match: *\r\n", HFSB_LIT("no"));
    TS_REFUSED(&r, 412, "No such file");
    T_CHECK(!t_exists("if"));
    put(&r, "path=if", "If-None-Match: *\r\n", HFSB_LIT("one"));
    TS_IS(&r, 201, NULL);
    field_line(line, sizeof line, "If-Match", ts_field(&r, "ETag"));
    put(&r, "path=if", "If-None-Match: *\r\n", HFSB_LIT("two"));
    TS_REFUSED(&r, 412, "exists already");
    T_FILE("if", "one");
    get(&r, "path=if", line);
    TS_IS(&r, 200, "one"); /* the tag of the upload is that of the file */
    put(&r, "path=if", line, HFSB_LIT("three"));
    TS_IS(&r, 200, "\"created\":false");
    T_FILE("if", "three");
    put(&r, "path=if", line, HFSB_LIT("four"));
    TS_REFUSED(&r, 412, "has changed");
    T_FILE("if", "three");
    put(&r, "path=if", "If-Match: *\r\n", HFSB_LIT("five"));
    TS_IS(&r, 200, NULL);
    T_FILE("if", "five");
    put(&r, "path=if", "If-None-Match: \"x\"\r\n", HFSB_LIT("six"));
    TS_IS(&r, 200, NULL);
    T_FILE("if", "six");
    T_CLEAN(".");
    ts_drop(&r);
    stop();
}

/* They hold at the end of the body, not only at its beginning. */
static void a_condition_holds_until_the_end(void) {
    ts_reply r = HFSB_INIT;
    ts_conn  c;
    char     line[300];
    int      created;
    start();
    for (created = 0; created < 2; created++) {
        if (created) {
            unlink("late");
            snprintf(line, sizeof line,
                     "If-None-Match: *\r\nContent-Length: 3\r\n");
        } else {
            t_put("late", "old");
            get(&r, "path=late", "");
            field_line(line, sizeof line, "If-Match", ts_field(&r, "ETag"));
            snprintf(line + strlen(line), sizeof line - strlen(line),
                     "Content-Length: 3\r\n");
        }
        c = ts_connect(&srv);
        ts_ask(&c, "PUT", "/api/files?path=late", line, nothing);
        ts_send(&c, HFSB_LIT("n"));
        while (t_entries(".", ".late.hfsb-") == 0) usleep(1000);
        t_put("late", "changed");
        ts_send(&c, HFSB_LIT("ew"));
        T_CHECK(ts_read(&c, &r, false));
        TS_REFUSED(&r, 412, NULL);
        T_FILE("late", "changed");
        ts_hang_up(&c);
    }
    T_CLEAN(".");
    ts_drop(&r);
    stop();
}

/* ---- what stays of a file ---- */

static void mode_and_link_stay(void) {
    ts_reply    r = HFSB_INIT;
    struct stat st;
    start();
    put(&r, "path=m/o/d/e", "", HFSB_LIT("x"));
    TS_IS(&r, 201, NULL);
    T_CHECK(t_mode("m/o/d/e") == 0644);
    put(&r, "path=m/o/d/e&mode=0755", "", HFSB_LIT("y"));
    TS_IS(&r, 200, NULL);
    T_CHECK(t_mode("m/o/d/e") == 0755);
    put(&r, "path=m/o/d/e", "", HFSB_LIT("z"));
    TS_IS(&r, 200, NULL);
    T_CHECK(t_mode("m/o/d/e") == 0755);
    put(&r, "path=m/new&mode=600", "", HFSB_LIT("z"));
    TS_IS(&r, 201, NULL);
    T_CHECK(t_mode("m/new") == 0600);
    T_CHECK(symlink("o/d/e", "m/link") == 0);
    put(&r, "path=m/link", "", HFSB_LIT("through"));
    TS_IS(&r, 200, NULL);
    T_CHECK(lstat("m/link", &st) == 0 && S_ISLNK(st.st_mode));
    T_FILE("m/o/d/e", "through");
    T_CHECK(link("m/o/d/e", "m/hard") == 0);
    put(&r, "path=m/hard", "", HFSB_LIT("both"));
    TS_IS(&r, 200, "\"in_place\":true");
    T_FILE("m/o/d/e", "both");
    /* names with everything in them */
    put(&r, "path=m/a%20b%26c%3Dd%25%C3%A4+e", "", HFSB_LIT("name"));
    TS_IS(&r, 201, "Wrote 4 bytes to m/a b&c=d%\xC3\xA4 e");
    T_FILE("m/a b&c=d%\xC3\xA4 e", "name");
    ts_drop(&r);
    stop();
}

static void a_file_can_be_removed(void) {
    ts_reply r = HFSB_INIT;
    char     line[200];
    start();
    t_put("gone", "x");
    ts_call(&srv, &r, "DELETE", "/api/files?path=gone",
            "If-Match: \"x\"\r\n", nothing);
    TS_REFUSED(&r, 412, NULL);
    get(&r, "path=gone", "");
    field_line(line, sizeof line, "If-Match", ts_field(&r, "ETag"));
    ts_call(&srv, &r, "DELETE", "/api/files?path=gone", line, nothing);
    TS_OK(&r, "Removed gone");
    T_CHECK(!t_exists("gone"));
    ts_call(&srv, &r, "DELETE", "/api/files?path=gone", "", nothing);
    TS_REFUSED(&r, 404, "File not found: gone");
    ts_call(&srv, &r, "DELETE", "/api/files?path=gone", line, nothing);
    TS_REFUSED(&r, 412, NULL);
    ts_call(&srv, &r, "DELETE", "/api/files?path=.", "", nothing);
    TS_REFUSED(&r, 400, "Is a directory");
    ts_call(&srv, &r, "DELETE", "/api/files", "", nothing);
    TS_REFUSED(&r, 422, NULL);
    ts_drop(&r);
    stop();
}

/* ---- refusals ---- */

static void what_cannot_be_is_refused(void) {
    static const struct {
        const char *method, *target;
        int         status;
        const char *says;
    } cases[] = {
        {"GET", "/api/files", 422, "\"loc\":[\"query\",\"path\"]"},
        {"GET", "/api/files?path=", 422, "path is required"},
        {"GET", "/api/files?Path=x", 422, "\"type\":\"missing\""},
        {"GET", "/api/files?path=%zz", 400, NULL},
        {"GET", "/api/files?path=a%00b", 400, NULL},
        {"GET", "/api/files?path=none", 404, "File not found: none"},
        {"GET", "/api/files?path=file/x", 404, "not a directory"},
        {"GET", "/api/files?path=~/x", 404, "is not expanded"},
        {"GET", "/api/files?path=dir", 400, "Is a directory: dir"},
        {"GET", "/api/files?path=dir/", 400, "Is a directory: dir/"},
        {"GET", "/api/files?path=fifo", 400, "Is a FIFO"},
        {"GET", "/api/files?path=turn", 400, "too many symbolic links"},
        {"PUT", "/api/files", 422, "path is required"},
        {"PUT", "/api/files?path=dir", 400, "Is a directory: dir"},
        {"PUT", "/api/files?path=new/", 400, "Is a directory: new/"},
        {"PUT", "/api/files?path=fifo", 400, "Is a FIFO"},
        {"PUT", "/api/files?path=turn", 400, "too many symbolic links"},
        {"PUT", "/api/files?path=file/x", 404, "not a directory"},
        {"PUT", "/api/files?path=file&mode=", 422, "\"mode\""},
        {"PUT", "/api/files?path=file&mode=0", 422, "octal"},
        {"PUT", "/api/files?path=file&mode=8", 422, "octal"},
        {"PUT", "/api/files?path=file&mode=10000", 422, "octal"},
        {"PUT", "/api/files?path=file&mode=000755", 422, "octal"},
        {"PUT", "/api/files?path=file&mode=-1", 422, "octal"},
        {"PUT", "/api/files?path=file&mode=u%2Bx", 422, "\"u+x\""},
        {"POST", "/api/files?path=file", 405, "Method Not Allowed"},
    };
    ts_reply r = HFSB_INIT;
    hfsb_buf path = HFSB_INIT;
    size_t   i;
    start();
    t_put("file", "old");
    T_CHECK(mkdir("dir", 0755) == 0 && mkfifo("fifo", 0666) == 0);
    T_CHECK(symlink("turn", "turn") == 0);
    for (i = 0; i < TT_COUNT(cases); i++) {
        size_t failed = t_failed;
        ts_call(&srv, &r, cases[i].method, cases[i].target, "",
                cases[i].method[0] == 'G' ? nothing : HFSB_LIT("new"));
        TS_REFUSED(&r, cases[i].status, cases[i].says);
        if (t_failed > failed) printf("  at %s\n", cases[i].target);
    }
    put(&r, "path=file", "Content-Range: bytes 0-2/9\r\n", HFSB_LIT("new"));
    TS_REFUSED(&r, 400, "Content-Range");
    t_repeat(&path, "/api/files?path=", 1);
    t_repeat(&path, "n", 256);
    ts_get(&srv, &r, path.ptr);
    TS_REFUSED(&r, 400, "the name is too long");
    ts_call(&srv, &r, "PUT", path.ptr, "", HFSB_LIT("new"));
    TS_REFUSED(&r, 400, "the name is too long");
    T_FILE("file", "old");
    T_CLEAN(".");
    hfsb_buf_free(&path);
    ts_drop(&r);
    stop();
}

/* The reply comes though most of the body was never sent. */
static void a_refusal_does_not_wait_for_the_body(void) {
    ts_reply r = HFSB_INIT;
    ts_conn  c;
    start();
    c = ts_connect(&srv);
    ts_ask(&c, "PUT", "/api/files?path=dir", "Content-Length: 99999999\r\n",
           nothing);
    T_CHECK(ts_read(&c, &r, false));
    TS_REFUSED(&r, 400, "Is a directory");
    ts_hang_up(&c);
    c = ts_connect(&srv);
    ts_ask(&c, "PUT", "/api/files?path=dir",
           "Expect: 100-continue\r\nContent-Length: 5\r\n", nothing);
    T_CHECK(ts_await(&c, "\r\n\r\n", 20000));
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&c.in), HFSB_LIT("HTTP/1.1 400 ")));
    ts_hang_up(&c);
    c = ts_connect(&srv);
    ts_ask(&c, "PUT", "/api/files?path=expected",
           "Expect: 100-continue\r\nContent-Length: 5\r\n", nothing);
    T_CHECK(ts_await(&c, "HTTP/1.1 100 Continue\r\n\r\n", 20000));
    ts_send(&c, HFSB_LIT("hello"));
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 201, NULL);
    T_FILE("expected", "hello");
    ts_hang_up(&c);
    ts_drop(&r);
    stop();
}

/* ---- a root ---- */

static void no_path_leads_out_of_the_root(void) {
    static const char *out[] = {
        "../secret", "../nosuch",  "in/../../secret", "link",
        "deep/x",    "deep/nosuch", "/etc/passwd",    "/etc/nosuch"};
    ts_reply r = HFSB_INIT;
    char     target[600], first[4096] = "";
    size_t   i, put_it;
    T_CHECK(mkdir("root", 0755) == 0 && mkdir("root/in", 0755) == 0);
    T_CHECK(mkdir("outside", 0755) == 0);
    t_put("secret", "secret");
    t_put("outside/x", "secret");
    T_CHECK(symlink("../secret", "root/link") == 0);
    T_CHECK(symlink("../outside", "root/deep") == 0);
    start_with("root", NULL);
    for (i = 0; i < TT_COUNT(out); i++)
        for (put_it = 0; put_it < 2; put_it++) {
            hfsb_buf  body = HFSB_INIT;
            size_t    at;
            if (put_it && out[i][0] == '/') continue; /* of this machine */
            snprintf(target, sizeof target, "/api/files?path=%s", out[i]);
            ts_call(&srv, &r, put_it ? "PUT" : "GET", target, "",
                    put_it ? HFSB_LIT("new") : nothing);
            TS_REFUSED(&r, 403, "Path is outside the root");
            /* the same words but for the name */
            at = hfsb_str_find(hfsb_buf_str(&r.body), hfsb_cstr(out[i]));
            T_CHECK(at != HFSB_NPOS);
            T_CHECK(hfsb_buf_append(&body, hfsb_str_slice(
                                               hfsb_buf_str(&r.body), 0,
                                               at)) == HFSB_OK);
            if (!first[0]) snprintf(first, sizeof first, "%s", body.ptr);
            T_CHECK(strcmp(first, body.ptr) == 0);
            hfsb_buf_free(&body);
            /* nor do conditions tell */
            ts_call(&srv, &r, put_it ? "PUT" : "GET", target,
                    "If-None-Match: *\r\n",
                    put_it ? HFSB_LIT("new") : nothing);
            TS_REFUSED(&r, 403, "Path is outside the root");
        }
    ts_call(&srv, &r, "DELETE", "/api/files?path=../secret", "", nothing);
    TS_REFUSED(&r, 403, "Path is outside the root");
    put(&r, "path=in/new", "", HFSB_LIT("new"));
    TS_IS(&r, 201, NULL);
    T_FILE("root/in/new", "new");
    put(&r, "path=new/../in/new", "", HFSB_LIT("newer"));
    T_FILE("secret", "secret");
    T_FILE("outside/x", "secret");
    T_CHECK(!t_exists("nosuch") && !t_exists("outside/nosuch"));
    ts_drop(&r);
    stop();
}

int main(void) {
    tt_begin();
    (void)umask(022);
    TT_RUN(ranges_do_not_overflow);
    TT_RUN(bytes_go_up_and_come_down_as_they_are);
    TT_RUN(the_same_without_threads);
    TT_RUN(download_describes_the_file_in_its_head);
    TT_RUN(files_of_proc_come_whole);
    TT_RUN(a_range_is_a_part_of_the_file);
    TT_RUN(conditions_of_a_download);
    TT_RUN(conditions_of_an_upload);
    TT_RUN(a_condition_holds_until_the_end);
    TT_RUN(mode_and_link_stay);
    TT_RUN(a_file_can_be_removed);
    TT_RUN(what_cannot_be_is_refused);
    TT_RUN(a_refusal_does_not_wait_for_the_body);
    TT_RUN(no_path_leads_out_of_the_root);
    return TT_END();
}
