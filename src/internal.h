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
#include "edit.h"
#include "hash.h"
#include "json.h"
#include "patch.h"
#include "path.h"
#include "text.h"
#include "utf8.h"

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

/* ---- base: memory ---- */

/* realloc, and free when new_size is 0, through the hook. */
HFSBI_FN void *hfsbi_realloc(const hfsb_alloc *alloc, void *ptr,
                             size_t old_size, size_t new_size);

/* room for count items of size bytes, not cleared; NULL when there is no
   memory or the product does not fit. count 0 counts as 1. */
HFSBI_FN void *hfsbi_array(const hfsb_alloc *alloc, size_t count,
                           size_t size);
HFSBI_FN void hfsbi_array_free(const hfsb_alloc *alloc, void *ptr,
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

/* How many bytes from p on are ASCII, of n. */
HFSBI_FN size_t hfsbi_utf8_ascii(const char *p, size_t n);

/* ---- http_date: the calendar, without libc's time zones ---- */

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
                                      char hex[HFSB_SHA256_HEX]);

/* ---- text ---- */

/* Appends what hfsb_text_truncate() would give for the text of a followed by
   that of b, two windows of the same limit. saved, when it is not 0, says how
   many bytes of it the file at spill_path holds. HFSB_OK; HFSB_NOMEM or
   HFSB_LIMIT with *out as it was. */
HFSBI_FN hfsb_status hfsbi_text_windows_show(const hfsb_text_window *a,
                                             const hfsb_text_window *b,
                                             hfsb_str  spill_path,
                                             size_t    saved,
                                             hfsb_buf *out);

/* ---- base: many appends, one check ---- */

/* Appends to buf until one fails; then nothing more is written, and end()
   gives that status and cuts buf back to where begin() found it. */
typedef struct hfsbi_sink {
    hfsb_buf   *buf;
    size_t      mark;
    hfsb_status status;
} hfsbi_sink;

HFSBI_FN hfsbi_sink  hfsbi_sink_begin(hfsb_buf *buf);
HFSBI_FN void        hfsbi_put(hfsbi_sink *sink, hfsb_str s);
HFSBI_FN void        hfsbi_put_byte(hfsbi_sink *sink, char c);
HFSBI_FN void        hfsbi_putf(hfsbi_sink *sink, const char *format, ...)
    HFSBI_PRINTF(2, 3);
HFSBI_FN hfsb_status hfsbi_sink_end(hfsbi_sink *sink);
