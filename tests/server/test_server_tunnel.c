/* test_server_tunnel.c - connections that change their protocol. */
#include "../support/t_server.h"

static ts_server s;

/* What the handlers of the tunnels saw. */
static struct {
    int gone, eof, drained; /* atomic */
} seen;

static int look(int *n) {
    return __atomic_load_n(n, __ATOMIC_SEQ_CST);
}

static void note(int *n) {
    (void)__atomic_add_fetch(n, 1, __ATOMIC_SEQ_CST);
}

static bool comes(int *n, int want) {
    long long end = hfsb_clock_ms() + 20000;
    while (look(n) < want && hfsb_clock_ms() < end) (void)poll(NULL, 0, 2);
    return look(n) == want;
}

static void gone(void *user, hfsb_request *r) {
    (void)user, (void)r;
    note(&seen.gone);
}

/* ---- /echo: upper case; "Q" ends it ---- */

static void drained(void *user, hfsb_request *r) {
    (void)user;
    note(&seen.drained);
    hfsb_request_resume(r);
}

static void echo(void *user, hfsb_request *r, char *bytes, size_t n) {
    size_t i;
    (void)user;
    for (i = 0; i < n; i++)
        if (bytes[i] >= 'a' && bytes[i] <= 'z') bytes[i] -= 'a' - 'A';
    (void)hfsb_reply_write(r, hfsb_str_make(bytes, n));
    if (hfsb_reply_waiting(r) > 0) hfsb_request_pause(r);
    if (memchr(bytes, 'Q', n)) hfsb_reply_end(r);
}

static void start_echo(void *user, hfsb_request *r) {
    (void)user;
    hfsb_request_on_gone(r, gone, NULL);
    hfsb_reply_on_drained(r, drained, NULL);
    (void)hfsb_reply_field(r, "X-More", HFSB_LIT("yes"));
    hfsbi_reply_tunnel(r, "echo", echo, NULL);
}

/* ---- /count: replies with the number of bytes at the end of input ---- */

static unsigned long long counted;

static void count(void *user, hfsb_request *r, char *bytes, size_t n) {
    (void)user, (void)r, (void)bytes;
    counted += n;
}

static void count_end(void *user, hfsb_request *r) {
    char text[32];
    (void)user;
    note(&seen.eof);
    (void)snprintf(text, sizeof text, "%llu", counted);
    (void)hfsb_reply_write(r, hfsb_cstr(text));
    hfsb_reply_end(r);
}

static void start_count(void *user, hfsb_request *r) {
    (void)user;
    counted = 0;
    hfsb_request_on_gone(r, gone, NULL);
    hfsbi_request_on_eof(r, count_end, NULL);
    hfsbi_reply_tunnel(r, "count", count, NULL);
}

/* ---- /paused: reads nothing until it is told to ---- */

static hfsb_request *held;

static void start_paused(void *user, hfsb_request *r) {
    start_count(user, r);
    hfsb_request_pause(r);
    held = r;
}

static void release(void *user) {
    (void)user;
    hfsb_request_resume(held);
}

/* ---- /late: writes until the kernel takes no more; then the peer reads, and
   one more byte is written ---- */

static ts_conn late;
static size_t  said; /* bytes that were written */

static void say_late(void *user, hfsb_request *r, char *bytes, size_t n) {
    static char piece[65536];
    (void)user, (void)bytes, (void)n;
    memset(piece, 'x', sizeof piece);
    while (!hfsb_reply_waiting(r)) {
        (void)hfsb_reply_write(r, hfsb_str_make(piece, sizeof piece));
        said += sizeof piece;
    }
    while (ts_more(&late, 20)) continue;
    (void)hfsb_reply_write(r, HFSB_LIT("y"));
    said++;
}

static void start_late(void *user, hfsb_request *r) {
    (void)user;
    hfsb_reply_on_drained(r, drained, NULL);
    hfsbi_reply_tunnel(r, "late", say_late, NULL);
}

static void open_server(const hfsb_server_opts *opts) {
    static const struct {
        const char   *path;
        hfsb_route_fn fn;
    } list[] = {{"/echo", start_echo},
                {"/count", start_count},
                {"/paused", start_paused},
                {"/late", start_late}};
    hfsb_route route = HFSB_INIT;
    size_t     i;
    memset(&seen, 0, sizeof seen);
    ts_open(&s, opts);
    for (i = 0; i < TT_COUNT(list); i++) {
        route.method = "GET";
        route.path = list[i].path;
        route.fn = list[i].fn;
        route.no_token = true;
        if (hfsb_server_add(s.server, &route, NULL) != HFSB_OK) abort();
    }
    ts_run(&s);
}

#define HEAD(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\n\r\n"

/* Sends the head and what follows at once, and drops the head of the reply. */
static ts_conn ask(const char *head, const char *more) {
    ts_conn  c = ts_connect(&s);
    hfsb_buf all = HFSB_INIT;
    T_CHECK(hfsb_buf_printf(&all, "%s%s", head, more) == HFSB_OK);
    T_CHECK(ts_send(&c, hfsb_buf_str(&all)));
    T_CHECK(ts_await(&c, "\r\n\r\n", 20000));
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&c.in),
                            HFSB_LIT("HTTP/1.1 101 Switching Protocols\r\n")));
    hfsb_buf_free(&all);
    return c;
}

static void drop_head(ts_conn *c) {
    ts_shift(c, hfsb_str_find(hfsb_buf_str(&c->in), HFSB_LIT("\r\n\r\n")) + 4);
}

static void the_head_names_the_protocol(void) {
    ts_conn c = ask(HEAD("/echo"), "");
    T_CHECK(strstr(c.in.ptr, "\r\nConnection: Upgrade\r\n") != NULL);
    T_CHECK(strstr(c.in.ptr, "\r\nUpgrade: echo\r\n") != NULL);
    T_CHECK(strstr(c.in.ptr, "\r\nX-More: yes\r\n") != NULL);
    T_CHECK(!strstr(c.in.ptr, "Content-Length") &&
            !strstr(c.in.ptr, "Transfer-Encoding"));
    ts_hang_up(&c);
    T_CHECK(comes(&seen.gone, 1));
}

static void bytes_pass_both_ways_and_are_not_requests(void) {
    ts_conn c = ask(HEAD("/echo"), HEAD("/with the head"));
    drop_head(&c);
    T_CHECK(ts_await(&c, "GET /WITH THE HEAD HTTP/1.1\r\n", 20000));
    T_CHECK(ts_send(&c, HFSB_LIT("more")));
    T_CHECK(ts_await(&c, "MORE", 20000));
    T_CHECK(ts_send(&c, HFSB_LIT("q")) && ts_closes(&c, 20000));
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&c.in), HFSB_LIT("Q")));
    T_CHECK(look(&seen.gone) == 0);
    ts_hang_up(&c);
}

static void every_cut_gives_the_same_bytes(void) {
    static const char all[] = HEAD("/echo") "some bytes, then q";
    size_t            i;
    for (i = 1; i < sizeof all - 1; i++) {
        ts_conn c = ts_connect(&s);
        T_CHECK(ts_send(&c, hfsb_str_make(all, i)));
        (void)poll(NULL, 0, 1);
        T_CHECK(ts_send(&c, hfsb_str_make(all + i, sizeof all - 1 - i)));
        T_CHECK(ts_closes(&c, 20000));
        T_CHECK(hfsb_str_ends(hfsb_buf_str(&c.in),
                              HFSB_LIT("\r\n\r\nSOME BYTES, THEN Q")));
        ts_hang_up(&c);
    }
}

/* The peer reads late: the tunnel is paused, and nothing is lost. */
static void a_paused_tunnel_holds_the_peer_back(void) {
    enum { SIZE = 32 << 20 };
    ts_conn c = ask(HEAD("/echo"), "");
    char   *bytes = (char *)malloc(SIZE);
    size_t  at = 0, i, wrong = 0;
    if (!bytes) abort();
    drop_head(&c);
    for (i = 0; i < SIZE; i++) bytes[i] = (char)('A' + i % 16);
    (void)fcntl(c.fd, F_SETFL, O_NONBLOCK);
    for (i = 0; i < 50; i++) { /* until nobody takes more */
        ssize_t n = send(c.fd, bytes + at, SIZE - at, MSG_NOSIGNAL);
        if (n > 0) at += (size_t)n;
        if (n > 0) i = 0;
        (void)poll(NULL, 0, 1);
    }
    T_CHECK(at < SIZE);
    while (c.in.len < SIZE && !c.ended) {
        ssize_t n = at < SIZE
                        ? send(c.fd, bytes + at, SIZE - at, MSG_NOSIGNAL)
                        : -1;
        if (n > 0) at += (size_t)n;
        else (void)ts_more(&c, 1000);
    }
    T_CHECK(c.in.len == SIZE && look(&seen.drained) > 0);
    for (i = 0; i < c.in.len; i++) wrong += c.in.ptr[i] != bytes[i];
    T_CHECK(wrong == 0);
    free(bytes);
    ts_hang_up(&c);
}

/* Who waits for `drained` hears of it, whoever writes meanwhile: an answer to
   a ping, for example. */
static void a_write_between_does_not_hide_the_end_of_waiting(void) {
    late = ask(HEAD("/late"), "");
    drop_head(&late);
    said = 0;
    T_CHECK(ts_send(&late, HFSB_LIT("go")));
    T_CHECK(comes(&seen.drained, 1));
    while (late.in.len < said && ts_more(&late, 20000)) continue;
    T_CHECK(late.in.len == said && hfsb_str_ends(hfsb_buf_str(&late.in),
                                                 HFSB_LIT("xy")));
    ts_hang_up(&late);
}

static void the_end_of_input_comes_after_all_bytes(void) {
    ts_conn c = ask(HEAD("/count"), "12345");
    drop_head(&c);
    T_CHECK(ts_send(&c, HFSB_LIT("678")));
    (void)shutdown(c.fd, SHUT_WR);
    T_CHECK(ts_closes(&c, 20000));
    T_STR(hfsb_buf_str(&c.in), "8");
    T_CHECK(look(&seen.eof) == 1 && look(&seen.gone) == 0);
    ts_hang_up(&c);
}

static void the_end_of_input_ends_a_tunnel_that_does_not_ask(void) {
    ts_conn c = ask(HEAD("/echo"), "");
    (void)shutdown(c.fd, SHUT_WR);
    T_CHECK(ts_closes(&c, 20000) && comes(&seen.gone, 1));
    ts_hang_up(&c);
}

static void a_tunnel_paused_at_once_reads_later(void) {
    ts_conn c = ask(HEAD("/paused"), "123");
    drop_head(&c);
    T_CHECK(ts_send(&c, HFSB_LIT("456")));
    (void)shutdown(c.fd, SHUT_WR);
    T_CHECK(!ts_more(&c, 100) && !c.ended && look(&seen.eof) == 0);
    T_CHECK(hfsb_server_post(s.server, release, NULL) == HFSB_OK);
    T_CHECK(ts_closes(&c, 20000));
    T_STR(hfsb_buf_str(&c.in), "6");
    T_CHECK(look(&seen.eof) == 1);
    ts_hang_up(&c);
}

static void a_reset_calls_gone(void) {
    ts_conn c = ask(HEAD("/echo"), "x"), d = ask(HEAD("/count"), "x");
    ts_reset(&c);
    ts_reset(&d);
    T_CHECK(comes(&seen.gone, 2));
}

/* Nobody ends the tunnel: the server does. */
static void a_server_stops_with_open_tunnels(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_conn          c, d;
    long long        began;
    o.stop_ms = 300;
    open_server(&o);
    c = ask(HEAD("/echo"), "");
    d = ask(HEAD("/paused"), "x");
    began = hfsb_clock_ms();
    ts_end(&s, false);
    T_CHECK(hfsb_clock_ms() - began < 20000);
    T_CHECK(ts_closes(&c, 20000) && ts_closes(&d, 20000));
    T_CHECK(look(&seen.gone) == 2);
    ts_hang_up(&c);
    ts_hang_up(&d);
}

/* Bytes that the peer does not take have the deadline of a body. */
static void a_peer_that_never_reads_is_disconnected(void) {
    hfsb_server_opts o = HFSB_INIT;
    static char      bytes[65536];
    ts_conn          c;
    long long        end = hfsb_clock_ms() + 20000;
    o.body_ms = 300;
    open_server(&o);
    c = ask(HEAD("/echo"), "");
    memset(bytes, 'x', sizeof bytes);
    (void)fcntl(c.fd, F_SETFL, O_NONBLOCK);
    while (look(&seen.gone) == 0 && hfsb_clock_ms() < end) {
        (void)!send(c.fd, bytes, sizeof bytes, MSG_NOSIGNAL);
        (void)poll(NULL, 0, 1);
    }
    T_CHECK(look(&seen.gone) == 1);
    ts_hang_up(&c);
    ts_end(&s, true);
}

/* With a server of its own. */
#define EACH(test) (open_server(NULL), TT_RUN(test), ts_end(&s, true))

int main(void) {
    tt_begin();
    EACH(the_head_names_the_protocol);
    EACH(bytes_pass_both_ways_and_are_not_requests);
    EACH(every_cut_gives_the_same_bytes);
    EACH(a_paused_tunnel_holds_the_peer_back);
    EACH(a_write_between_does_not_hide_the_end_of_waiting);
    EACH(the_end_of_input_comes_after_all_bytes);
    EACH(the_end_of_input_ends_a_tunnel_that_does_not_ask);
    EACH(a_tunnel_paused_at_once_reads_later);
    EACH(a_reset_calls_gone);
    TT_RUN(a_server_stops_with_open_tunnels);
    TT_RUN(a_peer_that_never_reads_is_disconnected);
    return TT_END();
}
