#pragma once

#include "../api/api_private.h"
#include "../server/server_private.h"
#include "../tools/tools_private.h"
#include "dialect.h"

/* dialect_private.h - what the dialects share.

     dialect.c   opens a dialect: its tools, its face, its port; helpers
     proxy.c     passes requests on to a server on this machine

   Every other file is a dialect: a table of routes, and a function for each
   that turns a request into a call and a result into that protocol's reply.
   That of huggingface_hub is in hf.c, hf_exec.c (commands), hf_files.c, and
   hf_host.c and hf_create.c (several sandboxes in one server).
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
/* The value of a setting, a view of it; "" without it. */
HFSBI_FN hfsb_str hfsbi_dialect_setting(const hfsb_dialect_opts *opts,
                                        const char              *name);
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

/* ---- proxy.c ---- */

/* Where a request goes. */
typedef struct hfsbi_relay_opts {
    unsigned port; /* of 127.0.0.1; 0: `fd` */
    int      fd;   /* a connected or connecting socket, which is taken over */
    size_t   prefix; /* bytes of the path that are not passed on */
    const char *const *hide; /* fields that are not passed on, in addition to
                                Authorization, which may hold a token;
                                NULL-terminated (NULL: none); constant */
    /* Called once at the end, however that comes (NULL: nothing). */
    void (*done)(void *user);
    void *user;
} hfsbi_relay_opts;

/* Passes a request on, and the reply back; 502 when nobody answers. Called
   from `begin` of a route whose `body` and `fn` are the two functions below;
   hfsb_request_set(), _on_gone(), on_eof and on_drained are used by it. Each
   request has a connection of its own to the inner server, so that the next
   one of the client is checked like the first. A request to change the
   protocol, such as one for a WebSocket, becomes a tunnel when the inner
   server agrees. Memory is bounded: each side waits for the other. */
HFSBI_FN void hfsbi_relay_start(hfsb_request           *request,
                                const hfsbi_relay_opts *opts);
HFSBI_FN void hfsbi_relay_body(void *user, hfsb_request *request,
                               hfsb_str piece);
HFSBI_FN void hfsbi_relay_finish(void *user, hfsb_request *request);
/* A socket that does not block; -1 with errno. */
HFSBI_FN int hfsbi_relay_socket(int family);

/* ---- hf.c: the API of huggingface_hub.Sandbox ---- */

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_hf(void);

typedef struct hfsbi_hf_process hfsbi_hf_process;

/* Where commands and files of a request are: those of the server, or in host
   mode those of one sandbox. */
typedef struct hfsbi_hf_place {
    hfsb_tools       *tools;
    hfsbi_hf_process *processes; /* oldest first */
    unsigned long     next;      /* number of the next background process */
    size_t            users;     /* requests and processes that refer to it */
    long long         used;      /* hfsb_clock_ms() of the last of them */
    bool              rooted;    /* paths begin at the root, however written */
    /* The last user has gone (NULL: nothing). Must not free it at once. */
    void (*unused)(struct hfsbi_hf_place *place);
} hfsbi_hf_place;

typedef struct hfsbi_hf_host hfsbi_hf_host;

typedef struct hfsbi_hf {
    hfsbi_dialect  base; /* first */
    hfsbi_hf_place own;  /* without host mode */
    hfsbi_hf_host *host; /* NULL: without it */
    hfsbi_timer    idle; /* looks whether the server is in use */
    long long      idle_ms; /* 0: it never stops by itself */
    long long      began;
} hfsbi_hf;

/* The place of a request, which holds it until the release; NULL after an
   error reply. */
HFSBI_FN hfsbi_hf_place *hfsbi_hf_place_of(hfsbi_hf     *hf,
                                           hfsb_request *request);
HFSBI_FN void            hfsbi_hf_place_hold(hfsbi_hf_place *place);
HFSBI_FN void            hfsbi_hf_place_release(hfsbi_hf_place *place);
/* Adds routes of a place, which begin after "/v1" or "/v1/sandboxes/{id}". */
HFSBI_FN hfsb_status hfsbi_hf_add(hfsbi_hf                  *hf,
                                  const hfsbi_dialect_route *routes,
                                  hfsb_err                  *err);
/* The first "*" of the route that is not the id of a sandbox. */
HFSBI_FN hfsb_str hfsbi_hf_part(const hfsbi_hf *hf, hfsb_request *request);
/* Reads a number of digits alone, up to max. */
HFSBI_FN bool hfsbi_hf_number(hfsb_str s, unsigned long long max,
                              long long *out);

/* Appends "NAME=value" and a NUL for each member of an object. False after an
   error reply. */
HFSBI_FN bool hfsbi_hf_put_env(hfsb_request          *request,
                               const hfsb_json_value *env, hfsb_buf *out);
/* Reads the body of a request for a command. False after an error reply. */
HFSBI_FN bool hfsbi_hf_read_spec(hfsb_request          *request,
                                 const hfsb_json_value *o,
                                 const hfsb_tools      *tools,
                                 hfsbi_job_spec        *spec);

/* ---- hf_exec.c: commands ---- */

/* The routes of commands, after "/v1" or "/v1/sandboxes/{id}". */
HFSBI_FN const hfsbi_dialect_route *hfsbi_hf_commands(void);
/* Frees the processes of a place; those that run are killed with its tools. */
HFSBI_FN void hfsbi_hf_place_clear(hfsbi_hf_place *place);

/* ---- hf_files.c ---- */

/* The routes of files, after "/v1" or "/v1/sandboxes/{id}". */
HFSBI_FN const hfsbi_dialect_route *hfsbi_hf_files(void);

/* ---- hf_host.c: host mode ---- */

enum { HFSBI_HF_TOKEN = 64, HFSBI_HF_ID = 16 }; /* hexadecimal digits */

typedef enum hfsbi_hf_life {
    HFSBI_HF_NEW,    /* its home is being made */
    HFSBI_HF_LIVE,   /* in the list of sandboxes */
    HFSBI_HF_ENDING, /* its commands were killed */
    HFSBI_HF_REMOVING
} hfsbi_hf_life;

typedef struct hfsbi_hf_wait hfsbi_hf_wait; /* see hf_host.c */

/* A sandbox of a host; its states are drawn in hf_host.c. */
typedef struct hfsbi_hf_sandbox {
    hfsbi_hf_place           place; /* first: its functions cast it back */
    struct hfsbi_hf_sandbox *next;
    hfsbi_hf_host           *host;
    hfsbi_hf_life            life;
    char                     id[HFSBI_HF_ID + 1];
    char                     token[HFSBI_HF_TOKEN + 1]; /* to recover it */
    unsigned char            digest[HFSB_SHA256_SIZE];
    hfsb_buf                 home;
    long long                created; /* ms since 1970 */
    long long                idle_ms; /* 0: it is never removed for that */
    hfsbi_task               task;    /* the last user has gone; the removal */
    hfsbi_hf_wait           *wait;    /* for the removal; NULL: nobody */
} hfsbi_hf_sandbox;

struct hfsbi_hf_host {
    hfsbi_hf         *hf;
    hfsbi_hf_sandbox *list;            /* not removed yet, oldest first */
    size_t            count, capacity; /* count: LIVE, or being made */
    hfsb_buf          homes;           /* the folder of their homes */
    hfsb_confine_opts confine;
    bool              compat; /* the server's token opens every sandbox */
};

/* Adds the routes of host mode. */
HFSBI_FN hfsb_status hfsbi_hf_host_open(hfsbi_hf                *hf,
                                        const hfsb_dialect_opts *opts,
                                        hfsb_err                *err);
/* Asks all commands to end; true while one of them runs; frees all. */
HFSBI_FN void hfsbi_hf_host_end(hfsbi_hf_host *host);
HFSBI_FN bool hfsbi_hf_host_busy(hfsbi_hf_host *host);
HFSBI_FN void hfsbi_hf_host_close(hfsbi_hf_host *host);
HFSBI_FN size_t hfsbi_hf_host_count(const hfsbi_hf_host *host);
/* Whether a request may use its route. */
HFSBI_FN bool hfsbi_hf_host_trusts(hfsbi_hf *hf, hfsb_request *request);
/* The sandbox of a scoped route; NULL: there is none. */
HFSBI_FN hfsbi_hf_place *hfsbi_hf_host_find(hfsbi_hf_host *host, hfsb_str id);
/* A socket that connects to that port of a sandbox; -1 with errno. */
HFSBI_FN int hfsbi_hf_host_connect(hfsbi_hf_place *place, unsigned port);
HFSBI_FN void hfsbi_hf_digest(hfsb_str s, unsigned char out[HFSB_SHA256_SIZE]);
/* Frees a sandbox that is in no list, and whose tools are. */
HFSBI_FN void hfsbi_hf_sandbox_free(hfsbi_hf_sandbox *s);
/* In a thread. */
HFSBI_FN void hfsbi_hf_remove_home(const hfsb_buf *home);
/* Removes sandboxes that were not used for as long as they asked. */
HFSBI_FN void hfsbi_hf_host_look(hfsbi_hf_host *host, long long now);

/* ---- hf_create.c ---- */

/* Handles POST /v1/sandboxes; user is the hfsbi_hf. */
HFSBI_FN void hfsbi_hf_sandboxes_post(void *user, hfsb_request *request);
/* Adds the members that everyone with the token of the server may see. */
HFSBI_FN void hfsbi_hf_put_sandbox(hfsbi_build            *b,
                                   const hfsbi_hf_sandbox *s);
