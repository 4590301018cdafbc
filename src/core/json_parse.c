/* json_parse.c - JSON text to a tree in one block.

   The document is one block of memory: the decoded strings, then the nodes,
   which grow while the text is read. (Parsed in place, the strings stay in the
   caller's text and are decoded there once all of it is known to be valid.)

       block:  strings, each with its NUL | node node node ...
               0                          room

   The text is read once, without recursion. A text that starts and ends with
   a bracket, as nearly all do, needs no end-of-text tests: every scan outside
   a string stops at a bracket at the latest, so only a closing bracket can be
   the last byte. Any other text (a lone number or word, or one that must fail
   because its end is missing) is read from a copy with a NUL after it.

   Where a token starts depends on the length of the one before, so parsing a
   long text waits for each length to be computed. A length that is guessed and
   then tested costs no wait: the processor predicts the branch and reads on.
   That is why characters are tested in pairs, and white space is assumed to be
   the last indentation of its depth. */
#include "core_private.h"

/* Faults and their messages. Those listed before SURROGATE concern one byte,
   which the message then shows. */
#define HFSBI_JSON_FAULT_LIST(X)                                           \
    X(NO_VALUE, "expected a value")                                        \
    X(NO_ITEM, "expected a value after ','")                               \
    X(NO_WORD, "expected 'true', 'false' or 'null'")                       \
    X(NO_KEY, "expected a key in double quotes or '}'")                    \
    X(NO_NEXT_KEY, "expected a key in double quotes after ','")            \
    X(NO_COLON, "expected ':' after a key")                                \
    X(NO_ARRAY_END, "expected ',' or ']' after an element")                \
    X(NO_OBJECT_END, "expected ',' or '}' after a member")                 \
    X(NO_TEXT_END, "expected the end of the text after the value")         \
    X(NO_STRING_END, "expected '\"' to end a string")                      \
    X(CONTROL, "expected no control character inside a string")            \
    X(NO_ESCAPE, "expected one of \"\\/bfnrtu after a backslash")          \
    X(NO_HEX, "expected four hex digits after \\u")                        \
    X(NO_UTF8, "expected UTF-8")                                           \
    X(NO_NUMBER, "") /* hfsbi_number.expected */                           \
    X(SURROGATE,                                                           \
      "expected both halves of a surrogate pair, found one: the sender "   \
      "probably cut a string in the middle of a character")                \
    X(RANGE, "expected a number up to about 1.8e308, found a larger one: " \
             "send it as a string")                                        \
    X(DEPTH, "")  /* names the limit */                                    \
    X(VALUES, "") /* the same */                                           \
    X(TWICE, "expected each key once in an object, found \"")              \
    X(NOMEM, "")

typedef enum hfsbi_json_fault {
#define HFSBI_X(name, text) HFSBI_JSON_##name,
    HFSBI_JSON_FAULT_LIST(HFSBI_X)
#undef HFSBI_X
} hfsbi_json_fault;

#define HFSBI_JSON_GAPS 32

typedef struct hfsbi_json_parser {
    const char      *text;
    const char      *end;   /* after the last byte that is not a blank */
    const char      *whole; /* up to here, a whole block can be copied */
    char            *out;   /* where the next string is decoded to; NULL when
                               strings stay in the text */
    hfsb_json_value *nodes; /* in the document's block, after the strings */
    size_t           used;
    size_t           cap;
    size_t           room; /* bytes of the block before the nodes */
    size_t           max_depth;
    size_t           max_nodes;
    /* The last run of blanks at each depth (modulo GAPS); length 0: none. */
    const char      *gap[HFSBI_JSON_GAPS];
    unsigned char    gap_len[HFSBI_JSON_GAPS];
    hfsb_json_doc   *doc;
    bool             escaped; /* a key has an escape */
    hfsbi_json_fault fault;
    const char      *at;       /* where the fault is */
    const char      *expected; /* NO_NUMBER: what the grammar expects */
} hfsbi_json_parser;

/* Records the fault and returns NULL. */
static const char *hfsbi_json_fail(hfsbi_json_parser *p, const char *at,
                                   hfsbi_json_fault fault) {
    p->at = at;
    p->fault = fault;
    return NULL;
}

/* ---- strings: checked, decoded and copied in one pass ---- */

/* The character that a letter after a backslash means; 0: none, or \u. */
static const unsigned char hfsbi_json_escapes[256] = {
    0,    0, 0, 0, 0, 0, 0, 0,    0,    0, 0, 0, 0,    0,    0,   0, 0,
    0,    0, 0, 0, 0, 0, 0, 0,    0,    0, 0, 0, 0,    0,    0,   0, 0,
    '"',  0, 0, 0, 0, 0, 0, 0,    0,    0, 0, 0, 0,    '/',  0,   0, 0,
    0,    0, 0, 0, 0, 0, 0, 0,    0,    0, 0, 0, 0,    0,    0,   0, 0,
    0,    0, 0, 0, 0, 0, 0, 0,    0,    0, 0, 0, 0,    0,    0,   0, 0,
    0,    0, 0, 0, 0, 0, 0, '\\', 0,    0, 0, 0, 0,    '\b', 0,   0, 0,
    '\f', 0, 0, 0, 0, 0, 0, 0,    '\n', 0, 0, 0, '\r', 0,    '\t'};

/* The values of '0' to 'f'; 99: not a hex digit. A table, since \u escapes
   come in long runs and a branch per digit would be mispredicted. */
static const unsigned char hfsbi_json_hex_values[] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  99, 99, 99, 99, 99, 99, 99, 10, 11,
    12, 13, 14, 15, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 10, 11, 12, 13, 14, 15};

static unsigned hfsbi_json_hex_digit(char c) {
    unsigned i = (unsigned)(unsigned char)c - '0';
    return i < sizeof hfsbi_json_hex_values ? hfsbi_json_hex_values[i] : 99;
}

/* The value of four hex digits; -1, with *bad the first invalid one. */
static inline long hfsbi_json_hex(const char *at, const char *end,
                                  const char **bad) {
    if (end - at >= 4) {
        unsigned a = hfsbi_json_hex_digit(at[0]);
        unsigned b = hfsbi_json_hex_digit(at[1]);
        unsigned c = hfsbi_json_hex_digit(at[2]);
        unsigned d = hfsbi_json_hex_digit(at[3]);
        if ((a | b | c | d) < 16) return (long)(a << 12 | b << 8 | c << 4 | d);
    }
    while (at < end && hfsbi_json_hex_digit(*at) < 16) at++;
    *bad = at;
    return -1;
}

/* Decodes the escape at `at` into the 4 bytes at out, *n of them used.
   Returns the end of the escape, or NULL. */
static const char *hfsbi_json_escape(hfsbi_json_parser *p, const char *at,
                                     char *out, size_t *n) {
    const char *bad = at + 1;
    long        code, low;
    if (p->end - at < 2) return hfsbi_json_fail(p, bad, HFSBI_JSON_NO_ESCAPE);
    *n = 1;
    out[0] = (char)hfsbi_json_escapes[(unsigned char)at[1]];
    if (out[0]) return at + 2;
    if (at[1] != 'u') return hfsbi_json_fail(p, bad, HFSBI_JSON_NO_ESCAPE);
    code = hfsbi_json_hex(at + 2, p->end, &bad);
    if (code < 0) return hfsbi_json_fail(p, bad, HFSBI_JSON_NO_HEX);
    if (code >= 0xDC00 && code <= 0xDFFF)
        return hfsbi_json_fail(p, at, HFSBI_JSON_SURROGATE);
    if (code >= 0xD800 && code <= 0xDBFF) {
        if (p->end - at < 8 || at[6] != '\\' || at[7] != 'u')
            return hfsbi_json_fail(p, at, HFSBI_JSON_SURROGATE);
        low = hfsbi_json_hex(at + 8, p->end, &bad);
        if (low < 0) return hfsbi_json_fail(p, bad, HFSBI_JSON_NO_HEX);
        if (low < 0xDC00 || low > 0xDFFF)
            return hfsbi_json_fail(p, at, HFSBI_JSON_SURROGATE);
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        at += 6;
    }
    *n = hfsb_utf8_encode((unsigned long)code, out);
    return at + 6;
}

/* Length of the character at `at`, whose first byte is above 0x7F; 0 when it
   is ill-formed. Tests four bytes at once: the lead and continuation marks,
   then the bits that must not be all zero (overlong) or too large
   (surrogates, beyond U+10FFFF). */
static inline size_t hfsbi_json_character(const char *at, const char *end) {
    const unsigned char *b = (const unsigned char *)at;
    unsigned long        code;
    uint32_t             x, bits;
    bool                 valid;
    size_t               n;
    if (end - at < 4) {
        n = hfsb_utf8_step(hfsb_str_make(at, (size_t)(end - at)), 0, &code,
                           &valid);
        return valid ? n : 0;
    }
    x = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 |
        (uint32_t)b[3];
    if ((x & 0xF0C0C000u) == 0xE0808000u) {
        bits = x & 0x0F200000u;
        return bits && bits != 0x0D200000u ? 3 : 0;
    }
    if ((x & 0xE0C00000u) == 0xC0800000u) return x & 0x1E000000u ? 2 : 0;
    if ((x & 0xF8C0C0C0u) != 0xF0808080u) return 0;
    bits = x & 0x07300000u;
    return bits && bits < 0x04100000u ? 4 : 0;
}

/* Fails at a byte that cannot be in a string. */
static const char *hfsbi_json_bad_string(hfsbi_json_parser *p,
                                         const char        *at) {
    if (at >= p->end)
        return hfsbi_json_fail(p, p->end, HFSBI_JSON_NO_STRING_END);
    if ((unsigned char)*at < 0x20)
        return hfsbi_json_fail(p, at, HFSBI_JSON_CONTROL);
    return hfsbi_json_fail(p, at, HFSBI_JSON_NO_UTF8);
}

/* True when two well-formed three-byte characters start at `at`: most Asian
   languages are written in these. Reads eight bytes. */
static inline bool hfsbi_json_pair(const char *at) {
    uint64_t x = hfsbi_load64(at);
    uint64_t a = x & 0x200F, b = x >> 24 & 0x200F; /* see _character() */
    return (x & 0xC0C0F0C0C0F0u) == 0x8080E08080E0u && a && b && a != 0x200D &&
           b != 0x200D;
}

/* Copies the run of well-formed characters above 0x7F at `at`; returns its
   end. */
static const char *hfsbi_json_characters(const char *at, const char *end,
                                         char *out) {
    size_t n;
    for (; end - at >= 8 && hfsbi_json_pair(at); at += 6, out += 6)
        memcpy(out, at, 8);
    while (at < end && (unsigned char)*at >= 0x80) {
        n = hfsbi_json_character(at, end);
        if (!n) break;
        if (end - at >= 4) memcpy(out, at, 4);
        else memcpy(out, at, n);
        at += n;
        out += n;
    }
    return at;
}

/* Decodes the string that starts at `at`, after its quote, to p->out. Returns
   its end, after the closing quote, or NULL. */
static const char *hfsbi_json_copy(hfsbi_json_parser *p, const char *at,
                                   hfsb_json_value *node) {
    const char *end = p->end, *next;
    char       *out = p->out;
    uint64_t    plain = HFSBI_JSON_PLAIN;
    size_t      n;
    for (;;) {
        next = hfsbi_json_copy_run(at, end, out, true);
        out += next - at;
        at = next;
        if (at == end) return hfsbi_json_bad_string(p, at);
        if (*at == '"') break;
        if (*at == '\\') {
            plain = 0;
            if (end - at >= 2 && hfsbi_json_escapes[(unsigned char)at[1]]) {
                *out++ = (char)hfsbi_json_escapes[(unsigned char)at[1]];
                at += 2;
                continue;
            }
            do { /* \u comes in runs */
                at = hfsbi_json_escape(p, at, out, &n);
                if (!at) return NULL;
                out += n;
            } while (at < end && *at == '\\');
        } else {
            next = hfsbi_json_characters(at, end, out);
            if (next == at) return hfsbi_json_bad_string(p, at);
            out += next - at;
            at = next;
        }
    }
    *out = '\0';
    node->as.str = p->out;
    node->tag = HFSB_JSON_STRING | plain |
                (uint64_t)(out - p->out) << HFSBI_JSON_COUNT;
    p->out = out + 1;
    return at + 1;
}

/* The same without a copy: nothing is written until the whole text is known to
   be valid. */
static const char *hfsbi_json_check(hfsbi_json_parser *p, const char *at,
                                    hfsb_json_value *node) {
    const char *start = at, *end = p->end;
    uint64_t    mask, flag = HFSBI_JSON_PLAIN;
    char        skipped[4];
    size_t      n;
    for (;;) {
        while (end - at >= HFSBI_JSON_BLOCK) {
            mask = hfsbi_json_mask(at, true);
            at += mask ? hfsbi_json_first(mask) : HFSBI_JSON_BLOCK;
            if (mask) break;
        }
        while (at < end && hfsbi_json_is_plain(*at, true)) at++;
        if (at == end) return hfsbi_json_bad_string(p, at);
        if (*at == '"') break;
        if (*at == '\\') {
            flag = HFSBI_JSON_ESCAPED;
            at = hfsbi_json_escape(p, at, skipped, &n);
            if (!at) return NULL;
        } else {
            n = (unsigned char)*at < 0x20 ? 0 : hfsbi_json_character(at, end);
            if (!n) return hfsbi_json_bad_string(p, at);
            at += n;
        }
    }
    node->as.str = start;
    node->tag =
        HFSB_JSON_STRING | flag | (uint64_t)(at - start) << HFSBI_JSON_COUNT;
    return at + 1;
}

/* A string of any length and with any characters. */
static const char *hfsbi_json_any_string(hfsbi_json_parser *p, const char *at,
                                         hfsb_json_value *node) {
    return p->out ? hfsbi_json_copy(p, at, node)
                  : hfsbi_json_check(p, at, node);
}

/* A string, after its opening quote. Most are short and plain: one block with
   a quote in it. */
static inline const char *hfsbi_json_string(hfsbi_json_parser *p,
                                            const char        *at,
                                            hfsb_json_value   *node) {
    char    *out = p->out;
    uint64_t mask;
    size_t   n;
    if (at > p->whole) return hfsbi_json_any_string(p, at, node);
    mask = hfsbi_json_mask(at, true);
    n = mask ? hfsbi_json_first(mask) : 0;
    if (at[n] != '"') return hfsbi_json_any_string(p, at, node);
    memcpy(out, at, HFSBI_JSON_BLOCK);
    out[n] = '\0';
    node->as.str = out;
    node->tag =
        HFSB_JSON_STRING | HFSBI_JSON_PLAIN | (uint64_t)n << HFSBI_JSON_COUNT;
    p->out = out + n + 1;
    return at + n + 1;
}

/* Decodes in place a string that hfsbi_json_check() has accepted. */
static void hfsbi_json_unescape(hfsb_json_value *node) {
    size_t            len = (size_t)(node->tag >> HFSBI_JSON_COUNT), n;
    const char       *at = node->as.str;
    char             *text = (char *)(uintptr_t)node->as.str, *out = text;
    hfsbi_json_parser p; /* only p.end is used: no escape can fail now */
    if (node->tag & HFSBI_JSON_ESCAPED) {
        p.end = at + len;
        while (at < p.end) {
            n = hfsb_str_find_byte(hfsb_str_make(at, (size_t)(p.end - at)),
                                   '\\');
            if (n == HFSB_NPOS) n = (size_t)(p.end - at);
            memmove(out, at, n);
            out += n;
            at += n;
            if (at == p.end) break;
            at = hfsbi_json_escape(&p, at, out, &n);
            out += n;
        }
        len = (size_t)(out - text);
        node->tag = HFSB_JSON_STRING | (uint64_t)len << HFSBI_JSON_COUNT;
    }
    text[len] = '\0';
}

/* ---- errors: what was expected, what was found, what to do ---- */

/* Advice for a byte c that starts no value; `listed`: after a comma. */
static const char *hfsbi_json_value_advice(char c, bool listed) {
    switch (c) {
    case ']':
    case '}': return listed ? "remove the comma before it" : "";
    case ',': return "remove it, or send null";
    case '\'': return "strings are written in double quotes";
    case '+':
    case '.': return "a number starts with a digit or '-'";
    case '/':
    case '#': return "JSON has no comments";
    default: break;
    }
    if (hfsbi_is_alpha(c)) return "the only words are true, false and null";
    return "";
}

/* How to repair the fault at byte c; "" when there is nothing to add. */
static const char *hfsbi_json_advice(hfsbi_json_fault fault, char c) {
    switch (fault) {
    case HFSBI_JSON_NO_VALUE: return hfsbi_json_value_advice(c, false);
    case HFSBI_JSON_NO_ITEM: return hfsbi_json_value_advice(c, true);
    case HFSBI_JSON_NO_KEY:
    case HFSBI_JSON_NO_NEXT_KEY:
        if (c == '/' || c == '#') return "JSON has no comments";
        return c == '}' ? "remove the comma before it" : "";
    case HFSBI_JSON_NO_COLON:
    case HFSBI_JSON_NO_ARRAY_END:
    case HFSBI_JSON_NO_OBJECT_END:
    case HFSBI_JSON_NO_TEXT_END:
        return c == '/' || c == '#' ? "JSON has no comments" : "";
    case HFSBI_JSON_CONTROL:
        return c == '\n'   ? "write it as \\n"
               : c == '\t' ? "write it as \\t"
               : c == '\r' ? "write it as \\r"
                           : "write it as \\u and four hex digits";
    case HFSBI_JSON_NO_ESCAPE: return "write the backslash itself as \\\\";
    case HFSBI_JSON_NO_UTF8: return "the text must be encoded as UTF-8";
    default: return "";
    }
}

/* Adds ", found ..." for the byte at err->pos. */
static void hfsbi_json_add_found(hfsbi_json_fault fault, hfsb_str text,
                                 hfsb_err *err) {
    const char   *advice;
    unsigned long code;
    bool          valid;
    size_t        n;
    char          c;
    if (err->pos >= text.len) {
        hfsbi_err_add(err, ", found the end of the text: was it cut short?");
        return;
    }
    c = text.ptr[err->pos];
    n = hfsb_utf8_step(text, err->pos, &code, &valid);
    if (code == 0xFEFF) {
        hfsbi_err_add(err, ", found a byte order mark: remove it");
        return;
    }
    if (valid && code >= 0x20 && code != 0x7F)
        hfsbi_err_add(err, ", found '%.*s'", (int)n, text.ptr + err->pos);
    else hfsbi_err_add(err, ", found byte 0x%02X", (unsigned)(unsigned char)c);
    advice = hfsbi_json_advice(fault, c);
    if (*advice) hfsbi_err_add(err, ": %s", advice);
}

/* Adds the message of the fault. */
static void hfsbi_json_add_fault(const hfsbi_json_parser *p, hfsb_str text,
                                 hfsb_err *err) {
    static const char *const messages[] = {
#define HFSBI_X(name, message) message,
        HFSBI_JSON_FAULT_LIST(HFSBI_X)
#undef HFSBI_X
    };
    const char            *message = messages[p->fault];
    const hfsb_json_value *key;
    if (p->fault == HFSBI_JSON_DEPTH) {
        hfsbi_err_add(err, "arrays and objects are nested more than %zu deep",
                      p->max_depth);
        return;
    }
    if (p->fault == HFSBI_JSON_VALUES) {
        hfsbi_err_add(err,
                      "at most %zu values and keys are allowed, found more",
                      p->max_nodes);
        return;
    }
    if (p->fault == HFSBI_JSON_NO_NUMBER) message = p->expected;
    hfsbi_err_add(err, "%s", message);
    if (p->fault < HFSBI_JSON_SURROGATE) {
        hfsbi_json_add_found(p->fault, text, err);
    } else if (p->fault == HFSBI_JSON_TWICE) {
        key = p->nodes + p->used;
        hfsbi_err_quote(err, hfsb_json_str(key, HFSB_LIT("")), 40);
        hfsbi_err_add(err, "\" again: remove one of the two");
    }
}

/* Fills *err with the place and the message of the parser's fault. */
static hfsb_status hfsbi_json_report(const hfsbi_json_parser *p, hfsb_str text,
                                     hfsb_err *err) {
    bool limit = p->fault == HFSBI_JSON_DEPTH || p->fault == HFSBI_JSON_VALUES;
    hfsb_status code = limit ? HFSB_LIMIT : HFSB_SYNTAX;
    size_t      pos = (size_t)(p->at - p->text), start = pos;
    if (p->fault == HFSBI_JSON_NOMEM)
        return hfsbi_fail_status(err, HFSB_NOMEM, "reading JSON");
    if (!err) return code;
    while (start > 0 && text.ptr[start - 1] != '\n') start--;
    hfsbi_fail(err, code, pos, "%s", "");
    err->line = hfsb_text_line_number(text, pos);
    err->column = hfsb_utf8_count(hfsb_str_slice(text, start, pos)) + 1;
    hfsbi_err_add(err, "line %zu, column %zu: ", err->line, err->column);
    hfsbi_json_add_fault(p, text, err);
    return code;
}

/* ---- repeated keys ---- */

/* Objects with more keys than this are sorted, not compared pair by pair. */
#define HFSBI_JSON_FEW 16

typedef const hfsb_json_value *hfsbi_json_key;

/* Orders keys by length, then bytes. */
static int hfsbi_json_key_order(hfsbi_json_key a, hfsbi_json_key b) {
    uint64_t m = a->tag >> HFSBI_JSON_COUNT, n = b->tag >> HFSBI_JSON_COUNT;
    if (m != n) return m < n ? -1 : 1;
    return m ? memcmp(a->as.str, b->as.str, (size_t)m) : 0;
}

/* The same; equal keys by their place. */
static int hfsbi_json_key_place(const void *a, const void *b) {
    hfsbi_json_key x = *(const hfsbi_json_key *)a;
    hfsbi_json_key y = *(const hfsbi_json_key *)b;
    int            order = hfsbi_json_key_order(x, y);
    if (order != 0) return order;
    return x < y ? -1 : x > y;
}

static void hfsbi_json_collect(const hfsb_json_value *object,
                               hfsbi_json_key *keys, size_t n) {
    const hfsb_json_value *key = object + 1;
    size_t                 i;
    for (i = 0; i < n; i++) {
        keys[i] = key;
        key = hfsbi_json_after(key + 1);
    }
}

/* The first key that repeats an earlier one, or NULL. */
static hfsbi_json_key hfsbi_json_repeat(hfsbi_json_key *keys, size_t n) {
    hfsbi_json_key found = NULL;
    size_t         i, j;
    if (n <= HFSBI_JSON_FEW) {
        for (i = 1; i < n; i++)
            for (j = 0; j < i; j++)
                if (!hfsbi_json_key_order(keys[i], keys[j])) return keys[i];
        return NULL;
    }
    hfsbi_sort(keys, n, sizeof *keys, hfsbi_json_key_place);
    for (i = 1; i < n; i++)
        if (!hfsbi_json_key_order(keys[i - 1], keys[i]) &&
            (!found || keys[i] < found))
            found = keys[i];
    return found;
}

static size_t hfsbi_json_keys_in(const hfsb_json_value *value) {
    return (value->tag & HFSBI_JSON_TYPE) == HFSB_JSON_OBJECT
               ? (size_t)(value->tag >> HFSBI_JSON_COUNT)
               : 0;
}

/* Index of the first key node that repeats an earlier key of its object, or
   HFSB_NPOS; *nomem: there was not enough memory to check. */
static size_t hfsbi_json_repeated_key(const hfsbi_json_parser *p,
                                      bool                    *nomem) {
    const hfsb_alloc *alloc = &p->doc->alloc;
    hfsbi_json_key    few[HFSBI_JSON_FEW], *many = NULL, found = NULL;
    size_t            most = 0, i, n;
    *nomem = false;
    for (i = 0; i < p->used; i++) {
        n = hfsbi_json_keys_in(p->nodes + i);
        if (n > most) most = n;
    }
    if (most > HFSBI_JSON_FEW) {
        many = (hfsbi_json_key *)hfsbi_array(alloc, most, sizeof *many);
        *nomem = !many;
        if (!many) return HFSB_NPOS;
    }
    for (i = 0; i < p->used; i++) {
        hfsbi_json_key *keys, repeat;
        n = hfsbi_json_keys_in(p->nodes + i);
        if (n < 2) continue;
        keys = n > HFSBI_JSON_FEW ? many : few;
        hfsbi_json_collect(p->nodes + i, keys, n);
        repeat = hfsbi_json_repeat(keys, n);
        if (repeat && (!found || repeat < found)) found = repeat;
    }
    hfsbi_array_free(alloc, (void *)many, most, sizeof *many);
    return found ? (size_t)(found - p->nodes) : HFSB_NPOS;
}

/* Where node number `index` begins in the text, which is valid up to there. */
static const char *hfsbi_json_locate(hfsb_str text, size_t index) {
    const char *at = text.ptr;
    for (;;) {
        while (strchr(" \n\r\t,:]}", *at)) at++;
        if (index-- == 0) return at;
        if (*at == '"') {
            for (at++; *at != '"'; at++)
                if (*at == '\\') at++;
            at++;
        } else if (*at == '{' || *at == '[') {
            at++;
        } else {
            while (!strchr(" \n\r\t,]}", *at)) at++;
        }
    }
}

/* ---- blanks ---- */

/* True when the n bytes at a and b are the same. n is not 0, and at least
   eight can be read. */
static inline bool hfsbi_json_same(const char *a, const char *b, size_t n) {
    size_t i;
    if (n < 8) return (hfsbi_load64(a) ^ hfsbi_load64(b)) << (64 - 8 * n) == 0;
    for (i = 0; i + 8 < n; i += 8)
        if (hfsbi_load64(a + i) != hfsbi_load64(b + i)) return false;
    return hfsbi_load64(a + n - 8) == hfsbi_load64(b + n - 8);
}

/* The end of the blanks at `at`, mostly an indentation: most lines have the
   same one as the previous line at their depth. */
static const char *hfsbi_json_blanks(hfsbi_json_parser *p, const char *at,
                                     size_t depth) {
    const char *start = at;
    size_t      i = depth % HFSBI_JSON_GAPS, n = p->gap_len[i];
    if (n && (size_t)(p->end - at) > n + 8 &&
        hfsbi_json_same(at, p->gap[i], n) && (unsigned char)at[n] > ' ')
        return at + n;
    while (hfsbi_json_is_blank(*at)) at++;
    p->gap[i] = start;
    p->gap_len[i] = (unsigned char)(at - start < 256 ? at - start : 0);
    return at;
}

/* The first byte from `at` on that is not a blank; there is one. */
static inline const char *hfsbi_json_skip(hfsbi_json_parser *p, const char *at,
                                          size_t depth) {
    if ((unsigned char)*at > ' ') return at;
    if (*at == ' ' && (unsigned char)at[1] > ' ') return at + 1;
    return hfsbi_json_blanks(p, at, depth);
}

/* ---- the block ---- */

/* Updates all pointers into the block, which was at `was`. */
static void hfsbi_json_relocate(hfsbi_json_parser *p, uintptr_t was) {
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

/* Limits cap to what may be needed: max_nodes + 2, of which the last two are
   never both used. */
static size_t hfsbi_json_cap(const hfsbi_json_parser *p, size_t cap) {
    return cap < p->max_nodes + 2 ? cap : p->max_nodes + 2;
}

/* Makes room for exactly cap nodes. */
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
    hfsbi_json_relocate(p, was);
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
    case HFSBI_NUMBER_RANGE: return hfsbi_json_fail(p, at, HFSBI_JSON_RANGE);
    default:
        p->expected = n.expected;
        return hfsbi_json_fail(p, after, HFSBI_JSON_NO_NUMBER);
    }
    node->as.u = n.as.u;
    return after;
}

static inline const char *hfsbi_json_word(hfsbi_json_parser *p, const char *at,
                                          const char *word, uint64_t tag,
                                          hfsb_json_value *node) {
    size_t n = strlen(word);
    if ((size_t)(p->end - at) < n || memcmp(at, word, n) != 0) {
        for (; *at == *word; word++) at++;
        return hfsbi_json_fail(p, at, HFSBI_JSON_NO_WORD);
    }
    node->tag = tag;
    node->as.u = 0;
    return at + n;
}

/* A value other than a container; `fault` when no value starts here. */
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

/* Reads the container at `at`; returns its end, or NULL.

       open --> member or element --> member_end or element_end --> close
         ^             |    ^                     |                   |
         +-------------+    +---------','---------+   the enclosing  <+
          at a bracket                                ..._end, or done

   One function, since its states share everything and jump to each other: as
   several it was neither shorter nor clearer, but slower. */
static const char *hfsbi_json_tree(hfsbi_json_parser *p, const char *at) {
    const uint64_t   one = (uint64_t)1 << HFSBI_JSON_COUNT;
    hfsb_json_value *node = p->nodes, *box = node; /* next; innermost open */
    hfsb_json_value *last = node + p->cap - 1;
    hfsbi_json_fault fault;
    size_t           depth = 0;

open: /* at a bracket; there is room for its node */
    if (++depth > p->max_depth)
        return hfsbi_json_fail(p, at, HFSBI_JSON_DEPTH);
    node->as.span = (size_t)(node - box);
    box = node++;
    if (*at == '{') {
        box->tag = HFSB_JSON_OBJECT;
        at = hfsbi_json_skip(p, at + 1, depth);
        if (*at == '}') goto close;
        fault = HFSBI_JSON_NO_KEY;
        goto member;
    }
    box->tag = HFSB_JSON_ARRAY;
    at = hfsbi_json_skip(p, at + 1, depth);
    if (*at == ']') goto close;
    fault = HFSBI_JSON_NO_VALUE;

element:
    if (node >= last) goto grow;
    if (*at == '{' || *at == '[') goto open;
    at = hfsbi_json_scalar(p, at, node, fault);
    if (!at) return NULL;
    node++;
element_end:
    box->tag += one;
    at = hfsbi_json_skip(p, at, depth - 1); /* a closing bracket, if any */
    if (*at == ',') {
        at = hfsbi_json_skip(p, at + 1, depth);
        fault = HFSBI_JSON_NO_ITEM;
        goto element;
    }
    if (*at == ']') goto close;
    return hfsbi_json_fail(p, at, HFSBI_JSON_NO_ARRAY_END);

member:
    if (node >= last) goto grow;
    if (*at != '"') return hfsbi_json_fail(p, at, fault);
    at = hfsbi_json_string(p, at + 1, node);
    if (!at) return NULL;
    if (node->tag & HFSBI_JSON_ESCAPED) p->escaped = true;
    node++;
    at = hfsbi_json_skip(p, at, depth);
    if (*at != ':') return hfsbi_json_fail(p, at, HFSBI_JSON_NO_COLON);
    at = hfsbi_json_skip(p, at + 1, depth);
    if (*at == '{' || *at == '[') goto open;
    at = hfsbi_json_scalar(p, at, node, HFSBI_JSON_NO_VALUE);
    if (!at) return NULL;
    node++;
member_end:
    box->tag += one;
    at = hfsbi_json_skip(p, at, depth - 1); /* a closing bracket, if any */
    if (*at == ',') {
        at = hfsbi_json_skip(p, at + 1, depth);
        fault = HFSBI_JSON_NO_NEXT_KEY;
        goto member;
    }
    if (*at != '}') return hfsbi_json_fail(p, at, HFSBI_JSON_NO_OBJECT_END);

close : {
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
        return hfsbi_json_fail(
            p, at, keyed ? HFSBI_JSON_NO_OBJECT_END : HFSBI_JSON_NO_ARRAY_END);
    if (keyed) goto member_end;
    goto element_end;
}

grow : {
    size_t inside = (size_t)(box - p->nodes);
    p->used = (size_t)(node - p->nodes);
    if (p->used >= p->max_nodes)
        return hfsbi_json_fail(p, at, HFSBI_JSON_VALUES);
    if (!hfsbi_json_resize(p, hfsbi_json_cap(p, p->cap > (size_t)-1 / 32
                                                    ? (size_t)-1 / 16
                                                    : p->cap * 2)))
        return hfsbi_json_fail(p, at, HFSBI_JSON_NOMEM);
    node = p->nodes + p->used;
    box = p->nodes + inside;
    last = p->nodes + p->cap - 1;
    if ((box->tag & HFSBI_JSON_TYPE) == HFSB_JSON_OBJECT) goto member;
    goto element;
}
}

/* ---- the whole text ---- */

/* Reads the one value of the text, which starts at `at`. */
static bool hfsbi_json_text(hfsbi_json_parser *p, const char *at) {
    if (*at == '{' || *at == '[') {
        at = hfsbi_json_tree(p, at);
    } else {
        p->used = 1;
        at = hfsbi_json_scalar(p, at, p->nodes, HFSBI_JSON_NO_VALUE);
    }
    if (at && at < p->end) {
        /* report what follows a lone string, not the blank between them */
        while (at < p->end && hfsbi_json_is_blank(*at)) at++;
        return hfsbi_json_fail(p, at, HFSBI_JSON_NO_TEXT_END);
    }
    return at != NULL;
}

/* Reads a text that does not end in a bracket from a copy that ends in a NUL.
   Strings are not decoded: only a number or a word can be valid here. */
static bool hfsbi_json_text_copy(hfsbi_json_parser *p, size_t from) {
    const hfsb_alloc *alloc = &p->doc->alloc;
    const char       *text = p->text;
    size_t            len = (size_t)(p->end - text);
    char             *copy = (char *)hfsbi_array(alloc, len + 1, 1);
    bool              ok;
    if (!copy) return hfsbi_json_fail(p, text, HFSBI_JSON_NOMEM) != NULL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    p->text = p->whole = copy;
    p->end = copy + len;
    ok = hfsbi_json_text(p, copy + from);
    if (!ok) p->at = text + (p->at - copy);
    p->text = text;
    p->end = text + len;
    hfsbi_array_free(alloc, copy, len + 1, 1);
    return ok;
}

/* Allocates the block and reads the text from `from` on; `strings`: decodes
   them into the block. */
static bool hfsbi_json_run(hfsbi_json_parser *p, size_t from, bool strings) {
    size_t len = (size_t)(p->end - p->text);
    char   last = p->end[-1];
    bool   closed = p->text[from] == '"' || last == '}' || last == ']';
    /* A value needs two bytes, but most are longer: more than 20 in indented
       text. And a large text is often mostly one string: a file. */
    size_t cap = len < 1024 ? len / 4 + 4 : len / 20 + 228;
    p->room = closed && strings ? (len + 15) & ~(size_t)15 : 0;
    if (!hfsbi_json_resize(p, hfsbi_json_cap(p, cap)))
        return hfsbi_json_fail(p, p->text, HFSBI_JSON_NOMEM);
    if (!closed) return hfsbi_json_text_copy(p, from);
    if (strings) p->out = (char *)p->doc->block;
    if (strings && len > HFSBI_JSON_BLOCK)
        p->whole = p->end - HFSBI_JSON_BLOCK;
    return hfsbi_json_text(p, p->text + from);
}

/* Checks for repeated keys, decodes strings in place (which changes the text)
   and returns unused memory. */
static bool hfsbi_json_complete(hfsbi_json_parser *p, hfsb_str text,
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
        (void)hfsbi_json_resize(p, p->used); /* harmless when it fails */
    return true;
}

/* Sets up the parser, leaving out blanks at the end of the text. An all-zero
   initialiser would cost more than parsing a small request. */
static void hfsbi_json_prepare(hfsbi_json_parser *p, hfsb_str text,
                               const hfsb_json_parse_opts *opts,
                               hfsb_json_doc              *doc) {
    p->text = text.ptr;
    p->end = text.ptr + text.len;
    while (p->end > p->text && hfsbi_json_is_blank(p->end[-1])) p->end--;
    p->whole = p->text;
    p->out = NULL;
    p->nodes = NULL;
    p->used = p->cap = p->room = 0;
    p->max_depth = opts && opts->max_depth ? opts->max_depth : 512;
    p->max_nodes = opts && opts->max_values ? opts->max_values : (size_t)-3;
    p->doc = doc;
    p->escaped = false;
    memset(p->gap_len, 0, sizeof p->gap_len);
    doc->root = NULL;
    doc->block = NULL;
    doc->size = 0;
}

/* Both ways of parsing; in_place: strings are decoded in the text. */
static hfsb_status hfsbi_json_parse(hfsb_str text, bool in_place,
                                    const hfsb_json_parse_opts *opts,
                                    hfsb_json_doc *doc, hfsb_err *err) {
    hfsbi_json_parser p;
    size_t max = opts && opts->max_bytes ? opts->max_bytes : (size_t)1 << 30;
    size_t from = 0;
    bool   unique = opts && opts->unique_keys, ok;
    if (!text.ptr) text = HFSB_LIT("");
    hfsbi_json_prepare(&p, text, opts, doc);
    if (text.len > max)
        return hfsbi_fail(err, HFSB_LIMIT, max,
                          "the text has %zu bytes, at most %zu are allowed",
                          text.len, max);
    while (from < text.len && hfsbi_json_is_blank(text.ptr[from])) from++;
    if (from == text.len) {
        hfsbi_json_fail(&p, p.text + from, HFSBI_JSON_NO_VALUE);
        return hfsbi_json_report(&p, text, err);
    }
    ok = hfsbi_json_run(&p, from, !in_place);
    if (ok && p.used > p.max_nodes) /* it used a spare node */
        ok = hfsbi_json_fail(&p, p.end, HFSBI_JSON_VALUES) != NULL;
    /* Keys can only be compared when decoded, but decoding in place would
       leave no text to locate a repeated key in: start over with a copy. */
    if (ok && in_place && unique && p.escaped) {
        hfsb_json_free(doc);
        return hfsbi_json_parse(text, false, opts, doc, err);
    }
    ok = ok && hfsbi_json_complete(&p, text, unique);
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
    return hfsbi_json_parse(text, false, opts, doc, err);
}

hfsb_status hfsb_json_parse_in_place(char *text, size_t len,
                                     const hfsb_json_parse_opts *opts,
                                     hfsb_json_doc *doc, hfsb_err *err) {
    return hfsbi_json_parse(hfsb_str_make(text, len), true, opts, doc, err);
}

void hfsb_json_free(hfsb_json_doc *doc) {
    if (doc->block) hfsbi_realloc(&doc->alloc, doc->block, doc->size, 0);
    doc->root = NULL;
    doc->block = NULL;
    doc->size = 0;
}
