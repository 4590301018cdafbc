/* timer.c - timers of a host, in the thread that serves.

   A timer of the loop is part of its owner and needs no memory; one of a host
   is an object, in a list of its server so that closing the server frees those
   that are left:

       open --> off --set--> on --time up---> off, then fn(user)
                 ^------ set(-1) ------+

   It is off before fn is called, so fn may set it again or close it. */
#include "server_private.h"

struct hfsb_timer {
    hfsbi_timer  timer; /* the first member */
    hfsb_server *server;
    hfsb_timer  *next, **link; /* of the server's list */
    void (*fn)(void *user);
    void *user;
};

static void hfsbi_host_timer_run(hfsbi_timer *timer) {
    hfsb_timer *t = (hfsb_timer *)(void *)timer;
    t->fn(t->user);
}

hfsb_status hfsb_timer_open(hfsb_server *server, void (*fn)(void *user),
                            void *user, hfsb_timer **out, hfsb_err *err) {
    hfsb_timer *t = (hfsb_timer *)hfsbi_array(&server->alloc, 1, sizeof *t);
    *out = t;
    if (!t) return hfsbi_fail_status(err, HFSB_NOMEM, "Timer");
    memset(t, 0, sizeof *t);
    t->timer.fn = hfsbi_host_timer_run;
    t->server = server;
    t->fn = fn;
    t->user = user;
    t->next = server->timers;
    t->link = &server->timers;
    if (t->next) t->next->link = &t->next;
    server->timers = t;
    return hfsbi_ok(err);
}

void hfsb_timer_set(hfsb_timer *timer, long long ms) {
    hfsbi_loop *loop = timer->server->loop;
    long long   now = hfsb_clock_ms();
    if (ms < 0) hfsbi_loop_timer_clear(loop, &timer->timer);
    else
        hfsbi_loop_timer(loop, &timer->timer,
                         ms < LLONG_MAX - now ? now + ms : LLONG_MAX);
}

void hfsb_timer_close(hfsb_timer *timer) {
    hfsb_alloc alloc;
    if (!timer) return;
    alloc = timer->server->alloc;
    hfsbi_loop_timer_clear(timer->server->loop, &timer->timer);
    *timer->link = timer->next;
    if (timer->next) timer->next->link = timer->link;
    hfsbi_array_free(&alloc, timer, 1, sizeof *timer);
}

HFSBI_FN void hfsbi_timers_close(hfsb_server *server) {
    while (server->timers) hfsb_timer_close(server->timers);
}
