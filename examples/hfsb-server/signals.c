/* signals.c - stopping by signal, and the limit of descriptors. */
#define _XOPEN_SOURCE 700 /* sigaction; before any include */
#include "program.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static hfsb_server          *running; /* set before a handler is */
static volatile sig_atomic_t came;    /* number of signals */
static unsigned              patience; /* seconds that a stop may take */

/* A stop is limited in time, but a disk or network file system that hangs
   could hold it up; then the alarm ends the program. */
static void stop(int number) {
    int keep = errno;
    if (came >= 2) _exit(128 + number);
    came++;
    alarm(came == 1 ? patience : 4);
    hfsb_server_stop(running);
    errno = keep;
}

/* The keeper is gone: only this process can end the commands. */
static void stop_at_once(int number) {
    stop(number);
    stop(number);
}

static void too_late(int number) {
    (void)number;
    _exit(FAILED);
}

static void set(int number, void (*handler)(int)) {
    struct sigaction action = HFSB_INIT;
    action.sa_handler = handler;
    (void)sigaction(number, &action, NULL);
}

/* An ignored signal stays ignored: nohup relies on it. */
static void handle(int number, void (*handler)(int)) {
    struct sigaction old;
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        set(number, handler);
}

void stop_on_signals(hfsb_server *server, long long drain_ms) {
    running = server;
    patience = 10 + (unsigned)((drain_ms + 999) / 1000);
    set(SIGPIPE, SIG_IGN);
    set(SIGALRM, too_late);
    set(KEEPER_GONE, stop_at_once);
    handle(SIGTERM, stop);
    handle(SIGINT, stop);
    handle(SIGHUP, stop);
    handle(SIGQUIT, stop);
}

void raise_descriptor_limit(const options *o) {
    struct rlimit limit;
    /* a command has two pipes and more, a thread a few files */
    rlim_t connections =
        (rlim_t)(o->max_connections ? o->max_connections : 1024);
    rlim_t commands = (rlim_t)(o->max_running ? o->max_running : 64);
    rlim_t need = connections * 2 + commands * 8 + 64;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= need) return;
    if (limit.rlim_max != RLIM_INFINITY && need > limit.rlim_max)
        need = limit.rlim_max;
    limit.rlim_cur = need;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}
