/* net.c - the built-in transport: one request over a socket, and its reply.

   A call finds a link (a connection with its buffers) to the peer or its
   proxy: one that an earlier call left in the pool, else a new one. It then
   sends the request and reads the reply at the same time, because a peer may
   refuse a body before it has read it all, and returns the link to the pool
   when both are complete.

   A pooled link may have been closed by the peer without notice. If it breaks
   before the first byte of a reply, the call moves to a new link, but only
   when nothing was sent or the method is GET or HEAD: no other request is
   ever sent twice. All waits end at the call's deadlines or its cancel. */
#include "net_private.h"

#define HFSBI_LINK_HOST    256             /* with the NUL */
#define HFSBI_LINK_ROOM    ((size_t)65536) /* bytes read at once */
#define HFSBI_LINK_MAX_OUT ((size_t)65536) /* of a pooled link's out buffer */

enum {
    HFSBI_NET_PIECE = 65536,      /* bytes requested from body_read at once */
    HFSBI_NET_MAX_INTERIM = 1000, /* interim replies before the reply */
    HFSBI_NET_MAX_HEAD = 16777216
};

/* A connection and the buffers of a call on it, so that a call on a pooled
   link needs no memory. */
typedef struct hfsbi_link {
    struct hfsbi_link *next; /* in the pool */
    hfsb_alloc         alloc;
    int                fd;                    /* -1: not connected */
    char               host[HFSBI_LINK_HOST]; /* in lower case */
    unsigned           port;
    long               pid;   /* of the process that connected */
    long long          until; /* in the pool: when it expires */
    hfsb_buf           out;   /* the request's head, then pieces of its body */
    char              *in; /* room bytes, of which have are not parsed yet */
    size_t             room, have;
    hfsb_http_field   *fields;
    size_t             max_fields;
} hfsbi_link;

typedef struct hfsbi_net {
    hfsb_alloc       alloc;
    hfsb_http_limits limits; /* of replies */
    hfsbi_proxy      proxy;
    hfsb_net_opts    o;    /* unix_path (in `path`), dial and user */
    hfsb_buf         path;
    pthread_mutex_t  lock; /* protects the pool: */
    hfsbi_link      *kept; /* most recently used first */
    size_t           count, max_kept;
    long long        kept_ms;
} hfsbi_net;

/* ---- links ---- */

/* True when the peer has neither closed the connection nor sent anything. */
static bool hfsbi_link_quiet(const hfsbi_link *link) {
    char    byte;
    ssize_t n;
    do n = recv(link->fd, &byte, 1, MSG_PEEK);
    while (n < 0 && errno == EINTR);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

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

/* ---- the pool; its lock is held only to change the list, never during a
   system call ---- */

static void hfsbi_links_close(hfsbi_link *list) {
    while (list) {
        hfsbi_link *next = list->next;
        hfsbi_link_close(list);
        list = next;
    }
}

/* Removes the first link to that host into *found, and every link that has
   expired or belongs to another process into the list *old. */
static void hfsbi_pool_remove(hfsbi_net *net, hfsb_str host, unsigned port,
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

/* A link to that host: from the pool (*kept), or a new one that is not
   connected yet. fresh: always a new one. NULL without memory. */
static hfsbi_link *hfsbi_pool_take(hfsbi_net *net, hfsb_str host,
                                   unsigned port, bool fresh, bool *kept) {
    *kept = false;
    while (!fresh) {
        hfsbi_link *found = NULL, *old = NULL;
        (void)pthread_mutex_lock(&net->lock);
        hfsbi_pool_remove(net, host, port, &found, &old);
        (void)pthread_mutex_unlock(&net->lock);
        hfsbi_links_close(old);
        if (!found) break;
        *kept = hfsbi_link_quiet(found);
        if (*kept) return found;
        hfsbi_link_close(found);
    }
    return hfsbi_link_make(net, host, port);
}

/* Puts the link into the pool for at most ms milliseconds; the least recently
   used one is closed when the pool is full. */
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
    hfsbi_links_close(old);
}

/* ---- an exchange ---- */

/* How far the reply has come.

       NONE --byte--> BEGUN --final head--> BODY --end--> DONE
                        |  ^
                        +--+ interim replies                            */
typedef enum hfsbi_net_reply {
    HFSBI_NET_REPLY_NONE,
    HFSBI_NET_REPLY_BEGUN,
    HFSBI_NET_REPLY_BODY,
    HFSBI_NET_REPLY_DONE
} hfsbi_net_reply;

/* How far the request has gone; each state includes those before it. */
typedef enum hfsbi_net_request {
    HFSBI_NET_REQUEST_UNSENT,
    HFSBI_NET_REQUEST_SENT, /* a byte of it */
    HFSBI_NET_REQUEST_READ  /* body_read was called: cannot be sent again */
} hfsbi_net_request;

/* One request and its reply on one link. */
typedef struct hfsbi_exchange {
    hfsbi_net            *net;
    const hfsb_http_call *call;
    hfsb_err             *err;
    hfsbi_link           *link;
    hfsb_http_parser      parser;
    long long             deadline;    /* on the clock, or HFSBI_FOREVER */
    long long             progress_at; /* when a byte last came or went */
    /* the request: bytes of the head or of a piece, of call->body, and bytes
       still to be requested from body_read; all empty once it is sent, or once
       the peer takes no more of it */
    hfsbi_net_request  request;
    hfsb_str           out, body;
    unsigned long long to_read;
    int                send_errno; /* why the peer takes no more; or 0 */
    /* the reply */
    hfsbi_net_reply reply;
    int             interim; /* interim replies so far */
    long long       keep_ms; /* the link may be pooled that long; 0: no */
} hfsbi_exchange;

static bool hfsbi_net_is(hfsb_str method, const char *name) {
    return hfsb_str_equal(method, hfsb_cstr(name));
}

/* ---- the request's head ---- */

HFSBI_FN hfsb_status hfsbi_net_check_call(const hfsb_http_call *call,
                                          hfsb_url *url, hfsb_err *err) {
    hfsb_status st = hfsb_url_parse(call->url, url, err);
    if (st != HFSB_OK) return st;
    if (url->user.ptr)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The URL contains a user name: send it in an "
                          "Authorization field instead.");
    if (call->body_read && call->body.ptr)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "body and body_read must not both be set.");
    if (!hfsbi_http_all(call->method, HFSBI_HTTP_TOKEN))
        return hfsbi_fail(err, HFSB_ARG, 0, "Invalid HTTP method.");
    if (hfsbi_net_is(call->method, "CONNECT"))
        return hfsbi_fail(err, HFSB_ARG, 0, "CONNECT is not supported.");
    return HFSB_OK;
}

/* True for the fields that frame a message or name its peer. */
static bool hfsbi_net_owns(hfsb_str name) {
    return hfsbi_http_is(name, "host") || hfsbi_http_is(name, "connection") ||
           hfsbi_http_is(name, "content-length") ||
           hfsbi_http_is(name, "transfer-encoding");
}

HFSBI_FN hfsb_status hfsbi_net_put_field(const hfsb_http_field *field,
                                         hfsb_buf *out, hfsb_err *err) {
    bool        own = hfsbi_net_owns(field->name);
    hfsb_status st = HFSB_ARG;
    if (!own) st = hfsb_http_put_field(out, field->name, field->value);
    if (st == HFSB_OK) return st;
    if (st != HFSB_ARG) return hfsbi_fail_status(err, st, "request");
    (void)hfsbi_fail(err, st, 0, "The field ");
    hfsbi_err_quote(err, field->name, 60);
    hfsbi_err_add(err, own ? " is set by the transport."
                           : " cannot be sent: its name is invalid, or its "
                             "value contains a control byte.");
    return st;
}

/* The request line: an absolute URL for a proxy, else path and query. */
static hfsb_status hfsbi_net_put_line(const hfsbi_exchange *x,
                                      const hfsb_url *url, bool proxied,
                                      hfsb_buf *out) {
    hfsb_buf    target = HFSB_INIT;
    hfsb_status st;
    bool        slash = !url->target.len || *url->target.ptr != '/';
    if (!proxied && !slash)
        return hfsb_http_put_request(out, x->call->method, url->target);
    target.alloc = out->alloc;
    if (proxied) {
        hfsb_buf_append(&target, HFSB_LIT("http://"));
        hfsb_buf_append(&target, url->authority);
    }
    if (slash) hfsb_buf_append_byte(&target, '/');
    st = hfsb_buf_append(&target, url->target);
    if (st == HFSB_OK)
        st =
            hfsb_http_put_request(out, x->call->method, hfsb_buf_str(&target));
    hfsb_buf_free(&target);
    return st;
}

/* The length of the body; false when the request has none and sends no
   Content-Length. */
static bool hfsbi_net_body_length(const hfsb_http_call *call,
                                  unsigned long long   *length) {
    *length = call->body_read ? call->body_length : call->body.len;
    return call->body_read || call->body.ptr ||
           hfsbi_net_is(call->method, "POST") ||
           hfsbi_net_is(call->method, "PUT") ||
           hfsbi_net_is(call->method, "PATCH");
}

/* Writes the whole head into link->out. */
static hfsb_status hfsbi_net_put_head(hfsbi_exchange *x, const hfsb_url *url,
                                      bool proxied) {
    hfsb_buf          *out = &x->link->out;
    const hfsb_buf    *login = &x->net->proxy.login;
    hfsb_str           host = url->authority;
    unsigned long long length;
    bool               has_login = false;
    hfsb_status        st;
    size_t             i;
    hfsb_buf_truncate(out, 0);
    st = hfsbi_net_put_line(x, url, proxied, out);
    if (host.ptr[host.len - 1] == ':') host.len--; /* "host:" means "host" */
    if (st == HFSB_OK) st = hfsb_http_put_field(out, HFSB_LIT("Host"), host);
    if (st != HFSB_OK) return hfsbi_fail_status(x->err, st, "request");
    for (i = 0; i < x->call->field_count; i++) {
        st = hfsbi_net_put_field(&x->call->fields[i], out, x->err);
        if (st != HFSB_OK) return st;
        if (hfsbi_http_is(x->call->fields[i].name, "proxy-authorization"))
            has_login = true;
    }
    if (proxied && login->len && !has_login)
        st = hfsb_http_put_field(out, HFSB_LIT("Proxy-Authorization"),
                                 hfsb_buf_str(login));
    if (hfsbi_net_body_length(x->call, &length))
        hfsb_buf_printf(out, "Content-Length: %llu\r\n", length);
    if (st == HFSB_OK) st = hfsb_http_put_head_end(out);
    return st == HFSB_OK ? st : hfsbi_fail_status(x->err, st, "request");
}

/* ---- sending ---- */

/* HFSB_LOST for an errno, or 0 for the end of the connection. */
static hfsb_status hfsbi_net_lost(hfsbi_exchange *x, int code) {
    if (!code) code = x->send_errno;
    return hfsbi_fail(
        x->err, HFSB_LOST, 0, "The connection to %s:%u ended %s%s%s.",
        x->link->host, x->link->port,
        x->reply ? "in the middle of its reply" : "before a reply came",
        code ? ": " : "", code ? hfsbi_net_text(code) : "");
}

static bool hfsbi_net_has_more(const hfsbi_exchange *x) {
    return x->out.len || x->body.len || x->to_read;
}

/* Gives up the rest of the request. The peer may still be waiting for it, so
   the link serves no other call. */
static void hfsbi_net_stop_sending(hfsbi_exchange *x) {
    x->out = x->body = hfsb_str_make(NULL, 0);
    x->to_read = 0;
    x->keep_ms = 0;
}

/* Reads the next piece of the body into link->out. */
static hfsb_status hfsbi_net_read_piece(hfsbi_exchange *x) {
    hfsb_buf   *out = &x->link->out;
    size_t      room = HFSBI_NET_PIECE, got = 0;
    hfsb_status st;
    hfsb_buf_truncate(out, 0);
    st = hfsb_buf_reserve(out, room);
    if (st != HFSB_OK) return hfsbi_fail_status(x->err, st, "request");
    if (room > x->to_read) room = (size_t)x->to_read;
    x->request = HFSBI_NET_REQUEST_READ;
    if (x->err) hfsbi_ok(x->err);
    st = x->call->body_read(x->call->user, out->ptr, room, &got, x->err);
    if (st != HFSB_OK) return st;
    if (!got || got > room)
        return hfsbi_fail(x->err, HFSB_ARG, 0,
                          "body_read returned %zu bytes, expected 1 to %zu.",
                          got, room);
    x->to_read -= got;
    x->out = hfsb_str_make(out->ptr, got);
    return HFSB_OK;
}

/* Sends as much as the socket takes, or one piece. A connection that the peer
   closed does not end the call here: a peer that refuses a body replies first
   and then closes. */
static hfsb_status hfsbi_net_send(hfsbi_exchange *x) {
    ssize_t n;
    size_t  done;
    if (!hfsbi_net_has_more(x)) return HFSB_OK;
    if (!x->out.len && !x->body.len) {
        hfsb_status st = hfsbi_net_read_piece(x);
        if (st != HFSB_OK) return st;
    }
    n = hfsbi_socket_send(x->link->fd, x->out, x->body);
    if (n < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) return HFSB_OK;
        if (errno != EPIPE && errno != ECONNRESET)
            return hfsbi_net_lost(x, errno);
        x->send_errno = errno;
        hfsbi_net_stop_sending(x);
        return HFSB_OK;
    }
    if (n > 0 && !x->request) x->request = HFSBI_NET_REQUEST_SENT;
    x->progress_at = hfsb_clock_ms();
    done = (size_t)n < x->out.len ? (size_t)n : x->out.len;
    x->out = hfsb_str_slice(x->out, done, x->out.len);
    x->body = hfsb_str_slice(x->body, (size_t)n - done, x->body.len);
    return HFSB_OK;
}

/* ---- the reply ---- */

/* How long the peer keeps the connection ("Keep-Alive: timeout=5"), less a
   second for the network; HFSBI_FOREVER when it gives no time. */
static long long hfsbi_net_keep_ms(const hfsb_http_head *head) {
    hfsb_str           value = hfsb_http_field_find(head, "Keep-Alive");
    size_t             at = hfsb_str_find(value, HFSB_LIT("timeout="));
    unsigned long long seconds = 0;
    if (at == HFSB_NPOS) return HFSBI_FOREVER;
    value = hfsb_str_slice(value, at + 8, value.len);
    (void)hfsbi_read_decimal(value, HFSBI_FOREVER / 2000, &seconds);
    return seconds > 1 ? (long long)seconds * 1000 - 1000 : 0;
}

static hfsb_status hfsbi_net_head(hfsbi_exchange       *x,
                                  const hfsb_http_head *head) {
    if (head->status == 101) /* no call can ask for that */
        return hfsbi_fail(x->err, HFSB_REMOTE, 0,
                          "Invalid reply from %s: it switches to another "
                          "protocol, which was not asked for.",
                          x->link->host);
    if (head->status < 200) {
        if (++x->interim > HFSBI_NET_MAX_INTERIM)
            return hfsbi_fail(x->err, HFSB_REMOTE, 0,
                              "%s sends interim replies without end.",
                              x->link->host);
        return HFSB_OK;
    }
    x->reply = HFSBI_NET_REPLY_BODY;
    if (head->keep_alive && head->body != HFSB_HTTP_UNTIL_CLOSE &&
        !x->send_errno)
        x->keep_ms = hfsbi_net_keep_ms(head);
    /* a refused request needs no body; any other may be waiting for it */
    if (hfsbi_net_has_more(x) && head->status >= 300)
        hfsbi_net_stop_sending(x);
    if (x->call->on_head && !x->call->on_head(x->call->user, head->status,
                                              head->fields, head->field_count))
        return hfsbi_fail(x->err, HFSB_CANCELLED, 0,
                          "Cancelled at the head of the reply.");
    return HFSB_OK;
}

static hfsb_status hfsbi_net_event(hfsbi_exchange *x, hfsb_http_event event,
                                   const hfsb_http_head *head, hfsb_str piece,
                                   const hfsb_err *why) {
    if (event == HFSB_HTTP_BAD)
        return hfsbi_fail(x->err, HFSB_REMOTE, 0, "Invalid reply from %s: %s",
                          x->link->host, why->msg);
    if (event == HFSB_HTTP_HEAD) return hfsbi_net_head(x, head);
    if (event == HFSB_HTTP_END && x->reply == HFSBI_NET_REPLY_BODY)
        x->reply = HFSBI_NET_REPLY_DONE;
    if (event == HFSB_HTTP_BODY && x->call->on_body &&
        !x->call->on_body(x->call->user, piece))
        return hfsbi_fail(x->err, HFSB_CANCELLED, 0,
                          "Cancelled in the body of the reply.");
    return HFSB_OK;
}

/* Parses the bytes in link->in and moves the rest to its start. */
static hfsb_status hfsbi_net_parse(hfsbi_exchange *x) {
    hfsbi_link *link = x->link;
    hfsb_status st = HFSB_OK;
    size_t      at = 0, used = 0;
    while (x->reply != HFSBI_NET_REPLY_DONE && st == HFSB_OK) {
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
    if (st == HFSB_OK && x->reply != HFSBI_NET_REPLY_DONE &&
        link->have == link->room)
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
    if (n == 0) { /* fine only for a body that ends with the connection */
        if (x->reply != HFSBI_NET_REPLY_BODY ||
            !hfsb_http_parser_end(&x->parser))
            return hfsbi_net_lost(x, 0);
        x->reply = HFSBI_NET_REPLY_DONE;
        x->keep_ms = 0;
        return HFSB_OK;
    }
    if (!x->reply) x->reply = HFSBI_NET_REPLY_BEGUN;
    link->have += (size_t)n;
    st = hfsbi_net_parse(x);
    x->progress_at = hfsb_clock_ms(); /* time in callbacks is not idle time */
    return st;
}

/* ---- both at once ---- */

/* Describes why a wait failed with st. */
static hfsb_status hfsbi_net_wait_failed(const hfsbi_exchange *x,
                                         hfsb_status           st) {
    const char *host = x->link->host;
    if (st == HFSB_CANCELLED)
        return hfsbi_fail(x->err, st, 0, "The call to %s was cancelled.",
                          host);
    if (st != HFSB_TIMEOUT)
        return hfsbi_fail(x->err, st, 0, "Cannot wait for %s.", host);
    if (hfsb_clock_ms() >= x->deadline)
        return hfsbi_fail(x->err, st, 0,
                          "The call to %s did not finish within %lld ms.",
                          host, x->call->total_ms);
    return hfsbi_fail(x->err, st, 0, "Nothing came from %s for %lld ms.", host,
                      x->call->idle_ms);
}

/* Waits once, then sends and receives what is possible. */
static hfsb_status hfsbi_net_turn(hfsbi_exchange *x) {
    long long   until = x->deadline, idle = x->call->idle_ms;
    bool        more = hfsbi_net_has_more(x);
    short       ready;
    hfsb_status st;
    if (idle > 0 && idle < until - x->progress_at)
        until = x->progress_at + idle;
    st = hfsbi_wait_fd(x->link->fd, (short)(POLLIN | (more ? POLLOUT : 0)),
                       until, x->call->cancel, &ready);
    if (st != HFSB_OK) return hfsbi_net_wait_failed(x, st);
    /* a peer that never stops sending must not outlive the deadline */
    if (hfsb_clock_ms() >= x->deadline)
        return hfsbi_net_wait_failed(x, HFSB_TIMEOUT);
    if (ready & ~POLLOUT) st = hfsbi_net_receive(x);
    if (st == HFSB_OK && x->reply != HFSBI_NET_REPLY_DONE && (ready & POLLOUT))
        st = hfsbi_net_send(x);
    return st;
}

static hfsb_status hfsbi_net_exchange(hfsbi_exchange *x) {
    hfsb_status st;
    x->out = hfsb_buf_str(&x->link->out);
    if (x->call->body_read) x->to_read = x->call->body_length;
    else x->body = x->call->body;
    x->progress_at = hfsb_clock_ms();
    hfsb_http_parser_init_reply(&x->parser, &x->net->limits);
    hfsb_http_parser_begin_reply(&x->parser, x->call->method);
    st = hfsbi_net_send(x);
    while (st == HFSB_OK && x->reply != HFSBI_NET_REPLY_DONE)
        st = hfsbi_net_turn(x);
    return st;
}

/* ---- a call ---- */

/* Connects as the options specify. ms: how long that may take, for messages.
   */
static hfsb_status hfsbi_net_dial(const hfsbi_net *net, const char *host,
                                  unsigned port, long long ms,
                                  long long deadline,
                                  const hfsb_cancel *cancel, int *fd,
                                  hfsb_err *err) {
    hfsb_dial   to;
    hfsb_status st;
    if (net->o.unix_path)
        return hfsbi_socket_dial_unix(net->o.unix_path, deadline, cancel, fd,
                                      err);
    if (!net->o.dial)
        return hfsbi_socket_dial(host, port, ms, deadline, cancel, fd, err);
    to.host = hfsb_cstr(host);
    to.port = port;
    to.deadline = deadline;
    to.cancel = cancel;
    *fd = -1;
    st = net->o.dial(net->o.user, &to, fd, err);
    if (st != HFSB_OK) return st;
    if (*fd < 0)
        return hfsbi_fail(err, HFSB_ARG, 0, "dial returned no descriptor.");
    if (hfsbi_set_nonblocking(*fd)) return HFSB_OK;
    hfsbi_close(fd);
    return hfsbi_fail(err, HFSB_ARG, 0, "dial returned no open descriptor.");
}

static hfsb_status hfsbi_net_connect(hfsbi_exchange *x) {
    long long now = hfsb_clock_ms(), until = x->deadline;
    long long ms = x->call->connect_ms > 0 ? x->call->connect_ms : 30000;
    if (ms < until - now) until = now + ms;
    else ms = x->call->total_ms;
    x->link->pid = (long)getpid();
    return hfsbi_net_dial(x->net, x->link->host, x->link->port, ms, until,
                          x->call->cancel, &x->link->fd, x->err);
}

/* One try on a link, pooled or fresh. *stale: the pooled link was already
   closed, and the request may be sent on a fresh one. */
static hfsb_status hfsbi_net_try(hfsbi_exchange *x, const hfsb_url *url,
                                 bool proxied, bool fresh, bool *stale) {
    const hfsb_url *to = proxied ? &x->net->proxy.url : url;
    hfsb_str        method = x->call->method;
    hfsb_status     st;
    bool            kept;
    *stale = false;
    x->link = hfsbi_pool_take(x->net, to->host, to->port, fresh, &kept);
    if (!x->link) return hfsbi_fail_status(x->err, HFSB_NOMEM, "connection");
    st = hfsbi_net_put_head(x, url, proxied);
    if (st == HFSB_OK && hfsb_cancel_is_set(x->call->cancel))
        st = hfsbi_net_wait_failed(x, HFSB_CANCELLED);
    if (st == HFSB_OK && !kept) st = hfsbi_net_connect(x);
    if (st == HFSB_OK) st = hfsbi_net_exchange(x);
    *stale = st == HFSB_LOST && kept && !x->reply &&
             (x->request == HFSBI_NET_REQUEST_UNSENT ||
              (x->request == HFSBI_NET_REQUEST_SENT &&
               (hfsbi_net_is(method, "GET") || hfsbi_net_is(method, "HEAD"))));
    if (st == HFSB_OK && x->keep_ms && !x->link->have &&
        !hfsbi_net_has_more(x))
        hfsbi_pool_keep(x->net, x->link, x->keep_ms);
    else hfsbi_link_close(x->link);
    return st;
}

/* Parses the URL, and refuses a call that cannot be made. */
static hfsb_status hfsbi_net_check(const hfsbi_net      *net,
                                   const hfsb_http_call *call, hfsb_url *url,
                                   bool *proxied, hfsb_err *err) {
    hfsb_status st = hfsbi_net_check_call(call, url, err);
    if (st != HFSB_OK) return st;
    if (url->secure)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "https needs TLS, which the built-in transport does "
                          "not have. Install libcurl 7.80 or newer (the "
                          "package libcurl4 on Debian, libcurl on Alpine), or "
                          "use the transport of hfsb_http_curl.h in your "
                          "program.");
    *proxied = hfsbi_proxy_serves(&net->proxy, url);
    if (*proxied && !net->proxy.usable)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "The proxy in the environment (%s) cannot be used: "
                          "expected http://[user:password@]host[:port].",
                          net->proxy.name);
    return HFSB_OK;
}

static hfsb_status hfsbi_net_perform(void *user, const hfsb_http_call *call,
                                     bool *sent, hfsb_err *err) {
    hfsbi_net     *net = (hfsbi_net *)user;
    hfsbi_exchange x = HFSB_INIT, first;
    hfsb_url       url;
    bool           proxied = false, stale;
    hfsb_status    st = hfsbi_net_check(net, call, &url, &proxied, err);
    *sent = false;
    if (st != HFSB_OK) return st;
    x.net = net;
    x.call = call;
    x.err = err;
    x.deadline = HFSBI_FOREVER;
    if (call->total_ms > 0 && call->total_ms < HFSBI_FOREVER - hfsb_clock_ms())
        x.deadline = hfsb_clock_ms() + call->total_ms;
    first = x;
    st = hfsbi_net_try(&first, &url, proxied, false, &stale);
    *sent = first.request != HFSBI_NET_REQUEST_UNSENT;
    if (stale) {
        st = hfsbi_net_try(&x, &url, proxied, true, &stale);
        if (st == HFSB_CONNECT && *sent) /* CONNECT means nothing was sent */
            st = hfsbi_fail(err, HFSB_LOST, 0,
                            "A pooled connection to %.*s was closed, and a "
                            "new one cannot be made.",
                            (int)url.host.len, url.host.ptr);
        *sent = *sent || x.request != HFSBI_NET_REQUEST_UNSENT;
    }
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}

/* ---- a stream ---- */

/* Asks the proxy for a tunnel to the host of the URL. */
static hfsb_status hfsbi_net_tunnel(const hfsbi_net *net, const hfsb_url *url,
                                    hfsbi_stream_ask *ask, hfsb_err *err) {
    hfsb_buf    text = HFSB_INIT;
    bool        six = hfsb_str_find_byte(url->host, ':') != HFSB_NPOS;
    const char *open = six ? "[" : "", *end = six ? "]" : "";
    hfsb_status st;
    text.alloc = net->alloc;
    hfsb_buf_printf(&text,
                    "CONNECT %s%.*s%s:%u HTTP/1.1\r\nHost: %s%.*s%s:%u\r\n",
                    open, (int)url->host.len, url->host.ptr, end, url->port,
                    open, (int)url->host.len, url->host.ptr, end, url->port);
    if (net->proxy.login.len)
        (void)hfsb_http_put_field(&text, HFSB_LIT("Proxy-Authorization"),
                                  hfsb_buf_str(&net->proxy.login));
    st = hfsb_buf_append(&text, HFSB_LIT("\r\n"));
    if (st == HFSB_OK)
        st = hfsbi_stream_ask_run(ask, HFSB_LIT("CONNECT"),
                                  hfsb_buf_str(&text), err);
    else st = hfsbi_fail_status(err, st, "request");
    if (text.ptr) hfsb_secret_wipe(text.ptr, text.len);
    hfsb_buf_free(&text);
    if (st != HFSB_OK) return st;
    if (ask->head.status / 100 == 2 && ask->at == ask->have) return HFSB_OK;
    return hfsbi_fail(err, HFSB_CONNECT, 0,
                      "The proxy (%s) opens no tunnel to %.*s: its answer has "
                      "the status %d.",
                      net->proxy.name, (int)url->host.len, url->host.ptr,
                      ask->head.status);
}

static hfsb_status hfsbi_net_stream_dial(const hfsbi_net      *net,
                                         const hfsb_url       *to,
                                         const hfsb_http_call *call,
                                         long long ms, hfsb_stream *out,
                                         hfsb_err *err) {
    char        host[HFSBI_LINK_HOST];
    int         fd = -1;
    hfsb_status st;
    (void)snprintf(host, sizeof host, "%.*s", (int)to->host.len, to->host.ptr);
    st = hfsbi_net_dial(net, host, to->port, ms, hfsb_clock_ms() + ms,
                        call->cancel, &fd, err);
    return st == HFSB_OK ? hfsbi_socket_stream_open(&fd, &net->alloc, out, err)
                         : st;
}

static hfsb_status hfsbi_net_stream(void *user, const hfsb_http_call *call,
                                    hfsb_stream *out, hfsb_err *err) {
    const hfsbi_net  *net = (const hfsbi_net *)user;
    hfsbi_stream_ask *ask;
    hfsb_url          url;
    bool              proxied = false;
    long long         ms = call->connect_ms > 0 ? call->connect_ms : 30000;
    hfsb_status       st = hfsbi_net_check(net, call, &url, &proxied, err);
    memset(out, 0, sizeof *out);
    out->fd = -1;
    if (st != HFSB_OK) return st;
    st = hfsbi_net_stream_dial(net, proxied ? &net->proxy.url : &url, call, ms,
                               out, err);
    if (st != HFSB_OK || !proxied) return st;
    ask = (hfsbi_stream_ask *)hfsbi_array(&net->alloc, 1, sizeof *ask);
    if (ask) {
        memset(ask, 0, sizeof *ask);
        ask->stream = out;
        ask->until = hfsb_clock_ms() + ms;
        ask->cancel = call->cancel;
        st = hfsbi_net_tunnel(net, &url, ask, err);
    } else {
        st = hfsbi_fail_status(err, HFSB_NOMEM, "connection");
    }
    hfsbi_array_free(&net->alloc, ask, 1, sizeof *ask);
    if (st != HFSB_OK) hfsb_stream_close(out);
    return st;
}

/* ---- the transport ---- */

static void hfsbi_net_close(void *user) {
    hfsbi_net *net = (hfsbi_net *)user;
    hfsb_alloc alloc = net->alloc;
    hfsbi_links_close(net->kept);
    hfsbi_proxy_free(&net->proxy);
    hfsb_buf_free(&net->path);
    (void)pthread_mutex_destroy(&net->lock);
    hfsbi_array_free(&alloc, net, 1, sizeof *net);
}

/* Fills in the defaults. */
static void hfsbi_net_set(hfsbi_net *net, const hfsb_net_opts *opts) {
    size_t max = opts->max_head ? opts->max_head : 65536;
    net->alloc = net->path.alloc = opts->alloc;
    net->o = *opts;
    net->o.unix_path = NULL;
    net->max_kept = opts->max_kept ? opts->max_kept : 8;
    net->kept_ms = opts->kept_ms > 0 ? opts->kept_ms : 30000;
    if (net->kept_ms > HFSBI_FOREVER / 2) net->kept_ms = HFSBI_FOREVER / 2;
    if (max > HFSBI_NET_MAX_HEAD) max = HFSBI_NET_MAX_HEAD;
    net->limits.max_head = max;
    net->limits.max_fields = 1000;
    net->limits.max_chunk_line = 4096;
}

void hfsb_transport_close(hfsb_transport *transport) {
    if (transport->close) transport->close(transport->user);
    memset(transport, 0, sizeof *transport);
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
    if (opts->unix_path)
        st = hfsb_buf_append(&net->path, hfsb_cstr(opts->unix_path));
    if (st != HFSB_OK) (void)hfsbi_fail_status(err, st, "transport");
    if (opts->unix_path) net->o.unix_path = net->path.ptr;
    if (st == HFSB_OK && !opts->no_proxy && !opts->unix_path && !opts->dial)
        st = hfsbi_proxy_read(&net->proxy, opts->alloc, err);
    if (st != HFSB_OK) {
        hfsbi_net_close(net);
        return st;
    }
    out->perform = hfsbi_net_perform;
    out->close = hfsbi_net_close;
    out->connect = hfsbi_net_stream;
    out->user = net;
    return hfsbi_ok(err);
}
