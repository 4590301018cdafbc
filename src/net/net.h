#pragma once

/* ==== NET: HTTP requests through a transport ============================ */

#include "../http/http.h"
#include "../os/cancel.h"

/* ---- the transport interface ---- */

/* One request, and the callbacks that receive its reply. */
typedef struct hfsb_http_call {
    hfsb_str               method; /* "GET" */
    hfsb_str               url;    /* absolute, without user and fragment */
    const hfsb_http_field *fields; /* all but Host, Content-Length, Connection
                                      and Transfer-Encoding, which the
                                      transport sets */
    size_t                 field_count;
    hfsb_str body; /* ptr NULL: no body; a POST then sends Content-Length: 0 */
    /* Instead of body: produces body_length bytes in pieces. Writes up to room
       bytes to ptr and their number, at least 1, to *got. Any status other
       than HFSB_OK ends the call with that status. */
    hfsb_status (*body_read)(void *user, char *ptr, size_t room, size_t *got,
                             hfsb_err *err);
    unsigned long long body_length;
    /* Receive the head of the final reply (not of interim ones), then the
       pieces of its body as they arrive, already decoded from chunks. Return
       false to end the call with HFSB_CANCELLED. Either may be NULL. Views are
       valid during the callback. */
    bool (*on_head)(void *user, int status, const hfsb_http_field *fields,
                    size_t field_count);
    bool (*on_body)(void *user, hfsb_str piece);
    void     *user;
    long long connect_ms; /* timeout of connecting, with TLS (0: 30,000) */
    long long idle_ms;    /* timeout without a byte in either direction
                             (0: no limit) */
    long long total_ms;   /* timeout of the whole call (0: no limit) */
    const hfsb_cancel *cancel; /* (NULL: cannot be cancelled) */
} hfsb_http_call;

/* A way to send requests. hfsb_net_open() gives one for http,
   hfsb_http_curl.h one for https. To plug in another HTTP client, implement
   perform(): it sends one request and waits for its reply. It follows no
   redirect, and several threads may call it at once. It sends no request twice
   that may have reached the peer, except a GET or HEAD on a kept connection
   that turned out to be closed before the first byte of a reply.

   HFSB_OK         a complete reply came, whatever its status
   HFSB_ARG        invalid URL or field
   HFSB_REFUSED    unsupported (https without TLS), or the certificate is not
                   trusted
   HFSB_CONNECT    no connection; nothing was sent
   HFSB_TIMEOUT    connect_ms, idle_ms or total_ms passed
   HFSB_LOST       the connection ended before the reply was complete
   HFSB_REMOTE     the reply is not valid HTTP
   HFSB_CANCELLED  by cancel, on_head or on_body
   HFSB_NOMEM, HFSB_IO, HFSB_BUSY (no descriptor left)
   or the status that body_read returned.
   *sent becomes true when a byte of the request may have reached the peer. */
typedef struct hfsb_transport {
    hfsb_status (*perform)(void *user, const hfsb_http_call *call, bool *sent,
                           hfsb_err *err);
    void (*close)(void *user); /* (NULL: nothing to close) */
    void *user;
} hfsb_transport;

/* Closes the transport and makes *transport all zero. No call may be in
   progress. */
HFSB_API void hfsb_transport_close(hfsb_transport *transport);

/* ---- the built-in transport: http over sockets ---- */

typedef struct hfsb_net_opts {
    bool       no_proxy; /* ignore http_proxy, all_proxy and no_proxy of the
                            environment */
    size_t     max_kept; /* idle connections to keep (0: 8) */
    long long  kept_ms;  /* how long to keep them (0: 30,000) */
    size_t     max_head; /* bytes of a reply's head (0: 64 KiB) */
    hfsb_alloc alloc;    /* called by every thread that makes a call */
} hfsb_net_opts;

/* Opens a transport for http. opts may be NULL. Reads http_proxy, no_proxy and
   all_proxy (the last two also in upper case) before it returns. https is
   HFSB_REFUSED with advice. Starts no thread: the C library looks up names, so
   connect_ms and cancel cannot interrupt a lookup. HFSB_OK; HFSB_NOMEM. */
HFSB_API hfsb_status hfsb_net_open(const hfsb_net_opts *opts,
                                   hfsb_transport *out, hfsb_err *err);

/* ---- a call that follows redirects and keeps its reply ---- */

typedef struct hfsb_http_reply {
    int      status; /* 0: no reply came */
    bool     sent;   /* of the last request: see hfsb_transport */
    hfsb_buf url;    /* where the reply came from in the end */
    hfsb_buf body;   /* unless it went to the call's on_body */
    hfsb_buf head;   /* private: the fields */
} hfsb_http_reply;

/* Performs the call and follows up to 10 redirects. 307 and 308 repeat method
   and body (HFSB_REMOTE when body_read was already called); 303, and a POST
   answered with 301 or 302, continue as a GET without body; others repeat the
   request. When scheme, host or port changes, Authorization,
   X-Sandbox-Authorization, X-Sandbox-Token, Proxy-Authorization, Cookie and
   Idempotency-Key are dropped from there on. https never leads to http (HFSB_REFUSED).
   on_head receives the last reply, on_body its body when the status is 2xx.
   Any other body is kept in reply->body, up to reply->body.max bytes
   (0: 64 MiB), else HFSB_LIMIT.
   *reply is all zero, or was used before. Free it with hfsb_http_reply_free()
   in any case. Returns as hfsb_transport, and HFSB_REMOTE for endless or
   invalid redirects. total_ms applies to all redirects together. */
HFSB_API hfsb_status hfsb_http_send(const hfsb_transport *transport,
                                    const hfsb_http_call *call,
                                    hfsb_http_reply *reply, hfsb_err *err);

/* The value of the n-th field (from 0) of that name, which is compared without
   case; ptr NULL when there is none. Valid until the reply is freed. */
HFSB_API hfsb_str hfsb_http_reply_field(const hfsb_http_reply *reply,
                                        const char *name, size_t n);
HFSB_API void     hfsb_http_reply_free(hfsb_http_reply *reply);
