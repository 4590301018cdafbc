#pragma once

/* core_private.h - functions of core that its files and the other rooms share.
   Never part of the public header.

   A function used by several files is HFSBI_FN: static in the joined headers,
   extern when the files are compiled one by one (the tests do both). The
   sections below are in the order of the files. */

/* Feature macros must be set before the first libc header; hfsb.h reports an
   error with advice when one was included earlier. */
#ifndef HFSB_PURE
#if defined(__linux__) && !defined(_GNU_SOURCE)
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

/* ---- base.c: errors ---- */

/* Fills *err (may be NULL) and returns code, so that a caller can write
   `return hfsbi_fail(err, ...)`. line and column become 0, key "". A message
   that does not fit is cut between characters. */
HFSBI_FN hfsb_status hfsbi_fail(hfsb_err *err, hfsb_status code, size_t pos,
                                const char *format, ...) HFSBI_PRINTF(4, 5);

/* hfsbi_fail() about the argument or field `key`, which err->key names; pos
   is 0. */
HFSBI_FN hfsb_status hfsbi_fail_key(hfsb_err *err, hfsb_status code,
                                    const char *key, const char *format, ...)
    HFSBI_PRINTF(4, 5);

/* hfsbi_fail() with the text of the status as the message: "what: out of
   memory." */
HFSBI_FN hfsb_status hfsbi_fail_status(hfsb_err *err, hfsb_status code,
                                       const char *what);

/* Appends to the message of *err (may be NULL), cut as by hfsbi_fail(). */
HFSBI_FN void hfsbi_err_add(hfsb_err *err, const char *format, ...)
    HFSBI_PRINTF(2, 3);

/* Appends to the message of *err (may be NULL) up to max characters of text,
   as valid UTF-8 on one line; "..." follows when text is longer. */
HFSBI_FN void hfsbi_err_quote(hfsb_err *err, hfsb_str text, size_t max);

/* Names the argument that the error in *err (may be NULL) is about. */
HFSBI_FN void hfsbi_err_key(hfsb_err *err, const char *key);

/* Clears *err (may be NULL) and returns HFSB_OK. */
HFSBI_FN hfsb_status hfsbi_ok(hfsb_err *err);

/* ---- base.c: memory ---- */

/* a + b or a * b into *out; false, and *out unchanged, on overflow. */
HFSBI_FN bool hfsbi_add(size_t a, size_t b, size_t *out);
HFSBI_FN bool hfsbi_mul(size_t a, size_t b, size_t *out);

/* realloc, and free when new_size is 0, through the hook. */
HFSBI_FN void *hfsbi_realloc(const hfsb_alloc *alloc, void *ptr,
                             size_t old_size, size_t new_size);

/* Room for count items of size bytes, not cleared; NULL when out of memory or
   when the product overflows. A count of 0 is taken as 1. free() takes the
   same count and size, and ptr may be NULL. */
HFSBI_FN void *hfsbi_array(const hfsb_alloc *alloc, size_t count, size_t size);
HFSBI_FN void  hfsbi_array_free(const hfsb_alloc *alloc, void *ptr,
                                size_t count, size_t size);

/* Grows an array of *cap items to hold at least need. Returns the new array
   and updates *cap; NULL, with the old array unchanged, when out of memory. */
HFSBI_FN void *hfsbi_array_grow(const hfsb_alloc *alloc, void *ptr,
                                size_t *cap, size_t need, size_t size);

/* qsort() that allocates nothing and is never quadratic (heap sort). Not
   stable: compare must order any two items whose order matters. */
HFSBI_FN void hfsbi_sort(void *items, size_t count, size_t size,
                         int (*compare)(const void *a, const void *b));

/* ---- base.c: views ---- */

/* A text to search for several times; hfsb_str_find() would analyse it anew in
   each call. */
typedef struct hfsbi_needle {
    hfsb_str text;
    size_t   first, second; /* offsets of two rare bytes */
} hfsbi_needle;

HFSBI_FN hfsbi_needle hfsbi_needle_make(hfsb_str text);

/* Offset of the first match in s, or HFSB_NPOS. */
HFSBI_FN size_t hfsbi_needle_find(const hfsbi_needle *needle, hfsb_str s);

/* ASCII only, whatever the locale. */
HFSBI_UNUSED static inline bool hfsbi_is_digit(char c) {
    return (unsigned)c - '0' < 10u;
}

HFSBI_UNUSED static inline bool hfsbi_is_alpha(char c) {
    return ((unsigned)c | 0x20u) - 'a' < 26u;
}

/* A letter, a digit or "_". */
HFSBI_UNUSED static inline bool hfsbi_is_word_char(char c) {
    return hfsbi_is_alpha(c) || hfsbi_is_digit(c) || c == '_';
}

/* A space or a tab. */
HFSBI_UNUSED static inline bool hfsbi_is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* c, in lower case if it is an ASCII capital. */
HFSBI_FN char hfsbi_lower(char c);

/* s without the spaces, tabs and CRs at its end, or at both ends. */
HFSBI_FN hfsb_str hfsbi_trim_end(hfsb_str s);
HFSBI_FN hfsb_str hfsbi_trim(hfsb_str s);

/* True when a and b differ at most in the case of ASCII letters. */
HFSBI_FN bool hfsbi_str_equal_nocase(hfsb_str a, hfsb_str b);

/* Removes the next item from the list *rest, whose items are separated by
   sep; false at the end. An empty list has no items, "a,,b" has an empty
   one. */
HFSBI_FN bool hfsbi_list_next(hfsb_str *rest, char sep, hfsb_str *item);

/* True when item is in the list. */
HFSBI_FN bool hfsbi_list_has(hfsb_str list, char sep, hfsb_str item);

/* Reads the decimal number at the start of s into *out. Returns its digits;
   0, and *out unchanged, when there are none or the number exceeds max. */
HFSBI_FN size_t hfsbi_read_decimal(hfsb_str s, unsigned long long max,
                                   unsigned long long *out);

/* The value of a hexadecimal digit, or -1. */
HFSBI_FN int hfsbi_hex_digit(char c);

/* ---- base.c: buffers ---- */

/* hfsb_buf_printf() for a va_list. */
HFSBI_FN hfsb_status hfsbi_buf_vprintf(hfsb_buf *b, const char *format,
                                       va_list ap);

/* ---- utf8.c ---- */

/* Where valid UTF-8 may be cut: the character boundary at or before byte n
   (floor), or at or after it (ceil); s.len when n is past the end. */
HFSBI_FN size_t hfsbi_utf8_floor(hfsb_str s, size_t n);
HFSBI_FN size_t hfsbi_utf8_ceil(hfsb_str s, size_t n);
/* Number of bytes at the end of s, 0 to 3, that start a character which the
   next piece may complete. */
HFSBI_FN size_t hfsbi_utf8_open(hfsb_str s);

/* Number of ASCII bytes at the start of the n bytes at p. */
HFSBI_FN size_t hfsbi_utf8_ascii(const char *p, size_t n);

/* Checks a text that arrives in pieces; all-zero is the initial state of
   *stream. Returns the number of bytes of the piece before the first
   ill-formed one, or piece.len; *stream has consumed that many. The last
   character is incomplete while stream->len is not 0. */
HFSBI_FN size_t hfsbi_utf8_stream_check(hfsb_utf8_stream *stream,
                                        hfsb_str          piece);

/* ---- number.c ---- */

/* Number of zero bits below the lowest one bit; x is not 0. */
HFSBI_UNUSED static inline unsigned hfsbi_ctz64(uint64_t x) {
#if defined(__GNUC__) || defined(__clang__)
    return (unsigned)__builtin_ctzll(x);
#else
    unsigned n = 0;
    for (; !(x & 1); x >>= 1) n++;
    return n;
#endif
}

/* Eight bytes as a little-endian number, on every machine. Not every compiler
   merges the shifts into one load. */
HFSBI_UNUSED static inline uint64_t hfsbi_load64(const char *at) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t x;
    memcpy(&x, at, 8);
    return x;
#else
    const unsigned char *b = (const unsigned char *)at;
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 |
           (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 |
           (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
#endif
}

typedef enum hfsbi_number_type {
    HFSBI_NUMBER_BAD,   /* not a number by the grammar of JSON */
    HFSBI_NUMBER_RANGE, /* larger than any double */
    HFSBI_NUMBER_INT,
    HFSBI_NUMBER_UINT,  /* above the largest INT */
    HFSBI_NUMBER_DOUBLE /* correctly rounded; also integers beyond UINT */
} hfsbi_number_type;

typedef struct hfsbi_number {
    hfsbi_number_type type;
    const char       *expected; /* BAD: what the grammar expects there */
    union {
        int64_t  i;
        uint64_t u;
        double   d;
    } as;
} hfsbi_number;

/* Reads the longest JSON number at p. Returns its end, or for BAD the place of
   the fault. The number must be followed by a byte that cannot continue it:
   that byte is read, but no other at or after `end`. */
HFSBI_FN const char *hfsbi_number_parse(const char *p, const char *end,
                                        hfsbi_number *out);

/* Write value to out without a NUL and return the length: at most 20, 20 and
   25 bytes. A double gets the fewest digits that read back as the same double,
   and always a point or an exponent; NaN and infinities give 0 bytes. */
HFSBI_FN size_t hfsbi_number_write_int(int64_t value, char *out);
HFSBI_FN size_t hfsbi_number_write_uint(uint64_t value, char *out);
HFSBI_FN size_t hfsbi_number_write_double(double value, char *out);

/* ---- json_*.c: the tree ---- */

/* A document is an array of nodes in the order of the text; the members of an
   object are key, value, key, value ...

       tag:  0..2 type   3 plain   4 escaped   8..63 count, length or truth
       as:   the number, the string's bytes, or the span of a container: its
             own node and all nodes in it. While a container is being parsed,
             the distance to the enclosing container.                       */
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

/* The node after value and everything in it. */
HFSBI_UNUSED static const hfsb_json_value *
hfsbi_json_after(const hfsb_json_value *value) {
    unsigned type = (unsigned)value->tag & HFSBI_JSON_TYPE;
    return value + (type >= HFSB_JSON_ARRAY ? value->as.span : 1);
}

/* White space between tokens. */
HFSBI_UNUSED static inline bool hfsbi_json_is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The string at a key of an object, or "". */
HFSBI_UNUSED static inline hfsb_str
hfsbi_json_get_str(const hfsb_json_value *object, const char *key) {
    return hfsb_json_str(hfsb_json_get(object, key), HFSB_LIT(""));
}

/* ---- json_*.c: scanning strings, a block at a time ---- */

/* hfsbi_json_mask() compares a block of HFSBI_JSON_BLOCK bytes at once. Its
   result has HFSBI_JSON_LANE bits for each byte that is a quote, a backslash
   or a control character, or, when `high`, above 0x7F. */
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
    /* Only signs count. Less 32, and with signed saturation, all bytes that
       are below 32 or above 0x7F are negative. */
    hit = _mm_or_si128(
        hit, high ? _mm_subs_epi8(x, _mm_set1_epi8(32))
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
    /* No carry crosses a byte, so the result for each byte is exact. */
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

/* True for a byte that a string holds without an escape; above 0x7F only when
   not `high`. */
HFSBI_UNUSED static inline bool hfsbi_json_is_plain(char c, bool high) {
    unsigned char u = (unsigned char)c;
    return u >= 0x20 && u != '"' && u != '\\' && (u < 0x80 || !high);
}

/* Copies plain bytes from `at` to out and returns the first byte that is not
   plain, or `end`. Stores whole blocks, up to end - at bytes: the caller
   overwrites the excess. 64 bytes at a time where there are as many, which
   costs less than mispredicting where a line ends. */
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

/* ---- json_write.c ---- */

/* Appends text as a JSON string, in quotes. A failure sets out->status. */
HFSBI_FN void hfsbi_json_put_quoted(hfsb_buf *out, hfsb_str text);

/* hfsb_json_printf() for a va_list. */
HFSBI_FN hfsb_status hfsbi_json_vprintf(hfsb_buf *out, const char *format,
                                        va_list ap);

/* ---- json_build.c ---- */

/* A document built value by value. key is NULL for the root and inside arrays.
   Failures are remembered until finish(). */
typedef hfsb_json_tree hfsbi_build;

HFSBI_FN void hfsbi_build_init(hfsbi_build *b, const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_build_free(hfsbi_build *b);
/* Records that a value could not be made: finish() will return st. */
HFSBI_FN void hfsbi_build_fail(hfsbi_build *b, hfsb_status st);
HFSBI_FN void hfsbi_build_object(hfsbi_build *b, const char *key);
HFSBI_FN void hfsbi_build_array(hfsbi_build *b, const char *key);
HFSBI_FN void hfsbi_build_end(hfsbi_build *b);
HFSBI_FN void hfsbi_build_null(hfsbi_build *b, const char *key);
HFSBI_FN void hfsbi_build_bool(hfsbi_build *b, const char *key, bool value);
HFSBI_FN void hfsbi_build_int(hfsbi_build *b, const char *key,
                              long long value);
HFSBI_FN void hfsbi_build_str(hfsbi_build *b, const char *key, hfsb_str value);
/* A copy of a number, boolean or null of another document. */
HFSBI_FN void hfsbi_build_node(hfsbi_build *b, const char *key,
                               const hfsb_json_value *value);
/* A key, for the value that comes next with key NULL. */
HFSBI_FN void hfsbi_build_key(hfsbi_build *b, hfsb_str key);
/* A copy of a value of another document, with everything in it. */
HFSBI_FN void hfsbi_build_value(hfsbi_build *b, const char *key,
                                const hfsb_json_value *value);
/* Moves the document into *doc, which must be all zero. HFSB_OK; HFSB_NOMEM.
   Either way the builder is left empty and may be used again. */
HFSBI_FN hfsb_status hfsbi_build_finish(hfsbi_build *b, hfsb_json_doc *doc);

/* ---- text.c ---- */

/* Appends the marker between head and tail of a text of `total` characters, of
   which limit->chars are shown. When saved is not 0, the file at spill_path
   holds only that many bytes. */
HFSBI_FN void hfsbi_text_put_marker(hfsb_buf              *out,
                                    const hfsb_text_limit *limit, size_t total,
                                    hfsb_str spill_path, size_t saved);

/* Appends what hfsb_text_truncate() would write for the text of a followed by
   the text of b, two windows with the same limit. When saved is not 0, the
   file at spill_path holds only that many bytes of it. HFSB_OK; HFSB_NOMEM or
   HFSB_LIMIT with *out unchanged. */
HFSBI_FN hfsb_status hfsbi_text_windows_show(const hfsb_text_window *a,
                                             const hfsb_text_window *b,
                                             hfsb_str spill_path, size_t saved,
                                             hfsb_buf *out);

/* ---- hash.c ---- */

/* hfsb_sha256_finish() in hexadecimal. */
HFSBI_FN void hfsbi_sha256_finish_hex(hfsb_sha256 *sha,
                                      char         hex[HFSB_SHA256_HEX]);

/* Writes s in base64 to `to`, which has room for it and a NUL, and returns its
   end: (s.len + 2) / 3 * 4 characters. */
HFSBI_FN char *hfsbi_base64_write(hfsb_str s, char *to);

/* Checks s as hfsb_base64_decode() does and sets *size to the number of bytes
   that it encodes. HFSB_OK; HFSB_SYNTAX with err->pos, *size unchanged. */
HFSBI_FN hfsb_status hfsbi_base64_check(hfsb_str s, size_t *size,
                                        hfsb_err *err);

/* SHA-1 of a followed by b, as bytes or in lower-case hexadecimal: git's
   object names, WebSocket's handshake. Not for security, since collisions can
   be made. */
#define HFSBI_SHA1_SIZE 20
#define HFSBI_SHA1_HEX  41 /* with the NUL */
HFSBI_FN void hfsbi_sha1_digest(hfsb_str a, hfsb_str b,
                                unsigned char digest[HFSBI_SHA1_SIZE]);
HFSBI_FN void hfsbi_sha1_hex(hfsb_str a, hfsb_str b, char hex[HFSBI_SHA1_HEX]);

/* Git's object name for a file with that content. */
HFSBI_FN void hfsbi_git_blob(hfsb_str content, char hex[HFSBI_SHA1_HEX]);

/* ---- date.c ---- */

typedef struct hfsbi_date {
    unsigned year, month, day, hour, minute, second;
    unsigned weekday; /* 0: Thursday */
} hfsbi_date;

/* The UTC date of seconds since 1970, clamped to 1970..9999. */
HFSBI_FN hfsbi_date hfsbi_date_of(long long seconds);
/* "2025-03-07T12:24:18.657Z" (up to 9 digits after the point, a zone) as
   seconds since 1970; false if the text is no such date. */
HFSBI_FN bool hfsbi_date_parse(hfsb_str text, double *out);

/* ---- secret.c ---- */

/* Returns the owner's secret i, which must never be shown; it may be empty. */
typedef hfsb_str (*hfsbi_secret_fn)(const void *owner, size_t i);
/* Replaces all of the owner's `count` secrets in text by "***". Works in
   place, so it cannot fail; returns the new length and NUL-terminates a
   shortened text. If several secrets match at one place, the longest counts.
   Secrets of fewer than 4 bytes are not replaced: they could be part of any
   word. */
HFSBI_FN size_t hfsbi_redact(hfsbi_secret_fn secret, const void *owner,
                             size_t count, char *text, size_t len);
/* Replaces what looks like a secret by "***": tokens of well-known services,
   the value after Bearer, Authorization, HF_TOKEN=, "password": and the like,
   passwords in URLs, private keys. Works and returns like hfsbi_redact(). */
HFSBI_FN size_t hfsbi_redact_shapes(char *text, size_t len);
/* True for the name of a variable or argument whose value is secret: HF_TOKEN,
   api_key. */
HFSBI_FN bool hfsbi_is_secret_name(hfsb_str name);

/* ---- path.c ---- */

/* True when s contains white space as Python defines it. */
HFSBI_FN bool hfsbi_has_space(hfsb_str s);
