/* test_patch_hunks.c - hunks are found and written like edits: rungs,
   indentation, anchors, several places, what is refused. */
#include "../support/t_patch_cases.h"

/* ---- the rungs of edits ---- */

static void hunks_climb_the_ladder_of_edits(void) {
    static const patch_case list[] = {
        /* blanks inside a line; the file's stay where the line does */
        {UPDATE " int  a;\n-int  b;\n+int  c;\n",
         ONE("f", "int a;\nint b;\n"), FUZZY("int a;\nint c;\n")},
        /* blank lines at the edges */
        {UPDATE " \n-alpha\n+beta\n \n", ONE("f", "x\nalpha\ny\n"),
         FUZZY("x\nbeta\ny\n")},
        /* line numbers of a listing */
        {UPDATE " 7\talpha\n-8\tbeta\n+8\tBETA\n",
         ONE("f", "alpha\nbeta\n"), HFSB_OK, NULL, 0,
         ONE("f", "alpha\nBETA\n"), true},
        {UPDATE "-7\talpha\n-8\tbeta\n+ALPHA\n", ONE("f", "alpha\nbeta\n"),
         FUZZY("ALPHA\n")},
        {UPDATE " 7\talpha\n-8\tbeta\n+BETA\n", ONE("f", "alpha\nbeta\n"),
         REFUSED(HFSB_NOT_FOUND, "was not found", 3)},
        {UPDATE " 7\talpha\n-8\tgamma\n+8\tBETA\n",
         ONE("f", "alpha\nbeta\n"),
         REFUSED(HFSB_NOT_FOUND, "was not found", 3)},
        /* numbers that are the file's */
        {UPDATE "-7\talpha\n+7\tbeta\n", ONE("f", "7\talpha\n"),
         BECOMES("7\tbeta\n")},
        /* whole lines only */
        {UPDATE "-b\n+c\n", ONE("f", "ab\nb\n"), BECOMES("ab\nc\n")},
        {UPDATE " b\n-c\n+d\n", ONE("f", "ab\nc\n"),
         REFUSED(HFSB_NOT_FOUND, "was not found", 3)},
        {UPDATE "-b\n+c\n", ONE("f", "a b"),
         REFUSED(HFSB_NOT_FOUND, "was not found", 3)},
        {UPDATE " b\n-\xE2\x80\x8B" "c\n+d\n",
         ONE("f", "\xE2\x80\x8B" "b\nc\n"), FUZZY("\xE2\x80\x8B" "b\nd\n")},
        /* which line stays is what the marks say */
        {UPDATE "-same\n same\n", ONE("f", "same \nsame\n"),
         FUZZY("same\n")},
        {UPDATE " same\n-same\n", ONE("f", "same \nsame\n"),
         FUZZY("same \n")},
        /* an added line is put in as it is but for its indentation */
        {UPDATE "-say \"x\"\n+say \"y\"\n",
         ONE("f", "say \xE2\x80\x9Cx\xE2\x80\x9D\n"), FUZZY("say \"y\"\n")},
    };
    check_bodies(list, TE_COUNT(list));
}

static void added_lines_are_indented_as_the_file_is(void) {
    static const char go[] = "func f() {\n\tx := 1\n\treturn x\n}\n";
    static const char py[] = "class A:\n    def f(self):\n        a()\n"
                             "        b()\n";
    static const patch_case list[] = {
        {UPDATE "     x := 1\n+    y := 2\n     return x\n", ONE("f", go),
         FUZZY("func f() {\n\tx := 1\n\ty := 2\n\treturn x\n}\n")},
        {UPDATE " func f() {\n-    x := 1\n+    if y {\n+        x := 1\n"
                "+    }\n     return x\n",
         ONE("f", go),
         FUZZY("func f() {\n\tif y {\n\t\tx := 1\n\t}\n\treturn x\n}\n")},
        {UPDATE " def f(self):\n+    if 1:\n+        c()\n     a()\n",
         ONE("f", py),
         FUZZY("class A:\n    def f(self):\n        if 1:\n"
               "            c()\n        a()\n        b()\n")},
        {UPDATE "-    a()\n+    c()\n     b()\n", ONE("f", py),
         FUZZY("class A:\n    def f(self):\n        c()\n        b()\n")},
        {UPDATE "-a()\n-b()\n", ONE("f", py),
         FUZZY("class A:\n    def f(self):\n")},
        /* context that is off does not move what is right */
        {UPDATE "     def f(self):\n-        a()\n+        c()\n       b()\n",
         ONE("f", py),
         FUZZY("class A:\n    def f(self):\n        c()\n        b()\n")},
    };
    check_bodies(list, TE_COUNT(list));
}

static void lines_without_a_clear_indentation_are_refused(void) {
    static const char two[] = "\tif a {\n\t\tone()\n\t}\n}\n"
                              "func g() {\n}\n";
    static const patch_case list[] = {
        {UPDATE " one:\n+      x\n   two\n", ONE("f", "  one:\n  two\n"),
         REFUSED(HFSB_REFUSED, "the lines from line 1 on are the same but "
                               "for their indentation, and it is not clear "
                               "where to put \"x\". The file indents with "
                               "spaces:\n1\t  one:\n2\t  two\nSend the hunk "
                               "with the indentation and the blank lines of "
                               "these. Nothing was changed.",
                 3)},
        /* one old line is off, the new line is not */
        {UPDATE " - a\n+        - b\n", ONE("f", "x:\n        - a\n"),
         REFUSED(HFSB_REFUSED, "it is not clear where to put \"", 3)},
        {UPDATE " - a\n+- b\n", ONE("f", "x:\n        - a\n"),
         FUZZY("x:\n        - a\n        - b\n")},
        /* a line that is off is replaced by several */
        {UPDATE "-if a:\n-        b()\n+if c:\n+        if a:\n"
                "+            b()\n",
         ONE("f", "x\n    if a:\n        b()\n"),
         REFUSED(HFSB_REFUSED, "where to put \"if c:\"", 3)},
        /* what the joiner hides may be meant */
        {UPDATE "-if a:\n+if b:\n",
         ONE("f", "  if\xE2\x80\x8D a:\n    if a:\n"),
         REFUSED(HFSB_AMBIGUOUS, "", 3)},
        /* one hunk is moved, the other gives no sign */
        {UPDATE "     if a {\n-        one()\n+        two()\n     }\n"
                "@@\n func g() {\n+    three()\n }\n",
         ONE("f", two),
         REFUSED(HFSB_REFUSED, "the hunk at line 7 of the patch matches as "
                               "it is indented, but that at line 3", 7)},
        {UPDATE "     if a {\n-        one()\n+        two()\n     }\n"
                "@@\n-func g() {\n+func h() {\n }\n",
         ONE("f", two),
         FUZZY("\tif a {\n\t\ttwo()\n\t}\n}\nfunc h() {\n}\n")},
        /* tabs for spaces on one line are a sign, too; blanks are not */
        {UPDATE " a\n     b\n-c\n+C\n@@\n x\n+    y\n",
         ONE("f", "a\n\tb\nc\nx\n"),
         REFUSED(HFSB_REFUSED, "matches as it is indented", 7)},
        {UPDATE " a\n    b\n-c\n+C\n@@\n x\n+    y\n",
         ONE("f", "a\n    b\nc\nx\n"),
         FUZZY("a\n    b\nC\nx\n    y\n")},
        /* the other shows that it is right */
        {UPDATE "-one\n+two\n@@\n if b:\n-    three\n+    four\n",
         ONE("f", "if a:\n    one\nif b:\n    three\n"),
         FUZZY("if a:\n    two\nif b:\n    four\n")},
        {UPDATE "-one\n+two\n@@\n if b:\n+c\n",
         ONE("f", "if a:\n    one\nif b:\n    three\n"),
         REFUSED(HFSB_REFUSED, "matches as it is indented", 5)},
        /* brackets show nothing */
        {UPDATE "-one\n+two\n@@\n   }\n }\n+c\n",
         ONE("f", "if a:\n    one\n  }\n}\n"),
         REFUSED(HFSB_REFUSED, "matches as it is indented", 5)},
    };
    check_bodies(list, TE_COUNT(list));
}

/* ---- guards ---- */

static void omitted_code_is_refused(void) {
    static const char text[] = "int f(void) {\n    a();\n    b();\n}\n";
    static const patch_case list[] = {
        {UPDATE " int f(void) {\n-    a();\n-    b();\n"
                "+    // ... existing code ...\n }\n",
         ONE("f", text),
         REFUSED(HFSB_REFUSED, "has a line that stands for code left out: "
                               "\"// ... existing code ...\"", 3)},
        {UPDATE "@@ int f(void) {\n+    // ... existing code ...\n",
         ONE("f", text), REFUSED(HFSB_REFUSED, "code left out", 3)},
        /* it is in the file, or ordinary text */
        {UPDATE " // ... existing code ...\n-a\n+b\n",
         ONE("f", "// ... existing code ...\na\n"),
         BECOMES("// ... existing code ...\nb\n")},
        {"*** Update File: f.md\n-a\n+// ... existing code ...\n",
         ONE("f.md", "a\n"), HFSB_OK, NULL, 0,
         ONE("f.md", "// ... existing code ...\n"), false},
    };
    check_bodies(list, TE_COUNT(list));
}

static void hunks_applied_before_are_refused(void) {
    static const patch_case list[] = {
        {UPDATE " a\n+inserted line\n", ONE("f", "a\ninserted line\nb\n"),
         REFUSED(HFSB_REFUSED, "is already applied: the file has its new "
                               "lines at line 1", 3)},
        {UPDATE "+inserted line\n b\n", ONE("f", "a\ninserted line\nb\n"),
         REFUSED(HFSB_REFUSED, "new lines at line 2", 3)},
        {UPDATE "@@ a\n+inserted line\n", ONE("f", "a\ninserted line\nb\n"),
         REFUSED(HFSB_REFUSED, "is already applied", 3)},
        {UPDATE "@@\n+inserted line\n", ONE("f", "a\ninserted line\n"),
         REFUSED(HFSB_REFUSED, "new lines at line 2", 3)},
        {UPDATE "@@\n+inserted line\n", ONE("f", "an inserted line\n"),
         BECOMES("an inserted line\ninserted line\n")},
        {UPDATE " a\n+inserted line\n b\n", ONE("f", "a\ninserted line\nb\n"),
         REFUSED(HFSB_NOT_FOUND, "was not found", 3)},
        /* too little to be sure */
        {UPDATE " a\n+}\n", ONE("f", "a\n}\n"), BECOMES("a\n}\n}\n")},
        {UPDATE "@@ a\n+}\n", ONE("f", "a\n}\n"), BECOMES("a\n}\n}\n")},
    };
    check_bodies(list, TE_COUNT(list));
}

/* ---- anchors ---- */

static void anchors_above_the_last_hunk_are_still_true(void) {
    static const char text[] = "int f(void)\n{\n  a();\n  b();\n  c();\n}\n";
    static const patch_case list[] = {
        {UPDATE "@@ int f(void)\n-  a();\n+  A();\n@@ int f(void)\n-  c();\n"
                "+  C();\n",
         ONE("f", text),
         BECOMES("int f(void)\n{\n  A();\n  b();\n  C();\n}\n")},
        /* then the place must be the only one */
        {UPDATE "@@ one\n-a\n+A\n@@ one\n-b\n+B\n",
         ONE("f", "one\na\nb\ntwo\nb\n"),
         REFUSED(HFSB_AMBIGUOUS, "more than one place (2", 6)},
        /* above and below: both are meant */
        {UPDATE "@@ one\n-a\n+A\n@@ one\n-b\n+B\n",
         ONE("f", "one\na\nb\none\nb\n"),
         REFUSED(HFSB_AMBIGUOUS, "more than one place (2", 6)},
        {UPDATE "@@ one\n-a\n+A\n@@ one\n-b\n+B\n",
         ONE("f", "one\na\nb\none\nc\n"), BECOMES("one\nA\nB\none\nc\n")},
        {UPDATE "@@ one\n-a\n+A\n@@ one\n-b\n+B\n",
         ONE("f", "one\na\none\nb\nb\n"), BECOMES("one\nA\none\nB\nb\n")},
        /* nested: the first above, the second below */
        {UPDATE "@@ one\n-a\n+A\n@@ one\n@@ two\n-b\n+B\n",
         ONE("f", "one\na\nb\ntwo\nb\n"), BECOMES("one\nA\nb\ntwo\nB\n")},
        /* additions alone need their line */
        {UPDATE "@@ one\n-a\n+A\n@@ one\n+b\n", ONE("f", "one\na\n"),
         REFUSED(HFSB_NOT_FOUND, "no line reads \"one\" after the hunk "
                                 "before it.", 6)},
    };
    check_bodies(list, TE_COUNT(list));
}

static void anchors_may_be_a_part_of_one_line(void) {
    static const char text[] = "def add_all(x):\n    y\ndef add(a, b):\n"
                               "    y\n";
    static const patch_case list[] = {
        {UPDATE "@@ def add\n-    y\n+    z\n", ONE("f", text),
         BECOMES("def add_all(x):\n    y\ndef add(a, b):\n    z\n")},
        {UPDATE "@@ def add\n+    z\n", ONE("f", text),
         BECOMES("def add_all(x):\n    y\ndef add(a, b):\n    z\n    y\n")},
        {UPDATE "@@ def\n-    y\n+    z\n", ONE("f", text),
         REFUSED(HFSB_NOT_FOUND, "several lines contain \"def\", the first "
                                 "is line 1. The text after @@ must be", 3)},
        {UPDATE "@@ ad\n-    y\n+    z\n", ONE("f", text),
         REFUSED(HFSB_NOT_FOUND, "no line reads \"ad\"", 3)},
        /* twice on one line is one line */
        {UPDATE "@@ b\n-y\n+z\n", ONE("f", "a b b\ny\n"),
         BECOMES("a b b\nz\n")},
        /* its line repeated as context */
        {UPDATE "@@ f(b)\n def f(b):\n-  y\n+  z\n",
         ONE("f", "def f(a):\n  y\ndef f(b):\n  y\n"),
         BECOMES("def f(a):\n  y\ndef f(b):\n  z\n")},
    };
    check_bodies(list, TE_COUNT(list));
}

/* ---- several places ---- */

static void hunks_may_have_one_place_together(void) {
    static const patch_case list[] = {
        {UPDATE "-a\n+b\n@@\n-a\n+c\n", ONE("f", "a\nx\na\n"),
         BECOMES("b\nx\nc\n")},
        {UPDATE "-a\n+b\n@@\n-a\n+c\n", ONE("f", "a\nx\na\na\n"),
         REFUSED(HFSB_AMBIGUOUS, "the hunk at line 5 of the patch fits in "
                                 "more than one place (2).", 5)},
        /* the next hunk leaves room for one */
        {UPDATE "-a\n+b\n@@\n-c\n+d\n", ONE("f", "a\nc\na\n"),
         BECOMES("b\nd\na\n")},
        {UPDATE "-c\n+d\n@@\n-a\n+b\n", ONE("f", "a\nc\na\n"),
         BECOMES("a\nd\nb\n")},
        {UPDATE "-a\n+b\n@@\n-c\n+d\n", ONE("f", "a\na\nc\n"),
         REFUSED(HFSB_AMBIGUOUS, "lines 1, ", 3)},
        /* overlapping places are never sure */
        {UPDATE "-a\n-a\n+b\n@@\n-c\n+d\n", ONE("f", "a\na\na\nc\n"),
         REFUSED(HFSB_AMBIGUOUS, "at line 1, and again, overlapping "
                                 "itself.", 3)},
        /* an addition at the end does not count */
        {UPDATE "-a\n+b\n@@\n+z\n", ONE("f", "a\na\n"),
         REFUSED(HFSB_AMBIGUOUS, "place (2", 3)},
    };
    check_bodies(list, TE_COUNT(list));
}

/* ---- the report ---- */

static void check_change(const char *patch, const char *text, bool proven,
                         const char *note) {
    one_file          one = HFSB_INIT;
    disk              d = HFSB_INIT;
    hfsb_patch_files  files = HFSB_INIT;
    hfsb_patch_result r = HFSB_INIT;
    one.path = "f";
    one.text = text;
    d.files = &one;
    d.count = 1;
    files.read = read_file;
    files.user = &d;
    T_CHECK(hfsb_patch_apply(hfsb_cstr(patch), &files, &r, NULL) == HFSB_OK);
    T_CHECK(r.count == 1 && r.changes[0].proven == proven &&
            !strcmp(r.changes[0].note, note));
    if (r.count && strcmp(r.changes[0].note, note))
        printf("  %s\n", r.changes[0].note);
    hfsb_patch_free(&r);
}

#define BEGIN "*** Begin Patch\n" UPDATE
#define END   "*** End Patch\n"

/* A patch has no old_str and no new_str. */
static void refusals_speak_of_the_hunk(void) {
    static const char        text[] = "one();\ntwo();\nthree();\nfour();\n";
    static const patch_case list[] = {
        {UPDATE " one();\n-other(x);\n+two();\n three();\n", ONE("f", text),
         REFUSED(HFSB_NOT_FOUND, "\nIts new lines are already at line 1: was "
                                 "this hunk applied before?", 3)},
        {UPDATE " one();\n-three();\n+3\n four();\n", ONE("f", text),
         REFUSED(HFSB_NOT_FOUND, "\nThe hunk leaves out line 2 of the file.",
                 3)},
        {UPDATE "+0\n one();\n two();\n-none(of, these);\n three();\n",
         ONE("f", text),
         REFUSED(HFSB_NOT_FOUND, "\nLine 3 of the hunk's old lines is not "
                                 "there: none(of, these);", 3)},
        {UPDATE " One();\n-two();\n+2\n", ONE("f", text),
         REFUSED(HFSB_NOT_FOUND, "\nUpper and lower case differ, at line 1.",
                 3)},
        {UPDATE "-a(\\\"b\\\");\n+c\n", ONE("f", "a(\"b\");\n"),
         REFUSED(HFSB_NOT_FOUND, "\nThe hunk has backslashes before quotes "
                                 "where the file has none, at line 1. Check "
                                 "the new lines, too.", 3)},
        {UPDATE "-a(\"b\");\n+c\n", ONE("f", "a(\\\"b\\\");\n"),
         REFUSED(HFSB_NOT_FOUND, "where the hunk has none, at line 1.", 3)},
        {UPDATE "-zzz\n+c\n", ONE("f", text),
         REFUSED(HFSB_NOT_FOUND, "copy the old lines from it.", 3)},
        /* the lines shown are those that the patch has written */
        {UPDATE "-one();\n+1();\n" UPDATE "-one();\n+0();\n",
         ONE("f", text),
         REFUSED(HFSB_NOT_FOUND, "not found in the file as the patch has "
                                 "changed it so far. Nothing was changed.\n",
                 6)},
    };
    check_bodies(list, TE_COUNT(list));
}

static void exact_hunks_prove_what_they_change(void) {
    check_change(BEGIN " some line\n-other\n+new\n" END,
                 "some line\nother\n", true, "");
    check_change("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-the only line\n",
                 "the only line\n", true, "");
}

static void other_hunks_prove_nothing(void) {
    check_change(BEGIN "-short\n+new\n" END, "short\n", false, "");
    check_change(BEGIN "@@ some line\n+new\n" END, "some line\n", false, "");
    check_change(BEGIN "@@\n+new\n" END, "some line\n", false, "");
    check_change(BEGIN "@@ one\n-some line\n+new\n" END,
                 "one\nsome line\nsome line\n", false, "");
    check_change(BEGIN "-some line\n+new\n@@\n-some line\n+two\n" END,
                 "some line\nsome line\n", false, "");
    check_change("*** Begin Patch\n*** Delete File: f\n" END, "some line\n",
                 false, "");
}

static void notes_tell_what_was_ignored(void) {
    check_change(BEGIN "-some line\n+new\n" END, "some line  \n", false,
                 "(matched after trimming trailing whitespace)");
    check_change(BEGIN " some line\n+    new\n     other\n" END,
                 "some line\n\tother\n", false,
                 "(matched after trimming whitespace) (re-indented as the "
                 "file is)");
    check_change(BEGIN " some line\n-other\n+new\n@@\n-  it's\n+its\n" END,
                 "some line \nother\n  it\xE2\x80\x99s\n", false,
                 "(matched after trimming trailing whitespace) (matched "
                 "after unicode normalization)");
    check_change(BEGIN " 1\tsome line\n-2\tother\n+2\tnew\n" END,
                 "some line\nother\n", true,
                 "(line-number prefixes removed)");
}

int main(void) {
    T_RUN(hunks_climb_the_ladder_of_edits);
    T_RUN(added_lines_are_indented_as_the_file_is);
    T_RUN(lines_without_a_clear_indentation_are_refused);
    T_RUN(omitted_code_is_refused);
    T_RUN(hunks_applied_before_are_refused);
    T_RUN(anchors_above_the_last_hunk_are_still_true);
    T_RUN(anchors_may_be_a_part_of_one_line);
    T_RUN(hunks_may_have_one_place_together);
    T_RUN(refusals_speak_of_the_hunk);
    T_RUN(exact_hunks_prove_what_they_change);
    T_RUN(other_hunks_prove_nothing);
    T_RUN(notes_tell_what_was_ignored);
    return T_END();
}
