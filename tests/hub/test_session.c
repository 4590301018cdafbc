/* test_session.c - the session on this machine: who needs a token, tools,
   definitions, the plan and its reminder. */
#include "../support/t_session.h"

/* ---- runtimes, models, tokens ---- */

static void runtimes_have_two_names_and_an_error_that_lists_them(void) {
    static const struct {
        const char *name;
        hfsb_status st;
        int         runtime;
    } table[] = {
        {"local", HFSB_OK, HFSB_RUNTIME_LOCAL},
        {"sandbox", HFSB_OK, HFSB_RUNTIME_SANDBOX},
        {"", HFSB_ARG, -1},         {"Local", HFSB_ARG, -1},
        {"sandbox ", HFSB_ARG, -1}, {"docker", HFSB_ARG, -1},
        {"locals", HFSB_ARG, -1},   {"none", HFSB_ARG, -1},
    };
    hfsb_runtime got = HFSB_RUNTIME_LOCAL;
    hfsb_err     err;
    size_t       i;
    for (i = 0; i < TT_COUNT(table); i++) {
        hfsb_str name = t_exact(table[i].name, strlen(table[i].name));
        got = HFSB_RUNTIME_LOCAL;
        T_CHECK(hfsb_runtime_find(name, &got, &err) == table[i].st);
        if (table[i].st == HFSB_OK) T_CHECK((int)got == table[i].runtime);
        T_CHECK((err.msg[0] == '\0') == (table[i].st == HFSB_OK));
        t_drop(name);
    }
    T_CHECK(hfsb_runtime_find(HFSB_LIT("docker"), &got, &err) == HFSB_ARG);
    T_STR(hfsb_cstr(err.msg),
          "tool_runtime must be \"local\" or \"sandbox\", not \"docker\".");
    T_CHECK(hfsb_runtime_find(HFSB_LIT("docker"), &got, NULL) == HFSB_ARG);
    T_STR(hfsb_cstr(hfsb_runtime_text(HFSB_RUNTIME_LOCAL)),
          "local filesystem");
    T_STR(hfsb_cstr(hfsb_runtime_text(HFSB_RUNTIME_SANDBOX)), "HF sandbox");
}

static void models_are_local_by_their_id(void) {
    static const struct {
        const char *id;
        bool        local;
    } table[] = {
        {"ollama/llama3", true},
        {"vllm/meta/llama", true},
        {"lm_studio/x", true},
        {"llamacpp/ggml-org/gemma-3-1b-it-GGUF", true},
        {"ollama/", false},
        {"ollama", false},
        {"Ollama/llama3", false},
        {" ollama/llama3", false},
        {"ollama/llama3 ", false},
        {"ollama/llama 3", false},
        {"ollama/llama\t3", false},
        {"ollama/llama\n", false},
        {"ollama/llama\xC2\xA0", false}, /* a blank that does not break */
        {"ollama/llama\xC3\xA9", true},
        {"meta-llama/ollama/x", false},
        {"anthropic/claude", false},
        {"", false},
        {"/", false},
        {"vllm/", false},
    };
    size_t i;
    for (i = 0; i < TT_COUNT(table); i++) {
        hfsb_str id = t_exact(table[i].id, strlen(table[i].id));
        if (hfsb_model_is_local(id) != table[i].local)
            printf("  \"%s\"\n", table[i].id);
        T_CHECK(hfsb_model_is_local(id) == table[i].local);
        t_drop(id);
    }
    T_CHECK(!hfsb_model_is_local(HFSB_LIT("ollama/a\0 b")));
}

static void only_local_and_local_needs_no_token(void) {
    T_CHECK(!hfsb_session_needs_token(HFSB_RUNTIME_LOCAL, true));
    T_CHECK(hfsb_session_needs_token(HFSB_RUNTIME_LOCAL, false));
    T_CHECK(hfsb_session_needs_token(HFSB_RUNTIME_SANDBOX, true));
    T_CHECK(hfsb_session_needs_token(HFSB_RUNTIME_SANDBOX, false));
}

static size_t requests;

static hfsb_status no_network(void *user, const hfsb_http_call *call,
                              bool *sent, hfsb_err *err) {
    (void)user;
    (void)call;
    (void)err;
    requests++;
    *sent = false;
    return HFSB_CONNECT;
}

/* The four cells, without and with a token; nothing is asked of the Hub. */
static void sessions_open_only_with_the_token_they_need(void) {
    static const struct {
        bool        sandbox;
        const char *model;
        bool        model_local, needs;
        const char *says;
    } cells[] = {
        {false, "ollama/x", false, false, NULL},
        {false, "meta/x", true, false, NULL},
        {false, "meta/x", false, true, "The model meta/x needs a token"},
        {false, "", false, true, "The model (none named) needs a token"},
        {true, "ollama/x", false, true, "The sandbox runtime needs a token"},
        {true, "meta/x", false, true, "The sandbox runtime needs a token"},
        {true, "meta/x", true, true, "The sandbox runtime needs a token"},
    };
    hfsb_transport transport = HFSB_INIT;
    hfsb_hub      *with = NULL, *without = NULL;
    hfsb_hub_opts  hub = HFSB_INIT;
    hfsb_err       err;
    size_t         i, k;
    transport.perform = no_network;
    hub.transport = &transport;
    hub.alloc = tt_alloc();
    T_CHECK(hfsb_hub_open(&hub, &without, &err) == HFSB_OK);
    hub.token = HFSB_LIT("hf_secret");
    T_CHECK(hfsb_hub_open(&hub, &with, &err) == HFSB_OK);
    for (i = 0; i < TT_COUNT(cells); i++)
        for (k = 0; k < 4; k++) {
            hfsb_session_opts opts = HFSB_INIT;
            hfsb_session     *session = NULL;
            bool              token = k == 2 || (k == 3 && !cells[i].sandbox);
            opts.runtime = cells[i].sandbox ? HFSB_RUNTIME_SANDBOX
                                            : HFSB_RUNTIME_LOCAL;
            opts.model = hfsb_cstr(cells[i].model);
            opts.model_local = cells[i].model_local;
            opts.hub = k == 0 ? NULL : k == 1 ? without : with;
            if (k != 3) opts.hub_token = HFSB_LIT("hf_secret");
            opts.no_preload = true;
            opts.alloc = tt_alloc();
            if (token || !cells[i].needs) {
                T_CHECK(hfsb_session_open(&opts, &session, &err) == HFSB_OK);
                T_CHECK(session &&
                        hfsb_session_runtime(session) == opts.runtime);
                sn_close(session);
                continue;
            }
            T_CHECK(hfsb_session_open(&opts, &session, &err) == HFSB_AUTH);
            T_CHECK(!session && err.code == HFSB_AUTH);
            T_CHECK(hfsb_str_starts(hfsb_cstr(err.msg),
                                    hfsb_cstr(cells[i].says)));
            T_CHECK(strstr(err.msg, "HF_TOKEN") != NULL);
            T_CHECK(strstr(err.msg, "hf_secret") == NULL);
        }
    T_CHECK(requests == 0);
    hfsb_hub_close(with);
    hfsb_hub_close(without);
}

/* ---- the local runtime ---- */

static void local_tools_work_and_files_are_read_before_they_change(void) {
    hfsb_session *s = sn_open_local();
    tt_reply      r = HFSB_INIT;
    hfsb_err      err;
    T_CHECK(hfsb_session_runtime(s) == HFSB_RUNTIME_LOCAL);
    T_CHECK(s->box == NULL);
    T_CHECK(hfsb_session_wait_ready(s, NULL, &err) == HFSB_OK);
    tt_put("old.txt", HFSB_LIT("one\ntwo\n"));
    sn_call(&r, s, "bash", "command=s", "echo hi; pwd >/dev/null");
    TT_OK(&r, "hi\n");
    sn_call(&r, s, "edit", "path=s old_str=s new_str=s", "old.txt", "two",
            "2");
    TT_FAIL(&r, "File old.txt has not been read this session.");
    sn_call(&r, s, "write", "path=s content=s", "old.txt", "new");
    TT_FAIL(&r, "File old.txt exists but has not been read this session.");
    TT_FILE("old.txt", "one\ntwo\n");
    sn_call(&r, s, "read", "path=s", "old.txt");
    TT_OK(&r, "1\tone\n2\ttwo");
    sn_call(&r, s, "edit", "path=s old_str=s new_str=s", "old.txt", "two",
            "2");
    TT_OK(&r, NULL);
    TT_FILE("old.txt", "one\n2\n");
    sn_call(&r, s, "write", "path=s content=s", "new.txt", "x");
    TT_OK(&r, "Wrote 1 bytes to new.txt");
    sn_call(&r, s, "write", "path=s content=s", "new.txt", "y");
    TT_OK(&r, "Wrote 1 bytes to new.txt");
    tt_drop(&r);
    sn_close(s);
    unlink("old.txt");
    unlink("new.txt");
}

static void bad_calls_are_refused_with_a_reason(void) {
    static const struct {
        const char *tool, *arguments;
        hfsb_status st;
        const char *error;
    } table[] = {
        {"nothing", "{}", HFSB_NOT_FOUND, "Unknown tool: nothing"},
        {"bash", "not JSON", HFSB_ARG,
         "line 1, column 2: expected 'true', 'false' or 'null', found 'o' (in "
         "the arguments, which must be a JSON object)"},
        {"", "{}", HFSB_NOT_FOUND, "Unknown tool: "},
        {"sandbox_create", "{}", HFSB_NOT_FOUND,
         "Unknown tool: sandbox_create"},
        {"bash", "{", HFSB_ARG, "line 1, column 2: "},
        {"bash", "[]", HFSB_ARG,
         "The arguments must be a JSON object, not array."},
        {"plan_tool", "3", HFSB_ARG,
         "The arguments must be a JSON object, not integer."},
        {"plan_tool", "{\"todos\":[],\"todos\":[]}", HFSB_ARG,
         "line 1, column 13: expected each key once"},
        {"read", "{}", HFSB_ARG, "\"path\" is missing"},
    };
    hfsb_session *s = sn_open_local();
    tt_reply      r = HFSB_INIT;
    size_t        i;
    for (i = 0; i < TT_COUNT(table); i++) {
        sn_do(&r, s, table[i].tool, hfsb_cstr(table[i].arguments), NULL);
        T_CHECK(r.sane && r.st == table[i].st);
        TT_FAIL(&r, table[i].error);
        T_CHECK(hfsb_session_has(s, hfsb_cstr(table[i].tool)) ==
                (r.st != HFSB_NOT_FOUND));
    }
    tt_drop(&r);
    sn_close(s);
    T_CHECK(hfsb_session_close(NULL, NULL) == HFSB_OK);
}

static void an_unknown_tool_is_answered_with_those_there_are(void) {
    hfsb_session *s = sn_open_local();
    tt_reply      r = HFSB_INIT;
    hfsb_buf      text = HFSB_INIT;
    sn_do(&r, s, "nothing", HFSB_LIT("{}"), NULL);
    T_CHECK(hfsb_tool_result_text(&r.res, &text) == HFSB_OK);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&text),
                            HFSB_LIT("The tools are: bash, ")));
    T_CHECK(tt_says(&text, ", plan_tool\n\nERROR: Unknown tool: nothing"));
    T_CHECK(!tt_says(&text, "sandbox_create"));
    T_CHECK(!tt_says(&text, "edit_lines")); /* as it is not defined */
    hfsb_buf_free(&text);
    tt_drop(&r);
    sn_close(s);
}

static void unknown_keys_are_noted_or_refused(void) {
    hfsb_session    *s = sn_open_local();
    hfsb_call_opts   strict = HFSB_INIT;
    hfsb_tool_result res;
    tt_reply         r = HFSB_INIT;
    sn_call(&r, s, "plan_tool", "todos=j extra=j", "[]", "1");
    TT_OK(&r, "Plan updated: 0 pending, 0 in progress, 0 completed.\n"
              "(unknown key ignored: extra)");
    tt_drop(&r);
    strict.strict = true;
    T_CHECK(hfsb_session_call_text(s, HFSB_LIT("plan_tool"),
                                   HFSB_LIT("{\"todos\":[],\"x\":1}"), &strict, &res) == HFSB_ARG);
    T_STR(res.error, "Unknown key: x. Known are: todos.");
    hfsb_tool_result_free(&res);
    T_CHECK(hfsb_session_call(s, HFSB_LIT("plan_tool"), NULL, NULL, &res) == HFSB_ARG);
    T_CHECK(tt_says(&res.error, "todos"));
    hfsb_tool_result_free(&res);
    sn_close(s);
}

static void *cancel_soon(void *user) {
    tt_sleep_ms(100);
    hfsb_cancel_set((hfsb_cancel *)user);
    return NULL;
}

static void *cancel_once_begun(void *user) {
    (void)tt_pid_in("pid");
    return cancel_soon(user);
}

static void a_cancel_kills_a_local_command_and_keeps_its_output(void) {
    hfsb_session  *s = sn_open_local();
    hfsb_call_opts how = HFSB_INIT;
    hfsb_cancel   *cancel = NULL;
    hfsb_alloc     alloc = tt_alloc();
    tt_reply       r = HFSB_INIT;
    pthread_t      thread;
    long long      begin;
    T_CHECK(hfsb_cancel_open(&alloc, &cancel, NULL) == HFSB_OK);
    sn_do(&r, s, "bash", HFSB_LIT("{\"command\":\"echo fine\"}"), cancel);
    T_CHECK(r.st == HFSB_OK);
    TT_OK(&r, "fine\n");
    if (pthread_create(&thread, NULL, cancel_once_begun, cancel)) abort();
    begin = hfsb_clock_ms();
    sn_do(&r, s, "bash",
          HFSB_LIT("{\"command\":\"echo begun; echo $$ > pid; sleep 60; "
                   "echo not\"}"),
          cancel);
    pthread_join(thread, NULL);
    T_CHECK(hfsb_clock_ms() - begin < 20000);
    T_CHECK(r.st == HFSB_CANCELLED);
    TT_ENDS(&r, "begun\n", "cancelled");
    /* it stays set: nothing is begun */
    sn_do(&r, s, "bash", HFSB_LIT("{\"command\":\"echo x > made\"}"), cancel);
    T_CHECK(r.st == HFSB_CANCELLED && access("made", F_OK) != 0);
    TT_ENDS(&r, "", "cancelled");
    how.cancel = cancel;
    tt_drop(&r);
    r.st = hfsb_session_call_text(s, HFSB_LIT("bash"),
                                  HFSB_LIT("{\"command\":\"true\"}"), &how, &r.res);
    T_CHECK(r.st == HFSB_CANCELLED);
    hfsb_cancel_reset(cancel);
    /* a call that waits for another's command only stops to wait */
    sn_do(&r, s, "bash",
          HFSB_LIT("{\"command\":\"sleep 30\",\"background\":true,"
                   "\"id\":\"bg\"}"),
          cancel);
    T_CHECK(r.st == HFSB_OK);
    if (pthread_create(&thread, NULL, cancel_soon, cancel)) abort();
    sn_do(&r, s, "bash_output", HFSB_LIT("{\"id\":\"bg\",\"wait_ms\":30000}"),
          cancel);
    pthread_join(thread, NULL);
    T_CHECK(r.st == HFSB_CANCELLED);
    sn_call(&r, s, "bash_output", "id=s", "bg");
    T_CHECK(r.res.success && tt_flag(&r, "running"));
    sn_call(&r, s, "kill", "id=s", "bg");
    TT_OK(&r, NULL);
    tt_drop(&r);
    hfsb_cancel_close(cancel);
    sn_close(s);
}

static void local_definitions_have_the_plan_and_no_sandbox(void) {
    hfsb_session *s = sn_open_local();
    hfsb_buf      own = HFSB_INIT, all = HFSB_INIT;
    int           f;
    for (f = 0; f < 4; f++) {
        hfsb_buf names = HFSB_INIT;
        sn_definitions(s, (hfsb_tools_format)f, &names);
        T_STR(names, "bash bash_output bash_input kill read write edit "
                     "multi_edit apply_patch glob grep list exists plan_tool ");
        hfsb_buf_free(&names);
    }
    /* the tools are those of hfsb_tools_define(), to the letter */
    T_CHECK(hfsb_tools_define(HFSB_TOOLS_MCP, &own, NULL) == HFSB_OK);
    T_CHECK(hfsb_session_define(s, HFSB_TOOLS_MCP, &all, NULL) == HFSB_OK);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&all),
                            hfsb_str_slice(hfsb_buf_str(&own), 0,
                                           own.len - 1)));
    hfsb_buf_free(&own);
    hfsb_buf_free(&all);
    sn_close(s);
}

/* ---- the plan ---- */

#define ITEM(id, content, status)                               \
    "{\"id\":\"" id "\",\"content\":\"" content "\",\"status\":\"" status "\"}"

static void check_plan(int line, hfsb_session *s, const char *want) {
    hfsb_buf plan = HFSB_INIT;
    T_CHECK(hfsb_session_plan(s, &plan, NULL) == HFSB_OK);
    if (!hfsb_str_equal(hfsb_buf_str(&plan), hfsb_cstr(want)))
        printf("line %d: plan is %s\n", line, plan.ptr);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&plan), hfsb_cstr(want)));
    hfsb_buf_free(&plan);
}
#define PLAN(s, want) check_plan(__LINE__, s, want)

static void a_plan_replaces_the_one_before_with_a_copy(void) {
    hfsb_session    *s = sn_open_local();
    tt_reply         r = HFSB_INIT;
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_tool_result res;
    char text[] = "{\"todos\":[" ITEM("9", "mine", "pending") "]}";
    PLAN(s, "[]");
    sn_call(&r, s, "plan_tool", "todos=j",
            "[" ITEM("1", "look", "completed") "," ITEM(
                "2", "do \\\"it\\\"", "in_progress") ","
            ITEM("3", "", "pending") "]");
    TT_OK(&r, "Plan updated: 1 pending, 1 in progress, 1 completed.");
    T_CHECK(r.st == HFSB_OK);
    PLAN(s, "[" ITEM("1", "look", "completed") "," ITEM(
                "2", "do \\\"it\\\"", "in_progress") ","
            ITEM("3", "", "pending") "]");
    /* the whole plan goes, and keys that are none of its own with it */
    sn_call(&r, s, "plan_tool", "todos=j",
            "[{\"status\":\"pending\",\"id\":\"7\",\"content\":\"c\","
            "\"more\":1}]");
    TT_OK(&r, NULL);
    PLAN(s, "[" ITEM("7", "c", "pending") "]");
    /* a copy: what it was made from may go */
    T_CHECK(hfsb_json_parse_in_place(text, strlen(text), NULL, &doc, NULL) ==
            HFSB_OK);
    T_CHECK(hfsb_session_call(s, HFSB_LIT("plan_tool"), doc.root, NULL, &res) == HFSB_OK);
    hfsb_tool_result_free(&res);
    hfsb_json_free(&doc);
    memset(text, '!', sizeof text);
    PLAN(s, "[" ITEM("9", "mine", "pending") "]");
    sn_call(&r, s, "plan_tool", "todos=j", "[]");
    PLAN(s, "[]");
    tt_drop(&r);
    sn_close(s);
}

static void a_wrong_plan_names_the_fault_and_changes_nothing(void) {
    static const struct {
        const char *arguments, *says;
    } table[] = {
        {"{}", "\"todos\""},
        {"{\"todos\":null}", "\"todos\""},
        {"{\"todos\":\"x\"}", "\"todos\": expected an array, found"},
        {"{\"todos\":{}}", "\"todos\": expected an array"},
        {"{\"todos\":[1]}", "todos[0]: expected an object, found integer"},
        {"{\"todos\":[" ITEM("1", "c", "pending") ",null]}",
         "todos[1]: expected an object, found null"},
        {"{\"todos\":[{\"content\":\"c\",\"status\":\"pending\"}]}",
         "todos[0]: \"id\""},
        {"{\"todos\":[{\"id\":\"1\",\"status\":\"pending\"}]}",
         "todos[0]: \"content\""},
        {"{\"todos\":[{\"id\":\"1\",\"content\":\"c\"}]}",
         "todos[0]: \"status\""},
        {"{\"todos\":[{\"id\":\"1\",\"content\":null,"
         "\"status\":\"pending\"}]}",
         "todos[0]: \"content\""},
        {"{\"todos\":[{\"id\":[1],\"content\":\"c\",\"status\":\"pending\"}]}",
         "todos[0]: \"id\": expected a string"},
        {"{\"todos\":[" ITEM("1", "c", "done") "]}",
         "todos[0]: \"status\": expected pending, in_progress or completed, "
         "found \"done\""},
        {"{\"todos\":[" ITEM("1", "c", "pending") "," ITEM("2", "c", "") "]}",
         "todos[1]: \"status\": expected pending, in_progress or completed, "
         "found \"\""},
        {"{\"todos\":[" ITEM("1", "c", "Pending") "]}",
         "todos[0]: \"status\""},
    };
    hfsb_session *s = sn_open_local();
    tt_reply      r = HFSB_INIT;
    size_t        i;
    sn_call(&r, s, "plan_tool", "todos=j", "[" ITEM("0", "k", "pending") "]");
    for (i = 0; i < TT_COUNT(table); i++) {
        hfsb_str text = t_exact(table[i].arguments,
                                strlen(table[i].arguments));
        sn_do(&r, s, "plan_tool", text, NULL);
        T_CHECK(r.sane && r.st == HFSB_ARG);
        TT_FAIL(&r, table[i].says);
        PLAN(s, "[" ITEM("0", "k", "pending") "]");
        t_drop(text);
    }
    tt_drop(&r);
    sn_close(s);
}

/* ---- the reminder ---- */

static void set_plan(hfsb_session *s, const char *todos) {
    tt_reply r = HFSB_INIT;
    sn_call(&r, s, "plan_tool", "todos=j", todos);
    TT_OK(&r, NULL);
    tt_drop(&r);
}

static bool reminds(hfsb_session *s, bool called_tools) {
    hfsb_buf out = HFSB_INIT;
    bool     said = hfsb_session_remind(s, called_tools, &out);
    T_CHECK(said == (out.len > 0));
    if (said)
        T_CHECK(hfsb_str_starts(hfsb_buf_str(&out),
                                HFSB_LIT("[SYSTEM: CONTINUATION GUARD]")));
    hfsb_buf_free(&out);
    return said;
}

static void open_items_remind_twice_in_a_row_at_most(void) {
    hfsb_session *s = sn_open_local();
    sn_forget();
    T_CHECK(!reminds(s, false)); /* no plan */
    set_plan(s, "[]");
    T_CHECK(!reminds(s, false));
    set_plan(s, "[" ITEM("1", "a", "completed") "]");
    T_CHECK(!reminds(s, false));
    T_CHECK(sn_heard("Reminded") == 0);
    set_plan(s, "[" ITEM("1", "a", "completed") "," ITEM("2", "b", "pending")
                "]");
    T_CHECK(!reminds(s, true)); /* tools were called */
    T_CHECK(reminds(s, false));
    T_CHECK(sn_heard("Reminded the model of 1 open item of its plan (1 of 2)")
            == 1);
    T_CHECK(reminds(s, false));
    T_CHECK(sn_heard("(2 of 2)") == 1);
    T_CHECK(!reminds(s, false));
    T_CHECK(!reminds(s, false));
    set_plan(s, "[" ITEM("2", "b", "in_progress") "]"); /* resets nothing */
    T_CHECK(!reminds(s, false));
    T_CHECK(!reminds(s, true));
    T_CHECK(reminds(s, false));
    T_CHECK(!reminds(s, true)); /* one, then tools: two more */
    T_CHECK(reminds(s, false));
    T_CHECK(reminds(s, false));
    T_CHECK(!reminds(s, false));
    set_plan(s, "[" ITEM("2", "b", "completed") "]");
    T_CHECK(!reminds(s, true));
    T_CHECK(!reminds(s, false));
    T_CHECK(sn_heard("Reminded") == 5);
    sn_close(s);
    sn_forget();
}

static void a_reminder_lists_four_items_on_a_line_each(void) {
    hfsb_session *s = sn_open_local();
    hfsb_buf      out = HFSB_INIT, todos = HFSB_INIT;
    hfsb_str      text;
    T_CHECK(hfsb_buf_append(&out, HFSB_LIT("kept")) == HFSB_OK);
    set_plan(s, "[" ITEM("0", "zero", "completed") "," ITEM(
                    "a", "one", "in_progress") ","
                ITEM("b", "two\\nlines", "pending") ","
                ITEM("c", "three", "pending") "," ITEM("d", "four", "pending")
                "," ITEM("e", "five", "pending") ","
                ITEM("f", "six", "pending") "]");
    T_CHECK(hfsb_session_remind(s, false, &out));
    text = hfsb_buf_str(&out);
    T_CHECK(hfsb_str_starts(
        text, HFSB_LIT("kept[SYSTEM: CONTINUATION GUARD] Your last turn "
                       "called no tool, but your plan has 6 open items:\n"
                       "- a (in_progress): one\n- b (pending): two")));
    T_CHECK(tt_says(&out, "\n- c (pending): three\n- d (pending): four\n"
                          "- and 2 more\n"));
    T_CHECK(!tt_says(&out, "zero") && !tt_says(&out, "five"));
    T_CHECK(hfsb_str_count_byte(text, '\n') == 6);
    hfsb_buf_free(&out);
    /* four are listed without a rest; one that is long is cut */
    t_repeat(&todos, "\xC3\xA9", 5000);
    T_CHECK(hfsb_buf_append_byte(&out, '[') == HFSB_OK);
    T_CHECK(hfsb_buf_printf(
                &out,
                "{\"id\":\"x\",\"content\":\"%s\",\"status\":\"pending\"},",
                todos.ptr) == HFSB_OK);
    T_CHECK(hfsb_buf_append(&out, HFSB_LIT(ITEM("1", "a", "pending") "," ITEM(
                                      "2", "b", "pending") ","
                                      ITEM("3", "c", "pending") "]")) ==
            HFSB_OK);
    set_plan(s, out.ptr);
    hfsb_buf_free(&out);
    T_CHECK(hfsb_session_remind(s, false, &out));
    T_CHECK(out.len < 2000 && tt_says(&out, "..."));
    T_CHECK(!tt_says(&out, "more\n"));
    T_CHECK(tt_says(&out, "- 3 (pending): c\n"));
    hfsb_buf_free(&out);
    hfsb_buf_free(&todos);
    sn_close(s);
}

/* ---- threads, memory ---- */

static void *use_it(void *user) {
    hfsb_session *s = (hfsb_session *)user;
    bool         *ok = (bool *)malloc(sizeof *ok);
    int           i;
    if (!ok) abort();
    *ok = true;
    for (i = 0; i < 40; i++) {
        tt_reply r = HFSB_INIT;
        hfsb_buf out = HFSB_INIT;
        sn_do(&r, s, "plan_tool",
              HFSB_LIT("{\"todos\":[" ITEM("1", "c", "pending") "]}"), NULL);
        *ok = *ok && r.st == HFSB_OK && r.sane;
        (void)hfsb_session_remind(s, i % 3 == 0, &out);
        *ok = *ok && hfsb_session_plan(s, &out, NULL) == HFSB_OK;
        if (i % 10 == 0) {
            sn_do(&r, s, "bash", HFSB_LIT("{\"command\":\"echo x\"}"), NULL);
            *ok = *ok && r.res.success;
        }
        tt_drop(&r);
        hfsb_buf_free(&out);
    }
    return ok;
}

static void many_threads_use_one_session(void) {
    hfsb_session *s = sn_open_local();
    pthread_t     threads[4];
    size_t        i;
    for (i = 0; i < TT_COUNT(threads); i++)
        if (pthread_create(&threads[i], NULL, use_it, s)) abort();
    for (i = 0; i < TT_COUNT(threads); i++) {
        void *ok;
        pthread_join(threads[i], &ok);
        T_CHECK(*(bool *)ok);
        free(ok);
    }
    sn_close(s);
    sn_forget();
}

static void use_with_little_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_session_opts opts = HFSB_INIT;
    hfsb_session     *s = NULL;
    hfsb_tool_result  res;
    hfsb_buf          out = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    hfsb_status       st;
    bool              sound = heap->fail_at == 0;
    out.alloc = opts.alloc = alloc;
    opts.model_local = true;
    st = hfsb_session_open(&opts, &s, &err);
    T_CHECK(st == HFSB_OK || (!sound && st == HFSB_NOMEM && err.msg[0]));
    if (!s) return;
    st = hfsb_session_call_text(
        s, HFSB_LIT("plan_tool"),
        HFSB_LIT("{\"x\":1,\"todos\":[" ITEM("1", "c", "pending") "]}"), NULL, &res);
    T_CHECK(st == HFSB_OK || (!sound && st == HFSB_NOMEM));
    T_CHECK(res.success == (st == HFSB_OK));
    hfsb_tool_result_free(&res);
    if (st == HFSB_OK)
        T_CHECK(hfsb_session_remind(s, false, &out) || !sound);
    st = hfsb_session_plan(s, &out, &err);
    T_CHECK(st == HFSB_OK || (!sound && st == HFSB_NOMEM));
    st = hfsb_session_define(s, HFSB_TOOLS_FLAT, &out, &err);
    T_CHECK(st == HFSB_OK || (!sound && st == HFSB_NOMEM));
    st = hfsb_session_call_text(s, HFSB_LIT("exists"),
                                HFSB_LIT("{\"path\":\".\"}"), NULL, &res);
    T_CHECK(st == HFSB_OK || (!sound && st == HFSB_NOMEM));
    hfsb_tool_result_free(&res);
    hfsb_buf_free(&out);
    T_CHECK(hfsb_session_close(s, &err) == HFSB_OK);
}

static void local_session_survives_each_failed_allocation(void) {
    t_each_allocation_fails(use_with_little_memory);
}

int main(void) {
    tt_begin();
    TT_RUN(runtimes_have_two_names_and_an_error_that_lists_them);
    TT_RUN(models_are_local_by_their_id);
    TT_RUN(only_local_and_local_needs_no_token);
    TT_RUN(sessions_open_only_with_the_token_they_need);
    TT_RUN(local_tools_work_and_files_are_read_before_they_change);
    TT_RUN(bad_calls_are_refused_with_a_reason);
    TT_RUN(an_unknown_tool_is_answered_with_those_there_are);
    TT_RUN(unknown_keys_are_noted_or_refused);
    TT_RUN(a_cancel_kills_a_local_command_and_keeps_its_output);
    TT_RUN(local_definitions_have_the_plan_and_no_sandbox);
    TT_RUN(a_plan_replaces_the_one_before_with_a_copy);
    TT_RUN(a_wrong_plan_names_the_fault_and_changes_nothing);
    TT_RUN(open_items_remind_twice_in_a_row_at_most);
    TT_RUN(a_reminder_lists_four_items_on_a_line_each);
    TT_RUN(many_threads_use_one_session);
    TT_RUN(local_session_survives_each_failed_allocation);
    return TT_END();
}
