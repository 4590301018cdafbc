/* Tests of src/check/check.c: which programs and modules a check runs. The
   tools write to `work`; whatever a write could have put there creates the
   file `ran` when it runs. */
#include "../support/t_check.h"

#define CALLS_EVIL "from evil import f\nf(a=1)\n"
#define EVIL_TOLD \
    "Invalid kwarg: f(a=...) at line 2 -- not accepted by evil.f()\n"
#define BROKEN      "def f(:\n    pass\n"
#define BROKEN_TOLD "Python syntax error at line 1: invalid syntax\n"

static char python[PATH_MAX]; /* the interpreter */
static char packages[64];     /* "lib/python3.11/site-packages" */

/* ---- what the tests share ---- */

/* Asks python3 for a line of text; false without python3. */
static bool ask_python(const char *code, char *out, size_t size) {
    hfsb_proc_opts   opts = HFSB_INIT;
    hfsb_proc_result result;
    const char      *argv[4];
    hfsb_buf         text = HFSB_INIT;
    bool             ok;
    argv[0] = "python3";
    argv[1] = "-c";
    argv[2] = code;
    argv[3] = NULL;
    opts.argv = argv;
    ok = hfsb_proc_run(&opts, &text, NULL, &result, NULL) == HFSB_OK &&
         text.len > 0 && text.len < size;
    if (ok) memcpy(out, text.ptr, text.len + 1);
    hfsb_buf_free(&text);
    return ok;
}

static bool have_python(void) {
    return have("python3") &&
           ask_python("import os, sys\n"
                      "print(os.path.realpath(sys.executable), end='')",
                      python, sizeof python) &&
           ask_python("import sys\nprint('lib/python%d.%d/site-packages' % "
                      "sys.version_info[:2], end='')",
                      packages, sizeof packages);
}

/* Makes a directory and those above it, beneath home. */
static void make_dirs(const char *name) {
    char  path[256];
    char *at;
    in_home(path, name);
    for (at = path + strlen(home) + 1; *at; at++) {
        if (*at != '/') continue;
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    (void)mkdir(path, 0700);
    T_CHECK(access(path, X_OK) == 0);
}

static void put_link(const char *target, const char *name) {
    char path[256];
    (void)unlink(in_home(path, name));
    T_CHECK(symlink(target, path) == 0);
}

/* Puts the file dir/name with text, in which %s is replaced by home. */
static void put_in(const char *dir, const char *name, const char *text,
                   mode_t mode) {
    char        path[128];
    hfsb_buf    all = HFSB_INIT;
    const char *at;
    T_CHECK(snprintf(path, sizeof path, "%s/%s", dir, name) <
            (int)sizeof path);
    while ((at = strstr(text, "%s")) != NULL) {
        T_CHECK(
            hfsb_buf_append(&all, hfsb_str_make(text, (size_t)(at - text))) ==
                HFSB_OK &&
            hfsb_buf_append(&all, hfsb_cstr(home)) == HFSB_OK);
        text = at + 2;
    }
    T_CHECK(hfsb_buf_append(&all, hfsb_cstr(text)) == HFSB_OK);
    put_file(path, hfsb_buf_str(&all), mode);
    hfsb_buf_free(&all);
}

/* A module called evil that has f. */
static void put_evil(const char *dir) {
    put_in(dir, "evil.py", "open('%s/ran', 'w')\ndef f(x): pass\n", 0644);
}

/* A virtual environment, as `python3 -m venv` makes it; *site is where its
   packages are. */
static void put_venv(const char *name, char site[128]) {
    char     path[128];
    hfsb_buf config = HFSB_INIT;
    T_CHECK(snprintf(site, 128, "%s/%s", name, packages) < 128);
    make_dirs(site);
    T_CHECK(snprintf(path, sizeof path, "%s/bin", name) < (int)sizeof path);
    make_dirs(path);
    T_CHECK(snprintf(path, sizeof path, "%s/bin/python3", name) <
            (int)sizeof path);
    put_link(python, path);
    T_CHECK(hfsb_buf_printf(&config,
                            "home = %.*s\n"
                            "include-system-site-packages = false\n",
                            (int)(strrchr(python, '/') - python),
                            python) == HFSB_OK);
    put_in(name, "pyvenv.cfg", config.ptr, 0644);
    hfsb_buf_free(&config);
}

static bool ran(void) {
    char path[256];
    bool yes = exists("ran");
    (void)unlink(in_home(path, "ran"));
    return yes;
}

typedef struct fixture {
    char           path[4600]; /* "PATH=": dir of home, then the real */
    const char    *env[4];
    hfsb_root    *place;
    hfsbi_checker *checker;
} fixture;

/* A checker for tools whose root or working directory is a directory of home,
   with another one in front of PATH. */
static void begin(fixture *x, const char *root, const char *work_dir,
                  const char *dir) {
    hfsb_root_opts where = HFSB_INIT;
    char            path[256], other[256];
    memset(x, 0, sizeof *x);
    T_CHECK((size_t)snprintf(x->path, sizeof x->path, "PATH=%s:%s",
                             in_home(path, dir),
                             path_fake + 5) < sizeof x->path);
    x->env[0] = x->path;
    if (root) where.root = hfsb_cstr(in_home(path, root));
    if (work_dir) where.work_dir = hfsb_cstr(in_home(other, work_dir));
    T_CHECK(hfsb_root_open(&where, &x->place, NULL) == HFSB_OK);
    x->checker = open_with(x->env, 0);
    x->checker->place = x->place;
}

static void end(fixture *x) {
    hfsbi_checker_close(x->checker);
    hfsb_root_close(x->place);
}

/* ---- the interpreter ---- */

static const struct place_case {
    const char *root, *work_dir, *path;
} place_cases[] = {
    {"work", NULL, "work/.venv/bin"},
    {"work", "work/sub", "work/.venv/bin"},
    {NULL, "work", "work/.venv/bin"},
    {"link", NULL, "work/.venv/bin"}, /* link -> work */
    {"link", NULL, "link/.venv/bin"},
    {"work", NULL, "link/.venv/bin"},
    {NULL, "link", "work/sub/../.venv/bin"},
    {"work", NULL, "linked-bin"},           /* -> work/.venv/bin */
    {"work", NULL, "work/linked-venv/bin"}, /* -> outer */
    {"work", NULL, "linked-one"}, /* python3 -> work/.venv/bin/python3 */
};

/* A standard library whose first module is ours: pyvenv.cfg says where it
   is, and no option of python3 keeps it from being loaded. */
static void put_evil_library(void) {
    char name[128];
    T_CHECK(snprintf(name, sizeof name, "work/fake/%s", packages) > 0);
    *strrchr(name, '/') = '\0';
    make_dirs("work/fake/bin");
    make_dirs(name);
    put_in(name, "os.py", "", 0644);
    T_CHECK(strlen(name) < 64);
    strcat(name, "/encodings");
    make_dirs(name);
    put_in(name, "__init__.py",
           "import posix\n"
           "posix.open('%s/ran', posix.O_CREAT | posix.O_WRONLY)\n",
           0644);
    put_in("work/.venv", "pyvenv.cfg", "home = %s/work/fake/bin\n", 0644);
}

static void a_venv_that_a_write_may_change_is_passed_over(void) {
    char    site[128], path[256];
    fixture x;
    size_t  i;
    bool    evil;
    if (!have_python()) return;
    put_venv("work/.venv", site);
    make_dirs("work/sub");
    make_dirs("linked-one");
    put_link("work", "link");
    put_link("work/.venv/bin", "linked-bin");
    put_link(in_home(path, "work/.venv/bin/python3"), "linked-one/python3");
    put_evil(site);
    put_in(site, "a.pth", "import os; open('%s/ran', 'w')\n", 0644);
    put_in(site, "sitecustomize.py", "open('%s/ran', 'w')\n", 0644);
    put_evil_library();
    put_venv("outer", site);
    put_evil(site);
    put_link("../outer", "work/linked-venv");
    for (i = 0; i < sizeof place_cases / sizeof *place_cases; i++) {
        begin(&x, place_cases[i].root, place_cases[i].work_dir,
              place_cases[i].path);
        CHECK(x.checker, "t.py", CALLS_EVIL, "");
        CHECK(x.checker, "t.py", BROKEN, BROKEN_TOLD); /* by the next one */
        evil = ran();
        if (evil) printf("with %s in PATH:\n", place_cases[i].path);
        T_CHECK(!evil);
        end(&x);
    }
}

/* bash -n is asked about scripts, and found in the same way. */
static void programs_that_a_write_may_change_are_passed_over(void) {
    static const char fake[] = "#!/bin/sh\ntouch '%s/ran'\n"
                               "echo Invalid kwarg: x; echo .\n"
                               "echo '/dev/stdin: 1: x' >&2\n";
    hfsb_root_opts    where = HFSB_INIT;
    const char       *more;
    char              path[256], first[256];
    fixture           x;
    make_dirs("work/bin");
    make_dirs("other");
    put_in("work/bin", "python3", fake, 0755);
    put_in("work/bin", "bash", fake, 0755);
    put_link(in_home(path, "work/bin/python3"), "other/python3");
    put_link(in_home(path, "work/bin/bash"), "other/bash");
    begin(&x, "work", NULL, "work/bin");
    CHECK(x.checker, "a.py", "#!/bin/bash\n", "");
    end(&x);
    begin(&x, "work", NULL, "other");
    CHECK(x.checker, "a.py", "#!/bin/bash\n", "");
    T_CHECK(!ran());
    end(&x);
    more = in_home(path, "work"); /* the second root */
    begin(&x, "lib", NULL, "work/bin");
    hfsb_root_close(x.place);
    where.root = hfsb_cstr(in_home(first, "lib"));
    where.more_roots = &more;
    where.more_root_count = 1;
    T_CHECK(hfsb_root_open(&where, &x.place, NULL) == HFSB_OK);
    x.checker->place = x.place;
    CHECK(x.checker, "a.py", "#!/bin/bash\n", "");
    T_CHECK(!ran());
    end(&x);
    /* a directory whose name only begins like the root's is not inside */
    make_dirs("work-too");
    put_in("work-too", "python3", fake, 0755);
    begin(&x, "work", NULL, "work-too");
    CHECK(x.checker, "a.py", "", "Invalid kwarg: x\n");
    T_CHECK(ran());
    end(&x);
}

/* Python loads its encodings from there before anything else. */
static void
a_root_among_the_libraries_of_a_program_keeps_it_from_running(void) {
    fixture x;
    make_dirs("opt/bin");
    make_dirs("opt/lib64/python3.9");
    make_dirs("opt/src");
    put_in("opt/bin", "python3", "#!/bin/sh\necho Invalid kwarg: x; echo .\n",
           0755);
    begin(&x, "opt/src", NULL, "opt/bin");
    CHECK(x.checker, "a.py", "", "Invalid kwarg: x\n");
    end(&x);
    begin(&x, "opt/lib64/python3.9", NULL, "opt/bin");
    CHECK(x.checker, "a.py", "", "");
    end(&x);
}

static void no_program_runs_when_the_root_is_everything(void) {
    hfsb_root_opts where = HFSB_INIT;
    fixture         x;
    char            old[PATH_MAX];
    put_program("python3", "#!/bin/sh\necho Invalid kwarg: x; echo .\n");
    begin(&x, NULL, NULL, "bin");
    hfsb_root_close(x.place);
    where.root = HFSB_LIT("/");
    T_CHECK(hfsb_root_open(&where, &x.place, NULL) == HFSB_OK);
    x.checker->place = x.place;
    CHECK(x.checker, "a.py", "", "");
    end(&x);
    /* but a server without a root may well have been started in "/" */
    T_CHECK(getcwd(old, sizeof old) && chdir("/") == 0);
    begin(&x, NULL, NULL, "bin");
    CHECK(x.checker, "a.py", "", "Invalid kwarg: x\n");
    end(&x);
    T_CHECK(chdir(in_home(x.path, "bin")) == 0); /* the current directory */
    begin(&x, NULL, NULL, "bin");
    CHECK(x.checker, "a.py", "x", "");
    end(&x);
    T_CHECK(chdir(old) == 0);
    drop_program("python3");
}

static void the_environment_of_a_program_mentions_nothing_inside(void) {
    char    inside[300], list[300], beside[300], want[1200], path[256];
    fixture x;
    make_dirs("work/bin");
    make_dirs("work-too");
    put_program("python3", "#!/bin/sh\n"
                           "echo \"Invalid kwarg: $INSIDE $LIST $BESIDE\"\n"
                           "echo \"Invalid kwarg: ${PATH%%:*}\"; echo .\n");
    begin(&x, "work", NULL, "work/bin");
    snprintf(inside, sizeof inside, "INSIDE=%s", in_home(path, "work"));
    snprintf(list, sizeof list, "LIST=/lib:%s:/x", in_home(path, "work/lib"));
    snprintf(beside, sizeof beside, "BESIDE=%s", in_home(path, "work-too"));
    x.env[0] = inside;
    x.env[1] = list;
    x.env[2] = beside;
    x.env[3] = NULL;
    CHECK(x.checker, "a.py", "", ""); /* no PATH: /bin and /usr/bin */
    end(&x);
    begin(&x, "work", NULL, "work/bin");
    x.env[0] = inside;
    x.env[1] = x.path;
    x.env[2] = beside;
    snprintf(want, sizeof want, "Invalid kwarg:   %s\nInvalid kwarg: %s/bin\n",
             in_home(path, "work-too"), home);
    CHECK(x.checker, "a.py", "x", want);
    end(&x);
    drop_program("python3");
}

/* ---- modules ---- */

static void modules_outside_are_imported(void) {
    char    site[128];
    fixture x;
    if (!have_python()) return;
    put_venv("venv", site);
    put_evil(site);
    begin(&x, "work", NULL, "venv/bin");
    CHECK(x.checker, "t.py", CALLS_EVIL, EVIL_TOLD);
    T_CHECK(ran());
    CHECK(x.checker, "t.py", "from textwrap import dedent as f\nf(a=1)\n",
          "Invalid kwarg: f(a=...) at line 2 -- not accepted by "
          "textwrap.dedent()\n");
    end(&x);
}

/* As where bash is not offered. */
static void no_module_is_imported_with_no_imports(void) {
    char    site[128];
    fixture x;
    if (!have_python()) return;
    put_venv("venv", site);
    put_evil(site);
    put_in(site, "a.pth", "import os; open('%s/ran', 'w')\n", 0644);
    put_in(site, "sitecustomize.py", "open('%s/ran', 'w')\n", 0644);
    begin(&x, "work", NULL, "venv/bin");
    x.checker->no_imports = true;
    CHECK(x.checker, "t.py", CALLS_EVIL, "");
    CHECK(x.checker, "t.py", BROKEN, BROKEN_TOLD);
    T_CHECK(!ran());
    end(&x);
}

/* The interpreter and its packages lie outside, but some of them lead in. */
static void modules_that_a_write_may_change_are_not_imported(void) {
    char    site[128], path[256], name[160];
    fixture x;
    if (!have_python()) return;
    put_venv("own", site);
    make_dirs("work/src/pack");
    put_evil("work/src");
    put_evil("work/src/pack");
    put_in("work/src/pack", "__init__.py", "open('%s/ran', 'w')\n", 0644);
    put_in(site, "src.pth", "%s/work/src\n", 0644);
    T_CHECK(snprintf(name, sizeof name, "%s/linked.py", site) > 0);
    put_link(in_home(path, "work/src/evil.py"), name);
    T_CHECK(snprintf(name, sizeof name, "%s/pack", site) > 0);
    put_link(in_home(path, "work/src/pack"), name);
    T_CHECK(setenv("PYTHONPATH", in_home(path, "work/src"), 1) == 0);
    begin(&x, "work", NULL, "own/bin");
    CHECK(x.checker, "t.py", CALLS_EVIL, "");
    CHECK(x.checker, "t.py", "from linked import f\nf(a=1)\n", "");
    CHECK(x.checker, "t.py", "from pack import evil as f\nf(a=1)\n", "");
    CHECK(x.checker, "t.py", "from pack.evil import f\nf(a=1)\n", "");
    T_CHECK(!ran());
    end(&x);
    T_CHECK(unsetenv("PYTHONPATH") == 0);
}

/* The module of the same name later in the path is found. */
static void directories_that_a_write_may_change_leave_the_path(void) {
    fixture x;
    if (!have_python()) return;
    put_in("bin", "python3",
           "#!/bin/sh\ncode=\"import sys\n"
           "sys.path[:0] = ['%s/work', '%s/lib']\n$4\"\n"
           "PATH=${PATH#*:}; shift 4\n"
           "exec python3 -I -S -c \"$code\" \"$@\"\n",
           0755);
    put_in("work", "evil.py", "open('%s/ran', 'w')\ndef f(a): pass\n", 0644);
    put_in("lib", "evil.py", "def f(x): pass\n", 0644);
    begin(&x, "work", NULL, "bin");
    CHECK(x.checker, "t.py", CALLS_EVIL, EVIL_TOLD);
    T_CHECK(!ran());
    end(&x);
    drop_program("python3");
}

/* Someone works on an installed package. */
static void a_package_that_is_the_root_is_not_imported(void) {
    char    site[128], pack[160];
    fixture x;
    if (!have_python()) return;
    put_venv("installed", site);
    put_evil(site);
    T_CHECK(snprintf(pack, sizeof pack, "%s/pack", site) > 0);
    make_dirs(pack);
    put_in(pack, "__init__.py", "open('%s/ran', 'w')\n", 0644);
    put_in(pack, "part.py", "open('%s/ran', 'w')\ndef f(x): pass\n", 0644);
    begin(&x, pack, NULL, "installed/bin");
    CHECK(x.checker, "t.py", "from pack.part import f\nf(a=1)\n", "");
    T_CHECK(!ran());
    CHECK(x.checker, "t.py", CALLS_EVIL, EVIL_TOLD); /* the one beside it */
    T_CHECK(ran());
    end(&x);
}

int main(void) {
    find_python();
    make_home();
    T_RUN(a_venv_that_a_write_may_change_is_passed_over);
    T_RUN(programs_that_a_write_may_change_are_passed_over);
    T_RUN(a_root_among_the_libraries_of_a_program_keeps_it_from_running);
    T_RUN(no_program_runs_when_the_root_is_everything);
    T_RUN(the_environment_of_a_program_mentions_nothing_inside);
    T_RUN(modules_outside_are_imported);
    T_RUN(no_module_is_imported_with_no_imports);
    T_RUN(modules_that_a_write_may_change_are_not_imported);
    T_RUN(directories_that_a_write_may_change_leave_the_path);
    T_RUN(a_package_that_is_the_root_is_not_imported);
    remove_tree(home);
    return T_END();
}
