/* patch_diff.c - read unified diffs, plain or git's.

       diff --git a/f b/f           git's head: modes, renames
       rename from f
       --- a/f                      a/ and b/ are no part of the path
       +++ b/f                      /dev/null: the file is added or deleted
       @@ -7,3 +7,4 @@ heading      the line numbers only choose among matches
        context, -old, +new

   Text before the first head, such as the message of a commit, is skipped.
   What the tools cannot do is refused: binary files, modes, copies. */
#include "edit_private.h"

/* The head of one file. */
typedef struct hfsbi_diff_head {
    size_t   line;
    hfsb_str old_path, new_path; /* as in the lines --- and +++ */
    hfsb_str git_path;           /* of "diff --git", if both sides are equal */
    hfsb_str from, to;           /* of a rename */
    bool     added, deleted;
} hfsbi_diff_head;

static bool hfsbi_is_git_head(hfsb_str line) {
    return hfsb_str_starts(line, HFSB_LIT("diff --git "));
}

static bool hfsbi_is_pair_head(const hfsbi_patch *p, size_t i) {
    const hfsb_str *l = p->text.items;
    return i + 1 < p->last && hfsb_str_starts(l[i], HFSB_LIT("--- ")) &&
           hfsb_str_starts(l[i + 1], HFSB_LIT("+++ "));
}

HFSBI_FN bool hfsbi_is_diff_head(const hfsbi_patch *p, size_t i) {
    return hfsbi_is_git_head(p->text.items[i]) || hfsbi_is_pair_head(p, i);
}

/* ---- the head ---- */

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

/* Reads a line of git's head; false when it is no such line. */
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

/* ---- the section ---- */

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

HFSBI_FN hfsb_status hfsbi_parse_diff(hfsbi_patch *p, hfsb_err *err) {
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
