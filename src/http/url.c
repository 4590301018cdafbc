/* url.c - classes of bytes, hosts, URLs of http and https, percent-encoding
   and queries.

   A URL is accepted only when every reader would see the same host in it: no
   second "@", no backslash, no control byte. The parsers return views of the
   text they were given; only resolving and coding write to a buffer. */
#include "http_private.h"

enum { HFSBI_URL_MAX_HOST = 255 };

/* ---- bytes ---- */

/* For each byte the sum of its HFSBI_HTTP_* bits. */
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

/* ---- hosts ---- */

/* Four decimal numbers up to 255, as at the end of some IPv6 addresses. */
static bool hfsbi_http_ip4_ok(hfsb_str s) {
    unsigned long long value;
    hfsb_str           part;
    size_t             parts = 0, n;
    if (hfsb_str_ends(s, HFSB_LIT("."))) return false;
    while (hfsbi_list_next(&s, '.', &part)) {
        n = hfsbi_read_decimal(part, 255, &value);
        if (!n || n > 3 || n < part.len) return false;
        parts++;
    }
    return parts == 4;
}

/* Eight groups of hexadecimal digits; "::" once for omitted ones. */
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
        for (digits = 0; i < s.len && hfsbi_hex_digit(s.ptr[i]) >= 0; i++)
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

/* A host name, with %XX for other bytes. */
static bool hfsbi_http_name_ok(hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++) {
        if (hfsbi_http_class(s.ptr[i]) & HFSBI_HTTP_NAME) continue;
        if (s.ptr[i] != '%' || s.len - i < 3 ||
            hfsbi_hex_digit(s.ptr[i + 1]) < 0 ||
            hfsbi_hex_digit(s.ptr[i + 2]) < 0)
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
        if (!hfsbi_is_digit(port.ptr[i])) return false;
    return port.len <= 6; /* ":65535" */
}

/* ---- parsing ---- */

static hfsb_status hfsbi_url_fail(hfsb_err *err, hfsb_str text, const char *at,
                                  const char *what) {
    return hfsbi_fail(err, HFSB_ARG, (size_t)(at - text.ptr),
                      "Invalid URL: %s", what);
}

HFSBI_FN size_t hfsbi_url_until(hfsb_str s, const char *stops) {
    size_t i;
    for (i = 0; i < s.len; i++)
        if (s.ptr[i] && strchr(stops, s.ptr[i])) break;
    return i;
}

/* The first byte that cannot be in a URL, or NULL. */
static const char *hfsbi_url_bad_byte(hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c <= ' ' || c >= 0x7F) return s.ptr + i;
    }
    return NULL;
}

/* "name:password" as in RFC 3986: no second "@" and no "\", which could make
   another reader see another host. */
static bool hfsbi_url_user_ok(hfsb_str user) {
    size_t i;
    for (i = 0; i < user.len; i++)
        if (!(hfsbi_http_class(user.ptr[i]) & HFSBI_HTTP_NAME) &&
            user.ptr[i] != ':' && user.ptr[i] != '%')
            return false;
    return true;
}

/* digits are up to five decimal digits. */
static bool hfsbi_url_port(hfsb_str digits, bool secure, unsigned *port) {
    unsigned long long value = secure ? 443 : 80;
    if (digits.len && !hfsbi_read_decimal(digits, 65535, &value)) return false;
    *port = (unsigned)value;
    return value > 0;
}

/* Splits url->authority into host and port. */
static hfsb_status hfsbi_url_split_authority(hfsb_str text, hfsb_url *url,
                                             hfsb_err *err) {
    hfsb_str a = url->authority;
    size_t   end, from = 0;
    if (!hfsbi_http_host_ok(a, false))
        return hfsbi_url_fail(err, text, a.ptr,
                              "its host or port is invalid. Expected "
                              "http://host, http://host:port or "
                              "http://[IPv6 address]:port.");
    if (a.len && *a.ptr == '[') {
        end = hfsb_str_find_byte(a, ']');
        url->host = hfsb_str_slice(a, 1, end);
        from = end + 1;
    } else {
        url->host = hfsb_str_slice(a, 0, hfsb_str_find_byte(a, ':'));
        from = url->host.len;
    }
    if (!url->host.len || url->host.len > HFSBI_URL_MAX_HOST)
        return hfsbi_url_fail(err, text, a.ptr,
                              url->host.len ? "its host is too long."
                                            : "it has no host.");
    if (hfsb_str_find_byte(url->host, '%') != HFSB_NPOS)
        return hfsbi_url_fail(err, text, a.ptr,
                              "a host name cannot contain \"%\".");
    if (!hfsbi_url_port(hfsb_str_slice(a, from + 1, a.len), url->secure,
                        &url->port))
        return hfsbi_url_fail(err, text, a.ptr + from,
                              "its port is not in 1 to 65535.");
    return hfsbi_ok(err);
}

/* Fills *url, which is empty; partly after a failure. */
static hfsb_status hfsbi_url_fill(hfsb_str text, hfsb_url *url,
                                  hfsb_err *err) {
    const char *bad = hfsbi_url_bad_byte(text);
    hfsb_str    rest;
    size_t      colon = hfsb_str_find_byte(text, ':'), at;
    if (!text.ptr) text.ptr = "";
    if (bad)
        return hfsbi_url_fail(err, text, bad,
                              "it contains a blank, a control byte or a byte "
                              "that is not ASCII. Write such a byte as %XX.");
    url->scheme = hfsb_str_slice(text, 0, colon);
    url->secure = hfsbi_str_equal_nocase(url->scheme, HFSB_LIT("https"));
    if (colon == HFSB_NPOS ||
        (!url->secure &&
         !hfsbi_str_equal_nocase(url->scheme, HFSB_LIT("http"))))
        return hfsbi_url_fail(err, text, text.ptr,
                              "it does not begin with http:// or https://.");
    rest = hfsb_str_slice(text, colon + 1, text.len);
    if (!hfsb_str_starts(rest, HFSB_LIT("//")))
        return hfsbi_url_fail(err, text, rest.ptr,
                              "\"//\" and a host are missing after the "
                              "scheme.");
    rest = hfsb_str_slice(rest, 2, rest.len);
    url->authority = hfsb_str_slice(rest, 0, hfsbi_url_until(rest, "/?#"));
    url->target = hfsb_str_slice(rest, url->authority.len, rest.len);
    url->target =
        hfsb_str_slice(url->target, 0, hfsb_str_find_byte(url->target, '#'));
    at = hfsb_str_find_byte(url->authority, '@');
    if (at != HFSB_NPOS) {
        url->user = hfsb_str_slice(url->authority, 0, at);
        if (!hfsbi_url_user_ok(url->user))
            return hfsbi_url_fail(err, text, url->user.ptr,
                                  "the user name before \"@\" must be written "
                                  "with %XX.");
        url->authority =
            hfsb_str_slice(url->authority, at + 1, url->authority.len);
    }
    return hfsbi_url_split_authority(text, url, err);
}

hfsb_status hfsb_url_parse(hfsb_str text, hfsb_url *url, hfsb_err *err) {
    hfsb_status st;
    memset(url, 0, sizeof *url);
    st = hfsbi_url_fill(text, url, err);
    if (st != HFSB_OK) memset(url, 0, sizeof *url);
    return st;
}

/* ---- references ---- */

/* The parts of RFC 3986 section 3; `has_...`: present, perhaps empty. */
typedef struct hfsbi_url_parts {
    hfsb_str scheme, authority, path, query;
    bool     has_authority, has_query;
} hfsbi_url_parts;

/* Length of the scheme before ":"; 0 for a relative reference. */
static size_t hfsbi_url_scheme_length(hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (hfsbi_is_alpha(c)) continue;
        if (i && (hfsbi_is_digit(c) || c == '+' || c == '-' || c == '.'))
            continue;
        return i && c == ':' ? i : 0;
    }
    return 0;
}

/* Splits any reference; nothing is checked. */
static hfsbi_url_parts hfsbi_url_split(hfsb_str s) {
    hfsbi_url_parts p = HFSB_INIT;
    size_t          n = hfsbi_url_scheme_length(s);
    s = hfsb_str_slice(s, 0, hfsb_str_find_byte(s, '#'));
    p.scheme = hfsb_str_slice(s, 0, n);
    if (n) s = hfsb_str_slice(s, n + 1, s.len);
    p.has_authority = hfsb_str_starts(s, HFSB_LIT("//"));
    if (p.has_authority) {
        s = hfsb_str_slice(s, 2, s.len);
        p.authority = hfsb_str_slice(s, 0, hfsbi_url_until(s, "/?"));
        s = hfsb_str_slice(s, p.authority.len, s.len);
    }
    p.path = hfsb_str_slice(s, 0, hfsb_str_find_byte(s, '?'));
    p.has_query = p.path.len < s.len;
    p.query = hfsb_str_slice(s, p.path.len + 1, s.len);
    return p;
}

/* Removes the dot segments of the path that starts at `from` of *out with "/":
   section 5.2.4, in place. */
static void hfsbi_url_remove_dots(hfsb_buf *out, size_t from) {
    size_t at = from, to = from;
    while (at < out->len) { /* at a "/" */
        size_t   end = at + 1;
        hfsb_str segment;
        while (end < out->len && out->ptr[end] != '/') end++;
        segment = hfsb_str_make(out->ptr + at + 1, end - at - 1);
        if (hfsb_str_equal(segment, HFSB_LIT(".")) ||
            hfsb_str_equal(segment, HFSB_LIT(".."))) {
            if (segment.len == 2)
                while (to > from && out->ptr[--to] != '/') continue;
            if (end == out->len) out->ptr[to++] = '/';
        } else {
            memmove(out->ptr + to, out->ptr + at, end - at);
            to += end - at;
        }
        at = end;
    }
    hfsb_buf_truncate(out, to);
}

/* Appends the path of a reference without an authority. */
static void hfsbi_url_put_path(hfsb_buf *out, const hfsbi_url_parts *base,
                               const hfsbi_url_parts *ref) {
    size_t i = base->path.len;
    if (!ref->path.len) {
        hfsb_buf_append(out, base->path);
        return;
    }
    if (*ref->path.ptr != '/') { /* instead of the last segment */
        while (i && base->path.ptr[i - 1] != '/') i--;
        hfsb_buf_append(out, hfsb_str_slice(base->path, 0, i));
        if (!base->path.len) hfsb_buf_append_byte(out, '/');
    }
    hfsb_buf_append(out, ref->path);
}

hfsb_status hfsb_url_resolve(hfsb_str base, hfsb_str reference, hfsb_buf *out,
                             hfsb_err *err) {
    hfsbi_url_parts b = hfsbi_url_split(base), r = hfsbi_url_split(reference);
    size_t          mark = out->len;
    bool            own = r.scheme.len || r.has_authority;
    hfsb_url        url;
    size_t          path_at;
    hfsb_status     st = hfsb_url_parse(base, &url, err);
    if (st != HFSB_OK) return st;
    hfsb_buf_append(out, r.scheme.len ? r.scheme : b.scheme);
    hfsb_buf_append(out, HFSB_LIT(":"));
    if (r.has_authority || !own) hfsb_buf_append(out, HFSB_LIT("//"));
    hfsb_buf_append(out, own ? r.authority : b.authority);
    path_at = out->len;
    if (own) hfsb_buf_append(out, r.path);
    else hfsbi_url_put_path(out, &b, &r);
    /* an empty reference, or a query alone, keeps the path unchanged */
    if (out->status == HFSB_OK && (own || r.path.len) && path_at < out->len &&
        out->ptr[path_at] == '/')
        hfsbi_url_remove_dots(out, path_at);
    if (r.has_query || (!own && !r.path.len && b.has_query)) {
        hfsb_buf_append_byte(out, '?');
        hfsb_buf_append(out, r.has_query ? r.query : b.query);
    }
    st = hfsb_buf_finish(out, mark);
    if (st != HFSB_OK) return hfsbi_fail_status(err, st, "URL");
    st = hfsb_url_parse(hfsb_str_slice(hfsb_buf_str(out), mark, out->len),
                        &url, err);
    if (st != HFSB_OK) hfsb_buf_truncate(out, mark);
    return st;
}

bool hfsb_url_same_origin(const hfsb_url *a, const hfsb_url *b) {
    return a->secure == b->secure && a->port == b->port &&
           hfsbi_str_equal_nocase(a->host, b->host);
}

/* ---- %XX ---- */

HFSBI_FN int hfsbi_http_byte(hfsb_str s, size_t *i, bool plus) {
    int high, low;
    if (plus && s.ptr[*i] == '+') return ' ';
    if (s.ptr[*i] != '%') return (unsigned char)s.ptr[*i];
    if (s.len - *i < 3) return -1;
    high = hfsbi_hex_digit(s.ptr[*i + 1]);
    low = hfsbi_hex_digit(s.ptr[*i + 2]);
    if (high < 0 || low < 0) return -1;
    *i += 2;
    return high * 16 + low;
}

/* Appends s decoded; `plus`: "+" is a blank. pos is the offset of s in the
   text that *err is about. Checks all of s first, so that *out changes only
   on success. */
static hfsb_status hfsbi_http_decode(hfsb_str s, bool plus, size_t pos,
                                     hfsb_buf *out, hfsb_err *err) {
    size_t i, mark = out->len;
    for (i = 0; i < s.len; i++) {
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
    for (i = 0; i < s.len; i++)
        hfsb_buf_append_byte(out, (char)hfsbi_http_byte(s, &i, plus));
    if (hfsb_buf_finish(out, mark) != HFSB_OK)
        return hfsbi_fail_status(err, out->status, "Cannot decode");
    return hfsbi_ok(err);
}

hfsb_status hfsb_http_decode(hfsb_str s, hfsb_buf *out, hfsb_err *err) {
    return hfsbi_http_decode(s, false, 0, out, err);
}

hfsb_status hfsb_http_encode(hfsb_str s, bool keep_slash, hfsb_buf *out) {
    size_t i, mark = out->len;
    for (i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if ((hfsbi_http_class(c) & HFSBI_HTTP_PLAIN) ||
            (keep_slash && c == '/'))
            hfsb_buf_append_byte(out, c);
        else hfsb_buf_printf(out, "%%%02X", (unsigned)(unsigned char)c);
    }
    return hfsb_buf_finish(out, mark);
}

/* ---- queries ---- */

/* True when name decodes to key. A name that cannot be decoded, or contains
   NUL, equals none. */
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
