/* pool.c - threads for work that may block, and its results in a loop.

   A task is given to the pool, run in one of its threads, and delivered to the
   loop, which calls its done:

       add() --> waiting or urgent --> run, in a thread --> done, in the loop

   Threads are started when all are busy, and stay. Tasks that wait for a slow
   disk must not hold up all others: only tasks younger than HFSBI_POOL_SLOW_MS
   count towards `max`, and older ones run in addition, as long as there are
   threads. While tasks wait that no thread may take yet, a timer of the loop
   checks the pool from time to time. One more thread is kept for urgent tasks,
   which never wait for others.

   A thread inherits the wall of the one that starts it. So a thread that has
   entered a wall starts none: the loop does that for it.

   Locks are taken in this order: the loop, the pool, the loop's queue. */
#include "os_private.h"

/* With everything that the tools call, including blocks of 64 kB, threads of
   the pool stay far below this stack; only touched pages cost memory. */
enum { HFSBI_POOL_STACK = 512 * 1024 };

enum {
    HFSBI_POOL_SLOW_MS = 1000,
    HFSBI_POOL_MORE = 8,     /* threads, times `max` */
    HFSBI_POOL_LOOK_MS = 250 /* how often a full pool is checked */
};

typedef struct hfsbi_worker {
    hfsbi_pool *pool;
    pthread_t   thread;
    long long   began; /* when its task began; -1: it has none */
} hfsbi_worker;

struct hfsbi_pool {
    hfsb_alloc        alloc;
    hfsbi_loop       *loop;
    hfsbi_timer       timer;   /* checks a full pool; under the loop's lock */
    const hfsbi_wall *wall;    /* of its threads (NULL: none) */
    pthread_mutex_t   lock;    /* protects all below */
    pthread_cond_t    more;    /* a task arrived or may run now, or the end */
    hfsbi_queue       waiting; /* for a thread */
    hfsbi_queue       urgent;  /* the same; these run first */
    size_t            length;  /* of both queues */
    size_t            idle;    /* threads that wait for a task */
    hfsbi_worker     *workers; /* `most` of them, `count` have a thread; one
                                of them is for an urgent task */
    size_t            count, max, most;
    bool              ending;
};

/* ---- queues ---- */

HFSBI_FN void hfsbi_queue_init(hfsbi_queue *queue) {
    queue->first = NULL;
    queue->last = &queue->first;
}

HFSBI_FN void hfsbi_queue_add(hfsbi_queue *queue, hfsbi_task *task) {
    task->next = NULL;
    *queue->last = task;
    queue->last = &task->next;
}

HFSBI_FN hfsbi_task *hfsbi_queue_take(hfsbi_queue *queue) {
    hfsbi_task *task = queue->first;
    if (!task) return NULL;
    queue->first = task->next;
    if (!task->next) hfsbi_queue_init(queue);
    return task;
}

/* ---- threads; all of it under the lock of the pool ---- */

/* How many tasks run that are not slow. */
static size_t hfsbi_pool_quick(const hfsbi_pool *pool) {
    long long now = hfsb_clock_ms();
    size_t    i, n = 0;
    for (i = 0; i < pool->count; i++)
        n += pool->workers[i].began >= 0 &&
             now - pool->workers[i].began < HFSBI_POOL_SLOW_MS;
    return n;
}

/* Takes the next task for a thread, or NULL. */
static hfsbi_task *hfsbi_pool_next(hfsbi_pool *pool) {
    hfsbi_task *task = hfsbi_queue_take(&pool->urgent);
    if (!task && (pool->ending || hfsbi_pool_quick(pool) < pool->max))
        task = hfsbi_queue_take(&pool->waiting);
    if (task) pool->length--;
    return task;
}

/* Runs a task with its rights. A thread of the pool drops the groups of this
   process for good: as root it does not need them, as another user it must not
   have them. hfsbi_uids_take() has checked that the rights of a uid can be
   taken, which depends on the process alone. */
static void hfsbi_pool_run(hfsbi_task *task, bool own_thread) {
    unsigned uid = task->rights.uid;
    if (uid && own_thread) (void)hfsbi_thread_drop_groups();
    if (uid) (void)hfsbi_thread_set_uid(uid);
    task->run(task);
    if (uid) (void)hfsbi_thread_set_uid(0);
}

static void *hfsbi_pool_thread(void *arg) {
    hfsbi_worker *self = (hfsbi_worker *)arg;
    hfsbi_pool   *pool = self->pool;
    if (pool->wall) pool->wall->enter(pool->wall);
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        hfsbi_task *task = hfsbi_pool_next(pool);
        if (task) {
            if (!task->urgent) self->began = hfsb_clock_ms();
            pthread_mutex_unlock(&pool->lock);
            hfsbi_pool_run(task, true);
            pthread_mutex_lock(&pool->lock);
            self->began = -1;
            hfsbi_loop_deliver(pool->loop, task);
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

static bool hfsbi_pool_start_thread(hfsbi_pool *pool) {
    hfsbi_worker *worker = &pool->workers[pool->count];
    worker->pool = pool;
    worker->began = -1;
    if (hfsbi_thread_start(&worker->thread, HFSBI_POOL_STACK,
                           hfsbi_pool_thread, worker) != 0)
        return false;
    pool->count++;
    return true;
}

/* Starts threads for as many of the `length` tasks as may run now: at most
   max, which may be one more than usual for an urgent task. Woken threads that
   do not yet have the lock still count as idle, and their tasks as waiting. */
static void hfsbi_pool_grow(hfsbi_pool *pool, size_t length, size_t max) {
    size_t n = pool->idle, quick;
    size_t most = pool->most - (max == pool->max);
    if (pool->ending || n >= length || pool->count >= most) return;
    quick = hfsbi_pool_quick(pool);
    for (; n < length && quick + n < max && pool->count < most; n++)
        if (!hfsbi_pool_start_thread(pool)) return;
}

/* Gives a task to the threads; false when no thread exists. */
static bool hfsbi_pool_queue(hfsbi_pool *pool, hfsbi_task *task,
                             bool may_grow) {
    size_t max = pool->max + (pool->max && task->urgent);
    if (may_grow && pool->length >= pool->idle)
        hfsbi_pool_grow(pool, pool->length + 1, max);
    if (pool->count == 0) return false;
    hfsbi_queue_add(task->urgent ? &pool->urgent : &pool->waiting, task);
    pool->length++;
    (void)pthread_cond_signal(&pool->more);
    return true;
}

/* Sets the timer while tasks wait that no thread may take yet, or for which
   the loop must start a thread. Also needs the lock of the loop. */
static void hfsbi_pool_watch(hfsbi_pool *pool, bool may_grow) {
    if (!may_grow && pool->length > pool->idle)
        hfsbi_loop_timer(pool->loop, &pool->timer, 0);
    if (pool->length == 0 || pool->timer.set ||
        pool->length + hfsbi_pool_quick(pool) <= pool->max)
        return;
    hfsbi_loop_timer(pool->loop, &pool->timer,
                     hfsb_clock_ms() + HFSBI_POOL_LOOK_MS);
}

/* Called by the timer: running tasks may have become slow meanwhile. */
static void hfsbi_pool_look(hfsbi_timer *timer) {
    hfsbi_pool *pool =
        (hfsbi_pool *)(void *)((char *)timer - offsetof(hfsbi_pool, timer));
    pthread_mutex_lock(&pool->lock);
    hfsbi_pool_grow(pool, pool->length, pool->max);
    (void)pthread_cond_broadcast(&pool->more);
    hfsbi_pool_watch(pool, true);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- open, work, close ---- */

HFSBI_FN bool hfsbi_pool_is_here(hfsbi_pool *pool) {
    size_t i;
    bool   here = false;
    pthread_mutex_lock(&pool->lock);
    for (i = 0; i < pool->count && !here; i++)
        here = pthread_equal(pool->workers[i].thread, pthread_self()) != 0;
    pthread_mutex_unlock(&pool->lock);
    return here;
}

HFSBI_FN bool hfsbi_pool_start(hfsbi_pool *pool) {
    bool started;
    pthread_mutex_lock(&pool->lock);
    started =
        pool->count > 0 || (pool->max > 0 && hfsbi_pool_start_thread(pool));
    pthread_mutex_unlock(&pool->lock);
    return started;
}

HFSBI_FN void hfsbi_pool_add(hfsbi_pool *pool, hfsbi_task *task,
                             bool may_grow) {
    bool given;
    hfsbi_loop_lock(pool->loop);
    pthread_mutex_lock(&pool->lock);
    given = hfsbi_pool_queue(pool, task, may_grow);
    if (given) hfsbi_loop_expect(pool->loop);
    if (given) hfsbi_pool_watch(pool, may_grow);
    pthread_mutex_unlock(&pool->lock);
    hfsbi_loop_unlock(pool->loop);
    if (given) return;
    hfsbi_pool_run(task, false);
    hfsbi_loop_post(pool->loop, task);
}

HFSBI_FN size_t hfsbi_pool_max(const hfsbi_pool *pool) {
    return pool->max;
}

HFSBI_FN void hfsbi_pool_end(hfsbi_pool *pool) {
    size_t i;
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    (void)pthread_cond_broadcast(&pool->more);
    pthread_mutex_unlock(&pool->lock);
    for (i = 0; i < pool->count; i++)
        (void)pthread_join(pool->workers[i].thread, NULL);
    pool->count = 0;
}

HFSBI_FN void hfsbi_pool_close(hfsbi_pool *pool) {
    hfsb_alloc alloc;
    if (!pool) return;
    alloc = pool->alloc;
    hfsbi_pool_end(pool);
    hfsbi_loop_timer_clear(pool->loop, &pool->timer);
    hfsbi_array_free(&alloc, pool->workers, pool->most, sizeof *pool->workers);
    (void)pthread_cond_destroy(&pool->more);
    (void)pthread_mutex_destroy(&pool->lock);
    hfsbi_array_free(&alloc, pool, 1, sizeof *pool);
}

HFSBI_FN hfsbi_pool *hfsbi_pool_open(hfsbi_loop *loop, size_t max,
                                     const hfsbi_wall *wall) {
    hfsb_alloc  alloc = hfsbi_loop_alloc(loop);
    hfsbi_pool *pool = (hfsbi_pool *)hfsbi_array(&alloc, 1, sizeof *pool);
    if (!pool) return NULL;
    memset(pool, 0, sizeof *pool);
    pool->alloc = alloc;
    pool->loop = loop;
    pool->wall = wall;
    pool->timer.fn = hfsbi_pool_look;
    hfsbi_queue_init(&pool->waiting);
    hfsbi_queue_init(&pool->urgent);
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->more, NULL);
    pool->max = max;
    if (max == 0) return pool;
    pool->workers = (hfsbi_worker *)hfsbi_array(
        &alloc, HFSBI_POOL_MORE * max + 1, sizeof *pool->workers);
    if (pool->workers) pool->most = HFSBI_POOL_MORE * max + 1;
    if (pool->workers) return pool;
    hfsbi_pool_close(pool);
    return NULL;
}
