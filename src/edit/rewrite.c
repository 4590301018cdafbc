/* rewrite.c - what is put in the place of a match: lines that did not change
   keep the file's bytes, the others take its line ends and indentation. */
#include "edit_private.h"

typedef struct hfsbi_indent {
    const hfsb_str *old_indents; /* by line; ptr NULL for a blank line */
    const hfsb_str *file_indents;
    size_t          count;
    int             kind; /* private from here on */
    hfsb_str        prefix;
    size_t          old_unit, file_unit; /* 0: tab, else spaces */
    long            shift;
    bool            may_derive;
    size_t          distinct[HFSBI_INDENT_DISTINCT]; /* lines that show them */
    size_t          distinct_count;
} hfsbi_indent;

/* ==== indent ==== */

/* from the caller's indentation to the file's. */

enum {
    HFSBI_INDENT_IRREGULAR,
    HFSBI_INDENT_ADD,    /* the file has a prefix more, everywhere */
    HFSBI_INDENT_REMOVE, /* the old text has one more, everywhere */
    HFSBI_INDENT_UNITS,  /* levels of one unit became levels of another */
    HFSBI_INDENT_TABLE   /* no rule, but each became one other: look it up */
};

/* ---- units: a tab, or 2, 3, 4 or 8 spaces ---- */

static const size_t hfsbi_units[] = {0, 2, 3, 4, 8}; /* 0: a tab */
#define HFSBI_UNIT_COUNT (sizeof hfsbi_units / sizeof *hfsbi_units)

/* How many units the indentation has, or -1 when it is made otherwise. */
static long hfsbi_level(hfsb_str indent, size_t unit) {
    char   c = unit ? ' ' : '\t';
    size_t i, width = unit ? unit : 1;
    for (i = 0; i < indent.len; i++)
        if (indent.ptr[i] != c) return -1;
    return indent.len % width ? -1 : (long)(indent.len / width);
}

/* True when every pair is the same number of units apart. Levels that all
   are the same prove nothing about a shift, so that one must be zero. */
static bool hfsbi_fits_units(const hfsbi_indent *map, size_t old_unit,
                             size_t file_unit, long *shift) {
    long   first = -1;
    bool   varied = false, any = false;
    size_t i;
    for (i = 0; i < map->count; i++) {
        long o, f;
        if (!map->old_indents[i].ptr) continue;
        o = hfsbi_level(map->old_indents[i], old_unit);
        f = hfsbi_level(map->file_indents[i], file_unit);
        if (o < 0 || f < 0) return false;
        if (any && f - o != *shift) return false;
        if (any && o != first) varied = true;
        *shift = f - o;
        first = o;
        any = true;
    }
    return any && (varied || *shift == 0);
}

static bool hfsbi_find_units(hfsbi_indent *map) {
    size_t a, b;
    for (a = 0; a < HFSBI_UNIT_COUNT; a++)
        for (b = 0; b < HFSBI_UNIT_COUNT; b++)
            if (a != b && hfsbi_fits_units(map, hfsbi_units[a], hfsbi_units[b],
                                           &map->shift)) {
                map->old_unit = hfsbi_units[a];
                map->file_unit = hfsbi_units[b];
                return true;
            }
    return false;
}

/* ---- a prefix ---- */

/* True when longer[i] = prefix + shorter[i] for every line; the first line
   gives the prefix. */
static bool hfsbi_find_prefix(const hfsb_str *longer, const hfsb_str *shorter,
                              size_t count, hfsb_str *prefix) {
    bool   any = false;
    size_t i;
    for (i = 0; i < count; i++) {
        if (!longer[i].ptr) continue;
        if (!hfsb_str_ends(longer[i], shorter[i])) return false;
        if (!any)
            *prefix =
                hfsb_str_slice(longer[i], 0, longer[i].len - shorter[i].len);
        any = true;
        if (longer[i].len != prefix->len + shorter[i].len ||
            !hfsb_str_starts(longer[i], *prefix))
            return false;
    }
    return any;
}

/* ---- the rule ---- */

static hfsb_str hfsbi_least_indent(const hfsb_str *indents, size_t count) {
    hfsb_str least = HFSB_INIT;
    size_t   i;
    for (i = 0; i < count; i++)
        if (indents[i].ptr && (!least.ptr || indents[i].len < least.len))
            least = indents[i];
    return least;
}

/* The noted line with this indentation, or HFSB_NPOS. */
static size_t hfsbi_indent_seen(const hfsbi_indent *map, hfsb_str indent) {
    size_t i;
    for (i = 0; i < map->distinct_count; i++)
        if (hfsb_str_equal(map->old_indents[map->distinct[i]], indent))
            return map->distinct[i];
    return HFSB_NPOS;
}

/* Notes the indentations of the old text, a line for each; false when there
   are more than there is room for: those then count as never seen. */
static bool hfsbi_indent_note(hfsbi_indent *map) {
    size_t i;
    for (i = 0; i < map->count; i++) {
        if (!map->old_indents[i].ptr ||
            hfsbi_indent_seen(map, map->old_indents[i]) != HFSB_NPOS)
            continue;
        if (map->distinct_count == HFSBI_INDENT_DISTINCT) return false;
        map->distinct[map->distinct_count++] = i;
    }
    return true;
}

/* True when each indentation of the old text became one of the file's, deeper
   ones deeper ones. */
static bool hfsbi_find_table(const hfsbi_indent *map) {
    size_t i, k;
    for (i = 0; i < map->count; i++) {
        if (!map->old_indents[i].ptr) continue;
        k = hfsbi_indent_seen(map, map->old_indents[i]);
        if (!hfsb_str_equal(map->file_indents[i], map->file_indents[k]))
            return false;
    }
    for (i = 0; i < map->distinct_count; i++)
        for (k = 0; k < map->distinct_count; k++) {
            size_t a = map->distinct[i], b = map->distinct[k];
            if (map->old_indents[a].len < map->old_indents[b].len &&
                map->file_indents[a].len >= map->file_indents[b].len)
                return false;
            if (a != b && map->old_indents[a].len == map->old_indents[b].len)
                return false;
        }
    return map->distinct_count > 0;
}

/* Finds the one rule behind all pairs. least_new is the smallest indentation
   of the new text's lines. */
static hfsbi_indent hfsbi_indent_make(const hfsb_str *old_indents,
                                      const hfsb_str *file_indents,
                                      size_t count, hfsb_str least_new) {
    hfsbi_indent map = HFSB_INIT;
    bool         all;
    map.old_indents = old_indents;
    map.file_indents = file_indents;
    map.count = count;
    map.may_derive =
        hfsb_str_equal(hfsbi_least_indent(old_indents, count), least_new);
    all = hfsbi_indent_note(&map);
    if (hfsbi_find_prefix(file_indents, old_indents, count, &map.prefix))
        map.kind = HFSBI_INDENT_ADD;
    else if (hfsbi_find_prefix(old_indents, file_indents, count, &map.prefix))
        map.kind = HFSBI_INDENT_REMOVE;
    else if (hfsbi_find_units(&map)) map.kind = HFSBI_INDENT_UNITS;
    else if (all && hfsbi_find_table(&map)) map.kind = HFSBI_INDENT_TABLE;
    return map;
}

/* True when one rule explains all pairs. */
static bool hfsbi_indent_is_regular(const hfsbi_indent *map) {
    return map->kind != HFSBI_INDENT_IRREGULAR;
}

static bool hfsbi_has_byte(hfsb_str s, char c) {
    return hfsb_str_find_byte(s, c) != HFSB_NPOS;
}

/* Tabs of the one and spaces of the other side by side: neither's style. */
static bool hfsbi_mixes(hfsb_str a, hfsb_str b) {
    return (hfsbi_has_byte(a, '\t') && !hfsbi_has_byte(a, ' ') &&
            hfsbi_has_byte(b, ' ') && !hfsbi_has_byte(b, '\t')) ||
           (hfsbi_has_byte(a, ' ') && !hfsbi_has_byte(a, '\t') &&
            hfsbi_has_byte(b, '\t') && !hfsbi_has_byte(b, ' '));
}

/* Appends the file's indentation for `indent`; false, and nothing written,
   when it cannot be told. */
static bool hfsbi_indent_put(const hfsbi_indent *map, hfsb_str indent,
                             hfsb_buf *sink) {
    long   level;
    size_t seen = hfsbi_indent_seen(map, indent);
    if (seen == HFSB_NPOS && !map->may_derive) return false;
    switch (map->kind) {
    case HFSBI_INDENT_ADD:
        if (seen == HFSB_NPOS && hfsbi_mixes(map->prefix, indent))
            return false;
        hfsb_buf_append(sink, map->prefix);
        hfsb_buf_append(sink, indent);
        return true;
    case HFSBI_INDENT_REMOVE:
        if (!hfsb_str_starts(indent, map->prefix)) return false;
        hfsb_buf_append(sink,
                        hfsb_str_slice(indent, map->prefix.len, indent.len));
        return true;
    case HFSBI_INDENT_UNITS:
        level = hfsbi_level(indent, map->old_unit);
        if (level < 0 || level + map->shift < 0) return false;
        for (level += map->shift; level > 0; level--)
            hfsb_buf_append(sink,
                            map->file_unit
                                ? hfsb_str_make("        ", map->file_unit)
                                : HFSB_LIT("\t"));
        return true;
    case HFSBI_INDENT_TABLE:
        if (seen == HFSB_NPOS) return false;
        hfsb_buf_append(sink, map->file_indents[seen]);
        return true;
    default: return false;
    }
}

/* ---- scripts ---- */

HFSBI_FN hfsb_status hfsbi_script_make(const hfsb_alloc *alloc,
                                       hfsb_str old_text, hfsb_str new_text,
                                       hfsb_str      raw_new,
                                       hfsbi_script *script) {
    hfsb_status st;
    memset(script, 0, sizeof *script);
    script->old_text = old_text;
    script->new_text = new_text;
    script->raw_new = raw_new;
    st = hfsbi_lines_split(alloc, old_text, &script->olds);
    if (st == HFSB_OK) st = hfsbi_lines_split(alloc, new_text, &script->news);
    if (st == HFSB_OK) {
        script->same = (size_t *)hfsbi_array(alloc, script->news.count,
                                             sizeof *script->same);
        st = script->same ? HFSB_OK : HFSB_NOMEM;
    }
    if (st == HFSB_OK)
        st = hfsbi_lines_diff(alloc, script->olds.items, script->olds.count,
                              script->news.items, script->news.count,
                              script->same);
    if (st != HFSB_OK) hfsbi_script_free(alloc, script);
    return st;
}

HFSBI_FN void hfsbi_script_free(const hfsb_alloc *alloc,
                                hfsbi_script     *script) {
    hfsbi_array_free(alloc, script->same, script->news.count,
                     sizeof *script->same);
    hfsbi_lines_free(alloc, &script->olds);
    hfsbi_lines_free(alloc, &script->news);
    script->same = NULL;
}

HFSBI_FN void hfsbi_put_newlines(hfsb_buf *sink, hfsb_str text,
                                 hfsb_str newline) {
    size_t end;
    if (newline.len && !hfsb_str_equal(newline, HFSB_LIT("\n")))
        while ((end = hfsb_str_find_byte(text, '\n')) != HFSB_NPOS) {
            hfsb_buf_append(sink, hfsb_str_slice(text, 0, end));
            hfsb_buf_append(sink, newline);
            text = hfsb_str_slice(text, end + 1, text.len);
        }
    hfsb_buf_append(sink, text);
}

/* ---- the work on one match ---- */

typedef struct hfsbi_work {
    const hfsb_alloc   *alloc;
    const hfsbi_file   *file;
    const hfsbi_script *script;
    hfsbi_rung          rung;
    unsigned            flags;
    hfsb_str            newline; /* for lines that are new */
    hfsb_str           *texts;   /* the file's lines, by old line */
    hfsb_str           *ends;    /* their line ends; empty at the last */
    hfsb_str           *old_indents, *file_indents;
    hfsbi_indent        map;
    bool                mid_line; /* the first line does not start a line */
    hfsb_buf           *sink;
    bool                reindented;
} hfsbi_work;

static void hfsbi_work_free(hfsbi_work *w) {
    size_t n = w->script->olds.count;
    hfsbi_array_free(w->alloc, w->texts, n, sizeof *w->texts);
    hfsbi_array_free(w->alloc, w->ends, n, sizeof *w->ends);
    hfsbi_array_free(w->alloc, w->old_indents, n, sizeof *w->old_indents);
    hfsbi_array_free(w->alloc, w->file_indents, n, sizeof *w->file_indents);
}

/* Cuts the match into the lines that stand for the old ones. */
static void hfsbi_work_split(hfsbi_work *w, hfsbi_match match) {
    size_t i, pos = match.start, len;
    for (i = 0; i < w->script->olds.count; i++) {
        size_t end = hfsbi_file_line_end(w->file, pos, &len);
        if (end >= match.end) {
            end = match.end;
            len = 0;
        }
        w->texts[i] = hfsb_str_slice(w->file->text, pos, end);
        w->ends[i] = hfsb_str_slice(w->file->text, end, end + len);
        pos = end + len;
    }
}

/* The file's newline, or that of the new text when the file has none. */
static hfsb_str hfsbi_newline_for(const hfsbi_file   *file,
                                  const hfsbi_script *script, size_t pos) {
    hfsb_str newline = hfsbi_file_newline(file, pos);
    size_t   lf = hfsb_str_find_byte(script->raw_new, '\n');
    if (newline.len) return newline;
    return lf != HFSB_NPOS && lf > 0 && script->raw_new.ptr[lf - 1] == '\r'
               ? HFSB_LIT("\r\n")
               : HFSB_LIT("\n");
}

static bool hfsbi_work_make(hfsbi_work *w, hfsbi_match match) {
    size_t n = w->script->olds.count, pos = match.start;
    w->texts = (hfsb_str *)hfsbi_array(w->alloc, n, sizeof *w->texts);
    w->ends = (hfsb_str *)hfsbi_array(w->alloc, n, sizeof *w->ends);
    if (!w->texts || !w->ends) return false;
    hfsbi_work_split(w, match);
    w->newline = hfsbi_newline_for(w->file, w->script, match.start);
    while (pos > 0 && (w->file->text.ptr[pos - 1] == ' ' ||
                       w->file->text.ptr[pos - 1] == '\t'))
        pos--;
    w->mid_line = pos > 0 && w->file->text.ptr[pos - 1] != '\n' &&
                  !(w->file->lone_cr && w->file->text.ptr[pos - 1] == '\r');
    return true;
}

/* ---- keeping the file's bytes inside a changed line ---- */

static bool hfsbi_is_continuation(hfsb_str s, size_t pos) {
    return pos < s.len && ((unsigned char)s.ptr[pos] & 0xC0u) == 0x80u;
}

/* True when a cut at pos would fall between two blanks. */
static bool hfsbi_cuts_run(hfsb_str s, size_t pos, unsigned flags) {
    size_t len, back = pos;
    if (!(flags & HFSBI_FOLD_RUNS) || pos == 0 || pos >= s.len) return false;
    do back--;
    while (back > 0 && hfsbi_is_continuation(s, back));
    return hfsbi_is_blank(s, pos, flags, &len) &&
           hfsbi_is_blank(s, back, flags, &len);
}

static size_t hfsbi_common_head(hfsb_str a, hfsb_str b, unsigned flags) {
    size_t n = 0, least = a.len < b.len ? a.len : b.len;
    while (n < least && a.ptr[n] == b.ptr[n]) n++;
    while (n > 0 &&
           (hfsbi_is_continuation(a, n) || hfsbi_is_continuation(b, n) ||
            hfsbi_cuts_run(b, n, flags)))
        n--;
    return n;
}

static size_t hfsbi_common_tail(hfsb_str a, hfsb_str b, unsigned flags) {
    size_t n = 0, least = a.len < b.len ? a.len : b.len;
    while (n < least && a.ptr[a.len - 1 - n] == b.ptr[b.len - 1 - n]) n++;
    while (n > 0 && (hfsbi_is_continuation(a, a.len - n) ||
                     hfsbi_cuts_run(b, b.len - n, flags)))
        n--;
    return n;
}

/* Old and file line are the same to the folds: their folded characters end at
   the same places, with characters that vanish between. */
typedef struct hfsbi_border {
    size_t old_first, file_first; /* behind a folded character */
    size_t old_last, file_last;   /* before the next one */
} hfsbi_border;

typedef struct hfsbi_pair {
    hfsbi_folder old_line, file_line;
    size_t       seen_old, seen_file; /* folded bytes so far */
} hfsbi_pair;

static hfsbi_pair hfsbi_pair_make(const hfsbi_work *w, size_t line) {
    hfsbi_pair p;
    p.old_line = hfsbi_folder_make(w->script->olds.items[line], w->flags);
    p.file_line = hfsbi_folder_make(w->texts[line], w->flags);
    p.file_line.indent = !(line == 0 && w->mid_line);
    p.seen_old = p.seen_file = 0;
    return p;
}

/* Where the folder gets to when it skips what vanishes. */
static size_t hfsbi_skip_vanishing(hfsbi_folder *f) {
    hfsbi_folder ahead = *f;
    hfsbi_unit   u;
    while (hfsbi_folder_next(&ahead, &u) && !u.out.len) *f = ahead;
    return f->pos;
}

/* The border at the pair's place; the pair moves before the next folded
   character. */
static hfsbi_border hfsbi_pair_border(hfsbi_pair *p) {
    hfsbi_border b;
    b.old_first = p->old_line.pos;
    b.file_first = p->file_line.pos;
    b.old_last = hfsbi_skip_vanishing(&p->old_line);
    b.file_last = hfsbi_skip_vanishing(&p->file_line);
    return b;
}

/* On to the next place where characters end on both sides. */
static bool hfsbi_pair_next(hfsbi_pair *p) {
    hfsbi_unit u;
    do {
        hfsbi_folder *f =
            p->seen_old <= p->seen_file ? &p->old_line : &p->file_line;
        bool old_side = f == &p->old_line;
        if (!hfsbi_folder_next(f, &u)) return false;
        if (old_side) p->seen_old += u.out.len;
        else p->seen_file += u.out.len;
    } while (p->seen_old != p->seen_file);
    return true;
}

/* The last border at or before `limit` bytes of the old line: behind the last
   character that is kept. */
static void hfsbi_align_head(const hfsbi_work *w, size_t line, size_t limit,
                             size_t *old_pos, size_t *file_pos) {
    hfsbi_pair   p = hfsbi_pair_make(w, line);
    hfsbi_border b;
    *old_pos = *file_pos = 0;
    do {
        b = hfsbi_pair_border(&p);
        if (b.old_first > limit) return;
        *old_pos = b.old_first;
        *file_pos = b.file_first;
    } while (hfsbi_pair_next(&p));
}

/* The first border at or behind `limit` bytes of the old line: before the
   first character that is kept. */
static void hfsbi_align_tail(const hfsbi_work *w, size_t line, size_t limit,
                             size_t *old_pos, size_t *file_pos) {
    hfsbi_pair p = hfsbi_pair_make(w, line);
    do {
        hfsbi_border b = hfsbi_pair_border(&p);
        bool         early = b.old_first >= limit && b.old_first < b.old_last;
        *old_pos = early ? b.old_first : b.old_last;
        *file_pos = early ? b.file_first : b.file_last;
    } while (*old_pos < limit && hfsbi_pair_next(&p));
}

/* A new line that took the place of old lines `first` to `last`: where it
   begins as the first and ends as the last, the file's bytes stay. */
static void hfsbi_put_changed(hfsbi_work *w, hfsb_str line, size_t first,
                              bool keep_head, size_t last, bool keep_tail) {
    const hfsb_str *olds = w->script->olds.items;
    size_t          head_old = 0, head_file = 0, tail_old, tail_file, n;
    hfsb_str        rest;
    if (keep_head)
        hfsbi_align_head(w, first,
                         hfsbi_common_head(olds[first], line, w->flags),
                         &head_old, &head_file);
    rest = hfsb_str_slice(line, head_old, line.len);
    tail_old = olds[last].len;
    tail_file = w->texts[last].len;
    n = keep_tail
            ? hfsbi_common_tail(hfsb_str_slice(olds[last],
                                               first == last ? head_old : 0,
                                               olds[last].len),
                                rest, w->flags)
            : 0;
    if (n)
        hfsbi_align_tail(w, last, olds[last].len - n, &tail_old, &tail_file);
    hfsb_buf_append(w->sink, hfsb_str_slice(w->texts[first], 0, head_file));
    hfsb_buf_append(
        w->sink,
        hfsb_str_slice(rest, 0, rest.len - (olds[last].len - tail_old)));
    hfsb_buf_append(w->sink, hfsb_str_slice(w->texts[last], tail_file,
                                            w->texts[last].len));
}

/* ---- indentation ---- */

static hfsb_str hfsbi_indent_of(hfsb_str line, unsigned flags) {
    hfsb_str none = HFSB_INIT, indent;
    if (hfsbi_is_all_blank(line, flags)) return none;
    indent = hfsb_str_slice(line, 0, hfsbi_indent_len(line, flags));
    if (!indent.ptr) indent.ptr = "";
    return indent;
}

static bool hfsbi_work_indents(hfsbi_work *w, unsigned flags) {
    const hfsbi_script *s = w->script;
    size_t              n = s->olds.count, i;
    hfsb_str            least = HFSB_INIT;
    w->old_indents = (hfsb_str *)hfsbi_array(w->alloc, n, sizeof(hfsb_str));
    w->file_indents = (hfsb_str *)hfsbi_array(w->alloc, n, sizeof(hfsb_str));
    if (!w->old_indents || !w->file_indents) return false;
    for (i = 0; i < n; i++) {
        w->old_indents[i] = hfsbi_indent_of(s->olds.items[i], flags);
        w->file_indents[i] = hfsbi_indent_of(w->texts[i], flags);
        /* Lines that are blank to the folds are so on both sides. */
        if (!w->file_indents[i].ptr) w->old_indents[i].ptr = NULL;
    }
    for (i = 0; i < s->news.count; i++) {
        hfsb_str indent = hfsbi_indent_of(s->news.items[i], flags);
        if (indent.ptr && (!least.ptr || indent.len < least.len))
            least = indent;
    }
    w->map = hfsbi_indent_make(w->old_indents, w->file_indents, n, least);
    return true;
}

/* A new line with the file's indentation; `twin` is the old line it took the
   place of, or HFSB_NPOS. False when the indentation cannot be told. */
static bool hfsbi_put_indented(hfsbi_work *w, hfsb_str line, size_t twin) {
    hfsb_str indent = hfsbi_indent_of(line, w->flags);
    size_t   mark = w->sink->len;
    if (!indent.ptr) {
        hfsb_buf_append(w->sink, line);
        return true;
    }
    if (hfsbi_indent_is_regular(&w->map)) {
        if (!hfsbi_indent_put(&w->map, indent, w->sink)) return false;
    } else {
        if (twin == HFSB_NPOS || !w->old_indents[twin].ptr ||
            !hfsb_str_equal(w->old_indents[twin], indent))
            return false;
        hfsb_buf_append(w->sink, w->file_indents[twin]);
    }
    if (w->sink->status == HFSB_OK &&
        !hfsb_str_equal(hfsb_str_slice(hfsb_buf_str(w->sink), mark, HFSB_NPOS),
                        indent))
        w->reindented = true;
    hfsb_buf_append(w->sink, hfsb_str_slice(line, indent.len, line.len));
    return true;
}

/* ---- line by line ---- */

/* New lines [from, to) took the place of old lines [old_from, old_to). */
typedef struct hfsbi_hunk {
    size_t from, to, old_from, old_to;
} hfsbi_hunk;

static bool hfsbi_put_hunk_line(hfsbi_work *w, const hfsbi_hunk *h, size_t j) {
    hfsb_str line = w->script->news.items[j];
    bool     paired = h->to - h->from == h->old_to - h->old_from;
    size_t   twin = paired ? h->old_from + (j - h->from) : HFSB_NPOS;
    if (w->rung >= HFSBI_RUNG_INDENT) return hfsbi_put_indented(w, line, twin);
    if (w->rung < HFSBI_RUNG_LOOKS || h->old_from == h->old_to)
        hfsb_buf_append(w->sink, line);
    else if (paired) hfsbi_put_changed(w, line, twin, true, twin, true);
    else
        hfsbi_put_changed(w, line, h->old_from, j == h->from, h->old_to - 1,
                          j + 1 == h->to);
    return true;
}

static bool hfsbi_ends_line(hfsb_str text) {
    return hfsb_str_ends(text, HFSB_LIT("\n"));
}

/* The line end behind new line j, of which `same` is the old line or none. A
   last line that has none gets none, unless whole lines are replaced. */
static void hfsbi_put_line_end(hfsbi_work *w, size_t j, size_t same) {
    const hfsbi_script *s = w->script;
    bool whole = w->rung >= HFSBI_RUNG_INDENT && hfsbi_ends_line(s->old_text);
    if (j + 1 == s->news.count && !whole && !hfsbi_ends_line(s->new_text))
        return;
    if (same != HFSB_NPOS && w->ends[same].len)
        hfsb_buf_append(w->sink, w->ends[same]);
    else hfsb_buf_append(w->sink, w->newline);
}

static hfsb_status hfsbi_put_script(hfsbi_work *w, size_t *refused) {
    const hfsbi_script *s = w->script;
    hfsbi_hunk          h = HFSB_INIT;
    size_t              j;
    for (j = 0; j < s->news.count; j++) {
        if (s->same[j] == HFSB_NPOS) {
            if (j >= h.to) { /* a new hunk begins */
                h.from = h.to = j;
                h.old_from = j ? s->same[j - 1] + 1 : 0;
                while (h.to < s->news.count && s->same[h.to] == HFSB_NPOS)
                    h.to++;
                h.old_to =
                    h.to < s->news.count ? s->same[h.to] : s->olds.count;
            }
            if (!hfsbi_put_hunk_line(w, &h, j)) {
                *refused = j;
                return HFSB_REFUSED;
            }
        } else {
            hfsb_buf_append(w->sink, w->texts[s->same[j]]);
        }
        hfsbi_put_line_end(w, j, s->same[j]);
    }
    return HFSB_OK;
}

/* ---- replace ---- */

/* True when all line ends in the match are the same. */
static bool hfsbi_is_uniform(const hfsbi_file *file, hfsbi_match match) {
    size_t pos = match.start, len, first = 0;
    if (!file->has_cr || file->lone_cr) return true;
    for (;;) {
        pos = hfsbi_file_line_end(file, pos, &len);
        if (!len || pos >= match.end) return true;
        if (!first) first = len;
        if (len != first) return false;
        pos += len;
    }
}

/* Whole lines that give way to nothing take their line end with them. */
static void hfsbi_delete_lines(const hfsbi_file *file, hfsbi_match *match) {
    size_t len, end = hfsbi_file_line_end(file, match->end, &len);
    if (end == match->end &&
        (match->start == match->end ||
         file->text.ptr[match->end - 1] != (file->lone_cr ? '\r' : '\n')))
        match->end += len;
}

static hfsbi_work hfsbi_work_init(const hfsb_alloc   *alloc,
                                  const hfsbi_file   *file,
                                  const hfsbi_found  *found,
                                  const hfsbi_script *script, hfsb_buf *sink) {
    hfsbi_work w;
    memset(&w, 0, sizeof w);
    w.alloc = alloc;
    w.file = file;
    w.script = script;
    w.rung = found->rung;
    w.flags = found->flags;
    w.sink = sink;
    return w;
}

HFSBI_FN hfsb_status hfsbi_compose_replace(const hfsb_alloc   *alloc,
                                           const hfsbi_file   *file,
                                           const hfsbi_found  *found,
                                           const hfsbi_script *script,
                                           hfsbi_match *match, hfsb_buf *sink,
                                           bool *reindented, size_t *line) {
    hfsbi_work  w = hfsbi_work_init(alloc, file, found, script, sink);
    hfsb_status st = HFSB_OK;
    if (found->rung <= HFSBI_RUNG_EOF && hfsbi_is_uniform(file, *match)) {
        hfsb_str newline = hfsbi_file_newline(file, match->start);
        hfsbi_put_newlines(
            sink, newline.len ? script->new_text : script->raw_new, newline);
        return HFSB_OK;
    }
    if (found->rung >= HFSBI_RUNG_INDENT && !script->new_text.len) {
        hfsbi_delete_lines(file, match);
        return HFSB_OK;
    }
    if (!hfsbi_work_make(&w, *match) ||
        (found->rung >= HFSBI_RUNG_INDENT &&
         !hfsbi_work_indents(&w, found->flags)))
        st = HFSB_NOMEM;
    if (st == HFSB_OK) st = hfsbi_put_script(&w, line);
    hfsbi_work_free(&w);
    *reindented = *reindented || w.reindented;
    return st;
}

/* ---- insert ---- */

/* Every line of new_text is new. The first one goes on behind the match,
   unless that ends its line; what follows the last newline stands before the
   match's line. */
static hfsb_status hfsbi_put_inserted(hfsbi_work *w, bool fresh_line,
                                      bool before, size_t *refused) {
    const hfsbi_script *s = w->script;
    size_t              j, n = s->news.count;
    for (j = 0; j < n; j++) {
        bool ends = j + 1 < n || hfsbi_ends_line(s->new_text);
        if ((j == 0 && !fresh_line) || (before && !ends)) {
            hfsb_buf_append(w->sink, s->news.items[j]);
        } else if (!hfsbi_put_indented(w, s->news.items[j], HFSB_NPOS)) {
            *refused = j;
            return HFSB_REFUSED;
        }
        if (ends) hfsb_buf_append(w->sink, w->newline);
    }
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_compose_insert(
    const hfsb_alloc *alloc, const hfsbi_file *file, const hfsbi_found *found,
    const hfsbi_script *script, hfsbi_match match, bool before, hfsb_buf *sink,
    bool *reindented, size_t *line) {
    hfsbi_work w = hfsbi_work_init(alloc, file, found, script, sink);
    hfsb_str   newline = hfsbi_newline_for(file, script, match.start);
    size_t     at = before ? match.start : match.end;
    bool       fresh = at == 0 || match.drop_newline ||
                 file->text.ptr[at - 1] == (file->lone_cr ? '\r' : '\n');
    hfsb_status st = HFSB_OK;
    /* The newline that old_str has and the end of the file has not. */
    if (match.drop_newline && !before) hfsb_buf_append(sink, newline);
    if (found->rung < HFSBI_RUNG_INDENT) {
        if (hfsbi_file_newline(file, 0).len)
            hfsbi_put_newlines(sink, script->new_text, newline);
        else hfsb_buf_append(sink, script->raw_new);
    } else if (!hfsbi_work_make(&w, match) ||
               !hfsbi_work_indents(&w, found->flags)) {
        st = HFSB_NOMEM;
    } else {
        st = hfsbi_put_inserted(&w, fresh, before, line);
    }
    hfsbi_work_free(&w);
    *reindented = *reindented || w.reindented;
    return st;
}
