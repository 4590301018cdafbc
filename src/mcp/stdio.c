/* stdio.c - a channel over a pair of descriptors, one message per line.

       in --> line --> receive ... reply, notify --> queue --> out

   O_NONBLOCK belongs to the open file, which the host may share with its
   terminal, so it is never changed. A descriptor is read once when it is
   ready, and written in pieces that fit. A descriptor that cannot be polled (a
   file, /dev/null) is always ready and is read in turns of the loop.

       SERVING <--> CHOKED     the client reads too slowly: nothing is read,
          |           |        not even the end of input, until it catches up
          +-----+-----+
                | end of input, or the server stops, or nobody reads
                v
            LINGERING          calls that run may finish, if they are quick
                v
              TERM             the others are cancelled; commands and all
                |              processes they left get SIGTERM
                v
              KILL             after the grace: SIGKILL
                v
              ENDED            the server stops

   TERM goes to ENDED as soon as no process is left. */
#include "mcp_private.h"
#include "../os/os_private.h"

enum {
    HFSBI_STDIO_BLOCK = 65536,
    HFSBI_STDIO_TURN = 64,        /* pieces written at once */
    HFSBI_STDIO_CHOKE = 4 << 20,  /* unsent bytes that stop reading */
    HFSBI_STDIO_QUIET = 1 << 20,  /* unsent bytes that drop notifications */
    HFSBI_STDIO_KEPT = 64 * 1024, /* memory that an empty queue may hold */
    HFSBI_STDIO_LINGER_MS = 200,
    HFSBI_STDIO_UNSENT_MS = 800, /* after the end of input, for answers that
                                    are not sent yet */
    HFSBI_STDIO_STALL_MS = 500,  /* a choked client that hung up is gone */
    HFSBI_STDIO_LOOK_MS = 15,    /* between looks at what is left */
    HFSBI_STDIO_KILL_MS = 2000,  /* for killed processes to end, */
    HFSBI_STDIO_KILL_LOOKS = 20  /* and looks after that: the whole machine may
                                    have stood still */
};

typedef enum hfsbi_stdio_state {
    HFSBI_STDIO_SERVING,
    HFSBI_STDIO_CHOKED,
    HFSBI_STDIO_LINGERING,
    HFSBI_STDIO_TERM,
    HFSBI_STDIO_KILL,
    HFSBI_STDIO_ENDED
} hfsbi_stdio_state;

typedef enum hfsbi_stdio_kind {
    HFSBI_STDIO_POLLED,
    HFSBI_STDIO_SOCKET, /* polled, and written with send() */
    HFSBI_STDIO_PLAIN,  /* always ready */
    HFSBI_STDIO_GONE    /* nobody reads it */
} hfsbi_stdio_kind;

struct hfsbi_mcp_stdio {
    hfsbi_mcp_channel channel; /* first: it is found by it */
    hfsbi_stdio_state state;
    hfsbi_io          in, out;
    hfsbi_stdio_kind  in_kind, out_kind;
    bool              out_owned;   /* out.fd is a copy that is closed here */
    bool              turn_posted; /* the next turn of a plain input */
    hfsbi_task        turn;
    hfsb_buf          line;     /* an unfinished line */
    bool              skipping; /* the rest of a line that is too long */
    hfsb_buf          queue;    /* lines to be sent, */
    size_t            sent;     /* and how much of them is */
    hfsbi_timer       timer;
    long long         until;        /* end of LINGERING, TERM or KILL */
    long long         unsent_until; /* the answers left are dropped then */
    unsigned          looks;        /* in TERM or KILL */
};

typedef struct hfsbi_mcp_stdio hfsbi_mcp_stdio;

static void hfsbi_stdio_timer(hfsbi_mcp_stdio *io, long long ms) {
    hfsbi_loop_timer(io->channel.mcp->loop, &io->timer, hfsb_clock_ms() + ms);
}

static size_t hfsbi_stdio_unsent(const hfsbi_mcp_stdio *io) {
    return io->queue.len - io->sent;
}

/* ---- states: towards the end ---- */

/* Starts LINGERING; the timer or hfsbi_stdio_look() goes on from there.
   at_once: neither calls nor unsent answers are waited for. */
static void hfsbi_stdio_linger(hfsbi_mcp_stdio *io, bool at_once) {
    long long now = hfsb_clock_ms();
    if (io->state > HFSBI_STDIO_LINGERING ||
        (io->state == HFSBI_STDIO_LINGERING && !at_once))
        return;
    io->state = HFSBI_STDIO_LINGERING;
    io->until = at_once ? now : now + HFSBI_STDIO_LINGER_MS;
    io->unsent_until = at_once ? now : now + HFSBI_STDIO_UNSENT_MS;
    hfsbi_loop_timer(io->channel.mcp->loop, &io->timer, io->until);
}

/* Nobody reads the output: the client is gone. */
static void hfsbi_stdio_lose(hfsbi_mcp_stdio *io) {
    if (io->out_kind == HFSBI_STDIO_GONE) return;
    io->out_kind = HFSBI_STDIO_GONE;
    hfsb_buf_free(&io->queue);
    io->sent = 0;
    hfsbi_loop_io_forget(io->channel.mcp->loop, &io->out);
    hfsbi_stdio_linger(io, true);
}

/* ---- polling ---- */

/* Polls a descriptor; one that cannot be polled becomes PLAIN. False with
   errno. */
static bool hfsbi_stdio_poll(hfsbi_mcp_stdio *io, hfsbi_io *one, unsigned want,
                             hfsbi_stdio_kind *kind) {
    if (*kind == HFSBI_STDIO_PLAIN ||
        hfsbi_loop_io(io->channel.mcp->loop, one, want))
        return true;
    if (errno != EPERM) return false; /* what epoll returns for a file */
    *kind = HFSBI_STDIO_PLAIN;
    return true;
}

/* Moves between SERVING and CHOKED by the amount of unsent bytes. */
static void hfsbi_stdio_choke(hfsbi_mcp_stdio *io) {
    size_t unsent = hfsbi_stdio_unsent(io);
    if (io->state == HFSBI_STDIO_SERVING && unsent > HFSBI_STDIO_CHOKE) {
        io->state = HFSBI_STDIO_CHOKED;
        hfsbi_stdio_timer(io, HFSBI_STDIO_STALL_MS);
    } else if (io->state == HFSBI_STDIO_CHOKED &&
               unsent <= HFSBI_STDIO_CHOKE / 2) {
        io->state = HFSBI_STDIO_SERVING;
        hfsbi_loop_timer_clear(io->channel.mcp->loop, &io->timer);
    }
}

/* Polls for what is of use now. */
static void hfsbi_stdio_watch(hfsbi_mcp_stdio *io) {
    hfsb_mcp *mcp = io->channel.mcp;
    unsigned  out = hfsbi_stdio_unsent(io) ? HFSBI_IO_WRITE : 0;
    bool      reads;
    if (io->state == HFSBI_STDIO_ENDED) return;
    hfsbi_stdio_choke(io);
    if (io->out_kind != HFSBI_STDIO_GONE &&
        !hfsbi_stdio_poll(io, &io->out, out, &io->out_kind))
        hfsbi_stdio_lose(io);
    reads = io->state == HFSBI_STDIO_SERVING && !mcp->stopping;
    if (io->in_kind != HFSBI_STDIO_PLAIN) {
        if (!hfsbi_loop_io(mcp->loop, &io->in, reads ? HFSBI_IO_READ : 0) &&
            reads)
            hfsbi_stdio_linger(io, false);
    } else if (reads && !io->turn_posted) {
        io->turn_posted = true;
        hfsbi_loop_post(mcp->loop, &io->turn);
    }
}

/* ---- out ---- */

/* Writes as much as fits without waiting; -1 with errno. */
static ssize_t hfsbi_stdio_write(hfsbi_mcp_stdio *io, hfsb_str bytes) {
    bool               plain = io->out_kind == HFSBI_STDIO_PLAIN;
    struct pollfd      ready;
    hfsbi_signal_guard guard;
    ssize_t            n;
    if (io->out_kind == HFSBI_STDIO_SOCKET) {
        do
            n = send(io->out.fd, bytes.ptr, bytes.len,
                     MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n;
    }
    memset(&ready, 0, sizeof ready);
    ready.fd = io->out.fd;
    ready.events = POLLOUT;
    if (!plain && poll(&ready, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    if (!plain) /* a pipe that is ready has room for so much */
        bytes = hfsb_str_slice(bytes, 0,
                               bytes.len < PIPE_BUF ? bytes.len : PIPE_BUF);
    hfsbi_signal_guard_begin(&guard);
    n = hfsbi_write(io->out.fd, bytes.ptr, bytes.len);
    hfsbi_signal_guard_end(&guard);
    return n;
}

/* Drops what was sent from the queue, and the memory of an empty queue. */
static void hfsbi_stdio_trim(hfsbi_mcp_stdio *io) {
    size_t rest = hfsbi_stdio_unsent(io);
    if (rest && io->sent <= io->queue.len / 2) return;
    if (rest) memmove(io->queue.ptr, io->queue.ptr + io->sent, rest);
    hfsb_buf_truncate(&io->queue, rest);
    io->sent = 0;
    if (!rest && io->queue.cap > HFSBI_STDIO_KEPT) hfsb_buf_free(&io->queue);
}

static void hfsbi_stdio_flush(hfsbi_mcp_stdio *io) {
    size_t before = io->sent;
    int    turns;
    for (turns = 0; hfsbi_stdio_unsent(io) && turns < HFSBI_STDIO_TURN;
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
    }
    if (io->sent > before && io->state == HFSBI_STDIO_CHOKED)
        hfsbi_stdio_timer(io, HFSBI_STDIO_STALL_MS); /* somebody reads */
    hfsbi_stdio_trim(io);
    hfsbi_stdio_watch(io);
}

/* ---- states: the end ---- */

static void hfsbi_stdio_finish(hfsbi_mcp_stdio *io) {
    hfsb_mcp *mcp = io->channel.mcp;
    io->state = HFSBI_STDIO_ENDED;
    hfsbi_loop_timer_clear(mcp->loop, &io->timer);
    hfsbi_loop_io_forget(mcp->loop, &io->in);
    hfsbi_loop_io_forget(mcp->loop, &io->out);
    hfsbi_mcp_sessions_step(mcp);
    if (!hfsbi_server_is_stopping(mcp->server)) hfsb_server_stop(mcp->server);
}

/* True while answers wait for a slow reader, within their time. */
static bool hfsbi_stdio_owes(const hfsbi_mcp_stdio *io) {
    return io->out_kind != HFSBI_STDIO_GONE && hfsbi_stdio_unsent(io) &&
           hfsb_clock_ms() < io->unsent_until;
}

/* LINGERING to TERM. Processes are searched before calls are cancelled: a
   killed command leaves orphans that cannot be found any more. */
static void hfsbi_stdio_stop(hfsbi_mcp_stdio *io) {
    hfsb_mcp *mcp = io->channel.mcp;
    size_t    left;
    io->state = HFSBI_STDIO_TERM;
    io->until = hfsb_clock_ms() + mcp->limits.grace_ms;
    mcp->stopping = true;
    left = hfsbi_mcp_sessions_sweep(mcp, false);
    hfsbi_mcp_calls_detach(&io->channel, true);
    hfsbi_mcp_calls_stop(mcp, false);
    hfsbi_stdio_watch(io);
    if (!left && !hfsbi_mcp_sessions_busy(mcp) && !hfsbi_stdio_owes(io))
        hfsbi_stdio_finish(io);
    else hfsbi_stdio_timer(io, HFSBI_STDIO_LOOK_MS);
}

/* Ends LINGERING when there is nothing to wait for, or its time is over. */
static void hfsbi_stdio_look(hfsbi_mcp_stdio *io) {
    if (io->state == HFSBI_STDIO_LINGERING &&
        (hfsb_clock_ms() >= io->until ||
         (!io->channel.owed && !hfsbi_stdio_unsent(io))))
        hfsbi_stdio_stop(io);
}

/* True while processes are left. In TERM they are searched at a few looks
   only, which sends SIGTERM again to new ones; in KILL at each look. A killed
   process ends when it gets the processor, which takes long on a busy machine;
   one that hangs in the kernel is given up. */
static bool hfsbi_stdio_remains(hfsbi_mcp_stdio *io) {
    hfsb_mcp *mcp = io->channel.mcp;
    if (io->state == HFSBI_STDIO_TERM && hfsb_clock_ms() >= io->until) {
        io->state = HFSBI_STDIO_KILL;
        io->until = hfsb_clock_ms() + HFSBI_STDIO_KILL_MS;
        io->looks = 0;
    }
    if (io->state == HFSBI_STDIO_KILL)
        return hfsbi_mcp_sessions_sweep(mcp, true) > 0 &&
               (hfsb_clock_ms() < io->until ||
                ++io->looks < HFSBI_STDIO_KILL_LOOKS);
    if (hfsbi_mcp_sessions_busy(mcp)) return true;
    io->looks++;
    return (io->looks != 1 && io->looks != 4 && io->looks != 16) ||
           hfsbi_mcp_sessions_sweep(mcp, false) > 0;
}

/* True when the other end of a choked input is closed. */
static bool hfsbi_stdio_hung_up(const hfsbi_mcp_stdio *io) {
    struct pollfd at;
    memset(&at, 0, sizeof at);
    at.fd = io->in.fd;
#ifdef POLLRDHUP
    at.events = POLLRDHUP; /* of a socket that is closed one way */
#endif
    return io->in_kind != HFSBI_STDIO_PLAIN && poll(&at, 1, 0) > 0 &&
           at.revents;
}

static void hfsbi_stdio_tick(hfsbi_timer *timer) {
    hfsbi_mcp_stdio *io =
        (hfsbi_mcp_stdio *)(void *)((char *)timer -
                                    offsetof(hfsbi_mcp_stdio, timer));
    switch (io->state) {
    case HFSBI_STDIO_CHOKED: /* nothing was sent for a while */
        if (hfsbi_stdio_hung_up(io)) hfsbi_stdio_linger(io, true);
        else hfsbi_stdio_timer(io, HFSBI_STDIO_STALL_MS);
        break;
    case HFSBI_STDIO_LINGERING: hfsbi_stdio_look(io); break;
    case HFSBI_STDIO_TERM:
    case HFSBI_STDIO_KILL:
        if (hfsbi_stdio_remains(io) || hfsbi_stdio_owes(io))
            hfsbi_stdio_timer(io, HFSBI_STDIO_LOOK_MS);
        else hfsbi_stdio_finish(io);
        break;
    case HFSBI_STDIO_SERVING:
    case HFSBI_STDIO_ENDED: break;
    }
}

/* ---- the channel ---- */

static void hfsbi_stdio_writable(hfsbi_io *out, unsigned events) {
    hfsbi_mcp_stdio *io =
        (hfsbi_mcp_stdio *)(void *)((char *)out -
                                    offsetof(hfsbi_mcp_stdio, out));
    /* with unsent bytes, a write finds out whether the reader is gone */
    if ((events & HFSBI_IO_GONE) && !hfsbi_stdio_unsent(io))
        hfsbi_stdio_lose(io);
    else hfsbi_stdio_flush(io);
    hfsbi_stdio_look(io);
}

/* Queues a message, which may be taken over, and sends what fits. Without
   memory for an answer the client would wait for ever: it is dropped. */
static void hfsbi_stdio_put(hfsbi_mcp_stdio *io, hfsb_buf *message) {
    if (io->out_kind == HFSBI_STDIO_GONE || io->state == HFSBI_STDIO_ENDED)
        return;
    if (!message->len) {
        hfsbi_stdio_lose(io);
        return;
    }
    if (!io->queue.len) { /* the message becomes the queue */
        hfsb_buf_free(&io->queue);
        io->queue = *message;
        memset(message, 0, sizeof *message);
    } else {
        hfsb_buf_append(&io->queue, hfsb_buf_str(message));
    }
    if (hfsb_buf_append_byte(&io->queue, '\n') != HFSB_OK)
        hfsbi_stdio_lose(io);
    else hfsbi_stdio_flush(io);
}

static void hfsbi_stdio_reply(hfsbi_mcp_channel *channel, int status,
                              hfsb_buf *message) {
    hfsbi_mcp_stdio *io = (hfsbi_mcp_stdio *)(void *)channel;
    channel->owed--;
    if (status) hfsbi_stdio_put(io, message);
    hfsbi_stdio_look(io);
}

static void hfsbi_stdio_notify(hfsbi_mcp_channel *channel, hfsb_str message) {
    hfsbi_mcp_stdio *io = (hfsbi_mcp_stdio *)(void *)channel;
    hfsb_buf         copy = HFSB_INIT;
    copy.alloc = channel->mcp->alloc;
    if (hfsbi_stdio_unsent(io) <= HFSBI_STDIO_QUIET &&
        hfsb_buf_append(&copy, message) == HFSB_OK && copy.len)
        hfsbi_stdio_put(io, &copy);
    hfsb_buf_free(&copy);
}

/* ---- in ---- */

/* Serves a whole line. */
static void hfsbi_stdio_take(hfsbi_mcp_stdio *io) {
    hfsbi_mcp_head head = HFSB_INIT;
    hfsb_str       text = hfsbi_trim_end(hfsb_buf_str(&io->line));
    hfsb_buf_truncate(&io->line, text.len);
    if (hfsbi_trim(text).len)
        hfsbi_mcp_receive(&io->channel, &io->line, &head);
    hfsb_buf_truncate(&io->line, 0);
}

/* Adds to the line. A line that is too long is refused at once, and the rest
   of it skipped. */
static void hfsbi_stdio_add(hfsbi_mcp_stdio *io, hfsb_str piece) {
    size_t   max = io->channel.mcp->limits.max_message;
    hfsb_err err = HFSB_INIT;
    int      code = HFSBI_MCP_INVALID;
    if (io->skipping) return;
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
    io->skipping = true;
    hfsbi_mcp_reject(&io->channel, code, 400, err.msg);
}

/* Serves the lines in a block. Goes on when they choke the output: the bytes
   are read already. */
static void hfsbi_stdio_bytes(hfsbi_mcp_stdio *io, hfsb_str bytes) {
    while (bytes.len && io->state < HFSBI_STDIO_LINGERING) {
        size_t end = hfsb_str_find_byte(bytes, '\n');
        hfsbi_stdio_add(io, hfsb_str_slice(bytes, 0, end));
        if (end == HFSB_NPOS) return;
        if (!io->skipping) hfsbi_stdio_take(io);
        io->skipping = false;
        bytes = hfsb_str_slice(bytes, end + 1, bytes.len);
    }
}

/* Reads once: the descriptor is ready, but a second read might block. */
static void hfsbi_stdio_read(hfsbi_mcp_stdio *io) {
    char    block[HFSBI_STDIO_BLOCK];
    ssize_t n;
    if (io->state != HFSBI_STDIO_SERVING) return;
    n = hfsbi_read(io->in.fd, block, sizeof block);
    if (n > 0) {
        hfsbi_stdio_bytes(io, hfsb_str_make(block, (size_t)n));
        hfsbi_stdio_watch(io);
        return;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (!io->skipping) hfsbi_stdio_take(io); /* a last line without LF */
    hfsbi_mcp_stdio_end(io, false);
}

static void hfsbi_stdio_readable(hfsbi_io *in, unsigned events) {
    (void)events;
    hfsbi_stdio_read(
        (hfsbi_mcp_stdio *)(void *)((char *)in -
                                    offsetof(hfsbi_mcp_stdio, in)));
}

static void hfsbi_stdio_turn(hfsbi_task *task) {
    hfsbi_mcp_stdio *io =
        (hfsbi_mcp_stdio *)(void *)((char *)task -
                                    offsetof(hfsbi_mcp_stdio, turn));
    io->turn_posted = false;
    hfsbi_stdio_read(io);
    hfsbi_stdio_watch(io);
}

/* ---- for the object ---- */

HFSBI_FN void hfsbi_mcp_stdio_end(struct hfsbi_mcp_stdio *io, bool at_once) {
    hfsbi_stdio_linger(io, at_once);
    hfsbi_stdio_watch(io);
    hfsbi_stdio_look(io);
}

HFSBI_FN bool hfsbi_mcp_stdio_ended(const struct hfsbi_mcp_stdio *io) {
    return io->state == HFSBI_STDIO_ENDED;
}

HFSBI_FN void hfsbi_mcp_stdio_free(struct hfsbi_mcp_stdio *io) {
    hfsb_mcp *mcp = io->channel.mcp;
    hfsbi_loop_timer_clear(mcp->loop, &io->timer);
    hfsbi_loop_io_forget(mcp->loop, &io->in);
    hfsbi_loop_io_forget(mcp->loop, &io->out);
    if (io->out_owned) hfsbi_close(&io->out.fd);
    if (io->channel.session) hfsbi_mcp_session_release(io->channel.session);
    hfsb_buf_free(&io->line);
    hfsb_buf_free(&io->queue);
    hfsbi_array_free(&mcp->alloc, io, 1, sizeof *io);
}

static hfsbi_mcp_stdio *hfsbi_stdio_new(hfsb_mcp *mcp, int in, int out) {
    hfsbi_mcp_stdio *io =
        (hfsbi_mcp_stdio *)hfsbi_array(&mcp->alloc, 1, sizeof *io);
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

static hfsbi_stdio_kind hfsbi_stdio_kind_of(const struct stat *st) {
    if (S_ISREG(st->st_mode)) return HFSBI_STDIO_PLAIN;
    return S_ISSOCK(st->st_mode) ? HFSBI_STDIO_SOCKET : HFSBI_STDIO_POLLED;
}

/* Starts polling; false with errno. */
static bool hfsbi_stdio_open(hfsbi_mcp_stdio *io) {
    struct stat in, out;
    if (fstat(io->in.fd, &in) != 0 || fstat(io->out.fd, &out) != 0)
        return false;
    io->in_kind = hfsbi_stdio_kind_of(&in);
    io->out_kind = hfsbi_stdio_kind_of(&out);
    if (io->in.fd == io->out.fd) { /* a descriptor can be polled only once */
        io->out.fd = fcntl(io->out.fd, F_DUPFD_CLOEXEC, 3);
        if (io->out.fd < 0) return false;
        io->out_owned = true;
    }
    if (!hfsbi_stdio_poll(io, &io->out, 0, &io->out_kind) ||
        !hfsbi_stdio_poll(io, &io->in, HFSBI_IO_READ, &io->in_kind))
        return false;
    hfsbi_stdio_watch(io);
    return true;
}

hfsb_status hfsb_mcp_stdio(hfsb_mcp *mcp, int in, int out, hfsb_err *err) {
    hfsbi_mcp_stdio *io;
    int              code;
    if (mcp->stdio)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "Descriptors are being served already.");
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
