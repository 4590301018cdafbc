/* test_edit_hints.c - the hints of a refusal. */
#include "../support/t_edit.h"

#define NBSP "\xC2\xA0"
#define APOS "\xE2\x80\x99"

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
        "    return b * 2\ncompute_the_total();\n";
    static const struct {
        const char *old_str;
        const char *parts[6];
    } list[] = {
        {"def first(a):\n\treturn a + 2\n",
         {"old_str not found in file. Nothing was changed.",
          "\nThe file has at lines 3-4:\n3\tdef first(a):\n4\t\treturn a + 1",
          "\nFirst difference: line 4, column 13:\n  sent: \treturn a + 2\n"
          "  file: \treturn a + 1",
          "!call read", NULL}},
        {"compute_the_total();\nmore\n",
         {"\nThe file has at line 8:\n8\tcompute_the_total();",
          "\nLine 2 of old_str is not there: more", NULL}},
        /* no line is the same, but one looks like it */
        {"compute_teh_total();\n", {"\n8\tcompute_the_total();", NULL}},
        {"something else altogether\n",
         {"No line of the file looks like it. Read the file and copy old_str "
          "from it.", "!First difference", NULL}},
        {"0123456789\n", {"No line of the file looks like it", NULL}},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++)
        check_hint(content, list[i].old_str, "x", list[i].parts, 6);
}

/* Words are not only ASCII: a text in another script finds its line too. */
static void hints_find_lines_of_any_script(void) {
    static const char content[] =
        "int a;\n"
        "// \xE8\xAE\xA1\xE7\xAE\x97\xE6\x80\xBB\xE4\xBB\xB7"
        "\xE5\xB9\xB6\xE8\xBF\x94\xE5\x9B\x9E\n"
        "\xD0\x9F\xD1\x80\xD0\xB8\xD0\xB2\xD0\xB5\xD1\x82 "
        "\xD0\xBC\xD0\xB8\xD1\x80\n"
        "\xE3\x80\x8C\xE2\x80\x9C\xE2\x80\x9D\xE3\x80\x8D\n";
    static const struct {
        const char *old_str;
        const char *parts[4];
    } list[] = {
        /* one character too many */
        {"// \xE8\xAE\xA1\xE7\xAE\x97\xE6\x80\xBB\xE4\xBB\xB7"
         "\xE5\xB9\xB6\xE4\xB8\x94\xE8\xBF\x94\xE5\x9B\x9E",
         {"\nThe file has at line 2:\n2\t// \xE8\xAE\xA1",
          "\nFirst difference: line 2, column 9: you sent U+4E14", NULL}},
        /* another letter */
        {"\xD0\x9F\xD1\x80\xD0\xB5\xD0\xB2\xD0\xB5\xD1\x82 "
         "\xD0\xBC\xD0\xB8\xD1\x80\n",
         {"\nThe file has at line 3:\n3\t\xD0\x9F",
          "\nFirst difference: line 3, column 3: you sent U+0435", NULL}},
        /* another text of the same script */
        {"\xE6\x9C\xAA\xE7\x9F\xA5\xE7\x9A\x84\xE6\x96\x87"
         "\xE4\xBB\xB6\xE5\x90\x8D\n",
         {"No line of the file looks like it", NULL}},
        /* punctuation alone, and bytes that are not UTF-8 */
        {"\xE2\x80\x9C\xE2\x80\x9D\xE2\x80\x9C\xE2\x80\x9D",
         {"No line of the file looks like it", NULL}},
        {"\xD0\xD0\xD0\xD1\xD1\xD2", {"No line of the file looks", NULL}},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++)
        check_hint(content, list[i].old_str, "x", list[i].parts, 4);
}

static void hints_name_the_first_difference(void) {
    static const struct {
        const char *content, *old_str;
        const char *parts[4];
    } list[] = {
        {"if (a) {\n\tb();\n}\nc();\n", "if (a) {\n        b();\n}\nd();\n",
         {"First difference: line 4, column 1:\n  sent: d();\n  file: c();",
          "\nThe file indents line 2 with 1 tab, old_str with 8 spaces.",
          NULL}},
        {"fun" NBSP "call(argument, c)\n", "fun call(argument, d)\n",
         {"column 4: you sent 1 space, the file has U+00A0 (no-break "
          "space):", NULL}},
        {"caf\xC3\xA9 au lait noir\n", "caf\xC3\xA8 au lait noir\n",
         {"column 4: you sent U+00E8 (\xC3\xA8), the file has U+00E9 "
          "(\xC3\xA9):", NULL}},
        {"caf\xC3\xA9 long line one\n", "caf\xC3\xA9 long line two\n",
         {"line 1, column 16:\n", NULL}},
        {"int value = compute(1);\n", "int value = compute(1)\nx();\n",
         {"line 1, column 23:\n  sent: int value = compute(1)\n  file: int "
          "value = compute(1);", NULL}},
        {"a = 1 +\t2\n", "a = 1 +2\nbb\n",
         {"column 8: you sent \"2\", the file has 1 tab:", NULL}},
        {"a = 1 + 2\n", "a = 1 + 2 \tx\n",
         {"column 10: you sent 1 space, the file has the end of the line:",
          NULL}},
        {"name: das\xE2\x80\x8Dhboard\n", "name: dashboard\n",
         {"column 10: you sent \"h\", the file has U+200D (invisible):",
          "\nold_str need not be whole lines: send only text before or after "
          "that character.", NULL}},
        {"f(b[0])\xEF\xB8\x8F, true\n", "f(b[0]), true\n",
         {"you sent \",\", the file has U+FE0F (invisible):", NULL}},
        {"a\n\tlong_name();\nb\n", "a\n\tlong_nane();\nb\n",
         {"\nFirst difference: line 2, column 9:\n  sent: \tlong_nane();\n"
          "  file: \tlong_name();", NULL}},
        {"one(1);\ntwo(2);\nsix(6);\n", "one(1);\ntwo(3);\nsix(7);\n",
         {"\nFirst difference: line 2, column 5:",
          "\nThen line 3, column 5:\n  sent: six(7);\n  file: six(6);",
          NULL}},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++)
        check_hint(list[i].content, list[i].old_str, "x", list[i].parts, 4);
}

static void hints_show_a_difference_in_a_long_line(void) {
    hfsb_buf  file = HFSB_INIT, old_str = HFSB_INIT;
    hfsb_edit edit = HFSB_INIT;
    te_run    run;
    size_t    i;
    for (i = 0; i < 40; i++) {
        if (hfsb_buf_printf(&file, "word%zu of a long line, ", i) != HFSB_OK)
            abort();
        if (hfsb_buf_printf(&old_str, "word%zu of a long %s, ", i,
                            i == 35 ? "lime" : "line") != HFSB_OK)
            abort();
    }
    edit.old_str = hfsb_buf_str(&old_str);
    run = te_edits(hfsb_buf_str(&file), &edit, 1, NULL);
    T_CHECK(te_holds_text(run.err.msg, "35 of a long lime, word36"));
    T_CHECK(te_holds_text(run.err.msg, "35 of a long line, word36"));
    te_free(&run);
    hfsb_buf_free(&file);
    hfsb_buf_free(&old_str);
}

/* A line of megabytes: the difference is shown, and its column is right. */
static void hints_show_a_part_of_an_endless_line(void) {
    hfsb_buf  file = HFSB_INIT;
    hfsb_edit edit = te_make("if(alpha(beta,gamna)){return delta}", "x");
    te_run    run;
    size_t    i;
    for (i = 0; i < 20001; i++)
        te_append(&file, i == 10000
                             ? HFSB_LIT("if(alpha(beta,gamma)){return delta}")
                             : HFSB_LIT("f(x);"));
    run = te_edits(hfsb_buf_str(&file), &edit, 1, NULL);
    T_CHECK(te_holds_text(run.err.msg,
                          "First difference: line 1, column 50018:"));
    T_CHECK(te_holds_text(run.err.msg, "if(alpha(beta,gamma)){return "));
    te_free(&run);
    edit.old_str = HFSB_LIT("f(x);f(x);f(x);f(x)");
    run = te_edits(hfsb_buf_str(&file), &edit, 1, NULL);
    T_CHECK(run.st == HFSB_AMBIGUOUS);
    te_free(&run);
    hfsb_buf_free(&file);
}

/* Readings that are never applied. */
static void hints_name_a_difference_that_is_everywhere(void) {
    static const struct {
        const char *content, *old_str;
        const char *parts[4];
    } list[] = {
        {"z\nsay(\"a\\n\");\n", "say(\"a\\\\n\");",
         {"\nold_str has two backslashes where the file has one, at line 2. "
          "Check new_str, too.\nThe file has at line 2:\n2\tsay(\"a\\n\");",
          "!old_str has escapes", NULL}},
        {"z\nsay(\"a\\\\n\");\n", "say(\"a\\n\");",
         {"\nThe file has two backslashes where old_str has one, at line 2.",
          NULL}},
        {"z\nsay(\"\\n\");\nnext();\n", "say(\"\n\");\nnext();\n",
         {"\nThe file has escapes such as \\n (a backslash and a letter) where "
          "old_str has the characters themselves, at line 2.\n",
          "\n2\tsay(\"\\n\");\n3\tnext();", NULL}},
        {"one();\ntwo();\n", "one();\\ntwo();",
         {"\nold_str has escapes such as \\n or \\\" (a backslash and a "
          "letter) where the file has the characters themselves, at line 1.",
          "\n1\tone();\n2\ttwo();", NULL}},
        {"z\nsay(\"a\");\n", "say(\\\"a\\\");",
         {"\nold_str has backslashes before quotes where the file has none, "
          "at line 2.", NULL}},
        {"z\nsay(\\\"a\\\");\n", "say(\"a\");",
         {"\nThe file has backslashes before quotes where old_str has none, "
          "at line 2.", NULL}},
        {"z\nsay(\"a\\n\");\n", "say(\\\"a\\n\\\");",
         {"\nold_str has backslashes before quotes", NULL}},
        {"z\n\tcall(this);\n", "\\tcall(this);",
         {"\nold_str has escapes such as \\n", ", at line 2.", NULL}},
        {"one();\ntwo();\n", "one();\\r\\ntwo();",
         {"\nold_str has escapes such as \\n", NULL}},
        {"z\nopen(a/b/c);\n", "open(a\\/b\\/c);",
         {"\nold_str has escapes such as \\n", NULL}},
        {"z\nf(\"\tx\");\ng();\n", "f(\"\\tx\");\ng();\n",
         {"\nold_str has escapes such as \\n", NULL}},
        {"z\nf(\"\\tx\\d\");\ng();\n", "f(\"\tx\\d\");\ng();\n",
         {"\nThe file has escapes such as \\n", NULL}},
        {"z\n#define Xyz \\\n", "#define XYZ \\",
         {"\nUpper and lower case differ, at line 2.", NULL}},
        {"z\nLook \\u20zz \\q\n", "look \\u20zz \\q",
         {"\nUpper and lower case differ, at line 2.", NULL}},
        {"z\nf(`xyz`, 'y');\n", "f(\"xyz\", \"y\");",
         {"\nThe kind of quotes differs, at line 2.", NULL}},
        {"z\nf('xyz') > \"\"\n", "f(&#39;xyz&apos;) &gt; &quot;&quot;",
         {"\nold_str has HTML entities such as &amp;", NULL}},
        {"a\nit" APOS "s known to all\n", "it\\u2019s known to all",
         {"\nold_str has escapes such as \\u2019 where the file has the "
          "characters themselves, at line 2.", NULL}},
        {"a\nit\\u2019s known to all\n", "it" APOS "s known to all",
         {"\nThe file has escapes such as \\u2019 where old_str has the "
          "characters themselves, at line 2.", NULL}},
        {"a\nif (a < b && c)\n", "if (a &lt; b &amp;&amp; c)",
         {"\nold_str has HTML entities such as &amp; where the file has the "
          "characters, at line 2.", NULL}},
        {"a\nif (a &lt; b)\n", "if (a < b)",
         {"\nThe file has HTML entities such as &amp; where old_str has the "
          "characters, at line 2.", NULL}},
        {"a\nclass Thing:\n", "class thing:",
         {"\nUpper and lower case differ, at line 2.",
          "\n  sent: class thing:\n  file: class Thing:", NULL}},
        {"a\nprint('yes')\n", "print(\"yes\")",
         {"\nThe kind of quotes differs, at line 2.", NULL}},
        {"a\nf(abc, b);\n", "f(abc,b);",
         {"\nOnly blanks and line breaks differ, at line 2.",
          "column 7: you sent \"b\", the file has 1 space:", NULL}},
        {"a\nf(abc,\n  b);\n", "f(abc, b);",
         {"\nOnly blanks and line breaks differ, at line 2.\nThe file has at "
          "lines 2-3:\n2\tf(abc,\n3\t  b);", NULL}},
        {"a();\n\nb();\nc();\n", "a();\nb();\nc();\nd();\n",
         {"\nold_str leaves out line 2 of the file, which is blank.", NULL}},
        {"one\r\ntwo three\r\n", "one\\ntwo three",
         {"old_str has escapes", "\n1\tone\n2\ttwo three", NULL}},
        {"", "a", {" The file is empty.", "!The file has", NULL}},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++)
        check_hint(list[i].content, list[i].old_str, "x", list[i].parts, 4);
}

/* Several places read alike but for case; the one that is meant shares most
   bytes with old_str. */
static void hints_choose_the_place_with_most_bytes_the_same(void) {
    static const char *const parts[] = {
        "\nUpper and lower case differ, at line 4.", "!\n1\t"};
    check_hint("  labels:\n    name: operator\nspec:\n      labels:\n"
               "        name: operator\n",
               "      labels:\n        name: OPERATOR\n", "x", parts, 2);
}

/* old_str begins and ends inside a line: these parts are as in the file. */
static void hints_accept_parts_of_the_first_and_last_line(void) {
    static const char *const parts[] = {
        "\nThe file has at lines 1-3:", "\nFirst difference: line 2, column 8:",
        "!\nThen", "!line 1,", "!line 3,"};
    check_hint("alpha beta();\nmiddle(1);\ngamma delta();\n",
               "beta();\nmiddle(2);\ngamma", "x", parts, 5);
}

static void hints_show_blank_lines_as_far_as_old_str_has_them(void) {
    static const char *const parts[] = {
        "\nThe file has at lines 2-4:\n2\t\n3\tfoo(bar);\n4\tbaz(qux);\n"};
    static const char *const more[] = {
        "\nThe file has at lines 3-5:\n3\tfoo(bar);\n4\tbaz(qux);\n5\t\n"};
    check_hint("a\n\nfoo(bar);\nbaz(qux);\nnext();\n",
               "\nfoo(Bar);\nbaz(qux);\n\n", "x", parts, 1);
    check_hint("a\n\nfoo(bar);\nbaz(qux);\n\n\nnext();\n",
               "foo(Bar);\nbaz(qux);\n\n", "x", more, 1);
}

/* Every word of old_str is in every line. */
static void hints_show_a_line_that_is_common(void) {
    hfsb_buf  file = HFSB_INIT;
    hfsb_edit edit = te_make("call(some, thing) + 1;", "x");
    te_run    run;
    size_t    i;
    for (i = 0; i < 100; i++)
        te_append(&file, i == 40 ? HFSB_LIT("call(some, thing) + 2;\n")
                                 : HFSB_LIT("call(some, other, thing);\n"));
    run = te_edits(hfsb_buf_str(&file), &edit, 1, NULL);
    T_CHECK(te_holds_text(run.err.msg, "\n41\tcall(some, thing) + 2;\n"));
    te_free(&run);
    hfsb_buf_free(&file);
}

/* The head of old_str is at line 1, too; its text is at line 4. */
static void hints_show_one_place_only(void) {
    static const char *const parts[] = {
        "\nOnly blanks and line breaks differ, at line 4.",
        "\nThe file has at lines 4-5:\n4\tbegin(block);\n5\tmiddle(a, b);",
        "!\n1\t"};
    check_hint("begin(block);\nother(a, b);\nrest();\nbegin(block);\n"
               "middle(a, b);\n",
               "begin(block);\nmiddle(a,b);\n", "x", parts, 3);
}

static void hints_report_marks_that_are_not_in_the_file(void) {
    static const struct {
        const char *content, *old_str, *new_str;
        const char *parts[4];
    } list[] = {
        {"f:\n  abc\n", "1\tf:\n  abc\n", "x",
         {"1 of 2 lines of old_str begin with a line number as read shows it: "
          "leave the numbers out.", "\nOtherwise old_str is right, at line 1.",
          NULL}},
        {"f:\n  abc\n", "1\tf:\n3\t  abc\n", "x",
         {"2 of 2 lines of old_str begin with a line number", NULL}},
        {"f:\n  abc\n", "1\tf:\n2\t  abc\n", "1\tg:\n  b\n",
         {"Some lines of new_str begin with a line number", NULL}},
        {"one();\ntwo();\n", "```c\none();\ntwo();\n```\n", "x",
         {"\nold_str is in a code fence (```): leave the fence out of old_str "
          "and new_str.", NULL}},
        {"one();\n two();\n", " one();\n- two();\n+ three();\n", "x",
         {"\nThe lines of old_str begin with the marks of a diff (+, -, "
          "blank)", NULL}},
        {"- one\n- two\n", "- one\n- too\n", "x", {"!diff", NULL}},
        /* dots for lines */
        {"aaaa\nb\ncccc\n", "aaaa\n...\ncccc\n", "x",
         {"\nLine 2 of old_str is \"...\": quote every line, or make one edit "
          "before it and one after it.", "\n1\taaaa\n2\tb\n3\tcccc", NULL}},
        {"aaaa\nb\ncccc\n", "aaaa\n  \xE2\x80\xA6\ncccc\n", "x",
         {"\nLine 2 of old_str is \"\xE2\x80\xA6\"", NULL}},
        {"aaaa\nb\ncccc\n", "aaaa\n  # ...\ncccc\n", "x",
         {"\nLine 2 of old_str is \"# ...\"", "!is not there", NULL}},
        {"aaaa\nb\ncccc\n", "aaaa\n// ...\ncccc\n", "x",
         {"\nLine 2 of old_str is \"// ...\"", "!leaves out", NULL}},
        {"def f():\n    ...\ndef g():\n", "def f():\n    ...\ndef h():\n",
         "x", {"!\": quote every line", NULL}},
        {"aaaa\nb\ncccc\n", "aaaa\n// ... existing code ...\ncccc\n", "x",
         {"\nLine 2 of old_str is \"// ... existing code ...\"", NULL}},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++)
        check_hint(list[i].content, list[i].old_str, list[i].new_str,
                   list[i].parts, 4);
}

static void hints_distinguish_tabs_and_spaces(void) {
    hfsb_edit edit = te_make("if (a)\n    b();\n", "x");
    te_run    run;
    edit.exact = true;
    run = te_edits(HFSB_LIT("if (a)\n\tb();\n"), &edit, 1, NULL);
    T_CHECK(run.st == HFSB_NOT_FOUND);
    T_CHECK(te_holds_text(run.err.msg, "\n1\tif (a)\n2\t\tb();"));
    T_CHECK(te_holds_text(run.err.msg, "The file indents line 2 with 1 tab, "
                                       "old_str with 4 spaces."));
    te_free(&run);
    edit.old_str = HFSB_LIT("if (a)\n  b();\n");
    run = te_edits(HFSB_LIT("if (a)\n    b();\n"), &edit, 1, NULL);
    T_CHECK(te_holds_text(run.err.msg, "The file indents line 2 with 4 "
                                       "spaces, old_str with 2 spaces."));
    te_free(&run);
    edit.old_str = HFSB_LIT("it's  so and it stays so\n");
    run = te_edits(HFSB_LIT("it" APOS "s so and it stays so\n"), &edit, 1,
                   NULL);
    T_CHECK(te_holds_text(run.err.msg,
                          "column 3: you sent \"'\", the file has U+2019 ("
                          APOS "):"));
    te_free(&run);
}

static void hints_show_head_to_tail_of_lines_that_are_apart(void) {
    static const struct {
        const char *old_str;
        const char *parts[3];
    } list[] = {
        {"one();\ntwo();\nfive();\nsix();\n",
         {"\nThe file has at lines 2-7:\n2\tone();\n3\ttwo();\n4\tthree();\n"
          "5\tfour();\n6\tfive();\n7\tsix();",
          "\nold_str leaves out lines 4-5 of the file.", "!First"}},
        {"one();\ntwo();\nthree();\nfive();\n",
         {"\n2\tone();\n3\ttwo();\n4\tthree();\n5\tfour();\n6\tfive();",
          "\nold_str leaves out line 5 of the file.", NULL}},
        {"one();\ntwo();\nnowhere(at, all);\n",
         {"!leaves out", "nowhere(at, all);", NULL}},
        {"two();\none();\nthree();\n",
         {"\n2\tone();\n3\ttwo();\n4\tthree();",
          "\nLine 1 of old_str is at line 3.", NULL}},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++)
        check_hint("zero();\none();\ntwo();\nthree();\nfour();\nfive();\n"
                   "six();\n",
                   list[i].old_str, "x", list[i].parts, 3);
}

static void hints_name_the_place_of_distant_lines(void) {
    hfsb_buf  file = HFSB_INIT;
    hfsb_edit edit = te_make("start_of_it();\nend_of_it(here);\n", "x");
    te_run    run;
    size_t    i;
    te_append(&file, HFSB_LIT("start_of_it();\n"));
    for (i = 0; i < 500; i++) te_append(&file, HFSB_LIT("a line\n"));
    te_append(&file, HFSB_LIT("end_of_it(here);\n"));
    run = te_edits(hfsb_buf_str(&file), &edit, 1, NULL);
    T_CHECK(te_holds_text(run.err.msg, "\n502\tend_of_it(here);"));
    T_CHECK(te_holds_text(run.err.msg, "\nLine 1 of old_str is at line 1."));
    te_free(&run);
    hfsb_buf_free(&file);
}

/* Only a part of a long old_str is compared: the part with the difference. */
static void hints_find_the_difference_in_a_long_text(void) {
    size_t at;
    for (at = 0; at < 600; at += 60) {
        hfsb_buf  file = HFSB_INIT, old_str = HFSB_INIT;
        hfsb_edit edit = HFSB_INIT;
        te_run    run;
        size_t    i;
        char      part[64];
        for (i = 0; i < 600; i++) {
            if (hfsb_buf_printf(&file, "call_%zu(value, other);\r\n", i) !=
                    HFSB_OK ||
                hfsb_buf_printf(&old_str, "call_%zu(value, %s);\n", i,
                                i == at ? "father" : "other") != HFSB_OK)
                abort();
        }
        edit.old_str = hfsb_buf_str(&old_str);
        run = te_edits(hfsb_buf_str(&file), &edit, 1, NULL);
        snprintf(part, sizeof part, "First difference: line %zu, column ",
                 at + 1);
        T_CHECK(te_holds_text(run.err.msg, part));
        T_CHECK(te_holds_text(run.err.msg, "lines as in old_str)"));
        te_free(&run);
        hfsb_buf_free(&file);
        hfsb_buf_free(&old_str);
    }
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

/* The rest of old_str is in the file before the edit, too. */
static void hints_do_not_take_a_rest_for_an_edit_made_before(void) {
    static const char *const misread[] = {
        "!already", "\nold_str has HTML entities such as &amp; where the file "
                    "has the characters, at line 1."};
    static const char *const changed[] = {"!already",
                                          "\nFirst difference: line 1"};
    static const char *const there[] = {"new_str is already at line 1"};
    check_hint("List<T> list;\nrest(of, it);\n",
               "List&lt;T&gt; list;\nrest(of, it);\n", "rest(of, it);\n",
               misread, 2);
    check_hint("call(one, 2);\nrest(of, it);\n",
               "call(one, 3);\nrest(of, it);\n", "rest(of, it);\n", changed,
               2);
    check_hint("rest(of, it);\nend\n", "call(one);\nrest(of, it);\nend\n",
               "rest(of, it);\nend\n", there, 1);
}

/* The first line of old_str is a part of the line shown as different. */
static void hints_do_not_name_the_line_shown_as_another(void) {
    static const char *const parts[] = {"\nFirst difference: line 2",
                                        "!of old_str is at line"};
    check_hint("a\nfirst words of a long line\nend of it\n",
               "first words of\na long line end of it\n", "x", parts, 2);
}

static void hints_list_the_places_of_an_ambiguous_match(void) {
    static const struct {
        const char *content, *old_str;
        const char *parts[6];
    } list[] = {
        {"x\na = 1\nb\n  a = 1\n", "a = 1",
         {"old_str appears 2 times. Use replace_all=true or provide more "
          "context. Nothing was changed.",
          "\nIt matches exactly at lines 2, 4. With what is before it:\n1\tx\n"
          "2\ta = 1\n3\tb\n4\t  a = 1\n",
          "Add a neighbouring line to old_str, or give line=N for the one "
          "that starts there, or set replace_all=true to change all of them.",
          "!more places", NULL}},
        /* the lines before are the same, those after are not */
        {"{\na\nb\n{\na\nc\n", "a\n",
         {"With what is after it:\n2\ta\n3\tb\n5\ta\n6\tc\n", NULL}},
        {"1\n{\na\n}\n2\n{\na\n}\n", "a",
         {"With what is before it:\n1\t1\n2\t{\n3\ta\n5\t2\n6\t{\n7\ta\n",
          NULL}},
        {"a \nb\na\t\nb\n", "a\nb\n",
         {"It matches after trimming trailing whitespace at lines 1, 3",
          "!line=N", NULL}},
        {"it" APOS "s it" APOS "s\n", "it's",
         {"It matches after unicode normalization at lines 1, 1", NULL}},
        {"a  b; a   b\n", "a b",
         {"It matches after collapsing runs of blanks at", NULL}},
        {"\ta\n\tb\n\ta\n\tb\n", "a\nb\n",
         {"It matches after trimming whitespace at", NULL}},
        {"a\n\tb\nx\na\n\tb\nx\n", "\na\n  b\n\n",
         {"It matches after dropping blank lines at its edges at", NULL}},
        {"\ta  b\n\tc\n\ta  b\n\tc\n", "a b\nc\n",
         {"It matches after trimming and collapsing blanks at", NULL}},
        {"aXaXa\n", "aXa",
         {", and again, overlapping itself", "appears 2 times", NULL}},
        {"a\ra\r", "a", {"\n1\ta\n2\ta\n", NULL}},
        {"b\r\na\r\nc\r\na\r\n", "a", {"\n1\tb\n2\ta\n3\tc\n4\ta\n", NULL}},
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
            listed += hfsb_str_ends(te_line(&rest), HFSB_LIT("\tword\n"));
        T_CHECK(listed == (n < 10 ? n : 10));
        snprintf(text, sizeof text, " and %zu more places", n - 10);
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

/* Lines that are as in old_str make room for those that differ. */
static void hints_leave_out_lines_that_are_the_same(void) {
    hfsb_buf  file = HFSB_INIT, old_str = HFSB_INIT;
    hfsb_edit edit = HFSB_INIT;
    te_run    run;
    size_t    i;
    for (i = 0; i < 40; i++) {
        if (hfsb_buf_printf(&file, "line%zu(with, some, words, in, it);\n",
                            i) != HFSB_OK ||
            hfsb_buf_printf(&old_str, "line%zu(with, some, %s, in, it);\n", i,
                            i == 30 ? "swords" : "words") != HFSB_OK)
            abort();
    }
    edit.old_str = hfsb_buf_str(&old_str);
    run = te_edits(hfsb_buf_str(&file), &edit, 1, NULL);
    T_CHECK(run.st == HFSB_NOT_FOUND);
    T_CHECK(te_holds_text(run.err.msg,
                          ":\n... (29 lines as in old_str)\n30\tline29"));
    T_CHECK(te_holds_text(run.err.msg, "\n32\tline31(with, some, words, in, "
                                       "it);\n... (8 lines as in old_str)\n"));
    T_CHECK(!te_holds_text(run.err.msg, "call read"));
    te_free(&run);
    hfsb_buf_free(&file);
    hfsb_buf_free(&old_str);
}

static void hints_name_the_read_call_when_lines_are_missing(void) {
    hfsb_buf  file = HFSB_INIT, old_str = HFSB_INIT;
    hfsb_edit edit = HFSB_INIT;
    te_run    run;
    size_t    i;
    for (i = 0; i < 30; i++) {
        if (hfsb_buf_printf(&file, "line%zu(with, some, words, in, it);\n",
                            i) != HFSB_OK ||
            hfsb_buf_printf(&old_str, "line%zu(with, some, swords, in);\n",
                            i) != HFSB_OK)
            abort();
    }
    edit.old_str = hfsb_buf_str(&old_str);
    run = te_edits(hfsb_buf_str(&file), &edit, 1, NULL);
    T_CHECK(te_holds_text(run.err.msg, "\n... to line 30\n"));
    T_CHECK(te_holds_text(run.err.msg, "\nTo see the place call read with "
                                       "offset=1, limit=34."));
    te_free(&run);
    hfsb_buf_free(&file);
    hfsb_buf_free(&old_str);
}

static void hints_show_lines_with_unclear_indentation(void) {
    static const char *const spaces[] = {
        "old_str not found in file. Lines 2-4 are the same but for their "
        "indentation, and it is not clear where to put line 2 of new_str. The "
        "file indents with spaces:\n2\t a\n3\t    b\n4\t  c\nSend old_str "
        "and new_str with the indentation and the blank lines of these. "
        "Nothing was changed."};
    static const char *const tabs[] = {
        "The file indents with tabs:\n1\t\ta\n2\t\tb\n"};
    static const char *const none[] = {
        "The file has them without indentation:\n1\ta\n"};
    check_hint("z\n a\n    b\n  c\n", "a\nb\nc", "a\nx\nb\nc", spaces, 1);
    check_hint("\ta\n\tb\n", "    a\n    b\n", "    a\n      c\n", tabs, 1);
    check_hint("a\nb\n", "  a\n    b\n", " a\n c\n  b\n", none, 1);
}

static void hints_quote_the_omission_line(void) {
    static const char *const parts[] = {
        "\"// ... existing code ...\"", "exact=true writes the line",
        "Nothing was changed."};
    check_hint("f();\n", "f();\n", "g();\n  // ... existing code ...  \n",
               parts, 3);
}

/* The lines that an edit changes, from 1 on: first to last; false when they
   are not known. */
static bool changed_lines(hfsb_str before, hfsb_str after, size_t *first,
                          size_t *last) {
    size_t head = 0, tail = 0;
    size_t least = before.len < after.len ? before.len : after.len;
    while (head < least && before.ptr[head] == after.ptr[head]) head++;
    while (tail < least - head && before.ptr[before.len - 1 - tail] ==
                                      after.ptr[after.len - 1 - tail])
        tail++;
    *first = 1 + te_lines_before(before, head);
    *last = 1 + te_lines_before(before, before.len - tail);
    return after.len > 0;
}

/* True when the message shows a line, as read does, in that range. */
static bool shows_line(const char *msg, size_t first, size_t last) {
    hfsb_str rest = hfsb_cstr(msg), line;
    for (line = te_line(&rest); line.len; line = te_line(&rest)) {
        size_t number;
        if (te_number(&line, "", &number) &&
            hfsb_str_starts(line, HFSB_LIT("\t")) && number >= first &&
            number <= last)
            return true;
    }
    return false;
}

/* Edits of real commits, damaged as models do it: a refusal shows the place
   that was meant. */
static void refusals_of_real_edits_show_the_place(void) {
    hfsb_buf file = HFSB_INIT;
    hfsb_str rest;
    size_t   refused = 0, shown = 0, first, last, around;
    if (!t_data_file("data/edit_real.jsonl", &file)) return;
    for (rest = hfsb_buf_str(&file); rest.len;) {
        hfsb_json_doc doc = HFSB_INIT;
        hfsb_edit     edit = HFSB_INIT;
        hfsb_str      content, line = te_line(&rest);
        te_run        run;
        if (hfsb_json_parse(line, NULL, &doc, NULL) == HFSB_OK &&
            hfsb_edit_from_json(doc.root, &edit, NULL) == HFSB_OK) {
            content = hfsb_json_str(hfsb_json_get(doc.root, "content"),
                                    HFSB_LIT(""));
            run = te_edits(content, &edit, 1, "x.c");
            if (run.st == HFSB_NOT_FOUND &&
                changed_lines(content,
                              hfsb_json_str(hfsb_json_get(doc.root, "result"),
                                            HFSB_LIT("")),
                              &first, &last) &&
                !te_holds_text(run.err.msg, "Otherwise old_str is right")) {
                around = hfsb_str_count_byte(edit.old_str, '\n') + 1;
                refused++;
                shown += shows_line(run.err.msg,
                                    first > around ? first - around : 1,
                                    last + around);
            }
            te_free(&run);
        }
        hfsb_json_free(&doc);
    }
    hfsb_buf_free(&file);
    T_CHECK(refused > 100 && shown * 100 >= refused * 99);
    if (shown * 100 < refused * 99)
        printf("  %zu of %zu show the place\n", shown, refused);
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

/* Refuses an edit whose sender used options; the message is in *err. */
static hfsb_status refuse_options(const char *file, const char *old_str,
                                  const char *new_str, hfsb_err *err) {
    hfsb_edit_opts opts = HFSB_INIT;
    hfsb_edit      edit = HFSB_INIT;
    hfsb_buf       out = HFSB_INIT;
    hfsb_status    st;
    opts.names = HFSB_EDIT_NAMES_FLAGS;
    edit.old_str = hfsb_cstr(old_str);
    edit.new_str = hfsb_cstr(new_str);
    st = hfsb_edit_apply(hfsb_cstr(file), &edit, 1, &opts, &out, NULL, err);
    hfsb_buf_free(&out);
    return st;
}

static void refusals_name_options_for_the_command_line(void) {
    static const struct {
        const char *file, *old_str, *new_str, *part;
    } rows[] = {
        {"a\nb\na\n", "a", "c", "--old appears 2 times. Use --replace-all or"},
        {"a\nb\na\n", "a", "c", "or give --line N for the one"},
        {"a\nb\na\n", "a", "c", "or set --replace-all to change all"},
        {"alpha\nbeta\n", "nothing like it", "c", "--old not found in file."},
        {"alpha\nbeta\n", "nothing like it", "c", "copy --old from it"},
        {"alpha\n", "alpha", "alpha", "--old and --new must differ."},
        {"alpha\n", "", "b", "use `hfsb write`; to insert text give the text "
                             "before it as --old and --mode append_after."},
        {"f(a)\nf(b)\n", "f(a)\nf(b)", "f(a)\n// ... rest of the code ...",
         "; --exact writes the line."}};
    size_t   i;
    hfsb_err err;
    for (i = 0; i < TE_COUNT(rows); i++) {
        hfsb_status st = refuse_options(rows[i].file, rows[i].old_str,
                                        rows[i].new_str, &err);
        T_CHECK(st != HFSB_OK);
        T_CHECK(te_holds_text(err.msg, rows[i].part));
        T_CHECK(!te_holds_text(err.msg, "_str"));
        T_CHECK(!te_holds_text(err.msg, "=true"));
    }
}

int main(void) {
    T_RUN(refusals_name_options_for_the_command_line);
    T_RUN(hints_show_the_closest_lines);
    T_RUN(hints_find_lines_of_any_script);
    T_RUN(hints_name_the_first_difference);
    T_RUN(hints_show_a_difference_in_a_long_line);
    T_RUN(hints_show_a_part_of_an_endless_line);
    T_RUN(hints_name_a_difference_that_is_everywhere);
    T_RUN(hints_choose_the_place_with_most_bytes_the_same);
    T_RUN(hints_accept_parts_of_the_first_and_last_line);
    T_RUN(hints_show_blank_lines_as_far_as_old_str_has_them);
    T_RUN(hints_show_a_line_that_is_common);
    T_RUN(hints_show_one_place_only);
    T_RUN(hints_report_marks_that_are_not_in_the_file);
    T_RUN(hints_distinguish_tabs_and_spaces);
    T_RUN(hints_show_head_to_tail_of_lines_that_are_apart);
    T_RUN(hints_name_the_place_of_distant_lines);
    T_RUN(hints_find_the_difference_in_a_long_text);
    T_RUN(hints_report_new_str_in_the_file);
    T_RUN(hints_do_not_take_a_rest_for_an_edit_made_before);
    T_RUN(hints_do_not_name_the_line_shown_as_another);
    T_RUN(hints_list_the_places_of_an_ambiguous_match);
    T_RUN(hints_list_ten_places_and_count_the_rest);
    T_RUN(hints_show_odd_bytes_by_their_code);
    T_RUN(hints_leave_out_lines_that_are_the_same);
    T_RUN(hints_name_the_read_call_when_lines_are_missing);
    T_RUN(hints_show_lines_with_unclear_indentation);
    T_RUN(hints_quote_the_omission_line);
    T_RUN(refusals_of_real_edits_show_the_place);
    T_RUN(any_refusal_is_short_and_utf8);
    return T_END();
}
