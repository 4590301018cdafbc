/* test_edit_lines.c - edits by line number, on the version that was read. */
#include "../support/t_tools.h"

static hfsb_tools *open_session(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    opts.session = true;
    return tt_open(&opts);
}

/* Reads a file and returns its tag, which lives until the next call. */
static const char *read_tag(hfsb_tools *tools, tt_reply *r, const char *path) {
    static char tag[16];
    tt_call(r, tools, "read", "path=s", path);
    T_CHECK(r->res.success && tt_text(r, "tag").len == 8);
    snprintf(tag, sizeof tag, "%s", tt_text(r, "tag").ptr);
    return tag;
}

static void edit_lines(tt_reply *r, hfsb_tools *tools, const char *tag,
                       const char *ops) {
    tt_call(r, tools, "edit_lines", "path=s tag=s ops=j", "f", tag, ops);
}

/* ---- what an operation does ---- */

typedef struct op_case {
    const char *before, *ops, *after;
} op_case;

static const op_case ops_done[] = {
    {"1\n2\n3\n", "[{\"op\":\"replace\",\"line\":2,\"text\":\"two\"}]",
     "1\ntwo\n3\n"},
    {"1\n2\n3\n",
     "[{\"op\":\"replace\",\"line\":1,\"last\":2,\"text\":\"a\\nb\\nc\\n\"}]",
     "a\nb\nc\n3\n"},
    {"1\n2\n3\n", "[{\"op\":\"delete\",\"line\":2,\"last\":3}]", "1\n"},
    {"1\n2\n3\n", "[{\"op\":\"replace\",\"line\":2,\"text\":\"\"}]",
     "1\n3\n"},
    {"1\n2\n3\n", "[{\"op\":\"replace\",\"line\":2,\"text\":\"\\n\"}]",
     "1\n\n3\n"},
    {"1\n2\n", "[{\"op\":\"insert\",\"line\":0,\"text\":\"0\"}]",
     "0\n1\n2\n"},
    {"1\n2\n", "[{\"op\":\"insert\",\"line\":2,\"text\":\"3\"}]",
     "1\n2\n3\n"},
    {"", "[{\"op\":\"insert\",\"line\":0,\"text\":\"a\\nb\"}]", "a\nb\n"},
    /* numbers are those of the file before any operation */
    {"1\n2\n3\n4\n",
     "[{\"op\":\"delete\",\"line\":4},{\"op\":\"insert\",\"line\":1,\"text\":"
     "\"x\"},{\"op\":\"replace\",\"line\":2,\"text\":\"two\"},{\"op\":"
     "\"insert\",\"line\":1,\"text\":\"y\"},{\"op\":\"insert\",\"line\":2,"
     "\"text\":\"z\"}]",
     "1\nx\ny\ntwo\nz\n3\n"},
    /* line ends follow the file */
    {"1\r\n2\r\n3\r\n",
     "[{\"op\":\"replace\",\"line\":2,\"text\":\"a\\nb\\r\\n\"}]",
     "1\r\na\r\nb\r\n3\r\n"},
    {"1\r\n2\n3\n", "[{\"op\":\"replace\",\"line\":2,\"text\":\"a\\r\\nb\"}]",
     "1\r\na\nb\n3\n"},
    {"1\r\n2", "[{\"op\":\"insert\",\"line\":2,\"text\":\"3\\n4\"}]",
     "1\r\n2\r\n3\r\n4"},
    /* a last line without a newline stays so */
    {"1\n2", "[{\"op\":\"replace\",\"line\":2,\"text\":\"two\\n\"}]",
     "1\ntwo"},
    {"1\n2", "[{\"op\":\"insert\",\"line\":2,\"text\":\"3\\n\"}]", "1\n2\n3"},
    {"1\n2",
     "[{\"op\":\"delete\",\"line\":2},{\"op\":\"insert\",\"line\":2,"
     "\"text\":\"3\"}]",
     "1\n3"},
    {"1\n2",
     "[{\"op\":\"replace\",\"line\":2,\"text\":\"b\"},{\"op\":\"insert\","
     "\"line\":2,\"text\":\"3\"},{\"op\":\"insert\",\"line\":2,\"text\":"
     "\"4\"}]",
     "1\nb\n3\n4"},
    {"1\n2", "[{\"op\":\"delete\",\"line\":2}]", "1\n"},
    /* a byte order mark stays, and is not doubled */
    {"\xEF\xBB\xBF" "1\n2\n",
     "[{\"op\":\"replace\",\"line\":1,\"text\":\"\xEF\xBB\xBF" "one\"}]",
     "\xEF\xBB\xBF" "one\n2\n"},
    {"\xEF\xBB\xBF" "1\n",
     "[{\"op\":\"insert\",\"line\":0,\"text\":\"0\"}]",
     "\xEF\xBB\xBF" "0\n1\n"},
};

static void operations_change_whole_lines(void) {
    size_t i, session;
    for (i = 0; i < TT_COUNT(ops_done); i++)
        for (session = 0; session < 2; session++) {
            const op_case *c = &ops_done[i];
            hfsb_tools    *tools = session ? open_session() : tt_open(NULL);
            tt_reply       r = HFSB_INIT;
            char           hex[HFSB_SHA256_HEX];
            tt_put("f", hfsb_cstr(c->before));
            edit_lines(&r, tools, read_tag(tools, &r, "f"), c->ops);
            T_CHECK(r.res.success);
            if (!tt_file_is("f", hfsb_cstr(c->after)))
                printf("case %zu: %s\n", i, r.res.error.ptr);
            T_CHECK(tt_file_is("f", hfsb_cstr(c->after)));
            hfsb_sha256_hex(hfsb_cstr(c->after), hex);
            hex[8] = '\0';
            T_CHECK(hfsb_str_equal(tt_text(&r, "tag"), hfsb_cstr(hex)));
            tt_drop(&r);
            hfsb_tools_close(tools);
        }
}

static void reply_shows_the_diff_and_the_new_tag(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    tt_put("f", HFSB_LIT("1\n2\n3\n"));
    edit_lines(&r, tools, read_tag(tools, &r, "f"),
               "[{\"op\":\"replace\",\"line\":2,\"text\":\"two\"}]");
    TT_OK(&r, "Edited f (1 operation). Its tag is now d3dda5ce.\n--- a/f\n+++ "
              "b/f\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n");
    T_CHECK(tt_int(&r, "count") == 1 && tt_text(&r, "diff").len > 0);
    /* its lines count as shown */
    edit_lines(&r, tools, "d3dda5ce", "[{\"op\":\"delete\",\"line\":2}]");
    T_CHECK(r.res.success);
    TT_FILE("f", "1\n3\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- refusals ---- */

static const struct {
    const char *ops, *error;
} ops_wrong[] = {
    {"[]", "ops must have 1 to 1000 items, not 0."},
    {"[7]", "ops[0]: "},
    {"[{\"op\":\"move\",\"line\":1}]", "ops[0]: "},
    {"[{\"op\":\"delete\"}]", "ops[0]: "},
    {"[{\"op\":\"delete\",\"line\":-1}]", "ops[0]: "},
    {"[{\"op\":\"delete\",\"line\":0}]",
     "ops[0]: lines are counted from 1."},
    {"[{\"op\":\"delete\",\"line\":2,\"last\":1}]",
     "ops[0]: last is before line."},
    {"[{\"op\":\"delete\",\"line\":1,\"text\":\"x\"}]",
     "ops[0]: delete has no text."},
    {"[{\"op\":\"delete\",\"line\":1},{\"op\":\"replace\",\"line\":2}]",
     "ops[1]: replace needs text."},
    {"[{\"op\":\"insert\",\"line\":1}]", "ops[0]: insert needs text."},
    {"[{\"op\":\"insert\",\"line\":1,\"last\":2,\"text\":\"x\"}]",
     "ops[0]: insert has no last line."},
    {"[{\"op\":\"delete\",\"line\":4}]",
     "ops[0]: f had 3 lines when it was read; there is no line 4."},
    {"[{\"op\":\"insert\",\"line\":4,\"text\":\"x\"}]",
     "ops[0]: f had 3 lines when it was read; there is no line 4."},
    {"[{\"op\":\"delete\",\"line\":2,\"last\":3},{\"op\":\"insert\",\"line\":"
     "2,\"text\":\"x\"}]",
     "ops[0] and ops[1] overlap."},
    {"[{\"op\":\"delete\",\"line\":2},{\"op\":\"delete\",\"line\":1,\"last\":"
     "2}]",
     "ops[1] and ops[0] overlap."},
    {"[{\"op\":\"replace\",\"line\":2,\"text\":\"2\"}]",
     "These lines of f are like that already."},
};

static void operations_that_make_no_sense_are_refused(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    char        tag[16];
    size_t      i;
    tt_put("f", HFSB_LIT("1\n2\n3\n"));
    snprintf(tag, sizeof tag, "%s", read_tag(tools, &r, "f"));
    for (i = 0; i < TT_COUNT(ops_wrong); i++) {
        edit_lines(&r, tools, tag, ops_wrong[i].ops);
        TT_FAIL(&r, ops_wrong[i].error);
        TT_FILE("f", "1\n2\n3\n");
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void only_lines_that_were_shown_may_be_changed(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    char        tag[16];
    tt_put("f", HFSB_LIT("1\n2\n3\n4\n5\n6\n"));
    tt_call(&r, tools, "read", "path=s offset=j limit=j", "f", "2", "2");
    snprintf(tag, sizeof tag, "%s", tt_text(&r, "tag").ptr);
    edit_lines(&r, tools, tag, "[{\"op\":\"delete\",\"line\":3,\"last\":4}]");
    TT_FAIL(&r, "ops[0]: you were not shown lines 3-4 of f. Read with "
                "offset=3 limit=2 first.");
    edit_lines(&r, tools, tag, "[{\"op\":\"insert\",\"line\":0,\"text\":\"x\"}]");
    TT_FAIL(&r, "ops[0]: you were not shown line 1 of f.");
    edit_lines(&r, tools, tag, "[{\"op\":\"delete\",\"line\":6}]");
    TT_FAIL(&r, "ops[0]: you were not shown line 6 of f.");
    edit_lines(&r, tools, tag, "[{\"op\":\"insert\",\"line\":4,\"text\":\"x\"}]");
    TT_FAIL(&r, "ops[0]: you were not shown line 4 of f.");
    edit_lines(&r, tools, tag, "[{\"op\":\"insert\",\"line\":3,\"text\":\"x\"}]");
    T_CHECK(r.res.success);
    /* the tag of the read is still good, and so is the new one */
    tt_call(&r, tools, "read", "path=s offset=j limit=j", "f", "7", "1");
    snprintf(tag, sizeof tag, "%s", tt_text(&r, "tag").ptr);
    edit_lines(&r, tools, tag,
               "[{\"op\":\"delete\",\"line\":4},{\"op\":\"delete\",\"line\":7}"
               "]");
    T_CHECK(r.res.success);
    edit_lines(&r, tools, tag, "[{\"op\":\"delete\",\"line\":5}]");
    TT_FAIL(&r, "ops[0]: you were not shown line 5 of f.");
    TT_FILE("f", "1\n2\n3\n4\n5\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Of a long line read shows 4,000 characters; what follows was not seen. */
static void line_that_was_cut_may_not_be_changed(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    hfsb_buf    text = HFSB_INIT;
    char        tag[16];
    size_t      i;
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("1\n")) == HFSB_OK);
    for (i = 0; i < 4001; i++)
        T_CHECK(hfsb_buf_append_byte(&text, 'x') == HFSB_OK);
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("\n3\n")) == HFSB_OK);
    tt_put("f", hfsb_buf_str(&text));
    snprintf(tag, sizeof tag, "%s", read_tag(tools, &r, "f"));
    edit_lines(&r, tools, tag, "[{\"op\":\"delete\",\"line\":2}]");
    TT_FAIL(&r, "ops[0]: you were not shown line 2 of f. Read with offset=2 "
                "limit=1 first. If read cuts a line, change it with edit.");
    edit_lines(&r, tools, tag,
               "[{\"op\":\"replace\",\"line\":3,\"text\":\"three\"}]");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "read", "path=s limit=j", "f", "0");
    T_CHECK(r.res.success);
    snprintf(tag, sizeof tag, "%s", tt_text(&r, "tag").ptr);
    edit_lines(&r, tools, tag, "[{\"op\":\"delete\",\"line\":2}]");
    T_CHECK(r.res.success);
    TT_FILE("f", "1\nthree\n");
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void tag_must_be_that_of_a_read(void) {
    hfsb_tools *tools = open_session(), *free_tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    char        tag[16];
    static const char ops[] = "[{\"op\":\"delete\",\"line\":1}]";
    tt_put("f", HFSB_LIT("1\n2\n"));
    edit_lines(&r, tools, "00000000", ops);
    TT_FAIL(&r, "File f has not been read this session. Read it first.");
    snprintf(tag, sizeof tag, "%s", read_tag(tools, &r, "f"));
    edit_lines(&r, tools, "00000000", ops);
    TT_FAIL(&r, "f is not the file with the tag \"00000000\": its tag is now "
                "a6e2b7a0. Read the lines that you want to change again.");
    edit_lines(&r, tools, "", ops);
    TT_FAIL(&r, "f is not the file with the tag \"\"");
    edit_lines(&r, tools, "a6e", ops); /* too short to be sure */
    TT_FAIL(&r, "f is not the file");
    /* without a session the file must be the same */
    tt_put("f", HFSB_LIT("1\n2\n3\n"));
    edit_lines(&r, free_tools, tag, ops);
    TT_FAIL(&r, "f is not the file with the tag");
    edit_lines(&r, free_tools, read_tag(free_tools, &r, "f"), ops);
    T_CHECK(r.res.success);
    tt_call(&r, tools, "edit_lines", "path=s tag=s ops=j", "none", tag, ops);
    TT_FAIL(&r, "File not found: none");
    tt_drop(&r);
    hfsb_tools_close(tools);
    hfsb_tools_close(free_tools);
}

/* ---- the file has changed ---- */

static void operation_follows_its_lines(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    char        tag[16];
    tt_put("f", HFSB_LIT("a\nb\nc\nd\ne\nf\n"));
    snprintf(tag, sizeof tag, "%s", read_tag(tools, &r, "f"));
    tt_put("f", HFSB_LIT("new\na\nb\nc\nd\ne\nf\n"));
    edit_lines(&r, tools, tag,
               "[{\"op\":\"replace\",\"line\":4,\"text\":\"D\"}]");
    T_CHECK(r.res.success);
    T_CHECK(tt_says(&r.res.output, "(f had changed since it was read. What "
                                   "changed before this call:)\n"));
    T_CHECK(tt_says(&r.res.output, "+new\n a\n"));
    TT_FILE("f", "new\na\nb\nc\nD\ne\nf\n");
    /* the old tag is still good after an edit of one's own */
    edit_lines(&r, tools, tag, "[{\"op\":\"delete\",\"line\":6}]");
    T_CHECK(r.res.success && !tt_says(&r.res.output, "had changed"));
    TT_FILE("f", "new\na\nb\nc\nD\ne\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void operation_on_changed_lines_is_refused_and_shows_them(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    char        tag[16];
    tt_put("f", HFSB_LIT("a\nb\nc\nd\ne\nf\n"));
    snprintf(tag, sizeof tag, "%s", read_tag(tools, &r, "f"));
    tt_put("f", HFSB_LIT("0\na\nb\nC\nC2\nd\ne\nf\n"));
    edit_lines(&r, tools, tag,
               "[{\"op\":\"replace\",\"line\":3,\"text\":\"x\"}]");
    TT_FAIL(&r, "ops[0]: line 3 of f, or the lines next to it, changed since "
                "you read it; nothing was written. They are now:\n3\tb\n4\tC\n"
                "5\tC2\n6\td\nThe tag of the file is now a7ee38e6; with it, "
                "all numbers are those of the file as it is now.");
    /* next to the change is too close */
    edit_lines(&r, tools, tag,
               "[{\"op\":\"replace\",\"line\":2,\"text\":\"x\"}]");
    TT_FAIL(&r, "ops[0]: line 2 of f, or the lines next to it, changed");
    edit_lines(&r, tools, tag,
               "[{\"op\":\"insert\",\"line\":3,\"text\":\"x\"}]");
    TT_FAIL(&r, "ops[0]: line 3 of f, or the lines next to it, changed");
    TT_FILE("f", "0\na\nb\nC\nC2\nd\ne\nf\n");
    edit_lines(&r, tools, "a7ee38e6",
               "[{\"op\":\"replace\",\"line\":4,\"last\":5,\"text\":\"x\"}]");
    T_CHECK(r.res.success);
    TT_FILE("f", "0\na\nb\nx\nd\ne\nf\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* What a note or a refusal shows may be changed without another read. */
static void lines_of_a_note_count_as_shown(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    char        tag[16];
    int         refused;
    for (refused = 0; refused < 2; refused++) {
        tt_put("f", HFSB_LIT("a\nb\nc\nd\ne\n"));
        tt_call(&r, tools, "read", "path=s limit=j", "f", "3");
        tt_put("f", HFSB_LIT("a\nnew\nb\nc\nd\ne\n"));
        if (refused)
            tt_call(&r, tools, "write", "path=s content=s", "f", "x\n");
        else
            tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "f", "c",
                    "C");
        T_CHECK(r.res.success == !refused);
        snprintf(tag, sizeof tag, "%.8s",
                 refused ? "" : tt_text(&r, "sha256").ptr);
        if (refused) {
            hfsbi_version v;
            hfsbi_version_of(HFSB_LIT("a\nnew\nb\nc\nd\ne\n"), &v);
            snprintf(tag, sizeof tag, "%.8s", v.hex);
        }
        edit_lines(&r, tools, tag, "[{\"op\":\"delete\",\"line\":5}]");
        TT_FAIL(&r, "ops[0]: you were not shown line 5 of f.");
        edit_lines(&r, tools, tag,
                   "[{\"op\":\"replace\",\"line\":2,\"text\":\"NEW\"}]");
        T_CHECK(r.res.success);
    }
    TT_FILE("f", "a\nNEW\nb\nc\nd\ne\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* A file need not be UTF-8, but a reply must. */
static void replies_are_utf8_and_other_bytes_stay(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    char        tag[16];
    tt_put("f", HFSB_LIT("caf\xE9\n2\n"));
    snprintf(tag, sizeof tag, "%s", read_tag(tools, &r, "f"));
    edit_lines(&r, tools, tag,
               "[{\"op\":\"replace\",\"line\":2,\"text\":\"two\"}]");
    T_CHECK(r.res.success && tt_says(&r.res.output, " caf\xEF\xBF\xBD\n"));
    TT_FILE("f", "caf\xE9\ntwo\n");
    tt_put("f", HFSB_LIT("caf\xE9\n\xE9\n"));
    edit_lines(&r, tools, tag, "[{\"op\":\"delete\",\"line\":2}]");
    TT_FAIL(&r, "ops[0]: line 2 of f, or the lines next to it, changed");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Braces look alike: none is taken for another. */
static void lines_that_look_alike_are_not_confused(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    char        tag[16];
    tt_put("f", HFSB_LIT("a {\n}\nb {\n}\n"));
    snprintf(tag, sizeof tag, "%s", read_tag(tools, &r, "f"));
    tt_put("f", HFSB_LIT("a {\n}\nx {\n}\nb {\n}\n"));
    edit_lines(&r, tools, tag,
               "[{\"op\":\"replace\",\"line\":2,\"text\":\"} // a\"}]");
    TT_FAIL(&r, "ops[0]: line 2 of f, or the lines next to it, changed");
    edit_lines(&r, tools, tag,
               "[{\"op\":\"replace\",\"line\":4,\"text\":\"} // b\"}]");
    T_CHECK(r.res.success);
    TT_FILE("f", "a {\n}\nx {\n}\nb {\n} // b\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Another program repeats a block: nobody knows which of the blocks is the one
   that was read. What is before and after them is still known. */
static void operation_on_one_of_equal_blocks_is_refused(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    char        tag[16];
    tt_put("f", HFSB_LIT("a\nb\n{\nx\n}\n{\nx\n}\ny\nz\n"));
    snprintf(tag, sizeof tag, "%s", read_tag(tools, &r, "f"));
    tt_put("f", HFSB_LIT("a\nb\n{\nx\n}\n{\nx\n}\n{\nx\n}\ny\nz\n"));
    edit_lines(&r, tools, tag,
               "[{\"op\":\"replace\",\"line\":4,\"text\":\"first\"}]");
    TT_FAIL(&r, "ops[0]: line 4 of f, or the lines next to it, changed");
    edit_lines(&r, tools, tag, "[{\"op\":\"delete\",\"line\":7}]");
    TT_FAIL(&r, "ops[0]: line 7 of f, or the lines next to it, changed");
    edit_lines(&r, tools, tag,
               "[{\"op\":\"delete\",\"line\":1},{\"op\":\"delete\","
               "\"line\":10}]");
    T_CHECK(r.res.success);
    TT_FILE("f", "b\n{\nx\n}\n{\nx\n}\n{\nx\n}\ny\n");
    /* one of them was removed */
    snprintf(tag, sizeof tag, "%s", read_tag(tools, &r, "f"));
    tt_put("f", HFSB_LIT("b\n{\nx\n}\n{\nx\n}\ny\n"));
    edit_lines(&r, tools, tag,
               "[{\"op\":\"replace\",\"line\":3,\"text\":\"first\"}]");
    TT_FAIL(&r, "ops[0]: line 3 of f, or the lines next to it, changed");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void version_that_was_dropped_must_be_read_again(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    hfsb_buf    big = HFSB_INIT;
    char        tag[16], path[16];
    int         i;
    while (big.len < 400 * 1024)
        T_CHECK(hfsb_buf_append(&big, HFSB_LIT("0123456789\n")) == HFSB_OK);
    tt_put("f", HFSB_LIT("1\n2\n"));
    snprintf(tag, sizeof tag, "%s", read_tag(tools, &r, "f"));
    for (i = 0; i < 12; i++) {
        snprintf(path, sizeof path, "big%d", i);
        tt_put(path, hfsb_buf_str(&big));
        tt_call(&r, tools, "read", "path=s", path);
        T_CHECK(r.res.success);
        unlink(path);
    }
    edit_lines(&r, tools, tag, "[{\"op\":\"delete\",\"line\":1}]");
    TT_FAIL(&r, "It is no longer known which lines of f you were shown. Read "
                "those that you want to change again.");
    edit_lines(&r, tools, read_tag(tools, &r, "f"),
               "[{\"op\":\"delete\",\"line\":1}]");
    T_CHECK(r.res.success);
    hfsb_buf_free(&big);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void version_is_dropped_after_those_of_many_files(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    char        tag[16];
    int         i;
    tt_put("f", HFSB_LIT("1\n2\n"));
    snprintf(tag, sizeof tag, "%s", read_tag(tools, &r, "f"));
    for (i = 0; i < 1000; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d\n", i);
        tt_put("other", hfsb_cstr(text));
        (void)read_tag(tools, &r, "other");
    }
    edit_lines(&r, tools, tag, "[{\"op\":\"delete\",\"line\":1}]");
    TT_FAIL(&r, "It is no longer known which lines of f you were shown.");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- random changes ---- */

enum { LINES = 12 };

typedef struct text_lines {
    int    list[4 * LINES];
    size_t count;
} text_lines;

static size_t below(unsigned long long *seed, size_t n) {
    return (size_t)(t_random(seed) % n);
}

static void replace_lines(text_lines *t, size_t at, size_t remove, const int *add,
                   size_t count) {
    memmove(t->list + at + count, t->list + at + remove,
            (t->count - at - remove) * sizeof *t->list);
    memcpy(t->list + at, add, count * sizeof *add);
    t->count += count - remove;
}

static void put_lines(const text_lines *t, hfsb_buf *out) {
    size_t i;
    hfsb_buf_truncate(out, 0);
    for (i = 0; i < t->count; i++)
        T_CHECK(hfsb_buf_printf(out, "line %d\n", t->list[i]) == HFSB_OK);
}

/* Places of `now` where lines `from` (the one before the operation) to `to`
   (the one after) of `base` are; edges are edges. Returns their number, and
   the last one in *at: the index of the first line of the operation. */
static size_t find_places(const text_lines *base, size_t from, size_t to,
                          const text_lines *now, size_t *at) {
    size_t p, k, n = 0, len = to - from - 1; /* lines of the operation */
    for (p = 0; p + len <= now->count; p++) {
        bool fits = from == 0 ? p == 0
                              : p > 0 && now->list[p - 1] ==
                                             base->list[from - 1];
        for (k = 0; fits && k < len; k++)
            fits = now->list[p + k] == base->list[from + k];
        if (fits)
            fits = to == base->count + 1
                       ? p + len == now->count
                       : p + len < now->count &&
                             now->list[p + len] == base->list[to - 1];
        if (!fits) continue;
        *at = p;
        n++;
    }
    return n;
}

/* One file, a random change by others, one random operation. With unique lines
   it must be carried out if and only if its surroundings are unchanged; else it
   may be refused, but never goes to a place that looks different. */
static void one_random_operation(unsigned long long *seed, hfsb_tools *tools,
                                 bool unique, size_t *done) {
    text_lines base = HFSB_INIT, now;
    tt_reply   r = HFSB_INIT;
    hfsb_buf   text = HFSB_INIT, before = HFSB_INIT;
    char       tag[16], ops[200];
    size_t     i, from, to, places, at = 0;
    int        fresh = 1000, new_line = 9999;
    base.count = 1 + below(seed, LINES);
    for (i = 0; i < base.count; i++)
        base.list[i] = unique ? (int)i : (int)below(seed, 3);
    put_lines(&base, &text);
    tt_put("f", hfsb_buf_str(&text));
    snprintf(tag, sizeof tag, "%s", read_tag(tools, &r, "f"));
    now = base;
    for (i = below(seed, 4); i > 0; i--) {
        int    add[2];
        size_t p = below(seed, now.count + 1), count = below(seed, 3);
        size_t cut = below(seed, 3);
        if (cut > now.count - p) cut = now.count - p;
        add[0] = unique ? fresh++ : (int)below(seed, 3);
        add[1] = unique ? fresh++ : (int)below(seed, 3);
        replace_lines(&now, p, cut, add, count);
    }
    put_lines(&now, &before);
    tt_put("f", hfsb_buf_str(&before));
    /* the lines from + 1 to `to` - 1 */
    from = below(seed, base.count + 1);
    to = from + 1 + below(seed, base.count - from + 1);
    if (to == from + 1)
        snprintf(ops, sizeof ops,
                 "[{\"op\":\"insert\",\"line\":%zu,\"text\":\"line 9999\"}]",
                 from);
    else
        snprintf(ops, sizeof ops,
                 "[{\"op\":\"replace\",\"line\":%zu,\"last\":%zu,\"text\":"
                 "\"line 9999\"}]",
                 from + 1, to - 1);
    places = find_places(&base, from, to, &now, &at);
    edit_lines(&r, tools, tag, ops);
    if (unique) T_CHECK(r.res.success == (places == 1));
    else T_CHECK(!r.res.success || places > 0);
    if (r.res.success && places == 1) {
        replace_lines(&now, at, to - from - 1, &new_line, 1);
        put_lines(&now, &before);
        T_CHECK(tt_file_is("f", hfsb_buf_str(&before)));
        ++*done;
    } else if (!r.res.success) {
        T_CHECK(tt_says(&r.res.error, "or the lines next to it, changed"));
        T_CHECK(tt_file_is("f", hfsb_buf_str(&before)));
    }
    hfsb_buf_free(&text);
    hfsb_buf_free(&before);
    tt_drop(&r);
}

static void random_operations_find_their_lines_or_are_refused(void) {
    unsigned long long seed = 20261117;
    hfsb_tools        *tools = open_session();
    size_t             rounds = t_quick() ? 400 : 1500, i, done = 0;
    for (i = 0; i < rounds; i++)
        one_random_operation(&seed, tools, i % 2 == 0, &done);
    T_CHECK(done > rounds / 5 && done < rounds);
    hfsb_tools_close(tools);
}

/* ---- without memory ---- */

static void one_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_tools_opts  opts = HFSB_INIT;
    hfsb_tools      *tools = NULL;
    hfsb_tool_result r;
    hfsb_status      st;
    opts.alloc = alloc;
    opts.session = true;
    tt_put("f", HFSB_LIT("1\n2\n3\n4\n5\n"));
    if (hfsb_tools_open(&opts, &tools, NULL) != HFSB_OK) return;
    st = hfsb_tools_call_text(tools, HFSB_LIT("read"),
                              HFSB_LIT("{\"path\":\"f\"}"), NULL, &r);
    hfsb_tool_result_free(&r);
    tt_put("f", HFSB_LIT("0\n1\n2\n3\n4\n5\n"));
    st = hfsb_tools_call_text(
        tools, HFSB_LIT("edit_lines"),
        HFSB_LIT("{\"path\":\"f\",\"tag\":\"f6b49467\",\"ops\":[{\"op\":"
                 "\"delete\",\"line\":3}]}"),
        NULL, &r);
    T_CHECK((st == HFSB_OK && r.success) || heap->fail_at);
    T_CHECK(r.success || r.error.len > 0 || st == HFSB_NOMEM);
    if (r.success) TT_FILE("f", "0\n1\n2\n4\n5\n");
    hfsb_tool_result_free(&r);
    hfsb_tools_close(tools);
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(one_without_memory);
}

int main(void) {
    tt_begin();
    TT_RUN(operations_change_whole_lines);
    TT_RUN(reply_shows_the_diff_and_the_new_tag);
    TT_RUN(operations_that_make_no_sense_are_refused);
    TT_RUN(only_lines_that_were_shown_may_be_changed);
    TT_RUN(line_that_was_cut_may_not_be_changed);
    TT_RUN(tag_must_be_that_of_a_read);
    TT_RUN(operation_follows_its_lines);
    TT_RUN(operation_on_changed_lines_is_refused_and_shows_them);
    TT_RUN(lines_of_a_note_count_as_shown);
    TT_RUN(replies_are_utf8_and_other_bytes_stay);
    TT_RUN(lines_that_look_alike_are_not_confused);
    TT_RUN(operation_on_one_of_equal_blocks_is_refused);
    TT_RUN(version_that_was_dropped_must_be_read_again);
    TT_RUN(version_is_dropped_after_those_of_many_files);
    TT_RUN(random_operations_find_their_lines_or_are_refused);
    TT_RUN(each_allocation_fails_cleanly);
    return TT_END();
}
