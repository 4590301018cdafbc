/* test_api_idle.c - a server that stops when nobody uses it: what counts as
   use, and what does not. */
#include "../support/t_server.h"

enum { LONG_MS = 60000 }; /* more than any of these servers lives */

static ts_server srv;
static int       idle_events;

static void count_event(void *user, const hfsb_server_event *event) {
    (void)user;
    if (strcmp(event->what, "idle") != 0) return;
    idle_events++;
    T_CHECK(hfsb_str_ends(event->detail, HFSB_LIT("the server stops")));
}

static void begin(long long max_idle_ms) {
    hfsb_server_opts opts = HFSB_INIT;
    opts.max_idle_ms = max_idle_ms;
    opts.on_event = count_event;
    idle_events = 0;
    ts_start(&srv, &opts, NULL);
}

/* Waits until the server stops by itself; how long after `began`. */
static long long stopped(long long began) {
    long long took;
    pthread_join(srv.thread, NULL);
    took = hfsb_clock_ms() - began;
    T_CHECK(srv.ended == HFSB_OK && idle_events == 1);
    T_CHECK(took < LONG_MS);
    srv.started = false;
    ts_end(&srv, false);
    return took;
}

static void an_unused_server_stops(void) {
    long long began = hfsb_clock_ms();
    begin(300);
    T_CHECK(stopped(began) >= 300);
}

static void a_server_without_the_option_does_not_stop(void) {
    ts_reply r = HFSB_INIT;
    begin(0);
    tt_sleep_ms(500);
    ts_get(&srv, &r, "/api/health");
    T_CHECK(r.status == 200);
    ts_drop(&r);
    ts_end(&srv, false);
    T_CHECK(idle_events == 0);
}

/* False if a busy machine called too late. */
static bool calls_keep_a_server(void) {
    ts_reply  r = HFSB_INIT;
    long long began = hfsb_clock_ms(), last = began;
    bool      late = false;
    begin(2000);
    while (hfsb_clock_ms() - began < 4500 && !late) {
        last = hfsb_clock_ms();
        ts_post(&srv, &r, "/api/exists", "{\"path\":\"/\"}");
        T_CHECK(r.status == 200);
        tt_sleep_ms(100);
        late = hfsb_clock_ms() - last > 1500;
    }
    T_CHECK(late || idle_events == 0);
    T_CHECK(stopped(last) >= 2000);
    ts_drop(&r);
    return !late;
}

static void calls_keep_it(void) {
    int i;
    for (i = 0; i < 10 && !calls_keep_a_server(); i++) continue;
    T_CHECK(i < 10);
}

/* Health checks and requests with a wrong token, until the server is gone. */
static void strangers_do_not(void) {
    static const char *const asked[] = {
        "GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "X-Sandbox-Authorization: Bearer " TS_TOKEN "\r\n\r\n",
        "POST /api/exists HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n"
        "X-Sandbox-Authorization: Bearer wrong\r\n\r\n"};
    long long began = hfsb_clock_ms();
    size_t    n = 0;
    ts_reply  r = HFSB_INIT;
    ts_conn   c;
    begin(2000);
    c = ts_connect(&srv);
    while (n < 1000 && ts_send(&c, hfsb_cstr(asked[n % 2])) &&
           ts_read(&c, &r, false)) {
        T_CHECK(r.status == (n % 2 ? 401 : 200) || r.status == 503);
        tt_sleep_ms(50);
        n++;
    }
    ts_drop(&r);
    ts_hang_up(&c);
    T_CHECK(n > 1 && n < 1000);
    (void)stopped(began);
}

static void a_command_keeps_it(void) {
    ts_reply  r = HFSB_INIT;
    long long began;
    begin(2000);
    ts_post(&srv, &r, "/api/bash",
            "{\"command\":\"sleep 2.5; echo done\"}"); /* longer than that */
    T_CHECK(ts_flag(&r, "success") && ts_contains(&r, "done"));
    began = hfsb_clock_ms();
    ts_post(&srv, &r, "/api/bash",
            "{\"command\":\"sleep 2.5\",\"background\":true}");
    T_CHECK(ts_flag(&r, "success"));
    T_CHECK(stopped(began) >= 4400);
    ts_drop(&r);
}

static void an_open_request_keeps_it(void) {
    ts_reply  r = HFSB_INIT;
    long long began = hfsb_clock_ms();
    begin(2000);
    ts_get(&srv, &r, "/api/events?since=0&wait_ms=2500");
    T_CHECK(r.status == 200);
    T_CHECK(stopped(began) >= 4400);
    ts_drop(&r);
}

/* The page asks for events again and again in a tab that nobody looks at. */
static void a_forgotten_page_does_not(void) {
    static const char *const asked[] = {
        "/api/events?since=1000&wait_ms=400", "/api/stats", "/api/jobs",
        "/api/plan"};
    long long began = hfsb_clock_ms();
    size_t    n = 0;
    ts_reply  r = HFSB_INIT;
    ts_conn   c;
    begin(2000);
    c = ts_connect(&srv);
    do {
        ts_ask(&c, "GET", asked[n % TT_COUNT(asked)],
               "X-Hfsb-Who: page\r\n", hfsb_str_make("", 0));
        if (n % TT_COUNT(asked)) tt_sleep_ms(50);
    } while (n++ < 1000 && ts_read(&c, &r, false));
    ts_drop(&r);
    ts_hang_up(&c);
    T_CHECK(n > 1 && n < 1000);
    (void)stopped(began);
}

/* ... but what a person saves by it does not end in the middle. */
static void a_file_that_the_page_saves_keeps_it(void) {
    enum { SIZE = 24 << 20 }; /* more than the kernel holds */
    hfsb_str  nothing = hfsb_str_make("", 0);
    hfsb_buf  body = HFSB_INIT;
    ts_reply  r = HFSB_INIT;
    long long began = hfsb_clock_ms();
    ts_conn   c;
    tt_fill(&body, "0123456789abcdef", SIZE / 16);
    tt_put("saved", hfsb_buf_str(&body));
    begin(1500);
    c = ts_connect(&srv);
    ts_ask(&c, "GET", "/api/files?path=saved", "X-Hfsb-Who: page\r\n", nothing);
    T_CHECK(ts_await(&c, "0123456789abcdef", 20000));
    while (hfsb_clock_ms() - began < 4000) {
        tt_sleep_ms(50);
        (void)ts_more(&c, 100);
    }
    ts_get(&srv, &r, "/api/health"); /* still ready */
    TS_IS(&r, 200, NULL);
    T_CHECK(ts_read(&c, &r, false) && r.whole && r.body.len == SIZE);
    ts_hang_up(&c);
    ts_drop(&r);
    hfsb_buf_free(&body);
    (void)stopped(began);
}

/* A host that waits by itself learns until when. */
static void the_deadline_of_a_host_includes_it(void) {
    hfsb_server_opts opts = HFSB_INIT;
    long long        began = hfsb_clock_ms(), until;
    opts.max_idle_ms = 200;
    ts_open(&srv, &opts);
    until = hfsb_server_deadline(srv.server);
    T_CHECK(until >= began + 200 && until < began + LONG_MS);
    while (hfsb_server_poll(srv.server, LONG_MS)) continue;
    T_CHECK(hfsb_clock_ms() - began >= 200);
    hfsb_server_close(srv.server);
}

int main(void) {
    tt_begin();
    TT_RUN(an_unused_server_stops);
    TT_RUN(a_server_without_the_option_does_not_stop);
    TT_RUN(calls_keep_it);
    TT_RUN(strangers_do_not);
    TT_RUN(a_command_keeps_it);
    TT_RUN(an_open_request_keeps_it);
    TT_RUN(a_forgotten_page_does_not);
    TT_RUN(a_file_that_the_page_saves_keeps_it);
    TT_RUN(the_deadline_of_a_host_includes_it);
    return TT_END();
}
