#pragma once

#include "../tools/tools_private.h"
#include "../server/server_private.h"

/* The HTTP API of the tools; private to the files of this room.

     api.c     the object, its routes, /api/jobs, /api/health, /api/metrics
     call.c    a call of a tool, from the request to the reply
     fields.c  the arguments of a call, and the errors in them
     fetch.c   a file as a reply
     upload.c  a body as a file, or as several
     files.c   /api/files
     open.c    /proxy, /open: servers that commands have started
     init.c    /init: a token, variables, a working directory, late
     events.c  /api/events
     openapi.c /api/openapi.json
     raw.c     /api/jobs/ID/raw
     stats.c   /api/stats
     page.c    the page at "/", the plan
     exec.c    /api/exec

   Everything is for the thread that runs the server, except where a comment
   names another thread. */

enum {
    HFSBI_API_SMALL = 64 * 1024, /* longest body parsed in the loop, bytes */
    HFSBI_API_BACKLOG = 1024 * 1024,   /* most unsent bytes of events */
    HFSBI_API_INPUT = 4 * 1024 * 1024, /* longest input for a job, bytes */
    HFSBI_API_KEY = 255,               /* longest idempotency key, bytes */
    HFSBI_API_BEAT_MS = 10000,         /* default interval of beats */
    HFSBI_OPEN_KEYS = 64,              /* of /open */
    HFSBI_OPEN_KEY = 40,               /* hexadecimal digits of one */
    HFSBI_OPEN_MS = 12 * 3600 * 1000   /* a key is valid without use */
};

typedef struct hfsbi_api hfsbi_api;

/* The route of a tool. */
typedef struct hfsbi_endpoint {
    hfsbi_api        *api;
    const hfsbi_tool *tool;
} hfsbi_endpoint;

typedef struct hfsbi_watcher hfsbi_watcher; /* see events.c */
typedef struct hfsbi_reset   hfsbi_reset;   /* see reset.c */

/* Requests that wait for events of the journal, and how they hear of them. */
typedef struct hfsbi_news {
    hfsbi_journal_ear ear; /* first: its function casts it back */
    hfsbi_task        task;
    hfsbi_loop       *loop;
    hfsbi_watcher    *watchers; /* newest first; the ear listens while there
                                   are any */
} hfsbi_news;

/* An address of /open, see open.c. */
typedef struct hfsbi_open_key {
    hfsbi_api         *api;
    unsigned           port; /* 0: the key is not valid */
    unsigned char      digest[HFSB_SHA256_SIZE];
    size_t             users;  /* requests that are being answered */
    long long          used;   /* when it last was */
    unsigned long long serial; /* the same as a number that is unique */
} hfsbi_open_key;

typedef struct hfsbi_open {
    hfsbi_face         face;
    hfsbi_open_key     keys[HFSBI_OPEN_KEYS];
    unsigned long long uses;
} hfsbi_open;

/* The page, with what goes into its head. */
typedef struct hfsbi_webpage {
    hfsb_buf text, policy;
    char     etag[40];
} hfsbi_webpage;

/* One per server, from hfsb_server_add_sandbox() to the end of the server. */
struct hfsbi_api {
    hfsbi_server_part      part; /* first: its functions cast it back */
    hfsb_server           *server;
    hfsbi_loop            *loop;
    hfsb_tools            *tools; /* owned */
    hfsb_journal          *journal;
    bool                   own_journal; /* the options had none */
    hfsbi_news             news;
    hfsbi_webpage          page;
    hfsb_alloc             alloc;
    bool                   kill_on_disconnect;
    long long              beat_ms; /* 0: HFSBI_API_BEAT_MS */
    long long              began;   /* hfsb_clock_ms() */
    struct hfsbi_api_call *calls;   /* newest first */
    hfsbi_reset           *resets;  /* in progress */
    bool                   ended;   /* no more commands are started */
    hfsbi_open             open;
    hfsbi_endpoint         endpoints[HFSBI_TOOLS];
};

/* ---- call.c ---- */

/* A timer with a pointer to its call. */
typedef struct hfsbi_beat {
    hfsbi_timer            timer; /* first: its function casts it back */
    struct hfsbi_api_call *owner;
} hfsbi_beat;

/* What happens to a command when its client goes away. */
typedef enum hfsbi_disconnect {
    HFSBI_DISCONNECT_DEFAULT, /* kill if streamed or kill_on_disconnect */
    HFSBI_DISCONNECT_KILL,
    HFSBI_DISCONNECT_CONTINUE
} hfsbi_disconnect;

/* How the reply is sent. A beat begins it in pieces, a stream as events. */
typedef enum hfsbi_api_form {
    HFSBI_FORM_WHOLE, /* nothing is sent yet */
    HFSBI_FORM_PIECES,
    HFSBI_FORM_EVENTS
} hfsbi_api_form;

/* The output of a command on its way to a client that reads events. Arrays
   have an element for stdout and one for stderr. */
typedef struct hfsbi_events {
    hfsb_buf           ready;    /* events that are not sent yet */
    unsigned long long total[2]; /* bytes printed so far */
    unsigned long long from[2];  /* offset where the gap begins */
    bool               gap[2];   /* text since `from` was dropped */
    bool               stalled;  /* the reader is slow: drop text */
} hfsbi_events;

/* A call of a tool, from the request to the reply. While in_thread is set,
   only the pool thread uses the members from `tool` on. Freed by the last
   release once the request is answered or gone and no thread uses the call;
   the states are drawn in call.c. */
typedef struct hfsbi_api_call {
    hfsbi_beat             beat;
    struct hfsbi_api_call *next, *prev;
    hfsbi_api             *api;
    hfsb_request          *request; /* NULL: answered or gone */
    unsigned               held;    /* functions that use the call */
    bool                   in_thread;
    hfsbi_api_form         form;
    bool                   eof;      /* the peer sends no more */
    long long              interval; /* between beats, ms */
    hfsb_cancel            cancel;   /* asks the thread to stop early */
    const char            *where;    /* source of the arguments: "body" or
                                         "query" */
    const char            *who;      /* makes it; NULL: a client */
    hfsb_edit_names        names;    /* of arguments, in its messages */
    bool                   lines;    /* a stream has unfinished lines */

    const hfsbi_tool *tool;
    hfsb_buf          body; /* JSON; doc points into it */
    hfsb_json_doc     doc;  /* the arguments */
    hfsb_buf          id;   /* of a job, from the path; or empty */
    char              key[HFSBI_API_KEY + 1];
    size_t            key_len; /* 0: no idempotency key */
    bool              stream;  /* the client wants events */
    hfsbi_disconnect  disconnect;
    double            timeout; /* of bash, seconds */
    hfsb_call        *call;    /* NULL: not prepared yet */
    bool              ran;     /* the call has been started */
    int               status;  /* HTTP status; 0: not known yet */
    hfsb_buf          reply;   /* body of the reply, JSON */
    hfsbi_events      events;
} hfsbi_api_call;

/* Returns a new call with the body and the idempotency key of the request, for
   hfsbi_api_call_start(), which must follow. NULL if the request is already
   answered and nothing runs: 503 without memory, 400 for an invalid key, 409
   if X-Hfsb-Instance names another instance. */
HFSBI_FN hfsbi_api_call *hfsbi_api_call_new(hfsbi_api        *api,
                                            hfsb_request     *request,
                                            const hfsbi_tool *tool);
/* Runs the call, in a pool thread if it may take long, and replies now or
   later. If x->status is set, only replies. x may be freed on return. */
HFSBI_FN void hfsbi_api_call_start(hfsbi_api_call *x);
/* Cancels all calls, so that pool threads stop early. */
HFSBI_FN void hfsbi_api_calls_end(hfsbi_api *api);
/* Handles the route of a tool; user is its hfsbi_endpoint. */
HFSBI_FN void hfsbi_api_tool(void *user, hfsb_request *request);

/* ---- fields.c ---- */

/* Parses x->body into x->doc, and reads the options of bash for delivery. On
   failure sets x->status and x->reply. In any thread. */
HFSBI_FN void hfsbi_api_call_read_arguments(hfsbi_api_call *x);
/* Sets x->status and x->reply to an error, {"success":false,"output":"",
   "error":...,"detail":...}, which is also valid as the rest of a reply that
   has begun. detail is JSON; empty: the text of error. Without memory the
   status is 503 and the reply empty. In any thread. */
HFSBI_FN void hfsbi_api_call_fail(hfsbi_api_call *x, int status,
                                  hfsb_str detail, hfsb_str error);

/* Appends the "detail" of a 422 as JSON, in the form of FastAPI: an item for
   each argument of the wrong type. If all have the right type, one item with
   the tool's error `sentence`, for the argument `key` ("": for the whole
   object). HFSB_OK; HFSB_NOMEM. In any thread. */
HFSBI_FN hfsb_status hfsbi_fields_detail(const hfsbi_api_call *x,
                                         const char *key, hfsb_str sentence,
                                         hfsb_buf *out);
/* The same with one item, for `key` of the query or the body (`where`); an
   empty key: for all of it. input NULL: null. */
HFSBI_FN hfsb_status hfsbi_fields_detail_item(const char *where, hfsb_str key,
                                              const char            *type,
                                              const char            *text,
                                              const hfsb_json_value *input,
                                              hfsb_buf              *out);

/* ---- events.c ---- */

HFSBI_FN void hfsbi_news_init(hfsbi_api *api);
/* Answers the requests that wait: the server stops. */
HFSBI_FN void hfsbi_news_end(hfsbi_api *api);
/* Stops listening. */
HFSBI_FN void hfsbi_news_stop(hfsbi_api *api);
/* Adds an event for a request that is not a call of a tool. error: why it
   failed (empty: it did not); job: the command it concerns ("": none); began:
   on hfsb_clock_ms(). */
HFSBI_FN void hfsbi_api_report(const hfsb_tools *tools, const char *tool,
                               hfsb_str path, const char *job, hfsb_str error,
                               long long began, unsigned long long bytes);
/* The same, for the request that it is about. */
HFSBI_FN void hfsbi_api_report_request(const hfsb_request *request,
                                       const hfsb_tools   *tools,
                                       const char *tool, hfsb_str path,
                                       const char *job, hfsb_str error,
                                       long long          began,
                                       unsigned long long bytes);
/* Returns who makes a request: "page", or NULL if it does not say. */
HFSBI_FN const char *hfsbi_request_who(const hfsb_request *request);
/* Handles GET /api/events; user is the hfsbi_api. */
HFSBI_FN void hfsbi_events_get(void *user, hfsb_request *request);

/* ---- open.c ---- */

/* Adds the routes of /proxy and /open. */
HFSBI_FN hfsb_status hfsbi_open_add(hfsbi_api *api, hfsb_err *err);
/* Makes all keys invalid; open connections stay open. */
HFSBI_FN void hfsbi_open_forget(hfsbi_api *api);
/* The parameters of the query of GET /api/events. */
HFSBI_FN const hfsbi_param *hfsbi_events_query_params(void);

/* ---- openapi.c ---- */

/* Handles GET /api/openapi.json; user is the hfsbi_api. */
HFSBI_FN void hfsbi_openapi_get(void *user, hfsb_request *request);

/* ---- raw.c, stats.c, page.c ---- */

enum { HFSBI_API_TAP = 256 * 1024 }; /* bytes of raw output of a command */

/* Handle GET /api/jobs/ID/raw, /api/stats, /api/plan and POST /api/plan_tool;
   user is the hfsbi_api. */
HFSBI_FN void hfsbi_raw_get(void *user, hfsb_request *request);
HFSBI_FN void hfsbi_stats_get(void *user, hfsb_request *request);
HFSBI_FN void hfsbi_plan_get(void *user, hfsb_request *request);
HFSBI_FN void hfsbi_plan_post(void *user, hfsb_request *request);

/* Figures of the machine; 0: not known. */
typedef struct hfsbi_figures {
    unsigned long long cpu_all, cpu_idle;              /* ticks */
    unsigned long long mem_total, mem_free, mem_cache; /* bytes */
    unsigned long long disk_total, disk_used;
} hfsbi_figures;

/* Reads them; dir: a folder of the disk that is meant (NULL: none). In a
   thread that is not walled. */
HFSBI_FN void hfsbi_figures_read(hfsbi_figures *f, const char *dir,
                                 const hfsb_alloc *alloc);

/* How many of `cpus` processors the text of a cgroup's cpu.max leaves; all of
   them for one that is empty or has no limit. */
HFSBI_FN long hfsbi_stats_cpus(hfsb_str max, long cpus);

/* The lines of the page, NULL at the end; in page_html.c. */
HFSBI_FN const char *const *hfsbi_webpage_lines(void);
/* Adds the page. HFSB_OK, or as hfsb_server_add(). */
HFSBI_FN hfsb_status hfsbi_webpage_add(hfsbi_api *api, hfsb_err *err);
HFSBI_FN void        hfsbi_webpage_close(hfsbi_webpage *page);

/* ---- exec.c ---- */

/* Handles GET /api/exec, a WebSocket; user is the hfsbi_api. */
HFSBI_FN void hfsbi_exec_get(void *user, hfsb_request *request);

/* ---- fetch.c ---- */

/* The HTTP status for the status of a failed file function. */
HFSBI_FN int hfsbi_file_http_status(hfsb_status st);

enum { HFSBI_ETAG = 96 }; /* bytes */

/* Writes the strong validator of a version of a file, with its quotes and
   NUL. */
HFSBI_FN void hfsbi_file_etag(const hfsb_file_info *info,
                              char                  etag[HFSBI_ETAG]);

/* The conditions of a request. */
typedef struct hfsbi_conditions {
    hfsb_buf match, none_match; /* If-Match, If-None-Match; ptr NULL: none */
} hfsbi_conditions;

/* Copies the fields of the head. False without memory; the caller frees *c in
   any case. */
HFSBI_FN bool hfsbi_conditions_read(const hfsb_http_head *head,
                                    const hfsb_alloc     *alloc,
                                    hfsbi_conditions     *c);
HFSBI_FN void hfsbi_conditions_free(hfsbi_conditions *c);
/* Checks If-Match, and for a change If-None-Match. info NULL: the file does
   not exist. False if a condition fails: the status is 412, *err has the
   reason. In any thread. */
HFSBI_FN bool hfsbi_conditions_hold(const hfsbi_conditions *c,
                                    const hfsb_file_info *info, bool change,
                                    hfsb_err *err);
/* True if the list is "*". */
HFSBI_FN bool hfsbi_etag_is_any(const hfsb_buf *list);

typedef enum hfsbi_range {
    HFSBI_RANGE_NONE,  /* absent, or ignored: send the whole file */
    HFSBI_RANGE_PART,  /* send a part: 206 */
    HFSBI_RANGE_BEYOND /* outside the file: 416 */
} hfsbi_range;

/* Parses the value of a Range field for a file of `size` bytes. *first and
   *length, in bytes, are valid only after HFSBI_RANGE_PART. Several ranges, or
   an invalid one, are ignored. In any thread. */
HFSBI_FN hfsbi_range hfsbi_range_parse(hfsb_str text, unsigned long long size,
                                       unsigned long long *first,
                                       unsigned long long *length);

/* A file to be sent as a reply. */
typedef struct hfsbi_fetch_opts {
    const hfsb_tools *tools; /* with the root and the journal; it must outlive
                                the request */
    const hfsb_root  *root;  /* another root (NULL: that of the tools) */
    hfsb_str          path;  /* copied */
    const char       *type;  /* Content-Type; constant (NULL:
                                application/octet-stream) */
    bool part; /* send `length` bytes from `offset` on, or as many as there
                         are, with 200; the head of the request is ignored.
                         Else its Range and its conditions apply, and the reply
                         has ETag and Last-Modified */
    unsigned long long offset, length; /* ~0ull: up to the end */
    /* Adds fields to the reply to an open file, whose status is 200, 206, 304
       or 416; info has the true size of a file of /proc. False: without
       memory, 503 is sent. (NULL: none) */
    bool (*fields)(void *user, hfsb_request *request, int status,
                   const hfsb_file_info *info);
    /* Replies when there is nothing to send; status is 400 or above, err has
       the reason. It may start other work for the request, such as listing a
       directory (HFSB_IS_DIR, which then is not in the journal). (NULL:
       hfsb_reply_error()) */
    void (*refuse)(void *user, hfsb_request *request, int status,
                   const hfsb_err *err);
    /* Called once, last, even if the client is gone. (NULL: nothing) */
    void (*release)(void *user);
    void *user;
} hfsbi_fetch_opts;

/* Replies with a file, now or later; reports it as "download". All functions
   are called in the loop. The reply has an exact Content-Length. For a route
   without a body, or whose body is complete. */
HFSBI_FN void hfsbi_fetch_start(hfsb_request           *request,
                                const hfsbi_fetch_opts *opts);

/* ---- upload.c ---- */

/* A file that was written. */
typedef struct hfsbi_upload_file {
    hfsb_buf          path; /* as given to the writer */
    hfsb_file_written written;
    char              sha256[HFSB_SHA256_HEX]; /* of the bytes of the body; ""
                                                  with no_sha256 */
} hfsbi_upload_file;

/* The end of an upload; valid during the call. */
typedef struct hfsbi_upload_end {
    int status; /* 201: the file was created; 200: replaced, or the body had
                   parts; from 400 on: failed; 0: the client is gone or has an
                   answer already */
    const hfsb_err          *err;   /* for a status from 400 on: the reason */
    hfsb_str                 path;  /* of the file that failed, or "" */
    const hfsbi_upload_file *files; /* written completely, even if another part
                                       failed after them */
    size_t                   file_count;
} hfsbi_upload_end;

/* Where a body goes. The functions `prepare` and `part` are called in a pool
   thread, one at a time: they must use only their own data. */
typedef struct hfsbi_upload_opts {
    const hfsb_tools *tools; /* with the root and the journal; it must outlive
                                the request */
    const hfsb_root  *root;  /* another root (NULL: that of the tools) */
    hfsb_str          path;  /* copied; not used with `part` */
    hfsb_file_write_opts write; /* what its pointers refer to must exist until
                                   `done` */
    /* Write into the file from range->offset on, in place, instead of
       replacing it; made if it does not exist. `write` is not used then.
       Copied. (NULL: the whole file) */
    const hfsbi_range_opts *range;
    bool                    no_sha256; /* nobody wants it */
    /* Before a file is opened: may check conditions, change the path and the
       options. Any status but HFSB_OK: the file is refused with *err, and with
       *status if that is set. (NULL: nothing) */
    hfsb_status (*prepare)(void *user, hfsb_buf *path,
                           hfsb_file_write_opts *write, int *status,
                           hfsb_err *err);
    /* The body is multipart/form-data. Called when a part begins, with its
       name, filename and type: appends the path of the file that the part
       becomes to *path; without one the part is skipped. Any status but
       HFSB_OK: the upload ends, as for `prepare`. (NULL: the body is one file)
       */
    hfsb_status (*part)(void *user, const hfsbi_multipart *part,
                        hfsb_buf *path, int *status, hfsb_err *err);
    size_t max_parts; /* (0: 1000) */
    /* Replies; called once in the loop in any case, at the earliest during
       hfsbi_upload_start(). The place to free `user`. */
    void (*done)(void *user, hfsb_request *request,
                 const hfsbi_upload_end *end);
    void *user;
} hfsbi_upload_opts;

typedef struct hfsbi_upload hfsbi_upload;

/* Sends the body of the request to a file, or with `part` to one for each part
   as it ends. Called from `begin` of a route whose `body` and `fn` are the two
   functions below; the upload uses hfsb_request_set() and _on_gone(). The
   files are opened before the body arrives: a client that sent "Expect:
   100-continue" receives a refusal instead of 100. Memory is bounded: two
   blocks of 192 KiB and the paths. Each file is reported as "upload". If the
   client goes, complete files stay, an incomplete one is left unchanged (of a
   range, bytes that came are written). Statuses of failures:
   hfsbi_file_http_status(); 415, 400 or 413 for a body in parts that is not
   multipart/form-data, malformed or beyond a limit. */
HFSBI_FN void hfsbi_upload_start(hfsb_request            *request,
                                 const hfsbi_upload_opts *opts);
HFSBI_FN void hfsbi_upload_body(void *user, hfsb_request *request,
                                hfsb_str piece);
HFSBI_FN void hfsbi_upload_finish(void *user, hfsb_request *request);

/* ---- init.c ---- */

/* Handles POST /init; user is the hfsbi_api. */
HFSBI_FN void hfsbi_init_post(void *user, hfsb_request *request);

/* ---- reset.c ---- */

/* Handles POST /reset; user is the hfsbi_api. */
HFSBI_FN void hfsbi_reset_post(void *user, hfsb_request *request);
/* Gives up resets that nobody waits for and that have not reached the files
   yet. */
HFSBI_FN void hfsbi_resets_end(hfsbi_api *api);

/* ---- files.c ---- */

/* Adds the routes of /api/files, for the files in the root of the tools, which
   must outlive the server's requests. HFSB_OK; HFSB_NOMEM, or as
   hfsb_server_add(): routes added before the failure remain. */
HFSBI_FN hfsb_status hfsbi_files_add(hfsb_server *server, hfsb_tools *tools,
                                     hfsb_err *err);
