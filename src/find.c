/* find.c - substring search in linear time. Depends on: base.

   Two bytes of the needle that are rare in text are looked for, sixteen places
   at a time, and what passes is compared. A budget watches those comparisons:
   when an input makes them expensive, the two-way algorithm of Crochemore and
   Perrin takes over, which is linear on everything and needs no memory. */
#include "internal.h"

/* ---- two-way ---- */

/* Start of the maximal suffix of n by the byte order (or its reverse), and the
   period of that suffix. */
static size_t hfsbi_max_suffix(const unsigned char *n, size_t len,
                               bool reverse, size_t *period) {
    size_t start = (size_t)-1, j = 0, k = 1, p = 1;
    while (j + k < len) {
        unsigned char a = n[j + k], b = n[start + k];
        if (a == b) {
            if (k == p) {
                j += p;
                k = 1;
            } else {
                k++;
            }
        } else if (reverse ? a > b : a < b) {
            j += k;
            k = 1;
            p = j - start;
        } else {
            start = j++;
            k = p = 1;
        }
    }
    *period = p;
    return start + 1;
}

static size_t hfsbi_find_two_way(hfsb_str hay, hfsb_str needle) {
    const unsigned char *h = (const unsigned char *)hay.ptr;
    const unsigned char *n = (const unsigned char *)needle.ptr;
    size_t len = needle.len, period, other, pos = 0, memory = 0;
    size_t cut = hfsbi_max_suffix(n, len, false, &period);
    size_t cut2 = hfsbi_max_suffix(n, len, true, &other);
    bool   periodic;

    if (cut2 > cut) {
        cut = cut2;
        period = other;
    }
    periodic = cut + period <= len && !memcmp(n, n + period, cut);
    if (!periodic) period = (cut > len - cut ? cut : len - cut) + 1;

    while (pos <= hay.len - len) {
        size_t i = cut > memory ? cut : memory;
        while (i < len && n[i] == h[pos + i]) i++;
        if (i < len) {
            pos += i - cut + 1;
            memory = 0;
            continue;
        }
        for (i = cut; i > memory && n[i - 1] == h[pos + i - 1];) i--;
        if (i <= memory) return pos;
        pos += period;
        memory = periodic ? len - period : 0;
    }
    return HFSB_NPOS;
}

/* ---- the fast path ---- */

/* How common a byte is in source text, roughly: 0 rare, 4 everywhere. Digits
   and capitals tell similar lines apart better than punctuation does. */
static int hfsbi_commonness(unsigned char c) {
    if (c == ' ' || c == '\n' || c == '\t') return 4;
    if (c == 'e' || c == 't' || c == 'a' || c == 'i' || c == 'n' ||
        c == 'o' || c == 'r' || c == 's')
        return 3;
    if (c >= 'a' && c <= 'z') return 2;
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c >= 0x80 ? 0
                                                                         : 1;
}

/* Offsets of two rare, if possible different, bytes of the needle. Only its
   first 256 bytes are looked at. */
static void hfsbi_rare_pair(hfsb_str needle, size_t *first, size_t *second) {
    size_t end = needle.len < 256 ? needle.len : 256, i;
    int    best = 9;
    *first = 0;
    for (i = 0; i < end; i++) {
        int rank = hfsbi_commonness((unsigned char)needle.ptr[i]);
        if (rank < best) {
            best = rank;
            *first = i;
        }
    }
    *second = *first;
    best = 9;
    for (i = 0; i < end; i++) {
        int rank = hfsbi_commonness((unsigned char)needle.ptr[i]);
        /* the last of several: far from the first */
        if (rank <= best && needle.ptr[i] != needle.ptr[*first]) {
            best = rank;
            *second = i;
        }
    }
}

/* Next place, from i on, where byte a of the needle stands; s.len when there
   is none up to `last`. */
static size_t hfsbi_next_place(hfsb_str s, size_t i, size_t last, size_t a,
                               char c) {
    const void *p = memchr(s.ptr + i + a, (unsigned char)c, last - i + 1);
    return p ? (size_t)((const char *)p - s.ptr) - a : s.len;
}

/* True when the needle stands at place `at`. Adds to *spent what it cost. */
static bool hfsbi_stands_at(hfsb_str s, size_t at, hfsb_str needle,
                            size_t *spent) {
    size_t head = needle.len < 16 ? needle.len : 16;
    *spent += head;
    if (memcmp(s.ptr + at, needle.ptr, head) != 0) return false;
    *spent += needle.len - head;
    return !memcmp(s.ptr + at + head, needle.ptr + head, needle.len - head);
}

/* Paid for comparisons, at most what a few passes over the text so far would
   cost: then the careful algorithm is the cheaper one. */
static bool hfsbi_overspent(size_t spent, size_t seen) {
    return spent / 4 > seen + 4096;
}

#ifdef HFSBI_SSE2
static __m128i hfsbi_equal_bytes(const char *p, __m128i c) {
    const void *at = p;
    return _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)at), c);
}

/* Looks at 64 places at a time, where both bytes of the pair stand. Gives the
   needle's place, or the first place that was not looked at (*found false). */
static size_t hfsbi_find_pairs(hfsb_str s, hfsb_str needle, size_t a,
                               size_t b, bool *found) {
    const __m128i x = _mm_set1_epi8(needle.ptr[a]);
    const __m128i y = _mm_set1_epi8(needle.ptr[b]);
    size_t        last = s.len - needle.len, i = 0, spent = 0, k;
    for (*found = false; i + 63 <= last; i += 64) {
        const char *pa = s.ptr + i + a, *pb = s.ptr + i + b;
        __m128i     hit[4], any;
        for (k = 0; k < 4; k++)
            hit[k] = _mm_and_si128(hfsbi_equal_bytes(pa + 16 * k, x),
                                   hfsbi_equal_bytes(pb + 16 * k, y));
        any = _mm_or_si128(_mm_or_si128(hit[0], hit[1]),
                           _mm_or_si128(hit[2], hit[3]));
        if (!_mm_movemask_epi8(any)) continue;
        for (k = 0; k < 4; k++) {
            unsigned mask = (unsigned)_mm_movemask_epi8(hit[k]);
            for (; mask; mask &= mask - 1) {
                size_t at = i + 16 * k + (size_t)__builtin_ctz(mask);
                *found = hfsbi_stands_at(s, at, needle, &spent);
                if (*found) return at;
            }
        }
        if (hfsbi_overspent(spent, i)) return i + 64;
    }
    return i;
}
#endif

size_t hfsb_str_find(hfsb_str s, hfsb_str needle) {
    size_t a, b, last, i = 0, spent = 0;
    if (needle.len > s.len) return HFSB_NPOS;
    if (needle.len == 0) return 0;
    if (needle.len == 1) return hfsb_str_find_byte(s, needle.ptr[0]);
    hfsbi_rare_pair(needle, &a, &b);
    last = s.len - needle.len;
#ifdef HFSBI_SSE2
    {
        bool found;
        i = hfsbi_find_pairs(s, needle, a, b, &found);
        if (found) return i;
        if (i + 63 <= last) spent = (size_t)-1; /* it gave up */
    }
#endif
    for (; i <= last && !hfsbi_overspent(spent, i); i++) {
        i = hfsbi_next_place(s, i, last, a, needle.ptr[a]);
        if (i > last) return HFSB_NPOS;
        if (hfsbi_stands_at(s, i, needle, &spent)) return i;
    }
    if (i > last) return HFSB_NPOS;
    a = hfsbi_find_two_way(hfsb_str_slice(s, i, s.len), needle);
    return a == HFSB_NPOS ? HFSB_NPOS : a + i;
}
