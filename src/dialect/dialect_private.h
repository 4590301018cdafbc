#pragma once

#include "../api/api_private.h"
#include "../server/server_private.h"
#include "../tools/tools_private.h"
#include "dialect.h"

/* dialect_private.h - what the dialects share.

     dialect.c   opens a dialect: its tools, its face, its port; helpers
     host.c      many sandboxes in one server
     agent_sandbox.c, agent_sandbox_exec.c   Kubernetes' agent-sandbox
     codex.c     the exec-server of Codex: channels, messages
     codex_session.c, codex_params.c, codex_process.c, codex_files.c   its
                 sessions, parameters, processes and files
     codex_bridge.c, codex_calls.c   the same in a sandbox: passes messages on
     e2b.c       E2B's envd: sandboxes, tokens, errors
     e2b_rest.c, e2b_transfer.c   its REST calls; those of files
     e2b_process.c, e2b_input.c, e2b_files.c, e2b_watch.c   its services
     e2b_control.c                                          its control plane

   Every other file is a dialect: a table of routes, and a function for each
   that turns a request into a call and a result into that protocol's reply.
   That of huggingface_hub is in hf.c, hf_exec.c (commands), hf_files.c, and
   hf_host.c and hf_create.c (host mode).
   All of it runs in the thread of the server, except the functions given to
   hfsbi_request_work(). */

typedef struct hfsbi_dialect_kind hfsbi_dialect_kind;

/* A dialect of a server; the first member of its own struct. */
typedef struct hfsbi_dialect {
    hfsbi_server_part         part; /* first: its functions cast it back */
    hfsbi_face                face;
    const hfsbi_dialect_kind *kind;
    hfsb_server              *server;
    hfsbi_loop               *loop;
    hfsb_tools               *tools; /* owned; `who` is the dialect's name */
    hfsb_alloc                alloc;
    unsigned char             token[HFSB_SHA256_SIZE]; /* digest of its own */
    bool                      has_token; /* else that of the server applies */
} hfsbi_dialect;

struct hfsbi_dialect_kind {
    const char *name;
    size_t      size; /* of its struct, in bytes; all zero except the first
                         member when open is called */
    /* Sets the functions of the face and adds the routes. */
    hfsb_status (*open)(hfsbi_dialect *d, const hfsb_dialect_opts *opts,
                        hfsb_err *err);
    /* Frees what it owns; called even if open has failed. (NULL: nothing) */
    void (*close)(hfsbi_dialect *d);
};

/* ---- dialect.c ---- */

/* A row of a table of routes, which ends with method NULL. */
typedef struct hfsbi_dialect_route {
    const char   *method, *path; /* as in hfsb_route */
    hfsb_route_fn fn;            /* its user is the dialect */
    bool          open;          /* needs no token */
    hfsb_route_fn begin;         /* for bodies in pieces, as in hfsb_route */
    void (*body)(void *user, hfsb_request *request, hfsb_str piece);
} hfsbi_dialect_route;

/* Adds the routes of a table. */
HFSBI_FN hfsb_status hfsbi_dialect_add(hfsbi_dialect             *d,
                                       const hfsbi_dialect_route *routes,
                                       hfsb_err                  *err);
/* The value of a setting, a view of it; "" without it. */
HFSBI_FN hfsb_str hfsbi_dialect_setting(const hfsb_dialect_opts *opts,
                                        const char              *name);
/* The dialect that a face belongs to. */
HFSBI_FN hfsbi_dialect *hfsbi_dialect_of(hfsbi_face *face);
/* What keeps web pages out: a token of the dialect or the server; or, where
   the server needs none, what keeps them from the server. */
HFSBI_FN hfsbi_face_guard hfsbi_dialect_guard(const hfsbi_dialect *d);
/* For a face: true if the field has the token of the dialect, or without one
   of its own that of the server, after a scheme as in hfsbi_request_proves();
   or if the server needs none. */
HFSBI_FN bool hfsbi_dialect_trusts(hfsbi_dialect *d, hfsb_request *request,
                                   const char *field, const char *scheme);
/* The digest of a token. */
HFSBI_FN void hfsbi_dialect_digest(hfsb_str      token,
                                   unsigned char out[HFSB_SHA256_SIZE]);
/* Parses the body of a request as a JSON object. False after an error reply
   (400) in the form of the face. The doc refers to the body. */
HFSBI_FN bool hfsbi_dialect_parse(hfsb_request *request, hfsb_json_doc *doc);
/* Replies with a document and frees the builder. Without memory 503. */
HFSBI_FN void hfsbi_dialect_reply(hfsb_request *request, int status,
                                  hfsbi_build *b);

/* ---- host.c: many sandboxes in one server ---- */

typedef struct hfsbi_host  hfsbi_host;
typedef struct hfsbi_guest hfsbi_guest;
typedef struct hfsbi_order hfsbi_order;

enum {
    HFSBI_GUEST_ID = 20,   /* characters of an id at most */
    HFSBI_GUEST_TOKEN = 64 /* of a token that the host makes */
};

/* The transitions are drawn in host.c. */
typedef enum hfsbi_guest_state {
    HFSBI_GUEST_MAKING,  /* its directory and tools are being made */
    HFSBI_GUEST_LIVE,    /* can be found */
    HFSBI_GUEST_ENDING,  /* its commands were killed; waits for its users */
    HFSBI_GUEST_REMOVING /* its tools are closed; a thread clears the rest */
} hfsbi_guest_state;

/* A sandbox of a host, or the server's own, which is LIVE and has no host; the
   first member of the dialect's struct. */
struct hfsbi_guest {
    hfsbi_guest       *next; /* of the host, oldest first */
    hfsbi_guest       *peer; /* of the same order */
    hfsbi_host        *host; /* NULL: the server's own */
    hfsbi_guest_state  state;
    char               id[HFSBI_GUEST_ID + 1]; /* "": the server's own */
    hfsb_tools        *tools;
    hfsb_root         *root;  /* owned; NULL: the tools own theirs */
    hfsb_buf           dir;   /* absolute */
    hfsb_buf           token; /* in plain: clients recover it, and signatures
                                 need it; empty: that of the dialect applies */
    unsigned char      digest[HFSB_SHA256_SIZE]; /* of it */
    unsigned           uid;     /* its own; 0: that of the server */
    bool               stuck;   /* some of its processes did not end */
    size_t             users;   /* those that hold it */
    long long          used;    /* hfsb_clock_ms() of the last of them */
    long long          idle_ms; /* ends it so long after `used` (0: never) */
    long long          until;   /* ends it then (0: never) */
    long long          since;   /* it was ordered, ms since 1970 */
    unsigned long long serial;  /* of all that have lived, from 1 */
    hfsbi_timer        timer;
    hfsbi_task         task; /* its removal */
};

/* What a dialect does with its guests, all in the loop. NULL: nothing. */
typedef struct hfsbi_host_kind {
    size_t             size; /* of its struct of a guest, in bytes */
    const char        *id_prefix;
    size_t             id_digits, token_digits; /* hexadecimal */
    const char *const *folders; /* in each directory; NULL-terminated */
    /* Opens guest->tools; the directory exists. */
    hfsb_status (*open)(hfsbi_order *order, hfsbi_guest *guest, hfsb_err *err);
    void (*end)(hfsbi_guest *guest);   /* ends streams that are not commands */
    void (*close)(hfsbi_guest *guest); /* frees what needs the tools */
    void (*free)(hfsbi_guest *guest);  /* frees the rest of its members; the
                                          guest is no longer in the list */
} hfsbi_host_kind;

struct hfsbi_host {
    const hfsbi_host_kind *kind;
    const hfsb_root
                *root;   /* directories are made and removed beneath it ... */
    hfsbi_rights rights; /* ... with these rights */
    size_t       max;    /* guests at a time */
    /* set by hfsbi_host_open() */
    hfsbi_dialect     *dialect;
    hfsb_buf           dir;  /* that of all guests, absolute */
    hfsbi_uids         uids; /* of the guests */
    hfsbi_guest       *guests;
    size_t             count; /* of them, in any state */
    unsigned long long made;  /* how many have lived */
};

/* A request for new guests; the first member of the dialect's struct. */
struct hfsbi_order {
    hfsbi_host  *host;
    hfsbi_guest *first; /* the others are its peers */
    hfsb_status  st;    /* HFSB_OK: they are LIVE. Else they are being removed;
                           HFSB_CANCELLED: the client is gone */
    hfsb_err     err;
    /* Replies, and frees the order. Called once, in the loop. */
    void (*done)(hfsbi_order *order, hfsb_request *request);
};

/* Opens a host whose first members are set. dir: that of all guests, made for
   the first one; uids: the setting of hfsbi_uids_open(). Returns as that, or
   HFSB_NOMEM; close it in any case. */
HFSBI_FN hfsb_status hfsbi_host_open(hfsbi_host *host, hfsbi_dialect *dialect,
                                     hfsb_str dir, hfsb_str uids,
                                     hfsb_err *err);
/* For the part of the server: asks all commands to end; true while one of them
   runs or a thread works; removes all guests. */
HFSBI_FN void hfsbi_host_end(hfsbi_host *host);
HFSBI_FN bool hfsbi_host_busy(const hfsbi_host *host);
HFSBI_FN void hfsbi_host_close(hfsbi_host *host);
/* The guest with that id, which is LIVE; NULL: none. */
HFSBI_FN hfsbi_guest *hfsbi_host_find(const hfsbi_host *host, hfsb_str id);
/* The number of guests that are LIVE, or being made. */
HFSBI_FN size_t hfsbi_host_live(const hfsbi_host *host);

/* Adds a guest to an order, with an id, a token and the name of its directory;
   the caller has checked that host->count is less than host->max. NULL without
   memory or random numbers. */
HFSBI_FN hfsbi_guest *hfsbi_order_add(hfsbi_order *order);
/* Makes the guests of an order; calls order->done later. */
HFSBI_FN void hfsbi_order_start(hfsbi_order *order, hfsb_request *request);
/* Frees the guests of an order that was not started. */
HFSBI_FN void hfsbi_order_drop(hfsbi_order *order);

/* A guest that is held is not freed. Also for the server's own. */
HFSBI_FN void hfsbi_guest_hold(hfsbi_guest *guest);
HFSBI_FN void hfsbi_guest_release(hfsbi_guest *guest);
/* Sets the token; false without memory. Also for the server's own. */
HFSBI_FN bool hfsbi_guest_set_token(hfsbi_guest *guest, hfsb_str token);
/* Makes a guest that is LIVE end after that many ms; replaces earlier
   settings. */
HFSBI_FN void hfsbi_guest_set_timeout(hfsbi_guest *guest, long long ms);
/* Ends a guest and its processes at once; it is freed later. */
HFSBI_FN void hfsbi_guest_end(hfsbi_guest *guest);

/* ---- agent_sandbox.c, agent_sandbox_exec.c ---- */

typedef struct hfsbi_kube {
    hfsbi_dialect    d;    /* first */
    hfsb_root       *own;  /* NULL: the tools have a root */
    const hfsb_root *root; /* all paths are beneath it, commands start there */
    double           timeout; /* of commands, seconds */
    long long        began;   /* hfsb_clock_ms() */
} hfsbi_kube;

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_agent_sandbox(void);
/* Handles POST /execute. */
HFSBI_FN void hfsbi_kube_execute(void *user, hfsb_request *request);
/* Handles GET /v1/metadata. */
HFSBI_FN void hfsbi_kube_metadata(void *user, hfsb_request *request);
/* Appends the words of a command line, each with a NUL. Returns why it has
   none; NULL: it has. A failure to append is in out->status. */
HFSBI_FN const char *hfsbi_kube_split(hfsb_str command, hfsb_buf *out);

/* ==== codex.c: the exec-server of Codex =================================== */

typedef struct hfsbi_codex         hfsbi_codex;
typedef struct hfsbi_codex_channel hfsbi_codex_channel;
typedef struct hfsbi_codex_session hfsbi_codex_session;
typedef struct hfsbi_codex_process hfsbi_codex_process;
typedef struct hfsbi_codex_handle  hfsbi_codex_handle;
typedef struct hfsbi_codex_call    hfsbi_codex_call;

/* Error codes of JSON-RPC and of Codex. */
enum {
    HFSBI_CODEX_PARSE = -32700,
    HFSBI_CODEX_INVALID = -32600,
    HFSBI_CODEX_NO_METHOD = -32601,
    HFSBI_CODEX_PARAMS = -32602,
    HFSBI_CODEX_INTERNAL = -32603,
    HFSBI_CODEX_NOT_FOUND = -32004,
    HFSBI_CODEX_ATTACHED = -32010 /* the session has another connection */
};

enum {
    HFSBI_CODEX_MESSAGE = 64 << 20, /* bytes of one message, */
    HFSBI_CODEX_VALUES = 262144,    /* and its values */
    HFSBI_CODEX_UNSENT = 256 << 10, /* bytes that stop the output of
                                        processes */
    HFSBI_CODEX_ENTRIES = 32768,    /* entries of a folder in a reply */
    HFSBI_CODEX_REPLY = 60 << 20    /* bytes of text in a reply */
};

/* A method: run() answers in the loop, at once or later; else work() is called
   in a thread, and what it wrote or why it failed is sent. */
typedef struct hfsbi_codex_method {
    const char *name;
    void (*run)(hfsbi_codex_call *call);
    hfsb_status (*work)(hfsbi_codex_call *call);
    bool reported; /* in the journal */
} hfsbi_codex_method;

/* A request or notification of a client, from its message to its answer. */
struct hfsbi_codex_call {
    hfsbi_task                task; /* first: its functions cast it back */
    hfsbi_codex              *codex;
    hfsbi_codex_channel      *channel; /* held */
    hfsbi_codex_session      *session; /* held; NULL before initialize */
    const hfsbi_codex_method *method;
    hfsb_buf                  text; /* the message, which doc refers to */
    hfsb_json_doc             doc;
    const hfsb_json_value    *id;      /* NULL: a notification */
    const hfsb_json_value    *params;  /* an object or NULL */
    hfsb_buf                  out;     /* the answer */
    hfsb_err                  err;     /* code is not OK: it has failed */
    int                       code;    /* for the client (0: by err.code) */
    long long                 began;   /* hfsb_clock_ms() */
    bool                      owed;    /* an answer: not a notification */
    bool                      working; /* in a thread */
    /* of codex_process.c: a read that waits for output */
    hfsbi_codex_call *next;
    hfsbi_job        *job;
    hfsbi_feed_reader reader;
    hfsbi_timer       timer;
    /* of codex_files.c */
    hfsb_buf            path, to;
    hfsbi_codex_handle *handle; /* held */
    unsigned long long  bytes;  /* read or written, for the journal */
};

/* The state of a client, which outlives its connection for a while. */
struct hfsbi_codex_session {
    hfsbi_codex_session *next;
    hfsbi_codex         *codex;
    char                 id[33];
    hfsbi_codex_channel *channel;   /* NULL: the connection is lost */
    unsigned long        epoch;     /* connections it has had */
    size_t               users;     /* calls that refer to it */
    bool                 ended;     /* freed when no call refers to it */
    hfsbi_timer          timer;     /* ends it without a connection */
    hfsbi_codex_process *processes; /* newest first */
    size_t               process_count;
    unsigned long        started; /* processes ever */
    hfsbi_codex_call    *reads;   /* that wait */
    size_t               read_count;
    hfsbi_codex_handle  *handles;
    size_t               handle_count;
};

/* A connection of a client. */
struct hfsbi_codex_channel {
    hfsbi_codex_channel *next;
    hfsbi_codex         *codex;
    hfsbi_websocket     *socket;  /* NULL: closed, or there is a wire */
    hfsbi_wire          *wire;    /* NULL: closed, or there is a socket */
    hfsb_buf             text;    /* a message that is not complete */
    hfsbi_codex_session *session; /* NULL before initialize */
    size_t               users;   /* calls that refer to it */
    size_t               working; /* of these in threads */
    size_t               held;    /* bytes of their messages */
    bool                 paused;
    bool                 over;  /* no more messages come */
    hfsbi_timer          timer; /* of a wire: the end of lingering */
};

struct hfsbi_codex {
    hfsbi_dialect        dialect; /* first: the object is found by it */
    hfsbi_codex_channel *channels;
    hfsbi_codex_session *sessions; /* newest first */
    hfsbi_codex_channel *stdio;    /* in `channels`, or NULL */
    size_t               held;     /* bytes of messages in memory */
    bool                 ended;    /* no more sessions begin */
};

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_codex(void);

/* Sends the result, or the failure, and frees the call. */
HFSBI_FN void hfsbi_codex_answer(hfsbi_codex_call *call);
/* Bytes that the peer has not taken yet. */
HFSBI_FN size_t hfsbi_codex_waiting(const hfsbi_codex_channel *channel);
/* Sends a message, whose memory may be taken over; without one, or an
   incomplete one, the connection is lost. */
HFSBI_FN void hfsbi_codex_send(hfsbi_codex_channel *channel,
                               hfsb_buf            *message);

/* ---- codex_session.c ---- */

HFSBI_FN void hfsbi_codex_initialize(hfsbi_codex_call *call);
/* The connection of a session is lost. */
HFSBI_FN void hfsbi_codex_detach(hfsbi_codex_channel *channel);
/* Ends its processes. */
HFSBI_FN void hfsbi_codex_session_end(hfsbi_codex_session *session);
/* Frees one that has ended, unless a call refers to it. */
HFSBI_FN void hfsbi_codex_session_release(hfsbi_codex_session *session);
/* Sends a message to the client of the session, if it is connected. */
HFSBI_FN void hfsbi_codex_notify(hfsbi_codex_session *session,
                                 hfsb_buf            *message);
/* False when the client is away, or has much to read. */
HFSBI_FN bool hfsbi_codex_may_send(const hfsbi_codex_session *session);

/* ---- codex_params.c ---- */

/* Begins the result in call->out, a JSON value that the caller appends. */
HFSBI_FN hfsb_buf *hfsbi_codex_result(hfsbi_codex_call *call);
/* Makes the call fail with that code for the client. */
HFSBI_FN void hfsbi_codex_fail(hfsbi_codex_call *call, int code,
                               const char *format, ...) HFSBI_PRINTF(3, 4);

/* Read a parameter as hfsb_json_arg_str() and _bool() do; false after
   hfsbi_codex_fail(). */
HFSBI_FN bool hfsbi_codex_str(hfsbi_codex_call *call, const char *key,
                              hfsb_str *out);
HFSBI_FN bool hfsbi_codex_bool(hfsbi_codex_call *call, const char *key,
                               bool *out);
/* Appends the path of the URI that the parameter `key` contains; false after
   hfsbi_codex_fail(). */
HFSBI_FN bool hfsbi_codex_path(hfsbi_codex_call *call, const char *key,
                               hfsb_buf *out);
/* Append a URI for a path, or bytes as base64, both in quotes. */
HFSBI_FN void hfsbi_codex_put_uri(hfsb_buf *out, hfsb_str path);
HFSBI_FN void hfsbi_codex_put_base64(hfsb_buf *out, hfsb_str bytes);
/* Reads what process/start asks for; *input: the process takes some. False
   after hfsbi_codex_fail(). */
HFSBI_FN bool hfsbi_codex_spec(hfsbi_codex_call *call, hfsbi_job_spec *spec,
                               bool *input);

/* ---- codex_process.c ---- */

HFSBI_FN void hfsbi_codex_start(hfsbi_codex_call *call);
HFSBI_FN void hfsbi_codex_read(hfsbi_codex_call *call);
HFSBI_FN void hfsbi_codex_write(hfsbi_codex_call *call);
HFSBI_FN void hfsbi_codex_signal(hfsbi_codex_call *call);
HFSBI_FN void hfsbi_codex_terminate(hfsbi_codex_call *call);
/* Sends the events of all processes, as far as the client takes them. */
HFSBI_FN void hfsbi_codex_push(hfsbi_codex_session *session);
/* Answers the reads that wait: their connection is lost. */
HFSBI_FN void hfsbi_codex_reads_end(hfsbi_codex_session *session);
/* Ends and forgets all processes. */
HFSBI_FN void hfsbi_codex_processes_end(hfsbi_codex_session *session);

/* ---- codex_files.c ---- */

HFSBI_FN hfsb_status hfsbi_codex_fs_stat(hfsbi_codex_call *call);
HFSBI_FN hfsb_status hfsbi_codex_fs_read(hfsbi_codex_call *call);
HFSBI_FN hfsb_status hfsbi_codex_fs_write(hfsbi_codex_call *call);
HFSBI_FN hfsb_status hfsbi_codex_fs_make(hfsbi_codex_call *call);
HFSBI_FN hfsb_status hfsbi_codex_fs_remove(hfsbi_codex_call *call);
HFSBI_FN hfsb_status hfsbi_codex_fs_copy(hfsbi_codex_call *call);
HFSBI_FN hfsb_status hfsbi_codex_fs_canonical(hfsbi_codex_call *call);
HFSBI_FN hfsb_status hfsbi_codex_fs_list(hfsbi_codex_call *call);
HFSBI_FN hfsb_status hfsbi_codex_fs_walk(hfsbi_codex_call *call);
HFSBI_FN hfsb_status hfsbi_codex_fs_open(hfsbi_codex_call *call);
HFSBI_FN hfsb_status hfsbi_codex_fs_block(hfsbi_codex_call *call);
/* In the loop, before the work: reads the paths, and finds or makes the
   handle. False after hfsbi_codex_fail(). */
HFSBI_FN bool hfsbi_codex_fs_prepare(hfsbi_codex_call *call);
HFSBI_FN void hfsbi_codex_fs_close(hfsbi_codex_call *call);
/* In the loop, after the work. */
HFSBI_FN void hfsbi_codex_handle_done(hfsbi_codex_call *call);
HFSBI_FN void hfsbi_codex_handles_end(hfsbi_codex_session *session);

/* ---- codex_calls.c: what a bridge remembers ---- */

typedef enum hfsbi_bridge_kind {
    HFSBI_BRIDGE_ONCE,   /* must not be sent twice */
    HFSBI_BRIDGE_REPEAT, /* may be */
    HFSBI_BRIDGE_INIT,   /* initialize: its answer has the session */
    HFSBI_BRIDGE_START,  /* of a process; its text is that of the process */
    /* ours: the answer is not passed on */
    HFSBI_BRIDGE_RESUME,
    HFSBI_BRIDGE_REJOIN /* START again */
} hfsbi_bridge_kind;

/* A process that runs on the server, or has not been closed yet. */
typedef struct hfsbi_bridge_process {
    struct hfsbi_bridge_process *next;
    hfsb_buf                     id, start; /* start: its message, */
    hfsb_buf                     call;      /* and the id of that, as JSON */
    unsigned long long           seq;       /* of the next event */
    bool                         started;   /* the start is answered */
} hfsbi_bridge_process;

typedef struct hfsbi_bridge_message {
    struct hfsbi_bridge_message *next;
    hfsbi_bridge_kind            kind;
    hfsb_buf                     id;      /* as JSON; "": needs no answer */
    hfsb_buf                     text;    /* "" once it is not needed */
    hfsbi_bridge_process        *process; /* of START and REJOIN */
    size_t                       at;      /* bytes given to the WebSocket */
    bool                         sent;
} hfsbi_bridge_message;

typedef struct hfsbi_bridge_calls {
    hfsb_alloc            alloc;
    hfsbi_bridge_message *queue;       /* oldest first */
    size_t                count, held; /* in it, and bytes of their texts */
    hfsbi_bridge_process *processes;   /* newest first */
    size_t                starts;      /* bytes */
} hfsbi_bridge_calls;

/* The kind of a message of Codex. */
HFSBI_FN hfsbi_bridge_kind hfsbi_bridge_kind_of(const hfsb_json_value *root);

/* The process with this id, or NULL. */
HFSBI_FN hfsbi_bridge_process *hfsbi_bridge_find(const hfsbi_bridge_calls *c,
                                                 hfsb_str                  id);
/* Makes the process of a start, whose text is moved out of *text; NULL without
   memory. */
HFSBI_FN hfsbi_bridge_process *hfsbi_bridge_process_new(hfsbi_bridge_calls *c,
                                                        hfsb_str            id,
                                                        hfsb_str  call,
                                                        hfsb_buf *text);
HFSBI_FN void                  hfsbi_bridge_process_free(hfsbi_bridge_calls   *c,
                                                         hfsbi_bridge_process *p);

/* Makes a message, and puts it at the end of the queue or at its beginning.
   *text is taken over in any case. NULL without memory. */
HFSBI_FN hfsbi_bridge_message *hfsbi_bridge_add(hfsbi_bridge_calls *c,
                                                hfsbi_bridge_kind   kind,
                                                hfsb_str id, hfsb_buf *text,
                                                bool first);
HFSBI_FN void                  hfsbi_bridge_message_free(hfsbi_bridge_calls   *c,
                                                         hfsbi_bridge_message *m);
/* Queues the end of a process on the server. */
HFSBI_FN void hfsbi_bridge_kill(hfsbi_bridge_calls         *c,
                                const hfsbi_bridge_process *p);
/* Puts the messages that resume the session before all others. False without
   memory. */
HFSBI_FN bool hfsbi_bridge_resume(hfsbi_bridge_calls *c, const char *session);
/* The message to be sent next, or NULL. Before the session is resumed only
   what resumes it. */
HFSBI_FN hfsbi_bridge_message *hfsbi_bridge_next(const hfsbi_bridge_calls *c,
                                                 bool resuming);
/* A message was sent. */
HFSBI_FN void hfsbi_bridge_sent(hfsbi_bridge_calls   *c,
                                hfsbi_bridge_message *m);
/* The call that was sent with the id of an answer; NULL: none. */
HFSBI_FN hfsbi_bridge_message *hfsbi_bridge_match(const hfsbi_bridge_calls *c,
                                                  const hfsb_json_value *root);
/* Takes an event of a process. True when it is to be passed on; *closed: it is
   the last one of *p. */
HFSBI_FN bool hfsbi_bridge_event(hfsbi_bridge_calls *c, hfsb_str method,
                                 const hfsb_json_value *params,
                                 hfsbi_bridge_process **p, bool *closed);
/* Frees all of it. */
HFSBI_FN void hfsbi_bridge_forget(hfsbi_bridge_calls *c);

/* ---- hf.c: the API of huggingface_hub.Sandbox ---- */

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_hf(void);

typedef struct hfsbi_hf_process hfsbi_hf_process;

typedef struct hfsbi_hf_wait hfsbi_hf_wait; /* see hf_host.c */

/* Where commands and files of a request are: those of the server, or in host
   mode those of one sandbox. */
typedef struct hfsbi_hf_place {
    hfsbi_guest       guest;     /* first */
    hfsbi_hf_process *processes; /* oldest first */
    unsigned long     next;      /* number of the next background process */
    hfsbi_hf_wait    *wait;      /* waits for the removal; NULL: nobody does */
} hfsbi_hf_place;

typedef struct hfsbi_hf_host hfsbi_hf_host;

typedef struct hfsbi_hf {
    hfsbi_dialect  base; /* first */
    hfsbi_hf_place own;  /* without host mode */
    hfsbi_hf_host *host; /* NULL: without it */
    long long      began;
} hfsbi_hf;

/* The place of a request, whose guest is held; NULL after an error reply. */
HFSBI_FN hfsbi_hf_place *hfsbi_hf_place_of(hfsbi_hf     *hf,
                                           hfsb_request *request);
/* Adds routes of a place, which begin after "/v1" or "/v1/sandboxes/{id}". */
HFSBI_FN hfsb_status hfsbi_hf_add(hfsbi_hf                  *hf,
                                  const hfsbi_dialect_route *routes,
                                  hfsb_err                  *err);
/* The first "*" of the route that is not the id of a sandbox. */
HFSBI_FN hfsb_str hfsbi_hf_part(const hfsbi_hf *hf, hfsb_request *request);
/* Reads a number that consists of digits only, up to max. */
HFSBI_FN bool hfsbi_hf_number(hfsb_str s, unsigned long long max,
                              long long *out);

/* Appends "NAME=value" and a NUL for each member of an object. False after an
   error reply. */
HFSBI_FN bool hfsbi_hf_put_env(hfsb_request          *request,
                               const hfsb_json_value *env, hfsb_buf *out);
/* Reads the body of a request for a command. False after an error reply. */
HFSBI_FN bool hfsbi_hf_read_spec(hfsb_request          *request,
                                 const hfsb_json_value *o,
                                 const hfsb_tools      *tools,
                                 hfsbi_job_spec        *spec);

/* ---- hf_exec.c: commands ---- */

/* The routes of commands, after "/v1" or "/v1/sandboxes/{id}". */
HFSBI_FN const hfsbi_dialect_route *hfsbi_hf_commands(void);
/* Frees the processes of a place; those that run are killed with its tools. */
HFSBI_FN void hfsbi_hf_place_clear(hfsbi_hf_place *place);

/* ---- hf_files.c ---- */

/* The routes of files, after "/v1" or "/v1/sandboxes/{id}". */
HFSBI_FN const hfsbi_dialect_route *hfsbi_hf_files(void);

/* ---- hf_host.c: host mode ---- */

struct hfsbi_hf_host {
    hfsbi_host        host;
    hfsb_confine_opts confine;
    bool              compat; /* the server's token opens every sandbox */
    bool              lacks;  /* see hfsbi_hf_host_lacks() */
};

/* Adds the routes of host mode. */
HFSBI_FN hfsb_status hfsbi_hf_host_open(hfsbi_hf                *hf,
                                        const hfsb_dialect_opts *opts,
                                        hfsb_err                *err);
HFSBI_FN void        hfsbi_hf_host_close(hfsbi_hf *hf);
/* True if a request may use its route. */
HFSBI_FN bool hfsbi_hf_host_trusts(hfsbi_hf *hf, hfsb_request *request);
/* True if the last request that was not trusted has a token for a sandbox that
   does not exist. */
HFSBI_FN bool hfsbi_hf_host_lacks(const hfsbi_hf_host *host);
/* A socket that connects to that port of a sandbox; -1 with errno. */
HFSBI_FN int hfsbi_hf_host_connect(hfsbi_hf_place *place, unsigned port);

/* ---- hf_create.c ---- */

/* Handles POST /v1/sandboxes; user is the hfsbi_hf. */
HFSBI_FN void hfsbi_hf_sandboxes_post(void *user, hfsb_request *request);
/* Opens the tools of a new sandbox. */
HFSBI_FN hfsb_status hfsbi_hf_open_tools(hfsbi_order *order,
                                         hfsbi_guest *guest, hfsb_err *err);
/* Adds the members that everyone with the token of the server may see. */
HFSBI_FN void hfsbi_hf_put_sandbox(hfsbi_build *b, const hfsbi_guest *guest);

/* ---- e2b*.c: E2B's envd and its control plane ---- */

typedef struct hfsbi_e2b         hfsbi_e2b;
typedef struct hfsbi_e2b_watcher hfsbi_e2b_watcher;

/* A sandbox: the server's own, or one that the control plane has made, with a
   directory and an environment of its own. */
typedef struct hfsbi_e2b_box {
    hfsbi_guest        guest; /* first */
    hfsbi_e2b         *e2b;
    hfsb_buf           env;      /* "NAME=value", each ends in NUL */
    hfsb_buf           work_dir; /* base of paths; empty: that of the tools */
    hfsb_buf           user;     /* one more name of its user; or empty */
    double             set_at;   /* the newest timestamp of /init */
    hfsbi_e2b_watcher *watchers; /* also those that streams have */
    hfsb_buf           template_id, metadata; /* metadata: a JSON object */
    long long          ends;                  /* seconds since 1970 */
} hfsbi_e2b_box;

struct hfsbi_e2b {
    hfsbi_dialect      dialect; /* first */
    hfsbi_e2b_box      own;
    hfsbi_host         host;              /* of the control plane */
    char               user[64];          /* the name of the server's user */
    unsigned long long cpu_all, cpu_idle; /* ticks when /metrics last looked */
};

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_e2b(void);

enum { HFSBI_E2B_FULL = 256 << 10 }; /* bytes to be sent: add no more */

/* A call of a service: its sandbox, and the message as JSON. */
typedef struct hfsbi_e2b_ask {
    hfsbi_e2b_box *box;
    hfsb_json_doc  doc;
} hfsbi_e2b_ask;

/* Checks a request and parses its message, which is in an envelope if
   `stream`. False after an error reply; else the caller frees the document. */
HFSBI_FN bool hfsbi_e2b_ask_open(hfsbi_e2b *e2b, hfsb_request *request,
                                 bool stream, hfsbi_e2b_ask *ask);
/* The sandbox that a request names and its user may use; NULL after an error
   reply. */
HFSBI_FN hfsbi_e2b_box *hfsbi_e2b_box_open(hfsbi_e2b    *e2b,
                                           hfsb_request *request);
/* Finds the sandbox that a request names, or NULL. */
HFSBI_FN hfsbi_e2b_box *hfsbi_e2b_box_named(hfsbi_e2b          *e2b,
                                            const hfsb_request *request);
/* True if a request may set token and variables of its sandbox by /init: the
   first one may, then whoever has the token, in a field or as the one to be
   set. */
HFSBI_FN bool hfsbi_e2b_may_init(const hfsbi_e2b_box *box,
                                 const hfsb_request *request, hfsb_str token);
/* Replies with an error, in the form that the request has: a status, or a
   stream that ends. */
HFSBI_FN void hfsbi_e2b_fail(hfsb_request *request, hfsbi_connect_code code,
                             const char *format, ...) HFSBI_PRINTF(3, 4);
/* The code for a failed function. */
HFSBI_FN hfsbi_connect_code hfsbi_e2b_code(hfsb_status st);
/* Replies with {}. */
HFSBI_FN void hfsbi_e2b_reply_empty(hfsb_request *request);
/* Sends one message of a stream. False: the connection is lost. */
HFSBI_FN bool hfsbi_e2b_send(hfsb_request *request, hfsb_str json);
/* Ends a stream that has begun. message: of an error (NULL: none). */
HFSBI_FN void hfsbi_e2b_end(hfsb_request *request, hfsbi_connect_code code,
                            const char *message);
/* The member of an object by its name in JSON, or in the protocol. */
HFSBI_FN const hfsb_json_value *hfsbi_e2b_get(const hfsb_json_value *object,
                                              const char            *name,
                                              const char            *other);
/* The number in a field of the request; fallback without one, or for another
   value. */
HFSBI_FN long long hfsbi_e2b_field(const hfsb_request *request,
                                   const char *name, long long fallback);
/* The interval of keepalives that the client of a stream asks for. */
HFSBI_FN long long hfsbi_e2b_beat_ms(const hfsb_request *request);
/* Appends the absolute path for a path of a client; false without memory. */
HFSBI_FN bool hfsbi_e2b_path(const hfsbi_e2b_box *box, hfsb_str path,
                             hfsb_buf *out);
/* The same for paths relative to `base`, in any thread. */
HFSBI_FN bool hfsbi_e2b_join(hfsb_str base, hfsb_str path, hfsb_buf *out);
/* Appends the variables of an object to a list, replacing those of the same
   name. HFSB_OK; HFSB_ARG for an invalid name or value; HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_e2b_set_env(hfsb_buf              *list,
                                       const hfsb_json_value *object,
                                       hfsb_err              *err);
/* Puts the variables of a list into an object that is open. */
HFSBI_FN void hfsbi_e2b_put_env(hfsb_json_writer *w, const hfsb_buf *list);

/* Adds the routes of a service. */
HFSBI_FN hfsb_status hfsbi_e2b_add_rest(hfsbi_e2b *e2b, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_e2b_add_transfer(hfsbi_e2b *e2b, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_e2b_add_process(hfsbi_e2b *e2b, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_e2b_add_input(hfsbi_e2b *e2b, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_e2b_add_files(hfsbi_e2b *e2b, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_e2b_add_watch(hfsbi_e2b *e2b, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_e2b_add_control(hfsbi_e2b *e2b, hfsb_err *err);
/* Finds the program that the `process` of a message names, and that runs; the
   caller holds it. NULL after an error reply. */
HFSBI_FN hfsbi_job *hfsbi_e2b_select_running(hfsbi_e2b_box         *box,
                                             hfsb_request          *request,
                                             const hfsb_json_value *message);
/* Ends the watchers of a sandbox, and the streams that have them. */
HFSBI_FN void hfsbi_e2b_end_watchers(hfsbi_e2b_box *box);
/* Writes what is at an absolute path as an object, in any thread. */
HFSBI_FN hfsb_status hfsbi_e2b_put_entry(hfsb_json_writer    *w,
                                         const hfsbi_e2b_box *box,
                                         hfsb_str path, hfsb_err *err);
/* Extended attributes of these names are the metadata of a file. */
#define HFSBI_E2B_MARK "user.e2b."
/* Puts a list as hfsbi_path_marks() makes it into an object, as "metadata". */
HFSBI_FN void hfsbi_e2b_put_metadata(hfsb_json_writer *w, hfsb_str list);
/* Opens the host of the control plane. */
HFSBI_FN hfsb_status hfsbi_e2b_open_host(hfsbi_e2b               *e2b,
                                         const hfsb_dialect_opts *opts,
                                         hfsb_err                *err);
/* Prepares the members of a sandbox that are not those of its guest; frees
   them. */
HFSBI_FN void hfsbi_e2b_box_init(hfsbi_e2b_box *box, hfsbi_e2b *e2b);
HFSBI_FN void hfsbi_e2b_box_free(hfsbi_e2b_box *box);
