/* t_cancel.h - helpers for tests of cancels: who sets one, and how often the
   library called poll() meanwhile. */
#ifndef T_CANCEL_H
#define T_CANCEL_H
#include "t.h"

#include <sys/time.h>

/* ---- calls of poll() ---- */

/* ThreadSanitizer runs signal handlers in its own poll(), and only there. */
#if defined(__SANITIZE_THREAD__)
#define TK_THREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TK_THREADS 1
#endif
#endif

#if defined(__linux__) && !defined(TK_THREADS)
#define TK_COUNTS 1
static unsigned tk_polls;

int poll(struct pollfd *fds, nfds_t n, int ms) {
    struct timespec t;
    (void)__atomic_add_fetch(&tk_polls, 1u, __ATOMIC_RELAXED);
    t.tv_sec = ms / 1000;
    t.tv_nsec = (long)(ms % 1000) * 1000000;
    return ppoll(fds, n, ms < 0 ? NULL : &t, NULL);
}

/* Since the last call. */
HFSBI_UNUSED static unsigned tk_take_polls(void) {
    return __atomic_exchange_n(&tk_polls, 0u, __ATOMIC_RELAXED);
}
#else
#define TK_COUNTS 0
HFSBI_UNUSED static unsigned tk_take_polls(void) {
    return 0;
}
#endif

/* ---- from another thread ---- */

HFSBI_UNUSED static void *tk_set(void *cancel) {
    hfsb_cancel_set((hfsb_cancel *)cancel);
    return NULL;
}

HFSBI_UNUSED static void *tk_set_soon(void *cancel) {
    (void)usleep(50000);
    return tk_set(cancel);
}

HFSBI_UNUSED static pthread_t tk_start(void *(*fn)(void *), void *user) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, fn, user)) abort();
    return thread;
}

/* ---- from a signal handler ---- */

static hfsb_cancel *tk_signalled; /* (NULL: nothing is set) */

HFSBI_UNUSED static void tk_on_alarm(int number) {
    hfsb_cancel *cancel = __atomic_load_n(&tk_signalled, __ATOMIC_SEQ_CST);
    int          keep = errno;
    (void)number;
    errno = EDOM;
    if (cancel) hfsb_cancel_set(cancel);
    if (errno != EDOM) abort();
    errno = keep;
}

HFSBI_UNUSED static void tk_set_by_alarm(hfsb_cancel *cancel) {
    __atomic_store_n(&tk_signalled, cancel, __ATOMIC_SEQ_CST);
}

/* SIGALRM after `us` microseconds, and again after `every`; 0: no more. */
HFSBI_UNUSED static void tk_alarm(long us, long every) {
    struct itimerval when;
    struct sigaction act;
    memset(&act, 0, sizeof act);
    memset(&when, 0, sizeof when);
    act.sa_handler = tk_on_alarm;
    when.it_value.tv_usec = us;
    when.it_interval.tv_usec = every;
    if (sigaction(SIGALRM, &act, NULL) ||
        setitimer(ITIMER_REAL, &when, NULL))
        abort();
}

/* ---- descriptors ---- */

HFSBI_UNUSED static size_t tk_open_fds(void) {
    size_t n = 0;
    int    fd;
    for (fd = 0; fd < 1024; fd++) n += fcntl(fd, F_GETFD) != -1;
    return n;
}

HFSBI_UNUSED static bool tk_readable(int fd) {
    struct pollfd p;
    p.fd = fd;
    p.events = POLLIN;
    p.revents = 0;
    while (poll(&p, 1, 0) < 0 && errno == EINTR) continue;
    return p.revents != 0;
}
#endif
