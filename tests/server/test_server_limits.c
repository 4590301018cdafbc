/* test_server_limits.c - a server under siege: too many connections, no
   descriptors left, slow heads and bodies, memory for bodies. */
#include "../support/t_conn.h"

static long long cpu_ms(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (long long)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
           (long long)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

#define TOKEN_FIELD "X-Sandbox-Authorization: Bearer " TS_TOKEN "\r\n"
#define KNOWN_HEAD \
    "POST /secret HTTP/1.1\r\n" TC_HEAD TOKEN_FIELD \
    "Content-Length: 30\r\n\r\n"

/* ---- connections ---- */

/* An old idle one makes room for a new one, and only one; busy ones stay. */
static void new_connection_replaces_an_idle_one(void) {
    enum { MAX = 8 };
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    ts_conn          c[MAX], fresh;
    size_t           i, open = 0;
    o.max_connections = MAX;
    tc_start(&s, &o);
    for (i = 0; i < MAX; i++) {
        c[i] = ts_connect(&s);
        usleep(5000); /* each a little later */
        if (i < 3) T_CHECK(ts_send(&c[i], HFSB_LIT(TC_GET("/hold"))));
        else T_CHECK(tc_lives(&c[i]));
    }
    T_CHECK(tc_becomes(&tc.holding, 3));
    usleep(1100000); /* now they are old */
    T_CHECK(tc_lives(&c[3])); /* but for this one */
    fresh = ts_connect(&s);
    T_CHECK(tc_lives(&fresh));
    T_CHECK(ts_closes(&c[4], 20000)); /* that was used longest ago */
    for (i = 3; i < MAX; i++)
        if (!c[i].ended) {
            (void)ts_more(&c[i], 0);
            open += !c[i].ended;
        }
    T_CHECK(open == MAX - 4);
    tc_release(s.server);
    for (i = 0; i < 3; i++) {
        ts_reply r = HFSB_INIT;
        T_CHECK(ts_read(&c[i], &r, false));
        TS_IS(&r, 200, "held");
        ts_drop(&r);
    }
    for (i = 0; i < MAX; i++) ts_hang_up(&c[i]);
    ts_hang_up(&fresh);
    ts_end(&s, false);
}

/* Of those that were accepted in the same moment the first one goes. */
static void connections_of_one_moment_go_in_order(void) {
    enum { MAX = 4 };
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    ts_conn          c[MAX], fresh;
    size_t           i;
    int              turn;
    o.max_connections = MAX;
    tc_reset();
    ts_open(&s, &o);
    T_CHECK(tc_try_routes(s.server));
    for (i = 0; i < MAX; i++) c[i] = ts_connect(&s);
    for (turn = 0; turn < 10; turn++) (void)hfsb_server_poll(s.server, 20);
    usleep(1100000); /* now they are old */
    fresh = ts_connect(&s);
    for (turn = 0; turn < 1000 && !c[0].ended; turn++) {
        (void)hfsb_server_poll(s.server, 20);
        (void)ts_more(&c[0], 0);
    }
    T_CHECK(c[0].ended);
    for (i = 1; i < MAX; i++) {
        (void)ts_more(&c[i], 0);
        T_CHECK(!c[i].ended);
    }
    for (i = 0; i < MAX; i++) ts_hang_up(&c[i]);
    ts_hang_up(&fresh);
    ts_end(&s, true);
}

/* Strangers who send a head or a body a byte at a time make room as well: the
   oldest first, however new its last byte is. Those who are known, or being
   answered, stay. */
static void new_connection_replaces_a_slow_stranger(void) {
    static const char *const heads[] = {
        "POST /secret HTTP/1.1\r\n" TC_HEAD "Content-Length: 60000\r\n\r\n",
        "POST /nowhere HTTP/1.1\r\n" TC_HEAD "Content-Length: 60000\r\n\r\n",
        "POST /echo HTTP/1.1\r\n" TC_HEAD "Content-Length: 60000\r\n\r\n",
        "POST /secret HTTP/1.1\r\n" TC_HEAD "Content-Length: 70000\r\n\r\n",
        "GET /hello HTTP/1.1\r\nX: "};
    enum { MAX = 8 };
    hfsb_server_opts o = HFSB_INIT;
    size_t           way;
    o.max_connections = MAX;
    o.head_ms = o.body_ms = o.idle_ms = 60000;
    for (way = 0; way < TT_COUNT(heads); way++) {
        ts_server s;
        ts_conn   c[MAX], fresh;
        ts_reply  r = HFSB_INIT;
        size_t    i, k;
        tc_start(&s, &o);
        for (i = 0; i < MAX; i++) {
            c[i] = ts_connect(&s);
            T_CHECK(ts_send(&c[i], hfsb_cstr(i == 0 ? TC_GET("/hold")
                                             : i == 1 ? KNOWN_HEAD
                                                      : heads[way])));
            usleep(30000); /* each a little later, also on a busy machine */
        }
        for (k = 0; k < 25; k++) {
            for (i = 1; i < MAX; i++) /* 3: refused, and soon not heard */
                T_CHECK(ts_send(&c[i], HFSB_LIT("x")) || (way == 3 && i > 1));
            usleep(50000);
        }
        fresh = ts_connect(&s);
        T_CHECK(ts_send(&fresh, HFSB_LIT(TC_GET("/hello"))));
        for (k = 0; k < 400 && !ts_more(&fresh, 50); k++)
            for (i = 2; i < MAX; i++) (void)ts_send(&c[i], HFSB_LIT("x"));
        T_CHECK(fresh.in.len > 0 && ts_read(&fresh, &r, false));
        TS_IS(&r, 200, "hello");
        T_CHECK(ts_closes(&c[2], 20000));
        for (i = 3; i < MAX; i++) /* no more than one had to go */
            while (ts_more(&c[i], 0)) continue;
        /* 70000 is too much to discard: its side was ended at once */
        for (i = 3; i < MAX && way != 3; i++) T_CHECK(!c[i].ended);
        T_CHECK(ts_send(&c[1], HFSB_LIT("xxxxx")));
        T_CHECK(ts_read(&c[1], &r, false) && r.status == 200);
        tc_release(s.server);
        T_CHECK(ts_read(&c[0], &r, false));
        TS_IS(&r, 200, "held");
        for (i = 0; i < MAX; i++) ts_hang_up(&c[i]);
        ts_hang_up(&fresh);
        ts_drop(&r);
        ts_end(&s, false);
    }
}

/* When all are busy a new one waits, without work for the server, until one
   ends; when all are idle but young, until one is old enough. */
static void a_new_connection_waits_for_room(void) {
    enum { MAX = 4 };
    int way;
    for (way = 0; way < 2; way++) {
        hfsb_server_opts o = HFSB_INIT;
        ts_server        s;
        ts_conn          c[MAX], fresh;
        ts_reply         r = HFSB_INIT;
        long long        cpu, began;
        size_t           i;
        o.max_connections = MAX;
        tc_start(&s, &o);
        began = hfsb_clock_ms();
        for (i = 0; i < MAX; i++) {
            c[i] = ts_connect(&s);
            if (way) T_CHECK(tc_lives(&c[i]));
            else T_CHECK(ts_send(&c[i], HFSB_LIT(TC_GET("/hold"))));
        }
        if (!way) T_CHECK(tc_becomes(&tc.holding, MAX));
        fresh = ts_connect(&s);
        T_CHECK(ts_send(&fresh, HFSB_LIT(TC_GET("/hello"))));
        cpu = cpu_ms();
        if (ts_more(&fresh, 500)) /* the test was held up: it is old enough */
            T_CHECK(way && hfsb_clock_ms() - began >= 1000);
        T_CHECK(cpu_ms() - cpu < 200);
        if (!way) { /* one ends */
            ts_reset(&c[0]);
            T_CHECK(tc_becomes(&tc.gone, 1));
        }
        T_CHECK(fresh.in.len > 0 || ts_more(&fresh, 20000));
        T_CHECK(ts_read(&fresh, &r, false));
        TS_IS(&r, 200, "hello");
        tc_release(s.server);
        for (i = 0; i < MAX; i++) ts_hang_up(&c[i]);
        ts_hang_up(&fresh);
        ts_drop(&r);
        ts_end(&s, false);
    }
}

/* In a process of its own: no descriptor is left. The server neither spins
   nor dies, and serves again when there are some. */
static int without_descriptors(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    ts_conn          first, c[40];
    int              fds[40];
    struct rlimit    limit;
    size_t           i, n = 0;
    long long        cpu, began = hfsb_clock_ms();
    o.on_event = tc_log;
    tc_start(&s, &o);
    first = ts_connect(&s);
    T_CHECK(tc_lives(&first));
    for (i = 0; i < 40; i++) { /* sockets first: connecting needs none */
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        T_CHECK(fds[i] >= 0);
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = (rlim_t)fds[39] + 4;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (i = 0; i < 40; i++) {
        struct sockaddr_in a;
        memset(&a, 0, sizeof a);
        memset(&c[i], 0, sizeof c[i]);
        a.sin_family = AF_INET;
        a.sin_port = htons((unsigned short)s.port);
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        c[i].fd = fds[i];
        T_CHECK(!connect(fds[i], (struct sockaddr *)&a, sizeof a));
        (void)ts_send(&c[i], HFSB_LIT(TC_GET("/hello")));
    }
    cpu = cpu_ms();
    usleep(600000);
    T_CHECK(cpu_ms() - cpu < 250);
    for (i = 0; i < 2000 && tc_get(&tc.refused) < 1; i++) usleep(10000);
    n = tc_get(&tc.refused); /* one each 250 ms */
    T_CHECK(n >= 1 && (long long)n < 7 + (hfsb_clock_ms() - began) / 200);
    T_CHECK(tc_lives(&first)); /* those that are there are served */
    for (i = n = 0; i < 40; i++)
        if (ts_more(&c[i], i < 3 ? 20000 : 0)) n++;
    T_CHECK(n >= 3 && n < 20);
    for (i = 0; i < 40; i++) ts_hang_up(&c[i]);
    usleep(400000);
    c[0] = ts_connect(&s);
    T_CHECK(tc_lives(&c[0]));
    ts_hang_up(&c[0]);
    ts_hang_up(&first);
    ts_end(&s, false);
    return t_failed ? 1 : 0;
}

/* Connects from another address of loopback. */
static ts_conn connect_from(const ts_server *s, const char *from) {
    struct sockaddr_in a;
    ts_conn            c = HFSB_INIT;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    T_CHECK(inet_pton(AF_INET, from, &a.sin_addr) == 1);
    c.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    T_CHECK(!bind(c.fd, (struct sockaddr *)&a, sizeof a));
    a.sin_port = htons((unsigned short)s->port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    T_CHECK(!connect(c.fd, (struct sockaddr *)&a, sizeof a));
    return c;
}

enum { PER_PEER = 3 };

/* Connects so often, and once more in vain. False when a busy machine took so
   long for it that the first ones are old, and may be replaced. */
static bool fill_an_address(const ts_server *s, ts_conn *c) {
    long long began = hfsb_clock_ms();
    ts_conn   more;
    size_t    i;
    for (i = 0; i < PER_PEER; i++) {
        c[i] = connect_from(s, "127.0.0.2");
        usleep(5000); /* each a little later */
        T_CHECK(ts_send(&c[i], i ? HFSB_LIT("GET /hello HTTP/1.1\r\nX")
                                 : HFSB_LIT(TC_GET("/hold"))));
    }
    T_CHECK(tc_becomes(&tc.holding, 1));
    more = connect_from(s, "127.0.0.2");
    (void)ts_closes(&more, 500);
    if (!more.ended && hfsb_clock_ms() - began >= 1000) {
        for (i = 0; i < PER_PEER; i++) ts_hang_up(&c[i]);
        ts_hang_up(&more);
        T_CHECK(tc_becomes(&tc.holding, 0));
        return false;
    }
    T_CHECK(ts_closes(&more, 20000));
    ts_hang_up(&more);
    return true;
}

/* The fourth connection of an address is closed, or replaces an old one of the
   same address. Others have room. */
static void one_address_has_a_part_of_all_connections(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    ts_conn          c[PER_PEER], more, other;
    size_t           i;
    o.max_per_peer = PER_PEER;
    tc_start(&s, &o);
    other = connect_from(&s, "127.0.0.3");
    T_CHECK(tc_lives(&other));
    for (i = 0; i < 10 && !fill_an_address(&s, c); i++) continue;
    T_CHECK(i < 10);
    usleep(1100000); /* now they are old */
    more = connect_from(&s, "127.0.0.2");
    T_CHECK(tc_lives(&more) && tc_lives(&other));
    T_CHECK(ts_closes(&c[1], 20000) && !ts_more(&c[2], 0) && !c[2].ended);
    ts_hang_up(&c[2]);
    ts_hang_up(&more);
    more = connect_from(&s, "127.0.0.3");
    T_CHECK(tc_lives(&more));
    tc_release(s.server);
    for (i = 0; i < PER_PEER; i++) ts_hang_up(&c[i]);
    ts_hang_up(&more);
    ts_hang_up(&other);
    ts_end(&s, false);
}

static void server_survives_fd_exhaustion(void) {
    int   status = -1;
    pid_t pid = fork();
    if (pid == 0) _exit(without_descriptors());
    T_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void thousands_of_idle_connections_cost_little(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    enum { MANY = 2000 };
    static ts_conn c[MANY];
    struct rlimit  limit;
    size_t         i, n = t_quick() ? 200 : MANY, used;
    long long      cpu;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < 8192 ? limit.rlim_max : 8192;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 2 * n + 100) {
        t_skipped++;
        return;
    }
    o.max_connections = 10000;
    tc_start(&s, &o);
    pthread_mutex_lock(&tt_memory.lock);
    used = tt_memory.heap.live;
    pthread_mutex_unlock(&tt_memory.lock);
    for (i = 0; i < n; i++) {
        c[i] = ts_connect(&s);
        if (i % 10 == 0) T_CHECK(tc_lives(&c[i]));
    }
    T_CHECK(tc_lives(&c[n - 1]));
    pthread_mutex_lock(&tt_memory.lock);
    T_CHECK(tt_memory.heap.live - used < n * 512);
    pthread_mutex_unlock(&tt_memory.lock);
    cpu = cpu_ms();
    usleep(200000);
    T_CHECK(cpu_ms() - cpu < 100);
    for (i = 0; i < n; i += 7) T_CHECK(tc_lives(&c[i]));
    for (i = 0; i < n; i++) ts_hang_up(&c[i]);
    ts_end(&s, false);
}

/* ---- time ---- */

/* Sends a byte each step_ms until there is a reply or nothing left. */
static long long dribble(ts_conn *c, const char *bytes, int step_ms) {
    long long began = hfsb_clock_ms();
    for (; *bytes && !c->in.len && !c->ended; bytes++) {
        if (send(c->fd, bytes, 1, MSG_NOSIGNAL) < 0) break;
        (void)ts_more(c, step_ms);
    }
    while (!c->in.len && ts_more(c, 20000)) continue;
    return hfsb_clock_ms() - began;
}

static void head_deadline_runs_from_the_first_byte(void) {
    static const char half[] =
        "GET /hello HTTP/1.1\r\nHost: localhost\r\nX: y\r\n";
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    ts_conn          c, empty;
    ts_reply         r = HFSB_INIT;
    long long        took;
    o.head_ms = 400;
    tc_start(&s, &o);
    c = ts_connect(&s);
    usleep(500000); /* before the first byte it is idle */
    took = dribble(&c, half, 50);
    T_CHECK(took >= 350 && took < 20000);
    T_CHECK(ts_read(&c, &r, false));
    TS_REFUSED(&r, 408, "head");
    T_CHECK(ts_closes(&c, 20000));
    ts_hang_up(&c);
    /* the second request of a connection too */
    c = ts_connect(&s);
    T_CHECK(tc_lives(&c));
    took = dribble(&c, half, 50);
    T_CHECK(took >= 350 && took < 20000);
    T_CHECK(ts_read(&c, &r, false) && r.status == 408);
    ts_hang_up(&c);
    ts_end(&s, false);
    /* idle: closed without a word; an empty line is nothing, and no reason
       for a reply */
    o.idle_ms = 1500;
    tc_start(&s, &o);
    empty = ts_connect(&s);
    took = hfsb_clock_ms();
    T_CHECK(tc_lives(&empty) && ts_send(&empty, HFSB_LIT("\r\n")));
    c = ts_connect(&s);
    T_CHECK(ts_closes(&empty, 20000) && empty.in.len == 0);
    T_CHECK(hfsb_clock_ms() - took >= 1400);
    T_CHECK(ts_closes(&c, 20000) && c.in.len == 0);
    T_CHECK(hfsb_clock_ms() - took >= 1400);
    ts_hang_up(&c);
    ts_hang_up(&empty);
    ts_drop(&r);
    ts_end(&s, false);
}

/* Each head has its own time: a pipeline whose pieces always end in the middle
   of one is served for as long as it likes. */
static void each_head_has_its_own_deadline(void) {
    static const char get[] = TC_GET("/hello");
    hfsb_server_opts  o = HFSB_INIT;
    ts_server         s;
    ts_conn           c;
    ts_reply          r = HFSB_INIT;
    size_t            i;
    long long         last;
    bool              late = false;
    o.head_ms = 700;
    tc_start(&s, &o);
    c = ts_connect(&s);
    last = hfsb_clock_ms();
    T_CHECK(ts_send(&c, hfsb_str_make(get, 10)));
    for (i = 0; i < 20 && !late; i++) {
        hfsb_buf piece = HFSB_INIT;
        usleep(50000);
        t_repeat(&piece, get + 10, 1);
        t_repeat(&piece, "GET /hello", 1);
        (void)ts_send(&c, hfsb_buf_str(&piece));
        late = hfsb_clock_ms() - last > 500; /* by a busy machine */
        last = hfsb_clock_ms();
        T_CHECK(late || (ts_read(&c, &r, false) && r.status == 200));
        hfsb_buf_free(&piece);
    }
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

static void stalled_body_is_refused(void) {
    static const struct {
        const char *head;
        bool        gone; /* `gone` is called for it */
    } list[] = {{"POST /echo HTTP/1.1\r\n" TC_HEAD TOKEN_FIELD
                 "Content-Length: 100\r\n\r\n", false},
                {"POST /echo HTTP/1.1\r\n" TC_HEAD TOKEN_FIELD
                 "Transfer-Encoding: chunked\r\n\r\n64\r\n", false},
                {"PUT /stream HTTP/1.1\r\n" TC_HEAD TOKEN_FIELD
                 "Content-Length: 100\r\n\r\n", true}};
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    size_t           i, k;
    o.body_ms = 1000;
    o.head_ms = 300;
    o.min_rate = 1;
    tc_start(&s, &o);
    for (i = 0; i < TT_COUNT(list); i++) {
        ts_conn   c = ts_connect(&s);
        ts_reply  r = HFSB_INIT;
        size_t    gone = tc_get(&tc.gone);
        long long began, last = hfsb_clock_ms();
        bool      late = false; /* by a busy machine */
        T_CHECK(ts_send(&c, hfsb_cstr(list[i].head)));
        for (k = 0; k < 6 && !late; k++) { /* slow, but it comes */
            usleep(200000);
            began = hfsb_clock_ms();
            late = began - last > 700;
            T_CHECK(late || ts_send(&c, HFSB_LIT("x")));
            last = began;
        }
        late = late || hfsb_clock_ms() - last > 700;
        T_CHECK(late || (!ts_more(&c, 0) && !c.ended));
        began = late ? hfsb_clock_ms() - 1000 : last;
        T_CHECK(ts_read(&c, &r, false));
        TS_REFUSED(&r, 408, "body");
        T_STR(ts_field(&r, "Connection"), "close");
        began = hfsb_clock_ms() - began;
        T_CHECK(began >= 900 && began < 30000);
        T_CHECK(ts_closes(&c, 20000));
        T_CHECK(tc_get(&tc.gone) == gone + list[i].gone);
        ts_hang_up(&c);
        ts_drop(&r);
    }
    ts_end(&s, false);
}

/* Sends n bytes each step_ms, at most `steps` times, until there is a reply or
   the end; how long after `began` that is. */
static long long drip(ts_conn *c, long long began, size_t n, int step_ms,
                      int steps) {
    static const char bytes[100] = {0};
    for (; steps > 0 && !c->in.len && !c->ended; steps--) {
        if (send(c->fd, bytes, n, MSG_NOSIGNAL) < 0) break;
        (void)ts_more(c, step_ms);
    }
    return hfsb_clock_ms() - began;
}

/* Nobody waits for a body that is thrown away, or trusts one without a token:
   a byte now and then does not keep it alive. */
static void body_without_token_has_head_ms(void) {
    static const struct {
        const char *head;
        int         status; /* 408: there is no reply before its end */
    } list[] = {{"POST /secret HTTP/1.1\r\n" TC_HEAD
                 "Content-Length: 60000\r\n\r\n", 401},
                {"POST /nowhere HTTP/1.1\r\n" TC_HEAD TOKEN_FIELD
                 "Content-Length: 60000\r\n\r\n", 404},
                {"PUT /stream HTTP/1.1\r\n" TC_HEAD TOKEN_FIELD
                 "X-Refuse: 1\r\nContent-Length: 60000\r\n\r\n", 409},
                {"POST /echo HTTP/1.1\r\n" TC_HEAD
                 "Content-Length: 60000\r\n\r\n", 408},
                {"POST /echo HTTP/1.1\r\n" TC_HEAD
                 "Transfer-Encoding: chunked\r\n\r\nea60\r\n", 408},
                {"PUT /stream HTTP/1.1\r\n" TC_HEAD
                 "Content-Length: 60000\r\n\r\n", 408}};
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    size_t           i;
    o.head_ms = 600;
    o.body_ms = 60000;
    o.min_rate = 1;
    tc_start(&s, &o);
    for (i = 0; i < TT_COUNT(list); i++) {
        ts_conn   c = ts_connect(&s);
        ts_reply  r = HFSB_INIT;
        long long took = hfsb_clock_ms();
        T_CHECK(ts_send(&c, hfsb_cstr(list[i].head)));
        if (list[i].status != 408) T_CHECK(ts_read(&c, &r, false));
        took = drip(&c, took, 1, 50, 1000);
        T_CHECK(took >= 500 && took < 20000);
        if (list[i].status == 408) T_CHECK(ts_read(&c, &r, false));
        T_CHECK(r.status == list[i].status);
        T_CHECK(ts_closes(&c, 20000));
        ts_hang_up(&c);
        ts_drop(&r);
    }
    ts_end(&s, false);
}

/* ... and the time for the rest of it begins with the refusal. False if a busy
   machine sent the rest too late. */
static bool refused_body_is_discarded(void) {
    static const char rest[99] = {0};
    hfsb_server_opts  o = HFSB_INIT;
    ts_server         s;
    ts_conn           c;
    ts_reply          r = HFSB_INIT;
    long long         began;
    bool              late;
    o.head_ms = 1000;
    tc_start(&s, &o);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT("PUT /stream HTTP/1.1\r\n" TC_HEAD
                                 TOKEN_FIELD "Content-Length: 100\r\n\r\n")));
    usleep(1200000);
    began = hfsb_clock_ms();
    T_CHECK(ts_send(&c, HFSB_LIT("!")) && ts_read(&c, &r, false));
    TS_REFUSED(&r, 409, "refused in the middle");
    usleep(200000);
    (void)ts_send(&c, hfsb_str_make(rest, sizeof rest));
    late = hfsb_clock_ms() - began > 700;
    T_CHECK(late || tc_lives(&c));
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
    return !late;
}

static void refused_body_is_discarded_and_connection_kept(void) {
    int i;
    for (i = 0; i < 10 && !refused_body_is_discarded(); i++) continue;
    T_CHECK(i < 10);
}

/* Bytes keep coming, and are too few. */
static void body_below_min_rate_is_refused(void) {
    static const char *const heads[] = {
        "POST /secret HTTP/1.1\r\n" TC_HEAD TOKEN_FIELD
        "Content-Length: 60000\r\n\r\n",
        "POST /secret HTTP/1.1\r\n" TC_HEAD TOKEN_FIELD
        "Transfer-Encoding: chunked\r\n\r\nea60\r\n",
        "PUT /stream HTTP/1.1\r\n" TC_HEAD TOKEN_FIELD
        "Content-Length: 60000\r\n\r\n"};
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    size_t           i;
    o.head_ms = 100; /* is not for these */
    o.body_ms = 800;
    o.min_rate = 1000;
    tc_start(&s, &o);
    for (i = 0; i < TT_COUNT(heads); i++) {
        ts_conn   c = ts_connect(&s);
        ts_reply  r = HFSB_INIT;
        long long took = hfsb_clock_ms();
        T_CHECK(ts_send(&c, hfsb_cstr(heads[i])));
        took = drip(&c, took, 10, 50, 1000);
        T_CHECK(took >= 700 && took < 20000);
        T_CHECK(ts_read(&c, &r, false));
        TS_REFUSED(&r, 408, "body");
        T_CHECK(ts_closes(&c, 20000));
        ts_hang_up(&c);
        ts_drop(&r);
    }
    ts_end(&s, false);
}

/* It is the average that counts: slow times are paid for by quick ones, for
   longer than body_ms and head_ms. */
static void body_above_min_rate_is_accepted(void) {
    static const char *const heads[] = {
        "POST /secret HTTP/1.1\r\n" TC_HEAD TOKEN_FIELD
        "Content-Length: 3000\r\n\r\n",
        "PUT /stream HTTP/1.1\r\n" TC_HEAD TOKEN_FIELD
        "Content-Length: 3000\r\n\r\n"};
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    size_t           i;
    o.head_ms = 100;
    o.body_ms = 1000;
    o.min_rate = 100;
    tc_start(&s, &o);
    for (i = 0; i < TT_COUNT(heads); i++) {
        ts_conn   c = ts_connect(&s);
        ts_reply  r = HFSB_INIT;
        long long began = hfsb_clock_ms(), last;
        bool      late = false; /* by a busy machine: a gap as long as body_ms */
        int       k;
        T_CHECK(ts_send(&c, hfsb_cstr(heads[i])));
        T_CHECK(drip(&c, began, 100, 0, 20) < 15000); /* good for 20 s */
        for (k = 0, last = began = hfsb_clock_ms(); k < 30; k++) {
            (void)drip(&c, began, 1, 100, 1);
            late = late || hfsb_clock_ms() - last > 700;
            last = hfsb_clock_ms();
        }
        T_CHECK(late || last - began >= 2500);
        T_CHECK(late || drip(&c, last, 97, 0, 10) < 15000);
        late = late || hfsb_clock_ms() - last > 700;
        T_CHECK(late || (ts_read(&c, &r, false) && r.status == 200));
        ts_hang_up(&c);
        ts_drop(&r);
    }
    ts_end(&s, false);
}

/* -- /pausing: a body that is read when the test allows it -- */

static hfsb_request *pausing; /* the loop's */
static size_t        paused;

static void pausing_begin(void *user, hfsb_request *r) {
    (void)user;
    hfsb_request_pause(r);
    pausing = r;
    tc_add(&paused, 1);
}

static void pausing_body(void *user, hfsb_request *r, hfsb_str piece) {
    (void)piece;
    pausing_begin(user, r);
}

static void pausing_goes_on(void *user) {
    (void)user;
    hfsb_request_resume(pausing);
}

/* Before the first byte and in the middle. False if a busy machine sent a byte
   too late. */
static bool pauses_do_not_count(void) {
    hfsb_server_opts o = HFSB_INIT;
    hfsb_route       route = HFSB_INIT;
    ts_server        s;
    ts_conn          c;
    ts_reply         r = HFSB_INIT;
    size_t           i;
    bool             late = false;
    o.head_ms = 100;
    o.body_ms = 700;
    o.min_rate = 1000;
    paused = 0;
    route.method = "PUT";
    route.path = "/pausing";
    route.fn = tc_hello;
    route.begin = pausing_begin;
    route.body = pausing_body;
    tc_reset();
    ts_open(&s, &o);
    T_CHECK(hfsb_server_add(s.server, &route, NULL) == HFSB_OK);
    ts_run(&s);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT("PUT /pausing HTTP/1.1\r\n" TC_HEAD
                                 TOKEN_FIELD "Content-Length: 2\r\n\r\n")));
    for (i = 0; i < 2 && !late; i++) {
        long long began;
        T_CHECK(tc_becomes(&paused, i + 1));
        usleep(1000000);
        began = hfsb_clock_ms();
        T_CHECK(hfsb_server_post(s.server, pausing_goes_on, NULL) == HFSB_OK);
        usleep(100000); /* well within its time */
        (void)ts_send(&c, HFSB_LIT("x"));
        late = hfsb_clock_ms() - began > 500;
    }
    if (!late) {
        T_CHECK(tc_becomes(&paused, 3));
        T_CHECK(hfsb_server_post(s.server, pausing_goes_on, NULL) == HFSB_OK);
        T_CHECK(ts_read(&c, &r, false));
        TS_IS(&r, 200, "hello");
    }
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, late);
    return !late;
}

static void pauses_do_not_count_against_a_body(void) {
    int i;
    for (i = 0; i < 10 && !pauses_do_not_count(); i++) continue;
    T_CHECK(i < 10);
}

static void sleep_in_the_loop(void *user) {
    tc_add((size_t *)user, 1);
    usleep(1500000);
}

/* The loop itself may be held up, and more bodies be ready than one turn of it
   looks at: none is refused for that. False if a busy machine sent them too
   late. */
static bool bodies_sent_meanwhile_are_in_time(void) {
    enum { MANY = 400 };
    static ts_conn   c[MANY];
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    size_t           i, good = 0, asleep = 0;
    long long        began;
    bool             late;
    o.body_ms = 1000;
    tc_start(&s, &o);
    for (i = 0; i < MANY; i++) c[i] = ts_connect(&s);
    T_CHECK(tc_lives(&c[MANY - 1])); /* all are accepted */
    began = hfsb_clock_ms();
    for (i = 0; i < MANY; i++)
        T_CHECK(ts_send(&c[i], HFSB_LIT(KNOWN_HEAD)));
    usleep(200000); /* the heads are read */
    T_CHECK(hfsb_server_post(s.server, sleep_in_the_loop, &asleep) ==
            HFSB_OK);
    T_CHECK(tc_becomes(&asleep, 1));
    late = hfsb_clock_ms() - began > 800;
    began = hfsb_clock_ms();
    for (i = 0; i < MANY; i++)
        (void)ts_send(&c[i], HFSB_LIT("123456789012345678901234567890"));
    late = late || hfsb_clock_ms() - began > 1000;
    for (i = 0; i < MANY; i++) {
        ts_reply r = HFSB_INIT;
        good += ts_read(&c[i], &r, false) && r.status == 200;
        ts_drop(&r);
    }
    T_CHECK(late || good == MANY);
    for (i = 0; i < MANY; i++) ts_hang_up(&c[i]);
    ts_end(&s, false);
    return !late;
}

static void body_received_while_the_loop_was_busy_is_in_time(void) {
    int i;
    for (i = 0; i < 10 && !bodies_sent_meanwhile_are_in_time(); i++) continue;
    T_CHECK(i < 10);
}

/* A handler that takes long, or a pause, has no limit. */
static void handlers_have_no_deadline(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    ts_conn          c;
    ts_reply         r = HFSB_INIT;
    o.body_ms = o.head_ms = o.idle_ms = 1500;
    tc_start(&s, &o);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT(TC_GET("/hold?pieces"))));
    T_CHECK(tc_becomes(&tc.holding, 1));
    usleep(2000000);
    tc_release(s.server);
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, "begun ended");
    ts_hang_up(&c);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT("POST /threaded?ms=2000 HTTP/1.1\r\n" TC_HEAD
                                 "Content-Length: 2\r\n\r\nok")));
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 201, "ok");
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- memory ---- */

static size_t bodies; /* bytes that the server has of all of them */

static void count_bodies(void *user) {
    size_t n = hfsbi_server_stats_of((hfsb_server *)user)->bodies;
    pthread_mutex_lock(&tc.lock);
    bodies = n;
    pthread_mutex_unlock(&tc.lock);
}

/* Waits until it has read so many. */
static bool bodies_become(hfsb_server *server, size_t n) {
    int i;
    for (i = 0; i < 2000 && tc_get(&bodies) != n; i++) {
        if (hfsb_server_post(server, count_bodies, server) != HFSB_OK) abort();
        usleep(10000);
    }
    return tc_get(&bodies) == n;
}

/* All bodies together have a limit: the one that goes over it is refused, the
   others go on, and there is room again when they are done. */
static void all_bodies_share_max_bodies(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    ts_conn          a, b;
    ts_reply         r = HFSB_INIT;
    hfsb_buf         body = HFSB_INIT;
    int              i;
    o.max_body = 60000;
    o.max_bodies = 100000;
    tc_start(&s, &o);
    t_repeat(&body, "0123456789", 6000);
    for (i = 0; i < 3; i++) {
        a = ts_connect(&s);
        b = ts_connect(&s);
        T_CHECK(ts_send(&a, HFSB_LIT("POST /echo HTTP/1.1\r\n" TC_HEAD
                                     "Content-Length: 60000\r\n\r\n")));
        bodies = 0;
        T_CHECK(ts_send(&a, hfsb_str_make(body.ptr, 59999)));
        T_CHECK(bodies_become(s.server, 59999));
        T_CHECK(ts_send(&b, HFSB_LIT("POST /echo HTTP/1.1\r\n" TC_HEAD
                                     "Content-Length: 60000\r\n\r\n")));
        T_CHECK(ts_send(&b, hfsb_buf_str(&body)));
        T_CHECK(ts_read(&b, &r, false));
        TS_REFUSED(&r, 503, "memory");
        T_STR(ts_field(&r, "Retry-After"), "1");
        T_CHECK(tc_lives(&b)); /* the rest of it was little */
        T_CHECK(ts_send(&a, HFSB_LIT("9")) && ts_read(&a, &r, false));
        T_CHECK(r.status == 200 && r.body.len == 60000);
        ts_hang_up(&a);
        ts_hang_up(&b);
    }
    ts_drop(&r);
    hfsb_buf_free(&body);
    ts_end(&s, false);
}

static void take_body(void *user, hfsb_request *r) {
    (void)user;
    hfsb_reply(r, 200, "text/plain", hfsb_request_body(r));
}

/* The first byte of a stranger must not reserve what its route would take. */
static void a_stranger_reserves_what_it_sends(void) {
    hfsb_route route = HFSB_INIT;
    ts_server  s;
    ts_conn    c;
    ts_reply   r = HFSB_INIT;
    size_t     live;
    ts_open(&s, NULL);
    route.method = "POST";
    route.path = "/big";
    route.fn = take_body;
    route.no_token = true;
    route.max_body = 256u << 20;
    T_CHECK(hfsb_server_add(s.server, &route, NULL) == HFSB_OK);
    T_CHECK(tc_try_routes(s.server));
    ts_run(&s);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT("POST /big HTTP/1.1\r\n" TC_HEAD
                                 "Content-Length: 200000000\r\n\r\nx")));
    ts_get(&s, &r, "/hello"); /* that byte has been read */
    ts_get(&s, &r, "/hello");
    pthread_mutex_lock(&tt_memory.lock);
    live = tt_memory.heap.live;
    pthread_mutex_unlock(&tt_memory.lock);
    T_CHECK(live < 8u << 20);
    ts_hang_up(&c);
    ts_call(&s, &r, "POST", "/big", "", HFSB_LIT("all of it"));
    TS_IS(&r, 200, "all of it");
    ts_drop(&r);
    ts_end(&s, false);
}

int main(void) {
    tt_begin();
    TT_RUN(server_survives_fd_exhaustion);
    TT_RUN(one_address_has_a_part_of_all_connections);
    TT_RUN(new_connection_replaces_an_idle_one);
    TT_RUN(connections_of_one_moment_go_in_order);
    TT_RUN(new_connection_replaces_a_slow_stranger);
    TT_RUN(a_new_connection_waits_for_room);
    TT_RUN(thousands_of_idle_connections_cost_little);
    TT_RUN(head_deadline_runs_from_the_first_byte);
    TT_RUN(each_head_has_its_own_deadline);
    TT_RUN(stalled_body_is_refused);
    TT_RUN(body_without_token_has_head_ms);
    TT_RUN(refused_body_is_discarded_and_connection_kept);
    TT_RUN(body_below_min_rate_is_refused);
    TT_RUN(body_above_min_rate_is_accepted);
    TT_RUN(pauses_do_not_count_against_a_body);
    TT_RUN(body_received_while_the_loop_was_busy_is_in_time);
    TT_RUN(handlers_have_no_deadline);
    TT_RUN(all_bodies_share_max_bodies);
    TT_RUN(a_stranger_reserves_what_it_sends);
    return TT_END();
}
