/* seen.c - the files that a session has read or written, and their content.

   A session refuses to change a file that it has not read, or that has changed
   since it read or wrote it. For each file it keeps the version that it knows:
   the SHA-256 of the content. Of small files it also keeps the content, a
   snapshot, to show what has changed:

       file -----> version known       the one that write and edit compare
        |
        +--------> snapshot: content of a version, and the lines of it that
        |          the model was shown
        +--------> snapshot of another version ...

   Snapshots share a budget; the least recently used ones are dropped. Without
   a snapshot a change is still noticed, but not shown.

   A tool that changes a file opens a change with the content it has read, and
   completes it with the content it has written:

       change_open --> changed meanwhile? --> change_refuse
            |                                      shows the difference
            +--------> written -------------> change_done

   The client of a sandbox keeps its own set, and sends the version it knows
   with a change (if_sha256). The version that a call gives replaces that of
   the session, and the same rule applies.

   Whatever a reply shows completely counts as read. A command of the session
   may format the file: then the next edit still works where it matches
   exactly, and its reply shows what the command changed.

   The local tools and the client of a sandbox both keep such a set. They differ
   in the key of a file: the local tools ask hfsb_file_key(), which resolves
   symlinks; the client, which cannot, uses the cleaned absolute path. It keeps
   no snapshots.

   The set is a hash table of the keys' SHA-256 digests. Digests have one size
   whatever the length of the key, and are as good as random, so their first
   bytes serve as the hash. The key of a free slot is all zero, which no digest
   is. The table stays at most half full.

   When out of memory a file is not added, and must be read again: the set errs
   on the safe side. */
#include "tools_private.h"
#include "../edit/edit_private.h"

enum {
    HFSBI_SNAPSHOTS_MAX = 4 * 1024 * 1024, /* bytes of all snapshots */
    HFSBI_SNAPSHOTS_COUNT = 1000,          /* they are searched one by one */
    HFSBI_REFUSAL_DIFF = 2000,             /* bytes of diff in a refusal */
    HFSBI_NOTE_DIFF = 1500                 /* ... after a success */
};

/* ---- versions ---- */

HFSBI_FN void hfsbi_version_of(hfsb_str content, hfsbi_version *out) {
    hfsb_sha256_hex(content, out->hex);
}

HFSBI_FN void hfsbi_version_of_info(const hfsb_file_info *info,
                                    hfsbi_version        *out) {
    char text[192];
    (void)snprintf(text, sizeof text, "%llu %llu %llu %lld %ld %lld %ld",
                   info->device, info->inode, info->size, info->changed,
                   info->changed_nanos, info->touched, info->touched_nanos);
    hfsb_sha256_hex(hfsb_cstr(text), out->hex);
    out->hex[0] = 'i'; /* no hexadecimal digit */
}

HFSBI_FN bool hfsbi_version_is_info(const hfsbi_version *version) {
    return version->hex[0] == 'i';
}

HFSBI_FN hfsb_status hfsbi_version_read(hfsb_str text, hfsbi_version *out,
                                        hfsb_err *err) {
    size_t i = 0;
    memset(out, 0, sizeof *out);
    if (text.len == 0) return HFSB_OK;
    while (text.len == sizeof out->hex - 1 && i < text.len &&
           hfsbi_hex_digit(text.ptr[i]) >= 0) {
        out->hex[i] = hfsbi_lower(text.ptr[i]);
        i++;
    }
    if (i == sizeof out->hex - 1) return HFSB_OK;
    memset(out, 0, sizeof *out);
    hfsbi_fail(err, HFSB_ARG, 0, "A sha256 is 64 hexadecimal digits, not \"");
    hfsbi_err_quote(err, text, 80);
    hfsbi_err_add(err, "\".");
    hfsbi_err_key(err, "if_sha256");
    return HFSB_ARG;
}

static bool hfsbi_version_equal(const hfsbi_version *a,
                                const hfsbi_version *b) {
    return strcmp(a->hex, b->hex) == 0;
}

HFSBI_FN hfsb_str hfsbi_version_tag(const hfsbi_version *version) {
    return hfsb_str_make(version->hex, HFSBI_TAG);
}

/* ---- the set ---- */

HFSBI_FN void hfsbi_seen_init(hfsbi_seen *seen, const hfsb_alloc *alloc) {
    memset(seen, 0, sizeof *seen);
    seen->alloc = *alloc;
    (void)pthread_mutex_init(&seen->lock, NULL);
    (void)pthread_mutex_init(&seen->changing, NULL);
}

static void hfsbi_saved_free(hfsbi_seen *seen, hfsbi_saved *s) {
    hfsb_buf_free(&s->content);
    hfsb_buf_free(&s->shown);
    hfsbi_array_free(&seen->alloc, s, 1, sizeof *s);
}

HFSBI_FN void hfsbi_seen_free(hfsbi_seen *seen) {
    hfsbi_saved *s;
    while ((s = seen->snapshots) != NULL) {
        seen->snapshots = s->next;
        hfsbi_saved_free(seen, s);
    }
    hfsbi_array_free(&seen->alloc, seen->table, seen->cap,
                     sizeof *seen->table);
    (void)pthread_mutex_destroy(&seen->changing);
    (void)pthread_mutex_destroy(&seen->lock);
}

static hfsbi_digest hfsbi_seen_digest(hfsb_str key) {
    hfsbi_digest d;
    hfsb_sha256  sha;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, key);
    hfsb_sha256_finish(&sha, d.bytes);
    return d;
}

static bool hfsbi_digest_equal(const hfsbi_digest *a, const hfsbi_digest *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

/* Returns the slot of a key, or the free slot where it belongs. */
static hfsbi_seen_file *hfsbi_seen_slot(hfsbi_seen_file *table, size_t cap,
                                        const hfsbi_digest *key) {
    static const hfsbi_digest none = {{0}};
    size_t                    at;
    memcpy(&at, key->bytes, sizeof at);
    for (at &= cap - 1;; at = (at + 1) & (cap - 1))
        if (hfsbi_digest_equal(&table[at].key, &none) ||
            hfsbi_digest_equal(&table[at].key, key))
            return &table[at];
}

/* Returns the file, or NULL. Under the lock. */
static hfsbi_seen_file *hfsbi_seen_find(const hfsbi_seen   *seen,
                                        const hfsbi_digest *key) {
    hfsbi_seen_file *f;
    if (seen->cap == 0) return NULL;
    f = hfsbi_seen_slot(seen->table, seen->cap, key);
    return hfsbi_digest_equal(&f->key, key) ? f : NULL;
}

/* Makes room for one more file. False without memory. */
static bool hfsbi_seen_grow(hfsbi_seen *seen) {
    size_t           cap = seen->cap ? seen->cap * 2 : 64, i;
    hfsbi_seen_file *table;
    if (seen->count < seen->cap / 2) return true;
    table = (hfsbi_seen_file *)hfsbi_array(&seen->alloc, cap, sizeof *table);
    if (!table) return false;
    memset(table, 0, cap * sizeof *table);
    for (i = 0; i < seen->cap; i++)
        *hfsbi_seen_slot(table, cap, &seen->table[i].key) = seen->table[i];
    hfsbi_array_free(&seen->alloc, seen->table, seen->cap, sizeof *table);
    seen->table = table;
    seen->cap = cap;
    return true;
}

/* Returns the file, which is added if it is new; NULL without memory. Under
   the lock. */
static hfsbi_seen_file *hfsbi_seen_put(hfsbi_seen         *seen,
                                       const hfsbi_digest *key) {
    hfsbi_seen_file *f = hfsbi_seen_find(seen, key);
    if (f || !hfsbi_seen_grow(seen)) return f;
    f = hfsbi_seen_slot(seen->table, seen->cap, key);
    f->key = *key;
    seen->count++;
    return f;
}

HFSBI_FN void hfsbi_seen_add(hfsbi_seen *seen, hfsb_str key,
                             const hfsbi_version *version) {
    hfsbi_digest     d = hfsbi_seen_digest(key);
    hfsbi_seen_file *f;
    pthread_mutex_lock(&seen->lock);
    f = hfsbi_seen_put(seen, &d);
    if (f) f->version = *version;
    if (f) f->lost = false;
    pthread_mutex_unlock(&seen->lock);
}

HFSBI_FN bool hfsbi_seen_has(hfsbi_seen *seen, hfsb_str key,
                             hfsbi_version *version) {
    hfsbi_digest     d = hfsbi_seen_digest(key);
    hfsbi_seen_file *f;
    bool             has;
    pthread_mutex_lock(&seen->lock);
    f = hfsbi_seen_find(seen, &d);
    has = f && !f->lost;
    if (has) *version = f->version;
    pthread_mutex_unlock(&seen->lock);
    return has;
}

HFSBI_FN bool hfsbi_seen_wrote(hfsbi_seen *seen, hfsb_str key,
                               hfsbi_version *version) {
    hfsbi_digest     d = hfsbi_seen_digest(key);
    hfsbi_seen_file *f;
    bool             wrote;
    pthread_mutex_lock(&seen->lock);
    f = hfsbi_seen_find(seen, &d);
    wrote = f && f->written;
    if (wrote) *version = f->version;
    pthread_mutex_unlock(&seen->lock);
    return wrote;
}

HFSBI_FN void hfsbi_seen_lose(hfsbi_seen *seen, hfsb_str key) {
    hfsbi_digest     d = hfsbi_seen_digest(key);
    hfsbi_seen_file *f;
    pthread_mutex_lock(&seen->lock);
    f = hfsbi_seen_find(seen, &d);
    if (f) f->lost = true;
    pthread_mutex_unlock(&seen->lock);
}

/* ---- snapshots; all under the lock ---- */

/* Returns the snapshot of a version of a file, or NULL. It becomes the most
   recently used. `version` may be a tag. */
static hfsbi_saved *hfsbi_saved_find(hfsbi_seen *seen, const hfsbi_digest *key,
                                     hfsb_str version) {
    hfsbi_saved **link = &seen->snapshots, *s;
    for (; (s = *link) != NULL; link = &s->next) {
        if (!hfsbi_digest_equal(&s->key, key) ||
            !hfsb_str_starts(hfsb_cstr(s->version.hex), version))
            continue;
        *link = s->next;
        s->next = seen->snapshots;
        seen->snapshots = s;
        return s;
    }
    return NULL;
}

/* Drops the least recently used snapshots that exceed the budget. */
static void hfsbi_saved_trim(hfsbi_seen *seen) {
    hfsbi_saved **link = &seen->snapshots, *s;
    size_t        bytes = 0, count = 0;
    while ((s = *link) != NULL) {
        bytes += sizeof *s + s->content.cap + s->shown.cap;
        count++;
        if (bytes <= HFSBI_SNAPSHOTS_MAX && count <= HFSBI_SNAPSHOTS_COUNT) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        hfsbi_saved_free(seen, s);
    }
}

/* Appends one byte for each line of content: none is shown. */
static hfsb_status hfsbi_shown_fill(hfsb_buf *shown, hfsb_str content) {
    size_t      lines = hfsb_str_count_byte(content, '\n');
    hfsb_status st;
    if (content.len && content.ptr[content.len - 1] != '\n') lines++;
    st = hfsb_buf_reserve(shown, lines);
    while (st == HFSB_OK && lines-- > 0)
        st = hfsb_buf_append_byte(shown, '\0');
    return st;
}

/* Returns the snapshot of that content, which is added if it is new; NULL when
   the content is too large or without memory. */
static hfsbi_saved *hfsbi_saved_put(hfsbi_seen *seen, const hfsbi_digest *key,
                                    const hfsbi_version *version,
                                    hfsb_str             content) {
    hfsbi_saved *s = hfsbi_saved_find(seen, key, hfsb_cstr(version->hex));
    if (s || content.len > HFSBI_SNAPSHOT_MAX) return s;
    s = (hfsbi_saved *)hfsbi_array(&seen->alloc, 1, sizeof *s);
    if (!s) return NULL;
    memset(s, 0, sizeof *s);
    s->key = *key;
    s->version = *version;
    s->content.alloc = s->shown.alloc = seen->alloc;
    if (hfsb_buf_append(&s->content, content) != HFSB_OK ||
        hfsbi_shown_fill(&s->shown, content) != HFSB_OK) {
        hfsbi_saved_free(seen, s);
        return NULL;
    }
    s->next = seen->snapshots;
    seen->snapshots = s;
    hfsbi_saved_trim(seen);
    return s;
}

/* Marks lines as shown, counted from 1; those past the end do not count, nor
   do lines over `longest` bytes (0: any length). */
static void hfsbi_saved_mark(hfsbi_saved *s, unsigned long long first,
                             unsigned long long last, size_t longest) {
    hfsb_str           rest = hfsb_buf_str(&s->content), line;
    unsigned long long i;
    if (first == 0) first = 1;
    if (last > s->shown.len) last = s->shown.len;
    if (longest == 0 && first <= last)
        memset(s->shown.ptr + (first - 1), 1, (size_t)(last - first + 1));
    if (longest == 0) return;
    for (i = 1; i <= last && hfsb_text_line(&rest, &line, NULL); i++)
        if (i >= first && line.len <= longest) s->shown.ptr[i - 1] = 1;
}

static bool hfsbi_saved_all_shown(const hfsbi_saved *s) {
    return hfsb_str_find_byte(hfsb_buf_str(&s->shown), '\0') == HFSB_NPOS;
}

/* Marks the lines of `to` that are those of `from` and were shown there; with
   `others` also the lines that are new in it. Without memory none. */
static void hfsbi_saved_inherit(const hfsbi_saved *from, hfsbi_saved *to,
                                bool others) {
    const hfsb_alloc *alloc = &to->content.alloc;
    hfsbi_lines       olds = HFSB_INIT, news = HFSB_INIT;
    size_t           *same, j;
    hfsb_status       st;
    same = (size_t *)hfsbi_array(alloc, to->shown.len, sizeof *same);
    if (!same) return;
    st = hfsbi_lines_split(alloc, hfsb_buf_str(&from->content), &olds);
    if (st == HFSB_OK)
        st = hfsbi_lines_split(alloc, hfsb_buf_str(&to->content), &news);
    if (st == HFSB_OK)
        st = hfsbi_lines_diff(alloc, olds.items, olds.count, news.items,
                              news.count, same);
    for (j = 0; st == HFSB_OK && j < news.count; j++)
        if (same[j] == HFSB_NPOS ? others : from->shown.ptr[same[j]] != 0)
            to->shown.ptr[j] = 1;
    hfsbi_array_free(alloc, same, to->shown.len, sizeof *same);
    hfsbi_lines_free(alloc, &olds);
    hfsbi_lines_free(alloc, &news);
}

/* The version `from` became `now` (may be NULL), which inherits its marks.
   `others`: the lines that are new were shown. */
static void hfsbi_saved_step(hfsbi_seen *seen, const hfsbi_version *from,
                             hfsbi_saved *now, bool others) {
    hfsbi_saved *old;
    if (!now) return;
    old = hfsbi_saved_find(seen, &now->key, hfsb_cstr(from->hex));
    if (!old || old == now) return;
    if (others && hfsbi_saved_all_shown(old))
        hfsbi_saved_mark(now, 1, now->shown.len, 0);
    else hfsbi_saved_inherit(old, now, others);
}

/* ---- the local tools: what was read ---- */

static bool hfsbi_tools_key(hfsb_tools *tools, hfsb_str path,
                            hfsbi_digest *out) {
    hfsb_buf key = HFSB_INIT;
    bool     ok;
    if (!tools->session) return false;
    key.alloc = tools->alloc;
    ok = hfsb_file_key(tools->place, path, &key, NULL) == HFSB_OK;
    if (ok) *out = hfsbi_seen_digest(hfsb_buf_str(&key));
    hfsb_buf_free(&key);
    return ok;
}

HFSBI_FN unsigned long hfsbi_tools_writes(hfsb_tools *tools) {
    unsigned long n;
    pthread_mutex_lock(&tools->seen.lock);
    n = tools->seen.writes;
    pthread_mutex_unlock(&tools->seen.lock);
    return n;
}

HFSBI_FN void hfsbi_tools_saw(hfsb_tools *tools, hfsb_str path,
                              const hfsbi_sight *sight) {
    hfsbi_seen      *seen = &tools->seen;
    hfsbi_digest     key;
    hfsbi_seen_file *f;
    hfsbi_saved     *s = NULL;
    if (!hfsbi_tools_key(tools, path, &key)) return;
    pthread_mutex_lock(&seen->lock);
    f = hfsbi_seen_put(seen, &key);
    if (f && (sight->wrote || f->written <= sight->since))
        f->version = sight->version;
    if (f && sight->wrote) f->written = ++seen->writes;
    if (f && sight->content.ptr)
        s = hfsbi_saved_put(seen, &key, &sight->version, sight->content);
    if (s) hfsbi_saved_mark(s, sight->first, sight->last, sight->longest);
    pthread_mutex_unlock(&seen->lock);
}

HFSBI_FN bool hfsbi_tools_version(hfsb_tools *tools, hfsb_str path,
                                  hfsbi_version *out) {
    hfsbi_digest     key;
    hfsbi_seen_file *f;
    if (!hfsbi_tools_key(tools, path, &key)) return false;
    pthread_mutex_lock(&tools->seen.lock);
    f = hfsbi_seen_find(&tools->seen, &key);
    if (f) *out = f->version;
    pthread_mutex_unlock(&tools->seen.lock);
    return f != NULL;
}

HFSBI_FN bool hfsbi_tools_has_seen(hfsb_tools *tools, hfsb_str path) {
    hfsbi_version version;
    return !tools->session || hfsbi_tools_version(tools, path, &version);
}

HFSBI_FN hfsb_status hfsbi_tools_snapshot(hfsb_tools *tools, hfsb_str path,
                                          hfsb_str tag, hfsb_buf *content,
                                          hfsb_buf *shown) {
    hfsbi_digest key;
    hfsbi_saved *s;
    hfsb_status  st = HFSB_NOT_FOUND;
    if (!hfsbi_tools_key(tools, path, &key)) return st;
    pthread_mutex_lock(&tools->seen.lock);
    s = hfsbi_saved_find(&tools->seen, &key, tag);
    if (s) st = hfsb_buf_append(content, hfsb_buf_str(&s->content));
    if (st == HFSB_OK) st = hfsb_buf_append(shown, hfsb_buf_str(&s->shown));
    pthread_mutex_unlock(&tools->seen.lock);
    return st;
}

HFSBI_FN void hfsbi_tools_showed(hfsb_tools *tools, hfsb_str path,
                                 hfsb_str content, size_t first, size_t last) {
    hfsbi_version version;
    hfsbi_digest  key;
    hfsbi_saved  *s;
    if (!hfsbi_tools_key(tools, path, &key)) return;
    hfsbi_version_of(content, &version);
    pthread_mutex_lock(&tools->seen.lock);
    s = hfsbi_saved_put(&tools->seen, &key, &version, content);
    if (s) hfsbi_saved_mark(s, first, last, 0);
    pthread_mutex_unlock(&tools->seen.lock);
}

/* ---- the local tools: changes ---- */

HFSBI_FN void hfsbi_change_lock(hfsb_call *call) {
    if (!call->tools->session || call->changing) return;
    pthread_mutex_lock(&call->tools->seen.changing);
    call->changing = true;
}

HFSBI_FN void hfsbi_change_unlock(hfsb_call *call) {
    if (call->changing) pthread_mutex_unlock(&call->tools->seen.changing);
    call->changing = false;
}

/* Compares the snapshot of the version that is known with the new content and
   takes over what it can. c->shown: the whole difference is in c->diff. Under
   the lock. */
static void hfsbi_file_change_compare(hfsbi_seen *seen, hfsb_str path,
                                      hfsb_str content, hfsbi_file_change *c) {
    hfsb_diff_opts opts = HFSB_INIT;
    hfsbi_saved   *was =
        hfsbi_saved_find(seen, &c->key, hfsb_cstr(c->known.hex));
    bool cut = false;
    opts.path = path;
    opts.max_bytes = HFSBI_REFUSAL_DIFF;
    if (!was || hfsb_str_find_byte(content, '\0') != HFSB_NPOS) return;
    if (hfsbi_diff_texts(hfsb_buf_str(&was->content), content, &opts, &c->diff,
                         &cut) != HFSB_OK) {
        hfsb_buf_truncate(&c->diff, 0);
        return;
    }
    c->shown = !cut;
    hfsbi_saved_step(seen, &c->known,
                     hfsbi_saved_put(seen, &c->key, &c->before, content),
                     false);
}

HFSBI_FN void hfsbi_file_change_open(hfsb_call *call, hfsb_str path,
                                     const hfsbi_version  *given,
                                     hfsb_str              content,
                                     const hfsb_file_info *info,
                                     hfsbi_file_change    *c) {
    hfsbi_seen      *seen = &call->tools->seen;
    hfsbi_seen_file *f = NULL;
    memset(c, 0, sizeof *c);
    c->diff.alloc = call->tools->alloc;
    c->tracked = hfsbi_tools_key(call->tools, path, &c->key);
    if (given) c->known = *given;
    if (!c->tracked && !c->known.hex[0]) return;
    pthread_mutex_lock(&seen->lock);
    if (!c->known.hex[0]) f = hfsbi_seen_find(seen, &c->key);
    if (f) c->known = f->version;
    if (hfsbi_version_is_info(&c->known))
        hfsbi_version_of_info(info, &c->before);
    else hfsbi_version_of(content, &c->before);
    c->changed =
        c->known.hex[0] && !hfsbi_version_equal(&c->known, &c->before);
    if (c->changed && c->tracked)
        hfsbi_file_change_compare(seen, path, content, c);
    pthread_mutex_unlock(&seen->lock);
}

/* The session knows this version from now on. Under the lock. */
static void hfsbi_file_change_learn(hfsbi_seen              *seen,
                                    const hfsbi_file_change *c,
                                    const hfsbi_version     *version) {
    hfsbi_seen_file *f = hfsbi_seen_put(seen, &c->key);
    if (!f) return;
    f->version = *version;
    f->written = ++seen->writes;
}

/* The lines that changed before the call were shown. Under the lock. */
static void hfsbi_file_change_mark(hfsbi_seen              *seen,
                                   const hfsbi_file_change *c) {
    hfsbi_saved_step(seen, &c->known,
                     hfsbi_saved_find(seen, &c->key, hfsb_cstr(c->before.hex)),
                     true);
}

HFSBI_FN hfsb_status hfsbi_file_change_refuse(hfsb_call *call, hfsb_str path,
                                              const hfsbi_file_change *c,
                                              const hfsb_err          *why) {
    hfsbi_seen       *seen = &call->tools->seen;
    hfsb_tool_result *r = &call->result;
    hfsb_buf_printf(
        &r->error, "%s%sFile %.*s has changed since it was read%s%s.",
        why ? why->msg : "", why ? "\n\n" : "", (int)path.len, path.ptr,
        c->tracked ? " this session" : "", why ? "" : "; nothing was written");
    if (c->diff.len) hfsb_buf_printf(&r->error, " What changed:\n");
    hfsbi_append_repaired(&r->error, hfsb_buf_str(&c->diff));
    if (c->shown)
        hfsb_buf_printf(&r->error, "This counts as read: repeat the call if "
                                   "it still fits, or adapt it.");
    else
        hfsb_buf_printf(&r->error, "%sRead it again.", c->diff.len ? "" : " ");
    r->success = false;
    r->code = why ? why->code : HFSB_STALE;
    if (r->error.status != HFSB_OK) return HFSB_NOMEM;
    if (!c->shown) return HFSB_OK;
    pthread_mutex_lock(&seen->lock);
    hfsbi_file_change_mark(seen, c);
    hfsbi_file_change_learn(seen, c, &c->before);
    pthread_mutex_unlock(&seen->lock);
    return HFSB_OK;
}

/* Notes what changed before this call; returns whether all of it is shown. */
static bool hfsbi_file_change_note(hfsb_call *call, hfsb_str path,
                                   const hfsbi_file_change *c) {
    bool whole = c->shown && c->diff.len <= HFSBI_NOTE_DIFF;
    hfsb_buf_printf(&call->notes, "\n(%.*s had changed since it was read. %s)",
                    (int)path.len, path.ptr,
                    whole ? "What changed before this call:"
                          : "Read it again before you change other parts.");
    if (whole) hfsb_buf_append_byte(&call->notes, '\n');
    if (whole) hfsbi_append_repaired(&call->notes, hfsb_buf_str(&c->diff));
    return whole && call->notes.status == HFSB_OK;
}

HFSBI_FN void hfsbi_file_change_done(hfsb_call *call, hfsb_str path,
                                     hfsb_str                 content,
                                     const hfsbi_file_change *c) {
    hfsbi_seen   *seen = &call->tools->seen;
    hfsbi_version after;
    bool          whole = true;
    if (c->changed) whole = hfsbi_file_change_note(call, path, c);
    if (!c->tracked) return;
    hfsbi_version_of(content, &after);
    pthread_mutex_lock(&seen->lock);
    if (c->changed && whole) hfsbi_file_change_mark(seen, c);
    hfsbi_saved_step(seen, &c->before,
                     hfsbi_saved_put(seen, &c->key, &after, content), true);
    if (whole) hfsbi_file_change_learn(seen, c, &after);
    pthread_mutex_unlock(&seen->lock);
}

HFSBI_FN void hfsbi_file_change_free(hfsbi_file_change *c) {
    hfsb_buf_free(&c->diff);
}
