/* file_rewrite.c - new content for a file that must stay the same file.
   Depends on: base, os. */
#include "file_place.h"

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

HFSBI_FN int hfsbi_copy_attributes(int from, int to, const hfsb_alloc *alloc) {
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

HFSBI_FN bool hfsbi_set_mode(int fd, mode_t mode) {
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

HFSBI_FN int hfsbi_rewrite(hfsbi_rewriting *r) {
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
