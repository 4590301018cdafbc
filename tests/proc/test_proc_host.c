/* test_proc_host.c - commands inside somebody's program: its signals,
   children and threads are its own. */
#include "../support/t_proc.h"

#include <sys/time.h>
#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#endif

#define JOB t_job()

/* ---- signals ---- */

static void with_ignored_children(void) {
    hfsb_proc_result r;
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT;
    int              i;
    T_CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    for (i = 0; i < 20; i++) {
        hfsb_buf_truncate(&out, 0);
        r = t_run(&o, "echo out; exit 3", &out);
        T_CHECK(r.end == HFSB_PROC_UNKNOWN && r.exit_code == 0);
        T_CHECK(!r.incomplete && !r.timed_out);
        T_STR(out, "out\n");
    }
    hfsb_buf_free(&out);
    o.timeout_ms = 100;
    o.job = hfsb_cstr(JOB);
    r = t_run(&o, "sleep 60 & sleep 60", NULL);
    T_CHECK(r.timed_out && r.end == HFSB_PROC_UNKNOWN);
    T_CHECK(t_marked(JOB, 0) == 0);
    t_kill_marked(JOB);
    {
        static const char *const argv[] = {"/no/such", NULL};
        o.argv = argv;
        o.command = HFSB_LIT("");
        T_CHECK(hfsb_proc_run(&o, NULL, NULL, &r, NULL) == HFSB_NOT_FOUND);
    }
}

static void a_host_that_ignores_its_children_gets_unknown(void) {
    t_apart(with_ignored_children);
}

static void steal(int number) {
    int keep = errno;
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    errno = keep;
}

static void with_a_thief(void) {
    struct sigaction act;
    hfsb_proc_opts   o = HFSB_INIT;
    int              i;
    memset(&act, 0, sizeof act);
    act.sa_handler = steal;
    T_CHECK(sigaction(SIGCHLD, &act, NULL) == 0);
    for (i = 0; i < 50; i++) {
        hfsb_buf         out = HFSB_INIT;
        hfsb_proc_result r = t_run(&o, "echo out; exit 3", &out);
        T_CHECK(r.end == HFSB_PROC_UNKNOWN ||
                (r.end == HFSB_PROC_EXITED && r.exit_code == 3));
        T_STR(out, "out\n");
        hfsb_buf_free(&out);
    }
    o.timeout_ms = 100;
    o.grace_ms = 100;
    o.job = hfsb_cstr(JOB);
    T_CHECK(t_run(&o, "sleep 60 & trap '' TERM; sleep 60; sleep 60", NULL)
                .timed_out);
    t_kill_marked(JOB);
}

static void a_host_that_waits_for_every_child_gets_unknown(void) {
    t_apart(with_a_thief);
}

static void children_of_the_host_are_left_alone(void) {
    pid_t pid = fork();
    int   i, status = 0;
    if (pid == 0) _exit(17);
    T_CHECK(pid > 0);
    for (i = 0; i < (t_quick() ? 10 : 100); i++)
        T_CHECK(t_sh("exit 1").exit_code == 1);
    T_CHECK(waitpid(pid, &status, 0) == pid);
    T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 17);
}

static void a_broken_pipe_does_not_kill_the_host(void) {
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_buf         big = HFSB_INIT;
    struct sigaction act;
    sigset_t         pending;
    t_fill(&big, 'p', 1000000);
    T_CHECK(sigaction(SIGPIPE, NULL, &act) == 0 && act.sa_handler == SIG_DFL);
    o.input = hfsb_buf_str(&big);
    T_CHECK(t_run(&o, "exit 5", NULL).exit_code == 5);
    T_CHECK(t_run(&o, "exec 0<&-; sleep 0.1; exit 6", NULL).exit_code == 6);
    T_CHECK(t_run(&o, "head -c 10 >/dev/null; exit 7", NULL).exit_code == 7);
    T_CHECK(sigaction(SIGPIPE, NULL, &act) == 0 && act.sa_handler == SIG_DFL);
    T_CHECK(sigpending(&pending) == 0 && !sigismember(&pending, SIGPIPE));
    hfsb_buf_free(&big);
}

typedef struct signals {
    struct sigaction act[65];
    sigset_t         mask;
} signals;

static void read_signals(signals *s) {
    int i;
    memset(s, 0, sizeof *s);
    for (i = 1; i < 65; i++) (void)sigaction(i, NULL, &s->act[i]);
    T_CHECK(pthread_sigmask(SIG_BLOCK, NULL, &s->mask) == 0);
}

static void on_signal(int number) {
    (void)number;
}

static void signals_stay_as_they_were(void) {
    signals          before, after;
    struct sigaction act, old;
    sigset_t         some, old_mask;
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT;
    int              i;
    memset(&act, 0, sizeof act);
    act.sa_handler = on_signal;
    T_CHECK(sigaction(SIGUSR1, &act, &old) == 0);
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    sigaddset(&some, SIGTERM);
    T_CHECK(pthread_sigmask(SIG_BLOCK, &some, &old_mask) == 0);
    T_CHECK(signal(SIGQUIT, SIG_IGN) != SIG_ERR);
    read_signals(&before);
    o.input = HFSB_LIT("input");
    o.timeout_ms = 100;
    (void)t_run(&o, "sleep 60", NULL);
    o.timeout_ms = 0;
    (void)t_run(&o, "cat /proc/self/status | grep -E '^Sig(Blk|Ign|Cgt)'",
                &out);
    read_signals(&after);
    for (i = 1; i < 65; i++)
        T_CHECK(before.act[i].sa_handler == after.act[i].sa_handler &&
                before.act[i].sa_flags == after.act[i].sa_flags);
    for (i = 1; i < 65; i++)
        T_CHECK(sigismember(&before.mask, i) == sigismember(&after.mask, i));
    if (t_sees_processes())
        T_STR(out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
                   "SigCgt:\t0000000000000000\n");
    hfsb_buf_free(&out);
    T_CHECK(sigaction(SIGUSR1, &old, NULL) == 0);
    T_CHECK(signal(SIGQUIT, SIG_DFL) != SIG_ERR);
    T_CHECK(pthread_sigmask(SIG_SETMASK, &old_mask, NULL) == 0);
}

/* The timeout of a command that ignores TERM. One that was too slow to say so
   is started again with more time. */
static hfsb_proc_result times_out_stubborn(void) {
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_proc_result r;
    o.input = HFSB_LIT("");
    o.grace_ms = 50;
    o.job = hfsb_cstr(JOB);
    o.timeout_ms = 200;
    do {
        o.timeout_ms *= 2;
        r = t_run(&o, "trap '' TERM; echo; sleep 60 & sleep 60; sleep 60",
                  NULL);
    } while (!r.stdout_bytes && o.timeout_ms < 20000);
    return r;
}

/* Handlers without SA_RESTART in every call. */
static void interruptions_change_nothing(void) {
    struct sigaction act, old;
    struct itimerval often, off;
    hfsb_buf         big = HFSB_INIT;
    int              i;
    memset(&act, 0, sizeof act);
    memset(&off, 0, sizeof off);
    act.sa_handler = on_signal;
    often.it_interval.tv_sec = often.it_value.tv_sec = 0;
    often.it_interval.tv_usec = often.it_value.tv_usec =
        t_quick() ? 20000 : 700;
    T_CHECK(sigaction(SIGALRM, &act, &old) == 0);
    t_fill(&big, 'i', 3000000);
    T_CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (i = 0; i < 5; i++) {
        hfsb_proc_opts   o = HFSB_INIT;
        hfsb_proc_result r;
        o.input = hfsb_buf_str(&big);
        r = t_run(&o, "cat; exit 11", NULL);
        T_CHECK(r.end == HFSB_PROC_EXITED && r.exit_code == 11);
        T_CHECK(r.stdout_bytes == big.len);
        r = times_out_stubborn();
        T_CHECK(r.timed_out && r.signal == SIGKILL && !r.incomplete);
        T_CHECK(t_sh("sleep 60 & echo x").stdout_bytes == 2);
        T_CHECK(t_marked(JOB, 0) == 1);
        t_kill_marked(JOB);
    }
    T_CHECK(setitimer(ITIMER_REAL, &off, NULL) == 0);
    T_CHECK(sigaction(SIGALRM, &old, NULL) == 0);
    hfsb_buf_free(&big);
}

/* ---- threads ---- */

typedef struct worker {
    pthread_t thread;
    size_t    number, runs, bad;
} worker;

static void *work(void *user) {
    worker *w = (worker *)user;
    size_t  i;
    for (i = 0; i < w->runs; i++) {
        hfsb_proc_opts   o = HFSB_INIT;
        hfsb_buf         out = HFSB_INIT;
        hfsb_proc_result r;
        char             text[64], want[64];
        snprintf(text, sizeof text, "echo %zu.%zu; exit %zu", w->number, i,
                 i % 100);
        snprintf(want, sizeof want, "%zu.%zu\n", w->number, i);
        o.command = hfsb_cstr(text);
        if (hfsb_proc_run(&o, &out, NULL, &r, NULL) != HFSB_OK ||
            r.end != HFSB_PROC_EXITED || r.exit_code != (int)(i % 100) ||
            r.incomplete || !out.ptr || strcmp(out.ptr, want) != 0) {
            printf("%s: end %d %d, %lld ms, incomplete %d, %s\n", text,
                   (int)r.end, r.exit_code, r.duration_ms, (int)r.incomplete,
                   out.ptr ? out.ptr : "");
            w->bad++;
        }
        hfsb_buf_free(&out);
    }
    return NULL;
}

/* A descriptor that leaked into another command would show as a late end of
   output: incomplete. */
static void threads_do_not_disturb_each_other(void) {
    worker workers[8];
    size_t i;
    memset(workers, 0, sizeof workers);
    for (i = 0; i < 8; i++) {
        workers[i].number = i;
        workers[i].runs = t_quick() || T_SANITIZED ? 20 : 200;
        T_CHECK(pthread_create(&workers[i].thread, NULL, work,
                               &workers[i]) == 0);
    }
    for (i = 0; i < 8; i++) {
        T_CHECK(pthread_join(workers[i].thread, NULL) == 0);
        T_CHECK(workers[i].bad == 0);
    }
}

/* ---- between fork and exec ---- */

/* How often a process that is not this one allocated, or a handler ran. */
static volatile long *counters;
static volatile pid_t counted_host;

static void count_fork(void) {
    if (counted_host) counters[1]++;
}

#if defined(__GLIBC__) && !T_SANITIZED && !defined(__cplusplus)
#define COUNTS_MALLOC 1
extern void *__libc_malloc(size_t n);
extern void  __libc_free(void *p);
void        *malloc(size_t n);
void         free(void *p);

static void count_malloc(void) {
    if (counted_host && getpid() != counted_host) counters[0]++;
}

void *malloc(size_t n) {
    count_malloc();
    return __libc_malloc(n);
}

void free(void *p) {
    count_malloc();
    __libc_free(p);
}
#else
#define COUNTS_MALLOC 0
#endif

static void nothing_is_allocated_between_fork_and_exec(void) {
    static const char *const missing[] = {"/no/such/program", NULL};
    hfsb_proc_opts           o = HFSB_INIT;
    hfsb_proc               *proc;
    pid_t                    pid;
    counters = (volatile long *)mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    T_CHECK(counters != MAP_FAILED);
    T_CHECK(pthread_atfork(count_fork, NULL, NULL) == 0);
    counted_host = getpid();
    if (COUNTS_MALLOC) { /* the counter counts */
        pid = fork();
        if (pid == 0) {
            void *volatile p = malloc(100);
            free(p);
            _exit(0);
        }
        T_CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
        T_CHECK(counters[0] == 2 || t_quick());
        counters[0] = counters[1] = 0;
    }
    (void)t_sh("exit 0");
    o.argv = missing;
    T_CHECK(hfsb_proc_open(&o, &proc, NULL) == HFSB_NOT_FOUND);
    o.work_dir = "/no/such";
    T_CHECK(hfsb_proc_open(&o, &proc, NULL) == HFSB_NOT_FOUND);
#ifdef HFSBI_LINUX
    T_CHECK(counters[1] == 0 || T_SANITIZED || t_quick()); /* vfork */
#endif
    (void)t_sh("sleep 60 & echo x"); /* leaves a keeper */
    t_kill_marked(JOB);
    T_CHECK(counters[0] == 0);
    counted_host = 0;
}

/* ---- numbers that are used again ---- */

#if defined(HFSBI_LINUX) && defined(CLONE_NEWPID)
static bool next_pid(long pid) {
    char text[32];
    int  fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    int  n = snprintf(text, sizeof text, "%ld", pid - 1);
    bool ok = fd >= 0 && write(fd, text, (size_t)n) == n;
    if (fd >= 0) (void)close(fd);
    return ok;
}

/* The host takes the leader's status, and a stranger gets the leader's number,
   with a session and group of that number: it lives on and stays the host's to
   wait for, and those of the job do not live on. */
static void with_a_reused_number(int way) {
    hfsb_proc_opts o = HFSB_INIT;
    hfsb_proc     *proc;
    pid_t          leader, stranger;
    int            status;
    o.job = hfsb_cstr(JOB);
    o.grace_ms = 100;
    proc = t_start(&o, "setsid sleep 60 & sleep 0.1", NULL);
    leader = (pid_t)hfsb_proc_status(proc).pid;
    T_CHECK(waitpid(leader, &status, 0) == leader);
    T_CHECK(next_pid(leader));
    stranger = fork();
    if (stranger == 0) {
        (void)setsid();
        for (;;) t_sleep(1000);
    }
    T_CHECK(stranger == leader);
    t_sleep(50);
    if (way == 0) {
        hfsb_proc_result r;
        hfsb_proc_kill(proc);
        r = t_finish(proc, 1000);
        T_CHECK(r.end == HFSB_PROC_UNKNOWN && r.killed && !r.incomplete);
    } else if (way == 1) {
        (void)kill(stranger, SIGKILL);
        T_CHECK(t_ends(stranger, 1000));
    }
    hfsb_proc_close(proc);
    T_CHECK(t_runs(stranger) || way == 1);
    T_CHECK(t_marked(JOB, 0) == 0);
    (void)kill(stranger, SIGKILL);
    T_CHECK(waitpid(stranger, NULL, 0) == stranger);
}

static void in_a_namespace(void) {
    pid_t pid;
    int   status = 0;
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) {
        t_skip("no process namespaces");
        return;
    }
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        if (mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("proc", "/proc", "proc", 0, NULL) != 0 || !next_pid(300))
            _exit(77);
        with_a_reused_number(0);
        with_a_reused_number(1);
        with_a_reused_number(2);
        fflush(stdout);
        _exit(t_failed != 0);
    }
    T_CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    T_CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
    if (WEXITSTATUS(status) == 77) {
        t_skip("numbers of processes cannot be chosen");
    }
}

static void a_reused_number_is_not_signalled(void) {
    t_apart(in_a_namespace);
}

/* ---- a host that adopts orphans, one that may not kill ---- */

static void as_subreaper(void) {
    hfsb_proc_opts o = HFSB_INIT;
    hfsb_proc     *proc;
    size_t         adopted = 0;
    T_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
    o.job = hfsb_cstr(JOB);
    o.grace_ms = 100;
    /* more time, if a busy machine has not started the orphan by then */
    for (o.timeout_ms = 700; !adopted && o.timeout_ms < 20000;
         o.timeout_ms *= 4) {
        proc = t_start(&o, "(setsid sleep 60 &); sleep 60", NULL);
        T_CHECK(t_finish(proc, o.timeout_ms).timed_out);
        hfsb_proc_close(proc);
        T_CHECK(t_marked(JOB, 0) == 0);
        while (waitpid(-1, NULL, 0) > 0) adopted++;
    }
    T_CHECK(adopted >= 1); /* the host's to wait for, not ours */
    o.timeout_ms = 0;
    proc = t_start(&o, "setsid sleep 60 & echo x", NULL);
    T_CHECK(t_finish(proc, 1000).stdout_bytes == 2);
    T_CHECK(t_marked(JOB, 0) == 1);
    hfsb_proc_close(proc);
    t_kill_marked(JOB);
    while (waitpid(-1, NULL, 0) > 0) continue;
}

static void a_host_may_be_a_subreaper(void) {
    t_apart(as_subreaper);
}

/* As with a process that hangs in the kernel: signals change nothing. */
static void without_the_right_to_kill(void) {
    hfsb_proc_opts   o = HFSB_INIT;
    long long        start = hfsb_clock_ms();
    hfsb_proc       *proc;
    hfsb_proc_result r;
    o.timeout_ms = 100;
    o.grace_ms = 100;
    o.job = hfsb_cstr(JOB);
    proc = t_start(&o, "echo x; sleep 30", NULL);
    T_CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    r = t_finish(proc, 20000);
    T_CHECK(r.timed_out && r.incomplete && r.end == HFSB_PROC_RUNNING);
    T_CHECK(r.stdout_bytes == 2 && r.duration_ms >= 5200);
    T_CHECK(hfsb_proc_survivors(proc, NULL, 0) == 0);
    hfsb_proc_close(proc);
    T_CHECK(hfsb_clock_ms() - start < t_patience(20000));
}

static void kill_gives_up_after_a_while(void) {
    if (getuid() != 0 || !t_sees_processes()) {
        t_skip("needs root");
        return;
    }
    t_apart(without_the_right_to_kill);
    t_kill_marked(JOB);
}
#endif

/* ---- its input, and what it leaves running ---- */

static void a_command_does_not_read_the_hosts_input(void) {
    int  ends[2], keep = fcntl(0, F_DUPFD_CLOEXEC, 10);
    char text[16] = "";
    T_CHECK(pipe(ends) == 0 && write(ends[1], "mine\n", 5) == 5);
    T_CHECK(dup2(ends[0], 0) == 0);
    T_CHECK(t_sh("cat; head -n 1; read x").stdout_bytes == 0);
    T_CHECK(read(0, text, sizeof text) == 5 && !strcmp(text, "mine\n"));
    if (keep >= 0) (void)dup2(keep, 0);
    else (void)close(0);
    (void)close(keep);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static bool lists_child(bool ended, pid_t pid) {
    long   list[64];
    size_t n = hfsb_proc_children(ended, list, 64), i;
    for (i = 0; i < n; i++)
        if (list[i] == (long)pid) return true;
    return false;
}

static void children_of_the_host_are_listed(void) {
    int   i, ends[2];
    pid_t pid;
    if (!t_sees_processes()) return;
    T_CHECK(pipe(ends) == 0);
    pid = fork();
    if (pid == 0) {
        char byte;
        (void)close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1); /* until we close it */
    }
    T_CHECK(pid > 0);
    (void)close(ends[0]);
#ifdef HFSBI_LINUX
    T_CHECK(lists_child(false, pid) && !lists_child(true, pid));
    T_CHECK(!lists_child(false, getpid()) && !lists_child(false, getppid()));
#else
    T_CHECK(!lists_child(false, pid));
#endif
    (void)close(ends[1]);
    T_CHECK(t_ends(pid, 1000));
#ifdef HFSBI_LINUX
    /* a thread of a sanitizer may end after the first one */
    for (i = 0; i < 2000 && !lists_child(true, pid); i++) t_sleep(5);
    T_CHECK(lists_child(true, pid) && !lists_child(false, pid));
    T_CHECK(hfsb_proc_children(true, NULL, 0) == 0);
#endif
    T_CHECK(waitpid(pid, NULL, 0) == pid);
    T_CHECK(!lists_child(true, pid) && !lists_child(false, pid));
    (void)i;
}

#ifdef HFSBI_LINUX
/* True when pid, a daemon, is a child of this process. */
static bool is_adopted(pid_t pid) {
    int i;
    for (i = 0; i < 2000 && !lists_child(false, pid); i++) t_sleep(10);
    return i < 2000;
}

/* In a child of the test, since all of it is process-wide. */
static int adopts_orphans(void) {
    hfsb_orphans   orphans = HFSB_INIT;
    hfsb_buf       out = HFSB_INIT;
    hfsb_proc_opts o = HFSB_INIT;
    long           pid;
    int            i;
    hfsb_orphans_adopt();
    if (hfsb_orphans_reap(&orphans) >= 0) return 1;
    /* leaves a daemon of which nothing is known, and one that ends soon */
    o.quiet_ms = o.quiet_max_ms = 60000; /* until it has closed its output */
    (void)t_run(&o,
                "(sleep 0.1 >/dev/null 2>&1 &) ; (setsid env -i sh -c "
                "'echo $$; exec >&- 2>&- sleep 61' &) ; sleep 0.05",
                &out);
    pid = out.len ? strtol(out.ptr, NULL, 10) : 0;
    hfsb_buf_free(&out);
    if (pid <= 1 || !is_adopted((pid_t)pid)) return 2;
    for (i = 0; i < 2000; i++) { /* the short one is reaped */
        long list[4];
        t_sleep(10);
        if (hfsb_orphans_reap(&orphans) < 0) return 3;
        if (hfsb_proc_children(true, list, 4) == 0 &&
            hfsb_proc_children(false, list, 4) == 1)
            break;
    }
    if (i == 2000 || !lists_child(false, (pid_t)pid)) return 4;
    hfsb_orphans_kill(0, 60000);
    if (kill((pid_t)pid, 0) == 0) return 5;
    return hfsb_orphans_reap(&orphans) < 0 ? 0 : 6;
}

/* The one that hears TERM has time to end by itself. */
static int grants_orphans_a_grace(void) {
    hfsb_proc_opts o = HFSB_INIT;
    char           path[] = "/tmp/hfsb-orphan-XXXXXX", text[8] = "";
    char           command[200];
    int            fd = mkstemp(path);
    ssize_t        n;
    hfsb_orphans_adopt();
    snprintf(command, sizeof command,
             "setsid sh -c 'trap \"echo bye > %s; exit\" TERM; trap : INT; "
             "echo x; exec >&- 2>&-; while :; do sleep 0.01; done' &",
             path);
    /* until it has closed its output: then it hears TERM */
    o.quiet_ms = o.quiet_max_ms = 60000;
    (void)t_run(&o, command, NULL);
    hfsb_orphans_kill(60000, 60000);
    n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    (void)unlink(path);
    return n == 4 && strcmp(text, "bye\n") == 0 ? 0 : 1;
}

static void check_in_child(int (*fn)(void)) {
    int   status = -1;
    pid_t pid = fork();
    if (pid == 0) _exit(fn());
    T_CHECK(waitpid(pid, &status, 0) == pid);
    if (status) printf("status %d\n", status);
    T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_program_adopts_reaps_and_kills_orphans(void) {
    if (!t_sees_processes()) return;
    check_in_child(adopts_orphans);
    check_in_child(grants_orphans_a_grace);
}
#endif

static void a_background_child_lives_on(void) {
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_proc_result r;
    long long        start = hfsb_clock_ms();
    o.job = hfsb_cstr(JOB);
    r = t_run(&o, "sleep 60 & echo x", NULL);
    T_CHECK(hfsb_clock_ms() - start < t_patience(500));
    T_CHECK(r.exit_code == 0 && r.stdout_bytes == 2 && r.incomplete);
    T_CHECK(t_marked(JOB, 0) == 1);
    t_kill_marked(JOB);
}

int main(void) {
    size_t fds = t_open_fds();
    (void)t_job(); /* of this process, not of one it forks */
    t_limit_files(1024); /* many take long where each is closed by number */
    T_RUN(a_host_that_ignores_its_children_gets_unknown);
    T_RUN(a_host_that_waits_for_every_child_gets_unknown);
    T_RUN(children_of_the_host_are_left_alone);
    T_RUN(a_broken_pipe_does_not_kill_the_host);
    T_RUN(signals_stay_as_they_were);
    T_RUN(interruptions_change_nothing);
#if defined(HFSBI_LINUX) && defined(CLONE_NEWPID)
    T_RUN(a_reused_number_is_not_signalled);
    T_RUN(a_host_may_be_a_subreaper);
    T_RUN(kill_gives_up_after_a_while);
#endif
    T_RUN(a_command_does_not_read_the_hosts_input);
    T_RUN(children_of_the_host_are_listed);
#ifdef HFSBI_LINUX
    T_RUN(a_program_adopts_reaps_and_kills_orphans);
#endif
    T_RUN(a_background_child_lives_on);
    T_RUN(nothing_is_allocated_between_fork_and_exec);
    T_RUN(threads_do_not_disturb_each_other);
    T_CHECK(t_no_child() && t_open_fds() == fds);
    return T_END();
}
