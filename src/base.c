/* base.c - views, buffers, errors, memory. Depends on: nothing. */
#include "internal.h"

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

/* Cut msg, of which len bytes were wanted, so that it does not end inside a
   character. */
static void hfsbi_err_trim(hfsb_err *err, size_t len) {
    size_t n = sizeof err->msg - 1;
    if (len <= n) return;
    while (n > 0 && ((unsigned char)err->msg[n - 1] & 0xC0u) == 0x80u) n--;
    if (n > 0 && (unsigned char)err->msg[n - 1] >= 0xC0u) n--;
    err->msg[n] = '\0';
}

static void hfsbi_err_print(hfsb_err *err, size_t at, const char *format,
                            va_list ap) {
    int n = vsnprintf(err->msg + at, sizeof err->msg - at, format, ap);
    if (n < 0) err->msg[at] = '\0';
    else hfsbi_err_trim(err, at + (size_t)n);
}

HFSBI_FN hfsb_status hfsbi_fail(hfsb_err *err, hfsb_status code, size_t pos,
                                const char *format, ...) {
    va_list ap;
    if (!err) return code;
    err->code = code;
    err->pos = pos;
    err->line = err->column = 0;
    va_start(ap, format);
    hfsbi_err_print(err, 0, format, ap);
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
    hfsbi_err_print(err, strlen(err->msg), format, ap);
    va_end(ap);
}

HFSBI_FN hfsb_status hfsbi_ok(hfsb_err *err) {
    if (err) {
        err->code = HFSB_OK;
        err->pos = err->line = err->column = 0;
        err->msg[0] = '\0';
    }
    return HFSB_OK;
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

/* ---- views ---- */

hfsb_str hfsb_str_make(const char *ptr, size_t len) {
    hfsb_str s;
    s.ptr = ptr;
    s.len = len;
    return s;
}

hfsb_str hfsb_cstr(const char *text) {
    return hfsb_str_make(text ? text : "", text ? strlen(text) : 0);
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
    /* Lanes count down from zero; 255 rounds fit a byte. */
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

static bool hfsbi_is_trimmed(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

HFSBI_FN hfsb_str hfsbi_trim_end(hfsb_str s) {
    while (s.len && hfsbi_is_trimmed(s.ptr[s.len - 1])) s.len--;
    return s;
}

HFSBI_FN hfsb_str hfsbi_trim(hfsb_str s) {
    size_t i = 0;
    s = hfsbi_trim_end(s);
    while (i < s.len && hfsbi_is_trimmed(s.ptr[i])) i++;
    return hfsb_str_slice(s, i, s.len);
}

/* ---- buffers ---- */

hfsb_str hfsb_buf_str(const hfsb_buf *b) {
    return hfsb_str_make(b->ptr ? b->ptr : "", b->len);
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

hfsb_status hfsb_buf_append(hfsb_buf *b, hfsb_str s) {
    const char *held = b->ptr;
    bool        inside = b->cap && s.ptr >= held && s.ptr < held + b->cap;
    size_t      at = inside ? (size_t)(s.ptr - held) : 0;
    hfsb_status st = hfsb_buf_reserve(b, s.len);
    if (st != HFSB_OK) return st;
    if (s.len) memcpy(b->ptr + b->len, inside ? b->ptr + at : s.ptr, s.len);
    b->len += s.len;
    b->ptr[b->len] = '\0';
    return HFSB_OK;
}

hfsb_status hfsb_buf_append_byte(hfsb_buf *b, char c) {
    return hfsb_buf_append(b, hfsb_str_make(&c, 1));
}

HFSBI_FN hfsb_status hfsbi_buf_vprintf(hfsb_buf *b, const char *format,
                                       va_list ap) {
    va_list     again;
    int         n;
    hfsb_status st;
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (n < 0) return HFSB_ARG;
    st = hfsb_buf_reserve(b, (size_t)n);
    if (st != HFSB_OK) return st;
    vsnprintf(b->ptr + b->len, (size_t)n + 1, format, ap);
    b->len += (size_t)n;
    return HFSB_OK;
}

hfsb_status hfsb_buf_printf(hfsb_buf *b, const char *format, ...) {
    va_list     ap;
    hfsb_status st;
    va_start(ap, format);
    st = hfsbi_buf_vprintf(b, format, ap);
    va_end(ap);
    return st;
}

void hfsb_buf_truncate(hfsb_buf *b, size_t len) {
    if (len >= b->len) return;
    b->len = len;
    b->ptr[len] = '\0';
}

void hfsb_buf_free(hfsb_buf *b) {
    if (b->ptr) hfsbi_realloc(&b->alloc, b->ptr, b->cap, 0);
    b->ptr = NULL;
    b->len = b->cap = 0;
}

/* ---- many appends, one check ---- */

HFSBI_FN hfsbi_sink hfsbi_sink_begin(hfsb_buf *buf) {
    hfsbi_sink sink;
    sink.buf = buf;
    sink.mark = buf->len;
    sink.status = HFSB_OK;
    return sink;
}

HFSBI_FN void hfsbi_put(hfsbi_sink *sink, hfsb_str s) {
    if (sink->status == HFSB_OK) sink->status = hfsb_buf_append(sink->buf, s);
}

HFSBI_FN void hfsbi_put_byte(hfsbi_sink *sink, char c) {
    if (sink->status == HFSB_OK)
        sink->status = hfsb_buf_append_byte(sink->buf, c);
}

HFSBI_FN void hfsbi_putf(hfsbi_sink *sink, const char *format, ...) {
    va_list ap;
    if (sink->status != HFSB_OK) return;
    va_start(ap, format);
    sink->status = hfsbi_buf_vprintf(sink->buf, format, ap);
    va_end(ap);
}

HFSBI_FN hfsb_status hfsbi_sink_end(hfsbi_sink *sink) {
    if (sink->status != HFSB_OK) hfsb_buf_truncate(sink->buf, sink->mark);
    return sink->status;
}

/* ---- order ---- */

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

/* Heap sort. */
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
