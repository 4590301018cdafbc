#pragma once

/* ==== CONFIG: version, linkage, compiler differences ==================== */

#if defined(_WIN32) && !defined(HFSB_PURE)
#error "hfsb: commands and files need POSIX. On Windows define HFSB_PURE for \
JSON, text, edits, patches, regular expressions and HTTP messages, or use WSL"
#endif
#if defined(__MINGW32__) && defined(HFSB_IMPLEMENTATION) && \
    !defined(__USE_MINGW_ANSI_STDIO)
#define __USE_MINGW_ANSI_STDIO 1 /* msvcrt.dll has no %zu */
#endif

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
#if defined(__MINGW32__) && !defined(__clang__)
#define HFSBI_PRINTF(fmt, va) __attribute__((format(gnu_printf, fmt, va)))
#else
#define HFSBI_PRINTF(fmt, va) __attribute__((format(printf, fmt, va)))
#endif
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

/* To print a view: printf("name: " HFSB_F "\n", HFSB_V(name)). HFSB_V
   evaluates its argument several times and prints at most INT_MAX bytes. */
#define HFSB_F "%.*s"
#define HFSB_V(s)                                               \
    (int)((s).len < 0x7FFFFFFF ? (s).len : (size_t)0x7FFFFFFF), \
        ((s).ptr ? (s).ptr : "")
