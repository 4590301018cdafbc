/* test_edit_intent.c - texts that are in the file exactly but not meant to the
   letter, and those that look like it and are. */
#include "../support/t_edit.h"

static const char kept_end[] = "(kept the line end after new_str)";
static const char kept_rest[] = "(kept the rest of the last line, once)";
static const char kept_indent[] = "(kept the indentation of the first line)";
static const char reindented[] = "(new_str re-indented as the file is)";

typedef struct intent_case {
    const char *content, *old_str, *new_str;
    const char *note; /* NULL: taken to the letter */
    const char *result;
} intent_case;

static void check_case(const intent_case *c, size_t i, bool exact) {
    hfsb_edit   edit = te_make(c->old_str, c->new_str);
    const char *note = c->note && !exact ? c->note : "";
    te_run      run;
    bool        ok;
    edit.exact = exact;
    run = te_edits(hfsb_cstr(c->content), &edit, 1, NULL);
    ok = run.st == HFSB_OK && !strcmp(run.r.note, note) &&
         te_same(&run.out, hfsb_cstr(c->result)) == (!exact || !c->note);
    T_CHECK(ok);
    if (!ok)
        printf("  case %zu%s: %s\n  note %s\n  is   \"%s\"\n  want \"%s\"\n", i,
               exact ? ", exact" : "", run.err.msg, run.r.note,
               run.out.ptr ? run.out.ptr : "", c->result);
    te_free(&run);
}

/* Each case, and once more with exact=true, which takes all to the letter. */
static void check_cases(const intent_case *list, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        check_case(list + i, i, false);
        check_case(list + i, i, true);
    }
}

/* ---- the end ---- */

static void edit_keeps_the_line_end_of_whole_lines(void) {
    static const intent_case list[] = {
        {"a\nb\nc\n", "b\n", "B", kept_end, "a\nB\nc\n"},
        {"a\n  b\n  c\n", "b\n", "B\n  B2", kept_end, "a\n  B\n  B2\n  c\n"},
        {"a\nb\nc\n", "a\nb\n", "a\nx\nb", kept_end, "a\nx\nb\nc\n"},
        {"a\r\nb\r\nc\r\n", "a\r\nb\r\n", "A\r\nB", kept_end,
         "A\r\nB\r\nc\r\n"},
        {"a\rb\rc\r", "a\nb\n", "A\nB", kept_end, "A\rB\rc\r"},
        {"a\r\nb\nc\r\n", "a\nb\n", "A\nb", kept_end, "A\r\nb\nc\r\n"},
        {"\na\nb\n", "\na\n", "\nA", kept_end, "\nA\nb\n"},
        /* joins two lines, or takes a blank line away */
        {"a\nb\n", "a\n", "a", NULL, "ab\n"},
        {"a\nb\n", "a\n", "a ", NULL, "a b\n"},
        {"a\n\nb\n", "a\n", "A", NULL, "A\nb\n"},
        {"a\n  \nb\n", "a\n", "A", NULL, "A  \nb\n"},
        {"x\n\na\nb\n", "\na\n", " A", NULL, "x\n Ab\n"},
        /* not a whole line, the end of the file, nothing at all */
        {"x = a\nb\n", "a\n", "A", NULL, "x = Ab\n"},
        {"a\nb\n", "b\n", "B", NULL, "a\nB"},
        {"a\nb\nc\n", "b\n", "", NULL, "a\nc\n"},
        {"a\n   \nb\n", "   \n", "x", NULL, "a\nxb\n"},
    };
    check_cases(list, TE_COUNT(list));
}

static void edit_keeps_the_rest_of_the_last_line_once(void) {
    static const intent_case list[] = {
        {"a();\nf(1, 2);\nb();\n", "a();\nf(1", "A();\nf(1, 2);", kept_rest,
         "A();\nf(1, 2);\nb();\n"},
        {"a();\r\nf(1, 2);\r\n", "a();\nf(1", "A();\nf(1, 2);", kept_rest,
         "A();\r\nf(1, 2);\r\n"},
        {"a();\nf(1, 2);", "a();\nf(1", "A();\nf(1, 2);", kept_rest,
         "A();\nf(1, 2);"},
        /* one line, with its indentation and without */
        {"{\n  f(1, 2);\n}\n", "  f(1", "  a();\n  f(1, 2);", kept_rest,
         "{\n  a();\n  f(1, 2);\n}\n"},
        {"{\n  f(1, 2);\n}\n", "f(1", "a();\n  f(1, 2);", kept_rest,
         "{\n  a();\n  f(1, 2);\n}\n"},
        /* the last line is changed, or is not that line */
        {"a();\nf(1);\n", "a();\nf(1", "A();\nf(1, 2", NULL,
         "A();\nf(1, 2);\n"},
        {"a();\nf(1, 2);\n", "a();\nf(1", "A();\nf(1, 2", NULL,
         "A();\nf(1, 2, 2);\n"},
        {"a();\nf(1);\n", "a();\nf(1", "A();\ng(1);", NULL,
         "A();\ng(1););\n"},
        {"a();\nf(1)  \n", "a();\nf(1)", "A();\nf(1)  ", NULL,
         "A();\nf(1)    \n"},
        {"x f(1);\n", "f(1", "a\nf(1);", NULL, "x a\nf(1););\n"},
        {"a\n  b\n", "a\n  ", "A\n  b", NULL, "A\n  bb\n"},
        /* the only change: it is meant */
        {"a\nf(g(1)\n", "a\nf(g(1", "a\nf(g(1)", NULL, "a\nf(g(1))\n"},
    };
    check_cases(list, TE_COUNT(list));
}

/* ---- the indentation ---- */

static void edit_keeps_the_indentation_of_the_first_line(void) {
    static const intent_case list[] = {
        /* old_str begins after it */
        {"{\n    a;\n    b;\n}\n", "a;\n    b;", "    A;\n    b;", kept_indent,
         "{\n    A;\n    b;\n}\n"},
        {"{\n\ta;\n\tb;\n}\n", "a;\n\tb;\n", "\ta;\n\tB;\n", kept_indent,
         "{\n\ta;\n\tB;\n}\n"},
        {"{\n    a;\n}\n", "a;", "    a;\n    b;", kept_indent,
         "{\n    a;\n    b;\n}\n"},
        {"{\r\n  a;\r\n  b;\r\n}\r\n", "a;\n  b;", "  a;\n  c;\n  b;",
         kept_indent, "{\r\n  a;\r\n  c;\r\n  b;\r\n}\r\n"},
        /* new_str begins after it */
        {"{\n    a;\n    b;\n}\n", "    a;\n    b;\n", "a;\n    B;\n",
         kept_indent, "{\n    a;\n    B;\n}\n"},
        {"{\n\ta;\n\tb;\n}\n", "\ta;\n\tb;", "a;\n\tx;\n\tb;", kept_indent,
         "{\n\ta;\n\tx;\n\tb;\n}\n"},
        /* blank lines do not count, whatever blanks they have */
        {"{\n  a;\n  \n  b;\n}\n", "a;\n  \n  b;", "  a;\n\n  B;", kept_indent,
         "{\n  a;\n\n  B;\n}\n"},
        {"a;\n  x;\n  y;\n", "  x;\n  y;\n", "x;\n  Y;\n", kept_indent,
         "a;\n  x;\n  Y;\n"},
        /* both ends */
        {"{\n    a;\n    b;\n}\n", "    a;\n    b;\n", "a;\n    B;",
         "(kept the line end after new_str) "
         "(kept the indentation of the first line)",
         "{\n    a;\n    B;\n}\n"},
        {"{\n  a;\n  f(1);\n}\n", "a;\n  f(", "  a;\n  b;\n  f(1);",
         "(kept the rest of the last line, once) "
         "(kept the indentation of the first line)",
         "{\n  a;\n  b;\n  f(1);\n}\n"},
    };
    check_cases(list, TE_COUNT(list));
}

static void edit_indents_a_first_line_that_is_moved(void) {
    static const intent_case list[] = {
        /* all lines are moved, or only the first */
        {"{\n  a;\n  b;\n}\n", "a;\n  b;", "  a;\n    b;", NULL,
         "{\n    a;\n    b;\n}\n"},
        {"{\n  a;\n  b;\n}\n", "  a;\n  b;", "a;\nb;", NULL,
         "{\na;\nb;\n}\n"},
        {"{\n  a;\n  b;\n}\n", "a;\n  b;", "  a;\n  b;", NULL,
         "{\n    a;\n  b;\n}\n"},
        {"{\n  a;\n  b;\n}\n", "  a;\n  b;", "a;\n  b;", NULL,
         "{\na;\n  b;\n}\n"},
        {"{\n  a;\n  b;\n\n  c;\n", "  a;\n  b;\n", "a;\n  b;", NULL,
         "{\na;\n  b;\n  c;\n"},
        {"{\n  a;\n  b;\n  c;\n", "a;\n  b;\n", "  a;\n  b;", kept_end,
         "{\n    a;\n  b;\n  c;\n"},
        {"  a;\n}\n", "a;", "  a;\n  }", NULL, "    a;\n  }\n}\n"},
        /* deeper lines are put before the first */
        {"{\n  x: [\n  ],\n  y\n}\n", "],\n  y", "  1\n  ],\n  y", NULL,
         "{\n  x: [\n    1\n  ],\n  y\n}\n"},
        /* the first is deleted, and the second comes first */
        {"{\n  f {\n    g;\n    h;\n", "f {\n    g;\n    h;", "  g;\n    h;",
         NULL, "{\n    g;\n    h;\n"},
        /* nothing else is the same */
        {"{\n  a;\n  b;\n}\n", "a;\n  b;", "  A;\n  B;", NULL,
         "{\n    A;\n  B;\n}\n"},
        /* another indentation, other text before it, one line only */
        {"{\n  a;\n  b;\n}\n", "a;\n  b;", " A;\n  b;", NULL,
         "{\n   A;\n  b;\n}\n"},
        {"x  a;\n  b;\n", "a;\n  b;", "  A;\n  b;", NULL,
         "x    A;\n  b;\n"},
        {"{\n  a;\n}\n", "  a;", "a;\n  b;", NULL, "{\na;\n  b;\n}\n"},
        {"{\n  a;\n  b;\n}\n", "a;\n  b;", "  A;", NULL, "{\n    A;\n}\n"},
        /* a first line that is changed as well */
        {"{\n  a;\n  b;\n}\n", "  a;\n  b;", "A;\n  b;", NULL,
         "{\nA;\n  b;\n}\n"},
    };
    check_cases(list, TE_COUNT(list));
}

static void edit_indents_all_lines_of_a_line_without_its_blanks(void) {
    static const intent_case list[] = {
        /* a part of the indentation */
        {"{\n    a;\n}\n", "  a;", "  a;\n  b;", reindented,
         "{\n    a;\n    b;\n}\n"},
        {"{\n\t\ta;\n}\n", "\ta;\n", "\tif x\n\n\t\ta;\n\tend\n", NULL,
         "{\n\t\tif x\n\n\t\ta;\n\tend\n}\n"},
        {"{\n\t\t\ta;\n}\n", "\ta;\n", "\tif x\n\n\t\ta;\n\tend\n", reindented,
         "{\n\t\t\tif x\n\n\t\t\t\ta;\n\t\t\tend\n}\n"},
        /* all of it, and the line stands again */
        {"{\n    a;\n}\n", "a;", "b;\na;", reindented,
         "{\n    b;\n    a;\n}\n"},
        {"{\n    9\n}\n", "9", "8\n9", reindented, "{\n    8\n    9\n}\n"},
        {"{\n    Z\n}\n", "Z", "Y\nZ", reindented, "{\n    Y\n    Z\n}\n"},
        {"{\n  \xC3\xA9\n}\n", "\xC3\xA9", "Y\n\xC3\xA9", reindented,
         "{\n  Y\n  \xC3\xA9\n}\n"},
        {"{\r\n  a;\r\n}\r\n", "a;\r\n", "b;\r\n  c;\r\na;\r\n", reindented,
         "{\r\n  b;\r\n    c;\r\n  a;\r\n}\r\n"},
        /* a line less deep, none level, the file's own blanks */
        {"{\n    a;\n}\n", "  a;", "  a;\n b;\n  c;", NULL,
         "{\n    a;\n b;\n  c;\n}\n"},
        {"{\n    a;\n}\n", "  a;", "  a;\n    b;", NULL,
         "{\n    a;\n    b;\n}\n"},
        {"{\n    a;\n}\n", "  a;", "  b;\n  }\n    a;", NULL,
         "{\n    b;\n  }\n    a;\n}\n"},
        {"{\n    a;\n}\n", "  a;", "b;\n  c;", NULL,
         "{\n  b;\n  c;\n}\n"},
        /* part of a line, no word, the line itself comes first */
        {"{\n    a;b\n}\n", "a;", "b;\na;", NULL, "{\n    b;\na;b\n}\n"},
        {"{\n    a;b\n}\n", "  a;", "  a;\n  c;", NULL,
         "{\n    a;\n  c;b\n}\n"},
        {"{\n    };\n", "};", "+\n};", NULL, "{\n    +\n};\n"},
        {"do\n  end\n", "end", "end\nend", NULL, "do\n  end\nend\n"},
        {"{\n    a;\n}\n", "a;", "a;\nb;", NULL, "{\n    a;\nb;\n}\n"},
    };
    check_cases(list, TE_COUNT(list));
}

/* ---- calls ---- */

static void edit_interprets_single_replacements_only(void) {
    hfsb_edit edits[2];
    te_run    run;
    edits[0] = te_make("b\n", "B");
    edits[0].mode = HFSB_EDIT_APPEND_AFTER;
    run = te_edits(HFSB_LIT("a\nb\nc\n"), edits, 1, NULL);
    T_CHECK(te_same(&run.out, HFSB_LIT("a\nb\nBc\n")) && !run.r.note[0]);
    te_free(&run);
    edits[0].mode = HFSB_EDIT_REPLACE;
    edits[0].replace_all = true;
    run = te_edits(HFSB_LIT("b\nb\nc\n"), edits, 1, NULL);
    T_CHECK(te_same(&run.out, HFSB_LIT("BBc\n")) && !run.r.note[0]);
    te_free(&run);
    /* several edits join their notes */
    edits[0] = te_make("  a;", "  a;\n  b;");
    edits[1] = te_make("x\n", "y");
    run = te_edits(HFSB_LIT("{\n    a;\n}\nx\nz\n"), edits, 2, NULL);
    T_CHECK(te_same(&run.out, HFSB_LIT("{\n    a;\n    b;\n}\ny\nz\n")));
    T_CHECK(!strcmp(run.r.note, "(kept the line end after new_str) "
                                "(new_str re-indented as the file is)"));
    te_free(&run);
}

static void edit_notices_an_interpreted_change_made_before(void) {
    hfsb_edit edit = te_make("a\n", "a\nint count;");
    te_run    run = te_edits(HFSB_LIT("a\nint count;\nb\n"), &edit, 1, NULL);
    T_CHECK(run.st == HFSB_REFUSED &&
            te_begins(run.err.msg, "The change is already applied at line 1"));
    te_free(&run);
}

int main(void) {
    T_RUN(edit_keeps_the_line_end_of_whole_lines);
    T_RUN(edit_keeps_the_rest_of_the_last_line_once);
    T_RUN(edit_keeps_the_indentation_of_the_first_line);
    T_RUN(edit_indents_a_first_line_that_is_moved);
    T_RUN(edit_indents_all_lines_of_a_line_without_its_blanks);
    T_RUN(edit_interprets_single_replacements_only);
    T_RUN(edit_notices_an_interpreted_change_made_before);
    return T_END();
}
