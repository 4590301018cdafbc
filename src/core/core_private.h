#pragma once

/* Shared by the .c files, never part of the public header. Functions that
   cross module borders are HFSBI_FN: static once joined, extern when the
   modules are compiled one by one (the tests do both). */

/* What the modules that touch the OS need must be asked for before the first
   header of libc (which defines _FEATURES_H, in glibc and musl). */
#ifndef HFSB_PURE
#if defined(__linux__) && !defined(_GNU_SOURCE)
#ifdef _FEATURES_H
#error "a libc header came before hfsb.h: in the file that defines \
HFSB_IMPLEMENTATION include hfsb.h first, or compile with -D_GNU_SOURCE"
#endif
#define _GNU_SOURCE 1
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#endif

#include "base.h"
#include "utf8.h"
#include "json.h"
#include "text.h"
#include "hash.h"
#include "path.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(HFSB_NO_SIMD) && defined(__SSE2__)
#define HFSBI_SSE2 1
#include <emmintrin.h>
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#define HFSBI_SHA_X86 1
#include <cpuid.h>
#endif
#elif !defined(HFSB_NO_SIMD) && defined(__ARM_NEON) && defined(__aarch64__)
#define HFSBI_NEON 1
#include <arm_neon.h>
#endif

#ifndef HFSB_ASSERT
#include <assert.h>
#define HFSB_ASSERT(x) assert(x)
#endif

#if defined(HFSB_REALLOC) != defined(HFSB_FREE)
#error "define both HFSB_REALLOC and HFSB_FREE, or neither"
#endif
#ifndef HFSB_REALLOC
#define HFSB_REALLOC(p, n) realloc(p, n)
#define HFSB_FREE(p)       free(p)
#endif

#ifdef HFSBI_SPLIT
#define HFSBI_FN extern
#else
#define HFSBI_FN HFSBI_UNUSED static
#endif

/* ---- base: errors ---- */

/* Fill *err (may be NULL) and return code, so that callers can write
   `return hfsbi_fail(err, ...)`. line and column become 0. */
HFSBI_FN hfsb_status hfsbi_fail(hfsb_err *err, hfsb_status code, size_t pos,
                                const char *format, ...) HFSBI_PRINTF(4, 5);

/* fail() for a status that speaks for itself (no memory, a limit). */
HFSBI_FN hfsb_status hfsbi_fail_status(hfsb_err *err, hfsb_status code,
                                       const char *what);

/* Append to the message of *err (may be NULL); what does not fit is cut at
   a character's border. */
HFSBI_FN void hfsbi_err_add(hfsb_err *err, const char *format, ...)
    HFSBI_PRINTF(2, 3);

/* Names the argument that the error in *err (may be NULL) is about. */
HFSBI_FN void hfsbi_err_key(hfsb_err *err, const char *key);

HFSBI_FN hfsb_status hfsbi_ok(hfsb_err *err);

/* hfsb_buf_printf() for a va_list. */
HFSBI_FN hfsb_status hfsbi_buf_vprintf(hfsb_buf *b, const char *format,
                                       va_list ap);

/* ---- base: views ---- */

/* ASCII letters in lower case, everything else as it is. */
HFSBI_FN char hfsbi_lower(char c);

/* s without the spaces, tabs and CRs at its end, or at both ends. */
HFSBI_FN hfsb_str hfsbi_trim_end(hfsb_str s);
HFSBI_FN hfsb_str hfsbi_trim(hfsb_str s);

/* Equal but for the case of ASCII letters. */
HFSBI_FN bool hfsbi_str_same_letters(hfsb_str a, hfsb_str b);

/* Takes the next item of a list with the separator sep off *rest; false at
   its end. An empty list has no item, "a,,b" has an empty one. */
HFSBI_FN bool hfsbi_list_next(hfsb_str *rest, char sep, hfsb_str *item);

/* True when item is one of the list. */
HFSBI_FN bool hfsbi_list_has(hfsb_str list, char sep, hfsb_str item);

/* The decimal digits at the start of s into *out: how many there are, 0 when
   there is none or the number exceeds max (*out is then untouched). */
HFSBI_FN size_t hfsbi_read_decimal(hfsb_str s, unsigned long long max,
                                   unsigned long long *out);

/* ---- base: memory ---- */

/* realloc, and free when new_size is 0, through the hook. */
HFSBI_FN void *hfsbi_realloc(const hfsb_alloc *alloc, void *ptr,
                             size_t old_size, size_t new_size);

/* room for count items of size bytes, not cleared; NULL when there is no
   memory or the product does not fit. count 0 counts as 1. */
HFSBI_FN void *hfsbi_array(const hfsb_alloc *alloc, size_t count, size_t size);
HFSBI_FN void  hfsbi_array_free(const hfsb_alloc *alloc, void *ptr,
                                size_t count, size_t size);

/* Grow an array of *cap items to hold at least need: the new array, or NULL
   with the old one untouched. */
HFSBI_FN void *hfsbi_array_grow(const hfsb_alloc *alloc, void *ptr,
                                size_t *cap, size_t need, size_t size);

/* a + b or a * b into *out; false, and *out untouched, when it overflows. */
HFSBI_FN bool hfsbi_add(size_t a, size_t b, size_t *out);
HFSBI_FN bool hfsbi_mul(size_t a, size_t b, size_t *out);

/* qsort() that needs no memory and has no bad case; compare must tell any two
   items apart where their order matters. */
HFSBI_FN void hfsbi_sort(void *items, size_t count, size_t size,
                         int (*compare)(const void *a, const void *b));

/* ---- utf8 ---- */

/* Appends to the message of *err (may be NULL) up to max characters of text,
   in valid UTF-8 and on one line; "..." tells when that is not all. */
HFSBI_FN void hfsbi_err_quote(hfsb_err *err, hfsb_str text, size_t max);

/* The border of a character at or before byte n of valid UTF-8 (floor), or at
   or after it (ceil): where a text may be cut. */
HFSBI_FN size_t hfsbi_utf8_floor(hfsb_str s, size_t n);
HFSBI_FN size_t hfsbi_utf8_ceil(hfsb_str s, size_t n);

/* How many bytes from p on are ASCII, of n. */
HFSBI_FN size_t hfsbi_utf8_ascii(const char *p, size_t n);

/* ---- json ---- */

/* Appends text as a JSON string, in quotes. */
HFSBI_FN void hfsbi_json_put_quoted(hfsb_buf *out, hfsb_str text);

/* A document that is made value by value (json_build.c). key is NULL for the
   root and inside arrays. Failures are remembered until finish(). */
typedef hfsb_json_tree hfsbi_build;

HFSBI_FN void hfsbi_build_init(hfsbi_build *b, const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_build_free(hfsbi_build *b);
HFSBI_FN void hfsbi_build_object(hfsbi_build *b, const char *key);
HFSBI_FN void hfsbi_build_array(hfsbi_build *b, const char *key);
HFSBI_FN void hfsbi_build_end(hfsbi_build *b);
HFSBI_FN void hfsbi_build_null(hfsbi_build *b, const char *key);
HFSBI_FN void hfsbi_build_bool(hfsbi_build *b, const char *key, bool value);
HFSBI_FN void hfsbi_build_int(hfsbi_build *b, const char *key,
                              long long value);
HFSBI_FN void hfsbi_build_str(hfsbi_build *b, const char *key, hfsb_str value);
/* A number, as it is in another document. */
HFSBI_FN void hfsbi_build_node(hfsbi_build *b, const char *key,
                               const hfsb_json_value *value);
/* A key, for the value that comes next with key NULL. */
HFSBI_FN void hfsbi_build_key(hfsbi_build *b, hfsb_str key);
/* A copy of a value of another document, with all it holds. */
HFSBI_FN void hfsbi_build_value(hfsbi_build *b, const char *key,
                                const hfsb_json_value *value);
/* Moves the document into *doc, which was all zero. HFSB_OK; HFSB_NOMEM. The
   builder is empty and may be used again in any case. */
HFSBI_FN hfsb_status hfsbi_build_finish(hfsbi_build *b, hfsb_json_doc *doc);

/* ---- date: the calendar, without libc's time zones ---- */

typedef struct hfsbi_date {
    unsigned year, month, day, hour, minute, second;
    unsigned weekday; /* 0: Thursday */
} hfsbi_date;

/* UTC, of seconds since 1970 and up to the year 9999. */
HFSBI_FN hfsbi_date hfsbi_date_of(long long seconds);

/* ---- path ---- */

/* True when there is white space in s, as Python sees it. */
HFSBI_FN bool hfsbi_has_space(hfsb_str s);

/* ---- hash ---- */

/* hfsb_sha256_finish() in hexadecimal. */
HFSBI_FN void hfsbi_sha256_finish_hex(hfsb_sha256 *sha,
                                      char         hex[HFSB_SHA256_HEX]);

/* ---- text ---- */

/* Appends what hfsb_text_truncate() would give for the text of a followed by
   that of b, two windows of the same limit. saved, when it is not 0, says how
   many bytes of it the file at spill_path holds. HFSB_OK; HFSB_NOMEM or
   HFSB_LIMIT with *out as it was. */
HFSBI_FN hfsb_status hfsbi_text_windows_show(const hfsb_text_window *a,
                                             const hfsb_text_window *b,
                                             hfsb_str spill_path, size_t saved,
                                             hfsb_buf *out);

/* Private: numbers from text and back, exactly. number.c, number_write.c. */

/* Number of zero bits below the lowest one; x is not 0. */
HFSBI_UNUSED static inline unsigned hfsbi_ctz64(uint64_t x) {
#if defined(__GNUC__) || defined(__clang__)
    return (unsigned)__builtin_ctzll(x);
#else
    unsigned n = 0;
    for (; !(x & 1); x >>= 1) n++;
    return n;
#endif
}

/* Eight bytes, the first one lowest, on every machine. */
HFSBI_UNUSED static inline uint64_t hfsbi_load64(const char *at) {
    const unsigned char *b = (const unsigned char *)at;
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 |
           (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 |
           (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}

typedef enum hfsbi_number_type {
    HFSBI_NUMBER_BAD,   /* not the grammar of JSON */
    HFSBI_NUMBER_RANGE, /* larger than any double */
    HFSBI_NUMBER_INT,
    HFSBI_NUMBER_UINT,  /* above the largest INT */
    HFSBI_NUMBER_DOUBLE /* correctly rounded; also integers beyond UINT */
} hfsbi_number_type;

typedef struct hfsbi_number {
    hfsbi_number_type type;
    const char       *expected; /* BAD: what should have stood there */
    union {
        int64_t  i;
        uint64_t u;
        double   d;
    } as;
} hfsbi_number;

/* Reads the JSON number at p, as long as it goes, and gives the place behind
   it; BAD: the place of the fault. A byte that cannot be part of a number
   must follow it; beside that one nothing from `end` on is looked at. */
HFSBI_FN const char *hfsbi_number_parse(const char *p, const char *end,
                                        hfsbi_number *out);

/* Write value into out and give the length: at most 20, 20 and 25 bytes, no
   NUL. A double gets the fewest digits that read back as the same double,
   and always a point or an exponent; 0 bytes for NaN and infinities. */
HFSBI_FN size_t hfsbi_number_write_int(int64_t value, char *out);
HFSBI_FN size_t hfsbi_number_write_uint(uint64_t value, char *out);
HFSBI_FN size_t hfsbi_number_write_double(double value, char *out);

/* Private to the json_*.c files: the tree, the parser and the look at a
   string, block by block. */

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

/* The node behind value and all it holds. */
HFSBI_UNUSED static const hfsb_json_value *
hfsbi_json_after(const hfsb_json_value *value) {
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
    uint8x16_t hit = vorrq_u8(
        vorrq_u8(vceqq_u8(x, vdupq_n_u8('"')), vceqq_u8(x, vdupq_n_u8('\\'))),
        vcltq_u8(x, vdupq_n_u8(32)));
    if (high) hit = vorrq_u8(hit, vcgeq_u8(x, vdupq_n_u8(128)));
    return vget_lane_u64(
        vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(hit), 4)), 0);
#else
    /* No carry crosses a byte, so each byte's answer is exact. */
    const uint64_t ones = 0x0101010101010101u, low7 = 0x7F * ones;
    uint64_t       x = hfsbi_load64(at);
    uint64_t       quote = ((x ^ '"' * ones) & low7) + low7;
    uint64_t       slash = ((x ^ '\\' * ones) & low7) + low7;
    uint64_t       control = (x & low7) + 0x60 * ones;
    uint64_t       hit = ~((quote & slash & control) | x);
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
HFSBI_UNUSED static inline const char *
hfsbi_json_copy_run(const char *at, const char *end, char *out, bool high) {
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

/* Private: sha1, by which git names what it holds. Good for nothing else:
   collisions can be made. */

#define HFSBI_SHA1_HEX 41 /* with the NUL */

/* sha1 of a followed by b, in lower-case hexadecimal. */
HFSBI_FN void hfsbi_sha1_hex(hfsb_str a, hfsb_str b, char hex[HFSBI_SHA1_HEX]);

/* The name git gives to a file with that content. */
HFSBI_FN void hfsbi_git_blob(hfsb_str content, char hex[HFSBI_SHA1_HEX]);
