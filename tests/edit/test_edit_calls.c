/* test_edit_calls.c - modes, the `line` hint, several edits at once, the call
   and its report. The rungs are in test_edit.c. */
#include "../support/t_edit.h"

#define APOS     "\xE2\x80\x99"
#define ZWJ      "\xE2\x80\x8D"

static const char trailing[] = "(matched after trimming trailing whitespace)";
static const char unicode[] = "(matched after unicode normalization)";
static const char runs[] = "(matched after collapsing runs of blanks)";
static const char trimmed[] = "(matched after trimming whitespace)";
static const char trimmed_put[] =
    "(matched after trimming whitespace) "
    "(new_str re-indented as the file is)";
static const char but_blank[] = "(matched but for blank lines)";

static void check_result(const te_run *run, size_t i, const char *note,
                         const char *result) {
    bool ok = run->st == HFSB_OK &&
              te_same(&run->out, hfsb_cstr(result)) &&
              !strcmp(run->r.note, note ? note : "");
    T_CHECK(ok);
    if (!ok)
        printf("  case %zu: %s\n  note %s\n  is   \"%s\"\n  want \"%s\"\n", i,
               run->err.msg, run->r.note, run->out.ptr ? run->out.ptr : "",
               result);
}

/* ---- modes ---- */

typedef struct mode_case {
    const char    *content, *old_str, *new_str;
    hfsb_edit_mode mode;
    bool           all;
    size_t         count;
    const char    *note, *result;
} mode_case;

static void edit_inserts_before_and_after(void) {
    const hfsb_edit_mode after = HFSB_EDIT_APPEND_AFTER;
    const hfsb_edit_mode before = HFSB_EDIT_PREPEND_BEFORE;
    const mode_case list[] = {
        {"a\nc\n", "a\n", "b\n", after, false, 1, NULL, "a\nb\nc\n"},
        {"a\nc\n", "c", "b\n", before, false, 1, NULL, "a\nb\nc\n"},
        {"a-c\n", "a", "b", after, false, 1, NULL, "ab-c\n"},
        {"a\r\nc\r\n", "a\n", "b\n", after, false, 1, NULL,
         "a\r\nb\r\nc\r\n"},
        {"a\r\nc\r\n", "c", "b\n", before, false, 1, NULL,
         "a\r\nb\r\nc\r\n"},
        {"a\rc\r", "c", "b\n", before, false, 1, NULL, "a\rb\rc\r"},
        {"a b a\n", "a", "x", after, true, 2, NULL, "ax b ax\n"},
        {"a b a\n", "a", "x", before, true, 2, NULL, "xa b xa\n"},
        {"aaaa\n", "aa", "-", before, true, 2, NULL, "-aa-aa\n"},
        {"a  \nc\n", "a\n", "b\n", after, false, 1, trailing,
         "a  \nb\nc\n"},
        {"a  \nc\n", "a\nc", "b\n", before, false, 1, trailing,
         "b\na  \nc\n"},
        {"it" APOS "s it\n", "it's", " not", after, false, 1, unicode,
         "it" APOS "s not it\n"},
        {"x  = 1;\n", "x = 1;", " // one", after, false, 1, runs,
         "x  = 1; // one\n"},
        {"\ta\n\tc\n", "  a\n", "  b\n", after, false, 1, trimmed_put,
         "\ta\n\tb\n\tc\n"},
        {"\ta\n\tc\n", "  c\n", "  b\n", before, false, 1, trimmed_put,
         "\ta\n\tb\n\tc\n"},
        {"\ta\n\tc\n", "    a\n", "    b\n        d\n", after, false, 1,
         trimmed_put, "\ta\n\tb\n\t\td\n\tc\n"},
        /* the rest of a line is put in as it is */
        {"\ta\n\tc\n", "    a", "    b\n    d", after, false, 1,
         trimmed_put, "\ta    b\n\td\n\tc\n"},
        {"\ta\n\tc\n", "    c\n", "    b\n    d", before, false, 1,
         trimmed_put, "\ta\n\tb\n    d\tc\n"},
        {"\ta\n\tc\n", "    a\n", "    b", after, false, 1, trimmed_put,
         "\ta\n\tb\tc\n"},
        {"a\nlast", "last\n", "more\n", after, false, 1, NULL,
         "a\nlast\nmore"},
        {"last", "last\n", "more\n", before, false, 1, NULL, "more\nlast"},
        {"\ta", "    a\n", "    b\n", before, false, 1, trimmed_put,
         "\tb\n\ta"},
        {"foo\nx\n", "\nfoo\n", "bar\n", after, false, 1, trimmed,
         "foo\nbar\nx\n"},
        {"foo\nx\n", "foo\n\n", "bar\n", before, false, 1, trimmed,
         "bar\nfoo\nx\n"},
        {"pass\nfoo\n", "\npass", "\nbar", after, false, 1, trimmed,
         "pass\nbar\nfoo\n"},
        {"a\nb\n", "b\n\n", "c\n", after, false, 1, NULL, "a\nb\nc\n"},
        {"a\nb\n", "b\n\n", "c\n", before, false, 1, NULL, "a\nc\nb\n"},
        {"a\n\nb\nc\n", "a\nb\n", "x\n", after, false, 1, but_blank,
         "a\n\nb\nx\nc\n"},
        {"a\n\nb\nc\n", "a\nb\n", "\nx\n\n", before, false, 1, but_blank,
         "\nx\n\na\n\nb\nc\n"},
        {"\ta\n\n\tb\n", "a\nb\n", "x\n", after, false, 1,
         "(matched but for blank lines) (new_str re-indented as the file is)",
         "\ta\n\n\tb\n\tx\n"},
        {"a\n", "a", "a", after, false, 1, NULL, "aa\n"},
        {"", "", "x\n", after, false, 1, NULL, "x\n"},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsb_edit edit = te_make(list[i].old_str, list[i].new_str);
        te_run    run;
        edit.mode = list[i].mode;
        edit.replace_all = list[i].all;
        run = te_edits(hfsb_cstr(list[i].content), &edit, 1, NULL);
        check_result(&run, i, list[i].note, list[i].result);
        T_CHECK(run.r.count == list[i].count);
        te_free(&run);
    }
}

static void edit_strips_nothing_when_it_inserts_or_is_exact(void) {
    static const char *const olds[] = {"1\tf:\n", "```\nf:\n```"};
    static const char *const news[] = {"g:\n", "```\ng:\n```"};
    size_t i;
    for (i = 0; i < 4; i++) {
        hfsb_edit edit = te_make(olds[i % 2], news[i % 2]);
        te_run    run;
        if (i < 2) edit.mode = HFSB_EDIT_APPEND_AFTER;
        else edit.exact = true;
        run = te_edits(HFSB_LIT("f:\n"), &edit, 1, NULL);
        T_CHECK(run.st == HFSB_NOT_FOUND);
        te_free(&run);
    }
}

static void edit_replaces_all_of_the_first_rung(void) {
    static const struct {
        const char *content, *old_str, *new_str;
        size_t      count;
        const char *note, *result;
    } list[] = {
        {"a b a b a\n", "a", "c", 3, NULL, "c b c b c\n"},
        {"aaaaa", "aa", "b", 2, NULL, "bba"},
        {"x\n", "x", "y", 1, NULL, "y\n"},
        /* the exact ones only, though looser ones are there */
        {"a b\na  b\na b\n", "a b", "c", 2, NULL, "c\na  b\nc\n"},
        {"a \nb\na\t\nb\n", "a\nb\n", "a\nc\n", 2, trailing,
         "a \nc\na\t\nc\n"},
        {"\ta\n  a\na \n", "    a\n", "    b\n", 3, trimmed_put,
         "\tb\n  b\nb\n"},
        {"a a\nb\na\r\n", "a", "x\ny", 3, NULL,
         "x\ny x\ny\nb\nx\r\ny\r\n"},
        {"  b\n  c\n d\n    b\n  c\n d\n", "  b\n  c\n  d\n",
         "  b\n  c\n  D\n", 2, trimmed_put,
         "  b\n  c\n D\n    b\n  c\n D\n"},
        {"\ta\nx\n\ta", "  a\n", "  b\n", 2, trimmed_put,
         "\tb\nx\n\tb"},
        {"a\r\nb\r\na\r\n", "a\n", "c\nd\n", 2, NULL,
         "c\r\nd\r\nb\r\nc\r\nd\r\n"},
        {"  a\n  b\n  a\n", "\ta\n", "", 2, trimmed, "  b\n"},
        {"a\nx\na", "a\n", "b\n", 1, NULL, "b\nx\na"},
        {"a\n\nb\nc\nx\na\n\n\nb\nc\n", "a\nb\nc\n", "a\nb\nd\n", 2,
         but_blank, "a\n\nb\nd\nx\na\n\n\nb\nd\n"},
        {"a\n\nb\nx\na\n\n\nb", "a\nb\n", "a\nc\n", 2, but_blank,
         "a\n\nc\nx\na\n\n\nc"},
        /* a place that a joiner hides is no match */
        {"  a" ZWJ "b\n\tab\n", "  ab\n", "  c\n", 1, trimmed_put,
         "  a" ZWJ "b\n\tc\n"},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsb_edit edit = te_make(list[i].old_str, list[i].new_str);
        te_run    run;
        edit.replace_all = true;
        run = te_edits(hfsb_cstr(list[i].content), &edit, 1, NULL);
        check_result(&run, i, list[i].note, list[i].result);
        T_CHECK(run.r.count == list[i].count);
        te_free(&run);
    }
}

static void edit_picks_the_match_at_the_line(void) {
    /* "x" starts on lines 1, 5, 9, 10 and twice on 20 */
    static const char content[] = "x\n2\n3\n4\nx\n6\n7\n8\nx\nx\n11\n12\n13\n"
                                  "14\n15\n16\n17\n18\n19\nx x\n21\n22\n23\n"
                                  "24\n25\n26\nx\n";
    static const struct {
        size_t line, changed; /* 0: ambiguous */
    } list[] = {{1, 1},  {5, 5},  {9, 9},  {10, 10}, {2, 0},  {3, 0},
                {6, 0},  {8, 0},  {12, 0}, {13, 10}, {14, 0}, {20, 0},
                {17, 0}, {23, 0}, {24, 27}, {27, 27}, {30, 27}, {31, 0},
                {(size_t)-1, 0}};
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsb_edit edit = te_make("x", "y");
        te_run    run;
        edit.line = list[i].line;
        run = te_edits(hfsb_cstr(content), &edit, 1, NULL);
        if (list[i].changed)
            T_CHECK(run.st == HFSB_OK && run.r.count == 1 &&
                    run.r.spans[0].first_line == list[i].changed);
        else
            T_CHECK(run.st == HFSB_AMBIGUOUS);
        te_free(&run);
    }
}

static void edit_uses_the_line_for_exact_matches_only(void) {
    hfsb_edit edit = te_make("  a\n", "b\n");
    te_run    run;
    edit.line = 1;
    run = te_edits(HFSB_LIT("\ta\n\ta\n"), &edit, 1, NULL);
    T_CHECK(run.st == HFSB_AMBIGUOUS);
    te_free(&run);
    edit.old_str = HFSB_LIT("a\n");
    run = te_edits(HFSB_LIT("a\r\na\r\n"), &edit, 1, NULL);
    T_CHECK(run.st == HFSB_OK);
    T_STR(run.out, "b\r\na\r\n");
    te_free(&run);
    edit.line = 2;
    edit.mode = HFSB_EDIT_APPEND_AFTER;
    run = te_edits(HFSB_LIT("a\na\n"), &edit, 1, NULL);
    T_STR(run.out, "a\na\nb\n");
    te_free(&run);
    edit.line = 7; /* a single match needs no hint, not even a wrong one */
    run = te_edits(HFSB_LIT("a\n"), &edit, 1, NULL);
    T_STR(run.out, "a\nb\n");
    te_free(&run);
    edit.line = 3; /* one that overlaps another elsewhere does not matter */
    edit.old_str = HFSB_LIT("aa");
    run = te_edits(HFSB_LIT("aaa\nfoo\naa\n"), &edit, 1, NULL);
    T_STR(run.out, "aaa\nfoo\naab\n\n");
    te_free(&run);
    /* two that overlap start there */
    edit.old_str = HFSB_LIT("aa");
    run = te_edits(HFSB_LIT("aa\nfoo\naaa\n"), &edit, 1, NULL);
    T_CHECK(run.st == HFSB_AMBIGUOUS);
    te_free(&run);
    edit.old_str = HFSB_LIT("a\n");
    edit.line = 2; /* all places are all places */
    edit.replace_all = true;
    run = te_edits(HFSB_LIT("a\na\n"), &edit, 1, NULL);
    T_STR(run.out, "a\nb\na\nb\n");
    te_free(&run);
}

static void exact_edit_stops_after_rung_2(void) {
    static const struct {
        const char *content, *old_str, *result;
    } list[] = {
        {"a\r\nb\r\n", "a\nb\n", "X\r\n"}, {"a\nb", "a\nb\n", "X"},
        {"a \nb\n", "a\nb\n", NULL},       {"it" APOS "s\n", "it's", NULL},
        {"a  b\n", "a b", NULL},           {"\ta\n", "  a\n", NULL},
        {"1\n", "1\t1\n", NULL},           {"a\n", "\n\na\n", NULL},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsb_edit edit = te_make(list[i].old_str, "X\n");
        te_run    run;
        edit.exact = true;
        run = te_edits(hfsb_cstr(list[i].content), &edit, 1, NULL);
        if (list[i].result) check_result(&run, i, NULL, list[i].result);
        else T_CHECK(run.st == HFSB_NOT_FOUND);
        te_free(&run);
    }
}

/* ---- many edits at once ---- */

static void edits_are_found_in_the_original_file(void) {
    hfsb_edit list[4];
    te_run    run;
    list[0] = te_make("three", "one");
    list[1] = te_make("one", "two");
    list[2] = te_make("two", "three");
    list[3] = te_make("four\n", "");
    run = te_edits(HFSB_LIT("one\ntwo\nthree\nfour\n"), list, 4, "f");
    T_CHECK(run.st == HFSB_OK && run.r.count == 4);
    T_STR(run.out, "two\nthree\none\n");
    T_CHECK(run.r.spans[0].old_start == 0 && run.r.spans[3].old_len == 5);
    te_free(&run);
    /* touching is not overlapping */
    list[0] = te_make("b", "2");
    list[1] = te_make("a", "1");
    list[2] = te_make("c", "3");
    run = te_edits(HFSB_LIT("abc"), list, 3, NULL);
    T_STR(run.out, "123");
    te_free(&run);
    /* insertions at one place keep their order, before the text there */
    list[0] = te_make("a", "1");
    list[1] = te_make("a", "2");
    list[2] = te_make("b", "3");
    list[3] = te_make("b", "B");
    list[0].mode = list[1].mode = HFSB_EDIT_APPEND_AFTER;
    list[2].mode = HFSB_EDIT_PREPEND_BEFORE;
    run = te_edits(HFSB_LIT("ab"), list, 4, NULL);
    T_STR(run.out, "a123B");
    te_free(&run);
}

static void insertions_stay_next_to_their_text(void) {
    hfsb_edit list[2];
    te_run    run;
    list[0] = te_make("X\n", "P\n");
    list[0].mode = HFSB_EDIT_PREPEND_BEFORE;
    list[1] = te_make("W\n", "Q\n");
    list[1].mode = HFSB_EDIT_APPEND_AFTER;
    run = te_edits(HFSB_LIT("W\nX\n"), list, 2, NULL);
    T_STR(run.out, "W\nQ\nP\nX\n");
    te_free(&run);
}

static void edits_join_their_notes(void) {
    hfsb_edit list[6];
    te_run    run;
    list[0] = te_make("a\nb\n", "a\nB\n");
    list[1] = te_make("it's", "it's not");
    list[2] = te_make("k = v", "k = w");
    list[3] = te_make("    x\n    y\n", "    x\n    z\n");
    list[4] = te_make("9\tnine\n", "nein\n");
    list[5] = te_make("plain", "PLAIN");
    run = te_edits(HFSB_LIT("a \nb\nit" APOS "s\nk   = v\n\tx\n\ty\nnine\n"
                            "plain\n"),
                   list, 6, NULL);
    T_CHECK(run.st == HFSB_OK && run.r.count == 6);
    T_CHECK(!strcmp(run.r.note,
                    "(matched after trimming trailing whitespace) "
                    "(matched after unicode normalization) "
                    "(matched after collapsing runs of blanks) "
                    "(matched after trimming whitespace) "
                    "(line-number prefixes removed) "
                    "(new_str re-indented as the file is)"));
    T_STR(run.out, "a \nB\nit" APOS "s not\nk   = w\n\tx\n\tz\nnein\n"
                   "PLAIN\n");
    te_free(&run);
}

static void edits_are_all_made_or_none(void) {
    hfsb_edit list[3];
    te_run    run;
    list[0] = te_make("one", "1");
    list[1] = te_make("nowhere", "2");
    list[2] = te_make("e", "3");
    run = te_edits(HFSB_LIT("one\nthree\n"), list, 2, NULL);
    T_CHECK(run.st == HFSB_NOT_FOUND);
    T_CHECK(te_begins(run.err.msg,
                      "Edit 2 of 2: old_str not found in file."));
    te_free(&run);
    list[1] = list[2];
    run = te_edits(HFSB_LIT("one\nthree\n"), list, 2, NULL);
    T_CHECK(run.st == HFSB_AMBIGUOUS);
    T_CHECK(te_begins(run.err.msg, "Edit 2 of 2: old_str appears 3 times."));
    te_free(&run);
    list[1] = te_make("same", "same");
    run = te_edits(HFSB_LIT("one\n"), list, 2, NULL);
    T_CHECK(te_begins(run.err.msg,
                      "Edit 2 of 2: old_str and new_str must differ."));
    te_free(&run);
    run = te_edits(HFSB_LIT("one\n"), list, 0, NULL);
    T_CHECK(run.st == HFSB_ARG &&
            te_begins(run.err.msg, "There are no edits."));
    te_free(&run);
}

static void edits_must_not_overlap(void) {
    static const struct {
        const char *old_a, *old_b;
        int         mode_b;
        const char *start; /* NULL: fine */
    } list[] = {
        {"two\nthree", "three\nfour", 0,
         "Edits 1 and 2 overlap at line 3: both change the same lines."},
        {"three\nfour", "two\nthree", 0,
         "Edits 1 and 2 overlap at line 3: both"},
        {"two\nthree", "two\nthree", 0, "Edits 1 and 2 overlap at line 2"},
        {"two\nthree", "two\n", 1, "Edits 1 and 2 overlap at line 3"},
        {"two\nthree", "three", 2, "Edits 1 and 2 overlap at line 3"},
        {"two\nthree", "two", 2, NULL},
        {"two\nthree", "three", 1, NULL},
        {"two\n", "three\n", 0, NULL},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsb_edit edits[2];
        te_run    run;
        edits[0] = te_make(list[i].old_a, "A");
        edits[1] = te_make(list[i].old_b, "B");
        edits[1].mode = (hfsb_edit_mode)list[i].mode_b;
        run = te_edits(HFSB_LIT("one\ntwo\nthree\nfour\n"), edits, 2, NULL);
        if (list[i].start)
            T_CHECK(run.st == HFSB_REFUSED &&
                    te_begins(run.err.msg, list[i].start));
        else
            T_CHECK(run.st == HFSB_OK && run.r.count == 2);
        te_free(&run);
    }
}

static void edits_may_share_unchanged_lines(void) {
    static const struct {
        const char *old_a, *new_a, *old_b, *new_b;
        const char *result; /* NULL: they overlap */
    } list[] = {
        {"a\nb\nc", "a\nB\nc", "c\nd\ne", "c\nD\ne", "a\nB\nc\nD\ne\n"},
        {"c\nd\ne", "c\nD\ne", "a\nb\nc", "a\nB\nc", "a\nB\nc\nD\ne\n"},
        {"a\nb\nc\n", "a\nB\nc\n", "b\nc\nd\n", "b\nC\nd\n",
         "a\nB\nC\nd\ne\n"},
        {"a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", "c\n", "C\n", NULL},
        {"a\nb\nc\nd\n", "A\nb\nc\nd\n", "c\n", "C\n",
         "A\nb\nC\nd\ne\n"},
        /* an insertion beside a change, a deletion beside a change */
        {"b\nc\n", "b\nx\nc\n", "c\nd\n", "C\nd\n", "a\nb\nx\nC\nd\ne\n"},
        {"b\nc\n", "b\n", "a\nb\n", "A\nb\n", "A\nb\nd\ne\n"},
        {"b\nc", "b\nc\nx", "c\nd", "y\nc\nd", "a\nb\ny\nc\nx\nd\ne\n"},
        {"a\nb\nc\n", "a\nx\nc\n", "b\n", "b\ny\n", "a\nx\ny\nc\nd\ne\n"},
        /* the same line, the same point, one inside the other */
        {"a\nb\nc\n", "a\nB\nc\n", "b\nc\nd\n", "x\nc\nd\n", NULL},
        {"a\nb\n", "a\nx\nb\n", "a\nb\nc\n", "a\ny\nb\nc\n", NULL},
        {"a\nb\n", "a\nx\nb\n", "a\nb\n", "a\nx\nb\n", NULL},
        {"a\nb\nc\nd\n", "a\nB\nx\nd\n", "b\nc\n", "b\nc2\n", NULL},
        /* whole lines only: parts of a line that is changed are not shared */
        {"a\nb", "a\nb1", "b\nc", "b2\nc", NULL},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsb_edit edits[2];
        te_run    run;
        bool      ok;
        edits[0] = te_make(list[i].old_a, list[i].new_a);
        edits[1] = te_make(list[i].old_b, list[i].new_b);
        run = te_edits(HFSB_LIT("a\nb\nc\nd\ne\n"), edits, 2, NULL);
        if (list[i].result)
            ok = run.st == HFSB_OK && run.r.count == 2 &&
                 te_same(&run.out, hfsb_cstr(list[i].result));
        else
            ok = run.st == HFSB_REFUSED &&
                 te_begins(run.err.msg, "Edits 1 and 2 overlap at line ");
        T_CHECK(ok);
        if (!ok)
            printf("  case %zu: %s\n%s\n", i, run.err.msg,
                   run.out.ptr ? run.out.ptr : "");
        te_free(&run);
    }
}

static void edits_share_lines_only_where_they_overlap(void) {
    hfsb_edit edits[4];
    te_run    run;
    /* 1 and 2 share lines; 3 and 4 touch, as they may, and insert there */
    edits[0] = te_make("a\nb\n", "A\nb\n");
    edits[1] = te_make("b\nc\n", "b\nC\n");
    edits[2] = te_make("d\n", "d\nx\n");
    edits[3] = te_make("e\n", "y\ne\n");
    run = te_edits(HFSB_LIT("a\nb\nc\nd\ne\n"), edits, 4, NULL);
    T_CHECK(te_same(&run.out, HFSB_LIT("A\nb\nC\nd\nx\ny\ne\n")));
    te_free(&run);
    /* a place that spans the others */
    edits[0] = te_make("a\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n");
    edits[2] = te_make("c\nd\n", "c\nD\n");
    edits[1] = te_make("a\nb\n", "a\nB\n");
    run = te_edits(HFSB_LIT("a\nb\nc\nd\ne\n"), edits, 3, NULL);
    T_CHECK(te_same(&run.out, HFSB_LIT("a\nB\nc\nD\nE\n")));
    te_free(&run);
}

static void edits_report_text_that_an_earlier_edit_creates(void) {
    hfsb_edit list[2];
    te_run    run;
    list[0] = te_make("one", "uno dos");
    list[1] = te_make("dos", "tres");
    run = te_edits(HFSB_LIT("one\n"), list, 2, NULL);
    T_CHECK(run.st == HFSB_NOT_FOUND);
    T_CHECK(te_holds_text(run.err.msg, "It is in new_str of edit 1"));
    te_free(&run);
}

static void edits_that_cancel_out_are_refused(void) {
    hfsb_edit list[2];
    te_run    run;
    list[0] = te_make("a\t\n", "a  \n");
    list[1] = te_make("b\t\n", "b  \n");
    run = te_edits(HFSB_LIT("a  \nb  \n"), list, 2, NULL);
    T_CHECK(run.st == HFSB_REFUSED &&
            te_begins(run.err.msg, "The edit changes nothing"));
    te_free(&run);
    list[0] = te_make("a", ""); /* each does something, both nothing */
    list[1] = te_make("b", "a");
    list[1].mode = HFSB_EDIT_PREPEND_BEFORE;
    run = te_edits(HFSB_LIT("ab"), list, 2, NULL);
    T_CHECK(run.st == HFSB_REFUSED &&
            te_begins(run.err.msg, "The edit changes nothing"));
    te_free(&run);
    list[0] = te_make("a\t\n", "a  \n");
    list[1] = te_make("b\t\n", "c\n"); /* one that does something is enough */
    run = te_edits(HFSB_LIT("a  \nb  \n"), list, 2, NULL);
    T_CHECK(run.st == HFSB_OK && run.r.count == 2);
    te_free(&run);
}

/* ---- the call ---- */

static void edit_appends_to_the_output_buffer(void) {
    hfsb_edit        edit = te_make("a", "b");
    hfsb_buf         out = HFSB_INIT;
    hfsb_edit_result r;
    hfsb_err         err;
    te_append(&out, HFSB_LIT("before "));
    T_CHECK(hfsb_edit_apply(HFSB_LIT("a\n"), &edit, 1, NULL, &out, NULL,
                            NULL) == HFSB_OK);
    T_STR(out, "before b\n");
    T_CHECK(hfsb_edit_apply(HFSB_LIT("x\n"), &edit, 1, NULL, &out, &r,
                            &err) == HFSB_NOT_FOUND);
    T_STR(out, "before b\n");
    T_CHECK(hfsb_edit_apply(HFSB_LIT("a\n"), &edit, 1, NULL, &out, &r,
                            &err) == HFSB_OK);
    T_STR(out, "before b\nb\n");
    T_CHECK(r.spans[0].new_start == 0 && r.spans[0].first_line == 1);
    T_CHECK(te_diff_fits(HFSB_LIT("a\n"), HFSB_LIT("b\n"),
                         hfsb_buf_str(&r.diff)));
    hfsb_edit_result_free(&r);
    T_CHECK(!r.count && !r.spans && !r.diff.ptr && !r.note[0]);
    hfsb_edit_result_free(&r); /* twice does no harm */
    hfsb_buf_free(&out);
}

static void edit_keeps_the_ceiling_of_the_buffer(void) {
    hfsb_edit        edit = te_make("a", "bbbbbbbbbb");
    hfsb_buf         out = HFSB_INIT;
    hfsb_edit_result r;
    hfsb_err         err;
    out.max = 10;
    T_CHECK(hfsb_edit_apply(HFSB_LIT("a\n"), &edit, 1, NULL, &out, &r,
                            &err) == HFSB_LIMIT);
    T_CHECK(err.code == HFSB_LIMIT && !out.len && !r.spans);
    T_CHECK(te_begins(err.msg, "The edit was not made"));
    out.max = 11;
    T_CHECK(hfsb_edit_apply(HFSB_LIT("a\n"), &edit, 1, NULL, &out, &r,
                            &err) == HFSB_OK);
    T_CHECK(out.len == 11);
    hfsb_edit_result_free(&r);
    hfsb_buf_free(&out);
}

static void edit_names_the_path_in_the_diff(void) {
    hfsb_edit        edit = te_make("a", "b");
    hfsb_edit_opts   opts = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT;
    hfsb_edit_result r;
    opts.path = HFSB_LIT("/src/x.c");
    T_CHECK(hfsb_edit_apply(HFSB_LIT("a\n"), &edit, 1, &opts, &out, &r,
                            NULL) == HFSB_OK);
    T_STR(r.diff, "--- a//src/x.c\n+++ b//src/x.c\n@@ -1,1 +1,1 @@\n-a\n+b\n");
    hfsb_edit_result_free(&r);
    opts.no_diff = true;
    T_CHECK(hfsb_edit_apply(HFSB_LIT("a\n"), &edit, 1, &opts, &out, &r,
                            NULL) == HFSB_OK);
    T_CHECK(!r.diff.len && !r.diff_cut && r.count == 1);
    hfsb_edit_result_free(&r);
    opts.no_diff = false;
    opts.max_diff = 1;
    T_CHECK(hfsb_edit_apply(HFSB_LIT("a\n"), &edit, 1, &opts, &out, &r,
                            NULL) == HFSB_OK);
    T_CHECK(r.diff_cut && r.diff.len < 100);
    hfsb_edit_result_free(&r);
    hfsb_buf_free(&out);
}

static void edit_reports_the_lines_it_changed(void) {
    hfsb_edit list[3];
    te_run    run;
    list[0] = te_make("two\n", "2\n2\n2\n");
    list[1] = te_make("three\n", "");
    list[2] = te_make("five", "5\n5");
    run = te_edits(HFSB_LIT("one\ntwo\nthree\nfour\nfive\n"), list, 3, NULL);
    T_CHECK(run.st == HFSB_OK && run.r.count == 3);
    T_CHECK(run.r.spans[0].first_line == 2 && run.r.spans[0].last_line == 4);
    T_CHECK(run.r.spans[1].first_line == 5 && run.r.spans[1].last_line == 5);
    T_CHECK(run.r.spans[2].first_line == 6 && run.r.spans[2].last_line == 7);
    T_CHECK(run.r.spans[2].old_start == 19 && run.r.spans[2].old_len == 4 &&
            run.r.spans[2].new_start == 15 && run.r.spans[2].new_len == 3);
    te_free(&run);
}

static void edit_refuses_an_unknown_mode(void) {
    hfsb_edit edit = te_make("a", "b");
    te_run    run;
    edit.mode = (hfsb_edit_mode)3;
    run = te_edits(HFSB_LIT("a"), &edit, 1, NULL);
    T_CHECK(run.st == HFSB_ARG && te_begins(run.err.msg, "Unknown mode: 3"));
    te_free(&run);
}

static void edit_modes_are_set_by_name(void) {
    static const struct {
        const char    *name;
        hfsb_edit_mode mode;
        bool           all, ok;
    } list[] = {
        {"replace", HFSB_EDIT_REPLACE, false, true},
        {"replace_all", HFSB_EDIT_REPLACE, true, true},
        {"append_after", HFSB_EDIT_APPEND_AFTER, false, true},
        {"prepend_before", HFSB_EDIT_PREPEND_BEFORE, false, true},
        {"nonsense", HFSB_EDIT_APPEND_AFTER, false, false},
        {"", HFSB_EDIT_APPEND_AFTER, false, false},
        {"Replace", HFSB_EDIT_APPEND_AFTER, false, false},
        {"replace ", HFSB_EDIT_APPEND_AFTER, false, false},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsb_edit edit = te_make("a", "b");
        hfsb_err  err;
        hfsb_str  name = t_exact(list[i].name, strlen(list[i].name));
        edit.mode = HFSB_EDIT_APPEND_AFTER;
        T_CHECK(hfsb_edit_set_mode(&edit, name, &err) ==
                (list[i].ok ? HFSB_OK : HFSB_ARG));
        T_CHECK(edit.mode == list[i].mode &&
                edit.replace_all == list[i].all);
        T_CHECK(list[i].ok ? err.code == HFSB_OK
                           : te_refusal_holds(HFSB_ARG, &err) &&
                                 te_begins(err.msg, "Unknown mode: ") &&
                                 te_begins(err.msg + 14, list[i].name));
        T_CHECK(hfsb_edit_set_mode(&edit, name, NULL) == err.code);
        t_drop(name);
    }
}

static void edit_reads_the_arguments_of_a_tool(void) {
    static const struct {
        const char *json;
        const char *error; /* NULL: fine */
        int         mode;
        bool        all, exact;
        size_t      line;
    } list[] = {
        {"{\"old_str\":\"a\",\"new_str\":\"b\"}", NULL, 0, false, false, 7},
        {"{\"old_str\":\"a\",\"new_str\":\"b\",\"mode\":\"append_after\","
         "\"line\":3,\"exact\":true,\"replace_all\":true,\"other\":[]}",
         NULL, 1, true, true, 3},
        {"{\"old_str\":\"a\",\"new_str\":\"b\",\"line\":\"12\","
         "\"exact\":\"true\",\"replace_all\":\"false\"}",
         NULL, 0, false, true, 12},
        {"{\"old_str\":\"a\",\"new_str\":\"b\",\"mode\":\"replace_all\","
         "\"replace_all\":false,\"line\":4.0}",
         NULL, 0, true, false, 4},
        {"{\"old_str\":\"a\",\"new_str\":\"b\",\"mode\":null,\"line\":null,"
         "\"exact\":null,\"replace_all\":null}",
         NULL, 0, false, false, 7},
        {"{\"old_str\":\"a\",\"new_str\":\"b\",\"line\":0}", NULL, 0, false,
         false, 7},
        {"{\"old_str\":\"a\"}", "new_str", 0, false, false, 0},
        {"{\"new_str\":\"a\"}", "old_str", 0, false, false, 0},
        {"{\"old_str\":1,\"new_str\":\"b\"}", "old_str", 0, false, false, 0},
        {"{\"old_str\":\"a\",\"new_str\":\"b\",\"line\":-1}", "line", 0,
         false, false, 0},
        {"{\"old_str\":\"a\",\"new_str\":\"b\",\"line\":[]}", "line", 0,
         false, false, 0},
        {"{\"old_str\":\"a\",\"new_str\":\"b\",\"exact\":3}", "exact", 0,
         false, false, 0},
        {"{\"old_str\":\"a\",\"new_str\":\"b\",\"mode\":\"x\"}",
         "Unknown mode: x", 0, false, false, 0},
        {"{\"old_str\":\"a\",\"new_str\":\"b\",\"mode\":2}", "mode", 0,
         false, false, 0},
        {"[]", "old_str", 0, false, false, 0},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsb_json_doc doc = HFSB_INIT;
        hfsb_edit     edit = te_make("before", "before");
        hfsb_err      err;
        hfsb_status   st;
        edit.line = 7;
        T_CHECK(hfsb_json_parse(hfsb_cstr(list[i].json), NULL, &doc, NULL) ==
                HFSB_OK);
        st = hfsb_edit_from_json(doc.root, &edit, &err);
        if (list[i].error) {
            T_CHECK(st == HFSB_ARG && err.code == HFSB_ARG &&
                    te_holds_text(err.msg, list[i].error));
            T_CHECK(edit.line == 7 && !edit.exact && !edit.replace_all);
            T_STR(edit.old_str, "before");
        } else {
            T_CHECK(st == HFSB_OK && (int)edit.mode == list[i].mode &&
                    edit.replace_all == list[i].all &&
                    edit.exact == list[i].exact &&
                    edit.line == list[i].line);
            T_STR(edit.old_str, "a");
            T_STR(edit.new_str, "b");
        }
        T_CHECK(hfsb_edit_from_json(doc.root, &edit, NULL) == st);
        hfsb_json_free(&doc);
    }
}

/* ---- windows ---- */

/* Counts the requests of at least `large` bytes. */
typedef struct large_counter {
    size_t large, count;
} large_counter;

static void *count_large(void *user, void *ptr, size_t old_size,
                         size_t new_size) {
    large_counter *c = (large_counter *)user;
    (void)old_size;
    if (new_size >= c->large) c->count++;
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* A loose edit folds only the lines around a rare word of old_str: the result
   is the only thing as large as the file. */
static void edit_folds_a_small_part_of_a_large_file(void) {
    static const struct {
        const char *old_str, *new_str, *newline;
    } list[] = {
        {"common_value is 710 \ncommon_value is 711 \n", "x\n", "\n"},
        {"common_value is 710 \ncommon_value is 711 \n", "x\n", "\r\n"},
        {"common_value is 710 \ncommon_value is 711 \n", "x\n", "\r"},
        {"  common_value is 710\n\tcommon_value is 711", "", "\n"},
        /* without the blank line after 750 */
        {"common_value is 749\ncommon_value is 750\ncommon_value is 751\n",
         "x\ncommon_value is 750\ncommon_value is 751\n", "\n"},
    };
    size_t i, k;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsb_buf         file = HFSB_INIT, out = HFSB_INIT;
        hfsb_edit        edit = te_make(list[i].old_str, list[i].new_str);
        hfsb_edit_opts   opts = HFSB_INIT;
        large_counter    counter = HFSB_INIT;
        hfsb_err         err;
        hfsb_status      st;
        for (k = 0; k < 2000; k++)
            T_CHECK(hfsb_buf_printf(&file, "common_value is %zu%s%s", k,
                                    list[i].newline,
                                    k % 50 ? "" : list[i].newline) == HFSB_OK);
        counter.large = file.len / 4;
        out.alloc.fn = count_large;
        out.alloc.user = &counter;
        opts.no_diff = true;
        st = hfsb_edit_apply(hfsb_buf_str(&file), &edit, 1, &opts, &out, NULL,
                             &err);
        T_CHECK(st == HFSB_OK && counter.count == 1);
        if (st != HFSB_OK || counter.count != 1)
            printf("  case %zu: %s %zu\n", i, hfsb_status_text(st),
                   counter.count);
        hfsb_buf_free(&file);
        hfsb_buf_free(&out);
    }
}

int main(void) {
    T_RUN(edit_inserts_before_and_after);
    T_RUN(edit_strips_nothing_when_it_inserts_or_is_exact);
    T_RUN(edit_replaces_all_of_the_first_rung);
    T_RUN(edit_picks_the_match_at_the_line);
    T_RUN(edit_uses_the_line_for_exact_matches_only);
    T_RUN(exact_edit_stops_after_rung_2);
    T_RUN(edits_are_found_in_the_original_file);
    T_RUN(insertions_stay_next_to_their_text);
    T_RUN(edits_join_their_notes);
    T_RUN(edits_are_all_made_or_none);
    T_RUN(edits_must_not_overlap);
    T_RUN(edits_may_share_unchanged_lines);
    T_RUN(edits_share_lines_only_where_they_overlap);
    T_RUN(edits_report_text_that_an_earlier_edit_creates);
    T_RUN(edits_that_cancel_out_are_refused);
    T_RUN(edit_appends_to_the_output_buffer);
    T_RUN(edit_keeps_the_ceiling_of_the_buffer);
    T_RUN(edit_names_the_path_in_the_diff);
    T_RUN(edit_reports_the_lines_it_changed);
    T_RUN(edit_refuses_an_unknown_mode);
    T_RUN(edit_modes_are_set_by_name);
    T_RUN(edit_reads_the_arguments_of_a_tool);
    T_RUN(edit_folds_a_small_part_of_a_large_file);
    return T_END();
}
