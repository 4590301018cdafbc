/* test_sandbox_again.c - calls to a sandbox whose reply does not come: what is
   sent again, and what is not. */
#include "../support/t_calls.h"

/* ---- what is sent again ---- */

static void waits_while_a_space_wakes_up(void) {
    hfsb_sandbox_opts o = tc_options();
    tc_all            a;
    tt_reply          r = HFSB_INIT;
    int               foreign;
    long long         before;
    o.times.delay_ms = 30;
    for (foreign = 0; foreign < 2; foreign++) {
        tc_begin(&a, &o, foreign);
        tc_plan_one(&a.proxy, TC_PAGE_BEFORE, 2);
        before = hfsb_clock_ms();
        tc_call(&r, &a.box, "bash", "{\"command\":\"echo up\"}");
        TT_OK(&r, "up\n");
        T_CHECK(hfsb_clock_ms() - before >= 90); /* 30, then 60 */
        T_CHECK(a.proxy.asked_posts == 3 && a.proxy.reached == 1);
        tt_drop(&r);
        tc_end(&a);
    }
}

typedef struct loss_case {
    tc_act act;
    bool   foreign_again; /* also by a server that is not ours */
} loss_case;

static const loss_case losses[] = {
    {TC_DELAY, true},       {TC_DROP_BEFORE, false}, {TC_DROP_RUNNING, false},
    {TC_DROP_AFTER, false}, {TC_TRUNCATE, false},    {TC_PAGE_BEFORE, true},
    {TC_PAGE_AFTER, false}};

static void a_lost_reply_costs_nothing(void) {
    static const char *const calls[][2] = {
        {"bash", "{\"command\":\"echo x >> ran; echo done\"}"},
        {"write", "{\"path\":\"w\",\"content\":\"1\"}"},
        {"read", "{\"path\":\"w\"}"},
        {"exists", "{\"path\":\"w\"}"},
        {"edit", "{\"path\":\"w\",\"old_str\":\"1\",\"new_str\":\"11\"}"},
        {"multi_edit", "{\"path\":\"w\",\"edits\":[{\"old_str\":\"11\","
                       "\"new_str\":\"2\"}]}"},
        {"apply_patch", "{\"patch\":\"*** Begin Patch\\n*** Delete File: "
                        "w\\n*** End Patch\"}"}};
    tc_all   a;
    tt_reply r = HFSB_INIT;
    size_t   i, k;
    tc_begin(&a, NULL, false);
    a.proxy.only_posts = true;
    for (i = 0; i < TT_COUNT(losses); i++) {
        for (k = 0; k < TT_COUNT(calls); k++) {
            tc_plan_one(&a.proxy, losses[i].act, 2);
            tc_call(&r, &a.box, calls[k][0], calls[k][1]);
            if (!r.res.success) printf("act %d, ", (int)losses[i].act);
            TT_OK(&r, NULL);
            T_CHECK(a.proxy.asked_posts ==
                    (losses[i].act == TC_DELAY ? 1 : 3));
        }
        T_CHECK(tt_lines_in("ran") == (long)i + 1);
    }
    tt_drop(&r);
    tc_end(&a);
}

static void nothing_is_sent_twice_to_a_server_that_knows_no_keys(void) {
    tc_all   a;
    tt_reply r = HFSB_INIT;
    size_t   i;
    tc_begin(&a, NULL, true);
    for (i = 0; i < TT_COUNT(losses); i++) {
        tc_plan_one(&a.proxy, losses[i].act, 1);
        tc_call(&r, &a.box, "bash", "{\"command\":\"echo y >> few\"}");
        T_CHECK(r.res.success == losses[i].foreign_again);
        T_CHECK(a.proxy.reached <= 1 && a.proxy.repeats == 0);
        T_CHECK(a.proxy.asked_posts ==
                (losses[i].act == TC_PAGE_BEFORE ? 2 : 1));
        if (losses[i].act != TC_PAGE_AFTER && !r.res.success) {
            T_CHECK(r.st == HFSB_LOST);
            T_CHECK(tt_says(&r.res.error, "may have run"));
        }
    }
    /* nor a read: no one knows what it does there */
    tc_plan_one(&a.proxy, TC_DROP_AFTER, 1);
    tc_call(&r, &a.box, "read", "{\"path\":\"few\"}");
    T_CHECK(r.st == HFSB_LOST && a.proxy.asked_posts == 1);
    T_CHECK(!tt_says(&r.res.error, "may have run"));
    tt_drop(&r);
    tc_end(&a);
}

typedef struct page_case {
    int         status;
    bool        said; /* with X-Hfsb, when the server is ours */
    const char *fields, *body;
    bool        ours_again, foreign_again;
} page_case;

#define JSON_FIELD "Content-Type: application/json\r\n"
#define HTML_FIELD "Content-Type: text/html; charset=utf-8\r\n"

/* What a server has sent, though it is not whole, is no page of the edge. */
static const page_case pages[] = {
    {200, true, JSON_FIELD, "   ", true, false},
    {200, true, "", "", true, true},
    {503, true, "", "no", true, true},
    {404, true, "", "no", false, true},
    {200, false, JSON_FIELD, "{\"success\": tr", true, false},
    {200, false, "content-type: Application/JSON; charset=utf-8\r\n", "",
     true, false},
    {503, false, JSON_FIELD, "{", true, false},
    {404, false, JSON_FIELD, "{", false, false},
    {500, false, HTML_FIELD, "<p>", true, false},
    {504, false, "", "", true, false},
    {403, false, HTML_FIELD, "<p>", false, false},
    {200, false, HTML_FIELD, "<p>", true, true},
    {202, false, "", "", true, true},
    {404, false, HTML_FIELD, "<p>", true, true},
    {429, false, "", "", true, true},
    {503, false, "Content-Type: text/plain\r\n", "wait", true, true}};

/* instance NULL: of a server that is not ours */
static void page_text(char *out, size_t size, const page_case *page,
                      const char *instance) {
    bool said = instance && page->said;
    snprintf(out, size,
             "HTTP/1.1 %d X\r\n%s%s%s%sContent-Length: %zu\r\n\r\n%s",
             page->status, said ? "X-Hfsb: 1; instance=" : "",
             said ? instance : "", said ? "\r\n" : "", page->fields,
             strlen(page->body), page->body);
}

static void only_a_page_of_the_edge_is_a_wake_up_page(void) {
    tc_all   a;
    tt_reply r = HFSB_INIT;
    char     text[512], instance[64];
    size_t   i;
    int      foreign;
    for (foreign = 0; foreign < 2; foreign++) {
        tc_begin(&a, NULL, foreign);
        a.proxy.only_posts = true;
        snprintf(instance, sizeof instance, "%s", a.box.sandbox->instance);
        for (i = 0; i < TT_COUNT(pages); i++) {
            bool again =
                foreign ? pages[i].foreign_again : pages[i].ours_again;
            page_text(text, sizeof text, &pages[i],
                      foreign ? NULL : instance);
            tc_can(&a.proxy, text, 1);
            tc_call(&r, &a.box, "bash", "{\"command\":\"echo x\"}");
            if (r.res.success != again || a.proxy.asked_posts != 1u + again)
                printf("page %zu, foreign %d: ", i, foreign);
            T_CHECK(r.res.success == again);
            T_CHECK(a.proxy.asked_posts == 1u + again);
        }
        tt_drop(&r);
        tc_end(&a);
    }
}

/* ... and only such a page may be followed by another instance. */
static void a_reply_cut_short_is_not_sent_to_another_instance(void) {
    tc_all    a;
    ts_server second;
    tt_reply  r = HFSB_INIT;
    char      text[512], instance[64];
    size_t    i;
    tc_begin(&a, NULL, false);
    ts_start(&second, NULL, NULL);
    a.proxy.only_posts = true;
    snprintf(instance, sizeof instance, "%s", a.box.sandbox->instance);
    for (i = 0; i < 2; i++) { /* of blanks, or empty */
        page_text(text, sizeof text, &pages[i], instance);
        tc_can(&a.proxy, text, 1);
        a.proxy.to = second.port;
        tc_call(&r, &a.box, "bash", "{\"command\":\"echo x >> twice\"}");
        T_CHECK(r.st == HFSB_LOST && a.proxy.asked_posts == 1);
        TT_FAIL(&r, "The sandbox's server was restarted during this call");
        T_CHECK(tt_lines_in("twice") <= 0);
        a.proxy.to = a.server.port;
        tc_call(&r, &a.box, "exists", "{\"path\":\"x\"}");
        T_CHECK(strcmp(a.box.sandbox->instance, instance) == 0);
    }
    tt_drop(&r);
    tc_end(&a);
    ts_end(&second, false);
}

/* A port that no one listens on. */
static unsigned dead_port(void) {
    unsigned port;
    int      fd = tc_listen(&port);
    close(fd);
    return port;
}

static void retries_a_refused_connection_then_reports_it(void) {
    hfsb_sandbox_opts o = tc_options();
    tc_all            a;
    tt_reply          r = HFSB_INIT;
    unsigned          port;
    char              want[128];
    long long         before;
    int               foreign;
    o.times.delay_ms = 20;
    for (foreign = 0; foreign < 2; foreign++) {
        tc_begin(&a, &o, foreign);
        /* the handle's address becomes one that refuses */
        port = dead_port();
        a.box.sandbox->api.len = 0;
        T_CHECK(hfsb_buf_printf(&a.box.sandbox->api,
                                "http://127.0.0.1:%u/api/", port) == HFSB_OK);
        before = hfsb_clock_ms();
        tc_call(&r, &a.box, "bash", "{\"command\":\"true\"}");
        T_CHECK(r.st == HFSB_CONNECT);
        T_CHECK(hfsb_clock_ms() - before >= 60);
        snprintf(want, sizeof want,
                 "Cannot connect to sandbox. Is http://127.0.0.1:%u running? "
                 "Status: ",
                 a.proxy.port);
        TT_FAIL(&r, want);
        tt_drop(&r);
        tc_end(&a);
    }
}

static void joins_a_call_that_timed_out_while_health_answers(void) {
    hfsb_sandbox_opts o = tc_options();
    tc_all            a;
    tt_reply          r = HFSB_INIT;
    size_t            i;
    o.times.margin_ms = 100;
    tc_begin(&a, &o, false);
    a.proxy.only_posts = true;
    tc_plan_one(&a.proxy, TC_HANG, 1);
    tc_call(&r, &a.box, "bash",
            "{\"command\":\"echo x >> joined; echo end\",\"timeout\":0.9}");
    TT_OK(&r, "end\n");
    T_CHECK(tt_lines_in("joined") == 1 && a.proxy.asked_posts == 2);
    tc_plan_one(&a.proxy, TC_HANG, 3);
    tc_call(&r, &a.box, "bash", "{\"command\":\"true\",\"timeout\":0.1}");
    T_CHECK(r.st == HFSB_TIMEOUT && a.proxy.asked_posts == 3);
    T_STR(r.res.error, "Timeout after 0.1s");
    a.proxy.only_posts = false; /* health does not answer either */
    tc_plan_one(&a.proxy, TC_HANG, 1);
    for (i = 1; i <= 6; i++) a.proxy.queue[i] = TC_DROP_BEFORE;
    a.proxy.queue_count = 7;
    tc_call(&r, &a.box, "bash", "{\"command\":\"true\",\"timeout\":0.1}");
    T_CHECK(r.st == HFSB_TIMEOUT && a.proxy.asked_posts == 1);
    tt_drop(&r);
    tc_end(&a);
    tc_begin(&a, &o, true);
    tc_plan_one(&a.proxy, TC_HANG, 1);
    tc_call(&r, &a.box, "bash", "{\"command\":\"true\",\"timeout\":0.1}");
    T_CHECK(r.st == HFSB_TIMEOUT && a.proxy.asked == 1);
    T_STR(r.res.error, "Timeout after 0.1s");
    tt_drop(&r);
    tc_end(&a);
}

/* The first server runs the command and loses its reply; then another one is
   there, which knows nothing of it. */
static void nothing_is_sent_again_to_another_instance(void) {
    tc_all    a;
    ts_server second;
    tt_reply  r = HFSB_INIT;
    tc_begin(&a, NULL, false);
    ts_start(&second, NULL, NULL);
    a.proxy.only_posts = true;
    a.proxy.then = second.port;
    tc_plan_one(&a.proxy, TC_DROP_AFTER, 1);
    tc_call(&r, &a.box, "bash", "{\"command\":\"echo x >> here\"}");
    T_CHECK(r.st == HFSB_LOST && a.proxy.asked_posts == 1);
    TT_FAIL(&r, "The sandbox's server was restarted during this call");
    T_CHECK(tt_lines_in("here") == 1);
    /* the next call knows the new one */
    tc_plan_one(&a.proxy, TC_DROP_AFTER, 1);
    tc_call(&r, &a.box, "bash", "{\"command\":\"echo x >> here\"}");
    TT_OK(&r, "");
    T_CHECK(tt_lines_in("here") == 2);
    /* a harmless call is sent to any instance */
    a.proxy.then = a.server.port;
    tc_plan_one(&a.proxy, TC_DROP_AFTER, 1);
    tc_call(&r, &a.box, "read", "{\"path\":\"here\"}");
    TT_OK(&r, "1\tx\n2\tx");
    /* the page of a waking Space: nothing has run, on any instance */
    tc_plan(&a.proxy, NULL, 0);
    a.proxy.to = second.port;
    tc_plan_one(&a.proxy, TC_PAGE_BEFORE, 1);
    tc_call(&r, &a.box, "bash", "{\"command\":\"echo x >> here\"}");
    TT_OK(&r, "");
    T_CHECK(tt_lines_in("here") == 3);
    tt_drop(&r);
    tc_end(&a);
    ts_end(&second, false);
}

/* Health is answered by the first; then the second is there. */
static void repeat_names_the_instance_it_is_meant_for(void) {
    static const tc_act moves[] = {TC_TRUNCATE, TC_MOVE};
    tc_all              a;
    ts_server           second;
    tt_reply            r = HFSB_INIT;
    tc_begin(&a, NULL, false);
    ts_start(&second, NULL, NULL);
    a.proxy.only_posts = true;
    tc_call(&r, &a.box, "bash", "{\"command\":\"true\"}");
    T_CHECK(!tc_field(&a.proxy, "X-Hfsb-Instance").ptr); /* no repeat */
    tc_plan_one(&a.proxy, TC_PAGE_BEFORE, 1);
    tc_call(&r, &a.box, "bash", "{\"command\":\"true\"}");
    T_CHECK(!tc_field(&a.proxy, "X-Hfsb-Instance").ptr); /* nothing ran */
    tc_plan_one(&a.proxy, TC_DROP_AFTER, 1);
    tc_call(&r, &a.box, "bash", "{\"command\":\"echo x >> where\"}");
    TT_OK(&r, "");
    T_CHECK(hfsb_str_equal(tc_field(&a.proxy, "X-Hfsb-Instance"),
                           hfsb_cstr(a.box.sandbox->instance)));
    a.proxy.then = second.port;
    tc_plan(&a.proxy, moves, 2);
    tc_call(&r, &a.box, "bash", "{\"command\":\"echo x >> where\"}");
    T_CHECK(r.st == HFSB_LOST && a.proxy.asked_posts == 2);
    TT_FAIL(&r, "The sandbox's server was restarted during this call");
    T_CHECK(tt_lines_in("where") == 2);
    /* what is harmless is for anyone */
    a.proxy.then = a.server.port;
    tc_plan(&a.proxy, moves, 2);
    tc_call(&r, &a.box, "read", "{\"path\":\"where\"}");
    TT_OK(&r, "1\tx\n2\tx");
    T_CHECK(!tc_field(&a.proxy, "X-Hfsb-Instance").ptr);
    tt_drop(&r);
    tc_end(&a);
    ts_end(&second, false);
}

/* A health reply without a name is from another instance. */
static void health_decides_which_instance_answers(void) {
    static const char nameless[] =
        "HTTP/1.1 200 OK\r\nX-Hfsb: 1\r\nContent-Length: 2\r\n\r\n{}";
    static const tc_act acts[] = {TC_DROP_AFTER, TC_CANNED};
    tc_all              a;
    tt_reply            r = HFSB_INIT;
    tc_begin(&a, NULL, false);
    a.proxy.canned = nameless;
    tc_plan(&a.proxy, acts, 2);
    tc_call(&r, &a.box, "bash", "{\"command\":\"true\"}");
    T_CHECK(r.st == HFSB_LOST && a.proxy.asked_posts == 1);
    TT_FAIL(&r, "The sandbox's server was restarted during this call");
    tt_drop(&r);
    tc_end(&a);
}

/* Callers repeat what was not sent. */
static void call_that_may_have_run_is_never_reported_as_not_sent(void) {
    static const tc_act pages_after[] = {TC_DROP_AFTER, TC_PAGE_BEFORE,
                                         TC_PAGE_BEFORE};
    tc_all              a;
    tt_reply            r = HFSB_INIT;
    tc_begin(&a, NULL, false);
    a.proxy.only_posts = true;
    tc_plan(&a.proxy, pages_after, 3);
    tc_call(&r, &a.box, "bash", "{\"command\":\"true\"}");
    T_CHECK(r.st == HFSB_LOST && tt_says(&r.res.error, "may have run"));
    tc_plan(&a.proxy, pages_after, 3);
    tc_call(&r, &a.box, "read", "{\"path\":\"x\"}");
    T_CHECK(r.st == HFSB_BUSY); /* harmless */
    tt_drop(&r);
    tc_end(&a);
}

static void a_key_of_the_caller_is_used(void) {
    hfsb_call_opts opts = HFSB_INIT;
    tc_all         a;
    tt_reply       r = HFSB_INIT;
    hfsb_str       key;
    char           first[64];
    tc_begin(&a, NULL, false);
    opts.key = HFSB_LIT("mine");
    tc_do(&r, &a.box, "bash", "{\"command\":\"echo $$\"}", &opts, NULL);
    T_STR(tc_field(&a.proxy, "Idempotency-Key"), "mine");
    snprintf(first, sizeof first, "%s", r.res.output.ptr);
    tc_do(&r, &a.box, "bash", "{\"command\":\"echo $$\"}", &opts, NULL);
    TT_OK(&r, first);
    tc_do(&r, &a.box, "bash", "{\"command\":\"echo other\"}", &opts, NULL);
    T_CHECK(r.st == HFSB_REFUSED);
    tc_call(&r, &a.box, "bash", "{\"command\":\"true\"}");
    key = tc_field(&a.proxy, "Idempotency-Key");
    T_CHECK(key.len == 32);
    snprintf(first, sizeof first, "%.*s", (int)key.len, key.ptr);
    tc_call(&r, &a.box, "bash", "{\"command\":\"true\"}");
    key = tc_field(&a.proxy, "Idempotency-Key");
    T_CHECK(key.len == 32 && !hfsb_str_equal(key, hfsb_cstr(first)));
    tt_drop(&r);
    tc_end(&a);
}

/* ---- nothing was sent ---- */

static unsigned dial_port; /* 0: refused */

static hfsb_status dial_or_refuse(void *user, const hfsb_dial *to, int *fd,
                                  hfsb_err *err) {
    (void)user, (void)to;
    if (!dial_port)
        return hfsbi_fail(err, HFSB_REMOTE, 0, "No server for that machine.");
    *fd = tc_dial(dial_port);
    return *fd < 0 ? hfsbi_fail(err, HFSB_CONNECT, 0, "dial") : HFSB_OK;
}

static void dial_that_fails_is_reported_as_it_is(void) {
    hfsb_sandbox_opts o = tc_options();
    hfsb_net_opts     net = HFSB_INIT;
    ts_server         server;
    tc_box            box;
    tt_reply          r = HFSB_INIT;
    hfsb_err          err;
    ts_start(&server, NULL, NULL);
    dial_port = server.port;
    net.dial = dial_or_refuse;
    net.alloc = tt_alloc();
    T_CHECK(hfsb_net_open(&net, &box.transport, &err) == HFSB_OK);
    o.transport = &box.transport;
    T_CHECK(hfsb_sandbox_connect_url(HFSB_LIT("http://localhost"), &o,
                                     &box.sandbox, &err) == HFSB_OK);
    tc_call(&r, &box, "bash", "{\"command\":\"echo up\"}");
    TT_OK(&r, "up\n");
    dial_port = 0;
    ts_end(&server, false); /* no connection is left */
    tc_do(&r, &box, "bash", "{\"command\":\"echo up\"}", NULL, NULL);
    T_CHECK(r.st == HFSB_REMOTE);
    T_STR(r.res.error, "No server for that machine.");
    tt_drop(&r);
    tc_close(&box);
}

int main(void) {
    tt_begin();
    TT_RUN(waits_while_a_space_wakes_up);
    TT_RUN(a_lost_reply_costs_nothing);
    TT_RUN(nothing_is_sent_twice_to_a_server_that_knows_no_keys);
    TT_RUN(only_a_page_of_the_edge_is_a_wake_up_page);
    TT_RUN(a_reply_cut_short_is_not_sent_to_another_instance);
    TT_RUN(retries_a_refused_connection_then_reports_it);
    TT_RUN(joins_a_call_that_timed_out_while_health_answers);
    TT_RUN(nothing_is_sent_again_to_another_instance);
    TT_RUN(repeat_names_the_instance_it_is_meant_for);
    TT_RUN(health_decides_which_instance_answers);
    TT_RUN(call_that_may_have_run_is_never_reported_as_not_sent);
    TT_RUN(a_key_of_the_caller_is_used);
    TT_RUN(dial_that_fails_is_reported_as_it_is);
    return TT_END();
}
