/* server_guard.c - who may ask: token, Host, Origin. Depends on: hash,
   http. */
#include "server_conn.h"

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

HFSBI_FN bool hfsbi_guard_host(const hfsb_server    *server,
                               const hfsbi_listener *at, hfsb_str name) {
    /* a Unix socket has no name that could be another's */
    return at->local || hfsbi_guard_any(server, at) ||
           hfsbi_guard_name(server, at, name);
}

HFSBI_FN bool hfsbi_guard_origin(const hfsb_server    *server,
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

HFSBI_FN hfsbi_guard hfsbi_guard_bearer(const hfsb_server *server,
                                        hfsb_http_head    *head,
                                        hfsbi_guard        token) {
    hfsbi_guard other = hfsbi_guard_fields(server, head, "authorization");
    /* behind the edge of a private Space Authorization is the Hub's own */
    if (hfsb_http_field_count(head, "x-sandbox-authorization")) return token;
    return token == HFSBI_GUARD_MISSING ? other : token;
}
