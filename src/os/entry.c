/* entry.c - entries by path: look at them, list a folder, make one, move

   root.c resolves a path to a target: an open directory and a name in it.
   Everything here works on those two, so a path that is swapped meanwhile
   cannot redirect it; lists are walks of walk.c.

   Names a caller may not use are refused before anything changes: a root is
   neither moved nor replaced, and a folder with entries on the deny list is
   not moved to where no pattern matches them. */
#include "os_private.h"

/* ---- shared ---- */

HFSBI_FN hfsb_str hfsbi_path_trim(hfsb_str path) {
    for (;;) {
        size_t n = path.len;
        if (n > 1 && path.ptr[n - 1] == '/') path.len--;
        else if (n > 2 && path.ptr[n - 1] == '.' && path.ptr[n - 2] == '/')
            path.len--;
        else return path;
    }
}

HFSBI_FN hfsb_status hfsbi_fail_not_folder(hfsb_str path, hfsb_err *err) {
    return hfsbi_file_fail(err, HFSB_ARG, "Not a folder", path);
}

HFSBI_FN int hfsbi_read_link(int dir, const char *name, hfsb_buf *out) {
    char    text[PATH_MAX];
    ssize_t n = readlinkat(dir, name, text, sizeof text);
    if (n < 0) return errno;
    if (n == (ssize_t)sizeof text) return ENAMETOOLONG;
    return hfsb_buf_append(out, hfsb_str_make(text, (size_t)n)) == HFSB_OK
               ? 0
               : ENOMEM;
}

static void hfsbi_path_info_fill(hfsbi_path_info   *info,
                                 const struct stat *st) {
    memset(info, 0, sizeof *info);
    info->type = hfsbi_entry_type_of(st->st_mode);
    info->uid = (unsigned long)st->st_uid;
    info->gid = (unsigned long)st->st_gid;
    hfsbi_file_info_fill(&info->file, st);
}

/* ---- looking ---- */

/* Reads the text of a symlink; if the entry changed meanwhile, updates the
   stat and retries. */
static int hfsbi_target_read_link(hfsbi_target *target, hfsb_buf *link) {
    int code = 0, tries;
    for (tries = 0; tries < 8; tries++) {
        if (!target->exists || !S_ISLNK(target->st.st_mode)) return 0;
        code = hfsbi_read_link(target->dir, target->name, link);
        if (code != EINVAL && code != ENOENT) return code;
        code = hfsbi_target_stat(target);
        if (code != 0) return code;
    }
    return EBUSY;
}

HFSBI_FN hfsb_status hfsbi_path_stat(const hfsb_root *root, hfsb_str path,
                                     bool follow, hfsbi_path_info *info,
                                     hfsb_buf *link, hfsb_err *err) {
    hfsbi_target target;
    int          code = 0;
    hfsb_status  st = hfsbi_resolve(root, hfsbi_path_trim(path),
                                    follow ? 0 : HFSBI_RESOLVE_NO_FOLLOW,
                                    "look at", &target, err);
    if (st != HFSB_OK) return st;
    if (link) code = hfsbi_target_read_link(&target, link);
    if (code == 0 && !target.exists) code = ENOENT;
    if (code == 0) hfsbi_path_info_fill(info, &target.st);
    else st = hfsbi_file_fail_os(root, path, code, "look at", err);
    hfsbi_target_close(&target);
    return st;
}

HFSBI_FN hfsb_status hfsbi_path_canonical(const hfsb_root *root, hfsb_str path,
                                          hfsb_buf *out, hfsb_err *err) {
    hfsbi_target target;
    int          code;
    hfsb_status  st = hfsbi_resolve(root, path, 0, "look at", &target, err);
    if (st != HFSB_OK) return st;
    code = target.exists ? hfsbi_target_real(&target, out) : ENOENT;
    if (code != 0) st = hfsbi_file_fail_os(root, path, code, "look at", err);
    hfsbi_target_close(&target);
    return st;
}

/* ---- listing ---- */

/* One list. */
typedef struct hfsbi_path_listing {
    hfsbi_finder           finder;
    const hfsbi_list_opts *opts;
    hfsbi_listed          *listed;
    hfsb_buf               link;
} hfsbi_path_listing;

/* True for entries after `after`, and for the folders on the way there. */
static bool hfsbi_listing_wants(void *user, const hfsbi_entry *entry) {
    const hfsbi_path_listing *l = (const hfsbi_path_listing *)user;
    hfsb_str                  after = l->opts->after;
    if (after.len == 0 || hfsbi_compare_paths(entry->path, after) > 0)
        return true;
    return hfsb_str_starts(after, entry->path) &&
           (after.len == entry->path.len ||
            after.ptr[entry->path.len] == '/');
}

static hfsb_status hfsbi_listing_visit(void *user, const hfsbi_entry *entry) {
    hfsbi_path_listing    *l = (hfsbi_path_listing *)user;
    const hfsbi_list_opts *o = l->opts;
    hfsbi_list_entry       e = HFSB_INIT;
    struct stat            at;
    if (o->after.len && hfsbi_compare_paths(entry->path, o->after) <= 0)
        return HFSB_OK;
    if (fstatat(entry->dir, entry->name, &at, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != ENOENT) l->listed->failed++;
        return HFSB_OK;
    }
    if (o->limit && l->listed->entries == o->limit) {
        l->listed->more = true;
        l->finder.end = HFSBI_WALK_STOPPED;
        return HFSB_OK;
    }
    hfsb_buf_truncate(&l->link, 0);
    if (S_ISLNK(at.st_mode) &&
        hfsbi_read_link(entry->dir, entry->name, &l->link) == ENOMEM)
        return HFSB_NOMEM;
    l->listed->entries++;
    e.path = entry->path;
    e.name = hfsb_cstr(entry->name);
    e.link = hfsb_buf_str(&l->link);
    hfsbi_path_info_fill(&e.info, &at);
    return o->fn(o->user, &e);
}

HFSBI_FN hfsb_status hfsbi_path_list(const hfsb_root *root, hfsb_str path,
                                     const hfsbi_list_opts *opts,
                                     hfsbi_listed *listed, hfsb_err *err) {
    hfsbi_path_listing l;
    hfsbi_listed       own;
    hfsb_status        st;
    if (!listed) listed = &own;
    memset(&l, 0, sizeof l);
    memset(listed, 0, sizeof *listed);
    l.opts = opts;
    l.listed = listed;
    l.finder.place = root;
    l.finder.alloc = l.link.alloc = hfsbi_root_alloc(root);
    l.finder.flags = HFSBI_FIND_ALL | HFSBI_FIND_SORTED;
    l.finder.max_depth = opts->depth ? opts->depth : 1;
    l.finder.cancel = opts->cancel;
    l.finder.until = opts->until;
    l.finder.wants = hfsbi_listing_wants;
    l.finder.visit = hfsbi_listing_visit;
    l.finder.user = &l;
    st = hfsbi_finder_open(&l.finder, path, err);
    if (st == HFSB_OK && !S_ISDIR(l.finder.spot.st.st_mode))
        st = hfsbi_fail_not_folder(path, err);
    if (st == HFSB_OK) st = hfsbi_finder_run(&l.finder, err);
    listed->failed += l.finder.failed;
    if (l.finder.end == HFSBI_WALK_LATE ||
        l.finder.end == HFSBI_WALK_CANCELLED)
        listed->more = true;
    hfsbi_finder_close(&l.finder);
    hfsb_buf_free(&l.link);
    return st;
}

/* ---- making ---- */

/* 0, EEXIST for a folder that exists, ENOTDIR for something else. */
static int hfsbi_target_make_folder(hfsbi_target *target, unsigned mode) {
    int code = 0;
    if (!target->exists) {
        code = hfsbi_mkdirat(target->dir, target->name,
                             (mode_t)(mode ? mode & 07777u : 0777u));
        if (code != EEXIST) return code;
        code = hfsbi_target_stat(target); /* another process made it */
    }
    if (code != 0) return code;
    return target->exists && S_ISDIR(target->st.st_mode) ? EEXIST : ENOTDIR;
}

HFSBI_FN hfsb_status hfsbi_path_make_folder(const hfsb_root *root,
                                            hfsb_str path, unsigned mode,
                                            unsigned how, bool *made,
                                            hfsb_err *err) {
    unsigned     resolve = how & HFSBI_MAKE_PARENTS
                               ? HFSBI_RESOLVE_PARENTS | HFSBI_RESOLVE_NO_SYNC
                               : 0;
    hfsbi_target target;
    int          code;
    hfsb_status  st = hfsbi_resolve(root, hfsbi_path_trim(path), resolve,
                                    "make the folder", &target, err);
    if (made) *made = false;
    if (st != HFSB_OK) return st;
    code = hfsbi_target_make_folder(&target, mode);
    hfsbi_target_close(&target);
    if (code == 0 && made) *made = true;
    if (code == 0 || (code == EEXIST && !(how & HFSBI_MAKE_NEW)))
        return hfsbi_ok(err);
    if (code == EEXIST)
        return hfsbi_file_fail(err, HFSB_EXISTS, "Folder exists already",
                               path);
    if (code == ENOTDIR) return hfsbi_fail_not_folder(path, err);
    return hfsbi_file_fail_os(root, path, code, "make the folder", err);
}

/* ---- moving ---- */

static hfsb_status hfsbi_moving_visit(void *user, const hfsbi_entry *entry) {
    (void)user;
    (void)entry;
    return HFSB_OK;
}

/* HFSB_DENIED if the deny list names an entry of the folder, or if the folder
   cannot be read completely. */
static hfsb_status hfsbi_moving_check_deny(const hfsb_root    *root,
                                           hfsb_str            path,
                                           const hfsbi_target *a,
                                           hfsb_err           *err) {
    hfsbi_finder f = HFSB_INIT;
    hfsb_status  st;
    int          fd;
    if (!a->root || !a->root->deny->rules || !S_ISDIR(a->st.st_mode))
        return HFSB_OK;
    fd = hfsbi_open_folder(a->dir, a->name, false);
    if (fd < 0) return hfsbi_file_fail_os(root, path, errno, "move", err);
    f.alloc = hfsbi_root_alloc(root);
    f.flags = HFSBI_FIND_ALL;
    f.visit = hfsbi_moving_visit;
    st = hfsbi_finder_open_at(&f, a->root, hfsb_buf_str(&a->path), fd)
             ? hfsbi_finder_run(&f, err)
             : hfsbi_fail_status(err, HFSB_NOMEM, "Moving");
    if (st == HFSB_OK &&
        (f.denied || f.failed || f.end != HFSBI_WALK_COMPLETE))
        st = hfsbi_file_fail(err, HFSB_DENIED,
                             f.denied ? "Contains entries on the deny list"
                                      : "Cannot be searched for entries on "
                                        "the deny list",
                             path);
    hfsbi_finder_close(&f);
    return st;
}

/* HFSB_REFUSED for the top of a root, or a path that ends in dots. */
static hfsb_status hfsbi_moving_check_name(const hfsb_root    *root,
                                           hfsb_str            path,
                                           const hfsbi_target *target,
                                           hfsb_err           *err) {
    if (target->exists && hfsbi_root_is_top(root, &target->st))
        return hfsbi_file_fail(err, HFSB_REFUSED,
                               "A root cannot be moved or replaced", path);
    if (strcmp(target->name, ".") == 0)
        return hfsbi_file_fail(err, HFSB_REFUSED,
                               "The path must end in a name, not in dots",
                               path);
    return HFSB_OK;
}

/* Locks both directories, always in the same order; a single one once. */
static int hfsbi_moving_lock(hfsbi_target *a, hfsbi_target *b,
                             hfsbi_lock lock[2]) {
    struct stat x, y;
    int         code;
    if (fstat(a->dir, &x) != 0 || fstat(b->dir, &y) != 0) return errno;
    if (x.st_dev == y.st_dev && x.st_ino == y.st_ino)
        return hfsbi_lock_target(a, false, &lock[0]);
    if (x.st_dev > y.st_dev || (x.st_dev == y.st_dev && x.st_ino > y.st_ino)) {
        hfsbi_target *swap = a;
        a = b;
        b = swap;
    }
    code = hfsbi_lock_target(a, false, &lock[0]);
    return code == 0 ? hfsbi_lock_target(b, false, &lock[1]) : code;
}

/* True when both are different names of one file. */
static bool hfsbi_moving_are_links(const hfsbi_target *a,
                                   const hfsbi_target *b) {
    struct stat x, y;
    if (!b->exists || S_ISDIR(a->st.st_mode) ||
        a->st.st_dev != b->st.st_dev || a->st.st_ino != b->st.st_ino)
        return false;
    if (strcmp(a->name, b->name) != 0) return true;
    return fstat(a->dir, &x) == 0 && fstat(b->dir, &y) == 0 &&
           (x.st_dev != y.st_dev || x.st_ino != y.st_ino);
}

/* Called under the locks. A rename between two names of one file does nothing:
   then the old name is removed. */
static int hfsbi_moving_rename(hfsbi_target *a, hfsbi_target *b,
                               unsigned how) {
    int code;
    if (!(how & HFSBI_MOVE_REPLACE))
        return hfsbi_rename_new(a->dir, a->name, b->dir, b->name);
    code = hfsbi_target_stat(a);
    if (code == 0) code = hfsbi_target_stat(b);
    if (code != 0) return code;
    if (a->exists && hfsbi_moving_are_links(a, b))
        return hfsbi_unlinkat(a->dir, a->name, 0);
    return renameat(a->dir, a->name, b->dir, b->name) == 0 ? 0 : errno;
}

static hfsb_status hfsbi_moving_fail(const hfsb_root *root, hfsb_str from,
                                     hfsb_str to, int code, const char *verb,
                                     hfsb_err *err) {
    if (code == ENOTEMPTY)
        return hfsbi_file_fail(err, HFSB_EXISTS, "The folder is not empty",
                               to);
    if (code == EEXIST)
        return hfsbi_file_fail(err, HFSB_EXISTS, "File exists already", to);
    if (code == ENOTDIR) return hfsbi_fail_not_folder(to, err);
    if (code == EISDIR) return hfsbi_file_fail_os(root, to, code, verb, err);
    if (code == EINVAL)
        return hfsbi_file_fail(err, HFSB_ARG,
                               "A folder cannot be moved into itself", from);
    if (code == EXDEV) {
        hfsbi_file_fail(err, HFSB_REFUSED,
                        "Is on another file system than its new path", from);
        hfsbi_err_add(err, " (copy it, then remove it)");
        return HFSB_REFUSED;
    }
    return hfsbi_lock_fail(root, from, code, verb, err);
}

static hfsb_status hfsbi_moving_run(const hfsb_root *root, hfsb_str from,
                                    hfsb_str to, hfsbi_target *a,
                                    hfsbi_target *b, unsigned how,
                                    hfsb_err *err) {
    const char *verb = how & HFSBI_MOVE_DIRECT ? "restore" : "move";
    hfsbi_lock  lock[2] = {{-1, -1}, {-1, -1}};
    hfsb_status st;
    int         code;
    st = hfsbi_moving_check_name(root, from, a, err);
    if (st == HFSB_OK) st = hfsbi_moving_check_name(root, to, b, err);
    if (st == HFSB_OK) st = hfsbi_moving_check_deny(root, from, a, err);
    if (st != HFSB_OK) return st;
    code = hfsbi_moving_lock(a, b, lock);
    if (code == 0) code = hfsbi_moving_rename(a, b, how);
    hfsbi_unlock(&lock[1]);
    hfsbi_unlock(&lock[0]);
    if (code == 0) return hfsbi_ok(err);
    return hfsbi_moving_fail(root, from, to, code, verb, err);
}

HFSBI_FN hfsb_status hfsbi_path_move(const hfsb_root *root, hfsb_str from,
                                     hfsb_str to, unsigned how,
                                     hfsb_err *err) {
    const char  *verb = how & HFSBI_MOVE_DIRECT ? "restore" : "move";
    unsigned     resolve = HFSBI_RESOLVE_NO_FOLLOW;
    hfsbi_target a, b;
    hfsb_status  st;
    if (how & HFSBI_MOVE_DIRECT) resolve |= HFSBI_RESOLVE_DIRECT;
    from = hfsbi_path_trim(from);
    to = hfsbi_path_trim(to);
    st = hfsbi_resolve(root, from, resolve, verb, &a, err);
    if (st != HFSB_OK) return st;
    if (how & HFSBI_MOVE_PARENTS)
        resolve |= HFSBI_RESOLVE_PARENTS | HFSBI_RESOLVE_NO_SYNC;
    if (a.exists) st = hfsbi_resolve(root, to, resolve, verb, &b, err);
    else st = hfsbi_file_fail_os(root, from, ENOENT, verb, err);
    if (st == HFSB_OK) {
        st = hfsbi_moving_run(root, from, to, &a, &b, how, err);
        hfsbi_target_close(&b);
    }
    hfsbi_target_close(&a);
    return st;
}

/* ---- extended attributes ---- */

#ifdef HFSBI_LINUX
/* Visits the attributes of fd that begin with the prefix: adds them to *out,
   or without it removes them. 0 or an errno. */
static int hfsbi_marks_visit(int fd, const char *prefix, hfsb_buf *out,
                             const hfsb_alloc *alloc) {
    hfsb_buf names = HFSB_INIT, value = HFSB_INIT;
    size_t   at, skip = strlen(prefix);
    int      code;
    names.alloc = value.alloc = *alloc;
    code = hfsbi_attribute_list(fd, &names);
    for (at = 0; code == 0 && at < names.len;
         at += strlen(names.ptr + at) + 1) {
        const char *name = names.ptr + at;
        if (strncmp(name, prefix, skip) != 0) continue;
        if (!out) code = fremovexattr(fd, name) == 0 ? 0 : errno;
        else code = hfsbi_attribute_get(fd, name, &value);
        if (!out || code != 0 ||
            hfsb_str_find_byte(hfsb_buf_str(&value), '\0') != HFSB_NPOS)
            continue;
        hfsb_buf_append(out, hfsb_cstr(name + skip));
        hfsb_buf_append_byte(out, '\0');
        hfsb_buf_append(out, hfsb_buf_str(&value));
        hfsb_buf_append_byte(out, '\0');
    }
    hfsb_buf_free(&names);
    hfsb_buf_free(&value);
    return code;
}

static int hfsbi_mark_set(int fd, const char *prefix, hfsb_str name,
                          hfsb_str value) {
    char full[256];
    if (strlen(prefix) + name.len >= sizeof full) return ERANGE;
    (void)snprintf(full, sizeof full, "%s%.*s", prefix, (int)name.len,
                   name.ptr);
    return fsetxattr(fd, full, value.ptr, value.len, 0) == 0 ? 0 : errno;
}
#endif

HFSBI_FN hfsb_status hfsbi_path_marks(const hfsb_root *root, hfsb_str path,
                                      const char *prefix, hfsb_buf *out,
                                      hfsb_err *err) {
    int         fd = -1, code = 0;
    hfsb_status st = hfsb_file_open(root, path, &fd, NULL, err);
    if (st != HFSB_OK) return st;
#ifdef HFSBI_LINUX
    code = hfsbi_marks_visit(fd, prefix, out, &out->alloc);
#else
    (void)prefix;
#endif
    hfsbi_close(&fd);
    if (code)
        return hfsbi_file_fail_os(root, path, code, "read attributes of", err);
    return out->status;
}

HFSBI_FN hfsb_status hfsbi_path_set_marks(const hfsb_root *root, hfsb_str path,
                                          const char *prefix, hfsb_str list,
                                          hfsb_err *err) {
    int         fd = -1, code = ENOTSUP;
    hfsb_status st = hfsb_file_open(root, path, &fd, NULL, err);
    if (st != HFSB_OK) return st;
#ifdef HFSBI_LINUX
    {
        hfsb_alloc alloc = hfsbi_root_alloc(root);
        hfsb_str   name, value;
        code = hfsbi_marks_visit(fd, prefix, NULL, &alloc);
        while (code == 0 && hfsbi_list_next(&list, '\0', &name) && name.len &&
               hfsbi_list_next(&list, '\0', &value))
            code = hfsbi_mark_set(fd, prefix, name, value);
    }
#else
    (void)prefix, (void)list;
#endif
    hfsbi_close(&fd);
    if (code == ENOTSUP)
        return hfsbi_file_fail(err, HFSB_REFUSED,
                               "This file system has no extended attributes",
                               path);
    return code ? hfsbi_file_fail_os(root, path, code, "set attributes of",
                                     err)
                : HFSB_OK;
}
