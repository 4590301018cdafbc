#pragma once

#include "../tools/tools_private.h"
#include "../remote/remote_private.h"
#include "../server/server_private.h"
#include "mcp.h"

/* The inside of MCP on a server. Private to server_mcp*.c.

       bytes -> server_mcp_stdio, server_mcp_http: a document and its head
             -> server_mcp_message: what it says, or what is wrong with it
             -> server_mcp: the method; a tool call becomes a
                server_mcp_call, which runs in the loop (commands), in a
                thread (files, tools of the program, a session)
             -> server_mcp_show: the result as blocks
             -> server_mcp_reply: the message, back through the channel

   All of it belongs to the thread that serves, but for what is marked
   otherwise. The pure parts (message, reply, list, show) touch no OS. */

#define HFSBI_MCP_MODERN "2026-07-28"
#define HFSBI_MCP_LATEST "2025-11-25" /* of the legacy ones */

enum {
    HFSBI_MCP_ANSWER_MS = 50000,
    HFSBI_MCP_BEAT_MS = 5000,
    HFSBI_MCP_FIRST_BEAT_MS = 2000,
    HFSBI_MCP_GRACE_MS = 500,
    HFSBI_MCP_MESSAGE = 32 * 1024 * 1024,
    HFSBI_MCP_TEXT = 45000, /* characters of a result; hosts take 50,000 */
    HFSBI_MCP_IMAGE = 5 * 1024 * 1024, /* bytes of base64 */
    HFSBI_MCP_SESSIONS = 64,
    HFSBI_MCP_SESSION_MS = 60 * 60 * 1000, /* unused, it is forgotten */
    HFSBI_MCP_SILENT = 8,                  /* above every level of a log */
    HFSBI_MCP_BATCH = 100,                 /* messages in one */
    HFSBI_MCP_LONG = 1 << 20,    /* bytes from which on values are counted */
    HFSBI_MCP_VALUES = 200000,   /* in one message, when it is long */
    HFSBI_MCP_CALLS = 512,       /* at once; what is more is refused */
    HFSBI_MCP_TAIL = 4096,       /* bytes of a command's output, for beats */
    HFSBI_MCP_SAID = 1024 * 1024 /* bytes of notifications of one call */
};

/* Codes of JSON-RPC and of MCP. */
enum {
    HFSBI_MCP_PARSE = -32700,
    HFSBI_MCP_INVALID = -32600,
    HFSBI_MCP_NO_METHOD = -32601,
    HFSBI_MCP_PARAMS = -32602,
    HFSBI_MCP_INTERNAL = -32603,
    HFSBI_MCP_HEADER = -32020,
    HFSBI_MCP_CAPABILITY = -32021,
    HFSBI_MCP_VERSION = -32022
};

/* ---- server_mcp_message.c (pure): what a message says ---- */

/* What came with it. A field that is absent has a NULL ptr. */
typedef struct hfsbi_mcp_head {
    bool     http;
    hfsb_str version, method, name; /* MCP-Protocol-Version, Mcp-Method,
                                       Mcp-Name */
} hfsbi_mcp_head;

typedef enum hfsbi_mcp_kind {
    HFSBI_MCP_REQUEST,
    HFSBI_MCP_NOTIFICATION,
    HFSBI_MCP_RESPONSE, /* to nothing that we asked: ignored */
    HFSBI_MCP_FAULT     /* code, status, err, data: to be answered so */
} hfsbi_mcp_kind;

typedef enum hfsbi_mcp_method {
    HFSBI_MCP_OTHER, /* of a notification that is ignored */
    HFSBI_MCP_INITIALIZE,
    HFSBI_MCP_PING,
    HFSBI_MCP_DISCOVER,
    HFSBI_MCP_LIST,
    HFSBI_MCP_CALL,
    HFSBI_MCP_SET_LEVEL, /* logging/setLevel */
    HFSBI_MCP_CANCELLED  /* notifications/cancelled */
} hfsbi_mcp_method;

typedef struct hfsbi_mcp_message {
    hfsbi_mcp_kind         kind;
    hfsbi_mcp_method       method;
    bool                   modern;
    const hfsb_json_value *id;     /* of a request or fault; NULL: null */
    const hfsb_json_value *params; /* an object, or NULL */
    const hfsb_json_value *token;  /* of progress, or NULL */
    hfsb_str version;   /* that the message names, else ""; static texts or
                           bytes of the document or head */
    hfsb_str log_level; /* modern, else "" */
    hfsb_str tool;      /* of tools/call */
    const hfsb_json_value *arguments; /* ... an object, or NULL; one that came
                                         as a string of JSON is a fault that
                                         the caller sees as a result: see
                                         bad_arguments */
    bool                   bad_arguments; /* `arguments` is no object */
    const hfsb_json_value *target;        /* of cancelled: the id */
    int                    code;          /* of a fault */
    int                    status;        /* ... of HTTP */
    hfsb_err               err;           /* ... its sentence */
} hfsbi_mcp_message;

/* Reads one message, in the order of checks of the newest revision. root may
   be anything, but for an array (see batches in server_mcp.c). logging: that
   method exists. */
HFSBI_FN void hfsbi_mcp_read(const hfsb_json_value *root,
                             const hfsbi_mcp_head *head, bool logging,
                             hfsbi_mcp_message *out);

/* True when text is one of the revisions; *modern tells which era. */
HFSBI_FN bool hfsbi_mcp_version_known(hfsb_str text, bool *modern);

/* 0 for "debug" to 7 for "emergency"; -1: none. */
HFSBI_FN int hfsbi_mcp_level(hfsb_str name);

/* True when two ids (or tokens) are the same, by type, too. */
HFSBI_FN bool hfsbi_mcp_same_id(const hfsb_json_value *a, hfsb_str b_text);

/* ---- server_mcp_reply.c (pure): messages to a client ----
   Each appends one line of JSON without a line feed; HFSB_OK, or HFSB_NOMEM
   with *out as it was. id is JSON text as hfsbi_mcp_id_text() writes it. */

/* What stays the same for all replies. */
typedef struct hfsbi_mcp_about {
    hfsb_buf name, title, version, instructions;
    hfsb_buf tools; /* the list, a JSON array */
    bool     logging;
} hfsbi_mcp_about;

/* An id or a token as JSON text; "null" for NULL. */
HFSBI_FN hfsb_status hfsbi_mcp_id_text(const hfsb_json_value *id,
                                       hfsb_buf              *out);

HFSBI_FN hfsb_status hfsbi_mcp_put_fault(const hfsbi_mcp_message *m,
                                         hfsb_buf                *out);
HFSBI_FN hfsb_status hfsbi_mcp_put_error(hfsb_str id, int code,
                                         hfsb_str sentence, hfsb_buf *out);
HFSBI_FN hfsb_status hfsbi_mcp_put_empty(hfsb_str id, hfsb_buf *out);
/* version: what the client asked for. */
HFSBI_FN hfsb_status hfsbi_mcp_put_initialize(const hfsbi_mcp_about *about,
                                              hfsb_str id, hfsb_str version,
                                              hfsb_buf *out);
HFSBI_FN hfsb_status hfsbi_mcp_put_discover(const hfsbi_mcp_about *about,
                                            hfsb_str id, hfsb_buf *out);
HFSBI_FN hfsb_status hfsbi_mcp_put_list(const hfsbi_mcp_about *about,
                                        hfsb_str id, bool modern,
                                        hfsb_buf *out);
/* blocks: as hfsbi_mcp_blocks holds them. */
HFSBI_FN hfsb_status hfsbi_mcp_put_result(const hfsbi_mcp_about *about,
                                          hfsb_str id, bool modern,
                                          hfsb_str blocks, bool is_error,
                                          hfsb_buf *out);
/* total 0 and message "" are left out. */
HFSBI_FN hfsb_status hfsbi_mcp_put_progress(hfsb_str token, double progress,
                                            double total, hfsb_str message,
                                            hfsb_buf *out);
HFSBI_FN hfsb_status hfsbi_mcp_put_log(const char *level, hfsb_str text,
                                       hfsb_buf *out);

/* ---- server_mcp_show.c (pure): a result as blocks ---- */

/* Blocks of a result as JSON, commas between them. */
typedef struct hfsbi_mcp_blocks {
    hfsb_buf    json;
    bool        is_error;
    hfsb_status status; /* HFSB_NOMEM: some are missing */
} hfsbi_mcp_blocks;

HFSBI_FN void hfsbi_mcp_add_text(hfsbi_mcp_blocks *b, hfsb_str text);
/* type: "image" or "audio"; data is base64 already. */
HFSBI_FN void hfsbi_mcp_add_data(hfsbi_mcp_blocks *b, const char *type,
                                 hfsb_str mime_type, hfsb_str data);
HFSBI_FN void hfsbi_mcp_add_resource(hfsbi_mcp_blocks *b, hfsb_str uri,
                                     hfsb_str mime_type, hfsb_str text);

/* What a tool of ours gave, for a model: its text, cut to HFSBI_MCP_TEXT
   characters at the end of a line with how to read on, and behind it a line
   in brackets with those added keys that a model needs: of read which lines
   of how many these are when that is not all; of bash_output whether it runs,
   its exit code, next_offset; of bash what is left running. A failure has at
   most some 10,000 characters, its middle left out. An image (keys data,
   mime_type) becomes an image block. */
HFSBI_FN void hfsbi_mcp_show(hfsb_str tool, const hfsb_tool_result *result,
                             hfsbi_mcp_blocks *out);

/* A command that is still running when the client's patience ends: `so_far`
   is the result of bash_output for the job. */
HFSBI_FN void hfsbi_mcp_show_running(hfsb_str job, long long seconds,
                                     const hfsb_tool_result *so_far,
                                     hfsbi_mcp_blocks       *out);

/* The last line that has something in it, its first 120 characters: for
   progress. */
HFSBI_FN hfsb_str hfsbi_mcp_last_line(hfsb_str text);

/* ---- server_mcp_list.c (pure): the tools that are offered ---- */

typedef struct hfsbi_mcp_choice {
    bool     read_only; /* readOnlyHint is true, and it is not bash_output */
    hfsb_str only;      /* names, commas between; empty: all but exists */
} hfsbi_mcp_choice;

/* Appends to *list (a JSON array, or empty) those of `all` (a JSON array of
   definitions) that are chosen. HFSB_ARG when `only` names one that is not in
   it. */
HFSBI_FN hfsb_status hfsbi_mcp_choose(hfsb_str                all,
                                      const hfsbi_mcp_choice *choice,
                                      hfsb_buf *list, hfsb_err *err);
/* Appends the definition of a tool of the program's own. */
HFSBI_FN hfsb_status hfsbi_mcp_define(const hfsb_mcp_tool *tool,
                                      hfsb_buf *list, hfsb_err *err);
/* Whether the list has a tool of that name. */
HFSBI_FN bool hfsbi_mcp_lists(hfsb_str list, hfsb_str name);

/* ---- server_mcp.c: the state ---- */

/* What a client calls one session: over stdio the connection; over HTTP those
   requests with the same Mcp-Session-Id, or with none. It holds the commands
   and the files that were read. */
typedef struct hfsbi_mcp_session {
    struct hfsbi_mcp_session *next;
    hfsb_mcp                 *mcp;
    hfsb_buf                  id;      /* "": the one without */
    bool                      unnamed; /* of stdio: no id leads to it */
    hfsb_tools               *tools;   /* NULL until the first call, and with a
                                        session of the caller's */
    hfsbi_source              source;  /* drives the tools */
    hfsbi_plan                plan;
    char                      version[16]; /* that initialize agreed on */
    int                       log_level;   /* legacy, or HFSBI_MCP_SILENT */
    size_t                    users;       /* channels and calls */
    long long                 used;        /* when, last */
} hfsbi_mcp_session;

/* Where the messages of one client go; part of its owner, and gone with it
   (see gone), but not before receive() has returned. stdio has one; over HTTP
   each request has its own. */
typedef struct hfsbi_mcp_channel {
    hfsb_mcp          *mcp;
    hfsbi_mcp_session *session;
    /* The answer to a request; called once for each that receive() counted,
       maybe before it returns; the channel may be gone then. status is that
       for HTTP. *message is taken over or left; it is empty with 503, when
       there was no memory for it, and with 0: the request was cancelled, and
       is not answered. */
    void (*reply)(struct hfsbi_mcp_channel *channel, int status,
                  hfsb_buf *message);
    /* A notification on the way to an answer; may be dropped. */
    void (*notify)(struct hfsbi_mcp_channel *channel, hfsb_str message);
    bool can_notify; /* else no progress is made */
} hfsbi_mcp_channel;

/* A message with all that belongs to it; kept while a call uses it. */
typedef struct hfsbi_mcp_input {
    hfsb_buf      text; /* decoded where it stands */
    hfsb_json_doc doc;
    size_t        users;
} hfsbi_mcp_input;

struct hfsb_mcp {
    hfsbi_server_part     part; /* first: it is found by it */
    hfsb_server          *server;
    hfsbi_loop           *loop;
    hfsb_alloc            alloc;
    hfsbi_mcp_about       about;
    hfsb_tools_opts       tools_opts; /* what it points to is in: */
    hfsb_buf              texts;
    const char          **lists;
    size_t                list_count;
    hfsb_tools_check     *checks;
    hfsb_tools           *spare; /* opened to see whether that can be done; for
                                 the first session */
    hfsbi_mcp_choice      choice;
    hfsb_buf              only; /* its text */
    hfsb_buf              more; /* instructions of the program */
    bool                  no_tools;
    long long             answer_ms, beat_ms, grace_ms;
    size_t                max_message;
    hfsb_mcp_tool        *own; /* tools of the program, texts copied */
    size_t                own_count, own_cap;
    hfsb_json_doc         nothing; /* {}: arguments that are absent */
    hfsbi_mcp_session    *sessions;
    struct hfsb_mcp_call *calls; /* newest first */
    size_t                call_count;
    size_t                working; /* of them, in threads */
    struct hfsbi_mcp_stdio *stdio;
    bool                    ended; /* nothing is begun any more */
    /* set by hfsb_mcp_use_session(), so that a program that does not call it
       does not carry sessions and the Hub: */
    hfsb_session *remote;
    void (*run_remote)(struct hfsb_mcp_call *call); /* in a thread */
    /* In the loop, when patience ends. True: the call goes on by itself, and
       is answered with *out now; it stays, without a channel, until its thread
       is done. False (or NULL): end becomes PATIENCE, then its cancel is set,
       and again after each beat, until the thread is done. */
    bool (*late_remote)(struct hfsb_mcp_call *call, hfsbi_mcp_blocks *out);
};

/* A message (text as it came; moved out of *text) for this channel. Gives how
   many times `reply` was called or will be: 0 for notifications. */
HFSBI_FN size_t hfsbi_mcp_receive(hfsbi_mcp_channel *channel, hfsb_buf *text,
                                  const hfsbi_mcp_head *head);

/* Nothing can be sent there any more. cancel: whoever asked has no use for
   the answers, so that commands are killed; else calls go on to their end. */
HFSBI_FN void hfsbi_mcp_gone(hfsbi_mcp_channel *channel, bool cancel);

HFSBI_FN void hfsbi_mcp_input_release(hfsb_mcp *mcp, hfsbi_mcp_input *input);

/* The tools that are offered: those of `all` (definitions, a JSON array) that
   were chosen, then those of the program. Before it serves. */
HFSBI_FN hfsb_status hfsbi_mcp_offer(hfsb_mcp *mcp, hfsb_str all,
                                     hfsb_err *err);
/* The instructions: ours, then those of the program. HFSB_OK, HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_mcp_instruct(hfsb_mcp *mcp, hfsb_str ours);

/* ---- server_mcp_session.c ---- */

/* The session of that name, made if need be and held until released; NULL
   without memory, or when all HFSBI_MCP_SESSIONS are in use. */
HFSBI_FN hfsbi_mcp_session *hfsbi_mcp_session_hold(hfsb_mcp *mcp, hfsb_str id);
/* A new one that no id leads to. */
HFSBI_FN hfsbi_mcp_session *hfsbi_mcp_session_new(hfsb_mcp *mcp);
HFSBI_FN void hfsbi_mcp_session_release(hfsbi_mcp_session *session);
/* How many commands run or wait, in all sessions. */
HFSBI_FN size_t hfsbi_mcp_sessions_busy(const hfsb_mcp *mcp);
/* Asks all commands to end, without waiting. */
HFSBI_FN void hfsbi_mcp_sessions_end(hfsb_mcp *mcp);
/* hfsbi_tools_sweep() of all. */
HFSBI_FN size_t hfsbi_mcp_sessions_sweep(hfsb_mcp *mcp, bool hard);
/* Frees all; at_once: without grace for what still runs. No call is left. */
HFSBI_FN void hfsbi_mcp_sessions_free(hfsb_mcp *mcp, bool at_once);

/* Copies the options of the tools, once they were found good; HFSB_OK,
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_mcp_keep_opts(hfsb_mcp              *mcp,
                                         const hfsb_tools_opts *opts);
HFSBI_FN void        hfsbi_mcp_drop_opts(hfsb_mcp *mcp);

/* ---- server_mcp_call.c: one call of a tool ---- */

typedef enum hfsbi_mcp_end { /* why it is to end early */
                             HFSBI_MCP_GOES_ON,
                             HFSBI_MCP_PATIENCE, /* it is answered with what there is */
                             HFSBI_MCP_ABANDONED, /* nobody wants it: no answer, commands are killed */
                             HFSBI_MCP_ENDED /* the same, since the server ends */
} hfsbi_mcp_end;

/* While it is in a thread, that thread alone uses what is marked T. */
struct hfsb_mcp_call {
    hfsbi_task             task;  /* first: it is found by it */
    hfsbi_timer            timer; /* beats, and the end of patience */
    struct hfsb_mcp_call  *next, *prev;
    hfsb_mcp              *mcp;
    hfsbi_mcp_session     *session;   /* held */
    hfsbi_mcp_channel     *channel;   /* NULL: gone, answered or abandoned */
    hfsbi_mcp_input       *input;     /* held; NULL: not needed any more */
    hfsb_buf               id, token; /* JSON text; token "": none */
    hfsb_str               tool;
    const hfsb_json_value *arguments; /* T: an object */
    const hfsb_mcp_tool   *own;       /* a tool of the program, or NULL */
    bool                   modern, in_thread;
    bool                   notifies;  /* the channel can */
    bool                   bare;      /* progress has no message yet in this
                                       revision */
    int                    log_level; /* from which on it wants to hear */
    long long              began, next_beat;
    long long              until;  /* patience ends; -1: never */
    hfsb_cancel           *cancel; /* of what runs in a thread: a tool of the
                                     program, a session's */
    hfsb_call             *call;   /* of a command here */
    char                   job[HFSBI_JOB_ID]; /* T: of a command there */
    hfsbi_mcp_blocks       blocks;            /* T: the result */
    pthread_mutex_t        lock;              /* of all that follows: */
    hfsbi_mcp_end          end;
    hfsb_buf               said; /* notifications, a line each */
    hfsb_buf               tail; /* the end of what a command printed */
    double                 progress, total; /* told last */
    bool                   told;            /* some progress, */
    bool                   spoke;           /* by the tool itself */
    bool                   speaking;        /* speak is on its way: */
    hfsbi_task             speak; /* brings what is said to the loop */
};

/* Begins a call that the message asks for; the tool exists. HFSB_NOMEM: it was
   not begun. */
HFSBI_FN hfsb_status hfsbi_mcp_call_start(hfsbi_mcp_channel       *channel,
                                          const hfsbi_mcp_message *m,
                                          hfsbi_mcp_input         *input);
/* The client cancels the call with that id. */
HFSBI_FN void hfsbi_mcp_call_cancel(hfsbi_mcp_session     *session,
                                    const hfsb_json_value *id);
/* The server ends: what is in threads is told so; with `all` the rest is
   abandoned, too. */
HFSBI_FN void hfsbi_mcp_calls_end(hfsb_mcp *mcp, bool all);
/* True when one of them is to be answered there. */
HFSBI_FN bool hfsbi_mcp_calls_wait(const hfsbi_mcp_channel *channel);

/* What a command printed, for the messages of progress. From any thread. */
HFSBI_FN void hfsbi_mcp_call_text(hfsb_mcp_call *call, hfsb_str text);
/* A notification, sent in the order of these calls and before the answer; may
   be dropped. Only from the call's thread; under its lock. */
HFSBI_FN void hfsbi_mcp_call_say(hfsb_mcp_call *call, hfsb_str message);

/* ---- server_mcp_tool.c: tools of the program ---- */

/* The one of that name, or NULL. */
HFSBI_FN const hfsb_mcp_tool *hfsbi_mcp_own(const hfsb_mcp *mcp,
                                            hfsb_str        name);
HFSBI_FN void                 hfsbi_mcp_own_free(hfsb_mcp *mcp);

/* ---- server_mcp_remote.c: calls of a session, in a thread ---- */
/* (hfsb_mcp_use_session() and what it sets) */

/* ---- server_mcp_stdio.c ---- */

/* It ends as with the end of its input; at once: without waiting for calls
   that are quick. */
HFSBI_FN void hfsbi_mcp_stdio_end(struct hfsbi_mcp_stdio *stdio, bool at_once);
HFSBI_FN bool hfsbi_mcp_stdio_ended(const struct hfsbi_mcp_stdio *stdio);
HFSBI_FN void hfsbi_mcp_stdio_free(struct hfsbi_mcp_stdio *stdio);

/* ---- server_mcp_http.c ---- */
HFSBI_FN hfsb_status hfsbi_mcp_route(hfsb_mcp *mcp, const char *path,
                                     hfsb_err *err);
