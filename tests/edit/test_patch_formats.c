/* test_patch_formats.c - patches as unified diffs, git diffs and
   SEARCH/REPLACE blocks; what may be around a patch. */
#include "../support/t_patch_cases.h"

/* Whole patches. */
static void check_texts(const patch_case *list, size_t count) {
    size_t i;
    for (i = 0; i < count; i++)
        check_patch(list + i, hfsb_cstr(list[i].patch), i);
}

#define HEAD "--- a/f\n+++ b/f\n"
#define GIT  "diff --git a/f b/f\nindex 12..34 100644\n" HEAD

/* ---- diffs ---- */

static void unified_diffs_are_patches(void) {
    static const patch_case list[] = {
        {HEAD "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", ONE("f", "a\nb\n"),
         BECOMES("a\nB\n")},
        {GIT "@@ -1,2 +1,2 @@ int f(void)\n a\n-b\n+B\n",
         ONE("f", "a\nb\n"), BECOMES("a\nB\n")},
        {"--- f\t2024-01-01 10:00\n+++ f\t2024-01-02\n@@ -2 +2 @@\n-b\n+B\n",
         ONE("f", "a\nb\n"), BECOMES("a\nB\n")},
        {"--- a/f\n+++ a/f\n@@ -1 +1 @@\n-b\n+B\n", ONE("a/f", "b\n"),
         HFSB_OK, NULL, 0, ONE("a/f", "B\n"), false},
        {HEAD "@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+B\r\n", ONE("f", "a\nb\n"),
         BECOMES("a\nB\n")},
        /* a line of context whose blank was lost */
        {HEAD "@@ -1,3 +1,3 @@\n a\n\n-b\n+B\n", ONE("f", "a\n\nb\n"),
         BECOMES("a\n\nB\n")},
        /* the numbers may be wrong */
        {HEAD "@@ -90,9 +7,1 @@\n-b\n+B\n", ONE("f", "a\nb\n"),
         BECOMES("a\nB\n")},
        {HEAD "@@ ... @@\n-b\n+B\n", ONE("f", "a\nb\n"), BECOMES("a\nB\n")},
        {HEAD "@@ @@\n-b\n+B\n", ONE("f", "a\nb\n"), BECOMES("a\nB\n")},
        {HEAD "@@ -1 +1 @@\n-a\n+A\n@@ -3 +3 @@\n-c\n+C\n",
         ONE("f", "a\nb\nc\n"), BECOMES("A\nb\nC\n")},
        /* several files, with and without git's line */
        {HEAD "@@ -1 +1 @@\n-a\n+A\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-b\n+B\n",
         TWO("f", "a\n", "g", "b\n"), HFSB_OK, NULL, 0,
         TWO("f", "A\n", "g", "B\n"), false},
        {GIT "@@ -1 +1 @@\n-a\n+A\n\ndiff --git a/g b/g\n--- a/g\n+++ b/g\n"
             "@@ -1 +1 @@\n-b\n+B\n",
         TWO("f", "a\n", "g", "b\n"), HFSB_OK, NULL, 0,
         TWO("f", "A\n", "g", "B\n"), false},
        /* lines that look like heads */
        {HEAD "@@ -1,2 +1,2 @@\n--- sql\n+++ sql\n x\n",
         ONE("f", "-- sql\nx\n"), BECOMES("++ sql\nx\n")},
        /* a commit before it, a signature after it */
        {"From 12ab\nSubject: x\n\n---\n f | 2 +-\n\n" GIT
         "@@ -1 +1 @@\n-a\n+A\n-- \n2.39.2\n",
         ONE("f", "a\n"), BECOMES("A\n")},
        {HEAD "@@ -1,2 +1 @@\n-a\n--\n+A\n", ONE("f", "a\n-\n"),
         BECOMES("A\n")},
    };
    check_texts(list, TE_COUNT(list));
}

static void diffs_add_delete_and_rename(void) {
    static const patch_case list[] = {
        {"--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+x\n+\n", NO_FILES,
         HFSB_OK, NULL, 0, ONE("n", "x\n\n"), false},
        {"diff --git a/n b/n\nnew file mode 100644\nindex 0..1\n"
         "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n"
         "\\ No newline at end of file\n",
         NO_FILES, HFSB_OK, NULL, 0, ONE("n", "x"), false},
        {"diff --git a/n b/n\nnew file mode 100644\nindex 0..0\n", NO_FILES,
         HFSB_OK, NULL, 0, ONE("n", ""), false},
        {"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", ONE("f", "a\n"),
         REFUSED(HFSB_REFUSED, "there is such a file already", 0)},
        {"--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
         TWO("f", "a\nb\n", "g", ""), HFSB_OK, NULL, 0, ONE("g", ""), false},
        {"diff --git a/f b/f\ndeleted file mode 100644\nindex 1..0\n",
         TWO("f", "", "g", ""), HFSB_OK, NULL, 0, ONE("g", ""), false},
        {"--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
         ONE("f", "a\nb\nc\n"),
         REFUSED(HFSB_REFUSED, "f: the patch deletes this file but does not "
                               "remove all of its lines", 0)},
        {"--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-z\n", ONE("f", "a\n"),
         REFUSED(HFSB_NOT_FOUND, "was not found", 3)},
        {"diff --git a/f b/g\nsimilarity index 100%\nrename from f\n"
         "rename to g\n",
         ONE("f", "a\n"), HFSB_OK, NULL, 0, ONE("g", "a\n"), false},
        {"diff --git a/f b/g\nsimilarity index 90%\nrename from f\n"
         "rename to g\nindex 1..2 100644\n--- a/f\n+++ b/g\n"
         "@@ -1,2 +1,2 @@\n-a\n+A\n b\n",
         ONE("f", "a\nb\n"), HFSB_OK, NULL, 0, ONE("g", "A\nb\n"), false},
    };
    check_texts(list, TE_COUNT(list));
}

static void diffs_know_about_the_last_newline(void) {
    static const patch_case list[] = {
        {HEAD "@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n",
         ONE("f", "a\n"), BECOMES("b")},
        {HEAD "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n",
         ONE("f", "a"), BECOMES("b\n")},
        {HEAD "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"
              "\\ No newline at end of file\n",
         ONE("f", "a"), BECOMES("b")},
        {HEAD "@@ -1,2 +1,2 @@\n-a\n+b\n c\n\\ No newline at end of file\n",
         ONE("f", "a\nc"), BECOMES("b\nc")},
        {HEAD "@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n",
         ONE("f", "a\r\n"), BECOMES("b")},
        /* such a hunk ends the file */
        {HEAD "@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n",
         ONE("f", "a\nx\na\n"), BECOMES("a\nx\nb")},
        {HEAD "@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n",
         ONE("f", "a\nx\n"), REFUSED(HFSB_NOT_FOUND, "was not found", 3)},
    };
    check_texts(list, TE_COUNT(list));
}

static void diffs_are_refused_with_the_reason(void) {
    static const patch_case list[] = {
        {"diff --git a/f b/f\nindex 1..2 100644\nGIT binary patch\nliteral 3\n",
         ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "binary files cannot be patched", 3)},
        {"diff --git a/f b/f\nBinary files a/f and b/f differ\n",
         ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "binary files cannot be patched", 2)},
        {"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n",
         ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "changing the mode of a file is not supported",
                 2)},
        {"diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n"
         "@@ -0,0 +1 @@\n+x\n",
         NO_FILES, REFUSED(HFSB_SYNTAX, "only ordinary files", 2)},
        {"diff --git a/n b/n\nnew file mode 120000\n--- /dev/null\n+++ b/n\n"
         "@@ -0,0 +1 @@\n+x\n",
         NO_FILES, REFUSED(HFSB_SYNTAX, "only ordinary files", 2)},
        {"diff --git a/f b/g\ncopy from f\ncopy to g\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "copies are not supported", 2)},
        {"--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "--- and +++ name two files", 1)},
        {"--- \"a/f\"\n+++ \"a/f\"\n@@ -1 +1 @@\n-a\n+b\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "the path is missing or in quotes", 1)},
        {"--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "the path is missing", 1)},
        {"--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "the path is missing", 1)},
        {"diff --git a/f b/g\nindex 1..2\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "the path is missing", 1)},
        {HEAD, ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "at least one hunk", 1)},
        {HEAD "@@ -1 +1 @@\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "this hunk has no lines", 3)},
        {HEAD "@@ -1 +1 @@\n-a\n+b\nthat is all\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "this is no line of a hunk", 6)},
        {"--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n x\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "every line of an added file begins with +",
                 3)},
        {"--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n@@ -0,0 +9 @@\n+y\n",
         NO_FILES, REFUSED(HFSB_SYNTAX, "only one hunk", 5)},
        {"--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n+b\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "every line of a deleted file", 3)},
        /* a number alone is no place */
        {HEAD "@@ -1,0 +2 @@\n+x\n", ONE("f", "a\nb\n"),
         REFUSED(HFSB_NOT_FOUND, "line numbers alone do not tell its place",
                 3)},
        {HEAD "@@ -2,0 +3 @@\n+x\n", ONE("f", "a\nb\n"),
         BECOMES("a\nb\nx\n")},
        {HEAD "@@ -2,0 +3 @@\n+x\n", ONE("f", "a\nb"),
         BECOMES("a\nb\nx\n")},
        {HEAD "@@ -0,0 +1 @@\n+x\n", ONE("f", ""), BECOMES("x\n")},
    };
    check_texts(list, TE_COUNT(list));
}

static void numbers_and_headings_choose_among_matches(void) {
    static const char text[] = "int f(void) {\n    x();\n}\n"
                               "int g(void) {\n    x();\n}\n"
                               "int h(void) {\n    x();\n}\n";
    static const char second[] = "int f(void) {\n    x();\n}\n"
                                 "int g(void) {\n    y();\n}\n"
                                 "int h(void) {\n    x();\n}\n";
    static const char third[] = "int f(void) {\n    x();\n}\n"
                                "int g(void) {\n    x();\n}\n"
                                "int h(void) {\n    y();\n}\n";
    static const char moved[] = "new\nf\nx\ng\nx\n";
    static const patch_case list[] = {
        {HEAD "@@ -5 +5 @@\n-    x();\n+    y();\n", ONE("f", text),
         BECOMES(second)},
        {HEAD "@@ -4 +4 @@\n-    x();\n+    y();\n", ONE("f", text),
         REFUSED(HFSB_AMBIGUOUS, "fits in more than one place (3", 3)},
        /* only one match is after the heading */
        {HEAD "@@ -4 +4 @@ int h(void) {\n-    x();\n+    y();\n",
         ONE("f", text), BECOMES(third)},
        {HEAD "@@ -4 +4 @@ int g(void)\n-    x();\n+    y();\n",
         ONE("f", text), REFUSED(HFSB_AMBIGUOUS, "more than one", 3)},
        /* a heading that is no line of the file does no harm */
        {HEAD "@@ -5 +5 @@ int gone(void)\n-    x();\n+    y();\n",
         ONE("f", text), BECOMES(second)},
        /* the hunk before shows by how many lines the file has moved */
        {HEAD "@@ -1 +1 @@\n-f\n+F\n@@ -2 +2 @@\n-x\n+X\n", ONE("f", moved),
         BECOMES("new\nF\nX\ng\nx\n")},
        {HEAD "@@ -1 +1 @@\n-f\n+F\n@@ -4 +4 @@\n-x\n+X\n", ONE("f", moved),
         BECOMES("new\nF\nx\ng\nX\n")},
        /* a match after the heading that is less close decides nothing */
        {HEAD "@@ -9 +9 @@ head\n-x\n+y\n", ONE("f", "x\nx\nhead\nx \n"),
         REFUSED(HFSB_AMBIGUOUS, "lines 1, ", 3)},
        /* nor does a number above the hunk before */
        {HEAD "@@ -2 +2 @@\n-a\n+A\n@@ -1 +1 @@\n-x\n+y\n",
         ONE("f", "x\na\nx\nx\n"),
         REFUSED(HFSB_AMBIGUOUS, "lines 3, ", 6)},
        /* overlapping places */
        {HEAD "@@ -1,2 +1 @@\n-a\n-a\n+b\n", ONE("f", "a\na\na\n"),
         REFUSED(HFSB_AMBIGUOUS, "at line 1, and again, overlapping "
                                 "itself.", 3)},
    };
    check_texts(list, TE_COUNT(list));
}

/* ---- blocks ---- */

#define BLOCK(old_lines, new_lines) \
    "<<<<<<< SEARCH\n" old_lines "=======\n" new_lines ">>>>>>> REPLACE\n"

static void search_replace_blocks_are_patches(void) {
    static const patch_case list[] = {
        {"f\n" BLOCK("b\n", "B\n"), ONE("f", "a\nb\n"), BECOMES("a\nB\n")},
        {"f\n```c\n" BLOCK("b\n", "B\n") "```\n", ONE("f", "a\nb\n"),
         BECOMES("a\nB\n")},
        {"```\nf\n" BLOCK("b\n", "B\n") "```\n", ONE("f", "a\nb\n"),
         BECOMES("a\nB\n")},
        {"Here it is:\n\n**`f`**\n\n```\n" BLOCK("b\n", "B\n") "```\nDone.\n",
         ONE("f", "a\nb\n"), BECOMES("a\nB\n")},
        {"### f:\n" BLOCK("b\n", "B\n"), ONE("f", "b\n"), BECOMES("B\n")},
        {"f\r\n<<<<<<< SEARCH\r\nb\r\n=======\r\nB\r\n>>>>>>> REPLACE\r\n",
         ONE("f", "a\nb\n"), BECOMES("a\nB\n")},
        /* in any order; the path of the block before */
        {"f\n" BLOCK("c\n", "C\n") BLOCK("a\n", "A\n"),
         ONE("f", "a\nb\nc\n"), BECOMES("A\nb\nC\n")},
        {"f\n```\n" BLOCK("a\n", "A\n") "```\n\ng\n```\n"
         BLOCK("b\n", "B\n") "```\n",
         TWO("f", "a\n", "g", "b\n"), HFSB_OK, NULL, 0,
         TWO("f", "A\n", "g", "B\n"), false},
        /* all are found in the file as it is */
        {"f\n" BLOCK("a\n", "b\n") BLOCK("b\n", "c\n"), ONE("f", "a\n"),
         REFUSED(HFSB_NOT_FOUND, "was not found", 7)},
        {"f\n" BLOCK("a\nb\n", "x\n") BLOCK("b\nc\n", "y\n"),
         ONE("f", "a\nb\nc\n"),
         REFUSED(HFSB_REFUSED, "changes the same lines as that at line 2, "
                               "near line 2 of the file", 8)},
        {"f\n" BLOCK("b\n", "x\n") BLOCK("a\n", "y\n"),
         ONE("f", "a\nb\na\n"),
         REFUSED(HFSB_AMBIGUOUS, "lines 1, ", 7)},
        {"f\n" BLOCK("b\n", ""), ONE("f", "a\nb\n"), BECOMES("a\n")},
        {"n\n" BLOCK("", "x\n\n"), NO_FILES, HFSB_OK, NULL, 0,
         ONE("n", "x\n\n"), false},
        {"f\n" BLOCK("", "x\n"), ONE("f", "a\n"),
         REFUSED(HFSB_REFUSED, "there is such a file already", 0)},
        /* the end of the file stays as it is */
        {"f\n" BLOCK("b\n", "c\n"), ONE("f", "a\nb"), BECOMES("a\nc")},
        /* like an edit: indentation, whole lines */
        {"f\n" BLOCK("if x:\n    a()\n", "if x:\n    b()\n"),
         ONE("f", "\tif x:\n\t\ta()\n"), FUZZY("\tif x:\n\t\tb()\n")},
        {"f\n" BLOCK("b\n", "c\n"), ONE("f", "ab\nb\n"),
         BECOMES("ab\nc\n")},
        {"f\n" BLOCK("a\n", "b\n"), ONE("f", "a\nx\na\n"),
         REFUSED(HFSB_AMBIGUOUS, "lines 1, ", 2)},
        {"f\n" BLOCK("z\n", "b\n"), ONE("f", "a\n"),
         REFUSED(HFSB_NOT_FOUND, "the hunk at line 2 of the patch was not",
                 2)},
    };
    check_texts(list, TE_COUNT(list));
}

static void malformed_blocks_name_their_line(void) {
    static const patch_case list[] = {
        {BLOCK("a\n", "b\n"), ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "a line with the path of the file must come "
                              "first", 1)},
        {"f\n<<<<<<< SEARCH\na\n=======\nb\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "needs a line =======", 2)},
        {"f\n<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "needs a line =======", 2)},
        {"f\n<<<<<<< SEARCH\na\n" BLOCK("a\n", "b\n"), ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "needs a line =======", 2)},
        {"f\n" BLOCK("Title\n=======\n", "b\n"), ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "a second ======= in one block", 5)},
        {"f\n" BLOCK("", ""), ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "this block has no lines", 2)},
    };
    check_texts(list, TE_COUNT(list));
}

/* ---- what may be around ---- */

#define BEGIN "*** Begin Patch\n"
#define END   "*** End Patch\n"

static void patches_may_be_wrapped(void) {
    static const patch_case list[] = {
        {"```\n" BEGIN UPDATE "-a\n+b\n" END "```\n", ONE("f", "a\n"),
         BECOMES("b\n")},
        {"```diff\n" HEAD "@@ -1 +1 @@\n-a\n+b\n```", ONE("f", "a\n"),
         BECOMES("b\n")},
        {"~~~\n" HEAD "@@ -1 +1 @@\n-a\n+b\n~~~\n", ONE("f", "a\n"),
         BECOMES("b\n")},
        {"git apply <<'EOF'\n" HEAD "@@ -1 +1 @@\n-a\n+b\nEOF\n",
         ONE("f", "a\n"), BECOMES("b\n")},
        {"<<EOF\n```\n" BEGIN UPDATE "-a\n+b\n" END "```\nEOF\n",
         ONE("f", "a\n"), BECOMES("b\n")},
        {BEGIN "*** Environment ID: e-1\n" UPDATE "-a\n+b\n" END,
         ONE("f", "a\n"), BECOMES("b\n")},
        {BEGIN GIT "@@ -1 +1 @@\n-a\n+b\n" END, ONE("f", "a\n"),
         BECOMES("b\n")},
        {BEGIN UPDATE HEAD "@@ -1 +1 @@\n-a\n+b\n" END, ONE("f", "a\n"),
         BECOMES("b\n")},
        /* the end is missing, but nothing else can be */
        {BEGIN UPDATE "-a\n+b\n c\n", ONE("f", "a\nc\n"), BECOMES("b\nc\n")},
        {BEGIN UPDATE "-a\n+b\n*** End of File\n", ONE("f", "a\n"),
         BECOMES("b\n")},
        {"```\n" BEGIN UPDATE "-a\n+b\n```\n", ONE("f", "a\n"),
         BECOMES("b\n")},
        {BEGIN UPDATE "-a\n+b\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "the last line must be \"*** End Patch\"", 4)},
        {BEGIN UPDATE "-a\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "the last line must be", 3)},
        {BEGIN "*** Add File: n\n+x\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "the last line must be", 3)},
    };
    check_texts(list, TE_COUNT(list));
}

static void other_texts_get_the_formats_to_use(void) {
    static const patch_case list[] = {
        {"what?", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "*** Begin Patch", 1)},
        {"what?", ONE("f", "a\n"), REFUSED(HFSB_SYNTAX, "--- a/PATH", 1)},
        {"what?", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "<<<<<<< SEARCH", 1)},
        {"\n--- a/f\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "this is no patch", 2)},
        {UPDATE "-a\n+b\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "this is no patch", 1)},
    };
    check_texts(list, TE_COUNT(list));
}

/* ---- memory ---- */

static const char *oom_patch;

static void oom_run(hfsb_alloc alloc, const t_heap *heap) {
    static const one_file list[] = {{"f", "a\nb\n"}, {"g", "x\n"}};
    disk              d = HFSB_INIT;
    hfsb_patch_files  files = HFSB_INIT;
    hfsb_patch_result r = HFSB_INIT;
    hfsb_err          err;
    hfsb_status       st;
    d.files = list;
    d.count = 2;
    files.read = read_file;
    files.user = &d;
    r.alloc = alloc;
    st = hfsb_patch_apply(hfsb_cstr(oom_patch), &files, &r, &err);
    T_CHECK(err.code == st);
    T_CHECK(st == HFSB_OK || (heap->fail_at && !r.count && err.msg[0]));
    hfsb_patch_free(&r);
}

static void formats_survive_each_failing_allocation(void) {
    static const char *const list[] = {
        GIT "@@ -1,2 +1,2 @@ a\n a\n-b\n+B\n--- a/g\n+++ /dev/null\n"
            "@@ -1 +0,0 @@\n-x\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+n\n",
        "f\n" BLOCK("a\n", "A\n") BLOCK("b\n", "B\n") "n\n" BLOCK("", "n\n")};
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        oom_patch = list[i];
        t_each_allocation_fails(oom_run);
    }
}

static void bodies_may_be_diffs(void) {
    static const patch_case list[] = {
        {HEAD "@@ -1 +1 @@\n-a\n+b\n", ONE("f", "a\n"), BECOMES("b\n")}};
    check_bodies(list, TE_COUNT(list));
}

int main(void) {
    T_RUN(unified_diffs_are_patches);
    T_RUN(diffs_add_delete_and_rename);
    T_RUN(diffs_know_about_the_last_newline);
    T_RUN(diffs_are_refused_with_the_reason);
    T_RUN(numbers_and_headings_choose_among_matches);
    T_RUN(search_replace_blocks_are_patches);
    T_RUN(malformed_blocks_name_their_line);
    T_RUN(patches_may_be_wrapped);
    T_RUN(other_texts_get_the_formats_to_use);
    T_RUN(formats_survive_each_failing_allocation);
    T_RUN(bodies_may_be_diffs);
    return T_END();
}
