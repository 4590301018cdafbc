/* test_mcp_own.c - tools that a program adds to MCP. */
#include "../support/t_mcp.h"

/* ---- some tools ---- */

static void greet(void *user, hfsb_mcp_call *call,
                  const hfsb_json_value *arguments) {
    hfsb_str name =
        hfsb_json_str(hfsb_json_get(arguments, "name"), HFSB_LIT("nobody"));
    hfsb_mcp_text(call, "%s, %.*s!", (const char *)user, (int)name.len,
                  name.ptr);
}

static void all_blocks(void *user, hfsb_mcp_call *call,
                       const hfsb_json_value *arguments) {
    (void)user;
    (void)arguments;
    hfsb_mcp_str(call, HFSB_LIT("a \"text\"\n"));
    hfsb_mcp_image(call, "image/png", HFSB_LIT("abc"));
    hfsb_mcp_audio(call, "audio/wav", HFSB_LIT("abcd"));
    hfsb_mcp_resource(call, HFSB_LIT("test://a"), "text/plain",
                      HFSB_LIT("of a resource"));
}

static void fails(void *user, hfsb_mcp_call *call,
                  const hfsb_json_value *arguments) {
    (void)user;
    (void)arguments;
    hfsb_mcp_fail(call, "Give a number below %d.", 10);
}

static void nothing(void *user, hfsb_mcp_call *call,
                    const hfsb_json_value *arguments) {
    (void)user;
    (void)call;
    (void)arguments;
}

static void reports(void *user, hfsb_mcp_call *call,
                    const hfsb_json_value *arguments) {
    (void)user;
    (void)arguments;
    hfsb_mcp_progress(call, 0, 100, "begun");
    hfsb_mcp_log(call, "debug", HFSB_LIT("log of debug"));
    hfsb_mcp_progress(call, 50, 100, "half");
    hfsb_mcp_log(call, "info", HFSB_LIT("log of info"));
    hfsb_mcp_progress(call, 50, 100, "again");
    hfsb_mcp_progress(call, 40, 100, "back");
    hfsb_mcp_log(call, "error", HFSB_LIT("log of error"));
    hfsb_mcp_progress(call, 100, 100, "done");
    hfsb_mcp_text(call, "reported");
}

/* Waits until it is cancelled or the time is over; leaves files as marks. */
static void waits(void *user, hfsb_mcp_call *call,
                  const hfsb_json_value *arguments) {
    bool cancelled;
    (void)arguments;
    tt_put("begun", HFSB_LIT(""));
    cancelled =
        !hfsb_cancel_wait(hfsb_mcp_cancel(call), *(const long long *)user);
    tt_put(cancelled ? "cancelled" : "waited", HFSB_LIT(""));
    hfsb_mcp_progress(call, 1e6, 0, "too late");
    hfsb_mcp_text(call, "waited");
}

/* Waits for a file and removes it. */
static bool left(const char *name) {
    return tm_file(name, true) && unlink(name) == 0;
}

static void chatters(void *user, hfsb_mcp_call *call,
                     const hfsb_json_value *arguments) {
    int i;
    (void)user;
    (void)arguments;
    for (i = 1; i <= 20000; i++) hfsb_mcp_progress(call, i, 0, "and on");
    hfsb_mcp_text(call, "done talking");
}

static hfsb_mcp_tool tool_of(const char *name,
                             void (*fn)(void *, hfsb_mcp_call *,
                                        const hfsb_json_value *),
                             void *user) {
    hfsb_mcp_tool tool = HFSB_INIT;
    tool.name = name;
    tool.description = "Of the tests.";
    tool.fn = fn;
    tool.user = user;
    return tool;
}

static long long wait_ms;

static void start(tm_client *c, const hfsb_mcp_opts *opts) {
    static char   hello[] = "Hello";
    hfsb_mcp_tool list[7];
    char          schema[] = "{\"type\":\"object\",\"properties\":{\"name\":"
                             "{\"type\":\"string\"}}}";
    size_t        i;
    tm_open(c, opts);
    list[0] = tool_of("greet", greet, hello);
    list[0].schema = schema;
    list[0].title = "Greet";
    list[0].annotations = "{\"readOnlyHint\":true}";
    list[1] = tool_of("all_blocks", all_blocks, NULL);
    list[2] = tool_of("fails", fails, NULL);
    list[3] = tool_of("nothing", nothing, NULL);
    list[4] = tool_of("reports", reports, NULL);
    list[5] = tool_of("waits", waits, &wait_ms);
    list[6] = tool_of("chatters", chatters, NULL);
    for (i = 0; i < TT_COUNT(list); i++)
        T_CHECK(hfsb_mcp_add_tool(c->mcp, &list[i], NULL) == HFSB_OK);
    memset(schema, 'x', 5); /* it was copied */
    tm_pipes(c);
    tm_run_fds(c, c->theirs[0], c->theirs[1]);
}

/* ---- results ---- */

static void own_tools_are_listed_and_called(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    tm_client     c;
    o.no_tools = true;
    o.name = "own";
    o.title = "Of the tests";
    o.version = "7.1";
    o.instructions = HFSB_LIT("Be brief.");
    start(&c, &o);
    tm_initialize(&c, "2025-11-25");
    T_CHECK(tm_wait(&c, "\"init\""));
    T_STR(hfsb_json_str(hfsb_json_get(tm_result(&c, "serverInfo"), "version"),
                        HFSB_LIT("")),
          "7.1");
    T_STR(hfsb_json_str(tm_result(&c, "instructions"), HFSB_LIT("")),
          "Be brief.");
    tm_send(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    T_CHECK(tm_wait(&c, "1"));
    T_CHECK(hfsb_json_count(tm_result(&c, "tools")) == 7);
    tm_call(&c, "2", "greet", "{\"name\":\"you\"}");
    T_CHECK(tm_wait(&c, "2"));
    T_STR(c.text, "Hello, you!");
    tm_send(&c, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\","
                "\"params\":{\"name\":\"greet\"}}");
    T_CHECK(tm_wait(&c, "3"));
    T_STR(c.text, "Hello, nobody!");
    tm_call(&c, "4", "all_blocks", "{}");
    T_CHECK(tm_wait(&c, "4"));
    T_CHECK(hfsb_json_count(tm_result(&c, "content")) == 4);
    T_CHECK(tm_count(&c, "\"YWJj\"") == 1 &&
            tm_count(&c, "\"YWJjZA==\"") == 1 &&
            tm_count(&c, "of a resource") == 1);
    tm_call(&c, "5", "fails", "{}");
    T_CHECK(tm_wait(&c, "5") && tm_failed(&c));
    T_STR(c.text, "Give a number below 10.");
    tm_call(&c, "6", "nothing", "{}");
    T_CHECK(tm_wait(&c, "6") && !tm_failed(&c));
    T_STR(c.text, "(no output)");
    tm_call(&c, "7", "read", "{}");
    T_CHECK(tm_wait(&c, "7") && tm_code(&c) == -32602);
    tm_end(&c);
}

static void names_are_checked(void) {
    static const char *const bad[] = {
        "read", "taken", "", "with blank", "d\xc3\xa9j\xc3\xa0", "dot.ted"};
    hfsb_mcp_tool tool = tool_of("taken", nothing, NULL);
    tm_client     c;
    hfsb_err      err = HFSB_INIT;
    size_t        i;
    tm_open(&c, NULL);
    T_CHECK(hfsb_mcp_add_tool(c.mcp, &tool, NULL) == HFSB_OK);
    for (i = 0; i < TT_COUNT(bad); i++) {
        tool.name = bad[i];
        T_CHECK(hfsb_mcp_add_tool(c.mcp, &tool, &err) == HFSB_ARG);
        T_CHECK(err.msg[0] != '\0');
    }
    tool.name = "good";
    tool.schema = "[]";
    T_CHECK(hfsb_mcp_add_tool(c.mcp, &tool, &err) == HFSB_ARG);
    tm_end(&c);
}

/* ---- progress and logs ---- */

static void own_progress_comes_in_order_before_the_result(void) {
    tm_client   c;
    const char *begun, *half, *done, *result;
    start(&c, NULL);
    tm_watch(&c, "1", "reports", "{}");
    T_CHECK(tm_wait(&c, "1"));
    T_CHECK(tm_count(&c, "notifications/progress") == 3);
    T_CHECK(tm_count(&c, "notifications/message") == 0); /* logging is off */
    begun = strstr(c.got.ptr, "begun");
    half = strstr(c.got.ptr, "half");
    done = strstr(c.got.ptr, "done");
    result = strstr(c.got.ptr, "reported");
    T_CHECK(begun && half && done && result && begun < half && half < done &&
            done < result);
    tm_call(&c, "2", "reports", "{}");
    T_CHECK(tm_wait(&c, "2"));
    T_CHECK(tm_count(&c, "notifications/progress") == 3);
    tm_end(&c);
}

static void logs_below_the_level_are_not_sent(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    tm_client     c;
    o.logging = true;
    start(&c, &o);
    tm_call(&c, "1", "reports", "{}");
    T_CHECK(tm_wait(&c, "1"));
    T_CHECK(tm_count(&c, "log of debug") == 0 &&
            tm_count(&c, "log of info") == 1);
    tm_send(&c, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":"
                "\"logging/setLevel\",\"params\":{\"level\":\"error\"}}");
    T_CHECK(tm_wait(&c, "2") && tm_code(&c) == 0);
    tm_call(&c, "3", "reports", "{}");
    T_CHECK(tm_wait(&c, "3"));
    T_CHECK(tm_count(&c, "log of info") == 1 &&
            tm_count(&c, "log of error") == 2);
    tm_send(&c, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":"
                "\"logging/setLevel\",\"params\":{\"level\":\"loud\"}}");
    T_CHECK(tm_wait(&c, "4") && tm_code(&c) == -32602);
    tm_call_more(&c, "5", "reports", "{}",
                 ",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
                 "\"2026-07-28\",\"io.modelcontextprotocol/"
                 "clientCapabilities\":{},\"io.modelcontextprotocol/"
                 "logLevel\":\"debug\"}");
    T_CHECK(tm_wait(&c, "5"));
    T_CHECK(tm_count(&c, "log of debug") == 1);
    tm_end(&c);
}

static void a_silent_tool_has_progress_by_the_clock(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    tm_client     c;
    o.beat_ms = 30;
    o.answer_ms = 100; /* does not apply to own tools */
    wait_ms = 1000;
    start(&c, &o);
    tm_watch(&c, "1", "waits", "{}");
    tm_ping(&c, "2");
    T_CHECK(tm_wait(&c, "2"));
    T_CHECK(tm_wait(&c, "1"));
    T_STR(c.text, "waited");
    T_CHECK(tm_count(&c, "notifications/progress") >= 4);
    T_CHECK(left("begun") && left("waited"));
    tm_end(&c);
}

static void excess_notifications_are_dropped(void) {
    tm_client c;
    start(&c, NULL);
    tm_watch(&c, "1", "chatters", "{}");
    tt_sleep_ms(100);
    T_CHECK(tm_wait(&c, "1"));
    T_STR(c.text, "done talking");
    T_CHECK(tm_count(&c, "notifications/progress") > 100);
    tm_end(&c);
}

/* ---- cancelling ---- */

static void cancelling_reaches_an_own_tool(void) {
    tm_client c;
    wait_ms = 30000;
    start(&c, NULL);
    tm_watch(&c, "1", "waits", "{}");
    T_CHECK(left("begun"));
    tm_cancel(&c, "1");
    T_CHECK(left("cancelled"));
    tm_ping(&c, "2");
    T_CHECK(tm_wait(&c, "2"));
    tm_listen(&c, 50);
    T_CHECK(tm_count(&c, "") == 1); /* nothing else was sent */
    tm_end(&c);
}

static void the_end_of_input_cancels_own_tools(void) {
    tm_client c;
    long long began;
    int       stops;
    wait_ms = 30000;
    /* by the end of input, by one stop, by two */
    for (stops = 0; stops < 3; stops++) {
        start(&c, NULL);
        tm_call(&c, "1", "waits", "{}");
        T_CHECK(left("begun"));
        began = hfsb_clock_ms();
        if (stops > 0) hfsb_server_stop(c.server);
        if (stops > 1) hfsb_server_stop(c.server);
        tm_end(&c);
        T_CHECK(hfsb_clock_ms() - began < 25000);
        T_CHECK(left("cancelled"));
    }
}

static void closing_the_server_cancels_own_tools(void) {
    hfsb_mcp_tool tool = tool_of("waits", waits, &wait_ms);
    tm_client     c;
    hfsb_err      err = HFSB_INIT;
    long long     began = hfsb_clock_ms();
    wait_ms = 30000;
    tm_open(&c, NULL);
    tm_pipes(&c);
    T_CHECK(hfsb_mcp_add_tool(c.mcp, &tool, &err) == HFSB_OK);
    T_CHECK(hfsb_mcp_stdio(c.mcp, c.theirs[0], c.theirs[1], &err) == HFSB_OK);
    tm_call(&c, "1", "waits", "{}");
    while (access("begun", F_OK) && hfsb_clock_ms() - began < TM_WAIT_MS)
        T_CHECK(hfsb_server_poll(c.server, 10));
    T_CHECK(left("begun"));
    began = hfsb_clock_ms();
    hfsb_server_close(c.server);
    c.server = NULL;
    T_CHECK(hfsb_clock_ms() - began < 25000);
    T_CHECK(left("cancelled"));
    tm_end(&c);
}

static void read_only_leaves_out_tools_that_change_things(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    hfsb_mcp_tool bad = tool_of("bad", fails, NULL);
    tm_client     c;
    o.read_only = true;
    start(&c, &o);
    tm_send(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    T_CHECK(tm_wait(&c, "1"));
    T_CHECK(hfsb_str_find(hfsb_buf_str(&c.got), HFSB_LIT("\"greet\"")) !=
            HFSB_NPOS);
    T_CHECK(hfsb_str_find(hfsb_buf_str(&c.got), HFSB_LIT("\"fails\"")) ==
            HFSB_NPOS);
    tm_call(&c, "2", "greet", "{\"name\":\"you\"}");
    T_CHECK(tm_wait(&c, "2") && tm_code(&c) == 0);
    tm_call(&c, "3", "fails", "{}");
    T_CHECK(tm_wait(&c, "3") && tm_code(&c) == -32602);
    tm_end(&c);
    /* the definition is checked all the same */
    tm_open(&c, &o);
    bad.schema = "[]";
    T_CHECK(hfsb_mcp_add_tool(c.mcp, &bad, NULL) == HFSB_ARG);
    bad.schema = NULL;
    bad.annotations = "{\"readOnlyHint\":";
    T_CHECK(hfsb_mcp_add_tool(c.mcp, &bad, NULL) == HFSB_ARG);
    bad.annotations = "{\"readOnlyHint\":false}";
    T_CHECK(hfsb_mcp_add_tool(c.mcp, &bad, NULL) == HFSB_OK);
    tm_end(&c);
}

int main(void) {
    tt_begin();
    TT_RUN(own_tools_are_listed_and_called);
    TT_RUN(names_are_checked);
    TT_RUN(read_only_leaves_out_tools_that_change_things);
    TT_RUN(own_progress_comes_in_order_before_the_result);
    TT_RUN(logs_below_the_level_are_not_sent);
    TT_RUN(a_silent_tool_has_progress_by_the_clock);
    TT_RUN(excess_notifications_are_dropped);
    TT_RUN(cancelling_reaches_an_own_tool);
    TT_RUN(the_end_of_input_cancels_own_tools);
    TT_RUN(closing_the_server_cancels_own_tools);
    return TT_END();
}
