/* test_server_host.c - what a host adds to a server: timers, JSON in requests
   and replies, its own way to decide who may; and its own name. */
#include "../support/t_conn.h"

/* ---- timers and JSON ---- */

typedef struct ticker {
    hfsb_timer   *timer;
    hfsb_request *request;
    int           left, gone;
} ticker;

static void tick(void *user) {
    ticker *t = (ticker *)user;
    char    line[32];
    snprintf(line, sizeof line, "tick %d\n", t->left);
    (void)hfsb_reply_write(t->request, hfsb_cstr(line));
    if (--t->left > 0) {
        hfsb_timer_set(t->timer, 5);
        return;
    }
    hfsb_reply_end(t->request);
    hfsb_timer_close(t->timer); /* its own */
    t->timer = NULL;
}

static void stop_ticking(void *user, hfsb_request *request) {
    ticker *t = (ticker *)user;
    (void)request;
    hfsb_timer_close(t->timer);
    t->timer = NULL;
    t->gone++;
}

static void start_ticking(void *user, hfsb_request *request) {
    ticker *t = (ticker *)user;
    t->request = request;
    t->left = hfsb_str_equal(hfsb_request_part(request, 0), HFSB_LIT("long"))
                  ? 1 << 30
                  : 3;
    T_CHECK(hfsb_timer_open(hfsb_request_server(request), tick, t, &t->timer,
                            NULL) == HFSB_OK);
    hfsb_request_on_gone(request, stop_ticking, t);
    hfsb_reply_begin(request, 200, "text/plain");
    hfsb_timer_set(t->timer, 100000);
    hfsb_timer_set(t->timer, 5); /* the last one counts */
}

static void greet(void *user, hfsb_request *request) {
    (void)user;
    hfsb_reply_json(request, 201, "{\"hello\":\"" HFSB_F "\",\"sum\":%g}",
                    HFSB_V(hfsb_request_part(request, 0)), 3.5);
}

static void add_routes(hfsb_server *server, ticker *t) {
    hfsb_route route = HFSB_INIT;
    route.method = "GET";
    route.path = "/ticks/*";
    route.fn = start_ticking;
    route.user = t;
    T_CHECK(hfsb_server_add(server, &route, NULL) == HFSB_OK);
    route.path = "/hello/*";
    route.fn = greet;
    T_CHECK(hfsb_server_add(server, &route, NULL) == HFSB_OK);
    route.path = "/slow/*";
    route.threaded = true;
    T_CHECK(hfsb_server_add(server, &route, NULL) == HFSB_OK);
}

static void timers_tick_until_closed(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_conn   c;
    ticker    t = HFSB_INIT;
    ts_open(&s, NULL);
    add_routes(s.server, &t);
    ts_run(&s);
    ts_get(&s, &r, "/ticks/short");
    TS_IS(&r, 200, NULL);
    T_STR(r.body, "tick 3\ntick 2\ntick 1\n");
    c = ts_connect(&s);
    ts_ask(&c, "GET", "/ticks/long", "", hfsb_str_make(NULL, 0));
    T_CHECK(ts_await(&c, "tick 1073741820", 30000));
    ts_reset(&c);
    ts_get(&s, &r, "/hello/you");
    TS_IS(&r, 201, NULL);
    ts_end(&s, true);
    T_CHECK(t.gone == 1 && !t.timer);
    ts_drop(&r);
}

static void count_calls(void *user) {
    ++*(int *)user;
}

static void timers_that_are_left_close_with_the_server(void) {
    ts_server   s;
    hfsb_timer *a, *b, *c, *d;
    int         calls = 0, i;
    ts_open(&s, NULL);
    T_CHECK(hfsb_timer_open(s.server, count_calls, &calls, &a, NULL) ==
            HFSB_OK);
    T_CHECK(hfsb_timer_open(s.server, count_calls, &calls, &b, NULL) ==
            HFSB_OK);
    T_CHECK(hfsb_timer_open(s.server, count_calls, &calls, &c, NULL) ==
            HFSB_OK);
    T_CHECK(hfsb_timer_open(s.server, count_calls, &calls, &d, NULL) ==
            HFSB_OK);
    hfsb_timer_set(a, 0);
    hfsb_timer_set(b, LLONG_MAX);
    hfsb_timer_set(c, 0);
    hfsb_timer_close(c);
    hfsb_timer_set(d, 0);
    hfsb_timer_set(d, -1);
    hfsb_timer_close(NULL);
    for (i = 0; i < 3; i++) T_CHECK(hfsb_server_poll(s.server, 10));
    T_CHECK(calls == 1);
    ts_end(&s, false); /* counts the memory */
    T_CHECK(calls == 1);
}

static void json_replies_are_escaped(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ticker    t = HFSB_INIT;
    size_t    i;
    ts_open(&s, NULL);
    add_routes(s.server, &t);
    ts_run(&s);
    for (i = 0; i < 2; i++) {
        ts_get(&s, &r, i ? "/slow/a%22b%0a" : "/hello/a%22b%0a");
        TS_IS(&r, 201, NULL);
        T_STR(r.body, "{\"hello\":\"a\\\"b\\n\",\"sum\":3.5}");
        T_STR(ts_field(&r, "Content-Type"), "application/json");
    }
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- requests ---- */

/* POST /sum: {"list":[...]} */
static void sum_up(void *user, hfsb_request *request) {
    hfsb_json_doc  doc;
    hfsb_json_iter it;
    double         sum = 0;
    (void)user;
    if (!hfsb_request_json(request, &doc)) {
        T_CHECK(!doc.root && !doc.block);
        return;
    }
    it = hfsb_json_begin(hfsb_json_get(doc.root, "list"));
    while (hfsb_json_next(&it)) sum += hfsb_json_double(it.value, 0);
    hfsb_reply_json(request, 200, "{\"sum\":%g}", sum);
    hfsb_json_free(&doc);
}

/* GET /int: the number n of the query */
static void show_int(void *user, hfsb_request *request) {
    (void)user;
    hfsb_reply_json(request, 200, "%lld",
                    hfsb_request_query_int(request, "n", 7));
}

/* Has memory for a large body, but not for its document. */
static void *refuse_much(void *user, void *ptr, size_t old_size,
                         size_t new_size) {
    hfsb_alloc under = tt_alloc();
    (void)user;
    if (new_size > 2000000) return NULL;
    return under.fn(under.user, ptr, old_size, new_size);
}

static void post_sum(const ts_server *s, hfsb_str body, int status,
                     const char *want) {
    ts_reply r = HFSB_INIT;
    ts_call(s, &r, "POST", "/sum", "", body);
    TS_IS(&r, status, want);
    ts_drop(&r);
}

static void bodies_are_parsed_or_refused(void) {
    hfsb_server_opts o = HFSB_INIT;
    hfsb_route       route = HFSB_INIT;
    hfsb_buf         large = HFSB_INIT;
    ts_server        s;
    o.alloc.fn = refuse_much;
    ts_open(&s, &o);
    route.method = "POST";
    route.path = "/sum";
    route.fn = sum_up;
    T_CHECK(hfsb_server_add(s.server, &route, NULL) == HFSB_OK);
    ts_run(&s);
    post_sum(&s, HFSB_LIT("{\"list\":[1,2.5]}"), 200, "{\"sum\":3.5}");
    post_sum(&s, HFSB_LIT("{\"list\":[1,2.5}"), 400, "column 15");
    post_sum(&s, HFSB_LIT(""), 400, NULL);
    t_repeat(&large, "[", 1);
    t_repeat(&large, "[[],[]],", 50000);
    t_repeat(&large, "0]", 1);
    post_sum(&s, hfsb_buf_str(&large), 503, "out of memory");
    hfsb_buf_free(&large);
    ts_end(&s, false);
}

static void numbers_of_the_query_are_read_or_replaced(void) {
    static const struct {
        const char *query, *want;
    } list[] = {{"", "7"},
                {"?n=12", "12"},
                {"?m=1&n=-5", "-5"},
                {"?n=%31", "1"},
                {"?n=9223372036854775807", "9223372036854775807"},
                {"?n=-9223372036854775808", "-9223372036854775808"},
                {"?n=9223372036854775808", "7"},
                {"?n=-9223372036854775809", "7"},
                {"?n=-0", "0"},
                {"?n=", "7"},
                {"?n=-", "7"},
                {"?n=--1", "7"},
                {"?n=+1", "7"},
                {"?n=1.0", "7"},
                {"?n=1x", "7"},
                {"?n=%zz", "7"}};
    hfsb_route route = HFSB_INIT;
    ts_server  s;
    ts_reply   r = HFSB_INIT;
    size_t     i;
    char       target[64];
    ts_open(&s, NULL);
    route.method = "GET";
    route.path = "/int";
    route.fn = show_int;
    T_CHECK(hfsb_server_add(s.server, &route, NULL) == HFSB_OK);
    ts_run(&s);
    for (i = 0; i < sizeof list / sizeof *list; i++) {
        snprintf(target, sizeof target, "/int%s", list[i].query);
        ts_get(&s, &r, target);
        TS_IS(&r, 200, NULL);
        T_CHECK(!strcmp(hfsb_buf_cstr(&r.body), list[i].want));
    }
    ts_drop(&r);
    ts_end(&s, false);
}

static void replies_name_the_library_unless_told_not_to(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    ts_reply         r = HFSB_INIT;
    ticker           t = HFSB_INIT;
    int              i;
    for (i = 0; i < 2; i++) {
        o.no_name = i == 1;
        ts_open(&s, &o);
        add_routes(s.server, &t);
        ts_run(&s);
        ts_get(&s, &r, "/hello/you");
        TS_IS(&r, 201, NULL);
        T_CHECK((ts_field(&r, "X-Hfsb").len == 0) == o.no_name);
        T_STR(ts_field(&r, "X-Content-Type-Options"), "nosniff");
        ts_end(&s, false);
    }
    ts_drop(&r);
}

/* ---- who may ---- */

static bool knows_the_word(void *user, const hfsb_request *request) {
    const hfsb_http_head *head = hfsb_request_head(request);
    ++*(int *)user;
    return hfsb_secret_equal(hfsb_http_field_find(head, "X-Word"),
                             HFSB_LIT("sesame")) ||
           hfsb_secret_equal(hfsb_http_field_find(head, "Authorization"),
                             HFSB_LIT("Basic c2VzYW1l"));
}

static int status_with(const ts_server *s, const char *target,
                       const char *fields) {
    hfsb_buf raw = HFSB_INIT;
    ts_conn  c = ts_connect(s);
    ts_reply r = HFSB_INIT;
    int      status;
    T_CHECK(hfsb_buf_printf(&raw,
                            "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n",
                            target, fields) == HFSB_OK);
    T_CHECK(ts_send(&c, hfsb_buf_str(&raw)) && ts_read(&c, &r, false));
    status = r.status;
    ts_hang_up(&c);
    ts_drop(&r);
    hfsb_buf_free(&raw);
    return status;
}

static void hosts_decide_who_may(void) {
    static const struct {
        const char *fields;
        int         status, asked;
    } list[] = {
        {"", 401, 1},
        {"X-Word: sesame\r\n", 201, 1},
        {"X-Word: Sesame\r\n", 401, 1},
        {"Authorization: Basic c2VzYW1l\r\n", 201, 1},
        {"Authorization: Bearer wrong\r\n", 401, 1},
        {"Authorization: Bearer wrong\r\nX-Word: sesame\r\n", 201, 1},
        {"Authorization: Bearer " TS_TOKEN "\r\n", 201, 0},
        {"X-Sandbox-Authorization: Bearer " TS_TOKEN "\r\n", 201, 0}};
    hfsb_server_opts o = HFSB_INIT;
    hfsb_server     *server;
    hfsb_err         err = HFSB_INIT;
    ts_server        s;
    ticker           t = HFSB_INIT;
    int              asked = 0;
    size_t           i, with_token;
    o.authorize = knows_the_word;
    o.user = &asked;
    o.alloc = tt_alloc();
    for (with_token = 0; with_token < 2; with_token++) {
        o.token = with_token ? HFSB_LIT(TS_TOKEN) : hfsb_str_make(NULL, 0);
        T_CHECK(hfsb_server_open(&o, &server, &err) == HFSB_OK);
        memset(&s, 0, sizeof s);
        s.server = server;
        T_CHECK(hfsb_server_listen(server, NULL, 0, &s.port, &err) == HFSB_OK);
        add_routes(server, &t);
        ts_run(&s);
        for (i = 0; i < sizeof list / sizeof *list; i++) {
            bool token = strstr(list[i].fields, TS_TOKEN) != NULL;
            int  status = list[i].status;
            if (token && !with_token) status = 401;
            asked = 0;
            T_CHECK(status_with(&s, "/hello/x", list[i].fields) == status);
            T_CHECK(asked == (token && !with_token ? 1 : list[i].asked));
        }
        ts_end(&s, false);
    }
}

/* A token that nobody gave the server is not asked for. */
static void refusals_speak_of_a_token_only_if_there_is_one(void) {
    hfsb_server_opts o = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    ts_server        s = HFSB_INIT;
    ts_reply         r = HFSB_INIT;
    ticker           t = HFSB_INIT;
    int              asked = 0, i;
    o.authorize = knows_the_word;
    o.user = &asked;
    o.alloc = tt_alloc();
    for (i = 0; i < 2; i++) {
        o.token = i ? HFSB_LIT("another-token") : hfsb_str_make(NULL, 0);
        T_CHECK(hfsb_server_open(&o, &s.server, &err) == HFSB_OK);
        T_CHECK(hfsb_server_listen(s.server, NULL, 0, &s.port, &err) ==
                HFSB_OK);
        add_routes(s.server, &t);
        ts_run(&s);
        ts_get(&s, &r, "/hello/x");
        TS_REFUSED(&r, 401, i ? "Invalid bearer token" : "Not authorized.");
        T_CHECK(!strstr(hfsb_buf_cstr(&r.body), "token") == !i);
        ts_end(&s, false);
    }
    ts_drop(&r);
}

int main(void) {
    tt_begin();
    TT_RUN(timers_tick_until_closed);
    TT_RUN(timers_that_are_left_close_with_the_server);
    TT_RUN(json_replies_are_escaped);
    TT_RUN(bodies_are_parsed_or_refused);
    TT_RUN(numbers_of_the_query_are_read_or_replaced);
    TT_RUN(replies_name_the_library_unless_told_not_to);
    TT_RUN(hosts_decide_who_may);
    TT_RUN(refusals_speak_of_a_token_only_if_there_is_one);
    return TT_END();
}
