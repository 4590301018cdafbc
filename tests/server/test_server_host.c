/* test_server_host.c - what a host adds to a server: timers, JSON replies, its
   own way to decide who may. */
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

int main(void) {
    tt_begin();
    TT_RUN(timers_tick_until_closed);
    TT_RUN(timers_that_are_left_close_with_the_server);
    TT_RUN(json_replies_are_escaped);
    TT_RUN(hosts_decide_who_may);
    return TT_END();
}
