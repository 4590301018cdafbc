/* utf8.c - decoding, validating and repairing UTF-8.

   hfsb_utf8_step() is the only decoder; everything else loops over it, with
   runs of ASCII skipped 16 bytes at a time. An ill-formed sequence is cut into
   maximal subparts as the Unicode standard recommends, and each becomes one
   U+FFFD, so that all readers of a text agree on its length.

   A stream holds back the start of a character until the next piece decides
   it; the output does not depend on how the input was cut. */
#include "core_private.h"

#define HFSBI_UTF8_BAD HFSB_LIT("\xEF\xBF\xBD") /* U+FFFD */

/* Length of the character that lead byte c (above 0x7F) starts, and the range
   of its second byte: Table 3-7 of the Unicode standard. 1 when no character
   starts with c. */
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

static void hfsbi_utf8_put(hfsb_buf *out, hfsb_str s) {
    while (s.len > 0) {
        size_t        n = hfsb_utf8_validate(s);
        unsigned long code;
        hfsb_buf_append(out, hfsb_str_slice(s, 0, n));
        if (n == s.len) return;
        n += hfsb_utf8_step(s, n, &code, NULL);
        hfsb_buf_append(out, HFSBI_UTF8_BAD);
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

HFSBI_FN size_t hfsbi_utf8_open(hfsb_str s) {
    size_t n;
    for (n = 1; n <= 3 && n <= s.len; n++) {
        unsigned char c = (unsigned char)s.ptr[s.len - n], low, high;
        unsigned long code;
        if (c < 0x80) return 0;
        if (c < 0xC0) continue; /* a continuation byte: look further back */
        if (hfsbi_utf8_lead(c, &low, &high) <= n) return 0;
        return hfsb_utf8_step(s, s.len - n, &code, NULL) == n ? n : 0;
    }
    return 0;
}

/* Adds bytes of piece to the pending character until it is complete or
   ill-formed. Returns the number of bytes used. */
static size_t hfsbi_utf8_complete(hfsb_utf8_stream *st, hfsb_str piece,
                                  hfsb_buf *out) {
    size_t i = 0;
    while (st->len > 0 && i < piece.len) {
        const void   *part = st->part;
        hfsb_str      s = hfsb_str_make((const char *)part, st->len + 1u);
        unsigned long code;
        bool          valid;
        st->part[st->len] = (unsigned char)piece.ptr[i];
        if (hfsb_utf8_step(s, 0, &code, &valid) == st->len) {
            hfsb_buf_append(out, HFSBI_UTF8_BAD);
            st->len = 0;
            return i; /* byte i starts another character */
        }
        i++;
        st->len++;
        if (!valid) continue;
        hfsb_buf_append(out, s);
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

HFSBI_FN size_t hfsbi_utf8_stream_check(hfsb_utf8_stream *stream,
                                        hfsb_str          piece) {
    size_t        at = 0, n;
    unsigned char low, high;
    unsigned long code;
    while (stream->len > 0 && at < piece.len) {
        const void *part = stream->part;
        hfsb_str    s = hfsb_str_make((const char *)part, stream->len + 1u);
        bool        valid;
        stream->part[stream->len] = (unsigned char)piece.ptr[at];
        if (hfsb_utf8_step(s, 0, &code, &valid) == stream->len) return at;
        stream->len = valid ? 0 : (unsigned char)(stream->len + 1u);
        at++;
    }
    at += hfsb_utf8_validate(hfsb_str_slice(piece, at, piece.len));
    if (at == piece.len) return at;
    if (hfsbi_utf8_lead((unsigned char)piece.ptr[at], &low, &high) == 1)
        return at;
    n = hfsb_utf8_step(piece, at, &code, NULL);
    memcpy(stream->part, piece.ptr + at, n);
    stream->len = (unsigned char)n;
    return at + n;
}
