#pragma once

#include "../http/http_private.h"
#include "../tools/tools_private.h"
#include "server.h"

/* server_private.h - the internals of the HTTP server.

     server --- listener --accept--> conn --- request --- route's handler
        |                             |          |             |
     routes, limits,               parser      reply  <--------+
     access, parts                             work in a pool thread

   One thread runs the loop and owns all of these objects. Code in a pool
   thread sees a request only inside hfsbi_request_work().

   A handler never ends its own connection: the reply functions record what
   happened and touch the connection; the server settles touched connections
   once no handler is on the stack. */

/* ==== for the rooms built on the server =================================== */

typedef struct hfsbi_server_stats {
    unsigned long long accepted;    /* connections ever accepted */
    unsigned long long refused;     /* of these: closed at once */
    unsigned long long requests;    /* answered */
    unsigned long long by_class[6]; /* by the first digit of the status */
    unsigned long long bytes_in, bytes_out; /* of bodies */
    size_t             open;                /* connections now */
    size_t             bodies; /* bytes of request bodies in memory now */
} hfsbi_server_stats;

HFSBI_FN hfsbi_loop       *hfsbi_server_loop(hfsb_server *server);
HFSBI_FN const hfsb_alloc *hfsbi_server_alloc(hfsb_server *server);
/* The group of all tools objects in the loop of the server. */
HFSBI_FN hfsbi_tools_group        *hfsbi_server_group(hfsb_server *server);
HFSBI_FN const hfsbi_server_stats *hfsbi_server_stats_of(hfsb_server *server);
/* Random hexadecimal digits, chosen when the server was opened. */
HFSBI_FN const char *hfsbi_server_instance(const hfsb_server *server);

/* An object that lives with the server, embedded in its owner. Any of its five
   functions may be NULL.
   hfsb_server_stop(): drain_ms -> listeners close, stop() of every part is
   called -> up to 2 s for requests to finish -> end() of every part -> the
   loop ends once no request is left and no part is busy, or when stop_ms are
   over.
   hfsb_server_close(): end() of every part, wait for the pool threads, free()
   of every part, newest first; no connection is left then, but the loop is.
   needs() is true while the part keeps the server from stopping for want of
   requests and commands. */
typedef struct hfsbi_server_part {
    struct hfsbi_server_part *next; /* private */
    void (*end)(struct hfsbi_server_part *part);
    bool (*busy)(struct hfsbi_server_part *part);
    void (*free)(struct hfsbi_server_part *part);
    void (*stop)(struct hfsbi_server_part *part);
    bool (*needs)(struct hfsbi_server_part *part);
    bool place; /* has clients of its own: the server may run without a
                   listener */
} hfsbi_server_part;

HFSBI_FN void hfsbi_server_part_add(hfsb_server       *server,
                                    hfsbi_server_part *part);
/* True after the first hfsb_server_stop(): it is no longer ready. */
HFSBI_FN bool hfsbi_server_is_stopping(const hfsb_server *server);
/* True when it takes no more requests: drain_ms later. */
HFSBI_FN bool hfsbi_server_is_closing(const hfsb_server *server);
/* True after the second one. */
HFSBI_FN bool hfsbi_server_must_end(const hfsb_server *server);

/* Stops the server once it was not in use for max_ms (0: never), see idle.c.
   Does nothing if the options of the server, or an earlier call, set that. */
HFSBI_FN void hfsbi_server_set_idle(hfsb_server *server, long long max_ms);

/* What keeps web pages from the routes of a face: see request.c. */
typedef enum hfsbi_face_guard {
    HFSBI_FACE_SERVER, /* as for the server's own routes: its token, or names
                          where it needs none */
    HFSBI_FACE_TOKEN,  /* a secret that every client sends */
    HFSBI_FACE_PATH,   /* a secret in the path: whoever knows it may use it,
                          even a page in a sandbox of the browser, whose Origin
                          is "null". Logs show the route instead */
    HFSBI_FACE_NAMES   /* its clients prove nothing: whoever reaches it may use
                          it */
} hfsbi_face_guard;

/* A face of the server: the routes of one protocol, how its clients prove that
   they may use them, and how it writes errors. Part of its owner, which lives
   as long as the server. Routes of no face are the server's own. */
typedef struct hfsbi_face {
    bool alone;    /* has a port of its own, see hfsbi_face_listen(), and is
                      not shown elsewhere */
    bool trims;    /* leading and trailing slashes of a path do not count */
    hfsbi_face_guard guard;
    int  denied;   /* status of a reply to those that are not trusted */
    /* True if the request proves that its sender may use the route, which is
       known, with its parts as the handler will see them. NULL: by the token
       of the server. */
    bool (*trusts)(struct hfsbi_face *face, hfsb_request *request);
    /* Replies with an error; must not use hfsb_reply_error(). */
    void (*refuse)(struct hfsbi_face *face, hfsb_request *request, int status,
                   hfsb_str message);
} hfsbi_face;

/* hfsb_server_add() for a route of a face (NULL: the server's own). */
HFSBI_FN hfsb_status hfsbi_face_add(hfsb_server *server, hfsbi_face *face,
                                    const hfsb_route *route, hfsb_err *err);
/* Returns the n-th route of no face, from 0 in the order they were added; NULL
   after the last. */
HFSBI_FN const hfsb_route *hfsbi_server_route(const hfsb_server *server,
                                              size_t             n);
/* hfsb_server_listen() for a face that is alone. */
HFSBI_FN hfsb_status hfsbi_face_listen(hfsb_server *server, hfsbi_face *face,
                                       const char *host, unsigned port,
                                       unsigned *bound, hfsb_err *err);
/* True if the request has the field once, with a value of one of these SHA-256
   (NULL-terminated), which follows a scheme such as "Bearer" (NULL: none).
   Wipes the values of all fields of that name: several acceptable secrets must
   be tried in one call. */
HFSBI_FN bool hfsbi_request_proves_any(hfsb_request *request, const char *name,
                                       const char                 *scheme,
                                       const unsigned char *const *digests);
/* The same for one. */
HFSBI_FN bool
hfsbi_request_proves(hfsb_request *request, const char *name,
                     const char         *scheme,
                     const unsigned char digest[HFSB_SHA256_SIZE]);
/* The SHA-256 of the server's token; NULL: it has none. */
HFSBI_FN const unsigned char *hfsbi_server_token(const hfsb_server *server);
/* True if the token may be set by hfsbi_server_set_token(). */
HFSBI_FN bool hfsbi_server_takes_token(const hfsb_server *server);
/* HFSB_OK; HFSB_ARG for a token that no field could carry. */
HFSBI_FN hfsb_status hfsbi_server_check_token(hfsb_str token, hfsb_err *err);
/* Sets the token, or another one. Returns as the function above. */
HFSBI_FN hfsb_status hfsbi_server_set_token(hfsb_server *server,
                                            hfsb_str token, hfsb_err *err);
/* True if that is the token. */
HFSBI_FN bool hfsbi_server_token_is(const hfsb_server *server, hfsb_str token);
/* True when no token is needed. */
HFSBI_FN bool hfsbi_server_is_open(const hfsb_server *server);
/* Returns the face of the request, or NULL. */
HFSBI_FN hfsbi_face *hfsbi_request_face(const hfsb_request *request);

/* True if the request carried the token, or the server needs none. */
HFSBI_FN bool hfsbi_request_is_trusted(const hfsb_request *request);

/* Returns a number, from 1 on, that only requests of one connection have. */
HFSBI_FN unsigned long long hfsbi_request_serial(const hfsb_request *request);

/* True if there is one Content-Type, and it is JSON. */
HFSBI_FN bool hfsbi_request_is_json(const hfsb_request *request);
/* For a POST that sets a secret. True if no web page has sent it; false after
   it was refused. */
HFSBI_FN bool hfsbi_request_is_direct(hfsb_request *request);

/* Moves the body out of the request into *out. */
HFSBI_FN void hfsbi_request_take_body(hfsb_request *request, hfsb_buf *out);

/* Calls fn once if the peer shuts down its sending side before the reply has
   ended. The peer may be gone, or may still be waiting for the reply. */
HFSBI_FN void hfsbi_request_on_eof(hfsb_request *request, hfsb_route_fn fn,
                                   void *user);

/* Work that may block: calls run(user) in a pool thread, then done(user,
   request) in the loop. done is called exactly once, even if the client goes
   away or the server stops meanwhile; the request stays valid until done
   returns. The function given to hfsb_request_on_gone() is still called in the
   loop, at once, when the client goes: there the caller cancels its work. In
   done, hfsbi_request_is_gone() reports whether a reply can still be sent;
   replying to a gone or answered request does nothing. Both functions may
   start the next work, even for a gone request. A request has one piece of
   work at a time; run must not touch the request. rights: of the task (NULL:
   those of this process, outside of walls); copied. */
HFSBI_FN void hfsbi_request_work(
    hfsb_request *request, const hfsbi_rights *rights, void (*run)(void *user),
    void (*done)(void *user, hfsb_request *request), void *user);

/* True once the connection is closed; only work keeps such a request alive. */
HFSBI_FN bool hfsbi_request_is_gone(const hfsb_request *request);

/* hfsb_reply() that takes over the memory of *body, which is empty afterwards.
   */
HFSBI_FN void hfsbi_reply_take(hfsb_request *request, int status,
                               const char *type, hfsb_buf *body);

/* hfsb_reply_begin() for a body whose length is known: with Content-Length,
   not in chunks. The pieces must have that length in all; else
   hfsb_reply_end() breaks the connection. */
HFSBI_FN void hfsbi_reply_begin_sized(hfsb_request *request, int status,
                                      const char        *type,
                                      unsigned long long length);

/* {"detail":...,"error":...} from JSON text for detail and a sentence. */
HFSBI_FN void hfsbi_reply_detail(hfsb_request *request, int status,
                                 hfsb_str detail_json, hfsb_str error);

/* Bytes of a tunnel, which fn may change; it keeps those that it needs. */
typedef void (*hfsbi_tunnel_fn)(void *user, hfsb_request *request, char *bytes,
                                size_t n);

/* Replies 101 with the fields Connection and Upgrade: protocol, and with those
   of hfsb_reply_field(). From then on the connection is a tunnel: fn gets all
   bytes that the peer sends, hfsb_reply_write() sends bytes as they are,
   hfsb_reply_end() closes the connection once they are sent.
   hfsb_request_pause() and _resume() hold the peer back. The end of what the
   peer sends is reported by hfsbi_request_on_eof(); without that it ends the
   tunnel. A tunnel has no deadline, except for bytes that the peer does not
   take, unless request->tunnel.patient is set. For a request whose body is
   complete. */
HFSBI_FN void hfsbi_reply_tunnel(hfsb_request *request, const char *protocol,
                                 hfsbi_tunnel_fn fn, void *user);

/* ---- websocket.c ---- */

typedef struct hfsbi_websocket hfsbi_websocket;

/* What the owner of a WebSocket does; constant. */
typedef struct hfsbi_websocket_fn {
    /* A piece of a message; `last`: its end. A piece of a text may end inside
       a character, the message does not. The owner may close it here. */
    void (*message)(void *user, hfsbi_websocket *socket, hfsb_str piece,
                    bool text, bool last);
    /* It is over, whoever ended it; always called exactly once. */
    void (*closed)(void *user, hfsbi_websocket *socket);
    /* All bytes were sent (NULL: nothing). */
    void (*drained)(void *user, hfsbi_websocket *socket);
    size_t    max_message; /* bytes (0: 16 MiB) */
    long long silence_ms;  /* after which a ping is sent; after twice as long
                              the peer counts as lost */
    bool      patient;     /* never: a peer may read nothing for any time. The
                              kernel notices a machine that has gone, since
                              it does not acknowledge the pings */
} hfsbi_websocket_fn;

/* Answers a request for a WebSocket. NULL after a refusal, which was sent;
   then nothing is called. */
HFSBI_FN hfsbi_websocket *hfsbi_websocket_open(hfsb_request      *request,
                                               const char *const *protocols,
                                               const hfsbi_websocket_fn *fn,
                                               void                     *user);
/* Sends a message; nothing once it is closing. HFSB_OK, or HFSB_NOMEM: the
   connection is lost. */
HFSBI_FN hfsb_status hfsbi_websocket_send(hfsbi_websocket *socket, bool text,
                                          hfsb_str message);
/* Bytes that the peer has not taken yet. */
HFSBI_FN size_t hfsbi_websocket_waiting(const hfsbi_websocket *socket);
/* Stops or continues reading. In a pause the peer is sent a ping every
   silence_ms, and need not answer. */
HFSBI_FN void hfsbi_websocket_pause(hfsbi_websocket *socket, bool paused);
/* Begins the end: `closed` follows when the peer has answered, or does not
   for a while. */
HFSBI_FN void hfsbi_websocket_close(hfsbi_websocket *socket, unsigned code,
                                    hfsb_str reason);

/* ---- wire.c: messages over a pair of descriptors, one on each line ---- */

typedef struct hfsbi_wire hfsbi_wire;

/* What the owner does; constant. */
typedef struct hfsbi_wire_fn {
    /* A line, without its end and the blanks before it; never an empty one.
       The owner may move it out. */
    void (*line)(void *user, hfsb_buf *line);
    /* A line is skipped: HFSB_LIMIT, it is too long; HFSB_NOMEM. */
    void (*refused)(void *user, const hfsb_err *err);
    /* No more lines come. lost: nobody reads what is sent; called also when
       only that becomes known later. */
    void (*ended)(void *user, bool lost);
    /* Some of the bytes were sent (NULL: nothing). */
    void (*sent)(void *user);
} hfsbi_wire_fn;

/* Serves a pair of descriptors (pipes, sockets, files, a terminal), which stay
   the caller's. max: bytes of a line. HFSB_OK; HFSB_NOMEM, HFSB_IO: nothing is
   called. */
HFSBI_FN hfsb_status hfsbi_wire_open(hfsb_server *server, int in, int out,
                                     size_t max, const hfsbi_wire_fn *fn,
                                     void *user, hfsbi_wire **made,
                                     hfsb_err *err);
/* NULL is allowed. Not from its functions. */
HFSBI_FN void hfsbi_wire_free(hfsbi_wire *wire);
/* Queues a message, whose memory may be taken over, and sends what fits; while
   bytes wait, only the loop sends, since only it calls `sent`. An empty message
   is an answer that had no memory: the peer would wait forever, so it counts as
   lost. */
HFSBI_FN void hfsbi_wire_send(hfsbi_wire *wire, hfsb_buf *message);
/* Bytes that the peer has not taken yet. Above 4 MiB nothing is read. */
HFSBI_FN size_t hfsbi_wire_waiting(const hfsbi_wire *wire);
/* Stops or continues reading. */
HFSBI_FN void hfsbi_wire_pause(hfsbi_wire *wire, bool paused);
/* Ends reading for good; what was queued is still sent. */
HFSBI_FN void hfsbi_wire_shut(hfsbi_wire *wire);
/* Ends sending, too. */
HFSBI_FN void hfsbi_wire_end(hfsbi_wire *wire);
/* True when nobody reads what is sent. */
HFSBI_FN bool hfsbi_wire_is_lost(const hfsbi_wire *wire);

/* ---- relay.c: requests for another server on this machine ---- */

/* Where a request goes, and how. */
typedef struct hfsbi_relay_opts {
    unsigned port; /* of 127.0.0.1 */
    /* Returns a connected or connecting socket for the port that does not
       block, or -1 with errno; called again for a while after EAGAIN: the
       server's queue of connections is full. (NULL: a TCP socket) */
    int (*dial)(void *user, unsigned port);
    size_t prefix; /* bytes of the path that are not passed on */
    const char *const *hide; /* fields that are not passed on, in addition to
                                Authorization, which may hold a token;
                                NULL-terminated (NULL: none); constant */
    const char *const *drop; /* the same for fields of the reply */
    bool rebase; /* the inner server does not know the prefix: it is added to
                    redirects, and its cookies are kept apart */
    /* Called once at the end, whatever the reason (NULL: nothing). */
    void (*done)(void *user);
    void *user;
} hfsbi_relay_opts;

/* Adds a route that is relayed, for every method. Its path ends in "/" "**";
   the parts of a request's path are not decoded. begin must call
   hfsbi_relay_start(), or reply. */
HFSBI_FN hfsb_status hfsbi_relay_add(hfsb_server *server, hfsbi_face *face,
                                     const char *path, hfsb_route_fn begin,
                                     void *user, hfsb_err *err);
/* Passes a request on, and the reply back. 502 when nobody listens or the
   reply is invalid, 503 when the inner server accepts no connection for
   head_ms. It uses hfsb_request_set(), _on_gone(), on_eof and on_drained. Each
   request has a connection of its own to the inner server, so that the next
   one of the client is checked like the first. A request to change the
   protocol, such as one for a WebSocket, becomes a tunnel when the inner
   server agrees. Memory is bounded: each side waits for the other. */
HFSBI_FN void hfsbi_relay_start(hfsb_request           *request,
                                const hfsbi_relay_opts *opts);
/* Bytes of a path up to the end of its n-th part, counted from 1. */
HFSBI_FN size_t hfsbi_relay_prefix(hfsb_str path, size_t n);
/* A socket that does not block; -1 with errno. */
HFSBI_FN int hfsbi_relay_socket(int family);

/* ==== inside the server room ============================================== */

enum {
    HFSBI_BLOCK = 65536,       /* most bytes of one recv() */
    HFSBI_HEAD_ROOM = 512,     /* enough for the head of most replies */
    HFSBI_SMALL = 4096,        /* a body up to this is sent with its head */
    HFSBI_PARTS = 4,           /* "*" in a route's path */
    HFSBI_STRANGER = 65536,    /* most bytes of a body without a token */
    HFSBI_DISCARD = 65536,     /* longest refused body that is read and thrown
                                  away to keep the connection */
    HFSBI_LINGER_MS = 2000,    /* silence that ends lingering */
    HFSBI_FILE_TURN = 1 << 20, /* bytes of a file sent by one task */
    HFSBI_SHORT_MS = 2000      /* a stop waits this long for requests */
};

typedef struct hfsbi_route {
    struct hfsbi_route *next;
    hfsbi_face         *face; /* NULL: the server's own */
    hfsb_route          set;  /* its texts follow the struct */
    hfsb_str            method, path, accept;
} hfsbi_route;

typedef struct hfsbi_listener {
    hfsbi_io               io;
    struct hfsbi_listener *next;
    hfsb_server           *server;
    hfsbi_face            *face; /* the only one shown; NULL: all that are not
                                    alone, and the server's own */
    bool                   loopback, local; /* local: a Unix socket */
    bool                   made; /* close removes the socket's file, if it
                                    is still this one: */
    unsigned long long     device, inode;
    char                   address[64]; /* bound, numeric; "" when local */
    hfsb_buf               name;        /* host as given, or the path */
} hfsbi_listener;

/* ---- a connection; its states are drawn in conn.c ---- */

typedef enum hfsbi_conn_state {
    HFSBI_CONN_IDLE,    /* between requests */
    HFSBI_CONN_HEAD,    /* a part of a head has arrived */
    HFSBI_CONN_BODY,    /* the body is arriving */
    HFSBI_CONN_PAUSED,  /* the handler does not want more of the body yet */
    HFSBI_CONN_WORK,    /* the request is complete, its reply is not */
    HFSBI_CONN_TUNNEL,  /* another protocol: bytes go to and from a handler */
    HFSBI_CONN_REPLY,   /* the reply is complete, its last bytes go out */
    HFSBI_CONN_DISCARD, /* answered; the rest of the body is thrown away */
    HFSBI_CONN_LINGER,  /* answered and shut down; input is thrown away */
    HFSBI_CONN_BROKEN,  /* to be closed when it is settled */
    HFSBI_CONN_CLOSED   /* out of the loop; freed once its work is done */
} hfsbi_conn_state;

typedef enum hfsbi_input {
    HFSBI_INPUT_OPEN,
    HFSBI_INPUT_SHUT, /* the loop reported the peer's end of file */
    HFSBI_INPUT_ENDED /* everything up to that end has been read */
} hfsbi_input;

typedef struct hfsbi_peer {
    unsigned char address[16];
    unsigned char family; /* 4, 6, or 0: a Unix socket */
} hfsbi_peer;

typedef struct hfsbi_unread {
    char  *ptr; /* wiped before it is freed: heads hold tokens */
    size_t len, cap;
} hfsbi_unread;

typedef struct hfsbi_conn {
    hfsbi_io            io;
    hfsbi_timer         timer; /* may fire before the deadline */
    hfsb_server        *server;
    hfsbi_listener     *listener;
    unsigned long long  serial;       /* unique in the server */
    struct hfsbi_conn  *next, *prev;  /* in server->conns */
    struct hfsbi_conn  *touched_next; /* in server->touched */
    struct hfsbi_conn **touched_at;   /* NULL: not in that list */
    hfsbi_conn_state    state;
    long long           since; /* when the time for this state began */
    long long           moved; /* when bytes last came or went */
    int           queued;  /* bytes in the kernel when it last took no more */
    hfsb_request *request; /* being read or answered, or NULL */
    hfsb_http_parser parser;
    hfsbi_unread     in;     /* received, not parsed yet */
    size_t           peeked; /* how many of the bytes being parsed, at their
                                end, are still in the kernel as well */
    size_t           held;   /* bytes of half a head in the kernel */
    hfsbi_input      input;
    bool             close_after; /* this reply is the last one */
    hfsbi_peer       peer;
} hfsbi_conn;

/* ---- a request ---- */

typedef enum hfsbi_reply_state {
    HFSBI_REPLY_NONE,
    HFSBI_REPLY_HELD,   /* made in a thread; the loop is to send it */
    HFSBI_REPLY_PIECES, /* begun, not ended */
    HFSBI_REPLY_FILE,   /* a file is being sent */
    HFSBI_REPLY_ENDED   /* all of it is in the buffers, or sent */
} hfsbi_reply_state;

typedef struct hfsbi_reply_out {
    hfsbi_reply_state  state;
    int                status; /* of HTTP; 0: none yet */
    hfsb_buf           fields; /* lines that the handler added to the head */
    hfsb_buf           out, out_body; /* to be sent, in this order */
    size_t             out_at;        /* bytes of both that are sent */
    bool               full; /* the kernel: the loop sends when it has room */
    unsigned long long sent;          /* bytes of the body */
    bool               sized;         /* of PIECES: `length` was announced */
    unsigned long long length;
} hfsbi_reply_out;

typedef struct hfsbi_file_out {
    int                fd; /* -1: none */
    unsigned long long at, left;
    int                error; /* errno of the last task, 0: none */
    size_t             turn;  /* bytes that the last task sent */
} hfsbi_file_out;

typedef struct hfsbi_body_in {
    hfsb_buf           bytes;
    size_t             counted;  /* in the server's statistics */
    unsigned long long received; /* kept or not */
    long long          paused_at;
    bool               complete;
} hfsbi_body_in;

typedef struct hfsbi_pool_work {
    hfsbi_task task;
    void (*run)(void *user);
    void (*done)(void *user, hfsb_request *request);
    void *user;
    bool  active;
} hfsbi_pool_work;

typedef struct hfsbi_callback {
    hfsb_route_fn fn;
    void         *user;
} hfsbi_callback;

/* Receives the bytes of a connection that has changed its protocol. */
typedef struct hfsbi_tunnel {
    hfsbi_tunnel_fn fn; /* NULL: it has not */
    void           *user;
    bool            paused;
    bool            patient; /* no deadline for bytes that the peer does not
                                take */
} hfsbi_tunnel;

struct hfsb_request {
    hfsbi_conn        *conn;
    const hfsbi_route *route; /* NULL: none fits */
    hfsb_http_head     head;  /* its fields and bytes follow the struct */
    size_t             size;  /* of the whole allocation */
    hfsb_str           parts[HFSBI_PARTS];
    hfsb_buf           parts_text;
    bool               trusted; /* the token was accepted */
    long long          began;
    hfsb_buf           why; /* it was refused, for the log */
    void              *own;
    hfsbi_callback     gone, eof, drained;
    hfsbi_body_in      body;
    hfsbi_reply_out    reply;
    hfsbi_file_out     file;
    hfsbi_pool_work    work;
    hfsbi_tunnel       tunnel;
};

/* ---- the server ---- */

typedef struct hfsbi_limits {
    hfsb_http_limits http;
    size_t           max_body, max_bodies, max_connections, min_rate;
    size_t           max_per_peer;
    bool             local_is_free; /* max_per_peer ignores loopback */
    long long        head_ms, body_ms, idle_ms, stop_ms, drain_ms;
} hfsbi_limits;

typedef struct hfsbi_access {
    unsigned char token[HFSB_SHA256_SIZE]; /* its digest */
    bool          has_token, no_auth, open_to_all;
    bool          late; /* the token may be set later */
    bool (*authorize)(void *user, const hfsb_request *request);
    hfsb_buf      hosts; /* allowed names, each followed by a NUL */
} hfsbi_access;

typedef struct hfsbi_accept {
    hfsbi_listener *listeners;
    bool            on;
    int             spare; /* a descriptor to give up when none is left */
    hfsbi_timer     timer; /* ends a rest */
} hfsbi_accept;

typedef enum hfsbi_stop_phase {
    HFSBI_STOP_NO,
    HFSBI_STOP_DRAIN,  /* work continues, but the server is not ready */
    HFSBI_STOP_FINISH, /* requests may finish, nothing new begins */
    HFSBI_STOP_END,    /* the parts end their work; its replies go out */
    HFSBI_STOP_DONE
} hfsbi_stop_phase;

typedef struct hfsbi_idle {
    long long   max_ms; /* 0: the server does not stop by itself */
    long long   used;   /* until when it was in use, on hfsb_clock_ms() */
    hfsbi_timer timer;
} hfsbi_idle;

typedef struct hfsbi_stop {
    hfsbi_stop_phase phase;
    int              pipe[2]; /* one byte per call of hfsb_server_stop() */
    hfsbi_io         io;
    size_t           calls;
    hfsbi_timer      timer; /* ends the phase */
    long long        until;
    hfsbi_idle       idle; /* what stops a server that nobody uses */
} hfsbi_stop;

struct hfsb_server {
    hfsb_alloc        alloc;
    hfsbi_loop       *loop;
    hfsbi_tools_group group;
    hfsbi_limits      limits;
    hfsbi_access      access;
    hfsbi_accept      accept;
    hfsbi_stop        stop;
    void (*on_event)(void *user, const hfsb_server_event *event);
    void              *user;
    hfsb_http_field   *fields;  /* limits.http.max_fields of them */
    char              *block;   /* HFSBI_BLOCK bytes for recv() */
    hfsbi_conn        *conns;   /* newest first */
    hfsbi_conn        *touched; /* connections to settle */
    hfsbi_route       *routes;
    hfsbi_server_part *parts;
    hfsb_timer        *timers;
    hfsbi_server_stats stats;
    char               instance[17];
    hfsb_buf           common;   /* fields of every reply */
    char               date[48]; /* the field Date, for second date_at */
    long long          date_at;
};

/* ---- idle.c ---- */

/* A request ends. */
HFSBI_FN void hfsbi_idle_end_request(const hfsb_request *request);

/* ---- timer.c ---- */

/* Closes the timers that are left. */
HFSBI_FN void hfsbi_timers_close(hfsb_server *server);

/* ---- server.c ---- */

/* Turns accepting on or off for all listeners. */
HFSBI_FN void hfsbi_server_accept(hfsb_server *server, bool on);

/* ---- conn.c ---- */

/* Reads the address of a peer. */
HFSBI_FN hfsbi_peer hfsbi_peer_of(const struct sockaddr *address);
/* Adds a connection that listener accepted; takes over fd. */
HFSBI_FN void hfsbi_conn_add(hfsbi_listener *listener, int fd,
                             const hfsbi_peer *peer);
/* Puts the connection into the list of those to settle. */
HFSBI_FN void hfsbi_conn_touch(hfsbi_conn *conn);
/* Acts on what happened to the touched connections: continues with the next
   request, closes, or sets what to wait for. Not from a handler. */
HFSBI_FN void hfsbi_conns_settle(hfsb_server *server);
/* Closes the connection now; not from a handler. */
HFSBI_FN void hfsbi_conn_close(hfsbi_conn *conn);
/* Frees a closed connection. */
HFSBI_FN void hfsbi_conn_free(hfsbi_conn *conn);

/* The connection cannot go on: it closes when it is settled. */
HFSBI_FN void hfsbi_conn_break(hfsbi_conn *conn);
/* BODY to PAUSED and back; in any other state nothing. resume returns whether
   the connection was paused. */
HFSBI_FN void hfsbi_conn_pause(hfsbi_conn *conn);
HFSBI_FN bool hfsbi_conn_resume(hfsbi_conn *conn);
/* Makes the kernel notice after two minutes that a silent peer is gone. */
HFSBI_FN void hfsbi_keepalive(int fd);
/* The request is complete: from WORK to TUNNEL. */
HFSBI_FN void hfsbi_conn_switch(hfsbi_conn *conn);
/* The reply is complete: to REPLY. */
HFSBI_FN void hfsbi_conn_replied(hfsbi_conn *conn);

/* Remembers how much the kernel holds, since it takes no more now. */
HFSBI_FN void hfsbi_conn_note_full(hfsbi_conn *conn);
/* True if the rest of a refused body is short enough to read and discard. */
HFSBI_FN bool hfsbi_conn_may_discard(const hfsbi_conn *conn);
/* True if the body is discarded, or comes without the token that the server
   has: such a body gets little time. */
HFSBI_FN bool hfsbi_conn_is_unwanted(const hfsbi_conn *conn);
/* Fills in the peer and passes the event to the log. */
HFSBI_FN void hfsbi_conn_log(const hfsbi_conn *conn, hfsb_server_event *event);

/* ---- request.c ---- */

/* Makes the request for a head whose bytes are raw; NULL without memory. */
HFSBI_FN hfsb_request *
hfsbi_request_new(hfsbi_conn *conn, const hfsb_http_head *head, hfsb_str raw);
/* Logs the request and frees it. */
HFSBI_FN void hfsbi_request_free(hfsb_request *request);
/* The connection ends before the reply: calls the handler's `gone`. */
HFSBI_FN void hfsbi_request_call_gone(hfsb_request *request);
/* All checks before the body is read; replies when one fails. */
HFSBI_FN void hfsbi_request_check(hfsb_request *request);
/* Takes a piece of the body. */
HFSBI_FN void hfsbi_request_add_body(hfsb_request *request, hfsb_str piece);
/* The body is complete: calls the handler unless there is a reply. */
HFSBI_FN void hfsbi_request_handle(hfsb_request *request);
/* True while the handler of a threaded route is in its thread. */
HFSBI_FN bool hfsbi_request_in_thread(const hfsb_request *request);

/* ---- reply.c ---- */

/* Sends as much as the kernel takes. While it is full nothing is sent, since
   only the loop calls `drained`. */
HFSBI_FN void hfsbi_reply_flush(hfsb_request *request);
/* The kernel takes bytes again: sends, and calls `drained`. */
HFSBI_FN void hfsbi_reply_writable(hfsb_request *request);
/* Bytes in the buffers that are not sent yet. */
HFSBI_FN size_t hfsbi_reply_left(const hfsb_request *request);
/* Sends the reply that a handler made in a thread. */
HFSBI_FN void hfsbi_reply_send_held(hfsb_request *request);

/* ---- relay_head.c ---- */

/* Appends the head for the inner server. HFSB_OK or HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_relay_put_head(const hfsb_http_head   *head,
                                          const hfsbi_relay_opts *opts,
                                          hfsb_buf               *out);
/* True if a head asks for another protocol. */
HFSBI_FN bool hfsbi_relay_is_upgrade(const hfsb_http_head *head);
/* Adds the fields of the inner server's reply to ours. HFSB_OK or
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_relay_copy_fields(hfsb_request           *request,
                                             const hfsb_http_head   *head,
                                             const hfsbi_relay_opts *opts);
