/* connect.c - envelopes and errors of the Connect protocol.

   A stream of messages is a stream of envelopes:

       +--------+--------+--------+--------+--------+--- - - ---+
       | flags  |     length, big-endian            |  message  |
       +--------+--------+--------+--------+--------+--- - - ---+

   Flag 2 marks the last message of a server, which holds the error or {}.
   The reader passes messages on in pieces as they come, without memory of
   its own, and refuses a head at its first wrong byte.

       HEAD --> DATA --> HEAD      CLOSED: after flag 2, nothing may follow
                  +----> CLOSED    any --> OVER, REFUSED, for good

   */
#include "http_private.h"

/* ---- errors ---- */

static const struct {
    const char *name;
    int         status;
} hfsbi_connect_codes[] = {
#define HFSBI_X(code, name, status) {name, status},
    HFSBI_CONNECT_CODES(HFSBI_X)
#undef HFSBI_X
};

HFSBI_FN const char *hfsbi_connect_name(hfsbi_connect_code code) {
    return hfsbi_connect_codes[code].name;
}

HFSBI_FN int hfsbi_connect_status(hfsbi_connect_code code) {
    return hfsbi_connect_codes[code].status;
}

/* ---- reading ---- */

enum { /* hfsbi_connect_reader.state: what comes next */
       HFSBI_CONNECT_IN_HEAD,
       HFSBI_CONNECT_IN_DATA, /* `left` bytes of the message */
       HFSBI_CONNECT_CLOSED,  /* the end, since the stream was ended */
       HFSBI_CONNECT_OVER,
       HFSBI_CONNECT_REFUSED
};

static hfsbi_connect_event hfsbi_connect_bad(hfsbi_connect_reader *r,
                                             hfsbi_connect_piece  *piece,
                                             hfsbi_connect_code    code) {
    r->state = HFSBI_CONNECT_REFUSED;
    piece->code = code;
    return HFSBI_CONNECT_BAD;
}

/* Refuses unknown flags. */
static hfsbi_connect_event hfsbi_connect_flags(hfsbi_connect_reader *r,
                                               hfsbi_connect_piece  *piece,
                                               hfsb_err             *err) {
    unsigned flags = r->head[0];
    size_t   pos = (size_t)r->at;
    if (!(flags & ~(unsigned)HFSBI_CONNECT_END_STREAM))
        return HFSBI_CONNECT_MORE;
    if (flags & HFSBI_CONNECT_COMPRESSED) {
        hfsbi_fail(err, HFSB_REFUSED, pos,
                   "The message is compressed, which is not supported. Send "
                   "it without Connect-Content-Encoding.");
        return hfsbi_connect_bad(r, piece, HFSBI_CONNECT_UNIMPLEMENTED);
    }
    hfsbi_fail(err, HFSB_SYNTAX, pos,
               "An envelope starts with the flags 0x%02x; expected 0x00 or "
               "0x02.",
               flags);
    return hfsbi_connect_bad(r, piece, HFSBI_CONNECT_INVALID_ARGUMENT);
}

/* Reads the length once the head is complete. */
static hfsbi_connect_event hfsbi_connect_length(hfsbi_connect_reader *r,
                                                hfsbi_connect_piece  *piece,
                                                hfsb_err             *err) {
    const unsigned char *p = r->head + 1;
    size_t               max = hfsbi_http_limit(r->max, (size_t)4 << 20);
    uint32_t             length = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
                      (uint32_t)p[2] << 8 | p[3];
    if (length > max) {
        hfsbi_fail(err, HFSB_LIMIT, (size_t)r->at - 4,
                   "A message has %lu bytes, more than the limit of %zu.",
                   (unsigned long)length, max);
        return hfsbi_connect_bad(r, piece, HFSBI_CONNECT_RESOURCE_EXHAUSTED);
    }
    r->left = length;
    r->state = HFSBI_CONNECT_IN_DATA;
    return HFSBI_CONNECT_MORE;
}

/* Takes bytes of the head, which is refused as early as possible. */
static hfsbi_connect_event hfsbi_connect_head(hfsbi_connect_reader *r,
                                              hfsb_str in, size_t *used,
                                              hfsbi_connect_piece *piece,
                                              hfsb_err            *err) {
    while (*used < in.len && r->head_len < HFSBI_CONNECT_HEAD) {
        r->head[r->head_len++] = (unsigned char)in.ptr[*used];
        if (r->head_len == 1 &&
            hfsbi_connect_flags(r, piece, err) == HFSBI_CONNECT_BAD)
            return HFSBI_CONNECT_BAD;
        r->at++;
        ++*used;
    }
    if (r->head_len < HFSBI_CONNECT_HEAD) return HFSBI_CONNECT_MORE;
    r->head_len = 0;
    return hfsbi_connect_length(r, piece, err);
}

/* Passes on what has arrived of the message. */
static hfsbi_connect_event hfsbi_connect_data(hfsbi_connect_reader *r,
                                              hfsb_str in, size_t *used,
                                              hfsbi_connect_piece *piece) {
    size_t n = in.len - *used;
    if (!n && r->left) return HFSBI_CONNECT_MORE;
    if (n > r->left) n = r->left;
    piece->data = hfsb_str_make(in.ptr + *used, n);
    piece->end_stream = (r->head[0] & HFSBI_CONNECT_END_STREAM) != 0;
    *used += n;
    r->at += n;
    r->left -= n;
    piece->over = !r->left;
    if (piece->over)
        r->state =
            piece->end_stream ? HFSBI_CONNECT_CLOSED : HFSBI_CONNECT_IN_HEAD;
    return HFSBI_CONNECT_DATA;
}

/* Handles the end of the input. */
static hfsbi_connect_event hfsbi_connect_end(hfsbi_connect_reader *r,
                                             hfsbi_connect_piece  *piece,
                                             hfsb_err             *err) {
    size_t pos = (size_t)r->at;
    if (r->state == HFSBI_CONNECT_IN_DATA) {
        hfsbi_fail(err, HFSB_SYNTAX, pos,
                   "The stream ends in a message, %zu bytes too early.",
                   r->left);
        return hfsbi_connect_bad(r, piece, HFSBI_CONNECT_INVALID_ARGUMENT);
    }
    if (r->head_len) {
        hfsbi_fail(err, HFSB_SYNTAX, pos,
                   "The stream ends in the head of an envelope, which has "
                   "%d bytes.",
                   HFSBI_CONNECT_HEAD);
        return hfsbi_connect_bad(r, piece, HFSBI_CONNECT_INVALID_ARGUMENT);
    }
    r->state = HFSBI_CONNECT_OVER;
    return HFSBI_CONNECT_END;
}

HFSBI_FN hfsbi_connect_event hfsbi_connect_next(hfsbi_connect_reader *r,
                                                hfsb_str in, bool last,
                                                hfsbi_connect_piece *piece,
                                                size_t *used, hfsb_err *err) {
    hfsbi_connect_event event = HFSBI_CONNECT_MORE;
    if (!in.ptr) in = HFSB_LIT("");
    memset(piece, 0, sizeof *piece);
    *used = 0;
    if (r->state == HFSBI_CONNECT_OVER) return HFSBI_CONNECT_END;
    if (r->state == HFSBI_CONNECT_REFUSED) {
        hfsbi_fail(err, HFSB_SYNTAX, (size_t)r->at,
                   "An earlier envelope was refused.");
        return hfsbi_connect_bad(r, piece, HFSBI_CONNECT_INVALID_ARGUMENT);
    }
    if (r->state == HFSBI_CONNECT_IN_HEAD)
        event = hfsbi_connect_head(r, in, used, piece, err);
    if (r->state == HFSBI_CONNECT_IN_DATA)
        event = hfsbi_connect_data(r, in, used, piece);
    else if (r->state == HFSBI_CONNECT_CLOSED && in.len) {
        hfsbi_fail(err, HFSB_SYNTAX, (size_t)r->at,
                   "Bytes follow the message that ends the stream.");
        return hfsbi_connect_bad(r, piece, HFSBI_CONNECT_INVALID_ARGUMENT);
    }
    if (event == HFSBI_CONNECT_MORE && last)
        return hfsbi_connect_end(r, piece, err);
    return event;
}

/* ---- writing ---- */

HFSBI_FN bool hfsbi_connect_write_head(unsigned flags, size_t length,
                                       char out[HFSBI_CONNECT_HEAD]) {
    size_t i;
    if ((unsigned long long)length >> 32) return false;
    out[0] = (char)(unsigned char)flags;
    for (i = 0; i < 4; i++)
        out[1 + i] = (char)(unsigned char)(length >> (24 - 8 * i) & 0xFFu);
    return true;
}
