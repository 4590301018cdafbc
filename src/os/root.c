/* root.c - the root that confines: resolve paths beneath it, deny list

   A path is resolved once, to a target: an open directory and a name in it.
   All further work uses those two, so a path that is swapped meanwhile cannot
   redirect it.

       path --> as seen from the root --> directory opened beneath the root
                       ^                         |
                       |                         v
                       +-- name is a symlink <-- fstatat(directory, name)

   The directory part is resolved by the kernel (openat2 with RESOLVE_BENEATH)
   or, where the kernel cannot, by a walk that opens one component at a time.
   The walk also follows absolute symlinks to places beneath the root.
   The name itself is never followed by the kernel: its symlinks are read and
   resolved like any other path. So with a root nothing is ever opened except
   from root_fd downwards. EXDEV means "outside the root" throughout.

   Of several roots, an absolute path belongs to the first that contains it,
   and is resolved as if there were only that one. The deny list is matched
   against the path as given, and at each symlink against the real path of the
   directory that was opened and the name in it, before anything is created
   there.

   Functions that return int and no descriptor return 0, an errno, or
   HFSBI_DENIED. */
#include "os_private.h"

/* As many symlinks as Linux follows in one path. */
#define HFSBI_LINKS_MAX 40

/* Longest path that a message shows whole, in characters. */
#define HFSBI_PATH_SHOWN 400

#define HFSBI_PROC_MAGIC 0x9fa0 /* f_type of /proc */
#define HFSBI_DENIED     (-1) /* not an errno: the deny list names the path */

/* ---- components of a path ---- */

/* Cuts the next component off *path; empty at its end. "." and empty
   components are skipped. */
static hfsb_str hfsbi_take_component(hfsb_str *path) {
    hfsb_str part;
    while (hfsbi_list_next(path, '/', &part))
        if (part.len > 0 && !hfsb_str_equal(part, HFSB_LIT("."))) return part;
    return hfsb_str_make("", 0);
}

/* The same, NUL-terminated; false at the end of *path, or with *fits false
   for a component that is longer than any name. */
static bool hfsbi_take_name(hfsb_str *path, char name[HFSBI_NAME_SIZE],
                            bool *fits) {
    hfsb_str part = hfsbi_take_component(path);
    *fits = part.len < HFSBI_NAME_SIZE;
    if (part.len == 0 || !*fits) return false;
    memcpy(name, part.ptr, part.len);
    name[part.len] = '\0';
    return true;
}

static bool hfsbi_has_dotdot(hfsb_str path) {
    hfsb_str part;
    do part = hfsbi_take_component(&path);
    while (part.len > 0 && !hfsb_str_equal(part, HFSB_LIT("..")));
    return part.len > 0;
}

/* True when path begins with the components of prefix; *rest is then the part
   after them. */
static bool hfsbi_cut_prefix(hfsb_str prefix, hfsb_str path, hfsb_str *rest) {
    hfsb_str want;
    for (;;) {
        want = hfsbi_take_component(&prefix);
        if (want.len == 0) break;
        if (!hfsb_str_equal(hfsbi_take_component(&path), want)) return false;
    }
    while (path.len > 0 && path.ptr[0] == '/')
        path = hfsb_str_slice(path, 1, path.len);
    *rest = path;
    return true;
}

/* Appends an absolute path as seen from the root; EXDEV when it names no place
   beneath the root. This only decides where resolving begins: resolving itself
   cannot leave the root. */
static int hfsbi_relative_to_root(const hfsb_root *root, hfsb_str path,
                                  hfsb_buf *out) {
    hfsb_str given = hfsb_buf_str(&root->root), rest = HFSB_INIT;
    hfsb_str real = hfsb_buf_str(&root->real_root);
    hfsb_buf clean = HFSB_INIT;
    int      code = 0;
    clean.alloc = root->alloc;
    if (!hfsbi_cut_prefix(given, path, &rest) &&
        !hfsbi_cut_prefix(real, path, &rest)) {
        if (hfsb_path_clean(path, &clean) != HFSB_OK) code = ENOMEM;
        else if (!hfsbi_cut_prefix(given, hfsb_buf_str(&clean), &rest) &&
                 !hfsbi_cut_prefix(real, hfsb_buf_str(&clean), &rest))
            code = EXDEV;
    }
    if (code == 0 &&
        hfsb_buf_append(out, rest.len ? rest : HFSB_LIT(".")) != HFSB_OK)
        code = ENOMEM;
    hfsb_buf_free(&clean);
    return code;
}

/* Appends an absolute symlink, found in the directory dir, as seen from the
   root. A link in /proc leads to what its text cannot name: EXDEV. */
static int hfsbi_link_from_root(const hfsb_root *root, int dir, hfsb_str link,
                                hfsb_buf *out) {
#ifdef __linux__
    struct statfs fs;
    if (fstatfs(dir, &fs) != 0) return errno;
    if (fs.f_type == HFSBI_PROC_MAGIC) return EXDEV;
#else
    (void)dir;
#endif
    return hfsbi_relative_to_root(root, link, out);
}

/* ---- directories beneath a root: by the kernel ---- */

#ifdef HFSBI_LINUX

/* Older headers lack it. The number is the same on every architecture that
   uses the common table. */
#if !defined(SYS_openat2) &&                                           \
    (defined(__aarch64__) || defined(__arm__) || defined(__riscv) ||   \
     defined(__i386__) || defined(__s390__) || defined(__powerpc__) || \
     (defined(__x86_64__) && !defined(__ILP32__)))
#define SYS_openat2 437
#endif

/* struct open_how of <linux/openat2.h>, which may be missing */
typedef struct hfsbi_open_how {
    uint64_t flags, mode, resolve;
} hfsbi_open_how;

enum { /* RESOLVE_* of the same header */
       HFSBI_OPEN_NO_XDEV = 0x01,
       HFSBI_OPEN_NO_MAGICLINKS = 0x02,
       HFSBI_OPEN_BENEATH = 0x08
};

/* openat2(); a descriptor, or -1 with errno. */
static int hfsbi_openat2(int dir, const char *path, int flags,
                         unsigned resolve) {
    long fd = -1;
#ifdef SYS_openat2
    hfsbi_open_how how = HFSB_INIT;
    int            tries;
    how.flags = (uint64_t)flags;
    how.resolve = resolve;
    /* EAGAIN: a directory was renamed while a ".." was resolved. */
    for (tries = 0; tries < 32; tries++) {
        fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) break;
    }
    if (fd >= 0) return hfsbi_fd_above_2((int)fd);
#else
    (void)dir;
    (void)path;
    (void)flags;
    (void)resolve;
    errno = ENOSYS;
#endif
    return (int)fd;
}

/* A descriptor, or -1 with errno: ENOSYS when only the walk can decide, as for
   an absolute symlink, which the kernel treats as an escape. */
static int hfsbi_open_by_kernel(int root, const char *path) {
    int fd = hfsbi_openat2(root, path, HFSBI_O_SEARCH,
                           HFSBI_OPEN_NO_MAGICLINKS | HFSBI_OPEN_BENEATH);
    /* EPERM comes from seccomp filters that do not know openat2(). ELOOP is
       either a magic link or a real loop: the walk decides which. */
    if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == EPERM ||
                   errno == ELOOP || errno == EINVAL || errno == E2BIG ||
                   errno == EXDEV))
        errno = ENOSYS;
    return fd;
}
#endif

/* Only the kernel notices a bind mount of the same file system. */
HFSBI_FN int hfsbi_open_folder(int dir, const char *name, bool same_mount) {
    const int flags =
        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    struct stat above, st;
    int         fd;
#ifdef HFSBI_LINUX
    if (same_mount) {
        fd = hfsbi_openat2(dir, name, flags, HFSBI_OPEN_NO_XDEV);
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL))
            return fd;
    }
#endif
    fd = hfsbi_openat(dir, name, flags, 0);
    if (fd < 0 || !same_mount) return fd;
    if (fstat(dir, &above) == 0 && fstat(fd, &st) == 0 &&
        above.st_dev == st.st_dev)
        return fd;
    hfsbi_close(&fd);
    errno = EXDEV;
    return -1;
}

/* ---- directories beneath a root: by a walk ---- */

/* `at` was reached from the root through the names in `done`, none of which
   is a symlink: each was opened from its parent with O_NOFOLLOW. */
typedef struct hfsbi_walk {
    const hfsb_root *place;
    int              root; /* that of the place */
    int              at;   /* closed by the walk unless it is the root */
    hfsb_buf         done; /* each name followed by a slash */
    hfsb_buf         path; /* owns the bytes of `ahead` */
    hfsb_str         ahead;
    unsigned         links; /* followed so far */
} hfsbi_walk;

static bool hfsbi_walk_enter(hfsbi_walk *w, const char *name) {
    int fd = hfsbi_openat(w->at, name, HFSBI_O_SEARCH | O_NOFOLLOW, 0);
    if (fd < 0) return false;
    if (w->at != w->root) hfsbi_close(&w->at);
    w->at = fd;
    return true;
}

/* Goes back to the root; `done` keeps n bytes. */
static void hfsbi_walk_restart(hfsbi_walk *w, size_t n) {
    hfsb_buf_truncate(&w->done, n);
    if (w->at != w->root) hfsbi_close(&w->at);
    w->at = w->root;
}

/* For "..": enters `done` without its last name, from the root. The ".." of
   the file system is not used: the directory may have been moved outside. */
static int hfsbi_walk_up(hfsbi_walk *w) {
    char     name[HFSBI_NAME_SIZE];
    size_t   end = w->done.len;
    hfsb_str again;
    bool     fits;
    if (end == 0) return EXDEV;
    end--;
    while (end > 0 && w->done.ptr[end - 1] != '/') end--;
    hfsbi_walk_restart(w, end);
    again = hfsb_buf_str(&w->done);
    while (hfsbi_take_name(&again, name, &fits))
        if (!hfsbi_walk_enter(w, name)) return errno;
    return 0;
}

static int hfsbi_buf_errno(hfsb_status st) {
    return st == HFSB_OK ? 0 : st == HFSB_NOMEM ? ENOMEM : ENAMETOOLONG;
}

/* Puts the target of a symlink before the path ahead. An absolute one must name
   a place beneath the root, and begins there. */
static int hfsbi_walk_follow(hfsbi_walk *w, hfsb_str target) {
    hfsb_buf next = HFSB_INIT;
    int      code = 0;
    if (target.len == 0) return ENOENT;
    if (++w->links > HFSBI_LINKS_MAX) return ELOOP;
    next.alloc = w->path.alloc;
    next.max = w->path.max;
    if (target.ptr[0] == '/') {
        code = hfsbi_link_from_root(w->place, w->at, target, &next);
        hfsbi_walk_restart(w, 0);
    } else {
        hfsb_buf_append(&next, target);
    }
    hfsb_buf_append_byte(&next, '/');
    hfsb_buf_append(&next, w->ahead);
    hfsb_buf_free(&w->path);
    w->path = next;
    w->ahead = hfsb_buf_str(&w->path);
    return code ? code : hfsbi_buf_errno(next.status);
}

/* Resolves one component. If it becomes a symlink after readlinkat(), entering
   it fails. */
static int hfsbi_walk_step(hfsbi_walk *w, const char *name) {
    char    target[PATH_MAX];
    ssize_t n;
    if (strcmp(name, "..") == 0) return hfsbi_walk_up(w);
    n = readlinkat(w->at, name, target, sizeof target);
    if (n == (ssize_t)sizeof target) return ENAMETOOLONG;
    if (n >= 0) return hfsbi_walk_follow(w, hfsb_str_make(target, (size_t)n));
    if (errno != EINVAL) return errno;
    if (!hfsbi_walk_enter(w, name)) return errno;
    return hfsbi_buf_errno(hfsb_buf_printf(&w->done, "%s/", name));
}

/* A descriptor, or -1 with errno. */
static int hfsbi_open_by_walk(const hfsb_root *root, const char *path) {
    hfsbi_walk w = HFSB_INIT;
    char       name[HFSBI_NAME_SIZE];
    bool       fits = true;
    int        code;
    w.place = root;
    w.root = w.at = root->root_fd;
    w.done.alloc = w.path.alloc = root->alloc;
    w.path.max = (size_t)PATH_MAX * 8;
    code = hfsbi_buf_errno(hfsb_buf_append(&w.path, hfsb_cstr(path)));
    w.ahead = hfsb_buf_str(&w.path);
    while (code == 0 && hfsbi_take_name(&w.ahead, name, &fits))
        code = hfsbi_walk_step(&w, name);
    if (code == 0 && !fits) code = ENAMETOOLONG;
    if (code == 0 && w.at == w.root && !hfsbi_walk_enter(&w, "."))
        code = errno;
    hfsb_buf_free(&w.done);
    hfsb_buf_free(&w.path);
    if (code == 0) return w.at;
    if (w.at != w.root) hfsbi_close(&w.at);
    errno = code;
    return -1;
}

/* The directory at path, resolved without leaving root; -1 with errno, EXDEV
   for a path that leads outside. */
static int hfsbi_open_beneath(const hfsb_root *root, const char *path) {
#ifdef HFSBI_LINUX
    int fd = hfsbi_open_by_kernel(root->root_fd, path);
    if (fd >= 0 || errno != ENOSYS) return fd;
#endif
    if (path[0] == '/' || strlen(path) >= PATH_MAX) {
        errno = path[0] == '/' ? EXDEV : ENAMETOOLONG;
        return -1;
    }
    return hfsbi_open_by_walk(root, path);
}

/* ---- messages ---- */

HFSBI_FN hfsb_status hfsbi_file_fail(hfsb_err *err, hfsb_status code,
                                     const char *what, hfsb_str path) {
    hfsbi_fail(err, code, 0, "%s: ", what);
    hfsbi_err_quote(err, path, HFSBI_PATH_SHOWN);
    return code;
}

HFSBI_FN hfsb_status hfsbi_check_path(hfsb_str path, hfsb_err *err) {
    if (path.len == 0)
        return hfsbi_fail(err, HFSB_REFUSED, 0, "The path is empty.");
    if (hfsb_str_find_byte(path, '\0') != HFSB_NPOS)
        return hfsbi_file_fail(err, HFSB_REFUSED,
                               "The path contains a NUL byte", path);
    return HFSB_OK;
}

static hfsb_status hfsbi_fail_missing(hfsb_str path, int code, hfsb_err *err) {
    hfsbi_file_fail(err, HFSB_NOT_FOUND, "File not found", path);
    if (code == ENOTDIR)
        hfsbi_err_add(err, " (a part of the path is not a directory)");
    else if (path.len && path.ptr[0] == '~')
        hfsbi_err_add(err, " (\"~\" is not expanded: give the full path)");
    return HFSB_NOT_FOUND;
}

static hfsb_status hfsbi_fail_outside(const hfsb_root *root, hfsb_str path,
                                      hfsb_err *err) {
    const char *before = root->next ? "Path is outside the roots "
                                    : "Path is outside the root ";
    hfsbi_fail(err, HFSB_OUTSIDE, 0, "%s", "");
    for (; root; root = root->next) {
        hfsbi_err_add(err, "%s", before);
        hfsbi_err_quote(err, hfsb_root_path(root), HFSBI_PATH_SHOWN);
        before = ", ";
    }
    hfsbi_err_add(err, ": ");
    hfsbi_err_quote(err, path, HFSBI_PATH_SHOWN);
    return HFSB_OUTSIDE;
}

HFSBI_FN hfsb_status hfsbi_file_fail_os(const hfsb_root *root, hfsb_str path,
                                        int code, const char *verb,
                                        hfsb_err *err) {
    hfsb_status st;
    if (code == EXDEV && root && root->root_fd >= 0)
        return hfsbi_fail_outside(root, path, err);
    if (code == HFSBI_DENIED)
        return hfsbi_file_fail(err, HFSB_DENIED, "Path is on the deny list",
                               path);
    if (code == ENOENT || code == ENOTDIR)
        return hfsbi_fail_missing(path, code, err);
    if (code == EISDIR)
        return hfsbi_file_fail(err, HFSB_IS_DIR, "Is a directory", path);
    st = code == ENAMETOOLONG || code == ELOOP ? HFSB_ARG
                                               : hfsbi_os_status(code);
    hfsbi_fail(err, st, 0, "Cannot %s ", verb);
    hfsbi_err_quote(err, path, HFSBI_PATH_SHOWN);
    hfsbi_err_add(err, ": %s", hfsbi_os_text(code));
    return st;
}

/* ---- targets ---- */

HFSBI_FN hfsb_alloc hfsbi_root_alloc(const hfsb_root *root) {
    hfsb_alloc none = HFSB_INIT;
    return root ? root->alloc : none;
}

HFSBI_FN bool hfsbi_root_has_deny(const hfsb_root *root) {
    return root && root->deny->rules;
}

/* Appends path as seen from the root or, without one, from the current
   directory. */
static int hfsbi_path_from_root(const hfsb_root *root, hfsb_str path,
                                hfsb_buf *out) {
    bool absolute = path.ptr[0] == '/', rooted = root && root->root_fd >= 0;
    hfsb_str base = HFSB_INIT;
    if (absolute && rooted) return hfsbi_relative_to_root(root, path, out);
    if (root) base = hfsb_buf_str(rooted ? &root->work_rest : &root->work_dir);
    if (!absolute && base.len > 0) {
        hfsb_buf_append(out, base);
        hfsb_buf_append_byte(out, '/');
    }
    return hfsb_buf_append(out, path) == HFSB_OK ? 0 : ENOMEM;
}

/* A descriptor of the directory at path, or -1 with errno. */
static int hfsbi_root_open_dir(const hfsb_root *root, const char *path) {
    if (root && root->root_fd >= 0) return hfsbi_open_beneath(root, path);
    return hfsbi_openat(AT_FDCWD, path, HFSBI_O_SEARCH, 0);
}

/* A descriptor of the directory at the first n bytes of the target's path,
   which are empty or end in a slash; or -1 with errno. */
static int hfsbi_target_open_prefix(const hfsb_root *root,
                                    hfsbi_target *target, size_t n) {
    char *p = target->path.ptr;
    int   fd;
    if (n == 0) return hfsbi_root_open_dir(root, ".");
    if (n == 1) return hfsbi_root_open_dir(root, "/");
    p[n - 1] = '\0';
    fd = hfsbi_root_open_dir(root, p);
    p[n - 1] = '/';
    return fd;
}

/* Opens the deepest directory of the path that exists; the name becomes the
   whole rest. A ".." in the rest cannot be resolved. */
static int hfsbi_target_open_deepest(const hfsb_root *root,
                                     hfsbi_target    *target) {
    const char *p = target->path.ptr;
    size_t      n = (size_t)(target->name - p);
    do {
        while (n > 0 && p[n - 1] == '/') n--;
        while (n > 0 && p[n - 1] != '/') n--;
        target->dir = hfsbi_target_open_prefix(root, target, n);
    } while (target->dir < 0 && errno == ENOENT && n > 0);
    if (target->dir < 0) return errno;
    target->name = p + n;
    return hfsbi_has_dotdot(hfsb_cstr(target->name)) ? ENOENT : 0;
}

/* ---- the deny list ---- */

/* True if a pattern matches the path or a directory above it. */
static bool hfsbi_deny_has(hfsbi_deny *deny, hfsb_str path, bool is_dir) {
    size_t end = 0, n;
    bool   denied = false;
    (void)pthread_mutex_lock(&deny->lock);
    while (!denied && end < path.len) {
        n = hfsb_str_find_byte(hfsb_str_slice(path, end, path.len), '/');
        end = n == HFSB_NPOS ? path.len : end + n;
        denied = hfsbi_ignore_has(deny->rules, hfsb_str_slice(path, 0, end),
                                  end < path.len || is_dir);
        end++;
    }
    (void)pthread_mutex_unlock(&deny->lock);
    return denied;
}

/* One root may be inside another: a pattern is relative to each of them, no
   matter which one the path was resolved from. */
HFSBI_FN bool hfsbi_root_denies(const hfsb_root *root, hfsb_str path,
                                bool is_dir) {
    hfsb_buf         whole = HFSB_INIT;
    hfsb_str         rest;
    const hfsb_root *r;
    bool             denied;
    if (!root || !root->deny->rules) return false;
    denied = hfsbi_deny_has(root->deny, path, is_dir);
    if (denied || !root->deny->roots->next) return denied;
    whole.alloc = root->alloc;
    denied = hfsb_path_join(hfsb_buf_str(&root->real_root), path, &whole) !=
             HFSB_OK; /* when out of memory, everything is denied */
    for (r = root->deny->roots; !denied && r; r = r->next)
        denied = r != root &&
                 hfsbi_cut_prefix(hfsb_buf_str(&r->real_root),
                                  hfsb_buf_str(&whole), &rest) &&
                 hfsbi_deny_has(root->deny, rest, is_dir);
    hfsb_buf_free(&whole);
    return denied;
}

/* The real path of the target's directory. */
static int hfsbi_target_dir_path(const hfsbi_target *target,
                                 char                real[PATH_MAX]) {
    const hfsb_root *root = target->root;
    hfsb_str         dir = hfsb_buf_str(&target->path);
    hfsb_buf         path = HFSB_INIT;
    int              code = ENOMEM;
#ifdef HFSBI_LINUX
    char    link[32];
    ssize_t n;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", target->dir);
    n = readlinkat(AT_FDCWD, link, real, PATH_MAX);
    if (n > 0 && n < PATH_MAX && real[0] == '/') {
        real[n] = '\0';
        return 0;
    }
#endif
    path.alloc = hfsbi_root_alloc(root);
    if (strcmp(target->name, ".") != 0)
        dir.len = (size_t)(target->name - dir.ptr);
    if (root && root->root_fd >= 0) {
        hfsb_buf_append(&path, hfsb_buf_str(&root->real_root));
        hfsb_buf_append_byte(&path, '/');
    }
    hfsb_buf_append(&path, dir.len ? dir : HFSB_LIT("."));
    if (hfsb_buf_finish(&path, 0) == HFSB_OK)
        code = realpath(path.ptr, real) ? 0 : errno;
    hfsb_buf_free(&path);
    return code;
}

HFSBI_FN int hfsbi_target_place(const hfsbi_target *target, hfsb_buf *out) {
    char     real[PATH_MAX];
    hfsb_str rest = HFSB_INIT;
    int      code = hfsbi_target_dir_path(target, real);
    if (code != 0) return code;
    if (!hfsbi_cut_prefix(hfsb_buf_str(&target->root->real_root),
                          hfsb_cstr(real), &rest))
        rest = hfsb_cstr(real + 1);
    return hfsb_path_join(rest, hfsb_cstr(target->name), out) == HFSB_OK
               ? 0
               : ENOMEM;
}

HFSBI_FN int hfsbi_target_real(const hfsbi_target *target, hfsb_buf *out) {
    char             real[PATH_MAX];
    hfsb_str         rest;
    const hfsb_root *root = target->root;
    int              code = hfsbi_target_dir_path(target, real);
    if (code != 0) return code;
    if (root && root->root_fd >= 0 &&
        !hfsbi_cut_prefix(hfsb_buf_str(&root->real_root), hfsb_cstr(real),
                          &rest))
        return EXDEV; /* moved outside after it was opened */
    return hfsb_path_join(hfsb_cstr(real), hfsb_cstr(target->name), out) ==
                   HFSB_OK
               ? 0
               : ENOMEM;
}

HFSBI_FN bool hfsbi_root_is_top(const hfsb_root *root, const struct stat *st) {
    struct stat top;
    for (; root; root = root->next)
        if (root->root_fd >= 0 && fstat(root->root_fd, &top) == 0 &&
            top.st_dev == st->st_dev && top.st_ino == st->st_ino)
            return true;
    return false;
}

/* HFSBI_DENIED when the deny list names the target. */
static int hfsbi_target_deny(const hfsbi_target *target) {
    hfsb_buf path = HFSB_INIT;
    int      code;
    if (!target->root || !target->root->deny->rules) return 0;
    path.alloc = target->root->alloc;
    code = hfsbi_target_place(target, &path);
    if (code == 0 &&
        hfsbi_root_denies(target->root, hfsb_buf_str(&path),
                          target->exists && S_ISDIR(target->st.st_mode)))
        code = HFSBI_DENIED;
    hfsb_buf_free(&path);
    return code;
}

/* The same for the path as given. */
static int hfsbi_target_deny_given(const hfsbi_target *target) {
    const hfsb_root *root = target->root;
    hfsb_buf         clean = HFSB_INIT;
    hfsb_str         path, rest;
    int              code = 0;
    if (!root || !root->deny->rules) return 0;
    clean.alloc = root->alloc;
    if (hfsb_path_clean(hfsb_buf_str(&target->path), &clean) != HFSB_OK)
        code = ENOMEM;
    path = hfsb_buf_str(&clean);
    if (path.len && path.ptr[0] == '/') { /* there is no root */
        if (hfsbi_cut_prefix(hfsb_buf_str(&root->work_dir), path, &rest) ||
            hfsbi_cut_prefix(hfsb_buf_str(&root->real_root), path, &rest))
            path = rest;
        else path = hfsb_str_slice(path, 1, path.len);
    }
    if (code == 0 && hfsbi_root_denies(root, path, false)) code = HFSBI_DENIED;
    hfsb_buf_free(&clean);
    return code;
}

/* ---- resolving ---- */

/* Makes the directories in target->name and enters them. An existing one must
   not be a symlink. */
static int hfsbi_target_make_parents(hfsbi_target *target, bool sync) {
    char *name = target->path.ptr + (target->name - target->path.ptr), *slash;
    for (; (slash = strchr(name, '/')) != NULL; name = slash + 1) {
        int fd, code;
        *slash = '\0';
        if (*name == '\0' || strcmp(name, ".") == 0) continue;
        code = hfsbi_mkdirat(target->dir, name, 0777);
        if (code != 0 && code != EEXIST) return code;
        if (code == 0 && sync) hfsbi_sync_dir(target->dir);
        fd = hfsbi_openat(target->dir, name, HFSBI_O_SEARCH | O_NOFOLLOW, 0);
        if (fd < 0) return errno == ELOOP ? ENOTDIR : errno;
        hfsbi_close(&target->dir);
        target->dir = fd;
    }
    target->name = name;
    return 0;
}

HFSBI_FN int hfsbi_target_stat(hfsbi_target *target) {
    target->exists = fstatat(target->dir, target->name, &target->st,
                             AT_SYMLINK_NOFOLLOW) == 0;
    return target->exists || errno == ENOENT ? 0 : errno;
}

/* Replaces the name, a symlink, by what it contains. */
static int hfsbi_target_follow(const hfsb_root *root, hfsbi_target *target) {
    char    to[PATH_MAX];
    size_t  n = (size_t)(target->name - target->path.ptr);
    ssize_t len = readlinkat(target->dir, target->name, to, sizeof to);
    int     code = 0;
    if (len < 0) return errno;
    if (len == 0) return ENOENT;
    if (len == (ssize_t)sizeof to) return ENAMETOOLONG;
    if (to[0] == '/') n = 0;
    hfsb_buf_truncate(&target->path, n);
    if (to[0] == '/' && root && root->root_fd >= 0)
        code = hfsbi_link_from_root(
            root, target->dir, hfsb_str_make(to, (size_t)len), &target->path);
    else hfsb_buf_append(&target->path, hfsb_str_make(to, (size_t)len));
    hfsbi_close(&target->dir);
    if (code != 0) return code;
    return target->path.status == HFSB_OK ? 0 : ENOMEM;
}

/* Handles a path that ends in a slash or in dots, and so names a directory. */
static int hfsbi_target_enter(const hfsb_root *root, hfsbi_target *target,
                              unsigned how) {
    int code;
    target->dir = hfsbi_root_open_dir(root, target->path.ptr);
    target->name = ".";
    if (target->dir >= 0) {
        code = hfsbi_target_stat(target);
        return code == 0 ? hfsbi_target_deny(target) : code;
    }
    if ((how & HFSBI_RESOLVE_PARENTS) && errno == ENOENT) return EISDIR;
    return errno;
}

/* Opens the directory of the last name of target->path and looks up that name.
   `path` is the one the caller gave. "~" and "~/x" are mistakes, not requests
   to make a file or a directory of that name. */
static int hfsbi_target_step(const hfsb_root *root, hfsb_str path,
                             unsigned how, hfsbi_target *target) {
    hfsb_str all = hfsb_buf_str(&target->path);
    hfsb_str name = hfsb_path_base(all);
    int      code;
    if (name.len == 0 || hfsb_str_equal(name, HFSB_LIT(".")) ||
        hfsb_str_equal(name, HFSB_LIT("..")))
        return hfsbi_target_enter(root, target, how);
    target->name = name.ptr;
    target->dir = hfsbi_target_open_prefix(root, target, all.len - name.len);
    if (target->dir >= 0) {
        code = hfsbi_target_stat(target);
        if (code == 0 && !target->exists && (how & HFSBI_RESOLVE_PARENTS) &&
            hfsb_str_equal(path, HFSB_LIT("~")))
            return ENOENT;
        return code == 0 ? hfsbi_target_deny(target) : code;
    }
    if (errno != ENOENT) return errno;
    code = hfsbi_target_open_deepest(root, target);
    if (code == 0) code = hfsbi_target_deny(target);
    if (code != 0 || (how & HFSBI_RESOLVE_DEEPEST)) return code;
    if (!(how & HFSBI_RESOLVE_PARENTS)) return ENOENT;
    if (path.ptr[0] == '~' && strlen(target->name) == path.len) return ENOENT;
    code = hfsbi_target_make_parents(target, !(how & HFSBI_RESOLVE_NO_SYNC));
    if (code == 0) code = hfsbi_target_stat(target);
    return code == 0 && target->exists && S_ISLNK(target->st.st_mode) ? ELOOP
                                                                      : code;
}

/* ENOTDIR unless the names of the path, each a directory and not a symlink,
   lead to the open directory. */
static int hfsbi_target_check_direct(const hfsbi_target *target) {
    hfsbi_walk  w = HFSB_INIT;
    hfsb_str    ahead = hfsb_buf_str(&target->path);
    char        name[HFSBI_NAME_SIZE];
    struct stat is, want;
    bool        fits;
    int         code = 0;
    ahead = hfsb_str_slice(ahead, 0, (size_t)(target->name - ahead.ptr));
    w.root = w.at = target->root->root_fd;
    while (code == 0 && hfsbi_take_name(&ahead, name, &fits))
        if (!hfsbi_walk_enter(&w, name))
            code = errno == ELOOP ? ENOTDIR : errno;
    if (code == 0 && (fstat(w.at, &is) != 0 || fstat(target->dir, &want) != 0))
        code = errno;
    else if (code == 0 &&
             (is.st_dev != want.st_dev || is.st_ino != want.st_ino))
        code = ENOTDIR;
    if (w.at != w.root) hfsbi_close(&w.at);
    return code;
}

HFSBI_FN void hfsbi_target_close(hfsbi_target *target) {
    hfsbi_close(&target->dir);
    hfsb_buf_free(&target->path);
}

/* Starts the target: its root, and the path as seen from there. */
static int hfsbi_target_begin(const hfsb_root *root, hfsb_str path,
                              hfsbi_target *target) {
    int code;
    do {
        target->root = root;
        code = hfsbi_path_from_root(root, path, &target->path);
        if (root) root = root->next;
    } while (code == EXDEV && root);
    return code == 0 ? hfsbi_target_deny_given(target) : code;
}

HFSBI_FN hfsb_status hfsbi_resolve(const hfsb_root *root, hfsb_str path,
                                   unsigned how, const char *verb,
                                   hfsbi_target *target, hfsb_err *err) {
    unsigned links = 0;
    int      code;
    memset(target, 0, sizeof *target);
    target->dir = -1;
    target->path.alloc = hfsbi_root_alloc(root);
    if (hfsbi_check_path(path, err) != HFSB_OK) return HFSB_REFUSED;
    if (root && root->far)
        return hfsbi_file_fail(err, HFSB_REFUSED,
                               "The path is on another machine", path);
    code = hfsbi_target_begin(root, path, target);
    if (code == 0) code = hfsbi_target_step(target->root, path, how, target);
    while (code == 0 && target->exists && S_ISLNK(target->st.st_mode) &&
           !(how & HFSBI_RESOLVE_NO_FOLLOW)) {
        code = ++links > HFSBI_LINKS_MAX
                   ? ELOOP
                   : hfsbi_target_follow(target->root, target);
        if (code == 0)
            code = hfsbi_target_step(target->root, path, how, target);
    }
    if (code == 0 && (how & HFSBI_RESOLVE_DIRECT))
        code = hfsbi_target_check_direct(target);
    if (code == 0) return hfsbi_ok(err);
    hfsbi_target_close(target);
    return hfsbi_file_fail_os(root, path, code, verb, err);
}

/* ---- the root ---- */

/* Appends path made absolute: as text, or by the system when it has a "..",
   which after a symlink means a different directory. */
static int hfsbi_absolute(hfsb_str path, const char *terminated,
                          hfsb_buf *out) {
    char        here[PATH_MAX];
    hfsb_status st;
    if (hfsbi_has_dotdot(path)) {
        if (!realpath(terminated, here)) return errno;
        path = hfsb_cstr(here);
    } else if (path.ptr[0] != '/' && !getcwd(here, sizeof here)) {
        return errno;
    }
    st = path.ptr[0] == '/' ? hfsb_path_clean(path, out)
                            : hfsb_path_join(hfsb_cstr(here), path, out);
    return st == HFSB_OK ? 0 : ENOMEM;
}

static hfsb_status hfsbi_root_fail(hfsb_err *err, int code, const char *what,
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

/* Opens a directory of the host into *fd and appends its absolute path; with
   `real` also the path without symlinks. */
static int hfsbi_root_open_host(const hfsb_alloc *alloc, hfsb_str dir, int *fd,
                                hfsb_buf *absolute, hfsb_buf *real) {
    char  resolved[PATH_MAX];
    char *path = hfsbi_cstr_copy(alloc, dir);
    int   code;
    if (!path) return ENOMEM;
    *fd = hfsbi_openat(AT_FDCWD, path, HFSBI_O_SEARCH, 0);
    code = *fd < 0 ? errno : hfsbi_absolute(dir, path, absolute);
    if (code == 0 && real) {
        if (!realpath(path, resolved)) code = errno;
        else if (hfsb_buf_append(real, hfsb_cstr(resolved)) != HFSB_OK)
            code = ENOMEM;
    }
    hfsbi_array_free(alloc, path, dir.len + 1, 1);
    return code;
}

/* The working directory beneath the root; a relative one starts at the
   root. */
static hfsb_status hfsbi_root_set_inside(hfsb_root *root, hfsb_str dir,
                                         hfsb_err *err) {
    int code = hfsbi_path_from_root(root, dir, &root->work_rest), fd;
    if (code == 0) {
        fd = hfsbi_open_beneath(root, root->work_rest.ptr);
        if (fd < 0) code = errno;
        hfsbi_close(&fd);
    }
    if (code == 0 && hfsb_path_join(hfsb_buf_str(&root->root),
                                    hfsb_buf_str(&root->work_rest),
                                    &root->work_dir) != HFSB_OK)
        code = ENOMEM;
    if (code == 0) return HFSB_OK;
    if (code == EXDEV) return hfsbi_fail_outside(root, dir, err);
    return hfsbi_root_fail(err, code, "Working directory", dir);
}

static hfsb_status hfsbi_root_fill(hfsb_root *root, hfsb_str top, hfsb_str dir,
                                   hfsb_err *err) {
    int code, fd = -1;
    if (hfsb_str_find_byte(top, '\0') != HFSB_NPOS ||
        hfsb_str_find_byte(dir, '\0') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "The root or the working directory contains a NUL "
                          "byte.");
    if (top.len > 0) {
        code = hfsbi_root_open_host(&root->alloc, top, &root->root_fd,
                                    &root->root, &root->real_root);
        if (code != 0)
            return hfsbi_root_fail(err, code, "Root directory", top);
        return hfsbi_root_set_inside(root, dir.len ? dir : HFSB_LIT("."), err);
    }
    if (dir.len == 0) return HFSB_OK;
    code = hfsbi_root_open_host(&root->alloc, dir, &fd, &root->work_dir, NULL);
    hfsbi_close(&fd);
    if (code == 0) return HFSB_OK;
    return hfsbi_root_fail(err, code, "Working directory", dir);
}

HFSBI_FN hfsb_status hfsbi_root_move(hfsb_root *root, hfsb_str work_dir,
                                     hfsb_err *err) {
    hfsb_buf    rest = root->work_rest, dir = root->work_dir;
    hfsb_status st = HFSB_OK;
    int         code, fd = -1;
    if (hfsb_str_find_byte(work_dir, '\0') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "The working directory contains a NUL byte.");
    memset(&root->work_rest, 0, sizeof root->work_rest);
    memset(&root->work_dir, 0, sizeof root->work_dir);
    root->work_rest.alloc = root->work_dir.alloc = root->alloc;
    if (root->root_fd >= 0) {
        st = hfsbi_root_set_inside(root, work_dir, err);
    } else {
        code = hfsbi_root_open_host(&root->alloc, work_dir, &fd,
                                    &root->work_dir, NULL);
        hfsbi_close(&fd);
        if (code != 0)
            st = hfsbi_root_fail(err, code, "Working directory", work_dir);
    }
    hfsb_buf_free(st == HFSB_OK ? &rest : &root->work_rest);
    hfsb_buf_free(st == HFSB_OK ? &dir : &root->work_dir);
    if (st == HFSB_OK) return hfsbi_ok(err);
    root->work_rest = rest;
    root->work_dir = dir;
    return st;
}

/* One allocation for all; root.sweeps and root.deny point into it. */
typedef struct hfsbi_root_block {
    hfsb_root    root;
    hfsbi_sweeps sweeps;
    hfsbi_deny   deny;
} hfsbi_root_block;

/* Returns a root without directories, or NULL when out of memory. */
static hfsb_root *hfsbi_root_new(const hfsb_alloc *alloc) {
    hfsbi_root_block *block =
        (hfsbi_root_block *)hfsbi_array(alloc, 1, sizeof *block);
    hfsb_root *root;
    if (!block) return NULL;
    memset(block, 0, sizeof *block);
    root = &block->root;
    root->sweeps = &block->sweeps;
    root->deny = &block->deny;
    root->deny->roots = root;
    (void)pthread_mutex_init(&root->sweeps->lock, NULL);
    (void)pthread_mutex_init(&root->deny->lock, NULL);
    root->root_fd = -1;
    root->alloc = root->root.alloc = root->real_root.alloc = *alloc;
    root->work_dir.alloc = root->work_rest.alloc = *alloc;
    return root;
}

/* Compiles the deny list. */
static hfsb_status
hfsbi_root_set_deny(hfsb_root *root, const hfsb_root_opts *o, hfsb_err *err) {
    const char *work = root->work_dir.len ? root->work_dir.ptr : ".";
    char        real[PATH_MAX];
    size_t      i;
    if (o->deny_count == 0) return HFSB_OK;
    if (root->root_fd < 0) {
        if (!realpath(work, real))
            return hfsbi_root_fail(err, errno, "Working directory",
                                   hfsb_cstr(work));
        hfsb_buf_append(&root->real_root, hfsb_cstr(real));
    }
    if (root->real_root.status != HFSB_OK ||
        hfsbi_ignore_open(&root->alloc, &root->deny->rules) != HFSB_OK)
        return hfsbi_fail_status(err, HFSB_NOMEM, "Deny list");
    for (i = 0; i < o->deny_count; i++) {
        if (hfsbi_ignore_push(root->deny->rules, HFSB_LIT(""),
                              hfsb_cstr(o->deny[i])) != HFSB_OK)
            return hfsbi_fail_status(err, HFSB_NOMEM, "Deny list");
        if (hfsbi_ignore_count(root->deny->rules) == i + 1) continue;
        hfsbi_fail(err, HFSB_ARG, 0, "Invalid deny pattern: \"");
        hfsbi_err_quote(err, hfsb_cstr(o->deny[i]), HFSBI_PATH_SHOWN);
        hfsbi_err_add(err, "\"");
        return HFSB_ARG;
    }
    return HFSB_OK;
}

/* Appends a pattern that matches only this path from the top. */
static void hfsbi_put_pattern(hfsb_str path, hfsb_buf *out) {
    size_t i;
    hfsb_buf_append_byte(out, '/');
    for (i = 0; i < path.len; i++) {
        char c = path.ptr[i];
        if (strchr("*?[\\!# ", c)) hfsb_buf_append_byte(out, '\\');
        hfsb_buf_append_byte(out, c == '\n' ? '?' : c);
    }
}

HFSBI_FN bool hfsbi_root_contains(const hfsb_root *root, hfsb_str real) {
    hfsb_str rest;
    for (; root; root = root->next)
        if (root->root_fd >= 0 &&
            hfsbi_cut_prefix(hfsb_buf_str(&root->real_root), real, &rest) &&
            rest.len)
            return true;
    return false;
}

HFSBI_FN hfsb_status hfsbi_root_hide(hfsb_root *root, hfsb_str real) {
    const hfsb_root *r;
    hfsb_buf         pattern = HFSB_INIT;
    hfsb_str         rest;
    hfsb_status      st = HFSB_OK;
    pattern.alloc = root->alloc;
    for (r = root; r && st == HFSB_OK; r = r->next) {
        if (r->root_fd < 0 ||
            !hfsbi_cut_prefix(hfsb_buf_str(&r->real_root), real, &rest) ||
            !rest.len)
            continue;
        hfsb_buf_truncate(&pattern, 0);
        hfsbi_put_pattern(rest, &pattern);
        st = pattern.status;
        if (st == HFSB_OK && !root->deny->rules)
            st = hfsbi_ignore_open(&root->alloc, &root->deny->rules);
        if (st == HFSB_OK)
            st = hfsbi_ignore_push(root->deny->rules, HFSB_LIT(""),
                                   hfsb_buf_str(&pattern));
    }
    hfsb_buf_free(&pattern);
    return st;
}

/* Adds the roots after the first. */
static hfsb_status
hfsbi_root_add_more(hfsb_root *root, const hfsb_root_opts *o, hfsb_err *err) {
    hfsb_root  *last = root;
    hfsb_status st = HFSB_OK;
    size_t      i;
    if (o->more_root_count &&
        (!o->root.len || o->more_root_count >= HFSBI_ROOTS))
        return hfsbi_fail(err, HFSB_ARG, 0, "There may be 1 to %d roots.",
                          HFSBI_ROOTS);
    for (i = 0; st == HFSB_OK && i < o->more_root_count; i++) {
        last->next = hfsbi_root_new(&o->alloc);
        if (!last->next)
            return hfsbi_fail_status(err, HFSB_NOMEM, "Root directory");
        last = last->next;
        st = o->more_roots[i][0]
                 ? hfsbi_root_fill(last, hfsb_cstr(o->more_roots[i]),
                                   HFSB_LIT(""), err)
                 : hfsbi_fail(err, HFSB_ARG, 0, "A root is empty.");
        last->deny = root->deny;
    }
    return st;
}

hfsb_status hfsb_root_open(const hfsb_root_opts *opts, hfsb_root **out,
                           hfsb_err *err) {
    hfsb_root_opts none = HFSB_INIT;
    hfsb_root     *root;
    hfsb_status    st;
    if (!opts) opts = &none;
    *out = NULL;
    root = hfsbi_root_new(&opts->alloc);
    if (!root) return hfsbi_fail_status(err, HFSB_NOMEM, "Root directory");
    st = hfsbi_root_fill(root, opts->root, opts->work_dir, err);
    if (st == HFSB_OK) st = hfsbi_root_add_more(root, opts, err);
    if (st == HFSB_OK) st = hfsbi_root_set_deny(root, opts, err);
    if (st != HFSB_OK) {
        hfsb_root_close(root);
        return st;
    }
    *out = root;
    return hfsbi_ok(err);
}

HFSBI_FN hfsb_status hfsbi_root_open_far(const hfsbi_far  *far,
                                         hfsb_str          work_dir,
                                         const hfsb_alloc *alloc,
                                         hfsb_root **out, hfsb_err *err) {
    hfsb_root *root = hfsbi_root_new(alloc);
    *out = root;
    if (root && hfsb_buf_append(&root->work_dir, work_dir) == HFSB_OK) {
        root->far = far;
        return hfsbi_ok(err);
    }
    hfsb_root_close(root);
    *out = NULL;
    return hfsbi_fail_status(err, HFSB_NOMEM, "Root directory");
}

HFSBI_FN void hfsbi_root_nest(hfsb_root *outer, hfsb_root *inner) {
    hfsb_root *old = inner->outer, **link;
    if (old) {
        (void)pthread_mutex_lock(&old->sweeps->lock);
        for (link = &old->nested; *link != inner;)
            link = &(*link)->nested_next;
        *link = inner->nested_next;
        (void)pthread_mutex_unlock(&old->sweeps->lock);
    }
    inner->outer = outer;
    if (!outer) return;
    (void)pthread_mutex_lock(&outer->sweeps->lock);
    inner->nested_next = outer->nested;
    outer->nested = inner;
    (void)pthread_mutex_unlock(&outer->sweeps->lock);
}

HFSBI_FN bool hfsbi_root_has_nested(const hfsb_root   *root,
                                    const struct stat *st) {
    const hfsb_root *inner;
    struct stat      at;
    bool             found = false;
    if (!root) return false;
    (void)pthread_mutex_lock(&root->sweeps->lock);
    for (inner = root->nested; inner && !found; inner = inner->nested_next)
        found = fstat(inner->root_fd, &at) == 0 && at.st_dev == st->st_dev &&
                at.st_ino == st->st_ino;
    (void)pthread_mutex_unlock(&root->sweeps->lock);
    return found;
}

void hfsb_root_close(hfsb_root *root) {
    if (root && root->outer) hfsbi_root_nest(NULL, root);
    while (root) {
        hfsbi_root_block *block = (hfsbi_root_block *)(void *)root;
        hfsb_root        *next = root->next;
        hfsb_alloc        alloc = root->alloc;
        hfsbi_close(&root->root_fd);
        hfsb_buf_free(&root->root);
        hfsb_buf_free(&root->real_root);
        hfsb_buf_free(&root->work_dir);
        hfsb_buf_free(&root->work_rest);
        hfsbi_ignore_close(block->deny.rules);
        (void)pthread_mutex_destroy(&block->deny.lock);
        (void)pthread_mutex_destroy(&block->sweeps.lock);
        hfsbi_array_free(&alloc, block, 1, sizeof *block);
        root = next;
    }
}

hfsb_str hfsb_root_work_dir(const hfsb_root *root) {
    return root ? hfsb_buf_str(&root->work_dir) : hfsb_str_make("", 0);
}

hfsb_str hfsb_root_path(const hfsb_root *root) {
    return root ? hfsb_buf_str(&root->root) : hfsb_str_make("", 0);
}

const hfsb_root *hfsb_root_next(const hfsb_root *root) {
    return root ? root->next : NULL;
}
