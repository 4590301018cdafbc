/* t_loop.h - helpers for tests of the event loop. */
#ifndef T_LOOP_H
#define T_LOOP_H
#define T_SERVER
#include "t.h"

HFSBI_UNUSED static hfsbi_loop *loop_open(size_t threads) {
    hfsbi_loop *loop = NULL;
    hfsb_alloc  alloc = HFSB_INIT;
    hfsb_err    err;
    T_CHECK(hfsbi_loop_open(&alloc, threads, threads == 0, &loop, &err) ==
            HFSB_OK);
    if (!loop) abort();
    return loop;
}

HFSBI_UNUSED static void loop_turn(hfsbi_loop *loop, long long wait_ms) {
    hfsbi_loop_lock(loop);
    hfsbi_loop_turn(loop, wait_ms);
    hfsbi_loop_unlock(loop);
}

/* ---- descriptors ---- */

typedef struct seen_io {
    hfsbi_io        io; /* first */
    hfsbi_loop     *loop;
    unsigned        events; /* all that were reported */
    size_t          calls;
    unsigned        drop;    /* no longer asked for once reported */
    struct seen_io *forgets; /* in its fn */
    struct seen_io *mutes;   /* asks for nothing of that one in its fn */
    struct seen_io *reuses;  /* forgets that one and sets it again */
    bool            drains;
} seen_io;

HFSBI_UNUSED static void seen_fn(hfsbi_io *io, unsigned events) {
    seen_io *s = (seen_io *)(void *)io;
    char     bytes[256];
    s->events |= events;
    s->calls++;
    if (s->drains) T_CHECK(read(io->fd, bytes, sizeof bytes) >= 0);
    if (s->forgets) hfsbi_loop_io_forget(s->loop, &s->forgets->io);
    if (s->mutes) T_CHECK(hfsbi_loop_io(s->loop, &s->mutes->io, 0));
    if (s->reuses) {
        hfsbi_loop_io_forget(s->loop, &s->reuses->io);
        T_CHECK(hfsbi_loop_io(s->loop, &s->reuses->io, HFSBI_IO_READ));
    }
    if (s->drop && io->known)
        T_CHECK(hfsbi_loop_io(s->loop, io, io->want & ~s->drop));
}

HFSBI_UNUSED static void seen_open(seen_io *s, hfsbi_loop *loop, int fd,
                                   unsigned want) {
    memset(s, 0, sizeof *s);
    s->io.fd = fd;
    s->io.fn = seen_fn;
    s->loop = loop;
    T_CHECK(hfsbi_loop_io(loop, &s->io, want));
}

HFSBI_UNUSED static void pair_open(int fds[2]) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) abort();
}

HFSBI_UNUSED static void put(int fd) {
    T_CHECK(write(fd, "x", 1) == 1);
}

HFSBI_UNUSED static void turns(hfsbi_loop *loop, int n) {
    while (n-- > 0) loop_turn(loop, 0);
}

/* ---- tasks ---- */

typedef struct count_task {
    hfsbi_task       task; /* first */
    pthread_t        home;
    hfsbi_loop      *loop;
    size_t          *done, *ran; /* ran under the lock */
    size_t          *now, *most; /* that run at once */
    pthread_mutex_t *lock;
    int              nap_ms;
    bool             inside; /* ran in the loop's thread */
    bool             all_blocked;
    size_t           order;
} count_task;

HFSBI_UNUSED static void task_run(hfsbi_task *task) {
    count_task *c = (count_task *)(void *)task;
    sigset_t    mask;
    pthread_mutex_lock(c->lock);
    *c->ran += 1;
    if (++*c->now > *c->most) *c->most = *c->now;
    pthread_mutex_unlock(c->lock);
    c->inside = pthread_equal(pthread_self(), c->home) != 0;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
    c->all_blocked =
        sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGINT) == 1;
    if (c->nap_ms) (void)poll(NULL, 0, c->nap_ms);
    pthread_mutex_lock(c->lock);
    *c->now -= 1;
    pthread_mutex_unlock(c->lock);
}

HFSBI_UNUSED static void task_done(hfsbi_task *task) {
    count_task *c = (count_task *)(void *)task;
    T_CHECK(pthread_equal(pthread_self(), c->home));
    c->order = *c->done;
    *c->done += 1;
}

typedef struct counters {
    size_t          done, ran, now, most;
    pthread_mutex_t lock;
} counters;

HFSBI_UNUSED static void task_init(count_task *c, counters *all,
                                   hfsbi_loop *loop) {
    memset(c, 0, sizeof *c);
    c->task.run = task_run;
    c->task.done = task_done;
    c->home = pthread_self();
    c->loop = loop;
    c->done = &all->done;
    c->ran = &all->ran;
    c->now = &all->now;
    c->most = &all->most;
    c->lock = &all->lock;
}

HFSBI_UNUSED static void counters_init(counters *all) {
    memset(all, 0, sizeof *all);
    (void)pthread_mutex_init(&all->lock, NULL);
}
#endif
