/* test_pool.c - work in threads, and tasks that other threads post. */
#include "../support/t_loop.h"

static void work_runs_in_parallel_up_to_the_maximum(void) {
    enum { N = 24 };
    hfsbi_loop *loop = loop_open(3);
    counters    all;
    count_task  c[N];
    int         i;
    long long   begin = hfsb_clock_ms();
    counters_init(&all);
    for (i = 0; i < N; i++) {
        task_init(&c[i], &all, loop);
        c[i].nap_ms = 20;
        hfsbi_loop_work(loop, &c[i].task);
    }
    T_CHECK(hfsbi_loop_pending(loop) == N && all.done == 0);
    while (all.done < N && hfsb_clock_ms() - begin < 20000)
        loop_turn(loop, 1000);
    T_CHECK(all.done == N && all.ran == N && all.most >= 3);
    /* one more only next to a task that a busy machine made slow */
    T_CHECK(all.most == 3 || hfsb_clock_ms() - begin >= 1000);
    T_CHECK(hfsbi_loop_pending(loop) == 0);
    for (i = 0; i < N; i++) T_CHECK(!c[i].inside && c[i].all_blocked);
    hfsbi_loop_close(loop);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

/* Waits until the gate is unlocked. */
static void task_block(hfsbi_task *task) {
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    task_run(task);
}

/* Tasks that take long do not count: others run next to them. */
static void slow_work_does_not_hold_up_other_work(void) {
    enum { SLOW = 5, QUICK = 4, MAX = 2 };
    hfsbi_loop *loop = loop_open(MAX);
    counters    all;
    count_task  slow[SLOW], quick[QUICK];
    size_t      i;
    long long   begin = hfsb_clock_ms();
    counters_init(&all);
    pthread_mutex_lock(&gate);
    for (i = 0; i < SLOW; i++) {
        task_init(&slow[i], &all, loop);
        slow[i].task.run = task_block;
        hfsbi_loop_work(loop, &slow[i].task);
    }
    for (i = 0; i < QUICK; i++) {
        task_init(&quick[i], &all, loop);
        quick[i].nap_ms = 50;
        hfsbi_loop_work(loop, &quick[i].task);
    }
    while (all.done < QUICK && hfsb_clock_ms() - begin < 60000)
        loop_turn(loop, 1000);
    T_CHECK(all.done == QUICK);
    T_CHECK(all.most <= MAX || hfsb_clock_ms() - begin >= 2000);
    pthread_mutex_unlock(&gate);
    while (all.done < QUICK + SLOW &&
           hfsb_clock_ms() - begin < 60000)
        loop_turn(loop, 1000);
    T_CHECK(all.done == QUICK + SLOW);
    hfsbi_loop_close(loop);
}

/* False if a busy machine held the urgent work up. */
static bool urgent_work_overtakes(void) {
    enum { N = 6 };
    hfsbi_loop *loop = loop_open(2);
    counters    all;
    count_task  c[N + 2];
    int         i;
    long long   begin = hfsb_clock_ms();
    counters_init(&all);
    for (i = 0; i < N + 2; i++) {
        task_init(&c[i], &all, loop);
        c[i].nap_ms = i < N ? 300 : 0;
        c[i].task.urgent = i >= N;
        hfsbi_loop_work(loop, &c[i].task);
    }
    while (all.done < N + 2 && hfsb_clock_ms() - begin < 20000)
        loop_turn(loop, 1000);
    T_CHECK(all.done == N + 2);
    T_CHECK(all.most <= 3 || hfsb_clock_ms() - begin >= 1000);
    hfsbi_loop_close(loop);
    /* before the first of those that take long has ended */
    return c[N].order < 2 && c[N + 1].order < 2;
}

static void urgent_work_does_not_wait_for_busy_threads(void) {
    int i;
    for (i = 0; i < 10 && !urgent_work_overtakes(); i++) continue;
    T_CHECK(i < 10);
}

static void one_thread_works_in_the_order_given(void) {
    enum { N = 50 };
    hfsbi_loop *loop = loop_open(1);
    counters    all;
    count_task  c[N];
    size_t      i;
    counters_init(&all);
    for (i = 0; i < N; i++) {
        task_init(&c[i], &all, loop);
        hfsbi_loop_work(loop, &c[i].task);
    }
    while (all.done < N) loop_turn(loop, 1000);
    for (i = 0; i < N; i++) T_CHECK(c[i].order == i);
    T_CHECK(all.most == 1);
    hfsbi_loop_close(loop);
}

static void without_threads_work_runs_at_once_and_done_later(void) {
    hfsbi_loop *loop = loop_open(0);
    counters    all;
    count_task  c;
    counters_init(&all);
    task_init(&c, &all, loop);
    hfsbi_loop_work(loop, &c.task);
    T_CHECK(all.ran == 1 && c.inside && all.done == 0);
    T_CHECK(hfsbi_loop_pending(loop) == 1);
    loop_turn(loop, 20000);
    T_CHECK(all.done == 1 && hfsbi_loop_pending(loop) == 0);
    hfsbi_loop_close(loop);
}

/* What is under way when the loop closes runs to its end, and what its done
   gives to do as well. */
static void task_done_gives_more(hfsbi_task *task) {
    task_done(task);
    task->done = task_done;
    hfsbi_loop_work(((count_task *)(void *)task)->loop, task);
}

static void close_waits_for_the_work_and_calls_done(void) {
    hfsbi_loop *loop = loop_open(2);
    counters    all;
    count_task  c[6];
    int         i;
    counters_init(&all);
    for (i = 0; i < 6; i++) {
        task_init(&c[i], &all, loop);
        c[i].nap_ms = 10;
        if (i == 4) c[i].task.done = task_done_gives_more;
        hfsbi_loop_work(loop, &c[i].task);
    }
    hfsbi_loop_close(loop);
    T_CHECK(all.ran == 7 && all.done == 7);
}

/* Posts its tasks one by one; each is posted once. */
typedef struct poster {
    hfsbi_loop *loop;
    count_task *tasks;
    size_t      n;
} poster;

static void *poster_thread(void *arg) {
    poster *p = (poster *)arg;
    size_t  i;
    for (i = 0; i < p->n; i++) hfsbi_loop_post(p->loop, &p->tasks[i].task);
    return NULL;
}

static void no_post_of_many_threads_is_lost(void) {
    enum { THREADS = 4, N = 10000 };
    hfsbi_loop *loop = loop_open(0);
    counters    all;
    count_task *c = (count_task *)malloc(sizeof *c * THREADS * N);
    poster      p[THREADS];
    pthread_t   threads[THREADS];
    size_t      i, k;
    long long   begin = hfsb_clock_ms();
    if (!c) abort();
    counters_init(&all);
    for (i = 0; i < THREADS * N; i++) task_init(&c[i], &all, loop);
    for (k = 0; k < THREADS; k++) {
        p[k].loop = loop;
        p[k].tasks = c + k * N;
        p[k].n = N;
        if (pthread_create(&threads[k], NULL, poster_thread, &p[k]) != 0)
            abort();
    }
    while (all.done < THREADS * N && hfsb_clock_ms() - begin < 60000)
        loop_turn(loop, 30000); /* a lost wake would cost 30 s */
    T_CHECK(hfsb_clock_ms() - begin < 25000 || t_quick());
    for (k = 0; k < THREADS; k++) (void)pthread_join(threads[k], NULL);
    T_CHECK(all.done == THREADS * N && hfsbi_loop_pending(loop) == 0);
    for (k = 0; k < THREADS; k++) /* each thread's in its order */
        for (i = 1; i < N; i++)
            if (p[k].tasks[i].order <= p[k].tasks[i - 1].order) T_CHECK(false);
    hfsbi_loop_close(loop);
    free(c);
}

/* A task posted by a task's done waits for the next turn. */
static void task_posts_itself(hfsbi_task *task) {
    count_task *c = (count_task *)(void *)task;
    *c->done += 1;
    if (*c->done < 5) hfsbi_loop_post(c->loop, task);
}

static void a_task_may_post_itself_without_an_endless_turn(void) {
    hfsbi_loop *loop = loop_open(0);
    counters    all;
    count_task  c;
    size_t      i;
    counters_init(&all);
    task_init(&c, &all, loop);
    c.task.done = task_posts_itself;
    hfsbi_loop_post(loop, &c.task);
    for (i = 1; i <= 5; i++) {
        loop_turn(loop, 1000);
        T_CHECK(all.done == i);
    }
    hfsbi_loop_close(loop);
}

/* ---- outside the wall ---- */

static pthread_key_t walled; /* set in threads that have entered the wall */

static void wall_enter(const hfsbi_wall *wall) {
    (void)pthread_setspecific(walled, wall);
}

static void wall_free(hfsbi_wall *wall) {
    wall->enter = NULL;
}

typedef struct errands {
    count_task c; /* first */
    bool       entered;
    int        made, inside; /* inside: made within the wall */
} errands;

static void make_errand(void *user) {
    errands *e = (errands *)user;
    e->made++;
    if (pthread_getspecific(walled)) e->inside++;
}

static void send_errands(hfsbi_task *task) {
    errands *e = (errands *)(void *)task;
    int      i;
    e->entered = pthread_getspecific(walled) != NULL;
    for (i = 0; i < 50; i++)
        hfsbi_loop_outside(e->c.loop, make_errand, e);
    task_run(task);
}

/* Errands are made outside while all threads there are busy, and also while
   the loop is closed. */
static void errands_are_made_outside_the_wall(void) {
    enum { N = 4 };
    int round, i;
    T_CHECK(pthread_key_create(&walled, NULL) == 0);
    for (round = 0; round < 6; round++) {
        hfsbi_loop *loop = loop_open(round % 2 ? 1 : 3);
        hfsbi_wall  wall = HFSB_INIT;
        counters    all;
        errands     e[N];
        count_task  busy[N];
        long long   begin = hfsb_clock_ms();
        wall.enter = wall_enter;
        wall.free = wall_free;
        counters_init(&all);
        memset(e, 0, sizeof e);
        hfsbi_loop_lock(loop);
        T_CHECK(hfsbi_loop_set_wall(loop, &wall));
        hfsbi_loop_unlock(loop);
        for (i = 0; i < N; i++) {
            task_init(&busy[i], &all, loop);
            busy[i].nap_ms = 5;
            hfsbi_loop_work(loop, &busy[i].task);
            task_init(&e[i].c, &all, loop);
            e[i].c.task.run = send_errands;
            e[i].c.task.rights.walled = true;
            hfsbi_loop_work(loop, &e[i].c.task);
        }
        while (round < 4 && all.done < 2 * N &&
               hfsb_clock_ms() - begin < 20000)
            loop_turn(loop, 1000);
        hfsbi_loop_close(loop);
        T_CHECK(all.done == 2 * N && !wall.enter);
        for (i = 0; i < N; i++)
            T_CHECK(e[i].entered && e[i].made == 50 && e[i].inside == 0);
    }
    (void)pthread_key_delete(walled);
}

int main(void) {
    T_RUN(work_runs_in_parallel_up_to_the_maximum);
    T_RUN(slow_work_does_not_hold_up_other_work);
    T_RUN(urgent_work_does_not_wait_for_busy_threads);
    T_RUN(one_thread_works_in_the_order_given);
    T_RUN(without_threads_work_runs_at_once_and_done_later);
    T_RUN(close_waits_for_the_work_and_calls_done);
    T_RUN(errands_are_made_outside_the_wall);
    T_RUN(no_post_of_many_threads_is_lost);
    T_RUN(a_task_may_post_itself_without_an_endless_turn);
    return T_END();
}
