/* limits.c - how much a command may use.

   Limits of a process (setrlimit) hold everywhere, but each process has its
   own: a command that starts ten processes has ten times as much. Where this
   user may make a cgroup (version 2, as systemd delegates them), memory and
   the number of processes are limited for all commands together as well:

       service/               delegated, without processes of its own
           main/              the host
           hfsb-PID-ID/       memory.max, pids.max
               slot-N/        a command and all that it started
               command-ID/    the same, when no slot is free

   A command's own cgroup has no limits. It is there to be killed: no process
   can leave it by a new session, a clean environment or the loss of its
   parent. For that alone it is made even without limits, where the cgroup is
   marked as ours to divide and starting commands costs no more.

   Making and removing a cgroup takes the kernel longer than all the rest of
   confinement, so a few (slot-N) are kept and reused: a command holds a lock
   on its slot, and a slot without a lock and without processes is free. When
   none is free, a command gets a cgroup of its own, which is removed when the
   command ends or, if it left something running, together with a later one.
   The host removes all of them at the end. It holds a lock on one of the files
   of its cgroup; a cgroup that nobody has locked belonged to a host that was
   killed, and the next host removes it.

   Memory is limited by RLIMIT_DATA, not RLIMIT_AS: programs such as node or
   java reserve far more addresses than they use. RLIMIT_NPROC counts all
   processes of the user, and never root's, so it is left alone where a cgroup
   counts.

   Always, even without limits: no core dumps, and when memory runs out the
   kernel kills commands first, not the host. */
#include "proc_private.h"

enum {
    HFSBI_OOM_MORE = 500, /* added to oom_score_adj, at most 1000 */
    HFSBI_LEAF_SLOTS = 8,
    HFSBI_CGROUP_TRIES = 10 /* at a cgroup that others may remove */
};

/* ---- cgroup ---- */

/* Writes a short text into a file that exists; false when that fails. */
static bool hfsbi_put_file(int dir, const char *name, hfsb_str text) {
    ssize_t n;
    int     fd = hfsbi_openat(dir, name, O_WRONLY, 0);
    if (fd < 0) return false;
    n = hfsbi_write(fd, text.ptr, text.len);
    hfsbi_close(&fd);
    return n == (ssize_t)text.len;
}

/* Reads the start of a file into out and appends a NUL. */
static bool hfsbi_get_file(int dir, const char *name, char *out, size_t size) {
    ssize_t n;
    int     fd = hfsbi_openat(dir, name, O_RDONLY, 0);
    if (fd < 0) return false;
    n = hfsbi_read(fd, out, size - 1);
    hfsbi_close(&fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

#ifdef HFSBI_LINUX

/* Sets one limit in the cgroup; true without a limit. */
static bool hfsbi_cgroup_set(int dir, const char *name,
                             unsigned long long limit) {
    char text[32];
    if (!limit) return true;
    (void)snprintf(text, sizeof text, "%llu", limit);
    return hfsbi_put_file(dir, name, hfsb_cstr(text));
}

/* Removes the cgroups in a folder whose names begin with prefix, except those
   with a lock or with processes. */
static void hfsbi_cgroup_sweep(int in, const char *prefix) {
    int            fd = hfsbi_openat(in, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR           *list = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    if (!list) hfsbi_close(&fd);
    while (list && (entry = readdir(list)) != NULL) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
        fd = hfsbi_openat(in, entry->d_name, O_RDONLY | O_DIRECTORY, 0);
        if (fd >= 0 && hfsbi_try_lock(fd, false))
            (void)unlinkat(in, entry->d_name, AT_REMOVEDIR);
        hfsbi_close(&fd);
    }
    if (list) (void)closedir(list);
}

/* Removes a host's cgroup and those in it; 0, or -1 with errno. */
static int hfsbi_cgroup_remove(int above, const char *name) {
    int dir = hfsbi_openat(above, name, O_RDONLY | O_DIRECTORY, 0);
    if (dir >= 0) hfsbi_cgroup_sweep(dir, "slot-");
    if (dir >= 0) hfsbi_cgroup_sweep(dir, "command-");
    hfsbi_close(&dir);
    return unlinkat(above, name, AT_REMOVEDIR);
}

/* Removes what killed hosts have left. */
static void hfsbi_cgroup_sweep_hosts(int above) {
    char           path[300];
    int            fd = hfsbi_openat(above, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR           *list = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    if (!list) hfsbi_close(&fd);
    while (list && (entry = readdir(list)) != NULL) {
        if (strncmp(entry->d_name, "hfsb-", 5) != 0) continue;
        (void)snprintf(path, sizeof path, "%s/cgroup.procs", entry->d_name);
        fd = hfsbi_openat(above, path, O_WRONLY, 0);
        if (fd < 0) continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            (void)hfsbi_cgroup_remove(above, entry->d_name);
        hfsbi_close(&fd);
    }
    if (list) (void)closedir(list);
}

/* True when a process can join: the kernel may let this user make a cgroup
   and yet refuse to move processes there. Moving one takes the kernel up to
   20 ms, which is only worth it for limits. */
static bool hfsbi_cgroup_try(const hfsbi_quota *l, int dir) {
    hfsbi_fork_guard guard;
    int              status = 0;
    pid_t            pid;
    hfsbi_fork_guard_begin(&guard);
    pid = hfsbi_fork_into(dir, true);
    if (pid == 0) _exit(0);
    if (pid < 0 && (l->memory || l->processes)) {
        pid = fork();
        if (pid == 0) _exit(hfsbi_write(l->join, "0", 1) == 1 ? 0 : 1);
    }
    hfsbi_fork_guard_end(&guard);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return pid > 0 && status == 0;
}

/* Sets the limits of the cgroup and opens it for commands. Swap would add to
   the memory limit. */
static bool hfsbi_cgroup_fill(hfsbi_quota *l) {
    int  dir = hfsbi_openat(l->above, l->cgroup, O_RDONLY | O_DIRECTORY, 0);
    bool ok = dir >= 0;
    if (!ok) return false;
    l->join = hfsbi_raise(hfsbi_openat(dir, "cgroup.procs", O_WRONLY, 0),
                          HFSBI_CONFINE_FD);
    ok = l->join >= 0 && hfsbi_try_lock(l->join, false) &&
         hfsbi_cgroup_set(dir, "memory.max", l->memory) &&
         hfsbi_cgroup_set(dir, "pids.max", l->processes);
    if (ok && l->memory)
        (void)hfsbi_put_file(dir, "memory.swap.max", HFSB_LIT("0"));
    if (ok && !l->memory && !l->processes) /* only cgroup.kill is wanted */
        ok = faccessat(dir, "cgroup.kill", W_OK, AT_EACCESS) == 0;
    ok = ok && hfsbi_cgroup_try(l, dir);
    hfsbi_close(&dir);
    return ok;
}

/* Gives processes that were just killed a moment to exit, a shorter one if no
   limits were asked for. If processes remain, the cgroup is left to the next
   host. */
static void hfsbi_cgroup_leave(hfsbi_quota *l) {
    unsigned most = l->memory || l->processes ? 20 : 5, tries = 0;
    while (l->cgroup[0] && hfsbi_cgroup_remove(l->above, l->cgroup) != 0 &&
           errno == EBUSY && tries < most)
        hfsbi_pause(tries++);
    l->cgroup[0] = '\0';
    hfsbi_close(&l->join);
    hfsbi_close(&l->above);
}

/* Makes the cgroup beneath the one of this path. */
static bool hfsbi_cgroup_make(hfsbi_quota *l, const char *path) {
    const char *enable = "cgroup.subtree_control";
    char        id[9];
    l->above = hfsbi_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (l->above < 0 || !hfsbi_random_hex(id, 8)) return false;
    if (l->memory) (void)hfsbi_put_file(l->above, enable, HFSB_LIT("+memory"));
    if (l->processes)
        (void)hfsbi_put_file(l->above, enable, HFSB_LIT("+pids"));
    hfsbi_cgroup_sweep_hosts(l->above);
    (void)snprintf(l->cgroup, sizeof l->cgroup, "hfsb-%ld-%s", (long)getpid(),
                   id);
    if (mkdirat(l->above, l->cgroup, 0700) != 0) l->cgroup[0] = '\0';
    return l->cgroup[0] && hfsbi_cgroup_fill(l);
}

/* True when another host took the new cgroup for that of a killed host: for a
   moment it is not locked. */
static bool hfsbi_cgroup_is_lost(const hfsbi_quota *l) {
    return l->cgroup[0] &&
           (l->join < 0 || !hfsbi_try_lock(l->join, false) ||
            faccessat(l->above, l->cgroup, F_OK, 0) != 0);
}

/* True when a cgroup is ours to divide. Root may divide any, but commands in a
   cgroup next to that of a systemd service would evade its limits and its end.
   So would those of a user, whose terminals and programs have a cgroup each:
   that is only done for limits that were asked for. */
static bool hfsbi_cgroup_is_ours(const hfsbi_quota *l, const char *path) {
    bool        root = geteuid() == 0;
    const char *name = root ? "trusted.delegate" : "user.delegate";
    char        mark = '0';
    if (!root && (l->memory || l->processes)) return true;
    return access("/run/systemd/system", F_OK) != 0 ||
           (getxattr(path, name, &mark, 1) == 1 && mark == '1');
}

/* The path of this process's cgroup: the line that begins with "0::", up to
   its end; NULL: none. */
static const char *hfsbi_cgroup_own(char *list) {
    char *line = strncmp(list, "0::/", 4) == 0 ? list : strstr(list, "\n0::/");
    if (!line) return NULL;
    line = strchr(line, '/');
    line[strcspn(line, "\n")] = '\0';
    return line;
}

/* A cgroup with processes in it can have no limited ones beneath, unless it is
   the root cgroup, the only one without a type. So the cgroup for commands is
   made next to that of this process. */
static void hfsbi_cgroup_open(hfsbi_quota *l) {
    static const char top[] = "/sys/fs/cgroup";
    char              list[4096], path[sizeof top + sizeof list + 12];
    const char       *own;
    int               len, tries;
    bool              lost = true;
    if (!hfsbi_get_file(AT_FDCWD, "/sys/fs/cgroup/cgroup.controllers", list,
                        sizeof list) ||
        !hfsbi_get_file(AT_FDCWD, "/proc/self/cgroup", list, sizeof list))
        return;
    own = hfsbi_cgroup_own(list);
    if (!own) return;
    len = snprintf(path, sizeof path, "%s%s/cgroup.type", top, own);
    if (own[1] || access(path, F_OK) == 0) {
        if (!own[1]) return; /* the topmost that this container can see */
        while (path[--len] != '/') continue;
        while (path[--len] != '/') continue;
        path[len] = '\0';
        if (!hfsbi_cgroup_is_ours(l, path)) return;
    } else path[sizeof top - 1] = '\0';
    for (tries = 0; lost && tries < HFSBI_CGROUP_TRIES; tries++) {
        if (hfsbi_cgroup_make(l, path)) return;
        lost = hfsbi_cgroup_is_lost(l);
        hfsbi_cgroup_leave(l);
    }
}

/* ---- the cgroup of a command ---- */

/* Opens a cgroup of commands for this host alone, or -1. Until it is locked,
   the end of another command may remove it. */
static int hfsbi_leaf_take(const hfsbi_quota *l, const char *name) {
    char path[80];
    int  dir;
    (void)snprintf(path, sizeof path, "%s/%s", l->cgroup, name);
    dir = hfsbi_openat(l->above, path, O_RDONLY | O_DIRECTORY, 0);
    if (dir < 0 && errno == ENOENT && mkdirat(l->above, path, 0700) == 0)
        dir = hfsbi_openat(l->above, path, O_RDONLY | O_DIRECTORY, 0);
    dir = hfsbi_raise(dir, HFSBI_CONFINE_FD);
    if (dir >= 0 && (!hfsbi_try_lock(dir, false) ||
                     faccessat(l->above, path, F_OK, 0) != 0))
        hfsbi_close(&dir);
    return dir;
}

static bool hfsbi_leaf_is_empty(int dir) {
    char text[128];
    return hfsbi_get_file(dir, "cgroup.events", text, sizeof text) &&
           strstr(text, "populated 0") != NULL;
}

HFSBI_FN void hfsbi_leaf_open(hfsbi_leaf *leaf, const hfsbi_quota *l) {
    char     id[9];
    unsigned i;
    leaf->dir = -1;
    leaf->name[0] = '\0';
    for (i = 0; l->join >= 0 && i < HFSBI_LEAF_SLOTS; i++) {
        (void)snprintf(id, sizeof id, "slot-%u", i);
        leaf->dir = hfsbi_leaf_take(l, id);
        if (leaf->dir >= 0 && hfsbi_leaf_is_empty(leaf->dir)) return;
        hfsbi_close(&leaf->dir);
    }
    for (i = 0; l->join >= 0 && leaf->dir < 0 && i < HFSBI_CGROUP_TRIES; i++) {
        if (!hfsbi_random_hex(id, 8)) return;
        (void)snprintf(leaf->name, sizeof leaf->name, "command-%s", id);
        leaf->dir = hfsbi_leaf_take(l, leaf->name);
    }
}

HFSBI_FN bool hfsbi_leaf_kill(const hfsbi_leaf *leaf) {
    return leaf->dir >= 0 &&
           hfsbi_put_file(leaf->dir, "cgroup.kill", HFSB_LIT("1"));
}

HFSBI_FN void hfsbi_leaf_close(hfsbi_leaf *leaf) {
    int in = -1;
    if (leaf->dir >= 0 && leaf->name[0])
        in = hfsbi_openat(leaf->dir, "..", O_RDONLY | O_DIRECTORY, 0);
    hfsbi_close(&leaf->dir);
    if (in < 0) return;
    hfsbi_cgroup_sweep(in, "command-");
    hfsbi_close(&in);
}

#else

static void hfsbi_cgroup_open(hfsbi_quota *l) {
    (void)l;
}

static void hfsbi_cgroup_leave(hfsbi_quota *l) {
    (void)l;
}

HFSBI_FN void hfsbi_leaf_open(hfsbi_leaf *leaf, const hfsbi_quota *l) {
    (void)l;
    leaf->dir = -1;
}

HFSBI_FN bool hfsbi_leaf_kill(const hfsbi_leaf *leaf) {
    (void)leaf;
    return false;
}

HFSBI_FN void hfsbi_leaf_close(hfsbi_leaf *leaf) {
    (void)leaf;
}

#endif

/* ---- open and close ---- */

HFSBI_FN void hfsbi_quota_open(hfsbi_quota *l, const hfsb_confine_opts *opts,
                               bool bare) {
    char text[16];
    long oom = HFSBI_OOM_MORE;
    l->memory = opts->max_memory;
    l->processes = opts->max_processes;
    l->file_size = opts->max_file_size;
    l->cpu = opts->max_cpu;
    if (hfsbi_get_file(AT_FDCWD, "/proc/self/oom_score_adj", text,
                       sizeof text))
        oom += strtol(text, NULL, 10);
    if (oom > 1000) oom = 1000;
    (void)snprintf(l->oom, sizeof l->oom, "%ld", oom);
    if (l->memory || l->processes || !bare) hfsbi_cgroup_open(l);
}

HFSBI_FN void hfsbi_quota_close(hfsbi_quota *l) {
    hfsbi_cgroup_leave(l);
}

HFSBI_FN unsigned long long hfsbi_quota_kills(const hfsbi_quota *l) {
    char        path[64], text[256];
    const char *count;
    if (!l->memory || l->join < 0) return 0;
    (void)snprintf(path, sizeof path, "%s/memory.events", l->cgroup);
    if (!hfsbi_get_file(l->above, path, text, sizeof text)) return 0;
    count = strstr(text, "oom_kill ");
    return count ? strtoull(count + 9, NULL, 10) : 0;
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

/* The second limit is a second higher: a process over the first one gets
   SIGXCPU, which shows the reason, and SIGKILL at the second. */
static bool hfsbi_quota_set_cpu(unsigned long long seconds) {
    struct rlimit r;
    rlim_t        old;
    if (getrlimit(RLIMIT_CPU, &r) != 0) return false;
    old = r.rlim_max;
    (void)hfsbi_quota_lower(&r, seconds);
    if (old == RLIM_INFINITY || r.rlim_max < old) r.rlim_max++;
    return setrlimit(RLIMIT_CPU, &r) == 0;
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
    if (l->processes && l->join < 0 &&
        (getrlimit(RLIMIT_NPROC, &r) != 0 ||
         setrlimit(RLIMIT_NPROC, hfsbi_quota_lower(&r, l->processes)) != 0))
        return false;
#endif
    if (l->file_size &&
        (getrlimit(RLIMIT_FSIZE, &r) != 0 ||
         setrlimit(RLIMIT_FSIZE, hfsbi_quota_lower(&r, l->file_size)) != 0))
        return false;
    return !l->cpu || hfsbi_quota_set_cpu(l->cpu);
}

/* A leaf that cannot be joined is no reason to fail: the limits are above. */
HFSBI_FN bool hfsbi_quota_enter(const hfsbi_quota *l, int leaf, bool inside) {
    static const struct rlimit none = HFSB_INIT;
    (void)hfsbi_put_file(AT_FDCWD, "/proc/self/oom_score_adj",
                         hfsb_cstr(l->oom));
    (void)setrlimit(RLIMIT_CORE, &none);
    if (l->join >= 0 && !inside &&
        (leaf < 0 || !hfsbi_put_file(leaf, "cgroup.procs", HFSB_LIT("0"))) &&
        hfsbi_write(l->join, "0", 1) != 1)
        return false;
    return hfsbi_quota_set(l);
}

HFSBI_FN void hfsbi_quota_follow(const hfsbi_quota *l, long pid) {
#ifdef HFSBI_LINUX
    char path[64];
    if (prctl(PR_GET_DUMPABLE) == 1) return;
    (void)snprintf(path, sizeof path, "/proc/%ld/oom_score_adj", pid);
    (void)hfsbi_put_file(AT_FDCWD, path, hfsb_cstr(l->oom));
#else
    (void)l, (void)pid;
#endif
}
