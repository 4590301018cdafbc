/* diff.c - which lines of two texts are the same, and unified diffs.

   Lines are paired by their common head and tail and, between them, by a
   longest common subsequence; that table has a limit, so time and memory are
   bounded. A unified diff starts from the known spans of change: each is
   widened to a block of whole lines, blocks that are close together share a
   hunk, and only the lines inside blocks are compared.

       spans   ..|==|......|=|.....................|====|..
       blocks  [---------][-----]               [---------]
       hunks   (      with context      )    (  with context  )        */
#include "edit_private.h"

#define HFSBI_DIFF_CELLS     4000000u
#define HFSBI_DIFF_CONTEXT   3
#define HFSBI_DIFF_MAX_BYTES (64u * 1024u)

/* ---- lines ---- */

HFSBI_FN hfsb_status hfsbi_lines_split(const hfsb_alloc *alloc, hfsb_str text,
                                       hfsbi_lines *out) {
    size_t newlines = hfsb_str_count_byte(text, '\n'), i;
    out->cap = newlines + 1;
    out->items = (hfsb_str *)hfsbi_array(alloc, out->cap, sizeof *out->items);
    out->count = 0;
    if (!out->items) return HFSB_NOMEM;
    for (i = 0; i < newlines; i++) {
        size_t end = hfsb_str_find_byte(text, '\n');
        out->items[i] = hfsb_str_slice(text, 0, end);
        text = hfsb_str_slice(text, end + 1, text.len);
    }
    out->items[newlines] = text;
    out->count = newlines + (text.len ? 1 : 0);
    return HFSB_OK;
}

HFSBI_FN void hfsbi_lines_free(const hfsb_alloc *alloc, hfsbi_lines *lines) {
    hfsbi_array_free(alloc, lines->items, lines->cap, sizeof *lines->items);
    lines->items = NULL;
    lines->count = lines->cap = 0;
}

/* ---- longest common subsequence ---- */

enum { HFSBI_LCS_BOTH, HFSBI_LCS_OLD, HFSBI_LCS_NEW };

/* The table of a longest common subsequence, in one block of memory. */
typedef struct hfsbi_lcs {
    size_t              rows, cols, size;
    unsigned long long *old_hash, *new_hash;
    size_t             *best; /* two rows of cols + 1 */
    unsigned char      *step; /* rows * cols: the best step from there */
} hfsbi_lcs;

/* rows * cols is at most HFSBI_DIFF_CELLS: the sum cannot overflow. */
static bool hfsbi_lcs_make(const hfsb_alloc *alloc, size_t rows, size_t cols,
                           hfsbi_lcs *t) {
    t->rows = rows;
    t->cols = cols;
    t->size = (rows + cols) * sizeof *t->old_hash +
              2 * (cols + 1) * sizeof *t->best + rows * cols;
    t->old_hash = (unsigned long long *)hfsbi_realloc(alloc, NULL, 0, t->size);
    if (!t->old_hash) return false;
    t->new_hash = t->old_hash + rows;
    t->best = (size_t *)(void *)(t->new_hash + cols);
    t->step = (unsigned char *)(void *)(t->best + 2 * (cols + 1));
    return true;
}

/* Fills step[] from the end, so that the walk afterwards goes forward. */
static void hfsbi_lcs_fill(hfsbi_lcs *t) {
    size_t *below = t->best, *row = t->best + t->cols + 1, i, j;
    memset(below, 0, (t->cols + 1) * sizeof *below);
    for (i = t->rows; i-- > 0;) {
        unsigned char *step = t->step + i * t->cols;
        size_t        *swap;
        row[t->cols] = 0;
        for (j = t->cols; j-- > 0;) {
            if (t->old_hash[i] == t->new_hash[j]) {
                row[j] = below[j + 1] + 1;
                step[j] = HFSBI_LCS_BOTH;
            } else if (below[j] >= row[j + 1]) {
                row[j] = below[j];
                step[j] = HFSBI_LCS_OLD;
            } else {
                row[j] = row[j + 1];
                step[j] = HFSBI_LCS_NEW;
            }
        }
        swap = below;
        below = row;
        row = swap;
    }
}

/* Pairs the lines between the common head and tail. Lines with equal hashes
   are compared before they count as the same. */
static hfsb_status hfsbi_lcs_run(const hfsb_alloc *alloc, const hfsb_str *olds,
                                 size_t rows, const hfsb_str *news,
                                 size_t cols, size_t base, size_t *same) {
    hfsbi_lcs t;
    size_t    i, j;
    if (!hfsbi_lcs_make(alloc, rows, cols, &t)) return HFSB_NOMEM;
    for (i = 0; i < rows; i++) t.old_hash[i] = hfsb_fnv(olds[i]);
    for (j = 0; j < cols; j++) t.new_hash[j] = hfsb_fnv(news[j]);
    hfsbi_lcs_fill(&t);
    for (i = j = 0; i < rows && j < cols;) {
        int step = t.step[i * cols + j];
        if (step == HFSBI_LCS_BOTH && hfsb_str_equal(olds[i], news[j]))
            same[j] = base + i;
        if (step != HFSBI_LCS_NEW) i++;
        if (step != HFSBI_LCS_OLD) j++;
    }
    hfsbi_realloc(alloc, t.old_hash, t.size, 0);
    return HFSB_OK;
}

/* The blanks at the start of a line; the maximum for an empty line, which is a
   bad place to begin. */
static size_t hfsbi_line_depth(hfsb_str line) {
    size_t n = hfsbi_indent_len(line, 0);
    return n < line.len ? n : HFSB_NPOS;
}

/* Moves inserted lines [from, to) up while that changes nothing, to where they
   begin least indented: an item of a list begins with its own head and does
   not end with the head of the next.

       old    new    from the head   moved
       - a:   - a:   same            inserted
         1      2    inserted        inserted
              - a:   inserted        same
                1    same            same     */
static void hfsbi_slide_insertion(const hfsb_str *news, size_t from, size_t to,
                                  size_t *same) {
    size_t up, best = 0, depth = hfsbi_line_depth(news[from]);
    for (up = 1; up <= from && same[from - up] != HFSB_NPOS &&
                 hfsb_str_equal(news[from - up], news[to - up]);
         up++)
        if (hfsbi_line_depth(news[from - up]) < depth) {
            depth = hfsbi_line_depth(news[from - up]);
            best = up;
        }
    for (up = 1; up <= best; up++) {
        same[to - up] = same[from - up];
        same[from - up] = HFSB_NPOS;
    }
}

/* Does this for every insertion that removes no lines. */
static void hfsbi_slide_insertions(const hfsb_str *news, size_t new_count,
                                   size_t old_count, size_t *same) {
    size_t from, to;
    for (from = 0; from < new_count; from = to + 1) {
        size_t after;
        for (to = from; to < new_count && same[to] == HFSB_NPOS;) to++;
        after = to < new_count ? same[to] : old_count;
        if (from < to && from > 0 && same[from - 1] + 1 == after)
            hfsbi_slide_insertion(news, from, to, same);
    }
}

HFSBI_FN hfsb_status hfsbi_lines_diff(const hfsb_alloc *alloc,
                                      const hfsb_str   *old_lines,
                                      size_t            old_count,
                                      const hfsb_str   *new_lines,
                                      size_t new_count, size_t *same) {
    size_t least = old_count < new_count ? old_count : new_count;
    size_t head = 0, tail = 0, rows, cols, i;
    for (i = 0; i < new_count; i++) same[i] = HFSB_NPOS;
    while (head < least && hfsb_str_equal(old_lines[head], new_lines[head])) {
        same[head] = head;
        head++;
    }
    while (tail < least - head &&
           hfsb_str_equal(old_lines[old_count - 1 - tail],
                          new_lines[new_count - 1 - tail])) {
        same[new_count - 1 - tail] = old_count - 1 - tail;
        tail++;
    }
    rows = old_count - head - tail;
    cols = new_count - head - tail;
    if (rows && cols && rows <= HFSBI_DIFF_CELLS / cols && rows + cols > 2) {
        hfsb_status st =
            hfsbi_lcs_run(alloc, old_lines + head, rows, new_lines + head,
                          cols, head, same + head);
        if (st != HFSB_OK) return st;
    }
    hfsbi_slide_insertions(new_lines, new_count, old_count, same);
    return HFSB_OK;
}

/* ---- unified diff ---- */

/* Spans widened to whole lines. */
typedef struct hfsbi_block {
    size_t old_from, old_to;
    size_t new_from, new_to;
    size_t new_line; /* number of its first new line; 0: unknown */
} hfsbi_block;

typedef struct hfsbi_unified {
    hfsb_str         old_text, new_text;
    const hfsb_span *spans;
    size_t           count, next; /* next: first span not yet in a block */
    size_t           context, max_bytes;
    hfsb_buf        *body;                 /* lines of the current hunk */
    size_t           old_lines, new_lines; /* in that hunk */
    bool             changes;              /* lines with - or + in it */
    size_t           old_pos, old_seen;    /* line ends before old_pos */
    size_t           gained;               /* lines added minus removed */
    bool             full;
} hfsbi_unified;

static bool hfsbi_line_starts_at(hfsb_str text, size_t pos) {
    return pos == 0 || text.ptr[pos - 1] == '\n';
}

static size_t hfsbi_after_line(hfsb_str text, size_t pos) {
    size_t n = hfsb_str_find_byte(hfsb_str_slice(text, pos, text.len), '\n');
    return n == HFSB_NPOS ? text.len : pos + n + 1;
}

static size_t hfsbi_line_start(hfsb_str text, size_t pos) {
    while (!hfsbi_line_starts_at(text, pos)) pos--;
    return pos;
}

/* Takes the next block. The bytes between two spans are the same on both
   sides, so both grow by the same number; a span that starts on a line of the
   block belongs to it. */
static bool hfsbi_next_lines(hfsbi_unified *u, hfsbi_block *b) {
    const hfsb_span *s;
    size_t           end = 0; /* of the current line */
    if (u->next == u->count) return false;
    s = u->spans + u->next;
    b->old_from = hfsbi_line_start(u->old_text, s->old_start);
    b->new_from = s->new_start - (s->old_start - b->old_from);
    b->new_line = s->first_line;
    for (;; s++) {
        u->next++;
        b->old_to = s->old_start + s->old_len;
        b->new_to = s->new_start + s->new_len;
        if (hfsbi_line_starts_at(u->old_text, b->old_to) &&
            hfsbi_line_starts_at(u->new_text, b->new_to))
            return true;
        if (b->old_to >= end) end = hfsbi_after_line(u->old_text, b->old_to);
        if (u->next == u->count || s[1].old_start > end ||
            (s[1].old_start == end && end > b->old_to &&
             hfsbi_line_starts_at(u->old_text, end))) {
            b->new_to += end - b->old_to;
            b->old_to = end;
            return true;
        }
    }
}

/* Takes the next block that differs: spans can cancel out. */
static bool hfsbi_next_block(hfsbi_unified *u, hfsbi_block *b) {
    while (hfsbi_next_lines(u, b))
        if (!hfsb_str_equal(
                hfsb_str_slice(u->old_text, b->old_from, b->old_to),
                hfsb_str_slice(u->new_text, b->new_from, b->new_to)))
            return true;
    return false;
}

static void hfsbi_put_diff_line(hfsbi_unified *u, char mark, hfsb_str line) {
    if (mark != '+') u->old_lines++;
    if (mark != '-') u->new_lines++;
    if (mark != ' ') u->changes = true;
    if (u->body->len > u->max_bytes || line.len > u->max_bytes - u->body->len)
        u->full = true;
    if (u->full) return;
    hfsb_buf_append_byte(u->body, mark);
    hfsb_buf_append(u->body, line);
    if (!hfsb_str_ends(line, HFSB_LIT("\n")))
        hfsb_buf_append(u->body, HFSB_LIT("\n\\ No newline at end of file\n"));
}

static void hfsbi_put_context(hfsbi_unified *u, size_t from, size_t to) {
    while (from < to) {
        size_t end = hfsbi_after_line(u->old_text, from);
        hfsbi_put_diff_line(u, ' ', hfsb_str_slice(u->old_text, from, end));
        from = end;
    }
}

/* Splits text into lines that include their LF. */
static hfsb_status hfsbi_split_keep(const hfsb_alloc *alloc, hfsb_str text,
                                    hfsbi_lines *out) {
    hfsb_status st = hfsbi_lines_split(alloc, text, out);
    size_t      i;
    for (i = 0; i < out->count; i++)
        if (i + 1 < out->count || hfsb_str_ends(text, HFSB_LIT("\n")))
            out->items[i].len++;
    return st;
}

static void hfsbi_put_lines(hfsbi_unified *u, const hfsbi_lines *olds,
                            const hfsbi_lines *news, const size_t *same) {
    size_t n = olds->count, m = news->count, i = 0, j;
    for (j = 0; j <= m; j++) {
        /* Before a line that stayed: the removals, then the additions. */
        size_t k = j, stop;
        while (k < m && same[k] == HFSB_NPOS) k++;
        stop = k < m ? same[k] : n;
        while (i < stop) hfsbi_put_diff_line(u, '-', olds->items[i++]);
        while (j < k) hfsbi_put_diff_line(u, '+', news->items[j++]);
        if (k < m) hfsbi_put_diff_line(u, ' ', olds->items[i++]);
    }
}

static hfsb_status hfsbi_put_block(hfsbi_unified *u, const hfsbi_block *b) {
    const hfsb_alloc *alloc = &u->body->alloc;
    hfsb_str          o = hfsb_str_slice(u->old_text, b->old_from, b->old_to);
    hfsb_str          n = hfsb_str_slice(u->new_text, b->new_from, b->new_to);
    hfsbi_lines       olds = HFSB_INIT, news = HFSB_INIT;
    size_t           *same = NULL, count;
    hfsb_status       st = hfsbi_split_keep(alloc, o, &olds);
    if (st == HFSB_OK) st = hfsbi_split_keep(alloc, n, &news);
    count = news.count;
    if (st == HFSB_OK) {
        same = (size_t *)hfsbi_array(alloc, count, sizeof *same);
        st = same ? HFSB_OK : HFSB_NOMEM;
    }
    if (st == HFSB_OK)
        st = hfsbi_lines_diff(alloc, olds.items, olds.count, news.items,
                              news.count, same);
    if (st == HFSB_OK) hfsbi_put_lines(u, &olds, &news, same);
    hfsbi_array_free(alloc, same, count, sizeof *same);
    hfsbi_lines_free(alloc, &olds);
    hfsbi_lines_free(alloc, &news);
    return st == HFSB_OK ? u->body->status : st;
}

/* Goes back up to `lines` line starts from pos, not before `floor`. */
static size_t hfsbi_lines_back(hfsb_str text, size_t pos, size_t lines,
                               size_t floor) {
    while (lines-- && pos > floor) pos = hfsbi_line_start(text, pos - 1);
    return pos > floor ? pos : floor;
}

/* Goes forward up to `lines` lines from pos; *reached is true on arrival at
   `ceiling`, the start of a line. */
static size_t hfsbi_lines_on(hfsb_str text, size_t pos, size_t lines,
                             size_t ceiling, bool *reached) {
    while (lines-- && pos < ceiling) pos = hfsbi_after_line(text, pos);
    *reached = pos >= ceiling;
    return pos;
}

/* Appends "-12,3 ", the first line and the number of lines of one side. */
static void hfsbi_put_range(hfsb_buf *out, char mark, size_t seen,
                            size_t lines) {
    char   text[48];
    size_t n = 0;
    text[n++] = mark;
    n += hfsbi_number_write_uint(seen + (lines ? 1 : 0), text + n);
    text[n++] = ',';
    n += hfsbi_number_write_uint(lines, text + n);
    text[n++] = ' ';
    hfsb_buf_append(out, hfsb_str_make(text, n));
}

/* Appends the head of a hunk that starts at old_from, `lead` lines before a
   block whose new line number may be known. `gained` may wrap around: it is
   only ever added. */
static void hfsbi_put_hunk_head(hfsbi_unified *u, size_t old_from,
                                size_t new_line, size_t lead, hfsb_buf *out) {
    if (new_line) u->old_seen = new_line - 1 - lead - u->gained;
    else
        u->old_seen += hfsb_str_count_byte(
            hfsb_str_slice(u->old_text, u->old_pos, old_from), '\n');
    u->old_pos = old_from;
    hfsb_buf_append(out, HFSB_LIT("@@ "));
    hfsbi_put_range(out, '-', u->old_seen, u->old_lines);
    hfsbi_put_range(out, '+', u->old_seen + u->gained, u->new_lines);
    hfsb_buf_append(out, HFSB_LIT("@@\n"));
    u->gained += u->new_lines - u->old_lines;
}

/* Appends one hunk: block b and those close after it. *b becomes the first
   block of the next hunk, if there is one (*more). Context starts at *floor at
   the earliest. Lines that did not change make no hunk. */
static hfsb_status hfsbi_put_hunk(hfsbi_unified *u, hfsbi_block *b,
                                  size_t *floor, bool *more, hfsb_buf *out) {
    size_t from =
        hfsbi_lines_back(u->old_text, b->old_from, u->context, *floor);
    size_t      to, end, new_line = b->new_line, lead;
    bool        close_by;
    hfsb_status st;
    u->old_lines = u->new_lines = 0;
    u->changes = false;
    hfsb_buf_truncate(u->body, 0);
    hfsbi_put_context(u, from, b->old_from);
    lead = u->old_lines;
    for (;;) {
        st = hfsbi_put_block(u, b);
        to = b->old_to;
        *more = st == HFSB_OK && !u->full && hfsbi_next_block(u, b);
        if (!*more) break;
        hfsbi_lines_on(u->old_text, to, 2 * u->context, b->old_from,
                       &close_by);
        if (!close_by) break;
        hfsbi_put_context(u, to, b->old_from);
    }
    if (st == HFSB_OK && !u->changes && !u->full) return u->body->status;
    end = hfsbi_lines_on(u->old_text, to, u->context, u->old_text.len,
                         &close_by);
    hfsbi_put_context(u, to, end);
    *floor = end;
    hfsbi_put_hunk_head(u, from, new_line, lead, out);
    hfsb_buf_append(out, hfsb_buf_str(u->body));
    return st == HFSB_OK ? u->body->status : st;
}

/* A path for the head lines: not empty, and up to a NUL. An absolute one keeps
   its slash, "a//tmp/f": without a/ it is that file, and not a relative path.
   `patch -p1` strips both slashes. */
static hfsb_str hfsbi_diff_name(hfsb_str path) {
    while (path.len > 1 && path.ptr[0] == '/' && path.ptr[1] == '/')
        path = hfsb_str_slice(path, 1, path.len);
    if (!path.len || hfsb_str_equal(path, HFSB_LIT("/")))
        return HFSB_LIT("file");
    return hfsb_str_slice(path, 0, hfsb_str_find_byte(path, '\0'));
}

hfsb_status hfsb_diff_unified(hfsb_str old_text, hfsb_str new_text,
                              const hfsb_span *spans, size_t count,
                              const hfsb_diff_opts *opts, hfsb_buf *out,
                              bool *cut) {
    hfsbi_unified u = HFSB_INIT;
    hfsbi_block   b = HFSB_INIT;
    hfsb_buf      body = HFSB_INIT;
    size_t        mark = out->len;
    hfsb_str      path = hfsbi_diff_name(opts ? opts->path : HFSB_LIT(""));
    hfsb_str      old_path = path;
    size_t        floor = 0;
    bool          more;
    if (cut) *cut = false;
    if (opts && opts->old_path.len) old_path = hfsbi_diff_name(opts->old_path);
    body.alloc = out->alloc;
    u.old_text = old_text;
    u.new_text = new_text;
    u.spans = spans;
    u.count = count;
    u.context = opts && opts->context ? opts->context : HFSBI_DIFF_CONTEXT;
    if (u.context > HFSB_NPOS / 2) u.context = HFSB_NPOS / 2;
    u.max_bytes =
        opts && opts->max_bytes ? opts->max_bytes : HFSBI_DIFF_MAX_BYTES;
    u.body = &body;
    more = hfsbi_next_block(&u, &b);
    if (more) {
        hfsb_buf_append(out, HFSB_LIT("--- a/"));
        hfsb_buf_append(out, old_path);
        hfsb_buf_append(out, HFSB_LIT("\n+++ b/"));
        hfsb_buf_append(out, path);
        hfsb_buf_append_byte(out, '\n');
    }
    while (more && out->status == HFSB_OK) {
        hfsb_status st = hfsbi_put_hunk(&u, &b, &floor, &more, out);
        if (st != HFSB_OK) out->status = st;
        if (out->len - mark > u.max_bytes && more) u.full = true;
        if (u.full) more = false;
    }
    if (u.full) hfsb_buf_append(out, HFSB_LIT("... (diff cut)\n"));
    if (cut) *cut = u.full;
    hfsb_buf_free(&body);
    return hfsb_buf_finish(out, mark);
}

/* ---- the diff of two texts ---- */

/* The offset of line i in text; the end of text after the last line. */
static size_t hfsbi_line_offset(hfsb_str text, const hfsbi_lines *lines,
                                size_t i) {
    return i < lines->count ? (size_t)(lines->items[i].ptr - text.ptr)
                            : text.len;
}

/* Fills spans, one for each run of lines that differ; returns their number.
   There is room for one more than there are new lines. */
static size_t hfsbi_spans_fill(hfsb_str old_text, const hfsbi_lines *olds,
                               hfsb_str new_text, const hfsbi_lines *news,
                               const size_t *same, hfsb_span *spans) {
    size_t i = 0, j = 0, count = 0;
    while (i < olds->count || j < news->count) {
        size_t    k = j, stop;
        hfsb_span s = HFSB_INIT;
        while (k < news->count && same[k] == HFSB_NPOS) k++;
        stop = k < news->count ? same[k] : olds->count;
        s.old_start = hfsbi_line_offset(old_text, olds, i);
        s.old_len = hfsbi_line_offset(old_text, olds, stop) - s.old_start;
        s.new_start = hfsbi_line_offset(new_text, news, j);
        s.new_len = hfsbi_line_offset(new_text, news, k) - s.new_start;
        if (i < stop || j < k) spans[count++] = s;
        i = stop + 1; /* both skip the line that stayed */
        j = k + 1;
    }
    return count;
}

HFSBI_FN hfsb_status hfsbi_diff_texts(hfsb_str old_text, hfsb_str new_text,
                                      const hfsb_diff_opts *opts,
                                      hfsb_buf *out, bool *cut) {
    const hfsb_alloc *alloc = &out->alloc;
    hfsbi_lines       olds = HFSB_INIT, news = HFSB_INIT;
    size_t           *same = NULL, room = 0;
    hfsb_span        *spans = NULL;
    hfsb_status       st = hfsbi_split_keep(alloc, old_text, &olds);
    if (st == HFSB_OK) st = hfsbi_split_keep(alloc, new_text, &news);
    if (st == HFSB_OK) {
        room = news.count + 1;
        same = (size_t *)hfsbi_array(alloc, room, sizeof *same);
        spans = (hfsb_span *)hfsbi_array(alloc, room, sizeof *spans);
        if (!same || !spans) st = HFSB_NOMEM;
    }
    if (st == HFSB_OK)
        st = hfsbi_lines_diff(alloc, olds.items, olds.count, news.items,
                              news.count, same);
    if (st == HFSB_OK)
        st = hfsb_diff_unified(
            old_text, new_text, spans,
            hfsbi_spans_fill(old_text, &olds, new_text, &news, same, spans),
            opts, out, cut);
    hfsbi_array_free(alloc, spans, room, sizeof *spans);
    hfsbi_array_free(alloc, same, room, sizeof *same);
    hfsbi_lines_free(alloc, &olds);
    hfsbi_lines_free(alloc, &news);
    return st;
}
