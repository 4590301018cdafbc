/* test_upload.c - bodies to files and files to replies, as other protocols use
   them: bodies in parts, ranges of a file, callbacks, and their ends. */
#include "../support/t_server_files.h"

/* ---- a server with three routes ---- */

static int  users;       /* that were not freed yet */
static bool inline_work; /* the server has no threads */

/* The part "skip" is skipped, "refuse" is refused; others become files. */
static hfsb_status give_path(void *user, const hfsbi_multipart *part,
                             hfsb_buf *path, int *status, hfsb_err *err) {
    (void)user;
    if (hfsb_str_equal(part->name, HFSB_LIT("skip"))) return HFSB_OK;
    if (hfsb_str_equal(part->name, HFSB_LIT("refuse"))) {
        *status = 418;
        return hfsbi_fail(err, HFSB_REFUSED, 0, "refused by the test");
    }
    if (hfsb_buf_append(path, part->filename) == HFSB_OK) return HFSB_OK;
    return hfsbi_fail_status(err, HFSB_NOMEM, "Path");
}

static hfsb_status make_shared(void *user, hfsb_buf *path,
                               hfsb_file_write_opts *write, int *status,
                               hfsb_err *err) {
    (void)user, (void)status;
    write->mode = 0640;
    write->no_sync = true; /* quicker */
    if (!hfsb_str_equal(hfsb_buf_str(path), HFSB_LIT("renamed")))
        return HFSB_OK;
    hfsb_buf_truncate(path, 0);
    if (hfsb_buf_append(path, HFSB_LIT("other")) == HFSB_OK) return HFSB_OK;
    return hfsbi_fail_status(err, HFSB_NOMEM, "Path");
}

/* Replies "status error [path bytes sha256]..." */
static void tell(void *user, hfsb_request *request,
                 const hfsbi_upload_end *end) {
    hfsb_buf text = HFSB_INIT;
    char     line[700];
    size_t   i;
    (void)user;
    users--;
    T_CHECK(end->err || !end->status);
    snprintf(line, sizeof line, "%d %.100s", end->status,
             end->err && end->status >= 400 ? end->err->msg : "");
    if (hfsb_buf_append(&text, hfsb_cstr(line)) != HFSB_OK) abort();
    for (i = 0; i < end->file_count; i++) {
        const hfsbi_upload_file *f = &end->files[i];
        snprintf(line, sizeof line, " [%.300s %llu%s %.8s]", f->path.ptr,
                 f->written.bytes, f->written.created ? " new" : "",
                 f->sha256);
        if (hfsb_buf_append(&text, hfsb_cstr(line)) != HFSB_OK) abort();
    }
    hfsb_reply(request, end->status ? end->status : 500, "text/plain",
               hfsb_buf_str(&text));
    hfsb_buf_free(&text);
}

static void begin_parts(void *user, hfsb_request *request) {
    hfsbi_upload_opts opts = HFSB_INIT;
    opts.tools = (const hfsb_tools *)user;
    opts.part = give_path;
    opts.prepare = make_shared;
    opts.max_parts = 8;
    opts.done = tell;
    users++;
    hfsbi_upload_start(request, &opts);
}

static unsigned long long number(hfsb_request *request, const char *key) {
    hfsb_buf           text = HFSB_INIT;
    unsigned long long n = 0;
    if (hfsb_request_query(request, key, &text, NULL) == HFSB_OK)
        n = strtoull(text.ptr, NULL, 10);
    hfsb_buf_free(&text);
    return n;
}

static void begin_range(void *user, hfsb_request *request) {
    hfsbi_upload_opts opts = HFSB_INIT;
    hfsbi_range_opts  range = HFSB_INIT;
    range.offset = number(request, "offset");
    opts.tools = (const hfsb_tools *)user;
    opts.path = HFSB_LIT("ranged");
    opts.range = &range;
    opts.no_sha256 = true;
    opts.done = tell;
    users++;
    hfsbi_upload_start(request, &opts);
}

static bool add_field(void *user, hfsb_request *request, int status,
                      const hfsb_file_info *info) {
    char text[64];
    (void)user;
    snprintf(text, sizeof text, "%d %llu", status, info->size);
    return hfsb_reply_field(request, "X-Seen", hfsb_cstr(text)) == HFSB_OK;
}

static void say_no(void *user, hfsb_request *request, int status,
                   const hfsb_err *err) {
    char text[400];
    (void)user;
    snprintf(text, sizeof text, "refused %d %s", status, err->msg);
    hfsb_reply(request, 418, "text/plain", hfsb_cstr(text));
}

static void release(void *user) {
    (void)user;
    users--;
}

static void send_file(void *user, hfsb_request *request) {
    hfsbi_fetch_opts opts = HFSB_INIT;
    hfsb_buf         path = HFSB_INIT;
    if (hfsb_request_query(request, "path", &path, NULL) != HFSB_OK) abort();
    opts.tools = (const hfsb_tools *)user;
    opts.path = hfsb_buf_str(&path);
    opts.type = "text/odd";
    opts.part = number(request, "length") > 0;
    opts.offset = number(request, "offset");
    opts.length = number(request, "length");
    opts.fields = add_field;
    opts.refuse = say_no;
    opts.release = release;
    users++;
    hfsbi_fetch_start(request, &opts);
    hfsb_buf_free(&path);
}

static void serve(void) {
    hfsb_tools_opts  o = HFSB_INIT;
    hfsb_server_opts server = HFSB_INIT;
    hfsb_route       route = HFSB_INIT;
    memset(&the_box, 0, sizeof the_box);
    o.alloc = tt_alloc();
    server.no_threads = inline_work;
    ts_open(&srv, &server);
    if (hfsb_tools_open(&o, &the_box.tools, NULL) != HFSB_OK) abort();
    the_box.part.free = box_free;
    hfsbi_server_part_add(srv.server, &the_box.part);
    route.user = the_box.tools;
    route.method = "GET";
    route.path = "/fetch";
    route.fn = send_file;
    if (hfsb_server_add(srv.server, &route, NULL) != HFSB_OK) abort();
    route.method = "POST";
    route.path = "/parts";
    route.begin = begin_parts;
    route.body = hfsbi_upload_body;
    route.fn = hfsbi_upload_finish;
    if (hfsb_server_add(srv.server, &route, NULL) != HFSB_OK) abort();
    route.path = "/range";
    route.begin = begin_range;
    if (hfsb_server_add(srv.server, &route, NULL) != HFSB_OK) abort();
    users = 0;
    ts_run(&srv);
}

static void wait_clean(void) {
    int i;
    for (i = 0; i < 20000 && t_entries(".", ".hfsb-") != 0; i++) usleep(1000);
    T_CHECK(i < 20000);
}

static void end(void) {
    stop();
    T_CHECK(users == 0);
    T_CLEAN(".");
}

/* ---- bodies in parts ---- */

#define TYPE "Content-Type: multipart/form-data; boundary=cut\r\n"
#define HEAD(name, file)                                            \
    "--cut\r\nContent-Disposition: form-data; name=\"" name "\"; " \
    "filename=\"" file "\"\r\n\r\n"

static const char three[] = HEAD("file", "one") "first\r\n" /* */
    HEAD("skip", "never") "nothing\r\n"                      /* */
    HEAD("file", "dir/two") "\r\n--cu\r\n-cut no\r\n"      /* */
    HEAD("file", "empty") "\r\n"                             /* */
    "--cut--\r\n";

static void forget(void) {
    unlink("one"), unlink("dir/two"), unlink("empty"), unlink("two");
    unlink("other");
}

static void check_three(const ts_reply *r) {
    struct stat st;
    T_CHECK(r->status == 200);
    T_STR(hfsb_buf_str(&r->body),
          "200  [one 5 new a7937b64] [dir/two 15 new 7cda8b4f] "
          "[empty 0 new e3b0c442]");
    T_FILE("one", "first");
    T_FILE("dir/two", "\r\n--cu\r\n-cut no");
    T_FILE("empty", "");
    T_CHECK(access("never", F_OK) != 0);
    T_CHECK(stat("one", &st) == 0 && (st.st_mode & 0777) == 0640);
}

static void each_part_becomes_a_file(void) {
    ts_reply r = HFSB_INIT;
    serve();
    ts_call(&srv, &r, "POST", "/parts", TYPE, hfsb_cstr(three));
    check_three(&r);
    forget();
    ts_call(&srv, &r, "POST", "/parts", TYPE,
            HFSB_LIT(HEAD("file", "renamed") "x\r\n--cut--"));
    T_STR(hfsb_buf_str(&r.body), "200  [other 1 new 2d711642]");
    T_CHECK(access("renamed", F_OK) != 0);
    forget();
    ts_drop(&r);
    end();
}

/* The body arrives in two packets, cut anywhere. */
static void a_body_may_be_cut_anywhere(void) {
    size_t   i, n = sizeof three - 1;
    char     length[128];
    ts_reply r = HFSB_INIT;
    snprintf(length, sizeof length, TYPE "Content-Length: %zu\r\n", n);
    serve();
    for (i = 0; i <= n; i++) {
        ts_conn c = ts_connect(&srv);
        ts_ask(&c, "POST", "/parts", length, nothing);
        ts_send(&c, hfsb_str_make(three, i));
        if (i % 8 == 0) usleep(2000);
        ts_send(&c, hfsb_str_make(three + i, n - i));
        T_CHECK(ts_read(&c, &r, false));
        check_three(&r);
        forget();
        ts_hang_up(&c);
    }
    ts_drop(&r);
    end();
}

/* Parts longer than the blocks of an upload, cut by these at any place. */
static void large_parts_are_whole(void) {
    static const size_t sizes[] = {196600, 196608, 400001, 3000000};
    hfsb_buf bytes = HFSB_INIT, body = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    size_t   i;
    serve();
    for (i = 0; i < TT_COUNT(sizes); i++) {
        make_bytes(&bytes, sizes[i]);
        hfsb_buf_truncate(&body, 0);
        T_CHECK(hfsb_buf_append(&body, HFSB_LIT(HEAD("f", "one"))) == HFSB_OK);
        T_CHECK(hfsb_buf_append(&body, hfsb_buf_str(&bytes)) == HFSB_OK);
        T_CHECK(hfsb_buf_append(&body, HFSB_LIT("\r\n" HEAD("f", "two"))) ==
                HFSB_OK);
        T_CHECK(hfsb_buf_append(&body, hfsb_buf_str(&bytes)) == HFSB_OK);
        T_CHECK(hfsb_buf_append(&body, HFSB_LIT("\r\n--cut--\r\n")) ==
                HFSB_OK);
        ts_call(&srv, &r, "POST", "/parts", TYPE, hfsb_buf_str(&body));
        T_CHECK(r.status == 200);
        T_CHECK(t_same_file("one", hfsb_buf_str(&bytes)));
        T_CHECK(t_same_file("two", hfsb_buf_str(&bytes)));
    }
    forget();
    hfsb_buf_free(&bytes);
    hfsb_buf_free(&body);
    ts_drop(&r);
    end();
}

typedef struct bad_case {
    const char *type, *body;
    int         status;
    const char *text; /* part of the reply */
} bad_case;

static const bad_case bad_cases[] = {
    {"", "x", 415, "not multipart/form-data"},
    {"Content-Type: text/plain\r\n", "x", 415, "not multipart/form-data"},
    {"Content-Type: multipart/form-data\r\n", "x", 400, "no boundary"},
    {TYPE, "", 400, "400 "},
    {TYPE, "no part at all", 400, "400 "},
    {TYPE, HEAD("file", "one") "first", 400, "400 "},
    {TYPE, HEAD("file", "one") "first\r\n--cut", 400, "400 "},
    {TYPE, HEAD("file", "one") "first\r\n--cut\r\n", 400, "[one 5 new"},
    {TYPE, HEAD("file", "one") "1\r\n" HEAD("refuse", "two") "2\r\n--cut--",
     418, "418 refused by the test [one 1 new"},
    {TYPE, HEAD("file", ".") "first\r\n--cut--", 400, "directory"},
    {TYPE, HEAD("skip", "one") "first\r\n--cut--", 200, "200 "},
    {TYPE,
     HEAD("skip", "") "\r\n" HEAD("skip", "") "\r\n" HEAD("skip", "") "\r\n"
     HEAD("skip", "") "\r\n" HEAD("skip", "") "\r\n" HEAD("skip", "") "\r\n"
     HEAD("skip", "") "\r\n" HEAD("skip", "") "\r\n" HEAD("skip", "")
     "\r\n--cut--",
     413, "413 "}};

static void a_malformed_body_is_refused(void) {
    ts_reply r = HFSB_INIT;
    size_t   i;
    serve();
    for (i = 0; i < TT_COUNT(bad_cases); i++) {
        const bad_case *b = &bad_cases[i];
        ts_call(&srv, &r, "POST", "/parts", b->type, hfsb_cstr(b->body));
        if (r.status != b->status || !strstr(r.body.ptr, b->text))
            printf("case %zu: %d %s\n", i, r.status, r.body.ptr);
        T_CHECK(r.status == b->status && strstr(r.body.ptr, b->text));
        T_CLEAN(".");
        forget();
    }
    ts_drop(&r);
    end();
}

/* ---- interruptions ---- */

/* The client goes after n bytes of the second file. */
static void go_away(size_t n, bool reset) {
    hfsb_buf bytes = HFSB_INIT;
    ts_conn  c = ts_connect(&srv);
    int      i;
    make_bytes(&bytes, n);
    ts_ask(&c, "POST", "/parts", TYPE "Content-Length: 100000000\r\n",
           nothing);
    ts_send(&c, HFSB_LIT(HEAD("file", "one") "first\r\n" HEAD("file", "two")));
    ts_send(&c, hfsb_buf_str(&bytes));
    for (i = 0; n > 400000 && i < 20000 && t_entries(".", ".two.hfsb-") == 0;
         i++)
        usleep(1000);
    T_CHECK(i < 20000);
    if (reset) ts_reset(&c);
    else ts_hang_up(&c);
    wait_clean();
    hfsb_buf_free(&bytes);
}

static void a_client_that_goes_leaves_no_temporary(void) {
    static const size_t sizes[] = {0, 1000, 196608, 500000, 3000000};
    size_t              i;
    serve();
    for (i = 0; i < TT_COUNT(sizes); i++) {
        t_put("two", "old");
        go_away(sizes[i], false);
        go_away(sizes[i], true);
        T_FILE("two", "old");
    }
    T_FILE("one", "first"); /* its part was complete */
    end();
    T_FILE("two", "old");
    forget();
}

static void each_allocation_fails_in_turn(void) {
    hfsb_buf body = HFSB_INIT, bytes = HFSB_INIT;
    size_t   k, turn, total = 0;
    make_bytes(&bytes, 300000);
    T_CHECK(hfsb_buf_append(&body, HFSB_LIT(HEAD("f", "one") "1\r\n")) ==
            HFSB_OK);
    T_CHECK(hfsb_buf_append(&body, HFSB_LIT(HEAD("f", "renamed"))) == HFSB_OK);
    T_CHECK(hfsb_buf_append(&body, hfsb_buf_str(&bytes)) == HFSB_OK);
    T_CHECK(hfsb_buf_append(&body, HFSB_LIT("\r\n--cut--")) == HFSB_OK);
    serve();
    for (turn = 0; turn < 4; turn++)
        for (k = 0; k == 0 || k <= total; k++) {
            ts_reply r = HFSB_INIT;
            ts_conn  c;
            t_put("other", "old");
            tt_faults(k, turn >= 2);
            c = ts_connect(&srv);
            if (turn % 2)
                ts_ask(&c, "GET", "/fetch?path=other&length=2", "", nothing);
            else ts_ask(&c, "POST", "/parts", TYPE, hfsb_buf_str(&body));
            if (ts_read(&c, &r, false))
                T_CHECK(r.status == 503 || r.status == 200 ||
                        (turn % 2 && r.status == 418));
            if (k == 0) total = tt_allocations() + 3;
            tt_faults(0, false);
            ts_hang_up(&c);
            wait_clean();
            if (turn % 2 == 0 && r.status == 200)
                T_CHECK(t_same_file("other", hfsb_buf_str(&bytes)));
            ts_drop(&r);
        }
    T_CHECK(total > 3);
    end();
    forget();
    hfsb_buf_free(&bytes);
    hfsb_buf_free(&body);
}

/* ---- ranges ---- */

static void a_range_is_written_into_the_file(void) {
    ts_reply r = HFSB_INIT;
    serve();
    ts_call(&srv, &r, "POST", "/range?offset=3", "", HFSB_LIT("def"));
    T_STR(hfsb_buf_str(&r.body), "201  [ranged 3 new ]");
    ts_call(&srv, &r, "POST", "/range?offset=0", "", HFSB_LIT("abc"));
    T_STR(hfsb_buf_str(&r.body), "200  [ranged 3 ]");
    T_FILE("ranged", "abcdef");
    ts_call(&srv, &r, "POST", "/range?offset=1", "", HFSB_LIT("X"));
    T_FILE("ranged", "aXcdef");
    ts_call(&srv, &r, "POST", "/range?offset=9223372036854775807", "",
            HFSB_LIT("X"));
    T_CHECK(r.status >= 400);
    T_FILE("ranged", "aXcdef");
    unlink("ranged");
    ts_drop(&r);
    end();
}

/* ---- fetching ---- */

typedef struct fetch_case {
    const char *query, *fields;
    int         status;
    const char *seen, *body; /* seen NULL: no such field */
} fetch_case;

static const fetch_case fetch_cases[] = {
    {"path=f", "", 200, "200 10", "0123456789"},
    {"path=f", "Range: bytes=2-3\r\n", 206, "206 10", "23"},
    {"path=f", "If-None-Match: *\r\n", 304, "304 10", ""},
    {"path=f", "If-Match: \"x\"\r\n", 418, NULL, "refused 412"},
    {"path=f", "Range: bytes=20-\r\n", 418, "416 10", "refused 416"},
    {"path=f&offset=2&length=3", "Range: bytes=0-0\r\n", 200, "200 10", "234"},
    {"path=f&offset=8&length=30", "", 200, "200 10", "89"},
    {"path=f&offset=20&length=30", "", 200, "200 10", ""},
    {"path=e", "", 200, "200 0", ""},
    {"path=.", "", 418, NULL, "refused 400 Is a directory"},
    {"path=none", "", 418, NULL, "refused 404 File not found"},
#ifdef __linux__
    {"path=/proc/self/comm&offset=1&length=3", "", 200, NULL, "est"},
    {"path=/proc/self/mem", "", 418, NULL, "refused 400"},
#endif
};

static void a_file_or_a_part_of_it_is_sent(void) {
    ts_reply r = HFSB_INIT;
    size_t   i;
    serve();
    t_put("f", "0123456789");
    t_put("e", "");
    for (i = 0; i < TT_COUNT(fetch_cases); i++) {
        const fetch_case *f = &fetch_cases[i];
        char              target[200];
        snprintf(target, sizeof target, "/fetch?%s", f->query);
        ts_call(&srv, &r, "GET", target, f->fields, nothing);
        if (r.status != f->status)
            printf("case %zu: %d %s\n", i, r.status, r.body.ptr);
        T_CHECK(r.status == f->status && !r.chunked);
        T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.body), hfsb_cstr(f->body)));
        if (f->status < 300) T_CHECK(r.body.len == strlen(f->body));
        if (f->status < 300) FIELD(&r, "Content-Type", "text/odd");
        if (f->seen)
            T_CHECK(hfsb_str_equal(ts_field(&r, "X-Seen"),
                                   hfsb_cstr(f->seen)));
        T_CHECK((ts_field(&r, "ETag").ptr != NULL) ==
                (f->seen && !strstr(f->query, "length")));
    }
    unlink("f"), unlink("e");
    ts_drop(&r);
    end();
}

static void all_of_it_works_without_threads(void) {
    inline_work = true;
    each_part_becomes_a_file();
    large_parts_are_whole();
    a_malformed_body_is_refused();
    a_client_that_goes_leaves_no_temporary();
    a_range_is_written_into_the_file();
    a_file_or_a_part_of_it_is_sent();
    inline_work = false;
}

int main(void) {
    tt_begin();
    (void)umask(022);
    TT_RUN(each_part_becomes_a_file);
    TT_RUN(a_body_may_be_cut_anywhere);
    TT_RUN(large_parts_are_whole);
    TT_RUN(a_malformed_body_is_refused);
    TT_RUN(a_client_that_goes_leaves_no_temporary);
    TT_RUN(each_allocation_fails_in_turn);
    TT_RUN(a_range_is_written_into_the_file);
    TT_RUN(a_file_or_a_part_of_it_is_sent);
    TT_RUN(all_of_it_works_without_threads);
    return TT_END();
}
