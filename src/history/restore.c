/* restore.c - bring a root from one state to another.

   The plan is the difference between two scans. It is carried out so that each
   step finds what it needs:

       1. remove what is in the way, what is in a folder before the folder
       2. make folders, then put files and symlinks, in the order of paths
       3. remove folders that were not empty before
       4. set the modes of folders, which may forbid any change

   Each path goes from the old state to the new one in one step (os room), so a
   process that dies in between leaves a mixture of whole files, and the same
   plan made again does the rest. A folder of ours that forbids a change gets
   the permission for it; step 4 removes it again.

   Files that were one file with several names (hard links) become one again:
   the first name gets the content, the others are linked to it.

   A file whose content is not stored is never lost: one that was renamed is
   renamed back, any other is left as it is unless `force` is set.

   `known` is the state that this program has left. A path that has another
   state now was changed by somebody else; so was a path in a step of the
   history that no tool made. It is kept if only such changes would be
   reverted; otherwise it is a conflict, which the caller must resolve before
   it runs the plan. After an interrupted restore a path that is gone, or a
   folder with another mode, is not somebody else's change. */
#include "history_private.h"

enum { HFSBI_RESTORE_NOTES = 20 }; /* lines */

/* ---- the plan ---- */

/* True when path is `folder` or beneath it; everything is beneath "". */
static bool hfsbi_is_beneath(hfsb_str path, hfsb_str folder) {
    if (folder.len == 0) return true;
    return hfsb_str_starts(path, folder) &&
           (path.len == folder.len || path.ptr[folder.len] == '/');
}

static hfsb_str hfsbi_repair_path(const hfsbi_restore *r,
                                  const hfsbi_repair  *x) {
    return x->goal ? hfsbi_item_path(r->goal, x->goal)
                   : hfsbi_item_path(r->now, x->now);
}

/* True for the path to restore, what is beneath it, and missing folders above
   it. */
static bool hfsbi_plan_wants(const hfsbi_restore *r, const hfsbi_repair *x) {
    hfsb_str path = hfsbi_repair_path(r, x);
    return hfsbi_is_beneath(path, r->path) ||
           (!x->now && hfsbi_is_beneath(r->path, path));
}

/* A fingerprint of the state of a path: what hfsbi_item_same() compares. 0: it
   is not there. */
static uint64_t hfsbi_item_print(const hfsbi_root_scan *scan,
                                 const hfsbi_item      *item) {
    char               text[120] = "";
    unsigned long long hash;
    if (!item) return 0;
    if (item->kind == HFSBI_ITEM_FILE && !(item->flags & HFSBI_ITEM_STORED))
        (void)snprintf(text, sizeof text, " %llu %lld %llu",
                       (unsigned long long)item->size,
                       (long long)item->changed,
                       (unsigned long long)item->identity);
    hash = hfsb_fnv(hfsb_cstr(text));
    (void)snprintf(text, sizeof text, "%u %u", item->kind,
                   item->kind == HFSBI_ITEM_LINK ? 0u : item->mode);
    hash = hfsb_fnv_add(hash, hfsb_cstr(text));
    if (item->kind == HFSBI_ITEM_LINK)
        return hfsb_fnv_add(hash, hfsbi_item_target(scan, item));
    if (item->kind != HFSBI_ITEM_FILE) return hash;
    if (item->flags & HFSBI_ITEM_STORED)
        hash = hfsb_fnv_add(hash, hfsb_str_make((const char *)item->digest,
                                                sizeof item->digest));
    return hfsb_fnv_add(hash,
                        hfsbi_item_path(scan, &scan->items[item->first]));
}

static hfsb_status hfsbi_plan_add(void *user, const hfsbi_item *was,
                                  const hfsbi_item *is) {
    hfsbi_restore *r = (hfsbi_restore *)user;
    hfsbi_repair  *x = (hfsbi_repair *)hfsbi_array_grow(
         &r->alloc, r->repairs, &r->cap, r->count + 1, sizeof *x);
    if (!x) return HFSB_NOMEM;
    r->repairs = x;
    x += r->count++;
    x->now = was;
    x->goal = is;
    x->from = NULL;
    x->author = HFSBI_AUTHOR_TOOL;
    x->before = 0;
    x->state = hfsbi_plan_wants(r, x) ? HFSBI_REPAIR_TODO : HFSBI_REPAIR_LEFT;
    return HFSB_OK;
}

/* True when only the permission bits of a file differ. */
static bool hfsbi_repair_is_mode(const hfsbi_restore *r,
                                 const hfsbi_repair  *x) {
    const hfsbi_item *a = x->now, *b = x->goal;
    if (!a || a->kind != b->kind) return false;
    if (a->flags & b->flags & HFSBI_ITEM_STORED) {
        if (memcmp(a->digest, b->digest, sizeof a->digest) != 0) return false;
    } else if (a->identity != b->identity || a->size != b->size ||
               a->changed != b->changed) {
        return false;
    }
    return hfsb_str_equal(hfsbi_item_path(r->now, &r->now->items[a->first]),
                          hfsbi_item_path(r->goal, &r->goal->items[b->first]));
}

/* Visits the states of a path backwards. If the state after a step of others
   is the one before the next such step, no tool changed the path in
   between. */
static void hfsbi_plan_trace(hfsbi_restore *r, hfsbi_repair *x,
                             const hfsbi_root_scan *before,
                             const hfsbi_root_scan *after,
                             hfsbi_author           author) {
    hfsb_str          path = hfsbi_repair_path(r, x);
    const hfsbi_item *a = hfsbi_scan_find(before, path);
    const hfsbi_item *b = hfsbi_scan_find(after, path);
    uint64_t          last = x->before;
    if (hfsbi_item_same(before, a, after, b)) return;
    if (x->author == HFSBI_AUTHOR_TOOL)
        last = hfsbi_item_print(r->known, hfsbi_scan_find(r->known, path));
    if (author != HFSBI_AUTHOR_OTHER || x->author == HFSBI_AUTHOR_UNKNOWN ||
        hfsbi_item_print(after, b) != last)
        x->author = HFSBI_AUTHOR_UNKNOWN;
    else x->author = HFSBI_AUTHOR_OTHER;
    x->before = hfsbi_item_print(before, a);
}

HFSBI_FN void hfsbi_restore_trace(void *user, const hfsbi_root_scan *before,
                                  const hfsbi_root_scan *after,
                                  hfsbi_author           author) {
    hfsbi_restore *r = (hfsbi_restore *)user;
    size_t         i;
    for (i = 0; i < r->count; i++)
        if (r->repairs[i].state == HFSBI_REPAIR_TODO)
            hfsbi_plan_trace(r, &r->repairs[i], before, after, author);
}

/* True when only others have changed the path since the goal. `was` is its
   item in `known`. */
static bool hfsbi_plan_is_others(const hfsbi_restore *r, const hfsbi_repair *x,
                                 const hfsbi_item *was) {
    if (x->author == HFSBI_AUTHOR_TOOL)
        return hfsbi_item_same(r->known, was, r->goal, x->goal);
    return x->author == HFSBI_AUTHOR_OTHER &&
           x->before == hfsbi_item_print(r->goal, x->goal);
}

/* Leaves a path that others have changed, or records the conflict. */
static hfsb_status hfsbi_plan_spare(hfsbi_restore *r, hfsbi_repair *x) {
    hfsb_str          path = hfsbi_repair_path(r, x);
    const hfsbi_item *was = hfsbi_scan_find(r->known, path);
    if (x->author == HFSBI_AUTHOR_TOOL) {
        if (hfsbi_item_same(r->known, was, r->now, x->now)) return HFSB_OK;
        if (r->resumed &&
            (!x->now || (x->goal && x->now->kind == x->goal->kind &&
                         x->now->kind == HFSBI_ITEM_FOLDER)))
            return HFSB_OK; /* the interrupted restore changed it */
    }
    if (hfsbi_plan_is_others(r, x, was)) {
        x->state = HFSBI_REPAIR_LEFT;
        r->kept++;
        return HFSB_OK;
    }
    if (r->conflict_count++ >= HFSBI_RESTORE_NOTES) return HFSB_OK;
    hfsbi_put_shown(&r->conflicts, path);
    return hfsb_buf_append_byte(&r->conflicts, '\n');
}

/* True for a file whose content is not stored. */
static bool hfsbi_item_is_bare(const hfsbi_item *item) {
    return item && item->kind == HFSBI_ITEM_FILE &&
           !(item->flags & HFSBI_ITEM_STORED);
}

/* Returns the repair of a file that is at another path now, or NULL. */
static hfsbi_repair *hfsbi_plan_find_moved(hfsbi_restore    *r,
                                           const hfsbi_item *now) {
    size_t i;
    for (i = 0; i < r->count; i++) {
        hfsbi_repair *y = &r->repairs[i];
        if (!y->now && !y->from && hfsbi_item_is_bare(y->goal) &&
            y->state == HFSBI_REPAIR_TODO &&
            y->goal->identity == now->identity && y->goal->size == now->size &&
            y->goal->changed == now->changed)
            return y;
    }
    return NULL;
}

static void hfsbi_restore_note(hfsbi_restore *r, const char *text) {
    if (r->failed++ < HFSBI_RESTORE_NOTES)
        hfsb_buf_printf(&r->notes, "%s\n", text);
}

/* Handles a file whose content would be lost. */
static void hfsbi_plan_bare(hfsbi_restore *r, hfsbi_repair *x) {
    hfsbi_repair *y = x->goal ? NULL : hfsbi_plan_find_moved(r, x->now);
    hfsb_err      err;
    if (y) y->from = x->now;
    if (y) x->state = HFSBI_REPAIR_DONE;
    if (y || r->force || (x->goal && hfsbi_repair_is_mode(r, x))) return;
    x->state = HFSBI_REPAIR_LEFT;
    hfsbi_file_fail(&err, HFSB_REFUSED,
                    "Left as it is, because its content is not stored",
                    hfsbi_repair_path(r, x));
    hfsbi_restore_note(r, err.msg);
}

HFSBI_FN hfsb_status hfsbi_restore_plan(hfsbi_restore *r) {
    hfsb_status st;
    size_t      i;
    r->conflicts.alloc = r->notes.alloc = r->loosened.alloc = r->alloc;
    st = hfsbi_scan_diff(r->now, r->goal, hfsbi_plan_add, r);
    for (i = 0; st == HFSB_OK && i < r->count; i++)
        if (r->repairs[i].state == HFSBI_REPAIR_TODO &&
            hfsbi_item_is_bare(r->repairs[i].now))
            hfsbi_plan_bare(r, &r->repairs[i]);
    return st;
}

HFSBI_FN hfsb_status hfsbi_restore_spare(hfsbi_restore *r) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; r->known && st == HFSB_OK && i < r->count; i++)
        if (r->repairs[i].state == HFSBI_REPAIR_TODO)
            st = hfsbi_plan_spare(r, &r->repairs[i]);
    return st;
}

HFSBI_FN bool hfsbi_restore_missed(const hfsbi_restore *r, hfsb_str path) {
    const hfsbi_item *item;
    while (path.len) {
        item = hfsbi_scan_find(r->now, path);
        if (item && (item->kind == HFSBI_ITEM_IGNORED ||
                     (item->flags & HFSBI_ITEM_OPAQUE)))
            return true;
        while (path.len && path.ptr[path.len - 1] != '/') path.len--;
        if (path.len) path.len--;
    }
    return false;
}

HFSBI_FN void hfsbi_restore_free(hfsbi_restore *r) {
    hfsbi_array_free(&r->alloc, r->repairs, r->cap, sizeof *r->repairs);
    hfsb_buf_free(&r->conflicts);
    hfsb_buf_free(&r->notes);
    hfsb_buf_free(&r->loosened);
}

/* ---- one step ---- */

/* Appends the absolute path: relative ones start at the working directory. */
static hfsb_str hfsbi_restore_at(const hfsbi_restore *r, hfsb_str path,
                                 hfsb_buf *out) {
    hfsb_buf_truncate(out, 0);
    if (hfsb_path_join(hfsb_root_path(r->place), path, out) != HFSB_OK)
        hfsb_buf_truncate(out, 0); /* an empty path is refused */
    return hfsb_buf_str(out);
}

/* Gives us permission to change what is in the folder of path; false when that
   cannot help. */
static bool hfsbi_restore_loosen(hfsbi_restore *r, hfsb_str path,
                                 hfsb_buf *at) {
    hfsb_file_info info;
    hfsb_str       folder;
    while (path.len && path.ptr[path.len - 1] != '/') path.len--;
    if (path.len == 0) return false; /* the root is not changed */
    path.len--;
    folder = hfsbi_restore_at(r, path, at);
    if (hfsb_file_stat(r->place, folder, &info, NULL) != HFSB_OK ||
        info.type != HFSB_FILE_DIRECTORY || (info.mode & 0700u) == 0700u)
        return false;
    if (hfsbi_path_set_mode(r->place, folder, info.mode | 0700u, false,
                            NULL) !=
        HFSB_OK)
        return false;
    hfsb_buf_append(&r->loosened, path);
    hfsb_buf_append_byte(&r->loosened, '\0');
    return true;
}

static bool hfsbi_is_expected(const void *user, const struct stat *st) {
    const hfsbi_item *item = (const hfsbi_item *)user;
    return item ? st && hfsbi_item_is(item, st) : !st;
}

/* A step may only replace what the scan has seen. What was made since then is
   in no checkpoint. */
static hfsbi_expect hfsbi_restore_expect(const hfsbi_restore *r,
                                         const hfsbi_item    *item) {
    hfsbi_expect expect = HFSB_INIT;
    if (!r->force) expect.fn = hfsbi_is_expected;
    expect.user = item;
    return expect;
}

typedef hfsb_status (*hfsbi_step_fn)(hfsbi_restore *r, const hfsbi_repair *x,
                                     hfsb_str at, hfsb_err *err);

/* Takes a step, and retries with more permissions if they are missing. With
   `later`, a folder that is not empty remains to be done. */
static bool hfsbi_restore_step(hfsbi_restore *r, hfsbi_repair *x,
                               hfsbi_step_fn fn, bool later) {
    hfsb_str    path = hfsbi_repair_path(r, x);
    hfsb_buf    at = HFSB_INIT;
    hfsb_err    err = HFSB_INIT;
    hfsb_status st;
    at.alloc = r->alloc;
    st = fn(r, x, hfsbi_restore_at(r, path, &at), &err);
    if (st == HFSB_DENIED && hfsbi_restore_loosen(r, path, &at))
        st = fn(r, x, hfsbi_restore_at(r, path, &at), &err);
    hfsb_buf_free(&at);
    if (st == HFSB_OK) return true;
    if (st == HFSB_EXISTS && later) return false;
    x->state = HFSBI_REPAIR_LEFT;
    if (st == HFSB_EXISTS && !x->goal) {
        r->held++;
        return false;
    }
    hfsbi_restore_note(r, err.msg[0] ? err.msg : hfsb_status_text(st));
    return false;
}

/* ---- 1 and 3. removing ---- */

/* True when nothing can be put here before this is removed. */
static bool hfsbi_repair_removes(const hfsbi_repair *x) {
    if (!x->now) return false;
    if (!x->goal) return true;
    return x->now->kind != x->goal->kind &&
           (x->now->kind == HFSBI_ITEM_FOLDER ||
            x->goal->kind == HFSBI_ITEM_FOLDER);
}

static hfsb_status hfsbi_step_remove(hfsbi_restore *r, const hfsbi_repair *x,
                                     hfsb_str at, hfsb_err *err) {
    return hfsbi_path_remove(r->place, at, x->now->kind == HFSBI_ITEM_FOLDER,
                             hfsbi_restore_expect(r, x->now), err);
}

/* A folder that is not empty yet may become so once all files are in place:
   the last pass removes it. If it is still not empty, it has files that are
   ignored, or kept. */
static void hfsbi_restore_remove(hfsbi_restore *r, bool last) {
    size_t i = r->count;
    while (i-- > 0) {
        hfsbi_repair *x = &r->repairs[i];
        if (x->state != HFSBI_REPAIR_TODO || !hfsbi_repair_removes(x) ||
            (last && x->goal) ||
            !hfsbi_restore_step(r, x, hfsbi_step_remove, !last) || x->goal)
            continue;
        x->state = HFSBI_REPAIR_DONE;
        r->done.deleted++;
    }
}

/* ---- 2. putting ---- */

/* True when the first name of a file is, or has become, what it should be. */
static bool hfsbi_repair_has_first(const hfsbi_restore *r,
                                   const hfsbi_item    *first) {
    hfsb_str path = hfsbi_item_path(r->goal, first);
    size_t   low = 0, high = r->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int    order =
            hfsbi_compare_paths(hfsbi_repair_path(r, &r->repairs[mid]), path);
        if (order == 0) return r->repairs[mid].state == HFSBI_REPAIR_DONE;
        if (order < 0) low = mid + 1;
        else high = mid;
    }
    return true;
}

/* Initialises what replaces the path. */
static void hfsbi_step_begin(const hfsbi_restore *r, const hfsbi_repair *x,
                             hfsbi_put *put) {
    memset(put, 0, sizeof *put);
    put->content = -1;
    put->expect =
        hfsbi_restore_expect(r, hfsbi_repair_removes(x) ? NULL : x->now);
}

/* Links the path to the first name of its file. */
static hfsb_status hfsbi_step_link(hfsbi_restore *r, const hfsbi_repair *x,
                                   hfsb_str at, hfsb_err *err) {
    const hfsbi_item *first = &r->goal->items[x->goal->first];
    hfsb_buf          to = HFSB_INIT;
    hfsbi_put         put;
    hfsb_status       st;
    if (first == x->goal || !hfsbi_repair_has_first(r, first))
        return HFSB_NOT_FOUND;
    hfsbi_step_begin(r, x, &put);
    to.alloc = r->alloc;
    put.link_to = hfsbi_restore_at(r, hfsbi_item_path(r->goal, first), &to);
    st = hfsbi_path_replace(r->place, at, &put, err);
    hfsb_buf_free(&to);
    return st;
}

static hfsb_status hfsbi_step_content(hfsbi_restore *r, const hfsbi_repair *x,
                                      hfsb_str at, hfsb_err *err) {
    const hfsbi_item *goal = x->goal;
    hfsbi_put         put;
    hfsb_status       st;
    if (!(goal->flags & HFSBI_ITEM_STORED))
        return hfsbi_file_fail(err, HFSB_NOT_FOUND,
                               "Not stored (too large or not readable)", at);
    hfsbi_step_begin(r, x, &put);
    put.content = hfsbi_store_get(r->store, goal->digest);
    if (put.content < 0)
        return hfsbi_file_fail(err, HFSB_NOT_FOUND,
                               "The stored copy is missing", at);
    put.digest = goal->digest;
    put.mode = goal->mode;
    put.uid = (uid_t)goal->uid;
    put.gid = (gid_t)goal->gid;
    st = hfsbi_path_replace(r->place, at, &put, err);
    hfsbi_close(&put.content);
    return st;
}

/* Renames a file back, and gives it its mode. */
static hfsb_status hfsbi_step_move(hfsbi_restore *r, const hfsbi_repair *x,
                                   hfsb_str at, hfsb_err *err) {
    hfsb_buf    from = HFSB_INIT;
    hfsb_status st;
    from.alloc = r->alloc;
    st = hfsbi_path_move(
        r->place, hfsbi_restore_at(r, hfsbi_item_path(r->now, x->from), &from),
        at, HFSBI_MOVE_DIRECT, err);
    hfsb_buf_free(&from);
    if (st == HFSB_OK)
        st = hfsbi_path_set_mode(r->place, at, x->goal->mode, false, err);
    return st;
}

static hfsb_status hfsbi_step_file(hfsbi_restore *r, const hfsbi_repair *x,
                                   hfsb_str at, hfsb_err *err) {
    if (x->from) return hfsbi_step_move(r, x, at, err);
    if (hfsbi_repair_is_mode(r, x))
        return hfsbi_path_set_mode(r->place, at, x->goal->mode, false, err);
    if (hfsbi_step_link(r, x, at, err) == HFSB_OK) return HFSB_OK;
    return hfsbi_step_content(r, x, at, err);
}

static hfsb_status hfsbi_step_put(hfsbi_restore *r, const hfsbi_repair *x,
                                  hfsb_str at, hfsb_err *err) {
    hfsbi_put put;
    switch (x->goal->kind) {
    case HFSBI_ITEM_FOLDER: return hfsbi_path_put_folder(r->place, at, err);
    case HFSBI_ITEM_FILE: return hfsbi_step_file(r, x, at, err);
    case HFSBI_ITEM_LINK:
        hfsbi_step_begin(r, x, &put);
        put.symlink = hfsbi_item_target(r->goal, x->goal);
        return hfsbi_path_replace(r->place, at, &put, err);
    default:
        return hfsbi_file_fail(err, HFSB_NOT_REGULAR,
                               "Devices, FIFOs and sockets are not restored",
                               at);
    }
}

static void hfsbi_restore_put(hfsbi_restore *r) {
    size_t i;
    for (i = 0; i < r->count; i++) {
        hfsbi_repair *x = &r->repairs[i];
        if (x->state != HFSBI_REPAIR_TODO || !x->goal ||
            !hfsbi_restore_step(r, x, hfsbi_step_put, false))
            continue;
        x->state = HFSBI_REPAIR_DONE;
        if (x->now) r->done.changed++;
        else r->done.created++;
    }
}

/* ---- 4. modes of folders ---- */

static hfsb_status hfsbi_step_mode(hfsbi_restore *r, const hfsbi_repair *x,
                                   hfsb_str at, hfsb_err *err) {
    return hfsbi_path_set_mode(r->place, at, x->goal->mode, false, err);
}

/* Revokes the permissions given for the work, in reverse order. */
static void hfsbi_restore_tighten(hfsbi_restore *r) {
    hfsb_buf at = HFSB_INIT;
    size_t   end = r->loosened.len;
    at.alloc = r->alloc;
    while (r->loosened.status == HFSB_OK && end > 0) {
        size_t            begin = end - 1;
        hfsb_str          path;
        const hfsbi_item *item;
        while (begin > 0 && r->loosened.ptr[begin - 1]) begin--;
        path = hfsb_str_make(r->loosened.ptr + begin, end - 1 - begin);
        item = hfsbi_scan_find(r->goal, path);
        if (!item) item = hfsbi_scan_find(r->now, path);
        if (item && item->kind == HFSBI_ITEM_FOLDER)
            (void)hfsbi_path_set_mode(r->place, hfsbi_restore_at(r, path, &at),
                                      item->mode, false, NULL);
        end = begin;
    }
    hfsb_buf_free(&at);
}

HFSBI_FN void hfsbi_restore_run(hfsbi_restore *r) {
    size_t i;
    hfsbi_restore_remove(r, false);
    hfsbi_restore_put(r);
    hfsbi_restore_remove(r, true);
    for (i = r->count; i-- > 0;) {
        hfsbi_repair *x = &r->repairs[i];
        if (x->state == HFSBI_REPAIR_DONE && x->goal &&
            x->goal->kind == HFSBI_ITEM_FOLDER)
            (void)hfsbi_restore_step(r, x, hfsbi_step_mode, false);
    }
    hfsbi_restore_tighten(r);
}
