#pragma once

/* ==== BASE: views, buffers, status and error, the allocator hook ======== */

#include "config.h"

/* A view of bytes owned by someone else. Not NUL-terminated in general; ptr
   may be NULL when len is 0. */
typedef struct hfsb_str {
    const char *ptr;
    size_t      len;
} hfsb_str;

/* View of a NUL-terminated string; NULL gives the empty view. */
HFSB_API hfsb_str hfsb_cstr(const char *text);

/* View of len bytes at ptr. */
HFSB_API hfsb_str hfsb_str_make(const char *ptr, size_t len);

/* The bytes [from, to) of s. Positions past the end mean the end; from > to
   gives the empty view. */
HFSB_API hfsb_str hfsb_str_slice(hfsb_str s, size_t from, size_t to);

/* True when both hold the same bytes. */
HFSB_API bool hfsb_str_equal(hfsb_str a, hfsb_str b);

/* True when s starts, or ends, with the bytes of part. */
HFSB_API bool hfsb_str_starts(hfsb_str s, hfsb_str part);
HFSB_API bool hfsb_str_ends(hfsb_str s, hfsb_str part);

#define HFSB_NPOS ((size_t)-1)

/* Offset of the first occurrence of needle in s, or HFSB_NPOS. An empty
   needle is at 0. Linear time for every input, no allocation. */
HFSB_API size_t hfsb_str_find(hfsb_str s, hfsb_str needle);

/* Offset of the first byte c in s, or HFSB_NPOS. */
HFSB_API size_t hfsb_str_find_byte(hfsb_str s, char c);

/* How often byte c occurs in s. */
HFSB_API size_t hfsb_str_count_byte(hfsb_str s, char c);

#define HFSB_STATUS_LIST(X)                       \
    X(OK, "ok")                                   \
    X(NOMEM, "out of memory")                     \
    X(LIMIT, "size limit exceeded")               \
    X(ARG, "invalid argument")                    \
    X(SYNTAX, "malformed input")                  \
    X(NOT_FOUND, "not found")                     \
    X(AMBIGUOUS, "ambiguous")                     \
    X(REFUSED, "refused")                         \
    X(IO, "file cannot be used")                  \
    X(DENIED, "not permitted")                    \
    X(FULL, "no space left")                      \
    X(BUSY, "no resources at the moment")         \
    X(CONNECT, "no connection")                   \
    X(LOST, "the connection was lost")            \
    X(TIMEOUT, "timed out")                       \
    X(CANCELLED, "cancelled")                     \
    X(AUTH, "token missing or not accepted")      \
    X(PAYMENT, "payment required")                \
    X(CONFLICT, "in conflict with what is there") \
    X(STALE, "changed by someone else meanwhile") \
    X(RATE, "too many requests")                  \
    X(REMOTE, "the other side failed")            \
    X(OUTSIDE, "path is outside the root")        \
    X(EXISTS, "already exists")                   \
    X(NOT_REGULAR, "not a regular file")          \
    X(IS_DIR, "is a directory")

typedef enum hfsb_status {
#define HFSBI_X(name, text) HFSB_##name,
    HFSB_STATUS_LIST(HFSBI_X)
#undef HFSBI_X
        HFSB_STATUS_COUNT
} hfsb_status;

/* Static description of a status code. Never NULL. */
HFSB_API const char *hfsb_status_text(hfsb_status code);

/* Longest message, its NUL included. Long enough for the refusal of an edit,
   which shows the model what the file really holds. */
#define HFSB_ERR_SIZE 1536

/* Why a call failed. Filled by the call, owned by the caller, no freeing. */
typedef struct hfsb_err {
    size_t      pos;    /* byte offset into the input the error is about */
    size_t      line;   /* 1-based line of that offset; 0: not known */
    size_t      column; /* 1-based column in code points; 0: not known */
    hfsb_status code;
    char        msg[HFSB_ERR_SIZE]; /* UTF-8, NUL-terminated, "" when OK */
} hfsb_err;

/* The one allocation hook. new_size 0 frees ptr (which may be NULL) and
   returns NULL; otherwise it behaves as realloc, and returns NULL when there
   is no memory. old_size is exact, so arenas and pools are easy. */
typedef struct hfsb_alloc {
    void *(*fn)(void *user, void *ptr, size_t old_size, size_t new_size);
    void *user;
} hfsb_alloc;

/* Growable bytes. All-zero is a valid empty buffer on the default allocator.
   Once anything was appended ptr[len] is '\0'. Functions that write their
   result into a buffer also take their working memory from its allocator. */
typedef struct hfsb_buf {
    char       *ptr;
    size_t      len;
    size_t      cap;    /* private */
    size_t      max;    /* refuse to hold more than this (0: no limit) */
    hfsb_alloc  alloc;  /* all-zero: HFSB_REALLOC and HFSB_FREE */
    hfsb_status status; /* the first failure; HFSB_OK: none so far */
} hfsb_buf;

/* The bytes held, as a view that is good until the buffer changes. */
HFSB_API hfsb_str hfsb_buf_str(const hfsb_buf *b);

/* Make room for n more bytes. HFSB_OK; HFSB_NOMEM; HFSB_LIMIT past max, with
   *b as it was. */
HFSB_API hfsb_status hfsb_buf_reserve(hfsb_buf *b, size_t n) HFSBI_CHECKED;

/* Append. HFSB_OK; HFSB_NOMEM; HFSB_LIMIT past max. A failure leaves the bytes
   as they were and is remembered in b->status: from then on every append does
   nothing and returns it, until the buffer is truncated or freed. So a series
   of appends needs one check, at its end. append may be given a view into
   *b. */
HFSB_API hfsb_status hfsb_buf_append(hfsb_buf *b, hfsb_str s);
HFSB_API hfsb_status hfsb_buf_append_byte(hfsb_buf *b, char c);
HFSB_API hfsb_status hfsb_buf_printf(hfsb_buf *b, const char *format, ...)
    HFSBI_PRINTF(2, 3);

/* Ends a series of appends that began when b->len was mark. HFSB_OK; or the
   failure that b->status remembers, with *b cut back to mark bytes. */
HFSB_API hfsb_status hfsb_buf_finish(hfsb_buf *b, size_t mark) HFSBI_CHECKED;

/* Cut back to len bytes (no effect when shorter already) and forget a failure.
   Keeps the memory. */
HFSB_API void hfsb_buf_truncate(hfsb_buf *b, size_t len);

/* Give the memory back. *b is empty and may be used again. */
HFSB_API void hfsb_buf_free(hfsb_buf *b);
