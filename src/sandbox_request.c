/* sandbox_request.c - one request to a sandbox's server, with its tokens.
   Depends on: http, url, net. */
#include "sandbox_call.h"
#include "url.h"

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
