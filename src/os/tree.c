/* tree.c - remove and copy whole trees

   Removing walks the tree with one open folder for each level:

       enter --> entries: unlink, or enter --> leave: rmdir, or read it again
                          \--> defer: too deep, moved up to the top

   Every folder is opened from the one above with O_NOFOLLOW and within the
   same mount, so whatever others swap meanwhile, nothing outside the tree is
   reached. No names are stored: a folder is read while its entries are
   removed, and again if it is not empty after that. A folder too deep for our
   levels is renamed into the top one, where it is met again: the tree gets
   wider and flatter until it is gone.

   Copying is a walk of walk.c; each entry is made by its path beneath the
   root, like any other. */
#include "os_private.h"

enum {
    HFSBI_REMOVE_DEPTH = 64,  /* levels, one descriptor each */
    HFSBI_REMOVE_PASSES = 100 /* over one folder that others fill */
};

#define HFSBI_REMOVE_BUSY \
    "Is a mount point, the root of a running sandbox, or in use"

/* A folder whose entries are being removed. */
typedef struct hfsbi_remove_level {
    DIR     *dir;
    char     name[HFSBI_NAME_SIZE]; /* in the level above */
    unsigned passes;
    bool     progress; /* an entry was removed in this pass, */
    bool     failed;   /* ... one could not be, */
    bool     deferred; /* ... or a folder was moved here */
} hfsbi_remove_level;

typedef struct hfsbi_removal {
    const hfsb_root   *root;
    hfsb_str           path; /* as given */
    hfsbi_remove_opts  opts;
    hfsbi_target       target;
    hfsb_buf           place;  /* of the target, for the deny list */
    bool               denies; /* there is such a list */
    hfsbi_remove_level level[HFSBI_REMOVE_DEPTH];
    size_t             depth; /* levels in use */
    unsigned           count; /* entries seen */
    unsigned long long removed;
    hfsb_err           err; /* the first failure */
} hfsbi_removal;

/* ---- failures ---- */

/* Appends the path of an entry of the innermost level to base. */
static hfsb_status hfsbi_removal_put_path(const hfsbi_removal *r,
                                          const char *name, hfsb_buf *base) {
    size_t i;
    for (i = 1; i < r->depth; i++)
        hfsb_buf_printf(base, "%s%s", base->len ? "/" : "", r->level[i].name);
    return hfsb_buf_printf(base, "%s%s", base->len ? "/" : "", name);
}

/* Not errnos: the deny list names it; it lies too deep. */
enum { HFSBI_REMOVE_DENIED = -1, HFSBI_REMOVE_DEEP = -2 };

/* Records that an entry of the innermost level stays. */
static void hfsbi_removal_fail(hfsbi_removal *r, const char *name, int code) {
    hfsb_buf full = HFSB_INIT;
    hfsb_str path = r->path;
    r->level[r->depth - 1].failed = true;
    if (r->err.code != HFSB_OK) return;
    full.alloc = hfsbi_root_alloc(r->root);
    hfsb_buf_append(&full, r->path);
    if (hfsbi_removal_put_path(r, name, &full) == HFSB_OK)
        path = hfsb_buf_str(&full);
    if (code == HFSBI_REMOVE_DENIED)
        hfsbi_file_fail(&r->err, HFSB_DENIED, "Path is on the deny list",
                        path);
    else if (code == HFSBI_REMOVE_DEEP)
        hfsbi_file_fail(&r->err, HFSB_LIMIT, "Lies too deep", path);
    else if (code == EXDEV || code == EBUSY)
        hfsbi_file_fail(&r->err, HFSB_BUSY, HFSBI_REMOVE_BUSY,
                        path);
    else (void)hfsbi_remove_fail(r->root, path, code, &r->err);
    hfsb_buf_free(&full);
}

/* True when the removal must end. */
static bool hfsbi_removal_over(hfsbi_removal *r) {
    hfsb_status st = HFSB_OK;
    if (r->count++ % 32 != 0) return false;
    if (hfsb_cancel_is_set(r->opts.cancel)) st = HFSB_CANCELLED;
    else if (r->opts.until && hfsb_clock_ms() > r->opts.until)
        st = HFSB_TIMEOUT;
    if (st != HFSB_OK) hfsbi_fail_status(&r->err, st, "Removing");
    return st != HFSB_OK;
}

/* ---- one entry ---- */

static int hfsbi_level_fd(const hfsbi_removal *r, size_t depth) {
    return dirfd(r->level[depth - 1].dir);
}

static bool hfsbi_removal_denies(hfsbi_removal *r, const char *name,
                                 bool folder) {
    size_t mark = r->place.len;
    bool   denied;
    if (!r->denies) return false;
    denied = hfsbi_removal_put_path(r, name, &r->place) != HFSB_OK ||
             hfsbi_root_denies(r->target.root, hfsb_buf_str(&r->place),
                               folder);
    hfsb_buf_truncate(&r->place, mark);
    return denied;
}

static void hfsbi_removal_gone(hfsbi_removal *r, size_t depth, int code) {
    r->level[depth - 1].progress = true;
    if (code == 0) r->removed++;
}

/* Moves a folder up to the first level, under the name of a temporary. */
static int hfsbi_removal_defer(hfsbi_removal *r, const char *name) {
    char     to[64];
    uint32_t n;
    int      code;
    if (r->denies) return HFSBI_REMOVE_DEEP; /* patterns need its path */
    (void)hfsbi_random(&n, sizeof n);
    (void)snprintf(to, sizeof to, ".deep.hfsb-%ld-%lu", (long)getpid(),
                   (unsigned long)(n % 1000000000u));
    code = hfsbi_rename_new(hfsbi_level_fd(r, r->depth), name,
                            hfsbi_level_fd(r, 1), to);
    if (code == 0) r->level[0].deferred = true;
    return code;
}

/* Opens a folder; with `force`, one of ours whatever its mode. -1 with
   errno. */
static int hfsbi_removal_open(const hfsbi_removal *r, int dir,
                              const char *name) {
    struct stat st;
    int         fd = hfsbi_open_folder(dir, name, true);
    if (fd < 0 && errno == EACCES && r->opts.force) {
        if (fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
            fd = hfsbi_open_folder(dir, name, true);
        else errno = EACCES;
    }
    if (fd < 0 || fstat(fd, &st) != 0) return fd;
    if (hfsbi_root_has_nested(r->root, &st)) {
        hfsbi_close(&fd);
        errno = EBUSY;
    } else if (r->opts.force && (st.st_mode & 0700) != 0700) {
        (void)fchmod(fd, 0700);
    }
    return fd;
}

/* Makes an open folder the next level. */
static int hfsbi_removal_push(hfsbi_removal *r, int fd, const char *name) {
    hfsbi_remove_level *level = &r->level[r->depth];
    memset(level, 0, sizeof *level);
    level->dir = fdopendir(fd);
    if (!level->dir) {
        int code = errno;
        hfsbi_close(&fd);
        return code;
    }
    (void)snprintf(level->name, sizeof level->name, "%s", name);
    r->depth++;
    return 0;
}

/* Enters a folder; one that cannot be opened may still be empty. 0 or an
   errno, ENOTDIR when it is something else by now. */
static int hfsbi_removal_enter(hfsbi_removal *r, const char *name) {
    int dir = hfsbi_level_fd(r, r->depth), fd = -1, code = EMFILE;
    if (r->depth < HFSBI_REMOVE_DEPTH) {
        fd = hfsbi_removal_open(r, dir, name);
        code = fd < 0 ? errno : hfsbi_removal_push(r, fd, name);
    }
    if (code == ELOOP) code = ENOTDIR;
    if (code == 0 || code == ENOTDIR) return code;
    if (code != ENOENT && code != EXDEV && code != EBUSY) {
        int left = hfsbi_unlinkat(dir, name, AT_REMOVEDIR);
        if (left == 0) code = ENOENT;
        if (left == 0) r->removed++;
    }
    if (code == ENOENT) {
        hfsbi_removal_gone(r, r->depth, code);
        return 0;
    }
    if ((code == EMFILE || code == ENFILE) && r->depth > 1)
        return hfsbi_removal_defer(r, name);
    return code;
}

/* Removes anything but a folder; EISDIR for a folder. */
static int hfsbi_removal_unlink(hfsbi_removal *r, const char *name) {
    int code = hfsbi_unlinkat(hfsbi_level_fd(r, r->depth), name, 0);
    if (code == 0 || code == ENOENT) {
        hfsbi_removal_gone(r, r->depth, code);
        return 0;
    }
    return code;
}

/* If a file and a folder are swapped meanwhile, the other way is tried. */
static void hfsbi_removal_entry(hfsbi_removal *r, const struct dirent *e) {
    hfsbi_entry_type type = hfsbi_dirent_type(e);
    char             name[HFSBI_NAME_SIZE];
    struct stat      st;
    int              code;
    if (strlen(e->d_name) >= sizeof name) return;
    memcpy(name, e->d_name, strlen(e->d_name) + 1);
    if (type == HFSBI_ENTRY_UNKNOWN &&
        fstatat(hfsbi_level_fd(r, r->depth), name, &st,
                AT_SYMLINK_NOFOLLOW) == 0)
        type = hfsbi_entry_type_of(st.st_mode);
    if (hfsbi_removal_denies(r, name, type == HFSBI_ENTRY_FOLDER)) {
        hfsbi_removal_fail(r, name, HFSBI_REMOVE_DENIED);
        return;
    }
    code = type == HFSBI_ENTRY_FOLDER ? ENOTDIR
                                      : hfsbi_removal_unlink(r, name);
    if (type == HFSBI_ENTRY_FOLDER || code == EISDIR || code == EPERM) {
        int entered = hfsbi_removal_enter(r, name);
        if (entered == ENOTDIR && type == HFSBI_ENTRY_FOLDER)
            code = hfsbi_removal_unlink(r, name);
        else if (entered != ENOTDIR) code = entered;
    }
    if (code != 0) hfsbi_removal_fail(r, name, code);
}

/* ---- the walk ---- */

/* True when the innermost folder must be read again: it is still not empty,
   although everything seen in it is gone. */
static bool hfsbi_removal_again(hfsbi_remove_level *level) {
    bool again = level->deferred ||
                 (level->progress && !level->failed &&
                  level->passes < HFSBI_REMOVE_PASSES);
    if (!again) return false;
    level->deferred = level->progress = level->failed = false;
    level->passes++;
    rewinddir(level->dir);
    return true;
}

/* Removes the innermost folder, of which all entries were seen; the first one
   is left to the caller. */
static void hfsbi_removal_leave(hfsbi_removal *r) {
    hfsbi_remove_level *level = &r->level[r->depth - 1];
    bool                failed = level->failed;
    int                 code = 0;
    if (r->depth > 1) {
        code = hfsbi_unlinkat(hfsbi_level_fd(r, r->depth - 1), level->name,
                              AT_REMOVEDIR);
        if (code == 0 || code == ENOENT)
            hfsbi_removal_gone(r, r->depth - 1, code);
    }
    if ((r->depth == 1 || code == ENOTEMPTY || code == EEXIST) &&
        hfsbi_removal_again(level))
        return;
    (void)closedir(level->dir);
    r->depth--;
    if (r->depth == 0 || code == 0 || code == ENOENT) return;
    if (failed) r->level[r->depth - 1].failed = true;
    else hfsbi_removal_fail(r, level->name, code);
}

/* Empties the folder open as fd, which is closed. */
static int hfsbi_removal_empty(hfsbi_removal *r, int fd) {
    struct dirent *e;
    int            code = hfsbi_removal_push(r, fd, "");
    while (code == 0 && r->depth > 0 && !hfsbi_removal_over(r)) {
        errno = 0;
        e = readdir(r->level[r->depth - 1].dir);
        if (!e && errno != 0 && errno != ENOENT)
            hfsbi_removal_fail(r, ".", errno);
        if (!e) hfsbi_removal_leave(r);
        else if (!hfsbi_is_dots(e->d_name)) hfsbi_removal_entry(r, e);
    }
    while (r->depth > 0) (void)closedir(r->level[--r->depth].dir);
    return code;
}

/* Removes a tree. A failure is in r->err. */
static void hfsbi_removal_tree(hfsbi_removal *r, bool top) {
    hfsbi_target *t = &r->target;
    hfsbi_expect  any = HFSB_INIT;
    int           code = 0, fd;
    r->denies = t->root && t->root->deny->rules;
    if (r->denies) code = hfsbi_target_place(t, &r->place);
    if (r->denies && strcmp(r->place.len ? r->place.ptr : "", ".") == 0)
        hfsb_buf_truncate(&r->place, 0);
    if (code == 0) {
        fd = top ? hfsbi_open_folder(t->dir, t->name, false)
                 : hfsbi_removal_open(r, t->dir, t->name);
        code = fd < 0 ? errno : hfsbi_removal_empty(r, fd);
        /* cannot be opened, but may be empty; or changed meanwhile */
        if (code == EACCES || code == ENOTDIR || code == ELOOP) code = 0;
    }
    if (code == 0 && r->err.code == HFSB_OK && !top) {
        code = hfsbi_target_remove(t, true, any);
        if (code == ENOTDIR) code = hfsbi_target_remove(t, false, any);
        if (code == 0 || code == ENOENT) {
            r->removed++;
            return;
        }
    }
    if (code == 0 || r->err.code != HFSB_OK) return;
    if (code == EXDEV || code == EBUSY)
        hfsbi_file_fail(&r->err, HFSB_BUSY, HFSBI_REMOVE_BUSY,
                        r->path);
    else (void)hfsbi_remove_fail(r->root, r->path, code, &r->err);
}

/* Removes the target. A failure is in r->err. */
static void hfsbi_removal_run(hfsbi_removal *r) {
    hfsbi_target *t = &r->target;
    hfsbi_expect  any = HFSB_INIT;
    bool          folder = t->exists && S_ISDIR(t->st.st_mode);
    bool          top = folder && hfsbi_root_is_top(r->root, &t->st);
    int           code = ENOENT;
    if (top && !r->opts.tree)
        hfsbi_file_fail(&r->err, HFSB_REFUSED, "A root cannot be removed",
                        r->path);
    else if (!top && strcmp(t->name, ".") == 0)
        hfsbi_file_fail(&r->err, HFSB_REFUSED,
                        "The path must end in a name, not in dots", r->path);
    else if (folder && r->opts.tree) hfsbi_removal_tree(r, top);
    else {
        if (t->exists) code = hfsbi_target_remove(t, folder, any);
        if (code == 0) r->removed++;
        else (void)hfsbi_remove_fail(r->root, r->path, code, &r->err);
    }
}

HFSBI_FN hfsb_status hfsbi_path_remove_all(const hfsb_root *root,
                                           hfsb_str         path,
                                           const hfsbi_remove_opts *opts,
                                           unsigned long long *removed,
                                           hfsb_err           *err) {
    hfsb_alloc     alloc = hfsbi_root_alloc(root);
    hfsbi_removal *r = (hfsbi_removal *)hfsbi_array(&alloc, 1, sizeof *r);
    hfsb_status    st;
    if (removed) *removed = 0;
    if (!r) return hfsbi_fail_status(err, HFSB_NOMEM, "Removing");
    memset(r, 0, sizeof *r);
    r->root = root;
    r->path = hfsbi_path_trim(path);
    r->place.alloc = alloc;
    if (opts) r->opts = *opts;
    st = hfsbi_resolve(root, r->path, HFSBI_RESOLVE_NO_FOLLOW, "remove",
                       &r->target, &r->err);
    if (st == HFSB_OK) {
        hfsbi_removal_run(r);
        hfsbi_target_close(&r->target);
    }
    st = r->err.code;
    if (err) *err = r->err;
    if (removed) *removed = r->removed;
    hfsb_buf_free(&r->place);
    hfsbi_array_free(&alloc, r, 1, sizeof *r);
    return st;
}

/* ---- copying ---- */

typedef struct hfsbi_copying {
    const hfsb_root *root;
    hfsb_str         to;
    hfsbi_copy_opts  opts;
    hfsbi_copied     done;
    hfsbi_finder     finder;
    hfsb_buf         path; /* where the entry goes */
    hfsb_buf         link; /* the text of a symlink */
    hfsb_err        *err;
} hfsbi_copying;

static hfsb_status hfsbi_copy_fail_limit(const hfsbi_copying *c,
                                         hfsb_str             path) {
    return hfsbi_file_fail(c->err, HFSB_LIMIT,
                           "The limit of what may be copied is reached", path);
}

/* Copies the bytes of an open file; "copy" is the verb of all messages. */
static hfsb_status hfsbi_copy_pieces(hfsbi_copying *c, int fd, hfsb_str path,
                                     hfsb_file_writer *writer) {
    char        piece[32768];
    ssize_t     n;
    hfsb_status st = HFSB_OK;
    while ((n = hfsbi_read_file(fd, piece, sizeof piece)) > 0) {
        c->done.bytes += (unsigned long long)n;
        if (c->done.bytes > c->opts.max_bytes)
            return hfsbi_copy_fail_limit(c, path);
        if (hfsb_cancel_is_set(c->opts.cancel))
            return hfsbi_fail_status(c->err, HFSB_CANCELLED, "Copying");
        if (hfsb_clock_ms() > c->opts.until)
            return hfsbi_fail_status(c->err, HFSB_TIMEOUT, "Copying");
        st = hfsb_file_writer_append(
            writer, hfsb_str_make(piece, (size_t)n), c->err);
        if (st != HFSB_OK) return st;
    }
    if (n < 0)
        return hfsbi_file_fail_os(c->root, path, errno, "copy", c->err);
    return HFSB_OK;
}

/* Copies an open file to path. A file that is replaced keeps its mode. */
static hfsb_status hfsbi_copy_file(hfsbi_copying *c, int fd, unsigned mode,
                                   hfsb_str path) {
    hfsb_file_write_opts o = HFSB_INIT;
    hfsb_file_writer    *writer;
    hfsb_file_info       old;
    hfsb_status          st;
    o.create = c->opts.create;
    o.no_parents = c->opts.no_parents;
    if (hfsb_file_stat(c->root, path, &old, NULL) != HFSB_OK)
        o.mode = mode & 0777u;
    st = hfsb_file_writer_open(c->root, path, &o, &writer, c->err);
    if (st != HFSB_OK) return st;
    st = hfsbi_copy_pieces(c, fd, path, writer);
    if (st == HFSB_OK) st = hfsb_file_writer_commit(writer, NULL, c->err);
    hfsb_file_writer_close(writer);
    if (st == HFSB_OK) c->done.entries++;
    return st;
}

static hfsb_status hfsbi_copy_link(hfsbi_copying *c, const hfsbi_entry *entry,
                                   hfsb_str path) {
    hfsbi_target target;
    int          code;
    hfsb_status  st = hfsbi_resolve(c->root, path, HFSBI_RESOLVE_NO_FOLLOW,
                                    "copy", &target, c->err);
    if (st != HFSB_OK) return st;
    hfsb_buf_truncate(&c->link, 0);
    code = hfsbi_read_link(entry->dir, entry->name, &c->link);
    if (code == 0 && symlinkat(c->link.ptr, target.dir, target.name) != 0)
        code = errno;
    hfsbi_target_close(&target);
    if (code == EEXIST)
        return hfsbi_file_fail(c->err, HFSB_EXISTS, "File exists already",
                               path);
    if (code != 0)
        return hfsbi_file_fail_os(c->root, path, code, "copy", c->err);
    c->done.entries++;
    return HFSB_OK;
}

static hfsb_status hfsbi_copy_folder(hfsbi_copying *c, mode_t mode,
                                     hfsb_str path, unsigned how) {
    hfsb_status st = hfsbi_path_make_folder(
        c->root, path, ((unsigned)mode & 0777u) | 0700u, how, NULL, c->err);
    if (st == HFSB_OK) c->done.entries++;
    return st;
}

/* Callback of the walk: copies one entry. */
static hfsb_status hfsbi_copy_visit(void *user, const hfsbi_entry *entry) {
    hfsbi_copying *c = (hfsbi_copying *)user;
    struct stat    at;
    hfsb_str       path;
    hfsb_status    st;
    int            fd;
    hfsb_buf_truncate(&c->path, 0);
    hfsb_buf_append(&c->path, c->to);
    hfsb_buf_append_byte(&c->path, '/');
    if (hfsb_buf_append(&c->path, entry->path) != HFSB_OK) return HFSB_NOMEM;
    path = hfsb_buf_str(&c->path);
    if (c->done.entries >= c->opts.max_entries)
        return hfsbi_copy_fail_limit(c, path);
    if (fstatat(entry->dir, entry->name, &at, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? HFSB_OK
                               : hfsbi_file_fail_os(c->root, path, errno,
                                                    "copy", c->err);
    if (S_ISDIR(at.st_mode)) return hfsbi_copy_folder(c, at.st_mode, path, 0);
    if (S_ISLNK(at.st_mode)) return hfsbi_copy_link(c, entry, path);
    st = hfsbi_check_regular(path, at.st_mode, c->err);
    if (st != HFSB_OK) return st;
    fd = hfsbi_entry_open(entry->dir, entry->name, &at);
    if (fd < 0 && errno == ENOENT) return HFSB_OK;
    if (fd < 0)
        return hfsbi_file_fail_os(c->root, path, errno, "copy", c->err);
    st = hfsbi_copy_file(c, fd, (unsigned)at.st_mode, path);
    hfsbi_close(&fd);
    return st;
}

/* HFSB_ARG if the new path lies in the old one, whether it exists or not. */
static hfsb_status hfsbi_copy_check_inside(hfsbi_copying *c, hfsb_str from) {
    hfsbi_target to;
    hfsb_buf     a = HFSB_INIT, b = HFSB_INIT;
    int          code;
    hfsb_status  st = hfsbi_resolve(c->root, c->to, HFSBI_RESOLVE_DEEPEST,
                                    "copy", &to, c->err);
    if (st != HFSB_OK) return st;
    a.alloc = b.alloc = hfsbi_root_alloc(c->root);
    code = hfsbi_target_real(&c->finder.spot, &a);
    if (code == 0) code = hfsbi_target_real(&to, &b);
    if (code != 0)
        st = hfsbi_file_fail_os(c->root, from, code, "copy", c->err);
    else if (hfsb_str_starts(hfsb_buf_str(&b), hfsb_buf_str(&a)) &&
             (b.len == a.len || b.ptr[a.len] == '/' || a.len == 1))
        st = hfsbi_file_fail(c->err, HFSB_ARG,
                             "A folder cannot be copied into itself", from);
    hfsb_buf_free(&a);
    hfsb_buf_free(&b);
    hfsbi_target_close(&to);
    return st;
}

static hfsb_status hfsbi_copy_tree(hfsbi_copying *c, hfsb_str from) {
    unsigned    how = c->opts.no_parents ? 0 : HFSBI_MAKE_PARENTS;
    hfsb_status st = hfsbi_copy_check_inside(c, from);
    if (c->opts.create) how |= HFSBI_MAKE_NEW;
    if (st == HFSB_OK)
        st = hfsbi_copy_folder(c, c->finder.spot.st.st_mode, c->to, how);
    if (st != HFSB_OK) return st;
    c->opts.create = false; /* of the entries: the folder is ours */
    st = hfsbi_finder_run(&c->finder, c->err);
    if (st == HFSB_NOMEM) return hfsbi_fail_status(c->err, st, "Copying");
    if (st != HFSB_OK) return st;
    if (c->finder.end == HFSBI_WALK_CANCELLED)
        return hfsbi_fail_status(c->err, HFSB_CANCELLED, "Copying");
    if (c->finder.end == HFSBI_WALK_LATE)
        return hfsbi_fail_status(c->err, HFSB_TIMEOUT, "Copying");
    if (!c->finder.failed) return HFSB_OK;
    hfsbi_file_fail(c->err, HFSB_IO, "Could not be read completely", from);
    hfsbi_err_quote(c->err, hfsb_buf_str(&c->finder.notes), 400);
    return HFSB_IO;
}

static hfsb_status hfsbi_copy_run(hfsbi_copying *c, hfsb_str from) {
    hfsbi_target *spot = &c->finder.spot;
    int           fd;
    hfsb_status   st = hfsbi_finder_open(&c->finder, from, c->err);
    if (st != HFSB_OK) return st;
    if (S_ISDIR(spot->st.st_mode) && c->opts.tree)
        return hfsbi_copy_tree(c, from);
    st = hfsbi_target_open(c->root, from, spot, &fd, c->err);
    if (st != HFSB_OK) return st;
    st = hfsbi_copy_file(c, fd, (unsigned)spot->st.st_mode, c->to);
    hfsbi_close(&fd);
    return st;
}

HFSBI_FN hfsb_status hfsbi_path_copy(const hfsb_root *root, hfsb_str from,
                                     hfsb_str               to,
                                     const hfsbi_copy_opts *opts,
                                     hfsbi_copied *copied, hfsb_err *err) {
    hfsbi_copying c;
    hfsb_err      own;
    hfsb_status   st;
    memset(&c, 0, sizeof c);
    c.root = root;
    c.to = hfsbi_path_trim(to);
    c.err = err ? err : &own;
    if (opts) c.opts = *opts;
    if (!c.opts.max_entries) c.opts.max_entries = 100000;
    if (!c.opts.max_bytes) c.opts.max_bytes = 4ull << 30;
    if (!c.opts.until) c.opts.until = hfsb_clock_ms() + HFSBI_FINDER_MS;
    c.path.alloc = c.link.alloc = c.finder.alloc = hfsbi_root_alloc(root);
    c.finder.place = root;
    c.finder.cancel = c.opts.cancel;
    c.finder.until = c.opts.until;
    c.finder.flags = HFSBI_FIND_ALL | HFSBI_FIND_SORTED;
    c.finder.visit = hfsbi_copy_visit;
    c.finder.user = &c;
    st = hfsbi_copy_run(&c, from);
    if (copied) *copied = c.done;
    hfsbi_finder_close(&c.finder);
    hfsb_buf_free(&c.path);
    hfsb_buf_free(&c.link);
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}
