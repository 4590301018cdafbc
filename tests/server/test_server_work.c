/* test_server_work.c - work for a request in a pool thread: the reply after
   it, a client that goes away or a server that closes meanwhile. */
#include "../support/t_conn.h"

/* What one piece of work saw; the test reads it when the server has closed, or
   under the lock. */
typedef struct job {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    pthread_t       loop_thread;
    size_t          running, may_end; /* calls of run; of these may return */
    size_t          done, gone, gone_at_done;
    size_t          rounds; /* pieces of work that one request starts */
    bool            in_pool; /* run was not in the loop's thread */
    bool            gone_before_done;
} job;

static job j;

static void job_reset(size_t rounds) {
    pthread_mutex_lock(&j.lock);
    j.running = j.may_end = j.done = j.gone = j.gone_at_done = 0;
    j.rounds = rounds;
    j.in_pool = j.gone_before_done = false;
    pthread_mutex_unlock(&j.lock);
}

static void job_let_end(size_t n) {
    pthread_mutex_lock(&j.lock);
    j.may_end += n;
    pthread_cond_broadcast(&j.changed);
    pthread_mutex_unlock(&j.lock);
}

/* Waits until *value is at least n; false after some seconds. */
static bool job_reaches(const size_t *value, size_t n) {
    long long end = hfsb_clock_ms() + 20000;
    bool      is = false;
    while (!is && hfsb_clock_ms() < end) {
        pthread_mutex_lock(&j.lock);
        is = *value >= n;
        pthread_mutex_unlock(&j.lock);
        if (!is) usleep(500);
    }
    return is;
}

static void job_run(void *user) {
    (void)user;
    pthread_mutex_lock(&j.lock);
    j.running++;
    j.in_pool = !pthread_equal(pthread_self(), j.loop_thread);
    while (j.may_end < j.running) pthread_cond_wait(&j.changed, &j.lock);
    pthread_mutex_unlock(&j.lock);
}

/* Starts the next round, or replies; a gone request ignores the reply. */
static void job_done(void *user, hfsb_request *r) {
    bool more;
    pthread_mutex_lock(&j.lock);
    j.done++;
    if (hfsbi_request_is_gone(r)) j.gone_at_done++;
    j.gone_before_done = j.gone > 0;
    more = j.done < j.rounds;
    pthread_mutex_unlock(&j.lock);
    if (more) hfsbi_request_work(r, NULL, job_run, job_done, user);
    else hfsb_reply(r, 200, "text/plain", HFSB_LIT("worked"));
}

static void job_gone(void *user, hfsb_request *r) {
    (void)user;
    (void)r;
    pthread_mutex_lock(&j.lock);
    j.gone++;
    pthread_mutex_unlock(&j.lock);
}

static void job_handle(void *user, hfsb_request *r) {
    (void)user;
    pthread_mutex_lock(&j.lock);
    j.loop_thread = pthread_self();
    pthread_mutex_unlock(&j.lock);
    hfsb_request_on_gone(r, job_gone, NULL);
    hfsbi_request_work(r, NULL, job_run, job_done, &j);
}

static void open_work(ts_server *s, size_t rounds) {
    hfsb_route route = HFSB_INIT;
    job_reset(rounds);
    ts_open(s, NULL);
    T_CHECK(tc_try_routes(s->server));
    route.method = "GET";
    route.path = "/work";
    route.fn = job_handle;
    route.no_token = true;
    T_CHECK(hfsb_server_add(s->server, &route, NULL) == HFSB_OK);
    ts_run(s);
}

static void work_runs_in_a_thread_and_the_loop_replies(void) {
    ts_server s;
    ts_conn   c, d;
    ts_reply  r = HFSB_INIT;
    open_work(&s, 3);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT(TC_GET("/work") TC_GET("/hello"))));
    T_CHECK(job_reaches(&j.running, 1));
    d = ts_connect(&s); /* the loop is free meanwhile */
    T_CHECK(tc_lives(&d));
    T_CHECK(!ts_more(&c, 50)); /* the next request waits for its turn */
    job_let_end(3);
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, "worked");
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, "hello");
    T_CHECK(j.in_pool && j.done == 3 && j.gone == 0 && j.gone_at_done == 0);
    ts_hang_up(&c);
    ts_hang_up(&d);
    ts_drop(&r);
    ts_end(&s, false);
}

/* `gone` is called while the work still runs, `done` once each round. */
static void work_outlives_a_client_that_goes_away(void) {
    ts_server s;
    ts_conn   c;
    size_t    rounds;
    for (rounds = 1; rounds <= 2; rounds++) {
        open_work(&s, rounds);
        c = ts_connect(&s);
        T_CHECK(ts_send(&c, HFSB_LIT(TC_GET("/work"))));
        T_CHECK(job_reaches(&j.running, 1));
        ts_reset(&c);
        T_CHECK(job_reaches(&j.gone, 1));
        pthread_mutex_lock(&j.lock);
        T_CHECK(j.done == 0);
        pthread_mutex_unlock(&j.lock);
        job_let_end(rounds);
        T_CHECK(job_reaches(&j.done, rounds));
        c = ts_connect(&s);
        T_CHECK(tc_lives(&c));
        ts_hang_up(&c);
        ts_end(&s, false);
        T_CHECK(j.done == rounds && j.gone == 1);
        T_CHECK(j.gone_at_done == rounds && j.gone_before_done);
    }
}

static void *let_end_soon(void *user) {
    (void)user;
    usleep(50000);
    job_let_end(2);
    return NULL;
}

static void close_waits_for_work(void) {
    ts_server s;
    ts_conn   c;
    pthread_t other;
    open_work(&s, 2);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT(TC_GET("/work"))));
    T_CHECK(job_reaches(&j.running, 1));
    if (pthread_create(&other, NULL, let_end_soon, NULL)) abort();
    ts_end(&s, true);
    T_CHECK(j.done == 2 && j.gone == 1 && j.gone_at_done == 2);
    pthread_join(other, NULL);
    ts_hang_up(&c);
}

/* A host that replies between two polls need not wait for an event. */
static void reply_between_polls_is_finished_by_the_next_poll(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    size_t    turn;
    long long began;
    tc_reset();
    ts_open(&s, NULL);
    T_CHECK(tc_try_routes(s.server));
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT(TC_GET("/hold") TC_GET("/hello"))));
    for (turn = 0; turn < 400 && !tc_get(&tc.holding); turn++)
        (void)hfsb_server_poll(s.server, 50);
    T_CHECK(tc_get(&tc.holding) == 1);
    T_CHECK(hfsb_server_deadline(s.server) != 0);
    tc_let_go(NULL);
    T_CHECK(hfsb_server_deadline(s.server) == 0);
    began = hfsb_clock_ms(); /* the next request is in the kernel already */
    (void)hfsb_server_poll(s.server, 20000);
    T_CHECK(hfsb_clock_ms() - began < 10000);
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, "held");
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, "hello");
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

int main(void) {
    tt_begin();
    (void)pthread_mutex_init(&j.lock, NULL);
    (void)pthread_cond_init(&j.changed, NULL);
    TT_RUN(work_runs_in_a_thread_and_the_loop_replies);
    TT_RUN(work_outlives_a_client_that_goes_away);
    TT_RUN(close_waits_for_work);
    TT_RUN(reply_between_polls_is_finished_by_the_next_poll);
    return TT_END();
}
