/* file_write.c - write files whole or not at all. */
#include "os_private.h"

typedef struct hfsbi_rewriting {
    int                fd;    /* the file, for reading and writing */
    int                spool; /* the new content */
    unsigned long long bytes; /* ... and its length */
    mode_t             mode;  /* permission bits it shall have */
    bool               no_sync;
    bool               begun;  /* out: it failed on the way ... */
    bool               spoilt; /* ... and the old content is not back */
} hfsbi_rewriting;

static void hfsbi_temp_remove(int dir, const char *temp);

static bool hfsbi_try_lock(int fd);

/* ==== file temp ==== */

/* temporary files beside the file they will become. */

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

/* Makes one beside `name`, with a lock on it as a sign of life; its name goes
   to temp. 0 or an errno. */
static int hfsbi_temp_open(int dir, const char *name, mode_t mode,
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

static void hfsbi_temp_remove(int dir, const char *temp) {
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

/* Removes those of processes that died. */
static void hfsbi_temp_sweep(int dir) {
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

/* ==== file lock ==== */

/* keep other writers out while a file is checked and replaced.

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

/* One try: false when another descriptor holds the lock on the file of fd. */
static bool hfsbi_try_lock(int fd) {
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

/* ==== file rewrite ==== */

/* new content for a file that must stay the same file. */

/* ---- extended attributes ---- */

#ifdef HFSBI_LINUX

/* The value of an attribute; an errno. */
static int hfsbi_attribute(int fd, const char *name, hfsb_buf *out) {
    ssize_t n = fgetxattr(fd, name, NULL, 0);
    if (n < 0) return errno;
    hfsb_buf_truncate(out, 0);
    if (hfsb_buf_reserve(out, (size_t)n) != HFSB_OK) return ENOMEM;
    n = fgetxattr(fd, name, out->ptr, (size_t)n);
    if (n < 0) return errno;
    out->len = (size_t)n;
    return 0;
}

/* Sets only what differs: the system gives some to every new file (labels),
   and those cannot be set by everyone. */
static int hfsbi_copy_attribute(int from, int to, const char *name,
                                hfsb_buf *old, hfsb_buf *now) {
    int code = hfsbi_attribute(from, name, old);
    if (code != 0) return code;
    code = hfsbi_attribute(to, name, now);
    if (code == ENOMEM) return code;
    if (code == 0 && hfsb_str_equal(hfsb_buf_str(old), hfsb_buf_str(now)))
        return 0;
    return fsetxattr(to, name, old->ptr, old->len, 0) == 0 ? 0 : errno;
}

static int hfsbi_attribute_names(int fd, hfsb_buf *out) {
    ssize_t n = flistxattr(fd, NULL, 0);
    if (n > 0) {
        if (hfsb_buf_reserve(out, (size_t)n) != HFSB_OK) return ENOMEM;
        n = flistxattr(fd, out->ptr, (size_t)n);
    }
    if (n < 0) return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : errno;
    if (n > 0) out->len = (size_t)n;
    return 0;
}

/* Extended attributes of one file to another, so that both have the same.
   0 or an errno. */
static int hfsbi_copy_attributes(int from, int to, const hfsb_alloc *alloc) {
    const char *acl = "system.posix_acl_access";
    hfsb_buf    names = HFSB_INIT, old = HFSB_INIT, now = HFSB_INIT;
    size_t      at = 0;
    bool        has_acl = false;
    int         code;
    names.alloc = old.alloc = now.alloc = *alloc;
    code = hfsbi_attribute_names(from, &names);
    while (code == 0 && at < names.len) {
        const char *name = names.ptr + at;
        code = hfsbi_copy_attribute(from, to, name, &old, &now);
        if (strcmp(name, acl) == 0) has_acl = true;
        at += strlen(name) + 1;
    }
    /* what the directory gives to new files */
    if (code == 0 && !has_acl) (void)fremovexattr(to, acl);
    hfsb_buf_free(&names);
    hfsb_buf_free(&old);
    hfsb_buf_free(&now);
    return code;
}

#else
HFSBI_FN int hfsbi_copy_attributes(int from, int to, const hfsb_alloc *alloc) {
    (void)from;
    (void)to;
    (void)alloc;
    return 0;
}
#endif

/* ---- content ---- */

static bool hfsbi_pwrite_all(int fd, hfsb_str s, off_t at) {
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

/* All of one file over the start of another; false with errno. *total is what
   was copied, also then. */
static bool hfsbi_copy_all(int from, int to, off_t *total) {
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

static bool hfsbi_cut_file(int fd, off_t size) {
    int rc;
    do rc = ftruncate(fd, size);
    while (rc != 0 && errno == EINTR);
    return rc == 0;
}

/* False with errno when it is known that the bytes will not fit. */
static bool hfsbi_make_room(int fd, off_t bytes) {
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

/* Gives the file these permission bits unless it has them; false with
   errno. */
static bool hfsbi_set_mode(int fd, mode_t mode) {
    struct stat st;
    if (fstat(fd, &st) != 0) return false;
    return (st.st_mode & 07777) == mode || fchmod(fd, mode) == 0;
}

static bool hfsbi_rewrite_content(const hfsbi_rewriting *r) {
    off_t total;
    return hfsbi_copy_all(r->spool, r->fd, &total) &&
           hfsbi_cut_file(r->fd, total) && (r->no_sync || hfsbi_sync(r->fd));
}

/* All that can be done before the first byte changes; false with errno. */
static bool hfsbi_rewrite_prepare(const hfsbi_rewriting *r, int backup,
                                  const struct stat *old) {
    struct stat now;
    off_t       total;
    int         code;
    if (!hfsbi_copy_all(r->fd, backup, &total)) return false;
    if (hfsbi_make_room(r->fd, (off_t)r->bytes))
        return hfsbi_set_mode(r->fd, r->mode);
    code = errno; /* and what room there was is given back */
    if (fstat(r->fd, &now) == 0 && now.st_blocks > old->st_blocks)
        (void)hfsbi_cut_file(r->fd, old->st_size);
    errno = code;
    return false;
}

/* 0, or an errno with the old content put back unless `spoilt`. */
static int hfsbi_rewrite(hfsbi_rewriting *r) {
    hfsbi_signal_guard guard;
    struct stat        old;
    off_t              total;
    int                code = 0, backup = hfsbi_unnamed_file(NULL);
    if (backup < 0) return errno;
    hfsbi_signal_guard_begin(&guard);
    if (fstat(r->fd, &old) != 0 || !hfsbi_rewrite_prepare(r, backup, &old)) {
        code = errno;
    } else if (!hfsbi_rewrite_content(r)) {
        code = errno;
        r->begun = true;
        r->spoilt = !hfsbi_copy_all(backup, r->fd, &total) ||
                    !hfsbi_cut_file(r->fd, total) || !hfsbi_sync(r->fd);
        (void)hfsbi_set_mode(r->fd, old.st_mode & 07777);
    } else { /* writing takes the setuid bit away */
        (void)hfsbi_set_mode(r->fd, r->mode);
    }
    hfsbi_signal_guard_end(&guard);
    hfsbi_close(&backup);
    return code;
}

struct hfsb_file_writer {
    const hfsb_place    *place;
    hfsb_alloc           alloc;
    hfsb_buf             path; /* as given */
    hfsbi_spot           spot;
    bool                 had_old; /* there was a file, */
    struct stat          old;     /* and this is what it was last seen as */
    hfsb_file_write_opts opts;    /* its views and pointers are not kept ... */
    hfsb_file_info       same;    /* ... but here */
    char                 sha256[HFSB_SHA256_HEX]; /* "": no matter */
    int                  fd;                      /* the new bytes */
    char                 temp[HFSBI_NAME_SIZE];   /* its name; "": none */
    hfsbi_lock           lock;
    bool                 in_place;
    bool                 done;
    unsigned long long   bytes;
    hfsb_err             err; /* what went wrong, for good */
};

static hfsb_str hfsbi_writer_path(const hfsb_file_writer *w) {
    return hfsb_buf_str(&w->path);
}

static hfsb_status hfsbi_writer_os(hfsb_file_writer *w, int code) {
    return hfsbi_path_fail(w->place, hfsbi_writer_path(w), code, "write",
                           &w->err);
}

/* ---- conditions ---- */

static bool hfsbi_same_info(const hfsb_file_info *a, const hfsb_file_info *b) {
    return a->device == b->device && a->inode == b->inode &&
           a->size == b->size && a->changed == b->changed &&
           a->changed_nanos == b->changed_nanos;
}

/* What the caller asked for, of the spot as it was looked at last. */
static hfsb_status hfsbi_writer_check(hfsb_file_writer *w) {
    hfsb_file_info now;
    hfsb_status    st;
    bool           wanted = w->opts.if_same || w->sha256[0];
    if (!w->spot.exists) return wanted ? hfsbi_writer_os(w, ENOENT) : HFSB_OK;
    st = hfsbi_path_regular(hfsbi_writer_path(w), w->spot.st.st_mode, &w->err);
    if (st != HFSB_OK) return st;
    if (w->opts.create)
        return hfsbi_path_say(&w->err, HFSB_REFUSED, "File exists already",
                              hfsbi_writer_path(w));
    hfsbi_file_info_fill(&now, &w->spot.st);
    if (w->opts.if_same && !hfsbi_same_info(&now, &w->same))
        return hfsbi_path_changed(hfsbi_writer_path(w), &w->err);
    if (!w->sha256[0]) return HFSB_OK;
    return hfsbi_spot_check_sha256(w->place, hfsbi_writer_path(w), &w->spot,
                                   w->sha256, &w->err);
}

/* ---- opening ---- */

static hfsb_status hfsbi_writer_take_opts(hfsb_file_writer           *w,
                                          const hfsb_file_write_opts *opts) {
    size_t i;
    if (!opts) return HFSB_OK;
    w->opts = *opts;
    if (opts->if_same) w->same = *opts->if_same;
    if (opts->if_sha256.len == 0) return HFSB_OK;
    for (i = 0; i < opts->if_sha256.len && i + 1 < sizeof w->sha256; i++) {
        char c = hfsbi_lower(opts->if_sha256.ptr[i]);
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) break;
        w->sha256[i] = c;
    }
    if (i == opts->if_sha256.len && i + 1 == sizeof w->sha256) return HFSB_OK;
    hfsbi_fail(&w->err, HFSB_ARG, 0,
               "A sha256 is 64 hexadecimal digits, not \"");
    hfsbi_err_quote(&w->err, opts->if_sha256, 80);
    hfsbi_err_add(&w->err, "\".");
    return HFSB_ARG;
}

/* An errno when the file may not be written, even where its directory would
   let us replace it. */
static int hfsbi_writer_permission(const hfsbi_spot *spot) {
    int rc = faccessat(spot->dir, spot->name, W_OK, AT_EACCESS);
    if (rc != 0 && (errno == EINVAL || errno == ENOSYS))
        rc = faccessat(spot->dir, spot->name, W_OK, 0);
    return rc == 0 ? 0 : errno;
}

/* Somewhere for the new bytes: beside the file, or when the directory is not
   ours to write, where temporary files are. */
static hfsb_status hfsbi_writer_spool(hfsb_file_writer *w) {
    bool   fresh = !w->spot.exists && w->opts.mode == 0;
    mode_t mode = fresh ? 0666 : 0600; /* the umask decides, or we later */
    int    code =
        hfsbi_temp_open(w->spot.dir, w->spot.name, mode, w->temp, &w->fd);
    if ((code == EACCES || code == EPERM || code == EROFS) && w->spot.exists) {
        w->in_place = true;
        w->fd = hfsbi_unnamed_file(NULL);
        code = w->fd < 0 ? errno : 0;
    }
    return code == 0 ? HFSB_OK : hfsbi_writer_os(w, code);
}

static hfsb_status hfsbi_writer_start(hfsb_file_writer *w, hfsb_str path,
                                      const hfsb_file_write_opts *opts) {
    unsigned    how = HFSBI_SPOT_PARENTS;
    int         code;
    hfsb_status st = hfsbi_writer_take_opts(w, opts);
    if (st == HFSB_OK && hfsb_buf_append(&w->path, path) != HFSB_OK)
        st = hfsbi_fail_status(&w->err, HFSB_NOMEM, "Writer of a file");
    if (st != HFSB_OK) return st;
    /* a file that must be there has its directories */
    if (w->opts.no_parents || w->opts.if_same || w->sha256[0]) how = 0;
    if (w->opts.no_sync) how |= HFSBI_SPOT_NO_SYNC;
    st = hfsbi_spot_find(w->place, path, how, "write", &w->spot, &w->err);
    if (st == HFSB_OK) st = hfsbi_writer_check(w);
    if (st != HFSB_OK) return st;
    if (w->spot.exists) {
        code = hfsbi_writer_permission(&w->spot);
        if (code != 0) return hfsbi_writer_os(w, code);
        w->had_old = true;
        w->old = w->spot.st;
    }
    hfsbi_temp_sweep(w->spot.dir);
    return hfsbi_writer_spool(w);
}

/* ---- committing ---- */

/* The file as it is now; metadata of one that is gone is that of before. */
static hfsb_status hfsbi_writer_look(hfsb_file_writer *w) {
    int code = hfsbi_spot_look(&w->spot);
    if (code != 0) return hfsbi_writer_os(w, code);
    if (!w->spot.exists) return HFSB_OK;
    w->had_old = true;
    w->old = w->spot.st;
    if (w->old.st_nlink > 1) w->in_place = true;
    return hfsbi_path_regular(hfsbi_writer_path(w), w->old.st_mode, &w->err);
}

static mode_t hfsbi_writer_mode(const hfsb_file_writer *w) {
    return (mode_t)(w->opts.mode ? w->opts.mode & 07777u
                                 : w->old.st_mode & 07777u);
}

static int hfsbi_writer_attributes(hfsb_file_writer *w) {
    int code, fd;
    if (!w->spot.exists) return 0;
    fd = hfsbi_spot_open_any(&w->spot);
    if (fd < 0) return errno;
    code = hfsbi_copy_attributes(fd, w->fd, &w->alloc);
    hfsbi_close(&fd);
    return code;
}

/* Owner, attributes and mode, in this order: a change of owner takes the
   setuid bit, and an attribute may hold part of the mode. An errno. */
static int hfsbi_writer_dress(hfsb_file_writer *w) {
    struct stat now;
    int         code;
    if (w->had_old) {
        if (fstat(w->fd, &now) != 0) return errno;
        if ((now.st_uid != w->old.st_uid || now.st_gid != w->old.st_gid) &&
            fchown(w->fd, w->old.st_uid, w->old.st_gid) != 0)
            return errno;
        code = hfsbi_writer_attributes(w);
        if (code != 0) return code;
    }
    if (!w->had_old && w->opts.mode == 0) return 0;
    return hfsbi_set_mode(w->fd, hfsbi_writer_mode(w)) ? 0 : errno;
}

/* Gives the file its name unless that is taken; an errno. */
static int hfsbi_rename_new(int dir, const char *from, const char *to) {
    struct stat st;
#if defined(HFSBI_LINUX) && defined(SYS_renameat2)
    const unsigned no_replace = 1; /* RENAME_NOREPLACE */
    if (syscall(SYS_renameat2, dir, from, dir, to, no_replace) == 0) return 0;
    if (errno != ENOSYS && errno != EINVAL && errno != EPERM) return errno;
#endif
    if (linkat(dir, from, dir, to, 0) == 0) {
        hfsbi_temp_remove(dir, from);
        return 0;
    }
    if (errno == EEXIST) return EEXIST;
    /* No hard links here: all that is left is to look first. */
    if (fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
    return renameat(dir, from, dir, to) == 0 ? 0 : errno;
}

/* Puts the new file where the old one is, or says that this must be done in
   place. The temporary's own lock would keep out writers that lock the file
   itself. */
static hfsb_status hfsbi_writer_rename(hfsb_file_writer *w) {
    int code, dir = w->spot.dir;
    if (w->opts.create) code = hfsbi_rename_new(dir, w->temp, w->spot.name);
    else code = renameat(dir, w->temp, dir, w->spot.name) == 0 ? 0 : errno;
    if (code == 0) {
        w->temp[0] = '\0';
        (void)flock(w->fd, LOCK_UN);
        return HFSB_OK;
    }
    if (code == EEXIST && w->opts.create)
        return hfsbi_path_say(&w->err, HFSB_REFUSED, "File exists already",
                              hfsbi_writer_path(w));
    w->in_place = w->spot.exists && (code == EBUSY || code == EXDEV ||
                                     code == EPERM || code == EACCES);
    return w->in_place ? HFSB_OK : hfsbi_writer_os(w, code);
}

/* Opens the file that was looked at last, no other; an errno. */
static int hfsbi_writer_target(hfsb_file_writer *w, int *fd) {
    const int   flags = O_RDWR | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    struct stat st;
    *fd = hfsbi_openat(w->spot.dir, w->spot.name, flags, 0);
    if (*fd < 0 || fstat(*fd, &st) != 0) return errno;
    return st.st_dev == w->spot.st.st_dev && st.st_ino == w->spot.st.st_ino
               ? 0
               : ESTALE;
}

static hfsb_status hfsbi_writer_rewrite(hfsb_file_writer *w) {
    hfsbi_rewriting r = HFSB_INIT;
    int             code;
    r.spool = w->fd;
    r.bytes = w->bytes;
    r.mode = hfsbi_writer_mode(w);
    r.no_sync = w->opts.no_sync;
    code = hfsbi_writer_target(w, &r.fd);
    if (code == 0) code = hfsbi_rewrite(&r);
    if (code != 0) {
        hfsbi_close(&r.fd);
        hfsbi_writer_os(w, code);
        if (r.spoilt)
            hfsbi_err_add(&w->err, "; it was being rewritten in place, and "
                                   "its old content could not be put back");
        else if (r.begun)
            hfsbi_err_add(&w->err, " (the old content was put back)");
        return w->err.code;
    }
    hfsbi_close(&w->fd); /* from now on the file itself */
    w->fd = r.fd;
    return HFSB_OK;
}

/* Keeps other writers out, then looks whether the conditions hold. */
static hfsb_status hfsbi_writer_hold(hfsb_file_writer *w, bool file) {
    int         code = hfsbi_spot_lock(&w->spot, file, &w->lock);
    hfsb_status st;
    if (code != 0)
        return hfsbi_lock_fail(w->place, hfsbi_writer_path(w), code, "write",
                               &w->err);
    st = hfsbi_writer_look(w);
    return st == HFSB_OK ? hfsbi_writer_check(w) : st;
}

static hfsb_status hfsbi_writer_replace(hfsb_file_writer *w) {
    hfsb_status st = hfsbi_writer_hold(w, false);
    if (st == HFSB_OK && !w->in_place) st = hfsbi_writer_rename(w);
    if (st == HFSB_OK && w->in_place) st = hfsbi_writer_hold(w, true);
    if (st != HFSB_OK || !w->in_place) return st;
    return w->spot.exists ? hfsbi_writer_rewrite(w)
                          : hfsbi_writer_os(w, ENOENT);
}

static hfsb_status hfsbi_writer_finish(hfsb_file_writer *w) {
    hfsb_status st = hfsbi_writer_look(w);
    int         code = 0;
    if (st != HFSB_OK) return st;
    if (!w->in_place) code = hfsbi_writer_dress(w);
    if (code == ENOMEM || (code != 0 && !w->spot.exists))
        return hfsbi_writer_os(w, code);
    if (code != 0) w->in_place = true;
    if (!w->opts.no_sync && !hfsbi_sync(w->fd))
        return hfsbi_writer_os(w, errno);
    st = hfsbi_writer_replace(w);
    hfsbi_unlock(&w->lock);
    if (st == HFSB_OK && !w->in_place && !w->opts.no_sync)
        hfsbi_sync_dir(w->spot.dir);
    return st;
}

/* ---- public ---- */

hfsb_status hfsb_file_write(const hfsb_place *place, hfsb_str path,
                            hfsb_str content, const hfsb_file_write_opts *opts,
                            hfsb_file_written *written, hfsb_err *err) {
    hfsb_file_writer *w;
    hfsb_status       st = hfsb_file_writer_open(place, path, opts, &w, err);
    if (st != HFSB_OK) return st;
    st = hfsb_file_writer_append(w, content, err);
    if (st == HFSB_OK) st = hfsb_file_writer_commit(w, written, err);
    hfsb_file_writer_close(w);
    return st;
}

hfsb_status hfsb_file_writer_open(const hfsb_place *place, hfsb_str path,
                                  const hfsb_file_write_opts *opts,
                                  hfsb_file_writer **out, hfsb_err *err) {
    hfsb_alloc        alloc = hfsbi_place_alloc(place);
    hfsb_file_writer *w;
    hfsb_status       st;
    *out = NULL;
    w = (hfsb_file_writer *)hfsbi_array(&alloc, 1, sizeof *w);
    if (!w) return hfsbi_fail_status(err, HFSB_NOMEM, "Writer of a file");
    memset(w, 0, sizeof *w);
    w->place = place;
    w->alloc = w->path.alloc = alloc;
    w->fd = w->spot.dir = w->lock.dir = w->lock.file = -1;
    st = hfsbi_writer_start(w, path, opts);
    if (st != HFSB_OK) {
        if (err) *err = w->err;
        hfsb_file_writer_close(w);
        return st;
    }
    *out = w;
    return hfsbi_ok(err);
}

/* What a writer that is done or has failed says. */
static hfsb_status hfsbi_writer_end(hfsb_file_writer *w, hfsb_err *err) {
    if (w->done)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The file is written: only close() is left.");
    if (err) *err = w->err;
    return w->err.code;
}

hfsb_status hfsb_file_writer_append(hfsb_file_writer *writer, hfsb_str piece,
                                    hfsb_err *err) {
    if (!writer->done && writer->err.code == HFSB_OK) {
        if (hfsbi_write_all(writer->fd, piece)) {
            writer->bytes += piece.len;
            return hfsbi_ok(err);
        }
        hfsbi_writer_os(writer, errno);
    }
    return hfsbi_writer_end(writer, err);
}

hfsb_status hfsb_file_writer_commit(hfsb_file_writer  *writer,
                                    hfsb_file_written *written,
                                    hfsb_err          *err) {
    hfsb_file_writer *w = writer;
    struct stat       st;
    if (w->done || w->err.code != HFSB_OK || hfsbi_writer_finish(w) != HFSB_OK)
        return hfsbi_writer_end(w, err);
    w->done = true;
    if (written) {
        memset(written, 0, sizeof *written);
        written->bytes = w->bytes;
        written->created = !w->spot.exists;
        written->in_place = w->in_place;
        if (fstat(w->fd, &st) == 0) hfsbi_file_info_fill(&written->info, &st);
    }
    return hfsbi_ok(err);
}

void hfsb_file_writer_close(hfsb_file_writer *writer) {
    hfsb_alloc alloc;
    if (!writer) return;
    alloc = writer->alloc;
    if (writer->temp[0]) hfsbi_temp_remove(writer->spot.dir, writer->temp);
    hfsbi_close(&writer->fd);
    hfsbi_spot_close(&writer->spot);
    hfsb_buf_free(&writer->path);
    hfsbi_array_free(&alloc, writer, 1, sizeof *writer);
}
