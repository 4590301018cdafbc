/* scan.c - the state of a root: its paths, compared and stored.

   A scan lists every path beneath the root with its metadata. A file whose
   inode, size, mtime and ctime are those of the last scan has its content too,
   so only what has changed is read, hashed and stored:

       last scan --+
                   +--> walk: fstatat each path --> the same? take its digest
       root -------+                           \--> else read and store it

   Timestamps have ticks: a file that changes twice in one tick looks the same
   after the second change. So a file that had changed just before it was read
   is RACY, and the next scan reads it again.

   Nearly all of the time goes to fstatat(), so a large root is scanned in
   parts by several threads, each a range of paths that had as many items in
   the last scan:

       last scan  | a .. b/c | b/d .. e | f/g .. z |
                      part 0     part 1     part 2    --> one scan

   Scans are sorted by path, where "/" sorts before every other byte: so a
   folder is followed by its contents, these by all else, and two scans are
   compared in one pass. A path that one of the scans leaves out (ignored, or
   in a folder that cannot be read) does not count as a difference.

   In its file a checkpoint has all items of a scan, or those that differ from
   a base: one changed file in a tree of thousands takes a few hundred
   bytes. */
#include "history_private.h"

enum {
    HFSBI_SCAN_FILE = 64 << 20, /* bytes of the largest file that is stored */
    HFSBI_SCAN_MS = 60000,      /* longest scan */
    HFSBI_SCAN_PARTS = 4,       /* threads, at most */
    HFSBI_SCAN_PART = 500,      /* least items worth a thread */
    HFSBI_SCAN_STACK = 512 * 1024
};

#define HFSBI_TICK        20000000ll /* ns: longer than a tick of any clock */
#define HFSBI_TICK_COARSE 2000000000ll /* ... of file systems that count s */

/* ---- items ---- */

HFSBI_FN void hfsbi_scan_init(hfsbi_root_scan *scan, const hfsb_alloc *alloc) {
    memset(scan, 0, sizeof *scan);
    scan->alloc = scan->names.alloc = *alloc;
    scan->names.max = 0xFFFFFFFFu; /* offsets have 32 bits */
}

HFSBI_FN void hfsbi_scan_free(hfsbi_root_scan *scan) {
    hfsb_alloc alloc = scan->alloc;
    hfsbi_array_free(&alloc, scan->items, scan->cap, sizeof *scan->items);
    hfsb_buf_free(&scan->names);
    hfsbi_scan_init(scan, &alloc);
}

HFSBI_FN hfsb_str hfsbi_item_path(const hfsbi_root_scan *scan,
                                  const hfsbi_item      *item) {
    return hfsb_str_make(scan->names.ptr + item->path, item->path_len);
}

HFSBI_FN hfsb_str hfsbi_item_target(const hfsbi_root_scan *scan,
                                    const hfsbi_item      *item) {
    return hfsb_str_make(scan->names.ptr + item->target, item->target_len);
}

HFSBI_FN const hfsbi_item *hfsbi_scan_find(const hfsbi_root_scan *scan,
                                           hfsb_str               path) {
    size_t low = 0, high = scan->count;
    while (low < high) {
        size_t            mid = low + (high - low) / 2;
        const hfsbi_item *item = &scan->items[mid];
        int order = hfsbi_compare_paths(hfsbi_item_path(scan, item), path);
        if (order == 0) return item;
        if (order < 0) low = mid + 1;
        else high = mid;
    }
    return NULL;
}

/* Appends a text and NUL to the names; false when out of memory. */
static bool hfsbi_scan_name(hfsbi_root_scan *scan, hfsb_str text, uint32_t *at,
                            uint32_t *len) {
    *at = (uint32_t)scan->names.len;
    *len = (uint32_t)text.len;
    hfsb_buf_append(&scan->names, text);
    return hfsb_buf_append_byte(&scan->names, '\0') == HFSB_OK;
}

/* Appends an item with that path, otherwise all zero; NULL when out of
   memory. */
static hfsbi_item *hfsbi_scan_add(hfsbi_root_scan *scan, hfsb_str path) {
    hfsbi_item *item;
    if (scan->count == scan->cap) {
        item = (hfsbi_item *)hfsbi_array_grow(&scan->alloc, scan->items,
                                              &scan->cap, scan->count + 1,
                                              sizeof *item);
        if (!item) return NULL;
        scan->items = item;
    }
    item = &scan->items[scan->count];
    memset(item, 0, sizeof *item);
    item->first = (uint32_t)scan->count;
    if (!hfsbi_scan_name(scan, path, &item->path, &item->path_len))
        return NULL;
    scan->count++;
    return item;
}

/* Appends a copy of an item of another scan; false when out of memory. */
static bool hfsbi_scan_copy(hfsbi_root_scan *to, const hfsbi_root_scan *from,
                            const hfsbi_item *item) {
    hfsbi_item *copy = hfsbi_scan_add(to, hfsbi_item_path(from, item));
    hfsbi_item  is;
    if (!copy) return false;
    is = *item;
    is.path = copy->path;
    is.first = copy->first;
    *copy = is;
    return item->kind != HFSBI_ITEM_LINK ||
           hfsbi_scan_name(to, hfsbi_item_target(from, item), &copy->target,
                           &copy->target_len);
}

/* ---- hard links ---- */

typedef struct hfsbi_twin {
    uint64_t identity;
    uint32_t index;
} hfsbi_twin;

static int hfsbi_compare_twins(const void *a, const void *b) {
    const hfsbi_twin *x = (const hfsbi_twin *)a, *y = (const hfsbi_twin *)b;
    if (x->identity != y->identity) return x->identity < y->identity ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Sets `first` of the files with several hard links; false when out of
   memory. */
static bool hfsbi_scan_find_twins(hfsbi_root_scan *scan) {
    hfsbi_twin *list;
    size_t      i, n = 0, count = 0;
    for (i = 0; i < scan->count; i++) {
        scan->items[i].first = (uint32_t)i;
        count += (scan->items[i].flags & HFSBI_ITEM_LINKED) != 0;
    }
    if (count == 0) return true;
    list = (hfsbi_twin *)hfsbi_array(&scan->alloc, count, sizeof *list);
    if (!list) return false;
    for (i = 0; i < scan->count; i++) {
        if (!(scan->items[i].flags & HFSBI_ITEM_LINKED)) continue;
        list[n].identity = scan->items[i].identity;
        list[n++].index = (uint32_t)i;
    }
    hfsbi_sort(list, count, sizeof *list, hfsbi_compare_twins);
    for (i = 1; i < count; i++)
        if (list[i].identity == list[i - 1].identity)
            scan->items[list[i].index].first =
                scan->items[list[i - 1].index].first;
    hfsbi_array_free(&scan->alloc, list, count, sizeof *list);
    return true;
}

/* ---- scanning ---- */

/* A scan in progress. */
typedef struct hfsbi_root_scanner {
    const hfsbi_scan_how *how;
    hfsbi_root_scan      *out;
    hfsbi_finder          finder;
    size_t                at;     /* next item of the last scan */
    size_t                failed; /* finder.failed when the last was added */
    size_t                opened; /* 1 + the last folder; 0: none */
    unsigned long long    bytes;  /* of files that are to be stored */
    bool                  dry;    /* store nothing */
    bool                  missed; /* a path is there, but not in the scan */
    hfsb_str         from, to; /* from <= path < to: its part; "": no limit */
    pthread_mutex_t *lock;     /* of the store (NULL: no other thread) */
    hfsb_err        *err;
} hfsbi_root_scanner;

static void hfsbi_item_set(hfsbi_item *item, const struct stat *st) {
    hfsb_file_info info;
    hfsbi_file_info_fill(&info, st);
    item->identity = info.inode ^ info.device * 0x9E3779B97F4A7C15ull;
    item->mode = (uint16_t)info.mode;
    item->uid = (uint32_t)st->st_uid;
    item->gid = (uint32_t)st->st_gid;
    item->kind = S_ISREG(st->st_mode)   ? HFSBI_ITEM_FILE
                 : S_ISDIR(st->st_mode) ? HFSBI_ITEM_FOLDER
                 : S_ISLNK(st->st_mode) ? HFSBI_ITEM_LINK
                                        : HFSBI_ITEM_OTHER;
    if (item->kind == HFSBI_ITEM_FOLDER) return; /* entries change its times */
    item->size = info.size;
    item->changed = (int64_t)info.changed * 1000000000 + info.changed_nanos;
    item->touched = (int64_t)info.touched * 1000000000 + info.touched_nanos;
    if (info.links > 1 && item->kind == HFSBI_ITEM_FILE)
        item->flags |= HFSBI_ITEM_LINKED;
}

/* True when the metadata of a file shows that its content is the same. */
static bool hfsbi_item_untouched(const hfsbi_item *a, const hfsbi_item *b) {
    return a->kind == b->kind && a->identity == b->identity &&
           a->size == b->size && a->changed == b->changed &&
           a->touched == b->touched;
}

HFSBI_FN bool hfsbi_item_is(const hfsbi_item *item, const struct stat *st) {
    hfsbi_item now;
    memset(&now, 0, sizeof now);
    hfsbi_item_set(&now, st);
    if (item->kind != HFSBI_ITEM_FILE) /* a symlink never changes */
        return now.kind == item->kind && now.identity == item->identity;
    if (item->flags & HFSBI_ITEM_LINKED) now.touched = item->touched;
    return hfsbi_item_untouched(item, &now);
}

/* True when the file may change once more without another timestamp. */
static bool hfsbi_item_is_racy(const hfsbi_item *item, int64_t now) {
    bool coarse =
        item->changed % 1000000000 == 0 && item->touched % 1000000000 == 0;
    return item->touched > now - (coarse ? HFSBI_TICK_COARSE : HFSBI_TICK);
}

/* The item of the last scan with this path, or NULL. Paths come in order. */
static const hfsbi_item *hfsbi_root_scanner_last(hfsbi_root_scanner *s,
                                                 hfsb_str            path) {
    const hfsbi_root_scan *last = s->how->last;
    while (s->at < last->count) {
        const hfsbi_item *item = &last->items[s->at];
        int order = hfsbi_compare_paths(hfsbi_item_path(last, item), path);
        if (order == 0) return item;
        if (order > 0) break;
        s->at++;
    }
    return NULL;
}

static hfsb_status hfsbi_root_scanner_full(hfsbi_root_scanner *s) {
    return hfsbi_fail(s->err, HFSB_LIMIT, 0,
                      "the files beneath the root have more than %llu MiB",
                      s->how->max_bytes >> 20);
}

/* Reads and stores the content of a file. One that cannot be read, or is too
   large, has none. HFSB_OK; or the failure of the store. */
static hfsb_status hfsbi_root_scanner_store(hfsbi_root_scanner *s,
                                            const hfsbi_entry  *entry,
                                            hfsbi_item         *item) {
    struct stat st;
    int64_t     now = hfsbi_time_ns();
    int         fd, code;
    if (item->size > HFSBI_SCAN_FILE) return HFSB_OK;
    s->bytes += item->size;
    if (s->dry)
        return s->bytes > s->how->max_bytes ? hfsbi_root_scanner_full(s)
                                            : HFSB_OK;
    fd = hfsbi_entry_open(entry->dir, entry->name, &st);
    if (fd < 0) return HFSB_OK;
    item->flags = 0;
    hfsbi_item_set(item, &st);
    if (s->lock) pthread_mutex_lock(s->lock);
    code = hfsbi_store_put(s->how->store, fd, HFSBI_SCAN_FILE, item->digest);
    if (s->lock) pthread_mutex_unlock(s->lock);
    if (code == 0) item->flags |= HFSBI_ITEM_STORED;
    if (hfsbi_item_is_racy(item, now)) item->flags |= HFSBI_ITEM_RACY;
    hfsbi_close(&fd);
    if (code == ENOSPC || code == EDQUOT || code == EROFS || code == ENOMEM)
        return hfsbi_fail_os(s->err, code, "%s", s->how->store->path.ptr);
    return HFSB_OK;
}

static hfsb_status hfsbi_root_scanner_link(hfsbi_root_scanner *s,
                                           const hfsbi_entry  *entry,
                                           hfsbi_item         *item) {
    char    target[PATH_MAX];
    ssize_t n = readlinkat(entry->dir, entry->name, target, sizeof target);
    if (n < 0 || n == (ssize_t)sizeof target) n = 0;
    return hfsbi_scan_name(s->out, hfsb_str_make(target, (size_t)n),
                           &item->target, &item->target_len)
               ? HFSB_OK
               : HFSB_NOMEM;
}

/* Handles what could not be read: the folder visited last or, where readdir()
   does not report the type of a name, a path. */
static void hfsbi_root_scanner_look(hfsbi_root_scanner *s) {
    if (s->finder.failed != s->failed && s->opened)
        s->out->items[s->opened - 1].flags |= HFSBI_ITEM_OPAQUE;
    else if (s->finder.failed != s->failed) s->missed = true;
    s->failed = s->finder.failed;
    s->opened = 0;
}

/* Handles a path that exists but cannot be examined: its folder shows its
   names and nothing else. Any other failure fails the scan, since what a scan
   lacks counts as deleted. */
static hfsb_status hfsbi_root_scanner_miss(hfsbi_root_scanner *s,
                                           hfsb_str            path) {
    size_t            end = path.len;
    int               code = errno;
    const hfsbi_item *folder = NULL;
    while (end && path.ptr[end - 1] != '/') end--;
    if (end && code == EACCES)
        folder = hfsbi_scan_find(s->out, hfsb_str_slice(path, 0, end - 1));
    if (!folder)
        return hfsbi_file_fail_os(s->how->place, path, code, "look at",
                                  s->err);
    s->out->items[folder - s->out->items].flags |= HFSBI_ITEM_OPAQUE;
    return HFSB_OK;
}

/* Fills an item; `was` is the same of the last scan, or NULL. */
static hfsb_status hfsbi_root_scanner_fill(hfsbi_root_scanner *s,
                                           const hfsbi_entry  *entry,
                                           const hfsbi_item   *was,
                                           hfsbi_item         *item) {
    if (item->kind == HFSBI_ITEM_FOLDER) {
        s->opened = s->out->count;
        return HFSB_OK;
    }
    if (item->kind == HFSBI_ITEM_LINK)
        return hfsbi_root_scanner_link(s, entry, item);
    if (item->kind != HFSBI_ITEM_FILE) return HFSB_OK;
    if (!was || !hfsbi_item_untouched(was, item) ||
        (was->flags & HFSBI_ITEM_RACY))
        return hfsbi_root_scanner_store(s, entry, item);
    item->flags |= was->flags & HFSBI_ITEM_STORED;
    memcpy(item->digest, was->digest, sizeof item->digest);
    return HFSB_OK;
}

static hfsb_status hfsbi_root_scanner_many(const hfsbi_root_scanner *s) {
    return hfsbi_fail(s->err, HFSB_LIMIT, 0,
                      "there are more than %zu files beneath the root",
                      s->how->max_files);
}

/* True for a folder before this part that leads to it. After the first path of
   the part there is none. */
static bool hfsbi_root_scanner_passes(hfsbi_root_scanner *s, hfsb_str path) {
    if (!s->from.len) return false;
    if (hfsbi_compare_paths(path, s->from) < 0) return true;
    s->from.len = 0;
    return false;
}

/* Callback of the walk. A file stays in the scans when rules begin to ignore
   it, as in git. */
static hfsb_status hfsbi_root_scanner_visit(void              *user,
                                            const hfsbi_entry *entry) {
    hfsbi_root_scanner *s = (hfsbi_root_scanner *)user;
    const hfsbi_item   *was;
    bool                left_out = entry->ignored;
    struct stat         st;
    hfsbi_item         *item;
    if (hfsbi_root_scanner_passes(s, entry->path)) return HFSB_OK;
    was = hfsbi_root_scanner_last(s, entry->path);
    hfsbi_root_scanner_look(s);
    if (!s->how->ignored && strcmp(entry->name, ".git") == 0) left_out = true;
    if (left_out && was && was->kind == HFSBI_ITEM_FILE) left_out = false;
    if (fstatat(entry->dir, entry->name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? HFSB_OK
                               : hfsbi_root_scanner_miss(s, entry->path);
    }
    if (s->out->count >= s->how->max_files) return hfsbi_root_scanner_many(s);
    item = hfsbi_scan_add(s->out, entry->path);
    if (!item) return HFSB_NOMEM;
    hfsbi_item_set(item, &st);
    if (left_out && S_ISDIR(st.st_mode)) item->identity = 0;
    if (left_out) item->kind = HFSBI_ITEM_IGNORED;
    return hfsbi_root_scanner_fill(s, entry, was, item);
}

/* True for a path in this part, and for a folder that leads to it. */
static bool hfsbi_root_scanner_covers(const hfsbi_root_scanner *s,
                                      hfsb_str                  path) {
    if (s->to.len && hfsbi_compare_paths(path, s->to) >= 0) return false;
    return !s->from.len || hfsbi_compare_paths(path, s->from) >= 0 ||
           (path.len < s->from.len && s->from.ptr[path.len] == '/' &&
            hfsb_str_starts(s->from, path));
}

/* Leaves out other parts and the temporaries of writes. */
static bool hfsbi_root_scanner_wants(void *user, const hfsbi_entry *entry) {
    const hfsbi_root_scanner *s = (const hfsbi_root_scanner *)user;
    if (entry->name[0] == '.' && hfsbi_temp_pid(hfsb_cstr(entry->name)))
        return false;
    return hfsbi_root_scanner_covers(s, entry->path);
}

/* Makes room for `count` items of the last scan. When out of memory, the scan
   makes it later, or fails. */
static void hfsbi_root_scanner_reserve(hfsbi_root_scanner *s, size_t count) {
    const hfsbi_root_scan *last = s->how->last;
    hfsbi_item            *items;
    hfsbi_scan_free(s->out);
    if (count == 0) return;
    items = (hfsbi_item *)hfsbi_array_grow(&s->out->alloc, NULL, &s->out->cap,
                                           count + 16, sizeof *items);
    if (items) s->out->items = items;
    if (hfsb_buf_reserve(&s->out->names, (last->names.len / last->count + 1) *
                                             count) != HFSB_OK)
        hfsb_buf_free(&s->out->names);
}

/* Scans one part, or all. */
static hfsb_status hfsbi_root_scanner_run(hfsbi_root_scanner *s) {
    hfsbi_finder *f = &s->finder;
    hfsb_status   st;
    memset(f, 0, sizeof *f);
    s->failed = s->opened = 0;
    s->missed = false;
    s->bytes = 0;
    f->place = s->how->place;
    f->alloc = s->out->alloc;
    f->flags = HFSBI_FIND_SORTED | HFSBI_FIND_IGNORED;
    if (s->how->ignored) f->flags |= HFSBI_FIND_ALL;
    f->until = hfsb_clock_ms() + HFSBI_SCAN_MS;
    f->visit = hfsbi_root_scanner_visit;
    f->wants = hfsbi_root_scanner_wants;
    f->user = s;
    st = hfsbi_finder_open(f, hfsb_root_path(s->how->place), s->err);
    if (st == HFSB_OK) st = hfsbi_finder_run(f, s->err);
    if (st == HFSB_OK) hfsbi_root_scanner_look(s);
    if (st == HFSB_OK && f->end != HFSBI_WALK_COMPLETE)
        st = hfsbi_fail(s->err, HFSB_LIMIT, 0,
                        "it takes more than %d s to look at all files",
                        HFSBI_SCAN_MS / 1000);
    if (st == HFSB_OK && s->missed)
        st =
            hfsbi_fail(s->err, HFSB_IO, 0, "some files cannot be looked at:%s",
                       f->notes.len ? f->notes.ptr : "");
    hfsbi_finder_close(f);
    return st;
}

static hfsb_status hfsbi_root_scanner_run_all(hfsbi_root_scanner *s,
                                              bool                dry) {
    hfsbi_root_scanner_reserve(s, s->how->last->count);
    s->at = 0;
    s->dry = dry;
    return hfsbi_root_scanner_run(s);
}

/* ---- scanning in parts ---- */

typedef struct hfsbi_scan_part {
    hfsbi_root_scanner scanner;
    hfsbi_root_scan    out;
    hfsb_err           err;
    hfsb_status        status;
    pthread_t          thread;
    bool               started;
} hfsbi_scan_part;

static void *hfsbi_scan_part_run(void *user) {
    hfsbi_scan_part *part = (hfsbi_scan_part *)user;
    part->status = hfsbi_root_scanner_run(&part->scanner);
    return NULL;
}

/* Prepares part i of n. The first has room for all of them. */
static void hfsbi_scan_part_init(hfsbi_scan_part          *part,
                                 const hfsbi_root_scanner *all, size_t i,
                                 size_t n, pthread_mutex_t *lock) {
    const hfsbi_root_scan *last = all->how->last;
    size_t              at = last->count / n * i, end = last->count / n + at;
    hfsbi_root_scanner *s = &part->scanner;
    memset(part, 0, sizeof *part);
    hfsbi_scan_init(&part->out, &all->out->alloc);
    *s = *all;
    s->out = &part->out;
    s->err = &part->err;
    s->lock = lock;
    s->at = at;
    if (i > 0) s->from = hfsbi_item_path(last, &last->items[at]);
    if (i + 1 < n) s->to = hfsbi_item_path(last, &last->items[end]);
    hfsbi_root_scanner_reserve(s, i ? end - at : last->count);
}

/* Appends the items of a later part; false when out of memory. */
static bool hfsbi_scan_append(hfsbi_root_scan       *scan,
                              const hfsbi_root_scan *more) {
    hfsbi_item *items = (hfsbi_item *)hfsbi_array_grow(
        &scan->alloc, scan->items, &scan->cap, scan->count + more->count,
        sizeof *items);
    uint32_t names = (uint32_t)scan->names.len;
    size_t   i;
    if (!items) return false;
    scan->items = items;
    if (hfsb_buf_append(&scan->names, hfsb_buf_str(&more->names)) != HFSB_OK)
        return false;
    items += scan->count;
    for (i = 0; i < more->count; i++) {
        items[i] = more->items[i];
        items[i].path += names;
        if (items[i].kind == HFSBI_ITEM_LINK) items[i].target += names;
    }
    scan->count += more->count;
    return true;
}

/* Joins the parts to a scan in s->out. HFSB_OK; HFSB_LIMIT with *s->err; or
   another failure, after which the scan of all decides. */
static hfsb_status hfsbi_scan_parts_join(const hfsbi_root_scanner *s,
                                         hfsbi_scan_part *parts, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) {
        if (parts[i].status == HFSB_OK) continue;
        if (s->err && parts[i].status == HFSB_LIMIT) *s->err = parts[i].err;
        return parts[i].status;
    }
    for (i = 1; i < n; i++)
        if (!hfsbi_scan_append(&parts[0].out, &parts[i].out))
            return HFSB_NOMEM;
    if (parts[0].out.count > s->how->max_files)
        return hfsbi_root_scanner_many(s);
    *s->out = parts[0].out;
    hfsbi_scan_init(&parts[0].out, &s->out->alloc);
    return HFSB_OK;
}

/* Scans in n parts. A part whose thread cannot be started is scanned here. */
static hfsb_status hfsbi_scan_run_parts(const hfsbi_root_scanner *s,
                                        size_t                    n) {
    hfsbi_scan_part parts[HFSBI_SCAN_PARTS];
    pthread_mutex_t lock;
    hfsb_status     st;
    size_t          i;
    (void)pthread_mutex_init(&lock, NULL);
    hfsbi_scan_free(s->out);
    for (i = 0; i < n; i++) hfsbi_scan_part_init(&parts[i], s, i, n, &lock);
    for (i = 1; i < n; i++)
        parts[i].started =
            hfsbi_thread_start(&parts[i].thread, HFSBI_SCAN_STACK,
                               hfsbi_scan_part_run, &parts[i]) == 0;
    for (i = 0; i < n; i++)
        if (!parts[i].started) (void)hfsbi_scan_part_run(&parts[i]);
    for (i = 1; i < n; i++)
        if (parts[i].started) (void)pthread_join(parts[i].thread, NULL);
    st = hfsbi_scan_parts_join(s, parts, n);
    for (i = 0; i < n; i++) hfsbi_scan_free(&parts[i].out);
    (void)pthread_mutex_destroy(&lock);
    return st;
}

/* The number of parts of a scan. The memory hook need not be usable from
   threads that the caller did not start. */
static size_t hfsbi_scan_count_parts(const hfsbi_root_scanner *s) {
    size_t n = s->out->alloc.fn ? 1 : s->how->last->count / HFSBI_SCAN_PART;
    return n < HFSBI_SCAN_PARTS ? n : (size_t)HFSBI_SCAN_PARTS;
}

/* The first scan looks before it stores: a root that is too large costs no
   disk. A part fails where it would need items of another, such as those of an
   unreadable folder: then everything is scanned at once. */
HFSBI_FN hfsb_status hfsbi_scan_run(const hfsbi_scan_how *how,
                                    hfsbi_root_scan *out, hfsb_err *err) {
    hfsbi_root_scanner s;
    hfsb_status        st = HFSB_OK;
    memset(&s, 0, sizeof s);
    s.how = how;
    s.out = out;
    s.err = err;
    if (how->last->count == 0) st = hfsbi_root_scanner_run_all(&s, true);
    if (st == HFSB_OK) {
        size_t n = hfsbi_scan_count_parts(&s);
        if (n > 1) st = hfsbi_scan_run_parts(&s, n);
        if (n <= 1 || (st != HFSB_OK && st != HFSB_LIMIT))
            st = hfsbi_root_scanner_run_all(&s, false);
    }
    if (st == HFSB_OK && !hfsbi_scan_find_twins(out)) st = HFSB_NOMEM;
    if (st == HFSB_NOMEM) hfsbi_fail_status(err, st, "Checkpoint");
    if (st != HFSB_OK) hfsbi_scan_free(out);
    return st;
}

/* ---- comparing ---- */

HFSBI_FN bool hfsbi_item_same(const hfsbi_root_scan *x, const hfsbi_item *a,
                              const hfsbi_root_scan *y, const hfsbi_item *b) {
    if (!a || !b) return a == b;
    if (a->kind != b->kind) return false;
    if (a->kind == HFSBI_ITEM_OTHER) return true;
    if (a->kind == HFSBI_ITEM_LINK)
        return hfsb_str_equal(hfsbi_item_target(x, a),
                              hfsbi_item_target(y, b));
    if (a->mode != b->mode) return false;
    if (a->kind == HFSBI_ITEM_FOLDER) return true;
    if (!hfsb_str_equal(hfsbi_item_path(x, &x->items[a->first]),
                        hfsbi_item_path(y, &y->items[b->first])))
        return false;
    if ((a->flags & b->flags) & HFSBI_ITEM_STORED)
        return memcmp(a->digest, b->digest, sizeof a->digest) == 0;
    return a->size == b->size && a->changed == b->changed &&
           a->identity == b->identity;
}

/* One side of a comparison. */
typedef struct hfsbi_scan_side {
    const hfsbi_root_scan *scan;
    size_t                 at;
} hfsbi_scan_side;

static const hfsbi_item *hfsbi_scan_side_item(const hfsbi_scan_side *s) {
    return s->at < s->scan->count ? &s->scan->items[s->at] : NULL;
}

/* Skips what is beneath the folder. */
static void hfsbi_scan_side_skip(hfsbi_scan_side *s, hfsb_str folder) {
    const hfsbi_item *item;
    while ((item = hfsbi_scan_side_item(s)) != NULL) {
        hfsb_str path = hfsbi_item_path(s->scan, item);
        if (path.len <= folder.len || path.ptr[folder.len] != '/' ||
            !hfsb_str_starts(path, folder))
            return;
        s->at++;
    }
}

static bool hfsbi_item_hides(const hfsbi_item *item) {
    return item && (item->kind == HFSBI_ITEM_IGNORED ||
                    (item->flags & HFSBI_ITEM_OPAQUE));
}

/* Takes the next path of both sides. False at the end. */
static bool hfsbi_scan_sides_next(hfsbi_scan_side *x, hfsbi_scan_side *y,
                                  const hfsbi_item **a, const hfsbi_item **b) {
    int order;
    *a = hfsbi_scan_side_item(x);
    *b = hfsbi_scan_side_item(y);
    if (!*a && !*b) return false;
    order = !*a   ? 1
            : !*b ? -1
                  : hfsbi_compare_paths(hfsbi_item_path(x->scan, *a),
                                        hfsbi_item_path(y->scan, *b));
    if (order > 0) *a = NULL;
    else x->at++;
    if (order < 0) *b = NULL;
    else y->at++;
    return true;
}

HFSBI_FN hfsb_status hfsbi_scan_diff(const hfsbi_root_scan *before,
                                     const hfsbi_root_scan *after,
                                     hfsbi_diff_fn fn, void *user) {
    hfsbi_scan_side   x, y;
    const hfsbi_item *a, *b;
    hfsb_status       st = HFSB_OK;
    x.scan = before;
    y.scan = after;
    x.at = y.at = 0;
    while (st == HFSB_OK && hfsbi_scan_sides_next(&x, &y, &a, &b)) {
        bool ignored = (a && a->kind == HFSBI_ITEM_IGNORED) ||
                       (b && b->kind == HFSBI_ITEM_IGNORED);
        if (hfsbi_item_hides(a) || hfsbi_item_hides(b)) {
            hfsb_str path =
                a ? hfsbi_item_path(before, a) : hfsbi_item_path(after, b);
            hfsbi_scan_side_skip(&x, path);
            hfsbi_scan_side_skip(&y, path);
        }
        if (ignored || hfsbi_item_same(before, a, after, b)) continue;
        st = fn(user, a, b);
    }
    return st;
}

static hfsb_status hfsbi_diff_add(void *user, const hfsbi_item *was,
                                  const hfsbi_item *is) {
    hfsbi_diff_count *n = (hfsbi_diff_count *)user;
    if (!was) n->created++;
    else if (!is) n->deleted++;
    else n->changed++;
    return HFSB_OK;
}

HFSBI_FN hfsbi_diff_count hfsbi_scan_count(const hfsbi_root_scan *before,
                                           const hfsbi_root_scan *after) {
    hfsbi_diff_count n = HFSB_INIT;
    (void)hfsbi_scan_diff(before, after, hfsbi_diff_add, &n);
    return n;
}

/* ---- the file of a checkpoint ---- */

static const char hfsbi_checkpoint_magic[16] = "hfsb-checkpnt1\n";

enum { HFSBI_CHECKPOINT_FILE = 40 }; /* bytes of its name, with NUL */

static void hfsbi_checkpoint_file(uint64_t number,
                                  char     name[HFSBI_CHECKPOINT_FILE]) {
    (void)snprintf(name, HFSBI_CHECKPOINT_FILE, "checkpoints/%08llu",
                   (unsigned long long)number);
}

/* True when the files of two checkpoints need not distinguish the items. */
static bool hfsbi_item_equal(const hfsbi_root_scan *x, const hfsbi_item *a,
                             const hfsbi_root_scan *y, const hfsbi_item *b) {
    return a->flags == b->flags && a->identity == b->identity &&
           a->changed == b->changed && a->touched == b->touched &&
           a->uid == b->uid && a->gid == b->gid && hfsbi_item_same(x, a, y, b);
}

/* Collects what the base lacks; false when out of memory. */
static bool hfsbi_delta_make(const hfsbi_root_scan *base,
                             const hfsbi_root_scan *scan,
                             hfsbi_root_scan       *delta) {
    hfsbi_scan_side   x, y;
    const hfsbi_item *a, *b;
    bool              ok = true;
    x.scan = base;
    y.scan = scan;
    x.at = y.at = 0;
    while (ok && hfsbi_scan_sides_next(&x, &y, &a, &b)) {
        if (a && b && hfsbi_item_equal(base, a, scan, b)) continue;
        if (b) {
            ok = hfsbi_scan_copy(delta, scan, b);
        } else {
            ok = hfsbi_scan_add(delta, hfsbi_item_path(base, a)) != NULL;
        }
    }
    return ok;
}

HFSBI_FN int hfsbi_checkpoint_write(hfsbi_store *store, hfsbi_checkpoint *head,
                                    const hfsbi_root_scan *scan,
                                    const hfsbi_root_scan *base) {
    const hfsbi_root_scan *from = scan;
    hfsbi_root_scan        delta;
    char                   name[HFSBI_CHECKPOINT_FILE];
    hfsb_str               parts[3];
    int                    code = 0;
    hfsbi_scan_init(&delta, &scan->alloc);
    if (base && !hfsbi_delta_make(base, scan, &delta)) code = ENOMEM;
    if (base && delta.count < scan->count / 4) from = &delta;
    else head->base = 0;
    memcpy(head->magic, hfsbi_checkpoint_magic, sizeof head->magic);
    head->count = from->count;
    head->names = from->names.len;
    parts[0] = hfsb_str_make((const char *)head, sizeof *head);
    parts[1] = hfsb_str_make((const char *)from->items,
                             from->count * sizeof *from->items);
    parts[2] = hfsb_buf_str(&from->names);
    hfsbi_checkpoint_file(head->number, name);
    if (code == 0) code = hfsbi_store_write(store, name, parts, 3);
    if (code == 0) store->bytes += parts[0].len + parts[1].len + parts[2].len;
    hfsbi_scan_free(&delta);
    return code;
}

/* True when a name lies in the names and ends in NUL. */
static bool hfsbi_name_fits(const hfsbi_root_scan *scan, uint32_t at,
                            uint32_t len) {
    return at < scan->names.len && len < scan->names.len - at &&
           scan->names.ptr[at + len] == '\0' &&
           memchr(scan->names.ptr + at, '\0', len) == NULL;
}

/* True for a path that is relative and has no "." or "..". */
static bool hfsbi_name_is_path(hfsb_str path) {
    hfsb_str part;
    if (path.len == 0) return false;
    while (hfsbi_list_next(&path, '/', &part))
        if (part.len == 0 || hfsb_str_equal(part, HFSB_LIT(".")) ||
            hfsb_str_equal(part, HFSB_LIT("..")))
            return false;
    return true;
}

/* The file may be damaged or forged. */
static bool hfsbi_scan_is_valid(const hfsbi_root_scan *scan) {
    size_t i;
    for (i = 0; i < scan->count; i++) {
        const hfsbi_item *item = &scan->items[i];
        hfsb_str          path;
        if (item->kind > HFSBI_ITEM_IGNORED || item->mode > 07777 ||
            !hfsbi_name_fits(scan, item->path, item->path_len) ||
            (item->kind == HFSBI_ITEM_LINK &&
             !hfsbi_name_fits(scan, item->target, item->target_len)))
            return false;
        path = hfsbi_item_path(scan, item);
        if (!hfsbi_name_is_path(path)) return false;
        if (i &&
            hfsbi_compare_paths(hfsbi_item_path(scan, item - 1), path) >= 0)
            return false;
    }
    return true;
}

/* Takes items and names out of the text of a file. */
static int hfsbi_scan_parse(const hfsbi_checkpoint *head, hfsb_str text,
                            hfsbi_root_scan *scan) {
    size_t bytes;
    if (head->count > text.len / sizeof(hfsbi_item)) return EINVAL;
    bytes = (size_t)head->count * sizeof(hfsbi_item);
    if (text.len - sizeof *head < bytes ||
        text.len - sizeof *head - bytes != head->names)
        return EINVAL;
    if (head->count == 0) return 0;
    scan->items = (hfsbi_item *)hfsbi_array(&scan->alloc, (size_t)head->count,
                                            sizeof *scan->items);
    if (!scan->items) return ENOMEM;
    scan->cap = scan->count = (size_t)head->count;
    memcpy(scan->items, text.ptr + sizeof *head, bytes);
    if (hfsb_buf_append(
            &scan->names,
            hfsb_str_slice(text, sizeof *head + bytes, text.len)) != HFSB_OK)
        return ENOMEM;
    return hfsbi_scan_is_valid(scan) ? 0 : EINVAL;
}

/* Empties a text from a file that may be damaged, unless it is UTF-8. */
static void hfsbi_label_check(char *text, size_t size) {
    text[size - 1] = '\0';
    if (hfsb_utf8_validate(hfsb_cstr(text)) != strlen(text)) text[0] = '\0';
}

static int hfsbi_checkpoint_load(const hfsbi_store *store, uint64_t number,
                                 hfsbi_checkpoint *head,
                                 hfsbi_root_scan  *scan) {
    hfsb_buf text = HFSB_INIT;
    char     name[HFSBI_CHECKPOINT_FILE];
    int      code;
    text.alloc = store->alloc;
    hfsbi_checkpoint_file(number, name);
    code = hfsbi_store_read(store, name, &text);
    if (code == 0 && text.len < sizeof *head) code = EINVAL;
    if (code == 0) memcpy(head, text.ptr, sizeof *head);
    if (code == 0 && (memcmp(head->magic, hfsbi_checkpoint_magic,
                             sizeof head->magic) != 0 ||
                      head->number != number))
        code = EINVAL;
    if (code == 0) {
        hfsbi_label_check(head->name, sizeof head->name);
        hfsbi_label_check(head->by, sizeof head->by);
    }
    if (code == 0 && scan)
        code = hfsbi_scan_parse(head, hfsb_buf_str(&text), scan);
    hfsb_buf_free(&text);
    return code;
}

/* Applies a delta to its base; false when out of memory. */
static bool hfsbi_delta_apply(const hfsbi_root_scan *base,
                              const hfsbi_root_scan *delta,
                              hfsbi_root_scan       *out) {
    hfsbi_scan_side   x, y;
    const hfsbi_item *a, *b;
    bool              ok = true;
    x.scan = base;
    y.scan = delta;
    x.at = y.at = 0;
    while (ok && hfsbi_scan_sides_next(&x, &y, &a, &b)) {
        if (b && b->kind == HFSBI_ITEM_GONE) continue;
        ok =
            b ? hfsbi_scan_copy(out, delta, b) : hfsbi_scan_copy(out, base, a);
    }
    return ok;
}

HFSBI_FN int hfsbi_checkpoint_read(const hfsbi_store *store, uint64_t number,
                                   hfsbi_checkpoint *head,
                                   hfsbi_root_scan  *scan) {
    hfsbi_checkpoint from;
    hfsbi_root_scan  base, delta;
    int              code = hfsbi_checkpoint_load(store, number, head, scan);
    if (code == 0 && scan && head->base) {
        delta = *scan;
        hfsbi_scan_init(scan, &delta.alloc);
        hfsbi_scan_init(&base, &delta.alloc);
        code = hfsbi_checkpoint_load(store, head->base, &from, &base);
        if (code == 0 && from.base) code = EINVAL;
        if (code == 0 && !hfsbi_delta_apply(&base, &delta, scan))
            code = ENOMEM;
        hfsbi_scan_free(&base);
        hfsbi_scan_free(&delta);
    }
    if (code == 0 && scan && !hfsbi_scan_find_twins(scan)) code = ENOMEM;
    if (code != 0 && scan) hfsbi_scan_free(scan);
    return code;
}

HFSBI_FN int hfsbi_checkpoint_digests(const hfsbi_store *store,
                                      uint64_t number, hfsbi_checkpoint *head,
                                      hfsb_buf *out) {
    hfsbi_root_scan scan;
    size_t          i;
    int             code;
    hfsbi_scan_init(&scan, &store->alloc);
    code = hfsbi_checkpoint_load(store, number, head, &scan);
    for (i = 0; code == 0 && i < scan.count; i++)
        if (scan.items[i].flags & HFSBI_ITEM_STORED)
            hfsb_buf_append(out,
                            hfsb_str_make((const char *)scan.items[i].digest,
                                          HFSB_SHA256_SIZE));
    hfsbi_scan_free(&scan);
    return code == 0 && out->status != HFSB_OK ? ENOMEM : code;
}

HFSBI_FN int hfsbi_checkpoint_remove(hfsbi_store *store, uint64_t number) {
    char name[HFSBI_CHECKPOINT_FILE];
    hfsbi_checkpoint_file(number, name);
    return hfsbi_store_remove(store, name);
}
