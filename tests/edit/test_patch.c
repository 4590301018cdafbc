/* test_patch.c - the grammar of patches, finding hunks, applying them. Random
   patches are in test_patch_random.c. */
#include "../support/t_patch_cases.h"

#define BOM "\xEF\xBB\xBF"

/* ---- grammar ---- */

static void patch_adds_deletes_updates_and_moves(void) {
    static const patch_case list[] = {
        {"*** Add File: a/b\n+one\n+\n+two\n", NO_FILES, HFSB_OK, NULL, 0,
         ONE("a/b", "one\n\ntwo\n"), false},
        {"*** Add File: empty\n", NO_FILES, HFSB_OK, NULL, 0,
         ONE("empty", ""), false},
        {"*** Add File: a\n++plus\n+*** End Patch\n\n", NO_FILES, HFSB_OK,
         NULL, 0, ONE("a", "+plus\n*** End Patch\n"), false},
        {"*** Delete File: f\n", TWO("f", "x\n", "g", "y\n"), HFSB_OK, NULL,
         0, ONE("g", "y\n"), false},
        {UPDATE "@@\n-b\n+B\n", ONE("f", "a\nb\nc\n"), BECOMES("a\nB\nc\n")},
        {UPDATE "-b\n+B\n", ONE("f", "a\nb\nc\n"), BECOMES("a\nB\nc\n")},
        {UPDATE "*** Move to: g\n@@\n-b\n+B\n", ONE("f", "b\n"), HFSB_OK,
         NULL, 0, ONE("g", "B\n"), false},
        {UPDATE "*** Move to: g\n@@\n b\n", ONE("f", "b\n"), HFSB_OK, NULL, 0,
         ONE("g", "b\n"), false},
        {UPDATE "*** Move to: f\n@@\n-b\n+c\n", ONE("f", "b\n"), HFSB_OK,
         NULL, 0, ONE("f", "c\n"), false},
        {"  *** Update File:   f  \n-b\n+B\n", ONE("f", "b\n"),
         BECOMES("B\n")},
        {"*** Delete File: f\n\n*** Add File: f\n+new\n", ONE("f", "old\n"),
         HFSB_OK, NULL, 0, ONE("f", "new\n"), false},
        {UPDATE "-a\n+b\n" UPDATE "-b\n+c\n", ONE("f", "a\n"),
         BECOMES("c\n")},
        {"*** Add File: f\n+a\n" UPDATE "-a\n+b\n", NO_FILES,
         BECOMES("b\n")},
        {UPDATE "*** Move to: g\n-a\n+b\n*** Update File: g\n-b\n+c\n"
                "*** Add File: f\n+again\n",
         ONE("f", "a\n"), HFSB_OK, NULL, 0, TWO("g", "c\n", "f", "again\n"),
         false},
        {UPDATE "-a\n+b\n*** Delete File: g\n", TWO("f", "a\n", "g", "x"),
         BECOMES("b\n")},
    };
    check_bodies(list, TE_COUNT(list));
}

static void patch_errors_name_their_line(void) {
    static const char no_hunk[] = "this is no line of a hunk";
    static const patch_case list[] = {
        {"", NO_FILES, REFUSED(HFSB_REFUSED, "The patch is empty", 0)},
        {"hello\n", NO_FILES, REFUSED(HFSB_SYNTAX, "line 2: expected", 2)},
        {"*** Rename File: f\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "line 2: expected", 2)},
        {"\n*** Add File: a\n+x\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "line 2: expected", 2)},
        {"*** Add File:\n+x\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "the path is missing", 2)},
        {"*** Add File:a\n+x\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "line 2: expected", 2)},
        {"*** Add File: a\n+x\ny\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "every line of an added file", 4)},
        {"*** Add File: a\n+x\n\n+y\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "every line of an added file", 4)},
        {"*** Delete File: \n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "the path is missing", 2)},
        {"*** Delete File: f\n-x\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "has no lines", 3)},
        {"*** Update File: f\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "at least one hunk", 2)},
        {UPDATE "*** Move to: g\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "at least one hunk", 3)},
        {UPDATE "*** Move to:\n-a\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "\"*** Move to:\" needs a path", 3)},
        {UPDATE "@@\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "this hunk has no lines", 3)},
        {UPDATE "@@\n-a\n@@\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "this hunk has no lines", 5)},
        {UPDATE "@@\n\n\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "this hunk has no lines", 3)},
        {UPDATE "@@\na\n-b\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "line 4: lines of a hunk begin with", 4)},
        {UPDATE "-a\nb\n", NO_FILES, REFUSED(HFSB_SYNTAX, no_hunk, 4)},
        {UPDATE "-a\n*** End of File\n-b\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, no_hunk, 5)},
        {UPDATE "-a\n+b\n*** Move to: g\n", NO_FILES,
         REFUSED(HFSB_SYNTAX, "expected", 5)},
        {UPDATE "-a\n@@x\n", NO_FILES, REFUSED(HFSB_SYNTAX, no_hunk, 4)},
        /* the second section is read before the first file */
        {UPDATE "-a\n+b\n*** Add File: g\nx\n", ONE("f", "a\n"),
         REFUSED(HFSB_SYNTAX, "every line of an added file", 6)},
    };
    check_bodies(list, TE_COUNT(list));
}

static void patch_finds_its_begin_and_end(void) {
    static const struct {
        const char *patch;
        size_t      line; /* of the error; 0: fine */
    } list[] = {
        {"*** Begin Patch\n*** Add File: a\n+x\n*** End Patch", 0},
        {"\n\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n \n\n", 0},
        {"  *** Begin Patch  \n*** Add File: a\n+x\n\t*** End Patch\n", 0},
        {"*** Begin Patch\r\n*** Add File: a\r\n+x\r\n*** End Patch\r\n", 0},
        {"<<EOF\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF\n",
         0},
        {"<<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n"
         "EOF", 0},
        {"<<\"EOF\"\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n\n"
         "EOF\n", 0},
        {"cat <<'X_1'\n*** Begin Patch\n*** Add File: a\n+x\n"
         "*** End Patch\nX_1\n", 0},
        {"<<'EOF\"\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n"
         "EOF\n", 1},
        {"<<EOF\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOT\n",
         1},
        {"", 1},
        {"\n \n", 1},
        {"*** Add File: a\n+x\n*** End Patch\n", 1},
        {"\nx\n*** Begin Patch\n*** End Patch\n", 2},
        {"*** Begin Patch\n", 1},
        {"*** Begin Patch\n*** Add File: a\n+x\n", 3},
        {"*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nx\n", 5},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        patch_case c = HFSB_INIT;
        c.results[0].path = "a";
        c.results[0].text = "x\n";
        c.line = list[i].line;
        if (c.line) c.code = HFSB_SYNTAX;
        check_patch(&c, hfsb_cstr(list[i].patch), i);
    }
}

/* ---- finding the place ---- */

static void patch_context_keeps_the_bytes_of_the_file(void) {
    static const patch_case list[] = {
        {UPDATE " a\n-b\n+B\n c\n", ONE("f", "a\nb\nc\n"),
         BECOMES("a\nB\nc\n")},
        {UPDATE " a\n-b\n+B\n", ONE("f", "a  \nb\t\n"), FUZZY("a  \nB\n")},
        {UPDATE " a\n-b\n+B\n", ONE("f", "\ta\nb\n"), FUZZY("\ta\nB\n")},
        {UPDATE " it's\n-b\n+B\n", ONE("f", "it\xE2\x80\x99s\nb\n"),
         FUZZY("it\xE2\x80\x99s\nB\n")},
        {UPDATE "-say \"x\"\n+B\n",
         ONE("f", "say \xE2\x80\x9Cx\xE2\x80\x9D\n"), FUZZY("B\n")},
        {UPDATE "-b\n+B\n", ONE("f", "\tb\n"), FUZZY("\tB\n")},
        {UPDATE " a\n\n-b\n+B\n", ONE("f", "a\n\nb\n"), BECOMES("a\n\nB\n")},
        {UPDATE " a\n-b\n+B\n\n", ONE("f", "a\nb\nc\n"),
         BECOMES("a\nB\nc\n")},
        {UPDATE "-a\n", ONE("f", "a\n"), BECOMES("")},
        {UPDATE "-a\n", ONE("f", "a\nb"), BECOMES("b")},
        {UPDATE "+z\n a\n", ONE("f", "a\n"), BECOMES("z\na\n")},
        {UPDATE " a\n+z\n", ONE("f", "a\n"), BECOMES("a\nz\n")},
        /* the closest grade wins */
        {UPDATE " a\n-b\n+B\n", ONE("f", " a\nb\na\nb\na \nb\n"),
         BECOMES(" a\nb\na\nB\na \nb\n")},
        {UPDATE " a\n-b\n+B\n", ONE("f", " a\nb\na \nb\n"),
         FUZZY(" a\nb\na \nB\n")},
        {UPDATE "-a\n+b\n@@\n-c\n+d\n", ONE("f", "a\nx\nc\n"),
         BECOMES("b\nx\nd\n")},
        {UPDATE "-a\n+b\n@@\n-a\n+c\n", ONE("f", "a\n"),
         REFUSED(HFSB_NOT_FOUND, "Its lines are at line 1, above the hunk "
                                 "before it: hunks must come in the order",
                 5)},
        {UPDATE "@@\n-c\n+d\n@@\n-a\n+b\n", ONE("f", "a\nx\nc\n"),
         REFUSED(HFSB_NOT_FOUND, "Its lines are at line 1, above", 6)},
        {UPDATE " a\n", ONE("f", "a\n"),
         REFUSED(HFSB_REFUSED, "The patch changes nothing in f", 0)},
        {UPDATE "-a\n+a\n", ONE("f", "a\n"),
         REFUSED(HFSB_REFUSED, "The patch changes nothing in f", 0)},
    };
    check_bodies(list, TE_COUNT(list));
}

static void patch_refuses_missing_and_ambiguous_hunks(void) {
    static const patch_case list[] = {
        {UPDATE "-zz\n+b\n", ONE("f", "alpha\nbeta\n"),
         REFUSED(HFSB_NOT_FOUND, "f: the hunk at line 3 of the patch was not "
                                 "found in the file. Nothing was changed.",
                 3)},
        {UPDATE "@@\n alpha\n-beto\n+b\n", ONE("f", "alpha\nbeta\n"),
         REFUSED(HFSB_NOT_FOUND, "First difference: line 2, column 4", 3)},
        {UPDATE "-a\n+b\n", ONE("f", ""),
         REFUSED(HFSB_NOT_FOUND, "was not found", 3)},
        {UPDATE "-a\n-b\n-c\n", ONE("f", "a\nb\n"),
         REFUSED(HFSB_NOT_FOUND, "was not found", 3)},
        {UPDATE "-a\n+b\n", ONE("f", "a\nx\na\n"),
         REFUSED(HFSB_AMBIGUOUS, "fits in more than one place (2). Nothing "
                                 "was changed.\nIt matches exactly at lines "
                                 "1, 3. With what is before it:\n1\ta\n2\tx\n"
                                 "3\ta\nAdd context lines, or an @@ line", 3)},
        {UPDATE "@@ \n-a\n+b\n", ONE("f", "a\na\na\n"),
         REFUSED(HFSB_AMBIGUOUS, "place (3).", 3)},
        {UPDATE "-a\n-a\n+b\n", ONE("f", "a\na\na\n"),
         REFUSED(HFSB_AMBIGUOUS, "more than one", 3)},
        {UPDATE "@@ nowhere\n-a\n+b\n", ONE("f", "a\n"),
         REFUSED(HFSB_NOT_FOUND, "no line reads \"nowhere\". The text", 3)},
        {UPDATE "@@ b\n-a\n+x\n", ONE("f", "a\nb\n"),
         REFUSED(HFSB_NOT_FOUND, "Its lines are at line 1, above its @@ line",
                 3)},
        {UPDATE "-a\n+b\n", NO_FILES,
         REFUSED(HFSB_IO, "File not found: f. Nothing was changed.", 0)},
        {"*** Delete File: f\n", NO_FILES,
         REFUSED(HFSB_IO, "File not found: f. Nothing was changed.", 0)},
        {"*** Delete File: f\n" UPDATE "-a\n+b\n", ONE("f", "a\n"),
         REFUSED(HFSB_IO, "File not found: f", 0)},
        {UPDATE "*** Move to: g\n-a\n+b\n" UPDATE "-b\n+c\n", ONE("f", "a\n"),
         REFUSED(HFSB_IO, "File not found: f", 0)},
        {"*** Add File: f\n+x\n", ONE("f", "a\n"),
         REFUSED(HFSB_REFUSED, "Add File f: there is such a file already", 0)},
        {"*** Add File: f\n+x\n*** Add File: f\n+y\n", NO_FILES,
         REFUSED(HFSB_REFUSED, "Add File f: there is", 0)},
        {UPDATE "*** Move to: g\n-a\n+b\n", TWO("f", "a\n", "g", ""),
         REFUSED(HFSB_REFUSED, "Move to g: there is such a file already", 0)},
        {UPDATE "-a\n+b\n", ONE("f", NULL),
         REFUSED(HFSB_IO, "is a device", 0)},
        {"*** Add File: f\n+b\n", ONE("f", NULL),
         REFUSED(HFSB_IO, "is a device", 0)},
        /* nothing is left of the first section when the second fails */
        {UPDATE "-a\n+b\n*** Update File: g\n-x\n+y\n",
         TWO("f", "a\n", "g", "z\n"),
         REFUSED(HFSB_NOT_FOUND, "g: the hunk at line 6", 6)},
    };
    check_bodies(list, TE_COUNT(list));
}

static void patch_anchors_narrow_the_place(void) {
    static const char classes[] = "class A:\n  def f():\n    x\n"
                                  "class B:\n  def f():\n    x\n";
    static const patch_case list[] = {
        {UPDATE "@@ class B:\n-    x\n+    y\n", ONE("f", classes),
         BECOMES("class A:\n  def f():\n    x\n"
                 "class B:\n  def f():\n    y\n")},
        {UPDATE "@@ class B:\n@@   def f():\n-    x\n+    y\n",
         ONE("f", classes),
         BECOMES("class A:\n  def f():\n    x\n"
                 "class B:\n  def f():\n    y\n")},
        /* the first one after the anchor */
        {UPDATE "@@ class A:\n-    x\n+    y\n", ONE("f", classes),
         BECOMES("class A:\n  def f():\n    y\n"
                 "class B:\n  def f():\n    x\n")},
        {UPDATE "@@ class C:\n-    x\n+    y\n", ONE("f", classes),
         REFUSED(HFSB_NOT_FOUND, "no line reads \"class C:\"", 3)},
        {UPDATE "@@ class B:\n@@ class A:\n-    x\n+    y\n",
         ONE("f", classes),
         REFUSED(HFSB_NOT_FOUND, "no line reads \"class A:\" after the @@ "
                                 "line before it.", 3)},
        /* blanks off, look-alikes */
        {UPDATE "@@ def f():\n-    x\n+    y\n@@ def f():\n-    x\n+    z\n",
         ONE("f", classes),
         BECOMES("class A:\n  def f():\n    y\n"
                 "class B:\n  def f():\n    z\n")},
        /* repeated as the first line of context */
        {UPDATE "@@ class B:\n class B:\n   def f():\n-    x\n+    y\n",
         ONE("f", classes),
         BECOMES("class A:\n  def f():\n    x\n"
                 "class B:\n  def f():\n    y\n")},
        {UPDATE "@@ a\n a\n-b\n+c\n*** End of File\n", ONE("f", "a\nb\n"),
         BECOMES("a\nc\n")},
        {UPDATE "@@ a\n a\n-b\n+c\n*** End of File\n",
         ONE("f", "a\nb\nx\n"),
         REFUSED(HFSB_NOT_FOUND, "was not found", 3)},
        /* line numbers of other tools are ignored */
        {UPDATE "@@ -1,2 +1,2 @@\n-a\n+b\n", ONE("f", "a\n"),
         BECOMES("b\n")},
        {UPDATE "@@ -4,2 +4,2 @@ class B:\n-    x\n+    y\n",
         ONE("f", classes),
         BECOMES("class A:\n  def f():\n    x\n"
                 "class B:\n  def f():\n    y\n")},
        /* additions alone go after the anchor */
        {UPDATE "@@ class A:\n+  n = 1\n", ONE("f", classes),
         BECOMES("class A:\n  n = 1\n  def f():\n    x\n"
                 "class B:\n  def f():\n    x\n")},
        {UPDATE "@@ a\n+1\n@@ b\n+2\n", ONE("f", "a\nb"),
         BECOMES("a\n1\nb\n2\n")},
        {UPDATE "@@ a\n+1\n@@\n-b\n+2\n", ONE("f", "a\nb\n"),
         BECOMES("a\n1\n2\n")},
    };
    check_bodies(list, TE_COUNT(list));
}

static void patch_adds_at_the_end_of_the_file(void) {
    static const patch_case list[] = {
        {UPDATE "@@\n+z\n", ONE("f", "a\n"), BECOMES("a\nz\n")},
        {UPDATE "+z\n", ONE("f", ""), BECOMES("z\n")},
        {UPDATE "@@\n+z\n", ONE("f", "a"), BECOMES("a\nz\n")},
        {UPDATE "@@\n+y\n@@\n+z\n", ONE("f", "a"), BECOMES("a\ny\nz\n")},
        {UPDATE "@@ a\n+z\n*** End of File\n", ONE("f", "a\nb\n"),
         BECOMES("a\nb\nz\n")},
        /* the last line counts as the hunks leave it */
        {UPDATE "@@\n-a\n+b\n@@\n+z\n", ONE("f", "a"), BECOMES("b\nz\n")},
        {UPDATE "@@\n+z\n@@\n-a\n+b\n", ONE("f", "a"), BECOMES("b\nz\n")},
        {UPDATE "@@\n+b\n a\n@@\n+z\n", ONE("f", "a"), BECOMES("b\na\nz\n")},
        {UPDATE "@@\n-b\n@@\n+z\n", ONE("f", "a\nb"), BECOMES("a\nz\n")},
        {UPDATE "@@\n-a\n@@\n+z\n", ONE("f", "a"), BECOMES("z\n")},
        {UPDATE "@@ a\n+y\n@@\n+z\n", ONE("f", "a"), BECOMES("a\ny\nz\n")},
        {UPDATE "@@\n-a\n+b\n@@\n+z\n", ONE("f", "a\nc"),
         BECOMES("b\nc\nz\n")},
        {UPDATE "@@\n-a\n+b\n@@\n+z\n", ONE("f", "a\r\nc"),
         BECOMES("b\r\nc\r\nz\r\n")},
        {UPDATE "@@\n+z\n", ONE("f", "a\rb"), BECOMES("a\rb\rz\r")},
        {UPDATE "@@\n-b\n+c\n@@\n+z\n", ONE("f", "a\rb"),
         BECOMES("a\rc\rz\r")},
        /* the lines end the file */
        {UPDATE "@@\n-a\n+b\n*** End of File\n", ONE("f", "a\nx\na\n"),
         BECOMES("a\nx\nb\n")},
        {UPDATE "@@\n-a\n+b\n*** End of File\n", ONE("f", "a\nx\na"),
         BECOMES("a\nx\nb\n")},
        {UPDATE "@@\n-a\n+b\n*** End of File\n", ONE("f", "a\nx\n"),
         REFUSED(HFSB_NOT_FOUND, "was not found", 3)},
        {UPDATE "-x\n+y\n*** End of File\n\n*** Delete File: g\n",
         TWO("f", "x\n", "g", ""), BECOMES("y\n")},
    };
    check_bodies(list, TE_COUNT(list));
}

static void patch_uses_the_line_ends_of_the_file(void) {
    static const patch_case list[] = {
        {UPDATE " a\n-b\n+B\n+C\n", ONE("f", "a\r\nb\r\n"),
         BECOMES("a\r\nB\r\nC\r\n")},
        {UPDATE " a\r\n-b\r\n+B\r\n", ONE("f", "a\nb\n"), BECOMES("a\nB\n")},
        {UPDATE " a\n-b\n+B\n", ONE("f", "a\rb\r"), BECOMES("a\rB\r")},
        {UPDATE " a\n-b\n+B\n c\n", ONE("f", "a\nb\r\nc\n"),
         BECOMES("a\nB\nc\n")},
        {UPDATE "-b\n+B\n", ONE("f", "a\nb\r\nc\n"),
         BECOMES("a\nB\r\nc\n")},
        /* CR and LF mixed: a line may end at either */
        {UPDATE " a\n-b\n+B\n", ONE("f", "a\rb\rc\nd\n"),
         BECOMES("a\rB\rc\nd\n")},
        {UPDATE "-a\n+b\n", ONE("f", BOM "a\n"), BECOMES(BOM "b\n")},
        {UPDATE "+x\n a\n", ONE("f", BOM "a\n"), BECOMES(BOM "x\na\n")},
        {UPDATE "+x\n", ONE("f", BOM), BECOMES(BOM "x\n")},
        {UPDATE "-b\n+c\n", ONE("f", "a\nb"), BECOMES("a\nc\n")},
        {UPDATE "-a\n+c\n", ONE("f", "a\nb"), BECOMES("c\nb")},
        {UPDATE "-a\n+c\n b\n", ONE("f", "a\r\nb"), BECOMES("c\r\nb")},
    };
    check_bodies(list, TE_COUNT(list));
}

/* ---- many equal lines ---- */

static void patch_takes_the_first_of_many_places_after_an_anchor(void) {
    size_t fuzzy;
    for (fuzzy = 0; fuzzy < 3; fuzzy++) {
        hfsb_buf          file = HFSB_INIT, patch = HFSB_INIT;
        one_file          one = HFSB_INIT;
        disk              d = HFSB_INIT;
        hfsb_patch_files  files = HFSB_INIT;
        hfsb_patch_result r = HFSB_INIT;
        hfsb_err          err;
        hfsb_status       st;
        size_t            i;
        te_append(&file, HFSB_LIT("head\n"));
        for (i = 0; i < 4000; i++)
            te_append(&file, fuzzy == 1   ? HFSB_LIT("\tx\n")
                             : fuzzy == 2 ? HFSB_LIT("x \n")
                                          : HFSB_LIT("x\n"));
        te_append(&patch, HFSB_LIT("*** Begin Patch\n*** Update File: f\n"
                                   "@@ head\n"));
        for (i = 0; i < 300; i++) te_append(&patch, HFSB_LIT("-x\n"));
        te_append(&patch, HFSB_LIT("+y\n*** End Patch\n"));
        one.path = "f";
        one.text = file.ptr;
        d.files = &one;
        d.count = 1;
        files.read = read_file;
        files.user = &d;
        st = hfsb_patch_apply(hfsb_buf_str(&patch), &files, &r, &err);
        /* the first after the anchor, unless the indentation differs */
        T_CHECK(st == (fuzzy == 1 ? HFSB_AMBIGUOUS : HFSB_OK));
        if (st == HFSB_OK)
            T_CHECK(te_begins(r.changes[0].content.ptr, "head\ny\nx") &&
                    r.changes[0].content.len ==
                        7 + (fuzzy ? 3u : 2u) * 3700);
        hfsb_patch_free(&r);
        hfsb_buf_free(&file);
        hfsb_buf_free(&patch);
    }
}

/* ---- words ---- */

static void patch_names_arguments_as_the_sender_knows_them(void) {
    static const char *const words[] = {"To see the place call read with "
                                        "offset=1, limit=14.",
                                        "To see the place run hfsb read "
                                        "--offset 1 --limit 14."};
    hfsb_buf          file = HFSB_INIT, patch = HFSB_INIT;
    one_file          one = HFSB_INIT;
    disk              d = HFSB_INIT;
    hfsb_patch_files  files = HFSB_INIT;
    hfsb_patch_result r = HFSB_INIT;
    hfsb_err          err;
    size_t            i;
    te_append(&patch,
              HFSB_LIT("*** Begin Patch\n*** Update File: f\n@@\n"));
    for (i = 0; i < 10; i++) { /* lines that are too long to be shown */
        T_CHECK(hfsb_buf_printf(&file, "%0500d end\n", (int)i) == HFSB_OK);
        T_CHECK(hfsb_buf_printf(&patch, " %0500d %s\n", (int)i,
                                i == 5 ? "emd" : "end") == HFSB_OK);
    }
    te_append(&patch, HFSB_LIT("+x\n*** End Patch\n"));
    one.path = "f";
    one.text = file.ptr;
    d.files = &one;
    d.count = 1;
    files.read = read_file;
    files.user = &d;
    for (i = 0; i < 2; i++) {
        files.names = i ? HFSB_EDIT_NAMES_FLAGS : HFSB_EDIT_NAMES_KEYS;
        T_CHECK(hfsb_patch_apply(hfsb_buf_str(&patch), &files, &r, &err) ==
                HFSB_NOT_FOUND);
        if (!strstr(err.msg, words[i])) printf("%s\n", err.msg);
        T_CHECK(strstr(err.msg, words[i]) != NULL);
    }
    hfsb_buf_free(&file);
    hfsb_buf_free(&patch);
}

/* ---- memory ---- */

static const char *oom_patch;
static hfsb_status oom_code;

static void oom_run(hfsb_alloc alloc, const t_heap *heap) {
    static const one_file list[] = {
        {"f", "a\nb \nc\n"}, {"g", "one\r\ntwo"}, {"h", "x\ry\nz\n"}};
    disk              d = HFSB_INIT;
    hfsb_patch_files  files = HFSB_INIT;
    hfsb_patch_result r = HFSB_INIT;
    hfsb_err          err;
    hfsb_status       st;
    d.files = list;
    d.count = 3;
    files.read = read_file;
    files.user = &d;
    r.alloc = alloc;
    st = hfsb_patch_apply(hfsb_cstr(oom_patch), &files, &r, &err);
    T_CHECK(err.code == st);
    T_CHECK(st == oom_code || heap->fail_at);
    T_CHECK(st == HFSB_OK || (!r.count && !r.changes && err.msg[0]));
    hfsb_patch_free(&r);
}

static void patch_survives_each_failing_allocation(void) {
    static const struct {
        const char *patch;
        hfsb_status code;
    } list[] = {
        {"*** Begin Patch\n*** Update File: f\n@@ a\n-b\n+B\n@@\n+z\n"
         "*** Update File: g\n*** Move to: k\n one\n-two\n+2\n"
         "*** Add File: n\n+new\n*** Delete File: f\n*** End Patch\n",
         HFSB_OK},
        {"*** Begin Patch\n*** Update File: h\n-y\n+Y\n*** End Patch\n",
         HFSB_OK},
        {"*** Begin Patch\n*** Update File: f\n a\n-bb\n*** End Patch\n",
         HFSB_NOT_FOUND},
        {"*** Begin Patch\n*** Add File: f\n+x\n*** End Patch\n",
         HFSB_REFUSED},
        {"*** Begin Patch\n*** Add File: f\nx\n*** End Patch\n",
         HFSB_SYNTAX},
        {"*** Begin Patch\n*** Delete File: q\n*** End Patch\n", HFSB_IO},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        oom_patch = list[i].patch;
        oom_code = list[i].code;
        t_each_allocation_fails(oom_run);
    }
}

int main(void) {
    T_RUN(patch_adds_deletes_updates_and_moves);
    T_RUN(patch_errors_name_their_line);
    T_RUN(patch_finds_its_begin_and_end);
    T_RUN(patch_context_keeps_the_bytes_of_the_file);
    T_RUN(patch_refuses_missing_and_ambiguous_hunks);
    T_RUN(patch_anchors_narrow_the_place);
    T_RUN(patch_adds_at_the_end_of_the_file);
    T_RUN(patch_uses_the_line_ends_of_the_file);
    T_RUN(patch_takes_the_first_of_many_places_after_an_anchor);
    T_RUN(patch_names_arguments_as_the_sender_knows_them);
    T_RUN(patch_survives_each_failing_allocation);
    return T_END();
}
