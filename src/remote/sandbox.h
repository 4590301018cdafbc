#pragma once

/* ==== SANDBOX: tools on another machine ================================= */

#include "hub.h"
#include "../tools/tools.h"

/* A sandbox: a Space on the Hub that runs hfsb-server (or the reference's
   server), or such a server at any URL. Any number of threads may use one
   handle; delete and close must come last. */
typedef struct hfsb_sandbox hfsb_sandbox;

/* Waits, all in milliseconds; 0 is the default in parentheses. Programs
   rarely need to set one, tests do. */
typedef struct hfsb_sandbox_times {
    long long delay_ms; /* before try n + 1 of a call: n times this (3,000) */
    long long connect_ms;  /* for a connection (30,000) */
    long long margin_ms;   /* a call may take this much longer than its command
                              (30,000) */
    long long wait_ms;     /* for a new Space to start (600,000) */
    long long poll_ms;     /* between two looks at its stage (5,000) */
    long long api_wait_ms; /* for the server to answer (180,000; in connect
                              60,000) */
    long long api_poll_ms; /* between two health checks (3,000) */
    long long health_ms;   /* for one health check (10,000) */
} hfsb_sandbox_times;

/* Options of a handle. Texts are copied. */
typedef struct hfsb_sandbox_opts {
    hfsb_hub *hub; /* must stay open until close; NULL only for a URL */
    const hfsb_transport *transport; /* to the sandbox (NULL: that of hub) */
    hfsb_str hub_token; /* sent to a Space as Authorization, for the edge of a
                           private one (empty: not sent) */
    hfsb_str api_token; /* of the server, sent as X-Sandbox-Authorization
                           (empty: not sent; create generates one) */
    hfsb_str space_url; /* used instead of https://{...}.hf.space (empty:
                           HFSB_SPACE_URL if set) */
    hfsb_str work_dir;  /* (empty: "/app"; for a URL none is sent) */
    double   timeout;   /* seconds a command may take (0: 240) */
    bool     session;   /* a file must be read before it is changed */
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

typedef struct hfsb_sandbox_spec {
    hfsb_str  owner;      /* (empty: the token's owner) */
    hfsb_str  name;       /* (empty: "sandbox"); "-" and 8 hexadecimal digits
                             are appended. Any other name is marked with the
                             Space variable HFSB_CREATED, for list and sweep */
    hfsb_str  from;       /* Space to duplicate (empty: burtenshaw/sandbox) */
    hfsb_str  hardware;   /* (empty: "cpu-basic") */
    bool      visible;    /* to everyone (default: private) */
    long long sleep_time; /* seconds (0: not sent) */
    const hfsb_hub_pair    *secrets; /* set before SANDBOX_API_TOKEN */
    size_t                  secret_count;
    const hfsb_commit_file *files; /* the server: hfsb_space_files of
                             hfsb_space.h. One commit, which also removes
                             sandbox_server.py. NULL: the Space stays as it was
                             duplicated */
    size_t                  file_count;
} hfsb_sandbox_spec;

/* Creates a Space, then waits until it runs our commit on the requested
   hardware and its server answers. (If only the server stays silent, that is
   logged as a warning and the result is HFSB_OK.) Any failure or cancel after
   the Space was created deletes it; if that fails too, the message names the
   Space that is left. HFSB_CANCELLED "Sandbox creation cancelled: {id}";
   HFSB_REMOTE "Space failed to start: {stage}. Check {url}" with the end of
   the build log; HFSB_TIMEOUT "Space did not start within {n}s. Check {url}";
   else as the HUB. */
HFSB_API hfsb_status hfsb_sandbox_create(const hfsb_sandbox_spec *spec,
                                         const hfsb_sandbox_opts *opts,
                                         hfsb_sandbox **out, hfsb_err *err);

/* A handle of the Space `id`; sends nothing. owned: the handle may delete the
   Space, as if it had created it. HFSB_OK, HFSB_ARG, HFSB_NOMEM. */
HFSB_API hfsb_status hfsb_sandbox_open(hfsb_str id, bool owned,
                                       const hfsb_sandbox_opts *opts,
                                       hfsb_sandbox **out, hfsb_err *err);
/* The same, then waits until its server answers. When a health check fails the
   Hub is asked about the Space, and connect waits on only while the Space
   starts, runs or wakes up. At once: HFSB_NOT_FOUND when the Hub shows no such
   Space; HFSB_CONNECT when it is paused or stopped; HFSB_REMOTE when it failed
   or is being deleted; HFSB_AUTH when the server refuses the token. After
   times.api_wait_ms: HFSB_TIMEOUT "Sandbox API at {url} not responding after
   {n}s. ...". */
HFSB_API hfsb_status hfsb_sandbox_connect(hfsb_str id, bool owned,
                                          const hfsb_sandbox_opts *opts,
                                          hfsb_sandbox **out, hfsb_err *err);
/* A server at any URL: "http://127.0.0.1:7860", with or without "/api". Waits
   until it answers. */
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
   as they are, with the defaults of the reference's client (bash: work_dir,
   timeout; read: limit). If opts->key is empty a key is generated, so that a
   lost reply costs nothing: the call is sent again and runs once. To a server
   that is not hfsb-server only calls that cannot have run are sent again.
   opts->on_text receives output as it is printed if the server can stream,
   else at the end. cancel NULL: that of the handle.
   In addition to the results of hfsb_tools_call(), with the text in
   result->error: HFSB_CONNECT, HFSB_LOST, HFSB_TIMEOUT, HFSB_CANCELLED (the
   command goes on: hfsb_sandbox_kill_all()), HFSB_AUTH, HFSB_BUSY (no try left
   while the Space wakes up), HFSB_REMOTE. */
HFSB_API hfsb_status hfsb_sandbox_call(hfsb_sandbox *sandbox, hfsb_str name,
                                       const hfsb_json_value *arguments,
                                       const hfsb_call_opts  *opts,
                                       const hfsb_cancel     *cancel,
                                       hfsb_tool_result      *result);
/* Kills every command that runs there. Ignores the handle's cancel: it is
   what one calls after setting it. */
HFSB_API hfsb_status hfsb_sandbox_kill_all(hfsb_sandbox     *sandbox,
                                           hfsb_tool_result *result);

/* ---- files, byte for byte, of any size ---- */

typedef struct hfsb_copy_opts {
    void (*progress)(void *user, unsigned long long done,
                     unsigned long long total); /* total 0: unknown */
    void              *user;
    const hfsb_cancel *cancel; /* (NULL: that of the handle) */
} hfsb_copy_opts;

/* Copies a file of this machine (place may be NULL) to a path there, with its
   mode; completely or not at all. Retried like a call. */
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
   HFSB_LIMIT; a failure leaves *out as it was. A server that is not
   hfsb-server is read in base64 pieces through bash. */
HFSB_API hfsb_status hfsb_sandbox_get(hfsb_sandbox *sandbox, hfsb_str remote,
                                      size_t max, const hfsb_cancel *cancel,
                                      hfsb_buf *out, hfsb_err *err);

/* ---- the Space; HFSB_ARG for a URL ---- */

/* Deletes the Space if the handle owns it, else HFSB_REFUSED "This Sandbox did
   not create {id}." A second call is HFSB_OK. */
HFSB_API hfsb_status hfsb_sandbox_delete(hfsb_sandbox *sandbox, hfsb_err *err);
HFSB_API hfsb_status hfsb_sandbox_pause(hfsb_sandbox *sandbox, hfsb_err *err);
/* Restarts the Space (factory: rebuilds it first), also a paused one, and
   waits up to times.api_wait_ms until the new server answers. HFSB_REMOTE at
   once when the Hub reports that the Space failed. */
HFSB_API hfsb_status hfsb_sandbox_restart(hfsb_sandbox *sandbox, bool factory,
                                          hfsb_err *err);
HFSB_API hfsb_status hfsb_sandbox_status(hfsb_sandbox       *sandbox,
                                         hfsb_space_runtime *out,
                                         hfsb_err           *err);

/* ---- an owner's sandboxes ---- */

/* Calls each for every Space of owner (empty: the token's owner) that create
   made: called sandbox-[0-9a-f]{8}, or {name}-[0-9a-f]{8} with the variable
   HFSB_CREATED (which costs one request for each such name). id and modified
   ("" if unknown) are valid during the call; false ends the list with
   HFSB_OK. */
HFSB_API hfsb_status hfsb_sandbox_list(hfsb_hub *hub, hfsb_str owner,
                                       bool (*each)(void *user, hfsb_str id,
                                                    hfsb_str modified),
                                       void *user, const hfsb_cancel *cancel,
                                       hfsb_err *err);

typedef struct hfsb_sweep_opts {
    hfsb_str           owner;  /* (empty: the token's owner) */
    double             days;   /* not modified for this long (0: 7) */
    bool               remove; /* delete them (default: only report) */
    size_t             max;    /* deletions at most (0: 20) */
    const hfsb_cancel *cancel;
} hfsb_sweep_opts;

typedef struct hfsb_sweep_item {
    hfsb_str    id;
    hfsb_str    modified; /* as the Hub gives it */
    double      days;     /* since then */
    bool        removed;
    hfsb_status status;  /* of the deletion */
    const char *message; /* "" if status is HFSB_OK */
} hfsb_sweep_item;

/* Finds the sandboxes that programs left behind: those of hfsb_sandbox_list()
   that were not modified for so long. Calls each for every one (false ends
   the sweep). */
HFSB_API hfsb_status
hfsb_sandbox_sweep(hfsb_hub *hub, const hfsb_sweep_opts *opts,
                   bool (*each)(void *user, const hfsb_sweep_item *item),
                   void *user, hfsb_err *err);
