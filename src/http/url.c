/* url.c - addresses of http and https. */
#include "http_private.h"

enum { HFSBI_URL_MAX_HOST = 255 };

/* ---- parsing ---- */

static hfsb_status hfsbi_url_fail(hfsb_err *err, hfsb_str text, const char *at,
                                  const char *what) {
    return hfsbi_fail(err, HFSB_ARG, (size_t)(at - text.ptr),
                      "This is no usable URL: %s", what);
}

/* Of the first of these bytes, or the end. */
static size_t hfsbi_url_until(hfsb_str s, const char *stops) {
    size_t i;
    for (i = 0; i < s.len; i++)
        if (s.ptr[i] && strchr(stops, s.ptr[i])) break;
    return i;
}

/* The first byte that no URL has; NULL when all are fine. */
static const char *hfsbi_url_bad_byte(hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c <= ' ' || c >= 0x7F) return s.ptr + i;
    }
    return NULL;
}

/* "name:password" as RFC 3986 has it, so that no second "@" and no "\" can
   make another reader see another host. */
static bool hfsbi_url_user_ok(hfsb_str user) {
    size_t i;
    for (i = 0; i < user.len; i++)
        if (!(hfsbi_http_class(user.ptr[i]) & HFSBI_HTTP_NAME) &&
            user.ptr[i] != ':' && user.ptr[i] != '%')
            return false;
    return true;
}

static bool hfsbi_url_port(hfsb_str digits, bool secure, unsigned *port) {
    size_t i;
    *port = secure ? 443 : 80;
    if (!digits.len) return true;
    *port = 0;
    for (i = 0; i < digits.len; i++)
        *port = *port * 10 + (unsigned)(digits.ptr[i] - '0');
    return *port > 0 && *port <= 65535;
}

/* url->authority into host and port. */
static hfsb_status hfsbi_url_place(hfsb_str text, hfsb_url *url,
                                   hfsb_err *err) {
    hfsb_str a = url->authority;
    size_t   end, from = 0;
    if (!hfsbi_http_host_ok(a, false))
        return hfsbi_url_fail(err, text, a.ptr,
                              "its host or port is none. Expected "
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
                                            : "it names no host.");
    if (hfsb_str_find_byte(url->host, '%') != HFSB_NPOS)
        return hfsbi_url_fail(err, text, a.ptr,
                              "its host has a \"%\", which no name has.");
    if (!hfsbi_url_port(hfsb_str_slice(a, from + 1, a.len), url->secure,
                        &url->port))
        return hfsbi_url_fail(err, text, a.ptr + from,
                              "its port is not one of 1 to 65535.");
    return hfsbi_ok(err);
}

hfsb_status hfsb_url_parse(hfsb_str text, hfsb_url *url, hfsb_err *err) {
    const char *bad = hfsbi_url_bad_byte(text);
    hfsb_str    rest;
    size_t      colon = hfsb_str_find_byte(text, ':'), at;
    memset(url, 0, sizeof *url);
    if (!text.ptr) text.ptr = "";
    if (bad)
        return hfsbi_url_fail(err, text, bad,
                              "it holds a blank, a control byte or one that "
                              "is not ASCII. Write such a byte as %XX.");
    url->scheme = hfsb_str_slice(text, 0, colon);
    url->secure = hfsbi_http_is(url->scheme, "https");
    if (colon == HFSB_NPOS ||
        (!url->secure && !hfsbi_http_is(url->scheme, "http")))
        return hfsbi_url_fail(err, text, text.ptr,
                              "it does not begin with http:// or https://.");
    rest = hfsb_str_slice(text, colon + 1, text.len);
    if (!hfsb_str_starts(rest, hfsb_str_make("//", 2)))
        return hfsbi_url_fail(err, text, rest.ptr,
                              "\"//\" and a host are missing behind the "
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
                                  "what stands in front of \"@\" must be "
                                  "written with %XX.");
        url->authority =
            hfsb_str_slice(url->authority, at + 1, url->authority.len);
    }
    return hfsbi_url_place(text, url, err);
}

/* ---- references ---- */

/* The parts of RFC 3986 section 3; `has` tells absent from empty. */
typedef struct hfsbi_url_parts {
    hfsb_str scheme, authority, path, query;
    bool     has_authority, has_query;
} hfsbi_url_parts;

static size_t hfsbi_url_scheme_length(hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++) {
        char c = hfsbi_lower(s.ptr[i]);
        if (c >= 'a' && c <= 'z') continue;
        if (i && ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'))
            continue;
        return i && c == ':' ? i : 0;
    }
    return 0;
}

static hfsbi_url_parts hfsbi_url_split(hfsb_str s) {
    hfsbi_url_parts p = HFSB_INIT;
    size_t          n = hfsbi_url_scheme_length(s);
    s = hfsb_str_slice(s, 0, hfsb_str_find_byte(s, '#'));
    p.scheme = hfsb_str_slice(s, 0, n);
    if (n) s = hfsb_str_slice(s, n + 1, s.len);
    p.has_authority = hfsb_str_starts(s, hfsb_str_make("//", 2));
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

/* Takes the dot segments out of what out holds from `from` on, which is empty
   or begins with "/": section 5.2.4, in place. */
static void hfsbi_url_remove_dots(hfsb_buf *out, size_t from) {
    size_t at = from, to = from;
    while (at < out->len) { /* at a "/" */
        size_t   end = at + 1;
        hfsb_str segment;
        while (end < out->len && out->ptr[end] != '/') end++;
        segment = hfsb_str_make(out->ptr + at + 1, end - at - 1);
        if (hfsb_str_equal(segment, hfsb_str_make(".", 1)) ||
            hfsb_str_equal(segment, hfsb_str_make("..", 2))) {
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

/* The path of the reference, where it has no authority of its own. */
static void hfsbi_url_put_path(hfsb_buf *sink, const hfsbi_url_parts *base,
                               const hfsbi_url_parts *ref) {
    size_t i = base->path.len;
    if (!ref->path.len) {
        hfsb_buf_append(sink, base->path);
        return;
    }
    if (*ref->path.ptr != '/') { /* instead of the last segment */
        while (i && base->path.ptr[i - 1] != '/') i--;
        hfsb_buf_append(sink, hfsb_str_slice(base->path, 0, i));
        if (!base->path.len) hfsb_buf_append_byte(sink, '/');
    }
    hfsb_buf_append(sink, ref->path);
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
    hfsb_buf_append(out, hfsb_str_make(":", 1));
    if (r.has_authority || !own) hfsb_buf_append(out, hfsb_str_make("//", 2));
    hfsb_buf_append(out, own ? r.authority : b.authority);
    path_at = out->len;
    if (own) hfsb_buf_append(out, r.path);
    else hfsbi_url_put_path(out, &b, &r);
    /* an empty reference, or one of a query alone, keeps the path as it is */
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
           hfsb_http_same(a->host, b->host);
}
