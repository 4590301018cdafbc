/* test_tools_bash.c - the tool bash: what it runs, in what, when it
   answers. */
#include "../support/t_tools.h"

/* ---- a command and its end ---- */

typedef struct end_case {
    const char *command;        /* @: an unlikely number of seconds */
    const char *output;         /* NULL: whatever */
    const char *error;          /* NULL: it works */
    const char *timeout;        /* JSON, or NULL */
    long long   min_ms, max_ms; /* 0: no matter */
} end_case;

/* The upper bounds tell an answer from a hang, no more. */
static const end_case end_cases[] = {
    {"true", "", NULL, NULL, 0, 20000},
    {"", "", NULL, NULL, 0, 0},
    {"exit 42", "", "Exit code 42", NULL, 0, 0},
    {"exit 255", "", "Exit code 255", NULL, 0, 0},
    {"kill -SEGV $$", "", "Exit code -11", NULL, 0, 0},
    {"kill -KILL $$", "", "Exit code -9", NULL, 0, 0},
    {"kill -TERM 0; sleep @", "", "Exit code -15", NULL, 0, 20000},
    {"{ sh -c 'kill -TERM $$'; } 2>/dev/null; echo $?", "143\n", NULL, NULL, 0, 0},
    {"nosuchcommand_x 2>/dev/null", "", "Exit code 127", NULL, 0, 0},
    {"if then", NULL, "Exit code 2", NULL, 0, 0},
    {"echo o; exit 3", "o\n", "Exit code 3", NULL, 0, 0},
    {"ulimit -t 1; while :; do :; done", "", "Exit code -9", "60", 0, 55000},
    /* closed pipes are no exit */
    {"exec 1>&- 2>&-; sleep 0.4; exit 7", "", "Exit code 7", NULL, 350, 0},
    /* the text of the command */
    {"echo a\necho b\n\n  echo c", "a\nb\nc\n", NULL, NULL, 0, 0},
    {"printf '%s\\n' 'a\"b' \"c'd\" e\\ f", "a\"b\nc'd\ne f\n", NULL, NULL, 0,
     0},
    {"printf %s 'h\xC3\xA9llo\xE2\x86\x92\xF0\x9F\x98\x80'",
     "h\xC3\xA9llo\xE2\x86\x92\xF0\x9F\x98\x80", NULL, NULL, 0, 0},
    /* no terminal, nothing to read */
    {"cat; echo rc=$?", "rc=0\n", NULL, NULL, 0, 20000},
    {"test -t 0 || test -t 1 || test -t 2; echo $?", "1\n", NULL, NULL, 0, 0},
    {"(: > /dev/tty) 2>/dev/null && echo tty || echo none", "none\n", NULL,
     NULL, 0, 0},
    {"for i in 1 2 3; do echo $i; sleep 0.1; done", "1\n2\n3\n", NULL, NULL,
     250, 0},
    /* too long */
    {"sleep @", "", "Timeout after 0.3s", "0.3", 250, 20000},
    {"echo partial; sleep @", "partial\n", "Timeout after 0.7s", "0.7", 0,
     50000},
    {"echo o; echo e >&2; sleep @", "o\ne\n", "Timeout after 0.7s", "0.7", 0,
     50000},
    {"exec 2>/dev/null; trap 'echo cleaning; exit 3' TERM; while :; do sleep "
     "0.05; done",
     "cleaning\n", "Timeout after 0.7s", "0.7", 0, 50000},
    {"trap '' TERM; while :; do sleep 0.2; done", "", "Timeout after 0.3s",
     "0.3", 0, 20000},
    {"kill -STOP $$; echo woke", NULL, "Timeout after 0.4s", "0.4", 0, 20000},
    {"sleep @ & kill -STOP $!; wait", "", "Timeout after 0.4s", "0.4", 0,
     20000},
    {"sleep @ | sleep @ | sleep @", "", "Timeout after 0.3s", "0.3", 0, 20000},
    {"i=0; while [ $i -lt 50 ]; do sleep @ & i=$((i+1)); done; wait", "",
     "Timeout after 1s", "1", 0, 30000},
    {"i=0; while [ $i -lt 2000 ]; do sleep @ & i=$((i+1)); done; wait", "",
     "Timeout after 0.1s", "0.1", 0, 30000},
    {"exec 0<&- 1>&- 2>&-; sleep @", "", "Timeout after 0.3s", "0.3", 0,
     20000},
    {"sleep 0.25", "", NULL, "5", 0, 0},
    {"sleep @", "", "Timeout after 0.3s", "\"0.3\"", 0, 20000},
};

/* Runs it again with more time, if that was too short on a busy machine for
   what should be printed; *error is what is said then. */
static void more_time(tt_reply *r, hfsb_str command, const char *output,
                      const char **error) {
    static const char *const times[] = {"3", "Timeout after 3s", "15",
                                        "Timeout after 15s"};
    hfsb_tools_opts          opts = HFSB_INIT;
    hfsb_tools              *tools;
    size_t                   i;
    opts.grace_ms = 10000;
    tools = tt_open(&opts);
    for (i = 0; i < 4 && !hfsb_str_equal(hfsb_buf_str(&r->res.output),
                                         hfsb_cstr(output));
         i += 2) {
        tt_call(r, tools, "bash", "command=v timeout=j", command, times[i]);
        *error = times[i + 1];
    }
    hfsb_tools_close(tools);
}

static void commands_end_as_they_should(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_buf        command = HFSB_INIT;
    size_t          i;
    opts.grace_ms = 300;
    tools = tt_open(&opts);
    for (i = 0; i < TT_COUNT(end_cases); i++) {
        const end_case *c = &end_cases[i];
        long long       begin = hfsb_clock_ms(), took;
        size_t          failed = t_failed;
        bool            late = c->error && !strncmp(c->error, "Timeout", 7);
        const char     *error = c->error;
        tt_with_nap(c->command, &command);
        tt_call(&r, tools, "bash", "command=v timeout=j",
                hfsb_buf_str(&command), c->timeout);
        if (late && c->output && *c->output)
            more_time(&r, hfsb_buf_str(&command), c->output, &error);
        took = hfsb_clock_ms() - begin;
        T_CHECK(r.st == HFSB_OK);
        tt_expect(__LINE__, &r, !error, c->output, error);
        if (error)
            T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.res.error),
                                   hfsb_cstr(error)));
        T_CHECK(tt_flag(&r, "timed_out") == late);
        T_CHECK(took >= c->min_ms && (!c->max_ms || took <= c->max_ms));
        T_CHECK(tt_int(&r, "duration_ms") >= c->min_ms &&
                tt_int(&r, "duration_ms") <= took + 1);
        T_CHECK(tt_running(tt_nap()) == 0);
        if (failed != t_failed)
            printf("  %s: %lld ms, exit code %lld\n", c->command, took,
                   tt_int(&r, "exit_code"));
    }
    tt_drop(&r);
    hfsb_buf_free(&command);
    hfsb_tools_close(tools);
}

/* A child that lives on does not hold the reply back; what it says within a
   tenth of a second is still taken. On a busy machine it may be late for that:
   one try of many has to be in time. */
static void a_moment_is_left_for_late_output(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    bool        taken = false;
    int         i;
    for (i = 0; i < 50 && !taken; i++) {
        tt_call(&r, tools, "bash", "command=s",
                "(sleep 0.05; echo late) & echo early");
        taken = hfsb_str_equal(hfsb_buf_str(&r.res.output),
                               HFSB_LIT("early\nlate\n"));
        if (!taken)
            tt_expect(__LINE__, &r, true, "early\n", NULL);
    }
    T_CHECK(taken);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void keys_report_how_a_command_ended(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "bash", "command=s", "echo a");
    T_CHECK(tt_int(&r, "exit_code") == 0 && !tt_flag(&r, "timed_out"));
    T_CHECK(tt_int(&r, "total_chars") == 2 && !tt_flag(&r, "truncated"));
    T_CHECK(hfsb_json_count(hfsb_json_get(r.extra.root, "left_running")) == 0);
    T_CHECK(!tt_text(&r, "spill_path").len);
    tt_call(&r, tools, "bash", "command=s", "exit 200");
    T_CHECK(tt_int(&r, "exit_code") == 200);
    tt_call(&r, tools, "bash", "command=s", "kill -SEGV $$");
    T_CHECK(tt_int(&r, "signal") == 11);
    tt_call(&r, tools, "bash", "command=s timeout=j", "sleep 60", "0.2");
    T_CHECK(tt_flag(&r, "timed_out"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void timeouts_have_a_default_and_an_end(void) {
    static const char *const none[] = {NULL, "null", "0", "0.0", "\"0\""};
    hfsb_tools_opts          opts = HFSB_INIT;
    hfsb_tools              *tools;
    tt_reply                 r = HFSB_INIT;
    size_t                   i;
    opts.timeout = 0.25;
    opts.max_timeout = 2.9;
    tools = tt_open(&opts);
    for (i = 0; i < TT_COUNT(none); i++) {
        tt_call(&r, tools, "bash", "command=s timeout=j", "sleep 60", none[i]);
        TT_ENDS(&r, "", "Timeout after 0.25s");
    }
    /* more than allowed: that is said, and what counts then */
    tt_call(&r, tools, "bash", "command=s timeout=j", "echo x; sleep 60",
            "99");
    TT_FAIL(&r, "Timeout after 2.9s");
    T_CHECK(tt_says(&r.res.output, "x\n"));
    T_CHECK(tt_says(&r.res.output, "2.9"));
    tt_call(&r, tools, "bash", "command=s timeout=j", "echo x", "99");
    T_CHECK(r.res.success && tt_says(&r.res.output, "2.9"));
    tt_call(&r, tools, "bash", "command=s timeout=j", "echo x", "2.9");
    TT_OK(&r, "x\n");
    tt_call(&r, tools, "bash", "command=s timeout=j", "echo x > ran", "-1");
    T_CHECK(r.st == HFSB_ARG && tt_says(&r.res.error, "timeout"));
    T_CHECK(access("ran", F_OK) != 0);
    hfsb_tools_close(tools);
    tools = tt_open(NULL);
    tt_call(&r, tools, "bash", "command=s timeout=j", "echo x", "5000");
    T_CHECK(r.res.success && tt_says(&r.res.output, "1200"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- what it runs in ---- */

static void a_command_has_a_session_and_nothing_else(void) {
    hfsb_tools      *tools;
    tt_reply         r = HFSB_INIT;
    sigset_t         block, old;
    int              fds[2];
    struct sigaction ignore, was;
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    T_CHECK(!pipe(fds)); /* may be inherited, but must not be */
    sigemptyset(&block);
    sigaddset(&block, SIGTERM);
    sigaddset(&block, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &block, &old);
    sigaction(SIGPIPE, &ignore, &was);
    tools = tt_open(NULL);
    tt_call(&r, tools, "bash", "command=s",
            "cut -d' ' -f5,6 /proc/self/stat | tr ' ' '\\n' | sort -u | wc "
            "-l; ls /proc/self/fd | wc -l; grep -E '^Sig(Blk|Ign)' "
            "/proc/self/status; readlink /proc/self/fd/0");
    TT_OK(&r, "1\n4\nSigBlk:\t0000000000000000\n"
              "SigIgn:\t0000000000000000\n/dev/null\n");
    tt_call(&r, tools, "bash", "command=s", "ps -o sid= -p $$ | tr -d ' '");
    T_CHECK(tt_number(hfsb_buf_str(&r.res.output), 0) != (long)getsid(0));
    tt_call(&r, tools, "bash", "command=s", "yes 2>/dev/null | head -n1");
    TT_OK(&r, "y\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
    sigaction(SIGPIPE, &was, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    close(fds[0]);
    close(fds[1]);
}

static void secrets_of_a_space_are_there_but_not_the_token(void) {
    static const char *const hidden[] = {"MY_TOKEN", "OTHER", NULL};
    static const char        show[] =
        "echo \"$SANDBOX_API_TOKEN|$MY_TOKEN|$HF_TOKEN|$TERM|$NO_COLOR|$PAGER"
        "|$GIT_PAGER|$GIT_TERMINAL_PROMPT|$PYTHONUNBUFFERED\"";
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    setenv("SANDBOX_API_TOKEN", "s3cret", 1);
    setenv("MY_TOKEN", "s3cret", 1);
    setenv("HF_TOKEN", "hf_x", 1);
    setenv("TERM", "xterm-256color", 1);
    setenv("PAGER", "less", 1);
    opts.hide_env = hidden;
    tools = tt_open(&opts);
    tt_call(&r, tools, "bash", "command=s", show);
    TT_OK(&r, "||hf_x|dumb|1|cat|cat|0|1\n");
    tt_call(&r, tools, "bash", "command=s", "env | grep -c s3cret");
    TT_ENDS(&r, "0\n", "Exit code 1");
    tt_call(&r, tools, "bash", "command=s env=j", show,
            "{\"TERM\":\"vt100\",\"PAGER\":\"more\",\"HF_TOKEN\":\"\"}");
    TT_OK(&r, "|||vt100|1|more|cat|0|1\n");
    tt_call(&r, tools, "bash", "command=s env=j", "echo \"[$A]\"",
            "{\"A\":\"b c=d\\n\\u00e9\"}");
    TT_OK(&r, "[b c=d\n\xC3\xA9]\n");
    tt_call(&r, tools, "bash", "command=s",
            "test -n \"$HFSB_JOB\" && env | grep -c ^HFSB_JOB=");
    TT_OK(&r, "1\n");
    hfsb_tools_close(tools);
    unsetenv("MY_TOKEN");
    unsetenv("HF_TOKEN");
    unsetenv("PAGER");
    unsetenv("SANDBOX_API_TOKEN");
    tt_drop(&r);
}

static void variables_that_cannot_be_are_refused(void) {
    static const char *const bad[] = {"{\"\":\"x\"}",
                                      "{\"a=b\":\"x\"}",
                                      "{\"a\\u0000b\":\"x\"}",
                                      "{\"a\":\"x\\u0000y\"}",
                                      "{\"a\":[1]}",
                                      "[\"a=b\"]",
                                      "\"a=b\""};
    hfsb_tools              *tools = tt_open(NULL);
    tt_reply                 r = HFSB_INIT;
    size_t                   i;
    for (i = 0; i < TT_COUNT(bad); i++) {
        tt_call(&r, tools, "bash", "command=s env=j", "echo x > env-ran",
                bad[i]);
        T_CHECK(!r.res.success && tt_says(&r.res.error, "env"));
        if (r.res.success || !tt_says(&r.res.error, "env"))
            printf("  %s: %s\n", bad[i], r.res.error.ptr);
    }
    T_CHECK(access("env-ran", F_OK) != 0);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void the_environment_can_be_given(void) {
    static const char *const env[] = {"PATH=/usr/bin:/bin", "ONLY=this",
                                      "SANDBOX_API_TOKEN=x", NULL};
    hfsb_tools_opts          opts = HFSB_INIT;
    hfsb_tools              *tools;
    tt_reply                 r = HFSB_INIT;
    setenv("HFSB_NOT_THERE", "1", 1);
    opts.env = env;
    tools = tt_open(&opts);
    tt_call(&r, tools, "bash", "command=s",
            "echo \"$ONLY$HFSB_NOT_THERE$SANDBOX_API_TOKEN$TERM\"");
    TT_OK(&r, "thisdumb\n");
    unsetenv("HFSB_NOT_THERE");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void commands_run_in_their_work_dir(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_buf        want = HFSB_INIT;
    char            dir[100];
    mkdir("sub", 0755);
    mkdir("sub/deep", 0755);
    tt_put("plain", HFSB_LIT(""));
    snprintf(dir, sizeof dir, "%s/work/sub", tt_dir);
    opts.work_dir = hfsb_cstr(dir);
    tools = tt_open(&opts);
    T_CHECK(hfsb_buf_printf(&want, "%s\n", dir) == HFSB_OK);
    tt_call(&r, tools, "bash", "command=s", "pwd");
    TT_OK(&r, want.ptr);
    tt_call(&r, tools, "bash", "command=s work_dir=j", "pwd", "null");
    TT_OK(&r, want.ptr);
    hfsb_buf_truncate(&want, 0);
    T_CHECK(hfsb_buf_printf(&want, "%s/deep\n", dir) == HFSB_OK);
    tt_call(&r, tools, "bash", "command=s work_dir=s", "pwd", "deep");
    TT_OK(&r, want.ptr);
    tt_call(&r, tools, "bash", "command=s work_dir=s", "pwd", "/tmp");
    TT_OK(&r, "/tmp\n");
    tt_call(&r, tools, "bash", "command=s work_dir=s", "pwd", "nowhere");
    T_STR(r.res.error, "Working directory not found: nowhere");
    T_CHECK(!r.res.success && r.st == HFSB_OK);
    tt_call(&r, tools, "bash", "command=s work_dir=s", "pwd", "/no/such");
    T_STR(r.res.error, "Working directory not found: /no/such");
    tt_call(&r, tools, "bash", "command=s work_dir=s", "pwd", "../plain");
    TT_FAIL(&r, "");
    T_CHECK(tt_says(&r.res.error, "plain"));
    tt_call(&r, tools, "bash", "command=s work_dir=s", "pwd", "~");
    TT_FAIL(&r, "Working directory not found: ~");
    T_CHECK(tt_says(&r.res.error, "expanded"));
    hfsb_tools_close(tools);
    hfsb_buf_free(&want);
    tt_drop(&r);
}

/* Models write bash for a tool of that name. */
static void commands_run_in_bash_where_there_is_one(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    list = HFSB_INIT;
    bool        bash = access("/bin/bash", X_OK) == 0;
    tt_call(&r, tools, "bash", "command=s", "echo \"[$BASH_VERSION]\"");
    T_CHECK(r.res.success && (r.res.output.len > 4) == bash);
    T_CHECK(hfsb_tools_define(HFSB_TOOLS_FLAT, &list, NULL) == HFSB_OK);
    T_CHECK(tt_says(&list, bash ? "Run a command with /bin/bash,"
                                : "Run a command with /"));
    hfsb_buf_free(&list);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void another_shell_may_be_asked_for(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    if (access("/bin/bash", X_OK) == 0) {
        tt_call(&r, tools, "bash", "command=s shell=s",
                "a=(1 2); echo ${#a[@]}", "/bin/bash");
        TT_OK(&r, "2\n");
    } else {
        printf("no /bin/bash: another shell is not tried\n");
        t_skipped++;
    }
    tt_call(&r, tools, "bash", "command=s shell=s", "true", "/no/such/shell");
    TT_FAIL(&r, "");
    T_CHECK(tt_says(&r.res.error, "/no/such/shell"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* 131,072 bytes are the most that Linux takes as one argument. */
static void long_commands_run(void) {
    static const size_t sizes[] = {100000, 119990, 120010, 131060,
                                   131070, 131080, 500000, 3000000};
    hfsb_tools         *tools = tt_open(NULL);
    tt_reply            r = HFSB_INIT;
    size_t              i;
    for (i = 0; i < TT_COUNT(sizes); i++) {
        hfsb_buf command = HFSB_INIT;
        T_CHECK(hfsb_buf_append(&command,
                                HFSB_LIT("cat; ls /proc/self/fd | wc -l #")) ==
                HFSB_OK);
        while (command.len < sizes[i])
            if (hfsb_buf_append_byte(&command, 'x') != HFSB_OK) abort();
        if (hfsb_buf_append(&command, HFSB_LIT("\nexit 9")) != HFSB_OK)
            abort();
        tt_call(&r, tools, "bash", "command=v stdin=s", hfsb_buf_str(&command),
                "in ");
        TT_FAIL(&r, "Exit code 9");
        T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output), HFSB_LIT("in ")));
        hfsb_buf_free(&command);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- standard input ---- */

static void input_is_fed_whatever_the_command_does(void) {
    static const struct {
        const char *command;
        size_t      size;
        const char *output, *error;
    } cases[] = {{"wc -c", 0, "0\n", NULL},
                 {"wc -c | tr -d ' '", 1, "1\n", NULL},
                 {"wc -c | tr -d ' '", 3000000, "3000000\n", NULL},
                 {"exit 5", 1000000, "", "Exit code 5"},
                 {"exec 0<&-; sleep 0.3; echo ok", 1000000, "ok\n", NULL},
                 {"head -c 3", 1000000, "xxx", NULL},
                 {"cat >/dev/null; head -c 100000 /dev/zero | wc -c", 200000,
                  "100000\n", NULL}};
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    for (i = 0; i < TT_COUNT(cases); i++) {
        hfsb_buf in = HFSB_INIT;
        while (in.len < cases[i].size)
            if (hfsb_buf_append_byte(&in, 'x') != HFSB_OK) abort();
        tt_call(&r, tools, "bash", "command=s stdin=v timeout=j",
                cases[i].command, hfsb_buf_str(&in), "20");
        tt_expect(__LINE__, &r, !cases[i].error, cases[i].output,
                  cases[i].error);
        hfsb_buf_free(&in);
    }
    tt_call(&r, tools, "bash", "command=s stdin=s", "read x; echo \"[$x]\"",
            "hello\nrest\n");
    TT_OK(&r, "[hello]\n");
    tt_call(&r, tools, "bash", "command=s stdin=v", "od -An -c | tr -d ' \\n'",
            hfsb_str_make("a\0\xC3\xA9", 4));
    TT_OK(&r, "a\\0303251");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(commands_end_as_they_should);
    TT_RUN(a_moment_is_left_for_late_output);
    TT_RUN(keys_report_how_a_command_ended);
    TT_RUN(timeouts_have_a_default_and_an_end);
    TT_RUN(a_command_has_a_session_and_nothing_else);
    TT_RUN(secrets_of_a_space_are_there_but_not_the_token);
    TT_RUN(variables_that_cannot_be_are_refused);
    TT_RUN(the_environment_can_be_given);
    TT_RUN(commands_run_in_their_work_dir);
    TT_RUN(commands_run_in_bash_where_there_is_one);
    TT_RUN(another_shell_may_be_asked_for);
    TT_RUN(long_commands_run);
    TT_RUN(input_is_fed_whatever_the_command_does);
    return TT_END();
}
