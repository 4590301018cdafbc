#pragma once

#include "../http/url.h"
#include "../os/os_private.h"
#include "net.h"

/* The inside of net: sockets and name lookup, proxies, and the retry policy
   that every client of a network shares. Never part of the public header. */

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Without MSG_NOSIGNAL the socket has SO_NOSIGPIPE, or hfsbi_signal_guard
   protects the send. */
#ifdef MSG_NOSIGNAL
#define HFSBI_NET_SEND_FLAGS MSG_NOSIGNAL
#else
#define HFSBI_NET_SEND_FLAGS 0
#endif

/* ---- calls, for every transport ---- */

/* Parses the URL of the call and checks what no transport can send. HFSB_OK;
   HFSB_ARG. */
HFSBI_FN hfsb_status hfsbi_net_check_call(const hfsb_http_call *call,
                                          hfsb_url *url, hfsb_err *err);

/* Appends one of the call's fields with its CRLF. HFSB_OK; HFSB_ARG for an
   invalid one, or one that the transport sets itself; HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_net_put_field(const hfsb_http_field *field,
                                         hfsb_buf *out, hfsb_err *err);

/* ---- proxies ---- */

/* The proxy that the environment names. */
typedef struct hfsbi_proxy {
    hfsb_buf    text;   /* value of the variable; url points into it */
    hfsb_buf    login;  /* value of Proxy-Authorization, or "" */
    hfsb_buf    except; /* value of no_proxy */
    const char *name;   /* name of the variable; NULL: no proxy is set */
    bool        usable; /* false: calls through it are refused */
    hfsb_url    url;
} hfsbi_proxy;

/* Reads the environment into *proxy, which need not be initialised. HFSB_OK,
   also when the proxy is not usable; HFSB_NOMEM. Free it in any case. */
HFSBI_FN hfsb_status hfsbi_proxy_read(hfsbi_proxy *proxy, hfsb_alloc alloc,
                                      hfsb_err *err);
HFSBI_FN void        hfsbi_proxy_free(hfsbi_proxy *proxy);

/* True when requests to that URL go through the proxy. */
HFSBI_FN bool hfsbi_proxy_serves(const hfsbi_proxy *proxy,
                                 const hfsb_url    *url);

/* True when a no_proxy list contains the host: as "*", as a name or a parent
   domain, or as an address, each with or without a port. */
HFSBI_FN bool hfsbi_proxy_excepts(hfsb_str list, hfsb_str host, unsigned port);

/* ---- retries ---- */

/* When to try again. The caller decides whether another try can help; the
   policy decides how long to wait and when to give up:

       retry = policy;
       for (;;) {
           status = try_it();
           if (status == HFSB_OK || !worth_another_try(status)) break;
           if (hfsbi_retry_again(&retry) != HFSB_OK) break;
       }
*/
typedef struct hfsbi_retry {
    size_t    tries;    /* at most, the first included (0: no limit) */
    long long delay_ms; /* wait before the second try ... */
    long long
         max_delay_ms;  /* ... doubled each time up to this (0: constant) */
    bool linear;        /* grow by delay_ms each time instead */
    long long deadline; /* on hfsb_clock_ms(): no wait reaches it (0: no
                               deadline) */
    long long asked_ms; /* wait that the peer asked for, in place of the
                               policy's (0: none); reset by each wait */
    const hfsb_cancel *cancel;
    void (*on_wait)(void *user, long long ms); /* before a wait (NULL: none) */
    void  *user;
    size_t failed; /* private: tries that failed so far */
    size_t waits;  /* private: waits so far */
} hfsbi_retry;

/* Call after a failed try: waits until the next one. HFSB_OK: try again;
   HFSB_LIMIT: no try is left, or the deadline comes first, nothing was waited;
   HFSB_CANCELLED. */
HFSBI_FN hfsb_status hfsbi_retry_again(hfsbi_retry *retry);

/* The same wait without counting a failed try. */
HFSBI_FN hfsb_status hfsbi_retry_wait(hfsbi_retry *retry);

/* Starts over: the next failure is the first again. */
HFSBI_FN void hfsbi_retry_reset(hfsbi_retry *retry);
