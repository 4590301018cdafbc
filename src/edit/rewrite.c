/* rewrite.c - make the text that replaces a match.

   An exact match is replaced by new_text with the line endings of the file. A
   match that needed folds is rewritten line by line: a line that is the same
   in old_text and new_text keeps the bytes of the file, a changed line keeps
   as many of them as the rung allows, and where indentation was folded a new
   line is indented like the file (indent.c). Where blank lines were folded,
   both texts are first given those of the file. If the file's indentation of a
   line, or the blank lines before it, is not clear, the edit is refused. */
#include "edit_private.h"

/* The changed line before the current one. */
typedef struct hfsbi_line_above {
    hfsb_str sent; /* its indentation; ptr NULL: none, or it is unchanged */
    size_t   len;  /* of what that became */
} hfsbi_line_above;

/* The line end of the file that was found last. */
typedef struct hfsbi_newline_found {
    hfsb_str text; /* empty: the file has none */
    size_t   to;   /* it holds up to this offset */
    bool     known;
} hfsbi_newline_found;

/* The rewriting of all matches of one edit. */
typedef struct hfsbi_rewriter {
    const hfsb_alloc      *alloc;
    const hfsbi_edit_text *file;
    hfsbi_edit_texts       texts;
    hfsbi_rung             rung;
    unsigned               folds;
    hfsb_buf              *out;
    hfsbi_rewritten       *result;

    hfsb_buf            mended;     /* the texts with the file's blank lines */
    hfsbi_lines         olds, news; /* of the texts, split on first use */
    size_t             *same;       /* by new line: its old line, HFSB_NPOS */
    hfsbi_old_line     *lines;      /* by old line, of the current match */
    hfsbi_indent_map    map;
    bool                mid_line; /* the match does not start a line */
    hfsbi_line_above    above;
    unsigned long long  steps;   /* of the file; 0: not known yet */
    size_t              shifted; /* of hfsbi_indent_shifted() */
    bool                shifted_known;
    hfsbi_newline_found newline;
} hfsbi_rewriter;

/* ---- the lines of the texts and of a match ---- */

static bool hfsbi_ends_in_newline(hfsb_str text) {
    return hfsb_str_ends(text, HFSB_LIT("\n"));
}

static hfsb_str hfsbi_without_newline(hfsb_str text) {
    if (!hfsbi_ends_in_newline(text)) return text;
    text.len--;
    if (hfsb_str_ends(text, HFSB_LIT("\r"))) text.len--;
    return text;
}

static void hfsbi_rewrite_free(hfsbi_rewriter *r) {
    hfsbi_array_free(r->alloc, r->lines, r->olds.count, sizeof *r->lines);
    hfsbi_array_free(r->alloc, r->same, r->news.count, sizeof *r->same);
    hfsbi_lines_free(r->alloc, &r->olds);
    hfsbi_lines_free(r->alloc, &r->news);
    r->lines = NULL;
    r->same = NULL;
}

/* Splits both texts into lines, once for all matches. */
static hfsb_status hfsbi_rewrite_split(hfsbi_rewriter *r) {
    hfsb_status st;
    if (r->lines) return HFSB_OK;
    st = hfsbi_lines_split(r->alloc, r->texts.old_text, &r->olds);
    if (st == HFSB_OK)
        st = hfsbi_lines_split(r->alloc, r->texts.new_text, &r->news);
    if (st != HFSB_OK) return st;
    r->lines = (hfsbi_old_line *)hfsbi_array(r->alloc, r->olds.count,
                                             sizeof *r->lines);
    return r->lines ? HFSB_OK : HFSB_NOMEM;
}

/* Pairs the lines of old_text and new_text, once for all matches. */
static hfsb_status hfsbi_rewrite_diff(hfsbi_rewriter *r) {
    const hfsbi_line_pairs *given = r->texts.pairs;
    size_t                  j;
    if (r->same) return HFSB_OK;
    r->same = (size_t *)hfsbi_array(r->alloc, r->news.count, sizeof *r->same);
    if (!r->same) return HFSB_NOMEM;
    if (given && given->old_count == r->olds.count &&
        given->new_count == r->news.count) {
        for (j = 0; j < given->new_count; j++) r->same[j] = given->same[j];
        return HFSB_OK;
    }
    return hfsbi_lines_diff(r->alloc, r->olds.items, r->olds.count,
                            r->news.items, r->news.count, r->same);
}

/* Cuts the match into the file's lines, one for each old line, and finds the
   rule of their indentation where that was folded. */
static void hfsbi_rewrite_load(hfsbi_rewriter *r, hfsbi_match match) {
    size_t i, pos = match.start, len;
    r->mid_line = !hfsbi_starts_text(r->file, match.start);
    for (i = 0; i < r->olds.count; i++) {
        hfsbi_old_line *line = r->lines + i;
        size_t          end = hfsbi_edit_line_end(r->file, pos, &len);
        if (end >= match.end) {
            end = match.end;
            len = 0;
        }
        line->text = hfsb_str_slice(r->file->text, pos, end);
        line->end = hfsb_str_slice(r->file->text, end, end + len);
        pos = end + len;
        line->file_indent = hfsbi_indent_of(line->text, r->folds);
        line->indent = hfsbi_indent_of(r->olds.items[i], r->folds);
        /* A line that is blank to the folds is so on both sides. */
        if (!line->file_indent.ptr) line->indent.ptr = NULL;
    }
    if (r->rung < HFSBI_RUNG_INDENT) return;
    hfsbi_indent_map_make(&r->map, r->lines, r->olds.count, &r->news, r->folds,
                          r->file, &r->steps);
}

/* The file's line end at pos, empty if it has none. Many matches can lie on
   one long line: the last answer is cached. pos never decreases. */
static hfsb_str hfsbi_rewrite_newline(hfsbi_rewriter *r, size_t pos) {
    size_t len;
    if (r->newline.known && pos <= r->newline.to) return r->newline.text;
    if (!r->newline.known || r->newline.text.len)
        r->newline.text = hfsbi_newline_at(r->file, pos);
    r->newline.to = hfsbi_edit_line_end(r->file, pos, &len);
    r->newline.known = true;
    return r->newline.text;
}

/* The line end for new lines: the file's, else that of new_text. */
static hfsb_str hfsbi_new_line_end(hfsbi_rewriter *r, size_t pos) {
    hfsb_str newline = hfsbi_rewrite_newline(r, pos);
    size_t   lf = hfsb_str_find_byte(r->texts.raw_new, '\n');
    if (newline.len) return newline;
    return lf != HFSB_NPOS && lf > 0 && r->texts.raw_new.ptr[lf - 1] == '\r'
               ? HFSB_LIT("\r\n")
               : HFSB_LIT("\n");
}

HFSBI_FN void hfsbi_put_newlines(hfsb_buf *out, hfsb_str text,
                                 hfsb_str newline) {
    size_t end;
    if (newline.len && !hfsb_str_equal(newline, HFSB_LIT("\n")))
        while ((end = hfsb_str_find_byte(text, '\n')) != HFSB_NPOS) {
            hfsb_buf_append(out, hfsb_str_slice(text, 0, end));
            hfsb_buf_append(out, newline);
            text = hfsb_str_slice(text, end + 1, text.len);
        }
    hfsb_buf_append(out, text);
}

/* Appends new_text with the file's line ends; unchanged if the file has
   none. */
static void hfsbi_put_verbatim(hfsbi_rewriter *r, size_t pos) {
    hfsb_str newline = HFSB_INIT;
    if (hfsb_str_find_byte(r->texts.raw_new, '\n') == HFSB_NPOS) {
        hfsb_buf_append(r->out, r->texts.raw_new);
        return;
    }
    newline = hfsbi_rewrite_newline(r, pos);
    hfsbi_put_newlines(
        r->out, newline.len ? r->texts.new_text : r->texts.raw_new, newline);
}

/* ---- keeping the file's bytes inside a changed line ---- */

/* True when a cut at pos would fall between two blanks of a run. */
static bool hfsbi_cuts_run(hfsb_str s, size_t pos, unsigned folds) {
    size_t len;
    if (!(folds & HFSBI_FOLD_RUNS) || pos == 0 || pos >= s.len) return false;
    return hfsbi_blank_at(s, pos, folds, &len) &&
           hfsbi_blank_at(s, hfsbi_utf8_floor(s, pos - 1), folds, &len);
}

/* Length of the common head of an old line and a new line, without a part of a
   run of blanks; the next function: of the common tail. */
static size_t hfsbi_common_head(hfsb_str a, hfsb_str b, unsigned folds) {
    size_t n = 0, least = a.len < b.len ? a.len : b.len;
    while (n < least && a.ptr[n] == b.ptr[n]) n++;
    while (hfsbi_cuts_run(b, n, folds)) n--;
    return n;
}

static size_t hfsbi_common_tail(hfsb_str a, hfsb_str b, unsigned folds) {
    size_t n = 0, least = a.len < b.len ? a.len : b.len;
    while (n < least && a.ptr[a.len - 1 - n] == b.ptr[b.len - 1 - n]) n++;
    while (hfsbi_cuts_run(b, b.len - n, folds)) n--;
    return n;
}

/* An old line and the file's line, which are equal to the folds, walked side
   by side from one border to the next. A border lies where characters end on
   both sides; characters that vanish may lie in it. */
typedef struct hfsbi_line_walk {
    hfsbi_folder old_line, file_line;
    size_t       old_seen, file_seen;     /* folded bytes so far */
    size_t       old_before, file_before; /* the border's start and end */
    size_t       old_after, file_after;
} hfsbi_line_walk;

/* Skips characters that vanish; returns the offset after them. */
static size_t hfsbi_skip_vanishing(hfsbi_folder *f) {
    hfsbi_folder ahead = *f;
    hfsbi_folded step;
    while (hfsbi_folder_next(&ahead, &step) && !step.out.len) *f = ahead;
    return f->pos;
}

static void hfsbi_walk_border(hfsbi_line_walk *w) {
    w->old_before = w->old_line.pos;
    w->file_before = w->file_line.pos;
    w->old_after = hfsbi_skip_vanishing(&w->old_line);
    w->file_after = hfsbi_skip_vanishing(&w->file_line);
}

/* Starts at the border before the first character. */
static hfsbi_line_walk hfsbi_walk_start(const hfsbi_rewriter *r, size_t line) {
    hfsbi_line_walk w = HFSB_INIT;
    w.old_line = hfsbi_folder_make(r->olds.items[line], r->folds);
    w.file_line = hfsbi_folder_make(r->lines[line].text, r->folds);
    w.file_line.indent = !(line == 0 && r->mid_line);
    hfsbi_walk_border(&w);
    return w;
}

static bool hfsbi_walk_next(hfsbi_line_walk *w) {
    hfsbi_folded step;
    do {
        bool old_side = w->old_seen <= w->file_seen;
        if (!hfsbi_folder_next(old_side ? &w->old_line : &w->file_line, &step))
            return false;
        *(old_side ? &w->old_seen : &w->file_seen) += step.out.len;
    } while (w->old_seen != w->file_seen);
    hfsbi_walk_border(w);
    return true;
}

/* The last border within the first `limit` bytes of the old line. */
static void hfsbi_align_head(const hfsbi_rewriter *r, size_t line,
                             size_t limit, size_t *old_pos, size_t *file_pos) {
    hfsbi_line_walk w = hfsbi_walk_start(r, line);
    do {
        if (w.old_before > limit) return;
        *old_pos = w.old_before;
        *file_pos = w.file_before;
    } while (hfsbi_walk_next(&w));
}

/* The first border at or after byte `limit` of the old line. */
static void hfsbi_align_tail(const hfsbi_rewriter *r, size_t line,
                             size_t limit, size_t *old_pos, size_t *file_pos) {
    hfsbi_line_walk w = hfsbi_walk_start(r, line);
    do {
        bool before = w.old_before >= limit && w.old_before < w.old_after;
        *old_pos = before ? w.old_before : w.old_after;
        *file_pos = before ? w.file_before : w.file_after;
    } while (*old_pos < limit && hfsbi_walk_next(&w));
}

/* Appends a new line that replaces old lines `first` to `last`. Where it
   begins like the first and ends like the last, the file's bytes stay. */
static void hfsbi_put_changed(hfsbi_rewriter *r, hfsb_str line, size_t first,
                              bool keep_head, size_t last, bool keep_tail) {
    hfsb_str head = r->olds.items[first], tail = r->olds.items[last], rest;
    hfsb_str file_head = r->lines[first].text, file_tail = r->lines[last].text;
    size_t   head_old = 0, head_file = 0, n = 0;
    size_t   tail_old = tail.len, tail_file = file_tail.len;
    if (keep_head)
        hfsbi_align_head(r, first, hfsbi_common_head(head, line, r->folds),
                         &head_old, &head_file);
    rest = hfsb_str_slice(line, head_old, line.len);
    if (keep_tail)
        n = hfsbi_common_tail(
            hfsb_str_slice(tail, first == last ? head_old : 0, tail.len), rest,
            r->folds);
    if (n) hfsbi_align_tail(r, last, tail.len - n, &tail_old, &tail_file);
    hfsb_buf_append(r->out, hfsb_str_slice(file_head, 0, head_file));
    hfsb_buf_append(r->out,
                    hfsb_str_slice(rest, 0, rest.len - (tail.len - tail_old)));
    hfsb_buf_append(r->out,
                    hfsb_str_slice(file_tail, tail_file, file_tail.len));
}

/* ---- line by line ---- */

/* Appends the indentation of a new line; `twin` is the old line it replaces,
   or HFSB_NPOS. If both have the same indentation, the new line gets that of
   the old one in the file. False when its indentation is not clear. */
static bool hfsbi_put_indent(hfsbi_rewriter *r, hfsb_str indent, size_t twin,
                             bool near_off) {
    if (twin == HFSB_NPOS || !r->lines[twin].indent.ptr ||
        !hfsb_str_equal(r->lines[twin].indent, indent))
        return hfsbi_indent_put(&r->map, indent, near_off, r->out);
    hfsb_buf_append(r->out, r->lines[twin].file_indent);
    return true;
}

/* Appends a new line with the file's indentation. */
static bool hfsbi_put_indented(hfsbi_rewriter *r, size_t j, size_t twin,
                               bool near_off) {
    hfsb_str line = r->news.items[j];
    hfsb_str indent = hfsbi_indent_of(line, r->folds), put;
    size_t   mark = r->out->len;
    r->result->line = j;
    if (!indent.ptr) {
        hfsb_buf_append(r->out, line);
        return true;
    }
    if (!hfsbi_put_indent(r, indent, twin, near_off)) return false;
    put = hfsb_str_slice(hfsb_buf_str(r->out), mark, HFSB_NPOS);
    if (r->out->status == HFSB_OK && !hfsb_str_equal(put, indent))
        r->result->reindented = true;
    r->above.sent = indent;
    r->above.len = put.len;
    hfsb_buf_append(r->out, hfsb_str_slice(line, indent.len, line.len));
    return true;
}

static int hfsbi_compare_sizes(size_t a, size_t b) {
    return a < b ? -1 : a > b;
}

/* True when an unchanged line, indented differently in the file, follows a
   changed line, and is no longer deeper or shallower than that one as it was
   sent. If the file has such steps, the line may have been sent as it should
   become. A flat old text proves nothing. */
static bool hfsbi_loses_step(hfsbi_rewriter *r, size_t j, size_t same) {
    const hfsbi_old_line *line = r->lines + same;
    hfsb_str              above = r->above.sent;
    if (!line->indent.ptr) return false;
    r->above.sent.ptr = NULL;
    r->result->line = j;
    return above.ptr && (line->indent.len || !r->map.flat) &&
           !hfsb_str_equal(line->indent, line->file_indent) &&
           (r->map.rule == HFSBI_INDENT_NONE ||
            r->map.rule == HFSBI_INDENT_MIXED) &&
           !hfsbi_indent_mixes(line->indent, line->file_indent) &&
           hfsbi_compare_sizes(line->indent.len, above.len) !=
               hfsbi_compare_sizes(line->file_indent.len, r->above.len) &&
           hfsbi_is_level_off(r->map.steps, line);
}

/* New lines [from, to) replace old lines [old_from, old_to). The new lines
   [from, above_to) are in one block with the unchanged line before them, those
   in [below_from, to) with the one after. */
typedef struct hfsbi_changed_lines {
    size_t from, to, old_from, old_to;
    size_t above, below; /* unchanged old lines that are off, or HFSB_NPOS */
    size_t gone;         /* a replaced old line that is off, or HFSB_NPOS */
    size_t above_to, below_from;
} hfsbi_changed_lines;

/* True when new line j is shallower than an old line. */
static bool hfsbi_leaves_block(const hfsbi_rewriter *r, size_t j,
                               size_t old_line) {
    hfsb_str indent = hfsbi_indent_of(r->news.items[j], r->folds);
    return indent.ptr && indent.len < r->lines[old_line].indent.len;
}

static bool hfsbi_same_indent(const hfsbi_old_line *line) {
    return !line->indent.ptr ||
           hfsb_str_equal(line->indent, line->file_indent);
}

/* Finds the unchanged lines around c, beyond blank lines, that are indented
   differently in the file, and the new lines in one block with them; and the
   first such line that c replaces. */
static void hfsbi_find_off(const hfsbi_rewriter *r, hfsbi_changed_lines *c) {
    const hfsbi_old_line *line;
    c->above = c->old_from;
    c->below = c->old_to;
    while (c->above > 0 && !r->lines[c->above - 1].indent.ptr) c->above--;
    while (c->below < r->olds.count && !r->lines[c->below].indent.ptr)
        c->below++;
    line = c->above ? r->lines + --c->above : NULL;
    if (!line || hfsbi_same_indent(line)) c->above = HFSB_NPOS;
    line = c->below < r->olds.count ? r->lines + c->below : NULL;
    if (!line || hfsbi_same_indent(line)) c->below = HFSB_NPOS;
    c->gone = c->old_from;
    while (c->gone < c->old_to && hfsbi_same_indent(r->lines + c->gone))
        c->gone++;
    if (c->gone == c->old_to) c->gone = HFSB_NPOS;
    c->above_to = c->from;
    c->below_from = c->to;
    while (c->above != HFSB_NPOS && c->above_to < c->to &&
           !hfsbi_leaves_block(r, c->above_to, c->above))
        c->above_to++;
    while (c->below != HFSB_NPOS && c->below_from > c->from &&
           !hfsbi_leaves_block(r, c->below_from - 1, c->below))
        c->below_from--;
}

/* True when new line j is as deep as an unchanged line next to it, or a line
   that it may replace, that is indented differently in the file. */
static bool hfsbi_is_near_off(const hfsbi_rewriter      *r,
                              const hfsbi_changed_lines *c, size_t j) {
    hfsb_str indent = hfsbi_indent_of(r->news.items[j], r->folds);
    return (c->gone != HFSB_NPOS &&
            hfsb_str_equal(indent, r->lines[c->gone].indent)) ||
           (j < c->above_to &&
            hfsb_str_equal(indent, r->lines[c->above].indent)) ||
           (j >= c->below_from &&
            hfsb_str_equal(indent, r->lines[c->below].indent));
}

/* The changed lines that start at new line j. */
static hfsbi_changed_lines hfsbi_changed_from(const hfsbi_rewriter *r,
                                              size_t                j) {
    hfsbi_changed_lines c = HFSB_INIT;
    c.from = c.to = j;
    c.old_from = j ? r->same[j - 1] + 1 : 0;
    while (c.to < r->news.count && r->same[c.to] == HFSB_NPOS) c.to++;
    c.old_to = c.to < r->news.count ? r->same[c.to] : r->olds.count;
    if (r->rung >= HFSBI_RUNG_INDENT) hfsbi_find_off(r, &c);
    return c;
}

/* Appends new line j, one of the changed lines. */
static bool hfsbi_put_new_line(hfsbi_rewriter *r, const hfsbi_changed_lines *c,
                               size_t j) {
    bool     paired = c->to - c->from == c->old_to - c->old_from;
    size_t   twin = paired ? c->old_from + (j - c->from) : HFSB_NPOS;
    hfsb_str line = r->news.items[j];
    if (r->rung >= HFSBI_RUNG_INDENT)
        return hfsbi_put_indented(r, j, twin, hfsbi_is_near_off(r, c, j));
    if (r->rung < HFSBI_RUNG_LOOKS || c->old_from == c->old_to ||
        (r->rung == HFSBI_RUNG_LOOKS && r->texts.verbatim))
        hfsb_buf_append(r->out, line);
    else if (paired) hfsbi_put_changed(r, line, twin, true, twin, true);
    else
        hfsbi_put_changed(r, line, c->old_from, j == c->from, c->old_to - 1,
                          j + 1 == c->to);
    return true;
}

/* Appends all lines of new_text. A last line without a line end gets none,
   unless whole lines are replaced. */
static hfsb_status hfsbi_rewrite_lines(hfsbi_rewriter *r, hfsb_str newline) {
    hfsbi_changed_lines c = HFSB_INIT;
    size_t              j, n = r->news.count;
    bool                ends = hfsbi_ends_in_newline(r->texts.new_text) ||
                (r->rung >= HFSBI_RUNG_INDENT &&
                 hfsbi_ends_in_newline(r->texts.old_text));
    for (j = 0; j < n; j++) {
        size_t   same = r->same[j];
        hfsb_str end = newline;
        if (same == HFSB_NPOS) {
            if (j >= c.to) c = hfsbi_changed_from(r, j);
            if (!hfsbi_put_new_line(r, &c, j)) return HFSB_REFUSED;
        } else {
            if (r->rung >= HFSBI_RUNG_INDENT && hfsbi_loses_step(r, j, same))
                return HFSB_REFUSED;
            hfsb_buf_append(r->out, r->lines[same].text);
            if (r->lines[same].end.len) end = r->lines[same].end;
        }
        if (j + 1 < n || ends) hfsb_buf_append(r->out, end);
    }
    return HFSB_OK;
}

/* ---- replace ---- */

/* True when all line ends in the match are the same. */
static bool hfsbi_is_uniform(const hfsbi_edit_text *file, hfsbi_match match) {
    hfsb_str rest = hfsb_str_slice(file->text, match.start, match.end);
    size_t   lf, crlf = 0, lines = 0;
    if (!file->has_cr || file->lone_cr) return true;
    if (file->mixed_cr) return false;
    while ((lf = hfsb_str_find_byte(rest, '\n')) != HFSB_NPOS) {
        lines++;
        if (lf > 0 && rest.ptr[lf - 1] == '\r') crlf++;
        if (crlf && crlf < lines) return false;
        rest = hfsb_str_slice(rest, lf + 1, rest.len);
    }
    return true;
}

/* Deleting whole lines also deletes their line end. */
static void hfsbi_delete_lines(const hfsbi_edit_text *file,
                               hfsbi_match           *match) {
    size_t len, end = hfsbi_edit_line_end(file, match->end, &len);
    if (end == match->end &&
        (match->start == match->end || !hfsbi_starts_line(file, match->end)))
        match->end += len;
}

/* Refuses texts indented differently from each other, if depth is relative. */
static hfsb_status hfsbi_check_shifted(hfsbi_rewriter *r) {
    hfsbi_indent_rule rule = r->map.rule;
    hfsb_status       st = HFSB_OK;
    if (rule != HFSBI_INDENT_ADD && rule != HFSBI_INDENT_REMOVE &&
        rule != HFSBI_INDENT_TABLE &&
        !(rule == HFSBI_INDENT_UNITS && r->map.units.shift))
        return HFSB_OK;
    if (!r->shifted_known)
        st = hfsbi_indent_shifted(r->alloc, &r->olds, &r->news, r->folds,
                                  &r->shifted);
    if (st != HFSB_OK) return st;
    r->shifted_known = true;
    r->result->line = r->shifted;
    return r->shifted == HFSB_NPOS ? HFSB_OK : HFSB_REFUSED;
}

static hfsb_status hfsbi_replace(hfsbi_rewriter *r, hfsbi_match *match) {
    hfsb_status st;
    if (r->rung <= HFSBI_RUNG_EOF && hfsbi_is_uniform(r->file, *match)) {
        hfsbi_put_verbatim(r, match->start);
        return HFSB_OK;
    }
    if (r->rung >= HFSBI_RUNG_INDENT && !r->texts.new_text.len) {
        hfsbi_delete_lines(r->file, match);
        return HFSB_OK;
    }
    st = hfsbi_rewrite_split(r);
    if (st == HFSB_OK) st = hfsbi_rewrite_diff(r);
    if (st != HFSB_OK) return st;
    hfsbi_rewrite_load(r, *match);
    r->above.sent.ptr = NULL;
    if (r->rung >= HFSBI_RUNG_INDENT) st = hfsbi_check_shifted(r);
    if (st != HFSB_OK) return st;
    return hfsbi_rewrite_lines(r, hfsbi_new_line_end(r, match->start));
}

/* ---- insert ---- */

/* Appends the lines of new_text indented as the file is. The first continues
   the line of the match unless it starts its own; text after the last line
   end precedes the match on its line. */
static hfsb_status hfsbi_insert_lines(hfsbi_rewriter *r, bool own_line,
                                      hfsb_str newline) {
    bool   before = r->texts.mode == HFSB_EDIT_PREPEND_BEFORE;
    size_t j, n = r->news.count;
    for (j = 0; j < n; j++) {
        bool ends = j + 1 < n || hfsbi_ends_in_newline(r->texts.new_text);
        if ((j == 0 && !own_line) || (before && !ends))
            hfsb_buf_append(r->out, r->news.items[j]);
        else if (!hfsbi_put_indented(r, j, HFSB_NPOS, true))
            return HFSB_REFUSED;
        if (ends) hfsb_buf_append(r->out, newline);
    }
    return HFSB_OK;
}

static hfsb_status hfsbi_insert(hfsbi_rewriter *r, hfsbi_match *match) {
    hfsbi_match whole = *match;
    hfsb_str    newline = hfsbi_new_line_end(r, match->start);
    bool        own_line;
    hfsb_status st;
    if (r->texts.mode == HFSB_EDIT_PREPEND_BEFORE) match->end = match->start;
    else match->start = match->end;
    own_line = whole.lacks_newline || hfsbi_starts_line(r->file, match->start);
    /* The line end that old_text has and the end of the file lacks. */
    if (whole.lacks_newline && r->texts.mode == HFSB_EDIT_APPEND_AFTER)
        hfsb_buf_append(r->out, newline);
    if (r->rung < HFSBI_RUNG_INDENT) {
        hfsbi_put_verbatim(r, whole.start);
        return HFSB_OK;
    }
    st = hfsbi_rewrite_split(r);
    if (st != HFSB_OK) return st;
    hfsbi_rewrite_load(r, whole);
    return hfsbi_insert_lines(r, own_line, newline);
}

/* A match at the end of a file that lacks the last newline: both texts drop it
   too, but text put before the match needs its line end. */
static void hfsbi_drop_newline(hfsbi_rewriter *r) {
    r->texts.old_text = hfsbi_without_newline(r->texts.old_text);
    if (r->texts.mode == HFSB_EDIT_PREPEND_BEFORE) return;
    r->texts.new_text = hfsbi_without_newline(r->texts.new_text);
    r->texts.raw_new = hfsbi_without_newline(r->texts.raw_new);
}

/* A match at the end of a file that lacks the blank line which ends old_text:
   new_text drops it too. The file's last newline stays. */
static hfsb_status hfsbi_replace_without_blank(hfsbi_rewriter *r,
                                               hfsbi_match    *match) {
    hfsb_str    text = r->texts.new_text;
    size_t      mark = r->out->len;
    hfsb_status st;
    r->texts.old_text = hfsbi_without_newline(r->texts.old_text);
    if (hfsb_str_equal(text, HFSB_LIT("\n")) ||
        hfsb_str_ends(text, HFSB_LIT("\n\n"))) {
        r->texts.new_text = hfsbi_without_newline(text);
        r->texts.raw_new = hfsbi_without_newline(r->texts.raw_new);
    }
    st = hfsbi_replace(r, match);
    if (r->out->len > mark && !hfsbi_ends_in_newline(r->texts.new_text))
        hfsb_buf_append(r->out, hfsbi_new_line_end(r, match->start));
    return st;
}

/* ---- all matches ---- */

static hfsb_status hfsbi_rewrite_one(hfsbi_rewriter         *r,
                                     const hfsbi_edit_texts *sent,
                                     hfsbi_match            *match) {
    hfsb_status st = HFSB_OK;
    if (r->rung == HFSBI_RUNG_LINES) r->texts = *sent;
    if (match->lacks_newline) hfsbi_drop_newline(r);
    if (r->rung == HFSBI_RUNG_LINES) {
        hfsbi_rewrite_free(r);
        st = hfsbi_mend_blank_lines(r->alloc, r->file, match, r->folds,
                                    &r->texts, &r->mended, &r->result->line);
        r->result->blank_lines = st == HFSB_REFUSED;
    }
    if (st != HFSB_OK) return st;
    if (r->texts.mode != HFSB_EDIT_REPLACE) return hfsbi_insert(r, match);
    return match->lacks_blank ? hfsbi_replace_without_blank(r, match)
                              : hfsbi_replace(r, match);
}

/* The line of `sent` that is line number `line` of text: the two differ in
   blank lines only. */
static size_t hfsbi_line_as_sent(hfsb_str text, size_t line, hfsb_str sent,
                                 unsigned folds) {
    hfsb_str one;
    size_t   i, full = 0;
    for (i = 0; i <= line && hfsb_text_line(&text, &one, NULL); i++)
        full += !hfsbi_is_all_blank(one, folds);
    for (i = 0; full && hfsb_text_line(&sent, &one, NULL); i++)
        full -= !hfsbi_is_all_blank(one, folds);
    return i ? i - 1 : 0;
}

HFSBI_FN hfsb_status hfsbi_rewrite_matches(const hfsb_alloc       *alloc,
                                           const hfsbi_edit_text  *file,
                                           const hfsbi_edit_texts *texts,
                                           hfsbi_matches          *matches,
                                           hfsb_buf               *out,
                                           hfsbi_rewritten        *result) {
    hfsbi_rewriter   r;
    hfsbi_edit_texts sent;
    size_t           i, head = matches->drop_head, tail = matches->drop_tail;
    hfsb_status      st = HFSB_OK;
    memset(&r, 0, sizeof r);
    memset(result, 0, sizeof *result);
    r.alloc = alloc;
    r.mended.alloc = *alloc;
    r.file = file;
    r.rung = matches->rung;
    r.folds = matches->folds;
    r.out = out;
    r.result = result;
    sent = *texts;
    sent.old_text = hfsbi_drop_edges(texts->old_text, r.folds, &head, &tail);
    if (texts->mode == HFSB_EDIT_REPLACE)
        sent.new_text =
            hfsbi_drop_edges(texts->new_text, r.folds, &head, &tail);
    r.texts = sent;
    if (r.rung == HFSBI_RUNG_LINES && sent.new_text.len &&
        (head < matches->drop_head || tail < matches->drop_tail)) {
        result->blank_lines = true;
        return HFSB_REFUSED;
    }
    for (i = 0; st == HFSB_OK && i < matches->count; i++) {
        hfsbi_match *m = matches->items + i;
        result->match = i;
        m->text_pos = out->len;
        st = hfsbi_rewrite_one(&r, &sent, m);
        m->text_len = out->len - m->text_pos;
        if (st == HFSB_OK) st = out->status;
    }
    if (st == HFSB_REFUSED)
        result->line = hfsbi_line_as_sent(r.texts.new_text, result->line,
                                          texts->new_text, r.folds);
    hfsbi_rewrite_free(&r);
    hfsb_buf_free(&r.mended);
    return st;
}
