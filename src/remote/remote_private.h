#pragma once

#include "../net/net_private.h"
#include "../tools/tools_private.h"
#include "sandbox.h"

/* remote_private.h - what the files of the room remote share: the client of a
   server at a URL.

       seen.c            a file is read before it is changed
       sandbox_call.c    one call of a tool, from its arguments to its result
       sandbox_files.c   files, byte for byte
       sandbox.c         the handle: addresses, tokens, waiting for it
       v1_files.c        the files of a server that speaks HF's /v1
       v1.c              ... its commands, and the tools on top of both */

/* ==== sandbox.c: a handle ==== */

/* Where the machine of a sandbox comes from, if this program can ask: the Hub,
   for a Space or a job (room hub). A server at a URL has none. */
typedef struct hfsbi_home {
    /* Called when the server does not answer. HFSB_OK when waiting can help,
       else the reason in *err. fresh: the machine was just started. */
    hfsb_status (*look)(hfsb_sandbox *sandbox, bool fresh, hfsb_err *err);
    /* Writes the state of the machine, one word. */
    void (*stage)(hfsb_sandbox *sandbox, const hfsb_cancel *cancel, char *out,
                  size_t size);
    /* Removes an owned machine from its home. */
    hfsb_status (*remove)(hfsb_sandbox *sandbox, hfsb_err *err);
} hfsbi_home;

struct hfsbi_probe;
struct hfsbi_remote;
struct hfsbi_v1;

/* What depends on the protocol of the server. A program links only the
   protocols that it names: /v1 needs all local tools. */
struct hfsb_protocol {
    /* The header field of the server's token, and what precedes the token. */
    const char *token_name, *token_prefix;
    /* Sets the addresses of the server at url, and what the protocol needs;
       *parsed are the parts of url. HFSB_OK; HFSB_ARG; HFSB_NOMEM. close
       frees it, also after a failure (NULL: there is nothing to free). */
    hfsb_status (*open)(hfsb_sandbox *sandbox, hfsb_str url, hfsb_url *parsed,
                        hfsb_err *err);
    void (*close)(hfsb_sandbox *sandbox);
    /* One health check of at most ms. HFSB_OK: the server answers; HFSB_BUSY:
       not yet; HFSB_AUTH, HFSB_NOT_FOUND, HFSB_NOMEM, HFSB_CANCELLED,
       HFSB_REFUSED, HFSB_ARG.
       p->last says why it failed. */
    hfsb_status (*check)(hfsb_sandbox *sandbox, struct hfsbi_probe *p,
                         long long ms);
    /* Carries out the call in r->body. HFSB_OK with *result; else *result may
       be incomplete, and *err is the text for it. */
    hfsb_status (*run)(struct hfsbi_remote *r, hfsb_tool_result *result,
                       hfsb_err *err);
};

struct hfsb_sandbox {
    /* constant once the handle is open; api once the server is located */
    hfsb_sandbox_opts    o;         /* its texts are in `texts`, defaults are
                                    filled in */
    hfsb_transport       transport; /* owned by the caller */
    hfsb_str             id;        /* "owner/name"; "" for a URL */
    hfsb_buf             texts;     /* copies of id and of the options' texts,
                                    each NUL-terminated; contains secrets */
    hfsb_buf             page, api; /* api: "https://.../api/" */
    const hfsb_protocol *protocol;
    struct hfsbi_v1     *v1;      /* of a server that speaks /v1, else NULL */
    hfsb_buf             token;   /* of the server, when its home knows it and
                                    the options do not; o.api_token shows it */
    const hfsbi_home    *home;    /* NULL for a URL */
    bool                 owned;   /* may be removed from its home */
    bool                 at_edge; /* gets hub_token too */
    bool                 usual_dir; /* o.work_dir is that of the reference's
                                    Spaces: not for hfsb-server, which has its
                                    own */
    hfsbi_seen seen; /* files read or written, by their absolute path;
                               has a lock of its own */

    pthread_mutex_t lock; /* guards the rest */
    bool            removed;
    bool            answered;     /* some reply has come from its address */
    char            instance[64]; /* of hfsb-server; "": it is another server,
                                     or has not answered yet */
};

/* A handle without an address: checks, copies and resolves the options; sends
   nothing. The caller adds page, api and home. */
HFSBI_FN hfsb_status hfsbi_sandbox_new(const hfsb_sandbox_opts *opts,
                                       hfsb_str id, hfsb_sandbox **out,
                                       hfsb_err *err);
/* A handle of the server at url; sends nothing. */
HFSBI_FN hfsb_status hfsbi_sandbox_open_url(hfsb_str                 url,
                                            const hfsb_sandbox_opts *opts,
                                            hfsb_sandbox **out, hfsb_err *err);
/* Appends "http://host:1/x/api/" to *api, for a URL with or without "/api",
   and returns the parts of url in *parsed (may be NULL). HFSB_OK; HFSB_ARG;
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_sandbox_address(hfsb_str url, hfsb_url *parsed,
                                           hfsb_buf *api, hfsb_err *err);
/* Frees the handle, secrets overwritten. NULL is allowed. */
HFSBI_FN void hfsbi_sandbox_free(hfsb_sandbox *sandbox);
/* Writes one line to the log, if there is one. */
HFSBI_FN void hfsbi_sandbox_log(const hfsb_sandbox *sandbox,
                                const char *format, ...) HFSBI_PRINTF(2, 3);

/* The protocol of /api, see sandbox_call.c. */
HFSBI_FN const hfsb_protocol *hfsbi_protocol_api(void);
/* hfsb_protocol.open() of /api. */
HFSBI_FN hfsb_status hfsbi_sandbox_place(hfsb_sandbox *sandbox, hfsb_str url,
                                         hfsb_url *parsed, hfsb_err *err);
/* Appends up to 95 bytes of a text of the server to *err, tokens removed. */
HFSBI_FN void hfsbi_sandbox_quote(const hfsb_sandbox *sandbox, hfsb_str text,
                                  hfsb_err *err);

/* One wait for the server; see the picture in sandbox.c. All zero at first,
   except for `before`. */
typedef struct hfsbi_probe {
    const char *before;   /* instance that does not count, or "" */
    bool        fresh;    /* the machine was just started: the server that ran
                             before may still answer, and refuse the token */
    bool        look;     /* ask its home when a check fails, */
    long long   look_at;  /* on hfsb_clock_ms(): not before this time */
    long long   empty_ms; /* the longest wait while every connection fails (0:
                             as long as for an answer) */
    int         status;   /* HTTP status of the last reply, 0: none yet */
    bool        outdated; /* the last reply came from the previous server */
    hfsb_err    last;     /* why the last check failed, or "" */
} hfsbi_probe;

/* hfsb_protocol.check() of /api. */
HFSBI_FN hfsb_status hfsbi_probe_check(hfsb_sandbox *sandbox, hfsbi_probe *p,
                                       long long ms);
/* Checks health for wait_ms until the server answers; always at least once,
   and once more at the deadline. HFSB_OK; HFSB_AUTH unless fresh; HFSB_TIMEOUT
   "Sandbox API at {url} not responding ..."; HFSB_CANCELLED; what home->look()
   returned. */
HFSBI_FN hfsb_status hfsbi_probe_run(hfsb_sandbox *sandbox, hfsbi_probe *p,
                                     long long wait_ms, hfsb_err *err);
/* Waits for the server of *handle as connect does; on failure frees *handle
   and sets it to NULL. */
HFSBI_FN hfsb_status hfsbi_sandbox_connect(const hfsb_sandbox_opts *opts,
                                           hfsb_sandbox           **handle,
                                           hfsb_err                *err);
/* Writes the instance that answers now, or "". */
HFSBI_FN void
hfsbi_sandbox_find_instance(hfsb_sandbox *sandbox,
                            char out[sizeof((hfsb_sandbox *)0)->instance]);

/* Sends one request to api + `path` (which may have a query) with both tokens
   and the call's fields, and notes the server's instance. The call's url is
   ignored. Results as hfsb_http_send(). */
HFSBI_FN hfsb_status hfsbi_sandbox_send(hfsb_sandbox *sandbox, hfsb_str path,
                                        const hfsb_http_call *call,
                                        hfsb_http_reply *reply, hfsb_err *err);
/* Opens a WebSocket at `path` beside /api, with both tokens; cancel replaces
   that of the handle unless it is NULL. HFSB_ARG for a server of /v1; else as
   hfsbi_ws_client_open(). */
HFSBI_FN hfsb_status hfsbi_sandbox_websocket(hfsb_sandbox *sandbox,
                                             const char *path, size_t max,
                                             const hfsb_cancel *cancel,
                                             hfsbi_ws_client  **out,
                                             int *status, hfsb_err *err);
/* The instance in "X-Hfsb: {version}; instance={id}"; "" if there is none, or
   if it is too long to be compared later. */
HFSBI_FN hfsb_str hfsbi_reply_instance(const hfsb_http_reply *reply);
/* True when url, where a reply came from, has the sandbox's own origin. */
HFSBI_FN bool hfsbi_sandbox_is_origin(const hfsb_sandbox *sandbox,
                                      hfsb_str            url);

/* The retries of a call: o.tries, with delay_ms, 2 delay_ms ... between. */
HFSBI_FN hfsbi_retry hfsbi_sandbox_retry(const hfsb_sandbox *sandbox,
                                         const hfsb_cancel  *cancel);
/* Waits poll_ms, or less if the deadline (on hfsb_clock_ms()) comes first.
   HFSB_OK: look again; HFSB_LIMIT: the deadline has passed; HFSB_CANCELLED. */
HFSBI_FN hfsb_status hfsbi_poll_wait(const hfsb_cancel *cancel,
                                     long long poll_ms, long long deadline);

/* Removes the handle's tokens from a text: a peer may echo them. */
HFSBI_FN void hfsbi_sandbox_scrub(const hfsb_sandbox *sandbox, char *text);
/* Copies texts into one buffer, each followed by a NUL, and makes the views
   show the copies. The buffer must not grow afterwards. */
HFSBI_FN hfsb_status hfsbi_keep_texts(hfsb_buf *texts, hfsb_str *const *list,
                                      size_t count);
/* Milliseconds as seconds, for messages: "600" or "0.25". */
#define HFSBI_SECONDS 24 /* size of the text, its NUL included */
HFSBI_FN void hfsbi_seconds_text(long long ms, char out[HFSBI_SECONDS]);

/* ==== sandbox_call.c: a call on its way to a sandbox and back ==== */

/* The output of a command, as the events of its reply deliver it. */
typedef struct hfsbi_remote_text {
    hfsb_sse           sse;
    bool               streams;  /* this reply is a stream of events */
    bool               used;     /* some reply was, in this try or before */
    bool               ended;    /* the event with the result has come */
    unsigned long long shown[2]; /* bytes of each stream passed on */
    hfsb_buf           errors;   /* the start of the stderr passed on */
    hfsb_buf           plain;    /* a reply that is not a stream after all */
    hfsb_buf           result;   /* data of the last event */
    hfsb_status        status;   /* of our side: memory, a limit */
} hfsbi_remote_text;

typedef struct hfsbi_remote {
    hfsb_sandbox      *sandbox;
    const hfsbi_tool  *tool;
    const hfsb_cancel *cancel;
    hfsb_call_opts     opts;
    hfsb_buf           body;       /* the arguments, JSON */
    bool               background; /* bash only starts the command */
    double             timeout;    /* seconds the tool may take */
    char               key[256];   /* of idempotency, or "" */
    bool               harmless;   /* may run any number of times */

    /* the tries so far */
    bool again;        /* another try may help */
    bool may_have_run; /* one of them may have reached the server */
    bool trusted;      /* the server knows keys, and is this instance; or the
                          call is carried out here (v1.c) */
    char instance[sizeof((hfsb_sandbox *)0)->instance];

    hfsbi_remote_text text;
    int               status; /* of HTTP */
    hfsb_json_doc     doc;    /* the reply */
} hfsbi_remote;

/* Begins a call of a tool that exists; r->body is empty. */
HFSBI_FN void hfsbi_remote_init(hfsbi_remote *r, hfsb_sandbox *sandbox,
                                const hfsbi_tool  *tool,
                                const hfsb_cancel *cancel);
HFSBI_FN void hfsbi_remote_free(hfsbi_remote *r);
/* Sends r->body as often as needed and allowed. HFSB_OK with r->status and
   r->doc; else *err is the text for the result. */
HFSBI_FN hfsb_status hfsbi_remote_send(hfsbi_remote *r, hfsb_err *err);
/* Converts the reply into *result. */
HFSBI_FN hfsb_status hfsbi_remote_result(hfsbi_remote     *r,
                                         hfsb_tool_result *result,
                                         hfsb_err         *err);
/* Carries out the call in r->body with the protocol of its sandbox. */
HFSBI_FN hfsb_status hfsbi_remote_run(hfsbi_remote     *r,
                                      hfsb_tool_result *result, hfsb_err *err);
/* The status for an HTTP status other than 200. */
HFSBI_FN hfsb_status hfsbi_remote_status(int http);

/* ==== seen.c: a file is read before it is changed ==== */

/* Notes that a file was read or written, in a session. */
HFSBI_FN void hfsbi_sandbox_saw(hfsb_sandbox *sandbox, hfsb_str path,
                                const hfsbi_version *version);
/* False when the call is refused here. *result then contains the reason, or
   *st is not HFSB_OK and *err contains it. */
HFSBI_FN bool hfsbi_remote_may(hfsbi_remote          *r,
                               const hfsb_json_value *arguments,
                               hfsb_tool_result *result, hfsb_status *st,
                               hfsb_err *err);
/* Writes the argument if_sha256 of a call that changes files, from the known
   versions, unless its caller gives it. */
HFSBI_FN void hfsbi_remote_put_condition(const hfsbi_remote    *r,
                                         const hfsb_json_value *arguments,
                                         hfsb_json_writer      *w);
/* Notes the files that a call has read or written. After a write that may have
   been refused because of the condition, the file must be read again. */
HFSBI_FN void hfsbi_remote_saw(hfsbi_remote           *r,
                               const hfsb_json_value  *arguments,
                               const hfsb_tool_result *result);

/* ==== v1_files.c: files of a server that speaks HF's /v1 ==== */

/* Work of one thread on the files there, on its stack. */
typedef struct hfsbi_v1_use {
    struct hfsbi_v1_use *next;
    pthread_t            thread;
    const hfsb_cancel   *cancel;
} hfsbi_v1_use;

typedef struct hfsbi_v1 {
    hfsb_sandbox     *sandbox;
    hfsbi_far_machine far;
    hfsb_tools       *tools;
    hfsb_buf          prefix; /* of routes: "v1/", "v1/sandboxes/{id}/" */
    /* guarded by the lock of the sandbox: */
    long long     protocol; /* 0: not known yet */
    hfsbi_v1_use *uses;
} hfsbi_v1;

/* Fills v1->far.files. */
HFSBI_FN void hfsbi_v1_set_files(hfsbi_v1 *v1);
/* The root of the files there, for the functions of file.h in this thread,
   which cancel (may be NULL) ends early. */
HFSBI_FN const hfsb_root *hfsbi_v1_begin(hfsbi_v1 *v1, hfsbi_v1_use *use,
                                         const hfsb_cancel *cancel);
HFSBI_FN void             hfsbi_v1_end(hfsbi_v1 *v1, hfsbi_v1_use *use);

/* Appends "v1/{route}", and "?path=..." unless path.ptr is NULL. HFSB_OK or
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_v1_path(const hfsbi_v1 *v1, const char *route,
                                   hfsb_str path, hfsb_buf *out);
/* Sends one request to that path, with `more` at its end: a GET until a reply
   comes, anything else again only if nothing was sent. The call's cancel
   becomes that of the thread. Returns as hfsb_http_send(). */
HFSBI_FN hfsb_status hfsbi_v1_send(hfsbi_v1 *v1, const char *route,
                                   hfsb_str path, const char *more,
                                   hfsb_http_call  *call,
                                   hfsb_http_reply *reply, hfsb_err *err);
/* Fails with the reason in a reply other than 200; "Cannot {verb} {path}:
   ...". */
HFSBI_FN hfsb_status hfsbi_v1_refuse(const hfsbi_v1        *v1,
                                     const hfsb_http_reply *reply,
                                     hfsb_str path, const char *verb,
                                     hfsb_err *err);
