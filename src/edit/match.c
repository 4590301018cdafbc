/* match.c - the ladder: find the places of an old text in a file.

   Each rung is a set of folds: the old text and the file are folded in the
   same way, and one is searched for in the other; the first rung that matches
   decides. A match must start and end between characters of the file.

   Requirements on lines are part of the searched pattern, because every line
   of a view lies between two LFs: a pattern with an extra LF before the match
   is found at the start of a line only, one with an extra LF after it at the
   end of a line only.

   Loose rungs fold only windows of the file: the lines around an anchor, a
   piece of the old text that no fold touches. Every match contains the
   anchor, so that a large file costs little more than one search. */
#include "edit_private.h"

HFSBI_FN void hfsbi_matches_free(const hfsb_alloc *alloc,
                                 hfsbi_matches    *matches) {
    hfsbi_array_free(alloc, matches->items, matches->cap,
                     sizeof *matches->items);
    memset(matches, 0, sizeof *matches);
}

/* ---- windows ---- */

/* A part of the file, whole lines, that can contain a match. */
typedef struct hfsbi_window {
    size_t start, end;
} hfsbi_window;

/* A search for one old text. */
typedef struct hfsbi_search {
    const hfsb_alloc      *alloc;
    const hfsbi_edit_text *file;
    hfsb_str               old_text;
    hfsbi_matches         *matches;
    hfsbi_window          *windows;
    size_t                 window_count, window_cap;
    bool                   skip_blank; /* windows count no blank lines */
    bool                   hides;      /* the file has invisible characters */
    hfsbi_view             needle, view;
    hfsb_str               pattern;    /* searched for in the view */
    size_t                 lead, tail; /* extra LFs that it has before and
                                          after the match: 0 or 1 */
    bool                   lines;      /* matches start at a line's start */
    bool                   few;        /* two matches are enough */
} hfsbi_search;

static hfsb_status hfsbi_window_add(hfsbi_search *s, size_t start,
                                    size_t end) {
    hfsbi_window *w = (hfsbi_window *)hfsbi_array_grow(
        s->alloc, s->windows, &s->window_cap, s->window_count + 1, sizeof *w);
    if (!w) return HFSB_NOMEM;
    s->windows = w;
    w += s->window_count++;
    w->start = start;
    w->end = end;
    return HFSB_OK;
}

/* True for a byte that every fold keeps and no fold produces. */
static bool hfsbi_is_anchor_byte(char c) {
    return c > ' ' && c < 0x7F && c != '-' && c != '\'' && c != '"' &&
           c != '.';
}

#define HFSBI_ANCHORS 8

/* Lists the longest runs of such bytes, longest first; returns their
   number. */
static size_t hfsbi_list_anchors(hfsb_str text, hfsb_str *list) {
    size_t i, start, count = 0, k;
    for (i = 0; i < text.len; i++) {
        start = i;
        while (i < text.len && hfsbi_is_anchor_byte(text.ptr[i])) i++;
        if (i == start ||
            (count == HFSBI_ANCHORS && i - start <= list[count - 1].len))
            continue;
        if (count < HFSBI_ANCHORS) count++;
        for (k = count - 1; k > 0 && list[k - 1].len < i - start; k--)
            list[k] = list[k - 1];
        list[k] = hfsb_str_slice(text, start, i);
    }
    return count;
}

/* True when the file contains the text at most 15 times; these places are in
   *part of the file. */
static bool hfsbi_is_rare(hfsb_str file, hfsb_str text, hfsbi_window *part) {
    size_t i, at = 0;
    part->start = part->end = 0;
    for (i = 0; i < 16; i++) {
        size_t step = hfsb_str_find(hfsb_str_slice(file, at, file.len), text);
        if (step == HFSB_NPOS) return true;
        at += step;
        if (i == 0) part->start = at;
        part->end = at++ + text.len;
    }
    return false;
}

/* The longest rare run, else the longest; empty if not found. All its
   places are in *part of the file. */
static hfsb_str hfsbi_pick_anchor(hfsb_str file, hfsb_str old_text,
                                  hfsbi_window *part) {
    hfsb_str list[HFSBI_ANCHORS], none = HFSB_INIT;
    size_t   i, count = hfsbi_list_anchors(old_text, list);
    for (i = 0; i < count; i++)
        if (hfsbi_is_rare(file, list[i], part)) return list[i];
    part->start = 0;
    part->end = file.len;
    return count ? list[0] : none;
}

/* True for a line that takes no part in the search. */
static bool hfsbi_skips_line(const hfsbi_search *s, hfsb_str line) {
    return s->skip_blank && hfsbi_is_all_blank(line, HFSBI_FOLD_LOOKS);
}

/* Number of lines that end in text and take part in the search. */
static size_t hfsbi_lines_in(const hfsbi_search *s, hfsb_str text,
                             char newline) {
    size_t n = 0, end;
    if (!s->skip_blank) return hfsb_str_count_byte(text, newline);
    for (; (end = hfsb_str_find_byte(text, newline)) != HFSB_NPOS;
         text = hfsb_str_slice(text, end + 1, text.len))
        n += !hfsbi_skips_line(s, hfsb_str_slice(text, 0, end));
    return n;
}

/* Start of the line `lines` above the line of pos, not before `floor`. */
static size_t hfsbi_lines_above(const hfsbi_search *s, char newline,
                                size_t pos, size_t lines, size_t floor) {
    hfsb_str text = s->file->text;
    size_t   end = pos + 1;
    for (; pos > floor; pos--) {
        if (text.ptr[pos - 1] != newline) continue;
        if (!hfsbi_skips_line(s, hfsb_str_slice(text, pos, end)) &&
            lines-- == 0)
            return pos;
        end = pos;
    }
    return floor;
}

/* Extends the last window to `below` lines after line number `line`. *end is
   its end, *end_line the number of the line that starts there. */
static void hfsbi_window_extend(hfsbi_search *s, char newline, size_t below,
                                size_t line, size_t *end, size_t *end_line) {
    hfsb_str text = s->file->text;
    while (*end < text.len && *end_line <= line + below) {
        hfsb_str rest = hfsb_str_slice(text, *end, text.len);
        size_t   n = hfsb_str_find_byte(rest, newline);
        n = n == HFSB_NPOS ? rest.len : n + 1;
        *end += n;
        *end_line += !hfsbi_skips_line(s, hfsb_str_slice(rest, 0, n));
    }
    s->windows[s->window_count - 1].end = *end;
}

/* Makes a window around each anchor, in order, joining those that touch.
   Every byte is visited a bounded number of times, however dense anchors
   are. */
static hfsb_status hfsbi_find_windows(hfsbi_search *s) {
    hfsbi_window part;
    hfsb_str     text = s->file->text;
    hfsb_str     anchor = hfsbi_pick_anchor(text, s->old_text, &part);
    char         newline = s->file->lone_cr ? '\r' : '\n';
    size_t       above, below, at, seen = 0, line = 0, end = 0, end_line = 0;
    s->window_count = 0;
    s->hides = hfsbi_has_invisible(text);
    if (!anchor.len || s->hides) return hfsbi_window_add(s, 0, text.len);
    at = (size_t)(anchor.ptr - s->old_text.ptr);
    above = hfsbi_lines_in(s, hfsb_str_slice(s->old_text, 0, at), '\n');
    below =
        hfsbi_lines_in(s, hfsb_str_slice(s->old_text, at, HFSB_NPOS), '\n');
    for (at = part.start;; at++) {
        size_t step =
            hfsb_str_find(hfsb_str_slice(text, at, part.end), anchor);
        if (step == HFSB_NPOS) return HFSB_OK;
        at += step;
        if (at >= end) { /* on a line that is in no window yet */
            size_t from = hfsbi_lines_above(s, newline, at, above, end);
            if ((from > end || !s->window_count) &&
                hfsbi_window_add(s, from, from) != HFSB_OK)
                return HFSB_NOMEM;
            end = at;
            line = end_line = 0; /* lines are counted from this one on */
        } else {
            line += hfsbi_lines_in(s, hfsb_str_slice(text, seen, at), newline);
        }
        seen = at;
        hfsbi_window_extend(s, newline, below, line, &end, &end_line);
        /* A second anchor on this line would add nothing. */
        step = hfsb_str_find_byte(hfsb_str_slice(text, at, text.len), newline);
        if (step == HFSB_NPOS) return HFSB_OK;
        at += step;
    }
}

/* ---- one search ---- */

/* Adds a match; one that overlaps the previous match is only noted. */
static hfsb_status hfsbi_match_add(hfsbi_search *s, size_t start, size_t end,
                                   bool lacks_newline) {
    hfsbi_matches *m = s->matches;
    hfsbi_match   *p;
    if (m->count && start < m->items[m->count - 1].end) {
        m->overlapping = m->items[m->count - 1].overlaps = true;
        return HFSB_OK;
    }
    p = (hfsbi_match *)hfsbi_array_grow(s->alloc, m->items, &m->cap,
                                        m->count + 1, sizeof *p);
    if (!p) return HFSB_NOMEM;
    m->items = p;
    p += m->count++;
    p->start = start;
    p->end = end;
    p->lacks_newline = lacks_newline;
    p->lacks_blank = p->overlaps = false;
    return HFSB_OK;
}

/* The byte of the file where a match at view offset `from` starts; false when
   that would split a character. */
static bool hfsbi_match_start(const hfsbi_search *s, size_t from,
                              size_t *start) {
    const char *text = s->view.text.ptr;
    bool        blank = text[from] == '\n' && text[from - 1] == '\n';
    unsigned    folds = s->matches->folds;
    /* Blanks that vanish before the match are part of it where whole lines
       match, and on a first line that is blank; blank lines are not. */
    bool before = (folds & HFSBI_FOLD_INDENT || blank || s->lines) &&
                  !(folds & HFSBI_FOLD_LINES);
    return before ? hfsbi_view_before(&s->view, from, start)
                  : hfsbi_view_after(&s->view, from, start);
}

/* Takes the pattern found at view offset `at`, unless that would split a
   character. */
static hfsb_status hfsbi_match_take(hfsbi_search *s, bool folded, size_t base,
                                    size_t at) {
    size_t start = at, end = at + s->pattern.len;
    bool   lacks_newline = false;
    if (folded) {
        size_t from = at + s->lead, to = end - s->tail;
        if (!hfsbi_match_start(s, from, &start) ||
            !(s->tail ? hfsbi_view_after(&s->view, to, &end)
                      : hfsbi_view_before(&s->view, to, &end)))
            return HFSB_OK;
        lacks_newline = s->view.closed && to == s->view.text.len;
        while (s->matches->folds & HFSBI_FOLD_LINES &&
               !hfsbi_starts_line(s->file, base + start))
            start--;
    }
    if (s->lines && !hfsbi_starts_line(s->file, base + start)) return HFSB_OK;
    return hfsbi_match_add(s, base + start, base + end, lacks_newline);
}

/* True when more matches would make no difference. */
static bool hfsbi_has_enough(const hfsbi_search *s) {
    return s->few && (s->matches->count > 1 || s->matches->overlapping);
}

/* Finds the pattern everywhere in text, which starts `skip` bytes into the
   view, or is the file itself. */
static hfsb_status hfsbi_search_text(hfsbi_search *s, hfsb_str text,
                                     bool folded, size_t skip, size_t base) {
    hfsbi_occurrences f = HFSB_INIT;
    size_t            at, next = 0;
    f.text = text;
    f.pattern = s->pattern;
    for (; (at = hfsbi_occurrence_next(&f, next)) != HFSB_NPOS;
         next = at + 1) {
        hfsb_status st = hfsbi_match_take(s, folded, base, at + skip);
        if (st != HFSB_OK) return st;
        if (hfsbi_has_enough(s)) return HFSB_OK;
    }
    return HFSB_OK;
}

/* Takes the pattern without its last LF at the end of the file, if it was not
   found otherwise. text is as in hfsbi_search_text(). If the file ends in a
   newline, that LF ends a blank line that the file does not have. */
static hfsb_status hfsbi_search_end(hfsbi_search *s, hfsb_str text,
                                    bool folded, size_t skip, size_t base) {
    hfsb_str core =
        hfsb_str_slice(s->pattern, s->lead, s->pattern.len - s->tail);
    size_t      from;
    bool        blank;
    hfsb_status st;
    if (core.len < 2 || core.ptr[core.len - 1] != '\n') return HFSB_OK;
    core.len--;
    if (!hfsb_str_ends(text, core)) return HFSB_OK;
    /* After a line end there is no line for the last LF to end. */
    if (s->lines && hfsbi_starts_line(s->file, s->file->text.len))
        return HFSB_OK;
    from = text.len - core.len + skip;
    if (s->lead && s->view.text.ptr[from - 1] != '\n') return HFSB_OK;
    if (folded && !hfsbi_match_start(s, from, &from)) return HFSB_OK;
    if (s->lines && !hfsbi_starts_line(s->file, base + from)) return HFSB_OK;
    blank = hfsbi_starts_line(s->file, s->file->text.len);
    /* If old_text begins with a blank line as well, rung 8 drops both. */
    if (blank && core.ptr[0] == '\n') return HFSB_OK;
    st = hfsbi_match_add(s, base + from, s->file->text.len, !blank);
    if (st == HFSB_OK) s->matches->items[0].lacks_blank = blank;
    return st;
}

/* Folds one window and searches it. */
static hfsb_status hfsbi_search_window(hfsbi_search *s, hfsbi_window w) {
    unsigned    folds = s->matches->folds;
    hfsb_str    view;
    size_t      last;
    hfsb_status st = hfsbi_view_build(
        &s->view, hfsb_str_slice(s->file->text, w.start, w.end), folds);
    if (st != HFSB_OK) return st;
    view = hfsb_buf_str(&s->view.text);
    last = view.len - (s->tail || folds & HFSBI_FOLD_INDENT ? 0 : 1);
    st = hfsbi_search_text(s, hfsb_str_slice(view, !s->lead, last), true,
                           !s->lead, w.start);
    if (st != HFSB_OK || s->matches->count || w.end < s->file->text.len ||
        folds & HFSBI_FOLD_INDENT)
        return st;
    return hfsbi_search_end(s, hfsb_str_slice(view, 1, view.len - 1), true, 1,
                            w.start);
}

/* ---- rungs ---- */

/* Sets the pattern for old_text: all lines where indentation is folded, else
   only what the folds leave of it. */
static hfsb_status hfsbi_set_pattern(hfsbi_search *s, hfsb_str old_text,
                                     unsigned folds) {
    size_t      indent = hfsbi_indent_len(old_text, folds);
    hfsb_str    view;
    hfsb_status st = hfsbi_view_build(&s->needle, old_text, folds);
    if (st != HFSB_OK) return st;
    view = hfsb_buf_str(&s->needle.text);
    if (folds & HFSBI_FOLD_INDENT) {
        s->lead = true;
        s->tail = s->needle.closed;
        s->pattern = view;
        return HFSB_OK;
    }
    /* A first line of blanks is a blank line, not the end of another; a last
       line that was trimmed ends its line. */
    s->lead =
        (folds & HFSBI_FOLD_TRAIL) && indent && old_text.ptr[indent] == '\n';
    s->tail = s->needle.trimmed;
    s->pattern = hfsb_str_slice(view, !s->lead, view.len - !s->tail);
    return HFSB_OK;
}

/* Tries one set of folds in all windows. */
static hfsb_status hfsbi_try_folds(hfsbi_search *s, hfsbi_rung rung,
                                   hfsb_str old_text, unsigned folds) {
    size_t      i;
    hfsb_status st;
    if (s->file->lone_cr || s->file->mixed_cr) folds |= HFSBI_FOLD_CR;
    /* Blanks alone only match exactly. */
    if (rung > HFSBI_RUNG_EOF && hfsbi_is_all_blank(old_text, folds))
        return HFSB_OK;
    s->matches->rung = rung;
    s->matches->folds = folds;
    st = hfsbi_set_pattern(s, old_text, folds);
    if (st != HFSB_OK || !s->pattern.len) return st;
    for (i = 0; st == HFSB_OK && i < s->window_count && !hfsbi_has_enough(s);
         i++)
        st = hfsbi_search_window(s, s->windows[i]);
    return st;
}

/* The folds that can make a difference to these texts. */
static unsigned hfsbi_useful_folds(const hfsbi_search *s) {
    hfsb_str text = s->old_text, dash = HFSB_LIT("\xE2\x80\x94");
    unsigned all = ~0u;
    bool     ascii = hfsbi_utf8_ascii(text.ptr, text.len) == text.len;
    size_t   i;
    for (i = 0; ascii && i < s->window_count; i++) {
        text = hfsb_str_slice(s->file->text, s->windows[i].start,
                              s->windows[i].end);
        ascii = hfsbi_utf8_ascii(text.ptr, text.len) == text.len;
    }
    if (ascii) return all & ~(unsigned)(HFSBI_FOLD_LOOKS | HFSBI_FOLD_DASHES);
    if (hfsb_str_find(s->old_text, dash) == HFSB_NPOS &&
        hfsb_str_find(s->file->text, dash) == HFSB_NPOS)
        return all & ~(unsigned)HFSBI_FOLD_DASHES;
    return all;
}

/* ---- the ladder ---- */

/* Rungs 1 and 2. */
static hfsb_status hfsbi_search_exact(hfsbi_search *s) {
    bool        has_cr = hfsb_str_find_byte(s->old_text, '\r') != HFSB_NPOS;
    bool        has_lf = hfsb_str_find_byte(s->old_text, '\n') != HFSB_NPOS;
    hfsb_status st;
    s->matches->rung = HFSBI_RUNG_EXACT;
    if (!has_cr && !(has_lf && s->file->has_cr)) {
        /* No CR can be inside a match: search the file itself. */
        s->pattern = s->old_text;
        st = hfsbi_search_text(s, s->file->text, false, 0, 0);
        if (st == HFSB_OK && !s->matches->count)
            st = hfsbi_search_end(s, s->file->text, false, 0, 0);
    } else {
        st = hfsbi_find_windows(s);
        if (st == HFSB_OK)
            st = hfsbi_try_folds(s, HFSBI_RUNG_EXACT, s->old_text, 0);
    }
    /* A CR at the end of old_text may be half of a CRLF. */
    if (st == HFSB_OK && !s->matches->count && has_cr)
        st = hfsbi_search_text(s, s->file->text, false, 0, 0);
    if (s->matches->count && (s->matches->items[0].lacks_newline ||
                              s->matches->items[0].lacks_blank))
        s->matches->rung = HFSBI_RUNG_EOF;
    return st;
}

HFSBI_FN const hfsbi_rung_words *hfsbi_rung_words_of(hfsbi_rung rung) {
    static const hfsbi_rung_words words[HFSBI_RUNGS] = {
        {NULL, ""},
        {NULL, "exactly"},
        {NULL, "exactly"},
        {"(matched after trimming trailing whitespace)",
         "after trimming trailing whitespace"},
        {"(matched after unicode normalization)",
         "after unicode normalization"},
        {"(matched after collapsing runs of blanks)",
         "after collapsing runs of blanks"},
        {"(matched after trimming whitespace)", "after trimming whitespace"},
        {"(matched after trimming whitespace)",
         "after dropping blank lines at its edges"},
        {"(matched after trimming whitespace)",
         "after trimming and collapsing blanks"},
        {"(matched but for blank lines)", "but for blank lines"},
    };
    return &words[rung];
}

/* The loose rungs as sets of folds, in the order they are tried. */
static const struct {
    hfsbi_rung rung;
    unsigned   folds;
} hfsbi_ladder[] = {
    {HFSBI_RUNG_TRAIL, HFSBI_FOLD_TRAIL},
    {HFSBI_RUNG_LOOKS, HFSBI_FOLD_LOOKS},
    {HFSBI_RUNG_LOOKS, HFSBI_FOLD_LOOKS | HFSBI_FOLD_DASHES},
    {HFSBI_RUNG_LOOKS, HFSBI_FOLD_LOOKS | HFSBI_FOLD_TRAIL},
    {HFSBI_RUNG_LOOKS,
     HFSBI_FOLD_LOOKS | HFSBI_FOLD_DASHES | HFSBI_FOLD_TRAIL},
    {HFSBI_RUNG_RUNS, HFSBI_FOLD_RUNS | HFSBI_FOLD_LOOKS | HFSBI_FOLD_TRAIL},
    {HFSBI_RUNG_RUNS, HFSBI_FOLD_RUNS | HFSBI_FOLD_LOOKS | HFSBI_FOLD_DASHES |
                          HFSBI_FOLD_TRAIL},
    {HFSBI_RUNG_INDENT,
     HFSBI_FOLD_INDENT | HFSBI_FOLD_TRAIL | HFSBI_FOLD_LOOKS},
    {HFSBI_RUNG_EDGES,
     HFSBI_FOLD_INDENT | HFSBI_FOLD_TRAIL | HFSBI_FOLD_LOOKS},
    {HFSBI_RUNG_BLANKS,
     HFSBI_FOLD_INDENT | HFSBI_FOLD_TRAIL | HFSBI_FOLD_RUNS},
    {HFSBI_RUNG_LINES, HFSBI_FOLD_INDENT | HFSBI_FOLD_TRAIL |
                           HFSBI_FOLD_LOOKS | HFSBI_FOLD_LINES},
};

/* Adds the places that only a joiner, a mark or a soft hyphen keeps from
   matching. */
static hfsb_status hfsbi_search_hidden(hfsbi_search *s, hfsb_str old_text) {
    hfsbi_matches *m = s->matches, found = *m;
    hfsb_status    st;
    m->items = NULL;
    m->count = m->cap = 0;
    st = hfsbi_try_folds(s, found.rung, old_text,
                         found.folds | HFSBI_FOLD_JOINERS);
    if (st == HFSB_OK && m->count > found.count) {
        hfsbi_matches_free(s->alloc, &found);
        return HFSB_OK;
    }
    hfsbi_matches_free(s->alloc, m);
    *m = found;
    return st;
}

/* The old text for a rung, without the blank lines at its edges if that rung
   ignores them; empty when an earlier rung had the same text. */
static hfsb_str hfsbi_rung_text(hfsbi_search *s, hfsbi_rung rung,
                                unsigned folds) {
    hfsbi_matches *m = s->matches;
    bool     drops = rung == HFSBI_RUNG_EDGES || rung == HFSBI_RUNG_LINES;
    hfsb_str none = HFSB_INIT, text = s->old_text;
    m->drop_head = m->drop_tail = drops ? HFSB_NPOS : 0;
    text = hfsbi_drop_edges(text, folds, &m->drop_head, &m->drop_tail);
    if (rung == HFSBI_RUNG_EDGES && text.len == s->old_text.len) return none;
    if (rung == HFSBI_RUNG_LINES && s->file->mixed_cr)
        return none; /* mend.c knows only one line end */
    if (rung == HFSBI_RUNG_LINES &&
        hfsb_str_find_byte(text, '\n') >= text.len - 1)
        return none; /* one line has no blank line inside */
    return text;
}

/* Climbs the loose rungs. */
static hfsb_status hfsbi_search_loose(hfsbi_search *s, bool hidden) {
    hfsbi_matches *m = s->matches;
    hfsb_status    st = s->window_count ? HFSB_OK : hfsbi_find_windows(s);
    unsigned       useless = ~hfsbi_useful_folds(s);
    size_t         i;
    for (i = 0;
         st == HFSB_OK && i < sizeof hfsbi_ladder / sizeof *hfsbi_ladder;
         i++) {
        hfsbi_rung rung = hfsbi_ladder[i].rung;
        unsigned   folds = hfsbi_ladder[i].folds;
        hfsb_str   old_text = hfsbi_rung_text(s, rung, folds);
        /* A step that repeats an earlier one is left out. */
        if (!old_text.len || (folds & useless & HFSBI_FOLD_DASHES) ||
            (rung == HFSBI_RUNG_LOOKS && (useless & HFSBI_FOLD_LOOKS)))
            continue;
        if (rung == HFSBI_RUNG_LINES) {
            s->skip_blank = true;
            st = hfsbi_find_windows(s);
        }
        if (st == HFSB_OK) st = hfsbi_try_folds(s, rung, old_text, folds);
        if (!m->count) continue;
        if (st == HFSB_OK && hidden && s->hides)
            st = hfsbi_search_hidden(s, old_text);
        return st;
    }
    return st;
}

HFSBI_FN hfsb_status hfsbi_match_find(const hfsb_alloc      *alloc,
                                      const hfsbi_edit_text *file,
                                      hfsb_str old_text, unsigned rungs,
                                      hfsbi_matches *matches) {
    hfsbi_search s;
    hfsb_status  st = HFSB_OK;
    memset(&s, 0, sizeof s);
    memset(matches, 0, sizeof *matches);
    s.alloc = alloc;
    s.file = file;
    s.old_text = old_text;
    s.matches = matches;
    s.lines = rungs & HFSBI_MATCH_LINES;
    s.few = rungs & HFSBI_MATCH_TWO;
    s.needle.text.alloc = s.view.text.alloc = *alloc;
    if (rungs & HFSBI_MATCH_EXACT) st = hfsbi_search_exact(&s);
    if (st == HFSB_OK && (rungs & HFSBI_MATCH_LOOSE) && !matches->count)
        st = hfsbi_search_loose(&s, (rungs & HFSBI_MATCH_HIDDEN) != 0);
    hfsbi_array_free(alloc, s.windows, s.window_cap, sizeof *s.windows);
    hfsbi_view_free(&s.needle);
    hfsbi_view_free(&s.view);
    return st;
}
