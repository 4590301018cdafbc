/* test_server_faults.c - a server when things go wrong: no memory at any
   moment of a conversation, peers that go away at any step of it. */
#include "../support/t_conn.h"

static const char talk[] =
    TC_GET("/hello")
    "POST /echo HTTP/1.1\r\n" TC_HEAD "Content-Length: 12\r\n\r\n"
    "GET / HTTP/\r"
    "POST /late HTTP/1.1\r\n" TC_HEAD "Transfer-Encoding: chunked\r\n\r\n"
    "3\r\nabc\r\n5;x=\"y\"\r\ndefgh\r\n0\r\nTrailer: t\r\n\r\n"
    TC_GET("/part/a%20b/end")
    "POST /none HTTP/1.1\r\n" TC_HEAD "Content-Length: 4\r\n\r\nGET "
    "PUT /hello HTTP/1.1\r\n" TC_HEAD "\r\n"
    "PUT /stream HTTP/1.1\r\n" TC_HEAD "Content-Length: 9\r\n\r\n123456789"
    "HEAD /hello HTTP/1.1\r\n" TC_HEAD "\r\n"
    "POST /threaded?ms=0 HTTP/1.1\r\n" TC_HEAD "Content-Length: 2\r\n\r\nok"
    "GET /secret HTTP/1.1\r\n" TC_HEAD "X-Sandbox-Authorization: Bearer "
    TS_TOKEN "\r\n\r\n" TC_GET("/secret") TC_GET("/silent")
    TC_GET("/pieces?count=3&size=3000") TC_GET("/file") TC_GET("/fields")
    "PUT /stream HTTP/1.1\r\n" TC_HEAD "Expect: 100-continue\r\n"
    "Transfer-Encoding: chunked\r\n\r\n"
    "4\r\n1234\r\n5\r\n56789\r\n0\r\n\r\n"
    "POST /small HTTP/1.1\r\n" TC_HEAD "Content-Length: 11\r\n\r\n01234567890"
    "GET /hello HTTP/9.1\r\n\r\n";

/* ---- memory ---- */

/* Client and server take turns in one thread; true when the peer ended it. */
static bool talks(hfsb_server *server, unsigned port, hfsb_str bytes,
                  size_t step, hfsb_buf *all) {
    ts_server s = HFSB_INIT;
    ts_conn   c;
    size_t    at = 0, turn;
    bool      ended;
    s.port = port;
    c = ts_connect(&s);
    for (turn = 0; turn < 3000 && !c.ended; turn++) {
        size_t n = bytes.len - at < step ? bytes.len - at : step;
        if (n && !ts_send(&c, hfsb_str_make(bytes.ptr + at, n))) n = 0;
        at += n;
        (void)hfsb_server_poll(server, turn < 50 + bytes.len / step ? 0 : 5);
        (void)ts_more(&c, 0);
    }
    ended = c.ended;
    if (hfsb_buf_append(all, hfsb_buf_str(&c.in)) != HFSB_OK) abort();
    ts_hang_up(&c);
    for (turn = 0; turn < 3; turn++) (void)hfsb_server_poll(server, 0);
    return ended;
}

static hfsb_server *open_with(hfsb_alloc alloc, unsigned *port) {
    hfsb_server_opts o = HFSB_INIT;
    hfsb_server     *server = NULL;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;
    o.token = HFSB_LIT(TS_TOKEN);
    o.alloc = alloc;
    o.no_threads = true;
    st = hfsb_server_open(&o, &server, &err);
    if (st == HFSB_OK)
        st = hfsb_server_listen(server, NULL, 0, port, &err);
    if (st == HFSB_OK && !tc_try_routes(server)) st = HFSB_NOMEM;
    if (st == HFSB_OK) return server;
    T_CHECK(st == HFSB_NOMEM);
    hfsb_server_close(server);
    return NULL;
}

static void server_survives_failing_allocations(void) {
    static const size_t steps[] = {100000, 50};
    size_t              way, k, total, mode, opened;
    for (way = 0; way < (t_quick() ? 1u : 2u); way++) {
        t_heap       heap = HFSB_INIT;
        hfsb_alloc   alloc;
        hfsb_buf     all = HFSB_INIT, again = HFSB_INIT;
        hfsb_str     bytes = hfsb_str_make(talk, sizeof talk - 1);
        unsigned     port = 0;
        hfsb_server *server;
        alloc.fn = t_heap_fn;
        alloc.user = &heap;
        server = open_with(alloc, &port);
        opened = heap.calls;
        T_CHECK(server && talks(server, port, bytes, steps[way], &all));
        T_CHECK(tc_count(hfsb_buf_str(&all), "\r\nX-Hfsb: ") == 18);
        T_CHECK(tc_count(hfsb_buf_str(&all), "HTTP/1.1 505 ") == 1);
        total = heap.calls;
        hfsb_server_close(server);
        T_CHECK(heap.live == 0 && !heap.wrong);
        for (mode = 0; mode < 2; mode++)
            for (k = 1; k <= total + 5; k++) {
                memset(&heap, 0, sizeof heap);
                heap.fail_at = k;
                heap.forever = mode == 1;
                server = open_with(alloc, &port);
                T_CHECK((server != NULL) == (k > opened));
                hfsb_buf_truncate(&all, 0);
                hfsb_buf_truncate(&again, 0);
                if (server) {
                    T_CHECK(talks(server, port, bytes, steps[way], &all));
                    heap.fail_at = 0;
                    T_CHECK(talks(server, port, HFSB_LIT(TC_LAST("/hello")),
                                  100, &again));
                    T_CHECK(hfsb_str_ends(hfsb_buf_str(&again),
                                          HFSB_LIT("\r\n\r\nhello")));
                }
                hfsb_server_close(server);
                T_CHECK(heap.live == 0 && !heap.wrong);
            }
        hfsb_buf_free(&all);
        hfsb_buf_free(&again);
    }
}

static void failed_listen_removes_the_unix_socket(void) {
    size_t k;
    for (k = 1; k < 40; k++) {
        hfsb_server_opts o = HFSB_INIT;
        t_heap           heap = HFSB_INIT;
        hfsb_server     *server = NULL;
        hfsb_err         err = HFSB_INIT;
        struct stat      st;
        o.alloc.fn = t_heap_fn;
        o.alloc.user = &heap;
        heap.fail_at = k;
        if (hfsb_server_open(&o, &server, &err) != HFSB_OK) continue;
        if (hfsb_server_listen_unix(server, "sock", &err) != HFSB_OK) {
            T_CHECK(err.code == HFSB_NOMEM);
            T_CHECK(lstat("sock", &st) != 0);
        }
        hfsb_server_close(server);
        T_CHECK(heap.live == 0 && !heap.wrong);
        T_CHECK(lstat("sock", &st) != 0);
    }
}

/* ---- peers ---- */

static ts_conn reach(const ts_server *s, bool local) {
    struct sockaddr_un a;
    ts_conn            c = HFSB_INIT;
    if (!local) return ts_connect(s);
    memset(&a, 0, sizeof a);
    a.sun_family = AF_UNIX;
    strcpy(a.sun_path, "sock");
    c.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(c.fd, (struct sockaddr *)&a, sizeof a)) abort();
    return c;
}

/* A client that sends some of it, reads some, and goes away in some way. */
static void one_client(const ts_server *s, unsigned long long *seed) {
    static const char *const extra[] = {
        "", TC_GET("/hold"), TC_GET("/hold?pieces"),
        TC_GET("/pieces?count=1000&size=60000"), TC_GET("/file"),
        "POST /threaded?ms=2 HTTP/1.1\r\n" TC_HEAD "Content-Length: 0\r\n\r\n",
        "POST /secret HTTP/1.1\r\n" TC_HEAD
        "Content-Length: 99999\r\n\r\nabc"};
    ts_conn c = reach(s, t_random(seed) % 2);
    size_t  i, pieces = t_random(seed) % 4;
    if (t_random(seed) % 2)
        (void)ts_send(&c, hfsb_cstr(extra[t_random(seed) % 7]));
    for (i = 0; i < pieces; i++) {
        size_t from = 0, to = t_random(seed) % sizeof talk;
        if (i) from = t_random(seed) % (to + 1); /* nonsense, mostly */
        (void)ts_send(&c, hfsb_str_make(talk + from, to - from));
        if (t_random(seed) % 3 == 0) (void)ts_more(&c, 1);
    }
    if (t_random(seed) % 2)
        (void)ts_send(&c, hfsb_cstr(extra[t_random(seed) % 7]));
    switch (t_random(seed) % 5) {
    case 0: (void)shutdown(c.fd, SHUT_WR); (void)ts_more(&c, 1); break;
    case 1: (void)shutdown(c.fd, SHUT_RDWR); break;
    case 2: (void)shutdown(c.fd, SHUT_RD); (void)ts_more(&c, 1); break;
    case 3: (void)ts_more(&c, 1); break;
    default: break;
    }
    ts_reset(&c);
}

typedef struct crowd {
    const ts_server   *s;
    unsigned long long seed;
    size_t             runs;
} crowd;

static void *one_crowd(void *user) {
    crowd *it = (crowd *)user;
    size_t i;
    for (i = 0; i < it->runs; i++) {
        one_client(it->s, &it->seed);
        if (i % 8 == 0) tc_release(it->s->server);
    }
    return NULL;
}

static void peers_may_disconnect_at_any_step(void) {
    size_t way, i;
    for (way = 0; way < 2; way++) {
        hfsb_server_opts o = HFSB_INIT;
        ts_server        s;
        ts_conn          c;
        crowd            crowds[4];
        pthread_t        threads[4];
        hfsb_err         err;
        o.max_connections = way ? 10 : 0;
        o.body_ms = way ? 50 : 0;
        o.no_threads = way == 1;
        tc_reset();
        ts_open(&s, &o);
        T_CHECK(tc_try_routes(s.server));
        T_CHECK(hfsb_server_listen_unix(s.server, "sock", &err) == HFSB_OK);
        ts_run(&s);
        for (i = 0; i < 4; i++) {
            crowds[i].s = &s;
            crowds[i].seed = 77 + i + 10 * way;
            crowds[i].runs = t_quick() ? 50 : t_long() ? 12500 : 1250;
            if (pthread_create(&threads[i], NULL, one_crowd, &crowds[i]))
                abort();
        }
        for (i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        tc_release(s.server);
        c = ts_connect(&s);
        T_CHECK(tc_lives(&c));
        T_CHECK(tc_becomes(&tc.holding, 0));
        ts_hang_up(&c);
        ts_end(&s, way == 1);
    }
}

/* Stopped while a crowd is at it: it ends in time, nothing is left. */
static void stop_finishes_with_many_busy_peers(void) {
    int i, k;
    for (i = 0; i < (t_quick() ? 2 : 10); i++) {
        hfsb_server_opts o = HFSB_INIT;
        ts_server        s;
        ts_conn          c[24];
        o.stop_ms = 500;
        tc_start(&s, &o);
        for (k = 0; k < 24; k++) {
            static const char *const list[] = {
                TC_GET("/hold"), TC_GET("/hold?pieces") TC_GET("/hello"),
                TC_GET("/pieces?count=1000&size=60000"), TC_GET("/file"),
                "POST /threaded?ms=20 HTTP/1.1\r\n" TC_HEAD
                "Content-Length: 0\r\n\r\n" TC_GET("/hello"),
                "POST /secret HTTP/1.1\r\n" TC_HEAD
                "Content-Length: 99999\r\n\r\nabc"};
            c[k] = ts_connect(&s);
            T_CHECK(ts_send(&c[k], hfsb_cstr(list[k % 6])));
        }
        usleep((useconds_t)i * 2000);
        hfsb_server_stop(s.server);
        if (i % 2) tc_release(s.server);
        if (i % 3 == 2) hfsb_server_stop(s.server);
        pthread_join(s.thread, NULL);
        hfsb_server_close(s.server);
        T_CHECK(tc_get(&tc.holding) == 0);
        for (k = 0; k < 24; k++) ts_hang_up(&c[k]);
    }
}

int main(void) {
    FILE *f;
    int   i;
    tt_begin();
    snprintf(tc.file, sizeof tc.file, "%s/work/file", tt_dir);
    f = fopen(tc.file, "wb");
    for (i = 0; i < 3000000; i++) fputc(i & 127, f);
    fclose(f);
    TT_RUN(peers_may_disconnect_at_any_step);
    TT_RUN(stop_finishes_with_many_busy_peers);
    f = fopen(tc.file, "wb");
    fputs("a small file", f);
    fclose(f);
    TT_RUN(server_survives_failing_allocations);
    TT_RUN(failed_listen_removes_the_unix_socket);
    return TT_END();
}
