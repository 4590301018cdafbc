/* net.c - the built-in transport: one request over a socket, and its reply. */
#include "net_private.h"

/* A connection, and what a call on it needs: kept together, since a call on a
   kept connection needs no memory then. */
typedef struct hfsbi_link {
    struct hfsbi_link *next; /* of those that are kept */
    hfsb_alloc         alloc;
    int                fd;                    /* -1: not connected */
    char               host[HFSBI_LINK_HOST]; /* in lower case */
    unsigned           port;
    long               pid;   /* of the process that connected */
    long long          until; /* when it is too old, once it is kept */
    hfsb_buf           out;   /* the head of the request, pieces of the body */
    char              *in;    /* room bytes: what came and is not read yet */
    size_t             room, have;
    hfsb_http_field   *fields;
    size_t             max_fields;
} hfsbi_link;

/* How long connecting may take. */
typedef struct hfsbi_connect {
    long long          ms;    /* that it may take in all, for the message */
    long long          until; /* on the clock */
    const hfsb_cancel *cancel;
} hfsbi_connect;

typedef struct hfsbi_net {
    hfsb_alloc       alloc;
    hfsb_http_limits limits; /* of replies */
    hfsbi_proxy      proxy;
    pthread_mutex_t  lock; /* of what follows */
    hfsbi_link      *kept; /* the one used last comes first */
    size_t           count, max_kept;
    long long        kept_ms;
} hfsbi_net;

/* ==== net socket ==== */

/* waiting, connecting and sending. */

/* ---- errors ---- */

/* The words for an errno of the network. */
static const char *hfsbi_net_text(int code) {
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

/* HFSB_OK, or as perform() has it, with nothing left open. */
static hfsb_status
hfsbi_link_connect(hfsbi_link *link, const hfsbi_connect *how, hfsb_err *err) {
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

/* True when the peer has neither closed it nor sent anything. */
static bool hfsbi_link_quiet(const hfsbi_link *link) {
    char    byte;
    ssize_t n;
    do n = recv(link->fd, &byte, 1, MSG_PEEK);
    while (n < 0 && errno == EINTR);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* sendmsg() of up to two views; as send() has it, never a signal. */
static ssize_t hfsbi_link_send(hfsbi_link *link, hfsb_str a, hfsb_str b) {
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

/* ==== net pool ==== */

/* connections that are kept for the next call. */

/* Bytes that are read at once, and what a kept one may hold for the head of
   its next request. */
#define HFSBI_LINK_ROOM    ((size_t)65536)
#define HFSBI_LINK_MAX_OUT ((size_t)65536)

/* ---- one connection ---- */

/* One that leads there: a kept one (*kept), or a new one that is not connected
   yet. fresh: only such a one. NULL without memory. */
static void hfsbi_link_close(hfsbi_link *link) {
    hfsb_alloc alloc;
    if (!link) return;
    alloc = link->alloc;
    hfsbi_close(&link->fd);
    hfsb_buf_free(&link->out);
    hfsbi_array_free(&alloc, link->in, link->room, 1);
    hfsbi_array_free(&alloc, link->fields, link->max_fields,
                     sizeof *link->fields);
    hfsbi_array_free(&alloc, link, 1, sizeof *link);
}

static hfsbi_link *hfsbi_link_make(const hfsbi_net *net, hfsb_str host,
                                   unsigned port) {
    hfsbi_link *link = (hfsbi_link *)hfsbi_array(&net->alloc, 1, sizeof *link);
    size_t      i;
    if (!link) return NULL;
    memset(link, 0, sizeof *link);
    link->alloc = link->out.alloc = net->alloc;
    link->fd = -1;
    link->port = port;
    for (i = 0; i < host.len && i + 1 < sizeof link->host; i++)
        link->host[i] = hfsbi_lower(host.ptr[i]);
    link->room = net->limits.max_head > HFSBI_LINK_ROOM ? net->limits.max_head
                                                        : HFSBI_LINK_ROOM;
    link->max_fields = net->limits.max_fields;
    link->in = (char *)hfsbi_array(&net->alloc, link->room, 1);
    link->fields = (hfsb_http_field *)hfsbi_array(
        &net->alloc, link->max_fields, sizeof *link->fields);
    if (link->in && link->fields) return link;
    if (!link->in) link->room = 0;
    if (!link->fields) link->max_fields = 0;
    hfsbi_link_close(link);
    return NULL;
}

/* ---- all of them; the lock is held only to change the list, never while
   something is closed or looked at ---- */

static void hfsbi_pool_close_all(hfsbi_link *list) {
    while (list) {
        hfsbi_link *next = list->next;
        hfsbi_link_close(list);
        list = next;
    }
}

/* Takes out those that are too old, and the first that leads to the place;
   both are put in front of the lists. */
static void hfsbi_pool_sort(hfsbi_net *net, hfsb_str host, unsigned port,
                            hfsbi_link **found, hfsbi_link **old) {
    hfsbi_link **at = &net->kept, *link;
    long long    now = hfsb_clock_ms();
    long         pid = (long)getpid();
    while ((link = *at) != NULL) {
        bool fits = !*found && link->port == port &&
                    hfsb_http_same(hfsb_cstr(link->host), host);
        bool stale = link->until <= now || link->pid != pid;
        if (!fits && !stale) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        net->count--;
        link->next = stale ? *old : NULL;
        *(stale ? old : found) = link;
    }
}

static hfsbi_link *hfsbi_pool_take(hfsbi_net *net, hfsb_str host,
                                   unsigned port, bool fresh, bool *kept) {
    *kept = false;
    while (!fresh) {
        hfsbi_link *found = NULL, *old = NULL;
        (void)pthread_mutex_lock(&net->lock);
        hfsbi_pool_sort(net, host, port, &found, &old);
        (void)pthread_mutex_unlock(&net->lock);
        hfsbi_pool_close_all(old);
        if (!found) break;
        *kept = hfsbi_link_quiet(found);
        if (*kept) return found;
        hfsbi_link_close(found);
    }
    return hfsbi_link_make(net, host, port);
}

static void hfsbi_pool_keep(hfsbi_net *net, hfsbi_link *link, long long ms) {
    hfsbi_link **last, *old = NULL;
    link->until = hfsb_clock_ms() + (ms < net->kept_ms ? ms : net->kept_ms);
    link->have = 0;
    if (link->out.cap > HFSBI_LINK_MAX_OUT) hfsb_buf_free(&link->out);
    (void)pthread_mutex_lock(&net->lock);
    link->next = net->kept;
    net->kept = link;
    if (net->count++ == net->max_kept) {
        for (last = &net->kept; (*last)->next;) last = &(*last)->next;
        old = *last;
        *last = NULL;
        net->count--;
    }
    (void)pthread_mutex_unlock(&net->lock);
    hfsbi_pool_close_all(old);
}

static void hfsbi_pool_clear(hfsbi_net *net) {
    hfsbi_pool_close_all(net->kept);
    net->kept = NULL;
    net->count = 0;
}

enum {
    HFSBI_NET_PIECE = 65536,      /* bytes asked of body_read at once */
    HFSBI_NET_MAX_INTERIM = 1000, /* replies before the reply */
    HFSBI_NET_MAX_HEAD = 16777216
};

/* One request and its reply on one connection. */
typedef struct hfsbi_exchange {
    hfsbi_net            *net;
    const hfsb_http_call *call;
    hfsb_err             *err;
    hfsbi_link           *link;
    hfsb_http_parser      parser;
    long long             total_at; /* on the clock; or HFSBI_FOREVER */
    long long             moved;    /* when a byte came or went */
    /* the request */
    hfsb_str           out, body; /* of the head or a piece; of call->body */
    unsigned long long to_ask;    /* of body_read */
    bool               asked;     /* body_read */
    bool               sent;      /* a byte of it */
    bool               stopped;   /* no more of it is sent, ... */
    int stop_code; /* ... since sending failed, so an errno or 0 */
    /* the reply */
    bool      came;     /* a byte of it */
    bool      over;     /* it is whole */
    bool      answered; /* its head has come, not only interim ones */
    bool      until_close, keep;
    int       interim;
    long long keep_ms;
} hfsbi_exchange;

/* ---- the request ---- */

/* Fields that frame a message, or say whom it is for. */
static bool hfsbi_net_owns(hfsb_str name) {
    static const char *const own[] = {"Host", "Content-Length", "Connection",
                                      "Transfer-Encoding"};
    size_t                   i;
    for (i = 0; i < sizeof own / sizeof *own; i++)
        if (hfsb_http_same(name, hfsb_cstr(own[i]))) return true;
    return false;
}

static hfsb_status hfsbi_net_put_fields(hfsbi_exchange *x, hfsb_buf *out,
                                        bool *login) {
    const hfsb_http_call *call = x->call;
    size_t                i;
    for (i = 0; i < call->field_count; i++) {
        hfsb_str    name = call->fields[i].name;
        hfsb_status st = HFSB_ARG;
        if (!hfsbi_net_owns(name))
            st = hfsb_http_put_field(out, name, call->fields[i].value);
        if (hfsb_http_same(name, hfsb_cstr("Proxy-Authorization")))
            *login = true;
        if (st == HFSB_OK) continue;
        if (st != HFSB_ARG) return hfsbi_fail_status(x->err, st, "request");
        hfsbi_fail(x->err, HFSB_ARG, i, "The field ");
        hfsbi_err_quote(x->err, name, 60);
        hfsbi_err_add(x->err, hfsbi_net_owns(name)
                                  ? " is set by the transport."
                                  : " cannot be sent: its name is none, or "
                                    "its value holds a control byte.");
        return HFSB_ARG;
    }
    return HFSB_OK;
}

/* Absolute for a proxy, else path and query. */
static hfsb_status hfsbi_net_put_line(const hfsbi_exchange *x,
                                      const hfsb_url *url, bool proxied,
                                      hfsb_buf *out) {
    hfsb_buf    target = HFSB_INIT;
    size_t      mark = target.len;
    hfsb_status st;
    bool        slash = !url->target.len || *url->target.ptr != '/';
    if (!proxied && !slash)
        return hfsb_http_put_request(out, x->call->method, url->target);
    target.alloc = out->alloc;
    if (proxied) {
        hfsb_buf_append(&target, hfsb_str_make("http://", 7));
        hfsb_buf_append(&target, url->authority);
    }
    if (slash) hfsb_buf_append_byte(&target, '/');
    hfsb_buf_append(&target, url->target);
    st = hfsb_buf_finish(&target, mark);
    if (st == HFSB_OK)
        st =
            hfsb_http_put_request(out, x->call->method, hfsb_buf_str(&target));
    hfsb_buf_free(&target);
    return st;
}

static bool hfsbi_net_is(hfsb_str method, const char *name) {
    return hfsb_str_equal(method, hfsb_cstr(name));
}

/* How long the body is; false when the request has none, and says nothing. */
static bool hfsbi_net_body_length(const hfsb_http_call *call,
                                  unsigned long long   *length) {
    *length = call->body_read ? call->body_length : call->body.len;
    return call->body_read || call->body.ptr ||
           hfsbi_net_is(call->method, "POST") ||
           hfsbi_net_is(call->method, "PUT") ||
           hfsbi_net_is(call->method, "PATCH");
}

/* The whole head, in link->out. */
static hfsb_status hfsbi_net_put_head(hfsbi_exchange *x, const hfsb_url *url,
                                      bool proxied) {
    hfsb_buf          *out = &x->link->out;
    const hfsb_buf    *login = &x->net->proxy.login;
    hfsb_str           host = url->authority;
    unsigned long long length;
    bool               has_login = false;
    hfsb_status        st;
    hfsb_buf_truncate(out, 0);
    st = hfsbi_net_put_line(x, url, proxied, out);
    if (st == HFSB_ARG)
        return hfsbi_fail(x->err, st, 0, "The method is none.");
    if (host.ptr[host.len - 1] == ':') host.len--; /* "host:" is host */
    if (st == HFSB_OK)
        st = hfsb_http_put_field(out, hfsb_str_make("Host", 4), host);
    if (st != HFSB_OK) return hfsbi_fail_status(x->err, st, "request");
    st = hfsbi_net_put_fields(x, out, &has_login);
    if (st != HFSB_OK) return st;
    if (proxied && login->len && !has_login)
        st = hfsb_http_put_field(out, hfsb_cstr("Proxy-Authorization"),
                                 hfsb_buf_str(login));
    if (st == HFSB_OK && hfsbi_net_body_length(x->call, &length))
        st = hfsb_buf_printf(out, "Content-Length: %llu\r\n", length);
    if (st == HFSB_OK) st = hfsb_http_put_head_end(out);
    return st == HFSB_OK ? st : hfsbi_fail_status(x->err, st, "request");
}

/* ---- sending ---- */

static hfsb_status hfsbi_net_lost(hfsbi_exchange *x, int code) {
    if (!code) code = x->stop_code;
    return hfsbi_fail(
        x->err, HFSB_LOST, 0, "The connection to %s:%u ended %s%s%s.",
        x->link->host, x->link->port,
        x->came ? "in the middle of its reply" : "before a reply came",
        code ? ": " : "", code ? hfsbi_net_text(code) : "");
}

static bool hfsbi_net_has_more(const hfsbi_exchange *x) {
    return !x->stopped && (x->out.len || x->body.len || x->to_ask);
}

/* The next piece of the body into link->out, which is sent. */
static hfsb_status hfsbi_net_ask(hfsbi_exchange *x) {
    hfsb_buf   *out = &x->link->out;
    size_t      room = HFSBI_NET_PIECE, got = 0;
    hfsb_status st;
    hfsb_buf_truncate(out, 0);
    st = hfsb_buf_reserve(out, room);
    if (st != HFSB_OK) return hfsbi_fail_status(x->err, st, "request");
    if (room > x->to_ask) room = (size_t)x->to_ask;
    x->asked = true;
    if (x->err) hfsbi_ok(x->err);
    st = x->call->body_read(x->call->user, out->ptr, room, &got, x->err);
    if (st != HFSB_OK) return st;
    if (!got || got > room)
        return hfsbi_fail(x->err, HFSB_ARG, 0,
                          "body_read gave %zu bytes, of 1 to %zu.", got, room);
    x->to_ask -= got;
    x->out = hfsb_str_make(out->ptr, got);
    return HFSB_OK;
}

/* As much as the socket takes, or one piece. That the peer closed does not end
   the call: one that refuses a body answers first and closes then. */
static hfsb_status hfsbi_net_send(hfsbi_exchange *x) {
    hfsb_status st = HFSB_OK;
    ssize_t     n;
    size_t      done;
    if (!hfsbi_net_has_more(x)) return HFSB_OK;
    if (!x->out.len && !x->body.len) st = hfsbi_net_ask(x);
    if (st != HFSB_OK) return st;
    n = hfsbi_link_send(x->link, x->out, x->body);
    if (n < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) return HFSB_OK;
        if (errno != EPIPE && errno != ECONNRESET)
            return hfsbi_net_lost(x, errno);
        x->stop_code = errno;
        x->stopped = true;
        return HFSB_OK;
    }
    x->sent = x->sent || n > 0;
    x->moved = hfsb_clock_ms();
    done = (size_t)n < x->out.len ? (size_t)n : x->out.len;
    x->out = hfsb_str_slice(x->out, done, x->out.len);
    x->body = hfsb_str_slice(x->body, (size_t)n - done, x->body.len);
    return HFSB_OK;
}

/* ---- the reply ---- */

/* "Keep-Alive: timeout=5": what is left of it, less a second for the way. */
static long long hfsbi_net_keep_ms(const hfsb_http_head *head) {
    hfsb_str  value = hfsb_http_field_find(head, "Keep-Alive");
    size_t    at = hfsb_str_find(value, hfsb_str_make("timeout=", 8));
    long long seconds = 0;
    if (at == HFSB_NPOS) return HFSBI_FOREVER;
    for (at += 8; at < value.len && seconds < 100000 && value.ptr[at] >= '0' &&
                  value.ptr[at] <= '9';
         at++)
        seconds = seconds * 10 + (value.ptr[at] - '0');
    return seconds * 1000 - 1000;
}

static hfsb_status hfsbi_net_head(hfsbi_exchange       *x,
                                  const hfsb_http_head *head) {
    if (head->status < 200 && head->status != 101) {
        if (++x->interim > HFSBI_NET_MAX_INTERIM)
            return hfsbi_fail(x->err, HFSB_REMOTE, 0,
                              "%s sends interim replies without end.",
                              x->link->host);
        return HFSB_OK;
    }
    x->answered = true;
    x->until_close = head->body == HFSB_HTTP_UNTIL_CLOSE;
    x->keep = head->keep_alive && !x->until_close && head->status != 101;
    x->keep_ms = hfsbi_net_keep_ms(head);
    /* what is refused needs no body; what is not may be waiting for it */
    if (hfsbi_net_has_more(x) && head->status >= 300) x->stopped = true;
    if (x->call->on_head && !x->call->on_head(x->call->user, head->status,
                                              head->fields, head->field_count))
        return hfsbi_fail(x->err, HFSB_CANCELLED, 0,
                          "Cancelled at the head of the reply.");
    return HFSB_OK;
}

static hfsb_status hfsbi_net_bad(hfsbi_exchange *x, const hfsb_err *why) {
    return hfsbi_fail(x->err, HFSB_REMOTE, 0,
                      "The reply of %s is not to be understood: %s",
                      x->link->host, why->msg);
}

static hfsb_status hfsbi_net_event(hfsbi_exchange *x, hfsb_http_event event,
                                   const hfsb_http_head *head, hfsb_str piece,
                                   const hfsb_err *why) {
    if (event == HFSB_HTTP_BAD) return hfsbi_net_bad(x, why);
    if (event == HFSB_HTTP_HEAD) return hfsbi_net_head(x, head);
    if (event == HFSB_HTTP_END) x->over = x->answered;
    if (event == HFSB_HTTP_BODY && x->call->on_body &&
        !x->call->on_body(x->call->user, piece))
        return hfsbi_fail(x->err, HFSB_CANCELLED, 0,
                          "Cancelled in the body of the reply.");
    return HFSB_OK;
}

/* Reads what link->in holds, and moves what is left to its beginning. */
static hfsb_status hfsbi_net_read(hfsbi_exchange *x) {
    hfsbi_link *link = x->link;
    hfsb_status st = HFSB_OK;
    size_t      at = 0, used = 0;
    while (!x->over && st == HFSB_OK) {
        hfsb_http_head  head;
        hfsb_str        piece = HFSB_INIT;
        hfsb_err        why;
        hfsb_http_event event = hfsb_http_next(
            &x->parser, hfsb_str_make(link->in + at, link->have - at),
            link->fields, link->max_fields, &head, &piece, &used, &why);
        at += used;
        if (event == HFSB_HTTP_MORE) break;
        st = hfsbi_net_event(x, event, &head, piece, &why);
    }
    if (at) memmove(link->in, link->in + at, link->have - at);
    link->have -= at;
    if (st == HFSB_OK && !x->over && link->have == link->room)
        return hfsbi_fail(x->err, HFSB_REMOTE, 0,
                          "%s sends a line that is too long.", link->host);
    return st;
}

static hfsb_status hfsbi_net_receive(hfsbi_exchange *x) {
    hfsbi_link *link = x->link;
    ssize_t     n;
    hfsb_status st;
    do n = recv(link->fd, link->in + link->have, link->room - link->have, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return HFSB_OK;
    if (n < 0) return hfsbi_net_lost(x, errno);
    if (n == 0) {
        x->keep = false;
        x->over =
            x->answered && x->until_close && hfsb_http_parser_end(&x->parser);
        return x->over ? HFSB_OK : hfsbi_net_lost(x, 0);
    }
    x->came = true;
    link->have += (size_t)n;
    st = hfsbi_net_read(x);
    x->moved = hfsb_clock_ms(); /* the caller's own time does not count */
    return st;
}

/* ---- both ---- */

static hfsb_status hfsbi_net_too_late(const hfsbi_exchange *x,
                                      hfsb_status           st) {
    const hfsb_http_call *call = x->call;
    const char           *host = x->link->host;
    if (st == HFSB_CANCELLED)
        return hfsbi_fail(x->err, st, 0, "The call to %s was cancelled.",
                          host);
    if (st != HFSB_TIMEOUT)
        return hfsbi_fail(x->err, st, 0, "Cannot wait for %s.", host);
    if (hfsb_clock_ms() >= x->total_at)
        return hfsbi_fail(x->err, st, 0,
                          "The call to %s was not over after %lld ms.", host,
                          call->total_ms);
    return hfsbi_fail(x->err, st, 0, "Nothing came from %s for %lld ms.", host,
                      call->idle_ms);
}

/* One wait, and what it brought. */
static hfsb_status hfsbi_net_turn(hfsbi_exchange *x) {
    long long   until = x->total_at, idle = x->call->idle_ms;
    bool        more = hfsbi_net_has_more(x);
    short       ready;
    hfsb_status st;
    if (idle > 0 && idle < until - x->moved) until = x->moved + idle;
    st = hfsbi_wait_fd(x->link->fd, (short)(POLLIN | (more ? POLLOUT : 0)),
                       until, x->call->cancel, &ready);
    if (st != HFSB_OK) return hfsbi_net_too_late(x, st);
    /* a peer that never stops must not outlive the time of the call */
    if (hfsb_clock_ms() >= x->total_at)
        return hfsbi_net_too_late(x, HFSB_TIMEOUT);
    if (ready & ~POLLOUT) st = hfsbi_net_receive(x);
    if (st == HFSB_OK && !x->over && (ready & POLLOUT)) st = hfsbi_net_send(x);
    return st;
}

static hfsb_status hfsbi_net_exchange(hfsbi_exchange *x) {
    hfsb_status st;
    x->out = hfsb_buf_str(&x->link->out);
    if (x->call->body_read) x->to_ask = x->call->body_length;
    else x->body = x->call->body;
    x->moved = hfsb_clock_ms();
    hfsb_http_parser_init_reply(&x->parser, &x->net->limits);
    hfsb_http_parser_begin_reply(&x->parser, x->call->method);
    st = hfsbi_net_send(x);
    while (st == HFSB_OK && !x->over) st = hfsbi_net_turn(x);
    return st;
}

/* ---- a call ---- */

static hfsb_status hfsbi_net_connect(hfsbi_exchange *x) {
    hfsbi_connect how;
    long long     now = hfsb_clock_ms();
    how.ms = x->call->connect_ms > 0 ? x->call->connect_ms : 30000;
    how.until = how.ms < x->total_at - now ? now + how.ms : x->total_at;
    if (how.until == x->total_at && x->call->total_ms > 0)
        how.ms = x->call->total_ms;
    how.cancel = x->call->cancel;
    return hfsbi_link_connect(x->link, &how, x->err);
}

/* One try on one connection, kept or fresh. *again: it turned out to be
   closed, and the request may be made on a fresh one. */
static hfsb_status hfsbi_net_try(hfsbi_exchange *x, const hfsb_url *url,
                                 bool proxied, bool fresh, bool *again) {
    const hfsb_url *to = proxied ? &x->net->proxy.url : url;
    hfsb_str        method = x->call->method;
    hfsb_status     st;
    bool            kept;
    *again = false;
    x->link = hfsbi_pool_take(x->net, to->host, to->port, fresh, &kept);
    if (!x->link) return hfsbi_fail_status(x->err, HFSB_NOMEM, "connection");
    st = hfsbi_net_put_head(x, url, proxied);
    if (st == HFSB_OK && hfsb_cancel_is_set(x->call->cancel))
        st = hfsbi_net_too_late(x, HFSB_CANCELLED);
    if (st == HFSB_OK && !kept) st = hfsbi_net_connect(x);
    if (st == HFSB_OK) st = hfsbi_net_exchange(x);
    *again = st == HFSB_LOST && kept && !x->came && !x->asked &&
             (!x->sent || hfsbi_net_is(method, "GET") ||
              hfsbi_net_is(method, "HEAD"));
    if (st == HFSB_OK && x->keep && !x->link->have && !hfsbi_net_has_more(x) &&
        !x->stopped && x->keep_ms > 0)
        hfsbi_pool_keep(x->net, x->link, x->keep_ms);
    else hfsbi_link_close(x->link);
    return st;
}

/* Whom the call is for, and whether it can be made. */
static hfsb_status hfsbi_net_check(const hfsbi_net      *net,
                                   const hfsb_http_call *call, hfsb_url *url,
                                   bool *proxied, hfsb_err *err) {
    hfsb_status st = hfsb_url_parse(call->url, url, err);
    if (st != HFSB_OK) return st;
    if (url->user.ptr)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The URL holds a user's name: send it in a field "
                          "Authorization.");
    if (url->secure)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "https needs TLS, which the built-in transport does "
                          "not have. Install libcurl (on Debian "
                          "libcurl4-openssl-dev) and build again with make, "
                          "or in a program of your own use the transport of "
                          "hfsb_http_curl.h.");
    if ((call->body_read && call->body.ptr) ||
        hfsbi_net_is(call->method, "CONNECT"))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          call->body.ptr ? "Both body and body_read are given."
                                         : "CONNECT is not for this.");
    *proxied = hfsbi_proxy_serves(&net->proxy, url);
    if (*proxied && !net->proxy.usable)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "The proxy in the environment (%s) cannot be used: "
                          "only http://[user:password@]host[:port] can.",
                          net->proxy.name);
    return HFSB_OK;
}

static hfsb_status hfsbi_net_perform(void *user, const hfsb_http_call *call,
                                     bool *sent, hfsb_err *err) {
    hfsbi_net  *net = (hfsbi_net *)user;
    hfsb_url    url;
    bool        proxied = false, again = true;
    long long   total_at = HFSBI_FOREVER;
    int         tries;
    hfsb_status st = hfsbi_net_check(net, call, &url, &proxied, err);
    *sent = false;
    if (st != HFSB_OK) return st;
    if (call->total_ms > 0 && call->total_ms < HFSBI_FOREVER - hfsb_clock_ms())
        total_at = hfsb_clock_ms() + call->total_ms;
    for (tries = 0; tries < 2 && again; tries++) {
        hfsbi_exchange x = HFSB_INIT;
        x.net = net;
        x.call = call;
        x.err = err;
        x.total_at = total_at;
        st = hfsbi_net_try(&x, &url, proxied, tries > 0, &again);
        if (st == HFSB_CONNECT && *sent) /* "nothing was sent" is not true */
            st = hfsbi_fail(err, HFSB_LOST, 0,
                            "A kept connection to %.*s was closed, and there "
                            "is no other.",
                            (int)url.host.len, url.host.ptr);
        *sent = *sent || x.sent;
    }
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}

/* ---- the transport ---- */

static void hfsbi_net_close(void *user) {
    hfsbi_net *net = (hfsbi_net *)user;
    hfsb_alloc alloc = net->alloc;
    hfsbi_pool_clear(net);
    hfsbi_proxy_free(&net->proxy);
    (void)pthread_mutex_destroy(&net->lock);
    hfsbi_array_free(&alloc, net, 1, sizeof *net);
}

static void hfsbi_net_set(hfsbi_net *net, const hfsb_net_opts *opts) {
    size_t max = opts->max_head ? opts->max_head : 65536;
    net->alloc = opts->alloc;
    net->max_kept = opts->max_kept ? opts->max_kept : 8;
    net->kept_ms = opts->kept_ms > 0 ? opts->kept_ms : 30000;
    if (net->kept_ms > HFSBI_FOREVER / 2) net->kept_ms = HFSBI_FOREVER / 2;
    if (max > HFSBI_NET_MAX_HEAD) max = HFSBI_NET_MAX_HEAD;
    net->limits.max_head = max;
    net->limits.max_fields = 1000;
    net->limits.max_chunk_line = 4096;
}

hfsb_status hfsb_net_open(const hfsb_net_opts *opts, hfsb_transport *out,
                          hfsb_err *err) {
    hfsb_net_opts none = HFSB_INIT;
    hfsbi_net    *net;
    hfsb_status   st = HFSB_OK;
    if (!opts) opts = &none;
    memset(out, 0, sizeof *out);
    net = (hfsbi_net *)hfsbi_array(&opts->alloc, 1, sizeof *net);
    if (!net) return hfsbi_fail_status(err, HFSB_NOMEM, "transport");
    memset(net, 0, sizeof *net);
    hfsbi_net_set(net, opts);
    if (pthread_mutex_init(&net->lock, NULL) != 0) {
        hfsbi_array_free(&opts->alloc, net, 1, sizeof *net);
        return hfsbi_fail_status(err, HFSB_NOMEM, "transport");
    }
    if (!opts->no_proxy) st = hfsbi_proxy_read(&net->proxy, opts->alloc, err);
    if (st != HFSB_OK) {
        hfsbi_net_close(net);
        return st;
    }
    out->perform = hfsbi_net_perform;
    out->close = hfsbi_net_close;
    out->user = net;
    return hfsbi_ok(err);
}

void hfsb_transport_close(hfsb_transport *transport) {
    if (transport->close) transport->close(transport->user);
    memset(transport, 0, sizeof *transport);
}
