#pragma once

/* ==== SERVER: HTTP/1.1 on one event loop, and the sandbox on top ======== */

#include "../core/base.h"
#include "../http/http.h"
#include "../tools/tools.h"

/* One thread serves all connections: the one that runs or polls the server.
   Work that may block (files, a host's own slow handlers) goes to a few
   threads that are started when first needed. Any number of servers may live
   in one process. No signal handler is set; SIGPIPE is not raised. */
typedef struct hfsb_server  hfsb_server;
typedef struct hfsb_request hfsb_request;

/* One line for a log: a request that was answered, or another event. */
typedef struct hfsb_server_event {
    const char *what; /* "request", or what happened: "accept failed" */
    hfsb_str    method, path; /* of a request, as they came: hostile bytes */
    int         status;       /* 0: the client went away before its reply */
    long long   duration_ms;
    unsigned long long bytes_in, bytes_out; /* of bodies */
    hfsb_str           peer;                /* address, or "unix" */
    hfsb_str detail; /* of another event, or why a request was refused */
} hfsb_server_event;

typedef struct hfsb_server_opts {
    hfsb_str token;   /* that routes ask for, in X-Sandbox-Authorization (see
                         bearer of a route, too); only its digest is kept.
                         Empty: they answer 503 */
    bool     no_auth; /* no token is asked for; such a server listens on
                         loopback only, */
    bool     open_to_all;           /* ... or with this anywhere */
    const char *const *allow_hosts; /* names besides loopback's and the bound
                         address that Host and Origin may have;
                         NULL-terminated; "*" is any */
    size_t             max_head;    /* bytes (0: 16 KiB) */
    size_t             max_fields;  /* (0: 100) */
    size_t             max_body;    /* bytes of a body that is kept in memory
                                  (0: 64 MiB) */
    size_t    max_bodies;      /* ... of all of them together (0: 256 MiB) */
    size_t    max_connections; /* (0: 1024); when all are taken, a new one
                                  replaces the one that has been idle, or has
                                  sent a head or body without an accepted
                                  token, for longest (at least a second) */
    long long head_ms; /* for a whole head; also for a whole body that is
                          discarded, or whose request lacks the token that
                          the server has (0: 10,000) */
    long long body_ms; /* without progress of a body, either way
                          (0: 30,000) */
    size_t    min_rate; /* bytes per second that other request bodies must
                           average once body_ms are over; pauses do not count
                           (0: 1,024) */
    long long idle_ms;         /* between requests (0: 60,000) */
    long long stop_ms;         /* a stop takes no longer (0: 10,000) */
    size_t    max_threads;     /* (0: 8) */
    bool      no_threads;      /* blocking work is done at once, in the loop */
    void (*on_event)(void *user, const hfsb_server_event *event);
    void      *user;
    hfsb_alloc alloc; /* must be usable from the server's threads */
} hfsb_server_opts;

/* HFSB_OK; HFSB_NOMEM; HFSB_IO; HFSB_ARG for a token with blanks or control
   bytes. opts may be NULL; its texts are copied. */
HFSB_API hfsb_status hfsb_server_open(const hfsb_server_opts *opts,
                                      hfsb_server **out, hfsb_err *err);

/* Ends connections where they are, waits for work in threads, kills the
   commands, frees it all. */
HFSB_API void hfsb_server_close(hfsb_server *server);

/* ---- where it listens: any number of places ---- */

/* host: an address in numbers ("127.0.0.1", "0.0.0.0", "::1") or "localhost"
   (NULL: "127.0.0.1"); port 0: one the kernel picks. *bound (may be NULL) is
   the port it got. HFSB_ARG when host is none of these; HFSB_REFUSED when the
   address is not loopback and no_auth is set without open_to_all; else what
   the system says, with what to do about it. */
HFSB_API hfsb_status hfsb_server_listen(hfsb_server *server, const char *host,
                                        unsigned port, unsigned *bound,
                                        hfsb_err *err);
/* A Unix socket, mode 0600; one left by a server that died is replaced, one
   that answers is HFSB_REFUSED; removed by close. */
HFSB_API hfsb_status hfsb_server_listen_unix(hfsb_server *server,
                                             const char *path, hfsb_err *err);
/* A socket that listens already (inherited); taken over. */
HFSB_API hfsb_status hfsb_server_listen_fd(hfsb_server *server, int fd,
                                           hfsb_err *err);

/* ---- running ---- */

/* Serves until hfsb_server_stop(). HFSB_OK; HFSB_ARG without a place to
   listen; HFSB_IO. */
HFSB_API hfsb_status hfsb_server_run(hfsb_server *server, hfsb_err *err);

/* Stops: no new connections, work under way is finished for a second or two,
   then commands are ended and their replies sent; at most stop_ms. A second
   call ends it at once. From any thread or signal handler. */
HFSB_API void hfsb_server_stop(hfsb_server *server);

/* Or from the host's own loop: waits up to wait_ms (below 0: as long as it
   likes) for something to do and does it. False once it has stopped. */
HFSB_API bool hfsb_server_poll(hfsb_server *server, long long wait_ms);

/* Or without waiting: what to wait for (the count may be more than max), until
   when on hfsb_clock_ms() (-1: for ever), and to do what can be done. */
HFSB_API size_t    hfsb_server_watch(hfsb_server *server, hfsb_watch *list,
                                     size_t max);
HFSB_API long long hfsb_server_deadline(hfsb_server *server);
HFSB_API bool      hfsb_server_step(hfsb_server *server);

/* Runs fn(user) soon in the thread that serves; from any thread. HFSB_OK or
   HFSB_NOMEM. What is pending when the server closes is run by close. */
HFSB_API hfsb_status hfsb_server_post(hfsb_server *server,
                                      void (*fn)(void *user), void *user);

/* ---- routes ---- */

typedef void (*hfsb_route_fn)(void *user, hfsb_request *request);

typedef struct hfsb_route {
    const char   *method; /* "GET" (which answers HEAD too), "POST" ... */
    const char   *path;   /* "/hello"; a "*" stands for one part, not empty:
                           "/things/" "*" "/parts" */
    hfsb_route_fn fn;     /* called once the body is there; must see to it that
                           a reply is made, at once or later */
    void         *user;
    bool          no_token; /* anyone may call it; without a token its body
                               has head_ms to arrive, see there */
    bool          bearer;   /* without X-Sandbox-Authorization the token may
                                come in Authorization, as clients of other
                                protocols send it */
    bool          threaded; /* fn may block: it runs in a thread of the
                                server, with 512 KiB of stack, and must have
                                replied when it returns, with hfsb_reply() */
    size_t        max_body; /* (0: that of the server; with no_token 64 KiB:
                                what anyone may fill must be small) */
    /* For bodies of any size, in pieces as they come: begin is called when the
       head is there, body for each piece; with neither set the body is kept in
       memory. Both may reply: then nothing more is called. */
    hfsb_route_fn begin;
    void (*body)(void *user, hfsb_request *request, hfsb_str piece);
} hfsb_route;

/* Before or while it runs (in its thread). Texts are copied. HFSB_ARG when
   there is a route for this method and path; HFSB_NOMEM. */
HFSB_API hfsb_status hfsb_server_add(hfsb_server      *server,
                                     const hfsb_route *route, hfsb_err *err);

/* ---- a request: good until its reply has ended or `gone` was called ---- */

HFSB_API const hfsb_http_head *hfsb_request_head(const hfsb_request *request);
/* What the n-th "*" of the route's path stands for, decoded; "" when there is
   none. */
HFSB_API hfsb_str hfsb_request_part(const hfsb_request *request, size_t n);
/* Appends the value of a key of the query, as hfsb_http_query_find(). */
HFSB_API hfsb_status  hfsb_request_query(const hfsb_request *request,
                                         const char *key, hfsb_buf *out,
                                         hfsb_err *err);
HFSB_API hfsb_str     hfsb_request_body(const hfsb_request *request);
HFSB_API hfsb_server *hfsb_request_server(const hfsb_request *request);
/* A pointer of the handler's own, to be found again. */
HFSB_API void  hfsb_request_set(hfsb_request *request, void *own);
HFSB_API void *hfsb_request_get(const hfsb_request *request);
/* fn is called, once, when the peer is gone or the server ends before the
   reply has ended; the request must not be used afterwards. */
HFSB_API void hfsb_request_on_gone(hfsb_request *request, hfsb_route_fn gone,
                                   void *user);
/* Stops and goes on with reading the body: back-pressure for `body`. */
HFSB_API void hfsb_request_pause(hfsb_request *request);
HFSB_API void hfsb_request_resume(hfsb_request *request);

/* ---- a reply; only in the thread that serves (or a threaded route) ---- */

/* Adds a field to the head of the reply, before anything below. HFSB_ARG for
   a name or value that may not be in a head; HFSB_NOMEM. */
HFSB_API hfsb_status hfsb_reply_field(hfsb_request *request, const char *name,
                                      hfsb_str value);
/* A whole reply. type is the Content-Type ("" : none). */
HFSB_API void hfsb_reply(hfsb_request *request, int status, const char *type,
                         hfsb_str body);
/* {"detail":...,"error":...}; format as in printf. */
HFSB_API void hfsb_reply_error(hfsb_request *request, int status,
                               const char *format, ...) HFSBI_PRINTF(3, 4);
/* length bytes of a file from offset on; takes over fd. */
HFSB_API void hfsb_reply_file(hfsb_request *request, int status,
                              const char *type, int fd,
                              unsigned long long offset,
                              unsigned long long length);
/* A reply in pieces: begin, any number of write, end. What the peer has not
   taken yet is kept in memory: waiting() tells how much; drained, when set, is
   called each time it has become empty. HFSB_NOMEM: the connection is lost. */
HFSB_API void        hfsb_reply_begin(hfsb_request *request, int status,
                                      const char *type);
HFSB_API hfsb_status hfsb_reply_write(hfsb_request *request, hfsb_str bytes);
HFSB_API size_t      hfsb_reply_waiting(const hfsb_request *request);
HFSB_API void hfsb_reply_on_drained(hfsb_request *request, hfsb_route_fn fn,
                                    void *user);
HFSB_API void hfsb_reply_end(hfsb_request *request);
/* Ends the connection in the middle of it. */
HFSB_API void hfsb_reply_abort(hfsb_request *request);

/* ---- the sandbox ---- */

typedef struct hfsb_server_sandbox_opts {
    const hfsb_tools_opts *tools; /* (NULL: the defaults; timeout 0 is 120 s
                                     here) */
    bool      kill_on_disconnect; /* a command ends when its client is gone,
                                     not only a streamed one */
    long long beat_ms; /* after this, and at this interval, a reply that takes
                          long sends a blank (0: 10,000); half the command's
                          timeout when that is less */
} hfsb_server_sandbox_opts;

/* Adds the endpoints of the sandbox: /api/health, /api/bash and the other
   tools, /api/jobs, /api/files, /api/metrics. Once a server. opts may be
   NULL. As hfsb_tools_open(), and HFSB_ARG. */
HFSB_API hfsb_status hfsb_server_add_sandbox(
    hfsb_server *server, const hfsb_server_sandbox_opts *opts, hfsb_err *err);
