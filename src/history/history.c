/* history.c - when checkpoints are taken, and which are kept.

   A checkpoint is a numbered state of the root. It is taken before the first
   of some changes by tools, before each command, and after both:

       before() --> tool or command --> changed() --> after()
          |                                              |
          +-- what others did meanwhile                  +-- what it did

   so that the history tells the two apart. A scan that finds nothing changed
   makes no checkpoint. Calls that overlap, or follow each other at once, share
   one. Between changed() and after() a checkpoint is owed: whoever scans first
   takes it.

   Each checkpoint knows its parent, the state before it; `at` is the one that
   the root was last equal to. An undo goes to the parent and moves `at` there,
   so the next one goes further back, and what follows branches off:

       1 <- 2 <- 3 <- 4        undo, undo: at 2; a change: 5, parent 2

   A checkpoint knows its author too. An undo does not revert what a person
   did, and keeps it when it reverts the steps around it.

   Several processes may use one store: its lock is held during a scan, and
   whoever gets it first reads what the others have added.

   Limits never fail a call. Old checkpoints are dropped when the store is too
   large, except the first, the one where the session began, and `at`. If that
   does not help, or there are too many files, checkpoints stop, and one note
   says so. */
#include "history_private.h"

enum {
    HFSBI_HISTORY_TURN_MS = 1000, /* changes this close share a checkpoint */
    HFSBI_HISTORY_FILES = 50000,
    HFSBI_HISTORY_COUNT = 500 /* checkpoints kept */
};

#define HFSBI_HISTORY_BYTES (512ull << 20)

/* ---- stopping ---- */

static void hfsbi_history_stop(hfsbi_history *h, const char *why) {
    size_t n = hfsbi_utf8_floor(hfsb_cstr(why), sizeof h->stopped - 1);
    pthread_mutex_lock(&h->brief);
    if (!h->stopped[0]) memcpy(h->stopped, why, n); /* zeros follow */
    pthread_mutex_unlock(&h->brief);
}

static bool hfsbi_history_is_stopped(hfsbi_history *h) {
    bool stopped;
    pthread_mutex_lock(&h->brief);
    stopped = h->stopped[0] != '\0';
    pthread_mutex_unlock(&h->brief);
    return stopped;
}

HFSBI_FN void hfsbi_history_note(hfsbi_history *h, hfsb_buf *notes) {
    pthread_mutex_lock(&h->brief);
    if (h->stopped[0] && !h->noted) {
        h->noted = true;
        hfsb_buf_printf(notes, "\n(no more checkpoints, undo ends here: %s)",
                        h->stopped);
    }
    pthread_mutex_unlock(&h->brief);
}

/* ---- open and close ---- */

/* Puts the store on the deny list of the root: the tools neither see nor
   change it, and it is not part of a checkpoint. With `all`, hides the folder
   of all stores. */
static int hfsbi_history_hide(const hfsbi_history *h, hfsb_root *place,
                              bool all) {
    char     real[PATH_MAX];
    hfsb_str path;
    if (!realpath(h->store.path.ptr, real)) return errno;
    path = hfsb_cstr(real);
    if (all) path.len -= hfsb_path_base(path).len + 1;
    return hfsbi_root_hide(place, path) == HFSB_OK ? 0 : ENOMEM;
}

HFSBI_FN hfsb_status hfsbi_history_open(const hfsb_checkpoint_opts *opts,
                                        hfsb_root                  *place,
                                        const hfsb_alloc           *alloc,
                                        hfsbi_history **out, hfsb_err *err) {
    const char    *dir = opts->dir;
    hfsb_err       why;
    hfsbi_history *h;
    int            code;
    if (place->root_fd < 0)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "Checkpoints need a root directory.");
    h = (hfsbi_history *)hfsbi_array(alloc, 1, sizeof *h);
    *out = h;
    if (!h) return hfsbi_fail_status(err, HFSB_NOMEM, "Checkpoints");
    memset(h, 0, sizeof *h);
    h->place = place;
    h->alloc = *alloc;
    h->ignored = opts->ignored;
    h->no_create = opts->no_create;
    h->max_files =
        opts->max_files ? opts->max_files : (size_t)HFSBI_HISTORY_FILES;
    h->max_bytes = opts->max_bytes ? opts->max_bytes : HFSBI_HISTORY_BYTES;
    h->scanned = -HFSBI_HISTORY_TURN_MS;
    (void)pthread_mutex_init(&h->lock, NULL);
    (void)pthread_mutex_init(&h->brief, NULL);
    hfsbi_scan_init(&h->last, alloc);
    code = hfsbi_store_open(&h->store, dir, hfsb_buf_str(&place->real_root),
                            !opts->no_create, alloc);
    if (code == 0) code = hfsbi_history_hide(h, place, !*dir);
    if (code == 0) return HFSB_OK;
    if (code == ENOENT && opts->no_create) {
        hfsbi_history_close(h);
        *out = NULL;
        return HFSB_OK;
    }
    hfsbi_fail_os(&why, code, "Checkpoints cannot be stored in %s",
                  h->store.path.len ? h->store.path.ptr : dir);
    if (*dir && err) *err = why;
    if (*dir || code == ENOMEM) return why.code;
    hfsbi_history_stop(h, why.msg);
    return HFSB_OK;
}

HFSBI_FN void hfsbi_history_close(hfsbi_history *history) {
    hfsb_alloc alloc;
    if (!history) return;
    alloc = history->alloc;
    hfsbi_scan_free(&history->last);
    hfsbi_store_close(&history->store);
    (void)pthread_mutex_destroy(&history->lock);
    (void)pthread_mutex_destroy(&history->brief);
    hfsbi_array_free(&alloc, history, 1, sizeof *history);
}

/* ---- in the store ---- */

/* Fails with the message for an errno of the store. */
static hfsb_status hfsbi_history_fail(hfsbi_history *h, int code,
                                      hfsb_err *err) {
    if (code == EINVAL)
        return hfsbi_fail(err, HFSB_IO, 0,
                          "A checkpoint in %s is damaged: remove that folder "
                          "to begin again.",
                          h->store.path.ptr);
    if (code == EWOULDBLOCK)
        return hfsbi_fail(err, HFSB_BUSY, 0,
                          "Another program works on the checkpoints: try "
                          "again.");
    return hfsbi_fail_os(err, code, "Checkpoints in %s", h->store.path.ptr);
}

/* Reads the checkpoint `at` unless it is the last scan. */
static int hfsbi_history_load(hfsbi_history *h) {
    hfsbi_checkpoint head;
    int              code;
    if (h->at == h->state.at) return 0;
    hfsbi_scan_free(&h->last);
    h->at = 0;
    if (h->state.at == 0) return 0;
    code = hfsbi_checkpoint_read(&h->store, h->state.at, &head, &h->last);
    if (code == ENOENT || code == EINVAL) { /* removed, or damaged by a crash
                                               of the machine: start over */
        h->state.at = 0;
        return 0;
    }
    if (code != 0) return code;
    h->at = h->state.at;
    h->base = head.base;
    return 0;
}

HFSBI_FN hfsb_status hfsbi_history_enter(hfsbi_history *h, hfsb_err *err) {
    int code;
    pthread_mutex_lock(&h->lock);
    if (hfsbi_history_is_stopped(h))
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "Checkpoints have stopped: %s.", h->stopped);
    code = hfsbi_store_lock(&h->store);
    if (code == 0) code = hfsbi_store_read_state(&h->store, &h->state);
    if (code == 0) code = hfsbi_history_load(h);
    return code == 0 ? hfsbi_ok(err) : hfsbi_history_fail(h, code, err);
}

HFSBI_FN void hfsbi_history_leave(hfsbi_history *h) {
    if (h->store.lock >= 0) hfsbi_store_unlock(&h->store);
    pthread_mutex_unlock(&h->lock);
}

HFSBI_FN hfsb_status hfsbi_history_save(hfsbi_history *h, hfsb_err *err) {
    int code = hfsbi_store_write_state(&h->store, &h->state);
    return code == 0 ? hfsbi_ok(err) : hfsbi_history_fail(h, code, err);
}

/* The largest number in the list that is at most `number`, or 0. */
static uint64_t hfsbi_numbers_floor(const uint64_t *list, size_t count,
                                    uint64_t number) {
    while (count && list[count - 1] > number) count--;
    return count ? list[count - 1] : 0;
}

HFSBI_FN uint64_t hfsbi_history_floor(hfsbi_history *h, uint64_t number) {
    uint64_t *list, found = 0;
    size_t    count, cap;
    if (hfsbi_store_list(&h->store, &list, &count, &cap) == 0)
        found = hfsbi_numbers_floor(list, count, number);
    hfsbi_array_free(&h->alloc, list, cap, sizeof *list);
    return found;
}

/* Reads the head of a checkpoint; zeros when that fails. Parents are older: a
   damaged file must not cause a loop. */
static void hfsbi_history_head(const hfsbi_history *h, uint64_t number,
                               hfsbi_checkpoint *head) {
    if (hfsbi_checkpoint_read(&h->store, number, head, NULL) != 0)
        memset(head, 0, sizeof *head);
    if (head->parent >= number) head->parent = 0;
}

HFSBI_FN uint64_t hfsbi_history_back(hfsbi_history    *h,
                                     hfsbi_checkpoint *step) {
    uint64_t *list, at = h->state.at;
    size_t    count, cap;
    if (hfsbi_store_list(&h->store, &list, &count, &cap) != 0) at = 0;
    for (step->author = HFSBI_AUTHOR_OTHER;
         at && step->author != HFSBI_AUTHOR_TOOL;) {
        hfsbi_history_head(h, at, step);
        at = hfsbi_numbers_floor(list, count, step->parent);
    }
    hfsbi_array_free(&h->alloc, list, cap, sizeof *list);
    return at;
}

/* Calls fn for one step of others. */
static int hfsbi_history_show(hfsbi_history *h, const hfsbi_checkpoint *step,
                              hfsbi_trace_fn fn, void *user) {
    hfsbi_root_scan  before, after;
    hfsbi_checkpoint head;
    int              code;
    hfsbi_scan_init(&before, &h->alloc);
    hfsbi_scan_init(&after, &h->alloc);
    code = hfsbi_checkpoint_read(&h->store, step->parent, &head, &before);
    if (code == 0)
        code = hfsbi_checkpoint_read(&h->store, step->number, &head, &after);
    if (code == 0) fn(user, &before, &after, (hfsbi_author)step->author);
    hfsbi_scan_free(&before);
    hfsbi_scan_free(&after);
    return code;
}

/* Parents have smaller numbers, so the larger of two is never where both
   branches meet. A step whose parent was dropped counts as that of a tool. */
HFSBI_FN int hfsbi_history_trace(hfsbi_history *h, uint64_t to,
                                 hfsbi_trace_fn fn, void *user) {
    uint64_t        *list, at = h->state.at, next;
    size_t           count, cap;
    hfsbi_checkpoint head;
    int              code = hfsbi_store_list(&h->store, &list, &count, &cap);
    while (code == 0 && at != to) {
        hfsbi_history_head(h, at > to ? at : to, &head);
        next = hfsbi_numbers_floor(list, count, head.parent);
        if (at > to && head.author != HFSBI_AUTHOR_TOOL && next &&
            next == head.parent)
            code = hfsbi_history_show(h, &head, fn, user);
        if (at > to) at = next;
        else to = next;
    }
    hfsbi_array_free(&h->alloc, list, cap, sizeof *list);
    return code;
}

HFSBI_FN hfsb_status hfsbi_history_scan(hfsbi_history *h, hfsbi_root_scan *now,
                                        hfsb_err *err) {
    hfsbi_scan_how how = HFSB_INIT;
    how.place = h->place;
    how.store = &h->store;
    how.last = &h->last;
    how.ignored = h->ignored;
    how.max_files = h->max_files;
    how.max_bytes = h->max_bytes;
    return hfsbi_scan_run(&how, now, err);
}

/* ---- pruning ---- */

typedef struct hfsbi_prune {
    hfsbi_history    *h;
    uint64_t         *list; /* of checkpoints */
    hfsbi_checkpoint *heads;
    size_t            count, cap;
    hfsb_buf          digests; /* of the objects in use, sorted */
} hfsbi_prune;

/* True for a checkpoint that is kept, or is the base of one that is kept. */
static bool hfsbi_prune_keeps(const hfsbi_prune *p, size_t i) {
    const hfsbi_store_state *state = &p->h->state;
    uint64_t                 number = p->list[i];
    size_t                   k;
    if (i == 0 || number == state->at || number == state->baseline ||
        number == state->undo_to || number == p->h->base ||
        number == p->h->baseline || number == p->h->before)
        return true;
    for (k = 0; k < p->count; k++)
        if (p->list[k] && p->heads[k].base == number) return true;
    return false;
}

static int hfsbi_compare_digests(const void *a, const void *b) {
    return memcmp(a, b, HFSB_SHA256_SIZE);
}

static bool hfsbi_prune_has(void *user, const unsigned char *digest) {
    const hfsbi_prune *p = (const hfsbi_prune *)user;
    size_t             low = 0, high = p->digests.len / HFSB_SHA256_SIZE;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int    order = memcmp(p->digests.ptr + mid * HFSB_SHA256_SIZE, digest,
                              HFSB_SHA256_SIZE);
        if (order == 0) return true;
        if (order < 0) low = mid + 1;
        else high = mid;
    }
    return false;
}

/* Removes the older half of what may be removed, then the objects not in
   use. */
static int hfsbi_prune_run(hfsbi_prune *p) {
    size_t i, left = 0;
    int    code = 0;
    for (i = 0; i < p->count; i++) left += !hfsbi_prune_keeps(p, i);
    left = (left + 1) / 2;
    for (i = 0; code == 0 && i < p->count && left; i++) {
        if (hfsbi_prune_keeps(p, i)) continue;
        code = hfsbi_checkpoint_remove(&p->h->store, p->list[i]);
        p->list[i] = 0;
        left--;
    }
    hfsb_buf_truncate(&p->digests, 0);
    for (i = 0; code == 0 && i < p->count; i++)
        if (p->list[i] && p->heads[i].number)
            code = hfsbi_checkpoint_digests(&p->h->store, p->list[i],
                                            &p->heads[i], &p->digests);
    if (code != 0) return code;
    hfsbi_sort(p->digests.ptr, p->digests.len / HFSB_SHA256_SIZE,
               HFSB_SHA256_SIZE, hfsbi_compare_digests);
    return hfsbi_store_sweep(&p->h->store, hfsbi_prune_has, p);
}

static int hfsbi_prune_open(hfsbi_prune *p, hfsbi_history *h) {
    size_t i;
    int    code;
    memset(p, 0, sizeof *p);
    p->h = h;
    p->digests.alloc = h->alloc;
    code = hfsbi_store_list(&h->store, &p->list, &p->count, &p->cap);
    if (code != 0) return code;
    p->heads =
        (hfsbi_checkpoint *)hfsbi_array(&h->alloc, p->count, sizeof *p->heads);
    if (!p->heads) return ENOMEM;
    for (i = 0; code == 0 && i < p->count; i++) {
        code =
            hfsbi_checkpoint_read(&h->store, p->list[i], &p->heads[i], NULL);
        if (code != EINVAL) continue;
        memset(&p->heads[i], 0, sizeof p->heads[i]); /* damaged */
        code = 0;
    }
    return code;
}

/* Keeps the store within its limits; stops when that is not possible. */
static int hfsbi_history_prune(hfsbi_history *h) {
    hfsbi_prune p;
    char        why[80];
    int         code = hfsbi_store_count(&h->store);
    if (code != 0 || (h->store.bytes <= h->max_bytes &&
                      h->state.at % HFSBI_HISTORY_COUNT != 0))
        return code;
    code = hfsbi_prune_open(&p, h);
    if (code == 0 &&
        (h->store.bytes > h->max_bytes || p.count > HFSBI_HISTORY_COUNT))
        code = hfsbi_prune_run(&p);
    hfsbi_array_free(&h->alloc, p.heads, p.count, sizeof *p.heads);
    hfsbi_array_free(&h->alloc, p.list, p.cap, sizeof *p.list);
    hfsb_buf_free(&p.digests);
    if (code != 0 || h->store.bytes <= h->max_bytes) return code;
    (void)snprintf(why, sizeof why,
                   "their store is over its limit of %llu "
                   "MiB",
                   h->max_bytes >> 20);
    hfsbi_history_stop(h, why);
    return 0;
}

/* ---- adding a checkpoint ---- */

/* Copies text as one line of UTF-8 that fits. */
static void hfsbi_label_set(char *to, size_t size, hfsb_str text,
                            const hfsb_alloc *alloc) {
    hfsb_buf line = HFSB_INIT;
    size_t   n;
    line.alloc = *alloc;
    text = hfsb_str_slice(text, 0, hfsbi_utf8_floor(text, size));
    hfsbi_put_shown(&line, text);
    n = hfsbi_utf8_floor(hfsb_buf_str(&line), size - 1);
    memset(to, 0, size);
    if (line.status == HFSB_OK && n) memcpy(to, line.ptr, n);
    hfsb_buf_free(&line);
}

/* The number of the next checkpoint. Unknown without a list: a guess might
   replace another checkpoint. */
static int hfsbi_history_next(const hfsbi_history *h, uint64_t *number) {
    uint64_t *list;
    size_t    count, cap;
    int       code = hfsbi_store_list(&h->store, &list, &count, &cap);
    *number = count ? list[count - 1] + 1 : 1;
    if (*number <= h->state.at) *number = h->state.at + 1;
    hfsbi_array_free(&h->alloc, list, cap, sizeof *list);
    return code;
}

static int hfsbi_history_write(hfsbi_history *h, hfsbi_checkpoint *head,
                               const hfsbi_root_scan *now) {
    uint64_t         from = h->base ? h->base : h->at;
    hfsbi_checkpoint at;
    hfsbi_root_scan  base;
    int              code = from ? 0 : ENOENT;
    hfsbi_scan_init(&base, &h->alloc);
    if (code == 0) code = hfsbi_checkpoint_read(&h->store, from, &at, &base);
    head->base = code == 0 ? from : 0;
    code =
        hfsbi_checkpoint_write(&h->store, head, now, code == 0 ? &base : NULL);
    hfsbi_scan_free(&base);
    return code;
}

static void hfsbi_history_set_last(hfsbi_history *h, hfsbi_root_scan *now) {
    hfsbi_root_scan old = h->last;
    h->last = *now;
    *now = old;
    hfsbi_scan_free(now);
}

HFSBI_FN hfsb_status hfsbi_history_add(hfsbi_history *h, hfsbi_root_scan *now,
                                       const hfsbi_origin *from,
                                       hfsb_err           *err) {
    hfsbi_checkpoint head;
    hfsbi_diff_count n = hfsbi_scan_count(&h->last, now);
    int              code;
    if (h->at && !from->name.len && !from->parent && !n.created &&
        !n.changed && !n.deleted) {
        hfsbi_history_set_last(h, now);
        return hfsbi_ok(err);
    }
    memset(&head, 0, sizeof head);
    code = hfsbi_history_next(h, &head.number);
    if (code != 0) return hfsbi_history_fail(h, code, err);
    head.parent = from->parent ? *from->parent : h->at;
    head.author = (uint32_t)from->author;
    head.when = hfsbi_time_ns() / 1000000000;
    if (h->at) head.diff = n;
    hfsbi_label_set(head.name, sizeof head.name, from->name, &h->alloc);
    hfsbi_label_set(head.by, sizeof head.by, hfsb_cstr(from->by), &h->alloc);
    code = hfsbi_history_write(h, &head, now);
    if (code == 0) {
        hfsbi_history_set_last(h, now);
        h->at = h->state.at = head.number;
        h->base = head.base;
        code = hfsbi_store_write_state(&h->store, &h->state);
    }
    if (code == 0) code = hfsbi_history_prune(h);
    return code == 0 ? hfsbi_ok(err) : hfsbi_history_fail(h, code, err);
}

/* Takes the label of the checkpoint that is owed; false if none is. */
static bool hfsbi_history_settle(hfsbi_history *h,
                                 char           by[HFSBI_CHECKPOINT_BY]) {
    bool owed;
    pthread_mutex_lock(&h->brief);
    owed = h->owed;
    h->owed = false;
    if (owed) memcpy(by, h->by, HFSBI_CHECKPOINT_BY);
    pthread_mutex_unlock(&h->brief);
    return owed;
}

HFSBI_FN hfsbi_author hfsbi_history_stranger(hfsbi_history *h) {
    bool busy;
    pthread_mutex_lock(&h->brief);
    busy = h->busy > 0;
    pthread_mutex_unlock(&h->brief);
    return busy ? HFSBI_AUTHOR_UNKNOWN : HFSBI_AUTHOR_OTHER;
}

/* The first scan of this object begins a session. */
static hfsb_status hfsbi_history_begin(hfsbi_history *h, hfsb_err *err) {
    if (h->began) return HFSB_OK;
    h->began = true;
    h->baseline = h->state.baseline = h->state.at;
    return hfsbi_history_save(h, err);
}

HFSBI_FN hfsb_status hfsbi_history_take(hfsbi_history *h, hfsb_str name,
                                        hfsb_err *err) {
    char            by[HFSBI_CHECKPOINT_BY] = "other changes";
    hfsbi_origin    from = HFSB_INIT;
    uint64_t        undo_to = h->state.undo_to;
    hfsbi_root_scan now;
    hfsb_status     st;
    from.name = name;
    from.by = by;
    from.author = hfsbi_history_stranger(h);
    if (undo_to)
        (void)snprintf(by, sizeof by, "interrupted undo to %llu",
                       (unsigned long long)undo_to);
    if (hfsbi_history_settle(h, by) || undo_to)
        from.author = HFSBI_AUTHOR_TOOL;
    else if (!h->state.at) from.by = "start";
    h->state.undo_to = 0; /* a later undo is a new one */
    hfsbi_scan_init(&now, &h->alloc);
    st = hfsbi_history_scan(h, &now, err);
    if (st == HFSB_OK) st = hfsbi_history_add(h, &now, &from, err);
    if (st == HFSB_OK && undo_to) st = hfsbi_history_save(h, err);
    hfsbi_scan_free(&now);
    pthread_mutex_lock(&h->brief);
    h->scanned = hfsb_clock_ms();
    pthread_mutex_unlock(&h->brief);
    return st;
}

static bool hfsbi_history_owes(hfsbi_history *h) {
    bool owed;
    pthread_mutex_lock(&h->brief);
    owed = h->owed;
    pthread_mutex_unlock(&h->brief);
    return owed;
}

HFSBI_FN hfsb_status hfsbi_history_pay(hfsbi_history *h, hfsb_err *err) {
    if (h->state.at && !hfsbi_history_owes(h)) return hfsbi_ok(err);
    return hfsbi_history_take(h, HFSB_LIT(""), err);
}

/* ---- for calls ---- */

/* Takes a checkpoint; stops checkpoints when no more can be taken. */
static void hfsbi_history_try(hfsbi_history *h, bool owed) {
    hfsb_err    err = HFSB_INIT;
    hfsb_status st = hfsbi_history_enter(h, &err);
    if (st == HFSB_OK && (!owed || hfsbi_history_owes(h))) {
        st = hfsbi_history_take(h, HFSB_LIT(""), &err);
        if (st == HFSB_OK && !owed) st = hfsbi_history_begin(h, &err);
    }
    hfsbi_history_leave(h);
    if (st == HFSB_LIMIT || st == HFSB_FULL || st == HFSB_IO ||
        st == HFSB_DENIED)
        hfsbi_history_stop(h, err.msg);
}

HFSBI_FN void hfsbi_history_before(hfsbi_history *h) {
    bool fresh;
    pthread_mutex_lock(&h->brief);
    fresh = h->stopped[0] ||
            (!h->owed && hfsb_clock_ms() - h->scanned < HFSBI_HISTORY_TURN_MS);
    pthread_mutex_unlock(&h->brief);
    if (!fresh) hfsbi_history_try(h, false);
}

HFSBI_FN void hfsbi_history_busy(hfsbi_history *h, bool begins) {
    pthread_mutex_lock(&h->brief);
    if (begins) h->busy++;
    else h->busy--;
    pthread_mutex_unlock(&h->brief);
}

HFSBI_FN void hfsbi_history_changed(hfsbi_history *h, const char *tool,
                                    hfsb_str what) {
    pthread_mutex_lock(&h->brief);
    h->owed = true;
    (void)snprintf(h->by, sizeof h->by, "%s%s%.*s", tool, what.len ? " " : "",
                   (int)(what.len < sizeof h->by ? what.len : sizeof h->by),
                   what.ptr ? what.ptr : "");
    pthread_mutex_unlock(&h->brief);
}

HFSBI_FN void hfsbi_history_after(hfsbi_history *h) {
    if (!hfsbi_history_is_stopped(h)) hfsbi_history_try(h, true);
}

/* after() as a task of the loop, which frees itself. */
typedef struct hfsbi_history_task {
    hfsbi_task     task; /* first: its functions cast it back */
    hfsbi_history *h;
    hfsb_alloc     alloc;
} hfsbi_history_task;

static void hfsbi_history_run(hfsbi_task *task) {
    hfsbi_history_after(((hfsbi_history_task *)(void *)task)->h);
}

static void hfsbi_history_ran(hfsbi_task *task) {
    hfsbi_history_task *t = (hfsbi_history_task *)(void *)task;
    hfsb_alloc          alloc = t->alloc;
    hfsbi_array_free(&alloc, t, 1, sizeof *t);
}

HFSBI_FN void hfsbi_history_after_in(hfsbi_history *h, hfsbi_loop *loop) {
    hfsbi_history_task *t =
        loop ? (hfsbi_history_task *)hfsbi_array(&h->alloc, 1, sizeof *t)
             : NULL;
    if (!t) {
        hfsbi_history_after(h);
        return;
    }
    memset(t, 0, sizeof *t);
    t->h = h;
    t->alloc = h->alloc;
    t->task.run = hfsbi_history_run;
    t->task.done = hfsbi_history_ran;
    hfsbi_loop_work(loop, &t->task);
}
