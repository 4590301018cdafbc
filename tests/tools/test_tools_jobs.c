/* test_tools_jobs.c - commands as jobs: in the background, their output by
   offset, their input, kill, how many at once. */
#include "../support/t_tools.h"

/* Starts a command in the background: its id. */
static const char *launch(hfsb_tools *tools, const char *command) {
    tt_reply    r = HFSB_INIT;
    const char *id;
    long long   begin = hfsb_clock_ms();
    tt_call(&r, tools, "bash", "command=s background=j", command, "true");
    T_CHECK(r.res.success && hfsb_clock_ms() - begin < 20000);
    id = tt_keep(tt_text(&r, "id"));
    T_CHECK(*id && tt_says(&r.res.output, id)); /* a model sees the output */
    tt_drop(&r);
    return id;
}

/* ---- in the background ---- */

static void output_is_given_from_an_offset(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    const char *id;
    char        offset[32];
    T_CHECK(!mkfifo("go", 0600));
    id =
        launch(tools, "echo one; echo two >&2; printf '\\033[1mthr'; read x "
                      "< go; printf 'ee\\303\\251\\r\\n'; printf end; exit 4");
    tt_await(&r, tools, id, NULL, "thr");
    TT_OK(&r, "one\ntwo\nthr"); /* an unfinished line is shown */
    T_CHECK(tt_flag(&r, "running") && tt_int(&r, "next_offset") == 8);
    T_CHECK(hfsb_json_type_of(hfsb_json_get(r.extra.root, "exit_code")) ==
            HFSB_JSON_NULL);
    tt_call(&r, tools, "bash_output", "id=s offset=j", id, "8");
    TT_OK(&r, "thr");
    T_CHECK(tt_int(&r, "next_offset") == 8);
    tt_call(&r, tools, "bash_output", "id=s offset=j", id, "4");
    TT_OK(&r, "two\nthr");
    T_CHECK(hfsb_tools_busy(tools) == 1);
    tt_put("go", HFSB_LIT("\n"));
    tt_await(&r, tools, id, "8", NULL);
    TT_OK(&r, "three\xC3\xA9\nend");
    T_CHECK(!tt_flag(&r, "running") && tt_int(&r, "exit_code") == 4);
    T_CHECK(tt_int(&r, "next_offset") == 19);
    snprintf(offset, sizeof offset, "%lld", tt_int(&r, "next_offset"));
    tt_call(&r, tools, "bash_output", "id=s offset=j", id, offset);
    TT_OK(&r, "");
    T_CHECK(tt_int(&r, "next_offset") == 19);
    tt_call(&r, tools, "bash_output", "id=s offset=s", id, "16");
    TT_OK(&r, "end");
    tt_call(&r, tools, "bash_output", "id=s", id);
    TT_OK(&r, "one\ntwo\nthree\xC3\xA9\nend");
    T_CHECK(hfsb_tools_busy(tools) == 0);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void output_is_waited_for(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    const char *id = launch(tools, "until [ -e say ]; do sleep 0.01; done; "
                                   "echo x; sleep 60");
    long long   begin;
    tt_call(&r, tools, "bash_output", "id=s wait_ms=j", id, "100");
    TT_OK(&r, "");
    T_CHECK(tt_flag(&r, "running"));
    begin = hfsb_clock_ms();
    tt_call(&r, tools, "bash", "command=s background=j",
            "sleep 0.5; : > say", "true");
    tt_call(&r, tools, "bash_output", "id=s wait_ms=j", id, "20000");
    TT_OK(&r, "x\n");
    T_CHECK(hfsb_clock_ms() - begin >= 450 && hfsb_clock_ms() - begin < 15000);
    begin = hfsb_clock_ms();
    tt_call(&r, tools, "bash_output", "id=s offset=j wait_ms=j", id, "2",
            "300");
    TT_OK(&r, "");
    T_CHECK(hfsb_clock_ms() - begin >= 250);
    tt_call(&r, tools, "kill", "id=s", id);
    T_CHECK(r.res.success);
    begin = hfsb_clock_ms();
    tt_call(&r, tools, "bash_output", "id=s offset=j wait_ms=j", id, "2",
            "20000");
    TT_OK(&r, "");
    T_CHECK(!tt_flag(&r, "running") && hfsb_clock_ms() - begin < 18000);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Every command is a job, also one that was waited for. */
static void finished_commands_can_be_read_again(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    const char *id;
    tt_call(&r, tools, "bash", "command=s",
            "echo e >&2; head -c 30000 /dev/zero | tr '\\0' a; exit 9");
    T_CHECK(!r.res.success && tt_flag(&r, "truncated"));
    id = tt_keep(tt_text(&r, "id"));
    tt_call(&r, tools, "bash_output", "id=s offset=j", id, "29998");
    TT_OK(&r, "aae\n");
    T_CHECK(tt_int(&r, "exit_code") == 9 && !tt_flag(&r, "running"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* With a cap on the spill file the middle is let go of. */
static void reports_dropped_bytes(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    const char     *id;
    long long       from = 0, total = 3000000;
    bool            noted = false;
    size_t          seen = 0, rounds = 0;
    opts.max_spill = 100000;
    tools = tt_open(&opts);
    id = launch(tools, "yes 123456789 | head -c 3000000");
    tt_await(&r, tools, id, "3000000", NULL);
    while (from < total && rounds++ < 1000) {
        char offset[32], gap[64];
        snprintf(offset, sizeof offset, "%lld", from);
        tt_call(&r, tools, "bash_output", "id=s offset=j", id, offset);
        T_CHECK(r.res.success && tt_int(&r, "next_offset") > from);
        if (!r.res.success || tt_int(&r, "next_offset") <= from) break;
        if (tt_says(&r.res.output, "dropped") ||
            tt_says(&r.res.output, "no longer") ||
            tt_says(&r.res.output, "not kept")) {
            /* the range ends where the text goes on */
            snprintf(gap, sizeof gap, "%d", 100000);
            T_CHECK(tt_says(&r.res.output, gap));
            noted = true;
        } else {
            seen += r.res.output.len;
            T_CHECK((long long)r.res.output.len ==
                    tt_int(&r, "next_offset") - from);
            T_CHECK(r.res.output.ptr[0] == "123456789\n"[from % 10]);
        }
        from = tt_int(&r, "next_offset");
    }
    T_CHECK(noted && seen >= 90000 && from == total);
    T_CHECK(seen < 1000000);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void a_flood_in_the_background_is_bounded(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    const char *id = launch(tools, "yes | head -c 20000000; echo; echo end");
    size_t      most = 0;
    long long   from = 0, end = hfsb_clock_ms() + 200000; /* or it hangs */
    bool        running = true, right = true;
    while (running && hfsb_clock_ms() < end) {
        char offset[32];
        snprintf(offset, sizeof offset, "%lld", from);
        tt_call(&r, tools, "bash_output", "id=s offset=j wait_ms=j", id,
                offset, "100");
        if (tt_memory.heap.live > most) most = tt_memory.heap.live;
        right = right && r.res.success && tt_int(&r, "next_offset") >= from;
        running = tt_flag(&r, "running") || r.res.output.len > 0;
        if (r.res.output.len && !tt_flag(&r, "running") &&
            tt_int(&r, "next_offset") == from)
            running = false;
        from = tt_int(&r, "next_offset");
    }
    T_CHECK(right && from == 20000000 + 5);
    T_CHECK(most < 4 << 20);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void input_reaches_a_job(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    const char *id =
        launch(tools, "while read x; do echo \"<$x>\"; done; echo over");
    tt_call(&r, tools, "bash_input", "id=s text=s", id, "a\nb\n");
    T_CHECK(r.res.success);
    tt_await(&r, tools, id, NULL, "<b>");
    TT_OK(&r, "<a>\n<b>\n");
    tt_call(&r, tools, "bash_input", "id=s text=s", id, "no newline yet");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "bash_input", "id=s text=s eof=j", id, "!\n", "true");
    T_CHECK(r.res.success);
    tt_await(&r, tools, id, NULL, NULL);
    TT_OK(&r, "<a>\n<b>\n<no newline yet!>\nover\n");
    tt_call(&r, tools, "bash_input", "id=s text=s", id, "late");
    TT_FAIL(&r, "");
    /* only the end */
    id = launch(tools, "cat; echo over");
    tt_call(&r, tools, "bash_input", "id=s eof=j", id, "true");
    T_CHECK(r.res.success);
    tt_await(&r, tools, id, NULL, NULL);
    TT_OK(&r, "over\n");
    /* one that closed it */
    id = launch(tools, "exec 0<&-; echo $$ > closed; sleep 60");
    T_CHECK(tt_pid_in("closed") > 0);
    tt_call(&r, tools, "bash_input", "id=s text=s", id, "x");
    hfsb_tools_poll(tools, 100);
    tt_call(&r, tools, "bash_input", "id=s text=s", id, "x");
    TT_FAIL(&r, "");
    tt_call(&r, tools, "bash_input", "id=s text=s", "nobody", "x");
    TT_FAIL(&r, "");
    T_CHECK(tt_says(&r.res.error, "nobody"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void ids_that_are_unknown_are_named(void) {
    static const char *const names[] = {"bash_output", "bash_input", "kill"};
    hfsb_tools              *tools = tt_open(NULL);
    tt_reply                 r = HFSB_INIT;
    size_t                   i;
    for (i = 0; i < TT_COUNT(names); i++) {
        tt_call(&r, tools, names[i], "id=s text=s", "no-such-job",
                i == 1 ? "x" : NULL);
        TT_FAIL(&r, "");
        T_CHECK(tt_says(&r.res.error, "no-such-job"));
    }
    tt_call(&r, tools, "bash_output", "id=s offset=j", "x", "-1");
    T_CHECK(!r.res.success);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* A time limit is for commands that someone waits for, or was asked for. */
static void a_job_may_have_a_timeout(void) {
    static const char *const times[] = {"0.8", "3", "15"};
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    const char     *id;
    size_t          i;
    bool            said = false;
    opts.grace_ms = 300;
    tools = tt_open(&opts);
    for (i = 0; i < TT_COUNT(times) && !said; i++) { /* on a busy machine */
        tt_call(&r, tools, "bash", "command=s background=j timeout=j",
                "echo a; sleep 60", "true", times[i]);
        id = tt_keep(tt_text(&r, "id"));
        tt_await(&r, tools, id, NULL, NULL);
        T_CHECK(!tt_flag(&r, "running") && tt_flag(&r, "timed_out"));
        said = tt_says(&r.res.output, "a\n");
    }
    T_CHECK(said);
    hfsb_tools_close(tools);
    /* a server that someone started is not ended by the default */
    opts.timeout = 0.3;
    tools = tt_open(&opts);
    id = launch(tools, "sleep 60");
    tt_sleep_ms(600);
    tt_call(&r, tools, "bash_output", "id=s wait_ms=j", id, "300");
    T_CHECK(tt_flag(&r, "running"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void a_job_runs_while_nobody_looks(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    int         i;
    launch(tools, "echo a > first; sleep 0.2; echo b > second");
    for (i = 0; i < 400 && tt_lines_in("second") < 1; i++) tt_sleep_ms(50);
    T_CHECK(tt_lines_in("second") == 1);
    hfsb_tools_poll(tools, 0);
    for (i = 0; i < 400 && hfsb_tools_busy(tools); i++)
        hfsb_tools_poll(tools, 50);
    T_CHECK(hfsb_tools_busy(tools) == 0);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void closing_ends_what_runs(void) {
    hfsb_tools *tools = tt_open(NULL);
    hfsb_call  *call;
    hfsb_buf    command = HFSB_INIT;
    long long   begin;
    int         i;
    tt_with_nap("setsid sleep @ & sleep @", &command);
    launch(tools, command.ptr);
    call = tt_start(tools, "bash", NULL, "command=v", hfsb_buf_str(&command));
    for (i = 0; i < 1000 && tt_running(tt_nap()) < 4; i++) tt_sleep_ms(10);
    T_CHECK(tt_running(tt_nap()) >= 4);
    hfsb_call_close(call); /* the command goes on */
    hfsb_tools_poll(tools, 0);
    T_CHECK(hfsb_tools_busy(tools) == 2 && tt_running(tt_nap()) >= 4);
    begin = hfsb_clock_ms();
    hfsb_tools_close(tools);
    T_CHECK(hfsb_clock_ms() - begin < 20000);
    if (TT_PROC) {
        T_CHECK(tt_running(tt_nap()) == 0);
    } else { /* those in a session of their own are not found */
        tt_reply r = HFSB_INIT;
        tools = tt_open(NULL);
        tt_with_nap("pkill -9 -f 'sleep @'; true", &command);
        tt_call(&r, tools, "bash", "command=v", hfsb_buf_str(&command));
        tt_drop(&r);
        hfsb_tools_close(tools);
    }
    hfsb_buf_free(&command);
}

/* ---- kill ---- */

static void kill_ends_one_job_and_its_tree(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    const char     *id, *other;
    long            pid, grandchild;
    char            want[100];
    opts.grace_ms = 2000;
    tools = tt_open(&opts);
    unlink("pids");
    other = launch(tools, "sleep 60");
    id = launch(tools, "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; "
                       "done' & echo $! > pids; wait");
    grandchild = tt_pid_in("pids");
    tt_call(&r, tools, "bash_output", "id=s", id);
    T_CHECK(tt_flag(&r, "running"));
    pid = (long)tt_int(&r, "pid");
    tt_call(&r, tools, "kill", "id=s", id);
    if (pid > 0) {
        snprintf(want, sizeof want, "Killed 1 process(es): [%ld]", pid);
        TT_OK(&r, want);
        T_CHECK(!tt_alive(pid));
    }
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output),
                            HFSB_LIT("Killed 1 process(es): [")));
    if (TT_PROC) T_CHECK(!tt_alive(grandchild));
    else kill((pid_t)grandchild, SIGKILL);
    tt_call(&r, tools, "bash_output", "id=s", id);
    T_CHECK(r.res.success && !tt_flag(&r, "running"));
    T_CHECK(tt_int(&r, "signal") == SIGTERM);
    tt_call(&r, tools, "kill", "id=s", id);
    TT_OK(&r, "Killed 0 process(es): []");
    tt_call(&r, tools, "bash_output", "id=s", other);
    T_CHECK(tt_flag(&r, "running"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void kill_ends_all_and_each_says_how(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_call      *a, *b;
    long            left;
    opts.grace_ms = 3000;
    tools = tt_open(&opts);
    tt_call(&r, tools, "bash", "command=s", "sleep 60 & echo $!");
    left = tt_number(hfsb_buf_str(&r.res.output), 0);
    tt_call(&r, tools, "kill", "");
    TT_OK(&r, "Killed 0 process(es): []");
    unlink("ready");
    unlink("started");
    a = tt_start(tools, "bash", NULL, "command=s",
                 "echo begun; echo 1 > started; sleep 60");
    b = tt_start(tools, "bash", NULL, "command=s",
                 "trap 'echo no' TERM; echo 1 > ready; while :; do sleep 0.1; "
                 "done 2>/dev/null");
    launch(tools, "trap 'exit 0' TERM; sleep 60");
    T_CHECK(tt_pid_in("ready") == 1 && tt_pid_in("started") == 1);
    tt_call(&r, tools, "kill", "id=j", "null");
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output),
                            HFSB_LIT("Killed 3 process(es): [")));
    T_CHECK(hfsb_str_count_byte(hfsb_buf_str(&r.res.output), ',') == 2);
    T_CHECK(hfsb_tools_busy(tools) == 0);
    T_CHECK(hfsb_call_done(a) && hfsb_call_done(b));
    tt_finish(&r, tools, a);
    TT_ENDS(&r, "begun\n", "Exit code -15");
    tt_finish(&r, tools, b);
    TT_FAIL(&r, "Exit code -9"); /* it would not end on TERM */
    T_CHECK(tt_says(&r.res.output, "no\n"));
    T_CHECK(tt_alive(left)); /* kill leaves survivors alone */
    tt_end_process(left);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- how many ---- */

static void hundreds_of_commands_take_their_turn(void) {
    enum { N = 200 };
    hfsb_tools *tools = tt_open(NULL);
    hfsb_call  *call[N];
    tt_reply    r = HFSB_INIT;
    size_t      i, most = 0;
    char        command[100], want[100];
    for (i = 0; i < N; i++) {
        snprintf(command, sizeof command,
                 "echo a%zu; sleep 0.%zu; echo b%zu >&2; exit %zu", i, i % 5,
                 i, i % 7);
        call[i] = tt_start(tools, "bash", NULL, "command=s", command);
    }
    T_CHECK(hfsb_tools_busy(tools) == N);
    for (i = 0; i < N; i++) {
        size_t n = hfsb_tools_watch(tools, NULL, 0);
        if (n > most) most = n;
        tt_finish(&r, tools, call[i]);
        snprintf(want, sizeof want, "a%zu\nb%zu\n", i, i);
        tt_expect(__LINE__, &r, i % 7 == 0, want, NULL);
        T_CHECK(tt_int(&r, "exit_code") == (long long)(i % 7));
    }
    T_CHECK(hfsb_tools_busy(tools) == 0);
    T_CHECK(most <= 64 * HFSB_PROC_WATCHES + 1);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void only_so_many_run_and_so_many_wait(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_call      *call[4];
    int             i;
    opts.max_running = 2;
    opts.max_waiting = 2;
    opts.grace_ms = 200;
    tools = tt_open(&opts);
    unlink("order");
    unlink("turn");
    for (i = 0; i < 4; i++) /* 0 and 1 run, 2 and 3 wait */
        call[i] = tt_start(tools, "bash", NULL, "command=s timeout=j",
                           "echo x >> order; until [ -e turn ]; do sleep 0.05; "
                           "done",
                           i == 3 ? "0.3" : "60");
    tt_call(&r, tools, "bash", "command=s", "echo ran >> order");
    T_CHECK(r.st == HFSB_LIMIT);
    TT_FAIL(&r, "");
    tt_call(&r, tools, "bash", "command=s background=j", "echo ran >> order",
            "true");
    T_CHECK(r.st == HFSB_LIMIT);
    /* the fourth's own time is over before its turn: it never ran */
    tt_finish(&r, tools, call[3]);
    TT_ENDS(&r, "", "Timeout after 0.3s");
    tt_put("turn", HFSB_LIT(""));
    for (i = 0; i < 3; i++) {
        tt_finish(&r, tools, call[i]);
        TT_OK(&r, "");
    }
    T_CHECK(tt_lines_in("order") == 3);
    tt_call(&r, tools, "bash", "command=s", "echo again");
    TT_OK(&r, "again\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* The time a command waited for its turn is part of its timeout. */
static void waiting_counts_as_time(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_call      *first, *second;
    long long       begin, took = 10000;
    int             tries; /* a busy machine adds to each */
    bool            ran = false;
    opts.max_running = 1;
    opts.grace_ms = 300;
    tools = tt_open(&opts);
    for (tries = 0; tries < 10 && (took >= 3500 || !ran); tries++) {
        begin = hfsb_clock_ms();
        first = tt_start(tools, "bash", NULL, "command=s", "sleep 1.5");
        second = tt_start(tools, "bash", NULL, "command=s timeout=j",
                          "echo ran; exec sleep 60", "2.2");
        tt_finish(&r, tools, second);
        took = hfsb_clock_ms() - begin;
        TT_FAIL(&r, "Timeout after 2.2s");
        ran = tt_says(&r.res.output, "ran\n");
        T_CHECK(took >= 2100);
        tt_finish(&r, tools, first);
        TT_OK(&r, "");
    }
    T_CHECK(took < 3500 && ran);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void kill_also_ends_those_that_wait(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_call      *call[3];
    const char     *id;
    int             i;
    opts.max_running = 1;
    tools = tt_open(&opts);
    unlink("never");
    for (i = 0; i < 3; i++)
        call[i] = tt_start(tools, "bash", NULL, "command=s",
                           i ? "echo x > never" : "sleep 60");
    id = hfsb_call_job(call[2]);
    T_CHECK(*id);
    tt_call(&r, tools, "kill", "id=s", id);
    TT_OK(&r, "Killed 0 process(es): []"); /* there was none yet */
    T_CHECK(hfsb_tools_busy(tools) == 2);
    tt_finish(&r, tools, call[2]);
    TT_FAIL(&r, "");
    tt_call(&r, tools, "kill", "");
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output),
                            HFSB_LIT("Killed 1 process(es): [")));
    T_CHECK(hfsb_tools_busy(tools) == 0);
    tt_finish(&r, tools, call[0]);
    TT_FAIL(&r, "Exit code -15");
    tt_finish(&r, tools, call[1]);
    TT_FAIL(&r, "");
    T_CHECK(tt_lines_in("never") == -1);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* A call that looks at a job holds it, however many others finish. */
static void a_job_that_is_looked_at_is_kept(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_call      *call;
    const char     *id;
    int             i;
    opts.max_finished = 1;
    tools = tt_open(&opts);
    id = launch(tools, "sleep 0.2; echo x");
    call = tt_start(tools, "bash_output", NULL, "id=s wait_ms=j", id, "20000");
    for (i = 0; i < 5; i++) {
        tt_call(&r, tools, "bash", "command=s", "sleep 0.1; true");
        T_CHECK(r.res.success);
    }
    tt_finish(&r, tools, call);
    TT_OK(&r, "x\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void only_so_many_finished_jobs_are_kept(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    char            id[5][200];
    int             i;
    opts.max_finished = 3;
    tools = tt_open(&opts);
    for (i = 0; i < 5; i++) {
        tt_call(&r, tools, "bash", "command=s", "echo x");
        snprintf(id[i], sizeof id[i], "%s", tt_keep(tt_text(&r, "id")));
    }
    for (i = 0; i < 5; i++) {
        tt_call(&r, tools, "bash_output", "id=s", id[i]);
        tt_expect(__LINE__, &r, i >= 2, i >= 2 ? "x\n" : NULL, NULL);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- driven by a loop ---- */

static int due_within_a_second(hfsb_tools *tools) {
    long long due = hfsb_tools_deadline(tools);
    return due >= 0 && due <= hfsb_clock_ms() + 1000;
}

/* What a host does that waits with poll() for many things. */
static void a_host_can_wait_with_its_own_poll(void) {
    hfsb_tools *tools = tt_open(NULL);
    hfsb_call  *a, *b, *c;
    tt_reply    r = HFSB_INIT;
    long long   begin = hfsb_clock_ms(), end = begin + 20000, seen = 0, until;
    int         rounds = 0;
    a = tt_start(tools, "bash", NULL, "command=s timeout=j",
                 "for i in 1 2 3; do sleep 0.2; echo $i; done", "60");
    b = tt_start(tools, "bash", NULL, "command=s timeout=j", "sleep 60",
                 "0.5");
    c = tt_start(tools, "bash_output", NULL, "id=s wait_ms=j",
                 hfsb_call_job(b), "250");
    until = hfsb_clock_ms() + 250;
    while (!(hfsb_call_done(a) && hfsb_call_done(b) && seen) &&
           hfsb_clock_ms() < end) {
        hfsb_watch    list[32];
        struct pollfd fds[32];
        size_t        n = hfsb_tools_watch(tools, list, 32), i;
        long long     due = hfsb_tools_deadline(tools);
        long long     wait = due < 0 ? 5000 : due - hfsb_clock_ms();
        T_CHECK(n > 0 && n <= 32);
        T_CHECK(seen || (due >= 0 && due <= until)); /* a wait is one, too */
        for (i = 0; i < n; i++) {
            fds[i].fd = list[i].fd;
            fds[i].events = (short)((list[i].readable ? POLLIN : 0) |
                                    (list[i].writable ? POLLOUT : 0));
            fds[i].revents = 0;
        }
        poll(fds, (nfds_t)n, wait < 0 ? 0 : (int)wait);
        hfsb_tools_step(tools);
        rounds++;
        if (!seen && hfsb_call_done(c)) seen = hfsb_clock_ms() - begin;
    }
    T_CHECK(seen >= 200);
    tt_finish(&r, tools, c);
    TT_OK(&r, "");
    T_CHECK(rounds < 500); /* no spinning */
    tt_finish(&r, tools, a);
    TT_OK(&r, "1\n2\n3\n");
    tt_finish(&r, tools, b);
    TT_ENDS(&r, "", "Timeout after 0.5s");
    /* soon nothing is due: what the killed command left has been looked for */
    end = hfsb_clock_ms() + 20000;
    while (due_within_a_second(tools) && hfsb_clock_ms() < end) {
        tt_sleep_ms(10);
        hfsb_tools_step(tools);
    }
    T_CHECK(!due_within_a_second(tools));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void *wake_later(void *tools) {
    tt_sleep_ms(300);
    hfsb_tools_wake((hfsb_tools *)tools);
    return NULL;
}

static void a_poll_can_be_woken(void) {
    hfsb_tools *tools = tt_open(NULL);
    pthread_t   thread;
    long long   begin = hfsb_clock_ms();
    T_CHECK(!pthread_create(&thread, NULL, wake_later, tools));
    hfsb_tools_poll(tools, 30000);
    T_CHECK(hfsb_clock_ms() - begin < 25000);
    pthread_join(thread, NULL);
    begin = hfsb_clock_ms();
    hfsb_tools_poll(tools, 100);
    T_CHECK(hfsb_clock_ms() - begin < 15000);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(output_is_given_from_an_offset);
    TT_RUN(output_is_waited_for);
    TT_RUN(finished_commands_can_be_read_again);
    TT_RUN(reports_dropped_bytes);
    TT_RUN(a_flood_in_the_background_is_bounded);
    TT_RUN(input_reaches_a_job);
    TT_RUN(ids_that_are_unknown_are_named);
    TT_RUN(a_job_may_have_a_timeout);
    TT_RUN(a_job_runs_while_nobody_looks);
    TT_RUN(closing_ends_what_runs);
    TT_RUN(kill_ends_one_job_and_its_tree);
    TT_RUN(kill_ends_all_and_each_says_how);
    TT_RUN(hundreds_of_commands_take_their_turn);
    TT_RUN(only_so_many_run_and_so_many_wait);
    TT_RUN(waiting_counts_as_time);
    TT_RUN(kill_also_ends_those_that_wait);
    TT_RUN(a_job_that_is_looked_at_is_kept);
    TT_RUN(only_so_many_finished_jobs_are_kept);
    TT_RUN(a_host_can_wait_with_its_own_poll);
    TT_RUN(a_poll_can_be_woken);
    return TT_END();
}
