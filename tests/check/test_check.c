/* Tests of src/check/check.c. */
#include "../support/t_check.h"

/* ---- JSON ---- */

static void check_reports_json_errors(void) {
    static const text_case cases[] = {
        {__LINE__, "{\"a\": [1, 2.5e3, null]}\n", ""},
        {__LINE__, " 1 ", ""},
        {__LINE__, "",
         "JSON error at line 1, column 1: expected a value, found the end of "
         "the text: was it cut short?\n"},
        {__LINE__, "{\n  \"a\": 1,\n}\n",
         "JSON error at line 3, column 1: expected a key in double quotes "
         "after ',', found '}': remove the comma before it\n"},
        {__LINE__, "[1]\n// x\n",
         "JSON error at line 2, column 1: expected the end of the text after "
         "the value, found '/': JSON has no comments\n"},
        {__LINE__, "{\"a\": 1, \"a\": 2}", ""}};
    static const struct {
        const char *path;
        bool        checked;
    } paths[] = {{"a.json", true},
                 {"/x/.vscode.json", true},
                 {"/x/vscode/a.json", true},
                 {"/tsconfig/a.json", true},
                 {"xtsconfig.json", true},
                 {".json", false},
                 {"a.jsonl", false},
                 {"a.json5", false},
                 {"a.JSON", false},
                 {"a.json/b", false},
                 {"tsconfig.json", false},
                 {"/x/tsconfig.base.json", false},
                 {"x/jsconfig.json", false},
                 {"/.devcontainer/devcontainer.json", false},
                 {"/x/.eslintrc.json", false},
                 {"/x/.vscode/a.json", false},
                 {".vscode/settings.json", false}};
    hfsbi_checker *checker = open_with(empty_env, 0);
    hfsb_buf       deep = HFSB_INIT;
    size_t         i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        check_at(cases[i].line, checker, "a.b/c.json",
                 hfsb_cstr(cases[i].text), cases[i].want);
    for (i = 0; i < sizeof paths / sizeof *paths; i++)
        CHECK(checker, paths[i].path, "x",
              paths[i].checked
                  ? "JSON error at line 1, column 1: expected a value, found "
                    "'x': the only words are true, false and null\n"
                  : "");
    t_repeat(&deep, "[", 600); /* correct, but too deep for our parser */
    t_repeat(&deep, "]", 600);
    check_at(__LINE__, checker, "a.json", hfsb_buf_str(&deep), "");
    hfsb_buf_free(&deep);
    hfsbi_checker_close(checker);
}

/* ---- shells ---- */

static void the_first_line_says_which_shell(void) {
    static const struct {
        const char *text, *shell;
    } cases[] = {{"#!/bin/sh", "sh"},
                 {"#!/bin/sh\n", "sh"},
                 {"#! /bin/sh -e\nx", "sh"},
                 {"#!\t/usr/local/bin/bash\t-eu\n", "bash"},
                 {"#!/bin/dash\r\n", "dash"},
                 {"#!bash", "bash"},
                 {"#!/usr/bin/env bash\n", "bash"},
                 {"#!/usr/bin/env -S bash -e\n", "bash"},
                 {"#!/usr/bin/env -i A=/b/sh dash\n", "dash"},
                 {"", NULL},
                 {"#", NULL},
                 {"#!", NULL},
                 {"#!\nsh", NULL},
                 {"#!/usr/bin/env\nsh", NULL},
                 {"#!/usr/bin/env -S", NULL},
                 {"#!/usr/bin/env python3 sh", NULL},
                 {"#!/bin/shx", NULL},
                 {"#!/bin/zsh", NULL},
                 {"#!/bin/sh/x", NULL},
                 {" #!/bin/sh", NULL},
                 {"\n#!/bin/sh", NULL}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str    text = t_exact(cases[i].text, strlen(cases[i].text));
        const char *got = hfsbi_check_shell_of(text);
        T_CHECK(got ? cases[i].shell && strcmp(got, cases[i].shell) == 0
                    : !cases[i].shell);
        t_drop(text);
    }
}

static void check_reports_shell_syntax_errors(void) {
    hfsbi_checker *checker = open_with(NULL, 0);
    hfsb_buf       got = HFSB_INIT;
    CHECK(checker, "a", "#!/bin/sh\nif true; then echo x; fi\n", "");
    hfsbi_checker_run(checker, NULL, HFSB_LIT("a.txt"),
                      HFSB_LIT("#!/bin/sh\necho a\n)\n"), &got);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&got),
                            HFSB_LIT("Shell syntax error at line 3: ")));
    T_CHECK(hfsb_str_count_byte(hfsb_buf_str(&got), '\n') == 1);
    if (have("bash")) {
        CHECK(checker, "a.sh", "#!/bin/bash -e\necho a\n( echo ))\n",
              "Shell syntax error at line 3: near unexpected token `)'\n");
        CHECK(checker, "a", "#!/usr/bin/env bash\n\ncat << EOF\nx\n",
              "Shell syntax warning at line 4: here-document at line 3 "
              "delimited by end-of-file (wanted `EOF')\n");
        CHECK(checker, "a",
              "#!/bin/bash\na=(1 2)\n[[ x =~ y ]] && "
              "diff <(a) <(b)\n",
              "");
        CHECK(checker, "a", "#!/bin/bash\nshopt -s extglob\nls !(a|b)\n", "");
        CHECK(checker, "a", "#!/bin/bash\ntouch /no/such/dir\nexit 3\n", "");
    }
    if (have("dash")) {
        CHECK(checker, "a.sh", "#!/bin/dash\necho a\nif x\n",
              "Shell syntax error at line 4: end of file unexpected "
              "(expecting \"then\")\n");
        CHECK(checker, "a.sh", "#!/bin/dash\n\necho '\n",
              "Shell syntax error at line 4: Unterminated quoted string\n");
    }
    hfsb_buf_free(&got);
    hfsbi_checker_close(checker);
}

static void shell_errors_are_parsed_in_every_form(void) {
    static const text_case cases[] = {
        /* standard error; warnings */
        {__LINE__, "", ""},
        {__LINE__,
         "/dev/stdin: line 12: syntax error: unexpected end\\n"
         "/dev/stdin: line 13: syntax error: more\\n",
         "Shell syntax error at line 12: unexpected end\n"},
        {__LINE__,
         "bash: warning: setlocale: no such locale\\n"
         "/dev/stdin: 3: Syntax error: \")\" unexpected\\n",
         "Shell syntax error at line 3: \")\" unexpected\n"},
        {__LINE__, "/dev/stdin[4]: syntax error: `fi` unexpected",
         "Shell syntax error at line 4: `fi` unexpected\n"},
        {__LINE__, "/dev/stdin: Zeile 3: Syntaxfehler beim Wort `fi\\n",
         "Shell syntax error at line 3: Syntaxfehler beim Wort `fi\n"},
        {__LINE__, "/dev/stdin: line 3: \\377\\033\\n",
         "Shell syntax error at line 3: \xEF\xBF\xBD \n"},
        /* not about the script */
        {__LINE__, "bash: /dev/stdin: No such file or directory\\n", ""},
        {__LINE__, "/dev/stdin: /dev/stdin: cannot execute binary file\\n",
         ""},
        {__LINE__, "dash: 0: cannot open /dev/stdin: No such file\\n", ""},
        {__LINE__, "/etc/profile: line 3: syntax error\\n", ""},
        {__LINE__,
         "/dev/stdin\\n/dev/stdin:\\n/dev/stdin: line 7\\n"
         "/dev/stdin: line 7:\\n/dev/stdin: line 7 of: x\\n",
         ""}};
    hfsb_buf       script = HFSB_INIT;
    hfsbi_checker *checker;
    size_t         i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_buf_truncate(&script, 0);
        T_CHECK(hfsb_buf_printf(&script,
                                "#!/bin/sh\n[ \"$*\" = '-n /dev/stdin' ] && "
                                "[ \"$(cat)\" = '#!/x/bash' ] || exit 0\n"
                                "echo /dev/stdin: 1: output\n"
                                "printf '%s' >&2\nexit 2\n",
                                cases[i].text) == HFSB_OK);
        put_program("bash", script.ptr);
        checker = open_with(fake_env, 0);
        check_at(cases[i].line, checker, "a", HFSB_LIT("#!/x/bash"),
                 cases[i].want);
        hfsbi_checker_close(checker);
    }
    drop_program("bash");
    hfsb_buf_free(&script);
}

/* ---- what was found before ---- */

/* Programs that count the contents they are given. This python3 answers with
   the content, but to "slow" only when the file `go` exists. */
static void put_counters(void) {
    hfsb_buf script = HFSB_INIT;
    T_CHECK(hfsb_buf_printf(&script,
                            "#!/bin/sh\nwhile read n; do\n"
                            "text=$(head -c $n); printf x >> '%s/runs'\n"
                            "while [ \"$text\" = slow -a ! -e '%s/go' ]; do "
                            "sleep 0.05; done\n"
                            "echo \"Invalid kwarg: $text\"; echo .; done\n",
                            home, home) == HFSB_OK);
    put_program("python3", script.ptr);
    hfsb_buf_truncate(&script, 0);
    T_CHECK(hfsb_buf_printf(&script, "#!/bin/sh\nprintf x >> '%s/runs'\n",
                            home) == HFSB_OK);
    put_program("bash", script.ptr);
    hfsb_buf_free(&script);
}

static void drop_counters(void) {
    drop_program("python3");
    drop_program("bash");
}

static void numbered(hfsbi_checker *checker, int i) {
    char text[32], want[64];
    T_CHECK(snprintf(text, sizeof text, "n%d", i) > 0);
    T_CHECK(snprintf(want, sizeof want, "Invalid kwarg: n%d\n", i) > 0);
    CHECK(checker, "a.py", text, want);
}

static void each_content_is_looked_at_once(void) {
    hfsbi_checker *checker = open_with(fake_env, 0);
    put_counters();
    forget_runs();
    CHECK(checker, "a.py", "x", "Invalid kwarg: x\n");
    CHECK(checker, "a.py", "x", "Invalid kwarg: x\n");
    CHECK(checker, "/b/c.py", "x", "Invalid kwarg: x\n");
    T_CHECK(runs() == 1);
    CHECK(checker, "a.py", "#!/bin/bash", "Invalid kwarg: #!/bin/bash\n");
    T_CHECK(runs() == 3); /* a program does not remember for the other */
    CHECK(checker, "a.py", "#!/bin/bash", "Invalid kwarg: #!/bin/bash\n");
    CHECK(checker, "a", "#!/bin/bash", "");
    T_CHECK(runs() == 3);
    hfsbi_checker_close(checker);
    drop_counters();
}

static void the_last_64_contents_are_remembered(void) {
    hfsbi_checker *checker = open_with(fake_env, 0);
    int            i;
    put_counters();
    forget_runs();
    for (i = 0; i < 64; i++) numbered(checker, i);
    T_CHECK(runs() == 64);
    for (i = 0; i < 64; i++) numbered(checker, i);
    T_CHECK(runs() == 64);
    numbered(checker, 0); /* asked for again: 1 is the oldest now */
    numbered(checker, 64);
    numbered(checker, 0);
    T_CHECK(runs() == 65);
    numbered(checker, 1);
    T_CHECK(runs() == 66);
    hfsbi_checker_close(checker);
    drop_counters();
}

static void only_whole_results_are_remembered(void) {
    hfsb_buf       script = HFSB_INIT;
    hfsbi_checker *checker = open_with(fake_env, 0);
    forget_runs();
    T_CHECK(hfsb_buf_printf(&script,
                            "#!/bin/sh\nprintf x >> '%s/runs'\n"
                            "echo Invalid kwarg: x\n",
                            home) == HFSB_OK);
    put_program("python3", script.ptr);
    CHECK(checker, "a.py", "x", "Invalid kwarg: x\n");
    CHECK(checker, "a.py", "x", "Invalid kwarg: x\n");
    T_CHECK(runs() == 2);
    T_CHECK(hfsb_buf_append(&script, HFSB_LIT("kill -9 $$\n")) == HFSB_OK);
    put_program("dash", script.ptr);
    CHECK(checker, "a", "#!/bin/dash", "");
    CHECK(checker, "a", "#!/bin/dash", "");
    T_CHECK(runs() == 4);
    drop_program("python3");
    drop_program("dash");
    hfsb_buf_free(&script);
    hfsbi_checker_close(checker);
}

static void long_contents_are_not_given_to_programs(void) {
    hfsb_buf       text = HFSB_INIT;
    hfsbi_checker *checker = open_with(fake_env, 0);
    hfsb_buf       script = HFSB_INIT;
    T_CHECK(hfsb_buf_printf(&script, /* and which do not read it */
                            "#!/bin/sh\nprintf x >> '%s/runs'\necho .\n",
                            home) == HFSB_OK);
    put_program("python3", script.ptr);
    put_program("bash", script.ptr);
    forget_runs();
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("#!/bin/bash\nSFTConfig "
                                            "hub_model_id")) == HFSB_OK);
    t_repeat(&text, "\n", 1024);
    while (text.len < 1024 * 1024) {
        hfsb_str more =
            hfsb_str_slice(hfsb_buf_str(&text), text.len - 1024, text.len);
        size_t left = 1024 * 1024 - text.len;
        T_CHECK(hfsb_buf_append(&text, hfsb_str_slice(more, 0, left)) ==
                HFSB_OK);
    }
    check_at(__LINE__, checker, "a.py", hfsb_buf_str(&text), NO_PUSH);
    T_CHECK(runs() == 2);
    T_CHECK(hfsb_buf_append_byte(&text, '\n') == HFSB_OK);
    check_at(__LINE__, checker, "a.py", hfsb_buf_str(&text), NO_PUSH);
    T_CHECK(runs() == 2);
    drop_program("python3");
    drop_program("bash");
    hfsb_buf_free(&script);
    hfsb_buf_free(&text);
    hfsbi_checker_close(checker);
}

/* ---- the caller's checks ---- */

static hfsb_status own_check(void *user, hfsb_str path, hfsb_str content,
                             hfsb_buf *warnings) {
    T_CHECK(hfsb_buf_printf(warnings, "%s %.*s\n\n%.*s", (const char *)user,
                            (int)path.len, path.ptr, (int)content.len,
                            content.ptr) == HFSB_OK);
    return content.len ? HFSB_OK : HFSB_NOT_FOUND;
}

static void the_callers_checks_replace_the_built_in_ones(void) {
    static char      one[] = "one", two[] = "two";
    char             suffix[] = ".py";
    hfsb_tools_check checks[5];
    hfsbi_checker   *checker;
    memset(checks, 0, sizeof checks);
    checks[0].suffix = ".d.py";
    checks[0].fn = own_check;
    checks[0].user = two;
    checks[1].suffix = suffix;
    checks[1].fn = own_check;
    checks[1].user = one;
    checks[2].suffix = ".json"; /* off */
    checks[3] = checks[0];
    checks[3].suffix = ".json"; /* comes too late */
    checks[4] = checks[1];
    checks[4].suffix = ".sh";
    checker = hfsbi_checker_open(checks, 5, NULL);
    T_CHECK(checker != NULL);
    if (!checker) return;
    memset(checks, 0, sizeof checks); /* the list was copied */
    suffix[1] = 'x';
    CHECK(checker, "d/a.py", "SFTConfig", "one d/a.py\nSFTConfig\n");
    CHECK(checker, "d/a.d.py", "y\n", "two d/a.d.py\ny\n");
    CHECK(checker, "d/a.json", "[", "");
    CHECK(checker, "a.sh", "#!/bin/sh\nfi\n", "one a.sh\n#!/bin/sh\nfi\n");
    CHECK(checker, "d/a.py", "", ""); /* it failed */
    CHECK(checker, "d/a.xy", "y", "");
    CHECK(checker, "tsconfig.jso", "y", "");
    hfsbi_checker_close(checker);
    memset(checks, 0, sizeof checks); /* NULL is for every file */
    checker = hfsbi_checker_open(checks, 1, NULL);
    T_CHECK(checker != NULL);
    if (!checker) return;
    CHECK(checker, "a.json", "[", "");
    CHECK(checker, "a", "#!/bin/sh\nfi\n", "");
    hfsbi_checker_close(checker);
    hfsbi_checker_close(NULL);
}

/* ---- memory ---- */

static void warnings_that_do_not_fit_are_left_out(void) {
    hfsbi_checker *checker = open_with(empty_env, 0);
    hfsb_buf       got = HFSB_INIT;
    got.max = sizeof NO_PUSH + sizeof NO_ID - 3;
    hfsbi_checker_run(checker, NULL, HFSB_LIT("a.py"), HFSB_LIT("SFTConfig"),
                      &got);
    T_STR(got, NO_PUSH);
    hfsb_buf_free(&got);
    hfsbi_checker_close(checker);
}

/* Every line of got is one of those of want. */
static bool is_part_of(hfsb_str got, hfsb_str want) {
    hfsb_str line, other;
    while (hfsb_text_line(&got, &line, NULL)) {
        hfsb_str rest = want;
        bool     found = false;
        while (!found && hfsb_text_line(&rest, &other, NULL))
            found = hfsb_str_equal(line, other);
        if (!found) return false;
    }
    return true;
}

/* Without memory there are fewer warnings and no wrong ones; the failure is not
   remembered, so with memory again there are all of them. */
static void run_short_of_memory(hfsbi_checker *checker, const t_heap *heap,
                                hfsb_alloc alloc, const char *path,
                                hfsb_str text, hfsb_str want) {
    hfsb_buf got = HFSB_INIT;
    int      i;
    got.alloc = alloc;
    for (i = 0; i < 2; i++) {
        bool spent =
            !heap->fail_at || (!heap->forever && heap->calls >= heap->fail_at);
        hfsb_buf_truncate(&got, 0);
        hfsbi_checker_run(checker, NULL, hfsb_cstr(path), text, &got);
        T_CHECK(is_part_of(hfsb_buf_str(&got), want));
        if (spent) T_CHECK(hfsb_str_equal(hfsb_buf_str(&got), want));
    }
    hfsb_buf_free(&got);
}

static void check_short_of_memory(hfsb_alloc alloc, const t_heap *heap) {
    static char      one[] = "one";
    hfsb_tools_check checks[2];
    hfsbi_checker   *checker;
    memset(checks, 0, sizeof checks);
    checks[0].suffix = ".c";
    checks[1].suffix = ".h";
    checks[1].user = one;
    checker = hfsbi_checker_open(checks, 2, &alloc);
    T_CHECK(checker || heap->fail_at);
    if (!checker) return;
    checker->env = fake_env;
    run_short_of_memory(checker, heap, alloc, "a.json", HFSB_LIT("[}"),
                        HFSB_LIT("JSON error at line 1, column 2: expected a "
                                 "value, found '}'\n"));
    run_short_of_memory(
        checker, heap, alloc, "a.py", HFSB_LIT("#!/bin/bash\nSFTConfig"),
        HFSB_LIT("Invalid kwarg: a\nInvalid kwarg: b\n" NO_PUSH NO_ID
                 "Shell syntax error at line 3: x\n"));
    hfsbi_checker_close(checker);
}

static void every_allocation_may_fail(void) {
    put_program("python3", "#!/bin/sh\necho Invalid kwarg: a\n"
                           "echo Invalid kwarg: b\necho .\n");
    put_program("bash", "#!/bin/sh\necho /dev/stdin: 3: x >&2\n");
    t_each_allocation_fails(check_short_of_memory);
    drop_program("bash");
    drop_program("python3");
}

/* ---- threads ---- */

typedef struct worker {
    hfsbi_checker *checker;
    bool           failed;
} worker;

static void *work(void *user) {
    worker *w = (worker *)user;
    int     i;
    for (i = 0; i < 60; i++) {
        char     text[32], want[64];
        hfsb_buf got = HFSB_INIT;
        (void)snprintf(text, sizeof text, "n%d", i % 20);
        (void)snprintf(want, sizeof want, "Invalid kwarg: n%d\n", i % 20);
        hfsbi_checker_run(w->checker, NULL, HFSB_LIT("a.py"), hfsb_cstr(text),
                          &got);
        if (!hfsb_str_equal(hfsb_buf_str(&got), hfsb_cstr(want)))
            w->failed = true;
        hfsb_buf_free(&got);
    }
    return NULL;
}

static void threads_share_a_checker(void) {
    hfsbi_checker *checker = open_with(fake_env, 0);
    pthread_t      thread[2];
    worker         workers[2];
    int            i;
    put_counters();
    forget_runs();
    for (i = 0; i < 2; i++) {
        workers[i].checker = checker;
        workers[i].failed = false;
        T_CHECK(pthread_create(&thread[i], NULL, work, &workers[i]) == 0);
    }
    for (i = 0; i < 2; i++) {
        T_CHECK(pthread_join(thread[i], NULL) == 0);
        T_CHECK(!workers[i].failed);
    }
    T_CHECK(runs() >= 20 && runs() <= 40);
    drop_counters();
    hfsbi_checker_close(checker);
}

static void *work_slowly(void *user) {
    worker  *w = (worker *)user;
    hfsb_buf got = HFSB_INIT;
    hfsbi_checker_run(w->checker, NULL, HFSB_LIT("a.py"), HFSB_LIT("slow"),
                      &got);
    w->failed =
        !hfsb_str_equal(hfsb_buf_str(&got), HFSB_LIT("Invalid kwarg: slow\n"));
    hfsb_buf_free(&got);
    return NULL;
}

/* python3 answers one thread only when the other thread's check is done: with
   the lock held that would not be, until its timeout. */
static void a_program_that_runs_holds_up_no_other_thread(void) {
    hfsbi_checker *checker = open_with(fake_env, 60000);
    pthread_t      thread;
    worker         slow;
    int            i;
    put_counters();
    CHECK(checker, "a.py", "known", "Invalid kwarg: known\n");
    forget_runs();
    slow.checker = checker;
    slow.failed = false;
    T_CHECK(pthread_create(&thread, NULL, work_slowly, &slow) == 0);
    for (i = 0; i < 2000 && runs() == 0; i++) (void)poll(NULL, 0, 20);
    T_CHECK(runs() == 1);
    CHECK(checker, "a.py", "known", "Invalid kwarg: known\n");
    put_file("go", HFSB_LIT(""), 0600);
    T_CHECK(pthread_join(thread, NULL) == 0 && !slow.failed);
    drop_counters();
    hfsbi_checker_close(checker);
}

static void *cancel_the_first_run(void *cancel) {
    while (runs() == 0) (void)usleep(10000);
    hfsb_cancel_set((hfsb_cancel *)cancel);
    return NULL;
}

/* A program that takes long is killed, and its children with it; once the
   cancel is set, none is started. */
static void a_check_can_be_cancelled(void) {
    hfsbi_checker *checker = open_with(fake_env, 60000);
    hfsb_buf       got = HFSB_INIT, script = HFSB_INIT;
    long long      began = hfsb_clock_ms();
    pthread_t      thread;
    hfsb_cancel    cancel;
    hfsbi_cancel_init(&cancel);
    forget_runs();
    T_CHECK(hfsb_buf_printf(&script,
                            "#!/bin/sh\ntrap '' TERM\n"
                            "printf x >> '%s/runs'\nwhile :; do :; done\n",
                            home) == HFSB_OK);
    put_program("python3", script.ptr);
    T_CHECK(!pthread_create(&thread, NULL, cancel_the_first_run, &cancel));
    hfsbi_checker_run(checker, &cancel, HFSB_LIT("a.py"), HFSB_LIT("x = 1\n"),
                      &got);
    T_CHECK(pthread_join(thread, NULL) == 0);
    T_CHECK(got.len == 0 && hfsb_clock_ms() - began < 30000);
    hfsbi_checker_run(checker, &cancel, HFSB_LIT("a.py"), HFSB_LIT("x = 2\n"),
                      &got);
    T_CHECK(got.len == 0 && runs() == 1);
    drop_program("python3");
    hfsbi_cancel_free(&cancel);
    hfsb_buf_free(&script);
    hfsb_buf_free(&got);
    hfsbi_checker_close(checker);
}

int main(void) {
    make_home();
    T_RUN(check_reports_json_errors);
    T_RUN(the_first_line_says_which_shell);
    T_RUN(check_reports_shell_syntax_errors);
    T_RUN(shell_errors_are_parsed_in_every_form);
    T_RUN(each_content_is_looked_at_once);
    T_RUN(the_last_64_contents_are_remembered);
    T_RUN(only_whole_results_are_remembered);
    T_RUN(long_contents_are_not_given_to_programs);
    T_RUN(the_callers_checks_replace_the_built_in_ones);
    T_RUN(warnings_that_do_not_fit_are_left_out);
    T_RUN(every_allocation_may_fail);
    T_RUN(threads_share_a_checker);
    T_RUN(a_program_that_runs_holds_up_no_other_thread);
    T_RUN(a_check_can_be_cancelled);
    remove_tree(home);
    return T_END();
}
