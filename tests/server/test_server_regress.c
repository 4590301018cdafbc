/* test_server_regress.c - faults that were fixed and must not come back. */
#include "../support/t_server.h"

/* ---- an allocator that can hold up the freeing of a large block ---- */

enum { LARGE = 200000 };

typedef struct stopper {
    pthread_mutex_t lock;
    pthread_t       loop;    /* the thread that serves */
    unsigned        armed;   /* the so manieth from now on stops; 0: none */
    bool            stopped; /* it has */
    bool            in_loop; /* ... in that thread */
    bool            held;    /* a check holds a write */
    bool            waits;   /* it stops until `ended`, not for a moment */
    bool            ended;   /* the server's stop has ended the commands */
} stopper;

static stopper it = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, 0, 0, 0, 0};

static bool look(const bool *flag) {
    bool value;
    pthread_mutex_lock(&it.lock);
    value = *flag;
    pthread_mutex_unlock(&it.lock);
    return value;
}

static void set(bool *flag) {
    pthread_mutex_lock(&it.lock);
    *flag = true;
    pthread_mutex_unlock(&it.lock);
}

static void arm(unsigned n) {
    pthread_mutex_lock(&it.lock);
    it.armed = n;
    pthread_mutex_unlock(&it.lock);
}

static bool await(const bool *flag) {
    long long end = hfsb_clock_ms() + 20000;
    while (!look(flag) && hfsb_clock_ms() < end) tt_sleep_ms(5);
    return look(flag);
}

static void *stopping_fn(void *user, void *ptr, size_t old_size,
                         size_t new_size) {
    bool stops = false;
    pthread_mutex_lock(&it.lock);
    if (it.armed && !new_size && old_size >= LARGE && --it.armed == 0) {
        stops = it.stopped = true;
        it.in_loop = pthread_equal(it.loop, pthread_self()) != 0;
    }
    pthread_mutex_unlock(&it.lock);
    if (stops && look(&it.waits)) (void)await(&it.ended);
    else if (stops) tt_sleep_ms(400);
    return tt_heap_fn(user, ptr, old_size, new_size);
}

static void start_stopping(ts_server *s, const hfsb_tools_opts *tools,
                           long long stop_ms) {
    hfsb_server_opts         opts = HFSB_INIT;
    hfsb_server_sandbox_opts box = HFSB_INIT;
    opts.stop_ms = stop_ms;
    opts.alloc = tt_alloc();
    opts.alloc.fn = stopping_fn;
    box.tools = tools;
    ts_start(s, &opts, &box);
    pthread_mutex_lock(&it.lock);
    it.loop = s->thread;
    it.armed = 0;
    it.stopped = it.in_loop = it.held = it.waits = it.ended = false;
    pthread_mutex_unlock(&it.lock);
}

/* {"KEY":"VALUE","PAD":"xxx..."}, and long. */
static hfsb_buf long_body(const char *key, const char *value,
                          const char *pad) {
    hfsb_buf body = HFSB_INIT;
    if (hfsb_buf_printf(&body, "{\"%s\":\"%s\",\"%s\":\"", key, value, pad) !=
        HFSB_OK)
        abort();
    t_repeat(&body, "x", LARGE + 100000);
    if (hfsb_buf_append(&body, HFSB_LIT("\"}")) != HFSB_OK) abort();
    return body;
}

/* ---- calls in threads ---- */

static hfsb_status hold(void *user, hfsb_str path, hfsb_str content,
                        hfsb_buf *warnings) {
    (void)user, (void)path, (void)content, (void)warnings;
    set(&it.held);
    (void)await(&it.stopped);
    return HFSB_OK;
}

/* The first write is over after the repeat has looked for that, and before it
   is back in the loop: no one woke it any more. */
static void repeat_in_a_thread_gets_the_result(void) {
    static const char fields[] = TS_JSON "Idempotency-Key: w\r\n";
    hfsb_tools_check  check = {".held", hold, NULL};
    hfsb_tools_opts   tools = HFSB_INIT;
    hfsb_buf          body = long_body("path", "file.held", "content");
    ts_server         s;
    ts_conn           c[2];
    ts_reply          r = HFSB_INIT;
    size_t            i;
    tools.checks = &check;
    tools.check_count = 1;
    start_stopping(&s, &tools, 0);
    for (i = 0; i < 2; i++) {
        c[i] = ts_connect(&s);
        ts_ask(&c[i], "POST", "/api/write", fields, hfsb_buf_str(&body));
        if (i) break;
        T_CHECK(await(&it.held));
        arm(2); /* the repeat gives the text for its digest back, then its
                   arguments */
    }
    for (i = 0; i < 2; i++) {
        T_CHECK(ts_read(&c[i], &r, false));
        TS_OK(&r, NULL);
        ts_hang_up(&c[i]);
    }
    T_CHECK(look(&it.stopped) && !look(&it.in_loop));
    ts_drop(&r);
    hfsb_buf_free(&body);
    ts_end(&s, false);
}

/* Long arguments are looked at outside of the loop, all of it. The command
   lasts a while: of one that is over at once the arguments are kept until its
   reply is made. */
static void long_command_line_is_parsed_in_a_thread(void) {
    hfsb_buf  body = long_body("command", "sleep 1; echo done", "description");
    ts_server s;
    ts_reply  r = HFSB_INIT;
    start_stopping(&s, NULL, 0);
    arm(1);
    ts_call(&s, &r, "POST", "/api/bash", TS_JSON, hfsb_buf_str(&body));
    TS_OK(&r, "done\n");
    T_CHECK(look(&it.stopped) && !look(&it.in_loop));
    ts_drop(&r);
    hfsb_buf_free(&body);
    ts_end(&s, false);
}

static void look_at_the_stop(void *user) {
    if (((hfsb_server *)user)->stop.phase == HFSBI_STOP_END) set(&it.ended);
}

/* The command did not exist yet when the stop ended all others: a thread was
   still reading its arguments. It does not start any more. */
static void stop_refuses_a_command_prepared_by_a_thread(void) {
    hfsb_buf  body = long_body("on_disconnect\":\"continue\",\"command",
                               "exec sleep 60", "description");
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    int       i;
    start_stopping(&s, NULL, 20000); /* the end of commands: after 2 s */
    set(&it.waits);
    arm(1);
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/bash", TS_JSON, hfsb_buf_str(&body));
    T_CHECK(await(&it.stopped));
    hfsb_server_stop(s.server);
    for (i = 0; i < 2000 && !look(&it.ended); i++) {
        if (hfsb_server_post(s.server, look_at_the_stop, s.server) != HFSB_OK)
            abort();
        tt_sleep_ms(5);
    }
    T_CHECK(ts_read(&c, &r, false));
    TS_REFUSED(&r, 503, "The server is stopping.");
    ts_hang_up(&c);
    ts_drop(&r);
    hfsb_buf_free(&body);
    ts_end(&s, false);
}

/* ---- strangers ---- */

/* Bodies without a token filled the memory that is for all bodies. */
static void body_without_token_is_not_kept(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT("GET /api/health HTTP/1.1\r\nHost: "
                                 "localhost\r\nContent-Length: 70000\r\n"
                                 "\r\n")));
    T_CHECK(ts_read(&c, &r, false));
    TS_REFUSED(&r, 413, "too large");
    ts_hang_up(&c);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT("GET /api/health HTTP/1.1\r\nHost: "
                                 "localhost\r\nTransfer-Encoding: chunked\r\n"
                                 "\r\n3\r\nabc\r\n")));
    T_CHECK(ts_read(&c, &r, false));
    TS_REFUSED(&r, 413, "too large");
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- without memory ---- */

static void fail_from_now_on(bool fail) {
    pthread_mutex_lock(&tt_memory.lock);
    tt_memory.heap.fail_at = fail ? 1 : 0;
    tt_memory.heap.forever = fail;
    pthread_mutex_unlock(&tt_memory.lock);
}

static void command_ends_with_its_client_even_without_memory(void) {
    ts_server s;
    ts_conn   c;
    hfsb_buf  text = HFSB_INIT;
    long      pid;
    long long end;
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/bash", TS_JSON,
           HFSB_LIT("{\"command\":\"echo $$ > pid; exec sleep 60\","
                    "\"on_disconnect\":\"kill\"}"));
    T_CHECK(ts_lines("pid", 1));
    T_CHECK(t_read_file("pid", &text));
    pid = text.len ? atol(text.ptr) : 0;
    T_CHECK(pid > 1);
    fail_from_now_on(true);
    ts_reset(&c);
    end = hfsb_clock_ms() + 20000;
    while (pid > 1 && kill((pid_t)pid, 0) == 0 && hfsb_clock_ms() < end)
        tt_sleep_ms(20);
    T_CHECK(pid > 1 && kill((pid_t)pid, 0) != 0);
    fail_from_now_on(false);
    hfsb_buf_free(&text);
    ts_end(&s, false);
}

/* More of them than there are threads, on a file that takes minutes. */
static void searches_end_with_their_clients_and_the_server(void) {
    ts_server s;
    ts_conn   c[12];
    ts_reply  r = HFSB_INIT;
    hfsb_buf  text = HFSB_INIT;
    long long began;
    size_t    i;
    for (i = 0; i < 2000; i++)
        if (hfsb_buf_append(&text, HFSB_LIT("words\n")) != HFSB_OK) abort();
    tt_put("huge.txt", hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    if (truncate("huge.txt", (off_t)1 << 38)) abort();
    tt_put("small.txt", HFSB_LIT("small\n"));
    ts_start(&s, NULL, NULL);
    for (i = 0; i < 12; i++) {
        c[i] = ts_connect(&s);
        ts_ask(&c[i], "POST", i % 2 ? "/api/read" : "/api/grep", TS_JSON,
               i % 2 ? HFSB_LIT("{\"path\":\"huge.txt\",\"offset\":-2}")
                     : HFSB_LIT("{\"path\":\"huge.txt\",\"pattern\":\"no\"}"));
    }
    tt_sleep_ms(100);
    for (i = 0; i < 12; i++) ts_reset(&c[i]);
    began = hfsb_clock_ms();
    ts_post(&s, &r, "/api/read", "{\"path\":\"small.txt\"}");
    T_CHECK(ts_contains(&r, "small"));
    T_CHECK(hfsb_clock_ms() - began < 25000); /* not half a minute */
    c[0] = ts_connect(&s);
    ts_ask(&c[0], "POST", "/api/grep", TS_JSON,
           HFSB_LIT("{\"path\":\"huge.txt\",\"pattern\":\"no\"}"));
    tt_sleep_ms(50);
    began = hfsb_clock_ms();
    ts_end(&s, true);
    T_CHECK(hfsb_clock_ms() - began < 25000);
    ts_hang_up(&c[0]);
    ts_drop(&r);
    unlink("huge.txt");
}

/* ---- a reply that begins before the body is complete ---- */

static size_t pieces, ends;

static void begin_early(void *user, hfsb_request *r, hfsb_str piece) {
    (void)user;
    (void)piece;
    pieces++;
    hfsb_reply_begin(r, 200, "text/plain");
    (void)hfsb_reply_write(r, HFSB_LIT("early"));
    hfsb_reply_end(r);
}

/* Begins in its first piece and ends later. */
static hfsb_request *early;

static void end_early(void *user) {
    (void)user;
    if (early) hfsb_reply_end(early);
    early = NULL;
}

static void begin_only(void *user, hfsb_request *r, hfsb_str piece) {
    (void)user;
    (void)piece;
    pieces++;
    early = r;
    hfsb_reply_begin(r, 200, "text/plain");
    (void)hfsb_reply_write(r, HFSB_LIT("early"));
}

static void never(void *user, hfsb_request *r) {
    (void)user;
    (void)r;
    ends++;
}

/* Once a reply has begun nothing more is called; the rest of the body is read
   and thrown away, and the connection serves on. */
static void body_after_the_begin_of_a_reply_is_dropped(void) {
    static const char ask[] = "PUT /early HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                              "Content-Length: 2000\r\n\r\n";
    hfsb_server_opts o = HFSB_INIT;
    hfsb_route       route = HFSB_INIT;
    ts_server        s;
    ts_reply         r = HFSB_INIT;
    char             half[1000];
    int              way;
    memset(half, 'x', sizeof half);
    for (way = 0; way < 2; way++) {
        ts_conn c;
        o.no_auth = true;
        ts_open(&s, &o);
        route.method = "PUT";
        route.path = "/early";
        route.fn = never;
        route.body = way ? begin_only : begin_early;
        T_CHECK(hfsb_server_add(s.server, &route, NULL) == HFSB_OK);
        ts_run(&s);
        pieces = ends = 0;
        c = ts_connect(&s);
        T_CHECK(ts_send(&c, hfsb_cstr(ask)));
        T_CHECK(ts_send(&c, hfsb_str_make(half, sizeof half)));
        T_CHECK(ts_await(&c, "early", 30000));
        T_CHECK(ts_send(&c, hfsb_str_make(half, sizeof half)));
        if (way) tt_sleep_ms(50);
        if (way) T_CHECK(hfsb_server_post(s.server, end_early, NULL) ==
                         HFSB_OK);
        T_CHECK(ts_read(&c, &r, false) && r.status == 200);
        T_STR(hfsb_buf_str(&r.body), "early");
        T_CHECK(ts_send(&c, HFSB_LIT("GET /none HTTP/1.1\r\n"
                                     "Host: 127.0.0.1\r\n\r\n")));
        T_CHECK(ts_read(&c, &r, false) && r.status == 404);
        ts_hang_up(&c);
        ts_end(&s, false);
        T_CHECK(pieces == 1 && ends == 0);
    }
    ts_drop(&r);
}

int main(void) {
    tt_begin();
    TT_RUN(repeat_in_a_thread_gets_the_result);
    TT_RUN(long_command_line_is_parsed_in_a_thread);
    TT_RUN(stop_refuses_a_command_prepared_by_a_thread);
    TT_RUN(body_without_token_is_not_kept);
    TT_RUN(body_after_the_begin_of_a_reply_is_dropped);
    TT_RUN(command_ends_with_its_client_even_without_memory);
    TT_RUN(searches_end_with_their_clients_and_the_server);
    return TT_END();
}
