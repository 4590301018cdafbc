/* test_api_fields.c - what is wrong with the arguments of a call, as the
   detail of a 422. */
#include "../support/t_server.h"
#ifdef HFSBI_SPLIT
#include "../../src/api/api_private.h"
#endif

/* The sentence names the argument that it is about first, if any. */
static hfsb_status detail(const char *tool, const char *arguments,
                          const char *sentence, hfsb_buf *out) {
    hfsbi_api_call x;
    char           key[HFSB_KEY_SIZE] = "";
    size_t         n;
    hfsb_status    st;
    memset(&x, 0, sizeof x);
    x.where = "body";
    x.tool = hfsbi_tool_find(hfsb_cstr(tool));
    if (hfsb_json_parse(hfsb_cstr(arguments), NULL, &x.doc, NULL) != HFSB_OK)
        abort();
    n = strcspn(sentence + (*sentence == '"'), "\" :");
    if (hfsbi_param_find(x.tool->params,
                         hfsb_str_make(sentence + (*sentence == '"'), n)))
        snprintf(key, sizeof key, "%.*s", (int)n,
                 sentence + (*sentence == '"'));
    st = hfsbi_fields_detail(&x, key, hfsb_cstr(sentence), out);
    hfsb_json_free(&x.doc);
    return st;
}

/* type, msg and the rest of the location after "body" */
#define ITEM(type, loc, msg, input)                              \
    "{\"type\":\"" type "\",\"loc\":[\"body\"" loc "],\"msg\":\"" \
    msg "\",\"input\":" input "}"
#define MISSING(key, input) \
    ITEM("missing", ",\"" key "\"", "Field required", input)
#define STRING(loc, input) \
    ITEM("string_type", loc, "Input should be a valid string", input)

static void each_fault_has_its_item(void) {
    static const struct {
        const char *tool, *arguments, *sentence, *want;
    } cases[] = {
        {"bash", "{}", "s", "[" MISSING("command", "{}") "]"},
        {"bash", "{\"command\":null}", "s",
         "[" STRING(",\"command\"", "null") "]"},
        {"bash", "{\"command\":5}", "s", "[" STRING(",\"command\"", "5") "]"},
        {"bash", "{\"command\":[1,{\"a\":2}]}", "s",
         "[" STRING(",\"command\"", "[1,{\"a\":2}]") "]"},
        {"write", "{}", "s",
         "[" MISSING("path", "{}") "," MISSING("content", "{}") "]"},
        {"write", "{\"path\":true}", "s",
         "[" STRING(",\"path\"", "true") "," MISSING(
             "content", "{\"path\":true}") "]"},
        {"read", "{\"path\":\"a\",\"limit\":\"ten\"}", "s",
         "[" ITEM("int_parsing", ",\"limit\"",
                  "Input should be a valid integer, unable to parse string as "
                  "an integer", "\"ten\"") "]"},
        {"read", "{\"path\":\"a\",\"limit\":1.5}", "s",
         "[" ITEM("int_from_float", ",\"limit\"",
                  "Input should be a valid integer, got a number with a "
                  "fractional part", "1.5") "]"},
        {"read", "{\"path\":\"a\",\"offset\":{}}", "s",
         "[" ITEM("int_type", ",\"offset\"", "Input should be a valid integer",
                  "{}") "]"},
        {"bash", "{\"command\":\"a\",\"timeout\":\"soon\"}", "s",
         "[" ITEM("float_parsing", ",\"timeout\"",
                  "Input should be a valid number, unable to parse string as "
                  "a number", "\"soon\"") "]"},
        {"bash", "{\"command\":\"a\",\"timeout\":[]}", "s",
         "[" ITEM("float_type", ",\"timeout\"",
                  "Input should be a valid number", "[]") "]"},
        {"bash", "{\"command\":\"a\",\"background\":\"perhaps\"}", "s",
         "[" ITEM("bool_parsing", ",\"background\"",
                  "Input should be a valid boolean, unable to interpret input",
                  "\"perhaps\"") "]"},
        {"bash", "{\"command\":\"a\",\"background\":{}}", "s",
         "[" ITEM("bool_type", ",\"background\"",
                  "Input should be a valid boolean", "{}") "]"},
        {"bash", "{\"command\":\"a\",\"env\":7}", "s",
         "[" ITEM("dict_type", ",\"env\"",
                  "Input should be a valid dictionary", "7") "]"},
        {"multi_edit", "{\"path\":\"a\",\"edits\":7}", "s",
         "[" ITEM("list_type", ",\"edits\"", "Input should be a valid list",
                  "7") "]"},
        {"multi_edit",
         "{\"path\":\"a\",\"edits\":[{\"old_str\":\"a\",\"new_str\":\"b\"},"
         "{\"old_str\":1},3]}",
         "s",
         "[" STRING(",\"edits\",1,\"old_str\"", "1") "," ITEM(
             "missing", ",\"edits\",1,\"new_str\"", "Field required",
             "{\"old_str\":1}") "," ITEM("dict_type", ",\"edits\",2",
                                         "Input should be a valid dictionary",
                                         "3") "]"},
        {"read", "{\"path\":\"a\",\"path\":\"b\"}", "s",
         "[" ITEM("value_error", ",\"path\"",
                  "Value error, the key is given twice", "\"b\"") "]"},
        /* strings that mean a number, and null, are no faults */
        {"read", "{\"path\":\"a\",\"limit\":\"10\",\"offset\":null}",
         "Something else.",
         "[" ITEM("value_error", "", "Value error, Something else.",
                  "{\"path\":\"a\",\"limit\":\"10\",\"offset\":null}") "]"},
        {"bash", "{\"command\":\"a\",\"timeout\":-1}",
         "timeout must be a number of seconds.",
         "[" ITEM("value_error", ",\"timeout\"",
                  "Value error, timeout must be a number of seconds.",
                  "-1") "]"},
        {"bash", "{\"command\":\"a\",\"shell\":4}",
         "\"shell\": expected a string, found 4",
         "[" STRING(",\"shell\"", "4") "]"},
        {"kill", "{\"id\":false}", "s", "[" STRING(",\"id\"", "false") "]"},
    };
    size_t i;
    for (i = 0; i < TT_COUNT(cases); i++) {
        hfsb_buf out = HFSB_INIT;
        T_CHECK(detail(cases[i].tool, cases[i].arguments, cases[i].sentence,
                       &out) == HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&out), hfsb_cstr(cases[i].want)));
        if (!hfsb_str_equal(hfsb_buf_str(&out), hfsb_cstr(cases[i].want)))
            printf("is   %s\nwant %s\n", out.ptr, cases[i].want);
        hfsb_buf_free(&out);
    }
}

static void what_came_is_shown_as_far_as_it_is_short(void) {
    hfsb_buf body = HFSB_INIT, out = HFSB_INIT;
    tt_fill(&body, "{\"path\":\"a\",\"limit\":\"", 1);
    tt_fill(&body, "\xC3\xA9", 1000);
    tt_fill(&body, "\"}", 1);
    T_CHECK(detail("read", body.ptr, "s", &out) == HFSB_OK);
    T_CHECK(out.len < 700); /* 200 characters of it */
    T_CHECK(hfsb_str_find(hfsb_buf_str(&out), HFSB_LIT("\xC3\xA9\"}]")) !=
            HFSB_NPOS);
    hfsb_buf_truncate(&body, 0);
    hfsb_buf_truncate(&out, 0);
    tt_fill(&body, "{\"a\":\"", 1);
    tt_fill(&body, "x", 100000);
    tt_fill(&body, "\"}", 1);
    T_CHECK(detail("read", body.ptr, "s", &out) == HFSB_OK);
    T_STR(out, "[" MISSING("path", "null") "]");
    hfsb_buf_truncate(&body, 0);
    hfsb_buf_truncate(&out, 0);
    tt_fill(&body, "{\"path\":\"a\",\"edits\":[0", 1);
    tt_fill(&body, ",0", 9999);
    tt_fill(&body, "]}", 1);
    T_CHECK(detail("multi_edit", body.ptr, "s", &out) == HFSB_OK);
    T_CHECK(out.len < 4000); /* not ten thousand items */
    hfsb_buf_free(&body);
    hfsb_buf_free(&out);
}

static void one_detail(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_buf    out = HFSB_INIT;
    hfsb_status st;
    out.alloc = alloc;
    st = detail("multi_edit", "{\"path\":[1],\"edits\":[{\"old_str\":1}]}",
                "s", &out);
    T_CHECK(heap->fail_at ? st == HFSB_NOMEM || st == HFSB_OK
                          : st == HFSB_OK);
    T_CHECK(st == HFSB_OK || out.len == 0);
    hfsb_buf_free(&out);
}

static void each_allocation_may_fail(void) {
    t_each_allocation_fails(one_detail);
}

int main(void) {
    tt_begin();
    TT_RUN(each_fault_has_its_item);
    TT_RUN(what_came_is_shown_as_far_as_it_is_short);
    TT_RUN(each_allocation_may_fail);
    return TT_END();
}
