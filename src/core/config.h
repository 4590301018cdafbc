#pragma once

/* ==== CONFIG: version, linkage, compiler differences ==================== */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define HFSB_VERSION_MAJOR 0
#define HFSB_VERSION_MINOR 1
#define HFSB_VERSION_PATCH 0
#define HFSB_VERSION       "0.1.0"

#if defined(__GNUC__) || defined(__clang__)
#define HFSBI_UNUSED          __attribute__((unused))
#define HFSBI_CHECKED         __attribute__((warn_unused_result))
#define HFSBI_PRINTF(fmt, va) __attribute__((format(printf, fmt, va)))
#else
#define HFSBI_UNUSED
#define HFSBI_CHECKED
#define HFSBI_PRINTF(fmt, va)
#endif

#ifndef HFSB_API
#ifdef HFSB_STATIC
#define HFSB_API HFSBI_UNUSED static
#else
#define HFSB_API extern
#endif
#endif

/* HFSB_INIT: all-zero initialiser that is warning-free in both languages.
   HFSB_LIT("text"): a view of a string literal; bytes after an embedded NUL
   count. */
#ifdef __cplusplus
#define HFSB_INIT \
    {}
#define HFSB_LIT(s) (hfsb_str{"" s "", sizeof(s) - 1})
#else
#define HFSB_INIT \
    { 0 }
#define HFSB_LIT(s) ((hfsb_str){"" s "", sizeof(s) - 1})
#endif
