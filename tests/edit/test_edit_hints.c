/* test_edit_hints.c - the hints of a refusal. */
#include "../support/t_edit.h"

#define TAB_SIGN   "\xE2\x86\x92"
#define SPACE_SIGN "\xC2\xB7"
#define NBSP       "\xC2\xA0"
#define APOS       "\xE2\x80\x99"

static te_run refuse(const char *content, const char *old_str,
                     const char *new_str) {
    hfsb_edit edit = te_make(old_str, new_str);
    te_run    run = te_edits(hfsb_cstr(content), &edit, 1, "src/x.c");
    T_CHECK(run.st != HFSB_OK);
    return run;
}

/* Texts that a refusal must, or must not (with a leading '!'), have. */
static void check_hint(const char *content, const char *old_str,
                       const char *new_str, const char *const *parts,
                       size_t count) {
    te_run run = refuse(content, old_str, new_str);
    size_t i;
    for (i = 0; i < count && parts[i]; i++) {
        bool wanted = parts[i][0] != '!';
        bool there = te_holds_text(run.err.msg, parts[i] + !wanted);
        T_CHECK(there == wanted);
        if (there != wanted)
            printf("  part \"%s\" of:\n%s\n", parts[i], run.err.msg);
    }
    te_free(&run);
}

static void hints_show_the_closest_lines(void) {
    static const char content[] =
        "import os\n\ndef first(a):\n\treturn a + 1\n\ndef second(b):\n"
        "    return b * 2\n";
    static const struct {
        const char *old_str;
        const char *parts[6];
    } list[] = {
        {"def first(a):\n\treturn a + 2\n",
         {"old_str not found in file. Nothing was changed.",
          "\n  3| def" SPACE_SIGN "first(a):\n  4| " TAB_SIGN
          "return" SPACE_SIGN "a" SPACE_SIGN "+" SPACE_SIGN "1",
          "First difference: line 4, column 13: you sent U+0032 (2), the "
          "file has U+0031 (1).",
          " Line 2 of old_str is not what the file has.",
          "To see the place call read with offset=1, limit=6.", NULL}},
        {"def second(b):\n    return b * 2\n    more\n",
         {"\n  6| def" SPACE_SIGN "second(b):",
          "The file ends before line 3 of old_str.", NULL}},
        /* no line is the same, but one looks like it */
        {"return b*2;\n", {"\n  7| ", "First difference: line 7", NULL}},
        {"something else altogether\n",
         {"No line of the file looks like it. Read the file and copy old_str "
          "from it.", "!First difference", NULL}},
        {"0123456789\n", {"No line of the file looks like it", NULL}},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++)
        check_hint(content, list[i].old_str, "x", list[i].parts, 6);
}

static void hints_name_the_kind_of_difference(void) {
    static const struct {
        const char *content, *old_str, *new_str;
        const char *parts[4];
    } list[] = {
        {"if (a) {\n\tb();\n}\nc();\n", "if (a) {\n        b();\n}\nd();\n",
         "x",
         {"First difference: line 4, column 1: you sent U+0064 (d), the file "
          "has U+0063 (c).", NULL}},
        {"fun" NBSP "call(argument, c)\n", "fun call(argument, d)\n", "x",
         {"column 4: you sent U+0020 (space), the file has U+00A0 (no-break "
          "space).", NULL}},
        {"caf\xC3\xA9 au lait noir\n", "caf\xC3\xA8 au lait noir\n", "x",
         {"column 4: you sent U+00E8 (\xC3\xA8), the file has U+00E9 "
          "(\xC3\xA9).", NULL}},
        {"caf\xC3\xA9 long line one\n", "caf\xC3\xA9 long line two\n", "x",
         {"column 16: you sent U+0074 (t), the file has U+006F (o).", NULL}},
        {"int value = compute(1);\n", "int value = compute(1)\n", "x",
         {"you sent the end of the line, the file has U+003B (;).", NULL}},
        {"int value = compute(1)\n", "int value = compute(1);\n", "x",
         {"you sent U+003B (;), the file has the end of the line.", NULL}},
        {"a\n\tlong_name();\nb\n", "a\n\tlong_nane();\nb\n", "x",
         {"line 2, column 9", " Line 2 of old_str is not what the file has.",
          NULL}},
        /* readings that are never applied */
        {"one();\ntwo();\n", "one();\\ntwo();", "x",
         {"old_str has escapes such as \\n or \\\" (a backslash and a letter) "
          "where the file has the characters themselves, at line 1.", NULL}},
        {"z\nsay(\"a\");\n", "say(\\\"a\\\");", "x",
         {"old_str has escapes", ", at line 2.", NULL}},
        {"a\nif (a < b && c)\n", "if (a &lt; b &amp;&amp; c)", "x",
         {"old_str has HTML entities such as &amp; where the file has the "
          "characters, at line 2.", NULL}},
        {"a\nif (a &lt; b)\n", "if (a < b)", "x",
         {"The file has HTML entities such as &amp; where old_str has the "
          "characters, at line 2.", NULL}},
        {"a\nclass Thing:\n", "class thing:", "x",
         {"Upper and lower case differ, at line 2.", NULL}},
        {"a\nf(a, b);\n", "f(a,b);", "x",
         {"Only blanks and line breaks differ, at line 2.", NULL}},
        {"a\nf(a,\n  b);\n", "f(a, b);", "x",
         {"Only blanks and line breaks differ, at line 2.", NULL}},
        {"one\r\ntwo\r\n", "one\\ntwo", "x", {"old_str has escapes", NULL}},
        /* line numbers */
        {"f:\n  a\n", "1\tf:\n  a\n", "x",
         {"1 of 2 lines of old_str begin with a line number as read shows it: "
          "leave those out.", NULL}},
        {"f:\n  a\n", "1\tf:\n3\t  a\n", "x",
         {"2 of 2 lines of old_str begin with a line number", NULL}},
        {"f:\n  a\n", "1\tf:\n2\t  a\n", "1\tg:\n  b\n",
         {"Some lines of new_str begin with a line number", NULL}},
        /* dots for lines */
        {"a\nb\nc\n", "a\n...\nc\n", "x",
         {"Line 2 of old_str is \"...\": quote every line, or make one "
          "edit before it and one after it.", NULL}},
        {"a\nb\nc\n", "a\n  \xE2\x80\xA6\nc\n", "x",
         {"Line 2 of old_str is \"...\"", NULL}},
        {"", "a", "b", {" The file is empty.", "!Closest", NULL}},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++)
        check_hint(list[i].content, list[i].old_str, list[i].new_str,
                   list[i].parts, 4);
}

static void hints_distinguish_tabs_and_spaces(void) {
    /* the lines differ in indentation only, and that is why it was refused:
       another line is indented differently */
    static const char *const parts[] = {
        "!\t", "First difference: line 2, column 1: you sent U+0020 (space), "
               "the file has U+0009 (tab).",
        " The file indents this line with tabs, old_str with spaces.", NULL};
    hfsb_edit edit = te_make("if (a)\n    b();\n", "x");
    te_run    run;
    size_t    i;
    edit.exact = true;
    run = te_edits(HFSB_LIT("if (a)\n\tb();\n"), &edit, 1, NULL);
    T_CHECK(run.st == HFSB_NOT_FOUND);
    for (i = 1; parts[i]; i++) T_CHECK(te_holds_text(run.err.msg, parts[i]));
    te_free(&run);
    edit.old_str = HFSB_LIT("if (a)\n  b();\n");
    run = te_edits(HFSB_LIT("if (a)\n    b();\n"), &edit, 1, NULL);
    T_CHECK(te_holds_text(run.err.msg,
                          " Only the indentation of this line differs."));
    te_free(&run);
    edit.old_str = HFSB_LIT("it's  so and it stays so\n");
    run = te_edits(HFSB_LIT("it" APOS "s so and it stays so\n"), &edit, 1,
                   NULL);
    T_CHECK(te_holds_text(run.err.msg,
                          " Only blanks or look-alike characters differ."));
    te_free(&run);
}

static void hints_report_lines_that_are_not_contiguous(void) {
    static const struct {
        const char *old_str, *part;
    } list[] = {
        {"one\ntwo\nfive\nsix\n",
         "\nLines 1-2 of old_str are at lines 2-3 of the file, the rest is at "
         "line 6: not contiguous. Make two edits, or quote all lines "
         "between."},
        {"one\nsix\n", "\nLine 1 of old_str is at line 2 of the file, the "
                       "rest is at line 7: not contiguous."},
        {"one\ntwo\nthree\nsix\n", "\nLines 1-3 of old_str are at lines 2-4 "
                                   "of the file, the rest is at line 7"},
        {"one\ntwo\nnowhere\n", "!not contiguous"},
    };
    /* a line that belongs to the head and to the rest */
    static const char *const both =
        "\nLines 1-2 of old_str are at lines 1-2 of the file, the rest is at "
        "line 5";
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++)
        check_hint("zero\none\ntwo\nthree\nfour\nfive\nsix\n",
                   list[i].old_str, "x", &list[i].part, 1);
    check_hint("a\nb\nx\nb\nc\n", "a\nb\nc\n", "x", &both, 1);
}

static void hints_report_new_str_in_the_file(void) {
    static const char *const there[] = {
        "new_str is already at line 2: was this edit made before?"};
    static const char *const not_there[] = {"!already"};
    check_hint("a\nint x = 2;\n", "int x = 1;\n", "int x = 2;\n", there, 1);
    check_hint("a\r\nint x = 2;\r\nb\r\n", "int x = 1;\nb", "int x = 2;\nb",
               there, 1);
    check_hint("a\nint x = 2;\n", "int x = 1;\n", "int x = 3;\n", not_there,
               1);
    check_hint("a\nxy\n", "b\n", "xy", not_there, 1);
    check_hint("a\n    \nxy\n", "b\n", "    ", not_there, 1);
}

static void hints_list_the_places_of_an_ambiguous_match(void) {
    static const struct {
        const char *content, *old_str;
        const char *parts[6];
    } list[] = {
        {"a = 1\nb\n  a = 1\n", "a = 1",
         {"old_str appears 2 times. Use replace_all=true or provide more "
          "context. Nothing was changed.",
          "It matches exactly at:\n  1| a" SPACE_SIGN "=" SPACE_SIGN
          "1\n  3| " SPACE_SIGN SPACE_SIGN "a" SPACE_SIGN "=" SPACE_SIGN "1",
          "Add a neighbouring line to old_str, or give line=N for the one "
          "that starts there, or set replace_all=true to change all of them.",
          "!... and", NULL}},
        {"a \nb\na\t\nb\n", "a\nb\n",
         {"It matches after trimming trailing whitespace at:", "!line=N",
          "  1| a" SPACE_SIGN "\n  3| a" TAB_SIGN, NULL}},
        {"it" APOS "s it" APOS "s\n", "it's",
         {"It matches after unicode normalization at:", NULL}},
        {"a  b; a   b\n", "a b",
         {"It matches after collapsing runs of blanks at:", NULL}},
        {"\ta\n\tb\n\ta\n\tb\n", "a\nb\n",
         {"It matches after trimming whitespace at:", NULL}},
        {"a\n\tb\nx\na\n\tb\nx\n", "\na\n  b\n\n",
         {"It matches after dropping blank lines at its edges at:", NULL}},
        {"\ta  b\n\tc\n\ta  b\n\tc\n", "a b\nc\n",
         {"It matches after trimming and collapsing blanks at:", NULL}},
        {"aXaXa\n", "aXa",
         {"... and again, overlapping itself", "appears 2 times", NULL}},
        {"a\ra\r", "a", {"\n  1| a\n  2| a", NULL}},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++)
        check_hint(list[i].content, list[i].old_str, "x", list[i].parts, 6);
}

static void hints_list_ten_places_and_count_the_rest(void) {
    size_t n;
    for (n = 9; n < 14; n++) {
        hfsb_buf  file = HFSB_INIT;
        hfsb_edit edit = te_make("word", "x");
        te_run    run;
        size_t    i, listed = 0;
        char      text[64];
        hfsb_str  rest;
        for (i = 0; i < n; i++) te_append(&file, HFSB_LIT("word\n"));
        run = te_edits(hfsb_buf_str(&file), &edit, 1, NULL);
        snprintf(text, sizeof text, "old_str appears %zu times.", n);
        T_CHECK(te_begins(run.err.msg, text));
        for (rest = hfsb_cstr(run.err.msg); rest.len;)
            listed += hfsb_str_ends(te_line(&rest), HFSB_LIT("| word\n"));
        T_CHECK(listed == (n < 10 ? n : 10));
        snprintf(text, sizeof text, "\n  ... and %zu more", n - 10);
        T_CHECK(te_holds_text(run.err.msg, text) == (n > 10));
        te_free(&run);
        hfsb_buf_free(&file);
    }
}

static void hints_show_odd_bytes_by_their_code(void) {
    static const char *const parts[] = {
        "<01>", "<7F>", "\xEF\xBF\xBD", "a byte that is not UTF-8", NULL};
    check_hint("start\x01\x7F\xFF rest of line\n",
               "start\x01\x7F\xFE rest of line\n", "x", parts, 4);
}

static void hints_cut_long_lines(void) {
    hfsb_buf  file = HFSB_INIT, old_str = HFSB_INIT;
    hfsb_edit edit = HFSB_INIT;
    te_run    run;
    size_t    i;
    for (i = 0; i < 12; i++) {
        size_t k;
        if (hfsb_buf_printf(&file, "line%zu", i) != HFSB_OK) abort();
        for (k = 0; k < 60; k++) te_append(&file, HFSB_LIT("\xC3\xA9\t"));
        te_append(&file, HFSB_LIT("\n"));
    }
    te_append(&old_str, hfsb_buf_str(&file));
    te_append(&old_str, HFSB_LIT("none\n"));
    edit.old_str = hfsb_buf_str(&old_str);
    run = te_edits(hfsb_buf_str(&file), &edit, 1, NULL);
    T_CHECK(run.st == HFSB_NOT_FOUND);
    T_CHECK(te_holds_text(run.err.msg, "...\n  2| line1"));
    te_free(&run);
    hfsb_buf_free(&file);
    hfsb_buf_free(&old_str);
}

static void hints_name_lines_with_unclear_indentation(void) {
    static const char *const parts[] = {
        "old_str not found in file. Lines 2-4 are the same but for their "
        "indentation, and the indentation of line 2 of new_str does not tell "
        "where it belongs.",
        "Nothing was changed."};
    check_hint("z\n a\n    b\n  c\n", "a\nb\nc", "a\nx\nb\nc", parts, 2);
}

static void hints_quote_the_omission_line(void) {
    static const char *const parts[] = {
        "\"// ... existing code ...\"", "exact=true writes the line",
        "Nothing was changed."};
    check_hint("f();\n", "f();\n", "g();\n  // ... existing code ...  \n",
               parts, 3);
}

/* Every refusal is short, UTF-8, and reports that nothing was changed
   (te_edits checks that). Long lines, odd bytes, many places. */
static void any_refusal_is_short_and_utf8(void) {
    unsigned long long seed = 4711;
    size_t rounds = t_quick() ? 500 : 5000, refused = 0;
    while (rounds--) {
        hfsb_buf  file = HFSB_INIT, old_str = HFSB_INIT, new_str = HFSB_INIT;
        hfsb_edit edit = HFSB_INIT;
        te_run    run;
        size_t    lines = 1 + te_below(&seed, 20), i, k;
        for (i = 0; i < lines; i++) {
            for (k = te_below(&seed, 120); k-- > 0;)
                te_append(&file, te_pick(&seed, "a|b|\t| |\xE2\x80\xA6|\xC3|"
                                                "\xA9|\xF0\x9F\x98\x80|\x01|"
                                                "word"));
            te_append(&file, te_pick(&seed, "\n|\n|\r\n"));
        }
        i = te_below(&seed, file.len);
        te_append(&old_str,
                  hfsb_str_slice(hfsb_buf_str(&file), i,
                                 i + te_below(&seed, file.len - i + 1)));
        if (te_below(&seed, 3))
            te_append(&old_str, te_pick(&seed, "x|\xC3|\n...\n|\\n"));
        te_append(&new_str, te_pick(&seed, "|new|\xC3\xA9|a\nb"));
        edit.old_str = hfsb_buf_str(&old_str);
        edit.new_str = hfsb_buf_str(&new_str);
        run = te_edits(hfsb_buf_str(&file), &edit, 1, "long/path.c");
        refused += run.st != HFSB_OK;
        te_free(&run);
        hfsb_buf_free(&file);
        hfsb_buf_free(&old_str);
        hfsb_buf_free(&new_str);
    }
    T_CHECK(refused > 300);
}

int main(void) {
    T_RUN(hints_show_the_closest_lines);
    T_RUN(hints_name_the_kind_of_difference);
    T_RUN(hints_distinguish_tabs_and_spaces);
    T_RUN(hints_report_lines_that_are_not_contiguous);
    T_RUN(hints_report_new_str_in_the_file);
    T_RUN(hints_list_the_places_of_an_ambiguous_match);
    T_RUN(hints_list_ten_places_and_count_the_rest);
    T_RUN(hints_show_odd_bytes_by_their_code);
    T_RUN(hints_cut_long_lines);
    T_RUN(hints_name_lines_with_unclear_indentation);
    T_RUN(hints_quote_the_omission_line);
    T_RUN(any_refusal_is_short_and_utf8);
    return T_END();
}
