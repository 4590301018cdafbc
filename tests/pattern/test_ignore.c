/* test_ignore.c - rules of .gitignore files, compared with git where it is
   installed. */
#include "../support/t_regex.h"

#include <sys/stat.h>
#include <unistd.h>

typedef struct rule_case {
    const char *rules, *path; /* "x/" is a folder */
    bool        ignored;
} rule_case;

static const rule_case cases[] = {
    {"*.o", "a.o", true},
    {"*.o", "x/a.o", true},
    {"*.o", "a.oo", false},
    {"build", "build", true},
    {"build", "x/build/", true},
    {"build/", "build", false},
    {"build/", "build/", true},
    {"build/", "x/build/", true},
    {"/build", "build", true},
    {"/build", "x/build", false},
    {"a/b", "a/b", true},
    {"a/b", "x/a/b", false},
    {"a/b/", "a/b/", true},
    {"a/*.c", "a/x.c", true},
    {"a/*.c", "a/b/x.c", false},
    {"**/x", "a/b/x", true},
    {"**/x", "x", true},
    {"a/**", "a/b/c", true},
    {"a/**", "a/", false},
    {"a/**/b", "a/b", true},
    {"a/**/b", "a/x/y/b", true},
    {"a**b", "axb", true},
    {"*\n!/src**", "src/x/y", false}, /* plain text comes first in git */
    {"*\n!/src**", "sr/x", true},
    {"/a**/b", "ab", true},
    {"/a**/b", "a/b", true},
    {"/a**/b", "ax/y/b", true},
    {"/a**/**/b", "a/x/b", true},
    {"/?**/b", "ax/y/b", false},
    {"/a**b", "ax/yb", false},
    {"*\n!keep", "keep", false},
    {"*\n!keep", "other", true},
    {"!keep\n*", "keep", true}, /* the last that fits decides */
    {"# no\n#x", "#x", false},
    {"\\#x", "#x", true},
    {"\\!x", "!x", true},
    {"x  ", "x", true},
    {"x\\ ", "x ", true},
    {"x\\  ", "x ", true},
    {"x\t", "x\t", true}, /* only blanks are cut */
    {"x\r\ny", "x", true},
    {"\xef\xbb\xbfx", "x", true},
    {"[a-c]?", "b1", true},
    {"[!a-c]?", "b1", false},
    {"[a", "[a", false}, /* no pattern: passed over */
    {"[a\nx", "x", true},
    {"x\\", "x\\", false},
    {"{a,b}", "a", false}, /* no braces */
    {"{a,b}", "{a,b}", true},
    {"/", "x", false},
    {"", "x", false},
    {"\n\n", "x", false},
    {"!", "x", false},
    {"foo//", "foo/", false},
    {"*", "a/b", true},
    {"/*", "a/b", false},
    {"/*", "a", true},
    {"fo?/bar", "foo/bar", true},
    {"*a", "a", true}};

static void rules_match_as_in_git(void) {
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rule_case *c = &cases[i];
        size_t           n = strlen(c->path);
        bool             folder = c->path[n - 1] == '/';
        hfsb_str         path = t_exact(c->path, n - folder);
        hfsb_str         rules = t_exact(c->rules, strlen(c->rules));
        hfsbi_ignore    *ig = NULL;
        bool             ok;
        T_CHECK(hfsbi_ignore_open(NULL, &ig) == HFSB_OK);
        T_CHECK(hfsbi_ignore_push(ig, hfsb_cstr(""), rules) == HFSB_OK);
        t_drop(rules);
        ok = hfsbi_ignore_has(ig, path, folder) == c->ignored;
        if (!ok) printf("%s on %s\n", c->rules, c->path);
        T_CHECK(ok);
        hfsbi_ignore_close(ig);
        t_drop(path);
    }
}

static bool has(hfsbi_ignore *ig, const char *path) {
    return hfsbi_ignore_has(ig, hfsb_cstr(path), false);
}
static void push(hfsbi_ignore *ig, const char *folder, const char *rules) {
    T_CHECK(hfsbi_ignore_push(ig, hfsb_cstr(folder), hfsb_cstr(rules)) ==
            HFSB_OK);
}

static void rules_of_deeper_folders_win(void) {
    hfsbi_ignore *ig = NULL;
    T_CHECK(hfsbi_ignore_open(NULL, &ig) == HFSB_OK);
    push(ig, "", "*.log\n/a/x\n");
    push(ig, "a", "!keep.log\n/y\n");
    T_CHECK(has(ig, "a/q.log") && !has(ig, "a/keep.log"));
    T_CHECK(has(ig, "a/x") && has(ig, "a/y"));
    push(ig, "a/b", "");
    T_CHECK(has(ig, "a/b/q.log") && !has(ig, "a/b/keep.log"));
    T_CHECK(!has(ig, "a/b/y"));
    push(ig, "a/b/c", "*.log");
    T_CHECK(has(ig, "a/b/c/keep.log"));
    hfsbi_ignore_pop(ig);
    T_CHECK(!has(ig, "a/b/keep.log"));
    hfsbi_ignore_pop(ig);
    hfsbi_ignore_pop(ig);
    T_CHECK(has(ig, "keep.log") && !has(ig, "y"));
    hfsbi_ignore_pop(ig);
    hfsbi_ignore_pop(ig); /* one too many does no harm */
    T_CHECK(!has(ig, "a.log"));
    hfsbi_ignore_close(ig);
    hfsbi_ignore_close(NULL);
}

static void rules_with(hfsb_alloc alloc, const t_heap *heap) {
    hfsbi_ignore *ig;
    hfsb_status   st = hfsbi_ignore_open(&alloc, &ig);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at && !ig));
    if (st != HFSB_OK) return;
    if (hfsbi_ignore_push(ig, hfsb_cstr(""), hfsb_cstr("*.o\n[x\n!a?.o")) ==
        HFSB_OK) {
        if (hfsbi_ignore_push(ig, hfsb_cstr("d"), hfsb_cstr("ab.o\n*/q")) ==
            HFSB_OK)
            T_CHECK(has(ig, "d/ab.o"));
        else
            T_CHECK(!has(ig, "d/ab.o")); /* nothing of it is there */
        T_CHECK(!has(ig, "d/ac.o") && has(ig, "d/b.o"));
    } else {
        T_CHECK(heap->fail_at && !has(ig, "b.o"));
    }
    hfsbi_ignore_close(ig);
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(rules_with);
}

/* ---- compared with git ---- */

static unsigned long long seed = 99;
static unsigned below(unsigned n) { return (unsigned)(t_random(&seed) % n); }
#define PICK(list) (list)[below((unsigned)(sizeof(list) / sizeof *(list)))]

static const char *const names[] = {"a", "b", "ab", "a.o", "b.c", "x", "#x",
                                    "!a", "a b", "cc", ".h", "ba"};
static const char *const parts[] = {"*", "a", "b", "?", "**", ".o", ".c",
                                    "[ab]", "[!a]", "x", "c", "\\a", "?*",
                                    "[a-b]*", "ab", "{a,b}", "*.*"};

static void make_rules(hfsb_buf *out, unsigned count) {
    for (; count > 0; count--) {
        unsigned n = 1 + below(3), k;
        if (below(5) == 0) t_repeat(out, "!", 1);
        if (below(4) == 0) t_repeat(out, "/", 1);
        for (k = 0; k < n; k++) {
            const char *more = PICK(parts);
            if (k) t_repeat(out, "/", 1);
            t_repeat(out, below(4) ? PICK(parts) : PICK(names), 1);
            /* git takes the ** of "x**" for a whole name, although its
               manual says otherwise */
            if (below(3) == 0 && more[0] != '*') t_repeat(out, more, 1);
        }
        if (below(4) == 0) t_repeat(out, "/", 1);
        if (below(6) == 0) t_repeat(out, "  ", 1);
        t_repeat(out, below(9) ? "\n" : "\r\n", 1);
    }
}

/* Paths in folders that do not exist: git only looks at the rules, and at what
   is a folder. */
#define TREES 12
#define PATHS 120

static void put_file(const char *path, hfsb_str s) {
    FILE *f = fopen(path, "wb");
    T_CHECK(f && (!s.len || fwrite(s.ptr, 1, s.len, f) == s.len));
    if (f) fclose(f);
}

/* The result of a walk, which does not enter an ignored folder. */
static bool ours_ignores(hfsb_str top, hfsb_str below_d, hfsb_str path) {
    hfsbi_ignore *ig = NULL;
    size_t        at = 0;
    bool          ignored = false;
    T_CHECK(hfsbi_ignore_open(NULL, &ig) == HFSB_OK);
    T_CHECK(hfsbi_ignore_push(ig, hfsb_cstr(""), top) == HFSB_OK);
    while (at <= path.len && !ignored) {
        size_t   end = at;
        hfsb_str part;
        while (end < path.len && path.ptr[end] != '/') end++;
        part = hfsb_str_slice(path, 0, end);
        ignored = hfsbi_ignore_has(ig, part, end < path.len);
        if (end < path.len)
            T_CHECK(hfsbi_ignore_push(ig, part,
                                      hfsb_str_equal(part, hfsb_cstr("d"))
                                          ? below_d
                                          : hfsb_cstr("")) == HFSB_OK);
        at = end + 1;
    }
    hfsbi_ignore_close(ig);
    return ignored;
}

static void make_path(hfsb_buf *out) {
    unsigned depth = below(4);
    if (below(2)) t_repeat(out, "d/", 1);
    for (; depth > 0; depth--) {
        t_repeat(out, PICK(names), 1);
        t_repeat(out, "/", 1);
    }
    t_repeat(out, PICK(names), 1);
}

/* One tree: rules at its top and in d/, and one call of git for all paths. */
static void compare_tree(const char *dir) {
    hfsb_buf top = HFSB_INIT, inner = HFSB_INIT, asks = HFSB_INIT;
    hfsb_buf path = HFSB_INIT, paths[PATHS], answer = HFSB_INIT;
    char     command[512];
    unsigned i;
    make_rules(&top, 1 + below(5));
    make_rules(&inner, below(4));
    memset(paths, 0, sizeof paths);
    for (i = 0; i < PATHS; i++) {
        make_path(&paths[i]);
        T_CHECK(hfsb_buf_printf(&asks, "%s\n", paths[i].ptr) == HFSB_OK);
    }
    T_CHECK(hfsb_buf_printf(&path, "%s/d", dir) == HFSB_OK);
    mkdir(path.ptr, 0755);
    T_CHECK(hfsb_buf_printf(&path, "/.gitignore") == HFSB_OK);
    put_file(path.ptr, hfsb_buf_str(&inner));
    snprintf(command, sizeof command, "%s/.gitignore", dir);
    put_file(command, hfsb_buf_str(&top));
    snprintf(command, sizeof command, "%s/.git/asks", dir);
    put_file(command, hfsb_buf_str(&asks));
    snprintf(command, sizeof command,
             "cd %s && git -c core.excludesFile=/dev/null check-ignore "
             "--no-index --stdin < .git/asks | sed 's/^\"\\(.*\\)\"$/\\1/' "
             "> .git/answer",
             dir);
    T_CHECK(system(command) == 0);
    t_repeat(&answer, "\n", 1);
    snprintf(command, sizeof command, "%s/.git/answer", dir);
    T_CHECK(t_read_file(command, &answer));
    for (i = 0; i < PATHS; i++) {
        bool ours = ours_ignores(hfsb_buf_str(&top), hfsb_buf_str(&inner),
                                 hfsb_buf_str(&paths[i]));
        bool theirs;
        hfsb_buf_truncate(&path, 0);
        T_CHECK(hfsb_buf_printf(&path, "\n%s\n", paths[i].ptr) == HFSB_OK);
        theirs = hfsb_str_find(hfsb_buf_str(&answer), hfsb_buf_str(&path)) !=
                 HFSB_NPOS;
        if (ours != theirs)
            printf("%s: %s by git; rules:\n%s-- in d:\n%s", paths[i].ptr,
                   theirs ? "ignored" : "not ignored", top.ptr,
                   inner.len ? inner.ptr : "\n");
        T_CHECK(ours == theirs);
        hfsb_buf_free(&paths[i]);
    }
    hfsb_buf_free(&top);
    hfsb_buf_free(&inner);
    hfsb_buf_free(&asks);
    hfsb_buf_free(&path);
    hfsb_buf_free(&answer);
}

static void random_rules_match_as_in_git(void) {
    char     dir[] = "/tmp/hfsb-ignore-XXXXXX", command[256];
    unsigned i;
    bool     there = mkdtemp(dir) != NULL;
    snprintf(command, sizeof command,
             "git init -q %s >/dev/null 2>&1 && rm -rf %s/.git/hooks", dir,
             dir);
    if (there && system(command) == 0) {
        for (i = 0; i < (t_long() ? 40 * TREES : TREES); i++)
            compare_tree(dir);
    } else {
        t_skipped++;
    }
    snprintf(command, sizeof command, "rm -rf %s", dir);
    if (there) T_CHECK(system(command) == 0);
}

int main(void) {
    T_RUN(rules_match_as_in_git);
    T_RUN(rules_of_deeper_folders_win);
    T_RUN(each_allocation_fails_cleanly);
    T_RUN(random_rules_match_as_in_git);
    return T_END();
}
