/* test_server_reply.c - replies: fields, pieces, files, threads; peers that
   disconnect, half-close, or never read. */
#include "../support/t_conn.h"

static ts_server s;

/* A connection with a small receive buffer. */
static ts_conn narrow(void) {
    struct sockaddr_in a;
    ts_conn            c = HFSB_INIT;
    int                small = 4096;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons((unsigned short)s.port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(c.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    T_CHECK(!connect(c.fd, (struct sockaddr *)&a, sizeof a));
    return c;
}

/* Checks that another connection is served promptly. */
static void check_serves(void) {
    ts_conn   c = ts_connect(&s);
    long long began = hfsb_clock_ms();
    T_CHECK(tc_lives(&c));
    T_CHECK(hfsb_clock_ms() - began < 15000);
    ts_hang_up(&c);
}

static void fields_cannot_smuggle_lines(void) {
    ts_reply r = HFSB_INIT;
    ts_conn  c = tc_ask(&s, &r, TC_GET("/fields"));
    TS_IS(&r, 200, "fields");
    T_STR(ts_field(&r, "X-Good"), "yes");
    T_CHECK(!ts_field(&r, "X-Evil").ptr && !ts_field(&r, "X-A").ptr);
    ts_hang_up(&c);
    ts_drop(&r);
}

/* ---- pieces ---- */

static void pieces_come_in_order_and_whole(void) {
    static const struct {
        const char *target;
        size_t      bytes, chunks;
    } list[] = {{"/pieces?count=0&size=1", 0, 0},
                {"/pieces?count=1&size=1", 1, 1},
                {"/pieces?count=3&size=0", 0, 0},
                {"/pieces?count=1000&size=7", 7000, 1000},
                {"/pieces?count=200&size=65536", 200 * 65536, 200}};
    size_t i;
    for (i = 0; i < TT_COUNT(list); i++) {
        ts_reply r = HFSB_INIT;
        ts_conn  c = ts_connect(&s);
        ts_ask(&c, "GET", list[i].target, "", hfsb_str_make(NULL, 0));
        T_CHECK(ts_read(&c, &r, false));
        T_CHECK(r.chunked && r.body.len == list[i].bytes &&
                r.chunks == list[i].chunks);
        T_CHECK(tc_lives(&c));
        ts_hang_up(&c);
        ts_drop(&r);
    }
}

static void pieces_for_old_clients_end_with_the_connection(void) {
    ts_conn  c = ts_connect(&s);
    ts_reply r = HFSB_INIT;
    T_CHECK(ts_send(&c, HFSB_LIT("GET /pieces?count=50&size=60000 HTTP/1.0\r\n"
                                 TC_HEAD "\r\n")));
    T_CHECK(ts_read(&c, &r, false));
    T_CHECK(!r.chunked && r.body.len == 50 * 60000);
    ts_hang_up(&c);
    ts_drop(&r);
}

static void aborted_reply_is_incomplete_for_the_client(void) {
    ts_conn  c = ts_connect(&s);
    ts_reply r = HFSB_INIT;
    T_CHECK(ts_send(&c, HFSB_LIT(TC_GET("/abort"))));
    T_CHECK(!ts_read(&c, &r, false));
    T_CHECK(r.status == 200 && !r.whole && c.ended);
    ts_hang_up(&c);
    ts_drop(&r);
}

/* Memory stays bounded, others are served, and it is over after body_ms. */
static void peer_that_never_reads_is_disconnected(void) {
    static const char *const targets[] = {"/pieces?count=100000&size=65536",
                                          "/file", "/hello"};
    size_t i, k;
    for (i = 0; i < TT_COUNT(targets); i++) {
        size_t    fds = tt_count_fds();
        ts_conn   c = narrow();
        hfsb_buf  raw = HFSB_INIT;
        size_t    before = tt_memory_held(), gone = tc_get(&tc.gone), most = 0;
        long long began = hfsb_clock_ms();
        for (k = 0; k < (i == 2 ? 50000u : 1u); k++)
            T_CHECK(hfsb_buf_printf(&raw,
                                    "GET %s HTTP/1.1\r\n" TC_HEAD "\r\n",
                                    targets[i]) == HFSB_OK);
        (void)fcntl(c.fd, F_SETFL, O_NONBLOCK);
        for (k = 0; k < raw.len; usleep(1000)) {
            ssize_t n = send(c.fd, raw.ptr + k, raw.len - k, MSG_NOSIGNAL);
            if (n > 0) k += (size_t)n;
            if (tt_memory_held() > most) most = tt_memory_held();
            if (n < 0 && errno != EAGAIN) break;
            if (hfsb_clock_ms() - began > 20000) break;
        }
        check_serves();
        /* body_ms is 0.8 s */
        while (hfsb_clock_ms() - began < 2600 ||
               ((tt_memory_held() > before + 65536 ||
                 tt_count_fds() > fds + 1) && /* the server's end is open */
                hfsb_clock_ms() - began < 20000)) {
            if (tt_memory_held() > most) most = tt_memory_held();
            usleep(20000);
        }
        check_serves();
        T_CHECK(most - before < 1 << 20);
        T_CHECK(tt_memory_held() <= before + 65536);
        if (i == 0) T_CHECK(tc_get(&tc.gone) == gone + 1);
        /* whatever was sent, the rest never comes */
        while (ts_more(&c, 0)) continue;
        T_CHECK(c.ended || ts_closes(&c, 20000));
        ts_hang_up(&c);
        hfsb_buf_free(&raw);
    }
}

/* A slow reader is not a dead one: each byte taken is progress. False if a
   busy machine made this one as slow as a dead one. */
static bool slow_reader_gets_all(size_t *n) {
    ts_conn   c = narrow();
    long long began = hfsb_clock_ms(), last = began;
    bool      late = false;
    *n = 0;
    T_CHECK(ts_send(&c, HFSB_LIT(TC_LAST("/file"))));
    while (!c.ended && hfsb_clock_ms() - began < 60000) {
        char    piece[262144];
        ssize_t got;
        if (hfsb_clock_ms() - began < 3000) usleep(100000);
        got = recv(c.fd, piece, sizeof piece, 0);
        late = late || hfsb_clock_ms() - last > 500;
        last = hfsb_clock_ms();
        if (got <= 0) break;
        *n += (size_t)got;
    }
    ts_hang_up(&c);
    return *n > 20 << 20 || !late;
}

static void slow_reader_gets_the_whole_reply(void) {
    size_t n;
    int    i;
    for (i = 0; i < 8 && !slow_reader_gets_all(&n); i++) continue;
    T_CHECK(n > 20 << 20);
}

/* ---- files ---- */

static void make_file(size_t size) {
    FILE  *f = fopen(tc.file, "wb");
    size_t i;
    if (!f) abort();
    for (i = 0; i < size; i++) fputc((int)(i * 7 + i / 251) & 255, f);
    fclose(f);
}

static bool is_file(hfsb_str body) {
    size_t i;
    for (i = 0; i < body.len; i++)
        if ((unsigned char)body.ptr[i] !=
            (unsigned char)((i * 7 + i / 251) & 255))
            return false;
    return true;
}

static void files_are_sent_complete(void) {
    static const size_t sizes[] = {0,         1,       4096,    65535,
                                   1 << 20,   1048577, 20 << 20};
    size_t              i;
    for (i = 0; i < TT_COUNT(sizes); i++) {
        ts_reply r = HFSB_INIT;
        ts_conn  c;
        make_file(sizes[i]);
        c = tc_ask(&s, &r, TC_GET("/file"));
        T_CHECK(r.status == 200 && r.body.len == sizes[i]);
        T_CHECK(is_file(hfsb_buf_str(&r.body)));
        T_CHECK(tc_lives(&c));
        ts_hang_up(&c);
        c = tc_ask(&s, &r, "HEAD /file HTTP/1.1\r\n" TC_HEAD "\r\n");
        T_CHECK(strtoul(ts_field(&r, "Content-Length").ptr, NULL, 10) ==
                sizes[i]);
        T_CHECK(tc_lives(&c));
        ts_hang_up(&c);
        ts_drop(&r);
    }
}

static void shrinking_file_ends_the_connection(void) {
    ts_reply r = HFSB_INIT;
    ts_conn  c = ts_connect(&s);
    make_file(100000);
    T_CHECK(ts_send(&c, HFSB_LIT(TC_GET("/file?more=1"))));
    T_CHECK(!ts_read(&c, &r, false));
    T_CHECK(r.status == 200 && c.ended);
    ts_hang_up(&c);
    ts_drop(&r);
    check_serves();
}

static void reset_does_not_harm_other_connections(void) {
    static const char *const targets[] = {
        TC_GET("/pieces?count=10000&size=65536"), TC_GET("/file"),
        TC_GET("/hold"), TC_GET("/hold?pieces"),
        "POST /threaded?ms=20 HTTP/1.1\r\n" TC_HEAD
        "Content-Length: 1\r\n\r\nx"};
    size_t i, k;
    make_file(20 << 20);
    for (i = 0; i < TT_COUNT(targets); i++)
        for (k = 0; k < 20; k++) {
            ts_conn c = narrow();
            T_CHECK(ts_send(&c, hfsb_cstr(targets[i])));
            if (k % 4) (void)ts_more(&c, (int)(k % 4) * 3);
            if (k % 2) ts_reset(&c);
            else ts_hang_up(&c);
        }
    check_serves();
    tc_release(s.server);
    check_serves();
}

/* ---- the other side ---- */

static void half_closed_peer_gets_its_reply(void) {
    static const char *const targets[] = {
        TC_GET("/hello"), TC_GET("/file"),
        "POST /late HTTP/1.1\r\n" TC_HEAD "Content-Length: 2\r\n\r\nok",
        "POST /threaded?ms=50 HTTP/1.1\r\n" TC_HEAD
        "Content-Length: 2\r\n\r\nok",
        TC_GET("/pieces?count=100&size=60000")};
    size_t i, k;
    for (i = 0; i < TT_COUNT(targets); i++)
        for (k = 0; k < 2; k++) {
            ts_conn  c = ts_connect(&s);
            ts_reply r = HFSB_INIT;
            T_CHECK(ts_send(&c, hfsb_cstr(targets[i])));
            if (k) usleep(3000);
            (void)shutdown(c.fd, SHUT_WR);
            T_CHECK(ts_read(&c, &r, false));
            T_CHECK(r.status / 100 == 2);
            T_CHECK(ts_closes(&c, 20000) && c.in.len == 0);
            ts_hang_up(&c);
            ts_drop(&r);
        }
}

static void incomplete_request_is_refused_at_eof(void) {
    static const char *const list[] = {
        "GET /hello HTTP/1.1\r\nHost", "G",
        "POST /echo HTTP/1.1\r\n" TC_HEAD "Content-Length: 5\r\n\r\nabc",
        "POST /echo HTTP/1.1\r\n" TC_HEAD
        "Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
        "PUT /stream HTTP/1.1\r\n" TC_HEAD "Content-Length: 5\r\n\r\nabc"};
    size_t i, gone = tc_get(&tc.gone);
    for (i = 0; i < TT_COUNT(list); i++) {
        ts_conn  c = ts_connect(&s);
        ts_reply r = HFSB_INIT;
        T_CHECK(ts_send(&c, hfsb_cstr(list[i])));
        (void)shutdown(c.fd, SHUT_WR);
        T_CHECK(ts_read(&c, &r, false));
        TS_REFUSED(&r, 400, NULL);
        T_CHECK(ts_closes(&c, 20000));
        ts_hang_up(&c);
        ts_drop(&r);
    }
    T_CHECK(tc_becomes(&tc.gone, gone + 1)); /* of the stream */
}

static void eof_is_reported_once_and_reply_is_sent(void) {
    ts_conn  c = ts_connect(&s);
    ts_reply r = HFSB_INIT;
    size_t   eof = tc_get(&tc.eof), gone = tc_get(&tc.gone);
    T_CHECK(ts_send(&c, HFSB_LIT(TC_GET("/hold"))));
    T_CHECK(tc_becomes(&tc.holding, 1));
    T_CHECK(tc_get(&tc.eof) == eof);
    (void)shutdown(c.fd, SHUT_WR);
    T_CHECK(tc_becomes(&tc.eof, eof + 1));
    usleep(20000);
    T_CHECK(tc_get(&tc.eof) == eof + 1 && tc_get(&tc.gone) == gone);
    tc_release(s.server);
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, "held");
    T_CHECK(tc_get(&tc.gone) == gone);
    ts_hang_up(&c);
    ts_drop(&r);
}

/* Each that is held goes away in one of several ways: gone is called once for
   each, and for none whose reply has ended. */
static void gone_is_called_once(void) {
    size_t i, n = 40, gone = tc_get(&tc.gone), ever = tc_get(&tc.held_ever);
    ts_conn c[40];
    for (i = 0; i < n; i++) {
        c[i] = ts_connect(&s);
        T_CHECK(ts_send(&c[i], i % 2 ? HFSB_LIT(TC_GET("/hold"))
                                     : HFSB_LIT(TC_GET("/hold?pieces"))));
    }
    T_CHECK(tc_becomes(&tc.held_ever, ever + n));
    for (i = 0; i < n / 2; i++) ts_reset(&c[i]);
    T_CHECK(tc_becomes(&tc.gone, gone + n / 2));
    tc_release(s.server);
    for (i = n / 2; i < n; i++) {
        ts_reply r = HFSB_INIT;
        T_CHECK(ts_read(&c[i], &r, false));
        TS_IS(&r, 200, i % 2 ? "held" : "begun ended");
        ts_reset(&c[i]);
        ts_drop(&r);
    }
    check_serves();
    T_CHECK(tc_get(&tc.gone) == gone + n / 2 && tc_get(&tc.holding) == 0);
}

/* A peer that closes while a reply in pieces goes on is noticed by writing. */
static void write_to_a_gone_peer_calls_gone(void) {
    ts_conn c = ts_connect(&s);
    size_t  gone = tc_get(&tc.gone);
    T_CHECK(ts_send(&c, HFSB_LIT(TC_GET("/pieces?count=100000&size=60000"))));
    T_CHECK(ts_await(&c, "\r\n\r\n", 20000));
    ts_hang_up(&c);
    T_CHECK(tc_becomes(&tc.gone, gone + 1));
    check_serves();
}

static void streams_are_read_with_pauses(void) {
    hfsb_buf           raw = HFSB_INIT;
    ts_conn            c = ts_connect(&s);
    ts_reply           r = HFSB_INIT;
    unsigned long long seed = 3;
    unsigned long      sum = 0;
    size_t             i, n = 3000000;
    char               want[64];
    T_CHECK(hfsb_buf_printf(&raw,
                            "PUT /stream HTTP/1.1\r\n" TC_HEAD
                            "Content-Length: %zu\r\n\r\n",
                            n) == HFSB_OK);
    for (i = 0; i < n; i++) {
        char byte = (char)('a' + t_random(&seed) % 26);
        sum = (sum * 31 + (unsigned char)byte) & 0xffffff;
        if (hfsb_buf_append_byte(&raw, byte) != HFSB_OK) abort();
    }
    T_CHECK(ts_send(&c, hfsb_buf_str(&raw)) && ts_read(&c, &r, false));
    snprintf(want, sizeof want, "%zu %lu", n, sum);
    TS_IS(&r, 200, want);
    T_CHECK(tc_lives(&c));
    ts_hang_up(&c);
    ts_drop(&r);
    hfsb_buf_free(&raw);
}

static void threaded_replies_keep_the_order_of_requests(void) {
    hfsb_buf raw = HFSB_INIT;
    ts_conn  c = ts_connect(&s);
    ts_reply r = HFSB_INIT;
    int      i;
    for (i = 0; i < 20; i++)
        T_CHECK(hfsb_buf_printf(&raw,
                                "POST /threaded?ms=%d HTTP/1.1\r\n" TC_HEAD
                                "Content-Length: 2\r\n\r\n%02d",
                                (20 - i) % 5, i) == HFSB_OK);
    T_CHECK(ts_send(&c, hfsb_buf_str(&raw)));
    for (i = 0; i < 20; i++) {
        T_CHECK(ts_read(&c, &r, false) && r.status == 201);
        T_CHECK(r.body.len == 2 && atoi(r.body.ptr) == i);
        T_STR(ts_field(&r, "X-Thread"), "yes");
        T_STR(ts_field(&r, "Content-Type"), "text/plain");
    }
    ts_hang_up(&c);
    ts_drop(&r);
    hfsb_buf_free(&raw);
}

static void all_of_it(void) {
    TT_RUN(fields_cannot_smuggle_lines);
    TT_RUN(pieces_come_in_order_and_whole);
    TT_RUN(pieces_for_old_clients_end_with_the_connection);
    TT_RUN(aborted_reply_is_incomplete_for_the_client);
    TT_RUN(files_are_sent_complete);
    TT_RUN(shrinking_file_ends_the_connection);
    TT_RUN(reset_does_not_harm_other_connections);
    TT_RUN(half_closed_peer_gets_its_reply);
    TT_RUN(incomplete_request_is_refused_at_eof);
    TT_RUN(eof_is_reported_once_and_reply_is_sent);
    TT_RUN(gone_is_called_once);
    TT_RUN(write_to_a_gone_peer_calls_gone);
    TT_RUN(streams_are_read_with_pauses);
    TT_RUN(threaded_replies_keep_the_order_of_requests);
}

int main(void) {
    hfsb_server_opts o = HFSB_INIT;
    int              way;
    tt_begin();
    snprintf(tc.file, sizeof tc.file, "%s/work/file", tt_dir);
    for (way = 0; way < 2; way++) {
        o.no_threads = way == 1;
        o.body_ms = 0;
        tc_start(&s, &o);
        all_of_it();
        ts_end(&s, false);
        o.body_ms = 800;
        tc_start(&s, &o);
        make_file(20 << 20);
        TT_RUN(peer_that_never_reads_is_disconnected);
        TT_RUN(slow_reader_gets_the_whole_reply);
        ts_end(&s, false);
        unlink(tc.file);
    }
    return TT_END();
}
