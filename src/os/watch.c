/* watch.c - watch a folder with inotify

   A watched folder is a node: the kernel's number for it (wd), the node above
   and its name there. The path of a change is put together from the nodes, so
   a folder that is renamed needs one node changed, not all beneath it.

       kernel --> input --> changes by path --> queue --> the caller
                    |                             |
                    new folder: watch it, scan    full: OVERFLOW once
                    it, report what it has

   inotify takes a path, and a path can be swapped. So a folder is opened
   first, from its parent with O_NOFOLLOW and the top one beneath the root, and
   the watch is set on /proc/self/fd/N, which names that open folder and
   nothing else. Descriptors are closed again at once: a folder that we held
   open could be removed without an event.

   A scan reads a folder after its watch has begun, so an entry created in
   between is both found and reported by the kernel: such names are kept until
   the events pending at that time have passed, so each is reported once.

   Where events were lost, or contradict what a scan has found, all watches
   are set again, and the caller gets an OVERFLOW.

   State of the descriptor in the loop; reading may block, so threads do it:

       OPENED --start--> WAIT --readable--> READ --done--> WAIT
                                             |
                                             +--close--> CLOSING --done--> */
#include "os_private.h"

#ifdef HFSBI_LINUX

enum {
    HFSBI_WATCH_FOLDERS = 8192,
    HFSBI_WATCH_CHANGES = 4096,
    HFSBI_WATCH_BYTES = 4 << 20,   /* of paths in the queue */
    HFSBI_WATCH_INPUT = 128 << 10, /* bytes of events held; half of it is read
                                      at a time */
    HFSBI_WATCH_SEEN = 1 << 20,    /* bytes of names found by scans */
    HFSBI_WATCH_PAIR_MS = 10 /* between the two events of a rename */
};

#define HFSBI_WATCH_MASK                                                   \
    (IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |     \
     IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)

/* A folder that is watched. */
typedef struct hfsbi_watch_node {
    struct hfsbi_watch_node *parent; /* NULL: the top one */
    hfsb_buf                 name;
    int                      wd;
    bool                     doomed; /* for hfsbi_watch_drop() */
    hfsb_buf           seen; /* names a scan has reported, each with a NUL, */
    unsigned long long seen_until; /* ... for events before this position */
} hfsbi_watch_node;

/* A change in the queue; the bytes of path and to follow it. */
typedef struct hfsbi_watch_item {
    struct hfsbi_watch_item *next;
    size_t                   size; /* of the block */
    hfsbi_change             change;
} hfsbi_watch_item;

typedef struct hfsbi_watch_queue {
    pthread_mutex_t    lock;
    hfsbi_watch_item  *first, *last;
    hfsbi_watch_item  *taken; /* the caller has views of it */
    size_t             count, bytes;
    bool               overflow; /* changes are dropped until it is taken */
    bool               ended, end_taken;
} hfsbi_watch_queue;

typedef enum hfsbi_watch_state {
    HFSBI_WATCH_OPENED,
    HFSBI_WATCH_WAIT,
    HFSBI_WATCH_READ,
    HFSBI_WATCH_CLOSING
} hfsbi_watch_state;

struct hfsbi_folder_watch {
    hfsbi_io                io; /* first; its fd is that of inotify */
    hfsbi_task              task;
    hfsbi_loop             *loop;
    hfsbi_watch_state       state;
    const hfsb_root        *root;
    hfsb_alloc              alloc;
    hfsb_buf                path; /* as given */
    hfsbi_folder_watch_opts opts;
    hfsbi_watch_queue       queue;
    /* used by the thread that reads */
    dev_t              device; /* of the top folder */
    ino_t              inode;
    const hfsb_root   *place_root; /* NULL: there is no deny list */
    hfsb_buf           place;      /* the top folder, as the list sees it */
    hfsbi_watch_node **nodes;      /* sorted by wd */
    size_t             count, cap;
    hfsbi_watch_node  *top;
    hfsb_buf           input; /* events, */
    size_t             at;    /* ... the next of them, */
    unsigned long long pos;   /* ... and its position since the beginning */
    size_t             seen;  /* bytes of names in nodes */
    bool               lost;  /* all watches must be set again */
};

/* ---- the queue ---- */

static void hfsbi_watch_item_free(hfsbi_folder_watch *w,
                                  hfsbi_watch_item   *item) {
    if (item) hfsbi_array_free(&w->alloc, item, item->size, 1);
}

/* True when the newest change is the same: a file is being written. */
static bool hfsbi_watch_repeats(const hfsbi_watch_queue *q,
                                hfsbi_change_kind kind, hfsb_str path) {
    return q->last && q->last->change.kind == kind &&
           (kind == HFSBI_CHANGE_WRITE || kind == HFSBI_CHANGE_CHMOD) &&
           hfsb_str_equal(q->last->change.path, path);
}

/* Queues a change, under the lock. False when it does not fit. */
static bool hfsbi_watch_add(hfsbi_folder_watch *w, hfsbi_change_kind kind,
                            bool folder, hfsb_str path, hfsb_str to) {
    hfsbi_watch_queue *q = &w->queue;
    hfsbi_watch_item  *item;
    size_t             size = sizeof *item + path.len + to.len;
    char              *bytes;
    if (q->count >= w->opts.max_changes ||
        q->bytes + size > HFSBI_WATCH_BYTES)
        return false;
    item = (hfsbi_watch_item *)hfsbi_array(&w->alloc, size, 1);
    if (!item) return false;
    memset(item, 0, sizeof *item);
    bytes = (char *)(item + 1);
    if (path.len) memcpy(bytes, path.ptr, path.len);
    if (to.len) memcpy(bytes + path.len, to.ptr, to.len);
    item->size = size;
    item->change.kind = kind;
    item->change.folder = folder;
    item->change.path = hfsb_str_make(bytes, path.len);
    item->change.to = hfsb_str_make(bytes + path.len, to.len);
    if (q->last) q->last->next = item;
    else q->first = item;
    q->last = item;
    q->count++;
    q->bytes += size;
    return true;
}

static void hfsbi_watch_report(hfsbi_folder_watch *w, hfsbi_change_kind kind,
                               bool folder, hfsb_str path, hfsb_str to) {
    hfsbi_watch_queue *q = &w->queue;
    (void)pthread_mutex_lock(&q->lock);
    if (!q->overflow && !q->ended && !hfsbi_watch_repeats(q, kind, path) &&
        !hfsbi_watch_add(w, kind, folder, path, to))
        q->overflow = true;
    (void)pthread_mutex_unlock(&q->lock);
}

static void hfsbi_watch_overflow(hfsbi_folder_watch *w) {
    (void)pthread_mutex_lock(&w->queue.lock);
    w->queue.overflow = true;
    (void)pthread_mutex_unlock(&w->queue.lock);
}

static void hfsbi_watch_end(hfsbi_folder_watch *w) {
    (void)pthread_mutex_lock(&w->queue.lock);
    w->queue.ended = true;
    (void)pthread_mutex_unlock(&w->queue.lock);
}

/* True when there is something to take. */
static bool hfsbi_watch_has(hfsbi_folder_watch *w, bool *ended) {
    hfsbi_watch_queue *q = &w->queue;
    bool               has;
    (void)pthread_mutex_lock(&q->lock);
    *ended = q->ended;
    has = q->first || q->overflow || (q->ended && !q->end_taken);
    (void)pthread_mutex_unlock(&q->lock);
    return has;
}

HFSBI_FN bool hfsbi_folder_watch_next(hfsbi_folder_watch *w,
                                      hfsbi_change       *change) {
    hfsbi_watch_queue *q = &w->queue;
    bool               has = true;
    memset(change, 0, sizeof *change);
    (void)pthread_mutex_lock(&q->lock);
    hfsbi_watch_item_free(w, q->taken);
    q->taken = q->first;
    if (q->first) {
        *change = q->first->change;
        q->count--;
        q->bytes -= q->first->size;
        q->first = q->first->next;
        if (!q->first) q->last = NULL;
    } else if (q->overflow) {
        change->kind = HFSBI_CHANGE_OVERFLOW;
        q->overflow = false;
    } else if (q->ended && !q->end_taken) {
        change->kind = HFSBI_CHANGE_END;
        q->end_taken = true;
    } else {
        has = false;
    }
    (void)pthread_mutex_unlock(&q->lock);
    return has;
}

/* ---- nodes ---- */

/* Returns the index where the node of wd is, or belongs. */
static size_t hfsbi_watch_index(const hfsbi_folder_watch *w, int wd) {
    size_t low = 0, high = w->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (w->nodes[mid]->wd < wd) low = mid + 1;
        else high = mid;
    }
    return low;
}

static hfsbi_watch_node *hfsbi_watch_find(const hfsbi_folder_watch *w,
                                          int                       wd) {
    size_t i = hfsbi_watch_index(w, wd);
    return i < w->count && w->nodes[i]->wd == wd ? w->nodes[i] : NULL;
}

static hfsbi_watch_node *hfsbi_watch_child(const hfsbi_folder_watch *w,
                                           const hfsbi_watch_node   *parent,
                                           hfsb_str                  name) {
    size_t i;
    for (i = 0; i < w->count; i++)
        if (w->nodes[i]->parent == parent &&
            hfsb_str_equal(hfsb_buf_str(&w->nodes[i]->name), name))
            return w->nodes[i];
    return NULL;
}

/* True when node is `above`, or lies beneath it. */
static bool hfsbi_watch_is_beneath(const hfsbi_watch_node *node,
                                   const hfsbi_watch_node *above) {
    while (node && node != above) node = node->parent;
    return node != NULL;
}

/* Ends the watch of a folder (may be NULL) and of all beneath it. */
static void hfsbi_watch_drop(hfsbi_folder_watch *w, hfsbi_watch_node *node) {
    size_t i, kept = 0;
    if (!node) return;
    for (i = 0; i < w->count; i++)
        w->nodes[i]->doomed = hfsbi_watch_is_beneath(w->nodes[i], node);
    for (i = 0; i < w->count; i++) {
        hfsbi_watch_node *n = w->nodes[i];
        if (!n->doomed) {
            w->nodes[kept++] = n;
            continue;
        }
        (void)inotify_rm_watch(w->io.fd, n->wd);
        w->seen -= n->seen.len;
        hfsb_buf_free(&n->name);
        hfsb_buf_free(&n->seen);
        hfsbi_array_free(&w->alloc, n, 1, sizeof *n);
    }
    w->count = kept;
}

/* Moves a node; false when the new place lies beneath it, or when out of
   memory. */
static bool hfsbi_watch_reparent(hfsbi_watch_node *node,
                                 hfsbi_watch_node *parent, hfsb_str name) {
    if (!node->parent || hfsbi_watch_is_beneath(parent, node)) return false;
    node->parent = parent;
    hfsb_buf_truncate(&node->name, 0);
    return hfsb_buf_append(&node->name, name) == HFSB_OK;
}

/* Adds a node; NULL when out of memory. */
static hfsbi_watch_node *hfsbi_watch_node_add(hfsbi_folder_watch *w, int wd,
                                              hfsbi_watch_node *parent,
                                              hfsb_str          name) {
    size_t             i = hfsbi_watch_index(w, wd);
    hfsbi_watch_node **nodes = w->nodes, *node;
    if (w->count == w->cap) {
        nodes = (hfsbi_watch_node **)hfsbi_array_grow(
            &w->alloc, nodes, &w->cap, w->count + 1, sizeof *nodes);
        if (!nodes) return NULL;
        w->nodes = nodes;
    }
    node = (hfsbi_watch_node *)hfsbi_array(&w->alloc, 1, sizeof *node);
    if (!node) return NULL;
    memset(node, 0, sizeof *node);
    node->wd = wd;
    node->parent = parent;
    node->name.alloc = node->seen.alloc = w->alloc;
    if (hfsb_buf_append(&node->name, name) != HFSB_OK) {
        hfsbi_array_free(&w->alloc, node, 1, sizeof *node);
        return NULL;
    }
    memmove(nodes + i + 1, nodes + i, (w->count - i) * sizeof *nodes);
    nodes[i] = node;
    w->count++;
    return node;
}

/* True for an entry of `parent` that lies deeper than a walk goes: there each
   event would cost more than making the folder did. */
static bool hfsbi_watch_is_deep(const hfsbi_watch_node *parent) {
    size_t depth = 0;
    for (; parent; parent = parent->parent) depth++;
    return depth > HFSBI_FINDER_DEPTH;
}

/* Watches the open folder fd. 0 or an errno: E2BIG past max_folders or too
   deep, ENOSPC past the limit of the system, ESTALE when it is known at a
   place that it cannot have left. */
static int hfsbi_watch_folder(hfsbi_folder_watch *w, int fd,
                              hfsbi_watch_node *parent, hfsb_str name,
                              hfsbi_watch_node **out) {
    char link[32];
    int  wd;
    *out = NULL;
    if (w->count >= w->opts.max_folders || hfsbi_watch_is_deep(parent))
        return E2BIG;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    wd = inotify_add_watch(w->io.fd, link, HFSBI_WATCH_MASK);
    if (wd < 0) return errno;
    *out = hfsbi_watch_find(w, wd);
    if (*out)
        return (*out)->parent == parent &&
                       hfsb_str_equal(hfsb_buf_str(&(*out)->name), name)
                   ? 0
               : hfsbi_watch_reparent(*out, parent, name) ? 0
                                                          : ESTALE;
    *out = hfsbi_watch_node_add(w, wd, parent, name);
    if (*out) return 0;
    (void)inotify_rm_watch(w->io.fd, wd);
    return ENOMEM;
}

/* ---- paths ---- */

/* Appends the path of an entry of a folder, from the top. */
static hfsb_status hfsbi_watch_put_path(const hfsbi_watch_node *node,
                                        hfsb_str name, hfsb_buf *out) {
    const hfsbi_watch_node *n;
    size_t                  begin = out->len, need = name.len, at;
    hfsb_status             st;
    for (n = node; n->parent; n = n->parent) need += n->name.len + 1;
    st = hfsb_buf_reserve(out, need);
    if (st != HFSB_OK) return st;
    at = begin + need - name.len;
    memcpy(out->ptr + at, name.ptr, name.len);
    for (n = node; n->parent; n = n->parent) {
        out->ptr[--at] = '/';
        at -= n->name.len;
        memcpy(out->ptr + at, n->name.ptr, n->name.len);
    }
    out->len = begin + need;
    return hfsb_buf_append(out, hfsb_str_make("", 0)); /* the NUL */
}

/* True for an entry that is not reported. */
static bool hfsbi_watch_hides(hfsbi_folder_watch *w, hfsb_str name,
                              hfsb_str path, bool folder) {
    size_t mark = w->place.len;
    bool   denied;
    if (hfsbi_temp_pid(name) != 0) return true;
    if (!w->place_root) return false;
    if (mark) hfsb_buf_append_byte(&w->place, '/');
    denied = hfsb_buf_append(&w->place, path) != HFSB_OK ||
             hfsbi_root_denies(w->place_root, hfsb_buf_str(&w->place), folder);
    hfsb_buf_truncate(&w->place, mark);
    return denied;
}

/* ---- scanning ---- */

/* A walk through a folder that sets watches. */
typedef struct hfsbi_watch_scan {
    hfsbi_folder_watch *w;
    hfsbi_finder        finder;
    bool                report; /* what is there as created */
    int                 code;   /* why it ended, an errno */
    /* the folders on the way to the entry; NULL: not watched */
    hfsbi_watch_node *node[HFSBI_FINDER_DEPTH + 1];
} hfsbi_watch_scan;

static hfsbi_watch_node **hfsbi_watch_scan_parent(hfsbi_watch_scan  *s,
                                                  const hfsbi_entry *entry) {
    return &s->node[hfsb_str_count_byte(entry->path, '/')];
}

static bool hfsbi_watch_wants(void *user, const hfsbi_entry *entry) {
    hfsbi_watch_scan *s = (hfsbi_watch_scan *)user;
    return *hfsbi_watch_scan_parent(s, entry) &&
           (s->report || entry->type == HFSBI_ENTRY_FOLDER) &&
           hfsbi_temp_pid(hfsb_cstr(entry->name)) == 0;
}

/* True for a folder that is gone or cannot be read. */
static bool hfsbi_watch_skips(int code) {
    return code == ENOENT || code == ENOTDIR || code == ELOOP ||
           code == EACCES || code == EPERM;
}

/* Reports an entry, and keeps its name. */
static int hfsbi_watch_found(hfsbi_watch_scan *s, hfsbi_watch_node *parent,
                             const hfsbi_entry *entry) {
    hfsb_buf path = HFSB_INIT;
    hfsb_str name = hfsb_cstr(entry->name);
    bool     folder = entry->type == HFSBI_ENTRY_FOLDER;
    path.alloc = s->w->alloc;
    if (hfsbi_watch_put_path(parent, name, &path) != HFSB_OK) return ENOMEM;
    hfsbi_watch_report(s->w, HFSBI_CHANGE_CREATE, folder, hfsb_buf_str(&path),
                       hfsb_str_make("", 0));
    hfsb_buf_free(&path);
    if (s->w->seen + name.len < HFSBI_WATCH_SEEN &&
        hfsb_buf_append(&parent->seen,
                        hfsb_str_make(name.ptr, name.len + 1)) == HFSB_OK)
        s->w->seen += name.len + 1;
    return 0;
}

static hfsb_status hfsbi_watch_visit(void *user, const hfsbi_entry *entry) {
    hfsbi_watch_scan  *s = (hfsbi_watch_scan *)user;
    hfsbi_watch_node **parent = hfsbi_watch_scan_parent(s, entry);
    int                code = 0, fd;
    if (s->report) code = hfsbi_watch_found(s, *parent, entry);
    if (code == 0 && entry->type == HFSBI_ENTRY_FOLDER) {
        parent[1] = NULL;
        fd = hfsbi_open_folder(entry->dir, entry->name, false);
        code = fd < 0 ? errno
                      : hfsbi_watch_folder(s->w, fd, *parent,
                                           hfsb_cstr(entry->name), parent + 1);
        hfsbi_close(&fd);
        if (hfsbi_watch_skips(code)) code = 0;
    }
    if (code == 0) return HFSB_OK;
    s->code = code;
    s->finder.end = HFSBI_WALK_STOPPED;
    return HFSB_OK;
}

/* The names found by a scan count until the events now due have passed. */
static void hfsbi_watch_scan_end(hfsbi_folder_watch *w) {
    unsigned long long until = w->pos + (w->input.len - w->at);
    int                due = 0;
    size_t             i;
    if (ioctl(w->io.fd, FIONREAD, &due) == 0)
        until += (unsigned long long)due;
    for (i = 0; i < w->count; i++)
        if (w->nodes[i]->seen.len) w->nodes[i]->seen_until = until;
}

/* Watches all folders beneath the open folder fd of a node; closes fd. 0 or an
   errno: ETIMEDOUT, and those of hfsbi_watch_folder(). */
static int hfsbi_watch_scan_run(hfsbi_folder_watch *w, int fd,
                                hfsbi_watch_node *node, bool report) {
    hfsbi_watch_scan *s;
    hfsb_status       st;
    int               code;
    s = (hfsbi_watch_scan *)hfsbi_array(&w->alloc, 1, sizeof *s);
    if (!s) {
        hfsbi_close(&fd);
        return ENOMEM;
    }
    memset(s, 0, sizeof *s);
    s->w = w;
    s->report = report;
    s->node[0] = node;
    s->finder.alloc = w->alloc;
    s->finder.flags = HFSBI_FIND_ALL | HFSBI_FIND_SORTED;
    s->finder.wants = hfsbi_watch_wants;
    s->finder.visit = hfsbi_watch_visit;
    s->finder.user = s;
    st = hfsbi_finder_open_at(&s->finder, w->place_root,
                              hfsb_buf_str(&w->path), fd)
             ? hfsbi_finder_run(&s->finder, NULL)
             : HFSB_NOMEM;
    code = s->code;
    if (code == 0 && st == HFSB_NOMEM) code = ENOMEM;
    if (code == 0 && s->finder.end == HFSBI_WALK_LATE) code = ETIMEDOUT;
    hfsbi_finder_close(&s->finder);
    hfsbi_array_free(&w->alloc, s, 1, sizeof *s);
    if (report) hfsbi_watch_scan_end(w);
    return code;
}

/* Opens the top folder; -1 with errno, ESTALE when the path now leads
   elsewhere. */
static int hfsbi_watch_open_top(hfsbi_folder_watch *w) {
    hfsbi_target target;
    struct stat  st;
    int          fd, code = ESTALE;
    if (hfsbi_resolve(w->root, hfsb_buf_str(&w->path), 0, "watch", &target,
                      NULL) != HFSB_OK) {
        errno = ESTALE;
        return -1;
    }
    fd = hfsbi_open_folder(target.dir, target.name, false);
    hfsbi_target_close(&target);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == w->device &&
        st.st_ino == w->inode)
        return fd;
    if (fd < 0) code = errno;
    hfsbi_close(&fd);
    errno = hfsbi_watch_skips(code) ? ESTALE : code;
    return -1;
}

/* Opens a folder by its path from the top, never through a symlink; -1 with
   errno. */
static int hfsbi_watch_open_path(hfsbi_folder_watch *w, hfsb_str path) {
    int      at = hfsbi_watch_open_top(w), fd;
    char     name[HFSBI_NAME_SIZE];
    hfsb_str part;
    while (at >= 0 && hfsbi_list_next(&path, '/', &part)) {
        if (part.len == 0 || part.len >= sizeof name) continue;
        memcpy(name, part.ptr, part.len);
        name[part.len] = '\0';
        fd = hfsbi_open_folder(at, name, false);
        hfsbi_close(&at);
        at = fd;
    }
    return at;
}

/* Watches a new folder and all beneath it. */
static void hfsbi_watch_new(hfsbi_folder_watch *w, hfsbi_watch_node *parent,
                            hfsb_str name, hfsb_str path, bool report) {
    hfsbi_watch_node *node;
    int               code, fd;
    if (!w->opts.recursive) return;
    fd = hfsbi_watch_open_path(w, path);
    code = fd < 0 ? errno : hfsbi_watch_folder(w, fd, parent, name, &node);
    if (code == 0) code = hfsbi_watch_scan_run(w, fd, node, report);
    else hfsbi_close(&fd);
    if (code == 0 || (hfsbi_watch_skips(code) && code != ESTALE)) return;
    if (code == ESTALE && fd < 0) hfsbi_watch_end(w);
    else if (code == ESTALE) w->lost = true;
    else hfsbi_watch_overflow(w);
}

/* Sets all watches: the top one and, if asked for, those beneath. 0 or an
   errno. */
static int hfsbi_watch_set(hfsbi_folder_watch *w) {
    int code, fd = hfsbi_watch_open_top(w);
    if (fd < 0) return errno;
    code = hfsbi_watch_folder(w, fd, NULL, HFSB_LIT(""), &w->top);
    if (code == 0 && w->opts.recursive)
        return hfsbi_watch_scan_run(w, fd, w->top, false);
    hfsbi_close(&fd);
    return code;
}

/* Sets all watches again, after events were lost. */
static void hfsbi_watch_reset(hfsbi_folder_watch *w) {
    w->lost = false;
    hfsbi_watch_drop(w, w->top); /* all of them */
    w->top = NULL;
    hfsbi_watch_overflow(w);
    (void)hfsbi_watch_set(w);
    if (!w->top) hfsbi_watch_end(w);
}

/* ---- events ---- */

/* struct inotify_event, without the name at its end */
typedef struct hfsbi_watch_head {
    int      wd;
    uint32_t mask, cookie, len;
} hfsbi_watch_head;

/* One event of the kernel; the name is a view into the input. */
typedef struct hfsbi_watch_input {
    hfsbi_watch_head head;
    hfsb_str         name;
} hfsbi_watch_input;

/* Reads the event at a position of the input; returns its size. */
static size_t hfsbi_watch_get(const hfsbi_folder_watch *w, size_t at,
                              hfsbi_watch_input *e) {
    const char *name = w->input.ptr + at + sizeof e->head;
    memcpy(&e->head, w->input.ptr + at, sizeof e->head);
    e->name = hfsb_str_make(name, e->head.len ? strlen(name) : 0);
    return sizeof e->head + e->head.len;
}

/* True for an entry that a scan reported before its event. */
static bool hfsbi_watch_was_seen(hfsbi_folder_watch *w, hfsbi_watch_node *node,
                                 hfsb_str name) {
    size_t at = 0;
    if (w->pos >= node->seen_until) return false;
    for (; at < node->seen.len; at += strlen(node->seen.ptr + at) + 1)
        if (strcmp(node->seen.ptr + at, name.ptr) == 0) {
            node->seen.ptr[at] = '/'; /* only once */
            return true;
        }
    return false;
}

/* Frees the names found by scans whose events have passed. */
static void hfsbi_watch_forget_seen(hfsbi_folder_watch *w) {
    size_t i;
    for (i = 0; w->seen && i < w->count; i++) {
        hfsbi_watch_node *n = w->nodes[i];
        if (!n->seen.len || w->pos < n->seen_until) continue;
        w->seen -= n->seen.len;
        hfsb_buf_free(&n->seen);
        n->seen.alloc = w->alloc;
        n->seen_until = 0;
    }
}

/* Reads more events after those in the input, waiting for them up to ms; false
   when there are none. */
static bool hfsbi_watch_read_more(hfsbi_folder_watch *w, int ms) {
    struct pollfd p;
    ssize_t       n;
    if (w->at) {
        memmove(w->input.ptr, w->input.ptr + w->at, w->input.len - w->at);
        w->input.len -= w->at;
        w->at = 0;
    }
    p.fd = w->io.fd;
    p.events = POLLIN;
    if (w->input.len > HFSBI_WATCH_INPUT / 2 ||
        (ms && poll(&p, 1, ms) <= 0))
        return false;
    n = hfsbi_read(w->io.fd, w->input.ptr + w->input.len,
                   HFSBI_WATCH_INPUT / 2);
    if (n > 0) w->input.len += (size_t)n;
    return n > 0;
}

/* Finds the other event of a rename after the current one, of `size` bytes,
   and removes it from the input. */
static bool hfsbi_watch_find_pair(hfsbi_folder_watch *w, uint32_t cookie,
                                  size_t size, hfsbi_watch_input *pair) {
    size_t at = w->at + size;
    for (; at < w->input.len; at += size) {
        size = hfsbi_watch_get(w, at, pair);
        if ((pair->head.mask & IN_MOVED_TO) && pair->head.cookie == cookie) {
            hfsbi_watch_head none = pair->head;
            none.mask = 0;
            memcpy(w->input.ptr + at, &none, sizeof none);
            return true;
        }
    }
    return false;
}

/* Handles a new entry of `node`. */
static void hfsbi_watch_on_create(hfsbi_folder_watch *w,
                                  hfsbi_watch_node *node, hfsb_str name,
                                  hfsb_str path, bool folder) {
    if (hfsbi_watch_was_seen(w, node, name)) return;
    hfsbi_watch_report(w, HFSBI_CHANGE_CREATE, folder, path,
                       hfsb_str_make("", 0));
    if (folder) hfsbi_watch_new(w, node, name, path, true);
}

/* Moves the node of a renamed folder. If the deny list may now allow more of
   its entries, these get watches. */
static void hfsbi_watch_on_folder_rename(hfsbi_folder_watch *w,
                                         hfsbi_watch_node   *child,
                                         hfsbi_watch_node   *node,
                                         hfsb_str name, hfsb_str path) {
    hfsbi_watch_node *old = hfsbi_watch_child(w, node, name);
    if (old && child && old != child && hfsbi_watch_is_beneath(child, old)) {
        w->lost = true;
        return;
    }
    if (old != child) hfsbi_watch_drop(w, old); /* it was replaced */
    if (child && !hfsbi_watch_reparent(child, node, name)) w->lost = true;
    else if (!child || w->place_root)
        hfsbi_watch_new(w, node, name, path, !child);
}

/* Handles a rename within the watched folders. */
static void hfsbi_watch_on_rename(hfsbi_folder_watch *w,
                                  hfsbi_watch_node *child, bool hidden,
                                  hfsb_str from, hfsbi_watch_node *node,
                                  hfsb_str name, hfsb_str to, bool folder) {
    const hfsb_str none = hfsb_str_make("", 0);
    if (hfsbi_watch_hides(w, name, to, folder)) {
        if (!hidden)
            hfsbi_watch_report(w, HFSBI_CHANGE_RENAME, folder, from, none);
        hfsbi_watch_drop(w, child);
    } else if (hidden) {
        hfsbi_watch_on_create(w, node, name, to, folder);
        if (!folder)
            hfsbi_watch_report(w, HFSBI_CHANGE_WRITE, folder, to, none);
    } else {
        hfsbi_watch_report(w, HFSBI_CHANGE_RENAME, folder, from, to);
        if (folder && w->opts.recursive)
            hfsbi_watch_on_folder_rename(w, child, node, name, to);
    }
}

/* Handles an entry that left its folder. `e` is valid until the input
   changes. */
static void hfsbi_watch_on_move(hfsbi_folder_watch *w, hfsbi_watch_node *node,
                                const hfsbi_watch_input *e, size_t size,
                                hfsb_str from, bool folder) {
    hfsbi_watch_node *child =
        folder ? hfsbi_watch_child(w, node, e->name) : NULL;
    bool     hidden = hfsbi_watch_hides(w, e->name, from, folder);
    uint32_t cookie = e->head.cookie;
    hfsbi_watch_input pair;
    hfsbi_watch_node *to = NULL;
    hfsb_buf          path = HFSB_INIT;
    path.alloc = w->alloc;
    if (hfsbi_watch_find_pair(w, cookie, size, &pair) ||
        (hfsbi_watch_read_more(w, HFSBI_WATCH_PAIR_MS) &&
         hfsbi_watch_find_pair(w, cookie, size, &pair)))
        to = hfsbi_watch_find(w, pair.head.wd);
    if (!to) {
        if (!hidden)
            hfsbi_watch_report(w, HFSBI_CHANGE_RENAME, folder, from,
                               hfsb_str_make("", 0));
        hfsbi_watch_drop(w, child);
    } else if (hfsbi_watch_put_path(to, pair.name, &path) != HFSB_OK) {
        w->lost = true;
    } else {
        hfsbi_watch_on_rename(w, child, hidden, from, to, pair.name,
                              hfsb_buf_str(&path), folder);
    }
    hfsb_buf_free(&path);
}

/* Handles a change of an entry of `node`, whose path is given. */
static void hfsbi_watch_on_entry(hfsbi_folder_watch *w, hfsbi_watch_node *node,
                                 const hfsbi_watch_input *e, size_t size,
                                 hfsb_str path) {
    const hfsb_str none = hfsb_str_make("", 0);
    uint32_t       mask = e->head.mask;
    bool           folder = (mask & IN_ISDIR) != 0;
    if (mask & IN_MOVED_FROM) {
        hfsbi_watch_on_move(w, node, e, size, path, folder);
        return;
    }
    if (hfsbi_watch_hides(w, e->name, path, folder)) return;
    if (mask & (IN_CREATE | IN_MOVED_TO))
        hfsbi_watch_on_create(w, node, e->name, path, folder);
    if (mask & IN_MODIFY)
        hfsbi_watch_report(w, HFSBI_CHANGE_WRITE, folder, path, none);
    if (mask & IN_ATTRIB)
        hfsbi_watch_report(w, HFSBI_CHANGE_CHMOD, folder, path, none);
    if (mask & IN_DELETE) {
        (void)hfsbi_watch_was_seen(w, node, e->name); /* no longer seen */
        hfsbi_watch_report(w, HFSBI_CHANGE_REMOVE, folder, path, none);
        if (folder) hfsbi_watch_drop(w, hfsbi_watch_child(w, node, e->name));
    }
}

/* Handles the event at the beginning of the input that is left. */
static void hfsbi_watch_event(hfsbi_folder_watch *w) {
    hfsbi_watch_input e;
    size_t            size = hfsbi_watch_get(w, w->at, &e);
    hfsbi_watch_node *node = hfsbi_watch_find(w, e.head.wd);
    hfsb_buf          path = HFSB_INIT;
    path.alloc = w->alloc;
    if (e.head.mask & IN_Q_OVERFLOW) {
        w->lost = true;
    } else if (node && (e.head.mask & (IN_IGNORED | IN_UNMOUNT |
                                       IN_DELETE_SELF | IN_MOVE_SELF))) {
        if (node == w->top) hfsbi_watch_end(w);
        else if (e.head.mask & (IN_IGNORED | IN_UNMOUNT))
            hfsbi_watch_drop(w, node);
    } else if (node && e.name.len) {
        if (hfsbi_watch_put_path(node, e.name, &path) == HFSB_OK)
            hfsbi_watch_on_entry(w, node, &e, size, hfsb_buf_str(&path));
        else w->lost = true;
    }
    hfsb_buf_free(&path);
    w->at += size;
    w->pos += size;
}

/* In a thread: reads the events there are, for a few rounds at most, so that a
   busy folder does not occupy the thread. */
static void hfsbi_watch_run(hfsbi_task *task) {
    hfsbi_folder_watch *w =
        (hfsbi_folder_watch *)(void *)((char *)task -
                                       offsetof(hfsbi_folder_watch, task));
    int  rounds;
    bool ended = false;
    for (rounds = 0; rounds < 16 && !ended; rounds++) {
        if (!hfsbi_watch_read_more(w, 0)) break;
        while (w->at < w->input.len && !w->lost) hfsbi_watch_event(w);
        if (w->lost) {
            w->pos += w->input.len - w->at;
            w->at = w->input.len;
            hfsbi_watch_reset(w);
        }
        hfsbi_watch_forget_seen(w);
        (void)hfsbi_watch_has(w, &ended);
    }
}

/* ---- in the loop ---- */

static void hfsbi_watch_free(hfsbi_folder_watch *w) {
    hfsb_alloc        alloc = w->alloc;
    hfsbi_watch_item *item;
    hfsbi_watch_drop(w, w->top);
    hfsbi_array_free(&alloc, w->nodes, w->cap, sizeof *w->nodes);
    hfsbi_close(&w->io.fd);
    while ((item = w->queue.first) != NULL) {
        w->queue.first = item->next;
        hfsbi_watch_item_free(w, item);
    }
    hfsbi_watch_item_free(w, w->queue.taken);
    (void)pthread_mutex_destroy(&w->queue.lock);
    hfsb_buf_free(&w->path);
    hfsb_buf_free(&w->place);
    hfsb_buf_free(&w->input);
    hfsbi_array_free(&alloc, w, 1, sizeof *w);
}

/* Ends a closed watch: no thread uses it any more. */
static void hfsbi_watch_leave(hfsbi_folder_watch *w) {
    void (*gone)(void *user) = w->opts.gone;
    void *user = w->opts.user;
    hfsbi_watch_free(w);
    if (gone) gone(user);
}

static void hfsbi_watch_done(hfsbi_task *task) {
    hfsbi_folder_watch *w =
        (hfsbi_folder_watch *)(void *)((char *)task -
                                       offsetof(hfsbi_folder_watch, task));
    bool ended, has;
    if (w->state == HFSBI_WATCH_CLOSING) {
        hfsbi_watch_leave(w);
        return;
    }
    w->state = HFSBI_WATCH_WAIT;
    has = hfsbi_watch_has(w, &ended);
    if (!ended && !hfsbi_loop_io(w->loop, &w->io, HFSBI_IO_READ)) {
        hfsbi_watch_end(w);
        has = ended = true;
    }
    if (ended) hfsbi_loop_io_forget(w->loop, &w->io);
    if (has && w->opts.fn) w->opts.fn(w->opts.user); /* may close it */
}

static void hfsbi_watch_ready(hfsbi_io *io, unsigned events) {
    hfsbi_folder_watch *w = (hfsbi_folder_watch *)(void *)io;
    (void)events;
    if (w->state != HFSBI_WATCH_WAIT) return;
    w->state = HFSBI_WATCH_READ;
    hfsbi_loop_io_forget(w->loop, io);
    hfsbi_loop_work(w->loop, &w->task);
}

HFSBI_FN bool hfsbi_folder_watch_start(hfsbi_folder_watch *w,
                                       hfsbi_loop         *loop) {
    if (!hfsbi_loop_io(loop, &w->io, HFSBI_IO_READ)) {
        hfsbi_loop_io_forget(loop, &w->io);
        return false;
    }
    w->loop = loop;
    w->state = HFSBI_WATCH_WAIT;
    return true;
}

HFSBI_FN void hfsbi_folder_watch_close(hfsbi_folder_watch *w) {
    if (!w) return;
    if (w->loop) hfsbi_loop_io_forget(w->loop, &w->io);
    if (w->state == HFSBI_WATCH_READ) w->state = HFSBI_WATCH_CLOSING;
    else hfsbi_watch_leave(w);
}

/* ---- opening ---- */

static hfsb_status hfsbi_watch_fail_set(const hfsbi_folder_watch *w, int code,
                                        hfsb_err *err) {
    hfsb_str path = hfsb_buf_str(&w->path);
    if (code == E2BIG) {
        hfsbi_file_fail(err, HFSB_LIMIT, "Has too many folders to watch",
                        path);
        hfsbi_err_add(err, " (the limit is %zu)", w->opts.max_folders);
        return HFSB_LIMIT;
    }
    if (code == ENOSPC) {
        hfsbi_file_fail(err, HFSB_LIMIT,
                        "The system cannot watch more folders", path);
        hfsbi_err_add(err, " (see fs.inotify.max_user_watches)");
        return HFSB_LIMIT;
    }
    if (code == ETIMEDOUT)
        return hfsbi_file_fail(err, HFSB_TIMEOUT,
                               "Looking at all folders takes too long", path);
    if (code == ESTALE) code = ENOENT;
    return hfsbi_file_fail_os(w->root, path, code, "watch", err);
}

static hfsb_status hfsbi_watch_init(hfsbi_folder_watch *w, hfsb_err *err) {
    w->io.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->io.fd >= 0) w->io.fd = hfsbi_fd_above_2(w->io.fd);
    if (w->io.fd >= 0) return HFSB_OK;
    if (errno == EMFILE || errno == ENFILE)
        return hfsbi_fail(err, HFSB_BUSY, 0,
                          "Too many folders are watched at once, or too many "
                          "files are open (see "
                          "fs.inotify.max_user_instances).");
    if (errno == ENOSYS || errno == EPERM)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "Watching a folder needs inotify, which this "
                          "system does not allow.");
    return hfsbi_fail_os(err, errno, "Cannot watch a folder");
}

/* Records what the top folder is. */
static hfsb_status hfsbi_watch_begin(hfsbi_folder_watch *w, hfsb_str path,
                                     hfsb_err *err) {
    hfsbi_target target;
    int          code = 0;
    hfsb_status  st =
        hfsbi_resolve(w->root, path, 0, "watch", &target, err);
    if (st != HFSB_OK) return st;
    w->device = target.st.st_dev;
    w->inode = target.st.st_ino;
    if (!target.exists) code = ENOENT;
    else if (!S_ISDIR(target.st.st_mode))
        st = hfsbi_fail_not_folder(path, err);
    else if (target.root && target.root->deny->rules) {
        w->place_root = target.root;
        code = hfsbi_target_place(&target, &w->place);
        if (code == 0 && strcmp(w->place.ptr, ".") == 0)
            hfsb_buf_truncate(&w->place, 0);
    }
    if (code == 0 && (hfsb_buf_append(&w->path, path) != HFSB_OK ||
                      hfsb_buf_reserve(&w->input, HFSBI_WATCH_INPUT) !=
                          HFSB_OK))
        code = ENOMEM;
    if (st == HFSB_OK && code != 0)
        st = hfsbi_file_fail_os(w->root, path, code, "watch", err);
    hfsbi_target_close(&target);
    return st;
}

HFSBI_FN hfsb_status
hfsbi_folder_watch_open(const hfsb_root *root, hfsb_str path,
                        const hfsbi_folder_watch_opts *opts,
                        hfsbi_folder_watch **out, hfsb_err *err) {
    hfsb_alloc          alloc = hfsbi_root_alloc(root);
    hfsbi_folder_watch *w =
        (hfsbi_folder_watch *)hfsbi_array(&alloc, 1, sizeof *w);
    hfsb_status st;
    int         code;
    *out = NULL;
    if (!w) return hfsbi_fail_status(err, HFSB_NOMEM, "Watch of a folder");
    memset(w, 0, sizeof *w);
    (void)pthread_mutex_init(&w->queue.lock, NULL);
    w->io.fd = -1;
    w->io.fn = hfsbi_watch_ready;
    w->task.run = hfsbi_watch_run;
    w->task.done = hfsbi_watch_done;
    w->root = root;
    w->alloc = w->path.alloc = w->place.alloc = w->input.alloc = alloc;
    w->opts = *opts;
    w->task.rights = opts->rights;
    if (!w->opts.max_folders) w->opts.max_folders = HFSBI_WATCH_FOLDERS;
    if (!w->opts.max_changes) w->opts.max_changes = HFSBI_WATCH_CHANGES;
    st = hfsbi_watch_begin(w, path, err);
    if (st == HFSB_OK) st = hfsbi_watch_init(w, err);
    if (st == HFSB_OK) {
        code = hfsbi_watch_set(w);
        if (code != 0) st = hfsbi_watch_fail_set(w, code, err);
    }
    if (st == HFSB_OK) *out = w;
    else hfsbi_watch_free(w);
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}

#else

HFSBI_FN hfsb_status
hfsbi_folder_watch_open(const hfsb_root *root, hfsb_str path,
                        const hfsbi_folder_watch_opts *opts,
                        hfsbi_folder_watch **out, hfsb_err *err) {
    (void)root;
    (void)path;
    (void)opts;
    *out = NULL;
    return hfsbi_fail(err, HFSB_REFUSED, 0,
                      "Watching a folder needs inotify, which this system "
                      "does not have.");
}

HFSBI_FN bool hfsbi_folder_watch_start(hfsbi_folder_watch *w,
                                       hfsbi_loop         *loop) {
    (void)w;
    (void)loop;
    return false;
}

HFSBI_FN bool hfsbi_folder_watch_next(hfsbi_folder_watch *w,
                                      hfsbi_change       *change) {
    (void)w;
    memset(change, 0, sizeof *change);
    return false;
}

HFSBI_FN void hfsbi_folder_watch_close(hfsbi_folder_watch *w) {
    (void)w;
}
#endif
