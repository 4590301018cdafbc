/* open.c - /proxy and /open: servers that commands have started.

     ANY  /proxy/PORT/PATH   with the token: for programs
     POST /api/open          with it, {"port":N} --> {"path":"/open/KEY/"}
     ANY  /open/KEY/PATH     without: a browser cannot send a field when it
                             opens a link

   All are relayed to 127.0.0.1:PORT. A key is random and stands for one port.
   It is valid until the server stops, is reset or gets a new token, or nobody
   has used the key for 12 hours; there are at most 64 keys, and a new one
   replaces the one unused for longest. Only digests are kept: a command may be
   able to read our memory.

   The pages of an inner server are not trusted, yet they come from the origin
   of our own page, which has the token in its storage. Therefore every reply
   has a Content-Security-Policy that makes the browser treat it as a page of
   an origin of its own: it sees neither our storage nor our replies. Its
   requests to its own server then look like those of a foreign page, without
   Origin or with "null". For /open they are allowed: anyone who knows the key
   may read all replies. Such a page must not see more than that, so fields by
   which a reply changes the whole origin are dropped, and no service worker is
   served.

   Where commands have no network, or certain ports only, the same applies
   here: a client that may run commands reaches no more than they do. */
#include "api_private.h"

/* ---- keys ---- */

static void hfsbi_open_digest(hfsb_str key, unsigned char *out) {
    hfsb_sha256 sha;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, key);
    hfsb_sha256_finish(&sha, out);
    hfsb_secret_wipe(&sha, sizeof sha);
}

static bool hfsbi_key_is_stale(const hfsbi_open_key *k, long long now) {
    return k->port && k->users == 0 && now - k->used >= HFSBI_OPEN_MS;
}

/* Finds a key that is valid now, or NULL. */
static hfsbi_open_key *hfsbi_open_find(hfsbi_api *api, hfsb_str key) {
    unsigned char digest[HFSB_SHA256_SIZE];
    long long     now = hfsbi_loop_now(api->loop);
    size_t        i;
    if (key.len != HFSBI_OPEN_KEY) return NULL;
    hfsbi_open_digest(key, digest);
    for (i = 0; i < HFSBI_OPEN_KEYS; i++) {
        hfsbi_open_key *k = &api->open.keys[i];
        if (hfsbi_key_is_stale(k, now)) k->port = 0;
        if (k->port && !memcmp(k->digest, digest, sizeof digest)) return k;
    }
    return NULL;
}

/* The slot for another key: a free one, or that of the key that was unused for
   longest. NULL: all are in use. */
static hfsbi_open_key *hfsbi_open_room(hfsbi_api *api) {
    hfsbi_open_key *best = NULL;
    size_t          i;
    for (i = 0; i < HFSBI_OPEN_KEYS; i++) {
        hfsbi_open_key *k = &api->open.keys[i];
        if (k->users) continue;
        if (!k->port) return k;
        if (!best || k->serial < best->serial) best = k;
    }
    return best;
}

static void hfsbi_key_touch(hfsbi_api *api, hfsbi_open_key *k) {
    k->used = hfsbi_loop_now(api->loop);
    k->serial = ++api->open.uses;
}

HFSBI_FN void hfsbi_open_forget(hfsbi_api *api) {
    size_t i;
    for (i = 0; i < HFSBI_OPEN_KEYS; i++) api->open.keys[i].port = 0;
}

/* ---- relaying ---- */

/* Fields that every reply has instead of those of the inner server. */
static hfsb_status hfsbi_open_guard(hfsb_request *request, bool foreign) {
    static const struct {
        const char *name, *value;
        bool        foreign; /* only for pages of an origin of their own */
    } list[] = {{"Content-Security-Policy",
                 "sandbox allow-scripts allow-forms allow-popups allow-modals "
                 "allow-downloads",
                 false},
                {"Referrer-Policy", "no-referrer", false},
                {"Access-Control-Allow-Origin", "*", true},
                {"Access-Control-Expose-Headers", "*", true}};
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; st == HFSB_OK && i < sizeof list / sizeof *list; i++)
        if (foreign || !list[i].foreign)
            st = hfsb_reply_field(request, list[i].name,
                                  hfsb_cstr(list[i].value));
    return st;
}

/* Fields of replies that concern the whole origin, or were decided above. A
   browser would apply them to our own pages: where it connects to, what it
   reports to whom, what it sends, which session or dictionary it has. */
static const char *const hfsbi_open_drop[] = {
    "Service-Worker-Allowed",
    "Referrer-Policy",
    "Clear-Site-Data",
    "Strict-Transport-Security",
    "Public-Key-Pins",
    "Expect-CT",
    "Alt-Svc",
    "NEL",
    "Report-To",
    "Reporting-Endpoints",
    "Accept-CH",
    "Critical-CH",
    "Use-As-Dictionary",
    "Set-Login",
    "Sec-Session-Registration",
    "Secure-Session-Registration",
    "Origin-Agent-Cluster",
    "Cross-Origin-Resource-Policy",
    "Cross-Origin-Opener-Policy",
    "Cross-Origin-Embedder-Policy",
    "Access-Control-Allow-Origin",
    "Access-Control-Allow-Credentials",
    "Access-Control-Allow-Methods",
    "Access-Control-Allow-Headers",
    "Access-Control-Expose-Headers",
    "Access-Control-Max-Age",
    NULL};

/* Passes a request on to a port. */
static void hfsbi_open_relay(hfsbi_api *api, hfsb_request *request,
                             hfsbi_relay_opts *opts, bool foreign) {
    /* they concern an origin that the inner server does not know */
    static const char *const hide[] = {"Origin", "Sec-Fetch-Site", NULL};
    const hfsb_http_head    *head = hfsb_request_head(request);
    opts->prefix = hfsbi_relay_prefix(head->path, 2);
    opts->hide = hide;
    opts->drop = hfsbi_open_drop;
    opts->rebase = true;
    if (hfsbi_open_guard(request, foreign) != HFSB_OK)
        hfsb_reply_error(request, 503, "Out of memory.");
    else if (hfsb_http_field_find(head, "Service-Worker").ptr)
        hfsb_reply_error(request, 403,
                         "A service worker would see all pages of this "
                         "server.");
    else if (!hfsbi_confine_reaches(hfsb_tools_confine(api->tools),
                                    opts->port))
        hfsb_reply_error(request, 403,
                         "Commands may not use port %u of this machine (--net)"
                         ", so it is not relayed either.",
                         opts->port);
    else {
        hfsbi_relay_start(request, opts);
        return;
    }
    if (opts->done) opts->done(opts->user);
}

static void hfsbi_proxy_begin(void *user, hfsb_request *request) {
    hfsb_str           text = hfsb_request_part(request, 0);
    hfsbi_relay_opts   opts = HFSB_INIT;
    unsigned long long port = 0;
    if (hfsbi_read_decimal(text, 65535, &port) != text.len || !port) {
        hfsb_reply_error(request, 404, "A port is a number up to 65535.");
        return;
    }
    opts.port = (unsigned)port;
    hfsbi_open_relay((hfsbi_api *)user, request, &opts, false);
}

/* ---- /open/KEY ---- */

static hfsbi_api *hfsbi_open_api(hfsbi_face *face) {
    return (hfsbi_api *)(void *)((char *)face -
                                 offsetof(hfsbi_api, open.face));
}

static bool hfsbi_open_trusts(hfsbi_face *face, hfsb_request *request) {
    return hfsbi_open_find(hfsbi_open_api(face),
                           hfsb_request_part(request, 0)) != NULL;
}

static void hfsbi_open_refuse(hfsbi_face *face, hfsb_request *request,
                              int status, hfsb_str message) {
    hfsb_buf detail = HFSB_INIT;
    detail.alloc = hfsbi_open_api(face)->alloc;
    if (status == face->denied)
        message = HFSB_LIT("This address is not valid, or no longer.");
    hfsbi_json_put_quoted(&detail, message);
    if (detail.status == HFSB_OK)
        hfsbi_reply_detail(request, status, hfsb_buf_str(&detail), message);
    else hfsb_reply_abort(request);
    hfsb_buf_free(&detail);
}

/* Answers a CORS preflight, which asks whether a page of another origin may
   send such a request; true if it is one. */
static bool hfsbi_open_preflight(hfsb_request *request) {
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_str              method, fields;
    method = hfsb_http_field_find(head, "Access-Control-Request-Method");
    fields = hfsb_http_field_find(head, "Access-Control-Request-Headers");
    if (!method.len || !hfsb_str_equal(head->method, HFSB_LIT("OPTIONS")))
        return false;
    (void)hfsb_reply_field(request, "Access-Control-Allow-Origin",
                           HFSB_LIT("*"));
    (void)hfsb_reply_field(request, "Access-Control-Allow-Methods", method);
    if (fields.len)
        (void)hfsb_reply_field(request, "Access-Control-Allow-Headers",
                               fields);
    hfsb_reply(request, 204, "", HFSB_LIT(""));
    return true;
}

static void hfsbi_open_done(void *user) {
    hfsbi_open_key *k = (hfsbi_open_key *)user;
    k->users--;
    hfsbi_key_touch(k->api, k);
}

static void hfsbi_open_begin(void *user, hfsb_request *request) {
    hfsbi_api       *api = (hfsbi_api *)user;
    hfsbi_relay_opts opts = HFSB_INIT;
    hfsbi_open_key  *k = hfsbi_open_find(api, hfsb_request_part(request, 0));
    if (!k) {
        hfsb_reply_error(request, 404, "Not Found");
        return;
    }
    hfsbi_key_touch(api, k);
    if (hfsbi_open_preflight(request)) return;
    k->users++;
    opts.port = k->port;
    opts.done = hfsbi_open_done;
    opts.user = k;
    hfsbi_open_relay(api, request, &opts, true);
}

/* ---- POST /api/open ---- */

/* Reads {"port":N}. 200, or the status of a refusal with *err. */
static int hfsbi_open_read(hfsbi_api *api, hfsb_request *request,
                           unsigned *port, hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   st;
    long long     n;
    if (!hfsbi_request_is_json(request)) {
        hfsbi_fail(err, HFSB_ARG, 0,
                   "The body must be JSON, with Content-Type: "
                   "application/json.");
        return 415;
    }
    doc.alloc = api->alloc;
    st = hfsb_json_parse(hfsb_request_body(request), NULL, &doc, err);
    if (st != HFSB_OK) return st == HFSB_NOMEM ? 503 : 400;
    n = hfsb_json_int(hfsb_json_get(doc.root, "port"), 0);
    hfsb_json_free(&doc);
    *port = n > 0 && n <= 65535 ? (unsigned)n : 0;
    if (*port) return 200;
    hfsbi_fail(err, HFSB_ARG, 0, "port must be a number from 1 to 65535.");
    return 422;
}

/* Makes a key for a port. */
static int hfsbi_open_make(hfsbi_api *api, unsigned port,
                           char text[HFSBI_OPEN_KEY + 1], hfsb_err *err) {
    hfsbi_open_key *k = hfsbi_open_room(api);
    if (!hfsbi_confine_reaches(hfsb_tools_confine(api->tools), port)) {
        hfsbi_fail(err, HFSB_REFUSED, 0,
                   "Commands may not use port %u of this machine (--net), so "
                   "it is not relayed either.",
                   port);
        return 403;
    }
    if (!k || !hfsbi_random_hex(text, HFSBI_OPEN_KEY)) {
        hfsbi_fail(err, HFSB_LIMIT, 0,
                   k ? "The system has no random numbers."
                     : "All addresses are in use.");
        return 503;
    }
    hfsbi_open_digest(hfsb_str_make(text, HFSBI_OPEN_KEY), k->digest);
    k->api = api;
    k->port = port;
    hfsbi_key_touch(api, k);
    return 200;
}

static void hfsbi_open_post(void *user, hfsb_request *request) {
    hfsbi_api *api = (hfsbi_api *)user;
    hfsb_err   err = HFSB_INIT;
    unsigned   port = 0;
    char       key[HFSBI_OPEN_KEY + 1], body[HFSBI_OPEN_KEY + 40];
    int        n, status = hfsbi_open_read(api, request, &port, &err);
    if (status == 200) status = hfsbi_open_make(api, port, key, &err);
    (void)snprintf(body, sizeof body, "127.0.0.1:%u", port);
    hfsbi_api_report(api->tools, "open", hfsb_cstr(body), "",
                     hfsb_cstr(status == 200 ? "" : err.msg), hfsb_clock_ms(),
                     0);
    if (status != 200) {
        hfsb_reply_error(request, status, "%s", err.msg);
        return;
    }
    n = snprintf(body, sizeof body, "{\"path\":\"/open/%s/\"}", key);
    (void)hfsb_reply_field(request, "Cache-Control", HFSB_LIT("no-store"));
    hfsb_reply(request, 200, "application/json",
               hfsb_str_make(body, n > 0 ? (size_t)n : 0));
    hfsb_secret_wipe(key, sizeof key);
    hfsb_secret_wipe(body, sizeof body);
}

HFSBI_FN hfsb_status hfsbi_open_add(hfsbi_api *api, hfsb_err *err) {
    hfsb_route  post = HFSB_INIT;
    hfsbi_face *face = &api->open.face;
    hfsb_status st;
    face->guard = HFSBI_FACE_PATH;
    face->denied = 404; /* as if there were no such page */
    face->trusts = hfsbi_open_trusts;
    face->refuse = hfsbi_open_refuse;
    post.method = "POST";
    post.path = "/api/open";
    post.fn = hfsbi_open_post;
    post.user = api;
    post.max_body = HFSBI_API_SMALL;
    st = hfsb_server_add(api->server, &post, err);
    if (st == HFSB_OK)
        st = hfsbi_relay_add(api->server, NULL,
                             "/proxy/*"
                             "/**",
                             hfsbi_proxy_begin, api, err);
    if (st == HFSB_OK)
        st = hfsbi_relay_add(api->server, face,
                             "/open/*"
                             "/**",
                             hfsbi_open_begin, api, err);
    return st;
}
