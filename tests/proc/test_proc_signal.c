/* test_proc_signal.c - signals to commands, and output that is held. */
#include "../support/t_loop.h"
#include "../support/t_proc.h"

/* The portable way sees only the group. */
#ifdef HFSBI_LINUX
#define OWN_SESSION "setsid "
#else
#define OWN_SESSION ""
#endif

static void send_to(hfsb_proc *proc, int number, hfsb_proc_target target) {
    hfsb_err err;
    T_CHECK(hfsb_proc_signal(proc, number, target, &err) == HFSB_OK);
}

static void check_gone(hfsb_proc *proc) {
    hfsb_err err;
    T_CHECK(hfsb_proc_signal(proc, SIGTERM, HFSB_PROC_TREE, &err) ==
            HFSB_REFUSED);
    T_CHECK(strcmp(err.msg, "The command has ended.") == 0);
    T_CHECK(hfsb_proc_signal(proc, SIGTERM, HFSB_PROC_GROUP, &err) ==
            HFSB_REFUSED);
}

static void finish(hfsb_proc *proc, t_output *out) {
    hfsb_proc_close(proc);
    t_output_free(out);
#ifdef HFSBI_LINUX
    T_CHECK(t_marked(t_job(), 0) == 0);
#endif
    T_CHECK(t_no_child());
}

/* ---- signals ---- */

static void each_signal_ends_a_whole_tree(void) {
    static const int numbers[] = {SIGHUP,  SIGINT,  SIGQUIT,
                                  SIGKILL, SIGTERM, SIGUSR1};
    size_t           i;
    for (i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        hfsb_proc_opts   o = t_quick_opts();
        t_output         out = HFSB_INIT;
        hfsb_proc       *proc;
        hfsb_proc_result r;
        o.quiet_ms = o.quiet_max_ms = 60000; /* until all have ended */
        /* a shell lets its background commands ignore INT and QUIT */
        proc = t_start(&o,
                       "(" OWN_SESSION "sleep 61) | sleep 61 | (echo go; "
                       "exec " OWN_SESSION "sleep 61)",
                       &out);
        T_CHECK(t_until(proc, &out, "go"));
        t_sleep(50);
        send_to(proc, numbers[i], HFSB_PROC_TREE);
        r = t_finish(proc, 3000);
        T_CHECK(r.end == HFSB_PROC_SIGNALED && r.signal == numbers[i]);
        T_CHECK(!r.killed && !r.timed_out && !r.incomplete);
        check_gone(proc);
        finish(proc, &out);
    }
}

static void a_signal_does_not_escalate(void) {
    hfsb_proc_opts o = t_quick_opts();
    t_output       out = HFSB_INIT;
    hfsb_proc     *proc;
    o.grace_ms = 1;
    proc = t_start(&o,
                   "trap 'echo caught' TERM; trap '' HUP; echo go; "
                   "while :; do sleep 0.05; done",
                   &out);
    T_CHECK(t_until(proc, &out, "go"));
    send_to(proc, SIGHUP, HFSB_PROC_TREE);
    send_to(proc, SIGTERM, HFSB_PROC_GROUP);
    T_CHECK(t_until(proc, &out, "caught"));
    t_sleep(100);
    T_CHECK(!hfsb_proc_step(proc) && !hfsb_proc_status(proc).killed);
    send_to(proc, SIGKILL, HFSB_PROC_GROUP);
    T_CHECK(t_finish(proc, 3000).signal == SIGKILL);
    finish(proc, &out);
}

static void stopped_commands_continue(void) {
    hfsb_proc_opts o = t_quick_opts();
    t_output       out = HFSB_INIT;
    hfsb_proc     *proc =
        t_start(&o,
                "echo go; i=0; while :; do echo $i; i=$((i + 1)); "
                "sleep 0.02; done",
                &out);
    size_t len;
    T_CHECK(t_until(proc, &out, "go"));
    send_to(proc, SIGSTOP, HFSB_PROC_TREE);
    t_sleep(50);
    (void)hfsb_proc_step(proc);
    len = out.out.len;
    t_sleep(200);
    T_CHECK(!hfsb_proc_step(proc) && out.out.len == len);
    send_to(proc, SIGCONT, HFSB_PROC_TREE);
    hfsb_buf_truncate(&out.out, 0);
    T_CHECK(t_until(proc, &out, "\n"));
    hfsb_proc_kill(proc);
    (void)t_finish(proc, 3000);
    finish(proc, &out);
}

#ifdef HFSBI_LINUX
static bool reports_stops;

/* With that as on macOS: a child that was stopped is reported, too. */
int waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    if (reports_stops) options |= WSTOPPED;
    return (int)syscall(SYS_waitid, type, id, info, options, NULL);
}

static bool is_stopped(pid_t pid) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    return waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid;
}
#endif

static void a_stopped_command_has_not_ended(void) {
#ifdef HFSBI_LINUX
    hfsb_proc_opts o = t_quick_opts();
    t_output       out = HFSB_INIT;
    hfsb_proc     *proc = t_start(&o, "kill -STOP $$; exit 7", &out);
    pid_t          pid = (pid_t)hfsb_proc_status(proc).pid;
    int            i;
    for (i = 0; i < 2000 && !is_stopped(pid); i++) t_sleep(5);
    reports_stops = true;
    for (i = 0; i < 20; i++) {
        T_CHECK(!hfsb_proc_step(proc));
        t_sleep(5);
    }
    T_CHECK(hfsb_proc_status(proc).end == HFSB_PROC_RUNNING);
    T_CHECK(kill(pid, SIGCONT) == 0);
    T_CHECK(t_finish(proc, 1000).exit_code == 7);
    reports_stops = false;
    finish(proc, &out);
#endif
}

/* What has left the group is not signalled with it. */
static void the_group_alone_can_be_signalled(void) {
#ifdef HFSBI_LINUX
    hfsb_proc_opts   o = t_quick_opts();
    t_output         out = HFSB_INIT;
    hfsb_proc       *proc;
    hfsb_proc_result r;
    o.quiet_ms = o.quiet_max_ms = 60000; /* until it has closed its pipes */
    proc = t_start(&o,
                   "setsid sh -c 'echo go; exec sleep 61 > /dev/null 2>&1' & "
                   "sleep 62",
                   &out);
    T_CHECK(t_until(proc, &out, "go"));
    t_sleep(100);
    send_to(proc, SIGTERM, HFSB_PROC_GROUP);
    r = t_finish(proc, 3000);
    T_CHECK(r.signal == SIGTERM && !r.incomplete);
    T_CHECK(t_marked(t_job(), 0) == 1);
    check_gone(proc);
    hfsb_proc_close(proc);
    t_kill_marked(t_job());
    t_output_free(&out);
#endif
}

/* The command has exited, but not what it left behind. */
static void survivors_get_signals_until_the_end(void) {
#ifdef HFSBI_LINUX
    hfsb_proc_opts o = t_quick_opts();
    t_output       out = HFSB_INIT;
    hfsb_proc     *proc;
    long long      end = hfsb_clock_ms() + t_patience(3000);
    o.quiet_ms = o.quiet_max_ms = 60000;
    proc = t_start(&o, "setsid sleep 61 & echo go", &out);
    while (hfsb_proc_status(proc).end == HFSB_PROC_RUNNING &&
           hfsb_clock_ms() < end) {
        (void)hfsb_proc_step(proc);
        t_sleep(2);
    }
    T_CHECK(t_marked(t_job(), 0) == 1);
    send_to(proc, SIGTERM, HFSB_PROC_TREE);
    T_CHECK(t_finish(proc, 3000).exit_code == 0);
    check_gone(proc);
    finish(proc, &out);
#endif
}

static void invalid_numbers_are_refused(void) {
    hfsb_proc_opts o = t_quick_opts();
    hfsb_proc     *proc = t_start(&o, "sleep 61", NULL);
    hfsb_err       err;
    T_CHECK(hfsb_proc_signal(proc, 0, HFSB_PROC_TREE, &err) == HFSB_ARG);
    T_CHECK(hfsb_proc_signal(proc, -1, HFSB_PROC_GROUP, &err) == HFSB_ARG);
    T_CHECK(hfsb_proc_signal(proc, 65, HFSB_PROC_TREE, &err) == HFSB_ARG);
    T_CHECK(strcmp(err.msg, "65 is not the number of a signal.") == 0);
    hfsb_proc_close(proc);
}

/* Each job of an interactive shell is a group; that in the foreground gets
   the signal, also one that no key sends. */
static void the_foreground_group_of_a_terminal(int number, const char *says) {
    static const char *const argv[] = {"bash", "--norc", "-i", NULL};
    static const char *const env[] = {"PS1=ready> ", "TERM=dumb",
                                      "PATH=/bin:/usr/bin", "HISTFILE=", NULL};
    hfsb_proc_opts           o = t_quick_opts();
    t_output                 out = HFSB_INIT;
    hfsb_proc               *proc = NULL;
    if (access("/bin/bash", X_OK) != 0) {
        t_skip("no bash");
        return;
    }
    o.argv = argv;
    o.env = env;
    o.on_output = t_collect;
    o.user = &out;
    o.cols = o.rows = 50;
    o.keep_input = true;
    T_CHECK(hfsb_proc_open(&o, &proc, NULL) == HFSB_OK);
    if (!proc) return;
    T_CHECK(t_until(proc, &out, "ready> "));
    T_CHECK(
        hfsb_proc_input(proc,
                        HFSB_LIT("sleep 63 & sleep 64 | (echo up >&2; exec "
                                 "sleep 65); echo status $?\r"),
                        false, NULL) == HFSB_OK);
    T_CHECK(t_until(proc, &out, "\nup"));
    t_sleep(100);
    send_to(proc, number, HFSB_PROC_GROUP);
    T_CHECK(t_until(proc, &out, says));
    hfsb_buf_truncate(&out.out, 0);
    T_CHECK(hfsb_proc_input(proc, HFSB_LIT("jobs\r"), false, NULL) == HFSB_OK);
    T_CHECK(t_until(proc, &out, "Running")); /* the other job */
    hfsb_proc_close(proc);
    t_output_free(&out);
    T_CHECK(t_no_child());
}

static void terminals_signal_their_foreground_group(void) {
    the_foreground_group_of_a_terminal(SIGTERM, "status 143");
    the_foreground_group_of_a_terminal(SIGKILL, "status 137");
    the_foreground_group_of_a_terminal(SIGQUIT, "status 131");
}

/* ---- in a loop, where a thread looks for the processes ---- */

typedef struct driven {
    t_output out;
    bool     done;
} driven;

static void on_change(void *user, hfsb_proc *proc, bool done) {
    driven *d = (driven *)user;
    (void)proc;
    d->done = done;
}

static bool turn_until(hfsbi_loop *loop, const bool *done) {
    long long end = hfsb_clock_ms() + t_patience(5000);
    while (!*done && hfsb_clock_ms() < end) loop_turn(loop, 200);
    return *done;
}

static void a_loop_sends_signals(size_t threads) {
    hfsbi_loop    *loop = loop_open(threads);
    hfsb_proc_opts o = t_quick_opts();
    driven         d = HFSB_INIT;
    hfsb_proc     *proc;
    hfsb_err       err;
    o.quiet_ms = o.quiet_max_ms = 60000; /* until all have ended */
    proc =
        t_start(&o, "(" OWN_SESSION "sleep 61) | (echo go; sleep 61)", &d.out);
    hfsbi_proc_attach(proc, loop, on_change, &d);
    while (!d.out.out.len) loop_turn(loop, 1000);
    t_sleep(100);
    hfsbi_loop_lock(loop);
    T_CHECK(hfsb_proc_signal(proc, SIGUSR2, HFSB_PROC_TREE, &err) == HFSB_OK);
    T_CHECK(hfsb_proc_signal(proc, SIGCONT, HFSB_PROC_TREE, &err) == HFSB_OK);
    hfsbi_loop_unlock(loop);
    T_CHECK(turn_until(loop, &d.done));
    T_CHECK(hfsb_proc_status(proc).signal == SIGUSR2);
    check_gone(proc);
    hfsb_proc_close(proc);
    hfsbi_loop_close(loop);
    t_output_free(&d.out);
#ifdef HFSBI_LINUX
    T_CHECK(t_marked(t_job(), 0) == 0);
#endif
}

static void loops_send_signals(void) {
    a_loop_sends_signals(0);
    a_loop_sends_signals(2);
}

/* Detached, or killed, before the thread has found the processes. */
static void signals_may_be_overtaken(void) {
    hfsbi_loop    *loop = loop_open(2);
    hfsb_proc_opts o = t_quick_opts();
    int            i;
    for (i = 0; i < 6; i++) {
        driven     d = HFSB_INIT;
        hfsb_proc *proc =
            t_start(&o, "trap '' USR1; echo go; sleep 61; true", &d.out);
        hfsbi_proc_attach(proc, loop, on_change, &d);
        while (!d.out.out.len) loop_turn(loop, 1000);
        hfsbi_loop_lock(loop);
        T_CHECK(hfsb_proc_signal(proc, SIGUSR1, HFSB_PROC_TREE, NULL) ==
                HFSB_OK);
        if (i % 2) hfsb_proc_kill(proc);
        if (i % 3 == 0) hfsbi_proc_detach(proc);
        hfsbi_loop_unlock(loop);
        if (i % 3 == 0 && i % 2) T_CHECK(t_finish(proc, 3000).killed);
        else if (i % 2) T_CHECK(turn_until(loop, &d.done));
        hfsbi_loop_lock(loop);
        hfsb_proc_close(proc);
        hfsbi_loop_unlock(loop);
        t_output_free(&d.out);
    }
    hfsbi_loop_close(loop);
    T_CHECK(t_no_child());
}

/* ---- output that is held ---- */

static void held_output_makes_the_command_wait(void) {
    enum { SIZE = 10000000 };
    hfsb_proc_opts   o = t_quick_opts();
    t_output         out = HFSB_INIT;
    hfsb_proc       *proc = t_start(&o,
                                    "yes 123456789 | head -c 10000000; "
                                          "echo end >&2",
                                    &out);
    hfsb_proc_result r;
    long long        end = hfsb_clock_ms() + t_patience(20000);
    size_t           holds = 0, i;
    bool             done = false;
    while (!done && hfsb_clock_ms() < end) {
        size_t before;
        done = hfsb_proc_step(proc);
        if (done || holds > 200) {
            if (!done) (void)t_wait(proc);
            continue;
        }
        hfsbi_proc_hold(proc, true);
        hfsbi_proc_hold(proc, true);
        before = out.out.len + out.err.len;
        if (++holds % 20 == 0) t_sleep(20);
        T_CHECK(!hfsb_proc_step(proc));
        T_CHECK(before == out.out.len + out.err.len);
        hfsbi_proc_hold(proc, false);
    }
    r = hfsb_proc_status(proc);
    T_CHECK(done && r.exit_code == 0 && !r.incomplete);
    T_CHECK(out.out.len == SIZE);
    for (i = 0; i < out.out.len; i++)
        if (out.out.ptr[i] != "123456789\n"[i % 10]) break;
    T_CHECK(i == SIZE);
    T_STR(out.err, "end\n");
    finish(proc, &out);
}

/* It exits meanwhile: that is noticed, and nothing is lost, however long it
   is held. */
static void output_of_an_ended_command_is_kept(unsigned cols) {
    hfsb_proc_opts o = t_quick_opts();
    t_output       out = HFSB_INIT;
    hfsb_proc     *proc;
    hfsb_watch     watch[HFSB_PROC_WATCHES];
    long long      end = hfsb_clock_ms() + t_patience(3000);
    o.quiet_ms = 1;
    o.quiet_max_ms = 2;
    o.cols = o.rows = cols;
    proc = t_start(&o, "seq 500; exit 9", &out);
    hfsbi_proc_hold(proc, true);
    while (hfsb_proc_status(proc).end == HFSB_PROC_RUNNING &&
           hfsb_clock_ms() < end) {
        T_CHECK(!hfsb_proc_step(proc));
        T_CHECK(t_wait(proc) || hfsb_proc_status(proc).exit_code);
    }
    T_CHECK(hfsb_proc_status(proc).exit_code == 9 && out.calls == 0);
    t_sleep(50);
    T_CHECK(!hfsb_proc_step(proc) && out.calls == 0);
    T_CHECK(hfsb_proc_watch(proc, watch) == 0);
    T_CHECK(hfsb_proc_deadline(proc) == -1);
    hfsbi_proc_hold(proc, false);
    T_CHECK(!t_finish(proc, 3000).incomplete);
    T_CHECK(out.out.len == (cols ? 1892u + 500 : 1892u));
    finish(proc, &out);
}

static void output_of_ended_commands_is_kept(void) {
    output_of_an_ended_command_is_kept(0);
    output_of_an_ended_command_is_kept(60);
}

static void held_commands_can_be_killed(void) {
    hfsb_proc_opts   o = t_quick_opts();
    t_output         out = HFSB_INIT;
    hfsb_proc       *proc;
    hfsb_proc_result r;
    long long        end = hfsb_clock_ms() + t_patience(3000);
    int              i;
    for (i = 0; i < 2; i++) {
        o.timeout_ms = i ? 350 : 0;
        proc = t_start(&o, "trap '' TERM; echo kept; yes", &out);
        /* the trap must be set before the timeout */
        while (!t_until(proc, &out, "kept") && i && o.timeout_ms < 20000) {
            hfsb_proc_close(proc);
            o.timeout_ms *= 2;
            proc = t_start(&o, "trap '' TERM; echo kept; yes", &out);
        }
        T_CHECK(hfsb_str_starts(hfsb_buf_str(&out.out), HFSB_LIT("kept")));
        hfsbi_proc_hold(proc, true);
        if (!i) hfsb_proc_kill(proc);
        while (hfsb_proc_status(proc).end == HFSB_PROC_RUNNING &&
               hfsb_clock_ms() < end) {
            T_CHECK(!hfsb_proc_step(proc));
            T_CHECK(t_wait(proc) || hfsb_proc_status(proc).exit_code);
        }
        hfsbi_proc_hold(proc, false);
        r = t_finish(proc, 3000);
        T_CHECK(r.killed == !i && r.timed_out == (i == 1));
        T_CHECK(r.end == HFSB_PROC_SIGNALED && !r.incomplete);
        finish(proc, &out);
    }
    proc = t_start(&o, "yes", &out);
    hfsbi_proc_hold(proc, true);
    finish(proc, &out); /* while it is held */
}

/* Survivors that go on printing do not delay the end by being held. */
static void held_time_does_not_count_as_quiet(void) {
    hfsb_proc_opts o = t_quick_opts();
    t_output       out = HFSB_INIT;
    hfsb_proc     *proc;
    long long      end = hfsb_clock_ms() + t_patience(5000), since = 0;
    long long      held = 0, at;
    bool           done = false;
    o.quiet_ms = o.quiet_max_ms = 300;
    proc =
        t_start(&o, "(while :; do echo x; sleep 0.01; done) & echo go", &out);
    while (!done && hfsb_clock_ms() < end) {
        at = hfsb_clock_ms();
        done = hfsb_proc_step(proc);
        if (hfsb_proc_status(proc).end == HFSB_PROC_RUNNING) {
            t_sleep(1);
            continue;
        }
        if (!since) since = at;
        hfsbi_proc_hold(proc, true);
        at = hfsb_clock_ms();
        t_sleep(10);
        held += hfsb_clock_ms() - at;
        hfsbi_proc_hold(proc, false);
        t_sleep(10);
    }
    T_CHECK(done && hfsb_proc_status(proc).incomplete);
    T_CHECK(held > 0 && hfsb_clock_ms() - since >= held + 300);
    hfsb_proc_close(proc);
    t_kill_marked(t_job());
    t_output_free(&out);
}

/* Not even after survivors have printed more than a pipe holds. */
static void held_output_is_not_given_up(void) {
    hfsb_proc_opts o = t_quick_opts();
    t_output       out = HFSB_INIT;
    hfsb_proc     *proc;
    bool           done = false;
    o.quiet_max_ms = 1000;
    o.merge_stderr = true;
    proc = t_start(&o, "yes & echo go", &out);
    while (!done && (hfsb_proc_status(proc).end == HFSB_PROC_RUNNING ||
                     out.out.len < 4u << 20))
        done = hfsb_proc_step(proc);
    if (done) {
        t_skip("too slow");
    } else {
        hfsbi_proc_hold(proc, true);
        t_sleep(1100);
        T_CHECK(!hfsb_proc_step(proc));
        hfsbi_proc_hold(proc, false);
        T_CHECK(t_finish(proc, 3000).incomplete);
    }
    hfsb_proc_close(proc);
    t_kill_marked(t_job());
    t_output_free(&out);
}

typedef struct careful {
    driven     d; /* first */
    hfsb_proc *proc;
    size_t     calls;
} careful;

/* Holds in on_output: no more than one piece comes. */
static void collect_and_hold(void *user, hfsb_proc_stream stream,
                             hfsb_str bytes) {
    careful *c = (careful *)user;
    t_collect(&c->d.out, stream, bytes);
    T_CHECK(c->calls++ == 0);
    hfsbi_proc_hold(c->proc, true);
}

static void a_held_command_costs_no_turn(void) {
    hfsbi_loop    *loop = loop_open(0);
    hfsb_proc_opts o = t_quick_opts();
    careful        c;
    long long      end;
    size_t         turns_made = 0;
    memset(&c, 0, sizeof c);
    o.on_output = collect_and_hold;
    o.user = &c;
    o.command = HFSB_LIT("yes");
    T_CHECK(hfsb_proc_open(&o, &c.proc, NULL) == HFSB_OK);
    hfsbi_proc_attach(c.proc, loop, on_change, &c.d);
    while (!c.calls) loop_turn(loop, 1000);
    end = hfsb_clock_ms() + 300;
    while (hfsb_clock_ms() < end) {
        loop_turn(loop, end - hfsb_clock_ms());
        turns_made++;
    }
    T_CHECK(c.calls == 1);
    T_CHECK(turns_made < 30); /* without pidfd its exit is looked for */
    hfsbi_loop_lock(loop);
    c.calls = 0;
    hfsbi_proc_hold(c.proc, false);
    hfsbi_loop_unlock(loop);
    while (!c.calls) loop_turn(loop, 1000);
    hfsbi_loop_lock(loop);
    hfsb_proc_close(c.proc);
    hfsbi_loop_unlock(loop);
    hfsbi_loop_close(loop);
    t_output_free(&c.d.out);
}

int main(void) {
    T_RUN(each_signal_ends_a_whole_tree);
    T_RUN(a_signal_does_not_escalate);
    T_RUN(stopped_commands_continue);
    T_RUN(a_stopped_command_has_not_ended);
    T_RUN(the_group_alone_can_be_signalled);
    T_RUN(survivors_get_signals_until_the_end);
    T_RUN(invalid_numbers_are_refused);
    T_RUN(terminals_signal_their_foreground_group);
    T_RUN(loops_send_signals);
    T_RUN(signals_may_be_overtaken);
    T_RUN(held_output_makes_the_command_wait);
    T_RUN(output_of_ended_commands_is_kept);
    T_RUN(held_commands_can_be_killed);
    T_RUN(held_time_does_not_count_as_quiet);
    T_RUN(held_output_is_not_given_up);
    T_RUN(a_held_command_costs_no_turn);
    return T_END();
}
