/* proc.c - a command from its start to its end, driven step by step. */
#include "os_private.h"

#define HFSBI_PROC_BLOCK   65536u   /* bytes a read */
#define HFSBI_PROC_READS   4        /* of each stream, a step */
#define HFSBI_PROC_PIPE    1048576u /* a busy pipe is made as big as this */
#define HFSBI_PROC_INPUT   1048576u /* bytes that may wait to be written */
#define HFSBI_PROC_GIVE_UP 2000     /* ms after which KILL was in vain */

/* TERM, then KILL, until nothing is left or it cannot be helped. */
typedef enum hfsbi_hunt {
    HFSBI_HUNT_NONE,
    HFSBI_HUNT_TERM,
    HFSBI_HUNT_KILL,
    HFSBI_HUNT_OVER
} hfsbi_hunt;

struct hfsb_proc {
    hfsb_alloc          alloc;
    hfsb_proc_output_fn on_output;
    void               *user;
    hfsb_proc_result    result;
    bool                no_keeper;
    bool                exited; /* the leader; a zombie until close */
    bool                done;

    int      input_fd;
    hfsb_buf input; /* what waits is behind input_at */
    size_t   input_at;
    bool     input_ends;

    int                output[2];
    bool               drained[2];   /* the last read found it empty */
    unsigned long long after_end[2]; /* bytes since ended_at */

    /* on hfsb_clock_ms(); -1: not yet, or never */
    long long started, timeout_at;
    long long look_at, look_wait; /* for the exit, when nothing tells of it */
    long long ended_at;           /* it exited, and no hunt goes on */
    long long byte_at;            /* when the last output came */
    long long grace_ms, quiet_ms, quiet_max_ms;
    bool      no_survivor; /* see hfsbi_proc_no_survivor() */

    hfsbi_tree tree;
    char      *marker;
    hfsbi_hunt hunt;
    long long  hunt_ends, scan_at, scan_wait;

    char block[HFSBI_PROC_BLOCK]; /* last: it is not cleared */
};

long long hfsb_clock_ms(void) {
    struct timespec now = HFSB_INIT;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* a + b of times at or above 0, at most the end of time. */
static long long hfsbi_later(long long a, long long b) {
    return a > LLONG_MAX - b ? LLONG_MAX : a + b;
}

/* ---- start ---- */

static long long hfsbi_proc_ms(long long given, long long otherwise) {
    return given == 0 ? otherwise : given;
}

static void hfsbi_proc_init(hfsb_proc *proc, const hfsb_proc_opts *o) {
    memset(proc, 0, offsetof(struct hfsb_proc, block));
    proc->alloc = proc->input.alloc = o->alloc;
    proc->on_output = o->on_output;
    proc->user = o->user;
    proc->no_keeper = o->no_keeper;
    proc->input_fd = -1;
    proc->output[0] = proc->output[1] = -1;
    proc->input_ends = !o->keep_input;
    proc->started = hfsb_clock_ms();
    proc->timeout_at =
        o->timeout_ms > 0 ? hfsbi_later(proc->started, o->timeout_ms) : -1;
    proc->ended_at = -1;
    proc->look_at = proc->started + 1;
    proc->grace_ms = hfsbi_proc_ms(o->grace_ms, 2000);
    proc->quiet_ms = hfsbi_proc_ms(o->quiet_ms, 100);
    if (proc->quiet_ms < 0) proc->quiet_ms = 0;
    proc->quiet_max_ms = o->quiet_max_ms > 0 ? o->quiet_max_ms : 2000;
    if (o->quiet_max_ms <= 0 && proc->quiet_max_ms < proc->quiet_ms)
        proc->quiet_max_ms = proc->quiet_ms;
    hfsbi_tree_init(&proc->tree, &o->alloc);
}

/* What must be there before the command is: a failure later would come too
   late. */
static bool hfsbi_proc_prepare(hfsb_proc *proc, const hfsb_proc_opts *o) {
    size_t size;
    if (o->input.len && hfsb_buf_append(&proc->input, o->input) != HFSB_OK)
        return false;
    if (o->job.len == 0) return true;
    size = sizeof "HFSB_JOB=" - 1 + o->job.len;
    proc->marker = (char *)hfsbi_array(&o->alloc, size, 1);
    if (!proc->marker) return false;
    memcpy(proc->marker, "HFSB_JOB=", sizeof "HFSB_JOB=" - 1);
    memcpy(proc->marker + sizeof "HFSB_JOB=" - 1, o->job.ptr, o->job.len);
    proc->tree.marker = hfsb_str_make(proc->marker, size);
    return true;
}

static void hfsbi_proc_free(hfsb_proc *proc) {
    hfsb_alloc alloc = proc->alloc;
    hfsb_buf_free(&proc->input);
    hfsbi_tree_free(&proc->tree);
    if (proc->marker)
        hfsbi_array_free(&alloc, proc->marker, proc->tree.marker.len, 1);
    hfsbi_array_free(&alloc, proc, 1, sizeof *proc);
}

hfsb_status hfsb_proc_open(const hfsb_proc_opts *opts, hfsb_proc **out,
                           hfsb_err *err) {
    hfsb_proc  *proc;
    hfsbi_ends  ends;
    pid_t       pid = -1;
    hfsb_status st;
    *out = NULL;
    proc = (hfsb_proc *)hfsbi_array(&opts->alloc, 1, sizeof *proc);
    if (!proc) return hfsbi_fail_status(err, HFSB_NOMEM, "Start of a command");
    hfsbi_proc_init(proc, opts);
    st = hfsbi_proc_prepare(proc, opts) ? HFSB_OK : HFSB_NOMEM;
    if (st != HFSB_OK) hfsbi_fail_status(err, st, "Start of a command");
    else st = hfsbi_spawn(opts, &pid, &ends, err);
    if (st != HFSB_OK) {
        hfsbi_proc_free(proc);
        return st;
    }
    proc->result.pid = (long)pid;
    hfsbi_tree_start(&proc->tree, pid);
    proc->input_fd = ends.input;
    proc->output[0] = ends.output[0];
    proc->output[1] = ends.output[1];
    *out = proc;
    return HFSB_OK;
}

/* ---- what to wait for ---- */

/* When the pipes count as quiet. */
static long long hfsbi_quiet_at(const hfsb_proc *proc) {
    long long from = proc->ended_at, most, quiet = proc->quiet_ms;
    most = hfsbi_later(from, proc->quiet_max_ms);
    if (proc->byte_at > from) from = proc->byte_at;
    if (proc->no_survivor && quiet < LLONG_MAX / 5) quiet *= 5;
    from = hfsbi_later(from, quiet);
    return from < most ? from : most;
}

static bool hfsbi_hunting(const hfsb_proc *proc) {
    return proc->hunt == HFSBI_HUNT_TERM || proc->hunt == HFSBI_HUNT_KILL;
}

size_t hfsb_proc_watch(const hfsb_proc *proc,
                       hfsb_watch       list[HFSB_PROC_WATCHES]) {
    hfsb_watch none = HFSB_INIT;
    size_t     n = 0, i;
    if (proc->done) return 0;
    if (!proc->exited && proc->tree.pidfd >= 0) {
        list[n] = none;
        list[n].readable = true;
        list[n++].fd = proc->tree.pidfd;
    }
    for (i = 0; i < 2; i++)
        if (proc->output[i] >= 0) {
            list[n] = none;
            list[n].readable = true;
            list[n++].fd = proc->output[i];
        }
    if (proc->input_fd >= 0 && proc->input_at < proc->input.len) {
        list[n] = none;
        list[n].writable = true;
        list[n++].fd = proc->input_fd;
    }
    return n;
}

long long hfsb_proc_deadline(const hfsb_proc *proc) {
    long long at = -1;
    if (proc->done) return -1;
    if (!proc->exited && proc->hunt == HFSBI_HUNT_NONE) at = proc->timeout_at;
    if (!proc->exited && proc->tree.pidfd < 0)
        at = hfsbi_sooner(at, proc->look_at);
    if (hfsbi_hunting(proc)) at = hfsbi_sooner(at, proc->scan_at);
    if (proc->ended_at >= 0) at = hfsbi_sooner(at, hfsbi_quiet_at(proc));
    return at;
}

/* ---- one step ---- */

/* The status is looked at but not taken: as long as the leader is a zombie of
   ours, its number and its group's are no one else's. */
static void hfsbi_proc_note_exit(hfsb_proc *proc, long long now) {
    hfsb_proc_result *r = &proc->result;
    siginfo_t         info;
    int               rc;
    if (proc->exited) return;
    rc = hfsbi_tree_wait(&proc->tree, &info, WNOWAIT);
    if (rc == 0 && info.si_pid == 0) {
        proc->look_wait = proc->look_wait ? proc->look_wait * 2 : 1;
        if (proc->look_wait > 50) proc->look_wait = 50;
        proc->look_at = now + proc->look_wait;
        return;
    }
    proc->exited = true;
    proc->scan_at = now;
    r->duration_ms = now - proc->started;
    if (rc != 0) {
        proc->tree.held = false;
        r->end = HFSB_PROC_UNKNOWN;
    } else if (info.si_code == CLD_EXITED) {
        r->end = HFSB_PROC_EXITED;
        r->exit_code = info.si_status;
    } else {
        r->end = HFSB_PROC_SIGNALED;
        r->signal = info.si_status;
    }
}

/* The search comes before the signal: whose parent has died is an orphan, and
   no longer known by its descent. */
static void hfsbi_hunt_begin(hfsb_proc *proc, long long now) {
    bool gently = proc->grace_ms >= 0;
    if (proc->hunt != HFSBI_HUNT_NONE) return;
    (void)hfsbi_tree_find(&proc->tree);
    proc->hunt = gently ? HFSBI_HUNT_TERM : HFSBI_HUNT_KILL;
    proc->hunt_ends =
        hfsbi_later(now, gently ? proc->grace_ms : HFSBI_PROC_GIVE_UP);
    proc->ended_at = -1;
    proc->scan_wait = 5;
    proc->scan_at = now + proc->scan_wait;
    hfsbi_tree_signal(&proc->tree, gently ? SIGTERM : SIGKILL);
    if (gently) hfsbi_tree_signal(&proc->tree, SIGCONT);
}

/* TERM is sent once: what a trap for it starts may finish. KILL is sent as
   often as something is found. A search that is blind cannot tell a dead group
   from one whose leader is a zombie, so it trusts in KILL. */
static void hfsbi_hunt_step(hfsb_proc *proc, long long now) {
    size_t left;
    bool   late = now >= proc->hunt_ends, gone;
    if (!hfsbi_hunting(proc) || now < proc->scan_at) return;
    left = hfsbi_tree_find(&proc->tree);
    gone = left == 0 || (proc->tree.blind && proc->hunt == HFSBI_HUNT_KILL);
    if (proc->exited && gone) {
        proc->hunt = HFSBI_HUNT_OVER;
        return;
    }
    if (late && proc->hunt == HFSBI_HUNT_KILL) {
        proc->hunt = HFSBI_HUNT_OVER;
        proc->result.incomplete = true;
        return;
    }
    proc->scan_wait = proc->scan_wait < 20 ? proc->scan_wait * 2 : 50;
    if (late) {
        proc->hunt = HFSBI_HUNT_KILL;
        proc->hunt_ends = now + HFSBI_PROC_GIVE_UP;
        proc->scan_wait = 5;
    }
    if (proc->hunt == HFSBI_HUNT_KILL) hfsbi_tree_signal(&proc->tree, SIGKILL);
    proc->scan_at = hfsbi_later(now, proc->scan_wait);
    if (proc->scan_at > proc->hunt_ends) proc->scan_at = proc->hunt_ends;
}

static void hfsbi_proc_end_input(hfsb_proc *proc) {
    hfsbi_close(&proc->input_fd);
    hfsb_buf_free(&proc->input);
    proc->input_at = 0;
}

/* Writes what the command takes. One that closed its input wants no more. */
static void hfsbi_proc_feed(hfsb_proc *proc) {
    hfsb_str           rest;
    hfsbi_signal_guard guard;
    ssize_t            n;
    int                reads = HFSBI_PROC_READS;
    if (proc->input_fd < 0) return;
    rest = hfsb_str_slice(hfsb_buf_str(&proc->input), proc->input_at,
                          proc->input.len);
    if (rest.len) {
        hfsbi_signal_guard_begin(&guard);
        do {
            size_t most = rest.len;
            if (most > HFSBI_PROC_BLOCK) most = HFSBI_PROC_BLOCK;
            n = hfsbi_write(proc->input_fd, rest.ptr, most);
            if (n > 0) rest = hfsb_str_slice(rest, (size_t)n, rest.len);
        } while (n > 0 && rest.len && --reads > 0);
        hfsbi_signal_guard_end(&guard);
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
            hfsbi_proc_end_input(proc);
            return;
        }
        proc->input_at = proc->input.len - rest.len;
    }
    if (rest.len) return;
    hfsb_buf_truncate(&proc->input, 0);
    proc->input_at = 0;
    if (proc->input_ends) hfsbi_proc_end_input(proc);
}

/* A bigger pipe makes a flood faster; few commands are one, and the kernel
   counts what a user's pipes take. */
static void hfsbi_proc_widen(int fd, unsigned long long before,
                             unsigned long long after) {
#if defined(HFSBI_LINUX) && defined(F_SETPIPE_SZ)
    if (before < HFSBI_PROC_PIPE && after >= HFSBI_PROC_PIPE)
        (void)fcntl(fd, F_SETPIPE_SZ, (int)HFSBI_PROC_PIPE);
#else
    (void)fd, (void)before, (void)after;
#endif
}

static void hfsbi_proc_take(hfsb_proc *proc, int stream) {
    unsigned long long *total =
        stream == 0 ? &proc->result.stdout_bytes : &proc->result.stderr_bytes;
    int i, *fd = &proc->output[stream];
    proc->drained[stream] = false;
    for (i = 0; *fd >= 0 && i < HFSBI_PROC_READS; i++) {
        ssize_t n = hfsbi_read(*fd, proc->block, sizeof proc->block);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            proc->drained[stream] = true;
            return;
        }
        if (n <= 0) {
            hfsbi_close(fd);
            proc->look_wait = 0; /* its exit is near */
            return;
        }
        *total += (unsigned long long)n;
        proc->after_end[stream] += (unsigned long long)n;
        proc->byte_at = hfsb_clock_ms();
        hfsbi_proc_widen(*fd, *total - (unsigned long long)n, *total);
        if (proc->on_output)
            proc->on_output(proc->user, (hfsb_proc_stream)stream,
                            hfsb_str_make(proc->block, (size_t)n));
    }
}

/* True when a pipe is open though none of the command's processes runs. Then
   it is most likely a child that another thread of the host is just starting,
   which holds copies of all pipes until its exec: worth some more patience. */
static bool hfsbi_proc_no_survivor(hfsb_proc *proc) {
    return hfsbi_tree_find(&proc->tree) == 0 && !proc->tree.blind;
}

/* What was in a pipe when the command ended is read whatever the time is: it
   fits into the pipe. What survivors write is waited for only so long. */
static bool hfsbi_proc_over(hfsb_proc *proc, long long now) {
    int i;
    if (hfsbi_hunting(proc)) return false;
    if (!proc->exited && proc->hunt != HFSBI_HUNT_OVER) return false;
    if (proc->ended_at < 0) {
        proc->ended_at = now;
        proc->after_end[0] = proc->after_end[1] = 0;
    }
    if (proc->output[0] < 0 && proc->output[1] < 0) return true;
    for (i = 0; i < 2; i++)
        if (proc->output[i] >= 0 && !proc->drained[i] &&
            proc->after_end[i] < HFSBI_PROC_PIPE)
            return false;
    if (now < hfsbi_quiet_at(proc)) return false;
    if (!proc->no_survivor) {
        proc->no_survivor = hfsbi_proc_no_survivor(proc);
        if (now < hfsbi_quiet_at(proc)) return false;
    }
    proc->result.incomplete = true;
    return true;
}

bool hfsb_proc_step(hfsb_proc *proc) {
    long long now = hfsb_clock_ms();
    if (proc->done) return true;
    hfsbi_proc_note_exit(proc, now);
    if (!proc->exited && proc->hunt == HFSBI_HUNT_NONE &&
        proc->timeout_at >= 0 && now >= proc->timeout_at) {
        proc->result.timed_out = true;
        hfsbi_hunt_begin(proc, now);
    }
    hfsbi_hunt_step(proc, now);
    hfsbi_proc_feed(proc);
    hfsbi_proc_take(proc, 0);
    hfsbi_proc_take(proc, 1);
    if (!hfsbi_proc_over(proc, now)) return false;
    proc->done = true;
    hfsbi_proc_end_input(proc);
    if (!proc->exited)
        proc->result.duration_ms = hfsb_clock_ms() - proc->started;
    return true;
}

hfsb_proc_result hfsb_proc_status(const hfsb_proc *proc) {
    hfsb_proc_result result = proc->result;
    if (!proc->exited && !proc->done)
        result.duration_ms = hfsb_clock_ms() - proc->started;
    return result;
}

void hfsb_proc_kill(hfsb_proc *proc) {
    if (proc->done) return;
    proc->result.killed = true;
    hfsbi_hunt_begin(proc, hfsb_clock_ms());
}

hfsb_status hfsb_proc_input(hfsb_proc *proc, hfsb_str bytes, bool end,
                            hfsb_err *err) {
    size_t waits = proc->input.len - proc->input_at;
    if (proc->input_fd < 0 || proc->input_ends)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "The command's standard input is closed: it was "
                          "ended, or the command reads no more.");
    if (waits > HFSBI_PROC_INPUT)
        return hfsbi_fail(err, HFSB_LIMIT, 0,
                          "The command has not read its input: %zu bytes "
                          "wait already. Give more when it has.",
                          waits);
    if (waits && proc->input_at) { /* what was written makes room */
        memmove(proc->input.ptr, proc->input.ptr + proc->input_at, waits);
        hfsb_buf_truncate(&proc->input, waits);
        proc->input_at = 0;
    }
    if (hfsb_buf_append(&proc->input, bytes) != HFSB_OK)
        return hfsbi_fail_status(err, HFSB_NOMEM, "Input of a command");
    proc->input_ends = end;
    hfsbi_proc_feed(proc);
    return hfsbi_ok(err);
}

HFSBI_FN hfsbi_span hfsbi_proc_span(hfsb_proc *proc) {
    return hfsbi_tree_span(&proc->tree);
}

HFSBI_FN size_t hfsbi_proc_signal(hfsb_proc *proc, int number) {
    size_t left = hfsbi_tree_find(&proc->tree);
    if (number) hfsbi_tree_signal(&proc->tree, number);
    return left;
}

/* ---- what outlives it ---- */

size_t hfsb_proc_survivors(const hfsb_proc *proc, hfsb_proc_entry *list,
                           size_t max) {
    hfsbi_tree tree = proc->tree; /* searched in, not added to */
    return hfsbi_tree_list(&tree, hfsb_clock_ms() - proc->started, list, max);
}

size_t hfsb_proc_take_pipes(hfsb_proc *proc, int fds[2]) {
    size_t n = 0;
    int    i;
    for (i = 0; proc->done && i < 2; i++)
        if (proc->output[i] >= 0) {
            fds[n++] = proc->output[i];
            proc->output[i] = -1;
        }
    return n;
}

/* ---- the end ---- */

/* KILL to all of it, until it is gone or a second has passed. */
static void hfsbi_proc_destroy(hfsb_proc *proc) {
    long long end = hfsb_clock_ms() + 1000;
    for (;;) {
        size_t left = hfsbi_tree_find(&proc->tree);
        hfsbi_proc_note_exit(proc, hfsb_clock_ms());
        if (proc->exited && left == 0) return;
        hfsbi_tree_signal(&proc->tree, SIGKILL);
        if (proc->exited && proc->tree.blind) return;
        if (hfsb_clock_ms() >= end) return;
        (void)poll(NULL, 0, 2);
    }
}

/* True when no process holds the other end. */
static bool hfsbi_pipe_ended(int fd) {
    struct pollfd ready;
    ready.fd = fd;
    ready.events = POLLIN;
    ready.revents = 0;
    return poll(&ready, 1, 0) == 1 && (ready.revents & POLLHUP) != 0;
}

void hfsb_proc_close(hfsb_proc *proc) {
    siginfo_t info;
    int       fds[2];
    size_t    n, i, held = 0;
    if (!proc) return;
    if (!proc->done) hfsbi_proc_destroy(proc);
    hfsbi_proc_end_input(proc);
    if (proc->tree.held) (void)hfsbi_tree_wait(&proc->tree, &info, 0);
    proc->done = true;
    n = hfsb_proc_take_pipes(proc, fds);
    for (i = 0; i < n; i++)
        if (proc->no_keeper || hfsbi_pipe_ended(fds[i])) hfsbi_close(&fds[i]);
        else fds[held++] = fds[i];
    if (held) hfsb_proc_keep_pipes(fds, held);
    hfsbi_proc_free(proc);
}

/* ==== proc run ==== */

/* a command in one call; readers for pipes that nobody reads any
   more. */

/* ---- the keeper ---- */

#define HFSBI_KEEPER_PIPES 64 /* of one keeper */

/* Reads n pipes, at 0 and up, to their ends. */
static void hfsbi_keeper_read(size_t n) {
    struct pollfd list[HFSBI_KEEPER_PIPES];
    char          block[16384];
    size_t        i, open = n;
    for (i = 0; i < n; i++) {
        list[i].fd = (int)i;
        list[i].events = POLLIN;
    }
    while (open > 0) {
        if (poll(list, (nfds_t)n, -1) < 0 && errno != EINTR) return;
        for (i = 0; i < n; i++) {
            ssize_t got;
            if (list[i].fd < 0 || list[i].revents == 0) continue;
            list[i].revents = 0;
            got = read(list[i].fd, block, sizeof block);
            if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
                continue;
            list[i].fd = -1; /* poll() passes over it */
            open--;
        }
    }
}

/* In the process that stays. No call here takes a lock. */
static void hfsbi_keeper_main(const int *fds, size_t n) {
    int    high[HFSBI_KEEPER_PIPES], rc;
    size_t i;
    (void)setsid();
    hfsbi_child_signals();
    for (i = 0; i < n; i++) high[i] = fcntl(fds[i], F_DUPFD, (int)n);
    for (i = 0; i < n; i++)
        if (dup2(high[i], (int)i) < 0) (void)close((int)i);
    hfsbi_child_close((int)n);
    hfsbi_child_unblock();
    rc = chdir("/"); /* or a file system would be in use */
    (void)rc;
    hfsbi_keeper_read(n);
    _exit(0);
}

/* Two forks, so that it is not a child of the host. */
static void hfsbi_keeper_start(const int *fds, size_t n) {
    hfsbi_fork_guard guard;
    pid_t            pid;
    hfsbi_fork_guard_begin(&guard);
    pid = fork();
    if (pid == 0) {
        pid = fork();
        if (pid == 0) hfsbi_keeper_main(fds, n);
        _exit(0);
    }
    hfsbi_fork_guard_end(&guard);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
}

void hfsb_proc_keep_pipes(const int *fds, size_t count) {
    size_t i, n;
    for (; count > 0; fds += n, count -= n) {
        n = count < HFSBI_KEEPER_PIPES ? count : HFSBI_KEEPER_PIPES;
        hfsbi_keeper_start(fds, n);
        for (i = 0; i < n; i++) {
            int fd = fds[i];
            hfsbi_close(&fd);
        }
    }
}

/* ---- a command in one call ---- */

typedef struct hfsbi_capture {
    const hfsb_proc_opts *opts;
    hfsb_buf             *to[2];
    bool                  full[2]; /* what is kept is the start, with no gap */
    bool                  no_memory;
} hfsbi_capture;

static void hfsbi_capture_output(void *user, hfsb_proc_stream stream,
                                 hfsb_str bytes) {
    hfsbi_capture *c = (hfsbi_capture *)user;
    hfsb_buf      *to = c->to[stream];
    if (to && !c->full[stream]) {
        hfsb_str part = bytes;
        size_t   room = to->max > to->len ? to->max - to->len : 0;
        if (to->max && part.len > room) {
            part.len = room;
            c->full[stream] = true;
        }
        if (hfsb_buf_append(to, part) != HFSB_OK)
            c->full[stream] = c->no_memory = true;
    }
    if (c->opts->on_output) c->opts->on_output(c->opts->user, stream, bytes);
}

#define HFSBI_RUN_ASKS_MS 50 /* whether it was cancelled */

/* Waits for what the command waits for, at most until its deadline. */
static void hfsbi_proc_wait(const hfsb_proc *proc, bool asks) {
    hfsb_watch    watch[HFSB_PROC_WATCHES];
    struct pollfd list[HFSB_PROC_WATCHES];
    size_t        n = hfsb_proc_watch(proc, watch);
    long long     left = hfsb_proc_deadline(proc);
    hfsbi_poll_fill(watch, n, list);
    if (left >= 0) {
        left -= hfsb_clock_ms();
        if (left < 0) left = 0;
        if (left > INT_MAX) left = INT_MAX;
    }
    if (asks && (left < 0 || left > HFSBI_RUN_ASKS_MS))
        left = HFSBI_RUN_ASKS_MS;
    (void)poll(list, (nfds_t)n, (int)left);
}

hfsb_status hfsb_proc_run(const hfsb_proc_opts *opts, hfsb_buf *out,
                          hfsb_buf *err_out, hfsb_proc_result *result,
                          hfsb_err *err) {
    hfsb_proc_opts inner = *opts;
    hfsbi_capture  capture = HFSB_INIT;
    hfsb_proc     *proc;
    bool           asks = opts->cancelled != NULL;
    hfsb_status    st;
    capture.opts = opts;
    capture.to[HFSB_PROC_STDOUT] = out;
    capture.to[HFSB_PROC_STDERR] = err_out;
    inner.on_output = hfsbi_capture_output;
    inner.user = &capture;
    inner.keep_input = false; /* nobody could write to it */
    st = hfsb_proc_open(&inner, &proc, err);
    if (st != HFSB_OK) return st;
    do {
        hfsbi_proc_wait(proc, asks);
        if (asks && opts->cancelled(opts->user)) {
            hfsb_proc_kill(proc);
            asks = false;
        }
    } while (!hfsb_proc_step(proc));
    if (result) {
        *result = hfsb_proc_status(proc);
        if (capture.no_memory) result->incomplete = true;
    }
    hfsb_proc_close(proc);
    return HFSB_OK;
}
