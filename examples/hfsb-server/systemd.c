/* systemd.c - running as a service: sockets that systemd has opened, and
   notifications when the server is ready and when it stops. Neither needs a
   library.

   $LISTEN_PID, $LISTEN_FDS   descriptors from 3 on are listening sockets, if
                              the first is our process id
   $NOTIFY_SOCKET             a datagram socket, "/path" or "@abstract", for
                              READY=1 and STOPPING=1

   systemd listens to the process that it started, which is the keeper: the
   child sends it a signal once the server is ready (keeper.c). Commands see
   none of these variables, nor inherit the descriptors. */
#define _DEFAULT_SOURCE 1 /* unsetenv with musl; before any include */
#define _XOPEN_SOURCE 700 /* unsetenv */
#include "program.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_SOCKET = 3 };

/* The socket of systemd, kept when its variable is removed. */
static struct sockaddr_un notify_to;
static socklen_t          notify_len; /* 0: there is none */

bool take_sockets(options *o, int *code) {
    static char numbers[MAX_TEXTS][16];
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    long long   ours = 0, n = 0, i;
    bool        mine = pid && count && read_number(pid, &ours) &&
                ours == (long long)getpid();
    if (mine && (!read_number(count, &n) ||
                 n > (long long)(MAX_TEXTS - o->listen_fds.count))) {
        *code = complain(USAGE, "$LISTEN_FDS: at most %d sockets.",
                         (int)MAX_TEXTS);
        return false;
    }
    for (i = 0; i < n; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%d", FIRST_SOCKET + (int)i);
        o->listen_fds.list[o->listen_fds.count++] = numbers[i];
        (void)fcntl(FIRST_SOCKET + (int)i, F_SETFD, FD_CLOEXEC);
    }
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    return true;
}

void take_notify_socket(void) {
    const char *path = getenv("NOTIFY_SOCKET");
    size_t      len = path ? strlen(path) : 0;
    if (len > 1 && len < sizeof notify_to.sun_path &&
        (*path == '/' || *path == '@')) {
        notify_to.sun_family = AF_UNIX;
        memcpy(notify_to.sun_path, path, len);
        if (*path == '@') notify_to.sun_path[0] = '\0'; /* abstract */
        notify_len =
            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    }
    (void)unsetenv("NOTIFY_SOCKET");
}

void notify(const char *state) {
    int fd;
    if (!notify_len) return;
    fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0) return;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)sendto(fd, state, strlen(state), 0,
                 (const struct sockaddr *)(const void *)&notify_to,
                 notify_len);
    close(fd);
}
