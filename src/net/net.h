#pragma once

/* ==== NET: requests over HTTP, through a transport ====================== */

#include "../http/http.h"
#include "../os/cancel.h"

/* ---- the transport interface ---- */

/* One request and where its reply goes. */
typedef struct hfsb_http_call {
    hfsb_str               method; /* "GET" */
    hfsb_str               url;    /* absolute, without user and fragment */
    const hfsb_http_field *fields; /* besides Host, Content-Length, Connection
                                      and Transfer-Encoding, which are the
                                      transport's */
    size_t                 field_count;
    hfsb_str body; /* ptr NULL: no body at all; a POST without one sends
                        Content-Length: 0 */
    /* or a body in pieces, body_length bytes in all: puts up to room bytes at
       ptr, *got how many (at least 1). What it gives other than HFSB_OK ends
       the call with that. */
    hfsb_status (*body_read)(void *user, char *ptr, size_t room, size_t *got,
                             hfsb_err *err);
    unsigned long long body_length;
    /* The reply: its head (not those of interim replies), then its body in
       pieces as they arrive, decoded from chunks. False ends the call with
       HFSB_CANCELLED. Either may be NULL. Views are good during the call. */
    bool (*on_head)(void *user, int status, const hfsb_http_field *fields,
                    size_t field_count);
    bool (*on_body)(void *user, hfsb_str piece);
    void     *user;
    long long connect_ms;      /* for a connection, TLS included (0: 30,000) */
    long long idle_ms;         /* without a byte either way (0: no limit) */
    long long total_ms;        /* (0: no limit) */
    const hfsb_cancel *cancel; /* (NULL: none) */
} hfsb_http_call;

/* What carries requests. The library has one for http (hfsb_net_open), and
   hfsb_http_curl.h one for https. To write one, perform() is all there is:
   it makes one request and waits for its reply. It follows no redirect, sends
   nothing twice that may have reached the peer (a GET or HEAD on a kept
   connection that turned out closed, without a byte of reply, may be sent
   again), and may be called by several threads at once.

   HFSB_OK         a whole reply came, whatever its status
   HFSB_ARG        the URL or a field is not usable
   HFSB_REFUSED    the transport will not: https without TLS; a certificate
                   that is not to be trusted
   HFSB_CONNECT    no connection; nothing was sent
   HFSB_TIMEOUT    connect_ms, idle_ms or total_ms is over
   HFSB_LOST       the connection ended, or was reset, before the reply did
   HFSB_REMOTE     the reply is not HTTP, or breaks its rules
   HFSB_CANCELLED  cancel was set, or on_head or on_body said so
   HFSB_NOMEM, HFSB_IO, HFSB_BUSY (no descriptor left)
   or what body_read gave.
   *sent is true when a byte of the request may have reached the peer. */
typedef struct hfsb_transport {
    hfsb_status (*perform)(void *user, const hfsb_http_call *call, bool *sent,
                           hfsb_err *err);
    void (*close)(void *user); /* (NULL: nothing to close) */
    void *user;
} hfsb_transport;

/* Ends it, and makes *transport all zero. No call may be under way. */
HFSB_API void hfsb_transport_close(hfsb_transport *transport);

/* ---- the built-in transport: http over sockets ---- */

typedef struct hfsb_net_opts {
    bool       no_proxy; /* http_proxy, all_proxy and no_proxy in the
                            environment are not looked at */
    size_t     max_kept; /* connections kept for the next call (0: 8) */
    long long  kept_ms;  /* ... for this long (0: 30,000) */
    size_t     max_head; /* bytes of a reply's head (0: 64 KiB) */
    hfsb_alloc alloc;    /* must be usable from the threads that call */
} hfsb_net_opts;

/* http_proxy, no_proxy and all_proxy (the last two in either case) are read
   now. https is HFSB_REFUSED with advice. No thread is started; names are
   looked up by the C library, which connect_ms cannot end early. */
HFSB_API hfsb_status hfsb_net_open(const hfsb_net_opts *opts,
                                   hfsb_transport *out, hfsb_err *err);

/* ---- a call with redirects, its reply kept ---- */

typedef struct hfsb_http_reply {
    int      status; /* 0: none came */
    bool     sent;   /* of the last request: see hfsb_transport */
    hfsb_buf url;    /* where the reply came from in the end */
    hfsb_buf body;   /* what did not go to the call's on_body */
    hfsb_buf head;   /* private: its fields */
} hfsb_http_reply;

/* Follows up to 10 redirects: 307 and 308 with method and body (a body_read
   must not have been asked for anything yet, else HFSB_REMOTE), 303 and what
   was a POST at 301 and 302 as a GET without body, others as they are. Where
   scheme, host or port changes, Authorization, X-Sandbox-Authorization,
   Proxy-Authorization, Cookie and Idempotency-Key are left out from there on;
   https never leads to http (HFSB_REFUSED).
   The call's on_head and on_body are given the last reply, and on_body only
   when its status is 2xx; other bodies, and all without on_body, are kept in
   reply->body, up to 64 MiB (HFSB_LIMIT) or reply->body.max.
   *reply is all zero before, or freed by hfsb_http_reply_free(). Results as
   hfsb_transport, and HFSB_REMOTE for redirects without end. total_ms is for
   all of it. */
HFSB_API hfsb_status hfsb_http_send(const hfsb_transport *transport,
                                    const hfsb_http_call *call,
                                    hfsb_http_reply *reply, hfsb_err *err);

/* The n-th field (from 0) of that name, in any case; ptr NULL when there is
   none. Good until the reply is freed. */
HFSB_API hfsb_str hfsb_http_reply_field(const hfsb_http_reply *reply,
                                        const char *name, size_t n);
HFSB_API void     hfsb_http_reply_free(hfsb_http_reply *reply);
