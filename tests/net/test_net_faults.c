/* test_net_faults.c - the built-in transport when things go wrong: replies cut
   at each byte, resets, kept connections that are closed, no memory, no
   descriptor. Time and cancels: test_net_time.c. */
#include "../support/t_net.h"

/* ---- replies in two parts, or only the first of them ---- */

typedef struct cutter {
    const char *reply;
    size_t      cut; /* bytes of the first part */
    bool        rest;
    bool        reset; /* where the rest does not come */
    bool        close; /* after the rest */
} cutter;

static cutter cuts;

static void say_cut(tn_conn *c) {
    while (tn_request(c)) {
        hfsb_str reply;
        cutter   now;
        pthread_mutex_lock(&c->peer->lock);
        now = cuts;
        pthread_mutex_unlock(&c->peer->lock);
        reply = hfsb_cstr(now.reply);
        (void)tn_say(c, hfsb_str_slice(reply, 0, now.cut));
        usleep(now.rest || now.reset ? 300 : 0);
        if (now.rest)
            (void)tn_say(c, hfsb_str_slice(reply, now.cut, reply.len));
        else if (now.reset) tn_reset(c);
        if (!now.rest || now.close) return;
    }
}

static const struct {
    const char *reply, *body;
    size_t      until_close; /* bytes from which on an end is fine; 0: none */
} whole[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 0},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n"
     "2\r\nlo\r\n0\r\nT: u\r\n\r\n",
     "hello", 0},
    {"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhello", "hello", 37},
    {"HTTP/1.1 200 OK\nA: b\n c\nContent-Length: 5\n\nhello", "hello", 0},
};

static void net_reads_replies_in_any_cut(void) {
    hfsb_transport net = tn_net();
    tn_peer        peer = HFSB_INIT;
    size_t         i, k;
    peer.fn = say_cut;
    tn_open(&peer);
    for (i = 0; i < TN_COUNT(whole); i++)
        for (k = 0; k <= strlen(whole[i].reply); k++) {
            tn_call *t = tn_new("POST", peer.url, "/");
            bool     ok;
            pthread_mutex_lock(&peer.lock);
            cuts.reply = whole[i].reply;
            cuts.cut = k;
            cuts.rest = true;
            cuts.close = whole[i].until_close != 0;
            pthread_mutex_unlock(&peer.lock);
            ok = tn_do(&net, t) == HFSB_OK && t->reply == 200 &&
                 hfsb_str_equal(hfsb_buf_str(&t->body),
                                hfsb_cstr(whole[i].body));
            T_CHECK(ok);
            if (!ok) printf("  reply %zu cut %zu: %s\n", i, k, t->err.msg);
            tn_drop(t);
        }
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* Every beginning of a reply: lost, but where the end is its frame. */
static void net_reports_incomplete_replies_as_lost(void) {
    hfsb_transport net = tn_net();
    tn_peer        peer = HFSB_INIT;
    size_t         i, k, reset;
    peer.fn = say_cut;
    tn_open(&peer);
    for (i = 0; i < TN_COUNT(whole); i++)
        for (k = 0; k < strlen(whole[i].reply); k++)
            for (reset = 0; reset < 2; reset++) {
                tn_call *t = tn_new("POST", peer.url, "/");
                bool     fine = !reset && whole[i].until_close &&
                            k >= whole[i].until_close;
                bool ok;
                pthread_mutex_lock(&peer.lock);
                cuts.reply = whole[i].reply;
                cuts.cut = k;
                cuts.rest = false;
                cuts.reset = reset;
                pthread_mutex_unlock(&peer.lock);
                ok = tn_do(&net, t) == (fine ? HFSB_OK : HFSB_LOST) && t->sent;
                if (!fine)
                    ok = ok && strstr(t->err.msg,
                                      k ? "in the middle" : "before a reply");
                T_CHECK(ok);
                if (!ok)
                    printf("  reply %zu cut %zu reset %zu: %s\n", i, k, reset,
                           t->err.msg);
                tn_drop(t);
            }
    /* nothing was sent twice */
    T_CHECK(tn_get(&peer, &peer.requests) == tn_get(&peer, &peer.connections));
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* ---- kept connections that are not what they seem ---- */

static void net_repeats_only_safe_requests(void) {
    static const struct {
        const char *method;
        int         then; /* on the kept connection, after the request */
        const char *part; /* of a reply, before that */
        hfsb_status want;
        size_t      requests; /* that reached the peer, the first included */
    } cases[] = {
        {"GET", TN_CLOSE, NULL, HFSB_OK, 3},
        {"HEAD", TN_CLOSE, NULL, HFSB_OK, 3},
        {"GET", TN_RESET, NULL, HFSB_OK, 3},
        {"POST", TN_CLOSE, NULL, HFSB_LOST, 2},
        {"POST", TN_RESET, NULL, HFSB_LOST, 2},
        {"PUT", TN_CLOSE, NULL, HFSB_LOST, 2},
        {"DELETE", TN_CLOSE, NULL, HFSB_LOST, 2},
        {"GET", TN_CLOSE, "H", HFSB_LOST, 2},
        {"GET", TN_CLOSE, "HTTP/1.1 100 C\r\n\r\n", HFSB_LOST, 2},
    };
    size_t i;
    for (i = 0; i < TN_COUNT(cases); i++) {
        hfsb_transport net = tn_net();
        tn_step        steps[3];
        tn_peer        peer;
        tn_call       *t;
        bool           ok;
        memset(steps, 0, sizeof steps);
        steps[0].reply = TN_OK;
        steps[1].reply = cases[i].part;
        steps[1].then = cases[i].then;
        steps[2].reply = "HTTP/1.1 204 No\r\n\r\n";
        tn_play_open(&peer, steps, 3);
        T_CHECK(tn_once(&net, "GET", peer.url, "/") == HFSB_OK);
        t = tn_new(cases[i].method, peer.url, "/");
        ok = tn_do(&net, t) == cases[i].want && t->sent &&
             tn_get(&peer, &peer.requests) == cases[i].requests;
        T_CHECK(ok);
        if (!ok) printf("  case %zu: %s\n", i, t->err.msg);
        tn_drop(t);
        hfsb_transport_close(&net);
        tn_close(&peer);
    }
}

/* Never more than twice, whatever happens. */
static void net_repeats_once(void) {
    static const tn_step steps[] = {{TN_OK, TN_KEEP}, {NULL, TN_CLOSE}};
    hfsb_transport       net = tn_net();
    tn_peer              peer;
    tn_play_open(&peer, steps, 2);
    T_CHECK(tn_once(&net, "GET", peer.url, "/") == HFSB_OK);
    T_CHECK(tn_once(&net, "GET", peer.url, "/") == HFSB_LOST);
    T_CHECK(tn_get(&peer, &peer.requests) == 3);
    /* on a fresh connection there is no reason to repeat */
    T_CHECK(tn_once(&net, "GET", peer.url, "/") == HFSB_LOST);
    T_CHECK(tn_get(&peer, &peer.requests) == 4);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* The peer closes, resets or speaks while the connection is kept. */
static void end_while_kept(tn_conn *c) {
    int what = *(const int *)c->peer->user;
    if (!tn_request(c)) return;
    (void)tn_say(c, HFSB_LIT(TN_OK));
    if (c->number) {
        while (tn_request(c)) (void)tn_say(c, HFSB_LIT(TN_OK));
        return;
    }
    usleep(1000);
    if (what == 0) tn_end(c);
    if (what == 1) tn_reset(c);
    if (what == 2) (void)tn_say(c, HFSB_LIT("HTTP/1.1 408 Idle\r\n\r\n"));
    pthread_mutex_lock(&c->peer->lock);
    c->peer->step = 1; /* it has happened */
    pthread_mutex_unlock(&c->peer->lock);
    if (what == 2) tn_until_closed(c);
}

static void net_notices_a_closed_idle_connection(void) {
    int what;
    for (what = 0; what < 3; what++) {
        hfsb_transport net = tn_net();
        tn_peer        peer = HFSB_INIT;
        peer.fn = end_while_kept;
        peer.user = &what;
        peer.parallel = true;
        tn_open(&peer);
        T_CHECK(tn_once(&net, "POST", peer.url, "/") == HFSB_OK);
        T_CHECK(tn_becomes(&peer, &peer.step, 1));
        usleep(20000);
        T_CHECK(tn_once(&net, "POST", peer.url, "/") == HFSB_OK);
        T_CHECK(tn_get(&peer, &peer.connections) == 2);
        T_CHECK(tn_get(&peer, &peer.requests) == 2);
        hfsb_transport_close(&net);
        tn_close(&peer);
    }
}

/* What was kept is gone, and so is the peer: for a GET that may have been
   heard it is not "nothing was sent". */
static void net_distinguishes_lost_from_unsent_requests(void) {
    static const tn_step steps[] = {{TN_OK, TN_KEEP}, {NULL, TN_CLOSE}};
    hfsb_transport       net = tn_net();
    tn_peer              peer;
    tn_call             *t;
    tn_play_open(&peer, steps, 2);
    T_CHECK(tn_once(&net, "GET", peer.url, "/") == HFSB_OK);
    (void)shutdown(peer.fd, SHUT_RDWR); /* it takes no more */
    t = tn_new("GET", peer.url, "/");
    T_CHECK(tn_do(&net, t) == HFSB_LOST && t->sent);
    T_CHECK(tn_do(&net, t) == HFSB_CONNECT && !t->sent);
    tn_drop(t);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* ---- no connection ---- */

static void net_reports_that_nothing_was_sent(void) {
    static const char *const methods[] = {"GET", "POST"};
    hfsb_transport           net = tn_net();
    unsigned                 port;
    char                     url[64];
    size_t                   i;
    int                      fd = tn_listen(&port, 1);
    close(fd);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
    for (i = 0; i < 2; i++) {
        tn_call *t = tn_new(methods[i], url, "/");
        t->call.body = HFSB_LIT("body");
        T_CHECK(tn_do(&net, t) == HFSB_CONNECT && !t->sent);
        T_CHECK(strstr(t->err.msg, "connection refused") &&
                strstr(t->err.msg, "127.0.0.1"));
        tn_drop(t);
    }
    {
        tn_call *t = tn_new("GET", "http://no-such-name.invalid", "/");
        T_CHECK(tn_do(&net, t) == HFSB_CONNECT && !t->sent);
        T_CHECK(strstr(t->err.msg, "no-such-name.invalid") != NULL);
        tn_drop(t);
    }
    hfsb_transport_close(&net);
}

/* Ports that are free are tried until the kernel would give one of them to
   the socket that connects to it; this must never be taken for a peer. */
static void net_never_talks_to_itself(void) {
    hfsb_transport net = tn_net();
    unsigned       port;
    char           url[64];
    int            i, talked = 0, fd = tn_listen(&port, 1);
    close(fd);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
    for (i = 0; i < (t_long() ? 100000 : 300); i++)
        talked += tn_once(&net, "GET", url, "/") != HFSB_CONNECT;
    T_CHECK(!talked);
    hfsb_transport_close(&net);
}

static void net_reports_that_no_descriptor_is_left(void) {
    static const tn_step step = {TN_OK, TN_KEEP};
    hfsb_transport       net = tn_net();
    struct rlimit        old, low;
    tn_peer              peer;
    tn_call             *t;
    hfsb_cancel         *cancel = NULL;
    tn_play_open(&peer, &step, 1);
    t = tn_new("GET", peer.url, "/");
    T_CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
    low = old;
    low.rlim_cur = 3; /* only those below are new ones */
    T_CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
    T_CHECK(tn_do(&net, t) == HFSB_BUSY && !t->sent);
    T_CHECK(hfsb_cancel_open(NULL, &cancel, NULL) == HFSB_OK);
    T_CHECK(hfsb_cancel_fd(cancel) == -1); /* there is one only later */
    T_CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
    T_CHECK(tn_do(&net, t) == HFSB_OK);
    T_CHECK(hfsb_cancel_fd(cancel) >= 3);
    hfsb_cancel_close(cancel);
    tn_drop(t);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* ---- memory ---- */

static tn_peer *alloc_peer;

static void call_once(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_net_opts   o = HFSB_INIT;
    hfsb_transport  net;
    hfsb_err        err;
    hfsb_http_field field;
    hfsb_status     st;
    int             i;
    o.alloc = alloc;
    setenv("http_proxy", "http://me:pass@far.test:1/", 1);
    setenv("no_proxy", "127.0.0.1", 1);
    st = hfsb_net_open(&o, &net, &err);
    unsetenv("http_proxy");
    unsetenv("no_proxy");
    T_CHECK(st == err.code && (st == HFSB_OK || st == HFSB_NOMEM));
    T_CHECK(st == HFSB_OK || !net.perform);
    for (i = 0; i < 2 && st == HFSB_OK; i++) {
        tn_call *t = tn_new("POST", alloc_peer->url, "?q");
        memset(&field, 0, sizeof field);
        field.name = HFSB_LIT("A-Field");
        field.value = HFSB_LIT("with a value");
        t->call.fields = &field;
        t->call.field_count = 1;
        if (i) t->call.body = HFSB_LIT("x");
        st = tn_do(&net, t);
        T_CHECK(st == HFSB_OK || st == HFSB_NOMEM);
        T_CHECK(st == HFSB_OK || !t->sent);
        tn_drop(t);
    }
    T_CHECK((st == HFSB_OK) == !heap->fail_at);
    hfsb_transport_close(&net);
}

static hfsb_status give_body(void *user, char *ptr, size_t room, size_t *got,
                             hfsb_err *err) {
    (void)user, (void)err;
    memset(ptr, 'x', room);
    *got = room;
    return HFSB_OK;
}

static void upload_once(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_net_opts  o = HFSB_INIT;
    hfsb_transport net;
    hfsb_status    st;
    o.alloc = alloc;
    o.no_proxy = true;
    st = hfsb_net_open(&o, &net, NULL);
    if (st == HFSB_OK) {
        tn_call *t = tn_new("PUT", alloc_peer->url, "/x");
        t->call.body_read = give_body;
        t->call.body_length = 200000;
        st = tn_do(&net, t);
        tn_drop(t);
    }
    T_CHECK(st == (heap->fail_at ? HFSB_NOMEM : HFSB_OK));
    hfsb_transport_close(&net);
}

static void cancel_once(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_cancel *cancel;
    hfsb_err     err;
    hfsb_status  st = hfsb_cancel_open(&alloc, &cancel, &err);
    T_CHECK(st == (heap->fail_at ? HFSB_NOMEM : HFSB_OK) && err.code == st);
    T_CHECK(!cancel == (st != HFSB_OK));
    hfsb_cancel_close(cancel);
}

static void net_survives_allocation_failures(void) {
    static const tn_step step = {TN_OK, TN_KEEP};
    tn_peer              peer;
    size_t               before = tn_open_files();
    memset(&peer, 0, sizeof peer);
    peer.script = &step;
    peer.steps = 1;
    tn_open(&peer);
    alloc_peer = &peer;
    t_each_allocation_fails(call_once);
    t_each_allocation_fails(upload_once);
    t_each_allocation_fails(cancel_once);
    tn_close(&peer);
    T_CHECK(tn_open_files() == before);
}

int main(void) {
    size_t before = tn_open_files();
    T_RUN(net_reads_replies_in_any_cut);
    T_RUN(net_reports_incomplete_replies_as_lost);
    T_RUN(net_repeats_only_safe_requests);
    T_RUN(net_repeats_once);
    T_RUN(net_notices_a_closed_idle_connection);
    T_RUN(net_distinguishes_lost_from_unsent_requests);
    T_RUN(net_reports_that_nothing_was_sent);
    T_RUN(net_never_talks_to_itself);
    T_RUN(net_reports_that_no_descriptor_is_left);
    T_RUN(net_survives_allocation_failures);
    T_CHECK(tn_open_files() == before);
    return T_END();
}
