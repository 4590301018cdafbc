/* seen.c - the set of files that a session has read or written.

   A session refuses to change a file that it has not read. The local tools and
   the client of a sandbox both keep such a set. They differ only in the key of
   a file: the local tools ask hfsb_file_key(), which resolves symlinks; the
   client, which cannot, uses the cleaned absolute path.

   The set is a hash table of the keys' SHA-256 digests. Digests have one size
   whatever the length of the key, and are as good as random, so their first
   bytes serve as the hash. A free slot is all zero, which no digest is. The
   table stays at most half full.

   Without memory a file is not added, and must be read again: the set errs on
   the safe side. */
#include "tools_private.h"

HFSBI_FN void hfsbi_seen_init(hfsbi_seen *seen, const hfsb_alloc *alloc) {
    memset(seen, 0, sizeof *seen);
    seen->alloc = *alloc;
    (void)pthread_mutex_init(&seen->lock, NULL);
}

HFSBI_FN void hfsbi_seen_free(hfsbi_seen *seen) {
    hfsbi_array_free(&seen->alloc, seen->table, seen->cap,
                     sizeof *seen->table);
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

/* Returns the slot of a digest, or the free slot where it belongs. */
static hfsbi_digest *hfsbi_seen_slot(hfsbi_digest *table, size_t cap,
                                     const hfsbi_digest *d) {
    static const hfsbi_digest none = {{0}};
    size_t                    at;
    memcpy(&at, d->bytes, sizeof at);
    for (at &= cap - 1;; at = (at + 1) & (cap - 1))
        if (memcmp(&table[at], &none, sizeof none) == 0 ||
            memcmp(&table[at], d, sizeof *d) == 0)
            return &table[at];
}

/* Under the lock. */
static bool hfsbi_seen_find(const hfsbi_seen *seen, const hfsbi_digest *d) {
    return seen->cap > 0 && memcmp(hfsbi_seen_slot(seen->table, seen->cap, d),
                                   d, sizeof *d) == 0;
}

/* Makes room for one more digest. False without memory. */
static bool hfsbi_seen_grow(hfsbi_seen *seen) {
    size_t        cap = seen->cap ? seen->cap * 2 : 64, i;
    hfsbi_digest *table;
    if (seen->count < seen->cap / 2) return true;
    table = (hfsbi_digest *)hfsbi_array(&seen->alloc, cap, sizeof *table);
    if (!table) return false;
    memset(table, 0, cap * sizeof *table);
    for (i = 0; i < seen->cap; i++)
        *hfsbi_seen_slot(table, cap, &seen->table[i]) = seen->table[i];
    hfsbi_array_free(&seen->alloc, seen->table, seen->cap, sizeof *table);
    seen->table = table;
    seen->cap = cap;
    return true;
}

HFSBI_FN void hfsbi_seen_add(hfsbi_seen *seen, hfsb_str key) {
    hfsbi_digest d = hfsbi_seen_digest(key);
    pthread_mutex_lock(&seen->lock);
    if (!hfsbi_seen_find(seen, &d) && hfsbi_seen_grow(seen)) {
        *hfsbi_seen_slot(seen->table, seen->cap, &d) = d;
        seen->count++;
    }
    pthread_mutex_unlock(&seen->lock);
}

HFSBI_FN bool hfsbi_seen_has(hfsbi_seen *seen, hfsb_str key) {
    hfsbi_digest d = hfsbi_seen_digest(key);
    bool         has;
    pthread_mutex_lock(&seen->lock);
    has = hfsbi_seen_find(seen, &d);
    pthread_mutex_unlock(&seen->lock);
    return has;
}

/* ---- the local tools ---- */

HFSBI_FN void hfsbi_tools_saw(hfsb_tools *tools, hfsb_str path) {
    hfsb_buf key = HFSB_INIT;
    if (!tools->session) return;
    key.alloc = tools->alloc;
    if (hfsb_file_key(tools->place, path, &key, NULL) == HFSB_OK)
        hfsbi_seen_add(&tools->seen, hfsb_buf_str(&key));
    hfsb_buf_free(&key);
}

HFSBI_FN bool hfsbi_tools_has_seen(hfsb_tools *tools, hfsb_str path) {
    hfsb_buf key = HFSB_INIT;
    bool     has;
    if (!tools->session) return true;
    key.alloc = tools->alloc;
    has = hfsb_file_key(tools->place, path, &key, NULL) == HFSB_OK &&
          hfsbi_seen_has(&tools->seen, hfsb_buf_str(&key));
    hfsb_buf_free(&key);
    return has;
}
