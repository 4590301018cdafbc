/* reply.c - a reply: its head, its body whole, in pieces, or a file.

     NONE --hfsb_reply--------------------------------> ENDED
      |  \--hfsb_reply_begin--> PIECES --hfsb_reply_end--^
      |  \--hfsbi_reply_tunnel---^
      |  \--hfsb_reply_file---> FILE ----last byte-------^
      \--hfsb_reply in a thread--> HELD --in the loop----^

   Head and small bodies go into `out`, a large body stays in its own buffer
   `out_body`; both are sent as far as the kernel takes them, the rest when the
   loop reports room. A file is sent by pool threads, since disks are slow,
   after `out` is empty.

   The functions here are called by handlers at any time. They send, record the
   state and touch the connection, which then acts when the handler has
   returned (see conn.c). If there is no memory for a reply, the connection
   breaks. */
#include "server_private.h"
#include "../core/core_private.h"

/* ---- the head ---- */

/* The field Date, written once a second. */
static hfsb_str hfsbi_reply_date(hfsb_server *server) {
    long long now = hfsbi_time_ns() / 1000000000;
    char      text[HFSB_HTTP_DATE];
    if (now != server->date_at) {
        server->date_at = now;
        hfsb_http_date(now, text);
        (void)snprintf(server->date, sizeof server->date, "Date: %s\r\n",
                       text);
    }
    return hfsb_cstr(server->date);
}

HFSBI_FN size_t hfsbi_reply_left(const hfsb_request *r) {
    return r->reply.out.len + r->reply.out_body.len - r->reply.out_at;
}

/* The peer's time to take bytes begins when there are some to take. */
static void hfsbi_reply_start_clock(hfsb_request *r) {
    if (hfsbi_reply_left(r) == 0)
        r->conn->moved = hfsbi_loop_now(r->conn->server->loop);
}

typedef enum hfsbi_framing {
    HFSBI_FRAME_LENGTH,
    HFSBI_FRAME_PIECES, /* chunked; for HTTP/1.0 until the close */
    HFSBI_FRAME_NONE    /* the status allows no body */
} hfsbi_framing;

static bool hfsbi_status_bodiless(int status) {
    return status == 204 || status == 304 || status < 200;
}

/* Valid once the head is written. */
static bool hfsbi_reply_is_bodiless(const hfsb_request *r) {
    return !r->tunnel.fn && (hfsbi_status_bodiless(r->reply.status) ||
                             hfsb_str_equal(r->head.method, HFSB_LIT("HEAD")));
}

/* HTTP/1.0 has no chunks. */
static bool hfsbi_reply_is_chunked(const hfsb_request *r) {
    return r->head.minor > 0 && !r->tunnel.fn && !r->reply.sized;
}

static void hfsbi_reply_length(hfsb_buf *s, unsigned long long length) {
    char digits[24]; /* printf would take longer than the whole head */
    hfsb_buf_append(s, HFSB_LIT("Content-Length: "));
    hfsb_buf_append(
        s, hfsb_str_make(digits, hfsbi_number_write_uint(length, digits)));
    hfsb_buf_append(s, HFSB_LIT("\r\n"));
}

/* A browser must not run or show a reply inside a page of another site, unless
   that page knows a secret path. */
static hfsb_str hfsbi_reply_policy(const hfsb_request *r) {
    const hfsbi_face *face = hfsbi_request_face(r);
    return face && face->guard == HFSBI_FACE_PATH
               ? HFSB_LIT("Cross-Origin-Resource-Policy: cross-origin\r\n")
               : HFSB_LIT("Cross-Origin-Resource-Policy: same-origin\r\n");
}

/* Writes the head; a failure leaves `out` as it was. */
static hfsb_status hfsbi_reply_head(hfsb_request *r, int status,
                                    const char *type, hfsbi_framing framing,
                                    unsigned long long length) {
    hfsb_server *server = r->conn->server;
    hfsb_buf    *out = &r->reply.out;
    size_t       mark = out->len;
    hfsb_status  st = hfsb_buf_reserve(out, HFSBI_HEAD_ROOM);
    hfsbi_reply_start_clock(r);
    if (st == HFSB_OK) st = hfsb_http_put_reply(out, status);
    if (st != HFSB_OK) return st;
    r->reply.status = status;
    if (hfsbi_status_bodiless(status)) framing = HFSBI_FRAME_NONE;
    if (server->stop.phase ||
        (framing == HFSBI_FRAME_PIECES && !hfsbi_reply_is_chunked(r)))
        r->conn->close_after = true;
    hfsb_buf_append(out, hfsbi_reply_date(server));
    hfsb_buf_append(out, hfsb_buf_str(&server->common));
    hfsb_buf_append(out, hfsbi_reply_policy(r));
    if (type && *type && out->status == HFSB_OK)
        out->status = hfsb_http_put_field(out, HFSB_LIT("Content-Type"),
                                          hfsb_cstr(type));
    if (framing == HFSBI_FRAME_LENGTH) hfsbi_reply_length(out, length);
    else if (framing == HFSBI_FRAME_PIECES && hfsbi_reply_is_chunked(r))
        hfsb_buf_append(out, HFSB_LIT("Transfer-Encoding: chunked\r\n"));
    if (r->tunnel.fn)
        hfsb_buf_append(out, HFSB_LIT("Connection: Upgrade\r\n"));
    else if (r->conn->close_after)
        hfsb_buf_append(out, HFSB_LIT("Connection: close\r\n"));
    else if (r->head.minor == 0)
        hfsb_buf_append(out, HFSB_LIT("Connection: keep-alive\r\n"));
    hfsb_buf_append(out, hfsb_buf_str(&r->reply.fields));
    hfsb_buf_append(out, HFSB_LIT("\r\n"));
    return hfsb_buf_finish(out, mark);
}

/* ---- files ---- */

/* Sends up to n bytes of the file; returns bytes sent, 0 at the end of the
   file, or -1 with errno. In a pool thread. */
static ssize_t hfsbi_file_send(hfsb_request *r, size_t n) {
    char    block[32768];
    ssize_t got;
#ifdef HFSBI_LINUX
    off_t at = (off_t)r->file.at;
    got = sendfile(r->conn->io.fd, r->file.fd, &at, n);
    if (got >= 0 || (errno != EINVAL && errno != ENOSYS)) return got;
#endif
    if (n > sizeof block) n = sizeof block;
    do got = pread(r->file.fd, block, n, (off_t)r->file.at);
    while (got < 0 && errno == EINTR);
    if (got <= 0) return got;
    return send(r->conn->io.fd, block, (size_t)got, HFSBI_MSG_NOSIGNAL);
}

/* In a pool thread, which owns r->file until file_done. */
static void hfsbi_file_run(void *user) {
    hfsbi_file_out    *file = &((hfsb_request *)user)->file;
    hfsbi_signal_guard guard;
    hfsbi_signal_guard_begin(&guard);
    file->error = 0;
    file->turn = 0;
    while (file->left > 0 && file->turn < HFSBI_FILE_TURN) {
        size_t  room = HFSBI_FILE_TURN - file->turn;
        size_t  want = file->left < room ? (size_t)file->left : room;
        ssize_t n = hfsbi_file_send((hfsb_request *)user, want);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            file->error = n < 0 ? errno : EIO; /* the file became shorter */
            break;
        }
        file->at += (unsigned long long)n;
        file->left -= (unsigned long long)n;
        file->turn += (size_t)n;
    }
    hfsbi_signal_guard_end(&guard);
}

/* The reply is complete; its last bytes may still wait in `out`. */
static void hfsbi_reply_set_ended(hfsb_request *r) {
    r->reply.state = HFSBI_REPLY_ENDED;
    hfsbi_conn_replied(r->conn);
}

/* The next turn of the file follows when the loop reports room. */
static void hfsbi_file_done(void *user, hfsb_request *r) {
    int error = r->file.error;
    (void)user;
    r->reply.sent += r->file.turn;
    if (hfsbi_request_is_gone(r)) return;
    if (r->file.turn) r->conn->moved = hfsbi_loop_now(r->conn->server->loop);
    if (r->file.left == 0) {
        hfsbi_close(&r->file.fd);
        hfsbi_reply_set_ended(r);
    } else if (!error || error == EAGAIN || error == EWOULDBLOCK) {
        hfsbi_conn_note_full(r->conn);
    } else {
        hfsbi_conn_break(r->conn);
    }
}

/* ---- sending ---- */

/* sendmsg() of the unsent bytes of both buffers. */
static ssize_t hfsbi_reply_send(hfsb_request *r) {
    const hfsbi_reply_out *o = &r->reply;
    struct iovec           v[2];
    struct msghdr          m = HFSB_INIT;
    size_t  body_at = o->out_at > o->out.len ? o->out_at - o->out.len : 0;
    ssize_t n;
    int     count = 0;
    if (o->out_at < o->out.len) {
        v[count].iov_base = o->out.ptr + o->out_at;
        v[count++].iov_len = o->out.len - o->out_at;
    }
    if (body_at < o->out_body.len) {
        v[count].iov_base = o->out_body.ptr + body_at;
        v[count++].iov_len = o->out_body.len - body_at;
    }
    m.msg_iov = v;
    m.msg_iovlen = count > 1 ? 2 : 1; /* int or size_t by system */
    do n = sendmsg(r->conn->io.fd, &m, HFSBI_MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Everything is sent: frees the memory unless it is small. */
static void hfsbi_reply_clear(hfsb_request *r) {
    r->reply.out_at = 0;
    hfsb_buf_free(&r->reply.out_body);
    if (r->reply.out.len > 4096) hfsb_buf_free(&r->reply.out);
    else hfsb_buf_truncate(&r->reply.out, 0);
}

HFSBI_FN void hfsbi_reply_flush(hfsb_request *r) {
    bool had = hfsbi_reply_left(r) > 0;
    if (r->reply.full) return;
    while (hfsbi_reply_left(r) > 0 && r->conn->state < HFSBI_CONN_BROKEN) {
        ssize_t n = hfsbi_reply_send(r);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            r->reply.full = true;
            hfsbi_conn_note_full(r->conn);
            return;
        }
        if (n < 0) hfsbi_conn_break(r->conn);
        else r->reply.out_at += (size_t)n;
        if (n > 0) r->conn->moved = hfsbi_loop_now(r->conn->server->loop);
    }
    if (r->conn->state >= HFSBI_CONN_BROKEN) return;
    if (had) hfsbi_reply_clear(r);
    if (r->reply.state == HFSBI_REPLY_FILE && !r->work.active)
        hfsbi_request_work(r, NULL, hfsbi_file_run, hfsbi_file_done, r);
}

HFSBI_FN void hfsbi_reply_writable(hfsb_request *r) {
    bool had = hfsbi_reply_left(r) > 0;
    r->reply.full = false;
    hfsbi_reply_flush(r);
    if (had && hfsbi_reply_left(r) == 0 && r->drained.fn &&
        r->reply.state == HFSBI_REPLY_PIECES &&
        r->conn->state < HFSBI_CONN_BROKEN)
        r->drained.fn(r->drained.user, r);
}

/* Without memory no reply can be made. In a thread the reply stays NONE, and
   the loop answers 500. */
static void hfsbi_reply_fail(hfsb_request *r) {
    if (!hfsbi_request_in_thread(r)) hfsb_reply_abort(r);
}

/* Sends the bytes that were just added to `out`; st: whether they were. */
static void hfsbi_reply_push(hfsb_request *r, hfsb_status st) {
    if (st != HFSB_OK) hfsbi_conn_break(r->conn);
    else hfsbi_reply_flush(r);
    hfsbi_conn_touch(r->conn);
}

/* ---- whole replies ---- */

static void hfsbi_buf_move(hfsb_buf *to, hfsb_buf *from) {
    *to = *from;
    memset(from, 0, sizeof *from);
    from->alloc = to->alloc;
}

/* Head and body; a large body is moved, a small one goes with the head. */
static void hfsbi_reply_whole(hfsb_request *r, int status, const char *type,
                              hfsb_str small, hfsb_buf *large) {
    hfsb_status st;
    bool        body;
    size_t      len = large ? large->len : small.len;
    if (!r->body.complete && !hfsbi_conn_may_discard(r->conn))
        r->conn->close_after = true; /* the rest of the body is not read */
    st = hfsbi_reply_head(r, status, type, HFSBI_FRAME_LENGTH, len);
    body = !hfsbi_reply_is_bodiless(r);
    if (body && large) hfsbi_buf_move(&r->reply.out_body, large);
    else if (body && st == HFSB_OK) st = hfsb_buf_append(&r->reply.out, small);
    if (body) r->reply.sent += len;
    hfsbi_reply_set_ended(r);
    hfsbi_reply_push(r, st);
}

/* In a thread: the head needs state of the loop, which writes it later. */
static void hfsbi_reply_hold(hfsb_request *r, int status, const char *type,
                             hfsb_buf *body) {
    if (type && *type &&
        hfsb_reply_field(r, "Content-Type", hfsb_cstr(type)) != HFSB_OK)
        return;
    hfsbi_buf_move(&r->reply.out_body, body);
    r->reply.status = status;
    r->reply.state = HFSBI_REPLY_HELD;
}

HFSBI_FN void hfsbi_reply_send_held(hfsb_request *r) {
    hfsb_buf body;
    bool     held = r->reply.state == HFSBI_REPLY_HELD;
    hfsbi_buf_move(&body, &r->reply.out_body);
    r->reply.state = HFSBI_REPLY_NONE;
    if (held) hfsbi_reply_take(r, r->reply.status, NULL, &body);
    else hfsb_reply_error(r, 500, "The handler of this route made no reply.");
    hfsb_buf_free(&body);
}

HFSBI_FN void hfsbi_reply_take(hfsb_request *r, int status, const char *type,
                               hfsb_buf *body) {
    hfsb_str bytes = hfsb_buf_str(body);
    if (r->reply.state == HFSBI_REPLY_NONE) {
        if (hfsbi_request_in_thread(r))
            hfsbi_reply_hold(r, status, type, body);
        else
            hfsbi_reply_whole(r, status, type, bytes,
                              bytes.len > HFSBI_SMALL ? body : NULL);
    }
    hfsb_buf_free(body);
}

HFSBI_FN void hfsbi_reply_detail(hfsb_request *r, int status,
                                 hfsb_str detail_json, hfsb_str error) {
    hfsb_buf body = HFSB_INIT;
    body.alloc = r->conn->server->alloc;
    if (r->conn->server->on_event && !r->why.len)
        (void)!hfsb_buf_append(&r->why, error); /* for the log only */
    hfsb_buf_append(&body, HFSB_LIT("{\"detail\":"));
    hfsb_buf_append(&body, detail_json);
    hfsb_buf_append(&body, HFSB_LIT(",\"error\":"));
    hfsbi_json_put_quoted(&body, error);
    hfsb_buf_append_byte(&body, '}');
    if (body.status == HFSB_OK)
        hfsbi_reply_take(r, status, "application/json", &body);
    else hfsbi_reply_fail(r);
    hfsb_buf_free(&body);
}

hfsb_status hfsb_reply_field(hfsb_request *request, const char *name,
                             hfsb_str value) {
    hfsb_buf   *fields = &request->reply.fields;
    size_t      mark = fields->len;
    hfsb_status st = hfsb_http_put_field(fields, hfsb_cstr(name), value);
    if (st != HFSB_OK) hfsb_buf_truncate(fields, mark); /* usable again */
    return st;
}

void hfsb_reply(hfsb_request *request, int status, const char *type,
                hfsb_str body) {
    hfsb_buf copy = HFSB_INIT;
    if (request->reply.state != HFSBI_REPLY_NONE) return;
    if (body.len <= HFSBI_SMALL && !hfsbi_request_in_thread(request)) {
        hfsbi_reply_whole(request, status, type, body, NULL);
        return;
    }
    copy.alloc = request->conn->server->alloc;
    if (hfsb_buf_append(&copy, body) != HFSB_OK) hfsbi_reply_fail(request);
    else hfsbi_reply_take(request, status, type, &copy);
}

void hfsb_reply_error(hfsb_request *request, int status, const char *format,
                      ...) {
    hfsbi_face *face = hfsbi_request_face(request);
    hfsb_buf    text = HFSB_INIT, detail = HFSB_INIT;
    va_list     ap;
    text.alloc = detail.alloc = request->conn->server->alloc;
    va_start(ap, format);
    (void)hfsbi_buf_vprintf(&text, format, ap);
    va_end(ap);
    hfsbi_json_put_quoted(&detail, hfsb_buf_str(&text));
    if (face && text.status == HFSB_OK)
        face->refuse(face, request, status, hfsb_buf_str(&text));
    else if (text.status == HFSB_OK && detail.status == HFSB_OK)
        hfsbi_reply_detail(request, status, hfsb_buf_str(&detail),
                           hfsb_buf_str(&text));
    else hfsbi_reply_fail(request);
    hfsb_buf_free(&text);
    hfsb_buf_free(&detail);
}

void hfsb_reply_json(hfsb_request *request, int status, const char *format,
                     ...) {
    hfsb_buf    body = HFSB_INIT;
    hfsb_status st;
    va_list     ap;
    body.alloc = request->conn->server->alloc;
    va_start(ap, format);
    st = hfsbi_json_vprintf(&body, format, ap);
    va_end(ap);
    if (st == HFSB_OK)
        hfsbi_reply_take(request, status, "application/json", &body);
    else hfsbi_reply_fail(request);
    hfsb_buf_free(&body);
}

void hfsb_reply_file(hfsb_request *request, int status, const char *type,
                     int fd, unsigned long long offset,
                     unsigned long long length) {
    hfsb_status st;
    if (request->reply.state != HFSBI_REPLY_NONE) {
        hfsbi_close(&fd);
        return;
    }
    st = hfsbi_reply_head(request, status, type, HFSBI_FRAME_LENGTH, length);
    request->file.fd = fd;
    request->file.at = offset;
    request->file.left = length;
    request->reply.state = HFSBI_REPLY_FILE;
    if (length == 0 || hfsbi_reply_is_bodiless(request)) {
        hfsbi_close(&request->file.fd);
        hfsbi_reply_set_ended(request);
    }
    hfsbi_reply_push(request, st);
}

/* ---- replies in pieces ---- */

void hfsb_reply_begin(hfsb_request *request, int status, const char *type) {
    hfsb_status st;
    if (request->reply.state != HFSBI_REPLY_NONE) return;
    st = hfsbi_reply_head(request, status, type, HFSBI_FRAME_PIECES, 0);
    request->reply.state = HFSBI_REPLY_PIECES;
    hfsbi_reply_push(request, st);
}

HFSBI_FN void hfsbi_reply_begin_sized(hfsb_request *request, int status,
                                      const char        *type,
                                      unsigned long long length) {
    hfsb_status st;
    if (request->reply.state != HFSBI_REPLY_NONE) return;
    st = hfsbi_reply_head(request, status, type, HFSBI_FRAME_LENGTH, length);
    request->reply.sized = true;
    request->reply.length = length;
    request->reply.state = HFSBI_REPLY_PIECES;
    hfsbi_reply_push(request, st);
}

hfsb_status hfsb_reply_write(hfsb_request *request, hfsb_str bytes) {
    hfsbi_reply_out *o = &request->reply;
    hfsb_status      st;
    if (bytes.len == 0 || o->state != HFSBI_REPLY_PIECES ||
        hfsbi_reply_is_bodiless(request))
        return HFSB_OK;
    hfsbi_reply_start_clock(request);
    if (o->out_at > HFSBI_BLOCK && o->out_at > o->out.len / 2) {
        size_t left = o->out.len - o->out_at; /* make room */
        memmove(o->out.ptr, o->out.ptr + o->out_at, left);
        hfsb_buf_truncate(&o->out, left);
        o->out_at = 0;
    }
    st = hfsbi_reply_is_chunked(request) ? hfsb_http_put_chunk(&o->out, bytes)
                                         : hfsb_buf_append(&o->out, bytes);
    o->sent += bytes.len;
    hfsbi_reply_push(request, st);
    return st;
}

HFSBI_FN void hfsbi_reply_tunnel(hfsb_request *r, const char *protocol,
                                 hfsbi_tunnel_fn fn, void *user) {
    hfsb_status st;
    if (r->reply.state != HFSBI_REPLY_NONE) return;
    st = hfsb_reply_field(r, "Upgrade", hfsb_cstr(protocol));
    r->tunnel.fn = fn;
    r->tunnel.user = user;
    if (st == HFSB_OK)
        st = hfsbi_reply_head(r, 101, NULL, HFSBI_FRAME_NONE, 0);
    r->reply.state = HFSBI_REPLY_PIECES;
    hfsbi_conn_switch(r->conn);
    hfsbi_reply_push(r, st);
}

size_t hfsb_reply_waiting(const hfsb_request *request) {
    return hfsbi_reply_left(request);
}

void hfsb_reply_on_drained(hfsb_request *request, hfsb_route_fn fn,
                           void *user) {
    request->drained.fn = fn;
    request->drained.user = user;
}

void hfsb_reply_end(hfsb_request *request) {
    hfsb_status st = HFSB_OK;
    if (request->reply.state != HFSBI_REPLY_PIECES) return;
    if (hfsbi_reply_is_chunked(request) && !hfsbi_reply_is_bodiless(request))
        st = hfsb_http_put_chunk(&request->reply.out, hfsb_str_make("", 0));
    if (request->reply.sized && !hfsbi_reply_is_bodiless(request) &&
        request->reply.sent != request->reply.length)
        hfsbi_conn_break(request->conn);
    hfsbi_reply_set_ended(request);
    hfsbi_reply_push(request, st);
}

void hfsb_reply_abort(hfsb_request *request) {
    request->reply.state = HFSBI_REPLY_ENDED;
    hfsbi_conn_break(request->conn);
}
