/* t_edit.h - helpers for the tests of diffs, edits and patches: a strict reader
   of unified diffs, the invariants of every edit, random files. */
#ifndef T_EDIT_H
#define T_EDIT_H
#include "t.h"

#define TE_COUNT(list) (sizeof(list) / sizeof *(list))

HFSBI_UNUSED static void te_append(hfsb_buf *b, hfsb_str s) {
    if (hfsb_buf_append(b, s) != HFSB_OK) abort();
}

HFSBI_UNUSED static bool te_same(const hfsb_buf *b, hfsb_str s) {
    return hfsb_str_equal(hfsb_buf_str(b), s);
}

HFSBI_UNUSED static bool te_holds_text(const char *text, const char *part) {
    return strstr(text, part) != NULL;
}

HFSBI_UNUSED static bool te_begins(const char *text, const char *part) {
    return !strncmp(text, part, strlen(part));
}

/* ---- applying a unified diff strictly ---- */

typedef struct te_diff {
    hfsb_str rest;              /* of the diff */
    hfsb_str old_text;
    size_t   old_pos, old_line; /* taken so far; lines, too */
    size_t   new_line;
    bool     new_ended;         /* a line without LF was written */
    hfsb_buf *out;
} te_diff;

/* The next line of *rest with its LF; empty at the end. */
static hfsb_str te_line(hfsb_str *rest) {
    size_t   end = hfsb_str_find_byte(*rest, '\n');
    hfsb_str line = hfsb_str_slice(*rest, 0, end == HFSB_NPOS ? end : end + 1);
    *rest = hfsb_str_slice(*rest, line.len, rest->len);
    return line;
}

static bool te_number(hfsb_str *s, const char *before, size_t *out) {
    size_t n = strlen(before), digits = 0;
    *out = 0;
    if (!hfsb_str_starts(*s, hfsb_cstr(before))) return false;
    for (; n < s->len && s->ptr[n] >= '0' && s->ptr[n] <= '9'; digits++)
        *out = *out * 10 + (size_t)(s->ptr[n++] - '0');
    *s = hfsb_str_slice(*s, n, s->len);
    return digits > 0;
}

static bool te_put_new(te_diff *d, hfsb_str line) {
    if (d->new_ended) return false;
    te_append(d->out, line);
    d->new_line++;
    d->new_ended = !hfsb_str_ends(line, HFSB_LIT("\n"));
    return true;
}

/* Copies old lines until `lines` of them are copied. */
static bool te_skip_to(te_diff *d, size_t lines) {
    while (d->old_line < lines) {
        hfsb_str rest =
            hfsb_str_slice(d->old_text, d->old_pos, d->old_text.len);
        hfsb_str line = te_line(&rest);
        if (!line.len || !te_put_new(d, line)) return false;
        d->old_pos += line.len;
        d->old_line++;
    }
    return d->old_line == lines;
}

/* One line of a hunk. */
static bool te_body(te_diff *d, size_t *olds, size_t *news, bool *changes) {
    hfsb_str line = te_line(&d->rest), text, rest;
    char     mark = line.len ? line.ptr[0] : '?';
    text = hfsb_str_slice(line, 1, line.len);
    if (hfsb_str_starts(d->rest, HFSB_LIT("\\"))) {
        hfsb_str note = te_line(&d->rest);
        if (!hfsb_str_equal(note,
                            HFSB_LIT("\\ No newline at end of file\n")) ||
            !text.len)
            return false;
        text.len--;
    }
    if (mark != ' ' && mark != '-' && mark != '+') return false;
    if (mark != ' ') *changes = true;
    if (mark != '+') {
        rest = hfsb_str_slice(d->old_text, d->old_pos, d->old_text.len);
        if (!(*olds)-- || !hfsb_str_equal(te_line(&rest), text)) return false;
        d->old_pos += text.len;
        d->old_line++;
    }
    if (mark != '-' && (!(*news)-- || !te_put_new(d, text))) return false;
    return true;
}

static bool te_hunk(te_diff *d) {
    hfsb_str head = te_line(&d->rest);
    size_t   from, olds, to, news;
    bool     changes = false;
    if (!te_number(&head, "@@ -", &from) || !te_number(&head, ",", &olds) ||
        !te_number(&head, " +", &to) || !te_number(&head, ",", &news) ||
        !hfsb_str_equal(head, HFSB_LIT(" @@\n")))
        return false;
    if (!te_skip_to(d, olds ? from - 1 : from) ||
        d->new_line != (news ? to - 1 : to))
        return false;
    while (olds || news)
        if (!te_body(d, &olds, &news, &changes)) return false;
    return changes;
}

/* Appends old_text with the diff applied to *out; false when the diff does not
   fit in every detail. An empty diff changes nothing. */
HFSBI_UNUSED static bool te_apply_diff(hfsb_str old_text, hfsb_str diff,
                                       hfsb_buf *out) {
    te_diff d = HFSB_INIT;
    d.rest = diff;
    d.old_text = old_text;
    d.out = out;
    if (diff.len && (!hfsb_str_starts(te_line(&d.rest), HFSB_LIT("--- a/")) ||
                     !hfsb_str_starts(te_line(&d.rest), HFSB_LIT("+++ b/"))))
        return false;
    if (diff.len && !d.rest.len) return false;
    while (d.rest.len)
        if (!te_hunk(&d)) return false;
    if (d.new_ended) return d.old_pos == old_text.len;
    te_append(out, hfsb_str_slice(old_text, d.old_pos, old_text.len));
    return true;
}

/* True when the diff turns the one into the other. */
HFSBI_UNUSED static bool te_diff_fits(hfsb_str old_text, hfsb_str new_text,
                                      hfsb_str diff) {
    hfsb_buf out = HFSB_INIT;
    bool     ok = te_apply_diff(old_text, diff, &out) &&
              te_same(&out, new_text) &&
              (diff.len > 0) == !hfsb_str_equal(old_text, new_text);
    hfsb_buf_free(&out);
    return ok;
}

/* ---- invariants of every edit ---- */

static size_t te_lines_before(hfsb_str text, size_t pos) {
    return hfsb_str_count_byte(hfsb_str_slice(text, 0, pos), '\n');
}

/* Spans in order, nothing else changed, their lines right. */
HFSBI_UNUSED static bool te_spans_fit(hfsb_str old_text, hfsb_str new_text,
                                      const hfsb_span *spans, size_t count) {
    size_t i, old_pos = 0, new_pos = 0;
    for (i = 0; i < count; i++) {
        const hfsb_span *s = spans + i;
        size_t           end = s->new_start + s->new_len;
        if (s->old_start < old_pos || s->new_start < new_pos ||
            s->old_start + s->old_len > old_text.len || end > new_text.len ||
            !hfsb_str_equal(hfsb_str_slice(old_text, old_pos, s->old_start),
                            hfsb_str_slice(new_text, new_pos, s->new_start)))
            return false;
        if (s->first_line != 1 + te_lines_before(new_text, s->new_start) ||
            s->last_line !=
                1 + te_lines_before(new_text, s->new_len ? end - 1 : end))
            return false;
        old_pos = s->old_start + s->old_len;
        new_pos = end;
    }
    return hfsb_str_equal(hfsb_str_slice(old_text, old_pos, old_text.len),
                          hfsb_str_slice(new_text, new_pos, new_text.len));
}

/* The invariants of a successful edit. */
HFSBI_UNUSED static bool te_success_holds(hfsb_str content, hfsb_str now,
                                          const hfsb_edit_result *r) {
    return r->count > 0 && !hfsb_str_equal(content, now) &&
           te_spans_fit(content, now, r->spans, r->count) && !r->diff_cut &&
           te_diff_fits(content, now, hfsb_buf_str(&r->diff)) &&
           memchr(r->note, '\0', sizeof r->note) != NULL;
}

/* The invariants of a refusal. */
HFSBI_UNUSED static bool te_refusal_holds(hfsb_status st,
                                          const hfsb_err *err) {
    hfsb_str msg = hfsb_cstr(err->msg);
    return st != HFSB_OK && err->code == st && msg.len > 0 &&
           msg.len < 1200 && hfsb_utf8_validate(msg) == msg.len &&
           (te_holds_text(err->msg, "Nothing was changed") ||
            st == HFSB_NOMEM || st == HFSB_LIMIT);
}

/* The text without blanks and line ends, with look-alikes as ASCII and runs of
   dashes as one: no rung may change that. */
HFSBI_UNUSED static void te_squeeze(hfsb_str s, hfsb_buf *out) {
    size_t pos = 0, len;
    for (; pos < s.len; pos += len) {
        unsigned long c;
        hfsb_str      put;
        bool          valid;
        len = hfsb_utf8_step(s, pos, &c, &valid);
        put = hfsb_str_slice(s, pos, pos + len);
        if (!valid) c = 'x';
        if ((c >= 0x2010 && c <= 0x2015) || c == 0x2212 || c == '-') {
            put = HFSB_LIT("-");
            if (out->len && out->ptr[out->len - 1] == '-') continue;
        }
        if (c >= 0x2018 && c <= 0x201B) put = HFSB_LIT("'");
        if (c >= 0x201C && c <= 0x201F) put = HFSB_LIT("\"");
        if (c == 0x2026) put = HFSB_LIT("...");
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0xA0 ||
            (c >= 0x2000 && c <= 0x200B) || c == 0x202F || c == 0x205F ||
            c == 0x2060 || c == 0x3000 || c == 0xFEFF)
            continue;
        te_append(out, put);
    }
}

HFSBI_UNUSED static bool te_same_squeezed(hfsb_str a, hfsb_str b) {
    hfsb_buf x = HFSB_INIT, y = HFSB_INIT;
    bool     same;
    te_squeeze(a, &x);
    te_squeeze(b, &y);
    same = te_same(&x, hfsb_buf_str(&y));
    hfsb_buf_free(&x);
    hfsb_buf_free(&y);
    return same;
}

/* The text from pos to the end of its line. */
static hfsb_str te_rest_of_line(hfsb_str text, size_t pos) {
    size_t end = pos;
    while (end < text.len && text.ptr[end] != '\n' && text.ptr[end] != '\r')
        end++;
    return hfsb_str_slice(text, pos, end);
}

/* Each span of a replacement took old_str out and put new_str in, but for
   what the ladder allows; an insertion took nothing out. The end of new_str
   may be the rest of the line that was there. */
HFSBI_UNUSED static bool te_means_edit(hfsb_str content, hfsb_str now,
                                       const hfsb_edit_result *r,
                                       const hfsb_edit        *edit) {
    size_t i;
    if (te_holds_text(r->note, "line-number") ||
        te_holds_text(r->note, "fences"))
        return true;
    for (i = 0; i < r->count; i++) {
        const hfsb_span *s = r->spans + i;
        hfsb_str         old_part = hfsb_str_slice(content, s->old_start,
                                                   s->old_start + s->old_len);
        hfsb_str         new_part = hfsb_str_slice(now, s->new_start,
                                                   s->new_start + s->new_len);
        if (te_holds_text(r->note, "the rest of the last line"))
            new_part.len +=
                te_rest_of_line(now, s->new_start + s->new_len).len;
        if (!te_same_squeezed(new_part, edit->new_str)) return false;
        if (edit->mode == HFSB_EDIT_REPLACE
                ? !te_same_squeezed(old_part, edit->old_str)
                : old_part.len != 0)
            return false;
    }
    return true;
}

/* ---- running an edit ---- */

/* The result of one run; te_free() it. */
typedef struct te_run {
    hfsb_buf         out;
    hfsb_status      st;
    hfsb_edit_result r;
    hfsb_err         err;
} te_run;

HFSBI_UNUSED static void te_free(te_run *run) {
    hfsb_edit_result_free(&run->r);
    hfsb_buf_free(&run->out);
}

/* Runs edits on texts in exact-size blocks; checks the invariants. */
HFSBI_UNUSED static te_run te_edits(hfsb_str content, const hfsb_edit *edits,
                                    size_t count, const char *path) {
    te_run         run = HFSB_INIT;
    hfsb_edit_opts opts = HFSB_INIT;
    hfsb_str       text = t_exact(content.ptr, content.len);
    hfsb_edit      list[32];
    size_t         i;
    T_CHECK(count <= TE_COUNT(list));
    for (i = 0; i < count; i++) {
        list[i] = edits[i];
        list[i].old_str = t_exact(edits[i].old_str.ptr, edits[i].old_str.len);
        list[i].new_str = t_exact(edits[i].new_str.ptr, edits[i].new_str.len);
    }
    if (path) opts.path = hfsb_cstr(path);
    memset(&run.r, 0x5A, sizeof run.r); /* the call must not look at it */
    run.st = hfsb_edit_apply(text, list, count, path ? &opts : NULL, &run.out,
                             &run.r, &run.err);
    if (run.st == HFSB_OK) {
        T_CHECK(run.err.code == HFSB_OK && !run.err.msg[0]);
        T_CHECK(te_success_holds(text, hfsb_buf_str(&run.out), &run.r));
    } else {
        T_CHECK(te_refusal_holds(run.st, &run.err));
        T_CHECK(!run.out.len && !run.r.count && !run.r.spans &&
                !run.r.diff.ptr && !run.r.note[0]);
    }
    t_drop(text);
    for (i = 0; i < count; i++) {
        t_drop(list[i].old_str);
        t_drop(list[i].new_str);
    }
    return run;
}

HFSBI_UNUSED static hfsb_edit te_make(const char *old_str,
                                      const char *new_str) {
    hfsb_edit edit = HFSB_INIT;
    edit.old_str = hfsb_cstr(old_str);
    edit.new_str = hfsb_cstr(new_str);
    return edit;
}

/* ---- the result of an exact edit, computed naively ---- */

/* Offset of old_str in content from pos on. */
static size_t te_find(hfsb_str content, hfsb_str old_str, size_t pos) {
    size_t at = hfsb_str_find(hfsb_str_slice(content, pos, content.len),
                              old_str);
    return at == HFSB_NPOS || pos > content.len ? HFSB_NPOS : pos + at;
}

/* The place that `line` means, or HFSB_NPOS. */
static size_t te_at_line(hfsb_str content, const hfsb_edit *edit) {
    size_t at = te_find(content, edit->old_str, 0), there = 0, nearby = 0;
    size_t last_there = 0, last_nearby = 0;
    for (; at != HFSB_NPOS; at = te_find(content, edit->old_str, at + 1)) {
        size_t line = 1 + te_lines_before(content, at);
        if (line == edit->line && ++there) last_there = at;
        if (line + 3 >= edit->line && line <= edit->line + 3 && ++nearby)
            last_nearby = at;
    }
    if (there) return there == 1 ? last_there : HFSB_NPOS;
    return nearby == 1 ? last_nearby : HFSB_NPOS;
}

static void te_put_naive(hfsb_str content, const hfsb_edit *edit, size_t at,
                         size_t *pos, hfsb_buf *out) {
    bool before = edit->mode == HFSB_EDIT_PREPEND_BEFORE;
    te_append(out, hfsb_str_slice(content, *pos, at));
    if (edit->mode == HFSB_EDIT_APPEND_AFTER) te_append(out, edit->old_str);
    te_append(out, edit->new_str);
    if (before) te_append(out, edit->old_str);
    *pos = at + edit->old_str.len;
}

/* True when new_str was not taken to the letter. */
static bool te_was_interpreted(const te_run *run) {
    return run->st == HFSB_OK && run->r.note[0] &&
           !strstr(run->r.note, "matched after");
}

/* False when old_str is in the content exactly and the edit gave another result
   than a naive replacement. Texts with CR or a mark are not judged. An edit
   that was interpreted is made again with exact=true. */
HFSBI_UNUSED static bool te_agrees_with_naive(hfsb_str         content,
                                              const hfsb_edit *edit,
                                              const te_run    *run) {
    size_t   at = te_find(content, edit->old_str, 0), pos = 0;
    hfsb_buf want = HFSB_INIT;
    bool     many, ok;
    if (hfsb_str_find_byte(content, '\r') != HFSB_NPOS ||
        hfsb_str_find_byte(edit->old_str, '\r') != HFSB_NPOS ||
        hfsb_str_find_byte(edit->new_str, '\r') != HFSB_NPOS ||
        hfsb_str_starts(content, HFSB_LIT("\xEF\xBB\xBF")) ||
        !edit->old_str.len || at == HFSB_NPOS)
        return true;
    if (te_was_interpreted(run) && !edit->exact) {
        hfsb_edit exact = *edit;
        te_run    again;
        exact.exact = true;
        again = te_edits(content, &exact, 1, NULL);
        ok = te_agrees_with_naive(content, &exact, &again);
        te_free(&again);
        return ok;
    }
    many = te_find(content, edit->old_str, at + 1) != HFSB_NPOS;
    if (run->st == HFSB_REFUSED) return true;
    if (many && !edit->replace_all && edit->line)
        at = te_at_line(content, edit);
    if (many && !edit->replace_all && (!edit->line || at == HFSB_NPOS))
        return run->st == HFSB_AMBIGUOUS;
    if (run->st == HFSB_AMBIGUOUS) return edit->line > 0; /* more careful */
    while (at != HFSB_NPOS) {
        te_put_naive(content, edit, at, &pos, &want);
        at = edit->replace_all ? te_find(content, edit->old_str, pos)
                               : HFSB_NPOS;
    }
    te_append(&want, hfsb_str_slice(content, pos, content.len));
    ok = run->st == HFSB_OK && !run->r.note[0] &&
         te_same(&run->out, hfsb_buf_str(&want));
    hfsb_buf_free(&want);
    return ok;
}

/* s with each LF as `newline`. */
HFSBI_UNUSED static void te_with_newlines(hfsb_str s, hfsb_str newline,
                                          hfsb_buf *out) {
    size_t i;
    for (i = 0; i < s.len; i++)
        te_append(out, s.ptr[i] == '\n' ? newline
                                      : hfsb_str_slice(s, i, i + 1));
}

/* ---- random texts ---- */

HFSBI_UNUSED static size_t te_below(unsigned long long *seed, size_t n) {
    return n ? t_random(seed) % n : 0;
}

/* A random one of the words, which are divided by '|'. */
HFSBI_UNUSED static hfsb_str te_pick(unsigned long long *seed,
                                     const char         *words) {
    hfsb_str s = hfsb_cstr(words);
    size_t   n = te_below(seed, hfsb_str_count_byte(s, '|') + 1);
    while (n--) s = hfsb_str_slice(s, hfsb_str_find_byte(s, '|') + 1, s.len);
    return hfsb_str_slice(s, 0, hfsb_str_find_byte(s, '|'));
}

/* A few lines of made-up code, with all that the ladder cares about. */
HFSBI_UNUSED static void te_random_lines(unsigned long long *seed,
                                         size_t lines, hfsb_buf *out) {
    while (lines--) {
        size_t words = te_below(seed, 4);
        te_append(out, te_pick(seed, "||  |    |\t|\t\t|        | \t"));
        while (words--) {
            te_append(out,
                      te_pick(seed, "a|b|ab|aa|if x:|f(1)|}|-|--|'q'|\"w\"|"
                                    "...|\xE2\x80\xA6|\xE2\x80\x94|"
                                    "\xE2\x80\x99|\xC3\xA9|1\t|2: |*|\xE2|"
                                    "\xE2\x80\x8B|return"));
            te_append(out, te_pick(seed, "| |  |\t|\xC2\xA0| "));
        }
        te_append(out, te_pick(seed, "|||| |\t "));
        if (lines || te_below(seed, 4)) te_append(out, HFSB_LIT("\n"));
    }
}

/* Lines [from, from + count) of s, the last with or without its LF. */
HFSBI_UNUSED static hfsb_str te_some_lines(hfsb_str s, size_t from,
                                           size_t count, bool newline) {
    hfsb_str rest = s;
    size_t   start, end;
    while (from--) te_line(&rest);
    start = s.len - rest.len;
    while (count--) te_line(&rest);
    end = s.len - rest.len;
    if (!newline && end > start && s.ptr[end - 1] == '\n') end--;
    return hfsb_str_slice(s, start, end);
}

/* A text as someone remembers it: blanks, look-alikes, indentation and blank
   lines off. */
HFSBI_UNUSED static void te_misremember(unsigned long long *seed, hfsb_str s,
                                        hfsb_buf *out) {
    size_t   kind = te_below(seed, 12), number = 1 + te_below(seed, 12);
    hfsb_str added = te_pick(seed, "  |    |\t|\t\t");
    while (s.len) {
        hfsb_str line = te_line(&s), end = HFSB_LIT("");
        size_t   i = 0;
        if (hfsb_str_ends(line, HFSB_LIT("\n"))) {
            line.len--;
            end = HFSB_LIT("\n");
        }
        if (kind == 1) /* another indentation */
            while (i < line.len && (line.ptr[i] == ' ' || line.ptr[i] == '\t'))
                i++;
        if (kind == 2) te_append(out, added);
        if (kind == 3 && hfsb_buf_printf(out, "%zu\t", number++) != HFSB_OK)
            abort();
        if (kind == 4 && hfsb_str_starts(line, HFSB_LIT("  "))) i = 2;
        if (kind == 8 && te_below(seed, 3) == 0)
            te_append(out, HFSB_LIT("\n"));
        if (kind == 9 && !line.len && s.len) continue;
        if (kind == 10 && hfsb_str_starts(line, HFSB_LIT("\t")) &&
            te_below(seed, 2)) {
            te_append(out, HFSB_LIT("    "));
            i = 1;
        }
        if (kind == 11 && te_below(seed, 3) == 0)
            te_append(out, HFSB_LIT(" "));
        for (; i < line.len; i++) {
            hfsb_str c = hfsb_str_slice(line, i, i + 1);
            if (kind == 5 && c.ptr[0] == ' ') te_append(out, c);
            if (kind == 6 && c.ptr[0] == '-') c = HFSB_LIT("\xE2\x80\x93");
            if (kind == 6 && c.ptr[0] == '"') c = HFSB_LIT("\xE2\x80\x9D");
            if (kind == 6 && c.ptr[0] == ' ' && te_below(seed, 2))
                c = HFSB_LIT("\xC2\xA0");
            te_append(out, c);
        }
        if (kind == 7 || (kind == 6 && te_below(seed, 3) == 0))
            te_append(out, te_pick(seed, "| |\t"));
        te_append(out, end);
    }
}

/* A changed version of a text: lines dropped, added, altered. */
HFSBI_UNUSED static void te_change(unsigned long long *seed, hfsb_str s,
                                   hfsb_buf *out) {
    while (s.len) {
        hfsb_str line = te_line(&s);
        size_t   kind = te_below(seed, 6), cut;
        if (kind == 0) continue;
        if (kind == 1) te_random_lines(seed, 1, out);
        if (kind == 2) {
            cut = te_below(seed, line.len);
            te_append(out, hfsb_str_slice(line, 0, cut));
            te_append(out, te_pick(seed, "+|new| |\xE2\x80\x9C"));
            line = hfsb_str_slice(line, cut, line.len);
        }
        te_append(out, line);
    }
}
#endif
