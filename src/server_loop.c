/* server_loop.c - the turns of the event loop: descriptors, timers, sources,
   tasks. Depends on: server_poller, server_pool. */
#include "server_loop_parts.h"

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
