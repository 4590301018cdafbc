/* text_window.c - head and tail of long texts. Depends on: base, utf8. */
#include "internal.h"

/* ---- what both forms share ---- */

/* The limit with its defaults filled in; false when head is above chars. */
static bool hfsbi_limit_resolve(const hfsb_text_limit *limit,
                                hfsb_text_limit       *out) {
    out->chars = limit && limit->chars ? limit->chars : 25000;
    out->head = limit && limit->head ? limit->head : out->chars / 4;
    return out->head <= out->chars;
}

/* 1234567 as 1,234,567 */
static void hfsbi_put_grouped(hfsbi_sink *sink, size_t n) {
    char   text[sizeof n * 4];
    size_t at = sizeof text, digits = 0;
    do {
        if (digits > 0 && digits % 3 == 0) text[--at] = ',';
        text[--at] = (char)('0' + n % 10);
        digits++;
        n /= 10;
    } while (n > 0);
    hfsbi_put(sink, hfsb_str_make(text + at, sizeof text - at));
}

/* The marker between head and tail of a text of `total` characters. Where
   saved is not 0, only so many bytes of it are in the spill file. */
static void hfsbi_put_marker(hfsbi_sink *sink, const hfsb_text_limit *limit,
                             size_t total, hfsb_str spill_path, size_t saved) {
    hfsbi_put(sink, HFSB_LIT("\n\n... ("));
    hfsbi_put_grouped(sink, total - limit->chars);
    hfsbi_put(sink, HFSB_LIT(" of "));
    hfsbi_put_grouped(sink, total);
    hfsbi_put(sink, HFSB_LIT(" chars omitted, showing first "));
    hfsbi_put_grouped(sink, limit->head);
    hfsbi_put(sink, HFSB_LIT(" + last "));
    hfsbi_put_grouped(sink, limit->chars - limit->head);
    hfsbi_put(sink, HFSB_LIT(") ...\n"));
    if (spill_path.len == 0) return;
    if (saved == 0) {
        hfsbi_put(sink, HFSB_LIT("Full output saved to "));
    } else {
        hfsbi_put(sink, HFSB_LIT("Only the first "));
        hfsbi_put_grouped(sink, saved);
        hfsbi_put(sink, HFSB_LIT(" bytes of output saved to "));
    }
    hfsbi_put(sink, spill_path);
    hfsbi_put(sink, HFSB_LIT(" \xE2\x80\x94 use the read tool with "
                             "offset/limit to inspect specific "
                             "sections.\n"));
}

/* ---- a text that is there ---- */

hfsb_status hfsb_text_truncate(hfsb_str text, const hfsb_text_limit *limit,
                               hfsb_str spill_path, hfsb_buf *out,
                               bool *truncated, hfsb_err *err) {
    hfsbi_sink      sink = hfsbi_sink_begin(out);
    hfsb_text_limit lim;
    size_t          total;
    if (!hfsbi_limit_resolve(limit, &lim))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The head to keep is %zu characters but the whole "
                          "limit only %zu: make head at most chars.",
                          lim.head, lim.chars);
    total = hfsb_utf8_count(text);
    if (total <= lim.chars) {
        hfsbi_put(&sink, text);
    } else {
        size_t head = hfsb_utf8_offset(text, lim.head);
        size_t left_out = total - lim.chars;
        size_t tail =
            head +
            hfsb_utf8_offset(hfsb_str_slice(text, head, text.len), left_out);
        hfsbi_put(&sink, hfsb_str_slice(text, 0, head));
        hfsbi_put_marker(&sink, &lim, total, spill_path, 0);
        hfsbi_put(&sink, hfsb_str_slice(text, tail, text.len));
    }
    if (hfsbi_sink_end(&sink) != HFSB_OK)
        return hfsbi_fail_status(err, sink.status, "Truncated text");
    if (truncated) *truncated = total > lim.chars;
    return hfsbi_ok(err);
}

/* ---- a text that arrives in pieces ---- */

/* The first limit.head characters lie in `head`, the last of the others in a
   ring. What is shorter than the limit is thus held whole.

       ring:  [ tail's end |   free   | tail's start ]
               0                       start      cap         */
struct hfsb_text_window {
    hfsb_text_limit limit;
    hfsb_buf        head;
    char           *ring;
    size_t          cap;
    size_t          start;
    size_t          len;   /* bytes in the ring */
    size_t          chars; /* characters in the ring */
    size_t          total; /* characters seen */
    hfsb_alloc      alloc;
};

hfsb_text_window *hfsb_text_window_open(const hfsb_text_limit *limit,
                                        const hfsb_alloc      *alloc) {
    hfsb_alloc        none = HFSB_INIT;
    hfsb_text_limit   lim;
    hfsb_text_window *w;
    if (!alloc) alloc = &none;
    if (!hfsbi_limit_resolve(limit, &lim)) return NULL;
    w = (hfsb_text_window *)hfsbi_array(alloc, 1, sizeof *w);
    if (!w) return NULL;
    memset(w, 0, sizeof *w);
    w->limit = lim;
    w->alloc = w->head.alloc = *alloc;
    return w;
}

void hfsb_text_window_close(hfsb_text_window *window) {
    hfsb_alloc alloc;
    if (!window) return;
    alloc = window->alloc;
    hfsb_buf_free(&window->head);
    hfsbi_array_free(&alloc, window->ring, window->cap, 1);
    hfsbi_array_free(&alloc, window, 1, sizeof *window);
}

/* The most bytes so many characters can have. */
static size_t hfsbi_window_bytes(size_t chars) {
    size_t bytes;
    return hfsbi_mul(chars, 4, &bytes) ? bytes : HFSB_NPOS;
}

/* The ring's bytes in order: *first, then *second. */
static void hfsbi_ring_views(const hfsb_text_window *w, hfsb_str *first,
                             hfsb_str *second) {
    size_t n = w->cap - w->start < w->len ? w->cap - w->start : w->len;
    *first = hfsb_str_make(w->ring ? w->ring + w->start : "", n);
    *second = hfsb_str_make(w->ring ? w->ring : "", w->len - n);
}

/* Room for at least need bytes in all. */
static bool hfsbi_ring_reserve(hfsb_text_window *w, size_t need, size_t max) {
    hfsb_str first, second;
    size_t   cap = w->cap < 32 ? 64 : w->cap * 2;
    char    *grown;
    if (need <= w->cap) return true;
    if (cap > max) cap = max;
    if (cap < need) cap = need;
    grown = (char *)hfsbi_array(&w->alloc, cap, 1);
    if (!grown) return false;
    hfsbi_ring_views(w, &first, &second);
    if (first.len) memcpy(grown, first.ptr, first.len);
    if (second.len) memcpy(grown + first.len, second.ptr, second.len);
    hfsbi_array_free(&w->alloc, w->ring, w->cap, 1);
    w->ring = grown;
    w->cap = cap;
    w->start = 0;
    return true;
}

static void hfsbi_ring_drop(hfsb_text_window *w, size_t bytes) {
    w->start += bytes;
    if (w->start >= w->cap) w->start -= w->cap;
    w->len -= bytes;
}

/* Lets go of the first n characters: of each the first byte, and then its
   continuation bytes. */
static void hfsbi_ring_drop_chars(hfsb_text_window *w, size_t n) {
    size_t at = w->start, bytes = 0;
    while (bytes < w->len) {
        if (((unsigned char)w->ring[at] & 0xC0u) != 0x80u && n-- == 0) break;
        bytes++;
        if (++at == w->cap) at = 0;
    }
    hfsbi_ring_drop(w, bytes);
}

static void hfsbi_ring_append(hfsb_text_window *w, hfsb_str s) {
    size_t end, n;
    if (s.len == 0) return;
    end = w->start < w->cap - w->len ? w->start + w->len
                                     : w->start - (w->cap - w->len);
    n = w->cap - end < s.len ? w->cap - end : s.len;
    memcpy(w->ring + end, s.ptr, n);
    if (s.len > n) memcpy(w->ring, s.ptr + n, s.len - n);
    w->len += s.len;
}

/* How many bytes at the start of piece go on with the character that the last
   piece ended in. */
static size_t hfsbi_window_rest(hfsb_str piece) {
    size_t n = 0;
    while (n < 3 && n < piece.len &&
           ((unsigned char)piece.ptr[n] & 0xC0u) == 0x80u)
        n++;
    return n;
}

/* Takes the last of text, n characters, into the ring. The first `rest` bytes
   go on with the ring's last character and are not counted. max bounds the
   ring also for bytes that are not UTF-8. */
static bool hfsbi_window_tail(hfsb_text_window *w, hfsb_str text, size_t rest,
                              size_t n) {
    size_t room = w->limit.chars - w->limit.head;
    size_t max = hfsbi_window_bytes(room), need;
    size_t keep = n < room ? n : room;
    size_t drop = w->chars > room - keep ? w->chars - (room - keep) : 0;
    bool   fresh = drop == w->chars;
    if (fresh) { /* the character that `rest` belongs to is gone too */
        text = hfsb_str_slice(text, rest, text.len);
        text =
            hfsb_str_slice(text, hfsb_utf8_offset(text, n - keep), text.len);
    }
    if (!hfsbi_add(fresh ? 0 : w->len, text.len, &need) || need > max)
        need = max;
    if (!hfsbi_ring_reserve(w, need, max)) return false;
    if (fresh) hfsbi_ring_drop(w, w->len);
    else if (drop > 0) hfsbi_ring_drop_chars(w, drop);
    if (w->len > max - text.len) hfsbi_ring_drop(w, w->len - (max - text.len));
    hfsbi_ring_append(w, text);
    w->chars += keep - drop;
    return true;
}

hfsb_status hfsb_text_window_write(hfsb_text_window *window, hfsb_str piece) {
    hfsb_text_window *w = window;
    size_t            mark = w->head.len, head_max = w->limit.head;
    size_t            rest = hfsbi_window_rest(piece), to_head = 0;
    hfsb_str          body = hfsb_str_slice(piece, rest, piece.len);
    size_t            n = hfsb_utf8_count(body), n_head = 0;
    if (w->total <= head_max) {
        n_head = n < head_max - w->total ? n : head_max - w->total;
        to_head = rest + hfsb_utf8_offset(body, n_head);
        if (mark < hfsbi_window_bytes(head_max)) {
            hfsb_status st =
                hfsb_buf_append(&w->head, hfsb_str_slice(piece, 0, to_head));
            if (st != HFSB_OK) return st;
        }
        rest = 0;
    }
    if (!hfsbi_window_tail(w, hfsb_str_slice(piece, to_head, piece.len), rest,
                           n - n_head)) {
        hfsb_buf_truncate(&w->head, mark);
        return HFSB_NOMEM;
    }
    w->total += n;
    return HFSB_OK;
}

size_t hfsb_text_window_total(const hfsb_text_window *window) {
    return window->total;
}

bool hfsb_text_window_truncated(const hfsb_text_window *window) {
    return window->total > window->limit.chars;
}

/* All of a window that is not truncated, else its tail. */
static void hfsbi_put_kept(hfsbi_sink *sink, const hfsb_text_window *w) {
    hfsb_str first, second;
    hfsbi_ring_views(w, &first, &second);
    if (!hfsb_text_window_truncated(w))
        hfsbi_put(sink, hfsb_buf_str(&w->head));
    hfsbi_put(sink, first);
    hfsbi_put(sink, second);
}

/* The last n characters of w, of which it holds at least so many. */
static void hfsbi_put_last(hfsbi_sink *sink, const hfsb_text_window *w,
                           size_t n) {
    hfsb_buf   kept = HFSB_INIT;
    hfsbi_sink all;
    hfsb_str   text;
    kept.alloc = w->alloc;
    all = hfsbi_sink_begin(&kept);
    hfsbi_put_kept(&all, w);
    if (hfsbi_sink_end(&all) != HFSB_OK) sink->status = all.status;
    text = hfsb_buf_str(&kept);
    hfsbi_put(sink,
              hfsb_str_slice(text,
                             hfsb_utf8_offset(text, hfsb_utf8_count(text) - n),
                             text.len));
    hfsb_buf_free(&kept);
}

HFSBI_FN hfsb_status hfsbi_text_windows_show(const hfsb_text_window *a,
                                             const hfsb_text_window *b,
                                             hfsb_str spill_path, size_t saved,
                                             hfsb_buf *out) {
    hfsbi_sink sink = hfsbi_sink_begin(out);
    size_t     head = a->limit.head, tail = a->limit.chars - head;
    size_t     total = a->total + b->total, from_a;
    if (total <= a->limit.chars) {
        hfsbi_put_kept(&sink, a);
        hfsbi_put_kept(&sink, b);
        return hfsbi_sink_end(&sink);
    }
    from_a = a->total < head ? a->total : head;
    hfsbi_put(&sink, hfsb_buf_str(&a->head));
    hfsbi_put(&sink, hfsb_str_slice(hfsb_buf_str(&b->head), 0,
                                    hfsb_utf8_offset(hfsb_buf_str(&b->head),
                                                     head - from_a)));
    hfsbi_put_marker(&sink, &a->limit, total, spill_path, saved);
    if (b->total < tail) hfsbi_put_last(&sink, a, tail - b->total);
    hfsbi_put_last(&sink, b, b->total < tail ? b->total : tail);
    return hfsbi_sink_end(&sink);
}

hfsb_status hfsb_text_window_show(const hfsb_text_window *window,
                                  hfsb_str spill_path, hfsb_buf *out) {
    hfsbi_sink sink = hfsbi_sink_begin(out);
    hfsb_str   first, second;
    hfsbi_ring_views(window, &first, &second);
    hfsbi_put(&sink, hfsb_buf_str(&window->head));
    if (hfsb_text_window_truncated(window))
        hfsbi_put_marker(&sink, &window->limit, window->total, spill_path, 0);
    hfsbi_put(&sink, first);
    hfsbi_put(&sink, second);
    return hfsbi_sink_end(&sink);
}
