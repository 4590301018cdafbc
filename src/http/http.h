#pragma once

/* ==== HTTP: messages of HTTP/1.1, read strictly, written safely ========= */

#include "../core/base.h"

/* Reads what RFC 9112 allows in exactly one way and refuses the rest: only
   CRLF ends a line, one Content-Length or one "chunked" frames a body, sizes
   are digits that fit. Pure: bytes in, events out, no allocation.
   Of replies it takes some more, since their servers are what they are: a
   head whose lines end in LF alone, folded values (the view shows the fold),
   an equal Content-Length again, "chunked" beside a Content-Length (which
   then counts for nothing, and the connection is not kept). */

typedef struct hfsb_http_field {
    hfsb_str name, value; /* value without the blanks around it */
} hfsb_http_field;

typedef enum hfsb_http_body {
    HFSB_HTTP_NO_BODY,
    HFSB_HTTP_LENGTH, /* hfsb_http_head.length bytes, may be 0 */
    HFSB_HTTP_CHUNKED,
    HFSB_HTTP_UNTIL_CLOSE /* of a reply */
} hfsb_http_body;

/* The head of a message. Its views show the bytes given to the parser, the
   fields are in the array given to it. */
typedef struct hfsb_http_head {
    hfsb_str method, target; /* of a request */
    hfsb_str host;   /* of a request: the authority of an absolute target,
                          else the Host field; "" when there is none (1.0) */
    hfsb_str path;   /* of a request: of the target, not decoded, begins
                          with "/"; "*" of OPTIONS * */
    hfsb_str query;  /* of a request: behind the "?", not decoded */
    hfsb_str reason; /* of a reply */
    int      status; /* of a reply */
    int      minor;  /* 0 or 1: of HTTP/1.minor */
    bool     keep_alive;
    bool     expect_continue; /* the peer waits for 100 before its body */
    hfsb_http_body     body;
    unsigned long long length;
    hfsb_http_field   *fields;
    size_t             field_count;
} hfsb_http_head;

typedef struct hfsb_http_limits {
    size_t max_head;   /* bytes of a head (0: 16 KiB): 431 */
    size_t max_target; /* bytes of a target (0: 8 KiB): 414 */
    size_t max_fields; /* (0: 100): 431; trailers have the same limit */
    size_t
        max_chunk_line; /* bytes of a chunk's size and extensions (0: 256) */
} hfsb_http_limits;

/* Where a parser stands; small, since each connection has one. Private. */
typedef struct hfsb_http_parser {
    const hfsb_http_limits *limits;
    unsigned long long      left;  /* of the body, or of its chunk */
    unsigned long long      waste; /* bytes of chunk lines, less the data */
    size_t                  seen;  /* of the head, looked at already */
    size_t                  trailers;
    unsigned char           state;
    unsigned char           kind;
    short                   status; /* once it is bad */
} hfsb_http_parser;

typedef enum hfsb_http_event {
    HFSB_HTTP_MORE, /* nothing more to tell before more bytes come */
    HFSB_HTTP_HEAD, /* a head is complete */
    HFSB_HTTP_BODY, /* a piece of the body */
    HFSB_HTTP_END,  /* the message is over; the next may follow */
    HFSB_HTTP_BAD   /* refused: hfsb_http_parser_status() says with what */
} hfsb_http_event;

/* For requests. limits (NULL: the defaults) must stay until the last call. */
HFSB_API void hfsb_http_parser_init(hfsb_http_parser       *parser,
                                    const hfsb_http_limits *limits);

/* For replies: call begin for each, with the method of its request, since
   that decides about its body. */
HFSB_API void hfsb_http_parser_init_reply(hfsb_http_parser       *parser,
                                          const hfsb_http_limits *limits);
HFSB_API void hfsb_http_parser_begin_reply(hfsb_http_parser *parser,
                                           hfsb_str          method);

/* What comes next in `in`, which begins where the last call stopped: *used
   bytes of it are done with after this one. A head must come as a whole: while
   it is not complete *used is 0 and the next call gets the same bytes and more
   (what was looked at is not looked at again). The same goes for the line
   before a chunk and for each trailer, which are short. fields has room for `room`
   items; head is filled by HFSB_HTTP_HEAD, piece by HFSB_HTTP_BODY. Each
   message is HEAD, any number of BODY, END; interim replies (1xx) are HEAD,
   END. err (may be NULL) is filled with HFSB_HTTP_BAD, which is for good. */
HFSB_API hfsb_http_event hfsb_http_next(hfsb_http_parser *parser, hfsb_str in,
                                        hfsb_http_field *fields, size_t room,
                                        hfsb_http_head *head, hfsb_str *piece,
                                        size_t *used, hfsb_err *err);

/* The bytes are at their end: true when that is fine (between messages, or
   for a body that ends so); false when something is missing. */
HFSB_API bool hfsb_http_parser_end(const hfsb_http_parser *parser);

/* True between messages: nothing of the next one has been looked at. */
HFSB_API bool hfsb_http_parser_idle(const hfsb_http_parser *parser);

/* The status to answer HFSB_HTTP_BAD with: 400, 414, 431, 501 (also for a
   method that is none of GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH, TRACE)
   or 505. */
HFSB_API int hfsb_http_parser_status(const hfsb_http_parser *parser);

/* ---- looking into a head ---- */

/* Both without regard to the case of ASCII letters. */
HFSB_API bool hfsb_http_same(hfsb_str a, hfsb_str b);

/* Value of the first field of that name; ptr NULL when there is none. */
HFSB_API hfsb_str hfsb_http_field_find(const hfsb_http_head *head,
                                       const char           *name);
/* How many there are of that name. */
HFSB_API size_t hfsb_http_field_count(const hfsb_http_head *head,
                                      const char           *name);
/* True when one of the comma-separated items of all fields of that name is
   `item`, parameters behind ";" left aside. */
HFSB_API bool hfsb_http_field_lists(const hfsb_http_head *head,
                                    const char *name, const char *item);

/* ---- targets ---- */

/* Appends s with each %XX decoded, once ('+' stays one). HFSB_SYNTAX when a
   "%" is not followed by two hexadecimal digits, or stands for a NUL. */
HFSB_API hfsb_status hfsb_http_decode(hfsb_str s, hfsb_buf *out,
                                      hfsb_err *err);
/* Appends s with everything but letters, digits and -._~ as %XX; "/" stays
   with keep_slash. */
HFSB_API hfsb_status hfsb_http_encode(hfsb_str s, bool keep_slash,
                                      hfsb_buf *out);
/* Appends the decoded value of the first `key` in a query (a=b&c=d; '+' is a
   blank). HFSB_NOT_FOUND when it has none; HFSB_SYNTAX; HFSB_NOMEM. */
HFSB_API hfsb_status hfsb_http_query_find(hfsb_str query, const char *key,
                                          hfsb_buf *out, hfsb_err *err);

/* ---- writing ---- */

/* Seconds since 1970 as a Date field has them: "Sun, 06 Nov 1994 08:49:37
   GMT". Times before 1970 and beyond the year 9999 become the nearest. */
#define HFSB_HTTP_DATE 30 /* with the NUL */
HFSB_API void hfsb_http_date(long long seconds, char out[HFSB_HTTP_DATE]);

/* "Not Found" for 404; "" when the code is not known. */
HFSB_API const char *hfsb_http_reason(int status);

/* The first line of a message. HFSB_ARG for a method that is no token, a
   target with blanks or control bytes, a status not in 100 to 999. */
HFSB_API hfsb_status hfsb_http_put_request(hfsb_buf *out, hfsb_str method,
                                           hfsb_str target);
HFSB_API hfsb_status hfsb_http_put_reply(hfsb_buf *out, int status);
/* A field. HFSB_ARG, and nothing is written, when the name is no token or the
   value holds CR, LF, NUL or another control byte: no one can smuggle a line
   into a head. */
HFSB_API hfsb_status hfsb_http_put_field(hfsb_buf *out, hfsb_str name,
                                         hfsb_str value);
/* The empty line. */
HFSB_API hfsb_status hfsb_http_put_head_end(hfsb_buf *out);
/* A chunk; an empty one ends the body. */
HFSB_API hfsb_status hfsb_http_put_chunk(hfsb_buf *out, hfsb_str bytes);

/* ---- server-sent events, as they arrive ---- */

/* Splits a text/event-stream into events. All-zero but for alloc is ready. */
typedef struct hfsb_sse { /* private, but for the compiler */
    hfsb_buf line, event, data;
    bool     after_cr, has_data, started;
    size_t   max; /* bytes of one event (0: 1 MiB) */
} hfsb_sse;

/* Calls fn for each event that `piece` completes: its name ("" when it has
   none) and its data, lines joined by LF. fn's false ends it: HFSB_CANCELLED.
   HFSB_LIMIT for an event beyond max; HFSB_NOMEM. Comments, ids and retry are
   left out. */
HFSB_API hfsb_status hfsb_sse_feed(hfsb_sse *sse, hfsb_str piece,
                                   bool (*fn)(void *user, hfsb_str event,
                                              hfsb_str data),
                                   void *user);
HFSB_API void        hfsb_sse_free(hfsb_sse *sse);
