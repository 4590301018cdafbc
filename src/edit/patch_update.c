/* patch_update.c - apply the hunks of a patch to one file.

   The hunks of a file are processed twice:

       place    the old lines of each hunk are found by the ladder of edits, as
                whole lines, after its @@ lines and the hunk before it
       write    each place is rewritten as by an edit

   A hunk with several places is not refused at once: the hunks after it may
   leave room for the first place only. If a hunk has no place, or all hunks
   can be placed in more than one way, the whole patch is refused. Additions
   alone go after their @@ line, else to the end of the file. */
#include "edit_private.h"

/* Where a hunk goes. */
typedef struct hfsbi_hunk_place {
    const hfsbi_hunk *hunk;
    hfsbi_matches     found;    /* how; its items are freed */
    hfsbi_match       match;    /* in the file's text; an empty one: insert */
    size_t            again;    /* end of the next match, HFSB_NPOS: none */
    bool              at_tail;  /* after all other lines of the file */
    bool              stripped; /* of line numbers */
} hfsbi_hunk_place;

/* The lines of a hunk as an edit has them. */
typedef struct hfsbi_hunk_edit {
    hfsb_buf         old_text, new_text;
    hfsb_buf         scratch;
    size_t          *same; /* of pairs */
    size_t           same_cap;
    hfsbi_line_pairs pairs;
} hfsbi_hunk_edit;

/* What it took to apply the hunks. */
typedef struct hfsbi_hunks_how {
    unsigned rungs; /* bit of each rung used */
    bool     stripped, reindented;
    bool     unproven; /* some hunk was not found exactly and once */
} hfsbi_hunks_how;

/* The update of one file. */
typedef struct hfsbi_update {
    const hfsb_alloc    *alloc;
    const hfsbi_patch   *patch;
    const hfsbi_section *section;
    hfsb_str             content;
    hfsbi_edit_text      file;
    size_t               cursor;   /* start of the line after the last hunk */
    const hfsbi_hunk    *numbered; /* the last hunk with a line number */
    size_t               numbered_at; /* its place */
    hfsbi_hunk_place    *places;
    size_t               place_count, place_cap;

    hfsbi_hunk_edit hunk; /* the current one */
    hfsbi_updated  *done;
    hfsb_buf        texts; /* of its spans, in order */
    hfsbi_indents   indents;
    hfsbi_hunks_how how;
    hfsb_err       *err;
} hfsbi_update;

/* ---- the texts of a hunk ---- */

static hfsb_status hfsbi_pairs_add(hfsbi_update *u, size_t old_line) {
    size_t *same =
        (size_t *)hfsbi_array_grow(u->alloc, u->hunk.same, &u->hunk.same_cap,
                                   u->hunk.pairs.new_count + 1, sizeof *same);
    if (!same) return HFSB_NOMEM;
    u->hunk.pairs.same = u->hunk.same = same;
    same[u->hunk.pairs.new_count++] = old_line;
    return HFSB_OK;
}

/* Sets old_text to the context and the removed lines, new_text to the context
   and the added lines. */
static hfsb_status hfsbi_set_texts(hfsbi_update *u, const hfsbi_hunk *hunk) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    hfsb_buf_truncate(&u->hunk.old_text, 0);
    hfsb_buf_truncate(&u->hunk.new_text, 0);
    u->hunk.pairs.old_count = u->hunk.pairs.new_count = 0;
    for (i = hunk->body; st == HFSB_OK && i < hunk->end; i++) {
        const hfsbi_hunk_line *l = u->patch->lines + i;
        if (l->mark != '-') {
            hfsb_buf_append(&u->hunk.new_text, l->text);
            hfsb_buf_append_byte(&u->hunk.new_text, '\n');
            st = hfsbi_pairs_add(u, l->mark == ' ' ? u->hunk.pairs.old_count
                                                   : HFSB_NPOS);
        }
        if (l->mark == '+') continue;
        hfsb_buf_append(&u->hunk.old_text, l->text);
        hfsb_buf_append_byte(&u->hunk.old_text, '\n');
        u->hunk.pairs.old_count++;
    }
    if (st == HFSB_OK) st = u->hunk.old_text.status;
    return st == HFSB_OK ? u->hunk.new_text.status : st;
}

static void hfsbi_strip_text(hfsbi_update *u, hfsb_buf *text) {
    hfsb_buf stripped = u->hunk.scratch;
    hfsb_buf_truncate(&stripped, 0);
    hfsbi_numbered_strip(hfsb_buf_str(text), &stripped);
    u->hunk.scratch = *text;
    *text = stripped;
}

/* Removes the line numbers of a listing from both texts, if old_text was
   copied from one; false otherwise. */
static bool hfsbi_strip_texts(hfsbi_update *u, hfsb_status *st) {
    hfsbi_numbered olds = hfsbi_numbered_scan(hfsb_buf_str(&u->hunk.old_text));
    hfsbi_numbered news = hfsbi_numbered_scan(hfsb_buf_str(&u->hunk.new_text));
    if (!olds.consecutive || (news.prefixed && news.prefixed < news.lines))
        return false;
    hfsbi_strip_text(u, &u->hunk.old_text);
    if (news.prefixed) hfsbi_strip_text(u, &u->hunk.new_text);
    *st = u->hunk.old_text.status != HFSB_OK ? u->hunk.old_text.status
                                             : u->hunk.new_text.status;
    return *st == HFSB_OK && u->hunk.old_text.len > 0;
}

static hfsbi_edit_texts hfsbi_hunk_texts(const hfsbi_update *u,
                                         const hfsbi_hunk   *hunk) {
    hfsbi_edit_texts t;
    t.mode = HFSB_EDIT_REPLACE;
    t.old_text = hfsb_buf_str(&u->hunk.old_text);
    t.new_text = t.raw_new = hfsb_buf_str(&u->hunk.new_text);
    t.pairs = hunk->block ? NULL : &u->hunk.pairs;
    t.verbatim = !hunk->block;
    return t;
}

/* ---- lines of the file ---- */

/* Start of the first line at or after pos. */
static size_t hfsbi_line_from(const hfsbi_edit_text *file, size_t pos) {
    size_t len;
    if (hfsbi_starts_line(file, pos)) return pos;
    pos = hfsbi_edit_line_end(file, pos, &len);
    return pos + len;
}

/* Start of the line of pos. */
static size_t hfsbi_start_of_line(const hfsbi_edit_text *file, size_t pos) {
    while (!hfsbi_starts_line(file, pos)) pos--;
    return pos;
}

/* Start of the last `count` lines. */
static size_t hfsbi_last_lines(const hfsbi_edit_text *file, size_t count) {
    size_t pos = file->text.len;
    while (pos > 0 && count > 0)
        if (hfsbi_starts_line(file, --pos)) count--;
    return pos;
}

/* True when the last line of the file lacks its line end. */
static bool hfsbi_is_open(const hfsbi_edit_text *file) {
    return !hfsbi_starts_line(file, file->text.len);
}

static size_t hfsbi_line_of(const hfsbi_update *u, size_t pos) {
    return 1 +
           hfsbi_count_lines(&u->file, hfsb_str_slice(u->file.text, 0, pos));
}

/* The line end for text inserted at pos. */
static hfsb_str hfsbi_patch_newline(const hfsbi_update *u, size_t pos) {
    hfsb_str newline = hfsbi_newline_at(&u->file, pos);
    return newline.len ? newline : HFSB_LIT("\n");
}

/* Finds whole lines in [from, to), which are offsets of line starts: the first
   two places, or all of them. */
static hfsb_status hfsbi_find_lines(const hfsbi_update *u, hfsb_str text,
                                    size_t from, size_t to, bool all,
                                    hfsbi_matches *m) {
    hfsbi_edit_text part = u->file;
    hfsb_status     st;
    size_t          i;
    part.text = hfsb_str_slice(part.text, from, to);
    st = hfsbi_match_find(u->alloc, &part, text,
                          HFSBI_MATCH_EXACT | HFSBI_MATCH_LOOSE |
                              HFSBI_MATCH_HIDDEN | HFSBI_MATCH_LINES |
                              (all ? 0 : HFSBI_MATCH_TWO),
                          m);
    for (i = 0; i < m->count; i++) {
        m->items[i].start += from;
        m->items[i].end += from;
    }
    return st;
}

/* ---- refusals ---- */

static hfsb_status hfsbi_hunk_error(const hfsbi_update *u,
                                    const hfsbi_hunk *hunk, hfsb_status code,
                                    const char *what) {
    hfsbi_fail(u->err, code, 0, "%s", "");
    hfsbi_err_quote(u->err, u->section->path, 200);
    hfsbi_err_add(u->err, ": the hunk at line %zu of the patch %s",
                  hunk->line + 1, what);
    if (u->err) u->err->line = hunk->line + 1;
    return code;
}

/* What a refusal of the current hunk shows of the file. */
static hfsbi_hint hfsbi_hunk_hint(const hfsbi_update *u) {
    hfsbi_hint hint;
    hint.alloc = u->alloc;
    hint.file = &u->file;
    hint.old_text = hfsb_buf_str(&u->hunk.old_text);
    hint.new_text = hfsb_buf_str(&u->hunk.new_text);
    hint.err = u->err;
    hint.hunk = true;
    hint.names = u->patch->names;
    return hint;
}

/* True when an earlier section changes or adds the same file: then the lines
   that a refusal shows are not yet on disk. */
static bool hfsbi_is_changed_before(const hfsbi_update *u) {
    const hfsbi_section *s = u->patch->sections;
    for (; s < u->section; s++)
        if (hfsb_str_equal(s->new_path.len ? s->new_path : s->path,
                           u->section->path))
            return true;
    return false;
}

/* Shows the closest lines, like a refused edit. */
static hfsb_status hfsbi_hunk_missing(hfsbi_update *u, const hfsbi_hunk *hunk,
                                      bool anchored, size_t from) {
    hfsb_str      old_text = hfsb_buf_str(&u->hunk.old_text);
    hfsbi_matches m;
    hfsbi_hint    hint = hfsbi_hunk_hint(u);
    hfsb_status   st =
        hfsbi_find_lines(u, old_text, 0, u->file.text.len, false, &m);
    bool   above = m.count && m.items[0].start < from;
    size_t line = above ? hfsbi_line_of(u, m.items[0].start) : 0;
    hfsbi_matches_free(u->alloc, &m);
    if (st != HFSB_OK) return st;
    st = hfsbi_hunk_error(u, hunk, HFSB_NOT_FOUND,
                          hfsbi_is_changed_before(u)
                              ? "was not found in the file as the patch has "
                                "changed it so far. Nothing was changed."
                              : "was not found in the file. Nothing was "
                                "changed.");
    if (above) {
        hfsbi_err_add(u->err,
                      " Its lines are at line %zu, above %s: hunks must come "
                      "in the order of the file.",
                      line, anchored ? "its @@ line" : "the hunk before it");
        return st;
    }
    hfsbi_hint_not_found(&hint);
    return st;
}

static hfsb_status hfsbi_hunk_applied(const hfsbi_update *u,
                                      const hfsbi_hunk *hunk, size_t pos) {
    hfsb_status st = hfsbi_hunk_error(u, hunk, HFSB_REFUSED,
                                      "is already applied: the file has ");
    hfsbi_err_add(u->err,
                  "its new lines at line %zu. Leave the hunk out. Nothing was "
                  "changed.",
                  hfsbi_line_of(u, pos));
    return st;
}

/* ---- anchors ---- */

/* True when text is not a piece of longer words at pos. */
static bool hfsbi_is_whole_word(hfsb_str file, hfsb_str text, size_t pos) {
    size_t end = pos + text.len;
    return !(pos > 0 && hfsbi_is_word_char(file.ptr[pos - 1]) &&
             hfsbi_is_word_char(text.ptr[0])) &&
           !(end < file.len && hfsbi_is_word_char(file.ptr[end]) &&
             hfsbi_is_word_char(text.ptr[text.len - 1]));
}

/* The offset of text in the first line of [from, to) that contains it, or
   HFSB_NPOS; *several: another line does, too. With `first` it must be the
   first text of the line. */
static size_t hfsbi_find_part(const hfsbi_edit_text *file, hfsb_str text,
                              size_t from, size_t to, bool first,
                              bool *several) {
    size_t found = HFSB_NPOS, at, len;
    *several = false;
    while ((at = hfsb_str_find(hfsb_str_slice(file->text, from, to), text)) !=
           HFSB_NPOS) {
        at += from;
        from = at + 1;
        if (first ? !hfsbi_starts_text(file, at)
                  : !hfsbi_is_whole_word(file->text, text, at))
            continue;
        if (found != HFSB_NPOS) {
            *several = true;
            break;
        }
        found = at;
        from = hfsbi_edit_line_end(file, at, &len) + len;
    }
    return found;
}

/* Finds the line of an anchor in [from, to): the first of the closest matches,
   else the only line that contains it. *pos, the start of the line or an
   offset in it, is HFSB_NPOS if not found. */
static hfsb_status hfsbi_find_anchor(hfsbi_update *u, hfsb_str text,
                                     size_t from, size_t to, size_t *pos) {
    hfsbi_matches m;
    hfsb_status   st;
    bool          several = false;
    *pos = HFSB_NPOS;
    hfsb_buf_truncate(&u->hunk.scratch, 0);
    hfsb_buf_append(&u->hunk.scratch, text);
    st = hfsb_buf_append_byte(&u->hunk.scratch, '\n');
    if (st != HFSB_OK) return st;
    st = hfsbi_find_lines(u, hfsb_buf_str(&u->hunk.scratch), from, to, false,
                          &m);
    *pos = m.count ? m.items[0].start
                   : hfsbi_find_part(&u->file, hfsbi_trim(text), from, to,
                                     false, &several);
    if (several) *pos = HFSB_NPOS;
    hfsbi_matches_free(u->alloc, &m);
    return st;
}

/* Where a hunk may be, by its @@ lines. */
typedef struct hfsbi_hunk_range {
    size_t from;     /* start of the line after the last @@ line */
    size_t back;     /* that line, which the hunk may repeat */
    bool   anchored; /* an @@ line was found after the cursor */
    bool   doubtful; /* it is above the cursor, too */
} hfsbi_hunk_range;

/* Refuses an @@ line that no line of the file can be. */
static hfsb_status hfsbi_anchor_missing(const hfsbi_update     *u,
                                        const hfsbi_hunk       *hunk,
                                        const hfsbi_hunk_range *r,
                                        hfsb_str                text) {
    bool        several;
    size_t      at = hfsbi_find_part(&u->file, hfsbi_trim(text), r->from,
                                     u->file.text.len, false, &several);
    hfsb_status st =
        hfsbi_hunk_error(u, hunk, HFSB_NOT_FOUND,
                         several ? "was not applied: several lines contain \""
                                 : "was not applied: no line reads \"");
    hfsbi_err_quote(u->err, text, 120);
    hfsbi_err_add(u->err, "\"%s",
                  r->anchored    ? " after the @@ line before it"
                  : r->from == 0 ? ""
                                 : " after the hunk before it");
    if (several)
        hfsbi_err_add(u->err, ", the first is line %zu", hfsbi_line_of(u, at));
    hfsbi_err_add(u->err, ". The text after @@ must be a line of the file, or "
                          "a part of only one line. Nothing was changed.");
    return st;
}

/* Follows the @@ lines. One that is only above the cursor is accepted, but
   does not narrow the place of old lines. */
static hfsb_status hfsbi_follow_anchors(hfsbi_update     *u,
                                        const hfsbi_hunk *hunk,
                                        hfsbi_hunk_range *r) {
    size_t i, at, above, end = u->file.text.len;
    memset(r, 0, sizeof *r);
    r->from = r->back = u->cursor;
    for (i = hunk->anchors; i < hunk->body; i++) {
        hfsb_str    text = u->patch->lines[i].text;
        hfsb_status st = hfsbi_find_anchor(u, text, r->from, end, &at);
        above = HFSB_NPOS;
        if (st == HFSB_OK && !r->anchored && u->hunk.pairs.old_count)
            st = hfsbi_find_anchor(u, text, 0, u->cursor, &above);
        if (st != HFSB_OK) return st;
        if (at == HFSB_NPOS && above == HFSB_NPOS)
            return hfsbi_anchor_missing(u, hunk, r, text);
        if (at == HFSB_NPOS) continue;
        if (!r->anchored) r->doubtful = above != HFSB_NPOS;
        r->anchored = true;
        r->back = at;
        r->from = hfsbi_line_from(&u->file, at + 1);
    }
    return HFSB_OK;
}

/* ---- placing a hunk ---- */

static hfsbi_hunk_place *hfsbi_add_hunk_place(hfsbi_update     *u,
                                              const hfsbi_hunk *hunk) {
    hfsbi_hunk_place *p = (hfsbi_hunk_place *)hfsbi_array_grow(
        u->alloc, u->places, &u->place_cap, u->place_count + 1, sizeof *p);
    if (!p) return NULL;
    u->places = p;
    p += u->place_count++;
    memset(p, 0, sizeof *p);
    p->hunk = hunk;
    p->again = HFSB_NPOS;
    return p;
}

/* Finds the old lines of a hunk. The line of @@ may be repeated as the first
   line of context, but a place after it is preferred. */
static hfsb_status hfsbi_find_hunk(hfsbi_update *u, const hfsbi_hunk *hunk,
                                   const hfsbi_hunk_range *r,
                                   hfsbi_matches          *m) {
    hfsb_str    old_text = hfsb_buf_str(&u->hunk.old_text);
    size_t      end = u->file.text.len, least = 0, from = r->from;
    hfsb_status st;
    if (hunk->at_eof)
        least = hfsbi_last_lines(&u->file, u->hunk.pairs.old_count);
    if (r->doubtful) from = u->cursor;
    st = hfsbi_find_lines(u, old_text, from > least ? from : least, end, false,
                          m);
    if (st == HFSB_OK && !m->count && r->anchored && r->back >= least) {
        hfsbi_matches_free(u->alloc, m);
        st = hfsbi_find_lines(u, old_text,
                              hfsbi_start_of_line(&u->file, r->back), end,
                              false, m);
    }
    if (hunk->at_eof && m->count && m->items[m->count - 1].end < end)
        hfsbi_matches_free(u->alloc, m);
    return st;
}

/* Where a hunk starts by its line number, shifted like the numbered hunk
   before it; HFSB_NPOS outside the file. */
static size_t hfsbi_expected_pos(const hfsbi_update *u,
                                 const hfsbi_hunk   *hunk) {
    long long line = (long long)hunk->number;
    size_t    pos = 0, len;
    if (u->numbered)
        line += (long long)hfsbi_line_of(u, u->numbered_at) -
                (long long)u->numbered->number;
    for (; line > 1 && pos < u->file.text.len; line--)
        pos = hfsbi_edit_line_end(&u->file, pos, &len) + len;
    return line == 1 ? pos : HFSB_NPOS;
}

/* Chooses among several matches the first at or after `from`, an offset or
   HFSB_NPOS, if it is as close. It must start there, or else be the only
   one. */
static hfsb_status hfsbi_choose_from(const hfsbi_update *u, size_t from,
                                     bool there, hfsbi_matches *m,
                                     bool *chosen) {
    hfsbi_matches later;
    hfsb_status   st;
    if (*chosen || from == HFSB_NPOS || from < u->cursor) return HFSB_OK;
    st = hfsbi_find_lines(u, hfsb_buf_str(&u->hunk.old_text), from,
                          u->file.text.len, false, &later);
    *chosen = st == HFSB_OK && later.count && later.rung == m->rung &&
              (there ? later.items[0].start == from && !later.items[0].overlaps
                     : later.count == 1 && !later.overlapping);
    if (*chosen) m->items[0] = later.items[0];
    hfsbi_matches_free(u->alloc, &later);
    return st;
}

/* Chooses among several matches: by the line number of the hunk; by its
   heading, when only one match is after it; the first one after an @@ line,
   unless indentation was folded, which may be what tells such places apart.
   The chosen one becomes the first. */
static hfsb_status hfsbi_choose_match(const hfsbi_update     *u,
                                      const hfsbi_hunk       *hunk,
                                      const hfsbi_hunk_range *r,
                                      hfsbi_matches *m, bool *chosen) {
    size_t      pos = HFSB_NPOS;
    hfsb_status st;
    bool        several = false;
    *chosen = false;
    if (hunk->numbered) pos = hfsbi_expected_pos(u, hunk);
    st = hfsbi_choose_from(u, pos, true, m, chosen);
    pos = HFSB_NPOS;
    if (hunk->heading.len && !*chosen)
        pos = hfsbi_find_part(&u->file, hunk->heading, 0, u->file.text.len,
                              true, &several);
    if (several) pos = HFSB_NPOS;
    if (pos != HFSB_NPOS) pos = hfsbi_line_from(&u->file, pos + 1);
    if (st == HFSB_OK) st = hfsbi_choose_from(u, pos, false, m, chosen);
    if (r->anchored && m->rung < HFSBI_RUNG_INDENT &&
        m->items[0].start >= r->back)
        *chosen = true;
    return st;
}

/* Adds the place of a hunk with old lines. Of several matches it is the first;
   `again` then is the end of the second, 0 when they overlap. */
static hfsb_status hfsbi_place_old(hfsbi_update *u, const hfsbi_hunk *hunk,
                                   const hfsbi_hunk_range *r,
                                   hfsbi_matches          *m) {
    hfsbi_hunk_place *p = hfsbi_add_hunk_place(u, hunk);
    bool              several = m->count > 1 || m->overlapping, chosen = true;
    hfsb_status       st = HFSB_OK;
    if (!p) return HFSB_NOMEM;
    if (several) st = hfsbi_choose_match(u, hunk, r, m, &chosen);
    if (st != HFSB_OK) return st;
    p->match = m->items[0];
    if (!chosen)
        p->again = m->items[0].overlaps || m->count < 2 ? 0 : m->items[1].end;
    if (several || m->rung > HFSBI_RUNG_EOF ||
        hfsbi_count_visible(hfsb_buf_str(&u->hunk.old_text)) < 8)
        u->how.unproven = true;
    p->found = *m;
    p->found.items = NULL;
    p->found.cap = 0;
    u->cursor = hfsbi_line_from(&u->file, p->match.end);
    if (!hunk->numbered) return HFSB_OK;
    u->numbered = hunk;
    u->numbered_at = p->match.start;
    return HFSB_OK;
}

/* Adds the place of a hunk of additions only: after its anchor, else at the
   end of the file, which a line number must not contradict. */
static hfsb_status hfsbi_place_new(hfsbi_update *u, const hfsbi_hunk *hunk,
                                   const hfsbi_hunk_range *r) {
    hfsbi_hunk_place *p = hfsbi_add_hunk_place(u, hunk);
    size_t            end = u->file.text.len;
    if (!p) return HFSB_NOMEM;
    u->how.unproven = true;
    p->at_tail = !r->anchored || hunk->at_eof;
    p->match.start = p->match.end = p->at_tail ? end : r->from;
    if (!p->at_tail) u->cursor = r->from;
    if (hunk->numbered && p->at_tail &&
        hunk->number != hfsbi_line_of(u, end) - !hfsbi_is_open(&u->file))
        return hfsbi_hunk_error(u, hunk, HFSB_NOT_FOUND,
                                "has no context: line numbers alone do not "
                                "tell its place. Add a line of the file next "
                                "to the new lines. Nothing was changed.");
    return HFSB_OK;
}

static hfsb_status hfsbi_place_hunk(hfsbi_update *u, const hfsbi_hunk *hunk) {
    hfsbi_hunk_range r;
    hfsbi_matches    m;
    bool             stripped = false;
    hfsb_status      st = hfsbi_set_texts(u, hunk);
    if (hunk->block) u->cursor = 0;
    if (st == HFSB_OK) st = hfsbi_follow_anchors(u, hunk, &r);
    if (st != HFSB_OK) return st;
    if (!u->hunk.pairs.old_count) return hfsbi_place_new(u, hunk, &r);
    st = hfsbi_find_hunk(u, hunk, &r, &m);
    if (st == HFSB_OK && !m.count && hfsbi_strip_texts(u, &st)) {
        hfsbi_matches_free(u->alloc, &m);
        stripped = true;
        st = hfsbi_find_hunk(u, hunk, &r, &m);
    }
    if (st == HFSB_OK && !m.count) {
        st = hfsbi_set_texts(u, hunk);
        if (st == HFSB_OK)
            st = hfsbi_hunk_missing(u, hunk, r.anchored, r.from);
    } else if (st == HFSB_OK) {
        st = hfsbi_place_old(u, hunk, &r, &m);
        if (st == HFSB_OK) u->places[u->place_count - 1].stripped = stripped;
    }
    hfsbi_matches_free(u->alloc, &m);
    return st;
}

/* Shows the places, and what tells them apart. */
static hfsb_status hfsbi_hunk_ambiguous(hfsbi_update           *u,
                                        const hfsbi_hunk_place *place) {
    hfsbi_matches m;
    hfsbi_hint    hint;
    hfsb_status   st = hfsbi_set_texts(u, place->hunk);
    if (st == HFSB_OK && place->stripped) (void)hfsbi_strip_texts(u, &st);
    if (st != HFSB_OK) return st;
    st = hfsbi_find_lines(u, hfsb_buf_str(&u->hunk.old_text),
                          place->match.start, u->file.text.len, true, &m);
    if (st == HFSB_OK) {
        st = hfsbi_hunk_error(u, place->hunk, HFSB_AMBIGUOUS,
                              "fits in more than one ");
        hfsbi_err_add(u->err, "place (%zu). Nothing was changed.",
                      m.count > 1 ? m.count : 2);
        hint = hfsbi_hunk_hint(u);
        hfsbi_hint_ambiguous(&hint, &m);
    }
    hfsbi_matches_free(u->alloc, &m);
    return st;
}

static int hfsbi_hunk_place_order(const void *x, const void *y) {
    const hfsbi_hunk_place *a = (const hfsbi_hunk_place *)x;
    const hfsbi_hunk_place *b = (const hfsbi_hunk_place *)y;
    if (a->match.start != b->match.start)
        return a->match.start < b->match.start ? -1 : 1;
    return a->hunk->line < b->hunk->line ? -1 : 1;
}

/* Sorts blocks into the order of the file. Other hunks already are. */
static hfsb_status hfsbi_order_blocks(hfsbi_update *u) {
    size_t i;
    if (!u->places[0].hunk->block) return HFSB_OK;
    hfsbi_sort(u->places, u->place_count, sizeof *u->places,
               hfsbi_hunk_place_order);
    for (i = 1; i < u->place_count; i++) {
        const hfsbi_hunk_place *a = u->places + i - 1, *b = u->places + i;
        if (a->match.end <= b->match.start) continue;
        hfsbi_hunk_error(u, b->hunk, HFSB_REFUSED, "changes the same lines ");
        hfsbi_err_add(u->err,
                      "as that at line %zu, near line %zu of the file. Join "
                      "the two. Nothing was changed.",
                      a->hunk->line + 1, hfsbi_line_of(u, b->match.start));
        return HFSB_REFUSED;
    }
    return HFSB_OK;
}

/* Refuses hunks that can be placed in more than one way. Each is at its first
   match after the hunk before; it cannot be at another one if the next match
   reaches into the hunk after it. Blocks have no such order. */
static hfsb_status hfsbi_check_places(hfsbi_update *u) {
    const hfsbi_hunk_place *unsure = NULL;
    size_t                  i = u->place_count, limit = u->file.text.len;
    while (i-- > 0) {
        const hfsbi_hunk_place *p = u->places + i;
        if (p->again <= limit) unsure = p;
        if (!p->at_tail && !p->hunk->block) limit = p->match.start;
    }
    return unsure ? hfsbi_hunk_ambiguous(u, unsure) : hfsbi_order_blocks(u);
}

/* ---- writing a hunk ---- */

static hfsb_status hfsbi_add_span(hfsbi_update *u, const hfsbi_match *match,
                                  size_t text_len) {
    hfsbi_updated *d = u->done;
    hfsb_span *p = (hfsb_span *)hfsbi_array_grow(u->alloc, d->spans, &d->cap,
                                                 d->count + 1, sizeof *p);
    if (!p) return HFSB_NOMEM;
    d->spans = p;
    p += d->count++;
    memset(p, 0, sizeof *p);
    p->old_start = u->file.offset + match->start;
    p->old_len = match->end - match->start;
    p->new_len = text_len;
    return HFSB_OK;
}

/* Refuses a placeholder for omitted code. */
static hfsb_status hfsbi_check_omitted(const hfsbi_update *u,
                                       const hfsbi_hunk   *hunk) {
    hfsb_str    line = HFSB_INIT;
    hfsb_status st;
    if (!hfsbi_is_prose(u->section->path))
        line =
            hfsbi_find_omission(hfsb_buf_str(&u->hunk.new_text),
                                hfsb_buf_str(&u->hunk.old_text), u->file.text);
    if (!line.len) return HFSB_OK;
    st = hfsbi_hunk_error(u, hunk, HFSB_REFUSED,
                          "has a line that stands for code left out: \"");
    hfsbi_err_quote(u->err, line, 120);
    hfsbi_err_add(u->err, "\". It would be written into the file as it is. "
                          "Send the code itself, or a smaller hunk. Nothing "
                          "was changed.");
    return st;
}

/* Refuses a hunk whose place is clear, but not how to insert `line`: its
   indentation, or the blank lines before it. */
static hfsb_status hfsbi_hunk_unclear(const hfsbi_update     *u,
                                      const hfsbi_hunk_place *place,
                                      hfsb_str line, bool blank_lines) {
    hfsbi_hint  hint = hfsbi_hunk_hint(u);
    hfsb_status st = hfsbi_hunk_error(u, place->hunk, HFSB_REFUSED,
                                      "was not applied: the lines from ");
    hfsbi_err_add(u->err, "line %zu on are the same but for %s \"",
                  hfsbi_line_of(u, place->match.start),
                  blank_lines
                      ? "blank lines, and it is not clear how many belong "
                        "before"
                      : "their indentation, and it is not clear where to put");
    hfsbi_err_quote(u->err, hfsbi_trim(line), 80);
    hfsbi_err_add(u->err, "\".");
    hfsbi_hint_indent(&hint, place->match.start, place->match.end);
    return st;
}

/* Line i of a text. */
static hfsb_str hfsbi_text_line_at(hfsb_str text, size_t i) {
    hfsb_str line = HFSB_INIT;
    do (void)hfsb_text_line(&text, &line, NULL);
    while (i-- > 0);
    return line;
}

/* Refuses a hunk that was applied before. */
static hfsb_status hfsbi_check_done(const hfsbi_update     *u,
                                    const hfsbi_hunk_place *place) {
    hfsbi_edit_texts texts = hfsbi_hunk_texts(u, place->hunk);
    size_t           at;
    hfsb_status      st;
    if (place->found.rung > HFSBI_RUNG_EOF || place->found.count != 1)
        return HFSB_OK;
    st = hfsbi_find_applied(u->alloc, &u->file, &texts, &place->match, &at);
    return at == HFSB_NPOS ? st : hfsbi_hunk_applied(u, place->hunk, at);
}

/* Gives the last line of the file the line end that the hunk means it to have:
   an added line gets one, a context line is not changed. */
static void hfsbi_end_text(hfsbi_update *u, const hfsbi_hunk_place *place,
                           size_t mark) {
    const hfsbi_hunk *hunk = place->hunk;
    char              last = u->patch->lines[hunk->end - 1].mark;
    hfsb_str          text = hfsb_buf_str(&u->texts);
    if (u->texts.len == mark || last == ' ' || hunk->block) return;
    if (place->match.lacks_newline && !hunk->open_end)
        hfsb_buf_append(&u->texts, hfsbi_patch_newline(u, place->match.start));
    if (place->match.lacks_newline || !hunk->open_end) return;
    if (hfsb_str_ends(text, HFSB_LIT("\r\n"))) text.len--;
    hfsb_buf_truncate(&u->texts, text.len - 1);
}

/* Refuses hunks that disagree about the indentation of the file. */
static hfsb_status hfsbi_check_indents(const hfsbi_update *u) {
    const hfsbi_hunk *kept, *moved;
    if (hfsbi_indents_agree(&u->indents, &kept, &moved)) return HFSB_OK;
    hfsbi_hunk_error(u, kept, HFSB_REFUSED, "matches as it is indented, but ");
    hfsbi_err_add(u->err,
                  "that at line %zu only with other indentation. Read the "
                  "lines and send both indented as the file is. Nothing was "
                  "changed.",
                  moved->line + 1);
    return HFSB_REFUSED;
}

static hfsb_status hfsbi_write_old(hfsbi_update *u, hfsbi_hunk_place *place) {
    hfsbi_edit_texts texts = hfsbi_hunk_texts(u, place->hunk);
    hfsbi_matches    one = place->found;
    hfsb_str         was = hfsb_str_slice(u->file.text, place->match.start,
                                          place->match.end),
             torn = HFSB_INIT;
    bool            indent = place->found.rung >= HFSBI_RUNG_INDENT;
    hfsbi_rewritten result;
    size_t          mark = u->texts.len;
    hfsb_status     st = hfsbi_check_done(u, place);
    if (st != HFSB_OK) return st;
    if (indent) torn = hfsbi_hunk_torn(u->patch, place->hunk, was);
    if (torn.len) return hfsbi_hunk_unclear(u, place, torn, false);
    one.items = &place->match;
    one.count = 1;
    st = hfsbi_rewrite_matches(u->alloc, &u->file, &texts, &one, &u->texts,
                               &result);
    if (st == HFSB_REFUSED)
        return hfsbi_hunk_unclear(
            u, place, hfsbi_text_line_at(texts.new_text, result.line),
            result.blank_lines);
    if (st != HFSB_OK) return st;
    hfsbi_end_text(u, place, mark);
    if (u->texts.status != HFSB_OK) return u->texts.status;
    u->how.rungs |= 1u << place->found.rung;
    u->how.reindented = u->how.reindented || result.reindented;
    hfsbi_indents_add(&u->indents, u->patch, place->hunk, was,
                      result.reindented);
    return hfsbi_add_span(u, &place->match, u->texts.len - mark);
}

/* True when the file, as the hunks leave it, ends in an open line. */
static bool hfsbi_left_open(const hfsbi_update *u) {
    hfsb_str         texts = hfsb_buf_str(&u->texts);
    const hfsb_span *s =
        u->done->count ? u->done->spans + u->done->count - 1 : NULL;
    bool cr_ends = u->file.lone_cr || u->file.mixed_cr;
    if (!s || s->old_start + s->old_len < u->content.len)
        return hfsbi_is_open(&u->file);
    /* The text of the last span is the end; if it is empty, the line before
       the span is, and that is not open. */
    return s->new_len > 0 && !hfsb_str_ends(texts, HFSB_LIT("\n")) &&
           !(cr_ends && hfsb_str_ends(texts, HFSB_LIT("\r")));
}

/* Refuses additions that the file already has: after the anchor, or at its
   end. */
static hfsb_status hfsbi_check_added(const hfsbi_update     *u,
                                     const hfsbi_hunk_place *place,
                                     size_t                  mark) {
    hfsb_str put = hfsb_str_slice(hfsb_buf_str(&u->texts), mark, HFSB_NPOS);
    hfsb_str file = u->file.text;
    size_t   pos = place->match.start;
    if (place->at_tail) pos = file.len < put.len ? 0 : file.len - put.len;
    if (hfsbi_count_visible(put) < 8 || !hfsbi_starts_line(&u->file, pos) ||
        !hfsb_str_starts(hfsb_str_slice(file, pos, file.len), put))
        return HFSB_OK;
    return hfsbi_hunk_applied(u, place->hunk, pos);
}

/* Writes a hunk of additions only. */
static hfsb_status hfsbi_write_new(hfsbi_update           *u,
                                   const hfsbi_hunk_place *place) {
    size_t      mark = u->texts.len, from = mark, pos = place->match.start;
    hfsb_str    newline = hfsbi_patch_newline(u, place->at_tail ? 0 : pos);
    hfsb_status st;
    if (pos == u->file.text.len && hfsbi_left_open(u)) {
        hfsb_buf_append(&u->texts, newline);
        from += newline.len;
    }
    hfsbi_put_newlines(&u->texts, hfsb_buf_str(&u->hunk.new_text), newline);
    if (u->texts.status != HFSB_OK) return u->texts.status;
    st = hfsbi_check_added(u, place, from);
    if (st == HFSB_OK && place->hunk->open_end) hfsbi_end_text(u, place, mark);
    if (st != HFSB_OK) return st;
    hfsbi_indents_add(&u->indents, u->patch, place->hunk, HFSB_LIT(""), false);
    return hfsbi_add_span(u, &place->match, u->texts.len - mark);
}

/* Writes the hunks in the lines, or those at the end of the file. */
static hfsb_status hfsbi_write_hunks(hfsbi_update *u, bool at_tail) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; st == HFSB_OK && i < u->place_count; i++) {
        hfsbi_hunk_place *p = u->places + i;
        if (p->at_tail != at_tail) continue;
        st = hfsbi_set_texts(u, p->hunk);
        if (st == HFSB_OK && p->stripped)
            u->how.stripped = hfsbi_strip_texts(u, &st);
        if (st == HFSB_OK) st = hfsbi_check_omitted(u, p->hunk);
        if (st != HFSB_OK) return st;
        st = u->hunk.pairs.old_count ? hfsbi_write_old(u, p)
                                     : hfsbi_write_new(u, p);
    }
    return st;
}

/* ---- a file ---- */

static void hfsbi_update_reset(hfsbi_update *u) {
    u->cursor = u->place_count = u->done->count = 0;
    u->numbered = NULL;
    memset(&u->indents, 0, sizeof u->indents);
    memset(&u->how, 0, sizeof u->how);
    hfsb_buf_truncate(&u->texts, 0);
}

static hfsb_status hfsbi_apply_hunks(hfsbi_update *u) {
    size_t      i;
    hfsb_status st = HFSB_OK;
    hfsbi_update_reset(u);
    for (i = u->section->hunk; st == HFSB_OK && i < u->section->hunk_end; i++)
        st = hfsbi_place_hunk(u, u->patch->hunks + i);
    if (st == HFSB_OK) st = hfsbi_check_places(u);
    if (st == HFSB_OK) st = hfsbi_write_hunks(u, false);
    if (st == HFSB_OK) st = hfsbi_write_hunks(u, true);
    return st == HFSB_OK ? hfsbi_check_indents(u) : st;
}

/* Applies all hunks; in a file that mixes LF and lone CRs first to the lines
   that end at LF, then to those that end at either. */
static hfsb_status hfsbi_update_apply(hfsbi_update *u) {
    hfsb_status st = hfsbi_apply_hunks(u);
    hfsb_err   *err = u->err;
    if (st != HFSB_NOT_FOUND || !u->file.has_cr || u->file.lone_cr) return st;
    u->err = NULL;
    u->file.mixed_cr = true;
    if (hfsbi_apply_hunks(u) == HFSB_OK) st = hfsbi_ok(err);
    u->err = err;
    return st;
}

/* Appends the new content and completes the spans. */
static hfsb_status hfsbi_update_join(hfsbi_update *u, hfsb_buf *out) {
    size_t   mark = out->len;
    hfsb_str texts = hfsb_buf_str(&u->texts);
    size_t   i, pos = 0, text_pos = 0;
    for (i = 0; i < u->done->count; i++) {
        hfsb_span *s = u->done->spans + i;
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

/* Adds a part to the note, unless it is the one before. */
static void hfsbi_note_add(hfsb_patch_change *c, const char *part,
                           const char **last) {
    size_t n = strlen(c->note);
    if (*last && strcmp(*last, part) == 0) return;
    snprintf(c->note + n, sizeof c->note - n, "%s%s", n ? " " : "", part);
    *last = part;
}

/* Writes the note of an update, like that of an edit. */
static void hfsbi_patch_note(const hfsbi_update *u, hfsb_patch_change *c) {
    const char *last = NULL;
    size_t      i;
    for (i = 0; i < HFSBI_RUNGS; i++) {
        const char *note = hfsbi_rung_words_of((hfsbi_rung)i)->note;
        if ((u->how.rungs >> i & 1u) && note) hfsbi_note_add(c, note, &last);
    }
    if (u->how.stripped)
        hfsbi_note_add(c, "(line-number prefixes removed)", &last);
    if (u->how.reindented)
        hfsbi_note_add(c, "(re-indented as the file is)", &last);
}

/* Applies all hunks and joins the new content. */
static hfsb_status hfsbi_update_run(hfsbi_update *u, hfsb_patch_change *c) {
    hfsb_str    path = u->section->path, now;
    hfsb_status st = hfsbi_update_apply(u);
    if (st == HFSB_OK) st = hfsbi_update_join(u, &c->content);
    if (st != HFSB_OK) return st;
    now = hfsb_buf_str(&c->content);
    if (c->kind == HFSB_PATCH_DELETE && now.len > u->file.offset) {
        hfsbi_fail(u->err, HFSB_REFUSED, 0, "%s", "");
        hfsbi_err_quote(u->err, path, 200);
        hfsbi_err_add(u->err, ": the patch deletes this file but does not "
                              "remove all of its lines. Nothing was changed.");
        return HFSB_REFUSED;
    }
    if (c->kind == HFSB_PATCH_DELETE) hfsb_buf_truncate(&c->content, 0);
    else if (!c->new_path.len && hfsb_str_equal(u->content, now)) {
        hfsbi_fail(u->err, HFSB_REFUSED, 0, "The patch changes nothing in ");
        hfsbi_err_quote(u->err, path, 200);
        hfsbi_err_add(u->err, ". Nothing was changed.");
        return HFSB_REFUSED;
    }
    c->proven = !u->how.unproven;
    hfsbi_patch_note(u, c);
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_update_file(const hfsbi_patch   *patch,
                                       const hfsbi_section *section,
                                       hfsb_str content, hfsb_patch_change *c,
                                       hfsbi_updated *done, hfsb_err *err) {
    hfsbi_update u;
    hfsb_status  st;
    memset(&u, 0, sizeof u);
    u.alloc = &patch->alloc;
    u.patch = patch;
    u.section = section;
    u.content = content;
    u.file = hfsbi_edit_text_make(content, false);
    hfsbi_edit_text_scan(&u.file);
    u.done = done;
    u.hunk.old_text.alloc = u.hunk.new_text.alloc = u.hunk.scratch.alloc =
        u.texts.alloc = patch->alloc;
    u.err = err;
    st = hfsbi_update_run(&u, c);
    hfsbi_array_free(u.alloc, u.places, u.place_cap, sizeof *u.places);
    hfsbi_array_free(u.alloc, u.hunk.same, u.hunk.same_cap,
                     sizeof *u.hunk.same);
    hfsb_buf_free(&u.hunk.old_text);
    hfsb_buf_free(&u.hunk.new_text);
    hfsb_buf_free(&u.hunk.scratch);
    hfsb_buf_free(&u.texts);
    return st;
}
