/* head.c - the head of a message: lines, then what they mean together. */
#include "http_private.h"
#include "../core/core_private.h"

/* ==== http field ==== */

/* what bytes are; looking into a head. */

/* ---- bytes ---- */

/* 0: control bytes; 2: blanks; 6, 22 ...: the sums of HFSBI_HTTP_*. */
static const unsigned char hfsbi_http_classes[256] = {
    0,  0,  0,  0,  0,  0,  0,  0,  0,  2,  0,  0,  0,  0,  0,  0,  0,  0,  0,
    0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  2,  15, 6,  7,  15, 7,
    15, 15, 14, 14, 15, 15, 14, 31, 31, 6,  31, 31, 31, 31, 31, 31, 31, 31, 31,
    31, 6,  14, 6,  14, 6,  6,  6,  31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31,
    31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 6,  6,  6,  7,
    31, 7,  31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31,
    31, 31, 31, 31, 31, 31, 31, 31, 31, 6,  7,  6,  31, 0,  6,  6,  6,  6,  6,
    6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,
    6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,
    6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,
    6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,
    6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,
    6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,
    6,  6,  6,  6,  6,  6,  6,  6,  6};

HFSBI_FN unsigned hfsbi_http_class(char c) {
    return hfsbi_http_classes[(unsigned char)c];
}

HFSBI_FN bool hfsbi_http_all(hfsb_str s, unsigned bit) {
    size_t i;
    for (i = 0; i < s.len; i++)
        if (!(hfsbi_http_class(s.ptr[i]) & bit)) return false;
    return s.len > 0;
}

HFSBI_FN int hfsbi_http_hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = hfsbi_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

HFSBI_FN bool hfsbi_http_is(hfsb_str s, const char *lower) {
    size_t i;
    for (i = 0; i < s.len; i++)
        if (!lower[i] || hfsbi_lower(s.ptr[i]) != lower[i]) return false;
    return !lower[i];
}

/* ---- lists ---- */

static hfsb_str hfsbi_http_trim(hfsb_str s) {
    while (s.len && (*s.ptr == ' ' || *s.ptr == '\t')) s.ptr++, s.len--;
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
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

/* ---- looking into a head ---- */

bool hfsb_http_same(hfsb_str a, hfsb_str b) {
    size_t i;
    if (a.len != b.len) return false;
    for (i = 0; i < a.len; i++)
        if (a.ptr[i] != b.ptr[i] &&
            hfsbi_lower(a.ptr[i]) != hfsbi_lower(b.ptr[i]))
            return false;
    return true;
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

/* ==== http target ==== */

/* targets: their parts, %XX, queries. */

/* ---- hosts ---- */

/* Four decimal numbers up to 255, the end of some IPv6 addresses. */
static bool hfsbi_http_ip4_ok(hfsb_str s) {
    size_t i = 0, parts = 0;
    while (i < s.len) {
        unsigned value = 0, digits = 0;
        for (; i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9'; i++) {
            value = value * 10 + (unsigned)(s.ptr[i] - '0');
            if (++digits > 3) return false;
        }
        if (!digits || value > 255) return false;
        parts++;
        if (i == s.len) break;
        if (s.ptr[i++] != '.' || i == s.len) return false;
    }
    return parts == 4;
}

/* Eight groups of hexadecimal digits, "::" once for those left out. */
static bool hfsbi_http_ip6_ok(hfsb_str s) {
    size_t i = 0, groups = 0, digits;
    bool   gap = false;
    if (s.len && *s.ptr == ':') {
        if (s.len < 2 || s.ptr[1] != ':') return false;
        gap = true;
        i = 2;
    }
    while (i < s.len) {
        size_t start = i;
        for (digits = 0; i < s.len && hfsbi_http_hex(s.ptr[i]) >= 0; i++)
            digits++;
        if (i < s.len && s.ptr[i] == '.') {
            groups += 2;
            return hfsbi_http_ip4_ok(hfsb_str_slice(s, start, s.len)) &&
                   (gap ? groups < 8 : groups == 8);
        }
        if (!digits || digits > 4 || ++groups > 8) return false;
        if (i == s.len) break;
        if (s.ptr[i++] != ':' || i == s.len) return false;
        if (s.ptr[i] == ':') {
            if (gap) return false;
            gap = true;
            i++;
        }
    }
    return gap ? groups < 8 : groups == 8;
}

static bool hfsbi_http_name_ok(hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++) {
        if (hfsbi_http_class(s.ptr[i]) & HFSBI_HTTP_NAME) continue;
        if (s.ptr[i] != '%' || s.len - i < 3 ||
            hfsbi_http_hex(s.ptr[i + 1]) < 0 ||
            hfsbi_http_hex(s.ptr[i + 2]) < 0)
            return false;
        i += 2;
    }
    return true;
}

HFSBI_FN bool hfsbi_http_host_ok(hfsb_str host, bool with_port) {
    hfsb_str name = host, port = HFSB_INIT;
    size_t   i, colon;
    if (host.len && *host.ptr == '[') {
        size_t close = hfsb_str_find_byte(host, ']');
        if (close == HFSB_NPOS ||
            !hfsbi_http_ip6_ok(hfsb_str_slice(host, 1, close)))
            return false;
        port = hfsb_str_slice(host, close + 1, host.len);
        if (port.len && *port.ptr != ':') return false;
    } else {
        colon = hfsb_str_find_byte(host, ':');
        name = hfsb_str_slice(host, 0, colon);
        port = hfsb_str_slice(host, name.len, host.len);
        if (!hfsbi_http_name_ok(name)) return false;
    }
    if (with_port && (port.len < 2 || port.len == host.len)) return false;
    for (i = 1; i < port.len; i++)
        if (port.ptr[i] < '0' || port.ptr[i] > '9') return false;
    return port.len <= 6; /* ":65535" */
}

/* ---- the forms of a target ---- */

/* path ["?" query] ["#" ...]: a fragment is nobody's business here. */
static void hfsbi_http_path_split(hfsb_str s, hfsb_http_head *head) {
    size_t fragment = hfsb_str_find_byte(s, '#'), mark;
    s = hfsb_str_slice(s, 0, fragment);
    mark = hfsb_str_find_byte(s, '?');
    head->path = hfsb_str_slice(s, 0, mark);
    head->query =
        hfsb_str_slice(s, mark == HFSB_NPOS ? s.len : mark + 1, s.len);
    if (!head->path.len) head->path = hfsb_str_make("/", 1);
}

/* http://host... or https://host...; a user's name in it is left aside. */
static bool hfsbi_http_absolute_read(hfsbi_http_reading *r) {
    hfsb_str s = r->head->target, host;
    size_t   i, colon = hfsb_str_find_byte(s, ':');
    hfsb_str scheme = hfsb_str_slice(s, 0, colon);
    if (colon == HFSB_NPOS ||
        (!hfsbi_http_is(scheme, "http") && !hfsbi_http_is(scheme, "https")) ||
        s.len - colon < 3 || s.ptr[colon + 1] != '/' ||
        s.ptr[colon + 2] != '/')
        return hfsbi_http_refuse(r, 400, s.ptr,
                                 "The target of the request must be a path "
                                 "that begins with \"/\", or a whole URL "
                                 "that begins with http:// or https://.");
    for (i = colon + 3; i < s.len && !strchr("/?#", s.ptr[i]); i++) continue;
    host = hfsb_str_slice(s, colon + 3, i);
    hfsbi_http_path_split(hfsb_str_slice(s, i, s.len), r->head);
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
static bool hfsbi_http_target_read(hfsbi_http_reading *r) {
    hfsb_http_head *head = r->head;
    hfsb_str        s = head->target;
    if (hfsb_str_equal(head->method, hfsb_str_make("CONNECT", 7))) {
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
        return hfsb_str_equal(head->method, hfsb_str_make("OPTIONS", 7)) ||
               hfsbi_http_refuse(r, 400, s.ptr,
                                 "Only OPTIONS may have \"*\" as its target.");
    }
    return hfsbi_http_absolute_read(r);
}

/* ---- %XX ---- */

/* The byte at s[*i], decoded; -1 when its "%" is not followed by two
   hexadecimal digits. *i moves to its last byte. */
static int hfsbi_http_byte(hfsb_str s, size_t *i, bool plus) {
    int high, low;
    if (plus && s.ptr[*i] == '+') return ' ';
    if (s.ptr[*i] != '%') return (unsigned char)s.ptr[*i];
    if (s.len - *i < 3) return -1;
    high = hfsbi_http_hex(s.ptr[*i + 1]);
    low = hfsbi_http_hex(s.ptr[*i + 2]);
    if (high < 0 || low < 0) return -1;
    *i += 2;
    return high * 16 + low;
}

/* pos: where s lies in what err is about. */
static hfsb_status hfsbi_http_decode(hfsb_str s, bool plus, size_t pos,
                                     hfsb_buf *out, hfsb_err *err) {
    size_t      i, need = 0;
    hfsb_status st;
    for (i = 0; i < s.len; i++, need++) {
        size_t at = i;
        int    c = hfsbi_http_byte(s, &i, plus);
        if (c < 0)
            return hfsbi_fail(err, HFSB_SYNTAX, pos + at,
                              "A \"%%\" must be followed by two hexadecimal "
                              "digits; write %%25 for the sign itself.");
        if (!c && at < i)
            return hfsbi_fail(err, HFSB_SYNTAX, pos + at,
                              "%%00 is not allowed.");
    }
    st = hfsb_buf_reserve(out, need);
    if (st != HFSB_OK) return hfsbi_fail_status(err, st, "Cannot decode");
    for (i = 0; i < s.len; i++)
        out->ptr[out->len++] = (char)hfsbi_http_byte(s, &i, plus);
    out->ptr[out->len] = '\0';
    return hfsbi_ok(err);
}

hfsb_status hfsb_http_decode(hfsb_str s, hfsb_buf *out, hfsb_err *err) {
    return hfsbi_http_decode(s, false, 0, out, err);
}

static bool hfsbi_http_stays(char c, bool keep_slash) {
    return (hfsbi_http_class(c) & HFSBI_HTTP_PLAIN) ||
           (keep_slash && c == '/');
}

hfsb_status hfsb_http_encode(hfsb_str s, bool keep_slash, hfsb_buf *out) {
    static const char hex[] = "0123456789ABCDEF";
    size_t            i, need = s.len;
    hfsb_status       st;
    for (i = 0; i < s.len; i++)
        if (!hfsbi_http_stays(s.ptr[i], keep_slash) &&
            !hfsbi_add(need, 2, &need))
            return HFSB_LIMIT;
    st = hfsb_buf_reserve(out, need);
    if (st != HFSB_OK) return st;
    for (i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (hfsbi_http_stays(s.ptr[i], keep_slash)) {
            out->ptr[out->len++] = s.ptr[i];
            continue;
        }
        out->ptr[out->len++] = '%';
        out->ptr[out->len++] = hex[c >> 4];
        out->ptr[out->len++] = hex[c & 15];
    }
    out->ptr[out->len] = '\0';
    return HFSB_OK;
}

/* ---- queries ---- */

/* name, decoded, is key. What cannot be decoded is no key of ours. */
static bool hfsbi_http_key_is(hfsb_str name, const char *key) {
    size_t i;
    for (i = 0; i < name.len; i++) {
        int c = hfsbi_http_byte(name, &i, true);
        if (c <= 0 || c != (unsigned char)*key++) return false;
    }
    return !*key;
}

hfsb_status hfsb_http_query_find(hfsb_str query, const char *key,
                                 hfsb_buf *out, hfsb_err *err) {
    size_t at = 0;
    while (at < query.len) {
        hfsb_str rest = hfsb_str_slice(query, at, query.len);
        hfsb_str pair = hfsb_str_slice(rest, 0, hfsb_str_find_byte(rest, '&'));
        hfsb_str name = hfsb_str_slice(pair, 0, hfsb_str_find_byte(pair, '='));
        if (hfsbi_http_key_is(name, key))
            return hfsbi_http_decode(
                hfsb_str_slice(pair, name.len + 1, pair.len), true,
                at + name.len + 1, out, err);
        at += pair.len + 1;
    }
    return hfsbi_fail(err, HFSB_NOT_FOUND, 0,
                      "There is no \"%s\" in the query.", key);
}

/* A head is checked in this order, whatever pieces it came in: each line by
   itself, from the first to the last; how many there are; what they say. So
   a line may be refused as soon as it is complete, and the answer is the same
   as for the whole. */

HFSBI_FN bool hfsbi_http_refuse(const hfsbi_http_reading *r, int status,
                                const char *at, const char *message) {
    r->parser->status = (short)status;
    hfsbi_fail(r->err,
               status == 414 || status == 431 ? HFSB_LIMIT : HFSB_SYNTAX,
               (size_t)(at - r->in.ptr), "%s", message);
    return false;
}

/* Whatever is looked at here is followed by a line feed, at least. */
HFSBI_FN bool hfsbi_http_refuse_byte(const hfsbi_http_reading *r,
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
                      "A carriage return without a line feed behind it in %s.",
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

static bool hfsbi_http_is_reply(const hfsbi_http_reading *r) {
    return (r->parser->kind & HFSBI_HTTP_REPLY) != 0;
}

/* The place behind the end of a line at p, or NULL. The lines of a reply's
   head may end in a line feed alone, as RFC 9112 lets a client accept. */
static const char *hfsbi_http_line_end(const hfsbi_http_reading *r,
                                       const char *p, const char *end) {
    if (end - p >= 2 && p[0] == '\r' && p[1] == '\n') return p + 2;
    if (p < end && *p == '\n' && hfsbi_http_is_reply(r)) return p + 1;
    return NULL;
}

/* ---- the first line ---- */

/* "HTTP/" DIGIT "." DIGIT: the place behind it, or NULL. */
static const char *hfsbi_http_version(const char *p, const char *end,
                                      int *major, int *minor) {
    if (end - p < 8 || memcmp(p, "HTTP/", 5) != 0 || p[5] < '0' ||
        p[5] > '9' || p[6] != '.' || p[7] < '0' || p[7] > '9')
        return NULL;
    *major = p[5] - '0';
    *minor = p[7] - '0';
    return p + 8;
}

/* The first byte from p on that is not of that class. Every line ends in a
   line feed, which is of none. */
static const char *hfsbi_http_run(const char *p, unsigned bit) {
    while (hfsbi_http_class(*p) & bit) p++;
    return p;
}

/* Behind the target: SP version CRLF. */
static const char *hfsbi_http_request_version(hfsbi_http_reading *r,
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
                          "spoken here.");
        return NULL;
    }
    r->head->minor = minor ? 1 : 0; /* a later 1.x is read as 1.1 */
    return next + 2;
}

static const char *hfsbi_http_request_line(hfsbi_http_reading *r,
                                           const char *p, const char *end) {
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
        hfsbi_http_refuse_byte(r, p, "the place of the request's target");
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

/* Of a reply the number must be right; more blanks do no harm, and HTTP/0.9,
   which some old servers say, is read as 1.0. */
static const char *hfsbi_http_status_line(hfsbi_http_reading *r, const char *p,
                                          const char *end) {
    const char *start = p, *next = NULL;
    int         major = 0, minor = 0, i, status = 0;
    p = hfsbi_http_version(p, end, &major, &minor);
    if (p && p < end && *p == ' ' &&
        ((major == 1 && minor < 2) || (!major && minor == 9))) {
        while (p < end && *p == ' ') p++;
        for (i = 0; i < 3 && p < end && *p >= '0' && *p <= '9'; i++, p++)
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

HFSBI_FN bool hfsbi_http_first_byte(const hfsbi_http_reading *r,
                                    const char               *p) {
    if (hfsbi_http_is_reply(r))
        return *p == 'H' ||
               hfsbi_http_refuse(r, 400, p,
                                 "This is not the beginning of a reply of "
                                 "HTTP/1.1.");
    return (hfsbi_http_class(*p) & HFSBI_HTTP_TOKEN) ||
           hfsbi_http_refuse(r, 400, p,
                             "This is not the beginning of a request of "
                             "HTTP/1.1.");
}

HFSBI_FN const char *hfsbi_http_first_line(hfsbi_http_reading *r,
                                           const char *p, const char *end) {
    return hfsbi_http_is_reply(r) ? hfsbi_http_status_line(r, p, end)
                                  : hfsbi_http_request_line(r, p, end);
}

/* ---- fields ---- */

/* The first byte from p on that cannot be in a value. */
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

static const char *hfsbi_http_bad_name(const hfsbi_http_reading *r,
                                       const char *start, const char *p) {
    if (p == start && (*p == ' ' || *p == '\t'))
        hfsbi_http_refuse(r, 400, p,
                          "A line of the head begins with a "
                          "blank; folded lines are not accepted.");
    else if (*p == ' ' || *p == '\t')
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

HFSBI_FN const char *hfsbi_http_field_line(const hfsbi_http_reading *r,
                                           const char *p, const char *end,
                                           hfsb_http_field *field) {
    const char *start = p, *next;
    p = hfsbi_http_run(p, HFSBI_HTTP_TOKEN);
    if (p == start || *p != ':') return hfsbi_http_bad_name(r, start, p);
    field->name = hfsb_str_make(start, (size_t)(p - start));
    for (p++; *p == ' ' || *p == '\t';) p++;
    start = p;
    p = hfsbi_http_value_end(p, end);
    next = hfsbi_http_line_end(r, p, end);
    if (!next) {
        hfsbi_http_refuse_byte(r, p, "the value of a field");
        return NULL;
    }
    while (p > start && (p[-1] == ' ' || p[-1] == '\t')) p--;
    field->value = hfsb_str_make(start, (size_t)(p - start));
    return next;
}

/* A reply may fold a value over lines, which clients must read: the view goes
   on over the fold. */
static const char *hfsbi_http_folds(const hfsbi_http_reading *r, const char *p,
                                    const char *end, hfsb_http_field *field) {
    while (p < end && (*p == ' ' || *p == '\t')) {
        const char *start = p, *next;
        while (p < end && (*p == ' ' || *p == '\t')) p++;
        if (!field->value.len) field->value.ptr = start = p;
        else start = field->value.ptr;
        p = hfsbi_http_value_end(p, end);
        next = hfsbi_http_line_end(r, p, end);
        if (!next) {
            hfsbi_http_refuse_byte(r, p, "the value of a field");
            return NULL;
        }
        while (p > start && strchr(" \t\r\n", p[-1])) p--;
        field->value.len = (size_t)(p - start);
        p = next;
    }
    return p;
}

/* ---- what the fields say ---- */

/* What is collected while the fields are looked at. */
typedef struct hfsbi_http_facts {
    const hfsb_http_field *host, *length, *coding;
    const hfsb_http_field *once[4]; /* the first of those that stand once */
    size_t                 hosts, codings, chunked;
    hfsb_str               last_coding;
    bool close, keep_alive, tokens; /* codings are all tokens */
} hfsbi_http_facts;

static bool hfsbi_http_length_read(const hfsbi_http_reading *r,
                                   hfsb_str                  digits,
                                   unsigned long long       *length) {
    const unsigned long long most = ~0ull >> 1;
    unsigned long long       n = 0;
    size_t                   i;
    for (i = 0; i < digits.len; i++) {
        unsigned digit = (unsigned)(unsigned char)digits.ptr[i] - '0';
        if (digit > 9)
            return hfsbi_http_refuse_byte(r, digits.ptr + i, "Content-Length");
        if (n > (most - digit) / 10)
            return hfsbi_http_refuse(r, 400, digits.ptr,
                                     "Content-Length is too large.");
        n = n * 10 + digit;
    }
    *length = n;
    return digits.len ||
           hfsbi_http_refuse(r, 400, digits.ptr, "Content-Length is empty.");
}

/* Once in a request; a reply may say the same several times. */
static bool hfsbi_http_see_length(hfsbi_http_reading *r, hfsbi_http_facts *f,
                                  const hfsb_http_field *field) {
    hfsb_str           rest = field->value, item;
    unsigned long long n;
    if (!hfsbi_http_is_reply(r)) {
        if (f->length)
            return hfsbi_http_refuse(r, 400, field->name.ptr,
                                     "Content-Length stands more than once.");
        f->length = field;
        return hfsbi_http_length_read(r, field->value, &r->head->length);
    }
    if (!hfsbi_http_list_next(&rest, &item)) item = rest;
    do {
        if (!hfsbi_http_length_read(r, item, &n)) return false;
        if (f->length && n != r->head->length)
            return hfsbi_http_refuse(r, 400, item.ptr,
                                     "Content-Length stands there with "
                                     "different values.");
        f->length = field;
        r->head->length = n;
    } while (hfsbi_http_list_next(&rest, &item));
    return true;
}

static void hfsbi_http_see_coding(hfsbi_http_facts      *f,
                                  const hfsb_http_field *field) {
    hfsb_str rest = field->value, item;
    f->coding = field;
    /* nothing but commas is not one coding, so it cannot be "chunked" */
    if (!rest.len || *rest.ptr == ',' || rest.ptr[rest.len - 1] == ',')
        f->tokens = false;
    while (hfsbi_http_list_next(&rest, &item)) {
        f->codings++;
        f->last_coding = item;
        if (hfsbi_http_is(item, "chunked")) f->chunked++;
        if (!hfsbi_http_all(item, HFSBI_HTTP_TOKEN)) f->tokens = false;
    }
}

static bool hfsbi_http_see_once(const hfsbi_http_reading *r,
                                hfsbi_http_facts *f, size_t which,
                                const hfsb_http_field *field) {
    if (!f->once[which]) f->once[which] = field;
    return hfsb_str_equal(f->once[which]->value, field->value) ||
           hfsbi_http_refuse(r, 400, field->name.ptr,
                             "A field that may stand only once stands there "
                             "with different values.");
}

static void hfsbi_http_see_connection(hfsbi_http_facts      *f,
                                      const hfsb_http_field *field) {
    hfsb_str rest = field->value, item;
    while (hfsbi_http_list_next(&rest, &item)) {
        if (hfsbi_http_is(item, "close")) f->close = true;
        else if (hfsbi_http_is(item, "keep-alive")) f->keep_alive = true;
    }
}

/* name, which has as many bytes, is that one. It is a token, so that all that
   becomes a letter, or "-", by its bit for lower case was one. */
static bool hfsbi_http_named(hfsb_str name, const char *lower) {
    size_t i;
    for (i = 0; i < name.len; i++)
        if ((name.ptr[i] | 0x20) != lower[i]) return false;
    return true;
}

/* Only names as long as one of interest cost more than a switch. */
static bool hfsbi_http_see(hfsbi_http_reading *r, hfsbi_http_facts *f,
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
            hfsbi_http_is(field->value, "100-continue"))
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

/* ---- what a request says ---- */

static bool hfsbi_http_host_read(hfsbi_http_reading     *r,
                                 const hfsbi_http_facts *f) {
    if (f->hosts > 1)
        return hfsbi_http_refuse(r, 400, f->host->name.ptr,
                                 "The request has more than one Host.");
    if (!f->host)
        return !r->head->minor ||
               hfsbi_http_refuse(r, 400, r->head->method.ptr,
                                 "The request has no Host, which HTTP/1.1 "
                                 "demands.");
    if (!hfsbi_http_host_ok(f->host->value, false))
        return hfsbi_http_refuse(r, 400, f->host->value.ptr,
                                 "The request's Host is not a host's name or "
                                 "address with or without a port.");
    if (!r->head->host.ptr) r->head->host = f->host->value;
    return true;
}

static bool hfsbi_http_request_coding(const hfsbi_http_reading *r,
                                      const hfsbi_http_facts   *f) {
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
        (f->chunked && !hfsbi_http_is(f->last_coding, "chunked")))
        return hfsbi_http_refuse(r, 400, at,
                                 "Transfer-Encoding must be \"chunked\", "
                                 "once and alone.");
    return hfsbi_http_refuse(r, 501, at,
                             "Transfer-Encoding is not known here; only "
                             "\"chunked\" is.");
}

/* Those that mean something to a server such as ours. */
static bool hfsbi_http_method_known(hfsb_str method) {
    static const char *const known[] = {"GET",    "HEAD",    "POST",  "PUT",
                                        "DELETE", "OPTIONS", "PATCH", "TRACE"};
    size_t                   i;
    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        if (hfsb_str_equal(method, hfsb_cstr(known[i]))) return true;
    return false;
}

static bool hfsbi_http_request_read(hfsbi_http_reading     *r,
                                    const hfsbi_http_facts *f) {
    hfsb_http_head *head = r->head;
    if (!hfsbi_http_host_read(r, f)) return false;
    if (f->coding) {
        if (!hfsbi_http_request_coding(r, f)) return false;
        head->body = HFSB_HTTP_CHUNKED;
    } else if (f->length) {
        head->body = HFSB_HTTP_LENGTH;
    }
    if (!hfsbi_http_method_known(head->method))
        return hfsbi_http_refuse(r, 501, head->method.ptr,
                                 "The method of the request is not known "
                                 "here.");
    if (!head->minor || head->body == HFSB_HTTP_NO_BODY)
        head->expect_continue = false;
    return true;
}

/* ---- what a reply says ---- */

/* A body that does not end in chunks lasts until the connection closes. Its
   other codings are for the caller to see, but one that nobody knows behind
   chunks is no body to go on with. */
static bool hfsbi_http_reply_coding(const hfsbi_http_reading *r,
                                    const hfsbi_http_facts   *f) {
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
                             "The reply's Transfer-Encoding is not known "
                             "here; only \"chunked\" is.");
}

static bool hfsbi_http_reply_read(hfsbi_http_reading     *r,
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
        /* whoever sends both, or this to HTTP/1.0, is not to be trusted
           with another reply */
        if (f->length || !head->minor) head->keep_alive = false;
    } else {
        head->body = f->length ? HFSB_HTTP_LENGTH : HFSB_HTTP_UNTIL_CLOSE;
    }
    if (head->body == HFSB_HTTP_UNTIL_CLOSE) head->keep_alive = false;
    return true;
}

/* ---- all of it ---- */

static bool hfsbi_http_lines_read(hfsbi_http_reading *r, const char *p,
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

HFSBI_FN bool hfsbi_http_head_read(hfsbi_http_reading *r, const char *p,
                                   const char *end) {
    hfsbi_http_facts facts = HFSB_INIT;
    hfsb_http_head  *head = r->head;
    size_t           i;
    facts.tokens = true;
    if (!hfsbi_http_lines_read(r, p, end)) return false;
    for (i = 0; i < head->field_count; i++)
        if (!hfsbi_http_see(r, &facts, &head->fields[i])) return false;
    head->keep_alive = !facts.close && (head->minor || facts.keep_alive);
    if (!(hfsbi_http_is_reply(r) ? hfsbi_http_reply_read(r, &facts)
                                 : hfsbi_http_request_read(r, &facts)))
        return false;
    if (head->body != HFSB_HTTP_LENGTH) head->length = 0;
    return true;
}
