/* test_tools_sweep.c - closing tools ends all that they started: running
   commands and survivors of finished ones, and nothing else. */
#include "../support/t_tools.h"
#ifdef HFSBI_SPLIT
#include "../../src/tools/tools_private.h"
#endif

/* The n-th number after the state in /proc/PID/stat; 0: no such process. */
static long long stat_number(long pid, int n) {
    char      path[64];
    hfsb_buf  text = HFSB_INIT;
    char     *at;
    long long value = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if (t_read_file(path, &text) && text.len &&
        (at = strrchr(text.ptr, ')')) != NULL && at[1] && at[2])
        for (at += 3; n > 0; n--) value = strtoll(at, &at, 10);
    hfsb_buf_free(&text);
    return value;
}

/* True when the parent of the process is younger than this program: a shell
   that has yet to end after it has written the number. */
static bool has_young_parent(long pid) {
    enum { PARENT = 1, BEGAN = 19 };
    long parent = (long)stat_number(pid, PARENT);
    return parent > 1 && tt_alive(parent) &&
           stat_number(parent, BEGAN) > stat_number((long)getpid(), BEGAN);
}

/* The number that a leaver writes, once only the process itself is left. */
static long left_pid(void) {
    long pid = tt_pid_in("pid");
    int  i;
    for (i = 0; i < 2000 && has_young_parent(pid); i++) tt_sleep_ms(10);
    return pid;
}

static long started(hfsb_tools *tools, const char *command) {
    tt_reply r = HFSB_INIT;
    hfsb_buf text = HFSB_INIT;
    long     pid;
    unlink("pid");
    tt_with_nap(command, &text);
    tt_call(&r, tools, "bash", "command=v", hfsb_buf_str(&text));
    T_CHECK(r.res.success);
    pid = left_pid();
    T_CHECK(pid > 1 && tt_alive(pid));
    hfsb_buf_free(&text);
    tt_drop(&r);
    return pid;
}

/* All sleeps of this program are gone, or go within 20 s. */
static bool no_nap_left(void) {
    int i;
    for (i = 0; i < 2000 && tt_running(tt_nap()); i++) tt_sleep_ms(10);
    return i < 2000;
}

/* Sweeps hard until nothing is there; false when there always is. */
static bool sweeps_clean(hfsb_tools *tools) {
    int i;
    for (i = 0; i < 2000; i++) {
        if (hfsbi_tools_sweep(tools, true) == 0) return true;
        hfsb_tools_poll(tools, 10);
    }
    return false;
}

/* ---- what a finished command left ---- */

/* Each leaves one process, which writes its number. */
#define UNTIL_PID "until [ -s pid ]; do sleep 0.01; done"
static const char *const leavers[] = {
    "sleep @ & echo $! > pid",
    "setsid nohup sleep @ >/dev/null 2>&1 & echo $! > pid",
    "nohup sh -c 'trap \"\" HUP; echo $$ > pid; exec sleep @' "
    ">/dev/null 2>&1 &",
    "sh -c '(sleep @ & echo $! > pid) &'; " UNTIL_PID,
    "(setsid sh -c 'sleep @ & echo $! > pid' &) ; " UNTIL_PID,
    "cd / && sleep @ </dev/null >/dev/null 2>&1 & echo $! > pid",
    /* not marked, but in the session that the command began */
    "env -i sleep @ & echo $! > pid",
    "sh -c '(env -i sleep @ & echo $! > pid) &'; " UNTIL_PID};

static void what_finished_commands_left_is_ended(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    long            pids[TT_COUNT(leavers)];
    size_t          i;
    opts.shell = "/bin/sh"; /* bash keeps a process more for some of them */
    tools = tt_open(&opts);
    for (i = 0; i < TT_COUNT(leavers); i++) {
        pids[i] = started(tools, leavers[i]);
        T_CHECK(hfsb_tools_busy(tools) == 0);
    }
    T_CHECK(hfsbi_tools_sweep(tools, false) == TT_COUNT(leavers));
    for (i = 0; i < TT_COUNT(leavers); i++) T_CHECK(tt_gone(pids[i]));
    T_CHECK(hfsbi_tools_sweep(tools, false) == 0);
    T_CHECK(hfsbi_tools_sweep(tools, true) == 0);
    hfsb_tools_close(tools);
    T_CHECK(no_nap_left());
}

static void kill_ends_what_a_finished_job_left(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_buf        text = HFSB_INIT;
    char            want[80];
    long            other, pid;
    size_t          i;
    opts.shell = "/bin/sh";
    tools = tt_open(&opts);
    other = started(tools, leavers[0]);
    for (i = 0; i < TT_COUNT(leavers); i++) {
        char id[16];
        snprintf(id, sizeof id, "leaver %zu", i);
        unlink("pid");
        tt_with_nap(leavers[i], &text);
        tt_call(&r, tools, "bash", "command=v id=s", hfsb_buf_str(&text), id);
        pid = left_pid();
        T_CHECK(pid > 1 && tt_alive(pid));
        tt_call(&r, tools, "kill", "id=s", id);
        snprintf(want, sizeof want, "Killed 1 process(es): [%ld]", pid);
        TT_OK(&r, want);
        T_CHECK(tt_gone(pid));
        tt_call(&r, tools, "kill", "id=s", id);
        TT_OK(&r, "Killed 0 process(es): []");
    }
    T_CHECK(tt_alive(other)); /* left by another job */
    tt_call(&r, tools, "kill", "");
    TT_OK(&r, "Killed 0 process(es): []");
    T_CHECK(tt_alive(other));
    tt_end_process(other);
    T_CHECK(no_nap_left());
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void what_ignores_term_is_killed(void) {
    hfsb_tools *tools = tt_open(NULL);
    long        pid;
    pid = started(tools, "(trap '' TERM; echo x > ready; sleep @) & echo $! "
                         "> pid; until [ -e ready ]; do sleep 0.01; done");
    T_CHECK(hfsbi_tools_sweep(tools, false) >= 1);
    tt_sleep_ms(50);
    T_CHECK(tt_alive(pid));
    T_CHECK(sweeps_clean(tools));
    T_CHECK(!tt_alive(pid) && no_nap_left());
    hfsb_tools_close(tools);
    unlink("ready");
}

/* A command whose job is forgotten is known by its marker. */
static void forgotten_commands_are_ended(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    long            own, chosen, cleared;
    int             i;
    opts.max_finished = 2;
    tools = tt_open(&opts);
    own = started(tools, leavers[1]);
    cleared = started(tools, leavers[6]);
    unlink("pid");
    tt_call(&r, tools, "bash", "command=s id=s",
            "setsid sleep 600 & echo $! > pid", "a b.c-7");
    chosen = tt_pid_in("pid");
    for (i = 0; i < 5; i++) tt_call(&r, tools, "bash", "command=s", "true");
    T_CHECK(tt_alive(own) && tt_alive(chosen) && tt_alive(cleared));
    T_CHECK(hfsbi_tools_sweep(tools, true) == 3);
    T_CHECK(tt_gone(own) && tt_gone(chosen) && tt_gone(cleared));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Born after its command ended, without a mark and without a parent, but in
   the same session as one that was there all the time. */
static void late_children_in_the_session_are_ended(void) {
    hfsb_tools *tools = tt_open(NULL);
    long        first, late;
    unlink("late");
    unlink("go");
    first = started(tools, "env -i sleep @ & env -i sh -c 'until [ -e go ]; do "
                           "sleep 0.01; done; (sleep @ & echo $! > late) &' & "
                           "echo $! > pid");
    tt_put("go", HFSB_LIT(""));
    late = tt_pid_in("late");
    T_CHECK(tt_gone(first) && tt_alive(late));
    T_CHECK(hfsbi_tools_sweep(tools, true) == 2);
    T_CHECK(tt_gone(late) && no_nap_left());
    hfsb_tools_close(tools);
}

/* ---- commands that run ---- */

static void running_commands_are_ended_with_their_trees(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    hfsb_call      *calls[3];
    tt_reply        r = HFSB_INIT;
    hfsb_buf        text = HFSB_INIT;
    size_t          i, found;
    opts.max_running = 2; /* the third waits, and must not start */
    opts.grace_ms = 300;
    tools = tt_open(&opts);
    unlink("pid");
    unlink("third");
    tt_with_nap("setsid sleep @ & env -i sleep @ & echo $! > pid; sleep @",
                &text);
    calls[0] = tt_start(tools, "bash", NULL, "command=v", hfsb_buf_str(&text));
    tt_with_nap("trap '' TERM; echo x > deaf; while :; do sleep 0.1; done",
                &text);
    calls[1] = tt_start(tools, "bash", NULL, "command=v", hfsb_buf_str(&text));
    calls[2] = tt_start(tools, "bash", NULL, "command=s", "echo x > third");
    T_CHECK(tt_pid_in("pid") > 1);
    for (i = 0; i < 2000 && access("deaf", F_OK); i++) tt_sleep_ms(10);
    for (i = 0; i < 2000 && tt_running(tt_nap()) < 3; i++) tt_sleep_ms(10);
    found = hfsbi_tools_sweep(tools, false);
    T_CHECK(found >= 4); /* 3 sleeps, the deaf shell; its own sleep changes */
    for (i = 0; i < 3; i++) {
        tt_finish(&r, tools, calls[i]);
        T_CHECK(!r.res.success);
    }
    T_CHECK(hfsbi_tools_sweep(tools, true) == 0);
    T_CHECK(no_nap_left() && access("third", F_OK) != 0);
    unlink("deaf");
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* At once, and without anyone who drives the tools. */
static void hard_needs_no_one_to_drive(void) {
    hfsb_tools *tools = tt_open(NULL);
    hfsb_call  *call;
    tt_reply    r = HFSB_INIT;
    long        pid;
    int         i;
    unlink("pid");
    call = tt_start(tools, "bash", NULL, "command=s",
                    "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > "
                    "pid; while :; do sleep 0.1; done' & wait; wait");
    pid = tt_pid_in("pid");
    for (i = 0; i < 2000 && hfsbi_tools_sweep(tools, true); i++)
        tt_sleep_ms(10);
    T_CHECK(i < 2000 && !tt_alive(pid));
    tt_finish(&r, tools, call);
    T_CHECK(!r.res.success);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* No mark, a session of its own and, once TERM has ended its parent, no
   parent: known from the search before that. */
static void orphans_that_term_made_are_ended(void) {
    hfsb_tools *tools = tt_open(NULL);
    hfsb_call  *call;
    tt_reply    r = HFSB_INIT;
    long        pid;
    unlink("pid");
    call =
        tt_start(tools, "bash", NULL, "command=s",
                 "env -i setsid sh -c 'trap \"\" TERM; echo $$ > pid; while "
                 ":; do sleep 0.1; done' & wait");
    pid = tt_pid_in("pid");
    T_CHECK(hfsbi_tools_sweep(tools, false) >= 2);
    tt_sleep_ms(100);
    T_CHECK(tt_alive(pid) && hfsbi_tools_sweep(tools, true) >= 1);
    T_CHECK(tt_gone(pid));
    tt_finish(&r, tools, call);
    T_CHECK(!r.res.success && hfsbi_tools_sweep(tools, true) == 0);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- what is not ours ---- */

static void others_are_left_alone(void) {
    hfsb_tools *ours = tt_open(NULL), *theirs = tt_open(NULL);
    hfsb_call  *call;
    tt_reply    r = HFSB_INIT;
    char        id[64];
    long        pids[3], child, own;
    size_t      i;
    own = started(ours, leavers[1]);
    pids[0] = started(theirs, leavers[0]);
    pids[1] = started(theirs, leavers[6]);
    /* an id that looks like one of ours changes nothing */
    snprintf(id, sizeof id, "%s-1", ours->prefix);
    unlink("pid");
    tt_call(&r, theirs, "bash", "command=s id=s",
            "setsid sleep 600 & echo $! > pid", id);
    pids[2] = tt_pid_in("pid");
    call = tt_start(theirs, "bash", NULL, "command=s", "sleep 0.5; echo x");
    child = (long)fork(); /* the host's own */
    if (child == 0) {
        (void)execlp("sleep", "sleep", "600", (char *)NULL);
        _exit(127);
    }
    T_CHECK(hfsbi_tools_sweep(ours, false) == 1);
    T_CHECK(tt_gone(own) && sweeps_clean(ours));
    for (i = 0; i < 3; i++) T_CHECK(tt_alive(pids[i]));
    T_CHECK(tt_alive(child));
    tt_finish(&r, theirs, call);
    TT_OK(&r, "x\n");
    T_CHECK(hfsbi_tools_sweep(theirs, true) == 3);
    for (i = 0; i < 3; i++) T_CHECK(tt_gone(pids[i]));
    T_CHECK(tt_alive(child));
    T_CHECK(kill((pid_t)child, SIGKILL) == 0);
    T_CHECK(waitpid((pid_t)child, NULL, 0) == child);
    tt_drop(&r);
    hfsb_tools_close(ours);
    hfsb_tools_close(theirs);
}

/* Someone else has the number of a session that is over: no one in it was
   born when it was ours. */
static void a_number_that_is_used_again_is_not_ours(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    long        other;
    tt_call(&r, tools, "bash", "command=s", "true");
    tt_sleep_ms(50); /* a few ticks */
    other = (long)fork();
    if (other == 0) {
        (void)setsid();
        (void)execlp("sleep", "sleep", "600", (char *)NULL);
        _exit(127);
    }
    tt_sleep_ms(100);
    /* as if the command had had this number and left something */
    tools->left.spans[5].session = other;
    tools->left.spans[5].since = tools->left.since;
    tools->left.spans[5].until = tools->left.since + 1;
    T_CHECK(hfsbi_tools_sweep(tools, true) == 0);
    T_CHECK(tt_alive(other));
    T_CHECK(kill((pid_t)other, SIGKILL) == 0);
    T_CHECK(waitpid((pid_t)other, NULL, 0) == other);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void without_commands_there_is_nothing(void) {
    hfsb_tools *tools = tt_open(NULL);
    T_CHECK(hfsbi_tools_sweep(tools, false) == 0);
    T_CHECK(hfsbi_tools_sweep(tools, true) == 0);
    hfsb_tools_close(tools);
}

/* ---- when things are short ---- */

static void it_needs_no_memory_and_few_descriptors(void) {
    hfsb_tools   *tools = tt_open(NULL);
    long          pid = started(tools, leavers[1]);
    struct rlimit was, none;
    size_t        i;
    tt_memory.heap.fail_at = tt_memory.heap.calls + 1;
    tt_memory.heap.forever = true;
    for (i = 0; i < 3; i++) T_CHECK(hfsbi_tools_sweep(tools, false) <= 1);
    tt_memory.heap.fail_at = 0;
    tt_memory.heap.forever = false;
    T_CHECK(tt_gone(pid));
    T_CHECK(getrlimit(RLIMIT_NOFILE, &was) == 0);
    none = was;
    none.rlim_cur = 0;
    T_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    T_CHECK(hfsbi_tools_sweep(tools, false) == 0);
    T_CHECK(setrlimit(RLIMIT_NOFILE, &was) == 0);
    hfsb_tools_close(tools);
}

/* More commands with something left than are remembered. */
static void many_sessions_are_remembered(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    int         i;
    for (i = 0; i < HFSBI_JOB_SPANS + 3; i++)
        tt_call(&r, tools, "bash", "command=s",
                "exec >/dev/null 2>&1; sleep 0.01 & :");
    (void)started(tools, leavers[6]);
    T_CHECK(sweeps_clean(tools) && no_nap_left());
    tt_drop(&r);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(without_commands_there_is_nothing);
    if (TT_PROC) {
        TT_RUN(what_finished_commands_left_is_ended);
        TT_RUN(kill_ends_what_a_finished_job_left);
        TT_RUN(what_ignores_term_is_killed);
        TT_RUN(forgotten_commands_are_ended);
        TT_RUN(late_children_in_the_session_are_ended);
        TT_RUN(running_commands_are_ended_with_their_trees);
        TT_RUN(hard_needs_no_one_to_drive);
        TT_RUN(orphans_that_term_made_are_ended);
        TT_RUN(others_are_left_alone);
        TT_RUN(a_number_that_is_used_again_is_not_ours);
        TT_RUN(it_needs_no_memory_and_few_descriptors);
        TT_RUN(many_sessions_are_remembered);
    } else {
        printf("without /proc: what left the group of a command\n");
        t_skipped++;
    }
    return TT_END();
}
