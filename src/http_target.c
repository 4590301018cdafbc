/* http_target.c - targets: their parts, %XX, queries. Depends on: base,
   http_field. */
#include "http_parts.h"

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

HFSBI_FN bool hfsbi_http_target_read(hfsbi_http_reading *r) {
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
