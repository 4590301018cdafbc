/* patch_parse.c - read a patch in any format.

   Models send patches in three formats, bare, in a ``` fence or in a heredoc:

       *** Begin Patch          sections, hunks after @@
       --- a/f, +++ b/f, @@     unified diffs, git's too
       <<<<<<< SEARCH           SEARCH/REPLACE blocks

   All three become sections of hunks with marked lines. A patch is parsed
   completely before any file is read. Markers may be padded with blanks where
   they cannot be mistaken for context. */
#include "edit_private.h"

static hfsb_status hfsbi_patch_error(hfsb_err *err, size_t line,
                                     const char *what) {
    hfsbi_fail(err, HFSB_SYNTAX, 0,
               "Malformed patch, line %zu: %s Nothing was changed.", line + 1,
               what);
    if (err) err->line = line + 1;
    return HFSB_SYNTAX;
}

/* ---- the parsed patch ---- */

static hfsb_status hfsbi_add_section(hfsbi_patch *p, hfsb_patch_kind kind,
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

static hfsb_status hfsbi_add_hunk(hfsbi_patch *p, size_t line) {
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

static hfsb_status hfsbi_add_hunk_line(hfsbi_patch *p, char mark,
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

/* Strips a heredoc and a fence around the patch. True when one of them is
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

static bool hfsbi_is_git_head(hfsb_str line) {
    return hfsb_str_starts(line, HFSB_LIT("diff --git "));
}

static bool hfsbi_is_pair_head(const hfsbi_patch *p, size_t i) {
    const hfsb_str *l = p->text.items;
    return i + 1 < p->last && hfsb_str_starts(l[i], HFSB_LIT("--- ")) &&
           hfsb_str_starts(l[i + 1], HFSB_LIT("+++ "));
}

static bool hfsbi_is_diff_head(const hfsbi_patch *p, size_t i) {
    return hfsbi_is_git_head(p->text.items[i]) || hfsbi_is_pair_head(p, i);
}

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

/* Reads the lines of a hunk; "\ No newline at end of file" applies to the line
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

/* Reads the hunk at line *i, its @@ lines first; *i moves after it. In a diff
   the head of the next file ends a hunk. */
static hfsb_status hfsbi_parse_hunk(hfsbi_patch *p, size_t *i, size_t to,
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

/* ---- unified diffs ----

       diff --git a/f b/f           git's head: modes, renames
       rename from f
       --- a/f                      a/ and b/ are no part of the path
       +++ b/f                      /dev/null: the file is added or deleted
       @@ -7,3 +7,4 @@ heading      the line numbers only choose among matches
        context, -old, +new

   Text before the first head, such as the message of a commit, is skipped.
   What the tools cannot do is refused: binary files, modes, copies. */

/* The head of one file. */
typedef struct hfsbi_diff_head {
    size_t   line;
    hfsb_str old_path, new_path; /* as in the lines --- and +++ */
    hfsb_str git_path;           /* of "diff --git", if both sides are equal */
    hfsb_str from, to;           /* of a rename */
    bool     added, deleted;
} hfsbi_diff_head;

/* The rest of a line that begins with `head`; ptr NULL for other lines. */
static hfsb_str hfsbi_after(hfsb_str line, const char *head) {
    hfsb_str none = HFSB_INIT;
    if (!hfsb_str_starts(line, hfsb_cstr(head))) return none;
    return hfsbi_trim(hfsb_str_slice(line, strlen(head), line.len));
}

/* The path of a line --- or +++, without a date. */
static hfsb_str hfsbi_head_path(hfsb_str line) {
    hfsb_str path = hfsb_str_slice(line, 4, line.len);
    return hfsbi_trim(hfsb_str_slice(path, 0, hfsb_str_find_byte(path, '\t')));
}

/* The path of "diff --git a/f b/f"; empty if the two differ. */
static hfsb_str hfsbi_git_path(hfsb_str line) {
    hfsb_str rest = hfsbi_after(line, "diff --git "), none = HFSB_INIT, a, b;
    if (rest.len < 7 || rest.len % 2 == 0) return none;
    a = hfsb_str_slice(rest, 0, rest.len / 2);
    b = hfsb_str_slice(rest, rest.len / 2 + 1, rest.len);
    if (rest.ptr[rest.len / 2] != ' ' || !hfsb_str_starts(a, HFSB_LIT("a/")) ||
        !hfsb_str_starts(b, HFSB_LIT("b/")))
        return none;
    a = hfsb_str_slice(a, 2, a.len);
    return hfsb_str_equal(a, hfsb_str_slice(b, 2, b.len)) ? a : none;
}

/* Why a line of git's head cannot be carried out, or NULL. */
static const char *hfsbi_git_refusal(hfsb_str line) {
    hfsb_str mode = hfsbi_after(line, "new file mode ");
    if (hfsb_str_starts(line, HFSB_LIT("old mode ")) ||
        hfsb_str_starts(line, HFSB_LIT("new mode ")))
        return "changing the mode of a file is not supported. Leave these "
               "lines out and use chmod.";
    if (mode.ptr && !hfsb_str_equal(mode, HFSB_LIT("100644")))
        return "only ordinary files can be added (new file mode 100644). Add "
               "the file without this line, then use chmod or ln.";
    if (hfsb_str_starts(line, HFSB_LIT("copy ")))
        return "copies are not supported. Copy the file first, then patch "
               "it.";
    if (hfsb_str_starts(line, HFSB_LIT("GIT binary patch")) ||
        hfsb_str_starts(line, HFSB_LIT("Binary files ")))
        return "binary files cannot be patched.";
    return NULL;
}

/* Reads a line of git's head; false for any other line. */
static bool hfsbi_git_line(hfsb_str line, hfsbi_diff_head *h) {
    static const char *const ignored[] = {"index ", "similarity index ",
                                          "dissimilarity index "};
    hfsb_str                 rest;
    size_t                   i;
    for (i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (hfsb_str_starts(line, hfsb_cstr(ignored[i]))) return true;
    if ((rest = hfsbi_after(line, "rename from ")).ptr) h->from = rest;
    else if ((rest = hfsbi_after(line, "rename to ")).ptr) h->to = rest;
    else if (hfsbi_after(line, "new file mode").ptr) h->added = true;
    else if (hfsbi_after(line, "deleted file mode").ptr) h->deleted = true;
    else return false;
    return true;
}

/* Reads the head at line *i; *i moves to the first hunk. */
static hfsb_status hfsbi_parse_head(const hfsbi_patch *p, size_t *i,
                                    hfsbi_diff_head *h, hfsb_err *err) {
    const hfsb_str *l = p->text.items;
    memset(h, 0, sizeof *h);
    h->line = *i;
    if (hfsbi_is_git_head(l[*i])) h->git_path = hfsbi_git_path(l[(*i)++]);
    while (*i < p->last && !hfsbi_is_diff_head(p, *i)) {
        const char *refusal = hfsbi_git_refusal(l[*i]);
        if (refusal) return hfsbi_patch_error(err, *i, refusal);
        if (!hfsbi_git_line(l[*i], h)) break;
        ++*i;
    }
    if (*i >= p->last || !hfsbi_is_pair_head(p, *i)) return HFSB_OK;
    h->old_path = hfsbi_head_path(l[*i]);
    h->new_path = hfsbi_head_path(l[*i + 1]);
    *i += 2;
    return HFSB_OK;
}

static bool hfsbi_is_null(hfsb_str path) {
    return hfsb_str_equal(path, HFSB_LIT("/dev/null"));
}

/* Removes the a/ and b/ that git puts before paths. */
static void hfsbi_strip_sides(hfsbi_diff_head *h) {
    bool a = hfsb_str_starts(h->old_path, HFSB_LIT("a/"));
    bool b = hfsb_str_starts(h->new_path, HFSB_LIT("b/"));
    if (!(a || hfsbi_is_null(h->old_path)) ||
        !(b || hfsbi_is_null(h->new_path)))
        return;
    if (a) h->old_path = hfsb_str_slice(h->old_path, 2, h->old_path.len);
    if (b) h->new_path = hfsb_str_slice(h->new_path, 2, h->new_path.len);
}

/* Sets the kind and the paths of the section. */
static hfsb_status hfsbi_head_section(hfsbi_patch *p, hfsbi_diff_head *h,
                                      hfsb_err *err) {
    hfsb_patch_kind kind = HFSB_PATCH_UPDATE;
    hfsb_str        path;
    hfsb_status     st;
    hfsbi_strip_sides(h);
    if (!h->old_path.len) h->old_path = h->new_path = h->git_path;
    if (h->added || hfsbi_is_null(h->old_path)) kind = HFSB_PATCH_ADD;
    if (h->deleted || hfsbi_is_null(h->new_path)) kind = HFSB_PATCH_DELETE;
    path = kind == HFSB_PATCH_ADD ? h->new_path : h->old_path;
    if (h->from.len && h->to.len) {
        kind = HFSB_PATCH_UPDATE;
        path = h->from;
    } else if (kind == HFSB_PATCH_UPDATE &&
               !hfsb_str_equal(h->old_path, h->new_path)) {
        return hfsbi_patch_error(err, h->line,
                                 "--- and +++ name two files. Name the same "
                                 "one, or add \"rename from\" and \"rename "
                                 "to\" lines after a diff --git line.");
    }
    if (!path.len || hfsbi_is_null(path) || path.ptr[0] == '"')
        return hfsbi_patch_error(err, h->line,
                                 "the path is missing or in quotes.");
    st = hfsbi_add_section(p, kind, path);
    if (st == HFSB_OK && h->from.len && h->to.len)
        p->sections[p->section_count - 1].new_path = h->to;
    return st;
}

/* Checks that the hunks fit the kind of the section. */
static hfsb_status hfsbi_check_section(const hfsbi_patch *p, size_t line,
                                       hfsb_err *err) {
    const hfsbi_section *s = p->sections + p->section_count - 1;
    size_t               count = s->hunk_end - s->hunk, i;
    if (!count && s->kind == HFSB_PATCH_UPDATE && !s->new_path.len)
        return hfsbi_patch_error(err, line,
                                 "an updated file needs at least one hunk.");
    if (s->kind == HFSB_PATCH_ADD && count > 1)
        return hfsbi_patch_error(err, p->hunks[s->hunk + 1].line,
                                 "an added file has only one hunk.");
    if (!count || s->kind == HFSB_PATCH_UPDATE) return HFSB_OK;
    for (i = p->hunks[s->hunk].body; i < p->hunks[s->hunk_end - 1].end; i++)
        if (p->lines[i].mark == (s->kind == HFSB_PATCH_ADD ? '-' : '+') ||
            (p->lines[i].mark == ' ' && s->kind == HFSB_PATCH_ADD))
            return hfsbi_patch_error(err, p->hunks[s->hunk].line,
                                     s->kind == HFSB_PATCH_ADD
                                         ? "every line of an added file "
                                           "begins with +."
                                         : "every line of a deleted file "
                                           "begins with -.");
    return HFSB_OK;
}

/* Reads one file of the diff; *i moves after it. */
static hfsb_status hfsbi_parse_file(hfsbi_patch *p, size_t *i, hfsb_err *err) {
    const hfsb_str *l = p->text.items;
    hfsbi_diff_head head;
    hfsb_status     st = hfsbi_parse_head(p, i, &head, err);
    if (st == HFSB_OK) st = hfsbi_head_section(p, &head, err);
    while (st == HFSB_OK && *i < p->last && hfsbi_is_anchor(l[*i]))
        st = hfsbi_parse_hunk(p, i, p->last, true, err);
    return st == HFSB_OK ? hfsbi_check_section(p, head.line, err) : st;
}

static hfsb_status hfsbi_parse_diff(hfsbi_patch *p, hfsb_err *err) {
    const hfsb_str *l = p->text.items;
    size_t          i = p->first;
    hfsb_status     st = HFSB_OK;
    while (!hfsbi_is_diff_head(p, i)) i++;
    while (st == HFSB_OK && i < p->last) {
        if (hfsbi_is_diff_head(p, i)) st = hfsbi_parse_file(p, &i, err);
        else if (!hfsbi_trim(l[i]).len || hfsbi_is_fence(l[i])) i++;
        else if (i + 2 >= p->last && hfsb_str_equal(l[i], HFSB_LIT("-- ")))
            return HFSB_OK;
        else
            return hfsbi_patch_error(
                err, i,
                "this is no line of a hunk. Lines of a hunk begin with a "
                "blank (context), - or +, the next hunk with @@, the next "
                "file with --- and +++.");
    }
    return st;
}

/* ---- SEARCH/REPLACE blocks ----

       path/of/the/file             before or inside the ``` fence; without it
       <<<<<<< SEARCH               the path of the block before
       old lines                    (none: a new file)
       =======
       new lines
       >>>>>>> REPLACE

   A block is a hunk; those of one file need not come in its order. Other text
   around them is skipped. */

/* True for a line of seven `c` followed by the word. */
static bool hfsbi_is_block_mark(hfsb_str line, char c, const char *word) {
    size_t i;
    line = hfsbi_trim_end(line);
    if (line.len < 7) return false;
    for (i = 0; i < 7; i++)
        if (line.ptr[i] != c) return false;
    return hfsb_str_equal(hfsb_str_slice(line, 7, line.len), hfsb_cstr(word));
}

static bool hfsbi_is_block_head(hfsb_str line) {
    return hfsbi_is_block_mark(line, '<', " SEARCH");
}

/* The path on a line, without the marks of a heading, a list or bold text. */
static hfsb_str hfsbi_block_path(hfsb_str line) {
    line = hfsbi_trim(line);
    while (line.len && (line.ptr[0] == '#' || line.ptr[0] == '*' ||
                        line.ptr[0] == '`' || hfsbi_is_blank(line.ptr[0])))
        line = hfsb_str_slice(line, 1, line.len);
    while (line.len &&
           (line.ptr[line.len - 1] == ':' || line.ptr[line.len - 1] == '*' ||
            line.ptr[line.len - 1] == '`'))
        line.len--;
    return hfsbi_trim(line);
}

/* The path above the block that starts at line `head`, looked for down to line
   `floor`; empty if not found. */
static hfsb_str hfsbi_path_above(const hfsbi_patch *p, size_t floor,
                                 size_t head) {
    const hfsb_str *l = p->text.items;
    while (head-- > floor)
        if (hfsbi_trim(l[head]).len && !hfsbi_is_fence(l[head]))
            return hfsbi_block_path(l[head]);
    return HFSB_LIT("");
}

/* The lines of a block: its marks are at head, middle and end. */
typedef struct hfsbi_block_lines {
    size_t head, middle, end;
} hfsbi_block_lines;

/* Finds the marks of the block at line `head`. */
static hfsb_status hfsbi_find_block(const hfsbi_patch *p, size_t head,
                                    hfsbi_block_lines *b, hfsb_err *err) {
    const hfsb_str *l = p->text.items;
    size_t          i;
    b->head = head;
    b->middle = HFSB_NPOS;
    b->end = head;
    for (i = head + 1; i < p->last; i++) {
        if (hfsbi_is_block_mark(l[i], '=', "")) {
            if (b->middle != HFSB_NPOS)
                return hfsbi_patch_error(
                    err, i,
                    "a second ======= in one block. Leave the line out of the "
                    "block, or use another format.");
            b->middle = i;
        }
        if (hfsbi_is_block_head(l[i])) break;
        if (hfsbi_is_block_mark(l[i], '>', " REPLACE")) {
            b->end = i;
            if (b->middle != HFSB_NPOS) return HFSB_OK;
            break;
        }
    }
    return hfsbi_patch_error(err, head,
                             "this block needs a line ======= and then a line "
                             ">>>>>>> REPLACE.");
}

/* True when the last section updates this path. */
static bool hfsbi_goes_on(const hfsbi_patch *p, hfsb_str path) {
    const hfsbi_section *s;
    if (!p->section_count) return false;
    s = p->sections + p->section_count - 1;
    return s->kind == HFSB_PATCH_UPDATE && hfsb_str_equal(s->path, path);
}

/* Adds a block to the section of its file. */
static hfsb_status hfsbi_add_block(hfsbi_patch *p, const hfsbi_block_lines *b,
                                   hfsb_str path, hfsb_err *err) {
    const hfsb_str *l = p->text.items;
    size_t          i, search = 0;
    hfsb_status     st = HFSB_OK;
    for (i = b->head + 1; i < b->middle; i++) search += hfsbi_trim(l[i]).len;
    if (!search && b->end == b->middle + 1)
        return hfsbi_patch_error(err, b->head, "this block has no lines.");
    if (!search || !hfsbi_goes_on(p, path))
        st = hfsbi_add_section(p, search ? HFSB_PATCH_UPDATE : HFSB_PATCH_ADD,
                               path);
    if (st == HFSB_OK) st = hfsbi_add_hunk(p, b->head);
    if (st != HFSB_OK) return st;
    p->hunks[p->hunk_count - 1].block = true;
    for (i = b->head + 1; st == HFSB_OK && search && i < b->middle; i++)
        st = hfsbi_add_hunk_line(p, '-', l[i]);
    for (i = b->middle + 1; st == HFSB_OK && i < b->end; i++)
        st = hfsbi_add_hunk_line(p, '+', l[i]);
    return st;
}

static hfsb_status hfsbi_parse_blocks(hfsbi_patch *p, hfsb_err *err) {
    const hfsb_str *l = p->text.items;
    hfsb_str        path = HFSB_LIT(""), above;
    size_t          i, floor = p->first;
    hfsb_status     st = HFSB_OK;
    for (i = p->first; st == HFSB_OK && i < p->last; i++) {
        hfsbi_block_lines b;
        if (!hfsbi_is_block_head(l[i])) continue;
        above = hfsbi_path_above(p, floor, i);
        if (above.len) path = above;
        if (!path.len)
            return hfsbi_patch_error(
                err, i, "a line with the path of the file must come first.");
        st = hfsbi_find_block(p, i, &b, err);
        if (st != HFSB_OK) return st;
        st = hfsbi_add_block(p, &b, path, err);
        i = b.end;
        floor = i + 1;
    }
    return st;
}

/* ---- the Begin Patch format ---- */

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
    if (*i + 2 < to && hfsbi_is_pair_head(p, *i) && hfsbi_is_anchor(l[*i + 2]))
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
