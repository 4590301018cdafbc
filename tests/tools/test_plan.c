/* test_plan.c - the plan without a session: plan_tool as a whole, and its
   definition. */
#include "../support/t_tools.h"
#ifdef HFSBI_SPLIT
#include "../../src/tools/tools_private.h"
#endif

static hfsb_status call(hfsbi_plan *plan, const char *json, bool strict,
                        tt_reply *r) {
    hfsb_json_doc doc = HFSB_INIT;
    tt_drop(r);
    T_CHECK(hfsb_json_parse(hfsb_cstr(json), NULL, &doc, NULL) == HFSB_OK);
    r->st = hfsbi_plan_call(plan, doc.root, strict, &r->res);
    hfsb_json_free(&doc);
    tt_look(r);
    return r->st;
}

static bool plan_is(const hfsbi_plan *plan, const char *want) {
    hfsb_buf out = HFSB_INIT;
    bool     ok;
    T_CHECK(hfsbi_plan_write(plan, &out, NULL) == HFSB_OK);
    ok = hfsb_str_equal(hfsb_buf_str(&out), hfsb_cstr(want));
    if (!ok) printf("  the plan is %s\n", out.ptr);
    hfsb_buf_free(&out);
    return ok;
}

#define ONE "[{\"id\":\"1\",\"content\":\"a\",\"status\":\"pending\"}]"

static void a_call_replaces_the_plan_or_leaves_it(void) {
    hfsbi_plan plan = HFSB_INIT;
    tt_reply   r = HFSB_INIT;
    plan.doc.alloc = tt_alloc();
    T_CHECK(plan_is(&plan, "[]") && hfsbi_plan_open(&plan) == 0);
    T_CHECK(call(&plan, "{\"todos\":" ONE "}", true, &r) == HFSB_OK);
    TT_OK(&r, "Plan updated: 1 pending, 0 in progress, 0 completed.");
    T_CHECK(plan_is(&plan, ONE) && hfsbi_plan_open(&plan) == 1);
    T_CHECK(call(&plan, "{\"todos\":[{\"id\":\"1\"}]}", true, &r) == HFSB_ARG);
    TT_FAIL(&r, "todos[0]: \"content\" is missing");
    T_CHECK(call(&plan, "{}", true, &r) == HFSB_ARG);
    TT_FAIL(&r, "\"todos\" is missing");
    T_CHECK(call(&plan, "[]", true, &r) == HFSB_ARG);
    T_CHECK(call(&plan, "{\"todos\":[],\"x\":1}", true, &r) == HFSB_ARG);
    TT_FAIL(&r, "Unknown key: x.");
    T_CHECK(plan_is(&plan, ONE));
    T_CHECK(call(&plan, "{\"todos\":[],\"x\":1}", false, &r) == HFSB_OK);
    TT_OK(&r, "Plan updated: 0 pending, 0 in progress, 0 completed.\n"
              "(unknown key ignored: x)");
    T_CHECK(plan_is(&plan, "[]"));
    tt_drop(&r);
    hfsbi_plan_free(&plan);
}

static void an_id_may_come_as_a_number(void) {
    hfsbi_plan plan = HFSB_INIT;
    tt_reply   r = HFSB_INIT;
    plan.doc.alloc = tt_alloc();
    T_CHECK(call(&plan,
                 "{\"todos\":[{\"id\":-7,\"content\":\"a\","
                 "\"status\":\"pending\"}]}",
                 true, &r) == HFSB_OK);
    T_CHECK(plan_is(&plan, "[{\"id\":\"-7\",\"content\":\"a\","
                           "\"status\":\"pending\"}]"));
    T_CHECK(call(&plan,
                 "{\"todos\":[{\"id\":true,\"content\":\"a\","
                 "\"status\":\"pending\"}]}",
                 true, &r) == HFSB_ARG);
    tt_drop(&r);
    hfsbi_plan_free(&plan);
}

static void todos_may_come_as_a_string(void) {
    hfsbi_plan plan = HFSB_INIT;
    tt_reply   r = HFSB_INIT;
    plan.doc.alloc = tt_alloc();
    T_CHECK(call(&plan,
                 "{\"todos\":\"[{\\\"id\\\":\\\"1\\\",\\\"content\\\":"
                 "\\\"a\\\",\\\"status\\\":\\\"pending\\\"}]\"}",
                 true, &r) == HFSB_OK);
    T_CHECK(r.res.success && plan_is(&plan, ONE));
    T_CHECK(call(&plan, "{\"todos\":\"a, b\"}", true, &r) == HFSB_ARG);
    TT_FAIL(&r, "\"todos\": expected an array, found the string \"a, b\"");
    tt_drop(&r);
    hfsbi_plan_free(&plan);
}

static void reminds_at_most_twice_in_a_row(void) {
    hfsbi_plan plan = HFSB_INIT;
    tt_reply   r = HFSB_INIT;
    hfsb_buf   out = HFSB_INIT;
    plan.doc.alloc = tt_alloc();
    T_CHECK(!hfsbi_plan_remind(&plan, false, &out) && !out.len);
    T_CHECK(call(&plan, "{\"todos\":" ONE "}", true, &r) == HFSB_OK);
    T_CHECK(!hfsbi_plan_remind(&plan, true, &out));
    T_CHECK(hfsbi_plan_remind(&plan, false, &out));
    T_CHECK(tt_says(&out, "- 1 (pending): a\n"));
    T_CHECK(hfsbi_plan_remind(&plan, false, &out));
    T_CHECK(!hfsbi_plan_remind(&plan, false, &out));
    T_CHECK(!hfsbi_plan_remind(&plan, true, &out));
    T_CHECK(hfsbi_plan_remind(&plan, false, &out));
    hfsb_buf_free(&out);
    tt_drop(&r);
    hfsbi_plan_free(&plan);
}

static void plan_tool_is_marked_read_only(void) {
    const hfsbi_tool *row = hfsbi_plan_tool();
    size_t            i;
    T_CHECK(!strcmp(row->name, "plan_tool"));
    for (i = 0; i < HFSBI_TOOLS; i++) T_CHECK(hfsbi_tool_at(i) != row);
    T_CHECK(row->kind == HFSBI_TOOL_READS);
}

static void without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsbi_plan plan = HFSB_INIT;
    tt_reply   r = HFSB_INIT;
    plan.doc.alloc = alloc;
    call(&plan,
         "{\"todos\":\"[{\\\"id\\\":\\\"1\\\",\\\"content\\\":\\\"a\\\","
         "\\\"status\\\":\\\"pending\\\"}]\",\"x\":1}",
         false, &r);
    T_CHECK(r.st == HFSB_OK ? r.res.success
                            : r.st == HFSB_NOMEM && heap->fail_at);
    tt_drop(&r);
    hfsbi_plan_free(&plan);
}

static void reports_each_failed_allocation(void) {
    t_each_allocation_fails(without_memory);
}

int main(void) {
    tt_begin();
    TT_RUN(a_call_replaces_the_plan_or_leaves_it);
    TT_RUN(an_id_may_come_as_a_number);
    TT_RUN(todos_may_come_as_a_string);
    TT_RUN(reminds_at_most_twice_in_a_row);
    TT_RUN(plan_tool_is_marked_read_only);
    TT_RUN(reports_each_failed_allocation);
    return TT_END();
}
