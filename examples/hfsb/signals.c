/* signals.c - Ctrl-C. A command of the tools runs in a session of its own, so
   that a signal to this program does not reach it: someone has to end it. */
#define _XOPEN_SOURCE 700 /* sigaction; before any include */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

static volatile sig_atomic_t came;
static hfsb_tools           *sleeper; /* set before a handler is */
static hfsb_cancel          *waiter;

static void note_signal(int number) {
    int keep = errno;
    if (came) _exit(128 + number);
    came = number;
    if (sleeper) hfsb_tools_wake(sleeper); /* no more than a write() */
    if (waiter) hfsb_cancel_set(waiter);   /* the same */
    errno = keep;
}

static void set_handler(void (*handler)(int)) {
    struct sigaction action = HFSB_INIT, old;
    size_t           i;
    action.sa_handler = handler;
    for (i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &old) == 0 &&
            old.sa_handler != SIG_IGN)
            (void)sigaction(signals[i], &action, NULL);
}

void catch_signals(hfsb_tools *tools, hfsb_cancel *cancel) {
    sleeper = tools;
    waiter = cancel;
    set_handler(note_signal);
}

void release_signals(void) {
    set_handler(SIG_DFL);
}

int caught_signal(void) {
    return (int)came;
}
