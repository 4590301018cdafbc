/* explain.c - reasons to refuse an edit, and the hints that go with them.

   When a search finds nothing, the hint says where the text probably is, what
   differs there and what to do; when it finds several places, it lists them.
   The reader is the model that sent the edit: hints are short, concrete, and
   name the next step. Nothing here is ever applied.

   Hints take time linear in the file; everything that is compared more
   closely has a fixed limit. */
#include "edit_private.h"

#define HFSBI_HINT_SIZE  1190 /* longest message, in bytes */
#define HFSBI_HINT_WIDTH 999  /* characters shown of a line */
#define HFSBI_HINT_CUT   70   /* the same when room is short */
#define HFSBI_HINT_ITEMS 3    /* differences named */
#define HFSBI_HINT_PROBE 8192 /* a NUL in these bytes means binary */
#define HFSBI_HINT_LINES 16   /* old lines looked for one by one */

/* ---- showing text ---- */

/* Adds up to `width` characters of text as they are, so that they can be
   copied; control characters appear as their code. */
static void hfsbi_show_text(hfsb_err *err, hfsb_str text, size_t width) {
    size_t pos = 0, shown = 0;
    while (pos < text.len && shown++ < width) {
        unsigned long code;
        bool          valid;
        size_t        len = hfsb_utf8_step(text, pos, &code, &valid);
        if (!valid) hfsbi_err_add(err, "\xEF\xBF\xBD");
        else if ((code < ' ' && code != '\t') || code == 0x7F)
            hfsbi_err_add(err, "<%02lX>", code);
        else hfsbi_err_add(err, "%.*s", (int)len, text.ptr + pos);
        pos += len;
    }
    if (pos < text.len) hfsbi_err_add(err, "...");
}

/* Adds a line the way read shows it. */
static void hfsbi_show_line(hfsb_err *err, hfsb_str line, size_t number,
                            size_t width) {
    hfsbi_err_add(err, "\n%zu\t", number);
    hfsbi_show_text(err, line, width);
}

/* At most the number of bytes that hfsbi_show_line() adds. */
static size_t hfsbi_shown_size(hfsb_str line, size_t width) {
    size_t        pos = 0, shown = 0, size = 12;
    unsigned long code;
    while (pos < line.len && shown++ < width) {
        pos += hfsb_utf8_step(line, pos, &code, NULL);
        size += code < ' ' || code >= 0x7F ? 4 : 1;
    }
    return size;
}

/* Adds the part of a line around pos. */
static void hfsbi_show_around(hfsb_err *err, const char *name, hfsb_str line,
                              size_t pos) {
    size_t from = pos > 36 ? hfsbi_utf8_floor(line, pos - 36) : 0;
    if (line.len <= HFSBI_HINT_CUT) from = 0;
    hfsbi_err_add(err, "\n  %s: %s", name, from ? "..." : "");
    hfsbi_show_text(err, hfsb_str_slice(line, from, line.len), HFSBI_HINT_CUT);
}

/* True for a character that can be recognised when it is printed. */
static bool hfsbi_is_plain(unsigned long code) {
    return code > ' ' && code < 0x7F;
}

/* True for characters without width. */
static bool hfsbi_is_hidden(unsigned long code) {
    return code == 0xAD || (code >= 0x200B && code <= 0x200F) ||
           (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2060 && code <= 0x2064) ||
           (code >= 0xFE00 && code <= 0xFE0F) || code == 0xFEFF;
}

/* Adds what is at pos in words: "4 spaces", "U+00A0 (no-break space)". */
static void hfsbi_show_code(hfsb_err *err, hfsb_str line, size_t pos) {
    unsigned long code;
    bool          valid;
    size_t        len, n = 1;
    if (pos >= line.len) {
        hfsbi_err_add(err, "the end of the line");
        return;
    }
    len = hfsb_utf8_step(line, pos, &code, &valid);
    if (code == ' ' || code == '\t') {
        while (pos + n < line.len && line.ptr[pos + n] == line.ptr[pos]) n++;
        hfsbi_err_add(err, "%zu %s%s", n, code == ' ' ? "space" : "tab",
                      n == 1 ? "" : "s");
    } else if (!valid) {
        hfsbi_err_add(err, "a byte that is not UTF-8");
    } else if (hfsbi_is_plain(code)) {
        hfsbi_err_add(err, "\"%c\"", (char)code);
    } else {
        hfsbi_err_add(err, "U+%04lX", code);
        if (code == 0xA0) hfsbi_err_add(err, " (no-break space)");
        else if (hfsbi_is_hidden(code)) hfsbi_err_add(err, " (invisible)");
        else if (code > 0xA0)
            hfsbi_err_add(err, " (%.*s)", (int)len, line.ptr + pos);
    }
}

/* ---- names of the arguments ---- */

HFSBI_FN const hfsbi_edit_words *hfsbi_edit_words_of(hfsb_edit_names names) {
    static const hfsbi_edit_words list[] = {
        {"old_str", "new_str", "replace_all=true", "exact=true", "line=N",
         "mode append_after", "apply_patch", "write", "call read with offset=",
         ", limit=", "(kept the line end after new_str)",
         "(new_str re-indented as the file is)"},
        {"--old", "--new", "--replace-all", "--exact", "--line N",
         "--mode append_after", "`hfsb patch`", "`hfsb write`",
         "run hfsb read --offset ", " --limit ",
         "(kept the line end after --new)",
         "(--new re-indented as the file is)"}};
    return &list[names == HFSB_EDIT_NAMES_FLAGS ? 1 : 0];
}

static const hfsbi_edit_words *hfsbi_hint_words(const hfsbi_hint *h) {
    return hfsbi_edit_words_of(h->names);
}

/* The old text, as the sender calls it, at the start of a sentence or not. */
static const char *hfsbi_old_name(const hfsbi_hint *h, bool starts) {
    if (!h->hunk) return hfsbi_hint_words(h)->old_text;
    return starts ? "The hunk" : "the hunk";
}

/* The same for a count of lines: added lines are not counted. */
static const char *hfsbi_old_lines(const hfsbi_hint *h) {
    return h->hunk ? "the hunk's old lines" : hfsbi_hint_words(h)->old_text;
}

/* ---- lines of the file ---- */

/* What a message is made of. */
typedef struct hfsbi_explain {
    const hfsbi_hint *hint;
    hfsbi_closest     closest;
    hfsb_err         *err;
    hfsb_err          items;       /* the differences, shown after the lines */
    size_t            first, last; /* lines of the closest place, 0-based */
    bool              all_same;
} hfsbi_explain;

static size_t hfsbi_file_number(const hfsbi_explain *x, size_t line) {
    return x->closest.first_line + line;
}

static size_t hfsbi_old_number(const hfsbi_explain *x, size_t line) {
    return x->closest.old_first + line + 1;
}

/* Sets the first and last line of the place; false when it has no line. */
static bool hfsbi_explain_range(hfsbi_explain *x) {
    size_t i, n = 0;
    x->all_same = true;
    for (i = 0; i < x->closest.count; i++) {
        const hfsbi_row *row = x->closest.rows + i;
        if (!row->same) x->all_same = false;
        if (row->file_line == HFSB_NPOS) continue;
        if (!n++) x->first = row->file_line;
        x->last = row->file_line;
    }
    return n > 0;
}

/* True when row i, or the row before or after it, differs. */
static bool hfsbi_row_matters(const hfsbi_closest *c, size_t i) {
    return !c->rows[i].same || (i > 0 && !c->rows[i - 1].same) ||
           (i + 1 < c->count && !c->rows[i + 1].same);
}

/* Size of the lines of the place, or of those that matter. */
static size_t hfsbi_lines_size(const hfsbi_explain *x, bool all,
                               size_t width) {
    const hfsbi_closest *c = &x->closest;
    size_t               i, size = 0;
    for (i = 0; i < c->count; i++)
        if (c->rows[i].file_line != HFSB_NPOS &&
            (all || hfsbi_row_matters(c, i)))
            size +=
                hfsbi_shown_size(c->lines.items[c->rows[i].file_line], width);
    return size;
}

static void hfsbi_show_skipped(const hfsbi_explain *x, size_t *count) {
    if (*count)
        hfsbi_err_add(x->err, "\n... (%zu line%s as in %s)", *count,
                      *count == 1 ? "" : "s", hfsbi_old_name(x->hint, false));
    *count = 0;
}

/* Adds the lines of the place while there is room, all or those that matter;
   false when something that differs is missing. */
static bool hfsbi_list_lines(const hfsbi_explain *x, size_t room, bool all,
                             size_t width) {
    const hfsbi_closest *c = &x->closest;
    size_t               i, skipped = 0;
    bool                 complete = true;
    for (i = 0; i < c->count; i++) {
        hfsb_str line;
        if (c->rows[i].file_line == HFSB_NPOS) continue;
        line = c->lines.items[c->rows[i].file_line];
        if (!all && !hfsbi_row_matters(c, i)) {
            skipped++;
            continue;
        }
        hfsbi_show_skipped(x, &skipped);
        if (strlen(x->err->msg) + hfsbi_shown_size(line, width) > room) {
            hfsbi_err_add(x->err, "\n... to line %zu",
                          hfsbi_file_number(x, x->last));
            return false;
        }
        if (line.len > width && !c->rows[i].same) complete = false;
        hfsbi_show_line(x->err, line,
                        hfsbi_file_number(x, c->rows[i].file_line), width);
    }
    hfsbi_show_skipped(x, &skipped);
    return complete;
}

/* Adds the lines of the place, then the differences, then what to do. */
static void hfsbi_show_place(hfsbi_explain *x) {
    size_t used = strlen(x->err->msg);
    size_t rest = strlen(x->items.msg) + 100, from, width;
    size_t room =
        used + rest < HFSBI_HINT_SIZE ? HFSBI_HINT_SIZE - used - rest : 0;
    bool all = hfsbi_lines_size(x, true, HFSBI_HINT_WIDTH) <= room;
    width = all || hfsbi_lines_size(x, false, HFSBI_HINT_WIDTH) <= room
                ? HFSBI_HINT_WIDTH
                : HFSBI_HINT_CUT;
    from = hfsbi_file_number(x, x->first);
    all = hfsbi_list_lines(x, used + room, all, width);
    hfsbi_err_add(x->err, "%s", x->items.msg);
    if (!all)
        hfsbi_err_add(x->err, "\nTo see the place %s%zu%s%zu.",
                      hfsbi_hint_words(x->hint)->see, from > 2 ? from - 2 : 1,
                      hfsbi_hint_words(x->hint)->see_lines,
                      x->last - x->first + 5);
}

/* ---- what differs ---- */

/* Offset in f where o begins: after its indentation or, if it was taken from
   the inside of a line, where its first characters are. */
static size_t hfsbi_begin_of(hfsb_str o, hfsb_str f) {
    size_t   indent = hfsbi_indent_len(f, 0), len;
    hfsb_str rest = hfsb_str_slice(f, indent, f.len);
    for (len = 32; len >= 8; len /= 2) {
        size_t at = o.len < len
                        ? HFSB_NPOS
                        : hfsb_str_find(rest, hfsb_str_slice(o, 0, len));
        if (at != HFSB_NPOS) return indent + at;
    }
    return indent;
}

/* Offsets of the first difference, at the start of a character. Indentation
   counts only where the rest is the same. */
static void hfsbi_first_difference(hfsb_str o, hfsb_str f, size_t *o_pos,
                                   size_t *f_pos) {
    *o_pos = *f_pos = 0;
    if (!hfsb_str_equal(hfsbi_trim(o), hfsbi_trim(f))) {
        *o_pos = hfsbi_indent_len(o, 0);
        *f_pos = hfsbi_begin_of(hfsb_str_slice(o, *o_pos, o.len), f);
    }
    while (*o_pos < o.len && *f_pos < f.len &&
           o.ptr[*o_pos] == f.ptr[*f_pos]) {
        ++*o_pos;
        ++*f_pos;
    }
    while (*f_pos > 0 && *o_pos > 0 && *f_pos < f.len &&
           ((unsigned char)f.ptr[*f_pos] & 0xC0u) == 0x80u) {
        --*o_pos;
        --*f_pos;
    }
}

static bool hfsbi_plain_at(hfsb_str line, size_t pos) {
    unsigned long code;
    if (pos >= line.len) return true;
    hfsb_utf8_step(line, pos, &code, NULL);
    return hfsbi_is_plain(code);
}

static bool hfsbi_hidden_at(hfsb_str line, size_t pos) {
    unsigned long code;
    if (pos >= line.len) return false;
    hfsb_utf8_step(line, pos, &code, NULL);
    return hfsbi_is_hidden(code);
}

/* The number of the line where the file has an old line elsewhere: next to the
   place, or the only one in the file; 0 if not found. */
static size_t hfsbi_elsewhere(const hfsbi_explain *x, hfsb_str line) {
    hfsb_str file = x->hint->file->text;
    size_t   i, at;
    line = hfsbi_trim(line);
    if (!line.len) return 0;
    i = x->first > 3 ? x->first - 3 : 0;
    for (; i <= x->last + 3 && i < x->closest.lines.count; i++)
        if (hfsb_str_equal(line, hfsbi_trim(x->closest.lines.items[i])))
            return hfsbi_file_number(x, i);
    at = hfsb_str_find(file, line);
    if (at == HFSB_NPOS || line.len < 4 ||
        hfsb_str_find(hfsb_str_slice(file, at + 1, file.len), line) !=
            HFSB_NPOS)
        return 0;
    return 1 + hfsbi_count_lines(x->hint->file, hfsb_str_slice(file, 0, at));
}

/* Adds the first difference of a pair of lines. */
static void hfsbi_item_pair(hfsbi_explain *x, const hfsbi_row *row) {
    hfsb_str o = x->closest.olds.items[row->old_line];
    hfsb_str f = x->closest.lines.items[row->file_line];
    size_t   o_pos, f_pos, at = hfsbi_elsewhere(x, o);
    hfsbi_first_difference(o, f, &o_pos, &f_pos);
    hfsbi_err_add(&x->items, "\n%s line %zu, column %zu",
                  x->items.msg[0] ? "Then" : "First difference:",
                  hfsbi_file_number(x, row->file_line),
                  hfsb_utf8_count(hfsb_str_slice(f, 0, f_pos)) + 1 +
                      (row->file_line ? 0 : x->closest.before));
    if (!hfsbi_plain_at(o, o_pos) || !hfsbi_plain_at(f, f_pos)) {
        hfsbi_err_add(&x->items, ": you sent ");
        hfsbi_show_code(&x->items, o, o_pos);
        hfsbi_err_add(&x->items, ", the file has ");
        hfsbi_show_code(&x->items, f, f_pos);
    }
    hfsbi_err_add(&x->items, ":");
    hfsbi_show_around(&x->items, "sent", o, o_pos);
    hfsbi_show_around(&x->items, "file", f, f_pos);
    if (hfsbi_hidden_at(f, f_pos) && !x->hint->hunk)
        hfsbi_err_add(&x->items,
                      "\n%s need not be whole lines: send only text before "
                      "or after that character.",
                      hfsbi_hint_words(x->hint)->old_text);
    if (at && at != hfsbi_file_number(x, row->file_line))
        hfsbi_err_add(&x->items, "\nLine %zu of %s is at line %zu.",
                      hfsbi_old_number(x, row->old_line),
                      hfsbi_old_lines(x->hint), at);
}

/* Adds that lines [i, to) of the rows are only in the file. */
static void hfsbi_item_left_out(hfsbi_explain *x, size_t i, size_t to) {
    size_t   from = hfsbi_file_number(x, x->closest.rows[i].file_line);
    hfsb_str line = x->closest.lines.items[x->closest.rows[i].file_line];
    hfsbi_err_add(&x->items, "\n%s leaves out line",
                  hfsbi_old_name(x->hint, true));
    if (to - i == 1)
        hfsbi_err_add(&x->items, " %zu of the file%s.", from,
                      hfsbi_trim(line).len ? "" : ", which is blank");
    else
        hfsbi_err_add(&x->items, "s %zu-%zu of the file.", from,
                      from + to - i - 1);
}

/* Adds that rows [i, to) are old lines that are not here. */
static void hfsbi_item_not_here(hfsbi_explain *x, size_t i, size_t to) {
    size_t   from = x->closest.rows[i].old_line;
    hfsb_str line = x->closest.olds.items[from];
    size_t   at = hfsbi_elsewhere(x, line);
    if (to - i == 1)
        hfsbi_err_add(&x->items, "\nLine %zu of %s is not there",
                      hfsbi_old_number(x, from), hfsbi_old_lines(x->hint));
    else
        hfsbi_err_add(&x->items, "\nLines %zu-%zu of %s are not there",
                      hfsbi_old_number(x, from),
                      hfsbi_old_number(x, from + to - i - 1),
                      hfsbi_old_lines(x->hint));
    if (at) {
        hfsbi_err_add(&x->items, " but at line %zu.", at);
        return;
    }
    line = hfsbi_trim(line);
    hfsbi_err_add(&x->items, line.len ? ": " : ": a blank line");
    hfsbi_show_text(&x->items, line, HFSBI_HINT_CUT);
}

static hfsb_str hfsbi_unindent(hfsb_str line) {
    return hfsb_str_slice(line, hfsbi_indent_len(line, 0), line.len);
}

/* True when the lines of the row differ only in indentation. */
static bool hfsbi_differs_in_indent(const hfsbi_explain *x,
                                    const hfsbi_row     *row) {
    return !row->same && row->old_line != HFSB_NPOS &&
           row->file_line != HFSB_NPOS &&
           hfsb_str_equal(
               hfsbi_unindent(x->closest.olds.items[row->old_line]),
               hfsbi_unindent(x->closest.lines.items[row->file_line]));
}

static void hfsbi_show_indent(hfsb_err *err, hfsb_str indent) {
    if (indent.len) hfsbi_show_code(err, indent, 0);
    else hfsbi_err_add(err, "nothing");
}

/* Adds the first line that is indented differently, and how many more there
   are. */
static void hfsbi_item_indent(hfsbi_explain *x) {
    const hfsbi_row *row = NULL;
    size_t           i, count = 0;
    hfsb_str         o, f;
    for (i = 0; i < x->closest.count; i++) {
        if (!hfsbi_differs_in_indent(x, x->closest.rows + i)) continue;
        if (!count++) row = x->closest.rows + i;
    }
    if (!row) return;
    o = x->closest.olds.items[row->old_line];
    f = x->closest.lines.items[row->file_line];
    o.len = hfsbi_indent_len(o, 0);
    f.len = hfsbi_indent_len(f, 0);
    hfsbi_err_add(&x->items, "\nThe file indents line %zu with ",
                  hfsbi_file_number(x, row->file_line));
    hfsbi_show_indent(&x->items, f);
    hfsbi_err_add(&x->items, ", %s with ", hfsbi_old_name(x->hint, false));
    hfsbi_show_indent(&x->items, o);
    if (count > 1)
        hfsbi_err_add(&x->items, "; %zu more lines differ so", count - 1);
    hfsbi_err_add(&x->items, ".");
}

/* End of the rows from i on that lack the same side. */
static size_t hfsbi_rows_end(const hfsbi_closest *c, size_t i) {
    const hfsbi_row *row = c->rows + i;
    size_t           to = i + 1;
    if (row->old_line != HFSB_NPOS && row->file_line != HFSB_NPOS) return to;
    while (
        to < c->count &&
        (c->rows[to].old_line == HFSB_NPOS) == (row->old_line == HFSB_NPOS) &&
        (c->rows[to].file_line == HFSB_NPOS) == (row->file_line == HFSB_NPOS))
        to++;
    return to;
}

/* True when row i is an elision of old_str, or a line that it covers. */
static bool hfsbi_row_elided(const hfsbi_closest *c, size_t i) {
    while (i > 0 && c->rows[i].old_line == HFSB_NPOS) i--;
    return c->rows[i].old_line != HFSB_NPOS &&
           c->rows[i].file_line == HFSB_NPOS &&
           hfsbi_is_elision(c->olds.items[c->rows[i].old_line]);
}

/* Writes the first `max` differences. */
static void hfsbi_list_items(hfsbi_explain *x, size_t max) {
    const hfsbi_closest *c = &x->closest;
    size_t               i = 0, to, n = 0;
    for (; i < c->count && n < max && strlen(x->items.msg) < 300; i = to) {
        const hfsbi_row *row = c->rows + i;
        to = hfsbi_rows_end(c, i);
        if (row->same || hfsbi_row_elided(c, i) ||
            hfsbi_differs_in_indent(x, row))
            continue;
        n++;
        if (row->old_line == HFSB_NPOS) hfsbi_item_left_out(x, i, to);
        else if (row->file_line == HFSB_NPOS) hfsbi_item_not_here(x, i, to);
        else hfsbi_item_pair(x, row);
    }
    hfsbi_item_indent(x);
}

/* Writes where a pair of lines differs, or else which lines have no pair. */
static void hfsbi_list_first(hfsbi_explain *x) {
    const hfsbi_closest *c = &x->closest;
    size_t               i;
    for (i = 0; i < c->count; i++)
        if (!c->rows[i].same && c->rows[i].old_line != HFSB_NPOS &&
            c->rows[i].file_line != HFSB_NPOS) {
            if (hfsbi_differs_in_indent(x, c->rows + i)) hfsbi_item_indent(x);
            else hfsbi_item_pair(x, c->rows + i);
            return;
        }
    hfsbi_list_items(x, HFSBI_HINT_ITEMS);
}

/* ---- marks that are not part of the text ---- */

static void hfsbi_put_unnumbered(hfsb_buf *out, hfsb_str s) {
    hfsbi_numbered_strip(s, out);
}

/* Appends the text without the code fence around it. */
static void hfsbi_put_unfenced(hfsb_buf *out, hfsb_str s) {
    hfsb_str rest = s, line, ending, body = HFSB_INIT;
    size_t   n = 0, start = 0;
    while (hfsb_text_line(&rest, &line, &ending)) {
        size_t pos = (size_t)(line.ptr - s.ptr);
        if (n++ == 0 && !hfsbi_is_fence(line)) break;
        if (n == 1) start = pos + line.len + ending.len;
        else if (hfsbi_is_fence(line)) body = hfsb_str_slice(s, start, pos);
    }
    hfsb_buf_append(out, body.len ? body : s);
}

/* Appends the old side of a diff: without marks and added lines. */
static void hfsbi_put_unmarked(hfsb_buf *out, hfsb_str s) {
    hfsb_str rest = s, line, ending;
    size_t   mark = out->len, marks = 0;
    while (hfsb_text_line(&rest, &line, &ending)) {
        char c = line.len ? line.ptr[0] : ' ';
        if (c == '@' && hfsb_str_starts(line, HFSB_LIT("@@"))) continue;
        if (c != ' ' && c != '-' && c != '+') break;
        marks += c != ' ';
        if (c == '+') continue;
        hfsb_buf_append(out, hfsb_str_slice(line, 1, line.len));
        hfsb_buf_append(out, ending);
    }
    if (!rest.len && marks) return;
    hfsb_buf_truncate(out, mark);
    hfsb_buf_append(out, s);
}

/* How many of the first lines of text are not in the file. */
static size_t hfsbi_count_missing(hfsb_str file, hfsb_str text) {
    hfsb_str line;
    size_t   n = 0, missing = 0;
    while (n++ < HFSBI_HINT_LINES && hfsb_text_line(&text, &line, NULL)) {
        line = hfsbi_trim(line);
        missing += line.len && hfsb_str_find(file, line) == HFSB_NPOS;
    }
    return missing;
}

static void hfsbi_hint_numbers(const hfsbi_hint *h) {
    hfsbi_numbered o = hfsbi_numbered_scan(h->old_text);
    hfsbi_numbered n = hfsbi_numbered_scan(h->new_text);
    if (o.prefixed < o.lines || !o.consecutive)
        hfsbi_err_add(h->err,
                      "\n%zu of %zu lines of %s begin with a line number as "
                      "read shows it: leave the numbers out.",
                      o.prefixed, o.lines, hfsbi_old_lines(h));
    else if (n.prefixed && n.prefixed < n.lines)
        hfsbi_err_add(h->err,
                      "\nSome lines of %s begin with a line number as read "
                      "shows it: leave the numbers out.",
                      h->hunk ? "the new text"
                              : hfsbi_hint_words(h)->new_text);
}

/* If fewer lines of old_str are missing in the file without such marks,
   reports the marks and puts old_str without them into *copy. */
static hfsb_str hfsbi_hint_marks(const hfsbi_hint *h, hfsb_buf *copy) {
    static hfsbi_reading *const list[] = {
        hfsbi_put_unnumbered, hfsbi_put_unfenced, hfsbi_put_unmarked};
    size_t i;
    for (i = 0; i < 3; i++) {
        hfsb_buf_truncate(copy, 0);
        list[i](copy, h->old_text);
        if (copy->status != HFSB_OK || !copy->len ||
            hfsb_str_equal(hfsb_buf_str(copy), h->old_text) ||
            hfsbi_count_missing(h->file->text, hfsb_buf_str(copy)) >=
                hfsbi_count_missing(h->file->text, h->old_text))
            continue;
        if (i == 0) hfsbi_hint_numbers(h);
        if (i == 1)
            hfsbi_err_add(h->err,
                          "\n%s is in a code fence (```): leave the "
                          "fence out%s%s%s%s.",
                          hfsbi_old_name(h, true), h->hunk ? "" : " of ",
                          h->hunk ? "" : hfsbi_hint_words(h)->old_text,
                          h->hunk ? "" : " and ",
                          h->hunk ? "" : hfsbi_hint_words(h)->new_text);
        if (i == 2)
            hfsbi_err_add(h->err,
                          "\nThe lines of %s begin with the marks of a "
                          "diff (+, -, blank): send the file's lines without "
                          "them%s%s%s%s.",
                          hfsbi_old_lines(h), h->hunk ? "" : ", in ",
                          h->hunk ? "" : hfsbi_hint_words(h)->new_text,
                          h->hunk ? "" : " too, or use ",
                          h->hunk ? "" : hfsbi_hint_words(h)->patch);
        return hfsb_buf_str(copy);
    }
    return h->old_text;
}

/* Reports the first elision in old_str, unless the file has such lines. */
static void hfsbi_hint_elision(const hfsbi_hint *h) {
    hfsb_str rest = h->old_text, line, none = HFSB_INIT;
    size_t   number = 1, searches = 0;
    for (; searches < HFSBI_HINT_LINES && hfsb_text_line(&rest, &line, NULL);
         number++) {
        if (!hfsbi_is_elision(line) &&
            !hfsbi_find_omission(line, none, none).len)
            continue;
        line = hfsbi_trim(line);
        searches++;
        if (hfsb_str_find(h->file->text, line) != HFSB_NPOS) continue;
        hfsbi_err_add(h->err, "\nLine %zu of %s is \"", number,
                      hfsbi_old_lines(h));
        hfsbi_err_quote(h->err, line, 40);
        hfsbi_err_add(h->err,
                      "\": quote every line, or make one %s before "
                      "it and one after it.",
                      h->hunk ? "hunk" : "edit");
        return;
    }
}

/* ---- the messages ---- */

/* The number of the line where new_str is in the file, 0 if it is not. */
static size_t hfsbi_find_new_text(const hfsbi_hint *h) {
    hfsb_buf copy = HFSB_INIT;
    hfsb_str file = h->file->text;
    size_t   at;
    if (hfsbi_is_all_blank(h->new_text, 0) || h->new_text.len < 4) return 0;
    copy.alloc = *h->alloc;
    hfsbi_put_newlines(&copy, h->new_text, hfsbi_newline_at(h->file, 0));
    at = copy.status == HFSB_OK ? hfsb_str_find(file, hfsb_buf_str(&copy))
                                : HFSB_NPOS;
    hfsb_buf_free(&copy);
    if (at == HFSB_NPOS) return 0;
    return 1 + hfsbi_count_lines(h->file, hfsb_str_slice(file, 0, at));
}

/* True when new_str is a part of old_str, and the file has other lines where
   it lacks those that the edit removes: then finding new_str proves nothing. */
static bool hfsbi_is_cut(const hfsbi_explain *x) {
    const hfsbi_closest *c = &x->closest;
    size_t               i;
    if (hfsb_str_find(x->hint->old_text, x->hint->new_text) == HFSB_NPOS)
        return false;
    for (i = 0; i < c->count; i++)
        if (!c->rows[i].same && c->rows[i].file_line != HFSB_NPOS) return true;
    return false;
}

/* Reports new_str in the file; true when it is at the closest place, so that
   the edit was made before. */
static bool hfsbi_hint_applied(const hfsbi_explain *x, bool found) {
    size_t at = hfsbi_find_new_text(x->hint);
    size_t to = at + hfsb_str_count_byte(x->hint->new_text, '\n');
    if (!at || hfsbi_is_cut(x)) return false;
    hfsbi_err_add(x->err, "\n%s %s already at line %zu: was this %s before?",
                  x->hint->hunk ? "Its new lines"
                                : hfsbi_hint_words(x->hint)->new_text,
                  x->hint->hunk ? "are" : "is", at,
                  x->hint->hunk ? "hunk applied" : "edit made");
    return !found || (at <= hfsbi_file_number(x, x->last) &&
                      to >= hfsbi_file_number(x, x->first));
}

/* Adds how the old text misreads the lines from number `from` on. */
static void hfsbi_show_misread(const hfsbi_explain *x, const hfsbi_misread *m,
                               size_t from) {
    hfsbi_err_add(x->err, "\n%s%s%s, at line %zu.", m->before,
                  m->after ? hfsbi_old_name(x->hint, !m->before[0]) : "",
                  m->after ? m->after : "", from);
    if (m->of == HFSBI_READ_OLD)
        hfsbi_err_add(x->err, " Check %s, too.",
                      x->hint->hunk ? "the new lines"
                                    : hfsbi_hint_words(x->hint)->new_text);
}

/* Adds the closest place: what differs, its lines. */
static void hfsbi_hint_closest(hfsbi_explain *x, bool marks) {
    const hfsbi_closest *c = &x->closest;
    const hfsbi_misread *reading =
        hfsbi_reading_of(x->hint->alloc, c->old_around, c->around);
    size_t from = hfsbi_file_number(x, x->first);
    if (!reading)
        reading = hfsbi_reading_of(x->hint->alloc, c->old_core, c->core);
    if (x->all_same && marks) {
        hfsbi_err_add(x->err, "\nOtherwise %s is right, at line %zu.",
                      hfsbi_old_name(x->hint, false), from);
        return;
    }
    if (reading) hfsbi_show_misread(x, reading, from);
    if (x->first == x->last)
        hfsbi_err_add(x->err, "\nThe file has at line %zu:", from);
    else
        hfsbi_err_add(x->err, "\nThe file has at lines %zu-%zu:", from,
                      hfsbi_file_number(x, x->last));
    if (!reading) hfsbi_list_items(x, HFSBI_HINT_ITEMS);
    else if (reading->of == HFSBI_READ_BOTH) hfsbi_list_first(x);
    hfsbi_show_place(x);
}

static void hfsbi_hint_explain(hfsbi_explain *x) {
    hfsb_buf copy = HFSB_INIT;
    hfsb_str old_text;
    bool     found;
    copy.alloc = *x->hint->alloc;
    old_text = hfsbi_hint_marks(x->hint, &copy);
    hfsbi_hint_elision(x->hint);
    hfsbi_closest_find(x->hint->alloc, x->hint->file, old_text, &x->closest);
    found = hfsbi_explain_range(x);
    if (!hfsbi_hint_applied(x, found)) {
        if (found) hfsbi_hint_closest(x, old_text.ptr == copy.ptr);
        else
            hfsbi_err_add(x->err,
                          "\nNo line of the file looks like it. Read the "
                          "file and copy %s from it.",
                          x->hint->hunk ? "the old lines"
                                        : hfsbi_hint_words(x->hint)->old_text);
    }
    hfsbi_closest_free(&x->closest);
    hfsb_buf_free(&copy);
}

/* A binary file is not searched for similar lines: the message reports that it
   is binary, like read. */
HFSBI_FN void hfsbi_hint_not_found(const hfsbi_hint *hint) {
    hfsb_str      text = hint->file->text;
    hfsbi_explain x;
    if (!hint->err) return;
    if (!text.len) {
        hfsbi_err_add(hint->err, " The file is empty.");
        return;
    }
    if (hfsb_str_find_byte(hfsb_str_slice(text, 0, HFSBI_HINT_PROBE), '\0') !=
        HFSB_NPOS) {
        hfsbi_err_add(hint->err,
                      "\nThe file is binary (%zu bytes, a NUL byte near the "
                      "start). To see its bytes use a command such as xxd, od "
                      "-c or base64.",
                      text.len);
        return;
    }
    memset(&x, 0, sizeof x);
    x.hint = hint;
    x.err = hint->err;
    hfsbi_hint_explain(&x);
}

/* Adds lines [from, to) of the file while there is room; from starts a line,
   whose number is `number`. Returns the end of the lines added. */
static size_t hfsbi_show_lines(const hfsbi_hint *h, size_t from, size_t to,
                               size_t number, size_t width, size_t room) {
    size_t len, end;
    for (; from < to; from = end + len) {
        hfsb_str line;
        end = hfsbi_edit_line_end(h->file, from, &len);
        line = hfsb_str_slice(h->file->text, from, end);
        if (hfsbi_shown_size(line, width) + strlen(h->err->msg) > room) break;
        hfsbi_show_line(h->err, line, number++, width);
    }
    return from;
}

/* The start of the line `above` lines before the line of pos, and its number,
   which is *number for pos; a place inside a line that is too long. */
static size_t hfsbi_back_lines(const hfsbi_edit_text *file, size_t pos,
                               size_t above, size_t *number) {
    for (;; --*number) {
        pos = hfsbi_line_back(file, pos);
        if (!above-- || !pos || !hfsbi_starts_line(file, pos)) return pos;
        pos--;
    }
}

HFSBI_FN void hfsbi_hint_indent(const hfsbi_hint *hint, size_t start,
                                size_t end) {
    const hfsbi_edit_text *file = hint->file;
    size_t                 number =
        1 + hfsbi_count_lines(file, hfsb_str_slice(file->text, 0, start));
    size_t from, to, pos, len;
    bool   tabs = false, spaces = false;
    if (!hint->err) return;
    from = pos = hfsbi_back_lines(file, start, 0, &number);
    for (; pos < end; pos = hfsbi_edit_line_end(file, pos, &len) + len) {
        tabs = tabs || file->text.ptr[pos] == '\t';
        spaces = spaces || file->text.ptr[pos] == ' ';
        if (pos == file->text.len) break;
    }
    hfsbi_err_add(hint->err, " The file %s:",
                  tabs && spaces ? "indents with tabs and spaces"
                  : tabs         ? "indents with tabs"
                  : spaces       ? "indents with spaces"
                                 : "has them without indentation");
    to = hfsbi_show_lines(hint, from, end, number, HFSBI_HINT_WIDTH,
                          HFSBI_HINT_SIZE - 150);
    if (to < end)
        hfsbi_err_add(hint->err, "\n... To see the place %s%zu.",
                      hfsbi_hint_words(hint)->see, number);
    hfsbi_err_add(hint->err,
                  "\nSend %s%s%s with the indentation and the blank lines of "
                  "these. Nothing was changed.",
                  hint->hunk ? "the hunk" : hfsbi_hint_words(hint)->old_text,
                  hint->hunk ? "" : " and ",
                  hint->hunk ? "" : hfsbi_hint_words(hint)->new_text);
}

/* ---- several places ---- */

#define HFSBI_HINT_PLACES 10

/* A place that matches, and the line numbers around it. */
typedef struct hfsbi_place_lines {
    size_t start, end;  /* of the match */
    size_t first, last; /* numbers of its first and last line */
} hfsbi_place_lines;

/* The text of the line `away` lines before (less than 0) or after a place,
   without blanks around it. */
static hfsb_str hfsbi_line_away(const hfsbi_edit_text   *file,
                                const hfsbi_place_lines *p, int away) {
    size_t from, len, number = p->first;
    if (away < 0) {
        if (p->first <= (size_t)-away) return HFSB_LIT("");
        from = hfsbi_back_lines(file, p->start, (size_t)-away, &number);
    } else {
        from = p->end > p->start ? p->end - 1 : p->end;
        for (; away >= 0 && from < file->text.len; away--) {
            if (!away) break;
            from = hfsbi_edit_line_end(file, from, &len) + len;
        }
    }
    return hfsbi_trim(hfsb_str_slice(file->text, from,
                                     hfsbi_edit_line_end(file, from, &len)));
}

/* Number of different lines that far away from the places. */
static size_t hfsbi_count_distinct(const hfsbi_edit_text   *file,
                                   const hfsbi_place_lines *list, size_t count,
                                   int away) {
    hfsb_str lines[HFSBI_HINT_PLACES];
    size_t   i, k, n = 0;
    for (i = 0; i < count; i++) {
        lines[i] = hfsbi_line_away(file, list + i, away);
        for (k = 0; k < i && !hfsb_str_equal(lines[i], lines[k]);) k++;
        n += k == i;
    }
    return n;
}

/* The nearest line that tells most of the places apart: -1 is the one before
   them, 1 the one after them. */
static int hfsbi_telling_line(const hfsbi_edit_text   *file,
                              const hfsbi_place_lines *list, size_t count) {
    static const int order[] = {-1, 1, -2, 2, -3, 3, -4, 4};
    size_t           i, n, most = 1;
    int              best = -1;
    for (i = 0; i < sizeof order / sizeof *order; i++) {
        n = hfsbi_count_distinct(file, list, count, order[i]);
        if (n <= most) continue;
        most = n;
        best = order[i];
    }
    return best;
}

/* Adds the lines from a place to the distinguishing line, without those before
   *shown, the end of the lines added so far; false when there is no room. */
static bool hfsbi_show_telling(const hfsbi_hint *h, const hfsbi_place_lines *p,
                               int away, size_t *shown) {
    size_t from, to, number, len;
    if (away < 0) {
        number = p->first;
        from = hfsbi_back_lines(h->file, p->start, (size_t)-away, &number);
        to = p->start + 1;
    } else {
        number = p->last;
        to = p->end > p->start ? p->end - 1 : p->end;
        from = hfsbi_back_lines(h->file, to, 0, &number);
        for (; away > 0; away--)
            to = hfsbi_edit_line_end(h->file, to, &len) + len;
        if (to < h->file->text.len) to++;
    }
    if (from < *shown) {
        number += hfsbi_count_lines(
            h->file, hfsb_str_slice(h->file->text, from, *shown));
        from = *shown;
    }
    *shown = hfsbi_show_lines(h, from, to, number, 2 * HFSBI_HINT_CUT,
                              HFSBI_HINT_SIZE - 170);
    return *shown >= to;
}

/* Numbers of the first places' lines; returns how many there are. */
static size_t hfsbi_list_places(const hfsbi_hint    *h,
                                const hfsbi_matches *matches,
                                hfsbi_place_lines   *list) {
    size_t i, line = 1, pos = 0;
    for (i = 0; i < matches->count && i < HFSBI_HINT_PLACES; i++) {
        const hfsbi_match *m = matches->items + i;
        size_t             last = m->end > m->start ? m->end - 1 : m->end;
        line += hfsbi_count_lines(
            h->file, hfsb_str_slice(h->file->text, pos, m->start));
        pos = m->start;
        list[i].start = m->start;
        list[i].end = m->end;
        list[i].first = line;
        list[i].last =
            line + hfsbi_count_lines(h->file,
                                     hfsb_str_slice(h->file->text, pos, last));
    }
    return i;
}

HFSBI_FN void hfsbi_hint_ambiguous(const hfsbi_hint    *hint,
                                   const hfsbi_matches *matches) {
    hfsbi_place_lines list[HFSBI_HINT_PLACES];
    size_t            i, count, shown = 0;
    int               away;
    bool              one = matches->rung <= HFSBI_RUNG_EOF;
    if (!hint->err) return;
    count = hfsbi_list_places(hint, matches, list);
    away = hfsbi_telling_line(hint->file, list, count);
    hfsbi_err_add(hint->err, "\nIt matches %s at line%s",
                  hfsbi_rung_words_of(matches->rung)->how,
                  count == 1 ? "" : "s");
    for (i = 0; i < count; i++)
        hfsbi_err_add(hint->err, "%s %zu", i ? "," : "", list[i].first);
    if (matches->count > count)
        hfsbi_err_add(hint->err, " and %zu more places",
                      matches->count - count);
    if (matches->overlapping && matches->count == 1)
        hfsbi_err_add(hint->err, ", and again, overlapping itself");
    hfsbi_err_add(hint->err,
                  ". With what is %s:", away < 0 ? "before it" : "after it");
    for (i = 0; i < count; i++)
        if (!hfsbi_show_telling(hint, list + i, away, &shown)) break;
    if (hint->hunk) {
        hfsbi_err_add(hint->err, "\nAdd context lines, or an @@ line with the "
                                 "function or class it is in.");
        return;
    }
    hfsbi_err_add(hint->err,
                  "\nAdd a neighbouring line to %s%s%s%s, or set %s to "
                  "change all of them.",
                  hfsbi_hint_words(hint)->old_text, one ? ", or give " : "",
                  one ? hfsbi_hint_words(hint)->line : "",
                  one ? " for the one that starts there" : "",
                  hfsbi_hint_words(hint)->all);
}
