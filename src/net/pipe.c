/* pipe.c - a server at the other end of a command: ssh, docker exec, srun ...

   The command's standard input and output become a mux (mux.c); each
   connection of the HTTP client is a stream of it. The command leads either to
   hfsb-server itself or to a POSIX shell that reads commands from its input.
   Both understand the line that is sent first: the shell runs it, hfsb-server
   takes only the key from it.

       { hfsb_key=...; a script } -->
                                  <--  hfsb-pipe shell Linux x86_64
       SHA-256 and size           -->
                                  <--  hfsb-pipe have, or hfsb-pipe need
       the bytes of hfsb-server   -->  only after "need"
                                  <--  hfsb-pipe have
                                       the shell becomes hfsb-server --stdio
                                  <--  hfsb-pipe mux 1
       frames                    <-->  frames

   Neither side sends ahead, so no byte gets lost in the buffer of a shell.
   Lines that do not begin with "hfsb-pipe " are noise of a login shell, which
   may lack the end of its last line: so the first answer begins with one.

       DOWN --start--> UP --the pipe breaks--> DOWN --dial--> UP ...

   The first start fails soon: a wrong name stays wrong. After a break the
   remote server waits for linger_ms, and for that long the command is started
   again and again, whatever it reports: a network comes back.

   The key is the name of the remote server, 16 digits, and its token. The
   server outlives its pipe for a while: a new pipe with the same key leads to
   the same server. The token keeps other programs of that user, such as
   confined commands, from its socket; it is never an argument of a program,
   and hfsb-server sends it only to the server itself. One thread turns the
   loop of the mux; the first thread that dials while the pipe is down starts
   the command again, and the others wait for that. */
#include "../proc/proc_private.h"
#include "net_private.h"

enum {
    HFSBI_PIPE_NAME = 16,       /* hexadecimal digits of the server's name */
    HFSBI_PIPE_KEY = 48,        /* hexadecimal digits */
    HFSBI_PIPE_SAID = 2048,     /* bytes of stderr that are kept */
    HFSBI_PIPE_REPORT = 400,    /* bytes of a report that are shown */
    HFSBI_PIPE_LINE = 8192,     /* bytes of a line of the handshake */
    HFSBI_PIPE_NOISE = 1048576, /* bytes before the handshake is over */
    HFSBI_PIPE_TRIES = 3,       /* starts of the command in a row */
    HFSBI_PIPE_AGAIN_MS = 100,  /* between them, and after a break ... */
    HFSBI_PIPE_LATER_MS = 2000, /* ... growing up to this */
    HFSBI_PIPE_LEAST_MS = 2000, /* for a start after a break ... */
    HFSBI_PIPE_MOST_MS = 30000, /* ... up to this */
    HFSBI_PIPE_ERRORS = 16384,  /* bytes of stderr read at once, and ... */
    HFSBI_PIPE_LAST = 64,       /* ... how often when the command has ended */
    HFSBI_PIPE_EXIT_MS = 1000,  /* for the command to exit by itself ... */
    HFSBI_PIPE_TERM_MS = 3000,  /* ... and at SIGTERM */
    HFSBI_PIPE_DIAL_MS = 2000,  /* for a connection to the server */
    HFSBI_PIPE_STACK = 131072,
    HFSBI_PIPE_SHOWN = 100, /* characters of a name in a message */
    HFSBI_PIPE_SLICE_MS = 50 /* between two looks at a cancel */
};

struct hfsb_pipe {
    hfsb_pipe_opts   o;
    hfsbi_pipe_words words; /* of argv; the last one is name */
    const char     **argv;
    const char      *name; /* of the command, for messages */
    char             key[HFSBI_PIPE_KEY + 1];
    hfsbi_loop      *loop;
    pthread_t        thread;

    /* under the lock of the loop */
    hfsbi_mux *mux; /* NULL: down */
    hfsbi_io   errors;
    hfsb_buf   said; /* on stderr, the last bytes of it */
    bool       stop; /* the thread is to end */

    pthread_mutex_t lock; /* never held while the loop's is being taken */
    pthread_cond_t  changed;
    bool            starting;  /* a thread starts the command */
    pid_t           pid;       /* used by that thread only; 0: none */
    int             exit_code; /* of the last command; -1: unknown */
    long long       broke;     /* when the pipe last broke; 0: never */
};

/* ---- the script ---- */

/* Finds the folders where servers may be. Commands cannot write the first one,
   unless their working directory is the home: see hfsbi_places_own(). */
#define HFSBI_PIPE_DIR                                       \
    "hfsb_d=${XDG_DATA_HOME:-${HOME:+$HOME/.local/share}}; " \
    "hfsb_d=${hfsb_d:+$hfsb_d/hfsb}; "                       \
    "hfsb_t=${TMPDIR:-/tmp}/hfsb-$(id -u); "

/* True for a folder that only this user may write; "ls" does not follow a
   symlink. */
#define HFSBI_PIPE_OWN                                                      \
    "hfsb_own() { [ -n \"$1\" ] && [ -O \"$1\" ] && case $(ls -ld \"$1\") " \
    "in d????[!w]??[!w]*) ;; *) false;; esac; }; "

/* One line within braces: a shell that gets only a part of it runs nothing.
   Until an upload is complete it has the name of its server, which nobody else
   has; one that is an hour old is an orphan. */
static const char hfsbi_pipe_script[] =
    "echo; echo hfsb-pipe shell $(uname -s) $(uname -m); "
    "read -r hfsb_s hfsb_n || exit 1; " HFSBI_PIPE_DIR HFSBI_PIPE_OWN
    "hfsb_sum() { "
    "hfsb_x=$( { sha256sum \"$1\" || shasum -a 256 \"$1\" || "
    "openssl dgst -sha256 -r \"$1\"; } 2>/dev/null); "
    "[ \"${hfsb_x%%[ *]*}\" = \"$hfsb_s\" ]; }; "
    "hfsb_ok() { [ -n \"$1\" ] && (umask 077; mkdir -p \"$1\") 2>/dev/null; "
    "hfsb_own \"$1\" && [ -w \"$1\" ]; }; "
    "hfsb_ok \"$hfsb_d\" || { hfsb_d=$hfsb_t; hfsb_ok \"$hfsb_d\" || { "
    "echo hfsb-pipe fail no folder of this user can be written: "
    "set XDG_DATA_HOME; exit 1; }; }; "
    "hfsb_f=$hfsb_d/hfsb-server-$hfsb_s; "
    "hfsb_p=$hfsb_f.${hfsb_key%????????????????????????????????}.$$; "
    "if [ -f \"$hfsb_f\" ] && hfsb_sum \"$hfsb_f\"; then "
    "echo hfsb-pipe have; else echo hfsb-pipe need; "
    "find \"$hfsb_d\" -name 'hfsb-server-*.*' -mmin +60 "
    "-exec rm -f {} \\; 2>/dev/null; "
    "hfsb_x=$( (umask 077; head -c \"$hfsb_n\" > \"$hfsb_p\") 2>&1) || { "
    "rm -f \"$hfsb_p\"; "
    "echo hfsb-pipe fail cannot write hfsb-server, $((hfsb_n / 1000)) kB, "
    "to \"$hfsb_d\": make room, or set XDG_DATA_HOME there to another folder "
    "\"($hfsb_x)\"; exit 1; }; "
    "hfsb_sum \"$hfsb_p\" "
    "&& chmod 700 \"$hfsb_p\" && mv -f \"$hfsb_p\" \"$hfsb_f\" || { "
    "rm -f \"$hfsb_p\"; "
    "echo hfsb-pipe fail hfsb-server did not arrive whole, or sha256sum is "
    "missing; exit 1; }; echo hfsb-pipe have; fi; "
    "HFSB_PIPE_KEY=$hfsb_key exec \"$hfsb_f\" --stdio "
    "--linger $hfsb_linger; }\n";

/* rmdir removes only what is empty: other files stay. */
static const char hfsbi_pipe_forget[] = HFSBI_PIPE_DIR HFSBI_PIPE_OWN
    "for hfsb_x in \"$hfsb_d\" \"$hfsb_t\"; do hfsb_own \"$hfsb_x\" && "
    "{ rm -f \"$hfsb_x\"/hfsb-server-*; "
    "rmdir \"$hfsb_x\"; } 2>/dev/null; done; "
    "echo; echo hfsb-pipe forgot; exit 0; }\n";

/* ---- the command ---- */

/* Reads stderr once, and keeps its end: a command that floods it must not hold
   the loop. */
static void hfsbi_pipe_listen(hfsbi_io *io, unsigned events) {
    hfsb_pipe *p =
        (hfsb_pipe *)(void *)((char *)io - offsetof(hfsb_pipe, errors));
    char     room[HFSBI_PIPE_ERRORS];
    ssize_t  n = hfsbi_read(io->fd, room, sizeof room);
    hfsb_str text = hfsb_str_make(room, n > 0 ? (size_t)n : 0);
    size_t   keep = p->said.len, extra;
    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n <= 0) {
        hfsbi_loop_io_forget(p->loop, io);
        hfsbi_close(&io->fd);
        return;
    }
    if (text.len > HFSBI_PIPE_SAID)
        text = hfsb_str_slice(text, text.len - HFSBI_PIPE_SAID, text.len);
    if (keep > HFSBI_PIPE_SAID - text.len) keep = HFSBI_PIPE_SAID - text.len;
    extra = p->said.len - keep;
    if (extra) memmove(p->said.ptr, p->said.ptr + extra, keep);
    hfsb_buf_truncate(&p->said, keep);
    (void)!hfsb_buf_append(&p->said, text);
}

/* True when the command has exited; it stays a zombie. */
static bool hfsbi_pipe_exited(pid_t pid) {
    siginfo_t info;
    info.si_pid = 0;
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return errno != EINTR;
    /* macOS reports one that was stopped, too */
    return info.si_pid != 0 && info.si_code != CLD_STOPPED;
}

/* Waits up to ms for the command to exit; with `all` also for the processes
   that have its stderr: the shell of "load; srun sh" exits before srun. */
static bool hfsbi_pipe_exits(hfsb_pipe *p, bool all, long long ms) {
    long long until = hfsb_clock_ms() + ms;
    unsigned  tries = 0;
    bool      exited;
    for (;;) {
        exited = hfsbi_pipe_exited(p->pid);
        hfsbi_loop_lock(p->loop);
        if (all && p->errors.fd >= 0) exited = false;
        hfsbi_loop_unlock(p->loop);
        if (exited || hfsb_clock_ms() >= until) return exited;
        hfsbi_pause(tries++);
    }
}

/* Waits up to ms for the command to exit, then ends it with its group: first
   with TERM, at which srun takes its job out of the queue. */
static void hfsbi_pipe_reap(hfsb_pipe *p, long long ms) {
    int  status = 0;
    bool alone;
    if (!p->pid) return;
    alone = hfsbi_pipe_exits(p, false, ms);
    if (!alone && kill(-p->pid, SIGTERM) == 0)
        (void)hfsbi_pipe_exits(p, true, HFSBI_PIPE_TERM_MS);
    (void)kill(-p->pid, SIGKILL);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) continue;
    p->exit_code = alone && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    p->pid = 0;
}

/* Ends what is left of the previous pipe. */
static void hfsbi_pipe_drop(hfsb_pipe *p, long long ms) {
    int i;
    hfsbi_loop_lock(p->loop);
    hfsbi_mux_close(p->mux);
    p->mux = NULL;
    hfsbi_loop_unlock(p->loop);
    hfsbi_pipe_reap(p, ms);
    hfsbi_loop_lock(p->loop);
    for (i = 0; p->errors.fd >= 0 && i < HFSBI_PIPE_LAST; i++)
        hfsbi_pipe_listen(&p->errors, 0);
    if (p->errors.fd >= 0) { /* another process has it open too */
        hfsbi_loop_io_forget(p->loop, &p->errors);
        hfsbi_close(&p->errors.fd);
    }
    hfsbi_loop_unlock(p->loop);
}

/* ---- the handshake ---- */

/* What the peer has answered. Each answer is good for one step, so that none
   can be repeated without end:

       ASKED --shell--> OFFERED --have-----------------+-> READY --mux--> UP
         |                 +------need--> SENT --have--+              ^
         +------------- mux: hfsb-server itself ----------------------+ */
typedef enum hfsbi_pipe_step {
    HFSBI_PIPE_ASKED,
    HFSBI_PIPE_OFFERED,
    HFSBI_PIPE_SENT,
    HFSBI_PIPE_READY,
    HFSBI_PIPE_UP,
    HFSBI_PIPE_FORGOT /* in place of UP, by the other script */
} hfsbi_pipe_step;

/* One start of the command, until frames can be sent. */
typedef struct hfsbi_pipe_start {
    hfsb_pipe         *p;
    const char        *script;
    int                in, out; /* from and to the command */
    long long          until;
    const hfsb_cancel *cancel;
    hfsb_err          *err;
    bool               heard; /* a byte came */
    bool               lost;  /* it ended before hfsb-server answered */
    bool               late;  /* hfsb-server did not answer in time */
    hfsbi_pipe_step    step;
    hfsb_buf           server; /* its bytes, once a shell has answered */
    size_t             noise;
    char               line[HFSBI_PIPE_LINE];
    size_t             have;
} hfsbi_pipe_start;

static hfsb_status hfsbi_pipe_wait(hfsbi_pipe_start *x, int fd, short events) {
    short       ready;
    hfsb_status st = hfsbi_wait_fd(fd, events, x->until, x->cancel, &ready);
    if (st == HFSB_OK && hfsb_clock_ms() >= x->until) st = HFSB_TIMEOUT;
    x->late = st == HFSB_TIMEOUT;
    if (x->late) /* hfsbi_pipe_explain() adds what is on stderr */
        return hfsbi_fail(x->err, st, 0,
                          "hfsb-server did not answer through %s in time",
                          x->p->argv[0]);
    if (st == HFSB_CANCELLED)
        return hfsbi_fail(x->err, st, 0, "Cancelled while connecting.");
    return st == HFSB_OK ? st
                         : hfsbi_fail(x->err, st, 0, "Cannot wait for %s.",
                                      x->p->argv[0]);
}

/* The pipe ended; hfsbi_pipe_try() adds its exit status, and
   hfsbi_pipe_explain() what is on stderr. */
static hfsb_status hfsbi_pipe_lost(hfsbi_pipe_start *x) {
    x->lost = true;
    (void)hfsbi_fail(x->err, HFSB_CONNECT, 0, "%s", "");
    hfsbi_err_quote(x->err, hfsb_cstr(x->p->name), HFSBI_PIPE_SHOWN);
    hfsbi_err_add(x->err, " ended before hfsb-server answered");
    return HFSB_CONNECT;
}

static hfsb_status hfsbi_pipe_say(hfsbi_pipe_start *x, hfsb_str text) {
    hfsbi_signal_guard guard;
    hfsb_status        st = HFSB_OK;
    hfsbi_signal_guard_begin(&guard);
    while (text.len && st == HFSB_OK) {
        ssize_t n = hfsbi_write(x->out, text.ptr, text.len);
        if (n > 0) text = hfsb_str_slice(text, (size_t)n, text.len);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            st = hfsbi_pipe_wait(x, x->out, POLLOUT);
        else st = hfsbi_pipe_lost(x);
    }
    hfsbi_signal_guard_end(&guard);
    return st;
}

/* Drops the lines before the first that begins with "hfsb-pipe ". Returns the
   length of that one, with its "\n"; 0: it has not come yet. *echo: our own
   line came back. */
static size_t hfsbi_pipe_skip(hfsbi_pipe_start *x, bool *echo) {
    size_t at = 0, len;
    for (;;) {
        hfsb_str have = hfsb_str_make(x->line + at, x->have - at);
        size_t   end = hfsb_str_find_byte(have, '\n');
        len = end == HFSB_NPOS ? 0 : end + 1;
        if (len && hfsb_str_starts(have, HFSB_LIT("hfsb-pipe "))) break;
        if (!len && have.len == sizeof x->line) len = have.len;
        if (!len) break;
        if (hfsb_str_starts(have, HFSB_LIT("{ hfsb_key="))) *echo = true;
        at += len;
    }
    if (at) memmove(x->line, x->line + at, x->have - at);
    x->have -= at;
    x->noise += at;
    return len;
}

/* Waits for a line that begins with "hfsb-pipe ". It then is at the start of
   x->line, and has *len bytes with its "\n". */
static hfsb_status hfsbi_pipe_hear(hfsbi_pipe_start *x, size_t *len) {
    bool echo = false;
    for (;;) {
        ssize_t     n;
        hfsb_status st;
        *len = hfsbi_pipe_skip(x, &echo);
        if (echo || x->noise >= HFSBI_PIPE_NOISE)
            return hfsbi_fail(x->err, HFSB_REMOTE, 0,
                              "%s prints, but neither a shell nor hfsb-server "
                              "answers through it.",
                              x->p->argv[0]);
        if (*len) return HFSB_OK;
        st = hfsbi_pipe_wait(x, x->in, POLLIN);
        if (st != HFSB_OK) return st;
        n = hfsbi_read(x->in, x->line + x->have, sizeof x->line - x->have);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) continue;
        if (n <= 0) return hfsbi_pipe_lost(x);
        x->heard = true;
        x->have += (size_t)n;
    }
}

/* Moves the first word of *text to out. Characters that no machine's name has
   become "?": the word is shown to people, and becomes a part of file names.
   */
static void hfsbi_pipe_word(hfsb_str *text, char *out, size_t room) {
    size_t end = hfsb_str_find_byte(*text, ' '), i;
    if (end == HFSB_NPOS) end = text->len;
    for (i = 0; i < end && i + 1 < room; i++) {
        char c = text->ptr[i];
        out[i] = hfsbi_is_word_char(c) || c == '.' || c == '-' ? c : '?';
    }
    out[i] = '\0';
    *text = hfsb_str_slice(*text, end < text->len ? end + 1 : end, text->len);
}

/* A shell has answered: offers it the server for its kind of machine. */
static hfsb_status hfsbi_pipe_offer(hfsbi_pipe_start *x, hfsb_str rest) {
    hfsb_pipe  *p = x->p;
    char        system[32], machine[32], hex[HFSB_SHA256_HEX], text[96];
    hfsb_status st;
    hfsbi_pipe_word(&rest, system, sizeof system);
    hfsbi_pipe_word(&rest, machine, sizeof machine);
    if (!p->o.server)
        return hfsbi_fail(x->err, HFSB_REFUSED, 0,
                          "A shell answers through %s, not hfsb-server.",
                          p->argv[0]);
    x->server.alloc = p->o.alloc;
    st = p->o.server(p->o.user, system, machine, &x->server, x->err);
    if (st != HFSB_OK) return st;
    hfsb_sha256_hex(hfsb_buf_str(&x->server), hex);
    (void)snprintf(text, sizeof text, "%s %zu\n", hex, x->server.len);
    return hfsbi_pipe_say(x, hfsb_cstr(text));
}

/* Returns the step after an answer; the same step: the answer is not expected
   now. */
static hfsbi_pipe_step hfsbi_pipe_next(hfsbi_pipe_step step,
                                       const char     *answer) {
    static const struct {
        hfsbi_pipe_step from;
        char            answer[8];
        hfsbi_pipe_step to;
    } steps[] = {{HFSBI_PIPE_ASKED, "shell", HFSBI_PIPE_OFFERED},
                 {HFSBI_PIPE_OFFERED, "need", HFSBI_PIPE_SENT},
                 {HFSBI_PIPE_OFFERED, "have", HFSBI_PIPE_READY},
                 {HFSBI_PIPE_SENT, "have", HFSBI_PIPE_READY},
                 {HFSBI_PIPE_READY, "mux", HFSBI_PIPE_UP},
                 {HFSBI_PIPE_ASKED, "mux", HFSBI_PIPE_UP},
                 {HFSBI_PIPE_ASKED, "forgot", HFSBI_PIPE_FORGOT}};
    size_t i;
    for (i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i].from == step && !strcmp(steps[i].answer, answer))
            return steps[i].to;
    return step;
}

/* Answers a line that begins with "hfsb-pipe ". */
static hfsb_status hfsbi_pipe_answer(hfsbi_pipe_start *x, hfsb_str line) {
    char            word[16];
    hfsbi_pipe_step before = x->step;
    hfsb_str        rest = line;
    hfsbi_pipe_word(&rest, word, sizeof word); /* hfsb-pipe */
    line = rest;
    hfsbi_pipe_word(&rest, word, sizeof word);
    x->step = hfsbi_pipe_next(before, word);
    if (x->step == before) {
        if (!strcmp(word, "fail")) line = rest;
        (void)hfsbi_fail(x->err, HFSB_REMOTE, 0, "The other side reports: ");
        hfsbi_err_quote(x->err, line, HFSBI_PIPE_REPORT);
        return HFSB_REMOTE;
    }
    if (x->step == HFSBI_PIPE_OFFERED) return hfsbi_pipe_offer(x, rest);
    if (x->step == HFSBI_PIPE_SENT) {
        hfsb_status st = hfsbi_pipe_say(x, hfsb_buf_str(&x->server));
        /* a peer that stops reading may have written why */
        return st == HFSB_CONNECT ? HFSB_OK : st;
    }
    if (x->step == HFSBI_PIPE_UP && !hfsb_str_equal(rest, HFSB_LIT("1")))
        return hfsbi_fail(x->err, HFSB_REMOTE, 0,
                          "hfsb-server over there is of another version.");
    return HFSB_OK;
}

static hfsb_status hfsbi_pipe_shake(hfsbi_pipe_start *x) {
    char        head[128];
    hfsb_status st;
    (void)snprintf(head, sizeof head, "{ hfsb_key=%s; hfsb_linger=%lld; ",
                   x->p->key, (x->p->o.linger_ms + 999) / 1000);
    st = hfsbi_pipe_say(x, hfsb_cstr(head));
    if (st == HFSB_OK) st = hfsbi_pipe_say(x, hfsb_cstr(x->script));
    while (st == HFSB_OK && x->step < HFSBI_PIPE_UP) {
        size_t len;
        st = hfsbi_pipe_hear(x, &len);
        if (st != HFSB_OK) break;
        st = hfsbi_pipe_answer(x, hfsb_str_make(x->line, len - 1));
        memmove(x->line, x->line + len, x->have - len);
        x->have -= len;
    }
    hfsb_buf_free(&x->server);
    return st;
}

/* ---- starting ---- */

static hfsb_status hfsbi_pipe_spawn(hfsbi_pipe_start *x) {
    hfsb_pipe     *p = x->p;
    hfsb_proc_opts opts = HFSB_INIT;
    hfsbi_ends     ends;
    hfsb_status    st;
    opts.argv = p->argv;
    opts.keep_input = true;
    opts.alloc = p->o.alloc;
    st = hfsbi_spawn(&opts, -1, &p->pid, &ends, x->err);
    if (st != HFSB_OK) {
        p->pid = 0;
        return st;
    }
    x->in = ends.output[0];
    x->out = ends.input;
    hfsbi_loop_lock(p->loop);
    hfsb_buf_truncate(&p->said, 0);
    p->errors.fd = ends.output[1];
    if (!hfsbi_set_nonblocking(x->in) || !hfsbi_set_nonblocking(x->out) ||
        !hfsbi_set_nonblocking(p->errors.fd) ||
        !hfsbi_loop_io(p->loop, &p->errors, HFSBI_IO_READ))
        st = hfsbi_fail_status(x->err, HFSB_BUSY, "pipe");
    hfsbi_loop_unlock(p->loop);
    return st;
}

/* Adds the last line on stderr to the message. */
static void hfsbi_pipe_explain(hfsb_pipe *p, hfsb_err *err) {
    hfsb_str said;
    size_t   at;
    hfsbi_loop_lock(p->loop);
    said = hfsb_buf_str(&p->said);
    while (said.len && (unsigned char)said.ptr[said.len - 1] <= ' ')
        said.len--;
    while ((at = hfsb_str_find_byte(said, '\n')) != HFSB_NPOS)
        said = hfsb_str_slice(said, at + 1, said.len);
    if (said.len) hfsbi_err_add(err, ": ");
    if (said.len) hfsbi_err_quote(err, said, 300);
    if (!said.len || !strchr(".?!", said.ptr[said.len - 1]))
        hfsbi_err_add(err, ".");
    hfsbi_loop_unlock(p->loop);
}

static void hfsbi_pipe_over(void *user, hfsbi_mux_end end) {
    hfsb_pipe *p = (hfsb_pipe *)user;
    (void)end;
    (void)pthread_mutex_lock(&p->lock);
    p->broke = hfsb_clock_ms();
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
}

static hfsb_status hfsbi_pipe_begin_frames(hfsbi_pipe_start *x) {
    hfsb_pipe     *p = x->p;
    hfsbi_mux_opts opts = HFSB_INIT;
    hfsb_status    st;
    opts.loop = p->loop;
    opts.over = hfsbi_pipe_over;
    opts.user = p;
    opts.alloc = p->o.alloc;
    hfsbi_loop_lock(p->loop);
    st = hfsbi_mux_open(&opts, &x->in, &x->out, &p->mux, x->err);
    if (st == HFSB_OK) hfsbi_mux_feed(p->mux, hfsb_str_make(x->line, x->have));
    hfsbi_loop_unlock(p->loop);
    return st;
}

/* True for an exit code after which a first start is not repeated: the command
   cannot be run, or ssh got no connection. */
static bool hfsbi_pipe_is_futile(int code) {
    return code == 126 || code == 127 || code == 255;
}

/* Starts the command once; the one before has ended. *futile: it would fail
   again. */
static hfsb_status hfsbi_pipe_try(hfsb_pipe *p, const char *script,
                                  long long until, const hfsb_cancel *cancel,
                                  bool *futile, hfsb_err *err) {
    hfsbi_pipe_start *x =
        (hfsbi_pipe_start *)hfsbi_array(&p->o.alloc, 1, sizeof *x);
    hfsb_status st;
    *futile = true;
    if (!x) return hfsbi_fail_status(err, HFSB_NOMEM, "pipe");
    memset(x, 0, sizeof *x);
    x->p = p;
    x->script = script;
    x->in = x->out = -1;
    x->until = until;
    x->cancel = cancel;
    x->err = err;
    st = hfsbi_pipe_spawn(x);
    if (st == HFSB_OK) st = hfsbi_pipe_shake(x);
    if (st == HFSB_OK && x->step == HFSBI_PIPE_UP)
        st = hfsbi_pipe_begin_frames(x);
    hfsbi_close(&x->in);
    hfsbi_close(&x->out);
    /* what it waits for; the message of p->o.server is complete */
    if (st == HFSB_TIMEOUT && x->late) hfsbi_pipe_explain(p, err);
    if (st != HFSB_OK)
        hfsbi_pipe_drop(p, st == HFSB_CONNECT ? HFSBI_PIPE_EXIT_MS : 0);
    *futile = !x->heard && p->said.len && hfsbi_pipe_is_futile(p->exit_code);
    if (st == HFSB_CONNECT && x->lost) {
        if (p->exit_code >= 0)
            hfsbi_err_add(err, " (exit status %d)", p->exit_code);
        hfsbi_pipe_explain(p, err);
    }
    hfsbi_array_free(&p->o.alloc, x, 1, sizeof *x);
    return st;
}

/* Returns until when the remote server waits for another pipe; 0: it does not.
   */
static long long hfsbi_pipe_lingers(hfsb_pipe *p) {
    long long until;
    (void)pthread_mutex_lock(&p->lock);
    until = p->broke ? p->broke + p->o.linger_ms : 0;
    (void)pthread_mutex_unlock(&p->lock);
    return until > hfsb_clock_ms() ? until : 0;
}

static hfsb_status hfsbi_pipe_give_up(const hfsb_cancel *cancel,
                                      hfsb_err          *err) {
    if (hfsb_cancel_is_set(cancel))
        return hfsbi_fail(err, HFSB_CANCELLED, 0,
                          "Cancelled while connecting.");
    return hfsbi_fail(err, HFSB_TIMEOUT, 0, "Gave up waiting for the pipe.");
}

/* Starts the command until it works, or cannot work. */
static hfsb_status hfsbi_pipe_run(hfsb_pipe *p, const char *script,
                                  long long until, const hfsb_cancel *cancel,
                                  hfsb_err *err) {
    hfsbi_retry retry = HFSB_INIT;
    long long   lingers = hfsbi_pipe_lingers(p);
    hfsb_status st;
    bool        futile;
    retry.delay_ms = HFSBI_PIPE_AGAIN_MS;
    retry.deadline = until;
    retry.cancel = cancel;
    if (lingers) {
        retry.max_delay_ms = HFSBI_PIPE_LATER_MS;
        if (lingers < until) retry.deadline = lingers;
    } else retry.tries = HFSBI_PIPE_TRIES;
    hfsbi_pipe_drop(p, 0); /* may take longer than a start may */
    if (hfsb_cancel_is_set(cancel) || hfsb_clock_ms() >= until)
        return hfsbi_pipe_give_up(cancel, err);
    do {
        /* a start that hangs must not use up the time of the next ones */
        long long soon = hfsb_clock_ms() + p->o.again_ms;
        st = hfsbi_pipe_try(p, script, lingers && soon < until ? soon : until,
                            cancel, &futile, err);
    } while ((lingers ? st == HFSB_CONNECT || st == HFSB_TIMEOUT
                      : st == HFSB_CONNECT && !futile) &&
             hfsbi_retry_again(&retry) == HFSB_OK);
    return st;
}

static bool hfsbi_pipe_is_up(hfsb_pipe *p) {
    bool up;
    hfsbi_loop_lock(p->loop);
    up = p->mux && hfsbi_mux_runs(p->mux);
    hfsbi_loop_unlock(p->loop);
    return up;
}

/* Starts the command again, unless another thread has done so. */
static hfsb_status hfsbi_pipe_restart(hfsb_pipe *p, long long until,
                                      const hfsb_cancel *cancel,
                                      hfsb_err          *err) {
    hfsb_status st = HFSB_OK;
    (void)pthread_mutex_lock(&p->lock);
    while (p->starting && !hfsb_cancel_is_set(cancel) &&
           hfsb_clock_ms() < until)
        hfsbi_cond_wait_ms(&p->changed, &p->lock, HFSBI_PIPE_SLICE_MS);
    if (p->starting) st = HFSB_TIMEOUT;
    else p->starting = true;
    (void)pthread_mutex_unlock(&p->lock);
    if (st != HFSB_OK) return hfsbi_pipe_give_up(cancel, err);
    if (!hfsbi_pipe_is_up(p))
        st = hfsbi_pipe_run(p, hfsbi_pipe_script, until, cancel, err);
    (void)pthread_mutex_lock(&p->lock);
    p->starting = false;
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    return st;
}

hfsb_status hfsb_pipe_dial(void *user, const hfsb_dial *to, int *fd,
                           hfsb_err *err) {
    hfsb_pipe  *p = (hfsb_pipe *)user;
    hfsb_status st = HFSB_OK;
    int         tries;
    for (tries = 0; st == HFSB_OK && tries < HFSBI_PIPE_TRIES; tries++) {
        hfsbi_loop_lock(p->loop);
        st = p->mux ? hfsbi_mux_connect(p->mux, fd, err) : HFSB_CONNECT;
        hfsbi_loop_unlock(p->loop);
        if (st != HFSB_CONNECT) return st;
        st = hfsbi_pipe_restart(p, to->deadline, to->cancel, err);
    }
    return st != HFSB_OK ? st
                         : hfsbi_fail(err, HFSB_CONNECT, 0,
                                      "The pipe breaks again and again.");
}

/* ---- open and close ---- */

static void *hfsbi_pipe_thread(void *user) {
    hfsb_pipe *p = (hfsb_pipe *)user;
    hfsbi_loop_lock(p->loop);
    while (!p->stop) hfsbi_loop_turn(p->loop, -1);
    hfsbi_loop_unlock(p->loop);
    return NULL;
}

static hfsb_status hfsbi_pipe_copy_argv(hfsb_pipe *p, const hfsb_pipe_opts *o,
                                        hfsb_err *err) {
    hfsbi_pipe_words *w = &p->words;
    hfsb_status       st = HFSB_OK;
    size_t            i, at = 0;
    for (i = 0; o->argv && o->argv[i]; i++)
        hfsbi_pipe_add(w, hfsb_cstr(o->argv[i]));
    if (!o->argv) st = hfsbi_pipe_name(hfsb_cstr(o->name), w, err);
    if (st != HFSB_OK) return st;
    hfsbi_pipe_add(w, hfsb_cstr(o->argv ? o->argv[0] : o->name));
    p->argv =
        (const char **)hfsbi_array(&o->alloc, w->count + 1, sizeof(char *));
    if (w->text.status != HFSB_OK || !p->argv)
        return hfsbi_fail_status(err, HFSB_NOMEM, "pipe");
    for (i = 0; i < w->count; at += strlen(w->text.ptr + at) + 1)
        p->argv[i++] = w->text.ptr + at;
    p->argv[w->count] = NULL;
    p->name = p->argv[w->count - 1];
    p->argv[w->count - 1] = NULL;
    return HFSB_OK;
}

/* Frees a pipe without its thread. */
static void hfsbi_pipe_free(hfsb_pipe *p) {
    hfsb_alloc alloc = p->o.alloc;
    hfsbi_loop_close(p->loop);
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
    hfsb_buf_free(&p->said);
    hfsb_buf_free(&p->words.text);
    hfsbi_array_free(&alloc, p->argv, p->argv ? p->words.count + 1 : 0,
                     sizeof(char *));
    hfsbi_array_free(&alloc, p, 1, sizeof *p);
}

/* Time for a start after a break: the server must still be there for the next
   one. */
static long long hfsbi_pipe_again(long long linger_ms) {
    long long ms = linger_ms / 3;
    if (ms < HFSBI_PIPE_LEAST_MS) ms = HFSBI_PIPE_LEAST_MS;
    if (ms > HFSBI_PIPE_MOST_MS) ms = HFSBI_PIPE_MOST_MS;
    return ms;
}

/* A pipe without its thread; NULL without memory. */
static hfsb_pipe *hfsbi_pipe_make(const hfsb_pipe_opts *opts) {
    hfsb_pipe *p = (hfsb_pipe *)hfsbi_array(&opts->alloc, 1, sizeof *p);
    if (!p) return NULL;
    memset(p, 0, sizeof *p);
    p->o = *opts;
    if (p->o.start_ms <= 0) p->o.start_ms = 60000;
    if (p->o.linger_ms <= 0) p->o.linger_ms = 60000;
    if (p->o.again_ms <= 0) p->o.again_ms = hfsbi_pipe_again(p->o.linger_ms);
    if (p->o.close_ms <= 0) p->o.close_ms = 12000;
    p->words.text.alloc = p->said.alloc = opts->alloc;
    p->errors.fd = -1;
    p->errors.fn = hfsbi_pipe_listen;
    if (pthread_mutex_init(&p->lock, NULL) == 0) {
        if (hfsbi_cond_init(&p->changed) == 0) return p;
        (void)pthread_mutex_destroy(&p->lock);
    }
    hfsbi_array_free(&opts->alloc, p, 1, sizeof *p);
    return NULL;
}

static hfsb_status hfsbi_pipe_new(const hfsb_pipe_opts *opts, hfsb_pipe **out,
                                  hfsb_err *err) {
    hfsb_pipe  *p = hfsbi_pipe_make(opts);
    hfsb_status st = p ? hfsbi_pipe_copy_argv(p, opts, err)
                       : hfsbi_fail_status(err, HFSB_NOMEM, "pipe");
    *out = NULL;
    if (st == HFSB_OK && !hfsbi_random_hex(p->key, HFSBI_PIPE_KEY))
        st = hfsbi_fail(err, HFSB_BUSY, 0,
                        "The system has no random bytes for a key.");
    if (st == HFSB_OK)
        st = hfsbi_loop_open(&p->o.alloc, 0, true, &p->loop, err);
    if (st == HFSB_OK && hfsbi_thread_start(&p->thread, HFSBI_PIPE_STACK,
                                            hfsbi_pipe_thread, p) != 0)
        st = hfsbi_fail(err, HFSB_BUSY, 0, "Cannot start a thread.");
    if (st == HFSB_OK) *out = p;
    else if (p) hfsbi_pipe_free(p);
    return st;
}

/* Waits until the pipe is over. */
static void hfsbi_pipe_say_bye(hfsb_pipe *p) {
    long long until = hfsb_clock_ms() + p->o.close_ms;
    hfsbi_loop_lock(p->loop);
    if (p->mux && hfsbi_mux_runs(p->mux)) hfsbi_mux_bye(p->mux);
    hfsbi_loop_unlock(p->loop);
    while (hfsbi_pipe_is_up(p) && hfsb_clock_ms() < until) {
        (void)pthread_mutex_lock(&p->lock);
        hfsbi_cond_wait_ms(&p->changed, &p->lock, HFSBI_PIPE_SLICE_MS);
        (void)pthread_mutex_unlock(&p->lock);
    }
}

hfsb_str hfsb_pipe_token(const hfsb_pipe *pipe) {
    return hfsb_cstr(pipe->key + HFSBI_PIPE_NAME);
}

void hfsb_pipe_close(hfsb_pipe *pipe) {
    if (!pipe) return;
    hfsbi_pipe_say_bye(pipe);
    hfsbi_pipe_drop(pipe, HFSBI_PIPE_EXIT_MS);
    hfsbi_loop_lock(pipe->loop);
    pipe->stop = true;
    hfsbi_loop_unlock(pipe->loop);
    hfsbi_loop_wake(pipe->loop);
    (void)pthread_join(pipe->thread, NULL);
    hfsbi_pipe_free(pipe);
}

hfsb_status hfsb_pipe_open(const hfsb_pipe_opts *opts, hfsb_pipe **out,
                           hfsb_err *err) {
    hfsb_status st = hfsbi_pipe_new(opts, out, err);
    if (st != HFSB_OK) return st;
    st = hfsbi_pipe_run(*out, hfsbi_pipe_script,
                        hfsb_clock_ms() + (*out)->o.start_ms, opts->cancel,
                        err);
    if (st == HFSB_OK) return hfsbi_ok(err);
    hfsb_pipe_close(*out);
    *out = NULL;
    return st;
}

hfsb_status hfsb_pipe_forget(const hfsb_pipe_opts *opts, hfsb_err *err) {
    hfsb_pipe  *p;
    hfsb_status st = hfsbi_pipe_new(opts, &p, err);
    if (st != HFSB_OK) return st;
    st = hfsbi_pipe_run(p, hfsbi_pipe_forget, hfsb_clock_ms() + p->o.start_ms,
                        opts->cancel, err);
    if (st == HFSB_OK && p->mux) /* no shell read the script */
        st = hfsbi_fail(err, HFSB_REFUSED, 0,
                        "hfsb-server itself answers through %s, not a shell: "
                        "nothing was sent there, and nothing is removed.",
                        p->argv[0]);
    hfsb_pipe_close(p);
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}

/* ---- the other side ---- */

typedef struct hfsbi_pipe_server {
    hfsbi_io io; /* first; fd 0: the server is not watched */
    const hfsb_pipe_serve_opts *o;
    hfsbi_mux_end               end;
} hfsbi_pipe_server;

static hfsb_status hfsbi_pipe_accept(void *user, int *fd) {
    const hfsbi_pipe_server *s = (const hfsbi_pipe_server *)user;
    hfsb_dial                to = HFSB_INIT;
    hfsb_status              st;
    to.deadline = hfsb_clock_ms() + HFSBI_PIPE_DIAL_MS;
    st = s->o->dial(s->o->user, &to, fd, NULL);
    if (st != HFSB_OK) *fd = -1;
    return st == HFSB_OK && !hfsbi_set_nonblocking(*fd) ? HFSB_IO : st;
}

static hfsb_status hfsbi_pipe_prove(void *user, int fd, void *room) {
    const hfsbi_pipe_server *s = (const hfsbi_pipe_server *)user;
    return s->o->prove(s->o->user, fd, room);
}

static void hfsbi_pipe_server_over(void *user, hfsbi_mux_end end) {
    ((hfsbi_pipe_server *)user)->end = end;
}

/* Without the server the pipe is useless: when it ends, the client starts the
   command again, and so a server. */
static void hfsbi_pipe_server_ready(hfsbi_io *io, unsigned events) {
    hfsbi_pipe_server *s = (hfsbi_pipe_server *)(void *)io;
    char               room[256];
    ssize_t            n = hfsbi_read(io->fd, room, sizeof room);
    (void)events;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK))
        s->end = HFSBI_MUX_BROKE;
}

/* Pumps until the pipe or the server ends. */
static hfsb_status hfsbi_pipe_pump(hfsbi_pipe_server *s, hfsbi_mux_opts *opts,
                                   int *in, int *out, hfsb_err *err) {
    hfsbi_mux  *mux = NULL;
    hfsb_status st = hfsbi_mux_open(opts, in, out, &mux, err);
    if (st == HFSB_OK && s->io.fd > 0 &&
        (!hfsbi_set_nonblocking(s->io.fd) ||
         !hfsbi_loop_io(opts->loop, &s->io, HFSBI_IO_READ)))
        st = hfsbi_fail_status(err, HFSB_BUSY, "pipe");
    while (st == HFSB_OK && s->end == HFSBI_MUX_RUNS)
        hfsbi_loop_turn(opts->loop, -1);
    if (s->io.fd > 0) hfsbi_loop_io_forget(opts->loop, &s->io);
    hfsbi_mux_close(mux);
    return st;
}

hfsb_status hfsb_pipe_serve(int in, int out, const hfsb_pipe_serve_opts *how,
                            bool *bye, hfsb_err *err) {
    hfsbi_pipe_server  s = HFSB_INIT;
    hfsbi_mux_opts     opts = HFSB_INIT;
    hfsbi_signal_guard guard;
    hfsb_status        st;
    *bye = false;
    s.io.fd = how->server;
    s.io.fn = hfsbi_pipe_server_ready;
    s.o = how;
    s.end = HFSBI_MUX_RUNS;
    opts.accept = hfsbi_pipe_accept;
    if (how->prove) opts.prove = hfsbi_pipe_prove;
    opts.proof_room = how->proof_room;
    opts.over = hfsbi_pipe_server_over;
    opts.user = &s;
    st = hfsbi_loop_open(&opts.alloc, 0, true, &opts.loop, err);
    if (st == HFSB_OK) {
        hfsbi_signal_guard_begin(&guard);
        hfsbi_loop_lock(opts.loop);
        st = hfsbi_pipe_pump(&s, &opts, &in, &out, err);
        hfsbi_loop_unlock(opts.loop);
        hfsbi_signal_guard_end(&guard);
        hfsbi_loop_close(opts.loop);
    }
    hfsbi_close(&in);
    hfsbi_close(&out);
    *bye = s.end == HFSBI_MUX_SAID_BYE;
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}
