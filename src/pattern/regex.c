/* regex.c - regular expressions for lines of text. */
#include "pattern_private.h"

/* ==== regex nfa ==== */

/* runs a program state by state: slower than the table, but it
   needs no more memory, knows letters beyond ASCII, and tells where a match
   begins. */

static bool hfsbi_border_holds(uint32_t border, unsigned place) {
    bool before = (place & HFSBI_AT_PREV_WORD) != 0;
    bool after = (place & HFSBI_AT_NEXT_WORD) != 0;
    switch (border) {
    case HFSBI_LINE_BEGIN: return (place & HFSBI_AT_BEGIN) != 0;
    case HFSBI_LINE_END: return (place & HFSBI_AT_END) != 0;
    case HFSBI_WORD_BORDER: return before != after;
    case HFSBI_WORD_INSIDE: return before == after;
    case HFSBI_WORD_BEGIN: return !before && after;
    default: return before && !after;
    }
}

static bool hfsbi_states_add(hfsbi_states *set, uint32_t state, size_t begin) {
    uint32_t at = set->sparse[state];
    if (at < set->count && set->dense[at] == state) return false;
    set->sparse[state] = set->count;
    set->dense[set->count] = state;
    set->begin[set->count++] = begin;
    return true;
}

static void hfsbi_states_follow(hfsbi_runner *runner, hfsbi_states *set,
                                uint32_t state, size_t begin, unsigned place,
                                bool open) {
    const hfsbi_state *states = runner->program->states;
    uint32_t          *stack = runner->stack;
    size_t             depth = 0;
    /* each is added once before it is pushed: the stack cannot overflow */
    if (!hfsbi_states_add(set, state, begin)) return;
    for (stack[depth++] = state; depth > 0;) {
        const hfsbi_state *s = &states[stack[--depth]];
        if (s->op == HFSBI_OP_SPLIT) {
            if (hfsbi_states_add(set, s->other, begin))
                stack[depth++] = s->other;
        } else if (s->op == HFSBI_OP_ASSERT) {
            if (open && s->arg != HFSBI_LINE_BEGIN) continue;
            if (!hfsbi_border_holds(s->arg, place)) continue;
        } else {
            continue;
        }
        if (hfsbi_states_add(set, s->out, begin)) stack[depth++] = s->out;
    }
}

static bool hfsbi_state_step(const hfsbi_program *program, uint32_t state,
                             unsigned char byte, uint32_t *out) {
    const hfsbi_state *s = &program->states[state];
    uint32_t           target;
    if (s->op == HFSBI_OP_BYTE) {
        *out = s->out;
        return s->arg == byte;
    }
    if (s->op != HFSBI_OP_CLASS ||
        !hfsbi_node_step(program, s->arg, byte, &target))
        return false;
    *out = target == HFSBI_EDGE_END ? s->out : state + target - s->arg;
    return true;
}

HFSBI_FN bool hfsbi_runner_stops(hfsbi_runner *r, size_t work) {
    r->work += work;
    if (r->work < HFSBI_REGEX_ASKS || r->stopped) return r->stopped;
    r->work = 0;
    r->stopped = r->cancelled && r->cancelled(r->user);
    return r->stopped;
}

/* ---- places ---- */

/* Whether the character that ends at pos is one of a word. */
static bool hfsbi_word_before(hfsb_str text, size_t pos) {
    size_t        back;
    unsigned long code;
    bool          valid;
    for (back = 1; back <= 4 && back <= pos; back++) {
        unsigned char c = (unsigned char)text.ptr[pos - back];
        if (c >= 0x80 && c < 0xC0) continue;
        return hfsb_utf8_step(text, pos - back, &code, &valid) == back &&
               valid && hfsbi_regex_is_word((uint32_t)code);
    }
    return false;
}

static unsigned hfsbi_regex_place(const hfsbi_program *program, hfsb_str text,
                                  size_t pos) {
    unsigned      place = 0;
    unsigned long code;
    bool          valid;
    if (pos == 0) place |= HFSBI_AT_BEGIN;
    if (pos == text.len) place |= HFSBI_AT_END;
    if (!program->words) return place;
    if (hfsbi_word_before(text, pos)) place |= HFSBI_AT_PREV_WORD;
    if (pos < text.len) {
        hfsb_utf8_step(text, pos, &code, &valid);
        if (valid && hfsbi_regex_is_word((uint32_t)code))
            place |= HFSBI_AT_NEXT_WORD;
    }
    return place;
}

/* ---- leftmost-longest ---- */

typedef struct hfsbi_best {
    bool   found;
    size_t begin, end;
} hfsbi_best;

/* Keeps a match at pos when it is better than the best so far. */
static void hfsbi_best_offer(hfsbi_best *best, const hfsbi_program *program,
                             const hfsbi_states *set, size_t pos) {
    uint32_t i;
    for (i = 0; i < set->count; i++) {
        if (program->states[set->dense[i]].op != HFSBI_OP_MATCH) continue;
        if (!best->found || set->begin[i] <= best->begin) {
            best->found = true;
            best->begin = set->begin[i];
            best->end = pos;
        }
        return; /* there is one such state, and it was met first by the
                   thread that began first */
    }
}

static void hfsbi_states_swap(hfsbi_runner *r) {
    hfsbi_states other = r->now;
    r->now = r->then;
    r->then = other;
}

/* Reads the byte at pos: what comes after it is in r->now. */
static void hfsbi_nfa_step(hfsbi_runner *r, hfsb_str text, size_t pos,
                           const hfsbi_best *best) {
    unsigned place = hfsbi_regex_place(r->program, text, pos + 1);
    uint32_t i, out;
    r->then.count = 0;
    for (i = 0; i < r->now.count; i++) {
        if (best->found && r->now.begin[i] > best->begin) break;
        if (hfsbi_state_step(r->program, r->now.dense[i],
                             (unsigned char)text.ptr[pos], &out))
            hfsbi_states_follow(r, &r->then, out, r->now.begin[i], place,
                                false);
    }
    hfsbi_states_swap(r);
}

HFSBI_FN bool hfsbi_nfa_find(hfsbi_runner *r, hfsb_str text, size_t from,
                             bool any, size_t *begin, size_t *end) {
    hfsbi_best    best = HFSB_INIT;
    size_t        pos, border = from;
    unsigned long code;
    bool          valid;
    r->now.count = 0;
    for (pos = from;; pos++) {
        /* a match begins at a character, never inside of one; threads stay
           in the order of their beginnings, so the first in wins */
        if (pos == border) {
            if (!best.found)
                hfsbi_states_follow(r, &r->now, r->program->start, pos,
                                    hfsbi_regex_place(r->program, text, pos),
                                    false);
            if (pos < text.len) {
                size_t n = hfsb_utf8_step(text, pos, &code, &valid);
                border += valid ? n : 1;
            }
        }
        hfsbi_best_offer(&best, r->program, &r->now, pos);
        if (pos >= text.len || (best.found && any)) break;
        if (r->now.count == 0 && best.found) break;
        if (hfsbi_runner_stops(r, r->now.count + 1u)) return false;
        hfsbi_nfa_step(r, text, pos, &best);
    }
    *begin = best.begin;
    *end = best.end;
    return best.found;
}

/* True when one of the states reads something: more could follow. */
static bool hfsbi_states_read(const hfsbi_program *program,
                              const hfsbi_states  *set) {
    uint32_t i;
    for (i = 0; i < set->count; i++) {
        uint32_t op = program->states[set->dense[i]].op;
        if (op == HFSBI_OP_BYTE || op == HFSBI_OP_CLASS) return true;
    }
    return false;
}

HFSBI_FN bool hfsbi_nfa_whole(hfsbi_runner *r, hfsb_str text, bool beginning) {
    hfsbi_best best = HFSB_INIT;
    size_t     pos;
    r->now.count = 0;
    hfsbi_states_follow(r, &r->now, r->program->start, 0, 0, false);
    for (pos = 0; pos < text.len && r->now.count > 0; pos++)
        hfsbi_nfa_step(r, text, pos, &best);
    if (beginning) {
        hfsbi_nfa_step(r, HFSB_LIT("/"), 0, &best);
        return hfsbi_states_read(r->program, &r->now);
    }
    hfsbi_best_offer(&best, r->program, &r->now, pos);
    return best.found;
}

/* ==== regex dfa ==== */

/* runs a program through a table that is filled in as the text
   needs it: each set of states that occurs is a row, and a byte costs one
   look-up.

   A row stands for the states before the next byte is known; borders that
   depend on it ($ and those of words) are decided when it is read. A CR is
   held back until what follows it tells whether it ends the line. */

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

/* Reads lines of text from *at, the beginning of one, on, up to the first in
   which the program matches; *at is then in that line (or its line feed), or
   where it could not go on. */
static hfsbi_scan hfsbi_dfa_lines(hfsbi_runner *r, hfsb_str text, size_t *at) {
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

/* ---- making ---- */

/* A pattern that is taken as it is, as a tree: only for the sake of case. */
static uint32_t hfsbi_regex_plain(hfsbi_syntax *tree, hfsb_str pattern) {
    uint32_t list = hfsbi_syntax_add(tree, HFSBI_SYNTAX_LIST, 0);
    size_t   at = 0;
    while (at < pattern.len && tree->program->status == HFSB_OK) {
        unsigned long code;
        bool          valid;
        size_t        n = hfsb_utf8_step(pattern, at, &code, &valid), i;
        for (i = 0; !valid && i < n; i++)
            hfsbi_syntax_append(
                tree, list,
                hfsbi_syntax_add(tree, HFSBI_SYNTAX_BYTE,
                                 (unsigned char)pattern.ptr[at + i]));
        if (valid)
            hfsbi_syntax_append(tree, list,
                                hfsbi_syntax_char(tree, (uint32_t)code));
        at += n;
    }
    return list;
}

static hfsb_status hfsbi_regex_syntax(hfsb_regex *re, hfsbi_syntax *tree,
                                      hfsb_str               pattern,
                                      const hfsb_regex_opts *opts,
                                      hfsb_err              *err) {
    uint32_t    root = 0;
    hfsb_status st = HFSB_OK;
    tree->fold = opts->ignore_case;
    if (opts->literal && pattern.len > HFSBI_REGEX_PATTERN)
        return hfsbi_fail(err, HFSB_LIMIT, HFSBI_REGEX_PATTERN,
                          "A text to be found in any case may have at most "
                          "65,536 bytes.");
    if (opts->literal) root = hfsbi_regex_plain(tree, pattern);
    else st = hfsbi_regex_parse(tree, pattern, &root, err);
    if (st != HFSB_OK) return st;
    if (re->program.status == HFSB_OK)
        re->program.status =
            hfsbi_syntax_literal(tree, root, &re->literal, &re->pure);
    if (re->program.status == HFSB_OK && !re->pure)
        hfsbi_program_make(&re->program, tree, root);
    if (re->program.status == HFSB_LIMIT)
        return hfsbi_fail(err, HFSB_LIMIT, 0,
                          "The pattern needs more than %zu states once its "
                          "repeats are written out. Use smaller numbers in "
                          "{n,m}, or * and +.",
                          re->program.max_states);
    if (re->program.status != HFSB_OK)
        return hfsbi_fail_status(err, re->program.status, "the pattern");
    if (re->pure) return HFSB_OK;
    st = hfsbi_runner_init(&re->runner, &re->program);
    re->runner.cancelled = opts->cancelled;
    re->runner.user = opts->user;
    return st;
}

static hfsb_status hfsbi_regex_make(hfsb_regex *re, hfsb_str pattern,
                                    const hfsb_regex_opts *opts,
                                    hfsb_err              *err) {
    hfsbi_syntax tree;
    hfsb_status  st;
    if (opts->literal && !opts->ignore_case) {
        re->pure = true;
        re->never = hfsb_str_find_byte(pattern, '\n') != HFSB_NPOS;
        return hfsb_buf_append(&re->literal, pattern);
    }
    hfsbi_syntax_init(&tree, &re->program);
    st = hfsbi_regex_syntax(re, &tree, pattern, opts, err);
    hfsbi_syntax_free(&tree);
    return st;
}

hfsb_status hfsb_regex_open(hfsb_str pattern, const hfsb_regex_opts *opts,
                            hfsb_regex **out, hfsb_err *err) {
    hfsb_regex_opts none = HFSB_INIT;
    hfsb_regex     *re;
    hfsb_status     st;
    if (!opts) opts = &none;
    *out = NULL;
    re = (hfsb_regex *)hfsbi_array(&opts->alloc, 1, sizeof *re);
    if (!re) return hfsbi_fail_status(err, HFSB_NOMEM, "the pattern");
    memset(re, 0, sizeof *re);
    re->program.alloc = re->literal.alloc = opts->alloc;
    re->program.max_states =
        opts->max_states ? opts->max_states : HFSBI_REGEX_STATES;
    if (err) memset(err, 0, sizeof *err);
    st = hfsbi_regex_make(re, pattern, opts, err);
    if (st == HFSB_OK) {
        *out = re;
        return hfsbi_ok(err);
    }
    if (err && err->code == HFSB_OK) hfsbi_fail_status(err, st, "the pattern");
    hfsb_regex_close(re);
    return st;
}

void hfsb_regex_close(hfsb_regex *regex) {
    hfsb_alloc alloc;
    if (!regex) return;
    alloc = regex->program.alloc;
    hfsbi_runner_free(&regex->runner);
    hfsbi_program_free(&regex->program);
    hfsb_buf_free(&regex->literal);
    hfsbi_array_free(&alloc, regex, 1, sizeof *regex);
}

/* ---- in a line ---- */

bool hfsb_regex_find(hfsb_regex *regex, hfsb_str text, size_t from,
                     size_t *begin, size_t *end) {
    hfsb_str literal = hfsb_buf_str(&regex->literal);
    size_t   hit;
    if (from > text.len || regex->never) return false;
    hit = hfsb_str_find(hfsb_str_slice(text, from, text.len), literal);
    if (hit == HFSB_NPOS) return false;
    if (regex->pure) {
        *begin = from + hit;
        *end = *begin + literal.len;
        return true;
    }
    return hfsbi_nfa_find(&regex->runner, text, from, false, begin, end);
}

/* ---- among lines ---- */

/* The line that holds text[at], or that this line feed ends; not before
   `from`, where a line begins. *next: where the one behind it begins. */
static hfsb_str hfsbi_regex_around(hfsb_str text, size_t from, size_t at,
                                   size_t *next) {
    size_t      begin = at, end;
    const void *feed =
        at < text.len ? memchr(text.ptr + at, '\n', text.len - at) : NULL;
    while (begin > from && text.ptr[begin - 1] != '\n') begin--;
    end = feed ? (size_t)((const char *)feed - text.ptr) : text.len;
    *next = feed ? end + 1 : end;
    if (feed && end > begin && text.ptr[end - 1] == '\r') end--;
    return hfsb_str_slice(text, begin, end);
}

/* The first line that matches from `from` on, and before `to`, where a line
   begins or the text ends, without looking for the literal. */
static bool hfsbi_regex_plod(hfsb_regex *re, hfsb_str text, size_t from,
                             size_t to, hfsb_str *line) {
    hfsb_str part = hfsb_str_slice(text, 0, to);
    while (from < to) {
        size_t     at = from, next, begin, end;
        hfsbi_scan scan = HFSBI_SCAN_CANNOT;
        if (re->runner.without == 0)
            scan = hfsbi_dfa_lines(&re->runner, part, &at);
        if (scan == HFSBI_SCAN_NONE) return false;
        *line = hfsbi_regex_around(part, from, at, &next);
        if (scan == HFSBI_SCAN_FOUND) return true;
        if (hfsbi_nfa_find(&re->runner, *line, 0, true, &begin, &end))
            return true;
        if (re->runner.stopped) return false;
        if (re->runner.without > 0) {
            size_t done = next - from;
            re->runner.without -=
                done < re->runner.without ? done : re->runner.without;
        }
        from = next;
    }
    return false;
}

/* True when places of the literal come so close to each other, and to no
   avail, that it is quicker to read on than to look for them. */
static bool hfsbi_regex_is_crowded(hfsb_regex *re, size_t distance) {
    re->crowd = distance < 200 ? re->crowd + 1 : 0;
    if (re->crowd < 16) return false;
    re->crowd = 0;
    return true;
}

/* Where the line ends that is `size` bytes on from `from`. */
static size_t hfsbi_regex_ahead(hfsb_str text, size_t from, size_t size) {
    size_t next;
    if (text.len - from <= size) return text.len;
    hfsbi_regex_around(text, from + size, from + size, &next);
    return next;
}

/* By the literal: only the lines that hold it are looked at. */
static bool hfsbi_regex_jump(hfsb_regex *re, hfsb_str text, size_t from,
                             hfsb_str *line) {
    hfsb_str literal = hfsb_buf_str(&re->literal);
    while (from < text.len && !re->runner.stopped) {
        size_t hit, next, at;
        if (re->straight) {
            next = hfsbi_regex_ahead(text, from, re->straight);
            if (hfsbi_regex_plod(re, text, from, next, line)) return true;
            from = next;
            re->straight = 0;
            continue;
        }
        hit = hfsb_str_find(hfsb_str_slice(text, from, text.len), literal);
        if (hit == HFSB_NPOS) return false;
        at = from + hit;
        *line = hfsbi_regex_around(text, from, at, &next);
        if (re->pure) {
            /* unless it takes in the CR at the line's end */
            if (at + literal.len <= (size_t)(line->ptr - text.ptr) + line->len)
                return true;
        } else if (hfsbi_regex_plod(re, text, (size_t)(line->ptr - text.ptr),
                                    next, line)) {
            return true;
        }
        if (!re->pure && hfsbi_regex_is_crowded(re, next - from))
            re->straight = 1u << 16;
        from = next;
    }
    return false;
}

bool hfsb_regex_line(hfsb_regex *regex, hfsb_str text, size_t from,
                     size_t *begin, size_t *end) {
    hfsb_str line;
    bool     found;
    if (from >= text.len || regex->never) return false;
    if (regex->pure || regex->literal.len > 0)
        found = hfsbi_regex_jump(regex, text, from, &line);
    else found = hfsbi_regex_plod(regex, text, from, text.len, &line);
    if (!found) return false;
    *begin = (size_t)(line.ptr - text.ptr);
    *end = *begin + line.len;
    return true;
}
