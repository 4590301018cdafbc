/* test_mcp_reply.c - messages to a client, and the list of tools. */
#define T_SERVER
#include "../support/t.h"
#ifdef HFSBI_SPLIT
#include "../../src/mcp/mcp_private.h"
#endif

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define INFO                                                   \
    "\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{"      \
    "\"name\":\"n\",\"title\":\"T\",\"version\":\"1\"}}"
#define SAME "\"resultType\":\"complete\"," INFO
#define KEEP "\"ttlMs\":60000,\"cacheScope\":\"private\""

/* An id, good until the next one. */
static const hfsb_json_value *id_of(const char *json) {
    static hfsb_json_doc doc;
    hfsb_json_free(&doc);
    if (json) T_CHECK(hfsb_json_parse(hfsb_cstr(json), NULL, &doc, NULL) ==
                      HFSB_OK);
    return doc.root;
}

static void set(hfsb_buf *b, const char *text) {
    hfsb_buf_truncate(b, 0);
    T_CHECK(hfsb_buf_append(b, hfsb_cstr(text)) == HFSB_OK);
}

static hfsbi_mcp_about about_us(void) {
    hfsbi_mcp_about a = HFSB_INIT;
    set(&a.name, "n");
    set(&a.title, "T");
    set(&a.version, "1");
    set(&a.instructions, "Be\nkind.");
    return a;
}

static void about_free(hfsbi_mcp_about *a) {
    hfsb_buf_free(&a->name);
    hfsb_buf_free(&a->title);
    hfsb_buf_free(&a->version);
    hfsb_buf_free(&a->instructions);
}

/* One line of valid JSON, in UTF-8. */
static void check_line(hfsb_str line) {
    hfsb_json_doc doc = HFSB_INIT;
    T_CHECK(hfsb_str_find_byte(line, '\n') == HFSB_NPOS);
    T_CHECK(hfsb_json_parse(line, NULL, &doc, NULL) == HFSB_OK);
    T_STR(hfsb_json_str(hfsb_json_get(doc.root, "jsonrpc"), HFSB_LIT("")),
          "2.0");
    hfsb_json_free(&doc);
}

#define CHECK_MESSAGE(call, text)        \
    do {                                 \
        hfsb_buf out = HFSB_INIT;        \
        T_CHECK((call) == HFSB_OK);      \
        T_STR(out, text);                \
        check_line(hfsb_buf_str(&out));  \
        hfsb_buf_free(&out);             \
    } while (0)

#define TOOLS "[{\"name\":\"x\"}]"

static void legacy_results_have_no_envelope(void) {
    hfsbi_mcp_about a = about_us();
    CHECK_MESSAGE(hfsbi_mcp_put_empty(id_of("\"a\""), &out),
                  "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}");
    CHECK_MESSAGE(hfsbi_mcp_put_list(&a, id_of("1"), false, HFSB_LIT(TOOLS),
                                     &out),
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{"
                  "\"name\":\"x\"}]}}");
    CHECK_MESSAGE(hfsbi_mcp_put_result(&a, id_of("1"), false,
                                       HFSB_LIT("{},{}"), false, &out),
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{},{"
                  "}]}}");
    CHECK_MESSAGE(hfsbi_mcp_put_result(&a, id_of("1"), false, HFSB_LIT(""),
                                       true, &out),
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[],"
                  "\"isError\":true}}");
    about_free(&a);
}

static void modern_results_have_an_envelope(void) {
    hfsbi_mcp_about a = about_us();
    CHECK_MESSAGE(hfsbi_mcp_put_list(&a, id_of("1"), true, HFSB_LIT(TOOLS),
                                     &out),
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{"
                  "\"name\":\"x\"}]," KEEP "," SAME "}}");
    CHECK_MESSAGE(hfsbi_mcp_put_result(&a, id_of("1"), true,
                                       HFSB_LIT("{}"), true, &out),
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{}],"
                  "\"isError\":true," SAME "}}");
    CHECK_MESSAGE(hfsbi_mcp_put_discover(&a, id_of("1"), &out),
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{"
                  "\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{"
                  "\"tools\":{}},\"instructions\":\"Be\\nkind.\"," KEEP
                  "," SAME "}}");
    a.logging = true;
    hfsb_buf_truncate(&a.instructions, 0);
    hfsb_buf_truncate(&a.title, 0);
    CHECK_MESSAGE(hfsbi_mcp_put_discover(&a, id_of("1"), &out),
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{"
                  "\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{"
                  "\"logging\":{},\"tools\":{}}," KEEP
                  ",\"resultType\":\"complete\",\"_meta\":{"
                  "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"n\","
                  "\"version\":\"1\"}}}}");
    CHECK_MESSAGE(hfsbi_mcp_put_list(&a, id_of("1"), false, HFSB_LIT(""),
                                     &out),
                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[]}}");
    about_free(&a);
}

static void initialize_names_version_and_capabilities(void) {
    hfsbi_mcp_about a = about_us();
    int             i;
    for (i = 0; i < 2; i++) {
        hfsb_buf out = HFSB_INIT, want = HFSB_INIT;
        a.logging = i != 0;
        T_CHECK(hfsb_buf_printf(
                    &want,
                    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{"
                    "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{%s"
                    "\"tools\":{}},\"serverInfo\":{\"name\":\"n\",\"title\":"
                    "\"T\",\"version\":\"1\"},\"instructions\":"
                    "\"Be\\nkind.\"}}",
                    a.logging ? "\"logging\":{}," : "") == HFSB_OK);
        T_CHECK(hfsbi_mcp_put_initialize(&a, id_of("1"),
                                         HFSB_LIT("2025-06-18"),
                                         &out) == HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&out), hfsb_buf_str(&want)));
        hfsb_buf_free(&out);
        hfsb_buf_free(&want);
    }
    about_free(&a);
}

static void errors_have_code_and_message(void) {
    hfsbi_mcp_message m = HFSB_INIT;
    hfsb_json_doc     doc = HFSB_INIT;
    CHECK_MESSAGE(hfsbi_mcp_put_error(NULL, -32700,
                                      HFSB_LIT("a\n\"b\"\xFF"), &out),
                  "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700"
                  ",\"message\":\"a\\n\\\"b\\\"\xEF\xBF\xBD\"}}");
    T_CHECK(hfsb_json_parse(HFSB_LIT("\"i\\n\""), NULL, &doc, NULL) ==
            HFSB_OK);
    m.kind = HFSBI_MCP_FAULT;
    m.code = -32601;
    m.id = doc.root;
    snprintf(m.err.msg, sizeof m.err.msg, "no");
    CHECK_MESSAGE(hfsbi_mcp_put_fault(&m, &out),
                  "{\"jsonrpc\":\"2.0\",\"id\":\"i\\n\",\"error\":{\"code\":"
                  "-32601,\"message\":\"no\"}}");
    m.code = -32022;
    m.id = NULL;
    m.version = HFSB_LIT("\"x\n");
    CHECK_MESSAGE(hfsbi_mcp_put_fault(&m, &out),
                  "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32022"
                  ",\"message\":\"no\",\"data\":{\"supported\":["
                  "\"2026-07-28\"],\"requested\":\"\\\"x\\n\"}}}");
    hfsb_json_free(&doc);
}

static void ids_are_echoed(void) {
    static const char *const ids[] = {
        "0", "-1", "9223372036854775807", "18446744073709551615", "1.5",
        "\"\"", "\"a\\\"\\\\\\n\\u0000\\u001f\"",
        "\"x\xE2\x80\xA8y\\u0000z \xF0\x9F\x98\x80\"", "null"};
    size_t i;
    for (i = 0; i <= COUNT(ids); i++) {
        const char *id = i < COUNT(ids) ? ids[i] : NULL; /* NULL: absent */
        hfsb_buf    out = HFSB_INIT, want = HFSB_INIT;
        T_CHECK(hfsb_buf_printf(&want,
                                "{\"jsonrpc\":\"2.0\",\"id\":%s,"
                                "\"result\":{}}",
                                id ? id : "null") == HFSB_OK);
        T_CHECK(hfsbi_mcp_put_empty(id_of(id), &out) == HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&out), hfsb_buf_str(&want)));
        hfsb_buf_free(&out);
        hfsb_buf_free(&want);
    }
}

#define PROGRESS(rest)                                               \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","    \
    "\"params\":{\"progressToken\":\"t\",\"progress\":" rest "}}"

static void progress_is_written_as_a_whole_number_if_possible(void) {
    const hfsb_json_value *t = id_of("\"t\"");
    const hfsb_str         none = HFSB_LIT("");
    volatile double zero = 0; /* keeps compilers from dividing */
    CHECK_MESSAGE(hfsbi_mcp_put_progress(t, 0, 0, none, &out), PROGRESS("0"));
    CHECK_MESSAGE(hfsbi_mcp_put_progress(t, 50, 100, none, &out),
                  PROGRESS("50,\"total\":100"));
    CHECK_MESSAGE(hfsbi_mcp_put_progress(t, 0.5, 1.5, HFSB_LIT("a\nb"), &out),
                  PROGRESS("0.5,\"total\":1.5,\"message\":\"a\\nb\""));
    CHECK_MESSAGE(hfsbi_mcp_put_progress(t, -3, -1, none, &out),
                  PROGRESS("-3"));
    CHECK_MESSAGE(hfsbi_mcp_put_progress(t, 1e300, 0, none, &out),
                  PROGRESS("1e300"));
    CHECK_MESSAGE(hfsbi_mcp_put_progress(t, 1 / zero, 1 / zero, none, &out),
                  PROGRESS("0,\"total\":0"));
    CHECK_MESSAGE(hfsbi_mcp_put_progress(t, zero / zero, zero / zero, none,
                                         &out),
                  PROGRESS("0"));
}

static void logs_are_notifications(void) {
    CHECK_MESSAGE(hfsbi_mcp_put_log("info", HFSB_LIT("a\r\n\xFF"), &out),
                  "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\","
                  "\"params\":{\"level\":\"info\",\"data\":\"a\\r\\n"
                  "\xEF\xBF\xBD\"}}");
}

/* ---- the list of tools ---- */

#define HINT(name, truth) \
    "{\"name\":\"" name "\",\"annotations\":{\"readOnlyHint\":" truth "}}"
#define BASH   "{\"name\":\"bash\",\"annotations\":{}}"
#define OUTPUT HINT("bash_output", "true")
#define READ   HINT("read", "true")
#define WRITE  HINT("write", "false")
#define EXISTS HINT("exists", "true")
#define ALL    "[" BASH "," OUTPUT "," READ "," WRITE "," EXISTS "]"

/* A list that never had a tool has no text. */
static void check_list(const hfsbi_mcp_list *list, const char *want) {
    hfsb_str text =
        list->text.len ? hfsb_buf_str(&list->text) : HFSB_LIT("[]");
    T_CHECK(hfsb_str_equal(text, hfsb_cstr(want)));
    if (!hfsb_str_equal(text, hfsb_cstr(want)))
        printf("  is   %s\n  want %s\n", text.ptr, want);
}

static bool has(const hfsbi_mcp_list *list, const char *name) {
    return hfsbi_mcp_list_find(list, hfsb_cstr(name), NULL);
}

static void built_in_tools_are_chosen_by_name(void) {
    static const struct {
        const char *only;
        bool        read_only;
        const char *list; /* NULL: refused */
    } rows[] = {
        {"", false, "[" BASH "," OUTPUT "," READ "," WRITE "]"},
        {"", true, "[" READ "]"},
        {" , ", false, "[" BASH "," OUTPUT "," READ "," WRITE "]"},
        {"read", false, "[" READ "]"},
        {"write, read ,bash", false, "[" BASH "," READ "," WRITE "]"},
        {"read,read,", false, "[" READ "]"},
        {"exists", false, "[" EXISTS "]"},
        {"exists,read", true, "[" READ "," EXISTS "]"},
        {"exists,read,bash", true, NULL},
        {"bash_output", true, NULL},
        {"raed", false, NULL},
        {"read,Bash", false, NULL},
        {"read bash", false, NULL},
        /* sets; what is not there is left out */
        {"small", false, "[" BASH "," OUTPUT "," READ "," WRITE "]"},
        {"gpt", true, "[" READ "]"},
        {"claude,exists", false,
         "[" BASH "," OUTPUT "," READ "," WRITE "," EXISTS "]"},
        {"exists, claude", true, "[" READ "," EXISTS "]"},
        {"small,bash", true, NULL},
        {"large", false, NULL},
    };
    size_t i;
    for (i = 0; i < COUNT(rows); i++) {
        hfsbi_mcp_list list = HFSB_INIT;
        hfsb_err       err = HFSB_INIT;
        hfsb_status    st;
        list.read_only = rows[i].read_only;
        st = hfsbi_mcp_list_choose(&list, HFSB_LIT(ALL),
                                   hfsb_cstr(rows[i].only), &err);
        T_CHECK(st == (rows[i].list ? HFSB_OK : HFSB_ARG));
        check_list(&list, rows[i].list ? rows[i].list : "[]");
        T_CHECK((err.msg[0] != 0) == !rows[i].list);
        if (!rows[i].list && rows[i].read_only)
            T_CHECK(strstr(err.msg, "is not read-only"));
        else if (!rows[i].list)
            T_CHECK(strstr(err.msg,
                           "There are: bash, bash_output, read, write, "
                           "exists; and the sets claude, gpt, small.") !=
                    NULL);
        hfsbi_mcp_list_free(&list);
    }
}

static hfsb_mcp_tool tool_of(const char *name) {
    hfsb_mcp_tool t = HFSB_INIT;
    t.name = name;
    return t;
}

/* The program's tools come last, and stay when built-in ones are chosen. */
static void own_tools_follow_built_in_ones(void) {
    hfsbi_mcp_list        list = HFSB_INIT;
    hfsb_mcp_tool         t = tool_of("x");
    const hfsbi_mcp_tool *own = NULL;
    T_CHECK(hfsbi_mcp_list_add(&list, &t, NULL) == HFSB_OK);
#define X                                                                  \
    "{\"name\":\"x\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" \
    "},\"additionalProperties\":false},\"annotations\":{"                   \
    "\"readOnlyHint\":false}}"
    check_list(&list, "[" X "]");
    T_CHECK(hfsbi_mcp_list_choose(&list, HFSB_LIT(ALL), HFSB_LIT("read"),
                                  NULL) == HFSB_OK);
    check_list(&list, "[" READ "," X "]");
    t.name = "y-Y_0";
    t.title = "A \"title\"";
    t.description = "two\nlines";
    t.schema = " { \"type\" : \"object\" } ";
    t.annotations = "{\"readOnlyHint\":true}";
    t.user = &list;
    T_CHECK(hfsbi_mcp_list_add(&list, &t, NULL) == HFSB_OK);
#define Y                                                              \
    "{\"name\":\"y-Y_0\",\"title\":\"A \\\"title\\\"\",\"description\":"  \
    "\"two\\nlines\",\"inputSchema\":{\"type\":\"object\"},"               \
    "\"annotations\":{\"readOnlyHint\":true}}"
    check_list(&list, "[" READ "," X "," Y "]");
    T_CHECK(hfsbi_mcp_list_find(&list, HFSB_LIT("y-Y_0"), &own));
    T_CHECK(own && own->user == &list);
    T_CHECK(hfsbi_mcp_list_find(&list, HFSB_LIT("read"), &own) && !own);
    T_CHECK(!hfsbi_mcp_list_find(&list, HFSB_LIT("rea"), &own) && !own);
    T_CHECK(!has(&list, "") && !has(&list, "bash"));
    T_CHECK(hfsbi_mcp_list_choose(&list, HFSB_LIT(ALL), HFSB_LIT(""), NULL) ==
            HFSB_OK);
    check_list(&list, "[" BASH "," OUTPUT "," READ "," WRITE "," X "," Y "]");
    hfsbi_mcp_list_free(&list);
}

static void a_built_in_tool_may_not_take_a_name(void) {
    hfsbi_mcp_list list = HFSB_INIT;
    hfsb_mcp_tool  t = tool_of("write");
    hfsb_err       err = HFSB_INIT;
    T_CHECK(hfsbi_mcp_list_add(&list, &t, NULL) == HFSB_OK);
    T_CHECK(hfsbi_mcp_list_choose(&list, HFSB_LIT(ALL), HFSB_LIT(""), &err) ==
            HFSB_ARG);
    T_CHECK(strstr(err.msg, "\"write\" already") != NULL);
    T_CHECK(has(&list, "write") && !has(&list, "read"));
    hfsbi_mcp_list_free(&list);
}

static void bad_definitions_are_refused(void) {
    static const struct {
        const char *name, *schema, *annotations, *says;
    } rows[] = {
        {NULL, NULL, NULL, "letters"},
        {"", NULL, NULL, "letters"},
        {"a.b", NULL, NULL, "letters"},
        {"a b", NULL, NULL, "letters"},
        {"\"", NULL, NULL, "letters"},
        {"0123456789012345678901234567890123456789012345678901234567890123x",
         NULL, NULL, "letters"},
        {"read", NULL, NULL, "already"},
        {"x", "[]", NULL, "object, not array"},
        {"x", "{", NULL, "schema of \"x\""},
        {"x", "", NULL, "schema of \"x\""},
        {"x", "{}", NULL, "\"type\": \"object\""},
        {"x", "{\"type\":\"array\"}", NULL, "\"type\": \"object\""},
        {"x", "{\"type\":[\"object\"]}", NULL, "\"type\": \"object\""},
        {"x", NULL, "true", "annotations of \"x\""},
        {"x", NULL, "{]", "annotations of \"x\""},
    };
    hfsbi_mcp_list list = HFSB_INIT;
    size_t         i;
    T_CHECK(hfsbi_mcp_list_choose(&list, HFSB_LIT("[" READ "]"), HFSB_LIT(""),
                                  NULL) == HFSB_OK);
    for (i = 0; i < COUNT(rows); i++) {
        hfsb_mcp_tool t = tool_of(rows[i].name);
        hfsb_err      err = HFSB_INIT;
        t.schema = rows[i].schema;
        t.annotations = rows[i].annotations;
        T_CHECK(hfsbi_mcp_list_add(&list, &t, &err) == HFSB_ARG);
        T_CHECK(strstr(err.msg, rows[i].says) != NULL);
        check_list(&list, "[" READ "]");
    }
    hfsbi_mcp_list_free(&list);
}

/* ---- the real list: what every host accepts ---- */

/* Checks a schema: one type, items for arrays, objects with known keys, none of
   the keywords that a host may not know. So every host can convert it to
   OpenAI's strict mode or to the schemas of Gemini. */
static void check_schema(const hfsb_json_value *schema, hfsb_str tool) {
    static const char *const known[] = {
        "type",     "description", "properties",
        "required", "items",       "additionalProperties",
        "enum"};
    hfsb_str type = hfsb_json_str(hfsb_json_get(schema, "type"), HFSB_LIT(""));
    hfsb_json_iter it = hfsb_json_begin(schema);
    size_t         i, before = t_failed;
    T_CHECK(type.len > 0);
    while (hfsb_json_next(&it)) {
        for (i = 0; i < COUNT(known); i++)
            if (hfsb_str_equal(it.key, hfsb_cstr(known[i]))) break;
        T_CHECK(i < COUNT(known));
    }
    if (hfsb_str_equal(type, HFSB_LIT("object"))) {
        T_CHECK(!hfsb_json_bool(hfsb_json_get(schema, "additionalProperties"),
                                true));
        T_CHECK(hfsb_json_count(hfsb_json_get(schema, "properties")) > 0);
        T_CHECK(hfsb_json_type_of(hfsb_json_get(schema, "required")) ==
                HFSB_JSON_ARRAY);
    }
    it = hfsb_json_begin(hfsb_json_get(schema, "properties"));
    if (hfsb_str_equal(type, HFSB_LIT("array"))) {
        T_CHECK(hfsb_json_get(schema, "items"));
        check_schema(hfsb_json_get(schema, "items"), tool);
    }
    while (hfsb_json_next(&it)) check_schema(it.value, tool);
    if (t_failed != before) printf("  in %.*s\n", (int)tool.len, tool.ptr);
}

static hfsb_str member_of(const hfsb_json_value *object, const char *key) {
    return hfsb_json_str(hfsb_json_get(object, key), HFSB_LIT(""));
}

static void check_definition(const hfsb_json_value *tool) {
    hfsb_str               name = member_of(tool, "name");
    const hfsb_json_value *schema = hfsb_json_get(tool, "inputSchema");
    const hfsb_json_value *hints = hfsb_json_get(tool, "annotations");
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(schema, "required"));
    T_CHECK(name.len > 0 && name.len <= 40);
    T_CHECK(hfsb_json_str(hfsb_json_get(tool, "title"), HFSB_LIT("")).len);
    T_CHECK(
        hfsb_json_str(hfsb_json_get(tool, "description"), HFSB_LIT("")).len);
    T_STR(hfsb_json_str(hfsb_json_get(schema, "type"), HFSB_LIT("")),
          "object");
    check_schema(schema, name);
    if (hfsb_json_type_of(hfsb_json_get(hints, "readOnlyHint")) !=
        HFSB_JSON_BOOL)
        printf("  %.*s: no readOnlyHint\n", (int)name.len, name.ptr);
    T_CHECK(hfsb_json_type_of(hfsb_json_get(hints, "readOnlyHint")) ==
            HFSB_JSON_BOOL);
    T_CHECK(!hfsb_json_get(tool, "outputSchema"));
    while (hfsb_json_next(&it)) {
        hfsb_str key = hfsb_json_str(it.value, HFSB_LIT("?"));
        T_CHECK(hfsb_json_get(hfsb_json_get(schema, "properties"), key.ptr));
    }
}

#define CORE ",\"_meta\":{\"anthropic/alwaysLoad\":true}"

/* Claude Code defers the tools of a server unless they ask for more, and a
   model without bash or edit first has to search for them. */
static void core_tools_are_always_loaded(const hfsbi_mcp_list *list) {
    static const char *const core[] = {"bash",  "bash_output", "read", "write",
                                       "edit", "glob",        "grep"};
    size_t i, k, found = 0;
    for (i = 0; i < list->built_in_count; i++) {
        const hfsb_json_value *meta = hfsb_json_get(list->built_in[i], "_meta");
        bool                   is_core = false;
        for (k = 0; k < COUNT(core); k++)
            is_core = is_core ||
                      hfsb_str_equal(member_of(list->built_in[i], "name"),
                                     hfsb_cstr(core[k]));
        T_CHECK(hfsb_json_bool(hfsb_json_get(meta, "anthropic/alwaysLoad"),
                               false) == is_core);
        found += is_core;
    }
    T_CHECK(found == COUNT(core));
    /* the model does not see _meta, and does not pay for it */
    T_CHECK(list->text.len < 8000 + COUNT(core) * strlen(CORE));
}

static void every_host_accepts_our_tools(void) {
    hfsb_buf       all = HFSB_INIT;
    hfsbi_mcp_list list = HFSB_INIT;
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    const hfsbi_tool *plan = hfsbi_plan_tool();
    T_CHECK(hfsbi_tools_define("/bin/sh", HFSB_CONFINE_NONE, &plan, 1,
                               HFSB_TOOLS_MCP, &all, NULL) == HFSB_OK);
    T_CHECK(hfsbi_mcp_list_choose(&list, hfsb_buf_str(&all), HFSB_LIT(""),
                                  NULL) == HFSB_OK);
    core_tools_are_always_loaded(&list);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&list.text), NULL, &doc, NULL) ==
            HFSB_OK);
    T_CHECK(hfsb_json_count(doc.root) >= 10);
    it = hfsb_json_begin(doc.root);
    while (hfsb_json_next(&it)) check_definition(it.value);
    hfsb_json_free(&doc);
    /* in read-only mode nothing can change anything */
    list.read_only = true;
    T_CHECK(hfsbi_mcp_list_choose(&list, hfsb_buf_str(&all), HFSB_LIT(""),
                                  NULL) == HFSB_OK);
    T_CHECK(has(&list, "read"));
    T_CHECK(!has(&list, "bash") && !has(&list, "write"));
    T_CHECK(!has(&list, "kill"));
    hfsb_buf_free(&all);
    hfsbi_mcp_list_free(&list);
}

/* Every name in a set is that of a tool. */
static void sets_suit_their_models(void) {
    static const struct {
        const char *set;
        size_t      count, more; /* tools; with checkpoints */
        const char *has, *has_not;
    } rows[] = {{"claude", 12, 4, "multi_edit", "apply_patch"},
                {"gpt", 11, 4, "apply_patch", "edit"},
                {"small", 6, 1, "edit", "grep"},
                {"small,grep,edit_lines", 8, 1, "edit_lines", "plan_tool"},
                {"", 13, 4, "apply_patch", "edit_lines"}};
    hfsb_buf          all = HFSB_INIT;
    const hfsbi_tool *plan = hfsbi_plan_tool();
    size_t            k, i;
    for (k = 0; k < 2 * COUNT(rows); k++) {
        bool history = k >= COUNT(rows);
        i = k % COUNT(rows);
        hfsb_buf_truncate(&all, 0);
        T_CHECK(hfsbi_tools_define("/bin/sh", HFSB_CONFINE_NONE, &plan, 1,
                                   HFSB_TOOLS_MCP, &all, NULL) == HFSB_OK);
        T_CHECK(hfsbi_mcp_define_requested(history, &all, NULL) == HFSB_OK);
        hfsbi_mcp_list list = HFSB_INIT;
        T_CHECK(hfsbi_mcp_list_choose(&list, hfsb_buf_str(&all),
                                      hfsb_cstr(rows[i].set),
                                      NULL) == HFSB_OK);
        T_CHECK(list.built_in_count ==
                rows[i].count + (history ? rows[i].more : 0));
        T_CHECK(has(&list, "undo") == history);
        T_CHECK(has(&list, "bash") && has(&list, "read"));
        T_CHECK(has(&list, rows[i].has) && !has(&list, rows[i].has_not));
        hfsbi_mcp_list_free(&list);
    }
    hfsb_buf_free(&all);
}

/* ---- no memory ---- */

static void try_list(hfsb_alloc alloc, const t_heap *heap) {
    hfsbi_mcp_list list = HFSB_INIT;
    hfsb_mcp_tool  t = tool_of("x");
    hfsb_status    st;
    list.alloc = list.doc.alloc = list.text.alloc = alloc;
    t.schema = "{\"type\":\"object\"}";
    st = hfsbi_mcp_list_add(&list, &t, NULL);
    T_CHECK(st == (heap->fail_at && st ? HFSB_NOMEM : HFSB_OK));
    T_CHECK(has(&list, "x") == (st == HFSB_OK));
    T_CHECK((list.text.len > 0) == has(&list, "x"));
    st = hfsbi_mcp_list_choose(&list, HFSB_LIT(ALL), HFSB_LIT(""), NULL);
    T_CHECK(st == (heap->fail_at && st ? HFSB_NOMEM : HFSB_OK));
    T_CHECK(has(&list, "read") == (st == HFSB_OK));
    T_CHECK((hfsb_str_find(hfsb_buf_str(&list.text), HFSB_LIT("read\"")) !=
             HFSB_NPOS) == (st == HFSB_OK));
    hfsbi_mcp_list_free(&list);
}

static hfsbi_mcp_about shared;
static hfsb_json_doc   shared_doc;

static hfsb_status put_one(int which, hfsb_buf *out) {
    hfsbi_mcp_message m = HFSB_INIT;
    const hfsb_json_value *id = shared_doc.root;
    switch (which) {
    case 0: return hfsbi_mcp_put_discover(&shared, id, out);
    case 1:
        return hfsbi_mcp_put_list(&shared, id, true, HFSB_LIT(TOOLS), out);
    case 2:
        return hfsbi_mcp_put_result(&shared, id, true, HFSB_LIT("{}"), true,
                                    out);
    case 3: return hfsbi_mcp_put_initialize(&shared, id, HFSB_LIT("1"), out);
    case 4:
        return hfsbi_mcp_put_progress(id, 0.5, 3, HFSB_LIT("message"), out);
    case 5: return hfsbi_mcp_put_log("info", HFSB_LIT("text"), out);
    case 6: return hfsbi_mcp_put_empty(id, out);
    case 7: return hfsbi_mcp_put_error(id, -1, HFSB_LIT("sentence"), out);
    default:
        m.code = HFSBI_MCP_VERSION;
        m.id = shared_doc.root;
        m.version = HFSB_LIT("1900-01-01");
        return hfsbi_mcp_put_fault(&m, out);
    }
}

static void try_replies(hfsb_alloc alloc, const t_heap *heap) {
    int i;
    for (i = 0; i < 9; i++) {
        hfsb_buf    out = HFSB_INIT;
        hfsb_status st;
        out.alloc = alloc;
        if (hfsb_buf_append(&out, HFSB_LIT("before")) == HFSB_OK) {
            st = put_one(i, &out);
            T_CHECK(st == HFSB_OK || (heap->fail_at && st == HFSB_NOMEM));
            T_CHECK((out.len == 6) == (st != HFSB_OK));
        }
        hfsb_buf_free(&out);
    }
}

static void each_allocation_may_fail(void) {
    shared = about_us();
    T_CHECK(hfsb_json_parse(HFSB_LIT("\"a long id that takes some room, more "
                                     "than a new buffer has at first, so that "
                                     "it must grow\""),
                            NULL, &shared_doc, NULL) == HFSB_OK);
    t_each_allocation_fails(try_replies);
    t_each_allocation_fails(try_list);
    hfsb_json_free(&shared_doc);
    about_free(&shared);
}

int main(void) {
    T_RUN(legacy_results_have_no_envelope);
    T_RUN(modern_results_have_an_envelope);
    T_RUN(initialize_names_version_and_capabilities);
    T_RUN(errors_have_code_and_message);
    T_RUN(ids_are_echoed);
    T_RUN(progress_is_written_as_a_whole_number_if_possible);
    T_RUN(logs_are_notifications);
    T_RUN(built_in_tools_are_chosen_by_name);
    T_RUN(own_tools_follow_built_in_ones);
    T_RUN(bad_definitions_are_refused);
    T_RUN(a_built_in_tool_may_not_take_a_name);
    T_RUN(every_host_accepts_our_tools);
    T_RUN(sets_suit_their_models);
    T_RUN(each_allocation_may_fail);
    (void)id_of(NULL);
    return T_END();
}
