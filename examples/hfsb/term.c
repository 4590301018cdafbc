/* term.c - what a terminal shows: colours, tables.

   Colours are for a terminal, unless NO_COLOR is set or TERM is dumb;
   CLICOLOR_FORCE asks for them in a pipe as well. Nothing else changes there:
   what a script reads has no heads, no colours and the columns it always had.

   Text of a server is cleaned of control characters first (io.c), then
   coloured: no sequence that reaches the terminal comes from outside. */
#define _XOPEN_SOURCE 700 /* isatty(); before any include */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAST = 12 }; /* characters of the last column of a narrow terminal */

static bool is_set(const char *name) {
    const char *value = getenv(name);
    return value && *value;
}

bool can_rewrite(int fd) {
    const char *term = getenv("TERM");
    return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

bool has_colours(int fd) {
    const char *force = getenv("CLICOLOR_FORCE");
    if (is_set("NO_COLOR")) return false;
    if (force && *force && strcmp(force, "0") != 0) return true;
    return can_rewrite(fd);
}

/* ---- paint ---- */

static const char *sequence(paint p) {
    static const char *const list[] = {"",         "\033[1m",  "\033[32m",
                                       "\033[31m", "\033[33m", "\033[36m"};
    return list[p];
}

void put_painted(hfsb_buf *out, paint p, hfsb_str text) {
    if (p == PAINT_NONE) {
        must(hfsb_buf_append(out, text));
        return;
    }
    must(hfsb_buf_printf(out, "%s%.*s\033[0m", sequence(p), (int)text.len,
                         text.ptr));
}

paint stage_paint(hfsb_str stage) {
    static const char *const good[] = {"RUNNING", "COMPLETED", "active"};
    static const char *const idle[] = {"PAUSED", "SLEEPING", "STOPPED",
                                       "CANCELED", "suspended", "-"};
    size_t                   i;
    for (i = 0; i < sizeof good / sizeof *good; i++)
        if (hfsb_str_equal(stage, hfsb_cstr(good[i]))) return PAINT_GOOD;
    for (i = 0; i < sizeof idle / sizeof *idle; i++)
        if (hfsb_str_equal(stage, hfsb_cstr(idle[i]))) return PAINT_NONE;
    if (hfsb_str_find(stage, HFSB_LIT("ERROR")) != HFSB_NPOS ||
        hfsb_str_equal(stage, HFSB_LIT("NOT_FOUND")))
        return PAINT_BAD;
    return PAINT_WAIT;
}

/* ---- diffs ---- */

/* Where a line is in a diff: how many lines of its hunk are still to come. */
typedef struct diff_state {
    long long old_left, new_left;
} diff_state;

/* Reads "-12,3 " or "+7 "; the count is 1 if it is not given. */
static const char *read_range(const char *p, char mark, long long *count) {
    char *end;
    if (*p != mark) return NULL;
    (void)strtoll(p + 1, &end, 10);
    *count = 1;
    if (*end == ',') *count = strtoll(end + 1, &end, 10);
    return *end == ' ' ? end + 1 : NULL;
}

static bool read_hunk(const char *line, diff_state *d) {
    const char *p = strncmp(line, "@@ ", 3) == 0 ? line + 3 : NULL;
    if (p) p = read_range(p, '-', &d->old_left);
    if (p) p = read_range(p, '+', &d->new_left);
    if (p && strncmp(p, "@@", 2) == 0) return true;
    d->old_left = d->new_left = 0;
    return false;
}

/* Only lines of a hunk are changes: text may begin with a "-", too. */
static paint diff_paint(const char *line, diff_state *d) {
    if (d->old_left <= 0 && d->new_left <= 0) {
        if (read_hunk(line, d)) return PAINT_PLACE;
        return strncmp(line, "--- ", 4) == 0 || strncmp(line, "+++ ", 4) == 0
                   ? PAINT_HEAD
                   : PAINT_NONE;
    }
    if (*line != '+') d->old_left--;
    if (*line != '-') d->new_left--;
    return *line == '+' ? PAINT_GOOD : *line == '-' ? PAINT_BAD : PAINT_NONE;
}

void colour_diffs(hfsb_buf *text) {
    hfsb_buf    out = HFSB_INIT;
    diff_state  d = HFSB_INIT;
    const char *line = text->len ? text->ptr : "";
    while (*line) {
        size_t len = strcspn(line, "\n");
        paint  p = *line == '\\' ? PAINT_NONE : diff_paint(line, &d);
        put_painted(&out, p, hfsb_str_make(line, len));
        line += len;
        if (*line) must(hfsb_buf_append_byte(&out, *line++));
    }
    hfsb_buf_free(text);
    *text = out;
}

/* ---- tables ---- */

void table_begin(table *t, const table_column *columns, size_t count) {
    memset(t, 0, sizeof *t);
    t->columns = columns;
    t->count = count;
}

void table_add(table *t, const hfsb_str *cells) {
    size_t i;
    for (i = 0; i < t->count; i++) {
        size_t width = hfsb_utf8_count(cells[i]), at = t->cells.len;
        if (width > t->width[i]) t->width[i] = width;
        must(hfsb_buf_append(&t->cells, cells[i]));
        for (; at < t->cells.len; at++) /* of a server's JSON */
            if (!t->cells.ptr[at]) t->cells.ptr[at] = ' ';
        must(hfsb_buf_append_byte(&t->cells, '\0'));
    }
    t->rows++;
}

/* A cell, and blanks up to the width unless it is the last one. */
static void put_cell(const table *t, hfsb_buf *out, size_t i, size_t width,
                     paint p, hfsb_str text) {
    size_t have = hfsb_utf8_count(text);
    put_painted(out, p, text);
    if (i + 1 == t->count) return;
    must(hfsb_buf_printf(out, "%*s  ", have < width ? (int)(width - have) : 0,
                         ""));
}

/* The last cell, as far as it fits next to the others. */
static void put_last(const table *t, hfsb_buf *out, hfsb_str text) {
    size_t room = terminal_width(), i;
    for (i = 0; i + 1 < t->count; i++)
        room -= room < t->width[i] + 2 ? room : t->width[i] + 2;
    if (room < LEAST) room = LEAST;
    if (hfsb_utf8_count(text) <= room) {
        must(hfsb_buf_append(out, text));
        return;
    }
    text = hfsb_str_slice(text, 0, hfsb_utf8_offset(text, room - 3));
    must(hfsb_buf_printf(out, "%.*s...", (int)text.len, text.ptr));
}

static void put_heads(table *t, hfsb_buf *out, paint p) {
    size_t i;
    for (i = 0; i < t->count; i++) {
        hfsb_str head = hfsb_cstr(t->columns[i].head);
        if (head.len > t->width[i]) t->width[i] = head.len;
        put_cell(t, out, i, t->width[i], p, head);
    }
    must(hfsb_buf_append_byte(out, '\n'));
}

void table_write(table *t, hfsb_buf *out) {
    bool        shown = can_rewrite(STDOUT_FILENO);
    bool        colours = has_colours(STDOUT_FILENO);
    const char *cell = t->cells.len ? t->cells.ptr : "";
    size_t      row, i;
    blank_controls_of_cells(&t->cells);
    if (shown && t->rows) put_heads(t, out, colours ? PAINT_HEAD : PAINT_NONE);
    for (row = 0; row < t->rows; row++)
        for (i = 0; i < t->count; i++) {
            const table_column *c = &t->columns[i];
            hfsb_str            text = hfsb_cstr(cell);
            paint p = colours && c->stage ? stage_paint(text) : PAINT_NONE;
            if (shown && t->cut && i + 1 == t->count) put_last(t, out, text);
            else put_cell(t, out, i, shown ? t->width[i] : c->width, p, text);
            if (i + 1 == t->count && row + 1 < t->rows)
                must(hfsb_buf_append_byte(out, '\n'));
            cell += text.len + 1;
        }
    hfsb_buf_free(&t->cells);
}

int show_table(hfsb_tool_result *result, hfsb_status st, const hfsb_err *err,
               table *t, bool json) {
    hfsb_buf text = HFSB_INIT;
    int      written = DONE, code;
    if (!json) table_write(t, &text);
    if (text.len) must(hfsb_buf_append_byte(&text, '\n'));
    if (text.len) written = put_out(hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    hfsb_buf_free(&t->cells);
    code = show_outcome(result, st, err, json);
    return code == DONE ? written : code;
}
