/* slow_shim.c - a slow disk for one name: preloaded into a program, it lets
   every open, read and sync of a file sleep whose path holds $SLOW_NAME.
     cc -shared -fPIC -O1 slow_shim.c -o slow_shim.so -ldl
     SLOW_NAME=slow.txt SLOW_MS=5000 LD_PRELOAD=./slow_shim.so PROGRAM
   $SLOW_LOG, when set, gets a line for each call that was slowed down, so
   that a test can tell whether it was effective. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define MAX_FD 65536

static volatile unsigned char slow_fds[MAX_FD];

/* The next definition of a function, found once; a data race between threads
   that look for the same thing is harmless. */
#define NEXT(name, type)                                                  \
    static type next;                                                     \
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, name)

typedef long (*syscall_fn)(long, ...);
typedef int (*open_fn)(const char *, int, ...);
typedef int (*openat_fn)(int, const char *, int, ...);
typedef int (*close_fn)(int);

static syscall_fn real_syscall(void) {
    NEXT("syscall", syscall_fn);
    return next;
}

static void delay(const char *call) {
    const char     *ms = getenv("SLOW_MS"), *log = getenv("SLOW_LOG");
    long            n = ms ? atol(ms) : 5000;
    int             saved = errno;
    struct timespec t;
    if (log) {
        int  fd = (int)real_syscall()(SYS_openat, AT_FDCWD, log,
                                      O_WRONLY | O_CREAT | O_APPEND, 0644);
        char line[64];
        int  len = snprintf(line, sizeof line, "%s\n", call);
        if (fd >= 0) {
            if (write(fd, line, (size_t)len) < 0) { }
            close(fd);
        }
    }
    t.tv_sec = n / 1000;
    t.tv_nsec = n % 1000 * 1000000;
    while (nanosleep(&t, &t) != 0 && errno == EINTR) { }
    errno = saved;
}

static int is_slow(const char *path) {
    const char *name = getenv("SLOW_NAME");
    return path && name && *name && strstr(path, name) != NULL;
}

static void slow_fd(int fd, const char *call) {
    if (fd >= 0 && fd < MAX_FD && slow_fds[fd]) delay(call);
}

/* Before an open: sleeps. After it: marks, or unmarks a number used again. */
static int before(const char *path, const char *call) {
    int slow = is_slow(path);
    if (slow) delay(call);
    return slow;
}

static int after(int fd, int slow) {
    if (fd >= 0 && fd < MAX_FD) slow_fds[fd] = (unsigned char)slow;
    return fd;
}

#define OPENAT(name)                                                      \
    int name(int dir, const char *path, int flags, ...) {                 \
        va_list list;                                                     \
        mode_t  mode = 0;                                                 \
        int     slow = before(path, #name);                               \
        NEXT(#name, openat_fn);                                           \
        va_start(list, flags);                                            \
        if (flags & (O_CREAT | O_TMPFILE)) mode = va_arg(list, mode_t);   \
        va_end(list);                                                     \
        return after(next(dir, path, flags, mode), slow);                 \
    }
#define OPEN(name)                                                        \
    int name(const char *path, int flags, ...) {                          \
        va_list list;                                                     \
        mode_t  mode = 0;                                                 \
        int     slow = before(path, #name);                               \
        NEXT(#name, open_fn);                                             \
        va_start(list, flags);                                            \
        if (flags & (O_CREAT | O_TMPFILE)) mode = va_arg(list, mode_t);   \
        va_end(list);                                                     \
        return after(next(path, flags, mode), slow);                      \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

#define ON_FD(type, name, parameters, arguments)                          \
    typedef type(*name##_fn) parameters;                                  \
    type name parameters {                                                \
        NEXT(#name, name##_fn);                                           \
        slow_fd(fd, #name);                                               \
        return next arguments;                                            \
    }
ON_FD(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n))
ON_FD(ssize_t, pread, (int fd, void *buf, size_t n, off_t at),
      (fd, buf, n, at))
ON_FD(ssize_t, pread64, (int fd, void *buf, size_t n, off64_t at),
      (fd, buf, n, at))
ON_FD(int, fsync, (int fd), (fd))
ON_FD(int, fdatasync, (int fd), (fd))

int close(int fd) {
    NEXT("close", close_fn);
    if (fd >= 0 && fd < MAX_FD) slow_fds[fd] = 0;
    return next(fd);
}

/* openat2 has no function in the C library: programs come through here. */
long syscall(long number, ...) {
    va_list list;
    long    a[6];
    int     i, slow = 0;
    va_start(list, number);
    for (i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_openat2)
        slow = before((const char *)a[1], "openat2");
    a[0] = real_syscall()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_openat2) after((int)a[0], slow);
    return a[0];
}
