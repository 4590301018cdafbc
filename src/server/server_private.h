#pragma once

#include "../os/os_private.h"
#include "server.h"

/* The inside of a server, for what is built on it: the sandbox, and later
   others. Private. */

typedef struct hfsbi_server_stats {
    unsigned long long accepted;    /* connections ever */
    unsigned long long refused;     /* ... that were closed at once */
    unsigned long long requests;    /* answered, */
    unsigned long long by_class[6]; /* by the first digit of their status */
    unsigned long long bytes_in, bytes_out; /* of bodies */
    size_t             open;                /* connections now */
    size_t             bodies;              /* bytes of bodies in memory now */
} hfsbi_server_stats;

HFSBI_FN hfsbi_loop               *hfsbi_server_loop(hfsb_server *server);
HFSBI_FN const hfsb_alloc         *hfsbi_server_alloc(hfsb_server *server);
HFSBI_FN const hfsbi_server_stats *hfsbi_server_stats_of(hfsb_server *server);
/* Random letters and digits, made when it was opened. */
HFSBI_FN const char *hfsbi_server_instance(const hfsb_server *server);

/* Something that lives with the server, part of its owner.
   A stop goes: no new connections, idle ones closed, stop() of every part ->
   up to 2 s for requests under way to end by themselves -> end() of every part
   -> until no request is left and no part is busy, or the time is over -> the
   loop ends. close() of the server calls end() of every part, waits for what
   is in threads, and calls free(), the newest first, when no connection is
   left and before the loop is closed. Any of the four may be NULL. */
typedef struct hfsbi_server_part {
    struct hfsbi_server_part *next; /* private */
    void (*end)(struct hfsbi_server_part *part);
    bool (*busy)(struct hfsbi_server_part *part);
    void (*free)(struct hfsbi_server_part *part);
    void (*stop)(struct hfsbi_server_part *part);
    bool place; /* it has clients of its own: a server without listeners may
                   run */
} hfsbi_server_part;

HFSBI_FN void hfsbi_server_part_add(hfsb_server       *server,
                                    hfsbi_server_part *part);
/* True from the first hfsb_server_stop() on. */
HFSBI_FN bool hfsbi_server_stopping(const hfsb_server *server);
/* True from the second on. */
HFSBI_FN bool hfsbi_server_hurries(const hfsb_server *server);

/* The request came with the token, or none is asked for. */
HFSBI_FN bool hfsbi_request_trusted(const hfsb_request *request);

/* Its Content-Type is that of JSON. */
HFSBI_FN bool hfsbi_request_is_json(const hfsb_request *request);

/* Moves the body out of the request into *out. */
HFSBI_FN void hfsbi_request_take_body(hfsb_request *request, hfsb_buf *out);

/* fn is called, once, when the peer has ended its side while the reply is
   still to come: it may be gone, or wait for the reply all the same. */
HFSBI_FN void hfsbi_request_on_eof(hfsb_request *request, hfsb_route_fn fn,
                                   void *user);

/* hfsb_reply() that takes the memory of *body over, which is empty then. */
HFSBI_FN void hfsbi_reply_take(hfsb_request *request, int status,
                               const char *type, hfsb_buf *body);

/* {"detail":...,"error":...} from ready JSON for detail and a sentence. */
HFSBI_FN void hfsbi_reply_detail(hfsb_request *request, int status,
                                 hfsb_str detail_json, hfsb_str error);

/* The objects of the HTTP layer: server, listener, connection, request.
   Private to its files. All of it belongs to the thread that serves. */

enum {
    HFSBI_BLOCK = 65536,       /* what one recv() takes at most */
    HFSBI_HEAD_ROOM = 512,     /* most heads have less */
    HFSBI_SMALL = 4096,        /* a body that is sent with its head */
    HFSBI_PARTS = 4,           /* "*" in a route's path */
    HFSBI_STRANGER = 65536,    /* bytes of a body without a token */
    HFSBI_DISCARD = 65536,     /* bytes of a refused body that are read to
                                  keep the connection */
    HFSBI_LINGER_MS = 2000,    /* how long a refused peer is listened to */
    HFSBI_FILE_TURN = 1 << 20, /* bytes of a file that one task sends */
    HFSBI_SHORT_MS = 2000      /* a stop waits so long for work to end */
};

/* ---- routes ---- */

typedef struct hfsbi_route {
    struct hfsbi_route *next;
    hfsb_route          set; /* its texts are owned */
    hfsb_str            method, path;
} hfsbi_route;

/* ---- listeners ---- */

typedef struct hfsbi_listener {
    hfsbi_io               io;
    struct hfsbi_listener *next;
    hfsb_server           *server;
    bool                   loopback, local; /* local: a Unix socket */
    bool                   made;        /* the file of that socket is ours */
    char                   address[64]; /* bound, numeric; "" when local */
    hfsb_buf               name;        /* host as it was given, or the path */
} hfsbi_listener;

/* ---- connections ---- */

typedef struct hfsbi_conn {
    hfsbi_io           io;
    hfsbi_timer        timer;  /* may be earlier than `until` */
    long long          until;  /* when to act; -1: never */
    long long          moved;  /* when bytes last came or went */
    int                queued; /* bytes in the kernel when it took no more */
    hfsb_server       *server;
    hfsbi_listener    *listener;
    struct hfsbi_conn *next, *prev;
    hfsb_http_parser   parser;
    hfsb_request      *request; /* being read or answered, or NULL */
    char              *in;      /* bytes that were not looked at yet */
    size_t             in_len, in_cap;
    size_t             peeked; /* of those being looked at: the last so many
                                  are still in the kernel, too */
    long long          linger_until; /* the latest */
    unsigned           tasks;        /* in threads */
    unsigned char      address[16];  /* of the peer */
    unsigned char      family;       /* 4, 6 or 0 */
    bool               held;         /* its own functions are at work on it */
    bool               poked;        /* to be looked at in the next turn */
    bool               broken;       /* to be closed */
    bool               dead;       /* closed, freed once its tasks are done */
    bool               eof;        /* the peer ended its side, */
    bool               ended;      /* ... and we have read up to there */
    bool               closing;    /* after this reply */
    bool               lingering;  /* refused: read and throw away */
    bool               head_timed; /* `until` is that of a head */
} hfsbi_conn;

/* ---- requests ---- */

typedef enum hfsbi_reply_state {
    HFSBI_REPLY_NONE,
    HFSBI_REPLY_PIECES, /* begun, not ended */
    HFSBI_REPLY_FILE,   /* a file is being sent */
    HFSBI_REPLY_ENDED   /* all of it is in `out`, or sent */
} hfsbi_reply_state;

struct hfsb_request {
    hfsbi_conn        *conn;
    const hfsbi_route *route;
    hfsb_http_head     head; /* its bytes and fields follow the struct */
    size_t             size; /* of the whole allocation */
    hfsb_str           parts[HFSBI_PARTS];
    hfsb_buf           parts_text;
    hfsb_buf           body;
    size_t             counted;  /* bytes of it in the server's statistics */
    unsigned long long body_len; /* that came, kept or not */
    unsigned long long sent;     /* of the reply's body */
    long long          began;
    long long          body_at; /* when the time for the body began; moved on
                                   by pauses, set anew to discard the rest */
    long long          paused_at;
    void              *own;
    hfsb_route_fn      gone, eof, drained;
    void              *gone_user, *eof_user, *drained_user;
    hfsbi_task         task;
    hfsb_buf           fields;        /* lines for the reply's head */
    hfsb_buf           why;           /* it was refused, for the log */
    hfsb_buf           out, out_body; /* to be sent, in this order */
    size_t             out_at;        /* bytes of both that are sent */
    hfsbi_reply_state  reply;
    int                status;
    int                file;
    unsigned long long file_at, file_left;
    int                file_error; /* errno of a task, 0: none */
    size_t             file_turn;  /* bytes that the last task sent */
    bool               trusted;
    bool               body_done, paused, discard;
    bool               called;    /* a handler knows of it */
    bool               in_thread; /* its handler is in a thread now */
    bool               chunked;
    bool               replied; /* in a thread */
};

/* ---- the server ---- */

struct hfsb_server {
    hfsb_alloc       alloc;
    hfsbi_loop      *loop;
    hfsb_http_limits limits;
    hfsb_http_field *fields;                  /* limits.max_fields of them */
    char            *block;                   /* HFSBI_BLOCK */
    unsigned char    token[HFSB_SHA256_SIZE]; /* digest */
    bool             has_token, no_auth, open_to_all, any_host, some_hosts;
    hfsb_buf         hosts; /* allowed names, a NUL behind each */
    size_t           max_body, max_bodies, max_connections, min_rate;
    long long        head_ms, body_ms, idle_ms, stop_ms;
    void (*on_event)(void *user, const hfsb_server_event *event);
    void              *user;
    hfsbi_listener    *listeners;
    hfsbi_conn        *conns; /* newest first */
    hfsbi_route       *routes;
    hfsbi_server_part *parts;
    hfsbi_server_stats stats;
    char               instance[17];
    hfsb_buf           common; /* fields of every reply */
    char               date[48];
    long long          date_at; /* second it is for */
    int                spare;   /* a descriptor to give up when none is left */
    bool               accepting;
    hfsbi_timer        accept_timer;
    int                stop_pipe[2]; /* a byte for each call of stop */
    hfsbi_io           stop_io;
    size_t             stop_asked;
    int                phase; /* of a stop; 0: serving */
    hfsbi_timer        stop_timer;
    long long          stop_until;
};

/* ---- server_guard.c: who may ask ---- */

/* The same for an Origin ("" : there is none). */
typedef enum hfsbi_guard {
    HFSBI_GUARD_OK,
    HFSBI_GUARD_MISSING,
    HFSBI_GUARD_WRONG,
    HFSBI_GUARD_NONE /* the server has no token to compare with */
} hfsbi_guard;
/* Looks for the token in a head and wipes it there. */
HFSBI_FN hfsbi_guard hfsbi_guard_token(const hfsb_server *server,
                                       hfsb_http_head    *head);

/* ---- server_listen.c ---- */

/* Accepts again where it had stopped, or stops. */
HFSBI_FN void hfsbi_server_accept(hfsb_server *server, bool on);

/* ---- server_conn.c ---- */

HFSBI_FN void hfsbi_conn_add(hfsbi_listener *listener, int fd,
                             const struct sockaddr *peer);
/* Looks at it in the next turn, or soon when it is at work anyhow: what a
   handler calls never ends a connection, or begins with the next request,
   under its hands. */
HFSBI_FN void hfsbi_conn_poke(hfsbi_conn *conn);
/* Ends it now; not from a handler. */
HFSBI_FN void hfsbi_conn_close(hfsbi_conn *conn);
/* A task of it is done; true when it was the last of a connection that is
   gone, which is freed then. */
HFSBI_FN bool hfsbi_conn_task_done(hfsbi_conn *conn);
/* The kernel takes no more bytes for the peer now. */
HFSBI_FN void hfsbi_conn_full(hfsbi_conn *conn);
/* A little of a body that no one wants is read, and the connection kept. */
HFSBI_FN bool hfsbi_conn_may_discard(const hfsbi_conn *conn);
/* Tells the log. */
HFSBI_FN void hfsbi_conn_log(const hfsbi_conn *conn, hfsb_server_event *event);

/* ---- server_request.c ---- */

/* Makes the request of a head whose bytes are `raw`; NULL without memory. */
HFSBI_FN hfsb_request *
hfsbi_request_new(hfsbi_conn *conn, const hfsb_http_head *head, hfsb_str raw);
HFSBI_FN void hfsbi_request_free(hfsb_request *request);
/* The peer, or the server, ends before the reply: tells the handler. */
HFSBI_FN void hfsbi_request_tell_gone(hfsb_request *request);
/* True when its body is thrown away, or comes without the token that the
   server asks for: such a body gets little time. */
HFSBI_FN bool hfsbi_request_is_unwanted(const hfsb_request *request);
/* All checks before the body is read; replies when one fails. */
HFSBI_FN void hfsbi_request_check(hfsb_request *request, hfsbi_guard token);
/* A piece of the body; its end. */
HFSBI_FN void hfsbi_request_piece(hfsb_request *request, hfsb_str piece);
HFSBI_FN void hfsbi_request_complete(hfsb_request *request);

/* ---- server_reply.c ---- */

/* Sends what can be sent. */
HFSBI_FN void hfsbi_reply_flush(hfsb_request *request);
/* The peer takes bytes again. */
HFSBI_FN void hfsbi_reply_writable(hfsb_request *request);
/* Bytes to be sent, a file's left aside. */
HFSBI_FN size_t hfsbi_reply_left(const hfsb_request *request);
/* A reply that a thread made is sent. */
HFSBI_FN void hfsbi_reply_from_thread(hfsb_request *request);
