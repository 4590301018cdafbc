/* e2b.c - E2B's envd: sandboxes, users, tokens, errors, messages.

   An E2B client talks to a control plane, which makes sandboxes, and to the
   envd of a sandbox. Here both are one server:

       POST /v2/sandboxes ...      control plane    e2b_control.c
       /process.Process/...        Connect, JSON    e2b_process.c, e2b_input.c
       /filesystem.Filesystem/...  Connect, JSON    e2b_files.c, e2b_watch.c
       /health, /init, /files ...  REST             e2b_rest.c,
                                                    e2b_transfer.c

   E2b-Sandbox-Id names the sandbox. As long as the control plane has made
   none, every name stands for the server's own sandbox: so a client with
   E2B_DEBUG=true, or with a control plane of its own, finds it.

   The user in Authorization is no secret, and there is only one: its own name,
   "user" and "root" all mean it. The secret is X-Access-Token, or for /files
   a signature made with it; therefore the token is kept in plain text. */
#include "dialect_private.h"

/* ---- errors ---- */

static bool hfsbi_e2b_is_rpc(const hfsb_request *request) {
    hfsb_str path = hfsb_request_head(request)->path;
    return hfsb_str_starts(path, HFSB_LIT("/process.")) ||
           hfsb_str_starts(path, HFSB_LIT("/filesystem."));
}

static bool hfsbi_e2b_is_stream(const hfsb_request *request) {
    return hfsb_str_starts(
        hfsb_http_field_find(hfsb_request_head(request), "content-type"),
        HFSB_LIT("application/connect+"));
}

/* Appends {"code":...,"message":...}; a code of 0 is `status`. */
static void hfsbi_e2b_put_error(hfsb_buf *out, const char *code, int status,
                                hfsb_str message) {
    hfsb_json_writer w;
    hfsb_json_writer_init(&w, out, NULL);
    hfsb_json_put_object(&w);
    if (code) hfsb_json_put_member_str(&w, "code", hfsb_cstr(code));
    else hfsb_json_put_member_int(&w, "code", status);
    hfsb_json_put_member_str(&w, "message", message);
    hfsb_json_put_end(&w);
    (void)hfsb_json_writer_finish(&w, NULL);
}

static void hfsbi_e2b_reply_error(hfsb_request *request, int status,
                                  const char *code, hfsb_str message) {
    hfsb_buf out = HFSB_INIT;
    out.alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    hfsbi_e2b_put_error(&out, code, status, message);
    hfsb_reply(request, status, "application/json", hfsb_buf_str(&out));
    hfsb_buf_free(&out);
}

HFSBI_FN bool hfsbi_e2b_send(hfsb_request *request, hfsb_str json) {
    char        small[1024 + HFSBI_CONNECT_HEAD];
    char        head[HFSBI_CONNECT_HEAD];
    hfsb_status st;
    if (!hfsbi_connect_write_head(0, json.len, head)) return false;
    if (json.len <= 1024) { /* one chunk */
        memcpy(small, head, sizeof head);
        memcpy(small + sizeof head, json.ptr, json.len);
        return hfsb_reply_write(
                   request, hfsb_str_make(small, json.len + sizeof head)) ==
               HFSB_OK;
    }
    st = hfsb_reply_write(request, hfsb_str_make(head, sizeof head));
    if (st == HFSB_OK) st = hfsb_reply_write(request, json);
    return st == HFSB_OK;
}

HFSBI_FN void hfsbi_e2b_end(hfsb_request *request, hfsbi_connect_code code,
                            const char *message) {
    hfsb_buf out = HFSB_INIT;
    char     head[HFSBI_CONNECT_HEAD];
    out.alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    hfsb_buf_append(&out, HFSB_LIT("12345{"));
    if (message) {
        hfsb_buf_append(&out, HFSB_LIT("\"error\":"));
        hfsbi_e2b_put_error(&out, hfsbi_connect_name(code), 0,
                            hfsb_cstr(message));
    }
    hfsb_buf_append_byte(&out, '}');
    if (out.status == HFSB_OK &&
        hfsbi_connect_write_head(HFSBI_CONNECT_END_STREAM,
                                 out.len - sizeof head, head)) {
        memcpy(out.ptr, head, sizeof head);
        (void)hfsb_reply_write(request, hfsb_buf_str(&out));
        hfsb_reply_end(request);
    } else hfsb_reply_abort(request);
    hfsb_buf_free(&out);
}

HFSBI_FN void hfsbi_e2b_fail(hfsb_request *request, hfsbi_connect_code code,
                             const char *format, ...) {
    char    text[HFSB_ERR_SIZE];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (hfsbi_e2b_is_rpc(request) && hfsbi_e2b_is_stream(request)) {
        hfsb_reply_begin(request, 200, "application/connect+json");
        hfsbi_e2b_end(request, code, text);
    } else
        hfsbi_e2b_reply_error(
            request, hfsbi_connect_status(code),
            hfsbi_e2b_is_rpc(request) ? hfsbi_connect_name(code) : NULL,
            hfsb_cstr(text));
}

HFSBI_FN hfsbi_connect_code hfsbi_e2b_code(hfsb_status st) {
    switch (st) {
    case HFSB_NOT_FOUND: return HFSBI_CONNECT_NOT_FOUND;
    case HFSB_ARG:
    case HFSB_SYNTAX:
    case HFSB_IS_DIR:
    case HFSB_NOT_REGULAR: return HFSBI_CONNECT_INVALID_ARGUMENT;
    case HFSB_EXISTS: return HFSBI_CONNECT_ALREADY_EXISTS;
    case HFSB_REFUSED:
    case HFSB_STALE: return HFSBI_CONNECT_FAILED_PRECONDITION;
    case HFSB_OUTSIDE:
    case HFSB_DENIED: return HFSBI_CONNECT_PERMISSION_DENIED;
    case HFSB_LIMIT:
    case HFSB_FULL: return HFSBI_CONNECT_RESOURCE_EXHAUSTED;
    case HFSB_BUSY:
    case HFSB_NOMEM: return HFSBI_CONNECT_UNAVAILABLE;
    case HFSB_TIMEOUT: return HFSBI_CONNECT_DEADLINE_EXCEEDED;
    case HFSB_CANCELLED: return HFSBI_CONNECT_CANCELED;
    default: return HFSBI_CONNECT_INTERNAL;
    }
}

/* The code for a status of HTTP. */
static const char *hfsbi_e2b_code_of_http(int status) {
    int i;
    if (status == 404) return "unimplemented"; /* no such method */
    if (status == 502) return "unavailable";
    if (status == 413) return "resource_exhausted";
    for (i = 0; i < (int)HFSBI_CONNECT_CODE_COUNT; i++)
        if (hfsbi_connect_status((hfsbi_connect_code)i) == status)
            return hfsbi_connect_name((hfsbi_connect_code)i);
    return status < 500 ? "invalid_argument" : "internal";
}

/* refuse of the face. A sandbox that does not exist has no token: its clients
   get the reply of E2B's proxy. */
static void hfsbi_e2b_refuse(hfsbi_face *face, hfsb_request *request,
                             int status, hfsb_str message) {
    hfsbi_e2b *e2b = (hfsbi_e2b *)(void *)hfsbi_dialect_of(face);
    if (status == 401 && !hfsbi_e2b_box_named(e2b, request)) {
        status = 502;
        message = HFSB_LIT("The sandbox was not found");
    }
    hfsbi_e2b_reply_error(
        request, status,
        hfsbi_e2b_is_rpc(request) ? hfsbi_e2b_code_of_http(status) : NULL,
        message);
}

HFSBI_FN void hfsbi_e2b_reply_empty(hfsb_request *request) {
    hfsb_reply(request, 200, "application/json", HFSB_LIT("{}"));
}

/* ---- sandboxes and users ---- */

HFSBI_FN hfsbi_e2b_box *hfsbi_e2b_box_named(hfsbi_e2b          *e2b,
                                            const hfsb_request *request) {
    hfsb_str id =
        hfsb_http_field_find(hfsb_request_head(request), "e2b-sandbox-id");
    hfsbi_guest *guest = hfsbi_host_find(&e2b->host, id);
    if (guest) return (hfsbi_e2b_box *)(void *)guest;
    if (!e2b->host.made || !id.len ||
        hfsb_str_equal(id, HFSB_LIT("debug_sandbox_id")))
        return &e2b->own;
    return NULL;
}

/* True for the names of the one user. */
static bool hfsbi_e2b_user_ok(const hfsbi_e2b_box *box, hfsb_str name) {
    return !name.len || hfsb_str_equal(name, HFSB_LIT("user")) ||
           hfsb_str_equal(name, HFSB_LIT("root")) ||
           hfsb_str_equal(name, hfsb_cstr(box->e2b->user)) ||
           hfsb_str_equal(name, hfsb_buf_str(&box->user));
}

/* True if "Basic {user:}" names the one user; no field is the same. */
static bool hfsbi_e2b_basic_ok(const hfsbi_e2b_box *box,
                               const hfsb_request  *request) {
    hfsb_str value =
        hfsb_http_field_find(hfsb_request_head(request), "authorization");
    hfsb_buf plain = HFSB_INIT;
    hfsb_str name;
    bool     ok;
    if (value.len < 6 ||
        !hfsb_http_same(hfsb_str_slice(value, 0, 6), HFSB_LIT("basic ")))
        return true;
    plain.alloc = box->e2b->dialect.alloc;
    plain.max = 1024;
    value = hfsbi_trim(hfsb_str_slice(value, 6, value.len));
    ok = hfsb_base64_decode(value, &plain, NULL) == HFSB_OK;
    name = hfsb_buf_str(&plain);
    if (hfsb_str_find_byte(name, ':') != HFSB_NPOS)
        name = hfsb_str_slice(name, 0, hfsb_str_find_byte(name, ':'));
    ok = ok && hfsbi_e2b_user_ok(box, name);
    hfsb_buf_free(&plain);
    return ok;
}

/* The same for the username of the query. */
static bool hfsbi_e2b_username_ok(const hfsbi_e2b_box *box,
                                  const hfsb_request  *request) {
    hfsb_buf name = HFSB_INIT;
    bool     ok;
    name.alloc = box->e2b->dialect.alloc;
    (void)hfsb_request_query(request, "username", &name, NULL);
    ok = hfsbi_e2b_user_ok(box, hfsb_buf_str(&name));
    hfsb_buf_free(&name);
    return ok;
}

HFSBI_FN hfsbi_e2b_box *hfsbi_e2b_box_open(hfsbi_e2b    *e2b,
                                           hfsb_request *request) {
    hfsbi_e2b_box *box = hfsbi_e2b_box_named(e2b, request);
    if (!box) hfsb_reply_error(request, 502, "The sandbox was not found");
    else if (hfsbi_e2b_basic_ok(box, request) &&
             hfsbi_e2b_username_ok(box, request))
        return box;
    else
        hfsbi_e2b_fail(request, HFSBI_CONNECT_UNAUTHENTICATED,
                       "Unknown user: this sandbox has one. Use \"user\", "
                       "\"root\" or no name.");
    return NULL;
}

/* ---- tokens ---- */

/* Writes the signature of "path:operation:user:token[:expiration]". */
static void hfsbi_e2b_sign(const hfsbi_e2b_box *box, const hfsb_buf *query,
                           bool reads, char out[64]) {
    unsigned char digest[HFSB_SHA256_SIZE];
    hfsb_sha256   sha;
    char         *end;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, hfsb_buf_str(&query[0]));
    hfsb_sha256_write(&sha, reads ? HFSB_LIT(":read:") : HFSB_LIT(":write:"));
    hfsb_sha256_write(&sha, hfsb_buf_str(&query[1]));
    hfsb_sha256_write(&sha, HFSB_LIT(":"));
    hfsb_sha256_write(&sha, hfsb_buf_str(&box->guest.token));
    if (query[2].len) {
        hfsb_sha256_write(&sha, HFSB_LIT(":"));
        hfsb_sha256_write(&sha, hfsb_buf_str(&query[2]));
    }
    hfsb_sha256_finish(&sha, digest);
    hfsb_secret_wipe(&sha, sizeof sha);
    memcpy(out, "v1_", 3);
    end = hfsbi_base64_write(
        hfsb_str_make((const char *)digest, sizeof digest), out + 3);
    while (end[-1] == '=') end--;
    *end = '\0';
}

/* True if the query is signed with the token of the sandbox. */
static bool hfsbi_e2b_is_signed(const hfsbi_e2b_box *box,
                                const hfsb_request  *request) {
    static const char *const keys[] = {"path", "username",
                                       "signature_expiration", "signature"};
    hfsb_str                 method = hfsb_request_head(request)->method;
    bool                     ok = box->guest.token.len > 0;
    hfsb_buf                 query[4] = {HFSB_INIT};
    char                     want[64];
    unsigned long long       until = 0;
    unsigned                 diff = 0;
    size_t                   i;
    for (i = 0; i < 4; i++) {
        memset(&query[i], 0, sizeof query[i]);
        query[i].alloc = box->e2b->dialect.alloc;
        if (hfsb_request_query(request, keys[i], &query[i], NULL) ==
            HFSB_NOMEM)
            ok = false;
    }
    hfsbi_e2b_sign(box, query, !hfsb_str_equal(method, HFSB_LIT("POST")),
                   want);
    ok = ok && query[3].len == strlen(want);
    for (i = 0; ok && want[i]; i++)
        diff |= (unsigned)(unsigned char)want[i] ^
                (unsigned)(unsigned char)query[3].ptr[i];
    if (query[2].len &&
        (hfsbi_read_decimal(hfsb_buf_str(&query[2]), 1ull << 60, &until) !=
             query[2].len ||
         (long long)until < hfsbi_time_ns() / 1000000000))
        ok = false;
    for (i = 0; i < 4; i++) hfsb_buf_free(&query[i]);
    return ok && !diff;
}

/* True when nobody has set a token yet, and the server waits for one. */
static bool hfsbi_e2b_is_new(const hfsbi_dialect *d,
                             const hfsbi_e2b_box *box) {
    return !box->guest.token.len && !d->has_token &&
           !hfsbi_server_token(d->server);
}

HFSBI_FN bool hfsbi_e2b_may_init(const hfsbi_e2b_box *box,
                                 const hfsb_request *request, hfsb_str token) {
    const hfsbi_dialect *d = &box->e2b->dialect;
    const unsigned char *want = box->guest.token.len ? box->guest.digest
                                : d->has_token       ? d->token
                                                     : NULL;
    unsigned char        digest[HFSB_SHA256_SIZE];
    if (hfsbi_request_is_trusted(request) || hfsbi_e2b_is_new(d, box))
        return true;
    if (!token.len) return false;
    if (!want) return hfsbi_server_token_is(d->server, token);
    hfsbi_dialect_digest(token, digest);
    return memcmp(digest, want, sizeof digest) == 0;
}

static bool hfsbi_e2b_trusts(hfsbi_face *face, hfsb_request *request) {
    hfsbi_dialect *d = hfsbi_dialect_of(face);
    hfsbi_e2b     *e2b = (hfsbi_e2b *)(void *)d;
    hfsb_str       path = hfsb_request_head(request)->path;
    hfsbi_e2b_box *box = hfsbi_e2b_box_named(e2b, request);
    if (hfsb_str_starts(path, HFSB_LIT("/v2/sandboxes")) ||
        hfsb_str_starts(path, HFSB_LIT("/sandboxes")))
        return hfsbi_dialect_trusts(d, request, "x-api-key", NULL);
    if (!box) return false;
    if (!box->guest.token.len)
        return hfsbi_dialect_trusts(d, request, "x-access-token", NULL);
    if (hfsb_str_equal(path, HFSB_LIT("/files")) &&
        !hfsb_http_field_find(hfsb_request_head(request), "x-access-token")
             .ptr)
        return hfsbi_e2b_is_signed(box, request);
    return hfsbi_request_proves(request, "x-access-token", NULL,
                                box->guest.digest);
}

/* ---- reading requests ---- */

HFSBI_FN const hfsb_json_value *hfsbi_e2b_get(const hfsb_json_value *object,
                                              const char            *name,
                                              const char            *other) {
    const hfsb_json_value *value = hfsb_json_get(object, name);
    return value ? value : hfsb_json_get(object, other);
}

HFSBI_FN long long hfsbi_e2b_field(const hfsb_request *request,
                                   const char *name, long long fallback) {
    hfsb_str value = hfsb_http_field_find(hfsb_request_head(request), name);
    unsigned long long n = 0;
    if (!value.len ||
        hfsbi_read_decimal(value, 9999999999ull, &n) != value.len)
        return fallback;
    return (long long)n;
}

HFSBI_FN long long hfsbi_e2b_beat_ms(const hfsb_request *request) {
    long long n = hfsbi_e2b_field(request, "keepalive-ping-interval", 90);
    return (n < 1 || n > 86400 ? 90 : n) * 1000;
}

HFSBI_FN bool hfsbi_e2b_join(hfsb_str base, hfsb_str path, hfsb_buf *out) {
    if (hfsb_str_equal(path, HFSB_LIT("~"))) path = HFSB_LIT("");
    else if (hfsb_str_starts(path, HFSB_LIT("~/")))
        path = hfsb_str_slice(path, 2, path.len);
    return hfsb_path_join(base, path, out) == HFSB_OK;
}

HFSBI_FN bool hfsbi_e2b_path(const hfsbi_e2b_box *box, hfsb_str path,
                             hfsb_buf *out) {
    const hfsb_root *root = box->guest.tools->place;
    hfsb_str         base = hfsb_buf_str(&box->work_dir);
    char             here[PATH_MAX];
    if (!base.len) base = hfsb_root_work_dir(root);
    if (!base.len) base = hfsb_root_path(root);
    if (!base.len && getcwd(here, sizeof here)) base = hfsb_cstr(here);
    return hfsbi_e2b_join(base, path, out);
}

/* The message of a stream, which is one envelope. */
static bool hfsbi_e2b_unwrap(hfsb_request *request, hfsb_str body,
                             hfsb_str *message) {
    hfsbi_connect_reader reader = HFSB_INIT;
    hfsbi_connect_piece  piece;
    hfsb_err             err = HFSB_INIT;
    size_t               used = 0;
    hfsbi_connect_event  event =
        hfsbi_connect_next(&reader, body, true, &piece, &used, &err);
    *message = piece.data;
    if (event == HFSBI_CONNECT_DATA && piece.over && used == body.len)
        return true;
    if (event == HFSBI_CONNECT_DATA) /* the rest says why */
        event =
            hfsbi_connect_next(&reader, hfsb_str_slice(body, used, body.len),
                               true, &piece, &used, &err);
    hfsbi_e2b_fail(request,
                   event == HFSBI_CONNECT_BAD ? piece.code
                                              : HFSBI_CONNECT_INVALID_ARGUMENT,
                   "%s",
                   event == HFSBI_CONNECT_BAD
                       ? err.msg
                       : "The request must be one message.");
    return false;
}

/* Parses the message; false after an error reply. */
static bool hfsbi_e2b_parse(hfsb_request *request, hfsb_str text,
                            hfsb_json_doc *doc) {
    hfsb_json_parse_opts opts = HFSB_INIT;
    hfsb_err             err = HFSB_INIT;
    hfsb_status          st;
    opts.max_values = HFSBI_ARGUMENT_VALUES;
    if (!text.len) text = HFSB_LIT("{}");
    st = hfsb_json_parse(text, &opts, doc, &err);
    if (st == HFSB_OK && hfsb_json_type_of(doc->root) == HFSB_JSON_OBJECT)
        return true;
    if (st == HFSB_OK)
        hfsbi_e2b_fail(request, HFSBI_CONNECT_INVALID_ARGUMENT,
                       "The message must be a JSON object.");
    else hfsbi_e2b_fail(request, hfsbi_e2b_code(st), "%s", err.msg);
    hfsb_json_free(doc);
    return false;
}

HFSBI_FN bool hfsbi_e2b_ask_open(hfsbi_e2b *e2b, hfsb_request *request,
                                 bool stream, hfsbi_e2b_ask *ask) {
    hfsb_buf body = HFSB_INIT;
    hfsb_str text;
    bool     ok;
    memset(ask, 0, sizeof *ask);
    ask->doc.alloc = e2b->dialect.alloc;
    if (stream ? !hfsbi_e2b_is_stream(request)
               : !hfsbi_request_is_json(request)) {
        hfsbi_e2b_reply_error(request, 415, "unknown",
                              stream ? HFSB_LIT("Content-Type must be "
                                                "application/connect+json.")
                                     : HFSB_LIT("Content-Type must be "
                                                "application/json."));
        return false;
    }
    ask->box = hfsbi_e2b_box_open(e2b, request);
    if (!ask->box) return false;
    /* a stream may last for days: its request need not be kept */
    hfsbi_request_take_body(request, &body);
    text = hfsb_buf_str(&body);
    ok = (!stream || hfsbi_e2b_unwrap(request, text, &text)) &&
         hfsbi_e2b_parse(request, text, &ask->doc);
    hfsb_buf_free(&body);
    return ok;
}

/* ---- environments ---- */

/* Removes a variable from a list. */
static void hfsbi_e2b_unset(hfsb_buf *list, hfsb_str name) {
    size_t at = 0, n;
    for (; at < list->len; at += n) {
        n = strlen(list->ptr + at) + 1;
        if (!hfsb_str_equal(hfsbi_env_name(list->ptr + at), name)) continue;
        memmove(list->ptr + at, list->ptr + at + n, list->len - at - n);
        hfsb_buf_truncate(list, list->len - n);
        return;
    }
}

HFSBI_FN hfsb_status hfsbi_e2b_set_env(hfsb_buf              *list,
                                       const hfsb_json_value *object,
                                       hfsb_err              *err) {
    hfsb_json_iter it = hfsb_json_begin(object);
    while (hfsb_json_next(&it)) {
        hfsb_str value = hfsb_json_str(it.value, hfsb_str_make(NULL, 0));
        if (!it.key.len || !value.ptr ||
            hfsb_str_find_byte(it.key, '=') != HFSB_NPOS ||
            hfsb_str_find_byte(it.key, '\0') != HFSB_NPOS ||
            hfsb_str_find_byte(value, '\0') != HFSB_NPOS)
            return hfsbi_fail(err, HFSB_ARG, 0,
                              "A variable of the environment is invalid: it "
                              "needs a name without \"=\", and a text.");
        hfsbi_e2b_unset(list, it.key);
        hfsb_buf_append(list, it.key);
        hfsb_buf_append_byte(list, '=');
        hfsb_buf_append(list, value);
        hfsb_buf_append_byte(list, '\0');
    }
    return list->status == HFSB_OK
               ? HFSB_OK
               : hfsbi_fail_status(err, HFSB_NOMEM, "Environment");
}

HFSBI_FN void hfsbi_e2b_put_env(hfsb_json_writer *w, const hfsb_buf *list) {
    size_t at = 0;
    for (; at < list->len; at += strlen(list->ptr + at) + 1) {
        hfsb_str all = hfsb_cstr(list->ptr + at);
        hfsb_str name = hfsbi_env_name(list->ptr + at);
        hfsb_json_put_key(w, name);
        hfsb_json_put_str(w, hfsb_str_slice(all, name.len + 1, all.len));
    }
}

/* ---- the dialect ---- */

static void hfsbi_e2b_end_part(hfsbi_server_part *part) {
    hfsbi_e2b *e2b = (hfsbi_e2b *)(void *)part;
    hfsbi_e2b_end_watchers(&e2b->own);
    hfsbi_jobs_end(e2b->own.guest.tools, HFSB_LIT(""));
    hfsbi_host_end(&e2b->host);
}

static bool hfsbi_e2b_busy(hfsbi_server_part *part) {
    hfsbi_e2b *e2b = (hfsbi_e2b *)(void *)part;
    return hfsbi_tools_in_use(e2b->own.guest.tools) ||
           hfsbi_host_busy(&e2b->host);
}

/* Sandboxes of the control plane end by themselves. */
static bool hfsbi_e2b_needs(hfsbi_server_part *part) {
    return ((hfsbi_e2b *)(void *)part)->host.count > 0;
}

HFSBI_FN void hfsbi_e2b_box_init(hfsbi_e2b_box *box, hfsbi_e2b *e2b) {
    const hfsb_alloc *alloc = &e2b->dialect.alloc;
    box->e2b = e2b;
    box->env.alloc = box->work_dir.alloc = box->user.alloc = *alloc;
    box->template_id.alloc = box->metadata.alloc = *alloc;
}

HFSBI_FN void hfsbi_e2b_box_free(hfsbi_e2b_box *box) {
    hfsb_buf_free(&box->env);
    hfsb_buf_free(&box->work_dir);
    hfsb_buf_free(&box->user);
    hfsb_buf_free(&box->template_id);
    hfsb_buf_free(&box->metadata);
}

/* Finds the name of our user, or writes its number. */
static void hfsbi_e2b_find_user(hfsbi_e2b *e2b) {
    unsigned long      uid = (unsigned long)geteuid();
    unsigned long long n;
    hfsb_buf           all = HFSB_INIT;
    hfsb_str           rest, line, name, field;
    all.alloc = e2b->dialect.alloc;
    (void)snprintf(e2b->user, sizeof e2b->user, "%lu", uid);
    if (hfsb_file_read(NULL, HFSB_LIT("/etc/passwd"), 1 << 20, &all, NULL,
                       NULL) != HFSB_OK)
        hfsb_buf_truncate(&all, 0);
    rest = hfsb_buf_str(&all);
    while (hfsbi_list_next(&rest, '\n', &line)) {
        if (!hfsbi_list_next(&line, ':', &name) ||
            name.len >= sizeof e2b->user ||
            !hfsbi_list_next(&line, ':', &field) ||
            !hfsbi_list_next(&line, ':', &field) ||
            hfsbi_read_decimal(field, ~0u, &n) != field.len || n != uid)
            continue;
        memcpy(e2b->user, name.ptr, name.len);
        e2b->user[name.len] = '\0';
        break;
    }
    hfsb_buf_free(&all);
}

static hfsb_status hfsbi_e2b_open(hfsbi_dialect           *d,
                                  const hfsb_dialect_opts *opts,
                                  hfsb_err                *err) {
    hfsbi_e2b  *e2b = (hfsbi_e2b *)(void *)d;
    hfsb_status st;
    hfsbi_e2b_box_init(&e2b->own, e2b);
    e2b->own.guest.state = HFSBI_GUEST_LIVE;
    e2b->own.guest.tools = d->tools;
    e2b->own.guest.token.alloc = d->alloc;
    d->part.end = hfsbi_e2b_end_part;
    d->part.busy = hfsbi_e2b_busy;
    d->part.needs = hfsbi_e2b_needs;
    d->face.trusts = hfsbi_e2b_trusts;
    d->face.refuse = hfsbi_e2b_refuse;
    hfsbi_e2b_find_user(e2b);
    if (opts->token.len &&
        !hfsbi_guest_set_token(&e2b->own.guest, opts->token))
        return hfsbi_fail_status(err, HFSB_NOMEM, "Adding e2b");
    st = hfsbi_e2b_open_host(e2b, opts, err);
    if (st == HFSB_OK) st = hfsbi_e2b_add_rest(e2b, err);
    if (st == HFSB_OK) st = hfsbi_e2b_add_transfer(e2b, err);
    if (st == HFSB_OK) st = hfsbi_e2b_add_process(e2b, err);
    if (st == HFSB_OK) st = hfsbi_e2b_add_input(e2b, err);
    if (st == HFSB_OK) st = hfsbi_e2b_add_files(e2b, err);
    if (st == HFSB_OK) st = hfsbi_e2b_add_watch(e2b, err);
    if (st == HFSB_OK) st = hfsbi_e2b_add_control(e2b, err);
    return st;
}

static void hfsbi_e2b_close(hfsbi_dialect *d) {
    hfsbi_e2b   *e2b = (hfsbi_e2b *)(void *)d;
    hfsbi_guest *own = &e2b->own.guest;
    hfsbi_host_close(&e2b->host);
    if (own->tools) hfsbi_e2b_end_watchers(&e2b->own);
    if (own->token.len) hfsb_secret_wipe(own->token.ptr, own->token.len);
    hfsb_buf_free(&own->token);
    hfsbi_e2b_box_free(&e2b->own);
}

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_e2b(void) {
    static const hfsbi_dialect_kind kind = {"e2b", sizeof(hfsbi_e2b),
                                            hfsbi_e2b_open, hfsbi_e2b_close};
    return &kind;
}
