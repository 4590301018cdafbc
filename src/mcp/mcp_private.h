#pragma once

#include "../tools/tools_private.h"
#include "../server/server_private.h"
#include "mcp.h"

/* The internals of MCP. A file uses only the files above it:

       message.c   reads and writes messages of the protocol (pure)
       show.c      turns the result of a tool into content blocks (pure)
       list.c      the tools and the instructions that clients are offered
       call.c      sessions of clients, and one call of a tool
       channel.c   serves one message: its method, its answer
       stdio.c     a channel over two descriptors
       http.c      a channel per POST request
       mcp.c       the object: options, start, shutdown
       remote.c    runs calls in the sandbox of a session

   The path of a tool call:

       bytes -> stdio, http -> channel -> message (what is asked)
                                       -> call (runs it) -> show (blocks)
       bytes <- stdio, http <----------------- message (the answer)

   Everything belongs to the thread that serves, unless marked otherwise. */

#define HFSBI_MCP_MODERN "2026-07-28"
#define HFSBI_MCP_LATEST "2025-11-25" /* newest version with initialize */

enum {
    HFSBI_MCP_FIRST_BEAT_MS = 2000,
    HFSBI_MCP_SESSIONS = 64,
    HFSBI_MCP_SESSION_MS = 60 * 60 * 1000, /* idle sessions are dropped */
    HFSBI_MCP_ENDED = 256,    /* ids of ended sessions that are remembered */
    HFSBI_MCP_SILENT = 8,     /* above every log level */
    HFSBI_MCP_RESULT = 20000, /* bytes of the text of a result */
    HFSBI_MCP_TAIL = 4096,    /* bytes of output kept for progress */
    HFSBI_MCP_OUTBOX = 1024 * 1024 /* bytes of unsent notifications per call */
};

/* Error codes of JSON-RPC and of MCP. */
enum {
    HFSBI_MCP_PARSE = -32700,
    HFSBI_MCP_INVALID = -32600,
    HFSBI_MCP_NO_METHOD = -32601,
    HFSBI_MCP_PARAMS = -32602,
    HFSBI_MCP_INTERNAL = -32603,
    HFSBI_MCP_HEADER = -32020,
    HFSBI_MCP_VERSION = -32022
};

/* ---- message.c: reading ---- */

/* The HTTP header fields that belong to a message, without blanks around
   them. An absent field has a NULL ptr. All-zero: the message came over
   stdio. */
typedef struct hfsbi_mcp_head {
    bool     http;
    hfsb_str version, method, name; /* MCP-Protocol-Version, Mcp-Method,
                                       Mcp-Name */
} hfsbi_mcp_head;

/* The era of a version of the protocol: with initialize, or without. */
typedef enum hfsbi_mcp_era {
    HFSBI_ERA_UNKNOWN, /* no version that is served */
    HFSBI_ERA_LEGACY,
    HFSBI_ERA_MODERN
} hfsbi_mcp_era;

typedef enum hfsbi_mcp_kind {
    HFSBI_MCP_REQUEST,
    HFSBI_MCP_NOTIFICATION,
    HFSBI_MCP_RESPONSE, /* ignored: the server sends no requests */
    HFSBI_MCP_FAULT     /* to be answered with code, status and err */
} hfsbi_mcp_kind;

typedef enum hfsbi_mcp_method {
    HFSBI_MCP_OTHER, /* a notification that is ignored */
    HFSBI_MCP_INITIALIZE,
    HFSBI_MCP_PING,
    HFSBI_MCP_DISCOVER,
    HFSBI_MCP_LIST,
    HFSBI_MCP_CALL,
    HFSBI_MCP_SET_LEVEL, /* logging/setLevel */
    HFSBI_MCP_CANCELLED  /* notifications/cancelled */
} hfsbi_mcp_method;

/* A checked message. Every decision about what it asks is made here once.
   Values and texts belong to the document or the head, or are static. */
typedef struct hfsbi_mcp_message {
    hfsbi_mcp_kind         kind;
    hfsbi_mcp_method       method;
    bool                   modern; /* of the revision 2026-07-28 */
    const hfsb_json_value *id;     /* of a request or fault; NULL: null */
    const hfsb_json_value *params; /* an object, or NULL */
    const hfsb_json_value *token;  /* for progress notifications, or NULL */
    hfsb_str version; /* of initialize: the version to answer with; otherwise
                         the version that _meta or the head names, or "" */
    int      level;   /* of setLevel: the new level; of a modern request: the
                         level it asks for; otherwise HFSBI_MCP_SILENT */
    hfsb_str client, client_version;  /* of a modern request, the name also of
                                         initialize; or "" */
    hfsb_str tool;                    /* of tools/call */
    const hfsb_json_value *arguments; /* of tools/call: an object or NULL */
    bool                   bad_arguments; /* `arguments` is not an object */
    const hfsb_json_value *target;        /* of cancelled: the request's id */
    int                    code;          /* of a fault: for JSON-RPC */
    int                    status;        /* of a fault: for HTTP */
    hfsb_err               err;           /* of a fault: msg is its sentence */
} hfsbi_mcp_message;

/* Reads one message, in the order of checks of the newest revision. root may
   be any value; an array counts as a malformed message (channel.c takes
   batches apart). logging: logging/setLevel is a known method. */
HFSBI_FN void hfsbi_mcp_read(const hfsb_json_value *root,
                             const hfsbi_mcp_head *head, bool logging,
                             hfsbi_mcp_message *out);

/* Makes the message a fault; its sentence is in m->err already. Returns false,
   so that a check can return it. */
HFSBI_FN bool hfsbi_mcp_refuse(hfsbi_mcp_message *m, int code, int status);

HFSBI_FN hfsbi_mcp_era hfsbi_mcp_era_of(hfsb_str version);

/* Returns 0 for "debug" to 7 for "emergency", -1 for any other name. */
HFSBI_FN int hfsbi_mcp_level(hfsb_str name);

/* Returns true when two ids are equal in type and value. */
HFSBI_FN bool hfsbi_mcp_same_id(const hfsb_json_value *a,
                                const hfsb_json_value *b);

/* ---- message.c: writing ----
   Each function appends one line of JSON, without a line feed. HFSB_OK; or
   HFSB_NOMEM with the bytes of *out as they were. A NULL id is written as
   null. */

/* Properties of the server that replies contain. */
typedef struct hfsbi_mcp_about {
    hfsb_buf name, title, version, instructions;
    bool     logging;
} hfsbi_mcp_about;

HFSBI_FN hfsb_status hfsbi_mcp_put_fault(const hfsbi_mcp_message *m,
                                         hfsb_buf                *out);
HFSBI_FN hfsb_status hfsbi_mcp_put_error(const hfsb_json_value *id, int code,
                                         hfsb_str sentence, hfsb_buf *out);
HFSBI_FN hfsb_status hfsbi_mcp_put_empty(const hfsb_json_value *id,
                                         hfsb_buf              *out);
/* version: the one that both sides will use. */
HFSBI_FN hfsb_status hfsbi_mcp_put_initialize(const hfsbi_mcp_about *about,
                                              const hfsb_json_value *id,
                                              hfsb_str version, hfsb_buf *out);
HFSBI_FN hfsb_status hfsbi_mcp_put_discover(const hfsbi_mcp_about *about,
                                            const hfsb_json_value *id,
                                            hfsb_buf              *out);
/* tools: a JSON array, or "". */
HFSBI_FN hfsb_status hfsbi_mcp_put_list(const hfsbi_mcp_about *about,
                                        const hfsb_json_value *id, bool modern,
                                        hfsb_str tools, hfsb_buf *out);
/* blocks: JSON objects with commas between them. */
HFSBI_FN hfsb_status hfsbi_mcp_put_result(const hfsbi_mcp_about *about,
                                          const hfsb_json_value *id,
                                          bool modern, hfsb_str blocks,
                                          bool is_error, hfsb_buf *out);
/* total 0 and message "" are left out. */
HFSBI_FN hfsb_status hfsbi_mcp_put_progress(const hfsb_json_value *token,
                                            double progress, double total,
                                            hfsb_str message, hfsb_buf *out);
HFSBI_FN hfsb_status hfsbi_mcp_put_log(const char *level, hfsb_str text,
                                       hfsb_buf *out);

/* ---- show.c: results as blocks ---- */

/* Content blocks of a result. */
typedef struct hfsbi_mcp_blocks {
    hfsb_buf    json; /* objects with commas between them */
    bool        is_error;
    bool        tags;   /* read shows the tag of the file, for edit_lines */
    hfsb_status status; /* HFSB_NOMEM: some blocks are missing */
    size_t      max;    /* bytes of the text of a result (0: 20,000) */
} hfsbi_mcp_blocks;

HFSBI_FN void hfsbi_mcp_add_text(hfsbi_mcp_blocks *b, hfsb_str text);
/* type: "image" or "audio"; data is base64 already. */
HFSBI_FN void hfsbi_mcp_add_data(hfsbi_mcp_blocks *b, const char *type,
                                 hfsb_str mime_type, hfsb_str data);
HFSBI_FN void hfsbi_mcp_add_resource(hfsbi_mcp_blocks *b, hfsb_str uri,
                                     hfsb_str mime_type, hfsb_str text);

/* Adds the result of a built-in tool: its text, cut to out->max bytes, and
   lines in brackets with the facts that a model needs next:
       read          which lines these are, and the offset of the next ones
       bash_output   whether the job runs, its exit code, next_offset
       bash          what an exit code means that is an answer; such a result
                     is not an error
       any           processes that are left running, the file with the whole
                     output
   The output of bash and of a failure loses its middle. An image becomes an
   image block. */
HFSBI_FN void hfsbi_mcp_show(hfsb_str tool, const hfsb_tool_result *result,
                             hfsbi_mcp_blocks *out);

/* Adds the answer for a command that continues as a job. so_far: the result of
   bash_output for that job. */
HFSBI_FN void hfsbi_mcp_show_running(hfsb_str job, long long seconds,
                                     const hfsb_tool_result *so_far,
                                     hfsbi_mcp_blocks       *out);

/* Returns the last line that is not blank, at most 120 characters of it, for
   progress messages. */
HFSBI_FN hfsb_str hfsbi_mcp_last_line(hfsb_str text);

/* ---- list.c: what clients are offered ---- */

/* A tool that the program added. */
typedef struct hfsbi_mcp_tool {
    hfsb_json_doc definition; /* as tools/list shows it */
    void (*fn)(void *user, hfsb_mcp_call *call,
               const hfsb_json_value *arguments);
    void *user;
} hfsbi_mcp_tool;

/* The tools that are offered: built-in ones first, then the program's. Fixed
   once the server serves. All-zero is empty. */
typedef struct hfsbi_mcp_list {
    hfsb_alloc    alloc;
    bool          read_only; /* offer only tools that change nothing */
    hfsb_json_doc doc;       /* definitions of all built-in tools, */
    const hfsb_json_value **built_in; /* and pointers to those on offer */
    size_t                  built_in_count;
    hfsbi_mcp_tool         *own;
    size_t                  own_count, own_cap;
    hfsb_buf                text; /* all definitions as a JSON array */
} hfsbi_mcp_list;

HFSBI_FN void hfsbi_mcp_list_free(hfsbi_mcp_list *list);

/* Adds the tools on request to *all, a JSON array of definitions; with
   `history` also those of checkpoints. HFSB_OK, or the failure of the buffer
   with *err. */
HFSBI_FN hfsb_status hfsbi_mcp_define_requested(bool history, hfsb_buf *all,
                                                hfsb_err *err);

/* Replaces the built-in tools with those of `all` (a JSON array of
   definitions) that `only` names, or sets that it names (commas between;
   empty: all but those on request). HFSB_OK; HFSB_ARG when a name is unknown,
   is not read-only though it must be, or belongs to a tool of the program;
   HFSB_NOMEM. A failure leaves the list as it was. */
HFSBI_FN hfsb_status hfsbi_mcp_list_choose(hfsbi_mcp_list *list, hfsb_str all,
                                           hfsb_str only, hfsb_err *err);

/* Adds a tool of the program, or leaves it out when the list is read-only and
   the tool is not. HFSB_OK; HFSB_ARG for a bad definition or a name that is
   taken; HFSB_NOMEM. A failure leaves the list as it was. */
HFSBI_FN hfsb_status hfsbi_mcp_list_add(hfsbi_mcp_list      *list,
                                        const hfsb_mcp_tool *tool,
                                        hfsb_err            *err);

/* Returns true when a tool of that name is offered. *own (may be NULL) becomes
   the tool of the program, or NULL for a built-in one. */
HFSBI_FN bool hfsbi_mcp_list_find(const hfsbi_mcp_list *list, hfsb_str name,
                                  const hfsbi_mcp_tool **own);

/* Sets the instructions for the model: ours, then those of the program.
   HFSB_OK, HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_mcp_instruct(hfsb_mcp *mcp, hfsb_str ours);

/* ---- the object ---- */

/* A client's session: over stdio the connection, over HTTP the requests with
   the same id (see http.c), or without one. It owns the commands that were
   started in it and knows the files that were read.

       hold --> in use <--> idle --> dropped, and its commands are ended
                  |                     ^
                  +--> ended by its client, no id finds it any more          */
typedef struct hfsbi_mcp_session {
    struct hfsbi_mcp_session *next;
    hfsb_mcp                 *mcp;
    hfsb_buf                  id;      /* "": requests without one */
    bool                      unnamed; /* of stdio: not found by any id */
    bool                      ended;   /* freed once its commands have ended */
    hfsb_tools               *tools;   /* NULL until the first local call */
    char                      version[16]; /* agreed on by initialize */
    char                      who[80];     /* "mcp:NAME" once the client has
                                              given its name, else "" */
    int                       log_level;   /* of legacy requests */
    size_t                    users;       /* channels and calls */
    long long                 used;        /* time of the last release */
} hfsbi_mcp_session;

/* Where the messages of one client come from and go to: the first member of
   its owner. stdio has one channel; over HTTP each request has its own. Its
   owner must call hfsbi_mcp_calls_detach() before it goes, and must not free
   it before hfsbi_mcp_receive() has returned. */
typedef struct hfsbi_mcp_channel {
    hfsb_mcp          *mcp;
    hfsbi_mcp_session *session; /* held; NULL: see open */
    unsigned long long owner;   /* of its commands, where clients may share the
                                   session; 0: they do not */
    size_t             owed;    /* answers that are still to come */
    /* Sets `session` for a message, or for a batch (m is NULL). Called before
       the first one that needs it, when session is NULL. Returns false when
       the channel itself has refused. */
    bool (*open)(struct hfsbi_mcp_channel *channel,
                 const hfsbi_mcp_message  *m);
    /* Sends an answer and takes it off `owed`. May be called while receive()
       runs. status is that of HTTP; 0: the request was cancelled and gets no
       answer. *message may be taken over; if it is empty although there is an
       answer, there was no memory for it. */
    void (*reply)(struct hfsbi_mcp_channel *channel, int status,
                  hfsb_buf *message);
    /* Sends a notification, or drops it. */
    void (*notify)(struct hfsbi_mcp_channel *channel, hfsb_str message);
    bool can_notify; /* false: no progress or log is written at all */
} hfsbi_mcp_channel;

/* A parsed message, shared by the calls that it starts. */
typedef struct hfsbi_mcp_input {
    hfsb_buf      text; /* strings are decoded in place */
    hfsb_json_doc doc;
    size_t        users;
} hfsbi_mcp_input;

/* Calls that run in a sandbox. Set by hfsb_mcp_use_session(), so that a
   program without sessions does not link them or the Hub. */
typedef struct hfsbi_mcp_remote {
    struct hfsb_session *session;
    /* Runs a call to its end, in a thread. NULL: tools are local. */
    void (*run)(struct hfsb_mcp_call *call);
    /* Called in the loop when a call reaches its deadline. True: the call is
       answered with *out and its thread continues unheard. False: the thread
       is cancelled with HFSBI_MCP_CALL_TIMED_OUT and returns what it has. */
    bool (*on_deadline)(struct hfsb_mcp_call *call, hfsbi_mcp_blocks *out);
} hfsbi_mcp_remote;

/* What the options set, with their defaults. */
typedef struct hfsbi_mcp_limits {
    long long answer_ms, beat_ms, grace_ms;
    size_t    max_message, max_result;
    size_t    page; /* bytes of a job's output in an answer */
} hfsbi_mcp_limits;

/* The sessions that their clients ended last. */
typedef struct hfsbi_mcp_ended {
    unsigned long long ids[HFSBI_MCP_ENDED]; /* hashes; a ring */
    size_t             count;                /* ever */
} hfsbi_mcp_ended;

struct hfsb_mcp {
    hfsbi_server_part     part; /* first: the server knows the object by it */
    hfsb_server          *server;
    hfsbi_loop           *loop;
    hfsb_alloc            alloc;
    hfsbi_mcp_about       about;
    hfsbi_mcp_list        list;
    hfsb_buf              only; /* names of the built-in tools to offer */
    hfsb_buf              instructions; /* those of the program */
    hfsb_tools           *tools; /* runs nothing; those of sessions are opened
                                like it */
    hfsb_journal         *journal; /* NULL: none */
    hfsbi_mcp_limits      limits;
    hfsb_json_doc         no_arguments; /* {} */
    hfsbi_mcp_session    *sessions;
    hfsbi_mcp_ended       ended;
    struct hfsb_mcp_call *calls; /* newest first */
    size_t                call_count;
    size_t                working; /* calls in threads */
    struct hfsbi_mcp_stdio *stdio;
    hfsbi_mcp_remote        remote;
    bool                    stopping; /* no more calls start */
};

/* ---- call.c: sessions ---- */

/* Returns the session with that id, created if need be; release it after use.
   When there are HFSBI_MCP_SESSIONS, one that no request uses is dropped for
   it, and its commands are ended. NULL without memory, or when requests use
   all of them. */
HFSBI_FN hfsbi_mcp_session *hfsbi_mcp_session_hold(hfsb_mcp *mcp, hfsb_str id);
/* The same for a new session that no id finds. */
HFSBI_FN hfsbi_mcp_session *hfsbi_mcp_session_new(hfsb_mcp *mcp);
HFSBI_FN void hfsbi_mcp_session_release(hfsbi_mcp_session *session);
/* Ends the session with that id at the request of its client: calls are not
   answered, commands are asked to end. False when the id is unknown. */
HFSBI_FN bool hfsbi_mcp_session_end(hfsb_mcp *mcp, hfsb_str id);
/* True when a client has ended the session with that id. */
HFSBI_FN bool hfsbi_mcp_session_has_ended(const hfsb_mcp *mcp, hfsb_str id);
/* Returns the number of commands that run or wait, in all sessions. */
HFSBI_FN size_t hfsbi_mcp_sessions_busy(const hfsb_mcp *mcp);
/* Collects exits and output of all commands, without waiting. */
HFSBI_FN void hfsbi_mcp_sessions_step(hfsb_mcp *mcp);
/* Asks all commands to end, without waiting. */
HFSBI_FN void hfsbi_mcp_sessions_end(hfsb_mcp *mcp);
/* hfsbi_tools_sweep() of every session. Returns the number of processes. */
HFSBI_FN size_t hfsbi_mcp_sessions_sweep(hfsb_mcp *mcp, bool hard);
/* Frees all sessions; at_once: kills what runs without grace. No call may be
   left. */
HFSBI_FN void hfsbi_mcp_sessions_free(hfsb_mcp *mcp, bool at_once);

/* ---- call.c: one call of a tool ---- */

/* Why a call must stop early. A call only moves to the right:

       RUNS -> TIMED_OUT -> CANCELLED, STOPPED

   TIMED_OUT   its deadline passed: it is answered with what there is
   CANCELLED   nobody wants the answer: commands are killed
   STOPPED     the same, because the server stops */
typedef enum hfsbi_mcp_stop {
    HFSBI_MCP_CALL_RUNS,
    HFSBI_MCP_CALL_TIMED_OUT,
    HFSBI_MCP_CALL_CANCELLED,
    HFSBI_MCP_CALL_STOPPED
} hfsbi_mcp_stop;

/* Which progress a client gets while a call runs. */
typedef enum hfsbi_mcp_detail {
    HFSBI_MCP_NO_PROGRESS,
    HFSBI_MCP_NUMBERS, /* 2024-11-05: progress has no message */
    HFSBI_MCP_MESSAGES
} hfsbi_mcp_detail;

/* Who gave the last progress number: none yet, the clock, the tool. */
typedef enum hfsbi_mcp_source {
    HFSBI_MCP_BY_NOBODY,
    HFSBI_MCP_BY_CLOCK,
    HFSBI_MCP_BY_TOOL
} hfsbi_mcp_source;

/* What a call was asked for, independent of its message. */
typedef struct hfsbi_mcp_ask {
    hfsb_json_doc          kept;      /* an array: the id, the token */
    const hfsb_json_value *id;        /* in kept */
    const hfsb_json_value *token;     /* in kept; NULL: none */
    hfsb_str               tool;      /* of the message, or static */
    const hfsb_json_value *arguments; /* of the message: an object */
    const hfsbi_mcp_tool  *own;       /* a tool of the program, or NULL */
    bool                   modern;
    hfsbi_mcp_detail       detail;
    int                    log_level; /* lowest level that is sent */
} hfsbi_mcp_ask;

/* The part of a call that its thread and the loop share. */
typedef struct hfsbi_mcp_shared {
    pthread_mutex_t  lock;
    hfsbi_mcp_stop   stop;
    hfsb_buf         outbox;          /* notifications, one per line */
    bool             posted;          /* `post` is on its way to the loop */
    hfsbi_task       post;            /* makes the loop send the outbox */
    hfsb_buf         tail;            /* end of a command's output */
    double           progress, total; /* the last ones sent */
    hfsbi_mcp_source source;          /* of progress */
} hfsbi_mcp_shared;

/* While in_thread is set, only the thread uses ask.arguments and blocks. */
struct hfsb_mcp_call {
    hfsbi_task            task;  /* first: the thread knows the call by it */
    hfsbi_timer           timer; /* next beat, or the deadline */
    struct hfsb_mcp_call *next, *prev;
    hfsb_mcp             *mcp;
    hfsbi_mcp_session    *session; /* held */
    hfsbi_mcp_channel    *channel; /* NULL: answered, cancelled or detached */
    hfsbi_mcp_input      *input;   /* held; NULL: no longer needed */
    hfsbi_mcp_ask         ask;
    char                  who[80]; /* the caller, for the journal */
    bool                  in_thread;
    long long             started, next_beat;
    long long             deadline; /* for an answer; -1: none */
    hfsb_cancel           cancel;   /* asks the thread to return */
    hfsb_call            *command;  /* of the session's tools; NULL: of the
                                       program's and remote ones */
    hfsbi_mcp_blocks      blocks;   /* the result */
    hfsbi_mcp_shared      shared;
};

/* Releases a hold on a message; the last one frees it. */
HFSBI_FN void hfsbi_mcp_input_release(hfsb_mcp *mcp, hfsbi_mcp_input *input);

/* Returns true when the call is of that tool. */
HFSBI_FN bool hfsbi_mcp_call_is(const hfsb_mcp_call *call, const char *tool);

/* Starts the call that a message asks for; the tool is offered. HFSB_OK: the
   channel gets an answer, maybe at once. HFSB_NOMEM: nothing was started. */
HFSBI_FN hfsb_status hfsbi_mcp_call_start(hfsbi_mcp_channel       *channel,
                                          const hfsbi_mcp_message *m,
                                          const hfsbi_mcp_tool    *own,
                                          hfsbi_mcp_input         *input);
/* Adds the event of a call that is refused before its tool sees it. */
HFSBI_FN void hfsbi_mcp_report_refused(const hfsbi_mcp_session *session,
                                       hfsb_str                 tool,
                                       const hfsb_json_value   *arguments,
                                       const char              *sentence);
/* Cancels the calls of a session with that id. */
HFSBI_FN void hfsbi_mcp_call_cancel(hfsbi_mcp_session     *session,
                                    const hfsb_json_value *id);
/* The channel can send nothing more. Its calls continue unanswered, or with
   cancel they are stopped and their commands killed. */
HFSBI_FN void hfsbi_mcp_calls_detach(hfsbi_mcp_channel *channel, bool cancel);
/* The server stops: cancels the calls in threads, with `all` every call. */
HFSBI_FN void hfsbi_mcp_calls_stop(hfsb_mcp *mcp, bool all);

/* Keeps the end of a command's output for progress messages. Any thread. */
HFSBI_FN void hfsbi_mcp_call_printed(void *user, hfsb_proc_stream stream,
                                     hfsb_str text);
/* Returns why the call must stop. Any thread. */
HFSBI_FN hfsbi_mcp_stop hfsbi_mcp_call_stop(hfsb_mcp_call *call);

/* ---- channel.c ---- */

/* Serves a message or a batch: text as it came, moved out of *text. */
HFSBI_FN void hfsbi_mcp_receive(hfsbi_mcp_channel *channel, hfsb_buf *text,
                                const hfsbi_mcp_head *head);

/* Answers a text that is not served with an error that has no id. */
HFSBI_FN void hfsbi_mcp_reject(hfsbi_mcp_channel *channel, int code,
                               int status, const char *sentence);

/* ---- stdio.c ---- */

/* Ends as at the end of input; at_once: without time for quick calls. */
HFSBI_FN void hfsbi_mcp_stdio_end(struct hfsbi_mcp_stdio *stdio, bool at_once);
HFSBI_FN bool hfsbi_mcp_stdio_ended(const struct hfsbi_mcp_stdio *stdio);
HFSBI_FN void hfsbi_mcp_stdio_free(struct hfsbi_mcp_stdio *stdio);

/* ---- http.c ---- */

/* Adds the route for POST or DELETE. Returns as hfsb_server_add(). */
HFSBI_FN hfsb_status hfsbi_mcp_route(hfsb_mcp *mcp, const char *method,
                                     const char *path, hfsb_err *err);
