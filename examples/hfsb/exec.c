/* exec.c - hfsb exec, hfsb shell: a program as it is, byte for byte.

   Unlike `hfsb bash`, which shows what a model sees, nothing is cleaned, cut
   or joined: the words of the command line are the arguments of the program,
   its standard input is ours and its output comes as it is written, so
   progress bars move and pipes carry any bytes. On this machine the program
   runs with the library's process runner, in a sandbox over /api/exec. With
   --tty, as in `hfsb shell`, it gets a terminal there of the size of this one,
   which is in raw mode until the end. */
#define _XOPEN_SOURCE 700 /* poll, sigaction; before any include */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* As in timeout(1) and env(1). */
enum { TIMED_OUT = 124, NOT_RUN = 125, NOT_EXECUTABLE = 126, NO_PROGRAM = 127 };

enum {
    PIECE = 65536,
    WHOLE = 512,    /* bytes that a pipe takes or not, as a whole */
    READER_MS = 100 /* for a reader, after a signal */
};

typedef struct exec_call {
    const char        *on, *work_dir, *shell;
    const char *const *argv; /* NULL: the shell of the sandbox */
    const char        *command;
    texts              env;
    const char        *variables[MAX_TEXTS + 8]; /* ... and NULL */
    confinement        confine;
    hfsb_tools_opts    where; /* made of it */
    double             timeout;
    bool               no_stdin, merge, tty;
    int                why; /* errno of writing to stdout or stderr; 0: none */
} exec_call;

/* ---- output ---- */

/* True when a write of WHOLE bytes does not have to wait for a reader, or not
   for long. */
static bool takes_soon(int fd) {
    struct pollfd p = {fd, POLLOUT, 0};
    return poll(&p, 1, READER_MS) > 0;
}

/* After a signal, what nobody reads is dropped. */
static bool write_all(int fd, hfsb_str bytes, int *why) {
    while (bytes.len) {
        size_t  most = caught_signal() && bytes.len > WHOLE ? WHOLE : bytes.len;
        ssize_t n;
        if (caught_signal() && !takes_soon(fd)) return true;
        n = write(fd, bytes.ptr, most);
        if (n < 0 && errno == EAGAIN) { /* somebody made it non-blocking */
            struct pollfd p = {fd, POLLOUT, 0};
            (void)poll(&p, 1, 1000);
        } else if (n < 0 && errno != EINTR) {
            *why = errno;
            return false;
        } else if (n > 0) {
            bytes = hfsb_str_slice(bytes, (size_t)n, bytes.len);
        }
    }
    return true;
}

static bool take_output(void *user, hfsb_proc_stream stream, hfsb_str bytes) {
    exec_call *c = (exec_call *)user;
    return c->why == 0 && write_all(stream == HFSB_PROC_STDERR ? STDERR_FILENO
                                                               : STDOUT_FILENO,
                                    bytes, &c->why);
}

static void take_local(void *user, hfsb_proc_stream stream, hfsb_str bytes) {
    (void)take_output(user, stream, bytes);
}

/* The exit code for a program that could not be run. */
static int not_run(const exec_call *c, hfsb_status st, const hfsb_err *err) {
    print_log(NULL, hfsb_cstr(err->msg[0] ? err->msg : hfsb_status_text(st)));
    if (strcmp(err->key, "work_dir") == 0) return NOT_RUN;
    if (st == HFSB_DENIED) return NOT_EXECUTABLE;
    if (st != HFSB_NOT_FOUND) return NOT_RUN;
    if (c->argv && !c->argv[1] && strpbrk(c->argv[0], " |&;<>"))
        fprintf(stderr, "hfsb: exec runs a program without a shell; with one: "
                        "hfsb bash '%s'\n",
                c->argv[0]);
    return NO_PROGRAM;
}

static int timed_out(const exec_call *c) {
    fprintf(stderr, "hfsb: ended after the timeout of %g s\n", c->timeout);
    return TIMED_OUT;
}

static int broken(const exec_call *c) {
    if (c->why == EPIPE) return 128 + SIGPIPE;
    fprintf(stderr, "hfsb: cannot write to standard output: %s\n",
            strerror(c->why));
    return NOT_RUN;
}

/* ---- on this machine ---- */

/* Standard input on its way to the program. */
typedef struct feeder {
    bool   reading;
    bool   ends; /* the program has not been given the end yet */
    char   bytes[PIECE];
    size_t have;
} feeder;

/* Gives what was read to the program, or reads more. */
static void feed(hfsb_proc *proc, feeder *f, bool readable) {
    ssize_t     n;
    hfsb_status st = HFSB_OK;
    if (f->have) {
        st = hfsb_proc_input(proc, hfsb_str_make(f->bytes, f->have), false,
                             NULL);
        if (st == HFSB_LIMIT) return; /* it reads slowly */
        f->have = 0;
    }
    if (st != HFSB_OK) f->reading = false; /* it reads no more */
    if (f->ends) {
        st = hfsb_proc_input(proc, HFSB_LIT(""), true, NULL);
        f->ends = st == HFSB_LIMIT || st == HFSB_NOMEM;
    }
    if (!f->reading || !readable) return;
    n = read(STDIN_FILENO, f->bytes, sizeof f->bytes);
    if (n > 0) f->have = (size_t)n;
    if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN))) return;
    f->reading = false;
    f->ends = true;
}

/* One wait: for the program, for input that it has room for, and for a signal
   unless cancel is NULL: one that is set would end every wait at once. */
static void wait_local(const hfsb_proc *proc, const hfsb_cancel *cancel,
                       const feeder *f, bool *readable) {
    struct pollfd fds[HFSB_PROC_WATCHES + 2];
    hfsb_watch    list[HFSB_PROC_WATCHES];
    size_t        count = hfsb_proc_watch(proc, list), i;
    long long     deadline = hfsb_proc_deadline(proc);
    long long     ms = deadline < 0 ? 1000 : deadline - hfsb_clock_ms();
    memset(fds, 0, sizeof fds);
    for (i = 0; i < count; i++) {
        fds[i].fd = list[i].fd;
        fds[i].events = (short)((list[i].readable ? POLLIN : 0) |
                                (list[i].writable ? POLLOUT : 0));
    }
    fds[count].fd = cancel ? hfsb_cancel_fd(cancel) : -1;
    fds[count].events = POLLIN;
    fds[count + 1].fd = f->reading && !f->have ? STDIN_FILENO : -1;
    fds[count + 1].events = POLLIN;
    if (ms < 0) ms = 0;
    if ((f->have || f->ends) && ms > 10) ms = 10; /* offer it again */
    (void)poll(fds, (nfds_t)count + 2, ms > 1000 ? 1000 : (int)ms);
    *readable = fds[count + 1].fd >= 0 && fds[count + 1].revents != 0;
}

static void drive(exec_call *c, hfsb_proc *proc, const hfsb_cancel *cancel) {
    static feeder f; /* large */
    bool          readable = false, ended = false;
    f.reading = !c->no_stdin;
    while (!hfsb_proc_step(proc)) {
        if ((c->why || hfsb_cancel_is_set(cancel)) && !ended) {
            hfsb_proc_kill(proc);
            ended = true;
        }
        wait_local(proc, ended ? NULL : cancel, &f, &readable);
        feed(proc, &f, readable);
    }
}

/* The program inherits our environment. */
static void set_variables(const texts *env) {
    size_t i;
    for (i = 0; i < env->count; i++) {
        hfsb_buf name = HFSB_INIT;
        size_t   len = strcspn(env->list[i], "=");
        must(hfsb_buf_append(&name, hfsb_str_make(env->list[i], len)));
        must(setenv(name.ptr, env->list[i] + len + 1, 1) == 0 ? HFSB_OK
                                                              : HFSB_NOMEM);
        hfsb_buf_free(&name);
    }
}

/* The program may write in its working directory. Limits apply at every level,
   none included. */
static hfsb_status confine_here(exec_call *c, hfsb_confine **out,
                                hfsb_err *err) {
    static char here[4096];
    const char *dirs[1];
    hfsb_status st;
    dirs[0] = c->work_dir;
    if (!dirs[0] && getcwd(here, sizeof here)) dirs[0] = here;
    c->where.confine.dirs = dirs;
    c->where.confine.dir_count = dirs[0] ? 1 : 0;
    st = hfsb_confine_open(&c->where.confine, out, err);
    c->where.confine.dirs = NULL;
    return st;
}

static int run_local(exec_call *c) {
    hfsb_proc_opts   opts = HFSB_INIT;
    hfsb_proc_result end;
    hfsb_confine    *confine = NULL;
    hfsb_cancel     *cancel = NULL;
    hfsb_proc       *proc = NULL;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st = hfsb_cancel_open(NULL, &cancel, &err);
    int              code;
    opts.argv = c->argv;
    opts.work_dir = c->work_dir;
    opts.keep_input = !c->no_stdin;
    opts.merge_stderr = c->merge;
    opts.timeout_ms = (long long)(c->timeout * 1000);
    opts.on_output = take_local;
    opts.user = c;
    set_variables(&c->env);
    if (st == HFSB_OK) st = confine_here(c, &confine, &err);
    opts.confine = confine;
    if (st == HFSB_OK) catch_signals(NULL, cancel);
    if (st == HFSB_OK) st = hfsb_proc_open(&opts, &proc, &err);
    if (st == HFSB_OK) drive(c, proc, cancel);
    code = st == HFSB_OK ? DONE : not_run(c, st, &err);
    if (proc) {
        end = hfsb_proc_status(proc);
        code = end.timed_out                     ? timed_out(c)
               : caught_signal()                 ? 128 + caught_signal()
               : c->why                          ? broken(c)
               : end.end == HFSB_PROC_SIGNALED   ? 128 + end.signal
               : end.end == HFSB_PROC_EXITED     ? end.exit_code
                                                 : NOT_RUN;
    }
    hfsb_proc_close(proc);
    hfsb_confine_close(confine);
    release_signals();
    hfsb_cancel_close(cancel);
    return code;
}

/* ---- this terminal ---- */

static struct termios usual; /* for the handler */
static volatile sig_atomic_t is_raw;

static void restore_terminal(void) {
    if (!is_raw) return;
    is_raw = 0;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &usual);
}

static void note_window(int number) {
    (void)number; /* poll() returns, and the size is asked for */
}

/* Keys go to the program as they are typed, Ctrl-C included. */
static bool make_raw(void) {
    struct termios   raw;
    struct sigaction window;
    if (tcgetattr(STDIN_FILENO, &usual) != 0) return false;
    raw = usual;
    raw.c_iflag &= (tcflag_t) ~(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
    raw.c_oflag &= (tcflag_t)~OPOST;
    raw.c_lflag &= (tcflag_t) ~(ECHO | ICANON | IEXTEN | ISIG);
    raw.c_cflag |= CS8;
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) != 0) return false;
    is_raw = 1;
    (void)atexit(restore_terminal);
    call_at_exit(restore_terminal);
    memset(&window, 0, sizeof window);
    window.sa_handler = note_window;
#ifdef SIGWINCH
    (void)sigaction(SIGWINCH, &window, NULL);
#endif
    return true;
}

static void window_size(void *user, unsigned *cols, unsigned *rows) {
    struct winsize size;
    (void)user;
    memset(&size, 0, sizeof size);
#ifdef TIOCGWINSZ
    (void)ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
#endif
    *cols = size.ws_col ? size.ws_col : 80;
    *rows = size.ws_row ? size.ws_row : 24;
}

/* ---- in a sandbox ---- */

static void fill_variables(exec_call *c) {
    static char term[80];
    size_t      n = 0, i;
    if (c->tty && getenv("TERM")) {
        snprintf(term, sizeof term, "TERM=%s", getenv("TERM"));
        c->variables[n++] = term;
    }
    for (i = 0; i < c->env.count; i++) c->variables[n++] = c->env.list[i];
    c->variables[n] = NULL;
}

static int exit_code(const exec_call *c, const hfsb_exec_result *end) {
    if (end->timed_out) return timed_out(c);
    if (end->signal > 0) return 128 + end->signal;
    return end->exit_code < 0 ? NOT_RUN : end->exit_code & 255;
}

static int run_remote(exec_call *c) {
    hfsb_sandbox_opts how = HFSB_INIT;
    hfsb_exec_opts    opts = HFSB_INIT;
    hfsb_exec_result  end = HFSB_INIT;
    client            via = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_err          err = HFSB_INIT;
    hfsb_status       st = open_named(&via, c->on, &how, &sandbox, &err);
    int               code;
    bool              opened = st == HFSB_OK;
    fill_variables(c);
    opts.argv = c->argv;
    opts.command = hfsb_cstr(c->command);
    opts.work_dir = hfsb_cstr(c->work_dir);
    opts.env = c->variables;
    opts.timeout = c->timeout;
    opts.merge_stderr = c->merge;
    opts.in = c->no_stdin ? -1 : STDIN_FILENO;
    opts.on_output = take_output;
    opts.user = c;
    if (c->tty) opts.size = window_size;
    if (st == HFSB_OK && c->tty && isatty(STDIN_FILENO)) (void)make_raw();
    if (st == HFSB_OK) st = hfsb_sandbox_exec(sandbox, &opts, &end, &err);
    restore_terminal();
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    if (st == HFSB_OK) code = exit_code(c, &end);
    else if (st == HFSB_CANCELLED && caught_signal())
        code = 128 + caught_signal();
    else if (c->why) code = broken(c);
    else {
        code = not_run(c, st, &err);
        if (!opened) code = NOT_RUN; /* it was the sandbox, no program */
    }
    close_client(&via);
    return code;
}

static bool check_words(const exec_call *c) {
    const char *const *word = c->argv;
    size_t             i;
    for (; word && *word; word++)
        if (!check_text("A word of the command", hfsb_cstr(*word)))
            return false;
    for (i = 0; i < c->env.count; i++)
        if (!check_text("--env", hfsb_cstr(c->env.list[i]))) return false;
    return !c->work_dir || check_text("--work-dir", hfsb_cstr(c->work_dir));
}

static int run(exec_call *c) {
    (void)signal(SIGPIPE, SIG_IGN);
    if (!c->on) return run_local(c);
    return check_words(c) ? run_remote(c) : NOT_RUN;
}

/* False, after a message, for a variable without a name. */
static bool check_env(args *a, const texts *env) {
    size_t i;
    for (i = 0; i < env->count; i++)
        if (!strchr(env->list[i], '=') || env->list[i][0] == '=')
            return usage(a, "--env needs NAME=VALUE, not %s", env->list[i]) ==
                   DONE;
    return true;
}

int run_raw_command(const char *on, const hfsb_tools_opts *where,
                    const char *command, bool no_stdin) {
    exec_call   c;
    const char *argv[4];
    memset(&c, 0, sizeof c);
    argv[0] = where->shell ? where->shell : "/bin/sh";
    argv[1] = "-c";
    argv[2] = command;
    argv[3] = NULL;
    c.on = on;
    c.where = *where;
    if (where->work_dir.len) c.work_dir = where->work_dir.ptr;
    c.timeout = where->timeout;
    c.no_stdin = no_stdin;
    if (on && !where->shell) c.command = command;
    else c.argv = argv;
    return run(&c);
}

int run_exec(args *a) {
    static exec_call c; /* large */
    bool             interactive = false;

    const option options[] = {
        {"--env NAME=VALUE", OPTION_TEXTS, &c.env,
         "set an environment variable; may be repeated"},
        {"-e NAME=VALUE", OPTION_ALIAS, NULL, "--env"},
        {"--work-dir DIR", OPTION_TEXT, &c.work_dir, "run it in DIR"},
        {"-w DIR", OPTION_ALIAS, NULL, "--work-dir"},
        {"--timeout S", OPTION_SECONDS, &c.timeout, "end it after S seconds"},
        {"--no-stdin", OPTION_FLAG, &c.no_stdin,
         "do not pass standard input on: the program gets empty input"},
        {"--merge-stderr", OPTION_FLAG, &c.merge,
         "send stderr to stdout, in the order written"},
        {"--tty", OPTION_FLAG, &c.tty,
         "in a sandbox: run it in a terminal as large as this one"},
        {"-t", OPTION_ALIAS, NULL, "--tty"},
        {"-it", OPTION_ALIAS, NULL, "--tty"},
        {"-i", OPTION_FLAG, &interactive,
         "accepted; standard input is always passed on"},
        {"--raw", OPTION_FLAG, &interactive, "accepted; exec is always raw"},
        OPTION_ON(&c.on),
        OPTIONS_CONFINE(&c.confine, "Default: none"),
        OPTIONS_END};
    memset(&c, 0, sizeof c);
    if (!take_options(a, options) || !check_env(a, &c.env)) return a->status;
    c.on = named_sandbox(c.on);
    if (!check_confinement(a, &c.confine, c.on != NULL) ||
        !set_confinement(a, &c.confine, HFSB_CONFINE_NONE, &c.where))
        return a->status;
    if (c.tty && !c.on)
        return usage(a, "--tty needs --on: on this machine the program can "
                        "be run without hfsb");
    if (a->next == a->count) return usage(a, "COMMAND is missing");
    c.argv = (const char *const *)(a->list + a->next);
    return run(&c);
}

int run_shell(args *a) {
    static exec_call c; /* large */
    const char      *name = NULL, *argv[2];

    const option options[] = {
        {"--shell PATH", OPTION_TEXT, &c.shell,
         "run this shell, or any program, instead of the default shell"},
        {"--env NAME=VALUE", OPTION_TEXTS, &c.env,
         "set an environment variable; may be repeated"},
        {"-e NAME=VALUE", OPTION_ALIAS, NULL, "--env"},
        {"--work-dir DIR", OPTION_TEXT, &c.work_dir, "begin in DIR"},
        {"-w DIR", OPTION_ALIAS, NULL, "--work-dir"},
        {"--on SANDBOX", OPTION_TEXT, &name, "the sandbox"},
        OPTIONS_END};
    memset(&c, 0, sizeof c);
    if (!take_all(a, options, &name) || !check_env(a, &c.env))
        return a->status;
    c.on = chosen_sandbox(name);
    if (!c.on) return no_sandbox(a);
    argv[0] = c.shell;
    argv[1] = NULL;
    if (c.shell) c.argv = argv;
    c.tty = isatty(STDIN_FILENO); /* else it reads commands, as with ssh */
    return run(&c);
}
