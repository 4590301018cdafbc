/* test_tools_list.c - the tool list: names, details, depth, limits. */
#include "../support/t_search.h"

#include <sys/socket.h>
#include <sys/un.h>

static void make_tree(void) {
    struct sockaddr_un name;
    int                fd = socket(AF_UNIX, SOCK_STREAM, 0);
    tf_put(".git/config", "x");
    tf_put(".gitignore", "*.log\nbuild/\n");
    tf_put("b/c/d/e/f/g", "12345");
    tf_put("a.log", "1");
    tf_put("build/out", "");
    tf_put("z", "123");
    memset(&name, 0, sizeof name);
    name.sun_family = AF_UNIX;
    strcpy(name.sun_path, "socket");
    if (symlink("z", "link") || symlink("/no\nwhere", "dangling") ||
        mkfifo("pipe", 0600) || fd < 0 ||
        bind(fd, (struct sockaddr *)&name, sizeof name))
        abort();
    close(fd);
    tf_age(".git", 0);
    tf_age(".gitignore", 60);
    tf_age("b/c/d/e/f/g", 0);
    tf_age("b/c/d/e/f", 0);
    tf_age("b/c/d/e", 0);
    tf_age("b/c/d", 0);
    tf_age("b/c", 0);
    tf_age("b", 3600);
    tf_age("a.log", 0);
    tf_age("build/out", 0);
    tf_age("build", 0);
    tf_age("z", 86400);
    tf_age("link", 0);
    tf_age("dangling", 0);
    tf_age("pipe", 0);
    tf_age("socket", 0);
}

#define T0 "2023-11-14T22:13Z"

/* Names only: 500 entries with details cost a model 9,000 tokens. */
static void a_folder_is_listed_by_names(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    tf_enter("names");
    make_tree();
    tools = tt_open(NULL);
    tt_call(&r, tools, "list", "");
    TT_OK(&r, ".git/\n.gitignore\na.log (ignored)\nb/\nbuild/ (ignored)\n"
              "dangling -> /no\\nwhere\nlink -> z\npipe\nsocket\nz");
    T_CHECK(tt_int(&r, "count") == 10 && !tt_flag(&r, "truncated"));
    tt_call(&r, tools, "list", "path=s depth=j details=j", "b", "2", "false");
    TT_OK(&r, "c/\nc/d/");
    tt_call(&r, tools, "list", "path=s", "link");
    TT_OK(&r, "link");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void a_folder_is_listed_with_types_sizes_and_times(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    tf_enter("tree");
    make_tree();
    tools = tt_open(NULL);
    tt_call(&r, tools, "list", "details=j", "true");
    TT_OK(&r, "dir - " T0 " .git/\n"
              "file 13 2023-11-14T22:14Z .gitignore\n"
              "file 1 " T0 " a.log (ignored)\n"
              "dir - 2023-11-14T23:13Z b/\n"
              "dir - " T0 " build/ (ignored)\n"
              "link - " T0 " dangling -> /no\\nwhere\n"
              "link - " T0 " link -> z\n"
              "fifo - " T0 " pipe\n"
              "socket - " T0 " socket\n"
              "file 3 2023-11-15T22:13Z z");
    T_CHECK(tt_int(&r, "count") == 10 && !tt_flag(&r, "truncated"));
    tt_call(&r, tools, "list", "path=s depth=j details=j", "b", "3", "true");
    TT_OK(&r, "dir - " T0 " c/\ndir - " T0 " c/d/\ndir - " T0 " c/d/e/");
    tt_call(&r, tools, "list", "path=s depth=j details=j", "b/c", "\"5\"",
            "true");
    TT_OK(&r, "dir - " T0 " d/\ndir - " T0 " d/e/\ndir - " T0 " d/e/f/\n"
              "file 5 " T0 " d/e/f/g");
    tt_call(&r, tools, "list", "path=s details=j", "z", "true");
    TT_OK(&r, "file 3 2023-11-15T22:13Z z");
    tt_call(&r, tools, "list", "path=s details=j", "link", "true");
    TT_OK(&r, "file 3 2023-11-15T22:13Z link");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* True if the field `entries` is this JSON. */
static bool entries_are(const tt_reply *r, const char *want) {
    hfsb_buf text = HFSB_INIT;
    bool     same;
    if (hfsb_json_write(hfsb_json_get(r->extra.root, "entries"), NULL, &text,
                        NULL) != HFSB_OK)
        return false;
    same = hfsb_str_equal(hfsb_buf_str(&text), hfsb_cstr(want));
    if (!same) printf("  entries: %s\n", text.ptr);
    hfsb_buf_free(&text);
    return same;
}

#define AT "\"time\":1700000000"

/* A program need not take names out of lines that are for a model. */
static void details_are_data_too(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    tf_enter("data");
    tf_put(".gitignore", "*.log\n");
    tf_put("a.log", "1");
    tf_put("a -> b", "12");
    tf_put("new\nline (ignored)", "");
    tf_put("sub/file", "123");
    if (symlink("a -> b", "link") || mkfifo("pipe", 0600)) abort();
    tf_age(".gitignore", 0);
    tf_age("a.log", 0);
    tf_age("a -> b", 0);
    tf_age("new\nline (ignored)", 0);
    tf_age("sub/file", 0);
    tf_age("sub", 0);
    tf_age("link", 0);
    tf_age("pipe", 0);
    tools = tt_open(NULL);
    tt_call(&r, tools, "list", "details=j", "true");
    T_CHECK(entries_are(
        &r, "[{\"name\":\".gitignore\",\"type\":\"file\",\"size\":6," AT "},"
            "{\"name\":\"a -> b\",\"type\":\"file\",\"size\":2," AT "},"
            "{\"name\":\"a.log\",\"type\":\"file\",\"size\":1," AT
            ",\"ignored\":true},"
            "{\"name\":\"link\",\"type\":\"link\",\"target\":\"a -> b\"," AT
            "},"
            "{\"name\":\"new\\nline (ignored)\",\"type\":\"file\","
            "\"size\":0," AT "},"
            "{\"name\":\"pipe\",\"type\":\"fifo\"," AT "},"
            "{\"name\":\"sub\",\"type\":\"dir\"," AT "}]"));
    /* those on the page, and no others */
    tt_call(&r, tools, "list", "details=j depth=j limit=j offset=j", "true",
            "2", "1", "7");
    T_CHECK(entries_are(&r, "[{\"name\":\"sub/file\",\"type\":\"file\","
                            "\"size\":3," AT "}]"));
    T_CHECK(tt_int(&r, "count") == 8);
    tt_call(&r, tools, "list", "details=j path=s", "true", "sub/file");
    T_CHECK(entries_are(&r, "[{\"name\":\"sub/file\",\"type\":\"file\","
                            "\"size\":3," AT "}]"));
    tt_call(&r, tools, "list", "details=j offset=j", "true", "99");
    T_CHECK(entries_are(&r, "[]"));
    tt_call(&r, tools, "list", "");
    T_CHECK(r.res.success && !hfsb_json_get(r.extra.root, "entries"));
    tt_call(&r, tools, "list", "details=j path=s", "true", "none");
    T_CHECK(!r.res.success && !hfsb_json_get(r.extra.root, "entries"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* No calendar has such years; some file systems store them. */
static void times_far_away_are_shown(void) {
    static const long long times[] = {67768036191676799LL,
                                      -67768036191676799LL, 1LL << 40};
    hfsb_tools            *tools = tt_open(NULL);
    tt_reply               r = HFSB_INIT;
    size_t                 i;
    mkdir("far", 0755);
    for (i = 0; i < TT_COUNT(times); i++) {
        struct timespec at[2];
        memset(at, 0, sizeof at);
        at[0].tv_sec = at[1].tv_sec = (time_t)times[i];
        tt_put("far/file", HFSB_LIT("x"));
        (void)!utimensat(AT_FDCWD, "far/file", at, 0);
        tt_call(&r, tools, "list", "path=s details=j", "far", "true");
        T_CHECK(r.res.success && tt_says(&r.res.output, "file 1 "));
        T_CHECK(r.res.output.len == strlen("file 1 9999-12-31T23:59Z file"));
        tt_call(&r, tools, "glob", "pattern=s path=s", "*", "far");
        T_CHECK(r.res.success);
        tt_call(&r, tools, "read", "path=s", "far/file");
        TT_OK(&r, "1\tx");
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void ignored_folders_are_entered_when_asked(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "list", "depth=j", "2");
    T_CHECK(tt_says(&r.res.output, "build/ (ignored)\n") &&
            tt_says(&r.res.output, ".git/\n") &&
            tt_says(&r.res.output, "\nb/c/\n") &&
            !tt_says(&r.res.output, "build/out") &&
            !tt_says(&r.res.output, ".git/config"));
    tt_call(&r, tools, "list", "depth=j all=j", "2", "true");
    T_CHECK(tt_says(&r.res.output, "build/out") &&
            tt_says(&r.res.output, ".git/config") &&
            !tt_says(&r.res.output, "ignored"));
    tt_call(&r, tools, "list", "path=s", "build");
    TT_OK(&r, "out");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void long_output_is_cut_and_the_rest_is_counted(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    char        name[256];
    int         i;
    tf_enter("much");
    tools = tt_open(NULL);
    tt_call(&r, tools, "list", "");
    TT_OK(&r, "(the folder is empty)");
    for (i = 0; i < 510; i++) {
        snprintf(name, sizeof name, "f%03d", i);
        tf_put(name, "");
    }
    tt_call(&r, tools, "list", "");
    T_CHECK(tt_says(&r.res.output, "f499\n[first 500 of 510; read on "
                                   "with offset=500]"));
    T_CHECK(tt_int(&r, "count") == 510 && tt_flag(&r, "truncated"));
    tt_call(&r, tools, "list", "limit=j", "1");
    T_CHECK(tt_says(&r.res.output, "f000\n[first 1 of 510; read on "
                                   "with offset=1]"));
    tt_call(&r, tools, "list", "limit=j offset=j", "1", "8");
    T_CHECK(tt_says(&r.res.output, "f008\n[9-9 of 510; read on with "
                                   "offset=9]"));
    tt_call(&r, tools, "list", "offset=j", "509");
    T_CHECK(tt_says(&r.res.output, "f509\n[510-510 of 510]") &&
            !tt_flag(&r, "truncated"));
    tt_call(&r, tools, "list", "offset=j", "510");
    TT_OK(&r, "[past the end: there are 510]");
    tt_call(&r, tools, "list", "path=s offset=j", "f000", "1");
    TT_OK(&r, "[past the end: there are 1]");
    memset(name, 'n', 240);
    for (i = 0; i < 300; i++) {
        snprintf(name + 230, 10, "%03d", i);
        tf_put(name, "");
    }
    tt_call(&r, tools, "list", "limit=j", "5000");
    T_CHECK(r.res.output.len < 41000 && tt_flag(&r, "truncated"));
    T_CHECK(tf_pages(tools, "list", "\"limit\":5000", 810) == 2);
    T_CHECK(tf_pages(tools, "list", "\"limit\":90", 810) == 9);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* In the folder of the test above: 510 short names and 300 long ones. */
static void pages_are_as_short_as_asked(void) {
    static const struct {
        const char *tool, *json;
    } rows[] = {{"list", "\"limit\":5000"},
                {"glob", "\"pattern\":\"*\",\"limit\":5000"},
                {"grep", "\"pattern\":\"^\",\"path\":\"lines\""},
                {"list", "\"limit\":5000,\"offset\":700"}};
    hfsb_tools_opts o = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_buf        text = HFSB_INIT;
    size_t          i;
    long long       line = 1;
    o.max_page = 2000;
    tools = tt_open(&o);
    T_CHECK(tf_pages(tools, rows[0].tool, rows[0].json, 810) >= 30);
    T_CHECK(tf_pages(tools, rows[1].tool, rows[1].json, 810) >= 30);
    for (i = 0; i < 900; i++)
        T_CHECK(hfsb_buf_printf(&text, "%s\n", i % 2 ? "" : "xx") == HFSB_OK);
    tf_put("lines", text.ptr);
    T_CHECK(tf_pages(tools, rows[2].tool, rows[2].json, 900) >= 5);
    for (i = 0; i < TT_COUNT(rows); i++) {
        hfsb_buf_truncate(&text, 0);
        T_CHECK(hfsb_buf_printf(&text, "{%s}", rows[i].json) == HFSB_OK);
        tt_do(&r, tools, rows[i].tool, hfsb_buf_str(&text), NULL);
        T_CHECK(r.res.output.len < 2100);
        if (r.res.output.len >= 2100)
            printf("  %s: %zu\n", rows[i].json, r.res.output.len);
        T_CHECK(hfsb_str_count_byte(hfsb_buf_str(&r.res.output), '\n') <= 200);
    }
    /* read: at most 200 lines, and no note, since a page is nothing special */
    for (i = 0; line > 0; i++) {
        char offset[24];
        snprintf(offset, sizeof offset, "%lld", line);
        tt_call(&r, tools, "read", "path=s offset=j limit=j", "lines", offset,
                "0");
        T_CHECK(r.res.success && r.res.output.len <= 2000);
        T_CHECK(tt_int(&r, "first_line") == line);
        T_CHECK(tt_int(&r, "last_line") <= line + 199);
        T_CHECK(!tt_says(&r.res.output, "(") && !tt_text(&r, "notes").len);
        line = tt_int(&r, "next_offset"); /* negative: there is none */
        T_CHECK(line < 0 || line == tt_int(&r, "last_line") + 1);
    }
    T_CHECK(i == 5);
    hfsb_buf_free(&text);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void what_makes_no_sense_is_refused(void) {
    static const struct {
        const char *keys, *a, *error;
        hfsb_status st;
    } cases[] = {
        {"depth=j", "0", "depth must be a number from 1 to 5, not 0.",
         HFSB_ARG},
        {"depth=j", "6", "depth must be a number from 1 to 5", HFSB_ARG},
        {"limit=j", "-3", "limit must be a number", HFSB_ARG},
        {"offset=j", "-3", "offset must be a number", HFSB_ARG},
        {"path=s", "none", "File not found: none", HFSB_OK},
        {"path=s", "f000/x", "File not found: f000/x (a part of", HFSB_OK},
    };
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    for (i = 0; i < TT_COUNT(cases); i++) {
        tt_call(&r, tools, "list", cases[i].keys, cases[i].a);
        TT_FAIL(&r, cases[i].error);
        T_CHECK(r.st == cases[i].st);
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void nothing_outside_the_root_is_listed(void) {
    static const char *const paths[] = {"..", "out", "/", "in/../.."};
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    size_t      i;
    tf_enter("rooted");
    tf_put("secret/key", "");
    tf_put("root/in/a", "");
    if (symlink("../secret", "root/out")) abort();
    tf_age("root/in/a", 0);
    tf_age("root/in", 0);
    tf_age("root/out", 0);
    tools = tf_rooted("root");
    for (i = 0; i < TT_COUNT(paths); i++) {
        tt_call(&r, tools, "list", "path=s", paths[i]);
        TT_FAIL(&r, "Path is outside the root");
    }
    tt_call(&r, tools, "list", "depth=j details=j", "5", "true");
    TT_OK(&r, "dir - " T0 " in/\nfile 0 " T0 " in/a\n"
              "link - " T0 " out -> ../secret");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* The top of the file system is listed, what never ends in it not entered. */
static void the_system_s_own_folders_are_not_entered(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "list", "path=s depth=j limit=j", "/", "2", "10000");
    T_CHECK(r.res.success && !tt_says(&r.res.output, "\nproc/self"));
#ifdef HFSBI_LINUX /* by what they are, not by their name */
    tt_call(&r, tools, "list", "path=s depth=j limit=j all=j", "/", "2",
            "10000", "true");
    T_CHECK(r.res.success && !tt_says(&r.res.output, "\nproc/self"));
    T_CHECK(!tt_says(&r.res.output, "\nsys/kernel"));
    T_CHECK(tt_says(&r.res.output, "(/proc: a file system of the kernel"));
#endif
    tt_call(&r, tools, "list", "path=s depth=j", "/proc/self", "1");
    T_CHECK(r.res.success);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void each_allocation_fails_cleanly(void) {
    tf_enter("memory");
    tf_put(".gitignore", "b*\n");
    tf_put("a/b/c", "");
    tf_put("a/d/e", "");
    tf_each_allocation_fails("list", "{\"depth\":3,\"details\":true}");
    tf_each_allocation_fails("list", "{\"path\":\"a/b/c\"}");
}

int main(void) {
    tt_begin();
    TT_RUN(a_folder_is_listed_by_names);
    TT_RUN(a_folder_is_listed_with_types_sizes_and_times);
    TT_RUN(times_far_away_are_shown);
    TT_RUN(ignored_folders_are_entered_when_asked);
    TT_RUN(long_output_is_cut_and_the_rest_is_counted);
    TT_RUN(pages_are_as_short_as_asked);
    TT_RUN(what_makes_no_sense_is_refused);
    TT_RUN(details_are_data_too);
    TT_RUN(nothing_outside_the_root_is_listed);
    TT_RUN(the_system_s_own_folders_are_not_entered);
    TT_RUN(each_allocation_fails_cleanly);
    return TT_END();
}
