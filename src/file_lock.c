/* file_lock.c - keep other writers out while a file is checked and replaced.

   A write compares the file with what the caller expects and then renames the
   new file over it. No other writer may get in between, so both steps happen
   under an exclusive flock() of the directory. Separately opened descriptors
   exclude each other within one process too, so threads need no lock of their
   own; the kernel drops the lock of a process that dies.

   Two cases need a lock on the file itself:
   - a directory that can be written but not read cannot be opened to lock it;
   - a file that is rewritten in place may have names in other directories.
   The directory is always locked before the file.

   flock() has no timeout, and any program may hold the lock for hours: we
   poll, and give up after about 2 s. */
#include "file_place.h"

HFSBI_FN bool hfsbi_try_lock(int fd) {
    int rc;
    do rc = flock(fd, LOCK_EX | LOCK_NB);
    while (rc != 0 && errno == EINTR);
    return rc == 0 || errno != EWOULDBLOCK;
}

/* An errno. */
static int hfsbi_lock_dir(const hfsbi_spot *spot, int *fd) {
    unsigned tries;
    *fd = hfsbi_openat(spot->dir, ".", O_RDONLY | O_DIRECTORY, 0);
    if (*fd < 0) return errno;
    for (tries = 0; !hfsbi_try_lock(*fd); tries++) {
        if (tries == HFSBI_TRIES) return EWOULDBLOCK;
        hfsbi_pause(tries);
    }
    return 0;
}

/* An errno. A lock is worth something only while the name still leads to the
   locked file; a missing file needs none. */
static int hfsbi_lock_file(hfsbi_spot *spot, int *fd) {
    struct stat st;
    unsigned    tries;
    for (tries = 0; tries <= HFSBI_TRIES; tries++) {
        int  code = 0;
        bool locked;
        if (tries > 0) hfsbi_pause(tries - 1);
        *fd = hfsbi_spot_open_any(spot);
        if (*fd < 0) return errno == ENOENT || errno == ELOOP ? 0 : errno;
        locked = hfsbi_try_lock(*fd);
        if (fstat(*fd, &st) != 0) code = errno;
        if (code == 0) code = hfsbi_spot_look(spot);
        if (code != 0) return code;
        if (locked && spot->exists && spot->st.st_dev == st.st_dev &&
            spot->st.st_ino == st.st_ino)
            return 0;
        hfsbi_close(fd);
    }
    return EWOULDBLOCK;
}

HFSBI_FN int hfsbi_spot_lock(hfsbi_spot *spot, bool file, hfsbi_lock *lock) {
    int code = lock->dir < 0 ? hfsbi_lock_dir(spot, &lock->dir) : 0;
    if (code == EACCES || code == EPERM) {
        file = true;
        code = 0;
    }
    if (code == 0 && file && lock->file < 0)
        code = hfsbi_lock_file(spot, &lock->file);
    return code;
}

/* A child between fork() and exec() still has the descriptor: closing it
   alone would leave the lock held. */
static void hfsbi_unlock_fd(int *fd) {
    if (*fd >= 0) (void)flock(*fd, LOCK_UN);
    hfsbi_close(fd);
}

HFSBI_FN void hfsbi_unlock(hfsbi_lock *lock) {
    int keep = errno;
    hfsbi_unlock_fd(&lock->file);
    hfsbi_unlock_fd(&lock->dir);
    errno = keep;
}

HFSBI_FN hfsb_status hfsbi_lock_fail(const hfsb_place *place, hfsb_str path,
                                     int code, const char *verb,
                                     hfsb_err *err) {
    if (code != EWOULDBLOCK)
        return hfsbi_path_fail(place, path, code, verb, err);
    hfsbi_path_say(err, HFSB_BUSY, "File is locked by another program", path);
    hfsbi_err_add(err, " (it or its directory was locked with flock for 2 "
                       "seconds: wait for that program, or end it, and try "
                       "again)");
    return HFSB_BUSY;
}
