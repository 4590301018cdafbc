/* test_proc_loop.c - commands that an event loop drives: their pipes, exits
   and deadlines are events of the loop. */
#include "../support/t_loop.h"
#include "../support/t_proc.h"

typedef struct driven {
    hfsb_proc       *proc;
    t_output         output;
    hfsb_proc_result result;
    size_t           changes, ends;
    bool             closes; /* in on_change, at the end */
    bool             kills;  /* in on_change, at the first output */
    char             job[80];
} driven;

static size_t running; /* commands whose end was not reported yet */

static void on_change(void *user, hfsb_proc *proc, bool done) {
    driven *d = (driven *)user;
    T_CHECK(d->proc == proc && d->ends == 0);
    d->changes++;
    if (d->kills && d->output.out.len) {
        d->kills = false;
        hfsb_proc_kill(proc);
    }
    if (!done) return;
    d->ends++;
    running--;
    d->result = hfsb_proc_status(proc);
    if (!d->closes) return;
    hfsb_proc_close(proc);
    d->proc = NULL;
}

static void start_on(hfsbi_loop *loop, driven *d, hfsb_proc_opts *o,
                     const char *command) {
    static unsigned number;
    memset(d, 0, sizeof *d);
    snprintf(d->job, sizeof d->job, "%s-%u", t_job(), number++);
    o->job = hfsb_cstr(d->job);
    d->proc = t_start(o, command, &d->output);
    if (!d->proc) abort();
    hfsbi_proc_attach(d->proc, loop, on_change, d);
    running++;
}

/* Turns the loop until all commands are done; returns the number of turns. */
static size_t drive(hfsbi_loop *loop, long long ms) {
    long long end = hfsb_clock_ms() + t_patience(ms);
    size_t    n = 0;
    while (running && hfsb_clock_ms() < end) {
        loop_turn(loop, end - hfsb_clock_ms());
        n++;
    }
    T_CHECK(running == 0);
    return n;
}

/* With `dead`, nothing of a command may be left. */
static void finish(driven *d, bool dead) {
    hfsb_proc_close(d->proc);
#ifdef HFSBI_LINUX
    if (dead) T_CHECK(t_marked(d->job, 0) == 0);
#endif
    if (!dead) t_kill_marked(d->job);
    t_output_free(&d->output);
}

/* A turn of the loop needs an event or a deadline: a hundred commands have
   four descriptors each, and a few pieces of output. */
static void a_loop_drives_a_hundred_commands(void) {
    enum { N = 100 };
    hfsbi_loop    *loop = loop_open(0);
    driven        *d = (driven *)malloc(sizeof *d * N);
    hfsb_proc_opts o = t_quick_opts();
    size_t         i, turns_made, changes = 0;
    if (!d) abort();
    for (i = 0; i < N; i++) {
        char text[160];
        snprintf(text, sizeof text,
                 "echo %zu; sleep 0.%zu; echo bad >&2; head -c 100000 "
                 "/dev/zero; exit %zu",
                 i, i % 5, i);
        start_on(loop, &d[i], &o, text);
        d[i].closes = i % 2 == 0;
    }
    turns_made = drive(loop, 20000);
    for (i = 0; i < N; i++) {
        char   text[16];
        size_t n = (size_t)snprintf(text, sizeof text, "%zu\n", i);
        T_CHECK(d[i].ends == 1 && d[i].result.end == HFSB_PROC_EXITED);
        T_CHECK(d[i].result.exit_code == (int)i && !d[i].result.incomplete);
        T_CHECK(d[i].output.out.len == n + 100000);
        T_CHECK(memcmp(d[i].output.out.ptr, text, n) == 0);
        T_STR(d[i].output.err, "bad\n");
        T_CHECK((d[i].proc == NULL) == d[i].closes);
        changes += d[i].changes;
        hfsb_proc_close(d[i].proc);
        t_output_free(&d[i].output);
    }
    /* each turn had a reason; without pidfd the exits are looked for */
    if (access("/proc/self/stat", R_OK) == 0)
        T_CHECK(turns_made <= changes + 2 * N);
    T_CHECK(hfsbi_loop_deadline(loop) == -1);
    hfsbi_loop_close(loop);
    free(d);
    T_CHECK(t_no_child());
}

#ifdef HFSBI_LINUX
static void a_silent_command_costs_no_turn(void) {
    hfsbi_loop    *loop = loop_open(0);
    hfsb_proc_opts o = t_quick_opts();
    driven         d;
    start_on(loop, &d, &o, "exec >&- 2>&-; sleep 0.6");
    /* its pipes close, and it exits */
    T_CHECK(drive(loop, 2000) <= 5);
    T_CHECK(d.result.exit_code == 0 && d.result.duration_ms >= 590);
    finish(&d, true);
    start_on(loop, &d, &o, "sleep 0.6");
    T_CHECK(drive(loop, 2000) <= 5);
    finish(&d, true);
    hfsbi_loop_close(loop);
}
#endif

/* False if the commands had too little time: they have said nothing yet when
   it is over, or did not hear TERM within their grace. */
static bool deadlines_are_kept(long long timeout_ms, bool last) {
    hfsbi_loop    *loop = loop_open(0);
    hfsb_proc_opts o = t_quick_opts();
    driven         d[3];
    long long      start = hfsb_clock_ms();
    size_t         i;
    bool           in_time;
    o.timeout_ms = timeout_ms;
    o.grace_ms = timeout_ms;
    start_on(loop, &d[0], &o, "echo partial; sleep 60 & sleep 60");
    o.grace_ms = 200;
    start_on(loop, &d[1], &o,
             "trap '' TERM; echo deaf; while :; do sleep 1; done");
    o.timeout_ms = 0;
    start_on(loop, &d[2], &o, "sleep 60 & echo early"); /* survivors */
    T_CHECK(drive(loop, timeout_ms + 3000) < 200);
    T_CHECK(hfsb_clock_ms() - start >= timeout_ms);
    T_CHECK(d[0].result.timed_out && d[1].result.timed_out);
    T_CHECK(d[2].result.exit_code == 0 && d[2].result.incomplete);
    T_STR(d[2].output.out, "early\n");
    in_time = d[0].output.out.len && d[1].output.out.len &&
              d[0].result.signal == SIGTERM;
    if (in_time || last) {
        T_CHECK(hfsb_clock_ms() - start >= timeout_ms + 200);
        T_CHECK(d[0].result.signal == SIGTERM);
        T_STR(d[0].output.out, "partial\n");
        T_CHECK(d[1].result.signal == SIGKILL);
        T_STR(d[1].output.out, "deaf\n");
    }
    for (i = 0; i < 3; i++) finish(&d[i], i < 2);
    hfsbi_loop_close(loop);
    return in_time;
}

static void deadlines_are_timers_of_the_loop(void) {
    long long ms = 700;
    while (!deadlines_are_kept(ms, ms > 10000) && ms <= 10000) ms *= 4;
}

/* The portable way sees only the group. */
#ifdef HFSBI_LINUX
#define OWN_SESSION "setsid "
#else
#define OWN_SESSION ""
#endif

static void kill_ends_commands(size_t threads) {
    enum { N = 20 };
    hfsbi_loop    *loop = loop_open(threads);
    hfsb_proc_opts o = t_quick_opts();
    driven         d[N];
    size_t         i;
    for (i = 0; i < N; i++) {
        start_on(loop, &d[i], &o,
                 i % 2 ? "(" OWN_SESSION "sleep 61 &); echo ready; sleep 61"
                       : "trap '' TERM; echo ready; sleep 61; sleep 61");
        d[i].kills = true; /* from on_change */
    }
    T_CHECK(drive(loop, 3000) < 100 * N);
    for (i = 0; i < N; i++) {
        T_CHECK(d[i].result.killed && !d[i].result.incomplete);
        T_CHECK(d[i].result.end == HFSB_PROC_SIGNALED);
        finish(&d[i], true);
    }
    hfsbi_loop_close(loop);
}

static void kill_ends_attached_commands(void) {
    kill_ends_commands(0);
    kill_ends_commands(2);
}

#ifdef HFSBI_LINUX
static long long snapshot_at(hfsbi_loop *loop) {
    const hfsbi_scanner *scan = hfsbi_scanner_of(loop);
    return scan->pair[scan->last].at;
}
#endif

/* How many passes over /proc twenty kills take together: as many as one. */
static void commands_killed_together_share_snapshots(void) {
#ifdef HFSBI_LINUX
    enum { N = 20 };
    hfsbi_loop    *loop = loop_open(0);
    hfsb_proc_opts o = t_quick_opts();
    driven         d[N];
    long long      last = -1;
    size_t         i, snapshots = 0, n = 0;
    for (i = 0; i < N; i++)
        start_on(loop, &d[i], &o,
                 "trap '' TERM; setsid sleep 61 & sleep 61; sleep 61");
    t_sleep(200);
    for (i = 0; i < N; i++) {
        long long next = hfsb_clock_ms() + 3; /* not all at once */
        hfsb_proc_kill(d[i].proc);
        do {
            if (snapshot_at(loop) != last) snapshots++;
            last = snapshot_at(loop);
            loop_turn(loop, 1);
        } while (hfsb_clock_ms() < next);
    }
    while (running && n++ < 100000) {
        loop_turn(loop, 1000);
        if (snapshot_at(loop) != last) snapshots++;
        last = snapshot_at(loop);
    }
    T_CHECK(running == 0);
    /* 200 ms of grace at 5, 15, 35, 85 ... ms, then KILL: 20 times less than
       that of each by itself */
    if (snapshots >= 3 * N) printf("%zu snapshots\n", snapshots);
    T_CHECK(snapshots >= 2 && snapshots < 3 * N);
    for (i = 0; i < N; i++) finish(&d[i], true);
    hfsbi_loop_close(loop);
#endif
}

#ifdef HFSBI_LINUX
/* ---- snapshots are taken in a thread ---- */

typedef struct beat {
    hfsbi_timer timer; /* first */
    hfsbi_loop *loop;
    int         count, scans, stood_still; /* atomic */
    void (*run)(hfsbi_task *task);
} beat;

static beat pulse;

static void beat_again(hfsbi_timer *timer) {
    beat *b = (beat *)(void *)timer;
    (void)__atomic_add_fetch(&b->count, 1, __ATOMIC_SEQ_CST);
    hfsbi_loop_timer(b->loop, timer, hfsb_clock_ms() + 1);
}

/* A pass over /proc that takes until the loop has turned three times. */
static void slow_scan(hfsbi_task *task) {
    int       first = __atomic_load_n(&pulse.count, __ATOMIC_SEQ_CST);
    long long end = hfsb_clock_ms() + 20000;
    while (__atomic_load_n(&pulse.count, __ATOMIC_SEQ_CST) < first + 3 &&
           hfsb_clock_ms() < end)
        t_sleep(1);
    if (__atomic_load_n(&pulse.count, __ATOMIC_SEQ_CST) < first + 3)
        (void)__atomic_add_fetch(&pulse.stood_still, 1, __ATOMIC_SEQ_CST);
    (void)__atomic_add_fetch(&pulse.scans, 1, __ATOMIC_SEQ_CST);
    pulse.run(task);
}

/* A loop whose passes over /proc are slow. */
static hfsbi_loop *loop_with_slow_scans(void) {
    hfsbi_loop *loop = loop_open(1);
    memset(&pulse, 0, sizeof pulse);
    pulse.loop = loop;
    pulse.timer.fn = beat_again;
    pulse.run = hfsbi_scanner_of(loop)->task.run;
    hfsbi_scanner_of(loop)->task.run = slow_scan;
    hfsbi_loop_timer(loop, &pulse.timer, 0);
    return loop;
}

static void loop_with_slow_scans_close(hfsbi_loop *loop) {
    T_CHECK(pulse.scans > 0 && pulse.stood_still == 0);
    hfsbi_loop_timer_clear(loop, &pulse.timer);
    hfsbi_loop_close(loop);
}

/* False if some of the traps were set too late, or TERM was heard too late. */
static bool trees_are_killed(long long timeout_ms, bool last) {
    enum { N = 10 };
    hfsbi_loop    *loop = loop_with_slow_scans();
    hfsb_proc_opts o = t_quick_opts();
    driven         d[N];
    size_t         i;
    bool           in_time = true;
    o.timeout_ms = timeout_ms;
    for (i = 0; i < N; i++) {
        o.grace_ms = i % 2 ? 200 : timeout_ms;
        start_on(loop, &d[i], &o,
                 i % 2 ? "trap '' TERM; setsid sleep 61 & sleep 61 & wait"
                       : "sleep 61 & sleep 61 & wait");
    }
    (void)drive(loop, timeout_ms + 10000);
    for (i = 0; i < N; i++) {
        bool right = d[i].result.signal == (i % 2 ? SIGKILL : SIGTERM);
        T_CHECK(d[i].result.timed_out && !d[i].result.incomplete);
        T_CHECK(right || !last);
        in_time = in_time && right;
        finish(&d[i], true);
    }
    loop_with_slow_scans_close(loop);
    return in_time;
}

static void the_loop_turns_while_trees_are_killed(void) {
    long long ms = 700;
    while (!trees_are_killed(ms, ms > 10000) && ms <= 10000) ms *= 4;
}

static void the_loop_turns_while_survivors_are_listed(void) {
    hfsbi_loop     *loop = loop_with_slow_scans();
    hfsb_proc_opts  o = t_quick_opts();
    hfsb_proc_entry left[4];
    driven          d;
    int             i; /* they may be about to become sleeps for a while */
    start_on(loop, &d, &o, "sleep 62 & setsid sleep 62 & sleep 1.2; echo x");
    (void)drive(loop, 5000);
    for (i = 0; i < 2000 && (hfsb_proc_survivors(d.proc, left, 4) != 2 ||
                             strcmp(left[0].command, "sleep 62") != 0 ||
                             strcmp(left[1].command, "sleep 62") != 0);
         i++)
        t_sleep(10);
    T_CHECK(hfsb_proc_survivors(d.proc, left, 4) == 2);
    T_CHECK(strcmp(left[0].command, "sleep 62") == 0);
    T_CHECK(strcmp(left[1].command, "sleep 62") == 0);
    finish(&d, false);
    loop_with_slow_scans_close(loop);
}

/* All may happen while a thread reads /proc for the command. */
static void a_command_that_waits_for_a_scan_can_be_closed(void) {
    hfsbi_loop    *loop = loop_with_slow_scans();
    hfsb_proc_opts o = t_quick_opts();
    driven         d[2];
    start_on(loop, &d[0], &o, "sleep 61");
    start_on(loop, &d[1], &o, "sleep 61");
    hfsb_proc_kill(d[0].proc);
    hfsb_proc_kill(d[1].proc);
    T_CHECK(hfsb_proc_deadline(d[0].proc) == -1);
    hfsb_proc_close(d[0].proc);
    d[0].proc = NULL;
    running--;
    (void)drive(loop, 5000);
    T_CHECK(d[1].result.killed && d[0].changes == 0);
    finish(&d[0], true);
    finish(&d[1], true);
    loop_with_slow_scans_close(loop);
}
#endif

static void input_is_written_when_the_command_reads(void) {
    hfsbi_loop    *loop = loop_open(0);
    hfsb_proc_opts o = t_quick_opts();
    hfsb_buf       big = HFSB_INIT;
    driven         d;
    t_fill(&big, 'i', 3000000);
    o.input = hfsb_buf_str(&big);
    start_on(loop, &d, &o, "sleep 0.1; cat");
    T_CHECK(drive(loop, 4000) < 5000);
    T_CHECK(d.output.out.len == big.len);
    finish(&d, true);
    o.input = HFSB_LIT("");
    o.keep_input = true;
    start_on(loop, &d, &o, "wc -c | tr -d ' '");
    while (loop_turn(loop, 20), d.changes) continue;
    T_CHECK(hfsb_proc_input(d.proc, hfsb_buf_str(&big), true, NULL) ==
            HFSB_OK);
    (void)drive(loop, 4000);
    T_STR(d.output.out, "3000000\n");
    finish(&d, true);
    hfsb_buf_free(&big);
    hfsbi_loop_close(loop);
}

static void an_attached_command_can_be_closed_or_detached(void) {
    hfsbi_loop    *loop = loop_open(0);
    hfsb_proc_opts o = t_quick_opts();
    size_t         fds = t_open_fds(), i;
    driven         d[3];
    for (i = 0; i < 3; i++)
        start_on(loop, &d[i], &o, i == 1 ? "echo x; exit 3" : "sleep 61");
    t_sleep(50);
    hfsb_proc_close(d[0].proc); /* while it runs */
    d[0].proc = NULL;
    hfsbi_proc_detach(d[1].proc);
    hfsbi_proc_detach(d[1].proc); /* twice is quiet */
    for (i = 0; i < 5; i++) loop_turn(loop, 5);
    T_CHECK(d[0].changes == 0 && d[1].changes == 0);
    T_CHECK(t_finish(d[1].proc, 1000).exit_code == 3); /* the host's again */
    /* one that is done already is reported too */
    hfsbi_proc_attach(d[1].proc, loop, on_change, &d[1]);
    loop_turn(loop, 1000);
    T_CHECK(d[1].ends == 1 && d[1].changes == 1);
    hfsb_proc_close(d[2].proc);
    d[2].proc = NULL;
    for (i = 0; i < 3; i++) finish(&d[i], true);
    running = 0;
    T_CHECK(hfsbi_loop_deadline(loop) == -1);
    T_CHECK(t_open_fds() == fds && t_no_child());
    hfsbi_loop_close(loop);
}

/* The host waits itself, with the loop's descriptors. */
static void a_host_can_drive_the_loop(void) {
    hfsbi_loop    *loop = loop_open(0);
    hfsb_proc_opts o = t_quick_opts();
    driven         d;
    int            rounds = 0;
    o.timeout_ms = 200;
    start_on(loop, &d, &o, "echo x; sleep 60");
    while (running && rounds++ < 1000) {
        hfsb_watch    watch[16];
        struct pollfd fds[16];
        size_t        n = hfsbi_loop_watch(loop, watch, 16);
        long long     left = hfsbi_loop_deadline(loop) - hfsb_clock_ms();
        T_CHECK(n <= 16 && hfsbi_loop_deadline(loop) >= 0);
        hfsb_poll_fill(watch, n, fds);
        (void)poll(fds, (nfds_t)n, left > 0 ? (int)left : 0);
        loop_turn(loop, 0);
    }
    T_CHECK(d.result.timed_out && rounds < 100);
    finish(&d, true);
    hfsbi_loop_close(loop);
}

#if defined(HFSBI_LINUX)
/* A set that is full: the command is stepped by a timer instead. */
static void descriptors_the_loop_cannot_take_are_polled(void) {
    hfsbi_loop    *loop = loop_open(0);
    hfsb_proc_opts o = t_quick_opts();
    driven         d;
    int            fd;
    memset(&d, 0, sizeof d);
    snprintf(d.job, sizeof d.job, "%s-full", t_job());
    d.proc = t_start(&o, "echo x; sleep 0.1; exit 4", &d.output);
    /* as if epoll_ctl() failed: no descriptor of the loop's set is open */
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    T_CHECK(fd >= 0);
    {
        hfsb_watch watch[4];
        int        keep, set;
        T_CHECK(hfsbi_loop_watch(loop, watch, 4) == 1);
        set = watch[0].fd;
        keep = fcntl(set, F_DUPFD_CLOEXEC, 3);
        T_CHECK(keep >= 0 && dup2(fd, set) == set);
        running++;
        hfsbi_proc_attach(d.proc, loop, on_change, &d);
        T_CHECK(hfsbi_loop_deadline(loop) >= 0);
        T_CHECK(dup2(keep, set) == set);
        (void)fcntl(set, F_SETFD, FD_CLOEXEC);
        (void)close(keep);
    }
    (void)close(fd);
    (void)drive(loop, 1000);
    T_CHECK(d.result.exit_code == 4);
    T_STR(d.output.out, "x\n");
    finish(&d, true);
    hfsbi_loop_close(loop);
}
#endif

int main(void) {
    size_t fds = t_open_fds();
    (void)t_job();
    T_RUN(a_loop_drives_a_hundred_commands);
#ifdef HFSBI_LINUX
    T_RUN(a_silent_command_costs_no_turn);
#endif
    T_RUN(deadlines_are_timers_of_the_loop);
    T_RUN(kill_ends_attached_commands);
    T_RUN(commands_killed_together_share_snapshots);
#ifdef HFSBI_LINUX
    T_RUN(the_loop_turns_while_trees_are_killed);
    T_RUN(the_loop_turns_while_survivors_are_listed);
    T_RUN(a_command_that_waits_for_a_scan_can_be_closed);
#endif
    T_RUN(input_is_written_when_the_command_reads);
    T_RUN(an_attached_command_can_be_closed_or_detached);
    T_RUN(a_host_can_drive_the_loop);
#ifdef HFSBI_LINUX
    T_RUN(descriptors_the_loop_cannot_take_are_polled);
#endif
    T_CHECK(t_no_child() && t_open_fds() == fds);
    return T_END();
}
