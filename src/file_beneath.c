/* file_beneath.c - open directories without leaving a root. Depends on: os. */
#include "file_place.h"

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
    hfsb_buf   next = HFSB_INIT;
    hfsbi_sink sink;
    if (target.len == 0) return ENOENT;
    if (target.ptr[0] == '/') return EXDEV;
    if (++w->links > HFSBI_LINKS_MAX) return ELOOP;
    next.alloc = w->rest.alloc;
    next.max = w->rest.max;
    sink = hfsbi_sink_begin(&next);
    hfsbi_put(&sink, target);
    hfsbi_put_byte(&sink, '/');
    hfsbi_put(&sink,
              hfsb_str_slice(hfsb_buf_str(&w->rest), w->pos, w->rest.len));
    if (hfsbi_sink_end(&sink) != HFSB_OK) {
        hfsb_buf_free(&next);
        return hfsbi_buf_errno(sink.status);
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

HFSBI_FN int hfsbi_open_beneath(int root, const char *path,
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
