/* server.c - a server: open, run, stop, close; its routes. */
#include "server_private.h"

/* ==== server listen ==== */

/* where a server listens, and taking connections. */

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

/* Since when a connection could be given up for a new one; -1: it is in use.
   Idle ones count from their last byte. Those that send a head, or a body that
   nobody wants, count from its beginning: a byte now and then makes them no
   newer. */
static long long hfsbi_accept_spare_since(const hfsbi_conn *conn) {
    const hfsb_request *r = conn->request;
    if (conn->dead) return -1;
    if (r)
        return !r->body_done && hfsbi_request_is_unwanted(r) ? r->body_at : -1;
    if (conn->lingering) return conn->linger_until - conn->server->head_ms;
    return conn->head_timed ? conn->until - conn->server->head_ms
                            : conn->moved;
}

/* The one that could be spared for longest makes room for a new one. False
   when all are in use, or new themselves. */
static bool hfsbi_accept_make_room(hfsb_server *server) {
    hfsbi_conn *conn, *oldest = NULL;
    long long   first = hfsbi_loop_now(server->loop) - HFSBI_ACCEPT_REST;
    for (conn = server->conns; conn; conn = conn->next) {
        long long since = hfsbi_accept_spare_since(conn);
        if (since < 0 || since >= first) continue;
        oldest = conn;
        first = since;
    }
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

static void hfsbi_listener_shut(hfsbi_listener *l) {
    hfsbi_loop_io_forget(l->server->loop, &l->io);
    hfsbi_close(&l->io.fd);
    if (l->made) (void)unlink(l->name.ptr);
    l->made = false;
}

/* Stops listening there; connections go on to know where they came from. */
static void hfsbi_listener_free(hfsbi_listener *l) {
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

/* ---- being told to stop ---- */

/* A pipe counts the calls: a signal handler may write to it, and no memory is
   shared with other threads. */
void hfsb_server_stop(hfsb_server *server) {
    hfsbi_wake_write(server->stop_pipe[1]);
}

static void hfsbi_stop_told(hfsbi_io *io, unsigned events) {
    hfsb_server *server =
        (hfsb_server *)(void *)((char *)io - offsetof(hfsb_server, stop_io));
    char    calls[8];
    ssize_t n = hfsbi_read(io->fd, calls, sizeof calls);
    (void)events;
    if (n > 0) server->stop_asked += (size_t)n;
}

/* False with errno. */
static bool hfsbi_stop_open(hfsb_server *server) {
    if (!hfsbi_wake_open(server->stop_pipe)) return false;
    server->stop_io.fd = server->stop_pipe[0];
    server->stop_io.fn = hfsbi_stop_told;
    return hfsbi_loop_io(server->loop, &server->stop_io, HFSBI_IO_READ);
}

/* ---- open ---- */

static long long hfsbi_or_ms(long long value, long long fallback) {
    return value > 0 ? value : fallback;
}

static hfsb_status hfsbi_server_token(hfsb_server *server, hfsb_str token,
                                      hfsb_err *err) {
    hfsb_sha256 sha;
    size_t      i;
    if (token.len == 0) return HFSB_OK;
    for (i = 0; i < token.len; i++) {
        unsigned char c = (unsigned char)token.ptr[i];
        if (c <= 0x20 || c >= 0x7f)
            return hfsbi_fail(err, HFSB_ARG, i,
                              "A token has no blanks, control characters or "
                              "characters beyond ASCII: no header could carry "
                              "it.");
    }
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, token);
    hfsb_sha256_finish(&sha, server->token);
    hfsbi_wipe(&sha, sizeof sha);
    server->has_token = true;
    return HFSB_OK;
}

static hfsb_status hfsbi_server_hosts(hfsb_server       *server,
                                      const char *const *hosts) {
    hfsb_status st = HFSB_OK;
    for (; st == HFSB_OK && hosts && *hosts; hosts++) {
        server->some_hosts = true;
        if (strcmp(*hosts, "*") == 0) server->any_host = true;
        st = hfsb_buf_append(&server->hosts,
                             hfsb_str_make(*hosts, strlen(*hosts) + 1));
    }
    return st;
}

static void hfsbi_server_limits(hfsb_server            *server,
                                const hfsb_server_opts *o) {
    server->limits.max_head = o->max_head ? o->max_head : 16384;
    server->limits.max_fields = o->max_fields ? o->max_fields : 100;
    server->limits.max_target = server->limits.max_head;
    server->max_body = o->max_body ? o->max_body : (size_t)64 << 20;
    server->max_bodies = o->max_bodies ? o->max_bodies : (size_t)256 << 20;
    server->max_connections = o->max_connections ? o->max_connections : 1024;
    server->min_rate = o->min_rate ? o->min_rate : 1024;
    server->head_ms = hfsbi_or_ms(o->head_ms, 10000);
    server->body_ms = hfsbi_or_ms(o->body_ms, 30000);
    server->idle_ms = hfsbi_or_ms(o->idle_ms, 60000);
    server->stop_ms = hfsbi_or_ms(o->stop_ms, 10000);
    server->no_auth = o->no_auth;
    server->open_to_all = o->open_to_all;
    server->on_event = o->on_event;
    server->user = o->user;
}

static hfsb_status hfsbi_server_memory(hfsb_server            *server,
                                       const hfsb_server_opts *o) {
    hfsb_status st;
    server->fields = (hfsb_http_field *)hfsbi_array(
        &o->alloc, server->limits.max_fields, sizeof *server->fields);
    server->block = (char *)hfsbi_array(&o->alloc, HFSBI_BLOCK, 1);
    if (!server->fields || !server->block) return HFSB_NOMEM;
    hfsbi_random_hex(server->instance, sizeof server->instance - 1);
    st = hfsb_buf_printf(&server->common, "X-Hfsb: %s; instance=%s\r\n",
                         HFSB_VERSION, server->instance);
    return st == HFSB_OK ? hfsbi_server_hosts(server, o->allow_hosts) : st;
}

hfsb_status hfsb_server_open(const hfsb_server_opts *opts, hfsb_server **out,
                             hfsb_err *err) {
    hfsb_server_opts none = HFSB_INIT;
    hfsb_server     *server;
    hfsb_status      st;
    *out = NULL;
    if (!opts) opts = &none;
    server = (hfsb_server *)hfsbi_array(&opts->alloc, 1, sizeof *server);
    if (!server)
        return hfsbi_fail_status(err, HFSB_NOMEM, "Opening the server");
    memset(server, 0, sizeof *server);
    server->alloc = opts->alloc;
    server->hosts.alloc = server->common.alloc = opts->alloc;
    server->stop_pipe[0] = server->stop_pipe[1] = -1;
    server->date_at = -1;
    server->accepting = true;
    hfsbi_server_limits(server, opts);
    server->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    st = hfsbi_server_token(server, opts->token, err);
    if (st == HFSB_OK) {
        st = hfsbi_server_memory(server, opts);
        if (st != HFSB_OK) hfsbi_fail_status(err, st, "Opening the server");
    }
    if (st == HFSB_OK)
        st = hfsbi_loop_open(&opts->alloc, opts->max_threads, opts->no_threads,
                             &server->loop, err);
    if (st == HFSB_OK && !hfsbi_stop_open(server))
        st = hfsbi_fail_os(err, errno, "The server cannot be opened");
    if (st != HFSB_OK) {
        hfsb_server_close(server);
        return st;
    }
    *out = server;
    return hfsbi_ok(err);
}

/* ---- close ---- */

static void hfsbi_routes_free(hfsb_server *server) {
    hfsbi_route *route;
    while ((route = server->routes) != NULL) {
        server->routes = route->next;
        hfsbi_array_free(&server->alloc, (void *)(uintptr_t)route->method.ptr,
                         route->method.len + 1, 1);
        hfsbi_array_free(&server->alloc, (void *)(uintptr_t)route->path.ptr,
                         route->path.len + 1, 1);
        hfsbi_array_free(&server->alloc, route, 1, sizeof *route);
    }
}

static void hfsbi_parts_end(hfsb_server *server) {
    hfsbi_server_part *part;
    for (part = server->parts; part; part = part->next)
        if (part->end) part->end(part);
}

/* Connections end; those with work in threads wait for it. That of the parts
   is told to end: nobody waits for it any more. */
static void hfsbi_server_drop(hfsb_server *server) {
    hfsbi_conn *conn, *next;
    for (conn = server->conns; conn; conn = next) {
        next = conn->next;
        if (!conn->dead) hfsbi_conn_close(conn);
    }
    hfsbi_parts_end(server);
    while (server->conns || hfsbi_loop_pending(server->loop))
        hfsbi_loop_turn(server->loop, 1000);
}

static void hfsbi_listeners_shut(hfsb_server *server) {
    hfsbi_listener *l;
    for (l = server->listeners; l; l = l->next) hfsbi_listener_shut(l);
}

static void hfsbi_listeners_free(hfsb_server *server) {
    hfsbi_listener *l;
    while ((l = server->listeners) != NULL) {
        server->listeners = l->next;
        hfsbi_listener_free(l);
    }
}

void hfsb_server_close(hfsb_server *server) {
    hfsb_alloc         alloc;
    hfsbi_server_part *part;
    if (!server) return;
    alloc = server->alloc;
    server->phase = 3;
    if (server->loop) {
        hfsbi_listeners_shut(server); /* while it waits no one may come */
        hfsbi_server_drop(server);
        while ((part = server->parts) != NULL) {
            server->parts = part->next;
            if (part->free) part->free(part);
        }
        hfsbi_listeners_free(server);
        hfsbi_loop_timer_clear(server->loop, &server->accept_timer);
        hfsbi_loop_timer_clear(server->loop, &server->stop_timer);
        hfsbi_loop_io_forget(server->loop, &server->stop_io);
        hfsbi_loop_close(server->loop);
    }
    hfsbi_routes_free(server);
    hfsbi_close(&server->spare);
    hfsbi_close(&server->stop_pipe[0]);
    hfsbi_close(&server->stop_pipe[1]);
    hfsb_buf_free(&server->hosts);
    hfsb_buf_free(&server->common);
    if (server->block) hfsbi_wipe(server->block, HFSBI_BLOCK);
    hfsbi_array_free(&alloc, server->block, HFSBI_BLOCK, 1);
    hfsbi_array_free(&alloc, server->fields, server->limits.max_fields,
                     sizeof *server->fields);
    hfsbi_wipe(server->token, sizeof server->token);
    hfsbi_array_free(&alloc, server, 1, sizeof *server);
}

/* ---- stop ---- */

/*  phase 1  requests under way end by themselves; nothing new begins
    phase 2  what the parts run was told to end; its replies go out
    phase 3  over                                                          */

static bool hfsbi_server_idle(const hfsb_server *server) {
    hfsbi_server_part *part;
    const hfsbi_conn  *conn;
    for (conn = server->conns; conn; conn = conn->next)
        if (conn->request || conn->tasks || conn->lingering) return false;
    for (part = server->parts; part; part = part->next)
        if (part->busy && part->busy(part)) return false;
    return true;
}

static void hfsbi_stop_late(hfsbi_timer *timer) {
    hfsb_server *server =
        (hfsb_server *)(void *)((char *)timer -
                                offsetof(hfsb_server, stop_timer));
    if (server->phase == 2) {
        server->phase = 3;
        return;
    }
    server->phase = 2;
    hfsbi_parts_end(server);
    hfsbi_loop_timer(server->loop, &server->stop_timer, server->stop_until);
}

static void hfsbi_stop_begin(hfsb_server *server) {
    long long          now = hfsb_clock_ms(), wait = HFSBI_SHORT_MS;
    hfsbi_conn        *conn, *next;
    hfsbi_server_part *part;
    server->phase = 1;
    server->stop_until = now + server->stop_ms - server->stop_ms / 10;
    if (wait > server->stop_ms / 5) wait = server->stop_ms / 5;
    hfsbi_listeners_shut(server);
    for (conn = server->conns; conn; conn = next) {
        next = conn->next;
        if (!conn->dead && !conn->request && !conn->lingering)
            hfsbi_conn_close(conn);
    }
    for (part = server->parts; part; part = part->next)
        if (part->stop) part->stop(part);
    server->stop_timer.fn = hfsbi_stop_late;
    hfsbi_loop_timer(server->loop, &server->stop_timer, now + wait);
}

/* How it stands with stopping; false once it has stopped. */
static bool hfsbi_server_goes_on(hfsb_server *server) {
    if (server->stop_asked > 1) server->phase = 3;
    else if (server->stop_asked && server->phase == 0)
        hfsbi_stop_begin(server);
    if (server->phase && hfsbi_server_idle(server)) server->phase = 3;
    return server->phase < 3;
}

/* ---- running ---- */

bool hfsb_server_poll(hfsb_server *server, long long wait_ms) {
    if (!hfsbi_server_goes_on(server)) return false;
    hfsbi_loop_turn(server->loop, wait_ms);
    return hfsbi_server_goes_on(server);
}

bool hfsb_server_step(hfsb_server *server) {
    return hfsb_server_poll(server, 0);
}

hfsb_status hfsb_server_run(hfsb_server *server, hfsb_err *err) {
    const hfsbi_server_part *part = server->parts;
    while (part && !part->place) part = part->next;
    if (!server->listeners && !part)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The server has no place to listen: call "
                          "hfsb_server_listen() first.");
    while (hfsb_server_poll(server, -1)) continue;
    return hfsbi_ok(err);
}

size_t hfsb_server_watch(hfsb_server *server, hfsb_watch *list, size_t max) {
    return hfsbi_loop_watch(server->loop, list, max);
}

long long hfsb_server_deadline(hfsb_server *server) {
    return hfsbi_loop_deadline(server->loop);
}

typedef struct hfsbi_posted {
    hfsbi_task task;
    void (*fn)(void *user);
    void      *user;
    hfsb_alloc alloc;
} hfsbi_posted;

static void hfsbi_posted_run(hfsbi_task *task) {
    hfsbi_posted *p = (hfsbi_posted *)(void *)task; /* its first member */
    hfsb_alloc    alloc = p->alloc;
    p->fn(p->user);
    hfsbi_array_free(&alloc, p, 1, sizeof *p);
}

hfsb_status hfsb_server_post(hfsb_server *server, void (*fn)(void *user),
                             void        *user) {
    hfsbi_posted *p =
        (hfsbi_posted *)hfsbi_array(&server->alloc, 1, sizeof *p);
    if (!p) return HFSB_NOMEM;
    memset(p, 0, sizeof *p);
    p->task.done = hfsbi_posted_run;
    p->fn = fn;
    p->user = user;
    p->alloc = server->alloc;
    hfsbi_loop_post(server->loop, &p->task);
    return HFSB_OK;
}

/* ---- routes ---- */

static const hfsbi_route *hfsbi_route_find(const hfsb_server *server,
                                           const hfsb_route  *want) {
    const hfsbi_route *route;
    for (route = server->routes; route; route = route->next)
        if (hfsb_str_equal(route->method, hfsb_cstr(want->method)) &&
            hfsb_str_equal(route->path, hfsb_cstr(want->path)))
            break;
    return route;
}

static size_t hfsbi_route_parts(const char *path) {
    return hfsb_str_count_byte(hfsb_cstr(path), '*');
}

hfsb_status hfsb_server_add(hfsb_server *server, const hfsb_route *route,
                            hfsb_err *err) {
    hfsbi_route *r, **link = &server->routes;
    if (!route->method || !route->path || !route->fn || route->path[0] != '/')
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A route has a method, a path that begins with "
                          "\"/\", and a function.");
    if (hfsbi_route_parts(route->path) > HFSBI_PARTS)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A route's path has at most %d \"*\".", HFSBI_PARTS);
    if (hfsbi_route_find(server, route))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "There is a route for %s %s already.", route->method,
                          route->path);
    r = (hfsbi_route *)hfsbi_array(&server->alloc, 1, sizeof *r);
    if (!r) return hfsbi_fail_status(err, HFSB_NOMEM, "Adding a route");
    memset(r, 0, sizeof *r);
    r->set = *route;
    r->set.method = hfsbi_terminated(&server->alloc, hfsb_cstr(route->method));
    r->set.path = hfsbi_terminated(&server->alloc, hfsb_cstr(route->path));
    r->method = hfsb_cstr(r->set.method);
    r->path = hfsb_cstr(r->set.path);
    while (*link) link = &(*link)->next; /* in the order they were added */
    *link = r;
    if (r->set.method && r->set.path) return hfsbi_ok(err);
    *link = NULL;
    if (r->set.method)
        hfsbi_array_free(&server->alloc, (void *)(uintptr_t)r->set.method,
                         r->method.len + 1, 1);
    if (r->set.path)
        hfsbi_array_free(&server->alloc, (void *)(uintptr_t)r->set.path,
                         r->path.len + 1, 1);
    hfsbi_array_free(&server->alloc, r, 1, sizeof *r);
    return hfsbi_fail_status(err, HFSB_NOMEM, "Adding a route");
}

/* ---- for what is built on it ---- */

HFSBI_FN hfsbi_loop *hfsbi_server_loop(hfsb_server *server) {
    return server->loop;
}

HFSBI_FN const hfsb_alloc *hfsbi_server_alloc(hfsb_server *server) {
    return &server->alloc;
}

HFSBI_FN const hfsbi_server_stats *hfsbi_server_stats_of(hfsb_server *server) {
    return &server->stats;
}

HFSBI_FN const char *hfsbi_server_instance(const hfsb_server *server) {
    return server->instance;
}

HFSBI_FN bool hfsbi_server_stopping(const hfsb_server *server) {
    return server->phase > 0;
}

HFSBI_FN bool hfsbi_server_hurries(const hfsb_server *server) {
    return server->stop_asked > 1;
}

HFSBI_FN void hfsbi_server_part_add(hfsb_server       *server,
                                    hfsbi_server_part *part) {
    part->next = server->parts;
    server->parts = part;
}
