/* regex_program.c - the tree of a pattern, and the states made of it.
   Depends on: base, utf8, regex_class. */
#include "regex_parts.h"

/* ---- the tree ---- */

HFSBI_FN void hfsbi_syntax_init(hfsbi_syntax *tree, hfsbi_program *program) {
    memset(tree, 0, sizeof *tree);
    tree->program = program;
    tree->set.alloc = program->alloc;
    hfsbi_syntax_add(tree, HFSBI_SYNTAX_EMPTY, 0);
}

HFSBI_FN void hfsbi_syntax_free(hfsbi_syntax *tree) {
    const hfsb_alloc *alloc = &tree->program->alloc;
    hfsbi_array_free(alloc, tree->nodes, tree->cap, sizeof *tree->nodes);
    hfsbi_array_free(alloc, tree->set.items, tree->set.cap,
                     sizeof *tree->set.items);
}

HFSBI_FN uint32_t hfsbi_syntax_add(hfsbi_syntax *tree, hfsbi_syntax_kind kind,
                                   uint32_t value) {
    hfsbi_syntax_node *n;
    void              *grown =
        hfsbi_array_grow(&tree->program->alloc, tree->nodes, &tree->cap,
                         tree->count + 1, sizeof *tree->nodes);
    if (!grown) {
        tree->program->status = HFSB_NOMEM;
        return 0;
    }
    tree->nodes = (hfsbi_syntax_node *)grown;
    n = &tree->nodes[tree->count];
    memset(n, 0, sizeof *n);
    n->kind = kind;
    n->value = value;
    return (uint32_t)tree->count++;
}

/* True when min and max are those of * + ? or of no repeat at all: then a
   repeat of a repeat is one. */
static bool hfsbi_repeat_is_simple(uint32_t min, uint32_t max) {
    return min <= 1 && (max == 1 || max == HFSBI_SYNTAX_MANY);
}

HFSBI_FN uint32_t hfsbi_syntax_repeat(hfsbi_syntax *tree, uint32_t child,
                                      uint32_t min, uint32_t max) {
    uint32_t id;
    if (tree->program->status != HFSB_OK) return 0;
    if (min == 1 && max == 1) return child;
    if (hfsbi_repeat_is_simple(min, max)) {
        hfsbi_syntax_node *n = &tree->nodes[child];
        if (n->kind == HFSBI_SYNTAX_REPEAT &&
            hfsbi_repeat_is_simple(n->min, n->max)) {
            n->min *= min;
            if (max > n->max) n->max = max;
            return child;
        }
    }
    id = hfsbi_syntax_add(tree, HFSBI_SYNTAX_REPEAT, 0);
    if (!id) return 0;
    tree->nodes[id].min = min;
    tree->nodes[id].max = max;
    tree->nodes[id].child = child;
    return id;
}

HFSBI_FN uint32_t hfsbi_syntax_class(hfsbi_syntax *tree, bool negate,
                                     uint32_t never) {
    hfsbi_ranges *set = &tree->set;
    uint32_t      class_id;
    if (tree->fold) hfsbi_ranges_fold(set);
    hfsbi_ranges_sort(set);
    if (negate) hfsbi_ranges_negate(set);
    hfsbi_ranges_remove(set, 0xD800, 0xDFFF);
    hfsbi_ranges_remove(set, never, never);
    if (set->failed) tree->program->status = HFSB_NOMEM;
    if (tree->program->status != HFSB_OK) return 0;
    class_id = hfsbi_program_class(tree->program, set);
    set->count = 0;
    return hfsbi_syntax_add(tree, HFSBI_SYNTAX_CLASS, class_id);
}

HFSBI_FN uint32_t hfsbi_syntax_char(hfsbi_syntax *tree, uint32_t code) {
    uint32_t other = tree->fold ? hfsbi_other_case(code) : code;
    /* a line feed is in no line: a class without characters */
    if (other == code && (code != '\n' || tree->program->whole))
        return hfsbi_syntax_add(tree, HFSBI_SYNTAX_CHAR, code);
    hfsbi_ranges_add(&tree->set, code, code);
    return hfsbi_syntax_class(tree, false, '\n');
}

HFSBI_FN void hfsbi_syntax_append(hfsbi_syntax *tree, uint32_t list,
                                  uint32_t child) {
    if (!list || !child) return;
    tree->nodes[child].sibling = tree->nodes[list].child;
    tree->nodes[list].child = child;
}

/* ---- the text that every match holds ---- */

typedef struct hfsbi_run {
    const hfsbi_syntax *tree;
    char               *bytes; /* filled from its end */
    size_t              size, len;
    hfsb_buf           *best;
    bool                pure;
    hfsb_status         status;
} hfsbi_run;

static void hfsbi_run_close(hfsbi_run *run) {
    hfsb_str s = hfsb_str_make(run->bytes + run->size - run->len, run->len);
    if (run->len > run->best->len && run->status == HFSB_OK) {
        hfsb_buf_truncate(run->best, 0);
        run->status = hfsb_buf_append(run->best, s);
    }
    run->len = 0;
}

static void hfsbi_run_walk(hfsbi_run *run, uint32_t id) {
    const hfsbi_syntax_node *n = &run->tree->nodes[id];
    char                     bytes[4];
    size_t                   count = 1;
    uint32_t                 child;
    switch (n->kind) {
    case HFSBI_SYNTAX_EMPTY: return;
    case HFSBI_SYNTAX_BYTE:
    case HFSBI_SYNTAX_CHAR:
        bytes[0] = (char)(unsigned char)n->value;
        if (n->kind == HFSBI_SYNTAX_CHAR)
            count = hfsb_utf8_encode(n->value, bytes);
        run->len += count;
        memcpy(run->bytes + run->size - run->len, bytes, count);
        return;
    case HFSBI_SYNTAX_LIST:
        for (child = n->child; child; child = run->tree->nodes[child].sibling)
            hfsbi_run_walk(run, child);
        return;
    case HFSBI_SYNTAX_BORDER: run->pure = false; return;
    case HFSBI_SYNTAX_REPEAT:
        run->pure = false;
        hfsbi_run_close(run);
        if (n->min > 0) hfsbi_run_walk(run, n->child);
        hfsbi_run_close(run);
        return;
    default: /* a class, or one of several */
        run->pure = false;
        hfsbi_run_close(run);
    }
}

HFSBI_FN hfsb_status hfsbi_syntax_literal(const hfsbi_syntax *tree,
                                          uint32_t root, hfsb_buf *out,
                                          bool *pure) {
    const hfsb_alloc *alloc = &tree->program->alloc;
    hfsbi_run         run = HFSB_INIT;
    run.tree = tree;
    run.size = tree->count * 4;
    run.bytes = (char *)hfsbi_array(alloc, run.size, 1);
    if (!run.bytes) return HFSB_NOMEM;
    run.best = out;
    run.pure = true;
    run.status = HFSB_OK;
    hfsbi_run_walk(&run, root);
    hfsbi_run_close(&run);
    hfsbi_array_free(alloc, run.bytes, run.size, 1);
    *pure = run.pure;
    return run.status;
}

/* ---- the states ---- */

static uint32_t hfsbi_state_add(hfsbi_program *p, hfsbi_op op, uint32_t arg,
                                uint32_t out, uint32_t other) {
    void *grown;
    if (p->status != HFSB_OK) return 0;
    if (p->state_count >= p->max_states) {
        p->status = HFSB_LIMIT;
        return 0;
    }
    grown = hfsbi_array_grow(&p->alloc, p->states, &p->state_cap,
                             p->state_count + 1, sizeof *p->states);
    if (!grown) {
        p->status = HFSB_NOMEM;
        return 0;
    }
    p->states = (hfsbi_state *)grown;
    p->states[p->state_count].op = (uint32_t)op;
    p->states[p->state_count].arg = arg;
    p->states[p->state_count].out = out;
    p->states[p->state_count].other = other;
    return (uint32_t)p->state_count++;
}

static uint32_t hfsbi_emit(hfsbi_program *p, const hfsbi_syntax *tree,
                           uint32_t id, uint32_t next);

static uint32_t hfsbi_emit_char(hfsbi_program *p, uint32_t code,
                                uint32_t next) {
    char   bytes[4];
    size_t n = hfsb_utf8_encode(code, bytes);
    while (n-- > 0)
        next = hfsbi_state_add(p, HFSBI_OP_BYTE, (unsigned char)bytes[n], next,
                               0);
    return next;
}

static uint32_t hfsbi_emit_class(hfsbi_program *p, uint32_t class_id,
                                 uint32_t next) {
    hfsbi_class c = p->classes[class_id];
    uint32_t    first = (uint32_t)p->state_count, i;
    for (i = 0; i < c.nodes; i++)
        hfsbi_state_add(p, HFSBI_OP_CLASS, c.node + i, next, 0);
    return first + (c.root - c.node);
}

static uint32_t hfsbi_emit_repeat(hfsbi_program *p, const hfsbi_syntax *tree,
                                  const hfsbi_syntax_node *n, uint32_t next) {
    uint32_t at = next, count = n->min, i;
    if (n->max == HFSBI_SYNTAX_MANY) {
        uint32_t loop = hfsbi_state_add(p, HFSBI_OP_SPLIT, 0, 0, next);
        at = hfsbi_emit(p, tree, n->child, loop);
        if (p->status != HFSB_OK) return 0;
        p->states[loop].out = at;
        if (count == 0) return loop;
        count--; /* the loop's own round is the last of them */
    } else {
        for (i = n->min; i < n->max && p->status == HFSB_OK; i++) {
            at = hfsbi_emit(p, tree, n->child, at);
            at = hfsbi_state_add(p, HFSBI_OP_SPLIT, 0, at, next);
        }
    }
    for (i = 0; i < count && p->status == HFSB_OK; i++)
        at = hfsbi_emit(p, tree, n->child, at);
    return at;
}

/* Makes the states of a node, which go on to state `next`; gives the first.
   From the end to the beginning: nothing has to be patched later. */
static uint32_t hfsbi_emit(hfsbi_program *p, const hfsbi_syntax *tree,
                           uint32_t id, uint32_t next) {
    const hfsbi_syntax_node *n = &tree->nodes[id];
    uint32_t                 child, at;
    /* repeats of nothing make no states, but take their time */
    if (++p->steps > p->max_states * 4) p->status = HFSB_LIMIT;
    if (p->status != HFSB_OK) return 0;
    switch (n->kind) {
    case HFSBI_SYNTAX_EMPTY: break;
    case HFSBI_SYNTAX_BYTE:
        return hfsbi_state_add(p, HFSBI_OP_BYTE, n->value, next, 0);
    case HFSBI_SYNTAX_CHAR: return hfsbi_emit_char(p, n->value, next);
    case HFSBI_SYNTAX_CLASS: return hfsbi_emit_class(p, n->value, next);
    case HFSBI_SYNTAX_BORDER:
        if (n->value >= HFSBI_WORD_BORDER) p->words = true;
        return hfsbi_state_add(p, HFSBI_OP_ASSERT, n->value, next, 0);
    case HFSBI_SYNTAX_LIST:
        for (child = n->child; child; child = tree->nodes[child].sibling)
            next = hfsbi_emit(p, tree, child, next);
        break;
    case HFSBI_SYNTAX_EITHER:
        at = hfsbi_emit(p, tree, n->child, next);
        for (child = tree->nodes[n->child].sibling; child;
             child = tree->nodes[child].sibling)
            at = hfsbi_state_add(p, HFSBI_OP_SPLIT, 0,
                                 hfsbi_emit(p, tree, child, next), at);
        return at;
    case HFSBI_SYNTAX_REPEAT: return hfsbi_emit_repeat(p, tree, n, next);
    default: break;
    }
    return next;
}

/* ---- kinds of bytes ---- */

/* Marks that a kind begins at low, and another behind high. */
static void hfsbi_kinds_cut(bool *cut, unsigned low, unsigned high) {
    cut[low] = true;
    if (high < 255) cut[high + 1] = true;
}

static void hfsbi_kinds_make(hfsbi_program *p) {
    bool     cut[256] = HFSB_INIT;
    size_t   i;
    unsigned byte, kind = 0;
    for (i = 0; i < p->state_count; i++)
        if (p->states[i].op == HFSBI_OP_BYTE)
            hfsbi_kinds_cut(cut, p->states[i].arg, p->states[i].arg);
    for (i = 0; i < p->edge_count; i++)
        hfsbi_kinds_cut(cut, p->edges[i].low, p->edges[i].high);
    if (!p->whole) {
        hfsbi_kinds_cut(cut, '\n', '\n');
        hfsbi_kinds_cut(cut, '\r', '\r');
    }
    for (byte = 1; p->words && byte < 256; byte++)
        if (byte == 0x80 || (byte < 0x80 && hfsbi_regex_is_word(byte) !=
                                                hfsbi_regex_is_word(byte - 1)))
            cut[byte] = true;
    for (byte = 0; byte < 256; byte++) {
        if (byte > 0 && cut[byte]) kind++;
        p->map[byte] = (unsigned char)kind;
        p->sample[kind] = (unsigned char)byte;
    }
    p->kinds = kind + 1;
}

HFSBI_FN void hfsbi_program_make(hfsbi_program      *program,
                                 const hfsbi_syntax *tree, uint32_t root) {
    uint32_t end = hfsbi_state_add(program, HFSBI_OP_MATCH, 0, 0, 0);
    program->start = hfsbi_emit(program, tree, root, end);
    if (program->status == HFSB_OK) hfsbi_kinds_make(program);
}

HFSBI_FN void hfsbi_program_free(hfsbi_program *p) {
    hfsbi_array_free(&p->alloc, p->states, p->state_cap, sizeof *p->states);
    hfsbi_array_free(&p->alloc, p->edges, p->edge_cap, sizeof *p->edges);
    hfsbi_array_free(&p->alloc, p->nodes, p->node_cap, sizeof *p->nodes);
    hfsbi_array_free(&p->alloc, p->classes, p->class_cap, sizeof *p->classes);
}
