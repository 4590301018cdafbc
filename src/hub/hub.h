#pragma once

/* ==== HUB: the Hugging Face Hub: Spaces, commits, logs, jobs ============ */

#include "../core/json.h"
#include "../remote/sandbox.h"

/* ---- the environment ---- */

/* HF_ENDPOINT (or HUGGINGFACE_CO_STAGING); the token: HF_TOKEN,
   HUGGING_FACE_HUB_TOKEN, else the file HF_TOKEN_PATH (default
   $HF_HOME/token), trimmed; an empty token counts as unset, and no token is
   read with HF_HUB_DISABLE_IMPLICIT_TOKEN; HF_HUB_OFFLINE or
   TRANSFORMERS_OFFLINE. */
typedef struct hfsb_hub_env {
    hfsb_buf endpoint; /* "": use the default */
    hfsb_buf token;    /* "": there is none */
    hfsb_buf origin;   /* HF_HUB_USER_AGENT_ORIGIN */
    bool     offline;
} hfsb_hub_env;

/* Reads the environment into *env, which must be all zero. HFSB_OK, even if
   nothing is set; HFSB_NOMEM; HFSB_IO when the token file exists but cannot be
   read. A failure leaves *env all zero. */
HFSB_API hfsb_status hfsb_hub_env_read(hfsb_hub_env *env, hfsb_err *err);
/* Frees *env; the token is overwritten. */
HFSB_API void hfsb_hub_env_free(hfsb_hub_env *env);

/* ---- the Hub ---- */

/* A client of the Hub. Any number of threads may use it at once. */
typedef struct hfsb_hub hfsb_hub;

typedef struct hfsb_hub_opts {
    hfsb_str              endpoint;   /* (empty: https://huggingface.co) */
    hfsb_str              token;      /* (empty: none is sent) */
    const hfsb_transport *transport;  /* must outlive the hub */
    hfsb_str              user_agent; /* put before "hfsb/..." */
    bool                  offline;    /* refuse every call (HFSB_REFUSED) */
    long long             timeout_ms; /* for one request (0: 60,000) */
    size_t      tries;       /* of a request that is safe to repeat (0: 5) */
    long long   delay_ms;    /* before the second try; doubled each time up to
                              eight times this (0: 1,000) */
    long long   max_wait_ms; /* longest wait that Retry-After or RateLimit may
                              ask for (0: 60,000); longer is HFSB_RATE at
                              once */
    hfsb_log_fn log;         /* receives retries, and warnings of the Hub, each
                              topic once (NULL: none) */
    void       *user;
    hfsb_alloc  alloc; /* called by every thread that makes a call */
} hfsb_hub_opts;

/* Opens a hub; texts of opts are copied. HFSB_OK; HFSB_ARG for an invalid
   endpoint, a token with blanks or control bytes, or no transport; HFSB_NOMEM.
   Sends nothing. */
HFSB_API hfsb_status hfsb_hub_open(const hfsb_hub_opts *opts, hfsb_hub **out,
                                   hfsb_err *err);
HFSB_API void        hfsb_hub_close(hfsb_hub *hub);

/* The endpoint without a slash at its end; valid until close. */
HFSB_API hfsb_str hfsb_hub_endpoint(const hfsb_hub *hub);
HFSB_API bool     hfsb_hub_has_token(const hfsb_hub *hub);

/* Every call below returns HFSB_OK or, besides what its own comment says:
   HFSB_AUTH       401: no token, or a bad one
   HFSB_PAYMENT    402: needs a plan, a payment method or credits
   HFSB_DENIED     403
   HFSB_NOT_FOUND  404, and the 401 that the Hub gives for a repository that
                   does not exist or is not visible
   HFSB_CONFLICT   409
   HFSB_STALE      412
   HFSB_RATE       429, after the waits that are allowed
   HFSB_ARG        400, 422, or an invalid argument (nothing was sent)
   HFSB_REMOTE     5xx, or an answer that is not the Hub's (HTML)
   HFSB_CONNECT, HFSB_LOST, HFSB_TIMEOUT, HFSB_CANCELLED, HFSB_REFUSED,
   HFSB_NOMEM      as hfsb_transport
   The message says what was tried, "HTTP {status}", what the Hub answered
   (X-Error-Message and body; never HTML) and what to do about it.

   Retried, with growing waits, are: GET, secrets and variables, pause,
   restart, preupload, and delete ("not found" on a retry is HFSB_OK). Not
   retried, because they would happen twice: duplicate and running a job. After
   a lost answer a duplicate checks whether the Space exists, and a commit
   whether it was made; the commit is retried only on top of the head it was
   meant for. Any request that was not sent, or was refused with 429, is
   retried.

   cancel (may be NULL) ends waits and requests with HFSB_CANCELLED. Ids are
   "owner/name". The caller frees a document in `out`. */

/* The account of the token: name, type, orgs ... */
HFSB_API hfsb_status hfsb_hub_whoami(hfsb_hub *hub, const hfsb_cancel *cancel,
                                     hfsb_json_doc *out, hfsb_err *err);
/* Appends the name of the token's owner. The Hub is asked once per hub. */
HFSB_API hfsb_status hfsb_hub_user(hfsb_hub *hub, const hfsb_cancel *cancel,
                                   hfsb_buf *out, hfsb_err *err);

/* The hardware that Spaces, or jobs, can have: an array of objects with name,
   prettyName, cpu, ram, accelerator, unitCostUSD and unitLabel. Needs no
   token. */
HFSB_API hfsb_status hfsb_hub_hardware(hfsb_hub *hub, bool jobs,
                                       const hfsb_cancel *cancel,
                                       hfsb_json_doc *out, hfsb_err *err);

/* ---- Spaces ---- */

/* A secret, a variable or a label. */
typedef struct hfsb_hub_pair {
    hfsb_str key, value;
    hfsb_str description; /* (empty: not sent) */
} hfsb_hub_pair;

typedef struct hfsb_space_spec {
    hfsb_str             id;         /* of the new Space */
    bool                 visible;    /* public (default: private) */
    hfsb_str             hardware;   /* (empty: not sent) */
    long long            sleep_time; /* seconds (0: not sent; -1: never) */
    const hfsb_hub_pair *secrets;
    size_t               secret_count;
    const hfsb_hub_pair *variables;
    size_t               variable_count;
} hfsb_space_spec;

/* Duplicates the Space `from` as spec->id. After a lost answer, a Space of
   that name counts as made by this call: HFSB_OK. */
HFSB_API hfsb_status hfsb_hub_duplicate(hfsb_hub *hub, hfsb_str from,
                                        const hfsb_space_spec *spec,
                                        const hfsb_cancel     *cancel,
                                        hfsb_err              *err);
/* Deletes a Space. HFSB_NOT_FOUND when it does not exist. */
HFSB_API hfsb_status hfsb_hub_delete(hfsb_hub *hub, hfsb_str id,
                                     const hfsb_cancel *cancel, hfsb_err *err);

typedef enum hfsb_hub_store {
    HFSB_HUB_SECRETS,
    HFSB_HUB_VARIABLES
} hfsb_hub_store;

/* Sets a secret or variable of a Space; an existing one is replaced. */
HFSB_API hfsb_status hfsb_hub_set(hfsb_hub *hub, hfsb_str id,
                                  hfsb_hub_store       store,
                                  const hfsb_hub_pair *pair,
                                  const hfsb_cancel *cancel, hfsb_err *err);
/* The state of a Space. A value that the Hub does not give is "" or 0. */
typedef struct hfsb_space_runtime {
    char      stage[32];    /* "RUNNING" */
    char      hardware[48]; /* in use now */
    char      requested[48];
    char      sha[48];    /* of the running commit */
    char      error[256]; /* errorMessage */
    long long sleep_time; /* gcTimeout, seconds */
} hfsb_space_runtime;

HFSB_API hfsb_status hfsb_hub_runtime(hfsb_hub *hub, hfsb_str id,
                                      const hfsb_cancel  *cancel,
                                      hfsb_space_runtime *out, hfsb_err *err);
/* Pause and restart a Space; factory: rebuild it without caches. out receives
   the new state, and may be NULL. */
HFSB_API hfsb_status hfsb_hub_pause(hfsb_hub *hub, hfsb_str id,
                                    const hfsb_cancel  *cancel,
                                    hfsb_space_runtime *out, hfsb_err *err);
HFSB_API hfsb_status hfsb_hub_restart(hfsb_hub *hub, hfsb_str id, bool factory,
                                      const hfsb_cancel  *cancel,
                                      hfsb_space_runtime *out, hfsb_err *err);
/* Information about a Space. expand: keys to ask for, "runtime,subdomain"
   (empty: the Hub's choice). revision: a branch or commit (empty: none). */
HFSB_API hfsb_status hfsb_hub_space(hfsb_hub *hub, hfsb_str id,
                                    hfsb_str revision, hfsb_str expand,
                                    const hfsb_cancel *cancel,
                                    hfsb_json_doc *out, hfsb_err *err);
/* Appends "https://{subdomain}.hf.space", from the Hub's answer, else by its
   rule. */
HFSB_API hfsb_status hfsb_hub_space_url(hfsb_hub *hub, hfsb_str id,
                                        const hfsb_cancel *cancel,
                                        hfsb_buf *out, hfsb_err *err);

typedef struct hfsb_space_filter {
    hfsb_str author, search, sort; /* (empty: not sent) */
    hfsb_str expand;               /* as in hfsb_hub_space() */
    bool     full;
    size_t   limit; /* (0: all) */
} hfsb_space_filter;

/* Calls each for every Space, page by page; when it returns false the call
   ends with HFSB_OK. The token is sent only to pages of the Hub's origin. */
HFSB_API hfsb_status
hfsb_hub_spaces(hfsb_hub *hub, const hfsb_space_filter *filter,
                bool (*each)(void *user, const hfsb_json_value *space),
                void *user, const hfsb_cancel *cancel, hfsb_err *err);

/* ---- commits ---- */

typedef struct hfsb_commit_file {
    const char *path;    /* in the repository; a leading "/" or "./" is
                            ignored; "..", .git and .cache are HFSB_ARG */
    hfsb_str    content; /* ptr NULL: delete the file, or the folder when path
                            ends in "/" */
} hfsb_commit_file;

typedef struct hfsb_commit {
    const hfsb_commit_file *files;
    size_t                  file_count;
    hfsb_str                revision; /* (empty: main) */
    hfsb_str                summary;  /* required */
    hfsb_str                description;
    hfsb_str parent; /* HFSB_STALE when it is not the head (empty: any) */
    bool     model;  /* the repository is a model (default: a Space) */
} hfsb_commit;

typedef struct hfsb_commit_done {
    char oid[48];   /* of the commit, or of the head when unchanged */
    bool unchanged; /* every file had this content: no commit was made */
} hfsb_commit_done;

/* Commits all files or none; files that have not changed are left out.
   HFSB_REFUSED for a file that the Hub wants in LFS. After a lost answer the
   head of the repository decides whether the commit was made. */
HFSB_API hfsb_status hfsb_hub_commit(hfsb_hub *hub, hfsb_str id,
                                     const hfsb_commit *commit,
                                     const hfsb_cancel *cancel,
                                     hfsb_commit_done *out, hfsb_err *err);

/* ---- logs of Spaces and jobs ---- */

typedef struct hfsb_log_opts {
    bool      follow;  /* until the log ends (default: until 5 s of silence) */
    size_t    tail;    /* only the last lines (0: all) */
    long long idle_ms; /* longest silence (0: 120,000 when following, else
                          5,000) */
    const hfsb_cancel *cancel;
} hfsb_log_opts;

/* Receives one line without its LF, and the Hub's timestamp or "". Return
   false to end the log with HFSB_OK. */
typedef bool (*hfsb_log_line_fn)(void *user, hfsb_str line,
                                 hfsb_str timestamp);

/* Reads a log of a Space; which is "build" or "run". A stream that breaks
   while it is followed is opened again, without repeating lines. */
HFSB_API hfsb_status hfsb_hub_space_logs(hfsb_hub *hub, hfsb_str id,
                                         const char          *which,
                                         const hfsb_log_opts *opts,
                                         hfsb_log_line_fn fn, void *user,
                                         hfsb_err *err);

/* ---- jobs ---- */

/* A repository or bucket, mounted as a folder in a job. */
typedef struct hfsb_job_volume {
    hfsb_str type;     /* "model", "dataset", "space" or "bucket" */
    hfsb_str source;   /* "owner/name"; checked only by the Hub */
    hfsb_str revision; /* (empty: not sent) */
    hfsb_str mount;    /* absolute path in the job */
    bool     read_only;
} hfsb_job_volume;

/* Parses "TYPE:OWNER/NAME[@REVISION]:/MOUNT[:ro|:rw]"; *out has views of
   text. HFSB_OK; HFSB_ARG. */
HFSB_API hfsb_status hfsb_job_volume_parse(hfsb_str text, hfsb_job_volume *out,
                                           hfsb_err *err);

typedef struct hfsb_job_spec {
    hfsb_str               space;   /* owner of the job (empty: the token's) */
    hfsb_str               image;   /* docker image, or a Space's page (empty:
                                  python:3.12; for a script uv's image) */
    const hfsb_str        *command; /* words */
    size_t                 command_count;
    hfsb_str               flavor; /* (empty: cpu-basic) */
    const hfsb_hub_pair   *env;
    size_t                 env_count;
    const hfsb_hub_pair   *secrets;
    size_t                 secret_count;
    const hfsb_hub_pair   *labels; /* names and values: up to 100 letters,
                                  digits, ".", "_" and "-" */
    size_t                 label_count;
    hfsb_str               name; /* the label "name" (empty: not sent) */
    const hfsb_job_volume *volumes;
    size_t                 volume_count;
    const unsigned        *ports; /* to get a URL, in status.exposeUrls of the
                                  job; calls need the owner's token */
    size_t                 port_count;
    hfsb_str timeout;  /* "30m", "2h", "90" seconds (empty: not sent) */
    hfsb_str schedule; /* make a scheduled job instead, which runs again and
                          again: "@daily", "@hourly" ... or the 5 to 7 fields
                          of cron (empty: run it now, once) */
    bool     suspend;  /* a scheduled job does not run until it is resumed */
    /* for hfsb_hub_job_script() */
    hfsb_str        script;    /* a URL, a command or source text */
    bool            is_source; /* script is source text */
    const hfsb_str *args;      /* of the script */
    size_t          arg_count;
    const hfsb_str *with; /* packages it needs */
    size_t          with_count;
    hfsb_str        python; /* "3.12" (empty: not sent) */
} hfsb_job_spec;

/* Runs a command as a job; *out receives the job. A request that may have
   reached the Hub is never sent again: after HFSB_LOST the job may be running,
   as the message says. */
HFSB_API hfsb_status hfsb_hub_job_run(hfsb_hub *hub, const hfsb_job_spec *spec,
                                      const hfsb_cancel *cancel,
                                      hfsb_json_doc *out, hfsb_err *err);
/* Runs a script with "uv run --with ... --python ... script args". Source text
   is passed base64-encoded through a shell, byte for byte; HFSB_LIMIT with
   advice when it is over 90 kB. */
HFSB_API hfsb_status hfsb_hub_job_script(hfsb_hub            *hub,
                                         const hfsb_job_spec *spec,
                                         const hfsb_cancel   *cancel,
                                         hfsb_json_doc *out, hfsb_err *err);
/* Gets or cancels a job, or lists jobs. space is their owner (empty: the
   token's); *out receives the job. */
HFSB_API hfsb_status hfsb_hub_job(hfsb_hub *hub, hfsb_str space, hfsb_str id,
                                  const hfsb_cancel *cancel,
                                  hfsb_json_doc *out, hfsb_err *err);
HFSB_API hfsb_status hfsb_hub_job_cancel(hfsb_hub *hub, hfsb_str space,
                                         hfsb_str           id,
                                         const hfsb_cancel *cancel,
                                         hfsb_json_doc *out, hfsb_err *err);

typedef struct hfsb_job_filter {
    hfsb_str             space;  /* owner of the jobs (empty: the token's) */
    const hfsb_hub_pair *labels; /* a job must have all of them */
    size_t               label_count;
    const hfsb_str      *stages; /* "RUNNING": a job must be in one of them */
    size_t               stage_count;
} hfsb_job_filter;

/* filter NULL: all jobs of the token's owner. */
HFSB_API hfsb_status
hfsb_hub_jobs(hfsb_hub *hub, const hfsb_job_filter *filter,
              bool (*each)(void *user, const hfsb_json_value *job), void *user,
              const hfsb_cancel *cancel, hfsb_err *err);
/* Asks for the job every poll_ms (0: 5,000) until it has ended; *out receives
   it. */
HFSB_API hfsb_status hfsb_hub_job_wait(hfsb_hub *hub, hfsb_str space,
                                       hfsb_str id, long long poll_ms,
                                       const hfsb_cancel *cancel,
                                       hfsb_json_doc *out, hfsb_err *err);
/* Reads the log of a job. When followed it ends with the job, even if the job
   still waits to be scheduled at first. */
HFSB_API hfsb_status hfsb_hub_job_logs(hfsb_hub *hub, hfsb_str space,
                                       hfsb_str id, const hfsb_log_opts *opts,
                                       hfsb_log_line_fn fn, void *user,
                                       hfsb_err *err);

/* ---- scheduled jobs ---- */

typedef enum hfsb_scheduled {
    HFSB_SCHEDULED_GET,
    HFSB_SCHEDULED_DELETE,
    HFSB_SCHEDULED_SUSPEND,
    HFSB_SCHEDULED_RESUME,
    HFSB_SCHEDULED_RUN /* now: *out receives the job */
} hfsb_scheduled;

/* Does `what` with a scheduled job. *out receives the scheduled job after GET,
   the job after RUN, nothing after DELETE; after SUSPEND and RESUME whatever
   the Hub returns. */
HFSB_API hfsb_status hfsb_hub_scheduled(hfsb_hub *hub, hfsb_scheduled what,
                                        hfsb_str space, hfsb_str id,
                                        const hfsb_cancel *cancel,
                                        hfsb_json_doc *out, hfsb_err *err);
/* Lists the scheduled jobs of space (empty: the token's owner). */
HFSB_API hfsb_status
hfsb_hub_scheduled_jobs(hfsb_hub *hub, hfsb_str space,
                        bool (*each)(void *user, const hfsb_json_value *job),
                        void *user, const hfsb_cancel *cancel, hfsb_err *err);
