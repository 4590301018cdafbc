/* test_api_exec.c - /api/exec as bytes of a client: messages in any order, and
   those that a client of ours does not send. What a program and its caller see
   is in tests/remote/test_sandbox_exec.c. */
#include "../support/t_codex.h"

static client c;

static void begin(void) {
    static const char *const hosts[] = {"sandbox.example", NULL};
    hfsb_server_opts         opts = HFSB_INIT;
    opts.allow_hosts = hosts;
    ts_open(&s, &opts);
    if (hfsb_server_add_sandbox(s.server, NULL, NULL) != HFSB_OK) abort();
    ts_run(&s);
}

static void dial_exec(void) {
    memset(&c, 0, sizeof c);
    c.socket = true;
    c.conn = ts_connect(&s);
    T_CHECK(upgrade(&c.conn, "/api/exec", TS_TOKEN));
}

static void send_frame(hfsbi_ws_opcode opcode, const char *text) {
    hfsb_buf out = HFSB_INIT;
    put_frame(&out, opcode, hfsb_cstr(text));
    T_CHECK(ts_send(&c.conn, hfsb_buf_str(&out)));
    hfsb_buf_free(&out);
}

/* The refusal of a first message. */
static void refused(hfsbi_ws_opcode opcode, const char *text,
                    const char *why) {
    dial_exec();
    send_frame(opcode, text);
    T_CHECK(finds(&c, "\"error\":", why, WAIT_MS));
    hang_up(&c);
}

static void a_token_is_needed(void) {
    ts_conn conn;
    begin();
    conn = ts_connect(&s);
    T_CHECK(!upgrade(&conn, "/api/exec", NULL));
    ts_hang_up(&conn);
    conn = ts_connect(&s);
    T_CHECK(!upgrade(&conn, "/api/exec", "wrong"));
    ts_hang_up(&conn);
    ts_end(&s, false);
}

static void a_request_that_is_no_websocket_is_refused(void) {
    ts_reply r = HFSB_INIT;
    begin();
    ts_get(&s, &r, "/api/exec");
    T_CHECK(r.status == 426 || r.status == 400);
    ts_drop(&r);
    ts_end(&s, false);
}

static void first_messages_are_checked(void) {
    begin();
    refused(HFSBI_WS_TEXT, "nonsense", "must be JSON");
    refused(HFSBI_WS_TEXT, "[]", "must be a JSON object");
    refused(HFSBI_WS_BINARY, "bytes", "first message");
    refused(HFSBI_WS_TEXT, "{\"argv\":[1]}", "array of strings");
    refused(HFSBI_WS_TEXT, "{\"argv\":[\"a\\u0000b\"]}", "without NUL");
    refused(HFSBI_WS_TEXT, "{\"command\":\"a\\u0000b\"}", "a NUL");
    refused(HFSBI_WS_TEXT, "{\"argv\":[\"a\"],\"command\":\"b\"}", "not both");
    refused(HFSBI_WS_TEXT, "{\"cols\":80}", "cols and rows");
    refused(HFSBI_WS_TEXT, "{\"argv\":[\"hfsb-none\"]}", "not_found");
    refused(HFSBI_WS_TEXT, "{\"argv\":[\"true\"],\"work_dir\":\"/no/such\"}",
            "invalid");
    refused(HFSBI_WS_TEXT, "{\"env\":[\"A=b\"]}", "an object");
    refused(HFSBI_WS_TEXT, "{\"env\":{\"A\":\"b\\u0000C=d\"}}", "NUL");
    refused(HFSBI_WS_TEXT, "{\"env\":{\"A\\u0000B\":\"c\"}}", "env");
    refused(HFSBI_WS_TEXT, "{\"env\":{\"A=B\":\"c\"}}", "env");
    refused(HFSBI_WS_TEXT, "{\"env\":{\"A\":{}}}", "env");
    T_CHECK(ts_commands(&s, 0, 0));
    ts_end(&s, false);
}

static void variables_are_those_of_bash(void) {
    begin();
    dial_exec();
    send_frame(HFSBI_WS_TEXT,
               "{\"command\":\"test \\\"$PORT/$ON/${HOME-unset}\\\" = "
               "8000/true/unset\",\"env\":{\"PORT\":8000,\"ON\":true,"
               "\"HOME\":null}}");
    T_CHECK(finds(&c, "\"exit_code\":0", "", WAIT_MS));
    hang_up(&c);
    ts_end(&s, false);
}

static void input_may_come_before_the_start(void) {
    begin();
    dial_exec();
    send_frame(HFSBI_WS_TEXT, "{\"command\":\"test $(wc -c) = 6\"}");
    send_frame(HFSBI_WS_BINARY, "abc");
    send_frame(HFSBI_WS_BINARY, "def");
    send_frame(HFSBI_WS_TEXT, "{\"eof\":true}");
    send_frame(HFSBI_WS_BINARY, "late");
    T_CHECK(finds(&c, "\"pid\":", "", WAIT_MS));
    T_CHECK(finds(&c, "\"exit_code\":0", "\"signal\":0", WAIT_MS));
    hang_up(&c);
    ts_end(&s, false);
}

static void signals_reach_the_program(void) {
    begin();
    dial_exec();
    send_frame(HFSBI_WS_TEXT, "{\"argv\":[\"sleep\",\"60\"]}");
    T_CHECK(finds(&c, "\"pid\":", "", WAIT_MS));
    send_frame(HFSBI_WS_TEXT, "{\"signal\":99,\"cols\":-1,\"rows\":7}");
    send_frame(HFSBI_WS_TEXT, "{\"signal\":15}");
    T_CHECK(finds(&c, "\"exit_code\":-1", "\"signal\":15", WAIT_MS));
    hang_up(&c);
    ts_end(&s, false);
}

static void nonsense_later_ends_it(void) {
    begin();
    dial_exec();
    send_frame(HFSBI_WS_TEXT, "{\"argv\":[\"sleep\",\"60\"]}");
    T_CHECK(finds(&c, "\"pid\":", "", WAIT_MS));
    send_frame(HFSBI_WS_TEXT, "{");
    T_CHECK(finds(&c, "\"error\":", "must be JSON", WAIT_MS));
    hang_up(&c);
    T_CHECK(ts_commands(&s, 0, 0));
    ts_end(&s, false);
}

static void a_client_that_goes_ends_it(void) {
    begin();
    dial_exec();
    send_frame(HFSBI_WS_TEXT, "{\"argv\":[\"sleep\",\"60\"]}");
    T_CHECK(finds(&c, "\"pid\":", "", WAIT_MS));
    T_CHECK(ts_commands(&s, 1, 0));
    hang_up(&c);
    T_CHECK(ts_commands(&s, 0, 0));
    dial_exec(); /* before its start is known */
    send_frame(HFSBI_WS_TEXT, "{\"argv\":[\"sleep\",\"60\"]}");
    hang_up(&c);
    T_CHECK(ts_commands(&s, 0, 0));
    ts_end(&s, false);
}

static void the_server_stops_with_programs(void) {
    begin();
    dial_exec();
    send_frame(HFSBI_WS_TEXT, "{\"argv\":[\"sleep\",\"60\"]}");
    T_CHECK(finds(&c, "\"pid\":", "", WAIT_MS));
    ts_end(&s, false);
    hang_up(&c);
}

/* Every allocation of a run fails in turn: an answer or the end of the
   connection, and the server serves on. */
static void every_allocation_may_fail(void) {
    size_t at, n;
    begin();
    dial_exec();
    tt_faults(0, false);
    send_frame(HFSBI_WS_TEXT, "{\"argv\":[\"cat\"],\"env\":{\"A\":\"b\"}}");
    send_frame(HFSBI_WS_BINARY, "abc");
    send_frame(HFSBI_WS_TEXT, "{\"eof\":true}");
    T_CHECK(finds(&c, "\"exit_code\":0", "", WAIT_MS));
    hang_up(&c);
    n = tt_allocations();
    for (at = 1; at <= n && at < 300; at++) {
        long long until = hfsb_clock_ms() + WAIT_MS;
        dial_exec();
        tt_faults(at, false);
        send_frame(HFSBI_WS_TEXT, "{\"argv\":[\"cat\"],\"env\":{\"A\":\"b\"}}");
        send_frame(HFSBI_WS_BINARY, "abc");
        send_frame(HFSBI_WS_TEXT, "{\"eof\":true}");
        while (more(&c, 20) && hfsb_clock_ms() < until &&
               hfsb_str_find(hfsb_buf_str(&c.got), HFSB_LIT("exit_code")) ==
                   HFSB_NPOS &&
               hfsb_str_find(hfsb_buf_str(&c.got), HFSB_LIT("error")) ==
                   HFSB_NPOS)
            continue;
        T_CHECK(hfsb_clock_ms() < until);
        tt_faults(0, false);
        hang_up(&c);
    }
    T_CHECK(ts_commands(&s, 0, 0));
    ts_end(&s, false);
}

int main(void) {
    T_RUN(a_token_is_needed);
    T_RUN(a_request_that_is_no_websocket_is_refused);
    T_RUN(first_messages_are_checked);
    T_RUN(variables_are_those_of_bash);
    T_RUN(input_may_come_before_the_start);
    T_RUN(signals_reach_the_program);
    T_RUN(nonsense_later_ends_it);
    T_RUN(a_client_that_goes_ends_it);
    T_RUN(the_server_stops_with_programs);
    T_RUN(every_allocation_may_fail);
    return T_END();
}
