/* t_mcp_http.h - for tests of MCP over HTTP: messages, heads, and a server
   with two tools of its own. */
#ifndef T_MCP_HTTP_H
#define T_MCP_HTTP_H
#include "t_conn.h"
#ifdef HFSBI_SPLIT
#include "../../src/mcp/mcp.h"
#endif

#define KEY "\"io.modelcontextprotocol/"
#define META                                                  \
    "\"_meta\":{" KEY "protocolVersion\":\"2026-07-28\"," KEY \
    "clientCapabilities\":{}}"
#define TOKEN_META                        \
    "\"_meta\":{\"progressToken\":7," KEY \
    "protocolVersion\":\"2026-07-28\"," KEY "clientCapabilities\":{}}"
#define BOTH   "Accept: application/json, text/event-stream\r\n"
#define EVENTS "Accept: text/event-stream\r\n"
#define ONLY   "Accept: application/json\r\n"
#define MODERN(method) \
    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " method "\r\n"
#define CALLS(name) MODERN("tools/call") "Mcp-Name: " name "\r\n"
#define RPC(id, method, params)                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"" method "\"," \
    "\"params\":{" params "}}"
#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"ping\"}"
#define NOTE \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
#define CALL(id, name, arguments) \
    RPC(id, "tools/call", "\"name\":\"" name "\",\"arguments\":" arguments)
#define CALL_NOW(id, name, arguments) \
    RPC(id, "tools/call",             \
        "\"name\":\"" name "\",\"arguments\":" arguments "," META)
#define INITIALIZE                             \
    RPC(1, "initialize",                       \
        "\"protocolVersion\":\"2025-11-25\","  \
        "\"capabilities\":{},\"clientInfo\":{" \
        "\"name\":\"t\",\"version\":\"1\"}")

/* ---- a server with two tools ---- */

static struct {
    pthread_mutex_t lock;
    size_t          began, cancelled, ended, at_once, most;
} mh_seen = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, 0, 0};

HFSBI_UNUSED static void mh_count(size_t *value, size_t n) {
    pthread_mutex_lock(&mh_seen.lock);
    *value += n;
    pthread_mutex_unlock(&mh_seen.lock);
}

HFSBI_UNUSED static size_t mh_now(const size_t *value) {
    size_t n;
    pthread_mutex_lock(&mh_seen.lock);
    n = *value;
    pthread_mutex_unlock(&mh_seen.lock);
    return n;
}

HFSBI_UNUSED static bool mh_becomes(const size_t *value, size_t n) {
    long long end = hfsb_clock_ms() + 20000;
    while (mh_now(value) != n && hfsb_clock_ms() < end) tt_sleep_ms(2);
    return mh_now(value) == n;
}

/* Waits some ms, unless it is cancelled. */
HFSBI_UNUSED static void nap_tool(void *user, hfsb_mcp_call *call,
                                  const hfsb_json_value *arguments) {
    long long end =
        hfsb_clock_ms() + hfsb_json_int(hfsb_json_get(arguments, "ms"), 0);
    (void)user;
    mh_count(&mh_seen.began, 1);
    pthread_mutex_lock(&mh_seen.lock);
    if (++mh_seen.at_once > mh_seen.most) mh_seen.most = mh_seen.at_once;
    pthread_mutex_unlock(&mh_seen.lock);
    while (hfsb_clock_ms() < end && !hfsb_cancel_is_set(hfsb_mcp_cancel(call)))
        tt_sleep_ms(2);
    mh_count(hfsb_cancel_is_set(hfsb_mcp_cancel(call)) ? &mh_seen.cancelled
                                                       : &mh_seen.ended,
             1);
    pthread_mutex_lock(&mh_seen.lock);
    mh_seen.at_once--;
    pthread_mutex_unlock(&mh_seen.lock);
    hfsb_mcp_text(call, "rested");
}

HFSBI_UNUSED static void progress_tool(void *user, hfsb_mcp_call *call,
                                       const hfsb_json_value *arguments) {
    int i;
    (void)user;
    (void)arguments;
    for (i = 0; i < 3; i++) {
        hfsb_mcp_progress(call, 50 * i, 100, "on the way");
        tt_sleep_ms(5);
    }
    hfsb_mcp_text(call, "arrived");
}

HFSBI_UNUSED static bool mh_add_tools(hfsb_mcp *mcp) {
    hfsb_mcp_tool tool = HFSB_INIT;
    hfsb_err      err = HFSB_INIT;
    hfsb_status   st;
    tool.name = "nap";
    tool.description = "Takes a while.";
    tool.schema = "{\"type\":\"object\",\"properties\":{\"ms\":{\"type\":"
                  "\"integer\"}}}";
    tool.fn = nap_tool;
    st = hfsb_mcp_add_tool(mcp, &tool, &err);
    tool.name = "steps";
    tool.schema = NULL;
    tool.fn = progress_tool;
    if (st == HFSB_OK) st = hfsb_mcp_add_tool(mcp, &tool, &err);
    T_CHECK(st == HFSB_OK || st == HFSB_NOMEM);
    return st == HFSB_OK;
}

HFSBI_UNUSED static void mh_start_with(ts_server *s, const hfsb_mcp_opts *opts,
                                       const hfsb_server_opts *o) {
    hfsb_mcp *mcp = NULL;
    hfsb_err  err = HFSB_INIT;
    pthread_mutex_lock(&mh_seen.lock);
    mh_seen.began = mh_seen.cancelled = mh_seen.ended = 0;
    mh_seen.at_once = mh_seen.most = 0;
    pthread_mutex_unlock(&mh_seen.lock);
    ts_open(s, o);
    if (hfsb_server_add_mcp(s->server, opts, &mcp, &err) != HFSB_OK ||
        !mh_add_tools(mcp)) {
        printf("no MCP: %s\n", err.msg);
        abort();
    }
    ts_run(s);
}

HFSBI_UNUSED static void mh_start(ts_server *s) {
    mh_start_with(s, NULL, NULL);
}

HFSBI_UNUSED static void mh_post(const ts_server *s, ts_reply *r,
                                 const char *fields, const char *body) {
    hfsb_buf all = HFSB_INIT;
    T_CHECK(hfsb_buf_printf(&all, TS_JSON "%s", fields) == HFSB_OK);
    ts_call(s, r, "POST", "/mcp", all.ptr, hfsb_cstr(body));
    hfsb_buf_free(&all);
}

/* The same, without waiting for a reply. */
HFSBI_UNUSED static ts_conn mh_begin(const ts_server *s, const char *fields,
                                     const char *body) {
    hfsb_buf all = HFSB_INIT;
    ts_conn  c = ts_connect(s);
    T_CHECK(hfsb_buf_printf(&all, TS_JSON "%s", fields) == HFSB_OK);
    ts_ask(&c, "POST", "/mcp", all.ptr, hfsb_cstr(body));
    hfsb_buf_free(&all);
    return c;
}

HFSBI_UNUSED static bool mh_is_type(const ts_reply *r, const char *type) {
    return hfsb_str_equal(ts_field(r, "Content-Type"), hfsb_cstr(type));
}

HFSBI_UNUSED static void mh_session(const ts_server *s, char id[64]) {
    ts_reply r = HFSB_INIT;
    hfsb_str field;
    mh_post(s, &r, BOTH, INITIALIZE);
    TS_IS(&r, 200, "serverInfo");
    field = ts_field(&r, "Mcp-Session-Id");
    T_CHECK(field.len == 32);
    snprintf(id, 64, "%.*s", (int)field.len, field.ptr ? field.ptr : "");
    ts_drop(&r);
}

HFSBI_UNUSED static void mh_in(const ts_server *s, ts_reply *r, const char *id,
                               const char *body) {
    char fields[128];
    snprintf(fields, sizeof fields, BOTH "Mcp-Session-Id: %s\r\n", id);
    mh_post(s, r, fields, body);
}
#endif
