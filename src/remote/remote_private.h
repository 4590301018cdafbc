#pragma once

#include "../net/net_private.h"
#include "../tools/tools_private.h"
#include "hub.h"
#include "sandbox.h"
#include "session.h"

/* The inside of the HUB. Sandboxes and sessions use the parts marked so; the
   rest is for hub*.c. */

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

/* ---- secrets (also for sandboxes and sessions) ---- */

/* Texts that must never be shown, should a peer echo one. */
typedef struct hfsbi_secrets {
    hfsb_str             tokens[2]; /* (empty: none) */
    const hfsb_hub_pair *pairs;     /* whose values are secret */
    size_t               count;
} hfsbi_secrets;

/* Replaces every secret in text by "***", in place, so that it cannot fail;
   returns the new length and ends a shortened text with a NUL. Of several
   secrets at one place the longest counts. Secrets of less than 4 bytes are
   not replaced: they could be part of any word. */
HFSBI_FN size_t hfsbi_redact(const hfsbi_secrets *secrets, char *text,
                             size_t len);

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
#define HFSBI_HUB_ENDPOINTS(X)                                             \
    X(WHOAMI, "GET", "/api/whoami-v2", "ask the Hub whose token this is",  \
      REPEAT)                                                              \
    X(DUPLICATE, "POST", "/api/spaces/{space}/duplicate",                  \
      "duplicate {space} as {detail}", ONCE)                               \
    X(DELETE, "DELETE", "/api/repos/delete", "delete {space}", REMOVE)     \
    X(SECRET, "POST", "/api/spaces/{space}/secrets",                       \
      "set the secret {detail} of {space}", REPEAT)                        \
    X(VARIABLE, "POST", "/api/spaces/{space}/variables",                   \
      "set the variable {detail} of {space}", REPEAT)                      \
    X(RUNTIME, "GET", "/api/spaces/{space}/runtime",                       \
      "see the state of {space}", REPEAT)                                  \
    X(PAUSE, "POST", "/api/spaces/{space}/pause", "pause {space}", REPEAT) \
    X(RESTART, "POST", "/api/spaces/{space}/restart", "restart {space}",   \
      REPEAT)                                                              \
    X(REBUILD, "POST", "/api/spaces/{space}/restart?factory=true",         \
      "restart {space}", REPEAT)                                           \
    X(SPACE, "GET", "/api/spaces/{space}", "look at {space}", REPEAT)      \
    X(REVISION, "GET", "/api/spaces/{space}/revision/{detail}",            \
      "look at {space}", REPEAT)                                           \
    X(SPACES, "GET", "/api/spaces", "list Spaces", REPEAT)                 \
    X(SPACE_LOGS, "GET", "/api/spaces/{space}/logs/{detail}",              \
      "read the {detail} log of {space}", REPEAT)                          \
    X(VALIDATE, "POST", "/api/validate-yaml",                              \
      "have the metadata of README.md checked", REPEAT)                    \
    X(PREUPLOAD, "POST", "/api/spaces/{space}/preupload/{detail}",         \
      "prepare a commit to {space}", REPEAT)                               \
    X(COMMIT, "POST", "/api/spaces/{space}/commit/{detail}",               \
      "commit to {space}", ONCE)                                           \
    X(JOB_RUN, "POST", "/api/jobs/{owner}", "run a job", ONCE)             \
    X(JOBS, "GET", "/api/jobs/{owner}", "list jobs", REPEAT)               \
    X(JOB, "GET", "/api/jobs/{owner}/{job}", "look at job {job}", REPEAT)  \
    X(JOB_CANCEL, "POST", "/api/jobs/{owner}/{job}/cancel",                \
      "cancel job {job}", REPEAT)                                          \
    X(JOB_LOGS, "GET", "/api/jobs/{owner}/{job}/logs",                     \
      "read the log of job {job}", REPEAT)

typedef enum hfsbi_hub_endpoint {
#define HFSBI_X(name, method, path, what, repeat) HFSBI_HUB_##name,
    HFSBI_HUB_ENDPOINTS(HFSBI_X)
#undef HFSBI_X
        HFSBI_HUB_ENDPOINT_COUNT
} hfsbi_hub_endpoint;

/* ---- hub_request.c ---- */

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
    /* receives the reply piece by piece instead; no timeout applies then but
       idle_ms and the retry's deadline */
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

/* Appends text without the hub's token and the request's secrets. HFSB_OK;
   HFSB_NOMEM. (Also for sessions, with a request that has only secrets.) */
HFSBI_FN hfsb_status hfsbi_hub_redact(const hfsb_hub          *hub,
                                      const hfsbi_hub_request *request,
                                      hfsb_str text, hfsb_buf *out);

/* ---- hub_space.c (for sandboxes and sessions) ---- */

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
    HFSBI_SPACE_UNKNOWN,  /* the Hub did not say, or a stage of the future */
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
   first bad one in err->pos. (Also for sandboxes.) */
HFSBI_FN hfsb_status hfsbi_hub_check_keys(const hfsb_hub_pair *pairs,
                                          size_t count, size_t least,
                                          hfsb_err *err);

/* The inside of a sandbox handle. Private to sandbox_*.c. */

struct hfsb_sandbox {
    /* what does not change once it is made */
    hfsb_sandbox_opts o; /* its texts are in the buffers below; defaults are
                            filled in */
    hfsb_transport    transport;     /* not ours to close */
    hfsb_buf          id, page, api; /* api: "https://.../api/" */
    hfsb_buf          hub_token, api_token, work_dir, space_url;
    bool              is_url, owned;

    pthread_mutex_t lock; /* what follows belongs to it */
    bool            deleted;
    bool            ours;         /* the server has said X-Hfsb */
    char            instance[64]; /* of that */
    hfsb_buf        seen; /* cleaned absolute paths that were read or written,
                             a NUL behind each */
};

/* ---- sandbox_handle.c ---- */

/* A handle for id (or is_url: a server at `api`), all options copied and
   resolved, nothing asked of anyone yet. */
HFSBI_FN hfsb_status hfsbi_sandbox_new(const hfsb_sandbox_opts *opts,
                                       hfsb_str id, hfsb_str url, bool owned,
                                       hfsb_sandbox **out, hfsb_err *err);
/* Frees it, secrets overwritten. */
HFSBI_FN void hfsbi_sandbox_free(hfsb_sandbox *sandbox);
/* One line to the log, when there is one. */
HFSBI_FN void hfsbi_sandbox_log(const hfsb_sandbox *sandbox,
                                const char *format, ...) HFSBI_PRINTF(2, 3);

/* The same for a server that was just started: one that refuses the token, or
   is the instance `before` (may be ""), is what ran there until now, and is
   waited for to go. Never HFSB_AUTH. */
HFSBI_FN hfsb_status hfsbi_sandbox_wait_new(hfsb_sandbox *sandbox,
                                            long long     wait_ms,
                                            const char *before, hfsb_err *err);
/* Asks the Hub for the address of a Space whose name does not tell it. */
HFSBI_FN hfsb_status hfsbi_sandbox_locate(hfsb_sandbox *sandbox,
                                          hfsb_err     *err);
/* "600" or "0.25": milliseconds as seconds, for messages. */
#define HFSBI_SECONDS 24 /* with the NUL */
HFSBI_FN void hfsbi_seconds_text(long long ms, char out[HFSBI_SECONDS]);

/* ---- sandbox_start.c ---- */

/* Takes the handle's tokens out of a text: a peer may echo them. */
HFSBI_FN void hfsbi_sandbox_hide(const hfsb_sandbox *sandbox, char *text);
/* Waits until the Space runs the commit `sha` ("": any) on the hardware of
   spec. *seen becomes true once the Hub has told of it. */
HFSBI_FN hfsb_status hfsbi_sandbox_start(hfsb_sandbox            *sandbox,
                                         const hfsb_sandbox_spec *spec,
                                         const char *sha, bool *seen,
                                         hfsb_err *err);

/* hfsb_sandbox_create() that also appends to *left (may be NULL) the id of a
   Space that it made and could not delete. */
HFSBI_FN hfsb_status hfsbi_sandbox_make(const hfsb_sandbox_spec *spec,
                                        const hfsb_sandbox_opts *opts,
                                        hfsb_buf *left, hfsb_sandbox **out,
                                        hfsb_err *err);

/* ---- sandbox_sweep.c ---- */

/* "2025-03-07T12:24:18.657Z" (0 to 9 digits behind the point, a zone) as
   seconds since 1970; false when it is none. */
HFSBI_FN bool hfsbi_date_parse(hfsb_str text, double *out);

/* ---- sandbox_request.c ---- */

/* One request to the server, both tokens added; what X-Hfsb says is noted.
   The call's url is set here to api + `path` (which may have a query); its
   fields are sent besides. Results as hfsb_http_send(). */
HFSBI_FN hfsb_status hfsbi_sandbox_send(hfsb_sandbox *sandbox, hfsb_str path,
                                        const hfsb_http_call *call,
                                        hfsb_http_reply *reply, hfsb_err *err);

/* A call on its way to a sandbox and back. Private to sandbox_*.c. */

/* What a command prints, as the events of its reply bring it. */
typedef struct hfsbi_remote_text {
    hfsb_sse           sse;
    bool               streams;  /* this reply is a stream of events */
    bool               used;     /* one has begun, in this try or before */
    unsigned long long shown[2]; /* bytes of each stream */
    hfsb_buf           errors;   /* the beginning of what was of stderr */
    hfsb_buf           plain;    /* a reply that is no stream after all */
    hfsb_buf           result;   /* the event that ends it */
    bool               ended;
    hfsb_status        status; /* of our own part in it */
} hfsbi_remote_text;

typedef struct hfsbi_remote {
    hfsb_sandbox      *sandbox;
    const hfsbi_tool  *tool;
    const hfsb_cancel *cancel;
    hfsb_call_opts     opts;
    hfsb_buf           body;    /* JSON */
    double             timeout; /* seconds it may take */
    char               key[256];
    bool               harmless; /* may run any number of times */

    /* the tries */
    bool again;        /* it may be tried again */
    bool may_have_run; /* one of them may have reached the server */
    bool trusted;      /* ... which knows keys, and is this instance: */
    char instance[sizeof((hfsb_sandbox *)0)->instance];

    hfsbi_remote_text text;
    int               status; /* of HTTP */
    hfsb_json_doc     doc;    /* the reply */
} hfsbi_remote;

/* ---- sandbox_request.c ---- */

/* The instance in "X-Hfsb: {version}; instance={id}"; "" when it is none that
   we could compare later. */
HFSBI_FN hfsb_str hfsbi_sandbox_said(hfsb_str value);

/* True when url, where a reply came from, is of the sandbox's own origin. */
HFSBI_FN bool hfsbi_sandbox_is_there(const hfsb_sandbox *sandbox,
                                     hfsb_str            url);

/* ---- sandbox_try.c: sending it until there is a reply ---- */

/* A call of a tool that exists, without arguments yet. */
HFSBI_FN void hfsbi_remote_init(hfsbi_remote *r, hfsb_sandbox *sandbox,
                                const hfsbi_tool  *tool,
                                const hfsb_cancel *cancel);
HFSBI_FN void hfsbi_remote_free(hfsbi_remote *r);

/* Sends r->body as often as it takes and is allowed: HFSB_OK with r->status
   and r->doc; else *err says what a result shall say. */
HFSBI_FN hfsb_status hfsbi_remote_send(hfsbi_remote *r, hfsb_err *err);

/* ---- sandbox_seen.c: a file is read before it is changed ---- */

HFSBI_FN void hfsbi_sandbox_saw(hfsb_sandbox *sandbox, hfsb_str path);

/* False when the call is refused here; *result tells why, or *st why not even
   that. */
HFSBI_FN bool hfsbi_remote_may(hfsbi_remote          *r,
                               const hfsb_json_value *arguments,
                               hfsb_tool_result *result, hfsb_status *st,
                               hfsb_err *err);
/* A call went well: notes the files that were read or written by it. */
HFSBI_FN void hfsbi_remote_saw(hfsbi_remote          *r,
                               const hfsb_json_value *arguments);

/* ---- sandbox_call.c ---- */

/* Makes *result of the reply. */
HFSBI_FN hfsb_status hfsbi_remote_result(hfsbi_remote     *r,
                                         hfsb_tool_result *result,
                                         hfsb_err         *err);
/* The status for one of HTTP that is not 200. */
HFSBI_FN hfsb_status hfsbi_remote_status(int http);

/* The plan of an agent: what plan_tool writes, and the reminder. Private.
   Whoever has one locks it. */

enum {
    HFSBI_REMIND_ITEMS = 4, /* that a reminder lists */
    HFSBI_REMIND_TIMES = 2  /* in a row */
};

/* All zero, but for doc.alloc, at first. */
typedef struct hfsbi_plan {
    hfsb_json_doc doc;      /* as it was written, an array */
    unsigned      reminded; /* times in a row */
} hfsbi_plan;

/* The row of plan_tool; its fn is NULL. */
HFSBI_FN const hfsbi_tool *hfsbi_plan_tool(void);

HFSBI_FN void hfsbi_plan_free(hfsbi_plan *plan);
/* What plan_tool does, its keys looked at already. */
HFSBI_FN hfsb_status hfsbi_plan_set(hfsbi_plan            *plan,
                                    const hfsb_json_value *arguments,
                                    hfsb_tool_result *result, hfsb_err *err);
/* The whole call, keys and all: for whoever has no session. strict as in
   hfsb_call_opts. *result is filled in any case and must be freed. */
HFSBI_FN hfsb_status hfsbi_plan_call(hfsbi_plan            *plan,
                                     const hfsb_json_value *arguments,
                                     bool strict, hfsb_tool_result *result);
/* Appends the plan as JSON. */
HFSBI_FN hfsb_status hfsbi_plan_write(const hfsbi_plan *plan, hfsb_buf *out,
                                      hfsb_err *err);
/* How many items are not completed. */
HFSBI_FN size_t hfsbi_plan_open(const hfsbi_plan *plan);
/* As hfsb_session_remind(). */
HFSBI_FN bool hfsbi_plan_remind(hfsbi_plan *plan, bool called_tools,
                                hfsb_buf *out);

/* The inside of a session. Private to session*.c. */

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

/* ---- session_jobs.c: hf_jobs ---- */

HFSBI_FN const hfsbi_tool *hfsbi_hf_jobs_tool(void);
HFSBI_FN hfsb_status       hfsbi_session_jobs(hfsb_session          *session,
                                              const hfsb_json_value *arguments,
                                              const hfsb_cancel     *cancel,
                                              hfsb_tool_result      *result,
                                              hfsb_err              *err);

/* ---- session_jobs_run.c ---- */
