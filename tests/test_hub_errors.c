/* test_hub_errors.c - what goes wrong: the table of errors, repeats, waits,
   lost answers. */
#include "t_hub.h"

#define BOX "alice/sandbox-1a2b3c4d"

static hfsb_status t_runtime(t_hub *h) {
    hfsb_space_runtime runtime;
    return hfsb_hub_runtime(h->hub, t_s(BOX), h->cancel, &runtime, &h->err);
}

static hfsb_status t_duplicate(t_hub *h) {
    hfsb_space_spec spec = HFSB_INIT;
    hfsb_hub_pair   secrets[2];
    memset(secrets, 0, sizeof secrets);
    secrets[0].key = t_s("OTHER");
    secrets[0].value = t_s("very-sec");
    secrets[1].key = t_s("KEY");
    secrets[1].value = t_s("very-secret-value");
    spec.id = t_s(BOX);
    spec.secrets = secrets;
    spec.secret_count = 2;
    return hfsb_hub_duplicate(h->hub, t_s("burtenshaw/sandbox"), &spec,
                              h->cancel, &h->err);
}

static hfsb_status t_create(t_hub *h) {
    hfsb_space_spec spec = HFSB_INIT;
    spec.id = t_s(BOX);
    return hfsb_hub_create(h->hub, &spec, h->cancel, &h->err);
}

static hfsb_status t_delete(t_hub *h) {
    return hfsb_hub_delete(h->hub, t_s(BOX), h->cancel, &h->err);
}

static hfsb_status t_secret(t_hub *h) {
    hfsb_hub_pair secret = HFSB_INIT;
    secret.key = t_s("KEY");
    secret.value = t_s("very-secret-value");
    return hfsb_hub_set(h->hub, t_s(BOX), HFSB_HUB_SECRETS, &secret, h->cancel,
                        &h->err);
}

static hfsb_status t_pause(t_hub *h) {
    return hfsb_hub_pause(h->hub, t_s(BOX), h->cancel, NULL, &h->err);
}

static hfsb_status t_restart(t_hub *h) {
    return hfsb_hub_restart(h->hub, t_s(BOX), true, h->cancel, NULL, &h->err);
}

static hfsb_status t_whoami(t_hub *h) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   status = hfsb_hub_whoami(h->hub, h->cancel, &doc, &h->err);
    hfsb_json_free(&doc);
    return status;
}

static hfsb_status t_job(t_hub *h) {
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

/* ---- the table ---- */

#define HTML                                                           \
    "<!DOCTYPE html>\n<html><head><title>503</title></head><body>Bad " \
    "gateway</body></html>"
#define PLAIN "Content-Type: text/plain"
#define PAGE  "Content-Type: text/html; charset=utf-8"

static const struct {
    hfsb_status (*fn)(t_hub *h);
    int         status;
    const char *fields, *body;
    hfsb_status code;
    const char *says; /* after "Could not {...}: " */
} TABLE[] = {
    {t_whoami, 401, NULL, "{\"error\":\"Invalid user token.\"}", HFSB_AUTH,
     "HTTP 401: Invalid user token. The Hub does not take this token: make a "
     "new one at http://hub.test/settings/tokens and set HF_TOKEN."},
    {t_runtime, 401, NULL,
     "{\"error\":\"Invalid credentials in Authorization header\"}", HFSB_AUTH,
     "HTTP 401: Invalid credentials in Authorization header. The Hub does "},
    {t_runtime, 401, "X-Error-Message: Invalid username or password.",
     "{\"error\":\"Invalid username or password.\"}", HFSB_NOT_FOUND,
     "HTTP 401: Invalid username or password. It is not there, or this token "
     "may not see it"},
    {t_create, 401, NULL, "{\"error\":\"Invalid username or password.\"}",
     HFSB_AUTH, "HTTP 401: Invalid username or password. The Hub does not"},
    {t_duplicate, 402, NULL, "{\"error\":\"Docker Spaces need PRO\"}",
     HFSB_PAYMENT,
     "HTTP 402: Docker Spaces need PRO. This needs a paid plan, a payment "
     "method or credits: see http://hub.test/settings/billing."},
    {t_job, 402, NULL, "{\"error\":\"Pre-paid credit balance is 0.\"}",
     HFSB_PAYMENT, "HTTP 402: Pre-paid credit balance is 0. This needs"},
    {t_secret, 403, "X-Error-Message: no write access", NULL, HFSB_DENIED,
     "HTTP 403: no write access. The token must have the right to write"},
    {t_runtime, 404,
     "X-Error-Code: RepoNotFound\n"
     "X-Error-Message: Repository not found",
     "{\"error\":\"Repository not found\"}", HFSB_NOT_FOUND,
     "HTTP 404: Repository not found. It is not there"},
    {t_runtime, 404, NULL, NULL, HFSB_NOT_FOUND, "HTTP 404. It is not there"},
    {t_runtime, 410, NULL, NULL, HFSB_NOT_FOUND, "HTTP 410."},
    {t_runtime, 400, "X-Error-Code: RevisionNotFound", NULL, HFSB_NOT_FOUND,
     "HTTP 400."},
    {t_runtime, 403, "X-Error-Code: EntryNotFound", NULL, HFSB_NOT_FOUND,
     "HTTP 403."},
    {t_runtime, 404, "X-Error-Code: GatedRepo", NULL, HFSB_DENIED,
     "HTTP 404."},
    {t_runtime, 404, "X-Error-Message: Access to this resource is disabled.",
     NULL, HFSB_DENIED, "HTTP 404: Access to this resource is disabled. The"},
    {t_create, 409, NULL,
     "{\"error\":\"You already created this space repo\",\"url\":\"u\"}",
     HFSB_CONFLICT,
     "HTTP 409: You already created this space repo. It is there already"},
    {t_runtime, 412, NULL, "{\"error\":\"stale\"}", HFSB_STALE,
     "HTTP 412: stale. Someone else has changed it meanwhile"},
    {t_duplicate, 400, NULL, "{\"error\":[\"one\",\"two\"]}", HFSB_ARG,
     "HTTP 400: one; two. The Hub does not take the request as it is."},
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
    {t_duplicate, 400, PLAIN, "plain words\nand more\x01", HFSB_ARG,
     "HTTP 400: plain words and more . The Hub"},
    {t_duplicate, 400, "X-Error-Message: same words",
     "{\"error\":\"same words\"}", HFSB_ARG, "HTTP 400: same words. The"},
    {t_duplicate, 400, NULL, "{\"error\":\"<html>oh</html>\"}", HFSB_ARG,
     "HTTP 400 and a page of HTML. The Hub"},
    {t_duplicate, 400, PLAIN, "  " HTML, HFSB_ARG,
     "HTTP 400 and a page of HTML. The Hub"},
    {t_runtime, 500, NULL, "{\"error\":\"Internal Error\"}", HFSB_REMOTE,
     "HTTP 500: Internal Error. The Hub has trouble"},
    {t_runtime, 502, PAGE, HTML, HFSB_REMOTE,
     "HTTP 502 and a page of HTML. The Hub has trouble, or it is not the Hub "
     "that answers at http://hub.test: try again later."},
    {t_runtime, 503, "X-Request-Id: Root=1-67;9be3\nX-Amz-Cf-Id: no", NULL,
     HFSB_REMOTE, "try again later. (request Root=1-67;9be3)"},
    {t_runtime, 504, "X-Amz-Cf-Id: cf", NULL, HFSB_REMOTE, "(request cf)"},
    {t_runtime, 501, NULL, NULL, HFSB_REMOTE, "HTTP 501."},
    {t_runtime, 408, NULL, NULL, HFSB_REMOTE, "HTTP 408."},
    {t_runtime, 405, NULL, NULL, HFSB_REMOTE, "HTTP 405."},
    {t_runtime, 304, NULL, NULL, HFSB_REMOTE, "HTTP 304."},
    {t_runtime, 429, NULL, "{\"error\":\"We had to rate limit you\"}",
     HFSB_RATE,
     "HTTP 429: We had to rate limit you. Too many requests: wait some "
     "minutes"},
    {t_runtime, 200, PAGE, HTML, HFSB_REMOTE,
     "HTTP 200, but with a page of HTML."},
    {t_runtime, 200, NULL, "not JSON", HFSB_REMOTE,
     "HTTP 200, but what came is not JSON."},
    {t_runtime, 200, NULL, "", HFSB_REMOTE, "what came is not JSON."},
    {t_secret, 200, PAGE, HTML, HFSB_REMOTE, "with a page of HTML."},
    {t_duplicate, 500, PAGE, HTML, HFSB_REMOTE,
     "HTTP 500 and a page of HTML. The Hub has trouble"},
};

static void each_error_has_its_code_and_its_words(void) {
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
        T_CHECK(t_says(&h, "No token was sent: make one at "
                           "http://hub.test/settings/tokens"));
        T_SCRIPT(&h, script);
        T_CHECK(hfsb_hub_runtime(h.hub, t_s(BOX), NULL, NULL, NULL) ==
                HFSB_AUTH); /* err may be NULL */
    }
    t_hub_close(&h);
}

#define NOTE(what) "Could not " what " " BOX ": HTTP "

/* Whole messages: the advice of one and nothing else. */
static void messages_are_whole(void) {
    static const struct {
        hfsb_status (*fn)(t_hub *h);
        int         status;
        const char *message;
    } cases[] = {
        {t_delete, 400,
         NOTE("delete") "400. The Hub does not take the request as it is."},
        {t_delete, 402,
         NOTE("delete") "402. This needs a paid plan, a payment method or "
                        "credits: see http://hub.test/settings/billing."},
        {t_delete, 403,
         NOTE("delete") "403. The token must have the right to write there, "
                        "and the account what the Hub asks for."},
        {t_delete, 404,
         NOTE("delete") "404. It is not there, or this token may not see it: "
                        "check the name and what the token may do."},
        {t_delete, 409,
         NOTE("delete") "409. It is there already, or something else is "
                        "being done to it: take another name, or try again."},
        {t_delete, 412,
         NOTE("delete") "412. Someone else has changed it meanwhile: look at "
                        "the newest state and try again."},
        {t_delete, 429,
         NOTE("delete") "429. Too many requests: wait some minutes and try "
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

static void secrets_that_the_hub_echoes_are_taken_out(void) {
    static const t_reply script[] = {
        {NULL, 400, "X-Error-Message: bad Bearer " T_TOKEN,
         "{\"error\":\"value very-secret-value, very-secret-valuevery\"}",
         HFSB_OK, false, 0}};
    t_hub h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(t_secret(&h) == HFSB_ARG);
    T_CHECK(t_says(&h, "bad Bearer [secret]; value [secret], [secret]very."));
    T_SCRIPT(&h, script);
    T_CHECK(t_duplicate(&h) == HFSB_ARG);
    T_CHECK(t_says(&h, "bad Bearer [secret]; value [secret], [secret]very."));
    T_CHECK(!strstr(h.log.ptr ? h.log.ptr : "", "secret-value"));
    t_hub_close(&h);
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
    T_CHECK(t_says(&h, "... The token must have the right to write there"));
    T_CHECK(t_says(&h, ", and the account what the Hub asks for."));
    T_CHECK(!strstr(h.err.msg, "\xEF\xBF\xBD"));
    hfsb_buf_free(&body);
    t_hub_close(&h);
}

/* ---- repeats ---- */

static const struct {
    hfsb_status (*fn)(t_hub *h);
    bool safe;
} CALLS[] = {{t_runtime, true}, {t_secret, true},     {t_pause, true},
             {t_restart, true}, {t_delete, true},     {t_whoami, true},
             {t_job, false},    {t_duplicate, false}, {t_create, false}};

static void t_down(t_hub *h, const t_request *request, t_reply *out) {
    *out = h->script[0];
    if (hfsb_str_find(hfsb_buf_str(&request->line),
                      t_s("GET /api/spaces/" BOX)) == 0 &&
        request->line.len == strlen("GET /api/spaces/" BOX)) {
        memset(out, 0, sizeof *out); /* the look whether it was made */
        out->status = 404;
    }
}

static size_t t_sent_as(const t_hub *h, const char *method) {
    size_t i, n = 0;
    for (i = 0; i < h->sent_count; i++)
        if (hfsb_str_starts(hfsb_buf_str(&h->sent[i].line), t_s(method))) n++;
    return n;
}

static void only_what_is_safe_is_repeated(void) {
    static const struct {
        t_reply     reply;
        hfsb_status code;
        size_t      safe, other; /* requests: of safe calls, of others */
    } faults[] = {
        {{NULL, 500, NULL, NULL, HFSB_OK, false, 0}, HFSB_REMOTE, 4, 1},
        {{NULL, 502, PAGE, HTML, HFSB_OK, false, 0}, HFSB_REMOTE, 4, 1},
        {{NULL, 503, NULL, NULL, HFSB_OK, false, 0}, HFSB_REMOTE, 4, 1},
        {{NULL, 504, NULL, NULL, HFSB_OK, false, 0}, HFSB_REMOTE, 4, 1},
        {{NULL, 408, NULL, NULL, HFSB_OK, false, 0}, HFSB_REMOTE, 4, 1},
        {{NULL, 501, NULL, NULL, HFSB_OK, false, 0}, HFSB_REMOTE, 1, 1},
        {{NULL, 200, PAGE, HTML, HFSB_OK, false, 0}, HFSB_REMOTE, 4, 1},
        {{NULL, 0, NULL, NULL, HFSB_LOST, false, 0}, HFSB_LOST, 4, 1},
        {{NULL, 0, NULL, NULL, HFSB_TIMEOUT, false, 0}, HFSB_TIMEOUT, 4, 1},
        {{NULL, 0, NULL, NULL, HFSB_REMOTE, false, 0}, HFSB_REMOTE, 4, 1},
        {{NULL, 200, NULL, "{\"st", HFSB_LOST, false, 0}, HFSB_LOST, 4, 1},
        /* nothing was sent, or nothing was done */
        {{NULL, 0, NULL, NULL, HFSB_CONNECT, true, 0}, HFSB_CONNECT, 4, 4},
        {{NULL, 0, NULL, NULL, HFSB_TIMEOUT, true, 0}, HFSB_TIMEOUT, 4, 4},
        {{NULL, 0, NULL, NULL, HFSB_LOST, true, 0}, HFSB_LOST, 4, 4},
        {{NULL, 429, NULL, NULL, HFSB_OK, false, 0}, HFSB_RATE, 4, 4},
        {{NULL, 409, NULL,
          "{\"error\":\"Cannot create repo: another conflicting operation is "
          "in progress\"}",
          HFSB_OK, false, 0},
         HFSB_CONFLICT,
         4,
         4},
        /* no use */
        {{NULL, 409, NULL, "{}", HFSB_OK, false, 0}, HFSB_CONFLICT, 1, 1},
        {{NULL, 402, NULL, "{}", HFSB_OK, false, 0}, HFSB_PAYMENT, 1, 1},
        {{NULL, 403, NULL, "{}", HFSB_OK, false, 0}, HFSB_DENIED, 1, 1},
        {{NULL, 404, NULL, "{}", HFSB_OK, false, 0}, HFSB_NOT_FOUND, 1, 1},
        {{NULL, 0, NULL, NULL, HFSB_REFUSED, true, 0}, HFSB_REFUSED, 1, 1},
        {{NULL, 0, NULL, NULL, HFSB_BUSY, true, 0}, HFSB_BUSY, 1, 1},
        {{NULL, 0, NULL, NULL, HFSB_CANCELLED, false, 0},
         HFSB_CANCELLED,
         1,
         1}};
    size_t i, k;
    t_hub  h;
    t_hub_init(&h);
    h.opts.tries = 4;
    t_hub_open(&h);
    for (i = 0; i < sizeof faults / sizeof *faults; i++)
        for (k = 0; k < sizeof CALLS / sizeof *CALLS; k++) {
            hfsb_status status;
            size_t      sent;
            t_hub_script(&h, &faults[i].reply, 1);
            h.answer = t_down;
            status = CALLS[k].fn(&h);
            sent = t_sent_as(&h, "");
            if (!CALLS[k].safe) sent = t_sent_as(&h, "POST");
            if (status != faults[i].code ||
                sent != (CALLS[k].safe ? faults[i].safe : faults[i].other))
                printf("  fault %zu, call %zu: %d, %zu requests: %s\n", i, k,
                       (int)status, sent, h.err.msg);
            T_CHECK(status == faults[i].code);
            T_CHECK(sent ==
                    (CALLS[k].safe ? faults[i].safe : faults[i].other));
        }
    t_hub_close(&h);
}

static void a_repeat_that_works_is_a_success(void) {
    static const t_reply script[] = {
        {NULL, 503, NULL, NULL, HFSB_OK, false, 0},
        {NULL, 0, NULL, NULL, HFSB_LOST, false, 0},
        {NULL, 200, NULL, "{\"stage\":\"RUNNING\"}", HFSB_OK, false, 0}};
    t_hub h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(t_runtime(&h) == HFSB_OK && h.err.code == HFSB_OK);
    T_CHECK(h.sent_count == 3);
    T_STR(h.log, "Could not see the state of " BOX
                 " (HTTP 503): trying again in 0.0 s.\n"
                 "Could not see the state of " BOX
                 " (no answer): trying again in 0.0 s.\n");
    t_hub_close(&h);
}

/* The wait is ended by the log that tells of it. */
static void waits_grow_up_to_eight_times(void) {
    static const char *const want[] = {"in 1.0 s", "in 2.0 s", "in 4.0 s",
                                       "in 8.0 s", "in 8.0 s"};
    static const t_reply     down = {NULL, 503, NULL, NULL, HFSB_OK, false, 0};
    hfsbi_hub_request        request;
    size_t                   i;
    t_hub                    h;
    t_hub_init(&h);
    h.opts.delay_ms = 1000;
    t_hub_open(&h);
    h.stop = true;
    for (i = 0; i < sizeof want / sizeof *want; i++) {
        t_hub_script(&h, &down, 1);
        hfsbi_hub_begin(h.hub, &request, "GET", h.cancel, "wait");
        T_CHECK(!hfsbi_hub_wait(h.hub, &request, i + 1, &h.err));
        T_CHECK(h.err.code == HFSB_CANCELLED);
        T_CHECK(strstr(h.log.ptr, want[i]) != NULL);
        hfsbi_hub_end(&request);
    }
    t_hub_close(&h);
}

static void the_hub_says_how_long_to_wait(void) {
    static const struct {
        int         status;
        const char *fields, *log; /* NULL: no wait */
    } cases[] = {
        {429, "RateLimit: \"api\";r=0;t=12", "in 13.0 s"},
        {429, "RateLimit: \"api\";r=0;t=0", "in 1.0 s"},
        {429, "RateLimit: \"api\"; r=0; t=7", "in 8.0 s"},
        {429, "RateLimit: \"a\";r=0;t=3, \"b\";r=0;t=9, \"c\";r=5;t=20",
         "in 10.0 s"},
        {429, "RateLimit: \"api\";r=10;t=201", "in 0.3 s"},
        {429, "RateLimit: \"api\";r=0;t=12\nRetry-After: 2", "in 13.0 s"},
        {429, "RateLimit: \"api\";r=10;t=201\nRetry-After: 2", "in 3.0 s"},
        {429, "Retry-After: 29", "in 30.0 s"},
        {429, "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT", "in 0.3 s"},
        {429, "Retry-After: -1", "in 0.3 s"},
        {429, "Retry-After: 99999999999999999999", "in 0.3 s"},
        {429, "RateLimit: nonsense;;r=;t=x", "in 0.3 s"},
        {503, "Retry-After: 4", "in 5.0 s"},
        {503, "RateLimit: \"api\";r=0;t=201", "in 0.3 s"},
        {429, "RateLimit: \"api\";r=0;t=201", NULL},
        {429, "Retry-After: 60", NULL},
        {503, "Retry-After: 3600", NULL}};
    size_t i;
    t_hub  h;
    t_hub_init(&h);
    h.opts.delay_ms = 300;
    t_hub_open(&h);
    h.stop = true;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_reply     reply = HFSB_INIT;
        hfsb_status status,
            code = cases[i].status == 429 ? HFSB_RATE : HFSB_REMOTE;
        reply.status = cases[i].status;
        reply.fields = cases[i].fields;
        t_hub_script(&h, &reply, 1);
        status = t_runtime(&h);
        T_CHECK(status == (cases[i].log ? HFSB_CANCELLED : code));
        T_CHECK(h.sent_count == 1);
        if (!cases[i].log) T_CHECK(!h.log.len);
        else T_CHECK(strstr(h.log.ptr, cases[i].log) != NULL);
        if (!cases[i].log && code == HFSB_RATE)
            T_CHECK(t_says(&h, "which is longer than this waits (60 s)"));
    }
    t_hub_close(&h);
    t_hub_init(&h); /* the cap is an option */
    h.opts.max_wait_ms = 1500;
    t_hub_open(&h);
    {
        static const t_reply script[] = {
            {NULL, 429, "Retry-After: 1", NULL, HFSB_OK, false, 0}};
        T_SCRIPT(&h, script);
        T_CHECK(t_runtime(&h) == HFSB_RATE && h.sent_count == 1);
        T_CHECK(t_says(&h, "asks to wait 2 s"));
    }
    t_hub_close(&h);
}

/* ---- lost answers ---- */

static void a_lost_duplicate_is_looked_for(void) {
    static const t_reply made[] = {
        {"POST /api/spaces/burtenshaw/sandbox/duplicate", 0, NULL, NULL,
         HFSB_LOST, false, 0},
        {"GET /api/spaces/" BOX, 404, NULL, NULL, HFSB_OK, false, 0},
        {"GET /api/spaces/" BOX, 0, NULL, NULL, HFSB_LOST, false, 0},
        {"GET /api/spaces/" BOX, 401, NULL, NULL, HFSB_OK, false, 0},
        {"GET /api/spaces/" BOX, 200, NULL, "{}", HFSB_OK, false, 0}};
    static const t_reply not_made[] = {
        {NULL, 502, NULL, NULL, HFSB_OK, false, 0},
        {NULL, 404, NULL, NULL, HFSB_OK, false, 0},
        {NULL, 404, NULL, NULL, HFSB_OK, false, 0},
        {NULL, 404, NULL, NULL, HFSB_OK, false, 0}};
    static const t_reply unknown[] = {
        {NULL, 0, NULL, NULL, HFSB_TIMEOUT, false, 0},
        {NULL, 403, NULL, NULL, HFSB_OK, false, 0}};
    static const t_reply refused[] = {
        {NULL, 402, NULL, NULL, HFSB_OK, false, 0}};
    static const t_reply page[] = {{NULL, 200, PAGE, HTML, HFSB_OK, false, 0},
                                   {NULL, 200, NULL, "{}", HFSB_OK, false, 0}};
    t_hub                h;
    t_hub_init(&h);
    h.opts.tries = 3;
    t_hub_open(&h);
    T_SCRIPT(&h, made);
    T_CHECK(t_duplicate(&h) == HFSB_OK && h.err.code == HFSB_OK);
    T_CHECK(h.sent_count == 5);
    T_CHECK(strstr(h.log.ptr, "The Hub's answer was lost, but " BOX
                              " was made.") != NULL);
    T_SCRIPT(&h, not_made);
    T_CHECK(t_duplicate(&h) == HFSB_REMOTE && h.sent_count == 4);
    T_CHECK(t_says(&h, "Could not duplicate burtenshaw/sandbox as " BOX
                       ": HTTP 502."));
    T_CHECK(t_says(&h, "There is no " BOX " now, as far as one can see."));
    T_SCRIPT(&h, unknown);
    T_CHECK(t_duplicate(&h) == HFSB_TIMEOUT && h.sent_count == 2);
    T_CHECK(t_says(&h, "Whether " BOX " was made is not known."));
    T_SCRIPT(&h, refused);
    T_CHECK(t_duplicate(&h) == HFSB_PAYMENT && h.sent_count == 1);
    T_SCRIPT(&h, page);
    T_CHECK(t_create(&h) == HFSB_OK && h.sent_count == 2);
    t_hub_close(&h);
}

/* The question whether it is there can be cancelled, and that is told. */
static void a_lost_duplicate_may_be_looked_for_in_vain(void) {
    static const t_reply waits[] = {
        {NULL, 502, NULL, NULL, HFSB_OK, false, 0},
        {NULL, 404, NULL, NULL, HFSB_OK, false, 0}};
    static const t_reply asks[] = {
        {NULL, 0, NULL, NULL, HFSB_LOST, false, 0},
        {NULL, 0, NULL, NULL, HFSB_CANCELLED, false, 0}};
    t_hub h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, waits);
    h.stop = true; /* while it waits for the next look */
    T_CHECK(t_duplicate(&h) == HFSB_CANCELLED && h.sent_count == 2);
    T_CHECK(h.err.code == HFSB_CANCELLED);
    T_CHECK(t_says(&h, "Whether " BOX " was made is not known."));
    h.stop = false;
    T_SCRIPT(&h, asks);
    T_CHECK(t_duplicate(&h) == HFSB_CANCELLED && h.sent_count == 2);
    T_CHECK(h.err.code == HFSB_CANCELLED);
    t_hub_close(&h);
}

static void a_delete_that_was_lost_is_done_when_it_is_gone(void) {
    static const t_reply script[] = {
        {"DELETE /api/repos/delete", 0, NULL, NULL, HFSB_LOST, false, 0},
        {"DELETE /api/repos/delete", 404, NULL, NULL, HFSB_OK, false, 0}};
    static const t_reply gone[] = {
        {NULL, 404, "X-Error-Code: RepoNotFound", NULL, HFSB_OK, false, 0}};
    static const t_reply unsent[] = {
        {NULL, 0, NULL, NULL, HFSB_CONNECT, true, 0},
        {NULL, 404, NULL, NULL, HFSB_OK, false, 0}};
    static const t_reply plain[] = {
        {NULL, 200, PLAIN, "OK", HFSB_OK, false, 0}};
    t_hub h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(t_delete(&h) == HFSB_OK && h.err.code == HFSB_OK);
    T_CHECK(h.sent_count == 2);
    T_SCRIPT(&h, gone);
    T_CHECK(t_delete(&h) == HFSB_NOT_FOUND && h.sent_count == 1);
    T_SCRIPT(&h, unsent); /* not by us */
    T_CHECK(t_delete(&h) == HFSB_NOT_FOUND && h.sent_count == 2);
    T_SCRIPT(&h, plain);
    T_CHECK(t_delete(&h) == HFSB_OK);
    t_hub_close(&h);
}

static void a_job_is_never_sent_twice(void) {
    static const t_reply lost[] = {{NULL, 0, NULL, NULL, HFSB_LOST, false, 0}};
    static const t_reply bad[] = {{NULL, 502, PAGE, HTML, HFSB_OK, false, 0}};
    static const t_reply odd[] = {{NULL, 200, NULL, "ok", HFSB_OK, false, 0}};
    static const t_reply no[] = {{NULL, 400, NULL, "{}", HFSB_OK, false, 0}};
    t_hub                h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, lost);
    T_CHECK(t_job(&h) == HFSB_LOST && h.sent_count == 1);
    T_CHECK(t_says(&h, "The job may run all the same: look at the list"));
    T_SCRIPT(&h, bad);
    T_CHECK(t_job(&h) == HFSB_REMOTE && h.sent_count == 1);
    T_CHECK(t_says(&h, "The job may run all the same"));
    T_SCRIPT(&h, odd);
    T_CHECK(t_job(&h) == HFSB_REMOTE && t_says(&h, "The job may run"));
    T_SCRIPT(&h, no);
    T_CHECK(t_job(&h) == HFSB_ARG && !strstr(h.err.msg, "may run"));
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

static void errors_are_told_or_memory_is(hfsb_alloc    alloc,
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
    T_RUN(each_error_has_its_code_and_its_words);
    T_RUN(messages_are_whole);
    T_RUN(secrets_that_the_hub_echoes_are_taken_out);
    T_RUN(a_long_message_is_cut_and_the_advice_stays);
    T_RUN(only_what_is_safe_is_repeated);
    T_RUN(a_repeat_that_works_is_a_success);
    T_RUN(waits_grow_up_to_eight_times);
    T_RUN(the_hub_says_how_long_to_wait);
    T_RUN(a_lost_duplicate_is_looked_for);
    T_RUN(a_lost_duplicate_may_be_looked_for_in_vain);
    T_RUN(a_delete_that_was_lost_is_done_when_it_is_gone);
    T_RUN(a_job_is_never_sent_twice);
    t_name = "errors_are_told_or_memory_is";
    t_each_allocation_fails(errors_are_told_or_memory_is);
    return T_END();
}
