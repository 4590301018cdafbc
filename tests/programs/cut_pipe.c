/* cut_pipe.c - a command whose pipe breaks: for pipes.sh.

       cut_pipe FILE N COMMAND...

   runs COMMAND and passes its input and output on, and dies when N bytes have
   passed, in both directions together. COMMAND is killed if N is even; else it
   sees the end of its input. That happens once: when FILE, which it creates,
   exists, it becomes COMMAND. Prints nothing; when COMMAND ended before N
   bytes had passed, FILE contains the word "whole". */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static long long left;

/* Passes what is there on, at most `left` bytes; false at the end. */
static int pass(int from, int to) {
    char    room[4096];
    size_t  most = (long long)sizeof room < left ? sizeof room : (size_t)left;
    ssize_t n = read(from, room, most), at = 0, m;
    if (n <= 0) return 0;
    while (at < n) {
        m = write(to, room + at, (size_t)(n - at));
        if (m <= 0) return 0;
        at += m;
    }
    left -= n;
    return 1;
}

static void be_command(char **argv) {
    execvp(argv[0], argv);
    _exit(127);
}

int main(int argc, char **argv) {
    int           up[2], down[2], mark, open_up = 1;
    pid_t         child;
    struct pollfd fds[2];
    if (argc < 4) return 2;
    mark = open(argv[1], O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (mark < 0) be_command(argv + 3);
    left = atoll(argv[2]);
    signal(SIGPIPE, SIG_IGN);
    if (pipe(up) != 0 || pipe(down) != 0) return 2;
    child = fork();
    if (child == 0) {
        dup2(up[0], 0);
        dup2(down[1], 1);
        close(up[0]), close(up[1]), close(down[0]), close(down[1]);
        signal(SIGPIPE, SIG_DFL);
        be_command(argv + 3);
    }
    close(up[0]), close(down[1]);
    while (left > 0) {
        fds[0].fd = open_up ? 0 : -1;
        fds[1].fd = down[0];
        fds[0].events = fds[1].events = POLLIN;
        if (poll(fds, 2, -1) < 0 && errno != EINTR) break;
        if (open_up && fds[0].revents && !pass(0, up[1])) {
            open_up = 0;
            close(up[1]);
        }
        if (left > 0 && fds[1].revents && !pass(down[0], 1)) {
            if (write(mark, "whole", 5) < 0) return 2;
            waitpid(child, NULL, 0);
            return 0;
        }
    }
    if (atoll(argv[2]) % 2 == 0) kill(child, SIGKILL);
    return 1;
}
