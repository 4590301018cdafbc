/* search_rules.c - the .gitignore files that a walk meets, and those above it.
   Depends on: base, os, file_place, ignore. */
#include "search.h"

/* ---- one folder ---- */

/* Appends a file of rules; nothing when it is none to be read. */
static hfsb_status hfsbi_rules_read(int dir, const char *name, hfsb_buf *out) {
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

/* Appends the rules of a folder: those that a repository keeps to itself come
   first, so that a .gitignore has the last word, as in git. */
static hfsb_status hfsbi_rules_of(int dir, hfsb_buf *out) {
    const int   flags = HFSBI_O_SEARCH | O_NOFOLLOW;
    int         git = hfsbi_openat(dir, ".git", flags, 0), info = -1;
    hfsb_status st = HFSB_OK;
    if (git >= 0) info = hfsbi_openat(git, "info", flags, 0);
    if (info >= 0) st = hfsbi_rules_read(info, "exclude", out);
    hfsbi_close(&info);
    hfsbi_close(&git);
    if (st == HFSB_OK && out->len) st = hfsb_buf_append_byte(out, '\n');
    return st == HFSB_OK ? hfsbi_rules_read(dir, ".gitignore", out) : st;
}

HFSBI_FN hfsb_status hfsbi_finder_push(hfsbi_finder *f, int dir,
                                       hfsb_str folder, bool has_rules,
                                       bool *pushed) {
    hfsb_buf    text = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    *pushed = false;
    text.alloc = f->alloc;
    if (has_rules) st = hfsbi_rules_of(dir, &text);
    if (st == HFSB_OK && text.len && !f->ignore)
        st = hfsbi_ignore_open(&f->alloc, &f->ignore);
    if (st == HFSB_OK && f->ignore) {
        st = hfsbi_ignore_push(f->ignore, folder, hfsb_buf_str(&text));
        *pushed = st == HFSB_OK;
    }
    hfsb_buf_free(&text);
    return st;
}

HFSBI_FN void hfsbi_finder_pop(hfsbi_finder *f) {
    hfsbi_ignore_pop(f->ignore);
}

/* ---- above ---- */

/* The way from the root, or from "/", to where the walk begins. */
typedef struct hfsbi_descent {
    hfsbi_finder *f;
    int           at;
    char          real[PATH_MAX]; /* without links */
    hfsb_str      rest;           /* of it, as seen from where it begins */
    size_t        pos;            /* bytes of rest that lead to `at` */
    bool          inside;
    size_t        pushed;
} hfsbi_descent;

/* Where the folder really is, as text; false when that cannot be told. What
   is opened later is opened name by name, and compared with the folder. */
static bool hfsbi_descent_find(hfsbi_descent *d) {
    const hfsb_place *place = d->f->place;
    hfsb_buf          path = HFSB_INIT;
    hfsb_str          root = HFSB_INIT;
    hfsbi_sink        sink = hfsbi_sink_begin(&path);
    bool              ok;
    path.alloc = d->f->alloc;
    if (place && place->root_fd >= 0) {
        root = hfsb_buf_str(&place->real_root);
        hfsbi_put(&sink, root);
        hfsbi_put_byte(&sink, '/');
    }
    hfsbi_put(&sink, hfsb_buf_str(&d->f->spot.path));
    ok = hfsbi_sink_end(&sink) == HFSB_OK && realpath(path.ptr, d->real);
    hfsb_buf_free(&path);
    if (!ok) return false;
    d->rest = hfsb_cstr(d->real);
    while (root.len && root.ptr[root.len - 1] == '/') root.len--;
    if (!hfsb_str_starts(d->rest, root)) return false;
    d->rest = hfsb_str_slice(d->rest, root.len, d->rest.len);
    return d->rest.len == 0 || d->rest.ptr[0] == '/';
}

/* From the folder that it is in to the next; false when it is not there. */
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

/* The path of the folder, from where the way begins. */
static hfsb_str hfsbi_descent_path(const hfsbi_descent *d) {
    hfsb_str path = hfsb_str_slice(d->rest, 0, d->pos);
    while (path.len && path.ptr[0] == '/')
        path = hfsb_str_slice(path, 1, path.len);
    return path;
}

/* Looks at one folder on the way. A repository inside another has rules of
   its own. */
static hfsb_status hfsbi_descent_look(hfsbi_descent *d, bool last) {
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

/* True when the way has led to where the walk begins. */
static bool hfsbi_descent_is_there(const hfsbi_descent *d) {
    const struct stat *want = &d->f->spot.st;
    struct stat        at;
    return fstat(d->at, &at) == 0 && at.st_dev == want->st_dev &&
           at.st_ino == want->st_ino;
}

static hfsb_status hfsbi_descent_run(hfsbi_descent *d) {
    hfsb_status st = HFSB_OK;
    while (st == HFSB_OK && d->pos < d->rest.len) {
        st = hfsbi_descent_look(d, false);
        if (st == HFSB_OK && !hfsbi_descent_step(d)) break;
    }
    if (st == HFSB_OK && d->at >= 0 && d->pos == d->rest.len &&
        hfsbi_descent_is_there(d)) {
        st = hfsbi_descent_look(d, true);
        if (st == HFSB_OK && d->inside)
            st = hfsb_buf_append(&d->f->path, hfsbi_descent_path(d));
        d->f->prefix = d->f->path.len + (d->f->path.len > 0);
        return st;
    }
    for (; d->pushed; d->pushed--) hfsbi_finder_pop(d->f);
    return st;
}

HFSBI_FN hfsb_status hfsbi_finder_above(hfsbi_finder *f) {
    const hfsb_place *place = f->place;
    bool              rooted = place && place->root_fd >= 0;
    hfsbi_descent     d;
    hfsb_status       st;
    memset(&d, 0, sizeof d);
    d.f = f;
    if (!hfsbi_descent_find(&d)) return HFSB_OK;
    f->at_root = strcmp(d.real, "/") == 0;
    if (strcmp(d.rest.ptr, "/") == 0) d.rest.len = 0;
    d.inside = rooted; /* nothing above the root is looked at */
    d.at = hfsbi_openat(rooted ? place->root_fd : AT_FDCWD, rooted ? "." : "/",
                        HFSBI_O_SEARCH, 0);
    if (d.at < 0) return HFSB_OK;
    st = hfsbi_descent_run(&d);
    hfsbi_close(&d.at);
    return st;
}
