/* closest.c - the place that an old text probably means.

   Pieces of the old text, its longest lines and words, are searched for in
   the file. Every place of a rare piece is a site, with a window of lines
   around it. A window that contains the skeleton of the old text, what
   remains without blanks, quotes, escapes and case, is the place; else the
   window whose lines align best with the old lines.

       old lines   a  b     X  d
       file lines  a  b  c  x  d      X and x: a pair; c: left out

   Only the search for pieces takes time that grows with the file; windows,
   their number and the table of an alignment have limits. */
#include "edit_private.h"

#define HFSBI_SITES       64    /* windows compared */
#define HFSBI_SITE_RARE   16    /* most places of a rare piece */
#define HFSBI_SITE_NEAR   64    /* sites this near are one, in bytes */
#define HFSBI_SITE_MARGIN 512   /* bytes around the old text's length */
#define HFSBI_SITE_LINE   4096  /* longest way to a line's end */
#define HFSBI_SLICE_LINES 128   /* of an old text that are compared */
#define HFSBI_SLICE_BYTES 16384 /* the same in bytes */
#define HFSBI_ALIGN_LINES 256   /* of a window that are compared */
#define HFSBI_ALIGN_CELLS 400000u

/* ---- pieces ---- */

enum { HFSBI_PIECE_LINES = 6, HFSBI_PIECE_WORDS = 10 };

typedef struct hfsbi_piece {
    hfsb_str text;
    size_t   pos; /* in the old text */
} hfsbi_piece;

/* Keeps the longest pieces, longest first, each text once. */
static void hfsbi_piece_add(hfsbi_piece *list, size_t *count, size_t max,
                            hfsb_str text, size_t pos) {
    size_t k;
    for (k = 0; k < *count; k++)
        if (hfsb_str_equal(list[k].text, text)) return;
    if (*count == max && list[max - 1].text.len >= text.len) return;
    if (*count < max) ++*count;
    for (k = *count - 1; k > 0 && list[k - 1].text.len < text.len; k--)
        list[k] = list[k - 1];
    list[k].text = text;
    list[k].pos = pos;
}

static size_t hfsbi_pieces_lines(hfsb_str old_text, hfsbi_piece *list) {
    hfsb_str rest = old_text, line;
    size_t   count = 0;
    while (hfsb_text_line(&rest, &line, NULL)) {
        line = hfsbi_trim(line);
        if (line.len >= 4)
            hfsbi_piece_add(list, &count, HFSBI_PIECE_LINES, line,
                            (size_t)(line.ptr - old_text.ptr));
    }
    return count;
}

/* Words of three or more characters; the letter of an escape such as \n is
   not part of one. */
static size_t hfsbi_pieces_words(hfsb_str old_text, hfsbi_piece *list) {
    size_t i = 0, start, count = 0;
    while (i < old_text.len) {
        start = i;
        while (i < old_text.len && hfsbi_is_word_char(old_text.ptr[i])) i++;
        if (start < i && start && old_text.ptr[start - 1] == '\\') start++;
        if (i >= start + 3)
            hfsbi_piece_add(list, &count, HFSBI_PIECE_WORDS,
                            hfsb_str_slice(old_text, start, i), start);
        if (i < old_text.len) i++;
    }
    return count;
}

/* ---- sites ---- */

/* A place of a piece: the same text in the old text and in the file. */
typedef struct hfsbi_site {
    size_t old_pos, file_pos;
} hfsbi_site;

typedef struct hfsbi_sites {
    hfsbi_site items[HFSBI_SITES];
    size_t     count;
} hfsbi_sites;

/* Adds a site unless another puts the old text at nearly the same place. */
static void hfsbi_site_add(hfsbi_sites *sites, size_t old_pos,
                           size_t file_pos) {
    size_t i, a, b;
    for (i = 0; i < sites->count; i++) {
        a = sites->items[i].file_pos + old_pos;
        b = file_pos + sites->items[i].old_pos;
        if ((a > b ? a - b : b - a) < HFSBI_SITE_NEAR) return;
    }
    if (i == HFSBI_SITES) return;
    sites->items[i].old_pos = old_pos;
    sites->items[i].file_pos = file_pos;
    sites->count++;
}

/* Adds the places of a piece; returns their number, at most max + 1. Adds
   nothing when there are more than max, unless `common`. */
static size_t hfsbi_sites_add(hfsbi_sites *sites, hfsb_str file,
                              hfsbi_piece piece, size_t max, bool common) {
    size_t at = 0, step, n, mark = sites->count;
    for (n = 0; n <= max; n++) {
        step = hfsb_str_find(hfsb_str_slice(file, at, file.len), piece.text);
        if (step == HFSB_NPOS) return n;
        at += step;
        hfsbi_site_add(sites, piece.pos, at);
        at += piece.text.len;
    }
    if (!common) sites->count = mark;
    return n;
}

/* The places of rare pieces; those of a common one if no piece is rare. */
static void hfsbi_sites_find(hfsbi_sites *sites, hfsb_str file,
                             hfsb_str old_text) {
    hfsbi_piece list[HFSBI_PIECE_LINES + HFSBI_PIECE_WORDS], common;
    size_t      lines = hfsbi_pieces_lines(old_text, list), i, rare = 0;
    size_t      count = lines + hfsbi_pieces_words(old_text, list + lines);
    common.text.len = 0;
    for (i = 0; i < count && rare < 4; i++) {
        size_t n =
            hfsbi_sites_add(sites, file, list[i], HFSBI_SITE_RARE, false);
        if (n && n <= HFSBI_SITE_RARE) rare++;
        else if (n && !common.text.len) common = list[i];
    }
    if (!rare && common.text.len)
        hfsbi_sites_add(sites, file, common, HFSBI_SITES, true);
}

/* ---- letters ---- */

/* True for a letter of another script. Punctuation and symbols are left out:
   look-alikes of ASCII are among them. */
static bool hfsbi_is_foreign_letter(unsigned long code) {
    return code >= 0xC0 && !(code >= 0x2000 && code < 0x2C00) &&
           !(code >= 0x3000 && code < 0x3005) && code != 0xFEFF;
}

/* 64 bits, one for each class of adjacent characters in the line. Blanks,
   quotes and characters that have look-alikes do not count. */
static unsigned long long hfsbi_line_letters(hfsb_str line) {
    unsigned long long bits = 0;
    unsigned long      last = 0, code;
    size_t             i, len, end = line.len < 256 ? line.len : 256;
    bool               valid;
    for (i = 0; i < end; i += len) {
        code = (unsigned char)hfsbi_lower(line.ptr[i]);
        len = 1;
        valid = true;
        if (code >= 0x80) len = hfsb_utf8_step(line, i, &code, &valid);
        if (!valid || (code >= 0x7F && !hfsbi_is_foreign_letter(code)) ||
            code <= ' ' || code == '\'' || code == '"' || code == '-' ||
            code == '.')
            continue;
        bits |= 1ull << ((last * 31 + code) & 63u);
        last = code;
    }
    return bits;
}

static unsigned hfsbi_count_bits(unsigned long long bits) {
    unsigned n = 0;
    for (; bits; bits &= bits - 1) n++;
    return n;
}

/* How many eighths of the letters of two lines agree, 0 to 8. */
static int hfsbi_likeness(unsigned long long a, unsigned long long b) {
    unsigned all = hfsbi_count_bits(a | b);
    return all ? (int)(hfsbi_count_bits(a & b) * 8 / all) : 0;
}

/* When no piece is in the file: the line most like the longest old line, if
   five in eight letters agree. */
static void hfsbi_sites_by_letters(hfsbi_sites *sites, hfsb_str file,
                                   hfsb_str old_text) {
    hfsbi_piece        list[HFSBI_PIECE_LINES];
    size_t             count = hfsbi_pieces_lines(old_text, list);
    hfsb_str           rest = file, line;
    unsigned long long sign;
    int                most = 4, like;
    if (!count) return;
    sign = hfsbi_line_letters(list[0].text);
    if (hfsbi_count_bits(sign) < 4) return;
    while (hfsb_text_line(&rest, &line, NULL)) {
        line = hfsbi_trim(line);
        if (line.len < list[0].text.len / 2 || line.len / 2 > list[0].text.len)
            continue;
        like = hfsbi_likeness(sign, hfsbi_line_letters(line));
        if (like <= most) continue;
        most = like;
        sites->count = 1;
        sites->items[0].old_pos = list[0].pos;
        sites->items[0].file_pos = (size_t)(line.ptr - file.ptr);
    }
}

/* ---- skeletons ---- */

/* The next byte of the skeleton at or after *pos, 0 at the end. *pos moves
   after it; *at is where it was. */
static char hfsbi_skeleton_next(hfsb_str s, size_t *pos, size_t *at) {
    while (*pos < s.len) {
        hfsb_str      rest = hfsb_str_slice(s, *pos, s.len);
        char          c = rest.ptr[0];
        size_t        len = 1;
        unsigned long code;
        *at = *pos;
        if (c == '&') len = hfsbi_entity_at(rest, &c);
        if (c == '\\' && rest.len > 1 && memchr("ntr", rest.ptr[1], 3))
            len = 2;
        else if (c == '\\') len = hfsbi_unicode_escape(rest, &code);
        *pos += len ? len : 1;
        if (c > ' ' && c < 0x7F && !memchr("'\"`-.\\", c, 6))
            return hfsbi_lower(c);
    }
    return 0;
}

/* Appends the skeleton of s; *start and *end are the bytes of s that it
   spans. The caller checks out->status. */
static void hfsbi_skeleton(hfsb_str s, hfsb_buf *out, size_t *start,
                           size_t *end) {
    size_t pos = 0, at = 0, mark = out->len;
    char   c;
    *start = *end = 0;
    out->status = hfsb_buf_reserve(out, s.len);
    while (out->status == HFSB_OK &&
           (c = hfsbi_skeleton_next(s, &pos, &at)) != 0) {
        if (out->len == mark) *start = at;
        *end = pos;
        out->ptr[out->len++] = c;
    }
}

/* The bytes of s whose skeleton is [from, to) of its skeleton. */
static void hfsbi_skeleton_span(hfsb_str s, size_t from, size_t to,
                                size_t *start, size_t *end) {
    size_t n = 0, pos = 0, at = 0;
    while (n < to && hfsbi_skeleton_next(s, &pos, &at))
        if (n++ == from) *start = at;
    *end = pos;
}

/* True when [start, end) does not begin or end inside a word. */
static bool hfsbi_spans_words(hfsb_str s, size_t start, size_t end) {
    return !(start > 0 && hfsbi_is_word_char(s.ptr[start - 1]) &&
             hfsbi_is_word_char(s.ptr[start]) &&
             !(start > 1 && s.ptr[start - 2] == '\\')) &&
           !(end < s.len && hfsbi_is_word_char(s.ptr[end - 1]) &&
             hfsbi_is_word_char(s.ptr[end]));
}

/* ---- one window ---- */

/* The search for a place. */
typedef struct hfsbi_nearby {
    const hfsb_alloc      *alloc;
    const hfsbi_edit_text *file;
    hfsb_str               old_text;
    hfsb_str               slice;  /* the part of it that is compared */
    hfsb_buf               copy;   /* of a window, with LF only */
    hfsb_str               window; /* lines of the file */
    size_t                 start;  /* of the window in the file */
    size_t                 old_line, line; /* of the site in both */
    hfsb_buf               bones, window_bones;
} hfsbi_nearby;

HFSBI_FN size_t hfsbi_line_back(const hfsbi_edit_text *file, size_t pos) {
    size_t n;
    for (n = 0; n < HFSBI_SITE_LINE && !hfsbi_starts_line(file, pos); n++)
        pos--;
    return pos;
}

static size_t hfsbi_line_forth(const hfsbi_edit_text *file, size_t pos) {
    size_t          end, len;
    hfsbi_edit_text near_text = *file;
    if (pos >= file->text.len) return file->text.len;
    if (near_text.text.len > pos + HFSBI_SITE_LINE)
        near_text.text.len = pos + HFSBI_SITE_LINE;
    end = hfsbi_edit_line_end(&near_text, pos, &len);
    return end + len;
}

/* The lines of the old text around pos: all of it unless it is long. */
static hfsb_str hfsbi_old_slice(hfsb_str text, size_t pos) {
    size_t from = pos, to = pos, n;
    for (n = 0; from > 0 && pos - from < HFSBI_SLICE_BYTES / 2; from--)
        if (text.ptr[from - 1] == '\n' && ++n > HFSBI_SLICE_LINES / 2) break;
    for (n = 0; to < text.len && to - pos < HFSBI_SLICE_BYTES / 2; to++)
        if (text.ptr[to] == '\n' && ++n == HFSBI_SLICE_LINES / 2) break;
    return hfsb_str_slice(text, from, to + 1);
}

/* Sets the slice and the window of a site. */
static void hfsbi_nearby_open(hfsbi_nearby *p, hfsbi_site site) {
    size_t from, before, after, end;
    p->slice = hfsbi_old_slice(p->old_text, site.old_pos);
    from = (size_t)(p->slice.ptr - p->old_text.ptr);
    before = site.old_pos - from;
    after = p->slice.len - before;
    before += before / 2 + HFSBI_SITE_MARGIN;
    after += after / 2 + HFSBI_SITE_MARGIN;
    p->start = site.file_pos > before ? site.file_pos - before : 0;
    p->start = hfsbi_line_back(p->file, p->start);
    end = p->file->text.len - site.file_pos > after ? site.file_pos + after
                                                    : p->file->text.len;
    end = hfsbi_line_forth(p->file, end);
    p->old_line = hfsb_str_count_byte(
        hfsb_str_slice(p->old_text, from, site.old_pos), '\n');
    p->line = hfsbi_count_lines(
        p->file, hfsb_str_slice(p->file->text, p->start, site.file_pos));
    hfsb_buf_truncate(&p->copy, 0);
    p->window = hfsbi_fold_newlines(
        p->file, hfsb_str_slice(p->file->text, p->start, end), &p->copy);
}

/* Number of bytes that two texts share at their start and end. */
static size_t hfsbi_shared_bytes(hfsb_str a, hfsb_str b) {
    size_t least = a.len < b.len ? a.len : b.len, i = 0, k = 0;
    while (i < least && a.ptr[i] == b.ptr[i]) i++;
    while (k < least - i && a.ptr[a.len - 1 - k] == b.ptr[b.len - 1 - k]) k++;
    return i + k;
}

/* Looks for the skeleton of the slice in the window. Of all its places, takes
   the one that shares most bytes with the slice, if more than *most; true
   when there is one. */
static bool hfsbi_nearby_skeleton(hfsbi_nearby *p, hfsb_str *old_core,
                                  hfsb_str *core, size_t *most) {
    size_t   start, end, at = 0, step, from = 0, to = 0, shared;
    hfsb_str bones, old;
    bool     found = false;
    if (p->slice.len < p->old_text.len) return false;
    hfsb_buf_truncate(&p->bones, 0);
    hfsb_buf_truncate(&p->window_bones, 0);
    hfsbi_skeleton(p->slice, &p->bones, &start, &end);
    old = hfsb_str_slice(p->slice, start, end);
    hfsbi_skeleton(p->window, &p->window_bones, &start, &end);
    if (p->bones.status != HFSB_OK || p->window_bones.status != HFSB_OK ||
        p->bones.len < 4)
        return false;
    bones = hfsb_buf_str(&p->window_bones);
    for (;; at += p->bones.len) {
        step = hfsb_str_find(hfsb_str_slice(bones, at, HFSB_NPOS),
                             hfsb_buf_str(&p->bones));
        if (step == HFSB_NPOS) return found;
        at += step;
        hfsbi_skeleton_span(p->window, at, at + p->bones.len, &from, &to);
        shared =
            1 + hfsbi_shared_bytes(old, hfsb_str_slice(p->window, from, to));
        if (shared <= *most || !hfsbi_spans_words(p->window, from, to))
            continue;
        *most = shared;
        *old_core = old;
        *core = hfsb_str_slice(p->window, from, to);
        found = true;
    }
}

/* ---- alignment ---- */

/* A line as it is compared. */
typedef struct hfsbi_side {
    hfsb_str           bare;
    unsigned long long letters;
} hfsbi_side;

enum { HFSBI_STEP_STOP, HFSBI_STEP_PAIR, HFSBI_STEP_FILE, HFSBI_STEP_OLD };

/* The table of an alignment, in one block of memory. Cell (i, j) is about the
   first i old lines and the first j lines of the file. */
typedef struct hfsbi_alignment {
    const hfsb_alloc *alloc;
    size_t            rows, cols, size;
    hfsbi_side       *olds, *lines;
    int              *best;           /* two rows of cols + 1 */
    unsigned char    *step;           /* (rows + 1) * (cols + 1) */
    size_t            old_line, line; /* known to belong together */
} hfsbi_alignment;

static void hfsbi_side_set(hfsbi_side *side, const hfsbi_lines *lines) {
    size_t i;
    for (i = 0; i < lines->count; i++) {
        side[i].bare = hfsbi_trim(lines->items[i]);
        side[i].letters = hfsbi_line_letters(side[i].bare);
    }
}

static bool hfsbi_alignment_make(hfsbi_alignment *a, const hfsbi_lines *olds,
                                 const hfsbi_lines *lines) {
    char  *block;
    size_t cells = (olds->count + 1) * (lines->count + 1);
    a->rows = olds->count;
    a->cols = lines->count;
    a->size = (a->rows + a->cols) * sizeof *a->olds +
              2 * (a->cols + 1) * sizeof *a->best + cells;
    block = (char *)hfsbi_array(a->alloc, a->size, 1);
    if (!block) return false;
    a->olds = (hfsbi_side *)(void *)block;
    a->lines = a->olds + a->rows;
    a->best = (int *)(void *)(a->lines + a->cols);
    a->step = (unsigned char *)(a->best + 2 * (a->cols + 1));
    hfsbi_side_set(a->olds, olds);
    hfsbi_side_set(a->lines, lines);
    return true;
}

/* "..." alone, or in a comment: it matches any number of lines. */
HFSBI_FN bool hfsbi_is_elision(hfsb_str line) {
    static const char signs[] = "/*#<!-;%([{ \t)]}>";
    while (line.len && memchr(signs, line.ptr[0], sizeof signs - 1))
        line = hfsb_str_slice(line, 1, line.len);
    while (line.len && memchr(signs, line.ptr[line.len - 1], sizeof signs - 1))
        line.len--;
    return hfsb_str_equal(line, HFSB_LIT("...")) ||
           hfsb_str_equal(line, HFSB_LIT("\xE2\x80\xA6"));
}

/* True when the lines are the same but for look-alikes. */
static bool hfsbi_looks_equal(const hfsb_alloc *alloc, hfsb_str x,
                              hfsb_str y) {
    hfsb_buf a = HFSB_INIT, b = HFSB_INIT;
    bool     same;
    if (hfsbi_utf8_ascii(x.ptr, x.len) == x.len &&
        hfsbi_utf8_ascii(y.ptr, y.len) == y.len)
        return false;
    a.alloc = b.alloc = *alloc;
    hfsbi_fold(x, HFSBI_FOLD_LOOKS, &a);
    hfsbi_fold(y, HFSBI_FOLD_LOOKS, &b);
    same = a.status == HFSB_OK && b.status == HFSB_OK &&
           hfsb_str_equal(hfsb_buf_str(&a), hfsb_buf_str(&b));
    hfsb_buf_free(&a);
    hfsb_buf_free(&b);
    return same;
}

/* The score of pairing old line i with line j of the file. */
static int hfsbi_pair_score(const hfsbi_alignment *a, size_t i, size_t j) {
    const hfsbi_side *x = a->olds + i, *y = a->lines + j;
    int               like;
    if (!x->bare.len || !y->bare.len)
        return x->bare.len == y->bare.len ? 1 : -4;
    if (hfsb_str_equal(x->bare, y->bare) ||
        (x->letters == y->letters &&
         hfsbi_looks_equal(a->alloc, x->bare, y->bare)))
        return x->bare.len < 4 ? 3 : 8;
    like = hfsbi_likeness(x->letters, y->letters);
    if (like >= 4) return like - 2;
    if (i == a->old_line && j == a->line) return 1;
    return like >= 2 ? -1 : -2;
}

/* Fills one row of the table. */
static void hfsbi_align_row(const hfsbi_alignment *a, size_t i) {
    int           *last = a->best + ((i - 1) & 1u) * (a->cols + 1);
    int           *now = a->best + (i & 1u) * (a->cols + 1);
    unsigned char *step = a->step + i * (a->cols + 1);
    bool           elided = hfsbi_is_elision(a->olds[i - 1].bare);
    size_t         j;
    now[0] = last[0] - (elided ? 0 : 2);
    step[0] = HFSBI_STEP_OLD;
    for (j = 1; j <= a->cols; j++) {
        int file = now[j - 1] - (elided ? 0 : 1);
        int old = last[j] - (elided ? 0 : 2);
        now[j] =
            last[j - 1] + (elided ? -99 : hfsbi_pair_score(a, i - 1, j - 1));
        step[j] = HFSBI_STEP_PAIR;
        if (file > now[j]) {
            now[j] = file;
            step[j] = HFSBI_STEP_FILE;
        }
        if (old > now[j]) {
            now[j] = old;
            step[j] = HFSBI_STEP_OLD;
        }
    }
}

/* Fills the table; *end is the number of lines of the file up to the end of
   the best alignment, the result its score. */
static int hfsbi_align_fill(const hfsbi_alignment *a, size_t *end) {
    int   *last = a->best + (a->rows & 1u) * (a->cols + 1);
    size_t i, j;
    for (j = 0; j <= a->cols; j++) {
        a->best[j] = 0;
        a->step[j] = HFSBI_STEP_STOP;
    }
    for (i = 1; i <= a->rows; i++) hfsbi_align_row(a, i);
    for (*end = 0, j = 1; j <= a->cols; j++)
        if (last[j] > last[*end]) *end = j;
    return last[*end];
}

/* Puts the rows of the best alignment, which ends at line `end`, into c. With
   `whole`, also the lines of the file before and after it. */
static bool hfsbi_align_rows(const hfsbi_alignment *a, size_t end, bool whole,
                             hfsbi_closest *c) {
    size_t i = a->rows, j = whole ? a->cols : end, n = 0;
    c->cap = i + j;
    c->rows =
        (hfsbi_row *)hfsbi_array(&c->copy.alloc, c->cap, sizeof *c->rows);
    if (!c->rows) return false;
    for (;;) {
        unsigned char step = a->step[i * (a->cols + 1) + j];
        hfsbi_row    *row = c->rows + c->cap - 1 - n;
        if (j > end || (step == HFSBI_STEP_STOP && whole && j))
            step = HFSBI_STEP_FILE;
        if (step == HFSBI_STEP_STOP) break;
        row->old_line = step == HFSBI_STEP_FILE ? HFSB_NPOS : --i;
        row->file_line = step == HFSBI_STEP_OLD ? HFSB_NPOS : --j;
        n++;
    }
    memmove(c->rows, c->rows + c->cap - n, n * sizeof *c->rows);
    c->count = n;
    return true;
}

/* Splits the slice and the lines that are compared with it. */
static bool hfsbi_closest_split(hfsbi_nearby *p, hfsb_str lines,
                                hfsbi_closest *c) {
    if (hfsbi_lines_split(p->alloc, p->slice, &c->olds) != HFSB_OK ||
        hfsbi_lines_split(p->alloc, lines, &c->lines) != HFSB_OK)
        return false;
    if (c->olds.count > HFSBI_SLICE_LINES) c->olds.count = HFSBI_SLICE_LINES;
    if (c->lines.count > HFSBI_ALIGN_LINES) c->lines.count = HFSBI_ALIGN_LINES;
    return true;
}

/* Aligns the slice with lines; *score is what that is worth. */
static bool hfsbi_nearby_align(hfsbi_nearby *p, hfsb_str lines, bool whole,
                               hfsbi_closest *c, int *score, size_t *cells) {
    hfsbi_alignment a;
    size_t          end;
    bool            ok = false;
    memset(&a, 0, sizeof a);
    a.alloc = p->alloc;
    a.old_line = p->old_line;
    a.line = whole ? HFSB_NPOS : p->line;
    if (hfsbi_closest_split(p, lines, c) &&
        hfsbi_alignment_make(&a, &c->olds, &c->lines)) {
        *score = hfsbi_align_fill(&a, &end);
        *cells += (a.rows + 1) * (a.cols + 1);
        ok = hfsbi_align_rows(&a, end, whole, c);
        hfsbi_array_free(p->alloc, a.olds, a.size, 1);
    }
    return ok;
}

/* ---- the place ---- */

HFSBI_FN void hfsbi_closest_free(hfsbi_closest *c) {
    hfsbi_array_free(&c->copy.alloc, c->rows, c->cap, sizeof *c->rows);
    hfsbi_lines_free(&c->copy.alloc, &c->olds);
    hfsbi_lines_free(&c->copy.alloc, &c->lines);
    hfsb_buf_free(&c->copy);
    memset(c, 0, sizeof *c);
}

/* The start of the line of pos, or of the one before it. */
static size_t hfsbi_line_up(hfsb_str text, size_t pos, bool before) {
    if (before && pos > 0) pos--;
    while (pos > 0 && text.ptr[pos - 1] != '\n') pos--;
    return pos;
}

/* Whole lines of text around its part. */
static hfsb_str hfsbi_whole_lines(hfsb_str text, hfsb_str part) {
    size_t from = (size_t)(part.ptr - text.ptr), to = from + part.len;
    while (from > 0 && text.ptr[from - 1] != '\n') from--;
    while (to < text.len && text.ptr[to] != '\n') to++;
    return hfsb_str_slice(text, from, to);
}

/* part, which is whole lines of text, and up to head blank lines before it
   and tail after it. */
static hfsb_str hfsbi_add_blank_lines(hfsb_str text, hfsb_str part,
                                      size_t head, size_t tail) {
    size_t from = (size_t)(part.ptr - text.ptr), to = from + part.len, pos;
    for (; head > 0 && from > 0; head--) {
        pos = hfsbi_line_up(text, from, true);
        if (hfsbi_trim(hfsb_str_slice(text, pos, from - 1)).len) break;
        from = pos;
    }
    for (; tail > 0 && to + 1 < text.len; tail--) {
        hfsb_str rest = hfsb_str_slice(text, to + 1, text.len), line;
        hfsb_text_line(&rest, &line, NULL);
        if (hfsbi_trim(line).len) break;
        to += 1 + line.len;
    }
    return hfsb_str_slice(text, from, to + 1);
}

/* Completes *c: equal bytes, line numbers. */
static void hfsbi_closest_finish(hfsbi_nearby *p, hfsb_str lines,
                                 hfsbi_closest *c) {
    size_t i, before = (size_t)(lines.ptr - p->window.ptr);
    bool   part = !hfsb_str_ends(p->slice, HFSB_LIT("\n"));
    c->first_line =
        1 +
        hfsbi_count_lines(p->file,
                          hfsb_str_slice(p->file->text, 0, p->start)) +
        hfsb_str_count_byte(hfsb_str_slice(p->window, 0, before), '\n');
    c->old_first = hfsb_str_count_byte(
        hfsb_str_slice(p->old_text, 0,
                       (size_t)(p->slice.ptr - p->old_text.ptr)),
        '\n');
    if (!before) {
        for (i = p->start; !hfsbi_starts_line(p->file, i);) i--;
        c->before =
            hfsb_utf8_count(hfsb_str_slice(p->file->text, i, p->start));
    }
    for (i = 0; i < c->count; i++) {
        hfsbi_row *row = c->rows + i;
        hfsb_str   o, f;
        row->same = false;
        if (row->old_line == HFSB_NPOS || row->file_line == HFSB_NPOS)
            continue;
        o = c->olds.items[row->old_line];
        f = c->lines.items[row->file_line];
        row->same = hfsb_str_equal(o, f) ||
                    (row->old_line == 0 && o.len && hfsb_str_ends(f, o)) ||
                    (row->old_line + 1 == c->olds.count && part &&
                     hfsb_str_starts(f, o));
    }
    c->copy = p->copy;
    memset(&p->copy, 0, sizeof p->copy);
    c->copy.alloc = p->copy.alloc = *p->alloc;
}

/* The lines around core, with blank lines before and after it as around
   old_core in the slice. */
static hfsb_str hfsbi_nearby_lines(const hfsbi_nearby *p, hfsbi_closest *c) {
    const char *end = p->slice.ptr + p->slice.len;
    size_t      head, tail;
    c->old_around = hfsbi_whole_lines(p->slice, c->old_core);
    c->around = hfsbi_whole_lines(p->window, c->core);
    head = hfsb_str_count_byte(
        hfsb_str_make(p->slice.ptr,
                      (size_t)(c->old_around.ptr - p->slice.ptr)),
        '\n');
    tail = (size_t)(end - (c->old_around.ptr + c->old_around.len));
    tail = hfsb_str_count_byte(hfsb_str_make(end - tail, tail), '\n');
    if (tail) tail--; /* the end of the last line */
    return hfsbi_add_blank_lines(p->window, c->around, head, tail);
}

/* Makes the lines of the window, or those around core if it is not empty, the
   closest ones. */
static void hfsbi_nearby_take(hfsbi_nearby *p, hfsb_str old_core,
                              hfsb_str core, hfsbi_closest *c) {
    hfsb_str lines = p->window;
    size_t   cells = 0;
    int      score;
    c->copy.alloc = *p->alloc;
    c->old_core = old_core;
    c->core = core;
    if (core.len) lines = hfsbi_nearby_lines(p, c);
    if (!hfsbi_nearby_align(p, lines, core.len > 0, c, &score, &cells))
        c->count = 0;
    hfsbi_closest_finish(p, lines, c);
}

/* The site whose window aligns best; HFSB_NPOS if none is good enough. */
static size_t hfsbi_best_site(hfsbi_nearby *p, const hfsbi_sites *sites) {
    size_t i, best = HFSB_NPOS, cells = 0;
    int    most = 0, score = 0;
    for (i = 0; i < sites->count && cells < HFSBI_ALIGN_CELLS; i++) {
        hfsbi_closest c;
        memset(&c, 0, sizeof c);
        c.copy.alloc = *p->alloc;
        hfsbi_nearby_open(p, sites->items[i]);
        if (p->copy.status == HFSB_OK &&
            hfsbi_nearby_align(p, p->window, false, &c, &score, &cells) &&
            (score > most || best == HFSB_NPOS)) {
            most = score;
            best = i;
        }
        hfsbi_closest_free(&c);
    }
    return best;
}

/* In an old text of which only a slice is compared: the first difference after
   the site, or else the first before it. */
static hfsbi_site hfsbi_site_shift(const hfsbi_nearby *p, hfsbi_site site) {
    hfsb_str   old = p->old_text, file = p->file->text, a, b, x, y;
    hfsbi_site s = site;
    if (hfsbi_old_slice(old, site.old_pos).len == old.len) return site;
    s.old_pos = hfsbi_line_up(old, s.old_pos, false);
    s.file_pos = hfsbi_line_up(file, s.file_pos, false);
    a = hfsb_str_slice(old, s.old_pos, old.len);
    b = hfsb_str_slice(file, s.file_pos, file.len);
    site = s;
    while (hfsb_text_line(&a, &x, NULL)) {
        s.old_pos = (size_t)(x.ptr - old.ptr);
        s.file_pos = (size_t)(b.ptr - file.ptr);
        if (!hfsb_text_line(&b, &y, NULL) || !hfsb_str_equal(x, y)) return s;
    }
    for (s = site; s.old_pos > 0 && s.file_pos > 0;) {
        s.old_pos = hfsbi_line_up(old, s.old_pos, true);
        s.file_pos = hfsbi_line_up(file, s.file_pos, true);
        a = hfsb_str_slice(old, s.old_pos, old.len);
        b = hfsb_str_slice(file, s.file_pos, file.len);
        if (!hfsb_text_line(&a, &x, NULL) || !hfsb_text_line(&b, &y, NULL) ||
            !hfsb_str_equal(x, y))
            break;
    }
    return s;
}

/* The site whose window contains the skeleton, with most bytes the same;
   HFSB_NPOS if none does. */
static size_t hfsbi_skeleton_site(hfsbi_nearby *p, const hfsbi_sites *sites) {
    hfsb_str old_core, core;
    size_t   i, best = HFSB_NPOS, most = 0;
    for (i = 0; i < sites->count; i++) {
        hfsbi_nearby_open(p, sites->items[i]);
        if (p->copy.status != HFSB_OK) return HFSB_NPOS;
        if (hfsbi_nearby_skeleton(p, &old_core, &core, &most)) best = i;
    }
    return best;
}

/* When no piece is in the file: adds all of it if it is small. */
static void hfsbi_sites_everywhere(hfsbi_sites *sites, hfsb_str file) {
    size_t i;
    if (file.len > HFSBI_SITES * HFSBI_SITE_MARGIN) return;
    for (i = 0; i * HFSBI_SITE_MARGIN < file.len; i++)
        hfsbi_site_add(sites, 0, i * HFSBI_SITE_MARGIN);
}

/* Opens the site of the closest place; false when not found. */
static bool hfsbi_nearby_find(hfsbi_nearby *p, hfsbi_sites *sites,
                              hfsb_str *old_core, hfsb_str *core) {
    hfsb_str file = p->file->text;
    size_t   i, most = 0;
    bool     pieces;
    hfsbi_sites_find(sites, file, p->old_text);
    pieces = sites->count > 0;
    if (!pieces) hfsbi_sites_everywhere(sites, file);
    i = hfsbi_skeleton_site(p, sites);
    if (i != HFSB_NPOS) {
        hfsbi_nearby_open(p, sites->items[i]);
        return hfsbi_nearby_skeleton(p, old_core, core, &most);
    }
    if (!pieces) {
        sites->count = 0;
        hfsbi_sites_by_letters(sites, file, p->old_text);
    }
    i = hfsbi_best_site(p, sites);
    if (i == HFSB_NPOS) return false;
    hfsbi_nearby_open(p, hfsbi_site_shift(p, sites->items[i]));
    return p->copy.status == HFSB_OK;
}

HFSBI_FN void hfsbi_closest_find(const hfsb_alloc      *alloc,
                                 const hfsbi_edit_text *file,
                                 hfsb_str old_text, hfsbi_closest *c) {
    hfsbi_nearby p;
    hfsbi_sites  sites;
    hfsb_str     old_core = HFSB_INIT, core = HFSB_INIT;
    memset(&p, 0, sizeof p);
    memset(c, 0, sizeof *c);
    sites.count = 0;
    p.alloc = alloc;
    p.file = file;
    p.old_text = old_text;
    p.copy.alloc = p.bones.alloc = p.window_bones.alloc = *alloc;
    c->copy.alloc = *alloc;
    if (hfsbi_nearby_find(&p, &sites, &old_core, &core))
        hfsbi_nearby_take(&p, old_core, core, c);
    hfsb_buf_free(&p.copy);
    hfsb_buf_free(&p.bones);
    hfsb_buf_free(&p.window_bones);
}
