/* indent.c - from the caller's indentation to the file's. Depends on: base. */
#include "match.h"

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
            if (a != b && hfsbi_fits_units(map, hfsbi_units[a],
                                           hfsbi_units[b], &map->shift)) {
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
            *prefix = hfsb_str_slice(longer[i], 0,
                                     longer[i].len - shorter[i].len);
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

HFSBI_FN hfsbi_indent hfsbi_indent_make(const hfsb_str *old_indents,
                                        const hfsb_str *file_indents,
                                        size_t          count,
                                        hfsb_str        least_new) {
    hfsbi_indent map = HFSB_INIT;
    bool         all;
    map.old_indents = old_indents;
    map.file_indents = file_indents;
    map.count = count;
    map.may_derive = hfsb_str_equal(
        hfsbi_least_indent(old_indents, count), least_new);
    all = hfsbi_indent_note(&map);
    if (hfsbi_find_prefix(file_indents, old_indents, count, &map.prefix))
        map.kind = HFSBI_INDENT_ADD;
    else if (hfsbi_find_prefix(old_indents, file_indents, count, &map.prefix))
        map.kind = HFSBI_INDENT_REMOVE;
    else if (hfsbi_find_units(&map))
        map.kind = HFSBI_INDENT_UNITS;
    else if (all && hfsbi_find_table(&map))
        map.kind = HFSBI_INDENT_TABLE;
    return map;
}

HFSBI_FN bool hfsbi_indent_is_regular(const hfsbi_indent *map) {
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

HFSBI_FN bool hfsbi_indent_put(const hfsbi_indent *map, hfsb_str indent,
                               hfsbi_sink *sink) {
    long   level;
    size_t seen = hfsbi_indent_seen(map, indent);
    if (seen == HFSB_NPOS && !map->may_derive) return false;
    switch (map->kind) {
    case HFSBI_INDENT_ADD:
        if (seen == HFSB_NPOS && hfsbi_mixes(map->prefix, indent))
            return false;
        hfsbi_put(sink, map->prefix);
        hfsbi_put(sink, indent);
        return true;
    case HFSBI_INDENT_REMOVE:
        if (!hfsb_str_starts(indent, map->prefix)) return false;
        hfsbi_put(sink,
                  hfsb_str_slice(indent, map->prefix.len, indent.len));
        return true;
    case HFSBI_INDENT_UNITS:
        level = hfsbi_level(indent, map->old_unit);
        if (level < 0 || level + map->shift < 0) return false;
        for (level += map->shift; level > 0; level--)
            hfsbi_put(sink, map->file_unit
                                ? hfsb_str_make("        ", map->file_unit)
                                : HFSB_LIT("\t"));
        return true;
    case HFSBI_INDENT_TABLE:
        if (seen == HFSB_NPOS) return false;
        hfsbi_put(sink, map->file_indents[seen]);
        return true;
    default: return false;
    }
}
