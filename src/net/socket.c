/* socket.c - sockets of the built-in transport: looking up a name, connecting,
   sending; and streams.

   A stream is a connection for a protocol other than HTTP. It still begins
   with one request: CONNECT to a proxy, the upgrade to WebSocket.
   hfsbi_stream_ask() sends it on any stream and reads exactly the head of its
   reply: bytes after the head are left for the protocol that follows. */
#include "net_private.h"

/* ---- errors ---- */

HFSBI_FN const char *hfsbi_net_text(int code) {
    switch (code) {
    case ECONNREFUSED: return "connection refused";
    case ECONNRESET: return "connection reset by the peer";
    case ECONNABORTED: return "connection aborted";
    case EPIPE: return "connection closed by the peer";
    case ETIMEDOUT: return "the peer does not respond";
    case EHOSTUNREACH: return "no route to the host";
    case EHOSTDOWN: return "the host is down";
    case ENETUNREACH: return "network unreachable";
    case ENETDOWN: return "the network is down";
    case EADDRNOTAVAIL: return "no address to connect from";
    case EAFNOSUPPORT: return "this kind of address is not supported here";
    default: return hfsbi_os_text(code);
    }
}

/* A description of a getaddrinfo() error; gai_strerror() depends on the
   locale. */
static const char *hfsbi_lookup_text(int code) {
    switch (code) {
    case EAI_NONAME: return "no such name";
    case EAI_AGAIN: return "temporary failure in name resolution";
    case EAI_FAIL: return "name resolution failed";
    default: return "the name has no usable address";
    }
}

/* ---- connecting ---- */

/* A socket, close-on-exec, that does not block; -1 with errno. */
static int hfsbi_socket_new(int family, int protocol) {
    int fd, one = 1;
#ifdef HFSBI_LINUX
    fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    fd = hfsbi_fd_above_2(fd);
#else
    fd = hfsbi_fd_above_2(socket(family, SOCK_STREAM, protocol));
    if (fd >= 0 &&
        (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || !hfsbi_set_nonblocking(fd)))
        hfsbi_close(&fd);
#endif
    if (fd < 0) return -1;
    if (family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
#ifdef SO_NOSIGPIPE
    (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof one);
#endif
    return fd;
}

/* The kernel may give a connecting socket the very port it connects to, when
   nobody listens there: the socket is then connected to itself. */
static bool hfsbi_socket_is_its_own_peer(int fd) {
    struct sockaddr_storage here, there;
    socklen_t               a = sizeof here, b = sizeof there;
    memset(&here, 0, sizeof here);
    memset(&there, 0, sizeof there);
    return getsockname(fd, (struct sockaddr *)(void *)&here, &a) == 0 &&
           getpeername(fd, (struct sockaddr *)(void *)&there, &b) == 0 &&
           a == b && !memcmp(&here, &there, a);
}

/* The result of a non-blocking connect() that has finished: 0 or an errno. */
static int hfsbi_socket_outcome(int fd) {
    int       code = 0;
    socklen_t len = sizeof code;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) != 0) return errno;
    return code;
}

/* Connects to one address. HFSB_OK with *fd; HFSB_TIMEOUT, HFSB_CANCELLED;
   HFSB_CONNECT, HFSB_BUSY, HFSB_NOMEM or HFSB_IO with an errno in *code. */
static hfsb_status hfsbi_socket_connect(const struct addrinfo *a,
                                        long long              until,
                                        const hfsb_cancel *cancel, int *fd,
                                        int *code) {
    hfsb_status st = HFSB_OK;
    short       ready;
    *fd = hfsbi_socket_new(a->ai_family, a->ai_protocol);
    *code = errno;
    if (*fd < 0) {
        st = hfsbi_os_status(*code);
        return st == HFSB_BUSY || st == HFSB_NOMEM ? st : HFSB_CONNECT;
    }
    *code = 0;
    if (connect(*fd, a->ai_addr, a->ai_addrlen) != 0) {
        *code = errno;
        if (*code == EINPROGRESS || *code == EINTR) {
            st = hfsbi_wait_fd(*fd, POLLOUT, until, cancel, &ready);
            *code = st == HFSB_OK ? hfsbi_socket_outcome(*fd) : 0;
        }
    }
    if (st == HFSB_OK && !*code && hfsbi_socket_is_its_own_peer(*fd))
        *code = ECONNREFUSED;
    if (st == HFSB_OK && *code) st = HFSB_CONNECT;
    if (st != HFSB_OK) hfsbi_close(fd);
    return st;
}

/* Resolves a host; the caller frees *list. */
static hfsb_status hfsbi_socket_lookup(const char *name, unsigned number,
                                       struct addrinfo **list, hfsb_err *err) {
    struct addrinfo hints;
    const char     *host = name;
    char            port[8];
    int             code;
    /* RFC 6761: every name below localhost is this machine */
    if (hfsb_str_ends(hfsb_cstr(host), HFSB_LIT(".localhost")))
        host = "127.0.0.1";
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    (void)snprintf(port, sizeof port, "%u", number % 65536);
    code = getaddrinfo(host, port, &hints, list);
    if (code) { /* not a numeric address: a name */
        hints.ai_flags = AI_NUMERICSERV;
        code = getaddrinfo(host, port, &hints, list);
    }
    if (!code) return HFSB_OK;
    *list = NULL;
    if (code == EAI_MEMORY)
        return hfsbi_fail_status(err, HFSB_NOMEM, "lookup of a name");
    if (code == EAI_SYSTEM && hfsbi_os_status(errno) == HFSB_BUSY)
        return hfsbi_fail_os(err, errno, "Cannot look up %s", name);
    return hfsbi_fail(err, HFSB_CONNECT, 0, "No connection to %s:%u: %s.",
                      name, number, hfsbi_lookup_text(code));
}

HFSBI_FN hfsb_status hfsbi_socket_dial(const char *host, unsigned port,
                                       long long ms, long long deadline,
                                       const hfsb_cancel *cancel, int *fd,
                                       hfsb_err *err) {
    struct addrinfo *list = NULL, *a;
    hfsb_status      st = hfsbi_socket_lookup(host, port, &list, err);
    int              code = 0, left = 0;
    if (st != HFSB_OK) return st;
    for (a = list; a; a = a->ai_next) left++;
    st = HFSB_CONNECT;
    for (a = list; a; a = a->ai_next, left--) {
        /* an address that never answers must leave time for the others */
        long long now = hfsb_clock_ms(), until = deadline;
        if (left > 1 && until > now) until = now + (until - now) / left;
        st = hfsbi_socket_connect(a, until, cancel, fd, &code);
        if (st != HFSB_CONNECT && (st != HFSB_TIMEOUT || left == 1)) break;
    }
    freeaddrinfo(list);
    if (st == HFSB_OK) return hfsbi_ok(err);
    if (st == HFSB_CANCELLED)
        return hfsbi_fail(err, st, 0, "Cancelled while connecting to %s:%u.",
                          host, port);
    if (st == HFSB_TIMEOUT)
        return hfsbi_fail(err, st, 0, "No connection to %s:%u within %lld ms.",
                          host, port, ms);
    return hfsbi_fail(err, st, 0, "No connection to %s:%u: %s.", host, port,
                      hfsbi_net_text(code));
}

HFSBI_FN hfsb_status hfsbi_socket_dial_unix(const char        *path,
                                            long long          deadline,
                                            const hfsb_cancel *cancel, int *fd,
                                            hfsb_err *err) {
    struct sockaddr_un a;
    size_t             len = strlen(path);
    unsigned           tries = 0;
    int                code = 0;
    memset(&a, 0, sizeof a);
    if (!len || len >= sizeof a.sun_path)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The path of a Unix socket has 1 to %zu bytes.",
                          sizeof a.sun_path - 1);
    a.sun_family = AF_UNIX;
    memcpy(a.sun_path, path, len + 1);
    *fd = hfsbi_socket_new(AF_UNIX, 0);
    if (*fd < 0) return hfsbi_fail_os(err, errno, "Cannot open a socket");
    /* EAGAIN: many wait to be accepted; there is nothing to poll for */
    while (connect(*fd, (struct sockaddr *)(void *)&a, sizeof a) != 0) {
        code = errno;
        if (code == EISCONN) code = 0; /* after EINTR */
        if (!code) break;
        if ((code != EAGAIN && code != EINTR) || hfsb_clock_ms() >= deadline ||
            hfsb_cancel_is_set(cancel))
            break;
        code = 0;
        hfsbi_pause(tries++);
    }
    if (!code) return hfsbi_ok(err);
    hfsbi_close(fd);
    if (hfsb_cancel_is_set(cancel))
        return hfsbi_fail(err, HFSB_CANCELLED, 0,
                          "Cancelled while connecting to %s.", path);
    return hfsbi_fail(err, code == EAGAIN ? HFSB_TIMEOUT : HFSB_CONNECT, 0,
                      "No connection to %s: %s.", path, hfsbi_net_text(code));
}

HFSBI_FN bool hfsbi_socket_pair(int fds[2]) {
    int  i, one = 1, type = SOCK_STREAM;
    bool ok = true;
#ifdef HFSBI_LINUX
    type |= SOCK_CLOEXEC | SOCK_NONBLOCK;
#endif
    fds[0] = fds[1] = -1;
    if (socketpair(AF_UNIX, type, 0, fds) != 0) return false;
    for (i = 0; i < 2; i++) {
        fds[i] = hfsbi_fd_above_2(fds[i]);
        ok = ok && fds[i] >= 0;
#ifndef HFSBI_LINUX
        ok = ok && fcntl(fds[i], F_SETFD, FD_CLOEXEC) == 0 &&
             hfsbi_set_nonblocking(fds[i]);
#endif
#ifdef SO_NOSIGPIPE
        (void)setsockopt(fds[i], SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof one);
#else
        (void)one;
#endif
    }
    if (ok) return true;
    hfsbi_close(&fds[0]);
    hfsbi_close(&fds[1]);
    return false;
}

/* ---- sending ---- */

HFSBI_FN ssize_t hfsbi_socket_send(int fd, hfsb_str a, hfsb_str b) {
    struct iovec  v[2];
    struct msghdr m;
    ssize_t       n;
#if !defined(MSG_NOSIGNAL) && !defined(SO_NOSIGPIPE)
    hfsbi_signal_guard guard;
    hfsbi_signal_guard_begin(&guard);
#endif
    memset(&m, 0, sizeof m);
    v[0].iov_base = (void *)(uintptr_t)a.ptr;
    v[0].iov_len = a.len;
    v[1].iov_base = (void *)(uintptr_t)b.ptr;
    v[1].iov_len = b.len;
    m.msg_iov = a.len ? v : v + 1;
    m.msg_iovlen = a.len && b.len ? 2 : 1;
    do n = sendmsg(fd, &m, HFSBI_MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
#if !defined(MSG_NOSIGNAL) && !defined(SO_NOSIGPIPE)
    hfsbi_signal_guard_end(&guard);
#endif
    return n;
}

/* ---- a stream on a socket ---- */

typedef struct hfsbi_socket_stream {
    hfsb_alloc alloc;
    int        fd;
} hfsbi_socket_stream;

static hfsb_status hfsbi_socket_stream_lost(int code, hfsb_err *err) {
    return hfsbi_fail(err, HFSB_LOST, 0, "The connection ended%s%s.",
                      code ? ": " : "", code ? hfsbi_net_text(code) : "");
}

static hfsb_status hfsbi_socket_stream_send(void *user, hfsb_str bytes,
                                            size_t *done, hfsb_err *err) {
    const hfsbi_socket_stream *s = (const hfsbi_socket_stream *)user;
    ssize_t n = hfsbi_socket_send(s->fd, bytes, hfsb_str_make(NULL, 0));
    *done = n > 0 ? (size_t)n : 0;
    if (n >= 0 || errno == EAGAIN || errno == EWOULDBLOCK) return HFSB_OK;
    return hfsbi_socket_stream_lost(errno, err);
}

static hfsb_status hfsbi_socket_stream_receive(void *user, char *ptr,
                                               size_t room, size_t *done,
                                               hfsb_err *err) {
    const hfsbi_socket_stream *s = (const hfsbi_socket_stream *)user;
    ssize_t                    n;
    do n = recv(s->fd, ptr, room, 0);
    while (n < 0 && errno == EINTR);
    *done = n > 0 ? (size_t)n : 0;
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)))
        return HFSB_OK;
    return hfsbi_socket_stream_lost(n < 0 ? errno : 0, err);
}

static void hfsbi_socket_stream_close(void *user) {
    hfsbi_socket_stream *s = (hfsbi_socket_stream *)user;
    hfsb_alloc           alloc = s->alloc;
    hfsbi_close(&s->fd);
    hfsbi_array_free(&alloc, s, 1, sizeof *s);
}

HFSBI_FN hfsb_status hfsbi_socket_stream_open(int *fd, const hfsb_alloc *alloc,
                                              hfsb_stream *out,
                                              hfsb_err    *err) {
    hfsbi_socket_stream *s =
        (hfsbi_socket_stream *)hfsbi_array(alloc, 1, sizeof *s);
    memset(out, 0, sizeof *out);
    if (!s) {
        hfsbi_close(fd);
        return hfsbi_fail_status(err, HFSB_NOMEM, "connection");
    }
    s->alloc = *alloc;
    s->fd = *fd;
    *fd = -1;
    out->fd = s->fd;
    out->send = hfsbi_socket_stream_send;
    out->receive = hfsbi_socket_stream_receive;
    out->close = hfsbi_socket_stream_close;
    out->user = s;
    return HFSB_OK;
}

void hfsb_stream_close(hfsb_stream *stream) {
    if (stream->close) stream->close(stream->user);
    memset(stream, 0, sizeof *stream);
    stream->fd = -1;
}

/* ---- the request at its beginning ---- */

static hfsb_status hfsbi_stream_wait(const hfsbi_stream_ask *ask, short events,
                                     hfsb_err *err) {
    short       ready;
    hfsb_status st = hfsbi_wait_fd(ask->stream->fd, events, ask->until,
                                   ask->cancel, &ready);
    if (st == HFSB_OK) return st;
    return hfsbi_fail(err, st, 0,
                      st == HFSB_TIMEOUT ? "No answer came in time."
                      : st == HFSB_CANCELLED
                          ? "Cancelled before an answer came."
                          : "Cannot wait for the connection.");
}

static hfsb_status hfsbi_stream_say(const hfsbi_stream_ask *ask,
                                    hfsb_str request, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    size_t      n;
    while (request.len && st == HFSB_OK) {
        st = ask->stream->send(ask->stream->user, request, &n, err);
        if (st != HFSB_OK) break;
        request = hfsb_str_slice(request, n, request.len);
        if (!n) st = hfsbi_stream_wait(ask, POLLOUT, err);
    }
    return st;
}

/* Parses what has come. *over: the head of the final reply is complete. */
static hfsb_status hfsbi_stream_parse(hfsbi_stream_ask *ask,
                                      hfsb_http_parser *parser, bool *over,
                                      hfsb_err *err) {
    hfsb_str piece = HFSB_INIT;
    hfsb_err why;
    for (;;) {
        size_t          used = 0;
        hfsb_http_event event = hfsb_http_next(
            parser, hfsb_str_make(ask->in + ask->at, ask->have - ask->at),
            ask->fields, HFSBI_STREAM_FIELDS, &ask->head, &piece, &used, &why);
        ask->at += used;
        if (event == HFSB_HTTP_MORE) break;
        if (event == HFSB_HTTP_BAD)
            return hfsbi_fail(err, HFSB_REMOTE, 0, "Invalid reply: %s",
                              why.msg);
        *over = event == HFSB_HTTP_HEAD &&
                (ask->head.status == 101 || ask->head.status >= 200);
        if (*over) return HFSB_OK;
    }
    if (ask->have < sizeof ask->in) return HFSB_OK;
    return hfsbi_fail(err, HFSB_REMOTE, 0,
                      "Invalid reply: its head has more than %zu bytes.",
                      sizeof ask->in);
}

HFSBI_FN hfsb_status hfsbi_stream_ask_run(hfsbi_stream_ask *ask,
                                          hfsb_str method, hfsb_str request,
                                          hfsb_err *err) {
    hfsb_http_parser parser;
    bool             over = false;
    hfsb_status      st = hfsbi_stream_say(ask, request, err);
    size_t           n;
    ask->have = ask->at = 0;
    hfsb_http_parser_init_reply(&parser, NULL);
    hfsb_http_parser_begin_reply(&parser, method);
    while (st == HFSB_OK && !over) {
        st = ask->stream->receive(ask->stream->user, ask->in + ask->have,
                                  sizeof ask->in - ask->have, &n, err);
        if (st != HFSB_OK) break;
        ask->have += n;
        st = n ? hfsbi_stream_parse(ask, &parser, &over, err)
               : hfsbi_stream_wait(ask, POLLIN, err);
    }
    return st;
}
