#pragma once

#include "../api/api_private.h"
#include "../server/server_private.h"
#include "../tools/tools_private.h"
#include "dialect.h"

/* dialect_private.h - what the dialects share.

     dialect.c   opens a dialect: its tools, its face, its port; helpers
     agent_sandbox.c, agent_sandbox_exec.c   Kubernetes' agent-sandbox

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

/* ---- agent_sandbox.c, agent_sandbox_exec.c ---- */

typedef struct hfsbi_kube {
    hfsbi_dialect    d;     /* first */
    hfsb_root       *own;   /* NULL: the tools have a root */
    const hfsb_root *root;  /* all paths are beneath it, commands start there */
    double           timeout; /* of commands, seconds */
    long long        began;   /* hfsb_clock_ms() */
    bool             local;   /* has a port of its own on loopback: needs no
                                 token */
} hfsbi_kube;

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_agent_sandbox(void);
/* Handles POST /execute. */
HFSBI_FN void hfsbi_kube_execute(void *user, hfsb_request *request);
/* Appends the words of a command line, each with a NUL. Returns why it has
   none; NULL: it has. A failure to append is in out->status. */
HFSBI_FN const char *hfsbi_kube_split(hfsb_str command, hfsb_buf *out);
