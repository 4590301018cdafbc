#pragma once

/* Private to the net*.c files: what waits, where connections lead, and those
   that are kept. */

#include "net.h"
#include "net_os.h"
#include "url.h"

struct hfsb_cancel {
    hfsb_alloc alloc;
    int        fds[2]; /* hfsbi_wake_open() */
};

/* ---- waiting ---- */

/* A time on hfsb_clock_ms() that never comes. */
#define HFSBI_NET_FOREVER 0x3FFFFFFFFFFFFFFFll

/* From now until then, as poll() takes it: never 0 before `until`, and never
   longer than it can tell. */
HFSBI_FN int hfsbi_net_poll_ms(long long until);

/* Waits for POLLIN, POLLOUT on fd; *ready has what came (also POLLERR and
   POLLHUP). HFSB_OK; HFSB_CANCELLED; HFSB_TIMEOUT at `until`; HFSB_IO. */
HFSBI_FN hfsb_status hfsbi_net_wait(int fd, short events, long long until,
                                    const hfsb_cancel *cancel, short *ready);

/* ---- proxies ---- */

typedef struct hfsbi_proxy {
    hfsb_buf    text;   /* of the variable; url shows its bytes */
    hfsb_buf    login;  /* of Proxy-Authorization; "": none */
    hfsb_buf    except; /* of no_proxy */
    const char *name;   /* of the variable; NULL: there is no proxy */
    bool        usable;
    hfsb_url    url;
} hfsbi_proxy;

/* Reads the environment. HFSB_OK, also where what it says is not usable;
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_proxy_read(hfsbi_proxy *proxy, hfsb_alloc alloc,
                                      hfsb_err *err);
HFSBI_FN void        hfsbi_proxy_free(hfsbi_proxy *proxy);

/* Whether requests to that place go through the proxy. */
HFSBI_FN bool hfsbi_proxy_serves(const hfsbi_proxy *proxy,
                                 const hfsb_url    *url);

/* One of a list like no_proxy has it names this place: "*", a name (and all
   below it), an address, each with or without a port. */
HFSBI_FN bool hfsbi_proxy_excepts(hfsb_str list, hfsb_str host, unsigned port);

/* ---- connections ---- */

#define HFSBI_LINK_HOST 256 /* with the NUL */

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

/* HFSB_OK, or as perform() has it, with nothing left open. */
HFSBI_FN hfsb_status hfsbi_link_connect(hfsbi_link          *link,
                                        const hfsbi_connect *how,
                                        hfsb_err            *err);

/* True when the peer has neither closed it nor sent anything. */
HFSBI_FN bool hfsbi_link_quiet(const hfsbi_link *link);

/* sendmsg() of up to two views; as send() has it, never a signal. */
HFSBI_FN ssize_t hfsbi_link_send(hfsbi_link *link, hfsb_str a, hfsb_str b);

/* The words for an errno of the network. */
HFSBI_FN const char *hfsbi_net_text(int code);

/* ---- the pool ---- */

typedef struct hfsbi_net {
    hfsb_alloc       alloc;
    hfsb_http_limits limits; /* of replies */
    hfsbi_proxy      proxy;
    pthread_mutex_t  lock; /* of what follows */
    hfsbi_link      *kept; /* the one used last comes first */
    size_t           count, max_kept;
    long long        kept_ms;
} hfsbi_net;

/* One that leads there: a kept one (*kept), or a new one that is not connected
   yet. fresh: only such a one. NULL without memory. */
HFSBI_FN hfsbi_link *hfsbi_pool_take(hfsbi_net *net, hfsb_str host,
                                     unsigned port, bool fresh, bool *kept);
/* For the next call, at most for `ms`. */
HFSBI_FN void hfsbi_pool_keep(hfsbi_net *net, hfsbi_link *link, long long ms);
HFSBI_FN void hfsbi_link_close(hfsbi_link *link);
/* Closes all. */
HFSBI_FN void hfsbi_pool_clear(hfsbi_net *net);
