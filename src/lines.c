/* lines.c - the lines of a file: where they end, their hashes, and where a
   sequence of them stands. Depends on: base, view. */
#include "match.h"

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
    file->lone_cr = file->has_cr &&
                    hfsb_str_find_byte(file->text, '\n') == HFSB_NPOS;
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
