/* file.c - look at, read and hash files

   root.c resolves a path to a target: an open directory and a name in it.
   Everything here works on those two.

   A file is opened without blocking and checked once more after that: a FIFO
   or a device may have replaced it since it was resolved. */
#include "os_private.h"

/* ---- descriptors and metadata ---- */

HFSBI_FN hfsb_status hfsbi_check_regular(hfsb_str path, mode_t mode,
                                         hfsb_err *err) {
    const char *what = "Is a device, not a regular file";
    if (S_ISREG(mode)) return HFSB_OK;
    if (S_ISDIR(mode))
        return hfsbi_file_fail(err, HFSB_IS_DIR, "Is a directory", path);
    if (S_ISFIFO(mode)) what = "Is a FIFO, not a regular file";
    else if (S_ISSOCK(mode)) what = "Is a socket, not a regular file";
    else if (S_ISLNK(mode)) what = "Was replaced by a symbolic link";
    return hfsbi_file_fail(err, HFSB_NOT_REGULAR, what, path);
}

HFSBI_FN void hfsbi_file_info_fill(hfsb_file_info    *info,
                                   const struct stat *st) {
    memset(info, 0, sizeof *info);
    info->type = S_ISREG(st->st_mode)   ? HFSB_FILE_REGULAR
                 : S_ISDIR(st->st_mode) ? HFSB_FILE_DIRECTORY
                                        : HFSB_FILE_OTHER;
    info->mode = (unsigned)st->st_mode & 07777u;
    info->size = (unsigned long long)st->st_size;
    info->links = (unsigned long long)st->st_nlink;
    info->device = (unsigned long long)st->st_dev;
    info->inode = (unsigned long long)st->st_ino;
#ifdef __APPLE__
    info->changed = (long long)st->st_mtimespec.tv_sec;
    info->changed_nanos = (long)st->st_mtimespec.tv_nsec;
    info->touched = (long long)st->st_ctimespec.tv_sec;
    info->touched_nanos = (long)st->st_ctimespec.tv_nsec;
#else
    info->changed = (long long)st->st_mtim.tv_sec;
    info->changed_nanos = (long)st->st_mtim.tv_nsec;
    info->touched = (long long)st->st_ctim.tv_sec;
    info->touched_nanos = (long)st->st_ctim.tv_nsec;
#endif
}

HFSBI_FN bool hfsbi_same_info(const hfsb_file_info *a,
                              const hfsb_file_info *b) {
    return a->device == b->device && a->inode == b->inode &&
           a->size == b->size && a->changed == b->changed &&
           a->changed_nanos == b->changed_nanos && a->touched == b->touched &&
           a->touched_nanos == b->touched_nanos;
}

/* O_NONBLOCK, because the file may have become a FIFO since the stat; it stays
   set, because some files of /proc block until an event. */
HFSBI_FN hfsb_status hfsbi_target_open(const hfsb_root *root, hfsb_str path,
                                       hfsbi_target *target, int *fd,
                                       hfsb_err *err) {
    const int   flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    hfsb_status st;
    *fd = -1;
    if (!target->exists)
        return hfsbi_file_fail_os(root, path, ENOENT, "read", err);
    st = hfsbi_check_regular(path, target->st.st_mode, err);
    if (st != HFSB_OK) return st;
    *fd = hfsbi_openat(target->dir, target->name, flags, 0);
    if (*fd < 0 || fstat(*fd, &target->st) != 0)
        st = hfsbi_file_fail_os(root, path, errno, "read", err);
    else st = hfsbi_check_regular(path, target->st.st_mode, err);
    if (st != HFSB_OK) hfsbi_close(fd);
    return st;
}

HFSBI_FN bool hfsbi_fd_sha256(int fd, char hex[HFSB_SHA256_HEX]) {
    hfsb_sha256 sha;
    char        piece[16384];
    ssize_t     n;
    hfsb_sha256_init(&sha);
    while ((n = hfsbi_read_file(fd, piece, sizeof piece)) > 0)
        hfsb_sha256_write(&sha, hfsb_str_make(piece, (size_t)n));
    hfsbi_sha256_finish_hex(&sha, hex);
    return n == 0;
}

/* ---- looking ---- */

hfsb_status hfsb_file_stat(const hfsb_root *root, hfsb_str path,
                           hfsb_file_info *info, hfsb_err *err) {
    hfsbi_target target;
    hfsb_status  st;
    if (root && root->far) {
        st = hfsbi_check_path(path, err);
        if (st != HFSB_OK) return st;
        return root->far->stat(root->far->user, path, info, err);
    }
    st = hfsbi_resolve(root, path, 0, "look at", &target, err);
    if (st != HFSB_OK) return st;
    if (target.exists) hfsbi_file_info_fill(info, &target.st);
    else st = hfsbi_file_fail_os(root, path, ENOENT, "look at", err);
    hfsbi_target_close(&target);
    return st;
}

/* The key is "device:inode/name" of the directory and the name in it; for a
   directory, which "." and ".." can name as well, "device:inode/" of itself. */
hfsb_status hfsb_file_key(const hfsb_root *root, hfsb_str path, hfsb_buf *out,
                          hfsb_err *err) {
    size_t       mark = out->len;
    hfsbi_target target;
    struct stat  dir;
    bool         is_dir;
    hfsb_status  st;
    if (root && root->far) { /* its symlinks are not known here */
        st = hfsb_path_join(hfsb_root_work_dir(root), path, out);
        return st == HFSB_OK ? hfsbi_ok(err)
                             : hfsbi_fail_status(err, st, "Key of a file");
    }
    st = hfsbi_resolve(root, path, HFSBI_RESOLVE_DEEPEST, "look at", &target,
                       err);
    if (st != HFSB_OK) return st;
    is_dir = target.exists && S_ISDIR(target.st.st_mode);
    if (is_dir) dir = target.st;
    if (!is_dir && fstat(target.dir, &dir) != 0) {
        st = hfsbi_file_fail_os(root, path, errno, "look at", err);
    } else {
        st = hfsb_buf_printf(out, "%llu:%llu/", (unsigned long long)dir.st_dev,
                             (unsigned long long)dir.st_ino);
        if (st == HFSB_OK && !is_dir)
            st = hfsb_path_clean(hfsb_cstr(target.name), out);
        if (st != HFSB_OK) {
            hfsb_buf_truncate(out, mark);
            hfsbi_fail_status(err, st, "Key of a file");
        }
    }
    hfsbi_target_close(&target);
    return st;
}

/* ---- reading ---- */

hfsb_status hfsb_file_open(const hfsb_root *root, hfsb_str path, int *fd,
                           hfsb_file_info *info, hfsb_err *err) {
    hfsbi_target   target;
    hfsb_file_info unused;
    hfsb_status    st;
    *fd = -1;
    if (root && root->far) {
        st = hfsbi_check_path(path, err);
        if (st != HFSB_OK) return st;
        return root->far->open(root->far->user, path, fd,
                               info ? info : &unused, err);
    }
    st = hfsbi_resolve(root, path, 0, "read", &target, err);
    if (st != HFSB_OK) return st;
    st = hfsbi_target_open(root, path, &target, fd, err);
    if (st == HFSB_OK && info) hfsbi_file_info_fill(info, &target.st);
    hfsbi_target_close(&target);
    return st;
}

/* Reads to the end of the file, whatever its size claims: files of /proc
   claim 0, others grow. *code is an errno when the status is HFSB_IO. */
static hfsb_status hfsbi_read_all(int fd, unsigned long long size, size_t max,
                                  hfsb_buf *out, int *code) {
    size_t  got = 0, want;
    ssize_t n;
    char    more;
    for (;;) {
        want = size > got ? (size_t)(size - got) : 65536;
        if (want > max - got) want = max - got;
        if (want > 0) {
            hfsb_status st = hfsb_buf_reserve(out, want);
            if (st != HFSB_OK) return st;
        }
        /* At the limit, reading one more byte shows whether it ends here. */
        n = hfsbi_read_file(fd, want ? out->ptr + out->len : &more,
                            want ? want : 1);
        if (n < 0) {
            *code = errno;
            return HFSB_IO;
        }
        if (n == 0) break;
        if (want == 0) return HFSB_LIMIT;
        got += (size_t)n;
        out->len += (size_t)n;
    }
    return hfsb_buf_append(out, hfsb_str_make("", 0)); /* the NUL */
}

hfsb_status hfsb_file_read(const hfsb_root *root, hfsb_str path, size_t max,
                           hfsb_buf *out, hfsb_file_info *info,
                           hfsb_err *err) {
    size_t         mark = out->len;
    hfsb_file_info seen = HFSB_INIT;
    int            fd, code = ENOMEM;
    hfsb_status    st = hfsb_file_open(root, path, &fd, &seen, err);
    if (st != HFSB_OK) return st;
    if (max == 0) max = (size_t)1 << 30;
    if (out->max && max > out->max - mark) max = out->max - mark;
    st = seen.size > max ? HFSB_LIMIT
                         : hfsbi_read_all(fd, seen.size, max, out, &code);
    hfsbi_close(&fd);
    if (st == HFSB_OK) {
        if (info) *info = seen;
        return hfsbi_ok(err);
    }
    hfsb_buf_truncate(out, mark);
    if (st != HFSB_LIMIT)
        return hfsbi_file_fail_os(root, path, code, "read", err);
    hfsbi_file_fail(err, HFSB_LIMIT, "File is too large to be read whole",
                    path);
    hfsbi_err_add(err, " (the limit is %zu bytes)", max);
    return HFSB_LIMIT;
}

/* ---- reading a part ---- */

/* For a file whose size reads as 0: reads all of it, and keeps the part. */
static hfsb_status hfsbi_file_range_fill(const hfsb_root *root, hfsb_str path,
                                         hfsbi_file_range *range,
                                         hfsb_err         *err) {
    hfsb_buf   *content = &range->content;
    int         code = ENOMEM;
    hfsb_status st =
        hfsbi_read_all(range->fd, 0, HFSBI_SIZELESS_MAX, content, &code);
    if (st == HFSB_LIMIT)
        return hfsbi_file_fail(err, st, "File is too large to be read", path);
    if (st != HFSB_OK)
        return hfsbi_file_fail_os(root, path, code, "read", err);
    hfsbi_close(&range->fd);
    range->info.size = content->len;
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_file_range_open(const hfsb_root   *root,
                                           hfsb_str           path,
                                           unsigned long long offset,
                                           unsigned long long length,
                                           hfsbi_file_range  *range,
                                           hfsb_err          *err) {
    hfsb_status st;
    memset(range, 0, sizeof *range);
    range->content.alloc = hfsbi_root_alloc(root);
    st = hfsb_file_open(root, path, &range->fd, &range->info, err);
    if (st == HFSB_OK && range->info.size == 0)
        st = hfsbi_file_range_fill(root, path, range, err);
    if (st != HFSB_OK) {
        hfsbi_file_range_close(range);
        return st;
    }
    range->first =
        offset < range->info.size ? offset : range->info.size;
    range->length = range->info.size - range->first;
    if (length < range->length) range->length = length;
    if (range->fd < 0 && range->content.len) {
        memmove(range->content.ptr, range->content.ptr + range->first,
                (size_t)range->length);
        hfsb_buf_truncate(&range->content, (size_t)range->length);
    }
    return hfsbi_ok(err);
}

HFSBI_FN hfsb_status hfsbi_file_range_read(hfsbi_file_range *range, char *to,
                                           size_t n, size_t *got,
                                           hfsb_err *err) {
    unsigned long long left = range->length - range->done;
    ssize_t            part;
    *got = 0;
    if (n > left) n = (size_t)left;
    if (n == 0) return hfsbi_ok(err);
    if (range->fd < 0) {
        memcpy(to, range->content.ptr + range->done, n);
        part = (ssize_t)n;
    } else {
        do part = pread(range->fd, to, n, (off_t)(range->first + range->done));
        while (part < 0 && errno == EINTR);
    }
    if (part < 0) return hfsbi_fail_os(err, errno, "Cannot read the file");
    *got = (size_t)part;
    range->done += (unsigned long long)part;
    return hfsbi_ok(err);
}

HFSBI_FN void hfsbi_file_range_close(hfsbi_file_range *range) {
    hfsbi_close(&range->fd);
    hfsb_buf_free(&range->content);
}

hfsb_status hfsb_file_sha256(const hfsb_root *root, hfsb_str path,
                             char hex[HFSB_SHA256_HEX], hfsb_err *err) {
    int         fd;
    hfsb_status st = hfsb_file_open(root, path, &fd, NULL, err);
    if (st != HFSB_OK) return st;
    if (!hfsbi_fd_sha256(fd, hex))
        st = hfsbi_file_fail_os(root, path, errno, "read", err);
    hfsbi_close(&fd);
    return st;
}
