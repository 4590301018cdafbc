/* edit.c - apply one or many edits. Depends on: base, json, text, diff,
   edit_plan. */
#include "match.h"

hfsb_status hfsb_edit_set_mode(hfsb_edit *edit, hfsb_str name, hfsb_err *err) {
    if (hfsb_str_equal(name, HFSB_LIT("replace"))) {
        edit->mode = HFSB_EDIT_REPLACE;
    } else if (hfsb_str_equal(name, HFSB_LIT("replace_all"))) {
        edit->mode = HFSB_EDIT_REPLACE;
        edit->replace_all = true;
    } else if (hfsb_str_equal(name, HFSB_LIT("append_after"))) {
        edit->mode = HFSB_EDIT_APPEND_AFTER;
    } else if (hfsb_str_equal(name, HFSB_LIT("prepend_before"))) {
        edit->mode = HFSB_EDIT_PREPEND_BEFORE;
    } else {
        hfsbi_fail(err, HFSB_ARG, 0, "Unknown mode: ");
        hfsbi_err_quote(err, name, 100);
        hfsbi_err_add(err, ". Use replace, append_after or prepend_before. "
                           "Nothing was changed.");
        return HFSB_ARG;
    }
    return hfsbi_ok(err);
}

hfsb_status hfsb_edit_from_json(const hfsb_json_value *arguments,
                                hfsb_edit *edit, hfsb_err *err) {
    hfsb_edit   fresh = *edit;
    hfsb_str    mode = HFSB_INIT;
    long long   line = 0;
    hfsb_status st;
    st = hfsb_json_arg_str(arguments, "old_str", true, &fresh.old_str, err);
    if (st == HFSB_OK)
        st =
            hfsb_json_arg_str(arguments, "new_str", true, &fresh.new_str, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_bool(arguments, "replace_all", false,
                                &fresh.replace_all, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_bool(arguments, "exact", false, &fresh.exact, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_int(arguments, "line", false, &line, err);
    if (st == HFSB_OK && line < 0)
        st = hfsbi_fail(err, HFSB_ARG, 0,
                        "line: expected a line number from 1 on, found %lld.",
                        line);
    if (st == HFSB_OK && line > 0) fresh.line = (size_t)line;
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(arguments, "mode", false, &mode, err);
    if (st == HFSB_OK && mode.ptr) st = hfsb_edit_set_mode(&fresh, mode, err);
    if (st == HFSB_OK) *edit = fresh;
    return st;
}

/* ---- splice ---- */

static int hfsbi_place_order(const void *x, const void *y) {
    const hfsbi_place *a = (const hfsbi_place *)x;
    const hfsbi_place *b = (const hfsbi_place *)y;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    if ((a->end == a->start) != (b->end == b->start))
        return a->end == a->start ? -1 : 1; /* an insertion before what it is
                                               before */
    if (a->appended != b->appended)
        return a->appended ? -1 : 1; /* behind one text before it stands
                                        before the next */
    return a->order < b->order ? -1 : a->order > b->order;
}

static hfsb_status hfsbi_check_overlap(const hfsbi_edit_plan *plan) {
    size_t i;
    for (i = 1; i < plan->place_count; i++) {
        const hfsbi_place *a = plan->places + i - 1, *b = plan->places + i;
        if (a->end > b->start)
            return hfsbi_fail(
                plan->err, HFSB_REFUSED, 0,
                "Edits %zu and %zu overlap at line %zu: both change the same "
                "text. Join them into one edit. Nothing was changed.",
                (a->edit < b->edit ? a->edit : b->edit) + 1,
                (a->edit < b->edit ? b->edit : a->edit) + 1,
                hfsb_text_line_number(plan->content, b->start));
    }
    return HFSB_OK;
}

static hfsb_str hfsbi_place_text(const hfsbi_edit_plan *plan,
                                 const hfsbi_place     *p) {
    return hfsb_str_slice(hfsb_buf_str(&plan->texts), p->text_pos,
                          p->text_pos + p->text_len);
}

/* The new length, and whether any place changes anything; false when the
   length overflows. */
static bool hfsbi_plan_size(const hfsbi_edit_plan *plan, size_t *size,
                            bool *changed) {
    size_t i;
    *size = plan->content.len;
    *changed = false;
    for (i = 0; i < plan->place_count; i++) {
        const hfsbi_place *p = plan->places + i;
        *size -= p->end - p->start;
        if (!hfsbi_add(*size, p->text_len, size)) return false;
        if (!*changed)
            *changed = !hfsb_str_equal(
                hfsb_str_slice(plan->content, p->start, p->end),
                hfsbi_place_text(plan, p));
    }
    return true;
}

static hfsb_status hfsbi_refuse_no_change(const hfsbi_edit_plan *plan) {
    return hfsbi_fail(plan->err, HFSB_REFUSED, 0,
                      "The edit changes nothing: the file already reads like "
                      "that. Nothing was changed.");
}

static hfsb_status hfsbi_splice(const hfsbi_edit_plan *plan, hfsb_buf *out) {
    hfsbi_sink  sink = hfsbi_sink_begin(out);
    size_t      i, pos = 0, size;
    bool        changed;
    hfsb_status st;
    if (!hfsbi_plan_size(plan, &size, &changed)) return HFSB_LIMIT;
    if (!changed) return hfsbi_refuse_no_change(plan);
    sink.status = hfsb_buf_reserve(out, size);
    for (i = 0; i < plan->place_count; i++) {
        const hfsbi_place *p = plan->places + i;
        hfsbi_put(&sink, hfsb_str_slice(plan->content, pos, p->start));
        hfsbi_put(&sink, hfsbi_place_text(plan, p));
        pos = p->end;
    }
    hfsbi_put(&sink, hfsb_str_slice(plan->content, pos, plan->content.len));
    st = hfsbi_sink_end(&sink);
    /* Several places can undo each other. */
    if (st == HFSB_OK && plan->place_count > 1 &&
        hfsb_str_equal(plan->content,
                       hfsb_str_slice(hfsb_buf_str(out), sink.mark, out->len)))
        return hfsbi_refuse_no_change(plan);
    return st;
}

/* ---- the report ---- */

static void hfsbi_write_note(const hfsbi_edit_plan *plan,
                             hfsb_edit_result      *r) {
    static const char *const text[] = {
        NULL,
        NULL,
        NULL,
        "(matched after trimming trailing whitespace)",
        "(matched after unicode normalization)",
        "(matched after collapsing runs of blanks)",
        "(matched after trimming whitespace)",
        "(matched after trimming whitespace)",
        "(matched after trimming whitespace)"};
    const char *parts[8];
    size_t      count = 0, i, n = 0;
    for (i = 0; i < sizeof text / sizeof *text; i++)
        if ((plan->rungs >> i & 1u) && text[i] &&
            (!count || strcmp(parts[count - 1], text[i]) != 0))
            parts[count++] = text[i];
    if (plan->stripped) parts[count++] = "(line-number prefixes removed)";
    if (plan->reindented)
        parts[count++] = "(new_str re-indented as the file is)";
    for (i = 0; i < count; i++)
        n += (size_t)snprintf(r->note + n, sizeof r->note - n, "%s%s",
                              i ? " " : "", parts[i]);
}

static void hfsbi_fill_spans(const hfsbi_edit_plan *plan, hfsb_str text,
                             hfsb_span *spans) {
    size_t i, pos = 0, line = 1, old_pos = 0;
    for (i = 0; i < plan->place_count; i++) {
        const hfsbi_place *p = plan->places + i;
        hfsb_span         *s = spans + i;
        hfsb_str           put = hfsbi_place_text(plan, p);
        s->old_start = p->start;
        s->old_len = p->end - p->start;
        s->new_start = pos + (p->start - old_pos);
        s->new_len = put.len;
        line +=
            hfsb_str_count_byte(hfsb_str_slice(text, pos, s->new_start), '\n');
        s->first_line = line;
        line += hfsb_str_count_byte(put, '\n');
        s->last_line = hfsb_str_ends(put, HFSB_LIT("\n")) ? line - 1 : line;
        pos = s->new_start + put.len;
        old_pos = p->end;
    }
}

static hfsb_status hfsbi_report(const hfsbi_edit_plan *plan, hfsb_str text,
                                hfsb_edit_result *r) {
    hfsb_diff_opts diff = HFSB_INIT;
    r->diff.alloc = plan->alloc;
    r->spans = (hfsb_span *)hfsbi_array(&plan->alloc, plan->place_count,
                                        sizeof *r->spans);
    if (!r->spans) return HFSB_NOMEM;
    r->count = plan->place_count;
    hfsbi_fill_spans(plan, text, r->spans);
    hfsbi_write_note(plan, r);
    if (plan->opts && plan->opts->no_diff) return HFSB_OK;
    if (plan->opts) {
        diff.path = plan->opts->path;
        diff.max_bytes = plan->opts->max_diff;
    }
    return hfsb_diff_unified(plan->content, text, r->spans, r->count, &diff,
                             &r->diff, &r->diff_cut);
}

void hfsb_edit_result_free(hfsb_edit_result *r) {
    hfsbi_array_free(&r->diff.alloc, r->spans, r->count, sizeof *r->spans);
    hfsb_buf_free(&r->diff);
    memset(r, 0, sizeof *r);
}

/* ---- all of it ---- */

static hfsb_status hfsbi_run_plan(hfsbi_edit_plan *plan, hfsb_buf *out,
                                  hfsb_edit_result *result) {
    size_t      i, mark = out->len;
    hfsb_status st = HFSB_OK;
    for (i = 0; st == HFSB_OK && i < plan->count; i++)
        st = hfsbi_plan_edit(plan, i);
    if (st == HFSB_OK && plan->count > 1) {
        hfsbi_sort(plan->places, plan->place_count, sizeof *plan->places,
                   hfsbi_place_order);
        st = hfsbi_check_overlap(plan);
    }
    if (st == HFSB_OK) st = hfsbi_splice(plan, out);
    if (st == HFSB_OK && result)
        st = hfsbi_report(
            plan, hfsb_str_slice(hfsb_buf_str(out), mark, out->len), result);
    if (st != HFSB_OK) {
        hfsb_buf_truncate(out, mark);
        if (result) hfsb_edit_result_free(result);
    }
    return st;
}

hfsb_status hfsb_edit_apply(hfsb_str content, const hfsb_edit *edits,
                            size_t count, const hfsb_edit_opts *opts,
                            hfsb_buf *out, hfsb_edit_result *result,
                            hfsb_err *err) {
    hfsbi_edit_plan plan;
    hfsb_status     st;
    hfsbi_ok(err);
    if (result) memset(result, 0, sizeof *result);
    if (!count)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "There are no edits. Nothing was changed.");
    memset(&plan, 0, sizeof plan);
    plan.content = content;
    plan.edits = edits;
    plan.count = count;
    plan.opts = opts;
    plan.alloc = plan.texts.alloc = out->alloc;
    plan.err = err;
    st = hfsbi_run_plan(&plan, out, result);
    hfsb_buf_free(&plan.texts);
    hfsbi_array_free(&plan.alloc, plan.places, plan.place_cap,
                     sizeof *plan.places);
    if (st == HFSB_NOMEM || st == HFSB_LIMIT)
        return hfsbi_fail_status(err, st, "The edit was not made");
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}
