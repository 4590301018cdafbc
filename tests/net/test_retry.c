/* test_retry.c - the retry policy: how long it waits, and when it gives up. */
#include "../support/t.h"
#ifdef HFSBI_SPLIT
#include "../../src/net/net_private.h"
#endif

typedef struct t_waits {
    long long    ms[16]; /* announced, in order */
    size_t       count;
    hfsb_cancel *cancel; /* set at the first wait, when there is one */
} t_waits;

static void t_on_wait(void *user, long long ms) {
    t_waits *w = (t_waits *)user;
    T_CHECK(w->count < 16);
    w->ms[w->count++] = ms;
    if (w->cancel) hfsb_cancel_set(w->cancel);
}

static hfsbi_retry t_policy(t_waits *w, size_t tries, long long delay,
                            long long most) {
    hfsbi_retry retry = HFSB_INIT;
    memset(w, 0, sizeof *w);
    retry.tries = tries;
    retry.delay_ms = delay;
    retry.max_delay_ms = most;
    retry.on_wait = t_on_wait;
    retry.user = w;
    return retry;
}

/* Fails until the policy gives up: the number of tries. */
static size_t t_fail(hfsbi_retry *retry, hfsb_status *end) {
    size_t n = 1;
    while ((*end = hfsbi_retry_again(retry)) == HFSB_OK) n++;
    return n;
}

static void waits_double_up_to_the_limit(void) {
    t_waits     w;
    hfsbi_retry retry = t_policy(&w, 6, 1, 5);
    hfsb_status end;
    T_CHECK(t_fail(&retry, &end) == 6 && end == HFSB_LIMIT);
    T_CHECK(w.count == 5 && w.ms[0] == 1 && w.ms[1] == 2 && w.ms[2] == 4 &&
            w.ms[3] == 5 && w.ms[4] == 5);
}

static void waits_grow_evenly_or_not_at_all(void) {
    t_waits     w;
    hfsbi_retry retry = t_policy(&w, 4, 2, 100);
    hfsb_status end;
    retry.linear = true;
    T_CHECK(t_fail(&retry, &end) == 4);
    T_CHECK(w.count == 3 && w.ms[0] == 2 && w.ms[1] == 4 && w.ms[2] == 6);
    retry = t_policy(&w, 3, 2, 0);
    T_CHECK(t_fail(&retry, &end) == 3);
    T_CHECK(w.count == 2 && w.ms[0] == 2 && w.ms[1] == 2);
}

static void one_try_is_never_repeated(void) {
    t_waits     w;
    hfsbi_retry retry = t_policy(&w, 1, 1, 1);
    hfsb_status end;
    T_CHECK(t_fail(&retry, &end) == 1 && end == HFSB_LIMIT && !w.count);
}

static void a_wait_the_peer_asked_for_is_used_once(void) {
    t_waits     w;
    hfsbi_retry retry = t_policy(&w, 3, 1, 8);
    retry.asked_ms = 7;
    T_CHECK(hfsbi_retry_again(&retry) == HFSB_OK && w.ms[0] == 7);
    T_CHECK(hfsbi_retry_again(&retry) == HFSB_OK && w.ms[1] == 2);
}

static void a_wait_never_reaches_the_deadline(void) {
    t_waits     w;
    hfsbi_retry retry = t_policy(&w, 3, 60000, 60000);
    retry.deadline = hfsb_clock_ms() + 5000;
    T_CHECK(hfsbi_retry_again(&retry) == HFSB_LIMIT && !w.count);
    retry.deadline = hfsb_clock_ms() - 1;
    retry.delay_ms = 0;
    T_CHECK(hfsbi_retry_again(&retry) == HFSB_LIMIT && !w.count);
}

static void cancel_ends_a_wait(void) {
    t_waits     w;
    hfsbi_retry retry = t_policy(&w, 3, 600000, 600000);
    long long   begin = hfsb_clock_ms();
    T_CHECK(hfsb_cancel_open(NULL, &w.cancel, NULL) == HFSB_OK);
    retry.cancel = w.cancel;
    T_CHECK(hfsbi_retry_again(&retry) == HFSB_CANCELLED);
    T_CHECK(hfsb_clock_ms() - begin < 60000);
    hfsb_cancel_close(w.cancel);
}

static void a_wait_alone_is_not_a_failed_try(void) {
    t_waits     w;
    hfsbi_retry retry = t_policy(&w, 2, 1, 4);
    size_t      i;
    for (i = 0; i < 4; i++) T_CHECK(hfsbi_retry_wait(&retry) == HFSB_OK);
    T_CHECK(w.ms[0] == 1 && w.ms[1] == 2 && w.ms[3] == 4);
    T_CHECK(hfsbi_retry_again(&retry) == HFSB_OK);
    T_CHECK(hfsbi_retry_again(&retry) == HFSB_LIMIT);
    hfsbi_retry_reset(&retry);
    T_CHECK(hfsbi_retry_again(&retry) == HFSB_OK && w.ms[5] == 1);
}

int main(void) {
    T_RUN(waits_double_up_to_the_limit);
    T_RUN(waits_grow_evenly_or_not_at_all);
    T_RUN(one_try_is_never_repeated);
    T_RUN(a_wait_the_peer_asked_for_is_used_once);
    T_RUN(a_wait_never_reaches_the_deadline);
    T_RUN(cancel_ends_a_wait);
    T_RUN(a_wait_alone_is_not_a_failed_try);
    return T_END();
}
