/* t_check.h - what the tests of CHECK share: a directory with programs that
   replace python3 and the shells, and the comparison of warnings. */
#ifndef T_CHECK_H
#define T_CHECK_H
#include "t.h"
#ifdef HFSBI_SPLIT
#include "../../src/tools/tools_private.h"
#endif

#define NO_PUSH "Training script warning: no 'push_to_hub' found\n"
#define NO_ID   "Training script warning: no 'hub_model_id' found\n"

static char home[] = "/tmp/hfsb-check-XXXXXX"; /* this run's directory */
static char path_fake[4200];  /* "PATH=": programs of ours, then the real */
static char path_empty[4200]; /* "PATH=": a directory with nothing in it */
HFSBI_UNUSED static const char *fake_env[] = {path_fake, NULL};
HFSBI_UNUSED static const char *empty_env[] = {path_empty, NULL};

HFSBI_UNUSED static const char *in_home(char out[256], const char *name) {
    T_CHECK(snprintf(out, 256, "%s/%s", home, name) < 256);
    return out;
}

HFSBI_UNUSED static void put_file(const char *name, hfsb_str text,
                                  mode_t mode) {
    char path[256];
    int  fd;
    (void)unlink(in_home(path, name));
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    T_CHECK(fd >= 0 && hfsbi_write_all(fd, text) && fchmod(fd, mode) == 0);
    hfsbi_close(&fd);
}

HFSBI_UNUSED static void put_program(const char *name, const char *script) {
    char path[64];
    T_CHECK(snprintf(path, sizeof path, "bin/%s", name) < (int)sizeof path);
    put_file(path, hfsb_cstr(script), 0755);
}

HFSBI_UNUSED static void drop_program(const char *name) {
    char path[256];
    T_CHECK(snprintf(path, sizeof path, "%s/bin/%s", home, name) <
            (int)sizeof path);
    T_CHECK(unlink(path) == 0);
}

HFSBI_UNUSED static bool exists(const char *name) {
    char path[256];
    return access(in_home(path, name), F_OK) == 0;
}

/* How often the program of ours wrote a byte to the file `runs`. */
HFSBI_UNUSED static size_t runs(void) {
    char     path[256];
    hfsb_buf text = HFSB_INIT;
    size_t   n;
    (void)t_read_file(in_home(path, "runs"), &text);
    n = text.len;
    hfsb_buf_free(&text);
    return n;
}

HFSBI_UNUSED static void forget_runs(void) {
    char path[256];
    (void)unlink(in_home(path, "runs"));
}

/* Lets the programs of a checker write, so that they can leave a trace. */
HFSBI_UNUSED static void let_checks_write(hfsbi_checker *checker) {
    hfsb_confine_opts none = HFSB_INIT;
    none.alloc = checker->alloc;
    T_CHECK(hfsb_confine_open(&none, &checker->confine, NULL) == HFSB_OK);
}

HFSBI_UNUSED static hfsbi_checker *open_with(const char *const *env,
                                             long long          timeout_ms) {
    hfsbi_checker *checker = hfsbi_checker_open(NULL, 0, NULL);
    T_CHECK(checker != NULL && checker->timeout_ms == 10000);
    if (!checker) abort();
    checker->env = env;
    checker->timeout_ms = timeout_ms ? timeout_ms : 30000; /* a busy machine */
    let_checks_write(checker);
    return checker;
}

/* Compares the warnings, which must follow the content of the buffer. */
HFSBI_UNUSED static void check_at(int line, hfsbi_checker *checker,
                                  const char *path, hfsb_str content,
                                  const char *want) {
    hfsb_str exact = t_exact(content.ptr, content.len);
    hfsb_str name = t_exact(path, strlen(path));
    hfsb_buf got = HFSB_INIT, all = HFSB_INIT;
    T_CHECK(hfsb_buf_append(&got, HFSB_LIT("was\n")) == HFSB_OK);
    T_CHECK(hfsb_buf_printf(&all, "was\n%s", want) == HFSB_OK);
    hfsbi_checker_run(checker, NULL, name, exact, &got);
    t_str(__FILE__, line, got.ptr, got.len, all.ptr, all.len);
    hfsb_buf_free(&got);
    hfsb_buf_free(&all);
    t_drop(exact);
    t_drop(name);
}
#define CHECK(checker, path, content, want) \
    check_at(__LINE__, checker, path, hfsb_cstr(content), want)

/* True when `program` can be run; else the test is counted as skipped. */
HFSBI_UNUSED static bool have(const char *program) {
    hfsb_proc_opts   opts = HFSB_INIT;
    hfsb_proc_result result;
    const char      *argv[4];
    argv[0] = program;
    argv[1] = "-c";
    argv[2] = "exit()"; /* Python, and a syntax error for a shell */
    argv[3] = NULL;
    opts.argv = argv;
    if (hfsb_proc_run(&opts, NULL, NULL, &result, NULL) == HFSB_OK)
        return true;
    printf("%s: skipped: there is no %s\n", t_name, program);
    t_skipped++;
    return false;
}

typedef struct text_case {
    int         line;
    const char *text, *want;
} text_case;

/* ---- begin and end ---- */

/* Puts the directory where python3 really is in front of $PATH: the shims of
   version managers would take most of the time. */
HFSBI_UNUSED static void find_python(void) {
    hfsb_proc_opts   opts = HFSB_INIT;
    hfsb_proc_result result;
    const char      *argv[4], *old = getenv("PATH");
    hfsb_buf         path = HFSB_INIT;
    argv[0] = "python3";
    argv[1] = "-c";
    argv[2] = "import os, sys\n"
              "print(os.path.dirname(sys.executable), end=':')";
    argv[3] = NULL;
    opts.argv = argv;
    if (hfsb_proc_run(&opts, &path, NULL, &result, NULL) == HFSB_OK &&
        path.len > 1 && path.ptr[0] == '/') {
        T_CHECK(hfsb_buf_append(&path, hfsb_cstr(old)) == HFSB_OK);
        T_CHECK(setenv("PATH", path.ptr, 1) == 0);
    }
    hfsb_buf_free(&path);
}

HFSBI_UNUSED static void make_home(void) {
    static const char *const dirs[] = {"bin", "empty", "lib", "work"};
    const char              *path = getenv("PATH");
    char                     name[256];
    int                      i;
    if (!mkdtemp(home)) abort();
    for (i = 0; i < 4; i++) T_CHECK(mkdir(in_home(name, dirs[i]), 0700) == 0);
    T_CHECK((size_t)snprintf(path_fake, sizeof path_fake, "PATH=%s/bin:%s",
                             home, path ? path : "/usr/bin:/bin") <
            sizeof path_fake);
    T_CHECK((size_t)snprintf(path_empty, sizeof path_empty, "PATH=%s/empty",
                             home) < sizeof path_empty);
}

HFSBI_UNUSED static void remove_tree(const char *path) {
    DIR           *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)) != NULL) {
        hfsb_buf name = HFSB_INIT;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        T_CHECK(hfsb_buf_printf(&name, "%s/%s", path, entry->d_name) ==
                HFSB_OK);
        if (unlink(name.ptr) != 0) remove_tree(name.ptr);
        hfsb_buf_free(&name);
    }
    if (dir) closedir(dir);
    T_CHECK(rmdir(path) == 0);
}
#endif
