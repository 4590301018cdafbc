/* rewrite.c - make the text that replaces a match.

   An exact match is replaced by new_text as it is, with the line ends of the
   file. A match that needed folds is rewritten line by line: a line that is
   the same in old_text and new_text keeps the bytes of the file, a changed
   line takes over as much of them as the rung allows, and where indentation
   was folded a new line is indented as the file is. If the file's indentation
   of a line cannot be told from the lines around it, the edit is refused. */
#include "edit_private.h"

/* A line of the old text as the match shows it. */
typedef struct hfsbi_old_line {
    hfsb_str text, end;   /* the file's line and line end; empty at the last */
    hfsb_str indent;      /* of the old text; ptr NULL for a blank line */
    hfsb_str file_indent; /* of the file */
} hfsbi_old_line;

/* How the indentation of the old text became that of the file. */
typedef enum hfsbi_indent_rule {
    HFSBI_INDENT_IRREGULAR,
    HFSBI_INDENT_ADD,    /* the file has one more prefix everywhere */
    HFSBI_INDENT_REMOVE, /* the old text has one more prefix everywhere */
    HFSBI_INDENT_UNITS,  /* levels of one unit became levels of another */
    HFSBI_INDENT_TABLE   /* no rule, but each became one other: look it up */
} hfsbi_indent_rule;

#define HFSBI_INDENT_DISTINCT 64

typedef struct hfsbi_indent_map {
    const hfsbi_old_line *lines;
    size_t                count;
    hfsbi_indent_rule     rule;
    hfsb_str              prefix;
    size_t                old_unit, file_unit; /* 0: a tab, else spaces */
    long                  shift;
    bool                  may_derive; /* also for indents not in old_text */
    size_t                distinct[HFSBI_INDENT_DISTINCT]; /* one line each */
    size_t                distinct_count;
} hfsbi_indent_map;

/* The rewriting of all matches of one edit. */
typedef struct hfsbi_rewriter {
    const hfsb_alloc      *alloc;
    const hfsbi_edit_text *file;
    hfsbi_edit_texts       texts;
    hfsbi_rung             rung;
    unsigned               folds;
    hfsb_buf              *out;
    hfsbi_rewritten       *result;

    hfsbi_lines      olds, news; /* of the texts, split on first use */
    size_t          *same;       /* by new line: its old line, HFSB_NPOS */
    hfsbi_old_line  *lines;      /* by old line, of the current match */
    hfsbi_indent_map map;
    bool             mid_line; /* the match does not start a line */

    hfsb_str newline; /* of the file, for offsets from .. to; empty: none */
    size_t   newline_from, newline_to;
    bool     newline_known;
} hfsbi_rewriter;

/* ---- indentation: units ---- */

static const size_t hfsbi_indent_units[] = {0, 2, 3, 4, 8}; /* 0: a tab */
#define HFSBI_INDENT_UNIT_COUNT \
    (sizeof hfsbi_indent_units / sizeof *hfsbi_indent_units)

/* Number of units in an indentation, -1 if it contains anything else. */
static long hfsbi_indent_level(hfsb_str indent, size_t unit) {
    char   c = unit ? ' ' : '\t';
    size_t i, width = unit ? unit : 1;
    for (i = 0; i < indent.len; i++)
        if (indent.ptr[i] != c) return -1;
    return indent.len % width ? -1 : (long)(indent.len / width);
}

/* True when all pairs differ by the same number of units. If all levels are
   equal they prove nothing about a shift: then it must be zero. */
static bool hfsbi_fits_units(hfsbi_indent_map *map, size_t old_unit,
                             size_t file_unit) {
    long   first = -1;
    bool   varied = false, any = false;
    size_t i;
    for (i = 0; i < map->count; i++) {
        long o, f;
        if (!map->lines[i].indent.ptr) continue;
        o = hfsbi_indent_level(map->lines[i].indent, old_unit);
        f = hfsbi_indent_level(map->lines[i].file_indent, file_unit);
        if (o < 0 || f < 0 || (any && f - o != map->shift)) return false;
        if (any && o != first) varied = true;
        map->shift = f - o;
        first = o;
        any = true;
    }
    return any && (varied || map->shift == 0);
}

static bool hfsbi_find_units(hfsbi_indent_map *map) {
    size_t a, b;
    for (a = 0; a < HFSBI_INDENT_UNIT_COUNT; a++)
        for (b = 0; b < HFSBI_INDENT_UNIT_COUNT; b++) {
            map->old_unit = hfsbi_indent_units[a];
            map->file_unit = hfsbi_indent_units[b];
            if (a != b && hfsbi_fits_units(map, map->old_unit, map->file_unit))
                return true;
        }
    return false;
}

/* ---- indentation: a prefix, a table ---- */

/* True when one side is the other with the same prefix on every line. */
static bool hfsbi_find_prefix(hfsbi_indent_map *map, bool file_is_longer) {
    bool   any = false;
    size_t i;
    for (i = 0; i < map->count; i++) {
        hfsb_str a = map->lines[i].file_indent, b = map->lines[i].indent;
        hfsb_str longer = file_is_longer ? a : b;
        hfsb_str shorter = file_is_longer ? b : a;
        if (!b.ptr) continue;
        if (!hfsb_str_ends(longer, shorter)) return false;
        longer.len -= shorter.len;
        if (any && !hfsb_str_equal(longer, map->prefix)) return false;
        map->prefix = longer;
        any = true;
    }
    return any;
}

/* The recorded line with this indentation, or HFSB_NPOS. */
static size_t hfsbi_indent_find(const hfsbi_indent_map *map, hfsb_str indent) {
    size_t i;
    for (i = 0; i < map->distinct_count; i++)
        if (hfsb_str_equal(map->lines[map->distinct[i]].indent, indent))
            return map->distinct[i];
    return HFSB_NPOS;
}

/* Records one line for each indentation of the old text; false when there are
   too many: the rest then counts as never seen. */
static bool hfsbi_indent_record(hfsbi_indent_map *map) {
    size_t i;
    for (i = 0; i < map->count; i++) {
        hfsb_str indent = map->lines[i].indent;
        if (!indent.ptr || hfsbi_indent_find(map, indent) != HFSB_NPOS)
            continue;
        if (map->distinct_count == HFSBI_INDENT_DISTINCT) return false;
        map->distinct[map->distinct_count++] = i;
    }
    return true;
}

/* True when each indentation of the old text became one of the file, and
   deeper ones became deeper ones. */
static bool hfsbi_find_table(const hfsbi_indent_map *map) {
    size_t i, k;
    for (i = 0; i < map->count; i++) {
        if (!map->lines[i].indent.ptr) continue;
        k = hfsbi_indent_find(map, map->lines[i].indent);
        if (!hfsb_str_equal(map->lines[i].file_indent,
                            map->lines[k].file_indent))
            return false;
    }
    for (i = 0; i < map->distinct_count; i++)
        for (k = 0; k < map->distinct_count; k++) {
            const hfsbi_old_line *a = map->lines + map->distinct[i];
            const hfsbi_old_line *b = map->lines + map->distinct[k];
            if (a->indent.len < b->indent.len &&
                a->file_indent.len >= b->file_indent.len)
                return false;
            if (a != b && a->indent.len == b->indent.len) return false;
        }
    return map->distinct_count > 0;
}

/* ---- indentation: the rule ---- */

/* The shorter of the two, where a blank line (ptr NULL) has none. */
static hfsb_str hfsbi_least_indent(hfsb_str least, hfsb_str indent) {
    bool shorter = indent.ptr && (!least.ptr || indent.len < least.len);
    return shorter ? indent : least;
}

/* Finds the rule that explains all lines. least_new is the smallest
   indentation of the new text. */
static void hfsbi_indent_map_make(hfsbi_indent_map     *map,
                                  const hfsbi_old_line *lines, size_t count,
                                  hfsb_str least_new) {
    hfsb_str least = HFSB_INIT;
    size_t   i;
    bool     all;
    memset(map, 0, sizeof *map);
    map->lines = lines;
    map->count = count;
    for (i = 0; i < count; i++)
        least = hfsbi_least_indent(least, lines[i].indent);
    map->may_derive = hfsb_str_equal(least, least_new);
    all = hfsbi_indent_record(map);
    if (hfsbi_find_prefix(map, true)) map->rule = HFSBI_INDENT_ADD;
    else if (hfsbi_find_prefix(map, false)) map->rule = HFSBI_INDENT_REMOVE;
    else if (hfsbi_find_units(map)) map->rule = HFSBI_INDENT_UNITS;
    else if (all && hfsbi_find_table(map)) map->rule = HFSBI_INDENT_TABLE;
}

/* True when the one consists of tabs and the other of spaces. */
static bool hfsbi_mixes(hfsb_str a, hfsb_str b) {
    bool a_tab = hfsb_str_find_byte(a, '\t') != HFSB_NPOS;
    bool b_tab = hfsb_str_find_byte(b, '\t') != HFSB_NPOS;
    bool a_space = hfsb_str_find_byte(a, ' ') != HFSB_NPOS;
    bool b_space = hfsb_str_find_byte(b, ' ') != HFSB_NPOS;
    return a_tab != a_space && b_tab != b_space && a_tab != b_tab;
}

/* Appends the file's indentation for `indent`; false, and nothing appended,
   when it cannot be told. */
static bool hfsbi_indent_put(const hfsbi_indent_map *map, hfsb_str indent,
                             hfsb_buf *out) {
    size_t seen = hfsbi_indent_find(map, indent);
    long   level;
    if (seen == HFSB_NPOS && !map->may_derive) return false;
    switch (map->rule) {
    case HFSBI_INDENT_ADD:
        if (seen == HFSB_NPOS && hfsbi_mixes(map->prefix, indent))
            return false;
        hfsb_buf_append(out, map->prefix);
        hfsb_buf_append(out, indent);
        return true;
    case HFSBI_INDENT_REMOVE:
        if (!hfsb_str_starts(indent, map->prefix)) return false;
        hfsb_buf_append(out,
                        hfsb_str_slice(indent, map->prefix.len, indent.len));
        return true;
    case HFSBI_INDENT_UNITS:
        level = hfsbi_indent_level(indent, map->old_unit);
        if (level < 0 || level + map->shift < 0) return false;
        for (level += map->shift; level > 0; level--)
            hfsb_buf_append(
                out, map->file_unit ? hfsb_str_make("        ", map->file_unit)
                                    : HFSB_LIT("\t"));
        return true;
    case HFSBI_INDENT_TABLE:
        if (seen == HFSB_NPOS) return false;
        hfsb_buf_append(out, map->lines[seen].file_indent);
        return true;
    case HFSBI_INDENT_IRREGULAR: break;
    }
    return false;
}

/* ---- the lines of the texts and of a match ---- */

static bool hfsbi_ends_in_newline(hfsb_str text) {
    return hfsb_str_ends(text, HFSB_LIT("\n"));
}

static hfsb_str hfsbi_without_newline(hfsb_str text) {
    if (!hfsbi_ends_in_newline(text)) return text;
    text.len--;
    if (hfsb_str_ends(text, HFSB_LIT("\r"))) text.len--;
    return text;
}

static void hfsbi_rewrite_free(hfsbi_rewriter *r) {
    hfsbi_array_free(r->alloc, r->lines, r->olds.count, sizeof *r->lines);
    hfsbi_array_free(r->alloc, r->same, r->news.count, sizeof *r->same);
    hfsbi_lines_free(r->alloc, &r->olds);
    hfsbi_lines_free(r->alloc, &r->news);
    r->lines = NULL;
    r->same = NULL;
}

/* Splits both texts into lines, once for all matches. */
static hfsb_status hfsbi_rewrite_split(hfsbi_rewriter *r) {
    hfsb_status st;
    if (r->lines) return HFSB_OK;
    st = hfsbi_lines_split(r->alloc, r->texts.old_text, &r->olds);
    if (st == HFSB_OK)
        st = hfsbi_lines_split(r->alloc, r->texts.new_text, &r->news);
    if (st != HFSB_OK) return st;
    r->lines = (hfsbi_old_line *)hfsbi_array(r->alloc, r->olds.count,
                                             sizeof *r->lines);
    return r->lines ? HFSB_OK : HFSB_NOMEM;
}

/* Pairs the lines of old_text and new_text, once for all matches. */
static hfsb_status hfsbi_rewrite_diff(hfsbi_rewriter *r) {
    if (r->same) return HFSB_OK;
    r->same = (size_t *)hfsbi_array(r->alloc, r->news.count, sizeof *r->same);
    if (!r->same) return HFSB_NOMEM;
    return hfsbi_lines_diff(r->alloc, r->olds.items, r->olds.count,
                            r->news.items, r->news.count, r->same);
}

/* The indentation of a line; ptr NULL for a blank line. */
static hfsb_str hfsbi_indent_of(hfsb_str line, unsigned folds) {
    hfsb_str none = HFSB_INIT, indent;
    if (hfsbi_is_all_blank(line, folds)) return none;
    indent = hfsb_str_slice(line, 0, hfsbi_indent_len(line, folds));
    if (!indent.ptr) indent.ptr = "";
    return indent;
}

/* Cuts the match into the file's lines, one for each old line, and finds the
   rule of their indentation where that was folded. */
static void hfsbi_rewrite_load(hfsbi_rewriter *r, hfsbi_match match) {
    size_t   i, pos = match.start, len;
    hfsb_str least = HFSB_INIT;
    r->mid_line = !hfsbi_starts_text(r->file, match.start);
    for (i = 0; i < r->olds.count; i++) {
        hfsbi_old_line *line = r->lines + i;
        size_t          end = hfsbi_edit_line_end(r->file, pos, &len);
        if (end >= match.end) {
            end = match.end;
            len = 0;
        }
        line->text = hfsb_str_slice(r->file->text, pos, end);
        line->end = hfsb_str_slice(r->file->text, end, end + len);
        pos = end + len;
        if (r->rung < HFSBI_RUNG_INDENT) continue;
        line->file_indent = hfsbi_indent_of(line->text, r->folds);
        line->indent = hfsbi_indent_of(r->olds.items[i], r->folds);
        /* A line that is blank to the folds is so on both sides. */
        if (!line->file_indent.ptr) line->indent.ptr = NULL;
    }
    if (r->rung < HFSBI_RUNG_INDENT) return;
    for (i = 0; i < r->news.count; i++)
        least = hfsbi_least_indent(
            least, hfsbi_indent_of(r->news.items[i], r->folds));
    hfsbi_indent_map_make(&r->map, r->lines, r->olds.count, least);
}

/* The file's line end at pos, empty if it has none. Many matches can lie on
   one long line: the last answer is kept. */
static hfsb_str hfsbi_rewrite_newline(hfsbi_rewriter *r, size_t pos) {
    size_t len;
    if (r->newline_known && pos >= r->newline_from && pos <= r->newline_to)
        return r->newline;
    if (!r->newline_known || r->newline.len)
        r->newline = hfsbi_newline_at(r->file, pos);
    r->newline_from = pos;
    r->newline_to = hfsbi_edit_line_end(r->file, pos, &len);
    r->newline_known = true;
    return r->newline;
}

/* The line end for new lines: the file's, else that of new_text. */
static hfsb_str hfsbi_new_line_end(hfsbi_rewriter *r, size_t pos) {
    hfsb_str newline = hfsbi_rewrite_newline(r, pos);
    size_t   lf = hfsb_str_find_byte(r->texts.raw_new, '\n');
    if (newline.len) return newline;
    return lf != HFSB_NPOS && lf > 0 && r->texts.raw_new.ptr[lf - 1] == '\r'
               ? HFSB_LIT("\r\n")
               : HFSB_LIT("\n");
}

HFSBI_FN void hfsbi_put_newlines(hfsb_buf *out, hfsb_str text,
                                 hfsb_str newline) {
    size_t end;
    if (newline.len && !hfsb_str_equal(newline, HFSB_LIT("\n")))
        while ((end = hfsb_str_find_byte(text, '\n')) != HFSB_NPOS) {
            hfsb_buf_append(out, hfsb_str_slice(text, 0, end));
            hfsb_buf_append(out, newline);
            text = hfsb_str_slice(text, end + 1, text.len);
        }
    hfsb_buf_append(out, text);
}

/* Appends new_text with the file's line ends; as it was sent to a file that
   has no line end. */
static void hfsbi_put_verbatim(hfsbi_rewriter *r, size_t pos) {
    hfsb_str newline = HFSB_INIT;
    if (hfsb_str_find_byte(r->texts.raw_new, '\n') == HFSB_NPOS &&
        hfsb_str_find_byte(r->texts.raw_new, '\r') == HFSB_NPOS) {
        hfsb_buf_append(r->out, r->texts.raw_new);
        return;
    }
    newline = hfsbi_rewrite_newline(r, pos);
    hfsbi_put_newlines(
        r->out, newline.len ? r->texts.new_text : r->texts.raw_new, newline);
}

/* ---- keeping the file's bytes inside a changed line ---- */

static bool hfsbi_is_continuation(hfsb_str s, size_t pos) {
    return pos < s.len && ((unsigned char)s.ptr[pos] & 0xC0u) == 0x80u;
}

/* True when a cut at pos would fall between two blanks of a run. */
static bool hfsbi_cuts_run(hfsb_str s, size_t pos, unsigned folds) {
    size_t len, back = pos;
    if (!(folds & HFSBI_FOLD_RUNS) || pos == 0 || pos >= s.len) return false;
    do back--;
    while (back > 0 && hfsbi_is_continuation(s, back));
    return hfsbi_blank_at(s, pos, folds, &len) &&
           hfsbi_blank_at(s, back, folds, &len);
}

/* Length of the common head of an old line and a new line, cut between
   characters; the next function: of the common tail. */
static size_t hfsbi_common_head(hfsb_str a, hfsb_str b, unsigned folds) {
    size_t n = 0, least = a.len < b.len ? a.len : b.len;
    while (n < least && a.ptr[n] == b.ptr[n]) n++;
    while (n > 0 &&
           (hfsbi_is_continuation(a, n) || hfsbi_is_continuation(b, n) ||
            hfsbi_cuts_run(b, n, folds)))
        n--;
    return n;
}

static size_t hfsbi_common_tail(hfsb_str a, hfsb_str b, unsigned folds) {
    size_t n = 0, least = a.len < b.len ? a.len : b.len;
    while (n < least && a.ptr[a.len - 1 - n] == b.ptr[b.len - 1 - n]) n++;
    while (n > 0 && (hfsbi_is_continuation(a, a.len - n) ||
                     hfsbi_cuts_run(b, b.len - n, folds)))
        n--;
    return n;
}

/* An old line and the file's line, which are equal to the folds, walked side
   by side from one border to the next. A border lies where characters end on
   both sides; characters that vanish may lie in it. */
typedef struct hfsbi_line_walk {
    hfsbi_folder old_line, file_line;
    size_t       old_seen, file_seen;     /* folded bytes so far */
    size_t       old_before, file_before; /* the border's start and end */
    size_t       old_after, file_after;
} hfsbi_line_walk;

/* Skips characters that vanish; returns the offset after them. */
static size_t hfsbi_skip_vanishing(hfsbi_folder *f) {
    hfsbi_folder ahead = *f;
    hfsbi_folded step;
    while (hfsbi_folder_next(&ahead, &step) && !step.out.len) *f = ahead;
    return f->pos;
}

static void hfsbi_walk_border(hfsbi_line_walk *w) {
    w->old_before = w->old_line.pos;
    w->file_before = w->file_line.pos;
    w->old_after = hfsbi_skip_vanishing(&w->old_line);
    w->file_after = hfsbi_skip_vanishing(&w->file_line);
}

/* Starts at the border before the first character. */
static hfsbi_line_walk hfsbi_walk_start(const hfsbi_rewriter *r, size_t line) {
    hfsbi_line_walk w = HFSB_INIT;
    w.old_line = hfsbi_folder_make(r->olds.items[line], r->folds);
    w.file_line = hfsbi_folder_make(r->lines[line].text, r->folds);
    w.file_line.indent = !(line == 0 && r->mid_line);
    hfsbi_walk_border(&w);
    return w;
}

static bool hfsbi_walk_next(hfsbi_line_walk *w) {
    hfsbi_folded step;
    do {
        bool old_side = w->old_seen <= w->file_seen;
        if (!hfsbi_folder_next(old_side ? &w->old_line : &w->file_line, &step))
            return false;
        *(old_side ? &w->old_seen : &w->file_seen) += step.out.len;
    } while (w->old_seen != w->file_seen);
    hfsbi_walk_border(w);
    return true;
}

/* The last border within the first `limit` bytes of the old line. */
static void hfsbi_align_head(const hfsbi_rewriter *r, size_t line,
                             size_t limit, size_t *old_pos, size_t *file_pos) {
    hfsbi_line_walk w = hfsbi_walk_start(r, line);
    *old_pos = *file_pos = 0;
    do {
        if (w.old_before > limit) return;
        *old_pos = w.old_before;
        *file_pos = w.file_before;
    } while (hfsbi_walk_next(&w));
}

/* The first border at or after byte `limit` of the old line. */
static void hfsbi_align_tail(const hfsbi_rewriter *r, size_t line,
                             size_t limit, size_t *old_pos, size_t *file_pos) {
    hfsbi_line_walk w = hfsbi_walk_start(r, line);
    do {
        bool before = w.old_before >= limit && w.old_before < w.old_after;
        *old_pos = before ? w.old_before : w.old_after;
        *file_pos = before ? w.file_before : w.file_after;
    } while (*old_pos < limit && hfsbi_walk_next(&w));
}

/* Appends a new line that replaces old lines `first` to `last`. Where it
   begins like the first and ends like the last, the file's bytes stay. */
static void hfsbi_put_changed(hfsbi_rewriter *r, hfsb_str line, size_t first,
                              bool keep_head, size_t last, bool keep_tail) {
    hfsb_str head = r->olds.items[first], tail = r->olds.items[last], rest;
    hfsb_str file_head = r->lines[first].text, file_tail = r->lines[last].text;
    size_t   head_old = 0, head_file = 0, n = 0;
    size_t   tail_old = tail.len, tail_file = file_tail.len;
    if (keep_head)
        hfsbi_align_head(r, first, hfsbi_common_head(head, line, r->folds),
                         &head_old, &head_file);
    rest = hfsb_str_slice(line, head_old, line.len);
    if (keep_tail)
        n = hfsbi_common_tail(
            hfsb_str_slice(tail, first == last ? head_old : 0, tail.len), rest,
            r->folds);
    if (n) hfsbi_align_tail(r, last, tail.len - n, &tail_old, &tail_file);
    hfsb_buf_append(r->out, hfsb_str_slice(file_head, 0, head_file));
    hfsb_buf_append(r->out,
                    hfsb_str_slice(rest, 0, rest.len - (tail.len - tail_old)));
    hfsb_buf_append(r->out,
                    hfsb_str_slice(file_tail, tail_file, file_tail.len));
}

/* ---- line by line ---- */

/* Appends a new line with the file's indentation; `twin` is the old line it
   replaces, or HFSB_NPOS. False when the indentation cannot be told. */
static bool hfsbi_put_indented(hfsbi_rewriter *r, size_t j, size_t twin) {
    hfsb_str line = r->news.items[j];
    hfsb_str indent = hfsbi_indent_of(line, r->folds);
    size_t   mark = r->out->len;
    r->result->line = j;
    if (!indent.ptr) {
        hfsb_buf_append(r->out, line);
        return true;
    }
    if (r->map.rule != HFSBI_INDENT_IRREGULAR) {
        if (!hfsbi_indent_put(&r->map, indent, r->out)) return false;
    } else {
        if (twin == HFSB_NPOS || !r->lines[twin].indent.ptr ||
            !hfsb_str_equal(r->lines[twin].indent, indent))
            return false;
        hfsb_buf_append(r->out, r->lines[twin].file_indent);
    }
    if (r->out->status == HFSB_OK &&
        !hfsb_str_equal(hfsb_str_slice(hfsb_buf_str(r->out), mark, HFSB_NPOS),
                        indent))
        r->result->reindented = true;
    hfsb_buf_append(r->out, hfsb_str_slice(line, indent.len, line.len));
    return true;
}

/* New lines [from, to) replace old lines [old_from, old_to). */
typedef struct hfsbi_changed_lines {
    size_t from, to, old_from, old_to;
} hfsbi_changed_lines;

/* The changed lines that start at new line j. */
static hfsbi_changed_lines hfsbi_changed_from(const hfsbi_rewriter *r,
                                              size_t                j) {
    hfsbi_changed_lines c;
    c.from = c.to = j;
    c.old_from = j ? r->same[j - 1] + 1 : 0;
    while (c.to < r->news.count && r->same[c.to] == HFSB_NPOS) c.to++;
    c.old_to = c.to < r->news.count ? r->same[c.to] : r->olds.count;
    return c;
}

/* Appends new line j, one of the changed lines. */
static bool hfsbi_put_new_line(hfsbi_rewriter *r, const hfsbi_changed_lines *c,
                               size_t j) {
    bool     paired = c->to - c->from == c->old_to - c->old_from;
    size_t   twin = paired ? c->old_from + (j - c->from) : HFSB_NPOS;
    hfsb_str line = r->news.items[j];
    if (r->rung >= HFSBI_RUNG_INDENT) return hfsbi_put_indented(r, j, twin);
    if (r->rung < HFSBI_RUNG_LOOKS || c->old_from == c->old_to)
        hfsb_buf_append(r->out, line);
    else if (paired) hfsbi_put_changed(r, line, twin, true, twin, true);
    else
        hfsbi_put_changed(r, line, c->old_from, j == c->from, c->old_to - 1,
                          j + 1 == c->to);
    return true;
}

/* Appends all lines of new_text. A last line without a line end gets none,
   unless whole lines are replaced. */
static hfsb_status hfsbi_rewrite_lines(hfsbi_rewriter *r, hfsb_str newline) {
    hfsbi_changed_lines c = HFSB_INIT;
    size_t              j, n = r->news.count;
    bool                ends = hfsbi_ends_in_newline(r->texts.new_text) ||
                (r->rung >= HFSBI_RUNG_INDENT &&
                 hfsbi_ends_in_newline(r->texts.old_text));
    for (j = 0; j < n; j++) {
        size_t   same = r->same[j];
        hfsb_str end = newline;
        if (same == HFSB_NPOS) {
            if (j >= c.to) c = hfsbi_changed_from(r, j);
            if (!hfsbi_put_new_line(r, &c, j)) return HFSB_REFUSED;
        } else {
            hfsb_buf_append(r->out, r->lines[same].text);
            if (r->lines[same].end.len) end = r->lines[same].end;
        }
        if (j + 1 < n || ends) hfsb_buf_append(r->out, end);
    }
    return HFSB_OK;
}

/* ---- replace ---- */

/* True when all line ends in the match are the same. */
static bool hfsbi_is_uniform(const hfsbi_edit_text *file, hfsbi_match match) {
    hfsb_str rest = hfsb_str_slice(file->text, match.start, match.end);
    size_t   lf, crlf = 0, lines = 0;
    if (!file->has_cr || file->lone_cr) return true;
    while ((lf = hfsb_str_find_byte(rest, '\n')) != HFSB_NPOS) {
        lines++;
        if (lf > 0 && rest.ptr[lf - 1] == '\r') crlf++;
        if (crlf && crlf < lines) return false;
        rest = hfsb_str_slice(rest, lf + 1, rest.len);
    }
    return true;
}

/* Whole lines that are replaced by nothing take their line end along. */
static void hfsbi_delete_lines(const hfsbi_edit_text *file,
                               hfsbi_match           *match) {
    size_t len, end = hfsbi_edit_line_end(file, match->end, &len);
    if (end == match->end &&
        (match->start == match->end || !hfsbi_starts_line(file, match->end)))
        match->end += len;
}

static hfsb_status hfsbi_replace(hfsbi_rewriter *r, hfsbi_match *match) {
    hfsb_status st;
    if (r->rung <= HFSBI_RUNG_EOF && hfsbi_is_uniform(r->file, *match)) {
        hfsbi_put_verbatim(r, match->start);
        return HFSB_OK;
    }
    if (r->rung >= HFSBI_RUNG_INDENT && !r->texts.new_text.len) {
        hfsbi_delete_lines(r->file, match);
        return HFSB_OK;
    }
    st = hfsbi_rewrite_split(r);
    if (st == HFSB_OK) st = hfsbi_rewrite_diff(r);
    if (st != HFSB_OK) return st;
    hfsbi_rewrite_load(r, *match);
    return hfsbi_rewrite_lines(r, hfsbi_new_line_end(r, match->start));
}

/* ---- insert ---- */

/* Appends the lines of new_text indented as the file is. The first continues
   the line of the match unless it starts its own; text after the last line
   end precedes the match on its line. */
static hfsb_status hfsbi_insert_lines(hfsbi_rewriter *r, bool own_line,
                                      hfsb_str newline) {
    bool   before = r->texts.mode == HFSB_EDIT_PREPEND_BEFORE;
    size_t j, n = r->news.count;
    for (j = 0; j < n; j++) {
        bool ends = j + 1 < n || hfsbi_ends_in_newline(r->texts.new_text);
        if ((j == 0 && !own_line) || (before && !ends))
            hfsb_buf_append(r->out, r->news.items[j]);
        else if (!hfsbi_put_indented(r, j, HFSB_NPOS)) return HFSB_REFUSED;
        if (ends) hfsb_buf_append(r->out, newline);
    }
    return HFSB_OK;
}

static hfsb_status hfsbi_insert(hfsbi_rewriter *r, hfsbi_match *match) {
    hfsbi_match whole = *match;
    hfsb_str    newline = hfsbi_new_line_end(r, match->start);
    bool        own_line;
    hfsb_status st;
    if (r->texts.mode == HFSB_EDIT_PREPEND_BEFORE) match->end = match->start;
    else match->start = match->end;
    own_line = whole.lacks_newline || hfsbi_starts_line(r->file, match->start);
    /* The line end that old_text has and the end of the file lacks. */
    if (whole.lacks_newline && r->texts.mode == HFSB_EDIT_APPEND_AFTER)
        hfsb_buf_append(r->out, newline);
    if (r->rung < HFSBI_RUNG_INDENT) {
        hfsbi_put_verbatim(r, whole.start);
        return HFSB_OK;
    }
    st = hfsbi_rewrite_split(r);
    if (st != HFSB_OK) return st;
    hfsbi_rewrite_load(r, whole);
    return hfsbi_insert_lines(r, own_line, newline);
}

/* A match at the end of a file that lacks the last newline: both texts do
   without it too, but text put before the match needs its line end. */
static void hfsbi_drop_newline(hfsbi_rewriter *r) {
    hfsbi_rewrite_free(r);
    r->texts.old_text = hfsbi_without_newline(r->texts.old_text);
    if (r->texts.mode == HFSB_EDIT_PREPEND_BEFORE) return;
    r->texts.new_text = hfsbi_without_newline(r->texts.new_text);
    r->texts.raw_new = hfsbi_without_newline(r->texts.raw_new);
}

HFSBI_FN hfsb_status hfsbi_rewrite_matches(const hfsb_alloc       *alloc,
                                           const hfsbi_edit_text  *file,
                                           const hfsbi_edit_texts *texts,
                                           hfsbi_matches          *matches,
                                           hfsb_buf               *out,
                                           hfsbi_rewritten        *result) {
    hfsbi_rewriter r;
    size_t         i, head = matches->drop_head, tail = matches->drop_tail;
    hfsb_status    st = HFSB_OK;
    memset(&r, 0, sizeof r);
    memset(result, 0, sizeof *result);
    r.alloc = alloc;
    r.file = file;
    r.texts = *texts;
    r.rung = matches->rung;
    r.folds = matches->folds;
    r.out = out;
    r.result = result;
    r.texts.old_text =
        hfsbi_drop_edges(texts->old_text, r.folds, &head, &tail);
    if (texts->mode == HFSB_EDIT_REPLACE)
        r.texts.new_text =
            hfsbi_drop_edges(texts->new_text, r.folds, &head, &tail);
    for (i = 0; st == HFSB_OK && i < matches->count; i++) {
        hfsbi_match *m = matches->items + i;
        result->match = i;
        m->text_pos = out->len;
        if (m->lacks_newline) hfsbi_drop_newline(&r);
        st = texts->mode == HFSB_EDIT_REPLACE ? hfsbi_replace(&r, m)
                                              : hfsbi_insert(&r, m);
        m->text_len = out->len - m->text_pos;
        if (st == HFSB_OK) st = out->status;
    }
    hfsbi_rewrite_free(&r);
    return st;
}
