/* file.c - look at, read and remove files. Depends on: base, hash, path, os,
   file_place. */
#include "file_place.h"

/* ---- what several need ---- */

HFSBI_FN bool hfsbi_sync(int fd) {
    int rc;
#ifdef F_FULLFSYNC /* where fsync() stops at the drive's own memory */
    if (fcntl(fd, F_FULLFSYNC) == 0) return true;
#endif
    do rc = fsync(fd);
    while (rc != 0 && errno == EINTR);
    return rc == 0 || errno == EINVAL || errno == ENOSYS ||
           errno == EOPNOTSUPP;
}

HFSBI_FN void hfsbi_sync_dir(int dir) {
    int fd = hfsbi_openat(dir, ".", O_RDONLY | O_DIRECTORY, 0);
    if (fd >= 0) (void)hfsbi_sync(fd);
    hfsbi_close(&fd);
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
#else
    info->changed = (long long)st->st_mtim.tv_sec;
    info->changed_nanos = (long)st->st_mtim.tv_nsec;
#endif
}

/* Opened without waiting: what was a file a moment ago may be a FIFO now. It
   stays so, since some files of /proc wait for what is not there yet. */
HFSBI_FN hfsb_status hfsbi_spot_open(const hfsb_place *place, hfsb_str path,
                                     hfsbi_spot *spot, int *fd,
                                     hfsb_err *err) {
    const int   flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    hfsb_status st;
    *fd = -1;
    if (!spot->exists)
        return hfsbi_path_fail(place, path, ENOENT, "read", err);
    st = hfsbi_path_regular(path, spot->st.st_mode, err);
    if (st != HFSB_OK) return st;
    *fd = hfsbi_openat(spot->dir, spot->name, flags, 0);
    if (*fd < 0 || fstat(*fd, &spot->st) != 0)
        st = hfsbi_path_fail(place, path, errno, "read", err);
    else st = hfsbi_path_regular(path, spot->st.st_mode, err);
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

HFSBI_FN int hfsbi_spot_open_any(const hfsbi_spot *spot) {
    const int flags = O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    int       fd = hfsbi_openat(spot->dir, spot->name, flags | O_RDONLY, 0);
    if (fd >= 0) return fd;
    return hfsbi_openat(spot->dir, spot->name, flags | O_WRONLY, 0);
}

HFSBI_FN hfsb_status hfsbi_spot_check_sha256(const hfsb_place *place,
                                             hfsb_str path, hfsbi_spot *spot,
                                             const char *hex, hfsb_err *err) {
    char        now[HFSB_SHA256_HEX];
    int         fd;
    hfsb_status st = hfsbi_spot_open(place, path, spot, &fd, err);
    if (st != HFSB_OK) return st;
    if (!hfsbi_fd_sha256(fd, now))
        st = hfsbi_path_fail(place, path, errno, "read", err);
    else if (strcmp(now, hex) != 0) st = hfsbi_path_changed(path, err);
    hfsbi_close(&fd);
    return st;
}

/* ---- looking ---- */

hfsb_status hfsb_file_stat(const hfsb_place *place, hfsb_str path,
                           hfsb_file_info *info, hfsb_err *err) {
    hfsbi_spot  spot;
    hfsb_status st = hfsbi_spot_find(place, path, 0, "look at", &spot, err);
    if (st != HFSB_OK) return st;
    if (spot.exists) hfsbi_file_info_fill(info, &spot.st);
    else st = hfsbi_path_fail(place, path, ENOENT, "look at", err);
    hfsbi_spot_close(&spot);
    return st;
}

/* What is there has its directory and name, a directory itself (which may be
   spelt with dots) its own number. */
hfsb_status hfsb_file_key(const hfsb_place *place, hfsb_str path,
                          hfsb_buf *out, hfsb_err *err) {
    hfsbi_sink  sink = hfsbi_sink_begin(out);
    hfsbi_spot  spot;
    struct stat dir;
    hfsb_status st = hfsbi_spot_find(place, path, HFSBI_SPOT_DEEPEST,
                                     "look at", &spot, err);
    if (st != HFSB_OK) return st;
    if (spot.exists && S_ISDIR(spot.st.st_mode)) {
        hfsbi_putf(&sink, "%llu:%llu/", (unsigned long long)spot.st.st_dev,
                   (unsigned long long)spot.st.st_ino);
    } else if (fstat(spot.dir, &dir) == 0) {
        hfsbi_putf(&sink, "%llu:%llu/", (unsigned long long)dir.st_dev,
                   (unsigned long long)dir.st_ino);
        if (sink.status == HFSB_OK)
            sink.status = hfsb_path_clean(hfsb_cstr(spot.name), out);
    } else {
        st = hfsbi_path_fail(place, path, errno, "look at", err);
    }
    hfsbi_spot_close(&spot);
    if (hfsbi_sink_end(&sink) == HFSB_OK || st != HFSB_OK) return st;
    return hfsbi_fail_status(err, sink.status, "Key of a file");
}

/* ---- reading ---- */

hfsb_status hfsb_file_open(const hfsb_place *place, hfsb_str path, int *fd,
                           hfsb_file_info *info, hfsb_err *err) {
    hfsbi_spot  spot;
    hfsb_status st = hfsbi_spot_find(place, path, 0, "read", &spot, err);
    *fd = -1;
    if (st != HFSB_OK) return st;
    st = hfsbi_spot_open(place, path, &spot, fd, err);
    if (st == HFSB_OK && info) hfsbi_file_info_fill(info, &spot.st);
    hfsbi_spot_close(&spot);
    return st;
}

static hfsb_status hfsbi_read_too_large(hfsb_str path, size_t max,
                                        hfsb_err *err) {
    hfsbi_path_say(err, HFSB_LIMIT, "File is too large to be read whole",
                   path);
    hfsbi_err_add(err, " (the limit is %zu bytes)", max);
    return HFSB_LIMIT;
}

/* To the end, however long it says it is: files of /proc say 0, and others
   may grow. *code is an errno when the status is HFSB_IO. */
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
    return hfsb_buf_append(out, hfsb_str_make("", 0));
}

hfsb_status hfsb_file_read(const hfsb_place *place, hfsb_str path, size_t max,
                           hfsb_buf *out, hfsb_file_info *info,
                           hfsb_err *err) {
    size_t         mark = out->len;
    hfsb_file_info seen = HFSB_INIT;
    int            fd, code = 0;
    hfsb_status    st = hfsb_file_open(place, path, &fd, &seen, err);
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
    if (st == HFSB_LIMIT) return hfsbi_read_too_large(path, max, err);
    return hfsbi_path_fail(place, path, st == HFSB_NOMEM ? ENOMEM : code,
                           "read", err);
}

hfsb_status hfsb_file_sha256(const hfsb_place *place, hfsb_str path,
                             char hex[HFSB_SHA256_HEX], hfsb_err *err) {
    int         fd;
    hfsb_status st = hfsb_file_open(place, path, &fd, NULL, err);
    if (st != HFSB_OK) return st;
    if (!hfsbi_fd_sha256(fd, hex))
        st = hfsbi_path_fail(place, path, errno, "read", err);
    hfsbi_close(&fd);
    return st;
}

/* ---- removing ---- */

/* Removes what is at the spot, which is locked. A symbolic link has no content
   to compare. */
static hfsb_status hfsbi_spot_remove(const hfsb_place *place, hfsb_str path,
                                     hfsbi_spot *spot, const char *sha256,
                                     hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    int         code = hfsbi_spot_look(spot);
    if (code == 0 && !spot->exists) code = ENOENT;
    if (code != 0) return hfsbi_path_fail(place, path, code, "remove", err);
    if (!S_ISLNK(spot->st.st_mode)) {
        st = hfsbi_path_regular(path, spot->st.st_mode, err);
        if (st == HFSB_OK && sha256)
            st = hfsbi_spot_check_sha256(place, path, spot, sha256, err);
    }
    if (st != HFSB_OK) return st;
    if (hfsbi_unlinkat(spot->dir, spot->name) == 0) return hfsbi_ok(err);
    return hfsbi_path_fail(place, path, errno, "remove", err);
}

HFSBI_FN hfsb_status hfsbi_file_remove_if(const hfsb_place *place,
                                          hfsb_str path, const char *sha256,
                                          hfsb_err *err) {
    hfsbi_spot  spot;
    hfsbi_lock  lock = {-1, -1};
    int         code;
    hfsb_status st = hfsbi_spot_find(place, path, HFSBI_SPOT_NO_FOLLOW,
                                     "remove", &spot, err);
    if (st != HFSB_OK) return st;
    code = hfsbi_spot_lock(&spot, false, &lock);
    st = code == 0 ? hfsbi_spot_remove(place, path, &spot, sha256, err)
                   : hfsbi_lock_fail(place, path, code, "remove", err);
    hfsbi_unlock(&lock);
    hfsbi_spot_close(&spot);
    return st;
}

hfsb_status hfsb_file_remove(const hfsb_place *place, hfsb_str path,
                             hfsb_err *err) {
    return hfsbi_file_remove_if(place, path, NULL, err);
}
