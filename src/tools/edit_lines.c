/* edit_lines.c - the tool edit_lines: change lines by their numbers.

   The numbers are those of a version of the file that the model has read; a
   tag, the first digits of its SHA-256, names that version. The session has
   kept it (seen.c), so the operations still find their lines when the file has
   changed elsewhere:

       version read   1 2 3 4 5 6 7          place[]: which line of the
                      | | |  \ \ \           current file each one has become
       file now       1 2 3 x 4 5 6 7

   An operation is carried out only if its lines, the line before them and the
   line after them are still next to each other, and comparing the lines from
   the end gives the same places. Otherwise lines that look alike, such as
   closing braces, could be taken for one another.

   Lines keep their ends: new lines end like their neighbours, and a last line
   without a newline stays without one. Without a session nothing is kept: the
   tag must be that of the current file. */
#include "tools_private.h"
#include "../edit/edit_private.h"

enum {
    HFSBI_LINE_OPS = 1000,       /* in one call */
    HFSBI_LINE_DIFF = 4000,      /* bytes of diff in a reply */
    HFSBI_LINE_LONG = 1000,      /* bytes; read may cut a longer line */
    HFSBI_LINES_SHOWN = 40,      /* in a refusal */
    HFSBI_LINES_SHOWN_MAX = 2000 /* bytes of them */
};

/* Replaces lines from + 1 to `to`; equal numbers insert after that line. */
typedef struct hfsbi_line_op {
    size_t   from, to;
    hfsb_str text;
    size_t   index; /* among the operations of the call */
} hfsbi_line_op;

typedef struct hfsbi_line_edit {
    hfsb_call        *call;
    hfsb_str          path, tag;
    hfsbi_line_op    *ops; /* in the order of their lines */
    size_t            count;
    hfsb_buf          kept;        /* the version that was read */
    hfsb_buf          shown;       /* a byte for each of its lines */
    bool              all_shown;   /* `shown` is not used */
    hfsb_buf          now;         /* the current file */
    hfsbi_file_change change;      /* ... and whether the session knows it */
    hfsbi_version     version;     /* of `now` */
    hfsbi_lines       olds, lines; /* of the version read, and of `now` */
    size_t           *place;       /* olds.count + 2 of them: the number of the
                        line in `now`, from 1; HFSB_NPOS: it is gone. The first
                        and the last are the edges of the file */
    hfsb_buf          after;       /* the new content */
    hfsb_span        *spans;       /* one for each operation */
} hfsbi_line_edit;

static hfsb_status hfsbi_line_edit_refuse(hfsbi_line_edit *e,
                                          const char      *format, ...)
    HFSBI_PRINTF(2, 3);
/* Fills the result with a refusal. HFSB_REFUSED, or HFSB_NOMEM. */
static hfsb_status hfsbi_line_edit_refuse(hfsbi_line_edit *e,
                                          const char      *format, ...) {
    hfsb_tool_result *r = &e->call->result;
    va_list           ap;
    hfsb_status       st;
    r->success = false;
    r->code = HFSB_REFUSED;
    va_start(ap, format);
    st = hfsbi_buf_vprintf(&r->error, format, ap);
    va_end(ap);
    return st == HFSB_OK ? HFSB_REFUSED : HFSB_NOMEM;
}

/* ---- the version that was read ---- */

static hfsb_status hfsbi_line_edit_no_version(hfsbi_line_edit *e, bool same) {
    hfsb_str now = hfsbi_version_tag(&e->version);
    if (same)
        return hfsbi_line_edit_refuse(
            e,
            "It is no longer known which lines of %.*s you were shown. "
            "Read those that you want to change again.",
            (int)e->path.len, e->path.ptr);
    return hfsbi_line_edit_refuse(
        e,
        "%.*s is not the file with the tag \"%.*s\": its tag is now "
        "%.*s. Read the lines that you want to change again.",
        (int)e->path.len, e->path.ptr, (int)hfsb_utf8_offset(e->tag, 64),
        e->tag.ptr, (int)now.len, now.ptr);
}

/* Finds the version that the tag names. A large file is not kept: it must be
   unchanged, and all of its lines count as shown. */
static hfsb_status hfsbi_line_edit_find(hfsbi_line_edit *e) {
    const hfsb_alloc *alloc = &e->call->tools->alloc;
    hfsb_str          now = hfsb_buf_str(&e->now);
    bool              valid = e->tag.len >= HFSBI_TAG;
    bool same = valid && hfsb_str_starts(hfsb_cstr(e->version.hex), e->tag);
    hfsb_status st = HFSB_NOT_FOUND;
    if (valid)
        st = hfsbi_tools_snapshot(e->call->tools, e->path, e->tag, &e->kept,
                                  &e->shown);
    if (st == HFSB_OK)
        return hfsbi_lines_split(alloc, hfsb_buf_str(&e->kept), &e->olds);
    if (st == HFSB_NOMEM) return st;
    e->all_shown =
        same && (!e->call->tools->session || now.len > HFSBI_SNAPSHOT_MAX);
    return e->all_shown ? hfsbi_lines_split(alloc, now, &e->olds)
                        : hfsbi_line_edit_no_version(e, same);
}

static void hfsbi_lines_reverse(hfsbi_lines *lines) {
    size_t   i = 0, j = lines->count;
    hfsb_str swap;
    for (; i + 1 < j; i++) {
        swap = lines->items[i];
        lines->items[i] = lines->items[--j];
        lines->items[j] = swap;
    }
}

/* Drops the places that differ when the lines are compared from the end: a
   line among others that look the same could be any of them. `same` is room
   for the lines of `now`. */
static hfsb_status hfsbi_line_edit_drop_vague(hfsbi_line_edit *e,
                                              size_t          *same) {
    size_t      n = e->olds.count, m = e->lines.count, i, j = 0;
    hfsb_status st;
    hfsbi_lines_reverse(&e->olds);
    hfsbi_lines_reverse(&e->lines);
    st = hfsbi_lines_diff(&e->call->tools->alloc, e->olds.items, n,
                          e->lines.items, m, same);
    hfsbi_lines_reverse(&e->olds);
    hfsbi_lines_reverse(&e->lines);
    for (i = n; st == HFSB_OK && i > 0; i--) {
        while (j < m && (same[j] == HFSB_NPOS || n - same[j] > i)) j++;
        if (j == m || n - same[j] != i || e->place[i] != m - j)
            e->place[i] = HFSB_NPOS;
    }
    return st;
}

/* Finds each line of that version in the current file. */
static hfsb_status hfsbi_line_edit_follow(hfsbi_line_edit *e) {
    const hfsb_alloc *alloc = &e->call->tools->alloc;
    size_t            n = e->olds.count, m, *same, i;
    hfsb_status       st =
        hfsbi_lines_split(alloc, hfsb_buf_str(&e->now), &e->lines);
    if (st != HFSB_OK) return st;
    m = e->lines.count;
    e->place = (size_t *)hfsbi_array(alloc, n + 2, sizeof *e->place);
    same = (size_t *)hfsbi_array(alloc, m, sizeof *same);
    if (e->place && same)
        st =
            hfsbi_lines_diff(alloc, e->olds.items, n, e->lines.items, m, same);
    else st = HFSB_NOMEM;
    if (st == HFSB_OK) {
        for (i = 1; i <= n; i++) e->place[i] = HFSB_NPOS;
        for (i = 0; i < m; i++)
            if (same[i] != HFSB_NPOS) e->place[same[i] + 1] = i + 1;
        e->place[0] = 0;
        e->place[n + 1] = m + 1;
        st = hfsbi_line_edit_drop_vague(e, same);
    }
    hfsbi_array_free(alloc, same, m, sizeof *same);
    return st;
}

/* ---- checks ---- */

/* " 7" or "s 7-9" for a message. */
static const char *hfsbi_line_range(size_t first, size_t last, char room[64]) {
    if (first == last) (void)snprintf(room, 64, " %zu", first);
    else (void)snprintf(room, 64, "s %zu-%zu", first, last);
    return room;
}

/* The lines that an operation names: those that it replaces, or the one that
   it inserts after, or before at the start of the file. */
static void hfsbi_op_lines(const hfsbi_line_op *op, size_t *first,
                           size_t *last) {
    *first = op->from + (op->to > op->from);
    *last = op->to;
    if (*last == 0) *first = *last = 1;
}

/* Shows the lines of the file around the place of a failed operation, and
   their tag. */
static hfsb_status hfsbi_line_edit_show(hfsbi_line_edit     *e,
                                        const hfsbi_line_op *op) {
    hfsb_buf *out = &e->call->result.error;
    hfsb_str  tag = hfsbi_version_tag(&e->version);
    size_t    before = op->from, after = op->to + 1, first, last, i, mark;
    while (e->place[before] == HFSB_NPOS) before--;
    while (e->place[after] == HFSB_NPOS) after++;
    first = e->place[before] ? e->place[before] : 1;
    last = e->place[after] < e->lines.count ? e->place[after] : e->lines.count;
    mark = out->len;
    for (i = first; i <= last && i - first < HFSBI_LINES_SHOWN; i++) {
        hfsb_str line = e->lines.items[i - 1];
        if (out->len - mark + line.len > HFSBI_LINES_SHOWN_MAX) break;
        if (hfsb_str_ends(line, HFSB_LIT("\r"))) line.len--;
        hfsb_buf_printf(out, "%zu\t", i);
        hfsbi_append_repaired(out, line);
        hfsb_buf_append_byte(out, '\n');
    }
    if (i > first)
        hfsbi_tools_showed(e->call->tools, e->path, hfsb_buf_str(&e->now),
                           first, i - 1);
    if (i <= last) hfsb_buf_printf(out, "... up to line %zu\n", last);
    hfsb_buf_printf(out,
                    "The tag of the file is now %.*s; with it, all numbers "
                    "are those of the file as it is now.",
                    (int)tag.len, tag.ptr);
    return out->status == HFSB_OK ? HFSB_REFUSED : HFSB_NOMEM;
}

/* The lines of an operation must exist, must have been shown, and must not
   have changed. HFSB_OK; HFSB_REFUSED with the result; HFSB_NOMEM. */
static hfsb_status hfsbi_line_edit_check_op(hfsbi_line_edit     *e,
                                            const hfsbi_line_op *op) {
    char        range[64];
    size_t      first, last, i;
    hfsb_status st;
    hfsbi_op_lines(op, &first, &last);
    if (op->to > e->olds.count)
        return hfsbi_line_edit_refuse(
            e,
            "ops[%zu]: %.*s had %zu lines when it was read; there is no "
            "line %zu.",
            op->index, (int)e->path.len, e->path.ptr, e->olds.count, op->to);
    for (i = first; !e->all_shown && i <= last && i <= e->olds.count; i++)
        if (!e->shown.ptr[i - 1])
            return hfsbi_line_edit_refuse(
                e,
                "ops[%zu]: you were not shown line%s of %.*s. Read with "
                "offset=%zu limit=%zu first.%s",
                op->index, hfsbi_line_range(first, last, range),
                (int)e->path.len, e->path.ptr, first, last - first + 1,
                e->olds.items[i - 1].len > HFSBI_LINE_LONG
                    ? " If read cuts a line, change it with edit."
                    : "");
    for (i = op->from; i <= op->to; i++)
        if (e->place[i] == HFSB_NPOS || e->place[i + 1] != e->place[i] + 1)
            break;
    if (i > op->to) return HFSB_OK;
    st = hfsbi_line_edit_refuse(
        e,
        "ops[%zu]: line%s of %.*s, or the lines next to it, changed since "
        "you read it; nothing was written. They are now:\n",
        op->index, hfsbi_line_range(first, last, range), (int)e->path.len,
        e->path.ptr);
    return st == HFSB_REFUSED ? hfsbi_line_edit_show(e, op) : st;
}

static hfsb_status hfsbi_line_edit_check(hfsbi_line_edit *e) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; st == HFSB_OK && i < e->count; i++) {
        const hfsbi_line_op *op = e->ops + i;
        st = hfsbi_line_edit_check_op(e, op);
        if (st == HFSB_OK && i > 0 && op[-1].to > op->from)
            st = hfsbi_line_edit_refuse(e, "ops[%zu] and ops[%zu] overlap.",
                                        op[-1].index, op->index);
    }
    return st;
}

/* ---- the new content ---- */

/* Every line ends in a newline, except perhaps the last. */
static bool hfsbi_has_newline(const hfsbi_line_edit *e, size_t line) {
    return line < e->lines.count ||
           hfsb_str_ends(hfsb_buf_str(&e->now), HFSB_LIT("\n"));
}

/* The offset where a line of the file starts. A byte order mark is not a part
   of the first one. */
static size_t hfsbi_line_edit_start(const hfsbi_line_edit *e, size_t line) {
    hfsb_str now = hfsb_buf_str(&e->now);
    if (line > e->lines.count) return now.len;
    if (line > 1) return (size_t)(e->lines.items[line - 1].ptr - now.ptr);
    return hfsb_str_starts(now, HFSB_LIT("\xEF\xBB\xBF")) ? 3 : 0;
}

/* How a new line ends: like the line that it replaces or precedes, else like
   the one before. */
static hfsb_str hfsbi_line_edit_newline(const hfsbi_line_edit *e,
                                        size_t                 line) {
    while (line > 1 && (line > e->lines.count || !hfsbi_has_newline(e, line)))
        line--;
    if (line <= e->lines.count && hfsbi_has_newline(e, line) &&
        hfsb_str_ends(e->lines.items[line - 1], HFSB_LIT("\r")))
        return HFSB_LIT("\r\n");
    return HFSB_LIT("\n");
}

/* Appends the lines of text. */
static void hfsbi_line_edit_put(hfsb_buf *out, hfsb_str text, hfsb_str newline,
                                bool last_ends) {
    hfsb_str line;
    while (hfsb_text_line(&text, &line, NULL)) {
        hfsb_buf_append(out, line);
        if (text.len || last_ends) hfsb_buf_append(out, newline);
    }
}

/* Appends the file from offset `at` to the lines of an operation, and their
   new text; fills the span. */
static void hfsbi_line_edit_apply(hfsbi_line_edit *e, const hfsbi_line_op *op,
                                  size_t at, hfsb_span *s) {
    const hfsb_str mark = HFSB_LIT("\xEF\xBB\xBF");
    hfsb_str       now = hfsb_buf_str(&e->now), text = op->text, newline;
    size_t         first = e->place[op->from] + 1, last = e->place[op->to];
    size_t         end = hfsbi_line_edit_start(e, last + 1);
    bool           ends = last == 0 || hfsbi_has_newline(e, last);
    newline = hfsbi_line_edit_newline(e, first);
    if (first == 1 && hfsb_str_starts(text, mark))
        text = hfsb_str_slice(text, mark.len, text.len);
    s->old_start = hfsbi_line_edit_start(e, first);
    s->old_len = end - s->old_start;
    hfsb_buf_append(&e->after, hfsb_str_slice(now, at, s->old_start));
    s->new_start = e->after.len;
    if (op->from == op->to && !ends &&
        !hfsb_str_ends(hfsb_buf_str(&e->after), HFSB_LIT("\n")))
        hfsb_buf_append(&e->after, newline);
    hfsbi_line_edit_put(&e->after, text, newline, ends);
    s->new_len = e->after.len - s->new_start;
}

/* Makes the new content and the spans. */
static hfsb_status hfsbi_line_edit_compose(hfsbi_line_edit *e) {
    hfsb_str now = hfsb_buf_str(&e->now);
    size_t   at = 0, i;
    e->spans = (hfsb_span *)hfsbi_array(&e->call->tools->alloc, e->count,
                                        sizeof *e->spans);
    if (!e->spans) return HFSB_NOMEM;
    memset(e->spans, 0, e->count * sizeof *e->spans);
    for (i = 0; i < e->count; i++) {
        hfsbi_line_edit_apply(e, e->ops + i, at, e->spans + i);
        at = e->spans[i].old_start + e->spans[i].old_len;
    }
    hfsb_buf_append(&e->after, hfsb_str_slice(now, at, now.len));
    if (e->after.status != HFSB_OK) return e->after.status;
    if (!hfsb_str_equal(now, hfsb_buf_str(&e->after))) return HFSB_OK;
    return hfsbi_line_edit_refuse(e,
                                  "These lines of %.*s are like that already.",
                                  (int)e->path.len, e->path.ptr);
}

/* ---- one try ---- */

static hfsb_status hfsbi_line_edit_report(hfsbi_line_edit         *e,
                                          const hfsb_file_written *written) {
    hfsbi_build   *fields = &e->call->fields;
    hfsb_diff_opts opts = HFSB_INIT;
    hfsb_buf       diff = HFSB_INIT;
    hfsbi_version  version;
    hfsb_status    st;
    diff.alloc = e->call->tools->alloc;
    opts.path = e->path;
    opts.max_bytes = HFSBI_LINE_DIFF;
    hfsbi_version_of(hfsb_buf_str(&e->after), &version);
    st = hfsb_diff_unified(hfsb_buf_str(&e->now), hfsb_buf_str(&e->after),
                           e->spans, e->count, &opts, &diff, NULL);
    hfsbi_build_int(fields, "count", (long long)e->count);
    hfsbi_build_str(fields, "sha256", hfsb_cstr(version.hex));
    hfsbi_build_str(fields, "tag", hfsbi_version_tag(&version));
    hfsbi_build_str(fields, "diff", hfsb_buf_str(&diff));
    hfsbi_build_bool(fields, "in_place", written->in_place);
    if (st == HFSB_OK)
        st = hfsbi_result_ok(&e->call->result,
                             "Edited %.*s (%zu operation%s). Its tag is now "
                             "%.*s.\n",
                             (int)e->path.len, e->path.ptr, e->count,
                             e->count > 1 ? "s" : "", HFSBI_TAG, version.hex);
    hfsbi_append_repaired(&e->call->result.output, hfsb_buf_str(&diff));
    if (st == HFSB_OK) st = e->call->result.output.status;
    hfsb_buf_free(&diff);
    return st;
}

/* Writes the new content. HFSB_STALE with *err when the file has changed since
   it was read for this try. */
static hfsb_status hfsbi_line_edit_store(hfsbi_line_edit *e, hfsb_err *err) {
    hfsb_str             after = hfsb_buf_str(&e->after);
    hfsb_file_write_opts opts = HFSB_INIT;
    hfsb_file_written    written;
    hfsb_status          st;
    opts.if_content = hfsb_buf_str(&e->now);
    if (!opts.if_content.ptr) opts.if_content = HFSB_LIT("");
    st = hfsb_file_write(e->call->tools->place, e->path, after, &opts,
                         &written, err);
    if (st == HFSB_STALE) return st;
    if (st != HFSB_OK) return hfsbi_result_err(&e->call->result, err);
    hfsbi_file_change_done(e->call, e->path, after, &e->change);
    st = hfsbi_line_edit_report(e, &written);
    return st == HFSB_OK ? hfsbi_add_warnings(e->call, e->path, after) : st;
}

/* HFSB_OK with the result, HFSB_NOMEM, or HFSB_STALE as
   hfsbi_line_edit_store(). */
static hfsb_status hfsbi_line_edit_run(hfsbi_line_edit *e, hfsb_err *err) {
    hfsb_file_info info;
    hfsb_status    st =
        hfsb_file_read(e->call->tools->place, e->path, 0, &e->now, &info, err);
    if (st != HFSB_OK) return hfsbi_result_err(&e->call->result, err);
    hfsbi_version_of(hfsb_buf_str(&e->now), &e->version);
    hfsbi_file_change_open(e->call, e->path, NULL, hfsb_buf_str(&e->now),
                           &info, &e->change);
    st = hfsbi_line_edit_find(e);
    if (st == HFSB_OK) st = hfsbi_line_edit_follow(e);
    if (st == HFSB_OK) st = hfsbi_line_edit_check(e);
    if (st == HFSB_OK) st = hfsbi_line_edit_compose(e);
    if (st == HFSB_OK) return hfsbi_line_edit_store(e, err);
    return st == HFSB_REFUSED ? HFSB_OK : st;
}

static hfsb_status hfsbi_line_edit_try(hfsb_call *call, hfsb_str path,
                                       hfsb_str tag, hfsbi_line_op *ops,
                                       size_t count, hfsb_err *err) {
    const hfsb_alloc *alloc = &call->tools->alloc;
    hfsbi_line_edit   e;
    hfsb_status       st;
    memset(&e, 0, sizeof e);
    e.call = call;
    e.path = path;
    e.tag = tag;
    e.ops = ops;
    e.count = count;
    e.kept.alloc = e.shown.alloc = e.now.alloc = e.after.alloc = *alloc;
    e.change.diff.alloc = *alloc;
    st = hfsbi_line_edit_run(&e, err);
    hfsbi_array_free(alloc, e.spans, count, sizeof *e.spans);
    hfsbi_array_free(alloc, e.place, e.olds.count + 2, sizeof *e.place);
    hfsbi_lines_free(alloc, &e.olds);
    hfsbi_lines_free(alloc, &e.lines);
    hfsbi_file_change_free(&e.change);
    hfsb_buf_free(&e.after);
    hfsb_buf_free(&e.now);
    hfsb_buf_free(&e.shown);
    hfsb_buf_free(&e.kept);
    return st;
}

/* ---- arguments ---- */

typedef struct hfsbi_op_args {
    hfsb_str  op, text;
    long long line, last;
} hfsbi_op_args;

#define HFSBI_LINE_NUMBERS 1000000000

static const hfsbi_param hfsbi_op_params[] = {
    HFSBI_PARAM_CHOICE("op", HFSBI_REQUIRED | HFSBI_ONE_OF, hfsbi_op_args, op,
                       "replace insert delete"),
    HFSBI_PARAM_RANGE("line", HFSBI_ARG_INT, HFSBI_REQUIRED, hfsbi_op_args,
                      line, "First line; of insert: the line before, or 0", 0,
                      HFSBI_LINE_NUMBERS, 0, "a line number"),
    HFSBI_PARAM_RANGE("last", HFSBI_ARG_INT, 0, hfsbi_op_args, last,
                      "Last line, default: line", 0, HFSBI_LINE_NUMBERS, 0,
                      "a line number"),
    HFSBI_PARAM("text", HFSBI_ARG_STR, 0, hfsbi_op_args, text,
                "Whole new lines"),
    HFSBI_PARAM_END};

typedef struct hfsbi_edit_lines_args {
    hfsb_str               path, tag;
    const hfsb_json_value *ops;
} hfsbi_edit_lines_args;

static const hfsbi_param hfsbi_edit_lines_params[] = {
    HFSBI_PARAM("path", HFSBI_ARG_STR, HFSBI_REQUIRED, hfsbi_edit_lines_args,
                path, NULL),
    HFSBI_PARAM("tag", HFSBI_ARG_STR, HFSBI_REQUIRED, hfsbi_edit_lines_args,
                tag, "Of the read that the numbers come from"),
    HFSBI_PARAM_LIST("ops", HFSBI_REQUIRED, hfsbi_edit_lines_args, ops,
                     hfsbi_op_params),
    HFSBI_PARAM_END};

/* Makes an operation from its arguments. Returns NULL, or what is wrong with
   them. */
static const char *hfsbi_op_make(const hfsbi_op_args *a, hfsbi_line_op *op) {
    bool insert = hfsb_str_equal(a->op, HFSB_LIT("insert"));
    bool delete_lines = hfsb_str_equal(a->op, HFSB_LIT("delete"));
    op->from = op->to = (size_t)a->line;
    op->text = a->text;
    if (insert && !a->text.len) return "insert needs text";
    if (insert && a->last && a->last != a->line)
        return "insert has no last line";
    if (insert) return NULL;
    if (a->line < 1) return "lines are counted from 1";
    if (a->last && a->last < a->line) return "last is before line";
    if (delete_lines && a->text.len) return "delete has no text";
    if (!delete_lines && !a->text.ptr) return "replace needs text";
    op->from--;
    if (a->last) op->to = (size_t)a->last;
    return NULL;
}

/* Reads item n of `ops`. HFSB_OK; HFSB_ARG or HFSB_NOMEM with *err. */
static hfsb_status hfsbi_op_read(hfsb_call *call, const hfsb_json_value *item,
                                 size_t n, hfsbi_line_op *op, hfsb_err *err) {
    hfsbi_args_how how = HFSB_INIT;
    hfsbi_op_args  a;
    hfsb_err       inner = HFSB_INIT;
    const char    *wrong;
    hfsb_status    st;
    how.strict = call->opts.strict;
    how.notes = &call->notes;
    op->index = n;
    st = hfsbi_args_read(hfsbi_op_params, item, &how, &a, &inner);
    if (st == HFSB_OK) {
        wrong = hfsbi_op_make(&a, op);
        if (!wrong) return HFSB_OK;
        st = hfsbi_fail(&inner, HFSB_ARG, 0, "%s.", wrong);
    }
    hfsbi_fail(err, st, 0, "ops[%zu]: %s", n, inner.msg);
    hfsbi_err_key(err, "ops");
    return st;
}

/* Orders operations by their lines. Insertions precede the lines that follow
   them; several at one place stay in their order. */
static int hfsbi_op_compare(const void *a, const void *b) {
    const hfsbi_line_op *x = (const hfsbi_line_op *)a;
    const hfsbi_line_op *y = (const hfsbi_line_op *)b;
    bool                 x_range = x->to > x->from, y_range = y->to > y->from;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    if (x_range != y_range) return x_range ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

HFSBI_FN hfsb_status hfsbi_run_edit_lines(hfsb_call *call, const void *args,
                                          hfsb_err *err) {
    const hfsbi_edit_lines_args *a = (const hfsbi_edit_lines_args *)args;
    const hfsb_alloc            *alloc = &call->tools->alloc;
    hfsb_json_iter               it = hfsb_json_begin(a->ops);
    size_t                       n = 0, count = hfsb_json_count(a->ops);
    unsigned                     tries = 0;
    hfsbi_line_op               *ops;
    hfsb_status                  st = HFSB_OK;
    if (count < 1 || count > HFSBI_LINE_OPS) {
        hfsbi_fail(err, HFSB_ARG, 0, "ops must have 1 to %d items, not %zu.",
                   HFSBI_LINE_OPS, count);
        hfsbi_err_key(err, "ops");
        return HFSB_ARG;
    }
    if (!hfsbi_may_change(call, a->path, true, &st)) return st;
    ops = (hfsbi_line_op *)hfsbi_array(alloc, count, sizeof *ops);
    if (!ops) return HFSB_NOMEM;
    for (; st == HFSB_OK && hfsb_json_next(&it); n++)
        st = hfsbi_op_read(call, it.value, n, ops + n, err);
    if (st == HFSB_OK) {
        hfsbi_sort(ops, count, sizeof *ops, hfsbi_op_compare);
        hfsbi_change_lock(call);
        while ((st = hfsbi_line_edit_try(call, a->path, a->tag, ops, count,
                                         err)) == HFSB_STALE &&
               tries < HFSBI_TRIES)
            hfsbi_pause(tries++);
        if (st == HFSB_STALE) st = hfsbi_result_err(&call->result, err);
    }
    hfsbi_array_free(alloc, ops, count, sizeof *ops);
    return st;
}

HFSBI_FN const hfsbi_tool *hfsbi_tool_edit_lines(void) {
    static const hfsbi_tool row = {
        "edit_lines",
        "Edit lines of a file",
        "Change lines of a file by the numbers that read showed, with the tag "
        "of that read: replace lines line to last by text, insert text after "
        "line, delete lines line to last. All numbers are those of that read, "
        "before any of the ops; all ops are done or none. The reply has the "
        "new tag.",
        NULL,
        HFSBI_TOOL_CHANGES,
        HFSBI_TOOL_ONCE | HFSBI_TOOL_ON_DISK | HFSBI_TOOL_ON_REQUEST,
        hfsbi_edit_lines_params};
    return &row;
}
