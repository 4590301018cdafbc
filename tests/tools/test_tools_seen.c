/* test_tools_seen.c - a session changes no file that has changed unseen. */
#include "../support/t_tools.h"
#include <sys/time.h>

static hfsb_tools *open_session(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    opts.session = true;
    return tt_open(&opts);
}

static void read_file(hfsb_tools *tools, tt_reply *r, const char *path) {
    tt_call(r, tools, "read", "path=s", path);
    T_CHECK(r->res.success);
}

static void write_refuses_a_file_that_changed(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    tt_put("w", HFSB_LIT("a\nb\nc\n"));
    read_file(tools, &r, "w");
    tt_put("w", HFSB_LIT("a\nB\nc\n"));
    tt_call(&r, tools, "write", "path=s content=s", "w", "mine\n");
    TT_FAIL(&r, "File w has changed since it was read this session; nothing "
                "was written. What changed:\n--- a/w\n+++ b/w\n@@ -1,3 +1,3 "
                "@@\n a\n-b\n+B\n c\nThis counts as read: repeat the call if "
                "it still fits, or adapt it.");
    T_CHECK(r.res.code == HFSB_STALE);
    TT_FILE("w", "a\nB\nc\n");
    /* the change was shown: the next try passes */
    tt_call(&r, tools, "write", "path=s content=s", "w", "mine\n");
    TT_OK(&r, "Wrote 5 bytes to w");
    /* its own content is known */
    tt_call(&r, tools, "write", "path=s content=s", "w", "again\n");
    TT_OK(&r, "Wrote 6 bytes to w");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void write_refuses_a_file_made_or_changed_by_a_command(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    unlink("c");
    tt_call(&r, tools, "write", "path=s content=s", "c", "x\n");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "bash", "command=s", "echo y >> c");
    tt_call(&r, tools, "write", "path=s content=s", "c", "z\n");
    TT_FAIL(&r, "File c has changed");
    T_CHECK(tt_says(&r.res.error, "\n x\n+y\n"));
    TT_FILE("c", "x\ny\n");
    /* a file that is gone overwrites nothing */
    tt_call(&r, tools, "bash", "command=s", "rm c");
    tt_call(&r, tools, "write", "path=s content=s", "c", "z\n");
    TT_OK(&r, "Wrote 2 bytes to c");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void condition_of_the_caller_stands_alone(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    char        hex[HFSB_SHA256_HEX];
    tt_put("s", HFSB_LIT("1\n"));
    read_file(tools, &r, "s");
    tt_put("s", HFSB_LIT("2\n"));
    hfsb_sha256_hex(HFSB_LIT("2\n"), hex);
    tt_call(&r, tools, "write", "path=s content=s if_sha256=s", "s", "3\n",
            hex);
    TT_OK(&r, "Wrote 2 bytes to s");
    tt_call(&r, tools, "write", "path=s content=s if_sha256=s", "s", "4\n",
            hex);
    TT_FAIL(&r, "");
    T_CHECK(r.res.code == HFSB_STALE && !tt_says(&r.res.error, "this session"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void edit_of_a_changed_file_must_match_exactly(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    tt_put("e", HFSB_LIT("one\n  two\nthree\nend\n"));
    read_file(tools, &r, "e");
    tt_put("e", HFSB_LIT("one\n  two\nthree\nEND\n"));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "e",
            "one\n\ttwo\n", "one\n\t2\n"); /* matches but for blanks */
    TT_FAIL(&r, "File e has changed since it was read this session; nothing "
                "was written.");
    T_CHECK(r.res.code == HFSB_STALE && tt_says(&r.res.error, "-end\n+END\n"));
    TT_FILE("e", "one\n  two\nthree\nEND\n");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "e",
            "one\n\ttwo\n", "one\n\t2\n"); /* now it has been shown */
    TT_OK(&r, NULL);
    TT_FILE("e", "one\n  2\nthree\nEND\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void edit_that_matches_exactly_is_made_and_shows_the_change(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    tt_put("x", HFSB_LIT("one\ntwo\nthree\n"));
    read_file(tools, &r, "x");
    tt_put("x", HFSB_LIT("ONE\ntwo\nthree\n"));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "x", "three",
            "3");
    TT_OK(&r, "Edited x (1 replacement)\n(x had changed since it was read. "
              "What changed before this call:)\n--- a/x\n+++ b/x\n@@ -1,3 "
              "+1,3 @@\n-one\n+ONE\n two\n three\n");
    TT_FILE("x", "ONE\ntwo\n3\n");
    /* all is known again */
    tt_call(&r, tools, "write", "path=s content=s", "x", "mine\n");
    TT_OK(&r, "Wrote 5 bytes to x");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void change_too_large_for_the_note_stays_unseen(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    hfsb_buf    big = HFSB_INIT;
    int         i;
    tt_put("l", HFSB_LIT("first\nlast\n"));
    read_file(tools, &r, "l");
    for (i = 0; i < 300; i++)
        T_CHECK(hfsb_buf_printf(&big, "inserted %d\n", i) == HFSB_OK);
    T_CHECK(hfsb_buf_append(&big, HFSB_LIT("first\nlast\n")) == HFSB_OK);
    tt_put("l", hfsb_buf_str(&big));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "l", "last",
            "LAST");
    TT_OK(&r, "Edited l (1 replacement)\n(l had changed since it was read. "
              "Read it again before you change other parts.)");
    tt_call(&r, tools, "write", "path=s content=s", "l", "mine\n");
    TT_FAIL(&r, "File l has changed since it was read this session");
    T_CHECK(tt_says(&r.res.error, "... (diff cut)\nRead it again."));
    T_CHECK(r.res.error.len < 2500);
    tt_call(&r, tools, "write", "path=s content=s", "l", "mine\n");
    TT_FAIL(&r, "File l has changed since it was read this session");
    read_file(tools, &r, "l");
    tt_call(&r, tools, "write", "path=s content=s", "l", "mine\n");
    TT_OK(&r, "Wrote 5 bytes to l");
    hfsb_buf_free(&big);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void edit_that_fails_names_the_change_too(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    tt_put("f", HFSB_LIT("alpha\nbeta\n"));
    read_file(tools, &r, "f");
    tt_put("f", HFSB_LIT("alpha\ngamma\n"));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "f", "beta", "b");
    TT_FAIL(&r, "old_str not found in file.");
    T_CHECK(tt_says(&r.res.error, "\n\nFile f has changed since it was read "
                                  "this session. What changed:\n"));
    T_CHECK(tt_says(&r.res.error, "-beta\n+gamma\n"));
    T_CHECK(r.res.code == HFSB_NOT_FOUND);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Several places, or a line number of the file as it was. */
static void edit_of_several_places_is_refused_after_a_change(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    tt_put("a", HFSB_LIT("x\nx\n"));
    read_file(tools, &r, "a");
    tt_put("a", HFSB_LIT("x\nx\nx\n"));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s replace_all=j", "a",
            "x", "y", "true");
    TT_FAIL(&r, "File a has changed");
    tt_put("a", HFSB_LIT("new\nx\nx\nx\n"));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s line=j", "a", "x",
            "y", "2");
    TT_FAIL(&r, "old_str appears 3 times");
    TT_FILE("a", "new\nx\nx\nx\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

#define PATCH(text) "*** Begin Patch\n" text "*** End Patch\n"

static void patch_of_a_changed_file_must_match_exactly(void) {
    static const char fuzzy[] =
        PATCH("*** Update File: p\n@@\n one  \n-two\n+2\n");
    static const char exact[] =
        PATCH("*** Update File: p\n@@\n one\n-two\n+2\n");
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    tt_put("p", HFSB_LIT("one\ntwo\nthree\nfour\n"));
    read_file(tools, &r, "p");
    tt_put("p", HFSB_LIT("one\ntwo\nthree\nFOUR\n"));
    tt_call(&r, tools, "apply_patch", "patch=s", fuzzy);
    TT_FAIL(&r, "File p has changed since it was read this session; nothing "
                "was written.");
    tt_put("p", HFSB_LIT("one\ntwo\nTHREE\nFOUR\n"));
    tt_call(&r, tools, "apply_patch", "patch=s", exact);
    T_CHECK(r.res.success);
    T_CHECK(tt_says(&r.res.output, "(p had changed since it was read."));
    T_CHECK(tt_says(&r.res.output, "-three\n+THREE\n"));
    TT_FILE("p", "one\n2\nTHREE\nFOUR\n");
    tt_call(&r, tools, "write", "path=s content=s", "p", "mine\n");
    TT_OK(&r, "Wrote 5 bytes to p");
    tt_put("p", HFSB_LIT("theirs\n"));
    tt_call(&r, tools, "apply_patch", "patch=s", PATCH("*** Delete File: p\n"));
    TT_FAIL(&r, "File p has changed since it was read this session");
    TT_FILE("p", "theirs\n");
    tt_call(&r, tools, "apply_patch", "patch=s", PATCH("*** Delete File: p\n"));
    T_CHECK(r.res.success && access("p", F_OK) != 0);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Changes a byte of a file and sets its time of change to a fixed one. */
static void change_quietly(const char *path, char byte) {
    struct timeval when[2] = {{1000000000, 0}, {1000000000, 0}};
    int            fd = open(path, O_WRONLY);
    T_CHECK(fd >= 0 && pwrite(fd, &byte, 1, 3) == 1);
    T_CHECK(close(fd) == 0 && utimes(path, when) == 0);
}

/* Only the content of small files is kept. */
static void change_of_a_large_file_is_noticed(void) {
    static const size_t sizes[] = {600 * 1024, 17 * 1024 * 1024};
    hfsb_tools         *tools = open_session();
    tt_reply            r = HFSB_INIT;
    size_t              i;
    for (i = 0; i < TT_COUNT(sizes); i++) {
        hfsb_buf big = HFSB_INIT;
        while (big.len < sizes[i])
            T_CHECK(hfsb_buf_append(&big, HFSB_LIT("0123456789abcdef\n")) ==
                    HFSB_OK);
        tt_put("big", hfsb_buf_str(&big));
        tt_call(&r, tools, "read", "path=s limit=j", "big", "5");
        T_CHECK(r.res.success);
        tt_call(&r, tools, "write", "path=s content=s", "big", "mine\n");
        TT_OK(&r, "Wrote 5 bytes to big");
        tt_put("big", hfsb_buf_str(&big));
        tt_call(&r, tools, "read", "path=s limit=j", "big", "5");
        T_CHECK(hfsb_buf_append_byte(&big, 'x') == HFSB_OK);
        tt_put("big", hfsb_buf_str(&big));
        tt_call(&r, tools, "write", "path=s content=s", "big", "mine\n");
        TT_FAIL(&r, "File big has changed since it was read this session; "
                    "nothing was written. Read it again.");
        change_quietly("big", 'X');
        tt_call(&r, tools, "read", "path=s limit=j", "big", "5");
        change_quietly("big", 'Y');
        tt_call(&r, tools, "write", "path=s content=s", "big", "mine\n");
        TT_FAIL(&r, "File big has changed since it was read this session; "
                    "nothing was written. Read it again.");
        hfsb_buf_free(&big);
    }
    unlink("big");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void without_a_session_changes_are_no_matter(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    tt_put("n", HFSB_LIT("a\n"));
    read_file(tools, &r, "n");
    tt_put("n", HFSB_LIT("b\n"));
    tt_call(&r, tools, "write", "path=s content=s", "n", "c\n");
    TT_OK(&r, "Wrote 2 bytes to n");
    tt_put("n", HFSB_LIT("c \n"));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "n", "c\n",
            "d\n");
    T_CHECK(r.res.success && !tt_says(&r.res.output, "changed"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* The rule of a session for a file that has changed, without a session: the
   caller gives the version that it knows. */
static void edits_with_a_version_must_match_exactly_after_a_change(void) {
    static const char *const content = "one\n  two\nthree\n";
    hfsb_tools              *tools = tt_open(NULL);
    tt_reply                 r = HFSB_INIT;
    char                     hex[HFSB_SHA256_HEX];
    tt_put("v", hfsb_cstr(content));
    hfsb_sha256_hex(hfsb_cstr(content), hex);
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s if_sha256=s", "v",
            "three", "3", hex);
    TT_OK(&r, "Edited v (1 replacement)");
    T_CHECK(!hfsb_json_get(r.res.fields.root, "had_changed"));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s if_sha256=s", "v",
            "one\n\ttwo\n", "one\n\t2\n", hex);
    TT_FAIL(&r, "File v has changed since it was read; nothing was written. "
                "Read it again.");
    T_CHECK(r.res.code == HFSB_STALE);
    TT_FILE("v", "one\n  two\n3\n");
    tt_call(&r, tools, "multi_edit", "path=s edits=j if_sha256=s", "v",
            "[{\"old_str\":\"one\",\"new_str\":\"1\"},"
            "{\"old_str\":\"3\",\"new_str\":\"three\"}]",
            hex);
    TT_OK(&r, "Edited v (2 replacements)\n(v had changed since it was read. "
              "Read it again before you change other parts.)");
    T_CHECK(hfsb_json_bool(hfsb_json_get(r.res.fields.root, "had_changed"),
                           false));
    TT_FILE("v", "1\n  two\nthree\n");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s if_sha256=s", "v",
            "1", "one", "12ab");
    TT_FAIL(&r, "A sha256 is 64 hexadecimal digits, not \"12ab\".");
    T_CHECK(r.res.code == HFSB_ARG);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void patches_with_versions_must_match_exactly_after_a_change(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_buf    json = HFSB_INIT;
    char        hex[HFSB_SHA256_HEX], now[HFSB_SHA256_HEX];
    const hfsb_json_value *files;
    tt_put("v", HFSB_LIT("one\n  two\n"));
    hfsb_sha256_hex(HFSB_LIT("before\n"), hex);
    T_CHECK(hfsb_buf_printf(&json, "{\"v\":\"%s\"}", hex) == HFSB_OK);
    tt_call(&r, tools, "apply_patch", "patch=s if_sha256=j",
            PATCH("*** Update File: v\n@@\n one\n-\ttwo\n+\t2\n"), json.ptr);
    TT_FAIL(&r, "File v has changed since it was read; nothing was written. "
                "Read it again.");
    tt_call(&r, tools, "apply_patch", "patch=s if_sha256=j",
            PATCH("*** Update File: v\n@@\n-one\n+1\n*** Add File: added\n"
                  "+w\n"),
            json.ptr);
    TT_OK(&r, "Updated v\nAdded added\n(v had changed since it was read. "
              "Read it again before you change other parts.)");
    TT_FILE("v", "1\n  two\n");
    files = hfsb_json_get(r.res.fields.root, "files");
    T_CHECK(hfsb_json_count(files) == 2);
    hfsb_sha256_hex(HFSB_LIT("1\n  two\n"), now);
    hfsb_buf_truncate(&json, 0);
    T_CHECK(hfsb_json_write(hfsb_json_at(files, 0), NULL, &json, NULL) ==
            HFSB_OK);
    T_CHECK(tt_says(&json, "{\"path\":\"v\",\"sha256\":\""));
    T_CHECK(tt_says(&json, now) && tt_says(&json, ",\"had_changed\":true}"));
    T_CHECK(!hfsb_json_get(hfsb_json_at(files, 1), "had_changed"));
    tt_call(&r, tools, "apply_patch", "patch=s if_sha256=j",
            PATCH("*** Update File: v\n@@\n-1\n+one\n"), "{\"v\":7}");
    TT_FAIL(&r, "A sha256 is 64 hexadecimal digits");
    TT_FILE("v", "1\n  two\n");
    hfsb_buf_free(&json);
    unlink("added");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* A read that began before a write and ended after it brings the old
   content. */
static void late_read_does_not_replace_what_was_written(void) {
    hfsb_tools   *tools = open_session();
    tt_reply      r = HFSB_INIT;
    hfsbi_sight   old = HFSB_INIT;
    hfsbi_version version;
    tt_put("r", HFSB_LIT("old\n"));
    old.since = hfsbi_tools_writes(tools);
    hfsbi_version_of(HFSB_LIT("old\n"), &old.version);
    hfsbi_tools_saw(tools, HFSB_LIT("r"), &old);
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "r", "old",
            "new");
    T_CHECK(r.res.success);
    hfsbi_tools_saw(tools, HFSB_LIT("r"), &old);
    T_CHECK(hfsbi_tools_version(tools, HFSB_LIT("r"), &version));
    T_CHECK(strcmp(version.hex, old.version.hex) != 0);
    tt_call(&r, tools, "write", "path=s content=s", "r", "mine\n");
    TT_OK(&r, "Wrote 5 bytes to r");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void refusal_is_valid_json_whatever_the_file_contains(void) {
    hfsb_tools   *tools = open_session();
    tt_reply      r = HFSB_INIT;
    hfsb_buf      json = HFSB_INIT;
    hfsb_json_doc doc = HFSB_INIT;
    tt_put("j", HFSB_LIT("caf\xE9\n"));
    read_file(tools, &r, "j");
    tt_put("j", HFSB_LIT("caf\xE9!\x01\n"));
    tt_call(&r, tools, "write", "path=s content=s", "j", "x\n");
    TT_FAIL(&r, "File j has changed");
    T_CHECK(hfsb_tool_result_write(&r.res, &json, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&json), NULL, &doc, NULL) == HFSB_OK);
    hfsb_json_free(&doc);
    hfsb_buf_free(&json);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- many threads ---- */

enum { THREADS = 8, EDITS = 25 };

typedef struct editor {
    hfsb_tools *tools;
    int         number, made;
} editor;

/* Counts its own line up. The old text differs from the file in its blanks,
   so no edit would pass if the session took another one's work for a change by
   somebody else. */
static void *count_up(void *user) {
    editor *e = (editor *)user;
    int     i;
    for (i = 0; i < EDITS; i++) {
        hfsb_tool_result result;
        char             json[160];
        snprintf(json, sizeof json,
                 "{\"path\":\"many\",\"old_str\":\"line  %d is %d.\","
                 "\"new_str\":\"line %d is %d.\"}",
                 e->number, i, e->number, i + 1);
        if (hfsb_tools_call_text(e->tools, HFSB_LIT("edit"), hfsb_cstr(json),
                                 NULL, &result) == HFSB_OK &&
            result.success)
            e->made++;
        hfsb_tool_result_free(&result);
    }
    return NULL;
}

static void parallel_edits_of_one_session_are_its_own(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    editor      editors[THREADS];
    pthread_t   threads[THREADS];
    hfsb_buf    text = HFSB_INIT;
    int         i;
    for (i = 0; i < THREADS; i++)
        T_CHECK(hfsb_buf_printf(&text, "line %d is 0.\n", i) == HFSB_OK);
    tt_put("many", hfsb_buf_str(&text));
    read_file(tools, &r, "many");
    for (i = 0; i < THREADS; i++) {
        editors[i].tools = tools;
        editors[i].number = i;
        editors[i].made = 0;
        T_CHECK(!pthread_create(&threads[i], NULL, count_up, &editors[i]));
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        T_CHECK(editors[i].made == EDITS);
    }
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(write_refuses_a_file_that_changed);
    TT_RUN(write_refuses_a_file_made_or_changed_by_a_command);
    TT_RUN(condition_of_the_caller_stands_alone);
    TT_RUN(edit_of_a_changed_file_must_match_exactly);
    TT_RUN(edit_that_matches_exactly_is_made_and_shows_the_change);
    TT_RUN(change_too_large_for_the_note_stays_unseen);
    TT_RUN(edit_that_fails_names_the_change_too);
    TT_RUN(edit_of_several_places_is_refused_after_a_change);
    TT_RUN(patch_of_a_changed_file_must_match_exactly);
    TT_RUN(change_of_a_large_file_is_noticed);
    TT_RUN(without_a_session_changes_are_no_matter);
    TT_RUN(edits_with_a_version_must_match_exactly_after_a_change);
    TT_RUN(patches_with_versions_must_match_exactly_after_a_change);
    TT_RUN(late_read_does_not_replace_what_was_written);
    TT_RUN(refusal_is_valid_json_whatever_the_file_contains);
    TT_RUN(parallel_edits_of_one_session_are_its_own);
    return TT_END();
}
