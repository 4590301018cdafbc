/* test_mcp_end.c - the end of MCP over descriptors: quick, and no process is
   left running. */
#include "../support/t_mcp.h"

#ifdef __linux__
#include <sys/ptrace.h>
#include <sys/wait.h>
#endif

/* A second, and what a busy machine adds: the commands take a minute. How long
   it takes is shown by checks/mcp_long.sh. */
enum { AT_MOST_MS = 20000 };

static void say_pid(tm_client *c, const char *id, const char *command,
                    const char *more) {
    char arguments[600];
    snprintf(arguments, sizeof arguments, "{\"command\":\"%s\"%s}", command,
             more);
    tm_call(c, id, "bash", arguments);
}

/* The best of several: a busy machine adds to each. */
static void an_idle_server_ends_at_once(void) {
    tm_client c;
    long long took, best = 10000;
    int       tries;
    for (tries = 0; tries < 10 && best >= 100; tries++) {
        tm_start(&c, NULL);
        say_pid(&c, "1", "echo x", "");
        T_CHECK(tm_wait(&c, "1"));
        tm_shut(&c.to);
        took = tm_join(&c);
        if (took < best) best = took;
        tm_end(&c);
    }
    T_CHECK(best < 100);
}

/* Commands; each writes the pid of a process that must not be left. */
static const struct {
    const char *name, *command, *more;
    bool        waits; /* the command does not return by itself */
} kinds[] = {
    {"plain", "echo $$ > pid; exec sleep 63", "", true},
    {"with a child", "sleep 64 & echo $! > pid; wait", "", true},
    {"in the background", "echo $$ > pid; exec sleep 65",
     ",\"background\":true", false},
#if defined(__linux__) && !defined(HFSBI_PORTABLE) /* found in /proc */
    {"left running", "sleep 66 > /dev/null 2>&1 & echo $! > pid", "", false},
    {"in a session of its own",
     "setsid sh -c 'echo $$ > pid; exec sleep 67' > /dev/null 2>&1 & sleep "
     "0.2",
     "", false},
#endif
    {"deaf",
     "sh -c 'trap : TERM HUP INT; echo $$ > pid; while :; do sleep 0.05; "
     "done'",
     "", true},
};

static void no_process_is_left_running(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    tm_client     c;
    size_t        i;
    long long     took;
    long          pid;
    o.grace_ms = 300;
    for (i = 0; i < TT_COUNT(kinds); i++) {
        tm_start(&c, &o);
        say_pid(&c, "1", kinds[i].command, kinds[i].more);
        pid = tm_pid("pid");
        if (!kinds[i].waits) T_CHECK(tm_wait(&c, "1"));
        T_CHECK(tt_alive(pid));
        tm_shut(&c.to);
        took = tm_join(&c);
        if (took >= AT_MOST_MS || tt_alive(pid))
            printf("%s: %lld ms\n", kinds[i].name, took);
        T_CHECK(took < AT_MOST_MS);
        T_CHECK(!tt_alive(pid));
        tm_end(&c);
        unlink("pid");
    }
}

#if defined(__linux__) && !defined(HFSBI_PORTABLE)
/* Waits until the traced process has got SIGKILL; false after a while. */
static bool stops_at_its_exit(long pid) {
    long long until = hfsb_clock_ms() + TM_WAIT_MS;
    int       status = 0;
    while (hfsb_clock_ms() < until) {
        if (waitpid((pid_t)pid, &status, WNOHANG | __WALL) == (pid_t)pid &&
            status >> 8 == (SIGTRAP | (PTRACE_EVENT_EXIT << 8)))
            return true;
        if (WIFSTOPPED(status)) /* TERM, which it ignores */
            (void)ptrace(PTRACE_CONT, (pid_t)pid, NULL, NULL);
        status = 0;
        tt_sleep_ms(5);
    }
    return false;
}

/* On a busy machine a killed process may not run for long, so that it cannot
   end. A tracer that stops it at its exit does the same. */
static void a_killed_process_that_ends_late_is_waited_for(void) {
    hfsb_mcp_opts o = HFSB_INIT;
    tm_client     c;
    long          pid;
    o.grace_ms = 100;
    tm_start(&c, &o);
    say_pid(&c, "1",
            "trap : TERM; echo $$ > pid; while :; do sleep 0.05; done", "");
    pid = tm_pid("pid");
    if (ptrace(PTRACE_SEIZE, (pid_t)pid, NULL, PTRACE_O_TRACEEXIT) != 0) {
        printf("%s: skipped: ptrace is not allowed\n", t_name);
        t_skipped++;
        tm_end(&c);
        unlink("pid");
        return;
    }
    tm_shut(&c.to);
    T_CHECK(stops_at_its_exit(pid));
    tt_sleep_ms(600);
    c.runs = pthread_tryjoin_np(c.thread, NULL) == EBUSY;
    T_CHECK(c.runs);
    T_CHECK(tt_alive(pid));
    T_CHECK(ptrace(PTRACE_DETACH, (pid_t)pid, NULL, NULL) == 0);
    if (c.runs) T_CHECK(tm_join(&c) < AT_MOST_MS);
    T_CHECK(!tt_alive(pid));
    tm_end(&c);
    unlink("pid");
}
#endif

static void a_stop_ends_stdio_too(void) {
    tm_client c;
    long      pid;
    tm_start(&c, NULL);
    say_pid(&c, "1", "echo $$ > pid; exec sleep 68", "");
    pid = tm_pid("pid");
    hfsb_server_stop(c.server);
    T_CHECK(tm_join(&c) < AT_MOST_MS);
    T_CHECK(!tt_alive(pid));
    tm_listen(&c, 20);
    T_CHECK(c.got.len == 0);
    tm_end(&c);
    unlink("pid");
}

static void closing_the_server_leaves_no_process(void) {
    tm_client c;
    hfsb_err  err = HFSB_INIT;
    long      pid;
    int       turns;
    tm_open(&c, NULL);
    tm_pipes(&c);
    T_CHECK(hfsb_mcp_stdio(c.mcp, c.theirs[0], c.theirs[1], &err) == HFSB_OK);
    T_CHECK(hfsb_mcp_stdio(c.mcp, 0, 1, &err) == HFSB_ARG);
    say_pid(&c, "1", "echo $$ > pid; exec sleep 69", "");
    for (turns = 0; turns < 2000 && (pid = tm_pid_in("pid")) == 0; turns++)
        T_CHECK(hfsb_server_poll(c.server, 10));
    hfsb_server_close(c.server);
    c.server = NULL;
    T_CHECK(tm_gone(pid, 15000));
    tm_end(&c);
    unlink("pid");
}

static void a_closed_output_ends_the_server(void) {
    tm_client c;
    long      pid;
    tm_start(&c, NULL);
    say_pid(&c, "1", "echo $$ > pid; exec sleep 70", "");
    pid = tm_pid("pid");
    tm_shut(&c.from);
    T_CHECK(tm_join(&c) < AT_MOST_MS);
    T_CHECK(!tt_alive(pid));
    tm_end(&c);
    unlink("pid");
}

/* It has 200 ms: one of several tries succeeds on a busy machine. */
static void a_quick_call_is_answered_after_the_end(void) {
    tm_client c;
    bool      made = false;
    int       tries;
    for (tries = 0; tries < 20 && !made; tries++) {
        tm_start(&c, NULL);
        say_pid(&c, "1", "sleep 0.05; echo made it", "");
        say_pid(&c, "2", "sleep 30; echo made it", "");
        tm_shut(&c.to);
        T_CHECK(tm_join(&c) < AT_MOST_MS);
        tm_listen(&c, 20);
        made = tm_count(&c, "made it") == 1;
        T_CHECK(tm_count(&c, "\"id\":2") == 0);
        tm_end(&c);
    }
    T_CHECK(made);
}

/* Answers are left that nobody reads. */
static void the_end_does_not_wait_for_a_reader(void) {
    tm_client c;
    int       i;
    tm_start(&c, NULL);
    for (i = 0; i < 900; i++) /* enough to stop it from reading */
        tm_send(&c,
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    tm_shut(&c.to);
    T_CHECK(tm_join(&c) < AT_MOST_MS);
    tm_end(&c);
}

int main(void) {
    tt_begin();
    TT_RUN(an_idle_server_ends_at_once);
    TT_RUN(no_process_is_left_running);
#if defined(__linux__) && !defined(HFSBI_PORTABLE)
    TT_RUN(a_killed_process_that_ends_late_is_waited_for);
#endif
    TT_RUN(a_stop_ends_stdio_too);
    TT_RUN(closing_the_server_leaves_no_process);
    TT_RUN(a_closed_output_ends_the_server);
    TT_RUN(a_quick_call_is_answered_after_the_end);
    TT_RUN(the_end_does_not_wait_for_a_reader);
    return TT_END();
}
