/* mcp_process.c - descriptors, signals and orphans of `hfsb mcp`.

   Commands must not reach standard input and output, which carry MCP. Their
   orphans become children of this process, which reaps them while it serves
   and kills them at the end. */
#define _XOPEN_SOURCE 700 /* sigaction, waitid; before any include */
#include "mcp.h"

#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* ---- standard input and output ---- */

bool take_stdio(stdio_pair *io) {
    int fd;
    do fd = open("/dev/null", O_RDWR); /* makes sure that 0, 1 and 2 exist */
    while (fd >= 0 && fd <= 2);
    io->in = fcntl(0, F_DUPFD_CLOEXEC, 3);
    io->out = fcntl(1, F_DUPFD_CLOEXEC, 3);
    if (fd < 0 || io->in < 0 || io->out < 0 || dup2(fd, 0) < 0 ||
        dup2(2, 1) < 0) {
        fprintf(stderr, "hfsb: standard input and output: %s\n",
                strerror(errno));
        return false;
    }
    close(fd);
    return true;
}

void leave_stdio(const stdio_pair *io) {
    struct stat st;
    /* to /dev/null, which 0 is, and not closed: the server still uses these
       descriptors, and another file could get their numbers */
    (void)dup2(0, io->in);
    (void)dup2(0, io->out);
    if (fstat(2, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))) {
        (void)dup2(0, 1);
        (void)dup2(0, 2);
    }
}

/* ---- signals ---- */

static hfsb_server *volatile running;

static void stop(int number) {
    int          keep = errno;
    hfsb_server *server = running;
    (void)number;
    if (server) hfsb_server_stop(server);
    errno = keep;
}

static void too_late(int number) {
    (void)number;
    _exit(DONE);
}

static void handle(int number, void (*handler)(int)) {
    struct sigaction action = HFSB_INIT;
    action.sa_handler = handler;
    (void)sigaction(number, &action, NULL);
}

/* An ignored signal stays ignored: nohup relies on it. */
static void handle_unless_ignored(int number, void (*handler)(int)) {
    struct sigaction old;
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        handle(number, handler);
}

void stop_on_signals(hfsb_server *server) {
    running = server;
    if (!server) return;
    handle(SIGPIPE, SIG_IGN);
    handle(SIGTERM, stop);
    handle_unless_ignored(SIGINT, stop);
    handle_unless_ignored(SIGHUP, stop);
}

void end_within(long ms) {
    struct itimerval timer = HFSB_INIT;
    timer.it_value.tv_sec = ms / 1000;
    timer.it_value.tv_usec = ms % 1000 * 1000;
    handle(SIGALRM, too_late);
    (void)setitimer(ITIMER_REAL, &timer, NULL);
}

/* ---- orphans: processes that commands started and did not wait for ---- */

enum { STALE_S = 3, ROUNDS = 20, ROUND_NS = 5 * 1000 * 1000, MOST = 1024 };

void adopt_orphans(void) {
    /* the parent may have set it to be ignored */
    handle(SIGCHLD, SIG_DFL);
#ifdef PR_SET_CHILD_SUBREAPER
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
#endif
}

/* Only the library may reap its own children. Each leads a session, or is in
   ours until it does. Daemons that were reparented to us look the same; they
   are recognised because nobody reaps them for seconds (reap_stale). */
static bool is_orphan(pid_t pid) {
    pid_t session = getsid(pid);
    return session != pid && session != getsid(0);
}

/* Reaps all zombies that were there STALE_S ago. All at once, because a
   command can leave them faster than one per round. first: one zombie, or
   0. */
static void reap_stale(pid_t first) {
    static long   list[MOST];
    static size_t count;
    static time_t since;
    if (!first) count = 0; /* the pids may be reused */
    if (!first || (count && time(NULL) - since < STALE_S)) return;
    while (count) (void)waitpid((pid_t)list[--count], NULL, WNOHANG);
    count = hfsb_proc_children(true, list, MOST);
    if (!count) list[count++] = first; /* without /proc */
    since = time(NULL);
}

bool reap_orphans(void) {
    siginfo_t info;
    bool      any;
    for (;;) {
        memset(&info, 0, sizeof info);
        any = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ||
              errno != ECHILD;
        if (!info.si_pid || !is_orphan(info.si_pid)) break;
        (void)waitpid(info.si_pid, NULL, WNOHANG);
    }
    reap_stale(info.si_pid);
    return any;
}

static void kill_children(void) {
    long   list[MOST];
    size_t n = hfsb_proc_children(false, list, MOST);
    while (n) (void)kill((pid_t)list[--n], SIGKILL);
}

void kill_orphans(void) {
    const struct timespec nap = {0, ROUND_NS};
    int                   round;
    for (round = 0; round < ROUNDS; round++) {
        while (waitpid(-1, NULL, WNOHANG) > 0) continue;
        if (waitpid(-1, NULL, WNOHANG) < 0) return; /* no children left */
        kill_children();
        (void)nanosleep(&nap, NULL);
    }
}
