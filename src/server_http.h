#pragma once

/* The inside of a server, for what is built on it: the sandbox, and later
   others. Private. */

#include "server.h"
#include "server_loop.h"

typedef struct hfsbi_server_stats {
    unsigned long long accepted;   /* connections ever */
    unsigned long long refused;    /* ... that were closed at once */
    unsigned long long requests;   /* answered, */
    unsigned long long by_class[6]; /* by the first digit of their status */
    unsigned long long bytes_in, bytes_out; /* of bodies */
    size_t             open;       /* connections now */
    size_t             bodies;     /* bytes of bodies in memory now */
} hfsbi_server_stats;

HFSBI_FN hfsbi_loop               *hfsbi_server_loop(hfsb_server *server);
HFSBI_FN const hfsb_alloc         *hfsbi_server_alloc(hfsb_server *server);
HFSBI_FN const hfsbi_server_stats *hfsbi_server_stats_of(hfsb_server *server);
/* Random letters and digits, made when it was opened. */
HFSBI_FN const char *hfsbi_server_instance(const hfsb_server *server);

/* Something that lives with the server, part of its owner.
   A stop goes: no new connections, idle ones closed, stop() of every part ->
   up to 2 s for requests under way to end by themselves -> end() of every part
   -> until no request is left and no part is busy, or the time is over -> the
   loop ends. close() of the server calls end() of every part, waits for what
   is in threads, and calls free(), the newest first, when no connection is
   left and before the loop is closed. Any of the four may be NULL. */
typedef struct hfsbi_server_part {
    struct hfsbi_server_part *next; /* private */
    void (*end)(struct hfsbi_server_part *part);
    bool (*busy)(struct hfsbi_server_part *part);
    void (*free)(struct hfsbi_server_part *part);
    void (*stop)(struct hfsbi_server_part *part);
    bool place; /* it has clients of its own: a server without listeners may
                   run */
} hfsbi_server_part;

HFSBI_FN void hfsbi_server_part_add(hfsb_server       *server,
                                    hfsbi_server_part *part);
/* True from the first hfsb_server_stop() on. */
HFSBI_FN bool hfsbi_server_stopping(const hfsb_server *server);
/* True from the second on. */
HFSBI_FN bool hfsbi_server_hurries(const hfsb_server *server);

/* The request came with the token, or none is asked for. */
HFSBI_FN bool hfsbi_request_trusted(const hfsb_request *request);

/* Its Content-Type is that of JSON. */
HFSBI_FN bool hfsbi_request_is_json(const hfsb_request *request);

/* Moves the body out of the request into *out. */
HFSBI_FN void hfsbi_request_take_body(hfsb_request *request, hfsb_buf *out);

/* fn is called, once, when the peer has ended its side while the reply is
   still to come: it may be gone, or wait for the reply all the same. */
HFSBI_FN void hfsbi_request_on_eof(hfsb_request *request, hfsb_route_fn fn,
                                   void *user);

/* hfsb_reply() that takes the memory of *body over, which is empty then. */
HFSBI_FN void hfsbi_reply_take(hfsb_request *request, int status,
                               const char *type, hfsb_buf *body);

/* {"detail":...,"error":...} from ready JSON for detail and a sentence. */
HFSBI_FN void hfsbi_reply_detail(hfsb_request *request, int status,
                                 hfsb_str detail_json, hfsb_str error);
