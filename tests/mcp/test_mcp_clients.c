/* test_mcp_clients.c - several clients of MCP over HTTP: which session they
   have, whose commands kill ends, the end of a session. */
#include "../support/t_mcp_http.h"
#include "../support/t_mcp.h"

#define NAMED(name)                                           \
    "\"_meta\":{" KEY "protocolVersion\":\"2026-07-28\"," KEY \
    "clientCapabilities\":{}," KEY "clientInfo\":{\"name\":\"" name \
    "\",\"version\":\"1\"}}"
#define CALL_AS(who, name, arguments) \
    RPC(1, "tools/call",              \
        "\"name\":\"" name "\",\"arguments\":" arguments "," NAMED(who))
#define SLEEP(file)                                                       \
    "{\"command\":\"echo $$ > " file "; exec sleep 300\",\"background\":" \
    "true,\"id\":\"" file "\"}"

/* Sends a message over a connection that stays open. */
static void say(ts_conn *c, ts_reply *r, const char *fields,
                const char *body) {
    hfsb_buf all = HFSB_INIT;
    T_CHECK(hfsb_buf_printf(&all, TS_JSON "%s", fields) == HFSB_OK);
    ts_ask(c, "POST", "/mcp", all.ptr, hfsb_cstr(body));
    T_CHECK(ts_read(c, r, false));
    hfsb_buf_free(&all);
}

/* ---- kill ---- */

/* They have the same name, as two windows of one host do. */
static void two_modern_clients_kill_only_their_own(void) {
    static const char *const bodies[][2] = {
        {CALL_NOW(1, "bash", SLEEP("a.pid")), CALL_NOW(2, "kill", "{}")},
        {CALL_AS("host", "bash", SLEEP("a.pid")),
         CALL_AS("host", "kill", "{}")}};
    ts_server s;
    ts_conn   a, b;
    ts_reply  r = HFSB_INIT;
    size_t    i;
    long      pid;
    for (i = 0; i < TT_COUNT(bodies); i++) {
        unlink("a.pid");
        mh_start(&s);
        a = ts_connect(&s);
        b = ts_connect(&s);
        say(&a, &r, BOTH CALLS("bash"), bodies[i][0]);
        TS_IS(&r, 200, "a.pid");
        pid = tm_pid("a.pid");
        say(&b, &r, BOTH CALLS("kill"), bodies[i][1]);
        TS_IS(&r, 200, "Killed 0 process(es): []");
        T_CHECK(ts_contains(&r, "end one by its id: a.pid)"));
        T_CHECK(tt_alive(pid));
        say(&a, &r, BOTH CALLS("kill"), bodies[i][1]);
        TS_IS(&r, 200, "Killed 1 process(es): [");
        T_CHECK(!ts_contains(&r, "by its id") && !tt_alive(pid));
        ts_hang_up(&a);
        ts_hang_up(&b);
        ts_end(&s, false);
    }
    ts_drop(&r);
}

static void an_id_names_a_job_on_any_connection(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    long      pid;
    unlink("a.pid");
    mh_start(&s);
    mh_post(&s, &r, BOTH CALLS("bash"), CALL_NOW(1, "bash", SLEEP("a.pid")));
    pid = tm_pid("a.pid");
    mh_post(&s, &r, BOTH CALLS("kill"),
            CALL_NOW(2, "kill", "{\"id\":\"a.pid\"}"));
    TS_IS(&r, 200, "Killed 1 process(es): [");
    T_CHECK(!tt_alive(pid));
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- sessions of modern clients ---- */

static void clients_are_told_apart_by_their_names(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    long      pid;
    unlink("a.pid");
    mh_start(&s);
    mh_post(&s, &r, BOTH CALLS("bash"),
            CALL_AS("one", "bash", SLEEP("a.pid")));
    pid = tm_pid("a.pid");
    mh_post(&s, &r, BOTH CALLS("bash_output"),
            CALL_AS("two", "bash_output", "{\"id\":\"a.pid\"}"));
    TS_IS(&r, 200, "No such job: a.pid. There are none.");
    mh_post(&s, &r, BOTH CALLS("kill"), CALL_AS("two", "kill", "{}"));
    T_CHECK(!ts_contains(&r, "a.pid"));
    mh_post(&s, &r, BOTH CALLS("bash_output"),
            CALL_AS("one", "bash_output", "{}"));
    TS_IS(&r, 200, "a.pid: running");
    T_CHECK(tt_alive(pid));
    ts_drop(&r);
    ts_end(&s, true);
}

/* The same name and a header that a user has set: one client, whatever
   connection it takes. */
static void a_header_tells_clients_apart(void) {
    static const char *const eras[][2] = {
        {BOTH CALLS("kill") "X-Hfsb-Client: one\r\n",
         CALL_NOW(2, "kill", "{}")},
        {BOTH "X-Hfsb-Client: one\r\n", CALL(2, "kill", "{}")}};
    ts_server s;
    ts_reply  r = HFSB_INIT;
    size_t    i;
    long      one, two;
    for (i = 0; i < TT_COUNT(eras); i++) {
        unlink("a.pid");
        unlink("b.pid");
        mh_start(&s);
        mh_post(&s, &r, BOTH CALLS("bash") "X-Hfsb-Client: one\r\n",
                CALL_NOW(1, "bash", SLEEP("a.pid")));
        mh_post(&s, &r, BOTH CALLS("bash") "X-Hfsb-Client: two\r\n",
                CALL_NOW(1, "bash", SLEEP("b.pid")));
        one = tm_pid("a.pid");
        two = tm_pid("b.pid");
        mh_post(&s, &r, eras[i][0], eras[i][1]);
        TS_IS(&r, 200, "Killed 1 process(es): [");
        T_CHECK(!tt_alive(one) && tt_alive(two));
        mh_post(&s, &r, "X-Hfsb-Client: a b\r\n", PING(1));
        TS_REFUSED(&r, 400, "X-Hfsb-Client must be visible ASCII");
        mh_post(&s, &r, "X-Hfsb-Client: a\r\nX-Hfsb-Client: a\r\n", PING(1));
        TS_REFUSED(&r, 400, "X-Hfsb-Client must be given once");
        ts_end(&s, true);
    }
    ts_drop(&r);
}

/* ---- the end of a session ---- */

static void end_session(const ts_server *s, ts_reply *r, const char *id,
                        const char *more) {
    char fields[200] = "";
    if (id) snprintf(fields, sizeof fields, "Mcp-Session-Id: %s\r\n", id);
    strcat(fields, more);
    ts_call(s, r, "DELETE", "/mcp", fields, HFSB_LIT(""));
}

static void delete_ends_a_session(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    char      id[64], other[64], fields[128];
    long      pid, waited;
    unlink("a.pid");
    unlink("b.pid");
    mh_start(&s);
    mh_session(&s, id);
    mh_session(&s, other);
    mh_in(&s, &r, other, CALL(1, "bash", SLEEP("b.pid")));
    mh_in(&s, &r, id, CALL(1, "bash", SLEEP("a.pid")));
    pid = tm_pid("a.pid");
    unlink("a.pid");
    snprintf(fields, sizeof fields, BOTH "Mcp-Session-Id: %s\r\n", id);
    c = mh_begin(&s, fields,
                 CALL(2, "bash", "{\"command\":\"echo $$ > a.pid; exec sleep "
                                 "300\"}"));
    waited = tm_pid("a.pid");
    end_session(&s, &r, id, "");
    TS_IS(&r, 200, NULL);
    T_CHECK(r.body.len == 0);
    T_CHECK(tm_gone(pid, 15000) && tm_gone(waited, 15000));
    T_CHECK(ts_read(&c, &r, false)); /* its call has no answer */
    TS_IS(&r, 202, NULL);
    ts_hang_up(&c);
    mh_in(&s, &r, id, PING(1));
    TS_REFUSED(&r, 404, "This session has ended");
    mh_in(&s, &r, id, CALL(1, "bash", "{\"command\":\"touch a.ran\"}"));
    TS_REFUSED(&r, 404, NULL);
    mh_in(&s, &r, id, "[" PING(1) "]");
    TS_REFUSED(&r, 404, NULL);
    T_CHECK(access("a.ran", F_OK) != 0);
    mh_in(&s, &r, id, INITIALIZE); /* a new one */
    TS_IS(&r, 200, "serverInfo");
    T_CHECK(tt_alive(tm_pid("b.pid")));
    mh_in(&s, &r, other, PING(1));
    TS_IS(&r, 200, "\"id\":1");
    ts_drop(&r);
    ts_end(&s, true);
}

static void delete_needs_a_session(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    char      id[64];
    mh_start(&s);
    mh_session(&s, id);
    end_session(&s, &r, id, "MCP-Protocol-Version: 2026-07-28\r\n");
    TS_REFUSED(&r, 405, "Method Not Allowed");
    T_STR(ts_field(&r, "Allow"), "POST");
    end_session(&s, &r, NULL, "");
    TS_REFUSED(&r, 400, "Mcp-Session-Id must name");
    end_session(&s, &r, "a b", "");
    TS_REFUSED(&r, 400, "visible ASCII");
    end_session(&s, &r, "none", "");
    TS_REFUSED(&r, 404, "no such session");
    mh_in(&s, &r, "none", PING(1)); /* nobody has ended it */
    TS_IS(&r, 200, "\"id\":1");
    end_session(&s, &r, id, "MCP-Protocol-Version: 2025-06-18\r\n");
    TS_IS(&r, 200, NULL);
    end_session(&s, &r, id, "");
    TS_REFUSED(&r, 404, NULL);
    ts_drop(&r);
    ts_end(&s, false);
}

/* Clients that start a job and are never heard of again. */
static void two_hundred_sessions_are_opened_and_dropped(void) {
    enum { SESSIONS = 200, KEPT = 64 };
    ts_server s;
    ts_reply  r = HFSB_INIT;
    char      id[64], body[400], file[32];
    long      pids[SESSIONS];
    size_t    i, alive = 0;
    mh_start(&s);
    for (i = 0; i < SESSIONS; i++) {
        mh_session(&s, id);
        snprintf(file, sizeof file, "s%zu.pid", i);
        snprintf(body, sizeof body, CALL(1, "bash", SLEEP("s%zu.pid")), i, i);
        mh_in(&s, &r, id, body);
        TS_IS(&r, 200, "in the background as job");
        pids[i] = tm_pid(file);
        unlink(file);
    }
    for (i = 0; i < SESSIONS - KEPT; i++) T_CHECK(tm_gone(pids[i], 15000));
    for (i = 0; i < SESSIONS; i++) alive += tt_alive(pids[i]);
    T_CHECK(alive == KEPT);
    mh_in(&s, &r, id, CALL(2, "bash_output", "{}")); /* the last is served */
    TS_IS(&r, 200, "s199.pid: running");
    ts_drop(&r);
    ts_end(&s, true);
}

int main(void) {
    tt_begin();
    TT_RUN(two_modern_clients_kill_only_their_own);
    TT_RUN(an_id_names_a_job_on_any_connection);
    TT_RUN(clients_are_told_apart_by_their_names);
    TT_RUN(a_header_tells_clients_apart);
    TT_RUN(delete_ends_a_session);
    TT_RUN(delete_needs_a_session);
    TT_RUN(two_hundred_sessions_are_opened_and_dropped);
    return TT_END();
}
