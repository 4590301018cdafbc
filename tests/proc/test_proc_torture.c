/* test_proc_torture.c - commands that runners get wrong, each with its
   outcome: a table. Needs bash. */
#include "../support/t_proc.h"

#define SHELL "/bin/bash"
#define JOB   t_job()

/* end:  "exit N", "signal N", "timed out [exit N|signal N]", or the start of
         the error of a command that could not be started (`out` is then
         about the error)
   out, err:  "=text" that and no more, "~text" among others, "#n" so many
         bytes, "<n" and ">n" a number at most or at least n, "xHEX" bytes,
         NULL whatever
   wall: milliseconds that it may take at most (0: 5000), and at least
   left: no process of the command is left
   One that times out before it has got as far as it should, or does not hear
   TERM within the grace, on a busy machine, has four times the time then. */
typedef struct torture {
    const char *id, *command;
    int         timeout;
    const char *input;
    size_t      input_len; /* so many bytes of input instead */
    const char *end, *out, *err;
    int         wall_max, wall_min;
    bool        left;
} torture;

static const torture table[] = {
    {"exit-0", "true", 0, NULL, 0, "exit 0", "=", NULL, 0, 0, true},
    {"exit-42", "exit 42", 0, NULL, 0, "exit 42", NULL, NULL, 0, 0, true},
    {"exit-255", "exit 255", 0, NULL, 0, "exit 255", NULL, NULL, 0, 0, true},
    {"exit-256", "sh -c \"exit 256\"", 0, NULL, 0, "exit 0", NULL, NULL, 0, 0,
     true},
    {"sig-segv", "kill -SEGV $$", 0, NULL, 0, "signal 11", NULL, NULL, 0, 0,
     true},
    {"sig-kill", "kill -KILL $$", 0, NULL, 0, "signal 9", NULL, NULL, 0, 0,
     true},
    {"sig-in-child", "sh -c \"kill -TERM \\$\\$\"; echo $?", 0, NULL, 0,
     "exit 0", "=143\n", NULL, 0, 0, true},
    {"exec-missing", NULL, 0, NULL, 0, "Program not found: /no/such/binary",
     NULL, NULL, 0, 0, true},
    {"exec-noexec", NULL, 0, NULL, 0, "Cannot run ", "~: permission denied",
     NULL, 0, 0, true},
    {"exec-dir", NULL, 0, NULL, 0, "Cannot run /tmp: permission denied", NULL,
     NULL, 0, 0, true},
    {"exec-notelf", NULL, 0, NULL, 0, "Cannot run ",
     "~not an executable format", NULL, 0, 0, true},
    {"sh-missing", "nosuchcommand_x", 0, NULL, 0, "exit 127", "=",
     "~nosuchcommand_x", 0, 0, true},
    {"sh-syntax", "if then", 0, NULL, 0, "exit 2", "=", "~syntax error", 0, 0,
     true},
    {"out-both", "echo o; echo e >&2", 0, NULL, 0, "exit 0", "=o\n", "=e\n",
     0, 0, true},
    {"out-none-nl", "printf abc", 0, NULL, 0, "exit 0", "=abc", NULL, 0, 0,
     true},
    {"out-nul", "printf \"a\\0b\"", 0, NULL, 0, "exit 0", "x610062", NULL, 0,
     0, true},
    {"out-bad-utf8", "printf \"\\377\\376ok\\n\"", 0, NULL, 0, "exit 0",
     "xfffe6f6b0a", NULL, 0, 0, true},
    {"out-utf8-split",
     "printf \"\\342\"; sleep 0.2; printf \"\\202\"; sleep 0.2; "
     "printf \"\\254\"",
     0, NULL, 0, "exit 0", "xe282ac", NULL, 0, 0, true},
    {"out-4byte-split",
     "printf \"\\360\\237\"; sleep 0.2; printf \"\\230\\200\"", 0, NULL, 0,
     "exit 0", "xf09f9880", NULL, 0, 0, true},
    {"out-ansi-split",
     "printf \"\\033[3\"; sleep 0.2; printf \"1mred\\033[0m\"", 0, NULL, 0,
     "exit 0", "x1b5b33316d7265641b5b306d", NULL, 0, 0, true},
    {"out-osc-split",
     "printf \"\\033]0;ti\"; sleep 0.2; printf \"tle\\007x\"", 0, NULL, 0,
     "exit 0", "x1b5d303b7469746c650778", NULL, 0, 0, true},
    {"out-osc-unterminated",
     "printf \"\\033]0;never ends\"; printf \"\\nnext line\\n\"", 0, NULL, 0,
     "exit 0", "~next line", NULL, 0, 0, true},
    {"out-crlf", "printf \"a\\r\\nb\\rc\\n\"", 0, NULL, 0, "exit 0",
     "=a\r\nb\rc\n", NULL, 0, 0, true},
    {"out-64k", "head -c 65536 /dev/zero | tr \"\\0\" x", 0, NULL, 0,
     "exit 0", "#65536", NULL, 0, 0, true},
    {"out-64k+1", "head -c 65537 /dev/zero | tr \"\\0\" x", 0, NULL, 0,
     "exit 0", "#65537", NULL, 0, 0, true},
    {"out-stderr-flood", "head -c 1000000 /dev/zero >&2; echo done", 0, NULL,
     0, "exit 0", "=done\n", "#1000000", 0, 0, true},
    {"out-both-flood",
     "(head -c 3000000 /dev/zero >&2)& head -c 3000000 /dev/zero; wait", 0,
     NULL, 0, "exit 0", "#3000000", "#3000000", 0, 0, true},
    {"out-yes", "yes", 1000, NULL, 0, "timed out", NULL, NULL, 1600, 900,
     true},
    {"out-yes-head", "yes | head -c 100000000 | tail -c 5", 0, NULL, 0,
     "exit 0", "=\ny\ny\n", NULL, 5000, 0, true},
    {"out-100mb", "head -c 100000000 /dev/zero", 200000, NULL, 0, "exit 0",
     "#100000000", NULL, 15000, 0, true},
    {"out-slow", "for i in 1 2 3; do echo $i; sleep 0.1; done", 0, NULL, 0,
     "exit 0", "=1\n2\n3\n", NULL, 0, 0, true},
    {"out-longline", "head -c 2000000 /dev/zero | tr \"\\0\" a", 0, NULL, 0,
     "exit 0", "#2000000", NULL, 0, 0, true},
    {"out-closed-stdout", "exec 1>&- 2>&-; sleep 0.3; exit 7", 0, NULL, 0,
     "exit 7", "=", NULL, 0, 250, true},
    {"out-after-exit", "(sleep 0.2; echo late) & echo early", 0, NULL, 0,
     "exit 0", "~early", NULL, 1500, 0, false},
    {"orphan-holds-pipe", "sleep 30 & echo hi", 0, NULL, 0, "exit 0",
     "=hi\n", NULL, 1500, 0, false},
    {"orphan-setsid", "setsid sleep 30 & echo hi", 0, NULL, 0, "exit 0",
     "=hi\n", NULL, 1500, 0, false},
    {"orphan-nohup",
     "nohup sleep 30 >/dev/null 2>&1 & echo $! >/dev/null; echo ok", 0, NULL,
     0, "exit 0", "=ok\n", NULL, 1000, 0, false},
    {"orphan-double-fork",
     "sh -c \"(sh -c \\\"sleep 30 & \\\" &) ; echo x\"", 0, NULL, 0, "exit 0",
     "~x", NULL, 1500, 0, false},
    {"tmo-sleep", "sleep 30", 300, NULL, 0, "timed out signal 15", NULL, NULL,
     1000, 250, true},
    {"tmo-ignore-term", "trap \"\" TERM; while :; do sleep 1; done", 300,
     NULL, 0, "timed out signal 9", NULL, NULL, 1200, 450, true},
    {"tmo-trap-output",
     "trap \"echo cleaning; exit 3\" TERM; while :; do sleep 0.05; done", 300,
     NULL, 0, "timed out exit 3", "~cleaning", NULL, 1200, 250, true},
    {"tmo-stopped", "kill -STOP $$; echo woke", 400, NULL, 0, "timed out",
     NULL, NULL, 1300, 350, true},
    {"tmo-stopped-group", "sleep 35 & kill -STOP $!; wait", 400, NULL, 0,
     "timed out", NULL, NULL, 1300, 350, true},
    {"tmo-pipeline", "sleep 31 | sleep 31 | sleep 31", 300, NULL, 0,
     "timed out", NULL, NULL, 1300, 250, true},
    {"tmo-bg-many", "for i in $(seq 50); do sleep 32 & done; wait", 400, NULL,
     0, "timed out", NULL, NULL, 1500, 350, true},
    {"tmo-forkloop",
     "f(){ f & sleep 33; }; ulimit -u 2000; i=0; while [ $i -lt 200 ]; do "
     "sleep 33 & i=$((i+1)); done; wait",
     600, NULL, 0, "timed out", NULL, NULL, 2500, 550, true},
    {"tmo-zero-output", "echo partial; sleep 30", 300, NULL, 0, "timed out",
     "=partial\n", NULL, 1000, 250, true},
    {"tmo-exact", "sleep 0.25", 60000, NULL, 0, "exit 0", NULL, NULL, 900, 200,
     true},
    {"tmo-closed-fds", "exec 0<&- 1>&- 2>&-; sleep 30", 300, NULL, 0,
     "timed out", NULL, NULL, 1000, 250, true},
    {"stdin-none", "cat; echo rc=$?", 0, NULL, 0, "exit 0", "=rc=0\n", NULL,
     800, 0, true},
    {"stdin-read", "read x; echo \"[$x]\"", 0, "hello\nrest\n", 0, "exit 0",
     "=[hello]\n", NULL, 0, 0, true},
    {"stdin-unread", "exit 5", 0, NULL, 1000000, "exit 5", NULL, NULL, 1000,
     0, true},
    {"stdin-big-echo", "cat", 0, NULL, 3000000, "exit 0", "#3000000", NULL,
     4000, 0, true},
    {"stdin-closed-early", "exec 0<&-; sleep 0.3; echo ok", 0, NULL, 1000000,
     "exit 0", "=ok\n", NULL, 1500, 0, true},
    {"stdin-empty", "wc -c", 0, "", 0, "exit 0", "<0", NULL, 0, 0, true},
    {"tty-none", "test -t 0 || test -t 1 || test -t 2; echo $?", 0, NULL, 0,
     "exit 0", "=1\n", NULL, 0, 0, true},
    {"tty-dev-tty",
     "(echo x > /dev/tty) 2>&1 | grep -c -i \"no such device\"", 0, NULL, 0,
     "exit 0", "=1\n", NULL, 0, 0, true},
    {"tty-read-prompt",
     "ssh-keygen -y -f /dev/null </dev/null >/dev/null 2>&1; echo done", 60000,
     NULL, 0, "exit 0", "=done\n", NULL, 2500, 0, true},
    {"fd-leak", "ls /proc/self/fd | wc -l", 0, NULL, 0, "exit 0", "<4", NULL,
     0, 0, true},
    {"fd-leak-sock", "ls -l /proc/self/fd | grep -c socket || true", 0, NULL,
     0, "exit 0", "=0\n", NULL, 0, 0, true},
    {"sig-mask", "grep -E \"^Sig(Blk|Ign)\" /proc/self/status", 0, NULL, 0,
     "exit 0",
     "=SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n", NULL, 0, 0,
     true},
    {"sig-pipe-default",
     "yes 2>/dev/null | head -n1; echo ${PIPESTATUS[0]:-x}", 0, NULL, 0,
     "exit 0", "=y\n141\n", NULL, 1500, 0, true},
    {"sig-pipe-ign",
     "sh -c 'trap \"\" PIPE; yes 2>&1 >/dev/full | head -c 100' | "
     "head -c 20 | wc -c",
     60000, NULL, 0, "exit 0", NULL, NULL, 2500, 0, true},
    {"session",
     "cut -d\" \" -f5,6 /proc/self/stat | tr \" \" \"\\n\" | sort -u | "
     "wc -l",
     0, NULL, 0, "exit 0", "<1", NULL, 0, 0, true},
    {"kill-own-group", "kill -TERM 0; sleep 1", 0, NULL, 0, "signal 15", NULL,
     NULL, 800, 0, true},
    {"kill-minus-one", "echo skip", 0, NULL, 0, "exit 0", "=skip\n", NULL, 0,
     0, true},
    {"env-size", "env | wc -c", 0, NULL, 0, "exit 0", ">100000", NULL, 0, 0,
     true},
    {"env-too-big", "true", 0, NULL, 0, "The command, its arguments", NULL,
     NULL, 0, 0, true},
    {"env-odd", "env", 0, NULL, 0,
     "env must consist of NAME=value, but has: =weird", NULL, NULL,
     0, 0, true},
    {"argv-1mb", NULL, 0, NULL, 0, "exit 0", "=1000\n", NULL, 0, 0, true},
    {"argv-4mb", NULL, 0, NULL, 0, "The command, its arguments", NULL, NULL,
     0, 0, true},
    {"argv-one-200k", NULL, 0, NULL, 0, "The command, its arguments", NULL,
     NULL, 0, 0, true},
    {"cmd-130k", NULL, 0, NULL, 0, "The command, its arguments", NULL, NULL,
     0, 0, true},
    {"cmd-newlines", "echo a\necho b\n\n  echo c", 0, NULL, 0, "exit 0",
     "=a\nb\nc\n", NULL, 0, 0, true},
    {"cmd-quotes", "printf \"%s\\n\" 'a\"b' \"c'd\" e\\ f", 0, NULL, 0,
     "exit 0", "=a\"b\nc'd\ne f\n", NULL, 0, 0, true},
    {"cmd-utf8",
     "printf \"%s\" \"h\xC3\xA9llo\xE2\x86\x92\xF0\x9F\x98\x80\"", 0, NULL, 0,
     "exit 0", "=h\xC3\xA9llo\xE2\x86\x92\xF0\x9F\x98\x80", NULL, 0, 0,
     true},
    {"cwd-ok", "pwd", 0, NULL, 0, "exit 0", "=/tmp\n", NULL, 0, 0, true},
    {"cwd-missing", "pwd", 0, NULL, 0, "Working directory not found: "
     "/no/such", NULL, NULL, 0, 0, true},
    {"cwd-deleted",
     "d=$(mktemp -d); cd $d; rmdir $d; pwd >/dev/null; echo still", 0, NULL,
     0, "exit 0", "~still", NULL, 0, 0, true},
    {"umask", "umask", 0, NULL, 0, "exit 0", NULL, NULL, 0, 0, true},
    {"ulimit-cpu-hard", "ulimit -t 1; while :; do :; done", 100000, NULL, 0,
     "signal 9", NULL, NULL, 3000, 900, true},
    {"ulimit-cpu", "ulimit -S -t 1; while :; do :; done", 100000, NULL, 0,
     "signal 24", NULL, NULL, 3000, 900, true},
    {"ulimit-fsize",
     "ulimit -f 1; head -c 100000 /dev/zero > \"$DIR/big\"; echo $?", 0, NULL,
     0, "exit 0", "~1", NULL, 0, 0, true},
    {"ulimit-mem",
     "ulimit -v 50000; head -c 200000000 /dev/zero | tail -c 1 | wc -c; "
     "x=$(head -c 100000000 /dev/zero | tr \"\\0\" a) 2>/dev/null; echo end",
     80000, NULL, 0, NULL, NULL, NULL, 8000, 0, true},
    {"zombie-check", "true & sleep 0.2; wait; echo ok", 0, NULL, 0, "exit 0",
     "=ok\n", NULL, 0, 0, true},
    {"fast-1000", "true", 0, NULL, 0, "exit 0", "=", NULL, 0, 0, true},
    {"vfork-race", "exit 0", 0, NULL, 0, "exit 0", "=", NULL, 0, 0, true},
    {"daemonise",
     "python3 -c \"import os,time\nif os.fork(): os._exit(0)\nos.setsid()\n"
     "if os.fork(): os._exit(0)\ntime.sleep(34)\" ; echo d",
     0, NULL, 0, "exit 0", "~d", NULL, 2500, 0, false},
    {"interleave", "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done", 0,
     NULL, 0, "exit 0", "=o1\no2\no3\no4\no5\n", "=e1\ne2\ne3\ne4\ne5\n", 0,
     0, true},
    {"merge", "exec 2>&1; for i in 1 2 3; do echo o$i; echo e$i >&2; done", 0,
     NULL, 0, "exit 0", "=o1\ne1\no2\ne2\no3\ne3\n", "=", 0, 0, true},
    {"cat-devrandom", "head -c 500000 /dev/urandom", 0, NULL, 0, "exit 0",
     "#500000", NULL, 0, 0, true},
    {"json-hostile", "printf '\"\\\\\\001\\037\\177\\342\\200\\250}]'", 0,
     NULL, 0, "exit 0", "x225c011f7fe280a87d5d", NULL, 0, 0, true},
};

/* ---- the options that a table cannot hold ---- */

typedef struct special {
    hfsb_proc_opts     opts;
    hfsb_buf           text, more; /* long commands, arguments, variables */
    const char       **argv;
    const char        *env[8];
} special;

static char dir_path[] = "/tmp/hfsb-test-XXXXXX";

static bool is(const torture *t, const char *id) {
    return strcmp(t->id, id) == 0;
}

static void use_argv(special *s, size_t count, const char *first,
                     const char *rest) {
    size_t i;
    s->argv = (const char **)calloc(count + 2, sizeof *s->argv);
    if (!s->argv) abort();
    s->argv[0] = first;
    for (i = 1; i <= count; i++) s->argv[i] = rest;
    s->opts.argv = s->argv;
}

/* More than the default environment: the variable `name` and so many bytes. */
static void use_env(special *s, const char *name, size_t bytes) {
    T_CHECK(hfsb_buf_printf(&s->text, "%s=", name) == HFSB_OK);
    t_fill(&s->text, 'x', bytes);
    s->env[1] = s->text.ptr;
}

static void prepare(special *s, const torture *t, int slower) {
    hfsb_proc_opts *o = &s->opts;
    o->shell = SHELL;
    if (t->command) o->command = hfsb_cstr(t->command);
    o->env = s->env;
    T_CHECK(hfsb_buf_printf(&s->more, "DIR=%s", dir_path) == HFSB_OK);
    s->env[0] = "PATH=/root/.local/bin:/usr/local/bin:/usr/bin:/bin";
    s->env[1] = s->more.ptr;
    o->job = hfsb_cstr(JOB);
    o->timeout_ms = t->timeout * slower;
    o->grace_ms = 200 * slower;
    o->quiet_ms = 300;
    if (t->input) o->input = hfsb_cstr(t->input);
    if (is(t, "exec-missing")) use_argv(s, 0, "/no/such/binary", NULL);
    if (is(t, "exec-dir")) use_argv(s, 0, "/tmp", NULL);
    if (is(t, "exec-notelf") || is(t, "exec-noexec")) {
        T_CHECK(hfsb_buf_printf(&s->text, "%s/%s", dir_path,
                                is(t, "exec-notelf") ? "noshebang"
                                                     : "plain") == HFSB_OK);
        use_argv(s, 0, s->text.ptr, NULL);
    }
    if (is(t, "env-size")) use_env(s, "BIG", 100000);
    if (is(t, "env-too-big")) use_env(s, "BIG", 140000);
    if (is(t, "env-odd")) s->env[1] = "=weird";
    if (t->input_len) {
        t_fill(&s->text, 'y', t->input_len);
        o->input = hfsb_buf_str(&s->text);
    }
    if (is(t, "argv-1mb") || is(t, "argv-4mb")) {
        t_fill(&s->text, 'a', 1000);
        use_argv(s, is(t, "argv-1mb") ? 1003 : 4000, "true", s->text.ptr);
    }
    if (is(t, "argv-1mb")) {
        s->argv[0] = "sh";
        s->argv[1] = "-c";
        s->argv[2] = "echo $#";
        s->argv[3] = "x";
    }
    if (is(t, "argv-one-200k")) {
        t_fill(&s->text, 'a', 200000);
        use_argv(s, 1, "true", s->text.ptr);
    }
    if (is(t, "cmd-130k")) {
        t_repeat(&s->text, "echo ok # ", 1);
        t_fill(&s->text, 'x', 131072);
        o->command = hfsb_buf_str(&s->text);
    }
    if (is(t, "cwd-ok")) o->work_dir = "/tmp";
    if (is(t, "cwd-missing")) o->work_dir = "/no/such";
}

/* ---- what is expected ---- */

static bool holds(const char *rule, hfsb_str text, unsigned long long total) {
    const char *want = rule ? rule + 1 : NULL;
    size_t      i;
    unsigned    byte;
    if (!rule) return true;
    switch (*rule) {
    case '=': return hfsb_str_equal(text, hfsb_cstr(want));
    case '~': return hfsb_str_find(text, hfsb_cstr(want)) != HFSB_NPOS;
    case '#': return total == strtoull(want, NULL, 10);
    case '<': return text.len && atol(text.ptr) <= atol(want);
    case '>': return text.len && atol(text.ptr) >= atol(want);
    default: break;
    }
    for (i = 0; sscanf(want + 2 * i, "%2x", &byte) == 1; i++)
        if (i >= text.len || (unsigned char)text.ptr[i] != byte) return false;
    return i == text.len;
}

static bool ended(const char *rule, const hfsb_proc_result *r) {
    bool timed_out;
    if (!rule) return true;
    timed_out = strncmp(rule, "timed out", 9) == 0;
    if (timed_out != r->timed_out) return false;
    if (timed_out) rule += 9 + (rule[9] == ' ');
    if (!strncmp(rule, "exit ", 5))
        return r->end == HFSB_PROC_EXITED &&
               r->exit_code == (int)strtol(rule + 5, NULL, 10);
    if (!strncmp(rule, "signal ", 7))
        return r->end == HFSB_PROC_SIGNALED &&
               r->signal == (int)strtol(rule + 7, NULL, 10);
    return timed_out && !*rule;
}

static void complain(const torture *t, const hfsb_proc_result *r,
                     hfsb_str out, hfsb_str err, const char *msg,
                     long long wall) {
    printf("%s: end %d exit %d signal %d timed_out %d incomplete %d, %lld ms "
           "\"%s\"\n  out (%llu) \"%.*s\"\n  err (%llu) \"%.*s\"\n",
           t->id, (int)r->end, r->exit_code, r->signal, (int)r->timed_out,
           (int)r->incomplete, wall, msg, r->stdout_bytes,
           (int)(out.len < 200 ? out.len : 200), out.ptr ? out.ptr : "",
           r->stderr_bytes, (int)(err.len < 200 ? err.len : 200),
           err.ptr ? err.ptr : "");
}

/* True when more time may help. */
static bool may_be_late(const torture *t, int slower) {
    return t->end && !strncmp(t->end, "timed out", 9) && slower < 16;
}

static hfsb_status expected_status(const torture *t) {
    if (is(t, "exec-missing") || is(t, "cwd-missing")) return HFSB_NOT_FOUND;
    if (is(t, "env-odd")) return HFSB_ARG;
    if (is(t, "exec-noexec") || is(t, "exec-dir")) return HFSB_DENIED;
    return strncmp(t->end, "The command, its", 16) == 0 ? HFSB_LIMIT
                                                        : HFSB_IO;
}

/* slower: how many times its timeout and grace it gets. Returns whether all
   was as it should be. */
static bool run_one(const torture *t, bool last, int slower) {
    special          s = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT, err_out = HFSB_INIT;
    hfsb_proc_result r = HFSB_INIT;
    hfsb_err         err;
    long long        start = hfsb_clock_ms(), wall;
    size_t           fds = t_open_fds();
    hfsb_status      st;
    bool             ok;
    prepare(&s, t, slower);
    out.max = err_out.max = 65536;
    st = hfsb_proc_run(&s.opts, &out, &err_out, &r, &err);
    wall = hfsb_clock_ms() - start;
    if (st != HFSB_OK)
        ok = t->end && st == expected_status(t) && err.code == st &&
             strncmp(err.msg, t->end, strlen(t->end)) == 0 &&
             holds(t->out, hfsb_cstr(err.msg), 0);
    else
        ok = ended(t->end, &r) &&
             holds(t->out, hfsb_buf_str(&out), r.stdout_bytes) &&
             holds(t->err, hfsb_buf_str(&err_out), r.stderr_bytes);
    ok = ok && wall >= t->wall_min &&
         wall <= t_patience((t->wall_max ? t->wall_max : 5000) * slower);
    if (!ok)
        complain(t, &r, hfsb_buf_str(&out), hfsb_buf_str(&err_out), err.msg,
                 wall);
    T_CHECK(ok || may_be_late(t, slower));
    T_CHECK(out.len <= 65536 && err_out.len <= 65536);
    if (last && t->left) T_CHECK(t_marked(JOB, 0) == 0);
    if (last && !t->left) t_kill_marked(JOB);
    T_CHECK(t_no_child());
    T_CHECK(!last || t_open_fds() == fds);
    hfsb_buf_free(&out);
    hfsb_buf_free(&err_out);
    hfsb_buf_free(&s.text);
    hfsb_buf_free(&s.more);
    free((void *)(uintptr_t)s.argv);
    return ok;
}

static bool has_python(void) {
    return access("/usr/bin/python3", X_OK) == 0 ||
           access("/usr/local/bin/python3", X_OK) == 0;
}

static void every_command_ends_as_it_should(void) {
    size_t i, k, count = sizeof table / sizeof *table;
    T_CHECK(count == 92);
    for (i = 0; i < count; i++) {
        size_t times = 1;
        if (is(&table[i], "daemonise") && !has_python()) {
            t_skip("daemonise needs python3");
            continue;
        }
        if (t_valgrind() && table[i].end &&
            (!strncmp(table[i].end, "The command, its", 16) ||
             is(&table[i], "exec-notelf"))) {
            t_skip("not under valgrind");
            continue;
        }
        if (is(&table[i], "fast-1000")) times = t_quick() ? 10 : 300;
        if (is(&table[i], "vfork-race")) times = t_quick() ? 10 : 100;
        for (k = 0; k < times; k++) {
            int slower = 1;
            while (!run_one(&table[i], k + 1 == times, slower) &&
                   may_be_late(&table[i], slower))
                slower *= 4;
        }
    }
}

static void make_file(const char *name, mode_t mode) {
    char  path[128];
    FILE *f;
    snprintf(path, sizeof path, "%s/%s", dir_path, name);
    f = fopen(path, "w");
    T_CHECK(f && fputs("echo hi\n", f) >= 0);
    if (f) fclose(f);
    T_CHECK(chmod(path, mode) == 0);
}

static void make_dir(void) {
    if (!mkdtemp(dir_path)) abort();
    make_file("noshebang", 0755);
    make_file("plain", 0644);
}

static void remove_dir(void) {
    static const char *const names[] = {"noshebang", "plain", "big"};
    char                     path[128];
    size_t                   i;
    for (i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", dir_path, names[i]);
        T_CHECK(unlink(path) == 0);
    }
    T_CHECK(rmdir(dir_path) == 0);
}

int main(void) {
    if (access(SHELL, X_OK) != 0 || !t_sees_processes()) {
        t_skip("needs " SHELL " and /proc");
        return T_END();
    }
    make_dir();
    T_RUN(every_command_ends_as_it_should);
    remove_dir();
    return T_END();
}
