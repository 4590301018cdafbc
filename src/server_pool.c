/* server_pool.c - a few threads for work that may block. Depends on: base, os.
 */
#include "server_loop_parts.h"

/* The deepest of the tools' functions stay far below this, blocks of 64 kB on
   the stack included; only what is touched costs memory. */
enum { HFSBI_POOL_STACK = 512 * 1024 };

HFSBI_FN bool hfsbi_pool_open(hfsbi_pool *pool, const hfsb_alloc *alloc,
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

HFSBI_FN void hfsbi_pool_give(hfsbi_pool *pool, hfsbi_task *task) {
    if (hfsbi_pool_queue(pool, task)) return;
    task->run(task);
    pool->finished(pool->user, task);
}

HFSBI_FN void hfsbi_pool_end(hfsbi_pool *pool) {
    size_t i;
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    (void)pthread_cond_broadcast(&pool->more);
    pthread_mutex_unlock(&pool->lock);
    for (i = 0; i < pool->count; i++)
        (void)pthread_join(pool->threads[i], NULL);
    pool->count = 0;
}

HFSBI_FN void hfsbi_pool_close(hfsbi_pool *pool) {
    hfsbi_pool_end(pool);
    hfsbi_array_free(&pool->alloc, pool->threads, pool->max,
                     sizeof(pthread_t));
    (void)pthread_cond_destroy(&pool->more);
    (void)pthread_mutex_destroy(&pool->lock);
}
