/* regex.c - running a program, and regular expressions for lines.

   A program is run in one of two ways, both in time proportional to the text:
   - state by state (nfa): slower, but it needs no more memory, knows letters
     beyond ASCII, and finds where a match begins;
   - through a table (dfa): each set of states that occurs is a row, filled as
     the text needs it, and a byte costs one look-up. A row stands for the
     states before the next byte is known; borders that depend on that byte ($
     and those of words) are decided when it is read. A CR is held back until
     the next byte shows whether it ends the line.

   The table is bounded. When it is full it is flushed; when that happens too
   often to pay, the next megabyte is read without it (bypass).

   A search over many lines first looks for the literal that every match
   contains, and runs the program only on lines that contain it. When the
   literal is frequent and useless, the next lines are scanned directly. */
#include "pattern_private.h"

/* Properties of a place in the text. */
#define HFSBI_AT_PREV_WORD 1u
#define HFSBI_AT_NEXT_WORD 2u
#define HFSBI_AT_BEGIN     4u
#define HFSBI_AT_END       8u

/* States visited between two calls of `cancelled`. */
#define HFSBI_REGEX_ASKS (1u << 20)

/* ---- state by state ---- */

/* True when the border is at a place with these HFSBI_AT_* properties. */
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

/* Adds a state; false when it is in the set already. */
static bool hfsbi_states_add(hfsbi_states *set, uint32_t state, size_t begin) {
    uint32_t at = set->sparse[state];
    if (at < set->count && set->dense[at] == state) return false;
    set->sparse[state] = set->count;
    set->dense[set->count] = state;
    set->begin[set->count++] = begin;
    return true;
}

/* Adds a state and all that can be reached from it without reading a byte.
   `open`: the next byte is unknown, so only the start of a line is decided. */
static void hfsbi_states_follow(hfsbi_runner *runner, hfsbi_states *set,
                                uint32_t state, size_t begin, unsigned place,
                                bool open) {
    const hfsbi_state *states = runner->program->states;
    uint32_t          *stack = runner->stack;
    size_t             depth = 0;
    /* a state is pushed only once, when added: the stack cannot overflow */
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

/* The successor of a state by a byte; false when there is none. */
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

/* Counts states visited; true when the search was cancelled. */
static bool hfsbi_runner_stops(hfsbi_runner *r, size_t work) {
    r->work += work;
    if (r->work < HFSBI_REGEX_ASKS || r->stopped) return r->stopped;
    r->work = 0;
    r->stopped = r->cancelled && r->cancelled(r->user);
    return r->stopped;
}

/* True when a word character ends at pos. Runs for every byte of a slow
   search, and looks back at most four bytes. */
static bool hfsbi_word_before(hfsb_str text, size_t pos) {
    size_t        first = pos > 4 ? pos - 4 : 0, at = pos;
    unsigned long code;
    bool          valid;
    if (!pos) return false;
    do at--;
    while (at > first && ((unsigned char)text.ptr[at] & 0xC0u) == 0x80u);
    return hfsb_utf8_step(text, at, &code, &valid) == pos - at && valid &&
           hfsbi_regex_is_word((uint32_t)code);
}

/* The HFSBI_AT_* properties of the place before text[pos]. Words are examined
   only when the program asserts their borders. */
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

/* The leftmost-longest match so far. */
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
        return; /* there is one such state, reached first by the match that
                   began first */
    }
}

static void hfsbi_states_swap(hfsbi_runner *r) {
    hfsbi_states other = r->now;
    r->now = r->then;
    r->then = other;
}

/* Reads the byte at pos; r->now becomes the states after it. */
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
        /* a match begins at a character, never inside one, unless the program
           is raw; states stay in the order of their match starts, so the first
           one wins */
        if (pos == border) {
            if (!best.found)
                hfsbi_states_follow(r, &r->now, r->program->start, pos,
                                    hfsbi_regex_place(r->program, text, pos),
                                    false);
            if (pos < text.len) {
                size_t n = hfsb_utf8_step(text, pos, &code, &valid);
                border += valid && !r->program->raw ? n : 1;
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

/* True when one of the states reads a byte, so that more could follow. */
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

/* ---- the table ---- */

/* Instead of a row. */
#define HFSBI_DFA_UNKNOWN 0xFFFFFFFFu
#define HFSBI_DFA_MATCH   0xFFFFFFFEu
#define HFSBI_DFA_DEAD    0xFFFFFFFDu /* no match is possible from here */
#define HFSBI_DFA_CANNOT  0xFFFFFFFCu /* the table cannot decide this */
#define HFSBI_DFA_SPECIAL 0xFFFFFFF0u /* the lowest of such values */

/* Flags of a row. */
#define HFSBI_DFA_WORD  1u /* the last byte was part of a word */
#define HFSBI_DFA_CR    2u /* a CR was seen and is not read yet */
#define HFSBI_DFA_BEGIN 4u /* at the beginning of the line */

typedef struct hfsbi_table_row {
    uint32_t key, len; /* its states: keys[key .. key+len) */
    uint32_t flags, hash;
    uint32_t chain; /* next row of the bucket, plus one; 0: none */
} hfsbi_table_row;

#define HFSBI_DFA_BUCKETS 1024u

/* Bytes of a runner's block for each state. */
#define HFSBI_RUNNER_STATE (2 * sizeof(size_t) + 5 * sizeof(uint32_t))

typedef enum hfsbi_scan {
    HFSBI_SCAN_NONE,
    HFSBI_SCAN_FOUND,
    HFSBI_SCAN_CANNOT /* the table cannot decide this */
} hfsbi_scan;

/* Both sets and the stack have room for every state once, in one block. */
HFSBI_FN hfsb_status hfsbi_runner_init(hfsbi_runner        *r,
                                       const hfsbi_program *program) {
    size_t    count = program->state_count;
    size_t   *begin;
    uint32_t *ids;
    memset(r, 0, sizeof *r);
    r->program = program;
    r->alloc = program->alloc;
    r->table.columns = program->kinds + 1;
    r->table.max_bytes = HFSBI_REGEX_CACHE;
    r->table.start = HFSBI_DFA_UNKNOWN;
    r->block = hfsbi_array(&r->alloc, count, HFSBI_RUNNER_STATE);
    if (!r->block) return HFSB_NOMEM;
    memset(r->block, 0, count * HFSBI_RUNNER_STATE);
    begin = (size_t *)r->block;
    r->now.begin = begin;
    r->then.begin = begin + count;
    ids = (uint32_t *)(void *)(begin + 2 * count);
    r->now.dense = ids;
    r->now.sparse = ids + count;
    r->then.dense = ids + 2 * count;
    r->then.sparse = ids + 3 * count;
    r->stack = ids + 4 * count;
    return HFSB_OK;
}

HFSBI_FN void hfsbi_runner_free(hfsbi_runner *r) {
    hfsbi_table *d = &r->table;
    if (!r->program) return;
    hfsbi_array_free(&r->alloc, r->block, r->program->state_count,
                     HFSBI_RUNNER_STATE);
    hfsbi_array_free(&r->alloc, d->next, d->next_cap, sizeof *d->next);
    hfsbi_array_free(&r->alloc, d->rows, d->row_cap, sizeof *d->rows);
    hfsbi_array_free(&r->alloc, d->keys, d->key_cap, sizeof *d->keys);
    hfsbi_array_free(&r->alloc, d->buckets, HFSBI_DFA_BUCKETS,
                     sizeof *d->buckets);
}

/* Grows one of the arrays for one more row; NULL beyond the bound. */
static void *hfsbi_dfa_grow(hfsbi_runner *r, void *ptr, size_t *cap,
                            size_t need, size_t size) {
    size_t bytes =
        r->table.row_count * (r->table.columns * sizeof *r->table.next +
                              sizeof *r->table.rows) +
        r->table.key_count * sizeof *r->table.keys;
    if (bytes > r->table.max_bytes && r->table.row_count > 1) return NULL;
    if (need <= *cap) return ptr;
    return hfsbi_array_grow(&r->alloc, ptr, cap, need, size);
}

/* Makes room for one more row with a key of that length; false beyond the
   bound or when out of memory. */
static bool hfsbi_dfa_room(hfsbi_runner *r, size_t key_len) {
    void *grown = r->table.buckets;
    if (!grown) {
        grown = hfsbi_array(&r->alloc, HFSBI_DFA_BUCKETS,
                            sizeof *r->table.buckets);
        if (!grown) return false;
        r->table.buckets = (uint32_t *)grown;
        memset(r->table.buckets, 0,
               HFSBI_DFA_BUCKETS * sizeof *r->table.buckets);
    }
    grown = hfsbi_dfa_grow(r, r->table.next, &r->table.next_cap,
                           (r->table.row_count + 1) * r->table.columns,
                           sizeof *r->table.next);
    if (!grown) return false;
    r->table.next = (uint32_t *)grown;
    grown = hfsbi_dfa_grow(r, r->table.rows, &r->table.row_cap,
                           r->table.row_count + 1, sizeof *r->table.rows);
    if (!grown) return false;
    r->table.rows = (hfsbi_table_row *)grown;
    grown = hfsbi_dfa_grow(r, r->table.keys, &r->table.key_cap,
                           r->table.key_count + key_len + 1,
                           sizeof *r->table.keys);
    if (!grown) return false;
    r->table.keys = (uint32_t *)grown;
    return true;
}

/* Empties the table. */
static void hfsbi_dfa_flush(hfsbi_runner *r) {
    if (r->table.read < r->table.row_count * 8) r->table.early++;
    else r->table.early = 0;
    if (r->table.early >= 4) { /* filling it costs more than it saves */
        r->table.bypass = 1u << 20;
        r->table.early = 0;
    }
    r->table.read = 0;
    r->table.flushes++;
    r->table.row_count = r->table.key_count = 0;
    r->table.start = HFSBI_DFA_UNKNOWN;
    if (r->table.buckets)
        memset(r->table.buckets, 0,
               HFSBI_DFA_BUCKETS * sizeof *r->table.buckets);
}

static int hfsbi_state_order(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Reduces the set to its key, in order: drops states that only lead to others
   in it. False: it contains the end of the program. */
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

/* The row of a set (whose order is lost), made if necessary. May flush the
   table. */
static uint32_t hfsbi_dfa_row(hfsbi_runner *r, hfsbi_states *set,
                              uint32_t flags) {
    hfsbi_table_row *s;
    uint32_t         hash, *bucket, at, row;
    size_t           bytes, i;
    if (!hfsbi_dfa_key(r->program, set)) return HFSBI_DFA_MATCH;
    if (set->count == 0 && r->program->whole) return HFSBI_DFA_DEAD;
    hash = hfsbi_dfa_hash(set, flags);
    bytes = set->count * sizeof *set->dense;
    for (at = r->table.buckets ? r->table.buckets[hash % HFSBI_DFA_BUCKETS]
                               : 0;
         at; at = s->chain) {
        s = &r->table.rows[at - 1];
        if (s->hash == hash && s->flags == flags && s->len == set->count &&
            !memcmp(r->table.keys + s->key, set->dense, bytes))
            return (at - 1) * (uint32_t)r->table.columns;
    }
    if (!hfsbi_dfa_room(r, set->count)) {
        if (r->table.row_count == 0) return HFSBI_DFA_CANNOT;
        hfsbi_dfa_flush(r);
        if (r->table.bypass || !hfsbi_dfa_room(r, set->count))
            return HFSBI_DFA_CANNOT;
    }
    bucket = &r->table.buckets[hash % HFSBI_DFA_BUCKETS];
    s = &r->table.rows[r->table.row_count];
    s->key = (uint32_t)r->table.key_count;
    s->len = set->count;
    s->flags = flags;
    s->hash = hash;
    s->chain = *bucket;
    if (bytes) memcpy(r->table.keys + r->table.key_count, set->dense, bytes);
    r->table.key_count += set->count;
    row = (uint32_t)(r->table.row_count * r->table.columns);
    for (i = 0; i < r->table.columns; i++)
        r->table.next[row + i] = HFSBI_DFA_UNKNOWN;
    *bucket = (uint32_t)++r->table.row_count;
    return row;
}

/* The row at the beginning of a line, or of the whole text. */
static uint32_t hfsbi_dfa_start(hfsbi_runner *r) {
    uint32_t row;
    if (r->table.start != HFSBI_DFA_UNKNOWN) return r->table.start;
    r->then.count = 0;
    hfsbi_states_follow(r, &r->then, r->program->start, 0, HFSBI_AT_BEGIN,
                        true);
    row = hfsbi_dfa_row(r, &r->then, HFSBI_DFA_BEGIN);
    if (row != HFSBI_DFA_CANNOT) r->table.start = row;
    return row;
}

/* Decides the borders in r->now at a place with these flags before it: r->then
   becomes all that can be reached. True: a match ends there. */
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

/* Reads a byte; r->now becomes the states after it. True when a match is
   certain; in lines only. */
static bool hfsbi_dfa_read(hfsbi_runner *r, uint32_t *flags,
                           unsigned char byte) {
    const hfsbi_program *p = r->program;
    uint32_t             i, out;
    bool                 word = p->words && hfsbi_regex_is_word(byte);
    if (hfsbi_dfa_decide(r, *flags, word ? HFSBI_AT_NEXT_WORD : 0) &&
        !p->whole)
        return true;
    hfsbi_states_swap(r);
    r->then.count = 0;
    for (i = 0; i < r->now.count; i++)
        if (hfsbi_state_step(p, r->now.dense[i], byte, &out))
            hfsbi_states_follow(r, &r->then, out, 0, 0, true);
    if (!p->whole) hfsbi_states_follow(r, &r->then, p->start, 0, 0, true);
    hfsbi_states_swap(r);
    *flags = word ? HFSBI_DFA_WORD : 0;
    for (i = 0; !p->whole && i < r->now.count; i++)
        if (p->states[r->now.dense[i]].op == HFSBI_OP_MATCH) return true;
    return false;
}

/* Loads the set of a row into r->now; returns its flags. */
static uint32_t hfsbi_dfa_load(hfsbi_runner *r, uint32_t row) {
    const hfsbi_table_row *s = &r->table.rows[row / r->table.columns];
    uint32_t               i;
    r->now.count = s->len;
    for (i = 0; i < s->len; i++) {
        r->now.dense[i] = r->table.keys[s->key + i];
        r->now.sparse[r->now.dense[i]] = i;
    }
    return s->flags;
}

/* The row after a column from the set in r->now, in lines. */
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

/* Computes the entry at row and column, and stores it. */
static uint32_t hfsbi_dfa_fill(hfsbi_runner *r, uint32_t row,
                               uint32_t column) {
    const hfsbi_program *p = r->program;
    uint32_t             flags = hfsbi_dfa_load(r, row), next;
    size_t               flushes = r->table.flushes;
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
    /* flushed meanwhile: the row no longer exists */
    if (r->table.flushes != flushes) return next;
    /* running out of memory is not a property of the entry */
    if (next != HFSBI_DFA_CANNOT ||
        (p->words && column < p->kinds && p->sample[column] >= 0x80))
        r->table.next[row + column] = next;
    return next;
}

/* Reads lines from *at, the beginning of one, up to the first that matches.
   *at is then in that line (or at its line feed), or where the table could not
   decide. */
static hfsbi_scan hfsbi_dfa_lines(hfsbi_runner *r, hfsb_str text, size_t *at) {
    const unsigned char *base = (const unsigned char *)text.ptr;
    const unsigned char *p = base + *at, *end = base + text.len, *from = p;
    const unsigned char *map = r->program->map;
    const uint32_t      *next;
    uint32_t             row = hfsbi_dfa_start(r), n;
    if (row == HFSBI_DFA_MATCH) return HFSBI_SCAN_FOUND;
    if (row == HFSBI_DFA_CANNOT) return HFSBI_SCAN_CANNOT;
    for (next = r->table.next;;) {
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
                r->table.read += (size_t)(p - from);
                from = p;
                n = hfsbi_dfa_fill(r, row, map[*p]);
                next = r->table.next;
            }
        } else {
            if (p == base || p[-1] == '\n') break;
            n = next[row + r->program->kinds];
            if (n == HFSBI_DFA_UNKNOWN)
                n = hfsbi_dfa_fill(r, row, r->program->kinds);
        }
        if (n >= HFSBI_DFA_SPECIAL || p == end) {
            *at = (size_t)(p - base);
            r->table.read += (size_t)(p - from);
            if (n == HFSBI_DFA_CANNOT) return HFSBI_SCAN_CANNOT;
            return n == HFSBI_DFA_MATCH ? HFSBI_SCAN_FOUND : HFSBI_SCAN_NONE;
        }
        row = n;
        p++;
    }
    r->table.read += (size_t)(p - from);
    return HFSBI_SCAN_NONE;
}

/* hfsbi_nfa_whole() through the table. */
static hfsbi_scan hfsbi_dfa_whole(hfsbi_runner *r, hfsb_str text,
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
        if (r->table.next[row + column] != HFSBI_DFA_UNKNOWN)
            row = r->table.next[row + column];
        else row = hfsbi_dfa_fill(r, row, column);
    }
    r->table.read += text.len;
    if (row == HFSBI_DFA_CANNOT) return HFSBI_SCAN_CANNOT;
    if (!beginning || row == HFSBI_DFA_DEAD)
        return row == HFSBI_DFA_MATCH ? HFSBI_SCAN_FOUND : HFSBI_SCAN_NONE;
    hfsbi_dfa_load(r, row);
    return hfsbi_states_read(r->program, &r->now) ? HFSBI_SCAN_FOUND
                                                  : HFSBI_SCAN_NONE;
}

HFSBI_FN bool hfsbi_runner_whole(hfsbi_runner *r, hfsb_str text,
                                 bool beginning) {
    hfsbi_scan scan = HFSBI_SCAN_CANNOT;
    r->table.bypass -= r->table.bypass < text.len ? r->table.bypass : text.len;
    if (!r->table.bypass) scan = hfsbi_dfa_whole(r, text, beginning);
    if (scan == HFSBI_SCAN_CANNOT) return hfsbi_nfa_whole(r, text, beginning);
    return scan == HFSBI_SCAN_FOUND;
}

/* ---- compiling ---- */

/* A pattern that is only a literal needs no program: hfsb_str_find() searches
   for it. */
static hfsb_status hfsbi_regex_compile(hfsb_regex *re, hfsbi_syntax *tree,
                                       hfsb_str               pattern,
                                       const hfsb_regex_opts *opts,
                                       hfsb_err              *err) {
    hfsbi_program *p = &re->program;
    uint32_t       root = 0;
    hfsb_status    st;
    tree->fold = opts->ignore_case;
    p->raw = opts->literal && hfsb_utf8_validate(pattern) < pattern.len;
    st = hfsbi_regex_parse(tree, pattern, opts->literal, &root, err);
    if (st != HFSB_OK) return st;
    if (p->status == HFSB_OK)
        p->status = hfsbi_syntax_literal(tree, root, &re->literal, &re->pure);
    if (!re->pure) hfsbi_program_make(p, tree, root);
    if (p->status == HFSB_LIMIT)
        return hfsbi_fail(err, HFSB_LIMIT, 0,
                          "The pattern needs more than %zu states once its "
                          "repeats are written out. Use smaller numbers in "
                          "{n,m}, or * and +.",
                          p->max_states);
    if (p->status != HFSB_OK || re->pure) return p->status;
    st = hfsbi_runner_init(&re->runner, p);
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
    st = hfsbi_regex_compile(re, &tree, pattern, opts, err);
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

/* ---- searching a line ---- */

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

/* ---- searching many lines ---- */

/* The line that contains text[at], or ends with it, but does not begin before
   `from`. *next is the beginning of the following line. */
static hfsb_str hfsbi_regex_line_at(hfsb_str text, size_t from, size_t at,
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

/* Finds the first line that matches in [from, to), which consists of whole
   lines, without looking for the literal. */
static bool hfsbi_regex_scan(hfsb_regex *re, hfsb_str text, size_t from,
                             size_t to, hfsb_str *line) {
    hfsb_str part = hfsb_str_slice(text, 0, to);
    while (from < to) {
        size_t     at = from, next, begin, end;
        hfsbi_scan scan = HFSBI_SCAN_CANNOT;
        if (re->runner.table.bypass == 0)
            scan = hfsbi_dfa_lines(&re->runner, part, &at);
        if (scan == HFSBI_SCAN_NONE) return false;
        *line = hfsbi_regex_line_at(part, from, at, &next);
        if (scan == HFSBI_SCAN_FOUND) return true;
        if (hfsbi_nfa_find(&re->runner, *line, 0, true, &begin, &end))
            return true;
        if (re->runner.stopped) return false;
        at = next - from;
        if (at > re->runner.table.bypass) at = re->runner.table.bypass;
        re->runner.table.bypass -= at;
        from = next;
    }
    return false;
}

/* After a useless occurrence of the literal, `distance` bytes after the last:
   when they are frequent, scanning directly is faster for a while. */
static void hfsbi_regex_count_miss(hfsb_regex *re, size_t distance) {
    re->misses = distance < 200 ? re->misses + 1 : 0;
    if (re->misses < 16) return;
    re->misses = 0;
    re->direct = 1u << 16;
}

/* The end of the line that contains the byte `size` after `from`. */
static size_t hfsbi_regex_line_end(hfsb_str text, size_t from, size_t size) {
    size_t next;
    if (text.len - from <= size) return text.len;
    hfsbi_regex_line_at(text, from + size, from + size, &next);
    return next;
}

/* Finds the first line from `from` on that contains the literal and matches. */
static bool hfsbi_regex_scan_literal(hfsb_regex *re, hfsb_str text,
                                     size_t from, hfsb_str *line) {
    hfsb_str literal = hfsb_buf_str(&re->literal);
    while (from < text.len && !re->runner.stopped) {
        size_t hit, next, at;
        if (re->direct) {
            next = hfsbi_regex_line_end(text, from, re->direct);
            if (hfsbi_regex_scan(re, text, from, next, line)) return true;
            from = next;
            re->direct = 0;
            continue;
        }
        hit = hfsb_str_find(hfsb_str_slice(text, from, text.len), literal);
        if (hit == HFSB_NPOS) return false;
        at = from + hit;
        *line = hfsbi_regex_line_at(text, from, at, &next);
        if (re->pure) {
            /* unless it includes the CR at the end of the line */
            if (at + literal.len <= (size_t)(line->ptr - text.ptr) + line->len)
                return true;
        } else if (hfsbi_regex_scan(re, text, (size_t)(line->ptr - text.ptr),
                                    next, line)) {
            return true;
        }
        if (!re->pure) hfsbi_regex_count_miss(re, next - from);
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
        found = hfsbi_regex_scan_literal(regex, text, from, &line);
    else found = hfsbi_regex_scan(regex, text, from, text.len, &line);
    if (!found) return false;
    *begin = (size_t)(line.ptr - text.ptr);
    *end = *begin + line.len;
    return true;
}
