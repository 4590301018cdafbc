/* keeper.c - serve in a child, so that nothing outlives the server.

   The keeper is the process that was started, process 1 in a container. It
   adopts the orphans of commands and reaps them, which the library, in the
   child, leaves to others; it forwards signals to the child, and when the
   child ends, by a SIGKILL too, it kills all that is left and exits as the
   child did. When the keeper itself is killed, the child stops at once.

   A service manager listens to the keeper: it reports that the server is ready
   when the child sends it CHILD_READY, and that it stops. */
#define _DEFAULT_SOURCE 1 /* prctl; before any include */
#define _XOPEN_SOURCE 700 /* sigaction */
#include "program.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum {
    GRACE_MS = 300, /* for what commands left running */
    KILL_MS = 1000  /* to kill what ignores that */
};

static pid_t keeper_pid; /* in the child; 0: there is no keeper */

/* Exits as the child did, after all other processes. */
static void end(int status) {
    notify("STOPPING=1");
    hfsb_orphans_kill(GRACE_MS, KILL_MS);
    end_pipe();
    _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

/* Reaps every ended process. */
static void reap(pid_t child) {
    int   status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == child && (WIFSIGNALED(status) || WIFEXITED(status)))
            end(status);
    if (pid < 0 && errno == ECHILD) _exit(FAILED); /* already reaped */
}

static void ignore(int number) {
    (void)number;
}

/* The BSDs drop a SIGCHLD that nobody handles, even a blocked one. */
static void expect_children(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = ignore;
    (void)sigaction(SIGCHLD, &action, NULL);
}

/* Only the first CHILD_READY counts: it comes before any command runs, and a
   command could send others. */
static void watch_over(pid_t child, const sigset_t *waited) {
    bool ready = false;
    expect_children();
    reap(child); /* one that ended before that */
    for (;;) {
        int number = 0;
        if (sigwait(waited, &number) != 0) continue;
        if (number == SIGCHLD) reap(child);
        else if (number == CHILD_READY) {
            if (!ready) notify("READY=1");
            ready = true;
        } else if (number == SIGTERM || number == SIGINT || number == SIGHUP ||
                 number == SIGQUIT || number == SIGUSR2) {
            if (number != SIGUSR2) notify("STOPPING=1");
            (void)kill(child, number);
        }
    }
}

bool has_keeper(void) {
    return keeper_pid && getppid() == keeper_pid;
}

void report_ready(void) {
    if (!keeper_pid) notify("READY=1");
    else if (has_keeper()) (void)kill(keeper_pid, CHILD_READY);
}

/* In its own session the child gets Ctrl-C once, forwarded by the keeper, and
   not from the terminal as well. */
static void be_the_child(pid_t keeper) {
    (void)setsid();
#if defined(__linux__) && defined(PR_SET_PDEATHSIG)
    (void)prctl(PR_SET_PDEATHSIG, KEEPER_GONE, 0, 0, 0);
#endif
    if (getppid() != keeper) _exit(FAILED); /* it has ended already */
    keeper_pid = keeper;
}

void continue_in_child(void) {
    sigset_t waited, before;
    pid_t    child, keeper = getpid();
    int      fd, kept;
    take_notify_socket();
    hfsb_orphans_adopt();
    sigfillset(&waited);
    sigdelset(&waited, SIGTSTP); /* Ctrl-Z stops the keeper */
    sigdelset(&waited, SIGTTIN);
    sigdelset(&waited, SIGTTOU);
    (void)sigprocmask(SIG_BLOCK, &waited, &before);
    child = fork();
    if (child > 0) {
        /* both have a copy */
        take_environment_token("SANDBOX_API_TOKEN", NULL, NULL);
        take_environment_token("SBX_TOKEN", NULL, NULL);
        kept = keep_pipe();
        for (fd = 3; fd < 1024; fd++)
            if (fd != kept) close(fd);
        watch_over(child, &waited);
    }
    if (child == 0) be_the_child(keeper);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        complain(DONE, "cannot fork: processes that commands leave running "
                       "will outlive the server.");
}
