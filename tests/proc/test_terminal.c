/* test_terminal.c - commands in a pseudo-terminal. */
#include "../support/t_loop.h"
#include "../support/t_proc.h"

static hfsb_proc_opts terminal_opts(void) {
    hfsb_proc_opts o = t_quick_opts();
    o.cols = 80;
    o.rows = 24;
    o.keep_input = true;
    return o;
}

static void type(hfsb_proc *proc, const char *keys) {
    hfsb_err err;
    T_CHECK(hfsb_proc_input(proc, hfsb_cstr(keys), false, &err) == HFSB_OK);
}

static void end_input(hfsb_proc *proc, const char *keys) {
    hfsb_err err;
    T_CHECK(hfsb_proc_input(proc, hfsb_cstr(keys), true, &err) == HFSB_OK);
    T_CHECK(hfsb_proc_input(proc, hfsb_cstr("x"), false, &err) ==
            HFSB_REFUSED);
}

/* Forgets the output so far, so that t_until() waits for more. */
static void forget(t_output *out) {
    hfsb_buf_truncate(&out->out, 0);
}

static bool has(const t_output *out, const char *text) {
    return hfsb_str_find(hfsb_buf_str(&out->out), hfsb_cstr(text)) !=
           HFSB_NPOS;
}

/* Nothing is open that was not before, and no process is left. */
static void leave(hfsb_proc *proc, t_output *out, size_t fds) {
    hfsb_proc_close(proc);
    t_output_free(out);
    T_CHECK(t_open_fds() == fds && t_no_child());
#ifdef HFSBI_LINUX
    T_CHECK(t_marked(t_job(), 0) == 0);
#endif
}

/* ---- what the command sees ---- */

static void standard_descriptors_are_one_terminal(void) {
    size_t           fds = t_open_fds();
    hfsb_proc_opts   o = terminal_opts();
    t_output         out = HFSB_INIT;
    hfsb_proc       *proc;
    hfsb_proc_result r;
    proc = t_start(&o,
                   "test -t 0 && test -t 1 && test -t 2 && echo three; "
                   "stty size; echo err >&2; echo own > /dev/tty; "
                   "test \"$(ls /proc/self/fd 2>/dev/null | wc -l)\" -le 4 && "
                   "echo none; exit 7",
                   &out);
    r = t_finish(proc, 3000);
    T_CHECK(r.end == HFSB_PROC_EXITED && r.exit_code == 7 && !r.incomplete);
    T_STR(out.out, "three\r\n24 80\r\nerr\r\nown\r\nnone\r\n");
    T_CHECK(out.err.len == 0 && r.stderr_bytes == 0);
    T_CHECK(r.stdout_bytes == out.out.len);
    leave(proc, &out, fds);
}

static bool has_terminal(void) {
    int  fd = open("/dev/tty", O_RDWR | O_NOCTTY);
    bool has_one = fd >= 0;
    if (has_one) close(fd);
    return has_one;
}

static void the_terminal_is_not_the_hosts(void) {
    hfsb_proc_opts o = terminal_opts();
    t_output       out = HFSB_INIT;
    bool           before = has_terminal();
    hfsb_proc     *proc = t_start(&o, "read line", &out);
    T_CHECK(has_terminal() == before);
    hfsb_proc_kill(proc);
    (void)t_finish(proc, 3000);
    T_CHECK(has_terminal() == before);
    hfsb_proc_close(proc);
    t_output_free(&out);
}

static void invalid_sizes_are_refused(void) {
    static const unsigned sizes[][2] = {
        {80, 0}, {0, 24}, {65536, 24}, {80, 65536}};
    hfsb_proc_opts o = terminal_opts();
    hfsb_proc     *proc;
    hfsb_err       err;
    size_t         i;
    o.command = HFSB_LIT("true");
    for (i = 0; i < 4; i++) {
        o.cols = sizes[i][0];
        o.rows = sizes[i][1];
        T_CHECK(hfsb_proc_open(&o, &proc, &err) == HFSB_ARG && !proc);
        T_CHECK(strstr(err.msg, "A terminal has 1 to 65535 columns"));
    }
    o.cols = o.rows = 0;
    proc = t_start(&o, "sleep 60", NULL);
    T_CHECK(hfsb_proc_resize(proc, 80, 24, &err) == HFSB_REFUSED);
    T_CHECK(strstr(err.msg, "has no terminal"));
    hfsb_proc_close(proc);
    o.cols = o.rows = 1;
    proc = t_start(&o, "sleep 60", NULL);
    T_CHECK(hfsb_proc_resize(proc, 0, 24, &err) == HFSB_ARG);
    T_CHECK(hfsb_proc_resize(proc, 80, 65536, &err) == HFSB_ARG);
    T_CHECK(hfsb_proc_resize(proc, 65535, 65535, &err) == HFSB_OK);
    hfsb_proc_kill(proc);
    (void)t_finish(proc, 3000);
    T_CHECK(hfsb_proc_resize(proc, 80, 24, &err) == HFSB_REFUSED);
    T_CHECK(strstr(err.msg, "has ended"));
    hfsb_proc_close(proc);
}

static void failures_to_start_leave_nothing(void) {
    static const char *const argv[] = {"/nowhere/at/all", NULL};
    size_t                   fds = t_open_fds();
    hfsb_proc_opts           o = terminal_opts();
    hfsb_proc               *proc;
    hfsb_err                 err;
    o.argv = argv;
    if (!t_valgrind()) {
        T_CHECK(hfsb_proc_open(&o, &proc, &err) == HFSB_NOT_FOUND);
        T_CHECK(!proc && t_open_fds() == fds && t_no_child());
    }
    o.argv = NULL;
    o.command = HFSB_LIT("true");
    o.work_dir = "/nowhere";
    if (!t_valgrind()) {
        T_CHECK(hfsb_proc_open(&o, &proc, &err) == HFSB_NOT_FOUND);
        T_CHECK(!proc && t_open_fds() == fds && t_no_child());
    }
}

static char empty[] = "/tmp/hfsb-terminal-XXXXXX";

/* In a root without /dev. */
static void start_without_devices(void) {
    static const char *const argv[] = {"/true", NULL};
    hfsb_proc_opts           o = terminal_opts();
    hfsb_proc               *proc;
    hfsb_err                 err;
    if (chroot(empty) != 0 || chdir("/") != 0) {
        t_skip("chroot");
        return;
    }
    o.argv = argv;
    T_CHECK(hfsb_proc_open(&o, &proc, &err) == HFSB_IO && !proc);
    T_CHECK(strcmp(err.msg, "Cannot open a terminal: no such device") == 0);
}

static void systems_without_terminals_are_reported(void) {
    if (t_valgrind()) return;
    T_CHECK(mkdtemp(empty) != NULL);
    t_apart(start_without_devices);
    rmdir(empty);
}

/* With so many descriptors and no more. */
static void start_with_few_descriptors(void) {
    hfsb_proc_opts o = terminal_opts();
    size_t         n, ok = 0;
    o.keep_input = false;
    o.command = HFSB_LIT("true");
    for (n = t_open_fds(); n < 30 && ok < 3; n++) {
        hfsb_proc  *proc = NULL;
        hfsb_err    err;
        size_t      fds = t_open_fds();
        hfsb_status st;
        t_limit_files(n);
        st = hfsb_proc_open(&o, &proc, &err);
        T_CHECK(st == HFSB_OK || (st == HFSB_BUSY && !proc));
        if (st == HFSB_OK) {
            T_CHECK(t_finish(proc, 3000).exit_code == 0);
            hfsb_proc_close(proc);
            ok++;
        }
        T_CHECK(t_open_fds() == fds);
    }
    T_CHECK(ok == 3);
}

static void too_few_descriptors_are_reported(void) {
    t_apart(start_with_few_descriptors);
}

static void with_faults(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_proc_opts   o = terminal_opts();
    hfsb_proc_result r = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT;
    hfsb_err         err;
    hfsb_status      st;
    o.alloc = out.alloc = alloc;
    o.command = HFSB_LIT("cat; echo end");
    o.input = HFSB_LIT("line\n");
    st = hfsb_proc_run(&o, &out, NULL, &r, &err);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at));
    if (st == HFSB_OK) {
        T_CHECK(r.exit_code == 0 && r.end == HFSB_PROC_EXITED);
        if (!heap->fail_at) T_STR(out, "line\r\nline\r\nend\r\n");
    }
    hfsb_buf_free(&out);
}

static void every_allocation_may_fail(void) {
    t_each_allocation_fails(with_faults);
    T_CHECK(t_no_child());
}

/* ---- input ---- */

static void an_interactive_shell_prompts(void) {
    static const char *const argv[] = {"bash", "--norc", "--noprofile", "-i",
                                       NULL};
    static const char *const env[] = {"PS1=ready> ", "TERM=dumb",
                                      "PATH=/bin:/usr/bin", "HISTFILE=", NULL};
    size_t                   fds = t_open_fds();
    hfsb_proc_opts           o = terminal_opts();
    t_output                 out = HFSB_INIT;
    hfsb_proc               *proc = NULL;
    hfsb_proc_result         r;
    if (access("/bin/bash", X_OK) != 0) {
        t_skip("no bash");
        return;
    }
    o.argv = argv;
    o.env = env;
    o.on_output = t_collect;
    o.user = &out;
    T_CHECK(hfsb_proc_open(&o, &proc, NULL) == HFSB_OK);
    if (!proc) return;
    T_CHECK(t_until(proc, &out, "ready> "));
    T_CHECK(!has(&out, "no job control"));
    forget(&out);
    type(proc, "echo $((6 * 7)) $(tty | cut -c1-5)\r");
    T_CHECK(t_until(proc, &out, "42 /dev/\r\n"));
    T_CHECK(t_until(proc, &out, "\nready> "));
    forget(&out);
    /* another group is in the foreground */
    type(proc, "sh -c 'echo u''p; exec sleep 60'\r");
    T_CHECK(t_until(proc, &out, "\nup"));
    t_sleep(300);
    type(proc, "\003");
    T_CHECK(t_until(proc, &out, "ready> "));
    forget(&out);
    type(proc, "echo status $?\r");
    T_CHECK(t_until(proc, &out, "status 130"));
    T_CHECK(t_until(proc, &out, "\nready> "));
    T_CHECK(hfsb_proc_resize(proc, 132, 43, NULL) == HFSB_OK);
    forget(&out);
    type(proc, "stty size\r");
    T_CHECK(t_until(proc, &out, "43 132\r\n"));
    T_CHECK(t_until(proc, &out, "\nready> "));
    end_input(proc, ""); /* Ctrl-D at a prompt */
    r = t_finish(proc, 3000);
    T_CHECK(r.end == HFSB_PROC_EXITED && r.exit_code == 0 && !r.killed);
    leave(proc, &out, fds);
}

static void input_is_echoed_and_edited(void) {
    hfsb_proc_opts o = terminal_opts();
    t_output       out = HFSB_INIT;
    hfsb_proc     *proc = t_start(&o, "read line; echo \"[$line]\"", &out);
    type(proc, "abc\177d\n"); /* erases the c */
    (void)t_finish(proc, 3000);
    T_CHECK(has(&out, "[abd]\r\n") && has(&out, "abc"));
    hfsb_proc_close(proc);
    t_output_free(&out);
}

static void input_ends_at_the_start_of_a_line(void) {
    hfsb_proc_opts o = terminal_opts();
    t_output       out = HFSB_INIT;
    hfsb_proc *proc = t_start(&o, "stty -echo; echo go; cat; echo end", &out);
    T_CHECK(t_until(proc, &out, "go"));
    end_input(proc, "one\ntwo\n");
    T_CHECK(t_finish(proc, 3000).exit_code == 0);
    T_STR(out.out, "go\r\none\r\ntwo\r\nend\r\n");
    hfsb_proc_close(proc);
    t_output_free(&out);
}

static void input_ends_in_the_middle_of_a_line(void) {
    hfsb_proc_opts o = terminal_opts();
    t_output       out = HFSB_INIT;
    hfsb_proc     *proc =
        t_start(&o, "stty -echo eof ^B; echo go; cat; echo end", &out);
    T_CHECK(t_until(proc, &out, "go"));
    type(proc, "par");
    end_input(proc, "tial"); /* by the character that the command chose */
    T_CHECK(t_finish(proc, 3000).exit_code == 0);
    T_STR(out.out, "go\r\npartialend\r\n");
    hfsb_proc_close(proc);
    t_output_free(&out);
}

static void without_input_it_ends_at_once(void) {
    hfsb_proc_opts   o = terminal_opts();
    hfsb_buf         out = HFSB_INIT;
    hfsb_proc_result r;
    o.keep_input = false;
    r = t_run(&o, "cat; echo end", &out);
    T_CHECK(r.exit_code == 0 && !r.incomplete);
    T_STR(out, "end\r\n");
    hfsb_buf_free(&out);
}

/* What prints is what is interrupted: a shell may lose the signal while it
   executes its last command. */
static void ctrl_c_interrupts(void) {
    size_t           fds = t_open_fds();
    hfsb_proc_opts   o = terminal_opts();
    t_output         out = HFSB_INIT;
    hfsb_proc       *proc = t_start(
        &o, "exec awk 'BEGIN { print \"go\"; fflush(); getline }'", &out);
    hfsb_proc_result r;
    T_CHECK(t_until(proc, &out, "go"));
    type(proc, "\003");
    r = t_finish(proc, 3000);
    T_CHECK(r.end == HFSB_PROC_SIGNALED && r.signal == SIGINT && !r.killed);
    T_STR(out.out, "go\r\n^C");
    leave(proc, &out, fds);
}

/* A megabyte of input that the command reads slowly. */
static void much_input_arrives(void) {
    hfsb_proc_opts o = terminal_opts();
    t_output       out = HFSB_INIT;
    hfsb_buf       in = HFSB_INIT;
    hfsb_proc     *proc =
        t_start(&o, "stty raw -echo; echo go; head -c 900000 | cksum", &out);
    hfsb_buf       want = HFSB_INIT;
    hfsb_proc_opts p = t_quick_opts();
    size_t         i;
    T_CHECK(t_until(proc, &out, "go"));
    for (i = 0; i < 900000; i++)
        T_CHECK(hfsb_buf_append_byte(&in, (char)(i * 7 + i / 251)) == HFSB_OK);
    T_CHECK(hfsb_proc_input(proc, hfsb_buf_str(&in), false, NULL) == HFSB_OK);
    T_CHECK(t_finish(proc, 10000).exit_code == 0);
    p.input = hfsb_buf_str(&in);
    (void)t_run(&p, "cksum", &want);
    hfsb_buf_truncate(&want, want.len - 1);
    T_CHECK(want.len > 9 && has(&out, want.ptr));
    hfsb_proc_close(proc);
    t_output_free(&out);
    hfsb_buf_free(&in);
    hfsb_buf_free(&want);
}

/* ---- output ---- */

/* 10 MB, all byte values, as the command wrote them. */
static void ten_megabytes_come_unchanged(void) {
    enum { SIZE = 10000000 };
    size_t             fds = t_open_fds();
    hfsb_proc_opts     o = terminal_opts();
    t_output           out = HFSB_INIT;
    hfsb_proc         *proc;
    hfsb_proc_result   r;
    char               path[] = "/tmp/hfsb-terminal-XXXXXX", command[128];
    hfsb_buf           bytes = HFSB_INIT;
    unsigned long long seed = 1;
    int                fd = mkstemp(path);
    T_CHECK(fd >= 0);
    while (bytes.len < SIZE) {
        unsigned long word = t_random(&seed);
        T_CHECK(hfsb_buf_append_byte(&bytes, (char)word) == HFSB_OK);
    }
    T_CHECK(hfsbi_write_all(fd, hfsb_buf_str(&bytes)));
    close(fd);
    snprintf(command, sizeof command, "stty -opost; exec cat %s", path);
    o.keep_input = false;
    proc = t_start(&o, command, &out);
    r = t_finish(proc, 20000);
    T_CHECK(r.exit_code == 0 && !r.incomplete && r.stdout_bytes == SIZE);
    T_CHECK(out.out.len == SIZE && memcmp(out.out.ptr, bytes.ptr, SIZE) == 0);
    unlink(path);
    hfsb_buf_free(&bytes);
    leave(proc, &out, fds);
}

/* Its last words are complete, however soon it exits. */
static void the_last_output_is_never_lost(void) {
    hfsb_proc_opts o = terminal_opts();
    int            i, n = t_quick() ? 5 : 100;
    o.keep_input = false;
    for (i = 0; i < n; i++) {
        hfsb_buf         out = HFSB_INIT;
        hfsb_proc_result r = t_run(&o, "seq 1000; printf last", &out);
        T_CHECK(r.exit_code == 0 && !r.incomplete);
        T_CHECK(out.len == 3893 + 1000 + 4 &&
                memcmp(out.ptr + out.len - 8, "00\r\nlast", 8) == 0);
        hfsb_buf_free(&out);
    }
}

/* A command that closes its terminal goes on, and may open it again. */
static void a_closed_terminal_does_not_end_the_command(void) {
    size_t           fds = t_open_fds();
    hfsb_proc_opts   o = terminal_opts();
    hfsb_buf         out = HFSB_INIT;
    hfsb_proc_result r;
    o.keep_input = false;
    r = t_run(&o,
              "echo one; exec < /dev/null > /dev/null 2>&1; sleep 0.3; "
              "echo two > /dev/tty; exit 3",
              &out);
    T_CHECK(r.end == HFSB_PROC_EXITED && r.exit_code == 3 && !r.incomplete);
    T_CHECK(r.duration_ms >= 290);
    T_STR(out, "one\r\ntwo\r\n");
    hfsb_buf_free(&out);
    T_CHECK(t_open_fds() == fds);
}

/* ---- the end ---- */

static void resize_signals_the_command(void) {
    hfsb_proc_opts o = terminal_opts();
    t_output       out = HFSB_INIT;
    hfsb_proc     *proc = t_start(&o,
                                  "trap 'stty size; exit 4' WINCH; echo go; "
                                      "while :; do sleep 0.05; done",
                                  &out);
    T_CHECK(t_until(proc, &out, "go"));
    T_CHECK(hfsb_proc_resize(proc, 100, 30, NULL) == HFSB_OK);
    T_CHECK(t_finish(proc, 3000).exit_code == 4);
    T_STR(out.out, "go\r\n30 100\r\n");
    hfsb_proc_close(proc);
    t_output_free(&out);
}

/* The shell ends with the session; what ignores HUP outlives it, holds the
   terminal, and does not delay the end. */
static void survivors_that_ignore_hup_hold_the_terminal(void) {
    size_t           fds = t_open_fds();
    hfsb_proc_opts   o = terminal_opts();
    t_output         out = HFSB_INIT;
    hfsb_proc       *proc;
    hfsb_proc_result r;
    long long        start = hfsb_clock_ms();
    int              master[2], other[2];
    o.keep_input = false;
    proc = t_start(&o,
                   "trap '' HUP; trap up=1 USR1; "
                   "(echo up; kill -USR1 $$; sleep 61; echo late) & "
                   "until [ \"$up\" ]; do sleep 0.05; done; echo done",
                   &out);
    r = t_finish(proc, 3000);
    T_CHECK(r.end == HFSB_PROC_EXITED && r.exit_code == 0 && r.incomplete);
    T_CHECK(hfsb_clock_ms() - start < t_patience(3000));
    T_STR(out.out, "up\r\ndone\r\n");
#ifdef HFSBI_LINUX
    {
        hfsb_proc_entry list[4];
        int             i; /* the shell may be about to start its sleep */
        for (i = 0; i < 2000 && hfsb_proc_survivors(proc, list, 4) != 2; i++)
            t_sleep(10);
        T_CHECK(hfsb_proc_survivors(proc, list, 4) == 2);
    }
#endif
    T_CHECK(hfsb_proc_take_pipes(proc, master) == 1);
    T_CHECK(!hfsbi_pipe_ended(master[0]));
    T_CHECK(hfsb_proc_take_pipes(proc, other) == 0);
    hfsb_proc_close(proc);
    t_kill_marked(t_job());
    T_CHECK(hfsbi_pipe_ended(master[0]));
    close(master[0]);
    t_output_free(&out);
    T_CHECK(t_open_fds() == fds);
}

static void kill_ends_what_ignores_hup_and_term(void) {
    size_t           fds = t_open_fds();
    hfsb_proc_opts   o = terminal_opts();
    t_output         out = HFSB_INIT;
    hfsb_proc       *proc;
    hfsb_proc_result r;
    proc = t_start(&o,
                   "trap '' HUP TERM; sleep 61 & echo go; "
                   "while :; do sleep 1; done",
                   &out);
    T_CHECK(t_until(proc, &out, "go"));
    hfsb_proc_kill(proc);
    r = t_finish(proc, 3000);
    T_CHECK(r.killed && r.end == HFSB_PROC_SIGNALED && r.signal == SIGKILL);
    leave(proc, &out, fds);
}

/* It ignores TERM, and its jobs have groups of their own. */
static void kill_ends_an_interactive_shell(void) {
    static const char *const argv[] = {"bash", "--norc", "-i", NULL};
    static const char *const env[] = {"PS1=ready> ", "TERM=dumb",
                                      "PATH=/bin:/usr/bin", "HISTFILE=", NULL};
    size_t                   fds = t_open_fds();
    hfsb_proc_opts           o = terminal_opts();
    t_output                 out = HFSB_INIT;
    hfsb_proc               *proc = NULL;
    hfsb_proc_result         r;
    long long                start;
    if (access("/bin/bash", X_OK) != 0) {
        t_skip("no bash");
        return;
    }
    o.argv = argv;
    o.env = env;
    o.on_output = t_collect;
    o.user = &out;
    o.grace_ms = 20000;
    T_CHECK(hfsb_proc_open(&o, &proc, NULL) == HFSB_OK);
    if (!proc) return;
    T_CHECK(t_until(proc, &out, "ready> "));
    /* A bash that is about to wait for a job may miss a signal (waitpid()
       after its last look): it waits already. */
    type(proc, "sleep 61 & sh -c 'echo u''p; exec sleep 62'\r");
    T_CHECK(t_until(proc, &out, "up"));
    t_sleep(2000);
    start = hfsb_clock_ms();
    hfsb_proc_kill(proc);
    r = t_finish(proc, 5000);
    T_CHECK(r.killed && r.end != HFSB_PROC_RUNNING);
#ifdef HFSBI_LINUX /* else its jobs are the shell's business */
    T_CHECK(!r.incomplete);
#endif
    T_CHECK(hfsb_clock_ms() - start < 15000); /* within the grace */
    leave(proc, &out, fds);
}

static void timeouts_end_a_command(void) {
    size_t           fds = t_open_fds();
    hfsb_proc_opts   o = terminal_opts();
    t_output         out = HFSB_INIT;
    hfsb_proc       *proc;
    hfsb_proc_result r;
    o.timeout_ms = 700;
    proc = t_start(&o, "echo partial; read line", &out);
    r = t_finish(proc, 3000);
    while (!out.out.len && o.timeout_ms < 20000) { /* too slow to say so */
        hfsb_proc_close(proc);
        o.timeout_ms *= 4;
        proc = t_start(&o, "echo partial; read line", &out);
        r = t_finish(proc, o.timeout_ms);
    }
    T_CHECK(r.timed_out && r.end == HFSB_PROC_SIGNALED);
    T_STR(out.out, "partial\r\n");
    leave(proc, &out, fds);
}

static void closing_kills_the_command(void) {
    size_t         fds = t_open_fds();
    hfsb_proc_opts o = terminal_opts();
    t_output       out = HFSB_INIT;
    hfsb_proc     *proc =
        t_start(&o, "trap '' HUP; sleep 61 & echo go; sleep 61", &out);
    T_CHECK(t_until(proc, &out, "go"));
    leave(proc, &out, fds);
}

/* ---- driven by a loop ---- */

typedef struct driven {
    t_output out;
    bool     done;
} driven;

static void on_change(void *user, hfsb_proc *proc, bool done) {
    driven *d = (driven *)user;
    (void)proc;
    d->done = done;
}

static void a_loop_drives_terminals(void) {
    enum { N = 20 };
    size_t         fds = t_open_fds(), i;
    hfsbi_loop    *loop = loop_open(0);
    hfsb_proc_opts o = terminal_opts();
    driven         d[N];
    hfsb_proc     *proc[N];
    long long      end = hfsb_clock_ms() + t_patience(10000);
    memset(d, 0, sizeof d);
    for (i = 0; i < N; i++) {
        proc[i] = t_start(
            &o, "stty -echo; read a; echo \"<$a>\"; cat; echo end", &d[i].out);
        hfsbi_proc_attach(proc[i], loop, on_change, &d[i]);
    }
    for (i = 0; i < N; i++) {
        type(proc[i], "first\n");
        end_input(proc[i], "more\n");
    }
    for (i = 0; i < N; i++) {
        while (!d[i].done && hfsb_clock_ms() < end) loop_turn(loop, 1000);
        T_CHECK(d[i].done && has(&d[i].out, "<first>\r\nmore\r\nend\r\n"));
        hfsb_proc_close(proc[i]);
        t_output_free(&d[i].out);
    }
    T_CHECK(hfsbi_loop_deadline(loop) == -1);
    hfsbi_loop_close(loop);
    T_CHECK(t_open_fds() == fds);
}

/* ---- confined ---- */

#ifdef HFSBI_LINUX
static char self[PATH_MAX];

/* Types into the terminal, as a hostile command would. */
static int try_to_type(void) {
    int fd = open("/dev/tty", O_RDWR), rc;
    rc = ioctl(fd, 0x5412 /* TIOCSTI */, "x");
    printf("%s %s\n", fd >= 0 ? "tty" : "none",
           rc < 0 ? strerror(errno) : "typed");
    return 0;
}

static void confined(hfsb_confine_level level, bool spaces) {
    const char       *dirs[1], *reads[1];
    hfsb_confine_opts c = HFSB_INIT;
    hfsbi_confine_how how = HFSB_INIT;
    hfsb_confine     *confine = NULL;
    hfsb_proc_opts    o = terminal_opts(), plain = HFSB_INIT;
    t_output          out = HFSB_INIT;
    hfsb_proc        *proc;
    char              top[] = "/tmp/hfsb-terminal-XXXXXX", command[PATH_MAX];
    char              bin[PATH_MAX];
    hfsb_err          err;
    T_CHECK(mkdtemp(top) != NULL);
    memcpy(bin, self, sizeof bin);
    *strrchr(bin, '/') = '\0';
    dirs[0] = top;
    reads[0] = bin;
    c.level = level;
    c.dirs = dirs;
    c.dir_count = 1;
    c.allow_read = reads;
    c.allow_read_count = 1;
    how.no_spaces = !spaces;
    plain.command = HFSB_LIT("true");
    /* ThreadSanitizer's thread keeps a child from joining namespaces */
    if (hfsbi_confine_open(&c, &how, &confine, &err) == HFSB_OK)
        plain.confine = o.confine = confine;
    if (!confine || hfsb_proc_run(&plain, NULL, NULL, NULL, &err) != HFSB_OK) {
        t_skip(err.msg);
        hfsb_confine_close(confine);
        rmdir(top);
        return;
    }
    snprintf(command, sizeof command,
             "trap 'stty size; exit 6' WINCH; stty -echo; tty; "
             "echo own > /dev/tty; %s type; "
             "echo x > /etc/hfsb-terminal || echo kept; echo go; "
             "while :; do sleep 0.05; done",
             self);
    proc = t_start(&o, command, &out);
    T_CHECK(t_until(proc, &out, "go\r\n"));
    T_CHECK(has(&out, "/dev/pts/") && has(&out, "own\r\n"));
    if (!has(&out, "tty Operation not permitted\r\n"))
        printf("%s: %.*s\n", hfsb_confine_text(confine), (int)out.out.len,
               out.out.ptr);
    T_CHECK(has(&out, "tty Operation not permitted\r\n"));
    T_CHECK(has(&out, "kept"));
    T_CHECK(hfsb_proc_resize(proc, 99, 33, NULL) == HFSB_OK);
    T_CHECK(t_finish(proc, 3000).exit_code == 6 && has(&out, "33 99\r\n"));
    hfsb_proc_close(proc);
    hfsb_confine_close(confine);
    t_output_free(&out);
    rmdir(top);
}
#endif

static void terminals_work_confined(void) {
#ifdef HFSBI_LINUX
    int i;
    for (i = 0; i < 4; i++)
        confined(i & 1 ? HFSB_CONFINE_STRICT : HFSB_CONFINE_WRITE, i < 2);
#endif
}

int main(int argc, char **argv) {
#ifdef HFSBI_LINUX
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (argc > 1 && strcmp(argv[1], "type") == 0) return try_to_type();
    if (n <= 0) abort();
#endif
    (void)argc, (void)argv;
    T_RUN(standard_descriptors_are_one_terminal);
    T_RUN(the_terminal_is_not_the_hosts);
    T_RUN(invalid_sizes_are_refused);
    T_RUN(failures_to_start_leave_nothing);
    T_RUN(systems_without_terminals_are_reported);
    T_RUN(too_few_descriptors_are_reported);
    T_RUN(every_allocation_may_fail);
    T_RUN(an_interactive_shell_prompts);
    T_RUN(input_is_echoed_and_edited);
    T_RUN(input_ends_at_the_start_of_a_line);
    T_RUN(input_ends_in_the_middle_of_a_line);
    T_RUN(without_input_it_ends_at_once);
    T_RUN(ctrl_c_interrupts);
    T_RUN(much_input_arrives);
    T_RUN(ten_megabytes_come_unchanged);
    T_RUN(the_last_output_is_never_lost);
    T_RUN(a_closed_terminal_does_not_end_the_command);
    T_RUN(resize_signals_the_command);
    T_RUN(survivors_that_ignore_hup_hold_the_terminal);
    T_RUN(kill_ends_what_ignores_hup_and_term);
    T_RUN(kill_ends_an_interactive_shell);
    T_RUN(timeouts_end_a_command);
    T_RUN(closing_kills_the_command);
    T_RUN(a_loop_drives_terminals);
    T_RUN(terminals_work_confined);
    return T_END();
}
