/* test_tools_host.c - the tools inside somebody's program: threads, signals,
   children and descriptors that are none of their business. */
#include "../support/t_tools.h"

#include <sys/time.h>

/* ---- threads; what they find is counted, since T_CHECK is not for them -- */

typedef struct worker {
    hfsb_tools *tools;
    int         number, rounds;
    int         wrong; /* replies that were not as they should be */
    char        note[300];
} worker;

static void expect(worker *w, bool ok, const tt_reply *r, const char *what) {
    if (ok && r->sane) return;
    if (!w->wrong++)
        snprintf(w->note, sizeof w->note, "%s: \"%.100s\" \"%.100s\"", what,
                 r->res.output.ptr ? r->res.output.ptr : "",
                 r->res.error.ptr ? r->res.error.ptr : "");
}

static bool output_is(const tt_reply *r, const char *text) {
    return hfsb_str_equal(hfsb_buf_str(&r->res.output), hfsb_cstr(text));
}

/* One round of everything: bash with input, write, read, edit, a job that is
   read and killed. */
static void do_round(worker *w, int round, tt_reply *r) {
    char json[400], want[200], id[100];
    snprintf(json, sizeof json,
             "{\"command\":\"cat; echo %d >&2; ls /proc/self/fd | wc -l; exit "
             "%d\",\"stdin\":\"%d:%d\\n\"}",
             round, round % 3, w->number, round);
    snprintf(want, sizeof want, "%d:%d\n4\n%d\n", w->number, round, round);
    tt_do(r, w->tools, "bash", hfsb_cstr(json), NULL);
    expect(w, r->res.success == (round % 3 == 0) && output_is(r, want), r,
           "bash");
    snprintf(json, sizeof json, "{\"path\":\"t%d.json\",\"content\":\"[%d]\"}",
             w->number, round);
    tt_do(r, w->tools, "write", hfsb_cstr(json), NULL);
    expect(w, r->res.success, r, "write");
    snprintf(json, sizeof json,
             "{\"path\":\"t%d.json\",\"old_str\":\"[\",\"new_str\":\"[0,\"}",
             w->number);
    tt_do(r, w->tools, "edit", hfsb_cstr(json), NULL);
    expect(w, r->res.success, r, "edit");
    snprintf(json, sizeof json, "{\"path\":\"t%d.json\"}", w->number);
    snprintf(want, sizeof want, "1\t[0,%d]", round);
    tt_do(r, w->tools, "read", hfsb_cstr(json), NULL);
    expect(w, output_is(r, want), r, "read");
    tt_do(r, w->tools, "bash",
          HFSB_LIT("{\"command\":\"echo up; exec sleep 60\",\"background\":"
                   "true}"),
          NULL);
    expect(w, r->res.success, r, "background");
    snprintf(id, sizeof id, "%s", tt_text(r, "id").ptr);
    snprintf(json, sizeof json, "{\"id\":\"%s\",\"wait_ms\":20000}", id);
    tt_do(r, w->tools, "bash_output", hfsb_cstr(json), NULL);
    expect(w, output_is(r, "up\n") && tt_flag(r, "running"), r, "output");
    snprintf(json, sizeof json, "{\"id\":\"%s\"}", id);
    tt_do(r, w->tools, "kill", hfsb_cstr(json), NULL);
    expect(w, tt_says(&r->res.output, "Killed 1 process(es): ["), r, "kill");
}

static void *work(void *arg) {
    worker  *w = (worker *)arg;
    tt_reply r = HFSB_INIT;
    int      i;
    for (i = 0; i < w->rounds; i++) do_round(w, i, &r);
    tt_drop(&r);
    return NULL;
}

static void run_workers(worker *w, int count, void *(*fn)(void *)) {
    pthread_t thread[64];
    int       i;
    for (i = 0; i < count; i++)
        if (pthread_create(&thread[i], NULL, fn, &w[i])) abort();
    for (i = 0; i < count; i++) {
        pthread_join(thread[i], NULL);
        T_CHECK(w[i].wrong == 0);
        if (w[i].wrong)
            printf("  thread %d: %d wrong; %s\n", i, w[i].wrong, w[i].note);
    }
}

static int few(void) {
    return TT_SANITIZED || t_quick() ? 4 : 15;
}

static void sessions_in_threads_do_not_meet(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    worker          w[4];
    int             i;
    memset(w, 0, sizeof w);
    opts.session = true;
    opts.grace_ms = 300;
    for (i = 0; i < 4; i++) {
        w[i].tools = tt_open(&opts);
        w[i].number = i;
        w[i].rounds = few();
    }
    run_workers(w, 4, work);
    for (i = 0; i < 4; i++) {
        T_CHECK(hfsb_tools_busy(w[i].tools) == 0);
        hfsb_tools_close(w[i].tools);
    }
}

static void one_session_serves_many_threads(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    worker          w[4];
    int             i;
    memset(w, 0, sizeof w);
    opts.session = true;
    opts.grace_ms = 300;
    for (i = 0; i < 4; i++) {
        char name[20];
        snprintf(name, sizeof name, "t%d.json", i);
        unlink(name);
    }
    tools = tt_open(&opts);
    for (i = 0; i < 4; i++) {
        w[i].tools = tools;
        w[i].number = i;
        w[i].rounds = few();
    }
    run_workers(w, 4, work);
    T_CHECK(hfsb_tools_busy(tools) == 0);
    hfsb_tools_close(tools);
}

/* A thread that does nothing but poll, as a host's loop would. */
static void *poll_on(void *arg) {
    worker *w = (worker *)arg;
    while (hfsb_tools_busy(w->tools) || w->rounds-- > 0)
        hfsb_tools_poll(w->tools, 20);
    return NULL;
}

static void *work_or_poll(void *arg) {
    return ((worker *)arg)->number == 3 ? poll_on(arg) : work(arg);
}

static void a_loop_may_poll_meanwhile(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    worker          w[4];
    int             i;
    memset(w, 0, sizeof w);
    opts.grace_ms = 300;
    w[0].tools = tt_open(&opts);
    for (i = 0; i < 4; i++) {
        w[i].tools = w[0].tools;
        w[i].number = i;
        w[i].rounds = few();
    }
    run_workers(w, 4, work_or_poll);
    hfsb_tools_close(w[0].tools);
}

/* Five commands each; more threads than may run at once. */
static void *run_five(void *arg) {
    worker  *w = (worker *)arg;
    tt_reply r = HFSB_INIT;
    int      i;
    for (i = 0; i < 5; i++) {
        char json[200], want[40];
        snprintf(json, sizeof json, "{\"command\":\"sleep 0.%d; echo %d.%d\"}",
                 w->number % 4, w->number, i);
        snprintf(want, sizeof want, "%d.%d\n", w->number, i);
        tt_do(&r, w->tools, "bash", hfsb_cstr(json), NULL);
        expect(w, output_is(&r, want), &r, "bash");
    }
    tt_drop(&r);
    return NULL;
}

static void hundreds_of_commands_from_many_threads(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    worker          w[40];
    int             i;
    memset(w, 0, sizeof w);
    opts.max_running = 16;
    w[0].tools = tt_open(&opts);
    for (i = 0; i < 40; i++) {
        w[i].tools = w[0].tools;
        w[i].number = i;
    }
    run_workers(w, 40, run_five);
    hfsb_tools_close(w[0].tools);
}

/* All threads call with the same key: it runs once, all get its result. */
static void *run_keyed(void *arg) {
    worker        *w = (worker *)arg;
    hfsb_call_opts opts = HFSB_INIT;
    tt_reply       r = HFSB_INIT;
    int            i;
    for (i = 0; i < 5; i++) {
        char key[20];
        snprintf(key, sizeof key, "k%d", i);
        opts.key = hfsb_cstr(key);
        tt_do(&r, w->tools, "bash",
              HFSB_LIT("{\"command\":\"sleep 0.05; echo x >> keyed\"}"),
              &opts);
        expect(w, r.st == HFSB_OK && r.res.success, &r, "keyed");
    }
    tt_drop(&r);
    return NULL;
}

static void a_key_holds_across_threads(void) {
    worker w[8];
    int    i;
    memset(w, 0, sizeof w);
    w[0].tools = tt_open(NULL);
    for (i = 1; i < 8; i++) w[i].tools = w[0].tools;
    run_workers(w, 8, run_keyed);
    TT_FILE("keyed", "x\nx\nx\nx\nx\n");
    hfsb_tools_close(w[0].tools);
}

/* While one thread waits for a long command, which ends after the others are
   done, these get theirs. */
static void *short_or_long(void *arg) {
    worker  *w = (worker *)arg;
    tt_reply r = HFSB_INIT;
    int      i;
    if (w->number == 0) {
        tt_do(&r, w->tools, "bash",
              HFSB_LIT("{\"command\":\"echo $$ > long; "
                       "until [ -e one -a -e two ]; do sleep 0.05; done\"}"),
              NULL);
        expect(w, r.res.success, &r, "long");
    } else {
        (void)tt_pid_in("long");
        for (i = 0; i < 5; i++) {
            tt_do(&r, w->tools, "bash", HFSB_LIT("{\"command\":\"true\"}"),
                  NULL);
            expect(w, r.res.success, &r, "short");
        }
        tt_put(w->number == 1 ? "one" : "two", HFSB_LIT(""));
    }
    tt_drop(&r);
    return NULL;
}

static void short_commands_do_not_wait_for_long_ones(void) {
    worker w[3];
    int    i;
    memset(w, 0, sizeof w);
    w[0].tools = tt_open(NULL);
    for (i = 0; i < 3; i++) {
        w[i].tools = w[0].tools;
        w[i].number = i;
    }
    run_workers(w, 3, short_or_long);
    hfsb_tools_close(w[0].tools);
}

/* A thread that waits for a command is woken when another kills it, and the
   one who drove it leaves no one stranded. */
static void *run_long(void *arg) {
    worker  *w = (worker *)arg;
    tt_reply r = HFSB_INIT;
    char     json[200];
    snprintf(json, sizeof json, "{\"command\":\"%s\",\"id\":\"w%d\"}",
             w->number ? "exec sleep 60"
                       : "until [ -e go ]; do sleep 0.05; done; echo x",
             w->number);
    tt_do(&r, w->tools, "bash", hfsb_cstr(json), NULL);
    if (w->number)
        expect(w, tt_says(&r.res.error, "Exit code -15"), &r, "killed");
    else expect(w, output_is(&r, "x\n"), &r, "short");
    tt_drop(&r);
    return NULL;
}

static void *kill_later(void *arg) {
    worker  *w = (worker *)arg;
    tt_reply r = HFSB_INIT;
    int      i;
    for (i = 0; i < 2000 && hfsb_tools_busy(w->tools) < 4; i++)
        tt_sleep_ms(10);
    tt_put("go", HFSB_LIT("")); /* for the short one */
    for (i = 0; i < 2000 && hfsb_tools_busy(w->tools) > 3; i++)
        tt_sleep_ms(10);
    tt_do(&r, w->tools, "kill", HFSB_LIT("{\"id\":\"w1\"}"), NULL);
    expect(w, tt_says(&r.res.output, "Killed 1"), &r, "kill one");
    tt_do(&r, w->tools, "kill", HFSB_LIT("{}"), NULL);
    expect(w, tt_says(&r.res.output, "Killed 2"), &r, "kill all");
    tt_drop(&r);
    return NULL;
}

static void *run_long_or_kill(void *arg) {
    return ((worker *)arg)->number == 4 ? kill_later(arg) : run_long(arg);
}

static void waiting_threads_are_woken(void) {
    worker    w[5];
    int       i;
    long long begin = hfsb_clock_ms();
    memset(w, 0, sizeof w);
    w[0].tools = tt_open(NULL);
    for (i = 0; i < 5; i++) {
        w[i].tools = w[0].tools;
        w[i].number = i;
    }
    run_workers(w, 5, run_long_or_kill);
    T_CHECK(hfsb_clock_ms() - begin < 15000);
    hfsb_tools_close(w[0].tools);
}

/* ---- a program with a life of its own ---- */

static volatile sig_atomic_t host_children, host_alarms;
static volatile sig_atomic_t host_stolen;

static void on_child(int number) {
    (void)number;
    host_children++;
}
static void on_alarm(int number) {
    (void)number;
    host_alarms++;
}
static void steal_children(int number) {
    int saved = errno;
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) host_stolen++;
    errno = saved;
}

static void set_handler(int number, void (*fn)(int), struct sigaction *old) {
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = fn; /* without SA_RESTART: the hard case */
    sigaction(number, &sa, old);
}

/* Handlers and mask, as text: the lines of /proc/self/status. */
static void signal_state(hfsb_buf *out) {
    hfsb_buf all = HFSB_INIT;
    hfsb_str rest, line;
    T_CHECK(t_read_file("/proc/self/status", &all));
    for (rest = hfsb_buf_str(&all); hfsb_text_line(&rest, &line, NULL);)
        if (hfsb_str_starts(line, HFSB_LIT("SigBlk")) ||
            hfsb_str_starts(line, HFSB_LIT("SigIgn")) ||
            hfsb_str_starts(line, HFSB_LIT("SigCgt")))
            T_CHECK(hfsb_buf_append(out, line) == HFSB_OK);
    hfsb_buf_free(&all);
}

static pid_t host_child(int code, int ms) {
    pid_t pid = fork();
    if (pid == 0) {
        tt_sleep_ms(ms);
        _exit(code);
    }
    return pid;
}

static void a_host_loses_nothing(void) {
    hfsb_buf         before = HFSB_INIT, after = HFSB_INIT;
    hfsb_tools      *tools;
    tt_reply         r = HFSB_INIT;
    struct sigaction old, now;
    pid_t            child[3];
    int              fds[50], i, status;
    sigset_t         block, mask;
    char             cwd[200], was[200];
    set_handler(SIGCHLD, on_child, &old);
    sigemptyset(&block);
    sigaddset(&block, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &block, &mask);
    signal_state(&before);
    T_CHECK(getcwd(was, sizeof was) != NULL);
    for (i = 0; i < 50; i++) fds[i] = open("/dev/null", O_RDONLY);
    child[0] = host_child(7, 0);
    child[1] = host_child(8, 600);
    child[2] = host_child(9, 60000);
    host_children = 0;
    tools = tt_open(NULL);
    for (i = 0; i < (t_quick() ? 20 : 100); i++) {
        tt_call(&r, tools, "bash", "command=s",
                i % 2 ? "ls /proc/self/fd | wc -l" : "echo 4");
        TT_OK(&r, "4\n");
    }
    tt_call(&r, tools, "bash", "command=s timeout=j", "sleep 60", "0.3");
    TT_FAIL(&r, "Timeout");
    tt_call(&r, tools, "bash", "command=s background=j", "sleep 60", "true");
    tt_call(&r, tools, "kill", "");
    hfsb_tools_close(tools);
    /* its children are still its own */
    T_CHECK(waitpid(child[0], &status, 0) == child[0] &&
            WEXITSTATUS(status) == 7);
    while (waitpid(child[1], &status, 0) < 0 && errno == EINTR) {
    }
    T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 8);
    T_CHECK(kill(child[2], 0) == 0);
    T_CHECK(waitpid(child[2], &status, WNOHANG) == 0);
    kill(child[2], SIGKILL);
    while (waitpid(child[2], &status, 0) < 0 && errno == EINTR) {
    }
    T_CHECK(WIFSIGNALED(status));
    for (i = 0; i < 50; i++) {
        T_CHECK(fcntl(fds[i], F_GETFD) == 0); /* open, and inheritable */
        close(fds[i]);
    }
    signal_state(&after);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&before), hfsb_buf_str(&after)));
    sigaction(SIGCHLD, NULL, &now);
    T_CHECK(now.sa_handler == on_child &&
            !(now.sa_flags & (SA_RESTART | SA_NOCLDWAIT | SA_SIGINFO)));
    T_CHECK(getcwd(cwd, sizeof cwd) && !strcmp(cwd, was));
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    sigaction(SIGCHLD, &old, NULL);
    hfsb_buf_free(&before);
    hfsb_buf_free(&after);
    tt_drop(&r);
}

/* A status that the host took away is not known: never success. */
static void a_stolen_status_is_not_made_up(void) {
    static void (*const handlers[])(int) = {SIG_IGN, steal_children};
    struct sigaction old;
    tt_reply         r = HFSB_INIT;
    size_t           i;
    int              k;
    for (i = 0; i < 2; i++) {
        hfsb_tools *tools = tt_open(NULL);
        int         unknown = 0;
        set_handler(SIGCHLD, handlers[i], &old);
        for (k = 0; k < 5; k++) {
            tt_call(&r, tools, "bash", "command=s timeout=j",
                    k % 2 ? "echo x; exit 3" : "echo x", "10");
            T_CHECK(output_is(&r, "x\n") && !tt_flag(&r, "timed_out"));
            /* it may have been quicker than the handler */
            if (i == 0) T_CHECK(!r.res.success);
            if (tt_says(&r.res.error, "unknown") ||
                tt_says(&r.res.error, "not known"))
                unknown++;
            else if (k % 2) TT_FAIL(&r, "Exit code 3");
            else T_CHECK(r.res.success);
        }
        T_CHECK(i == 1 || unknown == 5);
        tt_call(&r, tools, "bash", "command=s timeout=j", "sleep 60", "0.3");
        T_STR(r.res.error, "Timeout after 0.3s");
        sigaction(SIGCHLD, &old, NULL);
        hfsb_tools_close(tools);
    }
    tt_drop(&r);
}

static void interruptions_do_no_harm(void) {
    struct sigaction old;
    struct itimerval tick, off;
    hfsb_tools_opts  opts = HFSB_INIT;
    hfsb_tools      *tools;
    tt_reply         r = HFSB_INIT;
    worker           w;
    int              i;
    opts.grace_ms = 300;
    tools = tt_open(&opts);
    memset(&w, 0, sizeof w);
    memset(&off, 0, sizeof off);
    memset(&tick, 0, sizeof tick);
    tick.it_interval.tv_usec = tick.it_value.tv_usec = 3000;
    w.tools = tools;
    w.number = 77;
    set_handler(SIGALRM, on_alarm, &old);
    host_alarms = 0;
    setitimer(ITIMER_REAL, &tick, NULL);
    for (i = 0; i < few(); i++) do_round(&w, i, &r);
    tt_do(&r, tools, "bash",
          HFSB_LIT("{\"command\":\"sleep 0.3; head -c 300000 /dev/zero | tr "
                   "'\\\\0' a\"}"),
          NULL);
    setitimer(ITIMER_REAL, &off, NULL);
    T_CHECK(r.res.success && tt_int(&r, "total_chars") == 300000);
    T_CHECK(w.wrong == 0);
    if (w.wrong) printf("  %s\n", w.note);
    T_CHECK(host_alarms > 20);
    set_handler(SIGALRM, SIG_IGN, NULL); /* one may still be on its way */
    sigaction(SIGALRM, &old, NULL);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* In a child, since it cannot print: the standard descriptors are closed. */
static void closed_standard_descriptors_do_no_harm(void) {
    pid_t pid = fork();
    int   status = -1;
    if (pid == 0) {
        tt_reply r = HFSB_INIT;
        worker   w;
        memset(&w, 0, sizeof w);
        if (hfsb_tools_open(NULL, &w.tools, NULL) != HFSB_OK) _exit(99);
        close(0);
        close(1);
        close(2);
        do_round(&w, 0, &r);
        tt_do(&r, w.tools, "bash",
              HFSB_LIT("{\"command\":\"yes | head -c 30000\"}"), NULL);
        if (!tt_flag(&r, "truncated")) w.wrong++;
        if (r.res.success) unlink(tt_text(&r, "spill_path").ptr);
        tt_drop(&r);
        hfsb_tools_close(w.tools);
        if (hfsb_tools_open(NULL, &w.tools, NULL) != HFSB_OK) _exit(98);
        do_round(&w, 0, &r);
        tt_drop(&r);
        hfsb_tools_close(w.tools);
        if (fcntl(0, F_GETFD) >= 0 || fcntl(1, F_GETFD) >= 0) w.wrong++;
        _exit(w.wrong);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Fewer and fewer descriptors: an error that says so, nothing lost. */
static void too_few_descriptors_are_an_error(void) {
    struct rlimit old, tight;
    hfsb_tools   *tools = tt_open(NULL);
    tt_reply      r = HFSB_INIT;
    size_t        before;
    rlim_t        n;
    int           failed = 0, worked = 0;
    tt_call(&r, tools, "bash", "command=s", "true");
    before = tt_count_fds();
    getrlimit(RLIMIT_NOFILE, &old);
    tight = old;
    for (n = 3; n < 24; n++) {
        tight.rlim_cur = n;
        setrlimit(RLIMIT_NOFILE, &tight);
        tt_do(&r, tools, "bash", HFSB_LIT("{\"command\":\"echo x\"}"), NULL);
        setrlimit(RLIMIT_NOFILE, &old);
        T_CHECK(r.sane);
        if (r.res.success) {
            T_CHECK(output_is(&r, "x\n"));
            worked++;
        } else {
            failed++;
        }
        T_CHECK(tt_count_fds() == before);
    }
    T_CHECK(failed > 0 && worked > 0);
    tt_call(&r, tools, "bash", "command=s", "echo y");
    TT_OK(&r, "y\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static long long cpu_ms(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000ll +
           (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static void waiting_costs_nothing(void) {
    static const char *const commands[] = {
        "exec 0<&- 1>&- 2>&-; sleep 0.6", "sleep 0.6", "exec 1>&-; sleep 0.6"};
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    for (i = 0; i < TT_COUNT(commands); i++) {
        long long before = cpu_ms();
        tt_call(&r, tools, "bash", "command=s", commands[i]);
        T_CHECK(r.res.success);
        T_CHECK(cpu_ms() - before < 200);
    }
    /* also when a survivor closes its pipes */
    tt_call(&r, tools, "bash", "command=s", "(sleep 0.3; exec >&- 2>&-) &");
    {
        long long before = cpu_ms();
        tt_call(&r, tools, "bash", "command=s", "sleep 0.6");
        T_CHECK(cpu_ms() - before < 200);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void tools_do_not_see_each_other(void) {
    hfsb_tools *a = tt_open(NULL), *b = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    char        id[100];
    tt_call(&r, a, "bash", "command=s background=j", "sleep 60", "true");
    snprintf(id, sizeof id, "%s", tt_text(&r, "id").ptr);
    tt_call(&r, b, "kill", "");
    TT_OK(&r, "Killed 0 process(es): []");
    tt_call(&r, b, "bash_output", "id=s", id);
    TT_FAIL(&r, "");
    T_CHECK(hfsb_tools_busy(a) == 1 && hfsb_tools_busy(b) == 0);
    hfsb_tools_close(b);
    tt_call(&r, a, "bash_output", "id=s", id);
    T_CHECK(r.res.success && tt_flag(&r, "running"));
    tt_drop(&r);
    hfsb_tools_close(a);
}

/* Hundreds of runs leave nothing: descriptors, children, memory. */
static void many_runs_leave_nothing(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    size_t          fds = 0, live = 0;
    int             i, n = t_quick() || TT_SANITIZED ? 60 : 300;
    opts.max_finished = 10;
    tools = tt_open(&opts);
    for (i = 0; i < n; i++) {
        tt_call(&r, tools, "bash", "command=s", "true");
        TT_OK(&r, "");
        if (i == 20) {
            fds = tt_count_fds();
            live = tt_memory.heap.live;
        }
    }
    T_CHECK(tt_count_fds() == fds);
    T_CHECK(tt_memory.heap.live < live + 4096);
    T_CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(sessions_in_threads_do_not_meet);
    TT_RUN(one_session_serves_many_threads);
    TT_RUN(a_loop_may_poll_meanwhile);
    TT_RUN(hundreds_of_commands_from_many_threads);
    TT_RUN(a_key_holds_across_threads);
    TT_RUN(short_commands_do_not_wait_for_long_ones);
    TT_RUN(waiting_threads_are_woken);
    TT_RUN(a_host_loses_nothing);
    TT_RUN(a_stolen_status_is_not_made_up);
    TT_RUN(interruptions_do_no_harm);
    TT_RUN(closed_standard_descriptors_do_no_harm);
    TT_RUN(too_few_descriptors_are_an_error);
    TT_RUN(waiting_costs_nothing);
    TT_RUN(tools_do_not_see_each_other);
    TT_RUN(many_runs_leave_nothing);
    return TT_END();
}
