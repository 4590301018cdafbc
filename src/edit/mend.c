/* mend.c - give both texts the blank lines of the file.

   Where blank lines do not count, old_text and the match have the same other
   lines, with more or fewer blank lines between them. Each such gap in
   old_text is replaced by that of the file. A gap in new_text is one of
   old_text's if the same lines surround it; it is then replaced in the same
   way, so that what did not change stays as it is in the file. Where a line
   next to a gap that differs was changed, added or removed, it is not clear
   how many blank lines are meant: the edit is refused. */
#include "edit_private.h"

/* The lines of a text that are not blank. */
typedef struct hfsbi_full_lines {
    hfsb_str *lines;
    size_t   *at;    /* their place in the text */
    size_t   *gap;   /* blank lines before each */
    hfsb_str *blank; /* these lines; ptr NULL: they are empty */
    size_t    count, cap;
    hfsb_str  tail; /* blank lines after the last */
} hfsbi_full_lines;

/* old_text, new_text and the matched part of the file, without blank lines. */
typedef struct hfsbi_mending {
    hfsbi_full_lines olds, news, file;
    size_t          *same; /* by new line: its old line, HFSB_NPOS */
    size_t           line; /* of news, where the blank lines are not clear */
} hfsbi_mending;

static void hfsbi_full_lines_free(const hfsb_alloc *alloc,
                                  hfsbi_full_lines *f) {
    hfsbi_array_free(alloc, f->lines, f->cap, sizeof *f->lines);
    hfsbi_array_free(alloc, f->at, f->cap, sizeof *f->at);
    hfsbi_array_free(alloc, f->gap, f->cap, sizeof *f->gap);
    hfsbi_array_free(alloc, f->blank, f->cap, sizeof *f->blank);
}

/* The arrays have room for all lines. Text after the last newline is a
   line. */
static void hfsbi_full_lines_fill(hfsbi_full_lines *f, hfsb_str text,
                                  char newline, unsigned folds) {
    size_t at, end, gap = 0, start = 0, pos = 0;
    for (at = 0; pos < text.len; at++, pos = end + 1) {
        hfsb_str line = hfsb_str_slice(text, pos, text.len);
        size_t   len = hfsb_str_find_byte(line, newline);
        if (len != HFSB_NPOS) line.len = len;
        end = pos + line.len;
        if (hfsbi_is_all_blank(line, folds)) {
            gap++;
            continue;
        }
        f->lines[f->count] = line;
        f->at[f->count] = at;
        f->gap[f->count] = gap;
        f->blank[f->count++] = hfsb_str_slice(text, start, pos);
        gap = 0;
        start = end + 1;
    }
    f->tail = hfsb_str_slice(text, start, text.len);
}

static hfsb_status hfsbi_full_lines_make(const hfsb_alloc *alloc,
                                         hfsbi_full_lines *f, hfsb_str text,
                                         char newline, unsigned folds) {
    f->cap = hfsb_str_count_byte(text, newline) + 1;
    f->lines = (hfsb_str *)hfsbi_array(alloc, f->cap, sizeof *f->lines);
    f->at = (size_t *)hfsbi_array(alloc, f->cap, sizeof *f->at);
    f->gap = (size_t *)hfsbi_array(alloc, f->cap, sizeof *f->gap);
    f->blank = (hfsb_str *)hfsbi_array(alloc, f->cap, sizeof *f->blank);
    if (!f->lines || !f->at || !f->gap || !f->blank) return HFSB_NOMEM;
    hfsbi_full_lines_fill(f, text, newline, folds);
    return HFSB_OK;
}

/* Sets the number of blank lines before a line; they are empty then. */
static void hfsbi_set_gap(hfsbi_full_lines *f, size_t i, size_t gap) {
    hfsb_str empty = HFSB_INIT;
    f->gap[i] = gap;
    f->blank[i] = empty;
}

/* The blank lines before new line j are those before old line i. If the file
   has as many as old_text, they are written as sent; else new_text must have
   as many as old_text, and gets those of the file. */
static bool hfsbi_mend_gap(hfsbi_mending *m, size_t i, size_t j) {
    if (m->olds.gap[i] == m->file.gap[i]) return true;
    if (m->olds.gap[i] != m->news.gap[j]) return false;
    hfsbi_set_gap(&m->news, j, m->file.gap[i]);
    return true;
}

/* Lines inserted between two others: the blank lines stay on the side where
   there are as many as before, if the other side has as many as the file. */
static bool hfsbi_mend_inserted(hfsbi_mending *m, size_t i, size_t from,
                                size_t to) {
    size_t before = m->news.gap[from], after = m->news.gap[to];
    size_t old_gap = m->olds.gap[i], file_gap = m->file.gap[i];
    if (old_gap == file_gap) return true;
    if (!old_gap || before + after != old_gap + file_gap ||
        (before != old_gap && after != old_gap))
        return false;
    hfsbi_set_gap(&m->news, before == old_gap ? from : to, file_gap);
    return true;
}

/* New lines [from, to) replace old lines [i, end); both texts continue with an
   equal line, or end there. */
static bool hfsbi_mend_change(hfsbi_mending *m, size_t i, size_t end,
                              size_t from, size_t to) {
    bool   last = to == m->news.count, first = i == 0;
    size_t k;
    m->line = from < m->news.count ? from : from - 1;
    if (i == end) {
        if (first || end == m->olds.count) return true;
        return from == to ? hfsbi_mend_gap(m, end, to)
                          : hfsbi_mend_inserted(m, end, from, to);
    }
    if (from == to)
        return (first || m->olds.gap[i] == m->file.gap[i]) &&
               (last || m->olds.gap[end] == m->file.gap[end]);
    for (k = i + 1; k < end; k++)
        if (m->olds.gap[k] != m->file.gap[k]) return false;
    if (!first && !hfsbi_mend_gap(m, i, from)) return false;
    m->line = last ? from : to;
    return last || hfsbi_mend_gap(m, end, to);
}

/* Gives news the blank lines of the file where new_text did not change
   them. */
static bool hfsbi_mend_news(hfsbi_mending *m) {
    size_t i = 0, j = 0, from, end;
    do {
        for (from = j; j < m->news.count && m->same[j] == HFSB_NPOS;) j++;
        end = j < m->news.count ? m->same[j] : m->olds.count;
        if (!hfsbi_mend_change(m, i, end, from, j)) return false;
        i = end + 1;
    } while (j++ < m->news.count);
    return true;
}

/* Appends the lines, each after its blank lines; like text, the last ends in
   LF or not. */
static hfsb_str hfsbi_put_full_lines(hfsb_buf *out, const hfsbi_full_lines *f,
                                     hfsb_str text) {
    size_t i, k, mark = out->len;
    for (i = 0; i < f->count; i++) {
        hfsb_buf_append(out, f->blank[i]);
        for (k = 0; !f->blank[i].ptr && k < f->gap[i]; k++)
            hfsb_buf_append_byte(out, '\n');
        hfsb_buf_append(out, f->lines[i]);
        if (i + 1 < f->count || f->tail.len ||
            hfsb_str_ends(text, HFSB_LIT("\n")))
            hfsb_buf_append_byte(out, '\n');
    }
    hfsb_buf_append(out, f->tail);
    return hfsb_str_slice(hfsb_buf_str(out), mark, HFSB_NPOS);
}

/* Gives olds the blank lines of the match. */
static void hfsbi_mend_olds(hfsbi_mending *m) {
    size_t i;
    for (i = 0; i < m->olds.count; i++)
        if (m->olds.gap[i] != m->file.gap[i])
            hfsbi_set_gap(&m->olds, i, m->file.gap[i]);
}

/* Splits the texts and pairs their lines. */
static hfsb_status hfsbi_mending_make(const hfsb_alloc       *alloc,
                                      hfsbi_mending          *m,
                                      const hfsbi_edit_texts *texts,
                                      hfsb_str match, char newline,
                                      unsigned folds) {
    hfsb_status st;
    st = hfsbi_full_lines_make(alloc, &m->olds, texts->old_text, '\n', folds);
    if (st == HFSB_OK)
        st = hfsbi_full_lines_make(alloc, &m->news, texts->new_text, '\n',
                                   folds);
    if (st == HFSB_OK)
        st = hfsbi_full_lines_make(alloc, &m->file, match, newline, folds);
    if (st != HFSB_OK) return st;
    m->same = (size_t *)hfsbi_array(alloc, m->news.count, sizeof *m->same);
    if (!m->same) return HFSB_NOMEM;
    return hfsbi_lines_diff(alloc, m->olds.lines, m->olds.count, m->news.lines,
                            m->news.count, m->same);
}

static void hfsbi_mending_free(const hfsb_alloc *alloc, hfsbi_mending *m) {
    hfsbi_array_free(alloc, m->same, m->news.count, sizeof *m->same);
    hfsbi_full_lines_free(alloc, &m->olds);
    hfsbi_full_lines_free(alloc, &m->news);
    hfsbi_full_lines_free(alloc, &m->file);
}

/* Writes the mended texts to *copies. */
static hfsb_status hfsbi_mend_texts(hfsbi_mending *m, hfsbi_edit_texts *texts,
                                    hfsb_buf *copies, size_t *line) {
    if (texts->mode == HFSB_EDIT_REPLACE && texts->new_text.len) {
        if (!hfsbi_mend_news(m)) {
            *line = m->news.at[m->line];
            return HFSB_REFUSED;
        }
        texts->new_text =
            hfsbi_put_full_lines(copies, &m->news, texts->new_text);
    }
    hfsbi_mend_olds(m);
    texts->pairs = NULL; /* of other lines */
    texts->old_text = hfsbi_put_full_lines(copies, &m->olds, texts->old_text);
    return copies->status;
}

HFSBI_FN hfsb_status hfsbi_mend_blank_lines(const hfsb_alloc      *alloc,
                                            const hfsbi_edit_text *file,
                                            const hfsbi_match     *match,
                                            unsigned               folds,
                                            hfsbi_edit_texts      *texts,
                                            hfsb_buf *copies, size_t *line) {
    hfsbi_mending m;
    size_t        size;
    hfsb_status   st;
    memset(&m, 0, sizeof m);
    hfsb_buf_truncate(copies, 0);
    /* All at once, so that the view of one text stays valid. */
    if (!hfsbi_add(texts->old_text.len, texts->new_text.len, &size) ||
        !hfsbi_add(size, match->end - match->start, &size) ||
        !hfsbi_mul(size, 2, &size))
        return HFSB_LIMIT;
    st = hfsb_buf_reserve(copies, size);
    if (st == HFSB_OK)
        st = hfsbi_mending_make(
            alloc, &m, texts,
            hfsb_str_slice(file->text, match->start, match->end),
            file->lone_cr ? '\r' : '\n', folds);
    if (st == HFSB_OK) st = hfsbi_mend_texts(&m, texts, copies, line);
    hfsbi_mending_free(alloc, &m);
    return st;
}
