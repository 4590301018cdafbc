/* test_api_events.c - GET /api/events: the journal as a poll and a stream. */
#include "../support/t_server.h"

#define STREAM "Accept: text/event-stream\r\n"

static const hfsb_json_value *event_at(const ts_reply *r, size_t i,
                                       const char *key) {
    return hfsb_json_get(
        hfsb_json_at(hfsb_json_get(r->json.root, "events"), i), key);
}
static hfsb_str event_text(const ts_reply *r, size_t i, const char *key) {
    return hfsb_json_str(event_at(r, i, key), HFSB_LIT("none"));
}
static size_t event_count(const ts_reply *r) {
    return hfsb_json_count(hfsb_json_get(r->json.root, "events"));
}

static void touch(const ts_server *s, int times) {
    ts_reply r = HFSB_INIT;
    while (times-- > 0) {
        ts_post(s, &r, "/api/exists", "{\"path\":\"a\"}");
        T_CHECK(r.status == 200);
    }
    ts_drop(&r);
}

static void a_poll_returns_what_there_is(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    ts_get(&s, &r, "/api/events");
    T_CHECK(r.status == 200 && event_count(&r) == 0 && ts_int(&r, "next") == 0);
    ts_post(&s, &r, "/api/bash", "{\"command\":\"exit 4\"}");
    touch(&s, 3);
    ts_get(&s, &r, "/api/events");
    T_CHECK(event_count(&r) == 5 && ts_int(&r, "next") == 5);
    T_CHECK(ts_int(&r, "lost") == 0);
    T_STR(event_text(&r, 0, "who"), "api");
    T_STR(event_text(&r, 0, "state"), "running");
    T_STR(event_text(&r, 1, "state"), "done");
    T_CHECK(hfsb_json_int(event_at(&r, 1, "exit_code"), -1) == 4);
    T_STR(event_text(&r, 4, "path"), "a");
    ts_get(&s, &r, "/api/events?since=1&limit=2");
    T_CHECK(event_count(&r) == 2 && ts_int(&r, "next") == 3);
    ts_get(&s, &r, "/api/events?since=5&wait_ms=0");
    T_CHECK(event_count(&r) == 0 && ts_int(&r, "next") == 5);
    /* after a restart numbers begin again */
    ts_get(&s, &r, "/api/events?since=500&wait_ms=10000");
    T_CHECK(event_count(&r) == 5 && ts_int(&r, "next") == 5);
    T_STR(ts_field(&r, "Cache-Control"), "no-store");
    ts_get(&s, &r, "/api/metrics");
    T_CHECK(ts_contains(&r, "\nhfsb_events_total 5\n"));
    T_CHECK(!ts_contains(&r, "hfsb_journal_failures_total"));
    ts_drop(&r);
    ts_end(&s, false);
}

static void a_poll_waits_for_the_next_event(void) {
    enum { MANY = 60 };
    ts_server s;
    ts_conn   c[MANY];
    ts_reply  r = HFSB_INIT;
    hfsb_str  none = HFSB_INIT;
    long long began;
    int       i;
    ts_start(&s, NULL, NULL);
    touch(&s, 1);
    for (i = 0; i < MANY; i++) {
        c[i] = ts_connect(&s);
        ts_ask(&c[i], "GET", "/api/events?since=1&wait_ms=50000", "", none);
    }
    for (i = 0; i < MANY; i++) T_CHECK(!ts_more(&c[i], i ? 0 : 150));
    ts_reset(&c[MANY - 1]); /* goes away */
    began = hfsb_clock_ms();
    touch(&s, 1);
    for (i = 0; i < MANY - 1; i++) {
        T_CHECK(ts_read(&c[i], &r, false));
        T_CHECK(event_count(&r) == 1 && ts_int(&r, "next") == 2);
        ts_hang_up(&c[i]);
    }
    T_CHECK(hfsb_clock_ms() - began < 20000);
    /* nobody waits any more; the next one does */
    touch(&s, 2);
    c[0] = ts_connect(&s);
    ts_ask(&c[0], "GET", "/api/events?since=4&wait_ms=50000", "", none);
    touch(&s, 1);
    T_CHECK(ts_read(&c[0], &r, false) && event_count(&r) == 1);
    ts_hang_up(&c[0]);
    ts_drop(&r);
    ts_end(&s, false);
}

static void a_poll_ends_at_its_deadline(void) {
    hfsb_server_sandbox_opts o = HFSB_INIT;
    ts_server                s;
    ts_reply                 r = HFSB_INIT;
    long long                began = hfsb_clock_ms();
    int                      i;
    o.beat_ms = 40;
    ts_start(&s, NULL, &o);
    ts_get(&s, &r, "/api/events?wait_ms=5"); /* before the first beat */
    T_CHECK(r.status == 200 && !r.chunked && event_count(&r) == 0);
    ts_get(&s, &r, "/api/events?wait_ms=300");
    T_CHECK(hfsb_clock_ms() - began >= 305);
    /* blanks keep the connection alive meanwhile; a busy machine may leave
       some out */
    for (i = 0; i < 10 && r.chunks < 3; i++)
        ts_get(&s, &r, "/api/events?wait_ms=300");
    T_CHECK(r.chunked && r.chunks >= 3 && event_count(&r) == 0);
    T_CHECK(r.body.ptr[0] == ' ' && ts_int(&r, "next") == 0);
    ts_drop(&r);
    ts_end(&s, false);
}

static void a_stream_sends_events_as_they_come(void) {
    hfsb_server_sandbox_opts o = HFSB_INIT;
    ts_server                s;
    ts_conn                  c;
    hfsb_str                 none = HFSB_INIT;
    o.beat_ms = 50;
    ts_start(&s, NULL, &o);
    touch(&s, 3);
    c = ts_connect(&s);
    ts_ask(&c, "GET", "/api/events?since=1", STREAM, none);
    T_CHECK(ts_await(&c, "Content-Type: text/event-stream", 20000));
    T_CHECK(ts_await(&c, "id: 3\ndata: {\"seq\":3,", 20000));
    T_CHECK(!strstr(c.in.ptr, "id: 1\n") && strstr(c.in.ptr, "id: 2\n"));
    touch(&s, 1);
    T_CHECK(ts_await(&c, "id: 4\ndata: {\"seq\":4,", 20000));
    T_CHECK(ts_await(&c, ": \n\n", 20000)); /* a sign of life */
    T_CHECK(!strstr(c.in.ptr, "event: lost"));
    ts_reset(&c);
    touch(&s, 1);
    /* a browser that connects again */
    c = ts_connect(&s);
    ts_ask(&c, "GET", "/api/events?since=1",
           STREAM "Last-Event-ID: 4\r\n", none);
    T_CHECK(ts_await(&c, "id: 5\n", 20000));
    T_CHECK(!strstr(c.in.ptr, "id: 4\n"));
    ts_hang_up(&c);
    ts_end(&s, false);
}

static void lost_events_are_counted(void) {
    hfsb_journal_opts        jo = HFSB_INIT;
    hfsb_tools_opts          t = HFSB_INIT;
    hfsb_server_sandbox_opts o = HFSB_INIT;
    hfsb_journal            *journal = NULL;
    ts_server                s;
    ts_conn                  c;
    ts_reply                 r = HFSB_INIT;
    hfsb_str                 none = HFSB_INIT;
    jo.max_events = 4;
    jo.alloc = tt_alloc();
    T_CHECK(hfsb_journal_open(&jo, &journal, NULL) == HFSB_OK);
    t.journal = journal;
    t.who = "tests";
    o.tools = &t;
    ts_start(&s, NULL, &o);
    touch(&s, 10);
    ts_get(&s, &r, "/api/events?since=2");
    T_CHECK(event_count(&r) == 4 && ts_int(&r, "lost") == 4);
    T_CHECK(ts_int(&r, "next") == 10);
    T_STR(event_text(&r, 0, "who"), "tests");
    c = ts_connect(&s);
    ts_ask(&c, "GET", "/api/events?since=2", STREAM, none);
    T_CHECK(ts_await(&c, "event: lost\ndata: {\"lost\":4}\n\n", 20000));
    T_CHECK(ts_await(&c, "id: 10\n", 20000));
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
    hfsb_journal_close(journal);
}

/* A stream that is not read does not hold anything up: its reader gets what is
   left of the events, and how many are missing. */
static void a_slow_reader_misses_some(void) {
    hfsb_journal_opts        jo = HFSB_INIT;
    hfsb_tools_opts          t = HFSB_INIT;
    hfsb_server_sandbox_opts o = HFSB_INIT;
    hfsb_journal            *journal = NULL;
    hfsb_tools              *tools;
    ts_server                s;
    ts_conn                  c;
    tt_reply                 r = HFSB_INIT;
    hfsb_buf                 path = HFSB_INIT;
    hfsb_str                 none = HFSB_INIT;
    int                      i;
    jo.max_events = 100;
    jo.alloc = tt_alloc();
    T_CHECK(hfsb_journal_open(&jo, &journal, NULL) == HFSB_OK);
    t.journal = journal;
    o.tools = &t;
    ts_start(&s, NULL, &o);
    c = ts_connect(&s);
    ts_ask(&c, "GET", "/api/events", STREAM, none);
    T_CHECK(ts_await(&c, "\r\n\r\n", 20000));
    tools = tt_open(&t); /* the same journal, from another thread */
    tt_fill(&path, "\x01", 900); /* six bytes each */
    for (i = 0; i < 3000; i++)
        tt_call(&r, tools, "exists", "path=v", hfsb_buf_str(&path));
    touch(&s, 1);
    T_CHECK(ts_await(&c, "event: lost", 60000));
    T_CHECK(ts_await(&c, "id: 3001\n", 60000));
    ts_hang_up(&c);
    hfsb_buf_free(&path);
    tt_drop(&r);
    hfsb_tools_close(tools);
    ts_end(&s, false);
    hfsb_journal_close(journal);
}

/* Not even the signs of life add to what waits for a reader that stopped. */
static void a_reader_that_stops_costs_bounded_memory(void) {
    hfsb_journal_opts        jo = HFSB_INIT;
    hfsb_tools_opts          t = HFSB_INIT;
    hfsb_server_sandbox_opts o = HFSB_INIT;
    hfsb_journal            *journal = NULL;
    hfsb_tools              *tools;
    ts_server                s;
    ts_conn                  c;
    tt_reply                 r = HFSB_INIT;
    hfsb_buf                 path = HFSB_INIT;
    hfsb_str                 none = HFSB_INIT;
    int                      i;
    jo.max_events = 100;
    jo.alloc = tt_alloc();
    T_CHECK(hfsb_journal_open(&jo, &journal, NULL) == HFSB_OK);
    t.journal = journal;
    o.tools = &t;
    o.beat_ms = 10;
    ts_start(&s, NULL, &o);
    c = ts_connect(&s);
    ts_ask(&c, "GET", "/api/events", STREAM, none);
    T_CHECK(ts_await(&c, "\r\n\r\n", 20000));
    tools = tt_open(&t);
    tt_fill(&path, "\x01", 900); /* six bytes each */
    for (i = 0; i < 6000; i++) {
        tt_call(&r, tools, "exists", "path=v", hfsb_buf_str(&path));
        if (i % 20 == 0) tt_sleep_ms(5);
    }
    T_CHECK(tt_memory_held() < 4u * 1024 * 1024);
    ts_hang_up(&c);
    hfsb_buf_free(&path);
    tt_drop(&r);
    hfsb_tools_close(tools);
    ts_end(&s, false);
    hfsb_journal_close(journal);
}

/* Requests that are not calls of a tool. */
static void files_and_input_are_events(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    hfsb_str  none = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    ts_call(&s, &r, "PUT", "/api/files?path=u.txt", "", HFSB_LIT("hello"));
    T_CHECK(r.status == 201);
    ts_get(&s, &r, "/api/files?path=u.txt");
    ts_call(&s, &r, "DELETE", "/api/files?path=u.txt", "", none);
    ts_call(&s, &r, "DELETE", "/api/files?path=u.txt", "", none);
    T_CHECK(r.status == 404);
    ts_post(&s, &r, "/api/bash",
            "{\"command\":\"cat\",\"background\":true,\"id\":\"job\"}");
    ts_call(&s, &r, "POST", "/api/jobs/job/input?eof=1",
            "Content-Type: text/plain\r\n", HFSB_LIT("private words"));
    T_CHECK(r.status == 200);
    ts_get(&s, &r, "/api/events");
    T_STR(event_text(&r, 0, "tool"), "upload");
    T_STR(event_text(&r, 0, "path"), "u.txt");
    T_CHECK(hfsb_json_int(event_at(&r, 0, "output_bytes"), -1) == 5);
    T_STR(event_text(&r, 1, "tool"), "download");
    T_STR(event_text(&r, 2, "tool"), "remove");
    T_CHECK(hfsb_json_bool(event_at(&r, 2, "success"), false));
    T_CHECK(!hfsb_json_bool(event_at(&r, 3, "success"), true));
    T_CHECK(event_text(&r, 3, "error").len > 4);
    T_STR(event_text(&r, 5, "tool"), "bash_input");
    T_STR(event_text(&r, 5, "job"), "job");
    T_CHECK(!ts_contains(&r, "private"));
    ts_get(&s, &r, "/api/jobs/job");
    T_STR(ts_text(&r, "who"), "api");
    ts_drop(&r);
    ts_end(&s, false);
}

static void invalid_requests_are_refused(void) {
    static const struct {
        const char *target;
        int         status;
    } cases[] = {{"/api/events?since=x", 422},
                 {"/api/events?since=-1", 422},
                 {"/api/events?limit=0", 422},
                 {"/api/events?wait_ms=1.5", 422},
                 {"/api/events?since=%zz", 400},
                 {"/api/events?limit=99999&other=1", 200}};
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    hfsb_str  none = HFSB_INIT;
    size_t    i;
    ts_start(&s, NULL, NULL);
    for (i = 0; i < TT_COUNT(cases); i++) {
        ts_get(&s, &r, cases[i].target);
        T_CHECK(r.status == cases[i].status);
        if (r.status == 422) T_CHECK(ts_contains(&r, "\"query\""));
    }
    ts_call(&s, &r, "POST", "/api/events", TS_JSON, HFSB_LIT("{}"));
    T_CHECK(r.status == 405);
    ts_call(&s, &r, "HEAD", "/api/events?wait_ms=5000", STREAM, none);
    T_CHECK(r.status == 200);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT("GET /api/events HTTP/1.1\r\nHost: "
                                 "127.0.0.1\r\n\r\n")));
    T_CHECK(ts_read(&c, &r, false) && r.status == 401);
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

/* How long a stop takes while two wait for events. */
static long long stop_with_waiters(void) {
    ts_server s;
    ts_conn   poll, stream;
    ts_reply  r = HFSB_INIT;
    hfsb_str  none = HFSB_INIT;
    long long began;
    ts_start(&s, NULL, NULL);
    poll = ts_connect(&s);
    stream = ts_connect(&s);
    ts_ask(&poll, "GET", "/api/events?wait_ms=60000", "", none);
    ts_ask(&stream, "GET", "/api/events", STREAM, none);
    T_CHECK(ts_await(&stream, "\r\n\r\n", 20000));
    T_CHECK(!ts_more(&poll, 100));
    began = hfsb_clock_ms();
    ts_end(&s, false);
    began = hfsb_clock_ms() - began;
    T_CHECK(ts_read(&poll, &r, false) && event_count(&r) == 0);
    T_CHECK(ts_read(&stream, &r, false) && r.chunked);
    ts_hang_up(&poll);
    ts_hang_up(&stream);
    ts_drop(&r);
    return began;
}

/* At once, not after the 2 s that requests have; one that a busy machine held
   up tells nothing. */
static void a_stop_answers_those_that_wait(void) {
    int i;
    for (i = 0; i < 8 && stop_with_waiters() >= 1900; i++) continue;
    T_CHECK(i < 8);
}

/* ---- without memory ---- */

/* Server and clients take turns in one thread. */
static void turn(hfsb_server *server, ts_conn *c, size_t count, int times) {
    size_t i;
    while (times-- > 0) {
        (void)hfsb_server_poll(server, 0);
        for (i = 0; i < count; i++) (void)ts_more(&c[i], 0);
    }
}

/* One that waits, one that streams, and calls that they are to hear of. */
static size_t converse(hfsb_alloc alloc, t_heap *heap, size_t fail_at,
                       bool forever) {
    static const char *const targets[] = {
        "/api/events?wait_ms=60000", "/api/events"};
    static const char *const fields[] = {"", STREAM};
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s = HFSB_INIT;
    ts_conn          c[3];
    hfsb_str         none = HFSB_INIT;
    size_t           i, before;
    o.no_threads = true;
    o.token = HFSB_LIT(TS_TOKEN);
    o.alloc = alloc;
    ts_open(&s, &o);
    if (hfsb_server_add_sandbox(s.server, NULL, NULL) != HFSB_OK) abort();
    for (i = 0; i < 3; i++) c[i] = ts_connect(&s);
    turn(s.server, c, 3, 10);
    before = heap->calls;
    if (fail_at) heap->fail_at = before + fail_at;
    heap->forever = forever;
    for (i = 0; i < 2; i++) ts_ask(&c[i], "GET", targets[i], fields[i], none);
    turn(s.server, c, 3, 10);
    for (i = 0; i < 2; i++) {
        ts_ask(&c[2], "POST", "/api/exists", TS_JSON,
               HFSB_LIT("{\"path\":\"a\"}"));
        turn(s.server, c, 3, 10);
    }
    before = heap->calls - before;
    heap->fail_at = 0;
    if (!fail_at) {
        T_CHECK(ts_await(&c[0], "\"next\":1,\"lost\":0}", 0));
        T_CHECK(ts_await(&c[1], "id: 2\n", 0));
    }
    for (i = 0; i < 3; i++) ts_hang_up(&c[i]);
    turn(s.server, c, 0, 5);
    c[0] = ts_connect(&s); /* and it serves on */
    ts_ask(&c[0], "GET", "/api/events", "", none);
    turn(s.server, c, 1, 10);
    T_CHECK(ts_await(&c[0], "HTTP/1.1 200", 0));
    ts_hang_up(&c[0]);
    hfsb_server_close(s.server);
    return before;
}

static void every_allocation_may_fail(void) {
    t_heap     heap = HFSB_INIT;
    hfsb_alloc alloc;
    size_t     total, k;
    int        mode;
    alloc.fn = t_heap_fn;
    alloc.user = &heap;
    total = converse(alloc, &heap, 0, false);
    T_CHECK(heap.live == 0 && !heap.wrong && total > 10);
    for (mode = 0; mode < 2; mode++)
        for (k = 1; k <= total; k++) {
            memset(&heap, 0, sizeof heap);
            (void)converse(alloc, &heap, k, mode == 1);
            T_CHECK(heap.live == 0 && !heap.wrong);
        }
}

int main(void) {
    tt_begin();
    TT_RUN(a_poll_returns_what_there_is);
    TT_RUN(a_poll_waits_for_the_next_event);
    TT_RUN(a_poll_ends_at_its_deadline);
    TT_RUN(a_stream_sends_events_as_they_come);
    TT_RUN(lost_events_are_counted);
    TT_RUN(a_slow_reader_misses_some);
    TT_RUN(a_reader_that_stops_costs_bounded_memory);
    TT_RUN(files_and_input_are_events);
    TT_RUN(invalid_requests_are_refused);
    TT_RUN(a_stop_answers_those_that_wait);
    TT_RUN(every_allocation_may_fail);
    return TT_END();
}
