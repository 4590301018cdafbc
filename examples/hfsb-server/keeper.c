/* init.c - as process 1 of a container. The kernel reparents every orphan to
   process 1, which must reap it, and ignores signals that process 1 does not
   handle. The library reaps only its own children, so a child does the work
   and this process does only what process 1 must do. */
#define _XOPEN_SOURCE 700 /* sigwaitinfo; before any include */
#include "program.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reaps every ended process; exits with the child. */
static void reap(pid_t child) {
    int   status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != child) continue;
        if (WIFSIGNALED(status)) _exit(128 + WTERMSIG(status));
        if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
    }
    if (pid < 0 && errno == ECHILD) _exit(FAILED); /* already reaped */
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
        take_environment_token(NULL, NULL); /* both have a copy */
        for (fd = 3; fd < 1024; fd++) close(fd);
        watch_over(child, &all);
    }
    /* In its own session the child gets Ctrl-C once, forwarded by process 1,
       and not from the terminal as well. */
    if (child == 0) (void)setsid();
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        complain(DONE, "process 1 could not fork: orphans will not be "
                       "reaped.");
}
