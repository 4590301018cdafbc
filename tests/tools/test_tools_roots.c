/* test_tools_roots.c - the tools with several roots and a deny list. */
#include "../support/t_tools.h"

static char a[100], b[100];

static hfsb_tools *open_roots(bool session) {
    static const char *const deny[] = {".env", "secrets/", "/top.key"};
    static const char       *more[1];
    hfsb_tools_opts          opts = HFSB_INIT;
    more[0] = b;
    opts.root = hfsb_cstr(a);
    opts.more_roots = more;
    opts.more_root_count = 1;
    opts.deny = deny;
    opts.deny_count = 3;
    opts.session = session;
    return tt_open(&opts);
}

static void put_tree(void) {
    static const char *const dirs[] = {"a", "a/secrets", "a/sub",
                                       "b", "b/secrets", "b/sub"};
    static const char *const files[] = {
        "a/f",       "a/.env",    "a/secrets/s", "a/top.key", "a/sub/top.key",
        "a/sub/.env", "b/g",      "b/.env",      "b/secrets/s", "b/top.key",
        "b/sub/h",   "b/ignored"};
    size_t i;
    snprintf(a, sizeof a, "%s/work/a", tt_dir);
    snprintf(b, sizeof b, "%s/work/b", tt_dir);
    for (i = 0; i < TT_COUNT(dirs); i++) T_CHECK(mkdir(dirs[i], 0755) == 0);
    for (i = 0; i < TT_COUNT(files); i++) tt_put(files[i], HFSB_LIT("x\n"));
    tt_put("b/.gitignore", HFSB_LIT("/ignored\n"));
}

static void searches_work_in_each_root_and_leave_out_what_is_denied(void) {
    hfsb_tools *tools = open_roots(false);
    char        want[500];
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "grep", "pattern=s", "x");
    TT_OK(&r, "f:1:x\nsub/top.key:1:x");
    tt_call(&r, tools, "grep", "pattern=s path=s", "x", "sub");
    TT_OK(&r, "sub/top.key:1:x");
    tt_call(&r, tools, "grep", "pattern=s path=s", "x", b);
    snprintf(want, sizeof want, "%s/g:1:x\n%s/sub/h:1:x", b, b);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.res.output), hfsb_cstr(want)));
    tt_call(&r, tools, "glob", "pattern=s path=s all=j", "*", b, "true");
    T_CHECK(r.res.success && tt_says(&r.res.output, "ignored") &&
            tt_says(&r.res.output, "b/g") &&
            !tt_says(&r.res.output, "env") &&
            !tt_says(&r.res.output, "secrets") &&
            !tt_says(&r.res.output, "top.key"));
    tt_call(&r, tools, "list", "path=s", b);
    T_CHECK(r.res.success && tt_says(&r.res.output, "sub") &&
            !tt_says(&r.res.output, "env") &&
            !tt_says(&r.res.output, "secrets") &&
            !tt_says(&r.res.output, "top.key"));
    hfsb_tools_close(tools);
    tt_drop(&r);
}

static void file_tools_refuse_what_is_denied(void) {
    static const char *const paths[] = {".env", "secrets/s", "secrets/new",
                                        "sub/../.env", "top.key"};
    hfsb_tools              *tools = open_roots(true);
    tt_reply                 r = HFSB_INIT;
    size_t                   i;
    char                     patch[200];
    for (i = 0; i < TT_COUNT(paths); i++) {
        const char *p = paths[i];
        tt_call(&r, tools, "read", "path=s", p);
        TT_FAIL(&r, "Path is on the deny list: ");
        T_CHECK(r.res.code == HFSB_DENIED);
        tt_call(&r, tools, "write", "path=s content=s", p, "y");
        TT_FAIL(&r, "Path is on the deny list: ");
        tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", p, "x", "y");
        TT_FAIL(&r, "Path is on the deny list: ");
        snprintf(patch, sizeof patch,
                 "*** Begin Patch\n*** Delete File: %s\n*** End Patch\n", p);
        tt_call(&r, tools, "apply_patch", "patch=s", patch);
        T_CHECK(!r.res.success);
        tt_call(&r, tools, "exists", "path=s", p);
        TT_FAIL(&r, "Path is on the deny list: ");
        tt_call(&r, tools, "grep", "pattern=s path=s", "x", p);
        TT_FAIL(&r, "Path is on the deny list: ");
    }
    tt_call(&r, tools, "list", "path=s", "secrets");
    TT_FAIL(&r, "Path is on the deny list: ");
    tt_call(&r, tools, "bash", "command=s", "cat .env"); /* not confined */
    TT_OK(&r, "x\n");
    TT_FILE("a/.env", "x\n");
    TT_FILE("a/secrets/s", "x\n");
    hfsb_tools_close(tools);
    tt_drop(&r);
}

static void files_of_the_second_root_are_read_and_edited(void) {
    hfsb_tools *tools = open_roots(true);
    tt_reply    r = HFSB_INIT;
    char        path[120], want[300];
    snprintf(path, sizeof path, "%s/g", b);
    tt_call(&r, tools, "read", "path=s", path);
    TT_OK(&r, "1\tx");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", path, "x", "y");
    T_CHECK(r.res.success);
    TT_FILE("b/g", "y\n");
    snprintf(path, sizeof path, "%s/work/c", tt_dir);
    snprintf(want, sizeof want, "Path is outside the roots %s, %s: %s", a, b,
             path);
    tt_call(&r, tools, "read", "path=s", path);
    T_CHECK(!r.res.success &&
            hfsb_str_equal(hfsb_buf_str(&r.res.error), hfsb_cstr(want)));
    hfsb_tools_close(tools);
    tt_drop(&r);
}

int main(void) {
    tt_begin();
    put_tree();
    TT_RUN(searches_work_in_each_root_and_leave_out_what_is_denied);
    TT_RUN(file_tools_refuse_what_is_denied);
    TT_RUN(files_of_the_second_root_are_read_and_edited);
    return TT_END();
}
