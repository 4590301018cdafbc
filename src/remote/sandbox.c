/* sandbox.c - a sandbox's handle: made, waited for, deleted. */
#include "remote_private.h"
#include "../http/url.h"

/* ==== sandbox request ==== */

/* one request to a sandbox's server, with its tokens. */

/* ---- what the server says of itself ---- */

HFSBI_FN hfsb_str hfsbi_sandbox_said(hfsb_str value) {
    const hfsb_str name = HFSB_LIT("instance=");
    size_t         at = hfsb_str_find(value, name), end;
    hfsb_str       id;
    if (at == HFSB_NPOS) return hfsb_str_make("", 0);
    id = hfsb_str_slice(value, at + name.len, value.len);
    end = hfsb_str_find_byte(id, ';');
    id = hfsbi_trim(hfsb_str_slice(id, 0, end));
    if (id.len >= sizeof((hfsb_sandbox *)0)->instance) id.len = 0;
    return id;
}

/* Only what the address we asked says counts: one that it redirected us to
   was sent no key, and is not who answers the next time. */
HFSBI_FN bool hfsbi_sandbox_is_there(const hfsb_sandbox *sandbox,
                                     hfsb_str            url) {
    hfsb_url here, there;
    return hfsb_url_parse(hfsb_buf_str(&sandbox->api), &here, NULL) ==
               HFSB_OK &&
           hfsb_url_parse(url, &there, NULL) == HFSB_OK &&
           hfsb_url_same_origin(&here, &there);
}

static void hfsbi_sandbox_note(hfsb_sandbox          *sandbox,
                               const hfsb_http_reply *reply) {
    hfsb_str said = hfsb_http_reply_field(reply, "X-Hfsb", 0);
    hfsb_str id = hfsbi_sandbox_said(said);
    if (!id.len || !hfsbi_sandbox_is_there(sandbox, hfsb_buf_str(&reply->url)))
        return;
    pthread_mutex_lock(&sandbox->lock);
    memcpy(sandbox->instance, id.ptr, id.len);
    sandbox->instance[id.len] = '\0';
    sandbox->ours = true;
    pthread_mutex_unlock(&sandbox->lock);
}

/* ---- its tokens ---- */

/* The Hub's token is for the Hub and the edge of its Spaces, whatever server
   the caller points us to. */
static bool hfsbi_sandbox_at_edge(const hfsb_sandbox *sandbox) {
    const hfsb_str domain = HFSB_LIT(".hf.space");
    hfsb_url       url;
    if (!sandbox->is_url) return true;
    return hfsb_url_parse(hfsb_buf_str(&sandbox->api), &url, NULL) ==
               HFSB_OK &&
           url.secure && url.host.len > domain.len &&
           hfsb_http_same(hfsb_str_slice(url.host, url.host.len - domain.len,
                                         url.host.len),
                          domain);
}

static hfsb_status hfsbi_bearer(hfsb_buf *out, const hfsb_buf *token) {
    if (!token->len) return HFSB_OK;
    return hfsb_buf_printf(out, "Bearer %s", token->ptr);
}

static void hfsbi_bearer_free(hfsb_buf *bearer) {
    if (bearer->ptr) hfsbi_wipe(bearer->ptr, bearer->len);
    hfsb_buf_free(bearer);
}

/* ---- the request ---- */

typedef struct hfsbi_sandbox_message {
    hfsb_buf         url, hub, api; /* the last two are secret */
    hfsb_http_field *fields;
    size_t           room, count;
} hfsbi_sandbox_message;

static void hfsbi_sandbox_message_free(const hfsb_sandbox    *sandbox,
                                       hfsbi_sandbox_message *m) {
    hfsb_buf_free(&m->url);
    hfsbi_bearer_free(&m->hub);
    hfsbi_bearer_free(&m->api);
    if (m->fields)
        hfsbi_array_free(&sandbox->o.alloc, m->fields, m->room,
                         sizeof *m->fields);
}

static void hfsbi_sandbox_message_add(hfsbi_sandbox_message *m, hfsb_str name,
                                      const hfsb_buf *value) {
    if (!value->len) return;
    m->fields[m->count].name = name;
    m->fields[m->count++].value = hfsb_buf_str(value);
}

static hfsb_status hfsbi_sandbox_message_make(const hfsb_sandbox    *sandbox,
                                              hfsb_str               path,
                                              const hfsb_http_call  *call,
                                              hfsbi_sandbox_message *m) {
    hfsb_status st;
    memset(m, 0, sizeof *m);
    m->url.alloc = m->hub.alloc = m->api.alloc = sandbox->o.alloc;
    m->room = call->field_count + 2;
    m->fields = (hfsb_http_field *)hfsbi_array(&sandbox->o.alloc, m->room,
                                               sizeof *m->fields);
    if (!m->fields) return HFSB_NOMEM;
    st = hfsb_buf_append(&m->url, hfsb_buf_str(&sandbox->api));
    if (st == HFSB_OK) st = hfsb_buf_append(&m->url, path);
    if (st == HFSB_OK && hfsbi_sandbox_at_edge(sandbox))
        st = hfsbi_bearer(&m->hub, &sandbox->hub_token);
    if (st == HFSB_OK) st = hfsbi_bearer(&m->api, &sandbox->api_token);
    if (st != HFSB_OK) return st;
    if (call->field_count)
        memcpy(m->fields, call->fields,
               call->field_count * sizeof *call->fields);
    m->count = call->field_count;
    hfsbi_sandbox_message_add(m, HFSB_LIT("Authorization"), &m->hub);
    hfsbi_sandbox_message_add(m, HFSB_LIT("X-Sandbox-Authorization"), &m->api);
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_sandbox_send(hfsb_sandbox *sandbox, hfsb_str path,
                                        const hfsb_http_call *call,
                                        hfsb_http_reply      *reply,
                                        hfsb_err             *err) {
    hfsbi_sandbox_message m;
    hfsb_http_call        c = *call;
    hfsb_status st = hfsbi_sandbox_message_make(sandbox, path, call, &m);
    if (st == HFSB_OK) {
        c.url = hfsb_buf_str(&m.url);
        c.fields = m.fields;
        c.field_count = m.count;
        if (!c.connect_ms) c.connect_ms = sandbox->o.connect_ms;
        reply->url.alloc = reply->body.alloc = sandbox->o.alloc;
        reply->head.alloc = sandbox->o.alloc;
        st = hfsb_http_send(&sandbox->transport, &c, reply, err);
        if (reply->status) hfsbi_sandbox_note(sandbox, reply);
    } else {
        (void)hfsbi_fail_status(err, st, "Request");
    }
    hfsbi_sandbox_message_free(sandbox, &m);
    return st;
}

HFSBI_FN const hfsb_transport *hfsbi_hub_transport(const hfsb_hub *hub);

/* ---- what goes into it ---- */

/* Both are sent as the value of a header field. */
static hfsb_status hfsbi_sandbox_check_token(hfsb_str token, const char *which,
                                             hfsb_err *err) {
    size_t i;
    for (i = 0; i < token.len; i++) {
        unsigned char c = (unsigned char)token.ptr[i];
        if (c <= ' ' || c >= 127)
            return hfsbi_fail(err, HFSB_ARG, i,
                              "%s holds a blank or another character that no "
                              "token has (at byte %zu)",
                              which, i);
    }
    return HFSB_OK;
}

static hfsb_status hfsbi_sandbox_check(const hfsb_sandbox_opts *o, bool is_url,
                                       hfsb_err *err) {
    hfsb_status st;
    if (!o || (!o->hub && !is_url))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "a sandbox on a Space needs the option hub");
    if (!o->transport && !o->hub)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "a sandbox needs the option transport or hub");
    if (!(o->timeout >= 0) || o->delay_ms < 0 || o->connect_ms < 0 ||
        o->margin_ms < 0 || o->wait_ms < 0 || o->poll_ms < 0 ||
        o->api_wait_ms < 0 || o->api_poll_ms < 0 || o->health_ms < 0)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "a time among the options of a sandbox is below 0");
    st = hfsbi_sandbox_check_token(o->hub_token, "hub_token", err);
    if (st == HFSB_OK)
        st = hfsbi_sandbox_check_token(o->api_token, "api_token", err);
    return st;
}

/* Never so long that it could not be added to the clock. */
static long long hfsbi_sandbox_or(long long given, long long otherwise) {
    if (given > LLONG_MAX / 4) given = LLONG_MAX / 4;
    return given ? given : otherwise;
}

static void hfsbi_sandbox_defaults(hfsb_sandbox_opts *o) {
    if (!(o->timeout > 0)) o->timeout = 240;
    if (o->timeout > 1200) o->timeout = 1200;
    if (!o->tries) o->tries = 3;
    o->delay_ms = hfsbi_sandbox_or(o->delay_ms, 3000);
    o->connect_ms = hfsbi_sandbox_or(o->connect_ms, 30000);
    o->margin_ms = hfsbi_sandbox_or(o->margin_ms, 30000);
    o->wait_ms = hfsbi_sandbox_or(o->wait_ms, 600000);
    o->poll_ms = hfsbi_sandbox_or(o->poll_ms, 5000);
    o->api_wait_ms = hfsbi_sandbox_or(o->api_wait_ms, 180000);
    /* they are added to the clock */
    o->api_poll_ms = hfsbi_sandbox_or(o->api_poll_ms, 3000);
    o->health_ms = hfsbi_sandbox_or(o->health_ms, 10000);
}

/* ---- addresses ---- */

/* "http://host:1/x/api/" as base "http://host:1/x" and api
   "http://host:1/x/api/". */
static hfsb_status hfsbi_sandbox_address(hfsb_str url, hfsb_buf *base,
                                         hfsb_buf *api, hfsb_err *err) {
    hfsb_url    u;
    hfsb_str    path;
    size_t      mark;
    hfsb_status st = hfsb_url_parse(url, &u, err);
    if (st != HFSB_OK) return st;
    if (u.user.len || hfsb_str_find_byte(u.target, '?') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "the address of a sandbox is http://host:port or "
                          "https://host, without user, password and \"?\"");
    path = u.target;
    while (path.len && path.ptr[path.len - 1] == '/') path.len--;
    if (hfsb_str_ends(path, HFSB_LIT("/api"))) path.len -= 4;
    while (path.len && path.ptr[path.len - 1] == '/') path.len--;
    mark = base->len;
    hfsb_buf_append(base,
                    u.secure ? HFSB_LIT("https://") : HFSB_LIT("http://"));
    hfsb_buf_append(base, u.authority);
    hfsb_buf_append(base, path);
    st = hfsb_buf_finish(base, mark);
    if (st == HFSB_OK) st = hfsb_buf_append(api, hfsb_buf_str(base));
    if (st == HFSB_OK) st = hfsb_buf_append(api, HFSB_LIT("/api/"));
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "Address");
}

/* By the Hub's rule; nothing when a Space's name is too long for it. */
static hfsb_status hfsbi_sandbox_by_rule(hfsb_sandbox *s, hfsb_err *err) {
    hfsb_buf    host = HFSB_INIT;
    hfsb_status st;
    host.alloc = s->o.alloc;
    st = hfsb_space_host(hfsb_buf_str(&s->id), &host, err);
    if (st == HFSB_ARG) st = HFSB_OK;
    else if (st == HFSB_OK)
        st = hfsb_buf_printf(&s->api, "https://%s/api/", host.ptr);
    hfsb_buf_free(&host);
    return st;
}

static hfsb_status hfsbi_sandbox_space(hfsb_sandbox *s, hfsb_err *err) {
    const char *url = getenv("HFSB_SPACE_URL");
    hfsb_str    endpoint = hfsb_hub_endpoint(s->o.hub);
    hfsb_buf    base = HFSB_INIT;
    hfsb_status st = hfsb_space_check(hfsb_buf_str(&s->id), err);
    if (st == HFSB_OK)
        st = hfsb_buf_printf(&s->page, "%.*s/spaces/%s", (int)endpoint.len,
                             endpoint.ptr, s->id.ptr);
    if (st == HFSB_OK && !s->space_url.len && url && *url)
        st = hfsb_buf_append(&s->space_url, hfsb_cstr(url));
    if (st != HFSB_OK) return st;
    if (!s->space_url.len) return hfsbi_sandbox_by_rule(s, err);
    base.alloc = s->o.alloc;
    st = hfsbi_sandbox_address(hfsb_buf_str(&s->space_url), &base, &s->api,
                               err);
    hfsb_buf_free(&base);
    return st;
}

/* The rule is sure of letters, digits and "-"; what the Hub does to others,
   or to a name beyond 63 characters, it must say itself. */
static bool hfsbi_sandbox_is_plain(const hfsb_sandbox *s) {
    hfsb_str id = hfsb_buf_str(&s->id);
    return s->api.len && hfsb_str_find_byte(id, '.') == HFSB_NPOS &&
           hfsb_str_find_byte(id, '_') == HFSB_NPOS;
}

HFSBI_FN hfsb_status hfsbi_sandbox_locate(hfsb_sandbox *s, hfsb_err *err) {
    hfsb_buf    base = HFSB_INIT, plain = HFSB_INIT;
    hfsb_status st;
    if (s->is_url || s->space_url.len || hfsbi_sandbox_is_plain(s))
        return HFSB_OK;
    base.alloc = plain.alloc = s->o.alloc;
    st = hfsb_hub_space_url(s->o.hub, hfsb_buf_str(&s->id), s->o.cancel, &base,
                            err);
    if (st == HFSB_OK) {
        hfsb_buf_truncate(&s->api, 0);
        st = hfsbi_sandbox_address(hfsb_buf_str(&base), &plain, &s->api, err);
    }
    hfsb_buf_free(&plain);
    hfsb_buf_free(&base);
    return st;
}

/* ---- the handle ---- */

static void hfsbi_sandbox_views(hfsb_sandbox *s) {
    s->o.hub_token = hfsb_buf_str(&s->hub_token);
    s->o.api_token = hfsb_buf_str(&s->api_token);
    s->o.work_dir = hfsb_buf_str(&s->work_dir);
    s->o.space_url = hfsb_buf_str(&s->space_url);
    s->o.transport = &s->transport;
}

static hfsb_status hfsbi_sandbox_fill(hfsb_sandbox *s, hfsb_str id,
                                      hfsb_str url, hfsb_err *err) {
    const hfsb_sandbox_opts o = s->o;
    hfsb_str    work_dir = s->is_url ? o.work_dir : HFSB_LIT("/app");
    hfsb_status st;
    if (o.work_dir.len) work_dir = o.work_dir;
    st = hfsb_buf_append(&s->id, id);
    if (st == HFSB_OK) st = hfsb_buf_append(&s->hub_token, o.hub_token);
    if (st == HFSB_OK) st = hfsb_buf_append(&s->api_token, o.api_token);
    if (st == HFSB_OK) st = hfsb_buf_append(&s->work_dir, work_dir);
    if (st == HFSB_OK) st = hfsb_buf_append(&s->space_url, o.space_url);
    if (st == HFSB_OK)
        st = s->is_url ? hfsbi_sandbox_address(url, &s->page, &s->api, err)
                       : hfsbi_sandbox_space(s, err);
    hfsbi_sandbox_views(s);
    return st;
}

HFSBI_FN hfsb_status hfsbi_sandbox_new(const hfsb_sandbox_opts *opts,
                                       hfsb_str id, hfsb_str url, bool owned,
                                       hfsb_sandbox **out, hfsb_err *err) {
    hfsb_sandbox *s;
    bool          is_url = !id.len;
    hfsb_status   st = hfsbi_sandbox_check(opts, is_url, err);
    *out = NULL;
    if (st != HFSB_OK) return st;
    s = (hfsb_sandbox *)hfsbi_array(&opts->alloc, 1, sizeof *s);
    if (!s) return hfsbi_fail_status(err, HFSB_NOMEM, "Sandbox");
    memset(s, 0, sizeof *s);
    s->o = *opts;
    s->transport =
        opts->transport ? *opts->transport : *hfsbi_hub_transport(opts->hub);
    s->is_url = is_url;
    s->owned = owned;
    s->id.alloc = s->page.alloc = s->api.alloc = s->hub_token.alloc =
        s->api_token.alloc = s->work_dir.alloc = s->space_url.alloc =
            s->seen.alloc = opts->alloc;
    if (pthread_mutex_init(&s->lock, NULL) != 0) {
        hfsbi_array_free(&opts->alloc, s, 1, sizeof *s);
        return hfsbi_fail_status(err, HFSB_BUSY, "Sandbox");
    }
    hfsbi_sandbox_defaults(&s->o);
    st = hfsbi_sandbox_fill(s, id, url, err);
    if (st == HFSB_OK) {
        *out = s;
        return hfsbi_ok(err);
    }
    hfsbi_sandbox_free(s);
    if (st == HFSB_NOMEM || st == HFSB_LIMIT)
        (void)hfsbi_fail_status(err, st, "Sandbox");
    return st;
}

static void hfsbi_sandbox_forget(hfsb_buf *secret) {
    if (secret->ptr) hfsbi_wipe(secret->ptr, secret->len);
    hfsb_buf_free(secret);
}

HFSBI_FN void hfsbi_sandbox_free(hfsb_sandbox *s) {
    hfsb_alloc alloc;
    if (!s) return;
    alloc = s->o.alloc;
    hfsbi_sandbox_forget(&s->hub_token);
    hfsbi_sandbox_forget(&s->api_token);
    hfsb_buf_free(&s->id);
    hfsb_buf_free(&s->page);
    hfsb_buf_free(&s->api);
    hfsb_buf_free(&s->work_dir);
    hfsb_buf_free(&s->space_url);
    hfsb_buf_free(&s->seen);
    pthread_mutex_destroy(&s->lock);
    hfsbi_array_free(&alloc, s, 1, sizeof *s);
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

HFSBI_FN void hfsbi_seconds_text(long long ms, char out[HFSBI_SECONDS]) {
    size_t n;
    (void)snprintf(out, HFSBI_SECONDS, "%lld.%03lld", ms / 1000, ms % 1000);
    n = strlen(out);
    while (n && out[n - 1] == '0') n--;
    if (n && out[n - 1] == '.') n--;
    out[n] = '\0';
}

/* ---- is its server there? ---- */

typedef struct hfsbi_probe_reply {
    int  status; /* 0: none came */
    bool ours;
    bool refused; /* it answers, but not to this token */
    char said[96];
} hfsbi_probe_reply;

/* hfsb-server tells more to those who have the token, so that one can know
   without calling a tool. Others refuse with 401, or with 503 when they have
   no token to compare with. */
static hfsb_status hfsbi_probe_read(const hfsb_sandbox    *s,
                                    const hfsb_http_reply *reply,
                                    hfsbi_probe_reply     *h) {
    const hfsb_str none = HFSB_LIT("");
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_str       detail;
    hfsb_status    st;
    char           text[1024]; /* so that no token is cut in two */
    doc.alloc = s->o.alloc;
    h->status = reply->status;
    h->ours = hfsb_http_reply_field(reply, "X-Hfsb", 0).ptr != NULL;
    st = hfsb_json_parse(hfsb_buf_str(&reply->body), NULL, &doc, NULL);
    if (st == HFSB_NOMEM) return st;
    detail = hfsb_json_str(hfsb_json_get(doc.root, "detail"), none);
    (void)snprintf(text, sizeof text, "%.*s",
                   detail.len < sizeof text ? (int)detail.len
                                            : (int)sizeof text - 1,
                   detail.ptr);
    hfsbi_sandbox_hide(s, text);
    (void)snprintf(h->said, sizeof h->said, "%.*s", (int)sizeof h->said - 1,
                   text);
    h->refused =
        h->status == 401 ||
        (h->status == 503 && strstr(h->said, "token not configured")) ||
        (h->status == 200 && h->ours && !hfsb_json_get(doc.root, "version"));
    hfsb_json_free(&doc);
    return HFSB_OK;
}

static hfsb_status hfsbi_probe_ask(hfsb_sandbox *s, long long ms,
                                   hfsbi_probe_reply *h, hfsb_err *err) {
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_status     st;
    memset(h, 0, sizeof *h);
    call.method = HFSB_LIT("GET");
    call.total_ms = ms;
    call.cancel = s->o.cancel;
    call.connect_ms = ms < s->o.connect_ms ? ms : s->o.connect_ms;
    reply.url.alloc = reply.body.alloc = reply.head.alloc = s->o.alloc;
    reply.body.max = 64 * 1024;
    st = hfsbi_sandbox_send(s, HFSB_LIT("health"), &call, &reply, err);
    if (st == HFSB_OK) st = hfsbi_probe_read(s, &reply, h);
    hfsb_http_reply_free(&reply);
    return st;
}

typedef struct hfsbi_probe_wait {
    const char *before;  /* instance that does not count */
    bool        fresh;   /* it was just started */
    int         status;  /* of the last reply */
    bool        replied; /* the server from before did */
    hfsb_err    last;    /* of the last ask that brought none */
} hfsbi_probe_wait;

static bool hfsbi_probe_is(hfsb_sandbox *s, const char *instance) {
    bool same;
    pthread_mutex_lock(&s->lock);
    same = *instance && !strcmp(s->instance, instance);
    pthread_mutex_unlock(&s->lock);
    return same;
}

/* HFSB_BUSY: not yet. */
static hfsb_status hfsbi_probe_once(hfsb_sandbox *s, hfsbi_probe_wait *w,
                                    long long ms, hfsb_err *err) {
    hfsbi_probe_reply h;
    hfsb_status       st = hfsbi_probe_ask(s, ms, &h, &w->last);
    if (st == HFSB_NOMEM) return hfsbi_fail_status(err, st, "Health check");
    if (st == HFSB_CANCELLED || st == HFSB_REFUSED || st == HFSB_ARG) {
        if (err) *err = w->last;
        return st;
    }
    if (st != HFSB_OK) return HFSB_BUSY;
    w->status = h.status;
    w->last.msg[0] = '\0';
    if (h.refused) {
        st =
            hfsbi_fail(&w->last, HFSB_AUTH, 0,
                       "Sandbox API at %s answers, but %s%s%s%s", s->api.ptr,
                       s->api_token.len ? "does not accept this token"
                                        : "wants a token, which was not given",
                       *h.said ? " (" : "", h.said, *h.said ? ")" : "");
        if (w->fresh) return HFSB_BUSY;
        if (err) *err = w->last;
        return st;
    }
    if (h.status != 200) return HFSB_BUSY;
    w->replied = hfsbi_probe_is(s, w->before);
    return w->replied ? HFSB_BUSY : HFSB_OK;
}

static hfsb_status hfsbi_probe_give_up(hfsb_sandbox *s, hfsbi_probe_wait *w,
                                       long long wait_ms, hfsb_err *err) {
    char status[16], seconds[HFSBI_SECONDS];
    if (w->replied) { /* whoever it is, one can work with it */
        hfsbi_sandbox_log(s,
                          "Warning: the server that answers at %s was "
                          "there before.",
                          s->api.ptr);
        return hfsbi_ok(err);
    }
    hfsbi_seconds_text(wait_ms, seconds);
    (void)snprintf(status, sizeof status, "%d", w->status);
    return hfsbi_fail(err, HFSB_TIMEOUT, 0,
                      "Sandbox API at %s not responding after %ss. Last "
                      "status: %s, last error: %s",
                      s->api.ptr, seconds, w->status ? status : "None",
                      w->last.msg[0] ? w->last.msg : "None");
}

static hfsb_status hfsbi_probe_wait_for(hfsb_sandbox *s, long long wait_ms,
                                        hfsbi_probe_wait *w, hfsb_err *err) {
    long long   now = hfsb_clock_ms(), until = now + wait_ms, ms;
    hfsb_status st;
    for (;;) { /* at least once, and once more when time is up */
        ms = until - now < s->o.health_ms ? until - now : s->o.health_ms;
        st = hfsbi_probe_once(s, w, ms > 100 ? ms : 100, err);
        if (st == HFSB_OK) {
            hfsbi_sandbox_log(s, "API is responsive at %s", s->api.ptr);
            return hfsbi_ok(err);
        }
        if (st != HFSB_BUSY) return st;
        now = hfsb_clock_ms();
        if (now >= until) return hfsbi_probe_give_up(s, w, wait_ms, err);
        ms = until - now < s->o.api_poll_ms ? until - now : s->o.api_poll_ms;
        if (!hfsb_cancel_wait(s->o.cancel, ms))
            return hfsbi_fail_status(err, HFSB_CANCELLED,
                                     "Waiting for the sandbox");
        now = hfsb_clock_ms();
    }
}

/* Asks for health until it answers 200; wait_ms in all. HFSB_OK, HFSB_TIMEOUT,
   HFSB_CANCELLED, HFSB_AUTH. */
static hfsb_status hfsbi_sandbox_wait(hfsb_sandbox *s, long long wait_ms,
                                      hfsb_err *err) {
    hfsbi_probe_wait w = HFSB_INIT;
    w.before = "";
    return hfsbi_probe_wait_for(s, wait_ms, &w, err);
}

HFSBI_FN hfsb_status hfsbi_sandbox_wait_new(hfsb_sandbox *s, long long wait_ms,
                                            const char *before,
                                            hfsb_err   *err) {
    hfsbi_probe_wait w = HFSB_INIT;
    w.before = before;
    w.fresh = true;
    return hfsbi_probe_wait_for(s, wait_ms, &w, err);
}

/* ---- connect and close ---- */

/* A server that does not answer: what the Hub says of its Space. */
static void hfsbi_sandbox_explain(const hfsb_sandbox *s, hfsb_err *err) {
    hfsb_space_runtime runtime;
    hfsb_status        st;
    if (s->is_url || !err) return;
    st = hfsb_hub_runtime(s->o.hub, hfsb_buf_str(&s->id), s->o.cancel,
                          &runtime, NULL);
    if (st == HFSB_NOT_FOUND)
        hfsbi_err_add(err,
                      "\nThe Hub shows no Space %s: it is not there, or the "
                      "token may not see it.",
                      s->id.ptr);
    else if (st == HFSB_OK)
        hfsbi_err_add(err, "\nIts Space is %s%s.", runtime.stage,
                      strcmp(runtime.stage, "PAUSED") ? "" : ": restart it");
}

static hfsb_status hfsbi_sandbox_connected(const hfsb_sandbox_opts *opts,
                                           hfsb_sandbox *s, hfsb_sandbox **out,
                                           hfsb_err *err) {
    hfsb_status st = hfsbi_sandbox_locate(s, err);
    /* without the Hub the rule must do, unless there is no such Space */
    if (st != HFSB_OK && st != HFSB_NOT_FOUND && st != HFSB_CANCELLED &&
        st != HFSB_NOMEM && s->api.len)
        st = HFSB_OK;
    if (st == HFSB_OK)
        st = hfsbi_sandbox_wait(s, hfsbi_sandbox_or(opts->api_wait_ms, 60000),
                                err);
    if (st == HFSB_TIMEOUT) hfsbi_sandbox_explain(s, err);
    if (st != HFSB_OK) {
        hfsbi_sandbox_free(s);
        return st;
    }
    *out = s;
    return HFSB_OK;
}

hfsb_status hfsb_sandbox_connect(hfsb_str id, bool owned,
                                 const hfsb_sandbox_opts *opts,
                                 hfsb_sandbox **out, hfsb_err *err) {
    hfsb_sandbox *s;
    hfsb_status   st;
    *out = NULL;
    if (!id.len) return hfsb_space_check(id, err);
    st = hfsbi_sandbox_new(opts, id, HFSB_LIT(""), owned, &s, err);
    return st == HFSB_OK ? hfsbi_sandbox_connected(opts, s, out, err) : st;
}

hfsb_status hfsb_sandbox_connect_url(hfsb_str                 url,
                                     const hfsb_sandbox_opts *opts,
                                     hfsb_sandbox **out, hfsb_err *err) {
    hfsb_sandbox *s;
    hfsb_status   st;
    *out = NULL;
    st = hfsbi_sandbox_new(opts, HFSB_LIT(""), url, false, &s, err);
    return st == HFSB_OK ? hfsbi_sandbox_connected(opts, s, out, err) : st;
}

hfsb_status hfsb_sandbox_close(hfsb_sandbox *sandbox, bool delete_owned,
                               hfsb_err *err) {
    hfsb_status st = hfsbi_ok(err);
    if (!sandbox) return st;
    if (delete_owned && sandbox->owned && !sandbox->is_url)
        st = hfsb_sandbox_delete(sandbox, err);
    hfsbi_sandbox_free(sandbox);
    return st;
}

/* ---- what it is ---- */

hfsb_str hfsb_sandbox_id(const hfsb_sandbox *sandbox) {
    return hfsb_buf_str(&sandbox->id);
}

hfsb_str hfsb_sandbox_page(const hfsb_sandbox *sandbox) {
    return hfsb_buf_str(&sandbox->page);
}

hfsb_str hfsb_sandbox_api(const hfsb_sandbox *sandbox) {
    return hfsb_buf_str(&sandbox->api);
}

hfsb_str hfsb_sandbox_token(const hfsb_sandbox *sandbox) {
    return hfsb_buf_str(&sandbox->api_token);
}

bool hfsb_sandbox_owned(const hfsb_sandbox *sandbox) {
    return sandbox->owned;
}

bool hfsb_sandbox_ours(const hfsb_sandbox *sandbox) {
    hfsb_sandbox *s = (hfsb_sandbox *)(uintptr_t)sandbox; /* for its lock */
    bool          ours;
    pthread_mutex_lock(&s->lock);
    ours = s->ours;
    pthread_mutex_unlock(&s->lock);
    return ours;
}

/* ---- the Space ---- */

static hfsb_status hfsbi_sandbox_has_space(const hfsb_sandbox *s,
                                           const char *verb, hfsb_err *err) {
    if (!s->is_url) return HFSB_OK;
    return hfsbi_fail(err, HFSB_ARG, 0,
                      "%s is a server at an address, not a Space: nothing to "
                      "%s",
                      s->page.ptr, verb);
}

hfsb_status hfsb_sandbox_delete(hfsb_sandbox *sandbox, hfsb_err *err) {
    hfsb_status st = hfsbi_sandbox_has_space(sandbox, "delete", err);
    bool        gone;
    if (st != HFSB_OK) return st;
    if (!sandbox->owned)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "This Sandbox did not create %s.", sandbox->id.ptr);
    pthread_mutex_lock(&sandbox->lock);
    gone = sandbox->deleted;
    pthread_mutex_unlock(&sandbox->lock);
    if (gone) return hfsbi_ok(err);
    hfsbi_sandbox_log(sandbox, "Deleting sandbox: %s...", sandbox->id.ptr);
    /* o.cancel ends the work; this is what comes after it */
    st = hfsb_hub_delete(sandbox->o.hub, hfsb_buf_str(&sandbox->id),
                         sandbox->o.give_up, err);
    if (st != HFSB_OK && st != HFSB_NOT_FOUND) return st;
    pthread_mutex_lock(&sandbox->lock);
    sandbox->deleted = true;
    pthread_mutex_unlock(&sandbox->lock);
    hfsbi_sandbox_log(sandbox, "Deleted.");
    return hfsbi_ok(err);
}

hfsb_status hfsb_sandbox_pause(hfsb_sandbox *sandbox, hfsb_err *err) {
    hfsb_status st = hfsbi_sandbox_has_space(sandbox, "pause", err);
    if (st != HFSB_OK) return st;
    return hfsb_hub_pause(sandbox->o.hub, hfsb_buf_str(&sandbox->id),
                          sandbox->o.cancel, NULL, err);
}

hfsb_status hfsb_sandbox_restart(hfsb_sandbox *sandbox, bool factory,
                                 hfsb_err *err) {
    hfsb_status st = hfsbi_sandbox_has_space(sandbox, "restart", err);
    char        before[sizeof sandbox->instance];
    if (st != HFSB_OK) return st;
    pthread_mutex_lock(&sandbox->lock);
    memcpy(before, sandbox->instance, sizeof before);
    pthread_mutex_unlock(&sandbox->lock);
    st = hfsb_hub_restart(sandbox->o.hub, hfsb_buf_str(&sandbox->id), factory,
                          sandbox->o.cancel, NULL, err);
    if (st != HFSB_OK) return st;
    return hfsbi_sandbox_wait_new(sandbox, sandbox->o.api_wait_ms, before,
                                  err);
}

hfsb_status hfsb_sandbox_status(hfsb_sandbox *sandbox, hfsb_space_runtime *out,
                                hfsb_err *err) {
    hfsb_status st = hfsbi_sandbox_has_space(sandbox, "ask about", err);
    memset(out, 0, sizeof *out);
    if (st != HFSB_OK) return st;
    return hfsb_hub_runtime(sandbox->o.hub, hfsb_buf_str(&sandbox->id),
                            sandbox->o.cancel, out, err);
}
