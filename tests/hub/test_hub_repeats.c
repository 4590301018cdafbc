/* test_hub_repeats.c - which requests are repeated and after which wait, and
   what happens instead when an answer was lost. */
#include "../support/t_hub.h"

/* ---- repeats ---- */

static const struct {
    hfsb_status (*fn)(t_hub *h);
    bool safe;
} CALLS[] = {{t_runtime, true}, {t_secret, true},
             {t_pause, true},   {t_restart_factory, true},
             {t_delete, true},  {t_whoami, true},
             {t_job, false},    {t_duplicate, false}};

static void t_down(t_hub *h, const t_request *request, t_reply *out) {
    *out = h->script[0];
    if (hfsb_str_find(hfsb_buf_str(&request->line),
                      t_s("GET /api/spaces/" T_BOX)) == 0 &&
        request->line.len == strlen("GET /api/spaces/" T_BOX)) {
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

static void only_safe_requests_are_repeated(void) {
    static const struct {
        t_reply     reply;
        hfsb_status code;
        size_t      safe, other; /* requests: of safe calls, of others */
    } faults[] = {
        {{NULL, 500, NULL, NULL, HFSB_OK, false, 0}, HFSB_REMOTE, 4, 1},
        {{NULL, 502, T_PAGE, T_HTML, HFSB_OK, false, 0}, HFSB_REMOTE, 4, 1},
        {{NULL, 503, NULL, NULL, HFSB_OK, false, 0}, HFSB_REMOTE, 4, 1},
        {{NULL, 504, NULL, NULL, HFSB_OK, false, 0}, HFSB_REMOTE, 4, 1},
        {{NULL, 408, NULL, NULL, HFSB_OK, false, 0}, HFSB_REMOTE, 4, 1},
        {{NULL, 501, NULL, NULL, HFSB_OK, false, 0}, HFSB_REMOTE, 1, 1},
        {{NULL, 200, T_PAGE, T_HTML, HFSB_OK, false, 0}, HFSB_REMOTE, 4, 1},
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

static void a_successful_repeat_is_a_success(void) {
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
    T_STR(h.log, "Could not see the state of " T_BOX
                 " (HTTP 503): trying again in 0.0 s.\n"
                 "Could not see the state of " T_BOX
                 " (no answer): trying again in 0.0 s.\n");
    t_hub_close(&h);
}

/* The log callback cancels the wait that it reports. */
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
        T_CHECK(hfsbi_hub_begin(h.hub, &request, HFSBI_HUB_SPACES, t_s(""),
                                t_s(""), h.cancel, &h.err) == HFSB_OK);
        request.retry.waits = i;
        T_CHECK(hfsbi_retry_wait(&request.retry) == HFSB_CANCELLED);
        T_CHECK(strstr(h.log.ptr, want[i]) != NULL);
        hfsbi_hub_end(&request);
    }
    t_hub_close(&h);
}

static void the_hubs_wait_replaces_the_delay(void) {
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
            T_CHECK(t_says(&h, "longer than the limit of 60 s"));
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

static void a_lost_duplicate_is_verified(void) {
    static const t_reply made[] = {
        {"POST /api/spaces/burtenshaw/sandbox/duplicate", 0, NULL, NULL,
         HFSB_LOST, false, 0},
        {"GET /api/spaces/" T_BOX, 404, NULL, NULL, HFSB_OK, false, 0},
        {"GET /api/spaces/" T_BOX, 0, NULL, NULL, HFSB_LOST, false, 0},
        {"GET /api/spaces/" T_BOX, 401, NULL, NULL, HFSB_OK, false, 0},
        {"GET /api/spaces/" T_BOX, 200, NULL, "{}", HFSB_OK, false, 0}};
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
    static const t_reply page[] = {
        {NULL, 200, T_PAGE, T_HTML, HFSB_OK, false, 0},
        {NULL, 200, NULL, "{}", HFSB_OK, false, 0}};
    t_hub h;
    t_hub_init(&h);
    h.opts.tries = 3;
    t_hub_open(&h);
    T_SCRIPT(&h, made);
    T_CHECK(t_duplicate(&h) == HFSB_OK && h.err.code == HFSB_OK);
    T_CHECK(h.sent_count == 5);
    T_CHECK(strstr(h.log.ptr, "The Hub's answer was lost, but " T_BOX
                              " was made.") != NULL);
    T_SCRIPT(&h, not_made);
    T_CHECK(t_duplicate(&h) == HFSB_REMOTE && h.sent_count == 4);
    T_CHECK(t_says(&h, "Could not duplicate burtenshaw/sandbox as " T_BOX
                       ": HTTP 502."));
    T_CHECK(t_says(&h, T_BOX " does not seem to exist."));
    T_SCRIPT(&h, unknown);
    T_CHECK(t_duplicate(&h) == HFSB_TIMEOUT && h.sent_count == 2);
    T_CHECK(t_says(&h, "Whether " T_BOX " was made is not known."));
    T_SCRIPT(&h, refused);
    T_CHECK(t_duplicate(&h) == HFSB_PAYMENT && h.sent_count == 1);
    T_SCRIPT(&h, page);
    T_CHECK(t_duplicate(&h) == HFSB_OK && h.sent_count == 2);
    t_hub_close(&h);
}

/* While it waits, and while it asks. */
static void verifying_a_lost_duplicate_can_be_cancelled(void) {
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
    T_CHECK(t_says(&h, "Whether " T_BOX " was made is not known."));
    h.stop = false;
    T_SCRIPT(&h, asks);
    T_CHECK(t_duplicate(&h) == HFSB_CANCELLED && h.sent_count == 2);
    T_CHECK(h.err.code == HFSB_CANCELLED);
    t_hub_close(&h);
}

static void a_lost_delete_succeeds_when_the_space_is_gone(void) {
    static const t_reply script[] = {
        {"DELETE /api/repos/delete", 0, NULL, NULL, HFSB_LOST, false, 0},
        {"DELETE /api/repos/delete", 404, NULL, NULL, HFSB_OK, false, 0}};
    static const t_reply gone[] = {
        {NULL, 404, "X-Error-Code: RepoNotFound", NULL, HFSB_OK, false, 0}};
    static const t_reply unsent[] = {
        {NULL, 0, NULL, NULL, HFSB_CONNECT, true, 0},
        {NULL, 404, NULL, NULL, HFSB_OK, false, 0}};
    static const t_reply plain[] = {
        {NULL, 200, T_PLAIN, "OK", HFSB_OK, false, 0}};
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
    static const t_reply bad[] = {
        {NULL, 502, T_PAGE, T_HTML, HFSB_OK, false, 0}};
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

int main(void) {
    T_RUN(only_safe_requests_are_repeated);
    T_RUN(a_successful_repeat_is_a_success);
    T_RUN(waits_grow_up_to_eight_times);
    T_RUN(the_hubs_wait_replaces_the_delay);
    T_RUN(a_lost_duplicate_is_verified);
    T_RUN(verifying_a_lost_duplicate_can_be_cancelled);
    T_RUN(a_lost_delete_succeeds_when_the_space_is_gone);
    T_RUN(a_job_is_never_sent_twice);
    return T_END();
}
