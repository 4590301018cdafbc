/* grep.c - the tool grep: finds lines of files that match a pattern.

   The walk visits files; each one is searched through a window that slides
   along the file. All offsets are into the window:

       0            shown        searched                   window.len
       [ ... shown ) [ context )  [ lines not searched yet  )

   One round reads a block, searches up to the end of the last whole line, and
   drops the front, except for lines that may become context. `counted` and
   `line` number the lines, counting line feeds only as far as needed.

   A line longer than HFSBI_GREP_LINE is searched in parts. It counts as one
   match: `matched` marks that a part has matched, and the rest is skipped.

   Once the output is full the search goes on for HFSBI_GREP_SPARE_MS to count
   the remaining matches, then reports "at least" that many. A match that does
   not fit with its context is removed again, so pages never overlap. */
#include "tools_private.h"

enum {
    HFSBI_GREP_BLOCK = 256 * 1024,     /* bytes read at a time */
    HFSBI_GREP_LINE = 8 * 1024 * 1024, /* longer lines are searched in parts */
    HFSBI_GREP_PROBE = 8192,           /* a NUL in these bytes means binary */
    HFSBI_GREP_CHARS = 400,            /* characters shown of a line */
    HFSBI_GREP_LEAD = 100,             /* characters shown before the match */
    HFSBI_GREP_LIMIT = 200,    /* results, without an argument `limit` */
    HFSBI_GREP_SPARE_MS = 2000 /* time to count on after the output is full */
};

/* ---- output of one line ---- */

/* Chooses the range [*from, *to) of a long line to show around offset `at`. */
static void hfsbi_line_excerpt(hfsb_str text, size_t at, size_t *from,
                               size_t *to) {
    size_t back = 0, n = 0;
    *from = at;
    while (*from > 0 && n < HFSBI_GREP_LEAD) {
        --*from;
        if (((unsigned char)text.ptr[*from] & 0xC0u) != 0x80u) n++;
        else if (++back > 4 * HFSBI_GREP_LEAD) break; /* not UTF-8 */
    }
    *to = *from + hfsb_utf8_offset(hfsb_str_slice(text, *from, text.len),
                                   HFSBI_GREP_CHARS);
}

/* Appends the text of a line; a long line is cut around its match. */
static hfsb_status hfsbi_hits_put_text(hfsbi_hits *l, hfsb_str text,
                                       bool matches) {
    size_t   mark = l->out->len;
    size_t   from = 0, to = text.len, at = 0, end, chars = 0;
    hfsb_str part;
    if (text.len > HFSBI_GREP_CHARS) chars = hfsb_utf8_count(text);
    if (chars > HFSBI_GREP_CHARS) {
        if (!matches || !hfsb_regex_find(l->regex, text, 0, &at, &end)) at = 0;
        hfsbi_line_excerpt(text, at, &from, &to);
    }
    part = hfsb_str_slice(text, from, to);
    if (from) hfsb_buf_printf(l->out, "...");
    if (hfsb_utf8_validate(part) == part.len) hfsb_buf_append(l->out, part);
    else if (l->out->status == HFSB_OK) {
        l->out->status = hfsb_utf8_repair(part, l->out);
        l->bad_utf8 = true;
    }
    if (to < text.len) hfsb_buf_printf(l->out, "...");
    if (from || to < text.len)
        hfsb_buf_printf(l->out, " (cut: the line has %zu characters)", chars);
    return hfsb_buf_finish(l->out, mark);
}

/* The number of the line that begins at pos; pos never decreases. */
static unsigned long long hfsbi_hits_line_number(hfsbi_hits *l, size_t pos) {
    hfsb_str text = hfsb_buf_str(&l->window);
    l->file.line +=
        hfsb_str_count_byte(hfsb_str_slice(text, l->file.counted, pos), '\n');
    l->file.counted = pos;
    return l->file.line;
}

/* The offset after the line that begins at pos and its line feed. */
static size_t hfsbi_hits_next_line(const hfsbi_hits *l, size_t pos,
                                   size_t end) {
    hfsb_str text = hfsb_str_slice(hfsb_buf_str(&l->window), pos, end);
    size_t   n = hfsb_str_find_byte(text, '\n');
    return n == HFSB_NPOS ? end : pos + n + 1;
}

/* Appends "path:12:text", or "path-12-text" for a line of context. */
static hfsb_status hfsbi_hits_put_line(hfsbi_hits *l, size_t pos, size_t next,
                                       bool matches) {
    size_t             mark = l->out->len;
    unsigned long long number = hfsbi_hits_line_number(l, pos);
    hfsb_str text = hfsb_str_slice(hfsb_buf_str(&l->window), pos, next);
    char     sign = matches ? ':' : '-';
    if (text.len && text.ptr[text.len - 1] == '\n') text.len--;
    if (text.len && text.ptr[text.len - 1] == '\r') text.len--;
    if (l->out->len) hfsb_buf_append_byte(l->out, '\n');
    hfsbi_put_shown(l->out, l->folder);
    hfsbi_put_shown(l->out, l->path);
    hfsb_buf_printf(l->out, "%c%llu%c", sign, number, sign);
    l->file.shown = next;
    l->file.joined = true;
    if (hfsb_buf_finish(l->out, mark) != HFSB_OK) return l->out->status;
    return hfsbi_hits_put_text(l, text, matches);
}

/* ---- a match and its context ---- */

/* Appends the context after the last match, up to offset `end`. */
static hfsb_status hfsbi_hits_put_after(hfsbi_hits *l, size_t end) {
    hfsb_status st = HFSB_OK;
    if (l->out->len > l->page) l->file.after = 0;
    while (st == HFSB_OK && l->file.after && l->file.shown < end) {
        l->file.after = l->out->len > l->page ? 0 : l->file.after - 1;
        st = hfsbi_hits_put_line(l, l->file.shown,
                                 hfsbi_hits_next_line(l, l->file.shown, end),
                                 false);
    }
    return st;
}

/* The offset where the context before the line at pos begins; at least low. */
static size_t hfsbi_hits_context_start(const hfsbi_hits *l, size_t pos,
                                       size_t low) {
    const char *text = l->window.ptr;
    size_t      n = l->context;
    for (; n > 0 && pos > low; n--) {
        pos--; /* the line feed of the line before */
        while (pos > low && text[pos - 1] != '\n') pos--;
    }
    return pos;
}

/* Appends a matching line after its context, and "--" after a gap. */
static hfsb_status hfsbi_hits_put_match(hfsbi_hits *l, size_t pos,
                                        size_t next) {
    hfsb_status st = HFSB_OK;
    size_t      from;
    from = hfsbi_hits_context_start(l, pos, l->file.shown);
    if (l->context && l->out->len && (!l->file.joined || from > l->file.shown))
        st = hfsb_buf_append(l->out, HFSB_LIT("\n--"));
    while (st == HFSB_OK && from < pos) {
        size_t to = hfsbi_hits_next_line(l, from, pos);
        st = hfsbi_hits_put_line(l, from, to, false);
        from = to;
    }
    if (st == HFSB_OK) st = hfsbi_hits_put_line(l, pos, next, true);
    return st;
}

/* Handles a matching line in mode content: skips it, shows it, or finds the
   output full. HFSB_OK or HFSB_NOMEM. */
static hfsb_status hfsbi_hits_match(hfsbi_hits *l, size_t pos, size_t next) {
    hfsb_status st = hfsbi_hits_put_after(l, pos);
    size_t      mark = l->out->len;
    if (st != HFSB_OK) return st;
    if (l->skip) {
        l->skip--;
        l->file.shown = next; /* a skipped match is never context */
        return HFSB_OK;
    }
    l->full = !l->left || mark > l->page;
    if (!l->full) st = hfsbi_hits_put_match(l, pos, next);
    /* with its context the match may exceed the output: remove it again */
    if (mark && l->out->len > l->page && !l->full) {
        hfsb_buf_truncate(l->out, mark);
        l->full = true;
    }
    l->file.after = l->full ? 0 : l->context;
    if (l->full || st != HFSB_OK) return st;
    l->left--;
    l->printed++;
    return HFSB_OK;
}

/* ---- the window ---- */

/* Skips the rest of a line of which a part has matched: it is neither counted
   nor shown again. */
static void hfsbi_hits_skip_rest(hfsbi_hits *l, size_t end) {
    size_t next = hfsbi_hits_next_line(l, l->file.searched, end);
    if (l->file.searched == end) return;
    l->file.matched = l->file.parted && next == end;
    l->file.searched = l->file.shown = next;
}

/* Searches the lines up to `end`. Sets *done if the rest of the file does not
   matter. */
static hfsb_status hfsbi_hits_search(hfsbi_hits *l, size_t end, bool *done) {
    hfsb_str    text = hfsb_str_slice(hfsb_buf_str(&l->window), 0, end);
    hfsb_status st = HFSB_OK;
    size_t      begin, last;
    if (l->file.matched) hfsbi_hits_skip_rest(l, end);
    while (st == HFSB_OK && l->file.searched < end &&
           hfsb_regex_line(l->regex, text, l->file.searched, &begin, &last)) {
        size_t next = hfsbi_hits_next_line(l, last, end);
        l->file.matches++;
        l->file.searched = next;
        l->file.matched = l->file.parted && next == end;
        if (l->mode == HFSBI_GREP_FILES) {
            *done = true;
            return HFSB_OK;
        }
        if (l->mode == HFSBI_GREP_CONTENT && !l->full)
            st = hfsbi_hits_match(l, begin, next);
        else l->full = l->full || l->mode == HFSBI_GREP_CONTENT;
    }
    l->file.searched = end;
    if (st == HFSB_OK) st = hfsbi_hits_put_after(l, end);
    return st;
}

/* Drops the front of the window, except lines that may become context. */
static void hfsbi_hits_slide(hfsbi_hits *l) {
    size_t low = l->file.searched > HFSBI_GREP_LINE
                     ? l->file.searched - HFSBI_GREP_LINE
                     : 0;
    size_t keep;
    if (low < l->file.shown) low = l->file.shown;
    keep = l->context ? hfsbi_hits_context_start(l, l->file.searched, low)
                      : l->file.searched;
    if (keep == 0) return;
    (void)hfsbi_hits_line_number(l, keep);
    if (keep > l->file.shown) l->file.joined = false;
    memmove(l->window.ptr, l->window.ptr + keep, l->window.len - keep);
    l->window.len -= keep;
    l->file.searched -= keep;
    l->file.counted -= keep;
    l->file.shown = 0;
}

/* Reads a block to the end of the window; sets *eof at the end of the file.
   HFSB_OK; HFSB_IO with errno; HFSB_NOMEM. */
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
        /* Files of /proc report size 0, so read them to the end. Stop others
           at their size: a growing file might never end. */
        *eof = n == 0 || (size && *got >= size);
    }
    return HFSB_OK;
}

/* The offset to search up to: the end of the last whole line. Bytes before
   `from` were examined in an earlier round. */
static size_t hfsbi_hits_line_end(const hfsbi_hits *l, size_t from, bool eof) {
    size_t end = l->window.len;
    if (eof) return end;
    while (end > from && l->window.ptr[end - 1] != '\n') end--;
    if (end > from) return end;
    if (l->window.len - l->file.searched >= HFSBI_GREP_LINE)
        return l->window.len;
    return l->file.searched;
}

/* Resets all that belongs to one file. */
static void hfsbi_hits_begin(hfsbi_hits *l) {
    hfsb_buf_truncate(&l->window, 0);
    memset(&l->file, 0, sizeof l->file);
    l->file.line = 1;
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
            l->file.binary = hfsb_str_find_byte(probe, '\0') != HFSB_NPOS;
            if (l->file.binary) break;
            first = false;
        }
        end = hfsbi_hits_line_end(l, from, eof);
        l->file.parted = !eof && end > 0 && l->window.ptr[end - 1] != '\n';
        st = hfsbi_hits_search(l, end, &done);
        if (!eof && !done) hfsbi_hits_slide(l);
    }
    return st;
}

/* ---- one file ---- */

/* One call of grep. */
typedef struct hfsbi_grep {
    hfsbi_finder       finder;
    hfsbi_hits         lines;
    hfsb_str           path;
    hfsb_glob         *include;
    bool               include_names; /* include has no slash */
    hfsbi_results_page page;
    unsigned long long searched;   /* text files */
    unsigned long long files;      /* files with matches */
    unsigned long long matches;    /* matching lines in all files */
    size_t             binary;     /* files skipped as binary */
    size_t             unreadable; /* files that could not be read */
    unsigned long long shown;      /* files in the output */
    bool               full;       /* some results were not shown */
    long long          full_since; /* on hfsb_clock_ms(); 0: not full */
} hfsbi_grep;

/* Appends "path", or "path:12" in mode count. */
static hfsb_status hfsbi_grep_put_file(hfsbi_grep *g) {
    hfsb_buf *out = g->lines.out;
    size_t    mark = out->len;
    if (g->files <= g->page.offset) return HFSB_OK;
    if (g->shown == g->page.limit || out->len > g->page.bytes) {
        g->full = true;
        return HFSB_OK;
    }
    g->shown++;
    if (out->len) hfsb_buf_append_byte(out, '\n');
    hfsbi_put_shown(out, g->lines.folder);
    hfsbi_put_shown(out, g->lines.path);
    if (g->lines.mode == HFSBI_GREP_COUNT)
        hfsb_buf_printf(out, ":%llu", g->lines.file.matches);
    return hfsb_buf_finish(out, mark);
}

/* Ends the walk, with files left that were not searched. */
static void hfsbi_grep_stop(hfsbi_grep *g) {
    if (g->finder.end == HFSBI_WALK_COMPLETE)
        g->finder.end = HFSBI_WALK_STOPPED;
}

/* Searches an open file and adds up its counts. HFSB_OK or HFSB_NOMEM. */
static hfsb_status hfsbi_grep_file(hfsbi_grep *g, int fd,
                                   unsigned long long size) {
    hfsbi_hits *l = &g->lines;
    hfsb_status st = hfsbi_hits_run(l, fd, size);
    if (st == HFSB_IO) {
        g->unreadable++;
        st = HFSB_OK;
    }
    if (l->file.binary) g->binary++;
    else g->searched++;
    if (l->file.matches) g->files++;
    g->matches += l->file.matches;
    if (st == HFSB_OK && l->file.matches && l->mode != HFSBI_GREP_CONTENT)
        st = hfsbi_grep_put_file(g);
    g->full = g->full || l->full;
    if (g->full && !g->full_since) g->full_since = hfsb_clock_ms();
    if (g->full && hfsb_clock_ms() - g->full_since > HFSBI_GREP_SPARE_MS)
        hfsbi_grep_stop(g);
    return st;
}

/* Callback of the walk: files that include matches, folders that may contain
   some. */
static bool hfsbi_grep_wants(void *user, const hfsbi_entry *entry) {
    hfsbi_grep *g = (hfsbi_grep *)user;
    if (entry->type == HFSBI_ENTRY_FOLDER)
        return !g->include || g->include_names ||
               hfsb_glob_enters(g->include, entry->path);
    if (entry->type != HFSBI_ENTRY_FILE) return false;
    return !g->include ||
           hfsb_glob_match(g->include, g->include_names
                                           ? hfsb_cstr(entry->name)
                                           : entry->path);
}

/* Callback of the walk: opens and searches a file. */
static hfsb_status hfsbi_grep_visit(void *user, const hfsbi_entry *entry) {
    hfsbi_grep *g = (hfsbi_grep *)user;
    struct stat at;
    hfsb_status st;
    int         fd;
    if (entry->type != HFSBI_ENTRY_FILE) return HFSB_OK;
    fd = hfsbi_entry_open(entry->dir, entry->name, &at);
    if (fd < 0) {
        if (errno != ENOENT && errno != ELOOP) g->unreadable++;
        return HFSB_OK;
    }
    g->lines.path = entry->path;
    st = hfsbi_grep_file(g, fd, (unsigned long long)at.st_size);
    hfsbi_close(&fd);
    return st;
}

/* Searches a path that is a file; here a read error fails the call. */
static hfsb_status hfsbi_grep_single(hfsbi_grep *g, hfsb_err *err) {
    hfsbi_target *spot = &g->finder.spot;
    hfsb_status   st;
    int           fd;
    st = hfsbi_target_open(g->finder.place, g->path, spot, &fd, err);
    if (st != HFSB_OK) return st;
    g->lines.path = g->path;
    g->lines.folder = hfsb_str_make("", 0);
    st = hfsbi_grep_file(g, fd, (unsigned long long)spot->st.st_size);
    if (st == HFSB_OK && g->unreadable)
        st = hfsbi_file_fail_os(g->finder.place, g->path, errno, "read", err);
    hfsbi_close(&fd);
    return st;
}

/* ---- the result ---- */

static const char *hfsbi_plural(unsigned long long n) {
    return n == 1 ? "" : "s";
}

/* Appends the numbers of files that were not searched. */
static void hfsbi_grep_put_skipped(const hfsbi_grep *g, hfsb_buf *sink) {
    if (g->binary)
        hfsb_buf_printf(sink, ", %zu binary file%s skipped", g->binary,
                        hfsbi_plural(g->binary));
    if (g->unreadable)
        hfsb_buf_printf(sink, ", %zu file%s could not be read", g->unreadable,
                        hfsbi_plural(g->unreadable));
}

/* Appends why nothing matches, with the next step. */
static hfsb_status hfsbi_grep_put_none(hfsb_call *call, hfsbi_grep *g) {
    size_t mark = g->lines.out->len;
    call->note_lines = 1;
    hfsb_buf_printf(g->lines.out, "(no matches; %llu file%s searched",
                    g->searched, hfsbi_plural(g->searched));
    hfsbi_grep_put_skipped(g, g->lines.out);
    if (g->include && !g->searched && !g->binary)
        hfsb_buf_printf(g->lines.out,
                        g->include_names
                            ? "; include matches none: it is a pattern for "
                              "names"
                            : "; include matches none: with a slash in it "
                              "it begins at path, **/ before it is any "
                              "folder");
    if (g->finder.ignored)
        hfsb_buf_printf(g->lines.out,
                        "; what .gitignore names was left out, %s "
                        "includes it",
                        hfsbi_finder_all(call));
    hfsb_buf_append_byte(g->lines.out, ')');
    return hfsb_buf_finish(g->lines.out, mark);
}

/* Adds the note about which results are shown. */
static hfsb_status hfsbi_grep_put_page(hfsb_call *call, const hfsbi_grep *g) {
    char what[64];
    if (g->lines.mode != HFSBI_GREP_CONTENT)
        return hfsbi_finder_page(call, &g->finder, &g->page, g->shown,
                                 g->files, " files with matches");
    snprintf(what, sizeof what, " matching lines in %llu file%s", g->files,
             hfsbi_plural(g->files));
    return hfsbi_finder_page(call, &g->finder, &g->page, g->lines.printed,
                             g->matches, what);
}

/* The offset of the next page; 0: this is the last one. */
static unsigned long long hfsbi_grep_next(const hfsbi_grep *g) {
    if (!g->full) return 0;
    return g->page.offset +
           (g->lines.mode == HFSBI_GREP_CONTENT ? g->lines.printed : g->shown);
}

/* Adds the notes and fields of the result. */
static hfsb_status hfsbi_grep_result(hfsb_call *call, hfsbi_grep *g) {
    hfsb_status st = HFSB_OK;
    if (!g->files) st = hfsbi_grep_put_none(call, g);
    if (st == HFSB_OK) st = hfsbi_grep_put_page(call, g);
    if (st == HFSB_OK && g->lines.bad_utf8)
        st = hfsbi_finder_note(call, "(bytes that are not UTF-8 are shown as "
                                     "\xEF\xBF\xBD)");
    if (st == HFSB_OK && g->files && g->unreadable)
        st = hfsbi_finder_note(call, "(%zu file%s could not be read)",
                               g->unreadable, hfsbi_plural(g->unreadable));
    if (st == HFSB_OK)
        st = hfsbi_finder_result(
            call, &g->finder,
            g->lines.mode == HFSBI_GREP_FILES ? g->files : g->matches,
            hfsbi_grep_next(g));
    return st;
}

/* ---- the arguments ---- */

/* Opens the pattern of include; "*.c,*.h" means "{*.c,*.h}". */
static hfsb_status hfsbi_grep_include(hfsbi_grep *g, const hfsb_alloc *alloc,
                                      hfsb_str include, hfsb_err *err) {
    hfsb_buf    text = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    bool        list = hfsb_str_find_byte(include, ',') != HFSB_NPOS &&
                hfsb_str_find_byte(include, '{') == HFSB_NPOS;
    if (!include.len) return HFSB_OK;
    text.alloc = *alloc;
    while (hfsb_str_starts(include, HFSB_LIT("./")))
        include = hfsb_str_slice(include, 2, include.len);
    if (list) st = hfsb_buf_append_byte(&text, '{');
    if (st == HFSB_OK) st = hfsb_buf_append(&text, include);
    if (st == HFSB_OK && list) st = hfsb_buf_append_byte(&text, '}');
    if (st == HFSB_OK)
        st = hfsb_glob_open(hfsb_buf_str(&text), alloc, &g->include, err);
    g->include_names = hfsb_str_find_byte(include, '/') == HFSB_NPOS;
    hfsb_buf_free(&text);
    if (st == HFSB_ARG || st == HFSB_LIMIT) hfsbi_err_add(err, " (include)");
    return st;
}

typedef struct hfsbi_grep_args {
    hfsb_str  pattern, path, include, mode;
    bool      literal, ignore_case, all;
    long long context, limit, offset;
} hfsbi_grep_args;

static const hfsbi_param hfsbi_grep_params[] = {
    HFSBI_PARAM("pattern", HFSBI_ARG_STR, HFSBI_REQUIRED, hfsbi_grep_args,
                pattern, NULL),
    HFSBI_PARAM("path", HFSBI_ARG_STR, 0, hfsbi_grep_args, path,
                "File or folder"),
    HFSBI_PARAM("include", HFSBI_ARG_STR, 0, hfsbi_grep_args, include,
                "Such as *.{c,h}"),
    HFSBI_PARAM("literal", HFSBI_ARG_BOOL, 0, hfsbi_grep_args, literal,
                "pattern is plain text"),
    HFSBI_PARAM("ignore_case", HFSBI_ARG_BOOL, 0, hfsbi_grep_args, ignore_case,
                NULL),
    HFSBI_PARAM_RANGE("context", HFSBI_ARG_INT, HFSBI_CLAMPED, hfsbi_grep_args,
                      context, "Lines around a match", 0, 20, 0,
                      "a number of lines from 0 to 20"),
    HFSBI_PARAM_CHOICE("mode", HFSBI_ONE_OF, hfsbi_grep_args, mode,
                       "content files count|files_with_matches"),
    HFSBI_FINDER_PARAMS(hfsbi_grep_args, NULL, 10000, 200),
    HFSBI_PARAM_END};

static hfsbi_grep_mode hfsbi_grep_mode_of(hfsb_str word) {
    if (hfsb_str_starts(word, HFSB_LIT("files"))) return HFSBI_GREP_FILES;
    if (hfsb_str_equal(word, HFSB_LIT("count"))) return HFSBI_GREP_COUNT;
    return HFSBI_GREP_CONTENT;
}

/* Opens the pattern. HFSB_OK; else a message that helps to correct it. */
static hfsb_status hfsbi_grep_pattern(const hfsb_call *call, hfsbi_grep *g,
                                      hfsb_str               pattern,
                                      const hfsb_regex_opts *how,
                                      hfsb_err              *err) {
    hfsb_status st;
    if (!pattern.len)
        return hfsbi_fail(err, HFSB_REFUSED, 0, "The pattern is empty.");
    if (hfsb_str_find_byte(pattern, '\n') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "The pattern has a line feed in it, but lines are "
                          "searched one by one: give a part that is on one "
                          "line, and %scontext for the lines around it.",
                          call->opts.names == HFSB_EDIT_NAMES_FLAGS ? "--"
                                                                    : "");
    st = hfsb_regex_open(pattern, how, &g->lines.regex, err);
    if (st == HFSB_ARG && !how->literal)
        hfsbi_err_add(err, " To search for the text as it is, %s.",
                      call->opts.names == HFSB_EDIT_NAMES_FLAGS
                          ? "give --literal"
                          : "set literal=true");
    return st;
}

/* ---- the tool ---- */

/* Searches the file or folder and fills the result. */
static hfsb_status hfsbi_grep_run(hfsb_call *call, hfsbi_grep *g,
                                  hfsb_err *err) {
    hfsbi_finder *f = &g->finder;
    hfsb_status   st;
    f->flags |= HFSBI_FIND_SORTED;
    f->wants = hfsbi_grep_wants;
    f->visit = hfsbi_grep_visit;
    f->user = g;
    g->lines.folder = hfsb_buf_str(&f->shown);
    g->lines.left = g->page.limit;
    g->lines.skip = g->page.offset;
    g->lines.page = g->page.bytes;
    g->lines.out = &call->result.output;
    st = S_ISDIR(f->spot.st.st_mode) ? hfsbi_finder_run(f, err)
                                     : hfsbi_grep_single(g, err);
    if (st == HFSB_NOMEM) return st;
    if (st != HFSB_OK) return hfsbi_result_err(&call->result, err);
    return hfsbi_grep_result(call, g);
}

/* Callback of the regex: stops a match that takes too long. */
static bool hfsbi_grep_over(void *user) {
    return hfsbi_finder_over((hfsbi_finder *)user);
}

/* Prepares patterns and walk from the arguments, then runs the search. */
static hfsb_status hfsbi_grep_begin(hfsb_call *call, hfsbi_grep *g,
                                    const hfsbi_grep_args *a, hfsb_err *err) {
    hfsb_regex_opts how = HFSB_INIT;
    hfsb_status     st;
    how.literal = a->literal;
    how.ignore_case = a->ignore_case;
    how.alloc = call->tools->alloc;
    how.cancelled = hfsbi_grep_over;
    how.user = g->lines.finder = &g->finder;
    g->path = a->path;
    g->lines.mode = hfsbi_grep_mode_of(a->mode);
    g->lines.context = (size_t)a->context;
    st = hfsbi_grep_pattern(call, g, a->pattern, &how, err);
    if (st == HFSB_OK) st = hfsbi_grep_include(g, &how.alloc, a->include, err);
    if (st == HFSB_OK)
        st = hfsbi_finder_begin(call, &g->finder, a->path, a->all, err);
    if (st == HFSB_NOMEM) return st;
    if (st != HFSB_OK) return hfsbi_result_err(&call->result, err);
    return hfsbi_grep_run(call, g, err);
}

HFSBI_FN hfsb_status hfsbi_run_grep(hfsb_call *call, const void *args,
                                    hfsb_err *err) {
    const hfsbi_grep_args *a = (const hfsbi_grep_args *)args;
    hfsbi_grep             g;
    hfsb_status            st;
    memset(&g, 0, sizeof g);
    g.page =
        hfsbi_results_page_make(call, a->offset, a->limit, HFSBI_GREP_LIMIT);
    g.lines.window.alloc = call->tools->alloc;
    g.finder.spot.dir = -1;
    st = hfsbi_grep_begin(call, &g, a, err);
    hfsbi_finder_close(&g.finder);
    hfsb_glob_close(g.include);
    hfsb_regex_close(g.lines.regex);
    hfsb_buf_free(&g.lines.window);
    return st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_grep(void) {
    static const hfsbi_tool row = {
        "grep",
        "Search in files",
        "Search lines of text files for a POSIX extended regular expression "
        "(also \\w \\d \\s \\b). Leaves out what glob does, and binary "
        "files.",
        NULL,
        HFSBI_TOOL_READS,
        HFSBI_TOOL_ON_DISK | HFSBI_TOOL_CORE,
        hfsbi_grep_params};
    return &row;
}
