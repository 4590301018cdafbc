#pragma once

/* Private to the json_*.c files: the tree, the parser and the look at a
   string, block by block. */

#include "number.h"

/* A document is its values in the order of the text, an object's members as
   key, value, key, value ... Containers know how many nodes they span:

       tag:  0..2 type   3 plain   4 escaped   8..63 count, length or truth
       as:   the number, the string's bytes, or the nodes spanned (1 for a
             container without content); while a container is being read the
             way back to the one around it                                  */
struct hfsb_json_value {
    uint64_t tag;
    union {
        int64_t     i;
        uint64_t    u;
        double      d;
        const char *str;
        size_t      span;
    } as;
};

#define HFSBI_JSON_TYPE    7u
#define HFSBI_JSON_PLAIN   8u  /* string: can be written without escapes */
#define HFSBI_JSON_ESCAPED 16u /* string: in place and not yet decoded */
#define HFSBI_JSON_COUNT   8   /* tag >> COUNT: count, length, truth */

/* What was wrong; json_error.c has the words. */
typedef enum hfsbi_json_fault {
    HFSBI_JSON_OK,
    HFSBI_JSON_NO_VALUE,
    HFSBI_JSON_NO_ITEM, /* a value after a comma */
    HFSBI_JSON_NO_WORD,
    HFSBI_JSON_NO_KEY,
    HFSBI_JSON_NO_NEXT_KEY, /* a key after a comma */
    HFSBI_JSON_NO_COLON,
    HFSBI_JSON_NO_ARRAY_END,
    HFSBI_JSON_NO_OBJECT_END,
    HFSBI_JSON_NO_TEXT_END,
    HFSBI_JSON_NO_STRING_END,
    HFSBI_JSON_CONTROL,
    HFSBI_JSON_NO_ESCAPE,
    HFSBI_JSON_NO_HEX,
    HFSBI_JSON_SURROGATE,
    HFSBI_JSON_NO_UTF8,
    HFSBI_JSON_NO_NUMBER,
    HFSBI_JSON_RANGE,
    HFSBI_JSON_DEPTH,
    HFSBI_JSON_TWICE,
    HFSBI_JSON_NOMEM
} hfsbi_json_fault;

typedef struct hfsbi_json_parser {
    const char      *text;
    const char      *end;   /* behind the last byte that is no blank */
    char            *out;   /* where the next string is decoded to; NULL when
                               strings stay where they are */
    hfsb_json_value *nodes; /* in the document's block, behind the strings */
    size_t           used;
    size_t           cap;
    size_t           room; /* bytes of the block in front of the nodes */
    size_t           max_depth;
    hfsb_json_doc   *doc;
    bool             escaped; /* a string in place is still to be decoded */
    hfsbi_json_fault fault;
    const char      *at;       /* where the fault is */
    const char      *expected; /* NO_NUMBER: what should have been there */
} hfsbi_json_parser;

/* Notes the fault; NULL. */
HFSBI_FN const char *hfsbi_json_fail(hfsbi_json_parser *p, const char *at,
                                     hfsbi_json_fault fault);

/* Reads the string whose first byte, behind the quote, is at `at`, into node;
   gives the place behind the closing quote, or NULL. */
HFSBI_FN const char *hfsbi_json_string(hfsbi_json_parser *p, const char *at,
                                       hfsb_json_value *node);

/* Decodes a string in place that was read and found good. */
HFSBI_FN void hfsbi_json_unescape(hfsb_json_value *node);

/* Index of a key node that repeats an earlier key of its object, the first
   such; HFSB_NPOS when there is none; *nomem when there is no memory. */
HFSBI_FN size_t hfsbi_json_repeated_key(const hfsbi_json_parser *p,
                                        bool                    *nomem);

/* Where in the text (valid up to there) node number `index` begins. */
HFSBI_FN const char *hfsbi_json_locate(hfsb_str text, size_t index);

/* Fills *err with place and words for the parser's fault. */
HFSBI_FN hfsb_status hfsbi_json_report(const hfsbi_json_parser *p,
                                       hfsb_str text, hfsb_err *err);

/* The node behind value and all it holds. */
HFSBI_UNUSED static const hfsb_json_value *hfsbi_json_after(
    const hfsb_json_value *value) {
    unsigned type = (unsigned)value->tag & HFSBI_JSON_TYPE;
    return value + (type >= HFSB_JSON_ARRAY ? value->as.span : 1);
}

/* A block of a string is looked at in one go. The mask has HFSBI_JSON_LANE
   bits for each byte that is a quote, a backslash or a control character, or,
   when `high`, above 0x7F. */
#if defined(HFSBI_SSE2)
#define HFSBI_JSON_BLOCK 16
#define HFSBI_JSON_LANE  1
#elif defined(HFSBI_NEON)
#define HFSBI_JSON_BLOCK 16
#define HFSBI_JSON_LANE  4
#else
#define HFSBI_JSON_BLOCK 8
#define HFSBI_JSON_LANE  8
#endif

HFSBI_UNUSED static inline uint64_t hfsbi_json_mask(const char *at,
                                                    bool        high) {
#if defined(HFSBI_SSE2)
    const void *from = at;
    __m128i     x = _mm_loadu_si128((const __m128i *)from);
    __m128i     hit = _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('"')),
                                   _mm_cmpeq_epi8(x, _mm_set1_epi8('\\')));
    /* with a sign, bytes above 0x7F are below 32 too */
    hit = _mm_or_si128(
        hit, high ? _mm_cmplt_epi8(x, _mm_set1_epi8(32))
                  : _mm_cmpeq_epi8(_mm_min_epu8(x, _mm_set1_epi8(31)), x));
    return (uint64_t)(unsigned)_mm_movemask_epi8(hit);
#elif defined(HFSBI_NEON)
    uint8x16_t x = vld1q_u8((const uint8_t *)at);
    uint8x16_t hit = vorrq_u8(vorrq_u8(vceqq_u8(x, vdupq_n_u8('"')),
                                       vceqq_u8(x, vdupq_n_u8('\\'))),
                              vcltq_u8(x, vdupq_n_u8(32)));
    if (high) hit = vorrq_u8(hit, vcgeq_u8(x, vdupq_n_u8(128)));
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(
                             vreinterpretq_u16_u8(hit), 4)), 0);
#else
    /* No carry crosses a byte, so each byte's answer is exact. */
    const uint64_t ones = 0x0101010101010101u, low7 = 0x7F * ones;
    uint64_t x = hfsbi_load64(at);
    uint64_t quote = ((x ^ '"' * ones) & low7) + low7;
    uint64_t slash = ((x ^ '\\' * ones) & low7) + low7;
    uint64_t control = (x & low7) + 0x60 * ones;
    uint64_t hit = ~((quote & slash & control) | x);
    if (high) hit |= x;
    return hit & ~low7;
#endif
}

/* Index of the first byte marked in a mask that is not 0. */
HFSBI_UNUSED static inline size_t hfsbi_json_first(uint64_t mask) {
    return hfsbi_ctz64(mask) / HFSBI_JSON_LANE;
}

/* A byte that stands for itself in a string; above 0x7F only if not `high`. */
HFSBI_UNUSED static inline bool hfsbi_json_is_plain(char c, bool high) {
    unsigned char u = (unsigned char)c;
    return u >= 0x20 && u != '"' && u != '\\' && (u < 0x80 || !high);
}

/* The place of the first byte from `at` on that is not plain, or `end`; all
   before it are copied to out. Whole blocks are stored, up to as many bytes as
   there are before `end`: what is too much the caller overwrites. 64 bytes are
   looked at in one go where there are so many: that costs less than a wrong
   guess about where a line ends. */
HFSBI_UNUSED static inline const char *hfsbi_json_copy_run(const char *at,
                                                           const char *end,
                                                           char       *out,
                                                           bool high) {
    uint64_t mask;
#ifdef HFSBI_SSE2
    while (end - at >= 64) {
        mask = hfsbi_json_mask(at, high) |
               hfsbi_json_mask(at + 16, high) << 16 |
               hfsbi_json_mask(at + 32, high) << 32 |
               hfsbi_json_mask(at + 48, high) << 48;
        memcpy(out, at, 64);
        if (mask) return at + hfsbi_json_first(mask);
        at += 64;
        out += 64;
    }
#endif
    while (end - at >= HFSBI_JSON_BLOCK) {
        mask = hfsbi_json_mask(at, high);
        memcpy(out, at, HFSBI_JSON_BLOCK);
        if (mask) return at + hfsbi_json_first(mask);
        at += HFSBI_JSON_BLOCK;
        out += HFSBI_JSON_BLOCK;
    }
    while (at < end && hfsbi_json_is_plain(*at, high)) *out++ = *at++;
    return at;
}
