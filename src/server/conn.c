/* conn.c - a connection: bytes in, one request after the other.

           byte        head complete       body complete
     IDLE ------> HEAD ------------> BODY --------------> WORK
      ^                         pause| ^resume              |
      |                              v |                    | reply complete
      |                            PAUSED                   |
      |                              |   reply complete     v
      |                              +------------------> REPLY <-- TUNNEL
      |  body complete, keep-alive                          | all of it sent
      +-----------------------------------------------------+
      |                   a short rest of the body is due   |
      +--- REPLY <-------------------------------- DISCARD <+
                          unread input, and this reply      |
                          is the last one          LINGER <-+
     any state --> BROKEN --> CLOSED

   A handler may turn WORK into TUNNEL, where bytes are not parsed but passed
   on, until it ends the reply.

   A reply may begin while the body is still arriving; the reading side is the
   state drawn here, the sending side is request->reply.state.

   Deadlines: IDLE idle_ms; HEAD head_ms in all; BODY body_ms without a byte,
   and min_rate after body_ms, or head_ms in all for a body that is discarded
   or whose sender has no accepted token; sending body_ms without progress;
   PAUSED, WORK and TUNNEL have none, nor has sending in a patient tunnel.

   Callbacks of the loop and the reply functions change the state and touch the
   connection. hfsbi_conns_settle() acts on it when no handler is running: so
   no handler ever loses its connection, or meets the next request, in the
   middle of a call.

   Bytes that follow a request stay in the kernel until it is answered, and
   half a head until the rest comes: they may hold a token, and a command can
   read the memory of its own user's processes. The end of a head is not known
   in advance, so a head is peeked at, and only the bytes that were used are
   taken out. */
#include "server_private.h"

/* ---- states ---- */

/* BROKEN and CLOSED are final. */
static void hfsbi_conn_enter(hfsbi_conn *conn, hfsbi_conn_state state) {
    if (conn->state >= HFSBI_CONN_BROKEN && state < HFSBI_CONN_CLOSED) return;
    conn->state = state;
    conn->since = hfsbi_loop_now(conn->server->loop);
}

HFSBI_FN void hfsbi_conn_touch(hfsbi_conn *conn) {
    hfsb_server *server = conn->server;
    if (conn->touched_at || conn->state == HFSBI_CONN_CLOSED) return;
    conn->touched_next = server->touched;
    if (server->touched) server->touched->touched_at = &conn->touched_next;
    conn->touched_at = &server->touched;
    server->touched = conn;
}

static void hfsbi_conn_untouch(hfsbi_conn *conn) {
    if (!conn->touched_at) return;
    *conn->touched_at = conn->touched_next;
    if (conn->touched_next) conn->touched_next->touched_at = conn->touched_at;
    conn->touched_at = NULL;
}

HFSBI_FN void hfsbi_conn_break(hfsbi_conn *conn) {
    hfsbi_conn_enter(conn, HFSBI_CONN_BROKEN);
    hfsbi_conn_touch(conn);
}

HFSBI_FN void hfsbi_conn_pause(hfsbi_conn *conn) {
    if (conn->state != HFSBI_CONN_BODY) return;
    conn->state = HFSBI_CONN_PAUSED; /* `since` stays that of the body */
    conn->request->body.paused_at = hfsbi_loop_now(conn->server->loop);
}

HFSBI_FN bool hfsbi_conn_resume(hfsbi_conn *conn) {
    long long now = hfsbi_loop_now(conn->server->loop);
    if (conn->state != HFSBI_CONN_PAUSED) return false;
    conn->state = HFSBI_CONN_BODY;
    /* the peer could not send during the pause */
    conn->since += now - conn->request->body.paused_at;
    conn->moved = now;
    hfsbi_conn_touch(conn);
    return true;
}

HFSBI_FN void hfsbi_keepalive(int fd) {
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
#if defined(TCP_KEEPIDLE) && defined(TCP_KEEPINTVL) && defined(TCP_KEEPCNT)
    { /* on other systems, and for a Unix socket, the default is enough */
        int idle = 60, every = 15, tries = 4;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
    }
#endif
}

HFSBI_FN void hfsbi_conn_switch(hfsbi_conn *conn) {
    conn->close_after = true;
    hfsbi_keepalive(conn->io.fd);
    hfsbi_conn_enter(conn, HFSBI_CONN_TUNNEL);
}

HFSBI_FN void hfsbi_conn_replied(hfsbi_conn *conn) {
    if (conn->state >= HFSBI_CONN_BODY && conn->state <= HFSBI_CONN_TUNNEL)
        hfsbi_conn_enter(conn, HFSBI_CONN_REPLY);
}

/* True while received bytes may be parsed. */
static bool hfsbi_conn_parses(const hfsbi_conn *conn) {
    return conn->state == HFSBI_CONN_IDLE || conn->state == HFSBI_CONN_HEAD ||
           conn->state == HFSBI_CONN_BODY || conn->state == HFSBI_CONN_DISCARD;
}

/* True while received bytes go to the handler of a tunnel. */
static bool hfsbi_conn_passes(const hfsbi_conn *conn) {
    return conn->state == HFSBI_CONN_TUNNEL && !conn->request->tunnel.paused;
}

/* True while the loop, not a thread, has bytes to send. */
static bool hfsbi_conn_sends(const hfsbi_conn *conn) {
    const hfsb_request *r = conn->request;
    if (!r || hfsbi_request_in_thread(r)) return false;
    if (r->reply.state == HFSBI_REPLY_FILE) return !r->work.active;
    return hfsbi_reply_left(r) > 0;
}

HFSBI_FN bool hfsbi_conn_is_unwanted(const hfsbi_conn *conn) {
    return conn->state == HFSBI_CONN_DISCARD ||
           (conn->server->access.has_token && !conn->request->trusted);
}

/* ---- the end ---- */

HFSBI_FN void hfsbi_conn_free(hfsbi_conn *conn) {
    hfsb_server *server = conn->server;
    if (conn->request) hfsbi_request_free(conn->request);
    hfsbi_close(&conn->io.fd);
    if (conn->prev) conn->prev->next = conn->next;
    else server->conns = conn->next;
    if (conn->next) conn->next->prev = conn->prev;
    hfsb_secret_wipe(conn->in.ptr, conn->in.len);
    hfsbi_array_free(&server->alloc, conn->in.ptr, conn->in.cap, 1);
    hfsbi_array_free(&server->alloc, conn, 1, sizeof *conn);
}

HFSBI_FN void hfsbi_conn_close(hfsbi_conn *conn) {
    hfsb_server *server = conn->server;
    hfsbi_conn_enter(conn, HFSBI_CONN_CLOSED);
    hfsbi_conn_untouch(conn);
    hfsbi_loop_io_forget(server->loop, &conn->io);
    hfsbi_loop_timer_clear(server->loop, &conn->timer);
    server->stats.open--;
    if (conn->request) hfsbi_request_call_gone(conn->request);
    if (conn->request && conn->request->work.active) {
        /* a thread that sends must not wait for a peer that does not read */
        (void)shutdown(conn->io.fd, SHUT_RDWR);
        if (!hfsbi_request_in_thread(conn->request))
            conn->request->reply.state = HFSBI_REPLY_ENDED;
    } else {
        hfsbi_conn_free(conn);
    }
    hfsbi_server_accept(server, true);
}

/* ---- what the kernel still has to send ---- */

/* Bytes that wait in the kernel for the peer; -1 if the system cannot report
   that. */
static int hfsbi_conn_queue(const hfsbi_conn *conn) {
    int n = -1;
#ifdef TIOCOUTQ
    if (ioctl(conn->io.fd, TIOCOUTQ, &n) != 0) n = -1;
#endif
    return n;
}

HFSBI_FN void hfsbi_conn_note_full(hfsbi_conn *conn) {
    conn->queued = hfsbi_conn_queue(conn);
}

/* True if the peer took bytes since the last look. A slow reader empties the
   kernel's buffer for a long time before the kernel takes more from us. */
static bool hfsbi_conn_drains(hfsbi_conn *conn) {
    int  now = hfsbi_conn_queue(conn);
    bool fewer = now >= 0 && now < conn->queued;
    conn->queued = now;
    if (fewer) conn->moved = hfsbi_loop_now(conn->server->loop);
    return fewer;
}

/* ---- received bytes ---- */

static bool hfsbi_conn_append(hfsbi_conn *conn, hfsb_str more) {
    const hfsb_alloc *alloc = &conn->server->alloc;
    hfsbi_unread     *in = &conn->in;
    size_t            need = in->len + more.len;
    if (more.len == 0) return true;
    if (need > in->cap) {
        size_t cap = need < 2 * in->cap ? 2 * in->cap : need;
        char  *grown = (char *)hfsbi_array(alloc, cap, 1);
        if (!grown) return false;
        if (in->len) memcpy(grown, in->ptr, in->len);
        hfsb_secret_wipe(in->ptr, in->len);
        hfsbi_array_free(alloc, in->ptr, in->cap, 1);
        in->ptr = grown;
        in->cap = cap;
    }
    memcpy(in->ptr + in->len, more.ptr, more.len);
    in->len = need;
    return true;
}

/* Keeps `rest`, a part of conn->in, and wipes the other bytes. */
static void hfsbi_conn_keep(hfsbi_conn *conn, hfsb_str rest) {
    hfsbi_unread *in = &conn->in;
    if (rest.len == in->len) return;
    if (rest.len) memmove(in->ptr, rest.ptr, rest.len);
    hfsb_secret_wipe(in->ptr + rest.len, in->len - rest.len);
    in->len = rest.len;
    if (in->len) return;
    hfsbi_array_free(&conn->server->alloc, in->ptr, in->cap, 1);
    in->ptr = NULL;
    in->cap = 0;
}

/* ---- events of the parser ---- */

/* Answers an invalid or incomplete request; the connection ends after that. */
static void hfsbi_conn_refuse(hfsbi_conn *conn, int status,
                              const char *sentence) {
    hfsb_http_head none = HFSB_INIT;
    hfsb_request  *r = conn->request;
    conn->close_after = true;
    none.minor = 1;
    if (!r) {
        conn->request = r =
            hfsbi_request_new(conn, &none, hfsb_str_make("", 0));
        hfsbi_conn_enter(conn, HFSBI_CONN_WORK);
    } else if (r->reply.state == HFSBI_REPLY_NONE) {
        hfsbi_request_call_gone(r);
    }
    if (r && r->reply.state == HFSBI_REPLY_NONE)
        hfsb_reply_error(r, status, "%s", sentence);
    else hfsbi_conn_break(conn);
}

static void hfsbi_conn_take_head(hfsbi_conn *conn, const hfsb_http_head *head,
                                 hfsb_str raw) {
    conn->request = hfsbi_request_new(conn, head, raw);
    hfsb_secret_wipe((void *)(uintptr_t)raw.ptr, raw.len);
    if (!conn->request) {
        hfsbi_conn_break(conn);
        return;
    }
    if (!head->keep_alive || conn->server->stop.phase)
        conn->close_after = true;
    hfsbi_conn_enter(conn, HFSBI_CONN_BODY);
    hfsbi_request_check(conn->request);
}

static void hfsbi_conn_end_body(hfsbi_conn *conn) {
    conn->request->body.complete = true;
    if (conn->state == HFSBI_CONN_DISCARD) {
        hfsbi_conn_enter(conn, HFSBI_CONN_REPLY);
    } else {
        hfsbi_conn_enter(conn, HFSBI_CONN_WORK);
        hfsbi_request_handle(conn->request);
    }
}

/* Takes one event out of *data; false if more bytes are needed. */
static bool hfsbi_conn_event(hfsbi_conn *conn, hfsb_str *data) {
    hfsb_server    *server = conn->server;
    hfsb_http_head  head;
    hfsb_err        err;
    hfsb_str        piece = HFSB_INIT;
    size_t          used = 0;
    hfsb_http_event event = hfsb_http_next(
        &conn->parser, *data, server->fields, server->limits.http.max_fields,
        &head, &piece, &used, &err);
    switch (event) {
    case HFSB_HTTP_MORE: /* trailers, which are ignored */
        hfsb_secret_wipe((void *)(uintptr_t)data->ptr, used);
        break;
    case HFSB_HTTP_HEAD:
        hfsbi_conn_take_head(conn, &head, hfsb_str_slice(*data, 0, used));
        break;
    case HFSB_HTTP_BODY: hfsbi_request_add_body(conn->request, piece); break;
    case HFSB_HTTP_END:
        hfsb_secret_wipe((void *)(uintptr_t)data->ptr, used);
        hfsbi_conn_end_body(conn);
        break;
    case HFSB_HTTP_BAD:
        if (!conn->request) /* a head, which may hold a token */
            hfsb_secret_wipe((void *)(uintptr_t)data->ptr, data->len);
        hfsbi_conn_refuse(conn, hfsb_http_parser_status(&conn->parser),
                          err.msg);
        break;
    }
    *data = hfsb_str_slice(*data, used, data->len);
    return event != HFSB_HTTP_MORE;
}

/* Passes all of *data to the handler of a tunnel. The bytes are in the
   server's block or in conn->in, so they may be changed. */
static bool hfsbi_conn_pass(hfsbi_conn *conn, hfsb_str *data) {
    hfsbi_tunnel *tunnel = &conn->request->tunnel;
    hfsb_str      bytes = *data;
    data->len = 0;
    if (!bytes.len) return false;
    tunnel->fn(tunnel->user, conn->request, (char *)(uintptr_t)bytes.ptr,
               bytes.len);
    return true;
}

/* ---- one request after the other ---- */

HFSBI_FN bool hfsbi_conn_may_discard(const hfsbi_conn *conn) {
    const hfsb_http_head *head = &conn->request->head;
    if (conn->close_after || head->body == HFSB_HTTP_CHUNKED) return false;
    return head->body == HFSB_HTTP_NO_BODY || head->length == 0 ||
           (!head->expect_continue && head->length <= HFSBI_DISCARD);
}

/* True if the kernel has bytes of the peer that were not peeked at. */
static bool hfsbi_conn_has_unread(const hfsbi_conn *conn) {
    char byte;
    return conn->peeked == 0 && recv(conn->io.fd, &byte, 1, MSG_PEEK) > 0;
}

/* Out of REPLY, once everything is sent; unread: there are received bytes. */
static void hfsbi_conn_finish(hfsbi_conn *conn, bool unread) {
    bool whole = conn->request->body.complete;
    if (conn->server->stop.phase) conn->close_after = true;
    if (!whole && hfsbi_conn_may_discard(conn)) {
        hfsbi_conn_enter(conn, HFSBI_CONN_DISCARD);
        return;
    }
    hfsbi_request_free(conn->request);
    conn->request = NULL;
    if (whole && !conn->close_after) {
        hfsbi_conn_enter(conn, HFSBI_CONN_IDLE);
    } else if (conn->input == HFSBI_INPUT_ENDED ||
               (whole && !unread && !hfsbi_conn_has_unread(conn))) {
        hfsbi_conn_break(conn);
    } else {
        /* closing with unread bytes would make the kernel send a reset, which
           may overtake the reply */
        hfsbi_conn_enter(conn, HFSBI_CONN_LINGER);
        conn->moved = conn->since;
        (void)shutdown(conn->io.fd, SHUT_WR);
    }
}

/* Sets how many bytes of half a head stay in the kernel; false if the kernel
   cannot wait for more bytes than these. */
static bool hfsbi_conn_hold(hfsbi_conn *conn, size_t n) {
    int least = (int)n + 1;
    if (n == conn->held) return true;
    if (setsockopt(conn->io.fd, SOL_SOCKET, SO_RCVLOWAT, &least,
                   sizeof least) != 0)
        return false;
    conn->held = n;
    return true;
}

/* After bytes were peeked at, `left` of which are not parsed: leaves half a
   head in the kernel, unless it is as long as a block, or no byte has come
   since the last look, which means that the kernel does not wait for more. */
static void hfsbi_conn_hold_head(hfsbi_conn *conn, size_t left) {
    bool half = hfsbi_conn_parses(conn) && !conn->request && !conn->in.len &&
                conn->peeked > conn->held && conn->peeked < HFSBI_BLOCK;
    if (hfsbi_conn_hold(conn, half ? left : 0) && half) return;
    if (hfsbi_conn_parses(conn)) conn->peeked = 0; /* take it */
}

/* Parses data until it is used up or must wait; returns the bytes to keep. */
static hfsb_str hfsbi_conn_feed(hfsbi_conn *conn, hfsb_str data) {
    bool more = true;
    while (more && conn->state < HFSBI_CONN_BROKEN) {
        const hfsb_request *r = conn->request;
        if (conn->state == HFSBI_CONN_REPLY && hfsbi_reply_left(r) == 0 &&
            !r->work.active)
            hfsbi_conn_finish(conn, data.len > 0);
        else if (hfsbi_conn_passes(conn)) more = hfsbi_conn_pass(conn, &data);
        else
            more = hfsbi_conn_parses(conn) &&
                   (data.len || !hfsb_http_parser_idle(&conn->parser)) &&
                   hfsbi_conn_event(conn, &data);
    }
    if (conn->state >= HFSBI_CONN_LINGER) data.len = 0;
    if (conn->peeked) hfsbi_conn_hold_head(conn, data.len);
    if (conn->peeked > data.len) conn->peeked = data.len;
    data.len -= conn->peeked; /* these stay in the kernel */
    return data;
}

/* Between requests: IDLE, or HEAD as soon as more than empty lines came. */
static void hfsbi_conn_note_head(hfsbi_conn *conn) {
    bool idle = (conn->in.len == 0 && conn->held == 0) ||
                hfsb_http_parser_end(&conn->parser);
    if (conn->state == HFSBI_CONN_IDLE && !idle)
        hfsbi_conn_enter(conn, HFSBI_CONN_HEAD);
    else if (conn->state == HFSBI_CONN_HEAD && idle)
        hfsbi_conn_enter(conn, HFSBI_CONN_IDLE);
}

/* Continues with bytes that were received earlier. */
static void hfsbi_conn_feed_unread(hfsbi_conn *conn) {
    hfsb_str in = HFSB_LIT("");
    if (conn->in.len) in = hfsb_str_make(conn->in.ptr, conn->in.len);
    hfsbi_conn_keep(conn, hfsbi_conn_feed(conn, in));
    hfsbi_conn_note_head(conn);
}

/* Takes bytes that were just received into the server's block. */
static void hfsbi_conn_take(hfsbi_conn *conn, hfsb_str bytes) {
    bool first = conn->in.len == 0; /* parsed in place, the rest is kept */
    if (conn->state == HFSBI_CONN_LINGER) return;
    if (first) bytes = hfsbi_conn_feed(conn, bytes);
    if (!hfsbi_conn_append(conn, bytes)) hfsbi_conn_break(conn);
    if (first) hfsbi_conn_note_head(conn);
    else hfsbi_conn_feed_unread(conn);
}

/* ---- reading ---- */

/* Tells the handler that the peer has shut down its sending side. */
static void hfsbi_conn_call_eof(hfsbi_conn *conn) {
    hfsb_request *r = conn->request;
    hfsb_route_fn fn = r ? r->eof.fn : NULL;
    if (!fn || r->reply.state == HFSBI_REPLY_ENDED) return;
    r->eof.fn = NULL;
    fn(r->eof.user, r);
}

/* The peer has ended its side, and everything before that was read. */
static void hfsbi_conn_take_end(hfsbi_conn *conn) {
    conn->input = HFSBI_INPUT_ENDED;
    if (conn->state == HFSBI_CONN_LINGER || conn->state == HFSBI_CONN_IDLE ||
        (conn->state == HFSBI_CONN_TUNNEL && !conn->request->eof.fn))
        hfsbi_conn_break(conn);
    else if (conn->state == HFSBI_CONN_TUNNEL) hfsbi_conn_call_eof(conn);
    else if (!conn->request || !conn->request->body.complete)
        hfsbi_conn_refuse(conn, 400, "The request ended before it was whole.");
}

/* recv() into the server's block. */
static ssize_t hfsbi_conn_recv(hfsbi_conn *conn, size_t most, int flags) {
    ssize_t n;
    do n = recv(conn->io.fd, conn->server->block, most, flags);
    while (n < 0 && errno == EINTR);
    return n;
}

/* How many bytes may be read without touching the next request; 0 if that is
   unknown. */
static size_t hfsbi_conn_room(const hfsbi_conn *conn) {
    const hfsb_request *r = conn->request;
    unsigned long long  had, left;
    if (conn->state == HFSBI_CONN_LINGER || conn->state == HFSBI_CONN_TUNNEL)
        return HFSBI_BLOCK;
    if (!r || r->body.complete || r->head.body != HFSB_HTTP_LENGTH) return 0;
    had = r->body.received + conn->in.len;
    left = r->head.length > had ? r->head.length - had : 0;
    return left < HFSBI_BLOCK ? (size_t)left : (size_t)HFSBI_BLOCK;
}

/* Takes n bytes that were peeked at out of the kernel: read again they would
   be a second request. */
static void hfsbi_conn_consume(hfsbi_conn *conn, size_t n) {
    while (n > 0) {
        ssize_t k = hfsbi_conn_recv(conn, n, 0);
        if (k <= 0) {
            hfsbi_conn_break(conn);
            return;
        }
        n -= (size_t)k;
    }
}

/* Reads once and parses; returns the result of recv(). */
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
        /* it may have held a head */
        hfsb_secret_wipe(server->block, (size_t)n);
    } else if (n == 0) {
        hfsbi_conn_take_end(conn);
    } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
        hfsbi_conn_break(conn);
    }
    return n;
}

/* The peer shut down its sending side while its request is being answered. */
static void hfsbi_conn_take_eof(hfsbi_conn *conn) {
    conn->input = HFSBI_INPUT_SHUT;
    /* what a tunnel has not read yet comes first */
    if (conn->state != HFSBI_CONN_TUNNEL) hfsbi_conn_call_eof(conn);
}

/* The peer is gone. A request that it sent before is still handled, as if it
   had arrived a moment earlier: its command runs. */
static void hfsbi_conn_take_gone(hfsbi_conn *conn) {
    while ((hfsbi_conn_parses(conn) || hfsbi_conn_passes(conn)) &&
           conn->input != HFSBI_INPUT_ENDED && hfsbi_conn_read(conn) > 0)
        continue;
    hfsbi_conn_break(conn);
}

static void hfsbi_conn_io(hfsbi_io *io, unsigned events) {
    hfsbi_conn *conn =
        (hfsbi_conn *)(void *)((char *)io - offsetof(hfsbi_conn, io));
    if (events & HFSBI_IO_GONE) hfsbi_conn_take_gone(conn);
    else if ((events & HFSBI_IO_WRITE) && conn->request)
        hfsbi_reply_writable(conn->request);
    else if (events & HFSBI_IO_READ) (void)hfsbi_conn_read(conn);
    else if (events & HFSBI_IO_EOF) hfsbi_conn_take_eof(conn);
    hfsbi_conn_touch(conn);
}

/* ---- deadlines ---- */

/* When the next byte of the body, or all of it, is overdue. Each byte buys
   time at min_rate. */
static long long hfsbi_conn_body_deadline(const hfsbi_conn *conn) {
    const hfsbi_limits *limits = &conn->server->limits;
    unsigned long long  rate = limits->min_rate;
    unsigned long long  got = conn->request->body.received;
    long long           ms = limits->body_ms;
    long long paid = (long long)(got / rate * 1000 + got % rate * 1000 / rate);
    if (hfsbi_conn_is_unwanted(conn)) ms = limits->head_ms;
    else if (paid > ms) ms = paid;
    return hfsbi_earlier(conn->moved + limits->body_ms, conn->since + ms);
}

/* -1: never. */
static long long hfsbi_conn_deadline(const hfsbi_conn *conn) {
    const hfsbi_limits *limits = &conn->server->limits;
    switch (conn->state) {
    case HFSBI_CONN_IDLE: return conn->since + limits->idle_ms;
    case HFSBI_CONN_HEAD: return conn->since + limits->head_ms;
    case HFSBI_CONN_BODY:
    case HFSBI_CONN_DISCARD: return hfsbi_conn_body_deadline(conn);
    case HFSBI_CONN_LINGER: /* while bytes come, but not forever */
        return hfsbi_earlier(conn->moved + HFSBI_LINGER_MS,
                             conn->since + limits->head_ms);
    default: break;
    }
    if (conn->request && conn->request->tunnel.patient) return -1;
    return hfsbi_conn_sends(conn) ? conn->moved + limits->body_ms : -1;
}

/* Reads once more before the body counts as late: bytes that came while the
   loop was busy elsewhere are in time. */
static void hfsbi_conn_expire_body(hfsbi_conn *conn) {
    (void)hfsbi_conn_read(conn);
    if (conn->state == HFSBI_CONN_BODY &&
        hfsbi_conn_body_deadline(conn) <= hfsbi_loop_now(conn->server->loop))
        hfsbi_conn_refuse(conn, 408, "The body did not arrive in time.");
}

/* The deadline has passed. */
static void hfsbi_conn_expire(hfsbi_conn *conn) {
    const hfsb_request *r = conn->request;
    if (conn->state == HFSBI_CONN_HEAD) {
        hfsbi_conn_refuse(conn, 408,
                          "The head of the request did not arrive in time.");
    } else if (conn->state == HFSBI_CONN_BODY &&
               r->reply.state == HFSBI_REPLY_NONE) {
        hfsbi_conn_expire_body(conn);
    } else if (!r || !hfsbi_conn_drains(conn)) {
        hfsbi_conn_break(conn);
    }
}

static void hfsbi_conn_timer(hfsbi_timer *timer) {
    hfsbi_conn *conn =
        (hfsbi_conn *)(void *)((char *)timer - offsetof(hfsbi_conn, timer));
    long long at = hfsbi_conn_deadline(conn);
    if (at >= 0 && at <= hfsbi_loop_now(conn->server->loop))
        hfsbi_conn_expire(conn);
    hfsbi_conn_touch(conn); /* sets the timer again */
}

/* ---- settling ---- */

/* Registers what the connection waits for; false without memory. */
static bool hfsbi_conn_wait(hfsbi_conn *conn) {
    long long at = hfsbi_conn_deadline(conn);
    unsigned  want = 0;
    if (conn->input == HFSBI_INPUT_ENDED) want = 0;
    else if (hfsbi_conn_parses(conn) || hfsbi_conn_passes(conn) ||
             conn->state == HFSBI_CONN_LINGER)
        want = HFSBI_IO_READ;
    else if (conn->input == HFSBI_INPUT_OPEN) want = HFSBI_IO_EOF;
    if (hfsbi_conn_sends(conn)) want |= HFSBI_IO_WRITE;
    /* A timer that is set too early only looks at the deadline again: cheaper
       than moving it with each request. */
    if (at >= 0 && (!conn->timer.set || at < conn->timer.at))
        hfsbi_loop_timer(conn->server->loop, &conn->timer, at);
    if (conn->io.known && want == conn->io.want) return true;
    return hfsbi_loop_io(conn->server->loop, &conn->io, want);
}

static void hfsbi_conn_settle(hfsbi_conn *conn) {
    hfsbi_conn_feed_unread(conn);
    hfsbi_conn_untouch(conn); /* handlers that feed called have returned */
    if (conn->state >= HFSBI_CONN_BROKEN ||
        (conn->input == HFSBI_INPUT_ENDED && !conn->request) ||
        !hfsbi_conn_wait(conn))
        hfsbi_conn_close(conn);
}

HFSBI_FN void hfsbi_conns_settle(hfsb_server *server) {
    while (server->touched) hfsbi_conn_settle(server->touched);
}

/* ---- the beginning ---- */

/* An IPv4 address received over an IPv6 socket counts as IPv4. */
HFSBI_FN hfsbi_peer hfsbi_peer_of(const struct sockaddr *address) {
    const struct sockaddr_in *four =
        (const struct sockaddr_in *)(const void *)address;
    const struct sockaddr_in6 *six =
        (const struct sockaddr_in6 *)(const void *)address;
    hfsbi_peer peer = HFSB_INIT;
    if (address->sa_family == AF_INET) {
        peer.family = 4;
        memcpy(peer.address, &four->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        bool mapped = IN6_IS_ADDR_V4MAPPED(&six->sin6_addr);
        peer.family = mapped ? 4 : 6;
        memcpy(peer.address, (const char *)&six->sin6_addr + (mapped ? 12 : 0),
               mapped ? 4 : 16);
    }
    return peer;
}

HFSBI_FN void hfsbi_conn_add(hfsbi_listener *listener, int fd,
                             const hfsbi_peer *peer) {
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
    conn->server = server;
    conn->listener = listener;
    conn->since = conn->moved = hfsbi_loop_now(server->loop);
    hfsb_http_parser_init(&conn->parser, &server->limits.http);
    conn->peer = *peer;
    conn->next = server->conns;
    if (conn->next) conn->next->prev = conn;
    server->conns = conn;
    server->stats.open++;
    conn->serial = ++server->stats.accepted;
    hfsbi_conn_touch(conn);
}

HFSBI_FN void hfsbi_conn_log(const hfsbi_conn  *conn,
                             hfsb_server_event *event) {
    char         text[INET6_ADDRSTRLEN] = "unix";
    hfsb_server *server = conn->server;
    if (!server->on_event) return;
    if (conn->peer.family)
        (void)inet_ntop(conn->peer.family == 4 ? AF_INET : AF_INET6,
                        conn->peer.address, text, sizeof text);
    event->peer = hfsb_cstr(text);
    server->on_event(server->user, event);
}
