#pragma once

/* ==== HTTP: messages of HTTP/1.1, read strictly, written safely ========= */

#include "../core/base.h"

/* Accepts only what RFC 9112 allows to be read in exactly one way: CRLF ends a
   line, one Content-Length or one "chunked" frames a body, sizes are digits
   that fit. Pure: bytes in, events out, no allocation.
   Replies may deviate, as those of real servers do: head lines that end in LF
   alone, folded values (the view includes the fold), the same Content-Length
   more than once, "chunked" together with a Content-Length (which is then
   ignored, and the connection is not kept). */

typedef struct hfsb_http_field {
    hfsb_str name, value; /* value without the blanks around it */
} hfsb_http_field;

typedef enum hfsb_http_body {
    HFSB_HTTP_NO_BODY,
    HFSB_HTTP_LENGTH, /* hfsb_http_head.length bytes, may be 0 */
    HFSB_HTTP_CHUNKED,
    HFSB_HTTP_UNTIL_CLOSE /* of a reply */
} hfsb_http_body;

/* The head of a message. It consists of views of the bytes given to the
   parser, and of fields in the array given to it. */
typedef struct hfsb_http_head {
    hfsb_str method, target; /* of a request */
    hfsb_str host;   /* of a request: the authority of an absolute target,
                        else the Host field; "" without either (HTTP/1.0) */
    hfsb_str path;   /* of a request: path of the target, not decoded, starts
                        with "/"; "*" for OPTIONS * */
    hfsb_str query;  /* of a request: after the "?", not decoded */
    hfsb_str reason; /* of a reply */
    int      status; /* of a reply */
    int      minor;  /* 0 or 1: the x of HTTP/1.x */
    bool     keep_alive;
    bool     expect_continue; /* the peer waits for 100 before its body */
    hfsb_http_body     body;
    unsigned long long length;
    hfsb_http_field   *fields;
    size_t             field_count;
} hfsb_http_head;

/* Limits, their defaults, and the status of a message that exceeds them. */
typedef struct hfsb_http_limits {
    size_t max_head;   /* bytes of a head (0: 16 KiB): 431 */
    size_t max_target; /* bytes of a target (0: 8 KiB): 414 */
    size_t max_fields; /* (0: 100): 431; trailers have the same limit */
    /* bytes of the size and the extensions of a chunk (0: 256): 400 */
    size_t max_chunk_line;
    bool   any_method; /* accept every method but CONNECT: else 501 */
} hfsb_http_limits;

/* The state of a parser; small, since each connection has one. Private. */
typedef struct hfsb_http_parser {
    const hfsb_http_limits *limits;
    unsigned long long      left;  /* bytes left of the body or chunk */
    unsigned long long      waste; /* bytes of chunk lines beyond the data */
    size_t                  seen;  /* bytes of the head already searched */
    size_t                  trailers;
    unsigned char           state;
    unsigned char           kind;
    short                   status; /* once it was refused */
} hfsb_http_parser;

typedef enum hfsb_http_event {
    HFSB_HTTP_MORE, /* more bytes are needed */
    HFSB_HTTP_HEAD, /* a head is complete */
    HFSB_HTTP_BODY, /* a piece of the body */
    HFSB_HTTP_END,  /* the message is over; the next may follow */
    HFSB_HTTP_BAD   /* refused, with hfsb_http_parser_status() */
} hfsb_http_event;

/* Prepares for requests. limits (NULL: the defaults) must outlive the
   parser. */
HFSB_API void hfsb_http_parser_init(hfsb_http_parser       *parser,
                                    const hfsb_http_limits *limits);

/* Prepares for replies. Call begin before each, with the method of its
   request, which decides whether it has a body. */
HFSB_API void hfsb_http_parser_init_reply(hfsb_http_parser       *parser,
                                          const hfsb_http_limits *limits);
HFSB_API void hfsb_http_parser_begin_reply(hfsb_http_parser *parser,
                                           hfsb_str          method);

/* Returns the next event in `in`, which starts where the last call stopped;
   the call consumes *used bytes of it. A head must be passed as a whole: while
   it is incomplete *used is 0, and the next call gets the same bytes and more
   (nothing is searched twice). The same goes for the line before a chunk and
   for each trailer, which are short. fields has room for `room` items; head is
   filled by HFSB_HTTP_HEAD, piece by HFSB_HTTP_BODY. Each message is HEAD, any
   number of BODY, END; an interim reply (1xx) is HEAD, END. err (may be NULL)
   is filled by HFSB_HTTP_BAD, which is final. */
HFSB_API hfsb_http_event hfsb_http_next(hfsb_http_parser *parser, hfsb_str in,
                                        hfsb_http_field *fields, size_t room,
                                        hfsb_http_head *head, hfsb_str *piece,
                                        size_t *used, hfsb_err *err);

/* True when the connection may end here: between messages, or in a body that
   lasts until the connection ends. False: the message is incomplete. */
HFSB_API bool hfsb_http_parser_end(const hfsb_http_parser *parser);

/* True between messages, before any byte of the next one was searched. */
HFSB_API bool hfsb_http_parser_idle(const hfsb_http_parser *parser);

/* The status of the reply to HFSB_HTTP_BAD: 400, 414, 431, 501 (also for a
   method other than GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH, TRACE, unless
   any_method is set) or 505. */
HFSB_API int hfsb_http_parser_status(const hfsb_http_parser *parser);

/* ---- finding fields; names are compared ignoring case ---- */

/* True when a and b differ at most in the case of ASCII letters. */
HFSB_API bool hfsb_http_same(hfsb_str a, hfsb_str b);

/* Value of the first field of that name; ptr is NULL if there is none. */
HFSB_API hfsb_str hfsb_http_field_find(const hfsb_http_head *head,
                                       const char           *name);
/* Number of fields of that name. */
HFSB_API size_t hfsb_http_field_count(const hfsb_http_head *head,
                                      const char           *name);
/* True when `item` is one of the comma-separated items of all fields of that
   name, ignoring parameters after ";". */
HFSB_API bool hfsb_http_field_lists(const hfsb_http_head *head,
                                    const char *name, const char *item);

/* ---- targets ---- */

/* Appends s with each %XX decoded once ('+' is kept). HFSB_OK; HFSB_SYNTAX when
   a "%" is not followed by two hexadecimal digits, or for %00; HFSB_NOMEM or
   HFSB_LIMIT. On failure the bytes of *out are unchanged. */
HFSB_API hfsb_status hfsb_http_decode(hfsb_str s, hfsb_buf *out,
                                      hfsb_err *err);
/* Appends s with everything but letters, digits and -._~ encoded as %XX;
   keep_slash keeps "/" too. HFSB_OK; HFSB_NOMEM or HFSB_LIMIT. */
HFSB_API hfsb_status hfsb_http_encode(hfsb_str s, bool keep_slash,
                                      hfsb_buf *out);
/* Appends the decoded value of the first `key` in a query (a=b&c=d; '+' is a
   blank). HFSB_OK; HFSB_NOT_FOUND if there is none; else as
   hfsb_http_decode(). */
HFSB_API hfsb_status hfsb_http_query_find(hfsb_str query, const char *key,
                                          hfsb_buf *out, hfsb_err *err);

/* ---- writing ---- */

/* Seconds since 1970 in the format of the Date field: "Sun, 06 Nov 1994
   08:49:37 GMT". Times outside 1970..9999 are clamped. */
#define HFSB_HTTP_DATE 30 /* with the NUL */
HFSB_API void hfsb_http_date(long long seconds, char out[HFSB_HTTP_DATE]);

/* "Not Found" for 404; "" for an unknown code. */
HFSB_API const char *hfsb_http_reason(int status);

/* The put functions append one part of a message, all of it or nothing, and
   fail as hfsb_buf_append() does.
   The first line. HFSB_ARG for a method that is not a token, a target with
   blanks or control bytes, or a status outside 100 to 999. */
HFSB_API hfsb_status hfsb_http_put_request(hfsb_buf *out, hfsb_str method,
                                           hfsb_str target);
HFSB_API hfsb_status hfsb_http_put_reply(hfsb_buf *out, int status);
/* A field. HFSB_ARG when the name is not a token or the value contains CR, LF,
   NUL or another control byte: a value cannot smuggle a line into a head. */
HFSB_API hfsb_status hfsb_http_put_field(hfsb_buf *out, hfsb_str name,
                                         hfsb_str value);
/* The empty line. */
HFSB_API hfsb_status hfsb_http_put_head_end(hfsb_buf *out);
/* A chunk; an empty one ends the body. */
HFSB_API hfsb_status hfsb_http_put_chunk(hfsb_buf *out, hfsb_str bytes);

/* ---- server-sent events ---- */

/* Splits a text/event-stream into events. All-zero is ready to use; set max
   and line.alloc if wanted. */
typedef struct hfsb_sse {
    hfsb_buf    event;  /* the name of the event that next() found, or "" */
    hfsb_buf    data;   /* its data, lines joined by LF */
    hfsb_status status; /* HFSB_LIMIT: an event exceeds max; HFSB_NOMEM. The
                           stream cannot continue then: free it */
    size_t      max;    /* bytes of one event (0: 1 MiB) */
    hfsb_buf    line;   /* private, but for alloc */
    bool        after_cr, has_data, complete, started; /* private */
} hfsb_sse;

/* True when *piece, the next bytes of the stream, completes an event; *piece
   is then cut to the bytes after it, and the event stays in *sse until the
   next call. Call it until it returns false: the piece is used up, or
   sse->status is not HFSB_OK. Comments, ids and retry are ignored. */
HFSB_API bool hfsb_sse_next(hfsb_sse *sse, hfsb_str *piece);
HFSB_API void hfsb_sse_free(hfsb_sse *sse);
