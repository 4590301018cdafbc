/* head.c - the head of a message: its lines, then their meaning.

   A head is checked in this order, however its bytes arrived: each line by
   itself, from first to last; then how many fields there are; then what the
   fields mean together. So a line can be refused as soon as it is complete,
   with the same answer as for the whole head.

   Requests are read strictly, because two readers that disagree about where a
   request ends can be made to smuggle one. Replies are read with the
   exceptions listed in http.h. Nothing is allocated: all views point into the
   caller's bytes, which end in a line feed, where every scan stops. */
#include "http_private.h"

/* ---- names and lists ---- */

HFSBI_FN bool hfsbi_http_is(hfsb_str s, const char *name) {
    return hfsbi_str_equal_nocase(s, hfsb_cstr(name));
}

static hfsb_str hfsbi_http_trim(hfsb_str s) {
    while (s.len && hfsbi_is_blank(*s.ptr)) s.ptr++, s.len--;
    while (s.len && hfsbi_is_blank(s.ptr[s.len - 1])) s.len--;
    return s;
}

HFSBI_FN bool hfsbi_http_list_next(hfsb_str *rest, hfsb_str *item) {
    while (rest->len) {
        size_t i = 0;
        bool   quoted = false;
        for (; i < rest->len && (quoted || rest->ptr[i] != ','); i++) {
            if (rest->ptr[i] == '"') quoted = !quoted;
            else if (quoted && rest->ptr[i] == '\\' && i + 1 < rest->len) i++;
        }
        *item = hfsbi_http_trim(hfsb_str_make(rest->ptr, i));
        *rest = hfsb_str_slice(*rest, i + 1, rest->len);
        if (item->len) return true;
    }
    return false;
}

HFSBI_FN bool hfsbi_http_refuse(const hfsbi_http_reader *r, int status,
                                const char *at, const char *message) {
    r->parser->status = (short)status;
    hfsbi_fail(r->err,
               status == 414 || status == 431 ? HFSB_LIMIT : HFSB_SYNTAX,
               (size_t)(at - r->in.ptr), "%s", message);
    return false;
}

HFSBI_FN bool hfsbi_http_refuse_byte(const hfsbi_http_reader *r,
                                     const char *at, const char *where) {
    unsigned char c = (unsigned char)*at;
    hfsbi_http_refuse(r, 400, at, "");
    if (c == '\n')
        hfsbi_err_add(r->err,
                      "A line feed without a carriage return before "
                      "it in %s.",
                      where);
    else if (c == '\r' && at[1] == '\n')
        hfsbi_err_add(r->err, "The line ends in the middle of %s.", where);
    else if (c == '\r')
        hfsbi_err_add(r->err,
                      "A carriage return without a line feed after it in %s.",
                      where);
    else if (c > ' ' && c < 0x7f)
        hfsbi_err_add(r->err, "\"%c\" is not allowed in %s.", c, where);
    else
        hfsbi_err_add(r->err, "The byte 0x%02x is not allowed in %s.",
                      (unsigned)c, where);
    return false;
}

HFSBI_FN size_t hfsbi_http_limit(size_t value, size_t fallback) {
    return value ? value : fallback;
}

static bool hfsbi_http_is_reply(const hfsbi_http_reader *r) {
    return (r->parser->kind & HFSBI_HTTP_REPLY) != 0;
}

/* The end of the line break at p, or NULL when there is none. Lines of a reply
   may end in a line feed alone, as RFC 9112 allows a client to accept. */
static const char *hfsbi_http_line_end(const hfsbi_http_reader *r,
                                       const char *p, const char *end) {
    if (end - p >= 2 && p[0] == '\r' && p[1] == '\n') return p + 2;
    if (p < end && *p == '\n' && hfsbi_http_is_reply(r)) return p + 1;
    return NULL;
}

/* ---- the target of a request ---- */

/* Splits path ["?" query] ["#" ...]; a fragment is ignored. */
static void hfsbi_http_path_split(hfsb_str s, hfsb_http_head *head) {
    size_t fragment = hfsb_str_find_byte(s, '#'), mark;
    s = hfsb_str_slice(s, 0, fragment);
    mark = hfsb_str_find_byte(s, '?');
    head->path = hfsb_str_slice(s, 0, mark);
    head->query =
        hfsb_str_slice(s, mark == HFSB_NPOS ? s.len : mark + 1, s.len);
    if (!head->path.len) head->path = HFSB_LIT("/");
}

/* http://host... or https://host...; a user name in it is ignored. */
static bool hfsbi_http_absolute_read(hfsbi_http_reader *r) {
    hfsb_str s = r->head->target, host;
    size_t   i, colon = hfsb_str_find_byte(s, ':');
    hfsb_str scheme = hfsb_str_slice(s, 0, colon);
    if (colon == HFSB_NPOS ||
        (!hfsbi_str_equal_nocase(scheme, HFSB_LIT("http")) &&
         !hfsbi_str_equal_nocase(scheme, HFSB_LIT("https"))) ||
        s.len - colon < 3 || s.ptr[colon + 1] != '/' ||
        s.ptr[colon + 2] != '/')
        return hfsbi_http_refuse(r, 400, s.ptr,
                                 "The target of the request must be a path "
                                 "that begins with \"/\", or a whole URL "
                                 "that begins with http:// or https://.");
    s = hfsb_str_slice(s, colon + 3, s.len);
    host = hfsb_str_slice(s, 0, hfsbi_url_until(s, "/?#"));
    hfsbi_http_path_split(hfsb_str_slice(s, host.len, s.len), r->head);
    for (i = host.len; i > 0 && host.ptr[i - 1] != '@'; i--) continue;
    r->head->host = hfsb_str_slice(host, i, host.len);
    if (!r->head->host.len || *r->head->host.ptr == ':' ||
        !hfsbi_http_host_ok(r->head->host, false))
        return hfsbi_http_refuse(r, 400, host.ptr,
                                 "The URL in the request line has no valid "
                                 "host.");
    return true;
}

/* Splits head->target into host, path and query. */
static bool hfsbi_http_target_read(hfsbi_http_reader *r) {
    hfsb_http_head *head = r->head;
    hfsb_str        s = head->target;
    if (hfsb_str_equal(head->method, HFSB_LIT("CONNECT"))) {
        head->host = s;
        return hfsbi_http_host_ok(s, true) ||
               hfsbi_http_refuse(r, 400, s.ptr,
                                 "The target of CONNECT must be host:port.");
    }
    if (*s.ptr == '/') {
        hfsbi_http_path_split(s, head);
        return true;
    }
    if (s.len == 1 && *s.ptr == '*') {
        head->path = s;
        return hfsb_str_equal(head->method, HFSB_LIT("OPTIONS")) ||
               hfsbi_http_refuse(r, 400, s.ptr,
                                 "Only OPTIONS may have \"*\" as its target.");
    }
    return hfsbi_http_absolute_read(r);
}

/* ---- the first line ---- */

/* Reads "HTTP/" DIGIT "." DIGIT; returns its end, or NULL. */
static const char *hfsbi_http_version(const char *p, const char *end,
                                      int *major, int *minor) {
    if (end - p < 8 || memcmp(p, "HTTP/", 5) != 0 || !hfsbi_is_digit(p[5]) ||
        p[6] != '.' || !hfsbi_is_digit(p[7]))
        return NULL;
    *major = p[5] - '0';
    *minor = p[7] - '0';
    return p + 8;
}

/* The first byte from p on outside the class; a line feed is in none. */
static const char *hfsbi_http_run(const char *p, unsigned bit) {
    while (hfsbi_http_class(*p) & bit) p++;
    return p;
}

/* After the target: SP version CRLF. */
static const char *hfsbi_http_request_version(hfsbi_http_reader *r,
                                              const char *p, const char *end) {
    const char *next;
    int         major, minor;
    if (*p == '\r' || *p == '\n') {
        hfsbi_http_refuse(r, 400, p,
                          "The request line does not end in "
                          "HTTP/1.1 or HTTP/1.0.");
        return NULL;
    }
    if (*p != ' ') {
        hfsbi_http_refuse_byte(r, p, "the target of the request");
        return NULL;
    }
    next = hfsbi_http_version(p + 1, end, &major, &minor);
    if (!next || !hfsbi_http_line_end(r, next, end)) {
        hfsbi_http_refuse(r, 400, next ? next : p + 1,
                          "A request line is a method, a target and HTTP/1.1 "
                          "with one blank between them and CRLF at its end.");
        return NULL;
    }
    if (major != 1) {
        hfsbi_http_refuse(r, 505, p + 1,
                          "Only HTTP/1.1 and HTTP/1.0 are "
                          "supported.");
        return NULL;
    }
    r->head->minor = minor ? 1 : 0; /* a later 1.x is read as 1.1 */
    return next + 2;
}

/* Reads method SP target SP version CRLF; returns its end, or NULL. */
static const char *hfsbi_http_request_line(hfsbi_http_reader *r, const char *p,
                                           const char *end) {
    const hfsb_http_limits *limits = r->parser->limits;
    const char             *start = p, *next;
    p = hfsbi_http_run(p, HFSBI_HTTP_TOKEN);
    if (*p != ' ') {
        hfsbi_http_refuse_byte(r, p, "the method of a request");
        return NULL;
    }
    r->head->method = hfsb_str_make(start, (size_t)(p - start));
    start = ++p;
    p = hfsbi_http_run(p, HFSBI_HTTP_TARGET);
    if (p == start) {
        hfsbi_http_refuse_byte(r, p, "the target of the request");
        return NULL;
    }
    r->head->target = hfsb_str_make(start, (size_t)(p - start));
    if (r->head->target.len >
        hfsbi_http_limit(limits ? limits->max_target : 0, 8192)) {
        hfsbi_http_refuse(r, 414, start,
                          "The target of the request is too "
                          "long.");
        return NULL;
    }
    next = hfsbi_http_request_version(r, p, end);
    return next && hfsbi_http_target_read(r) ? next : NULL;
}

/* The code must be valid; extra blanks do no harm, and HTTP/0.9, which some
   old servers send, is read as 1.0. */
static const char *hfsbi_http_status_line(hfsbi_http_reader *r, const char *p,
                                          const char *end) {
    const char *start = p, *next = NULL;
    int         major = 0, minor = 0, i, status = 0;
    p = hfsbi_http_version(p, end, &major, &minor);
    if (p && p < end && *p == ' ' &&
        ((major == 1 && minor < 2) || (!major && minor == 9))) {
        while (p < end && *p == ' ') p++;
        for (i = 0; i < 3 && p < end && hfsbi_is_digit(*p); i++, p++)
            status = status * 10 + (*p - '0');
        next = p;
        if (i == 3 && p < end && *p == ' ')
            while (next < end && *next == ' ') next++;
        p = hfsbi_http_run(next, HFSBI_HTTP_VALUE);
        r->head->reason = hfsb_str_make(next, (size_t)(p - next));
        if (i != 3 || status < 100 || (p > next && next[-1] != ' '))
            next = NULL;
        else next = hfsbi_http_line_end(r, p, end);
    }
    if (!next) {
        hfsbi_http_refuse(r, 400, start,
                          "The reply does not begin with a line such as "
                          "HTTP/1.1 200 OK.");
        return NULL;
    }
    r->head->status = status;
    r->head->minor = major == 1 ? minor : 0;
    return next;
}

HFSBI_FN bool hfsbi_http_first_byte(const hfsbi_http_reader *r,
                                    const char              *p) {
    if (hfsbi_http_is_reply(r))
        return *p == 'H' ||
               hfsbi_http_refuse(r, 400, p,
                                 "This is not the start of an HTTP/1.1 "
                                 "reply.");
    return (hfsbi_http_class(*p) & HFSBI_HTTP_TOKEN) ||
           hfsbi_http_refuse(r, 400, p,
                             "This is not the start of an HTTP/1.1 "
                             "request.");
}

HFSBI_FN const char *hfsbi_http_first_line(hfsbi_http_reader *r, const char *p,
                                           const char *end) {
    return hfsbi_http_is_reply(r) ? hfsbi_http_status_line(r, p, end)
                                  : hfsbi_http_request_line(r, p, end);
}

/* ---- fields ---- */

/* The first byte from p on that cannot be in the value of a field. */
static const char *hfsbi_http_value_end(const char *p, const char *end) {
#ifdef HFSBI_SSE2
    const __m128i low = _mm_set1_epi8(0x1f), tab = _mm_set1_epi8('\t'),
                  del = _mm_set1_epi8(0x7f);
    for (; end - p >= 16; p += 16) {
        const void *at = p;
        __m128i     v = _mm_loadu_si128((const __m128i *)at);
        __m128i     control = _mm_cmpeq_epi8(_mm_min_epu8(v, low), v);
        __m128i     bad =
            _mm_or_si128(_mm_andnot_si128(_mm_cmpeq_epi8(v, tab), control),
                         _mm_cmpeq_epi8(v, del));
        int mask = _mm_movemask_epi8(bad);
        if (mask) return p + hfsbi_ctz64((unsigned)mask);
    }
#else
    (void)end;
#endif
    return hfsbi_http_run(p, HFSBI_HTTP_VALUE);
}

/* Refuses the line that starts at `start`, whose name is invalid at p. */
static const char *hfsbi_http_bad_name(const hfsbi_http_reader *r,
                                       const char *start, const char *p) {
    if (p == start && hfsbi_is_blank(*p))
        hfsbi_http_refuse(r, 400, p,
                          "A line of the head begins with a "
                          "blank; folded lines are not accepted.");
    else if (hfsbi_is_blank(*p))
        hfsbi_http_refuse(r, 400, p,
                          "A blank in the name of a field, or "
                          "between it and its colon.");
    else if (p[0] == '\r' && p[1] == '\n')
        hfsbi_http_refuse(r, 400, start, "A line of the head has no colon.");
    else if (p == start && *p == ':')
        hfsbi_http_refuse(r, 400, p, "A field without a name.");
    else hfsbi_http_refuse_byte(r, p, "the name of a field");
    return NULL;
}

/* Moves *p to the end of the value there. Returns the start of the next line,
   or NULL when a byte is refused. */
static const char *hfsbi_http_value_line(const hfsbi_http_reader *r,
                                         const char **p, const char *end) {
    const char *next;
    *p = hfsbi_http_value_end(*p, end);
    next = hfsbi_http_line_end(r, *p, end);
    if (!next) hfsbi_http_refuse_byte(r, *p, "the value of a field");
    return next;
}

HFSBI_FN const char *hfsbi_http_field_line(const hfsbi_http_reader *r,
                                           const char *p, const char *end,
                                           hfsb_http_field *field) {
    const char *start = p, *next;
    p = hfsbi_http_run(p, HFSBI_HTTP_TOKEN);
    if (p == start || *p != ':') return hfsbi_http_bad_name(r, start, p);
    field->name = hfsb_str_make(start, (size_t)(p - start));
    for (p++; hfsbi_is_blank(*p);) p++;
    start = p;
    next = hfsbi_http_value_line(r, &p, end);
    if (!next) return NULL;
    while (p > start && hfsbi_is_blank(p[-1])) p--;
    field->value = hfsb_str_make(start, (size_t)(p - start));
    return next;
}

/* A reply may fold a value over several lines, which clients must accept: the
   view includes the fold. */
static const char *hfsbi_http_folds(const hfsbi_http_reader *r, const char *p,
                                    const char *end, hfsb_http_field *field) {
    while (p < end && hfsbi_is_blank(*p)) {
        const char *start = p, *next;
        while (p < end && hfsbi_is_blank(*p)) p++;
        if (!field->value.len) field->value.ptr = start = p;
        else start = field->value.ptr;
        next = hfsbi_http_value_line(r, &p, end);
        if (!next) return NULL;
        while (p > start && strchr(" \t\r\n", p[-1])) p--;
        field->value.len = (size_t)(p - start);
        p = next;
    }
    return p;
}

/* ---- the meaning of the fields ---- */

/* Collected from the fields; codings are those of Transfer-Encoding. */
typedef struct hfsbi_http_facts {
    const hfsb_http_field *host, *length, *coding;
    const hfsb_http_field *once[4]; /* the first of each field that may occur
                                       only once */
    size_t                 hosts, codings, chunked;
    hfsb_str               last_coding;
    bool                   close, keep_alive;
    bool                   tokens; /* all codings are tokens */
} hfsbi_http_facts;

/* Reads a Content-Length: digits only, and below 2^63. */
static bool hfsbi_http_length_read(const hfsbi_http_reader *r, hfsb_str digits,
                                   unsigned long long *length) {
    size_t i = 0;
    while (i < digits.len && hfsbi_is_digit(digits.ptr[i])) i++;
    if (i < digits.len)
        return hfsbi_http_refuse_byte(r, digits.ptr + i, "Content-Length");
    return hfsbi_read_decimal(digits, ~0ull >> 1, length) ||
           hfsbi_http_refuse(r, 400, digits.ptr,
                             i ? "Content-Length is too large."
                               : "Content-Length is empty.");
}

/* At most once in a request; a reply may repeat the same number. */
static bool hfsbi_http_see_length(hfsbi_http_reader *r, hfsbi_http_facts *f,
                                  const hfsb_http_field *field) {
    hfsb_str           rest = field->value, item;
    unsigned long long n;
    if (!hfsbi_http_is_reply(r)) {
        if (f->length)
            return hfsbi_http_refuse(r, 400, field->name.ptr,
                                     "Content-Length occurs more than once.");
        f->length = field;
        return hfsbi_http_length_read(r, field->value, &r->head->length);
    }
    if (!hfsbi_http_list_next(&rest, &item)) item = rest;
    do {
        if (!hfsbi_http_length_read(r, item, &n)) return false;
        if (f->length && n != r->head->length)
            return hfsbi_http_refuse(r, 400, item.ptr,
                                     "Content-Length occurs with different "
                                     "values.");
        f->length = field;
        r->head->length = n;
    } while (hfsbi_http_list_next(&rest, &item));
    return true;
}

/* Collects the items of Transfer-Encoding; they are checked later,
   together. */
static void hfsbi_http_see_coding(hfsbi_http_facts      *f,
                                  const hfsb_http_field *field) {
    hfsb_str rest = field->value, item;
    f->coding = field;
    /* an empty item is not a token, whatever the other items are */
    if (!rest.len || *rest.ptr == ',' || rest.ptr[rest.len - 1] == ',')
        f->tokens = false;
    while (hfsbi_http_list_next(&rest, &item)) {
        f->codings++;
        f->last_coding = item;
        if (hfsbi_str_equal_nocase(item, HFSB_LIT("chunked"))) f->chunked++;
        if (!hfsbi_http_all(item, HFSBI_HTTP_TOKEN)) f->tokens = false;
    }
}

/* A repeated field must have the same value, so that it does not matter which
   one a reader uses. */
static bool hfsbi_http_see_once(const hfsbi_http_reader *r,
                                hfsbi_http_facts *f, size_t which,
                                const hfsb_http_field *field) {
    if (!f->once[which]) f->once[which] = field;
    return hfsb_str_equal(f->once[which]->value, field->value) ||
           hfsbi_http_refuse(r, 400, field->name.ptr,
                             "A field that may occur only once occurs with "
                             "different values.");
}

static void hfsbi_http_see_connection(hfsbi_http_facts      *f,
                                      const hfsb_http_field *field) {
    hfsb_str rest = field->value, item;
    while (hfsbi_http_list_next(&rest, &item)) {
        if (hfsbi_str_equal_nocase(item, HFSB_LIT("close"))) f->close = true;
        else if (hfsbi_str_equal_nocase(item, HFSB_LIT("keep-alive")))
            f->keep_alive = true;
    }
}

/* True when name, which has as many bytes as lower, equals it except for case.
   name is a token, and in a token only a letter or "-" becomes a letter or "-"
   when bit 0x20 is set. */
static bool hfsbi_http_named(hfsb_str name, const char *lower) {
    size_t i;
    for (i = 0; i < name.len; i++)
        if ((name.ptr[i] | 0x20) != lower[i]) return false;
    return true;
}

/* Dispatches on the length of the name, so that most fields cost one jump. */
static bool hfsbi_http_see_field(hfsbi_http_reader *r, hfsbi_http_facts *f,
                                 const hfsb_http_field *field) {
    static const char *const once[] = {"content-type", "authorization",
                                       "if-modified-since",
                                       "if-unmodified-since"};
    hfsb_str                 name = field->name;
    size_t                   which = 0;
    switch (name.len) {
    case 4:
        if (hfsbi_http_named(name, "host") && !f->hosts++) f->host = field;
        return true;
    case 6:
        if (hfsbi_http_named(name, "expect") &&
            hfsbi_str_equal_nocase(field->value, HFSB_LIT("100-continue")))
            r->head->expect_continue = true;
        return true;
    case 10:
        if (hfsbi_http_named(name, "connection"))
            hfsbi_http_see_connection(f, field);
        return true;
    case 12: break;
    case 13: which = 1; break;
    case 14:
        return !hfsbi_http_named(name, "content-length") ||
               hfsbi_http_see_length(r, f, field);
    case 17:
        if (hfsbi_http_named(name, "transfer-encoding"))
            hfsbi_http_see_coding(f, field);
        which = 2;
        break;
    case 19: which = 3; break;
    default: return true;
    }
    return hfsbi_http_is_reply(r) || !hfsbi_http_named(name, once[which]) ||
           hfsbi_http_see_once(r, f, which, field);
}

/* ---- the meaning of a request ---- */

/* HTTP/1.1 requires exactly one Host, valid even when an absolute target
   overrides it. */
static bool hfsbi_http_host_read(hfsbi_http_reader      *r,
                                 const hfsbi_http_facts *f) {
    if (f->hosts > 1)
        return hfsbi_http_refuse(r, 400, f->host->name.ptr,
                                 "The request has more than one Host.");
    if (!f->host)
        return !r->head->minor ||
               hfsbi_http_refuse(r, 400, r->head->method.ptr,
                                 "The request has no Host, which HTTP/1.1 "
                                 "requires.");
    if (!hfsbi_http_host_ok(f->host->value, false))
        return hfsbi_http_refuse(r, 400, f->host->value.ptr,
                                 "The request's Host is not a host name or "
                                 "address with an optional port.");
    if (!r->head->host.ptr) r->head->host = f->host->value;
    return true;
}

/* Only "chunked", alone and without Content-Length, frames a request: any other
   combination is read differently by different servers. */
static bool hfsbi_http_request_coding(const hfsbi_http_reader *r,
                                      const hfsbi_http_facts  *f) {
    const char *at = f->coding->name.ptr;
    if (f->length)
        return hfsbi_http_refuse(r, 400, at,
                                 "The request has both Content-Length and "
                                 "Transfer-Encoding.");
    if (!r->head->minor)
        return hfsbi_http_refuse(r, 400, at,
                                 "HTTP/1.0 has no "
                                 "Transfer-Encoding.");
    if (f->codings == 1 && f->chunked == 1 && f->tokens) return true;
    if (!f->tokens || !f->codings || f->chunked > 1 ||
        (f->chunked &&
         !hfsbi_str_equal_nocase(f->last_coding, HFSB_LIT("chunked"))))
        return hfsbi_http_refuse(r, 400, at,
                                 "Transfer-Encoding must be \"chunked\", "
                                 "once and alone.");
    return hfsbi_http_refuse(r, 501, at,
                             "Unsupported Transfer-Encoding; only "
                             "\"chunked\" is supported.");
}

HFSBI_FN bool hfsbi_http_method_known(hfsb_str method) {
    static const char *const known[] = {"GET",    "HEAD",    "POST",  "PUT",
                                        "DELETE", "OPTIONS", "PATCH", "TRACE"};
    size_t                   i;
    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        if (hfsb_str_equal(method, hfsb_cstr(known[i]))) return true;
    return false;
}

static bool hfsbi_http_request_read(hfsbi_http_reader      *r,
                                    const hfsbi_http_facts *f) {
    hfsb_http_head *head = r->head;
    if (!hfsbi_http_host_read(r, f)) return false;
    if (f->coding) {
        if (!hfsbi_http_request_coding(r, f)) return false;
        head->body = HFSB_HTTP_CHUNKED;
    } else if (f->length) {
        head->body = HFSB_HTTP_LENGTH;
    }
    if (!hfsbi_http_method_known(head->method) &&
        (!r->parser->limits || !r->parser->limits->any_method ||
         hfsb_str_equal(head->method, HFSB_LIT("CONNECT"))))
        return hfsbi_http_refuse(r, 501, head->method.ptr,
                                 "Unknown request method.");
    if (!head->minor || head->body == HFSB_HTTP_NO_BODY)
        head->expect_continue = false;
    return true;
}

/* ---- the meaning of a reply ---- */

/* A body whose last coding is not "chunked" lasts until the connection closes.
   Other codings are left to the caller, but an unknown one after "chunked"
   makes the body unreadable. */
static bool hfsbi_http_reply_coding(const hfsbi_http_reader *r,
                                    const hfsbi_http_facts  *f) {
    static const char *const known[] = {"gzip", "deflate", "compress",
                                        "identity"};
    hfsb_http_head          *head = r->head;
    size_t                   i;
    if (f->codings == 1 && f->chunked == 1 && f->tokens) {
        head->body = HFSB_HTTP_CHUNKED;
        return true;
    }
    head->body = HFSB_HTTP_UNTIL_CLOSE;
    if (!f->chunked) return true;
    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        if (hfsbi_http_is(f->last_coding, known[i])) return true;
    return hfsbi_http_refuse(r, 501, f->coding->name.ptr,
                             "Unsupported Transfer-Encoding in the reply; "
                             "only \"chunked\" is supported.");
}

/* Decides the body of a reply by RFC 9112 section 6.3. */
static bool hfsbi_http_reply_read(hfsbi_http_reader      *r,
                                  const hfsbi_http_facts *f) {
    hfsb_http_head *head = r->head;
    unsigned        kind = r->parser->kind;
    head->expect_continue = false;
    if (head->status < 200 || head->status == 204 || head->status == 304 ||
        (kind & HFSBI_HTTP_OF_HEAD) ||
        ((kind & HFSBI_HTTP_OF_CONNECT) && head->status < 300)) {
        head->body = HFSB_HTTP_NO_BODY;
    } else if (f->coding) {
        if (!hfsbi_http_reply_coding(r, f)) return false;
        /* a server that sends both, or chunks in HTTP/1.0, is not trusted
           with another reply on this connection */
        if (f->length || !head->minor) head->keep_alive = false;
    } else {
        head->body = f->length ? HFSB_HTTP_LENGTH : HFSB_HTTP_UNTIL_CLOSE;
    }
    if (head->body == HFSB_HTTP_UNTIL_CLOSE) head->keep_alive = false;
    return true;
}

/* ---- the whole head ---- */

/* Reads all lines. Fields beyond the limit are still checked, so that a bad
   line is reported first, whatever the limit. */
static bool hfsbi_http_lines_read(hfsbi_http_reader *r, const char *p,
                                  const char *end) {
    const hfsb_http_limits *limits = r->parser->limits;
    size_t most = hfsbi_http_limit(limits ? limits->max_fields : 0, 100);
    size_t count = 0;
    if (most > r->room) most = r->room;
    p = hfsbi_http_first_line(r, p, end);
    while (p && !hfsbi_http_line_end(r, p, end)) {
        hfsb_http_field spare, *field = &spare;
        if (count < most) field = &r->head->fields[count];
        count++;
        p = hfsbi_http_field_line(r, p, end, field);
        if (p && hfsbi_http_is_reply(r))
            p = hfsbi_http_folds(r, p, end, field);
    }
    if (!p) return false;
    if (count > most)
        return hfsbi_http_refuse(r, 431, p, "The head has too many fields.");
    r->head->field_count = count;
    return true;
}

HFSBI_FN bool hfsbi_http_head_read(hfsbi_http_reader *r, const char *p,
                                   const char *end) {
    hfsbi_http_facts facts = HFSB_INIT;
    hfsb_http_head  *head = r->head;
    size_t           i;
    facts.tokens = true;
    if (!hfsbi_http_lines_read(r, p, end)) return false;
    for (i = 0; i < head->field_count; i++)
        if (!hfsbi_http_see_field(r, &facts, &head->fields[i])) return false;
    head->keep_alive = !facts.close && (head->minor || facts.keep_alive);
    if (!(hfsbi_http_is_reply(r) ? hfsbi_http_reply_read(r, &facts)
                                 : hfsbi_http_request_read(r, &facts)))
        return false;
    if (head->body != HFSB_HTTP_LENGTH) head->length = 0;
    return true;
}

/* ---- finding fields ---- */

bool hfsb_http_same(hfsb_str a, hfsb_str b) {
    return hfsbi_str_equal_nocase(a, b);
}

hfsb_str hfsb_http_field_find(const hfsb_http_head *head, const char *name) {
    hfsb_str want = hfsb_cstr(name);
    size_t   i;
    for (i = 0; i < head->field_count; i++)
        if (hfsb_http_same(head->fields[i].name, want))
            return head->fields[i].value;
    return hfsb_str_make(NULL, 0);
}

size_t hfsb_http_field_count(const hfsb_http_head *head, const char *name) {
    hfsb_str want = hfsb_cstr(name);
    size_t   i, n = 0;
    for (i = 0; i < head->field_count; i++)
        n += hfsb_http_same(head->fields[i].name, want);
    return n;
}

bool hfsb_http_field_lists(const hfsb_http_head *head, const char *name,
                           const char *item) {
    hfsb_str want_name = hfsb_cstr(name), want = hfsb_cstr(item), rest, found;
    size_t   i;
    for (i = 0; i < head->field_count; i++) {
        if (!hfsb_http_same(head->fields[i].name, want_name)) continue;
        rest = head->fields[i].value;
        while (hfsbi_http_list_next(&rest, &found)) {
            size_t end = hfsb_str_find_byte(found, ';');
            found = hfsbi_http_trim(hfsb_str_slice(found, 0, end));
            if (found.len && hfsb_http_same(found, want)) return true;
        }
    }
    return false;
}
