/* t_net.h - what the tests of NET share: a peer in a thread that speaks bytes
   by a script, and calls in one line. */
#ifndef T_NET_H
#define T_NET_H
#include "t.h"
#ifdef HFSBI_SPLIT
#include "../../src/net/net_private.h"
#endif
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* For what runs in several threads, where nothing is counted. */
#define TN_MUST(x)                                                 \
    ((void)((x) || (printf("%s:%d: %s: %s\n", __FILE__, __LINE__, \
                           t_name, #x),                            \
                    fflush(stdout), abort(), 0)))

/* ---- the peer ---- */

struct tn_peer;

typedef struct tn_conn {
    struct tn_peer *peer;
    int             fd;
    size_t          number; /* of this connection, from 0 */
    hfsb_buf        in;     /* bytes that came and are not taken yet */
} tn_conn;

/* What happens after a reply of a script. */
enum { TN_KEEP, TN_CLOSE, TN_RESET, TN_HANG };

typedef struct tn_step {
    const char *reply; /* NULL: nothing is said */
    int         then;
} tn_step;

typedef void tn_fn(tn_conn *c);

typedef struct tn_peer {
    tn_fn          *fn;
    void           *user;
    const tn_step  *script; /* for tn_play: one step for each request */
    size_t          steps;
    bool            parallel; /* a thread for each connection */
    /* private */
    int             fd, stop[2];
    unsigned        port;
    char            url[64]; /* http://127.0.0.1:port */
    pthread_t       thread;
    pthread_mutex_t lock;
    /* what happened */
    size_t   connections, requests, step;
    hfsb_buf log; /* the requests, as they came */
} tn_peer;

HFSBI_UNUSED static bool tn_say(tn_conn *c, hfsb_str s) {
    while (s.len) {
        ssize_t n = send(c->fd, s.ptr, s.len, MSG_NOSIGNAL);
        if (n <= 0) return false;
        s = hfsb_str_slice(s, (size_t)n, s.len);
    }
    return true;
}

HFSBI_UNUSED static void tn_end(tn_conn *c) {
    close(c->fd);
    c->fd = -1;
}

/* Closes with a reset instead of an end. */
HFSBI_UNUSED static void tn_reset(tn_conn *c) {
    struct linger hard;
    hard.l_onoff = 1;
    hard.l_linger = 0;
    (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    tn_end(c);
}

/* Takes more bytes; false at the end. */
HFSBI_UNUSED static bool tn_more(tn_conn *c) {
    char    piece[65536];
    ssize_t n = recv(c->fd, piece, sizeof piece, 0);
    return n > 0 && hfsb_buf_append(&c->in, hfsb_str_make(piece, (size_t)n)) ==
                        HFSB_OK;
}

/* Waits until the client closes. */
HFSBI_UNUSED static void tn_until_closed(tn_conn *c) {
    while (tn_more(c)) hfsb_buf_truncate(&c->in, 0);
}

HFSBI_UNUSED static void tn_note(tn_peer *p, hfsb_str request) {
    pthread_mutex_lock(&p->lock);
    p->requests++;
    TN_MUST(hfsb_buf_append(&p->log, request) == HFSB_OK);
    pthread_mutex_unlock(&p->lock);
}

/* Takes a whole request; false when the client closes before. */
HFSBI_UNUSED static bool tn_request(tn_conn *c) {
    size_t   end, need, at;
    hfsb_str in;
    for (;;) {
        in = hfsb_buf_str(&c->in);
        end = hfsb_str_find(in, HFSB_LIT("\r\n\r\n"));
        if (end != HFSB_NPOS) break;
        if (!tn_more(c)) return false;
    }
    need = end + 4;
    at = hfsb_str_find(hfsb_str_slice(in, 0, end),
                       HFSB_LIT("Content-Length: "));
    if (at != HFSB_NPOS) need += (size_t)strtoul(in.ptr + at + 16, NULL, 10);
    while (c->in.len < need)
        if (!tn_more(c)) return false;
    tn_note(c->peer, hfsb_str_slice(hfsb_buf_str(&c->in), 0, need));
    memmove(c->in.ptr, c->in.ptr + need, c->in.len - need);
    hfsb_buf_truncate(&c->in, c->in.len - need);
    return true;
}

/* Plays the script: each request, on whatever connection, is the next step;
   the last one repeats. */
HFSBI_UNUSED static void tn_play(tn_conn *c) {
    tn_peer *p = c->peer;
    while (tn_request(c)) {
        tn_step step;
        pthread_mutex_lock(&p->lock);
        step = p->script[p->step < p->steps ? p->step : p->steps - 1];
        p->step++;
        pthread_mutex_unlock(&p->lock);
        if (step.reply) (void)tn_say(c, hfsb_cstr(step.reply));
        if (step.then == TN_RESET) {
            tn_reset(c);
            return;
        }
        if (step.then == TN_HANG) tn_until_closed(c);
        if (step.then != TN_KEEP) return;
    }
}

static void *tn_serve(void *user) {
    tn_conn *c = (tn_conn *)user;
    c->peer->fn(c);
    if (c->fd >= 0) close(c->fd);
    hfsb_buf_free(&c->in);
    free(c);
    return NULL;
}

static void *tn_run(void *user) {
    tn_peer  *p = (tn_peer *)user;
    pthread_t threads[256];
    size_t    count = 0;
    for (;;) {
        struct pollfd  fds[2] = {{0, POLLIN, 0}, {0, POLLIN, 0}};
        struct timeval limit = {20, 0};
        tn_conn       *c;
        int            one = 1;
        fds[0].fd = p->fd;
        fds[1].fd = p->stop[0];
        if (poll(fds, 2, -1) < 0) continue;
        if (fds[1].revents) break;
        c = (tn_conn *)calloc(1, sizeof *c);
        if (!c) abort();
        c->peer = p;
        c->fd = accept(p->fd, NULL, NULL);
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        pthread_mutex_lock(&p->lock);
        c->number = p->connections++;
        pthread_mutex_unlock(&p->lock);
        if (!p->parallel || count == 256 ||
            pthread_create(&threads[count], NULL, tn_serve, c))
            tn_serve(c);
        else count++;
    }
    while (count > 0) pthread_join(threads[--count], NULL);
    return NULL;
}

/* A listening socket on a port that the kernel picks. */
HFSBI_UNUSED static int tn_listen(unsigned *port, int backlog) {
    struct sockaddr_in a;
    socklen_t          len = sizeof a;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    T_CHECK(fd >= 0 && bind(fd, (struct sockaddr *)(void *)&a, len) == 0 &&
            listen(fd, backlog) == 0 &&
            getsockname(fd, (struct sockaddr *)(void *)&a, &len) == 0);
    *port = ntohs(a.sin_port);
    return fd;
}

/* *p is all zero but for what the test chose. */
HFSBI_UNUSED static void tn_open(tn_peer *p) {
    pthread_mutex_init(&p->lock, NULL);
    p->fd = tn_listen(&p->port, 128);
    T_CHECK(hfsbi_wake_open(p->stop));
    snprintf(p->url, sizeof p->url, "http://127.0.0.1:%u", p->port);
    if (!p->fn) p->fn = tn_play;
    T_CHECK(pthread_create(&p->thread, NULL, tn_run, p) == 0);
}

HFSBI_UNUSED static void tn_play_open(tn_peer *p, const tn_step *script,
                                      size_t steps) {
    memset(p, 0, sizeof *p);
    p->script = script;
    p->steps = steps;
    tn_open(p);
}

/* Waits for the conversation under way: close the transport before. */
HFSBI_UNUSED static void tn_close(tn_peer *p) {
    hfsbi_wake_write(p->stop[1]);
    pthread_join(p->thread, NULL);
    close(p->fd);
    close(p->stop[0]);
    close(p->stop[1]);
    hfsb_buf_free(&p->log);
    pthread_mutex_destroy(&p->lock);
}

HFSBI_UNUSED static size_t tn_get(tn_peer *p, const size_t *value) {
    size_t n;
    pthread_mutex_lock(&p->lock);
    n = *value;
    pthread_mutex_unlock(&p->lock);
    return n;
}

HFSBI_UNUSED static bool tn_becomes(tn_peer *p, const size_t *value,
                                    size_t n) {
    long long end = hfsb_clock_ms() + 30000;
    while (tn_get(p, value) != n && hfsb_clock_ms() < end) usleep(200);
    return tn_get(p, value) == n;
}

/* The peer has been sent this. */
HFSBI_UNUSED static bool tn_logged(tn_peer *p, const char *part) {
    bool there;
    pthread_mutex_lock(&p->lock);
    there = hfsb_str_find(hfsb_buf_str(&p->log), hfsb_cstr(part)) != HFSB_NPOS;
    pthread_mutex_unlock(&p->lock);
    return there;
}

/* ---- a call, and what came of it ---- */

typedef struct tn_call {
    hfsb_http_call call;
    char           url[256];
    /* results */
    hfsb_status status;
    bool        sent;
    hfsb_err    err;
    int         reply; /* its status; 0: none */
    size_t      heads, pieces;
    hfsb_buf    fields; /* "name: value" and LF each */
    hfsb_buf    body;
    size_t      stop_at; /* on_body says false at this many bytes (0: never) */
    bool        stop_at_head;
} tn_call;

static bool tn_on_head(void *user, int status, const hfsb_http_field *fields,
                       size_t count) {
    tn_call *t = (tn_call *)user;
    size_t   i;
    t->reply = status;
    t->heads++;
    for (i = 0; i < count; i++)
        TN_MUST(hfsb_buf_printf(&t->fields, "%.*s: %.*s\n",
                                (int)fields[i].name.len, fields[i].name.ptr,
                                (int)fields[i].value.len,
                                fields[i].value.ptr) == HFSB_OK);
    return !t->stop_at_head;
}

static bool tn_on_body(void *user, hfsb_str piece) {
    tn_call *t = (tn_call *)user;
    TN_MUST(piece.len > 0);
    t->pieces++;
    TN_MUST(hfsb_buf_append(&t->body, piece) == HFSB_OK);
    return !t->stop_at || t->body.len < t->stop_at;
}

/* A call of that method to url and path, ready to be changed and made. */
HFSBI_UNUSED static tn_call *tn_new(const char *method, const char *url,
                                    const char *path) {
    tn_call *t = (tn_call *)calloc(1, sizeof *t);
    if (!t) abort();
    snprintf(t->url, sizeof t->url, "%s%s", url, path);
    t->call.method = hfsb_cstr(method);
    t->call.url = hfsb_cstr(t->url);
    t->call.on_head = tn_on_head;
    t->call.on_body = tn_on_body;
    t->call.user = t;
    t->call.total_ms = 60000; /* a test must not hang */
    return t;
}

HFSBI_UNUSED static hfsb_status tn_do(hfsb_transport *net, tn_call *t) {
    t->reply = 0;
    t->heads = t->pieces = 0;
    hfsb_buf_truncate(&t->body, 0);
    hfsb_buf_truncate(&t->fields, 0);
    t->sent = true;
    memset(&t->err, 'x', sizeof t->err);
    t->status = net->perform(net->user, &t->call, &t->sent, &t->err);
    TN_MUST(t->err.code == t->status);
    TN_MUST((t->status == HFSB_OK) == !t->err.msg[0]);
    TN_MUST(t->heads <= 1);
    return t->status;
}

HFSBI_UNUSED static void tn_drop(tn_call *t) {
    hfsb_buf_free(&t->fields);
    hfsb_buf_free(&t->body);
    free(t);
}

/* The call in one line: its status. */
HFSBI_UNUSED static hfsb_status tn_once(hfsb_transport *net,
                                        const char *method, const char *url,
                                        const char *path) {
    tn_call    *t = tn_new(method, url, path);
    hfsb_status st = tn_do(net, t);
    tn_drop(t);
    return st;
}

/* A transport that looks at no environment. */
HFSBI_UNUSED static hfsb_transport tn_net(void) {
    hfsb_transport net;
    hfsb_net_opts  o = HFSB_INIT;
    o.no_proxy = true;
    T_CHECK(hfsb_net_open(&o, &net, NULL) == HFSB_OK);
    return net;
}

HFSBI_UNUSED static size_t tn_open_files(void) {
    size_t n = 0;
    int    fd;
    for (fd = 0; fd < 1024; fd++) n += fcntl(fd, F_GETFD) != -1;
    return n;
}

#define TN_COUNT(a) (sizeof(a) / sizeof *(a))
#define TN_OK       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#endif
