/* file_write.c - write files whole or not at all; remove files

   A writer collects the new bytes in a temporary next to the file and then
   renames it over the file. Where a rename would break something (hard links,
   an owner or attribute that cannot be copied, a mount point, a directory we
   may not write) the file is rewritten in place, from a complete copy.

       open:    resolve, check conditions, sweep, make the temporary
       append:  write to the temporary
       commit:  copy metadata, sync, lock, check conditions again,
                rename, or rewrite in place; unlock, sync the directory
       close:   remove the temporary if it is still there

   The file is untouched until the rename or rewrite, and a failed rewrite
   puts the old bytes back. No other writer gets in between the check of the
   conditions and the change: both happen under the lock.

   Functions that return int and no descriptor return 0 or an errno. */
#include "os_private.h"

/* ---- locks ----

   Both steps of a change, check and replace, happen under an exclusive
   flock() of the directory. Separately opened descriptors exclude each other
   within one process too, so threads need no lock of their own; the kernel
   drops the lock of a process that dies.

   Two cases need a lock on the file itself:
   - a directory that can be written but not read cannot be opened to lock it;
   - a file that is rewritten in place may have names in other directories.
   The directory is always locked before the file.

   flock() has no timeout, and another program may hold the lock for hours, so
   we poll and give up after about 2 s.

   Writers of ranges (file_range.c) share these locks among themselves: they
   wait for a change in progress, and the change waits for their pieces. */

HFSBI_FN int hfsbi_lock_wait(int fd, bool shared) {
    unsigned tries;
    for (tries = 0; !hfsbi_try_lock(fd, shared); tries++) {
        if (tries == HFSBI_TRIES) return EWOULDBLOCK;
        hfsbi_pause(tries);
    }
    return 0;
}

static int hfsbi_lock_dir(const hfsbi_target *target, int *fd) {
    *fd = hfsbi_openat(target->dir, ".", O_RDONLY | O_DIRECTORY, 0);
    return *fd < 0 ? errno : hfsbi_lock_wait(*fd, false);
}

/* Opens the file for its attributes and locks, even if it is only readable or
   only writable. A descriptor, or -1 with errno. */
static int hfsbi_target_open_any(const hfsbi_target *target) {
    const int flags = O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    int fd = hfsbi_openat(target->dir, target->name, flags | O_RDONLY, 0);
    if (fd >= 0) return fd;
    return hfsbi_openat(target->dir, target->name, flags | O_WRONLY, 0);
}

/* The lock counts only while the name still leads to the locked file. A file
   that does not exist needs no lock. */
static int hfsbi_lock_file(hfsbi_target *target, int *fd) {
    struct stat st;
    unsigned    tries;
    for (tries = 0; tries <= HFSBI_TRIES; tries++) {
        int  code = 0;
        bool locked;
        if (tries > 0) hfsbi_pause(tries - 1);
        *fd = hfsbi_target_open_any(target);
        if (*fd < 0) return errno == ENOENT || errno == ELOOP ? 0 : errno;
        locked = hfsbi_try_lock(*fd, false);
        if (fstat(*fd, &st) != 0) code = errno;
        if (code == 0) code = hfsbi_target_stat(target);
        if (code != 0) return code;
        if (locked && target->exists && target->st.st_dev == st.st_dev &&
            target->st.st_ino == st.st_ino)
            return 0;
        hfsbi_close(fd);
    }
    return EWOULDBLOCK;
}

HFSBI_FN int hfsbi_lock_target(hfsbi_target *target, bool file,
                               hfsbi_lock *lock) {
    int code = lock->dir < 0 ? hfsbi_lock_dir(target, &lock->dir) : 0;
    if (code == EACCES || code == EPERM) {
        file = true;
        code = 0;
    }
    if (code == 0 && file && lock->file < 0)
        code = hfsbi_lock_file(target, &lock->file);
    return code;
}

/* LOCK_UN, because a child between fork() and exec() still has a copy of the
   descriptor: closing ours alone would leave the lock held. */
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

HFSBI_FN hfsb_status hfsbi_lock_fail(const hfsb_root *root, hfsb_str path,
                                     int code, const char *verb,
                                     hfsb_err *err) {
    if (code != EWOULDBLOCK)
        return hfsbi_file_fail_os(root, path, code, verb, err);
    hfsbi_file_fail(err, HFSB_BUSY, "File is locked by another program", path);
    hfsbi_err_add(err, " (it or its directory was locked with flock for 2 "
                       "seconds: wait for that program, or end it, and try "
                       "again)");
    return HFSB_BUSY;
}

/* ---- conditions ---- */

HFSBI_FN hfsb_status hfsbi_fail_changed(hfsb_str path, hfsb_err *err) {
    hfsbi_file_fail(err, HFSB_STALE, "File has changed since it was read",
                    path);
    hfsbi_err_add(err, " (read it again)");
    return HFSB_STALE;
}

static hfsb_status hfsbi_check_same(hfsb_str path, const struct stat *st,
                                    const hfsb_file_info *same,
                                    hfsb_err             *err) {
    hfsb_file_info now;
    hfsbi_file_info_fill(&now, st);
    return hfsbi_same_info(&now, same) ? HFSB_OK
                                       : hfsbi_fail_changed(path, err);
}

static hfsb_status hfsbi_check_sha256(const hfsb_root *root, hfsb_str path,
                                      hfsbi_target *target, const char *sha256,
                                      hfsb_err *err) {
    char        now[HFSB_SHA256_HEX];
    int         fd;
    hfsb_status st = hfsbi_target_open(root, path, target, &fd, err);
    if (st != HFSB_OK) return st;
    if (!hfsbi_fd_sha256(fd, now))
        st = hfsbi_file_fail_os(root, path, errno, "read", err);
    else if (strcmp(now, sha256) != 0) st = hfsbi_fail_changed(path, err);
    hfsbi_close(&fd);
    return st;
}

static hfsb_status hfsbi_check_content(const hfsb_root *root, hfsb_str path,
                                       hfsbi_target *target, hfsb_str content,
                                       hfsb_err *err) {
    char        piece[16384];
    size_t      at = 0;
    ssize_t     n;
    int         fd;
    hfsb_status st = hfsbi_target_open(root, path, target, &fd, err);
    if (st != HFSB_OK) return st;
    while ((n = hfsbi_read_file(fd, piece, sizeof piece)) > 0 &&
           (size_t)n <= content.len - at &&
           memcmp(piece, content.ptr + at, (size_t)n) == 0)
        at += (size_t)n;
    if (n < 0) st = hfsbi_file_fail_os(root, path, errno, "read", err);
    else if (n > 0 || at < content.len) st = hfsbi_fail_changed(path, err);
    hfsbi_close(&fd);
    return st;
}

/* ---- metadata ---- */

#ifdef HFSBI_LINUX

HFSBI_FN int hfsbi_attribute_get(int fd, const char *name, hfsb_buf *out) {
    ssize_t n = fgetxattr(fd, name, NULL, 0);
    if (n < 0) return errno;
    hfsb_buf_truncate(out, 0);
    if (hfsb_buf_reserve(out, (size_t)n) != HFSB_OK) return ENOMEM;
    n = fgetxattr(fd, name, out->ptr, (size_t)n);
    if (n < 0) return errno;
    out->len = (size_t)n;
    return 0;
}

/* Sets only what differs: the system gives every new file some attributes
   (security labels) that not every user may set. */
static int hfsbi_attribute_copy(int from, int to, const char *name,
                                hfsb_buf *old, hfsb_buf *now) {
    int code = hfsbi_attribute_get(from, name, old);
    if (code != 0) return code;
    code = hfsbi_attribute_get(to, name, now);
    if (code == ENOMEM) return code;
    if (code == 0 && hfsb_str_equal(hfsb_buf_str(old), hfsb_buf_str(now)))
        return 0;
    return fsetxattr(to, name, old->ptr, old->len, 0) == 0 ? 0 : errno;
}

HFSBI_FN int hfsbi_attribute_list(int fd, hfsb_buf *out) {
    ssize_t n = flistxattr(fd, NULL, 0);
    if (n > 0) {
        if (hfsb_buf_reserve(out, (size_t)n) != HFSB_OK) return ENOMEM;
        n = flistxattr(fd, out->ptr, (size_t)n);
    }
    if (n < 0) return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : errno;
    if (n > 0) out->len = (size_t)n;
    return 0;
}

static int hfsbi_copy_attributes(int from, int to, const hfsb_alloc *alloc) {
    const char *acl = "system.posix_acl_access";
    hfsb_buf    names = HFSB_INIT, old = HFSB_INIT, now = HFSB_INIT;
    size_t      at = 0;
    bool        has_acl = false;
    int         code;
    names.alloc = old.alloc = now.alloc = *alloc;
    code = hfsbi_attribute_list(from, &names);
    while (code == 0 && at < names.len) {
        const char *name = names.ptr + at;
        code = hfsbi_attribute_copy(from, to, name, &old, &now);
        if (strcmp(name, acl) == 0) has_acl = true;
        at += strlen(name) + 1;
    }
    /* A default ACL of the directory goes to every new file in it. */
    if (code == 0 && !has_acl) (void)fremovexattr(to, acl);
    hfsb_buf_free(&names);
    hfsb_buf_free(&old);
    hfsb_buf_free(&now);
    return code;
}

#else
static int hfsbi_copy_attributes(int from, int to, const hfsb_alloc *alloc) {
    (void)from;
    (void)to;
    (void)alloc;
    return 0;
}
#endif

HFSBI_FN bool hfsbi_set_mode(int fd, mode_t mode) {
    struct stat st;
    int         rc = 0;
    if (fstat(fd, &st) != 0) return false;
    if ((st.st_mode & 07777) == mode) return true;
    do rc = fchmod(fd, mode);
    while (rc != 0 && errno == EINTR);
    return rc == 0;
}

/* ---- rewriting in place ----

   UNTOUCHED --first byte written--> CHANGED --failure--> RESTORED
                                                     \--> SPOILT

   Everything that can fail is tried before the first byte is written: the old
   bytes are copied, room for the new ones is reserved. */

typedef enum hfsbi_rewrite_state {
    HFSBI_REWRITE_UNTOUCHED,
    HFSBI_REWRITE_CHANGED,
    HFSBI_REWRITE_RESTORED,
    HFSBI_REWRITE_SPOILT /* the old bytes could not be restored */
} hfsbi_rewrite_state;

typedef struct hfsbi_rewrite {
    int                 fd;     /* the file, for reading and writing */
    int                 source; /* the new content */
    unsigned long long  bytes;  /* ... and its length */
    mode_t              mode;   /* permission bits it will have */
    bool                no_sync;
    hfsbi_rewrite_state state;
} hfsbi_rewrite;

HFSBI_FN bool hfsbi_pwrite_all(int fd, hfsb_str s, off_t at) {
    while (s.len > 0) {
        ssize_t n = pwrite(fd, s.ptr, s.len, at);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO;
        if (n <= 0) return false;
        s = hfsb_str_slice(s, (size_t)n, s.len);
        at += n;
    }
    return true;
}

HFSBI_FN bool hfsbi_set_size(int fd, off_t size) {
    int rc;
    do rc = ftruncate(fd, size);
    while (rc != 0 && errno == EINTR);
    return rc == 0;
}

/* Copies all of one file over the start of another; *total is its length.
   False with errno. */
static bool hfsbi_copy_bytes(int from, int to, off_t *total) {
    char piece[16384];
    *total = 0;
    for (;;) {
        ssize_t n = pread(from, piece, sizeof piece, *total);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0;
        if (!hfsbi_pwrite_all(to, hfsb_str_make(piece, (size_t)n), *total))
            return false;
        *total += n;
    }
}

/* Gives the file the content of another one; false with errno. */
static bool hfsbi_copy_content(int from, int to, bool sync) {
    off_t total;
    return hfsbi_copy_bytes(from, to, &total) && hfsbi_set_size(to, total) &&
           (!sync || hfsbi_sync(to));
}

/* False with errno when the bytes are known not to fit. */
static bool hfsbi_reserve_space(int fd, off_t bytes) {
#ifdef HFSBI_LINUX
    int rc;
    if (bytes == 0) return true;
    do rc = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, bytes);
    while (rc != 0 && errno == EINTR);
    return rc == 0 || (errno != ENOSPC && errno != EDQUOT && errno != EFBIG);
#else
    (void)fd;
    (void)bytes;
    return true;
#endif
}

/* Does everything that can be done before the first byte changes; false with
   errno. */
static bool hfsbi_rewrite_prepare(const hfsbi_rewrite *r, int backup,
                                  const struct stat *old) {
    struct stat now;
    off_t       total;
    int         code;
    if (!hfsbi_copy_bytes(r->fd, backup, &total)) return false;
    if (hfsbi_reserve_space(r->fd, (off_t)r->bytes))
        return hfsbi_set_mode(r->fd, r->mode);
    code = errno; /* give back the part that was reserved */
    if (fstat(r->fd, &now) == 0 && now.st_blocks > old->st_blocks)
        (void)hfsbi_set_size(r->fd, old->st_size);
    errno = code;
    return false;
}

static int hfsbi_rewrite_run(hfsbi_rewrite *r) {
    hfsbi_signal_guard guard;
    struct stat        old;
    int                code = 0, backup = hfsbi_unnamed_file(NULL);
    if (backup < 0) return errno;
    hfsbi_signal_guard_begin(&guard);
    if (fstat(r->fd, &old) != 0 || !hfsbi_rewrite_prepare(r, backup, &old)) {
        code = errno;
    } else if (hfsbi_copy_content(r->source, r->fd, !r->no_sync)) {
        r->state = HFSBI_REWRITE_CHANGED;
        (void)hfsbi_set_mode(r->fd, r->mode); /* writing drops setuid */
    } else {
        code = errno;
        r->state = hfsbi_copy_content(backup, r->fd, true)
                       ? HFSBI_REWRITE_RESTORED
                       : HFSBI_REWRITE_SPOILT;
        (void)hfsbi_set_mode(r->fd, old.st_mode & 07777);
    }
    hfsbi_signal_guard_end(&guard);
    hfsbi_close(&backup);
    return code;
}

/* ---- the writer ---- */

struct hfsb_file_writer {
    const hfsb_root     *root;
    hfsb_alloc           alloc;
    hfsb_buf             path; /* as given */
    hfsbi_target         target;
    bool                 had_old; /* there was a file, */
    struct stat          old;     /* and this is its latest stat */
    hfsb_file_write_opts opts;    /* its views and pointers are not kept ... */
    hfsb_file_info       same;    /* ... but here */
    char                 sha256[HFSB_SHA256_HEX]; /* "": no condition */
    int                  fd;                      /* the new bytes */
    char                 temp[HFSBI_NAME_SIZE];   /* its name; "": none */
    long long            swept;                   /* hfsbi_sweep_begin() */
    hfsbi_lock           lock;
    bool                 in_place;
    unsigned long long   bytes;
    hfsb_err             err; /* why append and commit are refused: the first
                                 failure, or that it is committed */
};

static hfsb_str hfsbi_writer_path(const hfsb_file_writer *w) {
    return hfsb_buf_str(&w->path);
}

static hfsb_status hfsbi_writer_fail(hfsb_file_writer *w, int code) {
    return hfsbi_file_fail_os(w->root, hfsbi_writer_path(w), code, "write",
                              &w->err);
}

static hfsb_status hfsbi_writer_fail_exists(hfsb_file_writer *w) {
    return hfsbi_file_fail(&w->err, HFSB_EXISTS, "File exists already",
                           hfsbi_writer_path(w));
}

/* Checks the caller's conditions, except those on the content, against the
   latest stat of the target. */
static hfsb_status hfsbi_writer_check_stat(hfsb_file_writer *w) {
    hfsb_str path = hfsbi_writer_path(w);
    bool     needs_file =
        w->opts.if_same || w->sha256[0] || w->opts.if_content.ptr;
    hfsb_status st;
    if (!w->target.exists)
        return needs_file ? hfsbi_writer_fail(w, ENOENT) : HFSB_OK;
    st = hfsbi_check_regular(path, w->target.st.st_mode, &w->err);
    if (st != HFSB_OK) return st;
    if (w->opts.create) return hfsbi_writer_fail_exists(w);
    if (w->opts.if_same)
        st = hfsbi_check_same(path, &w->target.st, &w->same, &w->err);
    return st;
}

/* ---- the writer: open ---- */

static hfsb_status hfsbi_writer_take_opts(hfsb_file_writer           *w,
                                          const hfsb_file_write_opts *opts) {
    size_t i;
    if (!opts) return HFSB_OK;
    w->opts = *opts;
    if (opts->if_same) w->same = *opts->if_same;
    if (opts->if_sha256.len == 0) return HFSB_OK;
    for (i = 0; i < opts->if_sha256.len && i + 1 < sizeof w->sha256; i++) {
        char c = hfsbi_lower(opts->if_sha256.ptr[i]);
        if (hfsbi_hex_digit(c) < 0) break;
        w->sha256[i] = c;
    }
    if (i == opts->if_sha256.len && i + 1 == sizeof w->sha256) return HFSB_OK;
    hfsbi_fail(&w->err, HFSB_ARG, 0,
               "A sha256 is 64 hexadecimal digits, not \"");
    hfsbi_err_quote(&w->err, opts->if_sha256, 80);
    hfsbi_err_add(&w->err, "\".");
    return HFSB_ARG;
}

/* A rename needs no permission to write the file, but we require it: a
   read-only file is not changed. */
static int hfsbi_check_writable(const hfsbi_target *target) {
    int rc = faccessat(target->dir, target->name, W_OK, AT_EACCESS);
    if (rc != 0 && (errno == EINVAL || errno == ENOSYS))
        rc = faccessat(target->dir, target->name, W_OK, 0);
    return rc == 0 ? 0 : errno;
}

/* Opens a file for the new bytes: next to the target or, when we may not write
   its directory, in $TMPDIR. */
static hfsb_status hfsbi_writer_open_temp(hfsb_file_writer *w) {
    bool   by_umask = !w->target.exists && w->opts.mode == 0;
    mode_t mode = by_umask ? 0666 : 0600; /* 0600 until the metadata is set */
    int    code =
        hfsbi_temp_open(w->target.dir, w->target.name, mode, w->temp, &w->fd);
    if ((code == EACCES || code == EPERM || code == EROFS) &&
        w->target.exists) {
        w->in_place = true;
        w->fd = hfsbi_unnamed_file(NULL);
        code = w->fd < 0 ? errno : 0;
    }
    return code == 0 ? HFSB_OK : hfsbi_writer_fail(w, code);
}

static hfsb_status hfsbi_writer_start(hfsb_file_writer *w, hfsb_str path,
                                      const hfsb_file_write_opts *opts) {
    unsigned    how = HFSBI_RESOLVE_PARENTS;
    int         code;
    hfsb_status st = hfsbi_writer_take_opts(w, opts);
    if (st != HFSB_OK) return st;
    if (hfsb_buf_append(&w->path, path) != HFSB_OK)
        return hfsbi_fail_status(&w->err, HFSB_NOMEM, "Writer of a file");
    if (w->root && w->root->far) { /* the commit does the rest */
        st = hfsbi_check_path(path, &w->err);
        if (st != HFSB_OK) return st;
        w->fd = hfsbi_unnamed_file(NULL);
        return w->fd < 0 ? hfsbi_writer_fail(w, errno) : HFSB_OK;
    }
    /* The directories of a file that must exist are there already. */
    if (w->opts.no_parents || w->opts.if_same || w->sha256[0] ||
        w->opts.if_content.ptr)
        how = 0;
    if (w->opts.no_sync) how |= HFSBI_RESOLVE_NO_SYNC;
    st = hfsbi_resolve(w->root, path, how, "write", &w->target, &w->err);
    if (st == HFSB_OK) st = hfsbi_writer_check_stat(w);
    if (st != HFSB_OK) return st;
    if (w->target.exists) {
        code = hfsbi_check_writable(&w->target);
        if (code != 0) return hfsbi_writer_fail(w, code);
        w->had_old = true;
        w->old = w->target.st;
    }
    w->swept = hfsbi_sweep_begin(w->root, w->target.dir);
    return hfsbi_writer_open_temp(w);
}

/* ---- the writer: commit ---- */

/* Updates the stat of the target. The metadata of a file that vanished is
   kept. */
static hfsb_status hfsbi_writer_stat(hfsb_file_writer *w) {
    int code = hfsbi_target_stat(&w->target);
    if (code != 0) return hfsbi_writer_fail(w, code);
    if (!w->target.exists) return HFSB_OK;
    w->had_old = true;
    w->old = w->target.st;
    if (w->old.st_nlink > 1) w->in_place = true;
    return hfsbi_check_regular(hfsbi_writer_path(w), w->old.st_mode, &w->err);
}

static mode_t hfsbi_writer_mode(const hfsb_file_writer *w) {
    return (mode_t)(w->opts.mode ? w->opts.mode & 07777u
                                 : w->old.st_mode & 07777u);
}

static int hfsbi_writer_copy_attributes(hfsb_file_writer *w) {
    int code, fd;
    if (!w->target.exists) return 0;
    fd = hfsbi_target_open_any(&w->target);
    if (fd < 0) return errno;
    code = hfsbi_copy_attributes(fd, w->fd, &w->alloc);
    hfsbi_close(&fd);
    return code;
}

/* Copies owner, attributes and mode to the temporary, in this order: a change
   of owner drops setuid, and an attribute (an ACL) may change the mode. */
static int hfsbi_writer_copy_metadata(hfsb_file_writer *w) {
    struct stat now;
    int         code;
    if (w->had_old) {
        if (fstat(w->fd, &now) != 0) return errno;
        if ((now.st_uid != w->old.st_uid || now.st_gid != w->old.st_gid) &&
            fchown(w->fd, w->old.st_uid, w->old.st_gid) != 0)
            return errno;
        code = hfsbi_writer_copy_attributes(w);
        if (code != 0) return code;
    }
    if (!w->had_old && w->opts.mode == 0) return 0;
    return hfsbi_set_mode(w->fd, hfsbi_writer_mode(w)) ? 0 : errno;
}

HFSBI_FN int hfsbi_rename_new(int from_dir, const char *from, int to_dir,
                              const char *to) {
    struct stat st;
    int         code;
#if defined(HFSBI_LINUX) && defined(SYS_renameat2)
    const unsigned no_replace = 1; /* RENAME_NOREPLACE */
    if (syscall(SYS_renameat2, from_dir, from, to_dir, to, no_replace) == 0)
        return 0;
    if (errno != ENOSYS && errno != EINVAL && errno != EPERM) return errno;
#endif
    if (linkat(from_dir, from, to_dir, to, 0) == 0) {
        code = hfsbi_unlinkat(from_dir, from, 0);
        if (code != 0 && hfsbi_unlinkat(to_dir, to, 0) != 0) code = 0;
        return code;
    }
    if (errno == EEXIST) return EEXIST;
    /* A folder, or a file system without hard links: check first, under our
       lock. */
    if (fstatat(to_dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
    return renameat(from_dir, from, to_dir, to) == 0 ? 0 : errno;
}

/* Renames the temporary over the target, or sets in_place where that is not
   possible. */
static hfsb_status hfsbi_writer_rename(hfsb_file_writer *w) {
    int code, dir = w->target.dir;
    if (w->opts.create)
        code = hfsbi_rename_new(dir, w->temp, dir, w->target.name);
    else code = renameat(dir, w->temp, dir, w->target.name) == 0 ? 0 : errno;
    if (code == 0) {
        w->temp[0] = '\0';
        /* the temporary's lock is now one on the file */
        (void)flock(w->fd, LOCK_UN);
        return HFSB_OK;
    }
    if (code == EEXIST && w->opts.create) return hfsbi_writer_fail_exists(w);
    w->in_place = w->target.exists && (code == EBUSY || code == EXDEV ||
                                       code == EPERM || code == EACCES);
    return w->in_place ? HFSB_OK : hfsbi_writer_fail(w, code);
}

/* Opens the target; ESTALE when it is not the file of the latest stat. */
static int hfsbi_writer_open_target(hfsb_file_writer *w, int *fd) {
    const int   flags = O_RDWR | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    struct stat st;
    *fd = hfsbi_openat(w->target.dir, w->target.name, flags, 0);
    if (*fd < 0 || fstat(*fd, &st) != 0) return errno;
    return st.st_dev == w->target.st.st_dev && st.st_ino == w->target.st.st_ino
               ? 0
               : ESTALE;
}

static hfsb_status hfsbi_writer_rewrite(hfsb_file_writer *w) {
    hfsbi_rewrite r = HFSB_INIT;
    int           code;
    r.source = w->fd;
    r.bytes = w->bytes;
    r.mode = hfsbi_writer_mode(w);
    r.no_sync = w->opts.no_sync;
    code = hfsbi_writer_open_target(w, &r.fd);
    if (code == 0) code = hfsbi_rewrite_run(&r);
    if (code != 0) {
        hfsbi_close(&r.fd);
        hfsbi_writer_fail(w, code);
        if (r.state == HFSBI_REWRITE_SPOILT)
            hfsbi_err_add(&w->err, "; it was being rewritten in place, and "
                                   "its old content could not be put back");
        else if (r.state == HFSBI_REWRITE_RESTORED)
            hfsbi_err_add(&w->err, " (the old content was put back)");
        return w->err.code;
    }
    hfsbi_close(&w->fd); /* from here on fd is the file itself */
    w->fd = r.fd;
    return HFSB_OK;
}

/* Locks out other writers, then checks the conditions. */
static hfsb_status hfsbi_writer_lock(hfsb_file_writer *w, bool file) {
    int         code = hfsbi_lock_target(&w->target, file, &w->lock);
    hfsb_status st;
    if (code != 0)
        return hfsbi_lock_fail(w->root, hfsbi_writer_path(w), code, "write",
                               &w->err);
    st = hfsbi_writer_stat(w);
    if (st == HFSB_OK) st = hfsbi_writer_check_stat(w);
    if (st == HFSB_OK && w->sha256[0])
        st = hfsbi_check_sha256(w->root, hfsbi_writer_path(w), &w->target,
                                w->sha256, &w->err);
    if (st == HFSB_OK && w->opts.if_content.ptr)
        st = hfsbi_check_content(w->root, hfsbi_writer_path(w), &w->target,
                                 w->opts.if_content, &w->err);
    return st;
}

static hfsb_status hfsbi_writer_replace(hfsb_file_writer *w) {
    hfsb_status st = hfsbi_writer_lock(w, false);
    if (st == HFSB_OK && !w->in_place) st = hfsbi_writer_rename(w);
    if (st == HFSB_OK && w->in_place) st = hfsbi_writer_lock(w, true);
    if (st != HFSB_OK || !w->in_place) return st;
    return w->target.exists ? hfsbi_writer_rewrite(w)
                            : hfsbi_writer_fail(w, ENOENT);
}

/* Sends the new bytes to the machine that has the file. */
static hfsb_status hfsbi_writer_commit_far(hfsb_file_writer  *w,
                                           hfsb_file_written *written) {
    const hfsbi_far     *far = w->root->far;
    hfsb_file_write_opts opts = w->opts;
    hfsb_str             path = hfsbi_writer_path(w);
    opts.if_sha256 = hfsb_cstr(w->sha256);
    if (opts.if_same) opts.if_same = &w->same;
    return far->write(far->user, path, w->fd, w->bytes, &opts, written,
                      &w->err);
}

static hfsb_status hfsbi_writer_commit(hfsb_file_writer *w) {
    hfsb_status st = hfsbi_writer_stat(w);
    int         code = 0;
    if (st != HFSB_OK) return st;
    if (!w->in_place) code = hfsbi_writer_copy_metadata(w);
    if (code == ENOMEM || (code != 0 && !w->target.exists))
        return hfsbi_writer_fail(w, code);
    if (code != 0) w->in_place = true;
    if (!w->opts.no_sync && !hfsbi_sync(w->fd))
        return hfsbi_writer_fail(w, errno);
    st = hfsbi_writer_replace(w);
    hfsbi_unlock(&w->lock);
    if (st == HFSB_OK && !w->in_place && !w->opts.no_sync)
        hfsbi_sync_dir(w->target.dir);
    return st;
}

/* ---- public ---- */

hfsb_status hfsb_file_write(const hfsb_root *root, hfsb_str path,
                            hfsb_str content, const hfsb_file_write_opts *opts,
                            hfsb_file_written *written, hfsb_err *err) {
    hfsb_file_writer *w;
    hfsb_status       st = hfsb_file_writer_open(root, path, opts, &w, err);
    if (st != HFSB_OK) return st;
    st = hfsb_file_writer_append(w, content, err);
    if (st == HFSB_OK) st = hfsb_file_writer_commit(w, written, err);
    hfsb_file_writer_close(w);
    return st;
}

hfsb_status hfsb_file_writer_open(const hfsb_root *root, hfsb_str path,
                                  const hfsb_file_write_opts *opts,
                                  hfsb_file_writer **out, hfsb_err *err) {
    hfsb_alloc        alloc = hfsbi_root_alloc(root);
    hfsb_file_writer *w;
    hfsb_status       st;
    *out = NULL;
    w = (hfsb_file_writer *)hfsbi_array(&alloc, 1, sizeof *w);
    if (!w) return hfsbi_fail_status(err, HFSB_NOMEM, "Writer of a file");
    memset(w, 0, sizeof *w);
    w->root = root;
    w->alloc = w->path.alloc = alloc;
    w->fd = w->target.dir = w->lock.dir = w->lock.file = -1;
    st = hfsbi_writer_start(w, path, opts);
    if (st != HFSB_OK) {
        if (err) *err = w->err;
        hfsb_file_writer_close(w);
        return st;
    }
    *out = w;
    return hfsbi_ok(err);
}

hfsb_status hfsb_file_writer_append(hfsb_file_writer *writer, hfsb_str piece,
                                    hfsb_err *err) {
    if (writer->err.code == HFSB_OK) {
        if (hfsbi_write_all(writer->fd, piece)) {
            writer->bytes += piece.len;
            return hfsbi_ok(err);
        }
        hfsbi_writer_fail(writer, errno);
    }
    if (err) *err = writer->err;
    return writer->err.code;
}

hfsb_status hfsb_file_writer_commit(hfsb_file_writer  *writer,
                                    hfsb_file_written *written,
                                    hfsb_err          *err) {
    hfsb_file_writer *w = writer;
    bool              far = w->root && w->root->far;
    struct stat       st;
    if (w->err.code != HFSB_OK ||
        (far ? hfsbi_writer_commit_far(w, written)
             : hfsbi_writer_commit(w)) != HFSB_OK) {
        if (err) *err = w->err;
        return w->err.code;
    }
    if (written && !far) {
        memset(written, 0, sizeof *written);
        written->bytes = w->bytes;
        written->created = !w->target.exists;
        written->in_place = w->in_place;
        if (fstat(w->fd, &st) == 0) hfsbi_file_info_fill(&written->info, &st);
    }
    hfsbi_fail(&w->err, HFSB_ARG, 0,
               "Writer already committed; only close() is allowed.");
    return hfsbi_ok(err);
}

void hfsb_file_writer_close(hfsb_file_writer *writer) {
    hfsb_alloc alloc;
    if (!writer) return;
    alloc = writer->alloc;
    if (writer->temp[0]) hfsbi_temp_remove(writer->target.dir, writer->temp);
    hfsbi_sweep_end(writer->root, writer->target.dir, writer->swept);
    hfsbi_close(&writer->fd);
    hfsbi_target_close(&writer->target);
    hfsb_buf_free(&writer->path);
    hfsbi_array_free(&alloc, writer, 1, sizeof *writer);
}

/* ---- remove ---- */

/* `same` describes the file that a reader of path sees: for a symlink the file
   it leads to. A symlink has no content of its own to compare. */
static hfsb_status hfsbi_remove_check(const hfsb_root *root, hfsb_str path,
                                      hfsbi_target *target, const char *sha256,
                                      const hfsb_file_info *same,
                                      hfsb_err             *err) {
    hfsb_file_info now;
    hfsb_status    st;
    if (S_ISLNK(target->st.st_mode)) {
        if (!same) return HFSB_OK;
        st = hfsb_file_stat(root, path, &now, err);
        if (st == HFSB_OK && !hfsbi_same_info(&now, same))
            st = hfsbi_fail_changed(path, err);
        return st;
    }
    st = hfsbi_check_regular(path, target->st.st_mode, err);
    if (st == HFSB_OK && same)
        st = hfsbi_check_same(path, &target->st, same, err);
    if (st != HFSB_OK || !sha256) return st;
    return hfsbi_check_sha256(root, path, target, sha256, err);
}

/* Called under the lock. */
static hfsb_status hfsbi_remove_target(const hfsb_root *root, hfsb_str path,
                                       hfsbi_target         *target,
                                       const char           *sha256,
                                       const hfsb_file_info *same,
                                       hfsb_err             *err) {
    hfsb_status st;
    int         code = hfsbi_target_stat(target);
    if (code == 0 && !target->exists) code = ENOENT;
    if (code != 0) return hfsbi_file_fail_os(root, path, code, "remove", err);
    st = hfsbi_remove_check(root, path, target, sha256, same, err);
    if (st != HFSB_OK) return st;
    code = hfsbi_unlinkat(target->dir, target->name, 0);
    if (code == 0) return hfsbi_ok(err);
    return hfsbi_file_fail_os(root, path, code, "remove", err);
}

HFSBI_FN hfsb_status hfsbi_file_remove_if(const hfsb_root *root, hfsb_str path,
                                          const char           *sha256,
                                          const hfsb_file_info *same,
                                          hfsb_err             *err) {
    hfsbi_target target;
    hfsbi_lock   lock = {-1, -1};
    int          code;
    hfsb_status  st;
    if (root && root->far) {
        st = hfsbi_check_path(path, err);
        if (st != HFSB_OK) return st;
        return root->far->remove(root->far->user, path, sha256, err);
    }
    st = hfsbi_resolve(root, path, HFSBI_RESOLVE_NO_FOLLOW, "remove", &target,
                       err);
    if (st != HFSB_OK) return st;
    code = hfsbi_lock_target(&target, false, &lock);
    st = code == 0
             ? hfsbi_remove_target(root, path, &target, sha256, same, err)
             : hfsbi_lock_fail(root, path, code, "remove", err);
    hfsbi_unlock(&lock);
    hfsbi_target_close(&target);
    return st;
}

hfsb_status hfsb_file_remove(const hfsb_root *root, hfsb_str path,
                             hfsb_err *err) {
    return hfsbi_file_remove_if(root, path, NULL, NULL, err);
}
