#pragma once

/* ==== BASE: views, buffers, status and error, the allocator hook ======== */

#include "config.h"

/* The version of the linked implementation, "0.1.0": HFSB_VERSION of the
   header it was compiled from. Structs may grow in any version, so a program
   and its implementation must be compiled from the same one. */
HFSB_API const char *hfsb_version(void);

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

/* True when both views hold the same bytes. */
HFSB_API bool hfsb_str_equal(hfsb_str a, hfsb_str b);

/* True when s starts, or ends, with the bytes of part. */
HFSB_API bool hfsb_str_starts(hfsb_str s, hfsb_str part);
HFSB_API bool hfsb_str_ends(hfsb_str s, hfsb_str part);

#define HFSB_NPOS ((size_t)-1)

/* Offset of the first occurrence of needle in s, or HFSB_NPOS. An empty
   needle is found at 0. Linear time for every input, no allocation. */
HFSB_API size_t hfsb_str_find(hfsb_str s, hfsb_str needle);

/* Offset of the first byte c in s, or HFSB_NPOS. */
HFSB_API size_t hfsb_str_find_byte(hfsb_str s, char c);

/* Number of bytes c in s. */
HFSB_API size_t hfsb_str_count_byte(hfsb_str s, char c);

#define HFSB_STATUS_LIST(X)                      \
    X(OK, "ok")                                  \
    X(NOMEM, "out of memory")                    \
    X(LIMIT, "size limit exceeded")              \
    X(ARG, "invalid argument")                   \
    X(SYNTAX, "malformed input")                 \
    X(NOT_FOUND, "not found")                    \
    X(AMBIGUOUS, "ambiguous")                    \
    X(REFUSED, "refused")                        \
    X(IO, "input/output error")                  \
    X(DENIED, "permission denied")               \
    X(FULL, "no space left")                     \
    X(BUSY, "resource temporarily unavailable")  \
    X(CONNECT, "cannot connect")                 \
    X(LOST, "connection lost")                   \
    X(TIMEOUT, "timed out")                      \
    X(CANCELLED, "cancelled")                    \
    X(AUTH, "token missing or rejected")         \
    X(PAYMENT, "payment required")               \
    X(CONFLICT, "conflicts with existing state") \
    X(STALE, "modified concurrently")            \
    X(RATE, "too many requests")                 \
    X(REMOTE, "remote error")                    \
    X(OUTSIDE, "path is outside the root")       \
    X(EXISTS, "already exists")                  \
    X(NOT_REGULAR, "not a regular file")         \
    X(IS_DIR, "is a directory")

typedef enum hfsb_status {
#define HFSBI_X(name, text) HFSB_##name,
    HFSB_STATUS_LIST(HFSBI_X)
#undef HFSBI_X
        HFSB_STATUS_COUNT
} hfsb_status;

/* Static description of a status code. Never NULL. */
HFSB_API const char *hfsb_status_text(hfsb_status code);

/* Size of the longest message and the longest key, with the NUL. A message
   can hold the refusal of an edit, which quotes the file to the model. */
#define HFSB_ERR_SIZE 1536
#define HFSB_KEY_SIZE 48

/* Why a call failed. Filled by the call, owned by the caller, no freeing.
   Programs tell errors apart by code and key; msg is for people. */
typedef struct hfsb_err {
    size_t      pos;    /* byte offset of the error in the input */
    size_t      line;   /* 1-based line of that offset; 0: unknown */
    size_t      column; /* 1-based column in code points; 0: unknown */
    hfsb_status code;
    char        key[HFSB_KEY_SIZE]; /* name of the argument or field that the
                                       error is about, cut to fit; or "" */
    char        msg[HFSB_ERR_SIZE]; /* UTF-8, NUL-terminated, "" when OK */
} hfsb_err;

/* Fills *err (may be NULL) in a function of your own: sets code and a message,
   cut to fit between characters, and clears key, pos, line and column. Returns
   code, for `return hfsb_err_set(err, HFSB_IO, ...)`. */
HFSB_API hfsb_status hfsb_err_set(hfsb_err *err, hfsb_status code,
                                  const char *format, ...) HFSBI_PRINTF(3, 4);

/* The one allocation hook. new_size 0 frees ptr (which may be NULL) and
   returns NULL; otherwise it behaves like realloc() and returns NULL when out
   of memory. old_size is exact, so arenas and pools are easy. */
typedef struct hfsb_alloc {
    void *(*fn)(void *user, void *ptr, size_t old_size, size_t new_size);
    void *user;
} hfsb_alloc;

/* Growable bytes. All-zero is a valid empty buffer on the default allocator.
   After the first append ptr[len] is '\0'. Functions that write their result
   into a buffer also take their working memory from its allocator. */
typedef struct hfsb_buf {
    char       *ptr;
    size_t      len;
    size_t      cap;    /* private */
    size_t      max;    /* refuse to hold more than this (0: no limit) */
    hfsb_alloc  alloc;  /* all-zero: HFSB_REALLOC and HFSB_FREE */
    hfsb_status status; /* the first failure; HFSB_OK: none so far */
} hfsb_buf;

/* The bytes held, as a view that is valid until the buffer changes. */
HFSB_API hfsb_str hfsb_buf_str(const hfsb_buf *b);

/* The bytes held as a string that ends with a NUL, valid until the buffer
   changes; "" if nothing was ever appended. Never NULL. */
HFSB_API const char *hfsb_buf_cstr(const hfsb_buf *b);

/* Makes room for n more bytes. HFSB_OK; HFSB_NOMEM; HFSB_LIMIT past max. A
   failure leaves *b unchanged, and is not recorded in b->status. */
HFSB_API hfsb_status hfsb_buf_reserve(hfsb_buf *b, size_t n) HFSBI_CHECKED;

/* Append. HFSB_OK; HFSB_NOMEM; HFSB_LIMIT past max. A failure leaves the bytes
   unchanged and is recorded in b->status: every later append does nothing and
   returns that status, until the buffer is truncated or freed. So a series of
   appends needs only one check, at its end. s may be a view into *b. */
HFSB_API hfsb_status hfsb_buf_append(hfsb_buf *b, hfsb_str s);
HFSB_API hfsb_status hfsb_buf_append_byte(hfsb_buf *b, char c);
HFSB_API hfsb_status hfsb_buf_printf(hfsb_buf *b, const char *format, ...)
    HFSBI_PRINTF(2, 3);

/* Ends a series of appends that began when b->len was mark. HFSB_OK; or the
   failure in b->status, with *b cut back to mark bytes. b->status keeps the
   failure. */
HFSB_API hfsb_status hfsb_buf_finish(hfsb_buf *b, size_t mark) HFSBI_CHECKED;

/* Cuts back to len bytes (no effect when already shorter) and clears a
   failure. Keeps the memory. */
HFSB_API void hfsb_buf_truncate(hfsb_buf *b, size_t len);

/* Frees the memory. *b is empty and may be used again. */
HFSB_API void hfsb_buf_free(hfsb_buf *b);
