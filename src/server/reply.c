/* reply.c - a reply: its head, its body whole, in pieces, or a file. */
#include "server_private.h"
#include "../core/core_private.h"

static void hfsbi_reply_file_step(hfsb_request *r);

/* ---- the head ---- */

/* The field Date, written once a second. */
static hfsb_str hfsbi_reply_date(hfsb_server *server) {
    long long now = (long long)time(NULL);
    char      text[HFSB_HTTP_DATE];
    if (now != server->date_at) {
        server->date_at = now;
        hfsb_http_date(now, text);
        (void)snprintf(server->date, sizeof server->date, "Date: %s\r\n",
                       text);
    }
    return hfsb_cstr(server->date);
}

/* Something is about to wait for the peer: its time begins now. */
static void hfsbi_reply_starts(hfsb_request *r) {
    if (hfsbi_reply_left(r) == 0)
        r->conn->moved = hfsbi_loop_now(r->conn->server->loop);
}

typedef enum hfsbi_framing {
    HFSBI_FRAME_LENGTH,
    HFSBI_FRAME_PIECES, /* chunked, or for HTTP/1.0 until the end */
    HFSBI_FRAME_NONE    /* the status allows no body */
} hfsbi_framing;

static bool hfsbi_status_bodiless(int status) {
    return status == 204 || status == 304 || status < 200;
}

/* Once its head is made. */
static bool hfsbi_reply_bodiless(const hfsb_request *r) {
    return hfsbi_status_bodiless(r->status) ||
           hfsb_str_equal(r->head.method, HFSB_LIT("HEAD"));
}

static void hfsbi_reply_length(hfsb_buf *s, unsigned long long length) {
    char digits[24]; /* printf would cost more than all the rest */
    hfsb_buf_append(s, HFSB_LIT("Content-Length: "));
    hfsb_buf_append(
        s, hfsb_str_make(digits, hfsbi_number_write_uint(length, digits)));
    hfsb_buf_append(s, HFSB_LIT("\r\n"));
}

static hfsb_status hfsbi_reply_head(hfsb_request *r, int status,
                                    const char *type, hfsbi_framing framing,
                                    unsigned long long length) {
    hfsb_server *server = r->conn->server;
    size_t       mark;
    hfsb_status  st;
    hfsbi_reply_starts(r);
    mark = r->out.len;
    st = hfsb_buf_reserve(&r->out, HFSBI_HEAD_ROOM);
    if (st == HFSB_OK) st = hfsb_http_put_reply(&r->out, status);
    if (st != HFSB_OK) return st;
    r->status = status;
    if (hfsbi_status_bodiless(status)) framing = HFSBI_FRAME_NONE;
    r->chunked = framing == HFSBI_FRAME_PIECES && r->head.minor > 0;
    if (framing == HFSBI_FRAME_PIECES && !r->chunked) r->conn->closing = true;
    hfsb_buf_append(&r->out, hfsbi_reply_date(server));
    hfsb_buf_append(&r->out, hfsb_buf_str(&server->common));
    if (type && *type && r->out.status == HFSB_OK)
        r->out.status = hfsb_http_put_field(&r->out, HFSB_LIT("Content-Type"),
                                            hfsb_cstr(type));
    if (framing == HFSBI_FRAME_LENGTH) hfsbi_reply_length(&r->out, length);
    if (r->chunked)
        hfsb_buf_append(&r->out, HFSB_LIT("Transfer-Encoding: chunked\r\n"));
    if (server->phase) r->conn->closing = true;
    if (r->conn->closing)
        hfsb_buf_append(&r->out, HFSB_LIT("Connection: close\r\n"));
    else if (r->head.minor == 0)
        hfsb_buf_append(&r->out, HFSB_LIT("Connection: keep-alive\r\n"));
    hfsb_buf_append(&r->out, hfsb_buf_str(&r->fields));
    hfsb_buf_append(&r->out, HFSB_LIT("\r\n"));
    return hfsb_buf_finish(&r->out, mark);
}

/* ---- sending ---- */

HFSBI_FN size_t hfsbi_reply_left(const hfsb_request *r) {
    return r->out.len + r->out_body.len - r->out_at;
}

/* sendmsg() of what is left of both buffers. */
static ssize_t hfsbi_reply_send(hfsb_request *r) {
    struct iovec  v[2];
    struct msghdr m = HFSB_INIT;
    size_t  body_at = r->out_at > r->out.len ? r->out_at - r->out.len : 0;
    ssize_t n;
    int     count = 0;
    if (r->out_at < r->out.len) {
        v[count].iov_base = r->out.ptr + r->out_at;
        v[count++].iov_len = r->out.len - r->out_at;
    }
    if (body_at < r->out_body.len) {
        v[count].iov_base = r->out_body.ptr + body_at;
        v[count++].iov_len = r->out_body.len - body_at;
    }
    if (count == 1) { /* the usual case, and quicker */
        do n = send(r->conn->io.fd, v[0].iov_base, v[0].iov_len, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n;
    }
    m.msg_iov = v;
    m.msg_iovlen = 2;
    do n = sendmsg(r->conn->io.fd, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n;
}

/* All is sent: the memory is given back unless it is little. */
static void hfsbi_reply_sent_all(hfsb_request *r) {
    r->out_at = 0;
    hfsb_buf_free(&r->out_body);
    if (r->out.len > 4096) hfsb_buf_free(&r->out);
    else hfsb_buf_truncate(&r->out, 0);
}

HFSBI_FN void hfsbi_reply_flush(hfsb_request *r) {
    bool had = hfsbi_reply_left(r) > 0;
    while (hfsbi_reply_left(r) > 0 && !r->conn->broken) {
        ssize_t n = hfsbi_reply_send(r);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            hfsbi_conn_full(r->conn);
            return;
        }
        if (n < 0) r->conn->broken = true;
        else r->out_at += (size_t)n;
        if (n > 0) r->conn->moved = hfsbi_loop_now(r->conn->server->loop);
    }
    if (r->conn->broken) return;
    if (had) hfsbi_reply_sent_all(r);
    if (r->reply == HFSBI_REPLY_FILE) hfsbi_reply_file_step(r);
}

HFSBI_FN void hfsbi_reply_writable(hfsb_request *r) {
    bool had = hfsbi_reply_left(r) > 0;
    hfsbi_reply_flush(r);
    if (had && hfsbi_reply_left(r) == 0 && r->drained &&
        r->reply == HFSBI_REPLY_PIECES && !r->conn->broken)
        r->drained(r->drained_user, r);
}

/* There is no memory for it. In a thread: the loop will see that there is no
   reply. */
static void hfsbi_reply_fail(hfsb_request *r) {
    if (!r->in_thread) hfsb_reply_abort(r);
}

/* What was put into `out` goes its way. */
static void hfsbi_reply_go(hfsb_request *r, hfsb_status st) {
    if (st != HFSB_OK) r->conn->broken = true;
    else hfsbi_reply_flush(r);
    hfsbi_conn_poke(r->conn);
}

/* ---- whole replies ---- */

hfsb_status hfsb_reply_field(hfsb_request *request, const char *name,
                             hfsb_str value) {
    return hfsb_http_put_field(&request->fields, hfsb_cstr(name), value);
}

/* Head and body; a small body goes with the head. */
static void hfsbi_reply_whole(hfsb_request *r, int status, const char *type,
                              hfsb_str small, hfsb_buf *large) {
    hfsb_status st;
    bool        body;
    size_t      len = large ? large->len : small.len;
    if (!r->body_done && !hfsbi_conn_may_discard(r->conn))
        r->conn->closing = true; /* the rest of the body is not read */
    st = hfsbi_reply_head(r, status, type, HFSBI_FRAME_LENGTH, len);
    body = !hfsbi_reply_bodiless(r);
    if (body && large) {
        r->out_body = *large;
        memset(large, 0, sizeof *large);
        large->alloc = r->out_body.alloc;
    } else if (body && st == HFSB_OK) {
        st = hfsb_buf_append(&r->out, small);
    }
    if (body) r->sent += len;
    r->reply = HFSBI_REPLY_ENDED;
    hfsbi_reply_go(r, st);
}

/* In a thread: all but the body belongs to the loop, and is left to it. */
static void hfsbi_reply_in_thread(hfsb_request *r, int status,
                                  const char *type, hfsb_buf *body) {
    hfsb_status st = HFSB_OK;
    if (r->replied) return;
    if (type && *type)
        st = hfsb_reply_field(r, "Content-Type", hfsb_cstr(type));
    r->out_body = *body;
    memset(body, 0, sizeof *body);
    body->alloc = r->out_body.alloc;
    r->status = status;
    r->replied = st == HFSB_OK;
}

HFSBI_FN void hfsbi_reply_take(hfsb_request *r, int status, const char *type,
                               hfsb_buf *body) {
    if (r->in_thread) hfsbi_reply_in_thread(r, status, type, body);
    else if (r->reply == HFSBI_REPLY_NONE && body->len <= HFSBI_SMALL)
        hfsbi_reply_whole(r, status, type, hfsb_buf_str(body), NULL);
    else if (r->reply == HFSBI_REPLY_NONE)
        hfsbi_reply_whole(r, status, type, hfsb_buf_str(body), body);
    hfsb_buf_free(body);
}

void hfsb_reply(hfsb_request *request, int status, const char *type,
                hfsb_str body) {
    hfsb_buf copy = HFSB_INIT;
    if (request->reply != HFSBI_REPLY_NONE) return;
    if (body.len <= HFSBI_SMALL && !request->in_thread) {
        hfsbi_reply_whole(request, status, type, body, NULL);
        return;
    }
    copy.alloc = request->conn->server->alloc;
    if (hfsb_buf_append(&copy, body) != HFSB_OK) hfsbi_reply_fail(request);
    else hfsbi_reply_take(request, status, type, &copy);
}

HFSBI_FN void hfsbi_reply_from_thread(hfsb_request *r) {
    hfsb_buf body = r->out_body;
    memset(&r->out_body, 0, sizeof r->out_body);
    r->out_body.alloc = body.alloc;
    if (r->replied) {
        hfsbi_reply_take(r, r->status, NULL, &body);
        return;
    }
    hfsb_buf_free(&body);
    hfsb_reply_error(r, 500, "The handler of this route made no reply.");
}

HFSBI_FN void hfsbi_reply_detail(hfsb_request *r, int status,
                                 hfsb_str detail_json, hfsb_str error) {
    hfsb_buf         body = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_status      st;
    body.alloc = r->conn->server->alloc;
    if (r->conn->server->on_event && !r->why.len)
        (void)!hfsb_buf_append(&r->why, error); /* only the log lacks it */
    st = hfsb_buf_printf(&body, "{\"detail\":");
    if (st == HFSB_OK) st = hfsb_buf_append(&body, detail_json);
    if (st == HFSB_OK) st = hfsb_buf_printf(&body, ",\"error\":");
    if (st == HFSB_OK) {
        hfsb_json_writer_init(&w, &body, NULL);
        hfsb_json_put_str(&w, error);
        st = hfsb_json_writer_finish(&w, NULL);
    }
    if (st == HFSB_OK) st = hfsb_buf_append_byte(&body, '}');
    if (st == HFSB_OK) hfsbi_reply_take(r, status, "application/json", &body);
    else hfsbi_reply_fail(r);
    hfsb_buf_free(&body);
}

void hfsb_reply_error(hfsb_request *request, int status, const char *format,
                      ...) {
    hfsb_buf         text = HFSB_INIT, detail = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_status      st;
    va_list          ap;
    text.alloc = detail.alloc = request->conn->server->alloc;
    va_start(ap, format);
    st = hfsbi_buf_vprintf(&text, format, ap);
    va_end(ap);
    hfsb_json_writer_init(&w, &detail, NULL);
    hfsb_json_put_str(&w, hfsb_buf_str(&text));
    if (st == HFSB_OK) st = hfsb_json_writer_finish(&w, NULL);
    if (st == HFSB_OK)
        hfsbi_reply_detail(request, status, hfsb_buf_str(&detail),
                           hfsb_buf_str(&text));
    else hfsbi_reply_fail(request);
    hfsb_buf_free(&text);
    hfsb_buf_free(&detail);
}

/* ---- replies in pieces ---- */

void hfsb_reply_begin(hfsb_request *request, int status, const char *type) {
    hfsb_status st =
        hfsbi_reply_head(request, status, type, HFSBI_FRAME_PIECES, 0);
    request->reply = HFSBI_REPLY_PIECES;
    hfsbi_reply_go(request, st);
}

hfsb_status hfsb_reply_write(hfsb_request *request, hfsb_str bytes) {
    hfsb_status st;
    if (bytes.len == 0 || hfsbi_reply_bodiless(request)) return HFSB_OK;
    hfsbi_reply_starts(request);
    if (request->out_at > HFSBI_BLOCK &&
        request->out_at > request->out.len / 2) { /* what is sent makes room */
        memmove(request->out.ptr, request->out.ptr + request->out_at,
                request->out.len - request->out_at);
        hfsb_buf_truncate(&request->out, request->out.len - request->out_at);
        request->out_at = 0;
    }
    st = request->chunked ? hfsb_http_put_chunk(&request->out, bytes)
                          : hfsb_buf_append(&request->out, bytes);
    request->sent += bytes.len;
    hfsbi_reply_go(request, st);
    return st;
}

size_t hfsb_reply_waiting(const hfsb_request *request) {
    return hfsbi_reply_left(request);
}

void hfsb_reply_on_drained(hfsb_request *request, hfsb_route_fn fn,
                           void *user) {
    request->drained = fn;
    request->drained_user = user;
}

void hfsb_reply_end(hfsb_request *request) {
    hfsb_status st = HFSB_OK;
    if (request->chunked && !hfsbi_reply_bodiless(request))
        st = hfsb_http_put_chunk(&request->out, hfsb_str_make("", 0));
    request->reply = HFSBI_REPLY_ENDED;
    hfsbi_reply_go(request, st);
}

void hfsb_reply_abort(hfsb_request *request) {
    request->reply = HFSBI_REPLY_ENDED;
    request->conn->broken = true;
    hfsbi_conn_poke(request->conn);
}

/* ---- files ---- */

/* Sends a piece of the file to the socket: bytes sent, 0 at the file's end, or
   -1 with errno. In a thread: the disk may be slow. */
static ssize_t hfsbi_file_send(hfsb_request *r, size_t n) {
    char    block[32768];
    ssize_t got;
#ifdef HFSBI_LINUX
    off_t at = (off_t)r->file_at;
    got = sendfile(r->conn->io.fd, r->file, &at, n);
    if (got >= 0 || (errno != EINVAL && errno != ENOSYS)) return got;
#endif
    if (n > sizeof block) n = sizeof block;
    do got = pread(r->file, block, n, (off_t)r->file_at);
    while (got < 0 && errno == EINTR);
    if (got <= 0) return got;
    return send(r->conn->io.fd, block, (size_t)got, MSG_NOSIGNAL);
}

static void hfsbi_file_run(hfsbi_task *task) {
    hfsb_request *r =
        (hfsb_request *)(void *)((char *)task - offsetof(hfsb_request, task));
    size_t             turn = 0;
    hfsbi_signal_guard guard;
    hfsbi_signal_guard_begin(&guard);
    r->file_error = 0;
    while (r->file_left > 0 && turn < HFSBI_FILE_TURN) {
        size_t  want = r->file_left < HFSBI_FILE_TURN - turn
                           ? (size_t)r->file_left
                           : HFSBI_FILE_TURN - turn;
        ssize_t n = hfsbi_file_send(r, want);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            r->file_error = n < 0 ? errno : EIO; /* it became shorter */
            break;
        }
        r->file_at += (unsigned long long)n;
        r->file_left -= (unsigned long long)n;
        turn += (size_t)n;
    }
    r->sent += turn;
    r->file_turn = turn;
    hfsbi_signal_guard_end(&guard);
}

static void hfsbi_file_ran(hfsbi_task *task) {
    hfsb_request *r =
        (hfsb_request *)(void *)((char *)task - offsetof(hfsb_request, task));
    hfsbi_conn *conn = r->conn;
    if (hfsbi_conn_task_done(conn) || conn->dead) return;
    if (r->file_turn) conn->moved = hfsbi_loop_now(conn->server->loop);
    if (r->file_left == 0) {
        hfsbi_close(&r->file);
        r->reply = HFSBI_REPLY_ENDED;
    } else if (r->file_error == 0) {
        hfsbi_reply_file_step(r);
    } else if (r->file_error == EAGAIN || r->file_error == EWOULDBLOCK) {
        hfsbi_conn_full(conn);
    } else {
        conn->broken = true;
    }
    hfsbi_conn_poke(conn);
}

/* Goes on with a file when there is nothing else to send. */
static void hfsbi_reply_file_step(hfsb_request *r) {
    if (r->conn->tasks || hfsbi_reply_left(r)) return;
    r->conn->tasks++;
    r->task.run = hfsbi_file_run;
    r->task.done = hfsbi_file_ran;
    hfsbi_loop_work(r->conn->server->loop, &r->task);
}

void hfsb_reply_file(hfsb_request *request, int status, const char *type,
                     int fd, unsigned long long offset,
                     unsigned long long length) {
    hfsb_status st =
        hfsbi_reply_head(request, status, type, HFSBI_FRAME_LENGTH, length);
    request->file = fd;
    request->file_at = offset;
    request->file_left = length;
    request->reply = HFSBI_REPLY_FILE;
    if (length == 0 || hfsbi_reply_bodiless(request)) {
        hfsbi_close(&request->file);
        request->reply = HFSBI_REPLY_ENDED;
    }
    hfsbi_reply_go(request, st);
}
