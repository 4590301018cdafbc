/* signals.c - Ctrl-C.

   A command of the tools runs in its own session and does not get the signals
   of the terminal. So a signal only wakes this program, which then ends the
   command; a second signal ends this program at once. */
#define _XOPEN_SOURCE 700 /* sigaction; before any include */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

static volatile sig_atomic_t caught;
static hfsb_tools           *to_wake; /* set before the handlers */
static hfsb_cancel          *to_set;
static void (*to_call)(void);

void call_at_exit(void (*fn)(void)) {
    to_call = fn;
}

static void note_signal(int number) {
    int keep = errno;
    if (caught && to_call) to_call();
    if (caught) _exit(128 + number);
    caught = number;
    if (to_wake) hfsb_tools_wake(to_wake); /* safe in a handler, */
    if (to_set) hfsb_cancel_set(to_set);   /* as this is */
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
    to_wake = tools;
    to_set = cancel;
    set_handler(note_signal);
}

void release_signals(void) {
    set_handler(SIG_DFL);
}

int caught_signal(void) {
    return (int)caught;
}
