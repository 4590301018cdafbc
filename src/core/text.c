/* text.c - lines of a text. */
#include "core_private.h"

bool hfsb_text_line(hfsb_str *rest, hfsb_str *line, hfsb_str *ending) {
    hfsb_str s = *rest;
    size_t   lf = hfsb_str_find_byte(s, '\n');
    size_t   next = lf == HFSB_NPOS ? s.len : lf + 1;
    size_t   end = lf == HFSB_NPOS ? s.len : lf;
    if (s.len == 0) return false;
    if (end < next && end > 0 && s.ptr[end - 1] == '\r') end--;
    *line = hfsb_str_slice(s, 0, end);
    if (ending) *ending = hfsb_str_slice(s, end, next);
    *rest = hfsb_str_slice(s, next, s.len);
    return true;
}

size_t hfsb_text_line_number(hfsb_str text, size_t pos) {
    return 1 + hfsb_str_count_byte(hfsb_str_slice(text, 0, pos), '\n');
}

/* ==== text filter ==== */

/* command output made readable.

   What a terminal would show, for one line at a time. A line is a row of
   cells, a cell is one code point (a wide or combining character too: no
   arithmetic on widths), and there is a cursor:
     a character   overwrites the cell at the cursor, which moves on;
     CR            moves the cursor to cell 0;
     BS            moves it back by one, not beyond cell 0;
     LF            ends the line: all its cells are given out, wherever the
                   cursor is, so CRLF and CR CR LF are one LF;
     CSI G, 1 G    as CR (spinners go back to column 1 that way);
     CSI K, 1 K, 2 K  erase from the cursor on, up to the cursor, or all.
   TAB, BEL, NUL and the other controls are characters like any other.

   One thing a terminal does not do: an erase with the cursor at the line's
   end has no effect until the line is written to again after a CR or BS.
   Programs clear a line to rewrite it, `10% CSI 2 K CR done` is `done`; but
   when nothing follows, `plain CSI 2 K` stays `plain`, since text that was
   printed is worth more to a reader than an empty line.

   Escape sequences (ECMA-48), all removed:
     ESC [  0x30-0x3F ...  0x20-0x2F ...  0x40-0x7E      CSI
     ESC ] or P X ^ _  ...  BEL or ESC \ or before LF    OSC DCS SOS PM APC
     ESC  0x20-0x2F ...  0x30-0x7E                       charsets and such
     ESC  0x30-0x7E                                      two characters
   A byte that can not go on with a sequence ends it there and counts as
   itself: a LF in the middle of a broken CSI is a LF. ESC always starts a new
   sequence. Other movement of the cursor is removed and not followed.

   The cells of a line are kept, up to HFSBI_LINE_MAX; when one more is
   printed at the end of a full row, the first half is given out for good. */

#ifndef HFSBI_LINE_MAX /* the fuzz target makes it small */
#define HFSBI_LINE_MAX 16384u
#endif

typedef enum hfsbi_escape {
    HFSBI_ESC_NONE,
    HFSBI_ESC_START,  /* behind ESC */
    HFSBI_ESC_MIDDLE, /* behind ESC and intermediate bytes */
    HFSBI_ESC_CSI,
    HFSBI_ESC_STRING
} hfsbi_escape;

/* All that a write changes, but for the cells themselves. */
typedef struct hfsbi_line {
    size_t        len;    /* cells in the line */
    size_t        cursor; /* at most len, unless len is 0 */
    size_t        erased; /* cells to blank once the line is rewritten */
    hfsbi_escape  escape;
    unsigned      arg;     /* parameter of the CSI, HFSBI_ARG_ODD: not one
                              plain number */
    unsigned char part[4]; /* start of a character that is not complete */
    size_t        part_len;
} hfsbi_line;

#define HFSBI_ARG_ODD 1000u

struct hfsb_text_filter {
    hfsbi_line line;
    uint32_t  *cells;
    size_t     cap;
    uint32_t  *spare; /* the cells at the start of the call */
    size_t     spare_cap;
    hfsb_alloc alloc;
};

/* ---- giving out cells ---- */

static void hfsbi_cells_put(hfsb_buf *sink, const uint32_t *cells,
                            size_t count) {
    char   text[1024];
    size_t i = 0, n = 0;
    while (i < count) {
        if (cells[i] < 0x80) text[n++] = (char)(unsigned char)cells[i];
        else n += hfsb_utf8_encode(cells[i], text + n);
        i++;
        if (n + 4 <= sizeof text && i < count) continue;
        hfsb_buf_append(sink, hfsb_str_make(text, n));
        n = 0;
    }
}

static void hfsbi_line_clear(hfsbi_line *line) {
    line->len = line->cursor = line->erased = 0;
}

/* ---- changing cells ---- */

static void hfsbi_blank(hfsb_text_filter *f, size_t from, size_t to) {
    for (; from < to; from++) f->cells[from] = ' ';
}

/* Makes room for n cells from the cursor on, giving out the first half of a
   full row. Returns for how many of them there is room, at least one, or 0
   without memory. */
static size_t hfsbi_cells_room(hfsb_text_filter *f, size_t n, hfsb_buf *sink) {
    hfsbi_line  *l = &f->line;
    const size_t half = HFSBI_LINE_MAX / 2;
    void        *grown;
    if (l->cursor == HFSBI_LINE_MAX) { /* and so is len */
        hfsbi_cells_put(sink, f->cells, half);
        memmove(f->cells, f->cells + half, half * sizeof *f->cells);
        l->cursor = l->len = half;
        l->erased = l->erased > half ? l->erased - half : 0;
    }
    if (n > HFSBI_LINE_MAX - l->cursor) n = HFSBI_LINE_MAX - l->cursor;
    grown = hfsbi_array_grow(&f->alloc, f->cells, &f->cap, l->cursor + n,
                             sizeof *f->cells);
    if (!grown) {
        sink->status = HFSB_NOMEM;
        return 0;
    }
    f->cells = (uint32_t *)grown;
    return n;
}

/* Before the line changes: carries out the erase that waits, when a CR or BS
   came since. */
static void hfsbi_line_settle(hfsb_text_filter *f) {
    hfsbi_line *l = &f->line;
    if (l->erased == 0 || l->cursor >= l->len) return;
    if (l->erased < l->len) hfsbi_blank(f, 0, l->erased);
    else l->len = 0;
    l->erased = 0;
}

/* n cells from the cursor on were written. */
static void hfsbi_line_advance(hfsb_text_filter *f, size_t n) {
    hfsbi_line *l = &f->line;
    if (l->cursor > l->len) hfsbi_blank(f, l->len, l->cursor);
    l->cursor += n;
    if (l->len < l->cursor) l->len = l->cursor;
}

static void hfsbi_print_char(hfsb_text_filter *f, unsigned long code,
                             hfsb_buf *sink) {
    hfsbi_line_settle(f);
    if (!hfsbi_cells_room(f, 1, sink)) return;
    f->cells[f->line.cursor] = (uint32_t)code;
    hfsbi_line_advance(f, 1);
}

static void hfsbi_print_ascii(hfsb_text_filter *f, hfsb_str s,
                              hfsb_buf *sink) {
    hfsbi_line_settle(f);
    while (s.len > 0) {
        size_t    n = hfsbi_cells_room(f, s.len, sink), i;
        uint32_t *to;
        if (n == 0) return;
        to = f->cells + f->line.cursor;
        for (i = 0; i < n; i++) to[i] = (unsigned char)s.ptr[i];
        hfsbi_line_advance(f, n);
        s = hfsb_str_slice(s, n, s.len);
    }
}

static void hfsbi_erase(hfsb_text_filter *f, unsigned mode) {
    hfsbi_line *l = &f->line;
    if (l->cursor >= l->len) {
        if (mode > 0) l->erased = l->len;
        return;
    }
    hfsbi_line_settle(f);
    if (mode == 0 && l->cursor < l->len) l->len = l->cursor;
    if (mode == 2 || (mode == 1 && l->cursor + 1 >= l->len)) l->len = 0;
    if (mode == 1 && l->len > 0) hfsbi_blank(f, 0, l->cursor + 1);
}

/* ---- plain text ---- */

/* How many bytes of s, from the start on, are ASCII other than ESC, CR and
   BS. */
static size_t hfsbi_plain_ascii(hfsb_str s) {
    size_t i = 0;
#ifdef HFSBI_SSE2
    const __m128i esc = _mm_set1_epi8(27), cr = _mm_set1_epi8(13),
                  bs = _mm_set1_epi8(8);
    for (; s.len - i >= 16; i += 16) {
        const void *at = s.ptr + i;
        __m128i     v = _mm_loadu_si128((const __m128i *)at);
        __m128i     stop = _mm_or_si128(
                _mm_or_si128(_mm_cmpeq_epi8(v, esc), _mm_cmpeq_epi8(v, cr)),
                _mm_or_si128(_mm_cmpeq_epi8(v, bs), v));
        unsigned mask = (unsigned)_mm_movemask_epi8(stop);
        if (mask) return i + (size_t)__builtin_ctz(mask);
    }
#else
    const uint64_t ones = 0x0101010101010101u;
    for (; s.len - i >= 8; i += 8) {
        uint64_t v, esc, cr, bs;
        memcpy(&v, s.ptr + i, 8);
        esc = v ^ ones * 27; /* a zero byte where v has ESC, and so on */
        cr = v ^ ones * 13;
        bs = v ^ ones * 8;
        if ((((esc - ones) | (cr - ones) | (bs - ones) | v) & ones << 7) != 0)
            break;
    }
#endif
    for (; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c >= 0x80 || c == 27 || c == 13 || c == 8) break;
    }
    return i;
}

/* The same for whole characters of UTF-8. */
static size_t hfsbi_plain_text(hfsb_str s) {
    size_t        i = 0;
    unsigned long code;
    bool          valid = true;
    for (;;) {
        size_t n;
        i += hfsbi_plain_ascii(hfsb_str_slice(s, i, s.len));
        if (i == s.len || (unsigned char)s.ptr[i] < 0x80) return i;
        n = hfsb_utf8_step(s, i, &code, &valid);
        if (!valid) return i;
        i += n;
    }
}

/* s is plain text without LF. */
static void hfsbi_print_text(hfsb_text_filter *f, hfsb_str s, hfsb_buf *sink) {
    size_t i = 0;
    while (i < s.len) {
        hfsb_str      rest = hfsb_str_slice(s, i, s.len);
        size_t        n = hfsbi_plain_ascii(rest);
        unsigned long code;
        if (n > 0) {
            hfsbi_print_ascii(f, hfsb_str_slice(rest, 0, n), sink);
        } else {
            n = hfsb_utf8_step(rest, 0, &code, NULL);
            hfsbi_print_char(f, code, sink);
        }
        i += n;
    }
}

/* s is plain text. Lines that begin and end in it need no cells. */
static void hfsbi_take_plain(hfsb_text_filter *f, hfsb_str s, hfsb_buf *sink) {
    size_t end;
    if (f->line.len > 0 || f->line.cursor > 0) {
        end = hfsb_str_find_byte(s, '\n');
        hfsbi_print_text(f, hfsb_str_slice(s, 0, end), sink);
        if (end == HFSB_NPOS) return;
        hfsbi_cells_put(sink, f->cells, f->line.len);
        hfsb_buf_append_byte(sink, '\n');
        hfsbi_line_clear(&f->line);
        s = hfsb_str_slice(s, end + 1, s.len);
    }
    for (end = s.len; end > 0 && s.ptr[end - 1] != '\n';) end--;
    hfsb_buf_append(sink, hfsb_str_slice(s, 0, end));
    hfsbi_print_text(f, hfsb_str_slice(s, end, s.len), sink);
}

/* ---- the rest of the input's grammar ---- */

/* A character that is ill-formed, or cut by the end of this piece or of the
   one before. Returns how many bytes of s were taken. */
static size_t hfsbi_take_char(hfsb_text_filter *f, hfsb_str s,
                              hfsb_buf *sink) {
    hfsbi_line   *l = &f->line;
    char          text[4];
    size_t        had = l->part_len, n;
    size_t        add = s.len < 4 - had ? s.len : 4 - had;
    unsigned char lead;
    unsigned long code;
    bool          valid;
    memcpy(text, l->part, had);
    memcpy(text + had, s.ptr, add);
    n = hfsb_utf8_step(hfsb_str_make(text, had + add), 0, &code, &valid);
    lead = (unsigned char)text[0];
    if (!valid && n == had + s.len && lead >= 0xC2 && lead <= 0xF4) {
        memcpy(l->part, text, n); /* more may come */
        l->part_len = n;
        return s.len;
    }
    l->part_len = 0;
    hfsbi_print_char(f, code, sink);
    return n - had;
}

/* True when c belongs to the escape sequence; else the sequence is over and c
   counts as itself. */
static bool hfsbi_take_escape(hfsb_text_filter *f, unsigned char c) {
    hfsbi_line  *l = &f->line;
    hfsbi_escape was = l->escape;
    if (was == HFSBI_ESC_STRING) {
        if (c == 7 || c == 10 || c == 27) l->escape = HFSBI_ESC_NONE;
        return c != 10 && c != 27; /* the \ of ESC \ is a sequence of two */
    }
    if (was == HFSBI_ESC_START && c == '[') {
        l->escape = HFSBI_ESC_CSI;
        l->arg = 0;
        return true;
    }
    if (was == HFSBI_ESC_START &&
        (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_')) {
        l->escape = HFSBI_ESC_STRING;
        return true;
    }
    if (was == HFSBI_ESC_CSI && c >= 0x20 && c <= 0x3F) {
        if (c < '0' || c > '9') l->arg = HFSBI_ARG_ODD;
        if (l->arg < HFSBI_ARG_ODD) l->arg = l->arg * 10 + c - '0';
        return true;
    }
    if (c >= 0x20 && c <= 0x2F) {
        l->escape = HFSBI_ESC_MIDDLE;
        return true;
    }
    l->escape = HFSBI_ESC_NONE;
    if (was == HFSBI_ESC_CSI && c == 'K' && l->arg <= 2)
        hfsbi_erase(f, l->arg);
    if (was == HFSBI_ESC_CSI && c == 'G' && l->arg <= 1) l->cursor = 0;
    return c >= 0x30 && c <= 0x7E;
}

/* Takes at least a byte of s, outside sequences, and says how many. */
static size_t hfsbi_take_text(hfsb_text_filter *f, hfsb_str s,
                              hfsb_buf *sink) {
    hfsbi_line *l = &f->line;
    size_t      n;
    switch (s.ptr[0]) {
    case 27: l->escape = HFSBI_ESC_START; return 1;
    case 13: l->cursor = 0; return 1;
    case 8:
        if (l->cursor > 0) l->cursor--;
        return 1;
    default: break;
    }
    n = hfsbi_plain_text(s);
    if (n == 0) return hfsbi_take_char(f, s, sink);
    hfsbi_take_plain(f, hfsb_str_slice(s, 0, n), sink);
    return n;
}

static void hfsbi_filter_take(hfsb_text_filter *f, hfsb_str piece,
                              hfsb_buf *sink) {
    size_t i = 0;
    while (i < piece.len && sink->status == HFSB_OK) {
        hfsb_str rest = hfsb_str_slice(piece, i, piece.len);
        if (f->line.escape != HFSBI_ESC_NONE &&
            hfsbi_take_escape(f, (unsigned char)rest.ptr[0]))
            i++;
        else if (f->line.part_len > 0) i += hfsbi_take_char(f, rest, sink);
        else i += hfsbi_take_text(f, rest, sink);
    }
}

/* ---- calls that fail leave no trace ---- */

/* Keeps a copy of the cells, so that undo can bring them back. */
static bool hfsbi_filter_save(hfsb_text_filter *f) {
    void *grown;
    if (f->line.len == 0) return true;
    grown = hfsbi_array_grow(&f->alloc, f->spare, &f->spare_cap, f->line.len,
                             sizeof *f->spare);
    if (!grown) return false;
    f->spare = (uint32_t *)grown;
    memcpy(f->spare, f->cells, f->line.len * sizeof *f->cells);
    return true;
}

static void hfsbi_filter_undo(hfsb_text_filter *f, const hfsbi_line *line) {
    uint32_t *cells = f->cells;
    size_t    cap = f->cap;
    f->cells = f->spare;
    f->cap = f->spare_cap;
    f->spare = cells;
    f->spare_cap = cap;
    f->line = *line;
}

/* ---- public ---- */

hfsb_text_filter *hfsb_text_filter_open(const hfsb_alloc *alloc) {
    hfsb_alloc        none = HFSB_INIT;
    hfsb_text_filter *f;
    if (!alloc) alloc = &none;
    f = (hfsb_text_filter *)hfsbi_array(alloc, 1, sizeof *f);
    if (!f) return NULL;
    memset(f, 0, sizeof *f);
    f->alloc = *alloc;
    return f;
}

void hfsb_text_filter_close(hfsb_text_filter *filter) {
    hfsb_text_filter *f = filter;
    hfsb_alloc        alloc;
    if (!f) return;
    alloc = f->alloc;
    hfsbi_array_free(&alloc, f->cells, f->cap, sizeof *f->cells);
    hfsbi_array_free(&alloc, f->spare, f->spare_cap, sizeof *f->spare);
    hfsbi_array_free(&alloc, f, 1, sizeof *f);
}

hfsb_status hfsb_text_filter_write(hfsb_text_filter *filter, hfsb_str piece,
                                   hfsb_buf *out) {
    hfsbi_line line = filter->line;
    size_t     mark = out->len;
    if (!hfsbi_filter_save(filter)) return HFSB_NOMEM;
    hfsbi_filter_take(filter, piece, out);
    if (hfsb_buf_finish(out, mark) != HFSB_OK)
        hfsbi_filter_undo(filter, &line);
    return out->status;
}

hfsb_status hfsb_text_filter_finish(hfsb_text_filter *filter, hfsb_buf *out) {
    hfsbi_line line = filter->line, none = HFSB_INIT;
    size_t     mark = out->len;
    if (!hfsbi_filter_save(filter)) return HFSB_NOMEM;
    if (line.part_len > 0) hfsbi_print_char(filter, 0xFFFD, out);
    hfsbi_cells_put(out, filter->cells, filter->line.len);
    filter->line = none;
    if (hfsb_buf_finish(out, mark) != HFSB_OK)
        hfsbi_filter_undo(filter, &line);
    return out->status;
}

hfsb_status hfsb_text_filter_peek(const hfsb_text_filter *filter,
                                  hfsb_buf               *out) {
    size_t mark = out->len;
    hfsbi_cells_put(out, filter->cells, filter->line.len);
    return hfsb_buf_finish(out, mark);
}

/* ==== text window ==== */

/* head and tail of long texts. */

/* ---- what both forms share ---- */

/* The limit with its defaults filled in; false when head is above chars. */
static bool hfsbi_limit_resolve(const hfsb_text_limit *limit,
                                hfsb_text_limit       *out) {
    out->chars = limit && limit->chars ? limit->chars : 25000;
    out->head = limit && limit->head ? limit->head : out->chars / 4;
    return out->head <= out->chars;
}

/* 1234567 as 1,234,567 */
static void hfsbi_put_grouped(hfsb_buf *sink, size_t n) {
    char   text[sizeof n * 4];
    size_t at = sizeof text, digits = 0;
    do {
        if (digits > 0 && digits % 3 == 0) text[--at] = ',';
        text[--at] = (char)('0' + n % 10);
        digits++;
        n /= 10;
    } while (n > 0);
    hfsb_buf_append(sink, hfsb_str_make(text + at, sizeof text - at));
}

/* The marker between head and tail of a text of `total` characters. Where
   saved is not 0, only so many bytes of it are in the spill file. */
static void hfsbi_put_marker(hfsb_buf *sink, const hfsb_text_limit *limit,
                             size_t total, hfsb_str spill_path, size_t saved) {
    hfsb_buf_append(sink, HFSB_LIT("\n\n... ("));
    hfsbi_put_grouped(sink, total - limit->chars);
    hfsb_buf_append(sink, HFSB_LIT(" of "));
    hfsbi_put_grouped(sink, total);
    hfsb_buf_append(sink, HFSB_LIT(" chars omitted, showing first "));
    hfsbi_put_grouped(sink, limit->head);
    hfsb_buf_append(sink, HFSB_LIT(" + last "));
    hfsbi_put_grouped(sink, limit->chars - limit->head);
    hfsb_buf_append(sink, HFSB_LIT(") ...\n"));
    if (spill_path.len == 0) return;
    if (saved == 0) {
        hfsb_buf_append(sink, HFSB_LIT("Full output saved to "));
    } else {
        hfsb_buf_append(sink, HFSB_LIT("Only the first "));
        hfsbi_put_grouped(sink, saved);
        hfsb_buf_append(sink, HFSB_LIT(" bytes of output saved to "));
    }
    hfsb_buf_append(sink, spill_path);
    hfsb_buf_append(sink, HFSB_LIT(" \xE2\x80\x94 use the read tool with "
                                   "offset/limit to inspect specific "
                                   "sections.\n"));
}

/* ---- a text that is there ---- */

hfsb_status hfsb_text_truncate(hfsb_str text, const hfsb_text_limit *limit,
                               hfsb_str spill_path, hfsb_buf *out,
                               bool *truncated, hfsb_err *err) {
    size_t          mark = out->len;
    hfsb_text_limit lim;
    size_t          total;
    if (!hfsbi_limit_resolve(limit, &lim))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The head to keep is %zu characters but the whole "
                          "limit only %zu: make head at most chars.",
                          lim.head, lim.chars);
    total = hfsb_utf8_count(text);
    if (total <= lim.chars) {
        hfsb_buf_append(out, text);
    } else {
        size_t head = hfsb_utf8_offset(text, lim.head);
        size_t left_out = total - lim.chars;
        size_t tail =
            head +
            hfsb_utf8_offset(hfsb_str_slice(text, head, text.len), left_out);
        hfsb_buf_append(out, hfsb_str_slice(text, 0, head));
        hfsbi_put_marker(out, &lim, total, spill_path, 0);
        hfsb_buf_append(out, hfsb_str_slice(text, tail, text.len));
    }
    if (hfsb_buf_finish(out, mark) != HFSB_OK)
        return hfsbi_fail_status(err, out->status, "Truncated text");
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
        if (mark < hfsbi_window_bytes(head_max))
            hfsb_buf_append(&w->head, hfsb_str_slice(piece, 0, to_head));
        rest = 0;
    }
    if (w->head.status != HFSB_OK ||
        !hfsbi_window_tail(w, hfsb_str_slice(piece, to_head, piece.len), rest,
                           n - n_head)) {
        hfsb_buf_truncate(&w->head, mark); /* the next write may succeed */
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
static void hfsbi_put_kept(hfsb_buf *sink, const hfsb_text_window *w) {
    hfsb_str first, second;
    hfsbi_ring_views(w, &first, &second);
    if (!hfsb_text_window_truncated(w))
        hfsb_buf_append(sink, hfsb_buf_str(&w->head));
    hfsb_buf_append(sink, first);
    hfsb_buf_append(sink, second);
}

/* The last n characters of w, of which it holds at least so many. */
static void hfsbi_put_last(hfsb_buf *sink, const hfsb_text_window *w,
                           size_t n) {
    hfsb_buf kept = HFSB_INIT;
    size_t   mark;
    hfsb_str text;
    kept.alloc = w->alloc;
    mark = kept.len;
    hfsbi_put_kept(&kept, w);
    if (hfsb_buf_finish(&kept, mark) != HFSB_OK) sink->status = kept.status;
    text = hfsb_buf_str(&kept);
    hfsb_buf_append(
        sink,
        hfsb_str_slice(text, hfsb_utf8_offset(text, hfsb_utf8_count(text) - n),
                       text.len));
    hfsb_buf_free(&kept);
}

HFSBI_FN hfsb_status hfsbi_text_windows_show(const hfsb_text_window *a,
                                             const hfsb_text_window *b,
                                             hfsb_str spill_path, size_t saved,
                                             hfsb_buf *out) {
    size_t mark = out->len;
    size_t head = a->limit.head, tail = a->limit.chars - head;
    size_t total = a->total + b->total, from_a;
    if (total <= a->limit.chars) {
        hfsbi_put_kept(out, a);
        hfsbi_put_kept(out, b);
        return hfsb_buf_finish(out, mark);
    }
    from_a = a->total < head ? a->total : head;
    hfsb_buf_append(out, hfsb_buf_str(&a->head));
    hfsb_buf_append(out,
                    hfsb_str_slice(hfsb_buf_str(&b->head), 0,
                                   hfsb_utf8_offset(hfsb_buf_str(&b->head),
                                                    head - from_a)));
    hfsbi_put_marker(out, &a->limit, total, spill_path, saved);
    if (b->total < tail) hfsbi_put_last(out, a, tail - b->total);
    hfsbi_put_last(out, b, b->total < tail ? b->total : tail);
    return hfsb_buf_finish(out, mark);
}

hfsb_status hfsb_text_window_show(const hfsb_text_window *window,
                                  hfsb_str spill_path, hfsb_buf *out) {
    size_t   mark = out->len;
    hfsb_str first, second;
    hfsbi_ring_views(window, &first, &second);
    hfsb_buf_append(out, hfsb_buf_str(&window->head));
    if (hfsb_text_window_truncated(window))
        hfsbi_put_marker(out, &window->limit, window->total, spill_path, 0);
    hfsb_buf_append(out, first);
    hfsb_buf_append(out, second);
    return hfsb_buf_finish(out, mark);
}
