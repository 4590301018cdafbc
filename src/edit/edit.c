/* edit.c - apply one or many edits to a text.

   Each edit is screened, found in the original text and turned into places
   with their new text; then all places are spliced at once, or nothing is
   changed. An edit is found by climbing a ladder. Each rung is a set of folds,
   differences that it ignores, and the first rung that matches decides: it
   must match exactly one place, or any number for replace_all, else the edit
   is refused. A rung never widens the match beyond the folded text.

       rung                      folds                    new text is
       1  exact                  line endings             inserted unchanged
       2  missing last newline   the LF at the file's end one LF shorter
       3  listing                copied line numbers      stripped of them too
       4  trailing blanks        TRAIL                    unchanged lines keep
       5  look-alikes            LOOKS, then DASHES,      the file's bytes;
                                 then both with TRAIL     from 5 on also parts
       6  runs of blanks         RUNS LOOKS TRAIL         of changed lines
       7  indentation            INDENT TRAIL LOOKS       re-indented as the
       8  blank lines at edges   the same                 lines of the file
       9  all blanks             INDENT TRAIL RUNS        around it
      10  blank lines inside     INDENT TRAIL LOOKS LINES the same, with the
                                                          file's blank lines
      11  code fence             all of the above         stripped of it too

   intent.c screens the texts and finds those not meant literally, match.c
   climbs the ladder, strip.c removes what was copied around the text,
   rewrite.c and indent.c make the new text, explain.c the messages of a
   refusal, diff.c the report. */
#include "edit_private.h"

/* A part of the content and the text that replaces it. */
typedef struct hfsbi_edit_place {
    size_t start, end;         /* in the content */
    size_t text_pos, text_len; /* in plan->texts */
    size_t order;              /* as found: breaks ties */
    bool   appended;           /* by append_after */
    bool   shared;             /* overlaps another: reduced to its change */
    size_t edit;
} hfsbi_edit_place;

/* All edits of one call and the places found so far. */
typedef struct hfsbi_edit_plan {
    hfsb_str              content;
    const hfsb_edit      *edits;
    size_t                count;
    const hfsb_edit_opts *opts;
    hfsb_alloc            alloc;
    hfsb_buf              texts; /* of the places, one after the other */
    hfsbi_edit_place     *places;
    size_t                place_count, place_cap;
    unsigned              rungs; /* bit of each rung used */
    unsigned              meant; /* HFSBI_MEANT_ bits */
    bool                  stripped, unfenced, reindented;
    hfsb_err             *err;
} hfsbi_edit_plan;

/* One edit of the plan while its places are found. */
typedef struct hfsbi_edit_item {
    hfsbi_edit_plan *plan;
    const hfsb_edit *edit;
    size_t           index;
    hfsbi_edit_text  file;
    hfsbi_edit_texts texts;
    hfsb_buf         copies; /* holds texts that were changed */
    hfsb_buf         meant;  /* new_text, if it was changed at the end */
    hfsbi_matches    matches;
} hfsbi_edit_item;

/* ---- refusals ---- */

static hfsb_status hfsbi_refuse(const hfsbi_edit_item *item, hfsb_status code,
                                const char *format, ...) HFSBI_PRINTF(3, 4);

/* Sets the message, after "Edit 2 of 3: " when there are several edits. */
static hfsb_status hfsbi_refuse(const hfsbi_edit_item *item, hfsb_status code,
                                const char *format, ...) {
    hfsb_err *err = item->plan->err;
    char      text[400];
    va_list   ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    hfsbi_fail(err, code, 0, "%s", "");
    if (item->plan->count > 1)
        hfsbi_err_add(err, "Edit %zu of %zu: ", item->index + 1,
                      item->plan->count);
    hfsbi_err_add(err, "%s", text);
    return code;
}

static hfsb_edit_names hfsbi_plan_names(const hfsbi_edit_plan *plan) {
    return plan->opts ? plan->opts->names : HFSB_EDIT_NAMES_KEYS;
}

static const hfsbi_edit_words *hfsbi_item_words(const hfsbi_edit_item *item) {
    return hfsbi_edit_words_of(hfsbi_plan_names(item->plan));
}

static hfsbi_hint hfsbi_item_hint(const hfsbi_edit_item *item) {
    hfsbi_hint hint;
    hint.alloc = &item->plan->alloc;
    hint.file = &item->file;
    hint.old_text = item->texts.old_text;
    hint.new_text = item->texts.new_text;
    hint.err = item->plan->err;
    hint.hunk = false;
    hint.names = hfsbi_plan_names(item->plan);
    return hint;
}

HFSBI_FN bool hfsbi_is_prose(hfsb_str path) {
    hfsb_str suffix = hfsb_path_suffix(path);
    return hfsbi_str_equal_nocase(suffix, HFSB_LIT(".md")) ||
           hfsbi_str_equal_nocase(suffix, HFSB_LIT(".txt"));
}

static hfsb_status hfsbi_check_omission(const hfsbi_edit_item *item) {
    const hfsb_edit_opts   *opts = item->plan->opts;
    const hfsbi_edit_words *words = hfsbi_item_words(item);
    hfsb_err               *err = item->plan->err;
    hfsb_str                line;
    hfsb_status             st;
    if (item->edit->exact || (opts && hfsbi_is_prose(opts->path)))
        return HFSB_OK;
    line = hfsbi_find_omission(item->texts.new_text, item->texts.old_text,
                               item->file.text);
    if (!line.len) return HFSB_OK;
    st = hfsbi_refuse(item, HFSB_REFUSED,
                      "%s has a line that stands for code left out: \"",
                      words->new_text);
    hfsbi_err_quote(err, line, 120);
    hfsbi_err_add(err,
                  "\". It would be written into the file as it is. Send the "
                  "code itself, or a smaller %s and %s; %s writes the line. "
                  "Nothing was changed.",
                  words->old_text, words->new_text, words->exact);
    return st;
}

static hfsb_status hfsbi_check_diff(const hfsbi_edit_item *item) {
    const hfsbi_edit_words *words = hfsbi_item_words(item);
    if (item->edit->exact ||
        !hfsbi_is_diff(item->texts.new_text, item->texts.old_text))
        return HFSB_OK;
    return hfsbi_refuse(item, HFSB_REFUSED,
                        "%s looks like a diff: its lines begin with a blank, "
                        "+ or -, and these would be written into the file. "
                        "Send the new lines without the marks, or use %s; %s "
                        "writes them as they are. Nothing was changed.",
                        words->new_text, words->patch, words->exact);
}

/* Refuses what can be refused without a search. */
static hfsb_status hfsbi_check_texts(const hfsbi_edit_item *item) {
    const hfsb_edit        *edit = item->edit;
    const hfsbi_edit_words *words = hfsbi_item_words(item);
    if (edit->mode == HFSB_EDIT_REPLACE &&
        hfsb_str_equal(item->texts.old_text, item->texts.new_text))
        return hfsbi_refuse(item, HFSB_REFUSED,
                            "%s and %s must differ.%s Nothing was changed.",
                            words->old_text, words->new_text,
                            hfsb_str_equal(edit->old_str, edit->new_str)
                                ? ""
                                : " They differ in line endings only, and "
                                  "those are the file's.");
    if (!item->texts.old_text.len && item->file.text.len)
        return hfsbi_refuse(
            item, HFSB_REFUSED,
            "%s is empty but the file is not. To replace the whole file "
            "use %s; to insert text give the text before it as %s and %s. "
            "Nothing was changed.",
            words->old_text, words->write, words->old_text, words->after);
    if (hfsbi_check_diff(item) != HFSB_OK) return HFSB_REFUSED;
    return hfsbi_check_omission(item);
}

static hfsb_status hfsbi_refuse_not_found(const hfsbi_edit_item *item) {
    const hfsbi_edit_plan *plan = item->plan;
    hfsbi_hint             hint = hfsbi_item_hint(item);
    size_t                 i;
    hfsbi_refuse(item, HFSB_NOT_FOUND,
                 "%s not found in file. Nothing was changed.",
                 hfsbi_item_words(item)->old_text);
    for (i = 0; i < item->index; i++)
        if (hfsb_str_find(plan->edits[i].new_str, item->edit->old_str) !=
            HFSB_NPOS) {
            hfsbi_err_add(plan->err,
                          " It is in %s of edit %zu, but every edit is "
                          "looked for in the file as it was before: join the "
                          "two edits into one.",
                          hfsbi_item_words(item)->new_text, i + 1);
            return HFSB_NOT_FOUND;
        }
    hfsbi_hint_not_found(&hint);
    return HFSB_NOT_FOUND;
}

static hfsb_status hfsbi_refuse_ambiguous(const hfsbi_edit_item *item) {
    hfsbi_hint hint = hfsbi_item_hint(item);
    size_t     n = item->matches.count;
    hfsbi_refuse(item, HFSB_AMBIGUOUS,
                 "%s appears %zu times. Use %s or provide more context. "
                 "Nothing was changed.",
                 hfsbi_item_words(item)->old_text, n > 1 ? n : 2,
                 hfsbi_item_words(item)->all);
    if (item->edit->line)
        hfsbi_err_add(item->plan->err, " Line %zu does not tell which: %s.",
                      item->edit->line,
                      item->matches.rung <= HFSBI_RUNG_EOF
                          ? "one must start there, or only one within 3 "
                            "lines of it"
                          : "only exact matches can be picked so");
    hfsbi_hint_ambiguous(&hint, &item->matches);
    return HFSB_AMBIGUOUS;
}

/* Refuses an edit whose place is clear, but not its new text. */
static hfsb_status hfsbi_refuse_rewrite(const hfsbi_edit_item *item,
                                        const hfsbi_rewritten *result) {
    const hfsbi_match *m = item->matches.items + result->match;
    hfsbi_hint         hint = hfsbi_item_hint(item);
    hfsb_str           text = item->file.text;
    size_t             last = m->end > m->start ? m->end - 1 : m->end;
    hfsbi_refuse(item, HFSB_REFUSED,
                 "%s not found in file. Lines %zu-%zu are the same but for "
                 "%s line %zu of %s.",
                 hfsbi_item_words(item)->old_text,
                 hfsb_text_line_number(text, m->start),
                 hfsb_text_line_number(text, last),
                 result->blank_lines
                     ? "blank lines, and the change touches one of those: it "
                       "is not clear how many belong before"
                     : "their indentation, and it is not clear where to put",
                 result->line + 1, hfsbi_item_words(item)->new_text);
    hfsbi_hint_indent(&hint, m->start, m->end);
    return HFSB_REFUSED;
}

/* ---- changes already made ---- */

HFSBI_FN size_t hfsbi_count_visible(hfsb_str s) {
    size_t i, n = 0;
    for (i = 0; i < s.len; i++)
        n += (unsigned char)s.ptr[i] > ' ' &&
             ((unsigned char)s.ptr[i] & 0xC0u) != 0x80u;
    return n;
}

/* The part of the file that contains the new text, `len` bytes, if the change
   was made before: around the match for a replacement, next to it for an
   insertion. */
static hfsb_str hfsbi_applied_zone(const hfsbi_edit_text *file,
                                   hfsb_edit_mode mode, const hfsbi_match *m,
                                   size_t len, size_t *from) {
    size_t last = mode == HFSB_EDIT_REPLACE ? m->end : m->start;
    size_t first = mode == HFSB_EDIT_REPLACE ? m->start : m->end;
    size_t size = file->text.len;
    size_t to = len < size - first ? first + len : size;
    *from = last > len ? last - len : 0;
    if (mode == HFSB_EDIT_APPEND_AFTER) *from = m->end;
    if (mode == HFSB_EDIT_PREPEND_BEFORE) to = m->start;
    return hfsb_str_slice(file->text, *from, to);
}

HFSBI_FN hfsb_status hfsbi_find_applied(const hfsb_alloc       *alloc,
                                        const hfsbi_edit_text  *file,
                                        const hfsbi_edit_texts *texts,
                                        const hfsbi_match *m, size_t *pos) {
    hfsb_buf    copy = HFSB_INIT;
    hfsb_str    whole = texts->new_text, zone;
    size_t      from, at, least = 8;
    hfsb_status st;
    *pos = HFSB_NPOS;
    if (texts->mode == HFSB_EDIT_REPLACE)
        least += hfsbi_count_visible(texts->old_text);
    if (hfsbi_count_visible(whole) < least) return HFSB_OK;
    if (m->lacks_newline && hfsb_str_ends(whole, HFSB_LIT("\n"))) whole.len--;
    copy.alloc = *alloc;
    hfsbi_put_newlines(&copy, whole, hfsbi_newline_at(file, m->start));
    st = copy.status;
    zone = hfsbi_applied_zone(file, texts->mode, m, copy.len, &from);
    at = st == HFSB_OK ? hfsb_str_find(zone, hfsb_buf_str(&copy)) : HFSB_NPOS;
    hfsb_buf_free(&copy);
    if (at != HFSB_NPOS) *pos = from + at;
    return st;
}

/* Refuses an insertion that is already at the only match: the call was
   repeated, or the model forgot. */
static hfsb_status hfsbi_check_applied(const hfsbi_edit_item *item) {
    size_t      at;
    hfsb_status st;
    if (item->matches.rung > HFSBI_RUNG_EOF || item->matches.count != 1)
        return HFSB_OK;
    st = hfsbi_find_applied(&item->plan->alloc, &item->file, &item->texts,
                            item->matches.items, &at);
    if (at == HFSB_NPOS) return st;
    return hfsbi_refuse(
        item, HFSB_REFUSED,
        "The change is already applied at line %zu: the file reads %s "
        "there. Nothing was changed.",
        hfsb_text_line_number(item->file.text, at),
        hfsbi_item_words(item)->new_text);
}

/* ---- finding one edit ---- */

/* Reduces the matches to the one that `line` means: the one that starts there,
   else the only one within three lines. */
static bool hfsbi_pick_line(hfsbi_edit_item *item) {
    hfsbi_matches *m = &item->matches;
    size_t         i, pos = 0, line = 1, nearby = 0, there = 0, distance;
    size_t         nearby_count = 0, there_count = 0, want = item->edit->line;
    for (i = 0; i < m->count; i++) {
        size_t at = m->items[i].start;
        line += hfsbi_count_lines(&item->file,
                                  hfsb_str_slice(item->file.text, pos, at));
        pos = at;
        if (line == want) {
            there = i;
            there_count++;
        }
        distance = line > want ? line - want : want - line;
        if (distance <= 3) {
            nearby = i;
            nearby_count++;
        }
    }
    if (!there_count) {
        there = nearby;
        there_count = nearby_count;
    }
    if (there_count != 1 || m->items[there].overlaps) return false;
    m->items[0] = m->items[there];
    m->count = 1;
    return true;
}

/* Makes room for changed copies of both texts: folded, then without numbers.
   All at once, so that views of earlier copies stay valid. */
static hfsb_status hfsbi_item_reserve(hfsbi_edit_item *item) {
    size_t size;
    if (item->copies.cap) return HFSB_OK;
    if (!hfsbi_add(item->edit->old_str.len, item->edit->new_str.len, &size) ||
        !hfsbi_mul(size, 2, &size))
        return HFSB_LIMIT;
    return hfsb_buf_reserve(&item->copies, size);
}

static hfsb_str hfsbi_item_strip(hfsbi_edit_item *item, hfsb_str text) {
    size_t mark = item->copies.len;
    hfsbi_numbered_strip(text, &item->copies);
    return hfsb_str_slice(hfsb_buf_str(&item->copies), mark, HFSB_NPOS);
}

/* Climbs the ladder; old_text may differ from the item's. */
static hfsb_status hfsbi_item_climb(hfsbi_edit_item *item, hfsb_str old_text,
                                    unsigned rungs) {
    if (!item->edit->replace_all) rungs |= HFSBI_MATCH_HIDDEN;
    return hfsbi_match_find(&item->plan->alloc, &item->file, old_text, rungs,
                            &item->matches);
}

/* Searches without the line numbers of a listing that was copied into old_str,
   and perhaps into new_str. */
static hfsb_status hfsbi_find_stripped(hfsbi_edit_item *item) {
    hfsbi_numbered news = hfsbi_numbered_scan(item->texts.new_text);
    hfsbi_matches *m = &item->matches;
    hfsb_str       old_text;
    size_t         i;
    hfsb_status    st;
    if (news.prefixed && news.prefixed < news.lines) return HFSB_OK;
    st = hfsbi_item_reserve(item);
    if (st != HFSB_OK) return st;
    old_text = hfsbi_item_strip(item, item->texts.old_text);
    if (!old_text.len) return HFSB_OK;
    st = hfsbi_item_climb(item, old_text,
                          HFSBI_MATCH_EXACT | HFSBI_MATCH_LOOSE);
    /* A listing shows whole lines: text after other text on its line is data
       that starts with a number. */
    for (i = 0; st == HFSB_OK && i < m->count; i++)
        if (!hfsbi_starts_text(&item->file, m->items[i].start))
            hfsbi_matches_free(&item->plan->alloc, m);
    if (st != HFSB_OK || !m->count) return st;
    item->plan->stripped = true;
    item->texts.old_text = old_text;
    if (news.prefixed)
        item->texts.new_text = item->texts.raw_new =
            hfsbi_item_strip(item, item->texts.new_text);
    return hfsbi_check_omission(item); /* numbers may have hidden it */
}

/* Searches for the lines inside the code fences of both texts. */
static hfsb_status hfsbi_find_unfenced(hfsbi_edit_item *item) {
    hfsb_str       old_text = item->texts.old_text;
    hfsb_str       new_text = item->texts.new_text;
    hfsbi_matches *m = &item->matches;
    size_t         i;
    hfsb_status    st;
    if (!hfsbi_unfence_both(&old_text, &new_text)) return HFSB_OK;
    st = hfsbi_item_climb(item, old_text,
                          HFSBI_MATCH_EXACT | HFSBI_MATCH_LOOSE);
    /* A fence encloses whole lines. */
    for (i = 0; st == HFSB_OK && i < m->count; i++)
        if (!hfsbi_starts_line(&item->file, m->items[i].start))
            hfsbi_matches_free(&item->plan->alloc, m);
    if (st != HFSB_OK || !m->count) return st;
    item->plan->unfenced = true;
    item->texts.old_text = old_text;
    item->texts.new_text = item->texts.raw_new = new_text;
    return HFSB_OK;
}

/* Finds the matches, or refuses. within_line: no text contains a line end. */
static hfsb_status hfsbi_item_find(hfsbi_edit_item *item, bool within_line) {
    const hfsb_edit *edit = item->edit;
    hfsbi_matches   *m = &item->matches;
    hfsb_status      st =
        hfsbi_item_climb(item, item->texts.old_text, HFSBI_MATCH_EXACT);
    if (st != HFSB_OK) return st;
    if (m->count == 1 && !m->overlapping) return HFSB_OK;
    if (within_line) hfsbi_edit_text_scan(&item->file);
    if (!m->count && !edit->exact && edit->mode == HFSB_EDIT_REPLACE &&
        hfsbi_numbered_scan(item->texts.old_text).consecutive)
        st = hfsbi_find_stripped(item);
    if (st == HFSB_OK && !m->count && !edit->exact)
        st = hfsbi_item_climb(item, item->texts.old_text, HFSBI_MATCH_LOOSE);
    if (st == HFSB_OK && !m->count && !edit->exact &&
        edit->mode == HFSB_EDIT_REPLACE)
        st = hfsbi_find_unfenced(item);
    if (st != HFSB_OK) return st;
    if (!m->count) return hfsbi_refuse_not_found(item);
    if ((m->count > 1 || m->overlapping) && !edit->replace_all &&
        !(edit->line && m->rung <= HFSBI_RUNG_EOF && hfsbi_pick_line(item)))
        return hfsbi_refuse_ambiguous(item);
    return HFSB_OK;
}

/* ---- the places of one edit ---- */

static hfsb_status hfsbi_add_place(const hfsbi_edit_item *item,
                                   const hfsbi_match     *match) {
    hfsbi_edit_plan  *plan = item->plan;
    hfsbi_edit_place *p = (hfsbi_edit_place *)hfsbi_array_grow(
        &plan->alloc, plan->places, &plan->place_cap, plan->place_count + 1,
        sizeof *p);
    if (!p) return HFSB_NOMEM;
    plan->places = p;
    p += plan->place_count;
    p->start = item->file.offset + match->start;
    p->end = item->file.offset + match->end;
    p->text_pos = match->text_pos;
    p->text_len = match->text_len;
    p->order = plan->place_count++;
    p->appended = item->edit->mode == HFSB_EDIT_APPEND_AFTER;
    p->shared = false;
    p->edit = item->index;
    return HFSB_OK;
}

/* Changes new_text to what it means at an exact match. */
static hfsb_status hfsbi_item_interpret(hfsbi_edit_item *item) {
    const hfsbi_matches *m = &item->matches;
    if (item->edit->exact || item->edit->mode != HFSB_EDIT_REPLACE ||
        m->rung != HFSBI_RUNG_EXACT || m->count != 1)
        return HFSB_OK;
    item->plan->meant |=
        hfsbi_read_intent(&item->file, m->items, &item->texts, &item->meant);
    return item->meant.status;
}

/* Makes the new text of all matches. */
static hfsb_status hfsbi_item_rewrite(hfsbi_edit_item *item) {
    hfsbi_edit_plan *plan = item->plan;
    hfsbi_matches   *m = &item->matches;
    hfsbi_rewritten  result;
    size_t           i;
    hfsb_status      st = hfsbi_rewrite_matches(
             &plan->alloc, &item->file, &item->texts, m, &plan->texts, &result);
    if (st == HFSB_REFUSED) return hfsbi_refuse_rewrite(item, &result);
    for (i = 0; st == HFSB_OK && i < m->count; i++)
        st = hfsbi_add_place(item, m->items + i);
    plan->reindented = plan->reindented || result.reindented;
    plan->rungs |= 1u << m->rung;
    return st;
}

/* Makes the raw new text the content of an empty file. */
static hfsb_status hfsbi_item_fill(hfsbi_edit_item *item) {
    hfsbi_match whole = HFSB_INIT;
    hfsb_status st;
    whole.text_pos = item->plan->texts.len;
    whole.text_len = item->texts.raw_new.len;
    st = hfsb_buf_append(&item->plan->texts, item->texts.raw_new);
    return st == HFSB_OK ? hfsbi_add_place(item, &whole) : st;
}

static bool hfsbi_has_line_end(hfsb_str s) {
    return hfsb_str_find_byte(s, '\n') != HFSB_NPOS ||
           hfsb_str_find_byte(s, '\r') != HFSB_NPOS;
}

/* Sets both texts with LF for their line ends. */
static hfsb_status hfsbi_item_fold(hfsbi_edit_item *item) {
    const hfsb_edit *edit = item->edit;
    item->texts.old_text = edit->old_str;
    item->texts.new_text = item->texts.raw_new = edit->new_str;
    if (hfsb_str_find_byte(edit->old_str, '\r') == HFSB_NPOS &&
        hfsb_str_find_byte(edit->new_str, '\r') == HFSB_NPOS)
        return HFSB_OK;
    item->copies.status = hfsbi_item_reserve(item);
    item->texts.old_text =
        hfsbi_fold_newlines(&item->file, edit->old_str, &item->copies);
    item->texts.new_text =
        hfsbi_fold_newlines(&item->file, edit->new_str, &item->copies);
    return item->copies.status;
}

/* Adds the places of one edit, or refuses it. */
static hfsb_status hfsbi_item_plan(hfsbi_edit_item *item) {
    const hfsb_edit *edit = item->edit;
    /* Without a line end in either text those of the file do not matter, and
       a large file is spared a pass. */
    bool within_line = !hfsbi_has_line_end(edit->old_str) &&
                       !hfsbi_has_line_end(edit->new_str);
    hfsb_status st;
    if ((int)edit->mode < 0 || edit->mode > HFSB_EDIT_PREPEND_BEFORE)
        return hfsbi_refuse(item, HFSB_ARG,
                            "Unknown mode: %d. Nothing was changed.",
                            (int)edit->mode);
    if (!within_line) hfsbi_edit_text_scan(&item->file);
    st = hfsbi_item_fold(item);
    if (st == HFSB_OK) st = hfsbi_check_texts(item);
    if (st != HFSB_OK) return st;
    if (!item->texts.old_text.len) return hfsbi_item_fill(item);
    st = hfsbi_item_find(item, within_line);
    if (st == HFSB_OK && !within_line) st = hfsbi_item_interpret(item);
    if (st == HFSB_OK) st = hfsbi_check_applied(item);
    return st == HFSB_OK ? hfsbi_item_rewrite(item) : st;
}

static hfsb_status hfsbi_plan_edit(hfsbi_edit_plan *plan, size_t index) {
    hfsbi_edit_item item;
    hfsb_status     st;
    memset(&item, 0, sizeof item);
    item.plan = plan;
    item.edit = plan->edits + index;
    item.texts.mode = item.edit->mode;
    item.index = index;
    item.copies.alloc = item.meant.alloc = plan->alloc;
    item.file = hfsbi_edit_text_make(
        plan->content,
        hfsb_str_starts(item.edit->old_str, HFSB_LIT("\xEF\xBB\xBF")));
    st = hfsbi_item_plan(&item);
    hfsbi_matches_free(&plan->alloc, &item.matches);
    hfsb_buf_free(&item.copies);
    hfsb_buf_free(&item.meant);
    return st;
}

/* ---- several edits ---- */

/* By start; insertions sort before the text they precede, and text appended to
   one match before text prepended to the next. */
static int hfsbi_edit_place_order(const void *x, const void *y) {
    const hfsbi_edit_place *a = (const hfsbi_edit_place *)x;
    const hfsbi_edit_place *b = (const hfsbi_edit_place *)y;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    if ((a->end == a->start) != (b->end == b->start))
        return a->end == a->start ? -1 : 1;
    if (a->appended != b->appended) return a->appended ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static hfsb_str hfsbi_edit_place_text(const hfsbi_edit_plan  *plan,
                                      const hfsbi_edit_place *p) {
    return hfsb_str_slice(hfsb_buf_str(&plan->texts), p->text_pos,
                          p->text_pos + p->text_len);
}

/* True when a line starts at pos, or the text does. */
static bool hfsbi_is_line_start(hfsb_str text, size_t pos) {
    return pos == 0 || text.ptr[pos - 1] == '\n';
}

/* Reduces a place to the lines it changes: lines at its start and its end that
   are the same in the new text only serve to find it. */
static void hfsbi_place_reduce(const hfsbi_edit_plan *plan,
                               hfsbi_edit_place      *p) {
    hfsb_str was = hfsb_str_slice(plan->content, p->start, p->end);
    hfsb_str now = hfsbi_edit_place_text(plan, p);
    size_t   head = 0, tail = 0, least;
    least = was.len < now.len ? was.len : now.len;
    while (head < least && was.ptr[head] == now.ptr[head]) head++;
    while (!hfsbi_is_line_start(was, head)) head--;
    was = hfsb_str_slice(was, head, was.len);
    now = hfsb_str_slice(now, head, now.len);
    least -= head;
    while (tail < least &&
           was.ptr[was.len - 1 - tail] == now.ptr[now.len - 1 - tail])
        tail++;
    while (tail > 0 && !(hfsbi_is_line_start(was, was.len - tail) &&
                         hfsbi_is_line_start(now, now.len - tail)))
        tail--;
    p->shared = true;
    p->start += head;
    p->end -= tail;
    p->text_pos += head;
    p->text_len -= head + tail;
}

/* Reduces the places that overlap; false when there are none. */
static bool hfsbi_reduce_overlaps(hfsbi_edit_plan *plan) {
    size_t i, widest = 0;
    bool   any = false;
    for (i = 1; i < plan->place_count; i++) {
        hfsbi_edit_place *a = plan->places + widest, *b = plan->places + i;
        if (a->end > b->start) a->shared = b->shared = any = true;
        if (b->end > a->end) widest = i;
    }
    for (i = 0; any && i < plan->place_count; i++)
        if (plan->places[i].shared) hfsbi_place_reduce(plan, plan->places + i);
    return any;
}

/* True when both change the same lines, or insert at the same point where
   their order is not clear. */
static bool hfsbi_places_conflict(const hfsbi_edit_place *a,
                                  const hfsbi_edit_place *b) {
    return a->end > b->start || (a->shared && b->shared && a->start == b->end);
}

static void hfsbi_sort_places(const hfsbi_edit_plan *plan) {
    hfsbi_sort(plan->places, plan->place_count, sizeof *plan->places,
               hfsbi_edit_place_order);
}

static hfsb_status hfsbi_check_overlap(hfsbi_edit_plan *plan) {
    size_t i;
    hfsbi_sort_places(plan);
    if (!hfsbi_reduce_overlaps(plan)) return HFSB_OK;
    hfsbi_sort_places(plan);
    for (i = 1; i < plan->place_count; i++) {
        const hfsbi_edit_place *a = plan->places + i - 1,
                               *b = plan->places + i;
        if (hfsbi_places_conflict(a, b))
            return hfsbi_fail(
                plan->err, HFSB_REFUSED, 0,
                "Edits %zu and %zu overlap at line %zu: both change the same "
                "lines. Join them into one edit. Nothing was changed.",
                (a->edit < b->edit ? a->edit : b->edit) + 1,
                (a->edit < b->edit ? b->edit : a->edit) + 1,
                hfsb_text_line_number(plan->content, b->start));
    }
    return HFSB_OK;
}

/* ---- splice ---- */

/* The new length, and whether any place changes the content; false when the
   length overflows. */
static bool hfsbi_plan_size(const hfsbi_edit_plan *plan, size_t *size,
                            bool *changed) {
    size_t i;
    *size = plan->content.len;
    *changed = false;
    for (i = 0; i < plan->place_count; i++) {
        const hfsbi_edit_place *p = plan->places + i;
        *size -= p->end - p->start;
        if (!hfsbi_add(*size, p->text_len, size)) return false;
        if (!*changed)
            *changed = !hfsb_str_equal(
                hfsb_str_slice(plan->content, p->start, p->end),
                hfsbi_edit_place_text(plan, p));
    }
    return true;
}

static hfsb_status hfsbi_refuse_no_change(const hfsbi_edit_plan *plan) {
    return hfsbi_fail(plan->err, HFSB_REFUSED, 0,
                      "The edit changes nothing: the file already reads like "
                      "that. Nothing was changed.");
}

static hfsb_status hfsbi_splice(const hfsbi_edit_plan *plan, hfsb_buf *out) {
    size_t      mark = out->len;
    size_t      i, pos = 0, size;
    bool        changed;
    hfsb_status st;
    if (!hfsbi_plan_size(plan, &size, &changed)) return HFSB_LIMIT;
    if (!changed) return hfsbi_refuse_no_change(plan);
    out->status = hfsb_buf_reserve(out, size);
    for (i = 0; i < plan->place_count; i++) {
        const hfsbi_edit_place *p = plan->places + i;
        hfsb_buf_append(out, hfsb_str_slice(plan->content, pos, p->start));
        hfsb_buf_append(out, hfsbi_edit_place_text(plan, p));
        pos = p->end;
    }
    hfsb_buf_append(out,
                    hfsb_str_slice(plan->content, pos, plan->content.len));
    st = hfsb_buf_finish(out, mark);
    /* The changes of several places can cancel out. */
    if (st == HFSB_OK && plan->place_count > 1 &&
        hfsb_str_equal(plan->content,
                       hfsb_str_slice(hfsb_buf_str(out), mark, out->len)))
        return hfsbi_refuse_no_change(plan);
    return st;
}

/* ---- the report ---- */

static void hfsbi_write_note(const hfsbi_edit_plan *plan,
                             hfsb_edit_result      *r) {
    const hfsbi_edit_words *words =
        hfsbi_edit_words_of(hfsbi_plan_names(plan));
    const char *const meant[] = {words->kept_line_end,
                                 "(kept the rest of the last line, once)",
                                 "(kept the indentation of the first line)"};
    const char       *parts[HFSBI_RUNGS + 6];
    size_t            count = 0, i, n = 0;
    for (i = 0; i < HFSBI_RUNGS; i++) {
        const char *note = hfsbi_rung_words_of((hfsbi_rung)i)->note;
        if ((plan->rungs >> i & 1u) && note &&
            (!count || strcmp(parts[count - 1], note) != 0))
            parts[count++] = note;
    }
    if (plan->stripped) parts[count++] = "(line-number prefixes removed)";
    if (plan->unfenced) parts[count++] = "(code fences removed)";
    for (i = 0; i < sizeof meant / sizeof *meant; i++)
        if (plan->meant >> i & 1u) parts[count++] = meant[i];
    if (plan->reindented || (plan->meant & HFSBI_MEANT_REINDENT))
        parts[count++] = words->indented;
    for (i = 0; i < count && n < sizeof r->note; i++)
        n += (size_t)snprintf(r->note + n, sizeof r->note - n, "%s%s",
                              i ? " " : "", parts[i]);
}

static void hfsbi_fill_spans(const hfsbi_edit_plan *plan, hfsb_str text,
                             hfsb_span *spans) {
    size_t i, pos = 0, line = 1, old_pos = 0;
    for (i = 0; i < plan->place_count; i++) {
        const hfsbi_edit_place *p = plan->places + i;
        hfsb_span              *s = spans + i;
        hfsb_str                put = hfsbi_edit_place_text(plan, p);
        s->old_start = p->start;
        s->old_len = p->end - p->start;
        s->new_start = pos + (p->start - old_pos);
        s->new_len = put.len;
        line +=
            hfsb_str_count_byte(hfsb_str_slice(text, pos, s->new_start), '\n');
        s->first_line = line;
        line += hfsb_str_count_byte(put, '\n');
        s->last_line = hfsb_str_ends(put, HFSB_LIT("\n")) ? line - 1 : line;
        pos = s->new_start + put.len;
        old_pos = p->end;
    }
}

static hfsb_status hfsbi_report(const hfsbi_edit_plan *plan, hfsb_str text,
                                hfsb_edit_result *r) {
    hfsb_diff_opts diff = HFSB_INIT;
    r->diff.alloc = plan->alloc;
    r->spans = (hfsb_span *)hfsbi_array(&plan->alloc, plan->place_count,
                                        sizeof *r->spans);
    if (!r->spans) return HFSB_NOMEM;
    r->count = plan->place_count;
    hfsbi_fill_spans(plan, text, r->spans);
    hfsbi_write_note(plan, r);
    if (plan->opts && plan->opts->no_diff) return HFSB_OK;
    if (plan->opts) {
        diff.path = plan->opts->path;
        diff.max_bytes = plan->opts->max_diff;
    }
    return hfsb_diff_unified(plan->content, text, r->spans, r->count, &diff,
                             &r->diff, &r->diff_cut);
}

/* ---- the public functions ---- */

/* Finds the places of all edits, splices them and writes the report. */
static hfsb_status hfsbi_run_plan(hfsbi_edit_plan *plan, hfsb_buf *out,
                                  hfsb_edit_result *result) {
    size_t      i, mark = out->len;
    hfsb_status st = HFSB_OK;
    for (i = 0; st == HFSB_OK && i < plan->count; i++)
        st = hfsbi_plan_edit(plan, i);
    if (st == HFSB_OK && plan->count > 1) st = hfsbi_check_overlap(plan);
    if (st == HFSB_OK) st = hfsbi_splice(plan, out);
    if (st == HFSB_OK && result)
        st = hfsbi_report(
            plan, hfsb_str_slice(hfsb_buf_str(out), mark, out->len), result);
    if (st != HFSB_OK) {
        hfsb_buf_truncate(out, mark);
        if (result) hfsb_edit_result_free(result);
    }
    return st;
}

hfsb_status hfsb_edit_set_mode(hfsb_edit *edit, hfsb_str name, hfsb_err *err) {
    static const struct {
        const char    *name;
        hfsb_edit_mode mode;
    } modes[] = {{"replace", HFSB_EDIT_REPLACE},
                 {"replace_all", HFSB_EDIT_REPLACE},
                 {"append_after", HFSB_EDIT_APPEND_AFTER},
                 {"prepend_before", HFSB_EDIT_PREPEND_BEFORE}};
    size_t i;
    for (i = 0; i < sizeof modes / sizeof *modes; i++)
        if (hfsb_str_equal(name, hfsb_cstr(modes[i].name))) {
            edit->mode = modes[i].mode;
            if (i == 1) edit->replace_all = true;
            return hfsbi_ok(err);
        }
    hfsbi_fail(err, HFSB_ARG, 0, "Unknown mode: ");
    hfsbi_err_quote(err, name, 100);
    hfsbi_err_add(err, ". Use replace, append_after or prepend_before. "
                       "Nothing was changed.");
    return HFSB_ARG;
}

hfsb_status hfsb_edit_from_json(const hfsb_json_value *arguments,
                                hfsb_edit *edit, hfsb_err *err) {
    hfsb_edit   fresh = *edit;
    hfsb_str    mode = HFSB_INIT;
    long long   line = 0;
    hfsb_status st;
    st = hfsb_json_arg_str(arguments, "old_str", true, &fresh.old_str, err);
    if (st == HFSB_OK)
        st =
            hfsb_json_arg_str(arguments, "new_str", true, &fresh.new_str, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_bool(arguments, "replace_all", false,
                                &fresh.replace_all, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_bool(arguments, "exact", false, &fresh.exact, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_int(arguments, "line", false, &line, err);
    if (st == HFSB_OK && line < 0)
        st = hfsbi_fail(err, HFSB_ARG, 0,
                        "line: expected a line number from 1 on, found %lld.",
                        line);
    if (st == HFSB_OK && line > 0) fresh.line = (size_t)line;
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(arguments, "mode", false, &mode, err);
    if (st == HFSB_OK && mode.ptr) st = hfsb_edit_set_mode(&fresh, mode, err);
    if (st == HFSB_OK) *edit = fresh;
    return st;
}

hfsb_status hfsb_edit_apply(hfsb_str content, const hfsb_edit *edits,
                            size_t count, const hfsb_edit_opts *opts,
                            hfsb_buf *out, hfsb_edit_result *result,
                            hfsb_err *err) {
    hfsbi_edit_plan plan;
    hfsb_status     st;
    hfsbi_ok(err);
    if (result) memset(result, 0, sizeof *result);
    if (!count)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "There are no edits. Nothing was changed.");
    memset(&plan, 0, sizeof plan);
    plan.content = content;
    plan.edits = edits;
    plan.count = count;
    plan.opts = opts;
    plan.alloc = plan.texts.alloc = out->alloc;
    plan.err = err;
    st = hfsbi_run_plan(&plan, out, result);
    hfsb_buf_free(&plan.texts);
    hfsbi_array_free(&plan.alloc, plan.places, plan.place_cap,
                     sizeof *plan.places);
    if (st == HFSB_NOMEM || st == HFSB_LIMIT)
        return hfsbi_fail_status(err, st, "The edit was not made");
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}

void hfsb_edit_result_free(hfsb_edit_result *r) {
    hfsbi_array_free(&r->diff.alloc, r->spans, r->count, sizeof *r->spans);
    hfsb_buf_free(&r->diff);
    memset(r, 0, sizeof *r);
}
