/* fold.c - the lines of a file: where they end, their hashes, and where a
   sequence of them stands. */
#include "edit_private.h"

/* ==== view ==== */

/* a text as a rung of the ladder sees it, with the way back to the
   bytes. */

/* ---- single characters ---- */

/* What a look-alike stands for: one of - ' " space, '.' for the ellipsis,
   'm' for the em dash, '0' for nothing; 0 when the code is none. */
static char hfsbi_look_alike(unsigned long code) {
    if (code == 0x2014) return 'm';
    if ((code >= 0x2010 && code <= 0x2015) || code == 0x2212) return '-';
    if (code >= 0x2018 && code <= 0x201B) return '\'';
    if (code >= 0x201C && code <= 0x201F) return '"';
    if (code == 0x2026) return '.';
    if (code == 0x200B || code == 0xFEFF) return '0';
    if (code == 0xA0 || (code >= 0x2000 && code <= 0x200A) || code == 0x202F ||
        code == 0x205F || code == 0x3000)
        return ' ';
    return 0;
}

/* The look-alike at pos, 0 for none. All of them begin with C2, E2, E3 or
   EF, which keeps other text quick. */
static char hfsbi_look_at(hfsb_str text, size_t pos, size_t *len) {
    unsigned char c = (unsigned char)text.ptr[pos];
    unsigned long code;
    bool          valid;
    if (c != 0xE2 && c != 0xC2 && c != 0xE3 && c != 0xEF) return 0;
    *len = hfsb_utf8_step(text, pos, &code, &valid);
    return valid ? hfsbi_look_alike(code) : '\0';
}

HFSBI_FN bool hfsbi_is_blank(hfsb_str text, size_t pos, unsigned flags,
                             size_t *len) {
    *len = 1;
    if (text.ptr[pos] == ' ' || text.ptr[pos] == '\t') return true;
    return (flags & HFSBI_FOLD_LOOKS) && hfsbi_look_at(text, pos, len) == ' ';
}

HFSBI_FN size_t hfsbi_indent_len(hfsb_str text, unsigned flags) {
    size_t pos = 0, len;
    while (pos < text.len && hfsbi_is_blank(text, pos, flags, &len))
        pos += len;
    return pos;
}

HFSBI_FN bool hfsbi_is_all_blank(hfsb_str text, unsigned flags) {
    size_t pos = 0, len;
    for (; pos < text.len; pos += len) {
        if (hfsbi_is_blank(text, pos, flags, &len)) continue;
        if (text.ptr[pos] == '\n' || text.ptr[pos] == '\r') continue;
        if (!(flags & HFSBI_FOLD_LOOKS) ||
            hfsbi_look_at(text, pos, &len) != '0')
            return false;
    }
    return true;
}

/* Start of the last line of text, which is not empty. */
static size_t hfsbi_last_line(hfsb_str text) {
    size_t n = text.len - (text.ptr[text.len - 1] == '\n' ? 1 : 0);
    while (n > 0 && text.ptr[n - 1] != '\n') n--;
    return n;
}

HFSBI_FN hfsb_str hfsbi_drop_edges(hfsb_str text, unsigned flags, size_t *head,
                                   size_t *tail) {
    size_t heads = 0, tails = 0, n;
    for (; text.len && heads < *head; heads++) {
        n = hfsb_str_find_byte(text, '\n');
        n = n == HFSB_NPOS ? text.len : n + 1;
        if (!hfsbi_is_all_blank(hfsb_str_slice(text, 0, n), flags)) break;
        text = hfsb_str_slice(text, n, text.len);
    }
    for (; text.len && tails < *tail; tails++) {
        n = hfsbi_last_line(text);
        if (!hfsbi_is_all_blank(hfsb_str_slice(text, n, text.len), flags))
            break;
        text = hfsb_str_slice(text, 0, n);
    }
    *head = heads;
    *tail = tails;
    return text;
}

/* ---- folding ---- */

HFSBI_FN hfsbi_folder hfsbi_folder_make(hfsb_str text, unsigned flags) {
    hfsbi_folder f;
    f.text = text;
    f.pos = 0;
    f.flags = flags;
    f.indent = true;
    f.run_end = 0;
    return f;
}

/* Length of the line end at pos: 0, 1 or 2. */
static size_t hfsbi_newline_at(const hfsbi_folder *f, size_t pos) {
    hfsb_str t = f->text;
    if (t.ptr[pos] == '\n') return 1;
    if (t.ptr[pos] != '\r') return 0;
    if (pos + 1 < t.len && t.ptr[pos + 1] == '\n') return 2;
    return f->flags & HFSBI_FOLD_CR ? 1 : 0;
}

/* End of the run of blanks at pos. With LOOKS, characters that stand for
   nothing do not break a run. */
static size_t hfsbi_run_end(const hfsbi_folder *f, size_t pos) {
    size_t len, end = pos;
    while (pos < f->text.len) {
        bool blank = hfsbi_is_blank(f->text, pos, f->flags, &len);
        if (!blank && !((f->flags & HFSBI_FOLD_LOOKS) &&
                        hfsbi_look_at(f->text, pos, &len) == '0'))
            break;
        pos += len;
        if (blank) end = pos;
    }
    /* Invisible characters before a line's end go with the blanks. */
    return pos == f->text.len || hfsbi_newline_at(f, pos) ? pos : end;
}

static void hfsbi_unit_fold(hfsbi_unit *u, const char *to, size_t to_len) {
    memcpy(u->bytes, to, to_len);
    u->out = hfsb_str_make(u->bytes, to_len);
}

/* A blank: alone, or the whole run when that vanishes or collapses. A run
   that stays is measured once (run_end), then taken blank by blank. */
static void hfsbi_fold_blank(hfsbi_folder *f, hfsbi_unit *u, size_t len) {
    if (f->pos >= f->run_end) {
        size_t end = hfsbi_run_end(f, f->pos);
        bool   at_end = end == f->text.len || hfsbi_newline_at(f, end);
        if (at_end && (f->flags & HFSBI_FOLD_TRAIL)) {
            u->len = end - f->pos;
            hfsbi_unit_fold(u, "", 0);
            return;
        }
        if (!f->indent && (f->flags & HFSBI_FOLD_RUNS)) {
            u->len = end - f->pos;
            hfsbi_unit_fold(u, " ", 1);
            return;
        }
        f->run_end = end;
    }
    u->len = len;
    if (len > 1) hfsbi_unit_fold(u, " ", 1);
    else hfsbi_unit_fold(u, f->text.ptr + f->pos, 1);
}

static void hfsbi_fold_look(hfsbi_folder *f, hfsbi_unit *u, char look) {
    if (look == '0') hfsbi_unit_fold(u, "", 0);
    else if (look == '.') hfsbi_unit_fold(u, "...", 3);
    else if (look == 'm' && (f->flags & HFSBI_FOLD_DASHES))
        hfsbi_unit_fold(u, "--", 2);
    else if (look == 'm') hfsbi_unit_fold(u, "-", 1);
    else hfsbi_unit_fold(u, &look, 1);
}

HFSBI_FN bool hfsbi_folder_next(hfsbi_folder *f, hfsbi_unit *u) {
    size_t len = 1;
    char   look = 0;
    if (f->pos >= f->text.len) return false;
    u->start = f->pos;
    u->len = hfsbi_newline_at(f, f->pos);
    if (u->len) {
        hfsbi_unit_fold(u, "\n", 1);
        f->indent = true;
    } else if (hfsbi_is_blank(f->text, f->pos, f->flags, &len)) {
        hfsbi_fold_blank(f, u, len);
    } else {
        if (f->flags & HFSBI_FOLD_LOOKS)
            look = hfsbi_look_at(f->text, f->pos, &len);
        u->len = look ? len : 1;
        if (look) hfsbi_fold_look(f, u, look);
        else hfsbi_unit_fold(u, f->text.ptr + f->pos, 1);
        if (look != '0') f->indent = false;
    }
    f->pos += u->len;
    return true;
}

/* True when the line has, behind its indentation, a tab or two blanks side by
   side before its last word. */
static bool hfsbi_has_run(hfsb_str line) {
    size_t i = hfsbi_indent_len(line, 0);
    for (; i < line.len; i++) {
        if (line.ptr[i] == '\t') return true;
        if (line.ptr[i] == ' ' && i + 1 < line.len && line.ptr[i + 1] == ' ')
            return true;
    }
    return false;
}

/* The folder of a line behind its indentation. */
static hfsbi_folder hfsbi_line_folder(hfsb_str line, unsigned flags) {
    size_t indent = hfsbi_indent_len(line, flags);
    return hfsbi_folder_make(hfsb_str_slice(line, indent, line.len), flags);
}

HFSBI_FN unsigned long long hfsbi_fold_hash(hfsb_str line, unsigned flags) {
    hfsbi_folder       f = hfsbi_line_folder(line, flags);
    hfsbi_unit         u;
    unsigned long long hash = HFSB_FNV_START;
    /* Most lines: nothing inside that a fold would change. */
    if (!(flags & HFSBI_FOLD_CR) && (flags & HFSBI_FOLD_TRAIL) &&
        hfsbi_utf8_ascii(f.text.ptr, f.text.len) == f.text.len &&
        hfsb_str_find_byte(f.text, '\r') == HFSB_NPOS &&
        !((flags & HFSBI_FOLD_RUNS) && hfsbi_has_run(hfsbi_trim_end(f.text))))
        return hfsb_fnv(hfsbi_trim_end(f.text));
    while (hfsbi_folder_next(&f, &u)) hash = hfsb_fnv_add(hash, u.out);
    return hash;
}

HFSBI_FN bool hfsbi_fold_equal(hfsb_str a, hfsb_str b, unsigned flags) {
    hfsbi_folder fa = hfsbi_line_folder(a, flags);
    hfsbi_folder fb = hfsbi_line_folder(b, flags);
    hfsbi_unit   ua, ub;
    size_t       i = 0, j = 0;
    ua.out.len = ub.out.len = 0;
    for (;;) {
        bool more_a = true, more_b = true;
        while (i == ua.out.len && more_a) {
            more_a = hfsbi_folder_next(&fa, &ua);
            i = 0;
        }
        while (j == ub.out.len && more_b) {
            more_b = hfsbi_folder_next(&fb, &ub);
            j = 0;
        }
        if (!more_a || !more_b) return more_a == more_b;
        if (ua.out.ptr[i++] != ub.out.ptr[j++]) return false;
    }
}

/* ---- views ---- */

static bool hfsbi_view_add(hfsbi_view *v, size_t view_len, size_t text_pos,
                           size_t text_len) {
    hfsbi_piece *p = (hfsbi_piece *)hfsbi_array_grow(
        &v->text.alloc, v->pieces, &v->cap, v->count + 1, sizeof *v->pieces);
    if (!p) return false;
    v->pieces = p;
    p += v->count++;
    p->view_pos = v->text.len;
    p->view_len = view_len;
    p->text_pos = text_pos;
    p->text_len = text_len;
    return true;
}

/* No fold makes a text longer, so there is room. */
static void hfsbi_view_put(hfsbi_view *v, hfsb_str s) {
    memcpy(v->text.ptr + v->text.len, s.ptr, s.len);
    v->text.len += s.len;
}

/* A whole line at once, where the folds only look at its end; false when they
   look inside. *pos moves behind it. */
static bool hfsbi_view_line(hfsbi_view *v, hfsb_str text, unsigned flags,
                            size_t *pos, bool *ok) {
    hfsb_str rest = hfsb_str_slice(text, *pos, text.len), line;
    size_t   end = hfsb_str_find_byte(rest, '\n'), len, newline;
    if (flags & HFSBI_FOLD_CR) return false;
    newline = end == HFSB_NPOS ? 0 : 1;
    len = end == HFSB_NPOS ? rest.len : end;
    if (newline && len > 0 && rest.ptr[len - 1] == '\r') {
        newline = 2;
        len--;
    }
    line = hfsb_str_slice(rest, 0, len);
    if ((flags & HFSBI_FOLD_LOOKS) && line.len &&
        hfsbi_utf8_ascii(line.ptr, line.len) < line.len)
        return false;
    if (flags & HFSBI_FOLD_TRAIL)
        while (line.len && (line.ptr[line.len - 1] == ' ' ||
                            line.ptr[line.len - 1] == '\t'))
            line.len--;
    if ((flags & HFSBI_FOLD_RUNS) && hfsbi_has_run(line)) return false;
    if (line.len) hfsbi_view_put(v, line);
    if (line.len < len)
        *ok = hfsbi_view_add(v, 0, *pos + line.len, len - line.len);
    v->trimmed = line.len < len && !newline;
    if (*ok && newline == 2) *ok = hfsbi_view_add(v, 1, *pos + len, 2);
    if (newline) hfsbi_view_put(v, HFSB_LIT("\n"));
    *pos += len + newline;
    return true;
}

/* Unit by unit up to the end of the line. */
static bool hfsbi_view_units(hfsbi_view *v, hfsbi_folder *f) {
    hfsbi_unit u;
    size_t     len;
    while (hfsbi_folder_next(f, &u)) {
        if ((u.len != u.out.len || u.out.ptr[0] != f->text.ptr[u.start]) &&
            !hfsbi_view_add(v, u.out.len, u.start, u.len))
            return false;
        hfsbi_view_put(v, u.out);
        v->trimmed = f->pos == f->text.len && !u.out.len &&
                     hfsbi_is_blank(f->text, u.start, f->flags, &len);
        if (u.out.len && u.out.ptr[0] == '\n') break;
    }
    return true;
}

HFSBI_FN hfsb_status hfsbi_view_build(hfsbi_view *v, hfsb_str text,
                                      unsigned flags) {
    hfsbi_folder f = hfsbi_folder_make(text, flags);
    hfsb_status  st;
    bool         ok = true;
    hfsb_buf_truncate(&v->text, 0);
    v->count = 0;
    v->trimmed = false;
    st = hfsb_buf_reserve(&v->text, text.len);
    if (st != HFSB_OK) return st;
    while (ok && f.pos < text.len)
        if (!hfsbi_view_line(v, text, flags, &f.pos, &ok))
            ok = hfsbi_view_units(v, &f);
    v->text.ptr[v->text.len] = '\0';
    return ok ? HFSB_OK : HFSB_NOMEM;
}

HFSBI_FN void hfsbi_view_free(hfsbi_view *v) {
    hfsbi_array_free(&v->text.alloc, v->pieces, v->cap, sizeof *v->pieces);
    v->pieces = NULL;
    v->count = v->cap = 0;
    hfsb_buf_free(&v->text);
}

/* Number of pieces that begin before view_pos. */
static size_t hfsbi_view_before(const hfsbi_view *v, size_t view_pos) {
    size_t lo = 0, hi = v->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (v->pieces[mid].view_pos < view_pos) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* view_pos in the original, with the first n pieces (which all begin at or
   before it) behind us. False inside a piece. */
static bool hfsbi_view_map(const hfsbi_view *v, size_t n, size_t view_pos,
                           size_t *text_pos) {
    const hfsbi_piece *p;
    if (!n) {
        *text_pos = view_pos;
        return true;
    }
    p = v->pieces + n - 1;
    if (view_pos < p->view_pos + p->view_len) return false;
    *text_pos =
        p->text_pos + p->text_len + (view_pos - p->view_pos - p->view_len);
    return true;
}

HFSBI_FN bool hfsbi_view_start(const hfsbi_view *v, size_t view_pos,
                               size_t *text_pos) {
    size_t n = hfsbi_view_before(v, view_pos);
    /* Dropped characters in front of a match are not part of it. */
    while (n < v->count && v->pieces[n].view_pos == view_pos &&
           !v->pieces[n].view_len)
        n++;
    return hfsbi_view_map(v, n, view_pos, text_pos);
}

HFSBI_FN bool hfsbi_view_end(const hfsbi_view *v, size_t view_pos,
                             bool whole_line, size_t *text_pos) {
    if (whole_line) return hfsbi_view_start(v, view_pos, text_pos);
    return hfsbi_view_map(v, hfsbi_view_before(v, view_pos), view_pos,
                          text_pos);
}

/* ---- the file ---- */

HFSBI_FN hfsbi_file hfsbi_file_make(hfsb_str content, bool keep_mark) {
    hfsbi_file file = HFSB_INIT;
    hfsb_str   mark = HFSB_LIT("\xEF\xBB\xBF");
    file.offset = !keep_mark && hfsb_str_starts(content, mark) ? mark.len : 0;
    file.text = hfsb_str_slice(content, file.offset, content.len);
    return file;
}

HFSBI_FN void hfsbi_file_scan(hfsbi_file *file) {
    file->has_cr = hfsb_str_find_byte(file->text, '\r') != HFSB_NPOS;
    file->lone_cr =
        file->has_cr && hfsb_str_find_byte(file->text, '\n') == HFSB_NPOS;
}

static size_t hfsbi_find_line_end(const hfsbi_file *file, size_t pos,
                                  size_t *len) {
    hfsb_str rest = hfsb_str_slice(file->text, pos, file->text.len);
    size_t   at = hfsb_str_find_byte(rest, file->lone_cr ? '\r' : '\n');
    *len = at == HFSB_NPOS ? 0 : 1;
    if (at == HFSB_NPOS) return file->text.len;
    if (!file->lone_cr && at > 0 && rest.ptr[at - 1] == '\r') {
        *len = 2;
        at--;
    }
    return pos + at;
}

HFSBI_FN size_t hfsbi_file_line_end(const hfsbi_file *file, size_t pos,
                                    size_t *len) {
    hfsbi_line_cache *cache = file->cache;
    if (!cache) return hfsbi_find_line_end(file, pos, len);
    if (pos) cache++;
    if (!cache->filled || pos < cache->from || pos > cache->at) {
        cache->at = hfsbi_find_line_end(file, pos, &cache->len);
        cache->from = pos;
        cache->filled = true;
    }
    *len = cache->len;
    return cache->at;
}

HFSBI_FN hfsb_str hfsbi_file_newline(const hfsbi_file *file, size_t pos) {
    size_t len, at = hfsbi_file_line_end(file, pos, &len);
    if (!len) at = hfsbi_file_line_end(file, 0, &len);
    return hfsb_str_slice(file->text, at, at + len);
}

/* ---- rows: lines with their hashes ---- */

HFSBI_FN hfsb_status hfsbi_rows_of(const hfsb_alloc *alloc,
                                   const hfsbi_file *file, size_t from,
                                   size_t to, unsigned flags,
                                   hfsbi_rows *rows) {
    rows->count = 0;
    while (from < to) {
        hfsbi_row *row = (hfsbi_row *)hfsbi_array_grow(
            alloc, rows->items, &rows->cap, rows->count + 1, sizeof *row);
        size_t len;
        if (!row) return HFSB_NOMEM;
        rows->items = row;
        row += rows->count++;
        row->start = from;
        row->text_end = hfsbi_file_line_end(file, from, &len);
        row->end = from = row->text_end + len;
        row->hash = hfsbi_fold_hash(
            hfsb_str_slice(file->text, row->start, row->text_end), flags);
    }
    return HFSB_OK;
}

HFSBI_FN void hfsbi_rows_free(const hfsb_alloc *alloc, hfsbi_rows *rows) {
    hfsbi_array_free(alloc, rows->items, rows->cap, sizeof *rows->items);
    memset(rows, 0, sizeof *rows);
}

HFSBI_FN hfsb_status hfsbi_row_search_begin(const hfsb_alloc *alloc,
                                            hfsbi_row_search *search,
                                            const hfsbi_rows *olds,
                                            const hfsbi_rows *rows,
                                            size_t from, size_t to) {
    const hfsbi_row *n = olds->items;
    size_t          *fail = (size_t *)hfsbi_array_grow(
                 alloc, search->fail, &search->cap, olds->count, sizeof *fail);
    size_t i, k = 0;
    if (!fail) return HFSB_NOMEM;
    fail[0] = 0;
    for (i = 1; i < olds->count; i++) {
        while (k && n[i].hash != n[k].hash) k = fail[k - 1];
        if (n[i].hash == n[k].hash) k++;
        fail[i] = k;
    }
    search->fail = fail;
    search->olds = olds;
    search->rows = rows;
    search->next = from;
    search->to = to;
    search->matched = 0;
    return HFSB_OK;
}

HFSBI_FN bool hfsbi_row_search_next(hfsbi_row_search *search, size_t *at) {
    const hfsbi_row *n = search->olds->items, *h = search->rows->items;
    size_t           k = search->matched, m = search->olds->count;
    while (search->next < search->to) {
        unsigned long long hash = h[search->next++].hash;
        while (k && hash != n[k].hash) k = search->fail[k - 1];
        if (hash == n[k].hash) k++;
        if (k < m) continue;
        search->matched = search->fail[k - 1];
        *at = search->next - k;
        return true;
    }
    return false;
}

HFSBI_FN void hfsbi_row_search_free(const hfsb_alloc *alloc,
                                    hfsbi_row_search *search) {
    hfsbi_array_free(alloc, search->fail, search->cap, sizeof *search->fail);
    memset(search, 0, sizeof *search);
}
