#pragma once

/* ==== HASH: SHA-256, base64, FNV-1a ===================================== */

#include "base.h"

#define HFSB_SHA256_SIZE 32
#define HFSB_SHA256_HEX  65 /* with the NUL */

typedef struct hfsb_sha256 { /* private */
    unsigned int       state[8];
    unsigned char      block[64];
    unsigned long long total;
    bool               asked, fast; /* whether the CPU has SHA instructions */
} hfsb_sha256;

/* SHA-256 of bytes that arrive in pieces. Call init() again after finish(). */
HFSB_API void hfsb_sha256_init(hfsb_sha256 *sha);
HFSB_API void hfsb_sha256_write(hfsb_sha256 *sha, hfsb_str piece);
HFSB_API void hfsb_sha256_finish(hfsb_sha256  *sha,
                                 unsigned char digest[HFSB_SHA256_SIZE]);

/* SHA-256 of s in lower-case hexadecimal, NUL-terminated. */
HFSB_API void hfsb_sha256_hex(hfsb_str s, char hex[HFSB_SHA256_HEX]);

/* True when both hold the same bytes. The time taken depends only on their
   lengths, so it reveals nothing about a secret. */
HFSB_API bool hfsb_secret_equal(hfsb_str a, hfsb_str b);

/* Overwrites n bytes with zeros, even if they are not used again, where the
   compiler would drop a memset(). ptr may be NULL if n is 0. */
HFSB_API void hfsb_secret_wipe(void *ptr, size_t n);

/* Appends s in base64 (RFC 4648, with padding, no line breaks). HFSB_OK;
   HFSB_NOMEM or HFSB_LIMIT with *out unchanged. */
HFSB_API hfsb_status hfsb_base64_encode(hfsb_str s, hfsb_buf *out)
    HFSBI_CHECKED;

/* Appends the bytes that s encodes. Strict: length a multiple of four, no
   blanks, padding only at the end and its spare bits zero. HFSB_OK;
   HFSB_SYNTAX with err->pos; HFSB_NOMEM or HFSB_LIMIT. On failure *out is as
   it was. */
HFSB_API hfsb_status hfsb_base64_decode(hfsb_str s, hfsb_buf *out,
                                        hfsb_err *err);

/* 64-bit FNV-1a. Not for security: collisions can be constructed. add()
   continues from the hash of the preceding bytes, initially HFSB_FNV_START. */
#define HFSB_FNV_START 0xCBF29CE484222325ull
HFSB_API unsigned long long hfsb_fnv(hfsb_str s);
HFSB_API unsigned long long hfsb_fnv_add(unsigned long long hash, hfsb_str s);
