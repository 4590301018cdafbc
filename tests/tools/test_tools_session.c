/* test_tools_session.c - read before write, the root, spills, no memory. */
#include "../support/t_tools.h"

/* ---- read before write ---- */

static hfsb_tools *open_session(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    opts.session = true;
    return tt_open(&opts);
}

static void files_are_read_before_they_are_changed(void) {
    hfsb_tools *tools = open_session(), *other = open_session();
    tt_reply    r = HFSB_INIT;
    tt_put("s", HFSB_LIT("x\n"));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "s", "x", "y");
    TT_FAIL(&r, "");
    T_STR(r.res.error,
          "File s has not been read this session. Read it first.");
    tt_call(&r, tools, "multi_edit", "path=s edits=j", "s",
            "[{\"old_str\":\"x\",\"new_str\":\"y\"}]");
    T_STR(r.res.error,
          "File s has not been read this session. Read it first.");
    tt_call(&r, tools, "write", "path=s content=s", "s", "y\n");
    T_STR(r.res.error,
          "File s exists but has not been read this session. Read it first, "
          "or use edit for targeted changes.");
    tt_call(&r, tools, "apply_patch", "patch=s",
            "*** Begin Patch\n*** Update File: s\n@@\n-x\n+y\n*** End "
            "Patch\n");
    TT_FAIL(&r, "File s has not been read this session.");
    tt_call(&r, tools, "apply_patch", "patch=s",
            "*** Begin Patch\n*** Delete File: s\n*** End Patch\n");
    TT_FAIL(&r, "");
    TT_FILE("s", "x\n");
    tt_call(&r, tools, "exists", "path=s", "s"); /* that is no reading */
    TT_OK(&r, "true");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "s", "x", "y");
    TT_FAIL(&r, "File s has not been read");
    tt_call(&r, tools, "read", "path=s limit=j", "s", "1");
    TT_OK(&r, "1\tx");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "s", "x", "y");
    TT_OK(&r, "Edited s (1 replacement)");
    tt_call(&r, tools, "write", "path=s content=s", "s", "z\n");
    TT_OK(&r, "Wrote 2 bytes to s");
    /* another session has not read it */
    tt_call(&r, other, "edit", "path=s old_str=s new_str=s", "s", "z", "q");
    TT_FAIL(&r, "File s has not been read");
    /* no file: nothing to read */
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "none", "x", "y");
    TT_FAIL(&r, "File not found: none");
    tt_drop(&r);
    hfsb_tools_close(tools);
    hfsb_tools_close(other);
}

static void a_patch_names_all_unread_files(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    tt_put("u1", HFSB_LIT("a\n"));
    tt_put("u2", HFSB_LIT("b\n"));
    tt_put("u3", HFSB_LIT("c\n"));
    tt_call(&r, tools, "read", "path=s", "u2");
    tt_call(&r, tools, "apply_patch", "patch=s",
            "*** Begin Patch\n*** Update File: u1\n-a\n+A\n*** Update File: "
            "u1\n-A\n+B\n*** Update File: u2\n-b\n+B\n*** Add File: u4\n"
            "+x\n*** Update File: u4\n-x\n+y\n*** Delete File: u3\n*** End "
            "Patch\n");
    TT_FAIL(&r, "");
    T_STR(r.res.error,
          "Files u1, u3 have not been read this session. Read them first.");
    /* also when a hunk does not match */
    tt_call(&r, tools, "apply_patch", "patch=s",
            "--- a/u1\n+++ b/u1\n@@ -1 +1 @@\n-zzz\n+A\n--- a/u3\n+++ b/u3\n"
            "@@ -1 +1 @@\n-c\n+C\n");
    TT_FAIL(&r, "Files u1, u3 have not been read this session.");
    TT_FILE("u1", "a\n");
    TT_FILE("u2", "b\n");
    TT_FILE("u3", "c\n");
    T_CHECK(access("u4", F_OK) != 0);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void exact_hunks_count_as_reading(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    tt_put("k1", HFSB_LIT("first line\nsecond line\n"));
    tt_put("k2", HFSB_LIT("first line \nsecond line\n"));
    /* not by trimming, and not without lines */
    tt_call(&r, tools, "apply_patch", "patch=s",
            "*** Begin Patch\n*** Update File: k1\n@@\n-first line\n+1\n"
            "*** Update File: k2\n@@\n-first line\n+1\n*** End Patch\n");
    TT_FAIL(&r, "File k2 has not been read this session. Read it first.");
    tt_call(&r, tools, "apply_patch", "patch=s",
            "*** Begin Patch\n*** Delete File: k1\n*** End Patch\n");
    TT_FAIL(&r, "File k1 has not been read this session.");
    TT_FILE("k1", "first line\nsecond line\n");
    tt_call(&r, tools, "apply_patch", "patch=s",
            "*** Begin Patch\n*** Update File: k1\n@@\n first line\n-second "
            "line\n+2\n*** End Patch\n");
    TT_OK(&r, "Updated k1");
    TT_FILE("k1", "first line\n2\n");
    tt_call(&r, tools, "apply_patch", "patch=s",
            "--- a/k2\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-first line \n-second "
            "line\n");
    TT_OK(&r, "Deleted k2");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void what_a_session_wrote_counts_as_read(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    unlink("fresh");
    unlink("added");
    unlink("moved");
    tt_call(&r, tools, "write", "path=s content=s", "fresh", "a\n");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "write", "path=s content=s", "fresh", "b\n");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "fresh", "b",
            "c");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "apply_patch", "patch=s",
            "*** Begin Patch\n*** Add File: added\n+x\n*** Update File: "
            "fresh\n*** Move to: moved\n@@\n-c\n+d\n*** End Patch\n");
    TT_OK(&r, NULL);
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "added", "x",
            "y");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "moved", "d",
            "e");
    T_CHECK(r.res.success);
    TT_FILE("moved", "e\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void only_a_reading_that_worked_counts(void) {
    hfsb_tools *tools = open_session();
    tt_reply    r = HFSB_INIT;
    tt_put("bin", hfsb_str_make("x\0\n", 3));
    tt_call(&r, tools, "read", "path=s", "bin");
    TT_FAIL(&r, "");
    tt_call(&r, tools, "write", "path=s content=s", "bin", "y");
    TT_FAIL(&r, "File bin exists but has not been read this session.");
    unlink("later");
    tt_call(&r, tools, "read", "path=s", "later");
    TT_FAIL(&r, "File not found");
    tt_put("later", HFSB_LIT("x\n"));
    tt_call(&r, tools, "write", "path=s content=s", "later", "y");
    TT_FAIL(&r, "File later exists but has not been read this session.");
    tt_call(
        &r, tools, "write", "path=s content=s if_sha256=s", "later", "y",
        "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac");
    TT_FAIL(&r, "File later exists but has not been read this session.");
    TT_FILE("later", "x\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void a_file_is_known_by_any_name(void) {
    static const char *const names[] = {"one",  "./one", "d/../one",
                                        "link", "d/up",  "d/self/one"};
    hfsb_tools              *tools;
    tt_reply                 r = HFSB_INIT;
    size_t                   i, k;
    char                     full[100];
    mkdir("d", 0755);
    T_CHECK(!symlink("one", "link") && !symlink("../one", "d/up"));
    T_CHECK(!symlink("..", "d/self"));
    snprintf(full, sizeof full, "%s/work/one", tt_dir);
    for (i = 0; i < TT_COUNT(names); i++)
        for (k = 0; k <= TT_COUNT(names); k++) {
            tools = open_session();
            tt_put("one", HFSB_LIT("x\n"));
            tt_put("two", HFSB_LIT("x\n"));
            tt_call(&r, tools, "read", "path=s", names[i]);
            T_CHECK(r.res.success);
            tt_call(&r, tools, "edit", "path=s old_str=s new_str=s",
                    k < TT_COUNT(names) ? names[k] : full, "x", "y");
            TT_OK(&r, NULL);
            tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "two",
                    "x", "y");
            TT_FAIL(&r, "File two has not been read this session.");
            hfsb_tools_close(tools);
        }
    tt_drop(&r);
}

static void without_a_session_nothing_need_be_read(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    tt_put("free", HFSB_LIT("x\n"));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "free", "x", "y");
    T_CHECK(r.res.success);
    tt_put("free2", HFSB_LIT("x\n"));
    tt_call(&r, tools, "write", "path=s content=s", "free2", "y");
    T_CHECK(r.res.success);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- the root ---- */

/* @: the absolute path of the file beside the root */
static const char *const outside[] = {
    "../secret", "@",  "sub/../../secret", "out", "out-dir/secret", "/",
    "..",        "abs"};

static void paths_stay_beneath_the_root(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    size_t          i;
    char            secret[100];
    snprintf(secret, sizeof secret, "%s/work/secret", tt_dir);
    mkdir("root", 0755);
    mkdir("root/sub", 0755);
    tt_put("secret", HFSB_LIT("secret\n"));
    tt_put("root/in", HFSB_LIT("in\n"));
    T_CHECK(!symlink("../secret", "root/out"));
    T_CHECK(!symlink("..", "root/out-dir"));
    T_CHECK(!symlink(secret, "root/abs"));
    T_CHECK(!symlink("../in", "root/sub/fine"));
    opts.root = HFSB_LIT("root");
    tools = tt_open(&opts);
    for (i = 0; i < TT_COUNT(outside); i++) {
        const char *path = *outside[i] == '@' ? secret : outside[i];
        char        patch[300];
        tt_call(&r, tools, "read", "path=s", path);
        T_CHECK(!r.res.success && !tt_says(&r.res.error, "secret\n"));
        tt_call(&r, tools, "write", "path=s content=s", path, "x");
        T_CHECK(!r.res.success);
        tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", path,
                "secret", "x");
        T_CHECK(!r.res.success);
        snprintf(patch, sizeof patch,
                 "*** Begin Patch\n*** Add File: %s.new\n+x\n*** End Patch\n",
                 path);
        if (i < 3 || i == 4) {
            tt_call(&r, tools, "apply_patch", "patch=s", patch);
            T_CHECK(!r.res.success);
        }
        tt_call(&r, tools, "exists", "path=s", path);
        T_CHECK(!r.res.success);
    }
    TT_FILE("secret", "secret\n");
    tt_call(&r, tools, "read", "path=s", "in");
    TT_OK(&r, "1\tin");
    tt_call(&r, tools, "read", "path=s", "sub/fine");
    TT_OK(&r, "1\tin");
    tt_call(&r, tools, "write", "path=s content=s", "sub/new/f", "x");
    TT_OK(&r, "Wrote 1 bytes to sub/new/f");
    /* commands are not confined, and begin there */
    tt_call(&r, tools, "bash", "command=s", "cat in ../secret");
    TT_OK(&r, "in\nsecret\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
    opts.work_dir = HFSB_LIT("sub");
    tools = tt_open(&opts);
    tt_call(&r, tools, "read", "path=s", "../in");
    TT_OK(&r, "1\tin");
    tt_call(&r, tools, "bash", "command=s", "cat ../in");
    TT_OK(&r, "in\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void session_may_read_its_own_spill_files(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools, *other;
    tt_reply        r = HFSB_INIT;
    char            path[300], theirs[300];
    mkdir("root", 0755);
    opts.root = HFSB_LIT("root");
    opts.session = true;
    tools = tt_open(&opts);
    other = tt_open(&opts);
    tt_call(&r, tools, "bash", "command=s", "yes 0123456789 | head -n 4000");
    snprintf(path, sizeof path, "%s", tt_text(&r, "spill_path").ptr);
    tt_call(&r, tools, "read", "path=s offset=j limit=j", path, "3999", "5");
    TT_OK(&r, "3999\t0123456789\n4000\t0123456789");
    /* nobody else's, and no other file beside it */
    tt_call(&r, other, "read", "path=s", path);
    TT_FAIL(&r, "");
    snprintf(theirs, sizeof theirs, "%s/tmp/bash_output_aaaaaaaaaaaa.txt",
             tt_dir);
    tt_put(theirs, HFSB_LIT("x\n"));
    tt_call(&r, tools, "read", "path=s", theirs);
    TT_FAIL(&r, "");
    unlink(theirs);
    /* it can be read only */
    tt_call(&r, tools, "write", "path=s content=s", path, "x");
    TT_FAIL(&r, "");
    /* a link in its place leads nowhere */
    tt_put("secret", HFSB_LIT("secret\n"));
    snprintf(theirs, sizeof theirs, "%s/work/secret", tt_dir);
    T_CHECK(!unlink(path) && !symlink(theirs, path));
    tt_call(&r, tools, "read", "path=s", path);
    TT_FAIL(&r, "");
    T_CHECK(!tt_says(&r.res.output, "secret"));
    unlink(path);
    tt_drop(&r);
    hfsb_tools_close(tools);
    hfsb_tools_close(other);
}

/* $TMPDIR may be relative; the model still gets a path that it can read. */
static void spill_path_works_with_a_relative_tmpdir(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    char            tmp[100], path[300];
    snprintf(tmp, sizeof tmp, "%s", getenv("TMPDIR"));
    mkdir("root", 0755);
    mkdir("reltmp", 0700);
    setenv("TMPDIR", "reltmp", 1);
    opts.work_dir = HFSB_LIT("root");
    tools = tt_open(&opts);
    tt_call(&r, tools, "bash", "command=s", "yes | head -n 14000");
    snprintf(path, sizeof path, "%s", tt_text(&r, "spill_path").ptr);
    tt_call(&r, tools, "read", "path=s offset=j", path, "-1");
    TT_OK(&r, "14000\ty");
    setenv("TMPDIR", tmp, 1);
    tt_drop(&r);
    hfsb_tools_close(tools);
    T_CHECK(tt_remove_all("reltmp", "bash_output_"));
}

static void open_reports_a_missing_directory(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools = NULL;
    hfsb_err        err;
    opts.alloc = tt_alloc();
    opts.work_dir = HFSB_LIT("no/such");
    T_CHECK(hfsb_tools_open(&opts, &tools, &err) == HFSB_NOT_FOUND);
    T_CHECK(err.code == HFSB_NOT_FOUND && strstr(err.msg, "no/such"));
    T_CHECK(!tools);
    opts.work_dir = HFSB_LIT("");
    opts.root = HFSB_LIT("no/root");
    T_CHECK(hfsb_tools_open(&opts, &tools, &err) == HFSB_NOT_FOUND);
    T_CHECK(strstr(err.msg, "no/root") && !tools);
    mkdir("root", 0755);
    opts.root = HFSB_LIT("root");
    opts.work_dir = HFSB_LIT("/tmp");
    T_CHECK(hfsb_tools_open(&opts, &tools, &err) == HFSB_OUTSIDE);
    T_CHECK(!tools);
    hfsb_tools_close(NULL);
}

/* Enough for the table of known files to grow many times. */
static void a_thousand_files_are_known(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    int             i, round, wrong = 0;
    opts.session = true;
    tools = tt_open(&opts);
    T_CHECK(!mkdir("thousand", 0755));
    for (round = 0; round < 2; round++)
        for (i = 0; i < 2000; i++) {
            char path[32];
            snprintf(path, sizeof path, "thousand/%d", i);
            if (round) {
                wrong += hfsbi_tools_has_seen(tools, hfsb_cstr(path)) !=
                         (i % 2 == 0);
                continue;
            }
            tt_put(path, HFSB_LIT("x\n"));
            if (i % 2 == 0) tt_call(&r, tools, "read", "path=s", path);
        }
    T_CHECK(wrong == 0);
    tt_call(&r, tools, "write", "path=s content=s", "thousand/2", "y");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "write", "path=s content=s", "thousand/3", "y");
    T_CHECK(tt_says(&r.res.error, "has not been read"));
    tt_remove_all("thousand", NULL);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- without memory ---- */

static const struct {
    const char *tool, *json;
} frugal[] = {
    {"bash", "{\"command\":\"echo a; echo b >&2\",\"env\":{\"A\":\"b\"}}"},
    {"bash", "{\"command\":\"head -c 40000 /dev/zero | tr '\\\\0' a\"}"},
    {"bash", "{\"command\":\"sleep 5\",\"background\":true,\"id\":\"j\"}"},
    {"bash_output", "{\"id\":\"j\"}"},
    {"bash_input", "{\"id\":\"j\",\"text\":\"x\"}"},
    {"kill", "{}"},
    {"read", "{\"path\":\"file\"}"},
    {"write", "{\"path\":\"mem.json\",\"content\":\"{\"}"},
    {"edit", "{\"path\":\"file\",\"old_str\":\"x\",\"new_str\":\"y\"}"},
    {"multi_edit", "{\"path\":\"file\",\"edits\":[{\"old_str\":\"y\","
                   "\"new_str\":\"x\"}]}"},
    {"exists", "{\"path\":\"file\"}"},
    {"apply_patch", "{\"patch\":\"*** Begin Patch\\n*** Update File: "
                    "file\\n@@\\n-x\\n+y\\n*** End Patch\"}"},
};

static size_t frugal_at;

/* The status says so, and the result is one that can be freed and shown. */
static void one_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools = NULL;
    hfsb_status     st;
    size_t          i;
    opts.alloc = alloc;
    opts.session = true;
    opts.grace_ms = 100;
    tt_put("file", HFSB_LIT("x\n"));
    unlink("mem.json");
    st = hfsb_tools_open(&opts, &tools, NULL);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at && !tools));
    /* what it needs first, then itself */
    for (i = frugal_at >= 3 && frugal_at < 6 ? 2
             : frugal_at >= 8                ? 6
                                             : frugal_at;
         tools && i <= frugal_at; i++) {
        hfsb_tool_result r;
        hfsb_call_opts   co = HFSB_INIT;
        bool             done;
        if (i > 6 && i < 8) continue;
        co.key = HFSB_LIT("key");
        memset(&r, 0xA5, sizeof r); /* filled in any case */
        st = hfsb_tools_call_text(tools, hfsb_cstr(frugal[i].tool),
                                  hfsb_cstr(frugal[i].json),
                                  i == frugal_at ? &co : NULL, &r);
        done = st == HFSB_OK && r.success;
        T_CHECK(done || heap->fail_at);
        T_CHECK(r.success || r.error.len > 0 || st == HFSB_NOMEM);
        hfsb_tool_result_free(&r);
    }
    hfsb_tools_close(tools);
}

static void each_allocation_fails_cleanly(void) {
    for (frugal_at = 0; frugal_at < TT_COUNT(frugal); frugal_at++) {
        if (t_quick() && frugal_at < 6) continue;
        t_each_allocation_fails(one_without_memory);
    }
}

/* A patch of a file that was not read: refused in words, or out of memory. */
static void patch_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_tools_opts  opts = HFSB_INIT;
    hfsb_tools      *tools = NULL;
    hfsb_tool_result r;
    hfsb_status      st;
    opts.alloc = alloc;
    opts.session = true;
    tt_put("file", HFSB_LIT("x\n"));
    st = hfsb_tools_open(&opts, &tools, NULL);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at && !tools));
    if (!tools) return;
    st = hfsb_tools_call_text(tools, HFSB_LIT("apply_patch"),
                              hfsb_cstr(frugal[TT_COUNT(frugal) - 1].json),
                              NULL, &r);
    T_CHECK(!r.success && (st == HFSB_OK || st == HFSB_NOMEM));
    T_CHECK(st == HFSB_NOMEM || tt_says(&r.error, "has not been read"));
    T_CHECK(st == HFSB_OK || heap->fail_at);
    TT_FILE("file", "x\n");
    hfsb_tool_result_free(&r);
    hfsb_tools_close(tools);
}

static void a_refused_patch_says_so_or_lacks_memory(void) {
    t_each_allocation_fails(patch_without_memory);
}

int main(void) {
    tt_begin();
    TT_RUN(files_are_read_before_they_are_changed);
    TT_RUN(a_patch_names_all_unread_files);
    TT_RUN(exact_hunks_count_as_reading);
    TT_RUN(what_a_session_wrote_counts_as_read);
    TT_RUN(only_a_reading_that_worked_counts);
    TT_RUN(a_file_is_known_by_any_name);
    TT_RUN(without_a_session_nothing_need_be_read);
    TT_RUN(paths_stay_beneath_the_root);
    TT_RUN(session_may_read_its_own_spill_files);
    TT_RUN(spill_path_works_with_a_relative_tmpdir);
    TT_RUN(open_reports_a_missing_directory);
    TT_RUN(a_thousand_files_are_known);
    TT_RUN(each_allocation_fails_cleanly);
    TT_RUN(a_refused_patch_says_so_or_lacks_memory);
    return TT_END();
}
