#pragma once

/* ==== SPACE: sandboxes that are Spaces or jobs of the Hub =============== */

#include "hub.h"

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
                             sandbox_server.py. NULL: the duplicated Space is
                             not changed */
    size_t                  file_count;
    /* A sandbox that is a job, when image is not empty. It starts in seconds,
       runs any image that has /bin/sh, and is gone when it ends. from,
       visible, sleep_time and files do not apply; hardware is its flavor. */
    hfsb_str image;        /* "python:3.12", or the page of a Space */
    hfsb_str server;       /* bytes of a static hfsb-server: committed once to
                              the private model OWNER/hfsb-server, which the
                              job mounts */
    bool     download;     /* do not mount it: the job downloads it with curl
                              or wget, and gets the Hub's token for that */
    hfsb_str timeout;      /* of the job: "2h" (empty: 24h) */
    hfsb_str idle_timeout; /* the server ends after this long without a call
                              and without a command: "10m" (empty: never) */
    hfsb_str api;          /* "hf": the server also speaks this protocol on
                              its port, and the job has the labels by which
                              huggingface_hub.Sandbox finds it (empty: none) */
    const hfsb_job_volume *volumes;
    size_t                 volume_count;
    /* Called at each check of the stage, while the sandbox starts (NULL:
       none). */
    void (*on_stage)(void *user, hfsb_str id, const char *stage);
    /* Called when creation has failed, before the Space is deleted or the job
       cancelled, so that its log can be read; not after a cancel. Return true
       to keep it (NULL: it is not kept). */
    bool (*on_failure)(void *user, hfsb_str id);
    void *user; /* of both */
} hfsb_sandbox_spec;

/* Creates a Space, then waits until it runs our commit on the requested
   hardware and its server answers. (If only the server stays silent, that is
   logged as a warning and the result is HFSB_OK.) Any failure or cancel after
   the Space was created deletes it; if that fails too, the message names the
   Space that is left. HFSB_CANCELLED "Sandbox creation cancelled: {id}";
   HFSB_REMOTE "Space failed to start: {stage}. Check {url}" with the end of
   the build log; HFSB_TIMEOUT "Space did not start within {n}s. Check {url}";
   else as the calls of HUB. Each message ends with what became of the Space.

   With spec->image it runs a job instead, waits until its server answers, and
   on any failure or cancel cancels the job; a job whose server stays silent
   for times.wait_ms is a failure, too. The id of such a sandbox is
   "jobs/OWNER/ID". Its token is derived from the Hub's token and a label of
   the job, so that any program with the same token of the Hub can connect to
   it by its id, with empty api_token (unless create was given one). */
HFSB_API hfsb_status hfsb_sandbox_create(const hfsb_sandbox_spec *spec,
                                         const hfsb_sandbox_opts *opts,
                                         hfsb_sandbox **out, hfsb_err *err);

/* Opens a handle of the Space "OWNER/NAME" or the job "jobs/OWNER/ID"; sends
   nothing. owned: the handle may delete it, as if it had created it. To call
   a job's tools, use connect, which finds its address. HFSB_OK, HFSB_ARG,
   HFSB_NOMEM. */
HFSB_API hfsb_status hfsb_sandbox_open(hfsb_str id, bool owned,
                                       const hfsb_sandbox_opts *opts,
                                       hfsb_sandbox **out, hfsb_err *err);
/* The same, then waits until its server answers. When a health check fails the
   Hub is asked about the Space, and connect waits on only while the Space
   starts, runs or wakes up. At once: HFSB_NOT_FOUND when the Hub shows no such
   Space; HFSB_CONNECT when it is paused or stopped; HFSB_REMOTE when it failed
   or is being deleted; HFSB_AUTH when the server refuses the token, or with
   err->key "hub_token" when the Hub does. After
   times.api_wait_ms: HFSB_TIMEOUT "Sandbox API at {url} not responding after
   {n}s. ...". */
HFSB_API hfsb_status hfsb_sandbox_connect(hfsb_str id, bool owned,
                                          const hfsb_sandbox_opts *opts,
                                          hfsb_sandbox **out, hfsb_err *err);

/* ---- the Space or job; HFSB_ARG for a URL ---- */

/* Deletes the Space, or cancels the job, if the handle owns it, else
   HFSB_REFUSED "This Sandbox did not create {id}." A second call is
   HFSB_OK. */
HFSB_API hfsb_status hfsb_sandbox_delete(hfsb_sandbox *sandbox, hfsb_err *err);
/* Pause and restart: HFSB_ARG for a job. */
HFSB_API hfsb_status hfsb_sandbox_pause(hfsb_sandbox *sandbox, hfsb_err *err);
/* Restarts the Space (factory: rebuilds it first), even a paused one, and
   waits up to times.api_wait_ms until the new server answers. HFSB_REMOTE at
   once when the Hub reports that the Space failed. */
HFSB_API hfsb_status hfsb_sandbox_restart(hfsb_sandbox *sandbox, bool factory,
                                          hfsb_err *err);
/* Of a job: stage, hardware and error (its message). */
HFSB_API hfsb_status hfsb_sandbox_status(hfsb_sandbox       *sandbox,
                                         hfsb_space_runtime *out,
                                         hfsb_err           *err);

/* ---- an owner's sandboxes ---- */

/* Calls each for every Space of owner (empty: the token's owner) that create
   made: named sandbox-[0-9a-f]{8}, or {name}-[0-9a-f]{8} with the variable
   HFSB_CREATED (which costs one request for each such name); then for every
   job that create made and that has not ended, with the date of its start.
   id and modified ("" if unknown) are valid during the call; return false to
   end the list with HFSB_OK. */
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

/* Finds the sandboxes that programs left behind: Spaces of hfsb_sandbox_list()
   that were not modified for `days`, and jobs that were started as long ago.
   Calls each for every one; return false to end the sweep. */
HFSB_API hfsb_status
hfsb_sandbox_sweep(hfsb_hub *hub, const hfsb_sweep_opts *opts,
                   bool (*each)(void *user, const hfsb_sweep_item *item),
                   void *user, hfsb_err *err);
