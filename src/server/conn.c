/* conn.c - a connection: bytes in, one request after the other. */
#include "server_private.h"

/*  no request, no bytes    idle           until idle_ms
    no request, some bytes  a head comes   until head_ms after its first byte
    request, no body yet    a body comes   body_ms without a byte, or slower
                                           than min_rate after body_ms; head_ms
                                           in all when it is discarded or has
                                           no accepted token
    request, body done      handler works  for ever
                            reply goes out body_ms without a byte taken
    lingering               refused, read and thrown away for a moment

   Bytes that follow a request stay in the kernel until it is answered: they
   may hold a token, and a command can read the memory of its own user's
   processes. So a head, whose end is not known before, is peeked at, and only
   what was used is taken out. */

/* ---- the end ---- */

static void hfsbi_conn_free(hfsbi_conn *conn) {
    hfsb_server *server = conn->server;
    if (conn->request) hfsbi_request_free(conn->request);
    hfsbi_close(&conn->io.fd);
    if (conn->prev) conn->prev->next = conn->next;
    else server->conns = conn->next;
    if (conn->next) conn->next->prev = conn->prev;
    hfsbi_wipe(conn->in, conn->in_len);
    hfsbi_array_free(&server->alloc, conn->in, conn->in_cap, 1);
    hfsbi_array_free(&server->alloc, conn, 1, sizeof *conn);
    server->stats.open--;
    hfsbi_server_accept(server, true);
}

HFSBI_FN void hfsbi_conn_close(hfsbi_conn *conn) {
    conn->dead = true;
    hfsbi_loop_io_forget(conn->server->loop, &conn->io);
    hfsbi_loop_timer_clear(conn->server->loop, &conn->timer);
    if (conn->request) hfsbi_request_tell_gone(conn->request);
    if (conn->tasks == 0) hfsbi_conn_free(conn);
    /* a task that sends must not wait for a peer that does not read */
    else (void)shutdown(conn->io.fd, SHUT_RDWR);
}

HFSBI_FN bool hfsbi_conn_task_done(hfsbi_conn *conn) {
    bool last = --conn->tasks == 0 && conn->dead;
    if (last) hfsbi_conn_free(conn);
    return last;
}

HFSBI_FN void hfsbi_conn_poke(hfsbi_conn *conn) {
    if (conn->held || conn->poked || conn->dead) return;
    conn->poked = true;
    hfsbi_loop_timer(conn->server->loop, &conn->timer, 0);
}

/* Bytes that wait in the kernel for the peer; -1 when that cannot be told. */
static int hfsbi_conn_queue(const hfsbi_conn *conn) {
    int n = -1;
#ifdef TIOCOUTQ
    if (ioctl(conn->io.fd, TIOCOUTQ, &n) != 0) n = -1;
#endif
    return n;
}

HFSBI_FN void hfsbi_conn_full(hfsbi_conn *conn) {
    conn->queued = hfsbi_conn_queue(conn);
}

/* A peer that reads slowly takes bytes of the kernel's for a long time before
   the kernel takes more of ours. */
static bool hfsbi_conn_drains(hfsbi_conn *conn) {
    int  now = hfsbi_conn_queue(conn);
    bool fewer = now >= 0 && now < conn->queued;
    conn->queued = now;
    if (fewer) conn->moved = hfsbi_loop_now(conn->server->loop);
    return fewer;
}

/* ---- bytes that wait ---- */

/* Makes *view, which may be a part of conn->in, all that it holds. Memory that
   is given up may have held a token. False without memory. */
static bool hfsbi_conn_keep(hfsbi_conn *conn, hfsb_str view) {
    const hfsb_alloc *alloc = &conn->server->alloc;
    char             *grown = conn->in;
    size_t            cap = conn->in_cap;
    bool              inside = conn->in && view.ptr >= conn->in &&
                  view.ptr <= conn->in + conn->in_cap;
    if (view.len > cap || (view.len == 0 && cap)) {
        cap = view.len;
        grown = cap ? (char *)hfsbi_array(alloc, cap, 1) : NULL;
        if (cap && !grown) return false;
        if (cap) memcpy(grown, view.ptr, view.len);
        hfsbi_wipe(conn->in, conn->in_len);
        hfsbi_array_free(alloc, conn->in, conn->in_cap, 1);
    } else if (view.len) {
        memmove(conn->in, view.ptr, view.len);
        if (inside && conn->in_len > view.len)
            hfsbi_wipe(conn->in + view.len, conn->in_len - view.len);
    }
    conn->in = grown;
    conn->in_cap = cap;
    conn->in_len = view.len;
    return true;
}

/* Puts more behind what waits. */
static bool hfsbi_conn_append(hfsbi_conn *conn, hfsb_str more) {
    const hfsb_alloc *alloc = &conn->server->alloc;
    size_t            cap = conn->in_cap;
    char             *grown;
    if (conn->in_len + more.len > cap) {
        cap = conn->in_len + more.len;
        if (cap < 2 * conn->in_cap) cap = 2 * conn->in_cap;
        grown = (char *)hfsbi_array(alloc, cap, 1);
        if (!grown) return false;
        if (conn->in_len) memcpy(grown, conn->in, conn->in_len);
        hfsbi_wipe(conn->in, conn->in_len);
        hfsbi_array_free(alloc, conn->in, conn->in_cap, 1);
        conn->in = grown;
        conn->in_cap = cap;
    }
    memcpy(conn->in + conn->in_len, more.ptr, more.len);
    conn->in_len += more.len;
    return true;
}

/* ---- what a refusal needs ---- */

/* A reply to what is no request, or no whole one. */
static void hfsbi_conn_refuse(hfsbi_conn *conn, int status,
                              const char *sentence) {
    hfsb_http_head none = HFSB_INIT;
    hfsb_request  *r = conn->request;
    conn->closing = true;
    none.minor = 1;
    if (!r)
        conn->request = r =
            hfsbi_request_new(conn, &none, hfsb_str_make("", 0));
    else if (r->reply == HFSBI_REPLY_NONE) hfsbi_request_tell_gone(r);
    if (r && r->reply == HFSBI_REPLY_NONE)
        hfsb_reply_error(r, status, "%s", sentence);
    else conn->broken = true;
}

/* ---- events of the parser ---- */

static void hfsbi_conn_head(hfsbi_conn *conn, hfsb_http_head *head,
                            hfsb_str raw) {
    hfsb_server *server = conn->server;
    hfsbi_guard  token = hfsbi_guard_token(server, head);
    conn->head_timed = false; /* the next one has its own time */
    conn->request = hfsbi_request_new(conn, head, raw);
    hfsbi_wipe((void *)(uintptr_t)raw.ptr, raw.len);
    if (!conn->request) {
        conn->broken = true;
        return;
    }
    if (!head->keep_alive || server->phase) conn->closing = true;
    hfsbi_request_check(conn->request, token);
}

/* Takes one event out of data; false when there is none to be had. */
static bool hfsbi_conn_event(hfsbi_conn *conn, hfsb_str *data) {
    hfsb_server    *server = conn->server;
    hfsb_http_head  head;
    hfsb_err        err;
    hfsb_str        piece = HFSB_INIT;
    size_t          used = 0;
    hfsb_http_event event =
        hfsb_http_next(&conn->parser, *data, server->fields,
                       server->limits.max_fields, &head, &piece, &used, &err);
    switch (event) {
    case HFSB_HTTP_MORE: /* trailers, which no one asked for */
        hfsbi_wipe((void *)(uintptr_t)data->ptr, used);
        break;
    case HFSB_HTTP_HEAD:
        hfsbi_conn_head(conn, &head, hfsb_str_slice(*data, 0, used));
        break;
    case HFSB_HTTP_BODY: hfsbi_request_piece(conn->request, piece); break;
    case HFSB_HTTP_END:
        hfsbi_wipe((void *)(uintptr_t)data->ptr, used);
        hfsbi_request_complete(conn->request);
        break;
    case HFSB_HTTP_BAD:
        if (!conn->request) /* a head that may hold a token */
            hfsbi_wipe((void *)(uintptr_t)data->ptr, data->len);
        hfsbi_conn_refuse(conn, hfsb_http_parser_status(&conn->parser),
                          err.msg);
        break;
    }
    *data = hfsb_str_slice(*data, used, data->len);
    return event != HFSB_HTTP_MORE;
}

/* ---- one request after the other ---- */

/* True while bytes may be looked at: not behind a request that is still being
   answered, nor when its handler wants a pause. */
static bool hfsbi_conn_hungry(const hfsbi_conn *conn) {
    const hfsb_request *r = conn->request;
    if (conn->broken || conn->lingering) return false;
    if (!r) return !conn->closing;
    if (r->body_done) return false;
    if (r->reply == HFSBI_REPLY_ENDED) return r->discard;
    return !r->paused;
}

/* True when the reply, and all of it, is out. */
static bool hfsbi_conn_answered(const hfsbi_conn *conn) {
    const hfsb_request *r = conn->request;
    return r && r->reply == HFSBI_REPLY_ENDED && hfsbi_reply_left(r) == 0 &&
           conn->tasks == 0;
}

HFSBI_FN bool hfsbi_conn_may_discard(const hfsbi_conn *conn) {
    const hfsb_http_head *head = &conn->request->head;
    if (conn->closing || head->body == HFSB_HTTP_CHUNKED) return false;
    return head->body == HFSB_HTTP_NO_BODY || head->length == 0 ||
           (!head->expect_continue && head->length <= HFSBI_DISCARD);
}

/* recv() into the server's block. */
static ssize_t hfsbi_conn_recv(hfsbi_conn *conn, size_t most, int flags) {
    ssize_t n;
    do n = recv(conn->io.fd, conn->server->block, most, flags);
    while (n < 0 && errno == EINTR);
    return n;
}

/* True when the kernel has bytes of the peer that nobody has looked at. */
static bool hfsbi_conn_has_unread(const hfsbi_conn *conn) {
    char byte;
    return conn->peeked == 0 && recv(conn->io.fd, &byte, 1, MSG_PEEK) > 0;
}

/* Everything was answered: ready for the next request, or the end. False when
   the rest of the body must come first. */
static bool hfsbi_conn_finish(hfsbi_conn *conn, bool unread) {
    hfsb_request *r = conn->request;
    bool          whole = r->body_done;
    if (conn->server->phase) conn->closing = true;
    if (!whole && hfsbi_conn_may_discard(conn)) {
        if (r->discard) return false;
        r->discard = true;
        r->body_at = hfsbi_loop_now(conn->server->loop);
        return true;
    }
    hfsbi_request_free(r);
    conn->request = NULL;
    if (whole && !conn->closing) return true;
    if (conn->ended || (whole && !unread && !hfsbi_conn_has_unread(conn))) {
        conn->broken = true;
        return true;
    }
    /* closing with bytes unread would make the kernel send a reset, which
       may overtake the reply */
    conn->lingering = true;
    conn->moved = hfsbi_loop_now(conn->server->loop);
    conn->linger_until = conn->moved + conn->server->head_ms;
    (void)shutdown(conn->io.fd, SHUT_WR);
    return true;
}

/* Looks at bytes until they are used up or must wait. They are a part of the
   connection's own memory, or the server's block. */
static void hfsbi_conn_feed(hfsbi_conn *conn, hfsb_str data) {
    bool more = true;
    while (more && !conn->broken) {
        if (hfsbi_conn_answered(conn) && hfsbi_conn_finish(conn, data.len > 0))
            continue;
        more = hfsbi_conn_hungry(conn) &&
               (data.len || !hfsb_http_parser_idle(&conn->parser)) &&
               hfsbi_conn_event(conn, &data);
    }
    if (conn->lingering) data.len = 0;
    if (conn->broken || hfsbi_conn_hungry(conn)) conn->peeked = 0;
    if (conn->peeked > data.len) conn->peeked = data.len;
    data.len -= conn->peeked; /* these stay where they are */
    if (!hfsbi_conn_keep(conn, data)) conn->broken = true;
}

/* ---- what to wait for, and until when ---- */

/* Between requests; empty lines are nothing. */
static bool hfsbi_conn_idle(const hfsbi_conn *conn) {
    return !conn->request &&
           (conn->in_len == 0 || hfsb_http_parser_end(&conn->parser));
}

/* Timers are set early and looked at late: that each request pushes the time
   out a little costs nothing. */
static void hfsbi_conn_arm(hfsbi_conn *conn, long long until) {
    conn->until = until;
    if (until >= 0 && (!conn->timer.set || until < conn->timer.at))
        hfsbi_loop_timer(conn->server->loop, &conn->timer, until);
}

/* Until when more of the body must come. Each byte buys time at min_rate. */
static long long hfsbi_conn_body_limit(const hfsbi_conn *conn) {
    const hfsb_server  *server = conn->server;
    const hfsb_request *r = conn->request;
    unsigned long long  rate = server->min_rate;
    long long           ms = server->body_ms;
    long long           paid = (long long)(r->body_len / rate * 1000 +
                                 r->body_len % rate * 1000 / rate);
    if (hfsbi_request_is_unwanted(r)) ms = server->head_ms;
    else if (paid > ms) ms = paid;
    return hfsbi_sooner(conn->moved + server->body_ms, r->body_at + ms);
}

static long long hfsbi_conn_limit(const hfsbi_conn *conn) {
    const hfsb_server  *server = conn->server;
    const hfsb_request *r = conn->request;
    long long           now = hfsbi_loop_now(server->loop);
    if (conn->lingering) /* as long as bytes come, but not for ever */
        return hfsbi_sooner(conn->moved + HFSBI_LINGER_MS, conn->linger_until);
    if (hfsbi_conn_idle(conn)) return now + server->idle_ms;
    if (!r) return now + server->head_ms;
    if (hfsbi_conn_hungry(conn)) return hfsbi_conn_body_limit(conn);
    if (conn->tasks) return -1; /* the reply is the thread's now */
    if (hfsbi_reply_left(r) > 0 || r->reply == HFSBI_REPLY_FILE)
        return conn->moved + server->body_ms;
    return -1;
}

static bool hfsbi_conn_want(hfsbi_conn *conn) {
    const hfsb_request *r = conn->request;
    unsigned            want = 0;
    if (conn->lingering || hfsbi_conn_hungry(conn)) want = HFSBI_IO_READ;
    else if (!conn->eof) want = HFSBI_IO_EOF;
    if (conn->ended) want = 0;
    if (r && conn->tasks == 0 &&
        (hfsbi_reply_left(r) > 0 || r->reply == HFSBI_REPLY_FILE))
        want |= HFSBI_IO_WRITE;
    if (conn->io.known && want == conn->io.want) return true;
    return hfsbi_loop_io(conn->server->loop, &conn->io, want);
}

/* The last thing every function does that was at work on a connection. */
static void hfsbi_conn_settle(hfsbi_conn *conn) {
    bool head = !conn->request && !conn->lingering && !hfsbi_conn_idle(conn);
    conn->held = false;
    if (!conn->broken && conn->ended && !conn->request) conn->broken = true;
    if (!conn->broken) {
        /* the time for a head runs from its beginning on */
        hfsbi_conn_arm(conn, head && conn->head_timed
                                 ? conn->until
                                 : hfsbi_conn_limit(conn));
        conn->head_timed = head;
        conn->broken = !hfsbi_conn_want(conn);
    }
    if (conn->broken) hfsbi_conn_close(conn);
}

/* ---- events ---- */

/* The peer has ended its side and everything before that was read. */
static void hfsbi_conn_ended(hfsbi_conn *conn) {
    const hfsb_request *r = conn->request;
    conn->eof = conn->ended = true;
    if (conn->lingering || hfsbi_conn_idle(conn)) conn->broken = true;
    else if (!r || !r->body_done)
        hfsbi_conn_refuse(conn, 400, "The request ended before it was whole.");
}

static void hfsbi_conn_take(hfsbi_conn *conn, hfsb_str bytes) {
    if (conn->lingering) return;
    if (conn->in_len == 0) {
        hfsbi_conn_feed(conn, bytes);
    } else {
        if (!hfsbi_conn_append(conn, bytes)) conn->broken = true;
        hfsbi_conn_feed(conn, hfsb_str_make(conn->in, conn->in_len));
    }
}

/* How many bytes may be read without touching the next request; 0 when that
   is not known. */
static size_t hfsbi_conn_room(const hfsbi_conn *conn) {
    const hfsb_request *r = conn->request;
    unsigned long long  had, left;
    if (conn->lingering) return HFSBI_BLOCK;
    if (!r || r->body_done || r->head.body != HFSB_HTTP_LENGTH) return 0;
    had = r->body_len + conn->in_len;
    left = r->head.length > had ? r->head.length - had : 0;
    return left < HFSBI_BLOCK ? (size_t)left : (size_t)HFSBI_BLOCK;
}

/* Takes n bytes that were peeked at out of the kernel. Read twice they would
   be two requests. */
static void hfsbi_conn_consume(hfsbi_conn *conn, size_t n) {
    while (n > 0) {
        ssize_t k = hfsbi_conn_recv(conn, n, 0);
        if (k <= 0) {
            conn->broken = true;
            return;
        }
        n -= (size_t)k;
    }
}

/* What recv() gave. */
static ssize_t hfsbi_conn_read(hfsbi_conn *conn) {
    hfsb_server *server = conn->server;
    size_t       room = hfsbi_conn_room(conn);
    ssize_t      n = hfsbi_conn_recv(conn, room ? room : (size_t)HFSBI_BLOCK,
                                room ? 0 : MSG_PEEK);
    if (n > 0) {
        conn->moved = hfsbi_loop_now(server->loop);
        conn->peeked = room ? 0 : (size_t)n;
        hfsbi_conn_take(conn, hfsb_str_make(server->block, (size_t)n));
        if (!room) hfsbi_conn_consume(conn, (size_t)n - conn->peeked);
        conn->peeked = 0;
        hfsbi_wipe(server->block, (size_t)n); /* heads, perhaps */
    } else if (n == 0) {
        hfsbi_conn_ended(conn);
    } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
        conn->broken = true;
    }
    return n;
}

/* The peer ended its side while its request is being answered. */
static void hfsbi_conn_told_eof(hfsbi_conn *conn) {
    hfsb_request *r = conn->request;
    conn->eof = true;
    if (r && r->called && r->eof && r->reply != HFSBI_REPLY_ENDED) {
        hfsb_route_fn fn = r->eof;
        r->eof = NULL;
        fn(r->eof_user, r);
    }
}

/* What a peer sent before it went counts as it would have had it come a moment
   earlier: a command goes on. */
static void hfsbi_conn_gone(hfsbi_conn *conn) {
    while (hfsbi_conn_hungry(conn) && !conn->ended) {
        ssize_t n = hfsbi_conn_read(conn);
        if (n <= 0) break;
    }
    conn->broken = true;
}

/* What waits in its own memory, when it is time for that. */
static void hfsbi_conn_go_on(hfsbi_conn *conn) {
    hfsbi_conn_feed(conn,
                    hfsb_str_make(conn->in ? conn->in : "", conn->in_len));
    hfsbi_conn_settle(conn);
}

static void hfsbi_conn_io(hfsbi_io *io, unsigned events) {
    hfsbi_conn *conn =
        (hfsbi_conn *)(void *)((char *)io - offsetof(hfsbi_conn, io));
    conn->held = true;
    if (events & HFSBI_IO_GONE) hfsbi_conn_gone(conn);
    else if ((events & HFSBI_IO_WRITE) && conn->request)
        hfsbi_reply_writable(conn->request);
    else if (events & HFSBI_IO_READ) (void)hfsbi_conn_read(conn);
    else if (events & HFSBI_IO_EOF) hfsbi_conn_told_eof(conn);
    hfsbi_conn_go_on(conn);
}

/* The time for a body is over; what came while the loop was busy elsewhere
   still counts. */
static void hfsbi_conn_body_late(hfsbi_conn *conn) {
    long long now = hfsbi_loop_now(conn->server->loop);
    (void)hfsbi_conn_read(conn);
    if (!conn->broken && conn->request && hfsbi_conn_hungry(conn) &&
        hfsbi_conn_body_limit(conn) <= now)
        hfsbi_conn_refuse(conn, 408, "The body did not arrive in time.");
}

/* Its time is over. */
static void hfsbi_conn_late(hfsbi_conn *conn) {
    const hfsb_request *r = conn->request;
    if (conn->lingering || hfsbi_conn_idle(conn)) conn->broken = true;
    else if (r && r->reply != HFSBI_REPLY_NONE)
        conn->broken = !hfsbi_conn_drains(conn);
    else if (!r)
        hfsbi_conn_refuse(conn, 408,
                          "The head of the request did not arrive in time.");
    else if (hfsbi_conn_hungry(conn)) hfsbi_conn_body_late(conn);
}

static void hfsbi_conn_timer(hfsbi_timer *timer) {
    hfsbi_conn *conn =
        (hfsbi_conn *)(void *)((char *)timer - offsetof(hfsbi_conn, timer));
    bool late =
        conn->until >= 0 && conn->until <= hfsbi_loop_now(conn->server->loop);
    if (!conn->poked && !late) {
        hfsbi_conn_arm(conn, conn->until);
        return;
    }
    conn->held = true;
    conn->poked = false;
    if (late) hfsbi_conn_late(conn);
    hfsbi_conn_go_on(conn);
}

/* ---- the beginning ---- */

static void hfsbi_conn_peer(hfsbi_conn *conn, const struct sockaddr *peer) {
    if (peer->sa_family == AF_INET) {
        conn->family = 4;
        memcpy(conn->address,
               &((const struct sockaddr_in *)(const void *)peer)->sin_addr, 4);
    } else if (peer->sa_family == AF_INET6) {
        conn->family = 6;
        memcpy(conn->address,
               &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr,
               16);
    }
}

HFSBI_FN void hfsbi_conn_add(hfsbi_listener *listener, int fd,
                             const struct sockaddr *peer) {
    hfsb_server *server = listener->server;
    hfsbi_conn  *conn =
        (hfsbi_conn *)hfsbi_array(&server->alloc, 1, sizeof *conn);
    if (!conn) {
        server->stats.refused++;
        hfsbi_close(&fd);
        return;
    }
    memset(conn, 0, sizeof *conn);
    conn->io.fd = fd;
    conn->io.fn = hfsbi_conn_io;
    conn->timer.fn = hfsbi_conn_timer;
    conn->until = -1;
    conn->moved = hfsbi_loop_now(server->loop);
    conn->server = server;
    conn->listener = listener;
    hfsb_http_parser_init(&conn->parser, &server->limits);
    hfsbi_conn_peer(conn, peer);
    conn->next = server->conns;
    if (conn->next) conn->next->prev = conn;
    server->conns = conn;
    server->stats.open++;
    server->stats.accepted++;
    hfsbi_conn_settle(conn);
}

HFSBI_FN void hfsbi_conn_log(const hfsbi_conn  *conn,
                             hfsb_server_event *event) {
    char         text[INET6_ADDRSTRLEN] = "unix";
    hfsb_server *server = conn->server;
    if (!server->on_event) return;
    if (conn->family)
        (void)inet_ntop(conn->family == 4 ? AF_INET : AF_INET6, conn->address,
                        text, sizeof text);
    event->peer = hfsb_cstr(text);
    server->on_event(server->user, event);
}
