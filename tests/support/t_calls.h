/* t_calls.h - what the tests of calls to a sandbox share: a handle on a server
   in a thread, and a proxy between the two that loses, delays and replaces
   what it carries, or makes the server look like the reference's. */
#ifndef T_CALLS_H
#define T_CALLS_H
#define T_SERVER
#include "t_server.h"
#ifdef HFSBI_SPLIT
#include "../../src/hub/hub_private.h"
#endif

/* ---- a proxy ---- */

typedef enum tc_act {
    TC_PASS,
    TC_DELAY,        /* 2 ms, then pass */
    TC_DROP_BEFORE,  /* the connection ends, the server hears nothing */
    TC_DROP_RUNNING, /* ... once the server has the request */
    TC_DROP_AFTER,   /* ... once the server has answered */
    TC_TRUNCATE,     /* ... in the middle of the reply */
    TC_PAGE_BEFORE,  /* 503 and HTML; the server hears nothing */
    TC_PAGE_AFTER,   /* 502 and HTML, once the server has answered */
    TC_HANG,         /* the server answers, the client hears nothing */
    TC_CANNED,       /* tc_proxy.canned, word for word */
    TC_MOVE          /* from here on to tc_proxy.then, and pass */
} tc_act;

enum { TC_CONNS = 64, TC_QUEUE = 64, TC_BODIES = 4096 };

typedef struct tc_proxy {
    int             listener;
    unsigned        port;
    pthread_t       thread;
    pthread_mutex_t lock; /* for what follows */
    unsigned        to;   /* the server's port, */
    unsigned        then; /* ... and after the next lost reply (0: the same) */
    bool            foreign;
    bool            only_posts; /* health and the like always pass */
    bool            raw; /* bytes as they come; ends after the next of: */
    size_t          cuts[TC_QUEUE];
    size_t          cut_count, cut_at;
    bool            cut_up; /* counts what goes to the server */
    const char     *find, *put; /* replies have `put` instead of `find`, which
                                   is as long (NULL: as they are) */
    tc_act          queue[TC_QUEUE];
    size_t          queue_count, queue_at;
    unsigned long long seed; /* not 0: acts are taken at random */
    const char        *canned;
    size_t             asked; /* requests that came */
    size_t             asked_posts;
    size_t             reached;    /* POSTs that the server got */
    hfsb_buf           head, body; /* of the last that came (POSTs only) */
    unsigned long long bodies[TC_BODIES]; /* hashes of those POSTs */
    size_t             repeats; /* ... that came to the server again */
    int                fds[TC_CONNS];
    size_t             live;
    bool               ended;
} tc_proxy;

static tc_proxy *tc_proxies[2]; /* those that are open */

/* What the proxies have counted until now may be looked at. */
HFSBI_UNUSED static void tc_settle(void) {
    size_t i;
    for (i = 0; i < TT_COUNT(tc_proxies); i++)
        if (tc_proxies[i]) {
            pthread_mutex_lock(&tc_proxies[i]->lock);
            pthread_mutex_unlock(&tc_proxies[i]->lock);
        }
}

static int tc_dial(unsigned port) {
    struct sockaddr_in a;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons((unsigned short)port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a)) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* A port that listens; -1 for one that does not any more. */
static int tc_listen(unsigned *port) {
    struct sockaddr_in a;
    socklen_t          n = sizeof a;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) ||
        listen(fd, 64) || getsockname(fd, (struct sockaddr *)&a, &n))
        abort();
    *port = ntohs(a.sin_port);
    return fd;
}

/* What to do with this request. Under the lock. */
static tc_act tc_next(tc_proxy *p, bool post) {
    static const tc_act all[] = {
        TC_PASS,     TC_PASS,        TC_PASS,         TC_PASS,
        TC_PASS,     TC_PASS,        TC_PASS,         TC_PASS,
        TC_DELAY,    TC_DROP_BEFORE, TC_DROP_RUNNING, TC_DROP_AFTER,
        TC_TRUNCATE, TC_PAGE_BEFORE, TC_PAGE_AFTER};
    if (p->only_posts && !post) return TC_PASS;
    if (p->queue_at < p->queue_count) return p->queue[p->queue_at++];
    if (p->seed) return all[t_random(&p->seed) % TT_COUNT(all)];
    return TC_PASS;
}

static void tc_count_body(tc_proxy *p, hfsb_str body) {
    unsigned long long hash = hfsb_fnv(body);
    size_t             i;
    for (i = 0; i < p->reached && i < TC_BODIES; i++)
        if (p->bodies[i] == hash) {
            p->repeats++;
            break;
        }
    if (p->reached < TC_BODIES) p->bodies[p->reached] = hash;
    p->reached++;
}

/* Copies a head without the fields of that name. */
static void tc_without(hfsb_buf *out, hfsb_str head,
                       const char *const *names) {
    while (head.len) {
        size_t   end = hfsb_str_find(head, HFSB_LIT("\r\n"));
        hfsb_str line =
            hfsb_str_slice(head, 0, end == HFSB_NPOS ? end : end + 2);
        bool   drop = false;
        size_t i;
        for (i = 0; names[i]; i++)
            if (line.len > strlen(names[i]) &&
                line.ptr[strlen(names[i])] == ':' &&
                !strncasecmp(line.ptr, names[i], strlen(names[i])))
                drop = true;
        if (!drop && hfsb_buf_append(out, line) != HFSB_OK) abort();
        head = hfsb_str_slice(head, line.len, head.len);
    }
}

/* Sends it to the server and reads its reply; false when there is none. */
static bool tc_forward(tc_proxy *p, hfsb_str head, hfsb_str body, bool wait,
                       hfsb_buf *out) {
    static const char *const asks[] = {"Idempotency-Key", "Connection", NULL};
    static const char *const ours[] = {"Connection", NULL};
    static const char *const says[] = {"X-Hfsb", "Transfer-Encoding",
                                       "Content-Length", NULL};
    hfsb_buf                 request = HFSB_INIT;
    ts_reply                 reply = HFSB_INIT;
    ts_conn                  c = HFSB_INIT;
    bool                     ok;
    c.fd = tc_dial(p->to);
    if (c.fd < 0) return false;
    tc_without(&request, head, p->foreign ? asks : ours);
    if (hfsb_buf_append(&request, body) != HFSB_OK) abort();
    ok = ts_send(&c, hfsb_buf_str(&request));
    if (ok && wait) ok = ts_read(&c, &reply, false);
    else tt_sleep_ms(1); /* let it be read, not reset */
    if (ok && wait) {
        tc_without(out, hfsb_str_make(reply.head.ptr, reply.head.len - 2),
                   p->foreign ? says : says + 1);
        if (hfsb_buf_printf(out, "Content-Length: %zu\r\n\r\n",
                            reply.body.len) != HFSB_OK ||
            hfsb_buf_append(out, hfsb_buf_str(&reply.body)) != HFSB_OK)
            abort();
    }
    ts_drop(&reply);
    ts_hang_up(&c);
    hfsb_buf_free(&request);
    return ok;
}

static const char tc_lost[] = "HTTP/1.1 404 Not Found\r\nContent-Type: "
                              "application/json\r\nContent-Length: 22\r\n\r\n"
                              "{\"detail\":\"Not Found\"}";

/* What the reference's server has. */
static bool tc_is_known(hfsb_str head) {
    static const char *const list[] = {"/bash ",  "/kill ", "/read ",
                                       "/write ", "/edit ", "/exists ",
                                       "/health "};
    hfsb_str                 line =
        hfsb_str_slice(head, 0, hfsb_str_find(head, HFSB_LIT("\r\n")));
    size_t i;
    for (i = 0; i < TT_COUNT(list); i++)
        if (hfsb_str_find(line, hfsb_cstr(list[i])) != HFSB_NPOS) return true;
    return false;
}

static void tc_page(hfsb_buf *out, int status) {
    static const char page[] = "<html><body>Please wait</body></html>";
    hfsb_buf_truncate(out, 0);
    if (hfsb_buf_printf(out,
                        "HTTP/1.1 %d X\r\nContent-Type: text/html\r\n"
                        "Content-Length: %zu\r\n\r\n%s",
                        status, sizeof page - 1, page) != HFSB_OK)
        abort();
}

/* Answers one request; false: the connection ends. */
static bool tc_answer(tc_proxy *p, ts_conn *c, hfsb_str head, hfsb_str body) {
    bool     post = hfsb_str_starts(head, HFSB_LIT("POST ")), ok = true;
    hfsb_buf out = HFSB_INIT;
    tc_act   act;
    pthread_mutex_lock(&p->lock);
    act = tc_next(p, post);
    p->asked++;
    if (post) {
        p->asked_posts++;
        hfsb_buf_truncate(&p->head, 0);
        hfsb_buf_truncate(&p->body, 0);
        if (hfsb_buf_append(&p->head, head) != HFSB_OK ||
            hfsb_buf_append(&p->body, body) != HFSB_OK)
            abort();
        if (act != TC_DROP_BEFORE && act != TC_PAGE_BEFORE && act != TC_CANNED)
            tc_count_body(p, body);
    }
    pthread_mutex_unlock(&p->lock);
    if (act == TC_DELAY) tt_sleep_ms(2);
    if (act == TC_MOVE) p->to = p->then;
    if (act == TC_DROP_BEFORE) return false;
    if (act == TC_CANNED)
        ok = hfsb_buf_append(&out, hfsb_cstr(p->canned)) == HFSB_OK;
    else if (act == TC_PAGE_BEFORE) tc_page(&out, 503);
    else if (p->foreign && !tc_is_known(head))
        ok = hfsb_buf_append(&out, hfsb_cstr(tc_lost)) == HFSB_OK;
    else ok = tc_forward(p, head, body, act != TC_DROP_RUNNING, &out);
    if (act == TC_PAGE_AFTER) tc_page(&out, 502);
    if (act == TC_DROP_AFTER && p->then) p->to = p->then;
    if (act == TC_HANG) (void)ts_closes(c, 20000);
    if (act == TC_TRUNCATE) out.len /= 2;
    if (act == TC_DROP_RUNNING || act == TC_DROP_AFTER || act == TC_HANG)
        ok = false;
    if (ok) ok = ts_send(c, hfsb_buf_str(&out)) && act != TC_TRUNCATE;
    hfsb_buf_free(&out);
    return ok;
}

static void tc_requests(tc_proxy *p, ts_conn *c) {
    ts_reply r = HFSB_INIT; /* for its head: a request has one, too */
    bool     ok = true;
    while (ok) {
        size_t   n = ts_upto(c, "\r\n\r\n");
        hfsb_str length;
        ok = n && ts_take(c, n, &r.head);
        length = ts_field(&r, "Content-Length");
        if (ok && length.ptr)
            ok = ts_take(c, (size_t)strtoul(length.ptr, NULL, 10), &r.body);
        if (ok)
            ok = tc_answer(p, c, hfsb_buf_str(&r.head), hfsb_buf_str(&r.body));
        ts_drop(&r);
    }
}

/* Rewrites what the server has sent, if it is in one piece. */
static void tc_rewrite(const tc_proxy *p, char *piece, size_t len) {
    size_t at;
    if (!p->find || !len) return;
    at = hfsb_str_find(hfsb_str_make(piece, len), hfsb_cstr(p->find));
    if (at != HFSB_NPOS) memcpy(piece + at, p->put, strlen(p->put));
}

/* Carries bytes until one side ends, or so many have come. */
static void tc_bytes(tc_proxy *p, int client) {
    static const size_t all = (size_t)-1;
    struct pollfd       fds[2];
    size_t              left = all;
    char                piece[65536];
    int                 i, server = tc_dial(p->to);
    bool                up;
    pthread_mutex_lock(&p->lock);
    if (p->cut_at < p->cut_count) left = p->cuts[p->cut_at++];
    up = p->cut_up;
    pthread_mutex_unlock(&p->lock);
    memset(fds, 0, sizeof fds);
    fds[0].fd = client;
    fds[1].fd = server;
    fds[0].events = fds[1].events = POLLIN;
    while (server >= 0 && left && poll(fds, 2, 60000) > 0)
        for (i = 0; i < 2 && left; i++) {
            bool    counts = left != all && up == (i == 0);
            ssize_t n;
            ts_conn to = HFSB_INIT;
            if (!fds[i].revents) continue;
            to.fd = fds[!i].fd;
            n = recv(fds[i].fd, piece,
                     counts && left < sizeof piece ? left : sizeof piece, 0);
            if (n > 0 && i == 1) tc_rewrite(p, piece, (size_t)n);
            if (n <= 0 || !ts_send(&to, hfsb_str_make(piece, (size_t)n)))
                left = 0;
            else if (counts) left -= (size_t)n;
        }
    if (server >= 0) close(server);
}

typedef struct tc_guest {
    tc_proxy *p;
    int       fd;
} tc_guest;

static void *tc_serve(void *user) {
    tc_guest *g = (tc_guest *)user;
    tc_proxy *p = g->p;
    ts_conn   c = HFSB_INIT;
    size_t    i;
    c.fd = g->fd;
    if (p->raw) tc_bytes(p, c.fd);
    else tc_requests(p, &c);
    pthread_mutex_lock(&p->lock);
    for (i = 0; i < TC_CONNS; i++)
        if (p->fds[i] == c.fd) p->fds[i] = -1;
    ts_hang_up(&c);
    p->live--;
    pthread_mutex_unlock(&p->lock);
    free(g);
    return NULL;
}

static void *tc_accept(void *user) {
    tc_proxy *p = (tc_proxy *)user;
    pthread_t thread;
    int       fd, on = 1;
    while ((fd = accept(p->listener, NULL, NULL)) >= 0) {
        tc_guest *g = (tc_guest *)malloc(sizeof *g);
        size_t    i = 0;
        if (!g) abort();
        g->p = p;
        g->fd = fd;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        pthread_mutex_lock(&p->lock);
        while (i < TC_CONNS && p->fds[i] >= 0) i++;
        if (i == TC_CONNS || p->ended) abort();
        p->fds[i] = fd;
        p->live++;
        pthread_mutex_unlock(&p->lock);
        if (pthread_create(&thread, NULL, tc_serve, g) ||
            pthread_detach(thread))
            abort();
    }
    return NULL;
}

HFSBI_UNUSED static void tc_proxy_open(tc_proxy *p, unsigned to) {
    size_t i;
    memset(p, 0, sizeof *p);
    for (i = 0; i < TC_CONNS; i++) p->fds[i] = -1;
    pthread_mutex_init(&p->lock, NULL);
    p->to = to;
    p->listener = tc_listen(&p->port);
    tc_proxies[tc_proxies[0] != NULL] = p;
    if (pthread_create(&p->thread, NULL, tc_accept, p)) abort();
}

HFSBI_UNUSED static void tc_proxy_close(tc_proxy *p) {
    size_t i, live = 1;
    shutdown(p->listener, SHUT_RDWR);
    pthread_join(p->thread, NULL);
    close(p->listener);
    while (live) {
        pthread_mutex_lock(&p->lock);
        for (i = 0; i < TC_CONNS; i++)
            if (p->fds[i] >= 0) shutdown(p->fds[i], SHUT_RDWR);
        live = p->live;
        pthread_mutex_unlock(&p->lock);
        if (live) tt_sleep_ms(1);
    }
    tt_sleep_ms(2); /* the last thread has let go of the lock */
    tc_proxies[tc_proxies[0] != p] = NULL;
    pthread_mutex_destroy(&p->lock);
    hfsb_buf_free(&p->head);
    hfsb_buf_free(&p->body);
}

/* The next requests are treated so, then all pass. */
HFSBI_UNUSED static void tc_plan(tc_proxy *p, const tc_act *acts, size_t n) {
    pthread_mutex_lock(&p->lock);
    if (n) memcpy(p->queue, acts, n * sizeof *acts);
    p->queue_count = n;
    p->queue_at = p->asked = p->asked_posts = p->reached = p->repeats = 0;
    pthread_mutex_unlock(&p->lock);
}

HFSBI_UNUSED static void tc_plan_one(tc_proxy *p, tc_act act, size_t times) {
    tc_act acts[TC_QUEUE];
    size_t i;
    for (i = 0; i < times; i++) acts[i] = act;
    tc_plan(p, acts, times);
}

/* The next replies are this one. */
HFSBI_UNUSED static void tc_can(tc_proxy *p, const char *reply, size_t times) {
    p->canned = reply;
    tc_plan_one(p, TC_CANNED, times);
}

/* A field of the last POST; ptr NULL: none. */
HFSBI_UNUSED static hfsb_str tc_field(const tc_proxy *p, const char *name) {
    ts_reply r = HFSB_INIT;
    r.head = p->head;
    return ts_field(&r, name);
}

/* ---- a handle ---- */

typedef struct tc_box {
    hfsb_transport transport;
    hfsb_sandbox  *sandbox;
} tc_box;

#define TC_HUB_TOKEN "hf_a_token_of_the_hub"

/* Options that make tests quick. */
HFSBI_UNUSED static hfsb_sandbox_opts tc_options(void) {
    hfsb_sandbox_opts o = HFSB_INIT;
    o.api_token = HFSB_LIT(TS_TOKEN);
    o.hub_token = HFSB_LIT(TC_HUB_TOKEN);
    o.times.delay_ms = 1;
    o.times.api_poll_ms = 10;
    o.times.api_wait_ms = 20000;
    o.alloc = tt_alloc();
    return o;
}

HFSBI_UNUSED static void tc_open(tc_box *b, unsigned port,
                                 const hfsb_sandbox_opts *opts) {
    hfsb_sandbox_opts o = opts ? *opts : tc_options();
    hfsb_net_opts     net = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    char              url[64];
    net.no_proxy = true;
    net.alloc = tt_alloc();
    snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
    if (hfsb_net_open(&net, &b->transport, &err) != HFSB_OK) abort();
    o.transport = &b->transport;
    if (hfsb_sandbox_connect_url(hfsb_cstr(url), &o, &b->sandbox, &err) !=
        HFSB_OK) {
        printf("no sandbox: %s\n", err.msg);
        abort();
    }
}

HFSBI_UNUSED static void tc_close(tc_box *b) {
    T_CHECK(hfsb_sandbox_close(b->sandbox, true, NULL) == HFSB_OK);
    hfsb_transport_close(&b->transport);
}

/* ---- calls ---- */

/* Nothing that is said holds a token. */
static void tc_no_secret(hfsb_str text) {
    T_CHECK(hfsb_str_find(text, HFSB_LIT(TS_TOKEN)) == HFSB_NPOS &&
            hfsb_str_find(text, HFSB_LIT(TC_HUB_TOKEN)) == HFSB_NPOS);
}

HFSBI_UNUSED static void tc_do(tt_reply *r, tc_box *b, const char *tool,
                               const char *json, const hfsb_call_opts *opts,
                               const hfsb_cancel *cancel) {
    hfsb_call_opts how = HFSB_INIT;
    hfsb_json_doc  doc = HFSB_INIT;
    if (opts) how = *opts;
    if (cancel) how.cancel = cancel;
    tt_drop(r);
    if (json && hfsb_json_parse(hfsb_cstr(json), NULL, &doc, NULL) != HFSB_OK)
        abort();
    r->st = hfsb_sandbox_call(b->sandbox, hfsb_cstr(tool), doc.root, &how,
                              &r->res);
    tt_look(r);
    tc_settle();
    hfsb_json_free(&doc);
    tc_no_secret(hfsb_buf_str(&r->res.error));
    tc_no_secret(hfsb_buf_str(&r->res.output));
}

HFSBI_UNUSED static void tc_call(tt_reply *r, tc_box *b, const char *tool,
                                 const char *json) {
    tc_do(r, b, tool, json, NULL, NULL);
    T_CHECK(r->sane);
}

/* A server, a proxy in front of it, a handle on the proxy. */
typedef struct tc_all {
    ts_server server;
    tc_proxy  proxy;
    tc_box    box;
} tc_all;

HFSBI_UNUSED static void tc_begin(tc_all *a, const hfsb_sandbox_opts *opts,
                                  bool foreign) {
    ts_start(&a->server, NULL, NULL);
    tc_proxy_open(&a->proxy, a->server.port);
    a->proxy.foreign = foreign;
    tc_open(&a->box, a->proxy.port, opts);
    T_CHECK(hfsb_sandbox_ours(a->box.sandbox) == !foreign);
}

HFSBI_UNUSED static void tc_end(tc_all *a) {
    tc_close(&a->box);
    tc_proxy_close(&a->proxy);
    ts_end(&a->server, false);
}
#endif
