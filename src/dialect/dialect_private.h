#pragma once

#include "../api/api_private.h"
#include "../server/server_private.h"
#include "../tools/tools_private.h"
#include "dialect.h"

/* dialect_private.h - what the dialects share.

     dialect.c   opens a dialect: its tools, its face, its port; helpers
     e2b.c       E2B's envd: sandboxes, tokens, errors
     e2b_rest.c  its REST calls
     e2b_process.c, e2b_input.c, e2b_files.c, e2b_watch.c   its services
     e2b_control.c                                          its control plane

   Every other file is a dialect: a table of routes, and a function for each
   that turns a request into a call and a result into that protocol's reply.
   All of it runs in the thread of the server, but for the functions given to
   hfsbi_request_work(). */

typedef struct hfsbi_dialect_kind hfsbi_dialect_kind;

/* A dialect of a server; the first member of its own struct. */
typedef struct hfsbi_dialect {
    hfsbi_server_part         part; /* first: its functions cast it back */
    hfsbi_face                face;
    const hfsbi_dialect_kind *kind;
    hfsb_server              *server;
    hfsbi_loop               *loop;
    hfsb_tools               *tools; /* owned; `who` is the dialect's name */
    hfsb_alloc                alloc;
    unsigned char             token[HFSB_SHA256_SIZE]; /* digest of its own */
    bool                      has_token; /* else that of the server counts */
} hfsbi_dialect;

struct hfsbi_dialect_kind {
    const char *name;
    size_t      size; /* of its struct, in bytes; all zero but for the first
                         member when open is called */
    /* Sets the functions of the face and adds the routes. */
    hfsb_status (*open)(hfsbi_dialect *d, const hfsb_dialect_opts *opts,
                        hfsb_err *err);
    /* Frees what it owns; called also after open has failed. (NULL: nothing) */
    void (*close)(hfsbi_dialect *d);
};

/* ---- dialect.c ---- */

/* A row of a table of routes, which ends with method NULL. */
typedef struct hfsbi_dialect_route {
    const char   *method, *path; /* as in hfsb_route */
    hfsb_route_fn fn;            /* its user is the dialect */
    bool          open;          /* needs no token */
    hfsb_route_fn begin;         /* for bodies in pieces, as in hfsb_route */
    void (*body)(void *user, hfsb_request *request, hfsb_str piece);
} hfsbi_dialect_route;

/* Adds the routes of a table. */
HFSBI_FN hfsb_status hfsbi_dialect_add(hfsbi_dialect             *d,
                                       const hfsbi_dialect_route *routes,
                                       hfsb_err                  *err);
/* The dialect that a face belongs to. */
HFSBI_FN hfsbi_dialect *hfsbi_dialect_of(hfsbi_face *face);
/* For a face: true if the field has the token of the dialect, or without one
   of its own that of the server, after a scheme as in hfsbi_request_proves();
   or if the server needs none. */
HFSBI_FN bool hfsbi_dialect_trusts(hfsbi_dialect *d, hfsb_request *request,
                                   const char *field, const char *scheme);
/* Parses the body of a request as a JSON object. False after an error reply
   (400) in the form of the face. The doc refers to the body. */
HFSBI_FN bool hfsbi_dialect_parse(hfsb_request *request, hfsb_json_doc *doc);
/* Replies with a document and frees the builder. Without memory 503. */
HFSBI_FN void hfsbi_dialect_reply(hfsb_request *request, int status,
                                  hfsbi_build *b);

/* ---- e2b*.c: E2B's envd and its control plane ---- */

typedef struct hfsbi_e2b         hfsbi_e2b;
typedef struct hfsbi_e2b_watcher hfsbi_e2b_watcher;

/* What the control plane knows of a sandbox. */
typedef struct hfsbi_e2b_lease {
    hfsb_buf    dir; /* its directory, and root */
    hfsb_root  *root;
    hfsb_buf    template_id, metadata; /* metadata: a JSON object */
    long long   started, ends;         /* seconds since 1970 */
    hfsbi_timer timer;                 /* ends the sandbox, or looks whether a
                                          dead one can be freed */
    hfsbi_task  task;                  /* removes the directory */
    bool        removing;
} hfsbi_e2b_lease;

/* A sandbox: the server's own, or one that the control plane has made, with a
   directory and an environment of its own.

       LIVE --killed, timed out--> DEAD --no user, no process--> freed

   Whoever answers later, or works in a thread, is one of its users. */
typedef struct hfsbi_e2b_box {
    struct hfsbi_e2b_box *next;
    hfsbi_e2b            *e2b;
    hfsb_tools           *tools;
    char                  id[24]; /* "": the server's own */
    bool                  dead;
    size_t                users;
    hfsb_buf              token; /* in plain: signatures need it; empty:
                                       that of the dialect counts */
    unsigned char         digest[HFSB_SHA256_SIZE]; /* of it */
    hfsb_buf              env;      /* "NAME=value", each ends in NUL */
    hfsb_buf              work_dir; /* where paths begin; empty: that of the
                                       tools */
    hfsbi_e2b_watcher    *watchers; /* also those that streams have */
    hfsbi_e2b_lease       lease;
} hfsbi_e2b_box;

struct hfsbi_e2b {
    hfsbi_dialect      dialect; /* first */
    hfsbi_e2b_box      own;
    hfsbi_e2b_box     *boxes;      /* of the control plane, newest first */
    bool               controlled; /* there was one */
    char               user[64];   /* the name of the server's user */
    unsigned long long cpu_all, cpu_idle; /* ticks when /metrics last looked */
};

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_e2b(void);

enum { HFSBI_E2B_FULL = 256 << 10 }; /* bytes to be sent: add no more */

/* A call of a service: its sandbox, and the message as JSON. */
typedef struct hfsbi_e2b_ask {
    hfsbi_e2b_box *box;
    hfsb_json_doc  doc;
} hfsbi_e2b_ask;

/* Checks a request and parses its message, which is in an envelope if `stream`.
   False after an error reply; else the caller frees the document. */
HFSBI_FN bool hfsbi_e2b_ask_open(hfsbi_e2b *e2b, hfsb_request *request,
                                 bool stream, hfsbi_e2b_ask *ask);
/* The sandbox that a request names and its user may use; NULL after an error
   reply. */
HFSBI_FN hfsbi_e2b_box *hfsbi_e2b_box_open(hfsbi_e2b    *e2b,
                                           hfsb_request *request);
/* Finds the sandbox that a request names, or NULL. */
HFSBI_FN hfsbi_e2b_box *hfsbi_e2b_box_named(hfsbi_e2b          *e2b,
                                            const hfsb_request *request);
/* Replies with an error, in the form that the request has: a status, or a
   stream that ends. */
HFSBI_FN void hfsbi_e2b_fail(hfsb_request *request, hfsbi_connect_code code,
                             const char *format, ...) HFSBI_PRINTF(3, 4);
/* The code for a failed function. */
HFSBI_FN hfsbi_connect_code hfsbi_e2b_code(hfsb_status st);
/* Replies with {}. */
HFSBI_FN void hfsbi_e2b_reply_empty(hfsb_request *request);
/* Sends one message of a stream. False: the connection is lost. */
HFSBI_FN bool hfsbi_e2b_send(hfsb_request *request, hfsb_str json);
/* Ends a stream that has begun. message: of an error (NULL: none). */
HFSBI_FN void hfsbi_e2b_end(hfsb_request *request, hfsbi_connect_code code,
                            const char *message);
/* The member of an object by its name in JSON, or in the protocol. */
HFSBI_FN const hfsb_json_value *hfsbi_e2b_get(const hfsb_json_value *object,
                                              const char            *name,
                                              const char            *other);
/* The number in a field of the request; fallback without one, or for another
   value. */
HFSBI_FN long long hfsbi_e2b_field(const hfsb_request *request,
                                   const char *name, long long fallback);
/* The interval of keepalives that the client of a stream asks for. */
HFSBI_FN long long hfsbi_e2b_beat_ms(const hfsb_request *request);
/* Appends the absolute path for a path of a client; false without memory. */
HFSBI_FN bool hfsbi_e2b_path(const hfsbi_e2b_box *box, hfsb_str path,
                             hfsb_buf *out);
/* The same for paths that begin at `base`, in any thread. */
HFSBI_FN bool hfsbi_e2b_join(hfsb_str base, hfsb_str path, hfsb_buf *out);
/* Appends the variables of an object to a list, instead of those that it has.
   HFSB_OK; HFSB_ARG for an invalid name or value; HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_e2b_set_env(hfsb_buf              *list,
                                       const hfsb_json_value *object,
                                       hfsb_err              *err);
/* Puts the variables of a list into an object that is open. */
HFSBI_FN void hfsbi_e2b_put_env(hfsb_json_writer *w, const hfsb_buf *list);

/* Adds the routes of a service. */
HFSBI_FN hfsb_status hfsbi_e2b_add_rest(hfsbi_e2b *e2b, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_e2b_add_process(hfsbi_e2b *e2b, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_e2b_add_input(hfsbi_e2b *e2b, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_e2b_add_files(hfsbi_e2b *e2b, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_e2b_add_watch(hfsbi_e2b *e2b, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_e2b_add_control(hfsbi_e2b *e2b, hfsb_err *err);
/* Finds the program that the `process` of a message names, and that runs; the
   caller holds it. NULL after an error reply. */
HFSBI_FN hfsbi_job *hfsbi_e2b_select_running(hfsbi_e2b_box         *box,
                                             hfsb_request          *request,
                                             const hfsb_json_value *message);
/* Ends the watchers of a sandbox, and the streams that have them. */
HFSBI_FN void hfsbi_e2b_end_watchers(hfsbi_e2b_box *box);
/* Writes what is at an absolute path as an object, in any thread. user: the
   name of our own user. */
HFSBI_FN hfsb_status hfsbi_e2b_put_entry(hfsb_json_writer *w,
                                         const hfsb_root *root, hfsb_str path,
                                         const char *user, hfsb_err *err);
/* Extended attributes of these names are the metadata of a file. */
#define HFSBI_E2B_MARK "user.e2b."
/* Puts a list as hfsbi_path_marks() makes it into an object, as "metadata". */
HFSBI_FN void hfsbi_e2b_put_metadata(hfsb_json_writer *w, hfsb_str list);
/* Sets the access token of a sandbox; false without memory. */
HFSBI_FN bool hfsbi_e2b_set_token(hfsbi_e2b_box *box, hfsb_str token);
/* Ends a sandbox of the control plane. */
HFSBI_FN void hfsbi_e2b_box_kill(hfsbi_e2b_box *box);
/* Frees a sandbox, dead or not; nothing uses it any more. */
HFSBI_FN void hfsbi_e2b_box_free(hfsbi_e2b_box *box);
