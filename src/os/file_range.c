/* file_range.c - write a part of a file, in place and in pieces

   For uploads that arrive as ranges, in any order and several at once. The
   whole-file writer of file_write.c replaces a file; here only some of its
   bytes change:

       open:    resolve, open or create the file
       append:  lock shared, is it still the file? write, unlock
       commit:  the same for its size and mode

   The locks are those of file_write.c, shared: range writers do not wait for
   each other, but none of their pieces is written between a whole-file
   writer's check of its conditions and its change, or while it rewrites. */
#include "os_private.h"

struct hfsbi_range_writer {
    const hfsb_root   *root;
    hfsb_alloc         alloc;
    hfsb_buf           path; /* as given */
    hfsbi_target       target;
    hfsbi_range_opts   opts;
    int                fd;   /* the file */
    int                dir;  /* its directory, for the lock; -1: unreadable,
                                only the file is locked */
    bool               created;
    unsigned long long at; /* of the next byte */
    hfsb_err           err; /* why append and commit are refused */
};

static hfsb_status hfsbi_range_fail(hfsbi_range_writer *w, int code) {
    return hfsbi_lock_fail(w->root, hfsb_buf_str(&w->path), code, "write",
                           &w->err);
}

static hfsb_status hfsbi_range_give(const hfsbi_range_writer *w,
                                    hfsb_err                 *err) {
    if (err) *err = w->err;
    return w->err.code;
}

/* ---- locks ---- */

/* LOCK_UN as in file_write.c: a child may have a copy of the descriptor. */
static void hfsbi_range_unlock(const hfsbi_range_writer *w) {
    int keep = errno;
    (void)flock(w->fd, LOCK_UN);
    if (w->dir >= 0) (void)flock(w->dir, LOCK_UN);
    errno = keep;
}

/* Locks, and checks that the name still leads to the file. HFSB_STALE when it
   does not. The caller unlocks in any case. */
static hfsb_status hfsbi_range_lock(hfsbi_range_writer *w) {
    struct stat st;
    int         code = w->dir >= 0 ? hfsbi_lock_wait(w->dir, true) : 0;
    if (code == 0) code = hfsbi_lock_wait(w->fd, true);
    if (code == 0) code = hfsbi_target_stat(&w->target);
    if (code == 0 && fstat(w->fd, &st) != 0) code = errno;
    if (code != 0) return hfsbi_range_fail(w, code);
    if (w->target.exists && w->target.st.st_dev == st.st_dev &&
        w->target.st.st_ino == st.st_ino)
        return HFSB_OK;
    return hfsbi_file_fail(&w->err, HFSB_STALE,
                           "File was replaced while a part of it was written",
                           hfsb_buf_str(&w->path));
}

/* ---- opening ---- */

/* Opens or makes the file, and retries if it is removed or made meanwhile. */
static void hfsbi_range_open_fd(hfsbi_range_writer *w) {
    const int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    int       tries;
    for (tries = 0; tries < 8; tries++) {
        w->fd = hfsbi_openat(w->target.dir, w->target.name, flags, 0);
        if (w->fd >= 0 || errno != ENOENT) return;
        w->fd = hfsbi_openat(w->target.dir, w->target.name,
                             flags | O_CREAT | O_EXCL, 0666);
        w->created = w->fd >= 0;
        if (w->fd >= 0 || errno != EEXIST) return;
    }
}

static hfsb_status hfsbi_range_open_file(hfsbi_range_writer *w) {
    hfsb_str    path = hfsb_buf_str(&w->path);
    struct stat st;
    if (w->target.exists) {
        hfsb_status status =
            hfsbi_check_regular(path, w->target.st.st_mode, &w->err);
        if (status != HFSB_OK) return status;
    }
    hfsbi_range_open_fd(w);
    if (w->fd < 0 || fstat(w->fd, &st) != 0) return hfsbi_range_fail(w, errno);
    return hfsbi_check_regular(path, st.st_mode, &w->err);
}

static hfsb_status hfsbi_range_start(hfsbi_range_writer *w, hfsb_str path) {
    unsigned    how = w->opts.no_parents
                          ? 0
                          : HFSBI_RESOLVE_PARENTS | HFSBI_RESOLVE_NO_SYNC;
    hfsb_status st;
    if (hfsb_buf_append(&w->path, path) != HFSB_OK)
        return hfsbi_fail_status(&w->err, HFSB_NOMEM, "Writer of a range");
    st = hfsbi_resolve(w->root, path, how, "write", &w->target, &w->err);
    if (st == HFSB_OK) st = hfsbi_range_open_file(w);
    if (st != HFSB_OK) return st;
    w->dir = hfsbi_openat(w->target.dir, ".", O_RDONLY | O_DIRECTORY, 0);
    if (w->dir < 0 && errno != EACCES && errno != EPERM)
        return hfsbi_range_fail(w, errno);
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_range_writer_open(const hfsb_root        *root,
                                             hfsb_str                path,
                                             const hfsbi_range_opts *opts,
                                             hfsbi_range_writer    **out,
                                             hfsb_err               *err) {
    hfsb_alloc          alloc = hfsbi_root_alloc(root);
    hfsbi_range_writer *w =
        (hfsbi_range_writer *)hfsbi_array(&alloc, 1, sizeof *w);
    *out = NULL;
    if (!w) return hfsbi_fail_status(err, HFSB_NOMEM, "Writer of a range");
    memset(w, 0, sizeof *w);
    w->root = root;
    w->alloc = w->path.alloc = alloc;
    w->fd = w->dir = w->target.dir = -1;
    if (opts) w->opts = *opts;
    w->at = w->opts.offset;
    if (hfsbi_range_start(w, path) != HFSB_OK) {
        hfsb_status st = hfsbi_range_give(w, err);
        hfsbi_range_writer_close(w);
        return st;
    }
    *out = w;
    return hfsbi_ok(err);
}

/* ---- writing ---- */

/* 0, or EFBIG for a position that no file has. */
static int hfsbi_range_check_end(unsigned long long at, size_t n) {
    const unsigned long long max = 0x7FFFFFFFFFFFFFFFull;
    return at > max || n > max - at ? EFBIG : 0;
}

HFSBI_FN hfsb_status hfsbi_range_writer_append(hfsbi_range_writer *w,
                                               hfsb_str            piece,
                                               hfsb_err           *err) {
    hfsbi_signal_guard guard;
    int                code;
    if (w->err.code != HFSB_OK) return hfsbi_range_give(w, err);
    if (piece.len == 0) return hfsbi_ok(err);
    code = hfsbi_range_check_end(w->at, piece.len);
    if (code != 0) {
        hfsbi_range_fail(w, code);
        return hfsbi_range_give(w, err);
    }
    if (hfsbi_range_lock(w) == HFSB_OK) {
        hfsbi_signal_guard_begin(&guard);
        if (!hfsbi_pwrite_all(w->fd, piece, (off_t)w->at))
            hfsbi_range_fail(w, errno);
        hfsbi_signal_guard_end(&guard);
    }
    hfsbi_range_unlock(w);
    if (w->err.code != HFSB_OK) return hfsbi_range_give(w, err);
    w->at += piece.len;
    return hfsbi_ok(err);
}

/* Under the lock: sets size and mode; 0 or an errno. */
static int hfsbi_range_finish(const hfsbi_range_writer *w) {
    hfsbi_signal_guard guard;
    int                code = 0;
    if (w->opts.truncate) {
        code = hfsbi_range_check_end(w->opts.truncate_to, 0);
        if (code != 0) return code;
        hfsbi_signal_guard_begin(&guard);
        if (!hfsbi_set_size(w->fd, (off_t)w->opts.truncate_to)) code = errno;
        hfsbi_signal_guard_end(&guard);
    }
    if (code == 0 && w->opts.mode &&
        !hfsbi_set_mode(w->fd, (mode_t)(w->opts.mode & 07777u)))
        code = errno;
    return code;
}

HFSBI_FN hfsb_status hfsbi_range_writer_commit(hfsbi_range_writer *w,
                                               hfsb_file_written  *written,
                                               hfsb_err           *err) {
    struct stat st;
    int         code;
    if (w->err.code != HFSB_OK) return hfsbi_range_give(w, err);
    if (hfsbi_range_lock(w) == HFSB_OK) {
        code = hfsbi_range_finish(w);
        if (code != 0) hfsbi_range_fail(w, code);
    }
    hfsbi_range_unlock(w);
    if (w->err.code == HFSB_OK && w->opts.sync && !hfsbi_sync(w->fd))
        hfsbi_range_fail(w, errno);
    if (w->err.code != HFSB_OK) return hfsbi_range_give(w, err);
    if (written) {
        memset(written, 0, sizeof *written);
        written->bytes = w->at - w->opts.offset;
        written->created = w->created;
        written->in_place = true;
        if (fstat(w->fd, &st) == 0) hfsbi_file_info_fill(&written->info, &st);
    }
    hfsbi_fail(&w->err, HFSB_ARG, 0,
               "Writer already committed; only close() is allowed.");
    return hfsbi_ok(err);
}

HFSBI_FN void hfsbi_range_writer_close(hfsbi_range_writer *w) {
    hfsb_alloc alloc;
    if (!w) return;
    alloc = w->alloc;
    hfsbi_close(&w->fd);
    hfsbi_close(&w->dir);
    hfsbi_target_close(&w->target);
    hfsb_buf_free(&w->path);
    hfsbi_array_free(&alloc, w, 1, sizeof *w);
}
