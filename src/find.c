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

/* How common a byte is in source text, roughly: 0 rare, 4 everywhere. */
static int hfsbi_commonness(unsigned char c) {
    if (c == ' ' || c == '\n' || c == '\t') return 4;
    if (c == 'e' || c == 't' || c == 'a' || c == 'i' || c == 'n' ||
        c == 'o' || c == 'r' || c == 's')
        return 3;
    if (c >= 'a' && c <= 'z') return 2;
    return c < 0x80 ? 1 : 0;
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
        if (rank < best && needle.ptr[i] != needle.ptr[*first]) {
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

#ifdef HFSBI_SSE2
/* Bit i of the result: a[i] == x and b[i] == y. */
static unsigned hfsbi_pair_mask(const void *a, const void *b, char x,
                                char y) {
    __m128i va = _mm_loadu_si128((const __m128i *)a);
    __m128i vb = _mm_loadu_si128((const __m128i *)b);
    return (unsigned)_mm_movemask_epi8(
        _mm_and_si128(_mm_cmpeq_epi8(va, _mm_set1_epi8(x)),
                      _mm_cmpeq_epi8(vb, _mm_set1_epi8(y))));
}
#endif

/* Paid for comparisons, at most what a few passes over the text so far would
   cost: then the careful algorithm is the cheaper one. */
static bool hfsbi_overspent(size_t spent, size_t seen) {
    return spent / 4 > seen + 4096;
}

size_t hfsb_str_find(hfsb_str s, hfsb_str needle) {
    size_t a, b, last, i = 0, spent = 0;
    if (needle.len > s.len) return HFSB_NPOS;
    if (needle.len == 0) return 0;
    if (needle.len == 1) return hfsb_str_find_byte(s, needle.ptr[0]);
    hfsbi_rare_pair(needle, &a, &b);
    last = s.len - needle.len;
#ifdef HFSBI_SSE2
    for (; i + 15 <= last && !hfsbi_overspent(spent, i); i += 16) {
        unsigned mask = hfsbi_pair_mask(s.ptr + i + a, s.ptr + i + b,
                                        needle.ptr[a], needle.ptr[b]);
        for (; mask; mask &= mask - 1) {
            size_t at = i + (size_t)__builtin_ctz(mask);
            if (hfsbi_stands_at(s, at, needle, &spent)) return at;
        }
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
