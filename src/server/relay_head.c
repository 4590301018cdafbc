/* relay_head.c - the heads of a relayed request and of its reply.

   A head is not passed on but rewritten, without fields that concern one
   connection and without those that may hold a token:

     client                       this server                  inner server
     GET /open/KEY/a?b   ----->   GET /a?b               ----->
     Authorization: ...           (nothing)
     Connection: Upgrade          Connection: Upgrade          (if it asks)

   An inner server with `rebase` believes that its pages begin at "/". For a
   browser they begin at the prefix, next to pages of others:

     Location: /login        <->  Location: PREFIX/login
     Set-Cookie: a=1; Path=/ <->  Set-Cookie: hfsb-a=1; Path=PREFIX/
     Cookie: a=1             <->  Cookie: hfsb-a=1

   So a cookie of an inner server reaches that server alone. Cookies without
   the prefix belong to other servers of the same host, since a cookie applies
   to all of its ports, and are not passed on. */
#include "server_private.h"

#define HFSBI_RELAY_MARK "hfsb-"

/* ---- names of fields ---- */

static bool hfsbi_relay_lists(const char *const *list, hfsb_str name) {
    for (; list && *list; list++)
        if (hfsb_http_same(name, hfsb_cstr(*list))) return true;
    return false;
}

/* True for a field that is about one connection. */
static bool hfsbi_relay_is_hop(hfsb_str name) {
    static const char *const list[] = {"Connection",
                                       "Keep-Alive",
                                       "Proxy-Connection",
                                       "Proxy-Authenticate",
                                       "Proxy-Authorization",
                                       "TE",
                                       "Trailer",
                                       "Transfer-Encoding",
                                       "Upgrade",
                                       "Content-Length",
                                       NULL};
    return hfsbi_relay_lists(list, name);
}

static bool hfsbi_relay_is_hidden(hfsb_str name) {
    static const char *const list[] = {
        "Authorization", "X-Sandbox-Authorization", "Expect", NULL};
    return hfsbi_relay_lists(list, name);
}

HFSBI_FN bool hfsbi_relay_is_upgrade(const hfsb_http_head *head) {
    return hfsb_http_field_find(head, "Upgrade").len > 0 &&
           hfsb_http_field_lists(head, "Connection", "upgrade");
}

/* ---- to the inner server ---- */

HFSBI_FN size_t hfsbi_relay_prefix(hfsb_str path, size_t n) {
    size_t at = 0;
    while (at + 1 < path.len && path.ptr[at + 1] == '/') at++;
    for (n++; at < path.len && (path.ptr[at] != '/' || --n);) at++;
    return at;
}

static hfsb_str hfsbi_relay_base(const hfsb_http_head   *head,
                                 const hfsbi_relay_opts *opts) {
    return hfsb_str_slice(head->path, 0, opts->prefix);
}

static hfsb_status hfsbi_relay_put_line(const hfsb_http_head   *head,
                                        const hfsbi_relay_opts *opts,
                                        hfsb_buf               *out) {
    hfsb_str path = hfsb_str_slice(head->path, opts->prefix, head->path.len);
    hfsb_buf target = HFSB_INIT;
    hfsb_status st;
    target.alloc = out->alloc;
    if (!hfsb_str_starts(path, HFSB_LIT("/")))
        hfsb_buf_append_byte(&target, '/');
    hfsb_buf_append(&target, path);
    if (head->query.len) hfsb_buf_append_byte(&target, '?');
    hfsb_buf_append(&target, head->query);
    st = target.status;
    if (st == HFSB_OK)
        st = hfsb_http_put_request(out, head->method, hfsb_buf_str(&target));
    hfsb_buf_free(&target);
    return st;
}

/* Appends the cookies that the inner server has set, by their own names. */
static void hfsbi_relay_put_cookies(hfsb_str value, hfsb_buf *out) {
    hfsb_str one, mark = HFSB_LIT(HFSBI_RELAY_MARK);
    size_t   begin = out->len;
    while (hfsbi_list_next(&value, ';', &one)) {
        one = hfsbi_trim(one);
        if (!hfsb_str_starts(one, mark)) continue;
        if (out->len > begin) hfsb_buf_append(out, HFSB_LIT("; "));
        hfsb_buf_append(out, hfsb_str_slice(one, mark.len, one.len));
    }
}

/* Removes tabs, and the line folds of old servers. */
static void hfsbi_relay_unfold(hfsb_buf *value) {
    size_t i;
    for (i = 0; i < value->len; i++)
        if (value->ptr[i] == '\t' || value->ptr[i] == '\r' ||
            value->ptr[i] == '\n')
            value->ptr[i] = ' ';
}

/* Appends a field; `value` is a scratch buffer. */
static hfsb_status hfsbi_relay_put_field(const hfsb_http_field  *f,
                                         const hfsbi_relay_opts *opts,
                                         hfsb_buf *value, hfsb_buf *out) {
    bool cookies = opts->rebase && hfsb_http_same(f->name, HFSB_LIT("Cookie"));
    hfsb_buf_truncate(value, 0);
    if (cookies) hfsbi_relay_put_cookies(f->value, value);
    else hfsb_buf_append(value, f->value);
    if (value->status != HFSB_OK) return value->status;
    if (cookies && !value->len) return HFSB_OK;
    hfsbi_relay_unfold(value);
    return hfsb_http_put_field(out, f->name, hfsb_buf_str(value));
}

static hfsb_status hfsbi_relay_put_framing(const hfsb_http_head *head,
                                           hfsb_buf             *out) {
    bool        upgrade = hfsbi_relay_is_upgrade(head);
    hfsb_status st = HFSB_OK;
    if (upgrade)
        st = hfsb_http_put_field(out, HFSB_LIT("Upgrade"),
                                 hfsb_http_field_find(head, "Upgrade"));
    if (st == HFSB_OK)
        st = hfsb_http_put_field(out, HFSB_LIT("Connection"),
                                 upgrade ? HFSB_LIT("Upgrade")
                                         : HFSB_LIT("close"));
    if (st == HFSB_OK && head->body == HFSB_HTTP_CHUNKED)
        st = hfsb_http_put_field(out, HFSB_LIT("Transfer-Encoding"),
                                 HFSB_LIT("chunked"));
    else if (st == HFSB_OK && head->body == HFSB_HTTP_LENGTH)
        st = hfsb_buf_printf(out, "Content-Length: %llu\r\n", head->length);
    return st;
}

HFSBI_FN hfsb_status hfsbi_relay_put_head(const hfsb_http_head   *head,
                                          const hfsbi_relay_opts *opts,
                                          hfsb_buf               *out) {
    hfsb_status st = hfsbi_relay_put_line(head, opts, out);
    hfsb_buf    value = HFSB_INIT;
    size_t      i;
    value.alloc = out->alloc;
    for (i = 0; i < head->field_count && st == HFSB_OK; i++) {
        const hfsb_http_field *f = &head->fields[i];
        if (hfsbi_relay_is_hop(f->name) || hfsbi_relay_is_hidden(f->name) ||
            hfsbi_relay_lists(opts->hide, f->name))
            continue;
        st = hfsbi_relay_put_field(f, opts, &value, out);
    }
    hfsb_buf_free(&value);
    if (st == HFSB_OK && opts->rebase)
        st = hfsb_http_put_field(out, HFSB_LIT("X-Forwarded-Prefix"),
                                 hfsbi_relay_base(head, opts));
    if (st == HFSB_OK) st = hfsbi_relay_put_framing(head, out);
    return st == HFSB_OK ? hfsb_http_put_head_end(out) : st;
}

/* ---- to the client ---- */

/* Appends a cookie with the mark, for paths beneath base alone. */
static void hfsbi_relay_put_cookie(hfsb_str value, hfsb_str base,
                                   hfsb_buf *out) {
    hfsb_str one;
    hfsb_buf_append(out, HFSB_LIT(HFSBI_RELAY_MARK));
    if (hfsbi_list_next(&value, ';', &one)) hfsb_buf_append(out, one);
    while (hfsbi_list_next(&value, ';', &one)) {
        hfsb_str name =
            hfsbi_trim(hfsb_str_slice(one, 0, hfsb_str_find_byte(one, '=')));
        if (hfsb_http_same(name, HFSB_LIT("Path")) ||
            hfsb_http_same(name, HFSB_LIT("Domain")))
            continue;
        hfsb_buf_append_byte(out, ';');
        hfsb_buf_append(out, one);
    }
    hfsb_buf_append(out, HFSB_LIT("; Path="));
    hfsb_buf_append(out, base);
    hfsb_buf_append_byte(out, '/');
}

/* The path of a redirect to the host that the client asked; empty: it points
   elsewhere, or is relative. */
static hfsb_str hfsbi_relay_local(hfsb_str url, hfsb_str host) {
    size_t   scheme = hfsb_str_find(url, HFSB_LIT("://"));
    hfsb_str none = HFSB_LIT("");
    if (hfsb_str_starts(url, HFSB_LIT("/")))
        return hfsb_str_starts(url, HFSB_LIT("//")) ? none : url;
    if (scheme == HFSB_NPOS || !host.len) return none;
    url = hfsb_str_slice(url, scheme + 3, url.len);
    if (url.len <= host.len || url.ptr[host.len] != '/' ||
        !hfsb_http_same(hfsb_str_slice(url, 0, host.len), host))
        return none;
    return hfsb_str_slice(url, host.len, url.len);
}

/* Appends the value of a field of the reply, as the client needs it. */
static void hfsbi_relay_put_value(const hfsb_http_head   *asked,
                                  const hfsbi_relay_opts *opts,
                                  const hfsb_http_field *f, hfsb_buf *out) {
    hfsb_str base = hfsbi_relay_base(asked, opts), local = HFSB_LIT("");
    if (opts->rebase && hfsb_http_same(f->name, HFSB_LIT("Set-Cookie"))) {
        hfsbi_relay_put_cookie(f->value, base, out);
        return;
    }
    if (opts->rebase &&
        (hfsb_http_same(f->name, HFSB_LIT("Location")) ||
         hfsb_http_same(f->name, HFSB_LIT("Content-Location"))))
        local = hfsbi_relay_local(f->value, asked->host);
    if (local.len) hfsb_buf_append(out, base);
    hfsb_buf_append(out, local.len ? local : f->value);
}

HFSBI_FN hfsb_status hfsbi_relay_copy_fields(hfsb_request           *request,
                                             const hfsb_http_head   *head,
                                             const hfsbi_relay_opts *opts) {
    hfsb_buf    value = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    size_t      i;
    char        name[128];
    value.alloc = request->conn->server->alloc;
    for (i = 0; i < head->field_count && st == HFSB_OK; i++) {
        const hfsb_http_field *f = &head->fields[i];
        if (hfsbi_relay_is_hop(f->name) || f->name.len >= sizeof name ||
            hfsbi_relay_lists(opts->drop, f->name) ||
            hfsb_http_same(f->name, HFSB_LIT("Date")))
            continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)f->name.len,
                       f->name.ptr);
        hfsb_buf_truncate(&value, 0);
        hfsbi_relay_put_value(&request->head, opts, f, &value);
        hfsbi_relay_unfold(&value);
        st = value.status;
        if (st == HFSB_OK)
            st = hfsb_reply_field(request, name, hfsb_buf_str(&value));
    }
    hfsb_buf_free(&value);
    return st;
}
