/* base.c - memory, views, search, errors and buffers.

   Everything else in the library is built on these few things. A view never
   owns its bytes. Memory comes from the caller's hook, and every size is
   checked before it is added or multiplied. An error is the caller's struct:
   a failing function fills it and returns the same code.

   A buffer has one sticky failure:

       OK --append fails--> failed --truncate, free--> OK

   A failed buffer ignores appends, so a series of them needs one check. */
#include "core_private.h"

const char *hfsb_version(void) {
    return HFSB_VERSION;
}

/* ---- memory ---- */

HFSBI_FN bool hfsbi_add(size_t a, size_t b, size_t *out) {
    if (b > (size_t)-1 - a) return false;
    *out = a + b;
    return true;
}

HFSBI_FN bool hfsbi_mul(size_t a, size_t b, size_t *out) {
    if (a && b > (size_t)-1 / a) return false;
    *out = a * b;
    return true;
}

HFSBI_FN void *hfsbi_realloc(const hfsb_alloc *alloc, void *ptr,
                             size_t old_size, size_t new_size) {
    if (alloc->fn) return alloc->fn(alloc->user, ptr, old_size, new_size);
    if (new_size) return HFSB_REALLOC(ptr, new_size);
    HFSB_FREE(ptr);
    return NULL;
}

HFSBI_FN void *hfsbi_array(const hfsb_alloc *alloc, size_t count,
                           size_t size) {
    size_t bytes;
    if (!hfsbi_mul(count ? count : 1, size, &bytes)) return NULL;
    return hfsbi_realloc(alloc, NULL, 0, bytes);
}

HFSBI_FN void hfsbi_array_free(const hfsb_alloc *alloc, void *ptr,
                               size_t count, size_t size) {
    if (ptr) hfsbi_realloc(alloc, ptr, (count ? count : 1) * size, 0);
}

HFSBI_FN void *hfsbi_array_grow(const hfsb_alloc *alloc, void *ptr,
                                size_t *cap, size_t need, size_t size) {
    size_t count = *cap < 16 ? 16 : *cap, bytes;
    void  *grown;
    if (need <= *cap) return ptr;
    while (count < need) count = count > (size_t)-1 / 2 ? need : count * 2;
    if (!hfsbi_mul(count, size, &bytes)) return NULL;
    grown = hfsbi_realloc(alloc, ptr, *cap * size, bytes);
    if (grown) *cap = count;
    return grown;
}

static void hfsbi_sort_swap(char *a, char *b, size_t size) {
    char block[64];
    while (size) {
        size_t n = size < sizeof block ? size : sizeof block;
        memcpy(block, a, n);
        memcpy(a, b, n);
        memcpy(b, block, n);
        a += n;
        b += n;
        size -= n;
    }
}

/* Moves the item at `at` down until no child of it is larger. */
static void hfsbi_sort_sift(char *items, size_t at, size_t count, size_t size,
                            int (*compare)(const void *a, const void *b)) {
    size_t child;
    while ((child = 2 * at + 1) < count) {
        char *next = items + child * size;
        if (child + 1 < count && compare(next, next + size) < 0) {
            child++;
            next += size;
        }
        if (compare(items + at * size, next) >= 0) return;
        hfsbi_sort_swap(items + at * size, next, size);
        at = child;
    }
}

HFSBI_FN void hfsbi_sort(void *items, size_t count, size_t size,
                         int (*compare)(const void *a, const void *b)) {
    char  *first = (char *)items;
    size_t i;
    for (i = count / 2; i-- > 0;)
        hfsbi_sort_sift(first, i, count, size, compare);
    for (i = count; i-- > 1;) {
        hfsbi_sort_swap(first, first + i * size, size);
        hfsbi_sort_sift(first, 0, i, size, compare);
    }
}

/* ---- views ---- */

hfsb_str hfsb_cstr(const char *text) {
    return hfsb_str_make(text ? text : "", text ? strlen(text) : 0);
}

hfsb_str hfsb_str_make(const char *ptr, size_t len) {
    hfsb_str s;
    s.ptr = ptr;
    s.len = len;
    return s;
}

hfsb_str hfsb_str_slice(hfsb_str s, size_t from, size_t to) {
    if (to > s.len) to = s.len;
    if (from > to) from = to;
    return hfsb_str_make(s.len ? s.ptr + from : s.ptr, to - from);
}

bool hfsb_str_equal(hfsb_str a, hfsb_str b) {
    return a.len == b.len && (!a.len || !memcmp(a.ptr, b.ptr, a.len));
}

bool hfsb_str_starts(hfsb_str s, hfsb_str part) {
    return part.len <= s.len &&
           hfsb_str_equal(hfsb_str_slice(s, 0, part.len), part);
}

bool hfsb_str_ends(hfsb_str s, hfsb_str part) {
    return part.len <= s.len &&
           hfsb_str_equal(hfsb_str_slice(s, s.len - part.len, s.len), part);
}

size_t hfsb_str_find_byte(hfsb_str s, char c) {
    const char *p =
        s.len ? (const char *)memchr(s.ptr, (unsigned char)c, s.len) : NULL;
    return p ? (size_t)(p - s.ptr) : HFSB_NPOS;
}

size_t hfsb_str_count_byte(hfsb_str s, char c) {
    size_t n = 0, i = 0;
#ifdef HFSBI_SSE2
    /* Each lane counts its matches; after 255 rounds a byte is full. */
    const __m128i want = _mm_set1_epi8(c), zero = _mm_setzero_si128();
    while (s.len - i >= 16) {
        size_t  rounds = (s.len - i) / 16, k;
        __m128i sum = zero, wide;
        if (rounds > 255) rounds = 255;
        for (k = 0; k < rounds; k++, i += 16) {
            const void *at = s.ptr + i;
            sum = _mm_sub_epi8(
                sum,
                _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)at), want));
        }
        wide = _mm_sad_epu8(sum, zero);
        n += (size_t)_mm_cvtsi128_si32(wide) +
             (size_t)_mm_cvtsi128_si32(_mm_srli_si128(wide, 8));
    }
#endif
    for (; i < s.len; i++) n += s.ptr[i] == c;
    return n;
}

HFSBI_FN char hfsbi_lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool hfsbi_is_trim_char(char c) {
    return hfsbi_is_blank(c) || c == '\r';
}

HFSBI_FN hfsb_str hfsbi_trim_end(hfsb_str s) {
    while (s.len && hfsbi_is_trim_char(s.ptr[s.len - 1])) s.len--;
    return s;
}

HFSBI_FN hfsb_str hfsbi_trim(hfsb_str s) {
    size_t i = 0;
    s = hfsbi_trim_end(s);
    while (i < s.len && hfsbi_is_trim_char(s.ptr[i])) i++;
    return hfsb_str_slice(s, i, s.len);
}

HFSBI_FN bool hfsbi_str_equal_nocase(hfsb_str a, hfsb_str b) {
    size_t i;
    if (a.len != b.len) return false;
    for (i = 0; i < a.len; i++)
        if (hfsbi_lower(a.ptr[i]) != hfsbi_lower(b.ptr[i])) return false;
    return true;
}

HFSBI_FN bool hfsbi_list_next(hfsb_str *rest, char sep, hfsb_str *item) {
    size_t n;
    if (!rest->ptr || !rest->len) return false;
    n = hfsb_str_find_byte(*rest, sep);
    *item = hfsb_str_slice(*rest, 0, n);
    *rest = hfsb_str_slice(*rest, n < rest->len ? n + 1 : n, HFSB_NPOS);
    return true;
}

HFSBI_FN bool hfsbi_list_has(hfsb_str list, char sep, hfsb_str item) {
    hfsb_str one;
    while (hfsbi_list_next(&list, sep, &one))
        if (hfsb_str_equal(one, item)) return true;
    return false;
}

HFSBI_FN size_t hfsbi_read_decimal(hfsb_str s, unsigned long long max,
                                   unsigned long long *out) {
    unsigned long long value = 0;
    size_t             n = 0;
    for (; n < s.len && hfsbi_is_digit(s.ptr[n]); n++) {
        unsigned digit = (unsigned)(s.ptr[n] - '0');
        if (value > ~0ull / 10 || digit > ~0ull - value * 10) return 0;
        value = value * 10 + digit;
    }
    if (!n || value > max) return 0;
    *out = value;
    return n;
}

HFSBI_FN int hfsbi_hex_digit(char c) {
    if (hfsbi_is_digit(c)) return c - '0';
    c = hfsbi_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* ---- search, by two-way ---- */

/* The start of the largest suffix of n in byte order (or in reverse order),
   and the period of that suffix. */
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

/* Compares the right part of the needle (from `cut` on) forwards, then the
   left part backwards. A mismatch on the right skips past it, one on the left
   skips a period; `memory` bytes of a periodic needle are known to match. */
static size_t hfsbi_find_two_way(hfsb_str hay, hfsb_str needle) {
    const unsigned char *h = (const unsigned char *)hay.ptr;
    const unsigned char *n = (const unsigned char *)needle.ptr;
    size_t               len = needle.len, period, other, pos = 0, memory = 0;
    size_t               cut = hfsbi_max_suffix(n, len, false, &period);
    size_t               cut2 = hfsbi_max_suffix(n, len, true, &other);
    bool                 periodic;

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

/* ---- search, by two rare bytes ---- */

/* hfsbi_needle_find() first looks for two bytes of the needle that are rare in
   text, 64 starts at a time, and compares only where both match. A budget
   bounds the comparisons. When an input exhausts it, the two-way algorithm of
   Crochemore and Perrin takes over: linear on every input, without
   allocating. */

/* How common a byte is in source text, roughly: 0 rare, 4 everywhere. Digits
   and capitals distinguish similar lines better than punctuation. */
static int hfsbi_commonness(unsigned char c) {
    if (c == ' ' || c == '\n' || c == '\t') return 4;
    if (c == 'e' || c == 't' || c == 'a' || c == 'i' || c == 'n' || c == 'o' ||
        c == 'r' || c == 's')
        return 3;
    if (c >= 'a' && c <= 'z') return 2;
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c >= 0x80 ? 0
                                                                         : 1;
}

/* Offsets of two rare bytes, different if possible, among the first 256 of the
   needle. */
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
        /* among equally rare bytes the last: it is far from the first */
        if (rank <= best && needle.ptr[i] != needle.ptr[*first]) {
            best = rank;
            *second = i;
        }
    }
}

/* The next start from i on where byte a of the needle, c, matches; s.len when
   there is none up to `last`. */
static size_t hfsbi_find_start(hfsb_str s, size_t i, size_t last, size_t a,
                               char c) {
    const void *p = memchr(s.ptr + i + a, (unsigned char)c, last - i + 1);
    return p ? (size_t)((const char *)p - s.ptr) - a : s.len;
}

/* True when the needle is at `at`. Adds the bytes compared to *spent. */
static bool hfsbi_find_compare(hfsb_str s, size_t at, hfsb_str needle,
                               size_t *spent) {
    size_t head = needle.len < 16 ? needle.len : 16;
    *spent += head;
    if (memcmp(s.ptr + at, needle.ptr, head) != 0) return false;
    *spent += needle.len - head;
    return !memcmp(s.ptr + at + head, needle.ptr + head, needle.len - head);
}

/* True when comparisons have cost more than a few passes over the text seen so
   far: from there on two-way is cheaper. */
static bool hfsbi_find_overspent(size_t spent, size_t seen) {
    return spent / 4 > seen + 4096;
}

#ifdef HFSBI_SSE2
static __m128i hfsbi_equal_bytes(const char *p, __m128i c) {
    const void *at = p;
    return _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)at), c);
}

/* Tests 64 starts at a time for both bytes of the pair. Returns the offset of
   the needle (*found true), or the first start that was not tested. */
static size_t hfsbi_find_pairs(hfsb_str s, hfsb_str needle, size_t a, size_t b,
                               bool *found) {
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
                *found = hfsbi_find_compare(s, at, needle, &spent);
                if (*found) return at;
            }
        }
        if (hfsbi_find_overspent(spent, i)) return i + 64;
    }
    return i;
}
#endif

HFSBI_FN hfsbi_needle hfsbi_needle_make(hfsb_str text) {
    hfsbi_needle n = HFSB_INIT;
    n.text = text;
    if (text.len > 1) hfsbi_rare_pair(text, &n.first, &n.second);
    return n;
}

HFSBI_FN size_t hfsbi_needle_find(const hfsbi_needle *n, hfsb_str s) {
    hfsb_str needle = n->text;
    size_t   a = n->first, last, i = 0, spent = 0;
    if (needle.len > s.len) return HFSB_NPOS;
    if (needle.len == 0) return 0;
    if (needle.len == 1) return hfsb_str_find_byte(s, needle.ptr[0]);
    last = s.len - needle.len;
#ifdef HFSBI_SSE2
    {
        bool found;
        i = hfsbi_find_pairs(s, needle, a, n->second, &found);
        if (found) return i;
        if (i + 63 <= last) spent = (size_t)-1; /* it gave up */
    }
#endif
    for (; i <= last && !hfsbi_find_overspent(spent, i); i++) {
        i = hfsbi_find_start(s, i, last, a, needle.ptr[a]);
        if (i > last) return HFSB_NPOS;
        if (hfsbi_find_compare(s, i, needle, &spent)) return i;
    }
    if (i > last) return HFSB_NPOS;
    a = hfsbi_find_two_way(hfsb_str_slice(s, i, s.len), needle);
    return a == HFSB_NPOS ? HFSB_NPOS : a + i;
}

size_t hfsb_str_find(hfsb_str s, hfsb_str needle) {
    hfsbi_needle n;
    if (needle.len > s.len) return HFSB_NPOS;
    n = hfsbi_needle_make(needle);
    return hfsbi_needle_find(&n, s);
}

/* ---- errors ---- */

const char *hfsb_status_text(hfsb_status code) {
    static const char *const text[] = {
#define HFSBI_X(name, str) str,
        HFSB_STATUS_LIST(HFSBI_X)
#undef HFSBI_X
    };
    size_t i = (size_t)code;
    return i < (size_t)HFSB_STATUS_COUNT ? text[i] : "unknown status";
}

/* Prints to the end of the message. A truncated message loses its last
   character unless that is ASCII: it may be incomplete. */
static void hfsbi_err_print(hfsb_err *err, const char *format, va_list ap) {
    size_t len = strlen(err->msg), end = sizeof err->msg - 1, last;
    int    n = vsnprintf(err->msg + len, end + 1 - len, format, ap);
    if (n < 0) err->msg[len] = '\0';
    if (n < 0 || (size_t)n <= end - len) return;
    last = hfsbi_utf8_floor(hfsb_str_make(err->msg, end), end - 1);
    if ((unsigned char)err->msg[last] >= 0x80) err->msg[last] = '\0';
}

static void hfsbi_err_begin(hfsb_err *err, hfsb_status code, size_t pos) {
    err->code = code;
    err->pos = pos;
    err->line = err->column = 0;
    err->key[0] = err->msg[0] = '\0';
}

HFSBI_FN hfsb_status hfsbi_fail(hfsb_err *err, hfsb_status code, size_t pos,
                                const char *format, ...) {
    va_list ap;
    if (!err) return code;
    hfsbi_err_begin(err, code, pos);
    va_start(ap, format);
    hfsbi_err_print(err, format, ap);
    va_end(ap);
    return code;
}

hfsb_status hfsb_err_set(hfsb_err *err, hfsb_status code, const char *format,
                         ...) {
    va_list ap;
    if (!err) return code;
    hfsbi_err_begin(err, code, 0);
    va_start(ap, format);
    hfsbi_err_print(err, format, ap);
    va_end(ap);
    return code;
}

HFSBI_FN hfsb_status hfsbi_fail_key(hfsb_err *err, hfsb_status code,
                                    const char *key, const char *format, ...) {
    va_list ap;
    size_t  n;
    if (!err) return code;
    hfsbi_err_begin(err, code, 0);
    n = hfsbi_utf8_floor(hfsb_cstr(key), sizeof err->key - 1);
    memcpy(err->key, key, n);
    err->key[n] = '\0';
    va_start(ap, format);
    hfsbi_err_print(err, format, ap);
    va_end(ap);
    return code;
}

HFSBI_FN hfsb_status hfsbi_fail_status(hfsb_err *err, hfsb_status code,
                                       const char *what) {
    return hfsbi_fail(err, code, 0, "%s: %s.", what, hfsb_status_text(code));
}

HFSBI_FN void hfsbi_err_add(hfsb_err *err, const char *format, ...) {
    va_list ap;
    if (!err) return;
    va_start(ap, format);
    hfsbi_err_print(err, format, ap);
    va_end(ap);
}

HFSBI_FN void hfsbi_err_quote(hfsb_err *err, hfsb_str text, size_t max) {
    size_t pos = 0, shown = 0;
    while (pos < text.len && shown++ < max) {
        unsigned long code;
        char          bytes[4];
        pos += hfsb_utf8_step(text, pos, &code, NULL);
        if (code < ' ' || (code >= 0x7F && code <= 0x9F)) code = ' ';
        hfsbi_err_add(err, "%.*s", (int)hfsb_utf8_encode(code, bytes), bytes);
    }
    if (pos < text.len) hfsbi_err_add(err, "...");
}

HFSBI_FN void hfsbi_err_key(hfsb_err *err, const char *key) {
    if (err) (void)snprintf(err->key, sizeof err->key, "%s", key);
}

HFSBI_FN hfsb_status hfsbi_ok(hfsb_err *err) {
    if (err) hfsbi_err_begin(err, HFSB_OK, 0);
    return HFSB_OK;
}

/* ---- buffers ---- */

hfsb_str hfsb_buf_str(const hfsb_buf *b) {
    return hfsb_str_make(b->ptr ? b->ptr : "", b->len);
}

const char *hfsb_buf_cstr(const hfsb_buf *b) {
    return b->ptr ? b->ptr : "";
}

hfsb_status hfsb_buf_reserve(hfsb_buf *b, size_t n) {
    size_t need, cap;
    void  *grown;
    if (!hfsbi_add(b->len, n, &need) || need == (size_t)-1 ||
        (b->max && need > b->max))
        return HFSB_LIMIT;
    need++; /* the NUL */
    if (need <= b->cap) return HFSB_OK;
    cap = b->cap ? b->cap : 64;
    while (cap < need) cap = cap > (size_t)-1 / 2 ? need : cap * 2;
    grown = hfsbi_realloc(&b->alloc, b->ptr, b->cap, cap);
    if (!grown) return HFSB_NOMEM;
    b->ptr = (char *)grown;
    b->cap = cap;
    return HFSB_OK;
}

/* hfsb_buf_reserve() that remembers its failure. */
static bool hfsbi_buf_room(hfsb_buf *b, size_t n) {
    if (b->status == HFSB_OK) b->status = hfsb_buf_reserve(b, n);
    return b->status == HFSB_OK;
}

hfsb_status hfsb_buf_append(hfsb_buf *b, hfsb_str s) {
    bool fits = b->status == HFSB_OK && s.len < b->cap - b->len &&
                (!b->max || b->len + s.len <= b->max);
    if (!fits) { /* s may point into the buffer, which moves */
        const char *held = b->ptr;
        bool        inside = b->cap && s.ptr >= held && s.ptr < held + b->cap;
        size_t      at = inside ? (size_t)(s.ptr - held) : 0;
        if (!hfsbi_buf_room(b, s.len)) return b->status;
        if (inside) s.ptr = b->ptr + at;
    }
    if (s.len) memcpy(b->ptr + b->len, s.ptr, s.len);
    b->len += s.len;
    b->ptr[b->len] = '\0';
    return HFSB_OK;
}

hfsb_status hfsb_buf_append_byte(hfsb_buf *b, char c) {
    return hfsb_buf_append(b, hfsb_str_make(&c, 1));
}

HFSBI_FN hfsb_status hfsbi_buf_vprintf(hfsb_buf *b, const char *format,
                                       va_list ap) {
    size_t  spare = b->cap - b->len; /* with the NUL; 0: no memory yet */
    va_list again;
    int     n;
    if (b->status != HFSB_OK) return b->status;
    va_copy(again, ap);
    n = vsnprintf(spare ? b->ptr + b->len : NULL, spare, format, ap);
    if (n < 0) b->status = HFSB_ARG;
    else (void)hfsbi_buf_room(b, (size_t)n);
    if (b->status == HFSB_OK && (size_t)n >= spare) /* it did not fit */
        vsnprintf(b->ptr + b->len, (size_t)n + 1, format, again);
    va_end(again);
    if (b->status == HFSB_OK) b->len += (size_t)n;
    else if (spare) b->ptr[b->len] = '\0';
    return b->status;
}

hfsb_status hfsb_buf_printf(hfsb_buf *b, const char *format, ...) {
    va_list     ap;
    hfsb_status st;
    va_start(ap, format);
    st = hfsbi_buf_vprintf(b, format, ap);
    va_end(ap);
    return st;
}

hfsb_status hfsb_buf_finish(hfsb_buf *b, size_t mark) {
    hfsb_status st = b->status;
    if (st == HFSB_OK) return HFSB_OK;
    hfsb_buf_truncate(b, mark);
    return b->status = st;
}

void hfsb_buf_truncate(hfsb_buf *b, size_t len) {
    b->status = HFSB_OK;
    if (len >= b->len) return;
    b->len = len;
    b->ptr[len] = '\0';
}

void hfsb_buf_free(hfsb_buf *b) {
    if (b->ptr) hfsbi_realloc(&b->alloc, b->ptr, b->cap, 0);
    b->ptr = NULL;
    b->len = b->cap = 0;
    b->status = HFSB_OK;
}
