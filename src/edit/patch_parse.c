/* patch_parse.c - read the "*** Begin Patch" format.

   A patch is cut into lines once; sections and hunks are ranges of those:

       *** Begin Patch            open()     may be wrapped in a heredoc
       *** Update File: path      section()
       @@ anchor                  chunk()
        context, -old, +new
       *** End Patch

   Every section is checked completely before it is returned, so that
   no syntax error turns up halfway through its hunks. Markers may be padded
   with blanks where they cannot be mistaken for context. */
#include "edit_private.h"

static hfsb_status hfsbi_patch_error(hfsb_err *err, size_t line,
                                     const char *what) {
    hfsbi_fail(err, HFSB_SYNTAX, 0,
               "Malformed patch, line %zu: %s Nothing was changed.", line + 1,
               what);
    if (err) err->line = line + 1;
    return HFSB_SYNTAX;
}

/* ---- the frame ---- */

static bool hfsbi_is_word_char(char c) {
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

/* Finds the Begin and End lines, inside a heredoc if there is one. */
static hfsb_status hfsbi_patch_frame(hfsbi_patch_text *t, hfsb_err *err) {
    const hfsb_str *l = t->lines.items;
    size_t          from = 0, to = t->lines.count;
    hfsb_str        word;
    while (from < to && !hfsbi_trim(l[from]).len) from++;
    while (to > from && !hfsbi_trim(l[to - 1]).len) to--;
    word = from < to ? hfsbi_heredoc_word(l[from]) : hfsb_str_make("", 0);
    if (word.len && to - from > 2 &&
        hfsb_str_equal(hfsbi_trim(l[to - 1]), word)) {
        from++;
        to--;
        while (to > from && !hfsbi_trim(l[to - 1]).len) to--;
    }
    if (from == to ||
        !hfsb_str_equal(hfsbi_trim(l[from]), HFSB_LIT("*** Begin Patch")))
        return hfsbi_patch_error(
            err, from < to ? from : 0,
            "the first line must be \"*** Begin Patch\".");
    if (to - from < 2 ||
        !hfsb_str_equal(hfsbi_trim(l[to - 1]), HFSB_LIT("*** End Patch")))
        return hfsbi_patch_error(err, to - 1,
                                 "the last line must be \"*** End Patch\".");
    t->first = from + 1;
    t->last = to - 1;
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_patch_open(const hfsb_alloc *alloc, hfsb_str patch,
                                      hfsbi_patch_text *text, hfsb_err *err) {
    size_t      i;
    hfsb_status st = hfsbi_lines_split(alloc, patch, &text->lines);
    if (st != HFSB_OK) return st;
    for (i = 0; i < text->lines.count; i++)
        if (hfsb_str_ends(text->lines.items[i], HFSB_LIT("\r")))
            text->lines.items[i].len--;
    st = hfsbi_patch_frame(text, err);
    if (st != HFSB_OK) hfsbi_lines_free(alloc, &text->lines);
    return st;
}

/* ---- hunks ---- */

static bool hfsbi_is_marker(hfsb_str line) {
    return hfsb_str_starts(line, HFSB_LIT("*** "));
}

static bool hfsbi_is_anchor(hfsb_str line) {
    return hfsb_str_equal(line, HFSB_LIT("@@")) ||
           hfsb_str_starts(line, HFSB_LIT("@@ "));
}

static bool hfsbi_is_body(hfsb_str line) {
    return !line.len || line.ptr[0] == ' ' || line.ptr[0] == '-' ||
           line.ptr[0] == '+';
}

HFSBI_FN hfsb_status hfsbi_patch_chunk(const hfsbi_patch_text *text,
                                       const hfsbi_section    *section,
                                       size_t from, hfsbi_chunk *chunk,
                                       hfsb_err *err) {
    const hfsb_str *l = text->lines.items;
    size_t          i = from;
    chunk->anchors = from;
    chunk->at_eof = false;
    while (i < section->to && hfsbi_is_anchor(l[i])) i++;
    chunk->body = i;
    while (i < section->to && hfsbi_is_body(l[i])) i++;
    chunk->end = i;
    /* A bare empty line at the end is layout, not context. */
    while (chunk->end > chunk->body && !l[chunk->end - 1].len) chunk->end--;
    if (chunk->end == chunk->body)
        return hfsbi_patch_error(
            err, from < section->to ? from : section->to - 1,
            "this hunk has no lines. Lines of a hunk begin with a blank "
            "(context), - or +.");
    if (i < section->to &&
        hfsb_str_equal(hfsbi_trim(l[i]), HFSB_LIT("*** End of File"))) {
        chunk->at_eof = true;
        i++;
        while (i < section->to && !l[i].len) i++;
    }
    if (i < section->to && !hfsbi_is_anchor(l[i]))
        return hfsbi_patch_error(
            err, i,
            "this is no line of a hunk. Lines of a hunk begin with a blank "
            "(context), - or +, the next hunk with @@.");
    chunk->next = i;
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

static hfsb_status hfsbi_check_add(const hfsbi_patch_text *text,
                                   hfsbi_section *s, hfsb_err *err) {
    const hfsb_str *l = text->lines.items;
    size_t          i;
    while (s->to > s->from && !l[s->to - 1].len) s->to--;
    for (i = s->from; i < s->to; i++)
        if (!l[i].len || l[i].ptr[0] != '+')
            return hfsbi_patch_error(err, i,
                                     "every line of an added file begins "
                                     "with +, an empty one too.");
    return HFSB_OK;
}

static hfsb_status hfsbi_check_update(const hfsbi_patch_text *text,
                                      hfsbi_section *s, hfsb_err *err) {
    hfsbi_chunk chunk;
    size_t      i = s->from;
    hfsb_status st = HFSB_OK;
    if (i < s->to &&
        hfsbi_head_line(text->lines.items[i], "*** Move to:", &s->new_path)) {
        s->from = ++i;
        if (!s->new_path.len)
            return hfsbi_patch_error(err, i - 1,
                                     "\"*** Move to:\" needs a path.");
    }
    if (i >= s->to)
        return hfsbi_patch_error(err, i - 1,
                                 "an updated file needs at least one hunk.");
    for (; st == HFSB_OK && i < s->to; i = chunk.next)
        st = hfsbi_patch_chunk(text, s, i, &chunk, err);
    return st;
}

/* First line of the next section. Inside an update a marker only counts at the
   very start of a line: after a blank it is context. */
static size_t hfsbi_section_end(const hfsbi_patch_text *text,
                                const hfsbi_section    *s) {
    const hfsb_str *l = text->lines.items;
    size_t          i = s->from;
    for (; i < text->last; i++) {
        hfsb_str line = s->kind == HFSB_PATCH_UPDATE ? l[i] : hfsbi_trim(l[i]);
        if (!hfsbi_is_marker(line)) continue;
        if (s->kind == HFSB_PATCH_UPDATE &&
            (hfsb_str_starts(line, HFSB_LIT("*** End of File")) ||
             (i == s->from && hfsb_str_starts(line, HFSB_LIT("*** Move")))))
            continue;
        break;
    }
    return i;
}

HFSBI_FN hfsb_status hfsbi_patch_section(const hfsbi_patch_text *text,
                                         size_t *line, hfsbi_section *s,
                                         hfsb_err *err) {
    const hfsb_str *l = text->lines.items;
    size_t          i = *line;
    hfsb_status     st = HFSB_OK;
    memset(s, 0, sizeof *s);
    if (hfsbi_head_line(l[i], "*** Add File:", &s->path))
        s->kind = HFSB_PATCH_ADD;
    else if (hfsbi_head_line(l[i], "*** Delete File:", &s->path))
        s->kind = HFSB_PATCH_DELETE;
    else if (hfsbi_head_line(l[i], "*** Update File:", &s->path))
        s->kind = HFSB_PATCH_UPDATE;
    else
        return hfsbi_patch_error(
            err, i,
            "expected \"*** Add File: PATH\", \"*** Update File: PATH\" or "
            "\"*** Delete File: PATH\".");
    if (!s->path.len) return hfsbi_patch_error(err, i, "the path is missing.");
    s->from = i + 1;
    s->to = *line = hfsbi_section_end(text, s);
    if (s->kind == HFSB_PATCH_UPDATE) {
        st = hfsbi_check_update(text, s, err);
    } else if (s->kind == HFSB_PATCH_ADD) {
        st = hfsbi_check_add(text, s, err);
    } else {
        while (s->to > s->from && !hfsbi_trim(l[s->to - 1]).len) s->to--;
        if (s->to > s->from)
            st = hfsbi_patch_error(err, s->from,
                                   "\"*** Delete File\" has no lines.");
    }
    return st;
}
