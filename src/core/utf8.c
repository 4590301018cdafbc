/* utf8.c - decoding, checking and repair of UTF-8. */
#include "core_private.h"

#define HFSBI_UTF8_BAD HFSB_LIT("\xEF\xBF\xBD") /* U+FFFD */

/* Length of the character that lead byte c (above 0x7F) starts, and the range
   its second byte must lie in: Table 3-7 of the Unicode standard. 1 when no
   character starts with c. */
static size_t hfsbi_utf8_lead(unsigned char c, unsigned char *low,
                              unsigned char *high) {
    *low = 0x80;
    *high = 0xBF;
    if (c < 0xC2 || c > 0xF4) return 1;
    if (c < 0xE0) return 2;
    if (c == 0xE0) *low = 0xA0;  /* below: overlong */
    if (c == 0xED) *high = 0x9F; /* above: surrogates */
    if (c < 0xF0) return 3;
    if (c == 0xF0) *low = 0x90;  /* below: overlong */
    if (c == 0xF4) *high = 0x8F; /* above: beyond U+10FFFF */
    return 4;
}

size_t hfsb_utf8_step(hfsb_str s, size_t pos, unsigned long *code,
                      bool *valid) {
    const unsigned char *p = (const unsigned char *)s.ptr + pos;
    size_t               left = s.len - pos, need, n = 1;
    unsigned long        c = p[0];
    unsigned char        low, high;
    bool                 good;

    if (c < 0x80) {
        *code = c;
        if (valid) *valid = true;
        return 1;
    }
    need = hfsbi_utf8_lead(p[0], &low, &high);
    c &= 0x7Fu >> need;
    for (; n < need && n < left && p[n] >= low && p[n] <= high; n++) {
        c = c << 6 | (p[n] & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    good = need > 1 && n == need;
    *code = good ? c : 0xFFFD;
    if (valid) *valid = good;
    return n;
}

size_t hfsb_utf8_encode(unsigned long code, char out[4]) {
    unsigned long c = code;
    size_t        n, i;
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) c = 0xFFFD;
    if (c < 0x80) {
        out[0] = (char)(unsigned char)c;
        return 1;
    }
    n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(unsigned char)(0x80u | (c & 0x3Fu));
    out[0] = (char)(unsigned char)((0xF00u >> n & 0xFFu) | c);
    return n;
}

/* How many bytes from p on are ASCII, of n. */
HFSBI_FN size_t hfsbi_utf8_ascii(const char *p, size_t n) {
    size_t i = 0;
#ifdef HFSBI_SSE2
    for (; n - i >= 16; i += 16) {
        const void *at = p + i;
        unsigned    mask =
            (unsigned)_mm_movemask_epi8(_mm_loadu_si128((const __m128i *)at));
        if (mask) return i + (size_t)__builtin_ctz(mask);
    }
#else
    for (; n - i >= 8; i += 8) {
        uint64_t word;
        memcpy(&word, p + i, 8);
        if (word & 0x8080808080808080u) break;
    }
#endif
    while (i < n && (unsigned char)p[i] < 0x80) i++;
    return i;
}

size_t hfsb_utf8_validate(hfsb_str s) {
    size_t        i = 0;
    unsigned long code;
    bool          valid;
    while (i < s.len) {
        size_t n;
        if ((unsigned char)s.ptr[i] < 0x80)
            i += hfsbi_utf8_ascii(s.ptr + i, s.len - i);
        if (i == s.len) break;
        n = hfsb_utf8_step(s, i, &code, &valid);
        if (!valid) return i;
        i += n;
    }
    return s.len;
}

size_t hfsb_utf8_count(hfsb_str s) {
    size_t        i = 0, count = 0;
    unsigned long code;
    while (i < s.len) {
        if ((unsigned char)s.ptr[i] < 0x80) {
            size_t n = hfsbi_utf8_ascii(s.ptr + i, s.len - i);
            i += n;
            count += n;
        } else {
            i += hfsb_utf8_step(s, i, &code, NULL);
            count++;
        }
    }
    return count;
}

size_t hfsb_utf8_offset(hfsb_str s, size_t count) {
    size_t        i = 0;
    unsigned long code;
    while (i < s.len && count > 0) {
        if ((unsigned char)s.ptr[i] < 0x80) {
            size_t left = s.len - i;
            size_t n =
                hfsbi_utf8_ascii(s.ptr + i, left < count ? left : count);
            i += n;
            count -= n;
        } else {
            i += hfsb_utf8_step(s, i, &code, NULL);
            count--;
        }
    }
    return i;
}

static void hfsbi_utf8_put(hfsb_buf *sink, hfsb_str s) {
    while (s.len > 0) {
        size_t        n = hfsb_utf8_validate(s);
        unsigned long code;
        hfsb_buf_append(sink, hfsb_str_slice(s, 0, n));
        if (n == s.len) return;
        n += hfsb_utf8_step(s, n, &code, NULL);
        hfsb_buf_append(sink, HFSBI_UTF8_BAD);
        s = hfsb_str_slice(s, n, s.len);
    }
}

hfsb_status hfsb_utf8_repair(hfsb_str s, hfsb_buf *out) {
    size_t mark = out->len;
    hfsbi_utf8_put(out, s);
    return hfsb_buf_finish(out, mark);
}

HFSBI_FN size_t hfsbi_utf8_floor(hfsb_str s, size_t n) {
    if (n >= s.len) return s.len;
    while (n > 0 && ((unsigned char)s.ptr[n] & 0xC0u) == 0x80u) n--;
    return n;
}

HFSBI_FN size_t hfsbi_utf8_ceil(hfsb_str s, size_t n) {
    while (n < s.len && ((unsigned char)s.ptr[n] & 0xC0u) == 0x80u) n++;
    return n < s.len ? n : s.len;
}

/* ---- in pieces ---- */

/* How many bytes at the end of s, 0 to 3, are the start of a character that
   the next piece may complete. */
static size_t hfsbi_utf8_open(hfsb_str s) {
    size_t n;
    for (n = 1; n <= 3 && n <= s.len; n++) {
        unsigned char c = (unsigned char)s.ptr[s.len - n], low, high;
        unsigned long code;
        if (c < 0x80) return 0;
        if (c < 0xC0) continue; /* perhaps inside: look further back */
        if (hfsbi_utf8_lead(c, &low, &high) <= n) return 0;
        return hfsb_utf8_step(s, s.len - n, &code, NULL) == n ? n : 0;
    }
    return 0;
}

/* Gives bytes of piece to the character that waits, until it is decided.
   Returns how many were taken. */
static size_t hfsbi_utf8_complete(hfsb_utf8_stream *st, hfsb_str piece,
                                  hfsb_buf *sink) {
    size_t i = 0;
    while (st->len > 0 && i < piece.len) {
        const void   *part = st->part;
        hfsb_str      s = hfsb_str_make((const char *)part, st->len + 1u);
        unsigned long code;
        bool          valid;
        st->part[st->len] = (unsigned char)piece.ptr[i];
        if (hfsb_utf8_step(s, 0, &code, &valid) == st->len) {
            hfsb_buf_append(sink,
                            HFSBI_UTF8_BAD); /* and byte i starts afresh */
            st->len = 0;
            return i;
        }
        i++;
        st->len++;
        if (!valid) continue;
        hfsb_buf_append(sink, s);
        st->len = 0;
    }
    return i;
}

hfsb_status hfsb_utf8_stream_write(hfsb_utf8_stream *stream, hfsb_str piece,
                                   bool last, hfsb_buf *out) {
    size_t           mark = out->len;
    hfsb_utf8_stream next = *stream;
    hfsb_str         rest;
    size_t           taken = hfsbi_utf8_complete(&next, piece, out), open;

    rest = hfsb_str_slice(piece, taken, piece.len);
    open = last ? 0 : hfsbi_utf8_open(rest);
    hfsbi_utf8_put(out, hfsb_str_slice(rest, 0, rest.len - open));
    if (open > 0) {
        memcpy(next.part, rest.ptr + rest.len - open, open);
        next.len = (unsigned char)open;
    }
    if (last && next.len > 0) {
        hfsb_buf_append(out, HFSBI_UTF8_BAD);
        next.len = 0;
    }
    if (hfsb_buf_finish(out, mark) == HFSB_OK) *stream = next;
    return out->status;
}

/* ---- messages ---- */

HFSBI_FN void hfsbi_err_quote(hfsb_err *err, hfsb_str text, size_t max) {
    size_t pos = 0, shown = 0;
    while (pos < text.len && shown++ < max) {
        unsigned long code;
        char          bytes[4];
        size_t        n = hfsb_utf8_step(text, pos, &code, NULL);
        if (code < ' ' || code == 0x7F) code = ' ';
        hfsbi_err_add(err, "%.*s", (int)hfsb_utf8_encode(code, bytes), bytes);
        pos += n;
    }
    if (pos < text.len) hfsbi_err_add(err, "...");
}
