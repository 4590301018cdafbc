/* file_put.c - put a path back as it was: content, symlinks, hard links,
   folders, permission bits, and their absence

   The writer of file_write.c keeps what a person would miss: it writes through
   symlinks and hard links, and refuses read-only files. Here a path becomes
   exactly what it was, whatever is there now, except that a folder is never
   replaced and never emptied:

       resolve --> temporary with the new state --> lock --> rename

   Nothing is reached outside the root: a path is resolved once, to an open
   directory and a name in it, and the name is never followed. Nor is a symlink
   on the way: it leads to other files. */
#include "os_private.h"

enum { HFSBI_PUT_HOW = HFSBI_RESOLVE_NO_FOLLOW | HFSBI_RESOLVE_DIRECT };

/* ---- copying ---- */

#ifdef HFSBI_LINUX
#ifndef FICLONE
#define FICLONE _IOW(0x94, 9, int)
#endif
#endif

/* True when `to` became a clone of `from`, which costs no space. */
static bool hfsbi_fd_clone(int from, int to) {
#ifdef HFSBI_LINUX
    return ioctl(to, FICLONE, from) == 0;
#else
    (void)from;
    (void)to;
    return false;
#endif
}

static bool hfsbi_all_zero(const char *piece, size_t n) {
    return n == 0 || (piece[0] == 0 && memcmp(piece, piece + 1, n - 1) == 0);
}

/* Writes a piece, or leaves a hole; false with errno. */
static bool hfsbi_put_piece(int to, const char *piece, size_t n) {
    if (!hfsbi_all_zero(piece, n))
        return hfsbi_write_all(to, hfsb_str_make(piece, n));
    return lseek(to, (off_t)n, SEEK_CUR) >= 0;
}

HFSBI_FN int hfsbi_fd_copy(int from, int to, unsigned long long max,
                           unsigned char       digest[HFSB_SHA256_SIZE],
                           unsigned long long *bytes) {
    bool        cloned = hfsbi_fd_clone(from, to);
    char        piece[32768];
    hfsb_sha256 sha;
    ssize_t     n;
    *bytes = 0;
    hfsb_sha256_init(&sha);
    if (cloned) from = to; /* which no one changes meanwhile */
    if (lseek(from, 0, SEEK_SET) < 0) return errno;
    while ((n = hfsbi_read_file(from, piece, sizeof piece)) > 0) {
        *bytes += (unsigned long long)n;
        if (*bytes > max) return EFBIG;
        hfsb_sha256_write(&sha, hfsb_str_make(piece, (size_t)n));
        if (!cloned && !hfsbi_put_piece(to, piece, (size_t)n)) return errno;
    }
    if (n < 0) return errno;
    hfsb_sha256_finish(&sha, digest);
    if (cloned) return 0;
    while (ftruncate(to, (off_t)*bytes) != 0)
        if (errno != EINTR) return errno;
    return 0;
}

/* ---- one path ---- */

/* The replacement of one path. */
typedef struct hfsbi_putting {
    const hfsb_root *root;
    hfsb_str         path;
    const hfsbi_put *put;
    hfsbi_target     target;
    char             temp[HFSBI_NAME_SIZE]; /* "": none */
    int              fd;                    /* of the temporary, or -1 */
} hfsbi_putting;

/* Fills the temporary with the content; ESTALE when its digest differs. */
static int hfsbi_put_content(hfsbi_putting *p) {
    const hfsbi_put   *put = p->put;
    unsigned char      digest[HFSB_SHA256_SIZE];
    unsigned long long bytes;
    unsigned           mode = put->mode & 07777u;
    struct stat        st;
    int                code =
        hfsbi_temp_open(p->target.dir, p->target.name, 0600, p->temp, &p->fd);
    if (code == 0)
        code = hfsbi_fd_copy(put->content, p->fd, ~0ull, digest, &bytes);
    if (code == 0 && memcmp(digest, put->digest, sizeof digest) != 0)
        code = ESTALE;
    if (code != 0) return code;
    if (fstat(p->fd, &st) != 0) return errno;
    if ((st.st_uid != put->uid || st.st_gid != put->gid) &&
        fchown(p->fd, put->uid, put->gid) != 0) {
        if (errno != EPERM && errno != EINVAL) return errno;
        mode &= 01777u; /* it must not run as another user */
    }
    return fchmod(p->fd, (mode_t)mode) == 0 ? 0 : errno;
}

/* Finds a free name for a temporary that is not opened: it replaces an empty
   one, so that the sweep of file_write.c knows the name. */
static int hfsbi_put_name(hfsbi_putting *p) {
    int code =
        hfsbi_temp_open(p->target.dir, p->target.name, 0600, p->temp, &p->fd);
    if (code == 0 && unlinkat(p->target.dir, p->temp, 0) != 0) code = errno;
    return code;
}

static int hfsbi_put_symlink(hfsbi_putting *p) {
    hfsb_alloc alloc = hfsbi_root_alloc(p->root);
    hfsb_str   to = p->put->symlink;
    char      *text = hfsbi_cstr_copy(&alloc, to);
    int        code = text ? hfsbi_put_name(p) : ENOMEM;
    if (code == 0 && symlinkat(text, p->target.dir, p->temp) != 0)
        code = errno;
    hfsbi_array_free(&alloc, text, to.len + 1, 1);
    return code;
}

static int hfsbi_put_hard_link(hfsbi_putting *p) {
    hfsbi_target other;
    hfsb_err     err;
    int          code;
    if (hfsbi_resolve(p->root, p->put->link_to, HFSBI_PUT_HOW, "link", &other,
                      &err) != HFSB_OK)
        return err.code == HFSB_NOMEM ? ENOMEM : ENOENT;
    code = hfsbi_put_name(p);
    if (code == 0 &&
        linkat(other.dir, other.name, p->target.dir, p->temp, 0) != 0)
        code = errno;
    hfsbi_target_close(&other);
    return code;
}

/* Checks the target once more: 0, ESTALE or another errno. */
static int hfsbi_target_expect(hfsbi_target *target, hfsbi_expect expect) {
    int code = hfsbi_target_stat(target);
    if (code == 0 && expect.fn &&
        !expect.fn(expect.user, target->exists ? &target->st : NULL))
        code = ESTALE;
    return code;
}

static hfsb_status hfsbi_fail_stale(hfsb_str path, hfsb_err *err) {
    return hfsbi_file_fail(err, HFSB_STALE,
                           "Left as it is, because it has just changed", path);
}

/* A rename between two names of one file does nothing: the temporary is
   removed in any case. */
static int hfsbi_put_rename(hfsbi_putting *p) {
    int code = hfsbi_target_expect(&p->target, p->put->expect);
    if (code == 0 && p->target.exists && S_ISDIR(p->target.st.st_mode))
        code = EISDIR;
    if (code == 0 &&
        renameat(p->target.dir, p->temp, p->target.dir, p->target.name) != 0)
        code = errno;
    return code;
}

static hfsb_status hfsbi_putting_run(hfsbi_putting *p, hfsb_err *err) {
    const char *verb = "restore";
    hfsbi_lock  lock = {-1, -1};
    int         code;
    if (p->put->content >= 0) code = hfsbi_put_content(p);
    else if (p->put->link_to.len) code = hfsbi_put_hard_link(p);
    else code = hfsbi_put_symlink(p);
    if (code == ESTALE)
        return hfsbi_file_fail(err, HFSB_STALE, "The stored copy is damaged",
                               p->path);
    if (code != 0)
        return hfsbi_file_fail_os(p->root, p->path, code, verb, err);
    code = hfsbi_lock_target(&p->target, false, &lock);
    if (code != 0) {
        hfsbi_unlock(&lock);
        return hfsbi_lock_fail(p->root, p->path, code, verb, err);
    }
    code = hfsbi_put_rename(p);
    hfsbi_unlock(&lock);
    if (code == ESTALE) return hfsbi_fail_stale(p->path, err);
    return code == 0 ? hfsbi_ok(err)
                     : hfsbi_file_fail_os(p->root, p->path, code, verb, err);
}

HFSBI_FN hfsb_status hfsbi_path_replace(const hfsb_root *root, hfsb_str path,
                                        const hfsbi_put *put, hfsb_err *err) {
    hfsbi_putting p;
    long long     swept;
    hfsb_status   st;
    memset(&p, 0, sizeof p);
    p.root = root;
    p.path = path;
    p.put = put;
    p.fd = -1;
    st = hfsbi_resolve(root, path, HFSBI_PUT_HOW, "restore", &p.target, err);
    if (st != HFSB_OK) return st;
    swept = hfsbi_sweep_begin(root, p.target.dir);
    st = hfsbi_putting_run(&p, err);
    if (p.temp[0]) hfsbi_temp_remove(p.target.dir, p.temp);
    hfsbi_sweep_end(root, p.target.dir, swept);
    hfsbi_close(&p.fd);
    hfsbi_target_close(&p.target);
    return st;
}

HFSBI_FN hfsb_status hfsbi_path_put_folder(const hfsb_root *root,
                                           hfsb_str path, hfsb_err *err) {
    hfsbi_target target;
    int          code = 0;
    hfsb_status  st =
        hfsbi_resolve(root, path, HFSBI_PUT_HOW, "restore", &target, err);
    if (st != HFSB_OK) return st;
    if (!target.exists) code = hfsbi_mkdirat(target.dir, target.name, 0700);
    else if (!S_ISDIR(target.st.st_mode)) code = EEXIST;
    if (code != 0) st = hfsbi_file_fail_os(root, path, code, "restore", err);
    hfsbi_target_close(&target);
    return st;
}

HFSBI_FN hfsb_status hfsbi_path_set_mode(const hfsb_root *root, hfsb_str path,
                                         unsigned mode, bool follow,
                                         hfsb_err *err) {
    hfsbi_target target;
    int          code = 0;
    hfsb_status  st = hfsbi_resolve(root, path, follow ? 0 : HFSBI_PUT_HOW,
                                    "set the mode of", &target, err);
    if (st != HFSB_OK) return st;
    if (!target.exists) code = ENOENT;
    else if (S_ISLNK(target.st.st_mode)) code = ELOOP;
    else if ((unsigned)(target.st.st_mode & 07777) != mode &&
             fchmodat(target.dir, target.name, (mode_t)mode,
                      AT_SYMLINK_NOFOLLOW) != 0)
        code = errno;
    if (code != 0)
        st = hfsbi_file_fail_os(root, path, code, "set the mode of", err);
    hfsbi_target_close(&target);
    return st;
}

HFSBI_FN int hfsbi_target_remove(hfsbi_target *target, bool folder,
                                 hfsbi_expect expect) {
    hfsbi_lock lock = {-1, -1};
    int        code = hfsbi_lock_target(target, false, &lock);
    if (code == 0 && expect.fn && target->exists)
        code = hfsbi_target_expect(target, expect);
    if (code == 0)
        code = hfsbi_unlinkat(target->dir, target->name,
                              folder ? AT_REMOVEDIR : 0);
    hfsbi_unlock(&lock);
    return code;
}

HFSBI_FN hfsb_status hfsbi_remove_fail(const hfsb_root *root, hfsb_str path,
                                       int code, hfsb_err *err) {
    if (code == ENOTEMPTY || code == EEXIST)
        return hfsbi_file_fail(err, HFSB_EXISTS, "The folder is not empty",
                               path);
    if (code == ESTALE) return hfsbi_fail_stale(path, err);
    return hfsbi_lock_fail(root, path, code, "remove", err);
}

HFSBI_FN hfsb_status hfsbi_path_remove(const hfsb_root *root, hfsb_str path,
                                       bool folder, hfsbi_expect expect,
                                       hfsb_err *err) {
    hfsbi_target target;
    int          code;
    hfsb_status  st =
        hfsbi_resolve(root, path, HFSBI_PUT_HOW, "remove", &target, err);
    if (st == HFSB_NOT_FOUND) return hfsbi_ok(err);
    if (st != HFSB_OK) return st;
    code = hfsbi_target_remove(&target, folder, expect);
    hfsbi_target_close(&target);
    if (code == 0 || code == ENOENT) return hfsbi_ok(err);
    return hfsbi_remove_fail(root, path, code, err);
}

/* ---- editing ---- */

/* One try. HFSB_STALE: the file was changed between reading and writing. */
static hfsb_status hfsbi_edit_once(const hfsb_root *root, hfsb_str path,
                                   const hfsb_edit *edits, size_t count,
                                   const hfsb_edit_opts *opts,
                                   hfsb_edit_result *result, hfsb_err *err) {
    hfsb_file_write_opts how = HFSB_INIT;
    hfsb_buf             before = HFSB_INIT, after = HFSB_INIT;
    hfsb_status          st;
    before.alloc = after.alloc = hfsbi_root_alloc(root);
    st = hfsb_file_read(root, path, 0, &before, NULL, err);
    if (st == HFSB_OK)
        st = hfsb_edit_apply(hfsb_buf_str(&before), edits, count, opts, &after,
                             result, err);
    how.if_content = hfsb_str_make(hfsb_buf_cstr(&before), before.len);
    if (st == HFSB_OK)
        st =
            hfsb_file_write(root, path, hfsb_buf_str(&after), &how, NULL, err);
    if (st != HFSB_OK && result) hfsb_edit_result_free(result);
    hfsb_buf_free(&before);
    hfsb_buf_free(&after);
    return st;
}

hfsb_status hfsb_edit_file(const hfsb_root *root, hfsb_str path,
                           const hfsb_edit *edits, size_t count,
                           const hfsb_edit_opts *opts,
                           hfsb_edit_result *result, hfsb_err *err) {
    hfsb_edit_opts how = HFSB_INIT;
    unsigned       tries = 0;
    hfsb_status    st;
    if (opts) how = *opts;
    if (!how.path.len) how.path = path;
    if (result) memset(result, 0, sizeof *result);
    while ((st = hfsbi_edit_once(root, path, edits, count, &how, result,
                                 err)) == HFSB_STALE &&
           tries < HFSBI_TRIES)
        hfsbi_pause(tries++);
    return st;
}
