/* test_sandbox_hostile.c - a sandbox whose server, or Hub, is up to no good:
   what it may cost, and what it must not learn to tell. */
#include "../support/t_calls.h"

/* ---- a transport that follows a script ---- */

typedef struct script {
    hfsb_transport transport;
    hfsb_sandbox  *sandbox;
    hfsb_hub      *hub; /* of one on a Space */
    /* answers a POST; the others are answered as by a server of ours */
    hfsb_status (*post)(struct script *s, const hfsb_http_call *call,
                        const char *tool, hfsb_err *err);
    size_t             asked, pieces;
    bool               silent;  /* the Hub does not answer */
    const char        *runtime; /* ... or so, about the Space */
    unsigned long long offset;
} script;

/* A whole reply of a server of ours. */
static hfsb_status give(const hfsb_http_call *call, const char *type,
                        hfsb_str body, hfsb_err *err) {
    hfsb_http_field fields[2];
    fields[0].name = HFSB_LIT("X-Hfsb");
    fields[0].value = HFSB_LIT("1; instance=one");
    fields[1].name = HFSB_LIT("Content-Type");
    fields[1].value = hfsb_cstr(type);
    if (!call->on_head(call->user, 200, fields, 2) ||
        !call->on_body(call->user, body))
        return hfsbi_fail(err, HFSB_CANCELLED, 0, "a callback said so");
    return hfsbi_ok(err);
}

static hfsb_status perform(void *user, const hfsb_http_call *call, bool *sent,
                           hfsb_err *err) {
    script     *s = (script *)user;
    char        tool[64];
    size_t      at = hfsb_str_find(call->url, HFSB_LIT("/api/"));
    hfsb_str    name = hfsb_str_slice(call->url, at + 5, call->url.len);
    static char health[] = "{\"status\":\"ok\",\"version\":\"1\"}";
    if (s->silent) {
        if (hfsb_cancel_wait(call->cancel, call->total_ms))
            return hfsbi_fail(err, HFSB_CONNECT, 0, "no one is there");
        return hfsbi_fail(err, HFSB_CANCELLED, 0, "cancelled");
    }
    *sent = true;
    if (s->runtime)
        return give(call, "application/json", hfsb_cstr(s->runtime), err);
    snprintf(tool, sizeof tool, "%.*s", (int)name.len, name.ptr);
    if (!hfsb_str_equal(call->method, HFSB_LIT("POST")))
        return give(call, "application/json", hfsb_cstr(health), err);
    s->asked++;
    return s->post(s, call, tool, err);
}

static void begin(script *s,
                  hfsb_status (*post)(script *, const hfsb_http_call *,
                                      const char *, hfsb_err *)) {
    hfsb_sandbox_opts o = tc_options();
    memset(s, 0, sizeof *s);
    s->post = post;
    s->transport.perform = perform;
    s->transport.user = s;
    o.transport = &s->transport;
    o.alloc = tt_alloc();
    if (hfsb_sandbox_connect_url(HFSB_LIT("http://a.test"), &o, &s->sandbox,
                                 NULL) != HFSB_OK)
        abort();
}

static void end(script *s) {
    T_CHECK(hfsb_sandbox_close(s->sandbox, true, NULL) == HFSB_OK);
}

static void show(void *user, hfsb_proc_stream stream, hfsb_str text) {
    (void)user, (void)stream, (void)text;
}

/* A command whose text is shown as it comes. */
static void run(script *s, tt_reply *r) {
    hfsb_call_opts opts = HFSB_INIT;
    tc_box         box;
    opts.on_text = show;
    box.sandbox = s->sandbox;
    tc_do(r, &box, "bash", "{\"command\":\"true\"}", &opts, NULL);
}

/* ---- replies that do not end ---- */

static hfsb_status blanks(script *s, const hfsb_http_call *call,
                          const char *tool, hfsb_err *err) {
    static char piece[1 << 20];
    (void)tool;
    memset(piece, ' ', sizeof piece);
    if (give(call, "application/json", HFSB_LIT(" "), err) != HFSB_OK)
        return HFSB_CANCELLED;
    for (s->pieces = 1; s->pieces < 80; s->pieces++)
        if (!call->on_body(call->user, hfsb_str_make(piece, sizeof piece)))
            return hfsbi_fail(err, HFSB_CANCELLED, 0, "a callback said so");
    return hfsbi_ok(err);
}

static void a_reply_has_a_limit_though_text_is_shown(void) {
    script   s;
    tt_reply r = HFSB_INIT;
    begin(&s, blanks);
    run(&s, &r);
    T_CHECK(r.st == HFSB_LIMIT && s.pieces < 70 && s.asked == 1);
    tt_drop(&r);
    end(&s);
}

/* A stream that breaks; then the result; then text that never comes. */
static hfsb_status counts(script *s, const hfsb_http_call *call,
                          const char *tool, hfsb_err *err) {
    char text[128];
    if (s->asked == 1) {
        (void)give(call, "text/event-stream",
                   HFSB_LIT("event: stdout\ndata: {\"offset\":0,\"text\":"
                            "\"a\"}\n\n"),
                   err);
        return hfsbi_fail(err, HFSB_LOST, 0, "it broke");
    }
    if (s->asked > 50) return hfsbi_fail(err, HFSB_ARG, 0, "enough");
    snprintf(text, sizeof text,
             "{\"success\":true,\"output\":\"%s\",\"id\":\"i\","
             "\"next_offset\":%llu}",
             strcmp(tool, "bash_output") ? "a" : "", ++s->offset + 1);
    return give(call, "application/json", hfsb_cstr(text), err);
}

static void text_that_never_comes_is_not_asked_for_for_ever(void) {
    script   s;
    tt_reply r = HFSB_INIT;
    begin(&s, counts);
    run(&s, &r);
    TT_OK(&r, "a");
    T_CHECK(s.asked == 3);
    tt_drop(&r);
    end(&s);
}

static hfsb_status nonsense(script *s, const hfsb_http_call *call,
                            const char *tool, hfsb_err *err) {
    (void)s, (void)tool;
    (void)give(call, "text/event-stream",
               HFSB_LIT("event: stdout\ndata: {bad\n\n"), err);
    return hfsbi_fail(err, HFSB_CANCELLED, 0, "cancelled");
}

static void a_cancel_after_a_bad_event_is_a_cancel(void) {
    script   s;
    tt_reply r = HFSB_INIT;
    begin(&s, nonsense);
    run(&s, &r);
    T_CHECK(r.st == HFSB_CANCELLED && s.asked == 1);
    tt_drop(&r);
    end(&s);
}

/* ---- a file of five bytes that has more and more ---- */

static hfsb_status more(script *s, const hfsb_http_call *call,
                        const char *tool, hfsb_err *err) {
    hfsb_buf    text = HFSB_INIT;
    size_t      i;
    hfsb_status st;
    (void)tool;
    if (s->asked > 20) return hfsbi_fail(err, HFSB_ARG, 0, "enough");
    if (hfsb_buf_printf(&text, "{\"success\":true,\"output\":\"5 1 t\\n") !=
        HFSB_OK)
        abort();
    for (i = 0; i < 18000 / 3; i++)
        if (hfsb_buf_append(&text, HFSB_LIT("QUFB")) != HFSB_OK) abort();
    if (hfsb_buf_append(&text, HFSB_LIT("\"}")) != HFSB_OK) abort();
    st = give(call, "application/json", hfsb_buf_str(&text), err);
    hfsb_buf_free(&text);
    return st;
}

static hfsb_status foreign(void *user, const hfsb_http_call *call, bool *sent,
                           hfsb_err *err) {
    hfsb_http_field none = HFSB_INIT;
    if (hfsb_str_find(call->url, HFSB_LIT("/files")) == HFSB_NPOS)
        return perform(user, call, sent, err);
    *sent = true;
    (void)!call->on_head(call->user, 404, &none, 0);
    (void)!call->on_body(call->user, HFSB_LIT("{}"));
    return hfsbi_ok(err);
}

static void pieces_end_where_the_file_does(void) {
    script   s;
    hfsb_err err;
    begin(&s, more);
    s.sandbox->transport.perform = foreign;
    T_CHECK(hfsb_sandbox_download(s.sandbox, HFSB_LIT("f"), NULL,
                                  HFSB_LIT("here"), NULL, &err) == HFSB_STALE);
    T_CHECK(s.asked == 1 && access("here", F_OK) != 0);
    end(&s);
}

/* ---- tokens ---- */

/* tc_do() looks at what is said. */
static void an_echo_of_the_tokens_is_not_passed_on(void) {
    static const int statuses[] = {200, 401, 403, 404, 422, 500, 503};
    tc_all           a;
    tt_reply         r = HFSB_INIT;
    hfsb_err         err;
    char             text[1024], body[512];
    size_t           i, pad;
    tc_begin(&a, NULL, false);
    a.proxy.only_posts = true;
    for (i = 0; i < TT_COUNT(statuses); i++)
        for (pad = 0; pad < 210; pad += 35) { /* also across the cut */
            snprintf(body, sizeof body, "%*s<p>Bearer %s, Bearer %s</p>",
                     (int)pad, "", TS_TOKEN, TC_HUB_TOKEN);
            snprintf(text, sizeof text,
                     "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n%s",
                     statuses[i], strlen(body), body);
            tc_can(&a.proxy, text, 3);
            tc_call(&r, &a.box, "read", "{\"path\":\"x\"}");
            T_CHECK(r.st != HFSB_OK);
            T_CHECK(pad > 100 || tt_says(&r.res.error, "Bearer ***, Bea"));
            T_CHECK(!tt_says(&r.res.error, "Bearer a-") &&
                    !tt_says(&r.res.error, "Bearer hf"));
        }
    for (i = 1; i < TT_COUNT(statuses); i++) {
        snprintf(body, sizeof body, "{\"error\":\"no: %s and %s!\"}", TS_TOKEN,
                 TC_HUB_TOKEN);
        snprintf(text, sizeof text,
                 "HTTP/1.1 %d X\r\nContent-Type: application/json\r\n"
                 "Content-Length: %zu\r\n\r\n%s",
                 statuses[i], strlen(body), body);
        tc_can(&a.proxy, text, 3);
        tc_call(&r, &a.box, "read", "{\"path\":\"x\"}");
        T_STR(r.res.error, "no: *** and ***!");
        a.proxy.only_posts = false;
        tc_can(&a.proxy, text, 1);
        memset(&err, 0, sizeof err);
        T_CHECK(hfsb_sandbox_download(a.box.sandbox, HFSB_LIT("x"), NULL,
                                      HFSB_LIT("y"), NULL, &err) != HFSB_OK);
        tc_no_secret(hfsb_cstr(err.msg));
        a.proxy.only_posts = true;
    }
    tt_drop(&r);
    tc_end(&a);
}

/* ---- times ---- */

static void huge_waits_are_clamped(void) {
    hfsb_sandbox_opts o = tc_options();
    tc_all            a;
    o.timeout = 1e300;
    o.times.wait_ms = o.times.api_wait_ms = LLONG_MAX;
    tc_begin(&a, &o, false);
    T_CHECK(a.box.sandbox->o.timeout > 1199 &&
            a.box.sandbox->o.timeout < 1201);
    T_CHECK(a.box.sandbox->o.times.wait_ms < LLONG_MAX / 2 &&
            a.box.sandbox->o.times.api_wait_ms < LLONG_MAX / 2);
    tc_end(&a);
}

static void *set_soon(void *user) {
    tt_sleep_ms(50);
    hfsb_cancel_set((hfsb_cancel *)user);
    return NULL;
}

/* On a Space, with a Hub that is as odd. */
static void begin_space(script *s) {
    hfsb_sandbox_opts o = tc_options();
    hfsb_hub_opts     hub = HFSB_INIT;
    memset(s, 0, sizeof *s);
    s->transport.perform = perform;
    s->transport.user = s;
    hub.transport = &s->transport;
    hub.endpoint = HFSB_LIT("http://hub.test");
    hub.timeout_ms = 60000;
    hub.delay_ms = 1;
    T_CHECK(hfsb_hub_open(&hub, &s->hub, NULL) == HFSB_OK);
    o.hub = s->hub;
    o.transport = &s->transport;
    o.tries = 1;
    o.timeout = 0.001; /* a call's own time is soon over */
    o.times.margin_ms = 1;
    o.times.wait_ms = 200;
    o.times.poll_ms = 5;
    if (hfsb_sandbox_connect(HFSB_LIT("alice/box"), false, &o, &s->sandbox,
                             NULL) != HFSB_OK)
        abort();
}

/* RUNNING counts only on the requested hardware, if the Hub names it. */
static void a_space_runs_on_our_hardware(void) {
    static const struct {
        const char *hardware;
        hfsb_status end;
    } cases[] = {
        {"{\"current\":null,\"requested\":\"t4-small\"}", HFSB_TIMEOUT},
        {"{\"current\":\"t4-small\",\"requested\":\"cpu-basic\"}",
         HFSB_TIMEOUT},
        {"{\"current\":null,\"requested\":\"cpu-basic\"}", HFSB_OK},
        {"{\"current\":\"cpu-basic\",\"requested\":\"t4-small\"}", HFSB_OK},
        {"{\"current\":null,\"requested\":null}", HFSB_OK},
        {"null", HFSB_OK}};
    hfsb_sandbox_spec spec = HFSB_INIT;
    script            s;
    char              text[256];
    hfsb_err          err;
    bool              seen;
    size_t            i;
    begin_space(&s);
    for (i = 0; i < TT_COUNT(cases); i++) {
        snprintf(text, sizeof text, "{\"stage\":\"RUNNING\",\"hardware\":%s}",
                 cases[i].hardware);
        s.runtime = text;
        s.sandbox->o.times.wait_ms = cases[i].end == HFSB_OK ? 20000 : 200;
        T_CHECK(hfsbi_sandbox_start(s.sandbox, &spec, "", &seen, &err) ==
                cases[i].end);
    }
    end(&s);
    hfsb_hub_close(s.hub);
}

/* What the Hub shows decides whether a silent server is waited for; after a
   restart it may show the stage before. */
static void only_a_fresh_space_may_be_paused(void) {
    static const struct {
        const char *runtime;
        hfsb_status fresh, otherwise;
    } cases[] = {
        {"{\"stage\":\"RUNNING\"}", HFSB_OK, HFSB_OK},
        {"{\"stage\":\"SLEEPING\"}", HFSB_OK, HFSB_OK},
        {"{\"stage\":\"PAUSED\"}", HFSB_OK, HFSB_CONNECT},
        {"{\"stage\":\"BUILD_ERROR\"}", HFSB_REMOTE, HFSB_REMOTE}};
    script   s;
    hfsb_err err;
    size_t   i;
    begin_space(&s);
    for (i = 0; i < TT_COUNT(cases); i++) {
        s.runtime = cases[i].runtime;
        T_CHECK(s.sandbox->home->look(s.sandbox, true, &err) ==
                cases[i].fresh);
        T_CHECK(s.sandbox->home->look(s.sandbox, false, &err) ==
                cases[i].otherwise);
    }
    end(&s);
    hfsb_hub_close(s.hub);
}

/* The server is gone, and the Hub, asked why, says nothing. */
static void cancel_works_while_the_hub_is_asked(void) {
    script       s;
    tt_reply     r = HFSB_INIT;
    hfsb_cancel *cancel;
    pthread_t    thread;
    tc_box       box;
    long long    before;
    begin_space(&s);
    T_CHECK(hfsb_cancel_open(NULL, &cancel, NULL) == HFSB_OK);
    s.silent = true;
    box.sandbox = s.sandbox;
    before = hfsb_clock_ms();
    if (pthread_create(&thread, NULL, set_soon, cancel)) abort();
    tc_do(&r, &box, "read", "{\"path\":\"x\"}", NULL, cancel);
    T_CHECK(r.st == HFSB_CANCELLED);
    T_CHECK(hfsb_clock_ms() - before < 15000);
    pthread_join(thread, NULL);
    tt_drop(&r);
    end(&s);
    hfsb_hub_close(s.hub);
    hfsb_cancel_close(cancel);
}

int main(void) {
    tt_begin();
    TT_RUN(a_reply_has_a_limit_though_text_is_shown);
    TT_RUN(text_that_never_comes_is_not_asked_for_for_ever);
    TT_RUN(a_cancel_after_a_bad_event_is_a_cancel);
    TT_RUN(pieces_end_where_the_file_does);
    TT_RUN(an_echo_of_the_tokens_is_not_passed_on);
    TT_RUN(huge_waits_are_clamped);
    TT_RUN(a_space_runs_on_our_hardware);
    TT_RUN(only_a_fresh_space_may_be_paused);
    TT_RUN(cancel_works_while_the_hub_is_asked);
    return TT_END();
}
