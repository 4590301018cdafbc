/* test_server_http.c - conversations with a server: every status that its
   connections give, keep-alive, pipelines, 100-continue, cuts. */
#include "../support/t_conn.h"

static ts_server s;

/* Fields that every reply must have, and that none may have. */
static void check_head(const ts_reply *r) {
    hfsb_str date = ts_field(r, "Date");
    T_CHECK(date.len == 29 &&
            hfsb_str_find(date, HFSB_LIT(" GMT")) == 25);
    T_CHECK(hfsb_str_starts(ts_field(r, "X-Hfsb"),
                            HFSB_LIT(HFSB_VERSION "; instance=")));
    T_CHECK(hfsb_str_find(hfsb_buf_str(&r->head), HFSB_LIT("Access-Contr")) ==
            HFSB_NPOS);
}

#define NO_TOKEN  "{\"detail\":\"Missing bearer token\""
#define BAD_TOKEN "{\"detail\":\"Invalid bearer token\""
#define AUTH      "X-Sandbox-Authorization: "

static void every_error_has_a_json_body(void) {
    static const struct {
        const char *raw;
        int         status;
        const char *part;
        bool        keeps; /* the connection */
    } list[] = {
        {TC_GET("/hello"), 200, "hello", true},
        {TC_GET("/hello?x=1"), 200, "hello", true},
        {"GET http://localhost HTTP/1.1\r\nHost: x\r\n\r\n", 200, "hello",
         true},
        {"GET http://localhost/hello HTTP/1.1\r\nHost: x\r\n\r\n", 200,
         "hello", true},
        {"GET http://127.0.0.1:80?a HTTP/1.1\r\nHost: x\r\n\r\n", 200, "hello",
         true},
        {TC_GET("/part/a%2Fb%20c/end"), 200, "a/b c", true},
        {TC_GET("/part//end"), 404, "\"detail\":\"Not Found\"", true},
        {TC_GET("/part/%zz/end"), 400, "hexadecimal", true},
        {TC_GET("/part/%00/end"), 400, "%00", true},
        {TC_GET("/none"), 404, "\"detail\":\"Not Found\"", true},
        {TC_GET("/hello/"), 404, "\"detail\":\"Not Found\"", true},
        {"OPTIONS * HTTP/1.1\r\n" TC_HEAD "\r\n", 404, "Not Found", true},
        {"DELETE /hello HTTP/1.1\r\n" TC_HEAD "\r\n", 405,
         "\"detail\":\"Method Not Allowed\"", true},
        {"POST /none HTTP/1.1\r\n" TC_HEAD "Content-Length: 5\r\n\r\nabcde",
         404, "Not Found", true},
        {TC_GET("/secret"), 401, NO_TOKEN, true},
        {"GET /secret HTTP/1.1\r\n" TC_HEAD AUTH "Bearer no\r\n\r\n", 401,
         BAD_TOKEN, true},
        {"GET /secret HTTP/1.1\r\n" TC_HEAD AUTH "Bearer " TS_TOKEN "\r\n\r\n",
         200, "hello", true},
        {"POST /secret HTTP/1.1\r\n" TC_HEAD "Content-Length: 3\r\n\r\nabc",
         401, NO_TOKEN, true},
        {"POST /secret HTTP/1.1\r\n" TC_HEAD "Content-Length: 9999999\r\n\r\n",
         401, NO_TOKEN, false},
        {"POST /secret HTTP/1.1\r\n" TC_HEAD
         "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
         401, NO_TOKEN, false},
        {"GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421, "Host",
         true},
        {"GET /hello HTTP/1.1\r\n" TC_HEAD "Origin: http://evil.example\r\n"
         "\r\n", 403, "Origin", true},
        {"POST /echo HTTP/1.1\r\n" TC_HEAD
         "Content-Length: 67108865\r\n\r\n", 413, "65536", false},
        {"POST /small HTTP/1.1\r\n" TC_HEAD "Content-Length: 11\r\n\r\n"
         "01234567890", 413, "at most 10 bytes", true},
        {"POST /small HTTP/1.1\r\n" TC_HEAD "Content-Length: 10\r\n\r\n"
         "0123456789", 200, "0123456789", true},
        {"POST /small HTTP/1.1\r\n" TC_HEAD
         "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n6\r\n567890\r\n"
         "0\r\n\r\n", 413, "at most 10 bytes", false},
        {"POST /small HTTP/1.1\r\n" TC_HEAD
         "Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n"
         "0\r\n\r\n", 200, "0123456789", true},
        {"POST /echo HTTP/1.1\r\n" TC_HEAD "Expect: tea\r\n"
         "Content-Length: 3\r\n\r\nabc", 417, "100-continue", true},
        {"PUT /stream HTTP/1.1\r\n" TC_HEAD "Expect: tea\r\n"
         "Content-Length: 3\r\n\r\nabc", 417, "100-continue", true},
        {"GET /silent HTTP/1.1\r\n" TC_HEAD "\r\n", 500, "no reply", true},
        {"BREW /hello HTTP/1.1\r\n" TC_HEAD "\r\n", 501, "", true},
        {"BREW /none HTTP/1.1\r\n" TC_HEAD "\r\n", 501, "", true},
        {"CONNECT localhost:80 HTTP/1.1\r\n" TC_HEAD "\r\n", 501, "",
         false},
        {"POST /echo HTTP/1.1\r\n" TC_HEAD
         "Transfer-Encoding: gzip, chunked\r\n\r\n", 501, "", false},
        {"GET /hello HTTP/2.0\r\n" TC_HEAD "\r\n", 505, "", false},
        {"GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "", false},
        {"GET /hello HTTP/1.1\n" TC_HEAD "\r\n", 400, "", false},
        {"POST /echo HTTP/1.1\r\n" TC_HEAD "Content-Length: 1\r\n"
         "Content-Length: 2\r\n\r\nab", 400, "", false},
        {"POST /echo HTTP/1.1\r\n" TC_HEAD
         "Transfer-Encoding: chunked\r\n\r\nZZ\r\n", 400, "", false},
        {"PUT /stream HTTP/1.1\r\n" TC_HEAD
         "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\nZZ\r\n", 400, "",
         false},
        {"\x16\x03\x01\x02", 400, "", false},
        {"PUT /stream HTTP/1.1\r\n" TC_HEAD "X-Refuse: 1\r\n"
         "Content-Length: 3\r\n\r\nabc", 409, "at the beginning", true},
        {"PUT /stream HTTP/1.1\r\n" TC_HEAD "Content-Length: 4\r\n\r\na!bc",
         409, "in the middle", true},
    };
    size_t i;
    for (i = 0; i < TT_COUNT(list); i++) {
        ts_reply r = HFSB_INIT;
        ts_conn  c = tc_ask(&s, &r, list[i].raw);
        ts_expect((int)i, &r, list[i].status, list[i].part);
        check_head(&r);
        if (list[i].status >= 400) {
            T_CHECK(hfsb_json_get(r.json.root, "detail") != NULL);
            T_CHECK(ts_text(&r, "error").len > 0);
        }
        T_CHECK((ts_field(&r, "Connection").ptr != NULL) != list[i].keeps);
        T_CHECK((list[i].status == 405) ==
                (ts_field(&r, "Allow").ptr != NULL));
        if (list[i].keeps) T_CHECK(tc_lives(&c));
        else T_CHECK(ts_closes(&c, 10000));
        ts_drop(&r);
        ts_hang_up(&c);
    }
    T_CHECK(tc_becomes(&tc.gone, 1)); /* of /stream whose body was bad */
}

static void a_405_lists_the_allowed_methods(void) {
    ts_reply r = HFSB_INIT;
    ts_conn  c = tc_ask(&s, &r, "PUT /hello HTTP/1.1\r\n" TC_HEAD "\r\n");
    T_STR(ts_field(&r, "Allow"), "GET, HEAD, POST");
    ts_drop(&r);
    ts_hang_up(&c);
}

static void targets_and_heads_have_limits(void) {
    hfsb_buf raw = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    ts_conn  c;
    size_t   i;
    t_repeat(&raw, "GET /", 1);
    t_repeat(&raw, "a", 20000);
    c = tc_ask(&s, &r, raw.ptr);
    TS_REFUSED(&r, 414, "too long");
    T_CHECK(ts_closes(&c, 10000));
    ts_hang_up(&c);
    hfsb_buf_truncate(&raw, 0);
    t_repeat(&raw, "GET /hello HTTP/1.1\r\n" TC_HEAD "X: ", 1);
    t_repeat(&raw, "a", 20000);
    t_repeat(&raw, "\r\n\r\n", 1);
    c = tc_ask(&s, &r, raw.ptr);
    TS_REFUSED(&r, 431, "too large");
    T_CHECK(ts_closes(&c, 10000));
    ts_hang_up(&c);
    for (i = 99; i <= 100; i++) { /* and Host: the limit is 100 */
        hfsb_buf_truncate(&raw, 0);
        t_repeat(&raw, "GET /hello HTTP/1.1\r\n" TC_HEAD, 1);
        t_repeat(&raw, "X: a\r\n", i);
        t_repeat(&raw, "\r\n", 1);
        c = tc_ask(&s, &r, raw.ptr);
        T_CHECK(r.status == (i == 99 ? 200 : 431));
        ts_hang_up(&c);
    }
    ts_drop(&r);
    hfsb_buf_free(&raw);
}

static void version_and_connection_field_decide_keep_alive(void) {
    static const struct {
        const char *raw;
        const char *connection; /* of the reply; NULL: none */
    } list[] = {
        {"GET /hello HTTP/1.1\r\n" TC_HEAD "\r\n", NULL},
        {"GET /hello HTTP/1.1\r\n" TC_HEAD "Connection: close\r\n\r\n",
         "close"},
        {"GET /hello HTTP/1.1\r\n" TC_HEAD "Connection: x, CLOSE\r\n\r\n",
         "close"},
        {"GET /hello HTTP/1.0\r\n" TC_HEAD "\r\n", "close"},
        {"GET /hello HTTP/1.0\r\n" TC_HEAD "Connection: keep-alive\r\n\r\n",
         "keep-alive"},
        {"GET /pieces?count=3&size=5 HTTP/1.0\r\n" TC_HEAD
         "Connection: keep-alive\r\n\r\n", "close"},
        {"GET /pieces?count=3&size=5 HTTP/1.1\r\n" TC_HEAD "\r\n", NULL},
        {"HEAD /hello HTTP/1.1\r\n" TC_HEAD "\r\n", NULL},
        {"HEAD /pieces?count=3&size=5 HTTP/1.1\r\n" TC_HEAD "\r\n", NULL},
        {"HEAD /none HTTP/1.1\r\n" TC_HEAD "\r\n", NULL},
        {"GET /nothing HTTP/1.1\r\n" TC_HEAD "\r\n", NULL},
        {"GET /nothing?pieces HTTP/1.1\r\n" TC_HEAD "\r\n", NULL},
        {"GET /fields HTTP/1.1\r\n" TC_HEAD "\r\n", NULL},
    };
    size_t i;
    for (i = 0; i < TT_COUNT(list); i++) {
        ts_reply r = HFSB_INIT;
        ts_conn  c = tc_ask(&s, &r, list[i].raw);
        hfsb_str is = ts_field(&r, "Connection");
        bool     keeps =
            !list[i].connection || strcmp(list[i].connection, "close");
        check_head(&r);
        T_CHECK(r.status / 100 == 2 || r.status == 404);
        if (list[i].connection)
            T_CHECK(hfsb_str_equal(is, hfsb_cstr(list[i].connection)));
        else T_CHECK(!is.ptr);
        if (r.status == 204)
            T_CHECK(!ts_field(&r, "Content-Length").ptr && !r.chunked);
        T_CHECK(c.in.len == 0); /* nothing after the reply */
        if (keeps) T_CHECK(tc_lives(&c));
        else T_CHECK(ts_closes(&c, 10000));
        ts_drop(&r);
        ts_hang_up(&c);
    }
}

static void head_replies_with_the_fields_of_get(void) {
    ts_reply a = HFSB_INIT, b = HFSB_INIT;
    ts_conn  c = tc_ask(&s, &a, TC_GET("/hello"));
    ts_conn  d = tc_ask(&s, &b, "HEAD /hello HTTP/1.1\r\n" TC_HEAD "\r\n");
    T_STR(ts_field(&b, "Content-Length"), "5");
    T_CHECK(a.head.len == b.head.len && b.body.len == 0);
    ts_hang_up(&c);
    ts_hang_up(&d);
    ts_drop(&a);
    ts_drop(&b);
}

static void expect_continue_is_answered(void) {
    ts_reply r = HFSB_INIT;
    ts_conn  c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT("POST /echo HTTP/1.1\r\n" TC_HEAD
                                 "Expect: 100-continue\r\n"
                                 "Content-Length: 4\r\n\r\n")));
    T_CHECK(ts_await(&c, "HTTP/1.1 100 Continue\r\n\r\n", 10000));
    T_CHECK(c.in.len == 25);
    T_CHECK(ts_send(&c, HFSB_LIT("body")) && ts_read(&c, &r, false));
    TS_IS(&r, 200, "body");
    T_CHECK(tc_lives(&c));
    /* refused: no 100, and a close, since the body may or may not follow */
    T_CHECK(ts_send(&c, HFSB_LIT("POST /secret HTTP/1.1\r\n" TC_HEAD
                                 "Expect: 100-continue\r\n"
                                 "Content-Length: 4\r\n\r\n")));
    T_CHECK(ts_await(&c, "\r\n\r\n", 10000));
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&c.in), HFSB_LIT("HTTP/1.1 401 ")));
    T_CHECK(ts_read(&c, &r, false));
    T_STR(ts_field(&r, "Connection"), "close");
    T_CHECK(ts_closes(&c, 10000));
    ts_hang_up(&c);
    /* nothing to wait for */
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT("GET /hello HTTP/1.1\r\n" TC_HEAD
                                 "Expect: 100-continue\r\n\r\n")));
    T_CHECK(ts_await(&c, "hello", 10000));
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&c.in), HFSB_LIT("HTTP/1.1 200 ")));
    ts_hang_up(&c);
    ts_drop(&r);
}

/* ---- pipelines and cuts ---- */

static const char talk[] =
    "\r\n" TC_GET("/hello")
    "POST /echo HTTP/1.1\r\n" TC_HEAD "Content-Length: 12\r\n\r\n"
    "GET / HTTP/\r"
    "POST /late HTTP/1.1\r\n" TC_HEAD "Transfer-Encoding: chunked\r\n\r\n"
    "3\r\nabc\r\n5;x=\"y\"\r\ndefgh\r\n0\r\nTrailer: t\r\n\r\n"
    "POST /none HTTP/1.1\r\n" TC_HEAD "Content-Length: 4\r\n\r\nGET "
    "PUT /stream HTTP/1.1\r\n" TC_HEAD "Content-Length: 9\r\n\r\n123456789"
    "HEAD /hello HTTP/1.1\r\n" TC_HEAD "\r\n"
    "POST /threaded?ms=0 HTTP/1.1\r\n" TC_HEAD "Content-Length: 2\r\n\r\nok"
    "GET /secret HTTP/1.1\r\n" TC_HEAD "X-Sandbox-Authorization: Bearer "
    TS_TOKEN "\r\n\r\n"
    TC_GET("/pieces?count=2&size=3")
    "PUT /stream HTTP/1.1\r\n" TC_HEAD "Transfer-Encoding: chunked\r\n\r\n"
    "4\r\n1234\r\n5\r\n56789\r\n0\r\n\r\n"
    TC_LAST("/hello");

/* The replies to talk when it is sent in pieces that end at `cuts`. */
static void talk_in_cuts(const size_t *cuts, size_t count, hfsb_buf *all) {
    ts_conn c = ts_connect(&s);
    size_t  i, from = 0;
    for (i = 0; i <= count; i++) {
        size_t to = i < count ? cuts[i] : sizeof talk - 1;
        T_CHECK(ts_send(&c, hfsb_str_make(talk + from, to - from)));
        /* the server is to see it in pieces */
        if (i < count) usleep(i % 3 ? 0 : 300);
        from = to;
    }
    tc_rest(&c, all);
    ts_hang_up(&c);
}

static void replies_do_not_depend_on_how_input_is_cut(void) {
    hfsb_buf           want = HFSB_INIT, is = HFSB_INIT;
    unsigned long long seed = 7;
    size_t             cuts[64], i, k, n, at, step = t_quick() ? 17 : 1;
    talk_in_cuts(NULL, 0, &want);
    T_CHECK(tc_count(hfsb_buf_str(&want), "HTTP/1.1 ") == 11);
    T_CHECK(tc_count(hfsb_buf_str(&want), "HTTP/1.1 20") == 10);
    T_CHECK(tc_count(hfsb_buf_str(&want), "abcdefgh") == 1);
    for (i = 1; i < sizeof talk - 1; i += step) {
        hfsb_buf_truncate(&is, 0);
        talk_in_cuts(&i, 1, &is);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&is), hfsb_buf_str(&want)));
    }
    for (i = 0; i < (t_quick() ? 10u : 300u); i++) {
        n = 1 + t_random(&seed) % 64;
        for (k = at = 0; k < n; k++)
            cuts[k] = at += t_random(&seed) % ((sizeof talk - 1) / n);
        hfsb_buf_truncate(&is, 0);
        talk_in_cuts(cuts, n, &is);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&is), hfsb_buf_str(&want)));
    }
    hfsb_buf_free(&want);
    hfsb_buf_free(&is);
}

static void *send_all(void *user) {
    hfsb_buf *b = (hfsb_buf *)user;
    ts_conn   c = HFSB_INIT;
    c.fd = (int)b->max; /* the descriptor goes along */
    (void)ts_send(&c, hfsb_buf_str(b));
    return NULL;
}

/* 10,000 in one go, answered in order, while the peer reads. */
static void pipelined_requests_are_answered_in_order(void) {
    hfsb_buf  raw = HFSB_INIT;
    ts_conn   c = ts_connect(&s);
    ts_reply  r = HFSB_INIT;
    pthread_t sender;
    size_t    i, n = t_quick() ? 500 : 10000;
    for (i = 0; i < n; i++) {
        static const char *const ways[] = {"/echo", "/late", "/echo",
                                           "/threaded"};
        T_CHECK(hfsb_buf_printf(&raw,
                                "POST %s HTTP/1.1\r\n" TC_HEAD
                                "Content-Length: 8\r\n\r\n%08zu",
                                ways[i % 4], i) == HFSB_OK);
    }
    raw.max = (size_t)c.fd;
    if (pthread_create(&sender, NULL, send_all, &raw)) abort();
    for (i = 0; i < n; i++) {
        if (!ts_read(&c, &r, false) || r.body.len != 8 ||
            strtoul(r.body.ptr, NULL, 10) != i)
            break;
    }
    T_CHECK(i == n);
    pthread_join(sender, NULL);
    T_CHECK(tc_lives(&c));
    raw.max = 0;
    hfsb_buf_free(&raw);
    ts_drop(&r);
    ts_hang_up(&c);
}

/* Requests that follow a slow one wait until it is answered. */
static void pipelined_requests_wait_for_a_slow_one(void) {
    hfsb_buf raw = HFSB_INIT;
    ts_conn  c = ts_connect(&s), d = ts_connect(&s);
    ts_reply r = HFSB_INIT;
    size_t   i;
    t_repeat(&raw, TC_GET("/hold"), 1);
    t_repeat(&raw, TC_GET("/hello"), 200);
    T_CHECK(ts_send(&c, hfsb_buf_str(&raw)));
    T_CHECK(tc_becomes(&tc.holding, 1));
    T_CHECK(tc_lives(&d)); /* others are served */
    T_CHECK(!ts_more(&c, 100));
    tc_release(s.server);
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, "held");
    for (i = 0; i < 200; i++) T_CHECK(ts_read(&c, &r, false));
    T_CHECK(tc_lives(&c));
    ts_hang_up(&c);
    ts_hang_up(&d);
    ts_drop(&r);
    hfsb_buf_free(&raw);
}

/* The last reply is followed by an end, not a reset, when the peer sent more
   while it waited: that was left in the kernel, and would be a reset. */
static void last_reply_is_complete_despite_unread_input(void) {
    hfsb_buf raw = HFSB_INIT;
    ts_conn  c = ts_connect(&s);
    ts_reply r = HFSB_INIT;
    char     byte;
    t_repeat(&raw, TC_LAST("/hold"), 1);
    t_repeat(&raw, TC_GET("/hello"), 20);
    T_CHECK(ts_send(&c, hfsb_buf_str(&raw)));
    T_CHECK(tc_becomes(&tc.holding, 1));
    T_CHECK(ts_send(&c, HFSB_LIT(TC_GET("/hello"))));
    tc_release(s.server);
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, "held");
    T_CHECK(c.in.len == 0 && recv(c.fd, &byte, 1, 0) == 0);
    ts_hang_up(&c);
    ts_drop(&r);
    hfsb_buf_free(&raw);
}

/* A reply that was given before the body has come reaches a peer that first
   sends all of it, and then reads. */
static void refusal_reaches_a_peer_that_is_still_sending(void) {
    hfsb_buf raw = HFSB_INIT, all = HFSB_INIT;
    size_t   mib = 24;
    ts_conn  c;
    t_repeat(&raw, "POST /secret HTTP/1.1\r\n" TC_HEAD, 1);
    T_CHECK(hfsb_buf_printf(&raw, "Content-Length: %zu\r\n\r\n", mib << 20) ==
            HFSB_OK);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, hfsb_buf_str(&raw)));
    hfsb_buf_truncate(&raw, 0);
    T_CHECK(hfsb_buf_reserve(&raw, 1 << 20) == HFSB_OK);
    memset(raw.ptr, 'x', 1 << 20);
    raw.len = 1 << 20;
    while (mib-- > 0 && ts_send(&c, hfsb_buf_str(&raw))) continue;
    T_CHECK(mib == (size_t)-1); /* it was all taken */
    tc_rest(&c, &all);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&all), HFSB_LIT("HTTP/1.1 401 ")));
    T_CHECK(hfsb_str_find(hfsb_buf_str(&all), HFSB_LIT(NO_TOKEN)) !=
            HFSB_NPOS);
    ts_hang_up(&c);
    hfsb_buf_free(&raw);
    hfsb_buf_free(&all);
}

static void log_has_an_event_per_request(void) {
    ts_conn c = ts_connect(&s);
    size_t  before = tc_get(&tc.events);
    T_CHECK(tc_lives(&c));
    T_CHECK(tc_becomes(&tc.events, before + 1));
    pthread_mutex_lock(&tc.lock);
    T_CHECK(tc.last_status == 200 && !strcmp(tc.last_path, "/hello") &&
            !strcmp(tc.last_peer, "127.0.0.1"));
    pthread_mutex_unlock(&tc.lock);
    ts_hang_up(&c);
}

static void log_reports_why_there_was_no_reply(void) {
    ts_conn c = ts_connect(&s);
    size_t  before = tc_get(&tc.events), held = tc_get(&tc.held_ever);
    T_CHECK(ts_send(&c, HFSB_LIT("GET /none HTTP/1.1\r\nHost: localhost\r\n"
                                 "\r\n")));
    T_CHECK(tc_becomes(&tc.events, before + 1));
    pthread_mutex_lock(&tc.lock);
    T_CHECK(tc.last_status == 404 && !strcmp(tc.last_detail, "Not Found"));
    pthread_mutex_unlock(&tc.lock);
    T_CHECK(ts_send(&c, HFSB_LIT("GET /hold HTTP/1.1\r\nHost: localhost\r\n"
                                 "\r\n")));
    T_CHECK(tc_becomes(&tc.held_ever, held + 1));
    ts_reset(&c);
    T_CHECK(tc_becomes(&tc.events, before + 2));
    pthread_mutex_lock(&tc.lock);
    T_CHECK(tc.last_status == 0 && !strcmp(tc.last_path, "/hold") &&
            strstr(tc.last_detail, "went away") != NULL);
    pthread_mutex_unlock(&tc.lock);
}

int main(void) {
    hfsb_server_opts o = HFSB_INIT;
    tt_begin();
    o.on_event = tc_log;
    tc_start(&s, &o);
    TT_RUN(every_error_has_a_json_body);
    TT_RUN(a_405_lists_the_allowed_methods);
    TT_RUN(targets_and_heads_have_limits);
    TT_RUN(version_and_connection_field_decide_keep_alive);
    TT_RUN(head_replies_with_the_fields_of_get);
    TT_RUN(expect_continue_is_answered);
    TT_RUN(replies_do_not_depend_on_how_input_is_cut);
    TT_RUN(pipelined_requests_are_answered_in_order);
    TT_RUN(pipelined_requests_wait_for_a_slow_one);
    TT_RUN(last_reply_is_complete_despite_unread_input);
    TT_RUN(refusal_reaches_a_peer_that_is_still_sending);
    TT_RUN(log_has_an_event_per_request);
    TT_RUN(log_reports_why_there_was_no_reply);
    ts_end(&s, false);
    return TT_END();
}
