/* test_mcp_calls.c - calls of tools over MCP: several at once, progress,
   cancelling, the deadline of a call, tools on offer. */
#include "../support/t_mcp.h"

/* ---- results ---- */

static void bad_arguments_are_reported_as_results(void) {
    static const struct {
        const char *tool, *arguments, *part;
    } cases[] = {
        {"bash", "{}", "command"},
        {"bash", "{\"command\":\"echo x\",\"colour\":1}", "colour"},
        {"bash", "{\"command\":[]}", "command"},
        {"bash", "{\"command\":\"a\",\"command\":\"b\"}", "command"},
        {"read", "{\"path\":\"none.txt\"}", "File not found: none.txt"},
        {"read", "{\"path\":\"none.txt\",\"depth\":1}", "depth"},
        {"bash_output", "{\"id\":\"none\"}", "No such job: none"},
        {"bash", "\"echo x\"", "object"},
        {"plan_tool", "{\"todos\":[{\"id\":\"1\"}]}", "content"},
        {"plan_tool", "{\"items\":[]}", "items"},
    };
    tm_client c;
    size_t    i;
    tm_start(&c, NULL);
    for (i = 0; i < TT_COUNT(cases); i++) {
        char id[8];
        snprintf(id, sizeof id, "%zu", i);
        tm_call(&c, id, cases[i].tool, cases[i].arguments);
        T_CHECK(tm_wait(&c, id));
        T_CHECK(tm_code(&c) == 0 && tm_failed(&c));
        T_CHECK(tm_says(&c, cases[i].part));
    }
    tm_send(&c, "{\"jsonrpc\":\"2.0\",\"id\":\"none\",\"method\":"
                "\"tools/call\",\"params\":{\"name\":\"bash\"}}");
    T_CHECK(tm_wait(&c, "\"none\"") && tm_failed(&c));
    tm_end(&c);
}

static void each_kind_of_tool_gives_its_result(void) {
    tm_client c;
    tt_put("a.txt", HFSB_LIT("alpha\n"));
    tt_put("dot.png", HFSB_LIT("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01"
                               "\x08\x02\0\0\0more"));
    tm_start(&c, NULL);
    tm_call(&c, "1", "bash", "{\"command\":\"echo out; exit 3\"}");
    T_CHECK(tm_wait(&c, "1") && tm_failed(&c));
    T_CHECK(tm_says(&c, "out") && tm_says(&c, "Exit code 3"));
    /* the connection is a session: a file is read before it is changed */
    tm_call(&c, "2", "write", "{\"path\":\"a.txt\",\"content\":\"b\"}");
    T_CHECK(tm_wait(&c, "2") && tm_failed(&c));
    tm_call(&c, "3", "read", "{\"path\":\"a.txt\"}");
    T_CHECK(tm_wait(&c, "3") && tm_says(&c, "1\talpha"));
    tm_call(&c, "4", "write", "{\"path\":\"a.txt\",\"content\":\"b\"}");
    T_CHECK(tm_wait(&c, "4") && !tm_failed(&c));
    TT_FILE("a.txt", "b");
    tm_call(&c, "5", "plan_tool",
            "{\"todos\":[{\"id\":\"1\",\"content\":\"x\",\"status\":"
            "\"pending\"}]}");
    T_CHECK(tm_wait(&c, "5") && !tm_failed(&c));
    tm_call(&c, "6", "read", "{\"path\":\"dot.png\"}");
    T_CHECK(tm_wait(&c, "6") && !tm_failed(&c));
    T_CHECK(tm_count(&c, "\"type\":\"image\"") == 1);
    tm_call(&c, "7", "bash", "{\"command\":\":\"}");
    T_CHECK(tm_wait(&c, "7") && tm_says(&c, "(no output)"));
    tm_end(&c);
}

/* ---- several at once ---- */

static void ten_commands_run_at_once(void) {
    tm_client c;
    long long began;
    int       i;
    char      id[8], command[200];
    tm_start(&c, NULL);
    tm_ping(&c, "0");
    T_CHECK(tm_wait(&c, "0"));
    /* each waits for all others */
    for (i = 1; i <= 10; i++) {
        snprintf(id, sizeof id, "%d", i);
        snprintf(command, sizeof command,
                 "{\"command\":\"touch at.%d; while [ $(ls | grep -c "
                 "'^at[.]') -lt 10 ]; do sleep 0.02; done; echo is %d\"}",
                 i, i);
        tm_call(&c, id, "bash", command);
    }
    began = hfsb_clock_ms();
    tm_ping(&c, "\"p\"");
    T_CHECK(tm_wait(&c, "\"p\""));
    T_CHECK(hfsb_clock_ms() - began < 15000);
    for (i = 1; i <= 10; i++) {
        snprintf(id, sizeof id, "%d", i);
        snprintf(command, sizeof command, "is %d", i);
        T_CHECK(tm_wait(&c, id) && tm_says(&c, command));
    }
    tm_end(&c);
}

static void other_requests_are_answered_while_a_command_runs(void) {
    tm_client c;
    tm_start(&c, NULL);
    tm_call(&c, "1", "bash",
            "{\"command\":\"while [ ! -e go ]; do sleep 0.01; done; echo "
            "went\"}");
    tm_ping(&c, "2");
    T_CHECK(tm_wait(&c, "2"));
    tm_call(&c, "3", "write", "{\"path\":\"go\",\"content\":\"\"}");
    T_CHECK(tm_wait(&c, "3") && !tm_failed(&c));
    T_CHECK(tm_wait(&c, "1") && tm_says(&c, "went"));
    tm_end(&c);
}

static void too_many_calls_are_refused(void) {
    tm_client c;
    char      id[8];
    int       i;
    tm_start(&c, NULL);
    tm_call(&c, "0", "bash", "{\"command\":\"sleep 60\",\"id\":\"long\"}");
    for (i = 1; i <= 512; i++) {
        snprintf(id, sizeof id, "%d", i);
        tm_call(&c, id, "bash_output", "{\"id\":\"long\",\"wait_ms\":60000}");
    }
    T_CHECK(tm_wait(&c, "512") && tm_code(&c) == -32603);
    T_CHECK(tm_count(&c, "") == 1);
    tm_end(&c);
}

/* ---- cancelling ---- */

static void cancelling_kills_the_tree_and_sends_no_answer(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    tm_client     c;
    o.beat_ms = 20;
    tm_start(&c, &o);
    tm_watch(&c, "7", "bash",
             "{\"command\":\"sleep 61 & echo $! > child.pid; echo $$ > "
             "shell.pid; wait; touch went.on\"}");
    T_CHECK(tm_pid("child.pid") && tm_pid("shell.pid"));
    tm_cancel(&c, "\"7\""); /* another type */
    tm_cancel(&c, "8");     /* another id */
    tm_cancel(&c, "null");
    tm_ping(&c, "1");
    T_CHECK(tm_wait(&c, "1"));
    tt_sleep_ms(60);
    T_CHECK(tt_alive(tm_pid("child.pid")));
    tm_cancel(&c, "7");
    T_CHECK(tm_gone(tm_pid("child.pid"), 15000));
    T_CHECK(tm_gone(tm_pid("shell.pid"), 15000));
    tm_ping(&c, "2");
    T_CHECK(tm_wait(&c, "2"));
    hfsb_buf_truncate(&c.got, 0);
    tm_listen(&c, 100);
    T_CHECK(c.got.len == 0); /* neither an answer nor progress */
    T_CHECK(access("went.on", F_OK) != 0);
    tm_end(&c);
}

static void cancelling_a_wait_leaves_the_job(void) {
    tm_client c;
    tm_start(&c, NULL);
    tm_call(&c, "1", "bash",
            "{\"command\":\"echo $$ > bg.pid; sleep 62\",\"background\":"
            "true,\"id\":\"bg\"}");
    T_CHECK(tm_wait(&c, "1") && tm_says(&c, "bg"));
    tm_call(&c, "2", "bash_output", "{\"id\":\"bg\",\"wait_ms\":60000}");
    tm_cancel(&c, "2");
    tm_call(&c, "3", "bash_output", "{\"id\":\"bg\",\"wait_ms\":0}");
    T_CHECK(tm_wait(&c, "3") && !tm_failed(&c));
    T_CHECK(tt_alive(tm_pid("bg.pid")));
    tm_call(&c, "4", "kill", "{\"id\":\"bg\"}");
    T_CHECK(tm_wait(&c, "4") && tm_says(&c, "Killed 1 process(es)"));
    T_CHECK(tm_count(&c, "\"id\":2,") == 0);
    tm_end(&c);
}

/* ---- progress ---- */

/* Returns how many progress notifications a token has. */
static size_t progress_of(const tm_client *c, const char *token,
                          bool *increases, hfsb_buf *last) {
    hfsb_str rest = hfsb_buf_str(&c->got);
    double   before = -1;
    size_t   n = 0, end;
    *increases = true;
    while ((end = hfsb_str_find_byte(rest, '\n')) != HFSB_NPOS) {
        hfsb_json_doc          doc = HFSB_INIT;
        const hfsb_json_value *p;
        hfsb_buf               text = HFSB_INIT;
        if (hfsb_json_parse(hfsb_str_slice(rest, 0, end), NULL, &doc, NULL) !=
            HFSB_OK)
            abort();
        p = hfsb_json_get(doc.root, "params");
        if (hfsb_json_write(hfsb_json_get(p, "progressToken"), NULL, &text,
                            NULL) == HFSB_OK &&
            hfsb_str_equal(hfsb_buf_str(&text), hfsb_cstr(token))) {
            double now = hfsb_json_double(hfsb_json_get(p, "progress"), -9);
            if (now <= before) *increases = false;
            before = now;
            n++;
            hfsb_buf_truncate(last, 0);
            if (hfsb_buf_append(last,
                                hfsb_json_str(hfsb_json_get(p, "message"),
                                              HFSB_LIT("(none)"))) != HFSB_OK)
                abort();
        }
        hfsb_buf_free(&text);
        hfsb_json_free(&doc);
        rest = hfsb_str_slice(rest, end + 1, rest.len);
    }
    return n;
}

static void progress_is_sent_only_with_a_token(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    tm_client     c;
    hfsb_buf      last = HFSB_INIT;
    bool          increases;
    long long     began = hfsb_clock_ms();
    o.beat_ms = 30;
    tm_start(&c, &o);
    tm_watch(&c, "1", "bash",
             "{\"command\":\"echo first; echo the last line; sleep 1\"}");
    tm_call(&c, "2", "bash", "{\"command\":\"echo quiet; sleep 1\"}");
    T_CHECK(tm_wait(&c, "1") && tm_wait(&c, "2"));
    T_CHECK(progress_of(&c, "1", &increases, &last) >= 3);
    T_CHECK(progress_of(&c, "1", &increases, &last) <=
            (size_t)(hfsb_clock_ms() - began) / 30);
    T_CHECK(increases);
    T_STR(last, "the last line");
    T_CHECK(tm_count(&c, "quiet") == 1);
    T_CHECK(progress_of(&c, "2", &increases, &last) == 0);
    hfsb_buf_truncate(&c.got, 0);
    tm_listen(&c, 100);
    T_CHECK(c.got.len == 0); /* none after the end */
    tm_end(&c);
    /* the first revision has no messages */
    tm_start(&c, &o);
    tm_initialize(&c, "2024-11-05");
    tm_watch(&c, "1", "bash", "{\"command\":\"echo first; sleep 0.7\"}");
    T_CHECK(tm_wait(&c, "1"));
    T_CHECK(progress_of(&c, "1", &increases, &last) >= 2);
    T_STR(last, "(none)");
    tm_end(&c);
    hfsb_buf_free(&last);
}

/* ---- the deadline ---- */

static void a_long_command_becomes_a_job(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    tm_client     c;
    long long     began;
    size_t        polls = 0;
    char          id[24];
    /* longer, if a busy machine prints nothing by then */
    for (o.answer_ms = 600;; o.answer_ms *= 4) {
        tm_start(&c, &o);
        began = hfsb_clock_ms();
        tm_call(&c, "1", "bash",
                "{\"command\":\"echo begun; while [ ! -e end ]; do sleep 0.01; "
                "done; echo over; exit 4\",\"id\":\"j1\"}");
        T_CHECK(tm_wait(&c, "1"));
        T_CHECK(hfsb_clock_ms() - began >= o.answer_ms - 5);
        if (hfsb_str_find(hfsb_buf_str(&c.text), HFSB_LIT("begun")) !=
                HFSB_NPOS ||
            o.answer_ms > 9000)
            break;
        tm_end(&c);
    }
    T_CHECK(!tm_failed(&c) && tm_says(&c, "begun") && tm_says(&c, "j1") &&
            tm_says(&c, "bash_output"));
    T_CHECK(hfsb_str_find(hfsb_buf_str(&c.text), HFSB_LIT("over")) ==
            HFSB_NPOS);
    /* a longer wait ends at the deadline */
    began = hfsb_clock_ms();
    tm_call(&c, "2", "bash_output",
            "{\"id\":\"j1\",\"offset\":6,\"wait_ms\":30000}");
    T_CHECK(tm_wait(&c, "2"));
    T_CHECK(!tm_failed(&c));
    T_CHECK(hfsb_clock_ms() - began >= o.answer_ms - 5);
    tt_put("end", HFSB_LIT(""));
    do {
        snprintf(id, sizeof id, "\"p%zu\"", polls++);
        tm_call(&c, id, "bash_output",
                "{\"id\":\"j1\",\"offset\":6,\"wait_ms\":100}");
        T_CHECK(tm_wait(&c, id));
    } while (polls < 100 && hfsb_str_find(hfsb_buf_str(&c.text),
                                          HFSB_LIT("over")) == HFSB_NPOS);
    T_CHECK(tm_says(&c, "over"));
    tm_end(&c);
    unlink("end");
}

/* 165 lines in 3.3 s: one call to start it, one for all of its output. */
static void a_build_is_followed_in_two_calls(void) {
    tm_client c;
    tm_start(&c, NULL);
    tm_call(&c, "1", "bash",
            "{\"command\":\"i=0; while [ $i -lt 165 ]; do i=$((i + 1)); "
            "echo object $i; sleep 0.02; done; exit 4\",\"id\":\"make\","
            "\"background\":true}");
    T_CHECK(tm_wait(&c, "1"));
    tm_call(&c, "2", "bash_output", "{\"id\":\"make\",\"wait_ms\":45000}");
    T_CHECK(tm_wait(&c, "2") && !tm_failed(&c));
    T_CHECK(tm_says(&c, "object 1\n"));
    T_CHECK(tm_says(&c, "object 165\n[ended, exit code 4"));
    tm_end(&c);
}

static void input_is_answered_with_output(void) {
    tm_client c;
    tm_start(&c, NULL);
    tm_call(&c, "1", "bash",
            "{\"command\":\"printf 'Name? '; read x; echo hi $x; exit 7\","
            "\"background\":true,\"id\":\"ask\"}");
    T_CHECK(tm_wait(&c, "1"));
    tm_call(&c, "2", "bash_output", "{\"id\":\"ask\",\"wait_ms\":45000}");
    T_CHECK(tm_wait(&c, "2") && tm_says(&c, "Name? \n[running"));
    tm_call(&c, "3", "bash_input",
            "{\"id\":\"ask\",\"text\":\"you\\n\",\"wait_ms\":45000}");
    T_CHECK(tm_wait(&c, "3") && !tm_failed(&c));
    T_CHECK(tm_says(&c, "Name? hi you\n[ended, exit code 7"));
    tm_call(&c, "4", "bash_output", "{}");
    T_CHECK(tm_wait(&c, "4") && tm_says(&c, "ask: exit code 7, "));
    tm_end(&c);
}

/* stderr comes after the output, at the end, but a build that reports there is
   not silent until then. */
static void a_running_command_shows_the_end_of_stderr(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    tm_client     c;
    o.answer_ms = 3000; /* the time to print that */
    tm_start(&c, &o);
    tm_call(&c, "1", "bash",
            "{\"command\":\"echo out; seq 200 >&2; printf 50%% >&2; read x; "
            "sleep 60\",\"id\":\"e\"}");
    T_CHECK(tm_wait(&c, "1") && tm_says(&c, "Output so far:\nout\n(stderr "));
    T_CHECK(tm_says(&c, "its end is:)\n1") && tm_says(&c, "\n200\n50%\n[poll"));
    T_CHECK(!tm_says(&c, "\n99\n"));
    tm_call(&c, "2", "bash_output", "{\"id\":\"e\",\"wait_ms\":0}");
    T_CHECK(tm_wait(&c, "2") && tm_says(&c, "(no output)\n(stderr follows "));
    T_CHECK(tm_says(&c, "\n200\n50%\n[running; next_offset=4]"));
    tm_call(&c, "3", "kill", "{\"id\":\"e\"}");
    T_CHECK(tm_wait(&c, "3"));
    tm_call(&c, "4", "bash_output", "{\"id\":\"e\"}");
    T_CHECK(tm_wait(&c, "4") && hfsb_str_starts(hfsb_buf_str(&c.text),
                                                HFSB_LIT("1\n2\n3\n")));
    T_CHECK(tm_says(&c, "\n200\n50%\n[killed by SIGTERM; "));
    T_CHECK(!tm_says(&c, "(stderr"));
    tm_end(&c);
}

/* ---- tools on offer ---- */

static bool offers(tm_client *c, const char *name) {
    char part[80];
    snprintf(part, sizeof part, "{\"name\":\"%s\"", name);
    return hfsb_str_find(hfsb_buf_str(&c->got), hfsb_cstr(part)) != HFSB_NPOS;
}

static void only_chosen_tools_are_offered(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    tm_client     c;
    hfsb_err      err = HFSB_INIT;
    o.read_only = true;
    tm_start(&c, &o);
    tm_send(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    T_CHECK(tm_wait(&c, "1"));
    T_CHECK(offers(&c, "read") && !offers(&c, "write") && !offers(&c, "bash"));
    tm_call(&c, "2", "write", "{\"path\":\"w.txt\",\"content\":\"x\"}");
    T_CHECK(tm_wait(&c, "2") && tm_code(&c) == -32602);
    T_CHECK(access("w.txt", F_OK) != 0);
    tm_end(&c);
    memset(&o, 0, sizeof o);
    o.only = HFSB_LIT("read,bash");
    tm_start(&c, &o);
    tm_send(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    T_CHECK(tm_wait(&c, "1"));
    T_CHECK(offers(&c, "read") && offers(&c, "bash") && !offers(&c, "edit"));
    T_CHECK(hfsb_json_count(tm_result(&c, "tools")) == 2);
    tm_call(&c, "2", "edit", "{}");
    T_CHECK(tm_wait(&c, "2") && tm_code(&c) == -32602);
    tm_end(&c);
    tm_open(&c, NULL);
    o.only = HFSB_LIT("read,dance");
    o.path = "";
    T_CHECK(hfsb_server_add_mcp(c.server, &o, NULL, &err) == HFSB_ARG);
    T_CHECK(strstr(err.msg, "dance") != NULL);
    tm_end(&c);
}

/* A model calls the tools that a description names. */
static void descriptions_name_tools_on_offer(void) {
    static const struct {
        const char *only, *there, *not_there;
    } rows[] = {
        {"", "prefer read, write, edit, glob, grep, list over cat", NULL},
        {"", "not &, then bash_output.", "apply_patch over"},
        {"small", "prefer read, write, edit over cat", NULL},
        {"gpt", "prefer read, write, apply_patch, glob, grep, list over",
         "prefer edit"},
        {"gpt", "and prefer apply_patch to change parts", NULL},
        {"bash,kill", "stdout, then stderr. Each call", "For files"},
        {"bash,kill", "use background, not &.", "bash_output"},
        {"write", "read an existing file first. The reply", "prefer"},
    };
    size_t i;
    for (i = 0; i < TT_COUNT(rows); i++) {
        hfsb_mcp_opts o = HFSB_INIT;
        tm_client     c;
        o.only = hfsb_cstr(rows[i].only);
        tm_start(&c, &o);
        tm_send(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
                    "\"tools/list\"}");
        T_CHECK(tm_wait(&c, "1"));
        T_CHECK(strstr(c.got.ptr, rows[i].there) != NULL);
        T_CHECK(!rows[i].not_there || !strstr(c.got.ptr, rows[i].not_there));
        tm_end(&c);
    }
}

/* The tag costs tokens: only who can use it sees it. */
static void tag_is_shown_where_edit_lines_is_offered(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    tm_client     c;
    tt_put("tagged", HFSB_LIT("1\n2\n"));
    tm_start(&c, &o);
    tm_call(&c, "1", "read", "{\"path\":\"tagged\"}");
    T_CHECK(tm_wait(&c, "1") && tm_says(&c, "1\t1\n2\t2"));
    T_CHECK(!tm_says(&c, "tag a6e2b7a0"));
    tm_call(&c, "2", "edit_lines", "{}");
    T_CHECK(tm_wait(&c, "2") && tm_code(&c) == -32602);
    tm_end(&c);
    o.only = HFSB_LIT("small,edit_lines");
    tm_start(&c, &o);
    tm_call(&c, "1", "read", "{\"path\":\"tagged\"}");
    T_CHECK(tm_wait(&c, "1") && tm_says(&c, "1\t1\n2\t2\n[tag a6e2b7a0]"));
    tm_call(&c, "2", "edit_lines",
            "{\"path\":\"tagged\",\"tag\":\"a6e2b7a0\",\"ops\":[{\"op\":"
            "\"insert\",\"line\":2,\"text\":\"3\"}]}");
    T_CHECK(tm_wait(&c, "2") && tm_says(&c, "Its tag is now "));
    TT_FILE("tagged", "1\n2\n3\n");
    tm_end(&c);
}

static void instructions_name_only_offered_tools(void) {
    static const struct {
        const char *only, *says, *not_says;
    } rows[] = {
        {"", ": see bash_output, bash_input, kill. bash_output goes on",
         "no such"},
        {"bash", "goes on as a job.", "see"},
        {"bash,kill", "goes on as a job: see kill.", "bash_output"},
        {"read", "Relative paths start in", "bash"},
        {"read", "read also shows images", "command"},
        {"grep,list", "Relative paths start in", "read"},
    };
    size_t i;
    for (i = 0; i < TT_COUNT(rows); i++) {
        hfsb_mcp_opts   o = HFSB_INIT;
        hfsb_tools_opts to = HFSB_INIT;
        tm_client       c;
        hfsb_str        text;
        to.root = HFSB_LIT("/");
        o.tools = &to;
        o.only = hfsb_cstr(rows[i].only);
        tm_start(&c, &o);
        tm_initialize(&c, "2025-11-25");
        T_CHECK(tm_wait(&c, "\"init\""));
        text = hfsb_json_str(tm_result(&c, "instructions"), HFSB_LIT(""));
        T_CHECK(hfsb_str_find(text, hfsb_cstr(rows[i].says)) != HFSB_NPOS);
        T_CHECK(hfsb_str_find(text, hfsb_cstr(rows[i].not_says)) == HFSB_NPOS);
        tm_end(&c);
    }
}

static void the_root_confines_and_is_named(void) {
    static const char *const env[] = {"WORD=of the environment",
                                      "PATH=/bin:"
                                      "/usr/bin",
                                      NULL};
    static const char *const hide[] = {"WORD", NULL};
    hfsb_tools_opts          to = HFSB_INIT;
    hfsb_mcp_opts            o = HFSB_INIT;
    tm_client                c;
    hfsb_err                 err = HFSB_INIT;
    char                     root[100];
    mkdir("rooted", 0755);
    tt_put("rooted/in.txt", HFSB_LIT("inside\n"));
    tt_put("outside.txt", HFSB_LIT("outside\n"));
    snprintf(root, sizeof root, "%s/work/rooted", tt_dir);
    to.root = hfsb_cstr(root);
    to.env = env;
    o.tools = &to;
    tm_open(&c, &o);
    tm_pipes(&c);
    memset(root, 'x', 5); /* it was copied */
    to.env = hide;
    tm_run_fds(&c, c.theirs[0], c.theirs[1]);
    tm_initialize(&c, "2025-11-25");
    T_CHECK(tm_wait(&c, "\"init\""));
    T_CHECK(hfsb_str_find(
                hfsb_json_str(tm_result(&c, "instructions"), HFSB_LIT("")),
                HFSB_LIT("work/rooted")) != HFSB_NPOS);
    tm_call(&c, "1", "read", "{\"path\":\"in.txt\"}");
    T_CHECK(tm_wait(&c, "1") && tm_says(&c, "inside"));
    tm_call(&c, "2", "read", "{\"path\":\"../outside.txt\"}");
    T_CHECK(tm_wait(&c, "2") && tm_failed(&c));
    tm_call(&c, "3", "bash", "{\"command\":\"pwd; echo $WORD\"}");
    T_CHECK(tm_wait(&c, "3") && tm_says(&c, "work/rooted") &&
            tm_says(&c, "of the environment"));
    tm_end(&c);
    tm_open(&c, NULL);
    to.root = HFSB_LIT("/no/such/directory");
    o.path = "";
    T_CHECK(hfsb_server_add_mcp(c.server, &o, NULL, &err) == HFSB_NOT_FOUND);
    tm_end(&c);
}

/* Importing runs a module's code, as bash would. The python3 in the root is
   not the one that is asked; the one that is answers with its mode. */
static void python_modules_are_imported_only_with_bash(void) {
    static const struct {
        const char *only, *mode;
    } rows[] = {{"", "kwarg: imports"},
                {"bash,write,read", "kwarg: imports"},
                {"read,write,edit", "kwarg: syntax"}};
    const char *env[2];
    char        root[100], path[300];
    size_t      i, k;
    mkdir("fenced", 0755);
    mkdir("programs", 0755);
    tt_put("fenced/python3", HFSB_LIT("#!/bin/sh\necho Invalid kwarg: x\n"));
    tt_put("programs/python3",
           HFSB_LIT("#!/bin/sh\nread n\necho \"Invalid kwarg: $7\"\n"
                    "echo .\nread n\n"));
    T_CHECK(chmod("fenced/python3", 0755) == 0);
    T_CHECK(chmod("programs/python3", 0755) == 0);
    snprintf(root, sizeof root, "%s/work/fenced", tt_dir);
    snprintf(path, sizeof path, "PATH=%s:%s/work/programs", root, tt_dir);
    env[0] = path;
    env[1] = NULL;
    for (i = 0; i < TT_COUNT(rows); i++) {
        hfsb_mcp_opts   o = HFSB_INIT;
        hfsb_tools_opts to = HFSB_INIT;
        tm_client       c;
        to.root = hfsb_cstr(root);
        to.env = env;
        o.tools = &to;
        o.only = hfsb_cstr(rows[i].only);
        tm_start(&c, &o);
        tm_call(&c, "1", "write", "{\"path\":\"a.py\",\"content\":\"x\"}");
        T_CHECK(tm_wait(&c, "1"));
        for (k = 0; k < 500 && !tm_says(&c, rows[i].mode); k++) {
            char id[8]; /* it may take longer than the reply */
            snprintf(id, sizeof id, "r%d", (int)k);
            (void)poll(NULL, 0, 20);
            tm_call(&c, id, "read", "{\"path\":\"a.py\"}");
            T_CHECK(tm_wait(&c, id));
        }
        T_CHECK(k < 500);
        tm_end(&c);
        T_CHECK(unlink("fenced/a.py") == 0);
    }
}

/* The python3 would write its mode to a file. */
static void tools_that_only_read_start_no_python(void) {
    hfsb_mcp_opts   o = HFSB_INIT;
    hfsb_tools_opts to = HFSB_INIT;
    const char     *env[2];
    char            root[100], path[300];
    tm_client       c;
    snprintf(root, sizeof root, "%s/work/fenced", tt_dir);
    snprintf(path, sizeof path, "PATH=%s/work/programs", tt_dir);
    env[0] = path;
    env[1] = NULL;
    to.env = env;
    to.root = hfsb_cstr(root);
    o.tools = &to;
    o.only = HFSB_LIT("read,bash");
    tt_put("fenced/a.py", HFSB_LIT("x\n"));
    tm_start(&c, &o);
    tm_call(&c, "1", "read", "{\"path\":\"a.py\"}");
    T_CHECK(tm_wait(&c, "1"));
    (void)poll(NULL, 0, 300);
    T_CHECK(access("mode", F_OK) != 0);
    tm_end(&c);
    T_CHECK(unlink("fenced/a.py") == 0);
}

/* ---- long work in threads ---- */

/* There are eight threads: one that goes on would be missed. */
static void cancelling_frees_the_thread(void) {
    tm_client c;
    char      id[8];
    int       i, round;
    tt_put_huge("huge.txt");
    tt_put("small.txt", HFSB_LIT("small\n"));
    tm_start(&c, NULL);
    for (round = 0; round < 2; round++) {
        for (i = 0; i < 8; i++) {
            snprintf(id, sizeof id, "%d", i);
            tm_call(&c, id, round ? "read" : "grep",
                    round ? "{\"path\":\"huge.txt\",\"offset\":-5}"
                          : "{\"path\":\"huge.txt\",\"pattern\":\"none\"}");
        }
        tm_listen(&c, 100);
        for (i = 0; i < 8; i++) {
            snprintf(id, sizeof id, "%d", i);
            tm_cancel(&c, id);
        }
        tm_call(&c, round ? "21" : "20", "read", "{\"path\":\"small.txt\"}");
        T_CHECK(tm_wait(&c, round ? "21" : "20") && tm_says(&c, "small"));
    }
    T_CHECK(tm_count(&c, "huge") == 0); /* no answer was sent */
    tm_end(&c);
}

static void the_deadline_ends_a_search(void) {
    tm_client     c;
    hfsb_mcp_opts o = HFSB_INIT;
    long long     began = hfsb_clock_ms();
    o.answer_ms = 600;
    tm_start(&c, &o);
    tm_call(&c, "1", "grep",
            "{\"path\":\"huge.txt\",\"pattern\":\"some\",\"limit\":1}");
    T_CHECK(tm_wait(&c, "1") && !tm_failed(&c));
    T_CHECK(tm_says(&c, "1:some words") && tm_says(&c, "stopped early"));
    T_CHECK(hfsb_clock_ms() - began < 30000);
    began = hfsb_clock_ms();
    tm_end(&c);
    T_CHECK(hfsb_clock_ms() - began < 15000);
    unlink("huge.txt");
}

int main(void) {
    tt_begin();
    TT_RUN(bad_arguments_are_reported_as_results);
    TT_RUN(each_kind_of_tool_gives_its_result);
    TT_RUN(ten_commands_run_at_once);
    TT_RUN(other_requests_are_answered_while_a_command_runs);
    TT_RUN(too_many_calls_are_refused);
    TT_RUN(cancelling_kills_the_tree_and_sends_no_answer);
    TT_RUN(cancelling_a_wait_leaves_the_job);
    TT_RUN(progress_is_sent_only_with_a_token);
    TT_RUN(a_long_command_becomes_a_job);
    TT_RUN(a_build_is_followed_in_two_calls);
    TT_RUN(input_is_answered_with_output);
    TT_RUN(a_running_command_shows_the_end_of_stderr);
    TT_RUN(only_chosen_tools_are_offered);
    TT_RUN(descriptions_name_tools_on_offer);
    TT_RUN(tag_is_shown_where_edit_lines_is_offered);
    TT_RUN(instructions_name_only_offered_tools);
    TT_RUN(the_root_confines_and_is_named);
    TT_RUN(python_modules_are_imported_only_with_bash);
    TT_RUN(tools_that_only_read_start_no_python);
    TT_RUN(cancelling_frees_the_thread);
    TT_RUN(the_deadline_ends_a_search);
    return TT_END();
}
