#pragma once

#include "../http/http_private.h"
#include "../os/os_private.h"
#include "net.h"

/* The internals of net: sockets and name lookup, proxies, and the retry policy
   that every network client shares. Never part of the public header. */

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* ---- socket.c ---- */

/* A description of a network errno, where the system's own is unclear. */
HFSBI_FN const char *hfsbi_net_text(int code);

/* Connects until the deadline on hfsb_clock_ms(); ms is how long that is, for
   the message. HFSB_OK, or a failure as for perform(), with nothing left open.
   */
HFSBI_FN hfsb_status hfsbi_socket_dial(const char *host, unsigned port,
                                       long long ms, long long deadline,
                                       const hfsb_cancel *cancel, int *fd,
                                       hfsb_err *err);

/* Connects to a Unix socket, until the deadline. As above. */
HFSBI_FN hfsb_status hfsbi_socket_dial_unix(const char        *path,
                                            long long          deadline,
                                            const hfsb_cancel *cancel, int *fd,
                                            hfsb_err *err);
/* Two connected sockets that do not block; false with errno. */
HFSBI_FN bool hfsbi_socket_pair(int fds[2]);

/* Sends up to two views. Returns as send() does; never raises SIGPIPE. */
HFSBI_FN ssize_t hfsbi_socket_send(int fd, hfsb_str a, hfsb_str b);

/* Makes a stream of a connected socket, which it takes over. HFSB_OK or
   HFSB_NOMEM: the socket is closed. */
HFSBI_FN hfsb_status hfsbi_socket_stream_open(int *fd, const hfsb_alloc *alloc,
                                              hfsb_stream *out, hfsb_err *err);

enum { HFSBI_STREAM_HEAD = 16384, HFSBI_STREAM_FIELDS = 100 };

/* The request at the beginning of a stream; the caller sets stream, until and
   cancel. Large: not for the stack of a thread. */
typedef struct hfsbi_stream_ask {
    const hfsb_stream *stream;
    long long          until; /* on hfsb_clock_ms() */
    const hfsb_cancel *cancel;
    hfsb_http_head     head; /* of the reply: views of `in` */
    hfsb_http_field    fields[HFSBI_STREAM_FIELDS];
    char               in[HFSBI_STREAM_HEAD];
    size_t have, at; /* bytes that came; where those after the head begin */
} hfsbi_stream_ask;

/* Sends the request and reads the head of its reply, whatever its status.
   HFSB_OK; HFSB_LOST, HFSB_TIMEOUT, HFSB_CANCELLED; HFSB_REMOTE: it is not
   valid HTTP. */
HFSBI_FN hfsb_status hfsbi_stream_ask_run(hfsbi_stream_ask *ask,
                                          hfsb_str method, hfsb_str request,
                                          hfsb_err *err);

/* ---- websocket.c: a client's WebSocket ---- */

typedef struct hfsbi_ws_client hfsbi_ws_client;

/* Connects to call->url, http or https, and upgrades, with call->fields,
   within connect_ms (0: 30,000) in all or until cancel. *status gets the HTTP
   status of the reply, 0 without one. max: bytes of a message (0: 16 MiB).
   HFSB_OK; HFSB_REFUSED: the transport has no streams; HFSB_REMOTE: the status
   is not 101, or the reply is invalid; else as hfsb_transport. */
HFSBI_FN hfsb_status hfsbi_ws_client_open(const hfsb_transport *transport,
                                          const hfsb_http_call *call,
                                          size_t max, const hfsb_alloc *alloc,
                                          hfsbi_ws_client **out, int *status,
                                          hfsb_err *err);
/* Closes the connection without a close frame. NULL is allowed. */
HFSBI_FN void hfsbi_ws_client_free(hfsbi_ws_client *ws);
/* To be polled: for reading, and while hfsbi_ws_client_waits() for writing. */
HFSBI_FN int  hfsbi_ws_client_fd(const hfsbi_ws_client *ws);
HFSBI_FN bool hfsbi_ws_client_waits(const hfsbi_ws_client *ws);

/* The next event, as hfsbi_ws_next(); MORE: nothing now. Pings are answered
   here, and reported only as a sign of life. HFSB_OK; HFSB_LOST; HFSB_SYNTAX
   or HFSB_LIMIT with the event BAD: frame->code is for the close. */
HFSBI_FN hfsb_status hfsbi_ws_client_next(hfsbi_ws_client *ws,
                                          hfsbi_ws_event  *event,
                                          hfsbi_ws_frame  *frame,
                                          hfsb_err        *err);

/* Sends as much of a text message as fits, from byte *at on, and advances *at.
   Sets *whole when all of it was sent. Repeat the call with the same message
   until then, and close only afterwards. HFSB_OK or HFSB_LOST. */
HFSBI_FN hfsb_status hfsbi_ws_client_send(hfsbi_ws_client *ws,
                                          hfsb_str message, size_t *at,
                                          bool *whole, hfsb_err *err);
/* The same for a message that may be binary. */
HFSBI_FN hfsb_status hfsbi_ws_client_send_as(hfsbi_ws_client *ws, bool text,
                                             hfsb_str message, size_t *at,
                                             bool *whole, hfsb_err *err);
/* Sends the rest of what was begun, and answers to pings. HFSB_OK or
   HFSB_LOST. */
HFSBI_FN hfsb_status hfsbi_ws_client_flush(hfsbi_ws_client *ws, hfsb_err *err);
/* Queue a ping, or a close (only once), for the next flush. */
HFSBI_FN void hfsbi_ws_client_ping(hfsbi_ws_client *ws);
HFSBI_FN void hfsbi_ws_client_close(hfsbi_ws_client *ws, unsigned code);

/* ---- pipe_name.c: commands that connect to another machine ---- */

typedef struct hfsbi_pipe_words {
    hfsb_buf text; /* the words, each with its NUL */
    size_t   count;
} hfsbi_pipe_words;

/* Appends a word; a failure stays in w->text. */
HFSBI_FN void hfsbi_pipe_add(hfsbi_pipe_words *w, hfsb_str word);
/* Appends the words of the command for "ssh:HOST" and the like. HFSB_OK;
   HFSB_ARG: it is not such a name; HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_pipe_name(hfsb_str name, hfsbi_pipe_words *w,
                                     hfsb_err *err);

/* ---- mux.c: connections through a pipe ---- */

typedef struct hfsbi_mux hfsbi_mux;

typedef enum hfsbi_mux_end {
    HFSBI_MUX_RUNS,
    HFSBI_MUX_BROKE,   /* the pipe ended, was silent for too long, or carried
                          an invalid frame */
    HFSBI_MUX_SAID_BYE /* the client no longer needs the server */
} hfsbi_mux_end;

typedef struct hfsbi_mux_opts {
    hfsbi_loop *loop;
    /* Connects a socket that does not block, for a stream that the peer opens.
       HFSB_CONNECT: the pipe is over; any other failure ends that stream
       alone. (NULL: this side is the client) */
    hfsb_status (*accept)(void *user, int *fd);
    /* Tests that socket, see hfsb_pipe_serve_opts. (NULL: no test) */
    hfsb_status (*prove)(void *user, int fd, void *room);
    size_t proof_room;
    /* Called once in the loop when the pipe is over and all sockets are
       closed. Must not close the mux. */
    void (*over)(void *user, hfsbi_mux_end end);
    void      *user;
    long long  beat_ms; /* a sign of life follows so long without a byte sent
                           (0: 15,000) */
    long long  lost_ms; /* the pipe is over after so long without a byte heard
                           (0: 45,000; with accept 300,000) */
    hfsb_alloc alloc;
} hfsbi_mux_opts;

/* Pumps between the pipe and sockets; takes over *in and *out, which become
   -1, even on failure. HFSB_OK; HFSB_NOMEM; HFSB_IO. Call this and the
   functions below under the lock of the loop. */
HFSBI_FN hfsb_status hfsbi_mux_open(const hfsbi_mux_opts *opts, int *in,
                                    int *out, hfsbi_mux **mux, hfsb_err *err);
/* Closes the pipe and all sockets. NULL is allowed. */
HFSBI_FN void hfsbi_mux_close(hfsbi_mux *m);
/* Opens a stream; *fd is a connected socket that does not block. HFSB_OK;
   HFSB_CONNECT: the pipe is over; HFSB_BUSY; HFSB_NOMEM; HFSB_IO. */
HFSBI_FN hfsb_status hfsbi_mux_connect(hfsbi_mux *m, int *fd, hfsb_err *err);
/* False once the pipe is over. */
HFSBI_FN bool hfsbi_mux_runs(const hfsbi_mux *m);
/* Ends the server on the other side. */
HFSBI_FN void hfsbi_mux_bye(hfsbi_mux *m);
/* Takes bytes as if they had come from the pipe. */
HFSBI_FN void hfsbi_mux_feed(hfsbi_mux *m, hfsb_str in);

/* ---- calls, for every transport ---- */

/* Parses the URL of the call and rejects what no transport can send. HFSB_OK;
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

/* Reads the environment into *proxy, which need not be initialised. HFSB_OK
   even when the proxy is not usable; HFSB_NOMEM. Free it in any case. */
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
    long long asked_ms; /* wait that the peer asked for, instead of the
                               policy's (0: none); reset by each wait */
    const hfsb_cancel *cancel;
    void (*on_wait)(void *user, long long ms); /* before a wait (NULL: none) */
    void  *user;
    size_t failed; /* private: tries that failed so far */
    size_t waits;  /* private: waits so far */
} hfsbi_retry;

/* Call after a failed try: waits until the next one. HFSB_OK: try again;
   HFSB_LIMIT: no try is left, or the deadline comes first: it did not wait;
   HFSB_CANCELLED. */
HFSBI_FN hfsb_status hfsbi_retry_again(hfsbi_retry *retry);

/* The same wait without counting a failed try. */
HFSBI_FN hfsb_status hfsbi_retry_wait(hfsbi_retry *retry);

/* Starts over: the next failure is the first again. */
HFSBI_FN void hfsbi_retry_reset(hfsbi_retry *retry);
