/* patch.c - apply a patch in memory. */
#include "edit_private.h"

/* The update of one file. */
typedef struct hfsbi_update {
    const hfsb_alloc       *alloc;
    const hfsbi_patch_text *patch;
    const hfsbi_section    *section;
    hfsb_str                content;
    hfsbi_file              file;
    bool                    split_cr; /* a lone CR ends a line, beside LF */
    hfsbi_rows              rows;     /* the file's lines */
    hfsbi_rows              olds;     /* lines of the hunk under way */
    hfsbi_row_search        search;
    size_t                  cursor; /* first row not yet behind us */
    hfsb_span              *spans;
    size_t                  span_count, span_cap;
    hfsb_buf                texts; /* what the spans put in, in order */
    hfsb_buf                tail;  /* what goes behind the last line */
    bool                    fuzzy;
    hfsb_err               *err;
} hfsbi_update;

/* ==== patch update ==== */

/* the hunks of one file. */

/* How closely a line of a hunk is the file's line, from closest to least. */
typedef enum hfsbi_grade {
    HFSBI_GRADE_EXACT,
    HFSBI_GRADE_TRAIL,   /* but for blanks at its end */
    HFSBI_GRADE_TRIMMED, /* context only: but for blanks at both ends */
    HFSBI_GRADE_LOOKS,   /* but for look-alikes, too */
    HFSBI_GRADE_NONE
} hfsbi_grade;

static const unsigned hfsbi_patch_flags = HFSBI_FOLD_TRAIL | HFSBI_FOLD_LOOKS;

static hfsb_str hfsbi_update_row(const hfsbi_update *u, size_t row) {
    return hfsb_str_slice(u->file.text, u->rows.items[row].start,
                          u->rows.items[row].text_end);
}

/* ---- lines of the file ---- */

/* Cuts rows at lone CRs as well. */
static hfsb_status hfsbi_split_rows(hfsbi_update *u) {
    hfsbi_rows  rows = HFSB_INIT;
    size_t      i;
    hfsbi_file  file = u->file;
    hfsb_status st = HFSB_OK;
    for (i = 0; st == HFSB_OK && i < u->rows.count; i++) {
        hfsbi_row row = u->rows.items[i];
        for (;;) {
            size_t cr = hfsb_str_find_byte(
                hfsb_str_slice(file.text, row.start, row.text_end), '\r');
            hfsbi_row *p = (hfsbi_row *)hfsbi_array_grow(
                u->alloc, rows.items, &rows.cap, rows.count + 1, sizeof *p);
            if (!p) {
                st = HFSB_NOMEM;
                break;
            }
            rows.items = p;
            p += rows.count++;
            *p = row;
            if (cr != HFSB_NPOS) {
                p->text_end = row.start + cr;
                p->end = row.start = p->text_end + 1;
            }
            p->hash = hfsbi_fold_hash(
                hfsb_str_slice(file.text, p->start, p->text_end),
                hfsbi_patch_flags);
            if (cr == HFSB_NPOS) break;
        }
    }
    hfsbi_rows_free(u->alloc, &u->rows);
    u->rows = rows;
    return st;
}

static hfsb_status hfsbi_update_rows(hfsbi_update *u) {
    hfsb_status st = hfsbi_rows_of(u->alloc, &u->file, 0, u->file.text.len,
                                   hfsbi_patch_flags, &u->rows);
    if (st == HFSB_OK && u->split_cr) st = hfsbi_split_rows(u);
    return st;
}

/* ---- comparing ---- */

static hfsbi_grade hfsbi_grade_line(hfsb_str want, hfsb_str have,
                                    bool context) {
    hfsb_str w = hfsbi_trim_end(want), h = hfsbi_trim_end(have);
    size_t   wi, hi;
    if (hfsb_str_equal(want, have)) return HFSBI_GRADE_EXACT;
    if (hfsb_str_equal(w, h)) return HFSBI_GRADE_TRAIL;
    wi = hfsbi_indent_len(w, 0);
    hi = hfsbi_indent_len(h, 0);
    if (context && hfsb_str_equal(hfsb_str_slice(w, wi, w.len),
                                  hfsb_str_slice(h, hi, h.len)))
        return HFSBI_GRADE_TRIMMED;
    if (!context &&
        !hfsb_str_equal(hfsb_str_slice(w, 0, wi), hfsb_str_slice(h, 0, hi)))
        return HFSBI_GRADE_NONE;
    return hfsbi_fold_equal(want, have, hfsbi_patch_flags) ? HFSBI_GRADE_LOOKS
                                                           : HFSBI_GRADE_NONE;
}

/* Text of a hunk's line without its mark. */
static hfsb_str hfsbi_body_text(hfsb_str line) {
    return hfsb_str_slice(line, 1, line.len);
}

static bool hfsbi_is_old(hfsb_str line) {
    return !line.len || line.ptr[0] != '+';
}

/* The worst grade of the hunk's old lines against the rows from `row` on.
   Takes one off *budget for each line compared. */
static hfsbi_grade hfsbi_grade_chunk(const hfsbi_update *u,
                                     const hfsbi_chunk *chunk, size_t row,
                                     size_t *budget) {
    hfsbi_grade worst = HFSBI_GRADE_EXACT;
    size_t      i;
    for (i = chunk->body; i < chunk->end && worst < HFSBI_GRADE_NONE; i++) {
        hfsb_str    line = u->patch->lines.items[i];
        hfsbi_grade g;
        if (!hfsbi_is_old(line)) continue;
        g = hfsbi_grade_line(hfsbi_body_text(line), hfsbi_update_row(u, row++),
                             !line.len || line.ptr[0] == ' ');
        if (g > worst) worst = g;
        --*budget;
    }
    return worst;
}

/* ---- finding a hunk ---- */

typedef struct hfsbi_hit {
    size_t      row, count;
    hfsbi_grade grade;
    bool        unsure; /* a place not looked at may be the better one */
} hfsbi_hit;

/* Hashes of the hunk's old lines. */
static hfsb_status hfsbi_hash_chunk(hfsbi_update      *u,
                                    const hfsbi_chunk *chunk) {
    size_t i;
    u->olds.count = 0;
    for (i = chunk->body; i < chunk->end; i++) {
        hfsb_str   line = u->patch->lines.items[i];
        hfsbi_row *p;
        if (!hfsbi_is_old(line)) continue;
        p = (hfsbi_row *)hfsbi_array_grow(u->alloc, u->olds.items,
                                          &u->olds.cap, u->olds.count + 1,
                                          sizeof *p);
        if (!p) return HFSB_NOMEM;
        u->olds.items = p;
        p[u->olds.count++].hash =
            hfsbi_fold_hash(hfsbi_body_text(line), hfsbi_patch_flags);
    }
    return HFSB_OK;
}

/* Weighs the place at `row`. Comparing costs up to the hunk's length, so there
   is a budget; when it is spent a further place counts as one more, and only
   an exact one found before is sure to be the best. */
static void hfsbi_weigh(const hfsbi_update *u, const hfsbi_chunk *chunk,
                        size_t row, size_t *budget, hfsbi_hit *hit) {
    hfsbi_grade g;
    if (*budget < u->olds.count) {
        if (hit->grade == HFSBI_GRADE_NONE && !hit->count) hit->row = row;
        if (hit->grade != HFSBI_GRADE_EXACT) hit->unsure = true;
        hit->count++;
        return;
    }
    g = hfsbi_grade_chunk(u, chunk, row, budget);
    if (g == HFSBI_GRADE_NONE || g > hit->grade) return;
    if (g < hit->grade) {
        hit->grade = g;
        hit->row = row;
        hit->count = 0;
    }
    hit->count++;
}

/* All places of the hunk in rows [from, to): the first of the best grade, and
   how many have that grade. */
static hfsb_status hfsbi_find_chunk(hfsbi_update *u, const hfsbi_chunk *chunk,
                                    size_t from, size_t to, hfsbi_hit *hit) {
    size_t      budget = 8 * (to - from + u->olds.count) + 1024, at;
    hfsb_status st = hfsbi_row_search_begin(u->alloc, &u->search, &u->olds,
                                            &u->rows, from, to);
    hit->grade = HFSBI_GRADE_NONE;
    hit->row = hit->count = 0;
    hit->unsure = false;
    while (st == HFSB_OK && hfsbi_row_search_next(&u->search, &at))
        hfsbi_weigh(u, chunk, at, &budget, hit);
    return st;
}

/* ---- anchors ---- */

/* The text of an @@ line; what other tools put there, "-1,2 +1,3 @@", says
   nothing about the place. */
static hfsb_str hfsbi_anchor_text(hfsb_str line) {
    hfsb_str text = hfsb_str_slice(line, 3, line.len);
    size_t   end;
    if (hfsb_str_starts(text, HFSB_LIT("-")) &&
        (end = hfsb_str_find(text, HFSB_LIT(" @@"))) != HFSB_NPOS &&
        hfsb_str_find(hfsb_str_slice(text, 0, end), HFSB_LIT(" +")) !=
            HFSB_NPOS)
        text = hfsb_str_slice(text, end + 4, text.len);
    return text;
}

/* The first row, from `from` on, that is the anchor's line, by the best grade
   there is; HFSB_NPOS for none. */
static size_t hfsbi_find_anchor(const hfsbi_update *u, hfsb_str text,
                                size_t from) {
    unsigned long long hash = hfsbi_fold_hash(text, hfsbi_patch_flags);
    hfsbi_grade        best = HFSBI_GRADE_NONE;
    size_t             at = HFSB_NPOS, i;
    for (i = from; i < u->rows.count && best > HFSBI_GRADE_EXACT; i++) {
        hfsbi_grade g;
        if (u->rows.items[i].hash != hash) continue;
        g = hfsbi_grade_line(text, hfsbi_update_row(u, i), true);
        if (g < best) {
            best = g;
            at = i;
        }
    }
    return at;
}

/* ---- refusals ---- */

static hfsb_status hfsbi_chunk_error(const hfsbi_update *u,
                                     const hfsbi_chunk  *chunk,
                                     hfsb_status code, const char *what) {
    hfsbi_fail(u->err, code, 0, "%s", "");
    hfsbi_err_quote(u->err, u->section->path, 200);
    hfsbi_err_add(u->err, ": the hunk at line %zu of the patch %s",
                  chunk->anchors + 1, what);
    if (u->err) u->err->line = chunk->anchors + 1;
    return code;
}

static hfsb_status hfsbi_anchor_missing(const hfsbi_update *u,
                                        const hfsbi_chunk  *chunk,
                                        hfsb_str            text) {
    hfsb_status st = hfsbi_chunk_error(u, chunk, HFSB_NOT_FOUND,
                                       "was not applied: no line reads \"");
    hfsbi_err_quote(u->err, text, 120);
    hfsbi_err_add(u->err, "\" behind the hunk before it. The text behind @@ "
                          "must be a whole line of the file. Nothing was "
                          "changed.");
    return st;
}

/* Shows the closest lines, as a refused edit does. */
static hfsb_status hfsbi_chunk_missing(hfsbi_update      *u,
                                       const hfsbi_chunk *chunk, bool anchored,
                                       size_t from) {
    hfsbi_hint  hint;
    hfsbi_hit   hit;
    hfsb_buf    old_text = HFSB_INIT;
    size_t      mark;
    size_t      i;
    hfsb_status st =
        hfsbi_chunk_error(u, chunk, HFSB_NOT_FOUND,
                          "was not found in the file. Nothing was changed.");
    if (hfsbi_find_chunk(u, chunk, 0, u->rows.count, &hit) == HFSB_OK &&
        hit.count && hit.row < from) {
        hfsbi_err_add(u->err,
                      " Its lines are at line %zu, above %s: hunks must come "
                      "in the order of the file.",
                      hit.row + 1,
                      anchored ? "its @@ line" : "the hunk before it");
        return st;
    }
    old_text.alloc = *u->alloc;
    mark = old_text.len;
    for (i = chunk->body; i < chunk->end; i++) {
        hfsb_str line = u->patch->lines.items[i];
        if (!hfsbi_is_old(line)) continue;
        hfsb_buf_append(&old_text, hfsbi_body_text(line));
        hfsb_buf_append_byte(&old_text, '\n');
    }
    hint.alloc = u->alloc;
    hint.file = &u->file;
    hint.old_text = hfsb_buf_str(&old_text);
    hint.new_text = HFSB_LIT("");
    if (hfsb_buf_finish(&old_text, mark) == HFSB_OK)
        hfsbi_hint_not_found(&hint, u->err);
    hfsb_buf_free(&old_text);
    return st;
}

static hfsb_status hfsbi_chunk_ambiguous(const hfsbi_update *u,
                                         const hfsbi_chunk  *chunk,
                                         const hfsbi_hit    *hit) {
    hfsb_status st =
        hfsbi_chunk_error(u, chunk, HFSB_AMBIGUOUS, "fits in more than one ");
    hfsbi_err_add(u->err,
                  "place (%zu, the first at line %zu). Add context lines, or "
                  "an @@ line with the function or class it is in. Nothing "
                  "was changed.",
                  hit->count, hit->row + 1);
    return st;
}

/* ---- applying a hunk ---- */

static hfsb_status hfsbi_add_span(hfsbi_update *u, size_t start, size_t end,
                                  size_t text_len) {
    hfsb_span *p = (hfsb_span *)hfsbi_array_grow(
        u->alloc, u->spans, &u->span_cap, u->span_count + 1, sizeof *p);
    if (!p) return HFSB_NOMEM;
    u->spans = p;
    p += u->span_count++;
    memset(p, 0, sizeof *p);
    p->old_start = u->file.offset + start;
    p->old_len = end - start;
    p->new_len = text_len;
    return HFSB_OK;
}

/* The newline for lines put in at row: the first at or behind it. */
static hfsb_str hfsbi_row_newline(const hfsbi_update *u, size_t row) {
    size_t i;
    for (i = row; i < u->rows.count; i++)
        if (u->rows.items[i].end > u->rows.items[i].text_end) break;
    if (i >= u->rows.count) i = 0;
    if (u->rows.count && u->rows.items[i].end > u->rows.items[i].text_end)
        return hfsb_str_slice(u->file.text, u->rows.items[i].text_end,
                              u->rows.items[i].end);
    return HFSB_LIT("\n");
}

/* True when the row before `row` is the last one and lacks its newline. */
static bool hfsbi_ends_open(const hfsbi_update *u, size_t row) {
    return row == u->rows.count && row > 0 &&
           u->rows.items[row - 1].end == u->rows.items[row - 1].text_end;
}

/* Puts the hunk's lines into texts: context as the file has it, added lines
   with the file's newline. A last line without one gets it when something
   follows. */
static void hfsbi_put_chunk(hfsbi_update *u, const hfsbi_chunk *chunk,
                            size_t row, hfsb_buf *sink) {
    hfsb_str newline = hfsbi_row_newline(u, row);
    bool     open = sink == &u->texts && hfsbi_ends_open(u, row);
    size_t   i;
    for (i = chunk->body; i < chunk->end; i++) {
        hfsb_str line = u->patch->lines.items[i];
        if (!hfsbi_is_old(line)) {
            if (open) hfsb_buf_append(sink, newline);
            hfsb_buf_append(sink, hfsbi_body_text(line));
            hfsb_buf_append(sink, newline);
            open = false;
            continue;
        }
        if (!line.len || line.ptr[0] == ' ') {
            const hfsbi_row *r = u->rows.items + row;
            hfsb_buf_append(sink,
                            hfsb_str_slice(u->file.text, r->start, r->end));
            open = r->end == r->text_end;
        }
        row++;
    }
}

static size_t hfsbi_row_start(const hfsbi_update *u, size_t row) {
    return row < u->rows.count ? u->rows.items[row].start : u->file.text.len;
}

/* Only additions: behind the anchor, or at the end of the file. */
static hfsb_status hfsbi_add_lines(hfsbi_update *u, const hfsbi_chunk *chunk,
                                   bool anchored, size_t from) {
    bool        at_end = !anchored || chunk->at_eof;
    size_t      row = at_end ? u->rows.count : from, pos;
    hfsb_buf   *buf = at_end ? &u->tail : &u->texts;
    size_t      mark = buf->len;
    hfsb_status st;
    hfsbi_put_chunk(u, chunk, row, buf);
    st = hfsb_buf_finish(buf, mark);
    if (st != HFSB_OK || at_end) return st;
    pos = hfsbi_row_start(u, row);
    u->cursor = row;
    return hfsbi_add_span(u, pos, pos, buf->len - mark);
}

static hfsb_status hfsbi_apply_found(hfsbi_update *u, const hfsbi_chunk *chunk,
                                     const hfsbi_hit *hit) {
    size_t      start = hfsbi_row_start(u, hit->row);
    size_t      end = hfsbi_row_start(u, hit->row + u->olds.count);
    size_t      mark = u->texts.len;
    hfsb_status st;
    hfsbi_put_chunk(u, chunk, hit->row, &u->texts);
    st = hfsb_buf_finish(&u->texts, mark);
    if (st == HFSB_OK) st = hfsbi_add_span(u, start, end, u->texts.len - mark);
    u->cursor = hit->row + u->olds.count;
    if (hit->grade != HFSBI_GRADE_EXACT) u->fuzzy = true;
    return st;
}

/* Follows the @@ lines. *from is where the hunk may begin. */
static hfsb_status hfsbi_follow_anchors(hfsbi_update      *u,
                                        const hfsbi_chunk *chunk,
                                        bool *anchored, size_t *from) {
    size_t i, row;
    *anchored = false;
    *from = u->cursor;
    for (i = chunk->anchors; i < chunk->body; i++) {
        hfsb_str text = hfsbi_anchor_text(u->patch->lines.items[i]);
        if (!text.len) continue;
        row = hfsbi_find_anchor(u, text, *from);
        if (row == HFSB_NPOS) return hfsbi_anchor_missing(u, chunk, text);
        *from = row + 1;
        *anchored = true;
    }
    return HFSB_OK;
}

static hfsb_status hfsbi_apply_chunk(hfsbi_update      *u,
                                     const hfsbi_chunk *chunk) {
    bool        anchored;
    size_t      from, back, least = 0, rows = u->rows.count;
    hfsbi_hit   hit;
    hfsb_status st = hfsbi_follow_anchors(u, chunk, &anchored, &from);
    if (st == HFSB_OK) st = hfsbi_hash_chunk(u, chunk);
    if (st != HFSB_OK) return st;
    if (!u->olds.count) return hfsbi_add_lines(u, chunk, anchored, from);
    if (chunk->at_eof)
        least = rows < u->olds.count ? rows : rows - u->olds.count;
    /* The line behind @@ may stand again as the first line of context. */
    back = anchored ? from - 1 : from;
    if (from < least) from = least;
    st = hfsbi_find_chunk(u, chunk, from, rows, &hit);
    if (st == HFSB_OK && !hit.count && anchored && back >= least)
        st = hfsbi_find_chunk(u, chunk, back, rows, &hit);
    if (st != HFSB_OK) return st;
    if (!hit.count) return hfsbi_chunk_missing(u, chunk, anchored, from);
    if (hit.unsure || (hit.count > 1 && !anchored))
        return hfsbi_chunk_ambiguous(u, chunk, &hit);
    return hfsbi_apply_found(u, chunk, &hit);
}

/* ---- a file ---- */

/* True when the file, as the hunks leave it, ends in a line without its
   newline. */
static bool hfsbi_left_open(const hfsbi_update *u) {
    hfsb_str         texts = hfsb_buf_str(&u->texts);
    const hfsb_span *s = u->span_count ? u->spans + u->span_count - 1 : NULL;
    bool             cr_ends = u->file.lone_cr || u->split_cr;
    if (!s || s->old_start + s->old_len < u->content.len)
        return hfsbi_ends_open(u, u->rows.count);
    /* What it put in is last; nothing put in leaves the line before. */
    return s->new_len > 0 && texts.ptr[texts.len - 1] != '\n' &&
           !(cr_ends && texts.ptr[texts.len - 1] == '\r');
}

/* Lines that go behind the last one, whatever the hunks made of that. */
static hfsb_status hfsbi_put_tail(hfsbi_update *u) {
    size_t      mark = u->texts.len;
    size_t      end = u->file.text.len;
    hfsb_status st;
    if (hfsbi_left_open(u))
        hfsb_buf_append(&u->texts, hfsbi_row_newline(u, 0));
    hfsb_buf_append(&u->texts, hfsb_buf_str(&u->tail));
    st = hfsb_buf_finish(&u->texts, mark);
    return st == HFSB_OK ? hfsbi_add_span(u, end, end, u->texts.len - mark)
                         : st;
}

static hfsb_status hfsbi_apply_chunks(hfsbi_update *u) {
    size_t      i = u->section->from;
    hfsbi_chunk chunk;
    hfsb_status st = hfsbi_update_rows(u);
    for (; st == HFSB_OK && i < u->section->to; i = chunk.next) {
        st = hfsbi_patch_chunk(u->patch, u->section, i, &chunk, u->err);
        if (st == HFSB_OK) st = hfsbi_apply_chunk(u, &chunk);
    }
    return st == HFSB_OK && u->tail.len ? hfsbi_put_tail(u) : st;
}

static void hfsbi_update_reset(hfsbi_update *u) {
    hfsbi_rows_free(u->alloc, &u->rows);
    u->cursor = u->span_count = 0;
    hfsb_buf_truncate(&u->texts, 0);
    hfsb_buf_truncate(&u->tail, 0);
    u->fuzzy = false;
}

/* Finds every hunk of the section in u->file; then join() appends the new
   content and completes the spans. */
static void hfsbi_update_free(hfsbi_update *u) {
    hfsbi_rows_free(u->alloc, &u->rows);
    hfsbi_rows_free(u->alloc, &u->olds);
    hfsbi_row_search_free(u->alloc, &u->search);
    hfsbi_array_free(u->alloc, u->spans, u->span_cap, sizeof *u->spans);
    hfsb_buf_free(&u->texts);
    hfsb_buf_free(&u->tail);
}

/* A file that mixes LF with lone CRs: when the patch does not fit lines that
   end at LF, those that end at CR too are tried. */
static hfsb_status hfsbi_update_apply(hfsbi_update *u) {
    hfsb_status st = hfsbi_apply_chunks(u);
    hfsb_err   *err = u->err;
    if (st != HFSB_NOT_FOUND || !u->file.has_cr || u->file.lone_cr) return st;
    u->err = NULL;
    hfsbi_update_reset(u);
    u->split_cr = true;
    if (hfsbi_apply_chunks(u) == HFSB_OK) st = hfsbi_ok(err);
    u->err = err;
    return st;
}

/* Puts the spans' texts in and notes where they came to lie. */
static hfsb_status hfsbi_update_join(hfsbi_update *u, hfsb_buf *out) {
    size_t   mark = out->len;
    hfsb_str texts = hfsb_buf_str(&u->texts);
    size_t   i, pos = 0, text_pos = 0;
    for (i = 0; i < u->span_count; i++) {
        hfsb_span *s = u->spans + i;
        hfsb_buf_append(out, hfsb_str_slice(u->content, pos, s->old_start));
        s->new_start = out->len - mark;
        hfsb_buf_append(
            out, hfsb_str_slice(texts, text_pos, text_pos + s->new_len));
        text_pos += s->new_len;
        pos = s->old_start + s->old_len;
    }
    hfsb_buf_append(out, hfsb_str_slice(u->content, pos, u->content.len));
    return hfsb_buf_finish(out, mark);
}

typedef struct hfsbi_patching {
    const hfsb_patch_files *files;
    hfsbi_patch_text        text;
    hfsb_patch_result      *result;
    hfsb_err               *err;
} hfsbi_patching;

static hfsb_status hfsbi_fail_path(hfsb_err *err, hfsb_status code,
                                   const char *before, hfsb_str path,
                                   const char *behind) {
    hfsbi_fail(err, code, 0, "%s", before);
    hfsbi_err_quote(err, path, 200);
    hfsbi_err_add(err, "%s", behind);
    return code;
}

/* The file as the sections so far leave it; `clean` is its path, cleaned.
   HFSB_NOT_FOUND fills no error. */
static hfsb_status hfsbi_patch_read(hfsbi_patching *p, hfsb_str path,
                                    const hfsb_buf *clean, hfsb_buf *out) {
    hfsb_str    name = hfsb_buf_str(clean);
    size_t      i = p->result->count;
    hfsb_status st;
    while (i-- > 0) {
        const hfsb_patch_change *c = p->result->changes + i;
        hfsb_str from = hfsb_buf_str(&c->from), to = hfsb_buf_str(&c->to);
        if (c->kind != HFSB_PATCH_DELETE &&
            hfsb_str_equal(c->new_path.len ? to : from, name))
            return hfsb_buf_append(out, hfsb_buf_str(&c->content));
        if (hfsb_str_equal(from, name)) return HFSB_NOT_FOUND;
    }
    st = p->files->read(p->files->user, path, out, p->err);
    if (st != HFSB_OK && st != HFSB_NOT_FOUND && p->err && p->err->code != st)
        hfsbi_fail_path(p->err, st, "", path,
                        " cannot be read. Nothing was changed.");
    return st;
}

static hfsb_status hfsbi_refuse_existing(hfsbi_patching *p, hfsb_str path,
                                         const hfsb_buf *clean,
                                         const char     *what) {
    hfsb_buf    there = HFSB_INIT;
    hfsb_status st;
    there.alloc = p->result->alloc;
    st = hfsbi_patch_read(p, path, clean, &there);
    hfsb_buf_free(&there);
    if (st == HFSB_NOT_FOUND) return HFSB_OK;
    if (st != HFSB_OK) return st;
    return hfsbi_fail_path(p->err, HFSB_REFUSED, what, path,
                           ": there is such a file already. Delete it in the "
                           "same patch, or update it. Nothing was changed.");
}

static hfsb_status hfsbi_patch_diff(hfsb_str before, hfsb_span *spans,
                                    size_t count, hfsb_patch_change *c) {
    hfsb_diff_opts opts = HFSB_INIT;
    opts.path = c->new_path.len ? c->new_path : c->path;
    opts.old_path = c->path;
    return hfsb_diff_unified(before, hfsb_buf_str(&c->content), spans, count,
                             &opts, &c->diff, NULL);
}

static hfsb_status hfsbi_patch_add(hfsbi_patching *p, const hfsbi_section *s,
                                   hfsb_patch_change *c) {
    size_t      mark = c->content.len;
    hfsb_span   all = HFSB_INIT;
    size_t      i;
    hfsb_status st = hfsbi_refuse_existing(p, s->path, &c->from, "Add File ");
    if (st != HFSB_OK) return st;
    for (i = s->from; i < s->to; i++) {
        hfsb_buf_append(&c->content,
                        hfsb_str_slice(p->text.lines.items[i], 1, HFSB_NPOS));
        hfsb_buf_append_byte(&c->content, '\n');
    }
    st = hfsb_buf_finish(&c->content, mark);
    all.new_len = c->content.len;
    return st == HFSB_OK ? hfsbi_patch_diff(HFSB_LIT(""), &all, 1, c) : st;
}

static hfsb_status hfsbi_missing_file(hfsbi_patching *p, hfsb_status st,
                                      hfsb_str path) {
    if (st != HFSB_NOT_FOUND) return st;
    return hfsbi_fail_path(p->err, HFSB_IO, "File not found: ", path,
                           ". Nothing was changed.");
}

static hfsb_status hfsbi_patch_delete(hfsbi_patching      *p,
                                      const hfsbi_section *s,
                                      hfsb_patch_change   *c) {
    hfsb_buf    before = HFSB_INIT;
    hfsb_span   all = HFSB_INIT;
    hfsb_status st;
    before.alloc = p->result->alloc;
    st = hfsbi_missing_file(p, hfsbi_patch_read(p, s->path, &c->from, &before),
                            s->path);
    all.old_len = before.len;
    if (st == HFSB_OK)
        st = hfsbi_patch_diff(hfsb_buf_str(&before), &all, 1, c);
    hfsb_buf_free(&before);
    return st;
}

static hfsb_status hfsbi_patch_update(hfsbi_patching      *p,
                                      const hfsbi_section *s,
                                      hfsb_patch_change   *c) {
    hfsb_buf     before = HFSB_INIT;
    hfsbi_update u;
    hfsb_status  st;
    memset(&u, 0, sizeof u);
    before.alloc = u.texts.alloc = u.tail.alloc = p->result->alloc;
    st = hfsbi_missing_file(p, hfsbi_patch_read(p, s->path, &c->from, &before),
                            s->path);
    if (st == HFSB_OK && c->new_path.len)
        st = hfsbi_refuse_existing(p, c->new_path, &c->to, "Move to ");
    u.alloc = &p->result->alloc;
    u.patch = &p->text;
    u.section = s;
    u.content = hfsb_buf_str(&before);
    u.file = hfsbi_file_make(u.content, false);
    hfsbi_file_scan(&u.file);
    u.err = p->err;
    if (st == HFSB_OK) st = hfsbi_update_apply(&u);
    if (st == HFSB_OK) st = hfsbi_update_join(&u, &c->content);
    if (st == HFSB_OK && !c->new_path.len &&
        hfsb_str_equal(u.content, hfsb_buf_str(&c->content)))
        st = hfsbi_fail_path(p->err, HFSB_REFUSED,
                             "The patch changes nothing in ", s->path,
                             ". Nothing was changed.");
    if (st == HFSB_OK)
        st = hfsbi_patch_diff(u.content, u.spans, u.span_count, c);
    if (u.fuzzy) p->result->fuzzy = true;
    hfsbi_update_free(&u);
    hfsb_buf_free(&before);
    return st;
}

static void hfsbi_change_free(hfsb_patch_change *c) {
    hfsb_buf_free(&c->content);
    hfsb_buf_free(&c->diff);
    hfsb_buf_free(&c->from);
    hfsb_buf_free(&c->to);
}

/* Fills in the paths; a move onto the same file is none. */
static hfsb_status hfsbi_change_paths(hfsb_patch_change   *c,
                                      const hfsbi_section *s) {
    hfsb_status st = hfsb_path_clean(s->path, &c->from);
    c->path = s->path;
    if (st == HFSB_OK && s->new_path.len)
        st = hfsb_path_clean(s->new_path, &c->to);
    if (s->new_path.len &&
        !hfsb_str_equal(hfsb_buf_str(&c->from), hfsb_buf_str(&c->to)))
        c->new_path = s->new_path;
    return st;
}

static hfsb_status hfsbi_patch_one(hfsbi_patching *p, const hfsbi_section *s) {
    hfsb_patch_result *r = p->result;
    hfsb_patch_change  c;
    hfsb_patch_change *grown;
    hfsb_status        st;
    grown = (hfsb_patch_change *)hfsbi_array_grow(
        &r->alloc, r->changes, &r->cap, r->count + 1, sizeof *grown);
    if (!grown) return HFSB_NOMEM;
    r->changes = grown;
    memset(&c, 0, sizeof c);
    c.kind = s->kind;
    c.content.alloc = c.diff.alloc = c.from.alloc = c.to.alloc = r->alloc;
    st = hfsbi_change_paths(&c, s);
    if (st != HFSB_OK) {
        hfsbi_change_free(&c);
        return st;
    }
    if (s->kind == HFSB_PATCH_ADD) st = hfsbi_patch_add(p, s, &c);
    else if (s->kind == HFSB_PATCH_DELETE) st = hfsbi_patch_delete(p, s, &c);
    else st = hfsbi_patch_update(p, s, &c);
    if (st == HFSB_OK) r->changes[r->count++] = c;
    else hfsbi_change_free(&c);
    return st;
}

/* All sections are read before the first file is. */
static hfsb_status hfsbi_patch_run(hfsbi_patching *p) {
    hfsbi_section s;
    size_t        line = p->text.first, count = 0;
    hfsb_status   st = HFSB_OK;
    for (; st == HFSB_OK && line < p->text.last; count++)
        st = hfsbi_patch_section(&p->text, &line, &s, p->err);
    if (st == HFSB_OK && !count)
        return hfsbi_fail(p->err, HFSB_REFUSED, 0,
                          "The patch is empty. Nothing was changed.");
    for (line = p->text.first; st == HFSB_OK && line < p->text.last;) {
        st = hfsbi_patch_section(&p->text, &line, &s, p->err);
        if (st == HFSB_OK) st = hfsbi_patch_one(p, &s);
    }
    return st;
}

hfsb_status hfsb_patch_apply(hfsb_str patch, const hfsb_patch_files *files,
                             hfsb_patch_result *result, hfsb_err *err) {
    hfsbi_patching p;
    hfsb_status    st;
    hfsbi_ok(err);
    memset(&p, 0, sizeof p);
    p.files = files;
    p.result = result;
    p.err = err;
    result->changes = NULL;
    result->count = result->cap = 0;
    result->fuzzy = false;
    st = hfsbi_patch_open(&result->alloc, patch, &p.text, err);
    if (st == HFSB_OK) st = hfsbi_patch_run(&p);
    hfsbi_lines_free(&result->alloc, &p.text.lines);
    if (st == HFSB_OK) return hfsbi_ok(err);
    hfsb_patch_free(result);
    if (st == HFSB_NOMEM || st == HFSB_LIMIT)
        return hfsbi_fail_status(err, st, "The patch was not applied");
    return st;
}

void hfsb_patch_free(hfsb_patch_result *result) {
    size_t i;
    for (i = 0; i < result->count; i++) hfsbi_change_free(result->changes + i);
    hfsbi_array_free(&result->alloc, result->changes, result->cap,
                     sizeof *result->changes);
    result->changes = NULL;
    result->count = result->cap = 0;
    result->fuzzy = false;
}
