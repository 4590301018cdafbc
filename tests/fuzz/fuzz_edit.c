/* fuzz_edit.c - libFuzzer target for match and edit.

   The input: a byte of options, a byte for `line`, then content, old_str and
   new_str, and perhaps a second old_str and new_str, with 0x1F between them.
   Oracle: bytes outside the spans stay, the diff gives the result, each span
   holds what was asked for but for blanks and look-alikes, an exact match is
   replaced as a simple search does it, a file with CRLF is edited as one with
   LF; a refusal leaves no output, and its message is UTF-8. */
#include "../support/t_edit.h"
#include "must.h"

/* The next field, in a block of its own. */
static hfsb_str next_field(hfsb_str *rest) {
    size_t   end = hfsb_str_find_byte(*rest, '\x1F');
    hfsb_str field = hfsb_str_slice(*rest, 0, end);
    *rest = hfsb_str_slice(*rest, field.len + 1, rest->len);
    return t_exact(field.ptr, field.len);
}

static void set_options(hfsb_edit *edit, unsigned bits, unsigned line) {
    edit->mode = (bits & 3u) == 1   ? HFSB_EDIT_APPEND_AFTER
                 : (bits & 3u) == 2 ? HFSB_EDIT_PREPEND_BEFORE
                                    : HFSB_EDIT_REPLACE;
    edit->replace_all = (bits & 4u) != 0;
    edit->exact = (bits & 8u) != 0;
    edit->line = bits & 16u ? line : 0;
}

static te_run run_edits(hfsb_str content, const hfsb_edit *edits,
                        size_t count) {
    te_run   run = HFSB_INIT;
    hfsb_str now;
    te_append(&run.out, HFSB_LIT("before"));
    run.st = hfsb_edit_apply(content, edits, count, NULL, &run.out, &run.r,
                             &run.err);
    now = hfsb_str_slice(hfsb_buf_str(&run.out), 6, run.out.len);
    if (run.st == HFSB_OK) {
        MUST(te_spans_fit(content, now, run.r.spans, run.r.count));
        MUST(run.r.count > 0 && !hfsb_str_equal(content, now));
        MUST(run.r.diff_cut ||
             te_diff_fits(content, now, hfsb_buf_str(&run.r.diff)));
        MUST(count > 1 || te_means_edit(content, now, &run.r, edits));
    } else {
        MUST(te_refusal_holds(run.st, &run.err));
        MUST(!now.len && !run.r.count && !run.r.spans && !run.r.diff.ptr);
    }
    memmove(run.out.ptr, run.out.ptr + 6, now.len);
    hfsb_buf_truncate(&run.out, now.len);
    return run;
}

/* The same file with other line ends: the same edit. */
static void check_newlines(hfsb_str content, const hfsb_edit *edit,
                           const te_run *lf, const char *newline) {
    hfsb_buf text = HFSB_INIT, want = HFSB_INIT;
    te_run   run;
    if (hfsb_str_find_byte(content, '\r') != HFSB_NPOS ||
        hfsb_str_find_byte(content, '\n') == HFSB_NPOS ||
        hfsb_str_find_byte(edit->old_str, '\r') != HFSB_NPOS ||
        hfsb_str_find_byte(edit->new_str, '\r') != HFSB_NPOS)
        return;
    te_with_newlines(content, hfsb_cstr(newline), &text);
    te_with_newlines(hfsb_buf_str(&lf->out), hfsb_cstr(newline), &want);
    run = run_edits(hfsb_buf_str(&text), edit, 1);
    MUST(run.st == lf->st && !strcmp(run.r.note, lf->r.note) &&
         te_same(&run.out, hfsb_buf_str(&want)));
    te_free(&run);
    hfsb_buf_free(&text);
    hfsb_buf_free(&want);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    const void *bytes = data;
    hfsb_str    rest, content;
    hfsb_edit   edits[2];
    te_run      run;
    size_t      count, i;
    if (size < 2) return 0;
    rest = hfsb_str_make((const char *)bytes + 2, size - 2);
    content = next_field(&rest);
    memset(edits, 0, sizeof edits);
    for (i = 0; i < 2; i++) {
        edits[i].old_str = next_field(&rest);
        edits[i].new_str = next_field(&rest);
        set_options(edits + i, i ? data[0] >> 4 : data[0], data[1]);
    }
    count = edits[1].old_str.len ? 2 : 1;
    run = run_edits(content, edits, count);
    if (count == 1) {
        MUST(te_agrees_with_naive(content, edits, &run));
        check_newlines(content, edits, &run, "\r\n");
        check_newlines(content, edits, &run, "\r");
    }
    te_free(&run);
    t_drop(content);
    for (i = 0; i < 2; i++) {
        t_drop(edits[i].old_str);
        t_drop(edits[i].new_str);
    }
    return 0;
}
