#pragma once

#include "../api/api_private.h"
#include "../server/server_private.h"
#include "../tools/tools_private.h"
#include "dialect.h"

/* dialect_private.h - what the dialects share.

     dialect.c   opens a dialect: its tools, its face, its port; helpers
     agent_sandbox.c, agent_sandbox_exec.c   Kubernetes' agent-sandbox
     codex.c     the exec-server of Codex: channels, messages, sessions
     codex_process.c, codex_files.c   its processes and its files
     proxy.c     passes requests on to a server on this machine
     codex.c     the exec-server of Codex: channels, messages
     codex_session.c, codex_params.c, codex_process.c, codex_files.c   its
                 sessions, parameters, processes and files
     e2b.c       E2B's envd: sandboxes, tokens, errors
     e2b_rest.c  its REST calls
     e2b_process.c, e2b_input.c, e2b_files.c, e2b_watch.c   its services
     e2b_control.c                                          its control plane

   Every other file is a dialect: a table of routes, and a function for each
   that turns a request into a call and a result into that protocol's reply.
   That of huggingface_hub is in hf.c, hf_exec.c (commands), hf_files.c, and
   hf_host.c and hf_create.c (several sandboxes in one server).
   All of it runs in the thread of the server, but for the functions given to
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
    bool                      has_token; /* else that of the server counts */
} hfsbi_dialect;

struct hfsbi_dialect_kind {
    const char *name;
    size_t      size; /* of its struct, in bytes; all zero but for the first
                         member when open is called */
    /* Sets the functions of the face and adds the routes. */
    hfsb_status (*open)(hfsbi_dialect *d, const hfsb_dialect_opts *opts,
                        hfsb_err *err);
    /* Frees what it owns; called also after open has failed. (NULL: nothing) */
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
/* For a face: true if the field has the token of the dialect, or without one
   of its own that of the server, after a scheme as in hfsbi_request_proves();
   or if the server needs none. */
HFSBI_FN bool hfsbi_dialect_trusts(hfsbi_dialect *d, hfsb_request *request,
                                   const char *field, const char *scheme);
/* Parses the body of a request as a JSON object. False after an error reply
   (400) in the form of the face. The doc refers to the body. */
HFSBI_FN bool hfsbi_dialect_parse(hfsb_request *request, hfsb_json_doc *doc);
/* Replies with a document and frees the builder. Without memory 503. */
HFSBI_FN void hfsbi_dialect_reply(hfsb_request *request, int status,
                                  hfsbi_build *b);

/* ---- agent_sandbox.c, agent_sandbox_exec.c ---- */

typedef struct hfsbi_kube {
    hfsbi_dialect    d;     /* first */
    hfsb_root       *own;   /* NULL: the tools have a root */
    const hfsb_root *root;  /* all paths are beneath it, commands start there */
    double           timeout; /* of commands, seconds */
    long long        began;   /* hfsb_clock_ms() */
    bool             local;   /* has a port of its own on loopback: needs no
                                 token */
} hfsbi_kube;

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_agent_sandbox(void);
/* Handles POST /execute. */
HFSBI_FN void hfsbi_kube_execute(void *user, hfsb_request *request);
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
    HFSBI_CODEX_MESSAGE = 64 << 20, /* bytes of one message */
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
    bool                      owed;    /* an answer: it is no notification */
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
    hfsbi_dialect        dialect; /* first: it is found by it */
    hfsbi_codex_channel *channels;
    hfsbi_codex_session *sessions; /* newest first */
    hfsbi_codex_channel *stdio;    /* in `channels`, or NULL */
    size_t               held;     /* bytes of messages in memory */
    bool                 ended;    /* no session begins any more */
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
/* Append the whole environment, and the words of `argv`, each ending in NUL;
   false after hfsbi_codex_fail(). */
HFSBI_FN bool hfsbi_codex_env(hfsbi_codex_call *call, hfsb_buf *env);
HFSBI_FN bool hfsbi_codex_argv(hfsbi_codex_call *call, hfsb_buf *out);

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
/* In the loop, before the work: reads the paths, and finds or makes the handle.
   False after hfsbi_codex_fail(). */
HFSBI_FN bool hfsbi_codex_fs_prepare(hfsbi_codex_call *call);
HFSBI_FN void hfsbi_codex_fs_close(hfsbi_codex_call *call);
/* In the loop, after the work. */
HFSBI_FN void hfsbi_codex_handle_done(hfsbi_codex_call *call);
HFSBI_FN void hfsbi_codex_handles_end(hfsbi_codex_session *session);

/* ---- proxy.c ---- */

/* Where a request goes. */
typedef struct hfsbi_relay_opts {
    unsigned port; /* of 127.0.0.1; 0: `fd` */
    int      fd;   /* a connected or connecting socket, which is taken over */
    size_t   prefix; /* bytes of the path that are not passed on */
    const char *const *hide; /* fields that are not passed on, in addition to
                                Authorization, which may hold a token;
                                NULL-terminated (NULL: none); constant */
    /* Called once at the end, however that comes (NULL: nothing). */
    void (*done)(void *user);
    void *user;
} hfsbi_relay_opts;

/* Passes a request on, and the reply back; 502 when nobody answers. Called
   from `begin` of a route whose `body` and `fn` are the two functions below;
   hfsb_request_set(), _on_gone(), on_eof and on_drained are used by it. Each
   request has a connection of its own to the inner server, so that the next
   one of the client is checked like the first. A request to change the
   protocol, such as one for a WebSocket, becomes a tunnel when the inner
   server agrees. Memory is bounded: each side waits for the other. */
HFSBI_FN void hfsbi_relay_start(hfsb_request           *request,
                                const hfsbi_relay_opts *opts);
HFSBI_FN void hfsbi_relay_body(void *user, hfsb_request *request,
                               hfsb_str piece);
HFSBI_FN void hfsbi_relay_finish(void *user, hfsb_request *request);
/* A socket that does not block; -1 with errno. */
HFSBI_FN int hfsbi_relay_socket(int family);

/* ---- hf.c: the API of huggingface_hub.Sandbox ---- */

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_hf(void);

typedef struct hfsbi_hf_process hfsbi_hf_process;

/* Where commands and files of a request are: those of the server, or in host
   mode those of one sandbox. */
typedef struct hfsbi_hf_place {
    hfsb_tools       *tools;
    hfsbi_hf_process *processes; /* oldest first */
    unsigned long     next;      /* number of the next background process */
    size_t            users;     /* requests and processes that refer to it */
    long long         used;      /* hfsb_clock_ms() of the last of them */
    bool              rooted;    /* paths begin at the root, however written */
    /* The last user has gone (NULL: nothing). Must not free it at once. */
    void (*unused)(struct hfsbi_hf_place *place);
} hfsbi_hf_place;

typedef struct hfsbi_hf_host hfsbi_hf_host;

typedef struct hfsbi_hf {
    hfsbi_dialect  base; /* first */
    hfsbi_hf_place own;  /* without host mode */
    hfsbi_hf_host *host; /* NULL: without it */
    hfsbi_timer    idle; /* looks whether the server is in use */
    long long      idle_ms; /* 0: it never stops by itself */
    long long      began;
} hfsbi_hf;

/* The place of a request, which holds it until the release; NULL after an
   error reply. */
HFSBI_FN hfsbi_hf_place *hfsbi_hf_place_of(hfsbi_hf     *hf,
                                           hfsb_request *request);
HFSBI_FN void            hfsbi_hf_place_hold(hfsbi_hf_place *place);
HFSBI_FN void            hfsbi_hf_place_release(hfsbi_hf_place *place);
/* Adds routes of a place, which begin after "/v1" or "/v1/sandboxes/{id}". */
HFSBI_FN hfsb_status hfsbi_hf_add(hfsbi_hf                  *hf,
                                  const hfsbi_dialect_route *routes,
                                  hfsb_err                  *err);
/* The first "*" of the route that is not the id of a sandbox. */
HFSBI_FN hfsb_str hfsbi_hf_part(const hfsbi_hf *hf, hfsb_request *request);
/* Reads a number of digits alone, up to max. */
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

enum { HFSBI_HF_TOKEN = 64, HFSBI_HF_ID = 16 }; /* hexadecimal digits */

typedef enum hfsbi_hf_life {
    HFSBI_HF_NEW,    /* its home is being made */
    HFSBI_HF_LIVE,   /* in the list of sandboxes */
    HFSBI_HF_ENDING, /* its commands were killed */
    HFSBI_HF_REMOVING
} hfsbi_hf_life;

typedef struct hfsbi_hf_wait hfsbi_hf_wait; /* see hf_host.c */

/* A sandbox of a host; its states are drawn in hf_host.c. */
typedef struct hfsbi_hf_sandbox {
    hfsbi_hf_place           place; /* first: its functions cast it back */
    struct hfsbi_hf_sandbox *next;
    hfsbi_hf_host           *host;
    hfsbi_hf_life            life;
    char                     id[HFSBI_HF_ID + 1];
    char                     token[HFSBI_HF_TOKEN + 1]; /* to recover it */
    unsigned char            digest[HFSB_SHA256_SIZE];
    hfsb_buf                 home;
    long long                created; /* ms since 1970 */
    long long                idle_ms; /* 0: it is never removed for that */
    hfsbi_task               task;    /* the last user has gone; the removal */
    hfsbi_hf_wait           *wait;    /* for the removal; NULL: nobody */
} hfsbi_hf_sandbox;

struct hfsbi_hf_host {
    hfsbi_hf         *hf;
    hfsbi_hf_sandbox *list;            /* not removed yet, oldest first */
    size_t            count, capacity; /* count: LIVE, or being made */
    hfsb_buf          homes;           /* the folder of their homes */
    hfsb_confine_opts confine;
    bool              compat; /* the server's token opens every sandbox */
};

/* Adds the routes of host mode. */
HFSBI_FN hfsb_status hfsbi_hf_host_open(hfsbi_hf                *hf,
                                        const hfsb_dialect_opts *opts,
                                        hfsb_err                *err);
/* Asks all commands to end; true while one of them runs; frees all. */
HFSBI_FN void hfsbi_hf_host_end(hfsbi_hf_host *host);
HFSBI_FN bool hfsbi_hf_host_busy(hfsbi_hf_host *host);
HFSBI_FN void hfsbi_hf_host_close(hfsbi_hf_host *host);
HFSBI_FN size_t hfsbi_hf_host_count(const hfsbi_hf_host *host);
/* Whether a request may use its route. */
HFSBI_FN bool hfsbi_hf_host_trusts(hfsbi_hf *hf, hfsb_request *request);
/* The sandbox of a scoped route; NULL: there is none. */
HFSBI_FN hfsbi_hf_place *hfsbi_hf_host_find(hfsbi_hf_host *host, hfsb_str id);
/* A socket that connects to that port of a sandbox; -1 with errno. */
HFSBI_FN int hfsbi_hf_host_connect(hfsbi_hf_place *place, unsigned port);
HFSBI_FN void hfsbi_hf_digest(hfsb_str s, unsigned char out[HFSB_SHA256_SIZE]);
/* Frees a sandbox that is in no list, and whose tools are. */
HFSBI_FN void hfsbi_hf_sandbox_free(hfsbi_hf_sandbox *s);
/* In a thread. */
HFSBI_FN void hfsbi_hf_remove_home(const hfsb_buf *home);
/* Removes sandboxes that were not used for as long as they asked. */
HFSBI_FN void hfsbi_hf_host_look(hfsbi_hf_host *host, long long now);

/* ---- hf_create.c ---- */

/* Handles POST /v1/sandboxes; user is the hfsbi_hf. */
HFSBI_FN void hfsbi_hf_sandboxes_post(void *user, hfsb_request *request);
/* Adds the members that everyone with the token of the server may see. */
HFSBI_FN void hfsbi_hf_put_sandbox(hfsbi_build            *b,
                                   const hfsbi_hf_sandbox *s);

/* ---- e2b*.c: E2B's envd and its control plane ---- */

typedef struct hfsbi_e2b         hfsbi_e2b;
typedef struct hfsbi_e2b_watcher hfsbi_e2b_watcher;

/* What the control plane knows of a sandbox. */
typedef struct hfsbi_e2b_lease {
    hfsb_buf    dir; /* its directory, and root */
    hfsb_root  *root;
    hfsb_buf    template_id, metadata; /* metadata: a JSON object */
    long long   started, ends;         /* seconds since 1970 */
    hfsbi_timer timer;                 /* ends the sandbox, or looks whether a
                                          dead one can be freed */
    hfsbi_task  task;                  /* removes the directory */
    bool        removing;
} hfsbi_e2b_lease;

/* A sandbox: the server's own, or one that the control plane has made, with a
   directory and an environment of its own.

       LIVE --killed, timed out--> DEAD --no user, no process--> freed

   Whoever answers later, or works in a thread, is one of its users. */
typedef struct hfsbi_e2b_box {
    struct hfsbi_e2b_box *next;
    hfsbi_e2b            *e2b;
    hfsb_tools           *tools;
    char                  id[24]; /* "": the server's own */
    bool                  dead;
    size_t                users;
    hfsb_buf              token; /* in plain: signatures need it; empty:
                                       that of the dialect counts */
    unsigned char         digest[HFSB_SHA256_SIZE]; /* of it */
    hfsb_buf              env;      /* "NAME=value", each ends in NUL */
    hfsb_buf              work_dir; /* where paths begin; empty: that of the
                                       tools */
    hfsbi_e2b_watcher    *watchers; /* also those that streams have */
    hfsbi_e2b_lease       lease;
} hfsbi_e2b_box;

struct hfsbi_e2b {
    hfsbi_dialect      dialect; /* first */
    hfsbi_e2b_box      own;
    hfsbi_e2b_box     *boxes;      /* of the control plane, newest first */
    bool               controlled; /* there was one */
    char               user[64];   /* the name of the server's user */
    unsigned long long cpu_all, cpu_idle; /* ticks when /metrics last looked */
};

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_e2b(void);

enum { HFSBI_E2B_FULL = 256 << 10 }; /* bytes to be sent: add no more */

/* A call of a service: its sandbox, and the message as JSON. */
typedef struct hfsbi_e2b_ask {
    hfsbi_e2b_box *box;
    hfsb_json_doc  doc;
} hfsbi_e2b_ask;

/* Checks a request and parses its message, which is in an envelope if `stream`.
   False after an error reply; else the caller frees the document. */
HFSBI_FN bool hfsbi_e2b_ask_open(hfsbi_e2b *e2b, hfsb_request *request,
                                 bool stream, hfsbi_e2b_ask *ask);
/* The sandbox that a request names and its user may use; NULL after an error
   reply. */
HFSBI_FN hfsbi_e2b_box *hfsbi_e2b_box_open(hfsbi_e2b    *e2b,
                                           hfsb_request *request);
/* Finds the sandbox that a request names, or NULL. */
HFSBI_FN hfsbi_e2b_box *hfsbi_e2b_box_named(hfsbi_e2b          *e2b,
                                            const hfsb_request *request);
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
/* The same for paths that begin at `base`, in any thread. */
HFSBI_FN bool hfsbi_e2b_join(hfsb_str base, hfsb_str path, hfsb_buf *out);
/* Appends the variables of an object to a list, instead of those that it has.
   HFSB_OK; HFSB_ARG for an invalid name or value; HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_e2b_set_env(hfsb_buf              *list,
                                       const hfsb_json_value *object,
                                       hfsb_err              *err);
/* Puts the variables of a list into an object that is open. */
HFSBI_FN void hfsbi_e2b_put_env(hfsb_json_writer *w, const hfsb_buf *list);

/* Adds the routes of a service. */
HFSBI_FN hfsb_status hfsbi_e2b_add_rest(hfsbi_e2b *e2b, hfsb_err *err);
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
/* Writes what is at an absolute path as an object, in any thread. user: the
   name of our own user. */
HFSBI_FN hfsb_status hfsbi_e2b_put_entry(hfsb_json_writer *w,
                                         const hfsb_root *root, hfsb_str path,
                                         const char *user, hfsb_err *err);
/* Extended attributes of these names are the metadata of a file. */
#define HFSBI_E2B_MARK "user.e2b."
/* Puts a list as hfsbi_path_marks() makes it into an object, as "metadata". */
HFSBI_FN void hfsbi_e2b_put_metadata(hfsb_json_writer *w, hfsb_str list);
/* Sets the access token of a sandbox; false without memory. */
HFSBI_FN bool hfsbi_e2b_set_token(hfsbi_e2b_box *box, hfsb_str token);
/* Ends a sandbox of the control plane. */
HFSBI_FN void hfsbi_e2b_box_kill(hfsbi_e2b_box *box);
/* Frees a sandbox, dead or not; nothing uses it any more. */
HFSBI_FN void hfsbi_e2b_box_free(hfsbi_e2b_box *box);
