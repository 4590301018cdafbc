/* test_e2b.c - E2B's envd, spoken byte by byte: commands, tokens, wrong requests
   and lost connections. */
#include "../support/t_e2b.h"

static void a_command_streams_its_output(void) {
    stream                 st;
    hfsb_buf               out = HFSB_INIT;
    const hfsb_json_value *e;
    start(&open_how);
    start_process(
        &st, "",
        SH("echo $A; echo err >&2; pwd; exit 3") ",\"envs\""
                                                 ":{\"A\":\"1\"},\"cwd\":\"/"
                                                 "\"},\"stdin\":false}");
    T_CHECK(started(&st) > 1 && finish(&st, &out));
    e = event(&st, "end");
    T_CHECK(exit_code(&st) == 3);
    T_CHECK(hfsb_json_bool(hfsb_json_get(e, "exited"), false));
    T_STR(hfsbi_json_get_str(e, "status"), "exit status 3");
    T_STR(hfsbi_json_get_str(e, "error"), "exit status 3");
    ENDS(&st, "", "");
    T_CHECK(out.len == 8 && strstr(out.ptr, "1\n") && strstr(out.ptr, "/\n") &&
            strstr(out.ptr, "err\n"));
    stream_close(&st);
    start_process(&st, "", SH("kill -9 $$") "}}");
    T_CHECK(started(&st) && finish(&st, &out) && exit_code(&st) == -1);
    T_STR(hfsbi_json_get_str(event(&st, "end"), "status"), "signal: killed");
    stream_close(&st);
    hfsb_buf_free(&out);
    end();
}

static void a_command_that_cannot_start_is_refused(void) {
    static const struct {
        const char *json, *code, *part;
    } cases[] = {
        {"{\"process\":{\"cmd\":\"/no/such/program\"}}", "invalid_argument",
         "/no/such/program"},
        {SH("true") ",\"cwd\":\"/no/such\"}}", "invalid_argument", "/no/such"},
        {"{\"process\":{}}", "invalid_argument", "cmd"},
        {"{\"process\":{\"cmd\":\"a\\u0000b\"}}", "invalid_argument", "NUL"},
        {SH("true") ",\"envs\":{\"A=B\":\"\"}}}", "invalid_argument",
         "environment"},
        {SH("true") ",\"envs\":{\"A\":1}}}", "invalid_argument",
         "environment"},
        {"[]", "invalid_argument", "object"},
        {"{", "invalid_argument", ""}};
    stream st;
    size_t i;
    start(&open_how);
    for (i = 0; i < TT_COUNT(cases); i++) {
        start_process(&st, "", cases[i].json);
        ENDS(&st, cases[i].code, cases[i].part);
        stream_close(&st);
    }
    end();
}

static void a_client_that_goes_leaves_its_command(void) {
    stream   st, again;
    hfsb_buf out = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    long     pid;
    char     ask[64];
    start(&open_how);
    start_process(
        &st, "",
        SH("echo early; read x; echo late; exit 4") "},\"tag\":\"mine\","
                                                    "\"stdin\":true}");
    pid = started(&st);
    T_CHECK(stream_next(&st) && event(&st, "data"));
    stream_close(&st);
    tt_sleep_ms(50);
    T_CHECK(tt_alive(pid));
    stream_open(&st, "process.Process/Connect", "",
                "{\"process\":{\"tag\":\"mine\"}}");
    T_CHECK(started(&st) == pid);
    snprintf(ask, sizeof ask, "{\"process\":{\"pid\":%ld},\"replay\":true}",
             pid);
    stream_open(&again, "process.Process/Connect", "", ask);
    T_CHECK(started(&again) == pid);
    PROCESS(&r, "List", "{}");
    TS_IS(&r, 200, "\"tag\":\"mine\"");
    TS_IS(&r, 200,
          "\"args\":[\"-c\",\"echo early; read x; echo late; exit 4\"]");
    PROCESS(&r, "SendInput",
            "{\"process\":{\"tag\":\"mine\"},\"input\":{\"stdin\":\"Cg==\"}}");
    TS_IS(&r, 200, "{}");
    T_CHECK(finish(&st, &out) && exit_code(&st) == 4);
    T_STR(hfsb_buf_str(&out), "late\n");
    ENDS(&st, "", "");
    hfsb_buf_truncate(&out, 0);
    T_CHECK(finish(&again, &out) && exit_code(&again) == 4);
    T_STR(hfsb_buf_str(&out), "early\nlate\n");
    stream_close(&st);
    stream_close(&again);
    /* its exit stays known */
    stream_open(&st, "process.Process/Connect", "",
                "{\"process\":{\"tag\":\"mine\"}}");
    T_CHECK(started(&st) == pid && finish(&st, &out) && exit_code(&st) == 4);
    stream_close(&st);
    PROCESS(&r, "List", "{}");
    T_STR(hfsb_buf_str(&r.body), "{\"processes\":[]}");
    PROCESS(&r, "SendSignal",
            "{\"process\":{\"tag\":\"mine\"},\"signal\":\"SIGNAL_SIGKILL\"}");
    REFUSED(&r, 404, "not_found", "has ended");
    ts_drop(&r);
    hfsb_buf_free(&out);
    end();
}

static void a_deadline_ends_the_command(void) {
    stream    st;
    long      pid;
    long long began;
    start(&open_how);
    began = hfsb_clock_ms();
    start_process(&st, "Connect-Timeout-Ms: 1500\r\n", SH("sleep 60") "}}");
    pid = started(&st);
    ENDS(&st, "deadline_exceeded", "timeout");
    T_CHECK(hfsb_clock_ms() - began >= 1500 && tt_gone(pid));
    stream_close(&st);
    /* of a Connect it ends the stream alone */
    start_process(&st, "", SH("sleep 60") "},\"tag\":\"t\"}");
    pid = started(&st);
    stream_close(&st);
    stream_open(&st, "process.Process/Connect", "Connect-Timeout-Ms: 1500\r\n",
                "{\"process\":{\"tag\":\"t\"}}");
    T_CHECK(started(&st) == pid);
    ENDS(&st, "deadline_exceeded", "timeout");
    T_CHECK(tt_alive(pid));
    stream_close(&st);
    end();
    T_CHECK(tt_gone(pid));
}

static void silence_is_broken_by_keepalives(void) {
    stream   st;
    hfsb_buf out = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    start(&open_how);
    start_process(&st, "Keepalive-Ping-Interval: 1\r\n",
                  SH("read x; echo x") "},\"tag\":\"k\",\"stdin\":true}");
    T_CHECK(started(&st) > 0);
    T_CHECK(stream_next(&st) && event(&st, "keepalive"));
    T_CHECK(stream_next(&st) && event(&st, "keepalive"));
    PROCESS(&r, "SendInput",
            "{\"process\":{\"tag\":\"k\"},\"input\":{\"stdin\":\"Cg==\"}}");
    TS_IS(&r, 200, "{}");
    T_CHECK(finish(&st, &out) && exit_code(&st) == 0);
    T_STR(hfsb_buf_str(&out), "x\n");
    stream_close(&st);
    ts_drop(&r);
    hfsb_buf_free(&out);
    end();
}

static void a_slow_reader_costs_little_memory(void) {
    stream   st;
    hfsb_buf out = HFSB_INIT;
    start(&open_how);
    start_process(&st, "", SH("head -c 30000000 /dev/zero; echo end") "}}");
    T_CHECK(started(&st) > 0);
    tt_sleep_ms(700);
    T_CHECK(tt_memory_held() < 4000000);
    T_CHECK(finish(&st, &out) && exit_code(&st) == 0);
    T_CHECK(out.len == 30000004 && !strcmp(out.ptr + out.len - 4, "end\n"));
    stream_close(&st);
    hfsb_buf_free(&out);
    end();
}

/* True if the stream reports, as this kind of output, that some is lost. */
static bool reports_loss(stream *st, const char *kind) {
    hfsb_buf text = HFSB_INIT;
    bool     found;
    while (stream_next(st) && !st->flags)
        if (hfsb_json_get(event(st, "data"), kind))
            T_CHECK(hfsb_base64_decode(
                        hfsbi_json_get_str(event(st, "data"), kind), &text,
                        NULL) == HFSB_OK);
    found = text.len && strstr(text.ptr, " bytes of output were lost]");
    hfsb_buf_free(&text);
    return found;
}

/* One of the first allocations after the start is that of the output. */
static void lost_output_is_reported(void) {
    static const struct {
        const char *json, *kind;
    } cases[] = {
#define LATE SH("until [ -e go ]; do sleep 0.02; done; echo hi")
        {LATE "}}", "stderr"},
        {LATE "},\"pty\":{\"size\":{\"cols\":80,\"rows\":24}}}", "pty"}};
    stream st;
    size_t i, k;
    bool   seen;
    start(&open_how);
    for (i = 0; i < TT_COUNT(cases); i++) {
        for (k = 1, seen = false; k <= 40 && !seen; k++) {
            start_process(&st, "", cases[i].json);
            T_CHECK(started(&st) > 0);
            tt_faults(k, false);
            tt_put("go", HFSB_LIT(""));
            seen = reports_loss(&st, cases[i].kind);
            tt_faults(0, false);
            stream_close(&st);
            T_CHECK(unlink("go") == 0);
        }
        T_CHECK(seen);
    }
    end();
}

/* ---- input ---- */

static void input_reaches_the_command(void) {
    stream   st;
    hfsb_buf out = HFSB_INIT, big = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    size_t   i;
    start(&open_how);
    start_process(&st, "", SH("sleep 0.3; cat") "},\"tag\":\"c\"}");
    T_CHECK(started(&st) > 0);
    T_CHECK(hfsb_buf_append(&big, HFSB_LIT("{\"process\":{\"tag\":\"c\"},"
                                           "\"input\":{\"stdin\":\"")) ==
            HFSB_OK);
    for (i = 0; i < 400000; i++)
        T_CHECK(hfsb_buf_append(&big, HFSB_LIT("YWJjZGVm")) == HFSB_OK);
    T_CHECK(hfsb_buf_append(&big, HFSB_LIT("\"}}")) == HFSB_OK);
    PROCESS(&r, "SendInput", big.ptr); /* more than the command reads now */
    TS_IS(&r, 200, "{}");
    PROCESS(&r, "SendInput",
            "{\"process\":{\"tag\":\"c\"},\"input\":{"
            "\"stdin\":\"_-8\"}}"); /* url-safe, unpadded */
    TS_IS(&r, 200, "{}");
    PROCESS(&r, "SendInput",
            "{\"process\":{\"tag\":\"c\"},\"input\":{"
            "\"stdin\":\"***\"}}");
    T_CHECK(r.status == 400);
    PROCESS(&r, "SendInput",
            "{\"process\":{\"tag\":\"c\"},\"input\":{"
            "\"pty\":\"Cg==\"}}");
    REFUSED(&r, 400, "failed_precondition", "no terminal");
    PROCESS(&r, "Update",
            "{\"process\":{\"tag\":\"c\"},\"pty\":{\"size\":{"
            "\"cols\":1,\"rows\":1}}}");
    REFUSED(&r, 400, "failed_precondition", "terminal");
    PROCESS(&r, "SendSignal", "{\"process\":{\"tag\":\"c\"},\"signal\":5}");
    REFUSED(&r, 400, "invalid_argument", "SIGNAL_SIGKILL");
    PROCESS(&r, "CloseStdin", "{\"process\":{\"tag\":\"c\"}}");
    TS_IS(&r, 200, "{}");
    T_CHECK(finish(&st, &out) && exit_code(&st) == 0);
    T_CHECK(out.len == 2400002 && !memcmp(out.ptr + 2400000, "\xff\xef", 2));
    PROCESS(&r, "CloseStdin", "{\"process\":{\"tag\":\"c\"}}");
    REFUSED(&r, 404, "not_found", "has ended");
    PROCESS(&r, "CloseStdin", "{\"process\":{\"pid\":999999999}}");
    REFUSED(&r, 404, "not_found", "999999999");
    PROCESS(&r, "CloseStdin", "{}");
    REFUSED(&r, 400, "invalid_argument", "pid or a tag");
    stream_close(&st);
    ts_drop(&r);
    hfsb_buf_free(&out);
    hfsb_buf_free(&big);
    end();
}

/* Appends a message with so many thousand bytes of input for the tag "c". */
static void put_input(hfsb_buf *out, const char *head, size_t thousands,
                      const char *tail) {
    size_t i;
    T_CHECK(hfsb_buf_append(out, hfsb_cstr(head)) == HFSB_OK);
    for (i = 0; i < thousands * 500; i++)
        if (hfsb_buf_append(out, HFSB_LIT("YWJj")) != HFSB_OK) abort();
    T_CHECK(hfsb_buf_append(out, hfsb_cstr(tail)) == HFSB_OK);
}

/* More input than a command takes waits for it, not for ever. */
static void waiting_input_ends_with_its_reader(void) {
    static const struct {
        const char *script;
        bool        lives;
    } cases[] = {
        {SH("sleep 0.5; exec 0<&-; sleep 60") "},\"tag\":\"c\"}", true},
        {SH("sleep 0.5; exit 1") "},\"tag\":\"c\"}", false}};
    stream   st;
    hfsb_buf body = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    size_t   i;
    long     pid;
    put_input(&body, "{\"process\":{\"tag\":\"c\"},\"input\":{\"stdin\":\"",
              2000, "\"}}");
    start(&open_how);
    for (i = 0; i < TT_COUNT(cases); i++) {
        start_process(&st, "", cases[i].script);
        pid = started(&st);
        PROCESS(&r, "SendInput", body.ptr);
        if (cases[i].lives) {
            REFUSED(&r, 400, "failed_precondition", "is closed");
            T_CHECK(tt_alive(pid));
        } else { /* on a slow machine it ends before the request comes */
            T_CHECK(r.status == 400 || r.status == 404);
            T_CHECK(ts_contains(&r, "has ended") ||
                    ts_contains(&r, "is closed"));
        }
        stream_close(&st);
        if (cases[i].lives)
            PROCESS(&r, "SendSignal",
                    "{\"process\":{\"tag\":\"c\"},\"signal\":"
                    "\"SIGNAL_SIGKILL\"}");
    }
    hfsb_buf_free(&body);
    ts_drop(&r);
    end();
}

/* Sends bytes as the body of StreamInput, in pieces of `step`. */
static void put_stream(ts_conn *c, hfsb_str body, size_t step) {
    hfsb_buf out = HFSB_INIT;
    size_t   at;
    T_CHECK(hfsb_buf_append(
                &out, HFSB_LIT("POST /process.Process/StreamInput HTTP/1.1\r\n"
                               "Host: localhost\r\n" STREAM
                               "Transfer-Encoding: chunked\r\n\r\n")) ==
            HFSB_OK);
    for (at = 0; at < body.len; at += step) {
        hfsb_str piece = hfsb_str_slice(body, at, at + step);
        T_CHECK(hfsb_http_put_chunk(&out, piece) == HFSB_OK);
    }
    T_CHECK(hfsb_buf_append(&out, HFSB_LIT("0\r\n\r\n")) == HFSB_OK);
    T_CHECK(ts_send(c, hfsb_buf_str(&out)));
    hfsb_buf_free(&out);
}

static void a_stream_of_input_may_be_cut_anywhere(void) {
    static const size_t steps[] = {1, 2, 7, 1000, 5000000};
    static const char small[] = "{\"data\":{\"input\":{\"stdin\":\"eAo=\"}}}";
    stream            st;
    hfsb_buf          body = HFSB_INIT, out = HFSB_INIT, one = HFSB_INIT;
    ts_reply          r = HFSB_INIT;
    size_t            i, k;
    start(&open_how);
    for (i = 0; i < TT_COUNT(steps); i++) {
        ts_conn c = ts_connect(&s);
        start_process(&st, "", SH("sleep 0.2; wc -c") "},\"tag\":\"c\"}");
        T_CHECK(started(&st) > 0);
        hfsb_buf_truncate(&body, 0);
        hfsb_buf_truncate(&out, 0);
        envelope(&body, 0,
                 HFSB_LIT("{\"start\":{\"process\":{\"tag\":\"c\"}}}"));
        envelope(&body, 0, HFSB_LIT("{\"keepalive\":{}}"));
        for (k = 0; k < 3; k++) envelope(&body, 0, hfsb_cstr(small));
        if (steps[i] > 100) { /* more than the command takes at once */
            hfsb_buf_truncate(&one, 0);
            hfsb_buf_append(&one,
                            HFSB_LIT("{\"data\":{\"input\":{\"stdin\":\""));
            for (k = 0; k < 250000; k++)
                hfsb_buf_append(&one, HFSB_LIT("YWJj"));
            hfsb_buf_append(&one, HFSB_LIT("\"}}}"));
            for (k = 0; k < 4; k++) envelope(&body, 0, hfsb_buf_str(&one));
        }
        put_stream(&c, hfsb_buf_str(&body), steps[i]);
        T_CHECK(ts_read(&c, &r, false) && r.status == 200);
        T_CHECK(r.body.len == 14 && !memcmp(r.body.ptr + 5, "{}\2", 3));
        PROCESS(&r, "CloseStdin", "{\"process\":{\"tag\":\"c\"}}");
        TS_IS(&r, 200, "{}");
        T_CHECK(finish(&st, &out) && exit_code(&st) == 0);
        T_CHECK(atol(out.ptr) == (steps[i] > 100 ? 3000006 : 6));
        stream_close(&st);
        ts_hang_up(&c);
    }
    hfsb_buf_free(&one);
    hfsb_buf_free(&body);
    hfsb_buf_free(&out);
    ts_drop(&r);
    end();
}

static void a_bad_stream_of_input_is_refused(void) {
    static const struct {
        unsigned    flags;
        const char *json, *part;
    } cases[] = {
        {0, "{\"data\":{\"input\":{\"stdin\":\"eAo=\"}}}", "first message"},
        {0, "{\"start\":{\"process\":{\"tag\":\"none\"}}}", "not_found"},
        {0, "{", "invalid_argument"},
        {1, "{}", "unimplemented"},
        {8, "{}", "invalid_argument"}};
    ts_reply r = HFSB_INIT;
    size_t   i;
    start(&open_how);
    for (i = 0; i < TT_COUNT(cases); i++) {
        ts_conn  c = ts_connect(&s);
        hfsb_buf body = HFSB_INIT;
        envelope(&body, cases[i].flags, hfsb_cstr(cases[i].json));
        put_stream(&c, hfsb_buf_str(&body), 3);
        T_CHECK(ts_read(&c, &r, false));
        TS_IS(&r, 200, cases[i].part);
        ts_hang_up(&c);
        hfsb_buf_free(&body);
    }
    ts_drop(&r);
    end();
}

static void a_terminal_is_typed_into(void) {
    stream   st;
    hfsb_buf out = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    start(&open_how);
    start_process(&st, "",
                  "{\"process\":{\"cmd\":\"/bin/sh\"},\"tag\":\"t\","
                  "\"pty\":{\"size\":{\"cols\":91,\"rows\":31}}}");
    T_CHECK(started(&st) > 0);
    PROCESS(&r, "Update",
            "{\"process\":{\"tag\":\"t\"},\"pty\":{\"size\":{"
            "\"cols\":101,\"rows\":41}}}");
    TS_IS(&r, 200, "{}");
    /* "stty size; exit 6\n" */
    PROCESS(&r, "SendInput",
            "{\"process\":{\"tag\":\"t\"},\"input\":{\"pty\":"
            "\"c3R0eSBzaXplOyBleGl0IDYK\"}}");
    TS_IS(&r, 200, "{}");
    PROCESS(&r, "SendInput",
            "{\"process\":{\"tag\":\"t\"},\"input\":{\"stdin\":\"Cg==\"}}");
    T_CHECK(r.status >= 400);
    T_CHECK(finish(&st, &out) && exit_code(&st) == 6);
    T_CHECK(strstr(out.ptr, "41 101\r\n") != NULL);
    stream_close(&st);
    hfsb_buf_free(&out);
    ts_drop(&r);
    end();
}

/* ---- tokens and users ---- */

static void sign(const char *path, const char *operation, const char *user,
                 const char *until, char out[64]) {
    unsigned char digest[HFSB_SHA256_SIZE];
    hfsb_sha256   sha;
    hfsb_buf      text = HFSB_INIT;
    T_CHECK(hfsb_buf_printf(&text, "%s:%s:%s:" TOKEN "%s%s", path, operation,
                            user, *until ? ":" : "", until) == HFSB_OK);
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, hfsb_buf_str(&text));
    hfsb_sha256_finish(&sha, digest);
    hfsb_buf_truncate(&text, 0);
    T_CHECK(hfsb_base64_encode(hfsb_str_make((char *)digest, sizeof digest),
                               &text) == HFSB_OK);
    snprintf(out, 64, "%.43s", text.ptr);
    hfsb_buf_free(&text);
}

/* A target with a signature, "+" and "/" encoded. */
static const char *signed_target(const char *path, const char *operation,
                                 const char *user, const char *until) {
    static char target[400];
    char        mark[64];
    hfsb_buf    coded = HFSB_INIT;
    sign(path, operation, user, until, mark);
    T_CHECK(hfsb_http_encode(hfsb_cstr(mark), false, &coded) == HFSB_OK);
    snprintf(target, sizeof target, "/files?path=%s&signature=v1_%s%s%s%s%s",
             path, coded.ptr, *user ? "&username=" : "", user,
             *until ? "&signature_expiration=" : "", until);
    hfsb_buf_free(&coded);
    return target;
}

static void the_token_is_needed(void) {
    static const how         with = {false, false, false, TOKEN};
    static const char *const open[] = {"/envs", "/metrics", "/files?path=f"};
    size_t                   i;
    char                     until[32];
    start(&with);
    tt_put("f", HFSB_LIT("abc"));
    T_CHECK(status_of("GET", "/health", "", "") == 204);
    for (i = 0; i < TT_COUNT(open); i++) {
        T_CHECK(status_of("GET", open[i], "", "") == 401);
        T_CHECK(status_of("GET", open[i], ACCESS, "") == 200);
        T_CHECK(status_of("GET", open[i], "X-Access-Token: x\r\n", "") == 401);
        T_CHECK(status_of("GET", open[i], ACCESS ACCESS, "") == 401);
        T_CHECK(status_of("GET", open[i],
                          "X-Sandbox-Authorization: Bearer " TS_TOKEN "\r\n",
                          "") == 401);
    }
    T_CHECK(status_of("POST", "/process.Process/List", TS_JSON, "{}") == 401);
    T_CHECK(status_of("POST", "/process.Process/List", TS_JSON ACCESS, "{}") ==
            200);
    T_CHECK(status_of("POST", "/process.Process/Start", STREAM, "") == 401);
    T_CHECK(status_of("POST", "/init", TS_JSON, "{}") == 401);
    T_CHECK(status_of("GET", "/v2/sandboxes", ACCESS, "") == 401);
    T_CHECK(status_of("GET", "/v2/sandboxes", "X-API-Key: " TOKEN "\r\n",
                      "") == 200);
    T_CHECK(status_of("GET", signed_target("f", "read", "", ""), "", "") ==
            200);
    T_CHECK(status_of("GET", signed_target("f", "read", "root", ""), "", "") ==
            200);
    T_CHECK(status_of("GET", signed_target("f", "write", "", ""), "", "") ==
            401);
    T_CHECK(status_of("GET", signed_target("f", "read", "", ""),
                      "X-Access-Token: x\r\n", "") == 401);
    snprintf(until, sizeof until, "%lld", hfsbi_time_ns() / 1000000000 + 60);
    T_CHECK(status_of("GET", signed_target("f", "read", "", until), "", "") ==
            200);
    T_CHECK(status_of("GET", signed_target("f", "read", "", "1000"), "", "") ==
            401);
    T_CHECK(status_of("GET", signed_target("f", "read", "", "-5"), "", "") ==
            401);
    T_CHECK(status_of("POST", signed_target("g", "write", "", ""), "",
                      "new") == 200);
    T_CHECK(tt_file_is("g", HFSB_LIT("new")));
    T_CHECK(status_of("POST", signed_target("g", "read", "", ""), "", "no") ==
            401);
    T_CHECK(tt_file_is("g", HFSB_LIT("new")));
    T_CHECK(unlink("f") == 0 && unlink("g") == 0);
    end();
}

static void the_first_init_sets_the_token(void) {
    static const how bare = {false, true, false, NULL, 0};
    ts_reply         r = HFSB_INIT;
    start(&bare);
    T_CHECK(status_of("GET", "/envs", "", "") == 401);
    T_CHECK(status_of("POST", "/init", TS_JSON, "[") == 400);
    T_CHECK(status_of("POST", "/init", TS_JSON,
                      "{\"accessToken\":\"" TOKEN "\",\"envVars\":{\"A\":"
                      "\"1\",\"B\":\"2\"},\"defaultWorkdir\":\"/tmp\"}") ==
            204);
    T_CHECK(status_of("GET", "/envs", "", "") == 401);
    T_CHECK(status_of("POST", "/init", TS_JSON,
                      "{\"accessToken\":\"mine\"}") == 401);
    ts_call(&s, &r, "GET", "/envs", ACCESS, nothing);
    T_STR(hfsb_buf_str(&r.body), "{\"A\":\"1\",\"B\":\"2\"}");
    T_CHECK(status_of("POST", "/init", TS_JSON ACCESS,
                      "{\"envVars\":{\"A\":\"3\"}}") == 204);
    ts_call(&s, &r, "GET", "/envs", ACCESS, nothing);
    T_STR(hfsb_buf_str(&r.body), "{\"B\":\"2\",\"A\":\"3\"}");
    ts_call(&s, &r, "POST", "/filesystem.Filesystem/Stat", TS_JSON ACCESS,
            HFSB_LIT("{\"path\":\"\"}"));
    TS_IS(&r, 200, "\"path\":\"/tmp\"");
    ts_call(&s, &r, "GET", "/metrics", ACCESS, nothing);
    TS_IS(&r, 200, "\"cpu_count\":");
    T_CHECK(ts_int(&r, "mem_total") > 0 && ts_int(&r, "disk_total") > 0);
    ts_drop(&r);
    end();
}

/* A page can send such a request without asking first. */
static void no_page_sets_the_token(void) {
    static const how bare = {false, true, false, NULL, 0};
    static const char json[] = "{\"accessToken\":\"" TOKEN "\"}";
    static const struct {
        const char *fields;
        int         status;
    } list[] = {
        {"Content-Type: text/plain\r\nOrigin: http://localhost:3000\r\n", 403},
        {"Origin: http://localhost:3000\r\n", 403},
        {TS_JSON "Origin: http://127.0.0.1\r\n", 403},
        {TS_JSON "Sec-Fetch-Site: cross-site\r\n", 403},
        {"Content-Type: text/plain\r\n", 415},
    };
    size_t i;
    start(&bare);
    for (i = 0; i < TT_COUNT(list); i++) {
        T_CHECK(status_of("POST", "/init", list[i].fields, json) ==
                list[i].status);
        T_CHECK(status_of("GET", "/metrics", ACCESS, "") == 401);
    }
    T_CHECK(status_of("POST", "/init", "", json) == 204); /* as E2B's caller */
    T_CHECK(status_of("GET", "/metrics", ACCESS, "") == 200);
    end();
}

#define INIT(fields, json) status_of("POST", "/init", TS_JSON fields, json)

static bool envs_are(const char *want) {
    ts_reply r = HFSB_INIT;
    bool     same;
    ts_call(&s, &r, "GET", "/envs", ACCESS, nothing);
    same = hfsb_str_equal(hfsb_buf_str(&r.body), hfsb_cstr(want));
    ts_drop(&r);
    return same;
}

static void an_init_that_was_delayed_changes_nothing(void) {
    static const how bare = {false, true, false, NULL};
    start(&bare);
    T_CHECK(INIT("",
                 "{\"accessToken\":\"" TOKEN "\",\"envVars\":{\"A\":"
                 "\"1\"},\"timestamp\":\"2026-11-18T10:00:00.5Z\"}") == 204);
    /* a repeat knows the token, and is not newer */
    T_CHECK(INIT("",
                 "{\"accessToken\":\"" TOKEN "\",\"envVars\":{\"A\":"
                 "\"2\"},\"timestamp\":\"2026-11-18T10:00:00.5Z\"}") == 204);
    T_CHECK(envs_are("{\"A\":\"1\"}"));
    T_CHECK(INIT(ACCESS, "{\"envVars\":{\"A\":\"3\"},\"timestamp\":"
                         "\"2026-11-18T11:00:00+02:00\"}") == 204);
    T_CHECK(envs_are("{\"A\":\"1\"}"));
    T_CHECK(INIT(ACCESS, "{\"envVars\":{\"A\":\"4\"},\"timestamp\":"
                         "\"2026-11-18T10:00:00.6Z\"}") == 204);
    T_CHECK(envs_are("{\"A\":\"4\"}"));
    T_CHECK(INIT(ACCESS, "{\"envVars\":{\"A\":\"5\"},\"timestamp\":"
                         "\"today\"}") == 400);
    T_CHECK(INIT(ACCESS, "{\"envVars\":{\"A\":\"6\"}}") == 204);
    T_CHECK(envs_are("{\"A\":\"6\"}"));
    T_CHECK(INIT("", "{\"accessToken\":\"other\",\"envVars\":{}}") == 401);
    T_CHECK(INIT("", "{}") == 401 && INIT("", "") == 401);
    T_CHECK(INIT(ACCESS, "") == 204);
    end();
}

static void an_init_names_the_user(void) {
    static const char nobody[] = "Authorization: Basic bm9ib2R5Og==\r\n";
    start(&open_how);
    T_CHECK(status_of("GET", "/envs", nobody, "") == 401);
    T_CHECK(INIT("", "{\"defaultUser\":\"nobody\"}") == 204);
    T_CHECK(status_of("GET", "/envs", nobody, "") == 200);
    T_CHECK(INIT("", "{\"envVars\":{}}") == 204); /* it stays */
    T_CHECK(status_of("GET", "/envs?username=nobody", "", "") == 200);
    T_CHECK(status_of("GET", "/envs?username=other", "", "") == 401);
    end();
}

static unsigned late_port; /* of the server itself */

/* Opens a server that waits for /init; the dialect is beside it, or not. */
static void start_late(bool own_port) {
    hfsb_server_opts         o = HFSB_INIT;
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_dialect_opts        d = HFSB_INIT;
    hfsb_err                 err = HFSB_INIT;
    unsigned                 port = 0;
    memset(&s, 0, sizeof s);
    o.late_token = true;
    T_CHECK(hfsb_server_open(&o, &s.server, &err) == HFSB_OK);
    T_CHECK(hfsb_server_add_sandbox(s.server, &box, &err) == HFSB_OK);
    d.name = "e2b";
    d.own_port = own_port;
    T_CHECK(hfsb_server_add_dialect(s.server, &d, &port, &err) == HFSB_OK);
    T_CHECK(hfsb_server_listen(s.server, "127.0.0.1", 0, &s.port, &err) ==
            HFSB_OK);
    late_port = s.port;
    if (own_port) s.port = port;
    ts_run(&s);
}

/* There is one first caller: of the server's /init, on whichever port the
   dialect is. */
static void the_init_of_the_server_goes_first(void) {
    unsigned own;
    start_late(false);
    T_CHECK(INIT("", "{\"accessToken\":\"" TOKEN "\"}") == 400);
    T_CHECK(status_of("GET", "/envs", ACCESS, "") == 401);
    T_CHECK(INIT("", "{\"token\":\"" TOKEN "\"}") == 200);
    T_CHECK(status_of("GET", "/envs", ACCESS, "") == 200);
    T_CHECK(status_of("GET", "/envs", "X-Access-Token: x\r\n", "") == 401);
    ts_end(&s, false);
    start_late(true);
    own = s.port;
    T_CHECK(INIT("", "{\"accessToken\":\"" TOKEN "\"}") == 404);
    T_CHECK(status_of("GET", "/envs", ACCESS, "") == 401);
    s.port = late_port;
    T_CHECK(INIT("", "{\"token\":\"" TOKEN "\"}") == 200);
    s.port = own;
    T_CHECK(status_of("GET", "/envs", ACCESS, "") == 200);
    T_CHECK(status_of("GET", "/envs", "", "") == 401);
    ts_end(&s, false);
}

static void the_one_user_has_several_names(void) {
    static const struct {
        const char *field;
        int         status;
    } cases[] = {{"Basic dXNlcjo=", 200}, /* user: */
                 {"Basic cm9vdDo=", 200}, /* root: */
                 {"basic cm9vdA==", 200},
                 {"Basic bm9ib2R5Og==", 401}, /* nobody: */
                 {"Basic ***", 401}};
    char   fields[128];
    size_t i;
    start(&open_how);
    for (i = 0; i < TT_COUNT(cases); i++) {
        snprintf(fields, sizeof fields, TS_JSON "Authorization: %s\r\n",
                 cases[i].field);
        T_CHECK(status_of("POST", "/process.Process/List", fields, "{}") ==
                cases[i].status);
    }
    end();
}

static void requests_that_are_wrong_are_refused(void) {
    ts_reply r = HFSB_INIT;
    hfsb_buf two = HFSB_INIT;
    stream   st;
    start(&open_how);
    ts_call(&s, &r, "POST", "/process.Process/List",
            "Content-Type: application/proto\r\n", HFSB_LIT(""));
    T_CHECK(r.status == 415);
    ts_post(&s, &r, "/process.Process/Start", "{}");
    T_CHECK(r.status == 415);
    PROCESS(&r, "None", "{}");
    REFUSED(&r, 404, "unimplemented", "");
    PROCESS(&r, "List", "{");
    REFUSED(&r, 400, "invalid_argument", "");
    ts_get(&s, &r, "/process.Process/List");
    T_CHECK(r.status == 405);
    ts_get(&s, &r, "/none");
    TS_IS(&r, 404, "\"code\":404");
    envelope(&two, 0, HFSB_LIT("{}"));
    envelope(&two, 0, HFSB_LIT("{}"));
    ts_call(&s, &r, "POST", "/process.Process/Start", STREAM,
            hfsb_buf_str(&two));
    TS_IS(&r, 200, "one message");
    ts_call(&s, &r, "POST", "/process.Process/Start", STREAM,
            hfsb_str_slice(hfsb_buf_str(&two), 0, 6));
    TS_IS(&r, 200, "invalid_argument");
    ts_call(&s, &r, "POST", "/process.Process/Start", STREAM, HFSB_LIT(""));
    TS_IS(&r, 200, "invalid_argument");
    stream_open(&st, "process.Process/Connect", "", "{}");
    ENDS(&st, "invalid_argument", "pid or a tag");
    stream_close(&st);
    hfsb_buf_free(&two);
    ts_drop(&r);
    end();
}

static void streams_end_when_the_server_stops(void) {
    stream   watch, command;
    ts_reply r = HFSB_INIT;
    start(&open_how);
    stream_open(&watch, "filesystem.Filesystem/WatchDir", "",
                "{\"path\":\"\"}");
    T_CHECK(stream_next(&watch));
    FILES(&r, "CreateWatcher", "{\"path\":\"\"}");
    TS_IS(&r, 200, "watcherId");
    start_process(&command, "", SH("sleep 60") "}}");
    T_CHECK(started(&command) > 0);
    hfsb_server_stop(s.server);
    ENDS(&watch, "unavailable", "ended");
    T_CHECK(finish(&command, NULL) && exit_code(&command) == -1);
    stream_close(&watch);
    stream_close(&command);
    ts_drop(&r);
    end();
}

/* ---- faults ---- */

typedef struct one_call {
    const char *method, *target, *fields, *body;
    bool        wrapped;
} one_call;

static const one_call calls[] = {
    {"POST", "/process.Process/Start", STREAM,
     SH("cat") "},\"tag\":\"x\",\"stdin\":false}", true},
    {"POST", "/process.Process/List", TS_JSON, "{}", false},
    {"POST", "/process.Process/SendInput", TS_JSON,
     "{\"process\":{\"tag\":\"c\"},\"input\":{\"stdin\":\"eAo=\"}}", false},
    {"POST", "/process.Process/StreamInput", STREAM,
     "{\"start\":{\"process\":{\"tag\":\"c\"}}}", true},
    {"POST", "/filesystem.Filesystem/ListDir", TS_JSON,
     "{\"path\":\"d\",\"depth\":2}", false},
    {"POST", "/filesystem.Filesystem/CreateWatcher", TS_JSON,
     "{\"path\":\"d\",\"recursive\":true}", false},
    {"POST", "/files?path=d/x", "X-Metadata-a: b\r\n", "bytes", false},
    {"POST", "/files/compose", TS_JSON,
     "{\"source_paths\":[\"d/x\"],\"destination\":\"d/y\"}", false},
    {"GET", "/metrics", "", "", false},
    {"POST", "/init", TS_JSON,
     "{\"envVars\":{\"A\":\"1\"},\"defaultWorkdir\":\"\"}", false},
    {"POST", "/v2/sandboxes", TS_JSON, "{\"metadata\":{\"k\":\"v\"}}", false}};

/* Writes the body of a call. */
static void put_body(const one_call *call, hfsb_buf *out) {
    if (call->wrapped) envelope(out, 0, hfsb_cstr(call->body));
    else T_CHECK(hfsb_buf_append(out, hfsb_cstr(call->body)) == HFSB_OK);
}

/* What the calls work on. */
static void prepare(stream *st) {
    T_CHECK(mkdir("d", 0755) == 0 && mkdir("d/e", 0755) == 0);
    start_process(st, "", SH("cat > /dev/null") "},\"tag\":\"c\"}");
    T_CHECK(started(st) > 0);
}

static void put_away(stream *st) {
    stream_close(st);
    end();
    T_CHECK(tt_remove_all("d", NULL));
    (void)tt_remove_all("sandboxes", NULL);
}

static void a_connection_may_be_cut_at_every_byte(void) {
    stream st;
    size_t i, n;
    start(&open_how);
    prepare(&st);
    for (i = 0; i < TT_COUNT(calls); i++) {
        hfsb_buf all = HFSB_INIT, body = HFSB_INIT;
        put_body(&calls[i], &body);
        T_CHECK(hfsb_buf_printf(&all,
                                "%s %s HTTP/1.1\r\nHost: localhost\r\n%s"
                                "Content-Length: %zu\r\n\r\n",
                                calls[i].method, calls[i].target,
                                calls[i].fields, body.len) == HFSB_OK);
        T_CHECK(hfsb_buf_append(&all, hfsb_buf_str(&body)) == HFSB_OK);
        tt_put("d/x", HFSB_LIT("old"));
        for (n = 0; n < all.len; n++) { /* the request */
            ts_conn c = ts_connect(&s);
            T_CHECK(ts_send(&c, hfsb_str_slice(hfsb_buf_str(&all), 0, n)));
            if (n % 2) ts_reset(&c);
            else ts_hang_up(&c);
        }
        for (n = 0; n < 12; n++) { /* the reply, at any time */
            ts_conn c = ts_connect(&s);
            char    drop[64];
            T_CHECK(ts_send(&c, hfsb_buf_str(&all)));
            if (n) T_CHECK(recv(c.fd, drop, n * 5, 0) > 0);
            ts_reset(&c);
        }
        hfsb_buf_free(&all);
        hfsb_buf_free(&body);
    }
    T_CHECK(status_of("GET", "/health", "", "") == 204);
    put_away(&st);
}

int main(void) {
    tt_begin();
    (void)umask(022);
    TT_RUN(a_command_streams_its_output);
    TT_RUN(a_command_that_cannot_start_is_refused);
    TT_RUN(a_client_that_goes_leaves_its_command);
    TT_RUN(a_deadline_ends_the_command);
    TT_RUN(silence_is_broken_by_keepalives);
    TT_RUN(a_slow_reader_costs_little_memory);
    TT_RUN(lost_output_is_reported);
    TT_RUN(input_reaches_the_command);
    TT_RUN(waiting_input_ends_with_its_reader);
    TT_RUN(a_stream_of_input_may_be_cut_anywhere);
    TT_RUN(a_bad_stream_of_input_is_refused);
    TT_RUN(a_terminal_is_typed_into);
    TT_RUN(the_token_is_needed);
    TT_RUN(the_first_init_sets_the_token);
    TT_RUN(no_page_sets_the_token);
    TT_RUN(an_init_that_was_delayed_changes_nothing);
    TT_RUN(an_init_names_the_user);
    TT_RUN(the_init_of_the_server_goes_first);
    TT_RUN(the_one_user_has_several_names);
    TT_RUN(requests_that_are_wrong_are_refused);
    TT_RUN(streams_end_when_the_server_stops);
    TT_RUN(a_connection_may_be_cut_at_every_byte);
    return TT_END();
}
