/* search_walk.c - visit all beneath a folder. Depends on: base, os,
   file_place, search_rules. */
#include "search.h"

/* One entry of a folder. */
typedef struct hfsbi_finder_item {
    const char      *name;
    size_t           at; /* of the name in `names`, while that may move */
    hfsbi_entry_type type;
} hfsbi_finder_item;

/* A folder that is being walked; its memory is used again by the next one of
   the same depth. */
struct hfsbi_finder_level {
    DIR               *dir;
    hfsb_buf           names;
    hfsbi_finder_item *items;
    size_t             count, cap, next;
    size_t             path; /* bytes of f->path that name it */
    bool               pushed;
};

/* ---- one folder ---- */

static hfsbi_entry_type hfsbi_entry_type_of(mode_t mode) {
    if (S_ISREG(mode)) return HFSBI_ENTRY_FILE;
    if (S_ISDIR(mode)) return HFSBI_ENTRY_FOLDER;
    return S_ISLNK(mode) ? HFSBI_ENTRY_LINK : HFSBI_ENTRY_OTHER;
}

/* As far as the folder itself tells. */
static hfsbi_entry_type hfsbi_dirent_type(const struct dirent *e) {
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

static bool hfsbi_is_dots(const char *name) {
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Something about a folder, told for the first few. */
static hfsb_status hfsbi_finder_tell(hfsbi_finder *f, const char *what) {
    hfsbi_sink sink = hfsbi_sink_begin(&f->notes);
    hfsb_str   path =
        hfsb_str_slice(hfsb_buf_str(&f->path), f->prefix, f->path.len);
    if (f->failed++ >= HFSBI_FINDER_TOLD) return HFSB_OK;
    hfsbi_putf(&sink, "\n(");
    hfsbi_put_shown(&sink, hfsb_buf_str(&f->shown));
    hfsbi_put_shown(&sink, path.len || f->shown.len ? path : HFSB_LIT("."));
    hfsbi_putf(&sink, ": %s)", what);
    return hfsbi_sink_end(&sink);
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

/* Takes the names of the folder; *rules tells of a .gitignore, or a .git that
   may have rules too. */
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
        if (f->names + level->names.len > HFSBI_FINDER_NAMES) {
            st = hfsbi_finder_tell(f, "has too many entries, the rest was "
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
        st = hfsbi_finder_tell(f, hfsbi_os_text(errno));
    f->names += level->names.len;
    for (i = 0; i < level->count; i++)
        level->items[i].name = level->names.ptr + level->items[i].at;
    if (f->sorted && level->count > 1)
        hfsbi_sort(level->items, level->count, sizeof *level->items,
                   hfsbi_compare_items);
    return st;
}

static void hfsbi_finder_leave(hfsbi_finder *f) {
    hfsbi_finder_level *level = &f->levels[--f->depth];
    if (level->dir) closedir(level->dir);
    if (level->pushed) hfsbi_finder_pop(f);
    level->dir = NULL;
    level->pushed = false;
    level->count = level->next = 0;
    f->names -= level->names.len;
    hfsb_buf_truncate(&level->names, 0);
}

/* The folder `name` in dir, which f->path names; takes over nothing. *code is
   an errno when it cannot be opened. */
static hfsb_status hfsbi_finder_enter(hfsbi_finder *f, int dir,
                                      const char *name, int *code) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK;
    hfsbi_finder_level *level = &f->levels[f->depth];
    int                 fd = hfsbi_openat(dir, name, flags, 0);
    bool                rules;
    hfsb_status         st;
    *code = 0;
    if (fd >= 0) level->dir = fdopendir(fd);
    if (fd < 0 || !level->dir) {
        *code = errno;
        hfsbi_close(&fd);
        return HFSB_OK;
    }
    level->names.alloc = f->alloc;
    level->path = f->path.len;
    f->depth++;
    st = hfsbi_level_read(f, level, &rules);
    if (st == HFSB_OK && !f->all)
        st = hfsbi_finder_push(f, dirfd(level->dir), hfsb_buf_str(&f->path),
                               rules, &level->pushed);
    return st;
}

/* ---- the walk ---- */

/* What vanished meanwhile, or became a link, is not there. */
static bool hfsbi_is_gone(int code) {
    return code == ENOENT || code == ENOTDIR || code == ELOOP;
}

static hfsb_status hfsbi_finder_descend(hfsbi_finder      *f,
                                        const hfsbi_entry *entry) {
    hfsb_status st;
    int         code;
    if (f->depth >= f->max_depth) return HFSB_OK;
    if (f->depth == HFSBI_FINDER_DEPTH)
        return hfsbi_finder_tell(f, "lies too deep, it was left out");
    st = hfsbi_finder_enter(f, entry->dir, entry->name, &code);
    if (st != HFSB_OK || code == 0 || hfsbi_is_gone(code)) return st;
    if (code == ENOMEM) return HFSB_NOMEM;
    return hfsbi_finder_tell(f, hfsbi_os_text(code));
}

/* Folders that are no files of anyone: they never end, or are devices. */
static bool hfsbi_is_system(const hfsbi_finder *f, const char *name) {
    return f->at_root && f->depth == 1 &&
           (strcmp(name, "proc") == 0 || strcmp(name, "sys") == 0 ||
            strcmp(name, "dev") == 0);
}

/* Whether it is passed over; *shut: it is seen, but not entered. */
static bool hfsbi_finder_skips(hfsbi_finder *f, hfsbi_entry *entry,
                               bool *shut) {
    bool own;
    if (f->all) return false;
    own = entry->name[0] == '.' && strcmp(entry->name, ".git") == 0;
    if (own || hfsbi_is_system(f, entry->name)) {
        *shut = true;
        return !f->shows_ignored;
    }
    if (!f->ignore || !hfsbi_ignore_has(f->ignore, hfsb_buf_str(&f->path),
                                        entry->type == HFSBI_ENTRY_FOLDER))
        return false;
    f->ignored++;
    entry->ignored = *shut = true;
    return !f->shows_ignored;
}

static hfsb_status hfsbi_finder_look(hfsbi_finder             *f,
                                     const hfsbi_finder_level *level,
                                     const hfsbi_finder_item  *item) {
    hfsbi_entry entry = HFSB_INIT;
    struct stat at;
    bool        shut = false, folder;
    hfsb_status st = HFSB_OK;
    entry.dir = dirfd(level->dir);
    entry.name = item->name;
    entry.type = item->type;
    entry.path =
        hfsb_str_slice(hfsb_buf_str(&f->path), f->prefix, f->path.len);
    if (entry.type == HFSBI_ENTRY_UNKNOWN) {
        if (fstatat(entry.dir, entry.name, &at, AT_SYMLINK_NOFOLLOW) != 0)
            return HFSB_OK;
        entry.type = hfsbi_entry_type_of(at.st_mode);
    }
    folder = entry.type == HFSBI_ENTRY_FOLDER;
    f->files += !folder;
    if (f->wants && !f->wants(f->user, &entry)) return HFSB_OK;
    if (hfsbi_finder_skips(f, &entry, &shut)) return HFSB_OK;
    st = f->visit(f->user, &entry);
    if (st == HFSB_OK && folder && !shut && !f->stop)
        st = hfsbi_finder_descend(f, &entry);
    return st;
}

/* The path of the next entry in the folder. */
static hfsb_status hfsbi_finder_name(hfsbi_finder             *f,
                                     const hfsbi_finder_level *level,
                                     const char               *name) {
    hfsb_status st = HFSB_OK;
    hfsb_buf_truncate(&f->path, level->path);
    if (f->path.len) st = hfsb_buf_append_byte(&f->path, '/');
    return st == HFSB_OK ? hfsb_buf_append(&f->path, hfsb_cstr(name)) : st;
}

HFSBI_FN bool hfsbi_finder_over(hfsbi_finder *f) {
    if (f->late) return true;
    f->cancelled = f->call && hfsbi_call_cancelled(f->call);
    f->late = f->cancelled || hfsb_clock_ms() > f->until;
    return f->late;
}

static hfsb_status hfsbi_finder_walk(hfsbi_finder *f) {
    hfsb_status st = HFSB_OK;
    unsigned    count = 0;
    while (st == HFSB_OK && f->depth && !f->stop && !f->late) {
        hfsbi_finder_level      *level = &f->levels[f->depth - 1];
        const hfsbi_finder_item *item;
        if (level->next == level->count) {
            hfsbi_finder_leave(f);
            continue;
        }
        if (++count % 32 == 0 && hfsbi_finder_over(f)) break;
        item = &level->items[level->next++];
        st = hfsbi_finder_name(f, level, item->name);
        if (st == HFSB_OK) st = hfsbi_finder_look(f, level, item);
    }
    return st;
}

/* ---- from a path to a walk ---- */

/* The path as given, less what says nothing. */
static hfsb_status hfsbi_finder_show(hfsbi_finder *f, hfsb_str path) {
    hfsbi_sink sink = hfsbi_sink_begin(&f->shown);
    while (path.len > 1 && path.ptr[path.len - 1] == '/') path.len--;
    while (hfsb_str_starts(path, HFSB_LIT("./")))
        path = hfsb_str_slice(path, 2, path.len);
    if (hfsb_str_equal(path, HFSB_LIT("."))) return HFSB_OK;
    hfsbi_put(&sink, path);
    if (path.len && path.ptr[path.len - 1] != '/') hfsbi_put_byte(&sink, '/');
    return hfsbi_sink_end(&sink);
}

HFSBI_FN hfsb_status hfsbi_finder_open(hfsbi_finder *f, hfsb_str path,
                                       hfsb_err *err) {
    hfsb_status st;
    f->spot.dir = -1;
    f->shown.alloc = f->notes.alloc = f->path.alloc = f->alloc;
    if (!f->until) f->until = hfsb_clock_ms() + HFSBI_FINDER_MS;
    if (path.len == 0) path = HFSB_LIT(".");
    st = hfsbi_spot_find(f->place, path,
                         f->no_follow ? HFSBI_SPOT_NO_FOLLOW : 0, "search",
                         &f->spot, err);
    if (st != HFSB_OK) return st;
    if (!f->spot.exists)
        return hfsbi_path_fail(f->place, path, ENOENT, "search", err);
    if (hfsbi_finder_show(f, path) == HFSB_OK) return HFSB_OK;
    return hfsbi_fail_status(err, HFSB_NOMEM, "Searching");
}

HFSBI_FN hfsb_status hfsbi_finder_run(hfsbi_finder *f, hfsb_err *err) {
    hfsb_status st;
    int         code = 0;
    f->levels = (hfsbi_finder_level *)hfsbi_array(
        &f->alloc, HFSBI_FINDER_DEPTH, sizeof *f->levels);
    if (!f->levels) return hfsbi_fail_status(err, HFSB_NOMEM, "Searching");
    memset(f->levels, 0, HFSBI_FINDER_DEPTH * sizeof *f->levels);
    if (!f->max_depth) f->max_depth = HFSBI_FINDER_DEPTH + 1;
    st = f->all ? HFSB_OK : hfsbi_finder_above(f);
    if (st == HFSB_OK)
        st = hfsbi_finder_enter(f, f->spot.dir, f->spot.name, &code);
    if (st == HFSB_OK && code != 0)
        return hfsbi_path_fail(f->place, hfsb_buf_str(&f->spot.path), code,
                               "search", err);
    if (st == HFSB_OK) st = hfsbi_finder_walk(f);
    return st == HFSB_NOMEM ? hfsbi_fail_status(err, st, "Searching") : st;
}

HFSBI_FN void hfsbi_finder_close(hfsbi_finder *f) {
    size_t i;
    while (f->depth) hfsbi_finder_leave(f);
    for (i = 0; f->levels && i < HFSBI_FINDER_DEPTH; i++) {
        hfsbi_finder_level *level = &f->levels[i];
        hfsb_buf_free(&level->names);
        hfsbi_array_free(&f->alloc, level->items, level->cap,
                         sizeof *level->items);
    }
    hfsbi_array_free(&f->alloc, f->levels, HFSBI_FINDER_DEPTH,
                     sizeof *f->levels);
    f->levels = NULL;
    hfsbi_ignore_close(f->ignore);
    f->ignore = NULL;
    hfsbi_spot_close(&f->spot);
    hfsb_buf_free(&f->shown);
    hfsb_buf_free(&f->notes);
    hfsb_buf_free(&f->path);
}

HFSBI_FN int hfsbi_entry_open(int dir, const char *name, struct stat *st) {
    const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
    int       fd = hfsbi_openat(dir, name, flags, 0);
    if (fd < 0) return -1;
    if (fstat(fd, st) == 0 && S_ISREG(st->st_mode)) return fd;
    hfsbi_close(&fd);
    errno = ENOENT;
    return -1;
}
