/* number.c - numbers from and to text, exactly, without locale or libc.

   Reading a double tries three methods, each slower and rarer than the one
   before: Clinger's fast path (one exact multiplication or division); Eisel
   and Lemire (the product with a 128-bit power of ten, as an interval); and,
   when that interval contains the boundary between two doubles, a comparison
   of big integers.

   Writing uses Giulietti's Schubfach: the shortest digits that read back as
   the same double and, of those, the nearest. Both share one table of powers
   of ten; only the fast path uses floating point. */
#include "core_private.h"

/* 10^q, q from -364 to 335, is (hi, lo) as a 128-bit integer with its top bit
   set, rounded down (exact for 0 to 55), times 2^(log2(10^q) - 127). */
typedef struct hfsbi_pow10 {
    uint64_t hi, lo;
} hfsbi_pow10;

/* ---- 64-bit helpers ---- */

/* The upper half of a * b; *low gets the lower. */
static uint64_t hfsbi_mul64(uint64_t a, uint64_t b, uint64_t *low) {
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 hfsbi_u128;
    hfsbi_u128                              product = (hfsbi_u128)a * b;
    *low = (uint64_t)product;
    return (uint64_t)(product >> 64);
#else
    uint64_t a0 = a & 0xFFFFFFFFu, a1 = a >> 32;
    uint64_t b0 = b & 0xFFFFFFFFu, b1 = b >> 32;
    uint64_t p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0;
    uint64_t mid = (p00 >> 32) + (p01 & 0xFFFFFFFFu) + (p10 & 0xFFFFFFFFu);
    *low = (mid << 32) | (p00 & 0xFFFFFFFFu);
    return a1 * b1 + (p01 >> 32) + (p10 >> 32) + (mid >> 32);
#endif
}

/* Number of zero bits above the highest one; x is not 0. */
static int hfsbi_leading_zeros(uint64_t x) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_clzll(x);
#else
    int n = 0;
    for (; !(x >> 63); x <<= 1) n++;
    return n;
#endif
}

static double hfsbi_double_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- powers of ten ---- */

/* 10^q is computed from 10^(28 i), 10^b and a correction of 0 to 2 that makes
   it exact: 0.8 kB of tables instead of 11. Only the powers that scale a long
   fraction are stored as well. */
#define HFSBI_POW10_MIN (-364)

static const uint64_t hfsbi_pow10_coarse[] = {
    0xE1AFA13AFBD14D6Du, 0x82189C09A3A1EC21u, /* 1e-364 */
    0xE3E27A444D8D98B7u, 0xFD1B1B2308169B25u, /* 1e-336 */
    0xE61ACF033D1A45DFu, 0x6FB92487298E33BDu, /* 1e-308 */
    0xE858AD248F5C22C9u, 0xD1B3400F8F9CFF68u, /* 1e-280 */
    0xEA9C227723EE8BCBu, 0x465E15A979C1CADCu, /* 1e-252 */
    0xECE53CEC4A314EBDu, 0xA4F8BF5635246428u, /* 1e-224 */
    0xEF340A98172AACE4u, 0x86FB897116C87C34u, /* 1e-196 */
    0xF18899B1BC3F8CA1u, 0xDC44E6C3CB279AC1u, /* 1e-168 */
    0xF3E2F893DEC3F126u, 0x5A89DBA3C3EFCCFAu, /* 1e-140 */
    0xF64335BCF065D37Du, 0x4D4617B5FF4A16D5u, /* 1e-112 */
    0xF8A95FCF88747D94u, 0x75A44C6397CE912Au, /* 1e-84 */
    0xFB158592BE068D2Eu, 0xEED6E2F0F0D56712u, /* 1e-56 */
    0xFD87B5F28300CA0Du, 0x8BCA9D6E188853FCu, /* 1e-28 */
    0x8000000000000000u, 0x0000000000000000u, /* 1e0 */
    0x813F3978F8940984u, 0x4000000000000000u, /* 1e28 */
    0x82818F1281ED449Fu, 0xBFF8F10E7A8921A4u, /* 1e56 */
    0x83C7088E1AAB65DBu, 0x792667C6DA79E0FAu, /* 1e84 */
    0x850FADC09923329Eu, 0x03E2CF6BC604DDB0u, /* 1e112 */
    0x865B86925B9BC5C2u, 0x0B8A2392BA45A9B2u, /* 1e140 */
    0x87AA9AFF79042286u, 0x90FB44D2F05D0842u, /* 1e168 */
    0x88FCF317F22241E2u, 0x441FECE3BDF81F03u, /* 1e196 */
    0x8A5296FFE33CC92Fu, 0x82BD6B70D99AAA6Fu, /* 1e224 */
    0x8BAB8EEFB6409C1Au, 0x1AD089B6C2F7548Eu, /* 1e252 */
    0x8D07E33455637EB2u, 0xDB0B487B6423E1E8u, /* 1e280 */
    0x8E679C2F5E44FF8Fu, 0x570F09EAA7EA7648u, /* 1e308 */
};

static const uint64_t hfsbi_pow10_fine[] = {
    0x8000000000000000u, 0xA000000000000000u, 0xC800000000000000u,
    0xFA00000000000000u, 0x9C40000000000000u, 0xC350000000000000u,
    0xF424000000000000u, 0x9896800000000000u, 0xBEBC200000000000u,
    0xEE6B280000000000u, 0x9502F90000000000u, 0xBA43B74000000000u,
    0xE8D4A51000000000u, 0x9184E72A00000000u, 0xB5E620F480000000u,
    0xE35FA931A0000000u, 0x8E1BC9BF04000000u, 0xB1A2BC2EC5000000u,
    0xDE0B6B3A76400000u, 0x8AC7230489E80000u, 0xAD78EBC5AC620000u,
    0xD8D726B7177A8000u, 0x878678326EAC9000u, 0xA968163F0A57B400u,
    0xD3C21BCECCEDA100u, 0x84595161401484A0u, 0xA56FA5B99019A5C8u,
    0xCECB8F27F4200F3Au,
};

/* The corrections: two bits for each q from HFSBI_POW10_MIN on. */
static const uint32_t hfsbi_pow10_missing[] = {
    0x00045410u, 0x10440514u, 0x10000000u, 0x50500010u, 0x14000454u,
    0x45405000u, 0x45555445u, 0x00000400u, 0x00000000u, 0x10050000u,
    0x41500410u, 0x54145105u, 0x45145410u, 0x55155451u, 0x54440500u,
    0x00410054u, 0x00514040u, 0x01005400u, 0x00000504u, 0x51554001u,
    0x55441140u, 0x00155010u, 0x00000110u, 0x00000000u, 0x00000000u,
    0x00000000u, 0x04040000u, 0x41000040u, 0x00050000u, 0x40000000u,
    0x01555054u, 0x41401504u, 0x15141105u, 0x69595411u, 0xA6966596u,
    0x00000440u, 0x54000000u, 0x65915555u, 0x00105555u, 0x00141001u,
    0x44155004u, 0x11055501u, 0x55500510u, 0x00510411u,
};

#define HFSBI_POW10_STORED (-19)

static const hfsbi_pow10 hfsbi_pow10_stored[] = {
    {0xEC1E4A7DB69561A5u, 0x2B31E9E3D06C32E5u}, /* 1e-19 */
    {0x9392EE8E921D5D07u, 0x3AFF322E62439FCFu}, /* 1e-18 */
    {0xB877AA3236A4B449u, 0x09BEFEB9FAD487C2u}, /* 1e-17 */
    {0xE69594BEC44DE15Bu, 0x4C2EBE687989A9B3u}, /* 1e-16 */
    {0x901D7CF73AB0ACD9u, 0x0F9D37014BF60A10u}, /* 1e-15 */
    {0xB424DC35095CD80Fu, 0x538484C19EF38C94u}, /* 1e-14 */
    {0xE12E13424BB40E13u, 0x2865A5F206B06FB9u}, /* 1e-13 */
    {0x8CBCCC096F5088CBu, 0xF93F87B7442E45D3u}, /* 1e-12 */
    {0xAFEBFF0BCB24AAFEu, 0xF78F69A51539D748u}, /* 1e-11 */
    {0xDBE6FECEBDEDD5BEu, 0xB573440E5A884D1Bu}, /* 1e-10 */
    {0x89705F4136B4A597u, 0x31680A88F8953030u}, /* 1e-9 */
    {0xABCC77118461CEFCu, 0xFDC20D2B36BA7C3Du}, /* 1e-8 */
    {0xD6BF94D5E57A42BCu, 0x3D32907604691B4Cu}, /* 1e-7 */
    {0x8637BD05AF6C69B5u, 0xA63F9A49C2C1B10Fu}, /* 1e-6 */
    {0xA7C5AC471B478423u, 0x0FCF80DC33721D53u}, /* 1e-5 */
    {0xD1B71758E219652Bu, 0xD3C36113404EA4A8u}, /* 1e-4 */
    {0x83126E978D4FDF3Bu, 0x645A1CAC083126E9u}, /* 1e-3 */
    {0xA3D70A3D70A3D70Au, 0x3D70A3D70A3D70A3u}, /* 1e-2 */
    {0xCCCCCCCCCCCCCCCCu, 0xCCCCCCCCCCCCCCCCu}, /* 1e-1 */
};

/* floor(log2(10^q)), |q| < 400. */
static int hfsbi_log2_pow10(int q) { /* the bias avoids a shift of < 0 */
    return ((q * 217706 + (4096 << 16)) >> 16) - 4096;
}

/* 10^q: the product of two table entries, normalised and corrected. */
static inline hfsbi_pow10 hfsbi_pow10_compute(int q) {
    unsigned    i = (unsigned)(q - HFSBI_POW10_MIN), b = i % 28;
    uint64_t    c1 = hfsbi_pow10_coarse[i / 28 * 2];
    uint64_t    c0 = hfsbi_pow10_coarse[i / 28 * 2 + 1];
    uint64_t    f = hfsbi_pow10_fine[b], low, mid;
    hfsbi_pow10 p;
    uint64_t    carry = hfsbi_mul64(c0, f, &low);
    p.hi = hfsbi_mul64(c1, f, &mid);
    mid += carry;
    p.hi += mid < carry;
    if (!(p.hi >> 63)) {
        p.hi = p.hi << 1 | mid >> 63;
        mid = mid << 1 | low >> 63;
    }
    p.lo = mid + (hfsbi_pow10_missing[i / 16] >> (i % 16 * 2) & 3);
    p.hi += p.lo < mid;
    return p;
}

static inline hfsbi_pow10 hfsbi_pow10_of(int q) {
    return q >= HFSBI_POW10_STORED && q < 0
               ? hfsbi_pow10_stored[q - HFSBI_POW10_STORED]
               : hfsbi_pow10_compute(q);
}

/* ---- big integers ---- */

/* 780 digits or 5^1123 with a factor of 54 bits need 2,720 bits. */
#define HFSBI_BIG_LIMBS 96

typedef struct hfsbi_big {
    size_t   len; /* limbs in use, the top one is not 0 */
    uint32_t limb[HFSBI_BIG_LIMBS];
} hfsbi_big;

static void hfsbi_big_push(hfsbi_big *x, uint64_t carry) {
    for (; carry; carry >>= 32) {
        HFSB_ASSERT(x->len < HFSBI_BIG_LIMBS);
        x->limb[x->len++] = (uint32_t)carry;
    }
}

static void hfsbi_big_mul_add(hfsbi_big *x, uint32_t factor, uint32_t plus) {
    uint64_t carry = plus;
    size_t   i;
    for (i = 0; i < x->len; i++) {
        carry += (uint64_t)x->limb[i] * factor;
        x->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    hfsbi_big_push(x, carry);
}

static void hfsbi_big_mul_pow5(hfsbi_big *x, int n) {
    for (; n >= 13; n -= 13) hfsbi_big_mul_add(x, 1220703125u, 0);
    for (; n > 0; n--) hfsbi_big_mul_add(x, 5, 0);
}

static void hfsbi_big_shift(hfsbi_big *x, int bits) {
    size_t limbs = (size_t)bits / 32;
    HFSB_ASSERT(x->len + limbs < HFSBI_BIG_LIMBS);
    hfsbi_big_mul_add(x, (uint32_t)1 << (bits % 32), 0);
    memmove(x->limb + limbs, x->limb, x->len * sizeof x->limb[0]);
    memset(x->limb, 0, limbs * sizeof x->limb[0]);
    x->len += limbs;
}

static int hfsbi_big_compare(const hfsbi_big *a, const hfsbi_big *b) {
    size_t i = a->len;
    if (a->len != b->len) return a->len < b->len ? -1 : 1;
    while (i-- > 0)
        if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

/* ---- text to double ---- */

#define HFSBI_DOUBLE_INF ((uint64_t)0x7FF << 52)

/* A number split by the grammar. */
typedef struct hfsbi_number_parts {
    const char *first; /* the first digit */
    const char *last;  /* after the last digit before the exponent */
    uint64_t    value; /* of the digits; wraps when there are more than 19 */
    int64_t     fraction; /* digits after the point */
    int64_t     exponent;
    bool        negative;
    bool        integer;
} hfsbi_number_parts;

/* Of the digits after these it only matters whether one is not 0: the midpoint
   between two doubles has at most 768 digits. */
#define HFSBI_DIGITS_MAX 779

/* Reads the digits as an integer; returns the power of ten to multiply it
   by. */
static int64_t hfsbi_big_read(hfsbi_big *x, const hfsbi_number_parts *n) {
    int64_t     exponent = n->exponent - n->fraction;
    const char *p;
    int         digits = 0;
    bool        more = false;
    x->len = 0;
    for (p = n->first; p < n->last; p++) {
        if (*p == '.' || (!digits && *p == '0')) continue;
        if (digits < HFSBI_DIGITS_MAX) {
            hfsbi_big_mul_add(x, 10, (uint32_t)(*p - '0'));
            digits++;
        } else {
            more = more || *p != '0';
            exponent++;
        }
    }
    if (!more) return exponent;
    hfsbi_big_mul_add(x, 10, 1); /* stands for all the dropped digits */
    return exponent - 1;
}

/* The bits of the double nearest to the number, which lies between the double
   of bits `low` and the next one. */
static uint64_t hfsbi_double_exact(const hfsbi_number_parts *n, uint64_t low) {
    hfsbi_big digits, border;
    int64_t   exponent;
    uint64_t  fraction = low & (((uint64_t)1 << 52) - 1);
    int       e2 = (int)(low >> 52), shift, order;
    if (low >= HFSBI_DOUBLE_INF) return low;
    fraction |= (uint64_t)(e2 != 0) << 52;
    e2 = (e2 ? e2 : 1) - 1076;
    exponent = hfsbi_big_read(&digits, n);
    border.len = 0;
    hfsbi_big_push(&border, 2 * fraction + 1);
    if (exponent >= 0) hfsbi_big_mul_pow5(&digits, (int)exponent);
    else hfsbi_big_mul_pow5(&border, (int)-exponent);
    shift = (int)exponent - e2;
    if (shift > 0) hfsbi_big_shift(&digits, shift);
    else hfsbi_big_shift(&border, -shift);
    order = hfsbi_big_compare(&digits, &border);
    return low + (order > 0 || (order == 0 && (low & 1)));
}

/* Rounds x * 2^(e2 - 63), x with its top bit set, to the bits of a double;
   `sticky`: the true value is slightly larger. */
static inline uint64_t hfsbi_double_round(uint64_t x, bool sticky, int e2) {
    int      biased = e2 + 1023, shift = 11;
    uint64_t m, rest, half;
    if (biased >= 2047) return HFSBI_DOUBLE_INF;
    if (biased < 1) {
        shift += 1 - biased;
        biased = 1;
    }
    if (shift > 64) return 0;
    m = shift == 64 ? 0 : x >> shift;
    half = (uint64_t)1 << (shift - 1);
    rest = x & (half | (half - 1));
    m += (uint64_t)(rest > half) | /* no branch here either */
         ((uint64_t)(rest == half) & ((uint64_t)sticky | (m & 1)));
    /* m includes the hidden bit, which adds one to the exponent */
    return ((uint64_t)(biased - 1) << 52) + m;
}

/* The bits of the double nearest to the number, whose first digits are
   mantissa * 10^q. When digits were dropped (`cut`) the mantissa has 19 digits
   and the number is anything up to mantissa + 1. */
static uint64_t hfsbi_double_compose(const hfsbi_number_parts *n,
                                     uint64_t mantissa, int64_t q, bool cut) {
    uint64_t    x2, x1, x0, carry, low, reach;
    hfsbi_pow10 p;
    unsigned    up;
    int         zeros, e2;
    if (!mantissa || q < -343) return 0;
    if (q > 308) return HFSBI_DOUBLE_INF;
    zeros = hfsbi_leading_zeros(mantissa);
    p = hfsbi_pow10_of((int)q);
    carry = hfsbi_mul64(mantissa << zeros, p.lo, &x0);
    x2 = hfsbi_mul64(mantissa << zeros, p.hi, &x1);
    x1 += carry;
    x2 += x1 < carry;
    e2 = 64 + hfsbi_log2_pow10((int)q) - zeros;
    /* normalised without a branch: half of all numbers take each way */
    up = (unsigned)(x2 >> 63) ^ 1u;
    x2 = x2 << up | (x1 >> 63 & up);
    x1 = x1 << up | (x0 >> 63 & up);
    x0 <<= up;
    e2 -= (int)up;
    if (q >= 0 && q <= 55 && !cut) /* 5^55 fits: this is exact */
        return hfsbi_double_round(x2, (x1 | x0) != 0, e2);
    /* The true value is above x by less than 2 * 2^64, or, when digits were
       dropped, by less than one step of the mantissa. */
    low = hfsbi_double_round(x2, true, e2);
    if (!cut && x1 < (uint64_t)-4) return low;
    reach = cut ? ((uint64_t)2 << zeros) + 1 : 1;
    if (x2 <= (uint64_t)-1 - reach &&
        hfsbi_double_round(x2 + reach, true, e2) == low)
        return low;
    return hfsbi_double_exact(n, low);
}

/* x87 rounds twice, so the fast path would not be exact there. */
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ == 0
static bool hfsbi_double_fast(uint64_t mantissa, int64_t q, double *out) {
    static const double powers[] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (mantissa >> 53 || q < -22 || q > 22) return false;
    *out =
        q < 0 ? (double)mantissa / powers[-q] : (double)mantissa * powers[q];
    return true;
}
#else
static bool hfsbi_double_fast(uint64_t mantissa, int64_t q, double *out) {
    (void)mantissa, (void)q, (void)out;
    return false;
}
#endif

/* ---- reading ---- */

static const char *hfsbi_read_digits(const char *p, uint64_t *value) {
    uint64_t v = *value;
    for (; hfsbi_is_digit(*p); p++) v = v * 10 + (uint64_t)(*p - '0');
    *value = v;
    return p;
}

/* The value of eight digits, the first one in the lowest byte. */
static uint64_t hfsbi_eight_digits(uint64_t x) {
    x = (x & 0x0F0F0F0F0F0F0F0Fu) * (10 << 8 | 1) >> 8;
    x = (x & 0x00FF00FF00FF00FFu) * (100 << 16 | 1) >> 16;
    return (x & 0x0000FFFF0000FFFFu) * ((uint64_t)10000 << 32 | 1) >> 32;
}

/* Reads the digits of a fraction, often many, eight at a time. */
static const char *hfsbi_read_fraction(const char *p, const char *end,
                                       uint64_t *value) {
    static const uint32_t powers[] = {1,     10,     100,     1000,
                                      10000, 100000, 1000000, 10000000};
    const uint64_t        high = 0xF0F0F0F0F0F0F0F0u;
    while (end - p >= 8) {
        uint64_t x = hfsbi_load64(p);
        /* '0' to '9' have an upper half of 3, also after adding 6. A carry
           only affects bytes after the first that is not a digit. */
        uint64_t other =
            ((x & high) | ((x + 0x0606060606060606u) & high) >> 4) ^
            0x3333333333333333u;
        unsigned n;
        if (other) {
            n = hfsbi_ctz64(other) / 8;
            if (!n) return p;
            x = hfsbi_eight_digits(x << (64 - 8 * n)); /* leading zeros */
            *value = *value * powers[n] + x;
            return p + n;
        }
        *value = *value * 100000000 + hfsbi_eight_digits(x);
        p += 8;
    }
    return hfsbi_read_digits(p, value);
}

/* Reads an exponent, after its 'e'; NULL without a digit. Saturates at a value
   that no text has enough digits to compensate. */
static const char *hfsbi_read_exponent(const char *p, int64_t *out) {
    bool    negative = *p == '-';
    int64_t e = 0;
    if (*p == '-' || *p == '+') p++;
    if (!hfsbi_is_digit(*p)) return NULL;
    for (; hfsbi_is_digit(*p); p++)
        if (e < (int64_t)1000000000000000) e = e * 10 + (*p - '0');
    *out = negative ? -e : e;
    return p;
}

static void hfsbi_number_set_double(hfsbi_number *out, uint64_t bits,
                                    bool negative) {
    out->type =
        bits >= HFSBI_DOUBLE_INF ? HFSBI_NUMBER_RANGE : HFSBI_NUMBER_DOUBLE;
    out->as.d = hfsbi_double_of_bits(bits | (uint64_t)negative << 63);
}

/* A number of more than 19 digits: keeps the first 19 that are significant. */
static void hfsbi_number_long(const hfsbi_number_parts *n, hfsbi_number *out) {
    const char *p = n->first;
    int64_t     exponent = n->exponent - n->fraction, left = 0;
    uint64_t    value = 0;
    int         digits = 0;
    bool        cut = false;
    for (; p < n->last; p++) {
        unsigned d = (unsigned)(*p - '0');
        if (*p == '.') continue;
        if (digits < 19) {
            value = value * 10 + d;
            digits += value != 0;
        } else if (n->integer && !n->negative && p == n->last - 1 && !left &&
                   (value < 1844674407370955161u ||
                    (value == 1844674407370955161u && d <= 5))) {
            out->type = HFSBI_NUMBER_UINT;
            out->as.u = value * 10 + d;
            return;
        } else {
            left++;
            cut = cut || d;
        }
    }
    hfsbi_number_set_double(
        out, hfsbi_double_compose(n, value, exponent + left, cut),
        n->negative);
}

/* The value of a number that matched the grammar. */
static void hfsbi_number_value(const hfsbi_number_parts *n,
                               hfsbi_number             *out) {
    int64_t q = n->exponent - n->fraction;
    if (n->last - n->first - (n->fraction > 0) > 19) {
        hfsbi_number_long(n, out);
    } else if (n->integer && n->value <= (uint64_t)1 << 63 &&
               (n->value >> 63 ? n->negative : n->value || !n->negative)) {
        out->type = HFSBI_NUMBER_INT;
        out->as.i = (int64_t)(n->negative ? 0 - n->value : n->value);
    } else if (n->integer && !n->negative) {
        out->type = HFSBI_NUMBER_UINT;
        out->as.u = n->value;
    } else if (hfsbi_double_fast(n->value, q, &out->as.d)) {
        out->type = HFSBI_NUMBER_DOUBLE;
        if (n->negative) out->as.d = -out->as.d;
    } else {
        hfsbi_number_set_double(
            out, hfsbi_double_compose(n, n->value, q, false), n->negative);
    }
}

static const char *hfsbi_number_bad(const char *at, const char *expected,
                                    hfsbi_number *out) {
    out->type = HFSBI_NUMBER_BAD;
    out->expected = expected;
    return at;
}

HFSBI_FN const char *hfsbi_number_parse(const char *p, const char *end,
                                        hfsbi_number *out) {
    hfsbi_number_parts n;
    n.negative = *p == '-';
    p += n.negative;
    n.first = p;
    n.value = 0;
    n.fraction = n.exponent = 0;
    n.integer = true;
    if (!hfsbi_is_digit(*p))
        return hfsbi_number_bad(p, "expected a digit after '-'", out);
    p = hfsbi_read_digits(p, &n.value);
    if (*n.first == '0' && p - n.first > 1)
        return hfsbi_number_bad(n.first + 1,
                                "expected no digit after a leading 0", out);
    n.last = p;
    if (*p == '.') {
        n.integer = false;
        if (!hfsbi_is_digit(p[1]))
            return hfsbi_number_bad(
                p + 1, "expected a digit after the decimal point", out);
        n.last = hfsbi_read_fraction(p + 1, end, &n.value);
        n.fraction = n.last - p - 1;
        p = n.last;
    }
    if (*p == 'e' || *p == 'E') {
        const char *digits = p + 1;
        n.integer = false;
        p = hfsbi_read_exponent(digits, &n.exponent);
        if (!p) {
            digits += *digits == '-' || *digits == '+';
            return hfsbi_number_bad(digits, "expected a digit in the exponent",
                                    out);
        }
    }
    hfsbi_number_value(&n, out);
    return p;
}

/* ---- writing ---- */

/* Two digits at a time: half the divisions. */
HFSBI_FN size_t hfsbi_number_write_uint(uint64_t value, char *out) {
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324"
        "25262728293031323334353637383940414243444546474849"
        "50515253545556575859606162636465666768697071727374"
        "75767778798081828384858687888990919293949596979899";
    char  text[20];
    char *p = text + sizeof text;
    while (value >= 100) {
        p -= 2;
        memcpy(p, pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) {
        p -= 2;
        memcpy(p, pairs + value * 2, 2);
    } else {
        *--p = (char)('0' + (char)value);
    }
    memcpy(out, p, (size_t)(text + sizeof text - p));
    return (size_t)(text + sizeof text - p);
}

HFSBI_FN size_t hfsbi_number_write_int(int64_t value, char *out) {
    uint64_t u = (uint64_t)value;
    if (value >= 0) return hfsbi_number_write_uint(u, out);
    *out = '-';
    return hfsbi_number_write_uint(0 - u, out + 1) + 1;
}

static uint64_t hfsbi_bits_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The upper 64 bits of g * c, with the lowest bit set when any lower bit
   was. */
static uint64_t hfsbi_round_to_odd(hfsbi_pow10 g, uint64_t c) {
    uint64_t low, mid, carry = hfsbi_mul64(g.lo, c, &low);
    uint64_t high = hfsbi_mul64(g.hi, c, &mid);
    mid += carry;
    high += mid < carry;
    return high | (mid > 1);
}

/* Schubfach: the shortest decimal in the rounding interval of c * 2^q, the
   nearest of several. Returns its digits, and in *k their power of ten.
   `irregular`: c is a power of two, so the interval is shorter below it. */
static uint64_t hfsbi_shortest(uint64_t c, int q, bool irregular, int *k) {
    int         e, h, open = (int)(c & 1);
    hfsbi_pow10 g;
    uint64_t    lower, value, upper, s, tens;
    bool        below, above;
    /* floor(log10(2^q)), or of 3/4 of it; biased to keep the shift positive */
    e = (int)((((int64_t)q * 1262611 - (irregular ? 524031 : 0) +
                ((int64_t)4096 << 22)) >>
               22) -
              4096);
    h = q + hfsbi_log2_pow10(-e) + 1;
    g = hfsbi_pow10_of(-e);
    if (-e < 0 || -e > 55) g.hi += ++g.lo == 0; /* round up */
    lower = hfsbi_round_to_odd(g, (4 * c - 2 + irregular) << h);
    value = hfsbi_round_to_odd(g, (4 * c) << h);
    upper = hfsbi_round_to_odd(g, (4 * c + 2) << h);
    lower += (uint64_t)open;
    upper -= (uint64_t)open;
    s = value / 4;
    tens = s / 10;
    *k = e + 1;
    below = lower <= 40 * tens;
    above = 40 * tens + 40 <= upper;
    if (s >= 10 && below != above) return tens + above;
    *k = e;
    below = lower <= 4 * s;
    above = 4 * s + 4 <= upper;
    if (below != above) return s + above;
    return s + (value > 4 * s + 2 || (value == 4 * s + 2 && (s & 1)));
}

/* The digits of a finite positive double without trailing zeros, and in *k the
   power of ten of the last. */
static uint64_t hfsbi_double_digits(uint64_t bits, int *k) {
    uint64_t c = bits & (((uint64_t)1 << 52) - 1);
    int      biased = (int)(bits >> 52);
    bool     irregular = c == 0 && biased > 1;
    if (biased) c |= (uint64_t)1 << 52;
    c = hfsbi_shortest(c, (biased ? biased : 1) - 1075, irregular, k);
    while (c % 10 == 0) {
        c /= 10;
        ++*k;
    }
    return c;
}

static char *hfsbi_put_zeros(char *out, int n) {
    if (n <= 0) return out;
    memset(out, '0', (size_t)n);
    return out + n;
}

/* Turns len digits into d.ddde-7 or d.ddde21: like JavaScript, but without
   the plus. */
static char *hfsbi_put_scientific(char *out, int len, int exponent) {
    if (len > 1) {
        memmove(out + 2, out + 1, (size_t)len - 1);
        out[1] = '.';
        len++;
    }
    out += len;
    *out++ = 'e';
    return out + hfsbi_number_write_int(exponent, out);
}

/* Inserts the decimal point after `point` of the len digits. */
static char *hfsbi_put_plain(char *out, int len, int point) {
    if (point <= 0) {
        memmove(out + 2 - point, out, (size_t)len);
        memcpy(out, "0.", 2);
        hfsbi_put_zeros(out + 2, -point);
        return out + 2 - point + len;
    }
    if (point < len) {
        memmove(out + point + 1, out + point, (size_t)(len - point));
        out[point] = '.';
        return out + len + 1;
    }
    out = hfsbi_put_zeros(out + len, point - len);
    memcpy(out, ".0", 2);
    return out + 2;
}

HFSBI_FN size_t hfsbi_number_write_double(double value, char *out) {
    uint64_t bits = hfsbi_bits_of_double(value), digits;
    char    *p = out;
    int      k, len;
    if (bits >> 63) *p++ = '-';
    bits &= ~((uint64_t)1 << 63);
    if (bits >= ((uint64_t)0x7FF << 52)) return 0;
    if (!bits) {
        memcpy(p, "0.0", 3);
        return (size_t)(p + 3 - out);
    }
    digits = hfsbi_double_digits(bits, &k);
    len = (int)hfsbi_number_write_uint(digits, p);
    k += len; /* digits before the point */
    p = k > -6 && k <= 21 ? hfsbi_put_plain(p, len, k)
                          : hfsbi_put_scientific(p, len, k - 1);
    return (size_t)(p - out);
}
