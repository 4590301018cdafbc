/* search_lines.c - lines of a file that match, and those around them. Depends
   on: base, utf8, regex, search_show. */
#include "search_lines.h"

/* ---- showing a line ---- */

/* The part of a long line around `at`: *from and *to. */
static void hfsbi_line_cut(hfsb_str text, size_t at, size_t *from,
                           size_t *to) {
    size_t back = 0, n = 0;
    *from = at;
    while (*from > 0 && n < HFSBI_GREP_LEAD) {
        --*from;
        if (((unsigned char)text.ptr[*from] & 0xC0u) != 0x80u) n++;
        else if (++back > 4 * HFSBI_GREP_LEAD) break; /* it is no UTF-8 */
    }
    *to = *from + hfsb_utf8_offset(hfsb_str_slice(text, *from, text.len),
                                   HFSBI_GREP_CHARS);
}

static hfsb_status hfsbi_hits_text(hfsbi_hits *l, hfsb_str text,
                                   bool matches) {
    hfsbi_sink sink = hfsbi_sink_begin(l->out);
    size_t     from = 0, to = text.len, at = 0, end, chars = 0;
    hfsb_str   part;
    if (text.len > HFSBI_GREP_CHARS) chars = hfsb_utf8_count(text);
    if (chars > HFSBI_GREP_CHARS) {
        if (!matches || !hfsb_regex_find(l->regex, text, 0, &at, &end)) at = 0;
        hfsbi_line_cut(text, at, &from, &to);
    }
    part = hfsb_str_slice(text, from, to);
    if (from) hfsbi_putf(&sink, "...");
    if (hfsb_utf8_validate(part) == part.len) hfsbi_put(&sink, part);
    else if (sink.status == HFSB_OK) {
        sink.status = hfsb_utf8_repair(part, l->out);
        l->bad_utf8 = true;
    }
    if (to < text.len) hfsbi_putf(&sink, "...");
    if (from || to < text.len)
        hfsbi_putf(&sink, " (cut: the line has %zu characters)", chars);
    return hfsbi_sink_end(&sink);
}

/* The number of the line that begins at pos. */
static unsigned long long hfsbi_hits_number(hfsbi_hits *l, size_t pos) {
    hfsb_str text = hfsb_buf_str(&l->window);
    l->line +=
        hfsb_str_count_byte(hfsb_str_slice(text, l->counted, pos), '\n');
    l->counted = pos;
    return l->line;
}

/* Behind the line that begins at pos, its line feed included. */
static size_t hfsbi_hits_next(const hfsbi_hits *l, size_t pos, size_t end) {
    hfsb_str text = hfsb_str_slice(hfsb_buf_str(&l->window), pos, end);
    size_t   n = hfsb_str_find_byte(text, '\n');
    return n == HFSB_NPOS ? end : pos + n + 1;
}

/* "path:12:text", or with "-" when it is only near a match. */
static hfsb_status hfsbi_hits_put(hfsbi_hits *l, size_t pos, size_t next,
                                  bool matches) {
    hfsbi_sink         sink = hfsbi_sink_begin(l->out);
    unsigned long long number = hfsbi_hits_number(l, pos);
    hfsb_str text = hfsb_str_slice(hfsb_buf_str(&l->window), pos, next);
    char     mark = matches ? ':' : '-';
    if (text.len && text.ptr[text.len - 1] == '\n') text.len--;
    if (text.len && text.ptr[text.len - 1] == '\r') text.len--;
    if (l->out->len) hfsbi_put_byte(&sink, '\n');
    if (!l->no_path) {
        hfsbi_put_shown(&sink, l->folder);
        hfsbi_put_shown(&sink, l->path);
        hfsbi_put_byte(&sink, mark);
    }
    hfsbi_putf(&sink, "%llu%c", number, mark);
    l->shown = next;
    l->any = true;
    l->gap = false;
    if (hfsbi_sink_end(&sink) != HFSB_OK) return sink.status;
    return hfsbi_hits_text(l, text, matches);
}

/* ---- a match and what is around it ---- */

/* Lines behind the last match, up to `end`. */
static hfsb_status hfsbi_hits_after(hfsbi_hits *l, size_t end) {
    hfsb_status st = HFSB_OK;
    if (l->out->len > HFSBI_FINDER_CHARS) l->after = 0;
    while (st == HFSB_OK && l->after && l->shown < end) {
        l->after = l->out->len > HFSBI_FINDER_CHARS ? 0 : l->after - 1;
        st = hfsbi_hits_put(l, l->shown, hfsbi_hits_next(l, l->shown, end),
                            false);
    }
    return st;
}

/* Where the lines before the one at pos begin that are context. */
static size_t hfsbi_hits_back(const hfsbi_hits *l, size_t pos, size_t low) {
    const char *text = l->window.ptr;
    size_t      n = l->context;
    for (; n > 0 && pos > low; n--) {
        pos--; /* the line feed that ends it */
        while (pos > low && text[pos - 1] != '\n') pos--;
    }
    return pos;
}

/* The line of a match, with those before it. */
static hfsb_status hfsbi_hits_show(hfsbi_hits *l, size_t pos, size_t next) {
    hfsb_status st = HFSB_OK;
    size_t      from;
    from = hfsbi_hits_back(l, pos, l->shown);
    if (l->context && l->out->len && (!l->any || l->gap || from > l->shown))
        st = hfsb_buf_append(l->out, HFSB_LIT("\n--"));
    while (st == HFSB_OK && from < pos) {
        size_t to = hfsbi_hits_next(l, from, pos);
        st = hfsbi_hits_put(l, from, to, false);
        from = to;
    }
    if (st == HFSB_OK) st = hfsbi_hits_put(l, pos, next, true);
    return st;
}

static hfsb_status hfsbi_hits_match(hfsbi_hits *l, size_t pos, size_t next) {
    hfsb_status st = hfsbi_hits_after(l, pos);
    size_t      mark = l->out->len;
    if (st != HFSB_OK) return st;
    if (l->skip) {
        l->skip--;
        l->shown = next; /* it is no context of others either */
        return HFSB_OK;
    }
    l->full = !l->left || mark > HFSBI_FINDER_CHARS;
    if (!l->full) st = hfsbi_hits_show(l, pos, next);
    /* with much around it a match may be too large for what is left */
    if (mark && l->out->len > HFSBI_FINDER_CHARS && !l->full) {
        hfsb_buf_truncate(l->out, mark);
        l->full = true;
    }
    l->after = l->full ? 0 : l->context;
    if (l->full || st != HFSB_OK) return st;
    l->left--;
    l->printed++;
    return HFSB_OK;
}

/* ---- the window ---- */

/* What is left of a line of which a part has matched is no line of its own:
   it is neither counted nor shown. */
static void hfsbi_hits_pass(hfsbi_hits *l, size_t end) {
    size_t next = hfsbi_hits_next(l, l->searched, end);
    if (l->searched == end) return;
    l->told = l->parted && next == end;
    l->searched = l->shown = next;
}

/* Searches the lines up to `end`; *done when no more of the file matters. */
static hfsb_status hfsbi_hits_search(hfsbi_hits *l, size_t end, bool *done) {
    hfsb_str    text = hfsb_str_slice(hfsb_buf_str(&l->window), 0, end);
    hfsb_status st = HFSB_OK;
    size_t      begin, last;
    if (l->told) hfsbi_hits_pass(l, end);
    while (st == HFSB_OK && l->searched < end &&
           hfsb_regex_line(l->regex, text, l->searched, &begin, &last)) {
        size_t next = hfsbi_hits_next(l, last, end);
        l->matches++;
        l->searched = next;
        l->told = l->parted && next == end;
        if (l->mode == HFSBI_GREP_FILES) {
            *done = true;
            return HFSB_OK;
        }
        if (l->mode == HFSBI_GREP_CONTENT && !l->full)
            st = hfsbi_hits_match(l, begin, next);
        else l->full = l->full || l->mode == HFSBI_GREP_CONTENT;
    }
    l->searched = end;
    if (st == HFSB_OK) st = hfsbi_hits_after(l, end);
    return st;
}

/* Drops what is not needed any more from the front. */
static void hfsbi_hits_slide(hfsbi_hits *l) {
    size_t low =
        l->searched > HFSBI_GREP_LINE ? l->searched - HFSBI_GREP_LINE : 0;
    size_t keep;
    if (low < l->shown) low = l->shown;
    keep = l->context ? hfsbi_hits_back(l, l->searched, low) : l->searched;
    if (keep == 0) return;
    (void)hfsbi_hits_number(l, keep);
    l->gap = l->gap || keep > l->shown;
    memmove(l->window.ptr, l->window.ptr + keep, l->window.len - keep);
    l->window.len -= keep;
    l->searched -= keep;
    l->counted -= keep;
    l->shown = 0;
}

/* Reads on behind what is in the window; *eof at the end of the file. */
static hfsb_status hfsbi_hits_fill(hfsbi_hits *l, int fd,
                                   unsigned long long  size,
                                   unsigned long long *got, bool *eof) {
    size_t      want = HFSBI_GREP_BLOCK;
    hfsb_status st = hfsb_buf_reserve(&l->window, want);
    if (st != HFSB_OK) return st;
    while (want > 0 && !*eof) {
        ssize_t n = hfsbi_read_file(fd, l->window.ptr + l->window.len, want);
        if (n < 0) return HFSB_IO;
        l->window.len += (size_t)n;
        want -= (size_t)n;
        *got += (unsigned long long)n;
        /* a file of /proc says that it has no size; one that grows as fast
           as it is read would have no end */
        *eof = n == 0 || (size && *got >= size);
    }
    return HFSB_OK;
}

/* Where the last whole line ends in the window, of which what is behind
   `from` is new. */
static size_t hfsbi_hits_whole(const hfsbi_hits *l, size_t from, bool eof) {
    size_t end = l->window.len;
    if (eof) return end;
    while (end > from && l->window.ptr[end - 1] != '\n') end--;
    if (end > from) return end;
    if (l->window.len - l->searched >= HFSBI_GREP_LINE) return l->window.len;
    return l->searched;
}

static void hfsbi_hits_begin(hfsbi_hits *l) {
    hfsb_buf_truncate(&l->window, 0);
    l->searched = l->shown = l->after = l->counted = 0;
    l->line = 1;
    l->matches = 0;
    l->any = l->gap = l->binary = l->parted = l->told = false;
}

HFSBI_FN hfsb_status hfsbi_hits_run(hfsbi_hits *l, int fd,
                                    unsigned long long size) {
    unsigned long long got = 0;
    bool               eof = false, done = false, first = true;
    hfsb_status        st = HFSB_OK;
    size_t             from, end;
    hfsbi_hits_begin(l);
    while (st == HFSB_OK && !eof && !done && !hfsbi_finder_over(l->finder)) {
        from = l->window.len;
        st = hfsbi_hits_fill(l, fd, size, &got, &eof);
        if (st != HFSB_OK) break;
        if (first) {
            hfsb_str probe =
                hfsb_str_slice(hfsb_buf_str(&l->window), 0, HFSBI_GREP_PROBE);
            l->binary = hfsb_str_find_byte(probe, '\0') != HFSB_NPOS;
            if (l->binary) break;
            first = false;
        }
        end = hfsbi_hits_whole(l, from, eof);
        l->parted = !eof && end > 0 && l->window.ptr[end - 1] != '\n';
        st = hfsbi_hits_search(l, end, &done);
        if (!eof && !done) hfsbi_hits_slide(l);
    }
    return st;
}
