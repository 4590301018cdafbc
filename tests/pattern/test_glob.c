/* test_glob.c - patterns for paths. */
#include "../support/t_regex.h"

typedef struct glob_case {
    const char *pattern, *path;
    bool        match;
} glob_case;

static const glob_case cases[] = {
    {"*.c", "a.c", true},
    {"*.c", ".c", true},
    {"*.c", "a/b.c", false},
    {"*.c", "a.cc", false},
    {"*", ".hidden", true},
    {"*", "", true},
    {"?", "a", true},
    {"?", "\xc3\xa9", true},
    {"?", "ab", false},
    {"?", "/", false},
    {"a?c", "a/c", false},
    {"a*c", "a\xff\n\rc", true}, /* names are bytes */
    {"src/*.c", "src/a.c", true},
    {"src/*.c", "src/x/a.c", false},
    {"src/*/*.c", "src/x/a.c", true},
    {"**/*.c", "a.c", true},
    {"**/*.c", "x/y/z/a.c", true},
    {"**", "x/y", true},
    {"**", "x", true},
    {"**", "", false},
    {"src/**", "src/a/b", true},
    {"src/**", "src", false},
    {"src/**", "srcs/a", false},
    {"a/**/b", "a/b", true},
    {"a/**/b", "a/x/y/b", true},
    {"a/**/b", "a/xb", false},
    {"a/**/**/b", "a/b", true},
    {"**/a/**", "x/a/y", true},
    {"a**b", "axxb", true}, /* not a whole name: one star */
    {"a**b", "ax/b", false},
    {"a/**b", "a/xb", true},
    {"a/**b", "a/x/b", false},
    {"[a-c]x", "bx", true},
    {"[a-c]x", "dx", false},
    {"[!a-c]x", "dx", true},
    {"[^a-c]x", "ax", false},
    {"[!a]", "/", false},
    {"[]a]", "]", true},
    {"[[:digit:]]", "7", true},
    {"[[:digit:]]", "x", false},
    {"[\xc3\xa0-\xc3\xbf]", "\xc3\xa9", true},
    {"[a\\]]", "]", true},
    {"[\\w]", "w", true},
    {"[\\w]", "a", false},
    {"\\*", "*", true},
    {"\\*", "a", false},
    {"\\{a,b\\}", "{a,b}", true},
    {"*.{c,h}", "a.h", true},
    {"*.{c,h}", "a.cc", false},
    {"*.{c}", "a.c", true},
    {"{a,b{1,2}}.x", "b2.x", true},
    {"{a,b{1,2}}.x", "b.x", false},
    {"{src,lib}/**/*.{c,h}", "lib/x/y.h", true},
    {"{src/a,lib}/x", "src/a/x", true},
    {"{,a}b", "b", true},
    {"{,a}b", "ab", true},
    {"{**/x,y}", "a/b/x", true},
    {"{a/**,y}", "a/b/c", true},
    {"x{**,y}", "xq/y", false},
    {"{}", "{}", true},
    {"a,b}", "a,b}", true},
    {"/abs/*", "/abs/x", true},
    {"/abs/*", "abs/x", false},
    {"caf\xc3\xa9", "caf\xc3\xa9", true},
    {"x\xffy", "x\xffy", true}};

static void patterns_match_as_in_a_shell(void) {
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        const glob_case *c = &cases[i];
        hfsb_str         pattern = t_exact(c->pattern, strlen(c->pattern));
        hfsb_str         path = t_exact(c->path, strlen(c->path));
        hfsb_glob       *glob;
        hfsb_err         err;
        bool             ok;
        ok = hfsb_glob_open(pattern, NULL, &glob, &err) == HFSB_OK;
        t_drop(pattern); /* it was copied */
        ok = ok && hfsb_glob_match(glob, path) == c->match &&
             hfsb_glob_match(glob, path) == c->match &&
             hfsbi_nfa_whole(&glob->runner, path, false) == c->match;
        if (!ok) printf("%s on %s\n", c->pattern, c->path);
        T_CHECK(ok);
        hfsb_glob_close(glob);
        t_drop(path);
    }
}

/* ---- refusals ---- */

typedef struct refusal {
    const char *pattern;
    hfsb_status status;
    size_t      pos;
    const char *part; /* of the message */
} refusal;

static const refusal refusals[] = {
    {"src/[a", HFSB_ARG, 4, "\\["},
    {"[[:nosuch:]]", HFSB_ARG, 1, "[:alpha:]"},
    {"[z-a]", HFSB_ARG, 1, "range"},
    {"x{a,b", HFSB_ARG, 1, "\\{"},
    {"{a,{b}", HFSB_ARG, 0, "\\{"},
    {"a\\", HFSB_ARG, 1, "\\\\"},
    {"[\xff]", HFSB_ARG, 1, "UTF-8"}};

static void odd_patterns_are_refused_with_advice(void) {
    hfsb_buf   deep = HFSB_INIT;
    hfsb_glob *glob;
    hfsb_err   err;
    size_t     i;
    for (i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        T_CHECK(hfsb_glob_open(hfsb_cstr(r->pattern), NULL, &glob, &err) ==
                r->status);
        T_CHECK(!glob && err.code == r->status && err.pos == r->pos);
        T_CHECK(strstr(err.msg, r->part) != NULL);
    }
    t_repeat(&deep, "{", 300);
    T_CHECK(hfsb_glob_open(hfsb_buf_str(&deep), NULL, &glob, &err) ==
            HFSB_LIMIT);
    T_CHECK(err.pos == 200 && strstr(err.msg, "200"));
    t_repeat(&deep, "[!x]", 20000);
    T_CHECK(hfsb_glob_open(hfsb_buf_str(&deep), NULL, &glob, NULL) ==
            HFSB_LIMIT);
    hfsb_buf_truncate(&deep, 0);
    t_repeat(&deep, "[!x]", 9000);
    T_CHECK(hfsb_glob_open(hfsb_buf_str(&deep), NULL, &glob, &err) ==
                HFSB_LIMIT &&
            strstr(err.msg, "states"));
    hfsb_buf_free(&deep);
}

/* Sixty groups of braces would be 2^60 patterns, written out. */
static void braces_do_not_multiply(void) {
    hfsb_buf   pattern = HFSB_INIT, path = HFSB_INIT;
    hfsb_glob *glob = NULL;
    t_repeat(&pattern, "{a,b}*", 60);
    t_repeat(&path, "ab", 200);
    T_CHECK(hfsb_glob_open(hfsb_buf_str(&pattern), NULL, &glob, NULL) ==
            HFSB_OK);
    T_CHECK(hfsb_glob_match(glob, hfsb_buf_str(&path)));
    t_repeat(&path, "/", 1);
    T_CHECK(!hfsb_glob_match(glob, hfsb_buf_str(&path)));
    hfsb_glob_close(glob);
    hfsb_buf_free(&pattern);
    hfsb_buf_free(&path);
}

/* ---- folders to enter ---- */

typedef struct walk_case {
    const char *pattern, *base;
    const char *enters, *not_enters; /* folders, with blanks between */
} walk_case;

static const walk_case walks[] = {
    {"src/main/*.c", "src/main", "src src/main", "lib src/main/x src/mainx"},
    {"*.c", "", "", "src"},
    {"**/*.c", "", "src src/x", ""},
    {"src/**", "src", "src src/x src/x/y", "lib srcs"},
    {"src/*/x", "src", "src src/a", "src/a/x lib"},
    {"src/x", "src", "src", "src/x"},
    {"x", "", "", "x y"},
    {"{src,lib}/*.c", "", "src lib", "doc src/x"},
    {"a/b{c,d}/e", "a", "a a/bc a/bd", "a/b a/bce"},
    {"/*.c", "/", "/", "/x x"},
    {"/a/b/*.c", "/a/b", "/ /a /a/b", "/b"},
    {"a\\*b/*", "a*b", "a*b", "axb"}};

static void check_folders(hfsb_glob *glob, const char *list, bool enters) {
    while (*list) {
        size_t   n = strcspn(list, " ");
        hfsb_str folder = t_exact(list, n);
        bool     ok = hfsb_glob_enters(glob, folder) == enters;
        if (!ok) printf("%.*s\n", (int)n, list);
        T_CHECK(ok);
        t_drop(folder);
        list += n + (list[n] == ' ');
    }
}

static void enters_skips_folders_without_matches(void) {
    size_t i;
    for (i = 0; i < sizeof walks / sizeof *walks; i++) {
        const walk_case *w = &walks[i];
        hfsb_glob       *glob = NULL;
        T_CHECK(hfsb_glob_open(hfsb_cstr(w->pattern), NULL, &glob, NULL) ==
                HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_glob_base(glob), hfsb_cstr(w->base)));
        T_CHECK(hfsb_glob_enters(glob, hfsb_cstr("")));
        check_folders(glob, w->enters, true);
        check_folders(glob, w->not_enters, false);
        hfsb_glob_close(glob);
    }
}

/* ---- memory ---- */

static void glob_with(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_glob  *glob;
    hfsb_err    err;
    hfsb_status st = hfsb_glob_open(hfsb_cstr("src/{a,b[!x-z]}/**/*.?"),
                                    &alloc, &glob, &err);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at && !glob &&
                              err.code == HFSB_NOMEM && err.msg[0]));
    if (st != HFSB_OK) return;
    /* correct with or without memory for the table */
    T_CHECK(hfsb_glob_match(glob, hfsb_cstr("src/bc/x/y/long name.c")));
    T_CHECK(!hfsb_glob_match(glob, hfsb_cstr("src/bz/x/y/long name.c")));
    T_CHECK(hfsb_glob_enters(glob, hfsb_cstr("src/a/b/c")));
    T_CHECK(!hfsb_glob_enters(glob, hfsb_cstr("lib")));
    hfsb_glob_close(glob);
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(glob_with);
}

/* A table with almost no room gives the same results. */
static void small_table_is_flushed(void) {
    hfsb_glob *glob = NULL;
    hfsb_buf   path = HFSB_INIT;
    size_t     i;
    T_CHECK(hfsb_glob_open(hfsb_cstr("**/a*b?[c-e]*/**/x"), NULL, &glob,
                           NULL) == HFSB_OK);
    glob->runner.table.max_bytes = 700;
    for (i = 0; i < 400; i++) {
        hfsb_str s;
        T_CHECK(hfsb_buf_printf(&path, "n%u/a", (unsigned)i) == HFSB_OK);
        t_repeat(&path, i % 3 ? "abqdz/" : "ab/cq/", i % 7);
        t_repeat(&path, "x", 1);
        s = hfsb_buf_str(&path);
        T_CHECK(hfsb_glob_match(glob, s) ==
                hfsbi_nfa_whole(&glob->runner, s, false));
        hfsb_buf_truncate(&path, 0);
    }
    T_CHECK(glob->runner.table.flushes > 0);
    hfsb_glob_close(glob);
    hfsb_buf_free(&path);
}

int main(void) {
    T_RUN(patterns_match_as_in_a_shell);
    T_RUN(odd_patterns_are_refused_with_advice);
    T_RUN(braces_do_not_multiply);
    T_RUN(enters_skips_folders_without_matches);
    T_RUN(each_allocation_fails_cleanly);
    T_RUN(small_table_is_flushed);
    return T_END();
}
