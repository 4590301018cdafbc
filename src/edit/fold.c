/* fold.c - folds: texts compared without the differences that do not count.

   A folder walks a text and replaces each character by what it counts as: a
   typographic quote by ', trailing blanks by nothing. A view is the whole
   text folded, with the list of places where it differs from the original, so
   that a match in the view can be cut out of the original byte for byte.

   Folding a text never makes it longer. Every walk is linear: a run of blanks
   is measured once, however it ends. hfsb_str_find() is the only search. */
#include "edit_private.h"

/* ---- single characters ---- */

/* The ASCII character a look-alike counts as: one of - ' " and space, '.' for
   the ellipsis, 'm' for the em dash, '0' for nothing; 0 if it is not one. */
static char hfsbi_look_alike(unsigned long code) {
    if (code == 0x2014) return 'm';
    if ((code >= 0x2010 && code <= 0x2015) || code == 0x2212) return '-';
    if (code >= 0x2018 && code <= 0x201B) return '\'';
    if (code >= 0x201C && code <= 0x201F) return '"';
    if (code == 0x2026) return '.';
    if (code == 0x200B || code == 0x2060 || code == 0xFEFF) return '0';
    if (code == 0xA0 || (code >= 0x2000 && code <= 0x200A) || code == 0x202F ||
        code == 0x205F || code == 0x3000)
        return ' ';
    return 0;
}

/* The look-alike at pos, 0 if there is none. All of them start with C2, E2,
   E3 or EF, so other text is decided by its first byte. */
static char hfsbi_look_at(hfsb_str text, size_t pos, size_t *len) {
    unsigned char c = (unsigned char)text.ptr[pos];
    unsigned long code;
    bool          valid;
    if (c != 0xE2 && c != 0xC2 && c != 0xE3 && c != 0xEF) return 0;
    *len = hfsb_utf8_step(text, pos, &code, &valid);
    return valid ? hfsbi_look_alike(code) : '\0';
}

/* True for an invisible character that can carry meaning: a soft hyphen,
   joiners and directional marks, invisible operators, variation selectors. */
static bool hfsbi_is_joiner(unsigned long code) {
    return code == 0xAD || (code >= 0x200C && code <= 0x200F) ||
           (code >= 0x202A && code <= 0x202E) ||
           (code >= 0x2061 && code <= 0x2069) ||
           (code >= 0xFE00 && code <= 0xFE0F);
}

static bool hfsbi_joiner_at(hfsb_str text, size_t pos, size_t *len) {
    unsigned char c = (unsigned char)text.ptr[pos];
    unsigned long code;
    bool          valid;
    if (c != 0xC2 && c != 0xE2 && c != 0xEF) return false;
    *len = hfsb_utf8_step(text, pos, &code, &valid);
    return valid && hfsbi_is_joiner(code);
}

/* True for a character that the folds drop wherever it is. */
static bool hfsbi_is_invisible(hfsb_str text, size_t pos, unsigned folds,
                               size_t *len) {
    return ((folds & HFSBI_FOLD_LOOKS) &&
            hfsbi_look_at(text, pos, len) == '0') ||
           ((folds & HFSBI_FOLD_JOINERS) && hfsbi_joiner_at(text, pos, len));
}

HFSBI_FN bool hfsbi_has_invisible(hfsb_str text) {
    const unsigned folds = HFSBI_FOLD_LOOKS | HFSBI_FOLD_JOINERS;
    size_t         len, pos = hfsbi_utf8_ascii(text.ptr, text.len);
    while (pos < text.len) {
        if (hfsbi_is_invisible(text, pos, folds, &len)) return true;
        pos++;
        pos += hfsbi_utf8_ascii(text.ptr + pos, text.len - pos);
    }
    return false;
}

HFSBI_FN bool hfsbi_blank_at(hfsb_str text, size_t pos, unsigned folds,
                             size_t *len) {
    *len = 1;
    if (hfsbi_is_blank(text.ptr[pos])) return true;
    return (folds & HFSBI_FOLD_LOOKS) && hfsbi_look_at(text, pos, len) == ' ';
}

HFSBI_FN size_t hfsbi_indent_len(hfsb_str text, unsigned folds) {
    size_t pos = 0, len;
    while (pos < text.len && hfsbi_blank_at(text, pos, folds, &len))
        pos += len;
    return pos;
}

HFSBI_FN bool hfsbi_is_all_blank(hfsb_str text, unsigned folds) {
    size_t pos = 0, len;
    for (; pos < text.len; pos += len)
        if (!hfsbi_blank_at(text, pos, folds, &len) && text.ptr[pos] != '\n' &&
            text.ptr[pos] != '\r' &&
            !hfsbi_is_invisible(text, pos, folds, &len))
            return false;
    return true;
}

/* Start of the last line of text, which is not empty. */
static size_t hfsbi_last_line(hfsb_str text) {
    size_t n = text.len - (text.ptr[text.len - 1] == '\n' ? 1 : 0);
    while (n > 0 && text.ptr[n - 1] != '\n') n--;
    return n;
}

HFSBI_FN hfsb_str hfsbi_drop_edges(hfsb_str text, unsigned folds, size_t *head,
                                   size_t *tail) {
    size_t heads = 0, tails = 0, n;
    for (; text.len && heads < *head; heads++) {
        n = hfsb_str_find_byte(text, '\n');
        n = n == HFSB_NPOS ? text.len : n + 1;
        if (!hfsbi_is_all_blank(hfsb_str_slice(text, 0, n), folds)) break;
        text = hfsb_str_slice(text, n, text.len);
    }
    for (; text.len && tails < *tail; tails++) {
        n = hfsbi_last_line(text);
        if (!hfsbi_is_all_blank(hfsb_str_slice(text, n, text.len), folds))
            break;
        text = hfsb_str_slice(text, 0, n);
    }
    *head = heads;
    *tail = tails;
    return text;
}

/* ---- folders ---- */

HFSBI_FN hfsbi_folder hfsbi_folder_make(hfsb_str text, unsigned folds) {
    hfsbi_folder f = HFSB_INIT;
    f.text = text;
    f.folds = folds;
    f.indent = true;
    return f;
}

/* Length of the line end at pos: 0, 1 or 2. */
static size_t hfsbi_line_end_len(hfsb_str text, size_t pos, unsigned folds) {
    if (text.ptr[pos] == '\n') return 1;
    if (text.ptr[pos] != '\r') return 0;
    if (pos + 1 < text.len && text.ptr[pos + 1] == '\n') return 2;
    return folds & HFSBI_FOLD_CR ? 1 : 0;
}

static bool hfsbi_ends_line_at(const hfsbi_folder *f, size_t pos) {
    return pos == f->text.len || hfsbi_line_end_len(f->text, pos, f->folds);
}

/* End of the run of blanks at pos. Invisible characters do not break a run;
   those at its end belong to it only if the line ends there. */
static size_t hfsbi_run_end(const hfsbi_folder *f, size_t pos) {
    size_t len, end = pos;
    while (pos < f->text.len) {
        bool blank = hfsbi_blank_at(f->text, pos, f->folds, &len);
        if (!blank && !hfsbi_is_invisible(f->text, pos, f->folds, &len)) break;
        pos += len;
        if (blank) end = pos;
    }
    return hfsbi_ends_line_at(f, pos) ? pos : end;
}

static void hfsbi_fold_to(hfsbi_folded *step, const char *to, size_t len) {
    memcpy(step->bytes, to, len);
    step->out = hfsb_str_make(step->bytes, len);
}

/* A blank alone, or a whole run that vanishes or becomes one space. A run that
   stays is measured once (run_end), then taken blank by blank. */
static void hfsbi_fold_blank(hfsbi_folder *f, hfsbi_folded *step, size_t len) {
    bool stays = f->pos < f->run_end;
    if (f->pos == f->line && (f->folds & HFSBI_FOLD_INDENT)) {
        step->len = hfsbi_indent_len(
            hfsb_str_slice(f->text, f->pos, f->text.len), f->folds);
        hfsbi_fold_to(step, "", 0);
        return;
    }
    if (!stays) {
        size_t end = hfsbi_run_end(f, f->pos);
        bool   vanishes =
            (f->folds & HFSBI_FOLD_TRAIL) && hfsbi_ends_line_at(f, end);
        if (vanishes || (!f->indent && (f->folds & HFSBI_FOLD_RUNS))) {
            step->len = end - f->pos;
            hfsbi_fold_to(step, " ", vanishes ? 0 : 1);
            return;
        }
        f->run_end = end;
    }
    step->len = len;
    hfsbi_fold_to(step, len > 1 ? " " : f->text.ptr + f->pos, 1);
}

static void hfsbi_fold_look(const hfsbi_folder *f, hfsbi_folded *step,
                            char look) {
    bool dashes = look == 'm' && (f->folds & HFSBI_FOLD_DASHES);
    if (look == '.') hfsbi_fold_to(step, "...", 3);
    else if (look == 'm') hfsbi_fold_to(step, "--", dashes ? 2 : 1);
    else hfsbi_fold_to(step, &look, 1);
}

HFSBI_FN bool hfsbi_folder_next(hfsbi_folder *f, hfsbi_folded *step) {
    size_t len = 1;
    char   look = 0;
    if (f->pos >= f->text.len) return false;
    step->start = f->pos;
    step->len = hfsbi_line_end_len(f->text, f->pos, f->folds);
    if (step->len) {
        bool vanishes = (f->folds & HFSBI_FOLD_LINES) && f->indent;
        hfsbi_fold_to(step, "\n", vanishes ? 0 : 1);
        f->indent = true;
        f->line = f->pos + step->len;
    } else if (hfsbi_blank_at(f->text, f->pos, f->folds, &len)) {
        hfsbi_fold_blank(f, step, len);
    } else if (hfsbi_is_invisible(f->text, f->pos, f->folds, &len)) {
        step->len = len;
        hfsbi_fold_to(step, "", 0);
    } else {
        if (f->folds & HFSBI_FOLD_LOOKS)
            look = hfsbi_look_at(f->text, f->pos, &len);
        step->len = look ? len : 1;
        if (look) hfsbi_fold_look(f, step, look);
        else hfsbi_fold_to(step, f->text.ptr + f->pos, 1);
        f->indent = false;
    }
    f->pos += step->len;
    return true;
}

HFSBI_FN void hfsbi_fold(hfsb_str text, unsigned folds, hfsb_buf *out) {
    hfsbi_folder f = hfsbi_folder_make(text, folds);
    hfsbi_folded step;
    while (hfsbi_folder_next(&f, &step)) hfsb_buf_append(out, step.out);
}

/* ---- views ---- */

/* Records that the next view_len bytes of the view are other bytes in the
   text. */
static bool hfsbi_view_note(hfsbi_view *v, size_t view_len, size_t text_pos,
                            size_t text_len) {
    hfsbi_view_change *c = (hfsbi_view_change *)hfsbi_array_grow(
        &v->text.alloc, v->changes, &v->cap, v->count + 1, sizeof *c);
    if (!c) return false;
    v->changes = c;
    c += v->count++;
    c->view_pos = v->text.len;
    c->view_len = view_len;
    c->text_pos = text_pos;
    c->text_len = text_len;
    return true;
}

/* The view was given room for the whole text. */
static void hfsbi_view_put(hfsbi_view *v, hfsb_str s) {
    if (s.len) memcpy(v->text.ptr + v->text.len, s.ptr, s.len);
    v->text.len += s.len;
}

/* True when the line contains, after its indentation, a tab or two adjacent
   blanks. */
static bool hfsbi_has_run(hfsb_str line) {
    size_t i = hfsbi_indent_len(line, 0);
    for (; i < line.len; i++)
        if (line.ptr[i] == '\t' ||
            (line.ptr[i] == ' ' && i + 1 < line.len && line.ptr[i + 1] == ' '))
            return true;
    return false;
}

/* A line end: nothing at the end of the text. */
static bool hfsbi_view_newline(hfsbi_view *v, size_t text_pos, size_t len) {
    if (!len) return true;
    if (len == 2 && !hfsbi_view_note(v, 1, text_pos, 2)) return false;
    hfsbi_view_put(v, HFSB_LIT("\n"));
    return true;
}

/* Folds a whole line at once where the folds only concern its ends; false
   when they concern its inside. *pos moves to the next line. */
static bool hfsbi_view_line(hfsbi_view *v, hfsb_str text, unsigned folds,
                            size_t *pos, bool *ok) {
    hfsb_str rest = hfsb_str_slice(text, *pos, text.len), line;
    size_t   len, newline = 1, indent = 0;
    if (folds & HFSBI_FOLD_CR) return false;
    len = hfsb_str_find_byte(rest, '\n');
    if (len == HFSB_NPOS) {
        len = rest.len;
        newline = 0;
    } else if (len > 0 && rest.ptr[len - 1] == '\r') {
        newline = 2;
        len--;
    }
    line = hfsb_str_slice(rest, 0, len);
    if ((folds & (HFSBI_FOLD_LOOKS | HFSBI_FOLD_JOINERS)) &&
        hfsbi_utf8_ascii(line.ptr, line.len) < line.len)
        return false;
    if (folds & HFSBI_FOLD_INDENT) indent = hfsbi_indent_len(line, 0);
    if (folds & HFSBI_FOLD_TRAIL)
        while (line.len > indent && (line.ptr[line.len - 1] == ' ' ||
                                     line.ptr[line.len - 1] == '\t'))
            line.len--;
    if ((folds & HFSBI_FOLD_RUNS) && hfsbi_has_run(line)) return false;
    if ((folds & HFSBI_FOLD_LINES) && line.len == indent) {
        *ok = hfsbi_view_note(v, 0, *pos, len + newline);
        *pos += len + newline;
        return true;
    }
    if (indent) *ok = hfsbi_view_note(v, 0, *pos, indent);
    hfsbi_view_put(v, hfsb_str_slice(line, indent, line.len));
    v->trimmed = line.len < len && !newline;
    if (*ok && line.len < len)
        *ok = hfsbi_view_note(v, 0, *pos + line.len, len - line.len);
    if (*ok) *ok = hfsbi_view_newline(v, *pos + len, newline);
    *pos += len + newline;
    return true;
}

/* Character by character up to the end of the line. */
static bool hfsbi_view_chars(hfsbi_view *v, hfsbi_folder *f) {
    hfsbi_folded step;
    size_t       len;
    while (hfsbi_folder_next(f, &step)) {
        if ((step.len != step.out.len ||
             step.out.ptr[0] != f->text.ptr[step.start]) &&
            !hfsbi_view_note(v, step.out.len, step.start, step.len))
            return false;
        hfsbi_view_put(v, step.out);
        v->trimmed = f->pos == f->text.len && !step.out.len &&
                     hfsbi_blank_at(f->text, step.start, f->folds, &len);
        if (f->pos == f->line) break;
    }
    return true;
}

/* Adds a LF that is not in the text. */
static bool hfsbi_view_add_newline(hfsbi_view *v, size_t text_pos) {
    if (!hfsbi_view_note(v, 1, text_pos, 0)) return false;
    hfsbi_view_put(v, HFSB_LIT("\n"));
    return true;
}

HFSBI_FN hfsb_status hfsbi_view_build(hfsbi_view *v, hfsb_str text,
                                      unsigned folds) {
    hfsbi_folder f = hfsbi_folder_make(text, folds);
    hfsb_status  st;
    bool         ok;
    hfsb_buf_truncate(&v->text, 0);
    v->count = 0;
    v->trimmed = false;
    if (text.len > HFSB_NPOS - 2) return HFSB_LIMIT;
    st = hfsb_buf_reserve(&v->text, text.len + 2);
    if (st != HFSB_OK) return st;
    ok = hfsbi_view_add_newline(v, 0);
    while (ok && f.pos < text.len)
        if (!hfsbi_view_line(v, text, folds, &f.pos, &ok))
            ok = hfsbi_view_chars(v, &f);
        else f.line = f.pos;
    v->closed = !(folds & HFSBI_FOLD_INDENT) ||
                (text.len && !hfsbi_line_end_len(text, text.len - 1, folds));
    if (ok && v->closed) ok = hfsbi_view_add_newline(v, text.len);
    v->text.ptr[v->text.len] = '\0';
    return ok ? HFSB_OK : HFSB_NOMEM;
}

HFSBI_FN void hfsbi_view_free(hfsbi_view *v) {
    hfsbi_array_free(&v->text.alloc, v->changes, v->cap, sizeof *v->changes);
    v->changes = NULL;
    v->count = v->cap = 0;
    hfsb_buf_free(&v->text);
}

/* Number of changes that start before view_pos. */
static size_t hfsbi_changes_before(const hfsbi_view *v, size_t view_pos) {
    size_t lo = 0, hi = v->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (v->changes[mid].view_pos < view_pos) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* Number of changes, n or more, up to view_pos and what vanished there. */
static size_t hfsbi_changes_until(const hfsbi_view *v, size_t n,
                                  size_t view_pos) {
    while (n < v->count &&
           v->changes[n].view_pos + v->changes[n].view_len <= view_pos)
        n++;
    return n;
}

/* view_pos in the original, n changes after its start. */
static bool hfsbi_view_map(const hfsbi_view *v, size_t n, size_t view_pos,
                           size_t *text_pos) {
    const hfsbi_view_change *c = n ? v->changes + n - 1 : NULL;
    if (c && view_pos < c->view_pos + c->view_len) return false;
    *text_pos =
        c ? c->text_pos + c->text_len + (view_pos - c->view_pos - c->view_len)
          : view_pos;
    return true;
}

HFSBI_FN bool hfsbi_view_before(const hfsbi_view *v, size_t view_pos,
                                size_t *text_pos) {
    return hfsbi_view_map(v, hfsbi_changes_before(v, view_pos), view_pos,
                          text_pos);
}

HFSBI_FN bool hfsbi_view_after(const hfsbi_view *v, size_t view_pos,
                               size_t *text_pos) {
    size_t n =
        hfsbi_changes_until(v, hfsbi_changes_before(v, view_pos), view_pos);
    return hfsbi_view_map(v, n, view_pos, text_pos);
}

/* ---- all places of a pattern ---- */

/* Two consecutive places, `gap` apart, show that the pattern repeats after
   `gap` bytes. If that is at most half of it, the next place is either `gap`
   bytes on, and a comparison of that many bytes decides, or more than half a
   pattern away. So searches advance by half a pattern each. */
HFSBI_FN size_t hfsbi_occurrence_next(hfsbi_occurrences *f, size_t from) {
    size_t   gap = f->gap, next = f->at + gap, end = next + f->pattern.len;
    size_t   last = f->at;
    hfsb_str rest = hfsb_str_slice(f->text, from, f->text.len);
    if (gap && gap <= f->pattern.len / 2 && from <= next &&
        end <= f->text.len &&
        !memcmp(f->text.ptr + end - gap, f->text.ptr + end - 2 * gap, gap)) {
        f->at = next;
        return next;
    }
    if (!f->needle.text.len) f->needle = hfsbi_needle_make(f->pattern);
    f->at = hfsbi_needle_find(&f->needle, rest);
    if (f->at == HFSB_NPOS) return HFSB_NPOS;
    f->at += from;
    f->gap = from == last + 1 ? f->at - last : 0;
    return f->at;
}

/* ---- the edited file ---- */

HFSBI_FN hfsbi_edit_text hfsbi_edit_text_make(hfsb_str content,
                                              bool     keep_mark) {
    hfsbi_edit_text file = HFSB_INIT;
    hfsb_str        mark = HFSB_LIT("\xEF\xBB\xBF");
    file.offset = !keep_mark && hfsb_str_starts(content, mark) ? mark.len : 0;
    file.text = hfsb_str_slice(content, file.offset, content.len);
    return file;
}

HFSBI_FN void hfsbi_edit_text_scan(hfsbi_edit_text *file) {
    file->has_cr = hfsb_str_find_byte(file->text, '\r') != HFSB_NPOS;
    file->lone_cr =
        file->has_cr && hfsb_str_find_byte(file->text, '\n') == HFSB_NPOS;
}

HFSBI_FN size_t hfsbi_edit_line_end(const hfsbi_edit_text *file, size_t pos,
                                    size_t *len) {
    hfsb_str rest = hfsb_str_slice(file->text, pos, file->text.len);
    size_t   at = 0;
    if (file->mixed_cr)
        while (at < rest.len && rest.ptr[at] != '\r' && rest.ptr[at] != '\n')
            at++;
    else at = hfsb_str_find_byte(rest, file->lone_cr ? '\r' : '\n');
    *len = at >= rest.len ? 0 : 1;
    if (at >= rest.len) return file->text.len;
    if (rest.ptr[at] == '\r' && at + 1 < rest.len && rest.ptr[at + 1] == '\n')
        *len = 2;
    if (rest.ptr[at] == '\n' && at > 0 && rest.ptr[at - 1] == '\r') {
        *len = 2;
        at--;
    }
    return pos + at;
}

HFSBI_FN bool hfsbi_starts_line(const hfsbi_edit_text *file, size_t pos) {
    const char *text = file->text.ptr;
    if (pos == 0 || text[pos - 1] == (file->lone_cr ? '\r' : '\n'))
        return true;
    return file->mixed_cr && text[pos - 1] == '\r' &&
           (pos == file->text.len || text[pos] != '\n');
}

HFSBI_FN bool hfsbi_starts_text(const hfsbi_edit_text *file, size_t pos) {
    while (pos > 0 && hfsbi_is_blank(file->text.ptr[pos - 1])) pos--;
    return hfsbi_starts_line(file, pos);
}

HFSBI_FN hfsb_str hfsbi_newline_at(const hfsbi_edit_text *file, size_t pos) {
    size_t len, at = hfsbi_edit_line_end(file, pos, &len);
    if (!len) at = hfsbi_edit_line_end(file, 0, &len);
    return hfsb_str_slice(file->text, at, at + len);
}

HFSBI_FN hfsb_str hfsbi_fold_newlines(const hfsbi_edit_text *file,
                                      hfsb_str text, hfsb_buf *copy) {
    size_t mark = copy->len;
    if (hfsb_str_find_byte(text, '\r') == HFSB_NPOS) return text;
    hfsbi_fold(text, file->lone_cr ? HFSBI_FOLD_CR : 0, copy);
    return hfsb_str_slice(hfsb_buf_str(copy), mark, copy->len);
}

HFSBI_FN size_t hfsbi_count_lines(const hfsbi_edit_text *file, hfsb_str text) {
    return hfsb_str_count_byte(text, file->lone_cr ? '\r' : '\n');
}
