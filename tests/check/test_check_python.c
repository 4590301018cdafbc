/* test_check_python.c - the warnings about a Python file. */
#include "../support/t_check.h"

/* ---- Python ---- */

static void check_reports_python_syntax_errors(void) {
    static const text_case cases[] = {
        {__LINE__, "x = 1\n", ""},
        {__LINE__, "", ""},
        {__LINE__, "def f(:\n    pass\n",
         "Python syntax error at line 1: invalid syntax\n"},
        {__LINE__, "x = 1\n  y = 2\n",
         "Python syntax error at line 2: unexpected indent\n"},
        {__LINE__, "if x:\n\ty\n        z\n",
         "Python syntax error at line 3: inconsistent use of tabs and spaces "
         "in indentation\n"},
        {__LINE__, "x = 1\n\nreturn x\n",
         "Python syntax error at line 3: 'return' outside function\n"},
        {__LINE__, "for x in y:\n    pass\nbreak\n",
         "Python syntax error at line 3: 'break' outside loop\n"},
        /* no other warning then */
        {__LINE__,
         "from textwrap import dedent\ndedent(a=1)\n"
         "x = TrainingArguments()\nreturn\n",
         "Python syntax error at line 4: 'return' outside function\n"},
        /* encodings */
        {__LINE__, "\xEF\xBB\xBFx = '\xC3\xA9'\n", ""},
        {__LINE__, "# coding: latin-1\nx = '\xE9'\n", ""},
        {__LINE__, "# coding: none-such\n",
         "Python syntax error at line 1: unknown encoding: none-such\n"},
        {__LINE__, "a = 1\nb = 2\nx = '\xFF'\n",
         "Python syntax error at line 3: (unicode error) 'utf-8' codec can't "
         "decode byte 0xff in position 17: invalid start byte\n"}};
    hfsbi_checker *checker;
    size_t         i;
    if (!have("python3")) return;
    checker = open_with(NULL, 0);
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        check_at(cases[i].line, checker, "dir.x/a.py",
                 hfsb_cstr(cases[i].text), cases[i].want);
    check_at(__LINE__, checker, "a.py", HFSB_LIT("x = 1\ny = '\0'\n"),
             "Python syntax error at line 2: source code string cannot "
             "contain null bytes\n");
    hfsbi_checker_close(checker);
}

/* Nesting that no parser takes: an error, or nothing, but never a failure. */
static void deep_nesting_is_survived(void) {
    hfsbi_checker *checker;
    hfsb_buf       text = HFSB_INIT, got = HFSB_INIT;
    if (!have("python3")) return;
    checker = open_with(NULL, 0);
    t_repeat(&text, "-", 100000);
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("1\n")) == HFSB_OK);
    hfsbi_checker_run(checker, NULL, HFSB_LIT("a.py"), hfsb_buf_str(&text),
                      &got);
    T_STR(got, "");
    hfsb_buf_truncate(&text, 0);
    t_repeat(&text, "(", 3000);
    hfsbi_checker_run(checker, NULL, HFSB_LIT("a.py"), hfsb_buf_str(&text),
                      &got);
    T_CHECK(got.len == 0 || hfsb_str_starts(hfsb_buf_str(&got),
                                            HFSB_LIT("Python syntax error at "
                                                     "line 1: ")));
    hfsb_buf_free(&text);
    hfsb_buf_free(&got);
    hfsbi_checker_close(checker);
}

#define NOT_TAKEN(call, line, by) \
    "Invalid kwarg: " call " at line " line " -- not accepted by " by "()\n"

static const text_case keyword_cases[] = {
    {__LINE__, "from textwrap import dedent\ndedent(text='x')\n", ""},
    {__LINE__, "from textwrap import dedent\n\ndedent(txt='x')\n",
     NOT_TAKEN("dedent(txt=...)", "3", "textwrap.dedent")},
    {__LINE__, "from textwrap import dedent as d\nd(a=1, text=2, b=3)\n",
     NOT_TAKEN("d(a=...)", "2", "textwrap.dedent")
         NOT_TAKEN("d(b=...)", "2", "textwrap.dedent")},
    /* a class is called through its constructor */
    {__LINE__, "from subprocess import Popen\nPopen([], shel=1)\n",
     NOT_TAKEN("Popen(shel=...)", "2", "subprocess.Popen")},
    /* a module inside of a package */
    {__LINE__, "from os.path import commonpath as c\nc(a=1)\n",
     NOT_TAKEN("c(a=...)", "2", "os.path.commonpath")},
    /* by the last attribute, whatever precedes it */
    {__LINE__, "from textwrap import dedent\nx.y().dedent(a=1)\n",
     NOT_TAKEN("dedent(a=...)", "2", "textwrap.dedent")},
    /* any keyword may come with **, or may be taken as **kwargs */
    {__LINE__, "from textwrap import dedent\ndedent(a=1, **x)\n", ""},
    {__LINE__, "from textwrap import fill\nfill('', a=1)\n", ""},
    /* only names that the file imports, from a module that is there */
    {__LINE__, "def dedent(text): pass\ndedent(a=1)\nprint(a=1)\n", ""},
    {__LINE__, "from none_such import f\nf(a=1)\n", ""},
    {__LINE__, "from textwrap import none_such\nnone_such(a=1)\n", ""},
    {__LINE__, "from textwrap import *\ndedent(a=1)\n", ""},
    {__LINE__, "from .textwrap import dedent\ndedent(a=1)\n", ""},
    {__LINE__, "from . import textwrap\ntextwrap(a=1)\n", ""},
    /* a module is not called, and hides no function of its own */
    {__LINE__, "import textwrap, os.path as z\ntextwrap(a=1)\nz(a=1)\n", ""},
    {__LINE__, "import textwrap\ntextwrap.dedent(a=1)\n", ""},
    /* what cannot be inspected */
    {__LINE__, "from builtins import dict as d, None_ as n\nd(a=1)\n", ""},
    /* imported anywhere, the last in the tree's order of levels wins */
    {__LINE__, "def f():\n    from textwrap import dedent\n\ndedent(a=1)\n",
     NOT_TAKEN("dedent(a=...)", "4", "textwrap.dedent")},
    {__LINE__,
     "from textwrap import dedent as g\n"
     "from colorsys import rgb_to_hls as g\ng(text=1, r=2)\n",
     NOT_TAKEN("g(text=...)", "3", "colorsys.rgb_to_hls")},
    {__LINE__,
     "from textwrap import dedent\n"
     "if x:\n    from .own import dedent\ndedent(a=1)\n",
     ""},
    /* level by level, and training last */
    {__LINE__,
     "from textwrap import dedent\n"
     "def f():\n    return dedent(a=1)\n"
     "dedent(b=dedent(c=1))\nx = SFTConfig(hub_model_id='')\n",
     NOT_TAKEN("dedent(b=...)", "4", "textwrap.dedent")
         NOT_TAKEN("dedent(a=...)", "3", "textwrap.dedent")
             NOT_TAKEN("dedent(c=...)", "4",
                       "textwrap.dedent") "Training script warning: no "
                                          "'push_to_hub' found\n"},
    {__LINE__, "from textwrap import dedent\ndedent(\xC3\xA9=1)\n",
     NOT_TAKEN("dedent(\xC3\xA9=...)", "2", "textwrap.dedent")}};

static void check_reports_unknown_keyword_arguments(void) {
    hfsbi_checker *checker;
    size_t         i;
    if (!have("python3")) return;
    checker = open_with(NULL, 0);
    for (i = 0; i < sizeof keyword_cases / sizeof *keyword_cases; i++)
        check_at(keyword_cases[i].line, checker, "a.py",
                 hfsb_cstr(keyword_cases[i].text), keyword_cases[i].want);
    hfsbi_checker_close(checker);
}

static void reports_training_scripts_that_push_nothing_without_python(void) {
    static const text_case cases[] = {
        {__LINE__, "x = 1\n", ""},
        {__LINE__, "TrainingArguments(", NO_PUSH NO_ID},
        {__LINE__, "# SFTConfig", NO_PUSH NO_ID},
        {__LINE__, "DPOConfig", NO_PUSH NO_ID},
        {__LINE__, "aGRPOConfigs", NO_PUSH NO_ID},
        {__LINE__, "GRPOConfig push_to_hub", NO_ID},
        {__LINE__, "hub_model_id GRPOConfig", NO_PUSH},
        {__LINE__, "push_to_hub hub_model_id GRPOConfig", ""},
        {__LINE__, "Trainingarguments PPOConfig", ""}};
    hfsbi_checker *checker = open_with(empty_env, 0);
    size_t         i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        check_at(cases[i].line, checker, "/a/b.py", hfsb_cstr(cases[i].text),
                 cases[i].want);
    CHECK(checker, "/a/b.txt", "SFTConfig", "");
    CHECK(checker, "b.PY", "SFTConfig", "");
    CHECK(checker, "b.py/c", "SFTConfig", "");
    CHECK(checker, ".py", "SFTConfig", "");
    CHECK(checker, "a/.py", "SFTConfig", "");
    CHECK(checker, "", "SFTConfig", "");
    hfsbi_checker_close(checker);
}

/* ---- modules that do what they should not ---- */

/* Goes between the checker and python3, and puts a directory of modules on
   its path, and some relative ones that must go again. */
static void put_wrapper(void) {
    hfsb_buf script = HFSB_INIT;
    T_CHECK(hfsb_buf_printf(&script,
                            "#!/bin/sh\n"
                            "[ \"$1 $2 $3\" = '-I -S -c' ] || exit 9\n"
                            "PATH=${PATH#*:}\n"
                            "[ \"$(pwd)\" = / ] || exit 8\n"
                            "code=\"import sys\n"
                            "sys.path[:0] = ['', '.', '%s/lib']\n$4\"\n"
                            "shift 4\n"
                            "cd '%s/work' && "
                            "exec python3 -I -S -c \"$code\" \"$@\"\n",
                            home, home) == HFSB_OK);
    put_program("python3", script.ptr);
    hfsb_buf_free(&script);
}

static void modules_cannot_disturb_the_check(void) {
#define AFTER NOT_TAKEN("dedent(b=...)", "4", "textwrap.dedent")
    static const text_case cases[] = {
        /* a module that has f; warnings */
        {__LINE__, "def f(x): pass\n",
         NOT_TAKEN("f(a=...)", "3", "hostile.f") AFTER},
        {__LINE__,
         "import os, sys\n"
         "print('Invalid kwarg: printed')\nsys.stdout.flush()\n"
         "os.write(1, b'Invalid kwarg: written\\n')\n"
         "os.system('echo Invalid kwarg: said')\n"
         "def f(x): pass\n",
         NOT_TAKEN("f(a=...)", "3", "hostile.f") AFTER},
        {__LINE__, "raise SystemExit(3)\n", AFTER},
        {__LINE__, "raise KeyboardInterrupt\n", AFTER},
        {__LINE__, "raise ImportError\n", AFTER},
        {__LINE__, "def f(:\n", AFTER},
        {__LINE__,
         "class S:\n  @property\n  def __signature__(self):\n"
         "    raise MemoryError\n"
         "  def __call__(self): pass\nf = S()\n",
         AFTER},
        {__LINE__,
         "import sys\nsys.stdin.read()\nsys.stdin.close()\n"
         "sys.stdout.close()\nsys.stderr.close()\n",
         AFTER},
        {__LINE__,
         "import threading, time\n"
         "threading.Thread(target=time.sleep, args=(60,)).start()\n",
         AFTER},
        {__LINE__, "import atexit, time\natexit.register(time.sleep, 60)\n",
         AFTER},
        {__LINE__, "import os\nos.fork()\ndef f(x): pass\n",
         NOT_TAKEN("f(a=...)", "3", "hostile.f") AFTER},
        {__LINE__, "import os\nos.write = os.getpid = os._exit = None\n",
         AFTER},
        {__LINE__,
         "import sys\nsys.path.insert(0, '')\n"
         "sys.setrecursionlimit(10000)\n",
         AFTER},
        {__LINE__, "import os\nos._exit(0)\n", ""},
        {__LINE__, "import os\nos.closerange(0, 100)\n", ""},
        {__LINE__, "import os, signal\nos.kill(os.getpid(), 9)\n", ""}};
    static const char text[] = "from hostile import f\n"
                               "from textwrap import dedent\n"
                               "f(a=1)\ndedent(b=1)\n";
    hfsbi_checker    *checker;
    size_t            i;
    if (!have("python3")) return;
    put_wrapper();
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file("lib/hostile.py", hfsb_cstr(cases[i].text), 0644);
        checker = open_with(fake_env, 0);
        check_at(cases[i].line, checker, "a.py", hfsb_cstr(text),
                 cases[i].want);
        hfsbi_checker_close(checker);
    }
    drop_program("python3");
}

static void what_modules_start_is_ended(void) {
    hfsbi_checker *checker;
    hfsb_buf       module = HFSB_INIT;
    int            i;
    if (!have("python3")) return;
    put_wrapper();
    checker = open_with(fake_env, 0);
    T_CHECK(hfsb_buf_printf(&module,
                            "import os, time\n"
                            "open('%s/begun', 'w')\n"
                            "if os.fork() == 0:\n    time.sleep(1)\n"
                            "    open('%s/late', 'w')\n"
                            "def f(x): pass\n",
                            home, home) == HFSB_OK);
    put_file("lib/forker.py", hfsb_buf_str(&module), 0644);
    CHECK(checker, "a.py", "from forker import f\nf(a=1)\n",
          NOT_TAKEN("f(a=...)", "2", "forker.f"));
    T_CHECK(exists("begun"));
    for (i = 0; i < 13 && !exists("late"); i++) (void)poll(NULL, 0, 100);
    T_CHECK(!exists("late"));
    drop_program("python3");
    hfsb_buf_free(&module);
    hfsbi_checker_close(checker);
}

static void only_modules_of_calls_with_keywords_are_imported(void) {
    hfsbi_checker *checker;
    hfsb_buf       module = HFSB_INIT;
    if (!have("python3")) return;
    put_wrapper();
    checker = open_with(fake_env, 0);
    T_CHECK(hfsb_buf_printf(&module, "open('%s/mark', 'w')\ndef f(x): pass\n",
                            home) == HFSB_OK);
    put_file("lib/marker.py", hfsb_buf_str(&module), 0644);
    CHECK(checker, "a.py",
          "import marker\nfrom marker import f, g\nf(1)\n"
          "def f(a=1): pass\nf(*x)\nf(1, **x)\n",
          "");
    T_CHECK(!exists("mark"));
    CHECK(checker, "a.py", "from marker import f\nf(a=1)\n",
          NOT_TAKEN("f(a=...)", "2", "marker.f"));
    T_CHECK(exists("mark"));
    drop_program("python3");
    hfsb_buf_free(&module);
    hfsbi_checker_close(checker);
}

/* Whatever a module does when it is imported, it changes no file and reaches
   nobody. */
static void a_module_can_neither_write_nor_connect(void) {
    hfsbi_checker *checker;
    hfsb_buf       module = HFSB_INIT;
    if (!have("python3") || hfsbi_landlock_abi() == 0 ||
        !hfsbi_seccomp_works())
        return;
    put_wrapper();
    checker = open_with(fake_env, 0);
    hfsb_confine_close(checker->confine);
    checker->confine = NULL; /* as it is outside tests */
    T_CHECK(hfsb_buf_printf(
                &module,
                "import socket\n"
                "def tried(fn, *args):\n"
                "    try:\n"
                "        fn(*args)\n"
                "        return 'done'\n"
                "    except OSError as e:\n"
                "        return 'refused'\n"
                "a = tried(open, '%s/trace', 'w')\n"
                "b = tried(socket.socket)\n"
                "exec('def f(%%s_%%s): pass' %% (a, b))\n",
                home) == HFSB_OK);
    put_file("lib/marker.py", hfsb_buf_str(&module), 0644);
    CHECK(checker, "a.py", "from marker import f\nf(refused_refused=1)\n", "");
    CHECK(checker, "a.py", "from marker import f\nf(done_done=1)\n",
          NOT_TAKEN("f(done_done=...)", "2", "marker.f"));
    T_CHECK(!exists("trace"));
    drop_program("python3");
    hfsb_buf_free(&module);
    hfsbi_checker_close(checker);
}

/* Its signatures are known after that, until its file changes. */
static void a_module_is_imported_once(void) {
    hfsbi_checker *checker;
    hfsb_buf       module = HFSB_INIT;
    if (!have("python3")) return;
    put_wrapper();
    forget_runs();
    checker = open_with(fake_env, 0);
    T_CHECK(hfsb_buf_printf(&module,
                            "open('%s/runs', 'a').write('x')\n"
                            "def f(x): pass\n",
                            home) == HFSB_OK);
    put_file("lib/counted.py", hfsb_buf_str(&module), 0644);
    CHECK(checker, "a.py", "from counted import f\nf(a=1)\n",
          NOT_TAKEN("f(a=...)", "2", "counted.f"));
    CHECK(checker, "a.py", "from counted import f\n\nf(b=1)\n",
          NOT_TAKEN("f(b=...)", "3", "counted.f"));
    T_CHECK(runs() == 1);
    T_CHECK(hfsb_buf_append(&module, HFSB_LIT("def f(b): pass\n")) ==
            HFSB_OK);
    put_file("lib/counted.py", hfsb_buf_str(&module), 0644);
    CHECK(checker, "a.py", "from counted import f\nf(a=1, b=1)\n",
          NOT_TAKEN("f(a=...)", "2", "counted.f"));
    T_CHECK(runs() == 2);
    drop_program("python3");
    hfsb_buf_free(&module);
    hfsbi_checker_close(checker);
}

/* The wrapper starts python3 in `work`, with "" and "." on its path. */
static void nothing_is_imported_from_the_work_directory(void) {
    static const char text[] = "from evil import f\nf(a=1)\n";
    hfsbi_checker    *checker;
    hfsb_buf          module = HFSB_INIT;
    char              path[256], old[PATH_MAX];
    if (!have("python3")) return;
    T_CHECK(getcwd(old, sizeof old) != NULL);
    T_CHECK(chdir(in_home(path, "work")) == 0);
    T_CHECK(hfsb_buf_printf(&module, "open('%s/evil', 'w')\ndef f(x): pass\n",
                            home) == HFSB_OK);
    put_file("work/evil.py", hfsb_buf_str(&module), 0644);
    put_file("work/inspect.py", hfsb_buf_str(&module), 0644);
    T_CHECK(setenv("PYTHONPATH", path, 1) == 0);
    checker = open_with(NULL, 0);
    CHECK(checker, "a.py", text, "");
    T_CHECK(!exists("evil"));
    hfsbi_checker_close(checker);
    put_wrapper();
    checker = open_with(fake_env, 0);
    CHECK(checker, "a.py", text, "");
    T_CHECK(!exists("evil"));
    hfsbi_checker_close(checker);
    drop_program("python3");
    T_CHECK(unsetenv("PYTHONPATH") == 0 && chdir(old) == 0);
    hfsb_buf_free(&module);
}

/* ---- a python3 that is not what it should be ---- */

static void a_python3_that_is_not_there_is_no_matter(void) {
    hfsbi_checker *checker = open_with(empty_env, 0);
    CHECK(checker, "a.py", "def f(:\n", "");
    CHECK(checker, "a.sh", "#!/bin/sh\nfi\n", "");
    hfsbi_checker_close(checker);
    put_program("python3", "#!/no/such/program\n");
    checker = open_with(fake_env, 0);
    CHECK(checker, "a.py", "SFTConfig push_to_hub", NO_ID);
    hfsbi_checker_close(checker);
    drop_program("python3");
}

static void a_python3_that_hangs_is_ended(void) {
    hfsbi_checker *checker = open_with(fake_env, 900);
    long long      start = hfsb_clock_ms();
    put_program("python3", "#!/bin/sh\ntrap '' TERM\nsleep 60 & wait\n"
                           "sleep 60\n");
    CHECK(checker, "a.py", "SFTConfig push_to_hub", NO_ID);
    put_program("python3", "#!/bin/sh\necho Invalid kwarg: before\n"
                           "printf 'Invalid kwarg: half'; sleep 60\n");
    checker->timeout_ms = 4000; /* the time to print that */
    CHECK(checker, "a.py", "x", "Invalid kwarg: before\n");
    T_CHECK(hfsb_clock_ms() - start < 40000);
    checker->timeout_ms = 30000;
    /* it may end next time, so that is not remembered */
    put_program("python3", "#!/bin/sh\necho Invalid kwarg: now; echo .\n");
    CHECK(checker, "a.py", "x", "Invalid kwarg: now\n");
    drop_program("python3");
    hfsbi_checker_close(checker);
}

static void what_a_python3_prints_is_not_trusted(void) {
    static const text_case cases[] = {
        /* for printf; warnings */
        {__LINE__, "", ""},
        {__LINE__, "hello\\nPython syntax\\n\\n.\\n", ""},
        {__LINE__, "Invalid kwarg: no end of the line", ""},
        {__LINE__, "x\\nInvalid kwarg: a\\n", "Invalid kwarg: a\n"},
        {__LINE__, ".\\nInvalid kwarg: after the end\\n", ""},
        {__LINE__, "Invalid kwarg: \\377\\033[1m\\001\\tx\\r\\n",
         "Invalid kwarg: \xEF\xBF\xBD [1m  x\n"},
        {__LINE__, "Python syntax error at line 7: x\\n.\\n",
         "Python syntax error at line 7: x\n"}};
    hfsb_buf       script = HFSB_INIT;
    hfsbi_checker *checker;
    size_t         i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_buf_truncate(&script, 0);
        T_CHECK(hfsb_buf_printf(&script,
                                "#!/bin/sh\necho Invalid kwarg: error >&2\n"
                                "printf '%s'\nexit 5\n",
                                cases[i].text) == HFSB_OK);
        put_program("python3", script.ptr);
        checker = open_with(fake_env, 0);
        check_at(cases[i].line, checker, "a.py", HFSB_LIT("x"), cases[i].want);
        hfsbi_checker_close(checker);
    }
    drop_program("python3");
    hfsb_buf_free(&script);
}

static void a_flood_of_output_is_bounded(void) {
    hfsbi_checker *checker = open_with(fake_env, 3000);
    hfsb_buf       got = HFSB_INIT, text = HFSB_INIT;
    hfsb_str       all, line;
    long long      start = hfsb_clock_ms();
    put_program("python3", "#!/bin/sh\nexec yes Invalid kwarg: x\n");
    hfsbi_checker_run(checker, NULL, HFSB_LIT("a.py"), HFSB_LIT("x"), &got);
    T_CHECK(got.len > 60 * 1024 && got.len <= 64 * 1024);
    for (all = hfsb_buf_str(&got); hfsb_text_line(&all, &line, NULL);)
        if (!hfsb_str_equal(line, HFSB_LIT("Invalid kwarg: x"))) break;
    T_CHECK(all.len == 0);
    /* one line without end; and a line far too long */
    put_program("python3", "#!/bin/sh\nexec tr '\\0' x < /dev/zero\n");
    hfsb_buf_truncate(&got, 0);
    hfsbi_checker_run(checker, NULL, HFSB_LIT("a.py"), HFSB_LIT("x"), &got);
    T_STR(got, "");
    checker->timeout_ms = 30000;
    put_program("python3", "#!/bin/sh\nprintf 'Invalid kwarg: '\n"
                           "head -c 20000 /dev/zero | tr '\\0' x\necho\n");
    hfsbi_checker_run(checker, NULL, HFSB_LIT("a.py"), HFSB_LIT("x"), &got);
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("Invalid kwarg: ")) == HFSB_OK);
    t_repeat(&text, "x", 385);
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("...\n")) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&got), hfsb_buf_str(&text)));
    T_CHECK(hfsb_clock_ms() - start < 40000);
    drop_program("python3");
    hfsb_buf_free(&got);
    hfsb_buf_free(&text);
    hfsbi_checker_close(checker);
}

int main(void) {
    find_python();
    make_home();
    T_RUN(check_reports_python_syntax_errors);
    T_RUN(deep_nesting_is_survived);
    T_RUN(check_reports_unknown_keyword_arguments);
    T_RUN(reports_training_scripts_that_push_nothing_without_python);
    T_RUN(modules_cannot_disturb_the_check);
    T_RUN(what_modules_start_is_ended);
    T_RUN(only_modules_of_calls_with_keywords_are_imported);
    T_RUN(a_module_can_neither_write_nor_connect);
    T_RUN(a_module_is_imported_once);
    T_RUN(nothing_is_imported_from_the_work_directory);
    T_RUN(a_python3_that_is_not_there_is_no_matter);
    T_RUN(a_python3_that_hangs_is_ended);
    T_RUN(what_a_python3_prints_is_not_trusted);
    T_RUN(a_flood_of_output_is_bounded);
    remove_tree(home);
    return T_END();
}
