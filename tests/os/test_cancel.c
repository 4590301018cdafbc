/* test_cancel.c - a cancel: its flag, its descriptor, those who set, reset and
   wait at the same time; and commands that are cancelled. */
#include "../support/t_cancel.h"

#include <sched.h>
#include <sys/resource.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

/* ---- the flag ---- */

static void a_cancel_ends_a_wait(void) {
    hfsb_cancel *cancel = NULL;
    hfsb_err     err;
    pthread_t    thread;
    T_CHECK(hfsb_cancel_open(NULL, &cancel, &err) == HFSB_OK);
    T_CHECK(!hfsb_cancel_is_set(cancel) && !hfsb_cancel_is_set(NULL));
    T_CHECK(hfsb_cancel_wait(cancel, 5) && hfsb_cancel_wait(NULL, 5));
    T_CHECK(hfsb_cancel_wait(cancel, -1) && hfsb_cancel_wait(NULL, -1));
    thread = tk_start(tk_set, cancel);
    T_CHECK(!hfsb_cancel_wait(cancel, LLONG_MAX));
    T_CHECK(pthread_join(thread, NULL) == 0);
    T_CHECK(hfsb_cancel_is_set(cancel) && !hfsb_cancel_wait(cancel, 0));
    hfsb_cancel_reset(cancel);
    T_CHECK(!hfsb_cancel_is_set(cancel) && hfsb_cancel_wait(cancel, 0));
    hfsb_cancel_close(cancel);
    hfsb_cancel_close(NULL);
}

static void every_allocation_of_a_cancel_may_fail(void) {
    t_heap       heap = HFSB_INIT;
    hfsb_alloc   alloc;
    hfsb_cancel *cancel;
    hfsb_err     err;
    alloc.fn = t_heap_fn;
    alloc.user = &heap;
    heap.fail_at = 1;
    T_CHECK(hfsb_cancel_open(&alloc, &cancel, &err) == HFSB_NOMEM);
    T_CHECK(cancel == NULL && err.code == HFSB_NOMEM);
}

/* ---- the descriptor ---- */

static void a_cancel_takes_descriptors_only_to_wait(void) {
    enum { MANY = 1000 };
    static hfsb_cancel *list[MANY];
    size_t              before = tk_open_fds(), i;
    for (i = 0; i < MANY; i++) {
        T_CHECK(hfsb_cancel_open(NULL, &list[i], NULL) == HFSB_OK);
        T_CHECK(hfsb_cancel_wait(list[i], 0));
        hfsb_cancel_set(list[i]);
        T_CHECK(!hfsb_cancel_wait(list[i], 1000));
        hfsb_cancel_reset(list[i]);
        T_CHECK(!hfsb_cancel_is_set(list[i]));
    }
    T_CHECK(tk_open_fds() == before);
    T_CHECK(hfsb_cancel_fd(list[0]) >= 3);
    T_CHECK(hfsb_cancel_fd(list[0]) == hfsb_cancel_fd(list[0]));
    T_CHECK(tk_open_fds() == before + 2);
    T_CHECK(hfsb_cancel_wait(list[1], 1));
    T_CHECK(tk_open_fds() == before + 4);
    for (i = 0; i < MANY; i++) hfsb_cancel_close(list[i]);
    T_CHECK(tk_open_fds() == before);
}

static void a_descriptor_is_readable_while_the_flag_is_set(void) {
    hfsb_cancel cancel;
    int         fd, i;
    hfsbi_cancel_init(&cancel);
    hfsb_cancel_set(&cancel); /* before there is a descriptor */
    fd = hfsb_cancel_fd(&cancel);
    T_CHECK(tk_readable(fd));
    for (i = 0; i < 3; i++) {
        hfsb_cancel_reset(&cancel);
        T_CHECK(!tk_readable(fd) && !hfsb_cancel_is_set(&cancel));
        hfsb_cancel_set(&cancel);
        hfsb_cancel_set(&cancel);
        T_CHECK(tk_readable(fd) && hfsb_cancel_is_set(&cancel));
    }
    hfsbi_cancel_free(&cancel);
}

static void a_cancel_works_without_descriptors(void) {
    struct rlimit old, low;
    hfsb_cancel   cancel;
    pthread_t     thread;
    short         ready;
    long long     until;
    hfsbi_cancel_init(&cancel);
    T_CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
    low = old;
    low.rlim_cur = 3; /* those below 3 are all in use */
    T_CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
    T_CHECK(hfsb_cancel_fd(&cancel) == -1);
    T_CHECK(hfsb_cancel_wait(&cancel, 120));
    until = hfsb_clock_ms() + 10;
    T_CHECK(hfsbi_wait_fd(-1, 0, until, &cancel, &ready) == HFSB_TIMEOUT);
    T_CHECK(hfsb_clock_ms() >= until);
    thread = tk_start(tk_set_soon, &cancel);
    T_CHECK(!hfsb_cancel_wait(&cancel, LLONG_MAX));
    T_CHECK(pthread_join(thread, NULL) == 0);
    T_CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
    T_CHECK(tk_readable(hfsb_cancel_fd(&cancel))); /* there are some again */
    hfsbi_cancel_free(&cancel);
}

/* ---- at the same time ---- */

static void a_signal_handler_ends_a_wait(void) {
    hfsb_cancel cancel;
    hfsbi_cancel_init(&cancel);
    tk_set_by_alarm(&cancel);
    tk_alarm(20000, 0);
    T_CHECK(!hfsb_cancel_wait(&cancel, LLONG_MAX));
    tk_set_by_alarm(NULL);
    hfsbi_cancel_free(&cancel);
}

/* The handler sets while its own thread opens the pipe, or resets: whatever
   comes first, flag and descriptor agree afterwards. */
static void a_signal_handler_may_interrupt_open_and_reset(void) {
    int i, set = 0, rounds = t_quick() ? 2000 : 10000;
    tk_alarm(50, 50);
    for (i = 0; i < rounds || (set == 0 && i < 1000000); i++) {
        hfsb_cancel cancel;
        int         fd;
        hfsbi_cancel_init(&cancel);
        tk_set_by_alarm(&cancel);
        fd = hfsb_cancel_fd(&cancel);
        if (i % 2) hfsb_cancel_reset(&cancel);
        tk_set_by_alarm(NULL);
        set += hfsb_cancel_is_set(&cancel);
        T_CHECK(tk_readable(fd) == hfsb_cancel_is_set(&cancel));
        hfsbi_cancel_free(&cancel);
    }
    tk_alarm(0, 0);
    T_CHECK(set > 0);
}

typedef struct race {
    hfsb_cancel cancel;
    int         left; /* threads that have yet to arrive at the start */
    int         fd[2];
} race;

static void race_begin(race *r) {
    (void)__atomic_sub_fetch(&r->left, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&r->left, __ATOMIC_SEQ_CST) > 0) sched_yield();
}

static void *race_to_set(void *user) {
    race *r = (race *)user;
    race_begin(r);
    hfsb_cancel_set(&r->cancel);
    return NULL;
}

static void *race_to_open(void *user) {
    race *r = (race *)user;
    race_begin(r);
    r->fd[1] = hfsb_cancel_fd(&r->cancel);
    return NULL;
}

static void threads_may_set_and_open_at_once(void) {
    size_t before = tk_open_fds();
    int    i, rounds = t_long() ? 20000 : 500;
    race   r;
    for (i = 0; i < rounds; i++) {
        pthread_t setter, opener;
        hfsbi_cancel_init(&r.cancel);
        r.left = 3;
        setter = tk_start(race_to_set, &r);
        opener = tk_start(race_to_open, &r);
        race_begin(&r);
        r.fd[0] = hfsb_cancel_fd(&r.cancel);
        T_CHECK(pthread_join(setter, NULL) == 0);
        T_CHECK(pthread_join(opener, NULL) == 0);
        T_CHECK(r.fd[0] >= 3 && r.fd[0] == r.fd[1]);
        T_CHECK(hfsb_cancel_is_set(&r.cancel) && tk_readable(r.fd[0]));
        hfsbi_cancel_free(&r.cancel);
    }
    T_CHECK(tk_open_fds() == before);
}

static void *reset_often(void *user) {
    race *r = (race *)user;
    int   i;
    race_begin(r);
    for (i = 0; i < 20; i++) hfsb_cancel_reset(&r->cancel);
    return NULL;
}

/* Which of the two is last is open, but flag and descriptor agree. */
static void threads_may_set_and_reset_at_once(void) {
    int  i, k, rounds = t_long() ? 20000 : 500;
    race r;
    for (i = 0; i < rounds; i++) {
        pthread_t thread;
        int       fd;
        hfsbi_cancel_init(&r.cancel);
        fd = hfsb_cancel_fd(&r.cancel);
        r.left = 2;
        thread = tk_start(reset_often, &r);
        race_begin(&r);
        for (k = 0; k < 20; k++) hfsb_cancel_set(&r.cancel);
        T_CHECK(pthread_join(thread, NULL) == 0);
        T_CHECK(tk_readable(fd) == hfsb_cancel_is_set(&r.cancel));
        hfsb_cancel_reset(&r.cancel);
        T_CHECK(!tk_readable(fd));
        hfsbi_cancel_free(&r.cancel);
    }
}

/* A thread that has seen the flag may reset it at once: it stays reset, even
   if set() is not done yet. */
static void a_reset_after_a_set_was_seen_lasts(void) {
    int  i, rounds = t_long() ? 20000 : 500;
    race r;
    for (i = 0; i < rounds; i++) {
        pthread_t thread;
        int       fd;
        hfsbi_cancel_init(&r.cancel);
        fd = hfsb_cancel_fd(&r.cancel);
        r.left = 2;
        thread = tk_start(race_to_set, &r);
        race_begin(&r);
        while (!hfsb_cancel_is_set(&r.cancel)) continue;
        hfsb_cancel_reset(&r.cancel);
        T_CHECK(pthread_join(thread, NULL) == 0);
        T_CHECK(!hfsb_cancel_is_set(&r.cancel) && !tk_readable(fd));
        hfsbi_cancel_free(&r.cancel);
    }
}

#ifdef __linux__
static hfsb_cancel *reset_first; /* by the next write() */

ssize_t write(int fd, const void *bytes, size_t n) {
    hfsb_cancel *none = NULL, *cancel;
    cancel = __atomic_exchange_n(&reset_first, none, __ATOMIC_SEQ_CST);
    if (cancel) hfsb_cancel_reset(cancel);
    return (ssize_t)syscall(SYS_write, fd, bytes, n);
}

/* The reset comes when the flag is set and the byte is not in the pipe yet. */
static void a_reset_in_the_middle_of_a_set_undoes_it(void) {
    hfsb_cancel cancel;
    int         fd;
    hfsbi_cancel_init(&cancel);
    fd = hfsb_cancel_fd(&cancel);
    reset_first = &cancel;
    hfsb_cancel_set(&cancel);
    T_CHECK(!reset_first && !hfsb_cancel_is_set(&cancel) && !tk_readable(fd));
    hfsb_cancel_set(&cancel);
    T_CHECK(hfsb_cancel_is_set(&cancel) && tk_readable(fd));
    hfsbi_cancel_free(&cancel);
}
#else
static void a_reset_in_the_middle_of_a_set_undoes_it(void) {
}
#endif

/* ---- commands ---- */

static void set_by_output(void *user, hfsb_proc_stream stream,
                          hfsb_str bytes) {
    (void)stream;
    (void)bytes;
    hfsb_cancel_set((hfsb_cancel *)user);
}

static void a_cancel_kills_a_command_and_keeps_its_output(void) {
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_proc_result result;
    hfsb_buf         out = HFSB_INIT;
    hfsb_cancel      cancel;
    hfsb_err         err;
    hfsbi_cancel_init(&cancel);
    o.command = HFSB_LIT("echo begun; sleep 60; echo not");
    o.on_output = set_by_output;
    o.user = &cancel;
    o.cancel = &cancel;
    T_CHECK(hfsb_proc_run(&o, &out, NULL, &result, &err) == HFSB_OK);
    T_CHECK(result.killed && result.end == HFSB_PROC_SIGNALED);
    T_CHECK(result.duration_ms < 30000);
    T_STR(out, "begun\n");
    /* it stays set: nothing is started */
    o.on_output = NULL;
    o.command = HFSB_LIT("echo started");
    T_CHECK(hfsb_proc_run(&o, &out, NULL, &result, &err) == HFSB_CANCELLED);
    T_CHECK(err.code == HFSB_CANCELLED);
    T_STR(out, "begun\n");
    hfsbi_cancel_free(&cancel);
    hfsb_buf_free(&out);
}

static void a_signal_handler_cancels_a_command(void) {
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_proc_result result;
    hfsb_cancel      cancel;
    hfsbi_cancel_init(&cancel);
    o.command = HFSB_LIT("sleep 60");
    o.cancel = &cancel;
    tk_set_by_alarm(&cancel);
    tk_alarm(50000, 0);
    T_CHECK(hfsb_proc_run(&o, NULL, NULL, &result, NULL) == HFSB_OK);
    tk_set_by_alarm(NULL);
    T_CHECK(result.killed && result.duration_ms < 30000);
    hfsbi_cancel_free(&cancel);
}

/* It waits for the command or the cancel, not for the clock. */
static void a_command_with_a_cancel_is_not_polled(void) {
    hfsb_proc_opts o = HFSB_INIT;
    hfsb_cancel    cancel;
    unsigned       without, with;
    hfsbi_cancel_init(&cancel);
    o.command = HFSB_LIT("sleep 1");
    (void)tk_take_polls();
    T_CHECK(hfsb_proc_run(&o, NULL, NULL, NULL, NULL) == HFSB_OK);
    without = tk_take_polls();
    o.cancel = &cancel;
    T_CHECK(hfsb_proc_run(&o, NULL, NULL, NULL, NULL) == HFSB_OK);
    with = tk_take_polls();
    T_CHECK(with < without + 8 && (!TK_COUNTS || without > 0));
    hfsbi_cancel_free(&cancel);
}

/* The set cancel, which stays readable, does not end the waits any more. */
static void a_command_that_ignores_term_is_not_polled(void) {
    hfsb_proc_opts   o = HFSB_INIT;
    hfsb_proc_result result;
    hfsb_cancel      cancel;
    hfsbi_cancel_init(&cancel);
    o.command = HFSB_LIT("trap '' TERM; echo; sleep 60; sleep 60");
    o.grace_ms = 500;
    o.on_output = set_by_output;
    o.user = &cancel;
    o.cancel = &cancel;
    (void)tk_take_polls();
    T_CHECK(hfsb_proc_run(&o, NULL, NULL, &result, NULL) == HFSB_OK);
    T_CHECK(tk_take_polls() < 200);
    T_CHECK(result.killed && result.signal == SIGKILL);
    hfsbi_cancel_free(&cancel);
}

int main(void) {
    T_RUN(a_cancel_ends_a_wait);
    T_RUN(every_allocation_of_a_cancel_may_fail);
    T_RUN(a_cancel_takes_descriptors_only_to_wait);
    T_RUN(a_descriptor_is_readable_while_the_flag_is_set);
    T_RUN(a_cancel_works_without_descriptors);
    T_RUN(a_signal_handler_ends_a_wait);
    T_RUN(a_signal_handler_may_interrupt_open_and_reset);
    T_RUN(threads_may_set_and_open_at_once);
    T_RUN(threads_may_set_and_reset_at_once);
    T_RUN(a_reset_after_a_set_was_seen_lasts);
    T_RUN(a_reset_in_the_middle_of_a_set_undoes_it);
    T_RUN(a_cancel_kills_a_command_and_keeps_its_output);
    T_RUN(a_signal_handler_cancels_a_command);
    T_RUN(a_command_with_a_cancel_is_not_polled);
    T_RUN(a_command_that_ignores_term_is_not_polled);
    return T_END();
}
