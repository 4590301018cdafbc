/* namespaces.c - a view of the file system where little can be written.

   Landlock cannot exclude a file beneath a writable folder, and does not cover
   chmod() and chown(). A mount namespace does both: everything is mounted
   read-only, the places to write are mounted again as they were, whatever lies
   beneath these and must not change is mounted read-only on top, and empty
   files and folders cover what must not be seen. A folder that must not be
   moved is mounted on itself: nobody can rename a mount point.

   The namespaces are made once, by a helper process that then ends:

       host                       helper
       fork ------------------->  unshare: as root the mounts alone, else with
                                  a user namespace that maps only this user
                                  mounts; loopback up
       opens /proc/PID/ns    <---  0, or an errno
       closes its pipe -------->  exits

   The descriptors keep the namespaces alive. Each command joins them with
   setns(), a matter of microseconds. In a user namespace it has all
   capabilities there until its exec, which takes them from all but root; the
   bounding set leaves root only what Docker would.

   Where the kernel refuses (a container, Ubuntu's AppArmor), confinement does
   without namespaces, and says so. */
#include "proc_private.h"

HFSBI_FN void hfsbi_namespaces_close(hfsbi_namespaces *spaces) {
    hfsbi_close(&spaces->user);
    hfsbi_close(&spaces->mounts);
    hfsbi_close(&spaces->net);
}

#ifdef HFSBI_LINUX

/* Numbers from the kernel: headers of libc may lack them. */
#define HFSBI_SYS_OPEN_TREE  428
#define HFSBI_SYS_MOVE_MOUNT 429
#define HFSBI_SYS_MOUNT_ATTR 442
#define HFSBI_NEW_MOUNTS     0x00020000
#define HFSBI_NEW_USER       0x10000000
#define HFSBI_NEW_NET        0x40000000
#define HFSBI_AT_RECURSIVE   0x8000u
#define HFSBI_AT_EMPTY_PATH  0x1000u

enum { HFSBI_TREES = 64 }; /* places to write */

/* What the helper needs, prepared before the fork. */
typedef struct hfsbi_ns_plan {
    const hfsb_buf *places;
    bool            network, no_user;
    char            uid_map[48], gid_map[48];
    int             report, end; /* its ends of the pipes */
} hfsbi_ns_plan;

/* ---- in the helper: system calls only, the host may have threads ---- */

static bool hfsbi_put_text(const char *path, const char *text) {
    int     fd = open(path, O_WRONLY | O_CLOEXEC);
    size_t  len = strlen(text);
    ssize_t n;
    if (fd < 0) return false;
    n = hfsbi_write(fd, text, len);
    hfsbi_close(&fd);
    return n == (ssize_t)len;
}

/* As root, mounts need no user namespace; files keep their owners. */
static bool hfsbi_ns_unshare(const hfsbi_ns_plan *plan) {
    long flags = HFSBI_NEW_MOUNTS | (plan->network ? HFSBI_NEW_NET : 0);
    if (syscall(SYS_unshare, flags) == 0) return true;
    if (plan->no_user || syscall(SYS_unshare, flags | HFSBI_NEW_USER) != 0)
        return false;
    (void)prctl(PR_SET_DUMPABLE, 1L); /* so that its files in /proc open */
    (void)hfsbi_put_text("/proc/self/setgroups", "deny");
    return hfsbi_put_text("/proc/self/uid_map", plan->uid_map) &&
           hfsbi_put_text("/proc/self/gid_map", plan->gid_map);
}

static int hfsbi_tree_clone(const char *path) {
    return (int)syscall(HFSBI_SYS_OPEN_TREE, AT_FDCWD, path,
                        1u /* CLONE */ | HFSBI_AT_RECURSIVE | O_CLOEXEC);
}

/* Mounts a clone at path, and closes it. */
static bool hfsbi_tree_attach(int tree, const char *path) {
    bool ok = syscall(HFSBI_SYS_MOVE_MOUNT, tree, "", AT_FDCWD, path,
                      4u /* F_EMPTY_PATH */) == 0;
    hfsbi_close(&tree);
    return ok;
}

/* Makes a mount and all mounts on it read-only: that of a clone, or at a
   path. */
static bool hfsbi_tree_protect(int tree, const char *path) {
    unsigned long long attr[4] = {1 /* set RDONLY */, 0, 0, 0};
    unsigned           flags = HFSBI_AT_RECURSIVE;
    if (!*path) flags |= HFSBI_AT_EMPTY_PATH;
    return syscall(HFSBI_SYS_MOUNT_ATTR, tree, path, flags, attr,
                   sizeof attr) == 0;
}

static bool hfsbi_ns_cover(char use, const char *path) {
    bool        shown = use == HFSBI_PLACE_KEPT || use == HFSBI_PLACE_PINNED;
    struct stat st;
    int         tree;
    if (stat(path, &st) != 0) return false;
    if (!shown && (use == HFSBI_PLACE_HIDDEN_DIR) != S_ISDIR(st.st_mode))
        return true; /* another file has its name now */
    if (use == HFSBI_PLACE_HIDDEN_DIR)
        return syscall(SYS_mount, "none", path, "tmpfs", 15ul, /* ro, nosuid,
                       nodev, noexec */
                       "size=4k,mode=555") == 0;
    tree = hfsbi_tree_clone(shown ? path : "/dev/null");
    if (tree < 0) return false;
    if (use == HFSBI_PLACE_KEPT && !hfsbi_tree_protect(tree, "")) return false;
    return hfsbi_tree_attach(tree, path);
}

/* Clones the writable places, protects everything, and puts them back. A file
   that is gone meanwhile needs no cover, nor does a folder of its name. */
static bool hfsbi_ns_mount(const hfsb_buf *places) {
    int    trees[HFSBI_TREES];
    size_t count = 0, i = 0, at;
    bool   all = false; /* "/" itself may be written */
    if (syscall(SYS_mount, NULL, "/", NULL, 0x84000ul /* REC, SLAVE */,
                NULL) != 0)
        return false;
    for (at = 0; at < places->len; at += strlen(places->ptr + at) + 1) {
        const char *path = places->ptr + at + 1;
        if (path[-1] != HFSBI_PLACE_WRITE ||
            hfsbi_place_is_inner(places, path))
            continue;
        all = all || !path[1];
        if (count == HFSBI_TREES) return false;
        trees[count] = hfsbi_tree_clone(path);
        if (trees[count++] < 0) return false;
    }
    if (!all && !hfsbi_tree_protect(-1, "/")) return false;
    for (at = 0; at < places->len; at += strlen(places->ptr + at) + 1) {
        const char *path = places->ptr + at + 1;
        if (path[-1] != HFSBI_PLACE_WRITE ||
            hfsbi_place_is_inner(places, path))
            continue;
        if (!all && !hfsbi_tree_attach(trees[i++], path)) return false;
    }
    for (at = 0; at < places->len; at += strlen(places->ptr + at) + 1) {
        const char *path = places->ptr + at + 1;
        bool        cover = strchr("pkfe", path[-1]) != NULL;
        if (cover && !hfsbi_ns_cover(path[-1], path) && errno != ENOENT)
            return false;
    }
    return true;
}

/* The start of a struct ifreq: name 16 | flags 2. */
static bool hfsbi_ns_loopback(void) {
    union {
        char  bytes[64];
        short align;
    } request;
    short up = 0x41; /* up, running */
    int   fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool  ok;
    if (fd < 0) return false;
    memset(&request, 0, sizeof request);
    memcpy(request.bytes, "lo", 3);
    memcpy(request.bytes + 16, &up, sizeof up);
    ok = ioctl(fd, 0x8914 /* SIOCSIFFLAGS */, &request) == 0;
    hfsbi_close(&fd);
    return ok;
}

/* Reports, then waits until the host has the descriptors. */
static void hfsbi_ns_main(const hfsbi_ns_plan *plan) {
    char byte;
    int  code = 0;
    if (!hfsbi_ns_unshare(plan) || !hfsbi_ns_mount(plan->places) ||
        (plan->network && !hfsbi_ns_loopback()))
        code = errno ? errno : EPERM;
    if (hfsbi_write(plan->report, &code, sizeof code) < 0) _exit(1);
    (void)hfsbi_read(plan->end, &byte, 1);
    _exit(0);
}

/* ---- in the host ---- */

/* Opens a namespace of the helper; -1 if it is the host's own, -1 with errno
   on failure. */
static int hfsbi_ns_fd(pid_t helper, const char *name) {
    char        path[64];
    struct stat theirs, ours;
    int         fd;
    (void)snprintf(path, sizeof path, "/proc/self/ns/%s", name);
    errno = 0;
    if (stat(path, &ours) != 0) return -1;
    (void)snprintf(path, sizeof path, "/proc/%ld/ns/%s", (long)helper, name);
    fd = hfsbi_raise(open(path, O_RDONLY | O_CLOEXEC), HFSBI_CONFINE_FD);
    if (fd < 0 || fstat(fd, &theirs) != 0) return fd;
    if (theirs.st_ino == ours.st_ino) hfsbi_close(&fd);
    return fd;
}

/* Takes the helper's descriptors, or its errno. */
static bool hfsbi_ns_take(hfsbi_namespaces *spaces, pid_t helper, int report) {
    int code = EPERM;
    if (hfsbi_read(report, &code, sizeof code) != (ssize_t)sizeof code ||
        code != 0) {
        errno = code;
        return false;
    }
    spaces->user = hfsbi_ns_fd(helper, "user");
    if (spaces->user >= 0 || errno == 0)
        spaces->mounts = hfsbi_ns_fd(helper, "mnt");
    if (spaces->mounts >= 0) spaces->net = hfsbi_ns_fd(helper, "net");
    return spaces->mounts >= 0;
}

HFSBI_FN bool hfsbi_namespaces_open(hfsbi_namespaces *spaces,
                                    const hfsb_buf *places, bool network,
                                    bool no_user) {
    hfsbi_ns_plan    plan = HFSB_INIT;
    hfsbi_fork_guard guard;
    int              report[2] = {-1, -1}, end[2] = {-1, -1}, keep;
    pid_t            pid = -1;
    bool             ok = false;
    spaces->user = spaces->mounts = spaces->net = -1;
    plan.places = places;
    plan.network = network;
    plan.no_user = no_user;
    (void)snprintf(plan.uid_map, sizeof plan.uid_map, "%lu %lu 1",
                   (unsigned long)geteuid(), (unsigned long)geteuid());
    (void)snprintf(plan.gid_map, sizeof plan.gid_map, "%lu %lu 1",
                   (unsigned long)getegid(), (unsigned long)getegid());
    if (hfsbi_pipe(report) && hfsbi_pipe(end)) {
        plan.report = report[1];
        plan.end = end[0];
        hfsbi_fork_guard_begin(&guard);
        pid = fork();
        if (pid == 0) {
            (void)close(end[1]);
            hfsbi_ns_main(&plan);
        }
        hfsbi_fork_guard_end(&guard);
    }
    hfsbi_close(&report[1]);
    if (pid > 0) ok = hfsbi_ns_take(spaces, pid, report[0]);
    if (!ok) hfsbi_namespaces_close(spaces);
    keep = errno;
    hfsbi_close(&report[0]);
    hfsbi_close(&end[0]);
    hfsbi_close(&end[1]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    errno = keep;
    return ok;
}

/* ---- in the child of a command ---- */

/* What root keeps: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID,
   NET_BIND_SERVICE, NET_RAW. */
#define HFSBI_CAPS_KEPT 0x24FBu

/* The bounding set limits what root gets by an exec, except for inheritable
   capabilities; ambient ones stay even without root. Some container engines
   and service managers set both. */
static void hfsbi_caps_drop(void) {
    unsigned      head[2] = {0x20080522u /* version 3 */, 0}, caps[6];
    unsigned long cap;
    (void)prctl(47 /* PR_CAP_AMBIENT */, 4L /* CLEAR_ALL */, 0L, 0L, 0L);
    if (syscall(SYS_capget, head, caps) == 0) {
        caps[2] = caps[5] = 0; /* effective, permitted, inheritable: twice */
        (void)syscall(SYS_capset, head, caps);
    }
    for (cap = 0; cap < 64; cap++)
        if ((cap >= 32 || !(HFSBI_CAPS_KEPT >> cap & 1)) &&
            prctl(PR_CAPBSET_DROP, cap, 0L, 0L, 0L) != 0)
            return; /* there are no more, or nothing to drop */
}

/* Joining the mounts moves the process to their root; the current directory is
   entered again by its path, so that it lies in the new mounts. */
HFSBI_FN bool hfsbi_namespaces_enter(const hfsbi_namespaces *spaces) {
    char here[PATH_MAX];
    bool known = syscall(SYS_getcwd, here, sizeof here) > 0;
    if (spaces->user >= 0 &&
        syscall(SYS_setns, spaces->user, HFSBI_NEW_USER) != 0)
        return false;
    if (spaces->net >= 0 &&
        syscall(SYS_setns, spaces->net, HFSBI_NEW_NET) != 0)
        return false;
    if (spaces->mounts >= 0) {
        if (syscall(SYS_setns, spaces->mounts, HFSBI_NEW_MOUNTS) != 0)
            return false;
        if (known && here[0] == '/' && chdir(here) != 0) known = false;
    }
    hfsbi_caps_drop();
    return true;
}

#else

HFSBI_FN bool hfsbi_namespaces_open(hfsbi_namespaces *spaces,
                                    const hfsb_buf *places, bool network,
                                    bool no_user) {
    (void)places, (void)network, (void)no_user;
    spaces->user = spaces->mounts = spaces->net = -1;
    errno = ENOSYS;
    return false;
}

HFSBI_FN bool hfsbi_namespaces_enter(const hfsbi_namespaces *spaces) {
    (void)spaces;
    return true;
}

#endif
