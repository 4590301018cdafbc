/* json_write.c - JSON text from a tree, or call by call.

   JSON is written in many small pieces, straight into the buffer's memory and
   without a NUL after each; hfsbi_json_terminate() adds it before the caller
   can look. Strings are scanned and copied a block at a time.

   A tree is written without recursion. The writer keeps one bit per level (an
   array or an object) and a state:

       EMPTY --value--> ITEMS --value--> ITEMS     in an array
       EMPTY --key--> KEY --value--> ITEMS         in an object
       the value at level 0 --> DONE

   Anything else is the caller's mistake: it fails the buffer with HFSB_ARG, so
   that all later calls do nothing. */
#include "core_private.h"

/* ---- pieces ---- */

/* Bytes that the buffer can hold without growing, including the NUL. */
static inline size_t hfsbi_json_room(const hfsb_buf *b) {
    return b->max && b->max < b->cap ? b->max + 1 : b->cap;
}

/* hfsb_buf_append() without the NUL when there is room. */
static inline void hfsbi_json_piece(hfsb_buf *b, const char *ptr, size_t n) {
    if (hfsbi_json_room(b) > b->len && n < hfsbi_json_room(b) - b->len) {
        memcpy(b->ptr + b->len, ptr, n);
        b->len += n;
    } else {
        hfsb_buf_append(b, hfsb_str_make(ptr, n));
    }
}

static inline void hfsbi_json_byte(hfsb_buf *b, char c) {
    if (hfsbi_json_room(b) > b->len + 1) b->ptr[b->len++] = c;
    else hfsb_buf_append_byte(b, c);
}

static void hfsbi_json_terminate(hfsb_buf *b) {
    if (b->cap) b->ptr[b->len] = '\0';
}

/* The letter of the short escape for c; 0: it has none. */
static char hfsbi_json_letter(unsigned char c) {
    static const char control[] = "\0\0\0\0\0\0\0\0btn\0fr";
    if (c < sizeof control) return control[c];
    return c == '"' || c == '\\' ? (char)c : '\0';
}

/* Writes the character at byte i of s, escaped or repaired if necessary, to
   the 6 bytes at out, *n of them used. Returns the bytes of s it took. */
static size_t hfsbi_json_put_char(hfsb_str s, size_t i, char *out, size_t *n) {
    static const char hex[] = "0123456789abcdef";
    unsigned char     c = (unsigned char)s.ptr[i];
    char              letter = hfsbi_json_letter(c);
    unsigned long     code;
    if (letter) {
        out[0] = '\\';
        out[1] = letter;
        *n = 2;
        return 1;
    }
    if (c < 0x20) {
        memcpy(out, "\\u00", 4);
        out[4] = hex[c >> 4];
        out[5] = hex[c & 15];
        *n = 6;
        return 1;
    }
    i = hfsb_utf8_step(s, i, &code, NULL);
    *n = hfsb_utf8_encode(code, out);
    return i;
}

/* Writes as much of s from *i on as fits into the room of *b. */
static void hfsbi_json_put_blocks(hfsb_buf *b, hfsb_str s, size_t *i,
                                  bool valid) {
    const char *at = s.ptr + *i, *end = s.ptr + s.len, *stop;
    char       *out = b->ptr + b->len;
    char       *limit = b->ptr + hfsbi_json_room(b) - 16;
    while (at < end && out < limit) {
        size_t n = (size_t)(limit - out);
        stop = (size_t)(end - at) < n ? end : at + n;
        stop = hfsbi_json_copy_run(at, stop, out, !valid);
        out += stop - at;
        at = stop;
        if (at == end || out == limit) break;
        at += hfsbi_json_put_char(s, (size_t)(at - s.ptr), out, &n);
        out += n;
    }
    *i = (size_t)(at - s.ptr);
    b->len = (size_t)(out - b->ptr);
}

/* Appends the text of a string, in blocks with generous room; near the
   ceiling of the buffer character by character. `valid`: s is known to be
   UTF-8. */
static hfsb_status hfsbi_json_put_inside(hfsb_buf *b, hfsb_str s, bool valid) {
    size_t i = 0;
    while (i < s.len) {
        hfsb_status st = HFSB_OK;
        if (hfsbi_json_room(b) < b->len + 64)
            st = s.len - i < (size_t)-1 - 64
                     ? hfsb_buf_reserve(b, s.len - i + 64)
                     : HFSB_LIMIT;
        if (st == HFSB_OK) {
            hfsbi_json_put_blocks(b, s, &i, valid);
        } else if (st == HFSB_LIMIT) {
            char   piece[6];
            size_t n = 1;
            piece[0] = s.ptr[i];
            if (hfsbi_json_is_plain(s.ptr[i], !valid)) i++;
            else i += hfsbi_json_put_char(s, i, piece, &n);
            st = hfsb_buf_append(b, hfsb_str_make(piece, n));
        }
        if (st != HFSB_OK) return st;
    }
    return HFSB_OK;
}

/* Appends a string. `plain`: it needs no escapes. */
static void hfsbi_json_put_text(hfsb_buf *b, hfsb_str s, bool valid,
                                bool plain) {
    hfsbi_json_byte(b, '"');
    if (plain) hfsbi_json_piece(b, s.ptr, s.len);
    else if (b->status == HFSB_OK)
        b->status = hfsbi_json_put_inside(b, s, valid);
    hfsbi_json_byte(b, '"');
}

static void hfsbi_json_newline(hfsb_buf *b, bool pretty, size_t depth) {
    if (!pretty) return;
    hfsbi_json_byte(b, '\n');
    while (depth-- > 0) hfsbi_json_piece(b, "  ", 2);
}

/* Appends a value that is not a container, or an empty one. */
static void hfsbi_json_put_leaf(hfsb_buf *b, const hfsb_json_value *v) {
    char   text[32];
    size_t n = 0;
    switch (hfsb_json_type_of(v)) {
    case HFSB_JSON_NULL: hfsbi_json_piece(b, "null", 4); return;
    case HFSB_JSON_BOOL:
        if (hfsb_json_bool(v, false)) hfsbi_json_piece(b, "true", 4);
        else hfsbi_json_piece(b, "false", 5);
        return;
    case HFSB_JSON_INT: n = hfsbi_number_write_int(v->as.i, text); break;
    case HFSB_JSON_UINT: n = hfsbi_number_write_uint(v->as.u, text); break;
    case HFSB_JSON_DOUBLE: n = hfsbi_number_write_double(v->as.d, text); break;
    case HFSB_JSON_STRING:
        hfsbi_json_put_text(b, hfsb_json_str(v, HFSB_LIT("")), true,
                            (v->tag & HFSBI_JSON_PLAIN) != 0);
        return;
    case HFSB_JSON_ARRAY: hfsbi_json_piece(b, "[]", 2); return;
    case HFSB_JSON_OBJECT: hfsbi_json_piece(b, "{}", 2); return;
    }
    hfsbi_json_piece(b, text, n);
}

/* ---- a tree ---- */

#define HFSBI_JSON_SHALLOW 64

/* The open containers, outermost first; the first few need no memory. */
typedef struct hfsbi_json_boxes {
    const hfsb_json_value  *few[HFSBI_JSON_SHALLOW];
    const hfsb_json_value **more; /* the deeper ones */
    size_t                  cap;  /* of more */
    size_t                  depth;
} hfsbi_json_boxes;

/* Pushes a container; false when out of memory. */
static bool hfsbi_json_enter(hfsbi_json_boxes *s, const hfsb_alloc *alloc,
                             const hfsb_json_value *box) {
    size_t n = s->depth - HFSBI_JSON_SHALLOW;
    void  *grown;
    if (s->depth < HFSBI_JSON_SHALLOW) {
        s->few[s->depth++] = box;
        return true;
    }
    grown = hfsbi_array_grow(alloc, (void *)s->more, &s->cap, n + 1,
                             sizeof *s->more);
    if (!grown) return false;
    s->more = (const hfsb_json_value **)grown;
    s->more[n] = box;
    s->depth++;
    return true;
}

static const hfsb_json_value *hfsbi_json_innermost(const hfsbi_json_boxes *s) {
    size_t n = s->depth;
    if (!n) return NULL;
    return n <= HFSBI_JSON_SHALLOW ? s->few[n - 1]
                                   : s->more[n - 1 - HFSBI_JSON_SHALLOW];
}

static bool hfsbi_json_is_object(const hfsb_json_value *value) {
    return hfsb_json_type_of(value) == HFSB_JSON_OBJECT;
}

/* Appends the key before a member; returns the node of the value. */
static const hfsb_json_value *hfsbi_json_put_name(hfsb_buf              *b,
                                                  const hfsb_json_value *node,
                                                  bool keyed, bool pretty) {
    if (!keyed) return node;
    hfsbi_json_put_leaf(b, node);
    hfsbi_json_piece(b, ": ", pretty ? 2 : 1);
    return node + 1;
}

/* Appends value and everything in it, at indentation `depth`. */
static void hfsbi_json_put_tree(hfsb_buf *b, const hfsb_json_value *value,
                                bool pretty, size_t depth) {
    hfsbi_json_boxes       boxes;
    const hfsb_json_value *node = value, *box = NULL;
    boxes.depth = boxes.cap = 0;
    boxes.more = NULL;
    while (b->status == HFSB_OK) {
        if (hfsb_json_count(node)) {
            if (!hfsbi_json_enter(&boxes, &b->alloc, node))
                b->status = HFSB_NOMEM;
            box = node++;
            hfsbi_json_byte(b, hfsbi_json_is_object(box) ? '{' : '[');
        } else {
            hfsbi_json_put_leaf(b, node);
            if (node) node++;
            while (box && node == box + box->as.span) {
                boxes.depth--;
                hfsbi_json_newline(b, pretty, depth + boxes.depth);
                hfsbi_json_byte(b, hfsbi_json_is_object(box) ? '}' : ']');
                box = hfsbi_json_innermost(&boxes);
            }
            if (!box) break;
            hfsbi_json_byte(b, ',');
        }
        hfsbi_json_newline(b, pretty, depth + boxes.depth);
        node = hfsbi_json_put_name(b, node, hfsbi_json_is_object(box), pretty);
    }
    if (boxes.more)
        hfsbi_realloc(&b->alloc, (void *)boxes.more,
                      boxes.cap * sizeof *boxes.more, 0);
}

hfsb_status hfsb_json_write(const hfsb_json_value      *value,
                            const hfsb_json_write_opts *opts, hfsb_buf *out,
                            hfsb_err *err) {
    size_t mark = out->len;
    hfsbi_json_put_tree(out, value, opts && opts->pretty, 0);
    hfsbi_json_terminate(out);
    if (hfsb_buf_finish(out, mark) == HFSB_OK) return hfsbi_ok(err);
    return hfsbi_fail_status(err, out->status, "writing JSON");
}

/* ---- call by call ---- */

void hfsb_json_writer_init(hfsb_json_writer *w, hfsb_buf *out,
                           const hfsb_json_write_opts *opts) {
    memset(w, 0, sizeof *w);
    w->out = out;
    w->mark = out->len;
    w->pretty = opts && opts->pretty;
}

void hfsb_json_writer_init_doc(hfsb_json_writer *w, hfsb_json_doc *doc) {
    memset(w, 0, sizeof *w);
    w->doc = doc;
    w->out = &w->tree.nodes;
    hfsbi_build_init(&w->tree, &doc->alloc);
}

typedef enum hfsbi_json_state {
    HFSBI_JSON_EMPTY, /* no item yet in this container, or no root */
    HFSBI_JSON_ITEMS,
    HFSBI_JSON_KEY, /* a value must follow */
    HFSBI_JSON_DONE
} hfsbi_json_state;

static void hfsbi_json_misuse(hfsb_json_writer *w, const char *problem) {
    w->out->status = HFSB_ARG;
    w->problem = problem;
}

static bool hfsbi_json_in_object(const hfsb_json_writer *w) {
    size_t d = w->depth - 1;
    return w->depth && (w->is_object[d / 8] >> (d % 8) & 1);
}

/* The comma and the line break before an item, as needed. */
static void hfsbi_json_separate(hfsb_json_writer *w) {
    if (w->doc) return;
    if (w->state == HFSBI_JSON_ITEMS) hfsbi_json_byte(w->out, ',');
    if (w->depth) hfsbi_json_newline(w->out, w->pretty, w->depth);
}

/* Before each value: false when no value may come here. */
static bool hfsbi_json_begin_value(hfsb_json_writer *w) {
    if (w->out->status != HFSB_OK) return false;
    if (w->state == HFSBI_JSON_KEY) return true;
    if (w->state == HFSBI_JSON_DONE) {
        hfsbi_json_misuse(w, "a second value after the first was complete");
        return false;
    }
    if (hfsbi_json_in_object(w)) {
        hfsbi_json_misuse(w, "a value in an object without a key");
        return false;
    }
    hfsbi_json_separate(w);
    return true;
}

static void hfsbi_json_end_value(hfsb_json_writer *w) {
    if (!w->doc) hfsbi_json_terminate(w->out);
    w->state = w->depth ? HFSBI_JSON_ITEMS : HFSBI_JSON_DONE;
}

static void hfsbi_json_put_raw(hfsb_json_writer *w, hfsb_str text) {
    if (!hfsbi_json_begin_value(w)) return;
    hfsbi_json_piece(w->out, text.ptr, text.len);
    hfsbi_json_end_value(w);
}

/* A value that is one node of a document, or this text. */
static void hfsbi_json_put_node(hfsb_json_writer *w, hfsb_json_type type,
                                hfsb_json_value node, hfsb_str text) {
    if (!w->doc) {
        hfsbi_json_put_raw(w, text);
        return;
    }
    node.tag |= (uint64_t)type;
    if (!hfsbi_json_begin_value(w)) return;
    hfsbi_build_node(&w->tree, NULL, &node);
    hfsbi_json_end_value(w);
}

void hfsb_json_put_null(hfsb_json_writer *w) {
    hfsb_json_value node = HFSB_INIT;
    hfsbi_json_put_node(w, HFSB_JSON_NULL, node, HFSB_LIT("null"));
}

void hfsb_json_put_bool(hfsb_json_writer *w, bool value) {
    hfsb_json_value node = HFSB_INIT;
    node.tag = (uint64_t)value << HFSBI_JSON_COUNT;
    hfsbi_json_put_node(w, HFSB_JSON_BOOL, node,
                        value ? HFSB_LIT("true") : HFSB_LIT("false"));
}

void hfsb_json_put_int(hfsb_json_writer *w, long long value) {
    hfsb_json_value node = HFSB_INIT;
    char            text[32];
    node.as.i = value;
    hfsbi_json_put_node(
        w, HFSB_JSON_INT, node,
        hfsb_str_make(text, hfsbi_number_write_int(value, text)));
}

void hfsb_json_put_uint(hfsb_json_writer *w, unsigned long long value) {
    hfsb_json_value node = HFSB_INIT;
    char            text[32];
    node.as.u = value; /* the same bits where it fits an int */
    hfsbi_json_put_node(
        w, value >> 63 ? HFSB_JSON_UINT : HFSB_JSON_INT, node,
        hfsb_str_make(text, hfsbi_number_write_uint(value, text)));
}

void hfsb_json_put_double(hfsb_json_writer *w, double value) {
    hfsb_json_value node = HFSB_INIT;
    char            text[32];
    size_t          n = hfsbi_number_write_double(value, text);
    node.as.d = value;
    if (n)
        hfsbi_json_put_node(w, HFSB_JSON_DOUBLE, node, hfsb_str_make(text, n));
    else if (w->out->status == HFSB_OK)
        hfsbi_json_misuse(w, "NaN or infinity, which JSON does not have");
}

void hfsb_json_put_str(hfsb_json_writer *w, hfsb_str value) {
    if (!hfsbi_json_begin_value(w)) return;
    if (w->doc) hfsbi_build_str(&w->tree, NULL, value);
    else hfsbi_json_put_text(w->out, value, false, false);
    hfsbi_json_end_value(w);
}

void hfsb_json_put_value(hfsb_json_writer *w, const hfsb_json_value *value) {
    if (!hfsbi_json_begin_value(w)) return;
    if (w->doc) hfsbi_build_value(&w->tree, NULL, value);
    else hfsbi_json_put_tree(w->out, value, w->pretty, w->depth);
    hfsbi_json_end_value(w);
}

void hfsb_json_put_key(hfsb_json_writer *w, hfsb_str key) {
    bool after_key = w->state == HFSBI_JSON_KEY;
    if (w->out->status != HFSB_OK) return;
    if (!hfsbi_json_in_object(w) || after_key) {
        hfsbi_json_misuse(w, after_key ? "a key where a value belongs"
                                       : "a key outside an object");
        return;
    }
    hfsbi_json_separate(w);
    w->state = HFSBI_JSON_KEY;
    if (w->doc) {
        hfsbi_build_key(&w->tree, key);
        return;
    }
    hfsbi_json_put_text(w->out, key, false, false);
    hfsbi_json_piece(w->out, ": ", w->pretty ? 2 : 1);
    hfsbi_json_terminate(w->out);
}

static void hfsbi_json_open(hfsb_json_writer *w, bool object) {
    unsigned char bit = (unsigned char)(1u << (w->depth % 8));
    if (w->out->status == HFSB_OK && w->depth == HFSB_JSON_WRITER_DEPTH) {
        hfsbi_json_misuse(w, "more than 512 levels");
        return;
    }
    if (!hfsbi_json_begin_value(w)) return;
    if (w->doc && object) hfsbi_build_object(&w->tree, NULL);
    else if (w->doc) hfsbi_build_array(&w->tree, NULL);
    else hfsbi_json_byte(w->out, object ? '{' : '[');
    if (!w->doc) hfsbi_json_terminate(w->out);
    w->is_object[w->depth / 8] =
        (unsigned char)(object ? w->is_object[w->depth / 8] | bit
                               : w->is_object[w->depth / 8] & ~bit);
    w->depth++;
    w->state = HFSBI_JSON_EMPTY;
}

void hfsb_json_put_array(hfsb_json_writer *w) {
    hfsbi_json_open(w, false);
}

void hfsb_json_put_object(hfsb_json_writer *w) {
    hfsbi_json_open(w, true);
}

void hfsb_json_put_end(hfsb_json_writer *w) {
    bool object = hfsbi_json_in_object(w);
    if (w->out->status != HFSB_OK) return;
    if (!w->depth || w->state == HFSBI_JSON_KEY) {
        hfsbi_json_misuse(w, w->depth ? "an end where a value belongs"
                                      : "an end without a beginning");
        return;
    }
    w->depth--;
    if (!w->doc && w->state == HFSBI_JSON_ITEMS)
        hfsbi_json_newline(w->out, w->pretty, w->depth);
    if (w->doc) hfsbi_build_end(&w->tree);
    else hfsbi_json_byte(w->out, object ? '}' : ']');
    hfsbi_json_end_value(w);
}

hfsb_status hfsb_json_writer_finish(hfsb_json_writer *w, hfsb_err *err) {
    hfsb_status st;
    if (w->out->status == HFSB_OK && w->state != HFSBI_JSON_DONE)
        hfsbi_json_misuse(w, w->depth ? "an array or object without its end"
                                      : "no value at all");
    st = w->doc ? hfsbi_build_finish(&w->tree, w->doc)
                : hfsb_buf_finish(w->out, w->mark);
    if (st == HFSB_OK) return hfsbi_ok(err);
    if (w->problem)
        return hfsbi_fail(err, HFSB_ARG, 0, "writing JSON: %s", w->problem);
    return hfsbi_fail_status(err, st, "writing JSON");
}

HFSBI_FN void hfsbi_json_put_quoted(hfsb_buf *out, hfsb_str text) {
    hfsbi_json_put_text(out, text, false, false);
    hfsbi_json_terminate(out);
}

void hfsb_json_put_member_str(hfsb_json_writer *w, const char *key,
                              hfsb_str value) {
    hfsb_json_put_key(w, hfsb_cstr(key));
    hfsb_json_put_str(w, value);
}

void hfsb_json_put_member_int(hfsb_json_writer *w, const char *key,
                              long long value) {
    hfsb_json_put_key(w, hfsb_cstr(key));
    hfsb_json_put_int(w, value);
}

void hfsb_json_put_member_double(hfsb_json_writer *w, const char *key,
                                 double value) {
    hfsb_json_put_key(w, hfsb_cstr(key));
    hfsb_json_put_double(w, value);
}

void hfsb_json_put_member_bool(hfsb_json_writer *w, const char *key,
                               bool value) {
    hfsb_json_put_key(w, hfsb_cstr(key));
    hfsb_json_put_bool(w, value);
}

/* ---- a format ---- */

/* A va_list that functions can advance: the type itself may be an array. */
typedef struct hfsbi_json_args {
    va_list list;
} hfsbi_json_args;

/* Appends s: inside quotes as the text of a string, outside unchanged. */
static void hfsbi_json_insert(hfsb_buf *b, hfsb_str s, bool quoted) {
    if (!quoted) hfsb_buf_append(b, s.ptr ? s : HFSB_LIT("null"));
    else if (b->status == HFSB_OK && s.len)
        b->status = hfsbi_json_put_inside(b, s, false);
    hfsbi_json_terminate(b);
}

static void hfsbi_json_insert_double(hfsb_buf *b, double value) {
    char   digits[32];
    size_t n = hfsbi_number_write_double(value, digits);
    hfsb_buf_append(b, n ? hfsb_str_make(digits, n) : HFSB_LIT("null"));
}

/* Appends the integer of a conversion "d" or "u" after `longs` times "l", or
   -1: "z". */
static void hfsbi_json_insert_int(hfsb_buf *b, hfsbi_json_args *ap, int longs,
                                  char kind) {
    char   digits[32];
    size_t n;
    if (kind == 'd') {
        long long i = longs > 1    ? va_arg(ap->list, long long)
                      : longs == 1 ? va_arg(ap->list, long)
                                   : va_arg(ap->list, int);
        n = hfsbi_number_write_int(i, digits);
    } else {
        unsigned long long u = longs < 0 ? va_arg(ap->list, size_t)
                               : longs > 1
                                   ? va_arg(ap->list, unsigned long long)
                               : longs == 1 ? va_arg(ap->list, unsigned long)
                                            : va_arg(ap->list, unsigned);
        n = hfsbi_number_write_uint(u, digits);
    }
    hfsb_buf_append(b, hfsb_str_make(digits, n));
}

/* Appends the argument for the conversion after a "%" and returns its end. */
static const char *hfsbi_json_convert(hfsb_buf *b, const char *f, bool quoted,
                                      hfsbi_json_args *ap) {
    int longs = 0;
    if (*f == '%') {
        hfsb_buf_append_byte(b, '%');
    } else if (*f == 's') {
        const char *s = va_arg(ap->list, const char *);
        hfsbi_json_insert(b, hfsb_str_make(s, s ? strlen(s) : 0), quoted);
    } else if (strncmp(f, ".*s", 3) == 0) {
        int         n = va_arg(ap->list, int);
        const char *s = va_arg(ap->list, const char *);
        hfsbi_json_insert(b, hfsb_str_make(s, s && n > 0 ? (size_t)n : 0),
                          quoted);
        f += 2;
    } else if (*f == 'g') {
        hfsbi_json_insert_double(b, va_arg(ap->list, double));
    } else {
        if (*f == 'z' && f[1] == 'u') longs = -1;
        for (; *f == 'l' && longs < 2; f++) longs++;
        if (longs < 0) f++;
        if (*f == 'd' || *f == 'u') hfsbi_json_insert_int(b, ap, longs, *f);
        else if (b->status == HFSB_OK) b->status = HFSB_ARG;
    }
    return *f ? f + 1 : f;
}

HFSBI_FN hfsb_status hfsbi_json_vprintf(hfsb_buf *out, const char *format,
                                        va_list ap) {
    hfsbi_json_args args;
    size_t          mark = out->len;
    bool            quoted = false;
    va_copy(args.list, ap);
    while (*format && out->status == HFSB_OK) {
        size_t n = 0;
        while (format[n] && format[n] != '%' && format[n] != '"' &&
               format[n] != '\\')
            n++;
        hfsb_buf_append(out, hfsb_str_make(format, n));
        format += n;
        if (*format == '%') {
            format = hfsbi_json_convert(out, format + 1, quoted, &args);
        } else if (*format) {
            n = *format == '\\' && format[1] ? 2 : 1;
            if (*format == '"') quoted = !quoted;
            hfsb_buf_append(out, hfsb_str_make(format, n));
            format += n;
        }
    }
    va_end(args.list);
    return hfsb_buf_finish(out, mark);
}

hfsb_status hfsb_json_printf(hfsb_buf *out, const char *format, ...) {
    va_list     ap;
    hfsb_status st;
    va_start(ap, format);
    st = hfsbi_json_vprintf(out, format, ap);
    va_end(ap);
    return st;
}
