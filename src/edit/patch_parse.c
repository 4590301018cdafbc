/* patch_parse.c - read a patch: its frame, its format, "*** Begin Patch".

   Models send patches in three formats, bare, in a ``` fence or in a heredoc:

       *** Begin Patch          here         sections, hunks after @@
       --- a/f, +++ b/f, @@     patch_diff.c unified diffs, git's too
       <<<<<<< SEARCH           patch_blocks.c

   All become the same: sections of hunks, whose lines are marked. A patch is
   parsed completely before any file is read. Markers may be padded with blanks
   where they cannot be mistaken for context. */
#include "edit_private.h"

HFSBI_FN hfsb_status hfsbi_patch_error(hfsb_err *err, size_t line,
                                       const char *what) {
    hfsbi_fail(err, HFSB_SYNTAX, 0,
               "Malformed patch, line %zu: %s Nothing was changed.", line + 1,
               what);
    if (err) err->line = line + 1;
    return HFSB_SYNTAX;
}

/* ---- the parsed patch ---- */

HFSBI_FN hfsb_status hfsbi_add_section(hfsbi_patch *p, hfsb_patch_kind kind,
                                       hfsb_str path) {
    hfsbi_section *s = (hfsbi_section *)hfsbi_array_grow(
        &p->alloc, p->sections, &p->section_cap, p->section_count + 1,
        sizeof *s);
    if (!s) return HFSB_NOMEM;
    p->sections = s;
    s += p->section_count++;
    memset(s, 0, sizeof *s);
    s->kind = kind;
    s->path = path;
    s->hunk = s->hunk_end = p->hunk_count;
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_add_hunk(hfsbi_patch *p, size_t line) {
    hfsbi_hunk *h = (hfsbi_hunk *)hfsbi_array_grow(
        &p->alloc, p->hunks, &p->hunk_cap, p->hunk_count + 1, sizeof *h);
    if (!h) return HFSB_NOMEM;
    p->hunks = h;
    h += p->hunk_count++;
    memset(h, 0, sizeof *h);
    h->line = line;
    h->anchors = h->body = h->end = p->line_count;
    p->sections[p->section_count - 1].hunk_end = p->hunk_count;
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_add_hunk_line(hfsbi_patch *p, char mark,
                                         hfsb_str text) {
    hfsbi_hunk      *h = p->hunks + p->hunk_count - 1;
    hfsbi_hunk_line *l = (hfsbi_hunk_line *)hfsbi_array_grow(
        &p->alloc, p->lines, &p->line_cap, p->line_count + 1, sizeof *l);
    if (!l) return HFSB_NOMEM;
    p->lines = l;
    l += p->line_count++;
    l->mark = mark;
    l->text = text;
    h->end = p->line_count;
    if (mark == '@') h->body = h->end;
    return HFSB_OK;
}

HFSBI_FN void hfsbi_patch_free(hfsbi_patch *p) {
    hfsbi_lines_free(&p->alloc, &p->text);
    hfsbi_array_free(&p->alloc, p->lines, p->line_cap, sizeof *p->lines);
    hfsbi_array_free(&p->alloc, p->hunks, p->hunk_cap, sizeof *p->hunks);
    hfsbi_array_free(&p->alloc, p->sections, p->section_cap,
                     sizeof *p->sections);
    memset(p, 0, sizeof *p);
}

/* ---- the frame ---- */

HFSBI_FN bool hfsbi_is_word_char(char c) {
    return hfsbi_is_alpha(c) || hfsbi_is_digit(c) || c == '_';
}

/* The word of "<<EOF", "<<'EOF'" or "cat <<\"EOF\"" at the end of a line;
   empty if the line starts no heredoc. */
static hfsb_str hfsbi_heredoc_word(hfsb_str line) {
    hfsb_str none = HFSB_INIT;
    size_t   at, i;
    line = hfsbi_trim(line);
    at = hfsb_str_find(line, HFSB_LIT("<<"));
    if (at == HFSB_NPOS) return none;
    line = hfsbi_trim(hfsb_str_slice(line, at + 2, line.len));
    if (line.len > 2 && (line.ptr[0] == '\'' || line.ptr[0] == '"')) {
        if (line.ptr[line.len - 1] != line.ptr[0]) return none;
        line = hfsb_str_slice(line, 1, line.len - 1);
    }
    for (i = 0; i < line.len; i++)
        if (!hfsbi_is_word_char(line.ptr[i])) return none;
    return line;
}

static void hfsbi_skip_blank_lines(hfsbi_patch *p) {
    const hfsb_str *l = p->text.items;
    while (p->first < p->last && !hfsbi_trim(l[p->first]).len) p->first++;
    while (p->last > p->first && !hfsbi_trim(l[p->last - 1]).len) p->last--;
}

/* Leaves out a heredoc and a fence around the patch. True when one of them is
   closed: then the end of the patch is not missing. */
static bool hfsbi_patch_unwrap(hfsbi_patch *p) {
    const hfsb_str *l = p->text.items;
    bool            closed = false;
    hfsb_str        word;
    hfsbi_skip_blank_lines(p);
    if (p->last - p->first < 3) return false;
    word = hfsbi_heredoc_word(l[p->first]);
    if (word.len && hfsb_str_equal(hfsbi_trim(l[p->last - 1]), word)) {
        p->first++;
        p->last--;
        closed = true;
        hfsbi_skip_blank_lines(p);
    }
    if (p->first == p->last || !hfsbi_is_fence(l[p->first])) return closed;
    p->first++;
    if (p->first < p->last && hfsbi_is_fence(l[p->last - 1])) {
        p->last--;
        closed = true;
    }
    hfsbi_skip_blank_lines(p);
    return closed;
}

/* ---- hunks ---- */

static bool hfsbi_is_marker(hfsb_str line) {
    return hfsb_str_starts(line, HFSB_LIT("*** "));
}

HFSBI_FN bool hfsbi_is_anchor(hfsb_str line) {
    return hfsb_str_equal(line, HFSB_LIT("@@")) ||
           hfsb_str_starts(line, HFSB_LIT("@@ "));
}

static bool hfsbi_is_body(hfsb_str line) {
    return !line.len || line.ptr[0] == ' ' || line.ptr[0] == '-' ||
           line.ptr[0] == '+';
}

/* Reads "7" or "7,2" after `sign` at the start of *text. */
static bool hfsbi_read_range(hfsb_str *text, char sign, size_t *start) {
    unsigned long long n = 0, count = 0;
    size_t             len, more;
    if (!text->len || text->ptr[0] != sign) return false;
    *text = hfsb_str_slice(*text, 1, text->len);
    len = hfsbi_read_decimal(*text, HFSB_NPOS / 2, &n);
    if (!len) return false;
    if (len < text->len && text->ptr[len] == ',') {
        more = hfsbi_read_decimal(hfsb_str_slice(*text, len + 1, text->len),
                                  HFSB_NPOS / 2, &count);
        if (!more) return false;
        len += 1 + more;
    }
    *text = hfsbi_trim(hfsb_str_slice(*text, len, text->len));
    *start = (size_t)n;
    return true;
}

/* Reads the rest of "@@ -7,2 +7,3 @@ heading". */
static bool hfsbi_read_numbers(hfsb_str text, hfsbi_hunk *h) {
    size_t start, other;
    text = hfsbi_trim(text);
    if (!hfsbi_read_range(&text, '-', &start) ||
        !hfsbi_read_range(&text, '+', &other) ||
        !hfsb_str_starts(text, HFSB_LIT("@@")))
        return false;
    h->numbered = true;
    h->number = start;
    h->heading = hfsbi_trim(hfsb_str_slice(text, 2, text.len));
    return true;
}

/* Adds an @@ line: numbers, or a line of the file, or nothing. */
static hfsb_status hfsbi_parse_anchor(hfsbi_patch *p, hfsb_str line) {
    hfsb_str text = hfsb_str_slice(line, 3, line.len), bare;
    if (hfsbi_read_numbers(text, p->hunks + p->hunk_count - 1)) return HFSB_OK;
    if (hfsb_str_ends(text, HFSB_LIT(" @@"))) text.len -= 3;
    bare = hfsbi_trim(text);
    if (!bare.len || hfsb_str_equal(bare, HFSB_LIT("@@")) ||
        hfsb_str_equal(bare, HFSB_LIT("...")))
        return HFSB_OK;
    return hfsbi_add_hunk_line(p, '@', text);
}

/* True when the hunk of a diff ends before line i: at the head of another
   file, or at the signature of a mail. */
static bool hfsbi_diff_stops(const hfsbi_patch *p, size_t i) {
    const hfsb_str *l = p->text.items;
    if (i + 2 >= p->last && hfsb_str_equal(l[i], HFSB_LIT("-- "))) return true;
    return hfsbi_is_diff_head(p, i) &&
           (i + 2 >= p->last || hfsbi_is_anchor(l[i + 2]));
}

/* Reads the lines of a hunk; "\ No newline at end of file" is about the line
   before it. */
static hfsb_status hfsbi_parse_body(hfsbi_patch *p, size_t *i, size_t to,
                                    bool diff) {
    const hfsb_str *l = p->text.items;
    hfsbi_hunk     *h = p->hunks + p->hunk_count - 1;
    hfsb_status     st = HFSB_OK;
    for (; st == HFSB_OK && *i < to; ++*i) {
        hfsb_str line = l[*i];
        if (hfsb_str_starts(line, HFSB_LIT("\\ ")) && h->end > h->body) {
            h->at_eof = true;
            h->open_end = p->lines[h->end - 1].mark != '-';
            continue;
        }
        if (!hfsbi_is_body(line) || (diff && hfsbi_diff_stops(p, *i))) break;
        st = hfsbi_add_hunk_line(p, line.len ? line.ptr[0] : ' ',
                                 hfsb_str_slice(line, 1, line.len));
        h->open_end = false;
    }
    return st;
}

/* A bare empty line at the end of a hunk is layout, not context. */
static void hfsbi_drop_layout(hfsbi_patch *p, size_t next) {
    hfsbi_hunk *h = p->hunks + p->hunk_count - 1;
    while (h->end > h->body && !p->text.items[next - 1].len) {
        next--;
        h->end = --p->line_count;
    }
}

HFSBI_FN hfsb_status hfsbi_parse_hunk(hfsbi_patch *p, size_t *i, size_t to,
                                      bool diff, hfsb_err *err) {
    const hfsb_str   *l = p->text.items;
    size_t            from = *i;
    const hfsbi_hunk *h;
    hfsb_status       st = hfsbi_add_hunk(p, from);
    for (; st == HFSB_OK && *i < to && hfsbi_is_anchor(l[*i]); ++*i)
        st = hfsbi_parse_anchor(p, l[*i]);
    if (st == HFSB_OK) st = hfsbi_parse_body(p, i, to, diff);
    if (st != HFSB_OK) return st;
    hfsbi_drop_layout(p, *i);
    h = p->hunks + p->hunk_count - 1;
    if (h->end == h->body && *i < to && !hfsbi_is_marker(l[*i]))
        return hfsbi_patch_error(err, *i,
                                 "lines of a hunk begin with a blank "
                                 "(context), - or +; this one does not.");
    if (h->end == h->body)
        return hfsbi_patch_error(
            err, from < to ? from : to - 1,
            "this hunk has no lines. Lines of a hunk begin with a blank "
            "(context), - or +.");
    return HFSB_OK;
}

/* ---- sections ---- */

/* True for a line like "*** Add File: path", with the head "*** Add File:".
   The path may be empty, but the blank before it is required. */
static bool hfsbi_head_line(hfsb_str line, const char *head, hfsb_str *path) {
    size_t n = strlen(head);
    line = hfsbi_trim(line);
    if (!hfsb_str_starts(line, hfsb_cstr(head))) return false;
    if (n < line.len && !hfsbi_is_blank(line.ptr[n])) return false;
    *path = hfsbi_trim(hfsb_str_slice(line, n, line.len));
    return true;
}

/* The lines [i, to) are those of an added file. */
static hfsb_status hfsbi_parse_add(hfsbi_patch *p, size_t i, size_t to,
                                   hfsb_err *err) {
    const hfsb_str *l = p->text.items;
    hfsb_status     st = HFSB_OK;
    while (to > i && !l[to - 1].len) to--;
    if (i < to) st = hfsbi_add_hunk(p, i);
    for (; st == HFSB_OK && i < to; i++) {
        if (!l[i].len || l[i].ptr[0] != '+')
            return hfsbi_patch_error(err, i,
                                     "every line of an added file begins "
                                     "with +, an empty one too.");
        st = hfsbi_add_hunk_line(p, '+', hfsb_str_slice(l[i], 1, l[i].len));
    }
    return st;
}

/* Reads "*** End of File" after a hunk. */
static void hfsbi_parse_eof(hfsbi_patch *p, size_t *i, size_t to) {
    const hfsb_str *l = p->text.items;
    if (*i >= to ||
        !hfsb_str_equal(hfsbi_trim(l[*i]), HFSB_LIT("*** End of File")))
        return;
    p->hunks[p->hunk_count - 1].at_eof = true;
    ++*i;
    while (*i < to && !l[*i].len) ++*i;
}

/* Skips the head of a diff between "*** Update File" and its first hunk. */
static void hfsbi_skip_diff_head(const hfsbi_patch *p, size_t *i, size_t to) {
    const hfsb_str *l = p->text.items;
    if (*i + 2 < to && hfsb_str_starts(l[*i], HFSB_LIT("--- ")) &&
        hfsb_str_starts(l[*i + 1], HFSB_LIT("+++ ")) &&
        hfsbi_is_anchor(l[*i + 2]))
        *i += 2;
}

/* The lines [i, to) are those of an updated file. */
static hfsb_status hfsbi_parse_update(hfsbi_patch *p, size_t i, size_t to,
                                      hfsb_err *err) {
    const hfsb_str *l = p->text.items;
    hfsb_status     st = HFSB_OK;
    hfsb_str        new_path;
    if (i < to && hfsbi_head_line(l[i], "*** Move to:", &new_path)) {
        if (!new_path.len)
            return hfsbi_patch_error(err, i, "\"*** Move to:\" needs a path.");
        p->sections[p->section_count - 1].new_path = new_path;
        i++;
    }
    hfsbi_skip_diff_head(p, &i, to);
    if (i >= to)
        return hfsbi_patch_error(err, i - 1,
                                 "an updated file needs at least one hunk.");
    while (st == HFSB_OK && i < to) {
        st = hfsbi_parse_hunk(p, &i, to, false, err);
        if (st != HFSB_OK) return st;
        hfsbi_parse_eof(p, &i, to);
        if (i < to && !hfsbi_is_anchor(l[i]))
            return hfsbi_patch_error(
                err, i,
                "this is no line of a hunk. Lines of a hunk begin with a "
                "blank (context), - or +, the next hunk with @@.");
    }
    return st;
}

/* First line of the next section. Inside an update a marker only counts at the
   very start of a line: after a blank it is context. */
static size_t hfsbi_section_end(const hfsbi_patch *p, size_t from,
                                bool update) {
    const hfsb_str *l = p->text.items;
    size_t          i = from;
    for (; i < p->last; i++) {
        hfsb_str line = update ? l[i] : hfsbi_trim(l[i]);
        if (!hfsbi_is_marker(line)) continue;
        if (update &&
            (hfsb_str_starts(line, HFSB_LIT("*** End of File")) ||
             (i == from && hfsb_str_starts(line, HFSB_LIT("*** Move")))))
            continue;
        break;
    }
    return i;
}

/* Reads the section at line *i; *i moves to the next one. */
static hfsb_status hfsbi_parse_section(hfsbi_patch *p, size_t *i,
                                       hfsb_err *err) {
    const hfsb_str *l = p->text.items;
    hfsb_patch_kind kind;
    hfsb_str        path;
    size_t          from = *i + 1, to;
    hfsb_status     st;
    if (hfsbi_head_line(l[*i], "*** Add File:", &path)) kind = HFSB_PATCH_ADD;
    else if (hfsbi_head_line(l[*i], "*** Delete File:", &path))
        kind = HFSB_PATCH_DELETE;
    else if (hfsbi_head_line(l[*i], "*** Update File:", &path))
        kind = HFSB_PATCH_UPDATE;
    else
        return hfsbi_patch_error(
            err, *i,
            "expected \"*** Add File: PATH\", \"*** Update File: PATH\" or "
            "\"*** Delete File: PATH\".");
    if (!path.len) return hfsbi_patch_error(err, *i, "the path is missing.");
    to = *i = hfsbi_section_end(p, from, kind == HFSB_PATCH_UPDATE);
    st = hfsbi_add_section(p, kind, path);
    if (st != HFSB_OK) return st;
    if (kind == HFSB_PATCH_UPDATE) return hfsbi_parse_update(p, from, to, err);
    if (kind == HFSB_PATCH_ADD) return hfsbi_parse_add(p, from, to, err);
    while (to > from && !hfsbi_trim(l[to - 1]).len) to--;
    return to > from ? hfsbi_patch_error(err, from,
                                         "\"*** Delete File\" has no lines.")
                     : HFSB_OK;
}

/* ---- the Begin Patch format ---- */

/* True when a patch that ends in this line lacks nothing but its End line: a
   new line or a removed one could be followed by others. */
static bool hfsbi_is_last_line(hfsb_str line) {
    hfsb_str path;
    return hfsb_str_starts(line, HFSB_LIT(" ")) ||
           hfsb_str_equal(hfsbi_trim(line), HFSB_LIT("*** End of File")) ||
           hfsbi_head_line(line, "*** Delete File:", &path);
}

/* Reads the lines from "*** Begin Patch" on. */
static hfsb_status hfsbi_parse_begin(hfsbi_patch *p, bool closed,
                                     hfsb_err *err) {
    const hfsb_str *l = p->text.items;
    hfsb_str        last = l[p->last - 1], id;
    hfsb_status     st = HFSB_OK;
    size_t          i;
    p->first++;
    if (p->first < p->last &&
        hfsb_str_equal(hfsbi_trim(last), HFSB_LIT("*** End Patch")))
        p->last--;
    else if (p->first == p->last || !(closed || hfsbi_is_last_line(last)))
        return hfsbi_patch_error(err, p->last - 1,
                                 "the last line must be \"*** End Patch\".");
    while (p->first < p->last &&
           hfsbi_head_line(l[p->first], "*** Environment ID:", &id))
        p->first++;
    if (p->first < p->last && hfsbi_is_diff_head(p, p->first))
        return hfsbi_parse_diff(p, err);
    for (i = p->first; st == HFSB_OK && i < p->last;)
        st = hfsbi_parse_section(p, &i, err);
    if (st == HFSB_OK && !p->section_count)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "The patch is empty. Nothing was changed.");
    return st;
}

/* ---- all formats ---- */

static hfsb_status hfsbi_parse_format(hfsbi_patch *p, hfsb_err *err) {
    const hfsb_str *l = p->text.items;
    bool            closed = hfsbi_patch_unwrap(p);
    size_t          i;
    if (p->first < p->last &&
        hfsb_str_equal(hfsbi_trim(l[p->first]), HFSB_LIT("*** Begin Patch")))
        return hfsbi_parse_begin(p, closed, err);
    for (i = p->first; i < p->last; i++) {
        if (hfsbi_is_block_head(l[i])) return hfsbi_parse_blocks(p, err);
        if (hfsbi_is_diff_head(p, i)) return hfsbi_parse_diff(p, err);
        if (hfsbi_is_marker(l[i])) break;
    }
    return hfsbi_patch_error(
        err, p->first < p->last ? p->first : 0,
        "this is no patch. Send one of: \"*** Begin Patch\", \"*** Update "
        "File: PATH\", \"@@\", lines that begin with a blank, - or +, \"*** "
        "End Patch\"; a unified diff (\"--- a/PATH\", \"+++ b/PATH\", \"@@ "
        "-1,3 +1,3 @@\"); or blocks of PATH, \"<<<<<<< SEARCH\", old lines, "
        "\"=======\", new lines, \">>>>>>> REPLACE\".");
}

HFSBI_FN hfsb_status hfsbi_patch_parse(const hfsb_alloc *alloc, hfsb_str text,
                                       hfsbi_patch *p, hfsb_err *err) {
    size_t      i;
    hfsb_status st;
    memset(p, 0, sizeof *p);
    p->alloc = *alloc;
    st = hfsbi_lines_split(alloc, text, &p->text);
    if (st != HFSB_OK) return st;
    for (i = 0; i < p->text.count; i++)
        if (hfsb_str_ends(p->text.items[i], HFSB_LIT("\r")))
            p->text.items[i].len--;
    p->last = p->text.count;
    return hfsbi_parse_format(p, err);
}
