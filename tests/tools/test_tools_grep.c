/* test_tools_grep.c - the tool grep: lines, context, long lines, limits, what
   is passed over, and the same lines as GNU grep. */
#include "../support/t_search.h"

/* ---- lines ---- */

static void make_tree(void) {
    tf_put("a.c", "int one;\nint two;\r\nint One;\nlast");
    tf_put("b.h", "one\n");
    tf_put("lib/c.c", "none\n\none (1)\n");
    tf_put("lib/d.txt", "One\n");
}

static const struct {
    const char *keys, *a, *b, *c;
    const char *output;
} cases[] = {
    {"pattern=s", "one", NULL, NULL,
     "a.c:1:int one;\nb.h:1:one\nlib/c.c:1:none\nlib/c.c:3:one (1)"},
    {"pattern=s path=s", "one", "lib", NULL,
     "lib/c.c:1:none\nlib/c.c:3:one (1)"},
    {"pattern=s path=s", "one", "./lib/", NULL,
     "lib/c.c:1:none\nlib/c.c:3:one (1)"},
    {"pattern=s path=s", "two", "a.c", NULL, "a.c:2:int two;"},
    {"pattern=s path=s", "^last$", "a.c", NULL, "a.c:4:last"},
    {"pattern=s path=s", ";$", "a.c", NULL,
     "a.c:1:int one;\na.c:2:int two;\na.c:3:int One;"},
    {"pattern=s ignore_case=j path=s", "ONE", "true", "a.c",
     "a.c:1:int one;\na.c:3:int One;"},
    {"pattern=s include=s", "[oO]ne", "*.txt", NULL, "lib/d.txt:1:One"},
    {"pattern=s include=s", "[oO]ne", "*.{h,txt}", NULL,
     "b.h:1:one\nlib/d.txt:1:One"},
    {"pattern=s include=s", "[oO]ne", "*.h,*.txt", NULL,
     "b.h:1:one\nlib/d.txt:1:One"},
    {"pattern=s include=s", "^one", "lib/*", NULL, "lib/c.c:3:one (1)"},
    {"pattern=s include=s", "^one", "./lib/*.c", NULL, "lib/c.c:3:one (1)"},
    {"pattern=s include=s", "^one", "**/*.c", NULL, "lib/c.c:3:one (1)"},
    {"pattern=s literal=j", "one (1)", "true", NULL, "lib/c.c:3:one (1)"},
    {"pattern=s literal=j", "one (1", "\"true\"", NULL, "lib/c.c:3:one (1)"},
    {"pattern=s mode=s", "one", "files", NULL, "a.c\nb.h\nlib/c.c"},
    {"pattern=s mode=s", "one", "files_with_matches", NULL,
     "a.c\nb.h\nlib/c.c"},
    {"pattern=s mode=s", "one", "count", NULL, "a.c:1\nb.h:1\nlib/c.c:2"},
    {"pattern=s mode=s path=s", "int", "count", "a.c", "a.c:3"},
    {"pattern=s", "absent", NULL, NULL, "(no matches; 4 files searched)"},
    {"pattern=s include=s", "absent", "*.h", NULL,
     "(no matches; 1 file searched)"},
    {"pattern=s limit=j", "one", "2", NULL,
     "a.c:1:int one;\nb.h:1:one\n[first 2 of 4 matching lines in 3 files; "
     "read on with offset=2]"},
    {"pattern=s limit=j offset=j", "one", "1", "1",
     "b.h:1:one\n[2-2 of 4 matching lines in 3 files; read on with "
     "offset=2]"},
    {"pattern=s offset=j", "one", "3", NULL,
     "lib/c.c:3:one (1)\n[4-4 of 4 matching lines in 3 files]"},
    {"pattern=s offset=j", "one", "4", NULL,
     "[past the end: there are 4 matching lines in 3 files]"},
    {"pattern=s offset=j", "absent", "4", NULL,
     "(no matches; 4 files searched)"},
    {"pattern=s offset=j mode=s", "one", "2", "files",
     "lib/c.c\n[3-3 of 3 files with matches]"},
    {"pattern=s include=s", "one", "c/*.c", NULL,
     "(no matches; 0 files searched; include matches none: with a slash in it "
     "it begins at path, **/ before it is any folder)"},
    {"pattern=s include=s", "one", "*.py", NULL,
     "(no matches; 0 files searched; include matches none: it is a pattern "
     "for names)"},
    {"pattern=s limit=j", "one", "4", NULL,
     "a.c:1:int one;\nb.h:1:one\nlib/c.c:1:none\nlib/c.c:3:one (1)"},
    {"pattern=s limit=j mode=s", "one", "2", "files",
     "a.c\nb.h\n[first 2 of 3 files with matches; read on with offset=2]"},
    {"pattern=s limit=j mode=s", "one", "2", "count",
     "a.c:1\nb.h:1\n[first 2 of 3 files with matches; read on with "
     "offset=2]"},
};

static void lines_that_match_are_shown(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    size_t      i;
    tf_enter("lines");
    make_tree();
    tools = tt_open(NULL);
    for (i = 0; i < TT_COUNT(cases); i++) {
        tt_call(&r, tools, "grep", cases[i].keys, cases[i].a, cases[i].b,
                cases[i].c);
        TT_OK(&r, cases[i].output);
        T_CHECK(tt_flag(&r, "truncated") ==
                (strstr(cases[i].output, "; read on") != NULL));
    }
    tt_call(&r, tools, "grep", "pattern=s", "one");
    T_CHECK(tt_int(&r, "count") == 4);
    tt_call(&r, tools, "grep", "pattern=s mode=s limit=j", "one", "files",
            "1");
    T_CHECK(tt_int(&r, "count") == 3 && tt_flag(&r, "truncated"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static const struct {
    const char *keys, *a, *b, *error;
    hfsb_status st;
} refusals[] = {
    {"path=s", ".", NULL, "", HFSB_ARG},
    {"pattern=s", "", NULL, "The pattern is empty.", HFSB_OK},
    {"pattern=s", "a\nb", NULL, "The pattern has a line feed in it", HFSB_OK},
    {"pattern=s mode=s", "a", "all", "mode must be content, files or count",
     HFSB_ARG},
    {"pattern=s context=j", "a", "-1", "context must be a number", HFSB_ARG},
    {"pattern=s limit=j", "a", "-1", "limit must be a number", HFSB_ARG},
    {"pattern=s offset=j", "a", "-1", "offset must be a number", HFSB_ARG},
    {"pattern=s path=s", "a", "none", "File not found: none", HFSB_OK},
    {"pattern=s path=s", "a", "pipe", "Is a FIFO", HFSB_OK},
};

static void what_makes_no_sense_is_refused_in_words(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    if (mkfifo("pipe", 0600)) abort();
    for (i = 0; i < TT_COUNT(refusals); i++) {
        tt_call(&r, tools, "grep", refusals[i].keys, refusals[i].a,
                refusals[i].b);
        TT_FAIL(&r, refusals[i].error);
        T_CHECK(r.st == refusals[i].st);
    }
    tt_call(&r, tools, "grep", "pattern=s", "foo(");
    T_CHECK(r.st == HFSB_OK && !r.res.success &&
            tt_says(&r.res.error, "literal=true"));
    tt_call(&r, tools, "grep", "pattern=s include=s", "one", "{*.c");
    T_CHECK(!r.res.success || tt_says(&r.res.output, "(no matches"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- context ---- */

static const struct {
    const char *pattern, *context, *output;
} around[] = {
    {"3", "1", "f-2-2\nf:3:3\nf-4-4"},
    {"[35]", "1", "f-2-2\nf:3:3\nf-4-4\nf:5:5\nf-6-6"},
    {"[36]", "1", "f-2-2\nf:3:3\nf-4-4\nf-5-5\nf:6:6\nf-7-7"},
    {"[37]", "1", "f-2-2\nf:3:3\nf-4-4\n--\nf-6-6\nf:7:7\nf-8-8"},
    {"[34]", "1", "f-2-2\nf:3:3\nf:4:4\nf-5-5"},
    {"1", "2", "f:1:1\nf-2-2\nf-3-3"},
    {"9", "2", "f-7-7\nf-8-8\nf:9:9"},
    {"5", "99",
     "f-1-1\nf-2-2\nf-3-3\nf-4-4\nf:5:5\nf-6-6\nf-7-7\nf-8-8\n"
     "f-9-9"},
};

static void lines_around_a_match_come_along(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    size_t      i;
    tf_enter("context");
    tf_put("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    tools = tt_open(NULL);
    for (i = 0; i < TT_COUNT(around); i++) {
        tt_call(&r, tools, "grep", "pattern=s context=j", around[i].pattern,
                around[i].context);
        TT_OK(&r, around[i].output);
    }
    tf_put("g", "x\n1\n");
    tt_call(&r, tools, "grep", "pattern=s context=j", "1", "1");
    TT_OK(&r, "f:1:1\nf-2-2\n--\ng-1-x\ng:2:1");
    /* the line that is not shown does not cost its neighbours */
    tt_call(&r, tools, "grep", "pattern=s context=j limit=j path=s", "[25]",
            "1", "1", "f");
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output),
                            HFSB_LIT("f-1-1\nf:2:2\nf-3-3\n[first 1 of 2")));
    /* nor is what was left out context of the next */
    tt_call(&r, tools, "grep", "pattern=s context=j offset=j path=s", "[245]",
            "2", "1", "f");
    TT_OK(&r, "f-3-3\nf:4:4\nf:5:5\nf-6-6\nf-7-7\n"
              "[2-3 of 3 matching lines in 1 file]");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- large files and long lines ---- */

/* Context and numbers across the blocks in which a file is read. */
static void a_large_file_is_read_in_pieces(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    hfsb_buf    big = HFSB_INIT;
    int         i;
    tf_enter("large");
    for (i = 1; i <= 200000; i++)
        if (hfsb_buf_printf(&big, "line %d%s\n", i,
                            i % 40000 == 0 ? " here" : "") != HFSB_OK)
            abort();
    tt_put("big", hfsb_buf_str(&big));
    tools = tt_open(NULL);
    tt_call(&r, tools, "grep", "pattern=s context=j", "here$", "2");
    TT_OK(&r, "big-39998-line 39998\nbig-39999-line 39999\n"
              "big:40000:line 40000 here\n"
              "big-40001-line 40001\nbig-40002-line 40002\n--\n"
              "big-79998-line 79998\nbig-79999-line 79999\n"
              "big:80000:line 80000 here\n"
              "big-80001-line 80001\nbig-80002-line 80002\n--\n"
              "big-119998-line 119998\nbig-119999-line 119999\n"
              "big:120000:line 120000 here\n"
              "big-120001-line 120001\nbig-120002-line 120002\n--\n"
              "big-159998-line 159998\nbig-159999-line 159999\n"
              "big:160000:line 160000 here\n"
              "big-160001-line 160001\nbig-160002-line 160002\n--\n"
              "big-199998-line 199998\nbig-199999-line 199999\n"
              "big:200000:line 200000 here");
    /* every line in turn is the one at a border of blocks */
    tt_call(&r, tools, "grep", "pattern=s mode=s", "line", "count");
    TT_OK(&r, "big:200000");
    tt_call(&r, tools, "grep", "pattern=s mode=s", "absent|^$", "count");
    TT_OK(&r, "(no matches; 1 file searched)");
    tt_drop(&r);
    hfsb_buf_free(&big);
    hfsb_tools_close(tools);
}

/* The lines before a match are the first that are left of what was read. */
static void a_gap_shows_also_at_a_border(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    hfsb_buf    text = HFSB_INIT;
    int         i;
    tf_enter("border");
    tools = tt_open(NULL);
    for (i = 1; i <= 5000; i++) /* 64 bytes each, 4096 in a block */
        if (hfsb_buf_printf(&text, "%-63s\n",
                            i == 9 || i == 4097 ? "here" : "") != HFSB_OK)
            abort();
    tt_put("f", hfsb_buf_str(&text));
    tt_call(&r, tools, "grep", "pattern=s context=j", "here", "2");
    T_CHECK(tt_says(&r.res.output, "\nf:9:here") &&
            tt_says(&r.res.output, "\n--\nf-4095-") &&
            tt_says(&r.res.output, "\nf-4096-") &&
            tt_says(&r.res.output, "\nf:4097:here"));
    tt_drop(&r);
    hfsb_buf_free(&text);
    hfsb_tools_close(tools);
}

static void a_long_line_is_cut_around_its_match(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    hfsb_buf    text = HFSB_INIT;
    tf_enter("long");
    tools = tt_open(NULL);
    tt_fill(&text, "a", 5000);
    tt_fill(&text, "needle", 1);
    tt_fill(&text, "\xC3\xA9", 5000);
    tt_fill(&text, "\n", 1);
    tt_put("f", hfsb_buf_str(&text));
    tt_call(&r, tools, "grep", "pattern=s", "needle");
    T_CHECK(
        hfsb_str_starts(hfsb_buf_str(&r.res.output), HFSB_LIT("f:1:...aaaa")));
    T_CHECK(tt_says(&r.res.output, "aneedle\xC3\xA9"));
    T_CHECK(tt_says(&r.res.output,
                    "\xC3\xA9... (cut: the line has 10006 characters)"));
    T_CHECK(hfsb_utf8_count(hfsb_buf_str(&r.res.output)) < 470);
    tt_call(&r, tools, "grep", "pattern=s", "^a");
    T_CHECK(
        hfsb_str_starts(hfsb_buf_str(&r.res.output), HFSB_LIT("f:1:aaaa")));
    tt_call(&r, tools, "grep", "pattern=s", "\xC3\xA9$");
    T_CHECK(tt_says(&r.res.output, "\xC3\xA9 (cut: the line has"));
    /* 400 characters are whole, whatever their bytes */
    hfsb_buf_truncate(&text, 0);
    tt_fill(&text, "\xC3\xA9", 400);
    tt_put("f", hfsb_buf_str(&text));
    tt_call(&r, tools, "grep", "pattern=s", "\xC3\xA9");
    T_CHECK(r.res.output.len == 4 + 800 && !tt_says(&r.res.output, "cut"));
    tt_drop(&r);
    hfsb_buf_free(&text);
    hfsb_tools_close(tools);
}

/* One of 20 MB: memory stays bounded, what is near its end is found, and it
   is one line however often it matches. */
static void a_line_without_end_is_searched_too(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    int         fd = open("endless", O_CREAT | O_WRONLY, 0600), i;
    char        block[65536];
    memset(block, 'z', sizeof block);
    for (i = 0; i < 320; i++)
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block) abort();
    if (write(fd, "needle\nnext\n", 12) != 12) abort();
    close(fd);
    tt_call(&r, tools, "grep", "pattern=s path=s", "needle", "endless");
    T_CHECK(r.res.success && r.res.output.len < 1000 &&
            hfsb_str_starts(hfsb_buf_str(&r.res.output),
                            HFSB_LIT("endless:1:...")));
    tt_call(&r, tools, "grep", "pattern=s path=s", "next", "endless");
    TT_OK(&r, "endless:2:next");
    tt_call(&r, tools, "grep", "pattern=s path=s mode=s", "z|next", "endless",
            "count");
    TT_OK(&r, "endless:2");
    tt_call(&r, tools, "grep", "pattern=s path=s limit=j context=j", "z",
            "endless", "1", "1");
    T_CHECK(tt_int(&r, "count") == 1 && !tt_flag(&r, "truncated"));
    T_CHECK(tt_says(&r.res.output, "characters)\nendless-2-next"));
    tt_call(&r, tools, "grep", "pattern=s path=s offset=j", "z|n", "endless",
            "1");
    T_CHECK(tt_says(&r.res.output, "endless:2:next\n[2-2 of 2"));
    unlink("endless");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void a_reply_has_an_end(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    hfsb_buf    text = HFSB_INIT;
    tf_enter("full");
    tools = tt_open(NULL);
    tt_fill(&text,
            "a line that is about eighty bytes long and matches what "
            "we look for, each time\n",
            2000);
    tt_put("f", hfsb_buf_str(&text));
    tt_call(&r, tools, "grep", "pattern=s", "line");
    T_CHECK(tt_says(&r.res.output, "[first 200 of 2000 matching lines in 1 "));
    tt_call(&r, tools, "grep", "pattern=s limit=j", "line", "5000");
    T_CHECK(r.res.output.len > 39900 && r.res.output.len < 42000);
    T_CHECK(tt_says(&r.res.output, " of 2000 matching lines"));
    T_CHECK(tt_int(&r, "count") == 2000 && tt_flag(&r, "truncated"));
    tt_drop(&r);
    hfsb_buf_free(&text);
    hfsb_tools_close(tools);
}

static void pages_have_each_match_once(void) {
    static const char *const keys[] = {
        "\"pattern\":\"here\",\"limit\":10000",
        "\"pattern\":\"here\",\"limit\":10000,\"context\":2",
        "\"pattern\":\"here\",\"limit\":10000,\"context\":20",
        "\"pattern\":\"here\",\"limit\":70,\"context\":1",
        "\"pattern\":\"here\",\"limit\":7,\"mode\":\"files\"",
        "\"pattern\":\"here\",\"limit\":9,\"mode\":\"count\""};
    hfsb_tools *tools;
    hfsb_buf    text = HFSB_INIT;
    char        name[32];
    int         i, k, matches = 0;
    tf_enter("pages");
    for (i = 0; i < 30; i++) {
        hfsb_buf_truncate(&text, 0);
        for (k = 0; k < 40 * i; k++) {
            bool here = k % 7 == i % 7 || k % 11 == 3;
            matches += here;
            tt_fill(&text, here ? "here " : "(around) ", 1);
            tt_fill(&text, "0123456789", (size_t)(k % 40));
            tt_fill(&text, "\n", 1);
        }
        snprintf(name, sizeof name, "f%02d", i);
        tt_put(name, hfsb_buf_str(&text));
    }
    tools = tt_open(NULL);
    for (i = 0; i < 4; i++)
        T_CHECK(tf_pages(tools, "grep", keys[i], matches) > 10);
    T_CHECK(tf_pages(tools, "grep", keys[4], 29) == 5);
    T_CHECK(tf_pages(tools, "grep", keys[5], 29) == 4);
    hfsb_buf_free(&text);
    hfsb_tools_close(tools);
}

/* ---- what is passed over ---- */

static void binary_files_are_skipped_and_bad_bytes_repaired(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    tf_enter("binary");
    tools = tt_open(NULL);
    tt_put("bin", HFSB_LIT("one\0one\n"));
    tt_put("latin", HFSB_LIT("caf\xE9 one\n"));
    tt_call(&r, tools, "grep", "pattern=s", "one");
    TT_OK(&r, "latin:1:caf\xEF\xBF\xBD one\n(bytes that are not UTF-8 are "
              "shown as \xEF\xBF\xBD)");
    tt_call(&r, tools, "grep", "pattern=s", "two");
    TT_OK(&r, "(no matches; 1 file searched, 1 binary file skipped)");
    tt_call(&r, tools, "grep", "pattern=s path=s", "one", "bin");
    TT_OK(&r, "(no matches; 0 files searched, 1 binary file skipped)");
    tf_put("a\nb:c", "one\n");
    tt_call(&r, tools, "grep", "pattern=s include=s", "one", "a*");
    TT_OK(&r, "a\\nb:c:1:one");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void ignored_files_are_not_searched(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    tf_enter("ignored");
    tools = tt_open(NULL);
    tf_put(".git/config", "one\n");
    tf_put(".gitignore", "node_modules/\n");
    tf_put("node_modules/a/b.js", "one\n");
    tf_put("c.js", "two\n");
    tt_call(&r, tools, "grep", "pattern=s", "one");
    TT_OK(&r, "(no matches; 2 files searched; what .gitignore names was left "
              "out, all=true includes it)");
    tt_call(&r, tools, "grep", "pattern=s all=j", "one", "true");
    TT_OK(&r, ".git/config:1:one\nnode_modules/a/b.js:1:one");
    tt_call(&r, tools, "grep", "pattern=s path=s", "one", "node_modules");
    TT_OK(&r, "node_modules/a/b.js:1:one");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void nothing_outside_the_root_is_read(void) {
    static const char *const paths[] = {"..", "../secret", "out", "file",
                                        "/etc/passwd"};
    hfsb_tools              *tools;
    tt_reply                 r = HFSB_INIT;
    size_t                   i;
    tf_enter("rooted");
    tf_put("secret/key", "one\n");
    tf_put("root/in/a", "one\n");
    if (symlink("../secret", "root/out") ||
        symlink("../secret/key", "root/file") ||
        symlink("in/a", "root/good") || symlink("/dev/zero", "root/zero") ||
        mkfifo("root/pipe", 0600))
        abort();
    tools = tf_rooted("root");
    for (i = 0; i < TT_COUNT(paths); i++) {
        tt_call(&r, tools, "grep", "pattern=s path=s", "one", paths[i]);
        TT_FAIL(&r, "Path is outside the root");
    }
    tt_call(&r, tools, "grep", "pattern=s", "one");
    TT_OK(&r, "in/a:1:one");
    tt_call(&r, tools, "grep", "pattern=s path=s", "one", "good");
    TT_OK(&r, "good:1:one");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* What bash saved is for the session to search, wherever it lies. */
static void long_output_is_searched_where_it_was_saved(void) {
    hfsb_tools *tools = tf_rooted("root");
    tt_reply    r = HFSB_INIT;
    const char *path;
    char        want[200];
    tt_call(&r, tools, "bash", "command=s",
            "i=0; while [ $i -lt 4000 ]; do echo number $i; i=$((i+1)); done");
    path = tt_keep(tt_text(&r, "spill_path"));
    T_CHECK(path[0] == '/');
    tt_call(&r, tools, "grep", "pattern=s path=s", "^number 2000$", path);
    snprintf(want, sizeof want, "%s:2001:number 2000", path);
    TT_OK(&r, want);
    if (unlink(path) || symlink("/etc/passwd", path)) abort();
    tt_call(&r, tools, "grep", "pattern=s path=s", "root", path);
    T_CHECK(!r.res.success);
    unlink(path);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void each_allocation_fails_cleanly(void) {
    tf_enter("memory");
    tf_put(".gitignore", "x\n");
    tf_put("d/a.c", "one\ntwo\nthree\n");
    tf_put("d/b.c", "two\nthree\n");
    tf_each_allocation_fails("grep", "{\"pattern\":\"t[wh]\",\"include\":"
                                     "\"*.{c,h}\",\"context\":1}");
    tf_each_allocation_fails("grep", "{\"pattern\":\"one\",\"mode\":\"count\","
                                     "\"path\":\"d/a.c\",\"literal\":true}");
}

/* ---- beside GNU grep ---- */

static void write_words(const char *path, unsigned long long *seed) {
    static const char *const words[] = {"alpha", "beta",  "x(1)", "[y]", "a.b",
                                        "Gamma", "delta", "",     "  ",  "7"};
    hfsb_buf                 text = HFSB_INIT;
    int                      lines = (int)(t_random(seed) % 60), i, k;
    for (i = 0; i < lines; i++) {
        for (k = (int)(t_random(seed) % 6); k > 0; k--)
            if (hfsb_buf_printf(&text, "%s ", words[t_random(seed) % 10]) !=
                HFSB_OK)
                abort();
        if ((i + 1 < lines || t_random(seed) % 2) &&
            hfsb_buf_append_byte(&text, '\n') != HFSB_OK)
            abort();
    }
    tt_put(path, hfsb_buf_str(&text));
    hfsb_buf_free(&text);
}

static void make_random_tree(void) {
    unsigned long long seed = 12345;
    char               path[64];
    int                i;
    for (i = 0; i < 40; i++) {
        snprintf(path, sizeof path, "d%lu/e%lu/f%d.%s", t_random(&seed) % 3,
                 t_random(&seed) % 3, i, i % 2 ? "c" : "txt");
        tf_put(path, "");
        write_words(path, &seed);
    }
}

static void grep_finds_what_gnu_grep_finds(void) {
    static const struct {
        const char *json, *command;
    } pairs[] = {
        {"{\"pattern\":\"beta\"}", "grep -rnE beta ."},
        {"{\"pattern\":\"a.b\"}", "grep -rnE a.b ."},
        {"{\"pattern\":\"a.b\",\"literal\":true}", "grep -rnF a.b ."},
        {"{\"pattern\":\"x(1)\",\"literal\":true}", "grep -rnF 'x(1)' ."},
        {"{\"pattern\":\"^(alpha|beta) .*7 $\"}",
         "grep -rnE '^(alpha|beta) .*7 $' ."},
        {"{\"pattern\":\"gamma\",\"ignore_case\":true}", "grep -rniE gamma ."},
        {"{\"pattern\":\"^$\"}", "grep -rnE '^$' ."},
        {"{\"pattern\":\"delta.*delta\",\"context\":2}",
         "grep -rnE -C2 'delta.*delta' ."},
        {"{\"pattern\":\"alpha\",\"include\":\"*.c\"}",
         "grep -rnE --include='*.c' alpha ."},
        {"{\"pattern\":\"alpha\",\"mode\":\"files\"}", "grep -rlE alpha ."},
        {"{\"pattern\":\"[[:upper:]]amma\",\"mode\":\"count\"}",
         "grep -rcE '[[:upper:]]amma' . | grep -v ':0$'"},
    };
    hfsb_tools *tools;
    hfsb_buf    theirs = HFSB_INIT;
    size_t      i;
    tf_enter("peers");
    make_random_tree();
    tools = tt_open(NULL);
    if (!tf_shell("grep --version | grep -q GNU", &theirs)) {
        t_skipped++;
        hfsb_buf_free(&theirs);
        hfsb_tools_close(tools);
        return;
    }
    for (i = 0; i < TT_COUNT(pairs); i++) {
        tt_reply r = HFSB_INIT;
        char     command[200], json[200];
        size_t   n = strlen(pairs[i].json);
        snprintf(json, sizeof json, "%.*s,\"limit\":10000}", (int)n - 1,
                 pairs[i].json);
        snprintf(command, sizeof command, "LC_ALL=C %s | sed 's,^\\./,,'",
                 pairs[i].command);
        T_CHECK(tf_shell(command, &theirs) && theirs.len > 0);
        tt_do(&r, tools, "grep", hfsb_cstr(json), NULL);
        T_CHECK(r.res.success && !tt_flag(&r, "truncated"));
        T_CHECK(tf_same_lines(pairs[i].command, &r.res.output, &theirs));
        tt_drop(&r);
    }
    hfsb_buf_free(&theirs);
    hfsb_tools_close(tools);
}

/* ---- what takes too long ---- */

/* It has twice the size that it had: the rest is for the next search, or one
   that grows as fast as it is read would have no end. */
static void a_file_that_grows_has_an_end(void) {
    hfsbi_finder f = HFSB_INIT;
    hfsbi_hits   lines = HFSB_INIT;
    hfsb_buf     out = HFSB_INIT;
    char         block[65536];
    int          fd = open("grows", O_CREAT | O_RDWR | O_CLOEXEC, 0600), i;
    memset(block, '\n', sizeof block);
    for (i = 0; i < 32; i++)
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block) abort();
    if (lseek(fd, 0, SEEK_SET)) abort();
    f.until = hfsb_clock_ms() + 60000;
    lines.finder = &f;
    lines.mode = HFSBI_GREP_COUNT;
    lines.out = &out;
    T_CHECK(hfsb_regex_open(HFSB_LIT("^$"), NULL, &lines.regex, NULL) ==
            HFSB_OK);
    T_CHECK(hfsbi_hits_run(&lines, fd, 16 * sizeof block - 1) == HFSB_OK);
    T_CHECK(lines.file.matches == 16 * sizeof block);
    close(fd);
    unlink("grows");
    hfsb_regex_close(lines.regex);
    hfsb_buf_free(&lines.window);
}

static void one_file_takes_no_longer_than_a_walk(void) {
    hfsbi_finder f;
    hfsbi_hits   lines;
    hfsb_buf     out = HFSB_INIT;
    long long    began;
    int          fd;
    tt_put_huge("huge.txt");
    memset(&f, 0, sizeof f);
    memset(&lines, 0, sizeof lines);
    lines.finder = &f;
    lines.mode = HFSBI_GREP_COUNT;
    lines.out = &out;
    T_CHECK(hfsb_regex_open(HFSB_LIT("some"), NULL, &lines.regex, NULL) ==
            HFSB_OK);
    fd = open("huge.txt", O_RDONLY | O_CLOEXEC);
    began = hfsb_clock_ms();
    f.until = began + 300;
    T_CHECK(hfsbi_hits_run(&lines, fd, 1ull << 38) == HFSB_OK);
    T_CHECK(f.end == HFSBI_WALK_LATE && lines.file.matches == 4000);
    T_CHECK(hfsb_clock_ms() - began < 20000);
    close(fd);
    hfsb_regex_close(lines.regex);
    hfsb_buf_free(&lines.window);
    hfsb_buf_free(&out);
}

static void *cancel_soon(void *cancel) {
    tt_sleep_ms(50);
    hfsb_cancel_set((hfsb_cancel *)cancel);
    return NULL;
}

static void a_search_can_be_cancelled(void) {
    static const struct {
        const char *tool, *json;
        bool        success;
    } cases[] = {
        {"grep", "{\"pattern\":\"none\",\"path\":\"huge.txt\"}", true},
        {"grep", "{\"pattern\":\"none\"}", true},
        /* a table of no use, and many states */
        {"grep",
         "{\"pattern\":\"[sw](o|m|e| |w|r|d|s){9,900}$\",\"path\":"
         "\"ab.txt\"}",
         true},
        {"read", "{\"path\":\"huge.txt\",\"offset\":-3}", false},
        {"read", "{\"path\":\"huge.txt\",\"offset\":999999}", false},
    };
    hfsb_tools *tools = tt_open(NULL);
    hfsb_buf    text = HFSB_INIT;
    size_t      i;
    for (i = 0; i < 1500000; i++)
        if (hfsb_buf_append_byte(&text, "some words"[i * i % 10]) != HFSB_OK)
            abort();
    tt_put("ab.txt", hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    for (i = 0; i < TT_COUNT(cases); i++) {
        hfsb_call_opts   opts = HFSB_INIT;
        hfsb_tool_result r;
        long long        began;
        pthread_t        thread;
        hfsb_cancel      cancel;
        hfsb_status      st;
        int              tries = 0; /* cancelled before it has begun */
        hfsbi_cancel_init(&cancel);
        opts.cancel = &cancel;
        do {
            hfsb_cancel_reset(&cancel);
            began = hfsb_clock_ms();
            T_CHECK(!pthread_create(&thread, NULL, cancel_soon, &cancel));
            st = hfsb_tools_call_text(tools, hfsb_cstr(cases[i].tool),
                                      hfsb_cstr(cases[i].json), &opts, &r);
            T_CHECK(!pthread_join(thread, NULL));
            if (st != HFSB_CANCELLED) break;
            hfsb_tool_result_free(&r);
        } while (tries++ < 20);
        T_CHECK(st == HFSB_OK);
        T_CHECK(r.success == cases[i].success);
        T_CHECK(hfsb_str_find(hfsb_buf_str(r.success ? &r.output : &r.error),
                              r.success ? HFSB_LIT("stopped early")
                                        : HFSB_LIT("Cancelled")) != HFSB_NPOS);
        T_CHECK(hfsb_clock_ms() - began < 20000);
        hfsb_tool_result_free(&r);
        hfsbi_cancel_free(&cancel);
    }
    unlink("huge.txt");
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(lines_that_match_are_shown);
    TT_RUN(what_makes_no_sense_is_refused_in_words);
    TT_RUN(lines_around_a_match_come_along);
    TT_RUN(a_large_file_is_read_in_pieces);
    TT_RUN(a_gap_shows_also_at_a_border);
    TT_RUN(a_long_line_is_cut_around_its_match);
    TT_RUN(a_line_without_end_is_searched_too);
    TT_RUN(a_reply_has_an_end);
    TT_RUN(pages_have_each_match_once);
    TT_RUN(binary_files_are_skipped_and_bad_bytes_repaired);
    TT_RUN(ignored_files_are_not_searched);
    TT_RUN(nothing_outside_the_root_is_read);
    TT_RUN(long_output_is_searched_where_it_was_saved);
    TT_RUN(a_file_that_grows_has_an_end);
    TT_RUN(one_file_takes_no_longer_than_a_walk);
    TT_RUN(a_search_can_be_cancelled);
    TT_RUN(each_allocation_fails_cleanly);
    TT_RUN(grep_finds_what_gnu_grep_finds);
    return TT_END();
}
