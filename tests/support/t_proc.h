/* t_proc.h - helpers for tests of commands, which look at processes and
   descriptors without the library's help. Without /proc no process is seen and
   such checks pass. */
#ifndef T_PROC_H
#define T_PROC_H
#include "t.h"
#ifdef HFSBI_SPLIT
#include "../../src/os/os_private.h"
#endif

#include <sys/mman.h>

/* Sanitisers keep memory for themselves, and slow everything down. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define T_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define T_SANITIZED 1
#endif
#endif
#ifndef T_SANITIZED
#define T_SANITIZED 0
#endif

/* How much longer than the stated time an answer may take before it counts as
   a hang. */
HFSBI_UNUSED static long long t_patience(long long ms) {
    return ms * (t_quick() ? 20 : 4) + 10000;
}

HFSBI_UNUSED static void t_sleep(long ms) {
    (void)poll(NULL, 0, (int)ms);
}

/* valgrind cannot tell a child why its exec failed, and has descriptors of its
   own. */
HFSBI_UNUSED static bool t_valgrind(void) {
    const char *preload = getenv("LD_PRELOAD");
    return preload && strstr(preload, "vgpreload");
}

HFSBI_UNUSED static void t_skip(const char *why) {
    printf("skipped: %s\n", why);
    t_skipped++;
}

/* ---- descriptors and children of this process ---- */

HFSBI_UNUSED static size_t t_open_fds(void) {
    size_t n = 0;
    int    fd;
    for (fd = 0; fd < 1024; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

HFSBI_UNUSED static bool t_no_child(void) {
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == -1 &&
           errno == ECHILD;
}

HFSBI_UNUSED static void t_limit_files(size_t n) {
    struct rlimit limit;
    T_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = n;
    T_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* Runs fn in a process of its own, whose checks count here. What it changes
   is gone with it. */
HFSBI_UNUSED static void t_apart(void (*fn)(void)) {
    size_t *count = (size_t *)mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t   pid;
    int     status = 0;
    if (count == MAP_FAILED) abort();
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        t_checks = t_failed = t_skipped = 0;
        fn();
        count[0] = t_checks;
        count[1] = t_failed;
        count[2] = t_skipped;
        count[3] = 1;
        fflush(stdout);
        _exit(0);
    }
    T_CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0 && count[3] == 1);
    t_checks += count[0];
    t_failed += count[1];
    t_skipped += count[2];
    munmap(count, 4096);
}

/* ---- processes ---- */

/* The id of this program's commands, its own when several tests run at once.
   Processes that it forks have the same. */
HFSBI_UNUSED static const char *t_job(void) {
    static char text[64];
    if (!*text) snprintf(text, sizeof text, "hfsb-test-%ld", (long)getpid());
    return text;
}

/* True when it runs; a zombie does not. */
HFSBI_UNUSED static bool t_runs(long pid) {
    char  path[64], line[512] = "";
    char *at;
    FILE *f;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    f = fopen(path, "r");
    if (!f) return kill((pid_t)pid, 0) == 0;
    if (!fgets(line, sizeof line, f)) line[0] = '\0';
    fclose(f);
    at = strrchr(line, ')');
    return at && at[1] && at[2] != 'Z' && at[2] != 'X';
}

/* Waits until it does not run any more. */
HFSBI_UNUSED static bool t_ends(long pid, long long ms) {
    long long end = hfsb_clock_ms() + t_patience(ms);
    while (t_runs(pid)) {
        if (hfsb_clock_ms() > end) return false;
        t_sleep(2);
    }
    return true;
}

/* The processes that have HFSB_JOB={job} in their environment: their number,
   and a signal to each unless it is 0. */
HFSBI_UNUSED static size_t t_marked(const char *job, int number) {
    hfsb_buf       want = HFSB_INIT;
    size_t         n = 0;
    struct dirent *entry;
    DIR           *dir = opendir("/proc");
    T_CHECK(hfsb_buf_printf(&want, "HFSB_JOB=%s", job) == HFSB_OK);
    while (dir && (entry = readdir(dir)) != NULL) {
        hfsb_buf env = HFSB_INIT, path = HFSB_INIT;
        long     pid = strtol(entry->d_name, NULL, 10);
        size_t   at;
        if (pid <= 0 || pid == (long)getpid()) continue;
        T_CHECK(hfsb_buf_printf(&path, "/proc/%ld/environ", pid) == HFSB_OK);
        (void)t_read_file(path.ptr, &env);
        for (at = 0; at < env.len; at += strlen(env.ptr + at) + 1)
            if (hfsb_str_equal(hfsb_cstr(env.ptr + at),
                               hfsb_buf_str(&want)) &&
                t_runs(pid)) {
                if (number) (void)kill((pid_t)pid, number);
                n++;
                break;
            }
        hfsb_buf_free(&env);
        hfsb_buf_free(&path);
    }
    if (dir) closedir(dir);
    hfsb_buf_free(&want);
    return n;
}

/* Kills them all and waits until none is left. */
HFSBI_UNUSED static void t_kill_marked(const char *job) {
    long long end = hfsb_clock_ms() + t_patience(3000);
    size_t    none = 0; /* twice: one may be forked while we look */
    while (none < 2 && hfsb_clock_ms() < end) {
        none = t_marked(job, SIGKILL) == 0 ? none + 1 : 0;
        t_sleep(2);
    }
    T_CHECK(t_marked(job, 0) == 0);
}

HFSBI_UNUSED static bool t_sees_processes(void) {
    return access("/proc/self/environ", R_OK) == 0;
}

/* ---- commands ---- */

/* Appends c so many times. */
HFSBI_UNUSED static void t_fill(hfsb_buf *out, char c, size_t times) {
    char   piece[1000];
    size_t n;
    memset(piece, c, sizeof piece);
    for (; times > 0; times -= n) {
        n = times < sizeof piece ? times : sizeof piece;
        T_CHECK(hfsb_buf_append(out, hfsb_str_make(piece, n)) == HFSB_OK);
    }
}

typedef struct t_output {
    hfsb_buf           out, err;
    unsigned long long calls;
} t_output;

HFSBI_UNUSED static void t_collect(void *user, hfsb_proc_stream stream,
                                   hfsb_str bytes) {
    t_output *o = (t_output *)user;
    o->calls++;
    T_CHECK(bytes.len > 0);
    T_CHECK(hfsb_buf_append(stream == HFSB_PROC_STDOUT ? &o->out : &o->err,
                            bytes) == HFSB_OK);
}

HFSBI_UNUSED static void t_output_free(t_output *o) {
    hfsb_buf_free(&o->out);
    hfsb_buf_free(&o->err);
}

/* Waits as a host program would; false when the command asks for nothing. */
HFSBI_UNUSED static bool t_wait(const hfsb_proc *proc) {
    hfsb_watch    watch[HFSB_PROC_WATCHES];
    struct pollfd list[HFSB_PROC_WATCHES];
    size_t        n = hfsb_proc_watch(proc, watch), i;
    long long     at = hfsb_proc_deadline(proc), left = -1;
    for (i = 0; i < n; i++) {
        T_CHECK(fcntl(watch[i].fd, F_GETFD) == FD_CLOEXEC);
        T_CHECK(watch[i].readable != watch[i].writable);
        list[i].fd = watch[i].fd;
        list[i].events = watch[i].readable ? POLLIN : POLLOUT;
    }
    if (at >= 0) {
        left = at - hfsb_clock_ms();
        if (left < 0) left = 0;
        if (left > 100000) left = 100000;
    }
    if (n == 0 && left < 0) return false;
    (void)poll(list, (nfds_t)n, (int)left);
    return true;
}

/* Steps until done or ms are over; the result. */
HFSBI_UNUSED static hfsb_proc_result t_finish(hfsb_proc *proc, long long ms) {
    long long end = hfsb_clock_ms() + t_patience(ms);
    bool      done;
    while (!(done = hfsb_proc_step(proc)) && hfsb_clock_ms() < end)
        T_CHECK(t_wait(proc));
    T_CHECK(done);
    return hfsb_proc_status(proc);
}

/* Steps for so long, or until the output holds text. */
HFSBI_UNUSED static bool t_until(hfsb_proc *proc, const t_output *o,
                                 const char *text) {
    long long end = hfsb_clock_ms() + t_patience(3000);
    while (hfsb_str_find(hfsb_buf_str(&o->out), hfsb_cstr(text)) ==
           HFSB_NPOS) {
        if (hfsb_clock_ms() > end) return false;
        if (hfsb_proc_step(proc)) break;
        t_sleep(1);
    }
    return hfsb_str_find(hfsb_buf_str(&o->out), hfsb_cstr(text)) != HFSB_NPOS;
}

HFSBI_UNUSED static hfsb_proc *t_start(hfsb_proc_opts *opts,
                                       const char *command, t_output *o) {
    hfsb_proc *proc = NULL;
    hfsb_err   err;
    opts->command = hfsb_cstr(command);
    if (o) {
        opts->on_output = t_collect;
        opts->user = o;
    }
    if (hfsb_proc_open(opts, &proc, &err) != HFSB_OK)
        printf("%s: %s\n", command, err.msg);
    T_CHECK(proc != NULL);
    return proc;
}

/* The job of this program, and short waits. */
HFSBI_UNUSED static hfsb_proc_opts t_quick_opts(void) {
    hfsb_proc_opts o = HFSB_INIT;
    o.job = hfsb_cstr(t_job());
    o.grace_ms = 200;
    o.quiet_ms = 100;
    return o;
}

/* Runs to the end: stdout in *out, which the caller frees. */
HFSBI_UNUSED static hfsb_proc_result t_run(hfsb_proc_opts *o,
                                           const char *command,
                                           hfsb_buf   *out) {
    hfsb_proc_result r = HFSB_INIT;
    hfsb_err         err;
    o->command = hfsb_cstr(command);
    if (hfsb_proc_run(o, out, NULL, &r, &err) != HFSB_OK)
        printf("%s: %s\n", command, err.msg);
    T_CHECK(err.code == HFSB_OK);
    return r;
}

/* The same as a job of this program; its output is not kept. */
HFSBI_UNUSED static hfsb_proc_result t_sh(const char *command) {
    hfsb_proc_opts o = HFSB_INIT;
    o.job = hfsb_cstr(t_job());
    o.grace_ms = 200;
    return t_run(&o, command, NULL);
}
#endif
