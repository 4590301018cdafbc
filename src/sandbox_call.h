#pragma once

/* A call on its way to a sandbox and back. Private to sandbox_*.c. */

#include "sandbox_parts.h"
#include "tool.h"

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

/* ---- sandbox_stream.c: text while it is printed ---- */

/* The callbacks of a call whose reply may be a stream; user is the
   hfsbi_remote. */
HFSBI_FN bool hfsbi_remote_on_head(void *user, int status,
                                   const hfsb_http_field *fields,
                                   size_t                 field_count);
HFSBI_FN bool hfsbi_remote_on_body(void *user, hfsb_str piece);

/* Shows what was not shown yet, once the reply is there. */
HFSBI_FN void hfsbi_remote_show_rest(hfsbi_remote *r, hfsb_str output);

/* ---- sandbox_arguments.c ---- */

/* Writes r->body, with what the reference's client adds, and sets the time
   it may take. */
HFSBI_FN hfsb_status hfsbi_remote_arguments(hfsbi_remote          *r,
                                            const hfsb_json_value *arguments,
                                            hfsb_err              *err);

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
