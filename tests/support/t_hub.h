/* t_hub.h - shared by the tests of the HUB: a transport that answers from a
   script and records the requests (no sockets, no waiting), and common
   calls. */
#ifndef T_HUB_H
#define T_HUB_H
#include "t.h"
#ifdef HFSBI_SPLIT
#include "../../src/hub/hub_private.h"
#include "../../src/core/core_private.h"
#include "../../src/http/url.h"
#endif

#define T_TOKEN "hf_goodtoken"
#define T_BOX   "alice/sandbox-1a2b3c4d"

/* Bodies that are no JSON, and what they are said to be. */
#define T_HTML                                                         \
    "<!DOCTYPE html>\n<html><head><title>503</title></head><body>Bad " \
    "gateway</body></html>"
#define T_PLAIN "Content-Type: text/plain"
#define T_PAGE  "Content-Type: text/html; charset=utf-8"

/* What comes back for one request. */
typedef struct t_reply {
    const char *request; /* "GET /api/whoami-v2" as it must be (NULL: any) */
    int         status;  /* 0: none comes */
    const char *fields;  /* "Name: value\n..." (NULL: none) */
    const char *body;    /* (NULL: none) */
    hfsb_status fate;    /* of the transport, after the reply */
    bool        unsent;  /* nothing reached the peer */
    size_t      piece;   /* bytes of a piece of the body (0: all at once) */
} t_reply;

typedef struct t_request { /* as it was sent */
    hfsb_buf line;   /* "POST /api/..."; another host: "POST http://..." */
    hfsb_buf fields; /* "name: value\n", names in lower case */
    hfsb_buf body;
    bool     has_body;
} t_request;

enum { T_REQUESTS = 64 };

typedef struct t_hub {
    hfsb_hub      *hub;
    hfsb_hub_opts  opts;
    hfsb_transport transport;
    hfsb_cancel   *cancel; /* set when the log says "trying again", if stop */
    bool           stop;
    const t_reply *script;
    size_t         script_count;
    /* instead of a script; *out is all zero except for the request */
    void (*answer)(struct t_hub *h, const t_request *request, t_reply *out);
    t_request sent[T_REQUESTS];
    size_t    sent_count;
    long long total_ms, idle_ms; /* of the last call */
    hfsb_buf  log;               /* lines */
    hfsb_buf  text;              /* lines of a log, or what `answer` made */
    size_t    lines, line_limit;
    size_t    pages;
    hfsb_err  err;
} t_hub;

/* ---- the transport ---- */

HFSBI_UNUSED static hfsb_str t_field(const t_request *request,
                                     const char      *name) {
    static char key[64];
    hfsb_str    all = hfsb_buf_str(&request->fields), value = HFSB_INIT;
    size_t      at;
    (void)snprintf(key, sizeof key, "%s: ", name);
    at = hfsb_str_find(all, hfsb_cstr(key));
    if (at == HFSB_NPOS) return value;
    value = hfsb_str_slice(all, at + strlen(key), all.len);
    return hfsb_str_slice(value, 0, hfsb_str_find_byte(value, '\n'));
}

HFSBI_UNUSED static void t_keep(t_hub *h, const hfsb_http_call *call,
                                t_request *r) {
    hfsb_str endpoint = HFSB_LIT("http://hub.test"), url = call->url;
    size_t   i, j;
    if (h->hub) endpoint = hfsb_hub_endpoint(h->hub);
    if (hfsb_str_starts(url, endpoint))
        url = hfsb_str_slice(url, endpoint.len, url.len);
    T_CHECK(hfsb_buf_printf(&r->line, "%.*s %.*s", (int)call->method.len,
                            call->method.ptr, (int)url.len,
                            url.ptr) == HFSB_OK);
    for (i = 0; i < call->field_count; i++) {
        for (j = 0; j < call->fields[i].name.len; j++)
            T_CHECK(hfsb_buf_append_byte(
                        &r->fields,
                        hfsbi_lower(call->fields[i].name.ptr[j])) == HFSB_OK);
        T_CHECK(hfsb_buf_printf(&r->fields, ": %.*s\n",
                                (int)call->fields[i].value.len,
                                call->fields[i].value.ptr) == HFSB_OK);
    }
    r->has_body = call->body.ptr != NULL;
    T_CHECK(hfsb_buf_append(&r->body, call->body) == HFSB_OK);
    h->total_ms = call->total_ms;
    h->idle_ms = call->idle_ms;
}

HFSBI_UNUSED static bool t_give_head(const hfsb_http_call *call,
                                     const t_reply        *reply) {
    hfsb_http_field fields[16];
    size_t          count = 0;
    hfsb_str        rest = hfsb_cstr(reply->fields);
    while (rest.len && count < 15) {
        size_t   end = hfsb_str_find_byte(rest, '\n');
        hfsb_str line = hfsb_str_slice(rest, 0, end);
        size_t   colon = hfsb_str_find_byte(line, ':');
        fields[count].name = hfsb_str_slice(line, 0, colon);
        fields[count++].value =
            hfsbi_trim(hfsb_str_slice(line, colon + 1, line.len));
        if (end == HFSB_NPOS) break;
        rest = hfsb_str_slice(rest, end + 1, rest.len);
    }
    if (reply->body && *reply->body == '{' &&
        !strstr(reply->fields ? reply->fields : "", "Content-Type")) {
        fields[count].name = hfsb_cstr("Content-Type");
        fields[count++].value = hfsb_cstr("application/json; charset=utf-8");
    }
    return !call->on_head ||
           call->on_head(call->user, reply->status, fields, count);
}

HFSBI_UNUSED static bool t_give(const hfsb_http_call *call,
                                const t_reply        *reply) {
    hfsb_str body = hfsb_cstr(reply->body);
    if (!t_give_head(call, reply)) return false;
    while (body.len) {
        size_t n =
            reply->piece && reply->piece < body.len ? reply->piece : body.len;
        hfsb_str piece = t_exact(body.ptr, n);
        bool     go = !call->on_body || call->on_body(call->user, piece);
        t_drop(piece);
        if (!go) return false;
        body = hfsb_str_slice(body, n, body.len);
    }
    return true;
}

HFSBI_UNUSED static hfsb_status
t_perform(void *user, const hfsb_http_call *call, bool *sent, hfsb_err *err) {
    t_hub     *h = (t_hub *)user;
    t_request *r;
    t_reply    reply = HFSB_INIT;
    T_CHECK(h->sent_count < T_REQUESTS);
    if (h->sent_count >= T_REQUESTS)
        return hfsbi_fail(err, HFSB_REFUSED, 0, "too many requests");
    r = &h->sent[h->sent_count++];
    t_keep(h, call, r);
    if (hfsb_cancel_is_set(call->cancel))
        return hfsbi_fail(err, HFSB_CANCELLED, 0, "cancelled");
    if (h->answer) h->answer(h, r, &reply);
    else if (h->sent_count <= h->script_count)
        reply = h->script[h->sent_count - 1];
    else {
        printf("  not in the script: %s\n", r->line.ptr);
        T_CHECK(h->sent_count <= h->script_count);
        return hfsbi_fail(err, HFSB_REFUSED, 0, "not in the script");
    }
    if (reply.request)
        t_str(__FILE__, __LINE__, r->line.ptr, r->line.len, reply.request,
              strlen(reply.request));
    *sent = !reply.unsent;
    if (reply.status && !t_give(call, &reply))
        return hfsbi_fail(err, HFSB_CANCELLED, 0, "a callback said so");
    if (reply.fate == HFSB_OK && reply.status) return HFSB_OK;
    return hfsbi_fail(err, reply.fate, 0, "the wire: %s",
                      hfsb_status_text(reply.fate));
}

/* ---- a hub on it ---- */

HFSBI_UNUSED static void t_hub_log(void *user, hfsb_str line) {
    t_hub *h = (t_hub *)user;
    T_CHECK(hfsb_buf_printf(&h->log, "%.*s\n", (int)line.len, line.ptr) ==
            HFSB_OK);
    if (h->stop && hfsb_str_find(line, HFSB_LIT("trying again")) != HFSB_NPOS)
        hfsb_cancel_set(h->cancel);
}

/* Forgets the recorded requests. */
HFSBI_UNUSED static void t_hub_forget(t_hub *h) {
    size_t i;
    for (i = 0; i < h->sent_count; i++) {
        hfsb_buf_free(&h->sent[i].line);
        hfsb_buf_free(&h->sent[i].fields);
        hfsb_buf_free(&h->sent[i].body);
        memset(&h->sent[i], 0, sizeof h->sent[i]);
    }
    h->sent_count = 0;
    hfsb_buf_truncate(&h->log, 0);
    hfsb_buf_truncate(&h->text, 0);
    h->lines = 0;
}

HFSBI_UNUSED static void t_hub_init(t_hub *h) {
    memset(h, 0, sizeof *h);
    h->transport.perform = t_perform;
    h->transport.user = h;
    h->opts.transport = &h->transport;
    h->opts.endpoint = hfsb_cstr("http://hub.test");
    h->opts.token = hfsb_cstr(T_TOKEN);
    h->opts.delay_ms = 1;
    h->opts.log = t_hub_log;
    h->opts.user = h;
}

HFSBI_UNUSED static void t_hub_open(t_hub *h) {
    T_CHECK(hfsb_hub_open(&h->opts, &h->hub, &h->err) == HFSB_OK);
    T_CHECK(hfsb_cancel_open(NULL, &h->cancel, NULL) == HFSB_OK);
}

HFSBI_UNUSED static void t_hub_close(t_hub *h) {
    hfsb_hub_close(h->hub);
    hfsb_cancel_close(h->cancel);
    t_hub_forget(h);
    hfsb_buf_free(&h->log);
    hfsb_buf_free(&h->text);
    memset(h, 0, sizeof *h);
}

/* Starts a new script; recorded requests are forgotten. */
HFSBI_UNUSED static void t_hub_script(t_hub *h, const t_reply *script,
                                      size_t count) {
    t_hub_forget(h);
    h->script = script;
    h->script_count = count;
    h->answer = NULL;
    hfsb_cancel_reset(h->cancel);
    memset(&h->err, 0, sizeof h->err);
}
#define T_SCRIPT(h, script) \
    t_hub_script(h, script, sizeof(script) / sizeof *(script))

HFSBI_UNUSED static bool t_says(const t_hub *h, const char *part) {
    bool says = strstr(h->err.msg, part) != NULL;
    if (!says) printf("  \"%s\" is not in: %s\n", part, h->err.msg);
    return says;
}

HFSBI_UNUSED static hfsb_str t_s(const char *text) {
    return hfsb_cstr(text);
}

/* A line of a log: "time|line\n". */
HFSBI_UNUSED static bool t_line(void *user, hfsb_str line, hfsb_str time) {
    t_hub *h = (t_hub *)user;
    T_CHECK(hfsb_buf_printf(&h->text, "%.*s|%.*s\n", (int)time.len,
                            time.len ? time.ptr : "", (int)line.len,
                            line.len ? line.ptr : "") == HFSB_OK);
    return ++h->lines != h->line_limit;
}

HFSBI_UNUSED static bool t_any_line(void *user, hfsb_str line, hfsb_str time) {
    (void)user, (void)line, (void)time;
    return true;
}

/* Counts what is in a list. */
HFSBI_UNUSED static bool t_each(void *user, const hfsb_json_value *item) {
    (void)item;
    ++*(size_t *)user;
    return true;
}

HFSBI_UNUSED static hfsb_hub_pair t_pair(const char *key, const char *value,
                                         const char *description) {
    hfsb_hub_pair pair;
    pair.key = t_s(key);
    pair.value = t_s(value);
    pair.description = t_s(description);
    return pair;
}

/* ---- calls that several of them make, of T_BOX if of a Space ---- */

HFSBI_UNUSED static hfsb_status t_whoami(t_hub *h) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   status = hfsb_hub_whoami(h->hub, h->cancel, &doc, &h->err);
    hfsb_json_free(&doc);
    return status;
}

HFSBI_UNUSED static hfsb_status t_runtime(t_hub *h) {
    hfsb_space_runtime runtime;
    return hfsb_hub_runtime(h->hub, t_s(T_BOX), h->cancel, &runtime, &h->err);
}

HFSBI_UNUSED static hfsb_status t_info(t_hub *h, const char *revision,
                                       const char *expand) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   status =
        hfsb_hub_space(h->hub, t_s(T_BOX), t_s(revision), t_s(expand),
                       h->cancel, &doc, &h->err);
    hfsb_json_free(&doc);
    return status;
}

HFSBI_UNUSED static hfsb_status t_duplicate(t_hub *h) {
    hfsb_space_spec spec = HFSB_INIT;
    hfsb_hub_pair   secrets[2];
    memset(secrets, 0, sizeof secrets);
    secrets[0].key = t_s("OTHER");
    secrets[0].value = t_s("very-sec");
    secrets[1].key = t_s("KEY");
    secrets[1].value = t_s("very-secret-value");
    spec.id = t_s(T_BOX);
    spec.secrets = secrets;
    spec.secret_count = 2;
    return hfsb_hub_duplicate(h->hub, t_s("burtenshaw/sandbox"), &spec,
                              h->cancel, &h->err);
}

HFSBI_UNUSED static hfsb_status t_delete(t_hub *h) {
    return hfsb_hub_delete(h->hub, t_s(T_BOX), h->cancel, &h->err);
}

HFSBI_UNUSED static hfsb_status t_secret(t_hub *h) {
    hfsb_hub_pair secret = HFSB_INIT;
    secret.key = t_s("KEY");
    secret.value = t_s("very-secret-value");
    return hfsb_hub_set(h->hub, t_s(T_BOX), HFSB_HUB_SECRETS, &secret,
                        h->cancel, &h->err);
}

HFSBI_UNUSED static hfsb_status t_pause(t_hub *h) {
    return hfsb_hub_pause(h->hub, t_s(T_BOX), h->cancel, NULL, &h->err);
}

HFSBI_UNUSED static hfsb_status t_restart_factory(t_hub *h) {
    return hfsb_hub_restart(h->hub, t_s(T_BOX), true, h->cancel, NULL,
                            &h->err);
}

HFSBI_UNUSED static hfsb_status t_job(t_hub *h) {
    hfsb_job_spec spec = HFSB_INIT;
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_str      word = t_s("true");
    hfsb_status   status;
    spec.space = t_s("alice");
    spec.command = &word;
    spec.command_count = 1;
    status = hfsb_hub_job_run(h->hub, &spec, h->cancel, &doc, &h->err);
    hfsb_json_free(&doc);
    return status;
}
#endif
