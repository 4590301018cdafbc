/* test_proc.c - starting commands, driving them, and giving them input. */
#include "../support/t_proc.h"

#define JOB t_job()

static char dir_path[] = "/tmp/hfsb-test-XXXXXX";

#define RUN_GIVES(o, command, want)                      \
    do {                                                 \
        hfsb_buf         text = HFSB_INIT;               \
        hfsb_proc_result res = t_run(o, command, &text); \
        T_CHECK(res.end == HFSB_PROC_EXITED);            \
        T_STR(text, want);                               \
        hfsb_buf_free(&text);                            \
    } while (0)

static void write_file(const char *name, const char *text, mode_t mode) {
    char  path[256];
    FILE *f;
    snprintf(path, sizeof path, "%s/%s", dir_path, name);
    f = fopen(path, "w");
    T_CHECK(f && fputs(text, f) >= 0);
    if (f) fclose(f);
    T_CHECK(chmod(path, mode) == 0);
}

/* ---- what cannot be started ---- */

static void refuses(const hfsb_proc_opts *o, hfsb_status code,
                    const char *msg) {
    hfsb_proc *proc = (hfsb_proc *)1;
    hfsb_err   err;
    size_t     fds = t_open_fds();
    if (t_valgrind() && (strstr(msg, "Cannot run ./") || code == HFSB_LIMIT)) {
        t_skip("not under valgrind");
        return;
    }
    T_CHECK(hfsb_proc_open(o, &proc, &err) == code);
    T_CHECK(err.code == code && proc == NULL);
    t_str(__FILE__, __LINE__, err.msg, strlen(err.msg), msg, strlen(msg));
    T_CHECK(hfsb_proc_open(o, &proc, NULL) == code);
    T_CHECK(t_open_fds() == fds && t_no_child());
}

static void open_refuses_wrong_arguments(void) {
    static const char *const argv[] = {"true", NULL}, *const none[] = {NULL};
    static const char *const bad_env[] = {"A=1", "novalue", NULL};
    hfsb_proc_opts           o = HFSB_INIT;
    refuses(&o, HFSB_ARG,
            "Give one of command and argv: command runs in a shell, argv "
            "without one.");
    o.command = HFSB_LIT("true");
    o.argv = argv;
    refuses(&o, HFSB_ARG,
            "Give only one of command and argv: command runs in a shell, "
            "argv without one.");
    o.command = HFSB_LIT("");
    o.argv = none;
    refuses(&o, HFSB_ARG, "argv is empty: its first item is the program.");
    o.argv = NULL;
    o.command = HFSB_LIT("ec\0ho");
    refuses(&o, HFSB_ARG,
            "The command contains a NUL byte at offset 2; no program can be "
            "given one. Remove it.");
    o.command = HFSB_LIT("true");
    o.job = HFSB_LIT("a\0b");
    refuses(&o, HFSB_ARG, "The job's id contains a NUL byte.");
    o.job = HFSB_LIT("");
    o.timeout_ms = -1;
    refuses(&o, HFSB_ARG,
            "timeout_ms is -1: give milliseconds, or 0 for no timeout.");
    o.timeout_ms = 0;
    o.env = bad_env;
    refuses(&o, HFSB_ARG,
            "env must consist of NAME=value, but has: novalue");
}

static void open_names_missing_programs_and_directories(void) {
    static const char *argv[] = {"no-such-program", NULL};
    hfsb_proc_opts     o = HFSB_INIT;
    char               text[512];
    o.argv = argv;
    refuses(&o, HFSB_NOT_FOUND,
            "Program not found: no-such-program (searched in PATH)");
    argv[0] = "/no/such/program";
    refuses(&o, HFSB_NOT_FOUND, "Program not found: /no/such/program");
    argv[0] = "";
    refuses(&o, HFSB_NOT_FOUND, "Program not found: ");
    argv[0] = "/dev/null/x";
    refuses(&o, HFSB_NOT_FOUND, "Program not found: /dev/null/x");
    argv[0] = "./no-interpreter";
    o.work_dir = dir_path;
    refuses(&o, HFSB_NOT_FOUND,
            "Cannot run ./no-interpreter: the interpreter that its first "
            "line names, or its loader, was not found");
    argv[0] = "./no-format";
    refuses(&o, HFSB_IO,
            "Cannot run ./no-format: not an executable format (a script "
            "needs a first line such as #!/bin/sh)");
    o.argv = NULL;
    o.command = HFSB_LIT("true");
    o.shell = "/no/shell\xFF";
    refuses(&o, HFSB_NOT_FOUND,
            "Program not found: /no/shell\xEF\xBF\xBD");
    o.shell = NULL;
    o.work_dir = "/no/such/dir";
    refuses(&o, HFSB_NOT_FOUND, "Working directory not found: /no/such/dir");
    snprintf(text, sizeof text, "%s/prog", dir_path);
    o.work_dir = text;
    {
        char msg[1024];
        snprintf(msg, sizeof msg,
                 "Working directory not found: %s (not a directory)", text);
        refuses(&o, HFSB_NOT_FOUND, msg);
    }
}

/* The same rules as execvp(), but in the child's PATH and directory. */
static void open_searches_the_path_of_the_command(void) {
    static const char *argv[] = {"prog", "x", NULL};
    static const char *env[] = {NULL, NULL};
    hfsb_proc_opts     o = HFSB_INIT;
    hfsb_buf           out = HFSB_INIT;
    char               path[512];
    hfsb_err           err;
    o.argv = argv;
    o.env = env;
    snprintf(path, sizeof path, "PATH=/no/such:%s/denied:%s", dir_path,
             dir_path);
    env[0] = path;
    T_CHECK(hfsb_proc_run(&o, &out, NULL, NULL, &err) == HFSB_OK);
    T_STR(out, "prog x\n");
    snprintf(path, sizeof path, "PATH=%s/denied:/no/such", dir_path);
    refuses(&o, HFSB_DENIED, "Cannot run prog: permission denied");
    o.work_dir = dir_path;
    env[0] = "PATH=/no/such:";
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsb_proc_run(&o, &out, NULL, NULL, &err) == HFSB_OK);
    T_STR(out, "prog x\n");
    env[0] = "PATH=denied/../denied:denied/..";
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsb_proc_run(&o, &out, NULL, NULL, &err) == HFSB_OK);
    T_STR(out, "prog x\n");
    env[0] = NULL; /* no PATH at all: the system's directories */
    refuses(&o, HFSB_NOT_FOUND,
            "Program not found: prog (searched in PATH)");
    argv[0] = "echo";
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsb_proc_run(&o, &out, NULL, NULL, &err) == HFSB_OK);
    T_STR(out, "x\n");
    hfsb_buf_free(&out);
}

/* ---- what the command sees ---- */

static void commands_get_their_environment(void) {
    static const char *const env[] = {"A=1", "HFSB_JOB=old", "B=", NULL};
    hfsb_proc_opts           o = HFSB_INIT;
    o.env = env;
    RUN_GIVES(&o, "echo $A.$B.$HFSB_JOB", "1..old\n");
    o.job = HFSB_LIT("new id");
    RUN_GIVES(&o,
              "/usr/bin/env | grep -v '^_=\\|^PWD=\\|^OLDPWD=\\|^SHLVL=' | "
              "LC_ALL=C sort",
              "A=1\nB=\nHFSB_JOB=new id\n");
    T_CHECK(setenv("HFSB_TEST_OWN", "mine", 1) == 0);
    T_CHECK(unsetenv("HFSB_JOB") == 0);
    o.env = NULL;
    RUN_GIVES(&o, "echo $HFSB_TEST_OWN $HFSB_JOB", "mine new id\n");
    o.job = HFSB_LIT("");
    RUN_GIVES(&o, "echo $HFSB_TEST_OWN $HFSB_JOB", "mine\n");
    T_CHECK(unsetenv("HFSB_TEST_OWN") == 0);
}

static void commands_may_begin_with_a_dash(void) {
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT;
    hfsb_proc_result r = t_run(&o, "-c 'echo no'; echo yes", &out);
    T_CHECK(r.end == HFSB_PROC_EXITED && r.exit_code == 0);
    T_STR(out, "yes\n");
    hfsb_buf_free(&out);
    RUN_GIVES(&o, "+x 2>/dev/null; echo yes", "yes\n");
    RUN_GIVES(&o, "", "");
}

static void long_commands(const char *shell) {
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_buf         text = HFSB_INIT, out = HFSB_INIT, err_out = HFSB_INIT;
    hfsb_proc_result r;
    hfsb_err         err;
    o.shell = shell;
    o.any_length = true;
    o.input = HFSB_LIT("from input\n");
    T_CHECK(hfsb_buf_append(&text,
                            HFSB_LIT("read x; echo \"$x\"; ls /proc/self/fd\n"
                                     "( exit 3 ); echo $?\nno_such_thing\n"
                                     "a='")) == HFSB_OK);
    t_fill(&text, 'x', 300000);
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("'; echo ${#a}; exit 42")) ==
            HFSB_OK);
    o.command = hfsb_buf_str(&text);
    T_CHECK(hfsb_proc_run(&o, &out, &err_out, &r, &err) == HFSB_OK);
    T_CHECK(r.end == HFSB_PROC_EXITED && r.exit_code == 42 && !r.incomplete);
    T_STR(out, "from input\n0\n1\n2\n3\n3\n300000\n"); /* 3 is ls's own */
    T_CHECK(hfsb_str_find(hfsb_buf_str(&err_out), HFSB_LIT("3: no_such")) !=
                HFSB_NPOS ||
            hfsb_str_find(hfsb_buf_str(&err_out), HFSB_LIT("line 3")) !=
                HFSB_NPOS);
    hfsb_buf_truncate(&text, 120000); /* the longest argument */
    text.ptr[0] = ':';
    memset(text.ptr + 1, ' ', text.len - 1);
    o.command = hfsb_buf_str(&text);
    T_CHECK(hfsb_proc_run(&o, NULL, NULL, &r, &err) == HFSB_OK);
    T_CHECK(r.end == HFSB_PROC_EXITED && r.exit_code == 0);
    hfsb_buf_free(&text);
    hfsb_buf_free(&out);
    hfsb_buf_free(&err_out);
}

static void commands_of_any_length_run_when_asked(void) {
    hfsb_proc_opts o = HFSB_INIT;
    hfsb_buf       text = HFSB_INIT;
    long_commands("/bin/sh");
    if (access("/bin/bash", X_OK) == 0) long_commands("/bin/bash");
    if (access("/bin/dash", X_OK) == 0) long_commands("/bin/dash");
    t_fill(&text, ':', 1);
    t_fill(&text, ' ', 4000000);
    o.command = hfsb_buf_str(&text);
    refuses(&o, HFSB_LIMIT,
            "The command, its arguments and its environment are too long for "
            "the system. Write the long part to a file and pass the file's "
            "name.");
    hfsb_buf_free(&text);
}

static void streams_can_be_merged(void) {
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT, err_out = HFSB_INIT;
    hfsb_proc_result r;
    o.command = HFSB_LIT("for i in 1 2 3; do echo o$i; echo e$i >&2; done");
    o.merge_stderr = true;
    T_CHECK(hfsb_proc_run(&o, &out, &err_out, &r, NULL) == HFSB_OK);
    T_STR(out, "o1\ne1\no2\ne2\no3\ne3\n");
    T_CHECK(err_out.len == 0 && r.stdout_bytes == 18 && r.stderr_bytes == 0);
    hfsb_buf_free(&out);
}

/* ---- driving it ---- */

static void a_host_loop_can_drive_a_command(void) {
    hfsb_proc_opts   o = t_quick_opts();
    t_output         output = HFSB_INIT;
    hfsb_watch       watch[HFSB_PROC_WATCHES];
    hfsb_proc_result r;
    hfsb_proc       *proc;
    size_t           fds = t_open_fds();
    int              pipes[2];
    proc = t_start(&o, "echo a; sleep 0.1; echo b >&2; exit 9", &output);
    r = hfsb_proc_status(proc);
    T_CHECK(r.end == HFSB_PROC_RUNNING && r.pid > 0 && t_runs(r.pid));
    T_CHECK(getsid((pid_t)r.pid) == (pid_t)r.pid);
    T_CHECK(hfsb_proc_watch(proc, watch) >= 2);
    r = t_finish(proc, 1000);
    T_CHECK(r.end == HFSB_PROC_EXITED && r.exit_code == 9 && r.signal == 0);
    T_CHECK(!r.timed_out && !r.killed && !r.incomplete);
    T_CHECK(r.stdout_bytes == 2 && r.stderr_bytes == 2);
    T_CHECK(r.duration_ms >= 90);
    T_STR(output.out, "a\n");
    T_STR(output.err, "b\n");
    /* the end is the end */
    T_CHECK(hfsb_proc_watch(proc, watch) == 0);
    T_CHECK(hfsb_proc_deadline(proc) == -1);
    hfsb_proc_kill(proc);
    T_CHECK(hfsb_proc_step(proc));
    T_CHECK(hfsb_proc_status(proc).exit_code == 9);
    T_CHECK(!hfsb_proc_status(proc).killed);
    T_CHECK(hfsb_proc_status(proc).duration_ms == r.duration_ms);
    T_CHECK(hfsb_proc_take_pipes(proc, pipes) == 0);
    hfsb_proc_close(proc);
    hfsb_proc_close(NULL);
    T_CHECK(t_no_child() && t_open_fds() == fds);
    t_output_free(&output);
}

static void a_step_reads_a_bounded_amount(void) {
    hfsb_proc_opts     o = t_quick_opts();
    hfsb_proc         *proc = t_start(&o, "cat /dev/zero", NULL);
    unsigned long long before = 0, most = 0;
    int                i;
    for (i = 0; i < 200; i++) {
        unsigned long long n;
        T_CHECK(t_wait(proc) && !hfsb_proc_step(proc));
        n = hfsb_proc_status(proc).stdout_bytes;
        if (n - before > most) most = n - before;
        before = n;
    }
    T_CHECK(most > 0 && most <= 262144);
    hfsb_proc_close(proc);
    T_CHECK(t_no_child() && t_marked(JOB, 0) == 0);
}

/* watch lists no descriptor that is always ready, and none without use. */
static void closed_pipes_are_not_watched(void) {
    hfsb_proc_opts o = t_quick_opts();
    hfsb_watch     watch[HFSB_PROC_WATCHES];
    size_t         rounds = 0;
    hfsb_proc     *proc;
    o.input = HFSB_LIT("not read");
    proc = t_start(&o, "exec 0<&- 1>&- 2>&-; sleep 0.4; exit 7", NULL);
    while (!hfsb_proc_step(proc) && rounds < 10000) {
        T_CHECK(t_wait(proc));
        rounds++;
    }
    T_CHECK(rounds < 100);
    T_CHECK(hfsb_proc_watch(proc, watch) == 0);
    T_CHECK(hfsb_proc_status(proc).exit_code == 7);
    hfsb_proc_close(proc);
}

static void deadline_reports_when_to_step(void) {
    hfsb_proc_opts o = t_quick_opts();
    hfsb_watch     watch[HFSB_PROC_WATCHES];
    long long      now = hfsb_clock_ms(), at;
    hfsb_proc     *proc;
    o.timeout_ms = 50000;
    proc = t_start(&o, "sleep 60", NULL);
    at = hfsb_proc_deadline(proc);
    if (hfsb_proc_watch(proc, watch) == 3) /* with a descriptor of it */
        T_CHECK(at >= now + 50000 && at <= hfsb_clock_ms() + 50000);
    else T_CHECK(at <= hfsb_clock_ms() + 50);
    hfsb_proc_kill(proc); /* until its exit or the end of the grace */
    at = hfsb_proc_deadline(proc);
    T_CHECK(at >= now && at <= hfsb_clock_ms() + o.grace_ms);
    t_finish(proc, 1000);
    hfsb_proc_close(proc);
    o.timeout_ms = LLONG_MAX;
    o.quiet_ms = o.quiet_max_ms = o.grace_ms = LLONG_MAX;
    proc = t_start(&o, "exit 0", NULL);
    T_CHECK(t_finish(proc, 1000).end == HFSB_PROC_EXITED);
    hfsb_proc_close(proc);
}

/* ---- input ---- */

static void input_can_be_given_while_it_runs(void) {
    hfsb_proc_opts   o = t_quick_opts();
    t_output         output = HFSB_INIT;
    hfsb_proc_result r;
    hfsb_proc       *proc;
    hfsb_err         err;
    o.keep_input = true;
    o.input = HFSB_LIT("1\n");
    proc = t_start(&o, "while read x; do echo \"[$x]\"; done; echo end",
                   &output);
    T_CHECK(t_until(proc, &output, "[1]\n"));
    T_CHECK(hfsb_proc_input(proc, HFSB_LIT("2\n"), false, &err) == HFSB_OK);
    T_CHECK(t_until(proc, &output, "[2]\n"));
    T_CHECK(hfsb_proc_input(proc, HFSB_LIT(""), false, &err) == HFSB_OK);
    T_CHECK(hfsb_proc_input(proc, HFSB_LIT("3\n"), true, &err) == HFSB_OK);
    T_CHECK(hfsb_proc_input(proc, HFSB_LIT("4\n"), true, &err) ==
            HFSB_REFUSED);
    T_STR(hfsb_cstr(err.msg), "The command's standard input is closed: by "
                              "an earlier call or by the command itself.");
    r = t_finish(proc, 1000);
    T_CHECK(r.exit_code == 0 && !r.incomplete);
    T_STR(output.out, "[1]\n[2]\n[3]\nend\n");
    T_CHECK(hfsb_proc_input(proc, HFSB_LIT("5"), true, &err) == HFSB_REFUSED);
    hfsb_proc_close(proc);
    /* without keep_input it ends with what was given */
    o.keep_input = false;
    proc = t_start(&o, "cat", NULL);
    T_CHECK(hfsb_proc_input(proc, HFSB_LIT("x"), false, &err) ==
            HFSB_REFUSED);
    T_CHECK(t_finish(proc, 1000).stdout_bytes == 2);
    hfsb_proc_close(proc);
    t_output_free(&output);
}

static void input_that_is_not_read_is_bounded(void) {
    hfsb_proc_opts o = t_quick_opts();
    hfsb_buf       big = HFSB_INIT;
    hfsb_proc     *proc;
    hfsb_err       err;
    t_fill(&big, 'z', 1200000);
    o.keep_input = true;
    proc = t_start(&o, "read x; kill -STOP $$; exec cat", NULL);
    T_CHECK(hfsb_proc_input(proc, hfsb_buf_str(&big), false, &err) ==
            HFSB_OK);
    T_CHECK(!hfsb_proc_step(proc));
    T_CHECK(hfsb_proc_input(proc, HFSB_LIT("more"), true, &err) ==
            HFSB_LIMIT);
    T_CHECK(strstr(err.msg, "The command has not read its input yet: 1"));
    T_CHECK(!hfsb_proc_step(proc)); /* and it was not ended */
    hfsb_proc_close(proc);
    hfsb_buf_free(&big);
}

static void input_in_pieces_arrives_in_order(void) {
    hfsb_proc_opts o = t_quick_opts();
    t_output       output = HFSB_INIT;
    hfsb_buf       all = HFSB_INIT;
    hfsb_proc     *proc;
    hfsb_err       err;
    size_t         i;
    o.keep_input = true;
    proc = t_start(&o, "sleep 0.1; cat", &output);
    for (i = 0; i < 30; i++) {
        size_t at = all.len;
        t_fill(&all, (char)('a' + i % 26), 30000 + i);
        T_CHECK(hfsb_proc_input(proc,
                                hfsb_str_slice(hfsb_buf_str(&all), at,
                                               all.len),
                                i == 29, &err) == HFSB_OK);
        if (i % 3 == 2) t_sleep(10);
        (void)hfsb_proc_step(proc);
    }
    T_CHECK(t_finish(proc, 1000).exit_code == 0);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&all), hfsb_buf_str(&output.out)));
    hfsb_proc_close(proc);
    hfsb_buf_free(&all);
    t_output_free(&output);
}

static void input_that_is_closed_is_noticed(void) {
    hfsb_proc_opts o = t_quick_opts();
    t_output       output = HFSB_INIT;
    hfsb_proc     *proc;
    hfsb_err       err;
    o.keep_input = true;
    proc = t_start(&o, "exec 0<&-; echo closed; sleep 0.3; exit 6", &output);
    T_CHECK(t_until(proc, &output, "closed"));
    T_CHECK(hfsb_proc_input(proc, HFSB_LIT("x"), false, &err) == HFSB_OK);
    T_CHECK(!hfsb_proc_step(proc));
    T_CHECK(hfsb_proc_input(proc, HFSB_LIT("x"), false, &err) ==
            HFSB_REFUSED);
    T_CHECK(t_finish(proc, 1000).exit_code == 6);
    hfsb_proc_close(proc);
    t_output_free(&output);
}

/* ---- all in one call ---- */

static void run_keeps_output_that_fits(void) {
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT, err_out = HFSB_INIT;
    t_output         seen = HFSB_INIT;
    hfsb_proc_result r;
    o.on_output = t_collect;
    o.user = &seen;
    out.max = 5;
    T_CHECK(hfsb_buf_append(&out, HFSB_LIT("<")) == HFSB_OK);
    o.command = HFSB_LIT("echo 123456789; sleep 0.05; echo 0; echo e >&2");
    T_CHECK(hfsb_proc_run(&o, &out, &err_out, &r, NULL) == HFSB_OK);
    T_STR(out, "<1234");
    T_STR(err_out, "e\n");
    T_STR(seen.out, "123456789\n0\n");
    T_STR(seen.err, "e\n");
    T_CHECK(r.stdout_bytes == 12 && r.stderr_bytes == 2 && !r.incomplete);
    hfsb_buf_free(&out);
    hfsb_buf_free(&err_out);
    t_output_free(&seen);
    o.on_output = NULL;
    T_CHECK(hfsb_proc_run(&o, NULL, NULL, NULL, NULL) == HFSB_OK);
    o.keep_input = true; /* has no meaning here, and does not hang */
    o.command = HFSB_LIT("cat");
    T_CHECK(hfsb_proc_run(&o, NULL, NULL, &r, NULL) == HFSB_OK);
    T_CHECK(r.end == HFSB_PROC_EXITED);
}

static void open_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    static const char *const argv[] = {"cat", NULL};
    hfsb_proc_opts           o = t_quick_opts();
    hfsb_proc               *proc;
    hfsb_err                 err;
    hfsb_status              st;
    size_t                   fds = t_open_fds();
    o.alloc = alloc;
    o.argv = argv;
    o.input = HFSB_LIT("abc");
    o.keep_input = true;
    o.work_dir = "/";
    st = hfsb_proc_open(&o, &proc, &err);
    T_CHECK(err.code == st);
    if (st != HFSB_OK) {
        T_CHECK(st == HFSB_NOMEM && !proc && heap->fail_at);
        T_STR(hfsb_cstr(err.msg), "Starting the command: out of memory.");
        T_CHECK(t_no_child() && t_open_fds() == fds);
        return;
    }
    st = hfsb_proc_input(proc, HFSB_LIT("def"), true, &err);
    if (st != HFSB_OK) {
        T_CHECK(st == HFSB_NOMEM);
        T_STR(hfsb_cstr(err.msg), "Writing to the command: out of memory.");
        T_CHECK(hfsb_proc_input(proc, HFSB_LIT(""), true, &err) == HFSB_OK);
    }
    T_CHECK(t_finish(proc, 1000).stdout_bytes ==
            (st == HFSB_OK ? 6u : 3u));
    hfsb_proc_close(proc);
}

static void run_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_proc_opts   o = t_quick_opts();
    hfsb_buf         out = HFSB_INIT;
    hfsb_proc_result r = HFSB_INIT;
    hfsb_err         err;
    o.alloc = out.alloc = alloc;
    o.command = HFSB_LIT("echo one; sleep 0.05; echo two");
    if (hfsb_proc_run(&o, &out, NULL, &r, &err) == HFSB_OK) {
        T_CHECK(r.stdout_bytes == 8 && r.end == HFSB_PROC_EXITED);
        T_CHECK(r.incomplete == (out.len < 8));
        T_CHECK(out.len == 0 || out.len == 4 || out.len == 8);
        T_CHECK(out.len == 8 || heap->fail_at);
    } else {
        T_CHECK(err.code == HFSB_NOMEM && heap->fail_at);
    }
    hfsb_buf_free(&out);
    T_CHECK(t_no_child());
}

/* A kill works without memory too. */
static void kill_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_proc_opts o = t_quick_opts();
    hfsb_proc     *proc;
    o.alloc = alloc;
    o.command = HFSB_LIT("setsid sleep 61 & sleep 62");
    o.timeout_ms = 150;
    if (hfsb_proc_open(&o, &proc, NULL) != HFSB_OK) return;
    T_CHECK(t_finish(proc, 1000).timed_out);
    hfsb_proc_close(proc);
    if (heap->forever) t_kill_marked(JOB);
#ifdef HFSBI_LINUX
    else T_CHECK(t_marked(JOB, 0) == 0);
#endif
    t_kill_marked(JOB);
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(open_without_memory);
    t_each_allocation_fails(run_without_memory);
    t_each_allocation_fails(kill_without_memory);
}

static void make_dir(void) {
    char path[256];
    if (!mkdtemp(dir_path)) abort();
    write_file("prog", "#!/bin/sh\necho prog \"$@\"\n", 0755);
    write_file("no-format", "echo hi\n", 0755);
    write_file("no-interpreter", "#!/no/such/interpreter\n", 0755);
    snprintf(path, sizeof path, "%s/denied", dir_path);
    T_CHECK(mkdir(path, 0755) == 0);
    write_file("denied/prog", "#!/bin/sh\necho wrong\n", 0644);
}

static void remove_dir(void) {
    static const char *const names[] = {"prog", "no-format", "no-interpreter",
                                        "denied/prog"};
    char   path[256];
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir_path, names[i]);
        T_CHECK(unlink(path) == 0);
    }
    snprintf(path, sizeof path, "%s/denied", dir_path);
    T_CHECK(rmdir(path) == 0);
    T_CHECK(rmdir(dir_path) == 0);
}

int main(void) {
    size_t fds = t_open_fds();
    (void)t_job(); /* of this process, not of one it forks */
    make_dir();
    T_RUN(open_refuses_wrong_arguments);
    T_RUN(open_names_missing_programs_and_directories);
    T_RUN(open_searches_the_path_of_the_command);
    T_RUN(commands_get_their_environment);
    T_RUN(commands_may_begin_with_a_dash);
    T_RUN(commands_of_any_length_run_when_asked);
    T_RUN(streams_can_be_merged);
    T_RUN(a_host_loop_can_drive_a_command);
    T_RUN(a_step_reads_a_bounded_amount);
    T_RUN(closed_pipes_are_not_watched);
    T_RUN(deadline_reports_when_to_step);
    T_RUN(input_can_be_given_while_it_runs);
    T_RUN(input_that_is_not_read_is_bounded);
    T_RUN(input_in_pieces_arrives_in_order);
    T_RUN(input_that_is_closed_is_noticed);
    T_RUN(run_keeps_output_that_fits);
    T_RUN(each_allocation_fails_cleanly);
    remove_dir();
    T_CHECK(t_no_child() && t_open_fds() == fds);
    return T_END();
}
