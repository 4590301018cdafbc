/* t_file.h - shared by the tests of FILE. Each program works in a directory of
   its own, which is also the current one, and removes it at the end. */
#ifndef T_FILE_H
#define T_FILE_H
#include "t.h"

static char t_top[PATH_MAX]; /* that directory, without symbolic links */

HFSBI_UNUSED static bool t_root_user(void) {
    return geteuid() == 0;
}

/* ---- files, without the library ---- */

HFSBI_UNUSED static void t_put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    T_CHECK(fd >= 0 && write(fd, text, strlen(text)) >= 0);
    if (fd >= 0) close(fd);
}

/* The file contains exactly this text. */
#define T_FILE(path, text) t_file_is(__LINE__, path, text)

HFSBI_UNUSED static void t_file_is(int line, const char *path,
                                   const char *text) {
    hfsb_buf got = HFSB_INIT;
    bool     ok = t_read_file(path, &got) &&
              hfsb_str_equal(hfsb_buf_str(&got), hfsb_cstr(text));
    t_checks++;
    if (!ok) {
        t_failed++;
        printf("line %d: %s: %s holds \"%.60s\", want \"%.60s\"\n", line,
               t_name, path, got.ptr ? got.ptr : "(nothing)", text);
    }
    hfsb_buf_free(&got);
}

HFSBI_UNUSED static bool t_same_file(const char *path, hfsb_str bytes) {
    hfsb_buf got = HFSB_INIT;
    bool     ok = t_read_file(path, &got) &&
              hfsb_str_equal(hfsb_buf_str(&got), bytes);
    hfsb_buf_free(&got);
    return ok;
}

HFSBI_UNUSED static bool t_exists(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0;
}

HFSBI_UNUSED static mode_t t_mode(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

/* How many names in a directory contain part; -1: no such directory. */
HFSBI_UNUSED static int t_entries(const char *path, const char *part) {
    DIR           *dir = opendir(path);
    struct dirent *e;
    int            n = 0;
    while (dir && (e = readdir(dir)) != NULL)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
             strstr(e->d_name, part) != NULL;
    if (dir) closedir(dir);
    return dir ? n : -1;
}

/* No temporary is left in the directory. */
#define T_CLEAN(path) T_CHECK(t_entries(path, ".hfsb-") == 0)

HFSBI_UNUSED static void t_remove_tree(const char *path) {
    struct stat    st;
    DIR           *dir;
    struct dirent *e;
    char           sub[PATH_MAX];
    if (lstat(path, &st) != 0) return;
    if (!S_ISDIR(st.st_mode)) {
        (void)unlink(path);
        return;
    }
    (void)chmod(path, 0700);
    dir = opendir(path);
    while (dir && (e = readdir(dir)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (snprintf(sub, sizeof sub, "%s/%s", path, e->d_name) <
            (int)sizeof sub)
            t_remove_tree(sub);
    }
    if (dir) closedir(dir);
    (void)rmdir(path);
}

/* ---- calls that must fail ---- */

/* The program's err holds this status and message. */
#define T_ERR(status, text)                                                 \
    (T_CHECK(err.code == (status)), T_STR(hfsb_cstr(err.msg), text))

HFSBI_UNUSED static hfsb_status t_write_fails(
    const char *path, const hfsb_file_write_opts *opts, hfsb_err *err) {
    hfsb_status st = hfsb_file_write(NULL, hfsb_cstr(path), HFSB_LIT("new"),
                                     opts, NULL, err);
    T_CHECK(st != HFSB_OK && st == err->code);
    return st;
}

HFSBI_UNUSED static hfsb_status t_read_fails(const char *path,
                                             hfsb_err   *err) {
    hfsb_buf    out = HFSB_INIT;
    hfsb_status st =
        hfsb_file_read(NULL, hfsb_cstr(path), 0, &out, NULL, err);
    T_CHECK(st != HFSB_OK && st == err->code && out.len == 0);
    hfsb_buf_free(&out);
    return st;
}

/* ---- descriptors ---- */

HFSBI_UNUSED static int t_descriptors(void) {
    int fd, n = 0;
    for (fd = 0; fd < 1024; fd++) n += fcntl(fd, F_GETFD) != -1;
    return n;
}

/* ---- tests in a child process ---- */

/* Runs fn in a child, for changes that cannot be undone. Failed checks of the
   child count here. fn returns NULL, or the reason why it was skipped. */
HFSBI_UNUSED static void t_in_child(const char *(*fn)(void)) {
    int   status = 0;
    pid_t pid;
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        const char *reason;
        t_failed = 0;
        reason = fn();
        if (reason) printf("skipped: %s: %s\n", t_name, reason);
        fflush(stdout);
        _exit(t_failed ? 1 : reason ? 77 : 0);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) t_skipped++;
    else T_CHECK(pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- beginning and end ---- */

HFSBI_UNUSED static void t_begin_files(void) {
    const char *tmp = getenv("TMPDIR");
    char        name[PATH_MAX];
    if (!tmp || !*tmp) tmp = "/tmp";
    (void)umask(022);
    if (snprintf(name, sizeof name, "%s/hfsb-test.XXXXXX", tmp) >=
            (int)sizeof name ||
        !mkdtemp(name) || chmod(name, 0755) != 0 || !realpath(name, t_top) ||
        chdir(t_top) != 0) {
        printf("no directory to work in\n");
        exit(1);
    }
}

HFSBI_UNUSED static int t_end_files(const char *file) {
    if (chdir("/") == 0) t_remove_tree(t_top);
    T_CHECK(!t_exists(t_top));
    return t_end(file);
}
#endif
