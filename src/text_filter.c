/* text_filter.c - command output made readable. Depends on: base, utf8.

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
#include "internal.h"

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
    size_t        len;     /* cells in the line */
    size_t        cursor;  /* at most len, unless len is 0 */
    size_t        erased;  /* cells to blank once the line is rewritten */
    hfsbi_escape  escape;
    unsigned      arg;     /* parameter of the CSI, HFSBI_ARG_ODD: not one
                              plain number */
    unsigned char part[4]; /* start of a character that is not complete */
    size_t        part_len;
} hfsbi_line;

#define HFSBI_ARG_ODD 1000u

struct hfsb_text_filter {
    hfsbi_line  line;
    uint32_t   *cells;
    size_t      cap;
    uint32_t   *spare; /* the cells at the start of the call */
    size_t      spare_cap;
    hfsb_alloc  alloc;
};

/* ---- giving out cells ---- */

static void hfsbi_cells_put(hfsbi_sink *sink, const uint32_t *cells,
                            size_t count) {
    char   text[1024];
    size_t i = 0, n = 0;
    while (i < count) {
        if (cells[i] < 0x80) text[n++] = (char)(unsigned char)cells[i];
        else n += hfsb_utf8_encode(cells[i], text + n);
        i++;
        if (n + 4 <= sizeof text && i < count) continue;
        hfsbi_put(sink, hfsb_str_make(text, n));
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
static size_t hfsbi_cells_room(hfsb_text_filter *f, size_t n,
                               hfsbi_sink *sink) {
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
                             hfsbi_sink *sink) {
    hfsbi_line_settle(f);
    if (!hfsbi_cells_room(f, 1, sink)) return;
    f->cells[f->line.cursor] = (uint32_t)code;
    hfsbi_line_advance(f, 1);
}

static void hfsbi_print_ascii(hfsb_text_filter *f, hfsb_str s,
                              hfsbi_sink *sink) {
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
static void hfsbi_print_text(hfsb_text_filter *f, hfsb_str s,
                             hfsbi_sink *sink) {
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
static void hfsbi_take_plain(hfsb_text_filter *f, hfsb_str s,
                             hfsbi_sink *sink) {
    size_t end;
    if (f->line.len > 0 || f->line.cursor > 0) {
        end = hfsb_str_find_byte(s, '\n');
        hfsbi_print_text(f, hfsb_str_slice(s, 0, end), sink);
        if (end == HFSB_NPOS) return;
        hfsbi_cells_put(sink, f->cells, f->line.len);
        hfsbi_put_byte(sink, '\n');
        hfsbi_line_clear(&f->line);
        s = hfsb_str_slice(s, end + 1, s.len);
    }
    for (end = s.len; end > 0 && s.ptr[end - 1] != '\n';) end--;
    hfsbi_put(sink, hfsb_str_slice(s, 0, end));
    hfsbi_print_text(f, hfsb_str_slice(s, end, s.len), sink);
}

/* ---- the rest of the input's grammar ---- */

/* A character that is ill-formed, or cut by the end of this piece or of the
   one before. Returns how many bytes of s were taken. */
static size_t hfsbi_take_char(hfsb_text_filter *f, hfsb_str s,
                              hfsbi_sink *sink) {
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
                              hfsbi_sink *sink) {
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
                              hfsbi_sink *sink) {
    size_t i = 0;
    while (i < piece.len && sink->status == HFSB_OK) {
        hfsb_str rest = hfsb_str_slice(piece, i, piece.len);
        if (f->line.escape != HFSBI_ESC_NONE &&
            hfsbi_take_escape(f, (unsigned char)rest.ptr[0]))
            i++;
        else if (f->line.part_len > 0)
            i += hfsbi_take_char(f, rest, sink);
        else
            i += hfsbi_take_text(f, rest, sink);
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
    hfsbi_sink sink = hfsbi_sink_begin(out);
    if (!hfsbi_filter_save(filter)) return HFSB_NOMEM;
    hfsbi_filter_take(filter, piece, &sink);
    if (hfsbi_sink_end(&sink) != HFSB_OK) hfsbi_filter_undo(filter, &line);
    return sink.status;
}

hfsb_status hfsb_text_filter_finish(hfsb_text_filter *filter,
                                    hfsb_buf         *out) {
    hfsbi_line line = filter->line, none = HFSB_INIT;
    hfsbi_sink sink = hfsbi_sink_begin(out);
    if (!hfsbi_filter_save(filter)) return HFSB_NOMEM;
    if (line.part_len > 0) hfsbi_print_char(filter, 0xFFFD, &sink);
    hfsbi_cells_put(&sink, filter->cells, filter->line.len);
    filter->line = none;
    if (hfsbi_sink_end(&sink) != HFSB_OK) hfsbi_filter_undo(filter, &line);
    return sink.status;
}

hfsb_status hfsb_text_filter_peek(const hfsb_text_filter *filter,
                                  hfsb_buf               *out) {
    hfsbi_sink sink = hfsbi_sink_begin(out);
    hfsbi_cells_put(&sink, filter->cells, filter->line.len);
    return hfsbi_sink_end(&sink);
}
