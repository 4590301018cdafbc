/* hub_request.c - one request to the Hub: its fields, its repeats, its pages. */
#include "remote_private.h"
#include "../http/http_private.h"
#include "../http/url.h"

/* ==== hub error ==== */

/* what an answer of the Hub that is no success means, in words
   that help. */

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
    size_t mark = out->len;
    while (text.len) {
        size_t n = hfsbi_hub_secret_at(hub, request, text);
        if (n) hfsb_buf_append(out, HFSB_LIT("[secret]"));
        else hfsb_buf_append_byte(out, *text.ptr);
        text = hfsb_str_slice(text, n ? n : 1, text.len);
    }
    return hfsb_buf_finish(out, mark);
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
    size_t mark;
    text = hfsbi_trim(hfsb_str_slice(text, 0, HFSBI_HUB_SAID));
    if (!text.len || hfsbi_hub_is_html(text) ||
        hfsb_str_find(hfsb_buf_str(said), text) != HFSB_NPOS)
        return HFSB_OK;
    mark = said->len;
    if (said->len) hfsb_buf_append(said, HFSB_LIT("; "));
    hfsb_buf_append(said, text);
    return hfsb_buf_finish(said, mark);
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
static long long hfsbi_hub_asked(const hfsb_http_reply *reply) {
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

/* The reply's status is not 2xx: what that means, in *err. */
static hfsb_status hfsbi_hub_refused(const hfsb_hub          *hub,
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

/* ---- begin and end ---- */

HFSBI_FN void hfsbi_hub_begin(const hfsb_hub *hub, hfsbi_hub_request *request,
                              const char *method, const hfsb_cancel *cancel,
                              const char *what, ...) {
    va_list ap;
    memset(request, 0, sizeof *request);
    request->method = method;
    request->cancel = cancel;
    request->asked_ms = -1;
    request->target.alloc = request->body.alloc = hub->alloc;
    va_start(ap, what);
    (void)vsnprintf(request->what, sizeof request->what, what, ap);
    va_end(ap);
}

HFSBI_FN void hfsbi_hub_end(hfsbi_hub_request *request) {
    hfsb_buf_free(&request->target);
    hfsbi_hub_wipe(&request->body);
    hfsb_http_reply_free(&request->reply);
}

/* ---- one try ---- */

static bool hfsbi_hub_head(void *user, int status,
                           const hfsb_http_field *fields, size_t count) {
    hfsbi_hub_request *request = (hfsbi_hub_request *)user;
    size_t             i;
    request->opened = status >= 200 && status <= 299;
    if (!request->on_body) return true;
    for (i = 0; i < count; i++) /* a page is no stream */
        if (hfsbi_http_is(fields[i].name, "content-type") &&
            hfsb_http_same(hfsb_str_slice(fields[i].value, 0, 9),
                           HFSB_LIT("text/html")))
            request->opened = false;
    return true;
}

static bool hfsbi_hub_piece(void *user, hfsb_str piece) {
    hfsbi_hub_request *request = (hfsbi_hub_request *)user;
    return !request->opened || request->on_body(request->user, piece);
}

/* Random, as RFC 9562 section 5.4 has it. */
static void hfsbi_hub_uuid(char out[37]) {
    unsigned char b[16];
    size_t        i, at = 0;
    hfsbi_random(b, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0Fu) | 0x40u);
    b[8] = (unsigned char)((b[8] & 0x3Fu) | 0x80u);
    for (i = 0; i < sizeof b; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) out[at++] = '-';
        (void)snprintf(out + at, 3, "%02x", (unsigned)b[i]);
        at += 2;
    }
}

/* Where the request goes. The token is for the Hub alone. */
static hfsb_status hfsbi_hub_url(const hfsb_hub          *hub,
                                 const hfsbi_hub_request *request,
                                 hfsb_buf *url, bool *ours) {
    hfsb_str target = hfsb_buf_str(&request->target);
    hfsb_url there, here;
    size_t   mark = url->len;
    *ours = hfsb_str_starts(target, HFSB_LIT("/"));
    if (*ours) hfsb_buf_append(url, hfsb_buf_str(&hub->endpoint));
    hfsb_buf_append(url, target);
    if (!*ours)
        *ours = hfsb_url_parse(target, &there, NULL) == HFSB_OK &&
                hfsb_url_parse(hfsb_buf_str(&hub->endpoint), &here, NULL) ==
                    HFSB_OK &&
                hfsb_url_same_origin(&there, &here);
    return hfsb_buf_finish(url, mark);
}

enum { HFSBI_HUB_FIELDS = 5 };

static void hfsbi_hub_field(hfsb_http_call *call, hfsb_http_field *fields,
                            const char *name, hfsb_str value) {
    fields[call->field_count].name = hfsb_cstr(name);
    fields[call->field_count++].value = value;
}

/* Milliseconds to `until`, at least one, or `most` (0: no limit). */
static long long hfsbi_hub_left(const hfsbi_hub_request *request,
                                long long                most) {
    long long left;
    if (!request->until) return most;
    left = request->until - hfsb_clock_ms();
    if (left < 1) left = 1;
    return most > 0 && most < left ? most : left;
}

static void hfsbi_hub_call(const hfsb_hub *hub, hfsbi_hub_request *request,
                           hfsb_str url, hfsb_http_call *call) {
    call->method = hfsb_cstr(request->method);
    call->url = url;
    call->on_head = hfsbi_hub_head;
    call->user = request;
    call->cancel = request->cancel;
    if (request->on_body) {
        call->on_body = hfsbi_hub_piece;
        call->idle_ms = request->idle_ms;
    }
    call->total_ms =
        hfsbi_hub_left(request, request->on_body ? 0 : hub->timeout_ms);
    if (hub->timeout_ms < 30000) call->connect_ms = hub->timeout_ms;
    if (request->has_body) {
        call->body = hfsb_buf_str(&request->body);
        if (!call->body.ptr) call->body.ptr = "";
    }
}

/* Warnings of the Hub, once a topic: "topic; message". */
static void hfsbi_hub_warn(hfsb_hub *hub, const hfsbi_hub_request *request) {
    hfsb_buf text = HFSB_INIT;
    hfsb_str value;
    size_t   n, at;
    text.alloc = hub->alloc;
    for (n = 0; hub->log && n < 32; n++) {
        value = hfsb_http_reply_field(&request->reply, "X-HF-Warning", n);
        if (!value.ptr) break;
        at = hfsb_str_find_byte(value, ';');
        if (!hfsbi_hub_first(hub, hfsbi_trim(hfsb_str_slice(value, 0, at))))
            continue;
        if (at != HFSB_NPOS) value = hfsb_str_slice(value, at + 1, value.len);
        hfsb_buf_truncate(&text, 0);
        if (hfsbi_hub_redact(hub, request, hfsbi_trim(value), &text) ==
            HFSB_OK)
            hfsbi_hub_log(hub, "The Hub warns: %s", text.len ? text.ptr : "");
    }
    hfsbi_hub_wipe(&text);
}

/* No whole reply came. */
static hfsb_status hfsbi_hub_unheard(const hfsb_hub    *hub,
                                     hfsbi_hub_request *request,
                                     hfsb_status status, const hfsb_err *why,
                                     hfsb_err *err) {
    bool broken =
        status == HFSB_LOST || status == HFSB_TIMEOUT || status == HFSB_REMOTE;
    bool sent = request->reply.sent;
    request->again = status == HFSB_CONNECT || (broken && !sent) ||
                     (broken && request->repeat);
    if (sent && (broken || status == HFSB_CANCELLED)) request->unclear = true;
    (void)hfsbi_fail(err, status, 0, "Could not %s: %s", request->what,
                     why->msg[0] ? why->msg : hfsb_status_text(status));
    if (status == HFSB_CONNECT)
        hfsbi_err_add(err, " Is there a network, and is %s right?",
                      hub->endpoint.ptr);
    return status;
}

/* Nothing has happened at these, so they may be sent again in any case. */
static bool hfsbi_hub_harmless(const hfsbi_hub_request *request) {
    const hfsb_str busy = HFSB_LIT("conflicting operation is in progress");
    int            status = request->reply.status;
    return status == 429 ||
           (status == 409 && hfsb_str_find(hfsb_buf_str(&request->reply.body),
                                           busy) != HFSB_NPOS);
}

/* A page of HTML is none of the Hub's answers, but that of someone on the
   way: "log in first". */
static bool hfsbi_hub_is_page(const hfsb_http_reply *reply) {
    hfsb_str type = hfsb_http_reply_field(reply, "Content-Type", 0);
    return hfsb_http_same(hfsb_str_slice(type, 0, 9), HFSB_LIT("text/html"));
}

/* The status is 2xx. */
static hfsb_status hfsbi_hub_success(const hfsb_hub    *hub,
                                     hfsbi_hub_request *request,
                                     hfsb_err          *err) {
    const char *problem = "what came is not JSON";
    hfsb_status code = HFSB_OK;
    if (hfsbi_hub_is_page(&request->reply)) {
        problem = "with a page of HTML";
        code = HFSB_REMOTE;
    } else if (request->out)
        code = hfsb_json_parse(hfsb_buf_str(&request->reply.body), NULL,
                               request->out, err);
    if (code == HFSB_OK) return hfsbi_ok(err);
    if (code == HFSB_NOMEM) return code;
    request->again = request->repeat;
    request->unclear = true;
    return hfsbi_hub_odd(hub, request, problem, err);
}

static hfsb_status hfsbi_hub_heard(hfsb_hub *hub, hfsbi_hub_request *request,
                                   hfsb_err *err) {
    int  status = request->reply.status;
    bool trouble = status == 408 || status == 500 || status == 502 ||
                   status == 503 || status == 504;
    hfsbi_hub_warn(hub, request);
    if (status >= 200 && status <= 299)
        return hfsbi_hub_success(hub, request, err);
    request->asked_ms = hfsbi_hub_asked(&request->reply);
    request->again =
        hfsbi_hub_harmless(request) || (trouble && request->repeat);
    if (request->asked_ms > hub->max_wait_ms) request->again = false;
    if (status >= 500 || status == 408) request->unclear = true;
    return hfsbi_hub_refused(hub, request, err);
}

HFSBI_FN hfsb_status hfsbi_hub_once(hfsb_hub *hub, hfsbi_hub_request *request,
                                    hfsb_err *err) {
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_field fields[HFSBI_HUB_FIELDS];
    hfsb_buf        url = HFSB_INIT;
    hfsb_err        why = HFSB_INIT;
    char            uuid[37];
    hfsb_status     status;
    bool            ours;
    request->again = request->opened = false;
    request->asked_ms = -1;
    if (hub->offline)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "Could not %s: offline (HF_HUB_OFFLINE).",
                          request->what);
    url.alloc = hub->alloc;
    status = hfsbi_hub_url(hub, request, &url, &ours);
    if (status != HFSB_OK) {
        hfsb_buf_free(&url);
        return hfsbi_fail_status(err, status, request->what);
    }
    hfsbi_hub_uuid(uuid);
    hfsbi_hub_call(hub, request, hfsb_buf_str(&url), &call);
    call.fields = fields;
    hfsbi_hub_field(&call, fields, "Accept", HFSB_LIT("*/*"));
    if (request->has_body)
        hfsbi_hub_field(&call, fields, "Content-Type",
                        hfsb_cstr(request->content_type ? request->content_type
                                                        : "application/json"));
    hfsbi_hub_field(&call, fields, "User-Agent", hfsb_buf_str(&hub->agent));
    if (ours && hub->authorization.len)
        hfsbi_hub_field(&call, fields, "Authorization",
                        hfsb_buf_str(&hub->authorization));
    hfsbi_hub_field(&call, fields, "X-Amzn-Trace-Id", hfsb_cstr(uuid));
    hfsb_http_reply_free(&request->reply);
    request->reply.url.alloc = request->reply.body.alloc =
        request->reply.head.alloc = hub->alloc;
    status = hfsb_http_send(hub->transport, &call, &request->reply, &why);
    if (status == HFSB_OK) status = hfsbi_hub_heard(hub, request, err);
    else status = hfsbi_hub_unheard(hub, request, status, &why, err);
    hfsb_buf_free(&url);
    return status;
}

/* ---- repeats ---- */

HFSBI_FN long long hfsbi_hub_delay(const hfsb_hub *hub, size_t n) {
    long long ms = hub->delay_ms, most = hub->delay_ms * 8;
    while (n-- > 1 && ms < most) ms *= 2;
    return ms;
}

/* The same, unless the Hub asked for something else. */
static long long hfsbi_hub_pause_ms(const hfsb_hub          *hub,
                                    const hfsbi_hub_request *request,
                                    size_t                   n) {
    return request->asked_ms >= 0 ? request->asked_ms
                                  : hfsbi_hub_delay(hub, n);
}

HFSBI_FN bool hfsbi_hub_has_time(const hfsb_hub          *hub,
                                 const hfsbi_hub_request *request, size_t n) {
    return !request->until || hfsbi_hub_pause_ms(hub, request, n) <
                                  request->until - hfsb_clock_ms();
}

HFSBI_FN bool hfsbi_hub_wait(hfsb_hub *hub, hfsbi_hub_request *request,
                             size_t n, hfsb_err *err) {
    long long ms = hfsbi_hub_pause_ms(hub, request, n);
    int       status = request->reply.status;
    char      why[32];
    if (!status) (void)snprintf(why, sizeof why, "no answer");
    else if (request->opened) (void)snprintf(why, sizeof why, "to its end");
    else (void)snprintf(why, sizeof why, "HTTP %d", status);
    hfsbi_hub_log(hub, "Could not %s (%s): trying again in %lld.%lld s.",
                  request->what, why, ms / 1000, ms % 1000 / 100);
    if (hfsb_cancel_wait(request->cancel, ms)) return true;
    (void)hfsbi_fail(err, HFSB_CANCELLED, 0, "Cancelled: could not %s.",
                     request->what);
    return false;
}

HFSBI_FN hfsb_status hfsbi_hub_send(hfsb_hub *hub, hfsbi_hub_request *request,
                                    hfsb_err *err) {
    size_t      tries = request->tries ? request->tries : hub->tries, n;
    hfsb_status status;
    for (n = 1;; n++) {
        bool before = request->unclear;
        status = hfsbi_hub_once(hub, request, err);
        if (status == HFSB_NOT_FOUND && request->gone_is_done && before)
            return hfsbi_ok(err);
        if (status == HFSB_OK || !request->again || n >= tries ||
            !hfsbi_hub_has_time(hub, request, n))
            return status;
        if (!hfsbi_hub_wait(hub, request, n, err)) return HFSB_CANCELLED;
    }
}

HFSBI_FN hfsb_status hfsbi_hub_send_json(hfsb_hub          *hub,
                                         hfsbi_hub_request *request,
                                         hfsb_json_writer *w, hfsb_err *err) {
    hfsb_status status = hfsb_json_writer_finish(w, err);
    request->has_body = true;
    if (status == HFSB_OK) status = hfsbi_hub_send(hub, request, err);
    return status;
}

/* ---- pages ---- */

/* The address in <...> of the link whose rel is next; "" when there is none.
 */
static hfsb_str hfsbi_hub_next_link(const hfsb_http_reply *reply) {
    hfsb_str none = HFSB_INIT;
    size_t   n;
    for (n = 0; n < 8; n++) {
        hfsb_str rest = hfsb_http_reply_field(reply, "Link", n);
        if (!rest.ptr) return none;
        while (rest.len) {
            size_t   from = hfsb_str_find_byte(rest, '<');
            size_t   to = hfsb_str_find_byte(rest, '>'), end;
            hfsb_str link, parameters;
            if (from == HFSB_NPOS || to == HFSB_NPOS || to < from) break;
            link = hfsb_str_slice(rest, from + 1, to);
            rest = hfsb_str_slice(rest, to + 1, rest.len);
            end = hfsb_str_find_byte(rest, '<'); /* of the next one */
            parameters = hfsb_str_slice(rest, 0, end);
            if (hfsb_str_find(parameters, HFSB_LIT("rel=\"next\"")) !=
                    HFSB_NPOS ||
                hfsb_str_find(parameters, HFSB_LIT("rel=next")) != HFSB_NPOS)
                return link;
        }
    }
    return none;
}

/* The Hub gives its public addresses, whatever it was reached by. */
static hfsb_status hfsbi_hub_follow(const hfsb_hub    *hub,
                                    hfsbi_hub_request *request, hfsb_str link,
                                    hfsb_err *err) {
    const hfsb_str public_url = HFSB_LIT("https://huggingface.co/");
    hfsb_buf       next = HFSB_INIT;
    hfsb_status    status;
    next.alloc = hub->alloc;
    if (hfsb_str_starts(link, public_url)) {
        size_t mark = next.len;
        hfsb_buf_append(&next, hfsb_buf_str(&hub->endpoint));
        hfsb_buf_append(&next,
                        hfsb_str_slice(link, public_url.len - 1, link.len));
        status = hfsb_buf_finish(&next, mark);
        if (status != HFSB_OK) hfsbi_fail_status(err, status, request->what);
    } else
        status = hfsb_url_resolve(hfsb_buf_str(&request->reply.url), link,
                                  &next, err);
    if (status == HFSB_ARG) status = HFSB_REMOTE;
    if (status != HFSB_OK) {
        hfsb_buf_free(&next);
        return status;
    }
    hfsb_buf_free(&request->target);
    request->target = next;
    return HFSB_OK;
}

/* One page; *left is how many more are wanted, *more whether to go on. */
static hfsb_status
hfsbi_hub_page(hfsb_hub *hub, hfsbi_hub_request *request, size_t *left,
               bool (*each)(void *user, const hfsb_json_value *item),
               void *user, bool *more, hfsb_err *err) {
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    hfsb_status    status;
    doc.alloc = hub->alloc;
    request->out = &doc;
    *more = false;
    status = hfsbi_hub_send(hub, request, err);
    request->out = NULL;
    if (status != HFSB_OK) return status;
    if (hfsb_json_type_of(doc.root) != HFSB_JSON_ARRAY)
        status = hfsbi_hub_odd(hub, request, "what came is not a list", err);
    *more = status == HFSB_OK;
    it = hfsb_json_begin(doc.root);
    while (*more && hfsb_json_next(&it)) {
        *more = each(user, it.value);
        if (--*left == 0) *more = false;
    }
    hfsb_json_free(&doc);
    return status;
}

enum { HFSBI_HUB_PAGES = 1000 }; /* the Hub allows no more in 5 minutes */

/* Pages in a circle come by the one that is in *mark; it is moved on now and
   then, since a circle need not begin with the first one. `page`: how many
   there were. */
static hfsb_status hfsbi_hub_check_page(const hfsb_hub          *hub,
                                        const hfsbi_hub_request *request,
                                        size_t page, hfsb_buf *mark,
                                        hfsb_err *err) {
    hfsb_status status;
    if (page >= HFSBI_HUB_PAGES)
        return hfsbi_hub_odd(hub, request, "its pages have no end", err);
    if (hfsb_str_equal(hfsb_buf_str(mark), hfsb_buf_str(&request->target)))
        return hfsbi_hub_odd(hub, request, "its pages go in a circle", err);
    if (page & (page - 1)) return HFSB_OK; /* at 1, 2, 4, 8 ... */
    hfsb_buf_truncate(mark, 0);
    status = hfsb_buf_append(mark, hfsb_buf_str(&request->target));
    if (status != HFSB_OK) hfsbi_fail_status(err, status, request->what);
    return status;
}

HFSBI_FN hfsb_status hfsbi_hub_pages(hfsb_hub *hub, hfsbi_hub_request *request,
                                     size_t limit,
                                     bool (*each)(void                  *user,
                                                  const hfsb_json_value *item),
                                     void *user, hfsb_err *err) {
    hfsb_status status = HFSB_OK;
    size_t      left = limit ? limit : HFSB_NPOS, page;
    bool        more = true;
    hfsb_buf    mark = HFSB_INIT;
    hfsb_str    link;
    mark.alloc = hub->alloc;
    request->repeat = true;
    for (page = 1; more; page++) {
        status = hfsbi_hub_page(hub, request, &left, each, user, &more, err);
        if (!more) break;
        link = hfsbi_hub_next_link(&request->reply);
        if (!link.len) break;
        status = hfsbi_hub_follow(hub, request, link, err);
        if (status == HFSB_OK)
            status = hfsbi_hub_check_page(hub, request, page, &mark, err);
        more = status == HFSB_OK;
    }
    hfsb_buf_free(&mark);
    return status;
}
