/* test_server_run.c - running and stopping a server: in its own thread, from
   the host's loop, several at once; where it listens. */
#include "../support/t_conn.h"

/* Bytes of a listening TCP socket of our own on loopback; *port is set. */
static int listen_somewhere(unsigned *port) {
    struct sockaddr_in a;
    socklen_t          len = sizeof a;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) ||
        listen(fd, 16) || getsockname(fd, (struct sockaddr *)&a, &len))
        abort();
    *port = ntohs(a.sin_port);
    return fd;
}

static ts_conn reach_unix(const char *path) {
    struct sockaddr_un a;
    ts_conn            c = HFSB_INIT;
    memset(&a, 0, sizeof a);
    a.sun_family = AF_UNIX;
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    c.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(c.fd, (struct sockaddr *)&a, sizeof a)) c.ended = true;
    return c;
}

/* Joins the thread and closes; how long that took. */
static long long ended_in(ts_server *s) {
    long long began = hfsb_clock_ms();
    pthread_join(s->thread, NULL);
    began = hfsb_clock_ms() - began;
    T_CHECK(s->ended == HFSB_OK);
    hfsb_server_close(s->server);
    return began;
}

/* ---- stop ---- */

static void stop_closes_idle_connections_at_once(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    ts_conn          c[20];
    size_t           i;
    o.stop_ms = 60000;
    tc_start(&s, &o);
    for (i = 0; i < 20; i++) {
        c[i] = ts_connect(&s);
        if (i % 3) T_CHECK(tc_lives(&c[i]));
        if (i % 3 == 2) T_CHECK(ts_send(&c[i], HFSB_LIT("GET /he")));
    }
    T_CHECK(tc_lives(&c[0]));
    hfsb_server_stop(s.server);
    T_CHECK(ended_in(&s) < 15000);
    for (i = 0; i < 20; i++) {
        T_CHECK(ts_closes(&c[i], 20000));
        ts_hang_up(&c[i]);
    }
}

/* Someone is let in, and goes after a moment. */
static bool comes_in(const ts_server *s) {
    struct sockaddr_in a;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool               in;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons((unsigned short)s->port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in = connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
    usleep(in ? 2000 : 5000);
    close(fd);
    return in;
}

/* Requests in progress are answered with Connection: close; requests that
   follow them are not, and new connections are refused. */
static void stop_lets_requests_finish(void) {
    static const char *const ways[] = {
        TC_GET("/hold"), TC_GET("/hold?pieces"),
        TC_GET("/hold") TC_GET("/hello"),
        TC_GET("/hold?pieces") TC_GET("/hello")};
    hfsb_server_opts o = HFSB_INIT;
    size_t           i;
    o.stop_ms = 60000;
    for (i = 0; i < TT_COUNT(ways); i++) {
        ts_server s;
        ts_conn   c, half, other;
        ts_reply  r = HFSB_INIT;
        hfsb_buf  all = HFSB_INIT;
        int       k;
        tc_start(&s, &o);
        c = ts_connect(&s);
        half = ts_connect(&s);
        T_CHECK(ts_send(&half, HFSB_LIT("POST /echo HTTP/1.1\r\n" TC_HEAD
                                        "Content-Length: 4\r\n\r\nab")));
        T_CHECK(ts_send(&c, hfsb_cstr(ways[i])));
        T_CHECK(tc_becomes(&tc.holding, 1));
        T_CHECK(ts_send(&half, HFSB_LIT("c")));
        other = ts_connect(&s); /* served when the others were looked at */
        T_CHECK(tc_lives(&other));
        ts_hang_up(&other);
        hfsb_server_stop(s.server);
        for (k = 0; k < 10000 && comes_in(&s); k++) continue;
        T_CHECK(k < 10000);
        T_CHECK(ts_send(&half, HFSB_LIT("d")) && ts_read(&half, &r, false));
        TS_IS(&r, 200, "abcd");
        T_STR(ts_field(&r, "Connection"), "close");
        T_CHECK(ts_closes(&half, 20000));
        tc_release(s.server);
        T_CHECK(ts_read(&c, &r, false));
        TS_IS(&r, 200, i % 2 ? "begun ended" : "held");
        tc_rest(&c, &all); /* 503 if the reply had not announced the close */
        T_CHECK(!all.len || (i == 3 && hfsb_str_starts(
                                           hfsb_buf_str(&all),
                                           HFSB_LIT("HTTP/1.1 503 "))));
        ts_hang_up(&c); /* it may be listened to for a moment */
        ts_hang_up(&half);
        T_CHECK(ended_in(&s) < 15000);
        ts_drop(&r);
        hfsb_buf_free(&all);
    }
}

/* No longer than stop_ms, whatever a peer or a handler does. */
static void stop_takes_no_longer_than_stop_ms(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    ts_conn          c, d;
    long long        took;
    o.stop_ms = 1000;
    tc_start(&s, &o);
    c = ts_connect(&s);
    d = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT(TC_GET("/pieces?count=100000&size=65536"))));
    T_CHECK(ts_send(&d, HFSB_LIT(TC_GET("/hold"))));
    T_CHECK(tc_becomes(&tc.holding, 1));
    T_CHECK(ts_more(&c, 20000));
    took = hfsb_clock_ms();
    hfsb_server_stop(s.server);
    (void)ended_in(&s);
    took = hfsb_clock_ms() - took;
    T_CHECK(took > 500 && took < 20000);
    T_CHECK(tc_get(&tc.gone) == 2 && tc_get(&tc.holding) == 0);
    ts_hang_up(&c);
    ts_hang_up(&d);
}

static void second_stop_ends_the_server_at_once(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    ts_conn          c;
    o.stop_ms = 60000;
    tc_start(&s, &o);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT(TC_GET("/hold"))));
    T_CHECK(tc_becomes(&tc.holding, 1));
    hfsb_server_stop(s.server);
    usleep(20000);
    hfsb_server_stop(s.server);
    hfsb_server_stop(s.server);
    T_CHECK(ended_in(&s) < 15000);
    T_CHECK(tc_get(&tc.gone) == 1);
    ts_hang_up(&c);
}

static hfsb_server *signalled;
static void on_signal(int number) {
    (void)number;
    hfsb_server_stop(signalled);
}

static void signal_handler_may_stop_the_server(void) {
    ts_server        s;
    struct sigaction act, old;
    tc_start(&s, NULL);
    signalled = s.server;
    memset(&act, 0, sizeof act);
    act.sa_handler = on_signal;
    sigaction(SIGUSR1, &act, &old);
    usleep(20000);
    pthread_kill(s.thread, SIGUSR1);
    T_CHECK(ended_in(&s) < 15000);
    sigaction(SIGUSR1, &old, NULL);
}

/* Before it runs, too. */
static void stop_before_run_takes_effect(void) {
    ts_server s;
    ts_open(&s, NULL);
    hfsb_server_stop(s.server);
    T_CHECK(hfsb_server_run(s.server, NULL) == HFSB_OK);
    T_CHECK(!hfsb_server_poll(s.server, 0));
    hfsb_server_close(s.server);
}

static void *come_in(void *user) {
    ts_server *s = (ts_server *)user;
    int        i;
    for (i = 0; i < 60; i++) (void)comes_in(s);
    return NULL;
}

/* close() without a stop waits for threads, and for nothing else. */
static void close_waits_for_threads(void) {
    ts_server s;
    ts_conn   c[5], quiet;
    pthread_t other;
    size_t    i;
    long long began;
    tc_reset();
    ts_open(&s, NULL);
    T_CHECK(tc_try_routes(s.server));
    for (i = 0; i < 5; i++) {
        c[i] = ts_connect(&s);
        T_CHECK(ts_send(&c[i],
                        HFSB_LIT("POST /threaded?ms=300 HTTP/1.1\r\n" TC_HEAD
                                 "Content-Length: 0\r\n\r\n")));
    }
    for (i = 0; i < 10; i++) (void)hfsb_server_poll(s.server, 5);
    quiet = ts_connect(&s); /* accepted by no one */
    if (pthread_create(&other, NULL, come_in, &s)) abort();
    began = hfsb_clock_ms();
    hfsb_server_close(s.server);
    T_CHECK(hfsb_clock_ms() - began < 15000);
    T_CHECK(tc_get(&tc.ran) == 5);
    pthread_join(other, NULL);
    for (i = 0; i < 5; i++) ts_hang_up(&c[i]);
    ts_hang_up(&quiet);
}

static void add_one(void *user) {
    tc_add((size_t *)user, 1);
}

static void close_runs_pending_posts(void) {
    ts_server s;
    size_t    n = 0;
    int       i;
    ts_open(&s, NULL);
    for (i = 0; i < 100; i++)
        T_CHECK(hfsb_server_post(s.server, add_one, &n) == HFSB_OK);
    hfsb_server_close(s.server);
    T_CHECK(n == 100);
}

/* ---- the host's own loop ---- */

/* Waits with poll() as a host would, then polls each server. */
static void host_turn(hfsb_server **servers, size_t count, int most_ms) {
    struct pollfd fds[64];
    hfsb_watch    list[16];
    size_t        i, k, n = 0;
    long long     now = hfsb_clock_ms(), until = now + most_ms;
    for (i = 0; i < count; i++) {
        size_t    have = hfsb_server_watch(servers[i], list, 16);
        long long at = hfsb_server_deadline(servers[i]);
        T_CHECK(have <= 16);
        for (k = 0; k < have; k++, n++) {
            fds[n].fd = list[k].fd;
            fds[n].events = (short)((list[k].readable ? POLLIN : 0) |
                                    (list[k].writable ? POLLOUT : 0));
        }
        if (at >= 0 && at < until) until = at;
    }
    (void)poll(fds, (nfds_t)n, until > now ? (int)(until - now) : 0);
    for (i = 0; i < count; i++) (void)hfsb_server_poll(servers[i], 0);
}

static void host_loop_drives_several_servers(void) {
    enum { COUNT = 3 };
    hfsb_server     *servers[COUNT];
    ts_server        s[COUNT];
    ts_conn          c[COUNT];
    ts_reply         r = HFSB_INIT;
    hfsb_server_opts o = HFSB_INIT;
    size_t           i, turn;
    o.idle_ms = 700;
    for (i = 0; i < COUNT; i++) {
        ts_open(&s[i], &o);
        T_CHECK(tc_try_routes(s[i].server));
        servers[i] = s[i].server;
        c[i] = ts_connect(&s[i]);
        T_CHECK(ts_send(&c[i],
                        HFSB_LIT("POST /late HTTP/1.1\r\n" TC_HEAD
                                 "Content-Length: 2\r\n\r\nok"
                                 "POST /threaded?ms=5 HTTP/1.1\r\n" TC_HEAD
                                 "Content-Length: 2\r\n\r\nok"
                                 TC_GET("/pieces?count=5&size=5"))));
    }
    for (turn = 0; turn < 400; turn++) {
        size_t done = 0;
        host_turn(servers, COUNT, 50);
        for (i = 0; i < COUNT; i++) {
            while (ts_more(&c[i], 0)) continue;
            if (hfsb_str_find(hfsb_buf_str(&c[i].in),
                              HFSB_LIT("\r\n0\r\n\r\n")) != HFSB_NPOS)
                done++;
        }
        if (done == COUNT) break;
    }
    T_CHECK(turn < 400);
    for (i = 0; i < COUNT; i++)
        for (turn = 0; turn < 3; turn++) T_CHECK(ts_read(&c[i], &r, false));
    { /* their time passes without a byte: an end after idle_ms */
        long long began = hfsb_clock_ms();
        while (!ts_closes(&c[0], 0) && hfsb_clock_ms() - began < 20000) {
            host_turn(servers, COUNT, 60000);
            (void)ts_more(&c[0], 0);
        }
        T_CHECK(c[0].ended && hfsb_clock_ms() - began < 20000);
    }
    hfsb_server_stop(servers[0]);
    host_turn(servers, COUNT, 50);
    T_CHECK(!hfsb_server_poll(servers[0], 0));
    T_CHECK(hfsb_server_poll(servers[1], 0));
    for (i = 0; i < COUNT; i++) {
        hfsb_server_close(servers[i]);
        ts_hang_up(&c[i]);
    }
    ts_drop(&r);
}

static void *one_of_many(void *user) {
    ts_server s;
    ts_conn   c;
    size_t    i, bad = 0;
    ts_open(&s, NULL);
    if (!tc_try_routes(s.server)) abort();
    ts_run(&s);
    for (i = 0; i < 20; i++) {
        ts_reply r = HFSB_INIT;
        c = ts_connect(&s);
        (void)ts_send(&c, HFSB_LIT("POST /threaded?ms=1 HTTP/1.1\r\n" TC_HEAD
                                   "Content-Length: 2\r\n\r\nok"));
        if (!ts_read(&c, &r, false) || r.status != 201) bad++;
        ts_hang_up(&c);
        ts_drop(&r);
    }
    hfsb_server_stop(s.server);
    pthread_join(s.thread, NULL);
    hfsb_server_close(s.server);
    tc_add((size_t *)user, bad);
    return NULL;
}

static void many_servers_run_in_many_threads(void) {
    pthread_t threads[12];
    size_t    i, bad = 0;
    for (i = 0; i < 12; i++)
        if (pthread_create(&threads[i], NULL, one_of_many, &bad)) abort();
    for (i = 0; i < 12; i++) pthread_join(threads[i], NULL);
    T_CHECK(bad == 0);
}

/* ---- where it listens ---- */

static void server_listens_in_several_places(void) {
    ts_server   s;
    ts_conn     c;
    ts_reply    r = HFSB_INIT;
    hfsb_err    err = HFSB_INIT;
    struct stat st;
    unsigned    port = 0, six = 0;
    int         fd = listen_somewhere(&port);
    mode_t      mask = umask(0);
    ts_open(&s, NULL);
    T_CHECK(tc_try_routes(s.server));
    T_CHECK(hfsb_server_listen_fd(s.server, fd, &err) == HFSB_OK);
    T_CHECK(hfsb_server_listen_unix(s.server, "sock", &err) == HFSB_OK);
    T_CHECK(!lstat("sock", &st) && S_ISSOCK(st.st_mode) &&
            (st.st_mode & 0777) == 0600);
    (void)umask(mask);
    if (hfsb_server_listen(s.server, "::1", 0, &six, &err) != HFSB_OK)
        t_skipped++; /* a machine without IPv6 */
    ts_run(&s);
    c = ts_connect(&s);
    T_CHECK(tc_lives(&c));
    ts_hang_up(&c);
    s.port = port;
    c = ts_connect(&s);
    T_CHECK(tc_lives(&c));
    ts_hang_up(&c);
    c = reach_unix("sock");
    T_CHECK(tc_lives(&c));
    ts_hang_up(&c);
    if (six) {
        struct sockaddr_in6 a;
        memset(&a, 0, sizeof a);
        a.sin6_family = AF_INET6;
        a.sin6_port = htons((unsigned short)six);
        a.sin6_addr = in6addr_loopback;
        c.fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        T_CHECK(!connect(c.fd, (struct sockaddr *)&a, sizeof a));
        T_CHECK(ts_send(&c, HFSB_LIT("GET /hello HTTP/1.1\r\nHost: [::1]:"
                                     "80\r\n\r\n")) &&
                ts_read(&c, &r, false));
        TS_IS(&r, 200, "hello");
        ts_hang_up(&c);
    }
    ts_drop(&r);
    ts_end(&s, false);
    T_CHECK(lstat("sock", &st) && errno == ENOENT); /* removed */
}

/* On a Unix socket the kernel reports the end before the bytes are read. */
static void request_before_eof_is_handled(void) {
    ts_server s;
    ts_conn   c;
    hfsb_err  err = HFSB_INIT;
    size_t    before;
    tc_reset();
    ts_open(&s, NULL);
    T_CHECK(tc_try_routes(s.server));
    T_CHECK(hfsb_server_listen_unix(s.server, "brief", &err) == HFSB_OK);
    before = tc_get(&tc.held_ever);
    c = reach_unix("brief"); /* waits in the backlog until it runs */
    T_CHECK(ts_send(&c, HFSB_LIT("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")));
    ts_hang_up(&c);
    ts_run(&s);
    T_CHECK(tc_becomes(&tc.held_ever, before + 1));
    T_CHECK(tc_becomes(&tc.gone, 1));
    ts_end(&s, false);
}

static void listen_reports_unusable_addresses(void) {
    ts_server   a, b;
    hfsb_err    err = HFSB_INIT;
    char        path[200];
    struct stat st;
    FILE       *f;
    int         fd;
    ts_open(&a, NULL);
    ts_open(&b, NULL);
    T_CHECK(hfsb_server_listen(b.server, "127.0.0.1", a.port, NULL, &err) ==
            HFSB_IO);
    T_CHECK(strstr(err.msg, "Cannot listen on 127.0.0.1 port ") == err.msg);
    T_CHECK(strstr(err.msg, "another program uses that port; choose another "
                            "one, or 0 to have one picked"));
    T_CHECK(!strstr(err.msg, "system error"));
    T_CHECK(hfsb_server_listen(b.server, "no such host", 0, NULL, &err) ==
            HFSB_ARG);
    T_CHECK(strstr(err.msg, "\"no such host\" is not a numeric address"));
    T_CHECK(hfsb_server_listen(b.server, NULL, 65536, NULL, &err) == HFSB_ARG);
    T_CHECK(strstr(err.msg, "up to 65535, not 65536"));
    T_CHECK(hfsb_server_listen(b.server, "192.0.2.1", 0, NULL, &err) !=
            HFSB_OK);
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = '\0';
    T_CHECK(hfsb_server_listen_unix(b.server, path, &err) == HFSB_ARG);
    T_CHECK(hfsb_server_listen_unix(b.server, "", &err) == HFSB_ARG);
    T_CHECK(hfsb_server_listen_unix(b.server, NULL, &err) == HFSB_ARG);
    T_CHECK(hfsb_server_listen_unix(b.server, "no/sock", &err) ==
            HFSB_NOT_FOUND);
    /* one that answers, one that is left over, and a file of someone */
    T_CHECK(hfsb_server_listen_unix(a.server, "sock", &err) == HFSB_OK);
    T_CHECK(hfsb_server_listen_unix(b.server, "sock", &err) == HFSB_REFUSED);
    T_CHECK(strstr(err.msg, "Another server already listens on sock."));
    T_CHECK(!lstat("sock", &st));
    /* one that was removed, so that another server has its path */
    T_CHECK(hfsb_server_listen_unix(a.server, "taken", &err) == HFSB_OK);
    T_CHECK(unlink("taken") == 0);
    T_CHECK(hfsb_server_listen_unix(b.server, "taken", &err) == HFSB_OK);
    {
        struct sockaddr_un u;
        memset(&u, 0, sizeof u);
        u.sun_family = AF_UNIX;
        strcpy(u.sun_path, "stale");
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        T_CHECK(!bind(fd, (struct sockaddr *)&u, sizeof u));
        close(fd);
    }
    T_CHECK(hfsb_server_listen_unix(b.server, "stale", &err) == HFSB_OK);
    f = fopen("plain", "w");
    fputs("mine", f);
    fclose(f);
    T_CHECK(hfsb_server_listen_unix(b.server, "plain", &err) != HFSB_OK);
    T_CHECK(!lstat("plain", &st) && S_ISREG(st.st_mode) && st.st_size == 4);
    T_CHECK(!symlink("plain", "link"));
    T_CHECK(hfsb_server_listen_unix(b.server, "link", &err) != HFSB_OK);
    T_CHECK(!lstat("link", &st) && S_ISLNK(st.st_mode));
    unlink("plain");
    unlink("link");
    fd = socket(AF_INET, SOCK_STREAM, 0);
    T_CHECK(hfsb_server_listen_fd(b.server, fd, &err) == HFSB_ARG);
    close(fd);
    T_CHECK(hfsb_server_listen_fd(b.server, 0, &err) == HFSB_ARG);
    T_CHECK(hfsb_server_listen_fd(b.server, -1, &err) == HFSB_ARG);
    ts_end(&a, false);
    T_CHECK(lstat("sock", &st) != 0 && !lstat("taken", &st));
    ts_end(&b, false);
    T_CHECK(lstat("taken", &st) != 0);
    T_CHECK(lstat("sock", &st) && lstat("stale", &st));
}

static void add_refuses_invalid_routes(void) {
    ts_server  s;
    hfsb_route route = HFSB_INIT;
    hfsb_err   err = HFSB_INIT;
    ts_open(&s, NULL);
    route.method = "GET";
    route.path = "/a";
    T_CHECK(hfsb_server_add(s.server, &route, &err) == HFSB_ARG);
    route.fn = tc_hello;
    T_CHECK(hfsb_server_add(s.server, &route, &err) == HFSB_OK);
    T_CHECK(hfsb_server_add(s.server, &route, &err) == HFSB_ARG);
    T_CHECK(strstr(err.msg, "There is already a route for GET /a."));
    route.path = "a";
    T_CHECK(hfsb_server_add(s.server, &route, &err) == HFSB_ARG);
    route.path = "/*/*/*/*";
    T_CHECK(hfsb_server_add(s.server, &route, &err) == HFSB_OK);
    route.path = "/*/*/*/*/*";
    T_CHECK(hfsb_server_add(s.server, &route, &err) == HFSB_ARG);
    ts_end(&s, false);
}

int main(void) {
    tt_begin();
    TT_RUN(stop_closes_idle_connections_at_once);
    TT_RUN(stop_lets_requests_finish);
    TT_RUN(stop_takes_no_longer_than_stop_ms);
    TT_RUN(second_stop_ends_the_server_at_once);
    TT_RUN(signal_handler_may_stop_the_server);
    TT_RUN(stop_before_run_takes_effect);
    TT_RUN(close_waits_for_threads);
    TT_RUN(close_runs_pending_posts);
    TT_RUN(host_loop_drives_several_servers);
    TT_RUN(many_servers_run_in_many_threads);
    TT_RUN(server_listens_in_several_places);
    TT_RUN(request_before_eof_is_handled);
    TT_RUN(listen_reports_unusable_addresses);
    TT_RUN(add_refuses_invalid_routes);
    return TT_END();
}
