/* test_exit.c - exit codes that are answers: which command of a line they
   belong to, and what they mean. */
#include "../support/t_tools.h"
#ifdef HFSBI_SPLIT
#include "../../src/tools/tools_private.h"
#endif

#define NO_MATCH "no match"
#define DIFFER   "the files differ"
#define FALSE_   "the condition is false"
#define EITHER   "a condition is false, or there is no match"

/* meaning: NULL for a failure. */
static const struct {
    const char *command, *meaning;
} cases[] = {
    /* the commands */
    {"grep x f", NO_MATCH},
    {"grep -q x f", NO_MATCH},
    {"egrep 'a|b' f", NO_MATCH},
    {"rg foo src", NO_MATCH},
    {"git grep foo", NO_MATCH},
    {"git -C dir grep foo", NO_MATCH},
    {"git diff --exit-code", "there are differences"},
    {"git merge-base --is-ancestor a b", "not an ancestor"},
    {"diff -u a b", DIFFER},
    {"cmp a b", DIFFER},
    {"test -f x", FALSE_},
    {"[ -f x ]", FALSE_},
    {"[[ a == b ]]", FALSE_},
    {"expr 1 - 1", "the value is 0 or empty"},
    {"pgrep -f server", "no such process"},
    {"which gcc", "not found"},
    {"command -v gcc", "not found"},
    {"git push", NULL},
    {"make", NULL},
    {"false", NULL},
    {"python3 grep", NULL},
    {"", NULL},
    {"   ", NULL},
    /* how they are written */
    {"/usr/bin/grep x f", NO_MATCH},
    {"  grep x f  ", NO_MATCH},
    {"grep x f;", NO_MATCH},
    {"grep x f\n", NO_MATCH},
    {"\n\ngrep x f\n\n", NO_MATCH},
    {"LC_ALL=C A='b c' grep x f", NO_MATCH},
    {"sudo grep x f", NO_MATCH},
    {"timeout 5 grep -r x .", NO_MATCH},
    {"env A=1 grep x f", NO_MATCH},
    {"grep x f 2>/dev/null", NO_MATCH},
    {"grep x f > out 2>&1", NO_MATCH},
    {"grep x &> out", NO_MATCH},
    {"grep \"a\\|b\" f", NO_MATCH},
    {"grep \"a\\\"; b\" f", NO_MATCH},
    {"grep \"it's; $x ${y}\" f", NO_MATCH},
    {"grep 'a && b; c | d' f", NO_MATCH},
    {"grep a\\;b f", NO_MATCH},
    {"grep $(cat p) f", NO_MATCH},
    {"grep x f # or make", NO_MATCH},
    {"grep x f\n# or make\n", NO_MATCH},
    {"cat f |\n  grep x", NO_MATCH},
    {"make &&\ngrep x f", NULL},
    {"echo &&\n\n grep x f", NO_MATCH},
    {"grep x f;;", NULL},
    {"; grep x f", NULL},
    {"grep x f #; make", NO_MATCH},
    /* which command the code is of */
    {"cat f | grep x", NO_MATCH},
    {"make; grep x f", NO_MATCH},
    {"make\ngrep x f", NO_MATCH},
    {"make || grep x f", NO_MATCH},
    {"cat f |& grep x", NO_MATCH},
    {"grep x f | head", NULL},
    {"grep x f; make", NULL},
    {"grep x f || make", NULL},
    {"grep x f || exit 1", NULL},
    {"make && grep x f", NULL},
    {"make && cat f | grep x", NULL},
    {"make && cat f; grep x f", NO_MATCH},
    {"make && true || grep x f", NO_MATCH},
    {"echo a && export B=1 && grep x f", NO_MATCH},
    {"grep -q x f && echo yes", NO_MATCH},
    {"grep -q x f && make", NULL},
    {"[ -f f ] && echo yes", FALSE_},
    {"[ -f f ] && grep x f", EITHER},
    {"grep a f && grep b f", NO_MATCH},
    {"grep x f | wc -l && grep y f", NO_MATCH},
    {"! grep x f", NULL},
    {"grep x f &", NULL},
    {"grep x f &&", NULL},
    {"grep x f |", NULL},
    /* what changes how a line ends */
    {"set -e; make; grep x f", NULL},
    {"set -o pipefail; make | grep x", NULL},
    {"exit 1; grep x f", NULL},
    {"eval make; grep x f", NULL},
    {". ./env; grep x f", NULL},
    {"shopt -so pipefail; make | grep x", NULL},
    {"if [ -z \"$X\" ]; then exit 1; fi; grep x f", NULL},
    {"[ -f f ] || { exit 1; }; grep x f", NULL},
    {"if make; then echo; else exit 1; fi; grep x f", NULL},
    {"if make; then echo; fi; grep x f", NO_MATCH},
    {"for i in 1; do set -e; done; make; grep x f", NULL},
    {"command exit 1; grep x f", NULL},
    {"function grep { make; }; grep x f", NULL},
    {"alias grep=make\ngrep x f", NULL},
    {"grep exit f", NO_MATCH},
    /* redirections that nobody would hear of */
    {"grep x 2>/dev/null < f", NULL},
    {"grep x f 2>&1 > out", NULL},
    {"grep x f &>/dev/null > out", NULL},
    {"grep x f 2>/dev/null >/dev/null", NO_MATCH},
    {"grep x f >/dev/null 2>&1", NO_MATCH},
    {"grep x < f 2>/dev/null", NO_MATCH},
    {"grep x f >> out", NO_MATCH},
    {"cat f > out && grep x out", NO_MATCH},
    {"cat f 2> out && grep x out", NULL},
    {"echo a 2>/dev/null >&7 && grep x f", NULL},
    /* what is too hard */
    {"(grep x f)", NULL},
    {"if grep x f; then make; fi", NULL},
    {"for f in *; do grep x $f; done", NULL},
    {"f() { grep x f; }; f", NULL},
    {"grep x <<EOF\ny\nEOF", NULL},
    {"grep \"$(make)\" f", NULL},
    {"grep `make` f", NULL},
    {"grep 'x f", NULL},
    {"grep \"x f", NULL},
    {"grep $(x f", NULL},
    {"grep x\\", NULL},
    {"case x in x) grep x f;; esac", NULL},
    {"xargs grep x", NULL},
};

static void check(const char *command, int code, bool quiet,
                  const char *want) {
    /* in a block of its exact size, so that reading past its end shows */
    size_t      n = strlen(command);
    char       *copy = (char *)malloc(n ? n : 1);
    const char *is;
    bool        same;
    if (!copy) abort();
    memcpy(copy, command, n);
    is = hfsbi_exit_meaning(hfsb_str_make(copy, n), code, quiet);
    same = is && want ? strcmp(is, want) == 0 : is == want;
    T_CHECK(same);
    if (!same)
        printf("  %s: is %s, want %s\n", command, is ? is : "a failure",
               want ? want : "a failure");
    free(copy);
}

static void the_command_that_answers_is_found(void) {
    size_t i;
    for (i = 0; i < TT_COUNT(cases); i++) {
        check(cases[i].command, 1, true, cases[i].meaning);
        check(cases[i].command, 2, true, NULL);
        check(cases[i].command, 0, true, NULL);
        check(cases[i].command, 127, true, NULL);
    }
}

/* cd fails with 1 as well, but not silently. */
static void what_complains_on_stderr_may_have_failed(void) {
    check("cd src && grep -rn x .", 1, true, NO_MATCH);
    check("cd src && grep -rn x .", 1, false, NULL);
    check("cd src 2>/dev/null && grep -rn x .", 1, true, NULL);
    check("cd src; grep -rn x .", 1, false, NO_MATCH);
    check("grep x f && cat f", 1, true, NO_MATCH);
    check("grep x f && cat f", 1, false, NULL);
    check("find . | grep x", 1, false, NO_MATCH);
    /* the shell, sudo or xargs: grep x < missing exits with 1 */
    check("grep x < f", 1, true, NO_MATCH);
    check("grep x < f", 1, false, NULL);
    check("grep x f > out", 1, false, NULL);
    check("grep x f 2>&1", 1, false, NO_MATCH);
    check("grep x f >/dev/null", 1, false, NO_MATCH);
    check("grep ${x} f", 1, true, NO_MATCH);
    check("grep ${x} f", 1, false, NULL);
    check("grep \"$((1 / n))\" f", 1, false, NULL);
    check("echo a > out && grep x f", 1, true, NO_MATCH);
    check("echo a > out && grep x f", 1, false, NULL);
    check("echo a && grep x f", 1, false, NO_MATCH);
    check("printf %d a && grep x f", 1, false, NULL);
    check("sudo grep x f", 1, false, NULL);
    check("find . | xargs grep x", 123, false, NULL);
    /* programs that exit with 1 for errors too */
    check("pkill -x server", 1, true, "no such process");
    check("pkill -x server", 1, false, NULL);
    check("git diff --no-index a b", 1, false, NULL);
    check("[[ 1 -eq $x ]]", 1, false, NULL);
    check("cmp a b", 1, false, DIFFER);
}

/* xargs reports 123 when a command that it ran has exited with 1. */
static void xargs_has_a_code_of_its_own(void) {
    check("find . | xargs grep -l x", 123, true, NO_MATCH);
    check("find . -print0 | xargs -0 -n 5 -P 2 grep -l x", 123, true,
          NO_MATCH);
    check("find . | xargs -I {} grep x {}", 123, true, NO_MATCH);
    check("find . | xargs wc -l", 123, true, NULL);
    check("find . | xargs", 123, true, NULL);
    check("find . | xargs -n", 123, true, NULL);
    check("grep x f", 123, true, NULL);
}

static void any_bytes_are_read(void) {
    static const char set[] = "grep x;|&\n$(){}'\"\\`<>#=-[ ]\tcd";
    unsigned          seed = 7;
    int               i;
    for (i = 0; i < 20000; i++) {
        char   text[24];
        char  *copy;
        size_t n, k;
        seed = seed * 1103515245u + 12345u;
        n = seed / 65536u % sizeof text;
        for (k = 0; k < n; k++) {
            seed = seed * 1103515245u + 12345u;
            text[k] = set[seed / 65536u % sizeof set]; /* also a NUL */
        }
        copy = (char *)malloc(n ? n : 1);
        if (!copy) abort();
        memcpy(copy, text, n);
        (void)hfsbi_exit_meaning(hfsb_str_make(copy, n), 1, true);
        (void)hfsbi_exit_meaning(hfsb_str_make(copy, n), 123, false);
        free(copy);
    }
    T_CHECK(i == 20000);
}

/* The reply of bash still says that the command failed: clients rely on it. */
static void the_result_says_both(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    tt_put("f", HFSB_LIT("a\n"));
    tt_call(&r, tools, "bash", "command=s", "cd . && grep x f");
    T_CHECK(!r.res.success && tt_int(&r, "exit_code") == 1);
    TT_FAIL(&r, "Exit code 1");
    T_STR(tt_text(&r, "exit_meaning"), NO_MATCH);
    tt_call(&r, tools, "bash", "command=s", "cd none && grep x f");
    T_CHECK(!tt_text(&r, "exit_meaning").len);
    tt_call(&r, tools, "bash", "command=s merge_stderr=j",
            "cd none && grep x f", "true");
    T_CHECK(!tt_text(&r, "exit_meaning").len);
    tt_call(&r, tools, "bash", "command=s", "grep a f");
    T_CHECK(r.res.success && !tt_text(&r, "exit_meaning").len);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(the_command_that_answers_is_found);
    TT_RUN(what_complains_on_stderr_may_have_failed);
    TT_RUN(xargs_has_a_code_of_its_own);
    TT_RUN(any_bytes_are_read);
    TT_RUN(the_result_says_both);
    return TT_END();
}
