/* loop.c - an event loop: descriptors, timers, and results of threads.

   A loop is run turn by turn. A turn waits until something happens and then
   calls, in this order,

       io       the fn of each descriptor that is ready
       task     the done of each task that a thread finished or posted
       timer    the fn of each timer that is due

   An io, timer or task is part of its owner's object: the loop links them and
   allocates nothing for them. A called function may change anything, and even
   remove and free others that were found ready in this turn: these are then
   not called. Timers and tasks that are set in a turn are called in the next
   one, so a turn always ends.

   The lock of the loop is held while it calls, and released while it waits. In
   a server one thread turns the loop, and other threads only post tasks. The
   tools of a program that calls them in several threads have a loop of their
   own: there any thread that holds the lock may use the loop, and one of the
   threads that wait turns it for all:

       turn --+-- nobody waits: waits for events, calls, wakes the others
              +-- a thread already waits: waits for the end of its turn

   Two parts follow: the poller, which is the kernel's set of descriptors
   (epoll, kqueue, or a list for poll()), and the loop itself. The threads are
   in pool.c. */
#include "os_private.h"

#define HFSBI_IO_BOTH ((unsigned)HFSBI_IO_READ | (unsigned)HFSBI_IO_WRITE)

enum { HFSBI_POLLER_BATCH = 256 }; /* events found by one wait */

/* ---- the poller ---- */

/* The events that a wait found. They are delivered one by one; `at` is the
   next one. */
typedef struct hfsbi_batch {
    size_t at, count;
#if defined(HFSBI_EPOLL)
    struct epoll_event events[HFSBI_POLLER_BATCH];
#elif defined(HFSBI_KQUEUE)
    struct kevent  events[HFSBI_POLLER_BATCH];
#endif
} hfsbi_batch;

typedef struct hfsbi_poller {
    hfsbi_batch *batch; /* whose events are being delivered, or NULL */
#if defined(HFSBI_EPOLL) || defined(HFSBI_KQUEUE)
    int fd;
#else
    hfsb_alloc     alloc;
    struct pollfd *fds;
    struct pollfd *copy; /* of fds, for poll() */
    hfsbi_io     **ios;  /* NULL: removed since the last wait */
    size_t         length, copied, fds_cap, copy_cap, ios_cap;
#endif
} hfsbi_poller;

/* Each of the three kinds has these functions:

     open, close
     put      adds io to the set or changes its events; false with errno
     drop     removes io from the set
     discard  discards the events of io that are found and not delivered
     prepare  comes before a wait; false when out of memory
     wait     waits for the set; the only one that needs no lock
     found    comes after a wait
     next     the next event; false when all are delivered
     watch    the descriptors that a host must wait for

   HFSBI_POLLER_LIVE: a change of the set affects a wait in progress. */

/* Sleeps instead of a wait that failed, so that the loop does not spin. */
static void hfsbi_poller_nap(int ms) {
    (void)poll(NULL, 0, ms < 0 || ms > 20 ? 20 : ms);
}

#if defined(HFSBI_EPOLL) || defined(HFSBI_KQUEUE)

#define HFSBI_POLLER_LIVE 1

static void hfsbi_poller_close(hfsbi_poller *poller) {
    hfsbi_close(&poller->fd);
}

static size_t hfsbi_poller_watch(const hfsbi_poller *poller, hfsb_watch *list,
                                 size_t max) {
    if (max > 0) {
        list[0].fd = poller->fd;
        list[0].readable = true;
        list[0].writable = false;
    }
    return 1;
}

static bool hfsbi_poller_prepare(hfsbi_poller *poller) {
    (void)poller;
    return true;
}

/* Records the result of a wait in the kernel. */
static void hfsbi_batch_fill(hfsbi_batch *batch, int found, int ms) {
    if (found < 0 && errno != EINTR) hfsbi_poller_nap(ms);
    batch->at = 0;
    batch->count = found > 0 ? (size_t)found : 0;
}

static void hfsbi_poller_found(hfsbi_poller *poller, hfsbi_batch *batch) {
    poller->batch = batch;
}

#endif

#if defined(HFSBI_EPOLL)

static bool hfsbi_poller_open(hfsbi_poller *poller, const hfsb_alloc *alloc) {
    (void)alloc;
    poller->fd = hfsbi_fd_above_2(epoll_create1(EPOLL_CLOEXEC));
    return poller->fd >= 0;
}

static bool hfsbi_poller_put(hfsbi_poller *poller, hfsbi_io *io,
                             unsigned want) {
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = (want & HFSBI_IO_READ ? (uint32_t)EPOLLIN : 0) |
                   (want & HFSBI_IO_WRITE ? (uint32_t)EPOLLOUT : 0) |
                   (want & HFSBI_IO_EOF ? (uint32_t)EPOLLRDHUP : 0);
    event.data.ptr = io;
    return epoll_ctl(poller->fd, io->known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
                     io->fd, &event) == 0;
}

static void hfsbi_poller_drop(hfsbi_poller *poller, hfsbi_io *io) {
    struct epoll_event unused; /* kernels before 2.6.9 want one */
    memset(&unused, 0, sizeof unused);
    (void)epoll_ctl(poller->fd, EPOLL_CTL_DEL, io->fd, &unused);
}

static void hfsbi_poller_discard(hfsbi_poller *poller, const hfsbi_io *io) {
    hfsbi_batch *batch = poller->batch;
    size_t       i;
    for (i = batch ? batch->at : 0; batch && i < batch->count; i++)
        if (batch->events[i].data.ptr == io) batch->events[i].data.ptr = NULL;
}

static void hfsbi_poller_wait(const hfsbi_poller *poller, hfsbi_batch *batch,
                              int ms) {
    hfsbi_batch_fill(
        batch, epoll_wait(poller->fd, batch->events, HFSBI_POLLER_BATCH, ms),
        ms);
}

static bool hfsbi_poller_next(hfsbi_poller *poller, hfsbi_io **io,
                              unsigned *events) {
    hfsbi_batch *batch = poller->batch;
    while (batch->at < batch->count) {
        const struct epoll_event *event = &batch->events[batch->at++];
        uint32_t                  found = event->events;
        *io = (hfsbi_io *)event->data.ptr;
        if (!*io) continue;
        *events =
            (found & EPOLLIN ? (unsigned)HFSBI_IO_READ : 0) |
            (found & EPOLLOUT ? (unsigned)HFSBI_IO_WRITE : 0) |
            (found & EPOLLRDHUP ? (unsigned)HFSBI_IO_EOF : 0) |
            (found & (EPOLLERR | EPOLLHUP) ? (unsigned)HFSBI_IO_GONE : 0);
        return true;
    }
    return false;
}

#elif defined(HFSBI_KQUEUE)

/* The filters of an io, in hfsbi_io.place. */
enum {
    HFSBI_FILTER_READ = 1,
    HFSBI_FILTER_END = 2, /* the read filter as well, but only for its end */
    HFSBI_FILTER_WRITE = 4
};

static bool hfsbi_poller_open(hfsbi_poller *poller, const hfsb_alloc *alloc) {
    (void)alloc;
    poller->fd = hfsbi_fd_above_2(kqueue());
    return poller->fd >= 0 && fcntl(poller->fd, F_SETFD, FD_CLOEXEC) == 0;
}

static bool hfsbi_poller_filter(hfsbi_poller *poller, hfsbi_io *io, int filter,
                                int flags, unsigned fflags) {
    struct kevent change;
    EV_SET(&change, (uintptr_t)io->fd, (short)filter, (unsigned short)flags,
           fflags, fflags ? INT_MAX : 0, (void *)io);
    return kevent(poller->fd, &change, 1, NULL, 0, NULL) == 0;
}

/* The read filter reports the end, whatever is asked for: each change once
   (EV_CLEAR), and where the kernel supports it, not for mere bytes. */
static bool hfsbi_poller_put(hfsbi_poller *poller, hfsbi_io *io,
                             unsigned want) {
    size_t now =
        (want & HFSBI_IO_READ ? HFSBI_FILTER_READ : HFSBI_FILTER_END) |
        (want & HFSBI_IO_WRITE ? (size_t)HFSBI_FILTER_WRITE : 0);
    size_t before = io->known ? io->place : 0, changed = now ^ before;
    bool ok = true;
    if (before & changed & (HFSBI_FILTER_READ | HFSBI_FILTER_END))
        (void)hfsbi_poller_filter(poller, io, EVFILT_READ, EV_DELETE, 0);
    if (before & changed & HFSBI_FILTER_WRITE)
        (void)hfsbi_poller_filter(poller, io, EVFILT_WRITE, EV_DELETE, 0);
    if (now & HFSBI_FILTER_READ & changed)
        ok = hfsbi_poller_filter(poller, io, EVFILT_READ, EV_ADD, 0);
    else if (now & HFSBI_FILTER_END)
        /* again if already set, so that an earlier end is reported */
        ok = hfsbi_poller_filter(poller, io, EVFILT_READ, EV_ADD | EV_CLEAR,
                                 NOTE_LOWAT);
    if (ok && (now & HFSBI_FILTER_WRITE & changed))
        ok = hfsbi_poller_filter(poller, io, EVFILT_WRITE, EV_ADD, 0);
    io->place = now;
    return ok;
}

static void hfsbi_poller_drop(hfsbi_poller *poller, hfsbi_io *io) {
    (void)hfsbi_poller_filter(poller, io, EVFILT_READ, EV_DELETE, 0);
    (void)hfsbi_poller_filter(poller, io, EVFILT_WRITE, EV_DELETE, 0);
}

static void hfsbi_poller_discard(hfsbi_poller *poller, const hfsbi_io *io) {
    hfsbi_batch *batch = poller->batch;
    size_t i;
    for (i = batch ? batch->at : 0; batch && i < batch->count; i++)
        if ((const void *)batch->events[i].udata == (const void *)io)
            batch->events[i].udata = NULL;
}

static void hfsbi_poller_wait(const hfsbi_poller *poller, hfsbi_batch *batch,
                              int ms) {
    struct timespec time = HFSB_INIT;
    time.tv_sec = ms / 1000;
    time.tv_nsec = (long)(ms % 1000) * 1000000L;
    hfsbi_batch_fill(batch,
                     kevent(poller->fd, NULL, 0, batch->events,
                            HFSBI_POLLER_BATCH, ms < 0 ? NULL : &time),
                     ms);
}

/* kqueue reports an end, but not whether of one side or of both; poll() does.
   On macOS it reports nothing unless it is asked for something, and with POLLIN
   the end of one side looks like that of both. */
static unsigned hfsbi_poller_end(const hfsbi_io *io) {
    struct pollfd one = HFSB_INIT;
    one.fd = io->fd;
    one.events = POLLOUT;
    (void)poll(&one, 1, 0);
    return (unsigned)HFSBI_IO_EOF |
           (one.revents & (POLLHUP | POLLERR | POLLNVAL)
                ? (unsigned)HFSBI_IO_GONE
                : 0);
}

static bool hfsbi_poller_next(hfsbi_poller *poller, hfsbi_io **io,
                              unsigned *events) {
    hfsbi_batch *batch = poller->batch;
    while (batch->at < batch->count) {
        const struct kevent *event = &batch->events[batch->at++];
        *io = (hfsbi_io *)event->udata;
        if (!*io) continue;
        *events = event->filter == EVFILT_READ ? (unsigned)HFSBI_IO_READ
                                               : (unsigned)HFSBI_IO_WRITE;
        if (event->flags & EV_EOF) *events |= hfsbi_poller_end(*io);
        if (event->flags & EV_ERROR) *events |= (unsigned)HFSBI_IO_GONE;
        return true;
    }
    return false;
}

#else /* poll() */

#define HFSBI_POLLER_LIVE 0

#ifndef POLLRDHUP
#define POLLRDHUP 0 /* only a read finds an end */
#endif

/* Makes room for n descriptors. */
static bool hfsbi_poller_room(hfsbi_poller *poller, size_t n) {
    void *grown;
    if (n > poller->fds_cap) {
        grown = hfsbi_array_grow(&poller->alloc, poller->fds, &poller->fds_cap,
                                 n, sizeof *poller->fds);
        if (!grown) return false;
        poller->fds = (struct pollfd *)grown;
    }
    if (n > poller->ios_cap) {
        grown = hfsbi_array_grow(&poller->alloc, (void *)poller->ios,
                                 &poller->ios_cap, n, sizeof *poller->ios);
        if (!grown) return false;
        poller->ios = (hfsbi_io **)grown;
    }
    return true;
}

static bool hfsbi_poller_open(hfsbi_poller *poller, const hfsb_alloc *alloc) {
    memset(poller, 0, sizeof *poller);
    poller->alloc = *alloc;
    errno = ENOMEM;
    return hfsbi_poller_room(poller, 1);
}

static void hfsbi_poller_close(hfsbi_poller *poller) {
    hfsbi_array_free(&poller->alloc, poller->fds, poller->fds_cap,
                     sizeof *poller->fds);
    hfsbi_array_free(&poller->alloc, poller->copy, poller->copy_cap,
                     sizeof *poller->copy);
    hfsbi_array_free(&poller->alloc, (void *)poller->ios, poller->ios_cap,
                     sizeof *poller->ios);
    poller->fds = poller->copy = NULL;
    poller->ios = NULL;
}

static bool hfsbi_poller_put(hfsbi_poller *poller, hfsbi_io *io,
                             unsigned want) {
    struct pollfd *item;
    if (!io->known) {
        if (!hfsbi_poller_room(poller, poller->length + 1)) {
            errno = ENOMEM;
            return false;
        }
        io->place = poller->length++;
        poller->ios[io->place] = io;
        poller->fds[io->place].revents = 0;
    }
    item = &poller->fds[io->place];
    item->fd = io->fd;
    item->events = (short)((want & HFSBI_IO_READ ? POLLIN : 0) |
                           (want & HFSBI_IO_WRITE ? POLLOUT : 0) |
                           (want & HFSBI_IO_EOF ? POLLRDHUP : 0));
    return true;
}

/* Leaves a hole, which the next wait closes: next() may be walking the
   list. */
static void hfsbi_poller_drop(hfsbi_poller *poller, hfsbi_io *io) {
    poller->ios[io->place] = NULL;
    poller->fds[io->place].fd = -1;
}

static void hfsbi_poller_discard(hfsbi_poller *poller, const hfsbi_io *io) {
    if (io->known) poller->fds[io->place].revents = 0;
}

static void hfsbi_poller_close_holes(hfsbi_poller *poller) {
    size_t from, to = 0;
    for (from = 0; from < poller->length; from++) {
        if (!poller->ios[from]) continue;
        poller->fds[to] = poller->fds[from];
        poller->ios[to] = poller->ios[from];
        poller->ios[to]->place = to;
        to++;
    }
    poller->length = to;
}

/* poll() works on a copy: the list may change and move meanwhile. A place in
   the list keeps its meaning until the next prepare. */
static bool hfsbi_poller_prepare(hfsbi_poller *poller) {
    void *grown = poller->copy;
    hfsbi_poller_close_holes(poller);
    if (poller->length > poller->copy_cap)
        grown =
            hfsbi_array_grow(&poller->alloc, poller->copy, &poller->copy_cap,
                             poller->fds_cap, sizeof *poller->copy);
    if (!grown) return false;
    poller->copy = (struct pollfd *)grown;
    poller->copied = poller->length;
    memcpy(poller->copy, poller->fds, poller->length * sizeof *poller->fds);
    return true;
}

static void hfsbi_poller_wait(const hfsbi_poller *poller, hfsbi_batch *batch,
                              int ms) {
    size_t i;
    batch->at = 0;
    batch->count = poller->copied;
    if (poll(poller->copy, (nfds_t)batch->count, ms) >= 0) return;
    if (errno != EINTR) hfsbi_poller_nap(ms);
    for (i = 0; i < batch->count; i++) poller->copy[i].revents = 0;
}

static void hfsbi_poller_found(hfsbi_poller *poller, hfsbi_batch *batch) {
    size_t i;
    poller->batch = batch;
    for (i = 0; i < batch->count; i++)
        poller->fds[i].revents = poller->copy[i].revents;
}

static bool hfsbi_poller_next(hfsbi_poller *poller, hfsbi_io **io,
                              unsigned *events) {
    hfsbi_batch *batch = poller->batch;
    while (batch->at < batch->count) {
        size_t i = batch->at++;
        int    found = poller->fds[i].revents;
        poller->fds[i].revents = 0;
        *io = poller->ios[i];
        if (!found || !*io) continue;
        *events =
            (found & POLLIN ? (unsigned)HFSBI_IO_READ : 0) |
            (found & POLLOUT ? (unsigned)HFSBI_IO_WRITE : 0) |
            (found & POLLRDHUP ? (unsigned)HFSBI_IO_EOF : 0) |
            (found & (POLLERR | POLLHUP | POLLNVAL) ? (unsigned)HFSBI_IO_GONE
                                                    : 0);
        return true;
    }
    return false;
}

static size_t hfsbi_poller_watch(const hfsbi_poller *poller, hfsb_watch *list,
                                 size_t max) {
    size_t i, n = 0;
    for (i = 0; i < poller->length; i++) {
        if (!poller->ios[i]) continue;
        if (n < max) {
            list[n].fd = poller->fds[i].fd;
            list[n].readable = (poller->fds[i].events & POLLIN) != 0;
            list[n].writable = (poller->fds[i].events & POLLOUT) != 0;
        }
        n++;
    }
    return n;
}

#endif

/* Removes io from the set; its owner still counts as asking for events. */
static void hfsbi_poller_remove(hfsbi_poller *poller, hfsbi_io *io) {
    if (io->known) hfsbi_poller_drop(poller, io);
    io->known = false;
}

/* See hfsbi_loop_io(). */
static bool hfsbi_poller_set(hfsbi_poller *poller, hfsbi_io *io,
                             unsigned want) {
    want &= HFSBI_IO_BOTH | (unsigned)HFSBI_IO_EOF;
    if (want & HFSBI_IO_READ) want &= ~(unsigned)HFSBI_IO_EOF;
    if (io->gone && !(want & HFSBI_IO_BOTH)) { /* nothing more to report */
        hfsbi_poller_remove(poller, io);
        io->want = (unsigned char)want;
        return true;
    }
    if (io->known && io->want == want) return true;
    if (!hfsbi_poller_put(poller, io, want)) {
        hfsbi_poller_remove(poller, io);
        hfsbi_poller_discard(poller, io);
        io->want = 0;
        return false;
    }
    io->known = true;
    io->want = (unsigned char)want;
    return true;
}

static void hfsbi_poller_forget(hfsbi_poller *poller, hfsbi_io *io) {
    hfsbi_poller_discard(poller, io);
    hfsbi_poller_remove(poller, io);
    io->want = 0;
    io->gone = false;
}

/* Calls fn of io, unless these events are no longer asked for. The kernel
   would report a broken connection forever: its io leaves the set. */
static void hfsbi_poller_deliver(hfsbi_poller *poller, hfsbi_io *io,
                                 unsigned events) {
    bool idle = !(io->want & HFSBI_IO_BOTH);
    if (io->gone && idle) return;
    events &= io->want | (unsigned)HFSBI_IO_GONE;
    if (events & HFSBI_IO_GONE) {
        io->gone = true;
        if (idle) hfsbi_poller_remove(poller, io);
    }
    if (events) io->fn(io, events);
}

/* ---- the loop ---- */

/* How the loop's events are waited for. */
typedef struct hfsbi_loop_wait {
    bool      waiting; /* a turn waits, without the lock */
    bool      stale;   /* an io was forgotten meanwhile: the wait may find
                          events of a freed object */
    bool      hosted;  /* a host waits in its own way */
    long long until;   /* end of that wait; -1: without limit */
} hfsbi_loop_wait;

struct hfsbi_loop {
    hfsb_alloc       alloc;
    pthread_mutex_t  lock;   /* recursive; see hfsbi_loop_lock() */
    pthread_cond_t   turned; /* after each turn */
    hfsbi_poller     poller;
    hfsbi_timer      heap; /* its child is the root */
    hfsbi_timer      due;  /* its child is the first of those to run now */
    long long        now;
    hfsbi_loop_wait  wait;
    hfsbi_companion *companion;
    hfsbi_pool      *pool;
    hfsbi_pool      *walled; /* its threads have entered ... */
    hfsbi_wall      *wall;   /* ... this one; NULL: there is none */
    hfsbi_io         wake;
    int              wake_fds[2];

    pthread_mutex_t queue_lock; /* guards everything below; taken last */
    hfsbi_queue     posted;     /* their done is due */
    size_t          pending;    /* tasks whose done was not yet called */
    bool            asleep;     /* a post must write to the pipe */
};

/* ---- the lock ---- */

HFSBI_FN void hfsbi_loop_lock(hfsbi_loop *loop) {
    pthread_mutex_lock(&loop->lock);
}

HFSBI_FN void hfsbi_loop_unlock(hfsbi_loop *loop) {
    pthread_mutex_unlock(&loop->lock);
}

HFSBI_FN void hfsbi_loop_wake(hfsbi_loop *loop) {
    hfsbi_wake_write(loop->wake_fds[1]);
}

/* True when a thread or the host waits for events, and would miss a change. */
static bool hfsbi_loop_sleeps(const hfsbi_loop *loop) {
    return loop->wait.waiting || loop->wait.hosted;
}

/* ---- descriptors ---- */

HFSBI_FN bool hfsbi_loop_io(hfsbi_loop *loop, hfsbi_io *io, unsigned want) {
    if (!HFSBI_POLLER_LIVE && hfsbi_loop_sleeps(loop)) hfsbi_loop_wake(loop);
    return hfsbi_poller_set(&loop->poller, io, want);
}

HFSBI_FN void hfsbi_loop_io_forget(hfsbi_loop *loop, hfsbi_io *io) {
    if (!io->known && !io->want && !io->gone) return;
    loop->wait.stale = true;
    hfsbi_poller_forget(&loop->poller, io);
}

/* ---- timers ---- */

/* A pairing heap: `child` is the first of the children, which are linked by
   `next`; `prev` is the one before, or for the first the parent. The loop
   holds two timers that are only parents, so every timer that is set has one
   before it, and is removed from the list of due timers in the same way as
   from the heap. */

/* Melds two trees into one. Either may be NULL. */
static hfsbi_timer *hfsbi_timer_meld(hfsbi_timer *a, hfsbi_timer *b) {
    hfsbi_timer *later;
    if (!a || !b) return a ? a : b;
    later = a->at <= b->at ? b : a;
    a = later == b ? a : b;
    later->next = a->child;
    if (a->child) a->child->prev = later;
    later->prev = a;
    a->child = later;
    return a;
}

/* Makes one tree of the children of a removed root: melds them in pairs from
   the left, then the pairs from the right. */
static hfsbi_timer *hfsbi_timer_merge(hfsbi_timer *first) {
    hfsbi_timer *pairs = NULL, *root = NULL;
    while (first) {
        hfsbi_timer *second = first->next;
        hfsbi_timer *rest = second ? second->next : NULL, *pair;
        pair = hfsbi_timer_meld(first, second);
        pair->next = pairs;
        pairs = pair;
        first = rest;
    }
    while (pairs) {
        hfsbi_timer *rest = pairs->next;
        root = hfsbi_timer_meld(root, pairs);
        pairs = rest;
    }
    return root;
}

static void hfsbi_timer_put(hfsbi_loop *loop, hfsbi_timer *tree) {
    hfsbi_timer *root = hfsbi_timer_meld(loop->heap.child, tree);
    loop->heap.child = root;
    if (!root) return;
    root->prev = &loop->heap;
    root->next = NULL;
}

/* Removes a timer from the heap or the list of due timers. */
static void hfsbi_timer_take(hfsbi_loop *loop, hfsbi_timer *timer) {
    if (timer->prev->child == timer) timer->prev->child = timer->next;
    else timer->prev->next = timer->next;
    if (timer->next) timer->next->prev = timer->prev;
    hfsbi_timer_put(loop, hfsbi_timer_merge(timer->child));
    timer->child = timer->next = timer->prev = NULL;
}

HFSBI_FN void hfsbi_loop_timer(hfsbi_loop *loop, hfsbi_timer *timer,
                               long long at) {
    if (timer->set && timer->at == at) return;
    hfsbi_loop_timer_clear(loop, timer);
    timer->at = at;
    timer->set = true;
    timer->child = timer->next = timer->prev = NULL;
    hfsbi_timer_put(loop, timer);
    if (hfsbi_loop_sleeps(loop) &&
        (loop->wait.until < 0 || at < loop->wait.until))
        hfsbi_loop_wake(loop);
}

HFSBI_FN void hfsbi_loop_timer_clear(hfsbi_loop *loop, hfsbi_timer *timer) {
    if (timer->set) hfsbi_timer_take(loop, timer);
    timer->set = false;
}

/* Lists all due timers first: what they set runs in the next turn. */
static void hfsbi_timers_run(hfsbi_loop *loop) {
    hfsbi_timer *last = &loop->due, *timer;
    while ((timer = loop->heap.child) != NULL && timer->at <= loop->now) {
        hfsbi_timer_take(loop, timer);
        timer->prev = last;
        if (last == &loop->due) last->child = timer;
        else last->next = timer;
        last = timer;
    }
    while ((timer = loop->due.child) != NULL) {
        hfsbi_loop_timer_clear(loop, timer);
        timer->fn(timer);
    }
}

/* When the next timer is due; -1: never. */
static long long hfsbi_timers_next(const hfsbi_loop *loop) {
    const hfsbi_timer *root = loop->heap.child;
    return !root ? -1 : root->at < 0 ? 0 : root->at;
}

HFSBI_FN long long hfsbi_loop_now(const hfsbi_loop *loop) {
    return loop->now;
}

HFSBI_FN hfsbi_companion **hfsbi_loop_companion(hfsbi_loop *loop) {
    return &loop->companion;
}

HFSBI_FN hfsb_alloc hfsbi_loop_alloc(const hfsbi_loop *loop) {
    return loop->alloc;
}

/* ---- tasks ---- */

/* Makes done of a task due. Both this and the write are under the lock of the
   queue: as soon as the task is done, its owner may close the loop. */
static void hfsbi_loop_add_posted(hfsbi_loop *loop, hfsbi_task *task) {
    hfsbi_queue_add(&loop->posted, task);
    if (loop->asleep) hfsbi_wake_write(loop->wake_fds[1]);
    loop->asleep = false;
}

HFSBI_FN void hfsbi_loop_expect(hfsbi_loop *loop) {
    pthread_mutex_lock(&loop->queue_lock);
    loop->pending++;
    pthread_mutex_unlock(&loop->queue_lock);
}

HFSBI_FN void hfsbi_loop_deliver(hfsbi_loop *loop, hfsbi_task *task) {
    pthread_mutex_lock(&loop->queue_lock);
    hfsbi_loop_add_posted(loop, task);
    pthread_mutex_unlock(&loop->queue_lock);
}

HFSBI_FN void hfsbi_loop_post(hfsbi_loop *loop, hfsbi_task *task) {
    pthread_mutex_lock(&loop->queue_lock);
    loop->pending++;
    hfsbi_loop_add_posted(loop, task);
    pthread_mutex_unlock(&loop->queue_lock);
}

/* True in a thread that has entered the wall. */
static bool hfsbi_loop_is_walled_here(hfsbi_loop *loop) {
    return loop->walled && hfsbi_pool_is_here(loop->walled);
}

/* Gives a task to a pool, in any thread. */
static void hfsbi_loop_give(hfsbi_loop *loop, hfsbi_pool *pool,
                            hfsbi_task *task) {
    hfsbi_pool_add(pool, task, !hfsbi_loop_is_walled_here(loop));
}

HFSBI_FN void hfsbi_loop_work(hfsbi_loop *loop, hfsbi_task *task) {
    hfsbi_loop_give(
        loop, task->rights.walled && loop->walled ? loop->walled : loop->pool, task);
}

HFSBI_FN bool hfsbi_loop_set_wall(hfsbi_loop *loop, hfsbi_wall *wall) {
    if (!hfsbi_pool_start(loop->pool)) return false;
    loop->walled = hfsbi_pool_open(loop, hfsbi_pool_max(loop->pool), wall);
    if (!loop->walled) return false;
    loop->wall = wall;
    return true;
}

HFSBI_FN const hfsbi_wall *hfsbi_loop_wall(const hfsbi_loop *loop) {
    return loop->wall;
}

/* A task that a thread waits for. */
typedef struct hfsbi_errand {
    hfsbi_task task; /* first */
    void (*fn)(void *user);
    void           *user;
    bool            ended;
    pthread_mutex_t lock;
    pthread_cond_t  end;
    hfsb_alloc      alloc;
    int             users; /* the waiting thread, and the loop */
} hfsbi_errand;

static void hfsbi_errand_run(hfsbi_task *task) {
    hfsbi_errand *e = (hfsbi_errand *)(void *)task;
    e->fn(e->user);
    pthread_mutex_lock(&e->lock);
    e->ended = true;
    (void)pthread_cond_signal(&e->end);
    pthread_mutex_unlock(&e->lock);
}

static void hfsbi_errand_leave(hfsbi_task *task) {
    hfsbi_errand *e = (hfsbi_errand *)(void *)task;
    hfsb_alloc    alloc = e->alloc;
    int           left;
    pthread_mutex_lock(&e->lock);
    left = --e->users;
    pthread_mutex_unlock(&e->lock);
    if (left) return;
    (void)pthread_cond_destroy(&e->end);
    (void)pthread_mutex_destroy(&e->lock);
    hfsbi_array_free(&alloc, e, 1, sizeof *e);
}

HFSBI_FN void hfsbi_loop_outside(hfsbi_loop *loop, void (*fn)(void *user),
                                 void       *user) {
    hfsbi_errand *e;
    if (!hfsbi_loop_is_walled_here(loop)) { /* a wait could starve the pool */
        fn(user);
        return;
    }
    e = (hfsbi_errand *)hfsbi_array(&loop->alloc, 1, sizeof *e);
    if (!e) return;
    memset(e, 0, sizeof *e);
    e->task.run = hfsbi_errand_run;
    e->task.done = hfsbi_errand_leave;
    e->fn = fn;
    e->user = user;
    e->alloc = loop->alloc;
    e->users = 2;
    (void)pthread_mutex_init(&e->lock, NULL);
    (void)pthread_cond_init(&e->end, NULL);
    hfsbi_loop_give(loop, loop->pool, &e->task);
    pthread_mutex_lock(&e->lock);
    while (!e->ended) (void)pthread_cond_wait(&e->end, &e->lock);
    pthread_mutex_unlock(&e->lock);
    hfsbi_errand_leave(&e->task);
}

HFSBI_FN bool hfsbi_loop_has_threads(const hfsbi_loop *loop) {
    return hfsbi_pool_max(loop->pool) > 0;
}

HFSBI_FN size_t hfsbi_loop_pending(hfsbi_loop *loop) {
    size_t n;
    pthread_mutex_lock(&loop->queue_lock);
    n = loop->pending;
    pthread_mutex_unlock(&loop->queue_lock);
    return n;
}

HFSBI_FN void hfsbi_loop_unpost(hfsbi_loop *loop, hfsbi_task *task) {
    hfsbi_task **link;
    pthread_mutex_lock(&loop->queue_lock);
    link = &loop->posted.first;
    while (*link && *link != task) link = &(*link)->next;
    if (*link) {
        *link = task->next;
        if (!task->next) loop->posted.last = link;
        loop->pending--;
    }
    pthread_mutex_unlock(&loop->queue_lock);
}

/* Takes the first posted task, or NULL. */
static hfsbi_task *hfsbi_loop_next_posted(hfsbi_loop *loop) {
    hfsbi_task *task;
    pthread_mutex_lock(&loop->queue_lock);
    task = hfsbi_queue_take(&loop->posted);
    if (task) loop->pending--;
    pthread_mutex_unlock(&loop->queue_lock);
    return task;
}

/* Calls done of all tasks posted so far. done may free other tasks, post new
   ones, or post its own again. */
static void hfsbi_loop_finish(hfsbi_loop *loop) {
    hfsbi_task  end = HFSB_INIT; /* posted by us, after all others */
    hfsbi_task *task;
    pthread_mutex_lock(&loop->queue_lock);
    task = loop->posted.first;
    if (task) {
        hfsbi_queue_add(&loop->posted, &end);
        loop->pending++;
    }
    pthread_mutex_unlock(&loop->queue_lock);
    if (!task) return;
    while ((task = hfsbi_loop_next_posted(loop)) != &end) task->done(task);
}

static void hfsbi_loop_woken(hfsbi_io *io, unsigned events) {
    (void)events;
    hfsbi_wake_drain(io->fd); /* the turn itself checks the tasks */
}

/* ---- open, close, turn ---- */

static void hfsbi_loop_free(hfsbi_loop *loop) {
    hfsb_alloc alloc = loop->alloc;
    hfsbi_pool_close(loop->walled);
    hfsbi_pool_close(loop->pool);
    if (loop->wall) loop->wall->free(loop->wall);
    hfsbi_poller_close(&loop->poller);
    hfsbi_close(&loop->wake_fds[0]);
    hfsbi_close(&loop->wake_fds[1]);
    if (loop->companion) loop->companion->free(loop->companion);
    (void)pthread_mutex_destroy(&loop->queue_lock);
    (void)pthread_cond_destroy(&loop->turned);
    (void)pthread_mutex_destroy(&loop->lock);
    hfsbi_array_free(&alloc, loop, 1, sizeof *loop);
}

/* Opens all that can fail; false with errno. */
static bool hfsbi_loop_fill(hfsbi_loop *loop, size_t max_threads) {
    if (!hfsbi_poller_open(&loop->poller, &loop->alloc) ||
        !hfsbi_wake_open(loop->wake_fds))
        return false;
    loop->pool = hfsbi_pool_open(loop, max_threads, NULL);
    errno = ENOMEM;
    if (!loop->pool) return false;
    loop->wake.fd = loop->wake_fds[0];
    loop->wake.fn = hfsbi_loop_woken;
    return hfsbi_poller_set(&loop->poller, &loop->wake, HFSBI_IO_READ);
}

HFSBI_FN hfsb_status hfsbi_loop_open(const hfsb_alloc *alloc,
                                     size_t max_threads, bool no_threads,
                                     hfsbi_loop **out, hfsb_err *err) {
    hfsbi_loop *loop = (hfsbi_loop *)hfsbi_array(alloc, 1, sizeof *loop);
    *out = NULL;
    if (!loop)
        return hfsbi_fail_status(err, HFSB_NOMEM, "Opening the event loop");
    memset(loop, 0, sizeof *loop);
    loop->alloc = *alloc;
    loop->wake_fds[0] = loop->wake_fds[1] = -1;
    hfsbi_queue_init(&loop->posted);
    loop->now = hfsb_clock_ms();
    hfsbi_mutex_init_recursive(&loop->lock);
    (void)hfsbi_cond_init(&loop->turned);
    (void)pthread_mutex_init(&loop->queue_lock, NULL);
    if (max_threads == 0) max_threads = 8;
    if (!hfsbi_loop_fill(loop, no_threads ? 0 : max_threads)) {
        hfsb_status st =
            hfsbi_fail_os(err, errno, "Cannot open the event loop");
        hfsbi_loop_free(loop);
        return st;
    }
    *out = loop;
    return hfsbi_ok(err);
}

HFSBI_FN void hfsbi_loop_close(hfsbi_loop *loop) {
    hfsbi_task *task;
    if (!loop) return;
    if (loop->walled) hfsbi_pool_end(loop->walled); /* it uses the other */
    hfsbi_pool_end(loop->pool);
    while ((task = hfsbi_loop_next_posted(loop)) != NULL) task->done(task);
    hfsbi_loop_free(loop);
}

/* True when nothing is posted: from now on a post ends the wait. */
static bool hfsbi_loop_fall_asleep(hfsbi_loop *loop) {
    bool may;
    pthread_mutex_lock(&loop->queue_lock);
    may = loop->posted.first == NULL;
    loop->asleep = may;
    pthread_mutex_unlock(&loop->queue_lock);
    return may;
}

/* From here on a post needs no byte in the pipe: this turn checks for it. */
static void hfsbi_loop_wake_up(hfsbi_loop *loop) {
    pthread_mutex_lock(&loop->queue_lock);
    loop->asleep = false;
    pthread_mutex_unlock(&loop->queue_lock);
}

/* Milliseconds to wait; -1: without limit. Sets `until`. */
static int hfsbi_loop_time(hfsbi_loop *loop, long long wait_ms) {
    long long at = hfsbi_timers_next(loop), now;
    if (wait_ms == 0 || !hfsbi_loop_fall_asleep(loop)) return 0;
    now = hfsb_clock_ms();
    if (at >= 0) wait_ms = hfsbi_earlier(wait_ms, at > now ? at - now : 0);
    if (wait_ms > INT_MAX) wait_ms = INT_MAX;
    loop->wait.until = wait_ms < 0 ? -1 : now + wait_ms;
    return wait_ms < 0 ? -1 : (int)wait_ms;
}

/* Waits without the lock. If an io was forgotten meanwhile, the events may
   include its own: then they are fetched again. No event is lost: only ends
   are reported once, and only to the ios of a server, whose loop no other
   thread uses. */
static void hfsbi_loop_sleep(hfsbi_loop *loop, hfsbi_batch *batch, int ms) {
    loop->wait.waiting = true;
    loop->wait.stale = false;
    hfsbi_loop_unlock(loop);
    hfsbi_poller_wait(&loop->poller, batch, ms);
    hfsbi_loop_lock(loop);
    loop->wait.waiting = false;
    if (loop->wait.stale && HFSBI_POLLER_LIVE)
        hfsbi_poller_wait(&loop->poller, batch, 0);
}

/* Another thread waits: waits for the end of its turn, at most a second.
   Without a monotonic clock for conditions, setting the clock back would
   prolong the wait. */
static void hfsbi_loop_follow(hfsbi_loop *loop, long long wait_ms) {
    if (wait_ms < 0 || wait_ms > 1000) wait_ms = 1000;
    hfsbi_cond_wait_ms(&loop->turned, &loop->lock, wait_ms);
}

HFSBI_FN void hfsbi_loop_turn(hfsbi_loop *loop, long long wait_ms) {
    hfsbi_batch batch;
    hfsbi_io   *io;
    unsigned    events;
    int         ms;
    if (loop->wait.waiting) {
        if (wait_ms != 0) hfsbi_loop_follow(loop, wait_ms);
        return;
    }
    batch.at = batch.count = 0;
    loop->wait.hosted = false;
    ms = hfsbi_loop_time(loop, wait_ms);
    if (!hfsbi_poller_prepare(&loop->poller)) hfsbi_poller_nap(ms);
    else if (ms == 0) hfsbi_poller_wait(&loop->poller, &batch, 0);
    else hfsbi_loop_sleep(loop, &batch, ms);
    hfsbi_loop_wake_up(loop);
    loop->now = hfsb_clock_ms();
    hfsbi_poller_found(&loop->poller, &batch);
    while (hfsbi_poller_next(&loop->poller, &io, &events))
        hfsbi_poller_deliver(&loop->poller, io, events);
    loop->poller.batch = NULL;
    hfsbi_loop_finish(loop);
    hfsbi_timers_run(loop);
    (void)pthread_cond_broadcast(&loop->turned);
}

HFSBI_FN size_t hfsbi_loop_watch(hfsbi_loop *loop, hfsb_watch *list,
                                 size_t max) {
    if (loop->wait.waiting) return 0;
    loop->wait.hosted = true;
    loop->wait.until = hfsbi_timers_next(loop);
    return hfsbi_poller_watch(&loop->poller, list, max);
}

HFSBI_FN long long hfsbi_loop_deadline(hfsbi_loop *loop) {
    if (loop->wait.waiting) return -1;
    loop->wait.hosted = true;
    loop->wait.until =
        hfsbi_loop_fall_asleep(loop) ? hfsbi_timers_next(loop) : 0;
    return loop->wait.until;
}
