#pragma once

/* ==== HUB: the Hugging Face Hub: Spaces, commits, logs, jobs ============ */

#include "../core/json.h"
#include "../net/net.h"

/* A line for a log; never holds a token or a secret. */
typedef void (*hfsb_log_fn)(void *user, hfsb_str line);

/* ---- what the environment says ---- */

/* HF_ENDPOINT (or HUGGINGFACE_CO_STAGING), the token (HF_TOKEN,
   HUGGING_FACE_HUB_TOKEN, then the file HF_TOKEN_PATH, by default
   $HF_HOME/token; trimmed; empty counts as unset; none with
   HF_HUB_DISABLE_IMPLICIT_TOKEN), HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE. */
typedef struct hfsb_hub_env {
    hfsb_buf endpoint; /* "" when the default is meant */
    hfsb_buf token;    /* "" when there is none */
    hfsb_buf origin;   /* HF_HUB_USER_AGENT_ORIGIN */
    bool     offline;
} hfsb_hub_env;

/* HFSB_OK also without any; HFSB_NOMEM; HFSB_IO when the token file is there
   and cannot be read. *env is all zero before. */
HFSB_API hfsb_status hfsb_hub_env_read(hfsb_hub_env *env, hfsb_err *err);
/* Overwrites the token, too. */
HFSB_API void hfsb_hub_env_free(hfsb_hub_env *env);

/* ---- the Hub ---- */

/* May be used by any number of threads at once. */
typedef struct hfsb_hub hfsb_hub;

typedef struct hfsb_hub_opts {
    hfsb_str              endpoint;   /* (empty: https://huggingface.co) */
    hfsb_str              token;      /* (empty: none is sent) */
    const hfsb_transport *transport;  /* must stay until close */
    hfsb_str              user_agent; /* put in front of ours (empty: none) */
    bool                  offline;    /* every call is HFSB_REFUSED */
    long long             timeout_ms; /* for one request (0: 60,000) */
    size_t      tries;       /* of a request that is safe to repeat (0: 5) */
    long long   delay_ms;    /* before the second try, then twice as much each
                             time up to eight times (0: 1,000) */
    long long   max_wait_ms; /* of what Retry-After or RateLimit asks for
                             (0: 60,000); more is HFSB_RATE at once */
    hfsb_log_fn log; /* retries, warnings of the Hub (X-HF-Warning, once
                              a topic) (NULL: none) */
    void       *user;
    hfsb_alloc  alloc; /* must be usable from the threads that call */
} hfsb_hub_opts;

/* HFSB_OK; HFSB_ARG for an endpoint that is no URL, a token with blanks or
   control bytes, no transport; HFSB_NOMEM. Texts are copied. */
HFSB_API hfsb_status hfsb_hub_open(const hfsb_hub_opts *opts, hfsb_hub **out,
                                   hfsb_err *err);
HFSB_API void        hfsb_hub_close(hfsb_hub *hub);

/* Without a slash at its end; good until close. */
HFSB_API hfsb_str hfsb_hub_endpoint(const hfsb_hub *hub);
HFSB_API bool     hfsb_hub_has_token(const hfsb_hub *hub);

/* What every call below gives, beside what it says itself:
   HFSB_AUTH       401: no token, or not a good one
   HFSB_PAYMENT    402: needs a plan, a payment method or credits
   HFSB_DENIED     403
   HFSB_NOT_FOUND  404, and the 401 the Hub gives for a repository that is
                   not there or not visible
   HFSB_CONFLICT   409
   HFSB_STALE      412
   HFSB_RATE       429, after the waits that are allowed
   HFSB_ARG        400, 422, or an argument that cannot be right
   HFSB_REMOTE     5xx, or an answer that is not what the Hub sends (HTML)
   HFSB_CONNECT, HFSB_LOST, HFSB_TIMEOUT, HFSB_CANCELLED, HFSB_REFUSED,
   HFSB_NOMEM      as hfsb_transport
   The message says what was tried, "HTTP {status}", what the Hub said
   (X-Error-Message and body; never HTML) and what to do about it.
   Repeated, with growing waits, are: GET, secrets and variables, pause,
   restart, preupload, delete (404 at a repeat is done). Not repeated, since
   it would happen twice: duplicate, create, running a job; after a lost answer
   the first two look whether it happened. A commit looks, too, and is repeated
   only on top of the head that it was meant for. Whatever was not sent, or
   was refused with 429, is repeated in any case.
   cancel (may be NULL) ends waits and requests: HFSB_CANCELLED. Ids are
   "owner/name". A document in `out` is freed by the caller. */

HFSB_API hfsb_status hfsb_hub_whoami(hfsb_hub *hub, const hfsb_cancel *cancel,
                                     hfsb_json_doc *out, hfsb_err *err);
/* Appends the name of the token's owner; asked once, then remembered. */
HFSB_API hfsb_status hfsb_hub_user(hfsb_hub *hub, const hfsb_cancel *cancel,
                                   hfsb_buf *out, hfsb_err *err);

/* ---- Spaces ---- */

typedef struct hfsb_hub_pair { /* a secret, a variable, a label */
    hfsb_str key, value;
    hfsb_str description; /* (empty: not sent) */
} hfsb_hub_pair;

typedef struct hfsb_space_spec {
    hfsb_str             id;         /* of the new Space */
    bool                 visible;    /* to everyone (default: private) */
    hfsb_str             hardware;   /* (empty: not sent) */
    long long            sleep_time; /* seconds (0: not sent; -1: never) */
    const hfsb_hub_pair *secrets;    /* sent along */
    size_t               secret_count;
    const hfsb_hub_pair *variables;
    size_t               variable_count;
} hfsb_space_spec;

/* POST /api/spaces/{from}/duplicate. After a lost answer: a Space of that name
   that is there now was made by us: HFSB_OK. */
HFSB_API hfsb_status hfsb_hub_duplicate(hfsb_hub *hub, hfsb_str from,
                                        const hfsb_space_spec *spec,
                                        const hfsb_cancel     *cancel,
                                        hfsb_err              *err);
/* POST /api/repos/create, sdk docker. */
HFSB_API hfsb_status hfsb_hub_create(hfsb_hub              *hub,
                                     const hfsb_space_spec *spec,
                                     const hfsb_cancel *cancel, hfsb_err *err);
/* HFSB_NOT_FOUND when there is none. */
HFSB_API hfsb_status hfsb_hub_delete(hfsb_hub *hub, hfsb_str id,
                                     const hfsb_cancel *cancel, hfsb_err *err);

typedef enum hfsb_hub_store {
    HFSB_HUB_SECRETS,
    HFSB_HUB_VARIABLES
} hfsb_hub_store;

HFSB_API hfsb_status hfsb_hub_set(hfsb_hub *hub, hfsb_str id,
                                  hfsb_hub_store       store,
                                  const hfsb_hub_pair *pair,
                                  const hfsb_cancel *cancel, hfsb_err *err);
HFSB_API hfsb_status hfsb_hub_unset(hfsb_hub *hub, hfsb_str id,
                                    hfsb_hub_store store, hfsb_str key,
                                    const hfsb_cancel *cancel, hfsb_err *err);
/* {"KEY": {...}}; of secrets without values. */
HFSB_API hfsb_status hfsb_hub_stored(hfsb_hub *hub, hfsb_str id,
                                     hfsb_hub_store     store,
                                     const hfsb_cancel *cancel,
                                     hfsb_json_doc *out, hfsb_err *err);

/* Whatever is missing or null in the Hub's answer is "" or 0. */
typedef struct hfsb_space_runtime {
    char      stage[32];    /* "RUNNING" */
    char      hardware[48]; /* that it runs on now */
    char      requested[48];
    char      sha[48];    /* of the commit that runs */
    char      error[256]; /* errorMessage */
    long long sleep_time; /* gcTimeout, seconds */
} hfsb_space_runtime;

HFSB_API hfsb_status hfsb_hub_runtime(hfsb_hub *hub, hfsb_str id,
                                      const hfsb_cancel  *cancel,
                                      hfsb_space_runtime *out, hfsb_err *err);
/* out may be NULL in these. */
HFSB_API hfsb_status hfsb_hub_pause(hfsb_hub *hub, hfsb_str id,
                                    const hfsb_cancel  *cancel,
                                    hfsb_space_runtime *out, hfsb_err *err);
HFSB_API hfsb_status hfsb_hub_restart(hfsb_hub *hub, hfsb_str id, bool factory,
                                      const hfsb_cancel  *cancel,
                                      hfsb_space_runtime *out, hfsb_err *err);
HFSB_API hfsb_status hfsb_hub_hardware(hfsb_hub *hub, hfsb_str id,
                                       hfsb_str flavor, long long sleep_time,
                                       const hfsb_cancel  *cancel,
                                       hfsb_space_runtime *out, hfsb_err *err);
HFSB_API hfsb_status hfsb_hub_sleep_time(hfsb_hub *hub, hfsb_str id,
                                         long long           seconds,
                                         const hfsb_cancel  *cancel,
                                         hfsb_space_runtime *out,
                                         hfsb_err           *err);

/* Space info. expand: keys to ask for, "runtime,subdomain" (empty: the Hub's
   choice); revision empty: none. */
HFSB_API hfsb_status hfsb_hub_space(hfsb_hub *hub, hfsb_str id,
                                    hfsb_str revision, hfsb_str expand,
                                    const hfsb_cancel *cancel,
                                    hfsb_json_doc *out, hfsb_err *err);
/* Appends "https://{subdomain}.hf.space": as the Hub says, else by its rule. */
HFSB_API hfsb_status hfsb_hub_space_url(hfsb_hub *hub, hfsb_str id,
                                        const hfsb_cancel *cancel,
                                        hfsb_buf *out, hfsb_err *err);

typedef struct hfsb_space_filter {
    hfsb_str author, search, sort; /* (empty: not sent) */
    hfsb_str expand;               /* as above */
    bool     full;
    size_t   limit; /* (0: all; else also sent) */
} hfsb_space_filter;

/* Calls each for every Space, page after page (the token goes to pages of the
   same origin only); each's false ends it with HFSB_OK. */
HFSB_API hfsb_status
hfsb_hub_spaces(hfsb_hub *hub, const hfsb_space_filter *filter,
                bool (*each)(void *user, const hfsb_json_value *space),
                void *user, const hfsb_cancel *cancel, hfsb_err *err);

/* ---- commits ---- */

typedef struct hfsb_commit_file {
    const char *path;    /* in the repository; "/" and "./" in front do not
                            count; "..", .git and .cache are HFSB_ARG */
    hfsb_str    content; /* ptr NULL: the file is deleted; a path that ends in
                            "/" then is a folder */
} hfsb_commit_file;

typedef struct hfsb_commit {
    const hfsb_commit_file *files;
    size_t                  file_count;
    hfsb_str                revision; /* (empty: main) */
    hfsb_str                summary;  /* required */
    hfsb_str                description;
    hfsb_str parent; /* refuse (HFSB_STALE) when it is not the head */
} hfsb_commit;

typedef struct hfsb_commit_done {
    char oid[48];   /* of the commit, or of the head when nothing changed */
    bool unchanged; /* every file was there already: no commit was made */
} hfsb_commit_done;

/* preupload, then commit: all files or none. What is unchanged is left out. A
   file that the Hub wants in LFS is HFSB_REFUSED. After a lost answer the
   head tells whether it was made. */
HFSB_API hfsb_status hfsb_hub_commit(hfsb_hub *hub, hfsb_str id,
                                     const hfsb_commit *commit,
                                     const hfsb_cancel *cancel,
                                     hfsb_commit_done *out, hfsb_err *err);

/* ---- logs: of Spaces and of jobs ---- */

typedef struct hfsb_log_opts {
    bool      follow;  /* to the end; default: what is there now (5 s of
                           silence end it) */
    size_t    tail;    /* last lines only (0: all) */
    long long idle_ms; /* of silence (0: 120,000 when following, else 5,000) */
    const hfsb_cancel *cancel;
} hfsb_log_opts;

/* One line, without its LF; timestamp as the Hub gives it, or "". False ends
   it with HFSB_OK. */
typedef bool (*hfsb_log_line_fn)(void *user, hfsb_str line,
                                 hfsb_str timestamp);

/* which: "build" or "run". A stream that breaks while it is followed is opened
   again, and lines that came already are skipped. */
HFSB_API hfsb_status hfsb_hub_space_logs(hfsb_hub *hub, hfsb_str id,
                                         const char          *which,
                                         const hfsb_log_opts *opts,
                                         hfsb_log_line_fn fn, void *user,
                                         hfsb_err *err);

/* ---- jobs ---- */

typedef struct hfsb_job_spec {
    hfsb_str             space;   /* namespace (empty: the token's owner) */
    hfsb_str             image;   /* docker image, or a Space's page (empty:
                                  python:3.12; for a script uv's image) */
    const hfsb_str      *command; /* words */
    size_t               command_count;
    hfsb_str             flavor; /* (empty: cpu-basic) */
    const hfsb_hub_pair *env;
    size_t               env_count;
    const hfsb_hub_pair *secrets;
    size_t               secret_count;
    const hfsb_hub_pair *labels;
    size_t               label_count;
    hfsb_str timeout; /* "30m", "2h", "90" seconds (empty: not sent) */
    /* for hfsb_hub_job_script() */
    hfsb_str        script;    /* a URL, a command, or source text */
    bool            is_source; /* script is source text */
    const hfsb_str *args;      /* of the script */
    size_t          arg_count;
    const hfsb_str *with; /* packages it needs */
    size_t          with_count;
    hfsb_str        python; /* "3.12" (empty: not sent) */
} hfsb_job_spec;

/* out: the job. HFSB_LIMIT for source text over 90 kB, with advice. After a
   lost answer nothing is sent again: HFSB_LOST, and the message says that the
   job may run. */
HFSB_API hfsb_status hfsb_hub_job_run(hfsb_hub *hub, const hfsb_job_spec *spec,
                                      const hfsb_cancel *cancel,
                                      hfsb_json_doc *out, hfsb_err *err);
/* With uv run: {"uv","run","--with",...,"--python",...,script,args...}; source
   text goes base64-encoded through a shell, byte for byte. */
HFSB_API hfsb_status hfsb_hub_job_script(hfsb_hub            *hub,
                                         const hfsb_job_spec *spec,
                                         const hfsb_cancel   *cancel,
                                         hfsb_json_doc *out, hfsb_err *err);
/* space empty: the token's owner. */
HFSB_API hfsb_status hfsb_hub_job(hfsb_hub *hub, hfsb_str space, hfsb_str id,
                                  const hfsb_cancel *cancel,
                                  hfsb_json_doc *out, hfsb_err *err);
HFSB_API hfsb_status hfsb_hub_job_cancel(hfsb_hub *hub, hfsb_str space,
                                         hfsb_str           id,
                                         const hfsb_cancel *cancel,
                                         hfsb_json_doc *out, hfsb_err *err);
HFSB_API hfsb_status hfsb_hub_jobs(hfsb_hub *hub, hfsb_str space,
                                   bool (*each)(void                  *user,
                                                const hfsb_json_value *job),
                                   void *user, const hfsb_cancel *cancel,
                                   hfsb_err *err);
/* Followed, it ends when the job has ended, also one that is still being
   scheduled at first. */
HFSB_API hfsb_status hfsb_hub_job_logs(hfsb_hub *hub, hfsb_str space,
                                       hfsb_str id, const hfsb_log_opts *opts,
                                       hfsb_log_line_fn fn, void *user,
                                       hfsb_err *err);

/* "30m" in seconds; 0 when it is no time above 0. */
HFSB_API long long hfsb_hub_seconds(hfsb_str text);
