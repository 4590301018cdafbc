/* test_pump.c - one pump of a pipe against a peer that is played here, byte by
   byte: signs of life and silence, programs that leave, peers that do not read.
   Two pumps that speak with each other are in test_pipe.c. */
#include "../support/t_net.h"
#include <signal.h>

enum { SOON_MS = 20000 }; /* for what must happen */

typedef struct solo {
    hfsbi_loop   *loop;
    hfsbi_mux    *mux;
    hfsbi_mux_end end;
    int           to, from; /* the peer's ends of the pipe */
    int           accepted; /* the server's end of a stream; -1: none */
    bool          refuse;
} solo;

static void note_end(void *user, hfsbi_mux_end end) {
    ((solo *)user)->end = end;
}

static hfsb_status accept_one(void *user, int *fd) {
    solo *s = (solo *)user;
    int   fds[2];
    if (s->refuse || s->accepted >= 0 || !hfsbi_socket_pair(fds))
        return HFSB_BUSY;
    s->accepted = fds[1];
    *fd = fds[0];
    return HFSB_OK;
}

static void begin(solo *s, bool server, long long beat_ms, long long lost_ms) {
    hfsbi_mux_opts o = HFSB_INIT;
    int            up[2], down[2];
    memset(s, 0, sizeof *s);
    s->accepted = -1;
    TN_MUST(hfsbi_pipe(up) && hfsbi_pipe(down));
    TN_MUST(hfsbi_loop_open(&o.alloc, 0, true, &s->loop, NULL) == HFSB_OK);
    hfsbi_loop_lock(s->loop);
    o.loop = s->loop;
    o.user = s;
    o.over = note_end;
    if (server) o.accept = accept_one;
    o.beat_ms = beat_ms;
    o.lost_ms = lost_ms;
    TN_MUST(hfsbi_mux_open(&o, &down[0], &up[1], &s->mux, NULL) == HFSB_OK);
    s->from = up[0];
    s->to = down[1];
    TN_MUST(hfsbi_set_nonblocking(s->from) && hfsbi_set_nonblocking(s->to));
}

static void finish(solo *s) {
    hfsbi_mux_close(s->mux);
    hfsbi_close(&s->to);
    hfsbi_close(&s->from);
    hfsbi_close(&s->accepted);
    hfsbi_loop_unlock(s->loop);
    hfsbi_loop_close(s->loop);
}

/* Turns the loop, and appends what it sends to *out. */
static void turns(solo *s, int n, hfsb_buf *out) {
    static char room[65536];
    ssize_t     got;
    while (n--) {
        hfsbi_loop_turn(s->loop, 0);
        while (out && (got = read(s->from, room, sizeof room)) > 0)
            T_CHECK(hfsb_buf_append(out, hfsb_str_make(room, (size_t)got)) ==
                    HFSB_OK);
    }
}

/* The bytes of data in the frames of *sent; *ended: an END was among them. */
static size_t data_in(const hfsb_buf *sent, bool *ended) {
    hfsbi_mux_reader reader = HFSB_INIT;
    hfsbi_mux_frame  frame;
    hfsb_str         in = hfsb_buf_str(sent);
    size_t           used, total = 0;
    *ended = false;
    while (hfsbi_mux_next(&reader, in, &frame, &used, NULL) ==
           HFSBI_MUX_FRAME) {
        if (frame.kind == HFSBI_MUX_DATA) total += frame.data.len;
        if (frame.kind == HFSBI_MUX_END) *ended = true;
        in = hfsb_str_slice(in, used, in.len);
    }
    return total;
}

/* Writes to a socket of the pump until it takes no more; returns how much. */
static size_t fill(solo *s, int fd, hfsb_buf *sent) {
    static char bytes[65536];
    size_t      total = 0;
    int         quiet = 0;
    while (quiet++ < 50) {
        ssize_t n = write(fd, bytes, sizeof bytes);
        if (n > 0) total += (size_t)n;
        if (n > 0) quiet = 0;
        turns(s, 2, sent);
    }
    return total;
}

/* ---- life ---- */

static void an_idle_pipe_carries_signs_of_life(void) {
    solo      s;
    hfsb_buf  sent = HFSB_INIT;
    long long until = hfsb_clock_ms() + SOON_MS;
    begin(&s, false, 10, 60000);
    while (sent.len < 4 && hfsb_clock_ms() < until) {
        hfsbi_loop_turn(s.loop, 20);
        turns(&s, 1, &sent);
    }
    T_CHECK(sent.len >= 4 && !memcmp(sent.ptr, "\n\n\n\n", 4));
    T_CHECK(s.end == HFSBI_MUX_RUNS);
    hfsb_buf_free(&sent);
    finish(&s);
}

static void a_silent_pipe_is_over(void) {
    int server;
    for (server = 0; server < 2; server++) {
        solo      s;
        long long began = hfsb_clock_ms();
        begin(&s, server, 20, 100);
        while (s.end == HFSBI_MUX_RUNS && hfsb_clock_ms() < began + SOON_MS)
            hfsbi_loop_turn(s.loop, 20);
        T_CHECK(s.end == HFSBI_MUX_BROKE);
        T_CHECK(hfsb_clock_ms() - began >= 100);
        finish(&s);
    }
}

/* Also where this process was stopped for longer than that. */
static void a_byte_in_time_keeps_the_pipe(void) {
    solo      s;
    long long until = hfsb_clock_ms() + 400;
    begin(&s, false, 20, 100);
    while (hfsb_clock_ms() < until) {
        T_CHECK(write(s.to, "\n", 1) == 1);
        turns(&s, 1, NULL);
        (void)poll(NULL, 0, 10);
    }
    T_CHECK(s.end == HFSBI_MUX_RUNS);
    finish(&s);
}

/* ---- programs that leave ---- */

static void a_program_that_leaves_without_credit_ends_its_stream(void) {
    solo     s;
    hfsb_buf sent = HFSB_INIT;
    bool     ended;
    int      fd = -1;
    begin(&s, false, 0, 0);
    T_CHECK(hfsbi_mux_connect(s.mux, &fd, NULL) == HFSB_OK);
    T_CHECK(fill(&s, fd, &sent) > HFSBI_MUX_WINDOW);
    T_CHECK(data_in(&sent, &ended) == HFSBI_MUX_WINDOW && !ended);
    hfsbi_close(&fd);
    turns(&s, 8, &sent);
    T_CHECK(data_in(&sent, &ended) == HFSBI_MUX_WINDOW && ended);
    T_CHECK(s.end == HFSBI_MUX_RUNS);
    hfsb_buf_free(&sent);
    finish(&s);
}

/* A server's last bytes are for its client, who gives credit later. */
static void a_server_that_closes_without_credit_loses_nothing(void) {
    solo     s;
    hfsb_buf sent = HFSB_INIT;
    char     head[HFSBI_MUX_HEAD];
    size_t   total, seen;
    bool     ended;
    int      i;
    begin(&s, true, 0, 0);
    hfsbi_mux_write_head(HFSBI_MUX_OPEN, 0, 1, head);
    hfsbi_mux_feed(s.mux, hfsb_str_make(head, sizeof head));
    T_CHECK(s.accepted >= 0);
    total = fill(&s, s.accepted, &sent);
    T_CHECK(total > HFSBI_MUX_WINDOW);
    hfsbi_close(&s.accepted);
    turns(&s, 8, &sent);
    seen = data_in(&sent, &ended);
    T_CHECK(seen == HFSBI_MUX_WINDOW && !ended);
    hfsbi_mux_write_head(HFSBI_MUX_CREDIT, HFSBI_MUX_WINDOW, 1, head);
    for (i = 0; i < 100 && !ended; i++) {
        hfsbi_mux_feed(s.mux, hfsb_str_make(head, sizeof head));
        turns(&s, 64, &sent);
        seen = data_in(&sent, &ended);
    }
    T_CHECK(seen == total && ended);
    hfsb_buf_free(&sent);
    finish(&s);
}

/* ---- peers that do not read ---- */

static void a_peer_that_asks_and_does_not_read_ends_the_pipe(void) {
    solo          s;
    char          head[HFSBI_MUX_HEAD];
    unsigned long id = 0;
    begin(&s, true, 0, 0);
    s.refuse = true;
    while (s.end == HFSBI_MUX_RUNS && id < 1000000) {
        hfsbi_mux_write_head(HFSBI_MUX_OPEN, 0, ++id, head);
        hfsbi_mux_feed(s.mux, hfsb_str_make(head, sizeof head));
        if (id % 1000 == 0) turns(&s, 1, NULL);
    }
    T_CHECK(s.end == HFSBI_MUX_BROKE);
    T_CHECK(id > 100000 && id < 300000); /* 1 MiB and what the pipe holds */
    finish(&s);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    T_RUN(an_idle_pipe_carries_signs_of_life);
    T_RUN(a_silent_pipe_is_over);
    T_RUN(a_byte_in_time_keeps_the_pipe);
    T_RUN(a_program_that_leaves_without_credit_ends_its_stream);
    T_RUN(a_server_that_closes_without_credit_loses_nothing);
    T_RUN(a_peer_that_asks_and_does_not_read_ends_the_pipe);
    return T_END();
}
