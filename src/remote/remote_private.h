#pragma once

#include "../os/os_private.h"
#include "../tools/tools_private.h"
#include "hub.h"
#include "sandbox.h"
#include "session.h"

/* The inside of the HUB. Private to hub_*.c, but for hfsbi_hub_transport() and
   what hub_space.c gives to sandboxes and sessions. */

struct hfsb_hub {
    /* what does not change once it is open */
    const hfsb_transport *transport;
    hfsb_buf              endpoint;      /* without a slash at its end */
    hfsb_buf              authorization; /* "Bearer ...", or "" */
    hfsb_buf              agent;
    bool                  offline;
    long long             timeout_ms, delay_ms, max_wait_ms;
    size_t                tries;
    hfsb_log_fn           log;
    void                 *user;
    hfsb_alloc            alloc;

    pthread_mutex_t lock;   /* what follows belongs to it */
    hfsb_buf        owner;  /* of the token, once it was asked for */
    hfsb_buf        topics; /* of warnings that were told, an LF behind each */
};

/* One request, its repeats and what came of them. */
typedef struct hfsbi_hub_request {
    const char *method;
    char        what[320]; /* "Could not {what}: ..." */
    hfsb_buf    target;    /* "/api/...", or a whole URL */
    hfsb_buf    body;
    bool        has_body;
    const char *content_type; /* (NULL: application/json) */
    bool        repeat;       /* safe to send again */
    bool        gone_is_done; /* 404 at a repeat is HFSB_OK */
    size_t      tries;        /* (0: as many as the hub makes) */
    long long   until;        /* on hfsb_clock_ms(): no try goes on behind it
                                 (0: no such limit) */
    /* never shown, should the Hub echo one; beside the token */
    const hfsb_hub_pair *secrets;
    size_t               secret_count;
    hfsb_json_doc       *out; /* the answer must be JSON: it goes here */
    const hfsb_cancel   *cancel;
    /* a stream in place of an answer: no limit but idle_ms and until */
    bool (*on_body)(void *user, hfsb_str piece);
    void     *user;
    long long idle_ms;

    /* what came of it */
    hfsb_http_reply reply;
    bool            opened;   /* the head of a 2xx reply came */
    bool            again;    /* of the last try: another one may help */
    bool            unclear;  /* of any try: it may have happened, though the
                                 Hub did not say so */
    long long       asked_ms; /* to wait, as the Hub says; -1: it does not */
} hfsbi_hub_request;

/* ---- hub_request.c ---- */

/* Begins a request; end it with hfsbi_hub_end() in any case, which overwrites
   its body. */
HFSBI_FN void hfsbi_hub_begin(const hfsb_hub *hub, hfsbi_hub_request *request,
                              const char *method, const hfsb_cancel *cancel,
                              const char *what, ...) HFSBI_PRINTF(5, 6);
HFSBI_FN void hfsbi_hub_end(hfsbi_hub_request *request);

/* Sends it once: HFSB_OK for 2xx, else as hub.h says. */
HFSBI_FN hfsb_status hfsbi_hub_once(hfsb_hub *hub, hfsbi_hub_request *request,
                                    hfsb_err *err);
/* Sends it, again where that is safe and may help. */
HFSBI_FN hfsb_status hfsbi_hub_send(hfsb_hub *hub, hfsbi_hub_request *request,
                                    hfsb_err *err);
/* Milliseconds before try n + 1. */
HFSBI_FN long long hfsbi_hub_delay(const hfsb_hub *hub, size_t n);
/* Is there time for try n + 1? */
HFSBI_FN bool hfsbi_hub_has_time(const hfsb_hub          *hub,
                                 const hfsbi_hub_request *request, size_t n);
/* Waits that long, or as the Hub asked for, and tells the log; false when it
   was cancelled, *err filled. */
HFSBI_FN bool hfsbi_hub_wait(hfsb_hub *hub, hfsbi_hub_request *request,
                             size_t n, hfsb_err *err);

/* Sends what *w wrote into the request's body. */
HFSBI_FN hfsb_status hfsbi_hub_send_json(hfsb_hub          *hub,
                                         hfsbi_hub_request *request,
                                         hfsb_json_writer *w, hfsb_err *err);

/* GETs page after page of arrays and calls each for every item, until it says
   false or `limit` (0: none) were told. */
HFSBI_FN hfsb_status hfsbi_hub_pages(hfsb_hub *hub, hfsbi_hub_request *request,
                                     size_t limit,
                                     bool (*each)(void                  *user,
                                                  const hfsb_json_value *item),
                                     void *user, hfsb_err *err);

/* ---- hub_error.c ---- */

/* A whole reply that cannot be understood. */
HFSBI_FN hfsb_status hfsbi_hub_odd(const hfsb_hub          *hub,
                                   const hfsbi_hub_request *request,
                                   const char *problem, hfsb_err *err);
/* Appends text with the token and the request's secrets taken out. */
HFSBI_FN hfsb_status hfsbi_hub_redact(const hfsb_hub          *hub,
                                      const hfsbi_hub_request *request,
                                      hfsb_str text, hfsb_buf *out);

/* ---- hub_space.c ---- */

/* What tries to delete a Space have told so far. All zero at first. */
typedef struct hfsbi_hub_tried {
    bool      unclear;  /* it may be gone */
    long long asked_ms; /* to wait before the next one */
} hfsbi_hub_tried;

/* hfsb_hub_delete() of one request, for those who count their tries; not over
   later than `until` on hfsb_clock_ms() (0: the hub's timeout). *tried, the
   same for all tries, makes "not found" HFSB_OK once it is unclear. */
HFSBI_FN hfsb_status hfsbi_hub_delete_once(hfsb_hub *hub, hfsb_str id,
                                           long long          until,
                                           const hfsb_cancel *cancel,
                                           hfsbi_hub_tried   *tried,
                                           hfsb_err          *err);
/* hfsb_hub_runtime() that is over by then, too, repeats and all. */
HFSBI_FN hfsb_status hfsbi_hub_runtime_until(hfsb_hub *hub, hfsb_str id,
                                             long long           until,
                                             const hfsb_cancel  *cancel,
                                             hfsb_space_runtime *out,
                                             hfsb_err           *err);

/* ---- hub.c ---- */

/* For the sandboxes of a hub. */
HFSBI_FN const hfsb_transport *hfsbi_hub_transport(const hfsb_hub *hub);
/* One line to the log, when there is one. */
HFSBI_FN void hfsbi_hub_log(const hfsb_hub *hub, const char *format, ...)
    HFSBI_PRINTF(2, 3);
/* True the first time it is asked about that topic. */
HFSBI_FN bool hfsbi_hub_first(hfsb_hub *hub, hfsb_str topic);
/* Overwrites and frees. */
HFSBI_FN void hfsbi_hub_wipe(hfsb_buf *b);

/* ---- pieces of JSON ---- */

HFSBI_FN void hfsbi_hub_put(hfsb_json_writer *w, const char *key,
                            hfsb_str value);
/* [{"key":..,"value":..}], nothing for none. */
HFSBI_FN void hfsbi_hub_put_list(hfsb_json_writer *w, const char *key,
                                 const hfsb_hub_pair *pairs, size_t count);
/* Copies a string of at most size - 1 bytes, "" for anything else; what is
   longer is cut at a character's border. */
HFSBI_FN void hfsbi_hub_copy(const hfsb_json_value *value, char *out,
                             size_t size);
/* A name for a secret or variable: a letter, then letters, digits and "_",
   at least `least` in all. */
HFSBI_FN hfsb_status hfsbi_hub_check_key(hfsb_str key, size_t least,
                                         hfsb_err *err);
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
