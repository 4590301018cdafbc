/* parse.c - messages from bytes that arrive in pieces.

   The parser is a state and a few counters, without memory of its own: the
   caller keeps the bytes that are not used yet. hfsb_http_next() returns one
   event at a time.

       HEAD --> LENGTH ------------------------------------> OVER --> HEAD
         |----> CLOSE (until the connection ends)              ^
         |----> CHUNK --> CHUNK_DATA --> CHUNK_END --> CHUNK   |
         |        +--size 0--> TRAILER ------------------------|
         +----> OVER (no body)
       any --> REFUSED, for good

   Every limit is checked before the bytes that exceed it have arrived, and a
   bad line is refused as soon as it is complete. */
#include "http_private.h"

/* A line that is read here ends in a line feed, which stops every scan. */

/* ---- the line before a chunk ---- */

static const char *hfsbi_http_blanks(const char *p) {
    while (hfsbi_is_blank(*p)) p++;
    return p;
}

static const char *hfsbi_http_token(const char *p) {
    while (hfsbi_http_class(*p) & HFSBI_HTTP_TOKEN) p++;
    return p;
}

/* Moves *at from the opening quote past the closing one, or to the byte that
   is invalid (false). */
static bool hfsbi_http_quoted(const char **at) {
    const char *p = *at + 1;
    for (; *p != '"'; p++) {
        if (*p == '\\') p++;
        if (!(hfsbi_http_class(*p) & HFSBI_HTTP_VALUE)) break;
    }
    *at = *p == '"' ? p + 1 : p;
    return *p == '"';
}

/* Skips extensions, *(";" name ["=" value]) with optional blanks. False with
   *at at the byte that is invalid. */
static bool hfsbi_http_extensions(const char **at) {
    for (;;) {
        const char *p = hfsbi_http_blanks(*at), *name;
        if (*p != ';') return true;
        name = hfsbi_http_blanks(p + 1);
        *at = hfsbi_http_token(name);
        if (*at == name) return false;
        p = hfsbi_http_blanks(*at);
        if (*p != '=') continue;
        p = hfsbi_http_blanks(p + 1);
        *at = *p == '"' ? p : hfsbi_http_token(p);
        if (*p == '"' ? !hfsbi_http_quoted(at) : *at == p) return false;
    }
}

/* Reads the size of a chunk from its line, which ends before `end`. */
static bool hfsbi_http_chunk_line(const hfsbi_http_reader *r, const char *p,
                                  const char *end, unsigned long long *size) {
    const char        *start = p;
    unsigned long long n = 0;
    int                digit;
    for (; (digit = hfsbi_hex_digit(*p)) >= 0; p++) {
        if (n > (~0ull >> 1) / 16)
            return hfsbi_http_refuse(r, 400, start,
                                     "The size of a chunk is too large.");
        n = n * 16 + (unsigned)digit;
    }
    if (p == start) return hfsbi_http_refuse_byte(r, p, "the size of a chunk");
    if (!hfsbi_http_extensions(&p) || end - p != 2 || *p != '\r')
        return hfsbi_http_refuse_byte(r, p, "the line before a chunk");
    *size = n;
    return true;
}

/* ---- the parser ---- */

enum { /* hfsb_http_parser.state: what comes next */
       HFSBI_HTTP_HEAD,
       HFSBI_HTTP_LENGTH,     /* `left` bytes of the body */
       HFSBI_HTTP_CLOSE,      /* the body, until the end of the connection */
       HFSBI_HTTP_CHUNK,      /* the line before a chunk */
       HFSBI_HTTP_CHUNK_DATA, /* `left` bytes of the chunk */
       HFSBI_HTTP_CHUNK_END,  /* the CRLF after a chunk */
       HFSBI_HTTP_TRAILER,    /* a trailer; `left` bytes of them received */
       HFSBI_HTTP_OVER,       /* the event END */
       HFSBI_HTTP_REFUSED
};

/* Excess of chunk lines over the data they announce. A one-byte chunk with a
   one-byte line costs nothing, one with an extension of 200 bytes does. */
#define HFSBI_HTTP_MAX_WASTE 16384u

/* Empty lines before a request, which some clients send after a body. */
#define HFSBI_HTTP_MAX_EMPTY 2

void hfsb_http_parser_init(hfsb_http_parser       *parser,
                           const hfsb_http_limits *limits) {
    memset(parser, 0, sizeof *parser);
    parser->limits = limits;
}

void hfsb_http_parser_init_reply(hfsb_http_parser       *parser,
                                 const hfsb_http_limits *limits) {
    hfsb_http_parser_init(parser, limits);
    parser->kind = HFSBI_HTTP_REPLY;
}

void hfsb_http_parser_begin_reply(hfsb_http_parser *parser, hfsb_str method) {
    unsigned kind = HFSBI_HTTP_REPLY;
    if (hfsb_str_equal(method, HFSB_LIT("HEAD"))) kind |= HFSBI_HTTP_OF_HEAD;
    if (hfsb_str_equal(method, HFSB_LIT("CONNECT")))
        kind |= HFSBI_HTTP_OF_CONNECT;
    parser->kind = (unsigned char)kind;
}

bool hfsb_http_parser_end(const hfsb_http_parser *parser) {
    return parser->state == HFSBI_HTTP_CLOSE ||
           parser->state == HFSBI_HTTP_OVER || hfsb_http_parser_idle(parser);
}

bool hfsb_http_parser_idle(const hfsb_http_parser *parser) {
    return parser->state == HFSBI_HTTP_HEAD && !parser->seen;
}

int hfsb_http_parser_status(const hfsb_http_parser *parser) {
    return parser->status;
}

static size_t hfsbi_http_max_head(const hfsb_http_parser *parser) {
    return hfsbi_http_limit(parser->limits ? parser->limits->max_head : 0,
                            16384);
}

/* ---- heads ---- */

/* Searches the first `window` bytes, from `seen` on, for the end of the head
   that starts at `start`. Returns the offset after its empty line, or 0. */
static size_t hfsbi_http_head_end(hfsb_http_parser *parser, const char *p,
                                  size_t start, size_t window) {
    size_t at = parser->seen > start ? parser->seen : start;
    while (at < window) {
        const char *lf = (const char *)memchr(p + at, '\n', window - at);
        if (!lf) break;
        at = (size_t)(lf - p);
        if (window - at >= 2 && p[at + 1] == '\n') return at + 2;
        if (window - at >= 3 && p[at + 1] == '\r' && p[at + 2] == '\n')
            return at + 3;
        if (window - at < 3) { /* undecided: look again next time */
            parser->seen = at;
            return 0;
        }
        at++;
    }
    parser->seen = window;
    return 0;
}

/* For an incomplete head: checks the lines completed since `before` bytes had
   arrived, so that a bad one is refused at once. */
static bool hfsbi_http_check_lines(hfsbi_http_reader *r, size_t start,
                                   size_t before, size_t window) {
    const char     *p = r->in.ptr, *end = p + window, *first = p + start;
    const char     *line = p + (before > start ? before : start);
    bool            reply = (r->parser->kind & HFSBI_HTTP_REPLY) != 0;
    hfsb_http_field spare;
    if (!memchr(line, '\n', (size_t)(end - line))) return true;
    while (line > first && line[-1] != '\n') line--;
    while (line < end) {
        const char *lf =
            (const char *)memchr(line, '\n', (size_t)(end - line));
        if (line != first && end - line >= 2 && line[0] == '\r' &&
            line[1] != '\n' && !reply)
            return hfsbi_http_refuse_byte(r, line, "the name of a field");
        if (!lf) break;
        if (line == first) {
            if (!hfsbi_http_first_line(r, line, lf + 1)) return false;
        } else if (!reply && !hfsbi_http_field_line(r, line, lf + 1, &spare)) {
            return false;
        }
        line = lf + 1;
    }
    return true;
}

/* Refuses a head that does not end within its limit. */
static bool hfsbi_http_head_too_long(const hfsbi_http_reader *r, size_t start,
                                     size_t window) {
    const char *p = r->in.ptr;
    if (!(r->parser->kind & HFSBI_HTTP_REPLY) &&
        !memchr(p + start, '\n', window - start))
        return hfsbi_http_refuse(r, 414, p + start,
                                 "The target of the request is too long.");
    return hfsbi_http_refuse(r, 431, p + window,
                             "The head of the message is too large.");
}

/* Number of bytes of empty lines before the request. */
static size_t hfsbi_http_empty_lines(const hfsb_http_parser *parser,
                                     hfsb_str                in) {
    size_t n = 0;
    if (parser->kind & HFSBI_HTTP_REPLY) return 0;
    while (n < 2 * HFSBI_HTTP_MAX_EMPTY && in.len - n >= 2 &&
           in.ptr[n] == '\r' && in.ptr[n + 1] == '\n')
        n += 2;
    return n;
}

/* Enters the state for the body of the message. */
static void hfsbi_http_body_begin(hfsb_http_parser     *parser,
                                  const hfsb_http_head *head) {
    parser->seen = parser->trailers = 0;
    parser->left = head->length;
    parser->waste = 0;
    parser->state = HFSBI_HTTP_OVER;
    if (head->body == HFSB_HTTP_CHUNKED) parser->state = HFSBI_HTTP_CHUNK;
    if (head->body == HFSB_HTTP_UNTIL_CLOSE) parser->state = HFSBI_HTTP_CLOSE;
    if (head->body == HFSB_HTTP_LENGTH && head->length)
        parser->state = HFSBI_HTTP_LENGTH;
}

static hfsb_http_event hfsbi_http_bad(hfsb_http_parser *parser) {
    parser->state = HFSBI_HTTP_REFUSED;
    return HFSB_HTTP_BAD;
}

/* True while only empty lines have arrived, the last perhaps incomplete. */
static bool hfsbi_http_nothing_yet(const hfsb_http_parser *parser, hfsb_str in,
                                   size_t start) {
    return start == in.len ||
           (!(parser->kind & HFSBI_HTTP_REPLY) && in.len - start == 1 &&
            start < 2 * HFSBI_HTTP_MAX_EMPTY && in.ptr[start] == '\r');
}

/* Reads the head once it is complete. Until then its complete lines are
   checked, and its size is limited. */
static hfsb_http_event hfsbi_http_head_next(hfsbi_http_reader *r,
                                            size_t            *used) {
    hfsb_http_parser *parser = r->parser;
    size_t            max = hfsbi_http_max_head(parser);
    size_t            window = r->in.len < max ? r->in.len : max;
    size_t            start = hfsbi_http_empty_lines(parser, r->in), end;
    size_t            before = parser->seen < window ? parser->seen : window;
    if (hfsbi_http_nothing_yet(parser, r->in, start)) return HFSB_HTTP_MORE;
    if (!hfsbi_http_first_byte(r, r->in.ptr + start))
        return hfsbi_http_bad(parser);
    if (window < start) window = start;
    end = hfsbi_http_head_end(parser, r->in.ptr, start, window);
    if (!end) {
        if (!hfsbi_http_check_lines(r, start, before, window))
            return hfsbi_http_bad(parser);
        if (r->in.len < max) return HFSB_HTTP_MORE;
        hfsbi_http_head_too_long(r, start, window);
        return hfsbi_http_bad(parser);
    }
    if (!hfsbi_http_head_read(r, r->in.ptr + start, r->in.ptr + end))
        return hfsbi_http_bad(parser);
    hfsbi_http_body_begin(parser, r->head);
    *used = end;
    return HFSB_HTTP_HEAD;
}

/* ---- bodies ---- */

/* Returns the bytes of the body that have arrived. */
static hfsb_http_event hfsbi_http_piece(hfsbi_http_reader *r, hfsb_str *piece,
                                        size_t *used) {
    hfsb_http_parser *parser = r->parser;
    size_t            n = r->in.len - *used;
    if (!n) return HFSB_HTTP_MORE;
    if (parser->state != HFSBI_HTTP_CLOSE) {
        if (n > parser->left) n = (size_t)parser->left;
        parser->left -= n;
        if (!parser->left)
            parser->state = parser->state == HFSBI_HTTP_LENGTH
                                ? HFSBI_HTTP_OVER
                                : HFSBI_HTTP_CHUNK_END;
    }
    *piece = hfsb_str_make(r->in.ptr + *used, n);
    *used += n;
    return HFSB_HTTP_BODY;
}

/* The end of the line that starts at `used`, of at most `most` bytes with its
   line feed; NULL when it has not arrived yet. */
static const char *hfsbi_http_body_line(hfsbi_http_reader *r, size_t used,
                                        size_t most) {
    hfsb_http_parser *parser = r->parser;
    const char       *p = r->in.ptr + used, *lf = NULL;
    size_t            n = r->in.len - used;
    if (n > most) n = most;
    if (parser->seen < n)
        lf = (const char *)memchr(p + parser->seen, '\n', n - parser->seen);
    parser->seen = lf ? 0 : n;
    return lf ? lf + 1 : NULL;
}

/* Reads the line before a chunk. False: refused, or more bytes needed. */
static bool hfsbi_http_chunk_next(hfsbi_http_reader *r, size_t *used) {
    hfsb_http_parser       *parser = r->parser;
    const hfsb_http_limits *limits = parser->limits;
    size_t most = hfsbi_http_limit(limits ? limits->max_chunk_line : 0, 256);
    const char        *p = r->in.ptr + *used, *end;
    unsigned long long size = 0;
    if (most < (size_t)-1 - 2) most += 2; /* CRLF */
    end = hfsbi_http_body_line(r, *used, most);
    if (!end)
        return r->in.len - *used >= most
                   ? hfsbi_http_refuse(r, 400, p,
                                       "The line before a chunk "
                                       "is too long.")
                   : false;
    if (!hfsbi_http_chunk_line(r, p, end, &size)) return false;
    parser->waste += (size_t)(end - p) - 2;
    parser->waste -= parser->waste < size ? parser->waste : size;
    if (parser->waste > HFSBI_HTTP_MAX_WASTE)
        return hfsbi_http_refuse(r, 400, p,
                                 "The lines before the chunks "
                                 "are longer than the chunks.");
    *used += (size_t)(end - p);
    parser->left = size;
    parser->state = size ? HFSBI_HTTP_CHUNK_DATA : HFSBI_HTTP_TRAILER;
    return true;
}

static bool hfsbi_http_chunk_end(hfsbi_http_reader *r, size_t *used) {
    const char *p = r->in.ptr + *used;
    size_t      n = r->in.len - *used;
    if ((n > 0 && p[0] != '\r') || (n > 1 && p[1] != '\n'))
        return hfsbi_http_refuse(r, 400, p,
                                 "CRLF is missing after a chunk: "
                                 "its size is wrong.");
    if (n < 2) return false;
    *used += 2;
    r->parser->state = HFSBI_HTTP_CHUNK;
    return true;
}

/* Reads a trailer, which is checked like a field and dropped. */
static bool hfsbi_http_trailer_next(hfsbi_http_reader *r, size_t *used) {
    hfsb_http_parser       *parser = r->parser;
    const hfsb_http_limits *limits = parser->limits;
    size_t most = hfsbi_http_max_head(parser) - (size_t)parser->left;
    size_t fields = hfsbi_http_limit(limits ? limits->max_fields : 0, 100);
    const char     *p = r->in.ptr + *used, *end;
    hfsb_http_field spare;
    end = hfsbi_http_body_line(r, *used, most);
    if (!end)
        return r->in.len - *used >= most
                   ? hfsbi_http_refuse(r, 431, p,
                                       "The trailers are too "
                                       "large.")
                   : false;
    if (end - p == 2 && *p == '\r') {
        parser->state = HFSBI_HTTP_OVER;
    } else {
        if (!hfsbi_http_field_line(r, p, end, &spare)) return false;
        if (end[-2] != '\r')
            return hfsbi_http_refuse_byte(r, end - 1, "a trailer");
        if (++parser->trailers > fields)
            return hfsbi_http_refuse(r, 431, p,
                                     "There are too many "
                                     "trailers.");
    }
    parser->left += (size_t)(end - p);
    *used += (size_t)(end - p);
    return true;
}

/* Reads what comes between the pieces of a body. */
static bool hfsbi_http_step(hfsbi_http_reader *r, size_t *used) {
    switch (r->parser->state) {
    case HFSBI_HTTP_CHUNK: return hfsbi_http_chunk_next(r, used);
    case HFSBI_HTTP_CHUNK_END: return hfsbi_http_chunk_end(r, used);
    default: return hfsbi_http_trailer_next(r, used);
    }
}

hfsb_http_event hfsb_http_next(hfsb_http_parser *parser, hfsb_str in,
                               hfsb_http_field *fields, size_t room,
                               hfsb_http_head *head, hfsb_str *piece,
                               size_t *used, hfsb_err *err) {
    hfsbi_http_reader r;
    r.parser = parser;
    r.in = in.ptr ? in : HFSB_LIT("");
    r.head = head;
    r.err = err;
    r.room = room;
    *used = 0;
    for (;;) {
        switch (parser->state) {
        case HFSBI_HTTP_HEAD:
            memset(head, 0, sizeof *head);
            head->fields = fields;
            return hfsbi_http_head_next(&r, used);
        case HFSBI_HTTP_LENGTH:
        case HFSBI_HTTP_CLOSE:
        case HFSBI_HTTP_CHUNK_DATA: return hfsbi_http_piece(&r, piece, used);
        case HFSBI_HTTP_OVER:
            parser->state = HFSBI_HTTP_HEAD;
            parser->seen = 0;
            return HFSB_HTTP_END;
        case HFSBI_HTTP_REFUSED:
            hfsbi_fail(err, HFSB_SYNTAX, 0, "An earlier message was refused.");
            return HFSB_HTTP_BAD;
        default:
            if (hfsbi_http_step(&r, used)) break;
            return parser->status ? hfsbi_http_bad(parser) : HFSB_HTTP_MORE;
        }
    }
}
