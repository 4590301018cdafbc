/* test_poller.c - descriptors of the event loop: which events are reported. */
#include "../support/t_loop.h"

static void pipe_events_are_level_triggered(void) {
    hfsbi_loop *loop = loop_open(0);
    int         fds[2];
    seen_io     r, w;
    if (pipe(fds) != 0) abort();
    seen_open(&r, loop, fds[0], HFSBI_IO_READ);
    seen_open(&w, loop, fds[1], HFSBI_IO_WRITE);
    turns(loop, 3);
    T_CHECK(r.calls == 0 && w.calls == 3 && w.events == HFSBI_IO_WRITE);
    put(fds[1]);
    turns(loop, 3);
    T_CHECK(r.calls == 3 && r.events == HFSBI_IO_READ);
    r.drains = true;
    turns(loop, 3);
    T_CHECK(r.calls == 4);
    T_CHECK(hfsbi_loop_io(loop, &w.io, 0)); /* no events asked for */
    w.calls = 0;
    turns(loop, 3);
    T_CHECK(w.calls == 0);
    hfsbi_loop_io_forget(loop, &w.io);
    hfsbi_loop_io_forget(loop, &w.io); /* twice is quiet */
    put(fds[1]);
    hfsbi_loop_io_forget(loop, &r.io);
    turns(loop, 2);
    T_CHECK(r.calls == 4);
    close(fds[0]);
    close(fds[1]);
    hfsbi_loop_close(loop);
}

static void a_descriptor_that_cannot_be_watched_is_refused(void) {
    hfsbi_loop *loop = loop_open(0);
    hfsbi_io    io = HFSB_INIT;
    int         fds[2];
    io.fn = seen_fn;
    if (pipe(fds) != 0) abort();
    close(fds[0]);
    close(fds[1]);
    io.fd = fds[0];
#if defined(HFSBI_EPOLL) || defined(HFSBI_KQUEUE)
    T_CHECK(!hfsbi_loop_io(loop, &io, HFSBI_IO_READ));
    T_CHECK(!io.known);
#endif
    hfsbi_loop_io_forget(loop, &io);
    loop_turn(loop, 0);
    hfsbi_loop_close(loop);
}

/* The peer ends its side while we have unread bytes and do not read. */
static void eof_is_reported_without_reading(void) {
    hfsbi_loop *loop = loop_open(0);
    int         fds[2];
    seen_io     s;
    long long   begin;
    pair_open(fds);
    seen_open(&s, loop, fds[0], HFSBI_IO_EOF);
    s.drop = HFSBI_IO_EOF;
    put(fds[1]);
    turns(loop, 3);
    T_CHECK(s.calls == 0); /* bytes are not asked for */
    T_CHECK(shutdown(fds[1], SHUT_WR) == 0);
    turns(loop, 5);
    T_CHECK(s.calls == 1 && s.events == HFSBI_IO_EOF);
    begin = hfsb_clock_ms(); /* and now it is quiet: no turn ends early */
    loop_turn(loop, 60);
    T_CHECK(hfsb_clock_ms() - begin >= 59);
    /* EOF and READ together: only READ is reported */
    T_CHECK(hfsbi_loop_io(loop, &s.io, HFSBI_IO_READ | HFSBI_IO_EOF));
    s.events = 0;
    turns(loop, 1);
    T_CHECK(s.events == HFSBI_IO_READ);
    hfsbi_loop_io_forget(loop, &s.io);
    close(fds[0]);
    close(fds[1]);
    hfsbi_loop_close(loop);
}

/* GONE is reported once, whatever events were asked for, and never
   makes the loop spin. */
static void gone_connection_is_reported_once(unsigned want,
                                                   unsigned drop) {
    hfsbi_loop *loop = loop_open(0);
    int         fds[2], i;
    seen_io     s;
    long long   begin;
    pair_open(fds);
    seen_open(&s, loop, fds[0], want);
    s.drop = drop;
    close(fds[1]);
    for (i = 0; i < 3 && s.calls == 0; i++) loop_turn(loop, 1000);
    T_CHECK(s.calls == 1 && (s.events & HFSBI_IO_GONE));
    begin = hfsb_clock_ms();
    loop_turn(loop, 60);
    T_CHECK(hfsb_clock_ms() - begin >= 59);
    T_CHECK(s.calls == 1);
    T_CHECK(hfsbi_loop_io(loop, &s.io, 0)); /* asked again for nothing */
    T_CHECK(hfsbi_loop_io(loop, &s.io, HFSBI_IO_EOF));
    turns(loop, 3);
    T_CHECK(s.calls == 1);
    T_CHECK(hfsbi_loop_io(loop, &s.io, HFSBI_IO_READ));
    s.events = 0;
    turns(loop, 1);
    T_CHECK(s.events & HFSBI_IO_READ);
    hfsbi_loop_io_forget(loop, &s.io);
    close(fds[0]);

    /* the same object for another connection hears of that one's end */
    pair_open(fds);
    s.calls = 0;
    s.drop = 0;
    s.io.fd = fds[0];
    T_CHECK(hfsbi_loop_io(loop, &s.io, 0));
    turns(loop, 2);
    T_CHECK(s.calls == 0);
    close(fds[1]);
    turns(loop, 3);
    T_CHECK(s.calls == 1);
    hfsbi_loop_io_forget(loop, &s.io);
    close(fds[0]);
    hfsbi_loop_close(loop);
}

static void gone_is_reported_once(void) {
    gone_connection_is_reported_once(0, 0);
    gone_connection_is_reported_once(HFSBI_IO_EOF, 0);
    gone_connection_is_reported_once(HFSBI_IO_EOF, HFSBI_IO_EOF);
    gone_connection_is_reported_once(HFSBI_IO_READ, HFSBI_IO_READ);
    gone_connection_is_reported_once(
        HFSBI_IO_READ | HFSBI_IO_WRITE, HFSBI_IO_READ | HFSBI_IO_WRITE);
}

/* Two descriptors are ready in one turn; the first one called removes the
   events of the other, which is then not called. */
static void forgotten_descriptors_get_no_events(void) {
    hfsbi_loop *loop = loop_open(0);
    int         a[2], b[2], way;
    seen_io     x, y;
    for (way = 0; way < 3; way++) {
        pair_open(a);
        pair_open(b);
        seen_open(&x, loop, a[0], HFSBI_IO_READ);
        seen_open(&y, loop, b[0], HFSBI_IO_READ);
        put(a[1]);
        put(b[1]);
        if (way == 0) x.forgets = &y, y.forgets = &x;
        if (way == 1) x.mutes = &y, y.mutes = &x;
        if (way == 2) x.reuses = &y, y.reuses = &x;
        loop_turn(loop, 1000);
        T_CHECK(x.calls + y.calls == 1);
        loop_turn(loop, 0);
        if (way < 2) T_CHECK(x.calls + y.calls == 2);
        if (way == 2) /* the next turn finds its events again */
            T_CHECK(x.calls + y.calls == 2);
        hfsbi_loop_io_forget(loop, &x.io);
        hfsbi_loop_io_forget(loop, &y.io);
        close(a[0]);
        close(a[1]);
        close(b[0]);
        close(b[1]);
    }
    hfsbi_loop_close(loop);
}

/* The first one called frees all others: a sanitiser reports later uses. */
typedef struct crowd {
    seen_io    *members[600];
    int         peers[600];
    hfsbi_loop *loop;
    size_t      calls;
} crowd;

static crowd *crowd_of_test; /* the test's own */

static void crowd_fn(hfsbi_io *io, unsigned events) {
    crowd *all = crowd_of_test;
    size_t i;
    (void)events;
    all->calls++;
    for (i = 0; i < 600; i++) {
        seen_io *s = all->members[i];
        if (!s || (&s->io == io && all->calls == 1)) continue;
        hfsbi_loop_io_forget(all->loop, &s->io);
        close(s->io.fd);
        close(all->peers[i]);
        memset(s, 0x5a, sizeof *s);
        free(s);
        all->members[i] = NULL;
    }
}

static void one_callback_may_close_all_descriptors(void) {
    crowd         all;
    struct rlimit limit;
    size_t        i, left = 0;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < 1300) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < 1300) {
            t_skipped++;
            return;
        }
    }
    memset(&all, 0, sizeof all);
    all.loop = loop_open(0);
    crowd_of_test = &all;
    for (i = 0; i < 600; i++) {
        int fds[2];
        pair_open(fds);
        all.peers[i] = fds[1];
        all.members[i] = (seen_io *)malloc(sizeof(seen_io));
        if (!all.members[i]) abort();
        seen_open(all.members[i], all.loop, fds[0], HFSBI_IO_READ);
        all.members[i]->io.fn = crowd_fn;
        put(fds[1]);
    }
    loop_turn(all.loop, 1000);
    T_CHECK(all.calls == 1);
    for (i = 0; i < 600; i++) left += all.members[i] != NULL;
    T_CHECK(left == 1);
    loop_turn(all.loop, 1000); /* and the last one itself, in its fn */
    T_CHECK(all.calls == 2);
    for (i = 0; i < 600; i++) T_CHECK(!all.members[i]);
    loop_turn(all.loop, 0);
    hfsbi_loop_close(all.loop);
}

static void descriptors_are_closed_on_exec(void) {
    hfsbi_loop *loop;
    int         fd, before[64] = HFSB_INIT;
    for (fd = 0; fd < 64; fd++) before[fd] = fcntl(fd, F_GETFD) >= 0;
    loop = loop_open(0);
    for (fd = 0; fd < 64; fd++)
        if (!before[fd] && fcntl(fd, F_GETFD) >= 0)
            T_CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    hfsbi_loop_close(loop);
    for (fd = 0; fd < 64; fd++)
        T_CHECK(before[fd] == (fcntl(fd, F_GETFD) >= 0));
}

int main(void) {
    T_RUN(pipe_events_are_level_triggered);
    T_RUN(a_descriptor_that_cannot_be_watched_is_refused);
    T_RUN(eof_is_reported_without_reading);
    T_RUN(gone_is_reported_once);
    T_RUN(forgotten_descriptors_get_no_events);
    T_RUN(one_callback_may_close_all_descriptors);
    T_RUN(descriptors_are_closed_on_exec);
    return T_END();
}
