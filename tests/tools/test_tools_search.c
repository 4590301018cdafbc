/* test_tools_search.c - the tool glob, and the walk that glob, grep and list
   share: where it goes, what it leaves out, what it survives. */
#include "../support/t_search.h"

/* ---- patterns ---- */

static const struct {
    const char *pattern, *path, *output;
} patterns[] = {
    {"*.c", NULL, "main.c\nlib/b.c\nlib/a.c\nlib/deep/er/x.c"},
    {"./*.c", NULL, "main.c"},
    {"*.c", "lib", "lib/b.c\nlib/a.c\nlib/deep/er/x.c"},
    {"*.c", "./lib/", "lib/b.c\nlib/a.c\nlib/deep/er/x.c"},
    {"*.{c,h}", NULL, "main.h\nmain.c\nlib/b.c\nlib/a.c\nlib/deep/er/x.c"},
    {"lib/*.c", NULL, "lib/b.c\nlib/a.c"},
    {"lib/**/*.c", NULL, "lib/b.c\nlib/a.c\nlib/deep/er/x.c"},
    {"**/*.c", NULL, "main.c\nlib/b.c\nlib/a.c\nlib/deep/er/x.c"},
    {"lib/**", NULL, "lib/b.c\nlib/a.c\nlib/deep/er/x.c"},
    {"**/er/*", NULL, "lib/deep/er/x.c"},
    {"?ain.h", NULL, "main.h"},
    {".hidden", NULL, ".hidden"},
    {"*hidden", NULL, ".hidden"},
    {"main.h", NULL, "main.h"},
    {"lib/../main.h", NULL, "lib/../main.h"},
    {"../*.h", "lib", "lib/../main.h"},
    {"lib//deep///er/x.c", NULL, "lib/deep/er/x.c"},
    {".//lib//*.c", NULL, "lib/b.c\nlib/a.c"},
    {"lib", NULL,
     "(no files match lib; 7 files looked at; it names a folder: see what is "
     "in it with list, or add /**)"},
    {"lib/deep", NULL,
     "(no files match lib/deep; 6 files looked at; it names a folder: see "
     "what is in it with list, or add /**)"},
    {"lib/*.h", NULL, "(no files match lib/*.h; 6 files looked at)"},
};

static void make_tree(void) {
    static const char *const files[] = {"lib/deep/er/x.c", "lib/a.c",
                                        "lib/b.c",         "main.c",
                                        "main.h",          ".hidden"};
    size_t                   i;
    for (i = 0; i < TT_COUNT(files); i++) {
        tf_put(files[i], "text\n");
        tf_age(files[i], (long)i);
    }
    if (mkfifo("pipe.c", 0600)) abort(); /* is no file, and would hang */
}

static void files_that_match_come_newest_first(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    size_t      i;
    tf_enter("patterns");
    make_tree();
    tools = tt_open(NULL);
    for (i = 0; i < TT_COUNT(patterns); i++) {
        bool some = patterns[i].output[0] != '(';
        tt_call(&r, tools, "glob", "pattern=s path=s", patterns[i].pattern,
                patterns[i].path);
        TT_OK(&r, patterns[i].output);
        T_CHECK(!tt_flag(&r, "truncated"));
        T_CHECK((tt_int(&r, "count") > 0) == some);
    }
    /* of the same age: by name */
    tf_age("lib/b.c", 1);
    tt_call(&r, tools, "glob", "pattern=s", "lib/*.c");
    TT_OK(&r, "lib/a.c\nlib/b.c");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static const struct {
    const char *keys, *a, *b, *error;
} refusals[] = {
    {"pattern=s path=s", "/tmp/*.c", "lib", "pattern begins with / and path"},
    {"pattern=s path=s", "*/../x", NULL, "pattern must not have . or .."},
    {"pattern=s path=s", "lib/..", NULL, "pattern must not have . or .."},
    {"pattern=s path=s", "..", NULL, "pattern must not have . or .."},
    {"pattern=s path=s", "lib/", NULL, "pattern must end in the name of a f"},
    {"pattern=s path=s", "/", NULL, "pattern must end in the name of a file"},
    {"pattern=s path=s", "", NULL, "pattern must end in the name of a file"},
    {"pattern=s path=s", "*", "none", "File not found: none"},
    {"pattern=s path=s", "*", "main.c", "Not a directory: main.c"},
    {"pattern=s path=s", "*", "pipe.c", "Not a directory: pipe.c"},
    {"pattern=s path=s", "*", "~/x", "File not found: ~/x (\"~\" is not exp"},
    {"pattern=s limit=j", "*", "-1", "limit must be a number from 1 to 10000"},
    {"pattern=s offset=j", "*", "-1", "offset must be a number from 0 to 10"},
    {"pattern=s offset=j", "*", "1000001", "offset must be a number from 0"},
    {"path=s", "lib", NULL, "Missing"},
};

static void what_is_no_pattern_or_folder_is_refused(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    for (i = 0; i + 1 < TT_COUNT(refusals); i++) {
        tt_call(&r, tools, "glob", refusals[i].keys, refusals[i].a,
                refusals[i].b);
        TT_FAIL(&r, refusals[i].error);
    }
    tt_call(&r, tools, "glob", "path=s", "lib");
    T_CHECK(r.st == HFSB_ARG && tt_says(&r.res.error, "pattern"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void an_absolute_pattern_is_a_path_and_a_pattern(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    char        pattern[160], want[200];
    snprintf(pattern, sizeof pattern, "%s/work/patterns/*/*/er/*.c", tt_dir);
    tt_call(&r, tools, "glob", "pattern=s", pattern);
    snprintf(want, sizeof want, "%s/work/patterns/lib/deep/er/x.c", tt_dir);
    TT_OK(&r, want);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void long_lists_are_cut_and_the_rest_is_counted(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    char        name[300];
    int         i;
    tf_enter("many");
    tools = tt_open(NULL);
    for (i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "f%03d", i);
        tf_put(name, "");
        tf_age(name, i);
    }
    tt_call(&r, tools, "glob", "pattern=s", "*");
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output),
                            HFSB_LIT("f299\nf298\n")));
    T_CHECK(tt_says(&r.res.output, "\nf100\n[first 200 of 300; read on "
                                   "with offset=200]"));
    T_CHECK(tt_int(&r, "count") == 300 && tt_flag(&r, "truncated"));
    T_CHECK(tt_int(&r, "next_offset") == 200);
    tt_call(&r, tools, "glob", "pattern=s limit=j", "*", "2");
    TT_OK(&r, "f299\nf298\n[first 2 of 300; read on with offset=2]");
    tt_call(&r, tools, "glob", "pattern=s limit=j offset=j", "*", "2", "2");
    TT_OK(&r, "f297\nf296\n[3-4 of 300; read on with offset=4]");
    T_CHECK(tt_int(&r, "next_offset") == 4);
    tt_call(&r, tools, "glob", "pattern=s limit=j offset=j", "*", "2", "298");
    TT_OK(&r, "f001\nf000\n[299-300 of 300]");
    T_CHECK(!tt_flag(&r, "truncated"));
    tt_call(&r, tools, "glob", "pattern=s offset=j", "*", "300");
    TT_OK(&r, "[past the end: there are 300]");
    T_CHECK(!tt_flag(&r, "truncated"));
    tt_call(&r, tools, "glob", "pattern=s limit=j", "*", "300");
    T_CHECK(!tt_flag(&r, "truncated"));
    tt_call(&r, tools, "glob", "pattern=s limit=j", "*", "99999999999");
    T_CHECK(!tt_flag(&r, "truncated"));
    /* long names fill the reply before the limit is reached */
    memset(name, 'x', 250);
    for (i = 0; i < 190; i++) {
        snprintf(name + 240, 11, "y%03d", i);
        tf_put(name, "");
    }
    tt_call(&r, tools, "glob", "pattern=s", "x*");
    T_CHECK(r.res.output.len < 41000 && tt_flag(&r, "truncated"));
    T_CHECK(tt_says(&r.res.output, " of 190; read on with offset="));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void pages_have_each_file_once(void) {
    hfsb_tools *tools = tt_open(NULL);
    T_CHECK(tf_pages(tools, "glob", "\"pattern\":\"x*\"", 190) == 2);
    T_CHECK(tf_pages(tools, "glob", "\"pattern\":\"*\"", 490) == 3);
    T_CHECK(tf_pages(tools, "glob", "\"pattern\":\"*\",\"limit\":70", 490) ==
            7);
    hfsb_tools_close(tools);
}

static void odd_names_stay_on_their_line(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    tf_enter("odd");
    tools = tt_open(NULL);
    tf_put("a\nb", "");
    tf_put("c\xFF" "d\x1B[1m\t", "");
    tf_put("caf\xC3\xA9", "");
    tf_age("a\nb", 3);
    tf_age("c\xFF" "d\x1B[1m\t", 2);
    tf_age("caf\xC3\xA9", 1);
    tt_call(&r, tools, "glob", "pattern=s", "*");
    TT_OK(&r, "a\\nb\nc\\xFFd\\x1B[1m\\t\ncaf\xC3\xA9");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- what is left out ---- */

static void make_repository(void) {
    tf_put("repo/.git/HEAD", "ref\n");
    tf_put("repo/.git/info/exclude", "/own.*\n!*.log");
    tf_put("repo/own.c", "");
    tf_put("repo/.gitignore", "\xEF\xBB\xBF*.log\n/build/\n");
    tf_put("repo/build/out.c", "");
    tf_put("repo/src/.gitignore", "gen.c\n!keep.log\n");
    tf_put("repo/src/gen.c", "");
    tf_put("repo/src/a.c", "");
    tf_put("repo/src/a.log", "");
    tf_put("repo/src/keep.log", "");
    tf_put("repo/src/build/b.c", ""); /* not at the top */
    tf_put("repo/deps/own/.git", "gitdir: elsewhere\n");
    tf_put("repo/deps/own/x.log", "");
    tf_put("x.log", "");
}

static const struct {
    const char *pattern, *path;
    const char *output; /* sorted */
} ignoring[] = {
    {"*.c", "repo", "repo/src/a.c\nrepo/src/build/b.c\n"},
    {"*.c", "repo/src", "repo/src/a.c\nrepo/src/build/b.c\n"},
    {"*.log", "repo", "repo/src/keep.log\n"},
    {"*.log", "repo/src", "repo/src/keep.log\n"},
    {"*.log", "repo/src/build/..", "repo/src/build/../keep.log\n"},
    {"*.log", NULL, "repo/src/keep.log\nx.log\n"},
    {"*.log", "repo/deps/own", "repo/deps/own/x.log\n"}, /* its own top */
    {"*.c", "repo/build", "repo/build/out.c\n"},         /* asked for */
    {"*", "link", "link/.gitignore\nlink/a.c\nlink/build/b.c\n"
                  "link/keep.log\n"},
};

static void what_gitignore_names_is_left_out(bool rooted) {
    hfsb_tools *tools = rooted ? tf_rooted(".") : tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    for (i = 0; i < TT_COUNT(ignoring); i++) {
        tt_call(&r, tools, "glob", "pattern=s path=s", ignoring[i].pattern,
                ignoring[i].path);
        tf_sort_lines(&r.res.output);
        TT_OK(&r, ignoring[i].output);
    }
    tt_call(&r, tools, "glob", "pattern=s path=s", "*.none", "repo");
    T_CHECK(tt_says(&r.res.output, "all=true"));
    tt_call(&r, tools, "glob", "pattern=s path=s", "HEAD", "repo");
    T_CHECK(tt_says(&r.res.output, "(no files match HEAD"));
    tt_call(&r, tools, "glob", "pattern=s path=s all=j", "{HEAD,*.log,gen.c}",
            "repo", "true");
    tf_sort_lines(&r.res.output);
    TT_OK(&r, "repo/.git/HEAD\nrepo/deps/own/x.log\nrepo/src/a.log\n"
              "repo/src/gen.c\nrepo/src/keep.log\n");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void gitignore_files_count_also_from_above(void) {
    tf_enter("ignoring");
    make_repository();
    if (symlink("repo/src", "link")) abort();
    what_gitignore_names_is_left_out(false);
    what_gitignore_names_is_left_out(true);
}

/* When nothing is found, the note names what the pattern does not do. */
static void glob_explains_links_and_homes_in_a_pattern(void) {
    static const struct {
        const char *pattern, *words;
    } cases[] = {
        {"link/*.c", "; a folder in it is a link, which is not followed: "
                     "give the folder as path)"},
        {"link/build/b.c", "is a link"},
        {"~/*.c", "; \"~\" is not expanded: give the full path)"},
    };
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    size_t      i;
    for (i = 0; i < TT_COUNT(cases); i++) {
        tt_call(&r, tools, "glob", "pattern=s", cases[i].pattern);
        T_CHECK(r.res.success && tt_says(&r.res.output, cases[i].words));
    }
    tt_call(&r, tools, "glob", "pattern=s", "lin/*.c");
    T_CHECK(!tt_says(&r.res.output, "is a link"));
    tt_call(&r, tools, "glob", "pattern=s", "link");
    TT_OK(&r, "link");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* Rules above the root are not read, nor above the repository. */
static void rules_from_beyond_are_not_read(void) {
    hfsb_tools *tools = tf_rooted("repo/src");
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "glob", "pattern=s", "*.log");
    tf_sort_lines(&r.res.output);
    TT_OK(&r, "a.log\nkeep.log\n");
    hfsb_tools_close(tools);
    tools = tt_open(NULL);
    tf_put(".gitignore", "*.c\n");
    tt_call(&r, tools, "glob", "pattern=s path=s", "a.c", "repo");
    TT_OK(&r, "repo/src/a.c");
    /* without a repository those above are no one's */
    tf_put("plain/a.c", "");
    tt_call(&r, tools, "glob", "pattern=s path=s", "a.c", "plain");
    TT_OK(&r, "plain/a.c");
    tt_call(&r, tools, "glob", "pattern=s", "plain/*.c");
    T_CHECK(tt_int(&r, "count") == 0);
    /* a .gitignore that is a FIFO or a link is ignored */
    if (unlink(".gitignore") || mkfifo(".gitignore", 0600)) abort();
    tt_call(&r, tools, "glob", "pattern=s", "repo/src/a.c");
    TT_OK(&r, "repo/src/a.c");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- the root ---- */

static void nothing_outside_the_root_is_seen(void) {
    static const struct {
        const char *pattern, *path, *error;
    } cases[] = {
        {"*", "..", "Path is outside the root"},
        {"../*", NULL, "Path is outside the root"},
        {"../../*", "in", "Path is outside the root"},
        {"*", "out", "Path is outside the root"},
        {"*", "up", "Path is outside the root"},
        {"/etc/*", NULL, "Path is outside the root"},
    };
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    size_t      i;
    tf_enter("rooted");
    tf_put("secret/key.txt", "s");
    tf_put("root/in/a.txt", "a");
    if (symlink("/etc", "root/out") || symlink("../secret", "root/up") ||
        symlink("../secret/key.txt", "root/file") ||
        symlink("in", "root/same") || symlink("loop", "root/loop"))
        abort();
    tools = tf_rooted("root");
    for (i = 0; i < TT_COUNT(cases); i++) {
        tt_call(&r, tools, "glob", "pattern=s path=s", cases[i].pattern,
                cases[i].path);
        TT_FAIL(&r, cases[i].error);
    }
    /* links are seen, and not followed */
    tt_call(&r, tools, "glob", "pattern=s", "**");
    tf_sort_lines(&r.res.output);
    TT_OK(&r, "file\nin/a.txt\nloop\nout\nsame\nup\n");
    tt_call(&r, tools, "glob", "pattern=s", "*.txt");
    TT_OK(&r, "in/a.txt");
    tt_call(&r, tools, "glob", "pattern=s path=s", "*.txt", "same");
    TT_OK(&r, "same/a.txt");
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* ---- what it survives ---- */

static void search_reports_folders_too_deep(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    int         i, at;
    tf_enter("deep");
    tools = tt_open(NULL);
    at = open(".", O_RDONLY | O_DIRECTORY);
    for (i = 0; i < 250; i++) {
        if (mkdir("d", 0755) || chdir("d")) abort();
        if (i == 100) tf_put("found", "");
    }
    tf_put("unseen", "");
    if (fchdir(at)) abort();
    close(at);
    tt_call(&r, tools, "glob", "pattern=s", "*seen");
    T_CHECK(r.res.success && tt_says(&r.res.output, "(no files match") &&
            tt_says(&r.res.output, "/d: lies too deep, it was left out)"));
    tt_call(&r, tools, "glob", "pattern=s", "found");
    T_CHECK(tt_int(&r, "count") == 1);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void search_reports_folders_it_cannot_open(void) {
    struct rlimit old, few;
    hfsb_tools   *tools;
    tt_reply      r = HFSB_INIT;
    char          name[64];
    int           i, lowest;
    tf_enter("shut");
    tools = tt_open(NULL);
    for (i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "d%d/f", i);
        tf_put(name, "");
    }
    tf_put("top", "");
    /* as if each one in it were locked: no descriptor is left. The first
       folder takes one, and so does its search */
    lowest = open("/", O_RDONLY);
    close(lowest);
    getrlimit(RLIMIT_NOFILE, &old);
    few = old;
    few.rlim_cur = (rlim_t)lowest + 2;
    setrlimit(RLIMIT_NOFILE, &few);
    tt_call(&r, tools, "glob", "pattern=s all=j", "*", "true");
    setrlimit(RLIMIT_NOFILE, &old);
    T_CHECK(r.res.success && tt_int(&r, "count") == 1);
    T_CHECK(tt_says(&r.res.output, "top\n(d") &&
            tt_says(&r.res.output, ": too many open files in this process)") &&
            tt_says(&r.res.output, "\n(and 3 more folders like that)"));
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static volatile bool stirring;

static void *stir(void *arg) {
    (void)arg;
    while (stirring) {
        int  i;
        char name[64];
        for (i = 0; i < 20; i++) {
            snprintf(name, sizeof name, "v%d", i);
            mkdir(name, 0755);
            snprintf(name, sizeof name, "v%d/w", i);
            close(open(name, O_CREAT | O_WRONLY, 0600));
        }
        for (i = 0; i < 20; i++) {
            snprintf(name, sizeof name, "v%d/w", i);
            unlink(name);
            snprintf(name, sizeof name, "v%d", i);
            rmdir(name);
            if (symlink("/", name) == 0) unlink(name);
        }
    }
    return NULL;
}

static void what_vanishes_on_the_way_is_not_there(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    pthread_t   thread;
    long long   end;
    tf_enter("vanish");
    tools = tt_open(NULL);
    tf_put("stays/here", "x\n");
    stirring = true;
    if (pthread_create(&thread, NULL, stir, NULL)) abort();
    end = hfsb_clock_ms() + 150;
    do {
        tt_call(&r, tools, "glob", "pattern=s", "here");
        TT_OK(&r, "stays/here");
        tt_call(&r, tools, "list", "depth=j", "5");
        T_CHECK(r.res.success && tt_says(&r.res.output, "stays/here") &&
                !tt_says(&r.res.output, "/etc"));
        tt_call(&r, tools, "grep", "pattern=s", "x");
        T_CHECK(r.res.success && tt_says(&r.res.output, "stays/here:1:x"));
    } while (hfsb_clock_ms() < end);
    stirring = false;
    pthread_join(thread, NULL);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static hfsb_status visit_nothing(void *user, const hfsbi_entry *entry) {
    (void)entry;
    ++*(size_t *)user;
    return HFSB_OK;
}

/* A folder becomes a link between the look at it and the way into it. */
static hfsb_status swap_folder(void *user, const hfsbi_entry *entry) {
    if (entry->type == HFSBI_ENTRY_FOLDER &&
        (rmdir("top/swap") || symlink("../beyond", "top/swap")))
        abort();
    if (strcmp(entry->name, "key") == 0) *(bool *)user = true;
    return HFSB_OK;
}

static void a_folder_that_becomes_a_link_is_not_entered(void) {
    hfsbi_finder f = HFSB_INIT;
    bool         seen = false;
    tf_enter("swapped");
    tf_put("beyond/key", "");
    tf_put("top/swap/", "");
    f.visit = swap_folder;
    f.user = &seen;
    T_CHECK(hfsbi_finder_open(&f, HFSB_LIT("top"), NULL) == HFSB_OK);
    T_CHECK(hfsbi_finder_run(&f, NULL) == HFSB_OK);
    T_CHECK(!seen && !f.failed);
    hfsbi_finder_close(&f);
}

static void a_search_ends_in_time(void) {
    hfsbi_finder f = HFSB_INIT;
    size_t       seen = 0;
    f.until = 1;
    f.visit = visit_nothing;
    f.user = &seen;
    f.flags = HFSBI_FIND_ALL;
    T_CHECK(hfsbi_finder_open(&f, HFSB_LIT("/"), NULL) == HFSB_OK);
    T_CHECK(hfsbi_finder_run(&f, NULL) == HFSB_OK);
    T_CHECK(f.end == HFSBI_WALK_LATE && seen < 100);
    hfsbi_finder_close(&f);
}

static void each_allocation_fails_cleanly(void) {
    char name[32];
    int  i;
    tf_enter("memory");
    for (i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "d%d/f%d.c", i % 3, i);
        tf_put(name, "text\n");
    }
    tf_put(".git/x", "");
    tf_put("d1/.gitignore", "f1.c\n");
    tf_each_allocation_fails("glob", "{\"pattern\":\"*.{c,h}\"}");
    tf_each_allocation_fails("glob", "{\"pattern\":\"../memory/*/*.c\"}");
}

/* ---- beside find ---- */

static void make_20000(const char *top) {
    char path[128];
    int  i;
    mkdir(top, 0755);
    if (chdir(top)) abort();
    for (i = 0; i < 20000; i++) {
        static const char *const ends[] = {"c", "h", "py", "txt", "md"};
        if (i % 100 == 0) {
            snprintf(path, sizeof path, "d%d", i / 2000);
            mkdir(path, 0755);
            snprintf(path, sizeof path, "d%d/s%d", i / 2000, i / 100);
            mkdir(path, 0755);
        }
        snprintf(path, sizeof path, "d%d/s%d/%s%d.%s", i / 2000, i / 100,
                 i % 7 ? "file" : ".f", i, ends[i % 5]);
        close(open(path, O_CREAT | O_WRONLY, 0644));
    }
}

static void glob_finds_what_find_finds(void) {
    static const struct {
        const char *pattern, *find;
    } cases[] = {
        {"file123.txt", "find . -name file123.txt"},
        {"*5.c", "find . -name '*5.c'"},
        {"*", "find . \\( -type f -o -type l \\)"},
        {"d3/**/*.py", "find ./d3 -name '*.py'"},
        {"d[1-3]/s?[02]/*.{c,md}",
         "find . -path './d[1-3]/s?[02]/*' \\( -name '*.c' -o -name '*.md' "
         "\\)"},
        {"**/s1*/.f*", "find . -path '*/s1*/.f*'"},
    };
    hfsb_tools *tools;
    size_t      i;
    if (t_quick()) {
        t_skipped++;
        return;
    }
    tf_enter("twenty");
    make_20000(".");
    tools = tt_open(NULL);
    for (i = 0; i < TT_COUNT(cases); i++) {
        tt_reply  r = HFSB_INIT;
        hfsb_buf  theirs = HFSB_INIT, command = HFSB_INIT;
        long long n;
        if (hfsb_buf_printf(&command, "%s | sed 's,^\\./,,'",
                            cases[i].find) != HFSB_OK)
            abort();
        if (!tf_shell(command.ptr, &theirs) || !theirs.len) {
            t_skipped++;
        } else {
            n = (long long)hfsb_str_count_byte(hfsb_buf_str(&theirs), '\n');
            tt_call(&r, tools, "glob", "pattern=s limit=j",
                    cases[i].pattern, "10000");
            T_CHECK(tt_int(&r, "count") == n);
            if (n < 1500 && r.res.success)
                T_CHECK(tf_same_lines(cases[i].pattern, &r.res.output,
                                      &theirs));
        }
        tt_drop(&r);
        hfsb_buf_free(&theirs);
        hfsb_buf_free(&command);
    }
    hfsb_tools_close(tools);
}

/* Found ones are forgotten on the way: the newest of 20,000 are right. */
static void the_newest_of_many_are_kept(void) {
    hfsb_tools *tools;
    tt_reply    r = HFSB_INIT;
    if (t_quick()) return;
    tools = tt_open(NULL);
    tf_age("d0/s3/file302.py", 2000000000 - 1700000000 + 7);
    tf_age("d9/s199/file19998.txt", 2000000000 - 1700000000 + 9);
    tf_age("d5/s100/file10001.h", 2000000000 - 1700000000 + 8);
    tt_call(&r, tools, "glob", "pattern=s limit=j", "*", "3");
    TT_OK(&r, "d9/s199/file19998.txt\nd5/s100/file10001.h\nd0/s3/file302.py\n"
              "[first 3 of 20000; read on with offset=3]");
    tt_call(&r, tools, "glob", "pattern=s limit=j offset=j", "*", "1", "2");
    TT_OK(&r, "d0/s3/file302.py\n[3-3 of 20000; read on with offset=3]");
    T_CHECK(tf_pages(tools, "glob", "\"pattern\":\"*1*.c\",\"limit\":5000",
                     0) > 1);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(files_that_match_come_newest_first);
    TT_RUN(what_is_no_pattern_or_folder_is_refused);
    TT_RUN(an_absolute_pattern_is_a_path_and_a_pattern);
    TT_RUN(long_lists_are_cut_and_the_rest_is_counted);
    TT_RUN(pages_have_each_file_once);
    TT_RUN(odd_names_stay_on_their_line);
    TT_RUN(gitignore_files_count_also_from_above);
    TT_RUN(glob_explains_links_and_homes_in_a_pattern);
    TT_RUN(rules_from_beyond_are_not_read);
    TT_RUN(nothing_outside_the_root_is_seen);
    TT_RUN(search_reports_folders_too_deep);
    TT_RUN(search_reports_folders_it_cannot_open);
    TT_RUN(what_vanishes_on_the_way_is_not_there);
    TT_RUN(a_folder_that_becomes_a_link_is_not_entered);
    TT_RUN(a_search_ends_in_time);
    TT_RUN(each_allocation_fails_cleanly);
    TT_RUN(glob_finds_what_find_finds);
    TT_RUN(the_newest_of_many_are_kept);
    return TT_END();
}
