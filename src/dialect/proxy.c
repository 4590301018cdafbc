/* proxy.c - passes a request on to a server on this machine.

     CONNECT --> HEAD ---> BODY ----> reply ended, freed
                  |  |
                  |  +--> TUNNEL ---> both sides ended, freed
                  +-----> 502, freed

   The head of the request is written anew, without the fields that concern one
   connection and without tokens; its body follows as it comes. The reply is
   parsed and written anew too, so the connection to the client stays one of
   this server: every request on it is checked and routed. After a change of
   the protocol (WebSocket) bytes pass as they are, both ways.

   A reply begins when the request is complete. What comes from the inner
   server before that is held, up to a limit. An inner server that takes no
   more of a body has its reason, which its reply gives: the rest of the body
   is dropped.

   Either side waits for the other: reading stops while much is unsent. */
#include "dialect_private.h"

enum {
    HFSBI_RELAY_AHEAD = 256 << 10, /* unsent bytes at which reading stops */
    HFSBI_RELAY_FIELDS = 100
};

typedef enum hfsbi_relay_state {
    HFSBI_RELAY_CONNECT,
    HFSBI_RELAY_HEAD,  /* the head of the reply is awaited */
    HFSBI_RELAY_BODY,  /* the reply has begun */
    HFSBI_RELAY_TUNNEL /* it has changed the protocol */
} hfsbi_relay_state;

typedef struct hfsbi_relay {
    hfsbi_io          io; /* first: its function casts it back */
    hfsb_request     *request;
    hfsbi_loop       *loop;
    hfsb_alloc        alloc;
    hfsbi_relay_state state;
    hfsb_buf          out;    /* for the inner server */
    size_t            out_at; /* bytes of it that are sent */
    hfsb_buf          in;     /* from the inner server, not parsed yet */
    hfsb_http_parser  parser; /* of its reply */
    hfsb_http_field   fields[HFSBI_RELAY_FIELDS];
    bool              chunked;  /* the body of the request is */
    bool              complete; /* the request is */
    bool              upgrade;  /* it asks for another protocol */
    bool              deaf;     /* the inner server takes no more */
    bool              ended;    /* the inner server has sent all */
    bool              client_ended;
    bool              paused; /* the client is */
    void (*done)(void *user);
    void *user;
} hfsbi_relay;

/* ---- the end ---- */

static void hfsbi_relay_free(hfsbi_relay *r) {
    hfsb_alloc alloc = r->alloc;
    void (*done)(void *user) = r->done;
    void *user = r->user;
    hfsb_request_on_gone(r->request, NULL, NULL);
    hfsbi_request_on_eof(r->request, NULL, NULL);
    hfsb_reply_on_drained(r->request, NULL, NULL);
    hfsb_request_set(r->request, NULL);
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
    return fd;
}

/* 0 or an errno. */
static int hfsbi_relay_connect(hfsbi_relay *r, unsigned port) {
    struct sockaddr_in a;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons((unsigned short)port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    r->io.fd = hfsbi_relay_socket(AF_INET);
    if (r->io.fd < 0) return errno;
    if (connect(r->io.fd, (struct sockaddr *)(void *)&a, sizeof a) == 0 ||
        errno == EINPROGRESS || errno == EINTR)
        return 0;
    return errno;
}

/* The outcome of connect(): 0 or an errno. A socket may be connected to
   itself, when nobody listens on a port that the kernel hands out. */
static int hfsbi_relay_outcome(int fd) {
    struct sockaddr_in here, there;
    socklen_t          a = sizeof here, b = sizeof there, n = sizeof(int);
    int                code = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &n) != 0) return errno;
    if (code) return code;
    memset(&here, 0, sizeof here);
    memset(&there, 0, sizeof there);
    if (getsockname(fd, (struct sockaddr *)(void *)&here, &a) == 0 &&
        getpeername(fd, (struct sockaddr *)(void *)&there, &b) == 0 &&
        here.sin_family == AF_INET && a == b && !memcmp(&here, &there, a))
        return ECONNREFUSED;
    return 0;
}

/* ---- to the inner server ---- */

static size_t hfsbi_relay_unsent(const hfsbi_relay *r) {
    return r->out.len - r->out_at;
}

/* Asks for what it waits for. False after a failure, which has freed it. */
static bool hfsbi_relay_wait(hfsbi_relay *r) {
    unsigned want = 0;
    bool     full = r->complete
                        ? hfsb_reply_waiting(r->request) > HFSBI_RELAY_AHEAD
                        : r->in.len > HFSBI_RELAY_AHEAD;
    if (r->state == HFSBI_RELAY_CONNECT) want = HFSBI_IO_WRITE;
    else {
        if (!r->ended && !full) want |= HFSBI_IO_READ;
        if (hfsbi_relay_unsent(r) && !r->deaf) want |= HFSBI_IO_WRITE;
    }
    if (hfsbi_loop_io(r->loop, &r->io, want)) return true;
    hfsbi_relay_fail(r, "cannot be waited for: out of memory");
    return false;
}

/* Sends what there is; lets the client go on when little is left. */
static void hfsbi_relay_flush(hfsbi_relay *r) {
    while (r->state != HFSBI_RELAY_CONNECT && hfsbi_relay_unsent(r) &&
           !r->deaf) {
        ssize_t n = send(r->io.fd, r->out.ptr + r->out_at,
                         hfsbi_relay_unsent(r), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (n < 0) r->deaf = true;
        else r->out_at += (size_t)n;
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

/* ---- heads ---- */

/* True for a field that is about one connection. */
static bool hfsbi_relay_is_hop(hfsb_str name) {
    static const char *const list[] = {"Connection",
                                       "Keep-Alive",
                                       "Proxy-Connection",
                                       "Proxy-Authenticate",
                                       "Proxy-Authorization",
                                       "TE",
                                       "Trailer",
                                       "Transfer-Encoding",
                                       "Upgrade",
                                       "Content-Length",
                                       NULL};
    size_t                   i;
    for (i = 0; list[i]; i++)
        if (hfsb_http_same(name, hfsb_cstr(list[i]))) return true;
    return false;
}

static bool hfsbi_relay_is_hidden(hfsb_str name, const char *const *hide) {
    if (hfsb_http_same(name, HFSB_LIT("Authorization")) ||
        hfsb_http_same(name, HFSB_LIT("X-Sandbox-Authorization")) ||
        hfsb_http_same(name, HFSB_LIT("Expect")))
        return true;
    for (; hide && *hide; hide++)
        if (hfsb_http_same(name, hfsb_cstr(*hide))) return true;
    return false;
}

static void hfsbi_relay_put_target(hfsb_buf *out, const hfsb_http_head *head,
                                   size_t prefix) {
    hfsb_str path = hfsb_str_slice(head->path, prefix, head->path.len);
    if (!hfsb_str_starts(path, HFSB_LIT("/"))) hfsb_buf_append_byte(out, '/');
    hfsb_buf_append(out, path);
    if (!head->query.len) return;
    hfsb_buf_append_byte(out, '?');
    hfsb_buf_append(out, head->query);
}

/* Writes the head for the inner server. */
static hfsb_status hfsbi_relay_put_head(hfsbi_relay            *r,
                                        const hfsbi_relay_opts *opts) {
    const hfsb_http_head *head = hfsb_request_head(r->request);
    hfsb_str              upgrade = hfsb_http_field_find(head, "Upgrade");
    hfsb_buf              target = HFSB_INIT, *out = &r->out;
    hfsb_status           st;
    size_t                i;
    target.alloc = r->alloc;
    hfsbi_relay_put_target(&target, head, opts->prefix);
    st = target.status;
    if (st == HFSB_OK)
        st = hfsb_http_put_request(out, head->method, hfsb_buf_str(&target));
    hfsb_buf_free(&target);
    for (i = 0; i < head->field_count && st == HFSB_OK; i++) {
        const hfsb_http_field *f = &head->fields[i];
        if (!hfsbi_relay_is_hop(f->name) &&
            !hfsbi_relay_is_hidden(f->name, opts->hide))
            st = hfsb_http_put_field(out, f->name, f->value);
    }
    r->upgrade =
        upgrade.len && hfsb_http_field_lists(head, "Connection", "upgrade");
    r->chunked = head->body == HFSB_HTTP_CHUNKED;
    if (st == HFSB_OK && r->upgrade)
        st = hfsb_http_put_field(out, HFSB_LIT("Upgrade"), upgrade);
    if (st == HFSB_OK)
        st = hfsb_http_put_field(out, HFSB_LIT("Connection"),
                                 r->upgrade ? HFSB_LIT("Upgrade")
                                            : HFSB_LIT("close"));
    if (st == HFSB_OK && r->chunked)
        st = hfsb_http_put_field(out, HFSB_LIT("Transfer-Encoding"),
                                 HFSB_LIT("chunked"));
    else if (st == HFSB_OK && head->body == HFSB_HTTP_LENGTH)
        st = hfsb_buf_printf(out, "Content-Length: %llu\r\n", head->length);
    return st == HFSB_OK ? hfsb_http_put_head_end(out) : st;
}

/* Passes the fields of the reply on. */
static void hfsbi_relay_copy_fields(hfsbi_relay *r, const hfsb_http_head *h) {
    size_t i;
    char   name[128];
    for (i = 0; i < h->field_count; i++) {
        const hfsb_http_field *f = &h->fields[i];
        if (hfsbi_relay_is_hop(f->name) || f->name.len >= sizeof name ||
            hfsb_http_same(f->name, HFSB_LIT("Date")))
            continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)f->name.len,
                       f->name.ptr);
        (void)hfsb_reply_field(r->request, name, f->value);
    }
}

/* ---- from the inner server ---- */

static void hfsbi_relay_tunnel(void *user, hfsb_request *request, char *bytes,
                               size_t n) {
    (void)request;
    (void)hfsbi_relay_take((hfsbi_relay *)user, hfsb_str_make(bytes, n),
                           false);
}

static void hfsbi_relay_eof(void *user, hfsb_request *request) {
    hfsbi_relay *r = (hfsbi_relay *)user;
    (void)request;
    r->client_ended = true;
    hfsbi_relay_flush(r);
    (void)hfsbi_relay_wait(r);
}

/* False: it was refused, and freed. */
static bool hfsbi_relay_take_head(hfsbi_relay *r, const hfsb_http_head *head) {
    hfsb_str upgrade = hfsb_http_field_find(head, "Upgrade");
    char     protocol[64];
    if (head->status == 101) {
        if (!r->upgrade || !upgrade.len || upgrade.len >= sizeof protocol) {
            hfsbi_relay_fail(r, "changed the protocol without being asked");
            return false;
        }
        (void)snprintf(protocol, sizeof protocol, "%.*s", (int)upgrade.len,
                       upgrade.ptr);
        hfsbi_relay_copy_fields(r, head);
        r->state = HFSBI_RELAY_TUNNEL;
        hfsbi_request_on_eof(r->request, hfsbi_relay_eof, r);
        hfsbi_reply_tunnel(r->request, protocol, hfsbi_relay_tunnel, r);
    } else if (head->status >= 200) {
        hfsbi_relay_copy_fields(r, head);
        r->state = HFSBI_RELAY_BODY;
        if (head->body == HFSB_HTTP_LENGTH)
            hfsbi_reply_begin_sized(r->request, head->status, "",
                                    head->length);
        else hfsb_reply_begin(r->request, head->status, "");
    }
    return true;
}

static void hfsbi_relay_shift(hfsbi_relay *r, size_t n) {
    if (n == 0) return;
    memmove(r->in.ptr, r->in.ptr + n, r->in.len - n);
    hfsb_buf_truncate(&r->in, r->in.len - n);
}

/* Parses what has come. False when it is over, and freed. */
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

/* The inner server has sent all. False when it is over, and freed. */
static bool hfsbi_relay_finish_reply(hfsbi_relay *r) {
    if (!r->ended) return true;
    if (r->state == HFSBI_RELAY_TUNNEL ||
        (r->state == HFSBI_RELAY_BODY && hfsb_http_parser_end(&r->parser))) {
        hfsb_reply_end(r->request);
        hfsbi_relay_free(r);
    } else {
        hfsbi_relay_fail(r, "closed the connection before its reply was "
                            "whole");
    }
    return false;
}

/* Acts on what has come. False when it is over, and freed. */
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

/* Reads once. False when it is over, and freed. */
static bool hfsbi_relay_read(hfsbi_relay *r) {
    char    block[32768];
    ssize_t n;
    do n = recv(r->io.fd, block, sizeof block, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (n <= 0) r->ended = true;
    else if (hfsb_buf_append(&r->in, hfsb_str_make(block, (size_t)n)) !=
             HFSB_OK) {
        hfsbi_relay_fail(r, "cannot be read: out of memory");
        return false;
    }
    return hfsbi_relay_step(r);
}

/* Reads what is left of a connection that is broken. */
static void hfsbi_relay_drain(hfsbi_relay *r) {
    r->deaf = true;
    while (!r->ended && r->in.len <= HFSBI_RELAY_AHEAD)
        if (!hfsbi_relay_read(r)) return;
    (void)hfsbi_relay_wait(r);
}

static void hfsbi_relay_io(hfsbi_io *io, unsigned events) {
    hfsbi_relay *r = (hfsbi_relay *)(void *)io;
    char         text[120];
    int          code;
    if (r->state == HFSBI_RELAY_CONNECT) {
        code = hfsbi_relay_outcome(io->fd);
        if (code) {
            (void)snprintf(text, sizeof text, "does not answer: %s",
                           hfsbi_os_text(code));
            hfsbi_relay_fail(r, text);
            return;
        }
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

/* ---- the client ---- */

static void hfsbi_relay_drained(void *user, hfsb_request *request) {
    (void)request;
    (void)hfsbi_relay_wait((hfsbi_relay *)user);
}

HFSBI_FN void hfsbi_relay_body(void *user, hfsb_request *request,
                               hfsb_str piece) {
    hfsbi_relay *r = (hfsbi_relay *)hfsb_request_get(request);
    (void)user;
    if (r) (void)hfsbi_relay_take(r, piece, r->chunked);
}

HFSBI_FN void hfsbi_relay_finish(void *user, hfsb_request *request) {
    hfsbi_relay *r = (hfsbi_relay *)hfsb_request_get(request);
    hfsb_str     none = HFSB_LIT("");
    (void)user;
    if (!r) return;
    if (r->chunked && !hfsbi_relay_take(r, none, true)) return;
    r->complete = true;
    if (hfsbi_relay_step(r)) (void)hfsbi_relay_wait(r);
}

/* 0 or an errno. */
static int hfsbi_relay_open(hfsbi_relay *r, const hfsbi_relay_opts *opts) {
    r->io.fd = opts->port ? -1 : opts->fd;
    if (hfsbi_relay_put_head(r, opts) != HFSB_OK) return ENOMEM;
    return opts->port ? hfsbi_relay_connect(r, opts->port) : 0;
}

HFSBI_FN void hfsbi_relay_start(hfsb_request           *request,
                                const hfsbi_relay_opts *opts) {
    hfsb_server *server = hfsb_request_server(request);
    hfsb_alloc   alloc = *hfsbi_server_alloc(server);
    hfsbi_relay *r = (hfsbi_relay *)hfsbi_array(&alloc, 1, sizeof *r);
    char         text[120];
    int          code;
    if (!r) {
        int fd = opts->port ? -1 : opts->fd;
        hfsbi_close(&fd);
        hfsb_reply_error(request, 503, "Out of memory.");
        if (opts->done) opts->done(opts->user);
        return;
    }
    memset(r, 0, sizeof *r);
    r->alloc = r->out.alloc = r->in.alloc = alloc;
    r->request = request;
    r->loop = hfsbi_server_loop(server);
    r->io.fn = hfsbi_relay_io;
    r->done = opts->done;
    r->user = opts->user;
    hfsb_http_parser_init_reply(&r->parser, NULL);
    hfsb_http_parser_begin_reply(&r->parser,
                                 hfsb_request_head(request)->method);
    hfsb_request_set(request, r);
    hfsb_request_on_gone(request, hfsbi_relay_gone, r);
    hfsb_reply_on_drained(request, hfsbi_relay_drained, r);
    code = hfsbi_relay_open(r, opts);
    if (code) {
        (void)snprintf(text, sizeof text, "does not answer: %s",
                       hfsbi_os_text(code));
        hfsbi_relay_fail(r, text);
        return;
    }
    (void)hfsbi_relay_wait(r);
}
