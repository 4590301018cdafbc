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
    long long connect_ms; /* timeout for connecting, with TLS (0: 30,000) */
    long long idle_ms;    /* timeout without a byte in either direction
                             (0: no limit) */
    long long total_ms;   /* timeout for the whole call (0: no limit) */
    const hfsb_cancel *cancel; /* (NULL: cannot be cancelled) */
} hfsb_http_call;

/* A connection that passes bytes both ways, for a protocol other than HTTP.
   One thread uses it at a time. */
typedef struct hfsb_stream {
    int fd; /* to be polled when nothing can be sent or received */
    /* Send, or receive, as much as possible without waiting, and set *n; 0:
       nothing now. Wait for fd only then. HFSB_OK; HFSB_LOST: the connection
       has ended; HFSB_IO. */
    hfsb_status (*send)(void *user, hfsb_str bytes, size_t *n, hfsb_err *err);
    hfsb_status (*receive)(void *user, char *ptr, size_t room, size_t *n,
                           hfsb_err *err);
    void (*close)(void *user);
    void *user;
} hfsb_stream;

/* Closes the stream; its transport must still be open. */
HFSB_API void hfsb_stream_close(hfsb_stream *stream);

/* A way to send requests. hfsb_net_open() gives one for http,
   hfsb_http_curl.h one for https. To plug in another HTTP client, implement
   perform(): it sends one request and waits for its reply. It follows no
   redirect, and several threads may call it at once. It never resends a
   request that may have reached the peer, except a GET or HEAD on a kept
   connection that turned out to be closed before the first byte of a reply.

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
    /* Opens a connection to the host of the call's URL, with TLS for https,
       and through a tunnel if there is a proxy. Only url, connect_ms and
       cancel of the call are used. No HTTP is sent to the host. Returns as
       perform(). (NULL: WebSockets are not possible) */
    hfsb_status (*connect)(void *user, const hfsb_http_call *call,
                           hfsb_stream *out, hfsb_err *err);
} hfsb_transport;

/* Closes the transport, which may be all zero, and makes *transport so. No
   call may be in progress. */
HFSB_API void hfsb_transport_close(hfsb_transport *transport);

/* ---- the built-in transport: http over sockets ---- */

/* A connection that a program makes itself, see hfsb_net_opts.dial. */
typedef struct hfsb_dial {
    hfsb_str           host; /* of the URL */
    unsigned           port;
    long long          deadline; /* on hfsb_clock_ms() */
    const hfsb_cancel *cancel;   /* may be NULL */
} hfsb_dial;

typedef struct hfsb_net_opts {
    /* All requests go to this Unix socket, whatever their URL; copied. (NULL:
       over TCP to the host of the URL) */
    const char *unix_path;
    /* Or makes each connection: sets *fd to the descriptor of a connected
       stream socket, which the transport makes non-blocking and closes; any
       thread may call it. Returns HFSB_OK, or HFSB_CONNECT, HFSB_TIMEOUT,
       HFSB_CANCELLED, HFSB_BUSY, HFSB_NOMEM with *err. No proxy is used with
       unix_path or dial. (NULL: none) */
    hfsb_status (*dial)(void *user, const hfsb_dial *to, int *fd,
                        hfsb_err *err);
    void      *user;
    bool       no_proxy; /* ignore http_proxy, all_proxy and no_proxy of the
                            environment */
    size_t     max_kept; /* idle connections to keep (0: 8) */
    long long  kept_ms;  /* how long to keep them (0: 30,000) */
    size_t     max_head; /* bytes of a reply's head (0: 64 KiB) */
    hfsb_alloc alloc;    /* called by every thread that makes a call */
} hfsb_net_opts;

/* Opens a transport for http. opts may be NULL. Reads http_proxy, no_proxy and
   all_proxy (the last two also in upper case) before it returns. A call to an
   https URL returns HFSB_REFUSED with advice. Starts no thread: the C library
   looks up names, so connect_ms and cancel cannot interrupt a lookup. HFSB_OK;
   HFSB_NOMEM. */
HFSB_API hfsb_status hfsb_net_open(const hfsb_net_opts *opts,
                                   hfsb_transport *out, hfsb_err *err);

/* ---- a pipe: a server at the other end of any command ---- */

/* A command (ssh, docker exec, kubectl exec, srun ...) whose standard input
   and output lead to hfsb-server on another machine or in a container:

       hfsb_pipe_open(&opts, &pipe, &err)
       net.dial = hfsb_pipe_dial, net.user = pipe
       hfsb_net_open(&net, &transport, &err)
       sandbox.transport = &transport, sandbox.api_token = hfsb_pipe_token(pipe)
       hfsb_sandbox_connect_url(HFSB_LIT("http://localhost"), &sandbox, ...)

   Nothing listens on a port, and there is no token to manage: anyone who can
   run the command can use the sandbox. When the pipe breaks, the next
   connection starts the command again; the remote server keeps running
   meanwhile (linger_ms), so a repeated call joins the first one and runs
   once. */
typedef struct hfsb_pipe hfsb_pipe;

typedef struct hfsb_pipe_opts {
    /* The command, NULL-terminated; copied. The remote end is a POSIX shell
       that reads commands from its input (`ssh HOST sh`), or `hfsb-server
       --stdio` itself. */
    const char *const *argv;
    /* Or, instead of argv, its name; copied: ssh:HOST, docker:CONTAINER,
       podman:CONTAINER, kubectl:POD, kubectl:NAMESPACE/POD,
       kubectl:NAMESPACE/POD/CONTAINER, slurm:OPTIONS (of srun), exec:COMMAND;
       the last two are passed to the local shell. */
    const char *name;
    /* Appends the bytes of a static hfsb-server for the machine that uname -s
       and uname -m report ("Linux", "x86_64"); the remote end may lie, but
       only with letters, digits and "._-?". The bytes are sent through the
       pipe when a shell answers that does not have them yet in
       $XDG_DATA_HOME/hfsb (~/.local/share/hfsb, or $TMPDIR/hfsb-UID, /tmp
       without TMPDIR), and checked there by their SHA-256.
       (NULL: only `hfsb-server --stdio` is understood) */
    hfsb_status (*server)(void *user, const char *system, const char *machine,
                          hfsb_buf *out, hfsb_err *err);
    void              *user;
    long long          start_ms;  /* to connect, sending the server included
                                     (0: 60,000) */
    long long          linger_ms; /* how long the server waits for another pipe
                                     after this one breaks; for that long, and
                                     while the deadline of a dial allows, the
                                     command is started again (0: 60,000) */
    long long          again_ms;  /* for each of these starts, which is then
                                     abandoned for the next one (0: a third of
                                     linger_ms, from 2,000 to 30,000) */
    long long          close_ms;  /* how long hfsb_pipe_close() waits for the
                                     pipe to end (0: 12,000) */
    const hfsb_cancel *cancel;    /* of hfsb_pipe_open() (NULL: none) */
    hfsb_alloc         alloc;     /* used by a thread of the pipe, too */
} hfsb_pipe_opts;

/* True for the start of a name as in hfsb_pipe_opts: "ssh:" ... */
HFSB_API bool hfsb_pipe_is_name(hfsb_str name);

/* Starts the command, the remote server and one thread. HFSB_OK; HFSB_ARG:
   invalid name; HFSB_CONNECT, with what the command printed on stderr;
   HFSB_TIMEOUT, HFSB_CANCELLED; HFSB_NOT_FOUND: no such program on this
   machine; HFSB_REFUSED, or the status of `server`: no server for the remote
   machine; HFSB_NOMEM, HFSB_BUSY. */
HFSB_API hfsb_status hfsb_pipe_open(const hfsb_pipe_opts *opts,
                                    hfsb_pipe **out, hfsb_err *err);
/* The token of the remote server, chosen by the pipe: for
   hfsb_sandbox_opts.api_token. Valid until close. */
HFSB_API hfsb_str hfsb_pipe_token(const hfsb_pipe *pipe);
/* For hfsb_net_opts.dial; user is the pipe. Any thread. */
HFSB_API hfsb_status hfsb_pipe_dial(void *user, const hfsb_dial *to, int *fd,
                                    hfsb_err *err);
/* Ends the remote server with everything its commands left running, then the
   command. Close the transport first. NULL is allowed. */
HFSB_API void hfsb_pipe_close(hfsb_pipe *pipe);
/* Runs the command once, to remove the server from the remote cache. HFSB_OK
   even if it is not there; HFSB_REFUSED: hfsb-server itself answers, not a
   shell; else as hfsb_pipe_open(). */
HFSB_API hfsb_status hfsb_pipe_forget(const hfsb_pipe_opts *opts,
                                      hfsb_err             *err);

/* The other side of a pipe. */
typedef struct hfsb_pipe_serve_opts {
    /* Connects to the server, once for each connection of the client: as
       hfsb_net_opts.dial, but only the deadline of `to` is set, and it is
       short: all connections wait for this one. HFSB_CONNECT means that the
       server is gone, and ends the pipe; any other failure ends only that
       connection. */
    hfsb_status (*dial)(void *user, const hfsb_dial *to, int *fd,
                        hfsb_err *err);
    /* Checks that a new connection leads to the server before any byte of the
       client is sent on it: called at once, and whenever there is something to
       read, until it returns HFSB_OK. `room` has proof_room bytes for this
       connection, which are zero at first. The socket does not block.
       HFSB_BUSY: not known yet; else as dial. (NULL: no check) */
    hfsb_status (*prove)(void *user, int fd, void *room);
    size_t proof_room;
    void  *user;
    int    server; /* a socket connected to the server, whose end ends the
                     pipe; bytes from it are dropped; not closed (0: none) */
} hfsb_pipe_serve_opts;

/* Passes the connections of a client on to a server, until the pipe or the
   server ends. *bye becomes true when the client no longer needs the server.
   Takes over in and out. HFSB_OK; HFSB_IO, HFSB_NOMEM, HFSB_BUSY. */
HFSB_API hfsb_status hfsb_pipe_serve(int in, int out,
                                     const hfsb_pipe_serve_opts *opts,
                                     bool *bye, hfsb_err *err);

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
   Idempotency-Key are dropped from then on. A redirect from https to http is
   HFSB_REFUSED. on_head receives the last reply, on_body its body when the
   status is 2xx. Any other body is kept in reply->body, up to reply->body.max
   bytes (0: 64 MiB), else HFSB_LIMIT.
   *reply is all zero, or was used before. Free it with hfsb_http_reply_free()
   in any case. Returns as hfsb_transport, and HFSB_REMOTE for endless or
   invalid redirects. total_ms applies to all redirects together. */
HFSB_API hfsb_status hfsb_http_send(const hfsb_transport *transport,
                                    const hfsb_http_call *call,
                                    hfsb_http_reply *reply, hfsb_err *err);

/* The value of the n-th field (from 0) of that name, ignoring case; ptr NULL
   when there is none. Valid until the reply is freed. */
HFSB_API hfsb_str hfsb_http_reply_field(const hfsb_http_reply *reply,
                                        const char *name, size_t n);
HFSB_API void     hfsb_http_reply_free(hfsb_http_reply *reply);
