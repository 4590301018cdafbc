/* test_loop.c - the turns of the event loop: timers, threads, waking. */
#include "../support/t_loop.h"

/* ---- timers ---- */

typedef struct seen_timer {
    hfsbi_timer timer; /* first */
    hfsbi_loop *loop;
    size_t      calls;
    long long   at;
    size_t     *order, place;
    hfsbi_timer *clears;
    bool         again; /* sets itself to now */
} seen_timer;

static void timer_fn(hfsbi_timer *timer) {
    seen_timer *s = (seen_timer *)(void *)timer;
    s->calls++;
    T_CHECK(!timer->set);
    T_CHECK(hfsb_clock_ms() >= s->at);
    if (s->order) s->place = (*s->order)++;
    if (s->clears) hfsbi_loop_timer_clear(s->loop, s->clears);
    if (s->again) hfsbi_loop_timer(s->loop, timer, hfsbi_loop_now(s->loop));
}

/* Counts, without a check: another thread may be checking. */
static void count_timer(hfsbi_timer *timer) {
    ((seen_timer *)(void *)timer)->calls++;
}

static void timer_set(seen_timer *s, hfsbi_loop *loop, long long at) {
    s->timer.fn = timer_fn;
    s->loop = loop;
    s->at = at;
    hfsbi_loop_timer(loop, &s->timer, at);
}

static void timers_run_in_the_order_of_their_time(void) {
    hfsbi_loop *loop = loop_open(0);
    seen_timer  t[4];
    size_t      order = 0, i;
    long long   now = hfsb_clock_ms();
    memset(t, 0, sizeof t);
    for (i = 0; i < 4; i++) t[i].order = &order;
    timer_set(&t[0], loop, now + 30);
    timer_set(&t[1], loop, now + 10);
    timer_set(&t[2], loop, now + 20);
    timer_set(&t[3], loop, now + 5);
    hfsbi_loop_timer_clear(loop, &t[3].timer);
    hfsbi_loop_timer_clear(loop, &t[3].timer); /* twice is quiet */
    T_CHECK(!t[3].timer.set && t[0].timer.set);
    T_CHECK(hfsbi_loop_deadline(loop) == now + 10);
    while (order < 3) loop_turn(loop, 20000);
    T_CHECK(t[1].place == 0 && t[2].place == 1 && t[0].place == 2);
    T_CHECK(t[3].calls == 0 && hfsbi_loop_deadline(loop) == -1);
    hfsbi_loop_close(loop);
}

static void a_turn_waits_until_the_next_timer(void) {
    hfsbi_loop *loop = loop_open(0);
    seen_timer  t;
    long long   begin = hfsb_clock_ms();
    int         n = 0;
    memset(&t, 0, sizeof t);
    timer_set(&t, loop, begin + 50);
    while (t.calls == 0 && n < 100) {
        loop_turn(loop, -1);
        n++;
    }
    T_CHECK(n == 1 && hfsb_clock_ms() - begin < 15000);
    begin = hfsb_clock_ms();
    timer_set(&t, loop, begin + 100000);
    timer_set(&t, loop, begin + 300); /* replaces the first */
    loop_turn(loop, 5);
    T_CHECK(t.calls == 1 || hfsb_clock_ms() - begin >= 300);
    T_CHECK(hfsb_clock_ms() - begin >= 5);
    if (t.calls == 1) loop_turn(loop, 20000);
    T_CHECK(t.calls == 2 && hfsbi_loop_deadline(loop) == -1);
    timer_set(&t, loop, -5); /* long ago */
    T_CHECK(hfsbi_loop_deadline(loop) == 0);
    loop_turn(loop, 20000);
    T_CHECK(t.calls == 3);
    hfsbi_loop_close(loop);
}

static void timers_may_be_set_and_cleared_in_a_timer(void) {
    hfsbi_loop *loop = loop_open(0);
    seen_timer  t[3];
    long long   now = hfsb_clock_ms();
    memset(t, 0, sizeof t);
    t[0].again = true;
    t[0].clears = &t[1].timer; /* due in the same turn, after it */
    timer_set(&t[0], loop, now - 3);
    timer_set(&t[1], loop, now - 2);
    timer_set(&t[2], loop, now - 1);
    loop_turn(loop, 20000);
    T_CHECK(t[0].calls == 1 && t[1].calls == 0 && t[2].calls == 1);
    loop_turn(loop, 20000);
    T_CHECK(t[0].calls == 2);
    t[0].again = false;
    loop_turn(loop, 20000);
    T_CHECK(t[0].calls == 3 && hfsbi_loop_deadline(loop) == -1);
    hfsbi_loop_close(loop);
}

/* Random settings, clearings and passing of time against a plain list. The
   times are in the past or far ahead, so that the model knows what is due. */
static void timers_do_what_a_sorted_list_does(void) {
    enum { N = 10000 };
    static seen_timer  t[N];
    static long long   model[N]; /* -1: not set */
    static int         expected[N];
    hfsbi_loop        *loop = loop_open(0);
    unsigned long long seed = 7;
    long long          base = hfsb_clock_ms() + 3600 * 1000, last;
    size_t             i, order = 0, round, set = 0;
    memset(t, 0, sizeof t);
    memset(expected, 0, sizeof expected);
    for (i = 0; i < N; i++) model[i] = -1;
    for (round = 0; round < 60000; round++) {
        i = t_random(&seed) % N;
        if (t_random(&seed) % 4 == 0) {
            hfsbi_loop_timer_clear(loop, &t[i].timer);
            model[i] = -1;
        } else {
            model[i] = base + (long long)(t_random(&seed) % 50000);
            timer_set(&t[i], loop, model[i]);
        }
        if (round % 1000 == 0) {
            long long first = -1;
            for (i = 0; i < N; i++) first = hfsbi_earlier(first, model[i]);
            T_CHECK(hfsbi_loop_deadline(loop) == first);
        }
    }
    loop_turn(loop, 0);
    T_CHECK(order == 0);
    for (i = 0; i < N; i++) { /* the same, an hour and more ago */
        t[i].order = &order;
        if (model[i] < 0) continue;
        model[i] -= 7200 * 1000;
        timer_set(&t[i], loop, model[i]);
        expected[i] = 1; /* the time may be -1 now: the clock starts at boot */
        set++;
    }
    loop_turn(loop, 0);
    T_CHECK(order == set);
    for (i = 0; i < N; i++) T_CHECK(t[i].calls == expected[i]);
    { /* by place, the times never go back */
        static long long by_place[N];
        for (i = 0; i < N; i++)
            if (t[i].calls) by_place[t[i].place] = model[i];
        for (i = 1, last = by_place[0]; i < set; i++) {
            T_CHECK(by_place[i] >= last);
            last = by_place[i];
        }
    }
    T_CHECK(hfsbi_loop_deadline(loop) == -1);
    hfsbi_loop_close(loop);
}

/* ---- several threads in one loop ---- */

typedef struct turner {
    hfsbi_loop *loop;
    pthread_t   thread;
    bool        stop; /* under the loop's lock */
    size_t      turns;
} turner;

/* Turns the loop until it is stopped, as a thread in a call does. */
static void *turner_run(void *arg) {
    turner *t = (turner *)arg;
    hfsbi_loop_lock(t->loop);
    while (!t->stop) {
        hfsbi_loop_turn(t->loop, 20000);
        t->turns++;
    }
    hfsbi_loop_unlock(t->loop);
    return NULL;
}

/* True when a thread waits in the loop: a host has nothing to wait for. */
static bool waits(hfsbi_loop *loop) {
    hfsb_watch list[16];
    bool       so;
    hfsbi_loop_lock(loop);
    so = hfsbi_loop_watch(loop, list, 16) == 0;
    hfsbi_loop_unlock(loop);
    return so;
}

static void turner_start(turner *t, hfsbi_loop *loop) {
    long long end = hfsb_clock_ms() + 20000;
    memset(t, 0, sizeof *t);
    t->loop = loop;
    if (pthread_create(&t->thread, NULL, turner_run, t) != 0) abort();
    (void)poll(NULL, 0, 20); /* most likely it waits by now */
    while (!waits(loop) && hfsb_clock_ms() < end) (void)poll(NULL, 0, 1);
}

static void turner_end(turner *t) {
    hfsbi_loop_lock(t->loop);
    t->stop = true;
    hfsbi_loop_unlock(t->loop);
    hfsbi_loop_wake(t->loop);
    (void)pthread_join(t->thread, NULL);
}

/* True when *calls, which changes under the lock, becomes n. */
static bool becomes(hfsbi_loop *loop, const size_t *calls, size_t n) {
    long long end = hfsb_clock_ms() + 30000;
    bool      is = false;
    while (!is && hfsb_clock_ms() < end) {
        hfsbi_loop_lock(loop);
        is = *calls == n;
        hfsbi_loop_unlock(loop);
        if (!is) (void)poll(NULL, 0, 1);
    }
    return is;
}

/* Counts, without a check: another thread may be checking. */
static void count_io(hfsbi_io *io, unsigned events) {
    seen_io *s = (seen_io *)(void *)io;
    char     byte;
    (void)events;
    if (read(io->fd, &byte, 1) == 1) s->calls++;
}

static void a_thread_that_waits_sees_what_another_adds(void) {
    hfsbi_loop *loop = loop_open(0);
    seen_timer  t;
    seen_io     s;
    turner      waits;
    int         fds[2];
    memset(&t, 0, sizeof t);
    pair_open(fds);
    put(fds[1]);
    turner_start(&waits, loop);
    hfsbi_loop_lock(loop);
    timer_set(&t, loop, hfsb_clock_ms() + 5);
    t.timer.fn = count_timer;
    hfsbi_loop_unlock(loop);
    T_CHECK(becomes(loop, &t.calls, 1));
    hfsbi_loop_lock(loop);
    seen_open(&s, loop, fds[0], HFSBI_IO_READ);
    s.io.fn = count_io;
    hfsbi_loop_unlock(loop);
    T_CHECK(becomes(loop, &s.calls, 1));
    turner_end(&waits);
    hfsbi_loop_io_forget(loop, &s.io);
    close(fds[0]);
    close(fds[1]);
    hfsbi_loop_close(loop);
}

/* Threads that wait are woken for the end of a turn, whoever turned. */
static void a_turn_wakes_all_that_wait(void) {
    hfsbi_loop *loop = loop_open(0);
    seen_timer  t;
    turner      waits[4];
    size_t      i, before;
    memset(&t, 0, sizeof t);
    for (i = 0; i < 4; i++) turner_start(&waits[i], loop);
    hfsbi_loop_lock(loop);
    timer_set(&t, loop, hfsb_clock_ms());
    t.timer.fn = count_timer;
    before = waits[0].turns;
    hfsbi_loop_turn(loop, 0); /* leaves it to the thread that waits */
    T_CHECK(t.calls == 0 && hfsbi_loop_deadline(loop) == -1);
    hfsbi_loop_unlock(loop);
    T_CHECK(becomes(loop, &t.calls, 1));
    for (i = 0; i < 4; i++) {
        long long end = hfsb_clock_ms() + 30000;
        size_t    n = 0;
        while (n <= before && hfsb_clock_ms() < end) {
            hfsbi_loop_lock(loop);
            n = waits[i].turns;
            hfsbi_loop_unlock(loop);
            (void)poll(NULL, 0, 1);
        }
        T_CHECK(n > before);
    }
    for (i = 0; i < 4; i++) {
        hfsbi_loop_lock(loop);
        waits[i].stop = true;
        hfsbi_loop_unlock(loop);
    }
    hfsbi_loop_wake(loop);
    for (i = 0; i < 4; i++) (void)pthread_join(waits[i].thread, NULL);
    hfsbi_loop_close(loop);
}

/* Descriptors come and go, and their objects are freed, while another thread
   is between its wait and its calls. */
static void an_io_may_be_freed_while_another_thread_waits(void) {
    hfsbi_loop *loop = loop_open(0);
    turner      waits;
    int         i;
    turner_start(&waits, loop);
    for (i = 0; i < 2000; i++) {
        seen_io *s = (seen_io *)malloc(sizeof *s);
        int      fds[2];
        if (!s) abort();
        pair_open(fds);
        hfsbi_loop_lock(loop);
        seen_open(s, loop, fds[0], HFSBI_IO_READ);
        s->io.fn = count_io;
        hfsbi_loop_unlock(loop);
        put(fds[1]);
        if (i % 3 == 0) (void)sched_yield();
        hfsbi_loop_lock(loop);
        hfsbi_loop_io_forget(loop, &s->io);
        memset(s, 0x55, sizeof *s);
        free(s);
        hfsbi_loop_unlock(loop);
        close(fds[0]);
        close(fds[1]);
    }
    turner_end(&waits);
    hfsbi_loop_close(loop);
}

static void a_posted_task_can_be_withdrawn(void) {
    hfsbi_loop *loop = loop_open(0);
    counters    all;
    count_task  c[3];
    size_t      i;
    counters_init(&all);
    for (i = 0; i < 3; i++) {
        task_init(&c[i], &all, loop);
        hfsbi_loop_post(loop, &c[i].task);
    }
    T_CHECK(hfsbi_loop_deadline(loop) == 0); /* there is something to do */
    hfsbi_loop_unpost(loop, &c[2].task);
    hfsbi_loop_unpost(loop, &c[2].task); /* is not posted: nothing happens */
    task_init(&c[2], &all, loop);
    hfsbi_loop_unpost(loop, &c[0].task);
    T_CHECK(hfsbi_loop_pending(loop) == 1);
    loop_turn(loop, 20000);
    T_CHECK(all.done == 1 && hfsbi_loop_pending(loop) == 0);
    hfsbi_loop_post(loop, &c[0].task);
    hfsbi_loop_unpost(loop, &c[0].task);
    hfsbi_loop_post(loop, &c[1].task); /* the end of the list is in order */
    loop_turn(loop, 20000);
    T_CHECK(all.done == 2);
    hfsbi_loop_close(loop);
}

/* ---- waking ---- */

static hfsbi_loop *wake_target; /* the test's own, for its handler */

static void wake_handler(int number) {
    (void)number;
    hfsbi_loop_wake(wake_target);
}

static void *wake_thread(void *arg) {
    (void)poll(NULL, 0, 30);
    if (arg) (void)pthread_kill(*(pthread_t *)arg, SIGUSR1);
    else hfsbi_loop_wake(wake_target);
    return NULL;
}

static void a_wake_ends_the_wait(bool from_signal) {
    hfsbi_loop      *loop = loop_open(0);
    struct sigaction act, old;
    pthread_t        self = pthread_self(), thread;
    long long        begin = hfsb_clock_ms();
    int              i;
    memset(&act, 0, sizeof act);
    act.sa_handler = wake_handler;
    act.sa_flags = SA_RESTART;
    wake_target = loop;
    if (sigaction(SIGUSR1, &act, &old) != 0) abort();
    if (pthread_create(&thread, NULL, wake_thread,
                       from_signal ? &self : NULL) != 0)
        abort();
    loop_turn(loop, 20000);
    T_CHECK(hfsb_clock_ms() - begin < 18000);
    (void)pthread_join(thread, NULL);
    turns(loop, 1);
    /* woken before the wait: it does not wait at all; once */
    for (i = 0; i < 200; i++) (void)raise(SIGUSR1);
    begin = hfsb_clock_ms();
    loop_turn(loop, 20000);
    T_CHECK(hfsb_clock_ms() - begin < 18000);
    begin = hfsb_clock_ms();
    loop_turn(loop, 30);
    T_CHECK(hfsb_clock_ms() - begin >= 29);
    (void)sigaction(SIGUSR1, &old, NULL);
    hfsbi_loop_close(loop);
}

static void a_wake_ends_the_wait_from_a_thread_or_signal_handler(void) {
    a_wake_ends_the_wait(false);
    a_wake_ends_the_wait(true);
}

/* ---- a host's own loop ---- */

/* One round of the host's loop; false when nothing happened. */
static bool host_round(hfsbi_loop *loop, long long most) {
    hfsb_watch    watch[64];
    struct pollfd fds[64];
    size_t        n = hfsbi_loop_watch(loop, watch, 64);
    long long     at = hfsbi_loop_deadline(loop), ms = most;
    int           ready;
    T_CHECK(n <= 64);
    if (at >= 0) ms = hfsbi_earlier(ms, at > hfsb_clock_ms()
                                           ? at - hfsb_clock_ms()
                                           : 0);
    hfsb_poll_fill(watch, n, fds);
    ready = poll(fds, (nfds_t)n, (int)ms);
    loop_turn(loop, 0);
    return ready > 0 || ms < most;
}

static void a_host_can_drive_the_loop(void) {
    hfsbi_loop *loop = loop_open(2);
    counters    all;
    count_task  c;
    seen_io     s;
    seen_timer  t;
    int         fds[2];
    long long   begin = hfsb_clock_ms();
    hfsb_watch  none[1];
    counters_init(&all);
    memset(&t, 0, sizeof t);
    pair_open(fds);
    seen_open(&s, loop, fds[0], HFSBI_IO_READ);
    T_CHECK(!host_round(loop, 20));
    put(fds[1]);
    s.drains = true;
    T_CHECK(host_round(loop, 30000) && s.calls == 1);
    T_CHECK(hfsbi_loop_watch(loop, none, 0) ==
            hfsbi_loop_watch(loop, none, 1));
    turns(loop, 1); /* the host has waited: nobody is to be woken */
    timer_set(&t, loop, hfsb_clock_ms() + 20);
    T_CHECK(host_round(loop, 30000) && t.calls == 1);
    task_init(&c, &all, loop);
    c.nap_ms = 20;
    hfsbi_loop_work(loop, &c.task);
    T_CHECK(host_round(loop, 30000) && all.done == 1);
    hfsbi_loop_wake(loop);
    T_CHECK(host_round(loop, 30000));
    T_CHECK(!host_round(loop, 20));
    T_CHECK(hfsb_clock_ms() - begin < 15000);
    hfsbi_loop_io_forget(loop, &s.io);
    close(fds[0]);
    close(fds[1]);
    hfsbi_loop_close(loop);
}

/* ---- with tools ---- */

static void a_loop_drives_a_tools_command(void) {
    hfsbi_loop      *loop = loop_open(0);
    hfsbi_tools_group group = HFSB_INIT;
    hfsb_tools      *tools = NULL;
    hfsb_json_doc    json = HFSB_INIT;
    hfsb_call       *call = NULL;
    hfsb_tool_result result;
    long long        begin = hfsb_clock_ms();
    int              turned = 0;
    group.loop = loop;
    if (hfsbi_tools_open_in(&group, NULL, NULL, &tools, NULL) != HFSB_OK)
        abort();
    if (hfsb_json_parse(HFSB_LIT("{\"command\":\"sleep 0.1; echo hello\"}"),
                        NULL, &json, NULL) != HFSB_OK)
        abort();
    T_CHECK(hfsb_call_open(tools, HFSB_LIT("bash"), json.root, NULL,
                           &call) == HFSB_OK);
    while (!hfsb_call_done(call) && hfsb_clock_ms() - begin < 20000) {
        loop_turn(loop, 20000);
        turned++;
    }
    T_CHECK(hfsb_call_take(call, &result) == HFSB_OK && result.success);
    T_STR(result.output, "hello\n");
    T_CHECK(turned < 50); /* it does not spin */
    hfsb_tool_result_free(&result);
    hfsb_call_close(call);
    hfsb_json_free(&json);
    hfsb_tools_close(tools);
    T_CHECK(hfsbi_loop_deadline(loop) == -1);
    hfsbi_loop_close(loop);
}

/* ---- open ---- */

static void open_with(hfsb_alloc alloc, const t_heap *heap) {
    hfsbi_loop *loop = NULL;
    hfsb_err    err;
    hfsb_status st = hfsbi_loop_open(&alloc, 4, false, &loop, &err);
    T_CHECK(st == (heap->fail_at ? HFSB_NOMEM : HFSB_OK));
    T_CHECK((loop != NULL) == (st == HFSB_OK));
    if (st != HFSB_OK) T_CHECK(err.code == st && err.msg[0]);
    hfsbi_loop_close(loop);
}

static void open_fails_cleanly_without_memory(void) {
    t_each_allocation_fails(open_with);
}

static void open_fails_cleanly_without_descriptors(void) {
    struct rlimit old, none;
    hfsb_alloc    alloc = HFSB_INIT;
    hfsbi_loop   *loop = NULL;
    hfsb_err      err;
    rlim_t        n;
    int           ok = 0, fd = dup(0);
    if (fd < 0 || getrlimit(RLIMIT_NOFILE, &old) != 0) abort();
    close(fd);
    for (n = (rlim_t)fd; n < (rlim_t)fd + 5; n++) {
        none = old;
        none.rlim_cur = n;
        T_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
        if (hfsbi_loop_open(&alloc, 4, false, &loop, &err) == HFSB_OK) {
            ok++;
            hfsbi_loop_close(loop);
        } else
            T_CHECK(err.code == HFSB_BUSY && !loop);
    }
    T_CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
    T_CHECK(ok == 2 || ok == 3); /* three are enough; two with poll() */
    T_CHECK(dup(0) == fd); /* none was left open */
    close(fd);
}

int main(void) {
    T_RUN(timers_run_in_the_order_of_their_time);
    T_RUN(a_turn_waits_until_the_next_timer);
    T_RUN(timers_may_be_set_and_cleared_in_a_timer);
    T_RUN(timers_do_what_a_sorted_list_does);
    T_RUN(a_thread_that_waits_sees_what_another_adds);
    T_RUN(a_turn_wakes_all_that_wait);
    T_RUN(an_io_may_be_freed_while_another_thread_waits);
    T_RUN(a_posted_task_can_be_withdrawn);
    T_RUN(a_wake_ends_the_wait_from_a_thread_or_signal_handler);
    T_RUN(a_host_can_drive_the_loop);
    T_RUN(a_loop_drives_a_tools_command);
    T_RUN(open_fails_cleanly_without_memory);
    T_RUN(open_fails_cleanly_without_descriptors);
    return T_END();
}
