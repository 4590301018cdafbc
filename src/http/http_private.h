#pragma once

/* http_private.h - classes of bytes, the state of reading a head, and the
   framings that are not public: WebSocket, multipart, Connect. */

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

/* True for a method that RFC 9110 defines, except CONNECT, and for PATCH. */
HFSBI_FN bool hfsbi_http_method_known(hfsb_str method);
/* True when s is name, ignoring the case of ASCII letters. */
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

/* A head being read. */
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

/* True when a message can start with the byte at p; otherwise refuses it, so
   that another protocol is rejected at its first byte. */
HFSBI_FN bool hfsbi_http_first_byte(const hfsbi_http_reader *r, const char *p);

/* Read the first line, or the line of a field; the line is complete. Return
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

/* Decodes the byte at s[*i], perhaps %XX, and moves *i to its last byte; plus:
   "+" is a blank. -1 when a "%" is not followed by two hexadecimal digits. */
HFSBI_FN int hfsbi_http_byte(hfsb_str s, size_t *i, bool plus);

/* ---- websocket.c: WebSocket, RFC 6455 ---- */

/* The Sec-WebSocket-Accept that answers a Sec-WebSocket-Key. */
#define HFSBI_WS_ACCEPT 29 /* with the NUL */
HFSBI_FN void hfsbi_ws_accept(hfsb_str key, char out[HFSBI_WS_ACCEPT]);

/* What a request for a WebSocket contains: views of its head. */
typedef struct hfsbi_ws_upgrade {
    hfsb_str key;      /* for hfsbi_ws_accept() */
    hfsb_str protocol; /* the first of the client's that is supported; "" if
                          none: the reply then names none */
} hfsbi_ws_upgrade;

/* Checks the head of a request. `protocols` is a NULL-terminated list of the
   subprotocols supported (or NULL: none); their case counts. Returns 101, or
   the status of the refusal: 405 for a method other than GET; 426 without
   "Upgrade: websocket" or with a version other than 13 (a reply needs the
   fields "Upgrade: websocket" and "Sec-WebSocket-Version: 13"); 400. *err (may
   be NULL) then has the code HFSB_SYNTAX and names the field in err->key.
   Extensions are ignored: the reply accepts none. */
HFSBI_FN int hfsbi_ws_upgrade_read(const hfsb_http_head *head,
                                   const char *const    *protocols,
                                   hfsbi_ws_upgrade *upgrade, hfsb_err *err);

/* Appends the fields of a client's handshake, with their CRLF. key: 16 random
   bytes in base64. HFSB_OK; HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_ws_request_write(hfsb_str key, hfsb_buf *out);
/* Checks the head of the reply. HFSB_OK; HFSB_REMOTE: another status, or a
   reply that does not fit. */
HFSBI_FN hfsb_status hfsbi_ws_reply_check(const hfsb_http_head *head,
                                          hfsb_str key, hfsb_err *err);

typedef enum hfsbi_ws_opcode {
    HFSBI_WS_CONTINUE = 0,
    HFSBI_WS_TEXT = 1,
    HFSBI_WS_BINARY = 2,
    HFSBI_WS_CLOSE = 8,
    HFSBI_WS_PING = 9,
    HFSBI_WS_PONG = 10
} hfsbi_ws_opcode;

enum { /* codes of a close */
       HFSBI_WS_NORMAL = 1000,
       HFSBI_WS_GOING_AWAY = 1001,
       HFSBI_WS_PROTOCOL_ERROR = 1002,
       HFSBI_WS_NO_CODE = 1005, /* only in an event: the close had no code */
       HFSBI_WS_BAD_TEXT = 1007,
       HFSBI_WS_TOO_BIG = 1009,
       HFSBI_WS_MAX_CONTROL = 125 /* bytes of a ping, pong or close */
};

/* Reads frames. All-zero is a server that is ready to use. */
typedef struct hfsbi_ws_reader {
    size_t max;    /* bytes of a message (0: 16 MiB) */
    bool   client; /* frames come from a server and must not be masked */
    /* private */
    unsigned char      state;
    unsigned char      message;  /* TEXT, BINARY; 0 between messages */
    unsigned char      head_len; /* bytes of head received */
    unsigned char      head[14];
    unsigned char      control[HFSBI_WS_MAX_CONTROL];
    unsigned char      control_len;
    unsigned char      phase;  /* bytes of the frame's payload so far, mod 4 */
    unsigned long long at;     /* offset in the stream */
    unsigned long long left;   /* bytes left of the frame */
    size_t             length; /* bytes of the message, announced so far */
    hfsb_utf8_stream   text;
} hfsbi_ws_reader;

typedef enum hfsbi_ws_event {
    HFSBI_WS_EVENT_MORE, /* all bytes are used, more are needed */
    HFSBI_WS_EVENT_DATA, /* a piece of a message; empty only when last */
    HFSBI_WS_EVENT_PING, /* to be answered by a pong with the same data */
    HFSBI_WS_EVENT_PONG,
    HFSBI_WS_EVENT_CLOSE, /* final; data is the reason */
    HFSBI_WS_EVENT_BAD    /* final; to be answered by a close with code */
} hfsbi_ws_event;

/* What an event is about. */
typedef struct hfsbi_ws_frame {
    hfsb_str data; /* DATA: a view of the bytes given; a piece of a text may
                      end inside a character. PING, PONG, CLOSE: a view of the
                      reader, until the next call */
    bool     text; /* DATA: of a text, not a binary message */
    bool     last; /* DATA: the message is over */
    unsigned code; /* CLOSE: the peer's, or NO_CODE; BAD: 1002, 1007, 1009 */
} hfsbi_ws_frame;

/* Returns the next event in the `len` bytes, which follow those used by the
   last call and are unmasked in place; *used of them were consumed. Call it
   until it returns MORE, then with the next bytes, split anywhere. Bytes after
   CLOSE are dropped. err (may be NULL) is filled by BAD: HFSB_LIMIT when a
   message is longer than max, else HFSB_SYNTAX; err->pos is an offset from the
   first byte of the stream. */
HFSBI_FN hfsbi_ws_event hfsbi_ws_next(hfsbi_ws_reader *reader, char *bytes,
                                      size_t len, hfsbi_ws_frame *frame,
                                      size_t *used, hfsb_err *err);

/* Writes the head of a frame and returns its length. fin: the frame ends its
   message. mask: 4 bytes for a client's frame, whose payload the caller must
   then mask; NULL for a server's. */
#define HFSBI_WS_HEAD 14
HFSBI_FN size_t hfsbi_ws_write_head(hfsbi_ws_opcode opcode, bool fin,
                                    unsigned long long   length,
                                    const unsigned char *mask,
                                    char                 out[HFSBI_WS_HEAD]);

/* Writes the payload of a close and returns its length: the code and as much
   of the reason, which is valid UTF-8, as fits. With NO_CODE nothing. */
HFSBI_FN size_t hfsbi_ws_write_close(unsigned code, hfsb_str reason,
                                     char out[HFSBI_WS_MAX_CONTROL]);

/* Masks or unmasks, in place, a piece of a payload that starts at `offset`. */
HFSBI_FN void hfsbi_ws_mask(char *bytes, size_t len,
                            const unsigned char mask[4],
                            unsigned long long  offset);

/* ---- multipart.c: multipart/form-data, RFC 7578 ---- */

/* Reads a body of multipart/form-data. All-zero is ready for begin(); set the
   limits and head.alloc first, if wanted. */
typedef struct hfsbi_multipart {
    size_t max_head;   /* bytes of the head of a part (0: 16 KiB) */
    size_t max_parts;  /* (0: 1000) */
    size_t max_name;   /* bytes of a name or file name (0: 4096) */
    size_t max_around; /* bytes of the preamble, and of the epilogue
                          (0: 4096) */
    /* the part: views of head, until the part after it begins */
    hfsb_str name;
    hfsb_str filename; /* ptr is NULL without one; may be empty */
    hfsb_str type;     /* Content-Type; ptr is NULL without one */
    /* private */
    hfsb_buf           head; /* except alloc */
    unsigned char      state;
    unsigned char      matched; /* bytes of the delimiter received */
    unsigned char      implied; /* of these, bytes that were not received */
    unsigned char      delim_len;
    char               delim[74]; /* CRLF "--" boundary */
    bool               named;     /* the part has a Content-Disposition */
    bool               in_part;   /* the delimiter ends a part */
    size_t             parts;
    size_t             count; /* bytes of preamble, padding or epilogue */
    size_t             line;  /* offset of the line in head */
    unsigned long long at;    /* offset in the body */
} hfsbi_multipart;

typedef enum hfsbi_multipart_event {
    HFSBI_MULTIPART_MORE,     /* all bytes are used, more are needed */
    HFSBI_MULTIPART_PART,     /* a part begins: name, filename, type are set */
    HFSBI_MULTIPART_DATA,     /* a piece of its data, not empty */
    HFSBI_MULTIPART_PART_END, /* the part is over */
    HFSBI_MULTIPART_END,      /* the body is over; final */
    HFSBI_MULTIPART_BAD       /* refused; final */
} hfsbi_multipart_event;

/* Starts a body whose Content-Type is given. HFSB_OK; HFSB_ARG when the type
   is not multipart/form-data; HFSB_SYNTAX without a valid boundary;
   HFSB_NOMEM. err->pos is an offset in content_type. */
HFSBI_FN hfsb_status hfsbi_multipart_begin(hfsbi_multipart *m,
                                           hfsb_str         content_type,
                                           hfsb_err        *err);

/* Returns the next event in `in`, which follows the bytes used by the last
   call; *used bytes of it were consumed. `last`: the body ends with `in`. Call
   it until it returns MORE (END or BAD with `last`), then with the next bytes,
   split anywhere. *data shows bytes of `in`, or of *m until the next call:
   only bytes that may belong to a delimiter are held back. err (may be NULL)
   is filled by BAD: HFSB_SYNTAX; HFSB_LIMIT beyond a limit; err->pos is an
   offset in the body. */
HFSBI_FN hfsbi_multipart_event hfsbi_multipart_next(hfsbi_multipart *m,
                                                    hfsb_str in, bool last,
                                                    hfsb_str *data,
                                                    size_t   *used,
                                                    hfsb_err *err);

/* Frees the memory; *m keeps its limits and may begin again. */
HFSBI_FN void hfsbi_multipart_free(hfsbi_multipart *m);

/* ---- connect.c: envelopes and errors of the Connect protocol ---- */

/* Codes of errors, with their name on the wire and the HTTP status of a call
   without streams. */
#define HFSBI_CONNECT_CODES(X)                         \
    X(CANCELED, "canceled", 499)                       \
    X(UNKNOWN, "unknown", 500)                         \
    X(INVALID_ARGUMENT, "invalid_argument", 400)       \
    X(DEADLINE_EXCEEDED, "deadline_exceeded", 504)     \
    X(NOT_FOUND, "not_found", 404)                     \
    X(ALREADY_EXISTS, "already_exists", 409)           \
    X(PERMISSION_DENIED, "permission_denied", 403)     \
    X(RESOURCE_EXHAUSTED, "resource_exhausted", 429)   \
    X(FAILED_PRECONDITION, "failed_precondition", 400) \
    X(UNIMPLEMENTED, "unimplemented", 501)             \
    X(INTERNAL, "internal", 500)                       \
    X(UNAVAILABLE, "unavailable", 503)                 \
    X(UNAUTHENTICATED, "unauthenticated", 401)

typedef enum hfsbi_connect_code {
#define HFSBI_X(name, text, status) HFSBI_CONNECT_##name,
    HFSBI_CONNECT_CODES(HFSBI_X)
#undef HFSBI_X
        HFSBI_CONNECT_CODE_COUNT
} hfsbi_connect_code;

/* "not_found", and 404. */
HFSBI_FN const char *hfsbi_connect_name(hfsbi_connect_code code);
HFSBI_FN int         hfsbi_connect_status(hfsbi_connect_code code);

enum { /* flags of an envelope */
       HFSBI_CONNECT_COMPRESSED = 1,
       HFSBI_CONNECT_END_STREAM = 2
};

/* Reads envelopes. All-zero is ready to use. */
typedef struct hfsbi_connect_reader {
    size_t max; /* bytes of a message (0: 4 MiB) */
    /* private */
    unsigned char      state;
    unsigned char      head_len; /* bytes of head received */
    unsigned char      head[5];
    size_t             left; /* bytes left of the message */
    unsigned long long at;   /* offset in the stream */
} hfsbi_connect_reader;

typedef enum hfsbi_connect_event {
    HFSBI_CONNECT_MORE, /* all bytes are used, more are needed */
    HFSBI_CONNECT_DATA, /* a piece of a message; empty only when it is over */
    HFSBI_CONNECT_END,  /* the stream is over; final */
    HFSBI_CONNECT_BAD   /* refused; final */
} hfsbi_connect_event;

/* What an event is about. */
typedef struct hfsbi_connect_piece {
    hfsb_str data;           /* DATA: a view of the bytes given */
    bool     over;           /* DATA: the message is over */
    bool     end_stream;     /* DATA: of the message that ends the stream */
    hfsbi_connect_code code; /* BAD: INVALID_ARGUMENT; UNIMPLEMENTED for a
                                compressed message; RESOURCE_EXHAUSTED */
} hfsbi_connect_piece;

/* Returns the next event in `in`, as hfsbi_multipart_next() does; `last`: the
   stream ends with `in`, which is valid between any two envelopes. err (may be
   NULL) is filled by BAD: HFSB_SYNTAX; HFSB_REFUSED for a compressed message;
   HFSB_LIMIT for one longer than max; err->pos is an offset in the stream. */
HFSBI_FN hfsbi_connect_event hfsbi_connect_next(hfsbi_connect_reader *reader,
                                                hfsb_str in, bool last,
                                                hfsbi_connect_piece *piece,
                                                size_t *used, hfsb_err *err);

/* Writes the head of an envelope. False, and nothing is written, when the
   length does not fit 32 bits. */
#define HFSBI_CONNECT_HEAD 5
HFSBI_FN bool hfsbi_connect_write_head(unsigned flags, size_t length,
                                       char out[HFSBI_CONNECT_HEAD]);

/* ---- mux.c: several connections in one pipe ---- */

enum {
    HFSBI_MUX_HEAD = 8,
    HFSBI_MUX_WINDOW = 262144 /* bytes in flight in a stream, at most */
};

typedef enum hfsbi_mux_kind {
    HFSBI_MUX_OPEN = 'O',
    HFSBI_MUX_DATA = 'D',
    HFSBI_MUX_CREDIT = 'C',
    HFSBI_MUX_END = 'E',
    HFSBI_MUX_BYE = 'B'
} hfsbi_mux_kind;

typedef struct hfsbi_mux_frame {
    hfsbi_mux_kind kind;
    unsigned long  stream; /* from 1 on, below 2^32; 0 for BYE */
    unsigned long  n;      /* CREDIT: bytes; DATA: length of data */
    hfsb_str       data;   /* DATA: a non-empty piece of the bytes given */
} hfsbi_mux_frame;

/* Reads frames. All-zero is ready to use. */
typedef struct hfsbi_mux_reader { /* private */
    unsigned char      state;
    unsigned char      head_len; /* bytes of head received */
    unsigned char      head[HFSBI_MUX_HEAD];
    unsigned long      stream; /* of the data */
    size_t             left;   /* bytes left of it */
    unsigned long long at;     /* offset in the pipe */
} hfsbi_mux_reader;

typedef enum hfsbi_mux_event {
    HFSBI_MUX_MORE, /* all bytes are used, more are needed */
    HFSBI_MUX_FRAME,
    HFSBI_MUX_BAD /* refused; final */
} hfsbi_mux_event;

/* Returns the next event in `in`, which follows the bytes used by the last
   call; *used bytes of it were consumed. err (may be NULL) is filled by BAD:
   HFSB_SYNTAX; err->pos is an offset in the pipe. */
HFSBI_FN hfsbi_mux_event hfsbi_mux_next(hfsbi_mux_reader *r, hfsb_str in,
                                        hfsbi_mux_frame *frame, size_t *used,
                                        hfsb_err *err);

/* Writes the head of a frame; n and stream fit their fields. */
HFSBI_FN void hfsbi_mux_write_head(hfsbi_mux_kind kind, unsigned long n,
                                   unsigned long stream,
                                   char          out[HFSBI_MUX_HEAD]);
