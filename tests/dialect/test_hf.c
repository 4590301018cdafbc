/* test_hf.c - the sandbox API of Hugging Face (/v1) over real connections:
   what its clients need, to the letter where they are strict. */
#include "../support/t_hf.h"

/* ---- health and tokens ---- */

static void health_turns_to_503_when_a_drain_begins(void) {
    hfsb_server_opts         o = HFSB_INIT;
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_dialect_opts        d = HFSB_INIT, e = HFSB_INIT;
    ts_reply                 r = HFSB_INIT;
    unsigned                 hf = 0, e2b = 0;
    int                      i;
    o.drain_ms = 30000; /* the second stop ends it */
    ts_open(&srv, &o);
    d.name = "hf";
    e.name = "e2b";
    d.own_port = e.own_port = true;
    T_CHECK(hfsb_server_add_sandbox(srv.server, &box, NULL) == HFSB_OK);
    T_CHECK(hfsb_server_add_dialect(srv.server, &d, &hf, NULL) == HFSB_OK);
    T_CHECK(hfsb_server_add_dialect(srv.server, &e, &e2b, NULL) == HFSB_OK);
    ts_run(&srv);
    srv.port = e2b;
    ts_call(&srv, &r, "GET", "/health", "", nothing);
    T_CHECK(r.status == 204);
    hfsb_server_stop(srv.server);
    srv.port = hf;
    for (i = 0; i < 1000 && r.status != 503; i++) {
        ts_call(&srv, &r, "GET", "/health", "", nothing);
        usleep(1000);
    }
    T_CHECK(r.status == 503);
    srv.port = e2b;
    ts_call(&srv, &r, "GET", "/health", "", nothing);
    T_CHECK(r.status == 503);
    ts_drop(&r);
    ts_end(&srv, false);
}

static void health_shows_the_protocol_to_everyone(void) {
    ts_reply r = HFSB_INIT;
    ts_call(&srv, &r, "GET", "/health", "", nothing);
    TS_IS(&r, 200, NULL);
    T_CHECK(ts_int(&r, "protocol") == 3);
    T_STR(ts_text(&r, "status"), "ok");
    T_CHECK(hfsb_json_count(r.json.root) == 2);
    ts_call(&srv, &r, "GET", "/health", HF_TOKEN, nothing);
    TS_IS(&r, 200, NULL);
    T_STR(ts_text(&r, "mode"), "dedicated");
    T_CHECK(ts_int(&r, "protocol") == 3 && ts_int(&r, "uptime_ms") >= 0);
    T_CHECK(hfsb_json_get(r.json.root, "version") != NULL);
    ts_drop(&r);
}

static void requests_need_the_token(void) {
    static const char *const fields[] = {
        "", "X-Sandbox-Token: \r\n", "X-Sandbox-Token: wrong\r\n",
        "X-Sandbox-Token: " TS_TOKEN "x\r\n",
        "X-Sandbox-Token: A-TOKEN-OF-THE-TESTS\r\n", HF_TOKEN HF_TOKEN,
        "Authorization: Bearer " TS_TOKEN "\r\n"};
    static const char *const routes[][2] = {
        {"POST", "/v1/exec"},         {"POST", "/v1/processes"},
        {"GET", "/v1/processes"},     {"DELETE", "/v1/processes/p-0"},
        {"GET", "/v1/files/read"},    {"PUT", "/v1/files/write"},
        {"GET", "/v1/files/list"},    {"GET", "/v1/files/stat"},
        {"POST", "/v1/files/mkdir"},  {"DELETE", "/v1/files/delete"},
        {"GET", "/v1/proxy/8000/x"},  {"POST", "/v1/proxy/8000"}};
    ts_reply r = HFSB_INIT;
    size_t   i, k;
    for (i = 0; i < TT_COUNT(routes); i++)
        for (k = 0; k < TT_COUNT(fields); k++) {
            ts_call(&srv, &r, routes[i][0], routes[i][1], fields[k], nothing);
            TS_IS(&r, 403, "{\"error\":");
            T_CHECK(hfsb_json_count(r.json.root) == 1);
        }
    ts_drop(&r);
}

static int status_at(const char *line, const char *fields) {
    hfsb_buf raw = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    ts_conn  c = ts_connect(&srv);
    int      status;
    T_CHECK(hfsb_buf_printf(&raw, "%s HTTP/1.1\r\n%s\r\n", line, fields) ==
            HFSB_OK);
    T_CHECK(ts_send(&c, hfsb_buf_str(&raw)) && ts_read(&c, &r, false));
    status = r.status;
    ts_hang_up(&c);
    ts_drop(&r);
    hfsb_buf_free(&raw);
    return status;
}

/* A page whose name leads here by DNS rebinding. With a token any name will
   do: that of a Space, or of a proxy. */
static void without_a_token_the_host_must_be_ours(void) {
    static const char *const lines[] = {
        "GET /v1/files/list?path=/", "POST /v1/exec"};
    hfsb_server_opts open = HFSB_INIT;
    size_t           i;
    open.no_auth = true;
    start_at(&open, "", NULL, NULL);
    for (i = 0; i < TT_COUNT(lines); i++) {
        T_CHECK(status_at(lines[i], "Host: evil.example:1\r\n") == 421);
        T_CHECK(status_at(lines[i], "Host: evil.example:1\r\n"
                                    "Origin: http://evil.example:1\r\n") ==
                421);
    }
    T_CHECK(status_at(lines[0], "Host: localhost\r\n") == 200);
    finish();
    for (i = 0; i < 2; i++) {
        start_at(i ? &open : NULL, i ? TS_TOKEN : "", NULL, NULL);
        T_CHECK(status_at(lines[0], "Host: job.example\r\n" HF_TOKEN) == 200);
        T_CHECK(status_at(lines[0], "Host: job.example\r\n") == 403);
        finish();
    }
}

static void errors_have_one_form(void) {
    static const struct {
        const char *method, *target;
        int         status;
    } cases[] = {{"GET", "/v1/none", 404},
                 {"GET", "/v1/exec", 404},
                 {"POST", "/v1/sandboxes", 404},
                 {"GET", "/v1/sandboxes/x/processes", 404},
                 {"GET", "/v1/files/read", 400},
                 {"GET", "/v1/files/read?path=", 400},
                 {"GET", "/v1/files/read?path=none", 404},
                 {"GET", "/v1/files/read?path=.", 409},
                 {"GET", "/v1/files/read?path=%zz", 400},
                 {"GET", "/v1/proxy/0/", 404},
                 {"GET", "/v1/proxy/65536/", 404},
                 {"GET", "/v1/proxy/x/", 404},
                 {"GET", "/v1/proxy/1/", 502},
                 {"DELETE", "/v1/processes/what", 400}};
    ts_reply r = HFSB_INIT;
    size_t   i;
    for (i = 0; i < TT_COUNT(cases); i++) {
        call(&r, cases[i].method, cases[i].target, NULL);
        TS_IS(&r, cases[i].status, "{\"error\":\"");
        T_STR(ts_field(&r, "Content-Type"), "application/json");
    }
    ts_drop(&r);
}

/* ---- commands ---- */

static void commands_report_output_and_exit(void) {
    static const struct {
        const char *body, *out, *err;
        int         code, signal; /* code -1: none */
    } cases[] = {
        {"{\"cmd\":\"echo hi; echo no >&2; exit 3\"}", "hi\n", "no\n", 3, 0},
        {"{\"cmd\":[\"printf\",\"%s|\",\"a b\",\"$HOME\"]}", "a b|$HOME|", "",
         0, 0},
        {"{\"cmd\":\"\"}", "", "", 0, 0},
        {"{\"cmd\":\"kill -9 $$\"}", "", "", -1, 9},
        {"{\"cmd\":\"kill -15 $$\",\"shell\":true}", "", "", -1, 15},
        {"{\"cmd\":[\"true\"],\"shell\":false}", "", "", 0, 0},
        {"{\"cmd\":\"cat\",\"stdin\":\"one\\ntwo\"}", "one\ntwo", "", 0, 0},
        {"{\"cmd\":\"cat; echo $?\"}", "0\n", "", 0, 0},
        {"{\"cmd\":\"head -c 1\",\"stdin\":\"abc\"}", "a", "", 0, 0},
        {"{\"cmd\":\"echo $A$B$C$D\",\"env\":{\"A\":\"x\",\"B\":7,"
         "\"C\":true,\"D\":1.5}}",
         "x7true1.5\n", "", 0, 0},
        {"{\"cmd\":\"pwd\",\"cwd\":\"/\"}", "/\n", "", 0, 0},
        {"{\"cmd\":\"basename $PWD\",\"cwd\":\"sub\"}", "sub\n", "", 0, 0},
        {"{\"cmd\":\"echo x\",\"unknown\":1,\"tag\":7,\"env\":[],"
         "\"timeout\":\"a\",\"stdin\":4,\"cwd\":null}",
         "x\n", "", 0, 0},
        {"{\"cmd\":\"sleep 20 & echo hi\"}", "hi\n", "", 0, 0},
        {"{\"cmd\":\"echo ${SANDBOX_API_TOKEN-none}\"}", "none\n", "", 0, 0},
        {"{\"cmd\":\"printf 'a\\\\0b'\"}", NULL, "", 0, 0}};
    hf_run    x = HFSB_INIT;
    size_t    i;
    long long began;
    (void)mkdir("sub", 0755);
    for (i = 0; i < TT_COUNT(cases); i++) {
        began = hfsb_clock_ms();
        run(&x, cases[i].body);
        T_CHECK(hfsb_clock_ms() - began < 18000);
        if (cases[i].out)
            T_CHECK(hfsb_str_equal(hfsb_buf_str(&x.out),
                                   hfsb_cstr(cases[i].out)));
        T_CHECK(
            hfsb_str_equal(hfsb_buf_str(&x.err), hfsb_cstr(cases[i].err)));
        T_CHECK(x.has_code == (cases[i].code >= 0) &&
                (!x.has_code || x.code == cases[i].code) &&
                x.signal == cases[i].signal && !x.timed_out);
    }
    T_CHECK(x.out.len == 3 && !memcmp(x.out.ptr, "a\0b", 3));
    drop_run(&x);
}

static void what_cannot_run_is_refused_before_the_stream(void) {
    static const char *const bodies[] = {
        "null", "[]", "{}", "nonsense", "", "{\"cmd\":7}", "{\"cmd\":[]}",
        "{\"cmd\":[1]}", "{\"cmd\":[\"\"]}", "{\"cmd\":[\"/no/such\"]}",
        "{\"cmd\":[\"no-such-program\"]}", "{\"cmd\":\"x\",\"shell\":false}",
        "{\"cmd\":[\"ls\"],\"shell\":true}", "{\"cmd\":\"a\\u0000b\"}",
        "{\"cmd\":\"ls\",\"cwd\":\"/no/such\"}",
        "{\"cmd\":\"ls\",\"env\":{\"\":\"x\"}}",
        "{\"cmd\":\"ls\",\"env\":{\"A=B\":\"x\"}}",
        "{\"cmd\":\"ls\",\"env\":{\"A\":\"\\u0000\"}}"};
    ts_reply r = HFSB_INIT;
    size_t   i, way;
    for (way = 0; way < 2; way++)
        for (i = 0; i < TT_COUNT(bodies); i++) {
            call(&r, "POST", way ? "/v1/processes" : "/v1/exec", bodies[i]);
            TS_IS(&r, 400, "{\"error\":\"");
        }
    call(&r, "GET", "/v1/processes", NULL);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.body), HFSB_LIT("[]")));
    ts_drop(&r);
}

/* Characters arrive byte by byte, and none is broken; what is none becomes
   U+FFFD; those that end lines for some clients are escaped. */
static void output_is_text_on_one_line(void) {
    hf_run x = HFSB_INIT;
    size_t i;
    run(&x, "{\"cmd\":\"for b in 342 202 254 360 237 230 200; do printf "
            "\\\\\\\\$b; sleep 0.05; done\"}");
    T_STR(hfsb_buf_str(&x.out), "\xE2\x82\xAC\xF0\x9F\x98\x80");
    run(&x, "{\"cmd\":\"printf 'a\\\\377b\\\\342\\\\202'\"}");
    T_STR(hfsb_buf_str(&x.out), "a\xEF\xBF\xBD" "b\xEF\xBF\xBD");
    run(&x, "{\"cmd\":\"printf 'a\\\\302\\\\205b\\\\342\\\\200\\\\250c"
            "\\\\342\\\\200\\\\251d\\\\342\\\\200\\\\247e\\\\302\\\\206'\"}");
    T_STR(hfsb_buf_str(&x.out), "a\xC2\x85" "b\xE2\x80\xA8" "c\xE2\x80\xA9"
                                "d\xE2\x80\xA7" "e\xC2\x86");
    T_CHECK(ts_contains(&x.reply, "a\\u0085b\\u2028c\\u2029d"));
    for (i = 0; i + 1 < x.reply.body.len; i++)
        T_CHECK(memcmp(x.reply.body.ptr + i, "\xC2\x85", 2) != 0);
    run(&x, "{\"cmd\":\"i=0; while [ $i -lt 20000 ]; do printf "
            "'\\\\342\\\\202\\\\254'; i=$((i+1)); done\"}");
    T_CHECK(x.out.len == 60000 && hfsb_utf8_validate(hfsb_buf_str(&x.out)) ==
                                      x.out.len);
    drop_run(&x);
}

static void no_output_is_lost(void) {
    hf_run x = HFSB_INIT;
    int    i;
    for (i = 0; i < 60; i++) {
        run(&x, "{\"cmd\":[\"printf\",\"hello\"]}");
        T_STR(hfsb_buf_str(&x.out), "hello");
    }
    run(&x, "{\"cmd\":\"yes 0123456789 | head -c 3000000\"}");
    T_CHECK(x.out.len == 3000000);
    drop_run(&x);
}

static void long_commands_run(void) {
    hf_run   x = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    hfsb_buf body = HFSB_INIT;
    T_CHECK(hfsb_buf_append(&body, HFSB_LIT("{\"cmd\":\"echo ")) == HFSB_OK);
    tt_fill(&body, "0123456789", 30000);
    T_CHECK(hfsb_buf_append(&body, HFSB_LIT(" | wc -c\"}")) == HFSB_OK);
    run(&x, body.ptr);
    T_STR(hfsb_buf_str(&x.out), "300001\n");
    hfsb_buf_truncate(&body, 0);
    T_CHECK(hfsb_buf_append(&body, HFSB_LIT("{\"cmd\":[\"echo\",\"")) ==
            HFSB_OK);
    tt_fill(&body, "0123456789", 30000);
    T_CHECK(hfsb_buf_append(&body, HFSB_LIT("\"]}")) == HFSB_OK);
    call(&r, "POST", "/v1/exec", body.ptr);
    TS_IS(&r, 400, "{\"error\":\"");
    hfsb_buf_free(&body);
    drop_run(&x);
    ts_drop(&r);
}

/* Runs it with a timeout of less than a second, or with more if a busy machine
   printed nothing by then. */
static void time_out(hf_run *x, const char *cmd) {
    static const char *const timeouts[] = {"0.9", "3.6", "14.4"};
    hfsb_buf                 text = HFSB_INIT, body = HFSB_INIT;
    size_t                   i;
    for (i = 0; i < TT_COUNT(timeouts); i++) {
        long long began = hfsb_clock_ms();
        hfsb_buf_truncate(&text, 0);
        if (hfsb_buf_printf(&text, "{\"cmd\":\"%s\",\"timeout\":%s}", cmd,
                            timeouts[i]) != HFSB_OK)
            abort();
        tt_with_nap(text.ptr, &body);
        run(x, body.ptr);
        T_CHECK(hfsb_clock_ms() - began < 45000);
        T_CHECK(x->timed_out && !x->has_code && x->signal > 0);
        T_CHECK(tt_running(tt_nap()) == 0);
        if (x->out.len) break;
    }
    hfsb_buf_free(&text);
    hfsb_buf_free(&body);
}

static void a_timeout_kills_the_whole_tree(void) {
    hf_run x = HFSB_INIT;
    time_out(&x, "echo early; setsid sleep @ & sleep @; echo late");
    T_STR(hfsb_buf_str(&x.out), "early\n");
    time_out(&x, "trap '' TERM; echo deaf; while :; do sleep 1; done");
    T_STR(hfsb_buf_str(&x.out), "deaf\n");
    T_CHECK(x.signal == 9);
    drop_run(&x);
}

static void a_client_that_goes_ends_its_command(void) {
    hfsb_buf body = HFSB_INIT;
    int      way;
    tt_with_nap("{\"cmd\":\"sleep @\"}", &body);
    for (way = 0; way < 2; way++) {
        ts_conn c = ts_connect(&srv);
        ts_ask(&c, "POST", "/v1/exec", HF_JSON, hfsb_buf_str(&body));
        T_CHECK(ts_await(&c, "start", 20000) && naps_begin(1));
        if (way) ts_reset(&c);
        else ts_hang_up(&c);
        T_CHECK(naps_end());
    }
    hfsb_buf_free(&body);
}

/* A client that only ends its side still gets the reply. */
static void a_client_may_shut_its_side(void) {
    ts_conn  c = ts_connect(&srv);
    hf_run   x = HFSB_INIT;
    ts_ask(&c, "POST", "/v1/exec", HF_JSON,
           HFSB_LIT("{\"cmd\":\"until [ -e heard ]; do sleep 0.1; done; echo "
                    "done\"}"));
    (void)shutdown(c.fd, SHUT_WR);
    T_CHECK(ts_await(&c, "\"ping\"", 20000));
    tt_put("heard", HFSB_LIT(""));
    T_CHECK(ts_read(&c, &x.reply, false));
    take_lines(&x);
    T_STR(hfsb_buf_str(&x.out), "done\n");
    T_CHECK(x.pings >= 1);
    ts_hang_up(&c);
    drop_run(&x);
}

/* A command that prints without end, and a client that does not read. */
static void a_slow_reader_holds_the_command(void) {
    ts_conn   c = ts_connect(&srv);
    ts_reply  r = HFSB_INIT;
    long long before = tt_peak(), after;
    ts_ask(&c, "POST", "/v1/exec", HF_JSON,
           HFSB_LIT("{\"cmd\":\"yes 0123456789012345678901234567890123456789 "
                    "& pid=$!; trap 'kill $pid' EXIT; wait\"}"));
    tt_sleep_ms(1500);
    after = tt_peak();
    T_CHECK(TT_SANITIZED || after - before < 8 << 20);
    ts_reset(&c);
    call(&r, "GET", "/v1/processes", NULL);
    TS_IS(&r, 200, "[]");
    ts_drop(&r);
}

/* More commands than may run at once. */
static void commands_wait_for_a_place(void) {
    hfsb_tools_opts tools = HFSB_INIT;
    hf_run          x = HFSB_INIT;
    ts_reply        r = HFSB_INIT;
    ts_conn         c;
    long long       began = hfsb_clock_ms();
    tools.max_running = 1;
    start_with(NULL, &tools);
    call(&r, "POST", "/v1/processes", "{\"cmd\":\"sleep 1.5\"}");
    TS_IS(&r, 200, NULL);
    run(&x, "{\"cmd\":\"echo late\"}");
    T_STR(hfsb_buf_str(&x.out), "late\n");
    T_CHECK(hfsb_clock_ms() - began > 1200);
    call(&r, "POST", "/v1/processes",
         "{\"cmd\":\"until [ -e go ]; do sleep 0.1; done\"}");
    call(&r, "POST", "/v1/exec", "{\"cmd\":\"touch ran\",\"timeout\":0.3}");
    TS_IS(&r, 200, "\"exit_code\":null,\"signal\":9,\"timed_out\":true");
    c = ts_connect(&srv);
    ts_ask(&c, "POST", "/v1/exec", HF_JSON, HFSB_LIT("{\"cmd\":\"touch ran\"}"));
    tt_sleep_ms(100);
    ts_reset(&c);
    call(&r, "GET", "/v1/processes", NULL); /* it is gone before this */
    call(&r, "GET", "/v1/processes", NULL);
    tt_put("go", HFSB_LIT(""));
    run(&x, "{\"cmd\":\"echo last\"}");
    T_STR(hfsb_buf_str(&x.out), "last\n");
    T_CHECK(access("ran", F_OK) != 0);
    drop_run(&x);
    ts_drop(&r);
    finish();
}

/* ---- background processes ---- */

static void background_processes_are_listed_and_killed(void) {
    ts_reply               r = HFSB_INIT;
    hfsb_buf               body = HFSB_INIT;
    const hfsb_json_value *e;
    char                   target[64], id[32];
    long                   pid;
    int                    way;
    for (way = 0; way < 2; way++) {
        tt_with_nap("{\"cmd\":\"setsid sleep @ & sleep @\",\"tag\":\"t\"}", &body);
        call(&r, "POST", "/v1/processes", body.ptr);
        TS_IS(&r, 200, NULL);
        (void)snprintf(id, sizeof id, "%s", ts_text(&r, "id").ptr);
        pid = (long)ts_int(&r, "pid");
        T_STR(ts_text(&r, "tag"), "t");
        T_CHECK(ts_text(&r, "cmd").len > 0 && pid > 0 && id[0] == 'p');
        T_CHECK(naps_begin(2));
        call(&r, "GET", "/v1/processes", NULL);
        TS_IS(&r, 200, NULL);
        T_CHECK(hfsb_json_type_of(r.json.root) == HFSB_JSON_ARRAY &&
                hfsb_json_count(r.json.root) == 1);
        e = hfsb_json_at(r.json.root, 0);
        T_CHECK(hfsb_json_bool(hfsb_json_get(e, "running"), false));
        T_CHECK(hfsb_json_int(hfsb_json_get(e, "pid"), 0) == pid);
        T_CHECK(hfsb_json_type_of(hfsb_json_get(e, "exit_code")) ==
                    HFSB_JSON_NULL &&
                hfsb_json_get(e, "exit_code") != NULL);
        T_CHECK(hfsb_json_int(hfsb_json_get(e, "started_at_ms"), 0) >
                1500000000000);
        T_STR(hfsb_json_str(hfsb_json_get(e, "tag"), HFSB_LIT("")), "t");
        if (way) (void)snprintf(target, sizeof target, "/v1/processes/%ld", pid);
        else (void)snprintf(target, sizeof target, "/v1/processes/%s", id);
        call(&r, "DELETE", target, NULL);
        TS_IS(&r, 200, NULL);
        T_CHECK(ts_flag(&r, "killed") && ts_flag(&r, "ok"));
        call(&r, "DELETE", target, NULL);
        TS_IS(&r, 200, NULL);
        T_CHECK(!ts_flag(&r, "killed"));
        call(&r, "GET", "/v1/processes", NULL);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.body), HFSB_LIT("[]")));
        T_CHECK(naps_end());
        hfsb_buf_free(&body);
    }
    ts_drop(&r);
}

static void background_processes_keep_their_exit(void) {
    ts_reply  r = HFSB_INIT;
    long long end = hfsb_clock_ms() + 20000;
    bool      done = false;
    const hfsb_json_value *e = NULL;
    call(&r, "POST", "/v1/exec",
         "{\"cmd\":[\"sh\",\"-c\",\"yes | head -c 2000000; exit 5\"],"
         "\"background\":true}");
    TS_IS(&r, 200, NULL);
    T_CHECK(ts_int(&r, "pid") > 0 && ts_text(&r, "id").len > 0);
    T_CHECK(hfsb_json_type_of(hfsb_json_get(r.json.root, "tag")) ==
            HFSB_JSON_NULL);
    while (!done && hfsb_clock_ms() < end) {
        call(&r, "GET", "/v1/processes", NULL);
        e = hfsb_json_at(r.json.root, 0);
        done = e && !hfsb_json_bool(hfsb_json_get(e, "running"), true);
        if (!done) tt_sleep_ms(20);
    }
    T_CHECK(done && hfsb_json_int(hfsb_json_get(e, "exit_code"), -1) == 5);
    T_STR(hfsb_json_str(hfsb_json_at(hfsb_json_get(e, "cmd"), 0),
                        HFSB_LIT("")),
          "sh");
    ts_drop(&r);
}

static void ended_processes_are_forgotten_from_256_on(void) {
    ts_reply  r = HFSB_INIT;
    long long end = hfsb_clock_ms() + 60000;
    size_t    n = 0;
    int       i;
    for (i = 0; i < 260; i++) {
        call(&r, "POST", "/v1/processes", "{\"cmd\":[\"true\"]}");
        TS_IS(&r, 200, NULL);
    }
    while (n != 256 && hfsb_clock_ms() < end) {
        call(&r, "GET", "/v1/processes", NULL);
        n = hfsb_json_count(r.json.root);
        tt_sleep_ms(20);
    }
    T_CHECK(n == 256);
    T_STR(hfsb_json_str(
              hfsb_json_get(hfsb_json_at(r.json.root, 255), "id"),
              HFSB_LIT("")),
          "p-259");
    ts_drop(&r);
}

static void long_commands_are_forgotten_earlier(void) {
    ts_reply  r = HFSB_INIT;
    hfsb_buf  body = HFSB_INIT;
    long long end = hfsb_clock_ms() + 60000;
    size_t    n = 0;
    int       i;
    tt_fill(&body, "{\"cmd\":\": ", 1);
    tt_fill(&body, "0123456789abcdef", 65536);
    tt_fill(&body, "\"}", 1);
    for (i = 0; i < 6; i++) {
        call(&r, "POST", "/v1/processes", body.ptr);
        TS_IS(&r, 200, "\"p-");
    }
    while (n != 3 && hfsb_clock_ms() < end) {
        call(&r, "GET", "/v1/processes", NULL);
        n = hfsb_json_count(r.json.root);
        tt_sleep_ms(20);
    }
    T_CHECK(n == 3); /* of 1 MiB each */
    hfsb_buf_free(&body);
    ts_drop(&r);
}


int main(void) {
    tt_begin();
    TT_RUN(health_turns_to_503_when_a_drain_begins);
    TT_RUN(without_a_token_the_host_must_be_ours);
    EACH(health_shows_the_protocol_to_everyone);
    EACH(requests_need_the_token);
    EACH(errors_have_one_form);
    EACH(commands_report_output_and_exit);
    EACH(what_cannot_run_is_refused_before_the_stream);
    EACH(output_is_text_on_one_line);
    EACH(no_output_is_lost);
    EACH(long_commands_run);
    EACH(a_timeout_kills_the_whole_tree);
    EACH(a_client_that_goes_ends_its_command);
    EACH(a_client_may_shut_its_side);
    EACH(a_slow_reader_holds_the_command);
    TT_RUN(commands_wait_for_a_place);
    EACH(background_processes_are_listed_and_killed);
    EACH(background_processes_keep_their_exit);
    EACH(ended_processes_are_forgotten_from_256_on);
    EACH(long_commands_are_forgotten_earlier);
    return TT_END();
}
