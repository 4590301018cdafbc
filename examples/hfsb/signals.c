/* signals.c - Ctrl-C.

   A command of the tools runs in its own session and does not get the signals
   of the terminal. So a signal only wakes this program, which then ends the
   command; a second signal ends this program at once. A child of `hfsb each`
   gets a signal when that dies in any way (Linux), so that no command goes on
   whose output nobody reads. */
#define _XOPEN_SOURCE 700 /* sigaction, setenv; before any include */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* The pid of `hfsb each`, for its children. */
#define PARENT "HFSB_EACH_PID"

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

void name_parent(void) {
    char pid[32];
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    must(setenv(PARENT, pid, 1) == 0 ? HFSB_OK : HFSB_NOMEM);
}

void follow_parent(void) {
    const char *text = getenv(PARENT);
    long        pid = text ? strtol(text, NULL, 10) : 0;
    if (!pid) return;
    (void)unsetenv(PARENT); /* its own children end with it */
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
#endif
    if ((long)getppid() != pid) (void)raise(SIGTERM); /* it died before */
}
