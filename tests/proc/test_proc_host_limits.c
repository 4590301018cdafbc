/* test_proc_host_limits.c - commands inside somebody's program: its
   descriptors, memory and time are its own, and many commands run there. */
#include "../support/t_proc.h"

#define JOB t_job()

/* ---- descriptors ---- */

static void inheritable_descriptors_are_not_inherited(void) {
    hfsb_proc_opts o = HFSB_INIT;
    int            fds[50], i;
    if (!t_sees_processes()) return;
    for (i = 0; i < 50; i++) fds[i] = open("/dev/null", O_RDWR);
    T_CHECK(fcntl(fds[0], F_GETFD) == 0);
    for (i = 0; i < 3; i++) {
        hfsb_buf out = HFSB_INIT, text = HFSB_INIT;
        o.input = i == 1 ? HFSB_LIT("x") : HFSB_LIT("");
        o.any_length = i == 2;
        T_CHECK(hfsb_buf_append(&text, HFSB_LIT("exec ls /proc/self/fd #")) ==
                HFSB_OK);
        if (i == 2) t_fill(&text, '#', 150000);
        (void)t_run(&o, text.ptr, &out);
        T_STR(out, "0\n1\n2\n3\n"); /* 3 is the directory it lists */
        hfsb_buf_free(&out);
        hfsb_buf_free(&text);
    }
    for (i = 0; i < 50; i++) (void)close(fds[i]);
}

/* The slower ways, for systems without the first. */
static void every_way_to_close_descriptors_works(void) {
    int way;
    if (t_valgrind()) t_skip("not under valgrind");
    for (way = 0; way < 3 && !t_valgrind(); way++) {
        pid_t pid;
        int   status = 0;
        fflush(stdout);
        pid = fork();
        if (pid == 0) {
            int i, bad = 0, fds[20];
            for (i = 0; i < 20; i++) fds[i] = open("/dev/null", O_RDWR);
            if (dup2(fds[0], 500) != 500) _exit(90);
#if defined(HFSBI_LINUX) && !defined(HFSBI_SPLIT)
            if (way == 1 && !hfsbi_child_close_listed(3)) _exit(91);
#endif
            if (way == 2) {
                struct rlimit limit;
                limit.rlim_cur = limit.rlim_max = 501;
                if (setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(92);
            }
            if (way != 1) hfsbi_child_close(3);
#if !defined(HFSBI_LINUX) || defined(HFSBI_SPLIT)
            if (way == 1) hfsbi_child_close(3);
#endif
            for (i = 3; i < 600; i++) bad += fcntl(i, F_GETFD) >= 0;
            for (i = 0; i < 3; i++) bad += fcntl(i, F_GETFD) < 0;
            _exit(bad);
        }
        T_CHECK(waitpid(pid, &status, 0) == pid);
        T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static int log_fd = -1;

static void with_standard_closed(void) {
    size_t mask;
    char   text[200] = "";
    for (mask = 0; mask < 8; mask++) {
        hfsb_proc_opts   o = HFSB_INIT;
        hfsb_proc_result r = HFSB_INIT;
        hfsb_buf         out = HFSB_INIT, err_out = HFSB_INIT;
        size_t           i;
        for (i = 0; i < 3; i++)
            if (mask & (1u << i)) (void)close((int)i);
            else (void)dup2(log_fd, (int)i);
        o.command = HFSB_LIT("cat; echo o; echo e >&2");
        o.input = HFSB_LIT("in ");
        if (hfsb_proc_run(&o, &out, &err_out, &r, NULL) != HFSB_OK ||
            !out.ptr || strcmp(out.ptr, "in o\n") != 0 || !err_out.ptr ||
            strcmp(err_out.ptr, "e\n") != 0 || r.incomplete)
            snprintf(text, sizeof text, "mask %zu", mask);
        for (i = 0; i < 3; i++)
            if ((mask & (1u << i)) && fcntl((int)i, F_GETFD) >= 0)
                snprintf(text, sizeof text, "mask %zu: %zu used", mask, i);
        hfsb_buf_free(&out);
        hfsb_buf_free(&err_out);
    }
    (void)dup2(log_fd, 1);
    if (*text) printf("%s\n", text);
    T_CHECK(!*text);
}

static void closed_standard_descriptors_do_no_harm(void) {
    log_fd = fcntl(1, F_DUPFD_CLOEXEC, 100);
    t_apart(with_standard_closed);
    (void)close(log_fd);
}

/* Each call that makes a descriptor fails in turn. */
static void with_few_descriptors(void) {
    hfsb_buf text = HFSB_INIT;
    size_t   used = 0, extra, kind, good = 0, failed = 0;
    t_fill(&text, ' ', 150000);
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("echo hi")) == HFSB_OK);
    /* the limit is the shell's too, and it wants some above 10 */
    while (used < 20) used = (size_t)open("/dev/null", O_RDONLY | O_CLOEXEC);
    used++;
    for (kind = 0; kind < 3; kind++)
        for (extra = 0; extra < 14; extra++) {
            hfsb_proc_opts   o = HFSB_INIT;
            hfsb_buf         out = HFSB_INIT;
            hfsb_proc_result r = HFSB_INIT;
            hfsb_err         err;
            hfsb_status      st;
            size_t           before = t_open_fds();
            o.command = HFSB_LIT("echo hi");
            if (kind == 1) o.input = HFSB_LIT("x");
            if (kind == 2) o.command = hfsb_buf_str(&text);
            o.any_length = true;
            o.merge_stderr = kind == 1;
            t_limit_files(used + extra);
            st = hfsb_proc_run(&o, &out, NULL, &r, &err);
            t_limit_files(1024);
            T_CHECK(t_open_fds() == before && t_no_child());
            if (st == HFSB_OK) {
                good++;
                T_STR(out, "hi\n");
                T_CHECK(r.end == HFSB_PROC_EXITED && !r.incomplete);
            } else {
                failed++;
                T_CHECK(st == HFSB_BUSY);
                if (!strstr(err.msg, "too many open files"))
                    printf("%zu %zu: %s\n", kind, extra, err.msg);
                T_CHECK(strstr(err.msg, "too many open files") != NULL);
            }
            hfsb_buf_free(&out);
        }
    T_CHECK(good >= 9 && failed >= 18);
    hfsb_buf_free(&text);
}

/* What can be signalled is, though nothing can be looked at. */
static void kill_with_few_descriptors(void) {
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_proc_result r;
    hfsb_proc       *proc;
    t_output         output = HFSB_INIT;
    o.job = hfsb_cstr(JOB);
    o.grace_ms = 100;
    proc = t_start(&o,
                   "trap '' TERM; echo ready; sleep 60 & sleep 60; sleep 60",
                   &output);
    T_CHECK(t_until(proc, &output, "ready"));
    t_sleep(50);
    t_limit_files(3);
    hfsb_proc_kill(proc);
    r = t_finish(proc, 3000);
    t_limit_files(1024);
    T_CHECK(r.killed && r.signal == SIGKILL);
    hfsb_proc_close(proc);
    t_output_free(&output);
    T_CHECK(t_marked(JOB, 0) == 0);
    t_kill_marked(JOB);
}

static void open_reports_a_lack_of_descriptors(void) {
    t_apart(with_few_descriptors);
    t_apart(kill_with_few_descriptors);
}

static void with_no_process_left(void) {
    hfsb_proc_opts o = HFSB_INIT;
    struct rlimit  limit;
    hfsb_proc     *proc;
    hfsb_err       err;
    size_t         fds = t_open_fds();
    if (getuid() == 0)
        T_CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    limit.rlim_cur = limit.rlim_max = 0;
    T_CHECK(setrlimit(RLIMIT_NPROC, &limit) == 0);
    o.command = HFSB_LIT("true");
    o.input = HFSB_LIT("x");
    T_CHECK(hfsb_proc_open(&o, &proc, &err) == HFSB_BUSY);
    T_STR(hfsb_cstr(err.msg),
          "Cannot start a process: resource temporarily unavailable");
    T_CHECK(t_open_fds() == fds && t_no_child());
}

static void open_reports_a_lack_of_processes(void) {
    t_apart(with_no_process_left);
}

/* ---- memory, time and numbers of runs ---- */

static size_t many(size_t normally, size_t quick) {
    if (t_quick()) return quick;
    return t_long() ? normally * 5 : normally;
}

static long rss_kb(void) {
    hfsb_buf    text = HFSB_INIT;
    const char *at;
    long        kb = 0;
    if (t_read_file("/proc/self/status", &text) && text.ptr &&
        (at = strstr(text.ptr, "VmRSS:")) != NULL)
        kb = strtol(at + 6, NULL, 10);
    hfsb_buf_free(&text);
    return kb;
}

static void endless_output_takes_no_memory(void) {
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT;
    hfsb_proc_result r;
    struct rusage    before, after;
    (void)t_sh("yes | head -c 100000");
    out.max = 65536;
    T_CHECK(getrusage(RUSAGE_SELF, &before) == 0);
    o.timeout_ms = 1000;
    r = t_run(&o, "yes", &out);
    T_CHECK(getrusage(RUSAGE_SELF, &after) == 0);
    T_CHECK(r.timed_out && r.stdout_bytes > 1000000 && out.len == 65536);
    T_CHECK(T_SANITIZED || t_quick() ||
            after.ru_maxrss < before.ru_maxrss + 1100);
    hfsb_buf_free(&out);
}

static long cpu_ms(void) {
    struct rusage use;
    T_CHECK(getrusage(RUSAGE_SELF, &use) == 0);
    return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000 +
           (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
}

static void waiting_uses_no_cpu(void) {
    long before = cpu_ms();
    T_CHECK(t_sh("exec 0<&- 1>&- 2>&-; sleep 1; exit 2").exit_code == 2);
    T_CHECK(cpu_ms() - before < (t_quick() || T_SANITIZED ? 700 : 200));
}

static void many_runs_leave_nothing(void) {
    size_t i, runs = many(1000, 50), fds = 0;
    long   rss = 0;
    for (i = 0; i < runs; i++) {
        if (i == 20) fds = t_open_fds(), rss = rss_kb();
        T_CHECK(t_sh("true").end == HFSB_PROC_EXITED);
    }
    T_CHECK(t_open_fds() == fds && t_no_child());
    T_CHECK(T_SANITIZED || t_quick() || rss_kb() < rss + 600);
}

static void output_is_never_short(void) {
    size_t i, runs = many(2000, 50), bad = 0;
    for (i = 0; i < runs; i++) {
        hfsb_proc_opts o = HFSB_INIT;
        hfsb_buf       out = HFSB_INIT;
        (void)t_run(&o, "printf hello", &out);
        bad += out.len != 5 || memcmp(out.ptr, "hello", 5) != 0;
        hfsb_buf_free(&out);
    }
    T_CHECK(bad == 0);
}

/* ---- many at once ---- */

enum { CROWD = 200 };

static size_t watch_all(hfsb_proc **procs, struct pollfd *list,
                        long long *left) {
    long long now = hfsb_clock_ms();
    size_t    n = 0, i, k;
    *left = 1000;
    for (i = 0; i < CROWD; i++) {
        hfsb_watch watch[HFSB_PROC_WATCHES];
        size_t     count = hfsb_proc_watch(procs[i], watch);
        long long  at = hfsb_proc_deadline(procs[i]);
        if (at >= 0 && at - now < *left) *left = at > now ? at - now : 0;
        for (k = 0; k < count; k++) {
            list[n].fd = watch[k].fd;
            list[n].revents = 0;
            list[n++].events = watch[k].readable ? POLLIN : POLLOUT;
        }
    }
    return n;
}

static void one_host_loop_drives_many_commands(void) {
    static struct pollfd list[CROWD * HFSB_PROC_WATCHES];
    hfsb_proc           *procs[CROWD];
    bool                 done[CROWD];
    long long            end = hfsb_clock_ms() + t_patience(10000), left;
    size_t               i, open = 0, fds = t_open_fds();
    memset(done, 0, sizeof done);
    for (i = 0; i < CROWD; i++, open++) {
        hfsb_proc_opts o = HFSB_INIT;
        char           text[64];
        o.input = HFSB_LIT("some input");
        o.timeout_ms = i % 10 == 9 ? 200 : 0;
        o.grace_ms = 100;
        snprintf(text, sizeof text, "cat; sleep 0.%zu; exit %zu",
                 i % 10 == 9 ? 99 : 3 + i % 4, i);
        procs[i] = t_start(&o, text, NULL);
    }
    while (open > 0 && hfsb_clock_ms() < end) {
        size_t n = watch_all(procs, list, &left);
        (void)poll(list, (nfds_t)n, (int)left);
        for (i = 0; i < CROWD; i++)
            if (!done[i] && hfsb_proc_step(procs[i])) done[i] = true, open--;
    }
    T_CHECK(open == 0);
    for (i = 0; i < CROWD; i++) {
        hfsb_proc_result r = hfsb_proc_status(procs[i]);
        T_CHECK(r.stdout_bytes == 10 || (i % 10 == 9 && r.timed_out));
        if (i % 10 == 9) T_CHECK(r.timed_out || r.exit_code == (int)i);
        else T_CHECK(r.exit_code == (int)i && !r.timed_out);
        hfsb_proc_close(procs[i]);
    }
    T_CHECK(t_open_fds() == fds && t_no_child());
}

int main(void) {
    size_t fds = t_open_fds();
    (void)t_job(); /* of this process, not of one it forks */
    t_limit_files(1024); /* many take long where each is closed by number */
    T_RUN(inheritable_descriptors_are_not_inherited);
    T_RUN(every_way_to_close_descriptors_works);
    T_RUN(closed_standard_descriptors_do_no_harm);
    T_RUN(open_reports_a_lack_of_descriptors);
    T_RUN(open_reports_a_lack_of_processes);
    T_RUN(endless_output_takes_no_memory);
    T_RUN(waiting_uses_no_cpu);
    T_RUN(many_runs_leave_nothing);
    T_RUN(output_is_never_short);
    T_RUN(one_host_loop_drives_many_commands);
    T_CHECK(t_no_child() && t_open_fds() == fds);
    return T_END();
}
