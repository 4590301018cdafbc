/* test_relay.c - requests that are passed on to a server on this machine. */
#include "../support/t_inner.h"

#include <sys/un.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

static ts_server        s;
static ti_server        in;
static hfsbi_relay_opts how;
static hfsb_str         nothing;

static int load(int *n) {
    return __atomic_load_n(n, __ATOMIC_SEQ_CST);
}

static void begin(void *user, hfsb_request *request) {
    hfsbi_relay_opts opts = how;
    (void)user;
    opts.prefix =
        hfsbi_relay_prefix(hfsb_request_head(request)->path, 1);
    hfsbi_relay_start(request, &opts);
}

static void open_server(const hfsb_server_opts *opts) {
    memset(&how, 0, sizeof how);
    how.port = in.port;
    ts_open(&s, opts);
    if (hfsbi_relay_add(s.server, NULL,
                        "/r/"
                        "**",
                        begin, NULL, NULL) != HFSB_OK)
        abort();
    ts_run(&s);
}

/* ---- heads ---- */

static void fields_of_one_connection_stay_here(void) {
    ts_reply r = HFSB_INIT;
    open_server(NULL);
    ts_call(&s, &r, "GET", "/r/a?b",
            "TE: trailers\r\nKeep-Alive: 5\r\nAuthorization: Bearer x\r\n"
            "Proxy-Authorization: y\r\nX-More: a\tb\r\n",
            nothing);
    TS_IS(&r, 201, "GET /a?b HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    T_CHECK(!ts_contains(&r, "TE:") && !ts_contains(&r, "Keep-Alive"));
    T_CHECK(!ts_contains(&r, "uthorization") && !ts_contains(&r, TS_TOKEN));
    T_CHECK(ts_contains(&r, "X-More: a b\r\n"));
    T_CHECK(!ts_contains(&r, "X-Forwarded-Prefix"));
    ti_fields = "Keep-Alive: 5\r\nProxy-Authenticate: x\r\n"
                "X-Tab: a\tb\r\nX-Fold: a\r\n b\r\nLocation: /there\r\n";
    ts_get(&s, &r, "/r/fields");
    TS_IS(&r, 200, "fields");
    T_CHECK(!ts_field(&r, "Keep-Alive").ptr);
    T_CHECK(!ts_field(&r, "Proxy-Authenticate").ptr);
    T_STR(ts_field(&r, "X-Tab"), "a b");
    T_CHECK(hfsb_str_starts(ts_field(&r, "X-Fold"), HFSB_LIT("a ")));
    T_STR(ts_field(&r, "Location"), "/there");
    ts_drop(&r);
    ts_end(&s, false);
}

static void redirects_and_cookies_are_moved(void) {
    static const struct {
        const char *is, *becomes;
    } list[] = {{"/there?x", "/r/there?x"},
                {"http://127.0.0.1/there", "/r/there"},
                {"HTTPS://127.0.0.1/there", "/r/there"},
                {"there", "there"},
                {"//other/there", "//other/there"},
                {"http://127.0.0.10/there", "http://127.0.0.10/there"},
                {"http://127.0.0.1", "http://127.0.0.1"},
                {"https://other/there", "https://other/there"}};
    ts_reply r = HFSB_INIT;
    char     line[400];
    size_t   i;
    open_server(NULL);
    how.rebase = true;
    for (i = 0; i < TT_COUNT(list); i++) {
        (void)snprintf(line, sizeof line, "Location: %s\r\n", list[i].is);
        ti_fields = line;
        ts_get(&s, &r, "/r/fields");
        T_CHECK(hfsb_str_equal(ts_field(&r, "Location"),
                               hfsb_cstr(list[i].becomes)));
    }
    ti_fields = "Set-Cookie: a=1; pATH=/; Domain=x.y ;Secure; SameSite=Lax\r\n"
                "Set-Cookie: b=2\r\nSet-Cookie: \r\n";
    ts_get(&s, &r, "/r/fields");
    T_CHECK(strstr(r.head.ptr, "Set-Cookie: hfsb-a=1;Secure; SameSite=Lax; "
                               "Path=/r/\r\n") != NULL);
    T_CHECK(strstr(r.head.ptr, "Set-Cookie: hfsb-b=2; Path=/r/\r\n") != NULL);
    ts_call(&s, &r, "GET", "/r/x",
            "Cookie: spaces-jwt=secret; hfsb-a=1;hfsb-b=2; x\r\n", nothing);
    TS_IS(&r, 201, "\r\nCookie: a=1; b=2\r\n");
    T_CHECK(!ts_contains(&r, "secret"));
    T_CHECK(ts_contains(&r, "X-Forwarded-Prefix: /r\r\n"));
    ts_call(&s, &r, "GET", "/r/x", "Cookie: spaces-jwt=secret\r\n", nothing);
    TS_IS(&r, 201, NULL);
    T_CHECK(!ts_contains(&r, "Cookie"));
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- connecting ---- */

static int dialled; /* atomic */

/* The queue is full twice. */
static int dial_late(void *user, unsigned port) {
    struct sockaddr_in a;
    int                fd;
    (void)user;
    if (__atomic_add_fetch(&dialled, 1, __ATOMIC_SEQ_CST) <= 2) {
        errno = EAGAIN;
        return -1;
    }
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons((unsigned short)port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd = hfsbi_relay_socket(AF_INET);
    (void)!connect(fd, (struct sockaddr *)&a, sizeof a);
    return fd;
}

/* A Unix socket whose queue is full. */
static struct sockaddr_un full;
static socklen_t          full_len;

static int dial_full(void *user, unsigned port) {
    int fd = hfsbi_relay_socket(AF_UNIX), code;
    (void)user, (void)port;
    (void)__atomic_add_fetch(&dialled, 1, __ATOMIC_SEQ_CST);
    if (connect(fd, (struct sockaddr *)&full, full_len) == 0) return fd;
    code = errno;
    close(fd);
    errno = code;
    return -1;
}

static int dial_nobody(void *user, unsigned port) {
    (void)user, (void)port;
    errno = ENOENT;
    return -1;
}

static void a_full_queue_is_tried_again(void) {
    ts_reply r = HFSB_INIT;
    open_server(NULL);
    how.dial = dial_late;
    dialled = 0;
    ts_call(&s, &r, "POST", "/r/p", "", HFSB_LIT("a body"));
    TS_IS(&r, 201, "\r\n\r\na body");
    T_CHECK(load(&dialled) == 3);
    how.dial = dial_nobody;
    ts_get(&s, &r, "/r/x");
    TS_REFUSED(&r, 502, "nothing listens on port");
    ts_drop(&r);
    ts_end(&s, false);
}

static void a_queue_that_stays_full_is_503(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_reply         r = HFSB_INIT;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fill[8];
    size_t i, n = 0;
    memset(&full, 0, sizeof full);
    full.sun_family = AF_UNIX; /* a name that the kernel makes up */
    full_len = sizeof full;
    if (bind(fd, (struct sockaddr *)&full, sizeof full.sun_family) ||
        listen(fd, 0) || getsockname(fd, (struct sockaddr *)&full, &full_len))
        abort();
    while (n < TT_COUNT(fill) && (fill[n] = dial_full(NULL, 0)) >= 0) n++;
    T_CHECK(n < TT_COUNT(fill) && errno == EAGAIN);
    /* longer, if a busy machine had no time for more tries */
    for (o.head_ms = 300, dialled = 0; dialled <= 2 && o.head_ms < 20000;
         o.head_ms *= 4) {
        open_server(&o);
        how.dial = dial_full;
        dialled = 0;
        ts_get(&s, &r, "/r/x");
        TS_REFUSED(&r, 503, "queue is full");
        T_STR(ts_field(&r, "Retry-After"), "1");
        ts_drop(&r);
        ts_end(&s, false);
    }
    T_CHECK(load(&dialled) > 2);
    for (i = 0; i < n; i++) close(fill[i]);
    close(fd);
}

/* Fills the queue of a port: one connection waits in it, the next ones are not
   answered. */
static unsigned fill_port(int *fd, int *fill, size_t n) {
    struct sockaddr_in a;
    socklen_t          len = sizeof a;
    size_t             i;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(*fd, (struct sockaddr *)&a, sizeof a) || listen(*fd, 0) ||
        getsockname(*fd, (struct sockaddr *)&a, &len))
        abort();
    for (i = 0; i < n; i++) {
        fill[i] = hfsbi_relay_socket(AF_INET);
        (void)!connect(fill[i], (struct sockaddr *)&a, sizeof a);
        tt_sleep_ms(20);
    }
    return ntohs(a.sin_port);
}

static void a_port_that_accepts_nothing_is_503(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_reply         r = HFSB_INIT;
    int              fd, fill[4];
    size_t           i;
    o.head_ms = 400;
    open_server(&o);
    how.port = fill_port(&fd, fill, TT_COUNT(fill));
    ts_get(&s, &r, "/r/x");
    TS_REFUSED(&r, 503, "queue is full");
    close(fd);
    ts_get(&s, &r, "/r/x");
    TS_REFUSED(&r, 502, "nothing listens on port");
    for (i = 0; i < TT_COUNT(fill); i++) close(fill[i]);
    ts_drop(&r);
    ts_end(&s, false);
}

/* A client that goes away meanwhile, and a stop, leave nothing. */
static void an_end_while_connecting_leaves_nothing(void) {
    ts_conn c, d;
    int     fd, fill[4];
    size_t  i;
    open_server(NULL);
    how.port = fill_port(&fd, fill, TT_COUNT(fill));
    c = ts_connect(&s);
    ts_ask(&c, "GET", "/r/x", "", nothing);
    tt_sleep_ms(30);
    ts_reset(&c);
    how.dial = dial_full; /* of a listener that is closed, or dials for ever */
    d = ts_connect(&s);
    ts_ask(&d, "POST", "/r/x", "Content-Length: 9\r\n", nothing);
    tt_sleep_ms(30);
    ts_end(&s, true);
    ts_hang_up(&d);
    close(fd);
    for (i = 0; i < TT_COUNT(fill); i++) close(fill[i]);
}

#ifdef __linux__
/* The port of IPv4 that connect() refuses at once, as other kernels do; 0:
   none. */
static unsigned refused_port; /* atomic */

int connect(int fd, const struct sockaddr *a, socklen_t n) {
    const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)a;
    if (a->sa_family == AF_INET &&
        ntohs(four->sin_port) ==
            __atomic_load_n(&refused_port, __ATOMIC_SEQ_CST)) {
        errno = ECONNREFUSED;
        return -1;
    }
    return (int)syscall(SYS_connect, fd, a, n);
}

static void refuse_at_once(unsigned port) {
    __atomic_store_n(&refused_port, port, __ATOMIC_SEQ_CST);
}
#else
static void refuse_at_once(unsigned port) {
    (void)port;
}
#endif

/* A server of IPv6 alone, as some tools start them. */
static void a_port_of_ipv6_is_reached(void) {
    struct sockaddr_in6 a;
    socklen_t           n = sizeof a;
    ts_reply            r = HFSB_INIT;
    ti_server           six;
    int                 on = 1;
    memset(&a, 0, sizeof a);
    a.sin6_family = AF_INET6;
    a.sin6_addr.s6_addr[15] = 1;
    six.fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (six.fd < 0 ||
        setsockopt(six.fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) ||
        bind(six.fd, (struct sockaddr *)&a, sizeof a) || listen(six.fd, 4) ||
        getsockname(six.fd, (struct sockaddr *)&a, &n)) {
        printf("%s: skipped: no IPv6 here\n", t_name);
        t_skipped++;
        if (six.fd >= 0) close(six.fd);
        return;
    }
    if (pthread_create(&six.thread, NULL, ti_run, &six)) abort();
    open_server(NULL);
    how.port = ntohs(a.sin6_port);
    ts_call(&s, &r, "POST", "/r/p", "", HFSB_LIT("a body"));
    TS_IS(&r, 201, "\r\n\r\na body");
    refuse_at_once(how.port);
    ts_call(&s, &r, "POST", "/r/p", "", HFSB_LIT("a body"));
    TS_IS(&r, 201, "\r\n\r\na body");
    ti_end(&six);
    ts_get(&s, &r, "/r/x"); /* neither has it now */
    TS_REFUSED(&r, 502, "nothing listens on port");
    T_CHECK(!ts_contains(&r, "nobody listens"));
    refuse_at_once(0);
    ts_get(&s, &r, "/r/x");
    TS_REFUSED(&r, 502, "nothing listens on port");
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- bodies ---- */

/* A socket that holds little, so that the client is soon held back. */
static int dial_small(void *user, unsigned port) {
    struct sockaddr_in a;
    int                fd = hfsbi_relay_socket(AF_INET), bytes = 16384;
    (void)user;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons((unsigned short)port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    (void)!connect(fd, (struct sockaddr *)&a, sizeof a);
    return fd;
}

/* The inner server answers and closes when nobody takes more of the body, and
   the client is held in the middle of it. */
static void a_refusal_reaches_a_client_that_was_held(void) {
    hfsb_buf body = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    open_server(NULL);
    how.dial = dial_small;
    tt_fill(&body, "0123456789abcdef", 8u << 20);
    ts_call(&s, &r, "POST", "/r/late", "", hfsb_buf_str(&body));
    TS_IS(&r, 413, "no");
    T_STR(ts_field(&r, "X-A"), "1");
    hfsb_buf_free(&body);
    ts_drop(&r);
    ts_end(&s, false);
}

/* The kernel holds the whole body, of which the inner server reads nothing: its
   close is a reset, also for a reply without a length. */
static void a_refusal_without_a_length_is_whole(void) {
    hfsb_buf body = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    open_server(NULL);
    tt_fill(&body, "0123456789abcdef", 6000);
    ts_call(&s, &r, "POST", "/r/refused", "", hfsb_buf_str(&body));
    TS_IS(&r, 413, "no");
    T_CHECK(r.whole);
    hfsb_buf_free(&body);
    ts_drop(&r);
    ts_end(&s, false);
}

/* A body without a length ends with the connection, but not with a reset. */
static void a_reply_that_is_cut_is_not_whole(void) {
    ts_conn c;
    open_server(NULL);
    c = ts_connect(&s);
    ts_ask(&c, "GET", "/r/cut", "", nothing);
    T_CHECK(ts_await(&c, "hal", 20000));
    T_CHECK(ts_closes(&c, 20000));
    T_CHECK(hfsb_str_find(hfsb_buf_str(&c.in), HFSB_LIT("\r\n0\r\n")) ==
            HFSB_NPOS);
    ts_hang_up(&c);
    ts_end(&s, false);
}

/* ---- tunnels ---- */

#define UPGRADE(to) "Connection: Upgrade\r\nUpgrade: " to "\r\n"

static int kept; /* atomic: 1 + how many sockets have keepalive */

static void look_at_sockets(void *user) {
    const hfsbi_conn *conn;
    int               n = 1, on, k;
    (void)user;
    for (conn = s.server->conns; conn; conn = conn->next) {
        const hfsbi_io *inner;
        if (conn->state != HFSBI_CONN_TUNNEL) continue;
        inner = (const hfsbi_io *)hfsb_request_get(conn->request);
        for (k = 0; k < 2; k++) {
            socklen_t len = sizeof on;
            on = 0;
            (void)getsockopt(k ? inner->fd : conn->io.fd, SOL_SOCKET,
                             SO_KEEPALIVE, &on, &len);
            n += on != 0;
        }
    }
    __atomic_store_n(&kept, n, __ATOMIC_SEQ_CST);
}

/* Deadlines of requests do not end a tunnel; the kernel looks after it. */
static void an_idle_tunnel_lives_on(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_conn          c;
    o.head_ms = o.body_ms = o.idle_ms = 1500;
    open_server(&o);
    c = ts_connect(&s);
    ts_ask(&c, "GET", "/r/ws", UPGRADE("odd"), nothing);
    T_CHECK(ts_await(&c, "\r\n\r\nhello", 20000));
    tt_sleep_ms(2000);
    kept = 0;
    if (hfsb_server_post(s.server, look_at_sockets, NULL) != HFSB_OK) abort();
    while (!load(&kept)) tt_sleep_ms(5);
    T_CHECK(load(&kept) == 3);
    T_CHECK(ts_send(&c, HFSB_LIT("still here")));
    T_CHECK(ts_await(&c, "hellostill here", 20000));
    (void)shutdown(c.fd, SHUT_WR);
    T_CHECK(ts_closes(&c, 20000));
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&c.in), HFSB_LIT("bye")));
    ts_hang_up(&c);
    ts_end(&s, false);
}

/* The client may be gone, and the inner server does not care. */
static void a_half_closed_tunnel_ends_when_it_is_silent(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_conn          c;
    long long        began;
    o.idle_ms = 1500;
    open_server(&o);
    c = ts_connect(&s);
    __atomic_store_n(&ti_released, 0, __ATOMIC_SEQ_CST);
    ts_ask(&c, "GET", "/r/ws", UPGRADE("mute"), nothing);
    T_CHECK(ts_await(&c, "\r\n\r\nhello", 20000));
    tt_sleep_ms(1600);
    T_CHECK(!ts_closes(&c, 100));
    began = hfsb_clock_ms();
    (void)shutdown(c.fd, SHUT_WR);
    T_CHECK(ts_closes(&c, 20000));
    T_CHECK(hfsb_clock_ms() - began >= 1400);
    __atomic_store_n(&ti_released, 1, __ATOMIC_SEQ_CST);
    ts_hang_up(&c);
    ts_end(&s, false);
}

int main(void) {
    tt_begin();
    ti_start(&in);
    TT_RUN(fields_of_one_connection_stay_here);
    TT_RUN(redirects_and_cookies_are_moved);
    TT_RUN(a_full_queue_is_tried_again);
    TT_RUN(a_queue_that_stays_full_is_503);
    TT_RUN(a_port_that_accepts_nothing_is_503);
    TT_RUN(an_end_while_connecting_leaves_nothing);
    TT_RUN(a_port_of_ipv6_is_reached);
    TT_RUN(a_refusal_reaches_a_client_that_was_held);
    TT_RUN(a_refusal_without_a_length_is_whole);
    TT_RUN(a_reply_that_is_cut_is_not_whole);
    TT_RUN(an_idle_tunnel_lives_on);
    TT_RUN(a_half_closed_tunnel_ends_when_it_is_silent);
    ti_end(&in);
    return TT_END();
}
