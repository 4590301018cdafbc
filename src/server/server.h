#pragma once

/* ==== SERVER: HTTP/1.1 on one event loop, and the sandbox on top ======== */

#include "../core/json.h"
#include "../http/http.h"
#include "../tools/tools.h"

/* One thread serves all connections: the thread that runs or polls the server.
   Work that may block (files, a host's own slow handlers) goes to a few pool
   threads, started when first needed. Any number of servers may live in one
   process. No signal handler is installed; SIGPIPE is not raised. */
typedef struct hfsb_server  hfsb_server;
typedef struct hfsb_request hfsb_request;

/* One line for a log: an answered request, or another event. Views are valid
   during the callback only. */
typedef struct hfsb_server_event {
    const char *what; /* "request", or the event: "accept failed", "idle" */
    hfsb_str    method, path; /* of a request, as received: hostile bytes */
    int         status;       /* 0: the client went away before its reply */
    long long   duration_ms;
    unsigned long long bytes_in, bytes_out; /* of bodies */
    hfsb_str           peer;                /* address, or "unix" */
    hfsb_str           detail; /* of another event, or why the request was
                                  refused */
} hfsb_server_event;

typedef struct hfsb_server_opts {
    hfsb_str token;       /* that clients must send as "Bearer {token}" in
                         X-Sandbox-Authorization or, where that is absent, in
                         Authorization; only its digest is kept. Empty: routes
                         that need a token answer 503 */
    bool     late_token;  /* POST /init of the sandbox sets the token, if
                         none is given here: its first caller wins */
    bool     no_auth;     /* no token is needed; the server then listens on
                         loopback only */
    bool     open_to_all; /* a server with no_auth may listen on any address */
    /* A second way to authorize a request: called when a route needs a token
       and the request's token is absent or wrong. Return true to accept the
       request; otherwise it gets 401. Runs in the thread that serves, as soon
       as the head is complete; must not block, nor reply. If it is set,
       Authorization and X-Sandbox-Authorization stay in the head unless they
       hold the token. Compare secrets with hfsb_secret_equal(). (NULL: only
       the token) */
    bool (*authorize)(void *user, const hfsb_request *request);
    const char *const *allow_hosts; /* names that Host and Origin may have, in
                         addition to loopback names and the bound address;
                         NULL-terminated; "*" allows any. Where no token is
                         needed Host is checked on Unix sockets, too, and an
                         Origin must be the Host with its port, or a name
                         listed here, for which "*" does not count */
    size_t             max_head;    /* bytes (0: 16 KiB) */
    size_t             max_fields;  /* (0: 100) */
    size_t    max_body;        /* bytes of a body kept in memory (0: 64 MiB) */
    size_t    max_bodies;      /* ... of all bodies together, and of the stdin
                                  that commands hold (0: 256 MiB) */
    size_t    max_connections; /* (0: 1024); when all are taken, a new one
                                  replaces the one that has been idle, or has
                                  been sending a head or a body without an
                                  accepted token, for longest (at least a
                                  second) */
    size_t    max_per_peer;    /* ... from one IPv4 address or IPv6 network of
                                  64 bits; beyond that they replace each
                                  other, or are closed (0: half of
                                  max_connections, and any number from
                                  loopback) */
    long long head_ms;     /* for the complete head; also for a complete body
                          that is discarded, or was sent without a valid
                          token (0: 10,000) */
    long long body_ms;     /* without progress of a body, in either direction
                          (0: 30,000) */
    size_t    min_rate;    /* bytes per second that other request bodies must
                           average once body_ms have passed; pauses do not
                           count (0: 1,024) */
    long long idle_ms;     /* between requests (0: 60,000) */
    long long stop_ms;     /* upper limit for a stop (0: 10,000) */
    long long drain_ms;    /* first part of a stop: everything is served as
                          before, but readiness checks get 503, so that a load
                          balancer looks elsewhere (0: none) */
    long long max_idle_ms; /* stop after this long without a request that has
                          the token and without a command that waits or runs,
                          background jobs included (0: never). Health checks
                          have no token; a GET with "X-Hfsb-Who: page" counts
                          only while it sends a file; what a command has left
                          running does not count */
    size_t    max_threads; /* for work that takes less than a second; up to
                            eight times as many for work that takes longer
                            (0: 8) */
    bool      no_threads;  /* do blocking work at once, in the loop */
    bool      no_name;     /* replies have no X-Hfsb, which has the version and
                          an id of this server. Not for the endpoints of the
                          sandbox: without that id hfsb's client does not
                          repeat a call whose reply was lost */
    void (*on_event)(void *user, const hfsb_server_event *event);
    void      *user;  /* of on_event and authorize */
    hfsb_alloc alloc; /* must be usable from the server's threads */
} hfsb_server_opts;

/* Opens a server in *out (NULL on failure). opts may be NULL; its texts are
   copied. HFSB_OK; HFSB_NOMEM; HFSB_IO; HFSB_ARG for a token with blanks,
   control bytes or bytes beyond ASCII. */
HFSB_API hfsb_status hfsb_server_open(const hfsb_server_opts *opts,
                                      hfsb_server **out, hfsb_err *err);

/* Closes all connections at once, waits for work in pool threads, kills the
   commands and frees the server. NULL is allowed. Not from a handler. */
HFSB_API void hfsb_server_close(hfsb_server *server);

/* ---- where it listens: any number of places ---- */

/* host: a numeric address ("127.0.0.1", "0.0.0.0", "::1") or "localhost"
   (NULL: "127.0.0.1"); port 0: the kernel picks one. *bound (may be NULL)
   receives the port. HFSB_OK; HFSB_ARG for any other host; HFSB_REFUSED if the
   address is not loopback and no_auth is set without open_to_all; else the
   status of the system's error, with advice in err. */
HFSB_API hfsb_status hfsb_server_listen(hfsb_server *server, const char *host,
                                        unsigned port, unsigned *bound,
                                        hfsb_err *err);
/* A Unix socket, mode 0600. Replaces the stale socket of a server that died;
   HFSB_REFUSED if another server answers there. close removes it, unless
   another one has taken its path. */
HFSB_API hfsb_status hfsb_server_listen_unix(hfsb_server *server,
                                             const char *path, hfsb_err *err);
/* An inherited listening socket. HFSB_ARG if fd is not one; otherwise the
   server takes it over. */
HFSB_API hfsb_status hfsb_server_listen_fd(hfsb_server *server, int fd,
                                           hfsb_err *err);

/* ---- running ---- */

/* Serves until hfsb_server_stop(). HFSB_OK; HFSB_ARG if the server does not
   listen anywhere. */
HFSB_API hfsb_status hfsb_server_run(hfsb_server *server, hfsb_err *err);

/* Stops the server: after drain_ms no new connections, up to 2 s for requests
   to finish, then commands are ended and their replies sent; at most stop_ms
   in all. Meanwhile new requests on open connections get 503. A second call
   stops it at once. From any thread or signal handler. */
HFSB_API void hfsb_server_stop(hfsb_server *server);

/* Instead of run, from the host's own loop: waits up to wait_ms (0: not at
   all; below 0: without limit) for events and handles them. False once the
   server has stopped. */
HFSB_API bool hfsb_server_poll(hfsb_server *server, long long wait_ms);

/* For a host that waits by itself, then calls hfsb_server_poll(server, 0).
   watch fills list with up to max descriptors to wait for and returns how many
   there are, which may be more; deadline returns until when to wait, on
   hfsb_clock_ms() (-1: without limit). */
HFSB_API size_t    hfsb_server_watch(hfsb_server *server, hfsb_watch *list,
                                     size_t max);
HFSB_API long long hfsb_server_deadline(hfsb_server *server);

/* Calls fn(user) soon in the thread that serves, so that the host's own
   threads can reply. From any thread. HFSB_OK or HFSB_NOMEM. Calls still
   pending when the server closes are made by close. */
HFSB_API hfsb_status hfsb_server_post(hfsb_server *server,
                                      void (*fn)(void *user), void *user);

/* ---- timers; only in the thread that serves, or before it runs ---- */

/* Calls fn(user) in the thread that serves when the time set by
   hfsb_timer_set() has passed. */
typedef struct hfsb_timer hfsb_timer;

/* Opens a timer in *out, not set. HFSB_OK; HFSB_NOMEM with *out NULL.
   hfsb_server_close() closes the timers that are left; from then on they must
   not be used. */
HFSB_API hfsb_status hfsb_timer_open(hfsb_server *server,
                                     void (*fn)(void *user), void *user,
                                     hfsb_timer **out, hfsb_err *err);
/* Calls fn once in ms milliseconds, instead of the time set before; ms below
   0: not at all. fn may set or close its own timer. */
HFSB_API void hfsb_timer_set(hfsb_timer *timer, long long ms);
/* NULL is allowed. */
HFSB_API void hfsb_timer_close(hfsb_timer *timer);

/* ---- routes ---- */

typedef void (*hfsb_route_fn)(void *user, hfsb_request *request);

typedef struct hfsb_route {
    const char   *method; /* "GET" (which answers HEAD too), "POST" ...; "*":
                           any, even one that HTTP does not define */
    const char   *path;   /* "/hello"; a "*" matches one part, not empty:
                           "/things/" "*" "/parts"; "**" at the end matches the
                           rest, which may be empty */
    hfsb_route_fn fn;     /* called once the body is complete; must make sure
                           that a reply is sent, at once or later */
    void         *user;
    bool          no_token; /* anyone may call it; without a token its body
                               must arrive within head_ms */
    bool          threaded; /* fn may block: it runs in a pool thread with
                                512 KiB of stack, and must reply before it
                                returns, with hfsb_reply() or
                                hfsb_reply_error() */
    bool          raw; /* the parts of the path are not decoded: %2F and %00
                          stay as they are */
    size_t        max_body; /* (0: that of the server; with no_token 64 KiB,
                                since anyone can fill it) */
    /* For bodies of any size, in pieces as they arrive: begin is called when
       the head is complete, body for each piece. With neither set the body is
       kept in memory. Both may reply, or begin a reply: then nothing more is
       called, and the rest of the body is read and discarded. A route cannot
       send its reply while it reads: it begins the reply in fn. */
    hfsb_route_fn begin;
    void (*body)(void *user, hfsb_request *request, hfsb_str piece);
    const char *accept; /* only for requests whose Accept lists this type, as
                           those of browsers list "text/html" (NULL: for all).
                           Of several routes that match, the first one added
                           is used */
} hfsb_route;

/* Adds a route, before the server runs or in its thread. Texts are copied.
   HFSB_OK; HFSB_ARG for an invalid route, or one whose method, path and accept
   exist already; HFSB_NOMEM. */
HFSB_API hfsb_status hfsb_server_add(hfsb_server      *server,
                                     const hfsb_route *route, hfsb_err *err);

/* ---- a request: valid until its reply has ended or `gone` was called ---- */

/* The head. X-Sandbox-Authorization is empty, and on a route that needs a
   token so is Authorization, unless the server has `authorize`. */
HFSB_API const hfsb_http_head *hfsb_request_head(const hfsb_request *request);
/* The match of the n-th "*" of the route's path, counted from 0 and decoded
   (unless the route is raw); "" if there is no such "*". */
HFSB_API hfsb_str hfsb_request_part(const hfsb_request *request, size_t n);
/* Appends the value of a key of the query, as hfsb_http_query_find(). */
HFSB_API hfsb_status hfsb_request_query(const hfsb_request *request,
                                        const char *key, hfsb_buf *out,
                                        hfsb_err *err);
/* The value of a key of the query if it is a whole decimal number, such as
   "-5", that a long long can hold; else the fallback. */
HFSB_API long long hfsb_request_query_int(const hfsb_request *request,
                                          const char *key, long long fallback);
/* The body so far; "" for a route that takes it in pieces. */
HFSB_API hfsb_str     hfsb_request_body(const hfsb_request *request);
/* Parses the body as JSON into *doc, which the handler frees. If that fails,
   replies with 400 and where the body is not JSON (503 when out of memory),
   and returns false with *doc empty: the handler just returns. The
   Content-Type is not checked. */
HFSB_API bool hfsb_request_json(hfsb_request *request, hfsb_json_doc *doc);
HFSB_API hfsb_server *hfsb_request_server(const hfsb_request *request);
/* Store and return a pointer of the handler's own. */
HFSB_API void  hfsb_request_set(hfsb_request *request, void *own);
HFSB_API void *hfsb_request_get(const hfsb_request *request);
/* Calls gone(user, request) once if the peer goes away or the server ends
   before the reply has ended; the request must not be used afterwards. Never
   called from inside a function of the request or the reply, nor while fn of a
   threaded route runs. gone NULL: nothing is called. */
HFSB_API void hfsb_request_on_gone(hfsb_request *request, hfsb_route_fn gone,
                                   void *user);
/* Stops and continues reading the body: back-pressure for `body`. */
HFSB_API void hfsb_request_pause(hfsb_request *request);
HFSB_API void hfsb_request_resume(hfsb_request *request);

/* ---- a reply; only in the thread that serves (or a threaded route) ---- */

/* A request has one reply: a second one does nothing. */

/* Adds a field to the head of the reply, before any function below. HFSB_OK;
   HFSB_ARG for an invalid name or value; HFSB_NOMEM. */
HFSB_API hfsb_status hfsb_reply_field(hfsb_request *request, const char *name,
                                      hfsb_str value);
/* A whole reply. type is the Content-Type ("": none). */
HFSB_API void hfsb_reply(hfsb_request *request, int status, const char *type,
                         hfsb_str body);
/* {"detail":...,"error":...}, both the same text; format as in printf. */
HFSB_API void hfsb_reply_error(hfsb_request *request, int status,
                               const char *format, ...) HFSBI_PRINTF(3, 4);
/* JSON in the format of hfsb_json_printf(). When out of memory, or for an
   invalid format, the connection is closed. */
HFSB_API void hfsb_reply_json(hfsb_request *request, int status,
                              const char *format, ...) HFSBI_PRINTF(3, 4);
/* length bytes of a file, starting at offset; takes over fd. */
HFSB_API void hfsb_reply_file(hfsb_request *request, int status,
                              const char *type, int fd,
                              unsigned long long offset,
                              unsigned long long length);
/* A reply in pieces: begin, any number of write, end. Bytes that the peer has
   not taken yet are kept in memory: waiting returns how many; on_drained sets
   a function that is called each time they have been sent. write returns
   HFSB_OK, or HFSB_NOMEM: the connection is lost, and `gone` will be called. */
HFSB_API void        hfsb_reply_begin(hfsb_request *request, int status,
                                      const char *type);
HFSB_API hfsb_status hfsb_reply_write(hfsb_request *request, hfsb_str bytes);
HFSB_API size_t      hfsb_reply_waiting(const hfsb_request *request);
HFSB_API void hfsb_reply_on_drained(hfsb_request *request, hfsb_route_fn fn,
                                    void *user);
HFSB_API void hfsb_reply_end(hfsb_request *request);
/* Closes the connection in the middle of the reply; `gone` is not called. */
HFSB_API void hfsb_reply_abort(hfsb_request *request);

/* ---- the sandbox ---- */

typedef struct hfsb_server_sandbox_opts {
    const hfsb_tools_opts *tools; /* (NULL: the defaults; timeout 0 is 120 s
                                     here) */
    bool      kill_on_disconnect; /* every command ends when its client goes
                                     away, not only a streamed one */
    long long beat_ms; /* interval at which a slow reply sends a blank, so that
                          no proxy gives up (0: 10,000); half the command's
                          timeout if that is less */
    bool      no_page; /* there is no page at "/", and raw output of commands
                          is not kept for people who watch */
} hfsb_server_sandbox_opts;

/* Adds the endpoints of the sandbox: /api/health, /api/bash and the other
   tools, /api/jobs, /api/files, /api/events, /api/metrics and more, at
   /api/openapi.json their description, /proxy and /open, which relay to ports
   of this machine, and for browsers the page at "/". Without a journal in the
   options of the tools they get one in memory. opts may be NULL. Returns as
   hfsb_tools_open(), and HFSB_ARG if the server has them already. */
HFSB_API hfsb_status hfsb_server_add_sandbox(
    hfsb_server *server, const hfsb_server_sandbox_opts *opts, hfsb_err *err);
/* The tools of these endpoints; NULL without them. */
HFSB_API const hfsb_tools *hfsb_server_tools(hfsb_server *server);
