/* test_edit_refusals.c - refused edits: the code and the start of the message.
   The hints are in test_edit_hints.c. */
#include "../support/t_edit.h"

#define NBSP     "\xC2\xA0"
#define ELLIPSIS "\xE2\x80\xA6"
#define APOS     "\xE2\x80\x99"
#define ZWJ      "\xE2\x80\x8D"
#define SHY      "\xC2\xAD"

typedef struct refuse_case {
    const char    *content, *old_str, *new_str;
    hfsb_edit_mode mode;
    hfsb_status    code;
    const char    *start;
} refuse_case;

static void check_refusals(const refuse_case *list, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        hfsb_edit edit = te_make(list[i].old_str, list[i].new_str);
        te_run    run;
        bool      ok;
        edit.mode = list[i].mode;
        run = te_edits(hfsb_cstr(list[i].content), &edit, 1, "a/file.c");
        ok = run.st == list[i].code && te_begins(run.err.msg, list[i].start);
        T_CHECK(ok);
        if (!ok)
            printf("  case %zu: %s: %s%s\n", i, hfsb_status_text(run.st),
                   run.err.msg, run.out.ptr ? run.out.ptr : "");
        te_free(&run);
    }
}

static void edit_refuses_impossible_requests(void) {
    static const char differ[] = "old_str and new_str must differ.";
    static const char missing[] = "old_str not found in file. Nothing was";
    static const char twice[] =
        "old_str appears 2 times. Use replace_all=true or provide more "
        "context. Nothing was changed.";
    static const char empty[] = "old_str is empty but the file is not.";
    static const char nothing[] = "The edit changes nothing";
    static const char applied[] = "The change is already applied at line ";
    const hfsb_edit_mode put = HFSB_EDIT_REPLACE;
    const hfsb_edit_mode after = HFSB_EDIT_APPEND_AFTER;
    const hfsb_edit_mode before = HFSB_EDIT_PREPEND_BEFORE;
    const refuse_case list[] = {
        {"a\n", "a", "a", put, HFSB_REFUSED, differ},
        {"a\n", "zz", "zz", put, HFSB_REFUSED, differ},
        {"a\nb\n", "a\nb\n", "a\r\nb\r\n", put, HFSB_REFUSED, differ},
        {"a\rb\r", "a\nb", "a\rb", put, HFSB_REFUSED, differ},
        {"", "", "", put, HFSB_REFUSED, differ},
        {"a\n", "", "b", put, HFSB_REFUSED, empty},
        {"a\n", "", "b", after, HFSB_REFUSED, empty},
        {"a\n", "b", "c", put, HFSB_NOT_FOUND, missing},
        {"", "b", "c", put, HFSB_NOT_FOUND, missing},
        {"a\n", "a\nb", "c", put, HFSB_NOT_FOUND, missing},
        {"a\n", "  \n  ", "c", put, HFSB_NOT_FOUND, missing},
        {"a a\n", "a", "b", put, HFSB_AMBIGUOUS, twice},
        {"a a\n", "a", "b", after, HFSB_AMBIGUOUS, twice},
        {"a a\n", "a", "b", before, HFSB_AMBIGUOUS, twice},
        {"aba ba\n", "aba ba", "aba", after, HFSB_OK, ""},
        {"ababa\n", "aba", "b", put, HFSB_AMBIGUOUS, twice},
        {"a\na\na\n", "a\na\n", "b", put, HFSB_AMBIGUOUS, twice},
        {"a \nb\na\t\nb\n", "a\nb\n", "b", put, HFSB_AMBIGUOUS, twice},
        {"x" NBSP "y x" NBSP "y\n", "x y", "b", put, HFSB_AMBIGUOUS, twice},
        {"x  y; x   y\n", "x y", "b", put, HFSB_AMBIGUOUS, twice},
        {"\tx\n\ty\n\tx\n\ty\n", "x\ny\n", "z\n", put, HFSB_AMBIGUOUS,
         twice},
        {"\tx\n\tx\n\tx\n", "x\nx\n", "z\n", put, HFSB_AMBIGUOUS, twice},
        {"x\n  y\nx\n  y\n", "\nx\n\ty\n\n", "z\n", put, HFSB_AMBIGUOUS,
         twice},
        /* a tighter rung that matches once wins over a looser one */
        {"a b\na  b\n", "a b", "c", put, HFSB_OK, ""},
        {"a\n", "a", "", after, HFSB_REFUSED, nothing},
        {"it" APOS "s\n", "it's", "it" APOS "s", put, HFSB_REFUSED, nothing},
        {"a  \n", "a\t\n", "a  \n", put, HFSB_REFUSED, nothing},
        {"#a\n#include <stdio.h>\n", "#a\n", "#a\n#include <stdio.h>\n", put,
         HFSB_REFUSED, applied},
        {"#a\n#include <stdio.h>\n", "#a\n", "#include <stdio.h>\n", after,
         HFSB_REFUSED, applied},
        {"#include <stdio.h>\n#a\n", "#a\n", "#include <stdio.h>\n", before,
         HFSB_REFUSED, applied},
        {"#a\r\n#include <stdio.h>\r\n", "#a\n", "#include <stdio.h>\n",
         after, HFSB_REFUSED, applied},
        {"#include <stdio.h>\nlast", "last\n",
         "#include <stdio.h>\nlast\n", put, HFSB_REFUSED, applied},
        /* short insertions are often meant twice; elsewhere does not count */
        {"#a\n#b\n", "#a\n", "#b\n", after, HFSB_OK, ""},
        {"#include <stdio.h>\n#b\n#a\n", "#a\n", "#include <stdio.h>\n",
         after, HFSB_OK, ""},
        /* indentation that cannot be derived */
        {" a\n    b\n  c\n", "a\nb\nc\n", "a\nx\nb\nc\n", put, HFSB_REFUSED,
         "old_str not found in file. Lines 1-"},
        {"\ta\n\tb\n", "a\nb\n", "    a\n    c\n", put, HFSB_REFUSED,
         "old_str not found in file. Lines 1-"},
        {"a\n  b\n", "    a\n      b\n", "  a\n", put, HFSB_REFUSED,
         "old_str not found in file. Lines 1-"},
        {"\ta\n\tb\n", "    a\n    b\n", "    a\n      c\n", put,
         HFSB_REFUSED, "old_str not found in file. Lines 1-2 "},
        /* tabs of the file beside spaces of the caller */
        {"\ta = 1\n\tb = 2\n", "a = 1\nb = 2",
         "a = 1\nif x:\n    b = 2", put, HFSB_REFUSED,
         "old_str not found in file. Lines 1-2 "},
        /* three characters, though nine bytes: not yet "already applied" */
        {"a\n\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E\n", "a\n",
         "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E\n", after, HFSB_OK, ""},
        /* in the file, but as a part of other lines */
        {"f();\nx // existing code here\n// existing code here x\n", "f();",
         "// existing code here", put, HFSB_REFUSED, "new_str has a line"},
        /* line numbers hide nothing */
        {"x\n// keep\ny\n", "2\t// keep\n", "2\t// ... existing code ...\n",
         put, HFSB_REFUSED, "new_str has a line"},
    };
    check_refusals(list, TE_COUNT(list));
}

static void edit_refuses_indentation_in_doubt(void) {
    static const char lines[] = "old_str not found in file. Lines ";
#define IN_DOUBT(from, to, line) \
    "old_str not found in file. Lines " from "-" to " are the same but for " \
    "their indentation, and it is not clear where to put line " line " of "
    static const refuse_case list[] = {
        /* one line off, and new lines in the style of the file */
        {"for c in cs:\n    f(c)\n", "for c in cs:\n  f(c)",
         "for c in cs:\n  f(c)\n\nclass A:\n    def g(self):\n        pass",
         HFSB_EDIT_REPLACE, HFSB_REFUSED, IN_DOUBT("1", "2", "5")},
        {"\ta\n\tb\n", "\n    a\n    b\n", "\n    a\n\n      c\n",
         HFSB_EDIT_REPLACE, HFSB_REFUSED, IN_DOUBT("1", "2", "4")},
        {"\ta\n\n\tb\n", "\n\n    a\n    b\n", "\n\n    a\n    b\n      c\n",
         HFSB_EDIT_REPLACE, HFSB_REFUSED, IN_DOUBT("1", "3", "5")},
        {"a\n    b\n        c\n", "a\n        b\n",
         "a\n        B\n        x\n", HFSB_EDIT_REPLACE, HFSB_REFUSED,
         lines},
        /* an old line as it shall become */
        {"def t():\n    c = C()\n    r = c.get()\n",
         "    c = C()\n        r = c.get()",
         "    with C() as c:\n        r = c.get()", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, IN_DOUBT("2", "3", "2")},
        {"def t():\n    c = C()\n\n    r = c.get()\n",
         "    c = C()\n\n        r = c.get()",
         "    with C() as c:\n\n        r = c.get()", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, IN_DOUBT("2", "4", "3")},
        {"t:\n  a\n  b\n    c\n  d\n", "  a\n  b\n  c\n  d\n",
         "  a\n  B\n  B\n  c\n  d\n", HFSB_EDIT_REPLACE, HFSB_REFUSED,
         lines},
        {"  a\n    b\n  }\n}\n", "  a\n    b\n}\n",
         "  a\n    b\n\n  x\n}\n", HFSB_EDIT_REPLACE, HFSB_REFUSED, lines},
        /* as deep as a line next to it that is off */
        {"{\n  a\n    b\n  c\n}\n", "{\n  a\n  b\n  c\n}\n",
         "{\n  a\n  b\n  x\n  c\n}\n", HFSB_EDIT_REPLACE, HFSB_REFUSED,
         lines},
        {"{\n  a\n    b\n  c\n}\n", "{\n  a\n  b\n  c\n}\n",
         "{\n  a\n  x\n  b\n  c\n}\n", HFSB_EDIT_REPLACE, HFSB_REFUSED,
         lines},
        {"\ta\n\n\tb\n\tc\n", "\t\ta\n\n\tb\n\tc\n",
         "\t\ta\n\n\t\tx\n\tb\n\tc\n", HFSB_EDIT_REPLACE, HFSB_REFUSED,
         lines},
        {"{\n  a\n    b\n  c\n}\n", "{\n  a\n  b\n  c\n}\n",
         "{\n  a\n  x\n      y\n  b\n  c\n}\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, IN_DOUBT("1", "5", "3")},
        {"{\n  a\n\n    b\n  c\n}\n", "{\n  a\n\n  b\n  c\n}\n",
         "{\n  a\n  x\n      y\n\n  b\n  c\n}\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, IN_DOUBT("1", "6", "3")},
        {"f:\n    a\n    b\n", "    a\n      b\n", "      x\n",
         HFSB_EDIT_APPEND_AFTER, HFSB_REFUSED, lines},
        /* a line in place of a blank one */
        {" a\n\n    b\n  c\n", "a\n\nb\nc\n", "a\nx\nb\nc\n",
         HFSB_EDIT_REPLACE, HFSB_REFUSED, IN_DOUBT("1", "4", "2")},
        /* a flat line, some in the file deeper */
        {"a\n  b\nc\n", "a\nb\nc\n", "a\nb\nc\nx\ny\n",
         HFSB_EDIT_REPLACE, HFSB_REFUSED, lines},
        /* tabs for spaces, and the same spaces for spaces */
        {"\ta\n    b\nc\n", "    a\n    b\nc\n", "    a\n    b\nc\n    x\n",
         HFSB_EDIT_REPLACE, HFSB_REFUSED, lines},
        {"\ta\n\tb\n    c\n", "\ta\n    b\n    c\n",
         "\ta\n    b\n    c\n        x\n", HFSB_EDIT_REPLACE, HFSB_REFUSED,
         lines},
        {"\ta\n\tb\n", "\ta\n  b\n", "\ta\n  b\n                    x\n",
         HFSB_EDIT_REPLACE, HFSB_REFUSED, lines},
        {"\ta\n\tb\n", "\ta\n    b\n", "\ta\n    b\n  x\n",
         HFSB_EDIT_REPLACE, HFSB_REFUSED, lines},
        /* a prefix, or other units? */
        {"f\n  a\n    b\n", "    a\n", "    a\n        x\n",
         HFSB_EDIT_REPLACE, HFSB_REFUSED, lines},
        /* the texts were dedented apart */
        {"  f() {\n    a\n    b\n  }\n", "a\nb\n", "  a\n  b\n}\nc\n",
         HFSB_EDIT_REPLACE, HFSB_REFUSED, IN_DOUBT("2", "3", "1")},
        {"    if\n      b\n    }\n    c\n", "  b\n}\nc\n", "b\n",
         HFSB_EDIT_REPLACE, HFSB_REFUSED, lines},
        {"  a,\n  b,\n", "a,\nb,\n", "  x,\n} y\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, lines},
        {"  a\n  b\n", "a\nb\n", "    x\n  y\n  a\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, IN_DOUBT("1", "2", "3")},
        {"a\nb\n", "  a\n  b\n", "    a\n    b\n  c\n",
         HFSB_EDIT_REPLACE, HFSB_REFUSED, IN_DOUBT("1", "2", "1")},
        {" a\n    b\n         c\n", "a\n  b\n    c\n",
         "  a\n  b\n    c\nx\n", HFSB_EDIT_REPLACE, HFSB_REFUSED,
         IN_DOUBT("1", "3", "1")},
        {"\t\ta\n\t\t\tb\n", "    a\n        b\n",
         "        a\n            b\n    c\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, IN_DOUBT("1", "2", "1")},
        /* but a line that is put around others explains their depth */
        {"  a\n  b\n", "a\nb\n", "if x\n  a\n  b\n", HFSB_EDIT_REPLACE,
         HFSB_OK, ""},
        {"  if x\n    a\n  b\n", "if x\n  a\nb\n", "a\nb\n",
         HFSB_EDIT_REPLACE, HFSB_OK, ""},
        {"  }\n", "}\n", "  a\n}\n", HFSB_EDIT_REPLACE, HFSB_OK, ""},
    };
    check_refusals(list, TE_COUNT(list));
#undef IN_DOUBT
}

static void edit_refuses_changes_at_blank_lines_that_differ(void) {
    static const char clear[] =
        "old_str not found in file. Lines 1-3 are the same but for blank "
        "lines, and the change touches one of those: it is not clear how "
        "many belong before line 2 of new_str. ";
    static const char touched[] =
        "old_str not found in file. Lines 1-";
    static const refuse_case list[] = {
        {"a\n\nb\n", "a\nb\n", "a\nx\nb\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, clear},
        {"a\n\nb\n", "a\nb\n", "a\nx\n\nb\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, clear},
        {"a\n\n\nb\n", "a\n\nb\n", "a\n\nx\n\nb\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, touched},
        {"a\n\n\nb\n", "a\n\nb\n", "a\nx\n\nb\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, touched},
        {"a\n\n\nb\n", "a\n\nb\n", "a\nb\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, touched},
        {"a\n\nb\n", "a\nb\n", "a\n\n\nb\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, touched},
        {"a\n\nb\n", "a\nb\n", "a\n\nB\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, touched},
        {"a\n\nb\n", "a\nb\n", "a\n", HFSB_EDIT_REPLACE, HFSB_REFUSED,
         "old_str not found in file. Lines 1-3 are the same but for blank "
         "lines, and the change touches one of those: it is not clear how "
         "many belong before line 1 of new_str. "},
        {"a\nb\n\nc\n", "a\nb\nc\n", "a\nb\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED,
         "old_str not found in file. Lines 1-4 are the same but for blank "
         "lines, and the change touches one of those: it is not clear how "
         "many belong before line 2 of new_str. "},
        {"a\nb\n\nc\n", "\na\nb\nc\n", "\na\nB\n\nc\n",
         HFSB_EDIT_REPLACE, HFSB_REFUSED,
         "old_str not found in file. Lines 1-4 are the same but for blank "
         "lines, and the change touches one of those: it is not clear how "
         "many belong before line 5 of new_str. "},
        {"a\n\nb\n", "a\nb\n", "b\n", HFSB_EDIT_REPLACE, HFSB_REFUSED,
         touched},
        {"a\n\nb\nc\n", "a\nb\nc\n", "a\nc\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, touched},
        {"a\nb\n\nc\n", "a\nb\nc\n", "a\nc\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, touched},
        {"a\n\nb\nc\n", "a\nb\nc\n", "A\nB\nc\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED, touched},
        {"x\na\nb\n\nc\ny\n", "x\na\nb\nc\ny\n", "x\nA\nB\nC\ny\n",
         HFSB_EDIT_REPLACE, HFSB_REFUSED, touched},
        /* blank lines at the edges that only one text has */
        {"\na\n\nb\n", "\na\nb\nc\n", "a\nb\n", HFSB_EDIT_REPLACE,
         HFSB_NOT_FOUND, ""},
        {"x\n\na\n\nb\ny\n", "\na\nb\n", "a\nc\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED,
         "old_str not found in file. Lines 3-5 are the same but for blank"},
        {"x\na\n\nb\n\ny\n", "a\nb\n\n", "a\nc\n", HFSB_EDIT_REPLACE,
         HFSB_REFUSED,
         "old_str not found in file. Lines 2-4 are the same but for blank"},
        {"a\n\nb\na\n\n\nb\n", "a\nb\n", "c\n", HFSB_EDIT_REPLACE,
         HFSB_AMBIGUOUS, "old_str appears 2 times."},
    };
    check_refusals(list, TE_COUNT(list));
}

static void edit_refuses_all_places_if_one_is_in_doubt(void) {
    hfsb_edit edit = te_make("    a\n    b\n", "    a\n    x\n    b\n");
    te_run    run;
    edit.replace_all = true;
    run = te_edits(HFSB_LIT("\ta\n\tb\n\n  a\n b\n"), &edit, 1, NULL);
    T_CHECK(run.st == HFSB_REFUSED &&
            te_begins(run.err.msg, "old_str not found in file. Lines 4-5 "));
    te_free(&run);
}

static void edit_counts_places_that_a_joiner_hides(void) {
    static const char twice[] = "old_str appears 2 times.";
    static const refuse_case list[] = {
        {"  me" ZWJ "ta:\n    a\nmeta:\n  a\n", "  meta:\n    a\n",
         "  meta:\n    b\n", HFSB_EDIT_REPLACE, HFSB_AMBIGUOUS, twice},
        {"a" SHY "b\na" NBSP "c\nab \n", "ab\t\n", "x\n",
         HFSB_EDIT_REPLACE, HFSB_AMBIGUOUS, twice},
        {"a" ZWJ "b\n", "ab\n", "x\n", HFSB_EDIT_REPLACE, HFSB_NOT_FOUND,
         "old_str not found"},
    };
    check_refusals(list, TE_COUNT(list));
}

static void edit_refuses_omitted_code(void) {
    static const char *const lines[] = {
        "// ... existing code ...",
        "# ... rest of the function ...",
        "/* ... remaining methods ... */",
        "<!-- ... existing content ... -->",
        "    // ... rest of code unchanged ...",
        "-- ... same as before ...",
        "# " ELLIPSIS " unchanged " ELLIPSIS,
        "// ...existing code...",
        "... rest of the file ...",
        "{/* ... existing code ... */}",
        "; ... other functions remain the same ...",
        "% ... keep existing code ...",
        "# ... (rest of the function) ...",
        "# ... (unchanged)",
        "# ... lines 10-20: unchanged ...",
        "# ... rest of f() ...",
        "# ... and all other methods ...",
        "# " ELLIPSIS " (remaining methods)",
        "// ... REST OF THE CLASS ...",
        /* without dots: a comment that says nothing else */
        "// rest of the code remains the same",
        "# rest of the code remains the same.",
        "// (rest of the method unchanged)",
        "// rest of code unchanged",
        "// existing code here",
        "# The rest of the file is unchanged",
        "// [existing code]",
        "/* (rest of the function) */",
        "<!-- existing content here -->",
        "// the rest stays the same",
        "# rest unchanged",
        "/* The rest is unchanged. */",
        "// remaining code omitted for brevity",
        "# other methods omitted for brevity",
        /* only dots */
        "// ...",
        "# " ELLIPSIS,
        "/* ... */",
        "{/* ... */}",
    };
    size_t i;
    for (i = 0; i < TE_COUNT(lines); i++) {
        hfsb_buf  text = HFSB_INIT, file = HFSB_INIT;
        hfsb_edit edit = te_make("f();\n", "");
        te_run    run;
        T_CHECK(hfsb_buf_printf(&text, "g();\n%s\nh();\n", lines[i]) ==
                HFSB_OK);
        edit.new_str = hfsb_buf_str(&text);
        run = te_edits(HFSB_LIT("f();\nz();\n"), &edit, 1, "x.c");
        T_CHECK(run.st == HFSB_REFUSED &&
                te_begins(run.err.msg, "new_str has a line that stands for "
                                       "code left out: \""));
        if (run.st != HFSB_REFUSED) printf("  %s\n", lines[i]);
        te_free(&run);
        /* it is in the file already */
        T_CHECK(hfsb_buf_printf(&file, "f();\n%s\n", lines[i]) == HFSB_OK);
        run = te_edits(hfsb_buf_str(&file), &edit, 1, "x.c");
        T_CHECK(run.st == HFSB_OK);
        te_free(&run);
        /* prose, and the caller's word */
        run = te_edits(HFSB_LIT("f();\n"), &edit, 1, "notes.md");
        T_CHECK(run.st == HFSB_OK);
        te_free(&run);
        run = te_edits(HFSB_LIT("f();\n"), &edit, 1, "notes.txt");
        T_CHECK(run.st == HFSB_OK);
        te_free(&run);
        edit.exact = true;
        run = te_edits(HFSB_LIT("f();\n"), &edit, 1, "x.c");
        T_CHECK(run.st == HFSB_OK);
        te_free(&run);
        hfsb_buf_free(&text);
        hfsb_buf_free(&file);
    }
}

static void edit_refuses_a_diff(void) {
    static const hfsb_edit_mode put = HFSB_EDIT_REPLACE;
    static const refuse_case    list[] = {
        {"a\n  b\nc\n", "a\n  b\n", " a\n-  b\n+  B\n", put, HFSB_REFUSED,
         "new_str looks like a diff: "},
        {"a\n\nb\n", "a\n\nb", " a\n\n-b\n+B", put, HFSB_REFUSED,
         "new_str looks like a diff: "},
        {"a\r\nb\r\n", "a\r\nb\r\n", "-a\r\n+A\r\n b\r\n", put,
         HFSB_REFUSED, "new_str looks like a diff: "},
        /* one kind of mark, a line without, nothing removed that was there */
        {"a\nb\n", "a\nb\n", "-a\n-b\n", put, HFSB_OK, ""},
        {"a\nb\n", "a\nb\n", "+a\n+b\n", put, HFSB_OK, ""},
        {"a\nb\n", "a\nb\n", "-a\n+b\nc\n", put, HFSB_OK, ""},
        {"a\nb\n", "a\nb\n", "-x\n+y\n", put, HFSB_OK, ""},
        {"a\n  b\n", "  b\n", "-b\n+c\n", put, HFSB_OK, ""},
        {"a\n\nb\n", "a\n\nb", "-\n+\n", put, HFSB_OK, ""},
    };
    hfsb_edit edit = te_make("a\n", "-a\n+b\n");
    te_run    run;
    check_refusals(list, TE_COUNT(list));
    edit.exact = true;
    run = te_edits(HFSB_LIT("a\nc\n"), &edit, 1, "x.c");
    T_CHECK(run.st == HFSB_OK && te_same(&run.out, HFSB_LIT("-a\n+b\nc\n")));
    te_free(&run);
}

int main(void) {
    T_RUN(edit_refuses_impossible_requests);
    T_RUN(edit_refuses_indentation_in_doubt);
    T_RUN(edit_refuses_changes_at_blank_lines_that_differ);
    T_RUN(edit_refuses_all_places_if_one_is_in_doubt);
    T_RUN(edit_counts_places_that_a_joiner_hides);
    T_RUN(edit_refuses_omitted_code);
    T_RUN(edit_refuses_a_diff);
    return T_END();
}
