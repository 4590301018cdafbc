/* multipart.c - bodies of multipart/form-data (RFC 7578, RFC 2046), in pieces.

       preamble CRLF
       --boundary CRLF
       Content-Disposition: form-data; name="a"; filename="b" CRLF
       CRLF
       data CRLF
       --boundary-- CRLF
       epilogue

   A delimiter is CRLF "--" boundary; the CRLF belongs to it, not to the data,
   and may be that of the empty line before the data, or the start of the body.
   It contains no CR but its first byte. So after a mismatch the search goes on
   at the byte that did not match: nothing is read again, and the bytes held
   back at the end of a piece need not be kept, since they are those of the
   delimiter.

       PREAMBLE --> AFTER --> HEAD --> DATA --> AFTER --> ...
                      |  (PADDING before CR LF)
                      +-"-"-> DASH --> CLOSED --> EPILOGUE --> OVER
       any --> REFUSED, for good

   Strict: a line that starts with a delimiter is a delimiter, and a body that
   two readers could divide differently is refused. Only the head of a part is
   kept, in a buffer that never moves; names are decoded there. */
#include "http_private.h"

enum {                          /* hfsbi_multipart.state: what comes next */
       HFSBI_MULTIPART_REFUSED, /* or not begun */
       HFSBI_MULTIPART_PREAMBLE,
       HFSBI_MULTIPART_AFTER,   /* what follows a delimiter */
       HFSBI_MULTIPART_PADDING, /* blanks after it, then CR */
       HFSBI_MULTIPART_LF,      /* the line feed after that */
       HFSBI_MULTIPART_HEAD,
       HFSBI_MULTIPART_IN_DATA,
       HFSBI_MULTIPART_DASH,      /* the second "-" after the last one */
       HFSBI_MULTIPART_CLOSED,    /* blanks after it, then CR or the end */
       HFSBI_MULTIPART_CLOSED_LF, /* the line feed after that */
       HFSBI_MULTIPART_EPILOGUE,
       HFSBI_MULTIPART_OVER
};

enum {
    HFSBI_MULTIPART_MAX_BOUNDARY = 70,
    HFSBI_MULTIPART_MAX_PADDING = 256,
    HFSBI_MULTIPART_CRLF = 2 /* bytes of it at the start of a delimiter */
};

/* ---- parameters: *(";" name "=" value) ---- */

typedef struct hfsbi_http_param {
    hfsb_str name, value; /* value: without its quotes, not decoded */
    bool     quoted;
} hfsbi_http_param;

static hfsb_str hfsbi_http_param_skip(hfsb_str s, size_t n) {
    while (n < s.len && hfsbi_is_blank(s.ptr[n])) n++;
    return hfsb_str_slice(s, n, s.len);
}

static size_t hfsbi_http_param_token(hfsb_str s) {
    size_t n = 0;
    while (n < s.len && (hfsbi_http_class(s.ptr[n]) & HFSBI_HTTP_TOKEN)) n++;
    return n;
}

/* In a quoted string only \" and \\ are escapes: browsers do not escape a
   backslash in a file name. */
static bool hfsbi_http_param_escape(hfsb_str s, size_t i) {
    return s.ptr[i] == '\\' && i + 1 < s.len &&
           (s.ptr[i + 1] == '"' || s.ptr[i + 1] == '\\');
}

/* Offset of the closing quote of s, which starts after the opening one; s.len
   without one. */
static size_t hfsbi_http_param_quote(hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len && s.ptr[i] != '"'; i++)
        if (hfsbi_http_param_escape(s, i)) i++;
    return i < s.len ? i : s.len;
}

/* Removes the next parameter from *rest, which starts with ";" or is empty;
   an empty parameter is skipped. False at its end (*wrong is NULL), or when it
   is malformed at *wrong. */
static bool hfsbi_http_param_next(hfsb_str *rest, hfsbi_http_param *param,
                                  const char **wrong) {
    hfsb_str s = hfsbi_http_param_skip(*rest, 0);
    size_t   n;
    *wrong = s.len && *s.ptr != ';' ? s.ptr : NULL;
    if (*wrong) return false;
    while (s.len && *s.ptr == ';') s = hfsbi_http_param_skip(s, 1);
    if (!s.len) return false;
    n = hfsbi_http_param_token(s);
    *wrong = s.ptr + n;
    if (!n || n == s.len || s.ptr[n] != '=') return false;
    param->name = hfsb_str_slice(s, 0, n);
    s = hfsb_str_slice(s, n + 1, s.len);
    param->quoted = s.len > 0 && *s.ptr == '"';
    if (param->quoted) s = hfsb_str_slice(s, 1, s.len);
    *wrong = s.ptr;
    n = param->quoted ? hfsbi_http_param_quote(s) : hfsbi_http_param_token(s);
    if (param->quoted ? n == s.len : !n) return false;
    param->value = hfsb_str_slice(s, 0, n);
    *rest = hfsb_str_slice(s, n + param->quoted, s.len);
    return true;
}

/* ---- the boundary ---- */

static bool hfsbi_boundary_ok(hfsb_str s) {
    size_t i;
    if (!s.len || s.len > HFSBI_MULTIPART_MAX_BOUNDARY ||
        s.ptr[s.len - 1] == ' ')
        return false;
    for (i = 0; i < s.len; i++)
        if (!s.ptr[i] ||
            (!hfsbi_is_digit(s.ptr[i]) && !hfsbi_is_alpha(s.ptr[i]) &&
             !strchr("'()+_,-./:=? ", s.ptr[i])))
            return false;
    return true;
}

/* Finds the boundary in the parameters of a Content-Type. */
static hfsb_status hfsbi_boundary_find(hfsb_str text, hfsb_str rest,
                                       hfsb_str *boundary, hfsb_err *err) {
    const char      *wrong;
    hfsbi_http_param param;
    while (hfsbi_http_param_next(&rest, &param, &wrong)) {
        size_t pos = (size_t)(param.value.ptr - text.ptr);
        if (!hfsbi_http_is(param.name, "boundary")) continue;
        if (boundary->ptr)
            return hfsbi_fail(err, HFSB_SYNTAX, pos,
                              "The Content-Type has more than one boundary.");
        if (!hfsbi_boundary_ok(param.value))
            return hfsbi_fail(err, HFSB_SYNTAX, pos,
                              "The boundary of the Content-Type must have 1 "
                              "to 70 letters, digits or any of '()+_,-./:=? "
                              "and not end in a blank.");
        *boundary = param.value;
    }
    if (wrong)
        return hfsbi_fail(err, HFSB_SYNTAX, (size_t)(wrong - text.ptr),
                          "The Content-Type is malformed. Expected "
                          "multipart/form-data; boundary=...");
    if (!boundary->ptr)
        return hfsbi_fail(err, HFSB_SYNTAX, text.len,
                          "The Content-Type has no boundary.");
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_multipart_begin(hfsbi_multipart *m,
                                           hfsb_str         content_type,
                                           hfsb_err        *err) {
    size_t      end = hfsb_str_find_byte(content_type, ';');
    hfsb_str    type = hfsbi_trim(hfsb_str_slice(content_type, 0, end));
    hfsb_str    boundary = HFSB_INIT;
    hfsb_status st;
    if (!hfsbi_http_is(type, "multipart/form-data"))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The Content-Type is not multipart/form-data.");
    st = hfsbi_boundary_find(
        content_type, hfsb_str_slice(content_type, end, content_type.len),
        &boundary, err);
    if (st != HFSB_OK) return st;
    hfsb_buf_truncate(&m->head, 0);
    st = hfsb_buf_reserve(&m->head, hfsbi_http_limit(m->max_head, 16384));
    if (st != HFSB_OK) return hfsbi_fail_status(err, st, "Multipart body");
    memcpy(m->delim, "\r\n--", 4);
    memcpy(m->delim + 4, boundary.ptr, boundary.len);
    m->delim_len = (unsigned char)(4 + boundary.len);
    m->state = HFSBI_MULTIPART_PREAMBLE;
    m->matched = m->implied = HFSBI_MULTIPART_CRLF;
    m->in_part = false;
    m->parts = m->count = 0;
    m->at = 0;
    m->name = m->filename = m->type = hfsb_str_make(NULL, 0);
    return hfsbi_ok(err);
}

HFSBI_FN void hfsbi_multipart_free(hfsbi_multipart *m) {
    hfsb_buf_free(&m->head);
    m->name = m->filename = m->type = hfsb_str_make(NULL, 0);
    m->state = HFSBI_MULTIPART_REFUSED;
}

/* ---- refusing ---- */

/* The state of one call. */
typedef struct hfsbi_multipart_call {
    hfsbi_multipart *m;
    hfsb_str         in;
    size_t           used;
    hfsb_str        *data;
    hfsb_err        *err;
} hfsbi_multipart_call;

static hfsbi_multipart_event hfsbi_multipart_bad(hfsbi_multipart_call *c,
                                                 hfsb_status           code,
                                                 unsigned long long    pos,
                                                 const char *message) {
    c->m->state = HFSBI_MULTIPART_REFUSED;
    hfsbi_fail(c->err, code, (size_t)pos, "%s", message);
    return HFSBI_MULTIPART_BAD;
}

/* Offset in the body of a place in the head. */
static unsigned long long hfsbi_multipart_pos(const hfsbi_multipart *m,
                                              const char            *at) {
    return m->at - m->head.len + (unsigned long long)(at - m->head.ptr);
}

/* Refuses the head at a place in it; returns false. */
static bool hfsbi_multipart_refuse(hfsbi_multipart_call *c, hfsb_status code,
                                   const char *at, const char *message) {
    hfsbi_multipart_bad(c, code, hfsbi_multipart_pos(c->m, at), message);
    return false;
}

/* ---- the head of a part ---- */

/* The bytes of a view of the head, to be decoded in place. */
static char *hfsbi_multipart_edit(hfsbi_multipart *m, hfsb_str s) {
    return m->head.ptr + (s.ptr - m->head.ptr);
}

/* Decodes the escapes of a quoted string in place. */
static hfsb_str hfsbi_multipart_unquote(hfsbi_multipart *m, hfsb_str s) {
    char  *to = hfsbi_multipart_edit(m, s);
    size_t i, n = 0;
    for (i = 0; i < s.len; i++) {
        if (hfsbi_http_param_escape(s, i)) i++;
        to[n++] = s.ptr[i];
    }
    return hfsb_str_make(to, n);
}

/* Decodes charset'language'text of RFC 5987 in place; the result is UTF-8 and
   never longer. False when it is malformed. */
static bool hfsbi_multipart_extended(hfsbi_multipart *m, hfsb_str s,
                                     hfsb_str *out) {
    size_t   quote = hfsb_str_find_byte(s, '\''), i, n = 0;
    hfsb_str charset = hfsb_str_slice(s, 0, quote);
    hfsb_str rest = hfsb_str_slice(s, charset.len + 1, s.len);
    bool     latin = hfsbi_http_is(charset, "ISO-8859-1");
    char    *to = hfsbi_multipart_edit(m, s);
    if (!latin && !hfsbi_http_is(charset, "UTF-8")) return false;
    quote = hfsb_str_find_byte(rest, '\'');
    if (quote == HFSB_NPOS) return false;
    rest = hfsb_str_slice(rest, quote + 1, rest.len);
    for (i = 0; i < rest.len; i++) {
        int c = hfsbi_http_byte(rest, &i, false);
        if (c <= 0) return false;
        if (latin) n += hfsb_utf8_encode((unsigned long)c, to + n);
        else to[n++] = (char)(unsigned char)c;
    }
    *out = hfsb_str_make(to, n);
    return true;
}

/* A name or file name, decoded: checks its length and its UTF-8. */
static bool hfsbi_multipart_name_ok(hfsbi_multipart_call *c, hfsb_str s,
                                    const char *at) {
    if (s.len > hfsbi_http_limit(c->m->max_name, 4096))
        return hfsbi_multipart_refuse(c, HFSB_LIMIT, at,
                                      "The name of a part or of its file is "
                                      "too long.");
    return hfsb_utf8_validate(s) == s.len ||
           hfsbi_multipart_refuse(c, HFSB_SYNTAX, at,
                                  "The name of a part or of its file is not "
                                  "valid UTF-8.");
}

/* Takes one parameter of a Content-Disposition. *extended is the value of
   filename*, which overrides filename. */
static bool hfsbi_multipart_param(hfsbi_multipart_call   *c,
                                  const hfsbi_http_param *param,
                                  hfsb_str               *extended) {
    hfsbi_multipart *m = c->m;
    hfsb_str         value = param->value, *to = NULL;
    const char      *at = param->name.ptr;
    if (hfsbi_http_is(param->name, "name")) to = &m->name;
    else if (hfsbi_http_is(param->name, "filename")) to = &m->filename;
    else if (hfsbi_http_is(param->name, "filename*")) to = extended;
    if (!to) return true;
    if (to->ptr)
        return hfsbi_multipart_refuse(c, HFSB_SYNTAX, at,
                                      "A Content-Disposition has a name or "
                                      "filename more than once.");
    if (to == extended) {
        if (param->quoted || !hfsbi_multipart_extended(m, value, to))
            return hfsbi_multipart_refuse(
                c, HFSB_SYNTAX, at,
                "A filename* is malformed. Expected UTF-8''text, with %XX for "
                "all but letters, digits and some signs.");
    } else {
        *to = param->quoted ? hfsbi_multipart_unquote(m, value) : value;
    }
    return hfsbi_multipart_name_ok(c, *to, value.ptr);
}

static bool hfsbi_multipart_disposition(hfsbi_multipart_call *c,
                                        hfsb_str              value) {
    hfsbi_multipart *m = c->m;
    hfsb_str         rest = value, extended = HFSB_INIT;
    size_t           n = hfsbi_http_param_token(value);
    const char      *wrong;
    hfsbi_http_param param;
    if (m->named)
        return hfsbi_multipart_refuse(c, HFSB_SYNTAX, value.ptr,
                                      "A part has more than one "
                                      "Content-Disposition.");
    m->named = true;
    if (!hfsbi_http_is(hfsb_str_slice(value, 0, n), "form-data"))
        return hfsbi_multipart_refuse(c, HFSB_SYNTAX, value.ptr,
                                      "The Content-Disposition of a part "
                                      "must be form-data.");
    rest = hfsb_str_slice(value, n, value.len);
    while (hfsbi_http_param_next(&rest, &param, &wrong))
        if (!hfsbi_multipart_param(c, &param, &extended)) return false;
    if (wrong)
        return hfsbi_multipart_refuse(c, HFSB_SYNTAX, wrong,
                                      "A Content-Disposition is malformed. "
                                      "Expected form-data; name=\"...\"");
    if (!m->name.ptr)
        return hfsbi_multipart_refuse(c, HFSB_SYNTAX, value.ptr,
                                      "A Content-Disposition has no name.");
    if (extended.ptr) m->filename = extended;
    return true;
}

/* Accepts only codings that leave the data unchanged. */
static bool hfsbi_multipart_coding(hfsbi_multipart_call *c, hfsb_str value) {
    return hfsbi_http_is(value, "7bit") || hfsbi_http_is(value, "8bit") ||
           hfsbi_http_is(value, "binary") ||
           hfsbi_multipart_refuse(c, HFSB_SYNTAX, value.ptr,
                                  "The Content-Transfer-Encoding of a part "
                                  "is not supported. Send its bytes as they "
                                  "are.");
}

/* Reads a line of the head that is complete and not empty. */
static bool hfsbi_multipart_field(hfsbi_multipart_call *c) {
    hfsbi_multipart  *m = c->m;
    hfsb_http_parser  parser;
    hfsbi_http_reader r;
    hfsb_http_field   field;
    const char       *line = m->head.ptr + m->line;
    hfsb_http_parser_init(&parser, NULL);
    memset(&r, 0, sizeof r);
    r.parser = &parser;
    r.in = hfsb_buf_str(&m->head);
    r.err = c->err;
    if (!hfsbi_http_field_line(&r, line, m->head.ptr + m->head.len, &field)) {
        m->state = HFSBI_MULTIPART_REFUSED;
        if (c->err) c->err->pos += (size_t)(m->at - m->head.len);
        return false;
    }
    if (hfsbi_http_is(field.name, "Content-Disposition"))
        return hfsbi_multipart_disposition(c, field.value);
    if (hfsbi_http_is(field.name, "Content-Transfer-Encoding"))
        return hfsbi_multipart_coding(c, field.value);
    if (!hfsbi_http_is(field.name, "Content-Type")) return true;
    if (m->type.ptr)
        return hfsbi_multipart_refuse(c, HFSB_SYNTAX, field.value.ptr,
                                      "A part has more than one "
                                      "Content-Type.");
    m->type = field.value;
    return true;
}

/* Handles the end of the head. */
static hfsbi_multipart_event
hfsbi_multipart_head_end(hfsbi_multipart_call *c) {
    hfsbi_multipart *m = c->m;
    if (!m->named)
        return hfsbi_multipart_bad(c, HFSB_SYNTAX, m->at - 2,
                                   "A part has no Content-Disposition.");
    m->state = HFSBI_MULTIPART_IN_DATA;
    m->matched = m->implied = HFSBI_MULTIPART_CRLF;
    m->in_part = true;
    return HFSBI_MULTIPART_PART;
}

/* Takes bytes of the head up to the end of the line. */
static hfsbi_multipart_event hfsbi_multipart_head(hfsbi_multipart_call *c) {
    hfsbi_multipart *m = c->m;
    const char      *p = c->in.ptr + c->used, *lf;
    size_t           n = c->in.len - c->used, end;
    size_t           room = hfsbi_http_limit(m->max_head, 16384) - m->head.len;
    if (!n) return HFSBI_MULTIPART_MORE;
    lf = (const char *)memchr(p, '\n', n);
    end = lf ? (size_t)(lf - p) + 1 : n;
    if (end > room)
        return hfsbi_multipart_bad(c, HFSB_LIMIT, m->at + room,
                                   "The head of a part is too large.");
    hfsb_buf_append(&m->head, hfsb_str_make(p, end)); /* there is room */
    c->used += end;
    m->at += end;
    if (!lf) return HFSBI_MULTIPART_MORE;
    if (m->head.len - m->line == 2 && m->head.ptr[m->line] == '\r')
        return hfsbi_multipart_head_end(c);
    if (!hfsbi_multipart_field(c)) return HFSBI_MULTIPART_BAD;
    m->line = m->head.len;
    return HFSBI_MULTIPART_MORE;
}

/* Begins the head of a part, after a delimiter. */
static hfsbi_multipart_event
hfsbi_multipart_head_begin(hfsbi_multipart_call *c) {
    hfsbi_multipart *m = c->m;
    if (++m->parts > hfsbi_http_limit(m->max_parts, 1000))
        return hfsbi_multipart_bad(c, HFSB_LIMIT, m->at,
                                   "The body has too many parts.");
    m->state = HFSBI_MULTIPART_HEAD;
    hfsb_buf_truncate(&m->head, 0);
    m->line = 0;
    m->named = false;
    m->name = m->filename = m->type = hfsb_str_make(NULL, 0);
    return HFSBI_MULTIPART_MORE;
}

/* ---- data and delimiters ---- */

/* Number of bytes at p, of n, that continue the delimiter after `from`. */
static size_t hfsbi_multipart_match(const hfsbi_multipart *m, size_t from,
                                    const char *p, size_t n) {
    size_t i = 0, most = m->delim_len - from;
    if (most > n) most = n;
    while (i < most && p[i] == m->delim[from + i]) i++;
    return i;
}

/* The n bytes before m->at are data, or part of the preamble. */
static hfsbi_multipart_event hfsbi_multipart_pass(hfsbi_multipart_call *c,
                                                  const char *p, size_t n) {
    hfsbi_multipart *m = c->m;
    size_t           room = hfsbi_http_limit(m->max_around, 4096) - m->count;
    if (!n) return HFSBI_MULTIPART_MORE;
    if (m->state == HFSBI_MULTIPART_IN_DATA) {
        *c->data = hfsb_str_make(p, n);
        return HFSBI_MULTIPART_DATA;
    }
    if (n > room)
        return hfsbi_multipart_bad(c, HFSB_LIMIT, m->at - n + room,
                                   "There are too many bytes before the "
                                   "first boundary.");
    m->count += n;
    return HFSBI_MULTIPART_MORE;
}

/* Handles a complete delimiter. */
static hfsbi_multipart_event hfsbi_multipart_found(hfsbi_multipart *m) {
    bool in_part = m->in_part;
    m->state = HFSBI_MULTIPART_AFTER;
    m->matched = m->implied = 0;
    m->in_part = false;
    m->count = 0;
    return in_part ? HFSBI_MULTIPART_PART_END : HFSBI_MULTIPART_MORE;
}

/* Continues a delimiter that began at the end of the last piece. If it was not
   one, these bytes are data. */
static hfsbi_multipart_event hfsbi_multipart_resume(hfsbi_multipart_call *c) {
    hfsbi_multipart *m = c->m;
    size_t n = hfsbi_multipart_match(m, m->matched, c->in.ptr + c->used,
                                     c->in.len - c->used);
    size_t from = m->implied, held;
    c->used += n;
    m->at += n;
    m->matched = (unsigned char)(m->matched + n);
    if (m->matched == m->delim_len) return hfsbi_multipart_found(m);
    if (c->used == c->in.len) return HFSBI_MULTIPART_MORE;
    held = m->matched - from;
    m->matched = m->implied = 0;
    return hfsbi_multipart_pass(c, m->delim + from, held);
}

/* Searches for a delimiter and passes over what comes before it. */
static hfsbi_multipart_event hfsbi_multipart_scan(hfsbi_multipart_call *c) {
    hfsbi_multipart      *m = c->m;
    const char           *start = c->in.ptr + c->used, *p;
    const char           *end = c->in.ptr + c->in.len;
    size_t                n = 0;
    hfsbi_multipart_event event;
    if (m->matched) return hfsbi_multipart_resume(c);
    for (p = start; p < end; p += n) {
        const char *cr = (const char *)memchr(p, '\r', (size_t)(end - p));
        n = 0;
        p = cr ? cr : end;
        if (!cr) break;
        n = hfsbi_multipart_match(m, 0, cr, (size_t)(end - cr));
        if (n == m->delim_len || cr + n == end) break;
    }
    if (n == m->delim_len && p > start) n = 0; /* the data first */
    c->used += (size_t)(p - start) + n;
    m->at += (size_t)(p - start);
    event = hfsbi_multipart_pass(c, start, (size_t)(p - start));
    m->at += n;
    m->matched = (unsigned char)n;
    return n == m->delim_len ? hfsbi_multipart_found(m) : event;
}

/* Refuses a byte after a delimiter. */
static hfsbi_multipart_event
hfsbi_multipart_bad_line(hfsbi_multipart_call *c) {
    return hfsbi_multipart_bad(c, HFSB_SYNTAX, c->m->at,
                               "A line that starts with the boundary must "
                               "end in CRLF after it, or in \"--\" and CRLF.");
}

/* Takes a line feed after a delimiter and a CR. */
static hfsbi_multipart_event hfsbi_multipart_line_end(hfsbi_multipart_call *c,
                                                      char ch) {
    hfsbi_multipart *m = c->m;
    if (ch != '\n') return hfsbi_multipart_bad_line(c);
    m->count = 0;
    m->at++;
    c->used++;
    if (m->state == HFSBI_MULTIPART_LF) return hfsbi_multipart_head_begin(c);
    m->state = HFSBI_MULTIPART_EPILOGUE;
    return HFSBI_MULTIPART_MORE;
}

/* Takes another byte ch after a delimiter. */
static hfsbi_multipart_event hfsbi_multipart_after(hfsbi_multipart_call *c,
                                                   char                  ch) {
    hfsbi_multipart *m = c->m;
    bool             closed = m->state == HFSBI_MULTIPART_CLOSED;
    if (m->state == HFSBI_MULTIPART_DASH) {
        if (ch != '-') return hfsbi_multipart_bad_line(c);
        m->state = HFSBI_MULTIPART_CLOSED;
    } else if (ch == '\r') {
        m->state = closed ? HFSBI_MULTIPART_CLOSED_LF : HFSBI_MULTIPART_LF;
    } else if (ch == '-' && m->state == HFSBI_MULTIPART_AFTER) {
        m->state = HFSBI_MULTIPART_DASH;
    } else if (hfsbi_is_blank(ch)) {
        if (++m->count > HFSBI_MULTIPART_MAX_PADDING)
            return hfsbi_multipart_bad(c, HFSB_LIMIT, m->at,
                                       "There are too many blanks after a "
                                       "boundary.");
        if (!closed) m->state = HFSBI_MULTIPART_PADDING;
    } else {
        return hfsbi_multipart_bad_line(c);
    }
    m->at++;
    c->used++;
    return HFSBI_MULTIPART_MORE;
}

/* Drops what follows the last delimiter. */
static hfsbi_multipart_event
hfsbi_multipart_epilogue(hfsbi_multipart_call *c) {
    hfsbi_multipart *m = c->m;
    size_t           n = c->in.len - c->used;
    size_t           room = hfsbi_http_limit(m->max_around, 4096) - m->count;
    if (n > room)
        return hfsbi_multipart_bad(c, HFSB_LIMIT, m->at + room,
                                   "There are too many bytes after the last "
                                   "boundary.");
    m->count += n;
    m->at += n;
    c->used += n;
    return HFSBI_MULTIPART_MORE;
}

/* ---- the body ---- */

/* Reads up to an event, or the end of a line; MORE when there is none. */
static hfsbi_multipart_event hfsbi_multipart_step(hfsbi_multipart_call *c) {
    switch (c->m->state) {
    case HFSBI_MULTIPART_PREAMBLE:
    case HFSBI_MULTIPART_IN_DATA: return hfsbi_multipart_scan(c);
    case HFSBI_MULTIPART_HEAD: return hfsbi_multipart_head(c);
    case HFSBI_MULTIPART_EPILOGUE: return hfsbi_multipart_epilogue(c);
    case HFSBI_MULTIPART_OVER: return HFSBI_MULTIPART_END;
    case HFSBI_MULTIPART_REFUSED:
        return hfsbi_multipart_bad(c, HFSB_SYNTAX, c->m->at,
                                   "The body was refused before.");
    case HFSBI_MULTIPART_LF:
    case HFSBI_MULTIPART_CLOSED_LF:
        return hfsbi_multipart_line_end(c, c->in.ptr[c->used]);
    default: return hfsbi_multipart_after(c, c->in.ptr[c->used]);
    }
}

/* Handles the end of the input. */
static hfsbi_multipart_event hfsbi_multipart_end(hfsbi_multipart_call *c) {
    hfsbi_multipart *m = c->m;
    switch (m->state) {
    case HFSBI_MULTIPART_CLOSED:
    case HFSBI_MULTIPART_EPILOGUE:
    case HFSBI_MULTIPART_OVER:
        m->state = HFSBI_MULTIPART_OVER;
        return HFSBI_MULTIPART_END;
    case HFSBI_MULTIPART_REFUSED: return hfsbi_multipart_step(c);
    case HFSBI_MULTIPART_CLOSED_LF: return hfsbi_multipart_bad_line(c);
    case HFSBI_MULTIPART_PREAMBLE:
        return hfsbi_multipart_bad(c, HFSB_SYNTAX, m->at,
                                   "The body does not contain the boundary "
                                   "of its Content-Type.");
    default:
        return hfsbi_multipart_bad(c, HFSB_SYNTAX, m->at,
                                   "The body ends before its last boundary, "
                                   "which is followed by \"--\".");
    }
}

HFSBI_FN hfsbi_multipart_event hfsbi_multipart_next(hfsbi_multipart *m,
                                                    hfsb_str in, bool last,
                                                    hfsb_str *data,
                                                    size_t   *used,
                                                    hfsb_err *err) {
    hfsbi_multipart_call  c;
    hfsbi_multipart_event event = HFSBI_MULTIPART_MORE;
    c.m = m;
    c.in = in.ptr ? in : HFSB_LIT("");
    c.used = 0;
    c.data = data;
    c.err = err;
    *data = hfsb_str_make(NULL, 0);
    while (event == HFSBI_MULTIPART_MORE && c.used < in.len)
        event = hfsbi_multipart_step(&c);
    if (event == HFSBI_MULTIPART_MORE && last) event = hfsbi_multipart_end(&c);
    *used = c.used;
    return event;
}
