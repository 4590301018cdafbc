/* regex_class.c - sets of characters, and their automata over UTF-8.

   A set is a list of ranges of code points. It is built in any order, then
   case-folded, sorted, perhaps complemented, and turned into an automaton that
   reads the bytes of a character:

       [a-z] or U+0430..U+044F:   root --61..7A--> end
                                  root --D0------> node --B0..BF--> end
                                  root --D1------> node --80..8F--> end

   Nodes with equal edges are shared, so that a class such as "." needs a
   handful of nodes. */
#include "pattern_private.h"

/* ---- sets ---- */

HFSBI_FN void hfsbi_ranges_add(hfsbi_ranges *set, uint32_t low,
                               uint32_t high) {
    void *grown;
    if (set->failed) return;
    grown = hfsbi_array_grow(&set->alloc, set->items, &set->cap,
                             set->count + 1, sizeof *set->items);
    if (!grown) {
        set->failed = true;
        return;
    }
    set->items = (hfsbi_regex_range *)grown;
    set->items[set->count].low = low;
    set->items[set->count++].high = high;
}

static int hfsbi_range_order(const void *a, const void *b) {
    const hfsbi_regex_range *x = (const hfsbi_regex_range *)a;
    const hfsbi_regex_range *y = (const hfsbi_regex_range *)b;
    return x->low < y->low ? -1 : x->low > y->low;
}

/* Sorts the ranges and joins those that overlap or touch. */
static void hfsbi_ranges_sort(hfsbi_ranges *set) {
    hfsbi_regex_range *r = set->items;
    size_t             i, n = 0;
    if (set->count < 2) return;
    hfsbi_sort(r, set->count, sizeof *r, hfsbi_range_order);
    for (i = 1; i < set->count; i++) {
        if (r[i].low <= r[n].high || r[i].low == r[n].high + 1) {
            if (r[i].high > r[n].high) r[n].high = r[i].high;
        } else {
            r[++n] = r[i];
        }
    }
    set->count = n + 1;
}

/* Complements a sorted set, among all scalar values. */
static void hfsbi_ranges_negate(hfsbi_ranges *set) {
    size_t   i, count = set->count;
    uint32_t low = 0;
    for (i = 0; i < count && !set->failed; i++) {
        hfsbi_regex_range r = set->items[i];
        if (r.low > low) hfsbi_ranges_add(set, low, r.low - 1);
        low = r.high + 1;
    }
    if (low <= 0x10FFFF) hfsbi_ranges_add(set, low, 0x10FFFF);
    if (set->failed) return;
    set->count -= count;
    memmove(set->items, set->items + count, set->count * sizeof *set->items);
}

/* Removes [low, high] from a sorted set. */
static void hfsbi_ranges_remove(hfsbi_ranges *set, uint32_t low,
                                uint32_t high) {
    size_t i, count = set->count, kept = 0;
    for (i = 0; i < count && !set->failed; i++) {
        hfsbi_regex_range r = set->items[i];
        if (r.high < low || r.low > high) {
            set->items[kept++] = r;
            continue;
        }
        if (r.low < low) hfsbi_ranges_add(set, r.low, low - 1);
        if (r.high > high) hfsbi_ranges_add(set, high + 1, r.high);
    }
    if (set->failed) return;
    memmove(set->items + kept, set->items + count,
            (set->count - count) * sizeof *set->items);
    set->count -= count - kept;
    hfsbi_ranges_sort(set);
}

/* ---- case ---- */

/* One-to-one pairs only: no title case, no letters that become two. */
HFSBI_FN uint32_t hfsbi_other_case(uint32_t c) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return c ^ 0x20u;
    if (c < 0xC0 || c > 0x52F) return c;
    if (c <= 0xFE) /* Latin-1, except the signs among its letters */
        return c == 0xD7 || c == 0xDF || c == 0xF7 ? c : c ^ 0x20u;
    if (c >= 0x391 && c <= 0x3AB && c != 0x3A2) return c + 0x20;
    if (c >= 0x3B1 && c <= 0x3CB && c != 0x3C2) return c - 0x20;
    if (c == 0x386 || c == 0x3AC) return c ^ 0x386u ^ 0x3ACu;
    if (c >= 0x388 && c <= 0x38A) return c + 37;
    if (c >= 0x3AD && c <= 0x3AF) return c - 37;
    if (c == 0x38C || c == 0x3CC) return c ^ 0x38Cu ^ 0x3CCu;
    if (c == 0x38E || c == 0x38F) return c + 63;
    if (c == 0x3CD || c == 0x3CE) return c - 63;
    if (c >= 0x400 && c <= 0x40F) return c + 80;
    if (c >= 0x450 && c <= 0x45F) return c - 80;
    if (c >= 0x410 && c <= 0x42F) return c + 32;
    if (c >= 0x430 && c <= 0x44F) return c - 32;
    if ((c >= 0x460 && c <= 0x481) || (c >= 0x48A && c <= 0x4BF) || c >= 0x4D0)
        return c ^ 1u; /* pairs */
    if (c >= 0x4C1 && c <= 0x4CE) return c & 1u ? c + 1 : c - 1;
    if (c == 0x4C0 || c == 0x4CF) return c ^ 0x4C0u ^ 0x4CFu;
    return c;
}

/* Adds the other case of each character. */
static void hfsbi_ranges_fold(hfsbi_ranges *set) {
    size_t i, count = set->count;
    for (i = 0; i < count && !set->failed; i++) {
        hfsbi_regex_range r = set->items[i];
        uint32_t          c;
        for (c = r.low; c <= r.high && c < 0x530; c++)
            if (hfsbi_other_case(c) != c)
                hfsbi_ranges_add(set, hfsbi_other_case(c),
                                 hfsbi_other_case(c));
    }
}

/* ---- named classes ---- */

/* Letters and digits beyond ASCII, roughly: whole blocks of scripts, without
   the punctuation of blocks that have much of it. */
static const hfsbi_regex_range hfsbi_letters[] = {
    {0xAA, 0xAA},       {0xB5, 0xB5},      {0xBA, 0xBA},     {0xC0, 0xD6},
    {0xD8, 0xF6},       {0xF8, 0x2C1},     {0x2C6, 0x2D1},   {0x2E0, 0x2E4},
    {0x370, 0x374},     {0x376, 0x377},    {0x37A, 0x37D},   {0x37F, 0x37F},
    {0x386, 0x386},     {0x388, 0x3F5},    {0x3F7, 0x481},   {0x48A, 0x556},
    {0x560, 0x588},     {0x5D0, 0x5EA},    {0x620, 0x669},   {0x66E, 0x6D3},
    {0x6EE, 0x6FC},     {0x710, 0x74A},    {0x780, 0x7B1},   {0x900, 0x963},
    {0x966, 0x96F},     {0x971, 0xDF3},    {0xE01, 0xE3A},   {0xE40, 0xE4E},
    {0xE50, 0xE59},     {0xE81, 0xEDF},    {0x1000, 0x1049}, {0x1050, 0x10FA},
    {0x10FC, 0x135F},   {0x1380, 0x138F},  {0x13A0, 0x13FD}, {0x1780, 0x17D3},
    {0x1E00, 0x1FBC},   {0x1FC2, 0x1FCC},  {0x1FD0, 0x1FDB}, {0x1FE0, 0x1FEC},
    {0x1FF2, 0x1FFC},   {0x2C00, 0x2CE4},  {0x2D00, 0x2D6F}, {0x3005, 0x3007},
    {0x3031, 0x3035},   {0x3041, 0x3096},  {0x309D, 0x309F}, {0x30A1, 0x30FA},
    {0x30FC, 0x318E},   {0x31A0, 0x31BF},  {0x31F0, 0x31FF}, {0x3400, 0x4DBF},
    {0x4E00, 0xA48C},   {0xA640, 0xA66E},  {0xA722, 0xA788}, {0xAC00, 0xD7A3},
    {0xF900, 0xFAD9},   {0xFB00, 0xFB17},  {0xFB1D, 0xFB28}, {0xFE70, 0xFEFC},
    {0xFF10, 0xFF19},   {0xFF21, 0xFF3A},  {0xFF41, 0xFF5A}, {0xFF66, 0xFFDC},
    {0x1D400, 0x1D7FF}, {0x20000, 0x323AF}};

/* White space beyond ASCII, without non-breaking spaces such as U+00A0, as in
   the C library. */
static const hfsbi_regex_range hfsbi_blanks[] = {
    {0x1680, 0x1680}, {0x2000, 0x2006}, {0x2008, 0x200A},
    {0x2028, 0x2029}, {0x205F, 0x205F}, {0x3000, 0x3000}};

#define HFSBI_REGEX_COUNT(table) (sizeof(table) / sizeof(table)[0])

static bool hfsbi_table_has(const hfsbi_regex_range *table, size_t count,
                            uint32_t code) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table[middle].high < code) low = middle + 1;
        else high = middle;
    }
    return low < count && table[low].low <= code;
}

HFSBI_FN bool hfsbi_regex_is_word(uint32_t c) {
    if (c < 0x80) return hfsbi_is_word_char((char)c);
    return hfsbi_table_has(hfsbi_letters, HFSBI_REGEX_COUNT(hfsbi_letters), c);
}

static void hfsbi_ranges_table(hfsbi_ranges            *set,
                               const hfsbi_regex_range *table, size_t count) {
    size_t i;
    for (i = 0; i < count; i++)
        hfsbi_ranges_add(set, table[i].low, table[i].high);
}

/* Adds the letters of one case: those whose other case is above (upper) or
   below them. */
static void hfsbi_ranges_case(hfsbi_ranges *set, bool upper) {
    uint32_t c;
    for (c = 'A'; c < 0x530; c++) {
        uint32_t other = hfsbi_other_case(c);
        if (other != c && (other > c) == upper) hfsbi_ranges_add(set, c, c);
    }
    if (!upper) hfsbi_ranges_add(set, 0xDF, 0xDF);
}

typedef struct hfsbi_named {
    const char *name;
    const char *ascii;           /* pairs of bounds */
    bool        letters, blanks; /* plus those beyond ASCII */
    int         visible;         /* 1 print, 2 graph, 3 punct */
} hfsbi_named;

static const hfsbi_named hfsbi_named_classes[] = {
    {"alpha", "AZaz", true, false, 0},
    {"digit", "09", false, false, 0},
    {"alnum", "09AZaz", true, false, 0},
    {"space", "\t\r  ", false, true, 0},
    {"blank", "\t\t  ", false, false, 0},
    {"punct", "!/:@[`{~", false, false, 3},
    {"xdigit", "09AFaf", false, false, 0},
    {"cntrl", "\001\037\177\177", false, false, 0},
    {"word", "09AZ__az", true, false, 0},
    {"print", " ~", false, false, 1},
    {"graph", "!~", false, false, 2}};

/* Adds the visible characters beyond ASCII: all but controls, graph also
   excludes white space, punct also letters and digits. */
static void hfsbi_ranges_visible(hfsbi_ranges *set, bool graph, bool punct) {
    hfsbi_ranges out = HFSB_INIT;
    out.alloc = set->alloc;
    hfsbi_ranges_add(&out, 0, 0x9F);
    if (graph)
        hfsbi_ranges_table(&out, hfsbi_blanks,
                           HFSBI_REGEX_COUNT(hfsbi_blanks));
    if (punct)
        hfsbi_ranges_table(&out, hfsbi_letters,
                           HFSBI_REGEX_COUNT(hfsbi_letters));
    hfsbi_ranges_sort(&out);
    hfsbi_ranges_negate(&out);
    hfsbi_ranges_table(set, out.items, out.count);
    if (out.failed) set->failed = true;
    hfsbi_array_free(&out.alloc, out.items, out.cap, sizeof *out.items);
}

HFSBI_FN bool hfsbi_ranges_named(hfsbi_ranges *set, hfsb_str name, bool fold) {
    size_t      i;
    const char *p;
    bool        upper = hfsb_str_equal(name, HFSB_LIT("upper"));
    if (upper || hfsb_str_equal(name, HFSB_LIT("lower"))) {
        hfsbi_ranges_case(set, upper);
        if (fold) hfsbi_ranges_case(set, !upper);
        return true;
    }
    for (i = 0; i < HFSBI_REGEX_COUNT(hfsbi_named_classes); i++) {
        const hfsbi_named *n = &hfsbi_named_classes[i];
        if (!hfsb_str_equal(name, hfsb_cstr(n->name))) continue;
        for (p = n->ascii; *p; p += 2)
            hfsbi_ranges_add(set, (unsigned char)p[0], (unsigned char)p[1]);
        if (n->letters)
            hfsbi_ranges_table(set, hfsbi_letters,
                               HFSBI_REGEX_COUNT(hfsbi_letters));
        if (n->blanks)
            hfsbi_ranges_table(set, hfsbi_blanks,
                               HFSBI_REGEX_COUNT(hfsbi_blanks));
        if (n->visible)
            hfsbi_ranges_visible(set, n->visible > 1, n->visible > 2);
        if (n->name[0] == 'c') { /* a string of bounds cannot contain NUL */
            hfsbi_ranges_add(set, 0, 0);
            hfsbi_ranges_add(set, 0x80, 0x9F);
        }
        return true;
    }
    return false;
}

HFSBI_FN void hfsbi_ranges_escape(hfsbi_ranges *set, char letter) {
    char         small = hfsbi_lower(letter);
    const char  *name = small == 'w'   ? "word"
                        : small == 's' ? "space"
                                       : "digit";
    hfsbi_ranges own = HFSB_INIT;
    own.alloc = set->alloc;
    hfsbi_ranges_named(&own, hfsb_cstr(name), false);
    hfsbi_ranges_sort(&own);
    if (letter != small) hfsbi_ranges_negate(&own);
    hfsbi_ranges_table(set, own.items, own.count);
    if (own.failed) set->failed = true;
    hfsbi_array_free(&own.alloc, own.items, own.cap, sizeof *own.items);
}

/* ---- from characters to bytes ---- */

typedef struct hfsbi_weaver {
    hfsbi_program      *program;
    const hfsbi_ranges *set;
    uint32_t            first;   /* the first node of this class */
    uint32_t            full[4]; /* [n]: node that accepts any n continuation
                                    bytes, plus one; 0: not made yet */
} hfsbi_weaver;

/* How much of [low, high] is in the set: 0 nothing, 1 a part, 2 all. */
static int hfsbi_weave_share(const hfsbi_weaver *w, uint32_t low,
                             uint32_t high) {
    const hfsbi_regex_range *r = w->set->items;
    size_t                   a = 0, b = w->set->count;
    while (a < b) {
        size_t middle = a + (b - a) / 2;
        if (r[middle].high < low) a = middle + 1;
        else b = middle;
    }
    if (a == w->set->count || r[a].low > high) return 0;
    return r[a].low <= low && r[a].high >= high ? 2 : 1;
}

/* An equal node of this class, or HFSBI_EDGE_END. */
static uint32_t hfsbi_weave_same(const hfsbi_weaver *w,
                                 const hfsbi_edge *edges, uint32_t count) {
    const hfsbi_program *p = w->program;
    size_t               i, k, tries = 64;
    for (i = p->node_count; i > w->first && tries > 0; i--, tries--) {
        const hfsbi_edge *other = p->edges + p->nodes[i - 1].edge;
        if (p->nodes[i - 1].edges != count) continue;
        for (k = 0; k < count; k++)
            if (edges[k].low != other[k].low ||
                edges[k].high != other[k].high ||
                edges[k].target != other[k].target)
                break;
        if (k == count) return (uint32_t)(i - 1);
    }
    return HFSBI_EDGE_END;
}

/* The node with these edges, an equal one of this class if there is one. */
static uint32_t hfsbi_weave_node(hfsbi_weaver *w, const hfsbi_edge *edges,
                                 uint32_t count) {
    hfsbi_program *p = w->program;
    void          *grown;
    uint32_t       same = hfsbi_weave_same(w, edges, count);
    if (same != HFSBI_EDGE_END) return same;
    grown = hfsbi_array_grow(&p->alloc, p->edges, &p->edge_cap,
                             p->edge_count + count + 1, sizeof *p->edges);
    if (grown) p->edges = (hfsbi_edge *)grown;
    if (grown)
        grown = hfsbi_array_grow(&p->alloc, p->nodes, &p->node_cap,
                                 p->node_count + 1, sizeof *p->nodes);
    if (!grown) {
        p->status = HFSB_NOMEM;
        return w->first;
    }
    p->nodes = (hfsbi_node *)grown;
    if (count) memcpy(p->edges + p->edge_count, edges, count * sizeof *edges);
    p->nodes[p->node_count].edge = (uint32_t)p->edge_count;
    p->nodes[p->node_count].edges = count;
    p->edge_count += count;
    return (uint32_t)p->node_count++;
}

/* Adds an edge, or extends the last one. */
static void hfsbi_weave_edge(hfsbi_edge *edges, uint32_t *count, unsigned byte,
                             uint32_t target) {
    hfsbi_edge *last = *count ? &edges[*count - 1] : NULL;
    if (last && last->target == target && last->high + 1u == byte) {
        last->high = (unsigned char)byte;
        return;
    }
    edges[*count].low = edges[*count].high = (unsigned char)byte;
    edges[(*count)++].target = target;
}

/* The node that accepts any `more` continuation bytes. */
static uint32_t hfsbi_weave_full(hfsbi_weaver *w, unsigned more) {
    hfsbi_edge edge;
    if (w->full[more]) return w->full[more] - 1;
    edge.low = 0x80;
    edge.high = 0xBF;
    edge.target = more == 1 ? HFSBI_EDGE_END : hfsbi_weave_full(w, more - 1);
    w->full[more] = hfsbi_weave_node(w, &edge, 1) + 1;
    return w->full[more] - 1;
}

/* The node for the characters of the set in [base, base + 64^more), without
   those below `least`. */
static uint32_t hfsbi_weave_part(hfsbi_weaver *w, uint32_t base, unsigned more,
                                 uint32_t least) {
    hfsbi_edge edges[64];
    uint32_t   count = 0, size = 1u << 6 * (more - 1), byte;
    for (byte = 0; byte < 64; byte++) {
        uint32_t low = base + byte * size, high = low + size - 1, target;
        int      share;
        if (high < least) continue;
        share = hfsbi_weave_share(w, low, high);
        if (share == 0) continue;
        if (more == 1) target = HFSBI_EDGE_END;
        else if (share == 2) target = hfsbi_weave_full(w, more - 1);
        else target = hfsbi_weave_part(w, low, more - 1, least);
        hfsbi_weave_edge(edges, &count, 0x80u + byte, target);
    }
    return hfsbi_weave_node(w, edges, count);
}

/* Adds the edges of lead bytes low..high, each followed by `more` bytes. */
static void hfsbi_weave_leads(hfsbi_weaver *w, hfsbi_edge *edges,
                              uint32_t *count, unsigned low, unsigned high,
                              unsigned more, uint32_t least) {
    unsigned byte;
    uint32_t mask = 0x3Fu >> more;
    for (byte = low; byte <= high; byte++) {
        uint32_t base = (byte & mask) << 6 * more, target;
        uint32_t end = base + (1u << 6 * more) - 1;
        int share = hfsbi_weave_share(w, base < least ? least : base, end);
        if (share == 0) continue;
        if (share == 2 && base >= least) target = hfsbi_weave_full(w, more);
        else target = hfsbi_weave_part(w, base, more, least);
        hfsbi_weave_edge(edges, count, byte, target);
    }
}

/* Makes room for one more class. */
static bool hfsbi_weave_begin(hfsbi_weaver *w, hfsbi_program *program) {
    void *grown = hfsbi_array_grow(
        &program->alloc, program->classes, &program->class_cap,
        program->class_count + 1, sizeof *program->classes);
    if (!grown) {
        program->status = HFSB_NOMEM;
        return false;
    }
    program->classes = (hfsbi_class *)grown;
    w->program = program;
    w->first = (uint32_t)program->node_count;
    return true;
}

/* Completes the class, whose root has these edges; returns its number. */
static uint32_t hfsbi_weave_end(hfsbi_weaver *w, const hfsbi_edge *edges,
                                uint32_t count) {
    hfsbi_program *p = w->program;
    hfsbi_class   *c = &p->classes[p->class_count];
    c->root = hfsbi_weave_node(w, edges, count);
    c->node = w->first;
    c->nodes = (uint32_t)p->node_count - w->first;
    return (uint32_t)p->class_count++;
}

HFSBI_FN uint32_t hfsbi_program_class(hfsbi_program *program,
                                      hfsbi_ranges *set, bool fold,
                                      bool negate, uint32_t never) {
    hfsbi_edge   edges[256];
    hfsbi_weaver w = HFSB_INIT;
    uint32_t     count = 0;
    unsigned     byte;
    if (fold) hfsbi_ranges_fold(set);
    hfsbi_ranges_sort(set);
    if (negate) hfsbi_ranges_negate(set);
    hfsbi_ranges_remove(set, 0xD800, 0xDFFF); /* no characters */
    hfsbi_ranges_remove(set, never, never);
    if (set->failed) program->status = HFSB_NOMEM;
    if (program->status != HFSB_OK) return 0;
    if (!hfsbi_weave_begin(&w, program)) return 0;
    w.set = set;
    for (byte = 0; byte < 0x80; byte++)
        if (hfsbi_weave_share(&w, byte, byte))
            hfsbi_weave_edge(edges, &count, byte, HFSBI_EDGE_END);
    hfsbi_weave_leads(&w, edges, &count, 0xC2, 0xDF, 1, 0x80);
    hfsbi_weave_leads(&w, edges, &count, 0xE0, 0xEF, 2, 0x800);
    hfsbi_weave_leads(&w, edges, &count, 0xF0, 0xF4, 3, 0x10000);
    set->count = 0;
    return hfsbi_weave_end(&w, edges, count);
}

HFSBI_FN uint32_t hfsbi_program_bytes(hfsbi_program *program,
                                      unsigned char  but) {
    hfsbi_edge   edges[2];
    hfsbi_weaver w = HFSB_INIT;
    uint32_t     count = 0;
    unsigned     byte;
    if (!hfsbi_weave_begin(&w, program)) return 0;
    for (byte = 0; byte < 256; byte++)
        if (byte != but) hfsbi_weave_edge(edges, &count, byte, HFSBI_EDGE_END);
    return hfsbi_weave_end(&w, edges, count);
}

/* The edges of a node are sorted. */
HFSBI_FN bool hfsbi_node_step(const hfsbi_program *program, uint32_t node,
                              unsigned char byte, uint32_t *target) {
    const hfsbi_edge *e = program->edges + program->nodes[node].edge;
    uint32_t          low = 0, high = program->nodes[node].edges;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (e[middle].high < byte) low = middle + 1;
        else high = middle;
    }
    if (low == program->nodes[node].edges || e[low].low > byte) return false;
    *target = e[low].target;
    return true;
}
