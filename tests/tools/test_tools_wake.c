/* test_tools_wake.c - waiting calls are woken, with the right result: threads
   and a host's loop on one object, prompts, commands that wait or cannot be
   killed. */
#include "../support/t_tools.h"

#include <limits.h>
#include <poll.h>

/* ---- a host's loop beside threads that block ---- */

static bool text_was_taken(hfsb_call *call) {
    bool some;
    hfsbi_loop_lock(call->tools->loop);
    some = call->job->record.total > 0;
    hfsbi_loop_unlock(call->tools->loop);
    return some;
}

/* What a host does with what it is to wait for; gives poll()'s answer. With a
   call it is busy elsewhere before, until others have taken the text which
   that call waits for. */
static int host_poll(hfsb_tools *tools, hfsb_call *call, long long max) {
    hfsb_watch    list[64];
    struct pollfd fds[64];
    size_t        n = hfsb_tools_watch(tools, list, 64), i;
    long long     due = hfsb_tools_deadline(tools), wait;
    T_CHECK(n > 0 && n <= 64);
    for (i = 0; i < n && i < 64; i++) {
        fds[i].fd = list[i].fd;
        fds[i].events = (short)((list[i].readable ? POLLIN : 0) |
                                (list[i].writable ? POLLOUT : 0));
        fds[i].revents = 0;
    }
    if (call) tt_put("say", HFSB_LIT(""));
    while (call && !text_was_taken(call)) tt_sleep_ms(10);
    wait = due < 0 ? max : due - hfsb_clock_ms();
    if (wait > max) wait = max;
    return poll(fds, (nfds_t)i, wait < 0 ? 0 : (int)wait);
}

static void *run_long(void *tools) {
    tt_reply r = HFSB_INIT;
    tt_do(&r, (hfsb_tools *)tools, "bash",
          HFSB_LIT("{\"command\":\"sleep 60\"}"), NULL);
    tt_drop(&r);
    return NULL;
}

/* Another thread takes the text out of the pipe; the host sleeps on that very
   pipe, and must hear of it all the same. */
static void a_host_hears_what_a_thread_took(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    pthread_t   thread;
    hfsb_call  *call;
    int         rounds = 0;
    unlink("say");
    T_CHECK(!pthread_create(&thread, NULL, run_long, tools));
    while (!hfsb_tools_busy(tools)) tt_sleep_ms(10);
    tt_call(&r, tools, "bash", "command=s id=s background=j",
            "while [ ! -e say ]; do sleep 0.05; done; echo hi; sleep 60", "b",
            "true");
    call =
        tt_start(tools, "bash_output", NULL, "id=s wait_ms=j", "b", "30000");
    while (rounds < 200 && host_poll(tools, NULL, 200) > 0) {
        hfsb_tools_step(tools);
        rounds++;
    }
    T_CHECK(rounds < 200); /* the two do not keep each other awake */
    T_CHECK(!hfsb_call_done(call));
    T_CHECK(host_poll(tools, call, 5000) > 0);
    hfsb_tools_step(tools);
    T_CHECK(hfsb_call_done(call));
    tt_finish(&r, tools, call);
    TT_OK(&r, "hi\n");
    tt_call(&r, tools, "kill", "");
    T_CHECK(r.res.success);
    pthread_join(thread, NULL);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void *poll_until_text(void *arg) {
    hfsb_call *call = (hfsb_call *)arg;
    while (!text_was_taken(call)) hfsb_tools_poll(call->tools, 50);
    return NULL;
}

/* The same between the host's step and its next watch, or before its first:
   then it does not sleep at all. */
static void a_host_hears_what_was_taken_before_it_watched(void) {
    int again;
    for (again = 0; again < 2; again++) {
        hfsb_tools *tools = tt_open(NULL);
        tt_reply    r = HFSB_INIT;
        pthread_t   thread;
        hfsb_call  *call;
        int         i;
        unlink("say");
        tt_call(&r, tools, "bash", "command=s id=s background=j",
                "until [ -e say ]; do sleep 0.05; done; echo hi; sleep 60",
                "b", "true");
        call = tt_start(tools, "bash_output", NULL, "id=s wait_ms=j", "b",
                        "20000");
        for (i = 0; i < again; i++) {
            host_poll(tools, NULL, 0);
            hfsb_tools_step(tools);
        }
        T_CHECK(!hfsb_call_done(call));
        tt_put("say", HFSB_LIT(""));
        T_CHECK(!pthread_create(&thread, NULL, poll_until_text, call));
        pthread_join(thread, NULL);
        T_CHECK(host_poll(tools, NULL, 0) > 0);
        hfsb_tools_step(tools);
        T_CHECK(hfsb_call_done(call));
        for (i = 0; i < 3; i++) { /* it is woken once, then sleeps */
            T_CHECK(host_poll(tools, NULL, 0) == 0);
            hfsb_tools_step(tools);
        }
        tt_finish(&r, tools, call);
        TT_OK(&r, "hi\n");
        tt_drop(&r);
        hfsb_tools_close(tools);
    }
}

/* From a signal handler, however often: errno is the program's own. */
static void a_wake_keeps_errno(void) {
    hfsb_tools *tools = tt_open(NULL);
    long        i, changed = 0;
    for (i = 0; i < 70000; i++) { /* more than a pipe holds */
        errno = 12345;
        hfsb_tools_wake(tools);
        changed += errno != 12345;
    }
    T_CHECK(changed == 0);
    errno = 0;
    hfsb_tools_poll(tools, 10000);
    hfsb_tools_close(tools);
}

static void a_poll_takes_any_time(void) {
    static const long long waits[] = {LLONG_MAX, LLONG_MAX - 1,
                                      (long long)INT_MAX + 1, -1, LLONG_MIN};
    hfsb_tools            *tools = tt_open(NULL);
    long long              begin = hfsb_clock_ms();
    size_t                 i;
    for (i = 0; i < TT_COUNT(waits); i++) {
        hfsb_tools_wake(tools);
        hfsb_tools_poll(tools, waits[i]);
    }
    T_CHECK(hfsb_clock_ms() - begin < 30000);
    hfsb_tools_close(tools);
}

/* ---- unfinished lines ---- */

static void a_prompt_ends_the_wait_once(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    long long   begin = hfsb_clock_ms();
    tt_call(&r, tools, "bash", "command=s id=s background=j",
            "printf 'Continue? '; read x; echo got $x", "p", "true");
    tt_call(&r, tools, "bash_output", "id=s wait_ms=j", "p", "30000");
    TT_OK(&r, "Continue? ");
    T_CHECK(hfsb_clock_ms() - begin < 15000);
    T_CHECK(tt_int(&r, "next_offset") == 0 && tt_flag(&r, "running"));
    begin = hfsb_clock_ms(); /* it was shown: nothing new */
    tt_call(&r, tools, "bash_output", "id=s wait_ms=j", "p", "600");
    TT_OK(&r, "Continue? ");
    T_CHECK(hfsb_clock_ms() - begin >= 550);
    tt_call(&r, tools, "bash_input", "id=s text=s", "p", "y\n");
    T_CHECK(r.res.success);
    tt_await(&r, tools, "p", "0", NULL);
    TT_OK(&r, "Continue? got y\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Sends a piece of a line through the job, and waits until it is there. */
static void move_line(hfsb_tools *tools, hfsb_call *call) {
    unsigned long long before = call->job->record.bytes;
    tt_reply           r = HFSB_INIT;
    int                i;
    tt_call(&r, tools, "bash_input", "id=s text=s", "m", "\r50%");
    for (i = 0; i < 100 && call->job->record.bytes == before; i++)
        hfsb_tools_poll(tools, 100);
    T_CHECK(call->job->record.bytes > before);
    tt_drop(&r);
}

/* A progress bar does not end the wait; when it stops, that does. */
static void a_line_that_moves_is_no_prompt(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_call  *call;
    long long   begin = hfsb_clock_ms(), last = 0;
    bool        held_up = false, done = false;
    tt_call(&r, tools, "bash", "command=s id=s background=j", "cat", "m",
            "true");
    call =
        tt_start(tools, "bash_output", NULL, "id=s wait_ms=j", "m", "30000");
    while (!held_up && hfsb_clock_ms() < begin + 1200) {
        move_line(tools, call);
        last = call->job->record.last_at;
        done = hfsb_call_done(call);
        held_up = hfsb_clock_ms() >= last + 200; /* by a busy machine */
        T_CHECK(!done || held_up);
        tt_sleep_ms(20);
        held_up = held_up || hfsb_clock_ms() >= last + 200;
    }
    if (held_up) {
        printf("skipped: the machine is too busy to move a line\n");
        t_skipped++;
    }
    tt_finish(&r, tools, call);
    TT_OK(&r, "50%");
    T_CHECK(hfsb_clock_ms() < begin + 20000);
    tt_call(&r, tools, "bash_input", "id=s eof=j", "m", "true");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- calls ---- */

static void count_text(void *user, hfsb_proc_stream stream, hfsb_str text) {
    (void)stream;
    *(size_t *)user += text.len;
}

/* Calls with the same options look at the command and are closed: the one that
   started it hears on. */
static void a_call_silences_only_its_own(void) {
    static const char command[] =
        "echo 1; while [ ! -e speak ]; do sleep 0.05; done; echo 2";
    hfsb_tools    *tools = tt_open(NULL);
    tt_reply       r = HFSB_INIT;
    hfsb_call_opts opts = HFSB_INIT;
    hfsb_call     *call;
    size_t         heard = 0;
    opts.on_text = count_text;
    opts.user = &heard;
    unlink("speak");
    call = tt_start(tools, "bash", &opts, "command=s id=s", command, "s");
    while (!heard) hfsb_tools_poll(tools, 1000);
    tt_finish(&r, tools, tt_start(tools, "bash_output", &opts, "id=s", "s"));
    TT_OK(&r, "1\n");
    hfsb_call_close(
        tt_start(tools, "bash", &opts, "command=s id=s", command, "s"));
    tt_put("speak", HFSB_LIT(""));
    tt_finish(&r, tools, call);
    TT_OK(&r, "1\n2\n");
    T_CHECK(heard == 4);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void a_result_is_taken_once(void) {
    static const char *const calls[][2] = {{"exists", "/"},
                                           {"read", "/no/such/file"}};
    hfsb_tools              *tools = tt_open(NULL);
    hfsb_tool_result         res;
    size_t                   i;
    for (i = 0; i < TT_COUNT(calls); i++) {
        hfsb_call *call =
            tt_start(tools, calls[i][0], NULL, "path=s", calls[i][1]);
        T_CHECK(hfsb_call_take(call, &res) == HFSB_OK);
        T_CHECK(res.success == (i == 0) && (res.error.len > 0) == (i == 1));
        hfsb_tool_result_free(&res);
        T_CHECK(hfsb_call_take(call, &res) == HFSB_REFUSED);
        T_CHECK(!res.success && !res.output.len && !res.error.len);
        hfsb_tool_result_free(&res);
        T_CHECK(hfsb_call_done(call));
        hfsb_call_close(call);
    }
    hfsb_tools_close(tools);
}

static void a_job_without_a_place_says_that_it_waits(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    opts.max_running = 1;
    tools = tt_open(&opts);
    tt_call(&r, tools, "bash", "command=s id=s background=j", "sleep 60",
            "first", "true");
    TT_OK(&r, "Started in the background as job first. See its output with "
              "bash_output, end it with kill.");
    T_CHECK(tt_int(&r, "pid") > 1);
    tt_call(&r, tools, "bash", "command=s id=s background=j", "echo hi",
            "next", "true");
    TT_OK(&r, "Waits for other commands to end, then runs in the background "
              "as job next. See its output with bash_output, end it with "
              "kill.");
    T_CHECK(tt_int(&r, "pid") == 0);
    tt_call(&r, tools, "kill", "id=s", "first");
    tt_await(&r, tools, "next", "0", NULL);
    TT_OK(&r, "hi\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- what cannot be killed ---- */

enum { SKIP = 77, NOBODY = 65534 };

/* This program again, set-uid root: an ordinary user cannot end it. It lies
   where only that user gets at it. */
static int stay(void) {
    static const char up[] = "up\n";
    if (setuid(0) || signal(SIGPIPE, SIG_IGN) == SIG_ERR) return 1;
    alarm(60); /* in case the test dies */
    if (write(1, up, sizeof up - 1) < 0) return 1;
    for (;;) pause();
}

/* As an ordinary user: kill fails, and reports it. */
static int kill_in_vain(int pid_to) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_call      *call;
    char            text[100];
    long            pid;
    opts.grace_ms = -1;
    tools = tt_open(&opts);
    call = tt_start(tools, "bash", NULL, "command=s id=s",
                    "exec nobody/stay unkillable", "u");
    tt_await(&r, tools, "u", "0", "up");
    if (!tt_says(&r.res.output, "up\n") || !tt_flag(&r, "running"))
        return SKIP;
    pid = call->job->pid;
    if (write(pid_to, &pid, sizeof pid) != (ssize_t)sizeof pid) return 1;
    tt_call(&r, tools, "kill", "id=s", "u");
    snprintf(text, sizeof text,
             "Killed 0 process(es): []\n(%ld could not be killed)", pid);
    TT_OK(&r, text);
    tt_finish(&r, tools, call);
    snprintf(text, sizeof text,
             "Process %ld could not be killed and still runs", pid);
    TT_ENDS(&r, "up\n", text);
    T_CHECK(tt_int(&r, "pid") == pid && tt_alive(pid));
    tt_drop(&r);
    hfsb_tools_close(tools);
    return t_failed != 0;
}

static bool copy_set_uid(const char *to) {
    hfsb_buf self = HFSB_INIT;
    bool     ok = !mkdir("nobody", 0700) && !chown("nobody", NOBODY, NOBODY) &&
              t_read_file("/proc/self/exe", &self) && self.len;
    if (ok) tt_put(to, hfsb_buf_str(&self));
    hfsb_buf_free(&self);
    return ok && !chmod(to, 04755);
}

static void kill_reports_survivors(void) {
    int   fds[2], status = 0;
    long  pid = -1;
    pid_t child;
    if (geteuid() != 0 || !copy_set_uid("nobody/stay") || pipe(fds)) {
        printf("skipped: a command that cannot be killed needs root\n");
        t_skipped++;
        return;
    }
    child = fork();
    if (child == 0) {
        close(fds[0]);
        t_failed = 0;
        if (setgid(NOBODY) || setuid(NOBODY)) _exit(SKIP);
        _exit(kill_in_vain(fds[1]));
    }
    close(fds[1]);
    T_CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (read(fds[0], &pid, sizeof pid) == (ssize_t)sizeof pid)
        tt_end_process(pid);
    close(fds[0]);
    unlink("nobody/stay");
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP) {
        printf("skipped: no set-uid program runs here\n");
        t_skipped++;
        return;
    }
    T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "unkillable")) return stay();
    if (geteuid() != getuid()) return 1;
    tt_begin();
    TT_RUN(a_host_hears_what_a_thread_took);
    TT_RUN(a_host_hears_what_was_taken_before_it_watched);
    TT_RUN(a_wake_keeps_errno);
    TT_RUN(a_poll_takes_any_time);
    TT_RUN(a_prompt_ends_the_wait_once);
    TT_RUN(a_line_that_moves_is_no_prompt);
    TT_RUN(a_call_silences_only_its_own);
    TT_RUN(a_result_is_taken_once);
    TT_RUN(a_job_without_a_place_says_that_it_waits);
    TT_RUN(kill_reports_survivors);
    return TT_END();
}
