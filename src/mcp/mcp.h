#pragma once

/* ==== MCP: the tools for hosts of the Model Context Protocol ============ */

#include "../server/server.h"
#include "../hub/session.h"

/* MCP on a server: over a pair of descriptors (stdio), over POST /mcp, or
   both. It serves all revisions of the protocol from 2024-11-05 to 2026-07-28
   at the same time, message by message. It offers the tools of this machine or
   of a session, and those that the program adds. Freed with the server. */
typedef struct hfsb_mcp hfsb_mcp;

typedef struct hfsb_mcp_opts {
    const char            *name;  /* of the server, for hosts (NULL: "hfsb") */
    const char            *title; /* for people (NULL: none) */
    const char            *version;      /* (NULL: that of the library) */
    hfsb_str               instructions; /* for the model, appended to ours */
    const hfsb_tools_opts *tools; /* of the local tools (NULL: the defaults).
                                 Each client session has its own tools; in it
                                 a file must be read before it is changed.
                                 no_imports is set when bash is not offered;
                                 `who` becomes "mcp:NAME" when the client gives
                                 its name. The journal also gets the calls of
                                 added tools and those in a sandbox */
    bool                   no_tools;  /* offer only tools that are added */
    bool                   read_only; /* offer only tools that change nothing:
                                 of the added ones those whose annotations have
                                 readOnlyHint true */
    hfsb_str    only; /* names of the built-in tools to offer, separated by
                      commas (empty: all but exists and edit_lines), or the
                      name of a set: claude, gpt, small; an unknown name is
                      HFSB_ARG. Added tools are always offered */
    const char *path; /* of the route (NULL: "/mcp"; "": no route) */
    long long   answer_ms;   /* a call that takes longer is answered with its
                            output so far and a job to ask later (0: 50,000);
                            added tools have no such limit */
    long long   beat_ms;     /* between progress notifications (0: 5,000) */
    long long   grace_ms;    /* between SIGTERM and SIGKILL at the end of stdio
                            (0: 500) */
    size_t      max_message; /* bytes of one message (0: 32 MiB) */
    size_t      max_result;  /* bytes of text in a built-in tool's result, in a
                            tenth as many lines (0: 20,000; at least 4,000):
                            hosts cut longer results, and with them what the
                            model needs next */
    bool        logging;     /* clients may ask for lines of hfsb_mcp_log() */
} hfsb_mcp_opts;

/* Adds MCP to a server, before it serves. opts may be NULL; its texts and
   lists are copied as by hfsb_tools_open(). HFSB_OK; HFSB_ARG; otherwise as
   hfsb_tools_open() and hfsb_server_add(). On failure *out is NULL and the
   server is unchanged, but after HFSB_NOMEM it can only be closed. */
HFSB_API hfsb_status hfsb_server_add_mcp(hfsb_server         *server,
                                         const hfsb_mcp_opts *opts,
                                         hfsb_mcp **out, hfsb_err *err);

/* The local tools; those of sessions have the same options. NULL with
   no_tools. */
HFSB_API const hfsb_tools *hfsb_mcp_tools(const hfsb_mcp *mcp);

#ifdef HFSB_HUB
/* Offers the tools of a session instead of the local ones, before the server
   serves. The session must not use the local runtime, else HFSB_ARG, and must
   exist until the server is closed. HFSB_OK; HFSB_NOMEM: close the server. */
HFSB_API hfsb_status hfsb_mcp_use_session(hfsb_mcp *mcp, hfsb_session *session,
                                          hfsb_err *err);
#endif

/* Serves one client over descriptors (pipes, sockets, files, a terminal), one
   message per line. Both stay the caller's, and their O_NONBLOCK is not
   changed. HFSB_OK; HFSB_ARG on a second call; HFSB_NOMEM, HFSB_IO.

   At the end of input the server stops: calls have 200 ms to finish, then they
   are cancelled, and commands and all processes they left are killed. Slow
   work is not waited for, but hfsb_server_close() waits for threads that are
   in a function of the program. */
HFSB_API hfsb_status hfsb_mcp_stdio(hfsb_mcp *mcp, int in, int out,
                                    hfsb_err *err);

/* ---- tools of the program ---- */

/* One call of such a tool: for its function, in the thread it runs in. */
typedef struct hfsb_mcp_call hfsb_mcp_call;

typedef struct hfsb_mcp_tool {
    const char *name;        /* letters, digits, _ and -; up to 64 */
    const char *title;       /* for people (NULL: none) */
    const char *description; /* for the model */
    const char *schema;      /* of the arguments, a JSON object (NULL: there
                                are none). It only informs the model: fn must
                                check the arguments; hfsb_json_arg_int() and
                                the like help */
    const char *annotations; /* a JSON object such as {"readOnlyHint":true}
                                (NULL: the tool may change anything) */
    /* Does the work and reports its result with the functions below; if it
       calls none, the result is "(no output)". Runs in a thread of the server,
       may block, and may run several times at once: max_threads of
       hfsb_server_opts limits it, together with the file tools. Many hosts
       give up after a minute. arguments is an object that lives until fn
       returns. */
    void (*fn)(void *user, hfsb_mcp_call *call,
               const hfsb_json_value *arguments);
    void *user;
} hfsb_mcp_tool;

/* Adds a tool, before the server serves. Texts are copied. HFSB_OK, even for a
   tool that read_only leaves out; HFSB_ARG for a bad or taken name and for a
   schema that is not an object; HFSB_NOMEM. */
HFSB_API hfsb_status hfsb_mcp_add_tool(hfsb_mcp            *mcp,
                                       const hfsb_mcp_tool *tool,
                                       hfsb_err            *err);

/* Add a block to the result. data is bytes and is sent as base64. When there
   is no memory for a block, the whole call fails. */
HFSB_API void hfsb_mcp_text(hfsb_mcp_call *call, const char *format, ...)
    HFSBI_PRINTF(2, 3);
HFSB_API void hfsb_mcp_str(hfsb_mcp_call *call, hfsb_str text);
HFSB_API void hfsb_mcp_image(hfsb_mcp_call *call, const char *mime_type,
                             hfsb_str data);
HFSB_API void hfsb_mcp_audio(hfsb_mcp_call *call, const char *mime_type,
                             hfsb_str data);
HFSB_API void hfsb_mcp_resource(hfsb_mcp_call *call, hfsb_str uri,
                                const char *mime_type, hfsb_str text);
/* Marks the call as failed; the text should name the next step. */
HFSB_API void hfsb_mcp_fail(hfsb_mcp_call *call, const char *format, ...)
    HFSBI_PRINTF(2, 3);
/* Sends progress if the client asked for it. Numbers that do not grow are
   dropped; total 0: unknown; message may be "". */
HFSB_API void hfsb_mcp_progress(hfsb_mcp_call *call, double progress,
                                double total, const char *message);
/* Sends a log line if the client asked for its level: "debug", "info",
   "notice", "warning", "error", "critical", "alert", "emergency". */
HFSB_API void hfsb_mcp_log(hfsb_mcp_call *call, const char *level,
                           hfsb_str text);
/* Is set when the result is no longer wanted and when the server stops: a slow
   function should check it from time to time. Lives until fn returns. */
HFSB_API const hfsb_cancel *hfsb_mcp_cancel(const hfsb_mcp_call *call);
