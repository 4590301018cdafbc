/* request.c - a request to the Hub: from a row of the table of endpoints
   to a reply, or to an error that says what to do.

       begin --> [body] --> send --> once --> reply 2xx --> out, on_body
                              ^        |
                              |        +----> anything else: *err, and
                              |               again / unclear
                              +-- wait <------ again, and tries are left

   begin checks the names and fills in the row. once sends the request and
   classifies the reply; it never decides about retries, but records whether
   another try may help (again) and whether this one may have taken effect
   without confirmation (unclear). send retries within the retry policy. Tokens
   and secrets are redacted from everything a reply adds to a message, and an
   HTML page never becomes part of one. */
#include "hub_private.h"
#include "../http/http_private.h"

/* ---- secrets ---- */

typedef struct hfsbi_hub_secrets {
    hfsb_str             token;
    const hfsb_hub_pair *pairs;
} hfsbi_hub_secrets;

static hfsb_str hfsbi_hub_secret_at(const void *owner, size_t i) {
    const hfsbi_hub_secrets *s = (const hfsbi_hub_secrets *)owner;
    return i ? s->pairs[i - 1].value : s->token;
}

HFSBI_FN hfsb_status hfsbi_hub_redact(const hfsb_hub      *hub,
                                      const hfsb_hub_pair *pairs, size_t count,
                                      hfsb_str text, hfsb_buf *out) {
    hfsbi_hub_secrets secrets;
    size_t            mark = out->len;
    hfsb_status       status = hfsb_buf_append(out, text);
    if (status != HFSB_OK || !text.len) return status;
    secrets.token =
        hfsb_str_slice(hfsb_buf_str(&hub->authorization), 7, HFSB_NPOS);
    secrets.pairs = pairs;
    out->len = mark + hfsbi_redact(hfsbi_hub_secret_at, &secrets, 1 + count,
                                   out->ptr + mark, out->len - mark);
    return HFSB_OK;
}

/* Appends text without the hub's token and the request's secrets. */
static hfsb_status hfsbi_request_redact(const hfsbi_hub_request *request,
                                        hfsb_str text, hfsb_buf *out) {
    return hfsbi_hub_redact(request->hub, request->secrets,
                            request->secret_count, text, out);
}

/* ---- the text of an error reply ---- */

enum { HFSBI_HUB_MAX_TEXT = 2000 }; /* bytes; a message has room for fewer */

static bool hfsbi_hub_is_html(hfsb_str text) {
    while (text.len && (*text.ptr == ' ' || *text.ptr == '\n' ||
                        *text.ptr == '\r' || *text.ptr == '\t'))
        text = hfsb_str_slice(text, 1, text.len);
    return hfsb_str_starts(text, HFSB_LIT("<")) ||
           hfsb_str_find(text, HFSB_LIT("<html")) != HFSB_NPOS ||
           hfsb_str_find(text, HFSB_LIT("<!DOCTYPE")) != HFSB_NPOS;
}

/* Adds text to *all unless it is HTML or already there. */
static void hfsbi_hub_add_text(hfsb_buf *all, hfsb_str text) {
    text = hfsbi_trim(hfsb_str_slice(text, 0, HFSBI_HUB_MAX_TEXT));
    if (!text.len || hfsbi_hub_is_html(text) ||
        hfsb_str_find(hfsb_buf_str(all), text) != HFSB_NPOS)
        return;
    if (all->len) hfsb_buf_append(all, HFSB_LIT("; "));
    hfsb_buf_append(all, text);
}

/* Adds a string, or the "message" of an object. */
static void hfsbi_hub_add_string(hfsb_buf *all, const hfsb_json_value *value) {
    if (hfsb_json_type_of(value) == HFSB_JSON_OBJECT)
        value = hfsb_json_get(value, "message");
    hfsbi_hub_add_text(all, hfsb_json_str(value, HFSB_LIT("")));
}

static void hfsbi_hub_add_body(hfsb_buf *all, const hfsb_http_reply *reply) {
    static const char *const keys[] = {"error", "errors", "error_description",
                                       "message", "detail"};
    hfsb_json_doc            doc = HFSB_INIT;
    hfsb_str                 body = hfsb_buf_str(&reply->body), type;
    hfsb_status              status;
    size_t                   i;
    doc.alloc = all->alloc;
    status = hfsb_json_parse(body, NULL, &doc, NULL);
    type = hfsb_http_reply_field(reply, "Content-Type", 0);
    if (status == HFSB_NOMEM) all->status = status;
    else if (status != HFSB_OK && hfsb_http_same(hfsb_str_slice(type, 0, 10),
                                                 HFSB_LIT("text/plain")))
        hfsbi_hub_add_text(all, body);
    for (i = 0; i < sizeof keys / sizeof *keys && status == HFSB_OK; i++) {
        const hfsb_json_value *value = hfsb_json_get(doc.root, keys[i]);
        hfsb_json_iter         it;
        if (hfsb_json_type_of(value) != HFSB_JSON_ARRAY) {
            hfsbi_hub_add_string(all, value);
            continue;
        }
        it = hfsb_json_begin(value);
        while (all->len < HFSBI_HUB_MAX_TEXT && hfsb_json_next(&it))
            hfsbi_hub_add_string(all, it.value);
    }
    hfsb_json_free(&doc);
}

/* Adds the reply's id, for a report to the Hub's support. */
static void hfsbi_hub_add_id(const hfsbi_hub_request *request, hfsb_err *err) {
    static const char *const names[] = {"X-Request-Id", "X-Amzn-Trace-Id",
                                        "X-Amz-Cf-Id"};
    hfsb_str                 id = HFSB_INIT;
    hfsb_buf                 text = HFSB_INIT;
    size_t                   i;
    for (i = 0; i < sizeof names / sizeof *names && !id.len; i++)
        id = hfsb_http_reply_field(&request->reply, names[i], 0);
    if (!id.len) return;
    text.alloc = request->hub->alloc;
    if (hfsbi_request_redact(request, id, &text) == HFSB_OK) {
        hfsbi_err_add(err, " (request ");
        hfsbi_err_quote(err, hfsb_buf_str(&text), 120);
        hfsbi_err_add(err, ")");
    }
    hfsbi_hub_wipe(&text);
}

/* ---- the wait that a reply asks for ---- */

/* The number, of at most nine digits, that follows `name` in a list of
   parameters; -1: there is none. */
static long long hfsbi_hub_parameter(hfsb_str list, const char *name) {
    unsigned long long value = 0;
    hfsb_str           part;
    while (hfsbi_list_next(&list, ';', &part)) {
        part = hfsbi_trim(part);
        if (!hfsb_str_starts(part, hfsb_cstr(name))) continue;
        part = hfsb_str_slice(part, strlen(name), part.len);
        return part.len &&
                       hfsbi_read_decimal(part, 999999999, &value) == part.len
                   ? (long long)value
                   : -1;
    }
    return -1;
}

/* Milliseconds to wait by RateLimit or Retry-After; 0: not given. RateLimit
   comes with every reply and explains this one only with r=0. One second is
   added because theirs are rounded. */
static long long hfsbi_hub_asked_ms(const hfsb_http_reply *reply) {
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
    return (seconds + 1) * 1000;
}

/* ---- the meaning of an error reply ---- */

/* The Hub answers 401 instead of 404 for a repository that the token may not
   see, so that nobody learns that it exists; a bad token is 401 as well. */
static bool hfsbi_hub_is_hidden(const hfsbi_hub_request *request,
                                hfsb_str                 text) {
    hfsb_str target = hfsb_buf_str(&request->target);
    return hfsb_hub_has_token(request->hub) &&
           (hfsb_str_starts(target, HFSB_LIT("/api/spaces/")) ||
            hfsb_str_starts(target, HFSB_LIT("/api/models/"))) &&
           hfsb_str_find(
               text,
               HFSB_LIT("Invalid credentials in Authorization header")) ==
               HFSB_NPOS;
}

static hfsb_status hfsbi_hub_status(const hfsbi_hub_request *request,
                                    hfsb_str                 text) {
    hfsb_str code = hfsb_http_reply_field(&request->reply, "X-Error-Code", 0);
    if (hfsb_str_equal(code, HFSB_LIT("RepoNotFound")) ||
        hfsb_str_equal(code, HFSB_LIT("RevisionNotFound")) ||
        hfsb_str_equal(code, HFSB_LIT("EntryNotFound")))
        return HFSB_NOT_FOUND;
    if (hfsb_str_equal(code, HFSB_LIT("GatedRepo")) ||
        hfsb_str_equal(text, HFSB_LIT("Access to this resource is disabled.")))
        return HFSB_DENIED;
    switch (request->reply.status) {
    case 401:
        return hfsbi_hub_is_hidden(request, text) ? HFSB_NOT_FOUND : HFSB_AUTH;
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

static void hfsbi_hub_advise_wait(const hfsbi_hub_request *request,
                                  hfsb_err                *err) {
    long long asked_ms = request->retry.asked_ms;
    if (asked_ms > request->hub->max_wait_ms)
        hfsbi_err_add(err,
                      " Too many requests: the Hub asks to wait %lld s, "
                      "longer than the limit of %lld s. Try again then.",
                      asked_ms / 1000, request->hub->max_wait_ms / 1000);
    else
        hfsbi_err_add(err, " Too many requests: wait a few minutes and try "
                           "again.");
}

/* Adds what to do about the error. */
static void hfsbi_hub_advise(const hfsbi_hub_request *request,
                             hfsb_status code, hfsb_err *err) {
    static const struct {
        hfsb_status code;
        const char *text, *more; /* more: the endpoint goes in between */
    } advice[] = {
        {HFSB_AUTH, " The Hub rejected this token: create a new one at ",
         "/settings/tokens and set HF_TOKEN."},
        {HFSB_PAYMENT,
         " This needs a paid plan, a payment method or credits: see ",
         "/settings/billing."},
        {HFSB_DENIED,
         " The token needs write permission there, and the account must meet "
         "the Hub's requirements.",
         NULL},
        {HFSB_NOT_FOUND,
         " It does not exist, or this token has no access to it: check the "
         "name and the token's permissions.",
         NULL},
        {HFSB_CONFLICT,
         " It already exists, or another operation on it is in progress: "
         "choose another name, or try again.",
         NULL},
        {HFSB_STALE,
         " Someone else changed it: get the current state and try again.",
         NULL},
        {HFSB_ARG, " The Hub rejected the request as invalid.", NULL},
        {HFSB_REMOTE, " The Hub has a problem, or ",
         " is not the Hub: try again later."}};
    const char *text;
    size_t      i = 0;
    if (code == HFSB_RATE) {
        hfsbi_hub_advise_wait(request, err);
        return;
    }
    while (advice[i].code != code && advice[i].code != HFSB_REMOTE) i++;
    text = advice[i].text;
    if (code == HFSB_AUTH && !hfsb_hub_has_token(request->hub))
        text = " No token was sent: create one at ";
    hfsbi_err_add(err, "%s%s%s", text,
                  advice[i].more ? request->hub->endpoint.ptr : "",
                  advice[i].more ? advice[i].more : "");
}

/* Fills *err for a reply that is not 2xx and contains `text`. */
static hfsb_status hfsbi_hub_explain(const hfsbi_hub_request *request,
                                     hfsb_str text, hfsb_err *err) {
    hfsb_status code = hfsbi_hub_status(request, text);
    size_t      n = text.len;
    if (n > 800) n = hfsbi_utf8_floor(text, 800); /* leave room for advice */
    (void)hfsbi_fail(err, code, 0, "Could not %s: HTTP %d", request->what,
                     request->reply.status);
    if (n) {
        hfsbi_err_add(err, ": ");
        hfsbi_err_quote(err, hfsb_str_slice(text, 0, n), n);
        if (n < text.len) hfsbi_err_add(err, "...");
    } else if (hfsbi_hub_is_html(hfsb_buf_str(&request->reply.body)))
        hfsbi_err_add(err, " and a page of HTML");
    if (!hfsb_str_ends(text, HFSB_LIT("."))) hfsbi_err_add(err, ".");
    hfsbi_hub_advise(request, code, err);
    hfsbi_hub_add_id(request, err);
    return code;
}

/* The status and message for a reply that is not 2xx. */
static hfsb_status hfsbi_hub_refused(const hfsbi_hub_request *request,
                                     hfsb_err                *err) {
    hfsb_buf    raw = HFSB_INIT, text = HFSB_INIT;
    hfsb_status status;
    raw.alloc = text.alloc = request->hub->alloc;
    hfsbi_hub_add_text(
        &raw, hfsb_http_reply_field(&request->reply, "X-Error-Message", 0));
    hfsbi_hub_add_body(&raw, &request->reply);
    status = raw.status;
    if (status == HFSB_OK)
        status = hfsbi_request_redact(request, hfsb_buf_str(&raw), &text);
    if (status == HFSB_OK)
        status = hfsbi_hub_explain(request, hfsb_buf_str(&text), err);
    else status = hfsbi_fail_status(err, status, request->what);
    hfsbi_hub_wipe(&raw);
    hfsb_buf_free(&text);
    return status;
}

HFSBI_FN hfsb_status hfsbi_hub_bad_reply(const hfsbi_hub_request *request,
                                         const char *problem, hfsb_err *err) {
    (void)hfsbi_fail(err, HFSB_REMOTE, 0, "Could not %s: HTTP %d, but %s.",
                     request->what, request->reply.status, problem);
    hfsbi_hub_add_id(request, err);
    return HFSB_REMOTE;
}

/* ---- begin and end ---- */

typedef struct hfsbi_hub_row {
    const char      *method, *path, *what;
    hfsbi_hub_repeat repeat;
} hfsbi_hub_row;

static const hfsbi_hub_row hfsbi_hub_rows[] = {
#define HFSBI_X(name, method, path, what, repeat) \
    {method, path, what, HFSBI_HUB_##repeat},
    HFSBI_HUB_ENDPOINTS(HFSBI_X)
#undef HFSBI_X
};

/* Appends a template with its {names} filled in. */
static void hfsbi_hub_fill_row(const char *text, bool is_path,
                               hfsb_str subject, hfsb_str detail,
                               hfsb_buf *out) {
    hfsb_str rest = hfsb_cstr(text);
    while (rest.len) {
        size_t at = hfsb_str_find_byte(rest, '{');
        size_t end = hfsb_str_find_byte(rest, '}');
        hfsb_buf_append(out, hfsb_str_slice(rest, 0, at));
        if (at == HFSB_NPOS) return;
        rest = hfsb_str_slice(rest, at + 1, rest.len);
        if (*rest.ptr == 's' || *rest.ptr == 'o')
            hfsb_buf_append(out, subject);
        else if (is_path) hfsbi_hub_put_encoded(out, detail);
        else hfsb_buf_append(out, detail);
        rest = hfsb_str_slice(rest, end - at, rest.len);
    }
}

/* Owners and job ids go into a path unescaped. */
static hfsb_status hfsbi_hub_check_name(hfsb_str name, const char *what,
                                        hfsb_err *err) {
    size_t i;
    bool   ok = name.len > 0 && name.len <= 96 && name.ptr[0] != '.';
    for (i = 0; ok && i < name.len; i++)
        ok = hfsbi_is_word_char(name.ptr[i]) || name.ptr[i] == '-' ||
             name.ptr[i] == '.';
    if (ok) return HFSB_OK;
    (void)hfsbi_fail(err, HFSB_ARG, 0, "\"");
    hfsbi_err_quote(err, name, 100);
    hfsbi_err_add(err, "\" is not a valid %s.", what);
    return HFSB_ARG;
}

static hfsb_status hfsbi_hub_check_row(const hfsbi_hub_row *row,
                                       hfsb_str subject, hfsb_str detail,
                                       hfsb_err *err) {
    hfsb_status status = HFSB_OK;
    if (strstr(row->what, "{space}")) status = hfsb_space_check(subject, err);
    if (strstr(row->path, "{owner}") && subject.len)
        status = hfsbi_hub_check_name(subject, "user or organisation", err);
    if (status == HFSB_OK && strstr(row->path, "{job}"))
        status = hfsbi_hub_check_name(detail, "job id", err);
    return status;
}

/* Logs that a request is tried again. */
static void hfsbi_hub_on_wait(void *user, long long ms) {
    const hfsbi_hub_request *request = (const hfsbi_hub_request *)user;
    char                     why[32] = "no answer";
    if (request->opened) (void)snprintf(why, sizeof why, "to its end");
    else if (request->reply.status)
        (void)snprintf(why, sizeof why, "HTTP %d", request->reply.status);
    hfsbi_hub_log(request->hub,
                  "Could not %s (%s): trying again in %lld.%lld s.",
                  request->what, why, ms / 1000, ms % 1000 / 100);
}

HFSBI_FN hfsb_status hfsbi_hub_begin(hfsb_hub *hub, hfsbi_hub_request *request,
                                     hfsbi_hub_endpoint endpoint,
                                     hfsb_str subject, hfsb_str detail,
                                     const hfsb_cancel *cancel,
                                     hfsb_err          *err) {
    const hfsbi_hub_row *row = &hfsbi_hub_rows[endpoint];
    hfsb_buf             owner = HFSB_INIT;
    hfsb_status          status;
    memset(request, 0, sizeof *request);
    request->hub = hub;
    request->method = row->method;
    request->repeat = row->repeat;
    request->retry = hub->retry;
    request->retry.cancel = cancel;
    request->retry.on_wait = hfsbi_hub_on_wait;
    request->retry.user = request;
    request->target.alloc = request->body.alloc = owner.alloc = hub->alloc;
    status = hfsbi_hub_check_row(row, subject, detail, err);
    if (status == HFSB_OK && !subject.len && strstr(row->path, "{owner}")) {
        status = hfsb_hub_user(hub, cancel, &owner, err);
        subject = hfsb_buf_str(&owner);
    }
    if (status == HFSB_OK) {
        hfsbi_hub_fill_row(row->what, false, subject, detail,
                           &request->target);
        (void)snprintf(request->what, sizeof request->what, "%s",
                       request->target.len ? request->target.ptr : "");
        if (request->target.status == HFSB_OK)
            hfsb_buf_truncate(&request->target, 0);
        hfsbi_hub_fill_row(row->path, true, subject, detail, &request->target);
        status = request->target.status;
        if (status != HFSB_OK) hfsbi_fail_status(err, status, row->what);
    }
    hfsb_buf_free(&owner);
    return status;
}

HFSBI_FN void hfsbi_hub_end(hfsbi_hub_request *request) {
    hfsb_buf_free(&request->target);
    hfsbi_hub_wipe(&request->body);
    hfsb_http_reply_free(&request->reply);
}

HFSBI_FN hfsb_json_writer *hfsbi_hub_object(hfsbi_hub_request *request) {
    request->body_type = "application/json";
    hfsb_json_writer_init(&request->json, &request->body, NULL);
    hfsb_json_put_object(&request->json);
    return &request->json;
}

/* ---- one try ---- */

/* The Hub sends no HTML: a page comes from an intermediary ("log in first").
   */
static bool hfsbi_hub_is_page(hfsb_str content_type) {
    return hfsb_http_same(hfsb_str_slice(content_type, 0, 9),
                          HFSB_LIT("text/html"));
}

static bool hfsbi_hub_on_head(void *user, int status,
                              const hfsb_http_field *fields, size_t count) {
    hfsbi_hub_request *request = (hfsbi_hub_request *)user;
    size_t             i;
    request->opened = status >= 200 && status <= 299;
    for (i = 0; request->on_body && i < count; i++)
        if (hfsbi_http_is(fields[i].name, "content-type") &&
            hfsbi_hub_is_page(fields[i].value))
            request->opened = false;
    return true;
}

static bool hfsbi_hub_on_body(void *user, hfsb_str piece) {
    hfsbi_hub_request *request = (hfsbi_hub_request *)user;
    return !request->opened || request->on_body(request->user, piece);
}

/* A random UUID (RFC 9562, section 5.4). */
static void hfsbi_hub_uuid(char out[37]) {
    char   hex[33];
    size_t i, at = 0;
    hfsbi_random_hex(hex, 32);
    hex[12] = '4';
    hex[16] = "89ab"[(unsigned char)hex[16] % 4];
    for (i = 0; i < 32; i++) {
        if (i == 8 || i == 12 || i == 16 || i == 20) out[at++] = '-';
        out[at++] = hex[i];
    }
    out[at] = '\0';
}

/* Writes the URL of the request. *ours: it is the Hub's, and may be sent the
   token. */
static hfsb_status hfsbi_hub_url(const hfsbi_hub_request *request,
                                 hfsb_buf *url, bool *ours) {
    hfsb_str target = hfsb_buf_str(&request->target);
    hfsb_url there;
    if (hfsb_str_starts(target, HFSB_LIT("/"))) {
        *ours = true;
        hfsb_buf_append(url, hfsb_buf_str(&request->hub->endpoint));
    } else
        *ours = hfsb_url_parse(target, &there, NULL) == HFSB_OK &&
                hfsb_url_same_origin(&there, &request->hub->origin);
    return hfsb_buf_append(url, target);
}

enum { HFSBI_HUB_FIELDS = 5 };

static void hfsbi_hub_field(hfsb_http_call *call, hfsb_http_field *fields,
                            const char *name, hfsb_str value) {
    fields[call->field_count].name = hfsb_cstr(name);
    fields[call->field_count++].value = value;
}

/* Sets the fields of the call; the token goes to the Hub only. */
static void hfsbi_hub_fields(const hfsbi_hub_request *request, bool ours,
                             const char *uuid, hfsb_http_field *fields,
                             hfsb_http_call *call) {
    const hfsb_hub *hub = request->hub;
    call->fields = fields;
    hfsbi_hub_field(call, fields, "Accept", HFSB_LIT("*/*"));
    if (request->body_type)
        hfsbi_hub_field(call, fields, "Content-Type",
                        hfsb_cstr(request->body_type));
    hfsbi_hub_field(call, fields, "User-Agent", hfsb_buf_str(&hub->agent));
    if (ours && hub->authorization.len)
        hfsbi_hub_field(call, fields, "Authorization",
                        hfsb_buf_str(&hub->authorization));
    hfsbi_hub_field(call, fields, "X-Amzn-Trace-Id", hfsb_cstr(uuid));
}

/* The timeout of one try: the hub's, cut short by the deadline. A stream has
   none of its own. */
static long long hfsbi_hub_total_ms(const hfsbi_hub_request *request) {
    long long most = request->on_body ? 0 : request->hub->timeout_ms, left;
    if (!request->retry.deadline) return most;
    left = request->retry.deadline - hfsb_clock_ms();
    if (left < 1) left = 1;
    return most > 0 && most < left ? most : left;
}

static void hfsbi_hub_call(hfsbi_hub_request *request, hfsb_str url,
                           hfsb_http_call *call) {
    const hfsb_hub *hub = request->hub;
    call->method = hfsb_cstr(request->method);
    call->url = url;
    call->on_head = hfsbi_hub_on_head;
    call->user = request;
    call->cancel = request->retry.cancel;
    call->total_ms = hfsbi_hub_total_ms(request);
    if (hub->timeout_ms < 30000) call->connect_ms = hub->timeout_ms;
    if (request->on_body) {
        call->on_body = hfsbi_hub_on_body;
        call->idle_ms = request->idle_ms;
    }
    if (request->body_type) {
        call->body = hfsb_buf_str(&request->body);
        if (!call->body.ptr) call->body.ptr = "";
    }
}

/* Logs the Hub's warnings ("topic; message"), each topic once. */
static void hfsbi_hub_warn(const hfsbi_hub_request *request) {
    hfsb_hub *hub = request->hub;
    hfsb_buf  text = HFSB_INIT;
    hfsb_str  value;
    size_t    n, at;
    text.alloc = hub->alloc;
    for (n = 0; hub->log && n < 32; n++) {
        value = hfsb_http_reply_field(&request->reply, "X-HF-Warning", n);
        if (!value.ptr) break;
        at = hfsb_str_find_byte(value, ';');
        if (!hfsbi_hub_first(hub, hfsbi_trim(hfsb_str_slice(value, 0, at))))
            continue;
        if (at != HFSB_NPOS) value = hfsb_str_slice(value, at + 1, value.len);
        hfsb_buf_truncate(&text, 0);
        if (hfsbi_request_redact(request, hfsbi_trim(value), &text) == HFSB_OK)
            hfsbi_hub_log(hub, "The Hub warns: %s", text.len ? text.ptr : "");
    }
    hfsbi_hub_wipe(&text);
}

/* No complete reply came: `why` is the transport's message. */
static hfsb_status hfsbi_hub_no_reply(hfsbi_hub_request *request,
                                      hfsb_status status, const hfsb_err *why,
                                      hfsb_err *err) {
    bool broken =
        status == HFSB_LOST || status == HFSB_TIMEOUT || status == HFSB_REMOTE;
    bool sent = request->reply.sent;
    request->again =
        status == HFSB_CONNECT || (broken && (!sent || request->repeat));
    if (sent && (broken || status == HFSB_CANCELLED)) request->unclear = true;
    (void)hfsbi_fail(err, status, 0, "Could not %s: %s", request->what,
                     why->msg[0] ? why->msg : hfsb_status_text(status));
    if (status == HFSB_CONNECT)
        hfsbi_err_add(err, " Check the network, and that %s is right.",
                      request->hub->endpoint.ptr);
    return status;
}

/* A 2xx reply came: parses it into request->out. */
static hfsb_status hfsbi_hub_accepted(hfsbi_hub_request *request,
                                      hfsb_err          *err) {
    const char *problem = "the reply is not JSON";
    hfsb_status status = HFSB_OK;
    if (hfsbi_hub_is_page(
            hfsb_http_reply_field(&request->reply, "Content-Type", 0))) {
        problem = "the reply is a page of HTML";
        status = HFSB_REMOTE;
    } else if (request->out)
        status = hfsb_json_parse(hfsb_buf_str(&request->reply.body), NULL,
                                 request->out, err);
    if (status == HFSB_OK) return hfsbi_ok(err);
    if (status == HFSB_NOMEM) return status;
    request->again = request->repeat != HFSBI_HUB_ONCE;
    request->unclear = true;
    return hfsbi_hub_bad_reply(request, problem, err);
}

/* True for a refusal that proves that nothing has happened. */
static bool hfsbi_hub_had_no_effect(const hfsb_http_reply *reply) {
    const hfsb_str busy = HFSB_LIT("conflicting operation is in progress");
    return reply->status == 429 ||
           (reply->status == 409 &&
            hfsb_str_find(hfsb_buf_str(&reply->body), busy) != HFSB_NPOS);
}

/* A complete reply came. */
static hfsb_status hfsbi_hub_reply(hfsbi_hub_request *request, hfsb_err *err) {
    const hfsb_hub *hub = request->hub;
    int             status = request->reply.status;
    bool            trouble =
        status == 408 || status == 500 || (status >= 502 && status <= 504);
    hfsbi_hub_warn(request);
    if (status >= 200 && status <= 299)
        return hfsbi_hub_accepted(request, err);
    request->retry.asked_ms = hfsbi_hub_asked_ms(&request->reply);
    request->again = (hfsbi_hub_had_no_effect(&request->reply) ||
                      (trouble && request->repeat)) &&
                     request->retry.asked_ms <= hub->max_wait_ms;
    if (status >= 500 || status == 408) request->unclear = true;
    return hfsbi_hub_refused(request, err);
}

HFSBI_FN hfsb_status hfsbi_hub_once(hfsbi_hub_request *request,
                                    hfsb_err          *err) {
    const hfsb_hub *hub = request->hub;
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_field fields[HFSBI_HUB_FIELDS];
    hfsb_buf        url = HFSB_INIT;
    hfsb_err        why = HFSB_INIT;
    char            uuid[37];
    hfsb_status     status;
    bool            ours;
    request->again = request->opened = false;
    request->retry.asked_ms = 0;
    if (hub->offline)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "Could not %s: offline (HF_HUB_OFFLINE).",
                          request->what);
    url.alloc = hub->alloc;
    status = hfsbi_hub_url(request, &url, &ours);
    if (status != HFSB_OK) {
        hfsb_buf_free(&url);
        return hfsbi_fail_status(err, status, request->what);
    }
    hfsbi_hub_uuid(uuid);
    hfsbi_hub_call(request, hfsb_buf_str(&url), &call);
    hfsbi_hub_fields(request, ours, uuid, fields, &call);
    hfsb_http_reply_free(&request->reply);
    request->reply.url.alloc = request->reply.body.alloc =
        request->reply.head.alloc = hub->alloc;
    status = hfsb_http_send(hub->transport, &call, &request->reply, &why);
    if (status == HFSB_OK) status = hfsbi_hub_reply(request, err);
    else status = hfsbi_hub_no_reply(request, status, &why, err);
    hfsb_buf_free(&url);
    return status;
}

/* ---- all tries ---- */

HFSBI_FN hfsb_status hfsbi_hub_send(hfsbi_hub_request *request,
                                    hfsb_err          *err) {
    hfsb_status status = HFSB_OK, wait;
    if (request->json.out)
        status = hfsb_json_writer_finish(&request->json, err);
    if (status != HFSB_OK) return status;
    hfsbi_retry_reset(&request->retry);
    for (;;) {
        bool unclear = request->unclear;
        status = hfsbi_hub_once(request, err);
        if (status == HFSB_NOT_FOUND && unclear &&
            request->repeat == HFSBI_HUB_REMOVE)
            return hfsbi_ok(err); /* an earlier try removed it */
        if (status == HFSB_OK || !request->again) return status;
        wait = hfsbi_retry_again(&request->retry);
        if (wait == HFSB_CANCELLED)
            return hfsbi_fail(err, HFSB_CANCELLED, 0,
                              "Cancelled: could not %s.", request->what);
        if (wait != HFSB_OK) return status;
    }
}

/* ---- pages ---- */

/* The address in <...> of the link with rel="next"; "" when there is none. */
static hfsb_str hfsbi_hub_next_link(const hfsb_http_reply *reply) {
    hfsb_str none = HFSB_INIT;
    size_t   n;
    for (n = 0; n < 8; n++) {
        hfsb_str rest = hfsb_http_reply_field(reply, "Link", n);
        if (!rest.ptr) return none;
        while (rest.len) {
            size_t   from = hfsb_str_find_byte(rest, '<');
            size_t   to = hfsb_str_find_byte(rest, '>');
            hfsb_str link, parameters;
            if (from == HFSB_NPOS || to == HFSB_NPOS || to < from) break;
            link = hfsb_str_slice(rest, from + 1, to);
            rest = hfsb_str_slice(rest, to + 1, rest.len);
            parameters =
                hfsb_str_slice(rest, 0, hfsb_str_find_byte(rest, '<'));
            if (hfsb_str_find(parameters, HFSB_LIT("rel=\"next\"")) !=
                    HFSB_NPOS ||
                hfsb_str_find(parameters, HFSB_LIT("rel=next")) != HFSB_NPOS)
                return link;
        }
    }
    return none;
}

/* Moves the request to the next page. The Hub always links to its public
   address, which is replaced by the endpoint. */
static hfsb_status hfsbi_hub_follow(hfsbi_hub_request *request, hfsb_str link,
                                    hfsb_err *err) {
    const hfsb_str public_url = HFSB_LIT("https://huggingface.co/");
    hfsb_buf       next = HFSB_INIT;
    hfsb_status    status;
    next.alloc = request->hub->alloc;
    if (hfsb_str_starts(link, public_url)) {
        hfsb_buf_append(&next, hfsb_buf_str(&request->hub->endpoint));
        status = hfsb_buf_append(
            &next, hfsb_str_slice(link, public_url.len - 1, link.len));
        if (status != HFSB_OK) hfsbi_fail_status(err, status, request->what);
    } else
        status = hfsb_url_resolve(hfsb_buf_str(&request->reply.url), link,
                                  &next, err);
    if (status != HFSB_OK) {
        hfsb_buf_free(&next);
        return status == HFSB_ARG ? HFSB_REMOTE : status;
    }
    hfsb_buf_free(&request->target);
    request->target = next;
    return HFSB_OK;
}

/* Gets one page. *left: items still wanted; *more: whether to go on. */
static hfsb_status hfsbi_hub_page(hfsbi_hub_request *request, size_t *left,
                                  bool (*each)(void                  *user,
                                               const hfsb_json_value *item),
                                  void *user, bool *more, hfsb_err *err) {
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    hfsb_status    status;
    doc.alloc = request->hub->alloc;
    request->out = &doc;
    *more = false;
    status = hfsbi_hub_send(request, err);
    request->out = NULL;
    if (status != HFSB_OK) return status;
    if (hfsb_json_type_of(doc.root) != HFSB_JSON_ARRAY)
        status = hfsbi_hub_bad_reply(request, "the reply is not a list", err);
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

/* Refuses pages without end. *mark is the address of an earlier page, moved
   forward at page 1, 2, 4, 8 ..., because a loop need not include the first
   page. */
static hfsb_status hfsbi_hub_check_page(const hfsbi_hub_request *request,
                                        size_t page, hfsb_buf *mark,
                                        hfsb_err *err) {
    hfsb_status status;
    if (page >= HFSBI_HUB_PAGES)
        return hfsbi_hub_bad_reply(request, "its pages have no end", err);
    if (hfsb_str_equal(hfsb_buf_str(mark), hfsb_buf_str(&request->target)))
        return hfsbi_hub_bad_reply(request, "its pages go in a circle", err);
    if (page & (page - 1)) return HFSB_OK;
    hfsb_buf_truncate(mark, 0);
    status = hfsb_buf_append(mark, hfsb_buf_str(&request->target));
    if (status != HFSB_OK) hfsbi_fail_status(err, status, request->what);
    return status;
}

HFSBI_FN hfsb_status hfsbi_hub_pages(hfsbi_hub_request *request, size_t limit,
                                     bool (*each)(void                  *user,
                                                  const hfsb_json_value *item),
                                     void *user, hfsb_err *err) {
    hfsb_status status = HFSB_OK;
    size_t      left = limit ? limit : HFSB_NPOS, page;
    bool        more = true;
    hfsb_buf    mark = HFSB_INIT;
    hfsb_str    link;
    mark.alloc = request->hub->alloc;
    for (page = 1; more; page++) {
        status = hfsbi_hub_page(request, &left, each, user, &more, err);
        if (!more) break;
        link = hfsbi_hub_next_link(&request->reply);
        if (!link.len) break;
        status = hfsbi_hub_follow(request, link, err);
        if (status == HFSB_OK)
            status = hfsbi_hub_check_page(request, page, &mark, err);
        more = status == HFSB_OK;
    }
    hfsb_buf_free(&mark);
    return status;
}
