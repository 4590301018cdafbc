/* test_sandbox_life.c - a sandbox that exists: connect, pause, restart, delete,
   close; and the sweep of orphans. */
#define T_SERVER
#include "../support/t_create.h"

/* ---- delete ---- */

static void delete_is_quiet_the_second_time(void) {
    tc_world      w;
    hfsb_sandbox *s;
    hfsb_err      err = HFSB_INIT;
    tc_open_prompt(&w, FH_STUB);
    s = tc_create(&w);
    T_CHECK(hfsb_sandbox_delete(s, &err) == HFSB_OK && !err.msg[0]);
    T_CHECK(fh_spaces(w.fake) == 0);
    T_CHECK(hfsb_sandbox_delete(s, &err) == HFSB_OK && !err.msg[0]);
    T_CHECK(hfsb_sandbox_close(s, true, &err) == HFSB_OK);
    T_CHECK(fh_count(w.fake, "DELETE", NULL) == 1);
    T_CHECK(hfsb_sandbox_close(NULL, true, &err) == HFSB_OK);
    tc_close(&w);
}

static void delete_is_for_what_we_made(void) {
    tc_world      w;
    hfsb_sandbox *s, *other = NULL;
    hfsb_err      err = HFSB_INIT;
    hfsb_buf      want = HFSB_INIT;
    tc_open_prompt(&w, FH_STUB);
    s = tc_create(&w);
    T_CHECK(hfsb_sandbox_connect(hfsb_sandbox_id(s), false, &w.opts, &other,
                                 &err) == HFSB_OK);
    T_CHECK(!other->owned);
    T_CHECK(hfsb_sandbox_delete(other, &err) == HFSB_REFUSED);
    T_CHECK(hfsb_buf_printf(&want, "This Sandbox did not create %s.",
                            hfsb_sandbox_id(s).ptr) == HFSB_OK);
    T_CHECK(!strcmp(err.msg, want.ptr));
    T_CHECK(hfsb_sandbox_close(other, true, &err) == HFSB_OK);
    T_CHECK(fh_spaces(w.fake) == 1);
    T_CHECK(hfsb_sandbox_connect(hfsb_sandbox_id(s), true, &w.opts, &other,
                                 &err) == HFSB_OK);
    T_CHECK(hfsb_sandbox_close(other, true, &err) == HFSB_OK);
    T_CHECK(fh_spaces(w.fake) == 0);
    T_CHECK(hfsb_sandbox_delete(s, &err) == HFSB_OK); /* gone already */
    T_CHECK(hfsb_sandbox_close(s, false, &err) == HFSB_OK);
    hfsb_buf_free(&want);
    tc_close(&w);
}

static void delete_that_fails_can_be_tried_again(void) {
    tc_world      w;
    hfsb_sandbox *s;
    hfsb_err      err = HFSB_INIT;
    fh_fault_spec bad = HFSB_INIT;
    tc_open_prompt(&w, FH_STUB);
    s = tc_create(&w);
    bad.method = "DELETE";
    bad.status = 500;
    bad.times = 3; /* as often as the hub tries */
    fh_fault(w.fake, &bad);
    hfsb_cancel_set(w.cancel); /* of what comes before, not of this */
    T_CHECK(hfsb_sandbox_delete(s, &err) == HFSB_REMOTE);
    T_CHECK(hfsb_sandbox_close(s, true, &err) == HFSB_OK);
    T_CHECK(fh_spaces(w.fake) == 0);
    tc_close(&w);
}

/* ---- connect ---- */

static void addresses_are_understood(void) {
    static const struct {
        const char *url, *api, *page;
    } rows[] = {
        {"http://127.0.0.1:7860", "http://127.0.0.1:7860/api/",
         "http://127.0.0.1:7860"},
        {"http://127.0.0.1:7860/", "http://127.0.0.1:7860/api/",
         "http://127.0.0.1:7860"},
        {"HTTP://h/api", "http://h/api/", "http://h"},
        {"https://h/api/", "https://h/api/", "https://h"},
        {"https://h/x/y//", "https://h/x/y/api/", "https://h/x/y"},
        {"https://h/x/api", "https://h/x/api/", "https://h/x"},
        {"http://[::1]:1", "http://[::1]:1/api/", "http://[::1]:1"},
        {"http://u:p@h", NULL, NULL},
        {"http://h?x=1", NULL, NULL},
        {"ftp://h", NULL, NULL},
        {"h:80", NULL, NULL},
        {"", NULL, NULL},
    };
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_transport    none = HFSB_INIT;
    size_t            i;
    opts.transport = &none;
    for (i = 0; i < TT_COUNT(rows); i++) {
        hfsb_sandbox *s = NULL;
        hfsb_err      err = HFSB_INIT;
        hfsb_status   st =
            hfsbi_sandbox_open_url(hfsb_cstr(rows[i].url), &opts, &s, &err);
        T_CHECK(st == (rows[i].api ? HFSB_OK : HFSB_ARG));
        T_CHECK(!tc_has(hfsb_cstr(err.msg), "u:p"));
        if (!s) continue;
        T_CHECK(!strcmp(hfsb_sandbox_api(s).ptr, rows[i].api));
        T_CHECK(!strcmp(hfsb_sandbox_page(s).ptr, rows[i].page));
        T_CHECK(hfsb_sandbox_id(s).len == 0 && !s->o.work_dir.len);
        T_CHECK(hfsb_sandbox_close(s, true, NULL) == HFSB_OK);
    }
    opts.transport = NULL;
    {
        hfsb_sandbox *s = NULL;
        T_CHECK(hfsb_sandbox_connect_url(HFSB_LIT("http://h"), &opts, &s,
                                         NULL) == HFSB_ARG);
        T_CHECK(hfsb_sandbox_connect_url(HFSB_LIT("http://h"), NULL, &s,
                                         NULL) == HFSB_ARG);
        opts.transport = &none;
        T_CHECK(hfsb_sandbox_connect(HFSB_LIT("a1/b"), false, &opts, &s,
                                     NULL) == HFSB_ARG); /* no hub */
        T_CHECK(hfsb_sandbox_connect(HFSB_LIT(""), false, &opts, &s, NULL) ==
                HFSB_ARG);
        opts.times.wait_ms = -1;
        T_CHECK(hfsb_sandbox_connect_url(HFSB_LIT("http://h"), &opts, &s,
                                         NULL) == HFSB_ARG);
        T_CHECK(!s);
    }
}

static void a_url_is_no_space(void) {
    tc_world           w;
    hfsb_sandbox      *s = NULL;
    hfsb_err           err = HFSB_INIT;
    hfsb_space_runtime runtime;
    tc_open_prompt(&w, FH_STUB);
    w.spec.visible = true; /* the Hub's token goes to Spaces only */
    {
        hfsb_sandbox *made = tc_create(&w);
        w.opts.transport = &w.through; /* a URL has no Hub to take it from */
        T_CHECK(hfsb_sandbox_connect_url(hfsb_cstr(fh_edge(w.fake)), &w.opts,
                                         &s, &err) == HFSB_OK);
        T_CHECK(!strcmp(hfsb_sandbox_page(s).ptr, fh_edge(w.fake)));
        T_CHECK(hfsb_sandbox_delete(s, &err) == HFSB_ARG);
        T_CHECK(hfsb_sandbox_pause(s, &err) == HFSB_ARG);
        T_CHECK(hfsb_sandbox_restart(s, false, &err) == HFSB_ARG);
        T_CHECK(hfsb_sandbox_status(s, &runtime, &err) == HFSB_ARG);
        T_CHECK(tc_has(hfsb_cstr(err.msg), "not a Space"));
        T_CHECK(hfsb_sandbox_close(s, true, &err) == HFSB_OK);
        tc_delete(made);
    }
    tc_close(&w);
}

/* hfsb-server has a folder of its own, where relative paths begin as well; the
   reference's server is told, as its client does. */
static void commands_in_a_space_begin_where_paths_do(void) {
    static const fh_mode modes[] = {FH_STUB, FH_EMBED};
    size_t               i;
    for (i = 0; i < 2; i++) {
        bool             ours = modes[i] == FH_EMBED;
        tc_world         w;
        hfsb_sandbox    *s;
        hfsb_tool_result result = HFSB_INIT;
        tc_open_prompt(&w, modes[i]);
        s = tc_create(&w);
        T_CHECK(hfsb_sandbox_ours(s) == ours);
        T_CHECK(hfsb_sandbox_call_text(s, HFSB_LIT("bash"),
                                       HFSB_LIT("{\"command\":\"true\"}"),
                                       NULL, &result) == HFSB_OK);
        T_CHECK(result.success);
        T_CHECK(fh_saw(w.fake, "\"work_dir\":\"/app\"") == !ours);
        hfsb_tool_result_free(&result);
        tc_delete(s);
        tc_close(&w);
    }
}

static void the_address_of_a_space_is_found(void) {
    tc_world      w;
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    tc_open_prompt(&w, FH_STUB);
    w.opts.space_url = HFSB_LIT("");
    fh_add_space(w.fake, "alice/My.Box_2", 1, true);
    T_CHECK(hfsb_sandbox_connect(HFSB_LIT("alice/My.Box_2"), false, &w.opts,
                                 &s, &err) == HFSB_OK);
    T_STR(hfsb_sandbox_api(s), "https://alice-my-box-2.hf.space/api/");
    T_STR(w.hosts, "alice-my-box-2.hf.space\n");
    T_CHECK(fh_count(w.fake, "GET", "/api/spaces/alice/My.Box_2") == 1);
    T_CHECK(hfsb_sandbox_close(s, true, &err) == HFSB_OK);
    /* what the rule is sure of is not asked for */
    fh_add_space(w.fake, "alice/plain-1", 1, true);
    T_CHECK(hfsb_sandbox_connect(HFSB_LIT("alice/plain-1"), false, &w.opts, &s,
                                 &err) == HFSB_OK);
    T_STR(hfsb_sandbox_api(s), "https://alice-plain-1.hf.space/api/");
    T_CHECK(fh_count(w.fake, "GET", "/api/spaces/alice/plain-1") == 0);
    T_CHECK(hfsb_sandbox_close(s, true, &err) == HFSB_OK);
    T_CHECK(setenv("HFSB_SPACE_URL", fh_edge(w.fake), 1) == 0);
    hfsb_buf_truncate(&w.hosts, 0);
    T_CHECK(hfsb_sandbox_connect(HFSB_LIT("alice/plain-1"), false, &w.opts, &s,
                                 &err) == HFSB_OK);
    T_CHECK(hfsb_str_starts(hfsb_sandbox_api(s), hfsb_cstr(fh_edge(w.fake))));
    T_CHECK(w.hosts.len == 0);
    T_CHECK(hfsb_sandbox_close(s, true, &err) == HFSB_OK);
    T_CHECK(unsetenv("HFSB_SPACE_URL") == 0);
    tc_close(&w);
}

/* connect_url to the edge, which must fail; gives the message in *err. */
static hfsb_status no_connection(tc_world *w, const char *url, hfsb_err *err) {
    hfsb_sandbox *s = NULL;
    hfsb_status   st;
    if (!w->opts.transport) w->opts.transport = &w->through;
    st = hfsb_sandbox_connect_url(hfsb_cstr(url), &w->opts, &s, err);
    T_CHECK(!s && st != HFSB_OK && err->code == st);
    tc_no_secret(w, err);
    return st;
}

static void connect_waits_and_gives_up(void) {
    tc_world      w;
    hfsb_err      err = HFSB_INIT;
    hfsb_buf      want = HFSB_INIT;
    fh_fault_spec ill = HFSB_INIT;
    tc_open_prompt(&w, FH_STUB);
    w.opts.times.api_wait_ms = 500;
    ill.path = "edge:/api/health";
    ill.status = 503;
    ill.shape = FH_HTML;
    ill.times = FH_ALWAYS;
    fh_fault(w.fake, &ill);
    T_CHECK(no_connection(&w, fh_edge(w.fake), &err) == HFSB_TIMEOUT);
    T_CHECK(hfsb_buf_printf(&want,
                            "Sandbox API at %s/api/ not responding after "
                            "0.5s. Last status: 503, last error: None",
                            fh_edge(w.fake)) == HFSB_OK);
    T_CHECK(!strcmp(err.msg, want.ptr));
    T_CHECK(fh_count(w.fake, "GET", "edge:/api/health") > 1);
    /* nobody there */
    T_CHECK(no_connection(&w, "http://127.0.0.1:1", &err) == HFSB_TIMEOUT);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "Last status: None, last error: "));
    T_CHECK(!tc_has(hfsb_cstr(err.msg), "last error: None"));
    /* a server that does not answer */
    tc_again(&w);
    memset(&ill, 0, sizeof ill);
    ill.path = "edge:/api/health";
    ill.delay_ms = 3000;
    ill.times = FH_ALWAYS;
    fh_fault(w.fake, &ill);
    w.opts.times.health_ms = 10;
    T_CHECK(no_connection(&w, fh_edge(w.fake), &err) == HFSB_TIMEOUT);
    hfsb_cancel_set(w.cancel);
    T_CHECK(no_connection(&w, fh_edge(w.fake), &err) == HFSB_CANCELLED);
    hfsb_buf_free(&want);
    tc_close(&w);
}

static void connect_reports_a_refused_token_at_once(void) {
    tc_world      w;
    hfsb_err      err = HFSB_INIT;
    fh_fault_spec no = HFSB_INIT;
    tc_open_prompt(&w, FH_STUB);
    no.path = "edge:/api/health";
    no.status = 401;
    no.shape = FH_RAW;
    no.message = "{\"detail\":\"Invalid bearer token\"}";
    fh_fault(w.fake, &no);
    T_CHECK(no_connection(&w, fh_edge(w.fake), &err) == HFSB_AUTH);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "does not accept this token (Invalid "
                                       "bearer token)"));
    tc_again(&w);
    no.status = 503;
    no.message = "{\"detail\":\"Sandbox API token not configured\"}";
    fh_fault(w.fake, &no);
    T_CHECK(no_connection(&w, fh_edge(w.fake), &err) == HFSB_AUTH);
    T_CHECK(fh_count(w.fake, NULL, NULL) == 1);
    /* no TLS in the built-in transport */
    w.opts.transport = &w.net;
    T_CHECK(no_connection(&w, "https://127.0.0.1:1", &err) == HFSB_REFUSED);
    tc_close(&w);
}

static void hfsb_server_knows_its_token(void) {
    tc_world      w;
    hfsb_sandbox *s, *other = NULL;
    hfsb_err      err = HFSB_INIT;
    hfsb_buf      url = HFSB_INIT;
    tc_open_prompt(&w, FH_EMBED);
    s = tc_create(&w);
    T_CHECK(hfsb_sandbox_ours(s));
    T_CHECK(fh_direct(w.fake, hfsb_sandbox_id(s).ptr, &url));
    w.opts.transport = &w.through;
    T_CHECK(hfsb_sandbox_connect_url(hfsb_buf_str(&url), &w.opts, &other,
                                     &err) == HFSB_OK);
    T_CHECK(hfsb_sandbox_ours(other));
    T_CHECK(hfsb_sandbox_close(other, true, NULL) == HFSB_OK);
    w.opts.api_token = HFSB_LIT("wrong");
    T_CHECK(no_connection(&w, url.ptr, &err) == HFSB_AUTH);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "does not accept this token"));
    w.opts.api_token = HFSB_LIT("");
    T_CHECK(no_connection(&w, url.ptr, &err) == HFSB_AUTH);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "wants a token"));
    tc_delete(s);
    hfsb_buf_free(&url);
    tc_close(&w);
}

/* How long connect takes to fail, with the defaults but for one long wait. */
static long long fail_to_connect(tc_world *w, const char *id, hfsb_status want,
                                 hfsb_err *err) {
    hfsb_sandbox *s = NULL;
    long long     from = hfsb_clock_ms();
    w->opts.times.api_wait_ms = 60000;
    T_CHECK(hfsb_sandbox_connect(hfsb_cstr(id), false, &w->opts, &s, err) ==
            want);
    T_CHECK(!s && err->code == want);
    tc_no_secret(w, err);
    return hfsb_clock_ms() - from;
}

static void connect_reports_at_once_why_nobody_answers(void) {
    static const struct {
        const char *stage;
        hfsb_status gives;
        const char *says;
    } rows[] = {
        {"PAUSED", HFSB_CONNECT, "The Space alice/box is PAUSED: restart it"},
        {"BUILD_ERROR", HFSB_REMOTE, "The Space alice/box is BUILD_ERROR"},
        {"RUNTIME_ERROR", HFSB_REMOTE, "is RUNTIME_ERROR"},
        {"CONFIG_ERROR", HFSB_REMOTE, "Check http"},
        {"NO_APP_FILE", HFSB_REMOTE, "is NO_APP_FILE"},
        {"DELETING", HFSB_REMOTE, "is DELETING"},
    };
    tc_world      w;
    hfsb_err      err = HFSB_INIT;
    fh_fault_spec down = HFSB_INIT;
    size_t        i;
    tc_open_prompt(&w, FH_STUB);
    T_CHECK(fail_to_connect(&w, "alice/nothing", HFSB_NOT_FOUND, &err) <
            20000);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "The Hub shows no Space alice/nothing: "
                                       "check the name"));
    fh_add_space(w.fake, "alice/box", 1, true);
    down.path = "edge:/api/health";
    down.status = 503;
    down.shape = FH_HTML;
    down.times = FH_ALWAYS;
    fh_fault(w.fake, &down);
    for (i = 0; i < TT_COUNT(rows); i++) {
        fh_fault_spec stage = HFSB_INIT;
        char          body[64];
        snprintf(body, sizeof body, "{\"stage\":\"%s\"}", rows[i].stage);
        stage.path = "/api/spaces/alice/box/runtime";
        stage.status = 200;
        stage.shape = FH_RAW;
        stage.message = body;
        fh_fault(w.fake, &stage);
        T_CHECK(fail_to_connect(&w, "alice/box", rows[i].gives, &err) < 20000);
        T_CHECK(tc_has(hfsb_cstr(err.msg), rows[i].says));
        if (!tc_has(hfsb_cstr(err.msg), rows[i].says))
            printf("  %s: %s\n", rows[i].stage, err.msg);
    }
    tc_close(&w);
}

/* The token of the Hub, not that of the server: no wait can help. */
static void connect_reports_at_once_that_the_hub_refuses_the_token(void) {
    tc_world      w;
    hfsb_err      err = HFSB_INIT;
    fh_fault_spec down = HFSB_INIT, no = HFSB_INIT;
    tc_open_prompt(&w, FH_STUB);
    fh_add_space(w.fake, "alice/box", 1, true);
    down.path = "edge:/api/health";
    down.status = 503;
    down.shape = FH_HTML;
    down.times = FH_ALWAYS;
    fh_fault(w.fake, &down);
    no.path = "/api/spaces/alice/box/runtime";
    no.status = 401;
    no.message = "Invalid credentials in Authorization header";
    fh_fault(w.fake, &no);
    T_CHECK(fail_to_connect(&w, "alice/box", HFSB_AUTH, &err) < 10000);
    T_CHECK(!strcmp(err.key, "hub_token"));
    T_CHECK(tc_has(hfsb_cstr(err.msg), "HTTP 401"));
    tc_close(&w);
}

static void end_at_first_wait(void *user, hfsb_str line) {
    tc_world *w = (tc_world *)user;
    tc_log(user, line);
    if (tc_has(line, "Waiting for the server")) hfsb_cancel_set(w->cancel);
}

/* Where nothing listens: seconds, not the minute that a server gets to answer,
   unless the caller has set a time. */
static void connect_url_waits_briefly_where_nobody_listens(void) {
    tc_world      w;
    hfsb_err      err = HFSB_INIT;
    fh_fault_spec ill = HFSB_INIT;
    tc_open_prompt(&w, FH_STUB);
    w.opts.times.api_wait_ms = 20;
    T_CHECK(no_connection(&w, "http://127.0.0.1:1", &err) == HFSB_TIMEOUT);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "not responding after 0.02s. Last "));
    w.opts.times.api_wait_ms = 0;
    w.opts.log = end_at_first_wait;
    T_CHECK(no_connection(&w, "http://127.0.0.1:1", &err) == HFSB_CANCELLED);
    T_CHECK(tc_logged(&w, "Waiting for the server at http://127.0.0.1:1/api/ "
                          "(timeout: 3s)..."));
    hfsb_cancel_reset(w.cancel);
    ill.path = "edge:/api/health";
    ill.status = 503;
    ill.times = FH_ALWAYS;
    fh_fault(w.fake, &ill);
    T_CHECK(no_connection(&w, fh_edge(w.fake), &err) == HFSB_CANCELLED);
    T_CHECK(tc_logged(&w, "/api/ (timeout: 60s)..."));
    tc_close(&w);
}

/* A Space that builds or wakes up is waited for, also when the Hub does not
   answer; one that then fails is reported. */
static void connect_waits_for_a_space_that_starts(void) {
    static const char *const stages[] = {"BUILDING", "SLEEPING", "STOPPED",
                                         "RUNNING_BUILDING", "NEW_STAGE"};
    tc_world      w;
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    fh_fault_spec down = HFSB_INIT, stage = HFSB_INIT;
    size_t        i;
    tc_open_prompt(&w, FH_STUB);
    fh_add_space(w.fake, "alice/box", 1, true);
    down.path = "edge:/api/health";
    down.status = 503;
    down.shape = FH_HTML;
    stage.path = "/api/spaces/alice/box/runtime";
    stage.shape = FH_RAW;
    for (i = 0; i <= TT_COUNT(stages); i++) {
        char body[64];
        tc_again(&w);
        snprintf(body, sizeof body, "{\"stage\":\"%s\"}",
                 i < TT_COUNT(stages) ? stages[i] : "");
        stage.message = body;
        stage.status = i < TT_COUNT(stages) ? 200 : 403;
        down.times = 3;
        stage.times = FH_ALWAYS;
        fh_fault(w.fake, &down);
        fh_fault(w.fake, &stage);
        T_CHECK(hfsb_sandbox_connect(HFSB_LIT("alice/box"), false, &w.opts, &s,
                                     &err) == HFSB_OK);
        T_CHECK(fh_count(w.fake, "GET", "edge:/api/health") == 4);
        T_CHECK(hfsb_sandbox_close(s, true, NULL) == HFSB_OK);
    }
    tc_again(&w);
    stage.message = "{\"stage\":\"BUILDING\"}";
    stage.status = 200;
    stage.times = 2;
    down.times = FH_ALWAYS;
    fh_fault(w.fake, &down);
    fh_fault(w.fake, &stage);
    stage.message = "{\"stage\":\"BUILD_ERROR\",\"errorMessage\":\"no\"}";
    stage.nth = 3;
    stage.times = FH_ALWAYS;
    fh_fault(w.fake, &stage);
    T_CHECK(fail_to_connect(&w, "alice/box", HFSB_REMOTE, &err) < 20000);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "is BUILD_ERROR: no. Check"));
    tc_close(&w);
}

static void open_sends_nothing(void) {
    tc_world           w;
    hfsb_sandbox      *s = NULL;
    hfsb_err           err = HFSB_INIT;
    hfsb_space_runtime runtime;
    tc_open_prompt(&w, FH_STUB);
    T_CHECK(hfsb_sandbox_open(HFSB_LIT("nobody"), false, &w.opts, &s, &err) ==
                HFSB_ARG &&
            !s);
    T_CHECK(hfsb_sandbox_open(HFSB_LIT(""), false, &w.opts, &s, &err) ==
                HFSB_ARG &&
            !s);
    fh_add_space(w.fake, "alice/box", 1, true);
    T_CHECK(hfsb_sandbox_open(HFSB_LIT("alice/box"), false, &w.opts, &s,
                              &err) == HFSB_OK);
    T_CHECK(fh_count(w.fake, NULL, NULL) == 0);
    T_CHECK(hfsb_sandbox_pause(s, &err) == HFSB_OK);
    T_CHECK(hfsb_sandbox_status(s, &runtime, &err) == HFSB_OK);
    T_CHECK(!strcmp(runtime.stage, "PAUSED"));
    T_CHECK(hfsb_sandbox_restart(s, false, &err) == HFSB_OK);
    T_CHECK(hfsb_sandbox_delete(s, &err) == HFSB_REFUSED);
    T_CHECK(hfsb_sandbox_close(s, true, NULL) == HFSB_OK);
    tc_close(&w);
}

/* ---- pause and restart ---- */

static void instance(tc_world *w, const char *id, size_t nth, size_t times) {
    fh_fault_spec f = HFSB_INIT;
    char          fields[64];
    snprintf(fields, sizeof fields, "X-Hfsb: 0.1.0; instance=%s", id);
    f.path = "edge:/api/health";
    f.nth = nth;
    f.times = times;
    f.status = 200;
    f.shape = FH_RAW;
    f.message = "{\"status\":\"ok\",\"version\":\"0.1.0\"}";
    f.fields = fields;
    fh_fault(w->fake, &f);
}

static void restart_waits_for_another_server(void) {
    tc_world           w;
    hfsb_sandbox      *s;
    hfsb_err           err = HFSB_INIT;
    hfsb_space_runtime runtime;
    tc_open_prompt(&w, FH_STUB);
    instance(&w, "old", 1, 4); /* at the beginning, and after the restart */
    instance(&w, "new", 5, FH_ALWAYS);
    s = tc_create(&w);
    T_CHECK(hfsb_sandbox_pause(s, &err) == HFSB_OK);
    T_CHECK(hfsb_sandbox_status(s, &runtime, &err) == HFSB_OK);
    T_CHECK(!strcmp(runtime.stage, "PAUSED"));
    T_CHECK(hfsb_sandbox_restart(s, false, &err) == HFSB_OK);
    T_CHECK(!strcmp(s->instance, "new"));
    T_CHECK(fh_count(w.fake, "GET", "edge:/api/health") == 5);
    /* one that never goes is better than none */
    s->o.times.api_wait_ms = 1500;
    T_CHECK(hfsb_sandbox_restart(s, true, &err) == HFSB_OK);
    T_CHECK(tc_logged(&w, "is the one that ran before"));
    fh_stages(w.fake, NULL, "BUILD_ERROR");
    fh_no_faults(w.fake);
    s->o.times.api_wait_ms = 20000;
    T_CHECK(hfsb_sandbox_restart(s, false, &err) == HFSB_REMOTE);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "is BUILD_ERROR"));
    tc_delete(s);
    tc_close(&w);
}

/* ---- orphans ---- */

static void dates_are_read(void) {
    static const struct {
        const char *text;
        bool        good;
        double      value;
    } rows[] = {
        {"1970-01-01T00:00:00Z", true, 0},
        {"1970-01-01T00:00:00.000Z", true, 0},
        {"2025-03-07T12:24:18Z", true, 1741350258},
        {"2025-03-07T12:24:18.5Z", true, 1741350258.5},
        {"2025-03-07T12:24:18.657Z", true, 1741350258.657},
        {"2025-03-07T12:24:18.123456789Z", true, 1741350258.123456789},
        {"2025-03-07T12:24:18.Z", true, 1741350258},
        {"2025-03-07T13:24:18+01:00", true, 1741350258},
        {"2025-03-07T06:54:18.000-0530", true, 1741350258},
        {"2024-02-29T00:00:00Z", true, 1709164800},
        {"2100-03-01T00:00:00Z", true, 4107542400.0},
        {"2025-03-07T12:24:18.1234567890Z", false, 0},
        {"2025-03-07T12:24:18", false, 0},
        {"2025-03-07 12:24:18Z", false, 0},
        {"2025-13-07T12:24:18Z", false, 0},
        {"2025-03-00T12:24:18Z", false, 0},
        {"2025-03-07T24:24:18Z", false, 0},
        {"2025-03-07T12:60:18Z", false, 0},
        {"2025-03-07T12:24:60Z", true, 1741350300}, /* a leap second */
        {"2025-03-07T12:24:61Z", false, 0},
        {"2025-03-07T12:24:18Zx", false, 0},
        {"2025-03-07T12:24:18+1:00", false, 0},
        {"25-03-07T12:24:18Z", false, 0},
        {"yesterday", false, 0},
        {"", false, 0},
    };
    size_t i;
    for (i = 0; i < TT_COUNT(rows); i++) {
        hfsb_str text = t_exact(rows[i].text, strlen(rows[i].text));
        double   value = 0, off;
        T_CHECK(hfsbi_date_parse(text, &value) == rows[i].good);
        off = value - rows[i].value;
        T_CHECK(!rows[i].good || (off > -1e-6 && off < 1e-6));
        t_drop(text);
    }
}

typedef struct swept {
    hfsb_buf text; /* "id removed status\n" */
    size_t   count, stop_at;
} swept;

static bool on_swept(void *user, const hfsb_sweep_item *item) {
    swept *s = (swept *)user;
    T_CHECK(item->message && item->days > 0 && item->modified.len > 10);
    T_CHECK((item->status == HFSB_OK) == !*item->message);
    T_CHECK(hfsb_buf_printf(&s->text, "%.*s %.0f %s%s\n", (int)item->id.len,
                            item->id.ptr, item->days,
                            item->removed ? "removed" : "kept",
                            item->status == HFSB_OK ? "" : " failed") ==
            HFSB_OK);
    return ++s->count != s->stop_at;
}

static void some_spaces(fh_hub *fake) {
    fh_add_space(fake, "alice/sandbox-00000001", 8, true);
    fh_add_space(fake, "alice/sandbox-00000002", 6, true);
    fh_add_space(fake, "alice/sandbox-0000abcd", 100, false);
    fh_add_space(fake, "alice/sandbox-0000ABCE", 100, true); /* not ours */
    fh_add_space(fake, "alice/sandbox-123", 100, true);
    fh_add_space(fake, "alice/sandbox-123456789", 100, true);
    fh_add_space(fake, "alice/my-sandbox-00000003", 100, true);
    fh_add_space(fake, "alice/work", 100, true);
    fh_add_space(fake, "acme/sandbox-00000004", 100, true);
    fh_add_space(fake, "alice/sandbox-00000005", 50, true);
}

static void sweep_reports_and_deletes(void) {
    tc_world        w;
    hfsb_sweep_opts opts = HFSB_INIT;
    hfsb_err        err = HFSB_INIT;
    swept           s = HFSB_INIT;
    const fh_record *r;
    tc_open_prompt(&w, FH_STUB);
    some_spaces(w.fake);
    T_CHECK(hfsb_sandbox_sweep(w.hub, NULL, on_swept, &s, &err) == HFSB_OK);
    T_STR(s.text, "alice/sandbox-00000001 8 kept\n"
                  "alice/sandbox-0000abcd 100 kept\n"
                  "alice/sandbox-00000005 50 kept\n");
    T_CHECK(fh_spaces(w.fake) == 10);
    T_CHECK(fh_count(w.fake, "DELETE", NULL) == 0);
    r = fh_nth(w.fake, 0, "GET", "/api/spaces");
    T_CHECK(r != NULL);
    if (r) T_STR(r->target, "/api/spaces?author=alice&full=true");
    hfsb_buf_truncate(&s.text, 0);
    opts.owner = HFSB_LIT("acme");
    opts.days = 0.5;
    T_CHECK(hfsb_sandbox_sweep(w.hub, &opts, on_swept, &s, &err) == HFSB_OK);
    T_STR(s.text, "acme/sandbox-00000004 100 kept\n");
    hfsb_buf_truncate(&s.text, 0);
    opts.owner = HFSB_LIT("");
    opts.days = 0;
    opts.remove = true;
    opts.max = 2;
    T_CHECK(hfsb_sandbox_sweep(w.hub, &opts, on_swept, &s, &err) == HFSB_OK);
    T_STR(s.text, "alice/sandbox-00000001 8 removed\n"
                  "alice/sandbox-0000abcd 100 removed\n"
                  "alice/sandbox-00000005 50 kept failed\n");
    T_CHECK(fh_spaces(w.fake) == 8);
    T_CHECK(fh_has(w.fake, "alice/sandbox-00000005") &&
            !fh_has(w.fake, "alice/sandbox-00000001"));
    hfsb_buf_free(&s.text);
    tc_close(&w);
}

static void sweep_continues_after_a_failure_and_can_be_stopped(void) {
    tc_world        w;
    hfsb_sweep_opts opts = HFSB_INIT;
    hfsb_err        err = HFSB_INIT;
    fh_fault_spec   bad = HFSB_INIT;
    swept           s = HFSB_INIT;
    tc_open_prompt(&w, FH_STUB);
    some_spaces(w.fake);
    opts.remove = true;
    opts.cancel = w.cancel;
    bad.method = "DELETE";
    bad.status = 403;
    fh_fault(w.fake, &bad);
    T_CHECK(hfsb_sandbox_sweep(w.hub, &opts, on_swept, &s, &err) == HFSB_OK);
    T_STR(s.text, "alice/sandbox-00000001 8 kept failed\n"
                  "alice/sandbox-0000abcd 100 removed\n"
                  "alice/sandbox-00000005 50 removed\n");
    hfsb_buf_truncate(&s.text, 0);
    opts.days = 1;
    s.count = 0;
    s.stop_at = 1; /* false from each ends it */
    T_CHECK(hfsb_sandbox_sweep(w.hub, &opts, on_swept, &s, &err) == HFSB_OK);
    T_STR(s.text, "alice/sandbox-00000001 8 removed\n");
    T_CHECK(fh_has(w.fake, "alice/sandbox-00000002"));
    T_CHECK(hfsb_sandbox_sweep(w.hub, &opts, NULL, NULL, &err) == HFSB_OK);
    T_CHECK(!fh_has(w.fake, "alice/sandbox-00000002"));
    opts.days = -1;
    T_CHECK(hfsb_sandbox_sweep(w.hub, &opts, NULL, NULL, &err) == HFSB_ARG);
    opts.days = 0;
    opts.owner = HFSB_LIT("acme");
    w.cancel_method = "DELETE";
    w.cancel_path = "/api/repos/delete";
    T_CHECK(hfsb_sandbox_sweep(w.hub, &opts, NULL, NULL, &err) ==
            HFSB_CANCELLED);
    T_CHECK(hfsb_sandbox_sweep(w.hub, &opts, NULL, NULL, &err) ==
            HFSB_CANCELLED);
    tc_no_secret(&w, &err);
    hfsb_buf_free(&s.text);
    tc_close(&w);
}

/* ---- memory ---- */

static tc_world memory_world;

static void connect_with(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    hfsb_status   st;
    memory_world.opts.alloc = alloc;
    st = hfsb_sandbox_connect(HFSB_LIT("alice/a.b"), true, &memory_world.opts,
                              &s, &err);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at));
    T_CHECK((st == HFSB_OK) == (s != NULL) && err.code == st);
    T_CHECK(hfsb_sandbox_close(s, false, &err) == HFSB_OK);
}

static void each_allocation_of_connect_fails(void) {
    tc_open_prompt(&memory_world, FH_STUB);
    fh_add_space(memory_world.fake, "alice/a.b", 1, true);
    t_each_allocation_fails(connect_with);
    memory_world.opts.space_url = HFSB_LIT(""); /* asks the Hub for it */
    t_each_allocation_fails(connect_with);
    tc_close(&memory_world);
}

static void keys_are_random(void) {
    unsigned char a[32], b[32];
    size_t        i, zero = 0;
    T_CHECK(hfsbi_random(a, sizeof a) && hfsbi_random(b, sizeof b));
    T_CHECK(memcmp(a, b, sizeof a) != 0);
    for (i = 0; i < sizeof a; i++) zero += a[i] == 0;
    T_CHECK(zero < 8);
    T_CHECK(hfsbi_random(a, 0));
}

/* ---- a name of one's own ---- */

static bool note_id(void *user, hfsb_str id, hfsb_str modified) {
    hfsb_buf *ids = (hfsb_buf *)user;
    T_CHECK(modified.len > 0);
    T_CHECK(hfsb_buf_append(ids, id) == HFSB_OK &&
            hfsb_buf_append_byte(ids, '\n') == HFSB_OK);
    return ids->max == 0;
}

static bool note_item(void *user, const hfsb_sweep_item *item) {
    return note_id(user, item->id, item->modified);
}

/* create marks a Space whose name is not "sandbox"; others are not taken for
   ours because of eight digits. */
static void list_finds_spaces_with_any_name(void) {
    static const char *const others[] = {
        "alice/mine-0123456",   "alice/mine-012345678", "alice/mine-0123abcX",
        "alice/-0123abcd",      "alice/mine_0123abcd",  "alice/photo-0123abcd",
        "bobby/sandbox-0123abcd"};
    tc_world        w;
    hfsb_sandbox   *made;
    hfsb_buf        ids = HFSB_INIT, want = HFSB_INIT;
    hfsb_sweep_opts sweep = HFSB_INIT;
    hfsb_err        err = HFSB_INIT;
    size_t          i;
    tc_open_prompt(&w, FH_STUB);
    for (i = 0; i < TT_COUNT(others); i++)
        if (hfsb_space_check(hfsb_cstr(others[i]), NULL) == HFSB_OK)
            fh_add_space(w.fake, others[i], 30, true);
    fh_add_space(w.fake, "alice/sandbox-0123abcd", 30, true);
    w.spec.name = HFSB_LIT("mine");
    made = tc_create(&w);
    T_CHECK(hfsb_sandbox_list(w.hub, HFSB_LIT(""), note_id, &ids, NULL,
                              &err) == HFSB_OK);
    T_CHECK(hfsb_buf_printf(&want, "alice/sandbox-0123abcd\n%s\n",
                            hfsb_sandbox_id(made).ptr) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&ids), hfsb_buf_str(&want)));
    /* what is sure by its name is not asked about */
    T_CHECK(fh_count(w.fake, "GET",
                     "/api/spaces/alice/sandbox-0123abcd/variables") == 0);
    T_CHECK(fh_count(w.fake, "GET",
                     "/api/spaces/alice/photo-0123abcd/variables") == 1);
    hfsb_buf_truncate(&ids, 0);
    ids.max = 100; /* ends after the first */
    T_CHECK(hfsb_sandbox_list(w.hub, HFSB_LIT("alice"), note_id, &ids, NULL,
                              NULL) == HFSB_OK);
    T_STR(ids, "alice/sandbox-0123abcd\n");
    ids.max = 0;
    hfsb_buf_truncate(&ids, 0);
    sweep.days = 1e-9; /* so that one just made is old enough */
    tt_sleep_ms(2);
    T_CHECK(hfsb_sandbox_sweep(w.hub, &sweep, note_item, &ids, &err) ==
            HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&ids), hfsb_buf_str(&want)));
    sweep.remove = true;
    hfsb_buf_truncate(&ids, 0);
    T_CHECK(hfsb_sandbox_sweep(w.hub, &sweep, note_item, &ids, &err) ==
            HFSB_OK);
    hfsb_buf_truncate(&ids, 0);
    T_CHECK(hfsb_sandbox_list(w.hub, HFSB_LIT(""), note_id, &ids, NULL,
                              &err) == HFSB_OK);
    T_STR(ids, "");
    tc_delete(made); /* gone already */
    hfsb_buf_free(&ids);
    hfsb_buf_free(&want);
    tc_close(&w);
}

/* A Space whose variables cannot be read is not taken for ours; a Hub that
   fails is a failure. */
static void list_reports_what_it_cannot_read(void) {
    tc_world      w;
    hfsb_buf      ids = HFSB_INIT;
    hfsb_err      err = HFSB_INIT;
    fh_fault_spec bad = HFSB_INIT;
    tc_open_prompt(&w, FH_STUB);
    fh_add_space(w.fake, "alice/mine-0123abcd", 30, true);
    bad.path = "/api/spaces/alice/mine-0123abcd/variables";
    bad.times = FH_ALWAYS;
    bad.status = 403;
    fh_fault(w.fake, &bad);
    T_CHECK(hfsb_sandbox_list(w.hub, HFSB_LIT(""), note_id, &ids, NULL,
                              &err) == HFSB_OK);
    T_STR(ids, "");
    tc_again(&w);
    bad.status = 500;
    fh_fault(w.fake, &bad);
    T_CHECK(hfsb_sandbox_list(w.hub, HFSB_LIT(""), note_id, &ids, NULL,
                              &err) == HFSB_REMOTE);
    T_CHECK(err.code == HFSB_REMOTE);
    hfsb_buf_free(&ids);
    tc_close(&w);
}

int main(void) {
    tt_begin();
    TT_RUN(delete_is_quiet_the_second_time);
    TT_RUN(delete_is_for_what_we_made);
    TT_RUN(delete_that_fails_can_be_tried_again);
    TT_RUN(addresses_are_understood);
    TT_RUN(a_url_is_no_space);
    TT_RUN(commands_in_a_space_begin_where_paths_do);
    TT_RUN(the_address_of_a_space_is_found);
    TT_RUN(connect_waits_and_gives_up);
    TT_RUN(connect_reports_a_refused_token_at_once);
    TT_RUN(hfsb_server_knows_its_token);
    TT_RUN(connect_reports_at_once_why_nobody_answers);
    TT_RUN(connect_reports_at_once_that_the_hub_refuses_the_token);
    TT_RUN(connect_url_waits_briefly_where_nobody_listens);
    TT_RUN(connect_waits_for_a_space_that_starts);
    TT_RUN(open_sends_nothing);
    TT_RUN(restart_waits_for_another_server);
    TT_RUN(dates_are_read);
    TT_RUN(sweep_reports_and_deletes);
    TT_RUN(sweep_continues_after_a_failure_and_can_be_stopped);
    TT_RUN(each_allocation_of_connect_fails);
    TT_RUN(keys_are_random);
    TT_RUN(list_finds_spaces_with_any_name);
    TT_RUN(list_reports_what_it_cannot_read);
    return TT_END();
}
