/* request.c - a request: from its head to its handler. */
#include "server_private.h"

/* ==== server guard ==== */

/* who may ask: token, Host, Origin. */

/* ---- names ---- */

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
    size_t at = 0;
    while (at < server->hosts.len) {
        hfsb_str one = hfsb_cstr(server->hosts.ptr + at);
        if (hfsb_http_same(name, one)) return true;
        at += one.len + 1;
    }
    return false;
}

/* One of the names that lead here and nowhere else. */
static bool hfsbi_guard_name(const hfsb_server    *server,
                             const hfsbi_listener *at, hfsb_str name) {
    name = hfsbi_host_name(name);
    return name.len > 0 && (hfsbi_host_is_loopback(name) ||
                            hfsb_http_same(name, hfsb_cstr(at->address)) ||
                            hfsb_http_same(name, hfsb_buf_str(&at->name)) ||
                            hfsbi_host_is_listed(server, name));
}

/* The token is the guard where there is one and no name was given. */
static bool hfsbi_guard_any(const hfsb_server    *server,
                            const hfsbi_listener *at) {
    return server->any_host ||
           (server->has_token && !at->loopback && !server->some_hosts);
}

/* True when name (a Host or the host of an Origin, with or without a port) may
   be used at this listener. */
static bool hfsbi_guard_host(const hfsb_server    *server,
                             const hfsbi_listener *at, hfsb_str name) {
    /* a Unix socket has no name that could be another's */
    return at->local || hfsbi_guard_any(server, at) ||
           hfsbi_guard_name(server, at, name);
}

static bool hfsbi_guard_origin(const hfsb_server    *server,
                               const hfsbi_listener *at, hfsb_str origin) {
    size_t slash;
    if (!origin.ptr) return true;
    slash = hfsb_str_find(origin, HFSB_LIT("://"));
    if (slash == HFSB_NPOS) return false; /* "null" and other things */
    return hfsbi_guard_any(server, at) ||
           hfsbi_guard_name(server, at,
                            hfsb_str_slice(origin, slash + 3, origin.len));
}

/* ---- the token ---- */

/* Takes as long for every digest. */
static bool hfsbi_digest_same(const unsigned char *a, const unsigned char *b) {
    unsigned diff = 0;
    size_t   i;
    for (i = 0; i < HFSB_SHA256_SIZE; i++) diff |= (unsigned)(a[i] ^ b[i]);
    return diff == 0;
}

static hfsbi_guard hfsbi_guard_value(const hfsb_server *server,
                                     hfsb_str           value) {
    unsigned char digest[HFSB_SHA256_SIZE];
    hfsb_sha256   sha;
    size_t        space = hfsb_str_find_byte(value, ' ');
    bool          same;
    if (space == HFSB_NPOS ||
        !hfsb_http_same(hfsb_str_slice(value, 0, space), HFSB_LIT("bearer")))
        return HFSBI_GUARD_MISSING;
    value = hfsbi_trim(hfsb_str_slice(value, space, value.len));
    if (value.len == 0) return HFSBI_GUARD_MISSING;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, value);
    hfsb_sha256_finish(&sha, digest);
    same = hfsbi_digest_same(digest, server->token);
    hfsbi_wipe(&sha, sizeof sha);
    return same ? HFSBI_GUARD_OK : HFSBI_GUARD_WRONG;
}

/* What the fields of one name say; all are wiped. */
static hfsbi_guard hfsbi_guard_fields(const hfsb_server *server,
                                      hfsb_http_head *head, const char *name) {
    hfsbi_guard found = HFSBI_GUARD_MISSING;
    size_t      i, n = 0;
    for (i = 0; i < head->field_count; i++) {
        hfsb_http_field *f = &head->fields[i];
        if (!hfsb_http_same(f->name, hfsb_cstr(name))) continue;
        if (server->has_token) found = hfsbi_guard_value(server, f->value);
        hfsbi_wipe((void *)(uintptr_t)f->value.ptr, f->value.len);
        f->value.len = 0;
        n++;
    }
    return n > 1 ? HFSBI_GUARD_WRONG : found; /* two could be read two ways */
}

HFSBI_FN hfsbi_guard hfsbi_guard_token(const hfsb_server *server,
                                       hfsb_http_head    *head) {
    hfsbi_guard found =
        hfsbi_guard_fields(server, head, "x-sandbox-authorization");
    if (server->no_auth) return HFSBI_GUARD_OK;
    return server->has_token ? found : HFSBI_GUARD_NONE;
}

/* For a route that takes it in Authorization, too: the same there, unless it
   was found. */
static hfsbi_guard hfsbi_guard_bearer(const hfsb_server *server,
                                      hfsb_http_head    *head,
                                      hfsbi_guard        token) {
    hfsbi_guard other = hfsbi_guard_fields(server, head, "authorization");
    /* behind the edge of a private Space Authorization is the Hub's own */
    if (hfsb_http_field_count(head, "x-sandbox-authorization")) return token;
    return token == HFSBI_GUARD_MISSING ? other : token;
}

/* ---- making and freeing ---- */

/* The same bytes in the copy; what is not of these bytes (a path "/" that
   stands for none) stays. */
static void hfsbi_rebase(hfsb_str *view, hfsb_str from, const char *to) {
    if (view->ptr && (uintptr_t)view->ptr >= (uintptr_t)from.ptr &&
        (uintptr_t)view->ptr <= (uintptr_t)(from.ptr + from.len))
        view->ptr = to + (view->ptr - from.ptr);
}

/*  struct | fields | the bytes of the head */
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
    r->file = -1;
    r->began = r->body_at = hfsbi_loop_now(conn->server->loop);
    r->body_done = raw.len == 0; /* no message of its own: a refusal */
    r->parts_text.alloc = r->body.alloc = r->fields.alloc = *alloc;
    r->why.alloc = *alloc;
    r->out.alloc = r->out_body.alloc = *alloc;
    return r;
}

static void hfsbi_request_count(hfsb_request *r) {
    hfsbi_server_stats *stats = &r->conn->server->stats;
    hfsb_server_event   event = HFSB_INIT;
    stats->bodies -= r->counted;
    stats->bytes_in += r->body_len;
    stats->bytes_out += r->sent;
    if (r->status) {
        stats->requests++;
        stats->by_class[r->status / 100 % 6]++;
    } else if (hfsb_buf_append(&r->why, HFSB_LIT("The client went away before "
                                                 "the reply.")) != HFSB_OK) {
        hfsb_buf_truncate(&r->why, 0); /* the status tells, too */
    }
    event.what = "request";
    event.method = r->head.method;
    event.path = r->head.path.len ? r->head.path : r->head.target;
    event.status = r->status;
    event.duration_ms = hfsbi_loop_now(r->conn->server->loop) - r->began;
    event.bytes_in = r->body_len;
    event.bytes_out = r->sent;
    event.detail = hfsb_buf_str(&r->why);
    hfsbi_conn_log(r->conn, &event);
}

HFSBI_FN void hfsbi_request_free(hfsb_request *r) {
    const hfsb_alloc *alloc = &r->conn->server->alloc;
    hfsbi_request_count(r);
    hfsbi_close(&r->file);
    hfsb_buf_free(&r->parts_text);
    hfsb_buf_free(&r->body);
    hfsb_buf_free(&r->fields);
    hfsb_buf_free(&r->why);
    hfsb_buf_free(&r->out);
    hfsb_buf_free(&r->out_body);
    hfsbi_wipe(r + 1, r->size - sizeof *r);
    hfsbi_array_free(alloc, r, r->size, 1);
}

HFSBI_FN void hfsbi_request_tell_gone(hfsb_request *r) {
    hfsb_route_fn gone = r->gone;
    r->gone = NULL;
    if (gone && r->called && !r->in_thread &&
        (r->reply == HFSBI_REPLY_NONE || r->reply == HFSBI_REPLY_PIECES))
        gone(r->gone_user, r);
    r->called = false;
}

/* ---- routes ---- */

/* The first part of a path, behind its slash; *rest is what follows. */
static hfsb_str hfsbi_path_part(hfsb_str path, hfsb_str *rest) {
    size_t end;
    path = hfsb_str_slice(path, 1, path.len);
    end = hfsb_str_find_byte(path, '/');
    if (end == HFSB_NPOS) end = path.len;
    *rest = hfsb_str_slice(path, end, path.len);
    return hfsb_str_slice(path, 0, end);
}

/* Whether a path is one of the route's; parts are what "*" stands for. */
static bool hfsbi_path_fits(hfsb_str route, hfsb_str path, hfsb_str *parts) {
    size_t n = 0;
    if (hfsb_str_find_byte(route, '*') == HFSB_NPOS)
        return hfsb_str_equal(route, path);
    while (route.len && path.len && path.ptr[0] == '/') {
        hfsb_str want = hfsbi_path_part(route, &route);
        hfsb_str is = hfsbi_path_part(path, &path);
        if (hfsb_str_equal(want, HFSB_LIT("*")) && is.len) parts[n++] = is;
        else if (!hfsb_str_equal(want, is)) return false;
    }
    return route.len == 0 && path.len == 0;
}

static bool hfsbi_method_fits(hfsb_str route, hfsb_str method) {
    return hfsb_str_equal(route, method) ||
           (hfsb_str_equal(route, HFSB_LIT("GET")) &&
            hfsb_str_equal(method, HFSB_LIT("HEAD")));
}

/* Finds the route; else replies with 404, or 405 and what is allowed. */
static bool hfsbi_request_route(hfsb_request *r) {
    const hfsbi_route *route;
    char               allow[128] = "";
    size_t             n = 0;
    for (route = r->conn->server->routes; route; route = route->next) {
        hfsb_str parts[HFSBI_PARTS] = {{NULL, 0}};
        if (!hfsbi_path_fits(route->path, r->head.path, parts)) continue;
        if (hfsbi_method_fits(route->method, r->head.method)) {
            memcpy(r->parts, parts, sizeof parts);
            r->route = route;
            return true;
        }
        if (n + route->method.len + 8 < sizeof allow)
            n += (size_t)snprintf(
                allow + n, sizeof allow - n, "%s%s%s", n ? ", " : "",
                route->set.method,
                hfsb_str_equal(route->method, HFSB_LIT("GET")) ? ", HEAD"
                                                               : "");
    }
    if (n) (void)hfsb_reply_field(r, "Allow", hfsb_cstr(allow));
    hfsb_reply_error(r, n ? 405 : 404, "%s",
                     n ? "Method Not Allowed" : "Not Found");
    return false;
}

/* The parts of its path, decoded; false when it has replied. */
static bool hfsbi_request_decode(hfsb_request *r) {
    size_t   i, at[HFSBI_PARTS + 1] = {0};
    hfsb_err err;
    for (i = 0; i < HFSBI_PARTS; i++) {
        hfsb_status st = hfsb_http_decode(r->parts[i], &r->parts_text, &err);
        if (st != HFSB_OK) {
            hfsb_reply_error(r, st == HFSB_NOMEM ? 503 : 400, "%s", err.msg);
            return false;
        }
        at[i + 1] = r->parts_text.len;
    }
    for (i = 0; i < HFSBI_PARTS; i++)
        r->parts[i] =
            hfsb_str_slice(hfsb_buf_str(&r->parts_text), at[i], at[i + 1]);
    return true;
}

/* ---- checks before the body ---- */

static bool hfsbi_request_guard(hfsb_request *r) {
    const hfsbi_conn *conn = r->conn;
    if (!hfsbi_guard_host(conn->server, conn->listener, r->head.host)) {
        hfsb_reply_error(r, 421,
                         "This server does not answer for that Host: allow it "
                         "with --allow-host (allow_hosts).");
        return false;
    }
    if (hfsb_http_field_count(&r->head, "origin") < 2 &&
        hfsbi_guard_origin(conn->server, conn->listener,
                           hfsb_http_field_find(&r->head, "origin")))
        return true;
    hfsb_reply_error(r, 403, "Requests from that Origin are not allowed.");
    return false;
}

static bool hfsbi_request_token(hfsb_request *r, hfsbi_guard token) {
    if (r->route->set.bearer)
        token = hfsbi_guard_bearer(r->conn->server, &r->head, token);
    r->trusted = token == HFSBI_GUARD_OK;
    if (r->route->set.no_token || r->trusted) return true;
    if (token == HFSBI_GUARD_NONE) {
        hfsb_reply_error(r, 503, "Sandbox API token not configured");
        return false;
    }
    (void)hfsb_reply_field(r, "WWW-Authenticate", HFSB_LIT("Bearer"));
    hfsb_reply_error(r, 401, "%s",
                     token == HFSBI_GUARD_MISSING ? "Missing bearer token"
                                                  : "Invalid bearer token");
    return false;
}

static size_t hfsbi_request_max_body(const hfsb_request *r) {
    const hfsb_route *route = &r->route->set;
    size_t            max = r->conn->server->max_body;
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

static bool hfsbi_request_body_fits(hfsb_request *r) {
    if (hfsbi_request_in_pieces(r) || r->head.body != HFSB_HTTP_LENGTH ||
        r->head.length <= hfsbi_request_max_body(r))
        return true;
    hfsbi_request_too_large(r);
    return false;
}

static bool hfsbi_request_expects(hfsb_request *r) {
    hfsb_str expect = hfsb_http_field_find(&r->head, "expect");
    if (!expect.ptr || r->head.minor == 0 ||
        hfsb_http_same(expect, HFSB_LIT("100-continue")))
        return true;
    hfsb_reply_error(r, 417, "Only \"Expect: 100-continue\" is known.");
    return false;
}

/* A peer that waits for it is told to send its body. */
static void hfsbi_request_continue(hfsb_request *r) {
    bool body = r->head.body == HFSB_HTTP_CHUNKED ||
                (r->head.body == HFSB_HTTP_LENGTH && r->head.length);
    if (!r->head.expect_continue || !body) return;
    if (hfsb_buf_append(&r->out, HFSB_LIT("HTTP/1.1 100 Continue\r\n\r\n")) !=
        HFSB_OK)
        r->conn->broken = true;
    else hfsbi_reply_flush(r);
    r->head.expect_continue = false; /* the body will come */
}

HFSBI_FN bool hfsbi_request_is_unwanted(const hfsb_request *r) {
    return r->discard || (r->conn->server->has_token && !r->trusted);
}

HFSBI_FN void hfsbi_request_check(hfsb_request *r, hfsbi_guard token) {
    const hfsb_server *server = r->conn->server;
    if (!hfsbi_request_guard(r) || !hfsbi_request_route(r) ||
        !hfsbi_request_token(r, token) || !hfsbi_request_decode(r) ||
        !hfsbi_request_body_fits(r) || !hfsbi_request_expects(r))
        return;
    if (server->phase) {
        hfsb_reply_error(r, 503, "The server is stopping.");
        return;
    }
    if (r->route->set.begin) {
        r->called = true;
        r->route->set.begin(r->route->set.user, r);
    }
    /* who pauses at once may yet refuse: "100" waits until it goes on */
    if (r->reply == HFSBI_REPLY_NONE && !r->paused) hfsbi_request_continue(r);
}

/* ---- the body ---- */

static void hfsbi_request_store(hfsb_request *r, hfsb_str piece) {
    hfsb_server *server = r->conn->server;
    if (r->body.len + piece.len > hfsbi_request_max_body(r)) {
        hfsbi_request_too_large(r);
    } else if (piece.len > server->max_bodies - server->stats.bodies ||
               hfsb_buf_append(&r->body, piece) != HFSB_OK) {
        (void)hfsb_reply_field(r, "Retry-After", HFSB_LIT("1"));
        hfsb_reply_error(r, 503,
                         "There is no memory for this body now: try "
                         "again later.");
    } else {
        server->stats.bodies += piece.len;
        r->counted += piece.len;
    }
}

HFSBI_FN void hfsbi_request_piece(hfsb_request *r, hfsb_str piece) {
    r->body_len += piece.len;
    if (r->reply != HFSBI_REPLY_NONE) return; /* it is not wanted */
    if (!hfsbi_request_in_pieces(r)) {
        hfsbi_request_store(r, piece);
    } else if (r->route->set.body) {
        r->called = true;
        r->route->set.body(r->route->set.user, r, piece);
    }
}

/* In a thread. */
static void hfsbi_request_run(hfsbi_task *task) {
    hfsb_request *r =
        (hfsb_request *)(void *)((char *)task - offsetof(hfsb_request, task));
    r->route->set.fn(r->route->set.user, r);
}

static void hfsbi_request_ran(hfsbi_task *task) {
    hfsb_request *r =
        (hfsb_request *)(void *)((char *)task - offsetof(hfsb_request, task));
    hfsbi_conn *conn = r->conn;
    r->in_thread = false;
    if (hfsbi_conn_task_done(conn) || conn->dead) return;
    hfsbi_reply_from_thread(r);
}

HFSBI_FN void hfsbi_request_complete(hfsb_request *r) {
    r->body_done = true;
    if (r->reply != HFSBI_REPLY_NONE) return;
    r->called = true;
    if (!r->route->set.threaded) {
        r->route->set.fn(r->route->set.user, r);
        return;
    }
    r->in_thread = true;
    r->conn->tasks++;
    r->task.run = hfsbi_request_run;
    r->task.done = hfsbi_request_ran;
    hfsbi_loop_work(r->conn->server->loop, &r->task);
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

hfsb_str hfsb_request_body(const hfsb_request *request) {
    return hfsb_buf_str(&request->body);
}

HFSBI_FN void hfsbi_request_take_body(hfsb_request *request, hfsb_buf *out) {
    *out = request->body;
    memset(&request->body, 0, sizeof request->body);
    request->body.alloc = out->alloc;
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
    request->gone = gone;
    request->gone_user = user;
}

HFSBI_FN void hfsbi_request_on_eof(hfsb_request *request, hfsb_route_fn fn,
                                   void *user) {
    request->eof = fn;
    request->eof_user = user;
}

void hfsb_request_pause(hfsb_request *request) {
    if (!request->paused)
        request->paused_at = hfsbi_loop_now(request->conn->server->loop);
    request->paused = true;
}

/* The time in which nothing was read is not the peer's. */
void hfsb_request_resume(hfsb_request *request) {
    long long now = hfsbi_loop_now(request->conn->server->loop);
    if (request->paused) {
        request->body_at += now - request->paused_at;
        request->conn->moved = now;
    }
    request->paused = false;
    if (request->reply == HFSBI_REPLY_NONE) hfsbi_request_continue(request);
    hfsbi_conn_poke(request->conn);
}

HFSBI_FN bool hfsbi_request_trusted(const hfsb_request *request) {
    return request->trusted;
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
