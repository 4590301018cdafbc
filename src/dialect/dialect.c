/* dialect.c - opens the protocols of others on a server.

   A dialect is a part of the server with a tools object of its own, opened
   like that of /api: the same root, environment, confinement, limits and
   journal, another `who`. Like all others, its commands end when the server
   stops. */
#include "dialect_private.h"

/* ---- the list ---- */

/* Those of HFSB_DIALECTS, see dialect.h; each returns its kind. */
#define HFSB_DIALECT_HF            hfsbi_dialect_hf
#define HFSB_DIALECT_CODEX         hfsbi_dialect_codex
#define HFSB_DIALECT_AGENT_SANDBOX hfsbi_dialect_agent_sandbox
#define HFSB_DIALECT_E2B           hfsbi_dialect_e2b
#ifndef HFSB_DIALECTS
#define HFSB_DIALECTS                                                \
    HFSB_DIALECT_HF, HFSB_DIALECT_CODEX, HFSB_DIALECT_AGENT_SANDBOX, \
        HFSB_DIALECT_E2B
#endif
static const hfsbi_dialect_kind *(*const hfsbi_dialects[])(void) = {
    HFSB_DIALECTS, NULL};

static const hfsbi_dialect_kind *hfsbi_dialect_find(const char *name) {
    size_t i;
    for (i = 0; name && hfsbi_dialects[i]; i++)
        if (strcmp(hfsbi_dialects[i]()->name, name) == 0)
            return hfsbi_dialects[i]();
    return NULL;
}

const char *hfsb_dialect_name(size_t n) {
    size_t i;
    for (i = 0; hfsbi_dialects[i]; i++)
        if (i == n) return hfsbi_dialects[i]()->name;
    return NULL;
}

/* ---- the part of the server ---- */

static void hfsbi_dialect_end(hfsbi_server_part *part) {
    hfsbi_jobs_end(((hfsbi_dialect *)(void *)part)->tools, HFSB_LIT(""));
}

static bool hfsbi_dialect_busy(hfsbi_server_part *part) {
    return hfsbi_tools_in_use(((hfsbi_dialect *)(void *)part)->tools);
}

static void hfsbi_dialect_free(hfsbi_server_part *part) {
    hfsbi_dialect *d = (hfsbi_dialect *)(void *)part;
    hfsb_alloc     alloc = d->alloc;
    if (d->kind->close) d->kind->close(d);
    if (d->tools) hfsbi_tools_free(d->tools);
    hfsbi_array_free(&alloc, d, d->kind->size, 1);
}

static hfsbi_dialect *hfsbi_dialect_new(hfsb_server              *server,
                                        const hfsbi_dialect_kind *kind,
                                        const hfsb_dialect_opts  *opts) {
    const hfsb_alloc *alloc = hfsbi_server_alloc(server);
    hfsbi_dialect    *d = (hfsbi_dialect *)hfsbi_array(alloc, kind->size, 1);
    if (!d) return NULL;
    memset(d, 0, kind->size);
    d->kind = kind;
    d->server = server;
    d->loop = hfsbi_server_loop(server);
    d->alloc = *alloc;
    d->part.end = hfsbi_dialect_end;
    d->part.busy = hfsbi_dialect_busy;
    d->part.free = hfsbi_dialect_free;
    d->face.alone = opts->own_port;
    d->face.denied = 401;
    d->has_token = opts->token.len > 0;
    if (d->has_token) hfsbi_dialect_digest(opts->token, d->token);
    return d;
}

static hfsb_status hfsbi_dialect_unknown(const char *name, hfsb_err *err) {
    const char *known;
    size_t      i;
    hfsbi_fail(err, HFSB_ARG, 0, "There is no dialect \"");
    hfsbi_err_quote(err, hfsb_cstr(name), 40);
    hfsbi_err_add(err, "\". There are: ");
    for (i = 0; (known = hfsb_dialect_name(i)) != NULL; i++)
        hfsbi_err_add(err, "%s%s", i ? ", " : "", known);
    hfsbi_err_add(err, ".");
    return HFSB_ARG;
}

hfsb_status hfsb_server_add_dialect(hfsb_server             *server,
                                    const hfsb_dialect_opts *opts,
                                    unsigned *bound, hfsb_err *err) {
    const hfsbi_dialect_kind *kind = hfsbi_dialect_find(opts->name);
    const hfsb_tools         *like = hfsb_server_tools(server);
    hfsbi_dialect            *d;
    hfsb_status               st;
    if (!kind) return hfsbi_dialect_unknown(opts->name, err);
    if (!like)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A dialect needs the sandbox: call "
                          "hfsb_server_add_sandbox() before.");
    d = hfsbi_dialect_new(server, kind, opts);
    if (!d) return hfsbi_fail_status(err, HFSB_NOMEM, "Adding a dialect");
    st = hfsbi_tools_open_like(like, kind->name, &d->tools, err);
    if (st != HFSB_OK) {
        hfsbi_dialect_free(&d->part);
        return st;
    }
    /* from here on it lives as long as the server, which has its routes */
    hfsbi_server_part_add(server, &d->part);
    st = kind->open(d, opts, err);
    if (st == HFSB_OK && opts->on_fds && !d->part.place)
        st = hfsbi_fail(err, HFSB_ARG, 0,
                        "The dialect %s is not for descriptors.", kind->name);
    if (st == HFSB_OK && opts->own_port)
        st = hfsbi_face_listen(server, &d->face, opts->host, opts->port, bound,
                               err);
    return st;
}

/* ---- what dialects share ---- */

HFSBI_FN hfsb_status hfsbi_dialect_add(hfsbi_dialect             *d,
                                       const hfsbi_dialect_route *routes,
                                       hfsb_err                  *err) {
    hfsb_status st = HFSB_OK;
    for (; st == HFSB_OK && routes->method; routes++) {
        hfsb_route route = HFSB_INIT;
        route.method = routes->method;
        route.path = routes->path;
        route.fn = routes->fn;
        route.user = d;
        route.no_token = routes->open;
        route.begin = routes->begin;
        route.body = routes->body;
        st = hfsbi_face_add(d->server, &d->face, &route, err);
    }
    return st;
}

HFSBI_FN hfsb_str hfsbi_dialect_setting(const hfsb_dialect_opts *opts,
                                        const char              *name) {
    size_t n = strlen(name), i;
    for (i = 0; opts->settings && opts->settings[i]; i++)
        if (strncmp(opts->settings[i], name, n) == 0 &&
            opts->settings[i][n] == '=')
            return hfsb_cstr(opts->settings[i] + n + 1);
    return hfsb_str_make("", 0);
}

HFSBI_FN hfsbi_dialect *hfsbi_dialect_of(hfsbi_face *face) {
    return (hfsbi_dialect *)(void *)((char *)face -
                                     offsetof(hfsbi_dialect, face));
}

HFSBI_FN hfsbi_face_guard hfsbi_dialect_guard(const hfsbi_dialect *d) {
    return d->has_token || !hfsbi_server_is_open(d->server)
               ? HFSBI_FACE_TOKEN
               : HFSBI_FACE_SERVER;
}

HFSBI_FN bool hfsbi_dialect_trusts(hfsbi_dialect *d, hfsb_request *request,
                                   const char *field, const char *scheme) {
    const unsigned char *digest =
        d->has_token ? d->token : hfsbi_server_token(d->server);
    if (!digest) return hfsbi_server_is_open(d->server);
    return hfsbi_request_proves(request, field, scheme, digest);
}

HFSBI_FN void hfsbi_dialect_digest(hfsb_str      token,
                                   unsigned char out[HFSB_SHA256_SIZE]) {
    hfsb_sha256 sha;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, token);
    hfsb_sha256_finish(&sha, out);
    hfsb_secret_wipe(&sha, sizeof sha);
}

HFSBI_FN bool hfsbi_dialect_parse(hfsb_request *request, hfsb_json_doc *doc) {
    hfsb_err    err = HFSB_INIT;
    hfsb_status st;
    memset(doc, 0, sizeof *doc);
    doc->alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    st = hfsb_json_parse(hfsb_request_body(request), NULL, doc, &err);
    if (st == HFSB_OK && hfsb_json_type_of(doc->root) == HFSB_JSON_OBJECT)
        return true;
    if (st == HFSB_NOMEM) hfsb_reply_error(request, 503, "Out of memory.");
    else if (st == HFSB_OK)
        hfsb_reply_error(request, 400, "The body must be a JSON object.");
    else hfsb_reply_error(request, 400, "Invalid JSON: %s", err.msg);
    hfsb_json_free(doc);
    return false;
}

HFSBI_FN void hfsbi_dialect_reply(hfsb_request *request, int status,
                                  hfsbi_build *b) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_buf      body = HFSB_INIT;
    hfsb_status   st;
    body.alloc = doc.alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    st = hfsbi_build_finish(b, &doc);
    if (st == HFSB_OK) st = hfsb_json_write(doc.root, NULL, &body, NULL);
    if (st == HFSB_OK)
        hfsbi_reply_take(request, status, "application/json", &body);
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_buf_free(&body);
    hfsb_json_free(&doc);
}
