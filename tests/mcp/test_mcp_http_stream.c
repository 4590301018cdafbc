/* test_mcp_http_stream.c - MCP over HTTP, while calls run: streams of events,
   signs of life, clients that disconnect or cancel, many at once. */
#include "../support/t_mcp_http.h"

/* ---- streams ---- */

static void progress_comes_as_events(void) {
    static const char asks[] =
        RPC(5, "tools/call", "\"name\":\"steps\"," TOKEN_META);
    ts_server                s;
    ts_reply                 r = HFSB_INIT;
    size_t                   i, n[4];
    static const char *const order[] = {"\"progress\":0", "\"progress\":50",
                                        "\"progress\":100", "\"arrived\""};
    mh_start(&s);
    mh_post(&s, &r, BOTH CALLS("steps"), asks);
    TS_IS(&r, 200, "arrived");
    T_CHECK(mh_is_type(&r, "text/event-stream"));
    T_STR(ts_field(&r, "X-Accel-Buffering"), "no");
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.body),
                            HFSB_LIT("event: message\ndata: {")));
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.body), HFSB_LIT("}\n\n")));
    T_CHECK(tc_count(hfsb_buf_str(&r.body), "event: message\n") == 4);
    T_CHECK(tc_count(hfsb_buf_str(&r.body), "\"progressToken\":7") == 3);
    T_CHECK(!ts_contains(&r, "id: "));
    for (i = 0; i < 4; i++) {
        n[i] = hfsb_str_find(hfsb_buf_str(&r.body), hfsb_cstr(order[i]));
        T_CHECK(n[i] != HFSB_NPOS && (!i || n[i] > n[i - 1]));
    }
    /* without a token, or without events: plain JSON */
    mh_post(&s, &r, BOTH CALLS("steps"), CALL_NOW(5, "steps", "{}"));
    TS_IS(&r, 200, "arrived");
    T_CHECK(mh_is_type(&r, "application/json") && !ts_contains(&r, "progress"));
    mh_post(&s, &r, ONLY CALLS("steps"), asks);
    TS_IS(&r, 200, "arrived");
    T_CHECK(mh_is_type(&r, "application/json") && !ts_contains(&r, "progress"));
    ts_drop(&r);
    ts_end(&s, false);
}

static void signs_of_life_are_sent_while_a_call_takes_long(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    ts_server     s;
    ts_reply      r = HFSB_INIT;
    o.beat_ms = 10; /* and 30 between signs of life */
    mh_start_with(&s, &o, NULL);
    mh_post(&s, &r, BOTH, CALL(1, "nap", "{\"ms\":2000}"));
    TS_IS(&r, 200, "rested");
    T_CHECK(mh_is_type(&r, "text/event-stream"));
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.body), HFSB_LIT(": \n\n")));
    T_CHECK(tc_count(hfsb_buf_str(&r.body), ": \n\n") >= 2);
    T_CHECK(tc_count(hfsb_buf_str(&r.body), "event: message\n") == 1);
    mh_post(&s, &r, ONLY, CALL(1, "nap", "{\"ms\":2000}"));
    TS_IS(&r, 200, "rested");
    T_CHECK(mh_is_type(&r, "application/json") && r.json.root);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.body), HFSB_LIT("  ")));
    mh_post(&s, &r, ONLY,
            "[" CALL(1, "nap", "{\"ms\":150}") "," CALL(
                2, "nap", "{\"ms\":2000}") "]");
    TS_IS(&r, 200, "rested");
    T_CHECK(hfsb_json_count(r.json.root) == 2);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.body), HFSB_LIT("  ")));
    T_CHECK(ts_contains(&r, "}  ")); /* between the answers, too */
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- clients that disconnect or cancel ---- */

/* True when the sleep of a command runs, or is gone, within seconds. */
static bool nap_is(bool there) {
    long long end = hfsb_clock_ms() + 20000;
    while ((tt_running(tt_nap()) > 0) != there && hfsb_clock_ms() < end)
        tt_sleep_ms(10);
    return (tt_running(tt_nap()) > 0) == there;
}

static void a_modern_client_cancels_by_closing(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    hfsb_buf  command = HFSB_INIT;
    mh_start(&s);
    c = mh_begin(&s, BOTH CALLS("nap"), CALL_NOW(1, "nap", "{\"ms\":20000}"));
    T_CHECK(mh_becomes(&mh_seen.began, 1));
    ts_hang_up(&c);
    T_CHECK(mh_becomes(&mh_seen.cancelled, 1));
    /* with a reset, and with plain JSON */
    c = mh_begin(&s, ONLY CALLS("nap"), CALL_NOW(1, "nap", "{\"ms\":20000}"));
    T_CHECK(mh_becomes(&mh_seen.began, 2));
    ts_reset(&c);
    T_CHECK(mh_becomes(&mh_seen.cancelled, 2));
    /* a command is killed */
    tt_with_nap(CALL_NOW(1, "bash",
                         "{\"command\":\"echo x > began; sleep "
                         "@\"}"),
                &command);
    c = mh_begin(&s, BOTH CALLS("bash"), command.ptr);
    T_CHECK(ts_lines("began", 1));
    T_CHECK(nap_is(true));
    ts_hang_up(&c);
    T_CHECK(nap_is(false));
    /* a client that only shuts down its side still waits */
    c = mh_begin(&s, BOTH CALLS("nap"), CALL_NOW(1, "nap", "{\"ms\":100}"));
    (void)shutdown(c.fd, SHUT_WR);
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, "rested");
    ts_hang_up(&c);
    hfsb_buf_free(&command);
    ts_drop(&r);
    ts_end(&s, false);
}

static void a_legacy_call_survives_a_close(void) {
    ts_server s;
    ts_conn   c;
    mh_start(&s);
    c = mh_begin(&s, BOTH, CALL(1, "nap", "{\"ms\":200}"));
    T_CHECK(mh_becomes(&mh_seen.began, 1));
    ts_hang_up(&c);
    T_CHECK(mh_becomes(&mh_seen.ended, 1) && mh_now(&mh_seen.cancelled) == 0);
    c = mh_begin(&s, BOTH,
                 CALL(1, "bash",
                      "{\"command\":\"echo x > began2; "
                      "sleep 0.2; echo x > ended2\"}"));
    T_CHECK(ts_lines("began2", 1));
    ts_reset(&c);
    T_CHECK(ts_lines("ended2", 1));
    /* those of a batch, too */
    c = mh_begin(&s, ONLY,
                 "[" CALL(1, "nap", "{\"ms\":100}") "," CALL(
                     2, "nap", "{\"ms\":200}") "]");
    T_CHECK(mh_becomes(&mh_seen.began, 3));
    ts_reset(&c);
    T_CHECK(mh_becomes(&mh_seen.ended, 3) && mh_now(&mh_seen.cancelled) == 0);
    ts_end(&s, false);
}

static void cancelled_works_only_in_its_session(void) {
    static const char cancel[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
        "\"params\":{\"requestId\":1}}";
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    char      one[64], two[64], fields[128];
    mh_start(&s);
    mh_session(&s, one);
    mh_session(&s, two);
    snprintf(fields, sizeof fields, BOTH "Mcp-Session-Id: %s\r\n", one);
    c = mh_begin(&s, fields, CALL(1, "nap", "{\"ms\":20000}"));
    T_CHECK(mh_becomes(&mh_seen.began, 1));
    mh_in(&s, &r, two, cancel);
    TS_IS(&r, 202, NULL);
    tt_sleep_ms(50);
    T_CHECK(mh_now(&mh_seen.cancelled) == 0);
    mh_in(&s, &r, one, cancel);
    TS_IS(&r, 202, NULL);
    T_CHECK(mh_becomes(&mh_seen.cancelled, 1));
    /* the request ends without an answer */
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 202, NULL);
    T_CHECK(r.body.len == 0);
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

static void cancelled_calls_leave_no_answer_in_a_batch(void) {
    static const char cancel[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
        "\"params\":{\"requestId\":1}}";
    static const char *const rest[] = {"," PING(2), ""};
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    char      id[64], fields[128], body[400];
    size_t    i;
    mh_start(&s);
    mh_session(&s, id);
    snprintf(fields, sizeof fields, ONLY "Mcp-Session-Id: %s\r\n", id);
    for (i = 0; i < TT_COUNT(rest); i++) {
        snprintf(body, sizeof body, "[%s%s]",
                 CALL(1, "nap", "{\"ms\":20000}"), rest[i]);
        c = mh_begin(&s, fields, body);
        T_CHECK(mh_becomes(&mh_seen.began, i + 1));
        mh_in(&s, &r, id, cancel);
        TS_IS(&r, 202, NULL);
        T_CHECK(ts_read(&c, &r, false));
        if (i == 0)
            TS_IS(&r, 200, "[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}]");
        else TS_IS(&r, 202, NULL);
        T_CHECK((i == 0) == (hfsb_json_count(r.json.root) == 1));
        ts_hang_up(&c);
    }
    T_CHECK(mh_becomes(&mh_seen.cancelled, 2));
    ts_drop(&r);
    ts_end(&s, false);
}

/* All use the same ids, and those without a session id share a session. */
static void clients_cannot_cancel_calls_of_others(void) {
    static const char cancel[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
        "\"params\":{\"requestId\":1}}";
    ts_server s;
    ts_conn   old, now;
    ts_reply  r = HFSB_INIT;
    mh_start(&s);
    old = mh_begin(&s, BOTH, CALL(1, "nap", "{\"ms\":400}"));
    now = mh_begin(&s, BOTH CALLS("nap"), CALL_NOW(1, "nap", "{\"ms\":400}"));
    T_CHECK(mh_becomes(&mh_seen.began, 2));
    mh_post(&s, &r, BOTH, cancel);
    TS_IS(&r, 202, NULL);
    mh_post(&s, &r, BOTH "MCP-Protocol-Version: 2026-07-28\r\n", cancel);
    T_CHECK(ts_read(&old, &r, false));
    TS_IS(&r, 200, "rested");
    T_CHECK(ts_read(&now, &r, false));
    TS_IS(&r, 200, "rested");
    T_CHECK(mh_now(&mh_seen.cancelled) == 0);
    ts_hang_up(&old);
    ts_hang_up(&now);
    ts_drop(&r);
    ts_end(&s, false);
}

/* A picture of 5 MB in base64. */
static void put_picture(const char *path) {
    static const char head[] = "\x89PNG\r\n\x1A\n\0\0\0\rIHDR"
                               "\0\0\0\1\0\0\0\1\10\2\0\0\0";
    tt_put(path, hfsb_str_make(head, sizeof head - 1));
    if (truncate(path, 3800000)) abort();
}

/* Sends a batch of reads and gives the server some time before the reply is
   read. True when the reply ends early. */
static bool batch_is_dropped(const ts_server *s, const char *fields,
                             size_t count, int wait_ms) {
    hfsb_buf body = HFSB_INIT;
    ts_conn  c;
    bool     dropped;
    tt_fill(&body, "[" CALL(0, "read", "{\"path\":\"a.png\"}"), 1);
    tt_fill(&body, "," CALL(1, "read", "{\"path\":\"a.png\"}"), count - 1);
    tt_fill(&body, "]", 1);
    c = mh_begin(s, fields, body.ptr);
    tt_sleep_ms(wait_ms);
    while (!c.ended && !hfsb_str_ends(hfsb_buf_str(&c.in),
                                      HFSB_LIT("\r\n0\r\n\r\n")))
        (void)ts_more(&c, 1000);
    dropped = c.ended;
    ts_hang_up(&c);
    hfsb_buf_free(&body);
    return dropped;
}

/* What the client does not read is kept in memory, up to a limit. */
static void a_batch_that_is_not_read_is_dropped(void) {
    static const char *const accepts[] = {ONLY, EVENTS};
    ts_server s;
    ts_reply  r = HFSB_INIT;
    size_t    i;
    int       ms;
    mh_start(&s);
    put_picture("a.png");
    for (i = 0; i < TT_COUNT(accepts); i++) {
        T_CHECK(!batch_is_dropped(&s, accepts[i], 6, 500));
        for (ms = 500; ms < 10000; ms *= 4) /* stalled ones end after 30 s */
            if (batch_is_dropped(&s, accepts[i], 20, ms)) break;
        T_CHECK(ms < 10000);
        mh_post(&s, &r, BOTH, PING(1));
        TS_IS(&r, 200, "\"id\":1");
    }
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- many ---- */

static void ten_calls_run_at_once(void) {
    ts_server s;
    ts_conn   c[10];
    ts_reply  r = HFSB_INIT;
    size_t    i;
    mh_start(&s);
    for (i = 0; i < 10; i++)
        c[i] = mh_begin(&s, BOTH CALLS("bash"),
                        CALL_NOW(1, "bash",
                                 "{\"command\":\"sleep 0.3; echo "
                                 "done\"}"));
    for (i = 0; i < 5; i++) { /* these disconnect */
        ts_hang_up(&c[i]);
        c[i] = mh_begin(&s, BOTH, CALL(1, "nap", "{\"ms\":200}"));
    }
    mh_post(&s, &r, BOTH, PING(1)); /* is answered at once */
    TS_IS(&r, 200, "\"id\":1");
    for (i = 0; i < 10; i++) {
        T_CHECK(ts_read(&c[i], &r, false));
        TS_IS(&r, 200, i < 5 ? "rested" : "done");
        ts_hang_up(&c[i]);
    }
    T_CHECK(mh_seen.most >= 2);
    ts_drop(&r);
    ts_end(&s, false);
}

static void a_stop_ends_calls_and_answers_them(void) {
    ts_server s;
    ts_conn   c;
    mh_start(&s);
    c = mh_begin(&s, BOTH, CALL(1, "nap", "{\"ms\":60000}"));
    T_CHECK(mh_becomes(&mh_seen.began, 1));
    ts_end(&s, true);
    T_CHECK(mh_now(&mh_seen.cancelled) == 1);
    T_CHECK(ts_closes(&c, 20000));
    ts_hang_up(&c);
}

int main(void) {
    tt_begin();
    TT_RUN(progress_comes_as_events);
    TT_RUN(signs_of_life_are_sent_while_a_call_takes_long);
    TT_RUN(a_modern_client_cancels_by_closing);
    TT_RUN(a_legacy_call_survives_a_close);
    TT_RUN(cancelled_works_only_in_its_session);
    TT_RUN(cancelled_calls_leave_no_answer_in_a_batch);
    TT_RUN(clients_cannot_cancel_calls_of_others);
    TT_RUN(a_batch_that_is_not_read_is_dropped);
    TT_RUN(ten_calls_run_at_once);
    TT_RUN(a_stop_ends_calls_and_answers_them);
    return TT_END();
}
