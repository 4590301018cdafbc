/* text.c - lines, readable command output, and head and tail of long text.

   Three independent parts, in this order:
   - lines end at LF or CRLF, nothing else;
   - the filter shows command output as a terminal would leave it, a line at
     a time, so that a progress bar is one line;
   - truncation keeps the head and the tail of a text. The window does the
     same for a text that arrives in pieces, in memory bounded by the limit.

   A failed call changes neither the filter nor the window. */
#include "core_private.h"

/* ---- lines ---- */

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

/* ---- the filter: a line as a terminal would leave it ---- */

/* A line is a row of cells with a cursor. A cell is one code point, even if it
   is a wide or combining character: widths are ignored.
     a character   overwrites the cell at the cursor and advances it;
     CR            moves the cursor to cell 0;
     BS            moves it back by one, at most to cell 0;
     LF            ends the line and writes all cells, wherever the cursor is,
                   so CRLF and CR CR LF are one LF;
     CSI G, 1 G    as CR (spinners return to column 1 that way);
     CSI K, 1 K, 2 K  erase from the cursor on, up to the cursor, or all.
   TAB, BEL, NUL and the other controls are ordinary characters.

   Unlike in a terminal, an erase with the cursor at the end of the line has
   no effect until the line is written to again after a CR or BS. Programs
   clear a line to rewrite it: `10% CSI 2 K CR done` is `done`. But when
   nothing follows, `plain CSI 2 K` stays `plain`, because printed text is
   worth more to a reader than an empty line.

   Escape sequences (ECMA-48), all removed:
     ESC [  0x30-0x3F ...  0x20-0x2F ...  0x40-0x7E      CSI
     ESC ] or P X ^ _  ...  BEL or ESC \ or before LF    OSC DCS SOS PM APC
     ESC  0x20-0x2F ...  0x30-0x7E                       charset selection
     ESC  0x30-0x7E                                      two characters
   A byte that cannot continue a sequence ends it and is an ordinary byte: a LF
   in the middle of a broken CSI is a LF. ESC always starts a new sequence.
   Other cursor movement is removed and has no effect.

   At most HFSBI_LINE_MAX cells are kept: when a character is printed at the
   end of a full row, its first half is written for good. */

#ifndef HFSBI_LINE_MAX /* the fuzz target makes it small */
#define HFSBI_LINE_MAX 16384u
#endif

typedef enum hfsbi_escape {
    HFSBI_ESC_NONE,
    HFSBI_ESC_START,  /* after ESC */
    HFSBI_ESC_MIDDLE, /* after ESC and intermediate bytes */
    HFSBI_ESC_CSI,
    HFSBI_ESC_STRING
} hfsbi_escape;

/* Everything that a write changes, except the cells. */
typedef struct hfsbi_line {
    size_t        len;    /* cells in the line */
    size_t        cursor; /* at most len, unless len is 0 */
    size_t        erased; /* cells to blank once the line is rewritten */
    hfsbi_escape  escape;
    unsigned      arg;     /* parameter of the CSI; HFSBI_ARG_ODD: not a
                              single small number */
    unsigned char part[4]; /* an incomplete character */
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

/* ---- the filter: cells ---- */

/* Appends cells as UTF-8, through a small buffer. */
static void hfsbi_cells_put(hfsb_buf *out, const uint32_t *cells,
                            size_t count) {
    char   text[1024];
    size_t i = 0, n = 0;
    while (i < count) {
        if (cells[i] < 0x80) text[n++] = (char)(unsigned char)cells[i];
        else n += hfsb_utf8_encode(cells[i], text + n);
        i++;
        if (n + 4 <= sizeof text && i < count) continue;
        hfsb_buf_append(out, hfsb_str_make(text, n));
        n = 0;
    }
}

static void hfsbi_line_clear(hfsbi_line *line) {
    line->len = line->cursor = line->erased = 0;
}

static void hfsbi_cells_blank(hfsb_text_filter *f, size_t from, size_t to) {
    for (; from < to; from++) f->cells[from] = ' ';
}

/* Makes room for up to n cells from the cursor on, writing the first half of a
   full row. Returns the number of cells there is room for, at least one, or 0
   when out of memory. */
static size_t hfsbi_cells_room(hfsb_text_filter *f, size_t n, hfsb_buf *out) {
    hfsbi_line  *l = &f->line;
    const size_t half = HFSBI_LINE_MAX / 2;
    void        *grown;
    if (l->cursor == HFSBI_LINE_MAX) { /* and so is len */
        hfsbi_cells_put(out, f->cells, half);
        memmove(f->cells, f->cells + half, half * sizeof *f->cells);
        l->cursor = l->len = half;
        l->erased = l->erased > half ? l->erased - half : 0;
    }
    if (n > HFSBI_LINE_MAX - l->cursor) n = HFSBI_LINE_MAX - l->cursor;
    grown = hfsbi_array_grow(&f->alloc, f->cells, &f->cap, l->cursor + n,
                             sizeof *f->cells);
    if (!grown) {
        out->status = HFSB_NOMEM;
        return 0;
    }
    f->cells = (uint32_t *)grown;
    return n;
}

/* Before the line changes: performs a pending erase, if a CR or BS followed
   it. */
static void hfsbi_line_erase_pending(hfsb_text_filter *f) {
    hfsbi_line *l = &f->line;
    if (l->erased == 0 || l->cursor >= l->len) return;
    if (l->erased < l->len) hfsbi_cells_blank(f, 0, l->erased);
    else l->len = 0;
    l->erased = 0;
}

/* Moves the cursor past n cells that were written. */
static void hfsbi_line_advance(hfsb_text_filter *f, size_t n) {
    hfsbi_line *l = &f->line;
    if (l->cursor > l->len) hfsbi_cells_blank(f, l->len, l->cursor);
    l->cursor += n;
    if (l->len < l->cursor) l->len = l->cursor;
}

static void hfsbi_print_char(hfsb_text_filter *f, unsigned long code,
                             hfsb_buf *out) {
    hfsbi_line_erase_pending(f);
    if (!hfsbi_cells_room(f, 1, out)) return;
    f->cells[f->line.cursor] = (uint32_t)code;
    hfsbi_line_advance(f, 1);
}

static void hfsbi_print_ascii(hfsb_text_filter *f, hfsb_str s, hfsb_buf *out) {
    hfsbi_line_erase_pending(f);
    while (s.len > 0) {
        size_t    n = hfsbi_cells_room(f, s.len, out), i;
        uint32_t *to;
        if (n == 0) return;
        to = f->cells + f->line.cursor;
        for (i = 0; i < n; i++) to[i] = (unsigned char)s.ptr[i];
        hfsbi_line_advance(f, n);
        s = hfsb_str_slice(s, n, s.len);
    }
}

/* CSI K: mode 0 erases from the cursor on, 1 up to the cursor, 2 all. */
static void hfsbi_line_erase(hfsb_text_filter *f, unsigned mode) {
    hfsbi_line *l = &f->line;
    if (l->cursor >= l->len) {
        if (mode > 0) l->erased = l->len;
        return;
    }
    hfsbi_line_erase_pending(f);
    if (mode == 0 && l->cursor < l->len) l->len = l->cursor;
    if (mode == 2 || (mode == 1 && l->cursor + 1 >= l->len)) l->len = 0;
    if (mode == 1 && l->len > 0) hfsbi_cells_blank(f, 0, l->cursor + 1);
}

/* ---- the filter: plain text ---- */

/* Number of bytes at the start of s that are ASCII other than ESC, CR and
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
        esc = v ^ ones * 27; /* zero bytes where v has ESC */
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

/* The same, with well-formed characters beyond ASCII. */
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

/* Prints plain text without LF. */
static void hfsbi_print_text(hfsb_text_filter *f, hfsb_str s, hfsb_buf *out) {
    size_t i = 0;
    while (i < s.len) {
        hfsb_str      rest = hfsb_str_slice(s, i, s.len);
        size_t        n = hfsbi_plain_ascii(rest);
        unsigned long code;
        if (n > 0) {
            hfsbi_print_ascii(f, hfsb_str_slice(rest, 0, n), out);
        } else {
            n = hfsb_utf8_step(rest, 0, &code, NULL);
            hfsbi_print_char(f, code, out);
        }
        i += n;
    }
}

/* Prints plain text. Lines that begin and end in it need no cells. */
static void hfsbi_take_plain(hfsb_text_filter *f, hfsb_str s, hfsb_buf *out) {
    size_t end;
    if (f->line.len > 0 || f->line.cursor > 0) {
        end = hfsb_str_find_byte(s, '\n');
        hfsbi_print_text(f, hfsb_str_slice(s, 0, end), out);
        if (end == HFSB_NPOS) return;
        hfsbi_cells_put(out, f->cells, f->line.len);
        hfsb_buf_append_byte(out, '\n');
        hfsbi_line_clear(&f->line);
        s = hfsb_str_slice(s, end + 1, s.len);
    }
    for (end = s.len; end > 0 && s.ptr[end - 1] != '\n';) end--;
    hfsb_buf_append(out, hfsb_str_slice(s, 0, end));
    hfsbi_print_text(f, hfsb_str_slice(s, end, s.len), out);
}

/* ---- the filter: escape sequences and incomplete characters ---- */

/* Reads a character that is ill-formed, or cut by the end of this piece or the
   previous one. Returns the bytes of s used. */
static size_t hfsbi_take_char(hfsb_text_filter *f, hfsb_str s, hfsb_buf *out) {
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
        memcpy(l->part, text, n); /* the next piece may complete it */
        l->part_len = n;
        return s.len;
    }
    l->part_len = 0;
    hfsbi_print_char(f, code, out);
    return n - had;
}

/* True when c belongs to the escape sequence; otherwise the sequence has ended
   and c is an ordinary byte. */
static bool hfsbi_take_escape(hfsb_text_filter *f, unsigned char c) {
    hfsbi_line  *l = &f->line;
    hfsbi_escape was = l->escape;
    if (was == HFSBI_ESC_STRING) {
        if (c == 7 || c == 10 || c == 27) l->escape = HFSBI_ESC_NONE;
        return c != 10 && c != 27; /* ESC \ is itself a sequence */
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
        hfsbi_line_erase(f, l->arg);
    if (was == HFSBI_ESC_CSI && c == 'G' && l->arg <= 1) l->cursor = 0;
    return c >= 0x30 && c <= 0x7E;
}

/* Reads at least a byte of s, outside sequences; returns the bytes used. */
static size_t hfsbi_take_text(hfsb_text_filter *f, hfsb_str s, hfsb_buf *out) {
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
    if (n == 0) return hfsbi_take_char(f, s, out);
    hfsbi_take_plain(f, hfsb_str_slice(s, 0, n), out);
    return n;
}

static void hfsbi_filter_take(hfsb_text_filter *f, hfsb_str piece,
                              hfsb_buf *out) {
    size_t i = 0;
    while (i < piece.len && out->status == HFSB_OK) {
        hfsb_str rest = hfsb_str_slice(piece, i, piece.len);
        if (f->line.escape != HFSBI_ESC_NONE &&
            hfsbi_take_escape(f, (unsigned char)rest.ptr[0]))
            i++;
        else if (f->line.part_len > 0) i += hfsbi_take_char(f, rest, out);
        else i += hfsbi_take_text(f, rest, out);
    }
}

/* ---- the filter: calls ---- */

/* Copies the cells, so that a failed call can be undone. */
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

/* Restores the cells from the copy, and the rest of the line. */
static void hfsbi_filter_undo(hfsb_text_filter *f, const hfsbi_line *line) {
    uint32_t *cells = f->cells;
    size_t    cap = f->cap;
    f->cells = f->spare;
    f->cap = f->spare_cap;
    f->spare = cells;
    f->spare_cap = cap;
    f->line = *line;
}

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

hfsb_status hfsb_text_clean(hfsb_str text, hfsb_buf *out) {
    hfsb_text_filter *f = hfsb_text_filter_open(&out->alloc);
    size_t            mark = out->len;
    hfsb_status       st = f ? HFSB_OK : HFSB_NOMEM;
    if (st == HFSB_OK) st = hfsb_text_filter_write(f, text, out);
    if (st == HFSB_OK) st = hfsb_text_filter_finish(f, out);
    hfsb_text_filter_close(f);
    if (st != HFSB_OK) hfsb_buf_truncate(out, mark);
    return st;
}

/* ---- truncation ---- */

/* Resolves the defaults of the limit; false when head is above chars. */
static bool hfsbi_limit_resolve(const hfsb_text_limit *limit,
                                hfsb_text_limit       *out) {
    out->chars = limit && limit->chars ? limit->chars : 25000;
    out->head = limit && limit->head ? limit->head : out->chars / 4;
    return out->head <= out->chars;
}

/* 1234567 as 1,234,567 */
static void hfsbi_put_grouped(hfsb_buf *out, size_t n) {
    char   text[sizeof n * 4];
    size_t at = sizeof text, digits = 0;
    do {
        if (digits > 0 && digits % 3 == 0) text[--at] = ',';
        text[--at] = (char)('0' + n % 10);
        digits++;
        n /= 10;
    } while (n > 0);
    hfsb_buf_append(out, hfsb_str_make(text + at, sizeof text - at));
}

HFSBI_FN void hfsbi_text_put_marker(hfsb_buf              *out,
                                    const hfsb_text_limit *limit, size_t total,
                                    hfsb_str spill_path, size_t saved) {
    hfsb_buf_append(out, HFSB_LIT("\n\n... ("));
    hfsbi_put_grouped(out, total - limit->chars);
    hfsb_buf_append(out, HFSB_LIT(" of "));
    hfsbi_put_grouped(out, total);
    hfsb_buf_append(out, HFSB_LIT(" chars omitted, showing first "));
    hfsbi_put_grouped(out, limit->head);
    hfsb_buf_append(out, HFSB_LIT(" + last "));
    hfsbi_put_grouped(out, limit->chars - limit->head);
    hfsb_buf_append(out, HFSB_LIT(") ...\n"));
    if (spill_path.len == 0) return;
    if (saved == 0) {
        hfsb_buf_append(out, HFSB_LIT("Full output saved to "));
    } else {
        hfsb_buf_append(out, HFSB_LIT("Only the first "));
        hfsbi_put_grouped(out, saved);
        hfsb_buf_append(out, HFSB_LIT(" bytes of output saved to "));
    }
    hfsb_buf_append(out, spill_path);
    hfsb_buf_append(out, HFSB_LIT(" \xE2\x80\x94 use the read tool with "
                                  "offset/limit to inspect specific "
                                  "sections.\n"));
}

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
        hfsbi_text_put_marker(out, &lim, total, spill_path, 0);
        hfsb_buf_append(out, hfsb_str_slice(text, tail, text.len));
    }
    if (hfsb_buf_finish(out, mark) != HFSB_OK)
        return hfsbi_fail_status(err, out->status, "Truncated text");
    if (truncated) *truncated = total > lim.chars;
    return hfsbi_ok(err);
}

/* ---- the window: truncation of a text that arrives in pieces ---- */

/* `head` holds the first limit.head characters, the ring the last of the
   others, so a text within the limit is held completely.

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

/* The largest size of `chars` characters. */
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

/* Makes room for need bytes in total, growing to at most max. */
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

/* Drops the first n characters: of each the first byte and its continuation
   bytes. */
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

/* Number of bytes at the start of piece that continue the last character of
   the previous piece. */
static size_t hfsbi_window_rest(hfsb_str piece) {
    return hfsbi_utf8_ceil(hfsb_str_slice(piece, 0, 3), 0);
}

/* Appends text, of n characters, to the ring, dropping what exceeds the limit.
   The first `rest` bytes continue the last character of the ring and are not
   counted in n. max bounds the ring even when the bytes are not UTF-8. */
static bool hfsbi_window_tail(hfsb_text_window *w, hfsb_str text, size_t rest,
                              size_t n) {
    size_t room = w->limit.chars - w->limit.head;
    size_t max = hfsbi_window_bytes(room), need;
    size_t keep = n < room ? n : room;
    size_t drop = w->chars > room - keep ? w->chars - (room - keep) : 0;
    bool   fresh = drop == w->chars;
    if (fresh) { /* the character that `rest` continues is dropped too */
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

/* Appends all of a window that is not truncated, else its tail. */
static void hfsbi_put_kept(hfsb_buf *out, const hfsb_text_window *w) {
    hfsb_str first, second;
    hfsbi_ring_views(w, &first, &second);
    if (!hfsb_text_window_truncated(w))
        hfsb_buf_append(out, hfsb_buf_str(&w->head));
    hfsb_buf_append(out, first);
    hfsb_buf_append(out, second);
}

/* Appends the last n characters of w, which holds at least n. */
static void hfsbi_put_last(hfsb_buf *out, const hfsb_text_window *w,
                           size_t n) {
    hfsb_buf kept = HFSB_INIT;
    hfsb_str text;
    kept.alloc = w->alloc;
    hfsbi_put_kept(&kept, w);
    if (hfsb_buf_finish(&kept, 0) != HFSB_OK) out->status = kept.status;
    text = hfsb_buf_str(&kept);
    hfsb_buf_append(
        out,
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
    hfsbi_text_put_marker(out, &a->limit, total, spill_path, saved);
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
        hfsbi_text_put_marker(out, &window->limit, window->total, spill_path,
                              0);
    hfsb_buf_append(out, first);
    hfsb_buf_append(out, second);
    return hfsb_buf_finish(out, mark);
}
