/* hub_error.c - what an answer of the Hub that is no success means, in words
   that help. Depends on: http, net, json. */
#include "hub_parts.h"
#include "http_parts.h"

/* ---- secrets stay out ---- */

/* The secret that begins at p, the longest when there are several; 0: none.
   What is shorter than this could be any word. */
enum { HFSBI_HUB_SECRET_LEAST = 4 };

static size_t hfsbi_hub_secret_at(const hfsb_hub          *hub,
                                  const hfsbi_hub_request *request,
                                  hfsb_str                 rest) {
    const hfsb_str token =
        hfsb_str_slice(hfsb_buf_str(&hub->authorization), 7, HFSB_NPOS);
    size_t i, longest = 0;
    if (token.len >= HFSBI_HUB_SECRET_LEAST && hfsb_str_starts(rest, token))
        longest = token.len;
    for (i = 0; i < request->secret_count; i++) {
        hfsb_str secret = request->secrets[i].value;
        if (secret.len >= HFSBI_HUB_SECRET_LEAST && secret.len > longest &&
            hfsb_str_starts(rest, secret))
            longest = secret.len;
    }
    return longest;
}

HFSBI_FN hfsb_status hfsbi_hub_redact(const hfsb_hub          *hub,
                                      const hfsbi_hub_request *request,
                                      hfsb_str text, hfsb_buf *out) {
    hfsbi_sink sink = hfsbi_sink_begin(out);
    while (text.len) {
        size_t n = hfsbi_hub_secret_at(hub, request, text);
        if (n) hfsbi_put(&sink, HFSB_LIT("[secret]"));
        else hfsbi_put_byte(&sink, *text.ptr);
        text = hfsb_str_slice(text, n ? n : 1, text.len);
    }
    return hfsbi_sink_end(&sink);
}

/* ---- what the Hub said ---- */

enum {
    HFSBI_HUB_SAID = 2000
}; /* bytes looked at: a message has room for
                                   less */

static bool hfsbi_hub_is_html(hfsb_str text) {
    while (text.len && (*text.ptr == ' ' || *text.ptr == '\n' ||
                        *text.ptr == '\r' || *text.ptr == '\t'))
        text = hfsb_str_slice(text, 1, text.len);
    return hfsb_str_starts(text, HFSB_LIT("<")) ||
           hfsb_str_find(text, HFSB_LIT("<html")) != HFSB_NPOS ||
           hfsb_str_find(text, HFSB_LIT("<!DOCTYPE")) != HFSB_NPOS;
}

/* Adds what is no page and was not said yet. */
static hfsb_status hfsbi_hub_add(hfsb_buf *said, hfsb_str text) {
    hfsbi_sink sink;
    text = hfsbi_trim(hfsb_str_slice(text, 0, HFSBI_HUB_SAID));
    if (!text.len || hfsbi_hub_is_html(text) ||
        hfsb_str_find(hfsb_buf_str(said), text) != HFSB_NPOS)
        return HFSB_OK;
    sink = hfsbi_sink_begin(said);
    if (said->len) hfsbi_put(&sink, HFSB_LIT("; "));
    hfsbi_put(&sink, text);
    return hfsbi_sink_end(&sink);
}

/* A string, or those of an array; of objects their "message". */
static hfsb_status hfsbi_hub_add_value(hfsb_buf              *said,
                                       const hfsb_json_value *value) {
    const hfsb_str none = HFSB_LIT("");
    hfsb_status    status = hfsbi_hub_add(said, hfsb_json_str(value, none));
    hfsb_json_iter it;
    if (hfsb_json_type_of(value) == HFSB_JSON_OBJECT)
        return hfsbi_hub_add(
            said, hfsb_json_str(hfsb_json_get(value, "message"), none));
    if (hfsb_json_type_of(value) != HFSB_JSON_ARRAY) return status;
    it = hfsb_json_begin(value);
    while (status == HFSB_OK && said->len < HFSBI_HUB_SAID &&
           hfsb_json_next(&it)) {
        const hfsb_json_value *item = it.value;
        if (hfsb_json_type_of(item) == HFSB_JSON_OBJECT)
            item = hfsb_json_get(item, "message");
        status = hfsbi_hub_add(said, hfsb_json_str(item, none));
    }
    return status;
}

static hfsb_status hfsbi_hub_add_body(const hfsb_http_reply *reply,
                                      const hfsb_alloc      *alloc,
                                      hfsb_buf              *said) {
    static const char *const keys[] = {"error", "errors", "error_description",
                                       "message", "detail"};
    hfsb_json_doc            doc = HFSB_INIT;
    hfsb_str                 body = hfsb_buf_str(&reply->body), type;
    hfsb_status              status;
    size_t                   i;
    doc.alloc = *alloc;
    status = hfsb_json_parse(body, NULL, &doc, NULL);
    if (status == HFSB_NOMEM) return status;
    if (status != HFSB_OK) {
        type = hfsb_http_reply_field(reply, "Content-Type", 0);
        if (!hfsb_http_same(hfsb_str_slice(type, 0, 10),
                            HFSB_LIT("text/plain")))
            return HFSB_OK;
        return hfsbi_hub_add(said, body);
    }
    for (i = 0; i < sizeof keys / sizeof *keys && status == HFSB_OK; i++)
        status = hfsbi_hub_add_value(said, hfsb_json_get(doc.root, keys[i]));
    hfsb_json_free(&doc);
    return status;
}

/* X-Error-Message and the body's words, each once. */
static hfsb_status hfsbi_hub_said(const hfsbi_hub_request *request,
                                  hfsb_buf                *said) {
    const hfsb_http_reply *reply = &request->reply;
    hfsb_status            status = hfsbi_hub_add(
                   said, hfsb_http_reply_field(reply, "X-Error-Message", 0));
    if (status != HFSB_OK) return status;
    return hfsbi_hub_add_body(reply, &said->alloc, said);
}

/* ---- waiting ---- */

/* Digits of at most nine places behind `name` in a list of parameters; -1. */
static long long hfsbi_hub_parameter(hfsb_str item, const char *name) {
    long long value = -1;
    while (item.len) {
        size_t   end = hfsb_str_find_byte(item, ';'), i;
        hfsb_str part = hfsbi_trim(hfsb_str_slice(item, 0, end));
        item = hfsb_str_slice(item, end == HFSB_NPOS ? item.len : end + 1,
                              item.len);
        if (!hfsb_str_starts(part, hfsb_cstr(name))) continue;
        part = hfsb_str_slice(part, strlen(name), part.len);
        if (!part.len || part.len > 9) return -1;
        value = 0;
        for (i = 0; i < part.len; i++) {
            if (part.ptr[i] < '0' || part.ptr[i] > '9') return -1;
            value = value * 10 + (part.ptr[i] - '0');
        }
    }
    return value;
}

/* RateLimit comes with every reply: only r=0 explains this one. A second more
   than asked for, since theirs are whole ones. */
HFSBI_FN long long hfsbi_hub_asked(const hfsb_http_reply *reply) {
    hfsb_str  rest = hfsb_http_reply_field(reply, "RateLimit", 0), item;
    long long seconds = -1, t;
    while (reply->status == 429 && hfsbi_http_list_next(&rest, &item))
        if (hfsbi_hub_parameter(item, "r=") == 0) {
            t = hfsbi_hub_parameter(item, "t=");
            if (t > seconds) seconds = t;
        }
    if (seconds < 0)
        seconds = hfsbi_hub_parameter(
            hfsb_http_reply_field(reply, "Retry-After", 0), "");
    return seconds < 0 ? -1 : (seconds + 1) * 1000;
}

/* ---- what it means ---- */

/* The Hub does not tell those who may not see a repository that it is there:
   it says 401 then, but for a token that is none. */
static bool hfsbi_hub_hidden(const hfsb_hub          *hub,
                             const hfsbi_hub_request *request, hfsb_str said) {
    const hfsb_str spaces = HFSB_LIT("/api/spaces/");
    hfsb_str       target = hfsb_buf_str(&request->target);
    return hfsb_hub_has_token(hub) && hfsb_str_starts(target, spaces) &&
           hfsb_str_find(
               said,
               HFSB_LIT("Invalid credentials in Authorization header")) ==
               HFSB_NPOS;
}

static hfsb_status hfsbi_hub_meaning(const hfsb_hub          *hub,
                                     const hfsbi_hub_request *request,
                                     hfsb_str                 said) {
    hfsb_str code = hfsb_http_reply_field(&request->reply, "X-Error-Code", 0);
    int      status = request->reply.status;
    if (hfsb_str_equal(code, HFSB_LIT("RepoNotFound")) ||
        hfsb_str_equal(code, HFSB_LIT("RevisionNotFound")) ||
        hfsb_str_equal(code, HFSB_LIT("EntryNotFound")))
        return HFSB_NOT_FOUND;
    if (hfsb_str_equal(code, HFSB_LIT("GatedRepo")) ||
        hfsb_str_equal(said, HFSB_LIT("Access to this resource is disabled.")))
        return HFSB_DENIED;
    switch (status) {
    case 401:
        return hfsbi_hub_hidden(hub, request, said) ? HFSB_NOT_FOUND
                                                    : HFSB_AUTH;
    case 402: return HFSB_PAYMENT;
    case 403: return HFSB_DENIED;
    case 404:
    case 410: return HFSB_NOT_FOUND;
    case 409: return HFSB_CONFLICT;
    case 412: return HFSB_STALE;
    case 429: return HFSB_RATE;
    case 400:
    case 413:
    case 414:
    case 416:
    case 422: return HFSB_ARG;
    default: return HFSB_REMOTE;
    }
}

/* ---- what to do about it ---- */

static void hfsbi_hub_advise_token(const hfsb_hub *hub, hfsb_err *err) {
    if (hfsb_hub_has_token(hub))
        hfsbi_err_add(err,
                      " The Hub does not take this token: make a new one at "
                      "%s/settings/tokens and set HF_TOKEN.",
                      hub->endpoint.ptr);
    else
        hfsbi_err_add(err,
                      " No token was sent: make one at %s/settings/tokens and "
                      "set HF_TOKEN.",
                      hub->endpoint.ptr);
}

static void hfsbi_hub_advise_wait(const hfsb_hub          *hub,
                                  const hfsbi_hub_request *request,
                                  hfsb_err                *err) {
    if (request->asked_ms > hub->max_wait_ms)
        hfsbi_err_add(err,
                      " Too many requests: the Hub asks to wait %lld s, which "
                      "is longer than this waits (%lld s). Try again then.",
                      request->asked_ms / 1000, hub->max_wait_ms / 1000);
    else
        hfsbi_err_add(err, " Too many requests: wait some minutes and try "
                           "again.");
}

static void hfsbi_hub_advise(const hfsb_hub          *hub,
                             const hfsbi_hub_request *request,
                             hfsb_status code, hfsb_err *err) {
    switch (code) {
    case HFSB_AUTH: hfsbi_hub_advise_token(hub, err); return;
    case HFSB_RATE: hfsbi_hub_advise_wait(hub, request, err); return;
    case HFSB_PAYMENT:
        hfsbi_err_add(err,
                      " This needs a paid plan, a payment method or credits: "
                      "see %s/settings/billing.",
                      hub->endpoint.ptr);
        return;
    case HFSB_DENIED:
        hfsbi_err_add(err, " The token must have the right to write there, "
                           "and the account what the Hub asks for.");
        return;
    case HFSB_NOT_FOUND:
        hfsbi_err_add(err, " It is not there, or this token may not see it: "
                           "check the name and what the token may do.");
        return;
    case HFSB_CONFLICT:
        hfsbi_err_add(err, " It is there already, or something else is being "
                           "done to it: take another name, or try again.");
        return;
    case HFSB_STALE:
        hfsbi_err_add(err, " Someone else has changed it meanwhile: look at "
                           "the newest state and try again.");
        return;
    case HFSB_ARG:
        hfsbi_err_add(err, " The Hub does not take the request as it is.");
        return;
    default:
        hfsbi_err_add(err,
                      " The Hub has trouble, or it is not the Hub that "
                      "answers at %s: try again later.",
                      hub->endpoint.ptr);
    }
}

/* For those who ask the Hub's people about it. */
static void hfsbi_hub_add_id(const hfsb_hub          *hub,
                             const hfsbi_hub_request *request, hfsb_err *err) {
    static const char *const names[] = {"X-Request-Id", "X-Amzn-Trace-Id",
                                        "X-Amz-Cf-Id"};
    hfsb_str                 id = HFSB_INIT;
    hfsb_buf                 text = HFSB_INIT;
    size_t                   i;
    for (i = 0; i < sizeof names / sizeof *names && !id.len; i++)
        id = hfsb_http_reply_field(&request->reply, names[i], 0);
    if (!id.len) return;
    text.alloc = hub->alloc;
    if (hfsbi_hub_redact(hub, request, id, &text) == HFSB_OK) {
        hfsbi_err_add(err, " (request ");
        hfsbi_err_quote(err, hfsb_buf_str(&text), 120);
        hfsbi_err_add(err, ")");
    }
    hfsbi_hub_wipe(&text);
}

/* Not so much of it that there is no room for the advice. */
static void hfsbi_hub_quote(hfsb_str said, hfsb_err *err) {
    size_t n = said.len;
    if (n > 800) n = 800;
    while (n < said.len && ((unsigned char)said.ptr[n] & 0xC0u) == 0x80u) n--;
    hfsbi_err_add(err, ": ");
    hfsbi_err_quote(err, hfsb_str_slice(said, 0, n), n);
    if (n < said.len) hfsbi_err_add(err, "...");
}

static hfsb_status hfsbi_hub_explain(const hfsb_hub          *hub,
                                     const hfsbi_hub_request *request,
                                     hfsb_str said, hfsb_err *err) {
    hfsb_status code = hfsbi_hub_meaning(hub, request, said);
    (void)hfsbi_fail(err, code, 0, "Could not %s: HTTP %d", request->what,
                     request->reply.status);
    if (said.len) hfsbi_hub_quote(said, err);
    else if (hfsbi_hub_is_html(hfsb_buf_str(&request->reply.body)))
        hfsbi_err_add(err, " and a page of HTML");
    if (!hfsb_str_ends(said, HFSB_LIT("."))) hfsbi_err_add(err, ".");
    hfsbi_hub_advise(hub, request, code, err);
    hfsbi_hub_add_id(hub, request, err);
    return code;
}

HFSBI_FN hfsb_status hfsbi_hub_refused(const hfsb_hub          *hub,
                                       const hfsbi_hub_request *request,
                                       hfsb_err                *err) {
    hfsb_buf    raw = HFSB_INIT, said = HFSB_INIT;
    hfsb_status status;
    raw.alloc = said.alloc = hub->alloc;
    status = hfsbi_hub_said(request, &raw);
    if (status == HFSB_OK)
        status = hfsbi_hub_redact(hub, request, hfsb_buf_str(&raw), &said);
    if (status == HFSB_OK)
        status = hfsbi_hub_explain(hub, request, hfsb_buf_str(&said), err);
    else status = hfsbi_fail_status(err, status, request->what);
    hfsbi_hub_wipe(&raw);
    hfsb_buf_free(&said);
    return status;
}

HFSBI_FN hfsb_status hfsbi_hub_odd(const hfsb_hub          *hub,
                                   const hfsbi_hub_request *request,
                                   const char *problem, hfsb_err *err) {
    (void)hfsbi_fail(err, HFSB_REMOTE, 0, "Could not %s: HTTP %d, but %s.",
                     request->what, request->reply.status, problem);
    hfsbi_hub_add_id(hub, request, err);
    return HFSB_REMOTE;
}
