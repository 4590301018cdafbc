#pragma once

/* ==== SANDBOX: tools on another machine ================================= */

#include "hub.h"
#include "../tools/tools.h"

/* A sandbox: a Space on the Hub that runs hfsb-server (or the server of the
   reference), or such a server anywhere. Any number of threads may use one;
   what deletes or closes it must be the last. */
typedef struct hfsb_sandbox hfsb_sandbox;

/* Of the handle. */
typedef struct hfsb_sandbox_opts {
    hfsb_hub             *hub; /* must stay until close; NULL only for a URL */
    const hfsb_transport *transport; /* to the sandbox (NULL: that of hub,
                            which must then have been given to it) */
    hfsb_str  hub_token;  /* sent to a Space as Authorization, for the edge of
                            a private one (empty: none) */
    hfsb_str  api_token;  /* of the server, as X-Sandbox-Authorization (empty:
                            none; create makes one) */
    hfsb_str  space_url;  /* takes the place of https://{...}.hf.space (empty:
                            that of HFSB_SPACE_URL when set) */
    hfsb_str  work_dir;   /* (empty: "/app"; for a URL: none is sent) */
    double    timeout;    /* seconds of a command (0: 240) */
    bool      session;    /* a file must be read before it is changed */
    size_t    tries;      /* of one call (0: 3) */
    long long delay_ms;   /* before try n + 1: n times this (0: 3,000) */
    long long connect_ms; /* (0: 30,000) */
    long long margin_ms;  /* a call waits this much longer than its command may
                            take (0: 30,000) */
    long long wait_ms;    /* for a Space to start (0: 600,000) */
    long long poll_ms;    /* ... asked at this interval (0: 5,000) */
    long long api_wait_ms;  /* for its server to answer (0: 180,000; in connect
                            60,000) */
    long long api_poll_ms;  /* (0: 3,000) */
    long long health_ms;    /* for one answer of health (0: 10,000) */
    hfsb_log_fn        log; /* (NULL: none) */
    void              *user;
    const hfsb_cancel *cancel;  /* ends create, connect, restart and calls;
                            must stay until close (NULL: none) */
    const hfsb_cancel *give_up; /* ends even the deleting of a Space, by delete
                            or by a create that failed, which cancel does not;
                            must stay until close (NULL: none) */
    hfsb_alloc         alloc;   /* must be usable from the threads that call */
} hfsb_sandbox_opts;

typedef struct hfsb_sandbox_spec {
    hfsb_str  owner;      /* (empty: the token's owner) */
    hfsb_str  name;       /* (empty: "sandbox"); "-" and 8 hexadecimal digits
                           follow */
    hfsb_str  from;       /* Space to duplicate (empty: burtenshaw/sandbox) */
    hfsb_str  hardware;   /* (empty: "cpu-basic") */
    bool      visible;    /* to everyone (default: private) */
    long long sleep_time; /* seconds (0: not sent) */
    const hfsb_hub_pair    *secrets; /* set before SANDBOX_API_TOKEN */
    size_t                  secret_count;
    const hfsb_commit_file *files; /* of the server: hfsb_space_files of
                           hfsb_space.h; one commit, which also removes
                           sandbox_server.py. NULL: the Space stays as it was
                           duplicated */
    size_t                  file_count;
} hfsb_sandbox_spec;

/* Makes a Space, and waits until it runs our commit on the hardware asked for
   and its server answers (should only that take too long, a warning is logged
   and it is HFSB_OK). Whatever fails after the Space was made, or a cancel,
   deletes it again; when that fails too, the message names the Space that is
   left. HFSB_CANCELLED "Sandbox creation cancelled: {id}"; HFSB_REMOTE "Space
   failed to start: {stage}. Check {url}" with the end of the build's log;
   HFSB_TIMEOUT "Space did not start within {n}s. Check {url}"; as the HUB. */
HFSB_API hfsb_status hfsb_sandbox_create(const hfsb_sandbox_spec *spec,
                                         const hfsb_sandbox_opts *opts,
                                         hfsb_sandbox **out, hfsb_err *err);

/* A Space that is there: waits until its server answers. HFSB_TIMEOUT "Sandbox
   API at {url} not responding after {n}s. ...". HFSB_AUTH at once when it
   answers but refuses the token. owned: as if this handle had made it, so that
   it may delete it. */
HFSB_API hfsb_status hfsb_sandbox_connect(hfsb_str id, bool owned,
                                          const hfsb_sandbox_opts *opts,
                                          hfsb_sandbox **out, hfsb_err *err);
/* A server anywhere: "http://127.0.0.1:7860", with or without "/api". */
HFSB_API hfsb_status hfsb_sandbox_connect_url(hfsb_str                 url,
                                              const hfsb_sandbox_opts *opts,
                                              hfsb_sandbox           **out,
                                              hfsb_err                *err);

/* Frees the handle; with delete_owned it deletes the Space that it made first
   (as hfsb_sandbox_delete()), and gives what that gave. */
HFSB_API hfsb_status hfsb_sandbox_close(hfsb_sandbox *sandbox,
                                        bool delete_owned, hfsb_err *err);

/* ---- what it is; all good until close ---- */

HFSB_API hfsb_str hfsb_sandbox_id(const hfsb_sandbox *sandbox);   /* "" of a
                                                                    URL */
HFSB_API hfsb_str hfsb_sandbox_page(const hfsb_sandbox *sandbox); /* its page
                                       on the Hub; of a URL the URL */
HFSB_API hfsb_str
hfsb_sandbox_api(const hfsb_sandbox *sandbox); /* ".../api/" */
HFSB_API hfsb_str hfsb_sandbox_token(const hfsb_sandbox *sandbox); /* secret:
                                       of its server */
HFSB_API bool     hfsb_sandbox_owned(const hfsb_sandbox *sandbox);
/* True when its server has said that it is hfsb's. */
HFSB_API bool hfsb_sandbox_ours(const hfsb_sandbox *sandbox);

/* ---- calls ---- */

/* hfsb_tools_call() on the sandbox, with the same results; arguments are sent
   as they are, with what the reference's client adds (bash: work_dir, timeout;
   read: limit). opts->key: one is made when it is empty, so that a lost reply
   costs nothing: the call is repeated, and runs once. To a server that is not
   ours only what cannot have run is sent again. opts->on_text: as it is
   printed, from a server that can stream, else at the end.
   Besides those of hfsb_tools_call(): HFSB_CONNECT, HFSB_LOST, HFSB_TIMEOUT,
   HFSB_CANCELLED (the command goes on: hfsb_sandbox_kill_all()), HFSB_AUTH,
   HFSB_BUSY (the tries ran out on a Space that is waking up), HFSB_REMOTE; the
   text of each is in result->error. cancel (NULL: that of the handle). */
HFSB_API hfsb_status hfsb_sandbox_call(hfsb_sandbox *sandbox, hfsb_str name,
                                       const hfsb_json_value *arguments,
                                       const hfsb_call_opts  *opts,
                                       const hfsb_cancel     *cancel,
                                       hfsb_tool_result      *result);
/* Kills every running command there. */
HFSB_API hfsb_status hfsb_sandbox_kill_all(hfsb_sandbox     *sandbox,
                                           hfsb_tool_result *result);

/* ---- files, byte for byte, of any size ---- */

typedef struct hfsb_copy_opts {
    void (*progress)(void *user, unsigned long long done,
                     unsigned long long total); /* total 0: not known */
    void              *user;
    const hfsb_cancel *cancel; /* (NULL: that of the handle) */
} hfsb_copy_opts;

/* From this machine (place may be NULL) to a path there, with its mode; whole
   or not at all. Repeated as calls are. */
HFSB_API hfsb_status hfsb_sandbox_upload(hfsb_sandbox     *sandbox,
                                         const hfsb_place *place,
                                         hfsb_str local, hfsb_str remote,
                                         const hfsb_copy_opts *opts,
                                         hfsb_err             *err);
/* The other way; goes on where a lost connection stopped. */
HFSB_API hfsb_status hfsb_sandbox_download(
    hfsb_sandbox *sandbox, hfsb_str remote, const hfsb_place *place,
    hfsb_str local, const hfsb_copy_opts *opts, hfsb_err *err);
/* The content of a file, up to max bytes (0: 64 MiB; HFSB_LIMIT); from a
   server that is not ours in base64 pieces through bash. */
HFSB_API hfsb_status hfsb_sandbox_get(hfsb_sandbox *sandbox, hfsb_str remote,
                                      size_t max, const hfsb_cancel *cancel,
                                      hfsb_buf *out, hfsb_err *err);

/* ---- the Space; HFSB_ARG for a URL ---- */

/* Only what this handle made: HFSB_REFUSED "This Sandbox did not create {id}."
   A second time: HFSB_OK. */
HFSB_API hfsb_status hfsb_sandbox_delete(hfsb_sandbox *sandbox, hfsb_err *err);
HFSB_API hfsb_status hfsb_sandbox_pause(hfsb_sandbox *sandbox, hfsb_err *err);
/* Waits for the server to answer. */
HFSB_API hfsb_status hfsb_sandbox_restart(hfsb_sandbox *sandbox, bool factory,
                                          hfsb_err *err);
HFSB_API hfsb_status hfsb_sandbox_status(hfsb_sandbox       *sandbox,
                                         hfsb_space_runtime *out,
                                         hfsb_err           *err);

/* ---- Spaces that were left behind ---- */

typedef struct hfsb_sweep_opts {
    hfsb_str           owner;  /* (empty: the token's owner) */
    double             days;   /* not modified for this long (0: 7) */
    bool               remove; /* default: only told */
    size_t             max;    /* deleted at most (0: 20) */
    const hfsb_cancel *cancel;
} hfsb_sweep_opts;

typedef struct hfsb_sweep_item {
    hfsb_str    id;
    hfsb_str    modified; /* as the Hub gives it */
    double      days;
    bool        removed;
    hfsb_status status;  /* of the delete */
    const char *message; /* "" when it is fine */
} hfsb_sweep_item;

/* Looks through the owner's Spaces for our own by name, sandbox-[0-9a-f]{8},
   that are older than that; each is called for every one found (false ends
   it). */
HFSB_API hfsb_status
hfsb_sandbox_sweep(hfsb_hub *hub, const hfsb_sweep_opts *opts,
                   bool (*each)(void *user, const hfsb_sweep_item *item),
                   void *user, hfsb_err *err);
