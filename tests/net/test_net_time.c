/* test_net_time.c - the three limits of time, and cancels wherever a call
   waits. */
#include "../support/t_net.h"

/* ---- time ---- */

/* A place whose queue of connections is full: connecting takes for ever. */
typedef struct deaf {
    int      fd, filling[8];
    unsigned port;
    char     url[64];
} deaf;

static void deaf_open(deaf *d) {
    struct sockaddr_in a;
    size_t             i;
    d->fd = tn_listen(&d->port, 0);
    snprintf(d->url, sizeof d->url, "http://127.0.0.1:%u", d->port);
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons((unsigned short)d->port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (i = 0; i < TN_COUNT(d->filling); i++) {
        d->filling[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(d->filling[i], (struct sockaddr *)(void *)&a, sizeof a);
    }
}

static void deaf_close(deaf *d) {
    size_t i;
    for (i = 0; i < TN_COUNT(d->filling); i++) close(d->filling[i]);
    close(d->fd);
}

/* A byte of the body each 10 ms. */
static void trickle(tn_conn *c) {
    if (!tn_request(c)) return;
    (void)tn_say(c, HFSB_LIT("HTTP/1.1 200 OK\r\nContent-Length: "
                             "1000000\r\n\r\n"));
    while (tn_say(c, HFSB_LIT("x"))) usleep(10000);
}

static bool took_about(long long start, long long ms) {
    long long took = hfsb_clock_ms() - start;
    bool      ok = took >= ms - 1 && took < ms + 15000;
    if (!ok) printf("  took %lld of %lld ms\n", took, ms);
    return ok;
}

static void net_applies_each_timeout(void) {
    static const tn_step hang[] = {{NULL, TN_HANG}};
    static const tn_step half[] = {{"HTTP/1.1 200 OK\r\nContent-Length: "
                                    "9\r\n\r\nhalf",
                                    TN_HANG}};
    static const struct {
        int         peer; /* 0: deaf, 1: silent, 2: half a reply, 3: slow */
        long long   connect, idle, total, ms;
        const char *why;
    } cases[] = {
        {0, 50, 0, 0, 50, "No connection"},
        {0, 50, 10, 60000, 50, "No connection to 127.0.0.1"},
        {0, 60000, 0, 50, 50, "within 50 ms"},
        {1, 0, 50, 0, 50, "Nothing came"},
        {1, 20, 0, 60, 60, "not finish within 60 ms"},
        {1, 0, 50, 60000, 50, "for 50 ms"},
        {2, 0, 50, 0, 50, "Nothing came"},
        {2, 0, 60000, 50, 50, "not finish"},
        {3, 0, 60000, 80, 80, "not finish"},
    };
    size_t i;
    for (i = 0; i < TN_COUNT(cases); i++) {
        hfsb_transport net = tn_net();
        tn_peer        peer = HFSB_INIT;
        deaf           d;
        tn_call       *t;
        long long      start;
        bool           ok;
        if (cases[i].peer == 0) deaf_open(&d);
        peer.script = cases[i].peer == 1 ? hang : half;
        peer.steps = 1;
        if (cases[i].peer == 3) peer.fn = trickle;
        if (cases[i].peer) tn_open(&peer);
        t = tn_new("POST", cases[i].peer ? peer.url : d.url, "/");
        t->call.connect_ms = cases[i].connect;
        t->call.idle_ms = cases[i].idle;
        t->call.total_ms = cases[i].total;
        start = hfsb_clock_ms();
        ok = tn_do(&net, t) == HFSB_TIMEOUT && took_about(start, cases[i].ms);
        ok = ok && t->sent == (cases[i].peer != 0);
        ok = ok && strstr(t->err.msg, cases[i].why);
        T_CHECK(ok);
        if (!ok) printf("  case %zu: %s\n", i, t->err.msg);
        tn_drop(t);
        hfsb_transport_close(&net);
        if (cases[i].peer) tn_close(&peer);
        else deaf_close(&d);
    }
}

/* Bytes that come and go put the idle limit off. */
static void slow_but_steady(tn_conn *c) {
    int i;
    if (!tn_request(c)) return;
    (void)tn_say(c, HFSB_LIT("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"));
    for (i = 0; i < 10; i++) {
        usleep(15000);
        (void)tn_say(c, HFSB_LIT("x"));
    }
}

static void net_waits_for_slow_peers(void) {
    hfsb_transport net = tn_net();
    tn_peer        peer = HFSB_INIT;
    bool           ok = false;
    int            tries; /* a busy machine may hold the peer up */
    peer.fn = slow_but_steady;
    tn_open(&peer);
    for (tries = 0; tries < 20 && !ok; tries++) {
        tn_call *t = tn_new("GET", peer.url, "/");
        t->call.idle_ms = 120;
        ok = tn_do(&net, t) == HFSB_OK && t->body.len == 10;
        tn_drop(t);
    }
    T_CHECK(ok);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* A body that nobody takes, until the test is over. */
static void take_nothing(tn_conn *c) {
    struct pollfd fd = {0, POLLIN, 0};
    fd.fd = c->peer->stop[0];
    (void)poll(&fd, 1, 60000);
}

static void net_does_not_wait_for_a_peer_that_does_not_read(void) {
    hfsb_transport net = tn_net();
    tn_peer        peer = HFSB_INIT;
    hfsb_buf       big = HFSB_INIT;
    tn_call       *t;
    long long      start = hfsb_clock_ms();
    T_CHECK(hfsb_buf_reserve(&big, 30000000) == HFSB_OK);
    memset(big.ptr, 'x', 30000000);
    big.len = 30000000;
    peer.fn = take_nothing;
    tn_open(&peer);
    t = tn_new("POST", peer.url, "/");
    t->call.body = hfsb_buf_str(&big);
    t->call.idle_ms = 80;
    T_CHECK(tn_do(&net, t) == HFSB_TIMEOUT && t->sent);
    T_CHECK(took_about(start, 80));
    tn_drop(t);
    hfsb_transport_close(&net);
    tn_close(&peer);
    hfsb_buf_free(&big);
}

/* ---- cancels ---- */

static useconds_t soon = 50000;

static void *cancel_soon(void *user) {
    usleep(soon);
    hfsb_cancel_set((hfsb_cancel *)user);
    return NULL;
}

static void net_can_be_cancelled_in_every_wait(void) {
    static const tn_step hang[] = {{NULL, TN_HANG}};
    hfsb_cancel         *cancel;
    hfsb_buf             big = HFSB_INIT;
    int                  where;
    T_CHECK(hfsb_buf_reserve(&big, 30000000) == HFSB_OK);
    memset(big.ptr, 'x', 30000000);
    big.len = 30000000;
    T_CHECK(hfsb_cancel_open(NULL, &cancel, NULL) == HFSB_OK);
    /* while connecting, waiting, in mid-body, sending; set before */
    for (where = 0; where < 5; where++) {
        hfsb_transport net = tn_net();
        tn_peer        peer = HFSB_INIT;
        deaf           d;
        tn_call       *t;
        pthread_t      thread;
        long long      start = hfsb_clock_ms();
        if (where == 0) deaf_open(&d);
        peer.script = hang;
        peer.steps = 1;
        if (where == 2) peer.fn = trickle;
        if (where == 3) peer.fn = take_nothing;
        if (where) tn_open(&peer);
        t = tn_new("POST", where ? peer.url : d.url, "/");
        t->call.cancel = cancel;
        if (where == 3) t->call.body = hfsb_buf_str(&big);
        T_CHECK(!hfsb_cancel_is_set(cancel));
        if (where == 4) hfsb_cancel_set(cancel);
        else T_CHECK(!pthread_create(&thread, NULL, cancel_soon, cancel));
        T_CHECK(tn_do(&net, t) == HFSB_CANCELLED);
        if (where < 4) pthread_join(thread, NULL);
        /* on a busy machine that was too soon to have got there */
        for (soon = 50000; where > 0 && where < 4 && soon < 10000000 &&
                           (!t->sent || (where == 2 && !t->body.len));
             soon *= 3) {
            hfsb_cancel_reset(cancel);
            start = hfsb_clock_ms();
            T_CHECK(!pthread_create(&thread, NULL, cancel_soon, cancel));
            T_CHECK(tn_do(&net, t) == HFSB_CANCELLED);
            pthread_join(thread, NULL);
        }
        soon = 50000;
        T_CHECK(t->sent == (where > 0 && where < 4));
        T_CHECK(hfsb_clock_ms() - start < 25000);
        T_CHECK(where != 2 || t->body.len > 0);
        T_CHECK(hfsb_cancel_is_set(cancel));
        /* it stays set */
        T_CHECK(tn_do(&net, t) == HFSB_CANCELLED && !t->sent);
        hfsb_cancel_reset(cancel);
        tn_drop(t);
        hfsb_transport_close(&net);
        if (where) tn_close(&peer);
        else deaf_close(&d);
    }
    hfsb_cancel_close(cancel);
    hfsb_buf_free(&big);
}

static void cancel_wakes_waiting_threads(void) {
    hfsb_cancel *cancel;
    pthread_t    thread;
    long long    start = hfsb_clock_ms();
    int          i;
    T_CHECK(hfsb_cancel_open(NULL, &cancel, NULL) == HFSB_OK);
    T_CHECK(hfsb_cancel_wait(cancel, 20) && took_about(start, 20));
    start = hfsb_clock_ms();
    T_CHECK(hfsb_cancel_wait(NULL, 20) && took_about(start, 20));
    T_CHECK(hfsb_cancel_wait(cancel, 0) && hfsb_cancel_wait(cancel, -5));
    T_CHECK(!pthread_create(&thread, NULL, cancel_soon, cancel));
    start = hfsb_clock_ms();
    T_CHECK(!hfsb_cancel_wait(cancel, 1ll << 62));
    T_CHECK(took_about(start, 0));
    pthread_join(thread, NULL);
    for (i = 0; i < 100000; i++) hfsb_cancel_set(cancel); /* never blocks */
    T_CHECK(hfsb_cancel_is_set(cancel) && hfsb_cancel_fd(cancel) >= 3);
    hfsb_cancel_reset(cancel);
    T_CHECK(!hfsb_cancel_is_set(cancel));
    T_CHECK(!hfsb_cancel_is_set(NULL) && hfsb_cancel_fd(NULL) == -1);
    hfsb_cancel_set(NULL);
    hfsb_cancel_reset(NULL);
    hfsb_cancel_close(NULL);
    hfsb_cancel_close(cancel);
}

int main(void) {
    size_t before = tn_open_files();
    T_RUN(net_applies_each_timeout);
    T_RUN(net_waits_for_slow_peers);
    T_RUN(net_does_not_wait_for_a_peer_that_does_not_read);
    T_RUN(net_can_be_cancelled_in_every_wait);
    T_RUN(cancel_wakes_waiting_threads);
    T_CHECK(tn_open_files() == before);
    return T_END();
}
