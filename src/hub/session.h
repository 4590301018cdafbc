#pragma once

/* ==== SESSION: what an agent holds ====================================== */

#include "../core/path.h"
#include "space.h"

/* ---- where the tools work ---- */

typedef enum hfsb_runtime {
    HFSB_RUNTIME_LOCAL, /* on this machine, without sandbox_create, hf_jobs */
    HFSB_RUNTIME_SANDBOX, /* in a Space or a job, with both */
    HFSB_RUNTIME_REMOTE   /* in a sandbox that opts.connect opens, without
                             them */
} hfsb_runtime;

/* Reads "local" or "sandbox"; else HFSB_ARG with a message that lists both. */
HFSB_API hfsb_status hfsb_runtime_find(hfsb_str name, hfsb_runtime *out,
                                       hfsb_err *err);
/* For a start-up line: "local filesystem", "HF sandbox", "remote sandbox". */
HFSB_API const char *hfsb_runtime_text(hfsb_runtime runtime);

/* True for an id that begins with ollama/, vllm/, lm_studio/ or llamacpp/,
   followed by at least one character, and contains no white space. */
HFSB_API bool hfsb_model_is_local(hfsb_str model);
/* True in the sandbox runtime, and for a model that is not local: a Hub token
   is needed. */
HFSB_API bool hfsb_session_needs_token(hfsb_runtime runtime, bool model_local);

/* ---- a session ---- */

/* Any number of threads may use a session; close must come last. */
typedef struct hfsb_session hfsb_session;

typedef struct hfsb_session_opts {
    hfsb_str               model; /* its id, to decide whether it is local */
    hfsb_runtime           runtime;
    bool                   model_local; /* it is local whatever its id */
    const hfsb_tools_opts *tools; /* of the local runtime (NULL: defaults); the
                                 session sets `session` */
    hfsb_hub              *hub;   /* must stay open until close; required if a
                                 token is (else HFSB_AUTH with advice) */
    hfsb_str hub_token; /* given to the sandbox as its secret HF_TOKEN, and to
                                 the edge of its Space; copied */
    const hfsb_sandbox_opts *sandbox; /* of the sandbox runtime (NULL:
                                 defaults). The session sets hub, hub_token,
                                 session, cancel and give_up, and log if it is
                                 NULL */
    const hfsb_sandbox_spec *spec;    /* of the preloaded sandbox (NULL:
                                 defaults), and of later ones except for
                                 hardware and sleep_time; copied, but for
                                 files, server and volumes. With an image the
                                 sandboxes are jobs, which end after 45
                                 minutes without use unless idle_timeout is
                                 given */
    /* Opens the sandbox of the remote runtime, which requires it. Called in a
       thread of the session, and again for the first call after a failure. The
       session closes the sandbox, and never deletes it. cancel ends connect
       early, and exists until the sandbox is closed. Set
       hfsb_sandbox_opts.session, as the session does for its own sandboxes. */
    hfsb_status (*connect)(void *user, const hfsb_cancel *cancel,
                           hfsb_sandbox **out, hfsb_err *err);
    bool        no_preload; /* the first tool call creates the sandbox, or
                               connects to it */
    long long   close_ms;   /* time limit of close (0: 30,000) */
    hfsb_log_fn log;        /* also called from the maker thread */
    void       *user;       /* of connect and log */
    hfsb_alloc  alloc;      /* must be usable from all of these threads */
} hfsb_session_opts;

/* In the sandbox runtime a thread starts to create a private cpu-basic Space,
   or a job if the spec has an image; in the remote runtime it connects.
   HFSB_OK; HFSB_AUTH when a token is needed and missing; HFSB_ARG when connect
   is; else as hfsb_tools_open(). */
HFSB_API hfsb_status hfsb_session_open(const hfsb_session_opts *opts,
                                       hfsb_session **out, hfsb_err *err);

/* Cancels a creation under way, deletes the session's Spaces, each in three
   tries with 1 s and 2 s between (a third and two thirds of the sandbox's
   times.delay_ms), and frees the session in any case. All of it is aborted
   after close_ms. Spaces that could not be deleted are named in *err, and the
   result is the status of the first failure.
   In the remote runtime it kills the commands of bash that the session has
   started and that may still run there; the result is the status of the first
   kill that did not reach the sandbox. */
HFSB_API hfsb_status hfsb_session_close(hfsb_session *session, hfsb_err *err);

HFSB_API hfsb_runtime hfsb_session_runtime(const hfsb_session *session);

/* Waits until the preloaded sandbox is ready, and starts its creation if
   needed; HFSB_OK at once in the local runtime. A failed creation is reported
   here and by every call until sandbox_create succeeds. HFSB_CANCELLED ends
   only the wait. */
HFSB_API hfsb_status hfsb_session_wait_ready(hfsb_session      *session,
                                             const hfsb_cancel *cancel,
                                             hfsb_err          *err);

/* Executes one tool call of a model: a tool of the runtime, plan_tool or, in
   the sandbox runtime, sandbox_create and hf_jobs. Results as
   hfsb_tools_call() and hfsb_sandbox_call(). First waits for a sandbox that is
   being created. opts->cancel ends the wait, a sandbox_create (whose Space is
   deleted) and a command: on this machine its processes are killed and its
   output so far is in the result, in a sandbox it goes on.

   sandbox_create replaces the preloaded sandbox by one with other hardware or
   with trackio's values. If that fails, the old one stays in use; otherwise
   it is deleted after the last call that uses it. A sandbox made by
   sandbox_create is not replaced again, unless it is a job that has ended.

   hf_jobs runs jobs on the Hub and inspects them; they outlive the session.
   The model names secrets; the session knows their values (HF_TOKEN and those
   of spec), and removes them from the output that it shows. */
HFSB_API hfsb_status hfsb_session_call(hfsb_session *session, hfsb_str name,
                                       const hfsb_json_value *arguments,
                                       const hfsb_call_opts  *opts,
                                       hfsb_tool_result      *result);
/* The same with arguments as JSON text. */
HFSB_API hfsb_status hfsb_session_call_text(hfsb_session *session,
                                            hfsb_str name, hfsb_str arguments,
                                            const hfsb_call_opts *opts,
                                            hfsb_tool_result     *result);

/* True for a tool that hfsb_session_call() knows: any other name is refused
   with HFSB_NOT_FOUND. */
HFSB_API bool hfsb_session_has(const hfsb_session *session, hfsb_str name);

/* Appends the definitions of the session's tools as a JSON array. */
HFSB_API hfsb_status hfsb_session_define(const hfsb_session *session,
                                         hfsb_tools_format   format,
                                         hfsb_buf *out, hfsb_err *err);

/* ---- scripts for jobs ---- */

/* Appends the script that a job gets for `script`: for a path the content of
   that file in the sandbox (in the local runtime on this machine), else the
   script itself. *kind is its classification; a path that was read becomes
   HFSB_SCRIPT_INLINE. A file that cannot be read is an error, never a command;
   text over 90 kB is HFSB_LIMIT with advice. */
HFSB_API hfsb_status hfsb_session_script(hfsb_session      *session,
                                         hfsb_str           script,
                                         hfsb_script_kind  *kind,
                                         const hfsb_cancel *cancel,
                                         hfsb_buf *out, hfsb_err *err);

/* ---- the plan ---- */

/* Appends the plan as JSON: [{"id":...,"content":...,"status":...}]. */
HFSB_API hfsb_status hfsb_session_plan(hfsb_session *session, hfsb_buf *out,
                                       hfsb_err *err);

/* Call this after each turn of the model. If the turn called no tools and the
   plan has open items, appends a reminder to *out, to be sent as the next user
   message (after the model's own text), and returns true; at most twice in a
   row. Also false when out of memory. */
HFSB_API bool hfsb_session_remind(hfsb_session *session, bool called_tools,
                                  hfsb_buf *out);
