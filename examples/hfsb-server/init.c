/* init.c - as process 1 of a container. The kernel gives every orphan to that
   process, which must wait for it; and signals it does not handle have no
   effect on it. The library waits for its own children only, so the work is
   done by a child, and this process does nothing but what process 1 must. */
#define _XOPEN_SOURCE 700 /* sigwaitinfo; before any include */
#include "program.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Waits for all that have ended; ends with the child. */
static void reap(pid_t child) {
    int   status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != child) continue;
        if (WIFSIGNALED(status)) _exit(128 + WTERMSIG(status));
        if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
    }
    if (pid < 0 && errno == ECHILD) _exit(FAILED); /* someone took it */
}

static void watch_over(pid_t child, const sigset_t *all) {
    for (;;) {
        siginfo_t info;
        int       number = sigwaitinfo(all, &info);
        if (number == SIGCHLD) reap(child);
        else if (number == SIGTERM || number == SIGINT || number == SIGHUP ||
                 number == SIGQUIT || number == SIGUSR1 || number == SIGUSR2)
            (void)kill(child, number);
    }
}

void become_init(void) {
    sigset_t all, before;
    pid_t    child;
    int      fd;
    if (getpid() != 1) return;
    sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &before);
    child = fork();
    if (child > 0) {
        take_environment_token(NULL, NULL); /* each has a copy of its own */
        for (fd = 3; fd < 1024; fd++) close(fd);
        watch_over(child, &all);
    }
    /* A session of its own: Ctrl-C in a terminal is then for process 1 alone,
       and comes here once, from there. */
    if (child == 0) (void)setsid();
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        complain(DONE, "as process 1 it could not fork, so that orphans will "
                       "not be reaped.");
}
