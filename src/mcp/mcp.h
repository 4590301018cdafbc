#pragma once

/* ==== MCP: the tools for hosts of the Model Context Protocol ============ */

#include "../server/server.h"
#include "../remote/session.h"

/* On a server: over a pair of descriptors (stdio), over POST /mcp, or both.
   All revisions of the protocol from 2024-11-05 to 2026-07-28 are spoken at
   once, message by message. It offers the tools of this machine or of a
   session, and those that the program adds. Lives as long as the server. */
typedef struct hfsb_mcp hfsb_mcp;

typedef struct hfsb_mcp_opts {
    const char *name;             /* of the server, for hosts (NULL: "hfsb") */
    const char *title;            /* (NULL: none) */
    const char *version;          /* (NULL: that of the library) */
    hfsb_str    instructions;     /* for the model, behind our own sentences */
    const hfsb_tools_opts *tools; /* of this machine's (NULL: the defaults);
                                 each session of a client has its own, in
                                 which a file must be read before it is
                                 changed; no_imports is set when bash is not
                                 offered */
    bool                   no_tools;  /* none but those that are added */
    bool                   read_only; /* only those that change nothing; of
                                 the program's own those whose annotations
                                 say readOnlyHint true */
    hfsb_str only; /* names of the tools to offer, commas between (empty: all
                      but exists); an unknown one is HFSB_ARG. Those that are
                      added are offered besides, and not named here */
    const char *path;        /* of the route (NULL: "/mcp"; "": no route) */
    long long   answer_ms;   /* a call that takes longer is answered with what
                            there is, and a job to ask later (0: 50,000); one
                            of the program's own tools is waited for */
    long long   beat_ms;     /* between progress notifications (0: 5,000) */
    long long   grace_ms;    /* at the end of stdio, between TERM and KILL
                            (0: 500) */
    size_t      max_message; /* bytes that one may have (0: 32 MiB) */
    bool        logging;     /* clients may ask for what hfsb_mcp_log() says */
} hfsb_mcp_opts;

/* HFSB_OK; HFSB_ARG; as hfsb_tools_open() and hfsb_server_add(). opts may be
   NULL; what it points to is copied, as far as hfsb_tools_open() does. */
HFSB_API hfsb_status hfsb_server_add_mcp(hfsb_server         *server,
                                         const hfsb_mcp_opts *opts,
                                         hfsb_mcp **out, hfsb_err *err);

/* The tools are those of a session, which must stay until the server is
   closed: for its sandbox runtime. Before it serves. */
HFSB_API hfsb_status hfsb_mcp_use_session(hfsb_mcp *mcp, hfsb_session *session,
                                          hfsb_err *err);

/* Serves one client over descriptors (pipes, sockets, files, a terminal), a
   message a line; both stay the caller's and blocking or not as they are. When
   the input ends the server stops: calls under way have 200 ms to end, then
   they are cancelled, commands and all they left behind are killed, without
   waiting for what is slow; but hfsb_server_close() waits for threads that
   are in a function of the program's own. Once. */
HFSB_API hfsb_status hfsb_mcp_stdio(hfsb_mcp *mcp, int in, int out,
                                    hfsb_err *err);

/* ---- tools of the program's own ---- */

/* One call of such a tool, for its function alone, in the thread that it runs
   in. */
typedef struct hfsb_mcp_call hfsb_mcp_call;

typedef struct hfsb_mcp_tool {
    const char *name;        /* letters, digits, _ and -; up to 64 */
    const char *title;       /* for people (NULL: none) */
    const char *description; /* for the model */
    const char *schema;      /* of its arguments, a JSON object (NULL: it
                                takes none): what the model is told. It is
                                fn that checks them, hfsb_json_arg_int() and
                                the others help */
    const char *annotations; /* a JSON object, {"readOnlyHint":true} (NULL: it
                                may change anything) */
    /* Does the work and says what came of it with the functions below. It runs
       in a thread of the server, may block, and may run several times at once:
       max_threads of hfsb_server_opts, which tools for files share. Many hosts
       give up after a minute. arguments is an object, and gone when it
       returns. Saying nothing is "(no output)". */
    void (*fn)(void *user, hfsb_mcp_call *call,
               const hfsb_json_value *arguments);
    void *user;
} hfsb_mcp_tool;

/* Before it serves. Texts are copied. HFSB_OK also for one that read_only
   leaves out; HFSB_ARG for a name that is none or is taken and for a schema
   that is no object; HFSB_NOMEM. */
HFSB_API hfsb_status hfsb_mcp_add_tool(hfsb_mcp            *mcp,
                                       const hfsb_mcp_tool *tool,
                                       hfsb_err            *err);

/* Blocks of the result, in order. Without memory the call fails as a whole.
   Data is bytes; it is sent in base64. */
HFSB_API void hfsb_mcp_text(hfsb_mcp_call *call, const char *format, ...)
    HFSBI_PRINTF(2, 3);
HFSB_API void hfsb_mcp_str(hfsb_mcp_call *call, hfsb_str text);
HFSB_API void hfsb_mcp_image(hfsb_mcp_call *call, const char *mime_type,
                             hfsb_str data);
HFSB_API void hfsb_mcp_audio(hfsb_mcp_call *call, const char *mime_type,
                             hfsb_str data);
HFSB_API void hfsb_mcp_resource(hfsb_mcp_call *call, hfsb_str uri,
                                const char *mime_type, hfsb_str text);
/* The call failed: a text that tells the model what to do, as in printf. */
HFSB_API void hfsb_mcp_fail(hfsb_mcp_call *call, const char *format, ...)
    HFSBI_PRINTF(2, 3);
/* For a client that wants to know: progress must grow; total 0 is unknown;
   message may be "". */
HFSB_API void hfsb_mcp_progress(hfsb_mcp_call *call, double progress,
                                double total, const char *message);
/* A line for the client's log, when it wants those of this level: "debug",
   "info", "notice", "warning", "error", "critical", "alert", "emergency". */
HFSB_API void hfsb_mcp_log(hfsb_mcp_call *call, const char *level,
                           hfsb_str text);
/* Set when nobody waits for the result any more, and when the server ends: a
   function that takes long looks at it now and then. Good until fn returns. */
HFSB_API const hfsb_cancel *hfsb_mcp_cancel(const hfsb_mcp_call *call);
