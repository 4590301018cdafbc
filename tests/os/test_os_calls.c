/* test_os_calls.c - random bytes and conditions. */
#include "../support/t.h"

static void random_bytes_differ_and_fill_all(void) {
    unsigned char a[100], b[100], all[100] = HFSB_INIT;
    int           round;
    size_t        i, zeros = 0;
    T_CHECK(hfsbi_random(a, sizeof a) && hfsbi_random(b, sizeof b));
    T_CHECK(memcmp(a, b, sizeof a) != 0);
    for (round = 0; round < 16; round++) {
        T_CHECK(hfsbi_random(a, sizeof a));
        for (i = 0; i < sizeof a; i++) all[i] |= a[i];
    }
    for (i = 0; i < sizeof all; i++) zeros += all[i] == 0;
    T_CHECK(zeros == 0);
    T_CHECK(hfsbi_random(a, 0));
}

static void random_hex_is_hexadecimal(void) {
    char   a[34], b[34];
    size_t i;
    memset(a, '!', sizeof a);
    T_CHECK(hfsbi_random_hex(a, 32) && hfsbi_random_hex(b, 32));
    T_CHECK(strlen(a) == 32 && a[33] == '!' && strcmp(a, b) != 0);
    for (i = 0; i < 32; i++) T_CHECK(strchr("0123456789abcdef", a[i]));
}

typedef struct signal_soon {
    pthread_mutex_t lock;
    pthread_cond_t  cond;
    bool            done;
} signal_soon;

static void *signal_it(void *user) {
    signal_soon *s = (signal_soon *)user;
    (void)pthread_mutex_lock(&s->lock);
    s->done = true;
    (void)pthread_cond_broadcast(&s->cond);
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void a_condition_waits_until_its_time_or_a_signal(void) {
    signal_soon s = HFSB_INIT;
    pthread_t   thread;
    long long   begin = hfsb_clock_ms();
    int         rounds = 0;
    T_CHECK(pthread_mutex_init(&s.lock, NULL) == 0);
    T_CHECK(hfsbi_cond_init(&s.cond) == 0);
    (void)pthread_mutex_lock(&s.lock);
    /* may wake early, but does not spin: the deadline is on the right clock */
    while (hfsb_clock_ms() - begin < 40 && ++rounds < 10)
        hfsbi_cond_wait_ms(&s.cond, &s.lock, 50);
    T_CHECK(rounds < 10);
    T_CHECK(pthread_create(&thread, NULL, signal_it, &s) == 0);
    while (!s.done) hfsbi_cond_wait_ms(&s.cond, &s.lock, 600000);
    (void)pthread_mutex_unlock(&s.lock);
    T_CHECK(pthread_join(thread, NULL) == 0);
    T_CHECK(pthread_cond_destroy(&s.cond) == 0);
    T_CHECK(pthread_mutex_destroy(&s.lock) == 0);
}

int main(void) {
    T_RUN(random_bytes_differ_and_fill_all);
    T_RUN(random_hex_is_hexadecimal);
    T_RUN(a_condition_waits_until_its_time_or_a_signal);
    return t_end(__FILE__);
}
