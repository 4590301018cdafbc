/* t_transport.h - a peer that follows a script in a thread, and one call to it
   through any transport, with what came of it. */
#ifndef T_TRANSPORT_H
#define T_TRANSPORT_H
#include "t.h"

#ifdef HFSBI_SPLIT
#include "../../src/net/net.h"
#endif

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* ---- the peer ---- */

/* What it does, one after the other; at the end of the list it closes. */
typedef enum tt_act {
    TT_END,
    TT_ACCEPT, /* the next connection, the one before is closed */
    TT_READ,   /* a whole request */
    TT_HEAD,   /* only its head: the body is left where it is */
    TT_SEND,   /* text */
    TT_WAIT,   /* n milliseconds */
    TT_CLOSE,
    TT_RESET,
    TT_UNTIL_GONE, /* waits for the other side to close, some seconds */
    TT_DRIP        /* text, a byte each n milliseconds, until the other side
                      is gone */
} tt_act;

typedef struct tt_step {
    tt_act      act;
    const char *text;
    int         n;
} tt_step;

typedef struct tt_peer {
    const tt_step *script;
    int            listener, fd;
    unsigned       port;
    size_t         requests; /* heads that came */
    bool           gone;     /* TT_UNTIL_GONE saw the end */
    hfsb_buf       seen;     /* all bytes of requests */
    pthread_t      thread;
} tt_peer;

enum { TT_PATIENCE = 5000 };

static bool tt_readable(int fd, int ms) {
    struct pollfd p;
    p.fd = fd;
    p.events = POLLIN;
    return poll(&p, 1, ms) > 0;
}

static bool tt_more(tt_peer *peer) {
    char    piece[16384];
    ssize_t n = tt_readable(peer->fd, TT_PATIENCE)
                    ? recv(peer->fd, piece, sizeof piece, 0)
                    : -1;
    if (n <= 0) return false;
    if (hfsb_buf_append(&peer->seen, hfsb_str_make(piece, (size_t)n))) abort();
    return true;
}

/* The next request after `from` in seen. */
static bool tt_read(tt_peer *peer, bool whole) {
    size_t from = peer->seen.len, head, length = 0;
    char  *field;
    for (;;) {
        hfsb_str s = hfsb_str_slice(hfsb_buf_str(&peer->seen), from,
                                    peer->seen.len);
        head = hfsb_str_find(s, HFSB_LIT("\r\n\r\n"));
        if (head != HFSB_NPOS) break;
        if (!tt_more(peer)) return false;
    }
    peer->requests++;
    field = strstr(peer->seen.ptr + from, "Content-Length: ");
    if (field) length = (size_t)strtoull(field + 16, NULL, 10);
    while (whole && peer->seen.len < from + head + 4 + length)
        if (!tt_more(peer)) return false;
    return true;
}

static void tt_send(int fd, const char *text, size_t len) {
    while (len) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
        if (n <= 0) return;
        text += n;
        len -= (size_t)n;
    }
}

static void tt_drip(tt_peer *peer, const tt_step *step) {
    const char *p = step->text;
    while (!tt_readable(peer->fd, step->n)) {
        if (!*p) p = step->text;
        tt_send(peer->fd, p++, 1);
    }
}

static void tt_reset(int fd) {
    struct linger now;
    now.l_onoff = 1;
    now.l_linger = 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

static void tt_do(tt_peer *peer, const tt_step *step) {
    char byte;
    switch (step->act) {
    case TT_END: break;
    case TT_ACCEPT:
        hfsbi_close(&peer->fd);
        if (tt_readable(peer->listener, TT_PATIENCE))
            peer->fd = accept(peer->listener, NULL, NULL);
        break;
    case TT_READ: (void)tt_read(peer, true); break;
    case TT_HEAD: (void)tt_read(peer, false); break;
    case TT_SEND: tt_send(peer->fd, step->text, strlen(step->text)); break;
    case TT_WAIT: usleep((useconds_t)step->n * 1000); break;
    case TT_RESET: tt_reset(peer->fd); hfsbi_close(&peer->fd); break;
    case TT_CLOSE: hfsbi_close(&peer->fd); break;
    case TT_UNTIL_GONE:
        peer->gone = tt_readable(peer->fd, TT_PATIENCE) &&
                     recv(peer->fd, &byte, 1, 0) <= 0;
        break;
    case TT_DRIP: tt_drip(peer, step); break;
    }
}

static void *tt_follow(void *user) {
    tt_peer *peer = (tt_peer *)user;
    size_t   i;
    for (i = 0; peer->script[i].act != TT_END; i++)
        tt_do(peer, &peer->script[i]);
    return NULL;
}

static int tt_listen(unsigned *port, int backlog) {
    struct sockaddr_in at = HFSB_INIT;
    socklen_t          len = sizeof at;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) ||
        listen(fd, backlog) || getsockname(fd, (struct sockaddr *)&at, &len))
        abort();
    *port = ntohs(at.sin_port);
    return fd;
}

static void tt_start(tt_peer *peer, const tt_step *script) {
    memset(peer, 0, sizeof *peer);
    peer->script = script;
    peer->fd = -1;
    peer->listener = tt_listen(&peer->port, 8);
    if (pthread_create(&peer->thread, NULL, tt_follow, peer)) abort();
}

/* Waits for the end of its script. */
static void tt_stop(tt_peer *peer) {
    (void)pthread_join(peer->thread, NULL);
    hfsbi_close(&peer->fd);
    hfsbi_close(&peer->listener);
}

/* Steps and replies that many scripts have. */
#define TT_HI "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
#define TT_BEGIN {TT_ACCEPT, NULL, 0}, {TT_READ, NULL, 0}
#define TT_SAY(text) {TT_SEND, text, 0}
#define TT_DONE {TT_UNTIL_GONE, NULL, 0}
#define TT_SHUT {TT_CLOSE, NULL, 0}

static const tt_step tt_answer[] = {TT_BEGIN, TT_SAY(TT_HI),
                                    {TT_END, NULL, 0}};

/* ---- one call, and what came of it ---- */

typedef struct tt_result {
    bool        sent;
    hfsb_status st;
    int         status; /* 0: on_head was not called */
    size_t      heads;
    hfsb_buf    body, fields; /* fields: "name=value\n" */
    hfsb_err    err;
    bool        stop_at_head, stop_at_body;
    size_t      give; /* bytes that body_read gives at a time (0: it fails) */
    long long   took;
} tt_result;

static bool tt_on_head(void *user, int status, const hfsb_http_field *fields,
                       size_t n) {
    tt_result *r = (tt_result *)user;
    size_t     i;
    r->status = status;
    r->heads++;
    for (i = 0; i < n; i++)
        T_CHECK(hfsb_buf_printf(&r->fields, "%.*s=%.*s\n",
                                (int)fields[i].name.len, fields[i].name.ptr,
                                (int)fields[i].value.len,
                                fields[i].value.ptr) == HFSB_OK);
    return !r->stop_at_head;
}

static bool tt_on_body(void *user, hfsb_str piece) {
    tt_result *r = (tt_result *)user;
    T_CHECK(r->heads == 1);
    T_CHECK(hfsb_buf_append(&r->body, piece) == HFSB_OK);
    return !r->stop_at_body;
}

static hfsb_status tt_body_read(void *user, char *ptr, size_t room,
                                size_t *got, hfsb_err *err) {
    tt_result *r = (tt_result *)user;
    if (!r->give) {
        if (err) (void)snprintf(err->msg, sizeof err->msg, "no such disk");
        return HFSB_FULL;
    }
    *got = room < r->give ? room : r->give;
    memset(ptr, 'b', *got);
    return HFSB_OK;
}

static hfsb_http_call tt_call(const char *method) {
    hfsb_http_call call = HFSB_INIT;
    call.method = hfsb_cstr(method);
    call.total_ms = TT_PATIENCE;
    return call;
}

/* Performs it; an empty URL is that of the peer. */
static void tt_perform(const hfsb_transport *t, unsigned port,
                       hfsb_http_call call, tt_result *r) {
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/a/../b?q=%%20",
                   port);
    if (!call.url.len) call.url = hfsb_cstr(url);
    call.on_head = tt_on_head;
    call.on_body = tt_on_body;
    call.user = r;
    r->took = hfsb_clock_ms();
    r->sent = true;
    r->st = t->perform(t->user, &call, &r->sent, &r->err);
    r->took = hfsb_clock_ms() - r->took;
    T_CHECK((r->st == HFSB_OK) == !r->err.msg[0]);
    T_CHECK(r->st == HFSB_OK || r->st == HFSB_FULL || r->err.code == r->st);
}

static void tt_drop(tt_result *r) {
    hfsb_buf_free(&r->body);
    hfsb_buf_free(&r->fields);
    memset(r, 0, sizeof *r);
}

static bool tt_has(const hfsb_buf *text, const char *part) {
    return hfsb_str_find(hfsb_buf_str(text), hfsb_cstr(part)) != HFSB_NPOS;
}

static void *tt_cancel_soon(void *user) {
    usleep(100000);
    hfsb_cancel_set((hfsb_cancel *)user);
    return NULL;
}
#endif
