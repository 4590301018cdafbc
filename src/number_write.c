/* number_write.c - numbers to text. Depends on: base, number.

   Giulietti's Schubfach: the shortest digits that read back as the same double
   and, of those, the nearest. Integers only, no locale, no libc. */
#include "number.h"

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

/* The upper 64 bits of g * c, the last one set when anything was cut off. */
static uint64_t hfsbi_round_to_odd(hfsbi_pow10 g, uint64_t c) {
    uint64_t low, mid, carry = hfsbi_mul64(g.lo, c, &low);
    uint64_t high = hfsbi_mul64(g.hi, c, &mid);
    mid += carry;
    high += mid < carry;
    return high | (mid > 1);
}

/* Schubfach: the shortest decimal in the rounding interval of c * 2^q, the
   nearest when there are several; the digits, and *k their power of ten.
   `irregular`: c is a power of two, so the interval is shorter below. */
static uint64_t hfsbi_shortest(uint64_t c, int q, bool irregular, int *k) {
    int         e, h, open = (int)(c & 1);
    hfsbi_pow10 g;
    uint64_t    lower, value, upper, s, tens;
    bool        below, above;
    /* floor(log10(2^q)), or of 3/4 of it; biased to keep the shift positive */
    e = (int)((((int64_t)q * 1262611 - (irregular ? 524031 : 0) +
                ((int64_t)4096 << 22)) >> 22) - 4096);
    h = q + hfsbi_log2_pow10(-e) + 1;
    g = hfsbi_pow10_of(-e);
    if (-e < 0 || -e > 55) g.hi += ++g.lo == 0; /* here rounded up */
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

/* The digits of a finite positive double without zeros at the end, and the
   power of ten *k of the last. */
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

/* d.ddde-7 and d.ddde21, as JavaScript has it but without the plus. */
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

/* `point` digits stand before the decimal point. */
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
