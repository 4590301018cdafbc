/* proc.c - a command from its start to its end.

   A command is a process that leads a session of its own, called the leader
   here, and all that it starts. Nothing here blocks: the host waits for the
   descriptors of hfsb_proc_watch() or until hfsb_proc_deadline(), then calls
   hfsb_proc_step(), which does what can be done and changes the state:

     RUNNING --- the leader exits --------------------------> DRAIN
        | timeout or kill
        v
     FIND        a snapshot shows which processes to signal
        |
        v
     TERM ------ the tree is gone --------------------------> DRAIN
        | the grace is over (at once when it is negative)
        v
     KILL ------ the tree is gone, or cannot be killed -----> DRAIN

     DRAIN ----- the pipes are closed, or quiet ------------> LIST
        | quiet, but a pipe is open though no process runs
        v
     LINGER ---- the pipes are closed, or quiet for longer -> LIST

     LIST        a snapshot shows the survivors ------------> DONE

     DRAIN, LINGER, LIST --- the first kill ----------------> FIND

   A search for processes needs a snapshot of /proc. Where a loop drives the
   command, a thread takes it, and the command stays in its state until then.

   While its output is held, a command stays in DRAIN: nobody may read what the
   pipes contain.

   The leader stays a zombie until close, so that its pid and the number of its
   session are not reused while they may be signalled. The leader's status is
   in result.end from its exit on, whatever the state is.

   Two things must always hold: no byte that was written before the exit is
   lost, and no process that keeps a pipe open delays the end for long. */
#include "proc_private.h"

#define HFSBI_PROC_BLOCK   65536u   /* bytes of one read */
#define HFSBI_PROC_READS   4        /* of each stream in one step */
#define HFSBI_PROC_PIPE    1048576u /* size that a busy pipe gets */
#define HFSBI_PROC_INPUT   1048576u /* bytes that may wait to be written */
#define HFSBI_PROC_GIVE_UP 5000     /* ms after which KILL failed: a slow disk
                                       delays it for some seconds */
#define HFSBI_PROC_LOOKS   20       /* and at least so many looks */
#define HFSBI_PROC_RETRY   20       /* ms; see hfsbi_proc_follow() */

typedef enum hfsbi_proc_state {
    HFSBI_PROC_RUNNING,
    HFSBI_PROC_FIND,   /* is to be killed once its tree is known */
    HFSBI_PROC_TERM,   /* TERM was sent to the tree */
    HFSBI_PROC_KILL,   /* KILL is sent until the tree is gone */
    HFSBI_PROC_DRAIN,  /* takes the rest of the output */
    HFSBI_PROC_LINGER, /* does so five times as long: see proc_drain() */
    HFSBI_PROC_LIST,   /* has ended, except for the list of survivors */
    HFSBI_PROC_DONE
} hfsbi_proc_state;

/* The descriptors of a command, by their use. The first two are as in
   hfsb_proc_stream. */
enum {
    HFSBI_SLOT_OUT,
    HFSBI_SLOT_ERR,
    HFSBI_SLOT_IN,
    HFSBI_SLOT_EXIT, /* pidfd of the leader; the tree closes it */
    HFSBI_SLOTS
};

typedef struct hfsbi_proc_io {
    hfsbi_io   io; /* first; its fd is -1 once closed */
    hfsb_proc *proc;
} hfsbi_proc_io;

typedef struct hfsbi_proc_input {
    hfsb_buf bytes; /* those from `at` on are still to be written */
    size_t   at;
    bool     ends; /* then standard input is closed */
    char     last; /* last byte written; initially as after a line */
    char     eofs; /* characters written that end the input of a terminal */
} hfsbi_proc_input;

/* Signals that wait for a snapshot: bit n is signal n + 1. */
typedef struct hfsbi_proc_signals {
    unsigned long long tree, group;
    long long          need; /* the snapshot must not be older */
} hfsbi_proc_signals;

/* Progress of reading the output left at the end of the command. */
typedef struct hfsbi_proc_rest {
    bool               empty; /* the last read found nothing */
    unsigned long long bytes; /* since DRAIN began */
} hfsbi_proc_rest;

/* Points in time are on hfsb_clock_ms(); -1: never. */
typedef struct hfsbi_proc_times {
    long long grace_ms, quiet_ms, quiet_max_ms; /* the options, resolved */
    long long started;
    long long timeout_at;
    long long hunt_ends;  /* of TERM: KILL follows; of KILL: gives up */
    long long check_at;   /* next check of the leader or the tree */
    long long check_wait; /* ms between these, increasing */
    long long drain_at;   /* DRAIN began */
    long long byte_at;    /* the last output was read */
    long long held_at;    /* output is not read since then */
} hfsbi_proc_times;

/* The loop that drives the command, see hfsbi_proc_attach(). */
typedef struct hfsbi_proc_driver {
    hfsbi_timer    timer; /* first */
    hfsb_proc     *proc;
    hfsbi_loop    *loop;    /* NULL: the host drives it */
    hfsbi_scanner *scanner; /* of the loop; NULL when out of memory: the
                               command takes its own snapshots */
    void (*on_change)(void *user, hfsb_proc *proc, bool done);
    void *user;
} hfsbi_proc_driver;

struct hfsb_proc {
    hfsb_alloc          alloc;
    hfsb_proc_output_fn on_output;
    void               *user;
    bool                no_keeper;
    bool                held;     /* output is not read */
    bool                terminal; /* it has one */
    int                 slave;    /* of it, until the exit; -1: none */
    hfsbi_proc_state    state;
    hfsb_proc_result    result;
    unsigned long long  changes; /* counts everything that on_change reports */
    hfsbi_proc_times    times;
    hfsbi_proc_io       io[HFSBI_SLOTS];
    hfsbi_proc_input    input;
    hfsbi_proc_rest     rest[2];
    hfsbi_proc_signals  signals;
    hfsbi_tree          tree;
    bool                listed; /* in LIST the tree has found the survivors */
    hfsbi_look          look;   /* waits for a snapshot of the loop */
    hfsbi_proc_driver   driver;
    char                block[HFSBI_PROC_BLOCK]; /* last: not cleared */
};

/* a + b, for times not below 0, saturated. */
static long long hfsbi_later(long long a, long long b) {
    return a > LLONG_MAX - b ? LLONG_MAX : a + b;
}

static bool hfsbi_proc_exited(const hfsb_proc *proc) {
    return proc->result.end != HFSB_PROC_RUNNING;
}

static bool hfsbi_proc_is_hunted(const hfsb_proc *proc) {
    return proc->state == HFSBI_PROC_FIND || proc->state == HFSBI_PROC_TERM ||
           proc->state == HFSBI_PROC_KILL;
}

static void hfsbi_proc_enter(hfsb_proc *proc, hfsbi_proc_state state) {
    proc->state = state;
    proc->changes++;
}

static void hfsbi_proc_begin_drain(hfsb_proc *proc, long long now) {
    hfsbi_proc_enter(proc, HFSBI_PROC_DRAIN);
    proc->times.drain_at = now;
    proc->rest[0].bytes = proc->rest[1].bytes = 0;
}

/* ---- what it waits for ---- */

/* The events that the command waits for on a descriptor. */
static unsigned hfsbi_proc_wants(const hfsb_proc *proc, int slot) {
    if (proc->state == HFSBI_PROC_DONE || proc->io[slot].io.fd < 0) return 0;
    if (slot == HFSBI_SLOT_EXIT)
        return hfsbi_proc_exited(proc) ? 0 : (unsigned)HFSBI_IO_READ;
    if (slot == HFSBI_SLOT_IN)
        return proc->input.at < proc->input.bytes.len || proc->input.ends
                   ? (unsigned)HFSBI_IO_WRITE
                   : 0;
    return proc->held ? 0 : (unsigned)HFSBI_IO_READ;
}

static bool hfsbi_proc_has_output(const hfsb_proc *proc) {
    return proc->io[HFSBI_SLOT_OUT].io.fd >= 0 ||
           proc->io[HFSBI_SLOT_ERR].io.fd >= 0;
}

/* When the pipes count as quiet. */
static long long hfsbi_quiet_at(const hfsb_proc *proc) {
    const hfsbi_proc_times *t = &proc->times;
    long long               from = t->drain_at, most, quiet = t->quiet_ms;
    most = hfsbi_later(from, t->quiet_max_ms);
    if (t->byte_at > from) from = t->byte_at;
    if (proc->state == HFSBI_PROC_LINGER && quiet < LLONG_MAX / 5) quiet *= 5;
    from = hfsbi_later(from, quiet);
    return from < most ? from : most;
}

size_t hfsb_proc_watch(const hfsb_proc *proc,
                       hfsb_watch       list[HFSB_PROC_WATCHES]) {
    size_t n = 0;
    int    slot;
    for (slot = 0; slot < HFSBI_SLOTS; slot++) {
        unsigned want = hfsbi_proc_wants(proc, slot);
        if (!want) continue;
        list[n].fd = proc->io[slot].io.fd;
        list[n].readable = want == HFSBI_IO_READ;
        list[n++].writable = want == HFSBI_IO_WRITE;
    }
    return n;
}

long long hfsb_proc_deadline(const hfsb_proc *proc) {
    if (proc->look.waits) return -1; /* its timer is due with the snapshot */
    if (proc->state != HFSBI_PROC_DONE &&
        (proc->signals.tree || proc->signals.group))
        return proc->signals.need;
    switch (proc->state) {
    case HFSBI_PROC_RUNNING:
        if (proc->tree.pidfd >= 0) return proc->times.timeout_at;
        return hfsbi_earlier(proc->times.timeout_at, proc->times.check_at);
    case HFSBI_PROC_FIND:
    case HFSBI_PROC_TERM:
    case HFSBI_PROC_KILL: return proc->times.check_at;
    case HFSBI_PROC_DRAIN:
    case HFSBI_PROC_LINGER:
        if (proc->held && hfsbi_proc_has_output(proc)) return -1;
        return hfsbi_quiet_at(proc);
    case HFSBI_PROC_LIST: return proc->times.drain_at;
    case HFSBI_PROC_DONE: break;
    }
    return -1;
}

/* ---- driven by a loop ---- */

/* Registers what the command waits for now. A descriptor that the loop cannot
   take is polled from time to time. */
static void hfsbi_proc_follow(hfsb_proc *proc) {
    hfsbi_loop *loop = proc->driver.loop;
    long long   at;
    bool        all = true;
    int         slot;
    if (!loop) return;
    for (slot = 0; slot < HFSBI_SLOTS; slot++) {
        hfsbi_io *io = &proc->io[slot].io;
        unsigned  want = hfsbi_proc_wants(proc, slot);
        if (!want) hfsbi_loop_io_forget(loop, io);
        else if (!hfsbi_loop_io(loop, io, want)) all = false;
    }
    at = hfsb_proc_deadline(proc);
    if (!all) at = hfsbi_earlier(at, hfsb_clock_ms() + HFSBI_PROC_RETRY);
    if (at >= 0) hfsbi_loop_timer(loop, &proc->driver.timer, at);
    else hfsbi_loop_timer_clear(loop, &proc->driver.timer);
}

/* on_change comes last: it may close the command. */
HFSBI_FN void hfsbi_proc_drive(hfsb_proc *proc) {
    hfsbi_proc_driver *d = &proc->driver;
    unsigned long long before = proc->changes;
    bool               done = hfsb_proc_step(proc);
    void (*on_change)(void *user, hfsb_proc *proc, bool done) = d->on_change;
    if (done) hfsbi_proc_detach(proc);
    else hfsbi_proc_follow(proc);
    if (done || proc->changes != before) on_change(d->user, proc, done);
}

static void hfsbi_proc_io_ready(hfsbi_io *io, unsigned events) {
    (void)events;
    hfsbi_proc_drive(((hfsbi_proc_io *)(void *)io)->proc);
}

static void hfsbi_proc_timer_due(hfsbi_timer *timer) {
    hfsbi_proc_drive(((hfsbi_proc_driver *)(void *)timer)->proc);
}

HFSBI_FN void hfsbi_proc_attach(hfsb_proc *proc, hfsbi_loop *loop,
                                void (*on_change)(void *user, hfsb_proc *proc,
                                                  bool done),
                                void *user) {
    hfsbi_proc_detach(proc);
    proc->driver.loop = loop;
    proc->driver.on_change = on_change;
    proc->driver.user = user;
    proc->driver.scanner = hfsbi_scanner_of(loop);
    if (proc->driver.scanner)
        hfsbi_scanner_cover(proc->driver.scanner, proc->tree.span.since);
    hfsbi_proc_follow(proc);
    if (proc->state == HFSBI_PROC_DONE) /* is reported in the next turn */
        hfsbi_loop_timer(loop, &proc->driver.timer, 0);
}

HFSBI_FN void hfsbi_proc_detach(hfsb_proc *proc) {
    hfsbi_loop *loop = proc->driver.loop;
    int         slot;
    if (!loop) return;
    for (slot = 0; slot < HFSBI_SLOTS; slot++)
        hfsbi_loop_io_forget(loop, &proc->io[slot].io);
    if (proc->driver.scanner)
        hfsbi_scanner_leave(proc->driver.scanner, &proc->look);
    hfsbi_loop_timer_clear(loop, &proc->driver.timer);
    proc->driver.loop = NULL;
    proc->driver.scanner = NULL;
}

/* A loop must forget a descriptor before it is closed. */
static void hfsbi_proc_close_io(hfsb_proc *proc, int slot) {
    hfsbi_io *io = &proc->io[slot].io;
    if (proc->driver.loop) hfsbi_loop_io_forget(proc->driver.loop, io);
    hfsbi_close(&io->fd);
}

/* ---- start ---- */

static void hfsbi_proc_init(hfsb_proc *proc, const hfsb_proc_opts *o) {
    hfsbi_proc_times *t = &proc->times;
    int               slot;
    memset(proc, 0, offsetof(struct hfsb_proc, block));
    proc->alloc = proc->input.bytes.alloc = o->alloc;
    proc->on_output = o->on_output;
    proc->user = o->user;
    proc->no_keeper = o->no_keeper;
    proc->input.ends = !o->keep_input;
    proc->input.last = '\n';
    proc->terminal = o->cols > 0;
    proc->slave = -1;
    for (slot = 0; slot < HFSBI_SLOTS; slot++) {
        proc->io[slot].io.fd = -1;
        proc->io[slot].io.fn = hfsbi_proc_io_ready;
        proc->io[slot].proc = proc;
    }
    proc->driver.timer.fn = hfsbi_proc_timer_due;
    proc->driver.proc = proc;
    proc->look.timer = &proc->driver.timer;
    t->started = hfsb_clock_ms();
    t->timeout_at =
        o->timeout_ms > 0 ? hfsbi_later(t->started, o->timeout_ms) : -1;
    t->check_at = t->started + 1;
    t->grace_ms = o->grace_ms == 0 ? 2000 : o->grace_ms;
    t->quiet_ms = o->quiet_ms == 0 ? 100 : o->quiet_ms;
    if (t->quiet_ms < 0) t->quiet_ms = 0;
    t->quiet_max_ms = o->quiet_max_ms > 0 ? o->quiet_max_ms : 2000;
    if (o->quiet_max_ms <= 0 && t->quiet_max_ms < t->quiet_ms)
        t->quiet_max_ms = t->quiet_ms;
    hfsbi_tree_init(&proc->tree, &o->alloc, o->job, o->confine);
}

static void hfsbi_proc_free(hfsb_proc *proc) {
    hfsb_alloc alloc = proc->alloc;
    hfsb_buf_free(&proc->input.bytes);
    hfsbi_tree_free(&proc->tree);
    hfsbi_array_free(&alloc, proc, 1, sizeof *proc);
}

/* Everything is allocated before the command exists: a failure after that
   would be too late. */
HFSBI_FN hfsb_status hfsbi_proc_open(const hfsb_proc_opts *opts,
                                     hfsb_buf *input, hfsb_proc **out,
                                     hfsb_err *err) {
    hfsb_proc  *proc;
    hfsbi_ends  ends = HFSB_INIT;
    pid_t       pid = -1;
    hfsb_status st;
    *out = NULL;
    proc = (hfsb_proc *)hfsbi_array(&opts->alloc, 1, sizeof *proc);
    if (!proc)
        return hfsbi_fail_status(err, HFSB_NOMEM, "Starting the command");
    hfsbi_proc_init(proc, opts);
    if (!input && hfsb_buf_append(&proc->input.bytes, opts->input) != HFSB_OK)
        st = hfsbi_fail_status(err, HFSB_NOMEM, "Starting the command");
    else st = hfsbi_spawn(opts, proc->tree.leaf.dir, &pid, &ends, err);
    if (st != HFSB_OK) {
        hfsbi_proc_free(proc);
        return st;
    }
    proc->result.pid = (long)pid;
    hfsbi_tree_start(&proc->tree, pid);
    proc->io[HFSBI_SLOT_OUT].io.fd = ends.output[0];
    proc->io[HFSBI_SLOT_ERR].io.fd = ends.output[1];
    proc->io[HFSBI_SLOT_IN].io.fd = ends.input;
    proc->io[HFSBI_SLOT_EXIT].io.fd = proc->tree.pidfd;
    proc->slave = ends.slave;
    if (input) {
        hfsb_alloc alloc = input->alloc;
        proc->input.bytes = *input;
        memset(input, 0, sizeof *input);
        input->alloc = alloc;
    }
    *out = proc;
    return HFSB_OK;
}

hfsb_status hfsb_proc_open(const hfsb_proc_opts *opts, hfsb_proc **out,
                           hfsb_err *err) {
    return hfsbi_proc_open(opts, NULL, out, err);
}

/* ---- the exit of the leader ---- */

/* How long the last snapshot of the loop took. */
static long long hfsbi_hunt_cost(const hfsb_proc *proc) {
    const hfsbi_scanner *scanner = proc->driver.scanner;
    return scanner ? hfsbi_scanner_cost(scanner) : 0;
}

/* Schedules the next check of the tree, in at most `wait` ms. The times are
   multiples of `wait`, so that commands killed at about the same time use the
   same snapshot. Snapshots that take long become rare. While the leader lives
   the tree is not gone, and its exit is an event. */
static void hfsbi_hunt_check_in(hfsb_proc *proc, long long wait) {
    hfsbi_proc_times *t = &proc->times;
    long long         cost = hfsbi_hunt_cost(proc), at;
    if (wait < 4 * cost) wait = 4 * cost;
    if (wait > 200) wait = 200;
    at = (hfsb_clock_ms() / wait + 1) * wait;
    if (proc->state == HFSBI_PROC_TERM && proc->tree.pidfd >= 0 &&
        !hfsbi_proc_exited(proc))
        at = t->hunt_ends;
    t->check_at = at < t->hunt_ends ? at : t->hunt_ends;
}

/* Checks for the exit without reaping: the leader stays a zombie. */
static void hfsbi_proc_note_exit(hfsb_proc *proc, long long now) {
    hfsbi_proc_times *t = &proc->times;
    hfsb_proc_result *r = &proc->result;
    siginfo_t         info;
    int               rc;
    if (hfsbi_proc_exited(proc)) return;
    rc = hfsbi_tree_wait(&proc->tree, &info, WNOWAIT);
    if (rc == 0 && info.si_pid == 0) {
        if (proc->state != HFSBI_PROC_RUNNING || now < t->check_at) return;
        t->check_wait = t->check_wait ? t->check_wait * 2 : 1;
        if (t->check_wait > 50) t->check_wait = 50;
        t->check_at = now + t->check_wait;
        return;
    }
    r->duration_ms = now - t->started;
    hfsbi_close(&proc->slave); /* so that the output of a terminal ends */
    if (rc != 0) {
        proc->tree.span.running = false;
        r->end = HFSB_PROC_UNKNOWN;
    } else if (info.si_code == CLD_EXITED) {
        r->end = HFSB_PROC_EXITED;
        r->exit_code = info.si_status;
    } else {
        r->end = HFSB_PROC_SIGNALED;
        r->signal = info.si_status;
    }
    if (rc == 0)
        (void)hfsbi_tree_usage(&proc->tree, &r->cpu_ms, &r->peak_bytes);
    proc->changes++;
    if (proc->state == HFSBI_PROC_RUNNING) hfsbi_proc_begin_drain(proc, now);
    else if (hfsbi_proc_is_hunted(proc) && proc->state != HFSBI_PROC_FIND)
        hfsbi_hunt_check_in(proc, 5);
}

/* ---- the end of the tree ---- */

/* The result of a search: how many processes of the tree run; blind: the
   snapshot may lack some. */
typedef struct hfsbi_sighting {
    size_t left;
    bool   blind;
} hfsbi_sighting;

/* Searches the tree now, which takes as long as a pass over /proc. */
static hfsbi_sighting hfsbi_proc_search_now(hfsb_proc *proc) {
    hfsbi_sighting found;
    hfsbi_snapshot snap;
    hfsbi_snapshot_init(&snap, &proc->alloc);
    snap.since = proc->tree.span.since;
    hfsbi_snapshot_take(&snap);
    found.left = hfsbi_tree_find(&proc->tree, &snap);
    found.blind = snap.blind;
    hfsbi_snapshot_free(&snap);
    return found;
}

/* Searches the tree in a snapshot that began at `need` or later. False: the
   loop has none yet, and drives the command again when there is one. */
static bool hfsbi_proc_search(hfsb_proc *proc, long long need,
                              hfsbi_sighting *found) {
    hfsbi_scanner  *scanner = proc->driver.scanner;
    hfsbi_snapshot *snap;
    if (!scanner) {
        *found = hfsbi_proc_search_now(proc);
        return true;
    }
    snap = hfsbi_scanner_get(scanner, &proc->look, need);
    if (!snap) return false;
    hfsbi_scanner_leave(scanner, &proc->look);
    found->left = hfsbi_tree_find(&proc->tree, snap);
    found->blind = snap->blind;
    return true;
}

/* Scans before signalling: once a parent dies its children are reparented and
   can no longer be found by ancestry. */
static void hfsbi_hunt_begin(hfsb_proc *proc, long long now) {
    hfsbi_proc_enter(proc, HFSBI_PROC_FIND);
    proc->times.check_at = now;
}

/* The tree is known: sends the first signal. Interactive shells ignore TERM,
   but end when their terminal is closed. */
static void hfsbi_hunt_start(hfsb_proc *proc, long long now) {
    bool gently = proc->times.grace_ms >= 0;
    hfsbi_proc_enter(proc, gently ? HFSBI_PROC_TERM : HFSBI_PROC_KILL);
    hfsbi_tree_signal(&proc->tree, gently ? SIGTERM : SIGKILL);
    if (gently && proc->terminal) hfsbi_tree_signal(&proc->tree, SIGHUP);
    if (gently) hfsbi_tree_signal(&proc->tree, SIGCONT); /* the stopped */
    proc->times.hunt_ends =
        hfsbi_later(now, gently ? proc->times.grace_ms : HFSBI_PROC_GIVE_UP);
    proc->times.check_wait = 5;
    hfsbi_hunt_check_in(proc, 5);
}

/* Checks the tree and sends the next signal. TERM is sent once, so that a trap
   can finish its work. KILL is sent whenever a snapshot shows a process. A
   blind one cannot tell a dead group from one whose leader is a zombie, so it
   relies on KILL. */
static void hfsbi_hunt_check(hfsb_proc *proc, long long now,
                             hfsbi_sighting found) {
    hfsbi_proc_times *t = &proc->times;
    long long         wait = t->check_wait < 20 ? t->check_wait * 2 : 50;
    bool              late = now >= t->hunt_ends, gone = found.left == 0;
    if (found.blind && proc->state == HFSBI_PROC_KILL) gone = true;
    if (hfsbi_proc_exited(proc) && gone) {
        (void)hfsbi_leaf_kill(&proc->tree.leaf); /* what no search found */
        hfsbi_proc_begin_drain(proc, now);
        return;
    }
    if (late && proc->state == HFSBI_PROC_KILL) {
        proc->result.incomplete = true;
        hfsbi_proc_begin_drain(proc, now);
        return;
    }
    if (late) {
        hfsbi_proc_enter(proc, HFSBI_PROC_KILL);
        t->hunt_ends = now + HFSBI_PROC_GIVE_UP;
        wait = 5;
    }
    if (proc->state == HFSBI_PROC_KILL)
        hfsbi_tree_signal(&proc->tree, SIGKILL);
    t->check_wait = wait;
    hfsbi_hunt_check_in(proc, wait);
}

/* For the first signal a recent snapshot will do: the group, which has nearly
   all processes, is signalled in any case. */
static void hfsbi_hunt_step(hfsb_proc *proc, long long now) {
    bool           first = proc->state == HFSBI_PROC_FIND;
    long long      need = proc->times.check_at;
    hfsbi_sighting found;
    if (!hfsbi_proc_is_hunted(proc) || now < proc->times.check_at) return;
    if (first) need -= 20 + hfsbi_hunt_cost(proc);
    if (!hfsbi_proc_search(proc, need, &found)) return;
    if (first) hfsbi_hunt_start(proc, now);
    else hfsbi_hunt_check(proc, now, found);
}

/* ---- signals ---- */

/* The command's own group: that of a leader which is still held. */
static void hfsbi_proc_signal_own(hfsb_proc *proc, int number) {
    hfsbi_tree own = proc->tree;
    own.known_count = 0;
    own.leaf.dir = -1; /* has processes of other groups, too */
    hfsbi_tree_signal(&own, number);
}

/* Signals the foreground group of the terminal. False: that takes a snapshot,
   because only its members show that the number is still its own. If none is
   found, as without /proc, its leader may show it: the number of the session
   is held. */
static bool hfsbi_proc_signal_group(hfsb_proc *proc, int number,
                                    bool searched) {
    int  master = proc->io[HFSBI_SLOT_OUT].io.fd;
    long own = proc->tree.span.session;
    long group =
        master < 0 || !proc->terminal ? own : hfsbi_terminal_group(master);
    hfsbi_tree one = proc->tree;
    size_t     i, sent = 0;
    if (group <= 1 || group == own) {
        hfsbi_proc_signal_own(proc, number);
        return true;
    }
    if (hfsbi_terminal_signal(master, number)) return true;
    if (!searched) return false;
    one.span.running = false; /* signals only what it knows */
    one.known_count = 1;
    one.leaf.dir = -1;
    for (i = 0; i < proc->tree.known_count; i++) {
        one.known = &proc->tree.known[i];
        if (one.known->group != group || one.known->session != own) continue;
        hfsbi_tree_signal(&one, number);
        sent++;
    }
    if (!sent && hfsbi_tree_span(&proc->tree).session == own &&
        getsid((pid_t)group) == (pid_t)own)
        (void)kill((pid_t)-group, number);
    return true;
}

/* Sends the waiting signals, once there is a snapshot. */
static void hfsbi_proc_send_signals(hfsb_proc *proc) {
    hfsbi_proc_signals *s = &proc->signals;
    hfsbi_sighting      found;
    int                 i;
    if (!s->tree && !s->group) return;
    if (!hfsbi_proc_search(proc, s->need, &found)) return;
    for (i = 0; i < 64; i++) {
        if (s->tree >> i & 1) hfsbi_tree_signal(&proc->tree, i + 1);
        if (s->group >> i & 1)
            (void)hfsbi_proc_signal_group(proc, i + 1, true);
    }
    s->tree = s->group = 0;
}

/* ---- input and output ---- */

static void hfsbi_proc_end_input(hfsb_proc *proc) {
    if (proc->io[HFSBI_SLOT_IN].io.fd >= 0) proc->changes++;
    hfsbi_proc_close_io(proc, HFSBI_SLOT_IN);
    hfsb_buf_free(&proc->input.bytes);
    proc->input.at = 0;
}

/* Ends the input of a terminal with its end-of-file character, if a program
   reads lines there. After a part of a line it takes two: the first one passes
   that part to the program, the second one is the end. True once they were
   written, or cannot be. */
static bool hfsbi_proc_put_eof(hfsb_proc *proc) {
    hfsbi_proc_input *in = &proc->input;
    int               fd = proc->io[HFSBI_SLOT_IN].io.fd;
    char              eof = hfsbi_terminal_eof(fd), last = in->last;
    int count = last == '\n' || last == '\r' || last == eof ? 1 : 2;
    for (; in->eofs < count; in->eofs++) {
        ssize_t n = hfsbi_write(fd, &eof, 1);
        if (n < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
        if (n == 0) return false;
        proc->changes++;
    }
    return true;
}

/* Writes as much input as the pipe takes, a bounded amount per step. When the
   command has closed its end, the rest is dropped. */
static void hfsbi_proc_put_input(hfsb_proc *proc) {
    hfsbi_proc_input  *in = &proc->input;
    int                fd = proc->io[HFSBI_SLOT_IN].io.fd;
    hfsbi_signal_guard guard;
    ssize_t            n = 1;
    int                writes;
    if (fd < 0) return;
    hfsbi_signal_guard_begin(&guard);
    for (writes = 0; writes < HFSBI_PROC_READS && n > 0; writes++) {
        size_t most = in->bytes.len - in->at;
        if (most == 0) break;
        if (most > HFSBI_PROC_BLOCK) most = HFSBI_PROC_BLOCK;
        n = hfsbi_write(fd, in->bytes.ptr + in->at, most);
        if (n <= 0) break;
        in->at += (size_t)n;
        in->last = in->bytes.ptr[in->at - 1];
        proc->changes++;
    }
    hfsbi_signal_guard_end(&guard);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        hfsbi_proc_end_input(proc);
    } else if (in->at == in->bytes.len) {
        hfsb_buf_truncate(&in->bytes, 0);
        in->at = 0;
        if (in->ends && (!proc->terminal || hfsbi_proc_put_eof(proc)))
            hfsbi_proc_end_input(proc);
    }
}

/* Enlarges the pipe of a command that prints a lot, which is faster. Not for
   all commands: the kernel limits the memory of a user's pipes. */
static void hfsbi_proc_widen(int fd, unsigned long long before,
                             unsigned long long after) {
#if defined(HFSBI_LINUX) && defined(F_SETPIPE_SZ)
    if (before < HFSBI_PROC_PIPE && after >= HFSBI_PROC_PIPE)
        (void)fcntl(fd, F_SETPIPE_SZ, (int)HFSBI_PROC_PIPE);
#else
    (void)fd, (void)before, (void)after;
#endif
}

/* Reads a bounded amount of one stream. A terminal ends with EIO. */
static void hfsbi_proc_take(hfsb_proc *proc, int stream) {
    unsigned long long *total =
        stream == 0 ? &proc->result.stdout_bytes : &proc->result.stderr_bytes;
    const int *fd = &proc->io[stream].io.fd;
    int        i;
    proc->rest[stream].empty = false;
    for (i = 0; *fd >= 0 && !proc->held && i < HFSBI_PROC_READS; i++) {
        ssize_t n = hfsbi_read(*fd, proc->block, sizeof proc->block);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            proc->rest[stream].empty = true;
            return;
        }
        proc->changes++;
        if (n <= 0) {
            hfsbi_proc_close_io(proc, stream);
            if (proc->state == HFSBI_PROC_RUNNING) { /* its exit is near */
                proc->times.check_wait = 0;
                proc->times.check_at = hfsb_clock_ms() + 1;
            }
            return;
        }
        *total += (unsigned long long)n;
        proc->rest[stream].bytes += (unsigned long long)n;
        proc->times.byte_at = hfsb_clock_ms();
        hfsbi_proc_widen(*fd, *total - (unsigned long long)n, *total);
        if (proc->on_output)
            proc->on_output(proc->user, (hfsb_proc_stream)stream,
                            hfsb_str_make(proc->block, (size_t)n));
    }
}

static void hfsbi_proc_finish(hfsb_proc *proc) {
    hfsbi_proc_enter(proc, HFSBI_PROC_DONE);
    hfsbi_proc_end_input(proc);
    hfsbi_close(&proc->slave);
    if (!hfsbi_proc_exited(proc))
        proc->result.duration_ms = hfsb_clock_ms() - proc->times.started;
}

/* Decides whether the output is complete. What was in a pipe when the command
   ended is read no matter how late it is: it is at most the size of the pipe.
   What survivors write after that is waited for until they are quiet.

   When a pipe is open though none of the command's processes runs, its holder
   is most likely a child that another thread of the host is just starting: it
   has copies of all pipes until its exec. Then the wait is longer. */
static void hfsbi_proc_drain(hfsb_proc *proc, long long now) {
    hfsbi_sighting found;
    bool           open = false;
    int            i;
    if (proc->state != HFSBI_PROC_DRAIN && proc->state != HFSBI_PROC_LINGER)
        return;
    for (i = 0; i < 2; i++) {
        if (proc->io[i].io.fd < 0) continue;
        open = true;
        if (proc->held) return;
        if (!proc->rest[i].empty && proc->rest[i].bytes < HFSBI_PROC_PIPE)
            return;
    }
    if (open && now < hfsbi_quiet_at(proc)) return;
    if (open && proc->state == HFSBI_PROC_DRAIN) {
        if (!hfsbi_proc_search(proc, proc->times.drain_at + 1, &found)) return;
        if (found.left == 0 && !found.blind) {
            hfsbi_proc_enter(proc, HFSBI_PROC_LINGER);
            if (now < hfsbi_quiet_at(proc)) return;
        }
    }
    if (open) proc->result.incomplete = true;
    hfsbi_proc_enter(proc, HFSBI_PROC_LIST);
}

/* Lists the survivors here if hfsb_proc_survivors() would block the loop. */
static void hfsbi_proc_list(hfsb_proc *proc, long long now) {
    hfsbi_sighting found;
    if (proc->state != HFSBI_PROC_LIST) return;
    if (proc->driver.loop &&
        hfsbi_tree_list_takes_long(&proc->tree, now - proc->times.started)) {
        if (!hfsbi_proc_search(proc, proc->times.drain_at + 1, &found)) return;
        proc->listed = true;
    }
    hfsbi_proc_finish(proc);
}

bool hfsb_proc_step(hfsb_proc *proc) {
    long long now = hfsb_clock_ms();
    if (proc->state == HFSBI_PROC_DONE) return true;
    hfsbi_proc_note_exit(proc, now);
    if (proc->state == HFSBI_PROC_RUNNING && proc->times.timeout_at >= 0 &&
        now >= proc->times.timeout_at) {
        proc->result.timed_out = true;
        hfsbi_hunt_begin(proc, now);
    }
    hfsbi_hunt_step(proc, now);
    hfsbi_proc_send_signals(proc);
    hfsbi_proc_put_input(proc);
    hfsbi_proc_take(proc, HFSB_PROC_STDOUT);
    hfsbi_proc_take(proc, HFSB_PROC_STDERR);
    hfsbi_proc_drain(proc, now);
    hfsbi_proc_list(proc, now);
    return proc->state == HFSBI_PROC_DONE;
}

hfsb_proc_result hfsb_proc_status(const hfsb_proc *proc) {
    hfsb_proc_result result = proc->result;
    if (!hfsbi_proc_exited(proc) && proc->state != HFSBI_PROC_DONE)
        result.duration_ms = hfsb_clock_ms() - proc->times.started;
    return result;
}

void hfsb_proc_kill(hfsb_proc *proc) {
    bool      before = proc->result.killed || proc->result.timed_out;
    long long now;
    if (proc->state == HFSBI_PROC_DONE) return;
    proc->result.killed = true;
    if (before) return;
    now = hfsb_clock_ms();
    hfsbi_hunt_begin(proc, now);
    hfsbi_hunt_step(proc, now);
    hfsbi_proc_follow(proc);
}

static hfsb_status hfsbi_proc_refuse(hfsb_err *err) {
    return hfsbi_fail(err, HFSB_REFUSED, 0, "The command has ended.");
}

/* True when no process of the command can still run. */
static bool hfsbi_proc_is_gone(const hfsb_proc *proc) {
    return proc->state == HFSBI_PROC_DONE ||
           (hfsbi_proc_exited(proc) && proc->tree.empty);
}

/* As for a kill, a recent snapshot will do to find the tree; but the
   foreground group changes with every command that a shell runs. */
hfsb_status hfsb_proc_signal(hfsb_proc *proc, int number,
                             hfsb_proc_target target, hfsb_err *err) {
    hfsbi_proc_signals *s = &proc->signals;
    unsigned long long  bit;
    long long           need = hfsb_clock_ms();
    if (number < 1 || number > 64)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "%d is not the number of a signal.", number);
    if (hfsbi_proc_is_gone(proc)) return hfsbi_proc_refuse(err);
    if (target == HFSB_PROC_GROUP && !hfsbi_proc_exited(proc) &&
        hfsbi_proc_signal_group(proc, number, false))
        return hfsbi_ok(err);
    bit = 1ull << (number - 1);
    if (target == HFSB_PROC_GROUP) s->group |= bit;
    else s->tree |= bit;
    if (target == HFSB_PROC_TREE) need -= 20 + hfsbi_hunt_cost(proc);
    if (s->need < need) s->need = need;
    hfsbi_proc_send_signals(proc);
    if (hfsbi_proc_is_gone(proc)) return hfsbi_proc_refuse(err);
    hfsbi_proc_follow(proc);
    return hfsbi_ok(err);
}

hfsb_status hfsb_proc_resize(hfsb_proc *proc, unsigned cols, unsigned rows,
                             hfsb_err *err) {
    int master = proc->io[HFSBI_SLOT_OUT].io.fd;
    if (!proc->terminal)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "The command has no terminal: it was started "
                          "without cols and rows.");
    if (!cols || !rows || cols > HFSBI_TERMINAL_MAX ||
        rows > HFSBI_TERMINAL_MAX)
        return hfsbi_fail_size(err, cols, rows);
    if (proc->state == HFSBI_PROC_DONE || master < 0)
        return hfsbi_proc_refuse(err);
    if (!hfsbi_terminal_resize(master, cols, rows))
        return hfsbi_fail_os(err, errno, "Cannot resize the terminal");
    return hfsbi_ok(err);
}

HFSBI_FN bool hfsbi_proc_has_room(const hfsb_proc *proc) {
    return proc->input.bytes.len - proc->input.at <= HFSBI_PROC_INPUT;
}

hfsb_status hfsb_proc_input(hfsb_proc *proc, hfsb_str bytes, bool end,
                            hfsb_err *err) {
    hfsbi_proc_input *in = &proc->input;
    size_t            waiting = in->bytes.len - in->at;
    if (proc->io[HFSBI_SLOT_IN].io.fd < 0 || in->ends)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "The command's standard input is closed: by an "
                          "earlier call or by the command itself.");
    if (!hfsbi_proc_has_room(proc))
        return hfsbi_fail(err, HFSB_LIMIT, 0,
                          "The command has not read its input yet: %zu "
                          "bytes wait. Send more when it has read them.",
                          waiting);
    if (waiting && in->at) { /* the written bytes make room */
        memmove(in->bytes.ptr, in->bytes.ptr + in->at, waiting);
        hfsb_buf_truncate(&in->bytes, waiting);
        in->at = 0;
    }
    if (hfsb_buf_append(&in->bytes, bytes) != HFSB_OK) {
        hfsb_buf_truncate(&in->bytes, waiting + in->at);
        return hfsbi_fail_status(err, HFSB_NOMEM, "Writing to the command");
    }
    in->ends = end;
    hfsbi_proc_put_input(proc);
    hfsbi_proc_follow(proc);
    return hfsbi_ok(err);
}

/* ---- for the tools ---- */

HFSBI_FN hfsbi_session_span hfsbi_proc_span(hfsb_proc *proc) {
    return hfsbi_tree_span(&proc->tree);
}

HFSBI_FN size_t hfsbi_proc_signal(hfsb_proc *proc, hfsbi_snapshot *snap,
                                  int number) {
    size_t left = hfsbi_tree_find(&proc->tree, snap);
    if (number) hfsbi_tree_signal(&proc->tree, number);
    return left;
}

/* The time during which output was held does not count as quiet. */
HFSBI_FN void hfsbi_proc_hold(hfsb_proc *proc, bool hold) {
    hfsbi_proc_times *t = &proc->times;
    long long         now = hfsb_clock_ms();
    if (proc->held == hold) return;
    proc->held = hold;
    if (hold) t->held_at = now;
    else if (proc->state == HFSBI_PROC_DRAIN ||
             proc->state == HFSBI_PROC_LINGER)
        t->drain_at +=
            now - (t->held_at > t->drain_at ? t->held_at : t->drain_at);
    hfsbi_proc_follow(proc);
}

/* ---- survivors ---- */

size_t hfsb_proc_survivors(const hfsb_proc *proc, hfsb_proc_entry *list,
                           size_t max) {
    if (proc->listed) return hfsbi_tree_list_known(&proc->tree, list, max);
    return hfsbi_tree_list(&proc->tree, hfsb_clock_ms() - proc->times.started,
                           list, max);
}

size_t hfsb_proc_take_pipes(hfsb_proc *proc, int fds[2]) {
    size_t n = 0;
    int    i;
    if (proc->state != HFSBI_PROC_DONE) return 0;
    hfsbi_proc_detach(proc);
    for (i = 0; i < 2; i++) {
        if (proc->io[i].io.fd >= 0) fds[n++] = proc->io[i].io.fd;
        proc->io[i].io.fd = -1;
    }
    return n;
}

/* ---- the keeper: reads the pipes of survivors ---- */

#define HFSBI_KEEPER_PIPES 64 /* of one keeper */

/* Reads the pipes at descriptors 0 to n - 1 to their ends. */
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
            list[i].fd = -1; /* poll() skips it */
            open--;
        }
    }
}

/* The keeper's process. Nothing here takes a lock: the host may have threads.
   */
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
    rc = chdir("/"); /* so that no file system is kept in use */
    (void)rc;
    hfsbi_keeper_read(n);
    _exit(0);
}

/* Forks twice, so that the keeper is not a child of the host. */
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

/* ---- the end ---- */

/* Sends KILL to the tree until it is gone or KILL had no effect. This process
   may itself have been stopped meanwhile, hence the minimum of looks. */
static void hfsbi_proc_destroy(hfsb_proc *proc) {
    long long end = hfsb_clock_ms() + HFSBI_PROC_GIVE_UP;
    int       looks = 0;
    for (;;) {
        hfsbi_sighting found = hfsbi_proc_search_now(proc);
        hfsbi_proc_note_exit(proc, hfsb_clock_ms());
        if (hfsbi_proc_exited(proc) && found.left == 0) return;
        hfsbi_tree_signal(&proc->tree, SIGKILL);
        if (hfsbi_proc_exited(proc) && found.blind) return;
        if (++looks > HFSBI_PROC_LOOKS && hfsb_clock_ms() >= end) return;
        (void)poll(NULL, 0, 2);
    }
}

HFSBI_FN bool hfsbi_pipe_ended(int fd) {
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
    if (proc->state != HFSBI_PROC_DONE) hfsbi_proc_destroy(proc);
    hfsbi_proc_detach(proc);
    hfsbi_proc_end_input(proc);
    hfsbi_close(&proc->slave);
    if (proc->tree.span.running) (void)hfsbi_tree_wait(&proc->tree, &info, 0);
    proc->state = HFSBI_PROC_DONE;
    n = hfsb_proc_take_pipes(proc, fds);
    for (i = 0; i < n; i++)
        if (proc->no_keeper || hfsbi_pipe_ended(fds[i])) hfsbi_close(&fds[i]);
        else fds[held++] = fds[i];
    hfsb_proc_keep_pipes(fds, held);
    hfsbi_proc_free(proc);
}

/* ---- a command in one call ---- */

typedef struct hfsbi_capture {
    const hfsb_proc_opts *opts;
    hfsb_buf             *to[2];
    bool                  full[2]; /* keeps no more: the start has no gap */
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
        if (hfsb_buf_append(to, part) != HFSB_OK) {
            hfsb_buf_truncate(to, to->len); /* usable for the caller */
            c->full[stream] = c->no_memory = true;
        }
    }
    if (c->opts->on_output) c->opts->on_output(c->opts->user, stream, bytes);
}

/* Waits for the command's descriptors or the cancel (may be NULL), at most
   until the command's deadline. */
static void hfsbi_proc_wait(const hfsb_proc *proc, const hfsb_cancel *cancel) {
    hfsb_watch    watch[HFSB_PROC_WATCHES];
    struct pollfd list[HFSB_PROC_WATCHES + 1];
    size_t        n = hfsb_proc_watch(proc, watch);
    long long     left = hfsb_proc_deadline(proc);
    hfsb_poll_fill(watch, n, list);
    if (left >= 0) {
        left -= hfsb_clock_ms();
        if (left < 0) left = 0;
        if (left > INT_MAX) left = INT_MAX;
    }
    left = hfsbi_cancel_watch(cancel, &list[n], (int)left);
    (void)poll(list, (nfds_t)n + 1, (int)left);
}

hfsb_status hfsb_proc_run(const hfsb_proc_opts *opts, hfsb_buf *out,
                          hfsb_buf *err_out, hfsb_proc_result *result,
                          hfsb_err *err) {
    hfsb_proc_opts     inner = *opts;
    hfsbi_capture      capture = HFSB_INIT;
    hfsb_proc         *proc;
    const hfsb_cancel *cancel = opts->cancel;
    hfsb_status        st;
    if (result) memset(result, 0, sizeof *result);
    if (hfsb_cancel_is_set(cancel))
        return hfsbi_fail(err, HFSB_CANCELLED, 0,
                          "Cancelled before the command was started.");
    capture.opts = opts;
    capture.to[HFSB_PROC_STDOUT] = out;
    capture.to[HFSB_PROC_STDERR] = err_out;
    inner.on_output = hfsbi_capture_output;
    inner.user = &capture;
    inner.keep_input = false; /* no caller could write to it */
    st = hfsb_proc_open(&inner, &proc, err);
    if (st != HFSB_OK) return st;
    do {
        hfsbi_proc_wait(proc, cancel);
        if (hfsb_cancel_is_set(cancel)) {
            hfsb_proc_kill(proc);
            cancel = NULL;
        }
    } while (!hfsb_proc_step(proc));
    if (result) {
        *result = hfsb_proc_status(proc);
        if (capture.no_memory) result->incomplete = true;
    }
    hfsb_proc_close(proc);
    return HFSB_OK;
}
