/* net_socket.c - waiting, connecting and sending. Depends on: os, net_cancel.
 */
#include "net_parts.h"

/* ---- errors ---- */

HFSBI_FN const char *hfsbi_net_text(int code) {
    switch (code) {
    case ECONNREFUSED: return "connection refused";
    case ECONNRESET: return "connection reset by the peer";
    case ECONNABORTED: return "connection aborted";
    case EPIPE: return "connection closed by the peer";
    case ETIMEDOUT: return "the peer does not answer";
    case EHOSTUNREACH: return "no route to the host";
    case EHOSTDOWN: return "the host is down";
    case ENETUNREACH: return "the network cannot be reached";
    case ENETDOWN: return "the network is down";
    case EADDRNOTAVAIL: return "no address to connect from";
    case EAFNOSUPPORT: return "this kind of address is not supported here";
    default: return hfsbi_os_text(code);
    }
}

/* What getaddrinfo() says, in English whatever the locale. */
static const char *hfsbi_lookup_text(int code) {
    switch (code) {
    case EAI_NONAME: return "no such name";
    case EAI_AGAIN: return "the name cannot be looked up at the moment";
    case EAI_FAIL: return "the lookup of the name failed";
    default: return "the name has no address that can be used";
    }
}

/* ---- waiting ---- */

HFSBI_FN int hfsbi_net_poll_ms(long long until) {
    long long left = until - hfsb_clock_ms();
    if (left <= 0) return 0;
    return left > INT_MAX ? INT_MAX : (int)left;
}

HFSBI_FN hfsb_status hfsbi_net_wait(int fd, short events, long long until,
                                    const hfsb_cancel *cancel, short *ready) {
    struct pollfd fds[2];
    *ready = 0;
    fds[0].fd = fd;
    fds[0].events = events;
    fds[1].fd = hfsb_cancel_fd(cancel);
    fds[1].events = POLLIN;
    for (;;) {
        int ms = hfsbi_net_poll_ms(until), n;
        fds[0].revents = fds[1].revents = 0;
        n = poll(fds, cancel ? 2 : 1, ms);
        if (n < 0 && errno != EINTR) return hfsbi_os_status(errno);
        if (n > 0 && cancel && fds[1].revents) return HFSB_CANCELLED;
        if (n > 0) {
            *ready = fds[0].revents;
            return HFSB_OK;
        }
        if (!ms || (n == 0 && hfsb_clock_ms() >= until)) return HFSB_TIMEOUT;
    }
}

/* ---- connecting ---- */

static int hfsbi_socket_open(const struct addrinfo *a) {
    int fd, one = 1;
#ifdef HFSBI_LINUX
    fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                a->ai_protocol);
    fd = hfsbi_above_standard(fd);
#else
    fd = hfsbi_above_standard(
        socket(a->ai_family, a->ai_socktype, a->ai_protocol));
    if (fd >= 0 &&
        (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || !hfsbi_set_nonblocking(fd)))
        hfsbi_close(&fd);
#endif
    if (fd < 0) return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
#ifdef SO_NOSIGPIPE
    (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof one);
#endif
    return fd;
}

/* A port nobody listens on can be given to the very socket that connects to
   it, which then talks to itself. */
static bool hfsbi_socket_is_its_own_peer(int fd) {
    struct sockaddr_storage here, there;
    socklen_t               a = sizeof here, b = sizeof there;
    memset(&here, 0, sizeof here);
    memset(&there, 0, sizeof there);
    return getsockname(fd, (struct sockaddr *)(void *)&here, &a) == 0 &&
           getpeername(fd, (struct sockaddr *)(void *)&there, &b) == 0 &&
           a == b && !memcmp(&here, &there, a);
}

/* 0 or an errno, once a connect() under way is decided. */
static int hfsbi_socket_outcome(int fd) {
    int       code = 0;
    socklen_t len = sizeof code;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) != 0) return errno;
    return code;
}

/* One address: HFSB_OK with *fd; HFSB_CONNECT with *code; HFSB_TIMEOUT,
   HFSB_CANCELLED; HFSB_BUSY, HFSB_NOMEM, HFSB_IO with *code. */
static hfsb_status hfsbi_socket_connect(const struct addrinfo *a,
                                        long long              until,
                                        const hfsb_cancel *cancel, int *fd,
                                        int *code) {
    hfsb_status st = HFSB_OK;
    short       ready;
    *fd = hfsbi_socket_open(a);
    *code = errno;
    if (*fd < 0) {
        st = hfsbi_os_status(*code);
        return st == HFSB_BUSY || st == HFSB_NOMEM ? st : HFSB_CONNECT;
    }
    *code = 0;
    if (connect(*fd, a->ai_addr, a->ai_addrlen) != 0) {
        *code = errno;
        if (*code == EINPROGRESS || *code == EINTR) {
            st = hfsbi_net_wait(*fd, POLLOUT, until, cancel, &ready);
            *code = st == HFSB_OK ? hfsbi_socket_outcome(*fd) : 0;
        }
    }
    if (st == HFSB_OK && !*code && hfsbi_socket_is_its_own_peer(*fd))
        *code = ECONNREFUSED;
    if (st == HFSB_OK && *code) st = HFSB_CONNECT;
    if (st != HFSB_OK) hfsbi_close(fd);
    return st;
}

static hfsb_status hfsbi_link_lookup(const hfsbi_link *link,
                                     struct addrinfo **list, hfsb_err *err) {
    struct addrinfo hints;
    char            port[8];
    int             code;
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    (void)snprintf(port, sizeof port, "%u", link->port % 65536);
    code = getaddrinfo(link->host, port, &hints, list);
    if (code) { /* no address in numbers: a name */
        hints.ai_flags = AI_NUMERICSERV;
        code = getaddrinfo(link->host, port, &hints, list);
    }
    if (!code) return HFSB_OK;
    *list = NULL;
    if (code == EAI_MEMORY)
        return hfsbi_fail_status(err, HFSB_NOMEM, "lookup of a name");
    if (code == EAI_SYSTEM && hfsbi_os_status(errno) == HFSB_BUSY)
        return hfsbi_fail_os(err, errno, "Cannot look up %s", link->host);
    return hfsbi_fail(err, HFSB_CONNECT, 0, "No connection to %s:%u: %s.",
                      link->host, link->port, hfsbi_lookup_text(code));
}

static hfsb_status hfsbi_connect_failed(const hfsbi_link    *link,
                                        const hfsbi_connect *how,
                                        hfsb_status st, int code,
                                        hfsb_err *err) {
    if (st == HFSB_CANCELLED)
        return hfsbi_fail(err, st, 0, "Cancelled while connecting to %s:%u.",
                          link->host, link->port);
    if (st == HFSB_TIMEOUT)
        return hfsbi_fail(err, st, 0, "No connection to %s:%u within %lld ms.",
                          link->host, link->port, how->ms);
    return hfsbi_fail(err, st, 0, "No connection to %s:%u: %s.", link->host,
                      link->port, hfsbi_net_text(code));
}

HFSBI_FN hfsb_status hfsbi_link_connect(hfsbi_link          *link,
                                        const hfsbi_connect *how,
                                        hfsb_err            *err) {
    struct addrinfo *list = NULL, *a;
    hfsb_status      st = hfsbi_link_lookup(link, &list, err);
    int              code = 0, left = 0;
    if (st != HFSB_OK) return st;
    for (a = list; a; a = a->ai_next) left++;
    st = HFSB_CONNECT;
    for (a = list; a; a = a->ai_next, left--) {
        /* one that never answers must not use up the time of the others */
        long long now = hfsb_clock_ms(), until = how->until;
        if (left > 1 && until > now) until = now + (until - now) / left;
        st = hfsbi_socket_connect(a, until, how->cancel, &link->fd, &code);
        if (st != HFSB_CONNECT && (st != HFSB_TIMEOUT || left == 1)) break;
    }
    freeaddrinfo(list);
    if (st == HFSB_OK) {
        link->pid = (long)getpid();
        return hfsbi_ok(err);
    }
    return hfsbi_connect_failed(link, how, st, code, err);
}

/* ---- talking ---- */

HFSBI_FN bool hfsbi_link_quiet(const hfsbi_link *link) {
    char    byte;
    ssize_t n;
    do n = recv(link->fd, &byte, 1, MSG_PEEK);
    while (n < 0 && errno == EINTR);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

HFSBI_FN ssize_t hfsbi_link_send(hfsbi_link *link, hfsb_str a, hfsb_str b) {
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
    do n = sendmsg(link->fd, &m, HFSBI_NET_SEND_FLAGS);
    while (n < 0 && errno == EINTR);
#if !defined(MSG_NOSIGNAL) && !defined(SO_NOSIGPIPE)
    hfsbi_signal_guard_end(&guard);
#endif
    return n;
}
