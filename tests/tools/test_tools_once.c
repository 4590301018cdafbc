/* test_tools_once.c - one call, once: a repeat with the same id or key gets
   the result of the first. */
#include "../support/t_tools.h"

static bool output_is(const tt_reply *r, const char *text) {
    return hfsb_str_equal(hfsb_buf_str(&r->res.output), hfsb_cstr(text));
}

static void a_command_with_an_id_runs_once(void) {
    static const char command[] = "echo x >> once; echo $$; exit 3";
    hfsb_tools       *tools = tt_open(NULL);
    tt_reply          r = HFSB_INIT;
    char              first[50];
    int               i;
    unlink("once");
    tt_call(&r, tools, "bash", "command=s id=s", command, "my id/1");
    TT_FAIL(&r, "Exit code 3");
    T_CHECK(hfsb_str_equal(tt_text(&r, "id"), HFSB_LIT("my id/1")));
    snprintf(first, sizeof first, "%s", tt_keep(hfsb_buf_str(&r.res.output)));
    for (i = 0; i < 3; i++) {
        tt_call(&r, tools, "bash", "command=s id=s", command, "my id/1");
        T_CHECK(r.st == HFSB_OK);
        TT_ENDS(&r, first, "Exit code 3");
        T_CHECK(tt_int(&r, "exit_code") == 3);
    }
    tt_call(&r, tools, "bash", "command=s id=s", "echo y >> once", "my id/1");
    T_CHECK(r.st == HFSB_REFUSED && tt_says(&r.res.error, "my id/1"));
    tt_call(&r, tools, "bash", "command=s id=s timeout=j", command, "my id/1",
            "5");
    T_CHECK(r.st == HFSB_REFUSED);
    T_CHECK(tt_lines_in("once") == 1);
    tt_call(&r, tools, "bash_output", "id=s", "my id/1");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "bash", "command=s id=s", command, "my id/2");
    T_CHECK(!hfsb_str_equal(hfsb_buf_str(&r.res.output), hfsb_cstr(first)));
    T_CHECK(tt_lines_in("once") == 2);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Long ids are not cut: two that begin alike are two. */
static void ids_are_compared_whole(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    char        id[2][400];
    size_t      len, i;
    for (len = 1; len < 400; len += len < 140 ? 69 : 13) {
        bool taken[2];
        for (i = 0; i < 2; i++) {
            memset(id[i], 'i', len);
            id[i][len - 1] = (char)('a' + i);
            id[i][len] = '\0';
            tt_call(&r, tools, "bash", "command=s id=s",
                    i ? "echo b" : "echo a", id[i]);
            taken[i] = r.res.success;
            if (taken[i]) {
                T_CHECK(output_is(&r, i ? "b\n" : "a\n"));
                T_CHECK(hfsb_str_equal(tt_text(&r, "id"), hfsb_cstr(id[i])));
            } else { /* too long: an error that names it */
                T_CHECK(r.st == HFSB_ARG && tt_says(&r.res.error, "id"));
            }
        }
        T_CHECK(taken[0] == taken[1] && (taken[0] || len > 64));
    }
    /* an empty key is no key */
    for (i = 0; i < 2; i++) {
        tt_call(&r, tools, "bash", "command=s id=s", i ? "echo b" : "echo a",
                "");
        TT_OK(&r, i ? "b\n" : "a\n");
        T_CHECK(tt_text(&r, "id").len > 0);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* "Too many wait" is no result: the repeat may run. */
static void what_never_ran_may_be_tried_again(void) {
    hfsb_tools_opts topts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_call_opts  opts = HFSB_INIT;
    hfsb_call      *busy, *waits;
    topts.max_running = topts.max_waiting = 1;
    tools = tt_open(&topts);
    unlink("tried");
    busy = tt_start(tools, "bash", NULL, "command=s", "sleep 0.5");
    waits = tt_start(tools, "bash", NULL, "command=s", "true");
    opts.key = HFSB_LIT("later");
    tt_do(&r, tools, "bash", HFSB_LIT("{\"command\":\"echo x >> tried\"}"),
          &opts);
    T_CHECK(r.sane && r.st == HFSB_LIMIT);
    tt_finish(&r, tools, busy);
    tt_finish(&r, tools, waits);
    tt_do(&r, tools, "bash", HFSB_LIT("{\"command\":\"echo x >> tried\"}"),
          &opts);
    TT_OK(&r, "");
    TT_FILE("tried", "x\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void a_repeat_joins_what_still_runs(void) {
    static const char command[] = "echo x >> joined; sleep 0.5; echo $$";
    hfsb_tools       *tools = tt_open(NULL);
    tt_reply          r[4];
    hfsb_call_opts    opts = HFSB_INIT;
    hfsb_call        *call[4];
    int               i, way;
    memset(r, 0, sizeof r);
    for (way = 0; way < 2; way++) { /* by id, by key */
        unlink("joined");
        opts.key = way ? HFSB_LIT("the key") : HFSB_LIT("");
        for (i = 0; i < 4; i++)
            call[i] = tt_start(tools, "bash", &opts, "command=s id=s", command,
                               way ? NULL : "same");
        T_CHECK(hfsb_tools_busy(tools) == 1);
        hfsb_call_close(call[1]); /* one that gave up changes nothing */
        for (i = 0; i < 4; i++)
            if (i != 1) tt_finish(&r[i], tools, call[i]);
        T_CHECK(r[0].res.success && r[0].res.output.len > 1);
        for (i = 2; i < 4; i++)
            T_CHECK(r[i].st == HFSB_OK &&
                    hfsb_str_equal(hfsb_buf_str(&r[i].res.output),
                                   hfsb_buf_str(&r[0].res.output)));
        T_CHECK(tt_lines_in("joined") == 1);
    }
    for (i = 0; i < 4; i++) tt_drop(&r[i]);
    hfsb_tools_close(tools);
}

/* The first call is closed before its end; the repeat gets the result. */
static void a_repeat_finds_what_its_first_call_left(void) {
    hfsb_tools    *tools = tt_open(NULL);
    tt_reply       r = HFSB_INIT;
    hfsb_call_opts opts = HFSB_INIT;
    unlink("left");
    opts.key = HFSB_LIT("lost reply");
    hfsb_call_close(tt_start(tools, "bash", &opts, "command=s",
                             "echo x >> left; sleep 0.3; echo done"));
    tt_finish(&r, tools,
              tt_start(tools, "bash", &opts, "command=s",
                       "echo x >> left; sleep 0.3; echo done"));
    TT_OK(&r, "done\n");
    T_CHECK(tt_lines_in("left") == 1);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* The reply is that of the start, also when the job has long failed. */
static void a_background_job_with_an_id_starts_once(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    first = HFSB_INIT;
    int         i;
    unlink("bg");
    for (i = 0; i < 4; i++) {
        if (i == 3) {
            tt_await(&r, tools, "bg-1", NULL, NULL);
            TT_OK(&r, "end\n");
            T_CHECK(tt_int(&r, "exit_code") == 3);
        }
        tt_call(&r, tools, "bash", "command=s id=s background=j",
                "echo x >> bg; sleep 0.1; echo end; exit 3", "bg-1", "true");
        T_CHECK(r.res.success);
        T_CHECK(hfsb_str_equal(tt_text(&r, "id"), HFSB_LIT("bg-1")));
        if (!i)
            T_CHECK(hfsb_buf_append(&first, hfsb_buf_str(&r.res.output)) ==
                    HFSB_OK);
        T_CHECK(output_is(&r, first.ptr));
    }
    T_CHECK(tt_lines_in("bg") == 1);
    hfsb_buf_free(&first);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* An id that the caller has from elsewhere counts as the argument does. */
static void an_id_of_the_options_runs_once(void) {
    hfsb_tools    *tools = tt_open(NULL);
    tt_reply       r = HFSB_INIT;
    hfsb_call_opts opts = HFSB_INIT;
    opts.id = HFSB_LIT("from-a-path");
    tt_do(&r, tools, "bash", HFSB_LIT("{\"command\":\"echo one\"}"), &opts);
    TT_OK(&r, "one\n");
    tt_do(&r, tools, "bash", HFSB_LIT("{\"command\":\"echo one\"}"), &opts);
    TT_OK(&r, "one\n");
    tt_do(&r, tools, "bash", HFSB_LIT("{\"command\":\"echo two\"}"), &opts);
    T_CHECK(r.sane && r.st == HFSB_REFUSED);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void changes_with_a_key_are_made_once(void) {
    static const struct {
        const char *tool, *json, *other;
        const char *after; /* of the file, which held "a\n" */
    } cases[] = {
        {"write", "{\"path\":\"k\",\"content\":\"w\\n\"}",
         "{\"path\":\"k\",\"content\":\"v\\n\"}", "w\n"},
        {"edit", "{\"path\":\"k\",\"old_str\":\"a\",\"new_str\":\"b\"}",
         "{\"path\":\"k\",\"old_str\":\"a\",\"new_str\":\"c\"}", "b\n"},
        {"multi_edit",
         "{\"path\":\"k\",\"edits\":[{\"old_str\":\"a\",\"new_str\":\"m\"}]}",
         "{\"path\":\"k\",\"edits\":[]}", "m\n"},
        {"apply_patch",
         "{\"patch\":\"*** Begin Patch\\n*** Update File: k\\n@@\\n-a\\n+p\\n"
         "*** End Patch\\n\"}",
         "{\"patch\":\"\"}", "p\n"}};
    hfsb_tools    *tools = tt_open(NULL);
    tt_reply       r = HFSB_INIT, again = HFSB_INIT;
    hfsb_call_opts opts = HFSB_INIT;
    size_t         i;
    for (i = 0; i < TT_COUNT(cases); i++) {
        opts.key = hfsb_cstr(cases[i].json);
        tt_put("k", HFSB_LIT("a\n"));
        tt_do(&r, tools, cases[i].tool, hfsb_cstr(cases[i].json), &opts);
        T_CHECK(r.sane);
        TT_OK(&r, NULL);
        T_CHECK(tt_file_is("k", hfsb_cstr(cases[i].after)));
        tt_put("k", HFSB_LIT("a\n"));
        tt_do(&again, tools, cases[i].tool, hfsb_cstr(cases[i].json), &opts);
        T_CHECK(again.sane && again.st == HFSB_OK && again.res.success);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&again.res.output),
                               hfsb_buf_str(&r.res.output)));
        T_CHECK(tt_same_added(&again, &r));
        TT_FILE("k", "a\n");
        tt_do(&r, tools, cases[i].tool, hfsb_cstr(cases[i].other), &opts);
        T_CHECK(r.sane && r.st == HFSB_REFUSED);
        tt_do(&r, tools, cases[i ? 0 : 1].tool, hfsb_cstr(cases[i].json),
              &opts);
        T_CHECK(r.sane && r.st == HFSB_REFUSED);
        TT_FILE("k", "a\n");
    }
    /* a failure is a result, too */
    opts.key = HFSB_LIT("fails");
    tt_do(&r, tools, "edit",
          HFSB_LIT("{\"path\":\"k\",\"old_str\":\"z\",\"new_str\":\"y\"}"),
          &opts);
    TT_FAIL(&r, "old_str not found in file.");
    tt_put("k", HFSB_LIT("z\n"));
    tt_do(&r, tools, "edit",
          HFSB_LIT("{\"path\":\"k\",\"old_str\":\"z\",\"new_str\":\"y\"}"),
          &opts);
    TT_FAIL(&r, "old_str not found in file.");
    TT_FILE("k", "z\n");
    tt_drop(&r);
    tt_drop(&again);
    hfsb_tools_close(tools);
}

static void results_are_remembered_up_to_a_size(void) {
    hfsb_tools    *tools = tt_open(NULL);
    tt_reply       r = HFSB_INIT;
    hfsb_call_opts opts = HFSB_INIT;
    hfsb_buf       json = HFSB_INIT;
    char           key[32];
    int            i, held = 0, n = 120; /* 100 kB each: 12 MB */
    unlink("heavy");
    T_CHECK(hfsb_buf_printf(&json, "{\"command\":\"%s\"}",
                            "echo x >> heavy; head -c 24990 /dev/zero | sed "
                            "'s/\\\\x00/\xF0\x9F\x98\x80/g'") == HFSB_OK);
    for (i = 0; i < n; i++) {
        snprintf(key, sizeof key, "heavy %d", i);
        opts.key = hfsb_cstr(key);
        tt_do(&r, tools, "bash", hfsb_buf_str(&json), &opts);
        if (!r.res.success || r.res.output.len != 99960) break;
    }
    T_CHECK(i == n && tt_lines_in("heavy") == n);
    T_CHECK(tt_memory.heap.live < 16 << 20);
    for (i = 0; i < n; i++) {
        snprintf(key, sizeof key, "heavy %d", i);
        opts.key = hfsb_cstr(key);
        tt_do(&r, tools, "bash", hfsb_buf_str(&json), &opts);
        T_CHECK(r.sane);
        T_CHECK(r.st == HFSB_REFUSED ||
                (r.st == HFSB_OK && r.res.output.len == 99960));
        held += r.st == HFSB_OK;
    }
    T_CHECK(tt_lines_in("heavy") == n); /* nothing ran again */
    T_CHECK(held >= 30 && held <= 84);
    hfsb_buf_free(&json);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void hundreds_of_keys_are_remembered(void) {
    hfsb_tools_opts topts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_call_opts  opts = HFSB_INIT;
    char            key[32], json[100], want[64];
    int             i, wrong = 0;
    topts.no_checks = true;
    tools = tt_open(&topts);
    for (i = 0; i < 556; i++) {
        int n = i < 300 ? i : 600 - 1 - i; /* 0..299, then 299 down to 44 */
        snprintf(key, sizeof key, "key %d", n);
        snprintf(json, sizeof json, "{\"path\":\"many\",\"content\":\"%d\"}",
                 n);
        opts.key = hfsb_cstr(key);
        tt_do(&r, tools, "write", hfsb_cstr(json), &opts);
        snprintf(want, sizeof want, "Wrote %d bytes to many",
                 n < 10    ? 1
                 : n < 100 ? 2
                           : 3);
        wrong += !r.res.success ||
                 !hfsb_str_equal(hfsb_buf_str(&r.res.output), hfsb_cstr(want));
    }
    T_CHECK(wrong == 0);
    TT_FILE("many", "299");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- what may be forgotten, and what not ---- */

/* The text of a command goes when many others have run; that it ran does
   not. */
static void a_command_runs_once_however_many_follow(void) {
    static const char json[] = "{\"command\":\"echo x >> ran; echo text\"}";
    hfsb_tools       *tools = tt_open(NULL);
    tt_reply          r = HFSB_INIT;
    hfsb_call_opts    opts = HFSB_INIT;
    int               i;
    unlink("ran");
    opts.key = HFSB_LIT("the key");
    tt_call(&r, tools, "bash", "command=s id=s", "echo x >> ran", "the id");
    tt_do(&r, tools, "bash", hfsb_cstr(json), &opts);
    TT_OK(&r, "text\n");
    for (i = 0; i < 300; i++) tt_call(&r, tools, "bash", "command=s", ":");
    tt_call(&r, tools, "bash", "command=s id=s", "echo x >> ran", "the id");
    T_CHECK(r.st == HFSB_REFUSED);
    TT_FAIL(&r, "This command has run (job the id); its result is no longer "
                "held.");
    tt_do(&r, tools, "bash", hfsb_cstr(json), &opts);
    T_CHECK(r.sane && r.st == HFSB_REFUSED);
    T_CHECK(tt_says(&r.res.error, "no longer held"));
    TT_FILE("ran", "x\nx\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Neither its result nor its record is held by then. */
static void thousands_of_keys_are_not_run_again(void) {
    hfsb_tools_opts topts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_call_opts  opts = HFSB_INIT;
    char            key[32];
    int             i, again = 0, n = 5000;
    topts.no_checks = true;
    tools = tt_open(&topts);
    tt_put("log", HFSB_LIT(""));
    tt_call(&r, tools, "bash", "command=s id=s", "echo x >> log", "an id");
    T_CHECK(r.res.success);
    opts.key = HFSB_LIT("a key");
    tt_do(&r, tools, "bash", HFSB_LIT("{\"command\":\"echo x >> log\"}"),
          &opts);
    T_CHECK(r.res.success);
    for (i = 0; i < 2 * n; i++) {
        snprintf(key, sizeof key, "key %d", i % n);
        opts.key = hfsb_cstr(key);
        tt_do(&r, tools, "edit",
              HFSB_LIT("{\"path\":\"none\",\"old_str\":\"a\","
                       "\"new_str\":\"b\"}"),
              &opts);
        T_CHECK(r.sane && (i < n || r.st == HFSB_REFUSED ||
                           i >= 2 * n - 256));
        again += r.st == HFSB_REFUSED;
    }
    T_CHECK(again == n - 256);
    T_CHECK(tools->onces && tools->spent[0].count >= (size_t)n - 256);
    for (i = 0; i < 600; i++) tt_call(&r, tools, "bash", "command=s", ":");
    tt_call(&r, tools, "bash", "command=s id=s", "echo x >> log", "an id");
    T_CHECK(r.st == HFSB_REFUSED && tt_says(&r.res.error, "no longer held"));
    tt_call(&r, tools, "bash", "command=s id=s", "echo y >> log", "an id");
    T_CHECK(r.st == HFSB_REFUSED && tt_says(&r.res.error, "was used for"));
    opts.key = HFSB_LIT("a key");
    tt_do(&r, tools, "bash", HFSB_LIT("{\"command\":\"echo x >> log\"}"),
          &opts);
    T_CHECK(r.sane && r.st == HFSB_REFUSED);
    TT_FILE("log", "x\nx\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* A table of keys is emptied when it is old and full, never before. */
static void keys_are_forgotten_in_two_steps(void) {
    hfsb_tools      *tools = tt_open(NULL);
    tt_reply         r = HFSB_INIT;
    hfsb_call_opts   opts = HFSB_INIT;
    static const char json[] = "{\"path\":\"none\",\"old_str\":\"a\","
                               "\"new_str\":\"b\"}";
    char             key[32];
    int              i, turn;
    for (i = 0; i < 400; i++) {
        snprintf(key, sizeof key, "key %d", i);
        opts.key = hfsb_cstr(key);
        tt_do(&r, tools, "edit", hfsb_cstr(json), &opts);
    }
    opts.key = HFSB_LIT("key 0");
    for (turn = 0; turn < 3; turn++) {
        tt_do(&r, tools, "edit", hfsb_cstr(json), &opts);
        T_CHECK((r.st == HFSB_REFUSED) == (turn < 2));
        tools->spent[0].since -= 11 * 60 * 1000;
        if (turn == 1) tools->spent[0].count = 1; /* one more came */
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* A caller that chooses the id which a job of ours would get next. */
static void no_two_jobs_have_one_id(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    char        id[8][200], next[200];
    size_t      i, k, len;
    tt_call(&r, tools, "bash", "command=s", ":");
    snprintf(next, sizeof next, "%s", tt_keep(tt_text(&r, "id")));
    len = strcspn(next, "-");
    for (i = 0; i < 8; i++) {
        snprintf(next + len, sizeof next - len, "-%d", (int)i + 3);
        tt_call(&r, tools, "bash", "command=s id=s background=j",
                i % 2 ? "echo own" : "echo chosen", i % 2 ? NULL : next,
                "true");
        T_CHECK(r.res.success);
        snprintf(id[i], sizeof id[i], "%s", tt_keep(tt_text(&r, "id")));
        for (k = 0; k < i; k++) T_CHECK(strcmp(id[i], id[k]));
    }
    for (i = 0; i < 8; i++) {
        tt_await(&r, tools, id[i], "0", NULL);
        TT_OK(&r, i % 2 ? "own\n" : "chosen\n");
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- keys ---- */

static void keys_have_a_length(void) {
    static const char *const calls[][2] = {
        {"bash", "{\"command\":\"echo x >> long\"}"},
        {"write", "{\"path\":\"long\",\"content\":\"x\\n\"}"},
        {"edit", "{\"path\":\"long\",\"old_str\":\"x\",\"new_str\":"
                 "\"y\"}"}};
    hfsb_tools    *tools = tt_open(NULL);
    tt_reply       r = HFSB_INIT;
    hfsb_call_opts opts = HFSB_INIT;
    char           key[300];
    size_t         i;
    memset(key, 'k', sizeof key);
    for (i = 0; i < TT_COUNT(calls); i++) {
        unlink("long");
        if (i == 2) tt_put("long", HFSB_LIT("x\n"));
        opts.key = hfsb_str_make(key, 256);
        tt_do(&r, tools, calls[i][0], hfsb_cstr(calls[i][1]), &opts);
        T_CHECK(r.sane && r.st == HFSB_ARG);
        T_STR(r.res.error, "The key of a call must have at most 255 bytes.");
        T_CHECK(i == 2 || access("long", F_OK) != 0);
        key[0] = (char)('a' + i);
        opts.key.len = 255;
        tt_do(&r, tools, calls[i][0], hfsb_cstr(calls[i][1]), &opts);
        T_CHECK(r.sane && r.st == HFSB_OK && r.res.success);
        T_CHECK(tt_file_is("long", hfsb_cstr(i == 2 ? "y\n" : "x\n")));
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* One key, one call, whichever tool, and whether or not it also has an id. */
static void a_key_is_one_call_of_one_tool(void) {
    static const char *const calls[][2] = {
        {"bash", "{\"command\":\"echo x >> one\"}"},
        {"bash", "{\"command\":\"echo x >> one\",\"id\":\"a\"}"},
        {"bash", "{\"command\":\"echo x >> one\",\"id\":\"b\"}"},
        {"write", "{\"path\":\"two\",\"content\":\"x\\n\"}"},
        {"write", "{\"path\":\"three\",\"content\":\"x\\n\"}"}};
    size_t first, i;
    for (first = 0; first < TT_COUNT(calls); first++) {
        hfsb_tools    *tools = tt_open(NULL);
        tt_reply       r = HFSB_INIT;
        hfsb_call_opts opts = HFSB_INIT;
        unlink("one"), unlink("two"), unlink("three");
        opts.key = HFSB_LIT("same");
        tt_do(&r, tools, calls[first][0], hfsb_cstr(calls[first][1]), &opts);
        T_CHECK(r.sane && r.res.success);
        for (i = 0; i < TT_COUNT(calls); i++) {
            tt_do(&r, tools, calls[i][0], hfsb_cstr(calls[i][1]), &opts);
            T_CHECK(r.sane && r.st == (i == first ? HFSB_OK : HFSB_REFUSED));
            T_CHECK(i == first || tt_says(&r.res.error, "was used for"));
        }
        T_CHECK((tt_lines_in("one") == 1) == (first < 3));
        T_CHECK((tt_lines_in("two") == 1) == (first == 3));
        T_CHECK((tt_lines_in("three") == 1) == (first == 4));
        tt_drop(&r);
        hfsb_tools_close(tools);
    }
}

int main(void) {
    tt_begin();
    TT_RUN(a_command_with_an_id_runs_once);
    TT_RUN(ids_are_compared_whole);
    TT_RUN(what_never_ran_may_be_tried_again);
    TT_RUN(a_repeat_joins_what_still_runs);
    TT_RUN(a_repeat_finds_what_its_first_call_left);
    TT_RUN(a_background_job_with_an_id_starts_once);
    TT_RUN(an_id_of_the_options_runs_once);
    TT_RUN(changes_with_a_key_are_made_once);
    TT_RUN(results_are_remembered_up_to_a_size);
    TT_RUN(hundreds_of_keys_are_remembered);
    TT_RUN(a_command_runs_once_however_many_follow);
    TT_RUN(thousands_of_keys_are_not_run_again);
    TT_RUN(keys_are_forgotten_in_two_steps);
    TT_RUN(no_two_jobs_have_one_id);
    TT_RUN(keys_have_a_length);
    TT_RUN(a_key_is_one_call_of_one_tool);
    return TT_END();
}
