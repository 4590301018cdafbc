/* regex_compile.c - reads POSIX extended regular expressions, as GNU grep -E
   does, and what models write besides. */
#include "pattern_private.h"

/* ==== regex program ==== */

/* the tree of a pattern, and the states made of it. */

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

/* ---- what is shared with brackets ---- */

HFSBI_FN hfsb_status hfsbi_reader_fail(hfsbi_reader *r, hfsb_status code,
                                       size_t pos, const char *message) {
    if (r->status == HFSB_OK)
        r->status = hfsbi_fail(r->err, code, pos, "%s", message);
    return r->status;
}

/* The character at r->at, which moves behind it. */
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

/* The byte at r->at + ahead; NUL behind the end. */
static char hfsbi_reader_peek(const hfsbi_reader *r, size_t ahead) {
    return r->at + ahead < r->text.len ? r->text.ptr[r->at + ahead] : '\0';
}

/* ---- escapes ---- */

static const char hfsbi_refuse_back[] =
    "Back-references such as \\1 are not supported: they cannot be matched "
    "in linear time. Write the repeated text out, or search for a looser "
    "pattern and compare the lines found.";

/* Sentences for the escapes of other dialects. */
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

/* The border that \c stands for; false: it is none. */
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

/* What \c stands for as a single character; NUL: none. */
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
    return c != '_' && hfsbi_regex_is_word((unsigned char)c) &&
           (unsigned char)c < 0x80;
}

/* r->at is behind the backslash. */
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

/* [:name:] [=c=] [.c.] with r->at behind its first two bytes. True: a class,
   which cannot begin a range; false: the character in *code. */
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
                          "[. .] and [= =] hold one character each.");
    r->at = end + 2;
    if (mark == '=') hfsbi_ranges_add(&r->tree->set, *code, *code);
    return mark == '=';
}

/* An escape in a bracket, with r->at behind the backslash. As above. */
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
    if (!r->glob && c == 'n') { /* [^\n]: no line feed is in a line anyway */
        r->at++;
        *code = '\n';
        return false;
    }
    if (r->glob || !hfsbi_regex_is_alnum(c)) *code = hfsbi_reader_next(r);
    return false;
}

/* One character, or a class (true), at r->at. */
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

/* An item and, when it begins a range, the other end of it. */
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
                          "after its beginning. Put a - that stands for "
                          "itself last: [a-z_-].");
    if (!is_class && r->status == HFSB_OK)
        hfsbi_ranges_add(&r->tree->set, low, high);
}

/* [:alpha:] without the outer brackets is a slip, as GNU grep says too. */
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

/* A number of {n,m} at r->at: false when there is none. What is too large
   stays too large. */
static bool hfsbi_read_number(hfsbi_reader *r, uint32_t *n) {
    size_t from = r->at;
    *n = 0;
    while (hfsbi_reader_peek(r, 0) >= '0' && hfsbi_reader_peek(r, 0) <= '9') {
        *n = *n * 10 + (uint32_t)(hfsbi_reader_peek(r, 0) - '0');
        if (*n > HFSBI_REGEX_REPEAT) *n = HFSBI_REGEX_REPEAT + 1;
        r->at++;
    }
    return r->at > from;
}

/* {n} {n,} {,m} {n,m} with r->at on the brace. False, and r->at as it was,
   when it is none: then the brace stands for itself. */
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

/* A repeat at r->at, or false. */
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
    /* the lazy ones: the same lines match */
    if (hfsbi_reader_peek(r, 0) == '?') r->at++;
    return true;
}

/* ---- the grammar ---- */

static uint32_t hfsbi_read_either(hfsbi_reader *r);

/* What follows "(?" is from other dialects; r->at is on the "?". */
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
                          "Flags such as (?i) are understood only as (?i) at "
                          "the very beginning; there is also the option to "
                          "ignore case.");
    } else if (c == '>' || c == '|' || c == '(' || c == '#') {
        hfsbi_reader_fail(r, HFSB_ARG, pos,
                          "(?> (?| (?( and (?# are not supported: write a "
                          "plain group (...).");
    }
}

/* r->at is behind the "(". */
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

/* An atom and the repeats behind it. As GNU reads it, a repeat with nothing
   before it repeats the empty text. */
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

HFSBI_FN hfsb_status hfsbi_regex_parse(hfsbi_syntax *tree, hfsb_str pattern,
                                       uint32_t *root, hfsb_err *err) {
    hfsbi_reader r = HFSB_INIT;
    r.text = pattern;
    r.tree = tree;
    r.err = err;
    if (pattern.len > HFSBI_REGEX_PATTERN)
        return hfsbi_reader_fail(&r, HFSB_LIMIT, HFSBI_REGEX_PATTERN,
                                 "A pattern may have at most 65,536 bytes.");
    if (hfsb_str_starts(pattern, HFSB_LIT("(?i)"))) {
        tree->fold = true;
        r.at = 4;
    }
    *root = hfsbi_read_either(&r);
    return r.status;
}
