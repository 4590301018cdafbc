/* test_wall.c - threads that the kernel keeps beneath some folders. */
#include "../support/t_loop.h"
#include "../support/t_tools.h"

#ifdef HFSBI_LINUX

/* What a task could open. */
typedef struct attempt {
    hfsbi_task  task; /* first */
    hfsbi_loop *loop;
    bool        inside, outside, escaped, done;
} attempt;

static bool opens(const char *path, int flags) {
    int  fd = open(path, flags | O_CLOEXEC, 0600);
    bool opened = fd >= 0;
    hfsbi_close(&fd);
    return opened;
}

static void escape(void *user) {
    ((attempt *)user)->escaped = opens("there", O_RDONLY);
}

static void attempt_run(hfsbi_task *task) {
    attempt *a = (attempt *)(void *)task;
    a->inside = opens("here/file", O_RDWR | O_CREAT);
    a->outside = opens("there", O_RDONLY) || opens("made", O_WRONLY | O_CREAT);
    hfsbi_loop_outside(a->loop, escape, a);
}

static void attempt_done(hfsbi_task *task) {
    ((attempt *)(void *)task)->done = true;
}

static attempt try_in(hfsbi_loop *loop, bool walled) {
    attempt a;
    memset(&a, 0, sizeof a);
    a.loop = loop;
    a.task.run = attempt_run;
    a.task.done = attempt_done;
    a.task.rights.walled = walled;
    hfsbi_loop_work(loop, &a.task);
    while (!a.done) loop_turn(loop, 1000);
    while (hfsbi_loop_pending(loop)) loop_turn(loop, 1000);
    (void)unlink("made");
    return a;
}

static hfsb_buf place_of(const char *name) {
    char     here[PATH_MAX];
    hfsb_buf places = HFSB_INIT;
    if (!realpath(name, here)) abort();
    T_CHECK(hfsbi_place_add(&places, HFSBI_PLACE_WRITE, here));
    return places;
}

static void walled_tasks_stay_inside(void) {
    hfsbi_loop *loop = loop_open(3);
    hfsb_buf    places = place_of("here"), others = place_of(".");
    attempt     a;
    bool        raised = hfsbi_wall_raise(loop, &places);
    T_CHECK(raised == (hfsbi_landlock_abi() >= 2));
    a = try_in(loop, true);
    T_CHECK(a.inside && a.outside == !raised && a.escaped);
    a = try_in(loop, false);
    T_CHECK(a.inside && a.outside && a.escaped);
    /* the wall stays as it is */
    T_CHECK(hfsbi_wall_raise(loop, &places) == raised);
    T_CHECK(!raised || !hfsbi_wall_raise(loop, &others));
    hfsb_buf_free(&places);
    hfsb_buf_free(&others);
    hfsbi_loop_close(loop);
}

/* Tasks that each need a thread outside at the same time. */
static void crowd_run(hfsbi_task *task) {
    attempt_run(task);
    (void)poll(NULL, 0, 20);
    attempt_run(task);
}

static void threads_that_walled_ones_need_are_outside(void) {
    enum { N = 12 };
    hfsbi_loop *loop = loop_open(4);
    hfsb_buf    places = place_of("here");
    attempt     a[2 * N];
    size_t      i, left;
    bool        raised = hfsbi_wall_raise(loop, &places);
    memset(a, 0, sizeof a);
    for (i = 0; i < 2 * N; i++) {
        a[i].loop = loop;
        a[i].task.run = crowd_run;
        a[i].task.done = attempt_done;
        a[i].task.rights.walled = i < N;
        if (i < N) hfsbi_loop_work(loop, &a[i].task);
    }
    for (i = 0; i < N; i++) loop_turn(loop, 10);
    for (i = N; i < 2 * N; i++) hfsbi_loop_work(loop, &a[i].task);
    do {
        loop_turn(loop, 1000);
        for (left = i = 0; i < 2 * N; i++) left += !a[i].done;
    } while (left);
    (void)unlink("made");
    for (i = 0; i < 2 * N; i++)
        T_CHECK(a[i].inside && a[i].escaped &&
                a[i].outside == (i >= N || !raised));
    hfsb_buf_free(&places);
    hfsbi_loop_close(loop);
}

/* It ends although nobody turns the loop any more. */
static void a_loop_closes_while_walled_tasks_work(void) {
    int k;
    for (k = 0; k < 20; k++) {
        enum { N = 6 };
        hfsbi_loop *loop = loop_open(2);
        hfsb_buf    places = place_of("here");
        attempt     a[N];
        size_t      i;
        (void)hfsbi_wall_raise(loop, &places);
        memset(a, 0, sizeof a);
        for (i = 0; i < N; i++) {
            a[i].loop = loop;
            a[i].task.run = crowd_run;
            a[i].task.done = attempt_done;
            a[i].task.rights.walled = true;
            hfsbi_loop_work(loop, &a[i].task);
        }
        hfsbi_loop_close(loop);
        for (i = 0; i < N; i++) T_CHECK(a[i].done && a[i].escaped);
        hfsb_buf_free(&places);
    }
    (void)unlink("made");
}

static void a_loop_without_threads_has_no_wall(void) {
    hfsbi_loop *loop = loop_open(0);
    hfsb_buf    places = place_of("here");
    T_CHECK(!hfsbi_wall_raise(loop, &places));
    T_CHECK(try_in(loop, true).outside);
    hfsb_buf_free(&places);
    hfsbi_loop_close(loop);
}

static hfsb_buf *oom_places;

static void raise_with(hfsb_alloc alloc, const t_heap *heap) {
    hfsbi_loop *loop = NULL;
    hfsb_buf    copy = *oom_places;
    copy.alloc = alloc;
    if (hfsbi_loop_open(&alloc, 2, false, &loop, NULL) == HFSB_OK) {
        bool raised = hfsbi_wall_raise(loop, &copy);
        if (!heap->fail_at) T_CHECK(raised == (hfsbi_landlock_abi() >= 2));
        else T_CHECK(!raised);
    }
    hfsbi_loop_close(loop);
}

static void without_memory_there_is_no_wall(void) {
    hfsb_buf places = place_of("here");
    oom_places = &places;
    t_each_allocation_fails(raise_with);
    hfsb_buf_free(&places);
}

#endif

int main(void) {
    tt_begin();
#ifdef HFSBI_LINUX
    tt_put("there", HFSB_LIT("text"));
    T_CHECK(mkdir("here", 0700) == 0);
    TT_RUN(walled_tasks_stay_inside);
    TT_RUN(threads_that_walled_ones_need_are_outside);
    TT_RUN(a_loop_closes_while_walled_tasks_work);
    TT_RUN(a_loop_without_threads_has_no_wall);
    TT_RUN(without_memory_there_is_no_wall);
#endif
    return TT_END();
}
