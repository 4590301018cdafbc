/* spawn.c - starts a program: all that happens from fork to exec.

   A launch prepares everything while failures can still be reported simply:
   arguments, environment, the path of the program, pipes. Then it forks. The
   child has only to

       move its descriptors to 0, 1 and 2
       begin a session, adopt orphans, confine itself, become another user;
       with a terminal, make it the controlling one of the session
       close all other descriptors, reset all signals, change the directory
       execve()

   and it does so with system calls alone. A child that fails writes the stage
   and errno into the report pipe; a successful exec closes that pipe, which is
   close-on-exec. So every failure has its message here, and no command ends
   with an invented exit code.

   The host may have threads, signal handlers and descriptors without
   close-on-exec: none of them may change what the program sees. */
#include "proc_private.h"

/* Longer commands are given to the shell as a file: Linux allows 128 KiB for
   one argument. */
#define HFSBI_COMMAND_MAX 120000u

enum { /* until the exec of another user; between looks whether it is stopped */
       HFSBI_USER_START_MS = 5000,
       HFSBI_USER_LOOK_MS = 50
};

#ifdef NSIG
#define HFSBI_SIGNALS NSIG
#else
#define HFSBI_SIGNALS 65
#endif

typedef enum hfsbi_stage {
    HFSBI_STAGE_SETUP,
    HFSBI_STAGE_CONFINE,
    HFSBI_STAGE_WORK_DIR,
    HFSBI_STAGE_EXEC
} hfsbi_stage;

/* What a child writes into the pipe when it could not start its program. */
typedef struct hfsbi_failure {
    hfsbi_stage stage;
    int         code;
} hfsbi_failure;

/* Everything that the child needs, prepared before the fork. */
typedef struct hfsbi_child {
    const char         *path;
    char *const        *argv;
    char *const        *envp;
    const char         *work_dir;
    const hfsb_confine *confine;     /* NULL: none */
    unsigned            uid;         /* 0: that of this process */
    int                 standard[3]; /* at 3 or above, as the next two */
    bool                terminal;    /* these are the slave of one */
    int                 script;      /* a long command, becomes 3; -1: none */
    int                 report;      /* its end of the pipe */
    int                 leaf;        /* the folder of its cgroup; -1: none */
    bool                inside;      /* it was created there */
    volatile bool       waited; /* the fork returned after the exec: either the
                                   child ran in our memory, or see
                                   hfsbi_fork_into() */
} hfsbi_child;

/* ---- in the child ---- */

/* After vfork() the child uses the parent's memory, and after fork() in a
   program with threads any lock may be held forever. So these functions use
   only system calls and their own stack. */

/* Resets one signal with the system call: libc reserves some signals and
   refuses to reset them, but a host may have inherited them ignored. All zero
   is the default action; 8 is the size of the kernel's set of signals. */
static bool hfsbi_child_default(int number) {
#if defined(HFSBI_LINUX) && defined(SYS_rt_sigaction)
    static const unsigned long zero[16] = {0};
    return syscall(SYS_rt_sigaction, number, zero, NULL, (size_t)8) == 0;
#else
    (void)number;
    return false;
#endif
}

HFSBI_FN void hfsbi_child_signals(void) {
    struct sigaction act;
    int              i;
    memset(&act, 0, sizeof act);
    act.sa_handler = SIG_DFL;
    for (i = 1; i < HFSBI_SIGNALS; i++)
        if (!hfsbi_child_default(i)) (void)sigaction(i, &act, NULL);
}

HFSBI_FN void hfsbi_child_unblock(void) {
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

#ifdef HFSBI_LINUX
static bool hfsbi_child_close_range(int first) {
#ifdef SYS_close_range
    return syscall(SYS_close_range, (unsigned)first, ~0u, 0u) == 0;
#else
    (void)first;
    return false;
#endif
}

/* Closes the descriptors that /proc lists. Does not use libc's directory
   streams, because they allocate. An entry is

       inode 8 | offset 8 | length 2 | type 1 | name, NUL-terminated  */
static bool hfsbi_child_close_listed(int first) {
    char buf[2048];
    long n, at;
    int  dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) return false;
    while ((n = syscall(SYS_getdents64, dir, buf, sizeof buf)) > 0) {
        unsigned short length;
        for (at = 0; at < n; at += length) {
            const char *name = buf + at + 19;
            int         fd = 0;
            memcpy(&length, buf + at + 16, sizeof length);
            if (*name == '.') continue;
            for (; hfsbi_is_digit(*name); name++) fd = fd * 10 + (*name - '0');
            if (fd >= first && fd != dir) (void)close(fd);
        }
    }
    (void)close(dir);
    return n == 0;
}
#endif

HFSBI_FN void hfsbi_child_close(int first) {
    struct rlimit limit;
    int           fd, end = 65536;
#ifdef HFSBI_LINUX
    if (hfsbi_child_close_range(first)) return;
    if (hfsbi_child_close_listed(first)) return;
#endif
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536)
        end = (int)limit.rlim_cur;
    for (fd = first; fd < end; fd++) (void)close(fd);
}

static void hfsbi_child_fail(int report, hfsbi_stage stage) {
    hfsbi_failure failure;
    failure.code = errno;
    failure.stage = stage;
    if (hfsbi_write(report, &failure, sizeof failure) < 0) _exit(126);
    _exit(127);
}

static bool hfsbi_child_dup(int from, int to) {
    int rc;
    do rc = dup2(from, to);
    while (rc < 0 && errno == EINTR);
    return rc >= 0;
}

/* Sets 0, 1, 2, the script as 3, and the report pipe as the next, which is
   the last that stays open. The others are closed soon: commands that other
   threads run see the end of their output only when this child's copies of
   their pipes are closed. */
static void hfsbi_child_descriptors(hfsbi_child *child, int *report) {
    int i, last = child->script >= 0 ? 4 : 3;
    for (i = 0; i < 3; i++)
        if (!hfsbi_child_dup(child->standard[i], i))
            hfsbi_child_fail(*report, HFSBI_STAGE_SETUP);
    if (child->script >= 0 && !hfsbi_child_dup(child->script, 3))
        hfsbi_child_fail(*report, HFSBI_STAGE_SETUP);
    if (!hfsbi_child_dup(*report, last) ||
        fcntl(last, F_SETFD, FD_CLOEXEC) != 0)
        hfsbi_child_fail(*report, HFSBI_STAGE_SETUP);
    *report = last;
}

/* Makes the command adopt the orphans among its descendants, whatever session
   or environment they have: so all of them are found by ancestry while it
   runs. The setting survives exec and is not inherited. */
static void hfsbi_child_adopt_orphans(void) {
#if defined(HFSBI_LINUX) && defined(PR_SET_CHILD_SUBREAPER)
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
#endif
}

/* Programs open their terminal by its name: the user must own it. */
static bool hfsbi_child_confine(const hfsbi_child *child) {
    if (child->uid && child->terminal &&
        fchown(0, (uid_t)child->uid, (gid_t)-1) != 0)
        return false;
    if (child->confine)
        return hfsbi_confine_enter(child->confine, child->leaf, child->inside,
                                   child->uid);
    return !child->uid || hfsbi_uid_enter(child->uid);
}

static void hfsbi_child_main(hfsbi_child *child) {
    int report = child->report;
    child->waited = true;
    hfsbi_child_descriptors(child, &report);
    if (setsid() < 0 || (child->terminal && !hfsbi_terminal_enter(0)))
        hfsbi_child_fail(report, HFSBI_STAGE_SETUP);
    hfsbi_child_adopt_orphans();
    if (!hfsbi_child_confine(child))
        hfsbi_child_fail(report, HFSBI_STAGE_CONFINE);
    hfsbi_child_close(report + 1);
    hfsbi_child_signals();
    if (child->work_dir && chdir(child->work_dir) != 0)
        hfsbi_child_fail(report, HFSBI_STAGE_WORK_DIR);
    hfsbi_child_unblock();
    (void)execve(child->path, child->argv, child->envp);
    hfsbi_child_fail(report, HFSBI_STAGE_EXEC);
}

/* ---- the fork ---- */

HFSBI_FN void hfsbi_fork_guard_begin(hfsbi_fork_guard *guard) {
    sigset_t all;
    sigfillset(&all);
#ifdef PTHREAD_CANCEL_DISABLE
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard->old_cancel);
#endif
    (void)pthread_sigmask(SIG_SETMASK, &all, &guard->old_mask);
}

HFSBI_FN void hfsbi_fork_guard_end(const hfsbi_fork_guard *guard) {
    int keep = errno, ignored = 0;
    (void)pthread_sigmask(SIG_SETMASK, &guard->old_mask, NULL);
#ifdef PTHREAD_CANCEL_DISABLE
    (void)pthread_setcancelstate(guard->old_cancel, &ignored);
#endif
    (void)ignored;
    errno = keep;
}

/* Moving a process into a cgroup makes the kernel wait for all processors,
   10 ms or more; creating it there does not. The arguments of clone3() are

       flags | pidfd, child_tid, parent_tid | exit_signal | stack, its size,
       tls, set_tid, its size | cgroup                      64 bits each  */
#if defined(HFSBI_LINUX) && defined(SYS_clone3)
enum { HFSBI_CLONE_ARGS = 11 };

static void hfsbi_clone_args(unsigned long long *args, int cgroup) {
    memset(args, 0, HFSBI_CLONE_ARGS * sizeof *args);
    args[0] = 0x200000000ull; /* CLONE_INTO_CGROUP */
    args[4] = SIGCHLD;
    args[10] = (unsigned)cgroup;
}
#endif

HFSBI_FN pid_t hfsbi_fork_into(int cgroup, bool wait) {
#if defined(HFSBI_LINUX) && defined(SYS_clone3)
    unsigned long long args[HFSBI_CLONE_ARGS];
    hfsbi_clone_args(args, cgroup);
    if (wait) args[0] |= 0x4000u; /* CLONE_VFORK */
    return (pid_t)syscall(SYS_clone3, args, sizeof args);
#else
    (void)cgroup, (void)wait;
    errno = ENOSYS;
    return -1;
#endif
}

/* Sanitisers keep records of every stack frame, which the child would leave
   behind: their own vfork() removes them, so such a build copies the memory
   here. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    defined(__SANITIZE_HWADDRESS__)
#define HFSBI_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer) || __has_feature(hwaddress_sanitizer)
#define HFSBI_SANITIZED 1
#endif
#endif

#if defined(HFSBI_LINUX) && defined(SYS_clone3) && defined(__x86_64__) && \
    defined(__LP64__) && !defined(HFSBI_SANITIZED)
/* The same without a copy of the memory, like vfork(). The child continues in
   the parent's stack frame while the parent waits, so the system call must be
   made inline: the child would destroy the frame of a function around it. And
   the child must have nothing left to do in this frame. */
static __attribute__((noinline)) pid_t hfsbi_vfork_into(hfsbi_child *child) {
    unsigned long long args[HFSBI_CLONE_ARGS];
    long               rc;
    hfsbi_clone_args(args, child->leaf);
    args[0] |= 0x4000u | 0x100u; /* CLONE_VFORK, CLONE_VM */
    __asm__ __volatile__("syscall"
                         : "=a"(rc)
                         : "0"((long)SYS_clone3), "D"(args), "S"(sizeof args)
                         : "rcx", "r11", "memory");
    if (rc == 0) hfsbi_child_main(child);
    return (pid_t)rc;
}
#else
static pid_t hfsbi_vfork_into(hfsbi_child *child) {
    pid_t pid = hfsbi_fork_into(child->leaf, true);
    child->waited = pid > 0;
    if (pid == 0) hfsbi_child_main(child);
    return pid;
}
#endif

/* Forks a child that becomes another user, whose processes can then signal it
   before its exec. So the parent shares no memory with it, and limits its wait
   for it. */
static pid_t hfsbi_fork_user(hfsbi_child *child) {
    pid_t pid = -1;
    child->inside = true;
    if (child->leaf >= 0) pid = hfsbi_fork_into(child->leaf, false);
    if (pid < 0) {
        child->inside = false;
        pid = fork();
    }
    if (pid == 0) hfsbi_child_main(child);
    return pid;
}

/* vfork() is fast in a big program, because it copies no page tables, and it
   runs no handlers of pthread_atfork(). */
static pid_t hfsbi_fork(hfsbi_child *child) {
    pid_t pid = -1;
    if (child->uid) return hfsbi_fork_user(child);
    if (child->leaf >= 0) {
        child->inside = true;
        pid = hfsbi_vfork_into(child);
        child->inside = pid >= 0;
    }
    if (pid >= 0) return pid;
#ifdef HFSBI_LINUX
    pid = vfork();
#else
    pid = fork();
#endif
    if (pid == 0) hfsbi_child_main(child);
    return pid;
}

/* Waits for the report of a child of another user. False: that user stopped
   it, or it takes too long. */
static bool hfsbi_fork_user_wait(pid_t pid, struct pollfd *ready) {
    long long until = hfsb_clock_ms() + HFSBI_USER_START_MS;
    for (;;) {
        siginfo_t info;
        int       rc = poll(ready, 1, HFSBI_USER_LOOK_MS);
        if (rc > 0) return true;
        memset(&info, 0, sizeof info);
        if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) ==
                0 &&
            info.si_pid == pid)
            return false;
        if (hfsb_clock_ms() >= until) return false;
    }
}

/* True, with the reason, when the program was not started. If the fork waited,
   the exec has already happened or failed, so this does not wait: a process
   that another thread forked at the same time may hold a copy of the child's
   end of the pipe forever. */
static bool hfsbi_fork_failed(const hfsbi_child *child, pid_t pid, int report,
                              hfsbi_failure *failure) {
    struct pollfd ready;
    int           rc = 1;
    ready.fd = report;
    ready.events = POLLIN;
    ready.revents = 0;
    if (child->uid && !hfsbi_fork_user_wait(pid, &ready)) {
        (void)kill(pid, SIGKILL);
        failure->stage = HFSBI_STAGE_EXEC;
        failure->code = EAGAIN;
        return true;
    }
    if (!child->uid) {
        do rc = poll(&ready, 1, child->waited ? 0 : -1);
        while (rc < 0 && errno == EINTR);
    }
    return rc > 0 && hfsbi_read(report, failure, sizeof *failure) ==
                         (ssize_t)sizeof *failure;
}

/* ---- a launch ---- */

typedef struct hfsbi_launch {
    const hfsb_proc_opts *opts;
    const char           *program; /* as the caller spelled it */
    hfsbi_child           child;
    hfsbi_ends            ends;
    int                   report; /* our end of the pipe */
    char                 *shell_argv[5];
    char                 *command; /* copy with a NUL */
    char                **envp;
    size_t                envp_count;
    hfsb_buf              job;  /* "HFSB_JOB=..." */
    hfsb_buf              path; /* of the program, as the host sees it */
} hfsbi_launch;

static void hfsbi_launch_free(hfsbi_launch *l) {
    const hfsb_alloc *alloc = &l->opts->alloc;
    int               i;
    for (i = 0; i < 3; i++) hfsbi_close(&l->child.standard[i]);
    hfsbi_close(&l->child.script);
    hfsbi_close(&l->child.report);
    hfsbi_close(&l->report);
    if (l->command)
        hfsbi_array_free(alloc, l->command, l->opts->command.len + 1, 1);
    if (l->envp)
        hfsbi_array_free(alloc, l->envp, l->envp_count, sizeof *l->envp);
    hfsb_buf_free(&l->job);
    hfsb_buf_free(&l->path);
}

static hfsb_status hfsbi_fail_name(hfsb_err *err, hfsb_status code,
                                   const char *before, const char *name,
                                   const char *after) {
    hfsbi_fail(err, code, 0, "%s", before);
    hfsbi_err_quote(err, hfsb_cstr(name), 400);
    hfsbi_err_add(err, "%s", after);
    return code;
}

static hfsb_status hfsbi_fail_name_os(hfsb_err *err, int code,
                                      const char *before, const char *name) {
    hfsb_status st = hfsbi_os_status(code);
    hfsbi_fail_name(err, st, before, name, ": ");
    hfsbi_err_add(err, "%s", hfsbi_os_text(code));
    return st;
}

HFSBI_FN hfsb_status hfsbi_fail_size(hfsb_err *err, unsigned cols,
                                     unsigned rows) {
    return hfsbi_fail(err, HFSB_ARG, 0,
                      "A terminal has 1 to %u columns and as many rows, not "
                      "%u and %u.",
                      HFSBI_TERMINAL_MAX, cols, rows);
}

static hfsb_status hfsbi_launch_nomem(hfsb_err *err) {
    return hfsbi_fail_status(err, HFSB_NOMEM, "Starting the command");
}

/* ---- arguments and environment ---- */

/* For execve(), which takes pointers to char but does not write to them. */
static char *hfsbi_arg(const char *text) {
    return (char *)(uintptr_t)text;
}

static hfsb_status hfsbi_check_env(const char *const *env, hfsb_err *err) {
    for (; env && *env; env++) {
        const char *equals = strchr(*env, '=');
        if (!equals || equals == *env)
            return hfsbi_fail_name(
                err, HFSB_ARG,
                "env must consist of NAME=value, but has: ", *env, "");
    }
    return HFSB_OK;
}

static hfsb_status hfsbi_check_opts(const hfsb_proc_opts *o, hfsb_err *err) {
    bool argv = o->argv != NULL, command = o->command.ptr != NULL;
    if (argv && o->command.len == 0) command = false;
    if (argv == command)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "Give %s of command and argv: command runs in a "
                          "shell, argv without one.",
                          argv ? "only one" : "one");
    if (argv && !o->argv[0])
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "argv is empty: its first item is the program.");
    if (hfsb_str_find_byte(o->command, '\0') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, hfsb_str_find_byte(o->command, '\0'),
                          "The command contains a NUL byte at offset %zu; "
                          "no program can be given one. Remove it.",
                          hfsb_str_find_byte(o->command, '\0'));
    if (hfsb_str_find_byte(o->job, '\0') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The job's id contains a NUL byte.");
    if (o->timeout_ms < 0)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "timeout_ms is %lld: give milliseconds, or 0 for "
                          "no timeout.",
                          o->timeout_ms);
    if (o->cols > HFSBI_TERMINAL_MAX || o->rows > HFSBI_TERMINAL_MAX ||
        !o->cols != !o->rows)
        return hfsbi_fail_size(err, o->cols, o->rows);
    return hfsbi_check_env(o->env, err);
}

HFSBI_FN int hfsbi_raise(int fd, int least) {
    int high;
    if (fd < 0 || fd >= least) return fd;
    high = fcntl(fd, F_DUPFD_CLOEXEC, least);
    if (high < 0 && errno == EINVAL) errno = EMFILE; /* past the limit */
    hfsbi_close(&fd);
    return high;
}

/* Writes the command into an unlinked file; its descriptor, or -1 with errno.
   The first words close that descriptor in the shell, on the same line, so
   that line numbers in messages are right. */
static int hfsbi_command_file(hfsb_str command) {
    int fd = -1;
#if defined(HFSBI_LINUX) && defined(SYS_memfd_create)
    fd = (int)syscall(SYS_memfd_create, "command", 1u /* MFD_CLOEXEC */);
#endif
    if (fd < 0) fd = hfsbi_unnamed_file(NULL);
    fd = hfsbi_raise(fd, 4); /* it becomes 3 in the child */
    if (fd >= 0 && hfsbi_write_all(fd, HFSB_LIT("exec 3<&-;")) &&
        hfsbi_write_all(fd, command) && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    hfsbi_close(&fd);
    return -1;
}

static hfsb_status hfsbi_make_argv(hfsbi_launch *l, hfsb_err *err) {
    const hfsb_proc_opts *o = l->opts;
    char                **arg = l->shell_argv;
    if (o->argv) {
        l->program = o->argv[0];
        l->child.argv = (char *const *)(uintptr_t)o->argv;
        return HFSB_OK;
    }
    l->program = o->shell ? o->shell : "/bin/sh";
    l->child.argv = arg;
    *arg++ = hfsbi_arg(l->program);
    if (o->any_length && o->command.len > HFSBI_COMMAND_MAX) {
        *arg = hfsbi_arg("/dev/fd/3");
        l->child.script = hfsbi_command_file(o->command);
        if (l->child.script >= 0) return HFSB_OK;
        return hfsbi_fail_os(err, errno,
                             "Cannot keep the long command in a file");
    }
    *arg++ = hfsbi_arg("-c");
    if (o->command.len && (*o->command.ptr == '-' || *o->command.ptr == '+'))
        *arg++ = hfsbi_arg("--"); /* or it could be taken for an option */
    *arg = l->command = hfsbi_cstr_copy(&o->alloc, o->command);
    return l->command ? HFSB_OK : hfsbi_launch_nomem(err);
}

/* Sets HFSB_JOB to the job's id, instead of one that the host itself has. */
static hfsb_status hfsbi_make_env(hfsbi_launch *l, hfsb_err *err) {
    const hfsb_proc_opts *o = l->opts;
    char *const          *from = hfsbi_environ();
    size_t                n = 0, i, to = 0;
    if (o->env) from = (char *const *)(uintptr_t)o->env;
    l->child.envp = from;
    if (o->job.len == 0) return HFSB_OK;
    while (from && from[n]) n++;
    l->envp_count = n + 2;
    l->envp = (char **)hfsbi_array(&o->alloc, l->envp_count, sizeof *l->envp);
    hfsb_buf_append(&l->job, HFSB_LIT("HFSB_JOB="));
    if (!l->envp || hfsb_buf_append(&l->job, o->job) != HFSB_OK)
        return hfsbi_launch_nomem(err);
    for (i = 0; i < n; i++)
        if (strncmp(from[i], "HFSB_JOB=", 9) != 0) l->envp[to++] = from[i];
    l->envp[to++] = l->job.ptr;
    l->envp[to] = NULL;
    l->child.envp = l->envp;
    return HFSB_OK;
}

/* ---- which file the program is ---- */

/* Sets the path to dir/name, or to name when dir is empty: for the child, and
   as the host sees it, with the working directory before a relative path. */
static bool hfsbi_set_path(hfsbi_launch *l, hfsb_str dir, const char *name) {
    const char *work_dir = l->child.work_dir;
    bool        relative = dir.len ? *dir.ptr != '/' : *name != '/';
    size_t      prefix = 0;
    hfsb_buf   *p = &l->path;
    hfsb_buf_truncate(p, 0);
    if (work_dir && relative) {
        hfsb_buf_append(p, hfsb_cstr(work_dir));
        hfsb_buf_append_byte(p, '/');
        prefix = p->len;
    }
    if (dir.len) {
        hfsb_buf_append(p, dir);
        hfsb_buf_append_byte(p, '/');
    }
    if (hfsb_buf_append(p, hfsb_cstr(name)) != HFSB_OK) return false;
    l->child.path = p->ptr + prefix;
    return true;
}

/* 0 when the file can be run, else EACCES or ENOENT. Files in a directory that
   may not be searched do not exist for us. */
static int hfsbi_try_path(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) return ENOENT;
    if (!S_ISREG(st.st_mode)) return EACCES;
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : EACCES;
}

/* Searches the directories of the child's own PATH like execvp(): a file that
   may not be run is skipped, and reported when no other is found. */
static hfsb_status hfsbi_search_path(hfsbi_launch *l, hfsb_err *err) {
    hfsb_str     rest = HFSB_LIT("/bin:/usr/bin");
    char *const *env = l->child.envp;
    bool         denied = false, more = true;
    for (; env && *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0) {
            rest = hfsb_cstr(*env + 5);
            break;
        }
    while (more) {
        size_t   end = hfsb_str_find_byte(rest, ':');
        hfsb_str dir = hfsb_str_slice(rest, 0, end);
        int      code;
        more = end != HFSB_NPOS;
        if (more) rest = hfsb_str_slice(rest, end + 1, rest.len);
        if (dir.len == 0) dir = HFSB_LIT(".");
        if (!hfsbi_set_path(l, dir, l->program))
            return hfsbi_launch_nomem(err);
        code = hfsbi_try_path(l->path.ptr);
        if (code == 0) return HFSB_OK;
        if (code == EACCES) denied = true;
    }
    if (denied)
        return hfsbi_fail_name(err, HFSB_DENIED, "Cannot run ", l->program,
                               ": permission denied");
    return hfsbi_fail_name(err, HFSB_NOT_FOUND,
                           "Program not found: ", l->program,
                           " (searched in PATH)");
}

static hfsb_status hfsbi_find_program(hfsbi_launch *l, hfsb_err *err) {
    hfsb_str none = HFSB_INIT;
    if (*l->program && !strchr(l->program, '/'))
        return hfsbi_search_path(l, err);
    return hfsbi_set_path(l, none, l->program) ? HFSB_OK
                                               : hfsbi_launch_nomem(err);
}

/* ---- descriptors ---- */

/* Opens a pipe; our end, 0 or 1, does not block. False with errno. */
static bool hfsbi_make_pipe(int our_end, int *ours, int *theirs) {
    int fds[2];
    if (!hfsbi_pipe(fds)) return false;
    *ours = fds[our_end];
    *theirs = fds[1 - our_end];
    return hfsbi_set_nonblocking(*ours);
}

static bool hfsbi_make_report(hfsbi_launch *l) {
    int fds[2];
    if (!hfsbi_pipe(fds)) return false;
    l->report = fds[0];
    l->child.report = hfsbi_raise(fds[1], 4); /* 3 may be the script's */
    return l->child.report >= 0;
}

/* NOT_FOUND and FULL would refer to the program and the disk: here the system
   has no terminals, or all of them are in use. */
static int hfsbi_terminal_errno(int code) {
    if (code == ENOENT || code == ENOTDIR) return ENODEV;
    return code == ENOSPC ? EAGAIN : code;
}

/* Input has its own copy of the master, because it ends separately. */
static bool hfsbi_make_terminal(hfsbi_launch *l) {
    hfsbi_child *c = &l->child;
    hfsbi_ends  *e = &l->ends;
    int          i;
    if (!hfsbi_terminal_open(l->opts->cols, l->opts->rows, &e->output[0],
                             &e->slave))
        return false;
    c->terminal = true;
    e->input = fcntl(e->output[0], F_DUPFD_CLOEXEC, 3);
    for (i = 0; i < 3; i++) {
        c->standard[i] = fcntl(e->slave, F_DUPFD_CLOEXEC, 3);
        if (c->standard[i] < 0) return false;
    }
    return e->input >= 0;
}

/* Returns what could not be done, with errno, or NULL. */
static const char *hfsbi_make_pipes(hfsbi_launch *l) {
    static const char     failed[] = "Cannot open pipes for the command";
    const hfsb_proc_opts *o = l->opts;
    hfsbi_child          *c = &l->child;
    if (o->input.len || o->keep_input) {
        if (!hfsbi_make_pipe(1, &l->ends.input, &c->standard[0]))
            return failed;
    } else {
        c->standard[0] = hfsbi_openat(AT_FDCWD, "/dev/null", O_RDONLY, 0);
        if (c->standard[0] < 0) return "Cannot open /dev/null for the command";
    }
    if (!hfsbi_make_pipe(0, &l->ends.output[0], &c->standard[1]))
        return failed;
    if (o->merge_stderr) {
        c->standard[2] = fcntl(c->standard[1], F_DUPFD_CLOEXEC, 3);
        return c->standard[2] < 0 ? failed : NULL;
    }
    return hfsbi_make_pipe(0, &l->ends.output[1], &c->standard[2]) ? NULL
                                                                   : failed;
}

/* ---- errors of the child ---- */

static hfsb_status hfsbi_exec_error(const hfsbi_launch *l, int code,
                                    hfsb_err *err) {
    const char *name = l->program;
    switch (code) {
    case E2BIG:
        return hfsbi_fail(err, HFSB_LIMIT, 0,
                          "The command, its arguments and its environment "
                          "are too long for the system. Write the long "
                          "part to a file and pass the file's name.");
    case ENOEXEC:
        return hfsbi_fail_name(err, HFSB_IO, "Cannot run ", name,
                               ": not an executable format (a script needs "
                               "a first line such as #!/bin/sh)");
    case ENOENT:
    case ENOTDIR:
        if (access(l->path.ptr, F_OK) == 0)
            return hfsbi_fail_name(err, HFSB_NOT_FOUND, "Cannot run ", name,
                                   ": the interpreter that its first line "
                                   "names, or its loader, was not found");
        return hfsbi_fail_name(err, HFSB_NOT_FOUND,
                               "Program not found: ", name, "");
    default: return hfsbi_fail_name_os(err, code, "Cannot run ", name);
    }
}

static hfsb_status hfsbi_launch_error(const hfsbi_launch  *l,
                                      const hfsbi_failure *failure,
                                      hfsb_err            *err) {
    const char *dir = l->child.work_dir;
    if (failure->stage == HFSBI_STAGE_EXEC)
        return hfsbi_exec_error(l, failure->code, err);
    if (failure->stage == HFSBI_STAGE_SETUP)
        return hfsbi_fail_os(err, failure->code, "Cannot set up the process");
    if (failure->stage == HFSBI_STAGE_CONFINE)
        return hfsbi_fail_os(err, failure->code,
                             "Cannot confine the command, so it was not run");
    if (failure->code == ENOENT || failure->code == ENOTDIR) {
        hfsbi_fail_name(err, HFSB_NOT_FOUND,
                        "Working directory not found: ", dir,
                        failure->code == ENOTDIR ? " (not a directory)" : "");
        hfsbi_err_key(err, "work_dir");
        return HFSB_NOT_FOUND;
    }
    return hfsbi_fail_name_os(err, failure->code,
                              "Cannot enter the working directory ", dir);
}

/* ---- all together ---- */

static hfsb_status hfsbi_launch_prepare(hfsbi_launch *l, hfsb_err *err) {
    hfsb_status st = hfsbi_check_opts(l->opts, err);
    const char *failed;
    if (st == HFSB_OK) st = hfsbi_make_argv(l, err);
    if (st == HFSB_OK) st = hfsbi_make_env(l, err);
    if (st == HFSB_OK) st = hfsbi_find_program(l, err);
    if (st != HFSB_OK) return st;
    if (l->opts->cols && !hfsbi_make_terminal(l))
        return hfsbi_fail_os(err, hfsbi_terminal_errno(errno),
                             "Cannot open a terminal");
    failed = l->opts->cols ? NULL : hfsbi_make_pipes(l);
    if (!failed && !hfsbi_make_report(l))
        failed = "Cannot open pipes for the command";
    return failed ? hfsbi_fail_os(err, errno, "%s", failed) : HFSB_OK;
}

static hfsb_status hfsbi_launch_run(hfsbi_launch *l, pid_t *pid,
                                    hfsb_err *err) {
    hfsbi_fork_guard guard;
    hfsbi_failure    failure;
    hfsbi_fork_guard_begin(&guard);
    *pid = hfsbi_fork(&l->child);
    hfsbi_fork_guard_end(&guard);
    if (*pid < 0) return hfsbi_fail_os(err, errno, "Cannot start a process");
    hfsbi_close(&l->child.report);
    if (!hfsbi_fork_failed(&l->child, *pid, l->report, &failure)) {
        if (l->child.confine)
            hfsbi_quota_follow(&l->child.confine->limits, (long)*pid);
        return hfsbi_ok(err);
    }
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR) continue;
    return hfsbi_launch_error(l, &failure, err);
}

HFSBI_FN hfsb_status hfsbi_spawn(const hfsb_proc_opts *opts, int leaf,
                                 pid_t *pid, hfsbi_ends *ends, hfsb_err *err) {
    hfsbi_launch l = HFSB_INIT;
    hfsb_status  st;
    l.opts = opts;
    l.job.alloc = l.path.alloc = opts->alloc;
    l.child.work_dir = opts->work_dir;
    l.child.confine = opts->confine;
    l.child.uid = opts->uid;
    l.child.leaf = leaf;
    l.child.standard[0] = l.child.standard[1] = l.child.standard[2] = -1;
    l.child.script = l.child.report = l.report = -1;
    l.ends.input = l.ends.output[0] = l.ends.output[1] = l.ends.slave = -1;
    st = hfsbi_launch_prepare(&l, err);
    if (st == HFSB_OK) st = hfsbi_launch_run(&l, pid, err);
    if (st != HFSB_OK) {
        hfsbi_close(&l.ends.input);
        hfsbi_close(&l.ends.output[0]);
        hfsbi_close(&l.ends.output[1]);
        hfsbi_close(&l.ends.slave);
    }
    hfsbi_launch_free(&l);
    *ends = l.ends;
    return st;
}
