/* test_tools_tree.c - the processes of a command: what outlives it, who reads
   what that goes on printing, and that a kill or a timeout ends all of it. */
#include "../support/t_tools.h"

/* ---- what outlives a command ---- */

static bool is_listed(const tt_reply *r, long pid, const char *command) {
    const hfsb_json_value *list = hfsb_json_get(r->extra.root, "left_running");
    hfsb_json_iter         it = hfsb_json_begin(list);
    while (hfsb_json_next(&it))
        if (hfsb_json_int(hfsb_json_get(it.value, "pid"), 0) == pid)
            return hfsb_str_find(
                       hfsb_json_str(hfsb_json_get(it.value, "command"),
                                     HFSB_LIT("")),
                       hfsb_cstr(command)) != HFSB_NPOS;
    return false;
}

/* One command; true when what it left is named with its words. In the moment in
   which a process becomes another program the system tells only its name. */
static bool lives_on(hfsb_tools *tools, const char *words) {
    tt_reply  r = HFSB_INIT;
    hfsb_buf  command = HFSB_INIT;
    long long begin = hfsb_clock_ms();
    long      pid;
    bool      named;
    tt_with_nap(words, &command);
    tt_call(&r, tools, "bash", "command=v", hfsb_buf_str(&command));
    T_CHECK(hfsb_clock_ms() - begin < 20000);
    T_CHECK(r.res.success && tt_says(&r.res.output, "\nx\n"));
    pid = tt_number(hfsb_buf_str(&r.res.output), 0);
    T_CHECK(pid > 1 && tt_alive(pid));
    named = is_listed(&r, pid, tt_nap());
    T_CHECK(hfsb_tools_busy(tools) == 0);
    tt_call(&r, tools, "kill", "");
    T_STR(r.res.output, "Killed 0 process(es): []");
    T_CHECK(tt_alive(pid));
    tt_end_process(pid);
    hfsb_buf_free(&command);
    tt_drop(&r);
    return named;
}

static void children_live_on_and_are_named(void) {
    static const char *const commands[] = {
        "sleep @ & echo $!; echo x", "setsid sleep @ & echo $!; echo x",
        "nohup sleep @ >/dev/null 2>&1 & echo $!; echo x",
        "sh -c 'sleep @ & echo $!'; echo x",
        "sh -c '(sleep @ & echo $!) &'; sleep 0.2; echo x"};
    hfsb_tools *tools = tt_open(NULL);
    size_t      i;
    int         tries;
    for (i = 0; i < TT_COUNT(commands); i++) {
        for (tries = 0; tries < 10 && !lives_on(tools, commands[i]); tries++)
            continue;
        T_CHECK(!TT_PROC || tries < 10);
    }
    hfsb_tools_close(tools);
}

static long long file_size(const char *path) {
    struct stat st;
    return stat(path, &st) ? -1 : (long long)st.st_size;
}

/* True when the file grows within a while; the tools are polled, or not. */
static bool grows(const char *path, hfsb_tools *tools) {
    long long was = file_size(path);
    int       i;
    for (i = 0; i < 400 && file_size(path) <= was + 1; i++) {
        if (tools) hfsb_tools_poll(tools, 0);
        tt_sleep_ms(50);
    }
    return file_size(path) > was + 1;
}

/* 100 kB ten times a second; `beat` grows by a line each time, so that one
   sees it live. */
static const char printer[] =
    "trap 'echo pipe > died' PIPE; (while head -c 100000 /dev/zero; do echo "
    "x >> beat; sleep 0.1; done; echo e > died) & echo $! > pid";

static void a_child_that_prints_lives_on(bool keeper) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    long            pid;
    unlink("beat");
    unlink("died");
    opts.no_keeper = !keeper;
    tools = tt_open(&opts);
    tt_call(&r, tools, "bash", "command=s", printer);
    T_CHECK(r.res.success);
    pid = tt_pid_in("pid");
    T_CHECK(tt_alive(pid) && grows("beat", tools) && grows("beat", tools));
    T_CHECK(grows("beat", tools) && access("died", F_OK) != 0);
    /* also while only other calls are made */
    tt_call(&r, tools, "bash", "command=s", "sleep 1");
    T_CHECK(grows("beat", tools));
    hfsb_tools_close(tools);
    if (keeper) {
        T_CHECK(grows("beat", NULL) && grows("beat", NULL));
        T_CHECK(grows("beat", NULL) && tt_alive(pid));
        T_CHECK(access("died", F_OK) != 0);
    } else {
        T_CHECK(tt_gone(pid));
    }
    if (tt_alive(pid)) tt_end_process(pid);
    tt_drop(&r);
}

static void a_child_that_prints_lives_on_after_close(void) {
    a_child_that_prints_lives_on(true);
}

static void without_a_keeper_the_pipes_are_closed(void) {
    a_child_that_prints_lives_on(false);
}

/* The process that keeps the pipes has no descriptor of ours, and ends with
   those that write. */
static void keepers_hold_nothing_else_and_end(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    long        pid;
    int         fds[2], i;
    char        c;
    T_CHECK(!pipe(fds));
    tt_call(&r, tools, "bash", "command=s", "sleep 300 & echo $!");
    pid = tt_number(hfsb_buf_str(&r.res.output), 0);
    hfsb_tools_close(tools);
    close(fds[1]); /* were it open elsewhere, there would be no end */
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    for (i = 0; i < 1000 && read(fds[0], &c, 1) < 0; i++) tt_sleep_ms(20);
    T_CHECK(read(fds[0], &c, 1) == 0);
    close(fds[0]);
    T_CHECK(tt_alive(pid));
    tt_end_process(pid);
    tt_drop(&r);
}

/* Hundreds of them cost few descriptors here, and all stay alive. */
static void many_survivors_cost_few_descriptors(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      before = tt_count_fds(), i, n = 45;
    long        pid[45];
    for (i = 0; i < n; i++) {
        tt_call(&r, tools, "bash", "command=s", "sleep 300 & echo $!");
        pid[i] = tt_number(hfsb_buf_str(&r.res.output), 0);
        T_CHECK(pid[i] > 1);
    }
    T_CHECK(tt_count_fds() - before <= 70);
    hfsb_tools_close(tools);
    for (i = 0; i < n; i++) {
        T_CHECK(tt_alive(pid[i]));
        if (pid[i] > 1) kill((pid_t)pid[i], SIGKILL);
    }
    for (i = 0; i < n; i++) T_CHECK(tt_gone(pid[i]));
    tt_drop(&r);
}

/* Without a keeper they cost what they must: while the tools live, nobody who
   writes is ended by it. */
static void without_a_keeper_all_are_drained(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_call      *call[36];
    long            pid[36];
    int             i;
    opts.no_keeper = true;
    tools = tt_open(&opts);
    unlink("go"), unlink("wrote");
    tt_call(&r, tools, "bash", "command=s",
            "(while [ ! -e go ]; do sleep 0.05; done; head -c 200000 "
            "/dev/zero && echo out && echo err >&2 && echo yes > wrote) &");
    T_CHECK(r.res.success);
    for (i = 0; i < 36; i++)
        call[i] =
            tt_start(tools, "bash", NULL, "command=s", "sleep 300 & echo $!");
    for (i = 0; i < 36; i++) {
        tt_finish(&r, tools, call[i]);
        pid[i] = tt_number(hfsb_buf_str(&r.res.output), 0);
        T_CHECK(pid[i] > 1);
    }
    tt_put("go", HFSB_LIT(""));
    for (i = 0; i < 400 && tt_lines_in("wrote") < 1; i++)
        hfsb_tools_poll(tools, 50);
    TT_FILE("wrote", "yes\n");
    for (i = 0; i < 36; i++)
        if (pid[i] > 1) kill((pid_t)pid[i], SIGKILL);
    for (i = 0; i < 36; i++) T_CHECK(tt_gone(pid[i]));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- trees ---- */

/* The mark by which processes are found is not the caller's to change. */
static void a_mark_of_the_callers_changes_nothing(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_buf        command = HFSB_INIT;
    if (!TT_PROC) return;
    opts.grace_ms = 300;
    tools = tt_open(&opts);
    /* the middle one is gone: only the mark tells whose the last is */
    tt_with_nap("sh -c 'setsid sleep @ &'; sleep @", &command);
    tt_call(&r, tools, "bash", "command=v env=j timeout=j",
            hfsb_buf_str(&command), "{\"HFSB_JOB\":\"mine\"}", "0.5");
    TT_FAIL(&r, "");
    T_CHECK(tt_running(tt_nap()) == 0);
    hfsb_buf_free(&command);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void processes_that_left_the_session_die_on_timeout(void) {
    static const char *const commands[] = {
        "setsid sleep @ & sleep @", "setsid sh -c 'sleep @; true' & sleep @",
        "setsid setsid sh -c '(sleep @ &) ; sleep @' & sleep @",
        "(setsid sh -c 'trap \"\" TERM; sleep @; sleep @' &); sleep @",
        "setsid sh -c 'setsid sleep @ & exec setsid sleep @' & sleep @"};
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_buf        command = HFSB_INIT;
    size_t          i;
    if (!TT_PROC) {
        printf("without /proc: processes that left the session\n");
        t_skipped++;
        return;
    }
    opts.grace_ms = 300;
    tools = tt_open(&opts);
    for (i = 0; i < TT_COUNT(commands); i++) {
        tt_with_nap(commands[i], &command);
        tt_call(&r, tools, "bash", "command=v timeout=j",
                hfsb_buf_str(&command), "0.5");
        T_STR(r.res.error, "Timeout after 0.5s");
        T_CHECK(tt_running(tt_nap()) == 0);
    }
    hfsb_buf_free(&command);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(children_live_on_and_are_named);
    TT_RUN(a_child_that_prints_lives_on_after_close);
    TT_RUN(without_a_keeper_the_pipes_are_closed);
    TT_RUN(keepers_hold_nothing_else_and_end);
    TT_RUN(many_survivors_cost_few_descriptors);
    TT_RUN(without_a_keeper_all_are_drained);
    TT_RUN(a_mark_of_the_callers_changes_nothing);
    TT_RUN(processes_that_left_the_session_die_on_timeout);
    return TT_END();
}
