/* test_mcp_journal.c - calls over MCP in the journal, next to those of
   /api. */
#include "../support/t_mcp_http.h"

typedef struct site {
    ts_server     s;
    hfsb_journal *journal;
    ts_reply      r;
} site;

/* A server with both, and the tools "nap" and "steps". */
static void open_site(site *x) {
    hfsb_journal_opts        j = HFSB_INIT;
    hfsb_tools_opts          t = HFSB_INIT;
    hfsb_server_sandbox_opts o = HFSB_INIT;
    hfsb_mcp_opts            m = HFSB_INIT;
    hfsb_mcp                *mcp = NULL;
    memset(x, 0, sizeof *x);
    j.alloc = tt_alloc();
    T_CHECK(hfsb_journal_open(&j, &x->journal, NULL) == HFSB_OK);
    t.journal = x->journal;
    o.tools = m.tools = &t;
    ts_open(&x->s, NULL);
    if (hfsb_server_add_sandbox(x->s.server, &o, NULL) != HFSB_OK ||
        hfsb_server_add_mcp(x->s.server, &m, &mcp, NULL) != HFSB_OK ||
        !mh_add_tools(mcp))
        abort();
    ts_run(&x->s);
}

static void close_site(site *x) {
    ts_drop(&x->r);
    ts_end(&x->s, false);
    hfsb_journal_close(x->journal);
}

static void say(site *x, const char *fields, const char *body) {
    ts_call(&x->s, &x->r, "POST", "/mcp", fields, hfsb_cstr(body));
    T_CHECK(x->r.status == 200);
}

/* The text of a member of the event with number i, counted from 0. */
static const char *event(site *x, size_t i, const char *key) {
    ts_get(&x->s, &x->r, "/api/events");
    return tt_keep(hfsb_json_str(
        hfsb_json_get(
            hfsb_json_at(hfsb_json_get(x->r.json.root, "events"), i), key),
        HFSB_LIT("none")));
}

static void calls_of_all_clients_are_in_one_journal(void) {
    site x;
    char fields[256];
    open_site(&x);
    ts_post(&x.s, &x.r, "/api/exists", "{\"path\":\"a\"}");
    /* a session of its own */
    say(&x, TS_JSON BOTH, INITIALIZE);
    snprintf(fields, sizeof fields, TS_JSON BOTH "Mcp-Session-Id: %s\r\n",
             tt_keep(ts_field(&x.r, "Mcp-Session-Id")));
    say(&x, fields, CALL(2, "bash", "{\"command\":\"exit 5\"}"));
    say(&x, fields, CALL(3, "read", "{\"path\":\"none\"}"));
    /* a modern client without a name, and one with */
    say(&x, TS_JSON BOTH CALLS("glob"),
        CALL_NOW(4, "glob", "{\"pattern\":\"*.c\"}"));
    say(&x, TS_JSON BOTH CALLS("list"),
        RPC(5, "tools/call",
            "\"name\":\"list\",\"arguments\":{},\"_meta\":{" KEY
            "protocolVersion\":\"2026-07-28\"," KEY
            "clientCapabilities\":{}," KEY
            "clientInfo\":{\"name\":\"new \\\"one\",\"version\":\"2\"}}"));
    T_CHECK(!strcmp(event(&x, 0, "who"), "api"));
    T_CHECK(!strcmp(event(&x, 1, "who"), "mcp:t"));
    T_CHECK(!strcmp(event(&x, 1, "command"), "exit 5"));
    T_CHECK(!strcmp(event(&x, 2, "state"), "done"));
    T_CHECK(ts_contains(&x.r, "\"exit_code\":5"));
    T_CHECK(!strcmp(event(&x, 3, "tool"), "read"));
    T_CHECK(!strcmp(event(&x, 4, "who"), "mcp"));
    T_CHECK(!strcmp(event(&x, 5, "who"), "mcp:new \"one"));
    T_CHECK(ts_int(&x.r, "next") == 6);
    close_site(&x);
}

/* Tools that the program added, and the plan. */
static void other_tools_are_in_the_journal(void) {
    site x;
    open_site(&x);
    say(&x, TS_JSON BOTH,
        CALL(1, "nap", "{\"ms\":1,\"api_key\":\"hidden-words\"}"));
    say(&x, TS_JSON BOTH,
        CALL(2, "plan_tool",
             "{\"todos\":[{\"id\":\"1\",\"content\":\"x\",\"status\":"
             "\"pending\"}]}"));
    T_CHECK(!strcmp(event(&x, 0, "tool"), "nap"));
    T_CHECK(ts_contains(&x.r, "\"arguments\":{\"ms\":1,\"api_key\":\"***\"}"));
    T_CHECK(!ts_contains(&x.r, "hidden-words"));
    T_CHECK(!strcmp(event(&x, 1, "tool"), "plan_tool"));
    T_CHECK(ts_contains(&x.r, "\"todos_count\":1"));
    close_site(&x);
}

/* Calls that no tool sees. */
static void refused_calls_are_in_the_journal(void) {
    site x;
    open_site(&x);
    say(&x, TS_JSON BOTH,
        CALL(1, "rm_rf", "{\"path\":\"/etc\",\"password\":\"hidden-words\"}"));
    T_CHECK(ts_contains(&x.r, "Unknown tool"));
    say(&x, TS_JSON BOTH, CALL(2, "bash", "[\"ls\"]"));
    say(&x, TS_JSON BOTH, CALL(3, "nap", "7"));
    T_CHECK(!strcmp(event(&x, 0, "tool"), "rm_rf"));
    T_CHECK(!strcmp(event(&x, 0, "who"), "mcp"));
    T_CHECK(!strcmp(event(&x, 0, "path"), "/etc"));
    T_CHECK(!strcmp(event(&x, 0, "state"), "done"));
    T_CHECK(!strcmp(event(&x, 0, "error"), "Unknown tool: rm_rf"));
    T_CHECK(!ts_contains(&x.r, "hidden-words"));
    T_CHECK(!strcmp(event(&x, 1, "tool"), "bash"));
    T_CHECK(!strncmp(event(&x, 1, "error"), "`arguments` must be", 19));
    T_CHECK(!strcmp(event(&x, 2, "tool"), "nap"));
    T_CHECK(ts_contains(&x.r, "\"success\":false"));
    T_CHECK(ts_int(&x.r, "next") == 3);
    close_site(&x);
}

int main(void) {
    tt_begin();
    TT_RUN(calls_of_all_clients_are_in_one_journal);
    TT_RUN(other_tools_are_in_the_journal);
    TT_RUN(refused_calls_are_in_the_journal);
    return TT_END();
}
