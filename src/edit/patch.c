/* patch.c - apply a patch in memory.

   A patch is computed section by section; later sections see the files as
   earlier ones leave them, and nothing is written. An Update is a list of
   hunks, each found in the lines after the hunk before it:

       @@ lines      narrow the place, each searched after the one before
       hunk          its old lines, folded, are searched in the folded lines
                     of the file; of all places the closest one counts
       additions     go after their @@ line, else to the end of the file

   Context lines keep the bytes of the file, added lines take its line ends. A
   hunk in no place, or equally close in several, refuses the whole patch. */
#include "edit_private.h"

/* How close a line of a hunk is to the file's line, from closest on. */
typedef enum hfsbi_grade {
    HFSBI_GRADE_EXACT,
    HFSBI_GRADE_TRAIL,   /* but for blanks at its end */
    HFSBI_GRADE_TRIMMED, /* context only: but for blanks at both ends */
    HFSBI_GRADE_LOOKS,   /* but for look-alikes, too */
    HFSBI_GRADE_NONE
} hfsbi_grade;

/* The update of one file. */
typedef struct hfsbi_update {
    const hfsb_alloc       *alloc;
    const hfsbi_patch_text *patch;
    const hfsbi_section    *section;
    hfsb_str                content;
    hfsbi_edit_text         file;
    bool                    split_cr; /* a lone CR ends a line, like LF */
    hfsbi_line_table        lines;    /* of the file */
    hfsb_buf                pattern;  /* folded lines that are looked for */
    size_t                  olds;     /* old lines of the current hunk */
    size_t                  cursor;   /* line after the last hunk */
    hfsb_span              *spans;
    size_t                  span_count, span_cap;
    hfsb_buf                texts; /* of the spans, in order */
    hfsb_buf                tail;  /* goes after the last line */
    bool                    fuzzy;
    hfsb_err               *err;
} hfsbi_update;

static const unsigned hfsbi_patch_folds =
    HFSBI_FOLD_INDENT | HFSBI_FOLD_TRAIL | HFSBI_FOLD_LOOKS;

/* ---- lines of a hunk ---- */

/* Text of a hunk's line without its mark. */
static hfsb_str hfsbi_body_text(hfsb_str line) {
    return hfsb_str_slice(line, 1, line.len);
}

static bool hfsbi_is_old(hfsb_str line) {
    return !line.len || line.ptr[0] != '+';
}

static bool hfsbi_is_context(hfsb_str line) {
    return !line.len || line.ptr[0] == ' ';
}

/* Grades two lines that are equal to the folds. */
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
    return HFSBI_GRADE_LOOKS;
}

/* The worst grade of the hunk's old lines against the file's lines from `at`
   on. */
static hfsbi_grade hfsbi_grade_chunk(const hfsbi_update *u,
                                     const hfsbi_chunk *chunk, size_t at,
                                     size_t *budget) {
    hfsbi_grade worst = HFSBI_GRADE_EXACT;
    size_t      i;
    for (i = chunk->body; i < chunk->end && worst < HFSBI_GRADE_NONE; i++) {
        hfsb_str    line = u->patch->lines.items[i];
        hfsbi_grade g;
        if (!hfsbi_is_old(line)) continue;
        g = hfsbi_grade_line(hfsbi_body_text(line),
                             hfsbi_line_text(&u->lines, at++),
                             hfsbi_is_context(line));
        if (g > worst) worst = g;
        --*budget;
    }
    return worst;
}

/* ---- finding a hunk ---- */

/* The closest places of a hunk. */
typedef struct hfsbi_hit {
    size_t      line, count; /* the first, and how many there are */
    hfsbi_grade grade;
    bool        unsure; /* a place that was not graded may be closer */
} hfsbi_hit;

/* Starts a pattern: every line of it lies between two LFs. */
static void hfsbi_pattern_start(hfsbi_update *u) {
    hfsb_buf_truncate(&u->pattern, 0);
    hfsb_buf_append_byte(&u->pattern, '\n');
}

static void hfsbi_pattern_add(hfsbi_update *u, hfsb_str line) {
    hfsbi_fold(line, hfsbi_patch_folds, &u->pattern);
    hfsb_buf_append_byte(&u->pattern, '\n');
}

/* Sets the pattern to the hunk's old lines. */
static hfsb_status hfsbi_pattern_set(hfsbi_update      *u,
                                     const hfsbi_chunk *chunk) {
    size_t i;
    hfsbi_pattern_start(u);
    u->olds = 0;
    for (i = chunk->body; i < chunk->end; i++) {
        hfsb_str line = u->patch->lines.items[i];
        if (!hfsbi_is_old(line)) continue;
        hfsbi_pattern_add(u, hfsbi_body_text(line));
        u->olds++;
    }
    return u->pattern.status;
}

/* The next line, from `from` on, where the pattern starts, or HFSB_NPOS. */
static size_t hfsbi_pattern_find(const hfsbi_update *u, size_t from) {
    return hfsbi_line_table_find(&u->lines, hfsb_buf_str(&u->pattern), from);
}

/* Grades the place at line `at`. Grading costs up to the hunk's length, so
   there is a budget of lines; when it is spent a further place counts as one
   more, and only an exact one found before is sure to be the closest. */
static void hfsbi_weigh(const hfsbi_update *u, const hfsbi_chunk *chunk,
                        size_t at, size_t *budget, hfsbi_hit *hit) {
    hfsbi_grade g;
    if (*budget < u->olds) {
        if (hit->grade == HFSBI_GRADE_NONE && !hit->count) hit->line = at;
        if (hit->grade != HFSBI_GRADE_EXACT) hit->unsure = true;
        hit->count++;
        return;
    }
    g = hfsbi_grade_chunk(u, chunk, at, budget);
    if (g == HFSBI_GRADE_NONE || g > hit->grade) return;
    if (g < hit->grade) {
        hit->grade = g;
        hit->line = at;
        hit->count = 0;
    }
    hit->count++;
}

/* Finds the closest places of the hunk from line `from` on. */
static hfsbi_hit hfsbi_find_chunk(const hfsbi_update *u,
                                  const hfsbi_chunk *chunk, size_t from) {
    size_t budget = 8 * (u->lines.count - from + u->olds) + 1024, at = 0;
    hfsbi_occurrences f = HFSB_INIT;
    hfsbi_hit         hit = HFSB_INIT;
    hit.grade = HFSBI_GRADE_NONE;
    f.text = hfsbi_line_folds(&u->lines, from, u->lines.count);
    f.pattern = hfsb_buf_str(&u->pattern);
    for (; (at = hfsbi_occurrence_next(&f, at)) != HFSB_NPOS; at++) {
        size_t pos = (size_t)(f.text.ptr - u->lines.view.text.ptr) + at;
        hfsbi_weigh(u, chunk, hfsbi_line_at(&u->lines, pos), &budget, &hit);
    }
    return hit;
}

/* ---- anchors ---- */

/* The text of an @@ line; the numbers that other tools put there, "-1,2 +1,3
   @@", are no text of the file. */
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

/* The first of the closest lines, from `from` on, to the anchor; HFSB_NPOS if
   there is none. */
static size_t hfsbi_find_anchor(hfsbi_update *u, hfsb_str text, size_t from) {
    hfsbi_grade best = HFSBI_GRADE_NONE;
    size_t      found = HFSB_NPOS, at;
    hfsbi_pattern_start(u);
    hfsbi_pattern_add(u, text);
    if (u->pattern.status != HFSB_OK) return HFSB_NPOS;
    for (at = hfsbi_pattern_find(u, from);
         at != HFSB_NPOS && best > HFSBI_GRADE_EXACT;
         at = hfsbi_pattern_find(u, at + 1)) {
        hfsbi_grade g =
            hfsbi_grade_line(text, hfsbi_line_text(&u->lines, at), true);
        if (g >= best) continue;
        best = g;
        found = at;
    }
    return found;
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
    hfsbi_err_add(u->err, "\" after the hunk before it. The text after @@ "
                          "must be a whole line of the file. Nothing was "
                          "changed.");
    return st;
}

/* Shows the closest lines, like a refused edit. */
static hfsb_status hfsbi_chunk_missing(hfsbi_update      *u,
                                       const hfsbi_chunk *chunk, bool anchored,
                                       size_t from) {
    hfsbi_hint  hint;
    hfsbi_hit   hit = hfsbi_find_chunk(u, chunk, 0);
    hfsb_buf    old_text = HFSB_INIT;
    size_t      i;
    hfsb_status st =
        hfsbi_chunk_error(u, chunk, HFSB_NOT_FOUND,
                          "was not found in the file. Nothing was changed.");
    if (hit.count && hit.line < from) {
        hfsbi_err_add(u->err,
                      " Its lines are at line %zu, above %s: hunks must come "
                      "in the order of the file.",
                      hit.line + 1,
                      anchored ? "its @@ line" : "the hunk before it");
        return st;
    }
    old_text.alloc = *u->alloc;
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
    hint.err = u->err;
    if (old_text.status == HFSB_OK) hfsbi_hint_not_found(&hint);
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
                  hit->count, hit->line + 1);
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

/* True when line i of the file lacks its line end. */
static bool hfsbi_is_open(const hfsbi_update *u, size_t i) {
    return u->lines.items[i].end == u->lines.items[i].text_end;
}

/* The line end for text put in at line i: the first one there or after it,
   else that of the first line. */
static hfsb_str hfsbi_patch_newline(const hfsbi_update *u, size_t i) {
    while (i < u->lines.count && hfsbi_is_open(u, i)) i++;
    if (i >= u->lines.count) i = 0;
    if (!u->lines.count || hfsbi_is_open(u, i)) return HFSB_LIT("\n");
    return hfsb_str_slice(u->file.text, u->lines.items[i].text_end,
                          u->lines.items[i].end);
}

/* True when line i would be the first after the last, and that is open. */
static bool hfsbi_follows_open(const hfsbi_update *u, size_t i) {
    return i == u->lines.count && i > 0 && hfsbi_is_open(u, i - 1);
}

/* Appends the hunk's new lines to out: context as the file has it, additions
   with the file's line end. An open line gets one when a line follows. */
static void hfsbi_put_chunk(hfsbi_update *u, const hfsbi_chunk *chunk,
                            size_t at, hfsb_buf *out) {
    hfsb_str newline = hfsbi_patch_newline(u, at);
    bool     open = out == &u->texts && hfsbi_follows_open(u, at);
    size_t   i;
    for (i = chunk->body; i < chunk->end; i++) {
        hfsb_str line = u->patch->lines.items[i];
        if (!hfsbi_is_old(line)) {
            if (open) hfsb_buf_append(out, newline);
            hfsb_buf_append(out, hfsbi_body_text(line));
            hfsb_buf_append(out, newline);
            open = false;
            continue;
        }
        if (hfsbi_is_context(line)) {
            hfsb_buf_append(out, hfsb_str_slice(u->file.text,
                                                u->lines.items[at].start,
                                                u->lines.items[at].end));
            open = hfsbi_is_open(u, at);
        }
        at++;
    }
}

static size_t hfsbi_patch_line_start(const hfsbi_update *u, size_t i) {
    return i < u->lines.count ? u->lines.items[i].start : u->file.text.len;
}

/* Replaces lines [from, to) of the file by the hunk's new lines. */
static hfsb_status hfsbi_replace_lines(hfsbi_update      *u,
                                       const hfsbi_chunk *chunk, size_t from,
                                       size_t to) {
    size_t mark = u->texts.len;
    hfsbi_put_chunk(u, chunk, from, &u->texts);
    u->cursor = to;
    if (u->texts.status != HFSB_OK) return u->texts.status;
    return hfsbi_add_span(u, hfsbi_patch_line_start(u, from),
                          hfsbi_patch_line_start(u, to), u->texts.len - mark);
}

/* A hunk of additions only: after its anchor, else at the end of the file. */
static hfsb_status hfsbi_add_lines(hfsbi_update *u, const hfsbi_chunk *chunk,
                                   bool anchored, size_t from) {
    if (anchored && !chunk->at_eof)
        return hfsbi_replace_lines(u, chunk, from, from);
    hfsbi_put_chunk(u, chunk, u->lines.count, &u->tail);
    return u->tail.status;
}

/* Follows the @@ lines. *from is the first line where the hunk may start. */
static hfsb_status hfsbi_follow_anchors(hfsbi_update      *u,
                                        const hfsbi_chunk *chunk,
                                        bool *anchored, size_t *from) {
    size_t i, at;
    *anchored = false;
    *from = u->cursor;
    for (i = chunk->anchors; i < chunk->body; i++) {
        hfsb_str text = hfsbi_anchor_text(u->patch->lines.items[i]);
        if (!text.len) continue;
        at = hfsbi_find_anchor(u, text, *from);
        if (u->pattern.status != HFSB_OK) return u->pattern.status;
        if (at == HFSB_NPOS) return hfsbi_anchor_missing(u, chunk, text);
        *from = at + 1;
        *anchored = true;
    }
    return HFSB_OK;
}

static hfsb_status hfsbi_apply_chunk(hfsbi_update      *u,
                                     const hfsbi_chunk *chunk) {
    bool        anchored;
    size_t      from, back, least = 0, lines = u->lines.count;
    hfsbi_hit   hit;
    hfsb_status st = hfsbi_follow_anchors(u, chunk, &anchored, &from);
    if (st == HFSB_OK) st = hfsbi_pattern_set(u, chunk);
    if (st != HFSB_OK) return st;
    if (!u->olds) return hfsbi_add_lines(u, chunk, anchored, from);
    if (chunk->at_eof) least = lines < u->olds ? lines : lines - u->olds;
    back = anchored ? from - 1 : from;
    if (from < least) from = least;
    hit = hfsbi_find_chunk(u, chunk, from);
    /* The line of @@ may be repeated as the first line of context. */
    if (!hit.count && anchored && back >= least)
        hit = hfsbi_find_chunk(u, chunk, back);
    if (!hit.count) return hfsbi_chunk_missing(u, chunk, anchored, from);
    if (hit.unsure || (hit.count > 1 && !anchored))
        return hfsbi_chunk_ambiguous(u, chunk, &hit);
    if (hit.grade != HFSBI_GRADE_EXACT) u->fuzzy = true;
    return hfsbi_replace_lines(u, chunk, hit.line, hit.line + u->olds);
}

/* ---- a file ---- */

/* True when the file, as the hunks leave it, ends in an open line. */
static bool hfsbi_left_open(const hfsbi_update *u) {
    hfsb_str         texts = hfsb_buf_str(&u->texts);
    const hfsb_span *s = u->span_count ? u->spans + u->span_count - 1 : NULL;
    bool             cr_ends = u->file.lone_cr || u->split_cr;
    if (!s || s->old_start + s->old_len < u->content.len)
        return hfsbi_follows_open(u, u->lines.count);
    /* The text of the last span is the end; if it is empty, the line before
       the span is, and that is not open. */
    return s->new_len > 0 && !hfsb_str_ends(texts, HFSB_LIT("\n")) &&
           !(cr_ends && hfsb_str_ends(texts, HFSB_LIT("\r")));
}

/* Adds the lines that go to the end, after all hunks. */
static hfsb_status hfsbi_put_tail(hfsbi_update *u) {
    size_t mark = u->texts.len, end = u->file.text.len;
    if (hfsbi_left_open(u))
        hfsb_buf_append(&u->texts, hfsbi_patch_newline(u, 0));
    hfsb_buf_append(&u->texts, hfsb_buf_str(&u->tail));
    if (u->texts.status != HFSB_OK) return u->texts.status;
    return hfsbi_add_span(u, end, end, u->texts.len - mark);
}

/* Finds every hunk of the section in the file. */
static hfsb_status hfsbi_apply_chunks(hfsbi_update *u) {
    size_t      i = u->section->from;
    hfsbi_chunk chunk;
    unsigned    folds = hfsbi_patch_folds;
    hfsb_status st;
    if (u->file.lone_cr) folds |= HFSBI_FOLD_CR;
    if (u->split_cr) folds |= HFSBI_FOLD_CR | HFSBI_FOLD_CR_LAST;
    st = hfsbi_line_table_build(&u->lines, u->file.text, folds);
    for (; st == HFSB_OK && i < u->section->to; i = chunk.next) {
        st = hfsbi_patch_chunk(u->patch, u->section, i, &chunk, u->err);
        if (st == HFSB_OK) st = hfsbi_apply_chunk(u, &chunk);
    }
    return st == HFSB_OK && u->tail.len ? hfsbi_put_tail(u) : st;
}

static void hfsbi_update_reset(hfsbi_update *u) {
    u->cursor = u->span_count = 0;
    hfsb_buf_truncate(&u->texts, 0);
    hfsb_buf_truncate(&u->tail, 0);
    u->fuzzy = false;
}

static void hfsbi_update_free(hfsbi_update *u) {
    hfsbi_line_table_free(&u->lines);
    hfsb_buf_free(&u->pattern);
    hfsbi_array_free(u->alloc, u->spans, u->span_cap, sizeof *u->spans);
    hfsb_buf_free(&u->texts);
    hfsb_buf_free(&u->tail);
}

/* Finds all hunks; in a file that mixes LF and lone CRs first in the lines
   that end at LF, then in those that end at either. */
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

/* Appends the new content and completes the spans. */
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

/* ---- sections ---- */

/* A patch while it is applied. */
typedef struct hfsbi_patching {
    const hfsb_patch_files *files;
    hfsbi_patch_text        text;
    hfsb_patch_result      *result;
    hfsb_err               *err;
} hfsbi_patching;

static hfsb_status hfsbi_fail_path(hfsb_err *err, hfsb_status code,
                                   const char *before, hfsb_str path,
                                   const char *after) {
    hfsbi_fail(err, code, 0, "%s", before);
    hfsbi_err_quote(err, path, 200);
    hfsbi_err_add(err, "%s", after);
    return code;
}

/* Reads a file as the sections so far leave it; `clean` is its clean path.
   HFSB_NOT_FOUND sets no message. */
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
    hfsb_span   all = HFSB_INIT;
    size_t      i;
    hfsb_status st = hfsbi_refuse_existing(p, s->path, &c->from, "Add File ");
    if (st != HFSB_OK) return st;
    for (i = s->from; i < s->to; i++) {
        hfsb_buf_append(&c->content,
                        hfsb_str_slice(p->text.lines.items[i], 1, HFSB_NPOS));
        hfsb_buf_append_byte(&c->content, '\n');
    }
    if (c->content.status != HFSB_OK) return c->content.status;
    all.new_len = c->content.len;
    return hfsbi_patch_diff(HFSB_LIT(""), &all, 1, c);
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
    before.alloc = u.texts.alloc = u.tail.alloc = u.pattern.alloc =
        u.lines.view.text.alloc = p->result->alloc;
    st = hfsbi_missing_file(p, hfsbi_patch_read(p, s->path, &c->from, &before),
                            s->path);
    if (st == HFSB_OK && c->new_path.len)
        st = hfsbi_refuse_existing(p, c->new_path, &c->to, "Move to ");
    u.alloc = &p->result->alloc;
    u.patch = &p->text;
    u.section = s;
    u.content = hfsb_buf_str(&before);
    u.file = hfsbi_edit_text_make(u.content, false);
    hfsbi_edit_text_scan(&u.file);
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

/* Sets the paths; a move of a file onto itself is dropped. */
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

/* Applies all sections, after checking the syntax of every one. */
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
