/* loop.c - an event loop: descriptors, timers, and work in threads.

   One thread runs a loop, turn by turn. A turn waits until something happens
   and then calls, in this order,

       io       the fn of each descriptor that is ready
       task     the done of each task that a thread finished or posted; the
                pipe that wakes the loop is one of the descriptors
       timer    the fn of each timer that is due
       source   the step of each object that has a poll loop of its own

   An io, timer, task or source is part of its owner's object: the loop links
   them and allocates nothing for them. Each function that is called may change
   anything, also remove and free others that were found ready in this turn:
   these are not called any more. Timers and tasks that are set in a turn are
   called in the next one, so a turn always ends.

   Three parts follow: the poller, which is the kernel's set of descriptors
   (epoll, kqueue, or a list for poll()); the pool of threads; and the loop
   itself. Only post, work and wake may be called from another thread. */
#include "os_private.h"

#define HFSBI_IO_BOTH ((unsigned)HFSBI_IO_READ | (unsigned)HFSBI_IO_WRITE)

enum {
    HFSBI_POLLER_BATCH = 256, /* events found by one wait */
    HFSBI_POLLER_GUESTS = 512 /* descriptors of sources, not in the set */
};

/* ---- the poller ---- */

/* A wait finds events, which are then delivered one by one. `at` is the next
   one; the events from there on may be discarded meanwhile. */
typedef struct hfsbi_poller {
    size_t at, count;
#if defined(HFSBI_EPOLL)
    int                fd;
    struct epoll_event batch[HFSBI_POLLER_BATCH];
#elif defined(HFSBI_KQUEUE)
    int           fd;
    struct kevent batch[HFSBI_POLLER_BATCH];
#else
    hfsb_alloc     alloc;
    struct pollfd *fds; /* with room for the guests after the last one */
    hfsbi_io     **ios; /* NULL: removed since the last wait */
    size_t         length, fds_cap, ios_cap;
#endif
} hfsbi_poller;

/* Each of the three kinds has these functions:

     open, close
     put      adds io to the set or changes its events; false with errno
     drop     removes io from the set
     discard  discards the events of io that are found and not delivered
     wait     waits for the set and for n guests in list[1] to list[n], whose
              revents it fills; list[0] is for its own use
     next     the next event; false when all are delivered
     watch    the descriptors that a host must wait for */

/* Sleeps instead of a wait that failed, so that the loop does not spin. */
static void hfsbi_poller_nap(int ms) {
    (void)poll(NULL, 0, ms < 0 || ms > 20 ? 20 : ms);
}

#if defined(HFSBI_EPOLL) || defined(HFSBI_KQUEUE)

/* Waits with poll() for the set's own descriptor and the guests. True when the
   set has events. */
static bool hfsbi_poller_wait_guests(hfsbi_poller *poller, struct pollfd *list,
                                     size_t n, int ms) {
    size_t i;
    list[0].fd = poller->fd;
    list[0].events = POLLIN;
    list[0].revents = 0;
    if (poll(list, (nfds_t)(n + 1), ms) >= 0) return list[0].revents != 0;
    if (errno == EINTR) return false;
    hfsbi_poller_nap(ms);
    for (i = 0; i <= n; i++) list[i].revents = POLLERR; /* look at them all */
    return true;
}

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

/* Notes the result of a wait. */
static void hfsbi_poller_found(hfsbi_poller *poller, int found, int ms) {
    if (found < 0 && errno != EINTR) hfsbi_poller_nap(ms);
    poller->at = 0;
    poller->count = found > 0 ? (size_t)found : 0;
}

#endif

#if defined(HFSBI_EPOLL)

static bool hfsbi_poller_open(hfsbi_poller *poller, const hfsb_alloc *alloc) {
    (void)alloc;
    poller->at = poller->count = 0;
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
    size_t i;
    for (i = poller->at; i < poller->count; i++)
        if (poller->batch[i].data.ptr == io) poller->batch[i].data.ptr = NULL;
}

static void hfsbi_poller_wait(hfsbi_poller *poller, struct pollfd *list,
                              size_t n, int ms) {
    int found = 0;
    if (n == 0 || hfsbi_poller_wait_guests(poller, list, n, ms))
        found = epoll_wait(poller->fd, poller->batch, HFSBI_POLLER_BATCH,
                           n == 0 ? ms : 0);
    hfsbi_poller_found(poller, found, ms);
}

static bool hfsbi_poller_next(hfsbi_poller *poller, hfsbi_io **io,
                              unsigned *events) {
    while (poller->at < poller->count) {
        const struct epoll_event *event = &poller->batch[poller->at++];
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
    poller->at = poller->count = 0;
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
   (EV_CLEAR), and where the kernel can, without those of mere bytes. */
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
        /* again when it is there, so that an earlier end is reported */
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
    size_t i;
    for (i = poller->at; i < poller->count; i++)
        if ((const void *)poller->batch[i].udata == (const void *)io)
            poller->batch[i].udata = NULL;
}

static void hfsbi_poller_wait(hfsbi_poller *poller, struct pollfd *list,
                              size_t n, int ms) {
    struct timespec time = HFSB_INIT;
    int found = 0, wait = n == 0 ? ms : 0;
    time.tv_sec = wait / 1000;
    time.tv_nsec = (long)(wait % 1000) * 1000000L;
    if (n == 0 || hfsbi_poller_wait_guests(poller, list, n, ms))
        found = kevent(poller->fd, NULL, 0, poller->batch, HFSBI_POLLER_BATCH,
                       wait < 0 ? NULL : &time);
    hfsbi_poller_found(poller, found, ms);
}

/* kqueue reports an end, but not whether of one side or of both; poll()
   does. */
static unsigned hfsbi_poller_end(const hfsbi_io *io) {
    struct pollfd one = HFSB_INIT;
    one.fd = io->fd;
    (void)poll(&one, 1, 0);
    return (unsigned)HFSBI_IO_EOF |
           (one.revents & (POLLHUP | POLLERR | POLLNVAL)
                ? (unsigned)HFSBI_IO_GONE
                : 0);
}

static bool hfsbi_poller_next(hfsbi_poller *poller, hfsbi_io **io,
                              unsigned *events) {
    while (poller->at < poller->count) {
        const struct kevent *event = &poller->batch[poller->at++];
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

#ifndef POLLRDHUP
#define POLLRDHUP 0 /* only a read finds an end */
#endif

/* Makes room for n of the set and all guests. */
static bool hfsbi_poller_room(hfsbi_poller *poller, size_t n) {
    void *grown;
    if (n + HFSBI_POLLER_GUESTS > poller->fds_cap) {
        grown = hfsbi_array_grow(&poller->alloc, poller->fds, &poller->fds_cap,
                                 n + HFSBI_POLLER_GUESTS, sizeof *poller->fds);
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
    hfsbi_array_free(&poller->alloc, (void *)poller->ios, poller->ios_cap,
                     sizeof *poller->ios);
    poller->fds = NULL;
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

/* Leaves a hole, which the next wait closes: next() may be in the list. */
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

static void hfsbi_poller_wait(hfsbi_poller *poller, struct pollfd *list,
                              size_t n, int ms) {
    size_t i, all;
    hfsbi_poller_close_holes(poller);
    poller->at = 0;
    poller->count = poller->length; /* those that are added later are new */
    all = poller->length + n;
    if (n) memcpy(poller->fds + poller->length, list + 1, n * sizeof *list);
    if (poll(poller->fds, (nfds_t)all, ms) < 0) {
        bool odd = errno != EINTR;
        if (odd) hfsbi_poller_nap(ms);
        for (i = 0; i < all; i++) poller->fds[i].revents = 0;
        for (i = poller->length; odd && i < all; i++)
            poller->fds[i].revents = POLLERR; /* look at them all */
    }
    if (n) memcpy(list + 1, poller->fds + poller->length, n * sizeof *list);
}

static bool hfsbi_poller_next(hfsbi_poller *poller, hfsbi_io **io,
                              unsigned *events) {
    while (poller->at < poller->count) {
        size_t i = poller->at++;
        int found = poller->fds[i].revents;
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

/* Calls fn of io, unless nobody asks for these events any more. The kernel
   would report a broken connection again and again: its io leaves the set. */
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

/* Threads of the pool stay far below this stack with all that the tools call,
   blocks of 64 kB included; only pages that are touched cost memory. */
enum { HFSBI_POOL_STACK = 512 * 1024 };

/* Tasks in the order they came. */
typedef struct hfsbi_queue {
    hfsbi_task *first, **last; /* last: where the next one is linked */
} hfsbi_queue;

typedef struct hfsbi_pool {
    pthread_cond_t more;    /* a task came, or the end */
    hfsbi_queue    waiting; /* for a thread */
    size_t         length;  /* of the queue */
    size_t         idle;    /* threads that wait for a task */
    pthread_t     *threads;
    size_t         count, max;
    bool           ending;
} hfsbi_pool;

struct hfsbi_loop {
    hfsb_alloc     alloc;
    hfsbi_poller   poller;
    hfsbi_timer    heap; /* its child is the root */
    hfsbi_timer    due;  /* its child is the first of those that run now */
    hfsbi_source  *sources, *next_source; /* next: of those being stepped */
    long long      now;
    hfsbi_snapshot snapshot; /* of the commands that are attached */
    hfsbi_io       wake;
    int            wake_fds[2];

    pthread_mutex_t lock; /* guards all below */
    hfsbi_pool      pool;
    hfsbi_queue     posted;  /* their done is due */
    size_t          pending; /* tasks whose done was not called yet */
    bool            woken;   /* a byte for the posted ones is in the pipe */
};

static void hfsbi_queue_init(hfsbi_queue *queue) {
    queue->first = NULL;
    queue->last = &queue->first;
}

static void hfsbi_queue_add(hfsbi_queue *queue, hfsbi_task *task) {
    task->next = NULL;
    *queue->last = task;
    queue->last = &task->next;
}

/* ---- descriptors ---- */

HFSBI_FN bool hfsbi_loop_io(hfsbi_loop *loop, hfsbi_io *io, unsigned want) {
    return hfsbi_poller_set(&loop->poller, io, want);
}

HFSBI_FN void hfsbi_loop_io_forget(hfsbi_loop *loop, hfsbi_io *io) {
    hfsbi_poller_forget(&loop->poller, io);
}

/* ---- timers ---- */

/* A pairing heap: `child` is the first of the children, which are linked by
   `next`; `prev` is the one before, or for the first the parent. The loop
   holds two timers that are parents only, so every timer that is set has one
   before it, and leaves the list of due timers as it leaves the heap. */

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
    hfsbi_loop_timer_clear(loop, timer);
    timer->at = at;
    timer->set = true;
    timer->child = timer->next = timer->prev = NULL;
    hfsbi_timer_put(loop, timer);
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

HFSBI_FN hfsbi_snapshot *hfsbi_loop_snapshot(hfsbi_loop *loop) {
    return &loop->snapshot;
}

/* ---- sources ---- */

static void hfsbi_source_ready(hfsbi_io *io, unsigned events) {
    hfsbi_source *source = (hfsbi_source *)(void *)io; /* its first member */
    (void)events;
    source->ready = true;
}

HFSBI_FN void hfsbi_loop_source(hfsbi_loop *loop, hfsbi_source *source) {
    hfsbi_source **end = &loop->sources;
    hfsb_watch     own;
    while (*end) end = &(*end)->next;
    *end = source;
    source->next = NULL;
    source->ready = false;
    /* Mostly the first descriptor is the only one. It is put into the kernel's
       set, so that the wait is one system call; when that fails it is watched
       like the others. */
    memset(&source->first, 0, sizeof source->first);
    source->first.fd = -1;
    if (source->watch(source->user, &own, 1) == 0 || !own.readable ||
        own.writable)
        return;
    source->first.fd = own.fd;
    source->first.fn = hfsbi_source_ready;
    (void)hfsbi_poller_set(&loop->poller, &source->first, HFSBI_IO_READ);
}

HFSBI_FN void hfsbi_loop_source_remove(hfsbi_loop   *loop,
                                       hfsbi_source *source) {
    hfsbi_source **at = &loop->sources;
    while (*at && *at != source) at = &(*at)->next;
    if (!*at) return;
    *at = source->next;
    if (loop->next_source == source) loop->next_source = source->next;
    hfsbi_poller_forget(&loop->poller, &source->first);
}

/* Fills list with the descriptors of a source that are not in the kernel's
   set; returns how many there are, which may be more than max. */
static size_t hfsbi_source_watch(const hfsbi_source *source, hfsb_watch *list,
                                 size_t max) {
    hfsb_watch all[HFSBI_POLLER_GUESTS + 1];
    size_t     n = source->watch(source->user, all, HFSBI_POLLER_GUESTS + 1);
    size_t have = n < HFSBI_POLLER_GUESTS + 1 ? n : HFSBI_POLLER_GUESTS + 1;
    size_t own =
        have > 0 && source->first.known && all[0].fd == source->first.fd;
    have -= own;
    if (have > max) have = max;
    if (have) memcpy(list, all + own, have * sizeof *list);
    return n - own;
}

/* Asks all sources before a wait and fills fds; returns their number. A source
   with more descriptors than there is room for is stepped in any case. */
static size_t hfsbi_sources_ask(hfsbi_loop *loop, struct pollfd *fds) {
    hfsb_watch    list[HFSBI_POLLER_GUESTS];
    hfsbi_source *source;
    size_t        n = 0;
    for (source = loop->sources; source; source = source->next) {
        size_t room = HFSBI_POLLER_GUESTS - n;
        source->from = n;
        source->count = hfsbi_source_watch(source, list, room);
        source->ready = source->count > room;
        if (source->ready) source->count = room;
        source->at = source->deadline(source->user);
        hfsbi_poll_fill(list, source->count, fds + n);
        n += source->count;
    }
    return n;
}

/* Notes which sources are ready. After the wait, before anything that is
   called can change the list of sources. */
static void hfsbi_sources_look(hfsbi_loop *loop, const struct pollfd *fds) {
    hfsbi_source *source;
    size_t        i;
    for (source = loop->sources; source; source = source->next) {
        if (source->at >= 0 && source->at <= loop->now) source->ready = true;
        for (i = 0; i < source->count; i++)
            if (fds[source->from + i].revents) source->ready = true;
    }
}

static void hfsbi_sources_step(hfsbi_loop *loop) {
    hfsbi_source *source;
    for (source = loop->sources; source; source = loop->next_source) {
        loop->next_source = source->next;
        if (source->ready) source->step(source->user);
    }
    loop->next_source = NULL;
}

/* ---- tasks ---- */

/* Makes done of a task due. Under the lock, and so is the write: as soon as
   the task is done its owner may close the loop. */
static void hfsbi_loop_add_posted(hfsbi_loop *loop, hfsbi_task *task) {
    hfsbi_queue_add(&loop->posted, task);
    if (!loop->woken) hfsbi_wake_write(loop->wake_fds[1]);
    loop->woken = true;
}

static void *hfsbi_pool_thread(void *arg) {
    hfsbi_loop *loop = (hfsbi_loop *)arg;
    hfsbi_pool *pool = &loop->pool;
    pthread_mutex_lock(&loop->lock);
    for (;;) {
        hfsbi_task *task = pool->waiting.first;
        if (task) {
            pool->waiting.first = task->next;
            if (!task->next) hfsbi_queue_init(&pool->waiting);
            pool->length--;
            pthread_mutex_unlock(&loop->lock);
            task->run(task);
            pthread_mutex_lock(&loop->lock);
            hfsbi_loop_add_posted(loop, task);
        } else if (pool->ending) {
            break;
        } else {
            pool->idle++;
            (void)pthread_cond_wait(&pool->more, &loop->lock);
            pool->idle--;
        }
    }
    pthread_mutex_unlock(&loop->lock);
    return NULL;
}

/* Gives a task to the threads; false when no thread exists. Under the
   lock. Threads that were woken but have not got the lock yet still count as
   idle, and their tasks as waiting. */
static bool hfsbi_pool_add(hfsbi_loop *loop, hfsbi_task *task) {
    hfsbi_pool *pool = &loop->pool;
    if (pool->length >= pool->idle && pool->count < pool->max &&
        !pool->ending &&
        hfsbi_thread_start(&pool->threads[pool->count], HFSBI_POOL_STACK,
                           hfsbi_pool_thread, loop) == 0)
        pool->count++;
    if (pool->count == 0) return false;
    hfsbi_queue_add(&pool->waiting, task);
    pool->length++;
    (void)pthread_cond_signal(&pool->more);
    return true;
}

/* Waits for the threads, which first finish all tasks. */
static void hfsbi_pool_end(hfsbi_loop *loop) {
    hfsbi_pool *pool = &loop->pool;
    size_t      i;
    pthread_mutex_lock(&loop->lock);
    pool->ending = true;
    (void)pthread_cond_broadcast(&pool->more);
    pthread_mutex_unlock(&loop->lock);
    for (i = 0; i < pool->count; i++)
        (void)pthread_join(pool->threads[i], NULL);
    pool->count = 0;
}

HFSBI_FN void hfsbi_loop_post(hfsbi_loop *loop, hfsbi_task *task) {
    pthread_mutex_lock(&loop->lock);
    loop->pending++;
    hfsbi_loop_add_posted(loop, task);
    pthread_mutex_unlock(&loop->lock);
}

HFSBI_FN void hfsbi_loop_work(hfsbi_loop *loop, hfsbi_task *task) {
    bool given;
    pthread_mutex_lock(&loop->lock);
    given = hfsbi_pool_add(loop, task);
    if (given) loop->pending++;
    pthread_mutex_unlock(&loop->lock);
    if (given) return;
    task->run(task);
    hfsbi_loop_post(loop, task);
}

HFSBI_FN size_t hfsbi_loop_pending(hfsbi_loop *loop) {
    size_t n;
    pthread_mutex_lock(&loop->lock);
    n = loop->pending;
    pthread_mutex_unlock(&loop->lock);
    return n;
}

/* Calls done of all tasks that are posted by now; false: there was none. */
static bool hfsbi_loop_finish(hfsbi_loop *loop) {
    hfsbi_task *task, *next;
    pthread_mutex_lock(&loop->lock);
    task = loop->posted.first;
    hfsbi_queue_init(&loop->posted);
    loop->woken = false;
    pthread_mutex_unlock(&loop->lock);
    if (!task) return false;
    for (; task; task = next) {
        next = task->next; /* done may free the task or give it again */
        pthread_mutex_lock(&loop->lock);
        loop->pending--;
        pthread_mutex_unlock(&loop->lock);
        task->done(task);
    }
    return true;
}

/* Empties the pipe first: a task that is posted after that, and not found
   here, writes again. */
static void hfsbi_loop_woken(hfsbi_io *io, unsigned events) {
    hfsbi_loop *loop =
        (hfsbi_loop *)(void *)((char *)io - offsetof(hfsbi_loop, wake));
    (void)events;
    hfsbi_wake_drain(io->fd);
    (void)hfsbi_loop_finish(loop);
}

HFSBI_FN void hfsbi_loop_wake(hfsbi_loop *loop) {
    hfsbi_wake_write(loop->wake_fds[1]);
}

/* ---- open, close, turn ---- */

static void hfsbi_loop_free(hfsbi_loop *loop) {
    hfsb_alloc alloc = loop->alloc;
    hfsbi_poller_close(&loop->poller);
    hfsbi_close(&loop->wake_fds[0]);
    hfsbi_close(&loop->wake_fds[1]);
    hfsbi_snapshot_free(&loop->snapshot);
    if (loop->pool.threads)
        hfsbi_array_free(&alloc, loop->pool.threads, loop->pool.max,
                         sizeof(pthread_t));
    (void)pthread_cond_destroy(&loop->pool.more);
    (void)pthread_mutex_destroy(&loop->lock);
    hfsbi_array_free(&alloc, loop, 1, sizeof *loop);
}

/* Opens all that can fail; false with errno. */
static bool hfsbi_loop_fill(hfsbi_loop *loop, size_t max_threads) {
    if (!hfsbi_poller_open(&loop->poller, &loop->alloc) ||
        !hfsbi_wake_open(loop->wake_fds))
        return false;
    loop->pool.max = max_threads;
    if (max_threads) {
        loop->pool.threads = (pthread_t *)hfsbi_array(
            &loop->alloc, max_threads, sizeof(pthread_t));
        errno = ENOMEM;
        if (!loop->pool.threads) return false;
    }
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
    hfsbi_snapshot_init(&loop->snapshot, alloc);
    hfsbi_queue_init(&loop->pool.waiting);
    hfsbi_queue_init(&loop->posted);
    loop->now = hfsb_clock_ms();
    (void)pthread_mutex_init(&loop->lock, NULL);
    (void)pthread_cond_init(&loop->pool.more, NULL);
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
    if (!loop) return;
    hfsbi_pool_end(loop);
    while (hfsbi_loop_finish(loop)) continue; /* done may give more to do */
    hfsbi_loop_free(loop);
}

/* Milliseconds to wait, after the sources were asked; -1: without limit. */
static int hfsbi_loop_time(const hfsbi_loop *loop, long long wait_ms) {
    const hfsbi_source *source;
    long long           at = hfsbi_timers_next(loop), now;
    if (wait_ms == 0) return 0;
    now = hfsb_clock_ms();
    for (source = loop->sources; source; source = source->next) {
        at = hfsbi_earlier(at, source->at);
        if (source->ready) at = hfsbi_earlier(at, now + 20);
    }
    if (at >= 0) wait_ms = hfsbi_earlier(wait_ms, at > now ? at - now : 0);
    return wait_ms > INT_MAX ? INT_MAX : wait_ms < 0 ? -1 : (int)wait_ms;
}

HFSBI_FN void hfsbi_loop_turn(hfsbi_loop *loop, long long wait_ms) {
    struct pollfd list[1 + HFSBI_POLLER_GUESTS];
    size_t        n = hfsbi_sources_ask(loop, list + 1);
    hfsbi_io     *io;
    unsigned      events;
    hfsbi_poller_wait(&loop->poller, list, n, hfsbi_loop_time(loop, wait_ms));
    loop->now = hfsb_clock_ms();
    hfsbi_sources_look(loop, list + 1);
    while (hfsbi_poller_next(&loop->poller, &io, &events))
        hfsbi_poller_deliver(&loop->poller, io, events);
    hfsbi_timers_run(loop);
    hfsbi_sources_step(loop);
}

HFSBI_FN size_t hfsbi_loop_watch(hfsbi_loop *loop, hfsb_watch *list,
                                 size_t max) {
    size_t        n = hfsbi_poller_watch(&loop->poller, list, max);
    hfsbi_source *source;
    for (source = loop->sources; source; source = source->next) {
        size_t room = n < max ? max - n : 0;
        n += hfsbi_source_watch(source, room ? list + n : list, room);
    }
    return n;
}

HFSBI_FN long long hfsbi_loop_deadline(hfsbi_loop *loop) {
    hfsbi_source *source;
    long long     at = hfsbi_timers_next(loop);
    for (source = loop->sources; source; source = source->next)
        at = hfsbi_earlier(at, source->deadline(source->user));
    return at;
}
