#pragma once

/* ==== SANDBOX: tools on another machine ================================= */

#include "../net/net.h"
#include "../tools/tools.h"

/* Receives one line of a log, without a line end. It never contains a token or
   a secret. */
typedef void (*hfsb_log_fn)(void *user, hfsb_str line);

/* A sandbox: a machine that runs hfsb-server (or the Python server of
   ml-intern, called the reference here, or with `protocol` another) at any
   URL; with HFSB_HUB also a Space on the Hub. Any number of threads may use
   one handle; delete and close must come last. */
typedef struct hfsb_sandbox hfsb_sandbox;

/* The protocol of a server at a URL, if not /api. A program links only the
   protocols that it names. */
typedef struct hfsb_protocol hfsb_protocol;

/* HF's /v1, protocol 1 to 3 (HF's sbx-server). bash, kill, read, write, edit,
   multi_edit, edit_lines, apply_patch and exists work; edits are made here, so
   this links the local tools. See docs/remote.md for what is guaranteed. */
HFSB_API const hfsb_protocol *hfsb_protocol_v1(void);

/* Times, all in milliseconds; 0 is the default in parentheses. Programs rarely
   need to set them; tests do. */
typedef struct hfsb_sandbox_times {
    long long delay_ms; /* before try n + 1 of a call: n times this (3,000) */
    long long connect_ms;  /* for a connection (30,000) */
    long long margin_ms;   /* a call may take this much longer than its command
                              (30,000) */
    long long wait_ms;     /* for a new Space to start (600,000) */
    long long poll_ms;     /* between two checks of its stage (5,000) */
    long long api_wait_ms; /* for the server to answer (180,000; in connect
                              60,000; in connect_url 3,000 while nothing
                              accepts a connection there, unless it is a URL
                              of the Hub, where a Space may wake up) */
    long long api_poll_ms; /* between two health checks (3,000) */
    long long health_ms;   /* for one health check (10,000) */
} hfsb_sandbox_times;

/* Options of a handle. Texts are copied. */
typedef struct hfsb_sandbox_opts {
    struct hfsb_hub      *hub; /* of a Space; must stay open until close */
    const hfsb_transport *transport; /* to the sandbox; required for a URL (a
                           Space: that of hub if NULL) */
    hfsb_str hub_token; /* sent to a Space as Authorization, for the edge of a
                           private one (empty: not sent). The Space's server
                           sees the token: set it only for a Space that you
                           trust with it; a public one does not need it */
    hfsb_str api_token; /* of the server, sent as X-Sandbox-Authorization, or
                           with /v1 as X-Sandbox-Token (empty: not sent; create
                           generates one) */
    const hfsb_protocol *protocol; /* of the server at a URL (NULL: /api); not
                           for a Space */
    hfsb_str space_url; /* used instead of https://{...}.hf.space (empty:
                           HFSB_SPACE_URL if set) */
    hfsb_str work_dir;  /* of commands; relative paths of files begin in the
                           folder of the server (empty: commands too; "/app"
                           in a Space whose server is not hfsb-server) */
    double   timeout;   /* seconds a command may take (0: 240) */
    bool     session;   /* a file must be read before it is changed, and again
                           if others have changed it */
    size_t   tries;     /* of one call (0: 3) */
    hfsb_sandbox_times times;
    hfsb_log_fn        log; /* (NULL: none) */
    void              *user;
    const hfsb_cancel *cancel;  /* ends create, connect, restart and calls;
                                   must stay open until close (NULL: none) */
    const hfsb_cancel *give_up; /* also ends the deletion of a Space, which
                                   cancel does not; must stay open until close
                                   (NULL: none) */
    hfsb_alloc         alloc;   /* must be usable from all calling threads */
} hfsb_sandbox_opts;

/* Connects to a server at any URL: "http://127.0.0.1:7860", with or without
   "/api"; with hfsb_protocol_v1() "https://host", with or without "/v1" or
   "/v1/sandboxes/{id}". Waits until it answers, up to times.api_wait_ms: set
   it for a server that you have just started. Then HFSB_TIMEOUT "Sandbox API
   at {url} not responding after {n}s. ..."; at once HFSB_AUTH when the server
   refuses the token. A wait that takes longer than one health check is
   reported to opts->log. */
HFSB_API hfsb_status hfsb_sandbox_connect_url(hfsb_str                 url,
                                              const hfsb_sandbox_opts *opts,
                                              hfsb_sandbox           **out,
                                              hfsb_err                *err);

/* Frees the handle. With delete_owned it first deletes the Space that it owns,
   and returns what hfsb_sandbox_delete() returned. NULL is allowed. */
HFSB_API hfsb_status hfsb_sandbox_close(hfsb_sandbox *sandbox,
                                        bool delete_owned, hfsb_err *err);

/* ---- what it is; views are valid until close ---- */

/* "owner/name"; "" for a URL. */
HFSB_API hfsb_str hfsb_sandbox_id(const hfsb_sandbox *sandbox);
/* Its page on the Hub; for a URL the URL. */
HFSB_API hfsb_str hfsb_sandbox_page(const hfsb_sandbox *sandbox);
/* ".../api/" */
HFSB_API hfsb_str hfsb_sandbox_api(const hfsb_sandbox *sandbox);
/* The server's token, which is secret. */
HFSB_API hfsb_str hfsb_sandbox_token(const hfsb_sandbox *sandbox);
/* True when the server has identified itself as hfsb-server. */
HFSB_API bool hfsb_sandbox_ours(const hfsb_sandbox *sandbox);

/* ---- calls ---- */

/* hfsb_tools_call() on the sandbox, with the same results. Arguments are sent
   unchanged, with the defaults of the reference's client added (bash:
   work_dir, timeout; read: limit). If opts->key is empty a key is generated,
   so that a lost reply costs nothing: the call is sent again and runs once. To
   a server that is not hfsb-server only calls that cannot have run are sent
   again. opts->id replaces the argument `id`, as in hfsb_tools_call().
   opts->on_text receives output as it is printed if the server can stream,
   else at the end. opts->cancel NULL: the handle's cancel is used.
   In addition to the results of hfsb_tools_call(), with the text in
   result->error: HFSB_CONNECT, HFSB_LOST, HFSB_TIMEOUT, HFSB_CANCELLED (the
   command goes on: hfsb_sandbox_kill_all()), HFSB_AUTH, HFSB_BUSY (no try left
   while the Space wakes up), HFSB_REMOTE. */
HFSB_API hfsb_status hfsb_sandbox_call(hfsb_sandbox *sandbox, hfsb_str name,
                                       const hfsb_json_value *arguments,
                                       const hfsb_call_opts  *opts,
                                       hfsb_tool_result      *result);
/* The same with arguments as JSON text. */
HFSB_API hfsb_status hfsb_sandbox_call_text(hfsb_sandbox *sandbox,
                                            hfsb_str name, hfsb_str arguments,
                                            const hfsb_call_opts *opts,
                                            hfsb_tool_result     *result);
/* Kills every command that runs there. Ignores the handle's cancel, so that it
   can be called after setting that. */
HFSB_API hfsb_status hfsb_sandbox_kill_all(hfsb_sandbox     *sandbox,
                                           hfsb_tool_result *result);

/* Asks the server for api + `path`, such as "jobs" or "events?since=4": a GET
   whose answer is JSON. HFSB_OK, or as hfsb_sandbox_call(). Not sent
   again. */
HFSB_API hfsb_status hfsb_sandbox_ask(hfsb_sandbox *sandbox, hfsb_str path,
                                      const hfsb_cancel *cancel,
                                      hfsb_json_doc *out, hfsb_err *err);

/* ---- programs, byte for byte ---- */

typedef struct hfsb_exec_opts {
    const char *const *argv;    /* NULL-terminated (NULL: `command`) */
    hfsb_str           command; /* for the remote shell (empty, and no argv:
                                   the shell itself) */
    hfsb_str           work_dir;
    const char *const *env;     /* "NAME=value", or "NAME" to unset it;
                               NULL-terminated (NULL: none) */
    double             timeout; /* seconds (0: none) */
    bool               merge_stderr;
    int                in; /* local descriptor, read to its end for standard
                              input; below 0: none */
    /* Receives output as it arrives; return false to end the program. */
    bool (*on_output)(void *user, hfsb_proc_stream stream, hfsb_str bytes);
    /* Sets the size of the window, for a program that runs in a terminal;
       called again every half second and after a signal (NULL: no
       terminal). */
    void (*size)(void *user, unsigned *cols, unsigned *rows);
    void *user; /* of both */
    const hfsb_cancel
        *cancel; /* ends the program (NULL: that of the handle) */
} hfsb_exec_opts;

typedef struct hfsb_exec_result {
    int  exit_code; /* -1: see signal */
    int  signal;
    bool timed_out;
} hfsb_exec_result;

/* Runs a program on the sandbox and waits for its end, with raw input and
   output of any length. It ends when the connection is lost, and nothing is
   sent again. HFSB_OK however it ended; HFSB_NOT_FOUND, HFSB_DENIED: no such
   program, or it may not be run; HFSB_ARG: no such work_dir; HFSB_REFUSED: the
   server is not hfsb-server, or an older one; HFSB_IO: on_output returned
   false; HFSB_LOST, and as hfsb_sandbox_call(). */
HFSB_API hfsb_status hfsb_sandbox_exec(hfsb_sandbox         *sandbox,
                                       const hfsb_exec_opts *opts,
                                       hfsb_exec_result     *result,
                                       hfsb_err             *err);

/* ---- files, byte for byte, of any size ---- */

typedef struct hfsb_copy_opts {
    void (*progress)(void *user, unsigned long long done,
                     unsigned long long total); /* total 0: unknown */
    void              *user;
    const hfsb_cancel *cancel; /* (NULL: that of the handle) */
} hfsb_copy_opts;

/* Copies a local file (place may be NULL) to a path on the sandbox, with its
   mode, whole or not at all. Retried like a call. */
HFSB_API hfsb_status hfsb_sandbox_upload(hfsb_sandbox    *sandbox,
                                         const hfsb_root *place,
                                         hfsb_str local, hfsb_str remote,
                                         const hfsb_copy_opts *opts,
                                         hfsb_err             *err);
/* The other direction; resumes where a lost connection stopped. */
HFSB_API hfsb_status hfsb_sandbox_download(
    hfsb_sandbox *sandbox, hfsb_str remote, const hfsb_root *place,
    hfsb_str local, const hfsb_copy_opts *opts, hfsb_err *err);
/* Appends the content of a file of at most max bytes (0: 64 MiB), else
   HFSB_LIMIT; a failure leaves *out unchanged. A server that is not
   hfsb-server is read in base64 pieces through bash. */
HFSB_API hfsb_status hfsb_sandbox_get(hfsb_sandbox *sandbox, hfsb_str remote,
                                      size_t max, const hfsb_cancel *cancel,
                                      hfsb_buf *out, hfsb_err *err);
