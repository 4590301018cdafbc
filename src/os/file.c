/* file.c - look at, read and remove files. */
#include "os_private.h"

/* ==== file beneath ==== */

/* open directories without leaving a root. */

HFSBI_FN int hfsbi_openat(int dir, const char *name, int flags, mode_t mode) {
    int fd;
    do fd = openat(dir, name, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return hfsbi_above_standard(fd);
}

HFSBI_FN int hfsbi_unlinkat(int dir, const char *name) {
    int rc;
    do rc = unlinkat(dir, name, 0);
    while (rc != 0 && errno == EINTR);
    return rc;
}

/* ---- by the kernel ---- */

#ifdef HFSBI_LINUX

/* The same on all machines that joined the common numbering; older headers
   do not have it. */
#if !defined(SYS_openat2) &&                                           \
    (defined(__aarch64__) || defined(__arm__) || defined(__riscv) ||   \
     defined(__i386__) || defined(__s390__) || defined(__powerpc__) || \
     (defined(__x86_64__) && !defined(__ILP32__)))
#define SYS_openat2 437
#endif

/* struct open_how, RESOLVE_NO_MAGICLINKS and RESOLVE_BENEATH of
   <linux/openat2.h>, which may be missing */
typedef struct hfsbi_open_how {
    uint64_t flags, mode, resolve;
} hfsbi_open_how;

/* -1 with ENOSYS when the kernel cannot tell. */
static int hfsbi_kernel_beneath(int root, const char *path) {
    long fd = -1;
#ifdef SYS_openat2
    hfsbi_open_how how = HFSB_INIT;
    int            tries;
    how.flags = (uint64_t)HFSBI_O_SEARCH;
    how.resolve = 0x02 | 0x08;
    /* EAGAIN: something was renamed while a ".." was looked at. */
    for (tries = 0; tries < 32; tries++) {
        fd = syscall(SYS_openat2, root, path, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) break;
    }
    if (fd >= 0) return hfsbi_above_standard((int)fd);
    /* EPERM comes from filters that do not know the call. ELOOP is a magic
       link or a true loop, and only the walk can tell which. */
    if (errno == EAGAIN || errno == EINTR || errno == EPERM ||
        errno == ELOOP || errno == EINVAL || errno == E2BIG)
        errno = ENOSYS;
#else
    (void)root;
    (void)path;
    errno = ENOSYS;
#endif
    return (int)fd;
}
#endif

/* ---- by hand ---- */

/* `at` is reached from the root by the names in `done` and never by a link:
   each was opened from the one before with O_NOFOLLOW. */
typedef struct hfsbi_walk {
    int      root; /* the caller's */
    int      at;   /* to be closed unless it is the root */
    hfsb_buf done; /* each name with a slash behind */
    hfsb_buf rest; /* the way ahead, from pos on */
    size_t   pos;
    unsigned links; /* followed so far */
} hfsbi_walk;

static bool hfsbi_walk_set(hfsbi_walk *w, int fd) {
    if (fd < 0) return false;
    if (w->at != w->root) hfsbi_close(&w->at);
    w->at = fd;
    return true;
}

static bool hfsbi_walk_enter(hfsbi_walk *w, const char *name) {
    return hfsbi_walk_set(
        w, hfsbi_openat(w->at, name, HFSBI_O_SEARCH | O_NOFOLLOW, 0));
}

/* The component at *pos of path, without the slashes before it; false when
   there is none. A name that is too long for any file sets *fits. */
static bool hfsbi_next_name(hfsb_str path, size_t *pos,
                            char name[HFSBI_NAME_SIZE], bool *fits) {
    size_t n;
    while (*pos < path.len && path.ptr[*pos] == '/') ++*pos;
    path = hfsb_str_slice(path, *pos, path.len);
    n = hfsb_str_find_byte(path, '/');
    if (n == HFSB_NPOS) n = path.len;
    *fits = n < HFSBI_NAME_SIZE;
    if (n == 0 || !*fits) return false;
    memcpy(name, path.ptr, n);
    name[n] = '\0';
    *pos += n;
    return true;
}

/* ".." is what the directory was reached through: the way there again without
   its last name. The ".." of the file system may have moved. */
static bool hfsbi_walk_up(hfsbi_walk *w) {
    char   name[HFSBI_NAME_SIZE];
    size_t end = w->done.len, pos = 0;
    bool   fits;
    if (end == 0) {
        errno = EXDEV;
        return false;
    }
    end--;
    while (end > 0 && w->done.ptr[end - 1] != '/') end--;
    hfsb_buf_truncate(&w->done, end);
    if (w->at != w->root) hfsbi_close(&w->at);
    w->at = w->root;
    while (hfsbi_next_name(hfsb_buf_str(&w->done), &pos, name, &fits))
        if (!hfsbi_walk_enter(w, name)) return false;
    return true;
}

static int hfsbi_buf_errno(hfsb_status st) {
    return st == HFSB_OK ? 0 : st == HFSB_NOMEM ? ENOMEM : ENAMETOOLONG;
}

/* Puts the link's target before the rest of the way; an errno. */
static int hfsbi_walk_follow(hfsbi_walk *w, hfsb_str target) {
    hfsb_buf next = HFSB_INIT;
    size_t   mark;
    if (target.len == 0) return ENOENT;
    if (target.ptr[0] == '/') return EXDEV;
    if (++w->links > HFSBI_LINKS_MAX) return ELOOP;
    next.alloc = w->rest.alloc;
    next.max = w->rest.max;
    mark = next.len;
    hfsb_buf_append(&next, target);
    hfsb_buf_append_byte(&next, '/');
    hfsb_buf_append(
        &next, hfsb_str_slice(hfsb_buf_str(&w->rest), w->pos, w->rest.len));
    if (hfsb_buf_finish(&next, mark) != HFSB_OK) {
        hfsb_buf_free(&next);
        return hfsbi_buf_errno(next.status);
    }
    hfsb_buf_free(&w->rest);
    w->rest = next;
    w->pos = 0;
    return 0;
}

/* One component; an errno. Should it become a link after we looked, it is not
   followed: then there is no such directory. */
static int hfsbi_walk_step(hfsbi_walk *w, const char *name) {
    char    target[PATH_MAX];
    ssize_t n;
    if (strcmp(name, ".") == 0) return 0;
    if (strcmp(name, "..") == 0) return hfsbi_walk_up(w) ? 0 : errno;
    n = readlinkat(w->at, name, target, sizeof target);
    if (n == (ssize_t)sizeof target) return ENAMETOOLONG;
    if (n >= 0) return hfsbi_walk_follow(w, hfsb_str_make(target, (size_t)n));
    if (errno != EINVAL) return errno;
    if (!hfsbi_walk_enter(w, name)) return errno;
    return hfsbi_buf_errno(hfsb_buf_printf(&w->done, "%s/", name));
}

static int hfsbi_walk_beneath(int root, const char *path,
                              const hfsb_alloc *alloc) {
    hfsbi_walk w = HFSB_INIT;
    char       name[HFSBI_NAME_SIZE];
    bool       fits = true;
    int        code;
    w.root = w.at = root;
    w.done.alloc = w.rest.alloc = *alloc;
    w.rest.max = (size_t)PATH_MAX * 8;
    code = hfsbi_buf_errno(hfsb_buf_append(&w.rest, hfsb_cstr(path)));
    while (code == 0 &&
           hfsbi_next_name(hfsb_buf_str(&w.rest), &w.pos, name, &fits))
        code = hfsbi_walk_step(&w, name);
    if (code == 0 && !fits) code = ENAMETOOLONG;
    if (code == 0 && w.at == root && !hfsbi_walk_enter(&w, ".")) code = errno;
    hfsb_buf_free(&w.done);
    hfsb_buf_free(&w.rest);
    if (code == 0) return w.at;
    if (w.at != root) hfsbi_close(&w.at);
    errno = code;
    return -1;
}

/* The directory at path, which the kernel or, where it cannot, a walk by hand
   resolves without leaving root; -1 with errno, EXDEV for a path that leads
   out. */
static int hfsbi_open_beneath(int root, const char *path,
                              const hfsb_alloc *alloc) {
#ifdef HFSBI_LINUX
    int fd = hfsbi_kernel_beneath(root, path);
    if (fd >= 0 || errno != ENOSYS) return fd;
#endif
    if (path[0] == '/' || strlen(path) >= PATH_MAX) {
        errno = path[0] == '/' ? EXDEV : ENAMETOOLONG;
        return -1;
    }
    return hfsbi_walk_beneath(root, path, alloc);
}

/* ==== file place ==== */

/* where paths lead. */

/* ---- messages ---- */

/* Longest path that a message shows whole, in characters. */
#define HFSBI_PATH_SHOWN 400

HFSBI_FN hfsb_status hfsbi_path_say(hfsb_err *err, hfsb_status code,
                                    const char *what, hfsb_str path) {
    hfsbi_fail(err, code, 0, "%s: ", what);
    hfsbi_err_quote(err, path, HFSBI_PATH_SHOWN);
    return code;
}

HFSBI_FN hfsb_status hfsbi_path_changed(hfsb_str path, hfsb_err *err) {
    hfsbi_path_say(err, HFSB_STALE, "File has changed since it was read",
                   path);
    hfsbi_err_add(err, " (read it again)");
    return HFSB_STALE;
}

HFSBI_FN hfsb_status hfsbi_path_regular(hfsb_str path, mode_t mode,
                                        hfsb_err *err) {
    const char *what = "Is a device, not a regular file";
    if (S_ISREG(mode)) return HFSB_OK;
    if (S_ISDIR(mode)) what = "Is a directory";
    else if (S_ISFIFO(mode)) what = "Is a FIFO, not a regular file";
    else if (S_ISSOCK(mode)) what = "Is a socket, not a regular file";
    else if (S_ISLNK(mode)) what = "Became a symbolic link meanwhile";
    return hfsbi_path_say(err, HFSB_REFUSED, what, path);
}

static hfsb_status hfsbi_path_missing(hfsb_str path, int code, hfsb_err *err) {
    hfsbi_path_say(err, HFSB_NOT_FOUND, "File not found", path);
    if (code == ENOTDIR)
        hfsbi_err_add(err, " (a part of the path is not a directory)");
    else if (path.len && path.ptr[0] == '~')
        hfsbi_err_add(err, " (\"~\" is not expanded: give the full path)");
    return HFSB_NOT_FOUND;
}

HFSBI_FN hfsb_status hfsbi_path_fail(const hfsb_place *place, hfsb_str path,
                                     int code, const char *verb,
                                     hfsb_err *err) {
    hfsb_status st;
    if (code == EXDEV && place && place->root_fd >= 0) {
        hfsbi_fail(err, HFSB_REFUSED, 0, "Path is outside the root ");
        hfsbi_err_quote(err, hfsb_place_root(place), HFSBI_PATH_SHOWN);
        hfsbi_err_add(err, ": ");
        hfsbi_err_quote(err, path, HFSBI_PATH_SHOWN);
        return HFSB_REFUSED;
    }
    if (code == ENOENT || code == ENOTDIR)
        return hfsbi_path_missing(path, code, err);
    if (code == EISDIR)
        return hfsbi_path_say(err, HFSB_REFUSED, "Is a directory", path);
    st = code == ENAMETOOLONG || code == ELOOP ? HFSB_ARG
                                               : hfsbi_os_status(code);
    hfsbi_fail(err, st, 0, "Cannot %s ", verb);
    hfsbi_err_quote(err, path, HFSBI_PATH_SHOWN);
    hfsbi_err_add(err, ": %s", hfsbi_os_text(code));
    return st;
}

/* ---- paths as text ---- */

/* The next component of *path, which is cut off; empty at the end. "." and
   doubled slashes are none. */
static hfsb_str hfsbi_take_component(hfsb_str *path) {
    hfsb_str part = HFSB_INIT;
    while (path->len > 0) {
        size_t n = hfsb_str_find_byte(*path, '/');
        part = hfsb_str_slice(*path, 0, n);
        *path = hfsb_str_slice(*path, n == HFSB_NPOS ? n : n + 1, path->len);
        if (part.len > 0 && !hfsb_str_equal(part, HFSB_LIT("."))) return part;
    }
    return hfsb_str_make("", 0);
}

static bool hfsbi_climbs(hfsb_str path) {
    hfsb_str part;
    do part = hfsbi_take_component(&path);
    while (part.len > 0 && !hfsb_str_equal(part, HFSB_LIT("..")));
    return part.len > 0;
}

/* True when path begins with the components of root; *rest is what follows
   them. */
static bool hfsbi_cut_root(hfsb_str root, hfsb_str path, hfsb_str *rest) {
    hfsb_str want;
    for (;;) {
        want = hfsbi_take_component(&root);
        if (want.len == 0) break;
        if (!hfsb_str_equal(hfsbi_take_component(&path), want)) return false;
    }
    while (path.len > 0 && path.ptr[0] == '/')
        path = hfsb_str_slice(path, 1, path.len);
    *rest = path;
    return true;
}

/* Appends an absolute path as seen from the root, or EXDEV. What is decided
   here is only where the search begins: the search cannot leave the root. */
static hfsb_status hfsbi_put_inside(const hfsb_place *p, hfsb_str path,
                                    hfsb_buf *out, bool *outside) {
    hfsb_str    given = hfsb_buf_str(&p->root), rest = HFSB_INIT;
    hfsb_str    real = hfsb_buf_str(&p->real_root);
    hfsb_buf    clean = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    clean.alloc = p->alloc;
    *outside = false;
    if (!hfsbi_cut_root(given, path, &rest) &&
        !hfsbi_cut_root(real, path, &rest)) {
        st = hfsb_path_clean(path, &clean);
        *outside = st == HFSB_OK &&
                   !hfsbi_cut_root(given, hfsb_buf_str(&clean), &rest) &&
                   !hfsbi_cut_root(real, hfsb_buf_str(&clean), &rest);
    }
    if (st == HFSB_OK && !*outside)
        st = hfsb_buf_append(out, rest.len ? rest : HFSB_LIT("."));
    hfsb_buf_free(&clean);
    return st;
}

/* path as seen from the root, or without one from the current directory; an
   errno. */
static int hfsbi_place_path(const hfsb_place *p, hfsb_str path,
                            hfsb_buf *out) {
    size_t      mark = out->len;
    bool        absolute = path.ptr[0] == '/', outside;
    hfsb_str    base = HFSB_INIT;
    hfsb_status st;
    if (absolute && p && p->root_fd >= 0) {
        st = hfsbi_put_inside(p, path, out, &outside);
        return st != HFSB_OK ? ENOMEM : outside ? EXDEV : 0;
    }
    if (p) base = hfsb_buf_str(p->root_fd >= 0 ? &p->work_rest : &p->work_dir);
    if (!absolute && base.len > 0) {
        hfsb_buf_append(out, base);
        hfsb_buf_append_byte(out, '/');
    }
    hfsb_buf_append(out, path);
    return hfsb_buf_finish(out, mark) == HFSB_OK ? 0 : ENOMEM;
}

/* ---- spots ---- */

HFSBI_FN hfsb_alloc hfsbi_place_alloc(const hfsb_place *place) {
    hfsb_alloc none = HFSB_INIT;
    return place ? place->alloc : none;
}

static int hfsbi_place_dir(const hfsb_place *place, const char *path) {
    if (place && place->root_fd >= 0)
        return hfsbi_open_beneath(place->root_fd, path, &place->alloc);
    return hfsbi_openat(AT_FDCWD, path, HFSBI_O_SEARCH, 0);
}

/* The directory at the first n bytes of the spot's path, which are none, or
   end in a slash. */
static int hfsbi_prefix_dir(const hfsb_place *place, hfsbi_spot *spot,
                            size_t n) {
    char *p = spot->path.ptr;
    int   fd;
    if (n == 0) return hfsbi_place_dir(place, ".");
    if (n == 1) return hfsbi_place_dir(place, "/");
    p[n - 1] = '\0';
    fd = hfsbi_place_dir(place, p);
    p[n - 1] = '/';
    return fd;
}

/* Some directory before the name is missing: opens the last one that is there
   and makes all behind it the name; an errno. */
static int hfsbi_spot_deepest(const hfsb_place *place, hfsbi_spot *spot) {
    const char *p = spot->path.ptr;
    size_t      n = (size_t)(spot->name - p);
    do {
        while (n > 0 && p[n - 1] == '/') n--;
        while (n > 0 && p[n - 1] != '/') n--;
        spot->dir = hfsbi_prefix_dir(place, spot, n);
    } while (spot->dir < 0 && errno == ENOENT && n > 0);
    if (spot->dir < 0) return errno;
    spot->name = p + n;
    return hfsbi_climbs(hfsb_cstr(spot->name)) ? ENOENT : 0;
}

/* Makes the directories in the name, one after the other; an errno. What is
   there already must be a directory, and no link. */
static int hfsbi_spot_make(hfsbi_spot *spot, bool sync) {
    char *name = spot->path.ptr + (spot->name - spot->path.ptr), *slash;
    for (; (slash = strchr(name, '/')) != NULL; name = slash + 1) {
        int fd, rc;
        *slash = '\0';
        if (*name == '\0' || strcmp(name, ".") == 0) continue;
        do rc = mkdirat(spot->dir, name, 0777);
        while (rc != 0 && errno == EINTR);
        if (rc != 0 && errno != EEXIST) return errno;
        if (rc == 0 && sync) hfsbi_sync_dir(spot->dir);
        fd = hfsbi_openat(spot->dir, name, HFSBI_O_SEARCH | O_NOFOLLOW, 0);
        if (fd < 0) return errno == ELOOP ? ENOTDIR : errno;
        hfsbi_close(&spot->dir);
        spot->dir = fd;
    }
    spot->name = name;
    return 0;
}

HFSBI_FN int hfsbi_spot_look(hfsbi_spot *spot) {
    spot->exists =
        fstatat(spot->dir, spot->name, &spot->st, AT_SYMLINK_NOFOLLOW) == 0;
    return spot->exists || errno == ENOENT ? 0 : errno;
}

/* The path has the directory of the link before its target, unless that is
   absolute; an errno. */
static int hfsbi_spot_follow(const hfsb_place *place, hfsbi_spot *spot) {
    char     target[PATH_MAX];
    size_t   n = (size_t)(spot->name - spot->path.ptr);
    ssize_t  len = readlinkat(spot->dir, spot->name, target, sizeof target);
    hfsb_str to;
    if (len < 0) return errno;
    if (len == 0) return ENOENT;
    if (len == (ssize_t)sizeof target) return ENAMETOOLONG;
    to = hfsb_str_make(target, (size_t)len);
    if (target[0] == '/') {
        if (place && place->root_fd >= 0) return EXDEV;
        n = 0;
    }
    hfsbi_close(&spot->dir);
    hfsb_buf_truncate(&spot->path, n);
    return hfsb_buf_append(&spot->path, to) == HFSB_OK ? 0 : ENOMEM;
}

/* A path that ends in a slash or in dots is a directory; an errno. */
static int hfsbi_spot_enter(const hfsb_place *place, hfsbi_spot *spot,
                            unsigned how) {
    spot->dir = hfsbi_place_dir(place, spot->path.ptr);
    spot->name = ".";
    if (spot->dir >= 0) return hfsbi_spot_look(spot);
    if ((how & HFSBI_SPOT_PARENTS) && errno == ENOENT) return EISDIR;
    return errno;
}

/* Opens the directory before the last name of spot->path and looks at that
   name; an errno. `path` is what the caller gave. */
static int hfsbi_spot_step(const hfsb_place *place, hfsb_str path,
                           unsigned how, hfsbi_spot *spot) {
    hfsb_str all = hfsb_buf_str(&spot->path);
    hfsb_str name = hfsb_path_base(all);
    int      code;
    if (name.len == 0 || hfsb_str_equal(name, HFSB_LIT(".")) ||
        hfsb_str_equal(name, HFSB_LIT("..")))
        return hfsbi_spot_enter(place, spot, how);
    spot->name = name.ptr;
    spot->dir = hfsbi_prefix_dir(place, spot, all.len - name.len);
    if (spot->dir >= 0) return hfsbi_spot_look(spot);
    if (errno != ENOENT || !(how & (HFSBI_SPOT_PARENTS | HFSBI_SPOT_DEEPEST)))
        return errno;
    code = hfsbi_spot_deepest(place, spot);
    if (code != 0 || (how & HFSBI_SPOT_DEEPEST)) return code;
    /* nobody wants a directory of the name "~" */
    if (path.ptr[0] == '~' && strlen(spot->name) == path.len) return ENOENT;
    code = hfsbi_spot_make(spot, !(how & HFSBI_SPOT_NO_SYNC));
    if (code == 0) code = hfsbi_spot_look(spot);
    return code == 0 && spot->exists && S_ISLNK(spot->st.st_mode) ? ELOOP
                                                                  : code;
}

HFSBI_FN void hfsbi_spot_close(hfsbi_spot *spot) {
    hfsbi_close(&spot->dir);
    hfsb_buf_free(&spot->path);
}

HFSBI_FN hfsb_status hfsbi_spot_find(const hfsb_place *place, hfsb_str path,
                                     unsigned how, const char *verb,
                                     hfsbi_spot *spot, hfsb_err *err) {
    unsigned links = 0;
    int      code;
    memset(spot, 0, sizeof *spot);
    spot->dir = -1;
    spot->path.alloc = hfsbi_place_alloc(place);
    if (path.len == 0)
        return hfsbi_fail(err, HFSB_REFUSED, 0, "The path is empty.");
    if (hfsb_str_find_byte(path, '\0') != HFSB_NPOS)
        return hfsbi_path_say(err, HFSB_REFUSED,
                              "The path has a NUL byte in it", path);
    code = hfsbi_place_path(place, path, &spot->path);
    if (code == 0) code = hfsbi_spot_step(place, path, how, spot);
    while (code == 0 && spot->exists && S_ISLNK(spot->st.st_mode) &&
           !(how & HFSBI_SPOT_NO_FOLLOW)) {
        code =
            ++links > HFSBI_LINKS_MAX ? ELOOP : hfsbi_spot_follow(place, spot);
        if (code == 0) code = hfsbi_spot_step(place, path, how, spot);
    }
    if (code == 0) return hfsbi_ok(err);
    hfsbi_spot_close(spot);
    return hfsbi_path_fail(place, path, code, verb, err);
}

/* ---- places ---- */

/* Appends path made absolute: as text, or where that could be wrong as the
   system sees it; an errno. */
static int hfsbi_absolute(hfsb_str path, const char *terminated,
                          hfsb_buf *out) {
    char        here[PATH_MAX];
    hfsb_status st;
    if (hfsbi_climbs(path)) {
        if (!realpath(terminated, here)) return errno;
        path = hfsb_cstr(here);
    } else if (path.ptr[0] != '/' && !getcwd(here, sizeof here)) {
        return errno;
    }
    st = path.ptr[0] == '/' ? hfsb_path_clean(path, out)
                            : hfsb_path_join(hfsb_cstr(here), path, out);
    return st == HFSB_OK ? 0 : ENOMEM;
}

static hfsb_status hfsbi_place_fail(hfsb_err *err, int code, const char *what,
                                    hfsb_str path) {
    if (code == ENOMEM) return hfsbi_fail_status(err, HFSB_NOMEM, what);
    if (code == ENOENT || code == ENOTDIR) {
        hfsbi_fail(err, HFSB_NOT_FOUND, 0, "%s not found: ", what);
        hfsbi_err_quote(err, path, HFSBI_PATH_SHOWN);
        if (code == ENOTDIR) hfsbi_err_add(err, " (it is not a directory)");
        return HFSB_NOT_FOUND;
    }
    hfsbi_fail(err, HFSB_IO, 0, "%s ", what);
    hfsbi_err_quote(err, path, HFSBI_PATH_SHOWN);
    hfsbi_err_add(err, " cannot be used: %s", hfsbi_os_text(code));
    return HFSB_IO;
}

static int hfsbi_place_set_root(hfsb_place *p, hfsb_str root) {
    char  real[PATH_MAX];
    char *path = hfsbi_terminated(&p->alloc, root);
    int   code = 0;
    if (!path) return ENOMEM;
    p->root_fd = hfsbi_openat(AT_FDCWD, path, HFSBI_O_SEARCH, 0);
    if (p->root_fd < 0 || !realpath(path, real)) code = errno;
    if (code == 0) code = hfsbi_absolute(root, path, &p->root);
    if (code == 0 &&
        hfsb_buf_append(&p->real_root, hfsb_cstr(real)) != HFSB_OK)
        code = ENOMEM;
    hfsbi_array_free(&p->alloc, path, root.len + 1, 1);
    return code;
}

/* The work directory beneath a root; a relative one begins there. */
static hfsb_status hfsbi_place_set_inside(hfsb_place *p, hfsb_str dir,
                                          hfsb_err *err) {
    int code = hfsbi_place_path(p, dir, &p->work_rest), fd;
    if (code == 0) {
        fd = hfsbi_open_beneath(p->root_fd, p->work_rest.ptr, &p->alloc);
        if (fd < 0) code = errno;
        hfsbi_close(&fd);
    }
    if (code == 0 &&
        hfsb_path_join(hfsb_buf_str(&p->root), hfsb_buf_str(&p->work_rest),
                       &p->work_dir) != HFSB_OK)
        code = ENOMEM;
    if (code == 0) return HFSB_OK;
    if (code == EXDEV) return hfsbi_path_fail(p, dir, code, "use", err);
    return hfsbi_place_fail(err, code, "Working directory", dir);
}

static hfsb_status hfsbi_place_set_work(hfsb_place *p, hfsb_str dir,
                                        hfsb_err *err) {
    char *path = hfsbi_terminated(&p->alloc, dir);
    int   code = ENOMEM, fd;
    if (path) {
        fd = hfsbi_openat(AT_FDCWD, path, HFSBI_O_SEARCH, 0);
        code = fd < 0 ? errno : hfsbi_absolute(dir, path, &p->work_dir);
        hfsbi_close(&fd);
    }
    hfsbi_array_free(&p->alloc, path, dir.len + 1, 1);
    if (code == 0) return HFSB_OK;
    return hfsbi_place_fail(err, code, "Working directory", dir);
}

static hfsb_status hfsbi_place_fill(hfsb_place *p, hfsb_str root, hfsb_str dir,
                                    hfsb_err *err) {
    int code = 0;
    if (hfsb_str_find_byte(root, '\0') != HFSB_NPOS ||
        hfsb_str_find_byte(dir, '\0') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "The root or the working directory has a NUL byte "
                          "in it.");
    if (root.len > 0) code = hfsbi_place_set_root(p, root);
    if (code != 0) return hfsbi_place_fail(err, code, "Root directory", root);
    if (root.len > 0)
        return hfsbi_place_set_inside(p, dir.len ? dir : HFSB_LIT("."), err);
    return dir.len ? hfsbi_place_set_work(p, dir, err) : HFSB_OK;
}

hfsb_status hfsb_place_open(const hfsb_place_opts *opts, hfsb_place **out,
                            hfsb_err *err) {
    hfsb_place_opts none = HFSB_INIT;
    hfsb_place     *p;
    hfsb_status     st;
    if (!opts) opts = &none;
    *out = NULL;
    p = (hfsb_place *)hfsbi_array(&opts->alloc, 1, sizeof *p);
    if (!p) return hfsbi_fail_status(err, HFSB_NOMEM, "Place");
    memset(p, 0, sizeof *p);
    p->root_fd = -1;
    p->alloc = p->root.alloc = p->real_root.alloc = opts->alloc;
    p->work_dir.alloc = p->work_rest.alloc = opts->alloc;
    st = hfsbi_place_fill(p, opts->root, opts->work_dir, err);
    if (st != HFSB_OK) {
        hfsb_place_close(p);
        return st;
    }
    *out = p;
    return hfsbi_ok(err);
}

void hfsb_place_close(hfsb_place *place) {
    hfsb_alloc alloc;
    if (!place) return;
    alloc = place->alloc;
    hfsbi_close(&place->root_fd);
    hfsb_buf_free(&place->root);
    hfsb_buf_free(&place->real_root);
    hfsb_buf_free(&place->work_dir);
    hfsb_buf_free(&place->work_rest);
    hfsbi_array_free(&alloc, place, 1, sizeof *place);
}

hfsb_str hfsb_place_work_dir(const hfsb_place *place) {
    return place ? hfsb_buf_str(&place->work_dir) : hfsb_str_make("", 0);
}

hfsb_str hfsb_place_root(const hfsb_place *place) {
    return place ? hfsb_buf_str(&place->root) : hfsb_str_make("", 0);
}

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
    size_t      mark = out->len;
    hfsbi_spot  spot;
    struct stat dir;
    hfsb_status st = hfsbi_spot_find(place, path, HFSBI_SPOT_DEEPEST,
                                     "look at", &spot, err);
    if (st != HFSB_OK) return st;
    if (spot.exists && S_ISDIR(spot.st.st_mode)) {
        hfsb_buf_printf(out, "%llu:%llu/", (unsigned long long)spot.st.st_dev,
                        (unsigned long long)spot.st.st_ino);
    } else if (fstat(spot.dir, &dir) == 0) {
        hfsb_buf_printf(out, "%llu:%llu/", (unsigned long long)dir.st_dev,
                        (unsigned long long)dir.st_ino);
        if (out->status == HFSB_OK)
            out->status = hfsb_path_clean(hfsb_cstr(spot.name), out);
    } else {
        st = hfsbi_path_fail(place, path, errno, "look at", err);
    }
    hfsbi_spot_close(&spot);
    if (hfsb_buf_finish(out, mark) == HFSB_OK || st != HFSB_OK) return st;
    return hfsbi_fail_status(err, out->status, "Key of a file");
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
