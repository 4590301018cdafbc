/* stdio.c - MCP over a pair of descriptors, a message a line. */
#include "mcp_private.h"
#include "../os/os_private.h"

/*  in --> line --> receive ... reply, notify --> queue --> out

    O_NONBLOCK belongs to the open file, which the host may share with its
    terminal: it is not touched. A descriptor is read once when it is ready,
    and written in pieces that fit when it is. What cannot be waited for (a
    file, /dev/null) is always ready, and is read in turns.

    The end, of the input or of the server:
        LINGERS  calls under way may end by themselves, if they are quick
        ENDING   the others are abandoned, commands and all that they left
                 behind get TERM, and after the grace KILL
        ENDED    the server stops                                          */

enum {
    HFSBI_STDIO_BLOCK = 65536,
    HFSBI_STDIO_TURN = 64,        /* pieces written in one go */
    HFSBI_STDIO_CHOKE = 4 << 20,  /* bytes that wait: no more is read */
    HFSBI_STDIO_QUIET = 1 << 20,  /* ... notifications are dropped */
    HFSBI_STDIO_KEPT = 64 * 1024, /* memory that an empty queue may hold */
    HFSBI_STDIO_LINGER_MS = 200,
    HFSBI_STDIO_OWED_MS = 600,  /* and then, for answers that wait */
    HFSBI_STDIO_STALL_MS = 500, /* nobody reads, and the input has ended */
    HFSBI_STDIO_LOOK_MS = 15,   /* between looks at what has ended */
    HFSBI_STDIO_KILL_MS = 250   /* a killed process takes no longer */
};

typedef enum hfsbi_stdio_state {
    HFSBI_STDIO_SERVES,
    HFSBI_STDIO_LINGERS,
    HFSBI_STDIO_ENDING,
    HFSBI_STDIO_ENDED
} hfsbi_stdio_state;

struct hfsbi_mcp_stdio {
    hfsbi_mcp_channel channel; /* first: it is found by it */
    hfsbi_io          in, out;
    bool              in_plain, out_plain; /* always ready */
    bool              out_socket;
    bool              out_dup; /* ours: in and out are the same */
    bool              lost;    /* nobody reads */
    bool              paused;  /* too much waits to be written */
    bool              stalls;  /* the timer runs because of that, */
    bool              wrote;   /* and some was written since */
    bool              given;   /* the next turn of a plain input */
    hfsbi_task        turn;
    hfsb_buf          line;  /* not whole yet */
    bool              skips; /* to its end: it is too long */
    hfsb_buf          queue;
    size_t            sent; /* bytes of it */
    hfsbi_stdio_state state;
    hfsbi_timer       timer;
    long long         until; /* of this state, or until KILL */
    long long         owed;  /* until then answers may be taken */
    unsigned          looks; /* since TERM */
    bool              killing;
};

static void hfsbi_stdio_look(struct hfsbi_mcp_stdio *io);

/* ---- out ---- */

/* As much as fits without waiting; -1 with errno. */
static ssize_t hfsbi_stdio_write(struct hfsbi_mcp_stdio *io, hfsb_str bytes) {
    struct pollfd      ready;
    hfsbi_signal_guard guard;
    ssize_t            n;
    if (io->out_socket) {
        do
            n = send(io->out.fd, bytes.ptr, bytes.len,
                     MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n;
    }
    memset(&ready, 0, sizeof ready);
    ready.fd = io->out.fd;
    ready.events = POLLOUT;
    if (!io->out_plain && poll(&ready, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    /* a pipe that is ready has room for so much */
    if (!io->out_plain && bytes.len > PIPE_BUF)
        bytes = hfsb_str_slice(bytes, 0, PIPE_BUF);
    hfsbi_signal_guard_begin(&guard);
    n = hfsbi_write(io->out.fd, bytes.ptr, bytes.len);
    hfsbi_signal_guard_end(&guard);
    return n;
}

static size_t hfsbi_stdio_waiting(const struct hfsbi_mcp_stdio *io) {
    return io->queue.len - io->sent;
}

static void hfsbi_stdio_want(struct hfsbi_mcp_stdio *io);

/* Nobody reads: what is left is of no use, and the client is gone. */
static void hfsbi_stdio_lose(struct hfsbi_mcp_stdio *io) {
    if (io->lost) return;
    io->lost = true;
    hfsb_buf_free(&io->queue);
    io->sent = 0;
    hfsbi_loop_io_forget(io->channel.mcp->loop, &io->out);
    hfsbi_mcp_stdio_end(io, true);
}

static void hfsbi_stdio_flush(struct hfsbi_mcp_stdio *io) {
    int turns;
    for (turns = 0; hfsbi_stdio_waiting(io) && turns < HFSBI_STDIO_TURN;
         turns++) {
        hfsb_str rest =
            hfsb_str_slice(hfsb_buf_str(&io->queue), io->sent, io->queue.len);
        ssize_t n = hfsbi_stdio_write(io, rest);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (n < 0) {
            hfsbi_stdio_lose(io);
            return;
        }
        io->sent += (size_t)n;
        io->wrote = true;
    }
    if (!hfsbi_stdio_waiting(io)) {
        io->sent = 0;
        hfsb_buf_truncate(&io->queue, 0);
        if (io->queue.cap > HFSBI_STDIO_KEPT) hfsb_buf_free(&io->queue);
    } else if (io->sent > io->queue.len / 2) {
        size_t rest = hfsbi_stdio_waiting(io);
        memmove(io->queue.ptr, io->queue.ptr + io->sent, rest);
        hfsb_buf_truncate(&io->queue, rest);
        io->sent = 0;
    }
    hfsbi_stdio_want(io);
}

static void hfsbi_stdio_writable(hfsbi_io *out, unsigned events) {
    struct hfsbi_mcp_stdio *io =
        (struct hfsbi_mcp_stdio *)(void *)((char *)out -
                                           offsetof(struct hfsbi_mcp_stdio,
                                                    out));
    /* its reader is gone; of a terminal or socket a write tells */
    if ((events & HFSBI_IO_GONE) && !hfsbi_stdio_waiting(io))
        hfsbi_stdio_lose(io);
    else hfsbi_stdio_flush(io);
    hfsbi_stdio_look(io);
}

static void hfsbi_stdio_put(struct hfsbi_mcp_stdio *io, hfsb_buf *message) {
    hfsb_status st;
    if (io->lost || io->state == HFSBI_STDIO_ENDED) return;
    if (!message->len) { /* no memory to tell anything: nor that */
        hfsbi_stdio_lose(io);
        return;
    }
    if (!io->queue.len) { /* it becomes the queue */
        hfsb_buf_free(&io->queue);
        io->queue = *message;
        memset(message, 0, sizeof *message);
        st = hfsb_buf_append_byte(&io->queue, '\n');
    } else {
        st = hfsb_buf_reserve(&io->queue, message->len + 1);
        if (st == HFSB_OK)
            st = hfsb_buf_append(&io->queue, hfsb_buf_str(message));
        if (st == HFSB_OK) st = hfsb_buf_append_byte(&io->queue, '\n');
    }
    if (st != HFSB_OK) hfsbi_stdio_lose(io);
    else hfsbi_stdio_flush(io);
}

static void hfsbi_stdio_reply(hfsbi_mcp_channel *channel, int status,
                              hfsb_buf *message) {
    struct hfsbi_mcp_stdio *io = (struct hfsbi_mcp_stdio *)(void *)channel;
    if (status) hfsbi_stdio_put(io, message);
    hfsbi_stdio_look(io);
}

static void hfsbi_stdio_notify(hfsbi_mcp_channel *channel, hfsb_str message) {
    struct hfsbi_mcp_stdio *io = (struct hfsbi_mcp_stdio *)(void *)channel;
    hfsb_buf                copy = HFSB_INIT;
    copy.alloc = channel->mcp->alloc;
    if (hfsbi_stdio_waiting(io) <= HFSBI_STDIO_QUIET &&
        hfsb_buf_append(&copy, message) == HFSB_OK && copy.len)
        hfsbi_stdio_put(io, &copy);
    hfsb_buf_free(&copy);
}

/* ---- in ---- */

static void hfsbi_stdio_refuse(struct hfsbi_mcp_stdio *io, int code,
                               hfsb_str sentence) {
    hfsb_buf message = HFSB_INIT;
    message.alloc = io->channel.mcp->alloc;
    if (hfsbi_mcp_put_error(HFSB_LIT("null"), code, sentence, &message) !=
        HFSB_OK)
        hfsb_buf_truncate(&message, 0);
    hfsbi_stdio_put(io, &message);
    hfsb_buf_free(&message);
}

/* The line is whole. */
static void hfsbi_stdio_take(struct hfsbi_mcp_stdio *io) {
    hfsbi_mcp_head head = HFSB_INIT;
    hfsb_str       text = hfsbi_trim_end(hfsb_buf_str(&io->line));
    hfsb_buf_truncate(&io->line, text.len);
    if (hfsbi_trim(text).len)
        (void)hfsbi_mcp_receive(&io->channel, &io->line, &head);
    hfsb_buf_truncate(&io->line, 0);
}

/* Adds to the line; from one that is too long on, all is skipped up to its
   end. */
static void hfsbi_stdio_add(struct hfsbi_mcp_stdio *io, hfsb_str piece) {
    size_t   max = io->channel.mcp->max_message;
    hfsb_err err = HFSB_INIT;
    int      code = HFSBI_MCP_INVALID;
    if (io->skips) return;
    if (piece.len > max || io->line.len > max - piece.len) {
        (void)hfsbi_fail(&err, HFSB_LIMIT, 0,
                         "A message has at most %zu bytes.", max);
    } else if (hfsb_buf_append(&io->line, piece) != HFSB_OK) {
        (void)hfsbi_fail_status(&err, HFSB_NOMEM, "Reading a message");
        code = HFSBI_MCP_INTERNAL;
    } else {
        return;
    }
    hfsb_buf_free(&io->line);
    io->skips = true;
    hfsbi_stdio_refuse(io, code, hfsb_cstr(err.msg));
}

static void hfsbi_stdio_bytes(struct hfsbi_mcp_stdio *io, hfsb_str bytes) {
    while (bytes.len && io->state == HFSBI_STDIO_SERVES) {
        size_t end = hfsb_str_find_byte(bytes, '\n');
        hfsbi_stdio_add(io, hfsb_str_slice(bytes, 0, end));
        if (end == HFSB_NPOS) return;
        if (!io->skips) hfsbi_stdio_take(io);
        io->skips = false;
        bytes = hfsb_str_slice(bytes, end + 1, bytes.len);
    }
}

/* One read: it is ready, and a second might wait. */
static void hfsbi_stdio_read(struct hfsbi_mcp_stdio *io) {
    char    block[HFSBI_STDIO_BLOCK];
    ssize_t n;
    if (io->state != HFSBI_STDIO_SERVES || io->paused) return;
    n = hfsbi_read(io->in.fd, block, sizeof block);
    if (n > 0) {
        hfsbi_stdio_bytes(io, hfsb_str_make(block, (size_t)n));
        hfsbi_stdio_want(io);
        return;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (!io->skips) hfsbi_stdio_take(io); /* a last line without its end */
    hfsbi_mcp_stdio_end(io, false);
}

static void hfsbi_stdio_readable(hfsbi_io *in, unsigned events) {
    (void)events;
    hfsbi_stdio_read(
        (struct hfsbi_mcp_stdio *)(void *)((char *)in -
                                           offsetof(struct hfsbi_mcp_stdio,
                                                    in)));
}

static void hfsbi_stdio_turn(hfsbi_task *task) {
    struct hfsbi_mcp_stdio *io =
        (struct hfsbi_mcp_stdio *)(void *)((char *)task -
                                           offsetof(struct hfsbi_mcp_stdio,
                                                    turn));
    io->given = false;
    hfsbi_stdio_read(io);
    hfsbi_stdio_want(io);
}

/* ---- an end that is not read ---- */

/* While too much waits to be written nothing is read, nor that the input has
   ended: it is looked for now and then. */
static void hfsbi_stdio_stall(struct hfsbi_mcp_stdio *io) {
    io->stalls = true;
    io->wrote = false;
    hfsbi_loop_timer(io->channel.mcp->loop, &io->timer,
                     hfsb_clock_ms() + HFSBI_STDIO_STALL_MS);
}

static bool hfsbi_stdio_hung_up(const struct hfsbi_mcp_stdio *io) {
    struct pollfd at;
    memset(&at, 0, sizeof at);
    at.fd = io->in.fd;
#ifdef POLLRDHUP
    at.events = POLLRDHUP; /* of a socket that is closed one way */
#endif
    return poll(&at, 1, 0) > 0 && at.revents;
}

/* As long as somebody reads what waits, the turn of what is left of the input
   comes. */
static void hfsbi_stdio_stalled(struct hfsbi_mcp_stdio *io) {
    io->stalls = false;
    if (!io->paused) return;
    if (io->wrote || !hfsbi_stdio_hung_up(io)) hfsbi_stdio_stall(io);
    else hfsbi_mcp_stdio_end(io, true);
}

/* ---- what is waited for ---- */

/* False with errno; what cannot be waited for becomes plain. */
static bool hfsbi_stdio_watch(struct hfsbi_mcp_stdio *io, hfsbi_io *one,
                              unsigned want, bool *plain) {
    if (*plain || hfsbi_loop_io(io->channel.mcp->loop, one, want)) return true;
    *plain = errno == EPERM; /* what epoll says to a file */
    return *plain;
}

/* Asks for what is of use now. */
static void hfsbi_stdio_want(struct hfsbi_mcp_stdio *io) {
    hfsbi_loop *loop = io->channel.mcp->loop;
    size_t      waiting = hfsbi_stdio_waiting(io);
    bool        reads;
    if (io->state == HFSBI_STDIO_ENDED) return;
    io->paused = waiting > (io->paused ? (size_t)HFSBI_STDIO_CHOKE / 2
                                       : (size_t)HFSBI_STDIO_CHOKE);
    reads = io->state == HFSBI_STDIO_SERVES && !io->paused &&
            !io->channel.mcp->ended;
    if (io->state == HFSBI_STDIO_SERVES && io->paused && !io->stalls &&
        !io->in_plain)
        hfsbi_stdio_stall(io);
    if (!io->lost &&
        !hfsbi_stdio_watch(io, &io->out, waiting ? HFSBI_IO_WRITE : 0,
                           &io->out_plain)) {
        hfsbi_stdio_lose(io);
        return;
    }
    if (!io->in_plain) {
        if (!hfsbi_loop_io(loop, &io->in, reads ? HFSBI_IO_READ : 0) && reads)
            hfsbi_mcp_stdio_end(io, false);
    } else if (reads && !io->given) {
        io->given = true;
        hfsbi_loop_post(loop, &io->turn);
    }
}

/* ---- the end ---- */

static void hfsbi_stdio_finish(struct hfsbi_mcp_stdio *io) {
    hfsb_mcp          *mcp = io->channel.mcp;
    hfsbi_mcp_session *session = mcp->sessions;
    io->state = HFSBI_STDIO_ENDED;
    hfsbi_loop_timer_clear(mcp->loop, &io->timer);
    hfsbi_loop_io_forget(mcp->loop, &io->in);
    hfsbi_loop_io_forget(mcp->loop, &io->out);
    for (; session; session = session->next) /* reaps, closes pipes */
        if (session->tools) hfsb_tools_step(session->tools);
    if (!hfsbi_server_stopping(mcp->server)) hfsb_server_stop(mcp->server);
}

/* Whether anything is left. Few times with TERM, which is heard once; from the
   grace's end on with KILL, until there is nothing. */
static bool hfsbi_stdio_remains(struct hfsbi_mcp_stdio *io) {
    hfsb_mcp *mcp = io->channel.mcp;
    if (hfsb_clock_ms() >= io->until && !io->killing) {
        io->killing = true;
        io->until = hfsb_clock_ms() + HFSBI_STDIO_KILL_MS;
    }
    if (io->killing)
        return hfsbi_mcp_sessions_sweep(mcp, true) > 0 &&
               hfsb_clock_ms() < io->until;
    if (hfsbi_mcp_sessions_busy(mcp)) return true;
    io->looks++;
    return (io->looks != 1 && io->looks != 4 && io->looks != 16) ||
           hfsbi_mcp_sessions_sweep(mcp, false) > 0;
}

/* Answers that are ready wait for a reader who is slow. */
static bool hfsbi_stdio_owes(const struct hfsbi_mcp_stdio *io) {
    return !io->lost && hfsbi_stdio_waiting(io) && hfsb_clock_ms() < io->owed;
}

/* The search comes before the calls are told: what is killed makes orphans of
   its children. */
static void hfsbi_stdio_stop(struct hfsbi_mcp_stdio *io) {
    hfsb_mcp *mcp = io->channel.mcp;
    size_t    left;
    io->state = HFSBI_STDIO_ENDING;
    io->until = hfsb_clock_ms() + mcp->grace_ms;
    mcp->ended = true;
    left = hfsbi_mcp_sessions_sweep(mcp, false);
    hfsbi_mcp_gone(&io->channel, true);
    hfsbi_mcp_calls_end(mcp, false);
    hfsbi_stdio_want(io);
    if (!left && !hfsbi_mcp_sessions_busy(mcp) && !hfsbi_stdio_owes(io))
        hfsbi_stdio_finish(io);
    else
        hfsbi_loop_timer(mcp->loop, &io->timer,
                         hfsb_clock_ms() + HFSBI_STDIO_LOOK_MS);
}

/* How it stands with the end. */
static void hfsbi_stdio_look(struct hfsbi_mcp_stdio *io) {
    if (io->state == HFSBI_STDIO_LINGERS &&
        (hfsb_clock_ms() >= io->until ||
         (!hfsbi_mcp_calls_wait(&io->channel) && !hfsbi_stdio_waiting(io)))) {
        io->owed = hfsb_clock_ms() + HFSBI_STDIO_OWED_MS;
        hfsbi_stdio_stop(io);
    }
}

static void hfsbi_stdio_tick(hfsbi_timer *timer) {
    struct hfsbi_mcp_stdio *io =
        (struct hfsbi_mcp_stdio *)(void *)((char *)timer -
                                           offsetof(struct hfsbi_mcp_stdio,
                                                    timer));
    if (io->state == HFSBI_STDIO_SERVES) hfsbi_stdio_stalled(io);
    else if (io->state != HFSBI_STDIO_ENDING) hfsbi_stdio_look(io);
    else if (hfsbi_stdio_remains(io) || hfsbi_stdio_owes(io))
        hfsbi_loop_timer(io->channel.mcp->loop, timer,
                         hfsb_clock_ms() + HFSBI_STDIO_LOOK_MS);
    else hfsbi_stdio_finish(io);
}

HFSBI_FN void hfsbi_mcp_stdio_end(struct hfsbi_mcp_stdio *io, bool at_once) {
    if (io->state == HFSBI_STDIO_SERVES) {
        io->state = HFSBI_STDIO_LINGERS;
        io->until = hfsb_clock_ms() + HFSBI_STDIO_LINGER_MS;
        hfsbi_loop_timer(io->channel.mcp->loop, &io->timer, io->until);
        hfsbi_stdio_want(io);
    }
    if (at_once && io->state == HFSBI_STDIO_LINGERS) hfsbi_stdio_stop(io);
    else hfsbi_stdio_look(io);
}

HFSBI_FN bool hfsbi_mcp_stdio_ended(const struct hfsbi_mcp_stdio *io) {
    return io->state == HFSBI_STDIO_ENDED;
}

HFSBI_FN void hfsbi_mcp_stdio_free(struct hfsbi_mcp_stdio *io) {
    hfsb_mcp *mcp = io->channel.mcp;
    hfsbi_loop_timer_clear(mcp->loop, &io->timer);
    hfsbi_loop_io_forget(mcp->loop, &io->in);
    hfsbi_loop_io_forget(mcp->loop, &io->out);
    if (io->out_dup) hfsbi_close(&io->out.fd);
    if (io->channel.session) hfsbi_mcp_session_release(io->channel.session);
    hfsb_buf_free(&io->line);
    hfsb_buf_free(&io->queue);
    hfsbi_array_free(&mcp->alloc, io, 1, sizeof *io);
}

/* ---- the beginning ---- */

static struct hfsbi_mcp_stdio *hfsbi_stdio_new(hfsb_mcp *mcp, int in,
                                               int out) {
    struct hfsbi_mcp_stdio *io =
        (struct hfsbi_mcp_stdio *)hfsbi_array(&mcp->alloc, 1, sizeof *io);
    if (!io) return NULL;
    memset(io, 0, sizeof *io);
    io->channel.mcp = mcp;
    io->channel.reply = hfsbi_stdio_reply;
    io->channel.notify = hfsbi_stdio_notify;
    io->channel.can_notify = true;
    io->in.fd = in;
    io->in.fn = hfsbi_stdio_readable;
    io->out.fd = out;
    io->out.fn = hfsbi_stdio_writable;
    io->turn.done = hfsbi_stdio_turn;
    io->timer.fn = hfsbi_stdio_tick;
    io->line.alloc = io->queue.alloc = mcp->alloc;
    io->channel.session = hfsbi_mcp_session_new(mcp);
    if (io->channel.session) return io;
    hfsbi_mcp_stdio_free(io);
    return NULL;
}

/* What the descriptors are; false with errno. */
static bool hfsbi_stdio_open(struct hfsbi_mcp_stdio *io) {
    struct stat in, out;
    if (fstat(io->in.fd, &in) != 0 || fstat(io->out.fd, &out) != 0)
        return false;
    io->in_plain = S_ISREG(in.st_mode);
    io->out_plain = S_ISREG(out.st_mode);
    io->out_socket = S_ISSOCK(out.st_mode);
    if (io->in.fd == io->out.fd) { /* the kernel's set has each but once */
        io->out.fd = fcntl(io->out.fd, F_DUPFD_CLOEXEC, 3);
        if (io->out.fd < 0) return false;
        io->out_dup = true;
    }
    if (!hfsbi_stdio_watch(io, &io->out, 0, &io->out_plain) ||
        !hfsbi_stdio_watch(io, &io->in, HFSBI_IO_READ, &io->in_plain))
        return false;
    hfsbi_stdio_want(io);
    return true;
}

hfsb_status hfsb_mcp_stdio(hfsb_mcp *mcp, int in, int out, hfsb_err *err) {
    struct hfsbi_mcp_stdio *io;
    int                     code;
    if (mcp->stdio)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "There is a client on descriptors already.");
    io = hfsbi_stdio_new(mcp, in, out);
    if (!io) return hfsbi_fail_status(err, HFSB_NOMEM, "Serving descriptors");
    if (!hfsbi_stdio_open(io)) {
        code = errno;
        hfsbi_mcp_stdio_free(io);
        return hfsbi_fail_os(
            err, code, "Descriptors %d and %d cannot be served", in, out);
    }
    mcp->stdio = io;
    mcp->part.place = true;
    return hfsbi_ok(err);
}
