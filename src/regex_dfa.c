/* regex_dfa.c - runs a program through a table that is filled in as the text
   needs it: each set of states that occurs is a row, and a byte costs one
   look-up. Depends on: base, regex_class, regex_program, regex_nfa.

   A row stands for the states before the next byte is known; borders that
   depend on it ($ and those of words) are decided when it is read. A CR is
   held back until what follows it tells whether it ends the line. */
#include "regex_parts.h"

/* In place of a row. */
#define HFSBI_DFA_UNKNOWN 0xFFFFFFFFu
#define HFSBI_DFA_MATCH   0xFFFFFFFEu
#define HFSBI_DFA_DEAD    0xFFFFFFFDu /* no match any more */
#define HFSBI_DFA_CANNOT  0xFFFFFFFCu /* not by this table */
#define HFSBI_DFA_SPECIAL 0xFFFFFFF0u /* and above */

/* Flags of a row. */
#define HFSBI_DFA_WORD  1u /* the last byte was one of a word */
#define HFSBI_DFA_CR    2u /* a CR has come and is not read yet */
#define HFSBI_DFA_BEGIN 4u /* nothing of the line was read */

/* ---- memory ---- */

static bool hfsbi_states_init(const hfsb_alloc *alloc, hfsbi_states *set,
                              size_t count) {
    set->dense = (uint32_t *)hfsbi_array(alloc, count, sizeof *set->dense);
    set->sparse = (uint32_t *)hfsbi_array(alloc, count, sizeof *set->sparse);
    set->begin = (size_t *)hfsbi_array(alloc, count, sizeof *set->begin);
    if (!set->dense || !set->sparse || !set->begin) return false;
    memset(set->sparse, 0, count * sizeof *set->sparse);
    memset(set->dense, 0, count * sizeof *set->dense);
    return true;
}

static void hfsbi_states_free(const hfsb_alloc *alloc, hfsbi_states *set,
                              size_t count) {
    hfsbi_array_free(alloc, set->dense, count, sizeof *set->dense);
    hfsbi_array_free(alloc, set->sparse, count, sizeof *set->sparse);
    hfsbi_array_free(alloc, set->begin, count, sizeof *set->begin);
}

HFSBI_FN hfsb_status hfsbi_runner_init(hfsbi_runner        *r,
                                       const hfsbi_program *program) {
    size_t count = program->state_count;
    memset(r, 0, sizeof *r);
    r->program = program;
    r->alloc = program->alloc;
    r->columns = program->kinds + 1;
    r->max_bytes = HFSBI_REGEX_CACHE;
    r->start = HFSBI_DFA_UNKNOWN;
    r->stack = (uint32_t *)hfsbi_array(&r->alloc, count, sizeof *r->stack);
    if (!r->stack || !hfsbi_states_init(&r->alloc, &r->now, count) ||
        !hfsbi_states_init(&r->alloc, &r->then, count))
        return HFSB_NOMEM;
    return HFSB_OK;
}

HFSBI_FN void hfsbi_runner_free(hfsbi_runner *r) {
    size_t count;
    if (!r->program) return;
    count = r->program->state_count;
    hfsbi_states_free(&r->alloc, &r->now, count);
    hfsbi_states_free(&r->alloc, &r->then, count);
    hfsbi_array_free(&r->alloc, r->stack, count, sizeof *r->stack);
    hfsbi_array_free(&r->alloc, r->next, r->next_cap, sizeof *r->next);
    hfsbi_array_free(&r->alloc, r->states, r->state_cap, sizeof *r->states);
    hfsbi_array_free(&r->alloc, r->keys, r->key_cap, sizeof *r->keys);
    hfsbi_array_free(&r->alloc, r->buckets, HFSBI_DFA_BUCKETS,
                     sizeof *r->buckets);
}

/* Grows one of the arrays for one more row, within the bound. */
static void *hfsbi_dfa_grow(hfsbi_runner *r, void *ptr, size_t *cap,
                            size_t need, size_t size) {
    size_t bytes =
        r->state_count * (r->columns * sizeof *r->next + sizeof *r->states) +
        r->key_count * sizeof *r->keys;
    if (bytes > r->max_bytes && r->state_count > 1) return NULL;
    if (need <= *cap) return ptr;
    return hfsbi_array_grow(&r->alloc, ptr, cap, need, size);
}

static bool hfsbi_dfa_room(hfsbi_runner *r, size_t key_len) {
    void *grown = r->buckets;
    if (!grown) {
        grown = hfsbi_array(&r->alloc, HFSBI_DFA_BUCKETS, sizeof *r->buckets);
        if (!grown) return false;
        r->buckets = (uint32_t *)grown;
        memset(r->buckets, 0, HFSBI_DFA_BUCKETS * sizeof *r->buckets);
    }
    grown = hfsbi_dfa_grow(r, r->next, &r->next_cap,
                           (r->state_count + 1) * r->columns, sizeof *r->next);
    if (!grown) return false;
    r->next = (uint32_t *)grown;
    grown = hfsbi_dfa_grow(r, r->states, &r->state_cap, r->state_count + 1,
                           sizeof *r->states);
    if (!grown) return false;
    r->states = (hfsbi_dfa_state *)grown;
    grown = hfsbi_dfa_grow(r, r->keys, &r->key_cap, r->key_count + key_len + 1,
                           sizeof *r->keys);
    if (!grown) return false;
    r->keys = (uint32_t *)grown;
    return true;
}

/* Begins the table anew. */
static void hfsbi_dfa_flush(hfsbi_runner *r) {
    if (r->since < r->state_count * 8) r->waste++;
    else r->waste = 0;
    if (r->waste >= 4) { /* it costs more than it gives */
        r->without = 1u << 20;
        r->waste = 0;
    }
    r->since = 0;
    r->flushes++;
    r->state_count = r->key_count = 0;
    r->start = HFSBI_DFA_UNKNOWN;
    if (r->buckets)
        memset(r->buckets, 0, HFSBI_DFA_BUCKETS * sizeof *r->buckets);
}

/* ---- rows ---- */

static int hfsbi_state_order(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Leaves in the set, in order, what tells it from others: not the states that
   only lead to others in it. False: it holds the end of the program. */
static bool hfsbi_dfa_key(const hfsbi_program *p, hfsbi_states *set) {
    uint32_t i, kept = 0;
    bool     sorted = true;
    for (i = 0; i < set->count; i++) {
        uint32_t id = set->dense[i], op = p->states[id].op;
        if (op == HFSBI_OP_MATCH && !p->whole) return false;
        if (op == HFSBI_OP_SPLIT ||
            (op == HFSBI_OP_ASSERT && p->states[id].arg == HFSBI_LINE_BEGIN))
            continue;
        if (kept > 0 && set->dense[kept - 1] > id) sorted = false;
        set->dense[kept++] = id;
    }
    set->count = kept;
    if (!sorted)
        hfsbi_sort(set->dense, kept, sizeof *set->dense, hfsbi_state_order);
    return true;
}

static uint32_t hfsbi_dfa_hash(const hfsbi_states *set, uint32_t flags) {
    uint32_t hash = 2166136261u ^ flags, i;
    for (i = 0; i < set->count; i++) {
        hash = (hash ^ set->dense[i]) * 16777619u;
        hash ^= hash >> 15;
    }
    return hash;
}

/* The row of a set (whose order is lost), made when there is none yet. The
   table may have been begun anew for it. */
static uint32_t hfsbi_dfa_row(hfsbi_runner *r, hfsbi_states *set,
                              uint32_t flags) {
    hfsbi_dfa_state *s;
    uint32_t         hash, *bucket, at, row;
    size_t           bytes, i;
    if (!hfsbi_dfa_key(r->program, set)) return HFSBI_DFA_MATCH;
    if (set->count == 0 && r->program->whole) return HFSBI_DFA_DEAD;
    hash = hfsbi_dfa_hash(set, flags);
    bytes = set->count * sizeof *set->dense;
    for (at = r->buckets ? r->buckets[hash % HFSBI_DFA_BUCKETS] : 0; at;
         at = s->chain) {
        s = &r->states[at - 1];
        if (s->hash == hash && s->flags == flags && s->len == set->count &&
            !memcmp(r->keys + s->key, set->dense, bytes))
            return (at - 1) * (uint32_t)r->columns;
    }
    if (!hfsbi_dfa_room(r, set->count)) {
        if (r->state_count == 0) return HFSBI_DFA_CANNOT;
        hfsbi_dfa_flush(r);
        if (r->without || !hfsbi_dfa_room(r, set->count))
            return HFSBI_DFA_CANNOT;
    }
    bucket = &r->buckets[hash % HFSBI_DFA_BUCKETS];
    s = &r->states[r->state_count];
    s->key = (uint32_t)r->key_count;
    s->len = set->count;
    s->flags = flags;
    s->hash = hash;
    s->chain = *bucket;
    if (bytes) memcpy(r->keys + r->key_count, set->dense, bytes);
    r->key_count += set->count;
    row = (uint32_t)(r->state_count * r->columns);
    for (i = 0; i < r->columns; i++) r->next[row + i] = HFSBI_DFA_UNKNOWN;
    *bucket = (uint32_t)++r->state_count;
    return row;
}

/* The row at the beginning of a line, or of the whole. */
static uint32_t hfsbi_dfa_start(hfsbi_runner *r) {
    uint32_t row;
    if (r->start != HFSBI_DFA_UNKNOWN) return r->start;
    r->then.count = 0;
    hfsbi_states_follow(r, &r->then, r->program->start, 0, HFSBI_AT_BEGIN,
                        true);
    row = hfsbi_dfa_row(r, &r->then, HFSBI_DFA_BEGIN);
    if (row != HFSBI_DFA_CANNOT) r->start = row;
    return row;
}

/* ---- steps ---- */

/* Decides the borders in r->now for a place before which *flags is known:
   r->then is all that can be reached. True: a match ends there. */
static bool hfsbi_dfa_decide(hfsbi_runner *r, uint32_t flags, unsigned place) {
    uint32_t i;
    if (flags & HFSBI_DFA_WORD) place |= HFSBI_AT_PREV_WORD;
    if (flags & HFSBI_DFA_BEGIN) place |= HFSBI_AT_BEGIN;
    r->then.count = 0;
    for (i = 0; i < r->now.count; i++)
        hfsbi_states_follow(r, &r->then, r->now.dense[i], 0, place, false);
    for (i = 0; i < r->then.count; i++)
        if (r->program->states[r->then.dense[i]].op == HFSBI_OP_MATCH)
            return true;
    return false;
}

static void hfsbi_dfa_swap(hfsbi_runner *r) {
    hfsbi_states other = r->now;
    r->now = r->then;
    r->then = other;
}

/* Reads a byte: from the states in r->now to those in r->now. True when a
   match is certain; in lines only. */
static bool hfsbi_dfa_read(hfsbi_runner *r, uint32_t *flags,
                           unsigned char byte) {
    const hfsbi_program *p = r->program;
    uint32_t             i, out;
    bool                 word = p->words && hfsbi_regex_is_word(byte);
    if (hfsbi_dfa_decide(r, *flags, word ? HFSBI_AT_NEXT_WORD : 0) &&
        !p->whole)
        return true;
    hfsbi_dfa_swap(r);
    r->then.count = 0;
    for (i = 0; i < r->now.count; i++)
        if (hfsbi_state_step(p, r->now.dense[i], byte, &out))
            hfsbi_states_follow(r, &r->then, out, 0, 0, true);
    if (!p->whole) hfsbi_states_follow(r, &r->then, p->start, 0, 0, true);
    hfsbi_dfa_swap(r);
    *flags = word ? HFSBI_DFA_WORD : 0;
    for (i = 0; !p->whole && i < r->now.count; i++)
        if (p->states[r->now.dense[i]].op == HFSBI_OP_MATCH) return true;
    return false;
}

/* The set of a row into r->now. */
static uint32_t hfsbi_dfa_load(hfsbi_runner *r, uint32_t row) {
    const hfsbi_dfa_state *s = &r->states[row / r->columns];
    uint32_t               i;
    r->now.count = s->len;
    for (i = 0; i < s->len; i++) {
        r->now.dense[i] = r->keys[s->key + i];
        r->now.sparse[r->now.dense[i]] = i;
    }
    return s->flags;
}

/* Where a column leads from the set in r->now, in lines. */
static uint32_t hfsbi_dfa_line_step(hfsbi_runner *r, uint32_t flags,
                                    uint32_t column) {
    const hfsbi_program *p = r->program;
    bool                 end = column == p->kinds, cr;
    unsigned char        byte = end ? '\n' : p->sample[column];
    if (!end && p->words && byte >= 0x80) return HFSBI_DFA_CANNOT;
    cr = (flags & HFSBI_DFA_CR) != 0;
    flags &= ~HFSBI_DFA_CR;
    if (cr && (end || byte != '\n') && hfsbi_dfa_read(r, &flags, '\r'))
        return HFSBI_DFA_MATCH;
    if (byte == '\n') { /* or the end */
        if (hfsbi_dfa_decide(r, flags, HFSBI_AT_END)) return HFSBI_DFA_MATCH;
        return end ? HFSBI_DFA_DEAD : hfsbi_dfa_start(r);
    }
    if (byte == '\r') {
        flags |= HFSBI_DFA_CR;
    } else if (hfsbi_dfa_read(r, &flags, byte)) {
        return HFSBI_DFA_MATCH;
    }
    return hfsbi_dfa_row(r, &r->now, flags);
}

/* Fills in the table at row and column. */
static uint32_t hfsbi_dfa_fill(hfsbi_runner *r, uint32_t row,
                               uint32_t column) {
    const hfsbi_program *p = r->program;
    uint32_t             flags = hfsbi_dfa_load(r, row), next;
    size_t               flushes = r->flushes;
    if (hfsbi_runner_stops(r, r->now.count + r->then.count + 64u))
        return HFSBI_DFA_CANNOT;
    if (!p->whole) {
        next = hfsbi_dfa_line_step(r, flags, column);
    } else if (column == p->kinds) {
        next =
            hfsbi_dfa_decide(r, flags, 0) ? HFSBI_DFA_MATCH : HFSBI_DFA_DEAD;
    } else {
        hfsbi_dfa_read(r, &flags, p->sample[column]);
        next = hfsbi_dfa_row(r, &r->now, flags);
    }
    /* begun anew meanwhile: the row is no more */
    if (r->flushes != flushes) return next;
    /* out of memory is no quality of the place */
    if (next != HFSBI_DFA_CANNOT ||
        (p->words && column < p->kinds && p->sample[column] >= 0x80))
        r->next[row + column] = next;
    return next;
}

/* ---- runs ---- */

HFSBI_FN hfsbi_scan hfsbi_dfa_lines(hfsbi_runner *r, hfsb_str text,
                                    size_t *at) {
    const unsigned char *base = (const unsigned char *)text.ptr;
    const unsigned char *p = base + *at, *end = base + text.len, *from = p;
    const unsigned char *map = r->program->map;
    const uint32_t      *next;
    uint32_t             row = hfsbi_dfa_start(r), n;
    if (row == HFSBI_DFA_MATCH) return HFSBI_SCAN_FOUND;
    if (row == HFSBI_DFA_CANNOT) return HFSBI_SCAN_CANNOT;
    for (next = r->next;;) {
        n = row;
        while (end - p >= 4) {
            n = next[row + map[p[0]]];
            if (n >= HFSBI_DFA_SPECIAL) break;
            row = next[n + map[p[1]]];
            if (row >= HFSBI_DFA_SPECIAL) {
                row = n;
                p++;
                break;
            }
            p += 2;
        }
        if (p < end) {
            n = next[row + map[*p]];
            if (n == HFSBI_DFA_UNKNOWN) {
                r->since += (size_t)(p - from);
                from = p;
                n = hfsbi_dfa_fill(r, row, map[*p]);
                next = r->next;
            }
        } else {
            if (p == base || p[-1] == '\n') break;
            n = next[row + r->program->kinds];
            if (n == HFSBI_DFA_UNKNOWN)
                n = hfsbi_dfa_fill(r, row, r->program->kinds);
        }
        if (n >= HFSBI_DFA_SPECIAL || p == end) {
            *at = (size_t)(p - base);
            r->since += (size_t)(p - from);
            if (n == HFSBI_DFA_CANNOT) return HFSBI_SCAN_CANNOT;
            return n == HFSBI_DFA_MATCH ? HFSBI_SCAN_FOUND : HFSBI_SCAN_NONE;
        }
        row = n;
        p++;
    }
    r->since += (size_t)(p - from);
    return HFSBI_SCAN_NONE;
}

HFSBI_FN hfsbi_scan hfsbi_dfa_whole(hfsbi_runner *r, hfsb_str text,
                                    bool beginning) {
    const unsigned char *map = r->program->map;
    uint32_t             row = hfsbi_dfa_start(r), column;
    size_t               i;
    for (i = 0; i <= text.len; i++) {
        if (row == HFSBI_DFA_CANNOT) return HFSBI_SCAN_CANNOT;
        if (row == HFSBI_DFA_DEAD) return HFSBI_SCAN_NONE;
        if (i < text.len) column = map[(unsigned char)text.ptr[i]];
        else if (beginning) column = map[(unsigned char)'/'];
        else column = r->program->kinds;
        if (r->next[row + column] != HFSBI_DFA_UNKNOWN)
            row = r->next[row + column];
        else row = hfsbi_dfa_fill(r, row, column);
    }
    r->since += text.len;
    if (row == HFSBI_DFA_CANNOT) return HFSBI_SCAN_CANNOT;
    if (!beginning || row == HFSBI_DFA_DEAD)
        return row == HFSBI_DFA_MATCH ? HFSBI_SCAN_FOUND : HFSBI_SCAN_NONE;
    hfsbi_dfa_load(r, row);
    return hfsbi_states_read(r->program, &r->now) ? HFSBI_SCAN_FOUND
                                                  : HFSBI_SCAN_NONE;
}
