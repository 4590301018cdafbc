/* limits.c - how much a command may use.

   Limits of a process (setrlimit) hold everywhere, but each process has its
   own: a command that starts ten processes has ten times as much. Where this
   user may make a cgroup (version 2, as systemd delegates them), memory and
   the number of processes are limited for all commands together as well.

   RLIMIT_DATA limits memory, not RLIMIT_AS: programs such as node or java
   reserve far more addresses than they use. RLIMIT_NPROC counts all processes
   of the user, and never root's.

   Always, unasked: no core dumps, and commands are ended first when memory
   runs out, not the host. */
#include "os_private.h"

#define HFSBI_CGROUP_ROOT "/sys/fs/cgroup"

enum { HFSBI_OOM_MORE = 500 }; /* added to oom_score_adj, at most 1000 */

/* ---- cgroup ---- */

/* Writes a short text into a file that exists; false when that fails. */
static bool hfsbi_put_file(const char *path, hfsb_str text) {
    ssize_t n;
    int     fd;
    do fd = open(path, O_WRONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return false;
    n = hfsbi_write(fd, text.ptr, text.len);
    hfsbi_close(&fd);
    return n == (ssize_t)text.len;
}

/* Reads the start of a file into out and appends a NUL. */
static bool hfsbi_get_file(const char *path, char *out, size_t size) {
    ssize_t n;
    int     fd;
    do fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return false;
    n = hfsbi_read(fd, out, size - 1);
    hfsbi_close(&fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

#ifdef HFSBI_LINUX

/* Sets one limit in the cgroup; true without a limit. */
static bool hfsbi_cgroup_set(hfsb_buf *dir, const char *name,
                             unsigned long long limit) {
    char   text[32];
    size_t mark = dir->len;
    bool   ok;
    if (!limit) return true;
    (void)snprintf(text, sizeof text, "%llu", limit);
    ok = hfsb_buf_printf(dir, "/%s", name) == HFSB_OK &&
         hfsbi_put_file(dir->ptr, hfsb_cstr(text));
    hfsb_buf_truncate(dir, mark);
    return ok;
}

/* Makes the cgroup beneath the one whose path is in l->cgroup. */
static bool hfsbi_cgroup_make(hfsbi_quota *l) {
    hfsb_buf *dir = &l->cgroup;
    size_t    mark = dir->len;
    char      id[9];
    hfsbi_random_hex(id, 8);
    if (hfsb_buf_printf(dir, "/cgroup.subtree_control") == HFSB_OK)
        (void)hfsbi_put_file(dir->ptr, HFSB_LIT("+memory +pids"));
    hfsb_buf_truncate(dir, mark);
    if (hfsb_buf_printf(dir, "/hfsb-%ld-%s", (long)getpid(), id) != HFSB_OK ||
        mkdir(dir->ptr, 0700) != 0)
        return false;
    if (hfsbi_cgroup_set(dir, "memory.max", l->memory) &&
        hfsbi_cgroup_set(dir, "pids.max", l->processes)) {
        mark = dir->len;
        if (hfsb_buf_printf(dir, "/cgroup.procs") == HFSB_OK)
            l->join = hfsbi_raise(open(dir->ptr, O_WRONLY | O_CLOEXEC),
                                  HFSBI_CONFINE_FD);
        hfsb_buf_truncate(dir, mark);
    }
    if (l->join >= 0) return true;
    (void)rmdir(dir->ptr);
    return false;
}

/* Tries this process's own cgroup, then its parent: with processes in it, a
   cgroup can have no limited ones beneath. */
static void hfsbi_cgroup_open(hfsbi_quota *l) {
    char        list[4096];
    const char *own;
    size_t      len;
    int         tries;
    if (!hfsbi_get_file(HFSBI_CGROUP_ROOT "/cgroup.controllers", list,
                        sizeof list) ||
        !hfsbi_get_file("/proc/self/cgroup", list, sizeof list))
        return;
    own = strstr(list, "0::/");
    if (!own) return;
    own += 3;
    len = strcspn(own, "\n");
    for (tries = 0; tries < 2 && len > 0; tries++) {
        hfsb_buf_truncate(&l->cgroup, 0);
        hfsb_buf_printf(&l->cgroup, "%s%.*s", HFSBI_CGROUP_ROOT, (int)len,
                        own);
        if (l->cgroup.status != HFSB_OK || hfsbi_cgroup_make(l)) return;
        while (len > 0 && own[--len] != '/') continue;
    }
    hfsb_buf_truncate(&l->cgroup, 0);
}

#else

static void hfsbi_cgroup_open(hfsbi_quota *l) {
    (void)l;
}

#endif

/* ---- open and close ---- */

HFSBI_FN hfsb_status hfsbi_quota_open(hfsbi_quota             *l,
                                      const hfsb_confine_opts *opts) {
    char text[16];
    long oom = HFSBI_OOM_MORE;
    l->join = -1;
    l->cgroup.alloc = opts->alloc;
    l->memory = opts->max_memory;
    l->processes = opts->max_processes;
    l->file_size = opts->max_file_size;
    l->cpu = opts->max_cpu;
    if (hfsbi_get_file("/proc/self/oom_score_adj", text, sizeof text))
        oom += strtol(text, NULL, 10);
    if (oom > 1000) oom = 1000;
    (void)snprintf(l->oom, sizeof l->oom, "%ld", oom);
    if (l->memory || l->processes) hfsbi_cgroup_open(l);
    return l->cgroup.status;
}

HFSBI_FN void hfsbi_quota_close(hfsbi_quota *l) {
    hfsbi_close(&l->join);
    if (l->cgroup.len) (void)rmdir(l->cgroup.ptr);
    hfsb_buf_free(&l->cgroup);
}

/* ---- in the child ---- */

/* Lowers the limit that getrlimit() returned; never raises it. */
static const struct rlimit *hfsbi_quota_lower(struct rlimit     *limit,
                                              unsigned long long most) {
    rlim_t value = (rlim_t)most;
    if (limit->rlim_max != RLIM_INFINITY && value > limit->rlim_max)
        value = limit->rlim_max;
    limit->rlim_cur = limit->rlim_max = value;
    return limit;
}

static bool hfsbi_quota_set(const hfsbi_quota *l) {
    struct rlimit r;
#ifdef HFSBI_LINUX
    if (l->memory &&
        (getrlimit(RLIMIT_DATA, &r) != 0 ||
         setrlimit(RLIMIT_DATA, hfsbi_quota_lower(&r, l->memory)) != 0))
        return false;
#endif
#ifdef RLIMIT_NPROC
    if (l->processes &&
        (getrlimit(RLIMIT_NPROC, &r) != 0 ||
         setrlimit(RLIMIT_NPROC, hfsbi_quota_lower(&r, l->processes)) != 0))
        return false;
#endif
    if (l->file_size &&
        (getrlimit(RLIMIT_FSIZE, &r) != 0 ||
         setrlimit(RLIMIT_FSIZE, hfsbi_quota_lower(&r, l->file_size)) != 0))
        return false;
    return !l->cpu ||
           (getrlimit(RLIMIT_CPU, &r) == 0 &&
            setrlimit(RLIMIT_CPU, hfsbi_quota_lower(&r, l->cpu)) == 0);
}

HFSBI_FN bool hfsbi_quota_enter(const hfsbi_quota *l) {
    static const struct rlimit none = HFSB_INIT;
    (void)hfsbi_put_file("/proc/self/oom_score_adj", hfsb_cstr(l->oom));
    (void)setrlimit(RLIMIT_CORE, &none);
    if (l->join >= 0 && hfsbi_write(l->join, "0", 1) != 1) return false;
    return hfsbi_quota_set(l);
}

HFSBI_FN void hfsbi_quota_follow(const hfsbi_quota *l, long pid) {
#ifdef HFSBI_LINUX
    char path[64];
    if (prctl(PR_GET_DUMPABLE) == 1) return;
    (void)snprintf(path, sizeof path, "/proc/%ld/oom_score_adj", pid);
    (void)hfsbi_put_file(path, hfsb_cstr(l->oom));
#else
    (void)l, (void)pid;
#endif
}
