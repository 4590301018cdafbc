#pragma once

/* Private: numbers from text and back, exactly. number.c, number_write.c. */

#include "internal.h"

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
           (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 |
           (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}

/* The upper half of a * b; *low gets the lower. */
HFSBI_FN uint64_t hfsbi_mul64(uint64_t a, uint64_t b, uint64_t *low);

/* floor(log2(10^q)), |q| < 400. */
HFSBI_FN int hfsbi_log2_pow10(int q);

/* 10^q, q from -364 to 335, is (hi, lo) as a 128-bit integer with its top bit
   set, rounded down (exact for 0 to 55), times 2^(log2(10^q) - 127). */
typedef struct hfsbi_pow10 {
    uint64_t hi, lo;
} hfsbi_pow10;

HFSBI_FN hfsbi_pow10 hfsbi_pow10_of(int q);

typedef enum hfsbi_number_type {
    HFSBI_NUMBER_BAD,    /* not the grammar of JSON */
    HFSBI_NUMBER_RANGE,  /* larger than any double */
    HFSBI_NUMBER_INT,
    HFSBI_NUMBER_UINT,   /* above the largest INT */
    HFSBI_NUMBER_DOUBLE  /* correctly rounded; also integers beyond UINT */
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
