/* fakes.h - system calls that a test counts, makes fail, or precedes with an
   action. The program defines them itself; they hide those of libc. */
#ifndef FAKES_H
#define FAKES_H
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"
#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

enum { ONCE, FOREVER, SHORT };

static struct {
    long        at;    /* the call to fail, 1-based; 0: none */
    long        count; /* calls so far */
    int         code;  /* the errno it fails with */
    int         how;
    int (*choose)(const char *name); /* the errno for a call instead of `code`;
                                        0: it does not fail (NULL: none) */
    const char *only;  /* calls of this name (NULL: all) */
    const char *name;  /* the last call that failed */
    bool        stuck; /* one of them was to remove a file */
    void (*act)(void); /* called before the call `at` and the call `again`;
                          then no call fails */
    long again;
    int  acted;        /* how often act was called */
    long later;        /* seconds that the monotonic clock is ahead */
} fault;

static void hooked(void) {
    long at = fault.at;
    if (!at) return;
    fault.count++;
    if (fault.count != at && fault.count != fault.again) return;
    fault.at = 0; /* calls of act itself do not count */
    fault.acted++;
    fault.act();
    fault.at = at;
}

static bool failing(const char *name) {
    bool now;
    if (fault.act) hooked();
    if (fault.act || !fault.at) return false;
    if (fault.only && strcmp(fault.only, name) != 0) return false;
    fault.count++;
    now = fault.how == FOREVER ? fault.count >= fault.at
                               : fault.count == fault.at;
    if (!now) return false;
    if (fault.choose && fault.how != SHORT) {
        fault.code = fault.choose(name);
        if (!fault.code) return false;
    }
    fault.name = name;
    if (strcmp(name, "unlinkat") == 0) fault.stuck = true;
    if (fault.how == SHORT) return true;
    errno = fault.code;
    return true;
}

/* A call that fails, or the real one, which has the same type. */
#define FAKE(result, name, formal, actual)                                 \
    result name formal {                                                   \
        result(*real) formal;                                              \
        *(void **)(&real) = dlsym(RTLD_NEXT, #name);                       \
        if (failing(#name) && fault.how != SHORT) return (result)-1;       \
        return real actual;                                                \
    }

/* The same for a call that may transfer fewer bytes. */
#define FAKE_SHORT(result, name, formal, actual)                           \
    result name formal {                                                   \
        result(*real) formal;                                              \
        *(void **)(&real) = dlsym(RTLD_NEXT, #name);                       \
        if (failing(#name)) {                                              \
            if (fault.how != SHORT) return (result)-1;                     \
            if (n > 1) n = 1;                                              \
        }                                                                  \
        return real actual;                                                \
    }

FAKE_SHORT(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n))
FAKE_SHORT(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
FAKE_SHORT(ssize_t, pread, (int fd, void *p, size_t n, off_t at),
           (fd, p, n, at))
FAKE_SHORT(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at),
           (fd, p, n, at))
FAKE(int, fstat, (int fd, struct stat *st), (fd, st))
FAKE(int, fstatat, (int d, const char *p, struct stat *st, int f),
     (d, p, st, f))
FAKE(int, fchmod, (int fd, mode_t m), (fd, m))
FAKE(int, fchown, (int fd, uid_t u, gid_t g), (fd, u, g))
FAKE(int, flock, (int fd, int op), (fd, op))
FAKE(int, ftruncate, (int fd, off_t n), (fd, n))
FAKE(int, fallocate, (int fd, int m, off_t at, off_t n), (fd, m, at, n))
FAKE(int, mkdirat, (int d, const char *p, mode_t m), (d, p, m))
FAKE(int, unlinkat, (int d, const char *p, int f), (d, p, f))
FAKE(int, renameat, (int d, const char *p, int e, const char *q),
     (d, p, e, q))
FAKE(int, linkat, (int d, const char *p, int e, const char *q, int f),
     (d, p, e, q, f))
FAKE(int, faccessat, (int d, const char *p, int m, int f), (d, p, m, f))
FAKE(ssize_t, readlinkat, (int d, const char *p, char *b, size_t n),
     (d, p, b, n))
FAKE(ssize_t, flistxattr, (int fd, char *b, size_t n), (fd, b, n))
FAKE(ssize_t, fgetxattr, (int fd, const char *k, void *b, size_t n),
     (fd, k, b, n))
FAKE(int, fsetxattr,
     (int fd, const char *k, const void *b, size_t n, int f),
     (fd, k, b, n, f))

/* does not wait for the disk: there are too many calls */
int fsync(int fd) {
    (void)fd;
    return failing("fsync") && fault.how != SHORT ? -1 : 0;
}

/* closes even when it fails, as on Linux */
int close(int fd) {
    int (*real)(int);
    int rc;
    *(void **)(&real) = dlsym(RTLD_NEXT, "close");
    rc = real(fd);
    return failing("close") && fault.how != SHORT ? -1 : rc;
}

int clock_gettime(clockid_t id, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *);
    int rc;
    *(void **)(&real) = dlsym(RTLD_NEXT, "clock_gettime");
    rc = real(id, now);
    if (rc == 0 && id == CLOCK_MONOTONIC) now->tv_sec += fault.later;
    return rc;
}

DIR *fdopendir(int fd) {
    DIR *(*real)(int);
    *(void **)(&real) = dlsym(RTLD_NEXT, "fdopendir");
    return failing("fdopendir") && fault.how != SHORT ? NULL : real(fd);
}

int openat(int dir, const char *path, int flags, ...) {
    int (*real)(int, const char *, int, ...);
    va_list ap;
    int     mode;
    va_start(ap, flags);
    mode = flags & O_CREAT ? va_arg(ap, int) : 0;
    va_end(ap);
    *(void **)(&real) = dlsym(RTLD_NEXT, "openat");
    if (failing("openat") && fault.how != SHORT) return -1;
    return real(dir, path, flags, mode);
}

int open(const char *path, int flags, ...) {
    int (*real)(const char *, int, ...);
    va_list ap;
    int     mode;
    va_start(ap, flags);
    mode = flags & O_CREAT ? va_arg(ap, int) : 0;
    va_end(ap);
    *(void **)(&real) = dlsym(RTLD_NEXT, "open");
    if (failing("open") && fault.how != SHORT) return -1;
    return real(path, flags, mode);
}

/* openat2 and renameat2 */
/* setfsuid() and setfsgid() of root do not fail, and report no failure. */
static bool sets_file_ids(long number) {
#ifdef SYS_setfsuid32
    if (number == SYS_setfsuid32 || number == SYS_setfsgid32) return true;
#endif
    return number == SYS_setfsuid || number == SYS_setfsgid;
}

long syscall(long number, ...) {
    long (*real)(long, ...);
    va_list ap;
    long    a[6];
    int     i;
    va_start(ap, number);
    for (i = 0; i < 6; i++) a[i] = va_arg(ap, long);
    va_end(ap);
    *(void **)(&real) = dlsym(RTLD_NEXT, "syscall");
    if (!sets_file_ids(number) && failing("syscall") && fault.how != SHORT)
        return -1;
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- traces ---- */

static int descriptors(void) {
    int fd, n = 0;
    for (fd = 0; fd < 64; fd++) n += fcntl(fd, F_GETFD) != -1;
    return n;
}

static void spill(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

/* The file contains text; NULL: it does not exist. */
static bool holds(const char *path, const char *text) {
    char   bytes[256];
    FILE  *f = fopen(path, "rb");
    size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f) fclose(f);
    if (!f || !text) return !f && !text;
    return n == strlen(text) && memcmp(bytes, text, n) == 0;
}

/* Removes temporaries; true when there were any. */
static bool leftovers(const char *path) {
    DIR           *dir = opendir(path);
    struct dirent *e;
    bool           any = false;
    while (dir && (e = readdir(dir)) != NULL)
        if (strstr(e->d_name, ".hfsb-")) {
            any = true;
            (void)unlinkat(dirfd(dir), e->d_name, 0);
        }
    if (dir) closedir(dir);
    return any;
}
#endif
