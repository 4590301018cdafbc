/* test_hub_errors.c - error replies of the Hub: status codes, messages,
   advice, and what must not be in them. */
#include "../support/t_hub.h"

/* ---- the table ---- */

static const struct {
    hfsb_status (*fn)(t_hub *h);
    int         status;
    const char *fields, *body;
    hfsb_status code;
    const char *says; /* after "Could not {...}: " */
} TABLE[] = {
    {t_whoami, 401, NULL, "{\"error\":\"Invalid user token.\"}", HFSB_AUTH,
     "HTTP 401: Invalid user token. The Hub rejected this token: create "
     "a new one at http://hub.test/settings/tokens and set HF_TOKEN."},
    {t_runtime, 401, NULL,
     "{\"error\":\"Invalid credentials in Authorization header\"}", HFSB_AUTH,
     "HTTP 401: Invalid credentials in Authorization header. The Hub reje"},
    {t_runtime, 401, "X-Error-Message: Invalid username or password.",
     "{\"error\":\"Invalid username or password.\"}", HFSB_NOT_FOUND,
     "HTTP 401: Invalid username or password. It does not exist, or this "
     "token has no access to it"},
    {t_delete, 401, NULL, "{\"error\":\"Invalid username or password.\"}",
     HFSB_AUTH, "HTTP 401: Invalid username or password. The Hub rejected"},
    {t_duplicate, 402, NULL, "{\"error\":\"Docker Spaces need PRO\"}",
     HFSB_PAYMENT,
     "HTTP 402: Docker Spaces need PRO. This needs a paid plan, a payment "
     "method or credits: see http://hub.test/settings/billing."},
    {t_job, 402, NULL, "{\"error\":\"Pre-paid credit balance is 0.\"}",
     HFSB_PAYMENT, "HTTP 402: Pre-paid credit balance is 0. This needs"},
    {t_secret, 403, "X-Error-Message: no write access", NULL, HFSB_DENIED,
     "HTTP 403: no write access. The token needs write permission there"},
    {t_runtime, 404,
     "X-Error-Code: RepoNotFound\n"
     "X-Error-Message: Repository not found",
     "{\"error\":\"Repository not found\"}", HFSB_NOT_FOUND,
     "HTTP 404: Repository not found. It does not exist"},
    {t_runtime, 404, NULL, NULL, HFSB_NOT_FOUND,
     "HTTP 404. It does not exist"},
    {t_runtime, 410, NULL, NULL, HFSB_NOT_FOUND, "HTTP 410."},
    {t_runtime, 400, "X-Error-Code: RevisionNotFound", NULL, HFSB_NOT_FOUND,
     "HTTP 400."},
    {t_runtime, 403, "X-Error-Code: EntryNotFound", NULL, HFSB_NOT_FOUND,
     "HTTP 403."},
    {t_runtime, 404, "X-Error-Code: GatedRepo", NULL, HFSB_DENIED,
     "HTTP 404."},
    {t_runtime, 404, "X-Error-Message: Access to this resource is disabled.",
     NULL, HFSB_DENIED, "HTTP 404: Access to this resource is disabled. The"},
    {t_duplicate, 409, NULL,
     "{\"error\":\"You already created this space repo\",\"url\":\"u\"}",
     HFSB_CONFLICT,
     "HTTP 409: You already created this space repo. It already exists"},
    {t_runtime, 412, NULL, "{\"error\":\"stale\"}", HFSB_STALE,
     "HTTP 412: stale. Someone else changed it"},
    {t_duplicate, 400, NULL, "{\"error\":[\"one\",\"two\"]}", HFSB_ARG,
     "HTTP 400: one; two. The Hub rejected the request as invalid."},
    {t_duplicate, 422, NULL,
     "{\"errors\":[{\"message\":\"bad a\"},{\"message\":\"bad b\"},{}]}",
     HFSB_ARG, "HTTP 422: bad a; bad b. "},
    {t_duplicate, 400, NULL,
     "{\"error\":\"invalid_request\",\"error_description\":\"no such\"}",
     HFSB_ARG, "HTTP 400: invalid_request; no such. "},
    {t_duplicate, 400, NULL, "{\"message\":\"as JS has it\"}", HFSB_ARG,
     "HTTP 400: as JS has it. "},
    {t_duplicate, 400, NULL, "{\"error\":{\"message\":\"inside\"}}", HFSB_ARG,
     "HTTP 400: inside. "},
    {t_duplicate, 413, NULL, "{\"error\":12}", HFSB_ARG, "HTTP 413. "},
    {t_duplicate, 400, T_PLAIN, "plain words\nand more\x01", HFSB_ARG,
     "HTTP 400: plain words and more . The Hub"},
    {t_duplicate, 400, "X-Error-Message: same words",
     "{\"error\":\"same words\"}", HFSB_ARG, "HTTP 400: same words. The"},
    {t_duplicate, 400, NULL, "{\"error\":\"<html>oh</html>\"}", HFSB_ARG,
     "HTTP 400 and a page of HTML. The Hub"},
    {t_duplicate, 400, T_PLAIN, "  " T_HTML, HFSB_ARG,
     "HTTP 400 and a page of HTML. The Hub"},
    {t_runtime, 500, NULL, "{\"error\":\"Internal Error\"}", HFSB_REMOTE,
     "HTTP 500: Internal Error. The Hub has a problem"},
    {t_runtime, 502, T_PAGE, T_HTML, HFSB_REMOTE,
     "HTTP 502 and a page of HTML. The Hub has a problem, or "
     "http://hub.test is not the Hub: try again later."},
    {t_runtime, 503, "X-Request-Id: Root=1-67;9be3\nX-Amz-Cf-Id: no", NULL,
     HFSB_REMOTE, "try again later. (request Root=1-67;9be3)"},
    {t_runtime, 504, "X-Amz-Cf-Id: cf", NULL, HFSB_REMOTE, "(request cf)"},
    {t_runtime, 501, NULL, NULL, HFSB_REMOTE, "HTTP 501."},
    {t_runtime, 408, NULL, NULL, HFSB_REMOTE, "HTTP 408."},
    {t_runtime, 405, NULL, NULL, HFSB_REMOTE, "HTTP 405."},
    {t_runtime, 304, NULL, NULL, HFSB_REMOTE, "HTTP 304."},
    {t_runtime, 429, NULL, "{\"error\":\"We had to rate limit you\"}",
     HFSB_RATE,
     "HTTP 429: We had to rate limit you. Too many requests: wait a few "
     "minutes"},
    {t_runtime, 200, T_PAGE, T_HTML, HFSB_REMOTE,
     "HTTP 200, but the reply is a page of HTML."},
    {t_runtime, 200, NULL, "not JSON", HFSB_REMOTE,
     "HTTP 200, but the reply is not JSON."},
    {t_runtime, 200, NULL, "", HFSB_REMOTE, "the reply is not JSON."},
    {t_secret, 200, T_PAGE, T_HTML, HFSB_REMOTE,
     "the reply is a page of HTML."},
    {t_duplicate, 500, T_PAGE, T_HTML, HFSB_REMOTE,
     "HTTP 500 and a page of HTML. The Hub has a problem"},
};

static void each_error_has_its_code_and_message(void) {
    size_t i;
    t_hub  h;
    t_hub_init(&h);
    h.opts.tries = 1;
    t_hub_open(&h);
    for (i = 0; i < sizeof TABLE / sizeof *TABLE; i++) {
        t_reply     script[2] = {HFSB_INIT, HFSB_INIT};
        hfsb_status status;
        script[0].status = TABLE[i].status;
        script[0].fields = TABLE[i].fields;
        script[0].body = TABLE[i].body;
        script[1].status = 404; /* the look whether it was made */
        t_hub_script(&h, script, 2);
        status = TABLE[i].fn(&h);
        if (status != TABLE[i].code) printf("  case %zu:\n", i);
        T_CHECK(status == TABLE[i].code && h.err.code == status);
        T_CHECK(t_says(&h, TABLE[i].says));
        T_CHECK(!strncmp(h.err.msg, "Could not ", 10));
        T_CHECK(!strstr(h.err.msg, "<") && !strstr(h.err.msg, T_TOKEN));
        T_CHECK(
            h.sent_count ==
            (TABLE[i].fn == t_duplicate && TABLE[i].status >= 500 ? 2u : 1u));
    }
    t_hub_close(&h);
    t_hub_init(&h); /* no token: 401 says so */
    h.opts.token = t_s("");
    t_hub_open(&h);
    {
        static const t_reply script[] = {
            {NULL, 401, NULL, "{\"error\":\"Invalid username or password.\"}",
             HFSB_OK, false, 0}};
        T_SCRIPT(&h, script);
        T_CHECK(t_runtime(&h) == HFSB_AUTH);
        T_CHECK(t_says(&h, "No token was sent: create one at "
                           "http://hub.test/settings/tokens"));
        T_SCRIPT(&h, script);
        T_CHECK(hfsb_hub_runtime(h.hub, t_s(T_BOX), NULL, NULL, NULL) ==
                HFSB_AUTH); /* err may be NULL */
    }
    t_hub_close(&h);
}

#define NOTE(what) "Could not " what " " T_BOX ": HTTP "

/* Whole messages: the advice of one and nothing else. */
static void messages_contain_nothing_else(void) {
    static const struct {
        hfsb_status (*fn)(t_hub *h);
        int         status;
        const char *message;
    } cases[] = {
        {t_delete, 400,
         NOTE("delete") "400. The Hub rejected the request as invalid."},
        {t_delete, 402,
         NOTE("delete") "402. This needs a paid plan, a payment method or "
                        "credits: see http://hub.test/settings/billing."},
        {t_delete, 403,
         NOTE("delete") "403. The token needs write permission there, and "
                        "the account must meet the Hub's requirements."},
        {t_delete, 404,
         NOTE("delete") "404. It does not exist, or this token has no access "
                        "to it: check the name and the token's permissions."},
        {t_delete, 409,
         NOTE("delete") "409. It already exists, or another operation on it "
                        "is in progress: choose another name, or try again."},
        {t_delete, 412,
         NOTE("delete") "412. Someone else changed it: get the current state "
                        "and try again."},
        {t_delete, 429,
         NOTE("delete") "429. Too many requests: wait a few minutes and try "
                        "again."}};
    size_t i;
    t_hub  h;
    t_hub_init(&h);
    h.opts.tries = 1;
    t_hub_open(&h);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_reply reply = HFSB_INIT;
        reply.status = cases[i].status;
        t_hub_script(&h, &reply, 1);
        T_CHECK(cases[i].fn(&h) != HFSB_OK);
        t_str(__FILE__, __LINE__, h.err.msg, strlen(h.err.msg),
              cases[i].message, strlen(cases[i].message));
    }
    t_hub_close(&h);
}

static void echoed_secrets_are_redacted(void) {
    static const t_reply script[] = {
        {NULL, 400, "X-Error-Message: bad Bearer " T_TOKEN,
         "{\"error\":\"value very-secret-value, very-secret-valuevery\"}",
         HFSB_OK, false, 0}};
    t_hub h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(t_secret(&h) == HFSB_ARG);
    T_CHECK(t_says(&h, "bad Bearer ***; value ***, ***very."));
    T_SCRIPT(&h, script);
    T_CHECK(t_duplicate(&h) == HFSB_ARG);
    T_CHECK(t_says(&h, "bad Bearer ***; value ***, ***very."));
    T_CHECK(!strstr(h.log.ptr ? h.log.ptr : "", "secret-value"));
    t_hub_close(&h);
}

static hfsb_str secret_at(const void *owner, size_t i) {
    return hfsb_cstr(((const char *const *)owner)[i]);
}

/* In place: the text only gets shorter. */
static void redact_replaces_the_longest_secret(void) {
    static const struct {
        const char *text, *want;
    } cases[] = {{"", ""},
                 {"plain", "plain"},
                 {"hf_1234", "***"},
                 {"ahf_1234b", "a***b"},
                 {"hf_1234hf_1234", "******"},
                 {"hf_123", "hf_123"},
                 {"longer-one, long", "***, ***"},
                 {"abc", "abc"},
                 {"api1", "***"},
                 {"the end: long", "the end: ***"}};
    static const char *const secrets[] = {
        "hf_1234", "api1", "long", "longer-one", "abc" /* too short */, ""};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        char   text[64];
        size_t n;
        memset(text, 'x', sizeof text);
        memcpy(text, cases[i].text, strlen(cases[i].text) + 1);
        n = hfsbi_redact(secret_at, secrets, 6, text, strlen(text));
        T_CHECK(n == strlen(cases[i].want) && !strcmp(text, cases[i].want));
    }
}

static void a_long_message_is_cut_and_the_advice_stays(void) {
    t_reply  reply = HFSB_INIT;
    hfsb_buf body = HFSB_INIT;
    t_hub    h;
    T_CHECK(hfsb_buf_append(&body, t_s("{\"error\":\"")) == HFSB_OK);
    t_repeat(&body, "\xE2\x82\xAC", 5000); /* 800 bytes end within one */
    T_CHECK(hfsb_buf_append(&body, t_s("\"}")) == HFSB_OK);
    reply.status = 403;
    reply.body = body.ptr;
    t_hub_init(&h);
    t_hub_open(&h);
    t_hub_script(&h, &reply, 1);
    T_CHECK(t_runtime(&h) == HFSB_DENIED);
    T_CHECK(t_says(&h, "... The token needs write permission there"));
    T_CHECK(t_says(&h, "and the account must meet the Hub's requirements."));
    T_CHECK(!strstr(h.err.msg, "\xEF\xBF\xBD"));
    hfsb_buf_free(&body);
    t_hub_close(&h);
}

/* ---- memory ---- */

static void t_trouble(t_hub *h, const t_request *request, t_reply *out) {
    (void)request;
    memset(out, 0, sizeof *out);
    out->status = h->sent_count % 2 ? 429 : 401;
    out->fields = "X-Error-Message: one\nX-HF-Warning: a; b\nX-Request-Id: r";
    out->body = "{\"error\":[\"two\",\"Invalid credentials in Authorization "
                "header\"]}";
}

static void errors_survive_allocation_failures(hfsb_alloc    alloc,
                                         const t_heap *heap) {
    hfsb_status status;
    t_hub       h;
    t_hub_init(&h);
    h.opts.alloc = alloc;
    if (hfsb_hub_open(&h.opts, &h.hub, &h.err) == HFSB_OK) {
        h.answer = t_trouble;
        status = t_secret(&h);
        T_CHECK(status == HFSB_AUTH ||
                (heap->fail_at && status == HFSB_NOMEM));
        T_CHECK(h.err.code == status && h.err.msg[0]);
    }
    t_hub_close(&h);
}

int main(void) {
    T_RUN(each_error_has_its_code_and_message);
    T_RUN(messages_contain_nothing_else);
    T_RUN(echoed_secrets_are_redacted);
    T_RUN(redact_replaces_the_longest_secret);
    T_RUN(a_long_message_is_cut_and_the_advice_stays);
    t_name = "errors_survive_allocation_failures";
    t_each_allocation_fails(errors_survive_allocation_failures);
    return T_END();
}
