/* plan.c - the todo plan of a model, and the reminder of its open items.

   plan_tool replaces the whole plan. The items are checked, copied into a
   document of our own, and kept only if all of them are valid. A turn of the
   model without tool calls while items are open is answered by a reminder, at
   most HFSBI_REMIND_TIMES in a row; a turn with tool calls resets the count. */
#include "tools_private.h"

typedef struct hfsbi_todo_args {
    hfsb_str id, content, status;
} hfsbi_todo_args;

static const hfsbi_param hfsbi_todo_params[] = {
    HFSBI_PARAM("id", HFSBI_ARG_STR, HFSBI_REQUIRED | HFSBI_OR_NUMBER,
                hfsbi_todo_args, id, NULL),
    HFSBI_PARAM("content", HFSBI_ARG_STR, HFSBI_REQUIRED, hfsbi_todo_args,
                content, "What is to be done"),
    HFSBI_PARAM_CHOICE("status", HFSBI_REQUIRED, hfsbi_todo_args, status,
                       "pending in_progress completed"),
    HFSBI_PARAM_END};

typedef struct hfsbi_plan_args {
    const hfsb_json_value *todos;
} hfsbi_plan_args;

static const hfsbi_param hfsbi_plan_params[] = {
    HFSBI_PARAM_LIST("todos", HFSBI_REQUIRED, hfsbi_plan_args, todos,
                     hfsbi_todo_params),
    HFSBI_PARAM_END};

/* It changes nothing but what the model itself wrote before, so a host need
   not ask anyone. */
HFSBI_FN const hfsbi_tool *hfsbi_plan_tool(void) {
    static const hfsbi_tool row = {
        "plan_tool",
        "Keep a plan",
        "Write down your plan for work of several steps, and keep it up to "
        "date: each call replaces the whole plan. Keep one item in_progress, "
        "and set it to completed as soon as it is done, not before.",
        NULL,
        HFSBI_TOOL_READS,
        0,
        hfsbi_plan_params};
    return &row;
}

static const char *const hfsbi_plan_states[] = {"pending", "in_progress",
                                                "completed"};

enum {
    HFSBI_PLAN_COMPLETED = 2,
    HFSBI_PLAN_STATES = 3,
    HFSBI_REMIND_CHARS = 200 /* of one item */
};

/* ---- plan_tool ---- */

static hfsb_status hfsbi_plan_state(hfsb_str name, size_t *out,
                                    hfsb_err *err) {
    for (*out = 0; *out < HFSBI_PLAN_STATES; ++*out)
        if (hfsb_str_equal(name, hfsb_cstr(hfsbi_plan_states[*out])))
            return HFSB_OK;
    hfsbi_fail(err, HFSB_ARG, 0,
               "\"status\": expected pending, in_progress or completed, "
               "found \"");
    hfsbi_err_quote(err, name, 40);
    hfsbi_err_add(err, "\"");
    return HFSB_ARG;
}

/* Writes one item in its stored form, and counts its status. number is for
   an id that is one. */
static hfsb_status hfsbi_plan_item(const hfsb_json_value *item,
                                   hfsb_buf *number, hfsbi_build *list,
                                   size_t *counts, hfsb_err *err) {
    hfsbi_args_how  how = HFSB_INIT;
    hfsbi_todo_args a;
    hfsb_json_type  type = hfsb_json_type_of(item);
    size_t          state;
    hfsb_status     st;
    if (type != HFSB_JSON_OBJECT)
        return hfsbi_fail(err, HFSB_ARG, 0, "expected an object, found %s",
                          hfsb_json_type_name(type));
    how.number = number;
    st = hfsbi_args_fill(hfsbi_todo_params, item, &how, &a, err);
    if (st == HFSB_OK) st = hfsbi_plan_state(a.status, &state, err);
    if (st != HFSB_OK) return st;
    counts[state]++;
    hfsbi_build_object(list, NULL);
    hfsbi_build_str(list, "id", a.id);
    hfsbi_build_str(list, "content", a.content);
    hfsbi_build_str(list, "status", a.status);
    hfsbi_build_end(list);
    return HFSB_OK;
}

/* The items as a document of our own, and how many have each status. */
static hfsb_status hfsbi_plan_copy(const hfsb_json_value *todos,
                                   hfsb_json_doc *out, size_t *counts,
                                   hfsb_err *err) {
    hfsb_json_iter it = hfsb_json_begin(todos);
    hfsb_buf       number = HFSB_INIT;
    hfsbi_build    list;
    hfsb_err       why = HFSB_INIT;
    size_t         n = 0;
    hfsb_status    st = HFSB_OK;
    number.alloc = out->alloc;
    hfsbi_build_init(&list, &out->alloc);
    hfsbi_build_array(&list, NULL);
    for (; st == HFSB_OK && hfsb_json_next(&it); n++) {
        st = hfsbi_plan_item(it.value, &number, &list, counts, &why);
        if (st != HFSB_OK)
            hfsbi_fail(err, st, 0, "todos[%zu]: %s", n, why.msg);
    }
    hfsbi_build_end(&list);
    if (st == HFSB_OK) {
        st = hfsbi_build_finish(&list, out);
        if (st != HFSB_OK) hfsbi_fail_status(err, st, "Plan");
    }
    hfsbi_build_free(&list);
    hfsb_buf_free(&number);
    return st;
}

HFSBI_FN hfsb_status hfsbi_plan_set(void *user, const void *args,
                                    hfsb_tool_result *result, hfsb_err *err) {
    hfsbi_plan            *plan = (hfsbi_plan *)user;
    const hfsbi_plan_args *a = (const hfsbi_plan_args *)args;
    hfsb_json_doc          fresh = HFSB_INIT;
    size_t                 counts[HFSBI_PLAN_STATES] = {0, 0, 0};
    hfsb_status            st;
    fresh.alloc = plan->doc.alloc;
    st = hfsbi_plan_copy(a->todos, &fresh, counts, err);
    if (st != HFSB_OK) return st;
    st = hfsbi_result_ok(result,
                         "Plan updated: %zu pending, %zu in progress, %zu "
                         "completed.",
                         counts[0], counts[1], counts[2]);
    if (st != HFSB_OK) {
        hfsb_json_free(&fresh);
        return st;
    }
    hfsb_json_free(&plan->doc);
    plan->doc = fresh;
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_plan_call(hfsbi_plan            *plan,
                                     const hfsb_json_value *arguments,
                                     bool strict, hfsb_tool_result *result) {
    hfsbi_result_init(result, &plan->doc.alloc);
    return hfsbi_tool_run(hfsbi_plan_params, arguments, strict, hfsbi_plan_set,
                          plan, result);
}

HFSBI_FN void hfsbi_plan_free(hfsbi_plan *plan) {
    hfsb_json_free(&plan->doc);
}

HFSBI_FN hfsb_status hfsbi_plan_write(const hfsbi_plan *plan, hfsb_buf *out,
                                      hfsb_err *err) {
    hfsb_status st = plan->doc.root
                         ? hfsb_json_write(plan->doc.root, NULL, out, err)
                         : hfsb_buf_append(out, HFSB_LIT("[]"));
    return st == HFSB_OK ? hfsbi_ok(err)
                         : hfsbi_fail_status(err, st, "Writing the plan");
}

/* ---- the reminder ---- */

static bool hfsbi_plan_is_open(const hfsb_json_value *item) {
    const char *done = hfsbi_plan_states[HFSBI_PLAN_COMPLETED];
    return !hfsb_str_equal(hfsbi_json_get_str(item, "status"),
                           hfsb_cstr(done));
}

HFSBI_FN size_t hfsbi_plan_open(const hfsbi_plan *plan) {
    hfsb_json_iter it = hfsb_json_begin(plan->doc.root);
    size_t         n = 0;
    while (hfsb_json_next(&it)) n += hfsbi_plan_is_open(it.value);
    return n;
}

/* Appends a text of the model on one line, cut to a reasonable length. */
static void hfsbi_remind_put(hfsb_buf *sink, hfsb_str text) {
    hfsb_err line = HFSB_INIT;
    hfsbi_err_quote(&line, text, HFSBI_REMIND_CHARS);
    hfsb_buf_append(sink, hfsb_cstr(line.msg));
}

static hfsb_status hfsbi_remind_write(const hfsb_json_value *plan, size_t open,
                                      hfsb_buf *out) {
    size_t         mark = out->len;
    hfsb_json_iter it = hfsb_json_begin(plan);
    size_t         listed = 0;
    hfsb_buf_printf(
        out,
        "[SYSTEM: CONTINUATION GUARD] Your last turn called no tool, "
        "but your plan has %zu open item%s:\n",
        open, open == 1 ? "" : "s");
    while (listed < HFSBI_REMIND_ITEMS && hfsb_json_next(&it)) {
        if (!hfsbi_plan_is_open(it.value)) continue;
        listed++;
        hfsb_buf_append(out, HFSB_LIT("- "));
        hfsbi_remind_put(out, hfsbi_json_get_str(it.value, "id"));
        hfsb_buf_append(out, HFSB_LIT(" ("));
        hfsb_buf_append(out, hfsbi_json_get_str(it.value, "status"));
        hfsb_buf_append(out, HFSB_LIT("): "));
        hfsbi_remind_put(out, hfsbi_json_get_str(it.value, "content"));
        hfsb_buf_append_byte(out, '\n');
    }
    if (open > listed) hfsb_buf_printf(out, "- and %zu more\n", open - listed);
    hfsb_buf_printf(
        out, "Go on with the next one now, by calling a tool. If they are "
             "done or not needed any more, say so with plan_tool, then give "
             "your answer. If you cannot go on, say what you need.");
    return hfsb_buf_finish(out, mark);
}

HFSBI_FN bool hfsbi_plan_remind(hfsbi_plan *plan, bool called_tools,
                                hfsb_buf *out) {
    size_t open = called_tools ? 0 : hfsbi_plan_open(plan);
    if (called_tools) plan->reminded = 0;
    if (!open || plan->reminded >= HFSBI_REMIND_TIMES ||
        hfsbi_remind_write(plan->doc.root, open, out) != HFSB_OK)
        return false;
    plan->reminded++;
    return true;
}
