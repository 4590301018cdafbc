/* dialect_faults.c - every system call of every route of every dialect fails in
   turn, in the ways it may

   Each request of t_dialect_calls.h runs on a server of its own with its first
   call failing, then its second, and so on to its last. The client must get a
   whole reply or the end of its connection, an interruption and a short count
   must change nothing, the server must serve on, and no memory, descriptor,
   temporary or child may be left. tests/checks/faults.sh
     dialect_faults [NAME [TARGET]]   one dialect, or one of its requests */
#define _GNU_SOURCE 1
#define _FILE_OFFSET_BITS 64
#include <stdbool.h>
#include <unistd.h>
/* no function could make this call: the child would destroy its frame */
static bool fails_now(const char *name);
#define vfork() (fails_now("vfork") ? (pid_t)-1 : vfork())
#include "../support/t_dialect_calls.h"

#include "../support/fakes.h"
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <termios.h>

static bool fails_now(const char *name) {
    return failing(name) && fault.how != SHORT;
}

FAKE(int, inotify_init1, (int f), (f))
FAKE(int, inotify_add_watch, (int fd, const char *p, uint32_t m), (fd, p, m))
FAKE(int, inotify_rm_watch, (int fd, int w), (fd, w))
FAKE(int, symlinkat, (const char *t, int d, const char *p), (t, d, p))
FAKE(int, fchmodat, (int d, const char *p, mode_t m, int f), (d, p, m, f))
FAKE(off_t, lseek, (int fd, off_t at, int from), (fd, at, from))
FAKE(int, socket, (int d, int t, int p), (d, t, p))
FAKE(int, connect, (int fd, const struct sockaddr *a, socklen_t n),
     (fd, a, n))
FAKE(int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int f),
     (fd, a, n, f))
FAKE(int, getsockname, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
FAKE(int, getpeername, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
FAKE(int, getsockopt, (int fd, int l, int o, void *v, socklen_t *n),
     (fd, l, o, v, n))
FAKE(int, setsockopt, (int fd, int l, int o, const void *v, socklen_t n),
     (fd, l, o, v, n))
FAKE(int, shutdown, (int fd, int how), (fd, how))
FAKE_SHORT(ssize_t, recv, (int fd, void *p, size_t n, int f), (fd, p, n, f))
FAKE_SHORT(ssize_t, send, (int fd, const void *p, size_t n, int f),
           (fd, p, n, f))
FAKE(ssize_t, sendmsg, (int fd, const struct msghdr *m, int f), (fd, m, f))
FAKE_SHORT(ssize_t, sendfile, (int to, int from, off_t *at, size_t n),
           (to, from, at, n))
FAKE(int, epoll_ctl, (int e, int op, int fd, struct epoll_event *v),
     (e, op, fd, v))
FAKE(int, epoll_wait, (int e, struct epoll_event *v, int n, int ms),
     (e, v, n, ms))
FAKE(int, poll, (struct pollfd * p, nfds_t n, int ms), (p, n, ms))
FAKE(int, pipe2, (int fds[2], int f), (fds, f))
FAKE(int, dup2, (int from, int to), (from, to))
FAKE(pid_t, fork, (void), ())
FAKE(pid_t, waitpid, (pid_t pid, int *status, int f), (pid, status, f))
FAKE(int, waitid, (idtype_t t, id_t id, siginfo_t *i, int f), (t, id, i, f))
FAKE(pid_t, setsid, (void), ())
FAKE(int, chdir, (const char *p), (p))
FAKE(int, kill, (pid_t pid, int n), (pid, n))
FAKE(int, posix_openpt, (int f), (f))
FAKE(int, grantpt, (int fd), (fd))
FAKE(int, unlockpt, (int fd), (fd))
FAKE(int, tcgetattr, (int fd, struct termios *t), (fd, t))
FAKE(int, fstatfs, (int fd, struct statfs *s), (fd, s))
FAKE(int, fremovexattr, (int fd, const char *k), (fd, k))

int fcntl(int fd, int op, ...) {
    int (*real)(int, int, ...);
    va_list ap;
    void   *arg;
    va_start(ap, op);
    arg = va_arg(ap, void *);
    va_end(ap);
    *(void **)(&real) = dlsym(RTLD_NEXT, "fcntl");
    return fails_now("fcntl") ? -1 : real(fd, op, arg);
}

int ioctl(int fd, unsigned long op, ...) {
    int (*real)(int, unsigned long, ...);
    va_list ap;
    void   *arg;
    va_start(ap, op);
    arg = va_arg(ap, void *);
    va_end(ap);
    *(void **)(&real) = dlsym(RTLD_NEXT, "ioctl");
    return fails_now("ioctl") ? -1 : real(fd, op, arg);
}

char *realpath(const char *path, char *out) {
    char *(*real)(const char *, char *);
    *(void **)(&real) = dlsym(RTLD_NEXT, "realpath");
    return fails_now("realpath") ? NULL : real(path, out);
}

char *getcwd(char *out, size_t n) {
    char *(*real)(char *, size_t);
    *(void **)(&real) = dlsym(RTLD_NEXT, "getcwd");
    return fails_now("getcwd") ? NULL : real(out, n);
}

struct dirent *readdir(DIR *dir) {
    struct dirent *(*real)(DIR *);
    *(void **)(&real) = dlsym(RTLD_NEXT, "readdir");
    return fails_now("readdir") ? NULL : real(dir);
}

/* ---- how calls fail ---- */

/* Two errors of each call; those that are not listed: EIO and ENOMEM. */
static const struct {
    const char *name;
    int         codes[2];
} errors[] = {{"read", {EIO, EAGAIN}},
              {"write", {ENOSPC, EPIPE}},
              {"pwrite", {ENOSPC, EIO}},
              {"open", {EMFILE, EACCES}},
              {"openat", {EMFILE, EACCES}},
              {"syscall", {ENOSYS, EPERM}},
              {"fork", {EAGAIN, ENOMEM}},
              {"vfork", {EAGAIN, ENOMEM}},
              {"socket", {EMFILE, ENFILE}},
              {"connect", {ECONNREFUSED, ENETUNREACH}},
              {"accept4", {EMFILE, ECONNABORTED}},
              {"recv", {ECONNRESET, EAGAIN}},
              {"send", {EPIPE, ECONNRESET}},
              {"sendmsg", {EPIPE, ECONNRESET}},
              {"sendfile", {EINVAL, EIO}},
              {"epoll_ctl", {ENOMEM, ENOSPC}},
              {"epoll_wait", {0, 0}}, /* interruptions alone */
              {"pipe2", {EMFILE, ENFILE}},
              {"fcntl", {EMFILE, EINVAL}},
              {"mkdirat", {ENOSPC, EACCES}},
              {"fdopendir", {ENOMEM, EMFILE}},
              {"inotify_init1", {EMFILE, ENFILE}},
              {"inotify_add_watch", {ENOSPC, ENOMEM}},
              {"posix_openpt", {ENOSPC, EMFILE}},
              {"renameat", {EIO, EXDEV}},
              {"fsync", {EIO, ENOSPC}},
              {"fallocate", {ENOSPC, EOPNOTSUPP}},
              {"waitpid", {0, 0}},
              {"waitid", {0, 0}},
              {"kill", {EPERM, ESRCH}},
              {"close", {EIO, 0}}};

/* Calls that a signal does not interrupt, or whose interruption Linux does not
   report. */
static const char *const whole_calls[] = {
    "renameat",   "linkat",     "fstat",      "fstatat",     "faccessat",
    "readlinkat", "flistxattr", "fgetxattr",  "fsetxattr",   "fdopendir",
    "symlinkat",  "inotify_init1", "inotify_add_watch", "inotify_rm_watch",
    "syscall",    "socket",     "getsockname", "getpeername", "getsockopt",
    "setsockopt", "shutdown",   "epoll_ctl",  "pipe2",       "fork",
    "vfork",      "setsid",     "chdir",      "kill",        "posix_openpt",
    "grantpt",    "unlockpt",   "tcgetattr",  "fremovexattr", "fcntl",
    "ioctl",      "realpath",   "getcwd",     "readdir",     "lseek",
    "fchmod",     "fchmodat",   "fchown",     "mkdirat",     "unlinkat",
    "fstatfs",    "connect",    "accept4"};

enum { INTERRUPTED, FIRST, SECOND, SHORTER, NO_DESCRIPTORS, NO_SPACE, ROUNDS };
static int round_now;

static int choose(const char *name) {
    static const char *const makers[] = {"open",    "openat",  "socket",
                                         "pipe2",   "accept4", "inotify_init1",
                                         "syscall", "posix_openpt"};
    size_t                   i;
    int                      code = round_now == FIRST ? EIO : ENOMEM;
    if (round_now == INTERRUPTED) {
        for (i = 0; i < TT_COUNT(whole_calls); i++)
            if (!strcmp(name, whole_calls[i])) return 0;
        return EINTR;
    }
    if (round_now == NO_DESCRIPTORS) {
        for (i = 0; i < TT_COUNT(makers); i++)
            if (!strcmp(name, makers[i])) return EMFILE;
        return 0;
    }
    if (round_now == NO_SPACE)
        return !strcmp(name, "pwrite") || !strcmp(name, "write") ||
                       !strcmp(name, "mkdirat") || !strcmp(name, "fallocate")
                   ? ENOSPC
                   : 0;
    for (i = 0; i < TT_COUNT(errors); i++)
        if (!strcmp(name, errors[i].name))
            code = errors[i].codes[round_now == SECOND];
    return code;
}

/* ---- one call ---- */

static t_heap heap;
static long   at_call; /* that fails */
static int    bad;
static long   points;

static void arm(bool on) {
    fault.at = on ? at_call : 0;
}

static bool any_leftovers(void) {
    static const char *const folders[] = {".", "d", "d/e", "d/n", "d/m"};
    size_t                   i;
    bool                     any = false;
    for (i = 0; i < TT_COUNT(folders); i++)
        if (leftovers(folders[i])) any = true;
    return any;
}

/* Why the end of a call is wrong, or NULL. */
static const char *verdict(const td_reply *right, const td_reply *r,
                           bool answered, bool alive, int fds) {
    static char text[200];
    int         status;
    if (!answered) return "no answer";
    if (!alive) return "the server is dead";
    if (heap.live || heap.wrong) return "memory is left";
    if (descriptors() != fds) return "a descriptor is left";
    if (any_leftovers() && !fault.stuck) return "a temporary is left";
    errno = 0;
    if (waitpid(-1, &status, WNOHANG) != -1 || errno != ECHILD)
        return "a child is left";
    if (r->body.len && strstr(r->body.ptr, "system error"))
        return "no words for the error";
    if ((round_now == INTERRUPTED || fault.how == SHORT) && fault.name &&
        (r->status != right->status || r->whole != right->whole)) {
        snprintf(text, sizeof text, "is an error: %d %.*s", r->status,
                 r->body.len < 100 ? (int)r->body.len : 100,
                 r->body.ptr ? r->body.ptr : "");
        return text;
    }
    return NULL;
}

/* Runs a call with its k-th system call failing (0: none). False when it makes
   fewer. */
static bool one_call(const td_kind *kind, const td_call *call, long k,
                     td_reply *right) {
    hfsb_alloc  alloc;
    hfsb_err    err = HFSB_INIT;
    td_reply    r = HFSB_INIT;
    td          t;
    td_conn     c;
    const char *why;
    int         fds = descriptors();
    bool        answered, alive;
    memset(&heap, 0, sizeof heap);
    alloc.fn = t_heap_fn;
    alloc.user = &heap;
    td_arm = NULL;
    td_files();
    if (!td_open(&t, kind, &alloc, &err) || !td_reach(&t, call, &c) ||
        !td_prepare(&t, &c, call)) {
        printf("%s %s: %s\n", call->method, call->target, err.msg);
        exit(1);
    }
    fault.count = 0;
    fault.name = NULL;
    fault.stuck = false;
    at_call = k ? k : LONG_MAX;
    td_arm = arm;
    if (call->form != TD_MESSAGE && !t.kind->on_fds) {
        td_hang_up(&c);
        c = td_connect(&t);
    }
    answered = td_ask(&t, &c, call, 99, &r);
    td_arm = NULL;
    alive = td_is_alive(&t, &c);
    td_hang_up(&c);
    td_close(&t);
    if (!k) *right = r;
    if (fault.name) points++;
    why = k ? verdict(right, &r, answered, alive, fds)
          : r.status == call->status ? NULL
                                     : "does not work without a fault";
    if (why) {
        bad++;
        printf("FAIL  %s: %s %s, call %ld (%s) %s%s: %s\n", kind->name,
               call->method, call->target, k, fault.name ? fault.name : "",
               fault.how == SHORT ? "short" : hfsbi_os_text(fault.code),
               fault.how == FOREVER ? " from then on" : "", why);
        fflush(stdout);
    }
    if (k) td_drop(&r);
    return fault.count >= k;
}

static void sweep(const td_kind *kind, const td_call *call) {
    td_reply right = HFSB_INIT;
    long     k, total, step;
    fault.choose = choose;
    round_now = INTERRUPTED;
    fault.how = ONCE;
    (void)one_call(kind, call, 0, &right);
    total = fault.count;
    /* confining the sandboxes of a host takes long: a few of each call, other
       ones of the next */
    step = kind->settings ? 1 + total / (t_quick() ? 2 : 6)
                          : t_quick() ? 5 : 1;
    for (round_now = 0; round_now < ROUNDS; round_now++) {
        fault.how = round_now == SHORTER          ? SHORT
                    : round_now >= NO_DESCRIPTORS ? FOREVER
                                                  : ONCE;
        if (fault.how == FOREVER) {
            (void)one_call(kind, call, 1, &right);
            (void)one_call(kind, call, total / 2, &right);
        } else
            for (k = 1 + (call - kind->calls + round_now) % step;
                 one_call(kind, call, k, &right); k += step)
                continue;
    }
    td_drop(&right);
}

int main(int argc, char **argv) {
    size_t i;
    tt_begin();
    (void)umask(022);
    for (i = 0; i < TT_COUNT(td_kinds); i++) {
        const td_call *call = td_kinds[i]->calls;
        if (argc > 1 && strcmp(argv[1], td_kinds[i]->name)) continue;
        for (; call->method; call++) {
            if (argc > 2 && strcmp(argv[2], call->target) &&
                strcmp(argv[2], call->method))
                continue;
            sweep(td_kinds[i], call);
            tt_lap(*call->target ? call->target : call->method);
        }
    }
    if (chdir("/") != 0) return 1;
    (void)tt_remove_all(tt_dir, NULL);
    printf("%ld faults, %d failed\n", points, bad);
    return bad != 0;
}
