/* test_mcp_http.c - MCP over HTTP: statuses, authorization, sessions, batches,
   failing allocations. */
#include "../support/t_mcp_http.h"

/* ---- statuses ---- */

static const struct {
    const char *fields, *body;
    int         status;
    const char *says; /* NULL: no body at all */
} answers[] = {
    /* legacy */
    {BOTH, INITIALIZE, 200, "\"protocolVersion\":\"2025-11-25\""},
    {BOTH, PING(1), 200, "\"id\":1,\"result\":{}"},
    {BOTH, PING("x"), 200, "\"id\":\"x\""},
    {BOTH, RPC(1, "tools/list", ""), 200, "\"name\":\"nap\""},
    {BOTH "MCP-Protocol-Version: 2025-06-18\r\n", PING(1), 200, "\"id\":1"},
    {BOTH "MCP-Protocol-Version: 2024-11-05\r\n", PING(1), 200, "\"id\":1"},
    {BOTH "MCP-Protocol-Version: \t2025-06-18 \r\n", PING(1), 200,
     "\"id\":1"},
    {BOTH "MCP-Protocol-Version: 1900-01-01\r\n", PING(1), 400, "\"error\""},
    {BOTH "MCP-Protocol-Version:\r\n", PING(1), 400, "\"error\""},
    {BOTH, NOTE, 202, NULL},
    {BOTH, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/none\"}", 202,
     NULL},
    {BOTH, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 202, NULL},
    {BOTH, RPC(9, "no/such", ""), 200, "-32601"},
    {BOTH, "{nope", 400, "-32700"},
    {BOTH, "", 400, "-32700"},
    {BOTH, "5", 400, "-32600"},
    {BOTH, "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", 400,
     "-32600"},
    {BOTH, CALL(1, "no_such_tool", "{}"), 200, "-32602"},
    {BOTH, CALL(1, "nap", "{}"), 200, "\"rested\""},
    /* modern */
    {BOTH MODERN("server/discover"), RPC(1, "server/discover", META), 200,
     "\"supportedVersions\":[\"2026-07-28\"]"},
    {BOTH MODERN("tools/list"), RPC(1, "tools/list", META), 200,
     "\"resultType\":\"complete\""},
    {BOTH "MCP-Protocol-Version:  2026-07-28\t\r\nMcp-Method: tools/list \r\n",
     RPC(1, "tools/list", META), 200, "\"ttlMs\""},
    {BOTH MODERN("tools/list") "Mcp-Session-Id: stale\r\n",
     RPC(1, "tools/list", META), 200, "\"ttlMs\""},
    {BOTH MODERN("tools/list"), RPC(1, "tools/list", ""), 400, "-32602"},
    {BOTH MODERN("tools/list"),
     RPC(1, "tools/list",
         "\"_meta\":{" KEY "protocolVersion\":\"1900-01-01\"," KEY
         "clientCapabilities\":{}}"),
     400, "-32020"},
    {BOTH "MCP-Protocol-Version: 1900-01-01\r\nMcp-Method: tools/list\r\n",
     RPC(1, "tools/list",
         "\"_meta\":{" KEY "protocolVersion\":\"1900-01-01\"," KEY
         "clientCapabilities\":{}}"),
     400, "-32022"},
    {BOTH MODERN("tools/call"), RPC(1, "tools/list", META), 400, "-32020"},
    {BOTH "MCP-Protocol-Version: 2026-07-28\r\n", RPC(1, "tools/list", META),
     400, "-32020"},
    {BOTH, RPC(1, "tools/list", META), 400, "-32020"},
    {BOTH MODERN("tools/call"), CALL_NOW(1, "nap", "{}"), 400, "-32020"},
    {BOTH CALLS("steps"), CALL_NOW(1, "nap", "{}"), 400, "-32020"},
    {BOTH CALLS("=?base64?bmFw?="), CALL_NOW(1, "nap", "{}"), 200, "rested"},
    {BOTH CALLS("nap"), CALL_NOW(1, "nap", "{}"), 200, "\"rested\""},
    {BOTH CALLS("none"), CALL_NOW(1, "none", "{}"), 200, "-32602"},
    {BOTH MODERN("ping"), RPC(1, "ping", META), 404, "-32601"},
    {BOTH MODERN("initialize"), RPC(1, "initialize", META), 404, "-32601"},
    {BOTH MODERN("no/such"), RPC(1, "no/such", META), 404, "-32601"},
};

static void every_message_has_its_status(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    size_t    i;
    mh_start(&s);
    for (i = 0; i < TT_COUNT(answers); i++) {
        mh_post(&s, &r, answers[i].fields, answers[i].body);
        ts_expect((int)i, &r, answers[i].status, answers[i].says);
        if (answers[i].says) T_CHECK(mh_is_type(&r, "application/json"));
        else T_CHECK(r.body.len == 0 && !ts_field(&r, "Content-Type").ptr);
    }
    ts_drop(&r);
    ts_end(&s, false);
}

/* Hosts probe before they have a token, and must get a quick answer. */
static void missing_routes_are_refused_without_a_token(void) {
    static const char *const methods[] = {"GET", "PUT", "OPTIONS"};
    ts_server                s;
    ts_reply                 r = HFSB_INIT;
    ts_conn                  c;
    size_t                   i;
    mh_start(&s);
    for (i = 0; i < TT_COUNT(methods); i++) {
        char raw[160];
        snprintf(raw, sizeof raw,
                 "%s /mcp HTTP/1.1\r\n" TC_HEAD EVENTS
                 "MCP-Protocol-Version: 2024-11-05\r\n\r\n",
                 methods[i]);
        c = tc_ask(&s, &r, raw);
        TS_IS(&r, 405, "Method Not Allowed");
        T_STR(ts_field(&r, "Allow"), "POST, DELETE");
        ts_hang_up(&c);
    }
    c = tc_ask(&s, &r, TC_GET("/.well-known/oauth-protected-resource/mcp"));
    TS_IS(&r, 404, "Not Found");
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

/* As in hfsb-server. */
static void api_and_mcp_share_a_server(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_conn   c;
    hfsb_mcp *mcp = NULL, *other = NULL;
    hfsb_err  err = HFSB_INIT;
    ts_open(&s, NULL);
    T_CHECK(hfsb_server_add_sandbox(s.server, NULL, &err) == HFSB_OK);
    T_CHECK(hfsb_server_add_mcp(s.server, NULL, &mcp, &err) == HFSB_OK);
    /* the path is taken */
    T_CHECK(hfsb_server_add_mcp(s.server, NULL, &other, &err) == HFSB_ARG);
    ts_run(&s);
    ts_post(&s, &r, "/api/bash", "{\"command\":\"echo one\"}");
    TS_IS(&r, 200, "\"output\":\"one");
    mh_post(&s, &r, BOTH, CALL(1, "bash", "{\"command\":\"echo two\"}"));
    TS_IS(&r, 200, "two");
    c = tc_ask(&s, &r, TC_GET("/healthz"));
    TS_IS(&r, 200, "{\"status\":\"ok\"}");
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- authorization ---- */

static void ask_as(const ts_server *s, ts_reply *r, const char *fields) {
    hfsb_buf raw = HFSB_INIT;
    ts_conn  c;
    T_CHECK(hfsb_buf_printf(&raw,
                            "POST /mcp HTTP/1.1\r\n" TS_JSON
                            "%sContent-Length: %zu\r\n\r\n%s",
                            fields, strlen(PING(1)), PING(1)) == HFSB_OK);
    c = tc_ask(s, r, raw.ptr);
    ts_hang_up(&c);
    hfsb_buf_free(&raw);
}

static void both_headers_may_carry_the_token(void) {
    static const struct {
        const char *fields;
        int         status;
        const char *says;
    } list[] = {
        {TC_HEAD "Authorization: Bearer " TS_TOKEN "\r\n", 200, "\"id\":1"},
        {TC_HEAD "X-Sandbox-Authorization: Bearer " TS_TOKEN "\r\n", 200,
         "\"id\":1"},
        {TC_HEAD "Authorization: Bearer " TS_TOKEN
                 "\r\nX-Sandbox-Authorization: Bearer " TS_TOKEN "\r\n",
         200, "\"id\":1"},
        {TC_HEAD "Authorization: Bearer of-the-hub\r\n"
                 "X-Sandbox-Authorization: Bearer " TS_TOKEN "\r\n",
         200, "\"id\":1"},
        {TC_HEAD "Authorization: Bearer " TS_TOKEN
                 "\r\nX-Sandbox-Authorization: Bearer x\r\n",
         401, "Invalid"},
        {TC_HEAD, 401, "Missing"},
        {TC_HEAD "Authorization: Bearer x\r\n", 401, "Invalid"},
        {"Host: evil.example\r\nAuthorization: Bearer " TS_TOKEN "\r\n", 421,
         "Host"},
        {TC_HEAD "Origin: http://evil.example\r\n"
                 "Authorization: Bearer " TS_TOKEN "\r\n",
         403, "Origin"},
        {TC_HEAD "Origin: http://localhost:5173\r\n"
                 "Authorization: Bearer " TS_TOKEN "\r\n",
         200, "\"id\":1"},
    };
    ts_server s;
    ts_reply  r = HFSB_INIT;
    size_t    i;
    mh_start(&s);
    for (i = 0; i < TT_COUNT(list); i++) {
        ask_as(&s, &r, list[i].fields);
        ts_expect((int)i, &r, list[i].status, list[i].says);
        /* no resource_metadata: it would start a login in hosts */
        if (r.status == 401) T_STR(ts_field(&r, "WWW-Authenticate"), "Bearer");
    }
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- the head ---- */

static void wrong_content_types_are_refused(void) {
    static const struct {
        const char *fields;
        int         status;
        const char *type;
    } list[] = {
        {TS_JSON, 200, "application/json"},
        {"Content-Type: Application/JSON; charset=utf-8\r\n", 200,
         "application/json"},
        {"Content-Type: text/plain\r\n", 415, NULL},
        {"", 415, NULL},
        {TS_JSON TS_JSON, 415, NULL},
        {TS_JSON "Accept: */*\r\n", 200, "application/json"},
        {TS_JSON ONLY, 200, "application/json"},
        {TS_JSON BOTH, 200, "application/json"},
        {TS_JSON EVENTS, 200, "text/event-stream"},
        {TS_JSON "Accept: text/html\r\n", 406, NULL},
        {TS_JSON "Mcp-Session-Id: a b\r\n", 400, NULL},
        {TS_JSON "Mcp-Session-Id: a\r\nMcp-Session-Id: a\r\n", 400, NULL},
        {TS_JSON "Mcp-Method: ping\r\nMcp-Method: ping\r\n", 400, NULL},
    };
    ts_server s;
    ts_reply  r = HFSB_INIT;
    char      id[200];
    size_t    i;
    mh_start(&s);
    for (i = 0; i < TT_COUNT(list); i++) {
        ts_call(&s, &r, "POST", "/mcp", list[i].fields, HFSB_LIT(PING(1)));
        ts_expect((int)i, &r, list[i].status, NULL);
        if (list[i].type) T_CHECK(mh_is_type(&r, list[i].type));
        else TS_REFUSED(&r, list[i].status, NULL);
    }
    memset(id, 'a', sizeof id);
    memcpy(id, "Mcp-Session-Id: ", 16);
    memcpy(id + sizeof id - 3, "\r\n", 3);
    mh_post(&s, &r, id, PING(1));
    TS_REFUSED(&r, 400, "Mcp-Session-Id");
    ts_drop(&r);
    ts_end(&s, false);
}

static void a_message_over_the_limit_is_refused(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    ts_server     s;
    ts_reply      r = HFSB_INIT;
    hfsb_buf      body = HFSB_INIT;
    o.max_message = 1000;
    mh_start_with(&s, &o, NULL);
    tt_fill(&body, " ", 1000 - strlen(PING(1)));
    T_CHECK(hfsb_buf_printf(&body, "%s", PING(1)) == HFSB_OK);
    mh_post(&s, &r, BOTH, body.ptr);
    TS_IS(&r, 200, "\"id\":1");
    T_CHECK(hfsb_buf_append_byte(&body, ' ') == HFSB_OK);
    mh_post(&s, &r, BOTH, body.ptr);
    TS_REFUSED(&r, 413, "1000");
    hfsb_buf_free(&body);
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- sessions ---- */

static void each_session_knows_the_files_it_read(void) {
    static const char write[] =
        CALL(2, "write", "{\"path\":\"a.txt\",\"content\":\"new\"}");
    static const char now[] =
        CALL_NOW(2, "write", "{\"path\":\"a.txt\",\"content\":\"newer\"}");
    ts_server s;
    ts_reply  r = HFSB_INIT;
    char      one[64], two[64];
    mh_start(&s);
    tt_put("a.txt", HFSB_LIT("old"));
    mh_session(&s, one);
    mh_session(&s, two);
    T_CHECK(strcmp(one, two) != 0);
    mh_in(&s, &r, one, CALL(1, "read", "{\"path\":\"a.txt\"}"));
    TS_IS(&r, 200, "1\\told");
    mh_in(&s, &r, two, write);
    TS_IS(&r, 200, "has not been read this session");
    mh_post(&s, &r, BOTH, write);
    TS_IS(&r, 200, "has not been read this session");
    /* an unknown id is accepted, as after a restart */
    mh_in(&s, &r, "of-another-life", write);
    TS_IS(&r, 200, "has not been read this session");
    mh_in(&s, &r, one, write);
    TS_IS(&r, 200, "Wrote 3 bytes");
    TT_FILE("a.txt", "new");
    /* modern clients have no session ids and share a session */
    mh_post(&s, &r, BOTH CALLS("write"), now);
    TS_IS(&r, 200, "has not been read this session");
    mh_post(&s, &r, BOTH CALLS("read") "Mcp-Session-Id: x\r\n",
            CALL_NOW(1, "read", "{\"path\":\"a.txt\"}"));
    TS_IS(&r, 200, "1\\tnew");
    T_CHECK(!ts_field(&r, "Mcp-Session-Id").ptr);
    mh_post(&s, &r, BOTH CALLS("write"), now);
    TS_IS(&r, 200, "Wrote 5 bytes");
    ts_drop(&r);
    ts_end(&s, false);
}

static void idle_sessions_make_room_for_new_ones(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    char      first[64], id[64];
    size_t    i;
    mh_start(&s);
    mh_session(&s, first);
    for (i = 0; i < 150; i++) mh_session(&s, id);
    mh_in(&s, &r, first, PING(1));
    TS_IS(&r, 200, "\"id\":1");
    mh_in(&s, &r, id, PING(1));
    TS_IS(&r, 200, "\"id\":1");
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- batches ---- */

static void batches_are_answered_with_events(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    mh_start(&s);
    mh_post(&s, &r, BOTH, " [" PING(1) "," NOTE "," PING("b") "]");
    TS_IS(&r, 200, "\"id\":1");
    T_CHECK(ts_contains(&r, "\"b\"") && mh_is_type(&r, "text/event-stream"));
    T_CHECK(tc_count(hfsb_buf_str(&r.body), "event: message\n") == 2);
    mh_post(&s, &r, BOTH,
            "[" CALL(1, "nap", "{\"ms\":30}") "," PING(2) "," CALL(
                3, "nap", "{\"ms\":10}") "]");
    TS_IS(&r, 200, "rested");
    T_CHECK(tc_count(hfsb_buf_str(&r.body), "event: message\n") == 3);
    mh_post(&s, &r, BOTH, "[" NOTE "," NOTE "]");
    TS_IS(&r, 202, NULL);
    T_CHECK(r.body.len == 0);
    mh_post(&s, &r, EVENTS, "[" PING(1) "," PING(2) "]");
    TS_IS(&r, 200, "\"id\":2");
    T_CHECK(tc_count(hfsb_buf_str(&r.body), "event: message\n") == 2);
    mh_post(&s, &r, BOTH, "[]");
    TS_IS(&r, 400, "-32600");
    T_CHECK(r.body.ptr && r.body.ptr[0] == '{');
    mh_post(&s, &r, BOTH, "[1,");
    TS_IS(&r, 400, "-32700");
    T_CHECK(r.body.ptr && r.body.ptr[0] == '{');
    mh_post(&s, &r, BOTH MODERN("ping"), "[" PING(1) "]");
    TS_IS(&r, 400, "-32600");
    T_CHECK(r.body.ptr && r.body.ptr[0] == '{');
    ts_drop(&r);
    ts_end(&s, false);
}

/* A malformed message does not keep the others from being served. */
static void each_message_of_a_batch_has_its_answer(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    mh_start(&s);
    mh_post(&s, &r, BOTH, "[7," PING(1) "]");
    TS_IS(&r, 200, "-32600");
    T_CHECK(ts_contains(&r, "\"id\":1"));
    T_CHECK(tc_count(hfsb_buf_str(&r.body), "event: message\n") == 2);
    mh_post(&s, &r, BOTH, "[7]");
    TS_IS(&r, 200, "-32600");
    T_CHECK(tc_count(hfsb_buf_str(&r.body), "event: message\n") == 1);
    mh_post(&s, &r, BOTH "MCP-Protocol-Version: 1999-01-01\r\n",
            "[" PING(1) "," PING(2) "]");
    TS_IS(&r, 400, "-32600");
    mh_post(&s, &r, BOTH "MCP-Protocol-Version: 2025-03-26\r\n",
            "[" PING(1) "," PING(2) "]");
    TS_IS(&r, 200, "\"id\":2");
    ts_drop(&r);
    ts_end(&s, false);
}

/* True when element i of an array is the answer with that id (JSON) and
   contains `part`. */
static bool has_answer(const ts_reply *r, size_t i, const char *id,
                       const char *part) {
    const hfsb_json_value *one = hfsb_json_at(r->json.root, i);
    hfsb_buf               key = HFSB_INIT, text = HFSB_INIT;
    bool                   has;
    T_CHECK(hfsb_json_write(hfsb_json_get(one, "id"), NULL, &key, NULL) ==
            HFSB_OK);
    T_CHECK(hfsb_json_write(one, NULL, &text, NULL) == HFSB_OK);
    has = hfsb_str_equal(hfsb_buf_str(&key), hfsb_cstr(id)) &&
          hfsb_str_find(hfsb_buf_str(&text), hfsb_cstr(part)) != HFSB_NPOS;
    if (!has) printf("element %zu is %s, not %s\n", i, text.ptr, id);
    hfsb_buf_free(&key);
    hfsb_buf_free(&text);
    return has;
}

static bool is_array(const ts_reply *r, size_t count) {
    return r->status == 200 && mh_is_type(r, "application/json") &&
           hfsb_json_type_of(r->json.root) == HFSB_JSON_ARRAY &&
           hfsb_json_count(r->json.root) == count;
}

static void a_json_client_gets_an_array_for_a_batch(void) {
    static const char *const accepts[] = {
        ONLY, "Accept: application/*\r\n",
        ONLY "MCP-Protocol-Version: 2025-03-26\r\n"};
    ts_server s;
    ts_reply  r = HFSB_INIT;
    size_t    i;
    mh_start(&s);
    for (i = 0; i < TT_COUNT(accepts); i++) {
        mh_post(&s, &r, accepts[i], " [" PING(1) "," NOTE "," PING("b") "]");
        T_CHECK(is_array(&r, 2));
        T_CHECK(has_answer(&r, 0, "1", "\"result\":{}"));
        T_CHECK(has_answer(&r, 1, "\"b\"", "\"result\":{}"));
    }
    mh_post(&s, &r, ONLY, "[" PING(1) "]");
    T_CHECK(is_array(&r, 1));
    /* a slow call delays no other answer, and the array waits for it */
    mh_post(&s, &r, ONLY,
            "[" CALL(1, "nap", "{\"ms\":200}") "," PING(2) "," CALL(
                3, "none", "{}") "]");
    T_CHECK(is_array(&r, 3));
    T_CHECK(has_answer(&r, 0, "2", "\"result\""));
    T_CHECK(has_answer(&r, 1, "3", "-32602"));
    T_CHECK(has_answer(&r, 2, "1", "rested"));
    ts_drop(&r);
    ts_end(&s, false);
}

static void a_json_client_gets_errors_of_a_batch(void) {
    static const struct {
        const char *fields, *body, *code;
    } refused[] = {
        {ONLY, "[]", "-32600"},
        {ONLY, "[1,", "-32700"},
        {ONLY MODERN("ping"), "[" PING(1) "]", "-32600"},
        {ONLY "MCP-Protocol-Version: 1999-01-01\r\n", "[" PING(1) "]",
         "-32600"},
    };
    ts_server s;
    ts_reply  r = HFSB_INIT;
    size_t    i;
    mh_start(&s);
    for (i = 0; i < TT_COUNT(refused); i++) {
        mh_post(&s, &r, refused[i].fields, refused[i].body);
        ts_expect((int)i, &r, 400, refused[i].code);
        T_CHECK(r.body.ptr && r.body.ptr[0] == '{');
    }
    mh_post(&s, &r, ONLY, "[7," PING(1) "," INITIALIZE ",[]]");
    T_CHECK(is_array(&r, 4));
    T_CHECK(has_answer(&r, 0, "null", "-32600"));
    T_CHECK(has_answer(&r, 1, "1", "\"result\""));
    T_CHECK(has_answer(&r, 2, "1", "-32600"));
    T_CHECK(has_answer(&r, 3, "null", "-32600"));
    mh_post(&s, &r, ONLY, "[7]");
    T_CHECK(is_array(&r, 1) && has_answer(&r, 0, "null", "-32600"));
    mh_post(&s, &r, ONLY, "[" NOTE "," NOTE "]");
    TS_IS(&r, 202, NULL);
    T_CHECK(r.body.len == 0);
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- memory ---- */

/* Client and server take turns in one thread. */
static void take_turns(hfsb_server *server, unsigned port, const char *fields,
                       const char *body, ts_reply *r) {
    ts_server s = HFSB_INIT;
    ts_conn   c;
    size_t    turn;
    s.port = port;
    c = mh_begin(&s, fields, body);
    for (turn = 0; turn < 400 && !c.ended; turn++) {
        (void)hfsb_server_poll(server, turn < 20 ? 0 : 5);
        (void)ts_more(&c, 0);
        if (c.in.len &&
            hfsb_str_find(hfsb_buf_str(&c.in), HFSB_LIT("\r\n\r\n")) !=
                HFSB_NPOS &&
            (hfsb_str_ends(hfsb_buf_str(&c.in), HFSB_LIT("}")) ||
             hfsb_str_ends(hfsb_buf_str(&c.in), HFSB_LIT("]")) ||
             hfsb_str_ends(hfsb_buf_str(&c.in), HFSB_LIT("0\r\n\r\n")) ||
             hfsb_str_find(hfsb_buf_str(&c.in),
                           HFSB_LIT("Content-Length: 0\r\n")) != HFSB_NPOS))
            break;
    }
    ts_drop(r);
    if (c.in.len > 12) r->status = atoi(c.in.ptr + 9);
    /* a success has a body */
    T_CHECK(r->status != 200 ||
            hfsb_str_find(hfsb_buf_str(&c.in),
                          HFSB_LIT("Content-Length: 0\r\n")) == HFSB_NPOS);
    ts_hang_up(&c);
    for (turn = 0; turn < 3; turn++) (void)hfsb_server_poll(server, 0);
}

static hfsb_server *open_with(hfsb_alloc alloc, unsigned *port) {
    hfsb_server_opts o = HFSB_INIT;
    hfsb_mcp_opts    m = HFSB_INIT;
    hfsb_server     *server = NULL;
    hfsb_mcp        *mcp = NULL;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;
    o.token = HFSB_LIT(TS_TOKEN);
    o.alloc = alloc;
    o.no_threads = true;
    m.no_tools = true;
    st = hfsb_server_open(&o, &server, &err);
    if (st == HFSB_OK) st = hfsb_server_listen(server, NULL, 0, port, &err);
    if (st == HFSB_OK) st = hfsb_server_add_mcp(server, &m, &mcp, &err);
    if (st == HFSB_OK && !mh_add_tools(mcp)) st = HFSB_NOMEM;
    if (st == HFSB_OK) return server;
    T_CHECK(st == HFSB_NOMEM);
    hfsb_server_close(server);
    return NULL;
}

static void messages_survive_failing_allocations(void) {
    static const struct {
        const char *fields, *body;
        int         status;
    } list[] = {
        {BOTH, INITIALIZE, 200},
        {BOTH, "[" PING(1) "," PING(2) "]", 200},
        {ONLY, "[" PING(1) "," PING(2) "]", 200},
        {BOTH CALLS("steps"),
         RPC(5, "tools/call", "\"name\":\"steps\"," TOKEN_META), 200},
        {BOTH, "{nope", 400},
    };
    size_t i, k;
    for (i = 0; i < TT_COUNT(list); i++)
        for (k = 0; k < 400; k++) {
            t_heap       heap = HFSB_INIT;
            hfsb_alloc   alloc;
            unsigned     port = 0;
            ts_reply     r = HFSB_INIT;
            hfsb_server *server;
            bool         all;
            alloc.fn = t_heap_fn;
            alloc.user = &heap;
            server = open_with(alloc, &port);
            if (!server) abort();
            heap.calls = 0;
            heap.fail_at = k;
            take_turns(server, port, list[i].fields, list[i].body, &r);
            all = k && heap.calls < k;
            /* it was lost, refused, or served */
            T_CHECK(r.status == 0 || r.status == 503 ||
                    r.status == list[i].status || r.status == 500);
            if (!k || all) T_CHECK(r.status == list[i].status);
            heap.fail_at = 0;
            take_turns(server, port, BOTH, PING(1), &r);
            T_CHECK(r.status == 200);
            ts_drop(&r);
            hfsb_server_close(server);
            T_CHECK(heap.live == 0 && !heap.wrong);
            if (all) break;
        }
}

int main(void) {
    tt_begin();
    TT_RUN(every_message_has_its_status);
    TT_RUN(missing_routes_are_refused_without_a_token);
    TT_RUN(api_and_mcp_share_a_server);
    TT_RUN(both_headers_may_carry_the_token);
    TT_RUN(wrong_content_types_are_refused);
    TT_RUN(a_message_over_the_limit_is_refused);
    TT_RUN(each_session_knows_the_files_it_read);
    TT_RUN(idle_sessions_make_room_for_new_ones);
    TT_RUN(batches_are_answered_with_events);
    TT_RUN(each_message_of_a_batch_has_its_answer);
    TT_RUN(a_json_client_gets_an_array_for_a_batch);
    TT_RUN(a_json_client_gets_errors_of_a_batch);
    TT_RUN(messages_survive_failing_allocations);
    return TT_END();
}
