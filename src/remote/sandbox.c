/* sandbox.c - the handle of a sandbox: its address, its tokens, its server.

   A handle holds copies of its options and two addresses: `page`, for people,
   and `api`, where requests go. It knows nothing of Spaces: one that is a
   Space has a `home`, whose functions ask the Hub (room hub).

   Each request carries two tokens: the Hub's, which only the edge of Spaces
   may see, and the server's own. Neither ever appears in a log or a message.
   hfsb-server names its instance in X-Hfsb, so that a client can tell the
   server that received a call from one that was started later.

   To wait for a server, its health is requested:

       ask --200--> answers                      (after a restart: and it is
        |  \--token refused--> HFSB_AUTH          another instance)
        | fails
        v
       its home, if any: paused, failed, not found --> reported at once
        | starts, runs, wakes up, or unknown
        v
       wait api_poll_ms, ask again; HFSB_TIMEOUT after api_wait_ms, at a URL
       where nothing accepts a connection after HFSBI_EMPTY_MS by default */
#include "remote_private.h"
#include "../http/url.h"

/* ---- retries and polls ---- */

HFSBI_FN hfsb_status hfsbi_poll_wait(const hfsb_cancel *cancel,
                                     long long poll_ms, long long deadline) {
    long long left = deadline - hfsb_clock_ms();
    if (left <= 0) return HFSB_LIMIT;
    return hfsb_cancel_wait(cancel, left < poll_ms ? left : poll_ms)
               ? HFSB_OK
               : HFSB_CANCELLED;
}

HFSBI_FN hfsbi_retry hfsbi_sandbox_retry(const hfsb_sandbox *s,
                                         const hfsb_cancel  *cancel) {
    hfsbi_retry retry = HFSB_INIT;
    retry.tries = s->o.tries;
    retry.delay_ms = s->o.times.delay_ms;
    retry.max_delay_ms = LLONG_MAX / 2;
    retry.linear = true;
    retry.cancel = cancel;
    return retry;
}

/* ---- texts ---- */

HFSBI_FN hfsb_status hfsbi_keep_texts(hfsb_buf *texts, hfsb_str *const *list,
                                      size_t count) {
    size_t      i, bytes = 0;
    hfsb_status st;
    for (i = 0; i < count; i++)
        if (!hfsbi_add(bytes, list[i]->len, &bytes) ||
            !hfsbi_add(bytes, 1, &bytes))
            return HFSB_LIMIT;
    st = hfsb_buf_reserve(texts, bytes); /* the views must not move */
    for (i = 0; st == HFSB_OK && i < count; i++) {
        hfsb_str view = hfsb_str_make(texts->ptr + texts->len, list[i]->len);
        hfsb_buf_append(texts, *list[i]);
        st = hfsb_buf_append_byte(texts, '\0');
        *list[i] = view;
    }
    return st;
}

HFSBI_FN void hfsbi_seconds_text(long long ms, char out[HFSBI_SECONDS]) {
    size_t n;
    (void)snprintf(out, HFSBI_SECONDS, "%lld.%03lld", ms / 1000, ms % 1000);
    n = strlen(out);
    while (n && out[n - 1] == '0') n--;
    if (n && out[n - 1] == '.') n--;
    out[n] = '\0';
}

static hfsb_str hfsbi_sandbox_secret(const void *owner, size_t i) {
    const hfsb_sandbox *s = (const hfsb_sandbox *)owner;
    return i ? s->o.hub_token : s->o.api_token;
}

HFSBI_FN void hfsbi_sandbox_scrub(const hfsb_sandbox *s, char *text) {
    (void)hfsbi_redact(hfsbi_sandbox_secret, s, 2, text, strlen(text));
}

HFSBI_FN void hfsbi_sandbox_log(const hfsb_sandbox *s, const char *format,
                                ...) {
    hfsb_buf line = HFSB_INIT;
    va_list  ap;
    if (!s->o.log) return;
    line.alloc = s->o.alloc;
    va_start(ap, format);
    if (hfsbi_buf_vprintf(&line, format, ap) == HFSB_OK)
        s->o.log(s->o.user, hfsb_buf_str(&line));
    va_end(ap);
    hfsb_buf_free(&line);
}

/* ---- options ---- */

/* A token is sent as the value of a header field. */
static hfsb_status hfsbi_sandbox_check_token(hfsb_str token, const char *which,
                                             hfsb_err *err) {
    size_t i;
    for (i = 0; i < token.len; i++) {
        unsigned char c = (unsigned char)token.ptr[i];
        if (c <= ' ' || c >= 127)
            return hfsbi_fail(err, HFSB_ARG, i,
                              "%s contains a character that no token has, at "
                              "byte %zu",
                              which, i);
    }
    return HFSB_OK;
}

static hfsb_status hfsbi_sandbox_check(const hfsb_sandbox_opts *o,
                                       hfsb_err                *err) {
    const hfsb_sandbox_times *t;
    hfsb_status               st;
    if (!o || !o->transport)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "a sandbox needs the option transport");
    t = &o->times;
    if (!(o->timeout >= 0) || t->delay_ms < 0 || t->connect_ms < 0 ||
        t->margin_ms < 0 || t->wait_ms < 0 || t->poll_ms < 0 ||
        t->api_wait_ms < 0 || t->api_poll_ms < 0 || t->health_ms < 0)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "sandbox options: times must not be negative");
    st = hfsbi_sandbox_check_token(o->hub_token, "hub_token", err);
    if (st != HFSB_OK) return st;
    return hfsbi_sandbox_check_token(o->api_token, "api_token", err);
}

/* Keeps times small enough to be added to the clock. */
static long long hfsbi_sandbox_time(long long given, long long otherwise) {
    if (given > LLONG_MAX / 4) given = LLONG_MAX / 4;
    return given ? given : otherwise;
}

static void hfsbi_sandbox_defaults(hfsb_sandbox_opts *o) {
    hfsb_sandbox_times *t = &o->times;
    if (!(o->timeout > 0)) o->timeout = 240;
    if (o->timeout > 1200) o->timeout = 1200;
    if (!o->tries) o->tries = 3;
    t->delay_ms = hfsbi_sandbox_time(t->delay_ms, 3000);
    t->connect_ms = hfsbi_sandbox_time(t->connect_ms, 30000);
    t->margin_ms = hfsbi_sandbox_time(t->margin_ms, 30000);
    t->wait_ms = hfsbi_sandbox_time(t->wait_ms, 600000);
    t->poll_ms = hfsbi_sandbox_time(t->poll_ms, 5000);
    t->api_wait_ms = hfsbi_sandbox_time(t->api_wait_ms, 180000);
    t->api_poll_ms = hfsbi_sandbox_time(t->api_poll_ms, 3000);
    t->health_ms = hfsbi_sandbox_time(t->health_ms, 10000);
}

/* ---- addresses ---- */

HFSBI_FN hfsb_status hfsbi_sandbox_address(hfsb_str url, hfsb_url *parsed,
                                           hfsb_buf *api, hfsb_err *err) {
    hfsb_url    u;
    hfsb_str    path;
    size_t      mark = api->len;
    hfsb_status st = hfsb_url_parse(url, &u, err);
    if (st != HFSB_OK) return st;
    if (parsed) *parsed = u;
    if (u.user.len || hfsb_str_find_byte(u.target, '?') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "the address of a sandbox is http://host:port or "
                          "https://host, without user, password and \"?\"");
    path = u.target;
    while (hfsb_str_ends(path, HFSB_LIT("/"))) path.len--;
    if (hfsb_str_ends(path, HFSB_LIT("/api"))) path.len -= 4;
    while (hfsb_str_ends(path, HFSB_LIT("/"))) path.len--;
    hfsb_buf_append(api,
                    u.secure ? HFSB_LIT("https://") : HFSB_LIT("http://"));
    hfsb_buf_append(api, u.authority);
    hfsb_buf_append(api, path);
    hfsb_buf_append(api, HFSB_LIT("/api/"));
    st = hfsb_buf_finish(api, mark);
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "Address");
}

/* ---- the handle ---- */

HFSBI_FN void hfsbi_sandbox_free(hfsb_sandbox *s) {
    hfsb_alloc alloc;
    if (!s) return;
    alloc = s->o.alloc;
    if (s->protocol->close) s->protocol->close(s);
    if (s->texts.ptr) hfsb_secret_wipe(s->texts.ptr, s->texts.len);
    hfsb_buf_free(&s->texts);
    if (s->token.ptr) hfsb_secret_wipe(s->token.ptr, s->token.len);
    hfsb_buf_free(&s->token);
    hfsb_buf_free(&s->page);
    hfsb_buf_free(&s->api);
    hfsbi_seen_free(&s->seen);
    pthread_mutex_destroy(&s->lock);
    hfsbi_array_free(&alloc, s, 1, sizeof *s);
}

HFSBI_FN hfsb_status hfsbi_sandbox_new(const hfsb_sandbox_opts *opts,
                                       hfsb_str id, hfsb_sandbox **out,
                                       hfsb_err *err) {
    hfsb_sandbox *s;
    hfsb_str     *texts[5];
    hfsb_status   st = hfsbi_sandbox_check(opts, err);
    *out = NULL;
    if (st != HFSB_OK) return st;
    s = (hfsb_sandbox *)hfsbi_array(&opts->alloc, 1, sizeof *s);
    if (!s) return hfsbi_fail_status(err, HFSB_NOMEM, "Sandbox");
    memset(s, 0, sizeof *s);
    s->o = *opts;
    s->id = id;
    s->transport = *opts->transport;
    s->o.transport = &s->transport;
    s->protocol = hfsbi_protocol_api();
    s->texts.alloc = s->page.alloc = s->api.alloc = s->token.alloc =
        opts->alloc;
    if (pthread_mutex_init(&s->lock, NULL) != 0) {
        hfsbi_array_free(&opts->alloc, s, 1, sizeof *s);
        return hfsbi_fail_status(err, HFSB_BUSY, "Sandbox");
    }
    hfsbi_seen_init(&s->seen, &opts->alloc);
    hfsbi_sandbox_defaults(&s->o);
    texts[0] = &s->id;
    texts[1] = &s->o.hub_token;
    texts[2] = &s->o.api_token;
    texts[3] = &s->o.work_dir;
    texts[4] = &s->o.space_url;
    st = hfsbi_keep_texts(&s->texts, texts, 5);
    if (st == HFSB_OK) {
        *out = s;
        return hfsbi_ok(err);
    }
    hfsbi_sandbox_free(s);
    return hfsbi_fail_status(err, st, "Sandbox");
}

/* The Hub's token is for the edge of Spaces and jobs, not for a server at any
   URL. */
static bool hfsbi_url_is_at_edge(const hfsb_url *url) {
    static const char *const domains[] = {".hf.space", ".hf.jobs"};
    hfsb_str                 host = url->host;
    size_t                   i;
    for (i = 0; url->secure && i < sizeof domains / sizeof *domains; i++) {
        hfsb_str domain = hfsb_cstr(domains[i]);
        if (host.len > domain.len &&
            hfsb_http_same(
                hfsb_str_slice(host, host.len - domain.len, host.len), domain))
            return true;
    }
    return false;
}

/* Sets the addresses of a server with /api. */
HFSBI_FN hfsb_status hfsbi_sandbox_place(hfsb_sandbox *s, hfsb_str url,
                                         hfsb_url *parsed, hfsb_err *err) {
    const size_t tail = strlen("/api/");
    hfsb_status  st = hfsbi_sandbox_address(url, parsed, &s->api, err);
    if (st != HFSB_OK) return st;
    st = hfsb_buf_append(&s->page,
                         hfsb_str_make(s->api.ptr, s->api.len - tail));
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "Address");
}

HFSBI_FN hfsb_status hfsbi_sandbox_open_url(hfsb_str                 url,
                                            const hfsb_sandbox_opts *opts,
                                            hfsb_sandbox           **out,
                                            hfsb_err                *err) {
    hfsb_sandbox *s;
    hfsb_url      parsed;
    hfsb_status   st = hfsbi_sandbox_new(opts, HFSB_LIT(""), out, err);
    if (st != HFSB_OK) return st;
    s = *out;
    if (opts->protocol) s->protocol = opts->protocol;
    st = s->protocol->open(s, url, &parsed, err);
    if (st == HFSB_OK) {
        s->at_edge = hfsbi_url_is_at_edge(&parsed);
        return st;
    }
    hfsbi_sandbox_free(s);
    *out = NULL;
    return st;
}

/* ---- requests ---- */

HFSBI_FN hfsb_str hfsbi_reply_instance(const hfsb_http_reply *reply) {
    const hfsb_str name = HFSB_LIT("instance=");
    hfsb_str       value = hfsb_http_reply_field(reply, "X-Hfsb", 0), id;
    size_t         at = hfsb_str_find(value, name);
    if (at == HFSB_NPOS) return HFSB_LIT("");
    id = hfsb_str_slice(value, at + name.len, value.len);
    id = hfsbi_trim(hfsb_str_slice(id, 0, hfsb_str_find_byte(id, ';')));
    if (id.len >= sizeof((hfsb_sandbox *)0)->instance) id.len = 0;
    return id;
}

/* A server reached by a redirect received no key and is not the one that
   answers next time. Without a redirect the URL still starts with that of the
   API, "https://host/api/", and need not be parsed. */
HFSBI_FN bool hfsbi_sandbox_is_origin(const hfsb_sandbox *sandbox,
                                      hfsb_str            url) {
    hfsb_url here, there;
    if (hfsb_str_starts(url, hfsb_buf_str(&sandbox->api))) return true;
    return hfsb_url_parse(hfsb_buf_str(&sandbox->api), &here, NULL) ==
               HFSB_OK &&
           hfsb_url_parse(url, &there, NULL) == HFSB_OK &&
           hfsb_url_same_origin(&here, &there);
}

/* Notes that the server answered, and its instance. */
static void hfsbi_sandbox_note(hfsb_sandbox          *sandbox,
                               const hfsb_http_reply *reply) {
    hfsb_str id = hfsbi_reply_instance(reply);
    bool     known =
        id.len && hfsbi_sandbox_is_origin(sandbox, hfsb_buf_str(&reply->url));
    pthread_mutex_lock(&sandbox->lock);
    sandbox->answered = true;
    if (known) {
        memcpy(sandbox->instance, id.ptr, id.len);
        sandbox->instance[id.len] = '\0';
    }
    pthread_mutex_unlock(&sandbox->lock);
}

enum { HFSBI_SANDBOX_FIELDS = 8 }; /* of one request, tokens included */

/* The texts of a request: its URL, then the values of the token fields. They
   are appended to one buffer, so that views are taken at the end. */
typedef struct hfsbi_sandbox_message {
    hfsb_buf        text;
    size_t          hub_at, api_at; /* where the values begin */
    hfsb_http_field fields[HFSBI_SANDBOX_FIELDS];
    size_t          count;
} hfsbi_sandbox_message;

static void hfsbi_message_add(hfsbi_sandbox_message *m, hfsb_str name,
                              size_t from, size_t to) {
    if (from == to) return;
    m->fields[m->count].name = name;
    m->fields[m->count++].value =
        hfsb_str_slice(hfsb_buf_str(&m->text), from, to);
}

static hfsb_status hfsbi_message_make(const hfsb_sandbox *s, hfsb_str base,
                                      hfsb_str               path,
                                      const hfsb_http_call  *call,
                                      hfsbi_sandbox_message *m) {
    memset(m, 0, sizeof *m);
    m->text.alloc = s->o.alloc;
    HFSB_ASSERT(call->field_count + 2 <= HFSBI_SANDBOX_FIELDS);
    hfsb_buf_append(&m->text, base);
    hfsb_buf_append(&m->text, path);
    m->hub_at = m->text.len;
    if (s->o.hub_token.len && s->at_edge)
        hfsb_buf_printf(&m->text, "Bearer %s", s->o.hub_token.ptr);
    m->api_at = m->text.len;
    if (s->o.api_token.len)
        hfsb_buf_printf(&m->text, "%s%s", s->protocol->token_prefix,
                        s->o.api_token.ptr);
    if (m->text.status != HFSB_OK) return m->text.status;
    for (; m->count < call->field_count; m->count++)
        m->fields[m->count] = call->fields[m->count];
    hfsbi_message_add(m, HFSB_LIT("Authorization"), m->hub_at, m->api_at);
    hfsbi_message_add(m, hfsb_cstr(s->protocol->token_name), m->api_at,
                      m->text.len);
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_sandbox_send(hfsb_sandbox *s, hfsb_str path,
                                        const hfsb_http_call *call,
                                        hfsb_http_reply      *reply,
                                        hfsb_err             *err) {
    hfsbi_sandbox_message m;
    hfsb_http_call        c = *call;
    hfsb_status           st;
    st = hfsbi_message_make(s, hfsb_buf_str(&s->api), path, call, &m);
    if (st == HFSB_OK) {
        c.url = hfsb_str_slice(hfsb_buf_str(&m.text), 0, m.hub_at);
        c.fields = m.fields;
        c.field_count = m.count;
        if (!c.connect_ms) c.connect_ms = s->o.times.connect_ms;
        reply->url.alloc = reply->body.alloc = reply->head.alloc = s->o.alloc;
        st = hfsb_http_send(&s->transport, &c, reply, err);
        if (reply->status) hfsbi_sandbox_note(s, reply);
    } else {
        (void)hfsbi_fail_status(err, st, "Request");
    }
    if (m.text.ptr) hfsb_secret_wipe(m.text.ptr, m.text.len);
    hfsb_buf_free(&m.text);
    return st;
}

HFSBI_FN hfsb_status hfsbi_sandbox_websocket(hfsb_sandbox *s, const char *path,
                                             size_t             max,
                                             const hfsb_cancel *cancel,
                                             hfsbi_ws_client  **out,
                                             int *status, hfsb_err *err) {
    const hfsb_str        api = HFSB_LIT("api/");
    hfsb_str              base = hfsb_buf_str(&s->api);
    hfsbi_sandbox_message m;
    hfsb_http_call        call = HFSB_INIT;
    hfsb_status           st;
    *out = NULL;
    *status = 0;
    if (s->v1)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "%s speaks HF's /v1, which has no /%s. Run "
                          "hfsb-server there, and give its URL without "
                          "\"v1+\".",
                          s->page.ptr, path);
    if (hfsb_str_ends(base, api)) base.len -= api.len;
    st = hfsbi_message_make(s, base, hfsb_cstr(path), &call, &m);
    if (st == HFSB_OK) {
        call.url = hfsb_str_slice(hfsb_buf_str(&m.text), 0, m.hub_at);
        call.fields = m.fields;
        call.field_count = m.count;
        call.connect_ms = s->o.times.connect_ms;
        call.cancel = cancel ? cancel : s->o.cancel;
        st = hfsbi_ws_client_open(&s->transport, &call, max, &s->o.alloc, out,
                                  status, err);
    } else {
        (void)hfsbi_fail_status(err, st, "WebSocket");
    }
    if (m.text.ptr) hfsb_secret_wipe(m.text.ptr, m.text.len);
    hfsb_buf_free(&m.text);
    return st;
}

/* ---- waiting for the server ---- */

enum { HFSBI_EMPTY_MS = 3000 }; /* for a first connection to a URL */

/* A server may echo a token. */
HFSBI_FN void hfsbi_sandbox_quote(const hfsb_sandbox *s, hfsb_str said,
                                  hfsb_err *err) {
    char text[1024]; /* long enough not to cut a token in two */
    said = hfsb_str_slice(said, 0, sizeof text - 1);
    (void)snprintf(text, sizeof text, "%.*s", (int)said.len, said.ptr);
    hfsbi_sandbox_scrub(s, text);
    if (*text) hfsbi_err_add(err, " (%.95s)", text);
}

/* True when the server answers but refuses the token. The reference's server
   replies 401, or 503 if it has no token to compare with. hfsb-server replies
   200 to anyone, and adds its version only for the right token. */
static bool hfsbi_probe_is_refused(const hfsb_http_reply *reply,
                                   const hfsb_json_value *root) {
    hfsb_str detail =
        hfsb_json_str(hfsb_json_get(root, "detail"), HFSB_LIT(""));
    bool ours = hfsb_http_reply_field(reply, "X-Hfsb", 0).ptr != NULL;
    return reply->status == 401 ||
           (reply->status == 503 &&
            hfsb_str_find(detail, HFSB_LIT("token not configured")) !=
                HFSB_NPOS) ||
           (reply->status == 200 && ours && !hfsb_json_get(root, "version"));
}

static bool hfsbi_sandbox_is_instance(hfsb_sandbox *s, const char *instance) {
    bool same;
    pthread_mutex_lock(&s->lock);
    same = *instance && !strcmp(s->instance, instance);
    pthread_mutex_unlock(&s->lock);
    return same;
}

/* HFSB_OK: the server answers; HFSB_BUSY: not yet; HFSB_AUTH, HFSB_NOMEM. */
static hfsb_status hfsbi_probe_read(hfsb_sandbox *s, hfsbi_probe *p,
                                    const hfsb_http_reply *reply) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   st = HFSB_OK;
    doc.alloc = s->o.alloc;
    p->status = reply->status;
    p->last.msg[0] = '\0';
    if (hfsb_json_parse(hfsb_buf_str(&reply->body), NULL, &doc, NULL) ==
        HFSB_NOMEM)
        return HFSB_NOMEM;
    if (hfsbi_probe_is_refused(reply, doc.root)) {
        st = hfsbi_fail(&p->last, HFSB_AUTH, 0,
                        "Sandbox API at %s answers, but %s", s->api.ptr,
                        s->o.api_token.len
                            ? "does not accept this token"
                            : "wants a token, which was not given");
        hfsbi_sandbox_quote(
            s, hfsb_json_str(hfsb_json_get(doc.root, "detail"), HFSB_LIT("")),
            &p->last);
    } else if (reply->status != 200) {
        st = HFSB_BUSY;
    } else {
        p->outdated = hfsbi_sandbox_is_instance(s, p->before);
        if (p->outdated) st = HFSB_BUSY;
    }
    hfsb_json_free(&doc);
    return st == HFSB_AUTH && p->fresh ? HFSB_BUSY : st;
}

HFSBI_FN hfsb_status hfsbi_probe_check(hfsb_sandbox *s, hfsbi_probe *p,
                                       long long ms) {
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_status     st;
    call.method = HFSB_LIT("GET");
    call.total_ms = ms;
    call.cancel = s->o.cancel;
    call.connect_ms = ms < s->o.times.connect_ms ? ms : s->o.times.connect_ms;
    reply.body.max = 64 * 1024;
    st = hfsbi_sandbox_send(s, HFSB_LIT("health"), &call, &reply, &p->last);
    if (st == HFSB_OK) st = hfsbi_probe_read(s, p, &reply);
    else if (st != HFSB_NOMEM && st != HFSB_CANCELLED && st != HFSB_REFUSED &&
             st != HFSB_ARG)
        st = HFSB_BUSY;
    hfsb_http_reply_free(&reply);
    if (st == HFSB_NOMEM)
        (void)hfsbi_fail_status(&p->last, st, "Health check");
    return st;
}

static hfsb_status hfsbi_probe_give_up(hfsb_sandbox *s, const hfsbi_probe *p,
                                       long long wait_ms, hfsb_err *err) {
    char status[16], seconds[HFSBI_SECONDS];
    if (p->outdated) { /* better than no server */
        hfsbi_sandbox_log(s,
                          "Warning: the server at %s is the one that ran "
                          "before the restart.",
                          s->api.ptr);
        return hfsbi_ok(err);
    }
    hfsbi_seconds_text(wait_ms, seconds);
    (void)snprintf(status, sizeof status, "%d", p->status);
    return hfsbi_fail(err, HFSB_TIMEOUT, 0,
                      "Sandbox API at %s not responding after %ss. Last "
                      "status: %s, last error: %s",
                      s->api.ptr, seconds, p->status ? status : "None",
                      p->last.msg[0] ? p->last.msg : "None");
}

/* How long to wait in all, after `failed` checks without an answer. The second
   one is logged: the first fails whenever a server is just starting. */
static long long hfsbi_probe_wait_ms(const hfsb_sandbox *s,
                                     const hfsbi_probe *p, long long wait_ms,
                                     size_t failed) {
    char seconds[HFSBI_SECONDS];
    if (!p->status && p->last.code == HFSB_CONNECT && p->empty_ms &&
        p->empty_ms < wait_ms)
        wait_ms = p->empty_ms;
    hfsbi_seconds_text(wait_ms, seconds);
    if (failed == 2)
        hfsbi_sandbox_log(s, "Waiting for the server at %s (timeout: %ss)...",
                          s->api.ptr, seconds);
    return wait_ms;
}

HFSBI_FN hfsb_status hfsbi_probe_run(hfsb_sandbox *s, hfsbi_probe *p,
                                     long long wait_ms, hfsb_err *err) {
    const hfsb_sandbox_times *t = &s->o.times;
    long long                 began = hfsb_clock_ms(), left, ms = wait_ms;
    size_t                    failed = 0;
    hfsb_status               st;
    for (;;) {
        left = began + ms - hfsb_clock_ms();
        if (left > t->health_ms) left = t->health_ms;
        st = s->protocol->check(s, p, left > 100 ? left : 100);
        if (st == HFSB_OK) {
            hfsbi_sandbox_log(s, "API is responsive at %s", s->api.ptr);
            return hfsbi_ok(err);
        }
        if (st != HFSB_BUSY) {
            if (err) *err = p->last;
            return st;
        }
        if (p->look && s->home && hfsb_clock_ms() >= p->look_at) {
            st = s->home->look(s, p->fresh, err);
            if (st != HFSB_OK) return st;
            p->look_at = hfsb_clock_ms() + t->poll_ms;
        }
        ms = hfsbi_probe_wait_ms(s, p, wait_ms, ++failed);
        st = hfsbi_poll_wait(s->o.cancel, t->api_poll_ms, began + ms);
        if (st == HFSB_LIMIT) return hfsbi_probe_give_up(s, p, ms, err);
        if (st == HFSB_CANCELLED)
            return hfsbi_fail_status(err, st, "Waiting for the sandbox");
    }
}

/* The instance that answers now, or "": the one that a restart ends. */
HFSBI_FN void
hfsbi_sandbox_find_instance(hfsb_sandbox *s,
                            char out[sizeof((hfsb_sandbox *)0)->instance]) {
    hfsbi_probe p = HFSB_INIT;
    bool        answered;
    p.before = "";
    pthread_mutex_lock(&s->lock);
    answered = s->answered;
    pthread_mutex_unlock(&s->lock);
    if (!answered) (void)s->protocol->check(s, &p, s->o.times.health_ms);
    pthread_mutex_lock(&s->lock);
    memcpy(out, s->instance, sizeof s->instance);
    pthread_mutex_unlock(&s->lock);
}

/* ---- connect, close ---- */

HFSBI_FN hfsb_status hfsbi_sandbox_connect(const hfsb_sandbox_opts *opts,
                                           hfsb_sandbox           **handle,
                                           hfsb_err                *err) {
    hfsbi_probe p = HFSB_INIT;
    hfsb_status st;
    p.before = "";
    p.look = true;
    /* a Space wakes up; a server at another URL already listens */
    if (!(*handle)->home && !(*handle)->at_edge && !opts->times.api_wait_ms)
        p.empty_ms = HFSBI_EMPTY_MS;
    st = hfsbi_probe_run(
        *handle, &p, hfsbi_sandbox_time(opts->times.api_wait_ms, 60000), err);
    if (st == HFSB_OK) return st;
    hfsbi_sandbox_free(*handle);
    *handle = NULL;
    return st;
}

hfsb_status hfsb_sandbox_connect_url(hfsb_str                 url,
                                     const hfsb_sandbox_opts *opts,
                                     hfsb_sandbox **out, hfsb_err *err) {
    hfsb_status st = hfsbi_sandbox_open_url(url, opts, out, err);
    return st == HFSB_OK ? hfsbi_sandbox_connect(opts, out, err) : st;
}

hfsb_status hfsb_sandbox_close(hfsb_sandbox *sandbox, bool delete_owned,
                               hfsb_err *err) {
    hfsb_status st = hfsbi_ok(err);
    if (!sandbox) return st;
    if (delete_owned && sandbox->owned)
        st = sandbox->home->remove(sandbox, err);
    hfsbi_sandbox_free(sandbox);
    return st;
}

/* ---- what it is ---- */

hfsb_str hfsb_sandbox_id(const hfsb_sandbox *sandbox) {
    return sandbox->id;
}

hfsb_str hfsb_sandbox_page(const hfsb_sandbox *sandbox) {
    return hfsb_buf_str(&sandbox->page);
}

hfsb_str hfsb_sandbox_api(const hfsb_sandbox *sandbox) {
    return hfsb_buf_str(&sandbox->api);
}

hfsb_str hfsb_sandbox_token(const hfsb_sandbox *sandbox) {
    return sandbox->o.api_token;
}

bool hfsb_sandbox_ours(const hfsb_sandbox *sandbox) {
    hfsb_sandbox *s = (hfsb_sandbox *)(uintptr_t)sandbox; /* for its lock */
    bool          ours;
    pthread_mutex_lock(&s->lock);
    ours = s->instance[0] != '\0';
    pthread_mutex_unlock(&s->lock);
    return ours;
}
