#pragma once

#include "../remote/remote_private.h"
#include "hub.h"
#include "session.h"
#include "space.h"

/* hub_private.h - what the files of the room hub share.

       request.c   one request to the Hub, its repeats, its errors
       hub.c       the handle of the Hub
       space.c     Spaces: duplicate, delete, pause, look at, list
       commit.c    commits to a Space
       jobs.c      logs, and jobs
       sandbox.c   sandboxes that are Spaces
       create.c    creates one
       job_home.c  sandboxes that are jobs
       preload.c   the sandboxes of a session
       hf_jobs.c   the tool hf_jobs
       session.c   what an agent holds

   A program without HFSB_HUB has none of it. No other room uses it, except for
   mcp/remote.c. */

/* ==== the Hub ==== */

struct hfsb_hub {
    /* constant once open */
    const hfsb_transport *transport;
    hfsb_buf              endpoint;      /* without a slash at its end */
    hfsb_url              origin;        /* the endpoint, parsed */
    hfsb_buf              authorization; /* "Bearer ...", or "" */
    hfsb_buf              agent;
    bool                  offline;
    long long             timeout_ms, max_wait_ms;
    hfsbi_retry           retry; /* the policy of every request */
    hfsb_log_fn           log;
    void                 *user;
    hfsb_alloc            alloc;

    pthread_mutex_t lock;   /* protects: */
    hfsb_buf        owner;  /* of the token; "" until the Hub was asked */
    hfsb_buf        topics; /* of warnings already logged, each with an LF */
};

/* ---- endpoints ---- */

/* Whether a request may be sent again. Every request is sent again when it
   did not reach the Hub, or the Hub refused it with 429. */
typedef enum hfsbi_hub_repeat {
    HFSBI_HUB_ONCE,   /* it would happen twice */
    HFSBI_HUB_REPEAT, /* also after a lost reply or a 5xx */
    HFSBI_HUB_REMOVE  /* the same, and "not found" then means it succeeded */
} hfsbi_hub_repeat;

/* Every endpoint of the Hub: name, method, path, description for "Could not
   {...}", and whether it may be repeated. Names in braces are filled in from
   the request's subject ({space}, {owner}) and detail ({job}, {detail}).
   {space} must be a valid id; {owner} defaults to the token's owner; {detail}
   is percent-encoded in a path. */
#define HFSBI_HUB_ENDPOINTS(X)                                                \
    X(WHOAMI, "GET", "/api/whoami-v2", "ask the Hub whose token this is",     \
      REPEAT)                                                                 \
    X(SPACE_HARDWARE, "GET", "/api/spaces/hardware",                          \
      "list the hardware of Spaces", REPEAT)                                  \
    X(JOB_HARDWARE, "GET", "/api/jobs/hardware", "list the hardware of jobs", \
      REPEAT)                                                                 \
    X(DUPLICATE, "POST", "/api/spaces/{space}/duplicate",                     \
      "duplicate {space} as {detail}", ONCE)                                  \
    X(DELETE, "DELETE", "/api/repos/delete", "delete {space}", REMOVE)        \
    X(SECRET, "POST", "/api/spaces/{space}/secrets",                          \
      "set the secret {detail} of {space}", REPEAT)                           \
    X(VARIABLE, "POST", "/api/spaces/{space}/variables",                      \
      "set the variable {detail} of {space}", REPEAT)                         \
    X(VARIABLES, "GET", "/api/spaces/{space}/variables",                      \
      "list the variables of {space}", REPEAT)                                \
    X(RUNTIME, "GET", "/api/spaces/{space}/runtime",                          \
      "see the state of {space}", REPEAT)                                     \
    X(PAUSE, "POST", "/api/spaces/{space}/pause", "pause {space}", REPEAT)    \
    X(RESTART, "POST", "/api/spaces/{space}/restart", "restart {space}",      \
      REPEAT)                                                                 \
    X(REBUILD, "POST", "/api/spaces/{space}/restart?factory=true",            \
      "restart {space}", REPEAT)                                              \
    X(SPACE, "GET", "/api/spaces/{space}", "look at {space}", REPEAT)         \
    X(REVISION, "GET", "/api/spaces/{space}/revision/{detail}",               \
      "look at {space}", REPEAT)                                              \
    X(SPACES, "GET", "/api/spaces", "list Spaces", REPEAT)                    \
    X(SPACE_LOGS, "GET", "/api/spaces/{space}/logs/{detail}",                 \
      "read the {detail} log of {space}", REPEAT)                             \
    X(VALIDATE, "POST", "/api/validate-yaml",                                 \
      "have the metadata of README.md checked", REPEAT)                       \
    X(PREUPLOAD, "POST", "/api/spaces/{space}/preupload/{detail}",            \
      "prepare a commit to {space}", REPEAT)                                  \
    X(COMMIT, "POST", "/api/spaces/{space}/commit/{detail}",                  \
      "commit to {space}", ONCE)                                              \
    X(MODEL_CREATE, "POST", "/api/repos/create", "create {space}", REPEAT)    \
    X(MODEL_REVISION, "GET", "/api/models/{space}/revision/{detail}",         \
      "look at {space}", REPEAT)                                              \
    X(MODEL_PREUPLOAD, "POST", "/api/models/{space}/preupload/{detail}",      \
      "prepare a commit to {space}", REPEAT)                                  \
    X(MODEL_COMMIT, "POST", "/api/models/{space}/commit/{detail}",            \
      "commit to {space}", ONCE)                                              \
    X(JOB_RUN, "POST", "/api/jobs/{owner}", "run a job", ONCE)                \
    X(JOBS, "GET", "/api/jobs/{owner}", "list jobs", REPEAT)                  \
    X(JOB, "GET", "/api/jobs/{owner}/{job}", "look at job {job}", REPEAT)     \
    X(JOB_CANCEL, "POST", "/api/jobs/{owner}/{job}/cancel",                   \
      "cancel job {job}", REPEAT)                                             \
    X(JOB_LOGS, "GET", "/api/jobs/{owner}/{job}/logs",                        \
      "read the log of job {job}", REPEAT)                                    \
    X(SCHEDULE, "POST", "/api/scheduled-jobs/{owner}", "schedule a job",      \
      ONCE)                                                                   \
    X(SCHEDULED_JOBS, "GET", "/api/scheduled-jobs/{owner}",                   \
      "list scheduled jobs", REPEAT)                                          \
    X(SCHEDULED_GET, "GET", "/api/scheduled-jobs/{owner}/{job}",              \
      "look at scheduled job {job}", REPEAT)                                  \
    X(SCHEDULED_DELETE, "DELETE", "/api/scheduled-jobs/{owner}/{job}",        \
      "delete scheduled job {job}", REMOVE)                                   \
    X(SCHEDULED_SUSPEND, "POST", "/api/scheduled-jobs/{owner}/{job}/suspend", \
      "suspend scheduled job {job}", REPEAT)                                  \
    X(SCHEDULED_RESUME, "POST", "/api/scheduled-jobs/{owner}/{job}/resume",   \
      "resume scheduled job {job}", REPEAT)                                   \
    X(SCHEDULED_RUN, "POST", "/api/scheduled-jobs/{owner}/{job}/run",         \
      "run scheduled job {job}", ONCE)

typedef enum hfsbi_hub_endpoint {
#define HFSBI_X(name, method, path, what, repeat) HFSBI_HUB_##name,
    HFSBI_HUB_ENDPOINTS(HFSBI_X)
#undef HFSBI_X
        HFSBI_HUB_ENDPOINT_COUNT
} hfsbi_hub_endpoint;

/* ---- request.c ---- */

/* One request, its repeats and their outcome. */
typedef struct hfsbi_hub_request {
    hfsb_hub        *hub;
    const char      *method;
    char             what[320]; /* "Could not {what}: ..." */
    hfsb_buf         target;    /* "/api/...", or a whole URL */
    hfsbi_hub_repeat repeat;
    hfsbi_retry      retry;
    const char      *body_type; /* Content-Type; NULL: there is no body */
    hfsb_buf         body;
    hfsb_json_writer json; /* of the body, when hfsbi_hub_object() began it */
    /* redacted from every message, next to the token */
    const hfsb_hub_pair *secrets;
    size_t               secret_count;
    hfsb_json_doc       *out; /* receives the reply, which must be JSON (NULL:
                                 any reply will do) */
    /* receives the reply piece by piece instead; only idle_ms and the retry's
       deadline apply then */
    bool (*on_body)(void *user, hfsb_str piece);
    void     *user;
    long long idle_ms;

    /* the outcome */
    hfsb_http_reply reply;
    bool            opened;  /* last try: the head of a 2xx reply came */
    bool            again;   /* last try: another one may help */
    bool            unclear; /* any try: it may have taken effect, although
                                the Hub did not confirm it */
} hfsbi_hub_request;

/* Prepares a request; end it with hfsbi_hub_end() in any case, which wipes its
   body. HFSB_OK; HFSB_ARG for an invalid name; HFSB_NOMEM; what
   hfsb_hub_user() returns when the owner must be asked for. */
HFSBI_FN hfsb_status hfsbi_hub_begin(hfsb_hub *hub, hfsbi_hub_request *request,
                                     hfsbi_hub_endpoint endpoint,
                                     hfsb_str subject, hfsb_str detail,
                                     const hfsb_cancel *cancel, hfsb_err *err);
HFSBI_FN void        hfsbi_hub_end(hfsbi_hub_request *request);

/* Begins a JSON object as the body. The caller writes its members and its end;
   hfsbi_hub_send() checks that the writer succeeded. */
HFSBI_FN hfsb_json_writer *hfsbi_hub_object(hfsbi_hub_request *request);

/* Sends the request once: HFSB_OK for 2xx, else as hub.h describes. */
HFSBI_FN hfsb_status hfsbi_hub_once(hfsbi_hub_request *request, hfsb_err *err);
/* Sends it until it succeeds, or another try is unsafe or cannot help. */
HFSBI_FN hfsb_status hfsbi_hub_send(hfsbi_hub_request *request, hfsb_err *err);

/* GETs page after page of arrays and calls each for every item, until it
   returns false or `limit` (0: no limit) items were seen. */
HFSBI_FN hfsb_status hfsbi_hub_pages(hfsbi_hub_request *request, size_t limit,
                                     bool (*each)(void                  *user,
                                                  const hfsb_json_value *item),
                                     void *user, hfsb_err *err);

/* HFSB_REMOTE for a complete reply that has this problem. */
HFSBI_FN hfsb_status hfsbi_hub_bad_reply(const hfsbi_hub_request *request,
                                         const char *problem, hfsb_err *err);

/* Appends text without the hub's token and the values of the pairs. HFSB_OK;
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_hub_redact(const hfsb_hub      *hub,
                                      const hfsb_hub_pair *pairs, size_t count,
                                      hfsb_str text, hfsb_buf *out);

/* ---- space.c ---- */

/* What the status of a duplication leaves open. */
typedef struct hfsbi_hub_fate {
    bool later;   /* HFSB_CONFLICT because another operation is in progress,
                     not because the name is taken */
    bool unknown; /* HFSB_CANCELLED after the request was sent, and before
                     anyone looked for the Space */
} hfsbi_hub_fate;

/* hfsb_hub_duplicate() that also fills *fate. */
HFSBI_FN hfsb_status hfsbi_hub_duplicate(hfsb_hub *hub, hfsb_str from,
                                         const hfsb_space_spec *spec,
                                         const hfsb_cancel     *cancel,
                                         hfsbi_hub_fate *fate, hfsb_err *err);

/* The variables of a Space: {"KEY": {...}} in *out. */
HFSBI_FN hfsb_status hfsbi_hub_variables(hfsb_hub *hub, hfsb_str id,
                                         const hfsb_cancel *cancel,
                                         hfsb_json_doc *out, hfsb_err *err);

/* What the tries to delete a Space have shown so far. All zero at first. */
typedef struct hfsbi_hub_tried {
    bool      unclear;  /* it may be gone */
    long long asked_ms; /* wait that the Hub asked for (0: none) */
} hfsbi_hub_tried;

/* hfsb_hub_delete() in one request, for callers that count their tries. It
   ends by `until` on hfsb_clock_ms() (0: the hub's timeout). *tried is the
   same for all tries; once it is unclear, "not found" is HFSB_OK. */
HFSBI_FN hfsb_status hfsbi_hub_delete_once(hfsb_hub *hub, hfsb_str id,
                                           long long          until,
                                           const hfsb_cancel *cancel,
                                           hfsbi_hub_tried   *tried,
                                           hfsb_err          *err);
/* hfsb_hub_runtime() that ends by `until`, with all its repeats. */
HFSBI_FN hfsb_status hfsbi_hub_runtime_until(hfsb_hub *hub, hfsb_str id,
                                             long long           until,
                                             const hfsb_cancel  *cancel,
                                             hfsb_space_runtime *out,
                                             hfsb_err           *err);

/* The stages of a Space, by what a client can do about them. */
typedef enum hfsbi_space_state {
    HFSBI_SPACE_UNKNOWN,  /* the Hub did not say, or a stage unknown to us */
    HFSBI_SPACE_RUNNING,  /* it answers, perhaps with an older build */
    HFSBI_SPACE_STARTING, /* BUILDING, APP_STARTING: wait */
    HFSBI_SPACE_ASLEEP,   /* SLEEPING, STOPPED: the first request wakes it */
    HFSBI_SPACE_PAUSED,   /* only its owner's restart starts it */
    HFSBI_SPACE_FAILED,   /* BUILD_ERROR, RUNTIME_ERROR, CONFIG_ERROR,
                             NO_APP_FILE: only a new commit can help */
    HFSBI_SPACE_GONE      /* deleted, misspelt, or hidden from this token */
} hfsbi_space_state;

HFSBI_FN hfsbi_space_state hfsbi_space_state_of(const char *stage);

/* Asks the Hub for the stage in one request of at most wait_ms milliseconds,
   to find out early that waiting for a Space is pointless. *out is filled,
   all zero when the state is UNKNOWN or GONE; *err says why. */
HFSBI_FN hfsbi_space_state hfsbi_hub_look(hfsb_hub *hub, hfsb_str id,
                                          long long           wait_ms,
                                          const hfsb_cancel  *cancel,
                                          hfsb_space_runtime *out,
                                          hfsb_err           *err);

/* ---- jobs.c ---- */

/* The stage of a job, "" when the Hub does not say. */
HFSBI_FN hfsb_str hfsbi_job_stage(const hfsb_json_value *job);
/* True when a job in this stage has ended. */
HFSBI_FN bool hfsbi_job_is_final(hfsb_str stage);

/* ---- hub.c ---- */

/* The hub's transport, for its sandboxes. */
HFSBI_FN const hfsb_transport *hfsbi_hub_transport(const hfsb_hub *hub);
/* Logs one line, when there is a log. */
HFSBI_FN void hfsbi_hub_log(const hfsb_hub *hub, const char *format, ...)
    HFSBI_PRINTF(2, 3);
/* True the first time it is called with that topic. */
HFSBI_FN bool hfsbi_hub_first(hfsb_hub *hub, hfsb_str topic);
/* Overwrites and frees. */
HFSBI_FN void hfsbi_hub_wipe(hfsb_buf *b);

/* "30m" in seconds; 0 when it is not a time above 0. */
HFSBI_FN long long hfsbi_hub_seconds(hfsb_str text);

/* Puts a member that is a string. */
HFSBI_FN void hfsbi_hub_put(hfsb_json_writer *w, const char *key,
                            hfsb_str value);
/* Appends text percent-encoded; *out remembers a failure. */
HFSBI_FN void hfsbi_hub_put_encoded(hfsb_buf *out, hfsb_str text);
/* Copies a string of at most size - 1 bytes, "" for any other value; a longer
   one is cut at the end of a character. */
HFSBI_FN void hfsbi_hub_copy(const hfsb_json_value *value, char *out,
                             size_t size);
/* Checks the names of secrets or variables: a letter, then letters, digits and
   "_", at least `least` characters. HFSB_OK; HFSB_ARG with the index of the
   first bad one in err->pos. */
HFSBI_FN hfsb_status hfsbi_hub_check_keys(const hfsb_hub_pair *pairs,
                                          size_t count, size_t least,
                                          hfsb_err *err);

/* ==== sandbox.c: a sandbox that is a Space ==== */

enum { HFSBI_SUFFIX = 8 }; /* hexadecimal digits at the end of a name */
#define HFSBI_CREATE_MARK "HFSB_CREATED" /* variable of our Spaces */

/* A handle of the Space id; sends nothing. */
HFSBI_FN hfsb_status hfsbi_space_new(const hfsb_sandbox_opts *opts,
                                     hfsb_str id, bool owned,
                                     hfsb_sandbox **out, hfsb_err *err);
/* Asks the Hub for the address of a Space whose name does not determine it. */
HFSBI_FN hfsb_status hfsbi_space_locate(hfsb_sandbox *sandbox, hfsb_err *err);

/* ==== create.c ==== */

/* hfsb_sandbox_create() that also appends to *left (may be NULL) the id of a
   Space that it created and could not delete. */
HFSBI_FN hfsb_status hfsbi_sandbox_make(const hfsb_sandbox_spec *spec,
                                        const hfsb_sandbox_opts *opts,
                                        hfsb_buf *left, hfsb_sandbox **out,
                                        hfsb_err *err);
/* Waits until the Space runs the commit `sha` ("": any) on the hardware of
   spec. *seen becomes true once the Hub has shown the Space. */
HFSBI_FN hfsb_status hfsbi_sandbox_start(hfsb_sandbox            *sandbox,
                                         const hfsb_sandbox_spec *spec,
                                         const char *sha, bool *seen,
                                         hfsb_err *err);

/* Shared with job_home.c and job_create.c: */

/* Removes the tokens and the secrets of spec from a text. */
HFSBI_FN void hfsbi_create_scrub(const hfsb_sandbox_opts *opts,
                                 const hfsb_sandbox_spec *spec, char *text);
/* Appends the end of the log of the Space ("build" or "run"), or of the job,
   to *err, if the Hub has one. */
HFSBI_FN void hfsbi_log_end_add(const hfsb_sandbox      *s,
                                const hfsb_sandbox_spec *spec,
                                const char *which, hfsb_err *err);
/* Checks the names of the user's secrets. */
HFSBI_FN hfsb_status hfsbi_create_check_secrets(const hfsb_sandbox_spec *spec,
                                                hfsb_err                *err);
/* False when the Hub reported that nothing was made, or was never asked. */
HFSBI_FN bool hfsbi_create_may_have_run(hfsb_status st);
/* Appends `end` completely, if need be by cutting the message before it. */
HFSBI_FN void hfsbi_create_append(hfsb_err *err, const char *end);
/* Calls on_failure; true when the sandbox is to be kept: *err then says so. */
HFSBI_FN bool hfsbi_create_keep(const hfsb_sandbox_spec *spec,
                                const hfsb_sandbox *s, hfsb_status st,
                                hfsb_err *err);

/* ==== job_home.c: a sandbox that is a job ==== */

#define HFSBI_HUBJOB_LABEL       "hfsb-sandbox" /* = "1": it is a sandbox */
#define HFSBI_HUBJOB_NONCE_LABEL "hf-sandbox-nonce" /* of its token */

enum { HFSBI_HUBJOB_PORT = 49983 };

/* True for "jobs/OWNER/ID"; *owner and *job then are views of its parts. */
HFSBI_FN bool hfsbi_hubjob_split(hfsb_str id, hfsb_str *owner, hfsb_str *job);
/* A handle of the job `id`; sends nothing. */
HFSBI_FN hfsb_status hfsbi_hubjob_new(const hfsb_sandbox_opts *opts,
                                      hfsb_str id, bool owned,
                                      hfsb_sandbox **out, hfsb_err *err);
/* Asks the Hub for the address of the job's server, and derives its token,
   unless the options give both. */
HFSBI_FN hfsb_status hfsbi_hubjob_locate(hfsb_sandbox *sandbox, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_hubjob_status(hfsb_sandbox       *sandbox,
                                         hfsb_space_runtime *out,
                                         hfsb_err           *err);
/* Cancels the job `id`. HFSB_OK even when it has ended; HFSB_NOT_FOUND.
   tried NULL: with the hub's repeats; else as hfsbi_hub_delete_once(). */
HFSBI_FN hfsb_status hfsbi_hubjob_end(hfsb_hub *hub, hfsb_str id,
                                      long long          until,
                                      const hfsb_cancel *cancel,
                                      hfsbi_hub_tried *tried, hfsb_err *err);
/* Appends the token that belongs to a nonce. */
HFSBI_FN hfsb_status hfsbi_hubjob_token(const hfsb_hub *hub, hfsb_str nonce,
                                        hfsb_buf *out);
/* Takes the address from the job. HFSB_OK; HFSB_BUSY when it has none yet. */
HFSBI_FN hfsb_status hfsbi_hubjob_take_url(hfsb_sandbox          *sandbox,
                                           const hfsb_json_value *job,
                                           hfsb_err              *err);
/* Waits until the Hub gives the address, which it usually does at once. */
HFSBI_FN hfsb_status hfsbi_hubjob_await_url(hfsb_sandbox            *sandbox,
                                            const hfsb_sandbox_spec *spec,
                                            long long deadline, hfsb_err *err);

/* ==== job_create.c ==== */

/* hfsbi_sandbox_make() for a spec with an image. */
HFSBI_FN hfsb_status hfsbi_hubjob_make(const hfsb_sandbox_spec *spec,
                                       const hfsb_sandbox_opts *opts,
                                       hfsb_buf *left, hfsb_sandbox **out,
                                       hfsb_err *err);

/* ==== session.c ==== */

/* A sandbox of the session; see preload.c for its states. */
typedef enum hfsbi_box_state {
    HFSBI_BOX_MAKING,  /* the maker thread creates it */
    HFSBI_BOX_READY,   /* calls may use it */
    HFSBI_BOX_RETIRED, /* replaced: deleted once no call uses it */
    HFSBI_BOX_LEFT     /* creation failed and could not delete its Space */
} hfsbi_box_state;

typedef struct hfsbi_box {
    struct hfsbi_box *next;
    hfsbi_box_state   state;
    hfsb_sandbox     *sandbox; /* NULL while MAKING and when LEFT */
    hfsb_cancel      *cancel;  /* ends the creation, and calls without a
                                  cancel of their own */
    hfsb_buf          hardware;
    hfsb_buf          left;      /* id of the Space that is LEFT */
    size_t            users;     /* calls that hold it */
    bool              automatic; /* preloaded, so that it may be replaced */
} hfsbi_box;

typedef struct hfsbi_waiter hfsbi_waiter; /* in preload.c */

struct hfsb_session {
    /* constant after open */
    hfsb_alloc        alloc;
    hfsb_runtime      runtime;
    hfsb_tools       *tools; /* of the local runtime */
    hfsb_sandbox_opts opts;  /* of sandboxes, except for cancel */
    hfsb_sandbox_spec spec;  /* of the preloaded one */
    hfsb_hub_pair    *secrets;
    size_t            secret_cap;
    hfsb_buf          texts; /* of opts, spec and secrets */
    hfsb_cancel      *give_up;
    long long         close_ms;
    hfsb_status (*connect)(void *user, const hfsb_cancel *cancel,
                           hfsb_sandbox **out, hfsb_err *err);
    hfsb_log_fn log;
    void       *user;

    pthread_mutex_t   lock;    /* guards the rest */
    pthread_cond_t    changed; /* see hfsbi_session_wait() */
    hfsbi_waiter     *waiters;
    hfsbi_box        *box;     /* in use now, or NULL */
    hfsbi_box        *boxes;   /* all that have a Space to be deleted */
    bool              claimed; /* a sandbox_create is under way: only it may
                                  start the maker, others wait for it */
    hfsbi_box        *making;  /* what the maker thread creates, or NULL ... */
    hfsb_sandbox_spec make;    /* ... with these properties */
    bool              thread_there; /* the maker must be joined */
    pthread_t         thread;
    hfsb_status       made; /* outcome of the last creation */
    hfsb_err          made_err;
    hfsbi_plan        plan;
    hfsb_buf jobs; /* of the remote runtime: ids of commands that may run
                      there, each followed by a NUL */
};

/* Writes one line to the log, if there is one. Not under the lock. */
HFSBI_FN void hfsbi_session_log(const hfsb_session *session,
                                const char *format, ...) HFSBI_PRINTF(2, 3);

/* One call of a tool of the session's own. */
typedef struct hfsbi_own_call {
    hfsb_session                *session;
    const struct hfsbi_own_tool *tool; /* in session.c */
    const hfsb_json_value       *arguments;
    const hfsb_cancel           *cancel;
} hfsbi_own_call;

/* ==== preload.c: the sandboxes of a session ==== */

/* Starts the maker thread. Nothing is being made. Under the lock. */
HFSBI_FN hfsb_status hfsbi_session_start(hfsb_session            *session,
                                         const hfsb_sandbox_spec *spec,
                                         bool automatic, hfsb_err *err);
/* Ends the claim of a sandbox_create. Under the lock. */
HFSBI_FN void hfsbi_session_unclaim(hfsb_session *session);
/* Waits until something changes. Under the lock, which is released meanwhile;
   false when cancel is set. */
HFSBI_FN bool hfsbi_session_wait(hfsb_session      *session,
                                 const hfsb_cancel *cancel);
/* The sandbox in use, held until it is released; waits for its creation, and
   starts it if needed. Any status but HFSB_OK is explained in *err. Takes the
   lock. */
HFSBI_FN hfsb_status hfsbi_session_hold(hfsb_session      *session,
                                        const hfsb_cancel *cancel,
                                        hfsbi_box **out, hfsb_err *err);
/* HFSB_OK, or why a retired sandbox could not be deleted. Takes the lock. */
HFSBI_FN hfsb_status hfsbi_session_release(hfsb_session *session,
                                           hfsbi_box *box, hfsb_err *err);
/* A job that may run in the sandbox from now on: close kills it. HFSB_OK or
   HFSB_NOMEM. Takes the lock. */
HFSBI_FN hfsb_status hfsbi_session_note_job(hfsb_session *session,
                                            const char   *id);
/* The job has ended, or was never started. Takes the lock. */
HFSBI_FN void hfsbi_session_forget_job(hfsb_session *session, const char *id);
/* Ends the creation under way, deletes all sandboxes. Takes the lock. */
HFSBI_FN hfsb_status hfsbi_session_end(hfsb_session *session, hfsb_err *err);

/* ==== hf_jobs.c, hf_jobs_run.c ==== */

/* command is a string or a list, secrets a list or an object. */
typedef struct hfsbi_hf_jobs_args {
    hfsb_str operation, script, python, image, flavor, timeout, id, space;
    hfsb_str name, stage, schedule;
    hfsb_str trackio, project; /* trackio: its Space */
    const hfsb_json_value *with, *args, *env, *labels, *volumes, *ports;
} hfsbi_hf_jobs_args;

typedef struct hfsbi_hf_jobs_call {
    hfsb_session             *session;
    const hfsb_json_value    *arguments;
    const hfsbi_hf_jobs_args *args;
    const hfsb_cancel        *cancel;
    hfsb_tool_result         *result;
    hfsb_str                  id, space; /* job_id and namespace, or empty */
    hfsb_str                  flavor;    /* of run */
    hfsb_scheduled            what;      /* to do with a scheduled job */
    hfsb_json_doc             job;       /* as the Hub describes it */
    hfsb_buf                  text;      /* becomes the output, masked */
} hfsbi_hf_jobs_call;

/* Makes the job that the arguments describe, or a scheduled one, and sends it:
   c->job is the Hub's answer. */
HFSBI_FN hfsb_status hfsbi_hf_jobs_start(hfsbi_hf_jobs_call *c, hfsb_err *err);

HFSBI_FN const hfsbi_tool *hfsbi_hf_jobs_tool(void);
/* Executes it; args as its parameters describe. */
HFSBI_FN hfsb_status hfsbi_session_jobs(const hfsbi_own_call *call,
                                        const void           *args,
                                        hfsb_tool_result     *result,
                                        hfsb_err             *err);
