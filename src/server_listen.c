/* server_listen.c - where a server listens, and taking connections. Depends
   on: server_conn. */
#include "server_conn.h"

enum {
    HFSBI_ACCEPT_TURN = 64,   /* connections taken in one go */
    HFSBI_ACCEPT_PAUSE = 250, /* ms of rest when no descriptor is left */
    HFSBI_ACCEPT_REST = 1000  /* ms an idle one is left alone */
};

/* ---- taking connections ---- */

static void hfsbi_accept_log(hfsb_server *server, int code) {
    hfsb_server_event event = HFSB_INIT;
    if (!server->on_event) return;
    event.what = "accept failed";
    event.detail = hfsb_cstr(hfsbi_os_text(code));
    server->on_event(server->user, &event);
}

HFSBI_FN void hfsbi_server_accept(hfsb_server *server, bool on) {
    hfsbi_listener *l;
    if (on == server->accepting || (on && server->phase)) return;
    server->accepting = on;
    hfsbi_loop_timer_clear(server->loop, &server->accept_timer);
    for (l = server->listeners; l; l = l->next)
        (void)hfsbi_loop_io(server->loop, &l->io, on ? HFSBI_IO_READ : 0);
}

static void hfsbi_accept_again(hfsbi_timer *timer) {
    hfsb_server *server =
        (hfsb_server *)(void *)((char *)timer -
                                offsetof(hfsb_server, accept_timer));
    hfsbi_server_accept(server, true);
}

/* For a moment, or until a connection ends. */
static void hfsbi_accept_rest(hfsb_server *server) {
    hfsbi_server_accept(server, false);
    server->accept_timer.fn = hfsbi_accept_again;
    hfsbi_loop_timer(server->loop, &server->accept_timer,
                     hfsbi_loop_now(server->loop) + HFSBI_ACCEPT_PAUSE);
}

/* No descriptor is left: the one kept for this is given up so that the peer
   can be told at once, and accepting rests for a moment, since the listening
   socket would be ready for ever. */
static void hfsbi_accept_full(hfsb_server *server, int listener, int code) {
    int fd;
    hfsbi_close(&server->spare);
    fd = accept(listener, NULL, NULL);
    if (fd >= 0) server->stats.refused++;
    hfsbi_close(&fd);
    server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    hfsbi_accept_rest(server);
    hfsbi_accept_log(server, code);
}

/* Of those that wait between requests, the one that was used longest ago makes
   room for a new one. False when all are busy, or new themselves. */
static bool hfsbi_accept_make_room(hfsb_server *server) {
    hfsbi_conn *conn, *oldest = NULL;
    long long   before = hfsbi_loop_now(server->loop) - HFSBI_ACCEPT_REST;
    for (conn = server->conns; conn; conn = conn->next)
        if (!conn->request && !conn->in_len && !conn->dead &&
            conn->moved < before && (!oldest || conn->moved < oldest->moved))
            oldest = conn;
    if (oldest) hfsbi_conn_close(oldest);
    return oldest != NULL;
}

static int hfsbi_accept_one(int listener, struct sockaddr_storage *peer) {
    socklen_t len = sizeof *peer;
    int       fd;
    memset(peer, 0, sizeof *peer);
#ifdef HFSBI_LINUX
    fd = accept4(listener, (struct sockaddr *)(void *)peer, &len,
                 SOCK_CLOEXEC | SOCK_NONBLOCK);
#else
    fd = accept(listener, (struct sockaddr *)(void *)peer, &len);
    if (fd >= 0) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        (void)hfsbi_set_nonblocking(fd);
    }
#endif
#ifdef SO_NOSIGPIPE
    if (fd >= 0) {
        int on = 1;
        (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
    }
#endif
    return fd;
}

static void hfsbi_listener_io(hfsbi_io *io, unsigned events) {
    hfsbi_listener *l =
        (hfsbi_listener *)(void *)((char *)io - offsetof(hfsbi_listener, io));
    hfsb_server            *server = l->server;
    struct sockaddr_storage peer;
    int                     turn, fd, one = 1;
    (void)events;
    for (turn = 0; turn < HFSBI_ACCEPT_TURN; turn++) {
        if (server->stats.open >= server->max_connections) {
            if (turn) return; /* perhaps there is no other */
            if (!hfsbi_accept_make_room(server)) {
                hfsbi_accept_rest(server);
                return;
            }
        }
        fd = hfsbi_accept_one(l->io.fd, &peer);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                errno == ENOMEM)
                hfsbi_accept_full(server, l->io.fd, errno);
            return; /* the peer went away again, or there is no other */
        }
        if (!l->local)
            (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        hfsbi_conn_add(l, fd, (const struct sockaddr *)(const void *)&peer);
    }
}

/* ---- places ---- */

static bool hfsbi_address_is_loopback(const struct sockaddr *a) {
    if (a->sa_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)(const void *)a)
                          ->sin_addr.s_addr) >>
                24) == 127;
    if (a->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(
            &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
    return a->sa_family == AF_UNIX;
}

/* Its own address in numbers, and the port. */
static unsigned hfsbi_listener_name(hfsbi_listener        *l,
                                    const struct sockaddr *a) {
    if (a->sa_family == AF_INET) {
        const struct sockaddr_in *in =
            (const struct sockaddr_in *)(const void *)a;
        (void)inet_ntop(AF_INET, &in->sin_addr, l->address, sizeof l->address);
        return ntohs(in->sin_port);
    }
    if (a->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in =
            (const struct sockaddr_in6 *)(const void *)a;
        (void)inet_ntop(AF_INET6, &in->sin6_addr, l->address,
                        sizeof l->address);
        return ntohs(in->sin6_port);
    }
    l->local = true;
    return 0;
}

HFSBI_FN void hfsbi_listener_shut(hfsbi_listener *l) {
    hfsbi_loop_io_forget(l->server->loop, &l->io);
    hfsbi_close(&l->io.fd);
    if (l->made) (void)unlink(l->name.ptr);
    l->made = false;
}

HFSBI_FN void hfsbi_listener_free(hfsbi_listener *l) {
    hfsb_server *server = l->server;
    hfsbi_listener_shut(l);
    hfsb_buf_free(&l->name);
    hfsbi_array_free(&server->alloc, l, 1, sizeof *l);
}

/* A listening socket becomes one of the server's; fd is taken in any case. */
static hfsb_status hfsbi_listener_add(hfsb_server *server, int fd,
                                      const char *name, bool made,
                                      unsigned *bound, hfsb_err *err) {
    struct sockaddr_storage a;
    socklen_t               len = sizeof a;
    unsigned                port;
    hfsbi_listener         *l =
        (hfsbi_listener *)hfsbi_array(&server->alloc, 1, sizeof *l);
    if (!l) {
        hfsbi_close(&fd);
        return hfsbi_fail_status(err, HFSB_NOMEM, "Listening");
    }
    memset(l, 0, sizeof *l);
    memset(&a, 0, sizeof a);
    l->io.fd = fd;
    l->io.fn = hfsbi_listener_io;
    l->server = server;
    l->name.alloc = server->alloc;
    (void)getsockname(fd, (struct sockaddr *)(void *)&a, &len);
    l->loopback = hfsbi_address_is_loopback((struct sockaddr *)(void *)&a);
    port = hfsbi_listener_name(l, (struct sockaddr *)(void *)&a);
    if (bound) *bound = port;
    if (server->no_auth && !server->open_to_all && !l->loopback) {
        hfsbi_listener_free(l);
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "Without a token the server listens on loopback "
                          "only: set a token, or say that it is meant to be "
                          "open to all (--public).");
    }
    if (hfsb_buf_append(&l->name, hfsb_cstr(name)) != HFSB_OK ||
        !hfsbi_set_nonblocking(fd) ||
        (server->accepting &&
         !hfsbi_loop_io(server->loop, &l->io, HFSBI_IO_READ))) {
        hfsbi_listener_free(l);
        return hfsbi_fail_status(err, HFSB_NOMEM, "Listening");
    }
    l->made = made;
    l->next = server->listeners;
    server->listeners = l;
    return hfsbi_ok(err);
}

static hfsb_status hfsbi_listen_failed(hfsb_err *err, int code,
                                       const char *host, unsigned port) {
    hfsb_status st =
        hfsbi_fail_os(err, code, "Cannot listen on %s port %u", host, port);
    if (code == EADDRINUSE)
        hfsbi_err_add(err, ": another program uses that port; choose another "
                           "one, or 0 to have one picked");
    else if (code == EACCES)
        hfsbi_err_add(err, ": ports below 1024 need a privilege; choose a "
                           "higher one");
    return st;
}

static int hfsbi_socket(int family) {
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0) return -1;
    fd = hfsbi_above_standard(fd);
    if (fd >= 0) (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

static int hfsbi_bind(const struct sockaddr_storage *a, socklen_t len) {
    int fd = hfsbi_socket(a->ss_family), on = 1, keep;
    if (fd < 0) return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ss_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)(const void *)a, len) == 0 &&
        listen(fd, 1024) == 0)
        return fd;
    keep = errno;
    hfsbi_close(&fd);
    errno = keep;
    return -1;
}

/* Fills *a and gives its size; 0 when host is no address. Names are not looked
   up: that asks the network, which may take its time. */
static socklen_t hfsbi_address_parse(const char *host, unsigned port,
                                     struct sockaddr_storage *a) {
    struct sockaddr_in  *four = (struct sockaddr_in *)(void *)a;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)a;
    memset(a, 0, sizeof *a);
    if (strcmp(host, "localhost") == 0) host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((unsigned short)port);
        return sizeof *four;
    }
    if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons((unsigned short)port);
        return sizeof *six;
    }
    return 0;
}

hfsb_status hfsb_server_listen(hfsb_server *server, const char *host,
                               unsigned port, unsigned *bound, hfsb_err *err) {
    struct sockaddr_storage a;
    socklen_t               len;
    int                     fd;
    if (!host || !*host) host = "127.0.0.1";
    if (port > 65535)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A port is a number up to 65535, not %u.", port);
    len = hfsbi_address_parse(host, port, &a);
    if (len == 0)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "\"%s\" is no address to listen on: give one in "
                          "numbers such as 127.0.0.1, 0.0.0.0 or ::1, or "
                          "localhost.",
                          host);
    fd = hfsbi_bind(&a, len);
    if (fd < 0) return hfsbi_listen_failed(err, errno, host, port);
    return hfsbi_listener_add(server, fd, host, false, bound, err);
}

/* True when a server listens there. One that a server left behind is removed,
   and nothing else: not one of which that is not known. */
static bool hfsbi_unix_taken(const struct sockaddr_un *a) {
    struct stat st;
    int         fd = hfsbi_socket(AF_UNIX), code = 0;
    if (fd < 0) return false; /* will be said by the next */
    /* a server with no room for more would make a blocking call wait */
    if (!hfsbi_set_nonblocking(fd) ||
        connect(fd, (const struct sockaddr *)(const void *)a, sizeof *a) != 0)
        code = errno;
    hfsbi_close(&fd);
    if (code == ECONNREFUSED && lstat(a->sun_path, &st) == 0 &&
        S_ISSOCK(st.st_mode))
        (void)unlink(a->sun_path);
    return code == 0 || code == EAGAIN || code == EINPROGRESS;
}

hfsb_status hfsb_server_listen_unix(hfsb_server *server, const char *path,
                                    hfsb_err *err) {
    struct sockaddr_un a;
    size_t             len = path ? strlen(path) : 0;
    hfsb_status        st;
    int                fd, code;
    memset(&a, 0, sizeof a);
    if (len == 0 || len >= sizeof a.sun_path)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The path of a Unix socket has 1 to %zu bytes.",
                          sizeof a.sun_path - 1);
    a.sun_family = AF_UNIX;
    memcpy(a.sun_path, path, len + 1);
    if (hfsbi_unix_taken(&a))
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "Another server listens on %s already.", path);
    fd = hfsbi_socket(AF_UNIX);
    /* fchmod before bind gives the file its mode from the start */
    if (fd < 0 || fchmod(fd, 0600) != 0 ||
        bind(fd, (const struct sockaddr *)(const void *)&a, sizeof a) != 0 ||
        chmod(path, 0600) != 0 || listen(fd, 1024) != 0) {
        code = errno;
        hfsbi_close(&fd);
        return hfsbi_fail_os(err, code, "Cannot listen on %s", path);
    }
    st = hfsbi_listener_add(server, fd, path, true, NULL, err);
    if (st != HFSB_OK) (void)unlink(path);
    return st;
}

hfsb_status hfsb_server_listen_fd(hfsb_server *server, int fd, hfsb_err *err) {
    int       on = 0;
    socklen_t len = sizeof on;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) != 0 || !on)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "Descriptor %d is not a socket that listens.", fd);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return hfsbi_listener_add(server, fd, "", false, NULL, err);
}
