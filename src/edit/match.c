/* match.c - the ladder: where in a file the old text stands.

   Rungs 1 to 6 search a folded view of the file for the folded old text;
   rungs 7 to 9 search the sequence of its lines' hashes. Only the parts of the
   file around an anchor, a piece of the old text that every rung leaves as it
   is, can match, so only those are folded: on a large file that is nearly
   nothing. */
#include "edit_private.h"

/* ---- the search under way ---- */

typedef struct hfsbi_search {
    const hfsb_alloc *alloc;
    const hfsbi_file *file;
    hfsb_str          old_text;
    hfsbi_match      *windows; /* whole lines that can hold a match */
    size_t            window_count, window_cap;
    hfsbi_view        needle, view;
    size_t           *fail; /* of the needle, for Knuth-Morris-Pratt */
    size_t            fail_cap;
    hfsbi_row_search  row_search;
    hfsbi_match       last; /* a match without its newline, if flagged so */
    bool              blank_first; /* old text begins with a blank line */
    hfsbi_found      *found;
} hfsbi_search;

static hfsb_status hfsbi_push(const hfsb_alloc *alloc, hfsbi_match **items,
                              size_t *count, size_t *cap, size_t start,
                              size_t end) {
    hfsbi_match *p = (hfsbi_match *)hfsbi_array_grow(alloc, *items, cap,
                                                     *count + 1, sizeof *p);
    if (!p) return HFSB_NOMEM;
    *items = p;
    p += (*count)++;
    p->start = start;
    p->end = end;
    p->drop_newline = p->overlaps = false;
    return HFSB_OK;
}

/* Takes a match; one that overlaps the last is only noted. */
static hfsb_status hfsbi_take(hfsbi_search *s, size_t start, size_t end) {
    hfsbi_found *f = s->found;
    if (f->count && start < f->items[f->count - 1].end) {
        f->overlapping = f->items[f->count - 1].overlaps = true;
        return HFSB_OK;
    }
    return hfsbi_push(s->alloc, &f->items, &f->count, &f->cap, start, end);
}

/* ---- windows ---- */

/* A byte that every fold leaves alone and that no fold produces. A single dot
   is one too; three may stand for an ellipsis. */
static bool hfsbi_is_anchor_byte(hfsb_str s, size_t i) {
    char c = s.ptr[i];
    if (c == '.')
        return (i == 0 || s.ptr[i - 1] != '.') &&
               (i + 1 == s.len || s.ptr[i + 1] != '.');
    return c > ' ' && c < 0x7F && c != '-' && c != '\'' && c != '"';
}

typedef struct hfsbi_anchor {
    hfsb_str text;
    size_t   above; /* lines of the old text before it */
} hfsbi_anchor;

#define HFSBI_ANCHORS 8

/* The longest runs of such bytes, longest first; how many there are. */
static size_t hfsbi_list_anchors(hfsb_str text, hfsbi_anchor *list) {
    size_t i = 0, lines = 0, count = 0, k;
    while (i < text.len) {
        size_t start = i;
        while (i < text.len && hfsbi_is_anchor_byte(text, i)) i++;
        if (i > start &&
            (count < HFSBI_ANCHORS || i - start > list[count - 1].text.len)) {
            if (count < HFSBI_ANCHORS) count++;
            for (k = count - 1; k > 0 && list[k - 1].text.len < i - start; k--)
                list[k] = list[k - 1];
            list[k].text = hfsb_str_slice(text, start, i);
            list[k].above = lines;
        }
        if (i < text.len && text.ptr[i++] == '\n') lines++;
    }
    return count;
}

/* True when the text is in the file a few times at most. */
static bool hfsbi_is_rare(hfsb_str file, hfsb_str text) {
    size_t i, at = 0;
    for (i = 0; i < 16; i++) {
        size_t step = hfsb_str_find(hfsb_str_slice(file, at, file.len), text);
        if (step == HFSB_NPOS) return true;
        at += step + 1;
    }
    return false;
}

/* The first rare one of the longest runs, else the longest; text.len is 0
   when there is none. Common ones are found out quickly. */
static hfsbi_anchor hfsbi_pick_anchor(hfsb_str file, hfsb_str old_text) {
    hfsbi_anchor list[HFSBI_ANCHORS], none = HFSB_INIT;
    size_t       i, count = hfsbi_list_anchors(old_text, list);
    for (i = 0; i < count; i++)
        if (hfsbi_is_rare(file, list[i].text)) return list[i];
    return count ? list[0] : none;
}

/* Characters that folds drop can stand inside an anchor. */
static bool hfsbi_has_invisible(hfsb_str text) {
    return hfsb_str_find(text, HFSB_LIT("\xE2\x80\x8B")) != HFSB_NPOS ||
           hfsb_str_find(text, HFSB_LIT("\xEF\xBB\xBF")) != HFSB_NPOS;
}

/* Start of the line `lines` above the one that holds pos, not before
   `floor`. */
static size_t hfsbi_lines_above(hfsb_str text, char newline, size_t pos,
                                size_t lines, size_t floor) {
    for (; pos > floor; pos--)
        if (text.ptr[pos - 1] == newline && lines-- == 0) return pos;
    return floor;
}

/* Widens the last window, which holds an anchor on line number `line`, by the
   lines below that. *end is its end, *end_line the number of its line. */
static void hfsbi_widen(hfsbi_search *s, char newline, size_t below,
                        size_t line, size_t *end, size_t *end_line) {
    hfsb_str text = s->file->text;
    while (*end < text.len && *end_line <= line + below) {
        size_t n =
            hfsb_str_find_byte(hfsb_str_slice(text, *end, text.len), newline);
        *end = n == HFSB_NPOS ? text.len : *end + n + 1;
        ++*end_line;
    }
    s->windows[s->window_count - 1].end = *end;
}

/* A window around each anchor, in order; those that touch are joined. Every
   byte is walked over a bounded number of times, however close they are. */
static hfsb_status hfsbi_find_windows(hfsbi_search *s) {
    hfsb_str     text = s->file->text;
    hfsbi_anchor anchor = hfsbi_pick_anchor(text, s->old_text);
    char         newline = s->file->lone_cr ? '\r' : '\n';
    size_t       below, at = 0, seen = 0, line = 0, end = 0, end_line = 0;
    below = hfsb_str_count_byte(s->old_text, '\n') - anchor.above;
    if (!anchor.text.len || hfsbi_has_invisible(text))
        return hfsbi_push(s->alloc, &s->windows, &s->window_count,
                          &s->window_cap, 0, text.len);
    for (;; at++) {
        size_t step =
            hfsb_str_find(hfsb_str_slice(text, at, text.len), anchor.text);
        if (step == HFSB_NPOS) return HFSB_OK;
        at += step;
        if (at >= end) { /* on a line that no window holds yet */
            size_t from =
                hfsbi_lines_above(text, newline, at, anchor.above, end);
            if ((from > end || !s->window_count) &&
                hfsbi_push(s->alloc, &s->windows, &s->window_count,
                           &s->window_cap, from, from) != HFSB_OK)
                return HFSB_NOMEM;
            end = at;
            line = end_line = 0; /* lines are counted from this one on */
        } else {
            line +=
                hfsb_str_count_byte(hfsb_str_slice(text, seen, at), newline);
        }
        seen = at;
        hfsbi_widen(s, newline, below, line, &end, &end_line);
        /* Another one on this line would add nothing. */
        step = hfsb_str_find_byte(hfsb_str_slice(text, at, text.len), newline);
        if (step == HFSB_NPOS) return HFSB_OK;
        at += step;
    }
}

/* ---- rungs 1 to 6: views ---- */

/* Length of the longest proper prefix of needle[0..i] that also ends it. */
static hfsb_status hfsbi_fail_table(hfsbi_search *s, hfsb_str needle) {
    size_t *fail = (size_t *)hfsbi_array_grow(s->alloc, s->fail, &s->fail_cap,
                                              needle.len, sizeof *fail);
    size_t  i, k = 0;
    if (!fail) return HFSB_NOMEM;
    s->fail = fail;
    fail[0] = 0;
    for (i = 1; i < needle.len; i++) {
        while (k && needle.ptr[i] != needle.ptr[k]) k = fail[k - 1];
        if (needle.ptr[i] == needle.ptr[k]) k++;
        fail[i] = k;
    }
    return HFSB_OK;
}

/* A first line of blanks alone is a blank line, not the end of another. */
static bool hfsbi_starts_well(const hfsbi_search *s, size_t from) {
    return !s->blank_first || from == 0 || s->view.text.ptr[from - 1] == '\n';
}

/* Takes the view's bytes [from, to) when that is a place in the file: it
   splits no character and a trimmed last line ends at a line's end. */
static hfsb_status hfsbi_take_view(hfsbi_search *s, size_t base, size_t from,
                                   size_t to) {
    hfsb_str text = hfsb_buf_str(&s->view.text);
    size_t   start, end;
    if (s->needle.trimmed && to < text.len && text.ptr[to] != '\n')
        return HFSB_OK;
    if (!hfsbi_starts_well(s, from)) return HFSB_OK;
    if (!hfsbi_view_start(&s->view, from, &start) ||
        !hfsbi_view_end(&s->view, to, s->needle.trimmed, &end))
        return HFSB_OK;
    /* A blank first line is the file's blank line, with its blanks. */
    if (text.ptr[from] == '\n' && (!from || text.ptr[from - 1] == '\n'))
        hfsbi_view_end(&s->view, from, false, &start);
    return hfsbi_take(s, base + start, base + end);
}

/* Notes in s->last the place of a needle whose last newline the file lacks:
   the rest of it ends the file. */
static void hfsbi_note_last(hfsbi_search *s, hfsbi_match window) {
    hfsb_str text = hfsb_buf_str(&s->view.text);
    hfsb_str needle = hfsb_buf_str(&s->needle.text);
    size_t   start;
    if (window.end != s->file->text.len || needle.len < 2 ||
        needle.ptr[needle.len - 1] != '\n')
        return;
    needle.len--;
    if (!hfsb_str_ends(text, needle) ||
        !hfsbi_starts_well(s, text.len - needle.len) ||
        !hfsbi_view_start(&s->view, text.len - needle.len, &start))
        return;
    s->last.start = window.start + start;
    s->last.end = window.end;
    s->last.drop_newline = true;
}

/* All places of the needle in one window, those that overlap too. */
static hfsb_status hfsbi_search_view(hfsbi_search *s, hfsbi_match window,
                                     unsigned flags) {
    hfsb_str    text = s->file->text, needle = hfsb_buf_str(&s->needle.text);
    size_t      i, k = 0, first;
    hfsb_status st;
    st = hfsbi_view_build(
        &s->view, hfsb_str_slice(text, window.start, window.end), flags);
    if (st != HFSB_OK) return st;
    hfsbi_note_last(s, window);
    text = hfsb_buf_str(&s->view.text);
    first = hfsb_str_find(text, needle);
    if (first == HFSB_NPOS) return HFSB_OK;
    st = hfsbi_fail_table(s, needle);
    for (i = first; st == HFSB_OK && i < text.len; i++) {
        while (k && text.ptr[i] != needle.ptr[k]) k = s->fail[k - 1];
        if (text.ptr[i] == needle.ptr[k]) k++;
        if (k < needle.len) continue;
        st = hfsbi_take_view(s, window.start, i + 1 - k, i + 1);
        k = s->fail[k - 1];
    }
    return st;
}

/* One rung by one kind of folding. Only when that finds nothing, a missing
   last newline counts. */
static hfsb_status hfsbi_try_view(hfsbi_search *s, hfsbi_rung rung,
                                  unsigned flags) {
    hfsbi_found *f = s->found;
    size_t       i, indent;
    hfsb_status  st;
    if (s->file->lone_cr) flags |= HFSBI_FOLD_CR;
    /* Nothing but blanks means something only to the letter. */
    if (rung > HFSBI_RUNG_EOF && hfsbi_is_all_blank(s->old_text, flags))
        return HFSB_OK;
    s->last.drop_newline = false;
    indent = hfsbi_indent_len(s->old_text, flags);
    s->blank_first = (flags & HFSBI_FOLD_TRAIL) && indent &&
                     indent < s->old_text.len &&
                     s->old_text.ptr[indent] == '\n';
    st = hfsbi_view_build(&s->needle, s->old_text, flags);
    if (st != HFSB_OK || !s->needle.text.len) return st;
    for (i = 0; st == HFSB_OK && i < s->window_count; i++)
        st = hfsbi_search_view(s, s->windows[i], flags);
    if (st == HFSB_OK && !f->count && s->last.drop_newline) {
        st = hfsbi_take(s, s->last.start, s->last.end);
        if (st == HFSB_OK) f->items[0].drop_newline = true;
        if (rung == HFSBI_RUNG_EXACT) rung = HFSBI_RUNG_EOF;
    }
    if (f->count) {
        f->rung = rung;
        f->flags = flags;
    }
    return st;
}

/* The bytes as they are: quick, and right when no CR can come between. */
static hfsb_status hfsbi_try_bytes(hfsbi_search *s) {
    hfsb_str    text = s->file->text;
    size_t      pos = 0, at, over, len = s->old_text.len;
    hfsb_status st;
    for (;;) {
        at = hfsb_str_find(hfsb_str_slice(text, pos, text.len), s->old_text);
        if (at == HFSB_NPOS) break;
        at += pos;
        pos = at + len;
        st = hfsbi_take(s, at, pos);
        /* Does another begin inside it? */
        over = hfsb_str_find(hfsb_str_slice(text, at + 1, pos + len - 1),
                             s->old_text);
        if (st == HFSB_OK && over != HFSB_NPOS)
            st = hfsbi_take(s, at + 1 + over, at + 1 + over + len);
        if (st != HFSB_OK) return st;
    }
    if (s->found->count) s->found->rung = HFSBI_RUNG_EXACT;
    return HFSB_OK;
}

/* ---- rungs 7 to 9: whole lines ---- */

static bool hfsbi_rows_equal(const hfsbi_search *s, hfsb_str old_text,
                             const hfsbi_row *olds, const hfsbi_row *rows,
                             size_t count, unsigned flags) {
    size_t i;
    for (i = 0; i < count; i++)
        if (!hfsbi_fold_equal(
                hfsb_str_slice(old_text, olds[i].start, olds[i].text_end),
                hfsb_str_slice(s->file->text, rows[i].start, rows[i].text_end),
                flags))
            return false;
    return true;
}

/* Takes rows [at, at + count) when they are the old lines byte for byte of
   their fold, which the hashes only make likely. */
static hfsb_status hfsbi_take_rows(hfsbi_search *s, hfsb_str old_text,
                                   const hfsbi_rows *olds,
                                   const hfsbi_row *rows, unsigned flags) {
    const hfsbi_row *last = rows + olds->count - 1;
    bool             newline = hfsb_str_ends(old_text, HFSB_LIT("\n"));
    size_t           end = newline ? last->end : last->text_end;
    hfsbi_found     *f = s->found;
    hfsb_status      st;
    if (f->overlapping && rows->start < f->items[f->count - 1].end)
        return HFSB_OK; /* known to be ambiguous: spare the comparison */
    if (!hfsbi_rows_equal(s, old_text, olds->items, rows, olds->count, flags))
        return HFSB_OK;
    st = hfsbi_take(s, rows->start, end);
    if (st == HFSB_OK && newline && last->end == last->text_end)
        f->items[f->count - 1].drop_newline = true;
    return st;
}

static hfsb_status hfsbi_search_rows(hfsbi_search *s, hfsb_str old_text,
                                     const hfsbi_rows *olds,
                                     const hfsbi_rows *rows, unsigned flags) {
    size_t      at;
    hfsb_status st = hfsbi_row_search_begin(s->alloc, &s->row_search, olds,
                                            rows, 0, rows->count);
    while (st == HFSB_OK && hfsbi_row_search_next(&s->row_search, &at))
        st = hfsbi_take_rows(s, old_text, olds, rows->items + at, flags);
    return st;
}

static hfsb_status hfsbi_try_rows(hfsbi_search *s, hfsbi_rung rung,
                                  hfsb_str old_text, unsigned flags) {
    hfsbi_file  old_file = HFSB_INIT;
    hfsbi_rows  olds = HFSB_INIT, rows = HFSB_INIT;
    hfsb_status st;
    size_t      i;
    if (hfsbi_is_all_blank(old_text, flags)) return HFSB_OK;
    old_file.text = old_text;
    st = hfsbi_rows_of(s->alloc, &old_file, 0, old_text.len, flags, &olds);
    for (i = 0; st == HFSB_OK && i < s->window_count; i++) {
        st = hfsbi_rows_of(s->alloc, s->file, s->windows[i].start,
                           s->windows[i].end, flags, &rows);
        if (st == HFSB_OK)
            st = hfsbi_search_rows(s, old_text, &olds, &rows, flags);
    }
    hfsbi_rows_free(s->alloc, &olds);
    hfsbi_rows_free(s->alloc, &rows);
    if (s->found->count) {
        s->found->rung = rung;
        s->found->flags = flags;
    }
    return st;
}

/* ---- the ladder ---- */

static hfsb_status hfsbi_climb_lines(hfsbi_search *s) {
    const unsigned trim = HFSBI_FOLD_TRAIL | HFSBI_FOLD_LOOKS;
    hfsbi_found   *f = s->found;
    hfsb_status    st;
    st = hfsbi_try_rows(s, HFSBI_RUNG_INDENT, s->old_text, trim);
    if (st != HFSB_OK || f->count) return st;
    if (!hfsbi_is_all_blank(s->old_text, trim)) {
        hfsb_str inner;
        f->drop_head = f->drop_tail = HFSB_NPOS;
        inner =
            hfsbi_drop_edges(s->old_text, trim, &f->drop_head, &f->drop_tail);
        if (inner.len < s->old_text.len)
            st = hfsbi_try_rows(s, HFSBI_RUNG_EDGES, inner, trim);
        if (st != HFSB_OK || f->count) return st;
        f->drop_head = f->drop_tail = 0;
    }
    return hfsbi_try_rows(s, HFSBI_RUNG_TOKENS, s->old_text,
                          HFSBI_FOLD_TRAIL | HFSBI_FOLD_RUNS);
}

/* The folds that can make a difference to these texts at all. */
static unsigned hfsbi_useful_folds(const hfsbi_search *s) {
    hfsb_str text = s->old_text, dash = HFSB_LIT("\xE2\x80\x94");
    unsigned useful = HFSBI_FOLD_TRAIL | HFSBI_FOLD_RUNS;
    bool     ascii = hfsbi_utf8_ascii(text.ptr, text.len) == text.len;
    size_t   i;
    for (i = 0; ascii && i < s->window_count; i++) {
        text = hfsb_str_slice(s->file->text, s->windows[i].start,
                              s->windows[i].end);
        ascii = hfsbi_utf8_ascii(text.ptr, text.len) == text.len;
    }
    if (ascii) return useful;
    useful |= HFSBI_FOLD_LOOKS;
    if (hfsb_str_find(s->old_text, dash) != HFSB_NPOS ||
        hfsb_str_find(s->file->text, dash) != HFSB_NPOS)
        useful |= HFSBI_FOLD_DASHES;
    return useful;
}

/* Rungs 4 to 6, each with the folds before it. A step that only repeats an
   earlier one is left out. */
static hfsb_status hfsbi_climb_views(hfsbi_search *s) {
    static const unsigned steps[] = {
        HFSBI_FOLD_TRAIL,
        HFSBI_FOLD_LOOKS,
        HFSBI_FOLD_LOOKS | HFSBI_FOLD_DASHES,
        HFSBI_FOLD_LOOKS | HFSBI_FOLD_TRAIL,
        HFSBI_FOLD_LOOKS | HFSBI_FOLD_DASHES | HFSBI_FOLD_TRAIL,
        HFSBI_FOLD_RUNS | HFSBI_FOLD_LOOKS | HFSBI_FOLD_TRAIL,
        HFSBI_FOLD_RUNS | HFSBI_FOLD_LOOKS | HFSBI_FOLD_DASHES |
            HFSBI_FOLD_TRAIL};
    unsigned    useful = hfsbi_useful_folds(s);
    size_t      i;
    hfsb_status st = HFSB_OK;
    for (i = 0; i < sizeof steps / sizeof *steps; i++) {
        unsigned   flags = steps[i];
        hfsbi_rung rung = flags & HFSBI_FOLD_RUNS    ? HFSBI_RUNG_RUNS
                          : flags & HFSBI_FOLD_LOOKS ? HFSBI_RUNG_LOOKS
                                                     : HFSBI_RUNG_TRAIL;
        if ((flags & ~useful & HFSBI_FOLD_DASHES) ||
            (rung == HFSBI_RUNG_LOOKS && !(useful & HFSBI_FOLD_LOOKS)))
            continue;
        st = hfsbi_try_view(s, rung, flags);
        if (st != HFSB_OK || s->found->count) break;
    }
    return st;
}

static hfsb_status hfsbi_climb(hfsbi_search *s, bool exact) {
    hfsb_status st;
    if (!s->file->has_cr) {
        st = hfsbi_try_bytes(s);
        if (st != HFSB_OK || s->found->count) return st;
    }
    st = hfsbi_find_windows(s);
    if (st == HFSB_OK) st = hfsbi_try_view(s, HFSBI_RUNG_EXACT, 0);
    if (st != HFSB_OK || exact || s->found->count) return st;
    st = hfsbi_climb_views(s);
    if (st != HFSB_OK || s->found->count) return st;
    return hfsbi_climb_lines(s);
}

static hfsbi_search hfsbi_search_make(const hfsb_alloc *alloc,
                                      const hfsbi_file *file,
                                      hfsb_str old_text, hfsbi_found *found) {
    hfsbi_search s;
    memset(&s, 0, sizeof s);
    memset(found, 0, sizeof *found);
    s.alloc = alloc;
    s.file = file;
    s.old_text = old_text;
    s.found = found;
    s.needle.text.alloc = s.view.text.alloc = *alloc;
    return s;
}

HFSBI_FN hfsb_status hfsbi_match_bytes(const hfsb_alloc *alloc,
                                       const hfsbi_file *file,
                                       hfsb_str old_text, hfsbi_found *found) {
    hfsbi_search s = hfsbi_search_make(alloc, file, old_text, found);
    hfsb_status  st = hfsbi_try_bytes(&s);
    if (st != HFSB_OK) hfsbi_found_free(alloc, found);
    return st;
}

HFSBI_FN hfsb_status hfsbi_match_find(const hfsb_alloc *alloc,
                                      const hfsbi_file *file,
                                      hfsb_str old_text, bool exact,
                                      hfsbi_found *found) {
    hfsbi_search s = hfsbi_search_make(alloc, file, old_text, found);
    hfsb_status  st = hfsbi_climb(&s, exact);
    hfsbi_array_free(alloc, s.windows, s.window_cap, sizeof *s.windows);
    hfsbi_array_free(alloc, s.fail, s.fail_cap, sizeof *s.fail);
    hfsbi_row_search_free(alloc, &s.row_search);
    hfsbi_view_free(&s.needle);
    hfsbi_view_free(&s.view);
    if (st != HFSB_OK) hfsbi_found_free(alloc, found);
    return st;
}

HFSBI_FN void hfsbi_found_free(const hfsb_alloc *alloc, hfsbi_found *found) {
    hfsbi_array_free(alloc, found->items, found->cap, sizeof *found->items);
    memset(found, 0, sizeof *found);
}
