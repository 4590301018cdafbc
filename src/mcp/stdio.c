/* stdio.c - a channel over a pair of descriptors, one message per line.

   wire.c reads and writes the lines; this file handles them, and the end of
   the channel:

           SERVING
              | end of input, or the server stops, or nobody reads
              v
          LINGERING            calls that run may finish, if they are quick
              v
            TERM               the others are cancelled; commands and all
              |                processes they left get SIGTERM
              v
            KILL               after the grace: SIGKILL
              v
            ENDED              the server stops

   TERM goes to ENDED as soon as no process is left. */
#include "mcp_private.h"

enum {
    HFSBI_STDIO_QUIET = 1 << 20, /* unsent bytes that drop notifications */
    HFSBI_STDIO_LINGER_MS = 200,
    HFSBI_STDIO_UNSENT_MS = 800, /* after the end of input, for answers that
                                    are not sent yet */
    HFSBI_STDIO_LOOK_MS = 15,    /* between looks at what is left */
    HFSBI_STDIO_KILL_MS = 2000,  /* for killed processes to end, */
    HFSBI_STDIO_KILL_LOOKS = 20  /* and looks after that: the whole machine may
                                    have stood still */
};

typedef enum hfsbi_stdio_state {
    HFSBI_STDIO_SERVING,
    HFSBI_STDIO_LINGERING,
    HFSBI_STDIO_TERM,
    HFSBI_STDIO_KILL,
    HFSBI_STDIO_ENDED
} hfsbi_stdio_state;

struct hfsbi_mcp_stdio {
    hfsbi_mcp_channel channel; /* first: it is found by it */
    hfsbi_stdio_state state;
    hfsbi_wire       *wire;
    hfsbi_timer       timer;
    long long         until;        /* end of LINGERING, TERM or KILL */
    long long         unsent_until; /* the answers left are dropped then */
    unsigned          looks;        /* in TERM or KILL */
};

typedef struct hfsbi_mcp_stdio hfsbi_mcp_stdio;

static void hfsbi_stdio_timer(hfsbi_mcp_stdio *io, long long ms) {
    hfsbi_loop_timer(io->channel.mcp->loop, &io->timer, hfsb_clock_ms() + ms);
}

/* ---- states ---- */

/* Starts LINGERING; the timer or hfsbi_stdio_look() continues from there.
   at_once: waits for neither calls nor unsent answers. */
static void hfsbi_stdio_linger(hfsbi_mcp_stdio *io, bool at_once) {
    long long now = hfsb_clock_ms();
    if (io->state > HFSBI_STDIO_LINGERING ||
        (io->state == HFSBI_STDIO_LINGERING && !at_once))
        return;
    io->state = HFSBI_STDIO_LINGERING;
    hfsbi_wire_shut(io->wire);
    io->until = at_once ? now : now + HFSBI_STDIO_LINGER_MS;
    io->unsent_until = at_once ? now : now + HFSBI_STDIO_UNSENT_MS;
    hfsbi_loop_timer(io->channel.mcp->loop, &io->timer, io->until);
}

static void hfsbi_stdio_finish(hfsbi_mcp_stdio *io) {
    hfsb_mcp *mcp = io->channel.mcp;
    io->state = HFSBI_STDIO_ENDED;
    hfsbi_loop_timer_clear(mcp->loop, &io->timer);
    hfsbi_wire_end(io->wire);
    hfsbi_mcp_sessions_step(mcp);
    if (!hfsbi_server_is_stopping(mcp->server)) hfsb_server_stop(mcp->server);
}

/* True while answers wait for a slow reader, within their time. */
static bool hfsbi_stdio_owes(const hfsbi_mcp_stdio *io) {
    return !hfsbi_wire_is_lost(io->wire) && hfsbi_wire_waiting(io->wire) &&
           hfsb_clock_ms() < io->unsent_until;
}

/* LINGERING to TERM. Processes are searched before calls are cancelled: a
   killed command leaves orphans that can no longer be found. */
static void hfsbi_stdio_stop(hfsbi_mcp_stdio *io) {
    hfsb_mcp *mcp = io->channel.mcp;
    size_t    left;
    io->state = HFSBI_STDIO_TERM;
    io->until = hfsb_clock_ms() + mcp->limits.grace_ms;
    mcp->stopping = true;
    left = hfsbi_mcp_sessions_sweep(mcp, false);
    hfsbi_mcp_calls_detach(&io->channel, true);
    hfsbi_mcp_calls_stop(mcp, false);
    if (!left && !hfsbi_mcp_sessions_busy(mcp) && !hfsbi_stdio_owes(io))
        hfsbi_stdio_finish(io);
    else hfsbi_stdio_timer(io, HFSBI_STDIO_LOOK_MS);
}

/* Ends LINGERING when there is nothing to wait for, or its time is up. */
static void hfsbi_stdio_look(hfsbi_mcp_stdio *io) {
    if (io->state == HFSBI_STDIO_LINGERING &&
        (hfsb_clock_ms() >= io->until ||
         (!io->channel.owed && !hfsbi_wire_waiting(io->wire))))
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

static void hfsbi_stdio_tick(hfsbi_timer *timer) {
    hfsbi_mcp_stdio *io =
        (hfsbi_mcp_stdio *)(void *)((char *)timer -
                                    offsetof(hfsbi_mcp_stdio, timer));
    switch (io->state) {
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

static void hfsbi_stdio_reply(hfsbi_mcp_channel *channel, int status,
                              hfsb_buf *message) {
    hfsbi_mcp_stdio *io = (hfsbi_mcp_stdio *)(void *)channel;
    channel->owed--;
    if (status) hfsbi_wire_send(io->wire, message);
    hfsbi_stdio_look(io);
}

static void hfsbi_stdio_notify(hfsbi_mcp_channel *channel, hfsb_str message) {
    hfsbi_mcp_stdio *io = (hfsbi_mcp_stdio *)(void *)channel;
    hfsb_buf         copy = HFSB_INIT;
    copy.alloc = channel->mcp->alloc;
    if (hfsbi_wire_waiting(io->wire) <= HFSBI_STDIO_QUIET &&
        hfsb_buf_append(&copy, message) == HFSB_OK && copy.len)
        hfsbi_wire_send(io->wire, &copy);
    hfsb_buf_free(&copy);
}

/* ---- the lines ---- */

static void hfsbi_stdio_line(void *user, hfsb_buf *line) {
    hfsbi_mcp_head head = HFSB_INIT;
    hfsbi_mcp_receive(&((hfsbi_mcp_stdio *)user)->channel, line, &head);
}

static void hfsbi_stdio_refused(void *user, const hfsb_err *err) {
    hfsbi_mcp_reject(&((hfsbi_mcp_stdio *)user)->channel,
                     err->code == HFSB_LIMIT ? HFSBI_MCP_INVALID
                                             : HFSBI_MCP_INTERNAL,
                     400, err->msg);
}

static void hfsbi_stdio_sent(void *user) {
    hfsbi_stdio_look((hfsbi_mcp_stdio *)user);
}

static void hfsbi_stdio_ended(void *user, bool lost) {
    hfsbi_mcp_stdio *io = (hfsbi_mcp_stdio *)user;
    hfsbi_stdio_linger(io, lost);
    if (!lost) hfsbi_stdio_look(io);
}

static const hfsbi_wire_fn hfsbi_stdio_fn = {
    hfsbi_stdio_line, hfsbi_stdio_refused, hfsbi_stdio_ended,
    hfsbi_stdio_sent};

/* ---- for the object ---- */

HFSBI_FN void hfsbi_mcp_stdio_end(struct hfsbi_mcp_stdio *io, bool at_once) {
    hfsbi_stdio_linger(io, at_once);
    hfsbi_stdio_look(io);
}

HFSBI_FN bool hfsbi_mcp_stdio_ended(const struct hfsbi_mcp_stdio *io) {
    return io->state == HFSBI_STDIO_ENDED;
}

HFSBI_FN void hfsbi_mcp_stdio_free(struct hfsbi_mcp_stdio *io) {
    hfsb_mcp *mcp = io->channel.mcp;
    hfsbi_loop_timer_clear(mcp->loop, &io->timer);
    hfsbi_wire_free(io->wire);
    if (io->channel.session) hfsbi_mcp_session_release(io->channel.session);
    hfsbi_array_free(&mcp->alloc, io, 1, sizeof *io);
}

static hfsbi_mcp_stdio *hfsbi_stdio_new(hfsb_mcp *mcp) {
    hfsbi_mcp_stdio *io =
        (hfsbi_mcp_stdio *)hfsbi_array(&mcp->alloc, 1, sizeof *io);
    if (!io) return NULL;
    memset(io, 0, sizeof *io);
    io->channel.mcp = mcp;
    io->channel.reply = hfsbi_stdio_reply;
    io->channel.notify = hfsbi_stdio_notify;
    io->channel.can_notify = true;
    io->timer.fn = hfsbi_stdio_tick;
    io->channel.session = hfsbi_mcp_session_new(mcp);
    if (io->channel.session) return io;
    hfsbi_mcp_stdio_free(io);
    return NULL;
}

hfsb_status hfsb_mcp_stdio(hfsb_mcp *mcp, int in, int out, hfsb_err *err) {
    hfsbi_mcp_stdio *io;
    hfsb_status      st;
    if (mcp->stdio)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "Descriptors are being served already.");
    io = hfsbi_stdio_new(mcp);
    if (!io) return hfsbi_fail_status(err, HFSB_NOMEM, "Serving descriptors");
    st = hfsbi_wire_open(mcp->server, in, out, mcp->limits.max_message,
                         &hfsbi_stdio_fn, io, &io->wire, err);
    if (st != HFSB_OK) {
        hfsbi_mcp_stdio_free(io);
        return st;
    }
    mcp->stdio = io;
    mcp->part.place = true;
    return hfsbi_ok(err);
}
