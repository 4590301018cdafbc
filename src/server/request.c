/* request.c - a request: from its head to its handler.

     head --> copied into one block with the request
          --> checks: Host, Origin, route, token, size, Expect
          --> `begin` of the route, "100 Continue"
     body --> kept in memory, or passed to `body` of the route
     end  --> the handler: in the loop, or in a pool thread

   hfsbi_request_check() is the only place that decides who may do what. A
   failed check replies, and no handler is called. The token's value is wiped
   from the head before anything else happens, and only a digest of the token
   is kept, so it cannot be read from the server's memory later.

   A request lives until its reply is sent or its connection closes, and as
   long as work runs for it in a pool thread. */
#include "server_private.h"
#include "../core/core_private.h"

HFSBI_FN hfsbi_face *hfsbi_request_face(const hfsb_request *r) {
    return r->route ? r->route->face : r->conn->listener->face;
}

/* ---- web pages: Host and Origin ----

   A browser sends requests to this machine for any page that is open in it,
   and with DNS rebinding the page's own host name points here. One of three
   things keeps pages out:

     a secret   that the request must carry: no page knows it. Names matter
                less: a Space, a proxy and a Unix socket have names that the
                server does not know
     names      where no secret is asked for. Host must be ours, and the Origin
                of a page must be that Host with its port, or listed
     no page    where the secret itself is set (/init), see
                hfsbi_request_is_direct()

   hfsbi_request_needs_secret() decides which of the first two it is. */

/* The host of "host", "host:port", "[::1]" or "[::1]:port"; "" of anything
   else, such as "localhost:1@evil". */
static hfsb_str hfsbi_host_name(hfsb_str s) {
    hfsb_str name, port;
    size_t   at, i;
    if (s.len && s.ptr[0] == '[') {
        at = hfsb_str_find_byte(s, ']');
        if (at == HFSB_NPOS) return hfsb_str_make("", 0);
        name = hfsb_str_slice(s, 1, at);
        port = hfsb_str_slice(s, at + 1, s.len);
    } else {
        at = hfsb_str_find_byte(s, ':');
        if (at == HFSB_NPOS) return s;
        name = hfsb_str_slice(s, 0, at);
        port = hfsb_str_slice(s, at, s.len);
    }
    for (i = 0; i < port.len; i++)
        if (i ? port.ptr[i] < '0' || port.ptr[i] > '9' : port.ptr[i] != ':')
            return hfsb_str_make("", 0);
    return name;
}

/* 127.0.0.0/8 written with four numbers. */
static bool hfsbi_host_is_127(hfsb_str name) {
    char           text[16];
    struct in_addr a;
    if (name.len >= sizeof text || !hfsb_str_starts(name, HFSB_LIT("127.")))
        return false;
    memcpy(text, name.ptr, name.len);
    text[name.len] = '\0';
    return inet_pton(AF_INET, text, &a) == 1;
}

static bool hfsbi_host_is_loopback(hfsb_str name) {
    return hfsb_http_same(name, HFSB_LIT("localhost")) ||
           hfsb_str_equal(name, HFSB_LIT("::1")) || hfsbi_host_is_127(name);
}

static bool hfsbi_host_is_listed(const hfsb_server *server, hfsb_str name) {
    hfsb_str rest = hfsb_buf_str(&server->access.hosts), one;
    while (hfsbi_list_next(&rest, '\0', &one))
        if (one.len && hfsb_http_same(name, one)) return true;
    return false;
}

/* True if the name can only mean this server. */
static bool hfsbi_host_is_ours(const hfsb_server    *server,
                               const hfsbi_listener *at, hfsb_str name) {
    name = hfsbi_host_name(name);
    return name.len > 0 && (hfsbi_host_is_loopback(name) ||
                            hfsb_http_same(name, hfsb_cstr(at->address)) ||
                            hfsb_http_same(name, hfsb_buf_str(&at->name)) ||
                            hfsbi_host_is_listed(server, name));
}

/* True if names are not checked: "*" is allowed, or the token is the guard
   because the address is public and no name was given. */
static bool hfsbi_host_may_be_any(const hfsb_server    *server,
                                  const hfsbi_listener *at) {
    return hfsbi_host_is_listed(server, HFSB_LIT("*")) ||
           ((server->access.has_token || server->access.late) &&
            !at->loopback && server->access.hosts.len == 0);
}

static bool hfsbi_request_has_guard(const hfsb_request *r,
                                    hfsbi_face_guard    guard) {
    const hfsbi_face *face = hfsbi_request_face(r);
    return face && face->guard == guard;
}

/* True if the request must carry a secret, in a field or in its path. */
static bool hfsbi_request_needs_secret(const hfsb_request *r) {
    const hfsbi_face *face = hfsbi_request_face(r);
    if (!face || face->guard == HFSBI_FACE_SERVER)
        return !r->conn->server->access.no_auth;
    return face->guard != HFSBI_FACE_NAMES;
}

/* True if the request names this server: DNS rebinding sends another name. */
static bool hfsbi_request_host_ok(const hfsb_request *r) {
    const hfsbi_listener *at = r->conn->listener;
    return hfsbi_host_is_ours(r->conn->server, at, r->head.host) ||
           hfsbi_host_may_be_any(r->conn->server, at) ||
           (hfsbi_request_needs_secret(r) &&
            (at->local || hfsbi_request_has_guard(r, HFSBI_FACE_TOKEN)));
}

/* True if there is no Origin (not a browser), or one of our own names. With a
   secret that is a page on any port of this machine, which does not know it.
   "*" does not make a name ours where names are all there is. */
static bool hfsbi_request_origin_ok(const hfsb_request *r) {
    const hfsb_server    *server = r->conn->server;
    const hfsbi_listener *at = r->conn->listener;
    hfsb_str origin = hfsb_http_field_find(&r->head, "origin"), host, name;
    size_t   slash;
    if (!origin.ptr) return true;
    if (hfsbi_request_has_guard(r, HFSBI_FACE_PATH) &&
        hfsb_str_equal(origin, HFSB_LIT("null")))
        return true;
    slash = hfsb_str_find(origin, HFSB_LIT("://"));
    if (hfsb_http_field_count(&r->head, "origin") > 1 || slash == HFSB_NPOS)
        return false; /* "null", for example */
    host = hfsb_str_slice(origin, slash + 3, origin.len);
    name = hfsbi_host_name(host);
    if (hfsbi_request_needs_secret(r))
        return hfsbi_host_may_be_any(server, at) ||
               hfsbi_host_is_ours(server, at, host);
    return !hfsb_str_equal(name, HFSB_LIT("*")) &&
           (hfsbi_host_is_listed(server, name) ||
            (hfsb_http_same(host, r->head.host) &&
             hfsbi_host_is_ours(server, at, host)));
}

/* True if a browser sends the request for a page of another site, which need
   not have an Origin: an image or a script has none. Routes that need no token
   may be linked to. */
static bool hfsbi_request_is_cross_site(const hfsb_request *r) {
    hfsb_str site = hfsb_http_field_find(&r->head, "sec-fetch-site");
    return !hfsbi_request_has_guard(r, HFSBI_FACE_PATH) &&
           hfsb_http_same(site, HFSB_LIT("cross-site")) &&
           !(r->route && r->route->set.no_token) &&
           !hfsbi_host_may_be_any(r->conn->server, r->conn->listener);
}

/* A browser adds Origin to every POST of a page. */
HFSBI_FN bool hfsbi_request_is_direct(hfsb_request *r) {
    hfsb_str site = hfsb_http_field_find(&r->head, "sec-fetch-site");
    if (hfsb_http_field_find(&r->head, "origin").ptr ||
        hfsb_http_same(site, HFSB_LIT("cross-site")))
        hfsb_reply_error(r, 403, "Web pages may not set the token.");
    else return true;
    return false;
}

/* ---- the token ---- */

typedef enum hfsbi_token {
    HFSBI_TOKEN_ABSENT, /* no field of that name */
    HFSBI_TOKEN_MISSING,
    HFSBI_TOKEN_WRONG,
    HFSBI_TOKEN_OK,
    HFSBI_TOKEN_NONE /* the server has no token to compare with */
} hfsbi_token;

/* True if s has that digest. Compares in constant time. */
static bool hfsbi_secret_is(hfsb_str s, const unsigned char *digest) {
    unsigned char own[HFSB_SHA256_SIZE];
    hfsb_sha256   sha;
    unsigned      diff = 0;
    size_t        i;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, s);
    hfsb_sha256_finish(&sha, own);
    hfsb_secret_wipe(&sha, sizeof sha);
    for (i = 0; i < sizeof own; i++) diff |= (unsigned)(own[i] ^ digest[i]);
    return diff == 0;
}

HFSBI_FN bool hfsbi_server_token_is(const hfsb_server *server,
                                    hfsb_str           token) {
    return server->access.has_token &&
           hfsbi_secret_is(token, server->access.token);
}

static void hfsbi_field_wipe(hfsb_http_field *f) {
    hfsb_secret_wipe((void *)(uintptr_t)f->value.ptr, f->value.len);
    f->value.len = 0;
}

/* What follows the scheme in "Bearer {token}"; empty: another scheme. */
static hfsb_str hfsbi_credentials(hfsb_str value, const char *scheme) {
    size_t space = hfsb_str_find_byte(value, ' ');
    if (space == HFSB_NPOS ||
        !hfsb_http_same(hfsb_str_slice(value, 0, space), hfsb_cstr(scheme)))
        return hfsb_str_make("", 0);
    return hfsbi_trim(hfsb_str_slice(value, space, value.len));
}

HFSBI_FN bool hfsbi_request_proves_any(hfsb_request *r, const char *name,
                                       const char                 *scheme,
                                       const unsigned char *const *digests) {
    bool   proven = false;
    size_t i, k, n = 0;
    for (i = 0; i < r->head.field_count; i++) {
        hfsb_http_field *f = &r->head.fields[i];
        hfsb_str         value = f->value;
        if (!hfsb_http_same(f->name, hfsb_cstr(name))) continue;
        if (scheme) value = hfsbi_credentials(value, scheme);
        for (k = 0; value.len > 0 && digests[k]; k++)
            if (hfsbi_secret_is(value, digests[k])) proven = true;
        hfsbi_field_wipe(f);
        n++;
    }
    return n == 1 && proven;
}

HFSBI_FN bool
hfsbi_request_proves(hfsb_request *r, const char *name, const char *scheme,
                     const unsigned char digest[HFSB_SHA256_SIZE]) {
    const unsigned char *digests[2];
    digests[0] = digest;
    digests[1] = NULL;
    return hfsbi_request_proves_any(r, name, scheme, digests);
}

/* Checks "Bearer {token}". */
static hfsbi_token hfsbi_token_check(const hfsb_server *server,
                                     hfsb_str           value) {
    value = hfsbi_credentials(value, "bearer");
    if (!server->access.has_token || value.len == 0)
        return HFSBI_TOKEN_MISSING;
    return hfsbi_secret_is(value, server->access.token) ? HFSBI_TOKEN_OK
                                                        : HFSBI_TOKEN_WRONG;
}

/* Checks the fields of one name and wipes their values; keep_others: only
   values that hold the server's token. */
static hfsbi_token hfsbi_token_find(const hfsb_server *server,
                                    hfsb_http_head *head, const char *name,
                                    bool keep_others) {
    hfsbi_token found = HFSBI_TOKEN_ABSENT;
    size_t      i, n = 0;
    for (i = 0; i < head->field_count; i++) {
        hfsb_http_field *f = &head->fields[i];
        if (!hfsb_http_same(f->name, hfsb_cstr(name))) continue;
        found = hfsbi_token_check(server, f->value);
        n++;
        if (keep_others && found != HFSBI_TOKEN_OK) continue;
        hfsbi_field_wipe(f);
    }
    return n > 1 ? HFSBI_TOKEN_WRONG : found; /* ambiguous */
}

/* A browser cannot add a field to its request for a WebSocket. There the token
   may be the last protocol that the client offers, "hfsb.bearer.HEX", with the
   token in hexadecimal. Takes it out of that list, and wipes it. */
static hfsbi_token hfsbi_token_of_protocol(const hfsb_server *server,
                                           hfsb_http_field   *f) {
    const hfsb_str name = HFSB_LIT("hfsb.bearer.");
    size_t         at = hfsb_str_find(f->value, name), end = at, i;
    char           token[512];
    hfsb_str       hex;
    bool           good;
    if (at == HFSB_NPOS) return HFSBI_TOKEN_ABSENT;
    hex = hfsb_str_slice(f->value, at + name.len, f->value.len);
    good = hex.len % 2 == 0 && hex.len > 0 && hex.len <= 2 * sizeof token;
    for (i = 0; good && i < hex.len; i += 2) {
        int a = hfsbi_hex_digit(hex.ptr[i]),
            b = hfsbi_hex_digit(hex.ptr[i + 1]);
        good = a >= 0 && b >= 0;
        if (good) token[i / 2] = (char)(a * 16 + b);
    }
    good = good &&
           hfsbi_server_token_is(server, hfsb_str_make(token, hex.len / 2));
    hfsb_secret_wipe(token, sizeof token);
    hfsb_secret_wipe((void *)(uintptr_t)hex.ptr, hex.len);
    while (end &&
           (f->value.ptr[end - 1] == ' ' || f->value.ptr[end - 1] == ','))
        end--;
    f->value.len = end;
    return good ? HFSBI_TOKEN_OK : HFSBI_TOKEN_WRONG;
}

static hfsbi_token hfsbi_token_find_protocol(const hfsb_server *server,
                                             hfsb_http_head    *head) {
    const hfsb_str name = HFSB_LIT("sec-websocket-protocol");
    hfsbi_token    found = HFSBI_TOKEN_ABSENT, one;
    size_t         i;
    for (i = 0; i < head->field_count; i++) {
        if (!hfsb_http_same(head->fields[i].name, name)) continue;
        one = hfsbi_token_of_protocol(server, &head->fields[i]);
        if (one == HFSBI_TOKEN_ABSENT) continue;
        found = found == HFSBI_TOKEN_ABSENT ? one : HFSBI_TOKEN_WRONG;
    }
    return found;
}

/* Looks for the token in the fields that may carry it, and wipes it there.
   X-Sandbox-Authorization decides alone where it is present: in front of a
   private Space, Authorization carries the Hub's token. Where no token is
   needed, or a face looks for its own, Authorization stays for it; for the
   host's `authorize` both stay. */
static hfsbi_token hfsbi_request_token(hfsb_request *r) {
    const hfsb_server *server = r->conn->server;
    const hfsbi_face  *face = hfsbi_request_face(r);
    bool               asks = server->access.authorize != NULL;
    bool keep = server->access.no_auth || asks || (face && face->trusts) ||
                (r->route && r->route->set.no_token);
    hfsbi_token own =
        hfsbi_token_find(server, &r->head, "x-sandbox-authorization", asks);
    hfsbi_token other =
        hfsbi_token_find(server, &r->head, "authorization", keep);
    hfsbi_token offered = hfsbi_token_find_protocol(server, &r->head);
    if (server->access.no_auth) return HFSBI_TOKEN_OK;
    if (!server->access.has_token && !asks) return HFSBI_TOKEN_NONE;
    if (own != HFSBI_TOKEN_ABSENT) return own;
    return other == HFSBI_TOKEN_OK || offered == HFSBI_TOKEN_ABSENT ? other
                                                                    : offered;
}

/* ---- making and freeing ---- */

/* Moves a view into `from` to the copy at `to`; another view (the constant "/"
   for an empty path) stays. */
static void hfsbi_rebase(hfsb_str *view, hfsb_str from, const char *to) {
    if (view->ptr && (uintptr_t)view->ptr >= (uintptr_t)from.ptr &&
        (uintptr_t)view->ptr <= (uintptr_t)(from.ptr + from.len))
        view->ptr = to + (view->ptr - from.ptr);
}

/* One block:  struct | fields | bytes of the head */
HFSBI_FN hfsb_request *
hfsbi_request_new(hfsbi_conn *conn, const hfsb_http_head *head, hfsb_str raw) {
    const hfsb_alloc *alloc = &conn->server->alloc;
    size_t            fields = head->field_count * sizeof(hfsb_http_field), i;
    size_t            size = sizeof(hfsb_request) + fields + raw.len;
    hfsb_request     *r = (hfsb_request *)hfsbi_array(alloc, size, 1);
    char             *bytes;
    if (!r) return NULL;
    memset(r, 0, sizeof *r);
    r->head = *head;
    r->head.fields = (hfsb_http_field *)(void *)(r + 1);
    bytes = (char *)(r + 1) + fields;
    if (raw.len) memcpy(bytes, raw.ptr, raw.len);
    if (fields) memcpy(r->head.fields, head->fields, fields);
    hfsbi_rebase(&r->head.method, raw, bytes);
    hfsbi_rebase(&r->head.target, raw, bytes);
    hfsbi_rebase(&r->head.host, raw, bytes);
    hfsbi_rebase(&r->head.path, raw, bytes);
    hfsbi_rebase(&r->head.query, raw, bytes);
    for (i = 0; i < head->field_count; i++) {
        hfsbi_rebase(&r->head.fields[i].name, raw, bytes);
        hfsbi_rebase(&r->head.fields[i].value, raw, bytes);
    }
    r->conn = conn;
    r->size = size;
    r->file.fd = -1;
    r->began = hfsbi_loop_now(conn->server->loop);
    r->body.complete = raw.len == 0; /* not from a message: a refusal */
    r->parts_text.alloc = r->body.bytes.alloc = r->why.alloc = *alloc;
    r->reply.fields.alloc = r->reply.out.alloc = *alloc;
    r->reply.out_body.alloc = *alloc;
    return r;
}

static hfsb_str hfsbi_request_log_path(const hfsb_request *r) {
    if (r->route && hfsbi_request_has_guard(r, HFSBI_FACE_PATH))
        return r->route->path;
    return r->head.path.len ? r->head.path : r->head.target;
}

static void hfsbi_request_log(hfsb_request *r) {
    hfsbi_server_stats *stats = &r->conn->server->stats;
    hfsb_server_event   event = HFSB_INIT;
    stats->bodies -= r->body.counted;
    stats->bytes_in += r->body.received;
    stats->bytes_out += r->reply.sent;
    if (r->reply.status) {
        stats->requests++;
        stats->by_class[r->reply.status / 100 % 6]++;
    }
    event.what = "request";
    event.method = r->head.method;
    event.path = hfsbi_request_log_path(r);
    event.status = r->reply.status;
    event.duration_ms = hfsbi_loop_now(r->conn->server->loop) - r->began;
    event.bytes_in = r->body.received;
    event.bytes_out = r->reply.sent;
    event.detail = r->reply.status
                       ? hfsb_buf_str(&r->why)
                       : HFSB_LIT("The client went away before the reply.");
    hfsbi_conn_log(r->conn, &event);
}

HFSBI_FN void hfsbi_request_free(hfsb_request *r) {
    const hfsb_alloc *alloc = &r->conn->server->alloc;
    hfsbi_request_log(r);
    hfsbi_idle_end_request(r);
    hfsbi_close(&r->file.fd);
    hfsb_buf_free(&r->parts_text);
    hfsb_buf_free(&r->body.bytes);
    hfsb_buf_free(&r->why);
    hfsb_buf_free(&r->reply.fields);
    hfsb_buf_free(&r->reply.out);
    hfsb_buf_free(&r->reply.out_body);
    hfsb_secret_wipe(r + 1, r->size - sizeof *r);
    hfsbi_array_free(alloc, r, r->size, 1);
}

/* ---- routes ---- */

/* The first part of a path, without its slash; *rest is what follows. */
static hfsb_str hfsbi_path_part(hfsb_str path, hfsb_str *rest) {
    size_t end;
    path = hfsb_str_slice(path, 1, path.len);
    end = hfsb_str_find_byte(path, '/');
    if (end == HFSB_NPOS) end = path.len;
    *rest = hfsb_str_slice(path, end, path.len);
    return hfsb_str_slice(path, 0, end);
}

/* True if the path fits the route's; parts are the matches of its "*". */
static bool hfsbi_path_fits(hfsb_str route, hfsb_str path, hfsb_str *parts) {
    size_t n = 0;
    if (hfsb_str_find_byte(route, '*') == HFSB_NPOS)
        return hfsb_str_equal(route, path);
    while (route.len && path.len && path.ptr[0] == '/') {
        hfsb_str want = hfsbi_path_part(route, &route), is;
        if (hfsb_str_equal(want, HFSB_LIT("**"))) {
            parts[n] = hfsb_str_slice(path, 1, path.len);
            return true;
        }
        is = hfsbi_path_part(path, &path);
        if (hfsb_str_equal(want, HFSB_LIT("*")) && is.len) parts[n++] = is;
        else if (!hfsb_str_equal(want, is)) return false;
    }
    if (hfsb_str_equal(route, HFSB_LIT("/**"))) route.len = 0;
    return route.len == 0 && path.len == 0;
}

static bool hfsbi_method_fits(hfsb_str route, hfsb_str method) {
    return hfsb_str_equal(route, method) ||
           hfsb_str_equal(route, HFSB_LIT("*")) ||
           (hfsb_str_equal(route, HFSB_LIT("GET")) &&
            hfsb_str_equal(method, HFSB_LIT("HEAD")));
}

static bool hfsbi_listener_shows(const hfsbi_listener *at,
                                 const hfsbi_face     *face) {
    return at->face ? at->face == face : !face || !face->alone;
}

/* The path without slashes that do not count. */
static hfsb_str hfsbi_trim_slashes(hfsb_str path) {
    while (path.len > 1 && path.ptr[0] == '/' && path.ptr[1] == '/')
        path = hfsb_str_slice(path, 1, path.len);
    while (path.len > 1 && path.ptr[path.len - 1] == '/') path.len--;
    return path;
}

/* Finds the route. If none fits, *allow lists the methods of the path ("" if
   there is no such path). */
static void hfsbi_request_find_route(hfsb_request *r, char allow[128]) {
    const hfsbi_route *route;
    hfsb_str           trimmed = hfsbi_trim_slashes(r->head.path);
    size_t             n = 0;
    allow[0] = '\0';
    for (route = r->conn->server->routes; route; route = route->next) {
        hfsb_str parts[HFSBI_PARTS] = {{NULL, 0}};
        if (!hfsbi_listener_shows(r->conn->listener, route->face)) continue;
        if (!hfsbi_path_fits(route->path,
                             route->face && route->face->trims ? trimmed
                                                               : r->head.path,
                             parts))
            continue;
        if (route->set.accept &&
            !hfsb_http_field_lists(&r->head, "Accept", route->set.accept))
            continue;
        if (hfsbi_method_fits(route->method, r->head.method)) {
            memcpy(r->parts, parts, sizeof parts);
            r->route = route;
            return;
        }
        if (n + route->method.len + 8 < 128)
            n += (size_t)snprintf(
                allow + n, 128 - n, "%s%s%s", n ? ", " : "", route->set.method,
                hfsb_str_equal(route->method, HFSB_LIT("GET")) ? ", HEAD"
                                                               : "");
    }
}

/* ---- checks before the body ---- */

/* Each of these returns false after it has replied. */

static bool hfsbi_check_host(hfsb_request *r) {
    if (!hfsbi_request_host_ok(r))
        hfsb_reply_error(r, 421,
                         "This server does not answer for that Host: allow it "
                         "with --allow-host (allow_hosts).");
    else if (!hfsbi_request_origin_ok(r))
        hfsb_reply_error(r, 403,
                         "Requests from that Origin are not allowed: allow it "
                         "with --allow-host (allow_hosts).");
    else if (hfsbi_request_is_cross_site(r))
        hfsb_reply_error(r, 403,
                         "Requests from pages of other sites are not "
                         "allowed.");
    else return true;
    return false;
}

/* Appends the paths next to that of the request which take a POST: the tools,
   for one of /api/. */
static void hfsbi_put_neighbours(const hfsb_request *r, hfsb_buf *out) {
    hfsb_str           path = r->head.path;
    const hfsbi_route *at;
    bool               any = false;
    while (path.len && path.ptr[path.len - 1] != '/') path.len--;
    for (at = r->conn->server->routes; at && path.len > 1; at = at->next) {
        hfsb_str base = hfsb_path_base(at->path);
        if (at->face || !hfsb_str_equal(at->method, HFSB_LIT("POST")) ||
            at->path.len != path.len + base.len ||
            !hfsb_str_starts(at->path, path) ||
            hfsb_str_find_byte(base, '*') != HFSB_NPOS)
            continue;
        hfsb_buf_append(out, any ? HFSB_LIT(", ")
                                 : HFSB_LIT(". There is POST "));
        hfsb_buf_append(out, at->path);
        any = true;
    }
}

/* 405 with the methods of the path, or 404. `detail` is fixed; `error` adds
   what there is. */
static void hfsbi_refuse_route(hfsb_request *r, const char *allow) {
    hfsb_buf text = HFSB_INIT;
    text.alloc = r->conn->server->alloc;
    if (*allow) {
        (void)hfsb_reply_field(r, "Allow", hfsb_cstr(allow));
        hfsb_buf_printf(&text, "Method Not Allowed: send %s.", allow);
    } else {
        hfsb_buf_append(&text, HFSB_LIT("Not Found"));
        hfsbi_put_neighbours(r, &text);
    }
    if (r->conn->listener->face || text.status != HFSB_OK)
        hfsb_reply_error(r, *allow ? 405 : 404, "%s",
                         *allow ? "Method Not Allowed" : "Not Found");
    else
        hfsbi_reply_detail(r, *allow ? 405 : 404,
                           *allow ? HFSB_LIT("\"Method Not Allowed\"")
                                  : HFSB_LIT("\"Not Found\""),
                           hfsb_buf_str(&text));
    hfsb_buf_free(&text);
}

static bool hfsbi_check_route(hfsb_request *r, const char *allow) {
    if (r->route) return true;
    if (!hfsbi_http_method_known(r->head.method)) {
        hfsb_reply_error(r, 501, "Unknown request method.");
        return false;
    }
    hfsbi_refuse_route(r, allow);
    return false;
}

/* True if the sender may use the route, by the rules of its face. */
static bool hfsbi_check_face(hfsb_request *r, hfsbi_face *face, bool trusted) {
    r->trusted = trusted;
    if (r->route->set.no_token || r->trusted) return true;
    face->refuse(face, r, face->denied, HFSB_LIT("Missing or invalid token"));
    return false;
}

/* True if the host admits a request without the token. */
static bool hfsbi_ask_host(const hfsb_request *r) {
    const hfsb_server *server = r->conn->server;
    return server->access.authorize &&
           server->access.authorize(server->user, r);
}

static bool hfsbi_check_token(hfsb_request *r, hfsbi_token token) {
#define HFSBI_USE_TOKEN                                                  \
    " bearer token: send \"X-Sandbox-Authorization: Bearer TOKEN\" (or " \
    "Authorization) with the token that the server was started with."
    const hfsbi_access *access = &r->conn->server->access;
    hfsbi_face         *face = r->route->face;
    bool                by_face = face && face->trusts;
    r->trusted = token == HFSBI_TOKEN_OK;
    if (!r->trusted && !by_face && !r->route->set.no_token)
        r->trusted = hfsbi_ask_host(r);
    if (face && (by_face || token != HFSBI_TOKEN_NONE))
        return hfsbi_check_face(r, face,
                                by_face ? face->trusts(face, r) : r->trusted);
    if (r->route->set.no_token || r->trusted) return true;
    if (token == HFSBI_TOKEN_NONE && face) {
        hfsb_reply_error(r, 503, "Sandbox API token not configured");
        return false;
    }
    if (token == HFSBI_TOKEN_NONE) {
        hfsbi_reply_detail(
            r, 503, HFSB_LIT("\"Sandbox API token not configured\""),
            HFSB_LIT("Sandbox API token not configured: start the server with "
                     "SANDBOX_API_TOKEN=TOKEN in its environment, or with "
                     "--token-file FILE."));
        return false;
    }
    (void)hfsb_reply_field(r, "WWW-Authenticate", HFSB_LIT("Bearer"));
    if (!access->has_token && !access->late) /* the host knows what it wants */
        hfsb_reply_error(r, 401, "Not authorized.");
    else if (token == HFSBI_TOKEN_WRONG)
        hfsbi_reply_detail(r, 401, HFSB_LIT("\"Invalid bearer token\""),
                           HFSB_LIT("Invalid" HFSBI_USE_TOKEN));
    else
        hfsbi_reply_detail(r, 401, HFSB_LIT("\"Missing bearer token\""),
                           HFSB_LIT("Missing" HFSBI_USE_TOKEN));
    return false;
#undef HFSBI_USE_TOKEN
}

/* Decodes the parts of the path, so that the checks of a request and its
   handler see the same; on failure they are empty. */
static hfsb_status hfsbi_request_decode_parts(hfsb_request *r, hfsb_err *err) {
    size_t      i, at[HFSBI_PARTS + 1] = {0};
    hfsb_status st = HFSB_OK;
    if (r->route && r->route->set.raw) return HFSB_OK;
    for (i = 0; i < HFSBI_PARTS && st == HFSB_OK; i++) {
        st = hfsb_http_decode(r->parts[i], &r->parts_text, err);
        at[i + 1] = r->parts_text.len;
    }
    for (i = 0; i < HFSBI_PARTS; i++)
        r->parts[i] = st == HFSB_OK
                          ? hfsb_str_slice(hfsb_buf_str(&r->parts_text), at[i],
                                           at[i + 1])
                          : hfsb_str_make("", 0);
    return st;
}

static bool hfsbi_check_parts(hfsb_request *r, hfsb_status st,
                              const hfsb_err *err) {
    if (st == HFSB_OK) return true;
    hfsb_reply_error(r, st == HFSB_NOMEM ? 503 : 400, "%s", err->msg);
    return false;
}

static size_t hfsbi_request_max_body(const hfsb_request *r) {
    const hfsb_route *route = &r->route->set;
    size_t            max = r->conn->server->limits.max_body;
    if (route->max_body) return route->max_body;
    return route->no_token && max > HFSBI_STRANGER ? (size_t)HFSBI_STRANGER
                                                   : max;
}

static bool hfsbi_request_in_pieces(const hfsb_request *r) {
    return r->route->set.begin || r->route->set.body;
}

static void hfsbi_request_too_large(hfsb_request *r) {
    hfsb_reply_error(r, 413, "The body is too large: at most %zu bytes.",
                     hfsbi_request_max_body(r));
}

static bool hfsbi_check_size(hfsb_request *r) {
    if (hfsbi_request_in_pieces(r) || r->head.body != HFSB_HTTP_LENGTH ||
        r->head.length <= hfsbi_request_max_body(r))
        return true;
    hfsbi_request_too_large(r);
    return false;
}

static bool hfsbi_check_expect(hfsb_request *r) {
    hfsb_str expect = hfsb_http_field_find(&r->head, "expect");
    if (!expect.ptr || r->head.minor == 0 ||
        hfsb_http_same(expect, HFSB_LIT("100-continue")))
        return true;
    hfsb_reply_error(r, 417, "Only \"Expect: 100-continue\" is supported.");
    return false;
}

static bool hfsbi_check_stopping(hfsb_request *r) {
    if (!hfsbi_server_is_closing(r->conn->server)) return true;
    hfsb_reply_error(r, 503, "The server is stopping.");
    return false;
}

/* Sends "100 Continue" to a peer that waits for it. */
static void hfsbi_request_continue(hfsb_request *r) {
    bool body = r->head.body == HFSB_HTTP_CHUNKED ||
                (r->head.body == HFSB_HTTP_LENGTH && r->head.length);
    if (!r->head.expect_continue || !body) return;
    if (hfsb_buf_append(&r->reply.out,
                        HFSB_LIT("HTTP/1.1 100 Continue\r\n\r\n")) != HFSB_OK)
        hfsbi_conn_break(r->conn);
    else hfsbi_reply_flush(r);
    r->head.expect_continue = false; /* the body will come */
}

HFSBI_FN void hfsbi_request_check(hfsb_request *r) {
    char        allow[128];
    hfsbi_token token;
    hfsb_err    err = HFSB_INIT;
    hfsb_status st;
    hfsbi_request_find_route(r, allow);
    token = hfsbi_request_token(r); /* first, since it wipes */
    st = hfsbi_request_decode_parts(r, &err);
    if (!hfsbi_check_host(r) || !hfsbi_check_route(r, allow) ||
        (st == HFSB_NOMEM && !hfsbi_check_parts(r, st, &err)) ||
        !hfsbi_check_token(r, token) || !hfsbi_check_parts(r, st, &err) ||
        !hfsbi_check_size(r) || !hfsbi_check_expect(r) ||
        !hfsbi_check_stopping(r))
        return;
    if (r->route->set.begin) r->route->set.begin(r->route->set.user, r);
    /* a handler that pauses at once may yet refuse: "100" waits for resume */
    if (r->reply.state == HFSBI_REPLY_NONE &&
        r->conn->state == HFSBI_CONN_BODY)
        hfsbi_request_continue(r);
}

/* ---- the body ---- */

/* Bytes that bodies may still take. What commands hold of them as their
   standard input counts as well. */
static size_t hfsbi_bodies_room(const hfsb_server *server) {
    size_t max = server->limits.max_bodies;
    size_t used = server->stats.bodies + server->group.input;
    return used < max ? max - used : 0;
}

/* The body of a request without a token may contain one (/init). Its buffer
   has its final size at once, since growing would leave copies. A route that
   takes larger bodies is not such a route: there a stranger reserves no more
   than it sends. */
static bool hfsbi_request_make_room(hfsb_request *r) {
    size_t max = hfsbi_request_max_body(r);
    if (r->body.bytes.len || !r->route->set.no_token || max > HFSBI_STRANGER)
        return true;
    if (r->head.body == HFSB_HTTP_LENGTH) max = (size_t)r->head.length;
    return hfsb_buf_reserve(&r->body.bytes, max) == HFSB_OK;
}

static void hfsbi_request_store(hfsb_request *r, hfsb_str piece) {
    hfsb_server   *server = r->conn->server;
    hfsbi_body_in *body = &r->body;
    if (body->bytes.len + piece.len > hfsbi_request_max_body(r)) {
        hfsbi_request_too_large(r);
    } else if (piece.len > hfsbi_bodies_room(server) ||
               !hfsbi_request_make_room(r) ||
               hfsb_buf_append(&body->bytes, piece) != HFSB_OK) {
        (void)hfsb_reply_field(r, "Retry-After", HFSB_LIT("1"));
        hfsb_reply_error(r, 503,
                         "There is no memory for this body now: try again "
                         "later.");
    } else {
        server->stats.bodies += piece.len;
        body->counted += piece.len;
    }
}

HFSBI_FN void hfsbi_request_add_body(hfsb_request *r, hfsb_str piece) {
    r->body.received += piece.len;
    if (r->reply.state != HFSBI_REPLY_NONE) return;
    if (!hfsbi_request_in_pieces(r)) hfsbi_request_store(r, piece);
    else if (r->route->set.body)
        r->route->set.body(r->route->set.user, r, piece);
}

/* ---- work in a pool thread ---- */

static void hfsbi_work_run(hfsbi_task *task) {
    hfsbi_pool_work *work =
        (hfsbi_pool_work *)(void *)task; /* its first member */
    work->run(work->user);
}

static void hfsbi_work_done(hfsbi_task *task) {
    hfsb_request *r =
        (hfsb_request *)(void *)((char *)task - offsetof(hfsb_request, work));
    hfsbi_conn *conn = r->conn;
    r->work.active = false;
    r->work.done(r->work.user, r);
    /* a closed connection waited for this, unless done started more */
    if (conn->state == HFSBI_CONN_CLOSED && !r->work.active)
        hfsbi_conn_free(conn);
    else hfsbi_conn_touch(conn);
}

HFSBI_FN void hfsbi_request_work(
    hfsb_request *request, const hfsbi_rights *rights, void (*run)(void *user),
    void (*done)(void *user, hfsb_request *request), void *user) {
    static const hfsbi_rights none = HFSB_INIT;
    hfsbi_pool_work          *work = &request->work;
    work->task.run = hfsbi_work_run;
    work->task.done = hfsbi_work_done;
    work->task.rights = rights ? *rights : none;
    work->run = run;
    work->done = done;
    work->user = user;
    work->active = true;
    hfsbi_loop_work(request->conn->server->loop, &work->task);
}

HFSBI_FN bool hfsbi_request_is_gone(const hfsb_request *request) {
    return request->conn->state == HFSBI_CONN_CLOSED;
}

/* ---- the handler ---- */

static void hfsbi_handler_run(void *user) {
    hfsb_request *r = (hfsb_request *)user;
    r->route->set.fn(r->route->set.user, r);
}

static void hfsbi_handler_done(void *user, hfsb_request *r) {
    (void)user;
    if (!hfsbi_request_is_gone(r)) hfsbi_reply_send_held(r);
}

HFSBI_FN bool hfsbi_request_in_thread(const hfsb_request *r) {
    return r->work.active && r->work.run == hfsbi_handler_run;
}

HFSBI_FN void hfsbi_request_handle(hfsb_request *r) {
    if (r->reply.state != HFSBI_REPLY_NONE) return;
    if (r->route->set.threaded)
        hfsbi_request_work(r, NULL, hfsbi_handler_run, hfsbi_handler_done, r);
    else r->route->set.fn(r->route->set.user, r);
}

/* The reply's state belongs to the thread while the handler runs there. */
HFSBI_FN void hfsbi_request_call_gone(hfsb_request *r) {
    hfsb_route_fn gone = r->gone.fn;
    bool          open;
    if (hfsbi_request_in_thread(r)) return;
    open = r->reply.state == HFSBI_REPLY_NONE ||
           r->reply.state == HFSBI_REPLY_PIECES;
    r->gone.fn = r->eof.fn = r->drained.fn = NULL;
    if (gone && open) gone(r->gone.user, r);
}

/* ---- for handlers ---- */

const hfsb_http_head *hfsb_request_head(const hfsb_request *request) {
    return &request->head;
}

hfsb_str hfsb_request_part(const hfsb_request *request, size_t n) {
    return n < HFSBI_PARTS ? request->parts[n] : hfsb_str_make("", 0);
}

hfsb_status hfsb_request_query(const hfsb_request *request, const char *key,
                               hfsb_buf *out, hfsb_err *err) {
    return hfsb_http_query_find(request->head.query, key, out, err);
}

long long hfsb_request_query_int(const hfsb_request *request, const char *key,
                                 long long fallback) {
    const unsigned long long max = ~0ull >> 1; /* of a long long */
    hfsb_buf                 text = HFSB_INIT;
    hfsb_str                 s;
    unsigned long long       n;
    bool                     minus;
    text.alloc = request->conn->server->alloc;
    if (hfsb_request_query(request, key, &text, NULL) == HFSB_OK) {
        s = hfsb_buf_str(&text);
        minus = hfsb_str_starts(s, HFSB_LIT("-"));
        s = hfsb_str_slice(s, minus, s.len);
        if (s.len && hfsbi_read_decimal(s, max + minus, &n) == s.len)
            fallback = minus && n ? -(long long)(n - 1) - 1 : (long long)n;
    }
    hfsb_buf_free(&text);
    return fallback;
}

hfsb_str hfsb_request_body(const hfsb_request *request) {
    return hfsb_buf_str(&request->body.bytes);
}

bool hfsb_request_json(hfsb_request *request, hfsb_json_doc *doc) {
    hfsb_err    err;
    hfsb_status st;
    memset(doc, 0, sizeof *doc);
    doc->alloc = request->conn->server->alloc;
    st = hfsb_json_parse(hfsb_request_body(request), NULL, doc, &err);
    if (st == HFSB_OK) return true;
    hfsb_reply_error(request, st == HFSB_NOMEM ? 503 : 400, "%s", err.msg);
    return false;
}

hfsb_server *hfsb_request_server(const hfsb_request *request) {
    return request->conn->server;
}

void hfsb_request_set(hfsb_request *request, void *own) {
    request->own = own;
}

void *hfsb_request_get(const hfsb_request *request) {
    return request->own;
}

void hfsb_request_on_gone(hfsb_request *request, hfsb_route_fn gone,
                          void *user) {
    request->gone.fn = gone;
    request->gone.user = user;
}

void hfsb_request_pause(hfsb_request *request) {
    request->tunnel.paused = request->tunnel.fn != NULL;
    if (request->tunnel.paused) hfsbi_conn_touch(request->conn);
    hfsbi_conn_pause(request->conn);
}

void hfsb_request_resume(hfsb_request *request) {
    if (request->tunnel.paused) hfsbi_conn_touch(request->conn);
    request->tunnel.paused = false;
    if (hfsbi_conn_resume(request->conn) &&
        request->reply.state == HFSBI_REPLY_NONE)
        hfsbi_request_continue(request);
}

HFSBI_FN bool hfsbi_request_is_trusted(const hfsb_request *request) {
    return request->trusted;
}

HFSBI_FN unsigned long long hfsbi_request_serial(const hfsb_request *request) {
    return request->conn->serial;
}

HFSBI_FN bool hfsbi_request_is_json(const hfsb_request *request) {
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_str              type = hfsb_http_field_find(head, "Content-Type");
    size_t                end = hfsb_str_find_byte(type, ';');
    if (hfsb_http_field_count(head, "Content-Type") != 1) return false;
    type = hfsbi_trim(hfsb_str_slice(type, 0, end));
    if (hfsb_http_same(type, HFSB_LIT("application/json"))) return true;
    return type.len > 5 && hfsb_str_find_byte(type, '/') != HFSB_NPOS &&
           hfsb_http_same(hfsb_str_slice(type, type.len - 5, type.len),
                          HFSB_LIT("+json"));
}

HFSBI_FN void hfsbi_request_take_body(hfsb_request *request, hfsb_buf *out) {
    *out = request->body.bytes;
    memset(&request->body.bytes, 0, sizeof request->body.bytes);
    request->body.bytes.alloc = out->alloc;
}

HFSBI_FN void hfsbi_request_on_eof(hfsb_request *request, hfsb_route_fn fn,
                                   void *user) {
    request->eof.fn = fn;
    request->eof.user = user;
}
