/* json_string.c - the strings of a JSON text: checked, decoded and copied in
   one pass. Depends on: base, utf8. */
#include "json_tree.h"

/* What a letter behind a backslash stands for; 0: nothing, or \u. */
static const unsigned char hfsbi_json_escapes[256] = {
    0, 0, 0,    0, 0, 0, 0,    0, 0, 0, 0, 0, 0,    0, 0,    0,
    0, 0, 0,    0, 0, 0, 0,    0, 0, 0, 0, 0, 0,    0, 0,    0,
    0, 0, '"',  0, 0, 0, 0,    0, 0, 0, 0, 0, 0,    0, 0,    '/',
    0, 0, 0,    0, 0, 0, 0,    0, 0, 0, 0, 0, 0,    0, 0,    0,
    0, 0, 0,    0, 0, 0, 0,    0, 0, 0, 0, 0, 0,    0, 0,    0,
    0, 0, 0,    0, 0, 0, 0,    0, 0, 0, 0, 0, '\\', 0, 0,    0,
    0, 0, '\b', 0, 0, 0, '\f', 0, 0, 0, 0, 0, 0,    0, '\n', 0,
    0, 0, '\r', 0, '\t'};

/* The values of '0' to 'f'; 99: no hex digit. */
static const unsigned char hfsbi_json_hex_values[] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  99, 99, 99, 99, 99, 99, 99, 10,
    11, 12, 13, 14, 15, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 10, 11, 12, 13, 14,
    15};

static unsigned hfsbi_json_hex_digit(char c) {
    unsigned i = (unsigned)(unsigned char)c - '0';
    return i < sizeof hfsbi_json_hex_values ? hfsbi_json_hex_values[i] : 99;
}

/* The value of four hex digits, or -1 with *bad the first that is none. */
static inline long hfsbi_json_hex(const char *at, const char *end,
                                  const char **bad) {
    if (end - at >= 4) {
        unsigned a = hfsbi_json_hex_digit(at[0]);
        unsigned b = hfsbi_json_hex_digit(at[1]);
        unsigned c = hfsbi_json_hex_digit(at[2]);
        unsigned d = hfsbi_json_hex_digit(at[3]);
        if ((a | b | c | d) < 16)
            return (long)(a << 12 | b << 8 | c << 4 | d);
    }
    while (at < end && hfsbi_json_hex_digit(*at) < 16) at++;
    *bad = at;
    return -1;
}

/* Decodes the escape whose backslash is at `at` into out (room for 4) and its
   length *n; gives the place behind it, or NULL. */
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

/* Length of the well-formed character at `at`, whose first byte is above
   0x7F; 0 when there is none. The four bytes are compared in one go: the lead
   and continuation marks, then the bits that must not be all zero (overlong)
   or too large (surrogates, beyond U+10FFFF). */
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

/* Why the byte at `at`, not part of a plain run, ends the string badly. */
static const char *hfsbi_json_broken(hfsbi_json_parser *p, const char *at) {
    if (at >= p->end)
        return hfsbi_json_fail(p, p->end, HFSBI_JSON_NO_STRING_END);
    if ((unsigned char)*at < 0x20)
        return hfsbi_json_fail(p, at, HFSBI_JSON_CONTROL);
    return hfsbi_json_fail(p, at, HFSBI_JSON_NO_UTF8);
}

/* Copies the characters above 0x7F that stand at `at`, as long as they are
   good; gives the place behind them. */
static const char *hfsbi_json_characters(const char *at, const char *end,
                                         char *out) {
    size_t n;
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
        if (at == end) return hfsbi_json_broken(p, at);
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
            if (next == at) return hfsbi_json_broken(p, at);
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

/* The same without a copy: nothing is written before all of the text is known
   to be good. */
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
        if (at == end) return hfsbi_json_broken(p, at);
        if (*at == '"') break;
        if (*at == '\\') {
            flag = HFSBI_JSON_ESCAPED;
            p->escaped = true;
            at = hfsbi_json_escape(p, at, skipped, &n);
            if (!at) return NULL;
        } else {
            n = (unsigned char)*at < 0x20 ? 0 : hfsbi_json_character(at, end);
            if (!n) return hfsbi_json_broken(p, at);
            at += n;
        }
    }
    node->as.str = start;
    node->tag = HFSB_JSON_STRING | flag |
                (uint64_t)(at - start) << HFSBI_JSON_COUNT;
    return at + 1;
}

static const char *hfsbi_json_any(hfsbi_json_parser *p, const char *at,
                                  hfsb_json_value *node) {
    return p->out ? hfsbi_json_copy(p, at, node)
                  : hfsbi_json_check(p, at, node);
}

/* Most strings are short and plain: one block with a quote in it. */
HFSBI_FN const char *hfsbi_json_string(hfsbi_json_parser *p, const char *at,
                                       hfsb_json_value *node) {
    char    *out = p->out;
    uint64_t mask;
    size_t   n;
    if (!out || p->end - at < HFSBI_JSON_BLOCK)
        return hfsbi_json_any(p, at, node);
    mask = hfsbi_json_mask(at, true);
    n = mask ? hfsbi_json_first(mask) : 0;
    if (at[n] != '"') return hfsbi_json_any(p, at, node);
    memcpy(out, at, HFSBI_JSON_BLOCK);
    out[n] = '\0';
    node->as.str = out;
    node->tag = HFSB_JSON_STRING | HFSBI_JSON_PLAIN |
                (uint64_t)n << HFSBI_JSON_COUNT;
    p->out = out + n + 1;
    return at + n + 1;
}

HFSBI_FN void hfsbi_json_unescape(hfsb_json_value *node) {
    size_t            len = (size_t)(node->tag >> HFSBI_JSON_COUNT), n;
    const char       *at = node->as.str;
    char             *text = (char *)(uintptr_t)node->as.str, *out = text;
    hfsbi_json_parser p; /* for its end; it cannot fail */
    if (node->tag & HFSBI_JSON_ESCAPED) {
        p.end = at + len;
        while (at < p.end) {
            n = hfsb_str_find_byte(
                hfsb_str_make(at, (size_t)(p.end - at)), '\\');
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
