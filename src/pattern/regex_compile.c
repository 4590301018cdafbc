/* regex_compile.c - from a pattern to a program.

   Reads POSIX extended regular expressions as GNU grep -E does, with the
   additions that models often write (\w, (?:...), lazy repeats). Constructs
   that need backtracking are refused with advice, since the run time must stay
   linear. The pattern becomes a tree; the tree becomes states, from the last
   to the first, so that each state knows its successor when it is made.

   Both the tree and the program remember their first failure in
   program->status, and the reader its own in r->status: functions return node
   or state 0 from then on, and loops stop. */
#include "pattern_private.h"

/* Most repeats in {n,m}, as in GNU grep. */
#define HFSBI_REGEX_REPEAT 32767u

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

/* True for the bounds of * + ? and of no repeat at all: nesting two such
   repeats gives one. */
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
    uint32_t id = hfsbi_program_class(tree->program, &tree->set, tree->fold,
                                      negate, never);
    if (tree->program->status != HFSB_OK) return 0;
    return hfsbi_syntax_add(tree, HFSBI_SYNTAX_CLASS, id);
}

/* A character, or with fold the class of both its cases. */
static uint32_t hfsbi_syntax_char(hfsbi_syntax *tree, uint32_t code) {
    uint32_t other = tree->fold ? hfsbi_other_case(code) : code;
    /* no line contains a line feed: an empty class */
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

/* ---- the text that every match contains ---- */

/* A run of literal bytes, collected from last to first. */
typedef struct hfsbi_run {
    const hfsbi_syntax *tree;
    char               *bytes; /* filled from the end */
    size_t              size, len;
    size_t              best, best_len; /* the longest run so far */
    bool                pure;
} hfsbi_run;

static void hfsbi_run_close(hfsbi_run *run) {
    if (run->len > run->best_len) {
        run->best = run->size - run->len;
        run->best_len = run->len;
    }
    run->size -= run->len;
    run->len = 0;
}

/* Adds the text of a node before the current run. */
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
    default: /* a class or an alternative */
        run->pure = false;
        hfsbi_run_close(run);
    }
}

HFSBI_FN hfsb_status hfsbi_syntax_literal(const hfsbi_syntax *tree,
                                          uint32_t root, hfsb_buf *out,
                                          bool *pure) {
    const hfsb_alloc *alloc = &tree->program->alloc;
    hfsbi_run         run = HFSB_INIT;
    size_t            size = tree->count * 4;
    hfsb_status       st;
    run.bytes = (char *)hfsbi_array(alloc, size, 1);
    if (!run.bytes) return HFSB_NOMEM;
    run.tree = tree;
    run.size = size;
    run.pure = true;
    hfsbi_run_walk(&run, root);
    hfsbi_run_close(&run);
    st = hfsb_buf_append(out,
                         hfsb_str_make(run.bytes + run.best, run.best_len));
    hfsbi_array_free(alloc, run.bytes, size, 1);
    *pure = run.pure;
    return st;
}

/* ---- the states ---- */

/* Adds a state; 0, with p->status set, beyond max_states or when out of
   memory. */
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

/* A state for each node of the class, in the same order. */
static uint32_t hfsbi_emit_class(hfsbi_program *p, uint32_t class_id,
                                 uint32_t next) {
    hfsbi_class c = p->classes[class_id];
    uint32_t    first = (uint32_t)p->state_count, i;
    for (i = 0; i < c.nodes; i++)
        hfsbi_state_add(p, HFSBI_OP_CLASS, c.node + i, next, 0);
    return first + (c.root - c.node);
}

/* x{2,} is x x with a loop around the second; x{2,4} is x x (x (x)?)?: each
   copy of the child has states of its own. */
static uint32_t hfsbi_emit_repeat(hfsbi_program *p, const hfsbi_syntax *tree,
                                  const hfsbi_syntax_node *n, uint32_t next) {
    uint32_t at = next, count = n->min, i;
    if (n->max == HFSBI_SYNTAX_MANY) {
        uint32_t loop = hfsbi_state_add(p, HFSBI_OP_SPLIT, 0, 0, next);
        at = hfsbi_emit(p, tree, n->child, loop);
        if (p->status != HFSB_OK) return 0;
        p->states[loop].out = at;
        if (count == 0) return loop;
        count--; /* the loop itself is the last of them */
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

/* Makes the states of a node, which continue at state `next`; returns the
   first of them. */
static uint32_t hfsbi_emit(hfsbi_program *p, const hfsbi_syntax *tree,
                           uint32_t id, uint32_t next) {
    const hfsbi_syntax_node *n = &tree->nodes[id];
    uint32_t                 child, at;
    /* repeats of nothing make no states, but take time */
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

/* Marks that a kind begins at low, and another after high. */
static void hfsbi_kinds_cut(bool *cut, unsigned low, unsigned high) {
    cut[low] = true;
    if (high < 255) cut[high + 1] = true;
}

/* Groups the bytes that no state distinguishes. */
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
    if (program->status != HFSB_OK) return;
    program->start = hfsbi_emit(program, tree, root, end);
    if (program->status == HFSB_OK) hfsbi_kinds_make(program);
}

HFSBI_FN void hfsbi_program_free(hfsbi_program *p) {
    hfsbi_array_free(&p->alloc, p->states, p->state_cap, sizeof *p->states);
    hfsbi_array_free(&p->alloc, p->edges, p->edge_cap, sizeof *p->edges);
    hfsbi_array_free(&p->alloc, p->nodes, p->node_cap, sizeof *p->nodes);
    hfsbi_array_free(&p->alloc, p->classes, p->class_cap, sizeof *p->classes);
}

/* ---- the reader ---- */

HFSBI_FN hfsb_status hfsbi_reader_fail(hfsbi_reader *r, hfsb_status code,
                                       size_t pos, const char *message) {
    if (r->status == HFSB_OK)
        r->status = hfsbi_fail(r->err, code, pos, "%s", message);
    return r->status;
}

/* The character at r->at, which moves past it. */
static uint32_t hfsbi_reader_next(hfsbi_reader *r) {
    unsigned long code;
    bool          valid;
    size_t        n = hfsb_utf8_step(r->text, r->at, &code, &valid);
    if (!valid)
        hfsbi_reader_fail(r, HFSB_ARG, r->at,
                          "The pattern is not UTF-8 here. Search for such "
                          "bytes with a literal pattern.");
    r->at += n;
    return (uint32_t)code;
}

HFSBI_FN char hfsbi_reader_peek(const hfsbi_reader *r, size_t ahead) {
    return r->at + ahead < r->text.len ? r->text.ptr[r->at + ahead] : '\0';
}

/* ---- escapes ---- */

static const char hfsbi_refuse_back[] =
    "Back-references such as \\1 are not supported: they cannot be matched "
    "in linear time. Write the repeated text out, or search for a looser "
    "pattern and compare the lines found.";

/* Advice for the escapes of other dialects. */
static const char *hfsbi_escape_advice(char c) {
    switch (c) {
    case 'p':
    case 'P':
        return "\\p{...} is not supported. Use a class such as [[:alpha:]], "
               "[[:upper:]], [[:punct:]] or \\w.";
    case 'x':
    case 'u':
    case 'N':
        return "Characters by number (\\x41) are not supported: write the "
               "character itself.";
    case 'n':
        return "\\n matches nothing: lines are searched one by one, without "
               "their line feeds. Use ^ and $ for the ends of a line.";
    case 'k':
    case 'g': return hfsbi_refuse_back;
    case 'Q':
    case 'E':
        return "\\Q...\\E is not supported: search with the literal option, "
               "or put a backslash before each special character.";
    default:
        return "A backslash before this letter means nothing here. For the "
               "letter itself leave the backslash out; there are \\w \\W \\s "
               "\\S \\d \\D \\b \\B \\< \\> \\t.";
    }
}

/* The border that \c means; false if none. */
static bool hfsbi_escape_border(char c, hfsbi_regex_border *border) {
    switch (c) {
    case 'b': *border = HFSBI_WORD_BORDER; return true;
    case 'B': *border = HFSBI_WORD_INSIDE; return true;
    case '<': *border = HFSBI_WORD_BEGIN; return true;
    case '>': *border = HFSBI_WORD_END; return true;
    case '`':
    case 'A': *border = HFSBI_LINE_BEGIN; return true;
    case '\'':
    case 'z':
    case 'Z': *border = HFSBI_LINE_END; return true;
    default: return false;
    }
}

/* The control character that \c means; NUL if none. */
static char hfsbi_escape_control(char c) {
    switch (c) {
    case 't': return '\t';
    case 'r': return '\r';
    case 'f': return '\f';
    case 'v': return '\v';
    case 'e': return 27;
    default: return '\0';
    }
}

static bool hfsbi_regex_is_alnum(char c) {
    return hfsbi_is_alpha(c) || hfsbi_is_digit(c);
}

/* Reads an escape, after its backslash. */
static uint32_t hfsbi_read_escape(hfsbi_reader *r) {
    hfsbi_regex_border border;
    char               c = hfsbi_reader_peek(r, 0);
    size_t             pos = r->at - 1;
    if (r->at == r->text.len) {
        hfsbi_reader_fail(r, HFSB_ARG, pos,
                          "The pattern ends in a backslash. Write \\\\ for "
                          "the character itself.");
        return 0;
    }
    if (c && strchr("wWsSdD", c)) {
        r->at++;
        hfsbi_ranges_escape(&r->tree->set, c);
        return hfsbi_syntax_class(r->tree, false, '\n');
    }
    if (hfsbi_escape_border(c, &border)) {
        r->at++;
        return hfsbi_syntax_add(r->tree, HFSBI_SYNTAX_BORDER,
                                (uint32_t)border);
    }
    if (hfsbi_escape_control(c)) {
        r->at++;
        return hfsbi_syntax_char(r->tree,
                                 (unsigned char)hfsbi_escape_control(c));
    }
    if (c >= '1' && c <= '9')
        hfsbi_reader_fail(r, HFSB_ARG, pos, hfsbi_refuse_back);
    if (hfsbi_regex_is_alnum(c))
        hfsbi_reader_fail(r, HFSB_ARG, pos, hfsbi_escape_advice(c));
    return hfsbi_syntax_char(r->tree, hfsbi_reader_next(r));
}

/* ---- brackets ---- */

static void hfsbi_bracket_unclosed(hfsbi_reader *r, size_t open) {
    hfsbi_reader_fail(r, HFSB_ARG, open,
                      "This [ is not closed by a ]. Write \\[ for the "
                      "character itself; in brackets, \\\\ for a backslash "
                      "and \\] for a ].");
}

/* Reads [:name:], [=c=] or [.c.], after its first two bytes. True: a class,
   which cannot start a range; false: the character in *code. */
static bool hfsbi_bracket_named(hfsbi_reader *r, char mark, uint32_t *code) {
    size_t   begin = r->at, end = r->at;
    hfsb_str name;
    while (end + 1 < r->text.len &&
           (r->text.ptr[end] != mark || r->text.ptr[end + 1] != ']'))
        end++;
    if (end + 1 >= r->text.len) {
        hfsbi_bracket_unclosed(r, begin - 2);
        return true;
    }
    name = hfsb_str_slice(r->text, begin, end);
    if (mark == ':') {
        if (!hfsbi_ranges_named(&r->tree->set, name, r->tree->fold))
            hfsbi_reader_fail(r, HFSB_ARG, begin - 2,
                              "There is no such class of characters. There "
                              "are [:alpha:] [:digit:] [:alnum:] [:upper:] "
                              "[:lower:] [:space:] [:blank:] [:punct:] "
                              "[:xdigit:] [:print:] [:graph:] [:cntrl:].");
        r->at = end + 2;
        return true;
    }
    *code = name.len ? hfsbi_reader_next(r) : 0;
    if (name.len == 0 || r->at != end)
        hfsbi_reader_fail(r, HFSB_ARG, begin - 2,
                          "[. .] and [= =] contain one character each.");
    r->at = end + 2;
    if (mark == '=') hfsbi_ranges_add(&r->tree->set, *code, *code);
    return mark == '=';
}

/* Reads an escape in a bracket, after its backslash. Result as above. */
static bool hfsbi_bracket_escape(hfsbi_reader *r, uint32_t *code) {
    char c = hfsbi_reader_peek(r, 0);
    *code = '\\';
    if (r->at == r->text.len) return false;
    if (!r->glob && c && strchr("wWsSdD", c)) {
        r->at++;
        hfsbi_ranges_escape(&r->tree->set, c);
        return true;
    }
    if (!r->glob && hfsbi_escape_control(c)) {
        r->at++;
        *code = (unsigned char)hfsbi_escape_control(c);
        return false;
    }
    if (!r->glob && c == 'n') { /* [^\n]: no line contains one anyway */
        r->at++;
        *code = '\n';
        return false;
    }
    if (r->glob || !hfsbi_regex_is_alnum(c)) *code = hfsbi_reader_next(r);
    return false;
}

/* Reads one item of a bracket. Result as above. */
static bool hfsbi_bracket_item(hfsbi_reader *r, uint32_t *code) {
    char c = hfsbi_reader_peek(r, 0), mark = hfsbi_reader_peek(r, 1);
    if (c == '[' && (mark == ':' || mark == '=' || mark == '.')) {
        r->at += 2;
        return hfsbi_bracket_named(r, mark, code);
    }
    if (c == '\\') {
        r->at++;
        return hfsbi_bracket_escape(r, code);
    }
    *code = hfsbi_reader_next(r);
    return false;
}

/* Reads an item and, when it starts a range, the end of the range. */
static void hfsbi_bracket_range(hfsbi_reader *r, bool first) {
    uint32_t low = 0, high;
    size_t   pos = r->at;
    bool     dash = hfsbi_reader_peek(r, 0) == '-' && !first;
    bool     is_class = hfsbi_bracket_item(r, &low);
    bool     last = hfsbi_reader_peek(r, 0) == ']';
    bool     range = hfsbi_reader_peek(r, 0) == '-' &&
                 hfsbi_reader_peek(r, 1) != ']' && r->at + 1 < r->text.len;
    bool bad = dash && !last && !r->glob;
    high = low;
    if (range && !bad && r->status == HFSB_OK) {
        r->at++;
        bad = is_class || hfsbi_bracket_item(r, &high) || high < low;
    }
    if (bad)
        hfsbi_reader_fail(r, HFSB_ARG, pos,
                          "This range in brackets has no end that comes "
                          "after its beginning. To match a - itself, put it "
                          "last: [a-z_-].");
    if (!is_class && r->status == HFSB_OK)
        hfsbi_ranges_add(&r->tree->set, low, high);
}

/* [:alpha:] without the outer brackets is a mistake, as in GNU grep. */
static bool hfsbi_bracket_is_slip(const hfsbi_reader *r) {
    size_t end = r->at + 1;
    if (r->glob || hfsbi_reader_peek(r, 0) != ':') return false;
    while (end < r->text.len && hfsbi_regex_is_alnum(r->text.ptr[end])) end++;
    return end > r->at + 1 && end + 1 < r->text.len &&
           r->text.ptr[end] == ':' && r->text.ptr[end + 1] == ']';
}

HFSBI_FN uint32_t hfsbi_read_bracket(hfsbi_reader *r) {
    size_t open = r->at - 1, first;
    bool   negate;
    if (hfsbi_bracket_is_slip(r))
        hfsbi_reader_fail(r, HFSB_ARG, open,
                          "A class of characters is written [[:alpha:]], "
                          "with two brackets.");
    negate = hfsbi_reader_peek(r, 0) == '^' ||
             (r->glob && hfsbi_reader_peek(r, 0) == '!');
    if (negate) r->at++;
    first = r->at;
    r->tree->set.count = 0;
    while (r->status == HFSB_OK) {
        if (r->at >= r->text.len) {
            hfsbi_bracket_unclosed(r, open);
        } else if (r->text.ptr[r->at] == ']' && r->at > first) {
            r->at++;
            return hfsbi_syntax_class(r->tree, negate, r->glob ? '/' : '\n');
        } else {
            hfsbi_bracket_range(r, r->at == first);
        }
    }
    return 0;
}

/* ---- repeats ---- */

/* Reads a number of {n,m}; false without one. Saturates above the limit. */
static bool hfsbi_read_number(hfsbi_reader *r, uint32_t *n) {
    size_t from = r->at;
    *n = 0;
    while (hfsbi_is_digit(hfsbi_reader_peek(r, 0))) {
        *n = *n * 10 + (uint32_t)(hfsbi_reader_peek(r, 0) - '0');
        if (*n > HFSBI_REGEX_REPEAT) *n = HFSBI_REGEX_REPEAT + 1;
        r->at++;
    }
    return r->at > from;
}

/* Reads {n} {n,} {,m} {n,m} from the brace on. False, with r->at unchanged,
   for anything else: the brace is then an ordinary character. */
static bool hfsbi_read_braces(hfsbi_reader *r, uint32_t *min, uint32_t *max) {
    size_t open = r->at;
    bool   has_min, comma, has_max = false;
    r->at++;
    has_min = hfsbi_read_number(r, min);
    *max = *min;
    comma = hfsbi_reader_peek(r, 0) == ',';
    if (comma) {
        r->at++;
        has_max = hfsbi_read_number(r, max);
        if (!has_max) *max = HFSBI_SYNTAX_MANY;
    }
    if (hfsbi_reader_peek(r, 0) != '}' || (!has_min && !comma)) {
        r->at = open;
        return false;
    }
    r->at++;
    if (*min > HFSBI_REGEX_REPEAT || (has_max && *max > HFSBI_REGEX_REPEAT))
        hfsbi_reader_fail(r, HFSB_LIMIT, open,
                          "A repeat may be at most {32767}. Use * or + for "
                          "any number.");
    else if (*max < *min)
        hfsbi_reader_fail(r, HFSB_ARG, open,
                          "In {n,m} the first number is larger than the "
                          "second.");
    return true;
}

/* Reads a repeat; false without one. */
static bool hfsbi_read_repeat(hfsbi_reader *r, uint32_t *min, uint32_t *max) {
    char c = hfsbi_reader_peek(r, 0);
    if (c == '{') {
        if (!hfsbi_read_braces(r, min, max)) return false;
    } else if (c == '*' || c == '+' || c == '?') {
        r->at++;
        *min = c == '+';
        *max = c == '?' ? 1 : HFSBI_SYNTAX_MANY;
    } else {
        return false;
    }
    /* lazy repeats match the same lines */
    if (hfsbi_reader_peek(r, 0) == '?') r->at++;
    return true;
}

/* ---- the grammar ---- */

static uint32_t hfsbi_read_either(hfsbi_reader *r);

/* Reads an extension from its "?" on: "(?:" is accepted, others refused. */
static void hfsbi_read_extension(hfsbi_reader *r) {
    size_t pos = r->at - 1;
    char   c = hfsbi_reader_peek(r, 1), d = hfsbi_reader_peek(r, 2);
    if (c == ':') {
        r->at += 2;
    } else if (c == '=' || c == '!' || (c == '<' && (d == '=' || d == '!'))) {
        hfsbi_reader_fail(r, HFSB_ARG, pos,
                          "Look-around such as (?=...) or (?!...) is not "
                          "supported. Search for the plain pattern, and "
                          "leave out lines in a second step.");
    } else if (c == 'P' || c == '<' || c == '\'') {
        hfsbi_reader_fail(r, HFSB_ARG, pos,
                          "Named groups are not supported: write (...).");
    } else if (hfsbi_regex_is_alnum(c) || c == '-') {
        hfsbi_reader_fail(r, HFSB_ARG, pos,
                          "Of flags only (?i) at the very beginning is "
                          "supported; there is also the option to ignore "
                          "case.");
    } else if (c == '>' || c == '|' || c == '(' || c == '#') {
        hfsbi_reader_fail(r, HFSB_ARG, pos,
                          "(?> (?| (?( and (?# are not supported: write a "
                          "plain group (...).");
    }
}

/* Reads a group, after its "(". */
static uint32_t hfsbi_read_group(hfsbi_reader *r) {
    size_t   open = r->at - 1;
    uint32_t inner;
    if (hfsbi_reader_peek(r, 0) == '?') hfsbi_read_extension(r);
    if (++r->depth > HFSBI_REGEX_DEPTH)
        hfsbi_reader_fail(r, HFSB_LIMIT, open,
                          "Groups are nested too deeply: 200 levels at "
                          "most.");
    if (r->status != HFSB_OK) return 0;
    inner = hfsbi_read_either(r);
    r->depth--;
    if (hfsbi_reader_peek(r, 0) != ')' || r->at >= r->text.len)
        hfsbi_reader_fail(r, HFSB_ARG, open,
                          "This ( is not closed by a ). Write \\( for the "
                          "character itself.");
    r->at++;
    return inner;
}

static uint32_t hfsbi_read_atom(hfsbi_reader *r) {
    switch (hfsbi_reader_peek(r, 0)) {
    case '(': r->at++; return hfsbi_read_group(r);
    case '[': r->at++; return hfsbi_read_bracket(r);
    case '\\': r->at++; return hfsbi_read_escape(r);
    case '.': r->at++; return hfsbi_syntax_class(r->tree, true, '\n');
    case '^':
        r->at++;
        return hfsbi_syntax_add(r->tree, HFSBI_SYNTAX_BORDER,
                                HFSBI_LINE_BEGIN);
    case '$':
        r->at++;
        return hfsbi_syntax_add(r->tree, HFSBI_SYNTAX_BORDER, HFSBI_LINE_END);
    default: return hfsbi_syntax_char(r->tree, hfsbi_reader_next(r));
    }
}

/* Reads an atom and its repeats. As in GNU grep, a repeat with nothing before
   it repeats the empty text. */
static uint32_t hfsbi_read_piece(hfsbi_reader *r) {
    uint32_t min, max, piece;
    size_t   pos = r->at, nested = 0;
    if (hfsbi_read_repeat(r, &min, &max))
        piece = hfsbi_syntax_add(r->tree, HFSBI_SYNTAX_EMPTY, 0);
    else piece = hfsbi_read_atom(r);
    while (r->status == HFSB_OK && hfsbi_read_repeat(r, &min, &max)) {
        uint32_t outer = hfsbi_syntax_repeat(r->tree, piece, min, max);
        if (outer != piece && ++nested > 16)
            hfsbi_reader_fail(r, HFSB_LIMIT, pos,
                              "Too many repeats of repeats in one place.");
        piece = outer;
    }
    return piece;
}

static uint32_t hfsbi_read_list(hfsbi_reader *r) {
    uint32_t list = hfsbi_syntax_add(r->tree, HFSBI_SYNTAX_LIST, 0);
    while (r->status == HFSB_OK && r->at < r->text.len) {
        char c = r->text.ptr[r->at];
        if (r->tree->program->status != HFSB_OK) break;
        if (c == '|' || (c == ')' && r->depth > 0)) break;
        hfsbi_syntax_append(r->tree, list, hfsbi_read_piece(r));
    }
    return list;
}

static uint32_t hfsbi_read_either(hfsbi_reader *r) {
    uint32_t first = hfsbi_read_list(r), either;
    if (hfsbi_reader_peek(r, 0) != '|' || r->status != HFSB_OK) return first;
    either = hfsbi_syntax_add(r->tree, HFSBI_SYNTAX_EITHER, 0);
    hfsbi_syntax_append(r->tree, either, first);
    while (r->status == HFSB_OK && r->tree->program->status == HFSB_OK &&
           hfsbi_reader_peek(r, 0) == '|') {
        r->at++;
        hfsbi_syntax_append(r->tree, either, hfsbi_read_list(r));
    }
    return either;
}

/* A literal pattern as a tree; bytes that are not UTF-8 are kept. */
static uint32_t hfsbi_read_plain(hfsbi_syntax *tree, hfsb_str text) {
    uint32_t list = hfsbi_syntax_add(tree, HFSBI_SYNTAX_LIST, 0), node;
    size_t   at = 0;
    while (at < text.len && tree->program->status == HFSB_OK) {
        unsigned long code;
        bool          valid;
        size_t        n = hfsb_utf8_step(text, at, &code, &valid);
        if (valid) {
            node = hfsbi_syntax_char(tree, (uint32_t)code);
            at += n;
        } else {
            node = hfsbi_syntax_add(tree, HFSBI_SYNTAX_BYTE,
                                    (unsigned char)text.ptr[at++]);
        }
        hfsbi_syntax_append(tree, list, node);
    }
    return list;
}

HFSBI_FN hfsb_status hfsbi_regex_parse(hfsbi_syntax *tree, hfsb_str pattern,
                                       bool literal, uint32_t *root,
                                       hfsb_err *err) {
    hfsbi_reader r = HFSB_INIT;
    r.text = pattern;
    r.tree = tree;
    r.err = err;
    if (pattern.len > HFSBI_REGEX_PATTERN)
        return hfsbi_reader_fail(&r, HFSB_LIMIT, HFSBI_REGEX_PATTERN,
                                 "A pattern may have at most 65,536 bytes.");
    if (literal) {
        *root = hfsbi_read_plain(tree, pattern);
        return HFSB_OK;
    }
    if (hfsb_str_starts(pattern, HFSB_LIT("(?i)"))) {
        tree->fold = true;
        r.at = 4;
    }
    *root = hfsbi_read_either(&r);
    return r.status;
}
