#pragma once

/* ==== SESSION: what an agent holds ====================================== */

#include "../core/path.h"
#include "sandbox.h"

/* ---- where the tools work ---- */

typedef enum hfsb_runtime {
    HFSB_RUNTIME_LOCAL,  /* on this machine; no sandbox_create, no hf_jobs */
    HFSB_RUNTIME_SANDBOX /* on a Space; both are offered */
} hfsb_runtime;

/* "local" or "sandbox"; else HFSB_ARG with a message that lists the two. */
HFSB_API hfsb_status hfsb_runtime_find(hfsb_str name, hfsb_runtime *out,
                                       hfsb_err *err);
/* For a start-up line: "local filesystem" or "HF sandbox". */
HFSB_API const char *hfsb_runtime_text(hfsb_runtime runtime);

/* True for ids that begin with ollama/, vllm/, lm_studio/ or llamacpp/, go on
   behind it and hold no white space. */
HFSB_API bool hfsb_model_is_local(hfsb_str model);
/* A token of the Hub is needed unless model and runtime are both local. */
HFSB_API bool hfsb_session_needs_token(hfsb_runtime runtime, bool model_local);

/* ---- a session ---- */

/* Any number of threads may call one, but for close. */
typedef struct hfsb_session hfsb_session;

typedef struct hfsb_session_opts {
    hfsb_str               model; /* its id, for the question of the token */
    hfsb_runtime           runtime;
    bool                   model_local; /* it is local whatever its id */
    const hfsb_tools_opts *tools; /* of the local runtime (NULL: the defaults);
                                 session is set in any case */
    hfsb_hub              *hub; /* must stay until close; needed where a token
                                 is (else HFSB_AUTH, with what to set) */
    hfsb_str hub_token;         /* given to the sandbox as its secret HF_TOKEN
                                 and to its edge; copied */
    const hfsb_sandbox_opts *sandbox; /* of the sandbox runtime (NULL: the
                                 defaults); hub, hub_token, session, cancel
                                 and give_up are the session's, and so is log
                                 when it has none */
    const hfsb_sandbox_spec *spec; /* of the sandbox that is preloaded (NULL:
                                 the defaults); of later ones all but hardware
                                 and sleep_time; copied, but for the files */
    bool        no_preload;        /* the first tool call makes the sandbox */
    long long   close_ms;          /* see close (0: 30,000) */
    hfsb_log_fn log;               /* called from the preload's thread, too */
    void       *user;
    hfsb_alloc  alloc; /* must be usable from all of these threads */
} hfsb_session_opts;

/* In the sandbox runtime a thread is started that makes a private cpu-basic
   Space; those that sandbox_create asks for are made by a thread, too, one at
   a time. HFSB_OK; HFSB_AUTH when a token is needed and there is none; as
   hfsb_tools_open(). */
HFSB_API hfsb_status hfsb_session_open(const hfsb_session_opts *opts,
                                       hfsb_session **out, hfsb_err *err);

/* Cancels a preload under way and waits for it, deletes the Spaces that it
   made, each in three tries with 1 s and 2 s between (a third and two thirds
   of the sandbox's delay_ms), and frees it all. What takes longer than
   close_ms in all is broken off. What could not be deleted is named in *err:
   HFSB_REMOTE or the like, but the session is gone in any case. */
HFSB_API hfsb_status hfsb_session_close(hfsb_session *session, hfsb_err *err);

HFSB_API hfsb_runtime hfsb_session_runtime(const hfsb_session *session);

/* Waits until the preloaded sandbox can be used, and starts it if need be; of
   a local one HFSB_OK at once. Gives what made it fail, as every call does
   until sandbox_create has made one. HFSB_CANCELLED ends only the waiting. */
HFSB_API hfsb_status hfsb_session_wait_ready(hfsb_session      *session,
                                             const hfsb_cancel *cancel,
                                             hfsb_err          *err);

/* One tool call of a model: the tools of the runtime, plan_tool and, in the
   sandbox runtime, sandbox_create and hf_jobs. As hfsb_tools_call() and
   hfsb_sandbox_call(); waits first for a sandbox that is being made. cancel
   may be NULL; it ends the waiting, a sandbox_create (whose Space is deleted)
   and a command: here its processes are killed and what it printed is in the
   result, in a sandbox it goes on.

   sandbox_create makes a Space with other hardware or with trackio's values in
   the place of the one that was preloaded, which stays in use when that fails.
   Otherwise it is deleted, as soon as the last call that uses it is done. One
   that sandbox_create made stays.

   hf_jobs runs jobs on the Hub and looks at them; they go on when the session
   is closed. Secrets are named by the model and known to the session: HF_TOKEN
   and those of spec; what a job prints is shown without them. */
HFSB_API hfsb_status hfsb_session_call(hfsb_session *session, hfsb_str name,
                                       const hfsb_json_value *arguments,
                                       const hfsb_call_opts  *opts,
                                       const hfsb_cancel     *cancel,
                                       hfsb_tool_result      *result);
/* The same with arguments as JSON text. */
HFSB_API hfsb_status hfsb_session_call_text(hfsb_session *session,
                                            hfsb_str name, hfsb_str arguments,
                                            const hfsb_call_opts *opts,
                                            const hfsb_cancel    *cancel,
                                            hfsb_tool_result     *result);

/* Appends the definitions of its tools as a JSON array. */
HFSB_API hfsb_status hfsb_session_define(const hfsb_session *session,
                                         hfsb_tools_format   format,
                                         hfsb_buf *out, hfsb_err *err);

/* The sandbox it uses now, or NULL; good until sandbox_create replaces it or
   the session is closed. */
HFSB_API hfsb_sandbox *hfsb_session_sandbox(hfsb_session *session);

/* ---- scripts for jobs ---- */

/* What a job is to be given for `script`: for a path the text of that file in
   the sandbox (on this machine in the local runtime), byte for byte; else
   script itself. *kind is how it was classified; a path becomes
   HFSB_SCRIPT_INLINE once read. A file that cannot be read is an error, never
   taken as a command; text over 90 kB is HFSB_LIMIT with advice. Appends to
   *out. */
HFSB_API hfsb_status hfsb_session_script(hfsb_session      *session,
                                         hfsb_str           script,
                                         hfsb_script_kind  *kind,
                                         const hfsb_cancel *cancel,
                                         hfsb_buf *out, hfsb_err *err);

/* ---- the plan ---- */

/* Appends the plan as JSON: [{"id":...,"content":...,"status":...}]. */
HFSB_API hfsb_status hfsb_session_plan(hfsb_session *session, hfsb_buf *out,
                                       hfsb_err *err);

/* Tell it of each turn of the model: whether it called tools. When it did not
   and the plan has open items, a reminder is appended to *out, to be sent as
   the next user message (behind the model's own text); twice in a row at most.
   True when there is one; false also without memory. */
HFSB_API bool hfsb_session_remind(hfsb_session *session, bool called_tools,
                                  hfsb_buf *out);
