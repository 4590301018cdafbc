/* mcp_process.c - descriptors and signals of `hfsb mcp`.

   Commands must not reach standard input and output, which carry MCP. */
#define _XOPEN_SOURCE 700 /* sigaction; before any include */
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
#include <unistd.h>

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

void ignore_signals(void) {
    handle(SIGTERM, SIG_IGN);
    handle(SIGINT, SIG_IGN);
    handle(SIGHUP, SIG_IGN);
}

void end_within(long ms) {
    struct itimerval timer = HFSB_INIT;
    timer.it_value.tv_sec = ms / 1000;
    timer.it_value.tv_usec = ms % 1000 * 1000;
    handle(SIGALRM, too_late);
    (void)setitimer(ITIMER_REAL, &timer, NULL);
}
