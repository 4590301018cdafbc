/* test_proc_end.c - the end of commands: the last of their output, killing
   them, and what outlives them. */
#include "../support/t_proc.h"
#ifdef __linux__
#include <sys/ptrace.h>
#endif

#define JOB t_job()

static char dir_path[] = "/tmp/hfsb-test-XXXXXX";

/* ---- the end of its output ---- */

static void survivors_may_write_for_a_while(void) {
    hfsb_proc_opts   o = t_quick_opts();
    hfsb_buf         out = HFSB_INIT;
    hfsb_proc_result r;
    long long        start, took;
    /* longer, if a busy machine delays what is late */
    for (o.quiet_ms = 800; o.quiet_ms < 20000; o.quiet_ms *= 4) {
        hfsb_buf_truncate(&out, 0);
        start = hfsb_clock_ms();
        r = t_run(&o, "(sleep 0.1; echo late; sleep 60) & echo early", &out);
        took = hfsb_clock_ms() - start;
        T_CHECK(r.end == HFSB_PROC_EXITED && r.incomplete);
        T_CHECK(took >= o.quiet_ms);
        T_CHECK(r.duration_ms < took - o.quiet_ms + 100); /* without that */
        if (out.len == 11) break;
    }
    T_CHECK(took >= o.quiet_ms + 50);
    T_STR(out, "early\nlate\n");
    hfsb_buf_free(&out);
    /* one that never is quiet */
    start = hfsb_clock_ms();
    o.quiet_ms = o.quiet_max_ms = 600;
    r = t_run(&o, "echo x; while :; do echo x; sleep 0.02; done & exit 3",
              NULL);
    T_CHECK(r.exit_code == 3 && r.incomplete);
    T_CHECK(hfsb_clock_ms() - start >= 600);
    T_CHECK(hfsb_clock_ms() - start < t_patience(1000));
    T_CHECK(r.stdout_bytes >= 2);
    /* no waiting at all */
    start = hfsb_clock_ms();
    o.quiet_ms = -1;
    r = t_run(&o, "sleep 60 & echo x", NULL);
    T_CHECK(r.incomplete && r.stdout_bytes == 2);
    t_kill_marked(JOB);
}

/* A host that steps rarely still gets all that was written before the exit. */
static void no_output_is_lost_by_a_slow_host(void) {
    hfsb_proc_opts   o = t_quick_opts();
    hfsb_proc_result r;
    hfsb_proc       *proc;
    size_t           steps = 0;
    o.quiet_ms = o.quiet_max_ms = 1;
    proc = t_start(&o,
                   "head -c 3000000 /dev/zero; sleep 0.3; "
                   "head -c 1000000 /dev/zero; sleep 60 & exit 0",
                   NULL);
    do t_sleep(hfsb_proc_status(proc).stdout_bytes < 3000000 ? 1 : 150);
    while (!hfsb_proc_step(proc) && ++steps < 20000);
    r = hfsb_proc_status(proc);
    T_CHECK(r.end == HFSB_PROC_EXITED && r.stdout_bytes == 4000000);
    T_CHECK(r.incomplete);
    hfsb_proc_close(proc);
    t_kill_marked(JOB);
}

/* ---- what it used ---- */

static void reports_cpu_time_and_peak_memory(void) {
#if defined(__linux__) && !defined(HFSBI_PORTABLE)
    static const char spin[] = "i=0; while [ $i -lt 150000 ]; do "
                               "i=$((i+1)); done";
    static const char big[] = "x=$(head -c 60000000 /dev/zero | tr '\\0' x)";
    hfsb_proc_opts   o = t_quick_opts();
    hfsb_proc_result idle, r;
    idle = t_run(&o, "sleep 0.2", NULL);
    T_CHECK(idle.cpu_ms >= 0 && idle.cpu_ms < 150 && idle.peak_bytes > 0);
    r = t_run(&o, spin, NULL);
    T_CHECK(r.cpu_ms >= 5 && r.cpu_ms > idle.cpu_ms);
    r = t_run(&o, big, NULL);
    T_CHECK(r.peak_bytes > 60000000 && r.peak_bytes > idle.peak_bytes);
    r = t_run(&o, "kill -9 $$", NULL); /* a signal leaves figures too */
    T_CHECK(r.signal == 9 && r.peak_bytes > 0);
#endif
}

/* ---- ending it ---- */

static void kill_lets_a_trap_finish(void) {
    hfsb_proc_opts   o = t_quick_opts();
    t_output         output = HFSB_INIT;
    hfsb_proc_result r;
    hfsb_proc       *proc;
    o.grace_ms = 20000;
    proc = t_start(&o,
                   "trap 'sleep 0.2; echo bye; exit 4' TERM; echo ready; "
                   "while :; do sleep 0.05; done",
                   &output);
    T_CHECK(t_until(proc, &output, "ready"));
    hfsb_proc_kill(proc);
    hfsb_proc_kill(proc);
    r = t_finish(proc, 1000);
    T_CHECK(r.end == HFSB_PROC_EXITED && r.exit_code == 4);
    T_CHECK(r.killed && !r.timed_out && !r.incomplete);
    T_STR(output.out, "ready\nbye\n");
    hfsb_proc_close(proc);
    T_CHECK(t_marked(JOB, 0) == 0);
    t_output_free(&output);
}

static void kill_wakes_stopped_processes(void) {
    hfsb_proc_opts   o = t_quick_opts();
    t_output         output = HFSB_INIT;
    hfsb_proc_result r;
    hfsb_proc       *proc;
    o.grace_ms = 20000;
    proc = t_start(&o,
                   "trap 'echo bye; exit 4' TERM; echo ready; kill -STOP $$; "
                   "while :; do sleep 0.05; done",
                   &output);
    T_CHECK(t_until(proc, &output, "ready"));
    t_sleep(50);
    hfsb_proc_kill(proc);
    r = t_finish(proc, 1000);
    T_CHECK(r.end == HFSB_PROC_EXITED && r.exit_code == 4);
    T_STR(output.out, "ready\nbye\n");
    hfsb_proc_close(proc);
    t_output_free(&output);
}

static void kill_follows_an_ignored_term(void) {
    hfsb_proc_opts   o = t_quick_opts();
    t_output         output = HFSB_INIT;
    hfsb_proc_result r;
    hfsb_proc       *proc;
    long long        start;
    proc = t_start(&o, "trap '' TERM; echo ready; while :; do sleep 1; done",
                   &output);
    T_CHECK(t_until(proc, &output, "ready"));
    start = hfsb_clock_ms();
    hfsb_proc_kill(proc);
    r = t_finish(proc, 1000);
    T_CHECK(r.end == HFSB_PROC_SIGNALED && r.signal == SIGKILL && r.killed);
    T_CHECK(hfsb_clock_ms() - start >= 200);
    hfsb_proc_close(proc);
    /* no grace */
    o.grace_ms = -1;
    hfsb_buf_truncate(&output.out, 0);
    proc = t_start(&o, "trap '' TERM; echo ready; while :; do sleep 1; done",
                   &output);
    T_CHECK(t_until(proc, &output, "ready"));
    hfsb_proc_kill(proc);
    r = t_finish(proc, 1000);
    T_CHECK(r.end == HFSB_PROC_SIGNALED && r.signal == SIGKILL);
    hfsb_proc_close(proc);
    T_CHECK(t_marked(JOB, 0) == 0);
    t_output_free(&output);
}

static void kill_reaches_survivors_of_an_exit(void) {
    hfsb_proc_opts   o = t_quick_opts();
    hfsb_proc_result r;
    hfsb_proc       *proc;
    o.quiet_ms = 60000;
    o.quiet_max_ms = 60000;
    proc = t_start(&o, "sleep 60 & exit 5", NULL);
    while (hfsb_proc_status(proc).end == HFSB_PROC_RUNNING) {
        T_CHECK(!hfsb_proc_step(proc));
        t_sleep(1);
    }
    hfsb_proc_kill(proc);
    r = t_finish(proc, 1000);
    T_CHECK(r.end == HFSB_PROC_EXITED && r.exit_code == 5 && r.killed);
    hfsb_proc_close(proc);
    T_CHECK(t_marked(JOB, 0) == 0);
}

/* Outside of the group, each in another way. The portable way sees only the
   group. */
static void kill_reaches_the_whole_tree(void) {
#ifdef HFSBI_LINUX
    static const char *const table[] = {
        /* in a session of its own; a child */
        "setsid sleep 61 & wait",
        /* the same, no child any more */
        "(setsid sleep 61 &) ; echo ready; sleep 62",
        /* a group of its own, as interactive shells make them */
        "{ perl -e 'setpgrp; sleep 61' || setsid sleep 61; } & wait",
        /* another session, no environment, but a descendant */
        "env -i setsid sleep 61 & wait",
        /* ... that does not listen and becomes an orphan by the first TERM */
        "env -i setsid sh -c 'trap \"\" TERM; sleep 61; sleep 62' & wait",
        /* ... that is an orphan from the start: a daemon */
        "(setsid env -i sleep 61 &) ; echo ready; sleep 62",
        /* stopped */
        "setsid sh -c 'kill -STOP $$; sleep 61' & wait",
        /* many */
        "for i in $(seq 20); do setsid sleep 61 & done; wait"};
    size_t i;
    for (i = 0; i < sizeof table / sizeof *table; i++) {
        hfsb_proc_opts   o = t_quick_opts();
        hfsb_proc_entry  list[64];
        hfsb_proc_result r;
        hfsb_proc       *proc;
        bool             by_timeout = i % 2 == 1;
        size_t           n, k;
        if (by_timeout) o.timeout_ms = 700;
        proc = t_start(&o, table[i], NULL);
        for (k = 0; k < 2000 && !hfsb_proc_survivors(proc, list, 64); k++)
            t_sleep(10);
        t_sleep(150); /* for the rest of the tree */
        n = hfsb_proc_survivors(proc, list, 64);
        T_CHECK(n > 0);
        if (!by_timeout) hfsb_proc_kill(proc);
        r = t_finish(proc, 1500);
        T_CHECK(r.end == HFSB_PROC_SIGNALED && !r.incomplete);
        T_CHECK(r.timed_out == by_timeout && r.killed == !by_timeout);
        T_CHECK(hfsb_proc_survivors(proc, &list[n], 64 - n) == 0);
        for (k = 0; k < n; k++) {
            if (t_runs(list[k].pid))
                printf("case %zu: %ld %s lives\n", i, list[k].pid,
                       list[k].command);
            T_CHECK(!t_runs(list[k].pid));
        }
        hfsb_proc_close(proc);
        T_CHECK(t_marked(JOB, 0) == 0);
    }
#else
    t_skip("the portable way sees only the group");
#endif
}

/* Nothing but the tree: a process like it, of another job, lives on. */
static void kill_spares_other_jobs(void) {
    hfsb_proc_opts   o = t_quick_opts(), other = t_quick_opts();
    hfsb_proc       *proc, *bystander;
    hfsb_proc_result r;
    char             longer[80]; /* begins alike */
    int              i;
    snprintf(longer, sizeof longer, "%s-2", JOB);
    other.job = hfsb_cstr(longer);
    bystander = t_start(&other, "setsid sleep 63 & exec sleep 63", NULL);
    proc = t_start(&o, "setsid sleep 61 & sleep 61", NULL);
    for (i = 0; i < 2000 && (t_sees_processes() ? t_marked(longer, 0) < 2 ||
                                                      t_marked(JOB, 0) < 2
                                                : i < 20); i++)
        t_sleep(10);
    hfsb_proc_kill(proc);
    r = t_finish(proc, 1000);
    T_CHECK(r.killed && r.end == HFSB_PROC_SIGNALED);
    hfsb_proc_close(proc);
    T_CHECK(t_marked(longer, 0) == 2);
    T_CHECK(!hfsb_proc_step(bystander));
    hfsb_proc_close(bystander);
    t_kill_marked(JOB);
    t_kill_marked(longer);
}

/* The portable way does not see when those that it has killed end. */
static bool none_left(void) {
#ifndef HFSBI_LINUX
    int i;
    for (i = 0; i < 2000 && t_marked(JOB, 0) > 0; i++) t_sleep(10);
#endif
    return t_marked(JOB, 0) == 0;
}

static void close_kills_a_running_command(void) {
    hfsb_proc_opts o = t_quick_opts();
    size_t         fds = t_open_fds();
    hfsb_proc     *proc;
    proc = t_start(&o, "trap '' TERM; sleep 61 & sleep 62", NULL);
    t_sleep(100);
    hfsb_proc_close(proc);
    T_CHECK(none_left());
    proc = t_start(&o, "exit 0", NULL); /* at once */
    hfsb_proc_close(proc);
    proc = t_start(&o, "kill -STOP $$", NULL);
    hfsb_proc_close(proc);
#ifdef HFSBI_LINUX
    proc = t_start(&o, "setsid sleep 61 & setsid sleep 62 & wait", NULL);
    t_sleep(100);
    hfsb_proc_close(proc);
#endif
    T_CHECK(t_marked(JOB, 0) == 0);
    T_CHECK(t_no_child() && t_open_fds() == fds);
}

#ifdef HFSBI_LINUX
static void *close_it(void *proc) {
    hfsb_proc_close((hfsb_proc *)proc);
    return NULL;
}

/* A killed process that waits for a slow disk ends late. A tracer that stops it
   at its exit does the same. */
static void close_waits_for_a_process_that_ends_late(void) {
    hfsb_proc_opts o = t_quick_opts();
    hfsb_proc     *proc = t_start(&o, "exec sleep 61", NULL);
    pid_t          pid = (pid_t)hfsb_proc_status(proc).pid;
    long long      end = hfsb_clock_ms() + t_patience(3000);
    pthread_t      thread;
    int            status = 0;
    if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXIT) != 0) {
        hfsb_proc_close(proc);
        t_skip("ptrace is not allowed");
        return;
    }
    T_CHECK(pthread_create(&thread, NULL, close_it, proc) == 0);
    while (hfsb_clock_ms() < end &&
           (waitpid(pid, &status, WNOHANG | __WALL) != pid ||
            status >> 8 != (SIGTRAP | (PTRACE_EVENT_EXIT << 8))))
        t_sleep(2);
    t_sleep(2000);
    T_CHECK(ptrace(PTRACE_DETACH, pid, NULL, NULL) == 0);
    T_CHECK(pthread_join(thread, NULL) == 0);
    T_CHECK(t_no_child() && t_marked(JOB, 0) == 0);
}
#endif

/* ---- what outlives it ---- */

#ifdef HFSBI_LINUX
/* Lists what is left until that is n and the last one is that command: on a
   busy machine they are about to become it for a while. */
static size_t listed(const hfsb_proc *proc, hfsb_proc_entry *list, size_t n,
                     const char *last) {
    long long end = hfsb_clock_ms() + t_patience(3000);
    size_t    found;
    while ((found = hfsb_proc_survivors(proc, list, 8)) != n ||
           strcmp(list[n - 1].command, last) != 0) {
        if (hfsb_clock_ms() > end) break;
        t_sleep(5);
    }
    return found;
}
#endif

static void survivors_are_listed(void) {
#ifdef HFSBI_LINUX
    hfsb_proc_opts  o = t_quick_opts();
    hfsb_proc_entry list[8];
    hfsb_proc      *proc;
    size_t          n;
    proc = t_start(&o, "exit 0", NULL);
    t_finish(proc, 1000);
    T_CHECK(hfsb_proc_survivors(proc, list, 8) == 0);
    hfsb_proc_close(proc);

    proc = t_start(&o,
                   "sleep 65 >/dev/null 2>&1 & "
                   "setsid sh -c 'sleep 66; : h\xC3\xA9\xFF' & sleep 0.1",
                   NULL);
    T_CHECK(t_finish(proc, 1000).incomplete);
    n = listed(proc, list, 3, "sleep 66");
    T_CHECK(n == 3);
    if (n == 3) {
        T_CHECK(list[0].pid != list[1].pid && t_runs(list[0].pid));
        T_STR(hfsb_cstr(list[0].command), "sleep 65");
        T_STR(hfsb_cstr(list[1].command),
              "sh -c sleep 66; : h\xC3\xA9\xEF\xBF\xBD");
        T_STR(hfsb_cstr(list[2].command), "sleep 66");
    }
    T_CHECK(hfsb_proc_survivors(proc, list, 2) == 2);
    T_CHECK(hfsb_proc_survivors(proc, list, 0) == 0);
    hfsb_proc_close(proc);
    t_kill_marked(JOB);

    /* one that ran for long, so that numbers may have wrapped */
    proc = t_start(&o, "sleep 67 & sleep 1.1", NULL);
    t_finish(proc, 2000);
    T_CHECK(listed(proc, list, 1, "sleep 67") == 1);
    T_STR(hfsb_cstr(list[0].command), "sleep 67");
    hfsb_proc_close(proc);
    t_kill_marked(JOB);
#else
    hfsb_proc_opts  o = t_quick_opts();
    hfsb_proc_entry list[8];
    hfsb_proc      *proc = t_start(&o, "sleep 65 & exit 0", NULL);
    t_finish(proc, 1000);
    T_CHECK(hfsb_proc_survivors(proc, list, 8) == 0);
    hfsb_proc_close(proc);
    t_kill_marked(JOB);
#endif
}

/* The number of a survivor that writes on and on. */
#define WRITER                                                    \
    "(trap 'echo broken > \"$HFSB_TEST_DIR/broken\"; exit 1' PIPE; " \
    "while :; do echo x || exit 1; sleep 0.01; done) & echo pid=$!"

static long start_writer(hfsb_proc_opts *o, hfsb_proc **out) {
    t_output output = HFSB_INIT;
    size_t   at;
    long     pid = 0;
    T_CHECK(setenv("HFSB_TEST_DIR", dir_path, 1) == 0);
    o->quiet_ms = 20;
    o->quiet_max_ms = 60;
    *out = t_start(o, WRITER, &output);
    T_CHECK(t_finish(*out, 1000).incomplete);
    at = hfsb_str_find(hfsb_buf_str(&output.out), HFSB_LIT("pid="));
    if (at != HFSB_NPOS) pid = strtol(output.out.ptr + at + 4, NULL, 10);
    T_CHECK(pid > 0 && t_runs(pid));
    t_output_free(&output);
    return pid;
}

#ifdef HFSBI_LINUX
static char self[PATH_MAX];

static void *stay(void *unused) {
    for (;;) (void)pause();
    return unused;
}

static size_t threads_of(long pid) {
    char           path[64];
    size_t         n = 0;
    struct dirent *entry;
    DIR           *dir;
    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    dir = opendir(path);
    while (dir && (entry = readdir(dir)) != NULL) n += entry->d_name[0] != '.';
    if (dir) closedir(dir);
    return n;
}

/* This program as a command: a process in a session of its own, whose first
   thread has ended. Its parent ends then, or stays. */
static int be_headless(bool stays) {
    pthread_t thread;
    pid_t     pid = fork();
    if (pid != 0) {
        while (t_runs((long)pid)) t_sleep(5);
        if (stays) (void)stay(NULL);
        return 0;
    }
    (void)setsid();
    (void)close(1);
    (void)close(2);
    if (pthread_create(&thread, NULL, stay, NULL) != 0) _exit(1);
    pthread_exit(NULL);
}
#endif

#ifdef HFSBI_LINUX
/* This program as a command: a process in a session of its own executes
   something with so many arguments that it takes milliseconds. In the middle
   of that it has no environment to be read, and then its parent ends. */
static int be_executing(void) {
    enum { MANY = 150000 };
    static char  *args[MANY + 3];
    struct pollfd done = HFSB_INIT;
    long long     end = hfsb_clock_ms() + 20000;
    char          path[64], byte;
    bool          executes;
    ssize_t       n = 1;
    size_t        i;
    args[0] = self;
    args[1] = (char *)(uintptr_t)"stays";
    for (i = 2; i < MANY + 2; i++) args[i] = (char *)(uintptr_t)"0";
    while (n > 0 && hfsb_clock_ms() < end) {
        int   ends[2], fd;
        pid_t pid = pipe2(ends, O_CLOEXEC) ? -1 : fork();
        if (pid < 0) abort();
        if (pid == 0) {
            (void)setsid();
            (void)close(1); /* nobody waits for what it prints */
            (void)close(2);
            (void)execv(self, args);
            _exit(1);
        }
        hfsbi_close(&ends[1]);
        done.fd = ends[0];
        done.events = POLLIN;
        snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
        do {
            executes = poll(&done, 1, 0) != 0; /* execve() closed its end */
            fd = open(path, O_RDONLY | O_CLOEXEC);
            n = fd < 0 ? 1 : read(fd, &byte, 1);
            hfsbi_close(&fd);
        } while (n > 0 && !executes);
        hfsbi_close(&ends[0]);
        if (n <= 0) break;
        (void)kill(pid, SIGKILL); /* too late: again */
        (void)waitpid(pid, NULL, 0);
    }
    _exit(n > 0 ? 3 : 0);
}

static void survivors_are_listed_while_they_execute(void) {
    const char *const argv[] = {self, "executes", NULL};
    hfsb_proc_opts    o = t_quick_opts();
    hfsb_proc_entry   list[8];
    hfsb_proc        *proc = NULL;
    bool              seen = true;
    int               i;
    if (t_valgrind()) return; /* executes in its own way */
    o.argv = argv;
    for (i = 0; i < 10 && seen; i++) {
        T_CHECK(hfsb_proc_open(&o, &proc, NULL) == HFSB_OK);
        seen = t_finish(proc, 60000).exit_code == 0;
        if (seen) T_CHECK(hfsb_proc_survivors(proc, list, 8) == 1);
        hfsb_proc_close(proc);
        t_kill_marked(JOB);
    }
    if (i == 1 && !seen) t_skip("too busy to see a process in execve()");
}
#endif

static void processes_without_their_first_thread_are_killed(void) {
#ifdef HFSBI_LINUX
    const char      *argv[] = {self, "headless", NULL, NULL};
    hfsb_proc_opts   o = t_quick_opts();
    hfsb_proc_entry  list[8];
    hfsb_proc_result r;
    hfsb_proc       *proc = NULL;
    size_t           n, k;
    if (t_valgrind()) return; /* has threads of its own */
    o.argv = argv;
    T_CHECK(hfsb_proc_open(&o, &proc, NULL) == HFSB_OK);
    r = t_finish(proc, 5000);
    T_CHECK(r.end == HFSB_PROC_EXITED && r.exit_code == 0);
    n = hfsb_proc_survivors(proc, list, 8);
    T_CHECK(n == 1 && threads_of(list[0].pid) == 2);
    if (n == 1) (void)kill((pid_t)list[0].pid, SIGKILL);
    hfsb_proc_close(proc);
    argv[2] = "stays";
    T_CHECK(hfsb_proc_open(&o, &proc, NULL) == HFSB_OK);
    for (k = 0, n = 0; k < 2000 && (!n || t_runs(list[0].pid)); k++) {
        t_sleep(10);
        n = hfsb_proc_survivors(proc, list, 8);
    }
    T_CHECK(n == 1);
    hfsb_proc_kill(proc);
    r = t_finish(proc, 1500);
    T_CHECK(r.end == HFSB_PROC_SIGNALED && !r.incomplete);
    for (k = 0; n && k < 1000 && threads_of(list[0].pid) > 1; k++) t_sleep(5);
    T_CHECK(n && threads_of(list[0].pid) <= 1);
    hfsb_proc_close(proc);
#endif
}

static void survivors_go_on_writing_after_close(void) {
    hfsb_proc_opts o = t_quick_opts();
    size_t         fds = t_open_fds();
    hfsb_proc     *proc;
    long           pid = start_writer(&o, &proc);
    hfsb_proc_close(proc);
    T_CHECK(t_no_child() && t_open_fds() == fds);
    t_sleep(300);
    T_CHECK(t_runs(pid));
    t_kill_marked(JOB);
}

static void without_keeper_survivors_get_a_broken_pipe(void) {
    hfsb_proc_opts o = t_quick_opts();
    hfsb_proc     *proc;
    long           pid;
    char           path[256];
    o.no_keeper = true;
    pid = start_writer(&o, &proc);
    hfsb_proc_close(proc);
    T_CHECK(t_ends(pid, 20000));
    t_kill_marked(JOB);
    snprintf(path, sizeof path, "%s/broken", dir_path);
    T_CHECK(unlink(path) == 0);
}

static void pipes_of_survivors_can_be_taken(void) {
    hfsb_proc_opts o = t_quick_opts();
    char           text[64];
    int            fds[2] = {-1, -1};
    struct pollfd  ready = HFSB_INIT;
    hfsb_proc     *proc;
    long           pid = start_writer(&o, &proc);
    T_CHECK(hfsb_proc_take_pipes(proc, fds) == 2);
    T_CHECK(hfsb_proc_take_pipes(proc, fds) == 0);
    hfsb_proc_close(proc);
    ready.fd = fds[0];
    ready.events = POLLIN;
    T_CHECK(poll(&ready, 1, 20000) == 1); /* it writes soon */
    T_CHECK(read(fds[0], text, sizeof text) > 0 && text[0] == 'x');
    T_CHECK(read(fds[1], text, sizeof text) < 0 && errno == EAGAIN);
    hfsb_proc_keep_pipes(fds, 2);
    T_CHECK(fcntl(fds[0], F_GETFD) == -1 && fcntl(fds[1], F_GETFD) == -1);
    t_sleep(200);
    T_CHECK(t_runs(pid));
    t_kill_marked(JOB);
    T_CHECK(t_no_child());
    /* while it runs they are not to be had */
    o = t_quick_opts();
    proc = t_start(&o, "sleep 61", NULL);
    T_CHECK(hfsb_proc_take_pipes(proc, fds) == 0);
    hfsb_proc_close(proc);
}

/* How many processes there are that look like this one: keepers. */
static size_t copies_of_us(void) {
    hfsb_buf       own = HFSB_INIT, other = HFSB_INIT, path = HFSB_INIT;
    size_t         n = 0;
    struct dirent *entry;
    DIR           *dir = opendir("/proc");
    T_CHECK(t_read_file("/proc/self/cmdline", &own) && own.len);
    while (dir && (entry = readdir(dir)) != NULL) {
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || pid == (long)getpid()) continue;
        hfsb_buf_truncate(&other, 0);
        hfsb_buf_truncate(&path, 0);
        T_CHECK(hfsb_buf_printf(&path, "/proc/%ld/cmdline", pid) == HFSB_OK);
        (void)t_read_file(path.ptr, &other);
        n += hfsb_str_equal(hfsb_buf_str(&own), hfsb_buf_str(&other));
    }
    if (dir) closedir(dir);
    hfsb_buf_free(&own);
    hfsb_buf_free(&other);
    hfsb_buf_free(&path);
    return n;
}

static bool copies_become(size_t n) {
    long long end = hfsb_clock_ms() + t_patience(3000);
    while (copies_of_us() != n && hfsb_clock_ms() < end) t_sleep(5);
    return copies_of_us() == n;
}

/* It reads until the last writer is gone, and then it is gone too. */
static void keepers_end_with_their_pipes(void) {
    enum { PIPES = 70 }; /* more than one keeper takes */
    int                ends[PIPES][2], fds[PIPES], i;
    char               block[1000];
    hfsbi_signal_guard guard;
    if (!t_sees_processes() || t_valgrind() || !copies_become(0)) {
        t_skip("keepers cannot be distinguished from others");
        return;
    }
    memset(block, 'k', sizeof block);
    for (i = 0; i < PIPES; i++) {
        T_CHECK(hfsbi_pipe(ends[i]));
        fds[i] = ends[i][0];
    }
    hfsb_proc_keep_pipes(fds, PIPES);
    T_CHECK(t_no_child() && copies_become(2));
    hfsbi_signal_guard_begin(&guard);
    for (i = 0; i < 300; i++) { /* more than a pipe holds */
        T_CHECK(write(ends[3][1], block, sizeof block) == 1000);
        T_CHECK(write(ends[69][1], block, sizeof block) == 1000);
    }
    for (i = 1; i < PIPES; i++) hfsbi_close(&ends[i][1]);
    T_CHECK(copies_become(1));
    T_CHECK(write(ends[0][1], block, sizeof block) == 1000);
    hfsb_proc_keep_pipes(NULL, 0);
    hfsbi_close(&ends[0][1]);
    hfsbi_signal_guard_end(&guard);
    T_CHECK(copies_become(0));
}

int main(int argc, char **argv) {
    size_t fds = t_open_fds();
#ifdef HFSBI_LINUX
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (argc > 1 && strcmp(argv[1], "headless") == 0)
        return be_headless(argc > 2);
    if (n <= 0) abort();
    if (argc > 1 && strcmp(argv[1], "executes") == 0) return be_executing();
    if (argc > 1 && strcmp(argv[1], "stays") == 0) {
        (void)alarm(60); /* not for good, if this test is killed */
        (void)stay(NULL);
    }
#endif
    (void)argc, (void)argv;
    (void)t_job(); /* of this process, not of one it forks */
    if (!mkdtemp(dir_path)) abort();
    T_RUN(survivors_may_write_for_a_while);
    T_RUN(no_output_is_lost_by_a_slow_host);
    T_RUN(reports_cpu_time_and_peak_memory);
    T_RUN(kill_lets_a_trap_finish);
    T_RUN(kill_wakes_stopped_processes);
    T_RUN(kill_follows_an_ignored_term);
    T_RUN(kill_reaches_survivors_of_an_exit);
    T_RUN(kill_reaches_the_whole_tree);
    T_RUN(kill_spares_other_jobs);
    T_RUN(close_kills_a_running_command);
#ifdef HFSBI_LINUX
    T_RUN(close_waits_for_a_process_that_ends_late);
#endif
    T_RUN(survivors_are_listed);
#ifdef HFSBI_LINUX
    T_RUN(survivors_are_listed_while_they_execute);
#endif
    T_RUN(processes_without_their_first_thread_are_killed);
    T_RUN(survivors_go_on_writing_after_close);
    T_RUN(without_keeper_survivors_get_a_broken_pipe);
    T_RUN(pipes_of_survivors_can_be_taken);
    T_RUN(keepers_end_with_their_pipes);
    T_CHECK(rmdir(dir_path) == 0);
    T_CHECK(t_no_child() && t_open_fds() == fds);
    return T_END();
}
