/* regex_nfa.c - runs a program state by state: slower than the table, but it
   needs no more memory, knows letters beyond ASCII, and tells where a match
   begins. Depends on: base, utf8, regex_class, regex_program. */
#include "regex_parts.h"

HFSBI_FN bool hfsbi_border_holds(uint32_t border, unsigned place) {
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

HFSBI_FN void hfsbi_states_follow(hfsbi_runner *runner, hfsbi_states *set,
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

HFSBI_FN bool hfsbi_state_step(const hfsbi_program *program, uint32_t state,
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

HFSBI_FN bool hfsbi_states_read(const hfsbi_program *program,
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
