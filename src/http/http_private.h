#pragma once

/* http_private.h - classes of bytes, and what reading a head passes around. */

#include "../core/core_private.h"
#include "http.h"
#include "url.h"

/* ---- url.c: bytes ---- */

/* What a byte may be part of, as bits. */
enum {
    HFSBI_HTTP_TOKEN = 1,  /* a method, the name of a field */
    HFSBI_HTTP_VALUE = 2,  /* the value of a field: no control byte but HTAB */
    HFSBI_HTTP_TARGET = 4, /* a target: no blank and no control byte */
    HFSBI_HTTP_NAME = 8,   /* a host name: RFC 3986, without "%" */
    HFSBI_HTTP_PLAIN = 16  /* text that never needs %XX */
};

HFSBI_FN unsigned hfsbi_http_class(char c);

/* True when s is not empty and all its bytes are of that class. */
HFSBI_FN bool hfsbi_http_all(hfsb_str s, unsigned bit);

/* ---- head.c: names and lists ---- */

/* True when s is name, but for the case of ASCII letters. */
HFSBI_FN bool hfsbi_http_is(hfsb_str s, const char *name);

/* Removes the next item that is not empty from a comma-separated list; false
   at its end. Commas in quoted strings do not separate. */
HFSBI_FN bool hfsbi_http_list_next(hfsb_str *rest, hfsb_str *item);

/* ---- head.c: reading a head ---- */

/* Bits of hfsb_http_parser.kind: a reply; to a request of that method. */
enum {
    HFSBI_HTTP_REPLY = 1,
    HFSBI_HTTP_OF_HEAD = 2,
    HFSBI_HTTP_OF_CONNECT = 4
};

/* A head that is being read. */
typedef struct hfsbi_http_reader {
    hfsb_http_parser *parser;
    hfsb_str          in;
    hfsb_http_head   *head;
    hfsb_err         *err;
    size_t            room; /* of head->fields */
} hfsbi_http_reader;

/* Sets the status of the reply and *err; returns false. */
HFSBI_FN bool hfsbi_http_refuse(const hfsbi_http_reader *r, int status,
                                const char *at, const char *message);

/* Refuses the byte at `at`, which is followed by a line feed at the latest:
   "... is not allowed in " where. */
HFSBI_FN bool hfsbi_http_refuse_byte(const hfsbi_http_reader *r,
                                     const char *at, const char *where);

/* value, or the fallback when it is 0. */
HFSBI_FN size_t hfsbi_http_limit(size_t value, size_t fallback);

/* True when a message can start with the byte at p; else refused, so that
   another protocol is rejected at its first byte. */
HFSBI_FN bool hfsbi_http_first_byte(const hfsbi_http_reader *r, const char *p);

/* Reads the first line, or the line of a field, which is complete. Returns
   its end, or NULL when it was refused. */
HFSBI_FN const char *hfsbi_http_first_line(hfsbi_http_reader *r, const char *p,
                                           const char *end);
HFSBI_FN const char *hfsbi_http_field_line(const hfsbi_http_reader *r,
                                           const char *p, const char *end,
                                           hfsb_http_field *field);

/* Reads the whole head from p to end, including its empty line. */
HFSBI_FN bool hfsbi_http_head_read(hfsbi_http_reader *r, const char *p,
                                   const char *end);

/* ---- url.c ---- */

/* True for host [":" port] of RFC 3986; with_port: the port is required. */
HFSBI_FN bool hfsbi_http_host_ok(hfsb_str host, bool with_port);

/* Offset of the first byte of s that is one of stops, or s.len. */
HFSBI_FN size_t hfsbi_url_until(hfsb_str s, const char *stops);
