/* mcp_keeper.c - run the server in a child that the host cannot kill.

   A host sends SIGTERM two seconds after the end of input, and SIGKILL two
   seconds later. Deleting a Space may take longer, and a Space that is not
   deleted costs money. So the server runs in a child with a session of its
   own, which gets no signals from the host. Two pipes connect the processes:

       host --- parent (waits, forwards signals)
           \      | done: the child writes its exit   | life: never written;
            \     | code, and the parent may exit     | EOF in the child
             --- child (stdin, stdout, the tools)      means a dead parent */
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

static int life_end; /* the end of the pipe "life" in the child */

static void *watch_parent(void *user) {
    char byte;
    (void)user;
    while (read(life_end, &byte, 1) < 0 && errno == EINTR) continue;
    (void)kill(getpid(), SIGTERM);
    return NULL;
}

/* Signals are blocked in this thread, so that the main thread gets them. */
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
    if (k->done < 0) return;
    (void)!write(k->done, &byte, 1);
    close(k->done);
    k->done = -1;
}

/* ---- the parent ---- */

static volatile pid_t child; /* set before the handlers */

static void forward_signal(int number) {
    int keep = errno;
    (void)kill(child, number);
    errno = keep;
}

static void forward_signals(void) {
    static const int list[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = HFSB_INIT, old;
    size_t           i;
    action.sa_handler = forward_signal;
    for (i = 0; i < sizeof list / sizeof *list; i++)
        if (sigaction(list[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)sigaction(list[i], &action, NULL);
}

/* Waits for the exit code from the child, or for its end. */
static int wait_for_child(int done) {
    char    byte;
    int     status;
    ssize_t n;
    forward_signals();
    do n = read(done, &byte, 1);
    while (n < 0 && errno == EINTR);
    /* as process 1 its end would end the whole container */
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

/* Opens descriptors 0, 1 and 2 if missing, so that no pipe gets their
   numbers. */
static void open_standard(void) {
    int fd;
    do fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= 2);
    if (fd > 2) close(fd);
}

bool split_process(keeper *k, int *code) {
    int life[2], done[2], null;
    k->done = -1;
    open_standard();
    if (!open_pipe(life)) return true;
    if (!open_pipe(done)) {
        close(life[0]);
        close(life[1]);
        return true;
    }
    child = fork();
    if (child > 0) { /* only the child keeps the host's pipes open */
        close(life[0]);
        close(done[1]);
        null = open("/dev/null", O_RDWR);
        (void)dup2(null, 0);
        (void)dup2(null, 1);
        *code = wait_for_child(done[0]);
        return false;
    }
    close(life[1]);
    close(done[0]);
    if (child < 0) { /* serve in this process */
        close(life[0]);
        close(done[1]);
        return true;
    }
    (void)setsid();
    k->done = done[1];
    life_end = life[0];
    start_watch();
    return true;
}
