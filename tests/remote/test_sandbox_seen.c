/* test_sandbox_seen.c - a session on a sandbox reads a file before it changes
   it. */
#include "../support/t_calls.h"

static ts_server server;
static tc_proxy  proxy;
static tc_box    box;
static tt_reply  r;

static void begin(bool session, bool foreign, hfsb_str work_dir) {
    hfsb_sandbox_opts o = tc_options();
    ts_start(&server, NULL, NULL);
    tc_proxy_open(&proxy, server.port);
    proxy.foreign = foreign;
    o.session = session;
    o.work_dir = work_dir;
    tc_open(&box, proxy.port, &o);
    tc_plan(&proxy, NULL, 0);
}

static void end(void) {
    tt_drop(&r);
    tc_close(&box);
    tc_proxy_close(&proxy);
    ts_end(&server, false);
}

/* How many POSTs the last call made. */
static size_t asked(void) {
    size_t n = proxy.asked_posts;
    tc_plan(&proxy, NULL, 0);
    return n;
}

#define UNREAD(path) \
    "File " path " has not been read this session. Read it first."
#define EXISTS(path)                                                    \
    "File " path " exists but has not been read this session. Read it " \
    "first, or use edit for targeted changes."

#define EDIT "{\"path\":\"f\",\"old_str\":\"a\",\"new_str\":\"b\"}"

static void write_asks_whether_the_file_exists(void) {
    int foreign;
    for (foreign = 0; foreign < 2; foreign++) {
        begin(true, foreign, HFSB_LIT(""));
        tt_put("f", HFSB_LIT("a\n"));
        tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"x\"}");
        T_CHECK(r.st == HFSB_OK && asked() == 1);
        T_STR(proxy.body, "{\"path\":\"f\"}");
        T_CHECK(!r.res.success);
        T_STR(r.res.error, EXISTS("f"));
        TT_FILE("f", "a\n");
        tc_call(&r, &box, "write", "{\"path\":\"new\",\"content\":\"x\"}");
        TT_OK(&r, NULL);
        T_CHECK(asked() == 2);
        /* what it wrote it knows */
        tc_call(&r, &box, "write", "{\"path\":\"./new\",\"content\":\"y\"}");
        TT_OK(&r, NULL);
        T_CHECK(asked() == 1);
        T_CHECK(!mkdir("d", 0755));
        tc_call(&r, &box, "edit",
                "{\"path\":\"d/../new\",\"old_str\":\"y\",\"new_str\":\"z\"}");
        TT_OK(&r, NULL);
        TT_FILE("new", "z");
        unlink("new");
        rmdir("d");
        end();
    }
}

static void edit_requires_a_successful_read(void) {
    begin(true, false, HFSB_LIT(""));
    tt_put("f", HFSB_LIT("a\n"));
    tc_call(&r, &box, "edit", EDIT);
    T_CHECK(r.st == HFSB_OK && asked() == 0);
    T_STR(r.res.error, UNREAD("f"));
    tc_call(&r, &box, "multi_edit",
            "{\"path\":\"f\",\"edits\":[{\"old_str\":\"a\",\"new_str\":\"b\"}"
            "]}");
    T_STR(r.res.error, UNREAD("f"));
    T_CHECK(asked() == 0);
    unlink("f");
    tc_call(&r, &box, "read", "{\"path\":\"f\"}");
    TT_FAIL(&r, "File not found: f");
    tt_put("f", HFSB_LIT("a\n"));
    tc_call(&r, &box, "edit", EDIT);
    T_STR(r.res.error, UNREAD("f"));
    tc_call(&r, &box, "read", "{\"path\":\"f\",\"limit\":1}");
    TT_OK(&r, "1\ta");
    tc_call(&r, &box, "edit", EDIT);
    TT_OK(&r, NULL);
    TT_FILE("f", "b\n");
    tc_call(&r, &box, "multi_edit",
            "{\"path\":\"f\",\"edits\":[{\"old_str\":\"b\",\"new_str\":\"c\"}"
            "]}");
    TT_OK(&r, NULL);
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"d\"}");
    TT_OK(&r, NULL);
    TT_FILE("f", "d");
    /* no path at all is for the server to tell */
    tc_call(&r, &box, "edit", "{\"old_str\":\"b\",\"new_str\":\"c\"}");
    T_CHECK(r.st == HFSB_ARG);
    end();
}

static void paths_are_compared_after_joining(void) {
    char dir[80], json[256];
    snprintf(dir, sizeof dir, "%s/work", tt_dir);
    begin(true, false, hfsb_cstr(dir));
    tt_put("f", HFSB_LIT("a\n"));
    snprintf(json, sizeof json, "{\"path\":\"%s//./f\"}", dir);
    tc_call(&r, &box, "read", json);
    TT_OK(&r, NULL);
    tc_call(&r, &box, "edit", EDIT);
    TT_OK(&r, NULL);
    tc_call(&r, &box, "edit",
            "{\"path\":\"f2\",\"old_str\":\"a\",\"new_str\":\"b\"}");
    T_STR(r.res.error, UNREAD("f2"));
    end();
}

#define PATCH(text) "{\"patch\":\"*** Begin Patch\\n" text "*** End Patch\"}"

static void patch_requires_a_read_too(void) {
    begin(true, false, HFSB_LIT(""));
    tt_put("f", HFSB_LIT("a\n"));
    tt_put("g", HFSB_LIT("a\n"));
    tc_call(&r, &box, "apply_patch",
            PATCH("*** Update File: f\\n@@\\n-a\\n+b\\n"));
    T_STR(r.res.error, UNREAD("f"));
    tc_call(&r, &box, "apply_patch", PATCH("*** Delete File: f\\n"));
    T_STR(r.res.error, UNREAD("f"));
    T_CHECK(asked() == 0);
    tc_call(&r, &box, "read", "{\"path\":\"f\"}");
    tc_call(&r, &box, "apply_patch",
            PATCH("*** Update File: f\\n@@\\n-a\\n+b\\n*** Update File: "
                  "g\\n@@\\n-a\\n+b\\n"));
    T_STR(r.res.error, UNREAD("g"));
    TT_FILE("f", "a\n");
    /* files that a patch adds or moves count as read, in it and after it */
    tc_call(&r, &box, "apply_patch",
            PATCH("*** Add File: h\\n+1\\n*** Update File: h\\n@@\\n-1\\n+2\\n"
                  "*** Update File: f\\n*** Move to: m\\n@@\\n-a\\n+b\\n"));
    TT_OK(&r, NULL);
    TT_FILE("h", "2\n");
    TT_FILE("m", "b\n");
    tc_call(&r, &box, "edit",
            "{\"path\":\"h\",\"old_str\":\"2\",\"new_str\":\"3\"}");
    TT_OK(&r, NULL);
    tc_call(&r, &box, "edit",
            "{\"path\":\"m\",\"old_str\":\"b\",\"new_str\":\"3\"}");
    TT_OK(&r, NULL);
    /* not before a section that makes it */
    tc_call(&r, &box, "apply_patch",
            PATCH("*** Delete File: g\\n*** Add File: g\\n+1\\n"));
    T_STR(r.res.error, UNREAD("g"));
    /* all of them, in any format */
    tt_put("i", HFSB_LIT("a\n"));
    tc_call(&r, &box, "apply_patch",
            "{\"patch\":\"--- a/g\\n+++ b/g\\n@@ -1 +1 @@\\n-a\\n+b\\n--- "
            "a/i\\n+++ /dev/null\\n@@ -1 +0,0 @@\\n-a\\n\"}");
    T_STR(r.res.error,
          "Files g, i have not been read this session. Read them first.");
    /* the server reports an invalid patch */
    tc_call(&r, &box, "apply_patch", "{\"patch\":\"nonsense\"}");
    TT_FAIL(&r, "Malformed patch");
    end();
    unlink("h");
    unlink("m");
}

static void without_a_session_nothing_is_asked(void) {
    begin(false, false, HFSB_LIT(""));
    tt_put("f", HFSB_LIT("a\n"));
    tc_call(&r, &box, "edit", EDIT);
    TT_OK(&r, NULL);
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"x\"}");
    TT_OK(&r, NULL);
    T_CHECK(asked() == 2);
    end();
}

static void when_exists_cannot_be_asked_nothing_is_written(void) {
    begin(true, true, HFSB_LIT(""));
    unlink("n");
    tc_plan_one(&proxy, TC_DROP_BEFORE, 1);
    tc_call(&r, &box, "write", "{\"path\":\"n\",\"content\":\"x\"}");
    T_CHECK(r.st == HFSB_LOST && access("n", F_OK));
    end();
}

static void upload_counts_as_read(void) {
    begin(true, false, HFSB_LIT(""));
    tt_put("local", HFSB_LIT("a\n"));
    T_CHECK(hfsb_sandbox_upload(box.sandbox, NULL, HFSB_LIT("local"),
                                HFSB_LIT("f"), NULL, NULL) == HFSB_OK);
    tc_call(&r, &box, "edit", EDIT);
    TT_OK(&r, NULL);
    TT_FILE("f", "b\n");
    end();
}

static void many_files_are_remembered(void) {
    char json[128];
    int  i;
    begin(true, false, HFSB_LIT(""));
    for (i = 0; i < 100; i++) {
        snprintf(json, sizeof json, "{\"path\":\"many%d\",\"content\":\"a\"}",
                 i);
        tc_call(&r, &box, "write", json);
        TT_OK(&r, NULL);
    }
    (void)asked();
    tc_call(&r, &box, "write", "{\"path\":\"many0\",\"content\":\"b\"}");
    TT_OK(&r, NULL);
    tc_call(&r, &box, "write", "{\"path\":\"many99\",\"content\":\"b\"}");
    TT_OK(&r, NULL);
    T_CHECK(asked() == 2);
    end();
}

static void write_over_a_file_that_changed_is_refused(void) {
    begin(true, false, HFSB_LIT(""));
    tt_put("f", HFSB_LIT("a\n"));
    tc_call(&r, &box, "read", "{\"path\":\"f\"}");
    tt_put("f", HFSB_LIT("theirs\n"));
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"x\"}");
    TT_FAIL(&r, "File has changed since it was read: f");
    TT_FILE("f", "theirs\n");
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"x\"}");
    T_STR(r.res.error, EXISTS("f"));
    tc_call(&r, &box, "read", "{\"path\":\"f\"}");
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"x\\n\"}");
    TT_OK(&r, NULL);
    /* what it wrote and edited itself it knows */
    tc_call(&r, &box, "edit",
            "{\"path\":\"f\",\"old_str\":\"x\",\"new_str\":\"y\"}");
    TT_OK(&r, NULL);
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"z\"}");
    TT_OK(&r, NULL);
    tt_put("f", HFSB_LIT("theirs\n"));
    tc_call(&r, &box, "edit",
            "{\"path\":\"f\",\"old_str\":\"theirs\",\"new_str\":\"q\"}");
    TT_OK(&r, NULL);
    /* a file that is gone overwrites nothing, at the second try */
    unlink("f");
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"x\"}");
    TT_FAIL(&r, "File not found: f");
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"x\"}");
    TT_OK(&r, NULL);
    /* the caller's own condition stands alone */
    tt_put("f", HFSB_LIT("theirs\n"));
    tc_call(&r, &box, "write",
            "{\"path\":\"f\",\"content\":\"x\",\"if_sha256\":null}");
    TT_OK(&r, NULL);
    end();
}

/* Another server does not know the condition. */
static void other_servers_get_no_condition(void) {
    begin(true, true, HFSB_LIT(""));
    tt_put("f", HFSB_LIT("a\n"));
    tc_call(&r, &box, "read", "{\"path\":\"f\"}");
    tc_call(&r, &box, "edit", EDIT);
    TT_OK(&r, NULL);
    T_STR(proxy.body,
          "{\"path\":\"f\",\"old_str\":\"a\",\"new_str\":\"b\",\"replace_"
          "all\":false,\"mode\":\"replace\"}");
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"x\"}");
    T_STR(proxy.body, "{\"path\":\"f\",\"content\":\"x\"}");
    end();
}

/* ---- two clients ---- */

static tc_box other;

#define STALE(path) "File " path " has changed since it was read"
#define THEIRS(path)                                                     \
    "(" path " had changed since it was read. Read it again before you " \
    "change other parts.)"
/* The blanks of the second line are not those of the file. */
#define LOOSE "\"old_str\":\"one\\n\\ttwo\\n\",\"new_str\":\"one\\n\\t2\\n\""
#define EXACT "\"old_str\":\"three\",\"new_str\":\"3\""
#define READ  "{\"path\":\"f\"}"

/* Both clients have read f; then the other one has changed its last line. */
static void begin_with_two_clients(void) {
    hfsb_sandbox_opts o = tc_options();
    begin(true, false, HFSB_LIT(""));
    o.session = true;
    tc_open(&other, proxy.port, &o);
    tt_put("f", HFSB_LIT("one\n  two\nthree\nend\n"));
    tc_call(&r, &box, "read", READ);
    tc_call(&r, &other, "read", READ);
    tc_call(&r, &other, "edit",
            "{\"path\":\"f\",\"old_str\":\"end\",\"new_str\":\"END\"}");
    TT_OK(&r, "Edited f (1 replacement)");
}

static void end_with_two_clients(void) {
    tc_close(&other);
    end();
}

static void loose_edits_of_a_file_that_another_client_changed_are_refused(
    void) {
    begin_with_two_clients();
    tc_call(&r, &box, "edit", "{\"path\":\"f\"," LOOSE "}");
    TT_FAIL(&r, STALE("f") "; nothing was written. Read it again.");
    tc_call(&r, &box, "multi_edit",
            "{\"path\":\"f\",\"edits\":[{" LOOSE "},{" EXACT "}]}");
    TT_FAIL(&r, STALE("f") "; nothing was written. Read it again.");
    /* nor where they match no more */
    tc_call(&r, &box, "edit",
            "{\"path\":\"f\",\"old_str\":\"end\",\"new_str\":\"x\"}");
    TT_FAIL(&r, "old_str not found in file.");
    T_CHECK(tt_says(&r.res.error, STALE("f") ". Read it again."));
    TT_FILE("f", "one\n  two\nthree\nEND\n");
    tc_call(&r, &box, "read", READ);
    tc_call(&r, &box, "edit", "{\"path\":\"f\"," LOOSE "}");
    TT_OK(&r, NULL);
    TT_FILE("f", "one\n  2\nthree\nEND\n");
    end_with_two_clients();
}

static void exact_edits_of_a_file_that_another_client_changed_are_made(void) {
    begin_with_two_clients();
    tc_call(&r, &box, "edit", "{\"path\":\"f\"," EXACT "}");
    TT_OK(&r, "Edited f (1 replacement)\n" THEIRS("f"));
    TT_FILE("f", "one\n  two\n3\nEND\n");
    /* what the other client changed is still unseen */
    tc_call(&r, &box, "edit", "{\"path\":\"f\"," LOOSE "}");
    TT_FAIL(&r, STALE("f"));
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"x\"}");
    TT_FAIL(&r, "File has changed since it was read: f");
    tc_call(&r, &box, "read", READ);
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"x\"}");
    TT_OK(&r, NULL);
    end_with_two_clients();
}

static void sessions_know_their_own_edits_and_patches(void) {
    begin(true, false, HFSB_LIT(""));
    tt_put("f", HFSB_LIT("one\n  two\nthree\n"));
    tc_call(&r, &box, "read", READ);
    tc_call(&r, &box, "edit", "{\"path\":\"f\"," EXACT "}");
    TT_OK(&r, "Edited f (1 replacement)");
    tc_call(&r, &box, "apply_patch",
            PATCH("*** Update File: f\\n@@\\n-3\\n+III\\n"));
    TT_OK(&r, "Updated f");
    tc_call(&r, &box, "edit", "{\"path\":\"f\"," LOOSE "}");
    TT_OK(&r, NULL);
    TT_FILE("f", "one\n  2\nIII\n");
    /* the patch has told it the version, which it sends */
    tc_call(&r, &box, "apply_patch",
            PATCH("*** Update File: f\\n@@\\n-III\\n+3\\n"));
    tt_put("f", HFSB_LIT("theirs\n"));
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"x\"}");
    TT_FAIL(&r, "File has changed since it was read: f");
    end();
}

static void patches_of_a_file_that_another_client_changed_match_exactly(
    void) {
    begin_with_two_clients();
    tt_put("g", HFSB_LIT("g\n"));
    tc_call(&r, &box, "read", "{\"path\":\"g\"}");
    tc_call(&r, &box, "apply_patch",
            PATCH("*** Update File: g\\n@@\\n-g\\n+G\\n*** Update File: f\\n"
                  "@@\\n one\\n-\\ttwo\\n+\\t2\\n"));
    TT_FAIL(&r, STALE("f") "; nothing was written. Read it again.");
    tc_call(&r, &box, "apply_patch", PATCH("*** Delete File: f\\n"));
    TT_FAIL(&r, STALE("f") "; nothing was written. Read it again.");
    TT_FILE("g", "g\n");
    tc_call(&r, &box, "apply_patch",
            PATCH("*** Update File: g\\n@@\\n-g\\n+G\\n*** Update File: f\\n"
                  "@@\\n-three\\n+3\\n*** Update File: f\\n@@\\n-3\\n+III"
                  "\\n"));
    TT_OK(&r, "Updated g\nUpdated f\n" THEIRS("f"));
    TT_FILE("f", "one\n  two\nIII\nEND\n");
    /* g is known, f is not */
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"x\"}");
    TT_FAIL(&r, "File has changed since it was read: f");
    tc_call(&r, &box, "write", "{\"path\":\"g\",\"content\":\"x\"}");
    TT_OK(&r, NULL);
    tc_call(&r, &box, "read", READ);
    tc_call(&r, &box, "apply_patch",
            PATCH("*** Update File: f\\n@@\\n one\\n-\\ttwo\\n+\\t2\\n"));
    TT_OK(&r, NULL);
    tc_call(&r, &box, "apply_patch", PATCH("*** Delete File: f\\n"));
    TT_OK(&r, NULL);
    T_CHECK(access("f", F_OK) != 0);
    end_with_two_clients();
}

/* ---- calls of one client at the same time ---- */

enum { LINES = 12 };

/* Changes line n. Its blanks are not those of the file, so that the edit
   matches loosely. */
static void *edit_a_line(void *user) {
    int      n = *(int *)user;
    char     json[160];
    tt_reply reply = HFSB_INIT;
    snprintf(json, sizeof json,
             "{\"path\":\"f\",\"old_str\":\"\\tline%d\",\"new_str\":\""
             "\\tLINE%d\"}",
             n, n);
    tc_call(&reply, &box, "edit", json);
    TT_OK(&reply, NULL);
    tt_drop(&reply);
    return NULL;
}

static void parallel_edits_of_one_session_are_not_changes_by_others(void) {
    pthread_t threads[LINES];
    int       numbers[LINES], i;
    hfsb_buf  text = HFSB_INIT;
    begin(true, false, HFSB_LIT(""));
    for (i = 0; i < LINES; i++) {
        numbers[i] = 10 + i;
        T_CHECK(hfsb_buf_printf(&text, "  line%d\n", 10 + i) == HFSB_OK);
    }
    tt_put("f", hfsb_buf_str(&text));
    tc_call(&r, &box, "read", READ);
    for (i = 0; i < LINES; i++)
        T_CHECK(!pthread_create(&threads[i], NULL, edit_a_line, &numbers[i]));
    for (i = 0; i < LINES; i++) pthread_join(threads[i], NULL);
    hfsb_buf_free(&text);
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"x\"}");
    TT_OK(&r, NULL);
    end();
}

static void edit_lines_requires_a_read_too(void) {
    begin(true, false, HFSB_LIT(""));
    tt_put("f", HFSB_LIT("1\n2\n"));
#define DELETE                                                          \
    "{\"path\":\"f\",\"tag\":\"a6e2b7a0\",\"ops\":[{\"op\":\"delete\"," \
    "\"line\":1}]}"
    tc_call(&r, &box, "edit_lines", DELETE);
    T_STR(r.res.error, UNREAD("f"));
    tc_call(&r, &box, "read", "{\"path\":\"f\"}");
    tc_call(&r, &box, "edit_lines", DELETE);
    TT_OK(&r, NULL);
    TT_FILE("f", "2\n");
    tc_call(&r, &box, "write", "{\"path\":\"f\",\"content\":\"x\"}");
    TT_OK(&r, NULL);
    end();
}

int main(void) {
    tt_begin();
    TT_RUN(write_asks_whether_the_file_exists);
    TT_RUN(edit_requires_a_successful_read);
    TT_RUN(paths_are_compared_after_joining);
    TT_RUN(patch_requires_a_read_too);
    TT_RUN(without_a_session_nothing_is_asked);
    TT_RUN(when_exists_cannot_be_asked_nothing_is_written);
    TT_RUN(upload_counts_as_read);
    TT_RUN(many_files_are_remembered);
    TT_RUN(write_over_a_file_that_changed_is_refused);
    TT_RUN(other_servers_get_no_condition);
    TT_RUN(edit_lines_requires_a_read_too);
    TT_RUN(loose_edits_of_a_file_that_another_client_changed_are_refused);
    TT_RUN(exact_edits_of_a_file_that_another_client_changed_are_made);
    TT_RUN(sessions_know_their_own_edits_and_patches);
    TT_RUN(patches_of_a_file_that_another_client_changed_match_exactly);
    TT_RUN(parallel_edits_of_one_session_are_not_changes_by_others);
    return TT_END();
}
