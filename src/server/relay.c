/* relay.c - passes a request on to another server on this machine.

     DIAL ----> CONNECT --> HEAD ---> BODY ----> reply ended, freed
      |  ^         |         |  |
      |  +-EAGAIN  |         |  +--> TUNNEL ---> a side ended, freed
      +---------> 503       502

   The head of the request is rewritten (relay_head.c); its body follows as it
   comes. The reply is parsed and rewritten, too, so the connection to the
   client stays one of this server: every request on it is checked and routed.
   After a change of the protocol (WebSocket) bytes pass unchanged, both ways.

   A port is one of 127.0.0.1, or of ::1 when nobody listens there.

   A server whose queue of connections is full gets head_ms to take another
   one. A TCP socket waits for that in the kernel; a Unix socket refuses at
   once, and is tried again.

   A tunnel has no deadline while both sides are open: the kernel finds out
   whether they are still there. When the client has ended its side, which may
   mean that it is gone, the inner server may go on for as long as it sends
   something every idle_ms.

   A reply begins when the request is complete. Bytes that the inner server
   sends before that are held, up to a limit. If the inner server stops taking
   a body, its reply gives the reason, and the rest of the body is dropped.
   That server closes with bytes unread, so the kernel resets the connection. A
   small body is sent whole in any case, into the buffers of the kernel. So a
   reset means an incomplete reply, and is a failure, only after a request
   without a body.

   Either side waits for the other: reading stops while much is unsent. */
#include "server_private.h"

enum {
    HFSBI_RELAY_AHEAD = 256 << 10, /* unsent bytes at which reading stops */
    HFSBI_RELAY_FIELDS = 100,
    HFSBI_RELAY_AGAIN_MS = 25 /* between two tries to connect */
};

typedef enum hfsbi_relay_state {
    HFSBI_RELAY_DIAL, /* there is no socket: the next try is awaited */
    HFSBI_RELAY_CONNECT,
    HFSBI_RELAY_HEAD,  /* the head of the reply is awaited */
    HFSBI_RELAY_BODY,  /* the reply has begun */
    HFSBI_RELAY_TUNNEL /* it has changed the protocol */
} hfsbi_relay_state;

/* What the inner server sends. */
typedef enum hfsbi_relay_input {
    HFSBI_RELAY_OPEN,
    HFSBI_RELAY_ENDED, /* it has sent all */
    HFSBI_RELAY_RESET  /* the connection broke */
} hfsbi_relay_input;

typedef struct hfsbi_relay {
    hfsbi_io          io; /* first: its function casts it back */
    hfsb_request     *request;
    hfsbi_loop       *loop;
    hfsb_alloc        alloc;
    hfsbi_relay_opts  opts;
    hfsbi_relay_state state;
    hfsbi_timer       timer;  /* of DIAL and CONNECT, and of a TUNNEL that the
                                client has half closed */
    long long         until;  /* DIAL and CONNECT may last */
    long long         moved;  /* when the inner server last sent something */
    int               family; /* AF_INET, then AF_INET6; not with opts.dial */
    hfsb_buf          out;    /* for the inner server */
    size_t            out_at; /* bytes of it that are sent */
    hfsb_buf          in;     /* from the inner server, not parsed yet */
    hfsb_http_parser  parser; /* of its reply */
    hfsb_http_field   fields[HFSBI_RELAY_FIELDS];
    hfsbi_relay_input input;
    bool              chunked;  /* the body of the request is */
    bool              complete; /* the request is */
    bool              upgrade;  /* it asks for another protocol */
    bool              deaf;     /* the inner server takes no more */
    bool              client_ended;
    bool              paused; /* the client is */
} hfsbi_relay;

/* ---- the end ---- */

static void hfsbi_relay_free(hfsbi_relay *r) {
    hfsb_alloc alloc = r->alloc;
    void (*done)(void *user) = r->opts.done;
    void *user = r->opts.user;
    hfsb_request_on_gone(r->request, NULL, NULL);
    hfsbi_request_on_eof(r->request, NULL, NULL);
    hfsb_reply_on_drained(r->request, NULL, NULL);
    hfsb_request_set(r->request, NULL);
    hfsbi_loop_timer_clear(r->loop, &r->timer);
    if (r->io.fd >= 0) hfsbi_loop_io_forget(r->loop, &r->io);
    hfsbi_close(&r->io.fd);
    hfsb_buf_free(&r->out);
    hfsb_buf_free(&r->in);
    hfsbi_array_free(&alloc, r, 1, sizeof *r);
    if (done) done(user);
}

/* Ends it with an error, or in the middle of the reply. */
static void hfsbi_relay_fail(hfsbi_relay *r, const char *why) {
    if (r->state <= HFSBI_RELAY_HEAD)
        hfsb_reply_error(r->request, 502, "the inner server %s", why);
    else if (r->state == HFSBI_RELAY_TUNNEL) hfsb_reply_end(r->request);
    else hfsb_reply_abort(r->request);
    hfsbi_relay_free(r);
}

/* There is no connection: nobody listens, or too many wait already. */
static void hfsbi_relay_unreachable(hfsbi_relay *r, int code) {
    unsigned port = r->opts.port;
    if (code == EAGAIN || code == ETIMEDOUT) {
        (void)hfsb_reply_field(r->request, "Retry-After", HFSB_LIT("1"));
        hfsb_reply_error(r->request, 503,
                         "the server on port %u accepts no connections: its "
                         "queue is full",
                         port);
    } else if (code == ECONNREFUSED || code == ENOENT) {
        hfsb_reply_error(r->request, 502, "nothing listens on port %u", port);
    } else {
        hfsb_reply_error(r->request, code == ENOMEM ? 503 : 502,
                         "cannot connect to port %u: %s", port,
                         hfsbi_os_text(code));
    }
    hfsbi_relay_free(r);
}

static void hfsbi_relay_gone(void *user, hfsb_request *request) {
    (void)request;
    hfsbi_relay_free((hfsbi_relay *)user);
}

/* ---- sockets ---- */

HFSBI_FN int hfsbi_relay_socket(int family) {
    int one = 1;
    int fd = hfsbi_fd_above_2(socket(family, SOCK_STREAM, 0));
    if (fd < 0) return -1;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || !hfsbi_set_nonblocking(fd))
        hfsbi_close(&fd);
    else if (family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
#ifdef SO_NOSIGPIPE
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof one);
#endif
    return fd;
}

/* A socket that connects to a port of this machine; -1 with errno. */
static int hfsbi_relay_connect(int family, unsigned port) {
    struct sockaddr_in  four;
    struct sockaddr_in6 six;
    bool                is_six = family == AF_INET6;
    int                 fd = hfsbi_relay_socket(family), code;
    if (fd < 0) return -1;
    memset(&four, 0, sizeof four);
    four.sin_family = AF_INET;
    four.sin_port = htons((unsigned short)port);
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memset(&six, 0, sizeof six);
    six.sin6_family = AF_INET6;
    six.sin6_port = four.sin_port;
    six.sin6_addr.s6_addr[15] = 1;
    if (connect(fd,
                is_six ? (struct sockaddr *)(void *)&six
                       : (struct sockaddr *)(void *)&four,
                (socklen_t)(is_six ? sizeof six : sizeof four)) == 0 ||
        errno == EINPROGRESS || errno == EINTR)
        return fd;
    code = errno;
    hfsbi_close(&fd);
    errno = code;
    return -1;
}

/* An attempt to connect has failed. True if nobody listens on the IPv4 port
   and the IPv6 port is to be tried. */
static bool hfsbi_relay_goes_on(hfsbi_relay *r, int code) {
    if (code != ECONNREFUSED || r->opts.dial || r->family == AF_INET6)
        return false;
    r->family = AF_INET6;
    return true;
}

/* Begins to connect, or sets when to try again. 0 or an errno. Some kernels
   refuse a local port at once, others later: see hfsbi_relay_io(). */
static int hfsbi_relay_dial(hfsbi_relay *r) {
    long long now = hfsbi_loop_now(r->loop), at = r->until;
    do
        r->io.fd = r->opts.dial ? r->opts.dial(r->opts.user, r->opts.port)
                                : hfsbi_relay_connect(r->family, r->opts.port);
    while (r->io.fd < 0 && hfsbi_relay_goes_on(r, errno));
    if (r->io.fd >= 0) {
        r->state = HFSBI_RELAY_CONNECT;
    } else {
        if (r->family == AF_INET6) return ECONNREFUSED; /* as by IPv4 */
        if (errno != EAGAIN || now >= at) return errno ? errno : EIO;
        at = hfsbi_earlier(at, now + HFSBI_RELAY_AGAIN_MS);
    }
    hfsbi_loop_timer(r->loop, &r->timer, at);
    return 0;
}

/* The outcome of connect(): 0 or an errno. A socket may be connected to
   itself, when nobody listens on a port that the kernel hands out. */
static int hfsbi_relay_outcome(int fd) {
    struct sockaddr_storage here, there;
    socklen_t               a = sizeof here, b = sizeof there, n = sizeof(int);
    int                     code = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &n) != 0) return errno;
    if (code) return code;
    memset(&here, 0, sizeof here);
    memset(&there, 0, sizeof there);
    if (getsockname(fd, (struct sockaddr *)(void *)&here, &a) == 0 &&
        getpeername(fd, (struct sockaddr *)(void *)&there, &b) == 0 &&
        here.ss_family != AF_UNIX && a == b && !memcmp(&here, &there, a))
        return ECONNREFUSED;
    return 0;
}

/* ---- to the inner server ---- */

static size_t hfsbi_relay_unsent(const hfsbi_relay *r) {
    return r->out.len - r->out_at;
}

/* Registers what the relay waits for. False after a failure, which has freed
   it. */
static bool hfsbi_relay_wait(hfsbi_relay *r) {
    unsigned want = 0;
    bool     full = r->complete
                        ? hfsb_reply_waiting(r->request) > HFSBI_RELAY_AHEAD
                        : r->in.len > HFSBI_RELAY_AHEAD;
    if (r->state == HFSBI_RELAY_DIAL) return true;
    if (r->state == HFSBI_RELAY_CONNECT) want = HFSBI_IO_WRITE;
    else {
        if (r->input == HFSBI_RELAY_OPEN && !full) want |= HFSBI_IO_READ;
        if (hfsbi_relay_unsent(r) && !r->deaf) want |= HFSBI_IO_WRITE;
    }
    if (hfsbi_loop_io(r->loop, &r->io, want)) return true;
    hfsbi_relay_fail(r, "cannot be waited for: out of memory");
    return false;
}

/* Sends what there is; resumes the client when little is left. */
static void hfsbi_relay_flush(hfsbi_relay *r) {
    while (r->state >= HFSBI_RELAY_HEAD && hfsbi_relay_unsent(r) && !r->deaf) {
        ssize_t n = send(r->io.fd, r->out.ptr + r->out_at,
                         hfsbi_relay_unsent(r), HFSBI_MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (n >= 0) r->out_at += (size_t)n;
        else { /* it is not to wait for the rest */ r->deaf = true;
            (void)shutdown(r->io.fd, SHUT_WR);
        }
    }
    if (r->deaf || !hfsbi_relay_unsent(r)) {
        hfsb_buf_free(&r->out);
        r->out_at = 0;
    }
    if (r->client_ended && !r->out.len) (void)shutdown(r->io.fd, SHUT_WR);
    if (!r->paused || hfsbi_relay_unsent(r) > HFSBI_RELAY_AHEAD / 2) return;
    r->paused = false;
    hfsb_request_resume(r->request);
}

/* Adds bytes of the client. False after a failure, which has freed it. */
static bool hfsbi_relay_take(hfsbi_relay *r, hfsb_str bytes, bool chunk) {
    hfsb_status st = HFSB_OK;
    if (r->deaf) return true;
    if (r->out_at > HFSBI_RELAY_AHEAD / 2) { /* make room */
        memmove(r->out.ptr, r->out.ptr + r->out_at, hfsbi_relay_unsent(r));
        hfsb_buf_truncate(&r->out, hfsbi_relay_unsent(r));
        r->out_at = 0;
    }
    st = chunk ? hfsb_http_put_chunk(&r->out, bytes)
               : hfsb_buf_append(&r->out, bytes);
    if (st != HFSB_OK) {
        hfsbi_relay_fail(r, "cannot be sent more: out of memory");
        return false;
    }
    hfsbi_relay_flush(r);
    if (hfsbi_relay_unsent(r) > HFSBI_RELAY_AHEAD && !r->paused) {
        r->paused = true;
        hfsb_request_pause(r->request);
    }
    return hfsbi_relay_wait(r);
}

/* ---- from the inner server ---- */

static void hfsbi_relay_tunnel(void *user, hfsb_request *request, char *bytes,
                               size_t n) {
    (void)request;
    (void)hfsbi_relay_take((hfsbi_relay *)user, hfsb_str_make(bytes, n),
                           false);
}

/* How long a tunnel whose client has ended its side may be silent. */
static long long hfsbi_relay_patience(const hfsbi_relay *r) {
    return hfsb_request_server(r->request)->limits.idle_ms;
}

static void hfsbi_relay_eof(void *user, hfsb_request *request) {
    hfsbi_relay *r = (hfsbi_relay *)user;
    (void)request;
    r->client_ended = true;
    r->moved = hfsbi_loop_now(r->loop);
    hfsbi_loop_timer(r->loop, &r->timer, r->moved + hfsbi_relay_patience(r));
    hfsbi_relay_flush(r);
    (void)hfsbi_relay_wait(r);
}

/* From here on bytes pass unchanged. False: it was refused, and freed. */
static bool hfsbi_relay_switch(hfsbi_relay *r, hfsb_str upgrade) {
    char protocol[64];
    if (!r->upgrade || !upgrade.len || upgrade.len >= sizeof protocol) {
        hfsbi_relay_fail(r, "changed the protocol without being asked");
        return false;
    }
    (void)snprintf(protocol, sizeof protocol, "%.*s", (int)upgrade.len,
                   upgrade.ptr);
    r->state = HFSBI_RELAY_TUNNEL;
    hfsbi_keepalive(r->io.fd);
    hfsbi_request_on_eof(r->request, hfsbi_relay_eof, r);
    hfsbi_reply_tunnel(r->request, protocol, hfsbi_relay_tunnel, r);
    return true;
}

/* True if the length of the body is known, even of one that is not sent, in a
   reply to HEAD. */
static bool hfsbi_relay_length(const hfsbi_relay    *r,
                               const hfsb_http_head *head,
                               unsigned long long   *length) {
    hfsb_str method = hfsb_request_head(r->request)->method;
    *length = head->length;
    if (head->body == HFSB_HTTP_LENGTH) return true;
    return hfsb_str_equal(method, HFSB_LIT("HEAD")) &&
           !hfsb_http_field_find(head, "Transfer-Encoding").ptr &&
           hfsbi_read_decimal(hfsb_http_field_find(head, "Content-Length"),
                              ~0ull >> 1, length) > 0;
}

/* False: it was refused, and freed. */
static bool hfsbi_relay_take_head(hfsbi_relay *r, const hfsb_http_head *head) {
    unsigned long long length;
    if (head->status < 200 && head->status != 101) return true;
    if (hfsbi_relay_copy_fields(r->request, head, &r->opts) != HFSB_OK) {
        hfsbi_relay_fail(r, "cannot be read: out of memory");
        return false;
    }
    if (head->status == 101)
        return hfsbi_relay_switch(r, hfsb_http_field_find(head, "Upgrade"));
    r->state = HFSBI_RELAY_BODY;
    if (hfsbi_relay_length(r, head, &length))
        hfsbi_reply_begin_sized(r->request, head->status, "", length);
    else hfsb_reply_begin(r->request, head->status, "");
    return true;
}

static void hfsbi_relay_shift(hfsbi_relay *r, size_t n) {
    if (n == 0) return;
    memmove(r->in.ptr, r->in.ptr + n, r->in.len - n);
    hfsb_buf_truncate(&r->in, r->in.len - n);
}

/* Parses what has arrived. False when the relay is over, and freed. */
static bool hfsbi_relay_parse(hfsbi_relay *r) {
    hfsb_http_event event = HFSB_HTTP_BODY;
    hfsb_http_head  head;
    hfsb_str        piece;
    size_t          at = 0, used;
    while (event != HFSB_HTTP_MORE && r->state != HFSBI_RELAY_TUNNEL) {
        hfsb_str in = hfsb_buf_str(&r->in);
        event = hfsb_http_next(&r->parser, hfsb_str_slice(in, at, in.len),
                               r->fields, HFSBI_RELAY_FIELDS, &head, &piece,
                               &used, NULL);
        at += used;
        if (event == HFSB_HTTP_HEAD && !hfsbi_relay_take_head(r, &head))
            return false;
        if (event == HFSB_HTTP_BODY) (void)hfsb_reply_write(r->request, piece);
        if (event == HFSB_HTTP_BAD) {
            hfsbi_relay_fail(r, "sent an invalid reply");
            return false;
        }
        if (event == HFSB_HTTP_END && r->state == HFSBI_RELAY_BODY) {
            hfsb_reply_end(r->request);
            hfsbi_relay_free(r);
            return false;
        }
        if (event == HFSB_HTTP_END) /* an interim reply */
            hfsb_http_parser_begin_reply(
                &r->parser, hfsb_request_head(r->request)->method);
    }
    hfsbi_relay_shift(r, at);
    return true;
}

/* True if the request has a body, which the inner server may not have read. */
static bool hfsbi_relay_has_body(const hfsbi_relay *r) {
    const hfsb_http_head *head = hfsb_request_head(r->request);
    return r->chunked || (head->body == HFSB_HTTP_LENGTH && head->length);
}

/* The inner server sends no more. False when the relay is over, and freed. */
static bool hfsbi_relay_finish_reply(hfsbi_relay *r) {
    bool broke =
        r->input == HFSBI_RELAY_RESET && !r->deaf && !hfsbi_relay_has_body(r);
    if (r->input == HFSBI_RELAY_OPEN) return true;
    if (r->state == HFSBI_RELAY_TUNNEL ||
        (r->state == HFSBI_RELAY_BODY && !broke &&
         hfsb_http_parser_end(&r->parser))) {
        hfsb_reply_end(r->request);
        hfsbi_relay_free(r);
    } else {
        hfsbi_relay_fail(r, "closed the connection before its reply was "
                            "whole");
    }
    return false;
}

/* Acts on what has arrived. False when the relay is over, and freed. */
static bool hfsbi_relay_step(hfsbi_relay *r) {
    if (!r->complete) {
        if (r->in.len <= HFSBI_RELAY_AHEAD || r->deaf) return true;
        hfsbi_relay_fail(r, "replied before it had read the request");
        return false;
    }
    if (r->state != HFSBI_RELAY_TUNNEL && !hfsbi_relay_parse(r)) return false;
    if (r->state == HFSBI_RELAY_TUNNEL && r->in.len) {
        (void)hfsb_reply_write(r->request, hfsb_buf_str(&r->in));
        hfsb_buf_truncate(&r->in, 0);
    }
    return hfsbi_relay_finish_reply(r);
}

/* Reads once. False when the relay is over, and freed. */
static bool hfsbi_relay_read(hfsbi_relay *r) {
    char    block[32768];
    ssize_t n;
    do n = recv(r->io.fd, block, sizeof block, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    r->moved = hfsbi_loop_now(r->loop);
    if (n <= 0) r->input = n == 0 ? HFSBI_RELAY_ENDED : HFSBI_RELAY_RESET;
    else if (hfsb_buf_append(&r->in, hfsb_str_make(block, (size_t)n)) !=
             HFSB_OK) {
        hfsbi_relay_fail(r, "cannot be read: out of memory");
        return false;
    }
    return hfsbi_relay_step(r);
}

/* Reads what is left of a connection that is broken. A client that was held
   continues with its body, which is dropped: the reply follows it. */
static void hfsbi_relay_drain(hfsbi_relay *r) {
    if (!r->complete || hfsbi_relay_unsent(r)) r->deaf = true;
    hfsbi_relay_flush(r);
    while (r->input == HFSBI_RELAY_OPEN && r->in.len <= HFSBI_RELAY_AHEAD)
        if (!hfsbi_relay_read(r)) return;
    (void)hfsbi_relay_wait(r);
}

/* Dials again. 0 or an errno. */
static int hfsbi_relay_redial(hfsbi_relay *r) {
    hfsbi_loop_io_forget(r->loop, &r->io);
    hfsbi_close(&r->io.fd);
    r->state = HFSBI_RELAY_DIAL;
    return hfsbi_relay_dial(r);
}

static void hfsbi_relay_io(hfsbi_io *io, unsigned events) {
    hfsbi_relay *r = (hfsbi_relay *)(void *)io;
    if (r->state == HFSBI_RELAY_CONNECT) {
        int code = hfsbi_relay_outcome(io->fd);
        if (hfsbi_relay_goes_on(r, code) &&
            (code = hfsbi_relay_redial(r)) == 0) {
            (void)hfsbi_relay_wait(r);
            return;
        }
        if (code) {
            hfsbi_relay_unreachable(r, code);
            return;
        }
        hfsbi_loop_timer_clear(r->loop, &r->timer);
        r->state = HFSBI_RELAY_HEAD;
    }
    if (events & HFSBI_IO_GONE) {
        hfsbi_relay_drain(r);
        return;
    }
    if (events & HFSBI_IO_WRITE) hfsbi_relay_flush(r);
    if ((events & HFSBI_IO_READ) && !hfsbi_relay_read(r)) return;
    (void)hfsbi_relay_wait(r);
}

static void hfsbi_relay_tick(hfsbi_timer *timer) {
    hfsbi_relay *r =
        (hfsbi_relay *)(void *)((char *)timer - offsetof(hfsbi_relay, timer));
    long long end = r->moved + hfsbi_relay_patience(r);
    int       code = ETIMEDOUT;
    if (r->state == HFSBI_RELAY_TUNNEL) {
        if (hfsbi_loop_now(r->loop) < end)
            hfsbi_loop_timer(r->loop, timer, end);
        else hfsbi_relay_fail(r, "is silent");
        return;
    }
    if (r->state == HFSBI_RELAY_DIAL) code = hfsbi_relay_dial(r);
    if (code) hfsbi_relay_unreachable(r, code);
    else (void)hfsbi_relay_wait(r);
}

/* ---- the client ---- */

static void hfsbi_relay_drained(void *user, hfsb_request *request) {
    (void)request;
    (void)hfsbi_relay_wait((hfsbi_relay *)user);
}

static void hfsbi_relay_body(void *user, hfsb_request *request,
                             hfsb_str piece) {
    hfsbi_relay *r = (hfsbi_relay *)hfsb_request_get(request);
    (void)user;
    if (r) (void)hfsbi_relay_take(r, piece, r->chunked);
}

static void hfsbi_relay_finish(void *user, hfsb_request *request) {
    hfsbi_relay *r = (hfsbi_relay *)hfsb_request_get(request);
    hfsb_str     none = HFSB_LIT("");
    (void)user;
    if (!r) return;
    if (r->chunked && !hfsbi_relay_take(r, none, true)) return;
    r->complete = true;
    if (hfsbi_relay_step(r)) (void)hfsbi_relay_wait(r);
}

static hfsbi_relay *hfsbi_relay_new(hfsb_request           *request,
                                    const hfsbi_relay_opts *opts) {
    hfsb_server          *server = hfsb_request_server(request);
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_alloc            alloc = server->alloc;
    hfsbi_relay          *r = (hfsbi_relay *)hfsbi_array(&alloc, 1, sizeof *r);
    if (!r) return NULL;
    memset(r, 0, sizeof *r);
    r->alloc = r->out.alloc = r->in.alloc = alloc;
    r->request = request;
    r->loop = server->loop;
    r->opts = *opts;
    r->io.fd = -1;
    r->io.fn = hfsbi_relay_io;
    r->family = AF_INET;
    r->timer.fn = hfsbi_relay_tick;
    r->until = hfsbi_loop_now(r->loop) + server->limits.head_ms;
    r->upgrade = hfsbi_relay_is_upgrade(head);
    r->chunked = head->body == HFSB_HTTP_CHUNKED;
    hfsb_http_parser_init_reply(&r->parser, NULL);
    hfsb_http_parser_begin_reply(&r->parser, head->method);
    return r;
}

HFSBI_FN void hfsbi_relay_start(hfsb_request           *request,
                                const hfsbi_relay_opts *opts) {
    hfsbi_relay *r = hfsbi_relay_new(request, opts);
    int          code = ENOMEM;
    if (!r) {
        hfsb_reply_error(request, 503, "Out of memory.");
        if (opts->done) opts->done(opts->user);
        return;
    }
    hfsb_request_set(request, r);
    hfsb_request_on_gone(request, hfsbi_relay_gone, r);
    hfsb_reply_on_drained(request, hfsbi_relay_drained, r);
    if (hfsbi_relay_put_head(hfsb_request_head(request), opts, &r->out) ==
        HFSB_OK)
        code = hfsbi_relay_dial(r);
    if (code) hfsbi_relay_unreachable(r, code);
    else (void)hfsbi_relay_wait(r);
}

HFSBI_FN hfsb_status hfsbi_relay_add(hfsb_server *server, hfsbi_face *face,
                                     const char *path, hfsb_route_fn begin,
                                     void *user, hfsb_err *err) {
    hfsb_route route = HFSB_INIT;
    route.method = "*";
    route.path = path;
    route.raw = true;
    route.begin = begin;
    route.body = hfsbi_relay_body;
    route.fn = hfsbi_relay_finish;
    route.user = user;
    return hfsbi_face_add(server, face, &route, err);
}
