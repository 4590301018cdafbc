/* file_temp.c - temporary files beside the file they will become. Depends on:
   base, utf8, os. */
#include "file_place.h"

/* ".{name}.hfsb-{pid}-{n}", its name part cut at a character's border so that
   the whole has at most max bytes. */
static void hfsbi_temp_name(const char *name, unsigned long n, size_t max,
                            char temp[HFSBI_NAME_SIZE]) {
    char   tail[64];
    size_t len = strlen(name), room;
    int    tail_len =
        snprintf(tail, sizeof tail, ".hfsb-%ld-%lu", (long)getpid(), n);
    room = max - 1 - (size_t)tail_len;
    if (len > room) {
        len = room;
        while (len > 0 && ((unsigned char)name[len] & 0xC0u) == 0x80u) len--;
    }
    (void)snprintf(temp, HFSBI_NAME_SIZE, ".%.*s%s", (int)len, name, tail);
}

/* True when fd is ours: locked, or not lockable at all, and still there. */
static bool hfsbi_temp_claim(int fd) {
    struct stat st;
    return hfsbi_try_lock(fd) && fstat(fd, &st) == 0 && st.st_nlink > 0;
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
            if (hfsbi_temp_claim(*fd)) return 0;
            /* Someone, who took it for a dead one's, is removing it. */
            hfsbi_temp_remove(dir, temp);
            hfsbi_close(fd);
        } else if (errno == ENAMETOOLONG && max > 128) {
            max = 128; /* file systems that encrypt names have shorter ones */
        } else if (errno != EEXIST) {
            break;
        }
    }
    temp[0] = '\0';
    return *fd < 0 ? errno : EEXIST;
}

HFSBI_FN void hfsbi_temp_remove(int dir, const char *temp) {
    int keep = errno;
    (void)hfsbi_unlinkat(dir, temp);
    errno = keep;
}

/* ---- those of dead processes ---- */

/* Takes the digits off the end of *name; -1 when there are none, or more than
   a process id has. */
static long hfsbi_take_digits(hfsb_str *name) {
    long   value = 0, unit = 1;
    size_t n = 0;
    while (name->len > 0 && name->ptr[name->len - 1] >= '0' &&
           name->ptr[name->len - 1] <= '9') {
        if (++n > 9) return -1;
        value += unit * (name->ptr[name->len - 1] - '0');
        unit *= 10;
        name->len--;
    }
    return n == 0 ? -1 : value;
}

/* The process id in a name that hfsbi_temp_name() made, else 0. */
static long hfsbi_temp_pid(hfsb_str name) {
    const hfsb_str mark = HFSB_LIT(".hfsb-");
    long           pid;
    if (!hfsb_str_starts(name, HFSB_LIT(".")) ||
        hfsbi_take_digits(&name) < 0 || !hfsb_str_ends(name, HFSB_LIT("-")))
        return 0;
    name.len--;
    pid = hfsbi_take_digits(&name);
    return pid > 0 && hfsb_str_ends(name, mark) && name.len > mark.len ? pid
                                                                       : 0;
}

/* A living process may have got the number of a dead one: then age tells. */
static bool hfsbi_temp_is_dead(long pid, const struct stat *st) {
    struct timespec now = HFSB_INIT;
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) return true;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - st->st_mtime > 60;
}

/* Root gives its files to others before they are done. */
static bool hfsbi_temp_is_ours(const struct stat *st) {
    uid_t me = geteuid();
    return S_ISREG(st->st_mode) && (me == 0 || st->st_uid == me);
}

static void hfsbi_temp_bury(int dir, const char *name) {
    const int   flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    long        pid = hfsbi_temp_pid(hfsb_cstr(name));
    struct stat st;
    int         fd;
    if (pid == 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !hfsbi_temp_is_ours(&st) || !hfsbi_temp_is_dead(pid, &st))
        return;
    fd = hfsbi_openat(dir, name, flags, 0);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) hfsbi_temp_remove(dir, name);
    hfsbi_close(&fd);
}

HFSBI_FN void hfsbi_temp_sweep(int dir) {
    int            fd = hfsbi_openat(dir, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR           *list = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    size_t         n = 0;
    if (!list) {
        hfsbi_close(&fd);
        return;
    }
    while (n++ < 4096 && (entry = readdir(list)) != NULL)
        hfsbi_temp_bury(dir, entry->d_name);
    (void)closedir(list);
}
