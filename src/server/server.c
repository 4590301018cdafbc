/* server.c - a server: where it listens, how it runs and stops, its routes.

   One thread drives the server with hfsb_server_run() or hfsb_server_poll().
   Each turn of the loop accepts, reads, sends and runs timers; after it the
   connections that something happened to are settled (see conn.c).

     serving --stop--> DRAIN --drain_ms--> FINISH --2 s--> END --stop_ms-> DONE
                          |                   |             |               ^
                          |                   +-------------+-nothing left--+
                          +-------------------+-------------+-second stop---+

   DRAIN: all goes on, but health says that the server is not ready.
   FINISH: listeners are closed, requests may finish. A new request on an idle
   connection gets 503, and the connection is closed.
   END: the parts end their work, and its replies still go out.
   hfsb_server_close() works in any state: it closes connections at once, and
   waits only for work in pool threads. */
#include "server_private.h"

enum {
    HFSBI_ACCEPT_TURN = 64,   /* connections accepted at a time */
    HFSBI_ACCEPT_PAUSE = 250, /* ms of rest when no descriptor is left */
    HFSBI_ACCEPT_GRACE = 1000 /* ms before a connection may be replaced */
};

/* ---- accepting ---- */

static void hfsbi_accept_log(hfsb_server *server, int code) {
    hfsb_server_event event = HFSB_INIT;
    if (!server->on_event) return;
    event.what = "accept failed";
    event.detail = hfsb_cstr(hfsbi_os_text(code));
    server->on_event(server->user, &event);
}

HFSBI_FN void hfsbi_server_accept(hfsb_server *server, bool on) {
    hfsbi_listener *l;
    if (on == server->accept.on ||
        (on && server->stop.phase > HFSBI_STOP_DRAIN))
        return;
    server->accept.on = on;
    hfsbi_loop_timer_clear(server->loop, &server->accept.timer);
    for (l = server->accept.listeners; l; l = l->next)
        (void)hfsbi_loop_io(server->loop, &l->io, on ? HFSBI_IO_READ : 0);
}

static void hfsbi_accept_timer(hfsbi_timer *timer) {
    hfsb_server *server =
        (hfsb_server *)(void *)((char *)timer -
                                offsetof(hfsb_server, accept.timer));
    hfsbi_server_accept(server, true);
}

/* Stops accepting for a moment, or until a connection ends. */
static void hfsbi_accept_rest(hfsb_server *server) {
    hfsbi_server_accept(server, false);
    server->accept.timer.fn = hfsbi_accept_timer;
    hfsbi_loop_timer(server->loop, &server->accept.timer,
                     hfsbi_loop_now(server->loop) + HFSBI_ACCEPT_PAUSE);
}

/* No descriptor is left. The spare one is given up to accept the peer and
   close it, so that it learns at once; then accepting rests, since the
   listening socket would stay ready. */
static void hfsbi_accept_refuse(hfsb_server *server, int listener, int code) {
    int fd;
    hfsbi_close(&server->accept.spare);
    fd = accept(listener, NULL, NULL);
    if (fd >= 0) server->stats.refused++;
    hfsbi_close(&fd);
    server->accept.spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    hfsbi_accept_rest(server);
    hfsbi_accept_log(server, code);
}

/* Since when a connection could be closed in favour of a new one; -1: it is in
   use. A connection that sends a head, or an unwanted body, counts from its
   beginning: single bytes do not renew it. */
static long long hfsbi_accept_spare_since(const hfsbi_conn *conn) {
    const hfsb_request *r = conn->request;
    if (conn->state >= HFSBI_CONN_BROKEN) return -1;
    if (r && (r->body.complete || !hfsbi_conn_is_unwanted(conn))) return -1;
    return conn->since;
}

/* An IPv6 network of 64 bits is one peer. */
static bool hfsbi_peer_same(const hfsbi_peer *a, const hfsbi_peer *b) {
    return a->family == b->family &&
           memcmp(a->address, b->address, a->family == 6 ? 8 : 4) == 0;
}

static bool hfsbi_peer_is_loopback(const hfsbi_peer *peer) {
    static const unsigned char six[16] = {0, 0, 0, 0, 0, 0, 0, 0,
                                          0, 0, 0, 0, 0, 0, 0, 1};
    return peer->family == 6 ? memcmp(peer->address, six, sizeof six) == 0
                             : peer->address[0] == 127;
}

/* Closes the connection that could be spared for longest (of several the one
   accepted first), of all or (unless NULL) of one peer; false if all are in use
   or new. */
static bool hfsbi_accept_make_room(hfsb_server      *server,
                                   const hfsbi_peer *peer) {
    hfsbi_conn *conn, *oldest = NULL;
    long long   first = hfsbi_loop_now(server->loop) - HFSBI_ACCEPT_GRACE - 1;
    for (conn = server->conns; conn; conn = conn->next) { /* newest first */
        long long since = hfsbi_accept_spare_since(conn);
        if (since < 0 || since > first) continue;
        if (peer && !hfsbi_peer_same(peer, &conn->peer)) continue;
        oldest = conn;
        first = since;
    }
    if (oldest) hfsbi_conn_close(oldest);
    return oldest != NULL;
}

/* False if the peer has as many connections as one may have, and none that
   could be closed instead. */
static bool hfsbi_accept_allows(hfsb_server *server, const hfsbi_peer *peer) {
    const hfsbi_limits *limits = &server->limits;
    const hfsbi_conn   *conn;
    size_t              n = 0;
    if (peer->family == 0 ||
        (limits->local_is_free && hfsbi_peer_is_loopback(peer)))
        return true;
    for (conn = server->conns; conn; conn = conn->next)
        n += conn->state < HFSBI_CONN_CLOSED &&
             hfsbi_peer_same(peer, &conn->peer);
    return n < limits->max_per_peer || hfsbi_accept_make_room(server, peer);
}

/* Adds an accepted connection, or closes it. */
static void hfsbi_accept_take(hfsbi_listener *l, int fd,
                              const struct sockaddr_storage *address) {
    hfsb_server *server = l->server;
    int          one = 1;
    hfsbi_peer   peer =
        hfsbi_peer_of((const struct sockaddr *)(const void *)address);
    if (!hfsbi_accept_allows(server, &peer)) {
        server->stats.refused++;
        hfsbi_close(&fd);
        return;
    }
    if (!l->local)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    hfsbi_conn_add(l, fd, &peer);
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
    int                     turn, fd;
    (void)events;
    for (turn = 0; turn < HFSBI_ACCEPT_TURN; turn++) {
        if (server->stats.open >= server->limits.max_connections) {
            if (turn) return; /* there may be no other peer */
            if (!hfsbi_accept_make_room(server, NULL)) {
                hfsbi_accept_rest(server);
                return;
            }
        }
        fd = hfsbi_accept_one(l->io.fd, &peer);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                errno == ENOMEM)
                hfsbi_accept_refuse(server, l->io.fd, errno);
            return; /* the peer is gone again, or there is no other */
        }
        hfsbi_accept_take(l, fd, &peer);
    }
}

/* ---- listeners ---- */

/* Reads the socket's own address into the listener; returns its port. */
static unsigned hfsbi_listener_describe(hfsbi_listener *l) {
    struct sockaddr_storage    a;
    const struct sockaddr_in  *four = (const struct sockaddr_in *)(void *)&a;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(void *)&a;
    socklen_t                  len = sizeof a;
    memset(&a, 0, sizeof a);
    (void)getsockname(l->io.fd, (struct sockaddr *)(void *)&a, &len);
    if (a.ss_family == AF_INET) {
        l->loopback = ntohl(four->sin_addr.s_addr) >> 24 == 127;
        (void)inet_ntop(AF_INET, &four->sin_addr, l->address,
                        sizeof l->address);
        return ntohs(four->sin_port);
    }
    if (a.ss_family == AF_INET6) {
        l->loopback = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
        (void)inet_ntop(AF_INET6, &six->sin6_addr, l->address,
                        sizeof l->address);
        return ntohs(six->sin6_port);
    }
    l->local = true;
    l->loopback = a.ss_family == AF_UNIX;
    return 0;
}

/* Stops listening; the object stays, since connections point to it. Another
   server may listen at that path by now: as long as the socket is open, its
   file, removed or not, is the only one with its inode. */
static void hfsbi_listener_shut(hfsbi_listener *l) {
    struct stat st;
    if (l->made && lstat(l->name.ptr, &st) == 0 &&
        (unsigned long long)st.st_dev == l->device &&
        (unsigned long long)st.st_ino == l->inode)
        (void)unlink(l->name.ptr);
    l->made = false;
    hfsbi_loop_io_forget(l->server->loop, &l->io);
    hfsbi_close(&l->io.fd);
}

static void hfsbi_listener_free(hfsbi_listener *l) {
    hfsb_server *server = l->server;
    hfsbi_listener_shut(l);
    hfsb_buf_free(&l->name);
    hfsbi_array_free(&server->alloc, l, 1, sizeof *l);
}

/* Adds a listening socket to the server; takes over fd, even on failure. */
static hfsb_status hfsbi_listener_add(hfsb_server *server, int fd,
                                      const char *name, bool made,
                                      unsigned *bound, hfsb_err *err) {
    unsigned        port;
    hfsbi_listener *l =
        (hfsbi_listener *)hfsbi_array(&server->alloc, 1, sizeof *l);
    if (!l) {
        hfsbi_close(&fd);
        return hfsbi_fail_status(err, HFSB_NOMEM, "Listening");
    }
    memset(l, 0, sizeof *l);
    l->io.fd = fd;
    l->io.fn = hfsbi_listener_io;
    l->server = server;
    l->name.alloc = server->alloc;
    port = hfsbi_listener_describe(l);
    if (bound) *bound = port;
    if (server->access.no_auth && !server->access.open_to_all &&
        !l->loopback) {
        hfsbi_listener_free(l);
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "Without a token the server listens on loopback "
                          "only: set a token, or allow access without one "
                          "from anywhere (--public).");
    }
    if (hfsb_buf_append(&l->name, hfsb_cstr(name)) != HFSB_OK ||
        !hfsbi_set_nonblocking(fd) ||
        (server->accept.on &&
         !hfsbi_loop_io(server->loop, &l->io, HFSBI_IO_READ))) {
        hfsbi_listener_free(l);
        return hfsbi_fail_status(err, HFSB_NOMEM, "Listening");
    }
    l->made = made;
    l->next = server->accept.listeners;
    server->accept.listeners = l;
    return hfsbi_ok(err);
}

static hfsb_status hfsbi_listen_failed(hfsb_err *err, int code,
                                       const char *host, unsigned port) {
    hfsb_status st;
    if (code == EADDRINUSE)
        return hfsbi_fail(err, hfsbi_os_status(code), 0,
                          "Cannot listen on %s port %u: another program uses "
                          "that port; choose another one, or 0 to have one "
                          "picked",
                          host, port);
    st = hfsbi_fail_os(err, code, "Cannot listen on %s port %u", host, port);
    if (code == EACCES)
        hfsbi_err_add(err, ": ports below 1024 need a privilege; choose a "
                           "higher one");
    return st;
}

static int hfsbi_socket(int family) {
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0) return -1;
    fd = hfsbi_fd_above_2(fd);
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

/* Fills *a and returns its size; 0 if host is not a numeric address. Names are
   not resolved: that may block on the network. */
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

/* ---- open ---- */

static void hfsbi_stop_io(hfsbi_io *io, unsigned events) {
    hfsb_server *server =
        (hfsb_server *)(void *)((char *)io - offsetof(hfsb_server, stop.io));
    char    calls[8];
    ssize_t n = hfsbi_read(io->fd, calls, sizeof calls);
    (void)events;
    if (n > 0) server->stop.calls += (size_t)n;
}

/* False with errno. */
static bool hfsbi_stop_open(hfsb_server *server) {
    if (!hfsbi_wake_open(server->stop.pipe)) return false;
    server->stop.io.fd = server->stop.pipe[0];
    server->stop.io.fn = hfsbi_stop_io;
    return hfsbi_loop_io(server->loop, &server->stop.io, HFSBI_IO_READ);
}

static long long hfsbi_limit_ms(long long value, long long fallback) {
    return value > 0 ? value : fallback;
}

static size_t hfsbi_limit_size(size_t value, size_t fallback) {
    return value ? value : fallback;
}

static void hfsbi_limits_set(hfsbi_limits *limits, const hfsb_server_opts *o) {
    limits->http.max_head = hfsbi_limit_size(o->max_head, 16384);
    limits->http.max_fields = hfsbi_limit_size(o->max_fields, 100);
    limits->http.max_target = limits->http.max_head;
    limits->http.any_method = true; /* routes decide */
    limits->max_body = hfsbi_limit_size(o->max_body, (size_t)64 << 20);
    limits->max_bodies = hfsbi_limit_size(o->max_bodies, (size_t)256 << 20);
    limits->max_connections = hfsbi_limit_size(o->max_connections, 1024);
    limits->max_per_peer =
        hfsbi_limit_size(o->max_per_peer, (limits->max_connections + 1) / 2);
    limits->local_is_free = o->max_per_peer == 0;
    limits->min_rate = hfsbi_limit_size(o->min_rate, 1024);
    limits->head_ms = hfsbi_limit_ms(o->head_ms, 10000);
    limits->body_ms = hfsbi_limit_ms(o->body_ms, 30000);
    limits->idle_ms = hfsbi_limit_ms(o->idle_ms, 60000);
    limits->stop_ms = hfsbi_limit_ms(o->stop_ms, 10000);
    limits->drain_ms = hfsbi_limit_ms(o->drain_ms, 0);
}

HFSBI_FN hfsb_status hfsbi_server_check_token(hfsb_str token, hfsb_err *err) {
    size_t i;
    for (i = 0; i < token.len; i++) {
        unsigned char c = (unsigned char)token.ptr[i];
        if (c <= 0x20 || c >= 0x7f)
            return hfsbi_fail(err, HFSB_ARG, i,
                              "A token must be visible ASCII without blanks: "
                              "a header could not carry it.");
    }
    return HFSB_OK;
}

/* Keeps the digest of the token. */
static hfsb_status hfsbi_access_set_token(hfsbi_access *access, hfsb_str token,
                                          hfsb_err *err) {
    hfsb_sha256 sha;
    hfsb_status st = hfsbi_server_check_token(token, err);
    if (token.len == 0 || st != HFSB_OK) return st;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, token);
    hfsb_sha256_finish(&sha, access->token);
    hfsb_secret_wipe(&sha, sizeof sha);
    access->has_token = true;
    return HFSB_OK;
}

static hfsb_status hfsbi_server_allocate(hfsb_server            *server,
                                         const hfsb_server_opts *o) {
    const char *const *host = o->allow_hosts;
    server->fields = (hfsb_http_field *)hfsbi_array(
        &o->alloc, server->limits.http.max_fields, sizeof *server->fields);
    server->block = (char *)hfsbi_array(&o->alloc, HFSBI_BLOCK, 1);
    if (!server->fields || !server->block) return HFSB_NOMEM;
    hfsbi_random_hex(server->instance, sizeof server->instance - 1);
    if (!o->no_name)
        hfsb_buf_printf(&server->common, "X-Hfsb: %s; instance=%s\r\n",
                        HFSB_VERSION, server->instance);
    hfsb_buf_append(&server->common,
                    HFSB_LIT("X-Content-Type-Options: nosniff\r\n"));
    for (; host && *host; host++)
        hfsb_buf_append(&server->access.hosts,
                        hfsb_str_make(*host, strlen(*host) + 1));
    return server->common.status ? server->common.status
                                 : server->access.hosts.status;
}

/* Fills an all-zero server; a failure leaves it for hfsb_server_close(). */
static hfsb_status hfsbi_server_fill(hfsb_server            *server,
                                     const hfsb_server_opts *o,
                                     hfsb_err               *err) {
    hfsb_status st;
    server->alloc = o->alloc;
    server->access.hosts.alloc = server->common.alloc = o->alloc;
    server->group.env.alloc = server->group.plan.doc.alloc = o->alloc;
    server->access.no_auth = o->no_auth;
    server->access.authorize = o->authorize;
    server->access.late = o->late_token && !o->no_auth;
    server->access.open_to_all = o->open_to_all;
    server->on_event = o->on_event;
    server->user = o->user;
    server->stop.pipe[0] = server->stop.pipe[1] = -1;
    server->date_at = -1;
    server->accept.on = true;
    server->accept.spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    hfsbi_limits_set(&server->limits, o);
    st = hfsbi_access_set_token(&server->access, o->token, err);
    if (st != HFSB_OK) return st;
    st = hfsbi_server_allocate(server, o);
    if (st != HFSB_OK) return hfsbi_fail_status(err, st, "Opening the server");
    st = hfsbi_loop_open(&o->alloc, o->max_threads, o->no_threads,
                         &server->loop, err);
    if (st != HFSB_OK) return st;
    server->group.loop = server->loop;
    server->group.max_input = server->limits.max_bodies;
    if (!hfsbi_stop_open(server))
        return hfsbi_fail_os(err, errno, "The server cannot be opened");
    hfsbi_server_set_idle(server, o->max_idle_ms);
    return hfsbi_ok(err);
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
    st = hfsbi_server_fill(server, opts, err);
    if (st != HFSB_OK) hfsb_server_close(server);
    else *out = server;
    return st;
}

/* ---- close ---- */

static void hfsbi_listeners_shut(hfsb_server *server) {
    hfsbi_listener *l;
    for (l = server->accept.listeners; l; l = l->next) hfsbi_listener_shut(l);
}

static void hfsbi_listeners_free(hfsb_server *server) {
    hfsbi_listener *l;
    while ((l = server->accept.listeners) != NULL) {
        server->accept.listeners = l->next;
        hfsbi_listener_free(l);
    }
}

static size_t hfsbi_route_size(const hfsbi_route *route) {
    return sizeof *route + route->method.len + route->path.len +
           route->accept.len + 3;
}

static void hfsbi_routes_free(hfsb_server *server) {
    hfsbi_route *route;
    while ((route = server->routes) != NULL) {
        server->routes = route->next;
        hfsbi_array_free(&server->alloc, route, hfsbi_route_size(route), 1);
    }
}

static void hfsbi_parts_end(hfsb_server *server) {
    hfsbi_server_part *part;
    for (part = server->parts; part; part = part->next)
        if (part->end) part->end(part);
}

static void hfsbi_server_turn(hfsb_server *server, long long wait_ms) {
    hfsbi_loop_lock(server->loop);
    hfsbi_loop_turn(server->loop, wait_ms);
    hfsbi_loop_unlock(server->loop);
}

/* Closes the connections and waits for work in threads; the parts cancel
   theirs, since nobody waits for it. */
static void hfsbi_conns_close(hfsb_server *server) {
    hfsbi_conn *conn, *next;
    for (conn = server->conns; conn; conn = next) {
        next = conn->next;
        if (conn->state != HFSBI_CONN_CLOSED) hfsbi_conn_close(conn);
    }
    hfsbi_parts_end(server);
    while (server->conns || hfsbi_loop_pending(server->loop))
        hfsbi_server_turn(server, 1000);
}

void hfsb_server_close(hfsb_server *server) {
    hfsb_alloc         alloc;
    hfsbi_server_part *part;
    if (!server) return;
    alloc = server->alloc;
    server->stop.phase = HFSBI_STOP_DONE;
    if (server->loop) {
        hfsbi_listeners_shut(server); /* nobody may come during the wait */
        hfsbi_conns_close(server);
        while ((part = server->parts) != NULL) {
            server->parts = part->next;
            if (part->free) part->free(part);
        }
        hfsbi_timers_close(server);
        hfsbi_listeners_free(server);
        hfsbi_loop_timer_clear(server->loop, &server->accept.timer);
        hfsbi_loop_timer_clear(server->loop, &server->stop.timer);
        hfsbi_loop_timer_clear(server->loop, &server->stop.idle.timer);
        hfsbi_loop_io_forget(server->loop, &server->stop.io);
        hfsbi_loop_close(server->loop);
    }
    hfsbi_routes_free(server);
    hfsbi_close(&server->accept.spare);
    hfsbi_close(&server->stop.pipe[0]);
    hfsbi_close(&server->stop.pipe[1]);
    hfsb_buf_free(&server->access.hosts);
    hfsb_buf_free(&server->common);
    hfsb_buf_free(&server->group.env);
    hfsbi_plan_free(&server->group.plan);
    if (server->block) hfsb_secret_wipe(server->block, HFSBI_BLOCK);
    hfsbi_array_free(&alloc, server->block, HFSBI_BLOCK, 1);
    hfsbi_array_free(&alloc, server->fields, server->limits.http.max_fields,
                     sizeof *server->fields);
    hfsb_secret_wipe(server->access.token, sizeof server->access.token);
    hfsbi_array_free(&alloc, server, 1, sizeof *server);
}

/* ---- where it listens ---- */

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
                          "\"%s\" is not a numeric address: use one such as "
                          "127.0.0.1, 0.0.0.0 or ::1, or localhost.",
                          host);
    fd = hfsbi_bind(&a, len);
    if (fd < 0) return hfsbi_listen_failed(err, errno, host, port);
    return hfsbi_listener_add(server, fd, host, false, bound, err);
}

HFSBI_FN hfsb_status hfsbi_face_listen(hfsb_server *server, hfsbi_face *face,
                                       const char *host, unsigned port,
                                       unsigned *bound, hfsb_err *err) {
    hfsb_status st = hfsb_server_listen(server, host, port, bound, err);
    if (st == HFSB_OK) server->accept.listeners->face = face;
    return st;
}

/* True if a server listens there. Removes the stale socket of a server that
   died, and nothing else. */
static bool hfsbi_unix_taken(const struct sockaddr_un *a) {
    struct stat st;
    int         fd = hfsbi_socket(AF_UNIX), code = 0;
    if (fd < 0) return false; /* the caller's own socket() fails too */
    /* a server with a full backlog would make a blocking call wait */
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
    struct stat        file;
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
                          "Another server already listens on %s.", path);
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
    else if (lstat(path, &file) == 0) {
        server->accept.listeners->device = (unsigned long long)file.st_dev;
        server->accept.listeners->inode = (unsigned long long)file.st_ino;
    }
    return st;
}

hfsb_status hfsb_server_listen_fd(hfsb_server *server, int fd, hfsb_err *err) {
    int       on = 0;
    socklen_t len = sizeof on;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) != 0 || !on)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "Descriptor %d is not a listening socket.", fd);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return hfsbi_listener_add(server, fd, "", false, NULL, err);
}

/* ---- stop ---- */

/* Between requests: nothing is lost when such a connection closes. */
static bool hfsbi_conn_is_idle(const hfsbi_conn *conn) {
    return conn->state == HFSBI_CONN_IDLE || conn->state == HFSBI_CONN_HEAD;
}

static bool hfsbi_server_is_idle(const hfsb_server *server) {
    hfsbi_server_part *part;
    const hfsbi_conn  *conn;
    for (conn = server->conns; conn; conn = conn->next)
        if (!hfsbi_conn_is_idle(conn)) return false;
    for (part = server->parts; part; part = part->next)
        if (part->busy && part->busy(part)) return false;
    return true;
}

static void hfsbi_stop_begin(hfsb_server *server);

/* The time of a phase is over. */
static void hfsbi_stop_timer(hfsbi_timer *timer) {
    hfsb_server *server =
        (hfsb_server *)(void *)((char *)timer -
                                offsetof(hfsb_server, stop.timer));
    if (server->stop.phase == HFSBI_STOP_DRAIN) {
        hfsbi_stop_begin(server);
        return;
    }
    if (server->stop.phase == HFSBI_STOP_END) {
        server->stop.phase = HFSBI_STOP_DONE;
        return;
    }
    server->stop.phase = HFSBI_STOP_END;
    hfsbi_parts_end(server);
    hfsbi_loop_timer(server->loop, &server->stop.timer, server->stop.until);
}

static void hfsbi_stop_begin(hfsb_server *server) {
    long long          now = hfsb_clock_ms(), wait = HFSBI_SHORT_MS;
    long long          most = server->limits.stop_ms;
    hfsbi_server_part *part;
    server->stop.phase = HFSBI_STOP_FINISH;
    server->stop.until = now + most - most / 10;
    if (wait > most / 5) wait = most / 5;
    hfsbi_listeners_shut(server);
    for (part = server->parts; part; part = part->next)
        if (part->stop) part->stop(part);
    server->stop.timer.fn = hfsbi_stop_timer;
    hfsbi_loop_timer(server->loop, &server->stop.timer, now + wait);
}

static void hfsbi_stop_drain(hfsb_server *server) {
    server->stop.phase = HFSBI_STOP_DRAIN;
    server->stop.timer.fn = hfsbi_stop_timer;
    hfsbi_loop_timer(server->loop, &server->stop.timer,
                     hfsb_clock_ms() + server->limits.drain_ms);
}

/* Closes connections without a request: the server has stopped. */
static void hfsbi_stop_finish(hfsb_server *server) {
    hfsbi_conn *conn, *next;
    server->stop.phase = HFSBI_STOP_DONE;
    for (conn = server->conns; conn; conn = next) {
        next = conn->next;
        if (hfsbi_conn_is_idle(conn)) hfsbi_conn_close(conn);
    }
}

/* Settles connections and moves a stop on; false once it is done. Under the
   lock of the loop: threads of its pool set timers, too. */
static bool hfsbi_server_settle_locked(hfsb_server *server) {
    hfsbi_stop *stop = &server->stop;
    hfsbi_conns_settle(server);
    if (stop->calls > 1) stop->phase = HFSBI_STOP_DONE;
    else if (stop->calls && stop->phase == HFSBI_STOP_NO) {
        if (server->limits.drain_ms) hfsbi_stop_drain(server);
        else hfsbi_stop_begin(server);
    }
    if (stop->phase > HFSBI_STOP_DRAIN && stop->phase < HFSBI_STOP_DONE &&
        hfsbi_server_is_idle(server))
        hfsbi_stop_finish(server);
    return stop->phase < HFSBI_STOP_DONE;
}

static bool hfsbi_server_settle(hfsb_server *server) {
    bool goes_on;
    hfsbi_loop_lock(server->loop);
    goes_on = hfsbi_server_settle_locked(server);
    hfsbi_loop_unlock(server->loop);
    return goes_on;
}

/* ---- running ---- */

hfsb_status hfsb_server_run(hfsb_server *server, hfsb_err *err) {
    const hfsbi_server_part *part = server->parts;
    while (part && !part->place) part = part->next;
    if (!server->accept.listeners && !part)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The server does not listen anywhere: call "
                          "hfsb_server_listen() first.");
    while (hfsb_server_poll(server, -1)) continue;
    return hfsbi_ok(err);
}

/* A pipe counts the calls: a signal handler may write to it, and no memory is
   shared with other threads. */
void hfsb_server_stop(hfsb_server *server) {
    hfsbi_wake_write(server->stop.pipe[1]);
}

/* Settled before the wait as well: a host may reply between two polls. */
bool hfsb_server_poll(hfsb_server *server, long long wait_ms) {
    if (!hfsbi_server_settle(server)) return false;
    hfsbi_server_turn(server, wait_ms);
    return hfsbi_server_settle(server);
}

size_t hfsb_server_watch(hfsb_server *server, hfsb_watch *list, size_t max) {
    return hfsbi_loop_watch(server->loop, list, max);
}

long long hfsb_server_deadline(hfsb_server *server) {
    return server->touched ? 0 : hfsbi_loop_deadline(server->loop);
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

/* True if routes of both are shown at one place. */
static bool hfsbi_faces_meet(const hfsbi_face *a, const hfsbi_face *b) {
    return a == b || !((a && a->alone) || (b && b->alone));
}

static const hfsbi_route *hfsbi_route_find(const hfsb_server *server,
                                           const hfsbi_face  *face,
                                           const hfsb_route  *want) {
    const hfsbi_route *route;
    for (route = server->routes; route; route = route->next)
        if (hfsbi_faces_meet(route->face, face) &&
            hfsb_str_equal(route->method, hfsb_cstr(want->method)) &&
            hfsb_str_equal(route->path, hfsb_cstr(want->path)) &&
            hfsb_str_equal(route->accept, hfsb_cstr(want->accept)))
            break;
    return route;
}

static hfsb_status hfsbi_route_check(const hfsb_server *server,
                                     const hfsbi_face  *face,
                                     const hfsb_route *route, hfsb_err *err) {
    if (!route->method || !route->path || !route->fn || route->path[0] != '/')
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A route needs a method, a path that begins with "
                          "\"/\", and a function.");
    if (hfsb_str_count_byte(hfsb_cstr(route->path), '*') > HFSBI_PARTS)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The path of a route may have at most %d \"*\".",
                          HFSBI_PARTS);
    if (hfsbi_route_find(server, face, route))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "There is already a route for %s %s.", route->method,
                          route->path);
    return HFSB_OK;
}

hfsb_status hfsb_server_add(hfsb_server *server, const hfsb_route *route,
                            hfsb_err *err) {
    return hfsbi_face_add(server, NULL, route, err);
}

/* One block:  struct | method NUL | path NUL | accept NUL */
HFSBI_FN hfsb_status hfsbi_face_add(hfsb_server *server, hfsbi_face *face,
                                    const hfsb_route *route, hfsb_err *err) {
    hfsbi_route *r, new_route = HFSB_INIT, **link = &server->routes;
    char        *text;
    hfsb_status  st = hfsbi_route_check(server, face, route, err);
    if (st != HFSB_OK) return st;
    new_route.face = face;
    new_route.set = *route;
    new_route.method = hfsb_cstr(route->method);
    new_route.path = hfsb_cstr(route->path);
    new_route.accept = hfsb_cstr(route->accept); /* or NULL */
    r = (hfsbi_route *)hfsbi_array(&server->alloc,
                                   hfsbi_route_size(&new_route), 1);
    if (!r) return hfsbi_fail_status(err, HFSB_NOMEM, "Adding a route");
    *r = new_route;
    text = (char *)(r + 1);
    memcpy(text, route->method, r->method.len + 1);
    r->method.ptr = r->set.method = text;
    text += r->method.len + 1;
    memcpy(text, route->path, r->path.len + 1);
    r->path.ptr = r->set.path = text;
    text += r->path.len + 1;
    text[r->accept.len] = '\0';
    if (r->accept.len) memcpy(text, route->accept, r->accept.len);
    if (r->accept.len) r->accept.ptr = r->set.accept = text;
    while (*link) link = &(*link)->next; /* in the order they were added */
    *link = r;
    return hfsbi_ok(err);
}

/* ---- for the rooms built on the server ---- */

HFSBI_FN const hfsb_route *hfsbi_server_route(const hfsb_server *server,
                                              size_t             n) {
    const hfsbi_route *route;
    for (route = server->routes; route; route = route->next)
        if (!route->face && n-- == 0) return &route->set;
    return NULL;
}

HFSBI_FN hfsbi_loop *hfsbi_server_loop(hfsb_server *server) {
    return server->loop;
}

HFSBI_FN const unsigned char *hfsbi_server_token(const hfsb_server *server) {
    return server->access.has_token ? server->access.token : NULL;
}

HFSBI_FN bool hfsbi_server_takes_token(const hfsb_server *server) {
    return server->access.late;
}

HFSBI_FN hfsb_status hfsbi_server_set_token(hfsb_server *server,
                                            hfsb_str token, hfsb_err *err) {
    return hfsbi_access_set_token(&server->access, token, err);
}

HFSBI_FN bool hfsbi_server_is_open(const hfsb_server *server) {
    return server->access.no_auth;
}

HFSBI_FN hfsbi_tools_group *hfsbi_server_group(hfsb_server *server) {
    return &server->group;
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

HFSBI_FN bool hfsbi_server_is_stopping(const hfsb_server *server) {
    return server->stop.phase != HFSBI_STOP_NO;
}

HFSBI_FN bool hfsbi_server_is_closing(const hfsb_server *server) {
    return server->stop.phase > HFSBI_STOP_DRAIN;
}

HFSBI_FN bool hfsbi_server_must_end(const hfsb_server *server) {
    return server->stop.calls > 1;
}

HFSBI_FN void hfsbi_server_part_add(hfsb_server       *server,
                                    hfsbi_server_part *part) {
    part->next = server->parts;
    server->parts = part;
}
