/* mux.c - connections through a pipe: the pump between the frames of a pipe
   and one local socket per stream.

       socket --+                                  +-- socket
       socket --+-- mux -- pipe out --> in -- mux -+-- socket
       socket --+       <-- in    out --           +-- socket
                 client                     server

   Both sides are this file. The client's program holds the other end of each
   of its sockets, and speaks HTTP on it as on any connection; on the server's
   side `accept` connects each stream to the server. A stream on either side:

       NEW: nothing is passed on; only with `prove`, until it returns HFSB_OK
         |
       OPEN --its socket ends, END is sent--> LOCAL_END --END comes--> freed
         |                                                              ^
         +---END comes---> REMOTE_END: what has come is still written, -+
                           then the socket is closed and END is sent

   A busy server may leave a stream NEW for long: it waits, like any connection
   to such a server, and the others go on. An END from either side frees it,
   and drops what has come.

   Bounds: a stream holds at most HFSBI_MUX_WINDOW bytes that its socket does
   not take, and credit is given back only for bytes that it took. Sockets are
   read only while less than HFSBI_MUX_OUT bytes wait for the pipe. The pipe is
   always read, so two pumps never wait for each other; a peer that does not
   read, but makes this side answer, ends it (HFSBI_MUX_MOST).

   A pipe can die without an end: a machine that slept, a NAT that forgot. So
   each side sends at least a newline every beat_ms, and one that hears nothing
   for lost_ms is over. No answer is required: on a slow line it would wait for
   everything already on its way. The client gives up sooner, because it can
   start again; the server is patient with a client that was suspended.

   All of it happens in the loop, or under its lock. */
#include "net_private.h"

enum {
    HFSBI_MUX_IN = 65536,     /* bytes read from the pipe at once */
    HFSBI_MUX_OUT = 65536,    /* bytes that may wait for the pipe */
    HFSBI_MUX_PIECE = 16384,  /* bytes of one frame of data */
    HFSBI_MUX_MOST = 1 << 20, /* bytes that wait for a peer that is alive */
    HFSBI_MUX_STREAMS = 256,
    HFSBI_MUX_BEAT_MS = 15000,
    HFSBI_MUX_LOST_MS = 45000,
    HFSBI_MUX_SERVER_LOST_MS = 300000
};

typedef enum hfsbi_mux_state {
    HFSBI_MUX_STREAM_NEW,
    HFSBI_MUX_STREAM_OPEN,
    HFSBI_MUX_STREAM_LOCAL_END,
    HFSBI_MUX_STREAM_REMOTE_END
} hfsbi_mux_state;

typedef struct hfsbi_mux_stream {
    hfsbi_io                 io; /* the socket; first, so that it is found */
    struct hfsbi_mux_stream *next;
    struct hfsbi_mux        *mux;
    unsigned long            id;
    hfsbi_mux_state          state;
    hfsb_buf                 in;     /* from the peer, for the socket ... */
    size_t                   in_at;  /* ... which has taken so many */
    size_t                   credit; /* bytes that may be sent */
    size_t                   owed;   /* credit to be given back */
    void                    *proof;  /* of a NEW one: room for `prove` */
} hfsbi_mux_stream;

struct hfsbi_mux {
    hfsbi_mux_opts    o;
    hfsbi_io          in, out;
    hfsbi_mux_reader  reader;
    hfsb_buf          queue;    /* for the pipe ... */
    size_t            queue_at; /* ... which has taken so many */
    hfsbi_mux_stream *streams;
    size_t            count;
    unsigned long     last_id;
    hfsbi_mux_end     end;
    bool              line_over; /* the queue ends with the end of a line */
    hfsbi_timer       timer;
    long long         heard, sent; /* the last byte, on hfsb_clock_ms() */
    char              room[HFSBI_MUX_IN];
};

static hfsbi_mux *hfsbi_mux_of_in(hfsbi_io *io) {
    return (hfsbi_mux *)(void *)((char *)io - offsetof(hfsbi_mux, in));
}

static hfsbi_mux *hfsbi_mux_of_out(hfsbi_io *io) {
    return (hfsbi_mux *)(void *)((char *)io - offsetof(hfsbi_mux, out));
}

/* ---- the end of the pipe ---- */

static void hfsbi_mux_free_proof(hfsbi_mux_stream *s) {
    hfsbi_array_free(&s->mux->o.alloc, s->proof, s->mux->o.proof_room, 1);
    s->proof = NULL;
}

static void hfsbi_mux_stream_close(hfsbi_mux_stream *s) {
    if (s->io.fd < 0) return;
    hfsbi_loop_io_forget(s->mux->o.loop, &s->io);
    hfsbi_close(&s->io.fd);
    hfsb_buf_free(&s->in);
    s->in_at = 0;
    hfsbi_mux_free_proof(s);
}

/* Closes all sockets, and calls the owner, once. */
static void hfsbi_mux_over(hfsbi_mux *m, hfsbi_mux_end end) {
    hfsbi_mux_stream *s;
    if (m->end != HFSBI_MUX_RUNS) return;
    m->end = end;
    hfsbi_loop_timer_clear(m->o.loop, &m->timer);
    hfsbi_loop_io_forget(m->o.loop, &m->in);
    hfsbi_loop_io_forget(m->o.loop, &m->out);
    for (s = m->streams; s; s = s->next) hfsbi_mux_stream_close(s);
    m->o.over(m->o.user, end);
}

/* ---- the queue for the pipe ---- */

static size_t hfsbi_mux_waiting(const hfsbi_mux *m) {
    return m->queue.len - m->queue_at;
}

/* Makes room for n bytes at the end of the queue; NULL without memory, or when
   the peer does not read. */
static char *hfsbi_mux_reserve(hfsbi_mux *m, size_t n) {
    if (m->queue_at) { /* drop what the pipe has taken */
        size_t left = hfsbi_mux_waiting(m);
        if (left) memmove(m->queue.ptr, m->queue.ptr + m->queue_at, left);
        hfsb_buf_truncate(&m->queue, left);
        m->queue_at = 0;
    }
    if (m->queue.len < HFSBI_MUX_MOST &&
        hfsb_buf_reserve(&m->queue, n) == HFSB_OK)
        return m->queue.ptr + m->queue.len;
    hfsbi_mux_over(m, HFSBI_MUX_BROKE);
    return NULL;
}

static void hfsbi_mux_send(hfsbi_mux *m) {
    m->line_over = false;
    if (m->end == HFSBI_MUX_RUNS &&
        !hfsbi_loop_io(m->o.loop, &m->out, HFSBI_IO_WRITE))
        hfsbi_mux_over(m, HFSBI_MUX_BROKE);
}

static void hfsbi_mux_put(hfsbi_mux *m, hfsbi_mux_kind kind, unsigned long n,
                          unsigned long stream) {
    char *to =
        m->end == HFSBI_MUX_RUNS ? hfsbi_mux_reserve(m, HFSBI_MUX_HEAD) : NULL;
    if (!to) return;
    hfsbi_mux_write_head(kind, n, stream, to);
    m->queue.len += HFSBI_MUX_HEAD;
    hfsbi_mux_send(m);
}

/* ---- streams ---- */

static void hfsbi_mux_stream_free(hfsbi_mux_stream *s) {
    hfsbi_mux         *m = s->mux;
    hfsbi_mux_stream **at = &m->streams;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    m->count--;
    hfsbi_mux_stream_close(s);
    hfsbi_array_free(&m->o.alloc, s, 1, sizeof *s);
}

static hfsbi_mux_stream *hfsbi_mux_find(const hfsbi_mux *m, unsigned long id) {
    hfsbi_mux_stream *s = m->streams;
    while (s && s->id != id) s = s->next;
    return s;
}

/* Ends the stream from this side; its socket is useless. True: it is freed. */
static bool hfsbi_mux_stream_end(hfsbi_mux_stream *s) {
    bool both = s->state == HFSBI_MUX_STREAM_REMOTE_END;
    if (s->state == HFSBI_MUX_STREAM_LOCAL_END) return false;
    s->state = HFSBI_MUX_STREAM_LOCAL_END;
    hfsbi_mux_stream_close(s);
    hfsbi_mux_put(s->mux, HFSBI_MUX_END, 0, s->id);
    if (both) hfsbi_mux_stream_free(s);
    return both;
}

/* Asks the loop for what the stream can do now. */
static void hfsbi_mux_stream_want(hfsbi_mux_stream *s) {
    unsigned want = 0;
    if (s->io.fd < 0) return;
    if (s->state == HFSBI_MUX_STREAM_NEW) want = HFSBI_IO_READ;
    else if (s->in.len > s->in_at) want |= HFSBI_IO_WRITE;
    if (s->state == HFSBI_MUX_STREAM_OPEN && s->credit &&
        hfsbi_mux_waiting(s->mux) < HFSBI_MUX_OUT)
        want |= HFSBI_IO_READ;
    if (!hfsbi_loop_io(s->mux->o.loop, &s->io, want))
        (void)hfsbi_mux_stream_end(s);
}

/* Writes what has come to the socket, and gives credit back. True: the stream
   is freed. */
static bool hfsbi_mux_stream_flush(hfsbi_mux_stream *s) {
    while (s->in_at < s->in.len) {
        ssize_t n = hfsbi_socket_send(
            s->io.fd,
            hfsb_str_slice(hfsb_buf_str(&s->in), s->in_at, s->in.len),
            hfsb_str_make(NULL, 0));
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
        if (n < 0) n = (ssize_t)(s->in.len - s->in_at); /* nobody reads it */
        s->in_at += (size_t)n;
        s->owed += (size_t)n;
    }
    hfsb_buf_truncate(&s->in, 0);
    s->in_at = 0;
    if (s->state == HFSBI_MUX_STREAM_REMOTE_END)
        return hfsbi_mux_stream_end(s);
    if (s->owed < HFSBI_MUX_WINDOW / 2) return false;
    hfsbi_mux_put(s->mux, HFSBI_MUX_CREDIT, (unsigned long)s->owed, s->id);
    s->owed = 0;
    return false;
}

/* Reads the socket once, into a frame. True: the stream is freed. */
static bool hfsbi_mux_stream_read(hfsbi_mux_stream *s) {
    hfsbi_mux *m = s->mux;
    size_t     room = HFSBI_MUX_PIECE;
    char *to = hfsbi_mux_reserve(m, (size_t)HFSBI_MUX_HEAD + HFSBI_MUX_PIECE);
    ssize_t n;
    if (!to) return false;
    if (room > s->credit) room = s->credit;
    n = hfsbi_read(s->io.fd, to + HFSBI_MUX_HEAD, room);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (n <= 0) return hfsbi_mux_stream_end(s);
    hfsbi_mux_write_head(HFSBI_MUX_DATA, (unsigned long)n, s->id, to);
    m->queue.len += HFSBI_MUX_HEAD + (size_t)n;
    s->credit -= (size_t)n;
    hfsbi_mux_send(m);
    return false;
}

/* True when the program here has closed the socket of the stream. Without
   credit the socket is not read, and nothing else would find out. What a
   server wrote before it closed is for the client, and waits for credit. */
static bool hfsbi_mux_stream_left(const hfsbi_mux_stream *s, unsigned events) {
    return events & HFSBI_IO_GONE && !s->mux->o.accept;
}

/* Continues the test of a NEW stream. */
static void hfsbi_mux_stream_prove(hfsbi_mux_stream *s) {
    hfsbi_mux  *m = s->mux;
    hfsb_status st = m->o.prove(m->o.user, s->io.fd, s->proof);
    if (st == HFSB_CONNECT) hfsbi_mux_over(m, HFSBI_MUX_BROKE);
    else if (st == HFSB_BUSY) hfsbi_mux_stream_want(s);
    else if (st != HFSB_OK) (void)hfsbi_mux_stream_end(s);
    if (st != HFSB_OK) return;
    hfsbi_mux_free_proof(s);
    s->state = HFSBI_MUX_STREAM_OPEN;
    if (!hfsbi_mux_stream_flush(s)) hfsbi_mux_stream_want(s);
}

static void hfsbi_mux_stream_ready(hfsbi_io *io, unsigned events) {
    hfsbi_mux_stream *s = (hfsbi_mux_stream *)(void *)io;
    hfsbi_mux        *m = s->mux;
    if (s->state == HFSBI_MUX_STREAM_NEW) {
        hfsbi_mux_stream_prove(s);
        return;
    }
    if (events & HFSBI_IO_WRITE && hfsbi_mux_stream_flush(s)) return;
    if (events & HFSBI_IO_READ && m->end == HFSBI_MUX_RUNS &&
        s->state == HFSBI_MUX_STREAM_OPEN &&
        hfsbi_mux_waiting(m) < HFSBI_MUX_OUT && hfsbi_mux_stream_read(s))
        return;
    if (m->end != HFSBI_MUX_RUNS) return;
    if (hfsbi_mux_stream_left(s, events)) (void)hfsbi_mux_stream_end(s);
    else hfsbi_mux_stream_want(s);
}

/* Adds a stream on a socket, which it takes over; false without memory. */
static bool hfsbi_mux_add(hfsbi_mux *m, int *fd, unsigned long id) {
    hfsbi_mux_stream *s =
        (hfsbi_mux_stream *)hfsbi_array(&m->o.alloc, 1, sizeof *s);
    if (!s) return false;
    memset(s, 0, sizeof *s);
    s->mux = m;
    s->id = id;
    s->state = HFSBI_MUX_STREAM_OPEN;
    s->credit = HFSBI_MUX_WINDOW;
    s->in.alloc = m->o.alloc;
    s->in.max = HFSBI_MUX_WINDOW;
    s->io.fd = *fd;
    s->io.fn = hfsbi_mux_stream_ready;
    s->next = m->streams;
    m->streams = s;
    m->count++;
    *fd = -1;
    return true;
}

/* ---- frames of the peer ---- */

/* Begins the test of a stream, where there is one. */
static void hfsbi_mux_begin(hfsbi_mux *m, hfsbi_mux_stream *s) {
    if (!m->o.prove) {
        hfsbi_mux_stream_want(s);
        return;
    }
    s->state = HFSBI_MUX_STREAM_NEW;
    s->proof = hfsbi_array(&m->o.alloc, m->o.proof_room, 1);
    if (!s->proof) {
        (void)hfsbi_mux_stream_end(s);
        return;
    }
    memset(s->proof, 0, m->o.proof_room);
    hfsbi_mux_stream_prove(s);
}

/* OPEN: only a server accepts, and numbers only grow. False also when the
   server has gone. */
static bool hfsbi_mux_accept(hfsbi_mux *m, unsigned long id) {
    hfsb_status st = HFSB_BUSY;
    int         fd = -1;
    if (!m->o.accept || id <= m->last_id) return false;
    m->last_id = id;
    if (m->count < HFSBI_MUX_STREAMS) st = m->o.accept(m->o.user, &fd);
    if (st == HFSB_CONNECT) return false;
    if (st != HFSB_OK || !hfsbi_mux_add(m, &fd, id)) {
        hfsbi_close(&fd);
        /* the END that answers ours finds no stream: see hfsbi_mux_stray() */
        hfsbi_mux_put(m, HFSBI_MUX_END, 0, id);
        return true;
    }
    hfsbi_mux_begin(m, m->streams);
    return true;
}

static bool hfsbi_mux_data(hfsbi_mux_stream *s, hfsb_str data) {
    size_t held = s->in.len - s->in_at;
    if (s->state == HFSBI_MUX_STREAM_REMOTE_END) return false;
    if (s->state == HFSBI_MUX_STREAM_LOCAL_END) return true;
    if (data.len > HFSBI_MUX_WINDOW - held - s->owed) return false;
    if (s->in_at) {
        memmove(s->in.ptr, s->in.ptr + s->in_at, held);
        hfsb_buf_truncate(&s->in, held);
        s->in_at = 0;
    }
    if (hfsb_buf_append(&s->in, data) != HFSB_OK)
        (void)hfsbi_mux_stream_end(s);
    else if (s->state == HFSBI_MUX_STREAM_OPEN && !hfsbi_mux_stream_flush(s))
        hfsbi_mux_stream_want(s);
    return true;
}

static bool hfsbi_mux_credit(hfsbi_mux_stream *s, unsigned long n) {
    if (n > HFSBI_MUX_WINDOW - s->credit) return false;
    s->credit += n;
    hfsbi_mux_stream_want(s);
    return true;
}

static bool hfsbi_mux_remote_end(hfsbi_mux_stream *s) {
    if (s->state == HFSBI_MUX_STREAM_REMOTE_END) return false;
    if (s->state == HFSBI_MUX_STREAM_LOCAL_END) {
        hfsbi_mux_stream_free(s);
        return true;
    }
    if (s->state == HFSBI_MUX_STREAM_NEW) hfsb_buf_truncate(&s->in, 0);
    s->state = HFSBI_MUX_STREAM_REMOTE_END;
    if (!hfsbi_mux_stream_flush(s)) hfsbi_mux_stream_want(s);
    return true;
}

/* True for a frame of a stream that was refused: its client may not know that
   yet. */
static bool hfsbi_mux_stray(const hfsbi_mux *m, const hfsbi_mux_frame *f) {
    return m->o.accept && f->stream <= m->last_id;
}

/* False when the frame is invalid. */
static bool hfsbi_mux_take(hfsbi_mux *m, const hfsbi_mux_frame *f) {
    hfsbi_mux_stream *s = hfsbi_mux_find(m, f->stream);
    if (f->kind == HFSBI_MUX_BYE) {
        hfsbi_mux_over(m, HFSBI_MUX_SAID_BYE);
        return true;
    }
    if (f->kind == HFSBI_MUX_OPEN) return !s && hfsbi_mux_accept(m, f->stream);
    if (!s) return hfsbi_mux_stray(m, f);
    if (f->kind == HFSBI_MUX_DATA) return hfsbi_mux_data(s, f->data);
    if (f->kind == HFSBI_MUX_CREDIT) return hfsbi_mux_credit(s, f->n);
    return hfsbi_mux_remote_end(s);
}

HFSBI_FN void hfsbi_mux_feed(hfsbi_mux *m, hfsb_str in) {
    hfsbi_mux_frame frame;
    size_t          used;
    while (m->end == HFSBI_MUX_RUNS) {
        hfsbi_mux_event event =
            hfsbi_mux_next(&m->reader, in, &frame, &used, NULL);
        if (event == HFSBI_MUX_MORE) return;
        if (event == HFSBI_MUX_BAD || !hfsbi_mux_take(m, &frame))
            hfsbi_mux_over(m, HFSBI_MUX_BROKE);
        in = hfsb_str_slice(in, used, in.len);
    }
}

/* ---- the pipe ---- */

static void hfsbi_mux_readable(hfsbi_io *io, unsigned events) {
    hfsbi_mux *m = hfsbi_mux_of_in(io);
    ssize_t    n = hfsbi_read(io->fd, m->room, sizeof m->room);
    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    m->heard = hfsb_clock_ms();
    if (n <= 0) hfsbi_mux_over(m, HFSBI_MUX_BROKE);
    else hfsbi_mux_feed(m, hfsb_str_make(m->room, (size_t)n));
}

/* Resumes reading the sockets. */
static void hfsbi_mux_resume(hfsbi_mux *m) {
    hfsbi_mux_stream *s = m->streams, *next;
    for (; s && m->end == HFSBI_MUX_RUNS; s = next) {
        next = s->next;
        hfsbi_mux_stream_want(s);
    }
}

static void hfsbi_mux_writable(hfsbi_io *io, unsigned events) {
    hfsbi_mux *m = hfsbi_mux_of_out(io);
    bool       full = hfsbi_mux_waiting(m) >= HFSBI_MUX_OUT;
    ssize_t    n;
    (void)events;
    if (!m->line_over && hfsb_buf_append_byte(&m->queue, '\n') == HFSB_OK)
        m->line_over = true;
    n = hfsbi_write(io->fd, m->queue.ptr + m->queue_at, hfsbi_mux_waiting(m));
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n < 0) {
        hfsbi_mux_over(m, HFSBI_MUX_BROKE);
        return;
    }
    m->queue_at += (size_t)n;
    if (n) m->sent = hfsb_clock_ms();
    if (!hfsbi_mux_waiting(m)) (void)hfsbi_loop_io(m->o.loop, &m->out, 0);
    if (full && hfsbi_mux_waiting(m) < HFSBI_MUX_OUT) hfsbi_mux_resume(m);
}

/* Sends a sign of life after silence on this side; ends the pipe after silence
   of the peer, unless this process was stopped and bytes are waiting. */
static void hfsbi_mux_tick(hfsbi_timer *timer) {
    hfsbi_mux *m =
        (hfsbi_mux *)(void *)((char *)timer - offsetof(hfsbi_mux, timer));
    long long now = hfsb_clock_ms(), at = m->sent + m->o.beat_ms;
    if (now - m->heard >= m->o.lost_ms)
        hfsbi_mux_readable(&m->in, HFSBI_IO_READ);
    if (now - m->heard >= m->o.lost_ms) hfsbi_mux_over(m, HFSBI_MUX_BROKE);
    if (m->end != HFSBI_MUX_RUNS) return;
    if (at <= now) {
        if (!hfsbi_mux_waiting(m)) hfsbi_mux_send(m); /* its newline */
        at = now + m->o.beat_ms;
    }
    if (at > m->heard + m->o.lost_ms) at = m->heard + m->o.lost_ms;
    if (m->end == HFSBI_MUX_RUNS) hfsbi_loop_timer(m->o.loop, timer, at);
}

/* ---- both sides ---- */

HFSBI_FN hfsb_status hfsbi_mux_connect(hfsbi_mux *m, int *fd, hfsb_err *err) {
    int pair[2];
    if (m->end != HFSBI_MUX_RUNS)
        return hfsbi_fail(err, HFSB_CONNECT, 0, "The pipe is broken.");
    if (m->count == HFSBI_MUX_STREAMS || m->last_id == 0xFFFFFFFFul)
        return hfsbi_fail(err, HFSB_BUSY, 0,
                          "A pipe carries at most %d connections at once.",
                          (int)HFSBI_MUX_STREAMS);
    if (!hfsbi_socket_pair(pair))
        return hfsbi_fail_os(err, errno, "Cannot open a connection");
    if (!hfsbi_mux_add(m, &pair[0], m->last_id + 1)) {
        hfsbi_close(&pair[0]);
        hfsbi_close(&pair[1]);
        return hfsbi_fail_status(err, HFSB_NOMEM, "connection");
    }
    *fd = pair[1];
    hfsbi_mux_put(m, HFSBI_MUX_OPEN, 0, ++m->last_id);
    hfsbi_mux_stream_want(m->streams);
    return hfsbi_ok(err);
}

HFSBI_FN bool hfsbi_mux_runs(const hfsbi_mux *m) {
    return m->end == HFSBI_MUX_RUNS;
}

HFSBI_FN void hfsbi_mux_bye(hfsbi_mux *m) {
    hfsbi_mux_put(m, HFSBI_MUX_BYE, 0, 0);
}

HFSBI_FN void hfsbi_mux_close(hfsbi_mux *m) {
    hfsb_alloc alloc;
    if (!m) return;
    alloc = m->o.alloc;
    hfsbi_loop_timer_clear(m->o.loop, &m->timer);
    hfsbi_loop_io_forget(m->o.loop, &m->in);
    hfsbi_loop_io_forget(m->o.loop, &m->out);
    while (m->streams) hfsbi_mux_stream_free(m->streams);
    hfsbi_close(&m->in.fd);
    hfsbi_close(&m->out.fd);
    hfsb_buf_free(&m->queue);
    hfsbi_array_free(&alloc, m, 1, sizeof *m);
}

HFSBI_FN hfsb_status hfsbi_mux_open(const hfsbi_mux_opts *opts, int *in,
                                    int *out, hfsbi_mux **mux, hfsb_err *err) {
    hfsbi_mux *m = (hfsbi_mux *)hfsbi_array(&opts->alloc, 1, sizeof *m);
    *mux = NULL;
    if (!m) return hfsbi_fail_status(err, HFSB_NOMEM, "pipe");
    memset(m, 0, sizeof *m);
    m->o = *opts;
    if (m->o.beat_ms <= 0) m->o.beat_ms = HFSBI_MUX_BEAT_MS;
    if (m->o.lost_ms <= 0)
        m->o.lost_ms =
            opts->accept ? HFSBI_MUX_SERVER_LOST_MS : HFSBI_MUX_LOST_MS;
    m->heard = m->sent = hfsb_clock_ms();
    m->timer.fn = hfsbi_mux_tick;
    m->queue.alloc = opts->alloc;
    m->line_over = true;
    m->in.fd = *in;
    m->in.fn = hfsbi_mux_readable;
    m->out.fd = *out;
    m->out.fn = hfsbi_mux_writable;
    *in = *out = -1;
    if (!hfsbi_set_nonblocking(m->in.fd) ||
        !hfsbi_set_nonblocking(m->out.fd) ||
        !hfsbi_loop_io(m->o.loop, &m->in, HFSBI_IO_READ) ||
        !hfsbi_loop_io(m->o.loop, &m->out, 0)) {
        hfsbi_mux_close(m);
        return hfsbi_fail(err, HFSB_IO, 0,
                          "Cannot wait for the pipe: it is no pipe, socket or "
                          "terminal.");
    }
    hfsbi_loop_timer(m->o.loop, &m->timer, m->sent + m->o.beat_ms);
    *mux = m;
    return hfsbi_ok(err);
}
