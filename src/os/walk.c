/* walk.c - walks a folder tree, for glob, grep and list.

   A finder opens a path, visits every entry beneath it and calls the tool for
   each.

       open --> run: parents, enter <--> leave --> close
                     (rules)    visit each entry

   Each folder being walked is one level: an open directory, its names and its
   .gitignore rules. Entering a folder pushes a level, leaving pops it. Rules
   of the folders above the start are pushed first, down from the top of the
   repository or from the root.

   What always holds: every folder is opened from its parent's descriptor with
   O_NOFOLLOW, so the walk never leaves the root and never follows a symlink.
   Depth, bytes of names, bytes of rules and time have limits; reaching one is
   not an error: the rest is left out, and a note says so. */
#include "os_private.h"

enum {
    HFSBI_FINDER_NAMES = 64 << 20, /* bytes of names held at a time */
    HFSBI_FINDER_RULES = 1 << 20   /* bytes read of a .gitignore */
};

/* ---- ignore rules of one folder ---- */

/* Appends the content of an ignore file, or nothing if it cannot be read.
   HFSB_OK or HFSB_NOMEM. */
static hfsb_status hfsbi_rules_read_file(int dir, const char *name,
                                         hfsb_buf *out) {
    struct stat at;
    int         fd = hfsbi_entry_open(dir, name, &at);
    hfsb_status st = HFSB_OK;
    ssize_t     n = 1;
    if (fd < 0) return HFSB_OK;
    while (st == HFSB_OK && n > 0 && out->len < HFSBI_FINDER_RULES) {
        st = hfsb_buf_reserve(out, 4096);
        if (st != HFSB_OK) break;
        n = hfsbi_read_file(fd, out->ptr + out->len, 4096);
        if (n > 0) out->len += (size_t)n;
    }
    hfsbi_close(&fd);
    return st;
}

/* Appends the rules of a folder. .git/info/exclude comes before .gitignore:
   later rules override earlier ones, as in git. */
static hfsb_status hfsbi_rules_read_folder(int dir, hfsb_buf *out) {
    const int   flags = HFSBI_O_SEARCH | O_NOFOLLOW;
    int         git = hfsbi_openat(dir, ".git", flags, 0), info = -1;
    hfsb_status st = HFSB_OK;
    if (git >= 0) info = hfsbi_openat(git, "info", flags, 0);
    if (info >= 0) st = hfsbi_rules_read_file(info, "exclude", out);
    hfsbi_close(&info);
    hfsbi_close(&git);
    if (st == HFSB_OK && out->len) st = hfsb_buf_append_byte(out, '\n');
    return st == HFSB_OK ? hfsbi_rules_read_file(dir, ".gitignore", out) : st;
}

/* Pushes the rules of the folder open as dir, empty if has_rules is false.
   folder is its path from the topmost folder with rules. *pushed is true if
   the caller must pop them. HFSB_OK or HFSB_NOMEM. */
static hfsb_status hfsbi_finder_push(hfsbi_finder *f, int dir, hfsb_str folder,
                                     bool has_rules, bool *pushed) {
    hfsb_buf    text = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    *pushed = false;
    text.alloc = f->alloc;
    if (has_rules) st = hfsbi_rules_read_folder(dir, &text);
    if (st == HFSB_OK && text.len && !f->at.ignore)
        st = hfsbi_ignore_open(&f->alloc, &f->at.ignore);
    if (st == HFSB_OK && f->at.ignore) {
        st = hfsbi_ignore_push(f->at.ignore, folder, hfsb_buf_str(&text));
        *pushed = st == HFSB_OK;
    }
    hfsb_buf_free(&text);
    return st;
}

static void hfsbi_finder_pop(hfsbi_finder *f) {
    hfsbi_ignore_pop(f->at.ignore);
}

/* ---- rules of the folders above ---- */

/* Descends from the root, or from "/", to the folder where the walk begins,
   and pushes the rules of each folder on the way. */
typedef struct hfsbi_descent {
    hfsbi_finder *f;
    int           at;             /* the folder reached so far */
    char          real[PATH_MAX]; /* resolved path of the walk's folder */
    hfsb_str      rest;           /* the part of `real` below the root */
    size_t        pos;            /* bytes of `rest` that lead to `at` */
    bool          inside;         /* in a repository, or below the root */
    size_t        pushed;         /* folders whose rules were pushed */
} hfsbi_descent;

/* Resolves the path of the walk's folder; false if that fails or the folder is
   outside the root. The result is only a hint: the descent opens one component
   at a time and compares the last one with the folder. */
static bool hfsbi_descent_find(hfsbi_descent *d) {
    const hfsb_root *place = d->f->spot.root;
    hfsb_buf         path = HFSB_INIT;
    hfsb_str         root = HFSB_INIT;
    size_t           mark = path.len;
    bool             ok;
    path.alloc = d->f->alloc;
    if (place && place->root_fd >= 0) {
        root = hfsb_buf_str(&place->real_root);
        hfsb_buf_append(&path, root);
        hfsb_buf_append_byte(&path, '/');
    }
    hfsb_buf_append(&path, hfsb_buf_str(&d->f->spot.path));
    ok =
        hfsb_buf_finish(&path, mark) == HFSB_OK && realpath(path.ptr, d->real);
    hfsb_buf_free(&path);
    if (!ok) return false;
    d->rest = hfsb_cstr(d->real);
    while (root.len && root.ptr[root.len - 1] == '/') root.len--;
    if (!hfsb_str_starts(d->rest, root)) return false;
    d->rest = hfsb_str_slice(d->rest, root.len, d->rest.len);
    return d->rest.len == 0 || d->rest.ptr[0] == '/';
}

/* Opens the next component of the path; false if that fails. */
static bool hfsbi_descent_step(hfsbi_descent *d) {
    char     name[HFSBI_NAME_SIZE];
    hfsb_str part;
    int      fd;
    while (d->pos < d->rest.len && d->rest.ptr[d->pos] == '/') d->pos++;
    part = hfsb_str_slice(d->rest, d->pos, d->rest.len);
    part = hfsb_str_slice(part, 0, hfsb_str_find_byte(part, '/'));
    if (part.len == 0 || part.len >= sizeof name) return false;
    memcpy(name, part.ptr, part.len);
    name[part.len] = '\0';
    fd = hfsbi_openat(d->at, name, HFSBI_O_SEARCH | O_NOFOLLOW, 0);
    hfsbi_close(&d->at);
    d->at = fd;
    d->pos += part.len;
    return fd >= 0;
}

/* The path of the folder reached, relative to the start of the descent. */
static hfsb_str hfsbi_descent_path(const hfsbi_descent *d) {
    hfsb_str path = hfsb_str_slice(d->rest, 0, d->pos);
    while (path.len && path.ptr[0] == '/')
        path = hfsb_str_slice(path, 1, path.len);
    return path;
}

/* Pushes the rules of the folder reached, except for the last one: the walk
   itself does that. A nested repository drops the rules of the outer one. */
static hfsb_status hfsbi_descent_push(hfsbi_descent *d, bool last) {
    struct stat at;
    bool        pushed;
    hfsb_status st;
    if (fstatat(d->at, ".git", &at, AT_SYMLINK_NOFOLLOW) == 0) {
        for (; d->pushed; d->pushed--) hfsbi_finder_pop(d->f);
        d->inside = true;
    }
    if (last || !d->inside) return HFSB_OK;
    st = hfsbi_finder_push(d->f, d->at, hfsbi_descent_path(d), true, &pushed);
    if (pushed) d->pushed++;
    return st;
}

/* True if the folder reached is the one where the walk begins. */
static bool hfsbi_descent_arrived(const hfsbi_descent *d) {
    const struct stat *want = &d->f->spot.st;
    struct stat        at;
    return fstat(d->at, &at) == 0 && at.st_dev == want->st_dev &&
           at.st_ino == want->st_ino;
}

/* Descends to the walk's folder and sets path and prefix of the walk. If the
   path no longer leads there, pops all rules again. HFSB_OK or HFSB_NOMEM. */
static hfsb_status hfsbi_descent_run(hfsbi_descent *d) {
    hfsb_status st = HFSB_OK;
    while (st == HFSB_OK && d->pos < d->rest.len) {
        st = hfsbi_descent_push(d, false);
        if (st == HFSB_OK && !hfsbi_descent_step(d)) break;
    }
    if (st == HFSB_OK && d->at >= 0 && d->pos == d->rest.len &&
        hfsbi_descent_arrived(d)) {
        st = hfsbi_descent_push(d, true);
        if (st == HFSB_OK && d->inside)
            st = hfsb_buf_append(&d->f->at.path, hfsbi_descent_path(d));
        d->f->at.prefix = d->f->at.path.len + (d->f->at.path.len > 0);
        return st;
    }
    for (; d->pushed; d->pushed--) hfsbi_finder_pop(d->f);
    return st;
}

/* Pushes the rules of the folders above the walk. Failing to find these
   folders is no error: the walk then uses only the rules it meets. */
static hfsb_status hfsbi_finder_push_parents(hfsbi_finder *f) {
    const hfsb_root *place = f->spot.root;
    bool             rooted = place && place->root_fd >= 0;
    hfsbi_descent    d;
    hfsb_status      st;
    memset(&d, 0, sizeof d);
    d.f = f;
    if (!hfsbi_descent_find(&d)) return HFSB_OK;
    f->at_root = strcmp(d.real, "/") == 0;
    if (strcmp(d.rest.ptr, "/") == 0) d.rest.len = 0;
    d.inside = rooted; /* ignore repositories above the root */
    d.at = hfsbi_openat(rooted ? place->root_fd : AT_FDCWD, rooted ? "." : "/",
                        HFSBI_O_SEARCH, 0);
    if (d.at < 0) return HFSB_OK;
    st = hfsbi_descent_run(&d);
    hfsbi_close(&d.at);
    return st;
}

/* ---- notes ---- */

HFSBI_FN void hfsbi_put_shown(hfsb_buf *sink, hfsb_str path) {
    size_t pos = 0, plain = 0, n;
    while (pos < path.len) {
        unsigned long code;
        bool          valid;
        n = hfsb_utf8_step(path, pos, &code, &valid);
        if (valid && code >= 0x20 && code != 0x7F) {
            pos += n;
            continue;
        }
        hfsb_buf_append(sink, hfsb_str_slice(path, plain, pos));
        plain = pos + n;
        if (code == '\n') hfsb_buf_printf(sink, "\\n");
        else if (code == '\t') hfsb_buf_printf(sink, "\\t");
        else
            for (; pos < plain; pos++)
                hfsb_buf_printf(sink, "\\x%02X", (unsigned char)path.ptr[pos]);
        pos = plain;
    }
    hfsb_buf_append(sink, hfsb_str_slice(path, plain, path.len));
}

/* Adds a note about the current folder. Only the first few get one; the
   others are counted. */
static hfsb_status hfsbi_finder_warn(hfsbi_finder *f, const char *what) {
    size_t   mark = f->notes.len;
    hfsb_str path = hfsb_str_slice(hfsb_buf_str(&f->at.path), f->at.prefix,
                                   f->at.path.len);
    if (f->failed++ >= HFSBI_FINDER_NAMED) return HFSB_OK;
    hfsb_buf_printf(&f->notes, "\n(");
    hfsbi_put_shown(&f->notes, hfsb_buf_str(&f->shown));
    hfsbi_put_shown(&f->notes,
                    path.len || f->shown.len ? path : HFSB_LIT("."));
    hfsb_buf_printf(&f->notes, ": %s)", what);
    return hfsb_buf_finish(&f->notes, mark);
}

/* ---- one level: a folder being walked ---- */

/* One entry of a folder. */
typedef struct hfsbi_finder_item {
    const char      *name; /* into `names`; NULL until all names are read */
    size_t           at;   /* offset of the name in `names` */
    hfsbi_entry_type type;
} hfsbi_finder_item;

/* A folder being walked. The next folder at the same depth reuses its
   memory. */
struct hfsbi_finder_level {
    DIR               *dir;
    hfsb_buf           names;
    hfsbi_finder_item *items;
    size_t             count, cap, next;
    size_t             path;   /* length of its path in f->at.path */
    bool               pushed; /* its rules were pushed */
    dev_t              device; /* its file system */
};

HFSBI_FN hfsbi_entry_type hfsbi_entry_type_of(mode_t mode) {
    if (S_ISREG(mode)) return HFSBI_ENTRY_FILE;
    if (S_ISDIR(mode)) return HFSBI_ENTRY_FOLDER;
    return S_ISLNK(mode) ? HFSBI_ENTRY_LINK : HFSBI_ENTRY_OTHER;
}

HFSBI_FN hfsbi_entry_type hfsbi_dirent_type(const struct dirent *e) {
#if defined(DT_UNKNOWN) && !defined(HFSBI_PORTABLE)
    switch (e->d_type) {
    case DT_REG: return HFSBI_ENTRY_FILE;
    case DT_DIR: return HFSBI_ENTRY_FOLDER;
    case DT_LNK: return HFSBI_ENTRY_LINK;
    case DT_UNKNOWN: return HFSBI_ENTRY_UNKNOWN;
    default: return HFSBI_ENTRY_OTHER;
    }
#else
    (void)e;
    return HFSBI_ENTRY_UNKNOWN;
#endif
}

HFSBI_FN bool hfsbi_is_dots(const char *name) {
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

HFSBI_FN int hfsbi_compare_paths(hfsb_str a, hfsb_str b) {
    size_t i, n = a.len < b.len ? a.len : b.len;
    for (i = 0; i < n && a.ptr[i] == b.ptr[i]; i++) continue;
    if (i == n) return a.len < b.len ? -1 : a.len > b.len;
    if (a.ptr[i] == '/') return -1;
    if (b.ptr[i] == '/') return 1;
    return (unsigned char)a.ptr[i] < (unsigned char)b.ptr[i] ? -1 : 1;
}

static int hfsbi_compare_items(const void *a, const void *b) {
    return strcmp(((const hfsbi_finder_item *)a)->name,
                  ((const hfsbi_finder_item *)b)->name);
}

static hfsb_status hfsbi_level_add(hfsbi_finder *f, hfsbi_finder_level *level,
                                   const struct dirent *e) {
    size_t             at = level->names.len, size = strlen(e->d_name) + 1;
    hfsbi_finder_item *items = level->items;
    hfsb_status        st;
    if (level->count == level->cap) {
        items = (hfsbi_finder_item *)hfsbi_array_grow(
            &f->alloc, items, &level->cap, level->count + 1, sizeof *items);
        if (!items) return HFSB_NOMEM;
        level->items = items;
    }
    st = hfsb_buf_append(&level->names, hfsb_str_make(e->d_name, size));
    if (st != HFSB_OK) return st;
    items += level->count++;
    items->name = NULL;
    items->at = at;
    items->type = hfsbi_dirent_type(e);
    return HFSB_OK;
}

/* Reads the names of the folder, and sorts them with HFSBI_FIND_SORTED. *rules
   is true if it contains .gitignore or .git, whose info/exclude may have rules
   too. */
static hfsb_status hfsbi_level_read(hfsbi_finder *f, hfsbi_finder_level *level,
                                    bool *rules) {
    hfsb_status    st = HFSB_OK;
    struct dirent *e;
    size_t         i;
    *rules = false;
    for (;;) {
        errno = 0;
        e = readdir(level->dir);
        if (!e || st != HFSB_OK) break;
        if (hfsbi_is_dots(e->d_name)) continue;
        if (f->at.names + level->names.len > HFSBI_FINDER_NAMES) {
            st = hfsbi_finder_warn(f, "has too many entries, the rest was "
                                      "left out");
            errno = 0;
            break;
        }
        if (strcmp(e->d_name, ".gitignore") == 0 ||
            strcmp(e->d_name, ".git") == 0)
            *rules = true;
        st = hfsbi_level_add(f, level, e);
    }
    if (st == HFSB_OK && errno != 0 && errno != ENOENT)
        st = hfsbi_finder_warn(f, hfsbi_os_text(errno));
    f->at.names += level->names.len;
    for (i = 0; i < level->count; i++)
        level->items[i].name = level->names.ptr + level->items[i].at;
    if ((f->flags & HFSBI_FIND_SORTED) && level->count > 1)
        hfsbi_sort(level->items, level->count, sizeof *level->items,
                   hfsbi_compare_items);
    return st;
}

/* Closes the innermost level. */
static void hfsbi_finder_leave(hfsbi_finder *f) {
    hfsbi_finder_level *level = &f->at.levels[--f->at.depth];
    if (level->dir) closedir(level->dir);
    if (level->pushed) hfsbi_finder_pop(f);
    level->dir = NULL;
    level->pushed = false;
    level->count = level->next = 0;
    f->at.names -= level->names.len;
    hfsb_buf_truncate(&level->names, 0);
}

/* True for a file system that shows the state of the kernel, such as /proc:
   reading its files may have effects, and none of them is a user's. */
static bool hfsbi_is_pseudo(int fd) {
#ifdef HFSBI_LINUX
    static const unsigned long types[] = {0x9FA0ul /* proc */,
                                          0x62656572ul /* sysfs */,
                                          0x64626720ul /* debugfs */,
                                          0x74726163ul /* tracefs */,
                                          0x27E0EBul /* cgroup */,
                                          0x63677270ul /* cgroup2 */,
                                          0x73636673ul /* securityfs */,
                                          0x62656570ul /* configfs */,
                                          0xCAFE4A11ul /* bpf */,
                                          0x6165676Cul /* pstore */,
                                          0xDE5E81E4ul /* efivarfs */,
                                          0xF97CFF8Cul /* selinuxfs */,
                                          0x1CD1ul /* devpts */,
                                          0x19800202ul /* mqueue */,
                                          0x42494E4Dul /* binfmt_misc */,
                                          0x65735543ul /* fusectl */};
    struct statfs              at;
    size_t                     i;
    if (fstatfs(fd, &at) != 0) return false;
    for (i = 0; i < sizeof types / sizeof *types; i++)
        if (((unsigned long)at.f_type & 0xFFFFFFFFul) == types[i]) return true;
#else
    (void)fd;
#endif
    return false;
}

/* True if a folder in the walk is the top of another file system, one that the
   kernel makes up. Where a walk begins is the caller's choice. */
static bool hfsbi_level_is_pseudo(const hfsbi_finder *f, int fd,
                                  dev_t device) {
    return f->at.depth > 0 && f->at.levels[f->at.depth - 1].device != device &&
           hfsbi_is_pseudo(fd);
}

/* Opens the folder `name` in dir as the next level; its path is f->at.path. dir
   stays the caller's. If the folder cannot be opened: HFSB_OK, *code is the
   errno and the depth does not change; EXDEV: it must not be walked.
   HFSB_NOMEM leaves the level open. */
static hfsb_status hfsbi_finder_enter(hfsbi_finder *f, int dir,
                                      const char *name, int *code) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK;
    hfsbi_finder_level *level = &f->at.levels[f->at.depth];
    int                 fd = hfsbi_openat(dir, name, flags, 0);
    struct stat         at = HFSB_INIT;
    bool                rules;
    hfsb_status         st;
    *code = 0;
    if (fd >= 0) (void)fstat(fd, &at);
    if (fd >= 0 && hfsbi_level_is_pseudo(f, fd, at.st_dev)) {
        hfsbi_close(&fd);
        errno = EXDEV;
    }
    if (fd >= 0) level->dir = fdopendir(fd);
    if (fd < 0 || !level->dir) {
        *code = errno;
        hfsbi_close(&fd);
        return HFSB_OK;
    }
    level->device = at.st_dev;
    level->names.alloc = f->alloc;
    level->path = f->at.path.len;
    f->at.depth++;
    st = hfsbi_level_read(f, level, &rules);
    if (st == HFSB_OK && !(f->flags & HFSBI_FIND_ALL))
        st = hfsbi_finder_push(f, dirfd(level->dir), hfsb_buf_str(&f->at.path),
                               rules, &level->pushed);
    return st;
}

/* ---- the walk ---- */

/* True if the entry was removed or replaced by a symlink since readdir(). */
static bool hfsbi_is_gone(int code) {
    return code == ENOENT || code == ENOTDIR || code == ELOOP;
}

/* Enters a folder that was visited, within the limits of depth. */
static hfsb_status hfsbi_finder_descend(hfsbi_finder      *f,
                                        const hfsbi_entry *entry) {
    hfsb_status st;
    int         code;
    if (f->at.depth >= f->max_depth) return HFSB_OK;
    if (f->at.depth == HFSBI_FINDER_DEPTH)
        return hfsbi_finder_warn(f, "lies too deep, it was left out");
    st = hfsbi_finder_enter(f, entry->dir, entry->name, &code);
    if (st != HFSB_OK || code == 0 || hfsbi_is_gone(code)) return st;
    if (code == ENOMEM) return HFSB_NOMEM;
    if (code == EXDEV)
        return hfsbi_finder_warn(
            f, "a file system of the kernel, left out; a path that names it "
               "is searched");
    return hfsbi_finder_warn(f, hfsbi_os_text(code));
}

/* True for /proc, /sys and /dev: endless trees or devices, no user files. */
static bool hfsbi_is_system_folder(const hfsbi_finder *f, const char *name) {
    return f->at_root && f->at.depth == 1 &&
           (strcmp(name, "proc") == 0 || strcmp(name, "sys") == 0 ||
            strcmp(name, "dev") == 0);
}

/* True if the entry is not visited. Sets *no_descend if it must not be entered
   even when visited. */
static bool hfsbi_finder_skips(hfsbi_finder *f, hfsbi_entry *entry,
                               bool *no_descend) {
    bool own;
    if (f->flags & HFSBI_FIND_ALL) return false;
    own = entry->name[0] == '.' && strcmp(entry->name, ".git") == 0;
    if (own || hfsbi_is_system_folder(f, entry->name)) {
        *no_descend = true;
        return !(f->flags & HFSBI_FIND_IGNORED);
    }
    if (!f->at.ignore ||
        !hfsbi_ignore_has(f->at.ignore, hfsb_buf_str(&f->at.path),
                          entry->type == HFSBI_ENTRY_FOLDER))
        return false;
    f->ignored++;
    entry->ignored = *no_descend = true;
    return !(f->flags & HFSBI_FIND_IGNORED);
}

/* True if the deny list names the entry; *st is not HFSB_OK when out of
   memory. */
static bool hfsbi_finder_denies(hfsbi_finder *f, const hfsbi_entry *entry,
                                hfsb_status *st) {
    size_t mark = f->at.from.len;
    bool   denied;
    if (!f->spot.root || !f->spot.root->deny->rules) return false;
    if (mark) hfsb_buf_append_byte(&f->at.from, '/');
    *st = hfsb_buf_append(&f->at.from, entry->path);
    denied = *st == HFSB_OK &&
             hfsbi_root_denies(f->spot.root, hfsb_buf_str(&f->at.from),
                               entry->type == HFSBI_ENTRY_FOLDER);
    hfsb_buf_truncate(&f->at.from, mark);
    return denied;
}

/* Visits one entry, and enters it if it is a folder. */
static hfsb_status hfsbi_finder_visit(hfsbi_finder             *f,
                                      const hfsbi_finder_level *level,
                                      const hfsbi_finder_item  *item) {
    hfsbi_entry entry = HFSB_INIT;
    struct stat at;
    bool        no_descend = false, folder;
    size_t      denied = f->denied;
    hfsb_status st = HFSB_OK;
    entry.dir = dirfd(level->dir);
    entry.name = item->name;
    entry.type = item->type;
    entry.path = hfsb_str_slice(hfsb_buf_str(&f->at.path), f->at.prefix,
                                f->at.path.len);
    if (entry.type == HFSBI_ENTRY_UNKNOWN) {
        if (fstatat(entry.dir, entry.name, &at, AT_SYMLINK_NOFOLLOW) != 0)
            return errno == ENOENT
                       ? HFSB_OK
                       : hfsbi_finder_warn(f, hfsbi_os_text(errno));
        entry.type = hfsbi_entry_type_of(at.st_mode);
    }
    folder = entry.type == HFSBI_ENTRY_FOLDER;
    if (hfsbi_finder_denies(f, &entry, &st)) f->denied++;
    if (f->denied != denied || st != HFSB_OK) return st;
    f->files += !folder;
    if (f->wants && !f->wants(f->user, &entry)) return HFSB_OK;
    if (hfsbi_finder_skips(f, &entry, &no_descend)) return HFSB_OK;
    st = f->visit(f->user, &entry);
    if (st == HFSB_OK && folder && !no_descend &&
        f->end == HFSBI_WALK_COMPLETE)
        st = hfsbi_finder_descend(f, &entry);
    return st;
}

/* Sets f->at.path to the path of an entry of the level. */
static hfsb_status hfsbi_finder_set_path(hfsbi_finder             *f,
                                         const hfsbi_finder_level *level,
                                         const char               *name) {
    hfsb_status st = HFSB_OK;
    hfsb_buf_truncate(&f->at.path, level->path);
    if (f->at.path.len) st = hfsb_buf_append_byte(&f->at.path, '/');
    return st == HFSB_OK ? hfsb_buf_append(&f->at.path, hfsb_cstr(name)) : st;
}

HFSBI_FN bool hfsbi_finder_over(hfsbi_finder *f) {
    if (f->end != HFSBI_WALK_COMPLETE) return true;
    if (hfsb_cancel_is_set(f->cancel)) f->end = HFSBI_WALK_CANCELLED;
    else if (hfsb_clock_ms() > f->until) f->end = HFSBI_WALK_LATE;
    return f->end != HFSBI_WALK_COMPLETE;
}

/* Visits entries until the first level is left, or the walk must stop. */
static hfsb_status hfsbi_finder_walk(hfsbi_finder *f) {
    hfsb_status st = HFSB_OK;
    unsigned    count = 0;
    while (st == HFSB_OK && f->at.depth && f->end == HFSBI_WALK_COMPLETE) {
        hfsbi_finder_level      *level = &f->at.levels[f->at.depth - 1];
        const hfsbi_finder_item *item;
        if (level->next == level->count) {
            hfsbi_finder_leave(f);
            continue;
        }
        if (++count % 32 == 0 && hfsbi_finder_over(f)) break;
        item = &level->items[level->next++];
        st = hfsbi_finder_set_path(f, level, item->name);
        if (st == HFSB_OK) st = hfsbi_finder_visit(f, level, item);
    }
    return st;
}

/* ---- opening and closing ---- */

/* Sets f->shown to the given path without trailing slashes and "./". */
static hfsb_status hfsbi_finder_set_shown(hfsbi_finder *f, hfsb_str path) {
    size_t mark = f->shown.len;
    while (path.len > 1 && path.ptr[path.len - 1] == '/') path.len--;
    while (hfsb_str_starts(path, HFSB_LIT("./")))
        path = hfsb_str_slice(path, 2, path.len);
    if (hfsb_str_equal(path, HFSB_LIT("."))) return HFSB_OK;
    hfsb_buf_append(&f->shown, path);
    if (path.len && path.ptr[path.len - 1] != '/')
        hfsb_buf_append_byte(&f->shown, '/');
    return hfsb_buf_finish(&f->shown, mark);
}

static void hfsbi_finder_begin_walk(hfsbi_finder *f) {
    f->spot.dir = -1;
    f->shown.alloc = f->notes.alloc = f->alloc;
    f->at.path.alloc = f->at.from.alloc = f->alloc;
    if (!f->until) f->until = hfsb_clock_ms() + HFSBI_FINDER_MS;
}

HFSBI_FN hfsb_status hfsbi_finder_open(hfsbi_finder *f, hfsb_str path,
                                       hfsb_err *err) {
    hfsb_status st;
    hfsbi_finder_begin_walk(f);
    if (path.len == 0) path = HFSB_LIT(".");
    st = hfsbi_resolve(
        f->place, path,
        f->flags & HFSBI_FIND_NO_FOLLOW ? HFSBI_RESOLVE_NO_FOLLOW : 0,
        "search", &f->spot, err);
    if (st != HFSB_OK) return st;
    if (!f->spot.exists)
        return hfsbi_file_fail_os(f->place, path, ENOENT, "search", err);
    if (hfsbi_finder_set_shown(f, path) == HFSB_OK) return HFSB_OK;
    return hfsbi_fail_status(err, HFSB_NOMEM, "Searching");
}

HFSBI_FN bool hfsbi_finder_open_at(hfsbi_finder *f, const hfsb_root *root,
                                   hfsb_str path, int fd) {
    hfsbi_finder_begin_walk(f);
    f->spot.root = root;
    f->spot.path.alloc = f->alloc;
    f->spot.dir = fd;
    f->spot.name = ".";
    f->spot.exists = fstat(fd, &f->spot.st) == 0;
    return hfsb_buf_append(&f->spot.path, path) == HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_finder_run(hfsbi_finder *f, hfsb_err *err) {
    hfsb_status st;
    int         code = 0;
    f->at.levels = (hfsbi_finder_level *)hfsbi_array(
        &f->alloc, HFSBI_FINDER_DEPTH, sizeof *f->at.levels);
    if (!f->at.levels) return hfsbi_fail_status(err, HFSB_NOMEM, "Searching");
    memset(f->at.levels, 0, HFSBI_FINDER_DEPTH * sizeof *f->at.levels);
    if (!f->max_depth) f->max_depth = HFSBI_FINDER_DEPTH + 1;
    if (f->spot.root && f->spot.root->deny->rules) {
        code = hfsbi_target_place(&f->spot, &f->at.from);
        if (code != 0)
            return hfsbi_file_fail_os(f->place, hfsb_buf_str(&f->spot.path),
                                      code, "search", err);
        if (hfsb_str_equal(hfsb_buf_str(&f->at.from), HFSB_LIT(".")))
            hfsb_buf_truncate(&f->at.from, 0);
    }
    st = f->flags & HFSBI_FIND_ALL ? HFSB_OK : hfsbi_finder_push_parents(f);
    if (st == HFSB_OK)
        st = hfsbi_finder_enter(f, f->spot.dir, f->spot.name, &code);
    if (st == HFSB_OK && code != 0)
        return hfsbi_file_fail_os(f->place, hfsb_buf_str(&f->spot.path), code,
                                  "search", err);
    if (st == HFSB_OK) st = hfsbi_finder_walk(f);
    return st == HFSB_NOMEM ? hfsbi_fail_status(err, st, "Searching") : st;
}

HFSBI_FN void hfsbi_finder_close(hfsbi_finder *f) {
    size_t i;
    while (f->at.depth) hfsbi_finder_leave(f);
    for (i = 0; f->at.levels && i < HFSBI_FINDER_DEPTH; i++) {
        hfsbi_finder_level *level = &f->at.levels[i];
        hfsb_buf_free(&level->names);
        hfsbi_array_free(&f->alloc, level->items, level->cap,
                         sizeof *level->items);
    }
    hfsbi_array_free(&f->alloc, f->at.levels, HFSBI_FINDER_DEPTH,
                     sizeof *f->at.levels);
    f->at.levels = NULL;
    hfsbi_ignore_close(f->at.ignore);
    f->at.ignore = NULL;
    hfsbi_target_close(&f->spot);
    hfsb_buf_free(&f->shown);
    hfsb_buf_free(&f->notes);
    hfsb_buf_free(&f->at.path);
    hfsb_buf_free(&f->at.from);
}

HFSBI_FN int hfsbi_entry_open(int dir, const char *name, struct stat *st) {
    const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    int       fd = hfsbi_openat(dir, name, flags, 0);
    if (fd < 0) return -1;
    if (fstat(fd, st) == 0) {
        if (S_ISREG(st->st_mode)) return fd;
        errno = ENOENT;
    }
    hfsbi_close(&fd);
    return -1;
}
