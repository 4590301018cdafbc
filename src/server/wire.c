/* wire.c - messages over a pair of descriptors, one on each line.

       in --> line --> owner ... hfsbi_wire_send() --> queue --> out

   O_NONBLOCK belongs to the open file, which a host may share with its
   terminal, so it is never changed. A descriptor is read once when it is
   ready, and written in pieces that fit. A descriptor that cannot be polled (a
   file, /dev/null) is always ready and is read in turns of the loop.

       OPEN <--> CHOKED     the peer reads too slowly: nothing is read, not
         |         |        even the end of input, until it catches up
         +----+----+
              | end of input, nobody reads, or hfsbi_wire_shut()
              v
            SHUT            nothing is read any more; the queue is still sent
              v
            ENDED           hfsbi_wire_end(): nothing is sent any more */
#include "server_private.h"

enum {
    HFSBI_WIRE_BLOCK = 65536,
    HFSBI_WIRE_TURN = 64,        /* pieces written at once */
    HFSBI_WIRE_CHOKE = 4 << 20,  /* unsent bytes that stop reading */
    HFSBI_WIRE_KEPT = 64 * 1024, /* memory that an empty queue may hold */
    HFSBI_WIRE_STALL_MS = 500    /* a choked peer that hung up is gone */
};

typedef enum hfsbi_wire_state {
    HFSBI_WIRE_OPEN,
    HFSBI_WIRE_CHOKED,
    HFSBI_WIRE_SHUT,
    HFSBI_WIRE_ENDED
} hfsbi_wire_state;

typedef enum hfsbi_wire_kind {
    HFSBI_WIRE_POLLED,
    HFSBI_WIRE_SOCKET, /* polled, and written with send() */
    HFSBI_WIRE_PLAIN,  /* always ready */
    HFSBI_WIRE_GONE    /* nobody reads it */
} hfsbi_wire_kind;

struct hfsbi_wire {
    const hfsbi_wire_fn *fn;
    void                *user;
    hfsbi_loop          *loop;
    hfsb_alloc           alloc;
    size_t               max; /* bytes of a line */
    hfsbi_wire_state     state;
    bool                 paused; /* by the owner */
    hfsbi_io             in, out;
    hfsbi_wire_kind      in_kind, out_kind;
    bool                 out_owned;   /* out.fd is a copy, closed here */
    bool                 turn_posted; /* the next turn of a plain input */
    hfsbi_task           turn;
    hfsb_buf             line;     /* an unfinished line */
    bool                 skipping; /* the rest of a line that is too long */
    hfsb_buf             queue;    /* lines to be sent, */
    size_t               sent;     /* and how much of them is */
    hfsbi_timer          timer;    /* of CHOKED */
};

HFSBI_FN size_t hfsbi_wire_waiting(const hfsbi_wire *l) {
    return l->queue.len - l->sent;
}

HFSBI_FN bool hfsbi_wire_is_lost(const hfsbi_wire *l) {
    return l->out_kind == HFSBI_WIRE_GONE;
}

/* ---- towards the end ---- */

HFSBI_FN void hfsbi_wire_shut(hfsbi_wire *l) {
    if (l->state >= HFSBI_WIRE_SHUT) return;
    l->state = HFSBI_WIRE_SHUT;
    hfsbi_loop_timer_clear(l->loop, &l->timer);
    if (l->in_kind != HFSBI_WIRE_PLAIN)
        (void)hfsbi_loop_io(l->loop, &l->in, 0);
}

/* The input is over: calls the owner, once. */
static void hfsbi_wire_over(hfsbi_wire *l, bool lost) {
    bool open = l->state < HFSBI_WIRE_SHUT;
    hfsbi_wire_shut(l);
    if (open || lost) l->fn->ended(l->user, lost);
}

/* Nobody reads the output: the peer is gone. */
static void hfsbi_wire_lose(hfsbi_wire *l) {
    if (l->out_kind == HFSBI_WIRE_GONE) return;
    l->out_kind = HFSBI_WIRE_GONE;
    hfsb_buf_free(&l->queue);
    l->sent = 0;
    hfsbi_loop_io_forget(l->loop, &l->out);
    hfsbi_wire_over(l, true);
}

HFSBI_FN void hfsbi_wire_end(hfsbi_wire *l) {
    hfsbi_wire_shut(l);
    l->state = HFSBI_WIRE_ENDED;
    hfsbi_loop_io_forget(l->loop, &l->in);
    hfsbi_loop_io_forget(l->loop, &l->out);
}

/* ---- polling ---- */

/* Polls a descriptor; one that cannot be polled becomes PLAIN. False with
   errno. */
static bool hfsbi_wire_poll(hfsbi_wire *l, hfsbi_io *one, unsigned want,
                            hfsbi_wire_kind *kind) {
    if (*kind == HFSBI_WIRE_PLAIN || hfsbi_loop_io(l->loop, one, want))
        return true;
    if (errno != EPERM) return false; /* what epoll returns for a file */
    *kind = HFSBI_WIRE_PLAIN;
    return true;
}

static void hfsbi_wire_timer(hfsbi_wire *l) {
    hfsbi_loop_timer(l->loop, &l->timer,
                     hfsb_clock_ms() + HFSBI_WIRE_STALL_MS);
}

/* Moves between OPEN and CHOKED by the amount of unsent bytes. */
static void hfsbi_wire_choke(hfsbi_wire *l) {
    size_t unsent = hfsbi_wire_waiting(l);
    if (l->state == HFSBI_WIRE_OPEN && unsent > HFSBI_WIRE_CHOKE) {
        l->state = HFSBI_WIRE_CHOKED;
        hfsbi_wire_timer(l);
    } else if (l->state == HFSBI_WIRE_CHOKED &&
               unsent <= HFSBI_WIRE_CHOKE / 2) {
        l->state = HFSBI_WIRE_OPEN;
        hfsbi_loop_timer_clear(l->loop, &l->timer);
    }
}

/* Polls for what is needed now. */
static void hfsbi_wire_watch(hfsbi_wire *l) {
    unsigned out = hfsbi_wire_waiting(l) ? HFSBI_IO_WRITE : 0;
    bool     reads;
    if (l->state == HFSBI_WIRE_ENDED) return;
    hfsbi_wire_choke(l);
    if (l->out_kind != HFSBI_WIRE_GONE &&
        !hfsbi_wire_poll(l, &l->out, out, &l->out_kind))
        hfsbi_wire_lose(l);
    reads = l->state == HFSBI_WIRE_OPEN && !l->paused;
    if (l->state == HFSBI_WIRE_ENDED) return;
    if (l->in_kind != HFSBI_WIRE_PLAIN) {
        if (!hfsbi_loop_io(l->loop, &l->in, reads ? HFSBI_IO_READ : 0) &&
            reads)
            hfsbi_wire_over(l, false);
    } else if (reads && !l->turn_posted) {
        l->turn_posted = true;
        hfsbi_loop_post(l->loop, &l->turn);
    }
}

HFSBI_FN void hfsbi_wire_pause(hfsbi_wire *l, bool paused) {
    l->paused = paused;
    hfsbi_wire_watch(l);
}

/* True when the other end of a choked input is closed. */
static bool hfsbi_wire_hung_up(const hfsbi_wire *l) {
    struct pollfd at;
    memset(&at, 0, sizeof at);
    at.fd = l->in.fd;
    at.events = POLLIN; /* on macOS an end is reported only with bytes */
#ifdef POLLRDHUP
    at.events |= POLLRDHUP; /* of a socket that is closed one way */
#endif
    return l->in_kind != HFSBI_WIRE_PLAIN && poll(&at, 1, 0) > 0 &&
           (at.revents & ~POLLIN);
}

/* Nothing was sent to a choked peer for a while. */
static void hfsbi_wire_tick(hfsbi_timer *timer) {
    hfsbi_wire *l =
        (hfsbi_wire *)(void *)((char *)timer - offsetof(hfsbi_wire, timer));
    if (l->state != HFSBI_WIRE_CHOKED) return;
    if (hfsbi_wire_hung_up(l)) hfsbi_wire_over(l, true);
    else hfsbi_wire_timer(l);
}

/* ---- out ---- */

/* Writes as much as fits without waiting; -1 with errno. */
static ssize_t hfsbi_wire_write(hfsbi_wire *l, hfsb_str bytes) {
    bool               plain = l->out_kind == HFSBI_WIRE_PLAIN;
    struct pollfd      ready;
    hfsbi_signal_guard guard;
    ssize_t            n;
    if (l->out_kind == HFSBI_WIRE_SOCKET) {
        do
            n = send(l->out.fd, bytes.ptr, bytes.len,
                     MSG_DONTWAIT | HFSBI_MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n;
    }
    memset(&ready, 0, sizeof ready);
    ready.fd = l->out.fd;
    ready.events = POLLOUT;
    if (!plain && poll(&ready, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    if (!plain) /* a pipe that is ready has room for this much */
        bytes = hfsb_str_slice(bytes, 0,
                               bytes.len < PIPE_BUF ? bytes.len : PIPE_BUF);
    hfsbi_signal_guard_begin(&guard);
    n = hfsbi_write(l->out.fd, bytes.ptr, bytes.len);
    hfsbi_signal_guard_end(&guard);
    return n;
}

/* Drops what was sent from the queue, and the memory of an empty queue. */
static void hfsbi_wire_trim(hfsbi_wire *l) {
    size_t rest = hfsbi_wire_waiting(l);
    if (rest && l->sent <= l->queue.len / 2) return;
    if (rest) memmove(l->queue.ptr, l->queue.ptr + l->sent, rest);
    hfsb_buf_truncate(&l->queue, rest);
    l->sent = 0;
    if (!rest && l->queue.cap > HFSBI_WIRE_KEPT) hfsb_buf_free(&l->queue);
}

static void hfsbi_wire_flush(hfsbi_wire *l) {
    size_t before = l->sent;
    int    turns;
    for (turns = 0; hfsbi_wire_waiting(l) && turns < HFSBI_WIRE_TURN;
         turns++) {
        hfsb_str rest =
            hfsb_str_slice(hfsb_buf_str(&l->queue), l->sent, l->queue.len);
        ssize_t n = hfsbi_wire_write(l, rest);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (n < 0) {
            hfsbi_wire_lose(l);
            return;
        }
        l->sent += (size_t)n;
    }
    if (l->sent > before && l->state == HFSBI_WIRE_CHOKED)
        hfsbi_wire_timer(l); /* somebody reads */
    hfsbi_wire_trim(l);
    hfsbi_wire_watch(l);
}

static void hfsbi_wire_writable(hfsbi_io *out, unsigned events) {
    hfsbi_wire *l =
        (hfsbi_wire *)(void *)((char *)out - offsetof(hfsbi_wire, out));
    /* with unsent bytes, a write finds out whether the reader is gone */
    if ((events & HFSBI_IO_GONE) && !hfsbi_wire_waiting(l)) hfsbi_wire_lose(l);
    else hfsbi_wire_flush(l);
    if (l->fn->sent) l->fn->sent(l->user);
}

HFSBI_FN void hfsbi_wire_send(hfsbi_wire *l, hfsb_buf *message) {
    bool waits = hfsbi_wire_waiting(l) && l->out_kind != HFSBI_WIRE_PLAIN;
    if (l->out_kind == HFSBI_WIRE_GONE || l->state == HFSBI_WIRE_ENDED) return;
    if (!message->len) {
        hfsbi_wire_lose(l);
        return;
    }
    if (!l->queue.len) { /* the message becomes the queue */
        hfsb_buf_free(&l->queue);
        l->queue = *message;
        memset(message, 0, sizeof *message);
        message->alloc = l->alloc;
    } else {
        hfsb_buf_append(&l->queue, hfsb_buf_str(message));
    }
    if (hfsb_buf_append_byte(&l->queue, '\n') != HFSB_OK) hfsbi_wire_lose(l);
    else if (waits) hfsbi_wire_watch(l);
    else hfsbi_wire_flush(l);
}

/* ---- in ---- */

/* Hands over a whole line. */
static void hfsbi_wire_take(hfsbi_wire *l) {
    hfsb_str text = hfsbi_trim_end(hfsb_buf_str(&l->line));
    hfsb_buf_truncate(&l->line, text.len);
    if (hfsbi_trim(text).len) l->fn->line(l->user, &l->line);
    hfsb_buf_truncate(&l->line, 0);
}

/* Adds to the line. A line that is too long is refused at once, and the rest
   of it skipped. */
static void hfsbi_wire_add(hfsbi_wire *l, hfsb_str piece) {
    hfsb_err err = HFSB_INIT;
    if (l->skipping) return;
    if (piece.len > l->max || l->line.len > l->max - piece.len)
        (void)hfsbi_fail(&err, HFSB_LIMIT, 0,
                         "A message has at most %zu bytes.", l->max);
    else if (hfsb_buf_append(&l->line, piece) != HFSB_OK)
        (void)hfsbi_fail_status(&err, HFSB_NOMEM, "Reading a message");
    else return;
    hfsb_buf_free(&l->line);
    l->skipping = true;
    l->fn->refused(l->user, &err);
}

/* Hands over the lines in a block. Continues when they choke the output: the
   bytes are read already. */
static void hfsbi_wire_bytes(hfsbi_wire *l, hfsb_str bytes) {
    while (bytes.len && l->state < HFSBI_WIRE_SHUT) {
        size_t end = hfsb_str_find_byte(bytes, '\n');
        hfsbi_wire_add(l, hfsb_str_slice(bytes, 0, end));
        if (end == HFSB_NPOS) return;
        if (!l->skipping) hfsbi_wire_take(l);
        l->skipping = false;
        bytes = hfsb_str_slice(bytes, end + 1, bytes.len);
    }
}

/* Reads once: the descriptor is ready, but a second read might block. */
static void hfsbi_wire_read(hfsbi_wire *l) {
    char    block[HFSBI_WIRE_BLOCK];
    ssize_t n;
    if (l->state != HFSBI_WIRE_OPEN || l->paused) return;
    n = hfsbi_read(l->in.fd, block, sizeof block);
    if (n > 0) {
        hfsbi_wire_bytes(l, hfsb_str_make(block, (size_t)n));
        hfsbi_wire_watch(l);
        return;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (!l->skipping) hfsbi_wire_take(l); /* a last line without LF */
    hfsbi_wire_over(l, false);
}

static void hfsbi_wire_readable(hfsbi_io *in, unsigned events) {
    (void)events;
    hfsbi_wire_read(
        (hfsbi_wire *)(void *)((char *)in - offsetof(hfsbi_wire, in)));
}

static void hfsbi_wire_next(hfsbi_task *task) {
    hfsbi_wire *l =
        (hfsbi_wire *)(void *)((char *)task - offsetof(hfsbi_wire, turn));
    l->turn_posted = false;
    hfsbi_wire_read(l);
    hfsbi_wire_watch(l);
}

/* ---- open and free ---- */

HFSBI_FN void hfsbi_wire_free(hfsbi_wire *l) {
    hfsb_alloc alloc;
    if (!l) return;
    alloc = l->alloc;
    hfsbi_loop_timer_clear(l->loop, &l->timer);
    hfsbi_loop_io_forget(l->loop, &l->in);
    hfsbi_loop_io_forget(l->loop, &l->out);
    if (l->turn_posted) hfsbi_loop_unpost(l->loop, &l->turn);
    if (l->out_owned) hfsbi_close(&l->out.fd);
    hfsb_buf_free(&l->line);
    hfsb_buf_free(&l->queue);
    hfsbi_array_free(&alloc, l, 1, sizeof *l);
}

static hfsbi_wire_kind hfsbi_wire_kind_of(const struct stat *st) {
    if (S_ISREG(st->st_mode)) return HFSBI_WIRE_PLAIN;
#ifdef MSG_NOSIGNAL
    if (S_ISSOCK(st->st_mode)) return HFSBI_WIRE_SOCKET;
#endif
    return HFSBI_WIRE_POLLED;
}

/* Starts polling; false with errno. */
static bool hfsbi_wire_begin(hfsbi_wire *l) {
    struct stat in, out;
    if (fstat(l->in.fd, &in) != 0 || fstat(l->out.fd, &out) != 0) return false;
    l->in_kind = hfsbi_wire_kind_of(&in);
    l->out_kind = hfsbi_wire_kind_of(&out);
    if (l->in.fd == l->out.fd) { /* a descriptor can be polled only once */
        l->out.fd = fcntl(l->out.fd, F_DUPFD_CLOEXEC, 3);
        if (l->out.fd < 0) return false;
        l->out_owned = true;
    }
    if (!hfsbi_wire_poll(l, &l->out, 0, &l->out_kind) ||
        !hfsbi_wire_poll(l, &l->in, HFSBI_IO_READ, &l->in_kind))
        return false;
    l->turn_posted = l->in_kind == HFSBI_WIRE_PLAIN;
    if (l->turn_posted) hfsbi_loop_post(l->loop, &l->turn);
    return true;
}

HFSBI_FN hfsb_status hfsbi_wire_open(hfsb_server *server, int in, int out,
                                     size_t max, const hfsbi_wire_fn *fn,
                                     void *user, hfsbi_wire **made,
                                     hfsb_err *err) {
    hfsbi_wire *l = (hfsbi_wire *)hfsbi_array(&server->alloc, 1, sizeof *l);
    int         code;
    *made = NULL;
    if (!l) return hfsbi_fail_status(err, HFSB_NOMEM, "Serving descriptors");
    memset(l, 0, sizeof *l);
    l->fn = fn;
    l->user = user;
    l->loop = server->loop;
    l->alloc = server->alloc;
    l->max = max;
    l->in.fd = in;
    l->in.fn = hfsbi_wire_readable;
    l->out.fd = out;
    l->out.fn = hfsbi_wire_writable;
    l->turn.done = hfsbi_wire_next;
    l->timer.fn = hfsbi_wire_tick;
    l->line.alloc = l->queue.alloc = l->alloc;
    if (hfsbi_wire_begin(l)) {
        *made = l;
        return hfsbi_ok(err);
    }
    code = errno;
    hfsbi_wire_free(l);
    return hfsbi_fail_os(err, code, "Descriptors %d and %d cannot be served",
                         in, out);
}
