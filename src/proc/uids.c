/* uids.c - a uid of its own for each sandbox of a host.

   Where the host is root, the kernel keeps sandboxes apart as it keeps users
   apart: none can read another's files or signal its processes. A uid is
   taken, used, and given back:

       take --> commands, files --> end: its processes are killed
                                      |
       put  <--- its files are removed

   A table says which uids are taken; all hosts of the machine share it, under
   a lock. A host that was killed leaves its uids taken until the machine
   restarts, since files and processes of theirs may be left. So does a sandbox
   that could not be removed. The table is

       the uid to try next, 4 bytes | a byte for each uid: 0 or 1

   To end a sandbox, a helper becomes its user and signals every process that
   it may: the kernel does that in one step, so nothing escapes by forking.
   The helper first makes sure that it cannot signal its own parent. Its real
   uid is not that of the user, so no process of the user can stop or kill it.

   The uids have 16 bits, because containers map these. */
#include "proc_private.h"

#ifdef HFSBI_LINUX

enum {
    HFSBI_UIDS_TRIES = 100,     /* at ending the processes of one */
    HFSBI_UIDS_HELPER_MS = 200, /* until a helper has ended */
    HFSBI_UIDS_LOOK_MS = 10000, /* the same where nobody tries again */
    HFSBI_UIDS_CAPS = 0xEB,     /* CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID,
                                    SETUID */
    HFSBI_UIDS_FILES = 0xB,     /* the first three of these */
    HFSBI_UIDS_HEAD = sizeof(unsigned)
};

/* Added to a uid, the real uid of a helper, which no other process has. */
#define HFSBI_UIDS_REAL 0xF0000000u

/* Exit codes of a helper. */
enum { HFSBI_HELPER_OK, HFSBI_HELPER_NO_USER, HFSBI_HELPER_NO_DIR };

/* ---- in a child ---- */

/* Uses the system calls, because libc's functions would signal other threads,
   and a child has none. */
static bool hfsbi_uid_set(unsigned uid, unsigned real) {
#ifdef SYS_setresuid32
    return syscall(SYS_setresgid32, uid, uid, uid) == 0 &&
           syscall(SYS_setresuid32, real, uid, real) == 0;
#else
    return syscall(SYS_setresgid, uid, uid, uid) == 0 &&
           syscall(SYS_setresuid, real, uid, real) == 0;
#endif
}

/* The kernel drops all capabilities of a process that is no longer root,
   unless a flag of the parent (SECBIT_NO_SETUID_FIXUP) prevents it: so they
   are dropped here. And it makes the child undumpable, unless a setting
   prevents that: the child has a copy of our memory until its exec. */
static bool hfsbi_uid_become(unsigned uid, unsigned real) {
    unsigned head[2] = {0x20080522u /* version 3 */, 0};
    unsigned caps[6] = {0, 0, 0, 0, 0, 0};
    if (!hfsbi_thread_drop_groups() || !hfsbi_uid_set(uid, real)) return false;
    (void)prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
    return syscall(SYS_capset, head, caps) == 0 &&
           prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0;
}

HFSBI_FN bool hfsbi_uid_enter(unsigned uid) {
    return hfsbi_uid_become(uid, uid);
}

/* Becomes that user, with a real uid that a container may not map. True only
   if it cannot signal other processes, such as our own: to be sure before all
   processes are signalled. */
static bool hfsbi_helper_enter(unsigned uid, pid_t host) {
    return (hfsbi_uid_become(uid, HFSBI_UIDS_REAL + uid) ||
            hfsbi_uid_enter(uid)) &&
           geteuid() == (uid_t)uid && kill(host, 0) != 0 && errno == EPERM;
}

/* dir: only checks whether the user can reach it (NULL: kills all processes of
   the user). */
static void hfsbi_helper_main(unsigned uid, const char *dir, pid_t host) {
    if (!hfsbi_helper_enter(uid, host)) _exit(HFSBI_HELPER_NO_USER);
    if (dir) _exit(chdir(dir) == 0 ? HFSBI_HELPER_OK : HFSBI_HELPER_NO_DIR);
    (void)kill(-1, SIGKILL);
    _exit(HFSBI_HELPER_OK);
}

/* ---- helpers ---- */

/* Waits for a helper, at most ms: it may have been stopped. Returns its exit
   code, or below 0. */
static int hfsbi_helper_wait(pid_t pid, long long ms) {
    long long until = hfsb_clock_ms() + ms;
    int       status = 0;
    unsigned  tries = 0;
    pid_t     rc = 0;
    while (rc == 0 || (rc < 0 && errno == EINTR)) {
        rc = waitpid(pid, &status, WNOHANG);
        if (rc == 0 && hfsb_clock_ms() >= until) (void)kill(pid, SIGKILL);
        if (rc == 0) hfsbi_pause(tries++);
    }
    if (rc == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
        return HFSBI_HELPER_NO_USER; /* a seccomp filter */
    return rc == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int hfsbi_helper_run(unsigned uid, const char *dir) {
    hfsbi_fork_guard guard;
    pid_t            host = getpid(), pid;
    hfsbi_fork_guard_begin(&guard);
    pid = fork();
    if (pid == 0) hfsbi_helper_main(uid, dir, host);
    hfsbi_fork_guard_end(&guard);
    return pid < 0 ? -1
                   : hfsbi_helper_wait(pid, dir ? HFSBI_UIDS_LOOK_MS
                                                : HFSBI_UIDS_HELPER_MS);
}

/* ---- which uids are in use ---- */

static void hfsbi_uids_mark(char *used, unsigned long long uid) {
    if (uid >= HFSBI_UID_FIRST && uid < HFSBI_UID_FIRST + HFSBI_UID_COUNT)
        used[uid - HFSBI_UID_FIRST] = 1;
}

/* True for a zombie, which no longer owns anything: "State:\tZ ...". If only
   its first thread has ended it still has several: "Threads:\t2". */
static bool hfsbi_uids_is_zombie(const char *text) {
    const char *state = strstr(text, "\nState:\t");
    const char *threads = strstr(text, "\nThreads:\t");
    return state && (state[8] == 'X' || (state[8] == 'Z' && threads &&
                                         strtoull(threads + 10, NULL, 10) < 2));
}

/* Marks the uids of a process: "Uid:\t0\t0\t0\t0". */
static void hfsbi_uids_mark_process(char *used, const char *pid) {
    char        path[300], text[2048];
    const char *at;
    ssize_t     n;
    int         i, fd;
    (void)snprintf(path, sizeof path, "/proc/%s/status", pid);
    do fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return;
    n = hfsbi_read(fd, text, sizeof text - 1);
    hfsbi_close(&fd);
    text[n > 0 ? n : 0] = '\0';
    at = strstr(text, "\nUid:\t");
    if (!at || hfsbi_uids_is_zombie(text)) return;
    for (i = 0, at += 6; i < 4; i++) {
        char *end;
        hfsbi_uids_mark(used, strtoull(at, &end, 10));
        at = end;
    }
}

/* Marks the uids of all processes, in HFSBI_UID_COUNT bytes; false when they
   cannot be listed. */
static bool hfsbi_uids_mark_processes(char *used) {
    DIR           *list = opendir("/proc");
    struct dirent *entry;
    if (!list) return false;
    while ((entry = readdir(list)) != NULL)
        if (hfsbi_is_digit(entry->d_name[0]))
            hfsbi_uids_mark_process(used, entry->d_name);
    (void)closedir(list);
    return true;
}

/* Marks those of the accounts of this machine: "name:x:1000:...". */
static hfsb_status
hfsbi_uids_mark_accounts(char *used, const hfsb_alloc *alloc, hfsb_err *err) {
    hfsb_buf           all = HFSB_INIT;
    hfsb_str           rest, line, field;
    unsigned long long uid;
    hfsb_status        st;
    all.alloc = *alloc;
    st = hfsb_file_read(NULL, HFSB_LIT("/etc/passwd"), 16 << 20, &all, NULL,
                        err);
    rest = hfsb_buf_str(&all);
    while (hfsbi_list_next(&rest, '\n', &line))
        if (hfsbi_list_next(&line, ':', &field) &&
            hfsbi_list_next(&line, ':', &field) &&
            hfsbi_list_next(&line, ':', &field) &&
            hfsbi_read_decimal(field, UINT_MAX, &uid) == field.len)
            hfsbi_uids_mark(used, uid);
    hfsb_buf_free(&all);
    return st == HFSB_NOT_FOUND ? HFSB_OK : st;
}

/* Marks the owners of what is in a folder. */
static void hfsbi_uids_mark_owners(char *used, const char *dir) {
    DIR           *list = opendir(dir);
    struct dirent *entry;
    struct stat    st;
    while (list && (entry = readdir(list)) != NULL)
        if (fstatat(dirfd(list), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            hfsbi_uids_mark(used, st.st_uid);
    if (list) (void)closedir(list);
}

/* ---- the table ---- */

/* Opens the table under its lock, which ends with the descriptor; -1 with
   errno. Nobody else may write to it. */
static int hfsbi_uids_lock(const char *table) {
    struct stat st;
    int         fd, rc;
    do fd = open(table, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return -1;
    rc = fstat(fd, &st);
    if (rc == 0 && (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
                    (st.st_mode & 022))) {
        rc = -1;
        errno = EPERM;
    }
    if (rc == 0) {
        do rc = flock(fd, LOCK_EX);
        while (rc != 0 && errno == EINTR);
    }
    if (rc == 0) return fd;
    rc = errno;
    hfsbi_close(&fd);
    errno = rc;
    return -1;
}

static bool hfsbi_uids_set(int fd, unsigned uid, char taken) {
    off_t at = (off_t)(HFSBI_UIDS_HEAD + uid - HFSBI_UID_FIRST);
    return hfsbi_pwrite_all(fd, hfsb_str_make(&taken, 1), at);
}

/* Reads up to n bytes at a position; what lies after the end of the file is
   not changed. */
static bool hfsbi_uids_pread(int fd, void *out, size_t n, off_t at) {
    char   *to = (char *)out;
    ssize_t got = 1;
    while (n > 0 && got != 0) {
        got = pread(fd, to, n, at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return false;
        to += got;
        n -= (size_t)got;
        at += (off_t)got;
    }
    return true;
}

/* Reads which uids are taken, and the one to try next. */
static bool hfsbi_uids_read(int fd, char *used, unsigned *next) {
    *next = 0;
    memset(used, 0, HFSBI_UID_COUNT);
    if (!hfsbi_uids_pread(fd, next, sizeof *next, 0) ||
        !hfsbi_uids_pread(fd, used, HFSBI_UID_COUNT, HFSBI_UIDS_HEAD))
        return false;
    if (*next < HFSBI_UID_FIRST || *next >= HFSBI_UID_FIRST + HFSBI_UID_COUNT)
        *next = HFSBI_UID_FIRST;
    return true;
}

static hfsb_status hfsbi_uids_take_from(int fd, const hfsb_alloc *alloc,
                                        unsigned *uid, hfsb_err *err) {
    char        used[HFSBI_UID_COUNT];
    unsigned    at, n;
    hfsb_status st;
    if (!hfsbi_uids_read(fd, used, &at))
        return hfsbi_fail_os(err, errno, "The table of uids cannot be read");
    if (!hfsbi_uids_mark_processes(used))
        return hfsbi_fail_os(err, errno, "Processes cannot be listed");
    st = hfsbi_uids_mark_accounts(used, alloc, err);
    if (st != HFSB_OK) return st;
    for (n = 0; n < HFSBI_UID_COUNT && used[at - HFSBI_UID_FIRST]; n++)
        if (++at == HFSBI_UID_FIRST + HFSBI_UID_COUNT) at = HFSBI_UID_FIRST;
    if (n == HFSBI_UID_COUNT)
        return hfsbi_fail(err, HFSB_LIMIT, 0,
                          "No uid is left for a sandbox. If no other server "
                          "runs, end what runs with uids of %d and above, "
                          "remove its files, and remove the table of taken "
                          "uids.",
                          HFSBI_UID_FIRST);
    *uid = at++;
    if (at == HFSBI_UID_FIRST + HFSBI_UID_COUNT) at = HFSBI_UID_FIRST;
    if (hfsbi_pwrite_all(fd, hfsb_str_make((const char *)&at, sizeof at), 0) &&
        hfsbi_uids_set(fd, *uid, 1))
        return hfsbi_ok(err);
    *uid = 0;
    return hfsbi_fail_os(err, errno, "A uid cannot be taken");
}

/* True if a thread can access files as that user. If it could not, it would
   continue as root, and likewise if it kept root's capabilities, as with the
   flag described at hfsbi_uid_become(). */
static bool hfsbi_uid_is_possible(unsigned uid) {
    unsigned head[2] = {0x20080522u, 0}, caps[6] = {0, 0, 0, 0, 0, 0};
    bool     became = hfsbi_thread_set_uid(uid) &&
                  syscall(SYS_capget, head, caps) == 0 &&
                  !(caps[0] & HFSBI_UIDS_FILES);
    return hfsbi_thread_set_uid(0) && became;
}

HFSBI_FN hfsb_status hfsbi_uids_take(const hfsbi_uids *uids, unsigned *uid,
                                     hfsb_err *err) {
    hfsb_status st;
    int         fd;
    *uid = 0;
    if (!uids->on) return hfsbi_ok(err);
    fd = hfsbi_uids_lock(uids->table);
    st = fd < 0 ? hfsbi_fail_os(err, errno, "A uid cannot be taken")
                : hfsbi_uids_take_from(fd, &uids->alloc, uid, err);
    hfsbi_close(&fd);
    if (st != HFSB_OK || hfsbi_uid_is_possible(*uid)) return st;
    *uid = 0; /* it stays taken: the next try gets another one */
    return hfsbi_fail(err, HFSB_REFUSED, 0,
                      "This system does not let a thread work on files as "
                      "another user.");
}

HFSBI_FN void hfsbi_uids_put(const hfsbi_uids *uids, unsigned uid) {
    int fd = uid ? hfsbi_uids_lock(uids->table) : -1;
    if (fd >= 0) (void)hfsbi_uids_set(fd, uid, 0);
    hfsbi_close(&fd);
}

HFSBI_FN hfsb_status hfsbi_uid_give(const char *dir, unsigned uid,
                                    hfsb_err *err) {
    int fd, code = 0;
    if (!uid) return hfsbi_ok(err);
    do fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0 || fchown(fd, (uid_t)uid, (gid_t)uid) != 0) code = errno;
    hfsbi_close(&fd);
    if (code == 0) return hfsbi_ok(err);
    return hfsbi_fail_os(err, code, "A folder cannot be given to its user");
}

/* ---- the end of a sandbox ---- */

/* True when a process has the uid, or when that is unknown. */
static bool hfsbi_uid_is_used(unsigned uid) {
    char used[HFSBI_UID_COUNT];
    memset(used, 0, sizeof used);
    return !hfsbi_uids_mark_processes(used) || used[uid - HFSBI_UID_FIRST];
}

HFSBI_FN bool hfsbi_uid_end(unsigned uid) {
    unsigned tries;
    if (!uid) return true;
    for (tries = 0; tries < HFSBI_UIDS_TRIES; tries++) {
        (void)hfsbi_helper_run(uid, NULL);
        if (!hfsbi_uid_is_used(uid)) return true;
        hfsbi_pause(tries);
    }
    return false;
}

/* ---- open ---- */

/* Why sandboxes cannot have uids; NULL: they can. *unknown: no helper came to
   its end, which says nothing about that. */
static const char *hfsbi_uids_lack(const char *dir, bool *unknown) {
    unsigned head[2] = {0x20080522u, 0}, caps[6] = {0, 0, 0, 0, 0, 0};
    int      rc;
    if (geteuid() != 0 || syscall(SYS_capget, head, caps) != 0 ||
        (caps[0] & HFSBI_UIDS_CAPS) != HFSBI_UIDS_CAPS)
        return "the server must be root, and may do what root does with users "
               "and files";
    rc = hfsbi_helper_run(HFSBI_UID_FIRST + HFSBI_UID_COUNT - 1, "/");
    if (rc == HFSBI_HELPER_OK) rc = hfsbi_helper_run(HFSBI_UID_FIRST, dir);
    *unknown = rc < 0;
    if (rc == HFSBI_HELPER_OK && hfsbi_uid_is_possible(HFSBI_UID_FIRST))
        return NULL;
    return rc == HFSBI_HELPER_NO_DIR
               ? "other users cannot reach the folder of the sandboxes: let "
                 "them search it and all above it (chmod o+x)"
               : "this system does not let it run programs, or work on "
                 "files, as other users";
}

/* Finds a place for the table, and marks what is in the folder. */
static bool hfsbi_uids_prepare(hfsbi_uids *uids, const char *dir) {
    char     used[HFSBI_UID_COUNT];
    unsigned i;
    int      fd, len;
    memset(used, 0, sizeof used);
    (void)snprintf(uids->table, sizeof uids->table, "/run/hfsb.uids");
    fd = hfsbi_uids_lock(uids->table);
    if (fd < 0) {
        len = snprintf(uids->table, sizeof uids->table, "%s/.hfsb.uids", dir);
        if (len > 0 && (size_t)len < sizeof uids->table)
            fd = hfsbi_uids_lock(uids->table);
    }
    if (fd >= 0) hfsbi_uids_mark_owners(used, dir);
    for (i = 0; fd >= 0 && i < HFSBI_UID_COUNT; i++)
        if (used[i] && !hfsbi_uids_set(fd, HFSBI_UID_FIRST + i, 1))
            hfsbi_close(&fd);
    uids->on = fd >= 0;
    hfsbi_close(&fd);
    return uids->on;
}

HFSBI_FN hfsb_status hfsbi_uids_open(hfsbi_uids *uids, const char *dir,
                                     hfsb_str setting, const hfsb_alloc *alloc,
                                     hfsb_err *err) {
    const char *lack = NULL;
    bool        unknown = false;
    memset(uids, 0, sizeof *uids);
    uids->alloc = *alloc;
    if (setting.len && !hfsb_str_equal(setting, HFSB_LIT("0")) &&
        !hfsb_str_equal(setting, HFSB_LIT("1")))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "HFSB_SANDBOX_UIDS must be 0 or 1.");
    if (hfsb_str_equal(setting, HFSB_LIT("0"))) return hfsbi_ok(err);
    lack = hfsbi_uids_lack(dir, &unknown);
    if (unknown) /* not without uids: somebody may want just that */
        return hfsbi_fail(err, HFSB_BUSY, 0,
                          "Whether sandboxes can have a uid of their own "
                          "cannot be found out: a process that becomes "
                          "another user did not come to its end. Try again, "
                          "or set HFSB_SANDBOX_UIDS=0 to do without.");
    if (!lack && !hfsbi_uids_prepare(uids, dir))
        lack = "the table of uids, /run/hfsb.uids, cannot be written";
    if (!lack || !setting.len) return hfsbi_ok(err);
    return hfsbi_fail(err, HFSB_REFUSED, 0,
                      "Sandboxes cannot have a uid of their own: %s.", lack);
}

#else

HFSBI_FN bool hfsbi_uid_enter(unsigned uid) {
    (void)uid;
    errno = ENOSYS;
    return false;
}

HFSBI_FN hfsb_status hfsbi_uids_open(hfsbi_uids *uids, const char *dir,
                                     hfsb_str setting, const hfsb_alloc *alloc,
                                     hfsb_err *err) {
    (void)dir, (void)alloc;
    memset(uids, 0, sizeof *uids);
    if (!hfsb_str_equal(setting, HFSB_LIT("1"))) return hfsbi_ok(err);
    return hfsbi_fail(err, HFSB_REFUSED, 0,
                      "Sandboxes have a uid of their own on Linux only.");
}

HFSBI_FN hfsb_status hfsbi_uids_take(const hfsbi_uids *uids, unsigned *uid,
                                     hfsb_err *err) {
    (void)uids;
    *uid = 0;
    return hfsbi_ok(err);
}

HFSBI_FN void hfsbi_uids_put(const hfsbi_uids *uids, unsigned uid) {
    (void)uids, (void)uid;
}

HFSBI_FN hfsb_status hfsbi_uid_give(const char *dir, unsigned uid,
                                    hfsb_err *err) {
    (void)dir, (void)uid;
    return hfsbi_ok(err);
}

HFSBI_FN bool hfsbi_uid_end(unsigned uid) {
    return uid == 0;
}

#endif
