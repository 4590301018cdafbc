#pragma once

#include "../tools/tools_private.h"
#include "../server/server_private.h"

/* The endpoints of the sandbox on a server. Private to its files. All of it
   belongs to the thread that serves, but for what is marked otherwise. */

enum {
    HFSBI_API_SMALL = 64 * 1024,     /* a longer body is parsed in a thread */
    HFSBI_API_BACKLOG = 1024 * 1024, /* bytes that wait for a slow reader */
    HFSBI_API_INPUT = 4 * 1024 * 1024, /* for a command, at once */
    HFSBI_API_KEY = 255,
    HFSBI_API_BEAT_MS = 10000,
    HFSBI_API_TOOLS = 13
};

typedef struct hfsbi_api hfsbi_api;

/* A route that calls a tool. */
typedef struct hfsbi_endpoint {
    hfsbi_api        *api;
    const hfsbi_tool *tool;
    bool              on_disk; /* its work may block: it is for a thread */
} hfsbi_endpoint;

struct hfsbi_api {
    hfsbi_server_part      part; /* first: it is found by it */
    hfsbi_source           source;
    hfsb_server           *server;
    hfsbi_loop            *loop;
    hfsb_tools            *tools;
    hfsb_alloc             alloc;
    bool                   kill_on_disconnect;
    long long              beat_ms; /* 0: by the tool */
    long long              began;
    struct hfsbi_api_call *calls;   /* newest first */
    size_t                 working; /* of them, in threads */
    bool                   ended;   /* no command is started any more */
    hfsbi_endpoint         endpoints[HFSBI_API_TOOLS];
};

/* ---- server_call.c: a call of a tool by a request ---- */

/* A timer that knows whose it is. */
typedef struct hfsbi_beat {
    hfsbi_timer            timer; /* first */
    struct hfsbi_api_call *owner;
} hfsbi_beat;

typedef enum hfsbi_disconnect {
    HFSBI_DISCONNECT_DEFAULT,
    HFSBI_DISCONNECT_KILL,
    HFSBI_DISCONNECT_CONTINUE
} hfsbi_disconnect;

/* Text that a command printed, on its way to a reader of events. */
typedef struct hfsbi_events {
    hfsb_buf           ready;    /* events, to be sent */
    unsigned long long total[2]; /* bytes that each stream has printed */
    unsigned long long from[2];  /* where what was left out begins */
    bool               gap[2];   /* something was left out */
    bool               stalled;  /* the reader does not keep up */
} hfsbi_events;

/* From the request to its reply. While it is in a thread, that thread alone
   uses what is marked T. Freed by the last hfsbi_api_call_release() once the
   request is answered or gone, or when it comes back from the thread. */
typedef struct hfsbi_api_call {
    hfsbi_task             task; /* first: it is found by it */
    hfsbi_beat             beat;
    struct hfsbi_api_call *next, *prev;
    hfsbi_api             *api;
    hfsb_request          *request; /* NULL: answered or gone */
    unsigned               held;    /* functions of ours that use it */
    bool                   in_thread;
    bool                   begun;     /* the head of the reply is out, */
    bool                   streaming; /* as that of a stream of events */
    bool                   eof;       /* the peer sends no more: is it gone? */
    long long              interval;  /* between beats, ms */
    pthread_mutex_t        lock;      /* of the next one */
    bool                   cancelled; /* the thread is to come back */
    const char            *where;     /* the arguments came from: "body" */

    const hfsbi_tool *tool; /* T, as all that follows */
    bool              on_disk;
    hfsb_buf          body; /* JSON, decoded where it stands */
    hfsb_json_doc     doc;
    hfsb_buf          id; /* of a job, from the path; or empty */
    char              key[HFSBI_API_KEY + 1];
    size_t            key_len;
    bool              stream; /* to be answered by events */
    hfsbi_disconnect  disconnect;
    double            timeout; /* of bash, seconds */
    hfsb_call        *call;
    int               status; /* of the reply, once it is known, */
    hfsb_buf          reply;  /* and its body */
    hfsbi_events      events;
} hfsbi_api_call;

/* A new one, held once, with the body of the request and its key; NULL when
   there is an answer already (503, 400, or 409: its X-Hfsb-Instance names
   another instance than this one, so nothing runs). */
HFSBI_FN hfsbi_api_call *hfsbi_api_call_new(hfsbi_api        *api,
                                            hfsb_request     *request,
                                            const hfsbi_tool *tool);
/* Makes the call, in a thread where that may take long, and answers it, now or
   later. Lets go of it. */
HFSBI_FN void hfsbi_api_call_start(hfsbi_api_call *x);
/* Those in threads come back soon. */
HFSBI_FN void hfsbi_api_calls_end(hfsbi_api *api);
/* Looks which calls are done and answers them; sends events. */
HFSBI_FN void hfsbi_api_calls_step(hfsbi_api *api);
/* The handler of a tool's route; user is its hfsbi_endpoint. */
HFSBI_FN void hfsbi_api_tool(void *user, hfsb_request *request);

/* ---- server_arguments.c: a body becomes the arguments of a tool ---- */

/* From x->body to x->doc, less the keys that are for the server; on failure
   x->status and x->reply say why. In any thread. */
HFSBI_FN void hfsbi_api_call_read_arguments(hfsbi_api_call *x);
/* x->status and x->reply become an error: {"detail", "error", "success":
   false, "output":""}, also good as the end of a reply that was begun. detail
   is JSON (empty: the sentence). In any thread. */
HFSBI_FN void hfsbi_api_call_fail(hfsbi_api_call *x, int status,
                                  hfsb_str detail, hfsb_str error);

/* ---- server_fields.c: what is wrong with the arguments ---- */

/* Appends the "detail" of a 422 as JSON, in the shape of FastAPI's: an item
   for each argument whose form is wrong; when all are right, one with the
   sentence of the tool, for the argument `key` ("": none). HFSB_OK;
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_fields_detail(const hfsbi_api_call *x,
                                         const char *key, hfsb_str sentence,
                                         hfsb_buf *out);

/* ---- server_jobs.c, server_metrics.c, server_files.c: routes ---- */

/* /api/files. */
HFSBI_FN hfsb_status hfsbi_files_add(hfsb_server *server, hfsb_tools *tools,
                                     hfsb_err *err);

/* What the two directions of /api/files share. Private to them. */

/* ---- in threads ---- */

/* The strong validator of a file, with its quotes. */
enum { HFSBI_ETAG = 96 };
HFSBI_FN void hfsbi_file_etag(const hfsb_file_info *info,
                              char                  etag[HFSBI_ETAG]);

/* The part of a file that a Range asks for. */
typedef enum hfsbi_range {
    HFSBI_RANGE_NONE, /* none, or one to be ignored: the whole */
    HFSBI_RANGE_PART,
    HFSBI_RANGE_BEYOND /* 416 */
} hfsbi_range;
HFSBI_FN hfsbi_range hfsbi_range_parse(hfsb_str text, unsigned long long size,
                                       unsigned long long *first,
                                       unsigned long long *length);

/* ---- the routes; user is the hfsbi_files ---- */
