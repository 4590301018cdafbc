/* test_server_api.c - the endpoints of the sandbox over real sockets: the
   tools, what is refused and how, health and metrics. */
#include "../support/t_server.h"

static const hfsb_str no_body = HFSB_INIT;

/* ---- health and metrics ---- */

static void health_needs_no_token_and_says_more_with_one(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    char      instance[80];
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT("GET /api/health HTTP/1.1\r\n"
                                 "Host: localhost\r\n\r\n")));
    T_CHECK(ts_read(&c, &r, false));
    T_CHECK(r.status == 200);
    T_STR(r.body, "{\"status\":\"ok\"}");
    T_STR(ts_field(&r, "Content-Type"), "application/json");
    T_CHECK(hfsb_str_starts(ts_field(&r, "X-Hfsb"),
                            HFSB_LIT(HFSB_VERSION "; instance=")));
    snprintf(instance, sizeof instance, "%.*s",
             (int)ts_field(&r, "X-Hfsb").len, ts_field(&r, "X-Hfsb").ptr);
    ts_ask(&c, "GET", "/api/health", "", no_body);
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, "\"status\":\"ok\"");
    T_CHECK(hfsb_str_equal(ts_text(&r, "version"), HFSB_LIT(HFSB_VERSION)));
    T_CHECK(strstr(instance, "instance=") &&
            hfsb_str_equal(ts_text(&r, "instance"),
                           hfsb_cstr(strstr(instance, "instance=") + 9)));
    T_CHECK(ts_int(&r, "running") == 0 && ts_int(&r, "uptime_s") >= 0);
    T_STR(ts_text(&r, "confine"), "none");
    ts_ask(&c, "HEAD", "/api/health", "", no_body);
    T_CHECK(ts_read(&c, &r, true) && r.status == 200);
    ts_ask(&c, "POST", "/api/health", TS_JSON, HFSB_LIT("{}"));
    T_CHECK(ts_read(&c, &r, false));
    TS_REFUSED(&r, 405, "Method Not Allowed");
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

static void metrics_are_prometheus_text(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    size_t    i;
    static const char *const lines[] = {
        "# TYPE hfsb_requests_total counter\n",
        "\nhfsb_requests_total{class=\"2xx\"} ",
        "\nhfsb_requests_total{class=\"4xx\"} 1\n",
        "\nhfsb_connections ",
        "\nhfsb_commands_total 1\n",
        "\nhfsb_commands_running 0\n",
        "\nhfsb_commands_waiting 0\n",
        "\nhfsb_sent_bytes_total ",
        "\nhfsb_uptime_seconds ",
        "# HELP hfsb_connections ",
    };
    ts_start(&s, NULL, NULL);
    ts_post(&s, &r, "/api/bash", "{\"command\":\"echo x\"}");
    TS_OK(&r, "x\n");
    ts_get(&s, &r, "/api/nothing");
    TS_REFUSED(&r, 404, "Not Found");
    ts_get(&s, &r, "/api/metrics");
    TS_IS(&r, 200, NULL);
    T_STR(ts_field(&r, "Content-Type"), "text/plain; version=0.0.4");
    for (i = 0; i < TT_COUNT(lines); i++) {
        if (!ts_contains(&r, lines[i])) printf("missing: %s\n", lines[i]);
        T_CHECK(ts_contains(&r, lines[i]));
    }
    T_CHECK(r.body.len && r.body.ptr[r.body.len - 1] == '\n');
    {
        ts_conn c = ts_connect(&s);
        T_CHECK(ts_send(&c, HFSB_LIT("GET /api/metrics HTTP/1.1\r\n"
                                     "Host: localhost\r\n\r\n")));
        T_CHECK(ts_read(&c, &r, false));
        TS_REFUSED(&r, 401, "Missing bearer token");
        ts_hang_up(&c);
    }
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- the tools ---- */

static void the_tools_answer_as_in_process(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    ts_post(&s, &r, "/api/bash", "{\"command\":\"echo hi; echo no >&2\"}");
    TS_OK(&r, "hi\nno\n");
    T_CHECK(ts_int(&r, "exit_code") == 0 && ts_text(&r, "id").len);
    T_STR(ts_field(&r, "Content-Type"), "application/json");
    T_CHECK(!r.chunked);
    ts_post(&s, &r, "/api/bash", "{\"command\":\"exit 3\"}");
    TS_FAIL(&r, "Exit code 3");
    ts_post(&s, &r, "/api/write",
            "{\"path\":\"a.txt\",\"content\":\"one\\ntwo\\n\"}");
    TS_OK(&r, "Wrote 8 bytes to a.txt");
    ts_post(&s, &r, "/api/read", "{\"path\":\"a.txt\"}");
    TS_OK(&r, "1\tone\n2\ttwo");
    ts_post(&s, &r, "/api/edit",
            "{\"path\":\"a.txt\",\"old_str\":\"two\",\"new_str\":\"2\"}");
    TS_OK(&r, "Edited a.txt (1 replacement)");
    TT_FILE("a.txt", "one\n2\n");
    ts_post(&s, &r, "/api/multi_edit",
            "{\"path\":\"a.txt\",\"edits\":[{\"old_str\":\"one\","
            "\"new_str\":\"1\"}]}");
    TS_OK(&r, NULL);
    TT_FILE("a.txt", "1\n2\n");
    ts_post(&s, &r, "/api/apply_patch",
            "{\"patch\":\"*** Begin Patch\\n*** Add File: b.txt\\n+b\\n"
            "*** End Patch\"}");
    TS_OK(&r, NULL);
    TT_FILE("b.txt", "b\n");
    ts_post(&s, &r, "/api/glob", "{\"pattern\":\"[b].txt\"}");
    TS_OK(&r, "b.txt");
    ts_post(&s, &r, "/api/grep", "{\"pattern\":\"2\",\"path\":\"a.txt\"}");
    TS_OK(&r, "a.txt:2:2");
    T_CHECK(ts_int(&r, "count") == 1);
    ts_post(&s, &r, "/api/list", "{\"path\":\"b.txt\"}");
    TS_OK(&r, "b.txt");
    ts_post(&s, &r, "/api/list", "{\"path\":\"b.txt\",\"details\":true}");
    T_CHECK(ts_flag(&r, "success") && ts_contains(&r, "file 2 "));
    ts_post(&s, &r, "/api/exists", "{\"path\":\"b.txt\"}");
    TS_OK(&r, "true");
    ts_post(&s, &r, "/api/exists", "{\"path\":\"c.txt\"}");
    TS_OK(&r, "false");
    ts_post(&s, &r, "/api/read", "{\"path\":\"c.txt\"}");
    TS_FAIL(&r, "File not found: c.txt");
    ts_post(&s, &r, "/api/edit",
            "{\"path\":\"a.txt\",\"old_str\":\"9\",\"new_str\":\"8\"}");
    TS_FAIL(&r, "old_str not found in file.");
    ts_post(&s, &r, "/api/kill", "{}");
    TS_OK(&r, "Killed 0 process(es): []");
    ts_post(&s, &r, "/api/read", "{\"path\":\"a.txt\",\"colour\":1}");
    T_CHECK(ts_flag(&r, "success") && ts_contains(&r, "unknown key ignored"));
    ts_drop(&r);
    ts_end(&s, false);
}

static void kill_needs_no_body_and_ends_what_runs(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT, k = HFSB_INIT;
    char      want[80];
    ts_start(&s, NULL, NULL);
    ts_call(&s, &k, "POST", "/api/kill", "", no_body);
    TS_OK(&k, "Killed 0 process(es): []");
    ts_call(&s, &k, "POST", "/api/kill", "", HFSB_LIT(""));
    TS_OK(&k, "Killed 0 process(es): []");
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/bash", TS_JSON,
           HFSB_LIT("{\"command\":\"echo out; echo >> up; sleep 60\"}"));
    T_CHECK(ts_lines("up", 1));
    ts_call(&s, &k, "POST", "/api/kill", "", no_body);
    T_CHECK(ts_read(&c, &r, false));
    TS_FAIL(&r, "Exit code -15");
    T_CHECK(hfsb_str_equal(ts_text(&r, "output"), HFSB_LIT("out\n")));
    snprintf(want, sizeof want, "Killed 1 process(es): [%lld]",
             ts_int(&r, "pid"));
    TS_OK(&k, want);
    ts_hang_up(&c);
    ts_drop(&r);
    ts_drop(&k);
    ts_end(&s, false);
}

static void a_timeout_returns_what_was_printed(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    long long begin;
    char      body[80], error[40];
    int       seconds = 1; /* more, if a busy machine printed nothing by then */
    ts_start(&s, NULL, NULL);
    do {
        snprintf(body, sizeof body,
                 "{\"command\":\"echo part; sleep 60\",\"timeout\":%d}",
                 seconds);
        snprintf(error, sizeof error, "Timeout after %ds", seconds);
        begin = hfsb_clock_ms();
        ts_post(&s, &r, "/api/bash", body);
        TS_FAIL(&r, error);
        T_CHECK(ts_flag(&r, "timed_out") && hfsb_clock_ms() - begin < 45000);
        seconds *= 3;
    } while (!ts_text(&r, "output").len && seconds < 20);
    T_CHECK(hfsb_str_equal(ts_text(&r, "output"), HFSB_LIT("part\n")));
    ts_drop(&r);
    ts_end(&s, false);
}

static void large_bodies_go_through_threads(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    hfsb_buf  body = HFSB_INIT, want = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    tt_fill(&body, "{\"path\":\"big.txt\",\"content\":\"", 1);
    tt_fill(&body, "0123456789\\n", 500000);
    tt_fill(&body, "\"}", 1);
    tt_fill(&want, "0123456789\n", 500000);
    ts_call(&s, &r, "POST", "/api/write", TS_JSON, hfsb_buf_str(&body));
    TS_OK(&r, "Wrote 5500000 bytes to big.txt");
    T_CHECK(tt_file_is("big.txt", hfsb_buf_str(&want)));
    hfsb_buf_truncate(&body, 0);
    tt_fill(&body, "{\"command\":\"", 1);
    tt_fill(&body, ": 0123456789\\n", 20000);
    tt_fill(&body, "echo done\"}", 1);
    ts_call(&s, &r, "POST", "/api/bash", TS_JSON, hfsb_buf_str(&body));
    TS_OK(&r, "done\n");
    hfsb_buf_free(&body);
    hfsb_buf_free(&want);
    ts_drop(&r);
    ts_end(&s, false);
}

static void requests_after_a_long_command_wait_their_turn(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/bash", TS_JSON,
           HFSB_LIT("{\"command\":\"sleep 0.5; echo first\"}"));
    ts_ask(&c, "POST", "/api/exists", TS_JSON, HFSB_LIT("{\"path\":\".\"}"));
    ts_ask(&c, "GET", "/api/health", "", no_body);
    T_CHECK(ts_read(&c, &r, false));
    TS_OK(&r, "first\n");
    T_CHECK(ts_read(&c, &r, false));
    TS_OK(&r, "true");
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, "\"status\":\"ok\"");
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- refusals ---- */

static void bodies_that_are_no_arguments_are_refused(void) {
    static const struct {
        const char *target, *fields, *body;
        int         status;
        const char *part;
    } cases[] = {
        {"/api/bash", "", "{\"command\":\"x\"}", 415, "application/json"},
        {"/api/kill", "", "{}", 415, "application/json"},
        {"/api/bash", "Content-Type: text/plain\r\n", "{\"command\":\"x\"}",
         415, NULL},
        {"/api/bash", "Content-Type: application/jsonx\r\n", "{}", 415, NULL},
        {"/api/bash", "Content-Type: application/x-www-form-urlencoded\r\n",
         "a=b", 415, NULL},
        {"/api/bash", TS_JSON TS_JSON, "{}", 415, NULL},
        {"/api/bash", TS_JSON, "", 422,
         "{\"type\":\"missing\",\"loc\":[\"body\"],\"msg\":\"Field "
         "required\",\"input\":null}"},
        {"/api/read", "", "", 422, "\"loc\":[\"body\"]"},
        {"/api/bash", TS_JSON, "{", 400, "not JSON"},
        {"/api/bash", TS_JSON, "hello", 400, "not JSON"},
        {"/api/bash", TS_JSON, "{\"command\":\"\xff\"}", 400, "not JSON"},
        {"/api/read", TS_JSON, "{} {}", 400, "not JSON"},
        {"/api/read", TS_JSON, " ", 400, "not JSON"},
        {"/api/read", TS_JSON, "[]", 422,
         "{\"type\":\"model_attributes_type\",\"loc\":[\"body\"]"},
        {"/api/bash", TS_JSON, "null", 422, "model_attributes_type"},
        {"/api/kill", TS_JSON, "3", 422, "model_attributes_type"},
        {"/api/bash", TS_JSON, "{}", 422,
         "{\"type\":\"missing\",\"loc\":[\"body\",\"command\"],\"msg\":"
         "\"Field required\",\"input\":{}}"},
        {"/api/bash", TS_JSON, "{\"command\":5}", 422,
         "{\"type\":\"string_type\",\"loc\":[\"body\",\"command\"],\"msg\":"
         "\"Input should be a valid string\",\"input\":5}"},
        {"/api/bash", TS_JSON, "{\"command\":\"a\",\"command\":\"b\"}", 422,
         "\"loc\":[\"body\",\"command\"]"},
        {"/api/bash", TS_JSON,
         "{\"command\":\"a\",\"env\":{\"A\":\"1\",\"A\":\"2\"}}", 422,
         "found \\\"A\\\" again"},
        {"/api/bash", TS_JSON, "{\"command\":\"a\",\"stream\":\"maybe\"}", 422,
         "\"loc\":[\"body\",\"stream\"]"},
        {"/api/bash", TS_JSON, "{\"command\":\"a\",\"on_disconnect\":\"x\"}",
         422, "\"type\":\"literal_error\""},
        {"/api/bash", TS_JSON "Idempotency-Key: \r\n", "{\"command\":\"a\"}",
         400, "Idempotency-Key"},
        {"/api/bash", TS_JSON "Idempotency-Key: a\r\nIdempotency-Key: b\r\n",
         "{\"command\":\"a\"}", 400, "Idempotency-Key"},
        {"/api/nothing", TS_JSON, "{}", 404, "Not Found"},
    };
    ts_server s;
    ts_reply  r = HFSB_INIT;
    size_t    i;
    ts_start(&s, NULL, NULL);
    for (i = 0; i < TT_COUNT(cases); i++) {
        ts_call(&s, &r, "POST", cases[i].target, cases[i].fields,
                hfsb_cstr(cases[i].body));
        if (r.status != cases[i].status)
            printf("case %zu: %s\n", i, cases[i].body);
        TS_REFUSED(&r, cases[i].status, cases[i].part);
        T_STR(ts_field(&r, "Content-Type"), "application/json");
        T_CHECK(ts_field(&r, "X-Hfsb").len > 0);
    }
    ts_drop(&r);
    ts_end(&s, false);
}

static void json_goes_by_many_content_types(void) {
    static const char *const types[] = {
        "application/json", "APPLICATION/JSON", "application/json;charset=x",
        "application/json ; charset=utf-8", "application/vnd.api+json",
        "text/x+JSON; q=1",
    };
    ts_server s;
    ts_reply  r = HFSB_INIT;
    char      field[120];
    size_t    i;
    ts_start(&s, NULL, NULL);
    for (i = 0; i < TT_COUNT(types); i++) {
        snprintf(field, sizeof field, "Content-Type: %s\r\n", types[i]);
        ts_call(&s, &r, "POST", "/api/exists", field,
                HFSB_LIT("{\"path\":\".\"}"));
        TS_OK(&r, "true");
    }
    ts_drop(&r);
    ts_end(&s, false);
}

static void a_key_that_is_too_long_is_refused(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    hfsb_buf  fields = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    tt_fill(&fields, TS_JSON "Idempotency-Key: ", 1);
    tt_fill(&fields, "k", 255);
    tt_fill(&fields, "\r\n", 1);
    ts_call(&s, &r, "POST", "/api/bash", fields.ptr,
            HFSB_LIT("{\"command\":\"echo x\"}"));
    TS_OK(&r, "x\n");
    hfsb_buf_truncate(&fields, fields.len - 2);
    tt_fill(&fields, "k\r\n", 1);
    ts_call(&s, &r, "POST", "/api/bash", fields.ptr,
            HFSB_LIT("{\"command\":\"echo x\"}"));
    TS_REFUSED(&r, 400, "255");
    hfsb_buf_free(&fields);
    ts_drop(&r);
    ts_end(&s, false);
}

static void too_many_commands_are_refused_for_now(void) {
    hfsb_tools_opts   tools = HFSB_INIT;
    hfsb_server_sandbox_opts box = HFSB_INIT;
    ts_server         s;
    ts_conn           c[2];
    ts_reply          r = HFSB_INIT;
    tools.max_running = tools.max_waiting = 1;
    box.tools = &tools;
    ts_start(&s, NULL, &box);
    c[0] = ts_connect(&s);
    ts_ask(&c[0], "POST", "/api/bash", TS_JSON,
           HFSB_LIT("{\"command\":\"sleep 60\"}"));
    T_CHECK(ts_commands(&s, 1, 0));
    c[1] = ts_connect(&s);
    ts_ask(&c[1], "POST", "/api/bash", TS_JSON,
           HFSB_LIT("{\"command\":\"sleep 60\"}"));
    T_CHECK(ts_commands(&s, 1, 1));
    ts_post(&s, &r, "/api/bash", "{\"command\":\"echo\"}");
    TS_REFUSED(&r, 429, "Too many commands");
    T_STR(ts_field(&r, "Retry-After"), "1");
    ts_call(&s, &r, "POST", "/api/kill", "", no_body);
    TS_IS(&r, 200, "Killed 1");
    T_CHECK(ts_read(&c[1], &r, false));
    TS_FAIL(&r, "Killed before it was started");
    ts_hang_up(&c[0]);
    ts_hang_up(&c[1]);
    ts_drop(&r);
    ts_end(&s, false);
}

/* Bytes that commands hold as their standard input count as bodies do. */
static void stdin_counts_as_bodies_do(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    ts_reply         r = HFSB_INIT;
    hfsb_buf         body = HFSB_INIT;
    size_t           i;
    o.max_bodies = 1000000;
    ts_start(&s, &o, NULL);
    T_CHECK(hfsb_buf_append(&body, HFSB_LIT("{\"command\":\"exec sleep 300\","
                                            "\"background\":true,\"stdin\":"
                                            "\"")) == HFSB_OK);
    for (i = 0; i < 40000; i++)
        if (hfsb_buf_append(&body, HFSB_LIT("0123456789")) != HFSB_OK) abort();
    T_CHECK(hfsb_buf_append(&body, HFSB_LIT("\"}")) == HFSB_OK);
    for (i = 0; i < 2; i++) {
        ts_post(&s, &r, "/api/bash", body.ptr);
        TS_IS(&r, 200, "Started");
    }
    T_CHECK(s.server->group.input == 800000);
    ts_post(&s, &r, "/api/bash", body.ptr); /* has no room itself */
    TS_REFUSED(&r, 503, "There is no memory for this body now");
    ts_post(&s, &r, "/api/kill", "{}");
    TS_IS(&r, 200, "Killed 2 process(es)");
    T_CHECK(s.server->group.input == 0);
    ts_post(&s, &r, "/api/bash", body.ptr);
    TS_IS(&r, 200, "Started");
    s.server->group.max_input = 700000; /* a body fits, its stdin does not */
    ts_post(&s, &r, "/api/bash", body.ptr);
    TS_REFUSED(&r, 429, "There is no memory for this stdin now");
    ts_post(&s, &r, "/api/bash",
            "{\"command\":\"cat\",\"stdin\":\"small\"}");
    TS_OK(&r, "small");
    ts_drop(&r);
    hfsb_buf_free(&body);
    ts_end(&s, false);
}

/* A tree takes many times the bytes of its text. */
static void arguments_have_a_number_of_values(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    hfsb_buf  body = HFSB_INIT;
    size_t    i;
    ts_start(&s, NULL, NULL);
    T_CHECK(hfsb_buf_append(&body, HFSB_LIT("{\"path\":[0")) == HFSB_OK);
    for (i = 0; i < 300000; i++)
        if (hfsb_buf_append(&body, HFSB_LIT(",0")) != HFSB_OK) abort();
    T_CHECK(hfsb_buf_append(&body, HFSB_LIT("]}")) == HFSB_OK);
    ts_post(&s, &r, "/api/read", body.ptr);
    TS_REFUSED(&r, 400, "at most 200000 values");
    ts_drop(&r);
    hfsb_buf_free(&body);
    ts_end(&s, false);
}

static void the_sandbox_is_added_once(void) {
    ts_server         s;
    hfsb_err          err = HFSB_INIT;
    hfsb_tools_opts   tools = HFSB_INIT;
    hfsb_server_sandbox_opts box = HFSB_INIT;
    ts_open(&s, NULL);
    tools.work_dir = HFSB_LIT("/nowhere/at/all");
    box.tools = &tools;
    T_CHECK(hfsb_server_add_sandbox(s.server, &box, &err) == HFSB_NOT_FOUND);
    T_CHECK(err.msg[0]);
    T_CHECK(hfsb_server_add_sandbox(s.server, NULL, NULL) == HFSB_OK);
    T_CHECK(hfsb_server_add_sandbox(s.server, NULL, &err) == HFSB_ARG);
    ts_end(&s, false);
}

static void a_stop_ends_commands_and_loses_no_reply(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    long long begin;
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/bash", TS_JSON,
           HFSB_LIT("{\"command\":\"echo begun; echo >> on; sleep 60\"}"));
    T_CHECK(ts_lines("on", 1));
    begin = hfsb_clock_ms();
    hfsb_server_stop(s.server);
    T_CHECK(ts_read(&c, &r, false));
    TS_FAIL(&r, "Exit code -15");
    T_CHECK(hfsb_str_equal(ts_text(&r, "output"), HFSB_LIT("begun\n")));
    pthread_join(s.thread, NULL);
    T_CHECK(hfsb_clock_ms() - begin < 45000);
    hfsb_server_close(s.server);
    ts_hang_up(&c);
    ts_drop(&r);
}

static void the_work_of_threads_is_waited_for(void) {
    ts_server s;
    ts_conn   c[8];
    size_t    i;
    hfsb_buf  body = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    tt_fill(&body, "{\"path\":\"left.txt\",\"content\":\"", 1);
    tt_fill(&body, "0123456789\\n", 200000);
    tt_fill(&body, "\"}", 1);
    for (i = 0; i < 8; i++) {
        c[i] = ts_connect(&s);
        ts_ask(&c[i], "POST", "/api/write", TS_JSON, hfsb_buf_str(&body));
        ts_reset(&c[i]); /* gone while a thread writes, or before */
    }
    ts_end(&s, true);
    hfsb_buf_free(&body);
}

/* The one thread searches a file without an end: it is free for the next call
   once the client is gone, and the server stops without waiting for it. */
static void a_search_ends_with_its_client_and_with_the_server(void) {
    static const char search[] = "{\"pattern\":\"none\",\"path\":\"huge\"}";
    hfsb_server_opts  o = HFSB_INIT;
    ts_server         s;
    ts_conn           c;
    ts_reply          r = HFSB_INIT;
    long long         begin = hfsb_clock_ms();
    o.max_threads = 1;
    o.stop_ms = 60000;
    ts_start(&s, &o, NULL);
    tt_put_huge("huge");
    tt_put("small", HFSB_LIT("some words\n"));
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/grep", TS_JSON, hfsb_cstr(search));
    tt_sleep_ms(100); /* the thread is at it */
    ts_reset(&c);
    ts_call(&s, &r, "POST", "/api/read", TS_JSON,
            HFSB_LIT("{\"path\":\"small\"}"));
    TS_OK(&r, "1\tsome words");
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/grep", TS_JSON, hfsb_cstr(search));
    tt_sleep_ms(100);
    hfsb_server_stop(s.server);
    pthread_join(s.thread, NULL);
    hfsb_server_close(s.server);
    T_CHECK(hfsb_clock_ms() - begin < 45000);
    ts_hang_up(&c);
    ts_drop(&r);
    unlink("huge");
}

int main(void) {
    tt_begin();
    TT_RUN(health_needs_no_token_and_says_more_with_one);
    TT_RUN(metrics_are_prometheus_text);
    TT_RUN(the_tools_answer_as_in_process);
    TT_RUN(kill_needs_no_body_and_ends_what_runs);
    TT_RUN(a_timeout_returns_what_was_printed);
    TT_RUN(large_bodies_go_through_threads);
    TT_RUN(requests_after_a_long_command_wait_their_turn);
    TT_RUN(bodies_that_are_no_arguments_are_refused);
    TT_RUN(json_goes_by_many_content_types);
    TT_RUN(a_key_that_is_too_long_is_refused);
    TT_RUN(too_many_commands_are_refused_for_now);
    TT_RUN(stdin_counts_as_bodies_do);
    TT_RUN(arguments_have_a_number_of_values);
    TT_RUN(the_sandbox_is_added_once);
    TT_RUN(a_stop_ends_commands_and_loses_no_reply);
    TT_RUN(the_work_of_threads_is_waited_for);
    TT_RUN(a_search_ends_with_its_client_and_with_the_server);
    return TT_END();
}
