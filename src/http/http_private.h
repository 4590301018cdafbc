#pragma once

#include "../core/core_private.h"
#include "http.h"
#include "url.h"

/* Private to the http_*.c files: what bytes are, and what reading a head
   passes around. */

/* What a byte may be part of, as bits. */
enum {
    HFSBI_HTTP_TOKEN = 1,  /* a method, a field's name */
    HFSBI_HTTP_VALUE = 2,  /* a field's value: no control byte but HTAB */
    HFSBI_HTTP_TARGET = 4, /* a target: no blank and no control byte */
    HFSBI_HTTP_NAME = 8,   /* a host's name: RFC 3986, without "%" */
    HFSBI_HTTP_PLAIN = 16  /* what never needs %XX */
};

HFSBI_FN unsigned hfsbi_http_class(char c);

/* All bytes of s are of that class, and there is one. */
HFSBI_FN bool hfsbi_http_all(hfsb_str s, unsigned bit);

/* 0 to 15, or -1. */
HFSBI_FN int hfsbi_http_hex(char c);

/* s is that name, which is given in lower case. */
HFSBI_FN bool hfsbi_http_is(hfsb_str s, const char *lower);

/* Takes the next item that is not empty from a comma-separated list; false
   at its end. Commas in quoted strings do not count. */
HFSBI_FN bool hfsbi_http_list_next(hfsb_str *rest, hfsb_str *item);

/* One head that is being read. */
typedef struct hfsbi_http_reading {
    hfsb_http_parser *parser;
    hfsb_str          in;
    hfsb_http_head   *head;
    hfsb_err         *err;
    size_t            room; /* for fields */
} hfsbi_http_reading;

/* Bits of hfsb_http_parser.kind: a reply; to a request of that method. */
enum {
    HFSBI_HTTP_REPLY = 1,
    HFSBI_HTTP_OF_HEAD = 2,
    HFSBI_HTTP_OF_CONNECT = 4
};

/* Sets the status and *err; always false. */
HFSBI_FN bool hfsbi_http_refuse(const hfsbi_http_reading *r, int status,
                                const char *at, const char *message);

/* The same for a byte that must not stand there: "... in " where. */
HFSBI_FN bool hfsbi_http_refuse_byte(const hfsbi_http_reading *r,
                                     const char *at, const char *where);

HFSBI_FN size_t hfsbi_http_limit(size_t value, size_t fallback);

/* host [":" port] of RFC 3986; with_port: the port must be there. */
HFSBI_FN bool hfsbi_http_host_ok(hfsb_str host, bool with_port);

/* Whether a message can begin so: what speaks another protocol is refused at
   its first byte. */
HFSBI_FN bool hfsbi_http_first_byte(const hfsbi_http_reading *r,
                                    const char               *p);

/* The first line, which is complete: the place behind it, or NULL. */
HFSBI_FN const char *hfsbi_http_first_line(hfsbi_http_reading *r,
                                           const char *p, const char *end);

/* A line of a field, which is complete: the place behind it, or NULL. */
HFSBI_FN const char *hfsbi_http_field_line(const hfsbi_http_reading *r,
                                           const char *p, const char *end,
                                           hfsb_http_field *field);

/* The whole head from p to end, its empty line included. */
HFSBI_FN bool hfsbi_http_head_read(hfsbi_http_reading *r, const char *p,
                                   const char *end);
