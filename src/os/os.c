/* os.c - system calls that several rooms need, and hfsb_cancel

   Wrappers that repeat after EINTR, keep errno, make descriptors close-on-exec
   and keep them away from 0 to 2; texts and statuses for errno; random bytes;
   threads and conditions; waiting for one descriptor with a deadline and a
   cancel flag. No state of its own: nothing here is global. */
#include "os_private.h"

/* ---- errors ---- */

HFSBI_FN const char *hfsbi_os_text(int code) {
    static const struct {
        int         code;
        const char *text;
    } known[] = {{ENOENT, "no such file or directory"},
                 {EACCES, "permission denied"},
                 {EPERM, "operation not permitted"},
                 {ENOTDIR, "a part of the path is not a directory"},
                 {EISDIR, "is a directory"},
                 {EEXIST, "already exists"},
                 {ENAMETOOLONG, "the name is too long"},
                 {ELOOP, "too many symbolic links"},
                 {ENOSPC, "no space left on the device"},
                 {EDQUOT, "the disk quota is used up"},
                 {EFBIG, "the file size limit is reached"},
                 {EROFS, "the file system is read-only"},
                 {EIO, "input/output error"},
                 {EBUSY, "in use"},
                 {EXDEV, "crosses a file system boundary"},
                 {ETXTBSY, "the program is being executed"},
                 {EMFILE, "too many open files in this process"},
                 {ENFILE, "too many open files in the system"},
                 {ENOMEM, "out of memory"},
                 {EINTR, "interrupted"},
                 {EAGAIN, "resource temporarily unavailable"},
                 {E2BIG, "argument list too long"},
                 {ENOEXEC, "not an executable format"},
                 {EINVAL, "invalid argument"},
                 {EPIPE, "the reader is gone"},
                 {ECONNREFUSED, "nobody listens there"},
                 {ECONNRESET, "the connection was reset"},
                 {ENETUNREACH, "the network is unreachable"},
                 {ETIMEDOUT, "no answer in time"},
                 {EBADF, "bad file descriptor"},
                 {ENODEV, "no such device"},
                 {ENXIO, "no such device or address"},
                 {ESTALE, "stale file handle"},
                 {ENOSYS, "not supported by the system"},
                 {EOPNOTSUPP, "not supported"}};
    size_t i;
    for (i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code) return known[i].text;
    return "system error";
}

HFSBI_FN hfsb_status hfsbi_os_status(int code) {
    switch (code) {
    case ENOENT:
    case ENOTDIR: return HFSB_NOT_FOUND;
    case ENOMEM: return HFSB_NOMEM;
    case E2BIG: return HFSB_LIMIT;
    case EACCES:
    case EPERM:
    case EROFS: return HFSB_DENIED;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return HFSB_FULL;
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case EBUSY:
    case ETXTBSY: return HFSB_BUSY;
    default: return HFSB_IO;
    }
}

HFSBI_FN hfsb_status hfsbi_fail_os(hfsb_err *err, int code, const char *format,
                                   ...) {
    char    text[1024];
    va_list ap;
    if (!err) return hfsbi_os_status(code);
    va_start(ap, format);
    if (vsnprintf(text, sizeof text, format, ap) < 0) text[0] = '\0';
    va_end(ap);
    hfsbi_fail(err, hfsbi_os_status(code), 0, "%s: %s", text,
               hfsbi_os_text(code));
    return err->code;
}

/* ---- descriptors ---- */

HFSBI_FN void hfsbi_close(int *fd) {
    int keep = errno;
    if (*fd >= 0) (void)close(*fd);
    *fd = -1;
    errno = keep;
}

HFSBI_FN ssize_t hfsbi_read(int fd, void *ptr, size_t n) {
    ssize_t got;
    do got = read(fd, ptr, n);
    while (got < 0 && errno == EINTR);
    return got;
}

HFSBI_FN ssize_t hfsbi_write(int fd, const void *ptr, size_t n) {
    ssize_t put;
    do put = write(fd, ptr, n);
    while (put < 0 && errno == EINTR);
    return put;
}

HFSBI_FN ssize_t hfsbi_read_file(int fd, void *ptr, size_t n) {
    ssize_t got = hfsbi_read(fd, ptr, n);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : got;
}

HFSBI_FN bool hfsbi_write_all(int fd, hfsb_str s) {
    hfsbi_signal_guard guard;
    bool               ok = true;
    hfsbi_signal_guard_begin(&guard);
    while (ok && s.len) {
        ssize_t n = hfsbi_write(fd, s.ptr, s.len);
        if (n == 0) errno = EIO;
        ok = n > 0;
        if (ok) s = hfsb_str_slice(s, (size_t)n, s.len);
    }
    hfsbi_signal_guard_end(&guard);
    return ok;
}

HFSBI_FN int hfsbi_fd_above_2(int fd) {
    int high;
    if (fd < 0 || fd > 2) return fd;
    high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    hfsbi_close(&fd);
    return high;
}

HFSBI_FN int hfsbi_openat(int dir, const char *name, int flags, mode_t mode) {
    int fd;
    do fd = openat(dir, name, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return hfsbi_fd_above_2(fd);
}

HFSBI_FN int hfsbi_mkdirat(int dir, const char *name, mode_t mode) {
    int rc;
    do rc = mkdirat(dir, name, mode);
    while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : errno;
}

HFSBI_FN int hfsbi_unlinkat(int dir, const char *name, int flags) {
    int rc;
    do rc = unlinkat(dir, name, flags);
    while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : errno;
}

HFSBI_FN bool hfsbi_try_lock(int fd, bool shared) {
    int rc;
    do rc = flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB);
    while (rc != 0 && errno == EINTR);
    return rc == 0 || errno != EWOULDBLOCK;
}

HFSBI_FN bool hfsbi_sync(int fd) {
    int rc;
#ifdef F_FULLFSYNC /* macOS: fsync() does not flush the drive's cache */
    if (fcntl(fd, F_FULLFSYNC) == 0) return true;
#endif
    do rc = fsync(fd);
    while (rc != 0 && errno == EINTR);
    return rc == 0 || errno == EINVAL || errno == ENOSYS ||
           errno == EOPNOTSUPP;
}

HFSBI_FN void hfsbi_sync_dir(int dir) {
    int fd = hfsbi_openat(dir, ".", O_RDONLY | O_DIRECTORY, 0);
    if (fd >= 0) (void)hfsbi_sync(fd);
    hfsbi_close(&fd);
}

HFSBI_FN bool hfsbi_pipe(int fds[2]) {
    int raw[2] = {-1, -1};
#ifdef HFSBI_LINUX
    int rc = pipe2(raw, O_CLOEXEC);
#else
    int rc = pipe(raw); /* a fork in another thread may inherit these */
    if (rc == 0) {
        (void)fcntl(raw[0], F_SETFD, FD_CLOEXEC);
        (void)fcntl(raw[1], F_SETFD, FD_CLOEXEC);
    }
#endif
    fds[0] = fds[1] = -1;
    if (rc != 0) return false;
    fds[0] = hfsbi_fd_above_2(raw[0]);
    if (fds[0] < 0) {
        hfsbi_close(&raw[1]);
        return false;
    }
    fds[1] = hfsbi_fd_above_2(raw[1]);
    if (fds[1] >= 0) return true;
    hfsbi_close(&fds[0]);
    return false;
}

HFSBI_FN bool hfsbi_set_nonblocking(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

HFSBI_FN char **hfsbi_environ(void) {
#ifdef __APPLE__
    return *_NSGetEnviron(); /* a dylib cannot link with environ */
#else
    return environ;
#endif
}

HFSBI_FN bool hfsbi_wake_open(int fds[2]) {
    return hfsbi_pipe(fds) && hfsbi_set_nonblocking(fds[0]) &&
           hfsbi_set_nonblocking(fds[1]);
}

HFSBI_FN void hfsbi_wake_drain(int fd) {
    char    empty[64];
    ssize_t n;
    do n = hfsbi_read(fd, empty, sizeof empty);
    while (n == (ssize_t)sizeof empty); /* fewer: the pipe is empty */
}

HFSBI_FN void hfsbi_wake_write(int fd) {
    int     keep = errno; /* we may be in a signal handler */
    ssize_t n = hfsbi_write(fd, "", 1);
    (void)n; /* full: a wake-up is already pending */
    errno = keep;
}

/* ---- signals ---- */

HFSBI_FN void hfsbi_signal_guard_begin(hfsbi_signal_guard *guard) {
    int      keep = errno;
    sigset_t both, pending;
    sigemptyset(&both);
    sigaddset(&both, SIGPIPE);
    sigaddset(&both, SIGXFSZ);
    sigemptyset(&pending);
    (void)sigpending(&pending);
    guard->pipe_pending = sigismember(&pending, SIGPIPE) == 1;
    guard->size_pending = sigismember(&pending, SIGXFSZ) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &both, &guard->old_mask);
    errno = keep;
}

/* Discards a signal that became pending since begin. A signal that the host
   ignores never becomes pending. */
static void hfsbi_discard_pending(int number, bool before) {
    sigset_t pending, one;
    int      got;
    sigemptyset(&pending);
    if (before || sigpending(&pending) != 0 ||
        sigismember(&pending, number) != 1)
        return;
    sigemptyset(&one);
    sigaddset(&one, number);
    (void)sigwait(&one, &got);
}

HFSBI_FN void hfsbi_signal_guard_end(const hfsbi_signal_guard *guard) {
    int keep = errno;
    hfsbi_discard_pending(SIGPIPE, guard->pipe_pending);
    hfsbi_discard_pending(SIGXFSZ, guard->size_pending);
    (void)pthread_sigmask(SIG_SETMASK, &guard->old_mask, NULL);
    errno = keep;
}

/* ---- random bytes and secrets ---- */

/* Reads from /dev/urandom; returns how many bytes, 0 when it is not a device:
   a container image may have a plain file there. */
static size_t hfsbi_random_device(unsigned char *bytes, size_t n) {
    int         fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    struct stat info;
    size_t      got = 0;
    bool        ok = fd >= 0 && fstat(fd, &info) == 0 && S_ISCHR(info.st_mode);
    while (ok && got < n) {
        ssize_t part = hfsbi_read(fd, bytes + got, n - got);
        ok = part > 0;
        if (ok) got += (size_t)part;
    }
    hfsbi_close(&fd);
    return got;
}

/* The last resort: a hash of the clock, the process and an address of the
   thread's stack. */
static void hfsbi_random_clock(unsigned char *bytes, size_t n) {
    struct timespec    now = HFSB_INIT;
    unsigned char      digest[HFSB_SHA256_SIZE];
    unsigned long long mix[5];
    hfsb_sha256        sha;
    size_t             i;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    mix[0] = (unsigned long long)now.tv_sec;
    mix[1] = (unsigned long long)now.tv_nsec;
    mix[2] = (unsigned long long)getpid();
    mix[3] = (unsigned long long)(uintptr_t)&now;
    for (i = 0; i < n; i++) {
        if (i % sizeof digest == 0) {
            mix[4] = i;
            hfsb_sha256_init(&sha);
            hfsb_sha256_write(&sha,
                              hfsb_str_make((const char *)mix, sizeof mix));
            hfsb_sha256_finish(&sha, digest);
        }
        bytes[i] = digest[i % sizeof digest];
    }
}

HFSBI_FN bool hfsbi_random(void *out, size_t n) {
    unsigned char *bytes = (unsigned char *)out;
    size_t         got = 0;
    if (n) memset(bytes, 0, n); /* memory checkers do not see getrandom */
#if defined(HFSBI_LINUX) && defined(SYS_getrandom)
    while (got < n) {
        long part = syscall(SYS_getrandom, bytes + got, n - got, 0u);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0) break; /* an old kernel, or a seccomp filter */
        got += (size_t)part;
    }
#endif
    if (got < n) got += hfsbi_random_device(bytes + got, n - got);
    if (got == n) return true;
    hfsbi_random_clock(bytes, n);
    return false;
}

HFSBI_FN bool hfsbi_random_hex(char *out, size_t digits) {
    bool   ok = hfsbi_random(out, digits);
    size_t i;
    for (i = 0; i < digits; i++)
        out[i] = "0123456789abcdef"[(unsigned char)out[i] & 15u];
    out[digits] = '\0';
    return ok;
}

/* ---- cancel ----

   The flag is the truth: setting and resetting it are one store each. The pipe
   only ends a poll(), so it holds a byte while the flag is set. Most calls
   never wait, so the first that does opens the pipe.

   set() takes no lock: it runs in signal handlers, even one that interrupts
   set(), reset() or the opening of the pipe. All three first store the flag or
   the pipe, and then settle: they write a byte or empty the pipe to match the
   flag, and again if the flag has changed meanwhile. So when the last of them
   returns, pipe and flag agree. Until then they may differ for a moment: a
   thread that is woken checks the flag. */

#if defined(__GNUC__) && !defined(__TINYC__)
static int hfsbi_atomic_load(const int *at) {
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

static void hfsbi_atomic_store(int *at, int value) {
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);
}
#else
/* Compilers without atomic operations: an int is written as a whole, and a
   private lock is a barrier. */
static void hfsbi_atomic_barrier(void) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    (void)pthread_mutex_lock(&own);
    (void)pthread_mutex_unlock(&own);
}

static int hfsbi_atomic_load(const int *at) {
    int value = *(const volatile int *)at;
    hfsbi_atomic_barrier();
    return value;
}

static void hfsbi_atomic_store(int *at, int value) {
    hfsbi_atomic_barrier();
    *(volatile int *)at = value;
    hfsbi_atomic_barrier();
}
#endif

HFSBI_FN void hfsbi_cancel_init(hfsb_cancel *cancel) {
    memset(cancel, 0, sizeof *cancel);
    cancel->fds[0] = cancel->fds[1] = -1;
    (void)pthread_mutex_init(&cancel->lock, NULL);
}

HFSBI_FN void hfsbi_cancel_free(hfsb_cancel *cancel) {
    hfsbi_close(&cancel->fds[0]);
    hfsbi_close(&cancel->fds[1]);
    (void)pthread_mutex_destroy(&cancel->lock);
}

hfsb_status hfsb_cancel_open(const hfsb_alloc *alloc, hfsb_cancel **out,
                             hfsb_err *err) {
    hfsb_alloc hook = HFSB_INIT;
    if (alloc) hook = *alloc;
    *out = (hfsb_cancel *)hfsbi_array(&hook, 1, sizeof **out);
    if (!*out) return hfsbi_fail_status(err, HFSB_NOMEM, "cancel flag");
    hfsbi_cancel_init(*out);
    (*out)->alloc = hook;
    return hfsbi_ok(err);
}

/* Makes the pipe, if there is one, readable or empty to match the flag. */
static void hfsbi_cancel_settle(hfsb_cancel *cancel) {
    int keep = errno, flag;
    if (hfsbi_atomic_load(&cancel->fds[1]) < 0) return;
    do {
        flag = hfsbi_atomic_load(&cancel->flag);
        if (flag) hfsbi_wake_write(cancel->fds[1]);
        else hfsbi_wake_drain(cancel->fds[0]);
    } while (flag != hfsbi_atomic_load(&cancel->flag));
    errno = keep;
}

void hfsb_cancel_set(hfsb_cancel *cancel) {
    if (!cancel) return;
    hfsbi_atomic_store(&cancel->flag, 1);
    hfsbi_cancel_settle(cancel);
}

void hfsb_cancel_reset(hfsb_cancel *cancel) {
    if (!cancel) return;
    hfsbi_atomic_store(&cancel->flag, 0);
    hfsbi_cancel_settle(cancel);
}

bool hfsb_cancel_is_set(const hfsb_cancel *cancel) {
    return cancel && hfsbi_atomic_load(&cancel->flag);
}

/* Opens the pipe unless another thread has; fds[1], stored last, publishes
   both ends. */
static void hfsbi_cancel_open_pipe(hfsb_cancel *cancel) {
    int fds[2] = {-1, -1};
    pthread_mutex_lock(&cancel->lock);
    if (cancel->fds[1] < 0 && hfsbi_wake_open(fds)) {
        cancel->fds[0] = fds[0];
        hfsbi_atomic_store(&cancel->fds[1], fds[1]);
        fds[0] = fds[1] = -1;
    }
    pthread_mutex_unlock(&cancel->lock);
    hfsbi_close(&fds[0]); /* half opened */
    hfsbi_close(&fds[1]);
    hfsbi_cancel_settle(cancel);
}

/* const for the caller, who cannot see the pipe; no cancel is in constant
   memory. */
int hfsb_cancel_fd(const hfsb_cancel *cancel) {
    hfsb_cancel *c = (hfsb_cancel *)(uintptr_t)cancel;
    if (!c) return -1;
    if (hfsbi_atomic_load(&c->fds[1]) < 0) hfsbi_cancel_open_pipe(c);
    return hfsbi_atomic_load(&c->fds[1]) < 0 ? -1 : c->fds[0];
}

void hfsb_cancel_close(hfsb_cancel *cancel) {
    hfsb_alloc hook;
    if (!cancel) return;
    hook = cancel->alloc;
    hfsbi_cancel_free(cancel);
    hfsbi_array_free(&hook, cancel, 1, sizeof *cancel);
}

bool hfsb_cancel_wait(const hfsb_cancel *cancel, long long ms) {
    long long now = hfsb_clock_ms(), until;
    short     ready;
    if (hfsb_cancel_is_set(cancel)) return false;
    if (ms <= 0) return true;
    until = ms < HFSBI_FOREVER - now ? now + ms : HFSBI_FOREVER;
    return hfsbi_wait_fd(-1, 0, until, cancel, &ready) != HFSB_CANCELLED;
}

enum { HFSBI_CANCEL_MS = 50 }; /* between checks of a flag without a pipe */

HFSBI_FN int hfsbi_cancel_watch(const hfsb_cancel *cancel, struct pollfd *fd,
                                int ms) {
    fd->fd = hfsb_cancel_fd(cancel);
    fd->events = POLLIN;
    fd->revents = 0;
    if (!cancel || fd->fd >= 0) return ms;
    return ms < 0 || ms > HFSBI_CANCEL_MS ? HFSBI_CANCEL_MS : ms;
}

/* ---- waiting ---- */

/* The timeout of poll() until a time on hfsb_clock_ms(): 0 only once that is
   reached. */
static int hfsbi_poll_ms(long long until) {
    long long left = until - hfsb_clock_ms();
    if (left <= 0) return 0;
    return left > INT_MAX ? INT_MAX : (int)left;
}

HFSBI_FN hfsb_status hfsbi_wait_fd(int fd, short events, long long until,
                                   const hfsb_cancel *cancel, short *ready) {
    struct pollfd fds[2];
    *ready = 0;
    fds[0].fd = fd;
    fds[0].events = events;
    for (;;) {
        int left = hfsbi_poll_ms(until);
        int ms = hfsbi_cancel_watch(cancel, &fds[1], left), n;
        fds[0].revents = 0;
        n = poll(fds, 2, ms);
        if (n < 0 && errno != EINTR) return hfsbi_os_status(errno);
        if (hfsb_cancel_is_set(cancel)) return HFSB_CANCELLED;
        if (n > 0 && fds[0].revents) {
            *ready = fds[0].revents;
            return HFSB_OK;
        }
        if (!left || (n == 0 && hfsb_clock_ms() >= until)) return HFSB_TIMEOUT;
    }
}

#ifdef HFSBI_LINUX
/* 32-bit machines also have older calls for 16-bit ids. */
#ifdef SYS_setfsuid32
enum { HFSBI_SETFSUID = SYS_setfsuid32, HFSBI_SETFSGID = SYS_setfsgid32 };
#else
enum { HFSBI_SETFSUID = SYS_setfsuid, HFSBI_SETFSGID = SYS_setfsgid };
#endif

/* The system call, because libc's function changes all threads. It always
   returns the previous id, so a call with an invalid id reads the result. A
   kernel that lacks the call (gVisor) returns an error each time. */
static bool hfsbi_thread_set_id(long call, unsigned id) {
    (void)syscall(call, id);
    return (unsigned)syscall(call, ~0u) == id;
}
#endif

HFSBI_FN bool hfsbi_thread_set_uid(unsigned uid) {
#ifdef HFSBI_LINUX
    bool group =
        hfsbi_thread_set_id(HFSBI_SETFSGID, uid ? uid : (unsigned)getegid());
    return hfsbi_thread_set_id(HFSBI_SETFSUID,
                               uid ? uid : (unsigned)geteuid()) &&
           group;
#else
    return uid == 0;
#endif
}

HFSBI_FN bool hfsbi_thread_drop_groups(void) {
#if defined(HFSBI_LINUX) && defined(SYS_setgroups32)
    return syscall(SYS_setgroups32, (size_t)0, NULL) == 0;
#elif defined(HFSBI_LINUX)
    return syscall(SYS_setgroups, (size_t)0, NULL) == 0;
#else
    return false;
#endif
}

HFSBI_FN void hfsbi_pause(unsigned tries) {
    (void)poll(NULL, 0, tries < 20 ? (int)tries + 1 : 20);
}

HFSBI_FN long long hfsbi_earlier(long long a, long long b) {
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

void hfsb_poll_fill(const hfsb_watch *list, size_t n, struct pollfd *fds) {
    size_t i;
    for (i = 0; i < n; i++) {
        fds[i].fd = list[i].fd;
        fds[i].events = (short)((list[i].readable ? POLLIN : 0) |
                                (list[i].writable ? POLLOUT : 0));
        fds[i].revents = 0;
    }
}

int hfsb_wait_ms(long long deadline) {
    long long left = deadline - hfsb_clock_ms();
    if (deadline < 0) return -1;
    return left <= 0 ? 0 : left < INT_MAX ? (int)left : INT_MAX;
}

/* ---- threads ---- */

long long hfsb_clock_ms(void) {
    struct timespec now = HFSB_INIT;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

HFSBI_FN long long hfsbi_time_ns(void) {
    struct timespec now = HFSB_INIT;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

HFSBI_FN void hfsbi_mutex_init_recursive(pthread_mutex_t *lock) {
    pthread_mutexattr_t attr;
    (void)pthread_mutexattr_init(&attr);
    (void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(lock, &attr);
    (void)pthread_mutexattr_destroy(&attr);
}

/* The clock that hfsbi_cond_init() gives a condition. */
#if defined(__APPLE__) || defined(HFSBI_PORTABLE)
#define HFSBI_COND_CLOCK CLOCK_REALTIME
#else
#define HFSBI_COND_CLOCK CLOCK_MONOTONIC
#endif

HFSBI_FN int hfsbi_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attr;
    int                rc = pthread_condattr_init(&attr);
    if (rc != 0) return rc;
#if !defined(__APPLE__) && !defined(HFSBI_PORTABLE)
    rc = pthread_condattr_setclock(&attr, HFSBI_COND_CLOCK);
#endif
    if (rc == 0) rc = pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    return rc;
}

HFSBI_FN void hfsbi_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock,
                                 long long ms) {
    struct timespec at = HFSB_INIT;
    (void)clock_gettime(HFSBI_COND_CLOCK, &at);
    at.tv_sec += (time_t)(ms / 1000);
    at.tv_nsec += (long)(ms % 1000) * 1000000L;
    if (at.tv_nsec >= 1000000000L) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000L;
    }
    (void)pthread_cond_timedwait(cond, lock, &at);
}

HFSBI_FN int hfsbi_thread_start(pthread_t *thread, size_t      stack,
                                void *(*fn)(void *user), void *user) {
    pthread_attr_t attr;
    sigset_t       all, old;
    int            rc = pthread_attr_init(&attr);
    if (rc != 0) return rc;
#ifdef PTHREAD_STACK_MIN
    if ((size_t)PTHREAD_STACK_MIN > stack) stack = (size_t)PTHREAD_STACK_MIN;
#endif
    (void)pthread_attr_setstacksize(&attr, stack);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(thread, &attr, fn, user);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    (void)pthread_attr_destroy(&attr);
    return rc;
}

/* ---- memory and files without a name ---- */

HFSBI_FN char *hfsbi_cstr_copy(const hfsb_alloc *alloc, hfsb_str s) {
    char *copy = (char *)hfsbi_array(alloc, s.len + 1, 1);
    if (!copy) return NULL;
    if (s.len) memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return copy;
}

HFSBI_FN int hfsbi_unnamed_file(const char *dir) {
    char name[PATH_MAX], id[17];
    int  fd = -1, tries, n;
    if (!dir) dir = getenv("TMPDIR");
    if (!dir || !*dir) dir = "/tmp";
    for (tries = 0; fd < 0 && tries < 8; tries++) {
        hfsbi_random_hex(id, sizeof id - 1);
        n = snprintf(name, sizeof name, "%s/.hfsb-%s", dir, id);
        if (n < 0 || (size_t)n >= sizeof name) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST && errno != EINTR) return -1;
    }
    if (fd >= 0) (void)unlink(name);
    return hfsbi_fd_above_2(fd);
}
