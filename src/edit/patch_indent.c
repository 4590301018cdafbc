/* patch_indent.c - do the hunks of a file agree about its indentation?

   Each hunk is re-indented by itself, if its old lines need it. But a patch is
   indented in one way: where one hunk had to be re-indented and another
   matched as it is, the new lines of the other may be wrong, because nothing
   re-indented them, or because it was found in the wrong place. That hunk is
   kept only if its own lines show how they are indented. */
#include "edit_private.h"

static hfsb_str hfsbi_blanks_of(hfsb_str line) {
    return hfsb_str_slice(line, 0, hfsbi_indent_len(line, 0));
}

/* The next line that is not blank; false at the end. */
static bool hfsbi_next_text(hfsb_str *rest, hfsb_str *line) {
    while (hfsb_text_line(rest, line, NULL))
        if (hfsbi_trim(*line).len) return true;
    return false;
}

/* ---- a single old line ---- */

/* The least indented line of a hunk among those added, or among the others;
   blank lines and lines like `except` do not count. ptr NULL if not found.
   *count is the number of lines that count. */
static hfsb_str hfsbi_least_line(const hfsbi_patch *patch,
                                 const hfsbi_hunk *hunk, bool added,
                                 hfsb_str except, size_t *count) {
    hfsb_str least = HFSB_INIT;
    size_t   i;
    *count = 0;
    for (i = hunk->body; i < hunk->end; i++) {
        const hfsbi_hunk_line *l = patch->lines + i;
        if ((l->mark == '+') != added || !hfsbi_trim(l->text).len ||
            hfsb_str_equal(l->text, except))
            continue;
        if (!(*count)++ ||
            hfsbi_indent_len(l->text, 0) < hfsbi_indent_len(least, 0))
            least = l->text;
    }
    return least;
}

HFSBI_FN hfsb_str hfsbi_hunk_torn(const hfsbi_patch *patch,
                                  const hfsbi_hunk *hunk, hfsb_str was) {
    const hfsb_str none = HFSB_INIT;
    size_t         olds, news;
    hfsb_str       line = HFSB_INIT;
    hfsb_str old_line = hfsbi_least_line(patch, hunk, false, none, &olds);
    hfsb_str new_line = hfsbi_least_line(patch, hunk, true, old_line, &news);
    if (olds != 1 || !news) return none;
    if (!hfsbi_next_text(&was, &line)) return none;
    line = hfsbi_blanks_of(line);
    if (hfsb_str_equal(line, hfsbi_blanks_of(old_line)) ||
        !hfsb_str_equal(line, hfsbi_blanks_of(new_line)))
        return none;
    return new_line;
}

/* ---- several hunks ---- */

/* True when some line starts without a blank. */
static bool hfsbi_has_margin_text(hfsb_str text) {
    hfsb_str line;
    while (hfsb_text_line(&text, &line, NULL))
        if (line.len && !hfsbi_is_blank(line.ptr[0])) return true;
    return false;
}

enum { HFSBI_HUNK_INDENTS = 32 };

/* True when the old lines of the hunk, which matched unchanged, have more than
   one indentation, and all new lines have one of these. Brackets alone are too
   common to show anything. */
static bool hfsbi_shows_indent(const hfsbi_patch *patch,
                               const hfsbi_hunk  *hunk) {
    hfsb_str list[HFSBI_HUNK_INDENTS];
    size_t   i, k, pass, count = 0;
    for (pass = 0; pass < 2; pass++) /* the old lines, then the new ones */
        for (i = hunk->body; i < hunk->end; i++) {
            const hfsbi_hunk_line *l = patch->lines + i;
            hfsb_str               indent = hfsbi_blanks_of(l->text);
            if ((l->mark == '+') != (pass == 1) ||
                hfsbi_count_visible(l->text) < (pass ? 1u : 4u))
                continue;
            for (k = 0; k < count && !hfsb_str_equal(list[k], indent);) k++;
            if (k < count) continue;
            if (pass || count == HFSBI_HUNK_INDENTS) return false;
            list[count++] = indent;
        }
    return count > 1;
}

/* 0 for the same indentation, 2 if only one has tabs, which nobody does on a
   single line. Else 1. */
static size_t hfsbi_moved_by(hfsb_str a, hfsb_str b) {
    if (hfsb_str_equal(a, b)) return 0;
    return (hfsb_str_find_byte(a, '\t') == HFSB_NPOS) !=
                   (hfsb_str_find_byte(b, '\t') == HFSB_NPOS)
               ? 2
               : 1;
}

/* Number of old lines whose indentation is not that of the file. */
static size_t hfsbi_count_moved(const hfsbi_patch *patch,
                                const hfsbi_hunk *hunk, hfsb_str was) {
    hfsb_str line;
    size_t   i, n = 0;
    for (i = hunk->body; i < hunk->end; i++) {
        const hfsbi_hunk_line *l = patch->lines + i;
        if (l->mark == '+' || !hfsbi_trim(l->text).len) continue;
        if (!hfsbi_next_text(&was, &line)) break;
        n += hfsbi_moved_by(hfsbi_blanks_of(l->text), hfsbi_blanks_of(line));
    }
    return n;
}

HFSBI_FN void hfsbi_indents_add(hfsbi_indents *in, const hfsbi_patch *patch,
                                const hfsbi_hunk *hunk, hfsb_str was,
                                bool reindented) {
    const hfsb_str none = HFSB_INIT;
    size_t         i, olds, news;
    hfsb_str old_line = hfsbi_least_line(patch, hunk, false, none, &olds);
    bool     at_margin = olds && !hfsbi_blanks_of(old_line).len;
    (void)hfsbi_least_line(patch, hunk, true, none, &news);
    /* One line alone can be off by mistake. */
    if (reindented || hfsbi_count_moved(patch, hunk, was) > 1) {
        in->moved = hunk;
        if (at_margin != hfsbi_has_margin_text(was)) in->margin_moved = hunk;
        return;
    }
    if (!news || hfsbi_shows_indent(patch, hunk)) return;
    in->margin_kept = hunk;
    for (i = hunk->body; i < hunk->end; i++) {
        const hfsbi_hunk_line *l = patch->lines + i;
        if (l->mark == '+' && hfsbi_trim(l->text).len &&
            hfsbi_blanks_of(l->text).len)
            in->kept = hunk;
    }
}

HFSBI_FN bool hfsbi_indents_agree(const hfsbi_indents *in,
                                  const hfsbi_hunk   **kept,
                                  const hfsbi_hunk   **moved) {
    bool margin = in->margin_moved && in->margin_kept;
    *kept = margin ? in->margin_kept : in->kept;
    *moved = margin ? in->margin_moved : in->moved;
    return !*kept || !*moved;
}
