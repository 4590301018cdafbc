/* temp.c - temporaries of file_write.c, and the sweep of stale ones

   A temporary is named .{name}.hfsb-{pid}-{n} and is locked while in use. A
   process that dies leaves it behind; the next write in that directory removes
   it.

   Listing the directory for every write would make each edit O(directory), so
   a root remembers the directories it has found clean, as they were after its
   last write there. While such a directory has not changed, nobody has made a
   temporary in it.

   Another process may create one between our sweep and the end of our write;
   then the entry hides it. That is why an entry expires. */
#include "os_private.h"

/* ---- one temporary ---- */

HFSBI_FN void hfsbi_temp_remove(int dir, const char *temp) {
    int keep = errno;
    (void)hfsbi_unlinkat(dir, temp, 0);
    errno = keep;
}

/* The {name} part is cut between characters so that the whole has at most max
   bytes. */
static void hfsbi_temp_name(const char *name, unsigned long n, size_t max,
                            char temp[HFSBI_NAME_SIZE]) {
    char   tail[64];
    size_t len = strlen(name), room;
    int    tail_len =
        snprintf(tail, sizeof tail, ".hfsb-%ld-%lu", (long)getpid(), n);
    room = max - 1 - (size_t)tail_len;
    if (len > room) len = hfsbi_utf8_floor(hfsb_cstr(name), room);
    (void)snprintf(temp, HFSBI_NAME_SIZE, ".%.*s%s", (int)len, name, tail);
}

/* True when fd is locked by us and still has a name: a sweep may have removed
   it as stale before it was locked. */
static bool hfsbi_temp_lock(int fd) {
    struct stat st;
    return hfsbi_try_lock(fd, false) && fstat(fd, &st) == 0 &&
           st.st_nlink > 0;
}

HFSBI_FN int hfsbi_temp_open(int dir, const char *name, mode_t mode,
                             char temp[HFSBI_NAME_SIZE], int *fd) {
    const int     flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;
    size_t        max = HFSBI_NAME_SIZE - 1;
    unsigned long n;
    for (n = 1; n < 100000; n++) {
        hfsbi_temp_name(name, n, max, temp);
        *fd = hfsbi_openat(dir, temp, flags, mode);
        if (*fd >= 0) {
            if (hfsbi_temp_lock(*fd)) return 0;
            hfsbi_temp_remove(dir, temp);
            hfsbi_close(fd);
        } else if (errno == ENAMETOOLONG && max > 128) {
            max = 128; /* encrypting file systems allow only shorter names */
        } else if (errno != EEXIST) {
            break;
        }
    }
    temp[0] = '\0';
    return *fd < 0 ? errno : EEXIST;
}

/* ---- stale temporaries: those of processes that died ---- */

enum {
    HFSBI_SWEEP_MS = 60000,  /* an entry is good for this long */
    HFSBI_SWEEP_NAMES = 4096 /* names examined, at most */
};

static hfsb_str hfsbi_cut_digits(hfsb_str *name) {
    size_t   n = name->len;
    hfsb_str digits;
    while (n > 0 && hfsbi_is_digit(name->ptr[n - 1])) n--;
    digits = hfsb_str_slice(*name, n, name->len);
    name->len = n;
    return digits;
}

HFSBI_FN long hfsbi_temp_pid(hfsb_str name) {
    const hfsb_str           mark = HFSB_LIT(".hfsb-");
    const unsigned long long max = 999999999;
    unsigned long long       n, pid = 0;
    if (!hfsb_str_starts(name, HFSB_LIT(".")) ||
        !hfsbi_read_decimal(hfsbi_cut_digits(&name), max, &n) ||
        !hfsb_str_ends(name, HFSB_LIT("-")))
        return 0;
    name.len--;
    if (!hfsbi_read_decimal(hfsbi_cut_digits(&name), max, &pid) ||
        !hfsb_str_ends(name, mark) || name.len == mark.len)
        return 0;
    return (long)pid;
}

/* A living process may have the id of a dead one: then its age decides. */
static bool hfsbi_temp_is_stale(long pid, const struct stat *st) {
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) return true;
    return hfsbi_time_ns() / 1000000000 - st->st_mtime > 60;
}

/* Removes `name` if it is a stale temporary of ours. False when it is a
   temporary in use, which may become stale later. */
static bool hfsbi_temp_remove_stale(int dir, const char *name) {
    const int   flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    long        pid = hfsbi_temp_pid(hfsb_cstr(name));
    uid_t       me = geteuid();
    struct stat st;
    bool        unused;
    int         fd;
    if (pid == 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return true;
    /* root's temporaries get the owner of the file they will replace */
    if ((!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) ||
        (me != 0 && st.st_uid != me))
        return true;
    if (!hfsbi_temp_is_stale(pid, &st)) return false;
    if (S_ISLNK(st.st_mode)) { /* of file_put.c; it cannot be locked */
        hfsbi_temp_remove(dir, name);
        return true;
    }
    fd = hfsbi_openat(dir, name, flags, 0);
    if (fd < 0) return true;
    unused = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (unused) hfsbi_temp_remove(dir, name);
    hfsbi_close(&fd);
    return unused;
}

/* Removes the stale temporaries in a directory. True when none is left there,
   in use or not. */
static bool hfsbi_sweep_dir(int dir) {
    int            fd = hfsbi_openat(dir, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR           *list = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    bool           clean = true;
    size_t         n = 0;
    if (!list) {
        hfsbi_close(&fd);
        return false;
    }
    while (n++ < HFSBI_SWEEP_NAMES && (entry = readdir(list)) != NULL)
        if (!hfsbi_temp_remove_stale(dir, entry->d_name)) clean = false;
    (void)closedir(list);
    return clean;
}

/* When the directory, unchanged since, was swept; 0: sweep it. */
static long long hfsbi_sweeps_find(hfsbi_sweeps         *sweeps,
                                   const hfsb_file_info *dir) {
    long long at = 0, now = hfsb_clock_ms();
    size_t    i;
    pthread_mutex_lock(&sweeps->lock);
    for (i = 0; i < HFSBI_SWEEPS; i++)
        if (sweeps->at[i] && now - sweeps->at[i] < HFSBI_SWEEP_MS &&
            hfsbi_same_info(&sweeps->dir[i], dir))
            at = sweeps->at[i];
    pthread_mutex_unlock(&sweeps->lock);
    return at;
}

/* Replaces the entry of the directory, else the oldest one. */
static void hfsbi_sweeps_store(hfsbi_sweeps *sweeps, const hfsb_file_info *dir,
                               long long at) {
    size_t i, to = 0;
    pthread_mutex_lock(&sweeps->lock);
    for (i = 0; i < HFSBI_SWEEPS; i++) {
        if (sweeps->at[i] < sweeps->at[to]) to = i;
        if (sweeps->at[i] && sweeps->dir[i].device == dir->device &&
            sweeps->dir[i].inode == dir->inode) {
            to = i;
            break;
        }
    }
    sweeps->dir[to] = *dir;
    sweeps->at[to] = at;
    pthread_mutex_unlock(&sweeps->lock);
}

HFSBI_FN long long hfsbi_sweep_begin(const hfsb_root *root, int dir) {
    hfsb_file_info info;
    struct stat    st;
    long long      at = 0;
    if (root && fstat(dir, &st) == 0) {
        hfsbi_file_info_fill(&info, &st);
        at = hfsbi_sweeps_find(root->sweeps, &info);
    }
    if (at) return at;
    at = hfsb_clock_ms();
    return hfsbi_sweep_dir(dir) ? at : 0;
}

HFSBI_FN void hfsbi_sweep_end(const hfsb_root *root, int dir, long long at) {
    hfsb_file_info info;
    struct stat    st;
    if (!root || !at || fstat(dir, &st) != 0) return;
    hfsbi_file_info_fill(&info, &st);
    hfsbi_sweeps_store(root->sweeps, &info, at);
}
