/* loop.c - the turns of the event loop: descriptors, timers, sources,
   tasks. */
#include "os_private.h"

typedef struct hfsbi_pool {
    hfsb_alloc      alloc;
    pthread_mutex_t lock;
    pthread_cond_t  more;          /* something to do, or the end */
    hfsbi_task     *first, **last; /* that wait for a thread */
    size_t          waiting, idle; /* tasks, threads */
    pthread_t      *threads;
    size_t          count, max;
    bool            ending;
    void (*finished)(void *user, hfsbi_task *task); /* in whatever thread */
    void *user;
} hfsbi_pool;

/* ==== server poller ==== */

/* the kernel's set of descriptors: epoll on Linux, kqueue on
   BSD and macOS, poll() elsewhere. */

#define HFSBI_IO_BOTH ((unsigned)HFSBI_IO_READ | (unsigned)HFSBI_IO_WRITE)

/* What each of the three ways brings: */

/* Puts io into the set or changes what is asked for; false with errno. */
static bool hfsbi_poller_put(hfsbi_poller *poller, hfsbi_io *io,
                             unsigned want);
/* Takes it out of the set. */
static void hfsbi_poller_drop(hfsbi_poller *poller, hfsbi_io *io);
/* Empties its entries among the events that are found and not told yet. */
static void hfsbi_poller_unfind(hfsbi_poller *poller, const hfsbi_io *io);

/* ---- the same for all ---- */

/* Out of the set, but for the owner still as it was. */
static void hfsbi_poller_mute(hfsbi_poller *poller, hfsbi_io *io) {
    if (io->known) hfsbi_poller_drop(poller, io);
    io->known = false;
}

/* False with errno; close it even so. */
static bool hfsbi_poller_set(hfsbi_poller *poller, hfsbi_io *io,
                             unsigned want) {
    want &= HFSBI_IO_BOTH | (unsigned)HFSBI_IO_EOF;
    if (want & HFSBI_IO_READ) want &= ~(unsigned)HFSBI_IO_EOF;
    if (io->gone && !(want & HFSBI_IO_BOTH)) { /* nothing more to tell */
        hfsbi_poller_mute(poller, io);
        io->want = (unsigned char)want;
        return true;
    }
    if (io->known && io->want == want) return true;
    if (!hfsbi_poller_put(poller, io, want)) {
        hfsbi_poller_mute(poller, io);
        hfsbi_poller_unfind(poller, io);
        io->want = 0;
        return false;
    }
    io->known = true;
    io->want = (unsigned char)want;
    return true;
}

static void hfsbi_poller_forget(hfsbi_poller *poller, hfsbi_io *io) {
    hfsbi_poller_unfind(poller, io);
    hfsbi_poller_mute(poller, io);
    io->want = 0;
    io->gone = false;
}

/* Tells io, unless what was found is no longer asked for. The kernel would
   say again and again that a connection is gone. */
static void hfsbi_poller_tell_one(hfsbi_poller *poller, hfsbi_io *io,
                                  unsigned events) {
    bool quiet = !(io->want & HFSBI_IO_BOTH);
    if (io->gone && quiet) return;
    events &= io->want | (unsigned)HFSBI_IO_GONE;
    if (events & HFSBI_IO_GONE) {
        io->gone = true;
        if (quiet) hfsbi_poller_mute(poller, io);
    }
    if (events) io->fn(io, events);
}

#if defined(HFSBI_EPOLL) || defined(HFSBI_KQUEUE)

/* A nap in place of a wait that failed, so that nobody spins. */
static void hfsbi_poller_nap(int ms) {
    (void)poll(NULL, 0, ms < 0 || ms > 20 ? 20 : ms);
}

/* Waits for the set's own descriptor and the guests with poll(). True when the
   set has something. */
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

#endif

/* ---- epoll ---- */

#if defined(HFSBI_EPOLL)

static bool hfsbi_poller_open(hfsbi_poller *poller, const hfsb_alloc *alloc) {
    (void)alloc;
    poller->at = poller->count = 0;
    poller->fd = hfsbi_above_standard(epoll_create1(EPOLL_CLOEXEC));
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
    struct epoll_event unused; /* early kernels want one */
    memset(&unused, 0, sizeof unused);
    (void)epoll_ctl(poller->fd, EPOLL_CTL_DEL, io->fd, &unused);
}

static void hfsbi_poller_unfind(hfsbi_poller *poller, const hfsbi_io *io) {
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
    if (found < 0 && errno != EINTR) hfsbi_poller_nap(ms);
    poller->at = 0;
    poller->count = found > 0 ? (size_t)found : 0;
}

static void hfsbi_poller_tell(hfsbi_poller *poller) {
    while (poller->at < poller->count) {
        const struct epoll_event *event = &poller->batch[poller->at++];
        uint32_t                  found = event->events;
        hfsbi_io                 *io = (hfsbi_io *)event->data.ptr;
        if (!io) continue;
        hfsbi_poller_tell_one(
            poller, io,
            (found & EPOLLIN ? (unsigned)HFSBI_IO_READ : 0) |
                (found & EPOLLOUT ? (unsigned)HFSBI_IO_WRITE : 0) |
                (found & EPOLLRDHUP ? (unsigned)HFSBI_IO_EOF : 0) |
                (found & (EPOLLERR | EPOLLHUP) ? (unsigned)HFSBI_IO_GONE : 0));
    }
}

/* ---- kqueue ---- */

#elif defined(HFSBI_KQUEUE)

/* hfsbi_io.place holds which filters there are: */
enum {
    HFSBI_FILTER_READ = 1,
    HFSBI_FILTER_END = 2, /* the read filter too, but only for its end */
    HFSBI_FILTER_WRITE = 4
};

HFSBI_FN bool hfsbi_poller_open(hfsbi_poller     *poller,
                                const hfsb_alloc *alloc) {
    (void)alloc;
    poller->at = poller->count = 0;
    poller->fd = hfsbi_above_standard(kqueue());
    return poller->fd >= 0 && fcntl(poller->fd, F_SETFD, FD_CLOEXEC) == 0;
}

static bool hfsbi_poller_filter(hfsbi_poller *poller, hfsbi_io *io, int filter,
                                int flags, unsigned fflags) {
    struct kevent change;
    EV_SET(&change, (uintptr_t)io->fd, (short)filter, (unsigned short)flags,
           fflags, fflags ? INT_MAX : 0, (void *)io);
    return kevent(poller->fd, &change, 1, NULL, 0, NULL) == 0;
}

/* The end is told by the read filter, whatever is asked for: each change once
   (EV_CLEAR), and where the kernel can, without those of mere bytes. */
static bool hfsbi_poller_put(hfsbi_poller *poller, hfsbi_io *io,
                             unsigned want) {
    size_t now =
        (want & HFSBI_IO_READ ? HFSBI_FILTER_READ : HFSBI_FILTER_END) |
        (want & HFSBI_IO_WRITE ? (size_t)HFSBI_FILTER_WRITE : 0);
    size_t before = io->known ? io->place : 0, changed = now ^ before;
    bool   ok = true;
    if (before & changed & (HFSBI_FILTER_READ | HFSBI_FILTER_END))
        (void)hfsbi_poller_filter(poller, io, EVFILT_READ, EV_DELETE, 0);
    if (before & changed & HFSBI_FILTER_WRITE)
        (void)hfsbi_poller_filter(poller, io, EVFILT_WRITE, EV_DELETE, 0);
    if (now & HFSBI_FILTER_READ & changed)
        ok = hfsbi_poller_filter(poller, io, EVFILT_READ, EV_ADD, 0);
    else if (now & HFSBI_FILTER_END)
        /* again when it is there, to be told of an end that came before */
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

static void hfsbi_poller_unfind(hfsbi_poller *poller, const hfsbi_io *io) {
    size_t i;
    for (i = poller->at; i < poller->count; i++)
        if ((const void *)poller->batch[i].udata == (const void *)io)
            poller->batch[i].udata = NULL;
}

HFSBI_FN void hfsbi_poller_wait(hfsbi_poller *poller, struct pollfd *list,
                                size_t n, int ms) {
    struct timespec time = HFSB_INIT;
    int             found = 0, wait = n == 0 ? ms : 0;
    time.tv_sec = wait / 1000;
    time.tv_nsec = (long)(wait % 1000) * 1000000L;
    if (n == 0 || hfsbi_poller_wait_guests(poller, list, n, ms))
        found = kevent(poller->fd, NULL, 0, poller->batch, HFSBI_POLLER_BATCH,
                       wait < 0 ? NULL : &time);
    if (found < 0 && errno != EINTR) hfsbi_poller_nap(ms);
    poller->at = 0;
    poller->count = found > 0 ? (size_t)found : 0;
}

/* kqueue tells of an end, not whether of one side or of both: poll() does. */
static unsigned hfsbi_poller_end(const hfsbi_io *io) {
    struct pollfd one = HFSB_INIT;
    one.fd = io->fd;
    (void)poll(&one, 1, 0);
    return (unsigned)HFSBI_IO_EOF |
           (one.revents & (POLLHUP | POLLERR | POLLNVAL)
                ? (unsigned)HFSBI_IO_GONE
                : 0);
}

HFSBI_FN void hfsbi_poller_tell(hfsbi_poller *poller) {
    while (poller->at < poller->count) {
        const struct kevent *event = &poller->batch[poller->at++];
        hfsbi_io            *io = (hfsbi_io *)event->udata;
        unsigned             events;
        if (!io) continue;
        events = event->filter == EVFILT_READ ? (unsigned)HFSBI_IO_READ
                                              : (unsigned)HFSBI_IO_WRITE;
        if (event->flags & EV_EOF) events |= hfsbi_poller_end(io);
        if (event->flags & EV_ERROR) events |= (unsigned)HFSBI_IO_GONE;
        hfsbi_poller_tell_one(poller, io, events);
    }
}

/* ---- poll() ---- */

#else

#ifndef POLLRDHUP
#define POLLRDHUP 0 /* an end is only seen by reading */
#endif

/* Room for n of ours and all guests. */
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

HFSBI_FN bool hfsbi_poller_open(hfsbi_poller     *poller,
                                const hfsb_alloc *alloc) {
    memset(poller, 0, sizeof *poller);
    poller->alloc = *alloc;
    errno = ENOMEM;
    return hfsbi_poller_room(poller, 1);
}

HFSBI_FN void hfsbi_poller_close(hfsbi_poller *poller) {
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
        if (!hfsbi_poller_room(poller, poller->count + 1)) {
            errno = ENOMEM;
            return false;
        }
        io->place = poller->count++;
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

/* Leaves a hole: others may be on their way through the list. */
static void hfsbi_poller_drop(hfsbi_poller *poller, hfsbi_io *io) {
    poller->ios[io->place] = NULL;
    poller->fds[io->place].fd = -1;
}

static void hfsbi_poller_unfind(hfsbi_poller *poller, const hfsbi_io *io) {
    if (io->known) poller->fds[io->place].revents = 0;
}

static void hfsbi_poller_close_holes(hfsbi_poller *poller) {
    size_t from, to = 0;
    for (from = 0; from < poller->count; from++) {
        if (!poller->ios[from]) continue;
        poller->fds[to] = poller->fds[from];
        poller->ios[to] = poller->ios[from];
        poller->ios[to]->place = to;
        to++;
    }
    poller->count = to;
}

HFSBI_FN void hfsbi_poller_wait(hfsbi_poller *poller, struct pollfd *list,
                                size_t n, int ms) {
    size_t i, all;
    int    found;
    hfsbi_poller_close_holes(poller);
    all = poller->count + n;
    if (n) memcpy(poller->fds + poller->count, list + 1, n * sizeof *list);
    found = poll(poller->fds, (nfds_t)all, ms);
    if (found < 0) {
        bool odd = errno != EINTR;
        if (odd) (void)poll(NULL, 0, ms < 0 || ms > 20 ? 20 : ms);
        for (i = 0; i < all; i++) poller->fds[i].revents = 0;
        for (i = poller->count; odd && i < all; i++)
            poller->fds[i].revents = POLLERR; /* look at them all */
    }
    if (n) memcpy(list + 1, poller->fds + poller->count, n * sizeof *list);
}

HFSBI_FN void hfsbi_poller_tell(hfsbi_poller *poller) {
    size_t i, n = poller->count; /* what comes behind is new */
    for (i = 0; i < n; i++) {
        int found = poller->fds[i].revents;
        poller->fds[i].revents = 0;
        if (!found || !poller->ios[i]) continue;
        hfsbi_poller_tell_one(
            poller, poller->ios[i],
            (found & POLLIN ? (unsigned)HFSBI_IO_READ : 0) |
                (found & POLLOUT ? (unsigned)HFSBI_IO_WRITE : 0) |
                (found & POLLRDHUP ? (unsigned)HFSBI_IO_EOF : 0) |
                (found & (POLLERR | POLLHUP | POLLNVAL)
                     ? (unsigned)HFSBI_IO_GONE
                     : 0));
    }
}

HFSBI_FN size_t hfsbi_poller_watch(const hfsbi_poller *poller,
                                   hfsb_watch *list, size_t max) {
    size_t i, n = 0;
    for (i = 0; i < poller->count; i++) {
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

/* ==== server pool ==== */

/* a few threads for work that may block. */

/* The deepest of the tools' functions stay far below this, blocks of 64 kB on
   the stack included; only what is touched costs memory. */
enum { HFSBI_POOL_STACK = 512 * 1024 };

/* max 0: no threads, tasks run in give(). False without memory. */
static bool hfsbi_pool_open(hfsbi_pool *pool, const hfsb_alloc *alloc,
                            size_t max,
                            void (*finished)(void *user, hfsbi_task *task),
                            void *user) {
    memset(pool, 0, sizeof *pool);
    pool->alloc = *alloc;
    pool->last = &pool->first;
    pool->finished = finished;
    pool->user = user;
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->more, NULL);
    if (max == 0) return true;
    pool->threads = (pthread_t *)hfsbi_array(alloc, max, sizeof(pthread_t));
    if (pool->threads) pool->max = max;
    return pool->threads != NULL;
}

/* The first task that waits; NULL when there is none. Under the lock. */
static hfsbi_task *hfsbi_pool_next(hfsbi_pool *pool) {
    hfsbi_task *task = pool->first;
    if (!task) return NULL;
    pool->first = task->next;
    if (!pool->first) pool->last = &pool->first;
    pool->waiting--;
    return task;
}

static void *hfsbi_pool_thread(void *arg) {
    hfsbi_pool *pool = (hfsbi_pool *)arg;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        hfsbi_task *task = hfsbi_pool_next(pool);
        if (task) {
            pthread_mutex_unlock(&pool->lock);
            task->run(task);
            pool->finished(pool->user, task); /* it may be gone after this */
            pthread_mutex_lock(&pool->lock);
        } else if (pool->ending) {
            break;
        } else {
            pool->idle++;
            (void)pthread_cond_wait(&pool->more, &pool->lock);
            pool->idle--;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* One more thread, under the lock; false when it cannot be had. It inherits a
   mask with all signals blocked: the host's signals are for its threads. */
static bool hfsbi_pool_start(hfsbi_pool *pool) {
    int rc = hfsbi_thread_start(&pool->threads[pool->count], HFSBI_POOL_STACK,
                                hfsbi_pool_thread, pool);
    if (rc == 0) pool->count++;
    return rc == 0;
}

/* A place for it among the threads; false when there is no thread at all.
   Threads that were woken but have not come to the lock yet still count as
   idle, and so do their tasks as waiting. */
static bool hfsbi_pool_queue(hfsbi_pool *pool, hfsbi_task *task) {
    bool queued;
    pthread_mutex_lock(&pool->lock);
    if (pool->waiting >= pool->idle && pool->count < pool->max &&
        !pool->ending)
        (void)hfsbi_pool_start(pool);
    queued = pool->count > 0;
    if (queued) {
        task->next = NULL;
        *pool->last = task;
        pool->last = &task->next;
        pool->waiting++;
        (void)pthread_cond_signal(&pool->more);
    }
    pthread_mutex_unlock(&pool->lock);
    return queued;
}

static void hfsbi_pool_give(hfsbi_pool *pool, hfsbi_task *task) {
    if (hfsbi_pool_queue(pool, task)) return;
    task->run(task);
    pool->finished(pool->user, task);
}

static void hfsbi_pool_end(hfsbi_pool *pool) {
    size_t i;
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    (void)pthread_cond_broadcast(&pool->more);
    pthread_mutex_unlock(&pool->lock);
    for (i = 0; i < pool->count; i++)
        (void)pthread_join(pool->threads[i], NULL);
    pool->count = 0;
}

static void hfsbi_pool_close(hfsbi_pool *pool) {
    hfsbi_pool_end(pool);
    hfsbi_array_free(&pool->alloc, pool->threads, pool->max,
                     sizeof(pthread_t));
    (void)pthread_cond_destroy(&pool->more);
    (void)pthread_mutex_destroy(&pool->lock);
}

struct hfsbi_loop {
    hfsb_alloc    alloc;
    hfsbi_poller  poller;
    hfsbi_pool    pool;
    hfsbi_timer   heap; /* its child is the root */
    hfsbi_timer   due;  /* its child is the first of those that run now */
    hfsbi_source *sources, *next_source; /* next: of those being stepped */
    long long     now;
    hfsbi_io      wake;
    int           wake_fds[2];

    pthread_mutex_t lock;                  /* for what is below: */
    hfsbi_task     *posted, **posted_last; /* done is due */
    size_t          pending;
    bool            woken; /* a byte for the posted ones is in the pipe */
};

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
   before it, and leaves a list of those due as it leaves the heap. */

/* Two trees become one. Either may be NULL. */
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

/* The children of a tree without its root: melded in pairs from the left, the
   pairs from the right. */
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

/* Out of the heap or the list of those due. */
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

/* First all that are due are listed: what they set runs in the next turn. */
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

/* When the next one is due; -1: never. */
static long long hfsbi_timers_next(const hfsbi_loop *loop) {
    const hfsbi_timer *root = loop->heap.child;
    return !root ? -1 : root->at < 0 ? 0 : root->at;
}

HFSBI_FN long long hfsbi_loop_now(const hfsbi_loop *loop) {
    return loop->now;
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
    /* Mostly its first descriptor is all there is to watch: that one is in
       the kernel's set, which makes one call of the whole wait. When that
       fails it is watched like the rest. */
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

/* What there is to watch besides what the kernel's set has: fills list, gives
   how many there are, which may be more than max. */
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

/* Asks all sources before a wait, fills fds; how many there are. One that has
   more than there is room for is looked at in any case. */
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

/* After the wait, before anyone can change the list of sources. */
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

/* done is due; from any thread. */
static void hfsbi_loop_append(hfsbi_loop *loop, hfsbi_task *task,
                              size_t count) {
    pthread_mutex_lock(&loop->lock);
    loop->pending += count;
    task->next = NULL;
    *loop->posted_last = task;
    loop->posted_last = &task->next;
    /* under the lock: once the task is done the loop may be closed */
    if (!loop->woken) hfsbi_wake_write(loop->wake_fds[1]);
    loop->woken = true;
    pthread_mutex_unlock(&loop->lock);
}

static void hfsbi_loop_finished(void *user, hfsbi_task *task) {
    hfsbi_loop_append((hfsbi_loop *)user, task, 0);
}

HFSBI_FN void hfsbi_loop_post(hfsbi_loop *loop, hfsbi_task *task) {
    hfsbi_loop_append(loop, task, 1);
}

HFSBI_FN void hfsbi_loop_work(hfsbi_loop *loop, hfsbi_task *task) {
    pthread_mutex_lock(&loop->lock);
    loop->pending++;
    pthread_mutex_unlock(&loop->lock);
    hfsbi_pool_give(&loop->pool, task);
}

HFSBI_FN size_t hfsbi_loop_pending(hfsbi_loop *loop) {
    size_t n;
    pthread_mutex_lock(&loop->lock);
    n = loop->pending;
    pthread_mutex_unlock(&loop->lock);
    return n;
}

/* Calls done of all that are posted by now; false when there was none. */
static bool hfsbi_loop_finish(hfsbi_loop *loop) {
    hfsbi_task *task, *next;
    pthread_mutex_lock(&loop->lock);
    task = loop->posted;
    loop->posted = NULL;
    loop->posted_last = &loop->posted;
    loop->woken = false;
    pthread_mutex_unlock(&loop->lock);
    if (!task) return false;
    for (; task; task = next) {
        next = task->next; /* done may free it or give it again */
        pthread_mutex_lock(&loop->lock);
        loop->pending--;
        pthread_mutex_unlock(&loop->lock);
        task->done(task);
    }
    return true;
}

/* Emptied first: what is posted after that and not found here writes again. */
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

/* ---- the loop ---- */

static void hfsbi_loop_free(hfsbi_loop *loop) {
    hfsb_alloc alloc = loop->alloc;
    hfsbi_pool_close(&loop->pool);
    hfsbi_poller_close(&loop->poller);
    hfsbi_close(&loop->wake_fds[0]);
    hfsbi_close(&loop->wake_fds[1]);
    (void)pthread_mutex_destroy(&loop->lock);
    hfsbi_array_free(&alloc, loop, 1, sizeof *loop);
}

/* False with errno. */
static bool hfsbi_loop_fill(hfsbi_loop *loop, size_t max_threads) {
    bool pool = hfsbi_pool_open(&loop->pool, &loop->alloc, max_threads,
                                hfsbi_loop_finished, loop);
    bool poller = hfsbi_poller_open(&loop->poller, &loop->alloc);
    if (!pool) errno = ENOMEM;
    if (!pool || !poller || !hfsbi_wake_open(loop->wake_fds)) return false;
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
        return hfsbi_fail_status(err, HFSB_NOMEM, "Opening the server's loop");
    memset(loop, 0, sizeof *loop);
    loop->alloc = *alloc;
    loop->wake_fds[0] = loop->wake_fds[1] = -1;
    loop->posted_last = &loop->posted;
    loop->now = hfsb_clock_ms();
    (void)pthread_mutex_init(&loop->lock, NULL);
    if (max_threads == 0) max_threads = 8;
    if (!hfsbi_loop_fill(loop, no_threads ? 0 : max_threads)) {
        hfsb_status st =
            hfsbi_fail_os(err, errno, "The server's loop cannot be opened");
        hfsbi_loop_free(loop);
        return st;
    }
    *out = loop;
    return hfsbi_ok(err);
}

HFSBI_FN void hfsbi_loop_close(hfsbi_loop *loop) {
    if (!loop) return;
    hfsbi_pool_end(&loop->pool);
    while (hfsbi_loop_finish(loop)) continue; /* done may give more to do */
    hfsbi_loop_free(loop);
}

/* Milliseconds to wait, after the sources were asked. */
static int hfsbi_loop_time(const hfsbi_loop *loop, long long wait_ms) {
    const hfsbi_source *source;
    long long           at = hfsbi_timers_next(loop), now;
    if (wait_ms == 0) return 0;
    now = hfsb_clock_ms();
    for (source = loop->sources; source; source = source->next) {
        at = hfsbi_sooner(at, source->at);
        if (source->ready) at = hfsbi_sooner(at, now + 20);
    }
    if (at >= 0) wait_ms = hfsbi_sooner(wait_ms, at > now ? at - now : 0);
    return wait_ms > INT_MAX ? INT_MAX : wait_ms < 0 ? -1 : (int)wait_ms;
}

HFSBI_FN void hfsbi_loop_turn(hfsbi_loop *loop, long long wait_ms) {
    struct pollfd list[1 + HFSBI_POLLER_GUESTS];
    size_t        n = hfsbi_sources_ask(loop, list + 1);
    hfsbi_poller_wait(&loop->poller, list, n, hfsbi_loop_time(loop, wait_ms));
    loop->now = hfsb_clock_ms();
    hfsbi_sources_look(loop, list + 1);
    hfsbi_poller_tell(&loop->poller);
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
        at = hfsbi_sooner(at, source->deadline(source->user));
    return at;
}
