/* test_hf_files.c - the sandbox API of Hugging Face: files, and the proxy to a
   local port. */
#include "../support/t_hf.h"
#include "../support/t_inner.h"

/* ---- files ---- */

static void put(ts_reply *r, const char *target, hfsb_str body) {
    ts_call(&srv, r, "PUT", target, HF_TOKEN, body);
}

static void files_come_back_as_they_went(void) {
    ts_reply r = HFSB_INIT;
    hfsb_buf bytes = HFSB_INIT;
    char     path[PATH_MAX + 64];
    size_t   i;
    put(&r, "/v1/files/write?path=new%2Fdeep%2Fa+b%2Bc%25%26%C3%A9%3F.txt",
        HFSB_LIT("one\0two"));
    TS_IS(&r, 200, NULL);
    T_CHECK(ts_int(&r, "size") == 7);
    (void)snprintf(path, sizeof path, "%s/work/new/deep/a b+c%%&\xC3\xA9?.txt",
                   tt_dir);
    T_CHECK(hfsb_str_equal(ts_text(&r, "path"), hfsb_cstr(path)));
    T_CHECK(access("new/deep/a b+c%&\xC3\xA9?.txt", F_OK) == 0);
    call(&r, "GET",
         "/v1/files/read?path=new%2Fdeep%2Fa+b%2Bc%25%26%C3%A9%3F.txt", NULL);
    TS_IS(&r, 200, NULL);
    T_CHECK(r.body.len == 7 && !memcmp(r.body.ptr, "one\0two", 7));
    T_STR(ts_field(&r, "Content-Type"), "application/octet-stream");
    for (i = 0; i < 3000000; i++)
        if (hfsb_buf_append_byte(&bytes, (char)(i * 7 >> 3)) != HFSB_OK)
            abort();
    put(&r, "/v1/files/write?path=big&mode=751", hfsb_buf_str(&bytes));
    TS_IS(&r, 200, "\"size\":3000000");
    call(&r, "GET", "/v1/files/read?path=big&offset=0&length=3000000", NULL);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.body), hfsb_buf_str(&bytes)));
    call(&r, "GET", "/v1/files/stat?path=big", NULL);
    T_STR(ts_text(&r, "mode"), "751");
    put(&r, "/v1/files/write?path=big&mode=99x", HFSB_LIT(""));
    TS_IS(&r, 200, "\"size\":0");
    call(&r, "GET", "/v1/files/stat?path=big", NULL);
    T_STR(ts_text(&r, "mode"), "751"); /* kept; the other is ignored */
    put(&r, "/v1/files/write?path=no%2Fwhere%2Fx&mkdir=0", HFSB_LIT("x"));
    TS_IS(&r, 400, NULL);
    hfsb_buf_free(&bytes);
    ts_drop(&r);
}

static void reads_are_cut_to_the_file(void) {
    static const struct {
        const char *query, *want;
    } cases[] = {{"", "0123456789"},
                 {"&offset=3", "3456789"},
                 {"&offset=3&length=4", "3456"},
                 {"&length=4", "0123"},
                 {"&offset=8&length=100", "89"},
                 {"&offset=10&length=5", ""},
                 {"&offset=1000", ""},
                 {"&length=0", ""},
                 {"&offset=x&length=-1", "0123456789"}};
    ts_reply r = HFSB_INIT;
    char     target[200];
    size_t   i;
    tt_put("ten", HFSB_LIT("0123456789"));
    for (i = 0; i < TT_COUNT(cases); i++) {
        (void)snprintf(target, sizeof target, "/v1/files/read?path=ten%s",
                       cases[i].query);
        call(&r, "GET", target, NULL);
        TS_IS(&r, 200, NULL);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.body),
                               hfsb_cstr(cases[i].want)));
        T_CHECK((size_t)strtoul(ts_field(&r, "Content-Length").ptr, NULL,
                                10) == r.body.len);
    }
    ts_drop(&r);
}

static void parts_are_written_in_any_order(void) {
    ts_reply r = HFSB_INIT;
    tt_put("parts", HFSB_LIT("the old content is longer"));
    put(&r, "/v1/files/write?path=parts&offset=6&truncate_to=9",
        HFSB_LIT("GHI"));
    TS_IS(&r, 200, "\"size\":3");
    put(&r, "/v1/files/write?path=parts&offset=0", HFSB_LIT("ABC"));
    TS_IS(&r, 200, NULL);
    put(&r, "/v1/files/write?path=parts&offset=3&mode=600", HFSB_LIT("DEF"));
    TS_IS(&r, 200, NULL);
    TT_FILE("parts", "ABCDEFGHI");
    put(&r, "/v1/files/write?path=hole%2Fx&offset=4", HFSB_LIT("end"));
    TS_IS(&r, 200, NULL);
    T_CHECK(tt_file_is("hole/x", HFSB_LIT("\0\0\0\0end")));
    ts_drop(&r);
}

/* Six keys and no other. */
static void check_entry(const hfsb_json_value *e, const char *name,
                        const char *path, const char *type, long long size) {
    T_CHECK(hfsb_json_count(e) == 6);
    T_CHECK(hfsb_str_equal(hfsb_json_str(hfsb_json_get(e, "name"),
                                         HFSB_LIT("")),
                           hfsb_cstr(name)));
    T_CHECK(hfsb_str_equal(hfsb_json_str(hfsb_json_get(e, "path"),
                                         HFSB_LIT("")),
                           hfsb_cstr(path)));
    T_CHECK(hfsb_str_equal(hfsb_json_str(hfsb_json_get(e, "type"),
                                         HFSB_LIT("")),
                           hfsb_cstr(type)));
    T_CHECK(size < 0 || hfsb_json_int(hfsb_json_get(e, "size"), -1) == size);
    T_CHECK(hfsb_json_int(hfsb_json_get(e, "mtime_ms"), 0) > 1500000000000);
    T_CHECK(hfsb_json_type_of(hfsb_json_get(e, "mode")) == HFSB_JSON_STRING);
}

static void entries_have_six_keys(void) {
    ts_reply               r = HFSB_INIT;
    const hfsb_json_value *list;
    (void)mkdir("box", 0755);
    (void)mkdir("box/dir", 0755);
    tt_put("box/.hidden", HFSB_LIT("12345"));
    tt_put("box/file", HFSB_LIT("123"));
    (void)!symlink("file", "box/link");
    (void)mkfifo("box/pipe", 0644);
    call(&r, "GET", "/v1/files/list?path=box", NULL);
    TS_IS(&r, 200, NULL);
    list = hfsb_json_get(r.json.root, "entries");
    T_CHECK(hfsb_json_count(list) == 5);
    check_entry(hfsb_json_at(list, 0), ".hidden", "box/.hidden", "file", 5);
    check_entry(hfsb_json_at(list, 1), "dir", "box/dir", "dir", -1);
    check_entry(hfsb_json_at(list, 2), "file", "box/file", "file", 3);
    check_entry(hfsb_json_at(list, 3), "link", "box/link", "symlink", 4);
    check_entry(hfsb_json_at(list, 4), "pipe", "box/pipe", "file", 0);
    T_CHECK(hfsb_json_type_of(hfsb_json_get(r.json.root, "next")) ==
                HFSB_JSON_NULL &&
            !ts_flag(&r, "truncated"));
    call(&r, "GET", "/v1/files/stat?path=box%2Flink", NULL);
    TS_IS(&r, 200, NULL);
    check_entry(r.json.root, "link", "box/link", "symlink", 4);
    call(&r, "GET", "/v1/files/stat?path=box%2F", NULL);
    check_entry(r.json.root, "box", "box", "dir", -1);
    call(&r, "GET", "/v1/files/stat?path=%2F", NULL);
    TS_IS(&r, 200, "\"dir\"");
    call(&r, "GET", "/v1/files/stat?path=box%2Ffile%2Fbelow", NULL);
    TS_IS(&r, 404, NULL);
    call(&r, "GET", "/v1/files/list?path=box%2Ffile", NULL);
    TS_IS(&r, 400, NULL);
    call(&r, "GET", "/v1/files/list?path=box%2Fnone", NULL);
    TS_IS(&r, 404, NULL);
    call(&r, "GET", "/v1/files/read?path=box%2Fpipe", NULL);
    TS_IS(&r, 400, NULL);
    call(&r, "GET", "/v1/files/read?path=box%2Flink", NULL);
    TS_IS(&r, 200, "123");
    call(&r, "GET", "/v1/files/read?path=%2Fproc%2Fself%2Fstatus", NULL);
    TS_IS(&r, 200, "Name:");
    ts_drop(&r);
}

static void lists_come_in_pages(void) {
    ts_reply r = HFSB_INIT;
    char     name[32], target[200], after[40] = "";
    size_t   i, seen = 0, pages = 0;
    (void)mkdir("many", 0755);
    for (i = 0; i < 25; i++) {
        (void)snprintf(name, sizeof name, "many/f%02zu", i);
        tt_put(name, HFSB_LIT(""));
    }
    do {
        (void)snprintf(target, sizeof target,
                       "/v1/files/list?path=many&limit=10&after=%s", after);
        call(&r, "GET", target, NULL);
        TS_IS(&r, 200, NULL);
        seen += hfsb_json_count(hfsb_json_get(r.json.root, "entries"));
        (void)snprintf(after, sizeof after, "%s", ts_text(&r, "next").ptr);
        T_CHECK(ts_flag(&r, "truncated") == (after[0] != '\0'));
        pages++;
    } while (after[0] && pages < 10);
    T_CHECK(seen == 25 && pages == 3);
    ts_drop(&r);
}

static void folders_are_made_and_removed(void) {
    static const struct {
        const char *method, *target;
        int         status;
        const char *part;
    } cases[] = {
        {"POST", "/v1/files/mkdir?path=m%2Fn%2Fo", 200,
         "{\"created\":\"m/n/o\"}"},
        {"POST", "/v1/files/mkdir?path=m%2Fn%2Fo", 200, NULL},
        {"PUT", "/v1/files/write?path=m%2Ffile", 200, NULL},
        {"POST", "/v1/files/mkdir?path=m%2Ffile", 400, NULL},
        {"POST", "/v1/files/mkdir?path=m%2Ffile%2Fx", 400, NULL},
        {"PUT", "/v1/files/write?path=m", 400, NULL},
        {"DELETE", "/v1/files/delete?path=m", 400, NULL},
        {"DELETE", "/v1/files/delete?path=m&recursive=false", 400, NULL},
        {"DELETE", "/v1/files/delete?path=m%2Ffile", 200,
         "{\"deleted\":\"m/file\"}"},
        {"DELETE", "/v1/files/delete?path=m%2Ffile", 404, NULL},
        {"DELETE", "/v1/files/delete?path=m%2Fn%2Fo", 200, NULL},
        {"DELETE", "/v1/files/delete?path=m&recursive=1", 200, NULL},
        {"GET", "/v1/files/stat?path=m", 404, NULL},
        {"POST", "/v1/files/mkdir?path=m%2Fn", 200, NULL},
        {"DELETE", "/v1/files/delete?path=m&recursive=true", 200, NULL},
        {"DELETE", "/v1/files/delete?path=lead", 200, NULL}};
    ts_reply r = HFSB_INIT;
    size_t   i;
    tt_put("led", HFSB_LIT("x"));
    (void)!symlink("led", "lead");
    for (i = 0; i < TT_COUNT(cases); i++) {
        ts_call(&srv, &r, cases[i].method, cases[i].target, HF_TOKEN,
                HFSB_LIT(""));
        TS_IS(&r, cases[i].status, cases[i].part);
    }
    T_CHECK(access("led", F_OK) == 0 && access("lead", F_OK) != 0);
    ts_drop(&r);
}

/* A refused upload is answered, however large, and the connection or a new
   one goes on. */
static void a_refused_body_is_answered(void) {
    ts_reply r = HFSB_INIT;
    hfsb_buf big = HFSB_INIT;
    tt_fill(&big, "0123456789abcdef", 200000);
    (void)mkdir("taken", 0755);
    put(&r, "/v1/files/write?path=taken", hfsb_buf_str(&big));
    TS_IS(&r, 400, NULL);
    ts_call(&srv, &r, "PUT", "/v1/files/write?path=x", "", hfsb_buf_str(&big));
    TS_IS(&r, 403, NULL);
    put(&r, "/v1/files/write?path=x", hfsb_buf_str(&big));
    TS_IS(&r, 200, NULL);
    hfsb_buf_free(&big);
    ts_drop(&r);
}

static void paths_stay_beneath_the_root(void) {
    hfsb_tools_opts tools = HFSB_INIT;
    ts_reply        r = HFSB_INIT;
    hf_run          x = HFSB_INIT;
    (void)mkdir("jail", 0755);
    tt_put("outside", HFSB_LIT("secret"));
    (void)!symlink("../outside", "jail/way");
    (void)!symlink("..", "jail/up");
    tools.root = HFSB_LIT("jail");
    start_with(NULL, &tools);
    call(&r, "GET", "/v1/files/read?path=way", NULL);
    TS_IS(&r, 400, NULL);
    call(&r, "GET", "/v1/files/read?path=..%2Foutside", NULL);
    TS_IS(&r, 400, NULL);
    call(&r, "GET", "/v1/files/list?path=up", NULL);
    TS_IS(&r, 400, NULL);
    put(&r, "/v1/files/write?path=up%2Foutside", HFSB_LIT("changed"));
    TS_IS(&r, 400, NULL);
    put(&r, "/v1/files/write?path=up%2Foutside&offset=0", HFSB_LIT("changed"));
    TS_IS(&r, 400, NULL);
    ts_call(&srv, &r, "DELETE", "/v1/files/delete?path=up&recursive=1",
            HF_TOKEN, nothing);
    TS_IS(&r, 200, NULL); /* the link itself */
    TT_FILE("outside", "secret");
    put(&r, "/v1/files/write?path=here", HFSB_LIT("x"));
    TS_IS(&r, 200, NULL);
    run(&x, "{\"cmd\":\"cat here\"}"); /* the same base as that of files */
    T_STR(hfsb_buf_str(&x.out), "x");
    drop_run(&x);
    ts_drop(&r);
    finish();
}

/* ---- the proxy: an inner server that shows what it gets ---- */

static ti_server in;

static const char *through(const char *rest) {
    static char target[200];
    (void)snprintf(target, sizeof target, "/v1/proxy/%u%s", in.port, rest);
    return target;
}

static void requests_pass_without_tokens(void) {
    ts_reply r = HFSB_INIT;
    ts_call(&srv, &r, "GET", through("/a%20b/c?x=%20y&z"),
            HF_TOKEN "Authorization: Bearer hf_x\r\nX-More: 1\r\n", nothing);
    TS_IS(&r, 201, "GET /a%20b/c?x=%20y&z HTTP/1.1\r\n");
    T_CHECK(ts_contains(&r, "X-More: 1\r\n"));
    T_CHECK(ts_contains(&r, "Connection: close\r\n"));
    T_CHECK(!ts_contains(&r, TS_TOKEN) && !ts_contains(&r, "hf_x"));
    T_CHECK(!ts_contains(&r, "Authorization") && !ts_contains(&r, "Token"));
    T_STR(ts_field(&r, "Content-Type"), "text/x");
    T_CHECK(!r.chunked && ts_field(&r, "Content-Length").len > 0);
    T_CHECK(strstr(r.head.ptr, "Set-Cookie: a=1\r\n") &&
            strstr(r.head.ptr, "Set-Cookie: b=2\r\n"));
    ts_call(&srv, &r, "GET", through(""), HF_TOKEN, nothing);
    TS_IS(&r, 201, "GET / HTTP/1.1\r\n");
    ts_call(&srv, &r, "GET", through("?q"), HF_TOKEN, nothing);
    TS_IS(&r, 201, "GET /?q HTTP/1.1\r\n");
    ts_call(&srv, &r, "DELETE", through("/d"), HF_TOKEN, nothing);
    TS_IS(&r, 201, "DELETE /d HTTP/1.1\r\n");
    ts_call(&srv, &r, "GET", through("/until"), HF_TOKEN, nothing);
    TS_IS(&r, 201, "GET /until HTTP/1.1\r\n");
    T_CHECK(r.chunked);
    ts_drop(&r);
}

static void bodies_pass_both_ways(void) {
    ts_reply r = HFSB_INIT;
    hfsb_buf big = HFSB_INIT;
    tt_fill(&big, "0123456789abcdef", 50000);
    ts_call(&srv, &r, "POST", through("/p"), HF_TOKEN, hfsb_buf_str(&big));
    TS_IS(&r, 201, "POST /p HTTP/1.1\r\n");
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.body), hfsb_buf_str(&big)));
    ts_call(&srv, &r, "POST", through("/early"), HF_TOKEN, hfsb_buf_str(&big));
    T_CHECK(r.status == 413 || r.status == 502); /* a reset may come first */
    hfsb_buf_free(&big);
    ts_drop(&r);
}

static void heads_have_the_length_of_the_body(void) {
    ts_reply r = HFSB_INIT;
    ts_call(&srv, &r, "HEAD", through("/length"), HF_TOKEN, nothing);
    TS_IS(&r, 200, NULL);
    T_STR(ts_field(&r, "Content-Length"), "4711");
    T_CHECK(!r.chunked);
    ts_call(&srv, &r, "HEAD", through("/chunks"), HF_TOKEN, nothing);
    TS_IS(&r, 200, NULL);
    T_CHECK(r.chunked && !ts_field(&r, "Content-Length").ptr);
    ts_drop(&r);
}

static void any_method_and_any_path_pass(void) {
    ts_reply r = HFSB_INIT;
    ts_call(&srv, &r, "PROPFIND", through("/dav/"), HF_TOKEN, nothing);
    TS_IS(&r, 201, "PROPFIND /dav/ HTTP/1.1\r\n");
    ts_call(&srv, &r, "M-SEARCH", through("/d"), HF_TOKEN, HFSB_LIT("body"));
    TS_IS(&r, 201, "M-SEARCH /d HTTP/1.1\r\n");
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.body), HFSB_LIT("body")));
    ts_call(&srv, &r, "PROPFIND", through("/dav/"), "", nothing);
    TS_IS(&r, 403, NULL);
    ts_call(&srv, &r, "PROPFIND", "/v1/processes", HF_TOKEN, nothing);
    TS_IS(&r, 501, "{\"error\":");
    ts_call(&srv, &r, "GET", through("/a%00b%zz%2f//c/?%00"), HF_TOKEN,
            nothing);
    TS_IS(&r, 201, "GET /a%00b%zz%2f//c/?%00 HTTP/1.1\r\n");
    ts_drop(&r);
}

static void slashes_around_a_path_do_not_count(void) {
    ts_reply r = HFSB_INIT;
    char     target[200];
    ts_call(&srv, &r, "GET", "/v1/processes/", HF_TOKEN, nothing);
    TS_IS(&r, 200, "[]");
    ts_call(&srv, &r, "GET", "//v1/processes//", HF_TOKEN, nothing);
    TS_IS(&r, 200, "[]");
    ts_call(&srv, &r, "GET", "/v1//processes", HF_TOKEN, nothing);
    TS_IS(&r, 404, NULL);
    ts_call(&srv, &r, "POST", "/v1/exec/", HF_TOKEN,
            HFSB_LIT("{\"cmd\":\"echo hi\"}"));
    TS_IS(&r, 200, "\"hi\\n\"");
    ts_call(&srv, &r, "GET", "/health/", "", nothing);
    TS_IS(&r, 200, "\"protocol\":3");
    ts_call(&srv, &r, "GET", "/v1/processes/", "", nothing);
    TS_IS(&r, 403, NULL);
    (void)snprintf(target, sizeof target, "//%s", through("/x/"));
    ts_call(&srv, &r, "GET", target, HF_TOKEN, nothing);
    TS_IS(&r, 201, "GET /x/ HTTP/1.1\r\n");
    ts_drop(&r);
}

static void every_request_of_a_connection_is_checked(void) {
    ts_conn  c = ts_connect(&srv);
    ts_reply r = HFSB_INIT;
    ts_ask(&c, "GET", through("/one"), HF_TOKEN, nothing);
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 201, "GET /one ");
    ts_ask(&c, "GET", through("/two"), "", nothing);
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 403, NULL);
    ts_ask(&c, "GET", "/v1/processes", HF_TOKEN, nothing);
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, "[]");
    ts_hang_up(&c);
    ts_drop(&r);
}

static void inner_failures_are_502(void) {
    ts_reply r = HFSB_INIT;
    ts_conn  c = ts_connect(&srv);
    ts_call(&srv, &r, "GET", through("/close"), HF_TOKEN, nothing);
    TS_IS(&r, 502, "{\"error\":");
    ts_call(&srv, &r, "GET", through("/bad"), HF_TOKEN, nothing);
    TS_IS(&r, 502, "{\"error\":");
    ts_ask(&c, "GET", through("/half"), HF_TOKEN, nothing);
    T_CHECK(!ts_read(&c, &r, false) && r.status == 200); /* cut, not whole */
    ts_hang_up(&c);
    ts_drop(&r);
}

static void upgrades_become_tunnels(void) {
    ts_conn  c = ts_connect(&srv);
    hfsb_buf big = HFSB_INIT;
    size_t   at;
    ts_ask(&c, "GET", through("/ws"),
           HF_TOKEN "Connection: keep-alive, Upgrade\r\nUpgrade: odd\r\n",
           nothing);
    T_CHECK(ts_await(&c, "\r\n\r\nhello", 20000));
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&c.in), HFSB_LIT("HTTP/1.1 101 ")));
    T_CHECK(strstr(c.in.ptr, "Upgrade: odd\r\n") &&
            strstr(c.in.ptr, "X-Odd: 1\r\n"));
    T_CHECK(ts_send(&c, HFSB_LIT("GET / HTTP/1.1\r\n\r\n")));
    T_CHECK(ts_await(&c, "helloGET / HTTP/1.1\r\n\r\n", 20000));
    at = c.in.len;
    tt_fill(&big, "0123456789abcdef", 10000);
    T_CHECK(ts_send(&c, hfsb_buf_str(&big)));
    while (c.in.len < at + big.len && ts_more(&c, 20000)) continue;
    T_CHECK(hfsb_str_equal(hfsb_str_slice(hfsb_buf_str(&c.in), at, c.in.len),
                           hfsb_buf_str(&big)));
    (void)shutdown(c.fd, SHUT_WR);
    T_CHECK(ts_closes(&c, 20000));
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&c.in), HFSB_LIT("bye")));
    ts_hang_up(&c);
    hfsb_buf_free(&big);
}

static void clients_that_go_leave_nothing(void) {
    ts_conn c = ts_connect(&srv), d = ts_connect(&srv);
    ts_ask(&c, "GET", through("/ws"),
           HF_TOKEN "Connection: Upgrade\r\nUpgrade: odd\r\n", nothing);
    T_CHECK(ts_await(&c, "hello", 20000));
    ts_reset(&c);
    ts_ask(&d, "POST", through("/p"), HF_TOKEN "Content-Length: 100\r\n",
           nothing);
    T_CHECK(ts_send(&d, HFSB_LIT("some")));
    tt_sleep_ms(50);
    ts_reset(&d);
}

/* Pages go on after a name that is not UTF-8. */
static void every_name_is_listed_once(void) {
    static const char *const names[] = {"d/a", "d/\xfe", "d/\xff"};
    ts_reply r = HFSB_INIT;
    char     target[200], after[100] = "";
    size_t   i, n;
    start();
    T_CHECK(mkdir("d", 0755) == 0);
    for (i = 0; i < TT_COUNT(names); i++) tt_put(names[i], HFSB_LIT("x"));
    for (n = 0; n < 9; n++) {
        hfsb_str next;
        snprintf(target, sizeof target,
                 "/v1/files/list?path=d&limit=1%s%s", *after ? "&after=" : "",
                 after);
        ts_call(&srv, &r, "GET", target, HF_TOKEN, nothing);
        TS_IS(&r, 200, "\"entries\":[{");
        next = ts_text(&r, "next");
        if (!next.len) break;
        snprintf(after, sizeof after, "%.*s", (int)next.len, next.ptr);
    }
    T_CHECK(n == 2);
    for (i = 0; i < TT_COUNT(names); i++) (void)unlink(names[i]);
    (void)rmdir("d");
    ts_drop(&r);
    finish();
}

int main(void) {
    tt_begin();
    EACH(files_come_back_as_they_went);
    EACH(reads_are_cut_to_the_file);
    EACH(parts_are_written_in_any_order);
    EACH(entries_have_six_keys);
    EACH(lists_come_in_pages);
    EACH(folders_are_made_and_removed);
    EACH(a_refused_body_is_answered);
    TT_RUN(paths_stay_beneath_the_root);
    ti_start(&in);
    EACH(requests_pass_without_tokens);
    EACH(bodies_pass_both_ways);
    EACH(heads_have_the_length_of_the_body);
    EACH(any_method_and_any_path_pass);
    EACH(slashes_around_a_path_do_not_count);
    EACH(every_request_of_a_connection_is_checked);
    EACH(inner_failures_are_502);
    EACH(upgrades_become_tunnels);
    EACH(clients_that_go_leave_nothing);
    ti_end(&in);
    TT_RUN(every_name_is_listed_once);
    return TT_END();
}
