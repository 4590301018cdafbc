/* test_tools_files.c - the tools that change files: write, edit, multi_edit,
   apply_patch; and exists. */
#include "../support/t_tools.h"

#include <sys/sysmacros.h>

/* ---- write ---- */

static void write_makes_files_and_directories(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    struct stat st;
    mode_t      old = umask(027);
    tt_call(&r, tools, "write", "path=s content=s", "new/deep/f.txt",
            "h\xC3\xA9\r\n");
    T_STR(r.res.output, "Wrote 5 bytes to new/deep/f.txt");
    T_CHECK(r.res.success && !tt_flag(&r, "in_place"));
    TT_FILE("new/deep/f.txt", "h\xC3\xA9\r\n");
    T_CHECK(!stat("new/deep/f.txt", &st) && (st.st_mode & 07777) == 0640);
    umask(old);
    tt_call(&r, tools, "write", "path=s content=s", "new/deep/f.txt", "");
    TT_OK(&r, "Wrote 0 bytes to new/deep/f.txt");
    TT_FILE("new/deep/f.txt", "");
    tt_call(&r, tools, "write", "path=s content=v", "nul",
            hfsb_str_make("a\0b", 3));
    TT_OK(&r, "Wrote 3 bytes to nul");
    TT_FILE("nul", "a\0b");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void write_refuses_what_is_no_file(void) {
    static const char *const paths[] = {"dir",   "fifo", "device", "",
                                        "nul/x", "~/x",  "dir/"};
    hfsb_tools              *tools = tt_open(NULL);
    tt_reply                 r = HFSB_INIT;
    size_t                   i;
    mkdir("dir", 0755);
    tt_put("nul", HFSB_LIT("x"));
    if (access("fifo", F_OK)) T_CHECK(!mkfifo("fifo", 0600));
    if (mknod("device", S_IFCHR | 0666, makedev(1, 3))) {
        printf("no device can be made here: a FIFO is used instead\n");
        t_skipped++;
        T_CHECK(!mkfifo("device", 0600));
    }
    for (i = 0; i < TT_COUNT(paths); i++) {
        tt_call(&r, tools, "write", "path=s content=s", paths[i], "x");
        T_CHECK(!r.res.success);
        if (r.res.success) printf("  \"%s\"\n", paths[i]);
    }
    T_CHECK(access("~", F_OK) != 0);
    tt_call(&r, tools, "write", "path=s content=s", "dir", "x");
    TT_FAIL(&r, "Is a directory: dir");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void write_can_ask_for_the_content_it_knows(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    char        hex[HFSB_SHA256_HEX];
    tt_put("guarded", HFSB_LIT("one\n"));
    tt_call(&r, tools, "read", "path=s", "guarded");
    snprintf(hex, sizeof hex, "%s", tt_text(&r, "sha256").ptr);
    tt_call(&r, tools, "write", "path=s content=s if_sha256=s", "guarded",
            "two\n", hex);
    TT_OK(&r, "Wrote 4 bytes to guarded");
    tt_call(&r, tools, "write", "path=s content=s if_sha256=s", "guarded",
            "three\n", hex);
    TT_FAIL(&r, "");
    T_CHECK(tt_says(&r.res.error, "guarded"));
    TT_FILE("guarded", "two\n");
    tt_call(&r, tools, "write", "path=s content=s if_sha256=s", "guarded",
            "three\n", "what");
    TT_FAIL(&r, "");
    tt_call(&r, tools, "write", "path=s content=s if_sha256=j", "guarded",
            "three\n", "null");
    T_CHECK(r.res.success);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void left_over_temporaries_are_removed(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    char        ours[64];
    mkdir("temps", 0755);
    tt_put("temps/.f.hfsb-999999999-1", HFSB_LIT("dead"));
    snprintf(ours, sizeof ours, "temps/.g.hfsb-%ld-1", (long)getppid());
    tt_put(ours, HFSB_LIT("alive"));
    tt_put("temps/.f.other", HFSB_LIT("theirs"));
    tt_call(&r, tools, "write", "path=s content=s", "temps/f", "x");
    T_CHECK(r.res.success);
    T_CHECK(access("temps/.f.hfsb-999999999-1", F_OK) != 0);
    TT_FILE(ours, "alive");
    TT_FILE("temps/.f.other", "theirs");
    T_CHECK(tt_entries("temps", "") == 3);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* In a child that is no superuser when we are one. */
static void files_without_permission_are_refused(void) {
    pid_t pid;
    int   status = -1;
    mkdir("locked", 0755);
    tt_put("locked/f", HFSB_LIT("keep\n"));
    T_CHECK(!chmod("locked/f", 0444));
    T_CHECK(!chmod("locked", 0777));
    pid = fork();
    if (pid == 0) {
        hfsb_tools *tools = NULL;
        tt_reply    r = HFSB_INIT;
        int         bad = 0;
        if (getuid() == 0 && (setgid(65534) || setuid(65534))) _exit(99);
        if (hfsb_tools_open(NULL, &tools, NULL) != HFSB_OK) _exit(98);
        tt_call(&r, tools, "write", "path=s content=s", "locked/f", "x");
        bad += r.res.success;
        tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "locked/f",
                "keep", "x");
        bad += r.res.success;
        bad += !tt_says(&r.res.error, "locked/f");
        bad += tt_entries("locked", "") != 1;
        tt_drop(&r);
        hfsb_tools_close(tools);
        _exit(bad);
    }
    waitpid(pid, &status, 0);
    T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    TT_FILE("locked/f", "keep\n");
}

/* ---- what a change leaves alone ---- */

static const struct change {
    const char *tool, *json; /* of a file "kept" that holds a line "old" */
} changes[] = {
    {"edit", "{\"path\":\"kept\",\"old_str\":\"old\",\"new_str\":\"new\"}"},
    {"multi_edit",
     "{\"path\":\"kept\",\"edits\":[{\"old_str\":\"old\",\"new_str\":\"new\"}]"
     "}"},
    {"apply_patch",
     "{\"patch\":\"*** Begin Patch\\n*** Update File: kept\\n@@\\n-old\\n+new"
     "\\n*** End Patch\\n\"}"},
};

static const struct {
    hfsb_str before, after;
} contents[] = {
    {{"a\nold\nb\n", 8}, {"a\nnew\nb\n", 8}},
    {{"a\r\nold\r\nb\r\n", 11}, {"a\r\nnew\r\nb\r\n", 11}},
    {{"\xEF\xBB\xBF"
      "a\nold\nb\n",
      11},
     {"\xEF\xBB\xBF"
      "a\nnew\nb\n",
      11}},
    {{"a\nold\nb", 7}, {"a\nnew\nb", 7}},
    {{"a\nold", 5}, {"a\nnew", 5}},
    {{"a\r\nold\nb\r\n", 10}, {"a\r\nnew\nb\r\n", 10}},
    {{"\xFF\nold\nb\x00\n", 9}, {"\xFF\nnew\nb\x00\n", 9}},
};

static void bytes_that_are_not_edited_stay(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i, k;
    for (i = 0; i < TT_COUNT(changes); i++)
        for (k = 0; k < TT_COUNT(contents); k++) {
            unlink("kept");
            tt_put("kept", contents[k].before);
            tt_do(&r, tools, changes[i].tool, hfsb_cstr(changes[i].json),
                  NULL);
            T_CHECK(r.sane);
            TT_OK(&r, NULL);
            /* the lines of a patch have ends */
            if (i == 2 && k == 4) TT_FILE("kept", "a\nnew\n");
            else T_CHECK(tt_file_is("kept", contents[k].after));
        }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void check_change(hfsb_tools *tools, size_t i, struct stat *before,
                         struct stat *after, tt_reply *r) {
    T_CHECK(!stat("kept", before));
    if (i < TT_COUNT(changes))
        tt_do(r, tools, changes[i].tool, hfsb_cstr(changes[i].json), NULL);
    else
        tt_do(r, tools, "write",
              HFSB_LIT("{\"path\":\"kept\",\"content\":\"new\\n\"}"), NULL);
    T_CHECK(r->sane);
    TT_OK(r, NULL);
    TT_FILE("kept", "new\n");
    T_CHECK(!stat("kept", after));
    T_CHECK(after->st_mode == before->st_mode);
    T_CHECK(after->st_uid == before->st_uid &&
            after->st_gid == before->st_gid);
}

static void mode_owner_and_links_stay(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    struct stat a, b, l;
    size_t      i;
    mkdir("target", 0755);
    for (i = 0; i <= TT_COUNT(changes); i++) {
        unlink("kept");
        tt_put("kept", HFSB_LIT("old\n"));
        T_CHECK(!chmod("kept", 0755));
        check_change(tools, i, &a, &b, &r);
        T_CHECK((b.st_mode & 07777) == 0755 && !tt_flag(&r, "in_place"));
        tt_put("kept", HFSB_LIT("old\n"));
        T_CHECK(!chmod("kept", 0604));
        if (getuid() == 0) T_CHECK(!chown("kept", 12345, 54321));
        check_change(tools, i, &a, &b, &r);
        if (getuid() == 0) T_CHECK(b.st_uid == 12345 && b.st_gid == 54321);
        /* a symbolic link */
        unlink("kept");
        tt_put("target/real", HFSB_LIT("old\n"));
        T_CHECK(!symlink("target/real", "kept"));
        check_change(tools, i, &a, &b, &r);
        T_CHECK(!lstat("kept", &l) && S_ISLNK(l.st_mode));
        TT_FILE("target/real", "new\n");
        /* a hard link */
        unlink("kept");
        unlink("target/twin");
        tt_put("kept", HFSB_LIT("old\n"));
        T_CHECK(!link("kept", "target/twin"));
        check_change(tools, i, &a, &b, &r);
        T_CHECK(b.st_ino == a.st_ino && b.st_nlink == 2);
        TT_FILE("target/twin", "new\n");
        T_CHECK(tt_flag(&r, "in_place") || i == 2); /* patches: many files */
    }
    if (getuid() != 0) {
        printf("not root: owners are not tried\n");
        t_skipped++;
    }
    T_CHECK(tt_entries(".", ".kept") == 0);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- edit ---- */

static const struct {
    const char *before, *json; /* without the path */
    const char *output;        /* the whole of it, or NULL: it fails */
    const char *error;         /* beginning */
    const char *after;
} edit_cases[] = {
    {"a b\n", "\"old_str\":\"a\",\"new_str\":\"c\"",
     "Edited f (1 replacement)", NULL, "c b\n"},
    {"a a\n", "\"old_str\":\"a\",\"new_str\":\"c\",\"replace_all\":true",
     "Edited f (2 replacements)", NULL, "c c\n"},
    {"a a\n", "\"old_str\":\"a\",\"new_str\":\"c\",\"replace_all\":\"true\"",
     "Edited f (2 replacements)", NULL, "c c\n"},
    {"a a\n", "\"old_str\":\"a\",\"new_str\":\"c\",\"mode\":\"replace_all\"",
     "Edited f (2 replacements)", NULL, "c c\n"},
    {"a\n", "\"old_str\":\"a\",\"new_str\":\"\"", "Edited f (1 replacement)",
     NULL, "\n"},
    {"a\n", "\"old_str\":\"a\",\"new_str\":\"b\",\"mode\":\"append_after\"",
     "Edited f (1 replacement)", NULL, "ab\n"},
    {"a\n", "\"old_str\":\"a\",\"new_str\":\"b\",\"mode\":\"prepend_before\"",
     "Edited f (1 replacement)", NULL, "ba\n"},
    {"a\n", "\"old_str\":\"a\",\"new_str\":\"a\",\"mode\":\"append_after\"",
     "Edited f (1 replacement)", NULL, "aa\n"},
    {"x\n",
     "\"old_str\":\"x\",\"new_str\":\"y\",\"mode\":null,\"line\":null,"
     "\"exact\":null,\"replace_all\":null",
     "Edited f (1 replacement)", NULL, "y\n"},
    {"x\na\nx\n", "\"old_str\":\"x\",\"new_str\":\"y\",\"line\":3",
     "Edited f (1 replacement)", NULL, "x\na\ny\n"},
    {"if x:  \n  y\n", "\"old_str\":\"if x:\\n  y\\n\",\"new_str\":\"z\\n\"",
     "Edited f (1 replacement) (matched after trimming trailing whitespace)\n"
     "@@ -1,2 +1,1 @@\n-if x:  \n-  y\n+z",
     NULL, "z\n"},
    {"\xE2\x80\x9Cq\xE2\x80\x9D\n",
     "\"old_str\":\"\\\"q\\\"\",\"new_str\":\"z\"",
     "Edited f (1 replacement) (matched after unicode normalization)\n"
     "@@ -1,1 +1,1 @@\n-\xE2\x80\x9Cq\xE2\x80\x9D\n+z",
     NULL, "z\n"},
    {"a\r\n  b\r\nc\r\n", "\"old_str\":\"b\\n\",\"new_str\":\"B\"",
     "Edited f (1 replacement) (kept the line end after new_str)\n"
     "@@ -1,3 +1,3 @@\n a\n-  b\n+  B\n c",
     NULL, "a\r\n  B\r\nc\r\n"},
    {"a\n", "\"old_str\":\"a\",\"new_str\":\"a\"", NULL,
     "old_str and new_str must differ.", "a\n"},
    {"a\n", "\"old_str\":\"zzz\",\"new_str\":\"b\"", NULL,
     "old_str not found in file.", "a\n"},
    {"a a a\n", "\"old_str\":\"a\",\"new_str\":\"b\"", NULL,
     "old_str appears 3 times. Use replace_all=true or provide more context.",
     "a a a\n"},
    {"a a\n", "\"old_str\":\"a\",\"new_str\":\"b\",\"mode\":\"append_after\"",
     NULL,
     "old_str appears 2 times. Use replace_all=true or provide more context.",
     "a a\n"},
    {"a a\n",
     "\"old_str\":\"a\",\"new_str\":\"b\",\"mode\":\"append_after\","
     "\"replace_all\":true",
     "Edited f (2 replacements)", NULL, "ab ab\n"},
    {"a\n", "\"old_str\":\"a\",\"new_str\":\"b\",\"mode\":\"upside_down\"",
     NULL, "Unknown mode: upside_down", "a\n"},
    {"a  \nb\n", "\"old_str\":\"a\\nb\",\"new_str\":\"z\",\"exact\":true",
     NULL, "old_str not found in file.", "a  \nb\n"},
    {"a\n", "\"old_str\":\"\",\"new_str\":\"b\"", NULL, "", "a\n"},
};

/* An edit that was not made to the letter shows its diff, but not all of a long
   one; the key `diff` has it. */
static void edit_shows_a_short_diff(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    file = HFSB_INIT, text = HFSB_INIT;
    int         i;
    T_CHECK(hfsb_buf_printf(&file, "\xFF%0300d\nx y\n", 0) == HFSB_OK);
    tt_put("f", hfsb_buf_str(&file));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "f", "x  y", "z");
    T_CHECK(r.sane && r.res.success);
    T_CHECK(r.res.output.len < 400);
    T_CHECK(hfsb_str_find(hfsb_buf_str(&r.res.output),
                          HFSB_LIT("@@\n \xEF\xBF\xBD" "0000")) != HFSB_NPOS);
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.res.output),
                          HFSB_LIT("000...\n-x y\n+z")));
    for (i = 0; i < 100; i++)
        T_CHECK(hfsb_buf_printf(&text, "line %d\n", i) == HFSB_OK);
    tt_put("f", HFSB_LIT("a \nb\n"));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "f", "a\nb\n",
            text.ptr);
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.res.output),
                          HFSB_LIT("\n+line 26\n... (73 more lines of the "
                                   "diff)")));
    T_CHECK(tt_text(&r, "diff").len > 800);
    tt_drop(&r);
    hfsb_buf_free(&file);
    hfsb_buf_free(&text);
    hfsb_tools_close(tools);
}

/* What is found exactly may be replaced; nothing like it is looked for. */
static void a_binary_file_is_named_when_nothing_is_found(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    tt_put("f", HFSB_LIT("\0\1hello there\n\2"));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "f",
            "hello world", "bye");
    TT_FAIL(&r, "old_str not found in file. Nothing was changed.\nThe file is "
                "binary (15 bytes, a NUL byte near the start). To see its "
                "bytes use a command such as xxd, od -c or base64.");
    T_CHECK(!tt_says(&r.res.error, "The file has"));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "f", "hello",
            "bye");
    TT_OK(&r, "Edited f (1 replacement)");
    T_CHECK(tt_file_is("f", HFSB_LIT("\0\1bye there\n\2")));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void edits_do_and_say_what_they_should(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    char        json[500];
    for (i = 0; i < TT_COUNT(edit_cases); i++) {
        bool ok = edit_cases[i].output != NULL;
        tt_put("f", hfsb_cstr(edit_cases[i].before));
        snprintf(json, sizeof json, "{\"path\":\"f\",%s}", edit_cases[i].json);
        tt_do(&r, tools, "edit", hfsb_cstr(json), NULL);
        T_CHECK(r.sane);
        tt_expect(__LINE__, &r, ok, edit_cases[i].output, edit_cases[i].error);
        T_CHECK(tt_file_is("f", hfsb_cstr(edit_cases[i].after)));
        if (!ok) continue;
        T_CHECK(tt_int(&r, "count") >= 1);
        T_CHECK(hfsb_str_find(tt_text(&r, "diff"), HFSB_LIT("@@")) !=
                HFSB_NPOS);
        T_CHECK(hfsb_json_get(r.extra.root, "lines") != NULL);
    }
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "nothing", "a",
            "b");
    T_STR(r.res.error, "File not found: nothing");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "dir", "a", "b");
    TT_FAIL(&r, "Is a directory: dir");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void the_diff_is_bounded(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    text = HFSB_INIT;
    tt_fill(&text, "abc\nxyz\n", 200000);
    tt_put("wide", hfsb_buf_str(&text));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s replace_all=j",
            "wide", "b", "B", "true");
    TT_OK(&r, "Edited wide (200000 replacements)");
    T_CHECK(tt_int(&r, "count") == 200000);
    T_CHECK(r.res.fields.size < 1 << 20);
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void many_edits_are_all_or_none(void) {
    static const struct {
        const char *edits, *after;
        bool        ok;
    } cases[] = {
        {"[{\"old_str\":\"a\",\"new_str\":\"1\"},{\"old_str\":\"c\","
         "\"new_str\":\"3\"}]",
         "1\nb\n3\n", true},
        {"[{\"old_str\":\"c\",\"new_str\":\"3\"},{\"old_str\":\"a\","
         "\"new_str\":\"1\",\"mode\":\"append_after\"}]",
         "a1\nb\n3\n", true},
        {"[{\"old_str\":\"a\",\"new_str\":\"1\"},{\"old_str\":\"zz\","
         "\"new_str\":\"3\"}]",
         "a\nb\nc\n", false},
        {"[{\"old_str\":\"a\",\"new_str\":\"1\"},{\"old_str\":\"1\","
         "\"new_str\":\"2\"}]",
         "a\nb\nc\n", false},
        {"[{\"old_str\":\"a\\nb\",\"new_str\":\"1\"},{\"old_str\":\"b\","
         "\"new_str\":\"2\"}]",
         "a\nb\nc\n", false},
        {"[]", "a\nb\nc\n", false},
        {"[1]", "a\nb\nc\n", false},
        {"[{\"old_str\":\"a\"}]", "a\nb\nc\n", false},
    };
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    for (i = 0; i < TT_COUNT(cases); i++) {
        tt_put("f", HFSB_LIT("a\nb\nc\n"));
        tt_call(&r, tools, "multi_edit", "path=s edits=j", "f",
                cases[i].edits);
        tt_expect(__LINE__, &r, cases[i].ok, NULL, NULL);
        T_CHECK(tt_file_is("f", hfsb_cstr(cases[i].after)));
    }
    tt_call(&r, tools, "multi_edit", "path=s edits=j", "nothing",
            "[{\"old_str\":\"a\",\"new_str\":\"b\"}]");
    TT_FAIL(&r, "File not found: nothing");
    /* models send the list as a string, too */
    tt_put("f", HFSB_LIT("a\n"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void patches_change_several_files(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    tt_put("p1", HFSB_LIT("a\nb\nc\n"));
    tt_put("p2", HFSB_LIT("gone\n"));
    tt_put("p3", HFSB_LIT("move me\n"));
    tt_call(&r, tools, "apply_patch", "patch=s",
            "*** Begin Patch\n*** Add File: sub2/new\n+fresh\n*** Delete "
            "File: p2\n*** Update File: p1\n@@\n a\n-b\n+B\n c\n*** Update "
            "File: p3\n*** Move to: sub2/p4\n@@\n-move me\n+moved\n*** End "
            "Patch\n");
    TT_OK(&r, NULL);
    TT_FILE("p1", "a\nB\nc\n");
    TT_FILE("sub2/new", "fresh\n");
    TT_FILE("sub2/p4", "moved\n");
    T_CHECK(access("p2", F_OK) != 0 && access("p3", F_OK) != 0);
    T_CHECK(tt_says(&r.res.output, "p1") && tt_says(&r.res.output, "p2") &&
            tt_says(&r.res.output, "sub2/new"));
    /* one wrong hunk: no file changes */
    tt_call(&r, tools, "apply_patch", "patch=s",
            "*** Begin Patch\n*** Update File: p1\n@@\n-a\n+A\n*** Delete "
            "File: sub2/new\n*** Update File: sub2/p4\n@@\n-not there\n+x\n"
            "*** End Patch\n");
    TT_FAIL(&r, "");
    TT_FILE("p1", "a\nB\nc\n");
    TT_FILE("sub2/new", "fresh\n");
    tt_call(&r, tools, "apply_patch", "patch=s",
            "*** Begin Patch\n*** Add File: p1\n+x\n*** End Patch\n");
    TT_FAIL(&r, "");
    TT_FILE("p1", "a\nB\nc\n");
    tt_call(&r, tools, "apply_patch", "patch=s", "what?");
    TT_FAIL(&r, "");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Most of the lines shown of a long change are those that were written. */
static void a_long_edit_shows_more_of_what_was_written(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    file = HFSB_INIT, old_str = HFSB_INIT, new_str = HFSB_INIT;
    size_t      i;
    for (i = 0; i < 40; i++) {
        T_CHECK(hfsb_buf_printf(&file, "\tx%zu = 1\n", i) == HFSB_OK);
        T_CHECK(hfsb_buf_printf(&old_str, "x%zu = 1\n", i) == HFSB_OK);
        T_CHECK(hfsb_buf_printf(&new_str, "x%zu = 2\n", i) == HFSB_OK);
    }
    tt_put("long", hfsb_buf_str(&file));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "long",
            old_str.ptr, new_str.ptr);
    TT_OK(&r, NULL);
    T_CHECK(tt_says(&r.res.output, "\n-\tx3 = 1\n... (36 more removed)\n"
                                   "+\tx0 = 2\n") &&
            !tt_says(&r.res.output, "-\tx4") &&
            tt_says(&r.res.output, "\n+\tx24 = 2\n... (15 more lines of "
                                   "the diff)"));
    /* lines removed at the end of the diff */
    tt_put("long", hfsb_buf_str(&file));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "long",
            old_str.ptr, "");
    TT_OK(&r, NULL);
    T_CHECK(tt_says(&r.res.output, "\n-\tx3 = 1\n... (36 more removed)") &&
            !tt_says(&r.res.output, "more lines"));
    hfsb_buf_free(&file);
    hfsb_buf_free(&old_str);
    hfsb_buf_free(&new_str);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void patches_show_what_was_not_exact(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    patch = HFSB_INIT;
    size_t      i;
    tt_put("p5", HFSB_LIT("func f() {\n\tx := 1\n\treturn x\n}\n"));
    tt_put("p6", HFSB_LIT("a\n"));
    tt_call(&r, tools, "apply_patch", "patch=s",
            "*** Begin Patch\n*** Update File: p6\n-a\n+b\n*** Update File: "
            "p5\n@@\n     x := 1\n+    y := 2\n     return x\n*** End "
            "Patch\n");
    TT_OK(&r, "Updated p6\n"
              "Updated p5 (matched after trimming whitespace) (re-indented "
              "as the file is)\n"
              "@@ -1,4 +1,5 @@\n func f() {\n \tx := 1\n+\ty := 2\n"
              " \treturn x\n }");
    /* a long diff is cut */
    T_CHECK(hfsb_buf_printf(&patch, "p5\n<<<<<<< SEARCH\n    y := 2\n"
                                    "=======\n    y := 2\n") == HFSB_OK);
    for (i = 0; i < 60; i++)
        T_CHECK(hfsb_buf_printf(&patch, "    z%zu\n", i) == HFSB_OK);
    T_CHECK(hfsb_buf_printf(&patch, ">>>>>>> REPLACE\n") == HFSB_OK);
    tt_call(&r, tools, "apply_patch", "patch=s", patch.ptr);
    TT_OK(&r, NULL);
    T_CHECK(tt_says(&r.res.output, "+\tz25") &&
            tt_says(&r.res.output, "\n... (36 more lines of the diff)") &&
            !tt_says(&r.res.output, "z26"));
    /* one line for a file that is changed twice */
    tt_call(&r, tools, "apply_patch", "patch=s",
            "*** Begin Patch\n*** Update File: p6\n-b\n+c\n*** Update File: "
            "p6\n-c\n+d\n*** End Patch\n");
    TT_OK(&r, "Updated p6");
    TT_FILE("p6", "d\n");
    hfsb_buf_free(&patch);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void patches_change_one_file_more_than_once(void) {
    static const struct {
        const char *patch, *want; /* of the file "many", which was a b c */
    } cases[] = {
        {"*** Update File: many\n@@\n-a\n+A\n*** Update File: many\n@@\n-c\n"
         "+C\n",
         "A\nb\nC\n"},
        {"*** Delete File: many\n*** Add File: many\n+new\n", "new\n"},
        {"*** Update File: many\n@@\n-a\n+A\n*** Delete File: many\n"
         "*** Add File: many\n+new\n*** Update File: many\n@@\n-new\n+newer\n",
         "newer\n"},
        {"*** Update File: many\n@@\n-a\n+A\n*** Update File: many\n"
         "*** Move to: many2\n@@\n-c\n+C\n*** Update File: many2\n"
         "*** Move to: many\n@@\n-b\n+B\n",
         "A\nB\nC\n"}};
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    for (i = 0; i < TT_COUNT(cases); i++) {
        char patch[512];
        snprintf(patch, sizeof patch, "*** Begin Patch\n%s*** End Patch\n",
                 cases[i].patch);
        tt_put("many", HFSB_LIT("a\nb\nc\n"));
        tt_call(&r, tools, "apply_patch", "patch=s", patch);
        TT_OK(&r, NULL);
        T_CHECK(tt_file_is("many", hfsb_cstr(cases[i].want)));
        T_CHECK(access("many2", F_OK) != 0);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- several calls at once ---- */

enum { TP_THREADS = 8, TP_ROUNDS = 12 };

typedef struct tp_worker {
    hfsb_tools *tools;
    const char *tool; /* what counts the worker's own line up */
    int         line;
    int         counted; /* calls that succeeded */
    char        error[200]; /* of the last one that did not */
} tp_worker;

/* Arguments that turn "line {line}: {n}" into n + 1. */
static void tp_arguments(const tp_worker *w, int n, char *out, size_t size) {
    if (!strcmp(w->tool, "edit"))
        snprintf(out, size,
                 "{\"path\":\"shared\",\"old_str\":\"line %d: %d\","
                 "\"new_str\":\"line %d: %d\"}",
                 w->line, n, w->line, n + 1);
    else if (!strcmp(w->tool, "multi_edit"))
        snprintf(out, size,
                 "{\"path\":\"shared\",\"edits\":[{\"old_str\":"
                 "\"line %d: %d\",\"new_str\":\"line %d: %d\"}]}",
                 w->line, n, w->line, n + 1);
    else
        snprintf(out, size,
                 "{\"patch\":\"*** Begin Patch\\n*** Update File: shared\\n@@"
                 "\\n-line %d: %d\\n+line %d: %d\\n*** End Patch\"}",
                 w->line, n, w->line, n + 1);
}

static void *tp_edit(void *user) {
    tp_worker *w = (tp_worker *)user;
    tt_reply   r = HFSB_INIT;
    char       json[256];
    int        i;
    for (i = 0; i < TP_ROUNDS; i++) {
        tp_arguments(w, w->counted, json, sizeof json);
        tt_do(&r, w->tools, w->tool, hfsb_cstr(json), NULL);
        if (r.sane && r.res.success) w->counted++;
        else if (r.res.error.ptr)
            snprintf(w->error, sizeof w->error, "%s", r.res.error.ptr);
    }
    tt_drop(&r);
    return NULL;
}

/* The content with the digits of one line counted up, as arguments of write
   for just this content. */
static void tp_count_up(const char *content, int line, hfsb_buf *json) {
    char  after[1024], hex[HFSB_SHA256_HEX], mark[32];
    char *at;
    hfsb_sha256_hex(hfsb_cstr(content), hex);
    snprintf(after, sizeof after, "%s", content);
    snprintf(mark, sizeof mark, "line %d: ", line);
    at = strstr(after, mark);
    if (!at) abort();
    at += strlen(mark);
    snprintf(mark, sizeof mark, "%03d", atoi(at) + 1);
    memcpy(at, mark, 3);
    hfsb_buf_truncate(json, 0);
    if (hfsb_buf_printf(json, "{\"path\":\"shared\",\"if_sha256\":\"%s\","
                              "\"content\":\"",
                        hex) != HFSB_OK)
        abort();
    for (at = after; *at; at++)
        if ((*at == '\n' ? hfsb_buf_append(json, HFSB_LIT("\\n"))
                         : hfsb_buf_append_byte(json, *at)) != HFSB_OK)
            abort();
    if (hfsb_buf_append(json, HFSB_LIT("\"}")) != HFSB_OK) abort();
}

/* Reads and writes until it has counted all rounds: here a refusal is right,
   since the caller named the content. */
static void *tp_write(void *user) {
    tp_worker *w = (tp_worker *)user;
    tt_reply   r = HFSB_INIT;
    hfsb_buf   content = HFSB_INIT, json = HFSB_INIT;
    long long  end = hfsb_clock_ms() + 20000;
    while (w->counted < TP_ROUNDS / 2 && hfsb_clock_ms() < end) {
        hfsb_buf_truncate(&content, 0);
        if (hfsb_file_read(NULL, HFSB_LIT("shared"), 0, &content, NULL,
                           NULL) != HFSB_OK)
            break;
        tp_count_up(content.ptr, w->line, &json);
        tt_do(&r, w->tools, w->tool, hfsb_buf_str(&json), NULL);
        if (r.sane && r.res.success) w->counted++;
        else if (!tt_says(&r.res.error, "File has changed since it was read"))
            break;
    }
    hfsb_buf_free(&content);
    hfsb_buf_free(&json);
    tt_drop(&r);
    return NULL;
}

/* All workers at once; every line has then counted what was acknowledged, and
   that is `want`. */
static void tp_run(const char *tool, void *(*fn)(void *), const char *first,
                   int want) {
    hfsb_tools *tools = tt_open(NULL);
    tp_worker   w[TP_THREADS];
    pthread_t   thread[TP_THREADS];
    hfsb_buf    text = HFSB_INIT;
    char        line[64];
    int         i;
    memset(w, 0, sizeof w);
    for (i = 0; i < TP_THREADS; i++)
        if (hfsb_buf_printf(&text, "line %d: %s\n", i, first) != HFSB_OK)
            abort();
    tt_put("shared", hfsb_buf_str(&text));
    for (i = 0; i < TP_THREADS; i++) {
        w[i].tools = tools;
        w[i].tool = tool;
        w[i].line = i;
        T_CHECK(!pthread_create(&thread[i], NULL, fn, &w[i]));
    }
    for (i = 0; i < TP_THREADS; i++) T_CHECK(!pthread_join(thread[i], NULL));
    hfsb_buf_truncate(&text, 0);
    T_CHECK(t_read_file("shared", &text));
    for (i = 0; i < TP_THREADS; i++) {
        const char *at;
        snprintf(line, sizeof line, "line %d: ", i);
        at = text.ptr ? strstr(text.ptr, line) : NULL;
        T_CHECK(w[i].counted == want);
        T_CHECK(at && atoi(at + strlen(line)) == w[i].counted);
        if (w[i].error[0]) printf("  %s: %s\n", tool, w[i].error);
    }
    hfsb_buf_free(&text);
    hfsb_tools_close(tools);
}

static void parallel_edits_of_one_file_all_succeed(void) {
    tp_run("edit", tp_edit, "0", TP_ROUNDS);
}

static void parallel_multi_edits_of_one_file_all_succeed(void) {
    tp_run("multi_edit", tp_edit, "0", TP_ROUNDS);
}

static void parallel_patches_of_one_file_all_succeed(void) {
    tp_run("apply_patch", tp_edit, "0", TP_ROUNDS);
}

static void parallel_writes_with_if_sha256_lose_nothing(void) {
    tp_run("write", tp_write, "000", TP_ROUNDS / 2);
}

static void *tp_edit_moved(void *user) {
    tp_worker *w = (tp_worker *)user;
    tt_reply   r = HFSB_INIT;
    tt_do(&r, w->tools, "edit",
          HFSB_LIT("{\"path\":\"leaves\",\"old_str\":\"b: 0\","
                   "\"new_str\":\"b: 1\"}"),
          NULL);
    w->counted = r.sane && r.res.success;
    tt_drop(&r);
    return NULL;
}

/* An edit of the file that moves is in the new file, or was refused. */
static void a_patch_that_moves_a_file_loses_no_edit(void) {
    hfsb_tools *tools = tt_open(NULL);
    int         i, rounds = t_quick() ? 10 : 40;
    for (i = 0; i < rounds; i++) {
        tp_worker w = HFSB_INIT;
        pthread_t thread;
        tt_reply  r = HFSB_INIT;
        w.tools = tools;
        tt_put("leaves", HFSB_LIT("a: 0\nb: 0\n"));
        T_CHECK(!pthread_create(&thread, NULL, tp_edit_moved, &w));
        if (i % 2) (void)poll(NULL, 0, 1 + i % 4);
        tt_call(&r, tools, "apply_patch", "patch=s",
                "*** Begin Patch\n*** Update File: leaves\n"
                "*** Move to: comes\n@@\n-a: 0\n+a: 1\n*** End Patch\n");
        T_CHECK(!pthread_join(thread, NULL));
        TT_OK(&r, NULL);
        if (w.counted) TT_FILE("comes", "a: 1\nb: 1\n");
        else TT_FILE("comes", "a: 1\nb: 0\n");
        T_CHECK(access("leaves", F_OK) != 0 && !unlink("comes"));
        tt_drop(&r);
    }
    hfsb_tools_close(tools);
}

static void parallel_edits_in_place_all_succeed(void) {
    tt_put("shared", HFSB_LIT(""));
    T_CHECK(!link("shared", "shared2"));
    tp_run("edit", tp_edit, "0", TP_ROUNDS);
    T_CHECK(!unlink("shared2"));
}

static void exists_says_true_or_false(void) {
    static const struct {
        const char *path;
        bool        there;
    } cases[] = {{"here", true},      {"nowhere", false}, {"dir", true},
                 {"dir/", true},      {"here/x", false},  {"/", true},
                 {"dangling", false}, {"to-here", true},  {"fifo", true},
                 {"~", false},        {"/dev/null", true}};
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    tt_put("here", HFSB_LIT(""));
    T_CHECK(!symlink("nowhere", "dangling") && !symlink("here", "to-here"));
    for (i = 0; i < TT_COUNT(cases); i++) {
        tt_call(&r, tools, "exists", "path=s", cases[i].path);
        TT_OK(&r, cases[i].there ? "true" : "false");
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(write_makes_files_and_directories);
    TT_RUN(write_refuses_what_is_no_file);
    TT_RUN(write_can_ask_for_the_content_it_knows);
    TT_RUN(left_over_temporaries_are_removed);
    TT_RUN(files_without_permission_are_refused);
    TT_RUN(bytes_that_are_not_edited_stay);
    TT_RUN(mode_owner_and_links_stay);
    TT_RUN(edits_do_and_say_what_they_should);
    TT_RUN(a_binary_file_is_named_when_nothing_is_found);
    TT_RUN(the_diff_is_bounded);
    TT_RUN(edit_shows_a_short_diff);
    TT_RUN(many_edits_are_all_or_none);
    TT_RUN(patches_change_several_files);
    TT_RUN(a_long_edit_shows_more_of_what_was_written);
    TT_RUN(patches_show_what_was_not_exact);
    TT_RUN(patches_change_one_file_more_than_once);
    TT_RUN(parallel_edits_of_one_file_all_succeed);
    TT_RUN(parallel_multi_edits_of_one_file_all_succeed);
    TT_RUN(parallel_patches_of_one_file_all_succeed);
    TT_RUN(parallel_writes_with_if_sha256_lose_nothing);
    TT_RUN(parallel_edits_in_place_all_succeed);
    TT_RUN(a_patch_that_moves_a_file_loses_no_edit);
    TT_RUN(exists_says_true_or_false);
    return TT_END();
}
