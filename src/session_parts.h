#pragma once

/* The inside of a session. Private to session*.c. */

#include "os.h"
#include "plan.h"
#include "sandbox_parts.h"
#include "session.h"
#include "tool.h"

/* A sandbox of the session. */
typedef struct hfsbi_box {
    struct hfsbi_box *next;
    hfsb_sandbox     *sandbox; /* NULL until it is made */
    hfsb_cancel      *cancel;  /* ends its making, and calls that have none */
    hfsb_buf          hardware;
    hfsb_buf          left;  /* no sandbox, but its Space is there: its id */
    size_t            users; /* calls that hold it */
    bool              automatic; /* nobody asked for it */
    bool              retired;   /* another took its place: deleted when no
                                    call holds it any more */
} hfsbi_box;

enum {
    HFSBI_SESSION_TEXTS = 8,   /* of the options */
    HFSBI_SESSION_SECRETS = 3  /* besides those of the caller */
};

struct hfsb_session {
    /* what does not change after open */
    hfsb_alloc        alloc;
    hfsb_runtime      runtime;
    hfsb_tools       *tools; /* of the local runtime */
    hfsb_sandbox_opts opts;  /* of sandboxes, but for cancel */
    hfsb_sandbox_spec spec;  /* of the preloaded one */
    hfsb_hub_pair    *secrets;
    size_t            secret_cap;
    hfsb_buf          texts; /* of opts, spec and secrets: never moves */
    hfsb_cancel      *give_up;
    long long         close_ms;
    hfsb_log_fn       log;
    void             *user;

    pthread_mutex_t   lock; /* what follows belongs to it */
    pthread_cond_t    changed;
    hfsbi_box        *box;     /* in use now, or NULL */
    hfsbi_box        *boxes;   /* all that hold a Space */
    bool              claimed; /* a sandbox_create is under way: it alone makes
                                one, and others wait for what comes of it */
    hfsbi_box        *making;  /* the thread makes this one (NULL: it is done)
                                 ... */
    hfsb_sandbox_spec make;    /* ... like this */
    bool              thread_there; /* to be joined */
    pthread_t         thread;
    hfsb_status       made; /* what came of the last one */
    hfsb_err          made_err;
    hfsbi_plan        plan;
};

/* ---- session.c ---- */

/* One line to the log, when there is one. Not under the lock. */
HFSBI_FN void hfsbi_session_log(const hfsb_session *session,
                                const char *format, ...) HFSBI_PRINTF(2, 3);

/* ---- session_preload.c: sandboxes; all but start take the lock ---- */

/* A thread begins to make a sandbox. Nothing is being made. Under the lock. */
HFSBI_FN hfsb_status hfsbi_session_start(hfsb_session            *session,
                                         const hfsb_sandbox_spec *spec,
                                         bool automatic, hfsb_err *err);

/* Waits for something to change. Under the lock, which is let go of meanwhile;
   false when it was cancelled. */
HFSBI_FN bool hfsbi_session_wait(hfsb_session      *session,
                                 const hfsb_cancel *cancel);

/* The sandbox in use, held until it is given back; made first, or waited for,
   when need be. What it gives but HFSB_OK is in *err. */
HFSBI_FN hfsb_status hfsbi_session_hold(hfsb_session      *session,
                                        const hfsb_cancel *cancel,
                                        hfsbi_box **out, hfsb_err *err);
/* HFSB_OK, or why a sandbox that was to be deleted is still there. */
HFSBI_FN hfsb_status hfsbi_session_release(hfsb_session *session,
                                           hfsbi_box *box, hfsb_err *err);

/* Ends what is being made, deletes all. */
HFSBI_FN hfsb_status hfsbi_session_end(hfsb_session *session, hfsb_err *err);

/* ---- session_tools.c ---- */

/* What a tool of the session does, its keys looked at already. What it
   returns but HFSB_OK is the status of the call, with the sentence in *err. */
typedef hfsb_status (*hfsbi_own_fn)(hfsb_session          *session,
                                    const hfsb_json_value *arguments,
                                    const hfsb_cancel     *cancel,
                                    hfsb_tool_result      *result,
                                    hfsb_err              *err);

typedef struct hfsbi_own_tool {
    const hfsbi_tool *(*row)(void); /* its fn is NULL */
    hfsbi_own_fn fn;
} hfsbi_own_tool;

/* plan_tool or, in the sandbox runtime, sandbox_create and hf_jobs; NULL for
   others. */
HFSBI_FN const hfsbi_own_tool *hfsbi_session_tool(const hfsb_session *session,
                                                  hfsb_str            name);

/* ---- session_jobs.c: hf_jobs ---- */

HFSBI_FN const hfsbi_tool *hfsbi_hf_jobs_tool(void);
HFSBI_FN hfsb_status       hfsbi_session_jobs(hfsb_session          *session,
                                              const hfsb_json_value *arguments,
                                              const hfsb_cancel     *cancel,
                                              hfsb_tool_result      *result,
                                              hfsb_err              *err);

/* A call of hf_jobs. */
typedef struct hfsbi_hf_jobs_call {
    hfsb_session          *session;
    const hfsb_json_value *arguments;
    const hfsb_cancel     *cancel;
    hfsb_tool_result      *result;
    hfsb_str               id, space; /* job_id and namespace, or empty */
} hfsbi_hf_jobs_call;

/* A text of what the Hub tells about a job; "" when there is none, and not at
   any length. */
HFSBI_FN hfsb_str hfsbi_hf_jobs_text(const hfsb_json_value *job,
                                     const char            *key);
HFSBI_FN hfsb_str hfsbi_hf_jobs_stage(const hfsb_json_value *job);
/* The added keys id, stage and url; HFSB_REMOTE when id or stage is
   missing: nothing may be said of such a job. */
HFSBI_FN hfsb_status hfsbi_hf_jobs_extra(hfsbi_hf_jobs_call    *c,
                                         const hfsb_json_value *job,
                                         hfsb_err              *err);

/* ---- session_jobs_run.c ---- */

/* Starts a job. */
HFSBI_FN hfsb_status hfsbi_hf_jobs_run(hfsbi_hf_jobs_call *c, hfsb_err *err);
