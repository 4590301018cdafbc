/* indent.c - how new lines are indented where old_str is indented differently
   from the file.

   Each line of old_text matches a line of the file. The pairs of their
   indentations decide how the lines of new_text are indented. From the
   strictest to the loosest reading of the pairs:

       same      no pair differs: every indentation is absolute
       prefix    one side has an extra prefix everywhere
       units     levels of one unit (tab, 2, 3, 4, 8) are levels of another
       mixed     all pairs but one are the same, or tabs for spaces
       table     each indentation became one other, deeper ones deeper ones
       none      a new line can only take the place of an old one

   A new indentation that the pairs do not decide is refused, never guessed. */
#include "edit_private.h"

/* ---- indentations ---- */

HFSBI_FN hfsb_str hfsbi_indent_of(hfsb_str line, unsigned folds) {
    hfsb_str none = HFSB_INIT, indent;
    if (hfsbi_is_all_blank(line, folds)) return none;
    indent = hfsb_str_slice(line, 0, hfsbi_indent_len(line, folds));
    if (!indent.ptr) indent.ptr = "";
    return indent;
}

/* '\t' or ' ' for an indentation of only these, else 0; 0 for an empty one. */
static char hfsbi_indent_kind(hfsb_str indent) {
    size_t i;
    if (!indent.len) return 0;
    for (i = 1; i < indent.len; i++)
        if (indent.ptr[i] != indent.ptr[0]) return 0;
    return indent.ptr[0] == '\t' || indent.ptr[0] == ' ' ? indent.ptr[0]
                                                         : '\0';
}

HFSBI_FN bool hfsbi_indent_mixes(hfsb_str a, hfsb_str b) {
    char x = hfsbi_indent_kind(a), y = hfsbi_indent_kind(b);
    return x && y && x != y;
}

/* The extra characters of the longer of two indentations; ptr NULL when it
   does not start with the shorter one. */
static hfsb_str hfsbi_indent_step(hfsb_str a, hfsb_str b) {
    hfsb_str none = HFSB_INIT;
    if (hfsb_str_starts(a, b)) return hfsb_str_slice(a, b.len, a.len);
    if (hfsb_str_starts(b, a)) return hfsb_str_slice(b, a.len, b.len);
    return none;
}

/* Bit n: two neighbouring lines of the file differ by n spaces. */
static unsigned long long hfsbi_indent_steps(const hfsbi_edit_text *file) {
    unsigned long long steps = 0;
    hfsb_str           last = HFSB_LIT(""), step;
    size_t             pos = 0, end, len;
    for (; pos < file->text.len; pos = end + len) {
        hfsb_str indent;
        end = hfsbi_edit_line_end(file, pos, &len);
        indent = hfsbi_indent_of(hfsb_str_slice(file->text, pos, end), 0);
        if (!indent.ptr) continue;
        step = hfsbi_indent_step(indent, last);
        if (step.len < 64 && hfsbi_indent_kind(step) == ' ')
            steps |= 1ull << step.len;
        last = indent;
    }
    return steps;
}

/* True when `width` spaces are one or more steps of the file. */
static bool hfsbi_is_steps(unsigned long long steps, size_t width) {
    size_t n;
    if (width >= 64 || (steps >> width & 1u)) return true;
    for (n = 2; n < width; n++)
        if (width % n == 0 && (steps >> n & 1u)) return true;
    return false;
}

HFSBI_FN bool hfsbi_is_level_off(unsigned long long    steps,
                                 const hfsbi_old_line *line) {
    hfsb_str step = hfsbi_indent_step(line->indent, line->file_indent);
    return hfsbi_indent_kind(step) != ' ' || hfsbi_is_steps(steps, step.len);
}

/* ---- units ---- */

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

/* Appends `level` units. */
static void hfsbi_put_levels(hfsb_buf *out, long level, size_t unit) {
    for (; level > 0; level--)
        hfsb_buf_append(out, unit ? hfsb_str_make("        ", unit)
                                  : HFSB_LIT("\t"));
}

/* True when all pairs differ by the same number of units. If all levels are
   equal they prove nothing about a shift: then it must be zero. A line with
   the same indentation on both sides shows that the others fit by accident. */
static bool hfsbi_fits_units(hfsbi_indent_map *map, size_t old_unit,
                             size_t file_unit) {
    long   first = -1;
    bool   any = false, kept = false;
    size_t i;
    map->units.support = 0;
    for (i = 0; i < map->count; i++) {
        long o, f;
        if (!map->lines[i].indent.ptr) continue;
        o = hfsbi_indent_level(map->lines[i].indent, old_unit);
        f = hfsbi_indent_level(map->lines[i].file_indent, file_unit);
        if (o < 0 || f < 0 || (any && f - o != map->units.shift)) return false;
        kept = kept || (o && hfsb_str_equal(map->lines[i].indent,
                                            map->lines[i].file_indent));
        if (any && o != first) map->units.varied = true;
        map->units.support += o > 0;
        map->units.shift = f - o;
        first = o;
        any = true;
    }
    return any && (map->units.varied || map->units.shift == 0) && !kept;
}

static bool hfsbi_find_units(hfsbi_indent_map *map) {
    size_t a, b;
    for (a = 0; a < HFSBI_INDENT_UNIT_COUNT; a++)
        for (b = 0; b < HFSBI_INDENT_UNIT_COUNT; b++) {
            map->units.old_unit = hfsbi_indent_units[a];
            map->units.file_unit = hfsbi_indent_units[b];
            if (a == b ||
                (a && b && !hfsbi_is_steps(map->steps, map->units.file_unit)))
                continue; /* the file has no such levels */
            if (hfsbi_fits_units(map, map->units.old_unit,
                                 map->units.file_unit))
                return true;
        }
    return false;
}

/* ---- a prefix, a table ---- */

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

/* The entry of the table with this indentation, or HFSB_NPOS. */
static size_t hfsbi_indent_find(const hfsbi_indent_map *map, hfsb_str indent) {
    size_t i;
    for (i = 0; i < map->table.count; i++)
        if (hfsb_str_equal(map->lines[map->table.line[i]].indent, indent))
            return i;
    return HFSB_NPOS;
}

/* Records one line for each indentation of the old text, and whether it became
   different ones in the file. False when there are too many: the rest then
   counts as never seen. */
static bool hfsbi_indent_record(hfsbi_indent_map *map) {
    size_t i, k;
    for (i = 0; i < map->count; i++) {
        const hfsbi_old_line *line = map->lines + i;
        if (!line->indent.ptr) continue;
        k = hfsbi_indent_find(map, line->indent);
        if (k != HFSB_NPOS) {
            if (!hfsb_str_equal(line->file_indent,
                                map->lines[map->table.line[k]].file_indent))
                map->table.torn[k] = true;
            continue;
        }
        if (map->table.count == HFSBI_INDENT_DISTINCT) return false;
        map->table.line[map->table.count++] = i;
    }
    return true;
}

/* True when each indentation of the old text became one of the file, and
   deeper ones became deeper ones. */
static bool hfsbi_find_table(const hfsbi_indent_map *map) {
    size_t i, k;
    for (i = 0; i < map->table.count; i++) {
        if (map->table.torn[i]) return false;
        for (k = 0; k < map->table.count; k++) {
            const hfsbi_old_line *a = map->lines + map->table.line[i];
            const hfsbi_old_line *b = map->lines + map->table.line[k];
            if (a->indent.len < b->indent.len &&
                a->file_indent.len >= b->file_indent.len)
                return false;
            if (a != b && a->indent.len == b->indent.len) return false;
        }
    }
    return true;
}

/* ---- mixed ---- */

/* True when every pair of tabs and spaces is the same number of units. */
static bool hfsbi_fits_conversion(hfsbi_indent_map *map, size_t old_unit,
                                  size_t file_unit) {
    size_t i, n = 0;
    long   level;
    map->mix.deepest = 0;
    for (i = 0; i < map->count; i++) {
        hfsb_str o = map->lines[i].indent, f = map->lines[i].file_indent;
        if (!o.ptr || !hfsbi_indent_mixes(o, f)) continue;
        level = hfsbi_indent_level(o, old_unit);
        if (level < 0 || level != hfsbi_indent_level(f, file_unit))
            return false;
        if (level > map->mix.deepest) map->mix.deepest = level;
        n++;
    }
    map->units.old_unit = old_unit;
    map->units.file_unit = file_unit;
    map->mix.converted = n;
    return n > 0;
}

/* True for a pair that is neither the same nor tabs for spaces. */
static bool hfsbi_is_off(const hfsbi_old_line *line) {
    return !hfsb_str_equal(line->indent, line->file_indent) &&
           !hfsbi_indent_mixes(line->indent, line->file_indent);
}

/* True when all pairs but one are the same, or tabs for spaces by one unit. */
static bool hfsbi_find_mixed(hfsbi_indent_map *map) {
    size_t i, mixed = 0, off = 0;
    for (i = 0; i < map->count; i++) {
        hfsb_str o = map->lines[i].indent, f = map->lines[i].file_indent;
        if (!o.ptr) continue;
        if (hfsb_str_equal(o, f)) {
            map->mix.kept++;
            map->mix.kept_tabs += hfsbi_indent_kind(o) == '\t';
            map->mix.kept_spaces += hfsbi_indent_kind(o) == ' ';
        } else if (!hfsbi_is_off(map->lines + i)) {
            mixed++;
        } else {
            off++;
            map->mix.level_off =
                hfsbi_is_level_off(map->steps, map->lines + i);
        }
    }
    for (i = 1; mixed && !map->mix.converted && i < HFSBI_INDENT_UNIT_COUNT;
         i++)
        if (!hfsbi_fits_conversion(map, hfsbi_indent_units[i], 0))
            hfsbi_fits_conversion(map, 0, hfsbi_indent_units[i]);
    return off <= 1 && mixed == map->mix.converted &&
           map->mix.kept + mixed >= (map->mix.level_off ? 2 : 1);
}

/* Appends an indentation that no mixed pair has, derived from similar ones. */
static bool hfsbi_derive_mixed(const hfsbi_indent_map *map, hfsb_str indent,
                               hfsb_buf *out) {
    char kind = hfsbi_indent_kind(indent);
    bool from =
        map->mix.converted && kind == (map->units.old_unit ? ' ' : '\t');
    bool to =
        map->mix.converted && kind == (map->units.file_unit ? ' ' : '\t');
    size_t kept = kind == '\t' ? map->mix.kept_tabs : map->mix.kept_spaces;
    long   level = hfsbi_indent_level(indent, map->units.old_unit);
    if (indent.len && !kind) return false;
    if (from && (kept || level < 0 || level > map->mix.deepest + 3))
        return false;
    if (from) hfsbi_put_levels(out, level, map->units.file_unit);
    else if (!indent.len || to || kept) hfsb_buf_append(out, indent);
    else return false;
    return true;
}

/* Appends an indentation where one pair may be off: for a new line next to it
   with the same indentation, the result is not clear. If most others have it,
   only a line that is off by a level is in doubt. */
static bool hfsbi_put_mixed(const hfsbi_indent_map *map, hfsb_str indent,
                            bool near_off, hfsb_buf *out) {
    size_t                k = hfsbi_indent_find(map, indent);
    const hfsbi_old_line *line;
    if (k == HFSB_NPOS) return hfsbi_derive_mixed(map, indent, out);
    line = map->lines + map->table.line[k];
    if (map->table.torn[k]) {
        if (!indent.len || map->mix.converted ||
            (map->mix.level_off && near_off))
            return false;
        hfsb_buf_append(out, indent); /* all but one are the same */
        return true;
    }
    if (hfsbi_is_off(line))
        return !near_off && hfsbi_derive_mixed(map, indent, out);
    hfsb_buf_append(out, line->file_indent);
    return true;
}

/* ---- the rule ---- */

/* The shorter of the two, where a blank line (ptr NULL) has none. */
static hfsb_str hfsbi_least_indent(hfsb_str least, hfsb_str indent) {
    bool shorter = indent.ptr && (!least.ptr || indent.len < least.len);
    return shorter ? indent : least;
}

HFSBI_FN void hfsbi_indent_map_make(hfsbi_indent_map     *map,
                                    const hfsbi_old_line *lines, size_t count,
                                    const hfsbi_lines *news, unsigned folds,
                                    const hfsbi_edit_text *file,
                                    unsigned long long    *steps) {
    hfsb_str least = HFSB_INIT, least_new = HFSB_INIT;
    size_t   i;
    bool     all, units;
    memset(map, 0, sizeof *map);
    map->lines = lines;
    map->count = count;
    for (i = 0; i < count; i++)
        least = hfsbi_least_indent(least, lines[i].indent);
    for (i = 0; i < news->count; i++)
        least_new = hfsbi_least_indent(least_new,
                                       hfsbi_indent_of(news->items[i], folds));
    map->may_derive = hfsb_str_equal(least, least_new);
    all = hfsbi_indent_record(map);
    map->flat = map->table.count == 1 && !least.len;
    if (hfsbi_find_prefix(map, true) && !map->prefix.len) {
        map->rule = HFSBI_INDENT_SAME;
        return;
    }
    if (!*steps) *steps = hfsbi_indent_steps(file) | 1; /* 0 is no step */
    map->steps = *steps;
    if (hfsbi_find_prefix(map, true)) map->rule = HFSBI_INDENT_ADD;
    else if (hfsbi_find_prefix(map, false)) map->rule = HFSBI_INDENT_REMOVE;
    else if ((units = hfsbi_find_units(map)) && !map->units.shift)
        map->rule = HFSBI_INDENT_UNITS;
    else if (all && hfsbi_find_mixed(map) && !(units && map->mix.converted))
        map->rule = HFSBI_INDENT_MIXED;
    else if (hfsbi_find_units(map)) map->rule = HFSBI_INDENT_UNITS;
    else if (all && hfsbi_find_table(map)) map->rule = HFSBI_INDENT_TABLE;
}

/* True when the only indentation seen may have changed by a prefix or by its
   unit, with different results for `indent`: 4 became 2, so is 8 now 6 or
   4? */
static bool hfsbi_may_be_units(const hfsbi_indent_map *map, hfsb_str indent) {
    const hfsbi_old_line *line = map->lines + map->table.line[0];
    size_t                a, b;
    if (map->table.count != 1 || !line->indent.len) return false;
    for (a = 1; a < HFSBI_INDENT_UNIT_COUNT; a++)
        for (b = 1; b < HFSBI_INDENT_UNIT_COUNT; b++) {
            size_t old_unit = hfsbi_indent_units[a];
            size_t file_unit = hfsbi_indent_units[b];
            long   level = hfsbi_indent_level(line->indent, old_unit);
            if (a != b && level > 0 && hfsbi_is_steps(map->steps, file_unit) &&
                hfsbi_indent_level(line->file_indent, file_unit) == level &&
                hfsbi_indent_level(indent, old_unit) >= 0)
                return true;
        }
    return false;
}

/* Adds or removes the prefix. */
static bool hfsbi_put_prefixed(const hfsbi_indent_map *map, hfsb_str indent,
                               bool seen, hfsb_buf *out) {
    bool add = map->rule == HFSBI_INDENT_ADD;
    if (!seen && (!map->may_derive || hfsbi_may_be_units(map, indent)))
        return false;
    if (add ? !seen && hfsbi_indent_mixes(map->prefix, indent)
            : !hfsb_str_starts(indent, map->prefix))
        return false;
    if (add) hfsb_buf_append(out, map->prefix);
    hfsb_buf_append(out,
                    add ? indent
                        : hfsb_str_slice(indent, map->prefix.len, indent.len));
    return true;
}

/* True when the one line that proves a change from spaces to spaces may be a
   slip, so that `indent` can be in the file's units as well as in the old
   ones. */
static bool hfsbi_may_be_slip(const hfsbi_indent_map *map, hfsb_str indent,
                              bool seen) {
    size_t i, deepest = 0;
    if (!map->units.old_unit || !map->units.file_unit ||
        map->units.support > 1)
        return false;
    for (i = 0; i < map->count; i++) {
        if (seen && indent.len && map->lines[i].indent.len == indent.len)
            return hfsbi_is_level_off(map->steps, map->lines + i);
        if (map->lines[i].file_indent.len > deepest)
            deepest = map->lines[i].file_indent.len;
    }
    return !seen && indent.len && indent.len % map->units.file_unit == 0 &&
           indent.len <= deepest + map->units.file_unit;
}

/* Levels of one unit as levels of the other. Without a shift they count from
   the margin, so that every indentation can be derived. */
static bool hfsbi_put_units(const hfsbi_indent_map *map, hfsb_str indent,
                            bool seen, hfsb_buf *out) {
    long level = hfsbi_indent_level(indent, map->units.old_unit);
    bool absolute = map->units.shift == 0 &&
                    (map->units.varied || map->units.file_unit != 8);
    bool tabs =
        !map->units.old_unit || !map->units.file_unit; /* on one side */
    if (!seen && !absolute && !map->may_derive) return false;
    if (absolute && tabs &&
        hfsbi_indent_kind(indent) == (map->units.file_unit ? ' ' : '\t')) {
        hfsb_buf_append(out, indent); /* it is the file's already */
        return true;
    }
    if (level < 0) return false;
    if (hfsbi_may_be_slip(map, indent, seen)) return false;
    hfsbi_put_levels(out, level + map->units.shift, map->units.file_unit);
    return true;
}

HFSBI_FN bool hfsbi_indent_put(const hfsbi_indent_map *map, hfsb_str indent,
                               bool near_off, hfsb_buf *out) {
    size_t k = hfsbi_indent_find(map, indent);
    bool   seen = k != HFSB_NPOS;
    switch (map->rule) {
    case HFSBI_INDENT_SAME: hfsb_buf_append(out, indent); return true;
    case HFSBI_INDENT_ADD:
    case HFSBI_INDENT_REMOVE:
        return hfsbi_put_prefixed(map, indent, seen, out);
    case HFSBI_INDENT_UNITS: return hfsbi_put_units(map, indent, seen, out);
    case HFSBI_INDENT_MIXED:
        return hfsbi_put_mixed(map, indent, near_off, out);
    case HFSBI_INDENT_TABLE:
        /* If some lines are the same, each other one is off by itself. */
        if (!seen || (map->mix.kept_tabs + map->mix.kept_spaces &&
                      hfsbi_is_off(map->lines + map->table.line[k])))
            return false;
        break;
    case HFSBI_INDENT_NONE: return false;
    }
    hfsb_buf_append(out, map->lines[map->table.line[k]].file_indent);
    return true;
}

/* ---- contradictions ---- */

/* A line without the blanks around it. */
static hfsb_str hfsbi_line_core(hfsb_str line, unsigned folds) {
    return hfsbi_trim(
        hfsb_str_slice(line, hfsbi_indent_len(line, folds), line.len));
}

/* The first new line that is an old line with another indentation, when no
   line before it explains that: no shallower line encloses it now, and none
   enclosed it before. Or the first line, if it is deeper than the first old
   one and no line is shared. same[] pairs the lines. */
static size_t hfsbi_find_shifted(const hfsbi_lines *olds,
                                 const hfsbi_lines *news, const size_t *same,
                                 unsigned folds) {
    size_t   j, i = 0, least_old = HFSB_NPOS, least_new = HFSB_NPOS;
    size_t   first = HFSB_NPOS;
    bool     shared = false;
    hfsb_str base = HFSB_INIT;
    for (j = 0; j < olds->count && !base.ptr; j++)
        base = hfsbi_indent_of(olds->items[j], folds);
    for (j = 0; j < news->count; j++) {
        hfsb_str n = hfsbi_indent_of(news->items[j], folds), o;
        if (!n.ptr) continue;
        for (; same[j] != HFSB_NPOS && i < same[j]; i++) {
            o = hfsbi_indent_of(olds->items[i], folds);
            if (o.ptr && o.len < least_old) least_old = o.len;
        }
        if (same[j] != HFSB_NPOS) {
            o = hfsbi_indent_of(olds->items[same[j]], folds);
            if (n.len > o.len ? least_new >= n.len
                              : n.len < o.len && least_old >= o.len)
                return j;
            shared = shared || n.len == o.len;
        }
        if (first == HFSB_NPOS && least_new == HFSB_NPOS && n.len > base.len)
            first = j;
        if (n.len < least_new) least_new = n.len;
    }
    return shared ? HFSB_NPOS : first;
}

HFSBI_FN hfsb_status hfsbi_indent_shifted(const hfsb_alloc  *alloc,
                                          const hfsbi_lines *olds,
                                          const hfsbi_lines *news,
                                          unsigned folds, size_t *line) {
    size_t      i, count = olds->count + news->count;
    hfsb_str   *cores = (hfsb_str *)hfsbi_array(alloc, count, sizeof *cores);
    size_t     *same = (size_t *)hfsbi_array(alloc, news->count, sizeof *same);
    hfsb_status st = cores && same ? HFSB_OK : HFSB_NOMEM;
    for (i = 0; st == HFSB_OK && i < count; i++)
        cores[i] = hfsbi_line_core(
            i < olds->count ? olds->items[i] : news->items[i - olds->count],
            folds);
    if (st == HFSB_OK)
        st = hfsbi_lines_diff(alloc, cores, olds->count, cores + olds->count,
                              news->count, same);
    if (st == HFSB_OK) *line = hfsbi_find_shifted(olds, news, same, folds);
    hfsbi_array_free(alloc, cores, count, sizeof *cores);
    hfsbi_array_free(alloc, same, news->count, sizeof *same);
    return st;
}
