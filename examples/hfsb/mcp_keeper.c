/* mcp_keeper.c - a process that outlives what its host knows.

   A host gives a server two seconds after the end of input, then SIGTERM, and
   two seconds later SIGKILL. To delete a Space may take longer, and what is
   not deleted costs money; commands that are left running cost memory. So the
   work is done by a child, which no signal of the host reaches. It ends in
   order also when the parent is killed, and the parent may end early:

       host --- parent (waits, hands on signals)
           \      | told: "done but for the deleting"   | life: never written
            \     |                                     | to; its end is that
             --- child (stdin, stdout, the tools)         of the parent */
#define _XOPEN_SOURCE 700 /* sigaction; before any include */
#include "mcp.h"

#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the child ---- */

static int life_end; /* the child's end of that pipe */

static void *watch_parent(void *user) {
    char byte;
    (void)user;
    while (read(life_end, &byte, 1) < 0 && errno == EINTR) continue;
    (void)kill(getpid(), SIGTERM);
    return NULL;
}

/* Its thread gets no signal: they are for the one that waits. */
static void start_watch(void) {
    sigset_t  all, before;
    pthread_t thread;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, watch_parent, NULL) == 0)
        (void)pthread_detach(thread);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void release_parent(keeper *k, int code) {
    char byte = (char)code;
    if (k->tell < 0) return;
    (void)!write(k->tell, &byte, 1);
    close(k->tell);
    k->tell = -1;
}

/* ---- the parent ---- */

static volatile pid_t child; /* set before a handler is */

static void hand_on(int number) {
    int keep = errno;
    (void)kill(child, number);
    errno = keep;
}

static void hand_on_signals(void) {
    static const int list[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = HFSB_INIT, old;
    size_t           i;
    action.sa_handler = hand_on;
    for (i = 0; i < sizeof list / sizeof *list; i++)
        if (sigaction(list[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)sigaction(list[i], &action, NULL);
}

/* Until the child says so, or ends: then as it ended. */
static int stand_for(int told) {
    char    byte;
    int     status;
    ssize_t n;
    hand_on_signals();
    do n = read(told, &byte, 1);
    while (n < 0 && errno == EINTR);
    /* the end of process 1 is that of all in its container */
    if (n > 0 && getpid() != 1) return byte;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return REFUSED;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- both ---- */

static bool open_pipe(int fds[2]) {
    if (pipe(fds) != 0) return false;
    (void)fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(fds[1], F_SETFD, FD_CLOEXEC);
    return true;
}

/* Descriptors 0, 1 and 2 exist, so that no pipe gets their numbers. */
static void open_standard(void) {
    int fd;
    do fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= 2);
    if (fd > 2) close(fd);
}

bool split_process(keeper *k, int *code) {
    int life[2], told[2], null;
    k->tell = -1;
    open_standard();
    if (!open_pipe(life)) return true;
    if (!open_pipe(told)) {
        close(life[0]);
        close(life[1]);
        return true;
    }
    child = fork();
    if (child > 0) { /* what the host waits for is the child's alone */
        close(life[0]);
        close(told[1]);
        null = open("/dev/null", O_RDWR);
        (void)dup2(null, 0);
        (void)dup2(null, 1);
        *code = stand_for(told[0]);
        return false;
    }
    close(life[1]);
    close(told[0]);
    if (child < 0) { /* it must do without */
        close(life[0]);
        close(told[1]);
        return true;
    }
    (void)setsid();
    k->tell = told[1];
    life_end = life[0];
    start_watch();
    return true;
}
