/* json_parse.c - JSON text to a tree in one block. Depends on: base, number,
   json_string, json_keys, json_error.

   The text is read once, without recursion. A text that begins and ends with
   a bracket, as nearly all do, needs no test for its end: every scan outside
   a string stops at a bracket at the latest, so only a closing bracket can be
   the last byte. Any other text (a lone number or word, or one that must fail
   because its end is missing) is read from a copy with a NUL behind it. */
#include "json_tree.h"

#define HFSBI_JSON_DEPTH_DEFAULT 512
#define HFSBI_JSON_BYTES_DEFAULT ((size_t)1 << 30)

HFSBI_FN const char *hfsbi_json_fail(hfsbi_json_parser *p, const char *at,
                                     hfsbi_json_fault fault) {
    p->at = at;
    p->fault = fault;
    return NULL;
}

/* ---- blanks ---- */

static bool hfsbi_json_is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static const char *hfsbi_json_blanks(const char *at, const char *end) {
#ifdef HFSBI_SSE2
    while (end - at >= 16) { /* indentation: mostly one run of spaces */
        const void *from = at;
        __m128i     x = _mm_loadu_si128((const __m128i *)from);
        __m128i     hit = _mm_or_si128(
            _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8(' ')),
                         _mm_cmpeq_epi8(x, _mm_set1_epi8('\n'))),
            _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('\r')),
                         _mm_cmpeq_epi8(x, _mm_set1_epi8('\t'))));
        uint64_t other = ~(uint64_t)(unsigned)_mm_movemask_epi8(hit);
        if (other & 0xFFFF) return at + hfsbi_json_first(other);
        at += 16;
    }
#endif
    (void)end;
    while (hfsbi_json_is_blank(*at)) at++;
    return at;
}

/* The first byte from `at` on that is no blank; there is one. */
static inline const char *hfsbi_json_skip(const hfsbi_json_parser *p,
                                          const char              *at) {
    if ((unsigned char)*at > ' ') return at;
    if (*at == ' ' && (unsigned char)at[1] > ' ') return at + 1;
    return hfsbi_json_blanks(at, p->end);
}

/* ---- the block: strings, then nodes ---- */

/* Strings moved with their block: `was` is where it stood. */
static void hfsbi_json_moved(hfsbi_json_parser *p, uintptr_t was) {
    char  *block = (char *)p->doc->block;
    size_t i;
    p->nodes = (hfsb_json_value *)(void *)(block + p->room);
    if (!p->out || (uintptr_t)block == was) return;
    for (i = 0; i < p->used; i++) {
        hfsb_json_value *v = p->nodes + i;
        if ((v->tag & HFSBI_JSON_TYPE) == HFSB_JSON_STRING)
            v->as.str = block + ((uintptr_t)v->as.str - was);
    }
    p->out = block + ((uintptr_t)p->out - was);
}

/* Make room for exactly cap nodes. */
static bool hfsbi_json_resize(hfsbi_json_parser *p, size_t cap) {
    hfsb_json_doc *doc = p->doc;
    uintptr_t      was = (uintptr_t)doc->block;
    size_t         bytes;
    void          *block;
    if (!hfsbi_mul(cap, sizeof(hfsb_json_value), &bytes) ||
        !hfsbi_add(bytes, p->room, &bytes))
        return false;
    block = hfsbi_realloc(&doc->alloc, doc->block, doc->size, bytes);
    if (!block) return false;
    doc->block = block;
    doc->size = bytes;
    p->cap = cap;
    hfsbi_json_moved(p, was);
    return true;
}

/* ---- values ---- */

static const char *hfsbi_json_number(hfsbi_json_parser *p, const char *at,
                                     hfsb_json_value *node) {
    hfsbi_number n;
    const char  *after = hfsbi_number_parse(at, p->end, &n);
    switch (n.type) {
    case HFSBI_NUMBER_INT: node->tag = HFSB_JSON_INT; break;
    case HFSBI_NUMBER_UINT: node->tag = HFSB_JSON_UINT; break;
    case HFSBI_NUMBER_DOUBLE:
        node->tag = HFSB_JSON_DOUBLE;
        node->as.d = n.as.d;
        return after;
    case HFSBI_NUMBER_RANGE:
        return hfsbi_json_fail(p, at, HFSBI_JSON_RANGE);
    default:
        p->expected = n.expected;
        return hfsbi_json_fail(p, after, HFSBI_JSON_NO_NUMBER);
    }
    node->as.u = n.as.u;
    return after;
}

/* Reads `word`; the bytes are compared one by one, so that the scan stops at
   the bracket behind at the latest. */
static const char *hfsbi_json_word(hfsbi_json_parser *p, const char *at,
                                   const char *word, uint64_t tag,
                                   hfsb_json_value *node) {
    for (; *word; word++, at++)
        if (*at != *word)
            return hfsbi_json_fail(p, at, HFSBI_JSON_NO_WORD);
    node->tag = tag;
    node->as.u = 0;
    return at;
}

/* A value that is no container. `fault` is what it is when none stands here.*/
static inline const char *hfsbi_json_scalar(hfsbi_json_parser *p,
                                            const char        *at,
                                            hfsb_json_value   *node,
                                            hfsbi_json_fault   fault) {
    const uint64_t yes = (uint64_t)1 << HFSBI_JSON_COUNT;
    if (*at == '"') return hfsbi_json_string(p, at + 1, node);
    if (*at == '-' || (unsigned)*at - '0' < 10u)
        return hfsbi_json_number(p, at, node);
    if (*at == 't')
        return hfsbi_json_word(p, at, "true", HFSB_JSON_BOOL | yes, node);
    if (*at == 'f')
        return hfsbi_json_word(p, at, "false", HFSB_JSON_BOOL, node);
    if (*at == 'n')
        return hfsbi_json_word(p, at, "null", HFSB_JSON_NULL, node);
    return hfsbi_json_fail(p, at, fault);
}

/* ---- containers ---- */

/* Reads the container at `at`, gives the place behind it or NULL. One
   function, since its states share everything and jump to each other: as
   several it was neither shorter nor clearer, but slower. */
static const char *hfsbi_json_tree(hfsbi_json_parser *p, const char *at) {
    const uint64_t   one = (uint64_t)1 << HFSBI_JSON_COUNT;
    hfsb_json_value *node = p->nodes, *box = node; /* next; innermost open */
    hfsbi_json_fault fault;
    size_t           depth = 0;

open: /* at a bracket, for which there is a node */
    if (++depth > p->max_depth)
        return hfsbi_json_fail(p, at, HFSBI_JSON_DEPTH);
    node->as.span = (size_t)(node - box);
    box = node++;
    if (*at == '{') {
        box->tag = HFSB_JSON_OBJECT;
        at = hfsbi_json_skip(p, at + 1);
        if (*at == '}') goto close;
        fault = HFSBI_JSON_NO_KEY;
        goto member;
    }
    box->tag = HFSB_JSON_ARRAY;
    at = hfsbi_json_skip(p, at + 1);
    if (*at == ']') goto close;
    fault = HFSBI_JSON_NO_VALUE;

element:
    if (node == p->nodes + p->cap) goto grow;
    if (*at == '{' || *at == '[') goto open;
    at = hfsbi_json_scalar(p, at, node, fault);
    if (!at) return NULL;
    node++;
element_end:
    box->tag += one;
    at = hfsbi_json_skip(p, at);
    if (*at == ',') {
        at = hfsbi_json_skip(p, at + 1);
        fault = HFSBI_JSON_NO_ITEM;
        goto element;
    }
    if (*at == ']') goto close;
    return hfsbi_json_fail(p, at, HFSBI_JSON_NO_ARRAY_END);

member:
    if (p->nodes + p->cap - node < 2) goto grow;
    if (*at != '"') return hfsbi_json_fail(p, at, fault);
    at = hfsbi_json_string(p, at + 1, node);
    if (!at) return NULL;
    node++;
    at = hfsbi_json_skip(p, at);
    if (*at != ':') return hfsbi_json_fail(p, at, HFSBI_JSON_NO_COLON);
    at = hfsbi_json_skip(p, at + 1);
    if (*at == '{' || *at == '[') goto open;
    at = hfsbi_json_scalar(p, at, node, HFSBI_JSON_NO_VALUE);
    if (!at) return NULL;
    node++;
member_end:
    box->tag += one;
    at = hfsbi_json_skip(p, at);
    if (*at == ',') {
        at = hfsbi_json_skip(p, at + 1);
        fault = HFSBI_JSON_NO_NEXT_KEY;
        goto member;
    }
    if (*at != '}')
        return hfsbi_json_fail(p, at, HFSBI_JSON_NO_OBJECT_END);

close: {
    hfsb_json_value *outer = box - box->as.span;
    bool             inner = outer != box, keyed;
    at++;
    depth--;
    box->as.span = (size_t)(node - box);
    box = outer;
    if (!inner) {
        p->used = (size_t)(node - p->nodes);
        return at;
    }
    keyed = (box->tag & HFSBI_JSON_TYPE) == HFSB_JSON_OBJECT;
    if (at == p->end)
        return hfsbi_json_fail(p, at, keyed ? HFSBI_JSON_NO_OBJECT_END
                                            : HFSBI_JSON_NO_ARRAY_END);
    if (keyed) goto member_end;
    goto element_end;
}

grow: {
    size_t inside = (size_t)(box - p->nodes);
    p->used = (size_t)(node - p->nodes);
    if (!hfsbi_json_resize(p, p->cap > (size_t)-1 / 32 ? (size_t)-1 / 16
                                                       : p->cap * 2))
        return hfsbi_json_fail(p, at, HFSBI_JSON_NOMEM);
    node = p->nodes + p->used;
    box = p->nodes + inside;
    if ((box->tag & HFSBI_JSON_TYPE) == HFSB_JSON_OBJECT) goto member;
    goto element;
}
}

/* ---- the whole text ---- */

/* All of it, p->text to p->end without blanks around it, into p->nodes. */
static bool hfsbi_json_all(hfsbi_json_parser *p, const char *at) {
    if (*at == '{' || *at == '[') {
        at = hfsbi_json_tree(p, at);
    } else {
        p->used = 1;
        at = hfsbi_json_scalar(p, at, p->nodes, HFSBI_JSON_NO_VALUE);
    }
    if (at && at < p->end) {
        /* a string may end before blanks that are not at the text's end */
        while (at < p->end && hfsbi_json_is_blank(*at)) at++;
        return hfsbi_json_fail(p, at, HFSBI_JSON_NO_TEXT_END);
    }
    return at != NULL;
}

/* Reads a text that has no bracket at its end, from a copy with a NUL there.
   Strings stay where they are: only a number or a word can be good. */
static bool hfsbi_json_unclosed(hfsbi_json_parser *p, size_t from) {
    const hfsb_alloc *alloc = &p->doc->alloc;
    const char       *text = p->text;
    size_t            len = (size_t)(p->end - text);
    char             *copy = (char *)hfsbi_array(alloc, len + 1, 1);
    bool              ok;
    if (!copy) return hfsbi_json_fail(p, text, HFSBI_JSON_NOMEM) != NULL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    p->text = copy;
    p->end = copy + len;
    ok = hfsbi_json_all(p, copy + from);
    if (!ok) p->at = text + (p->at - copy);
    p->text = text;
    p->end = text + len;
    hfsbi_array_free(alloc, copy, len + 1, 1);
    return ok;
}

/* Gets the block and reads the text from `from` on. `strings`: they are to be
   copied. */
static bool hfsbi_json_run(hfsbi_json_parser *p, size_t from, bool strings) {
    size_t len = (size_t)(p->end - p->text);
    char   last = p->end[-1];
    bool   closed = p->text[from] == '"' || last == '}' || last == ']';
    /* A value needs two bytes, most take more, and one that holds a whole
       file is nearly all of its text. */
    size_t cap = len < 1024 ? len / 4 + 4 : len / 32 + 228;
    p->room = closed && strings ? (len + 15) & ~(size_t)15 : 0;
    if (!hfsbi_json_resize(p, cap))
        return hfsbi_json_fail(p, p->text, HFSBI_JSON_NOMEM);
    if (!closed) return hfsbi_json_unclosed(p, from);
    if (strings) p->out = (char *)p->doc->block;
    return hfsbi_json_all(p, p->text + from);
}

/* Keys once, strings in place decoded, memory that is not needed given back.
   After this the text may have changed. */
static bool hfsbi_json_settle(hfsbi_json_parser *p, hfsb_str text,
                              bool unique) {
    bool   nomem = false;
    size_t i = unique ? hfsbi_json_repeated_key(p, &nomem) : HFSB_NPOS;
    if (nomem) return hfsbi_json_fail(p, text.ptr, HFSBI_JSON_NOMEM);
    if (i != HFSB_NPOS) {
        p->used = i;
        return hfsbi_json_fail(p, hfsbi_json_locate(text, i),
                               HFSBI_JSON_TWICE);
    }
    for (i = 0; !p->out && i < p->used; i++)
        if ((p->nodes[i].tag & HFSBI_JSON_TYPE) == HFSB_JSON_STRING)
            hfsbi_json_unescape(p->nodes + i);
    i = (p->cap - p->used) * sizeof(hfsb_json_value);
    if (i > 4096 && i > p->doc->size / 2)
        (void)hfsbi_json_resize(p, p->used); /* failing does no harm */
    return true;
}

/* The parser for text, blanks at its end left out. Not by an all-zero
   initialiser, which costs more than a small request. */
static void hfsbi_json_prepare(hfsbi_json_parser *p, hfsb_str text,
                               const hfsb_json_parse_opts *opts,
                               hfsb_json_doc              *doc) {
    p->text = text.ptr;
    p->end = text.ptr + text.len;
    while (p->end > p->text && hfsbi_json_is_blank(p->end[-1])) p->end--;
    p->out = NULL;
    p->nodes = NULL;
    p->used = p->cap = p->room = 0;
    p->max_depth = opts && opts->max_depth ? opts->max_depth
                                           : HFSBI_JSON_DEPTH_DEFAULT;
    p->doc = doc;
    p->escaped = false;
    p->fault = HFSBI_JSON_OK;
    doc->root = NULL;
    doc->block = NULL;
    doc->size = 0;
}

static hfsb_status hfsbi_json_start(hfsb_str text, bool in_place,
                                    const hfsb_json_parse_opts *opts,
                                    hfsb_json_doc *doc, hfsb_err *err) {
    hfsbi_json_parser p;
    size_t max = opts && opts->max_bytes ? opts->max_bytes
                                         : HFSBI_JSON_BYTES_DEFAULT;
    size_t from = 0;
    bool   unique = opts && opts->unique_keys, ok;
    if (!text.ptr) text = HFSB_LIT("");
    hfsbi_json_prepare(&p, text, opts, doc);
    if (text.len > max)
        return hfsbi_fail(err, HFSB_LIMIT, max,
                          "the text has %zu bytes, at most %zu are taken",
                          text.len, max);
    while (from < text.len && hfsbi_json_is_blank(text.ptr[from])) from++;
    if (from == text.len) {
        hfsbi_json_fail(&p, p.text + from, HFSBI_JSON_NO_VALUE);
        return hfsbi_json_report(&p, text, err);
    }
    ok = hfsbi_json_run(&p, from, !in_place);
    /* Keys can only be compared decoded, faults only be placed before. */
    if (ok && in_place && unique && p.escaped) {
        hfsb_json_free(doc);
        return hfsbi_json_start(text, false, opts, doc, err);
    }
    ok = ok && hfsbi_json_settle(&p, text, unique);
    if (!ok) {
        hfsb_status st = hfsbi_json_report(&p, text, err);
        hfsb_json_free(doc);
        return st;
    }
    doc->root = p.nodes;
    return hfsbi_ok(err);
}

hfsb_status hfsb_json_parse(hfsb_str text, const hfsb_json_parse_opts *opts,
                            hfsb_json_doc *doc, hfsb_err *err) {
    return hfsbi_json_start(text, false, opts, doc, err);
}

hfsb_status hfsb_json_parse_in_place(char *text, size_t len,
                                     const hfsb_json_parse_opts *opts,
                                     hfsb_json_doc *doc, hfsb_err *err) {
    return hfsbi_json_start(hfsb_str_make(text, len), true, opts, doc, err);
}

void hfsb_json_free(hfsb_json_doc *doc) {
    if (doc->block) hfsbi_realloc(&doc->alloc, doc->block, doc->size, 0);
    doc->root = NULL;
    doc->block = NULL;
    doc->size = 0;
}
