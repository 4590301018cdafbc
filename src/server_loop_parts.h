#pragma once

/* What the event loop is made of: the kernel's set of descriptors and the
   threads. Private to the loop. */

#include "server_loop.h"
#include "server_os.h"

/* ---- the kernel's set: epoll, kqueue, or a list for poll() ---- */

enum {
    HFSBI_POLLER_BATCH = 256, /* events found by one wait */
    HFSBI_POLLER_GUESTS = 512 /* descriptors that are not in the set */
};

/* Events are found by wait and told by tell. In between, and while they are
   told, the entries of what is forgotten are emptied: from `at` on. */
typedef struct hfsbi_poller {
#if defined(HFSBI_EPOLL)
    int                fd;
    size_t             at, count;
    struct epoll_event batch[HFSBI_POLLER_BATCH];
#elif defined(HFSBI_KQUEUE)
    int           fd;
    size_t        at, count;
    struct kevent batch[HFSBI_POLLER_BATCH];
#else
    hfsb_alloc     alloc;
    struct pollfd *fds; /* room for the guests behind `count` */
    hfsbi_io     **ios; /* NULL: forgotten since the last wait */
    size_t         count, fds_cap, ios_cap;
#endif
} hfsbi_poller;

/* False with errno; close it even so. */
HFSBI_FN bool hfsbi_poller_open(hfsbi_poller *poller, const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_poller_close(hfsbi_poller *poller);
/* As hfsbi_loop_io() and hfsbi_loop_io_forget(). */
HFSBI_FN bool hfsbi_poller_set(hfsbi_poller *poller, hfsbi_io *io,
                               unsigned want);
HFSBI_FN void hfsbi_poller_forget(hfsbi_poller *poller, hfsbi_io *io);
/* Waits ms (below 0: as long as it takes) for an event of the set or of the
   n guests, which begin at list[1]: list[0] is for the poller itself. Their
   revents are filled. The guests never come into the kernel's set: they are
   closed and their numbers used again without a word, and a forked process
   that holds a copy would keep them in it. */
HFSBI_FN void hfsbi_poller_wait(hfsbi_poller *poller, struct pollfd *list,
                                size_t n, int ms);
/* Calls fn for what was found. */
HFSBI_FN void hfsbi_poller_tell(hfsbi_poller *poller);
/* What stands for the whole set in someone else's loop. */
HFSBI_FN size_t hfsbi_poller_watch(const hfsbi_poller *poller,
                                   hfsb_watch *list, size_t max);

/* ---- threads ---- */

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

/* max 0: no threads, tasks run in give(). False without memory. */
HFSBI_FN bool hfsbi_pool_open(hfsbi_pool *pool, const hfsb_alloc *alloc,
                              size_t max,
                              void (*finished)(void *user, hfsbi_task *task),
                              void *user);
HFSBI_FN void hfsbi_pool_give(hfsbi_pool *pool, hfsbi_task *task);
/* Waits until all that was given has run and the threads have ended. What is
   given afterwards runs in give(). */
HFSBI_FN void hfsbi_pool_end(hfsbi_pool *pool);
HFSBI_FN void hfsbi_pool_close(hfsbi_pool *pool);
