/* test_mcp_message.c - MCP messages are read: valid ones, and every way to be
   invalid. */
#define T_SERVER
#include "../support/t.h"
#ifdef HFSBI_SPLIT
#include "../../src/mcp/mcp_private.h"
#endif

#define COUNT(list) (sizeof(list) / sizeof *(list))

#define K    "\"io.modelcontextprotocol/"
#define ABLE K "clientCapabilities\":{}"
#define META(version) \
    "\"_meta\":{" K "protocolVersion\":\"" version "\"," ABLE "}"
#define V    "2026-07-28"
#define NOW META(V)
/* A request with id 7; params are the inside of an object. */
#define ASK(method, params)                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"" method "\"," \
    "\"params\":{" params "}}"

enum { STDIO, HTTP };

typedef struct row {
    const char *json;
    int         http;
    const char *version, *method, *name; /* headers */
    int         kind, does; /* a hfsbi_mcp_method, or the code of a fault */
    int         status;     /* of a fault */
    bool        modern;
} row;

/* A header; NULL: it is absent. */
static hfsb_str header(const char *text) {
    hfsb_str none = HFSB_INIT;
    return text ? hfsb_cstr(text) : none;
}

/* The document lives until the next call. */
static hfsb_json_doc doc;

static void parse(hfsb_str json) {
    hfsb_str exact = t_exact(json.ptr, json.len);
    hfsb_json_free(&doc);
    T_CHECK(hfsb_json_parse(exact, NULL, &doc, NULL) == HFSB_OK);
    t_drop(exact);
}

static hfsbi_mcp_message read_as(const char *json, const hfsbi_mcp_head *head,
                                 bool logging) {
    hfsbi_mcp_message m;
    parse(hfsb_cstr(json));
    memset(&m, 0x55, sizeof m);
    hfsbi_mcp_read(doc.root, head, logging, &m);
    return m;
}

static hfsbi_mcp_message read_line(const char *json) {
    hfsbi_mcp_head head = HFSB_INIT;
    return read_as(json, &head, false);
}

static void check_rows(const row *rows, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) {
        const row        *r = &rows[i];
        hfsbi_mcp_head    head = HFSB_INIT;
        hfsbi_mcp_message m;
        size_t            before = t_failed;
        head.http = r->http == HTTP;
        head.version = header(r->version);
        head.method = header(r->method);
        head.name = header(r->name);
        m = read_as(r->json, &head, false);
        T_CHECK((int)m.kind == r->kind);
        T_CHECK(m.modern == r->modern);
        if (r->kind == HFSBI_MCP_FAULT) {
            T_CHECK(m.code == r->does);
            T_CHECK(m.status == r->status);
            T_CHECK(m.err.msg[0] != '\0');
        } else {
            T_CHECK((int)m.method == r->does);
            T_CHECK(m.err.msg[0] == '\0');
        }
        if (t_failed != before)
            printf("  row %zu: %s\n  kind %d method %d code %d status %d: "
                   "%s\n",
                   i, r->json, (int)m.kind, (int)m.method, m.code, m.status,
                   m.err.msg);
    }
}

/* ---- the shape ---- */

static void only_json_rpc_is_accepted(void) {
    static const row rows[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", STDIO, NULL,
         NULL, NULL, HFSBI_MCP_REQUEST, HFSBI_MCP_PING, 0, false},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":null}",
         STDIO, NULL, NULL, NULL, HFSBI_MCP_REQUEST, HFSBI_MCP_PING, 0,
         false},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
         STDIO, NULL, NULL, NULL, HFSBI_MCP_NOTIFICATION, HFSBI_MCP_OTHER, 0,
         false},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}", STDIO, NULL, NULL, NULL,
         HFSBI_MCP_NOTIFICATION, HFSBI_MCP_OTHER, 0, false},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":[1]}", STDIO, NULL,
         NULL, NULL, HFSBI_MCP_NOTIFICATION, HFSBI_MCP_OTHER, 0, false},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", STDIO, NULL, NULL,
         NULL, HFSBI_MCP_RESPONSE, HFSBI_MCP_OTHER, 0, false},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1}}", STDIO,
         NULL, NULL, NULL, HFSBI_MCP_RESPONSE, HFSBI_MCP_OTHER, 0, false},
        {"3", STDIO, NULL, NULL, NULL, HFSBI_MCP_FAULT, -32600, 400, false},
        {"null", STDIO, NULL, NULL, NULL, HFSBI_MCP_FAULT, -32600, 400,
         false},
        {"[]", STDIO, NULL, NULL, NULL, HFSBI_MCP_FAULT, -32600, 400, false},
        {"{}", STDIO, NULL, NULL, NULL, HFSBI_MCP_FAULT, -32600, 400, false},
        {"{\"id\":1,\"method\":\"ping\"}", STDIO, NULL, NULL, NULL,
         HFSBI_MCP_FAULT, -32600, 400, false},
        {"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"ping\"}", STDIO, NULL, NULL,
         NULL, HFSBI_MCP_FAULT, -32600, 400, false},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}", STDIO, NULL, NULL, NULL,
         HFSBI_MCP_FAULT, -32600, 400, false},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", STDIO, NULL, NULL,
         NULL, HFSBI_MCP_FAULT, -32600, 400, false},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null,\"result\":{}}", STDIO,
         NULL, NULL, NULL, HFSBI_MCP_FAULT, -32600, 400, false},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", STDIO, NULL,
         NULL, NULL, HFSBI_MCP_FAULT, -32600, 400, false},
        {"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}", STDIO, NULL,
         NULL, NULL, HFSBI_MCP_FAULT, -32600, 400, false},
        {"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}", STDIO, NULL,
         NULL, NULL, HFSBI_MCP_FAULT, -32600, 400, false},
        {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", STDIO, NULL,
         NULL, NULL, HFSBI_MCP_FAULT, -32600, 400, false},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}",
         STDIO, NULL, NULL, NULL, HFSBI_MCP_FAULT, -32600, 400, false},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":\"x\"}",
         STDIO, NULL, NULL, NULL, HFSBI_MCP_FAULT, -32600, 400, false},
    };
    check_rows(rows, COUNT(rows));
}

static void a_fault_keeps_a_valid_id(void) {
    hfsbi_mcp_message m = read_line("{\"id\":\"a\",\"method\":\"ping\"}");
    T_CHECK(m.kind == HFSBI_MCP_FAULT);
    T_STR(hfsb_json_str(m.id, HFSB_LIT("?")), "a");
    m = read_line("{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}");
    T_CHECK(m.kind == HFSBI_MCP_FAULT && m.id == NULL);
    m = read_line("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"x/y\"}");
    T_CHECK(m.kind == HFSBI_MCP_FAULT && hfsb_json_int(m.id, 0) == 9);
}

/* ---- methods of both eras ---- */

static void each_era_has_its_methods(void) {
    static const struct {
        const char *name, *params;
        int         legacy, modern; /* a method, or 0: there is none */
    } rows[] = {
        {"initialize", "", HFSBI_MCP_INITIALIZE, 0},
        {"ping", "", HFSBI_MCP_PING, 0},
        {"tools/list", "", HFSBI_MCP_LIST, HFSBI_MCP_LIST},
        {"tools/call", "\"name\":\"x\"", HFSBI_MCP_CALL, HFSBI_MCP_CALL},
        {"logging/setLevel", "\"level\":\"info\"", 0, 0},
        {"resources/list", "", 0, 0},
        {"resources/templates/list", "", 0, 0},
        {"resources/subscribe", "", 0, 0},
        {"resources/unsubscribe", "", 0, 0},
        {"prompts/list", "", 0, 0},
        {"subscriptions/listen", "", 0, 0},
        {"completion/complete", "", 0, 0},
        {"tools/List", "", 0, 0},
        {"", "", 0, 0},
        {"no/such", "", 0, 0},
    };
    static const char *const versions[] = {NULL, "2024-11-05", "2025-03-26",
                                           "2025-06-18", "2025-11-25"};
    size_t i, k;
    for (i = 0; i < COUNT(rows); i++)
        for (k = 0; k < COUNT(versions) + 2; k++) {
            char              json[512];
            hfsbi_mcp_head    head = HFSB_INIT;
            hfsbi_mcp_message m;
            bool              modern = k >= COUNT(versions);
            int want = modern ? rows[i].modern : rows[i].legacy;
            head.http = k > 0 && k != COUNT(versions);
            head.version = header(modern ? V : versions[k]);
            head.method = hfsb_cstr(rows[i].name);
            head.name = HFSB_LIT("x");
            snprintf(json, sizeof json,
                     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\","
                     "\"params\":{%s%s%s}}",
                     rows[i].name, rows[i].params,
                     modern && rows[i].params[0] ? "," : "",
                     modern ? NOW : "");
            m = read_as(json, &head, false);
            T_CHECK(m.modern == modern);
            if (want) {
                T_CHECK(m.kind == HFSBI_MCP_REQUEST && (int)m.method == want);
                continue;
            }
            T_CHECK(m.kind == HFSBI_MCP_FAULT && m.code == -32601);
            T_CHECK(m.status == (modern ? 404 : 200));
        }
}

static void set_level_exists_only_with_logging(void) {
    hfsbi_mcp_head    head = HFSB_INIT;
    hfsbi_mcp_message m =
        read_as(ASK("logging/setLevel", "\"level\":\"error\""), &head, true);
    T_CHECK(m.kind == HFSBI_MCP_REQUEST && m.method == HFSBI_MCP_SET_LEVEL);
    m = read_as(ASK("logging/setLevel", "\"level\":\"loud\""), &head, true);
    T_CHECK(m.kind == HFSBI_MCP_FAULT && m.code == -32602 && m.status == 200);
    m = read_as(ASK("logging/setLevel", ""), &head, true);
    T_CHECK(m.kind == HFSBI_MCP_FAULT && m.code == -32602);
    m = read_as(ASK("logging/setLevel", NOW), &head, true);
    T_CHECK(m.kind == HFSBI_MCP_FAULT && m.code == -32601 && m.modern);
}

/* ---- checks of modern requests, in their order ---- */

static void modern_requests_over_stdio_are_checked_in_order(void) {
    static const row rows[] = {
        {ASK("server/discover", NOW), STDIO, NULL, NULL, NULL,
         HFSBI_MCP_REQUEST, HFSBI_MCP_DISCOVER, 0, true},
        {ASK("tools/list", NOW), STDIO, NULL, NULL, NULL, HFSBI_MCP_REQUEST,
         HFSBI_MCP_LIST, 0, true},
        {ASK("server/discover", ""), STDIO, NULL, NULL, NULL, HFSBI_MCP_FAULT,
         -32602, 400, true},
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"server/discover\"}",
         STDIO, NULL, NULL, NULL, HFSBI_MCP_FAULT, -32602, 400, true},
        {ASK("tools/list", "\"_meta\":{" K "protocolVersion\":\"2026-07-28\""
                           "}"),
         STDIO, NULL, NULL, NULL, HFSBI_MCP_FAULT, -32602, 400, true},
        {ASK("tools/list", "\"_meta\":{" K "protocolVersion\":5," ABLE "}"),
         STDIO, NULL, NULL, NULL, HFSBI_MCP_FAULT, -32602, 400, true},
        {ASK("tools/list",
             "\"_meta\":{" K "protocolVersion\":\"2026-07-28\"," K
             "clientCapabilities\":[]}"),
         STDIO, NULL, NULL, NULL, HFSBI_MCP_FAULT, -32602, 400, true},
        /* missing keys come before the version */
        {ASK("tools/list", "\"_meta\":{" K "protocolVersion\":\"1900-01-01\""
                           "}"),
         STDIO, NULL, NULL, NULL, HFSBI_MCP_FAULT, -32602, 400, true},
        {ASK("tools/list", META("1900-01-01")), STDIO, NULL, NULL, NULL,
         HFSBI_MCP_FAULT, -32022, 400, true},
        {ASK("tools/list", META("2025-11-25")), STDIO, NULL, NULL, NULL,
         HFSBI_MCP_FAULT, -32022, 400, true},
        /* the version comes before the method */
        {ASK("no/such", META("")), STDIO, NULL, NULL, NULL, HFSBI_MCP_FAULT,
         -32022, 400, true},
        /* _meta of an earlier revision */
        {ASK("tools/list", "\"_meta\":{\"progressToken\":1}"), STDIO, NULL,
         NULL, NULL, HFSBI_MCP_REQUEST, HFSBI_MCP_LIST, 0, false},
        {ASK("tools/list", "\"_meta\":5"), STDIO, NULL, NULL, NULL,
         HFSBI_MCP_REQUEST, HFSBI_MCP_LIST, 0, false},
        {ASK("initialize", "\"protocolVersion\":\"2025-11-25\"," NOW), STDIO,
         NULL, NULL, NULL, HFSBI_MCP_FAULT, -32601, 404, true},
    };
    check_rows(rows, COUNT(rows));
}

#define CALL ASK("tools/call", "\"name\":\"read\"," NOW)

static void modern_requests_over_http_are_checked_in_order(void) {
    static const row rows[] = {
        {ASK("tools/list", NOW), HTTP, V, "tools/list", NULL,
         HFSBI_MCP_REQUEST, HFSBI_MCP_LIST, 0, true},
        {ASK("server/discover", NOW), HTTP, V, "server/discover", NULL,
         HFSBI_MCP_REQUEST, HFSBI_MCP_DISCOVER, 0, true},
        {CALL, HTTP, V, "tools/call", "read", HFSBI_MCP_REQUEST,
         HFSBI_MCP_CALL, 0, true},
        {CALL, HTTP, V, "tools/call", "=?base64?cmVhZA==?=",
         HFSBI_MCP_REQUEST, HFSBI_MCP_CALL, 0, true},
        /* header and _meta differ: before anything else */
        {ASK("tools/list", META("1900-01-01")), HTTP, V, "tools/list", NULL,
         HFSBI_MCP_FAULT, -32020, 400, true},
        {ASK("tools/list", NOW), HTTP, "2025-11-25", "tools/list", NULL,
         HFSBI_MCP_FAULT, -32020, 400, true},
        {ASK("no/such", "\"_meta\":{" K "protocolVersion\":\"1\"}"), HTTP, V,
         NULL, NULL, HFSBI_MCP_FAULT, -32020, 400, true},
        /* a modern header without _meta */
        {ASK("tools/list", ""), HTTP, V, "tools/list", NULL, HFSBI_MCP_FAULT,
         -32602, 400, true},
        {ASK("initialize", "\"protocolVersion\":\"2025-11-25\""), HTTP, V,
         "initialize", NULL, HFSBI_MCP_FAULT, -32602, 400, true},
        {ASK("server/discover", ""), HTTP, NULL, NULL, NULL, HFSBI_MCP_FAULT,
         -32602, 400, true},
        {ASK("tools/list", "\"_meta\":{" K "protocolVersion\":\"" V "\"}"),
         HTTP, V, "tools/list", NULL, HFSBI_MCP_FAULT, -32602, 400, true},
        /* an unknown version in both */
        {ASK("tools/list", META("1900-01-01")), HTTP, "1900-01-01",
         "tools/list", NULL, HFSBI_MCP_FAULT, -32022, 400, true},
        {ASK("tools/list", META("1900-01-01")), HTTP, NULL, "x", NULL,
         HFSBI_MCP_FAULT, -32022, 400, true},
        /* headers that must repeat the message */
        {ASK("tools/list", NOW), HTTP, NULL, "tools/list", NULL,
         HFSBI_MCP_FAULT, -32020, 400, true},
        {ASK("tools/list", NOW), HTTP, V, NULL, NULL, HFSBI_MCP_FAULT, -32020,
         400, true},
        {ASK("tools/list", NOW), HTTP, V, "tools/call", NULL, HFSBI_MCP_FAULT,
         -32020, 400, true},
        {ASK("tools/list", NOW), HTTP, V, "Tools/List", NULL, HFSBI_MCP_FAULT,
         -32020, 400, true},
        {ASK("no/such", NOW), HTTP, V, NULL, NULL, HFSBI_MCP_FAULT, -32020,
         400, true},
        {CALL, HTTP, V, "tools/call", NULL, HFSBI_MCP_FAULT, -32020, 400,
         true},
        {CALL, HTTP, V, "tools/call", "", HFSBI_MCP_FAULT, -32020, 400, true},
        {CALL, HTTP, V, "tools/call", "Read", HFSBI_MCP_FAULT, -32020, 400,
         true},
        {CALL, HTTP, V, "tools/call", "=?base64?cmVhZA?=", HFSBI_MCP_FAULT,
         -32020, 400, true},
        {CALL, HTTP, V, "tools/call", "=?base64?cmVhZAA=?=", HFSBI_MCP_FAULT,
         -32020, 400, true},
        {CALL, HTTP, V, "tools/call", "=?base64?cmVhZA==", HFSBI_MCP_FAULT,
         -32020, 400, true},
        {CALL, HTTP, V, "tools/call", "=?base64?=", HFSBI_MCP_FAULT, -32020,
         400, true},
        {CALL, HTTP, V, "tools/call", "=?base64?" "?=", HFSBI_MCP_FAULT,
         -32020, 400, true},
        {ASK("prompts/get", "\"name\":\"p\"," NOW), HTTP, V, "prompts/get",
         "q", HFSBI_MCP_FAULT, -32020, 400, true},
        {ASK("resources/read", "\"uri\":\"file:///x\"," NOW), HTTP, V,
         "resources/read", NULL, HFSBI_MCP_FAULT, -32020, 400, true},
        /* then the method, then its params */
        {ASK("prompts/get", "\"name\":\"p\"," NOW), HTTP, V, "prompts/get",
         "p", HFSBI_MCP_FAULT, -32601, 404, true},
        {ASK("no/such", NOW), HTTP, V, "no/such", NULL, HFSBI_MCP_FAULT,
         -32601, 404, true},
        {ASK("ping", NOW), HTTP, V, "ping", NULL, HFSBI_MCP_FAULT, -32601,
         404, true},
        {ASK("initialize", NOW), HTTP, V, "initialize", NULL, HFSBI_MCP_FAULT,
         -32601, 404, true},
        {ASK("tools/call", NOW), HTTP, V, "tools/call", NULL, HFSBI_MCP_FAULT,
         -32602, 200, true},
        {ASK("tools/list", "\"cursor\":\"x\"," NOW), HTTP, V, "tools/list",
         NULL, HFSBI_MCP_FAULT, -32602, 200, true},
        /* the shape is checked first */
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":3}", HTTP,
         V, NULL, NULL, HFSBI_MCP_FAULT, -32600, 400, false},
        /* notifications need no headers */
        {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}", HTTP, V, NULL,
         NULL, HFSBI_MCP_NOTIFICATION, HFSBI_MCP_OTHER, 0, true},
    };
    check_rows(rows, COUNT(rows));
}

static void legacy_requests_over_http_are_checked(void) {
    static const row rows[] = {
        {ASK("tools/list", ""), HTTP, NULL, NULL, NULL, HFSBI_MCP_REQUEST,
         HFSBI_MCP_LIST, 0, false},
        {ASK("tools/list", ""), HTTP, "2025-06-18", "wrong", "wrong",
         HFSBI_MCP_REQUEST, HFSBI_MCP_LIST, 0, false},
        {ASK("tools/list", ""), HTTP, "1900-01-01", NULL, NULL,
         HFSBI_MCP_FAULT, -32600, 400, false},
        {ASK("initialize", ""), HTTP, "1900-01-01", NULL, NULL,
         HFSBI_MCP_FAULT, -32600, 400, false},
        {ASK("tools/list", ""), HTTP, "", NULL, NULL, HFSBI_MCP_FAULT, -32600,
         400, false},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
         HTTP, "1900-01-01", NULL, NULL, HFSBI_MCP_FAULT, -32600, 400, false},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", HTTP, "2025-06-18",
         NULL, NULL, HFSBI_MCP_RESPONSE, HFSBI_MCP_OTHER, 0, false},
        {ASK("no/such", ""), HTTP, "2025-06-18", NULL, NULL, HFSBI_MCP_FAULT,
         -32601, 200, false},
        {ASK("tools/call", ""), HTTP, "2025-06-18", NULL, NULL,
         HFSBI_MCP_FAULT, -32602, 200, false},
    };
    check_rows(rows, COUNT(rows));
}

/* ---- members of a message ---- */

static void names_of_any_length_match_their_base64(void) {
    size_t n;
    for (n = 1; n < 200; n++) {
        hfsb_buf          name = HFSB_INIT, field = HFSB_INIT;
        hfsb_buf          json = HFSB_INIT;
        hfsbi_mcp_head    head = HFSB_INIT;
        hfsbi_mcp_message m;
        size_t            i;
        int               wrong;
        for (i = 0; i < n; i++)
            T_CHECK(hfsb_buf_append_byte(&name, (char)('a' + i % 26)) ==
                    HFSB_OK);
        T_CHECK(hfsb_buf_printf(&json,
                                ASK("tools/call", "\"name\":\"%s\"," NOW),
                                name.ptr) == HFSB_OK);
        for (wrong = 0; wrong < 2; wrong++) {
            hfsb_buf_truncate(&field, 0);
            if (wrong) name.ptr[n - 1] = '#';
            T_CHECK(hfsb_buf_printf(&field, "=?base64?") == HFSB_OK);
            T_CHECK(hfsb_base64_encode(hfsb_buf_str(&name), &field) ==
                    HFSB_OK);
            T_CHECK(hfsb_buf_printf(&field, "?=") == HFSB_OK);
            head.http = true;
            head.version = HFSB_LIT(V);
            head.method = HFSB_LIT("tools/call");
            head.name = t_exact(field.ptr, field.len);
            m = read_as(json.ptr, &head, false);
            T_CHECK(m.kind == (wrong ? HFSBI_MCP_FAULT : HFSBI_MCP_REQUEST));
            t_drop(head.name);
        }
        hfsb_buf_free(&name);
        hfsb_buf_free(&field);
        hfsb_buf_free(&json);
    }
}

static void a_call_has_a_tool_and_arguments(void) {
    hfsbi_mcp_message m = read_line(
        ASK("tools/call", "\"name\":\"read\",\"arguments\":{\"path\":\"x\"}"));
    T_STR(m.tool, "read");
    T_CHECK(hfsb_json_count(m.arguments) == 1 && !m.bad_arguments);
    m = read_line(ASK("tools/call", "\"name\":\"read\""));
    T_CHECK(m.kind == HFSBI_MCP_REQUEST && !m.arguments && !m.bad_arguments);
    m = read_line(ASK("tools/call", "\"name\":\"a\",\"arguments\":null"));
    T_CHECK(m.kind == HFSBI_MCP_REQUEST && !m.arguments && !m.bad_arguments);
    m = read_line(ASK("tools/call", "\"name\":\"a\",\"arguments\":\"{}\""));
    T_CHECK(m.kind == HFSBI_MCP_REQUEST && !m.arguments && m.bad_arguments);
    m = read_line(ASK("tools/call", "\"name\":\"a\",\"arguments\":[]"));
    T_CHECK(m.kind == HFSBI_MCP_REQUEST && m.bad_arguments);
    m = read_line(ASK("tools/call", "\"name\":5"));
    T_CHECK(m.kind == HFSBI_MCP_FAULT && m.code == -32602);
    T_CHECK(strstr(m.err.msg, "integer") != NULL);
}

static void a_list_takes_no_cursor(void) {
    T_CHECK(read_line(ASK("tools/list", "\"cursor\":null")).kind ==
            HFSBI_MCP_REQUEST);
    T_CHECK(read_line(ASK("tools/list", "\"cursor\":\"\"")).kind ==
            HFSBI_MCP_REQUEST);
    T_CHECK(read_line(ASK("tools/list", "\"cursor\":\"b\"")).code == -32602);
    T_CHECK(read_line(ASK("tools/list", "\"cursor\":5")).code == -32602);
}

static void tokens_are_strings_or_numbers(void) {
    hfsbi_mcp_message m =
        read_line(ASK("tools/list", "\"_meta\":{\"progressToken\":\"t\"}"));
    T_STR(hfsb_json_str(m.token, HFSB_LIT("")), "t");
    m = read_line(ASK("tools/list", "\"_meta\":{\"progressToken\":0}"));
    T_CHECK(m.token && hfsb_json_int(m.token, 1) == 0);
    m = read_line(ASK("tools/list", "\"_meta\":{\"progressToken\":null}"));
    T_CHECK(!m.token);
    m = read_line(ASK("tools/list", "\"_meta\":{\"progressToken\":{}}"));
    T_CHECK(!m.token);
}

static void a_modern_request_names_its_log_level(void) {
#define LOG(level)                                                      \
    ASK("tools/list", "\"_meta\":{" K "protocolVersion\":\"" V "\"," ABLE \
                      "," K "logLevel\":" level "}")
    hfsbi_mcp_message m = read_line(LOG("\"info\""));
    T_CHECK(m.level == 1);
    m = read_line(LOG("\"loud\""));
    T_CHECK(m.level == HFSBI_MCP_SILENT);
    m = read_line(LOG("5"));
    T_CHECK(m.level == HFSBI_MCP_SILENT);
    m = read_line(ASK("tools/list", NOW));
    T_CHECK(m.level == HFSBI_MCP_SILENT);
}

static void cancelled_names_its_request(void) {
#define CANCEL(id)                                                    \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"," \
    "\"params\":{\"requestId\":" id "}}"
    hfsbi_mcp_message m = read_line(CANCEL("\"5\""));
    T_CHECK(m.kind == HFSBI_MCP_NOTIFICATION);
    T_CHECK(m.method == HFSBI_MCP_CANCELLED);
    T_STR(hfsb_json_str(m.target, HFSB_LIT("")), "5");
    m = read_line(CANCEL("5"));
    T_CHECK(m.method == HFSBI_MCP_CANCELLED);
    T_CHECK(hfsb_json_int(m.target, 0) == 5);
    T_CHECK(read_line(CANCEL("null")).method == HFSBI_MCP_OTHER);
    T_CHECK(read_line(CANCEL("{}")).method == HFSBI_MCP_OTHER);
    T_CHECK(read_line("{\"jsonrpc\":\"2.0\",\"method\":"
                      "\"notifications/cancelled\"}")
                .method == HFSBI_MCP_OTHER);
    /* with an id it is a request for an unknown method */
    m = read_line(ASK("notifications/cancelled", "\"requestId\":5"));
    T_CHECK(m.kind == HFSBI_MCP_FAULT && m.code == -32601);
}

/* The version belongs to the document that was read last. */
static void has_version(hfsbi_mcp_message m, const char *want) {
    T_CHECK(hfsb_str_equal(m.version, hfsb_cstr(want)));
}

static void the_version_of_a_message_is_found(void) {
    static const char *const known[] = {"2024-11-05", "2025-03-26",
                                        "2025-06-18", "2025-11-25", V};
    static const char *const unknown[] = {"", "2025-11-2", "2025-11-255"};
    hfsbi_mcp_head head = HFSB_INIT;
    size_t         i;
    for (i = 0; i < COUNT(known); i++)
        T_CHECK(hfsbi_mcp_era_of(hfsb_cstr(known[i])) ==
                (i == 4 ? HFSBI_ERA_MODERN : HFSBI_ERA_LEGACY));
    for (i = 0; i < COUNT(unknown); i++)
        T_CHECK(hfsbi_mcp_era_of(hfsb_cstr(unknown[i])) == HFSBI_ERA_UNKNOWN);
    has_version(read_line(ASK("tools/list", NOW)), V);
    has_version(read_line(ASK("tools/list", META("1"))), "1");
    has_version(read_line(ASK("tools/list", "")), "");
    head.http = true;
    head.version = HFSB_LIT("2025-06-18");
    has_version(read_as(ASK("tools/list", ""), &head, false), "2025-06-18");
}

static void initialize_agrees_on_a_version_that_exists(void) {
    static const struct {
        const char *asked, *agreed;
    } rows[] = {{"2024-11-05", "2024-11-05"}, {"2025-03-26", "2025-03-26"},
                {"2025-06-18", "2025-06-18"}, {"2025-11-25", "2025-11-25"},
                {V, "2025-11-25"},            {"1999-01-01", "2025-11-25"},
                {"", "2025-11-25"},           {"\\\"\\n", "2025-11-25"}};
    char   json[200];
    size_t i;
    for (i = 0; i < COUNT(rows); i++) {
        snprintf(json, sizeof json,
                 ASK("initialize", "\"protocolVersion\":\"%s\""),
                 rows[i].asked);
        has_version(read_line(json), rows[i].agreed);
    }
    has_version(read_line(ASK("initialize", "")), "2025-11-25");
    has_version(read_line(ASK("initialize", "\"protocolVersion\":5")),
                "2025-11-25");
}

static void levels_are_ordered(void) {
    static const char *const names[] = {"debug",   "info",     "notice",
                                        "warning", "error",    "critical",
                                        "alert",   "emergency"};
    size_t                   i;
    for (i = 0; i < COUNT(names); i++)
        T_CHECK(hfsbi_mcp_level(hfsb_cstr(names[i])) == (int)i);
    T_CHECK(hfsbi_mcp_level(HFSB_LIT("")) == -1);
    T_CHECK(hfsbi_mcp_level(HFSB_LIT("Info")) == -1);
}

/* ---- ids ---- */

static const char *const ids[] = {
    "0", "1", "-1", "9223372036854775807", "-9223372036854775808",
    "18446744073709551615", "1.0", "1.5", "1e300", "\"\"", "\"1\"", "\"a\"",
    "\"a\\\"\\\\\"", "\"\\u0000\\u0001\\u001f\\u007f\"",
    "\"\\b\\t\\n\\f\\r\\u000b/\"",
    "\"x\\u2028y\\u0000z \\ud83d\\ude00 \\\"q\\\"\\\\\"", "\"\xC3\xA9\""};

/* Every id is equal to itself in another document, and to no other id. */
static void ids_are_compared_by_type_and_value(void) {
    size_t i, k;
    for (i = 0; i < COUNT(ids); i++) {
        hfsb_json_doc one = HFSB_INIT;
        T_CHECK(hfsb_json_parse(hfsb_cstr(ids[i]), NULL, &one, NULL) ==
                HFSB_OK);
        for (k = 0; k < COUNT(ids); k++) {
            parse(hfsb_cstr(ids[k]));
            T_CHECK(hfsbi_mcp_same_id(one.root, doc.root) == (i == k));
        }
        T_CHECK(!hfsbi_mcp_same_id(one.root, NULL));
        hfsb_json_free(&one);
    }
    parse(HFSB_LIT("null"));
    T_CHECK(!hfsbi_mcp_same_id(NULL, NULL));
    T_CHECK(!hfsbi_mcp_same_id(doc.root, doc.root));
}

/* A sentence is one line of valid UTF-8, whatever it quotes. */
static void faults_quote_hostile_text_safely(void) {
    static const char *const rows[] = {
        ASK("a\\nb\\u0000\\u001b[31m\\\"", ""),
        ASK("tools/list", "\"cursor\":\"\\n\\r\\u2028\""),
        ASK("tools/list", META("\\n\\ud83d\\ude00"))};
    size_t i, k;
    for (i = 0; i < COUNT(rows); i++) {
        hfsbi_mcp_message m = read_line(rows[i]);
        hfsb_str          msg = hfsb_cstr(m.err.msg);
        T_CHECK(m.kind == HFSBI_MCP_FAULT && msg.len > 20);
        T_CHECK(hfsb_utf8_validate(msg) == msg.len);
        for (k = 0; k < msg.len; k++)
            T_CHECK((unsigned char)msg.ptr[k] >= 0x20);
    }
}

int main(void) {
    T_RUN(only_json_rpc_is_accepted);
    T_RUN(a_fault_keeps_a_valid_id);
    T_RUN(each_era_has_its_methods);
    T_RUN(set_level_exists_only_with_logging);
    T_RUN(modern_requests_over_stdio_are_checked_in_order);
    T_RUN(modern_requests_over_http_are_checked_in_order);
    T_RUN(legacy_requests_over_http_are_checked);
    T_RUN(names_of_any_length_match_their_base64);
    T_RUN(a_call_has_a_tool_and_arguments);
    T_RUN(a_list_takes_no_cursor);
    T_RUN(tokens_are_strings_or_numbers);
    T_RUN(a_modern_request_names_its_log_level);
    T_RUN(cancelled_names_its_request);
    T_RUN(the_version_of_a_message_is_found);
    T_RUN(initialize_agrees_on_a_version_that_exists);
    T_RUN(levels_are_ordered);
    T_RUN(ids_are_compared_by_type_and_value);
    T_RUN(faults_quote_hostile_text_safely);
    hfsb_json_free(&doc);
    return T_END();
}
