/* test_mcp_shared.c - one server for MCP sessions and /api: their commands
   share the limits, and /api reaches all of them. */
#include "../support/t_mcp_http.h"
#include "../support/t_mcp.h"

#define SLEEP(name)                                                       \
    "{\"command\":\"echo $$ > " name "; exec sleep 300\",\"background\":" \
    "true,\"id\":\"" name "\"}"
#define RUN(name) CALL(1, "bash", SLEEP(name))

static void start(ts_server *s, size_t running, size_t waiting) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_mcp_opts            mcp = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    hfsb_err                 err = HFSB_INIT;
    tools.max_running = running;
    tools.max_waiting = waiting;
    box.tools = mcp.tools = &tools;
    ts_open(s, NULL);
    T_CHECK(hfsb_server_add_sandbox(s->server, &box, &err) == HFSB_OK);
    T_CHECK(hfsb_server_add_mcp(s->server, &mcp, NULL, &err) == HFSB_OK);
    ts_run(s);
}

/* Calls in the session of that name, which is opened by the first call. */
static void in_session(const ts_server *s, ts_reply *r, const char *name,
                       const char *body) {
    char fields[128];
    snprintf(fields, sizeof fields, BOTH "X-Hfsb-Client: %s\r\n", name);
    mh_post(s, r, fields, body);
}

static void commands_of_all_sessions_share_the_limit(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    long      pid;
    unlink("a.pid"), unlink("b.pid"), unlink("c.pid"), unlink("d.pid");
    start(&s, 2, 2);
    in_session(&s, &r, "one", RUN("a.pid"));
    TS_IS(&r, 200, "Started");
    ts_post(&s, &r, "/api/bash", SLEEP("b.pid"));
    TS_IS(&r, 200, "Started");
    in_session(&s, &r, "two", RUN("c.pid"));
    TS_IS(&r, 200, "Waits for other commands");
    tt_sleep_ms(5); /* waits longer than the next one */
    ts_post(&s, &r, "/api/bash", SLEEP("d.pid"));
    TS_IS(&r, 200, "Waits for other commands");
    T_CHECK(ts_commands(&s, 2, 2));
    in_session(&s, &r, "three", RUN("e.pid"));
    TS_IS(&r, 200, "Too many commands are waiting (2)");
    ts_post(&s, &r, "/api/bash", SLEEP("e.pid"));
    T_CHECK(r.status == 429);
    pid = tm_pid("a.pid");
    in_session(&s, &r, "one", CALL(2, "kill", "{}"));
    TS_IS(&r, 200, "Killed 1 process(es): [");
    T_CHECK(!tt_alive(pid) && tm_pid("c.pid") > 0); /* the oldest one */
    T_CHECK(ts_commands(&s, 2, 1) && access("d.pid", F_OK) != 0);
    ts_get(&s, &r, "/api/metrics");
    TS_IS(&r, 200, "hfsb_commands_running 2\n");
    TS_IS(&r, 200, "hfsb_commands_waiting 1\n");
    TS_IS(&r, 200, "hfsb_commands_total 4\n");
    ts_drop(&r);
    ts_end(&s, false);
}

#define PLAN(content)                                                  \
    "{\"todos\":[{\"id\":\"1\",\"content\":\"" content "\",\"status\":" \
    "\"pending\"}]}"

/* For people, who see the plan of the agent whichever way it comes. */
static void api_shows_the_plan_that_was_sent_last(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    start(&s, 2, 2);
    in_session(&s, &r, "one", CALL(1, "plan_tool", PLAN("first")));
    TS_IS(&r, 200, "Plan updated: 1 pending");
    ts_get(&s, &r, "/api/plan");
    TS_IS(&r, 200, "[{\"id\":\"1\",\"content\":\"first\"");
    in_session(&s, &r, "two", CALL(1, "plan_tool", PLAN("second")));
    TS_IS(&r, 200, "Plan updated");
    in_session(&s, &r, "two", CALL(2, "plan_tool", "{\"todos\":[{}]}"));
    ts_get(&s, &r, "/api/plan");
    TS_IS(&r, 200, "[{\"id\":\"1\",\"content\":\"second\"");
    ts_post(&s, &r, "/api/plan_tool", PLAN("third"));
    ts_get(&s, &r, "/api/plan");
    TS_IS(&r, 200, "[{\"id\":\"1\",\"content\":\"third\"");
    ts_drop(&r);
    ts_end(&s, false);
}

/* So a limit on memory or processes counts once. */
static void both_services_share_the_confinement(void) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_mcp_opts            mcp = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    hfsb_mcp                *made = NULL;
    ts_server                s;
    int                      i;
    for (i = 0; i < 2; i++) {
        const hfsb_confine *one, *other;
        tools.confine.max_file_size = 1u << 30;
        box.tools = mcp.tools = &tools;
        ts_open(&s, NULL);
        T_CHECK(!hfsb_server_tools(s.server));
        T_CHECK(hfsb_server_add_sandbox(s.server, &box, NULL) == HFSB_OK);
        tools.confine.max_file_size += (unsigned long long)i;
        T_CHECK(hfsb_server_add_mcp(s.server, &mcp, &made, NULL) == HFSB_OK);
        one = hfsb_tools_confine(hfsb_server_tools(s.server));
        other = hfsb_tools_confine(hfsb_mcp_tools(made));
        T_CHECK(one && other && (one == other) == (i == 0));
        ts_end(&s, false);
    }
}

/* A session that is ended gives its places to others. */
static void a_session_that_ends_makes_room(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    char      id[64], fields[128];
    hfsb_str  none = HFSB_INIT;
    unlink("a.pid"), unlink("b.pid");
    start(&s, 1, 9);
    mh_session(&s, id);
    mh_in(&s, &r, id, RUN("a.pid"));
    TS_IS(&r, 200, "Started");
    ts_post(&s, &r, "/api/bash", SLEEP("b.pid"));
    TS_IS(&r, 200, "Waits for other commands");
    snprintf(fields, sizeof fields, "Mcp-Session-Id: %s\r\n", id);
    ts_call(&s, &r, "DELETE", "/mcp", fields, none);
    T_CHECK(r.status == 200);
    T_CHECK(tm_pid("b.pid") > 0 && ts_commands(&s, 1, 0));
    ts_drop(&r);
    ts_end(&s, false);
}

static void api_reaches_the_jobs_of_all_sessions(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    long      a, b, c;
    unlink("a.pid"), unlink("b.pid"), unlink("c.pid");
    start(&s, 0, 0);
    in_session(&s, &r, "one", RUN("a.pid"));
    in_session(&s, &r, "two", RUN("b.pid"));
    ts_post(&s, &r, "/api/bash", SLEEP("c.pid"));
    a = tm_pid("a.pid"), b = tm_pid("b.pid"), c = tm_pid("c.pid");
    T_CHECK(ts_commands(&s, 3, 0));
    ts_get(&s, &r, "/api/jobs");
    T_CHECK(hfsb_json_count(hfsb_json_get(r.json.root, "jobs")) == 3);
    TS_IS(&r, 200, "\"id\":\"a.pid\",\"state\":\"running\"");
    TS_IS(&r, 200, "\"id\":\"b.pid\",\"state\":\"running\"");
    ts_get(&s, &r, "/api/jobs/b.pid");
    TS_IS(&r, 200, "exec sleep 300");
    ts_post(&s, &r, "/api/bash_output", "{}");
    TS_IS(&r, 200, "b.pid: running");
    ts_post(&s, &r, "/api/kill", "{\"id\":\"b.pid\"}");
    TS_IS(&r, 200, "Killed 1 process(es): [");
    T_CHECK(!tt_alive(b) && tt_alive(a) && tt_alive(c));
    /* a session reaches only its own */
    in_session(&s, &r, "two", CALL(2, "kill", "{}"));
    TS_IS(&r, 200, "Killed 0 process(es): []");
    in_session(&s, &r, "two", CALL(3, "kill", "{\"id\":\"c.pid\"}"));
    TS_IS(&r, 200, "No such job: c.pid");
    in_session(&s, &r, "two", CALL(4, "bash_output", "{\"id\":\"a.pid\"}"));
    TS_IS(&r, 200, "No such job: a.pid");
    T_CHECK(tt_alive(a) && tt_alive(c));
    ts_post(&s, &r, "/api/kill", "{}");
    TS_IS(&r, 200, "Killed 2 process(es): [");
    T_CHECK(!tt_alive(a) && !tt_alive(c));
    T_CHECK(ts_commands(&s, 0, 0));
    ts_drop(&r);
    ts_end(&s, false);
}

/* Output of a session's job, while it runs and at its end. */
static void api_reads_and_feeds_jobs_of_sessions(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    start(&s, 0, 0);
    in_session(&s, &r, "one",
               CALL(1, "bash", "{\"command\":\"read x; echo got $x; read y\","
                               "\"background\":true,\"id\":\"in\"}"));
    TS_IS(&r, 200, "Started");
    ts_post(&s, &r, "/api/jobs/in/input", "{\"text\":\"it\\n\"}");
    TS_IS(&r, 200, "Sent 3 bytes");
    ts_get(&s, &r, "/api/jobs/in/output?wait_ms=20000");
    TS_IS(&r, 200, "got it\\n");
    T_CHECK(ts_flag(&r, "running"));
    ts_post(&s, &r, "/api/jobs/in/input", "{\"eof\":true}");
    ts_get(&s, &r, "/api/jobs/in/output?offset=7&wait_ms=20000");
    T_CHECK(!ts_flag(&r, "running") && ts_int(&r, "exit_code") == 1);
    /* an id that a session has is free for others */
    ts_post(&s, &r, "/api/bash", "{\"command\":\"echo own\",\"id\":\"in\"}");
    TS_OK(&r, "own\n");
    ts_get(&s, &r, "/api/jobs/in");
    TS_IS(&r, 200, "echo own");
    ts_drop(&r);
    ts_end(&s, false);
}

/* While /api waits for a job its session ends, and then the server. */
static void jobs_outlive_the_calls_that_wait_for_them(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    char      id[64], fields[128];
    hfsb_str  none = HFSB_INIT;
    size_t    way;
    for (way = 0; way < 2; way++) {
        ts_conn output, kill_call;
        unlink("a.pid");
        start(&s, 0, 0);
        mh_session(&s, id);
        mh_in(&s, &r, id,
              CALL(1, "bash", "{\"command\":\"trap '' TERM; echo $$ > a.pid; "
                              "while :; do sleep 0.1; done\",\"background\":"
                              "true,\"id\":\"a\"}"));
        T_CHECK(tm_pid("a.pid") > 0);
        output = ts_connect(&s);
        ts_ask(&output, "GET", "/api/jobs/a/output?wait_ms=60000", "", none);
        kill_call = ts_connect(&s);
        ts_ask(&kill_call, "POST", "/api/kill", TS_JSON, HFSB_LIT("{}"));
        tt_sleep_ms(100);
        snprintf(fields, sizeof fields, "Mcp-Session-Id: %s\r\n", id);
        ts_call(&s, &r, "DELETE", "/mcp", fields, none);
        T_CHECK(r.status == 200);
        if (!way) {
            T_CHECK(ts_read(&kill_call, &r, false));
            TS_IS(&r, 200, "Killed 1 process(es): [");
            T_CHECK(ts_read(&output, &r, false) && !ts_flag(&r, "running"));
            mh_session(&s, id); /* frees the old one */
        }
        ts_hang_up(&output);
        ts_hang_up(&kill_call);
        ts_end(&s, way == 1);
    }
    ts_drop(&r);
}

int main(void) {
    tt_begin();
    TT_RUN(commands_of_all_sessions_share_the_limit);
    TT_RUN(api_shows_the_plan_that_was_sent_last);
    TT_RUN(both_services_share_the_confinement);
    TT_RUN(a_session_that_ends_makes_room);
    TT_RUN(api_reaches_the_jobs_of_all_sessions);
    TT_RUN(api_reads_and_feeds_jobs_of_sessions);
    TT_RUN(jobs_outlive_the_calls_that_wait_for_them);
    return TT_END();
}
