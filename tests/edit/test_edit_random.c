/* test_edit_random.c - invariants of every edit, on random files. */
#include "../support/t_edit.h"

static size_t rungs_seen[10]; /* by note; 8: refused, 9: exact */

static void note_rung(const te_run *run) {
    static const char *const notes[] = {"trailing whitespace)", "unicode",
                                        "runs of blanks",
                                        "trimming whitespace)",
                                        "line-number", "re-indented",
                                        "but for blank lines", "fences"};
    size_t i;
    if (run->st != HFSB_OK) rungs_seen[8]++;
    else if (!run->r.note[0]) rungs_seen[9]++;
    for (i = 0; i < TE_COUNT(notes); i++)
        if (te_holds_text(run->r.note, notes[i])) rungs_seen[i]++;
}

/* A file with other line ends is edited in the same way. */
static void check_newlines(hfsb_str content, const hfsb_edit *edit,
                           const te_run *lf, const char *newline) {
    hfsb_buf text = HFSB_INIT, want = HFSB_INIT;
    te_run   run;
    if (hfsb_str_find_byte(content, '\n') == HFSB_NPOS) return;
    te_with_newlines(content, hfsb_cstr(newline), &text);
    te_with_newlines(hfsb_buf_str(&lf->out), hfsb_cstr(newline), &want);
    run = te_edits(hfsb_buf_str(&text), edit, 1, NULL);
    T_CHECK(run.st == lf->st && !strcmp(run.r.note, lf->r.note) &&
            te_same(&run.out, hfsb_buf_str(&want)));
    te_free(&run);
    hfsb_buf_free(&text);
    hfsb_buf_free(&want);
}

/* A file is searched around words of old_str only, unless it has an invisible
   character: one in a line of its own changes nothing. */
static void check_windows(hfsb_str content, const hfsb_edit *edit,
                          const te_run *plain) {
    hfsb_str  line = HFSB_LIT("\xE2\x80\x8B#\n");
    hfsb_buf  text = HFSB_INIT, want = HFSB_INIT;
    hfsb_edit same = *edit;
    te_run    run;
    if (hfsb_str_find_byte(content, '\n') == HFSB_NPOS ||
        te_holds_text(plain->r.note, "line-number") ||
        hfsb_str_starts(edit->old_str, HFSB_LIT("\n")) ||
        hfsb_str_starts(edit->old_str, HFSB_LIT("```")) ||
        hfsb_str_find(edit->old_str, HFSB_LIT("\xE2\x80\x8B")) != HFSB_NPOS ||
        hfsb_utf8_validate(edit->old_str) < edit->old_str.len)
        return; /* it could match in that line, or gets a newline from it */
    te_append(&text, line);
    te_append(&text, content);
    if (plain->st == HFSB_OK) te_append(&want, line);
    te_append(&want, hfsb_buf_str(&plain->out));
    if (same.line) same.line++;
    run = te_edits(hfsb_buf_str(&text), &same, 1, NULL);
    T_CHECK(run.st == plain->st && !strcmp(run.r.note, plain->r.note) &&
            te_same(&run.out, hfsb_buf_str(&want)));
    te_free(&run);
    hfsb_buf_free(&text);
    hfsb_buf_free(&want);
}

/* Puts a code fence around a text. */
static void put_fence(hfsb_buf *text) {
    hfsb_buf copy = HFSB_INIT;
    te_append(&copy, hfsb_buf_str(text));
    hfsb_buf_truncate(text, 0);
    te_append(text, HFSB_LIT("```c\n"));
    te_append(text, hfsb_buf_str(&copy));
    if (!hfsb_str_ends(hfsb_buf_str(&copy), HFSB_LIT("\n")))
        te_append(text, HFSB_LIT("\n"));
    te_append(text, HFSB_LIT("```"));
    hfsb_buf_free(&copy);
}

static void make_random_edit(unsigned long long *seed, hfsb_str content,
                             hfsb_buf *old_str, hfsb_buf *new_str,
                             hfsb_edit *edit) {
    size_t   lines = te_lines_before(content, content.len) + 1;
    size_t   from = te_below(seed, lines), count = 1 + te_below(seed, 5);
    hfsb_str some = te_some_lines(content, from, count,
                                  te_below(seed, 3) != 0);
    hfsb_buf copy = HFSB_INIT;
    if (te_below(seed, 4) == 0) { /* in mid-line */
        size_t start = te_below(seed, some.len);
        some = hfsb_str_slice(some, start,
                              start + 1 + te_below(seed, some.len - start));
    }
    if (te_below(seed, 12) == 0) te_append(old_str, HFSB_LIT("\n"));
    te_misremember(seed, some, old_str);
    te_append(&copy, hfsb_buf_str(old_str));
    if (te_below(seed, 10) == 0) te_random_lines(seed, 2, new_str);
    else te_change(seed, hfsb_buf_str(&copy), new_str);
    hfsb_buf_free(&copy);
    if (te_below(seed, 12) == 0) {
        put_fence(old_str);
        put_fence(new_str);
    }
    edit->old_str = hfsb_buf_str(old_str);
    edit->new_str = hfsb_buf_str(new_str);
    edit->mode = (hfsb_edit_mode)(te_below(seed, 5) ? 0 : te_below(seed, 3));
    edit->replace_all = te_below(seed, 4) == 0;
    edit->line = te_below(seed, 4) ? 0 : 1 + te_below(seed, lines);
    edit->exact = te_below(seed, 16) == 0;
}

static void show_str(const char *name, hfsb_str s) {
    hfsb_buf         text = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_json_writer_init(&w, &text, NULL);
    hfsb_json_put_str(&w, s);
    if (hfsb_json_writer_finish(&w, NULL) == HFSB_OK)
        printf("  %s %s\n", name, text.ptr);
    hfsb_buf_free(&text);
}

static void show_case(hfsb_str content, const hfsb_edit *edit,
                      const te_run *run) {
    show_str("content", content);
    show_str("old_str", edit->old_str);
    show_str("new_str", edit->new_str);
    show_str("result ", hfsb_buf_str(&run->out));
    printf("  mode %d%s line %zu: %s %s\n", (int)edit->mode,
           edit->replace_all ? ", all," : "", edit->line,
           hfsb_status_text(run->st), run->r.note);
}

static size_t random_rounds(void) {
    return t_quick() ? 2000 : 30000;
}

static void random_edits_change_only_their_spans(void) {
    unsigned long long seed = 20240607;
    size_t             round, failed = t_failed;
    for (round = random_rounds(); round--;) {
        hfsb_buf  file = HFSB_INIT, old_str = HFSB_INIT, new_str = HFSB_INIT;
        hfsb_edit edit = HFSB_INIT;
        te_run    run, again;
        te_random_lines(&seed, 1 + te_below(&seed, 12), &file);
        make_random_edit(&seed, hfsb_buf_str(&file), &old_str, &new_str,
                         &edit);
        run = te_edits(hfsb_buf_str(&file), &edit, 1, NULL);
        T_CHECK(run.st != HFSB_OK ||
                te_means_edit(hfsb_buf_str(&file), hfsb_buf_str(&run.out),
                              &run.r, &edit));
        T_CHECK(te_agrees_with_naive(hfsb_buf_str(&file), &edit, &run));
        check_newlines(hfsb_buf_str(&file), &edit, &run, "\r\n");
        check_newlines(hfsb_buf_str(&file), &edit, &run, "\r");
        check_windows(hfsb_buf_str(&file), &edit, &run);
        again = te_edits(hfsb_buf_str(&file), &edit, 1, NULL);
        T_CHECK(again.st == run.st && !strcmp(again.err.msg, run.err.msg) &&
                te_same(&again.out, hfsb_buf_str(&run.out)) &&
                te_same(&again.r.diff, hfsb_buf_str(&run.r.diff)));
        if (t_failed > failed) show_case(hfsb_buf_str(&file), &edit, &run);
        failed = t_failed;
        note_rung(&run);
        te_free(&run);
        te_free(&again);
        hfsb_buf_free(&file);
        hfsb_buf_free(&old_str);
        hfsb_buf_free(&new_str);
    }
    /* the inputs are worth something only when they reach everything */
    for (round = 0; round < TE_COUNT(rungs_seen); round++)
        T_CHECK(rungs_seen[round] > random_rounds() / 400);
}

static void random_edits_at_once_change_only_their_spans(void) {
    unsigned long long seed = 77;
    size_t             round, made = 0;
    for (round = random_rounds() / 3; round--;) {
        hfsb_buf  file = HFSB_INIT, texts[8];
        hfsb_edit edits[4];
        size_t    count = 2 + te_below(&seed, 3), i;
        te_run    run;
        memset(texts, 0, sizeof texts);
        memset(edits, 0, sizeof edits);
        te_random_lines(&seed, 8 + te_below(&seed, 30), &file);
        for (i = 0; i < count; i++)
            make_random_edit(&seed, hfsb_buf_str(&file), texts + 2 * i,
                             texts + 2 * i + 1, edits + i);
        run = te_edits(hfsb_buf_str(&file), edits, count, NULL);
        made += run.st == HFSB_OK;
        te_free(&run);
        hfsb_buf_free(&file);
        for (i = 0; i < TE_COUNT(texts); i++) hfsb_buf_free(texts + i);
    }
    T_CHECK(made > random_rounds() / 40);
}

int main(void) {
    T_RUN(random_edits_change_only_their_spans);
    T_RUN(random_edits_at_once_change_only_their_spans);
    return T_END();
}
