/* test_file_deny.c - several roots, and paths on the deny list

   a/   the first root, with links of its own     b/   the second root
   c/   outside both                                                       */
#include "../support/t_file.h"

static hfsb_err err;
static char     a[PATH_MAX], b[PATH_MAX];

static const char *const deny[] = {".env", "*.pem", "secrets/",
                                   "/config/*.key", "hidden"};

static void make_tree(void) {
    static const char *const dirs[] = {"a",        "a/sub",        "a/secrets",
                                       "a/config", "a/sub/config", "b",
                                       "c"};
    static const char *const files[] = {
        "a/.env", "a/ok",         "a/sub/.env",         "a/secrets/key",
        "b/f",    "a/config/key", "a/config/x.key",     "a/sub/config/x.key",
        "b/.env", "c/f",          "a/sub/secrets-too"};
    size_t i;
    for (i = 0; i < sizeof dirs / sizeof *dirs; i++)
        T_CHECK(mkdir(dirs[i], 0755) == 0);
    for (i = 0; i < sizeof files / sizeof *files; i++)
        t_put(files[i], files[i]);
    T_CHECK(symlink(".env", "a/link") == 0);
    T_CHECK(symlink("../link", "a/sub/link") == 0);
    T_CHECK(symlink("secrets", "a/dirlink") == 0);
    T_CHECK(symlink("ok", "a/hidden") == 0);
    T_CHECK(symlink("../config", "a/sub/hidden") == 0);
    T_CHECK(symlink("sub", "a/fine") == 0);
    T_CHECK(symlink("../b/f", "a/to-b") == 0);
    snprintf(a, sizeof a, "%s/a/.env", t_top);
    T_CHECK(symlink(a, "a/abs-link") == 0);
    snprintf(a, sizeof a, "%s/a/secrets", t_top);
    T_CHECK(symlink(a, "a/abs-dirlink") == 0);
    snprintf(a, sizeof a, "%s/a/config", t_top);
    T_CHECK(symlink(a, "a/abs-config-link") == 0);
    snprintf(a, sizeof a, "%s/a", t_top);
    snprintf(b, sizeof b, "%s/b", t_top);
}

static hfsb_root *open_roots(const char *root, const char *more,
                             size_t denied) {
    hfsb_root_opts opts;
    hfsb_root     *place = NULL;
    memset(&opts, 0, sizeof opts);
    opts.root = hfsb_cstr(root);
    opts.more_roots = &more;
    opts.more_root_count = more != NULL;
    opts.deny = deny;
    opts.deny_count = denied;
    T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_OK);
    if (!place) abort();
    return place;
}

static hfsb_status read_at(const hfsb_root *place, const char *path,
                           const char *want) {
    hfsb_buf    got = HFSB_INIT;
    hfsb_status st =
        hfsb_file_read(place, hfsb_cstr(path), 0, &got, NULL, &err);
    if (st == HFSB_OK && want)
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&got), hfsb_cstr(want)));
    hfsb_buf_free(&got);
    return st;
}

static const char *beneath(const char *dir, const char *name,
                           char out[2 * PATH_MAX]) {
    snprintf(out, 2 * PATH_MAX, "%s/%s", dir, name);
    return out;
}

/* ---- several roots ---- */

static void an_absolute_path_finds_its_root(void) {
    hfsb_root *place = open_roots("a", "b", 0);
    char       path[2 * PATH_MAX], want[3 * PATH_MAX];
    T_CHECK(read_at(place, "ok", "a/ok") == HFSB_OK);
    T_CHECK(read_at(place, beneath(a, "ok", path), "a/ok") == HFSB_OK);
    T_CHECK(read_at(place, beneath(b, "f", path), "b/f") == HFSB_OK);
    T_CHECK(read_at(place, beneath(b, "../b/f", path), NULL) ==
            HFSB_OUTSIDE);
    T_CHECK(read_at(place, "../b/f", NULL) == HFSB_OUTSIDE);
    T_CHECK(read_at(place, "to-b", NULL) == HFSB_OUTSIDE);
    T_CHECK(read_at(place, beneath(t_top, "c/f", path), NULL) ==
            HFSB_OUTSIDE);
    snprintf(want, sizeof want, "Path is outside the roots %s, %s: %s", a, b,
             path);
    T_CHECK(strcmp(err.msg, want) == 0);
    T_CHECK(hfsb_file_write(place, hfsb_cstr(beneath(b, "new/n", path)),
                            HFSB_LIT("x"), NULL, NULL, &err) == HFSB_OK);
    T_FILE("b/new/n", "x");
    T_CHECK(hfsb_file_remove(place, hfsb_cstr(path), &err) == HFSB_OK);
    T_CHECK(rmdir("b/new") == 0);
    T_CHECK(hfsb_str_equal(hfsb_root_path(place), hfsb_cstr(a)));
    T_CHECK(hfsb_str_equal(hfsb_root_path(hfsb_root_next(place)),
                           hfsb_cstr(b)));
    T_CHECK(hfsb_root_next(hfsb_root_next(place)) == NULL);
    T_CHECK(hfsb_root_next(NULL) == NULL);
    hfsb_root_close(place);
}

static void opening_reports_wrong_roots_and_patterns(void) {
    static const char *const bad[] = {"", "# x", "a\nb", "[z"};
    const char              *more[16];
    hfsb_root_opts           opts;
    hfsb_root               *place = NULL;
    size_t                   i;
    for (i = 0; i < 16; i++) more[i] = "b";
    memset(&opts, 0, sizeof opts);
    opts.more_roots = more;
    opts.more_root_count = 1;
    T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_ARG && !place);
    opts.root = HFSB_LIT("a");
    opts.more_root_count = 16;
    T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_ARG && !place);
    opts.more_root_count = 15;
    T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_OK);
    hfsb_root_close(place);
    more[1] = "none";
    T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_NOT_FOUND && !place);
    T_CHECK(strcmp(err.msg, "Root directory not found: none") == 0);
    more[1] = "";
    T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_ARG && !place);
    opts.more_root_count = 0;
    opts.deny_count = 1;
    for (i = 0; i < 3; i++) {
        opts.deny = bad + i;
        T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_ARG && !place);
        T_CHECK(strncmp(err.msg, "Invalid deny pattern: \"", 23) == 0);
    }
}

/* ---- the deny list ---- */

static const struct deny_case {
    const char *path;
    bool        denied;
} cases[] = {{"ok", false},
             {".env", true},
             {"./.env", true},
             {"sub/.env", true},
             {"sub/../.env", true},
             {"fine/.env", true},
             {"link", true},
             {"sub/link", true},
             {"none/.env", true},
             {"x.pem", true},
             {"sub/none/x.pem", true},
             {"x.pem/y", true},
             {"x.pemx", false},
             {"secrets/key", true},
             {"secrets/none", true},
             {"secrets/none/x", true},
             {"dirlink/key", true},
             {"dirlink/none/x", true},
             {"secrets/../ok", false},
             {"sub/secrets-too", false},
             {"config/key", false},
             {"config/x.key", true},
             {"config/none.key", true},
             {"sub/config/x.key", false},
             {"hidden", true},
             {"sub/hidden/key", true},
             {"fine/secrets-too", false},
             {"abs-link", true},
             {"abs-dirlink/key", true},
             {"abs-dirlink/none/x", true},
             {"abs-config-link/x.key", true},
             {"abs-config-link/key", false}};

/* No function says more about a denied path than that. */
static void check_case(const hfsb_root *place, const char *path, bool denied) {
    hfsb_file_info info;
    hfsb_buf       key = HFSB_INIT;
    hfsb_str       at = hfsb_cstr(path);
    char           want[2 * PATH_MAX + 40];
    int            fd;
    hfsb_status    st = read_at(place, path, NULL);
    T_CHECK((st == HFSB_DENIED) == denied);
    snprintf(want, sizeof want, "Path is on the deny list: %s", path);
    T_CHECK((strcmp(err.msg, want) == 0) == denied);
    T_CHECK((hfsb_file_stat(place, at, &info, &err) == HFSB_DENIED) ==
            denied);
    T_CHECK((hfsb_file_key(place, at, &key, &err) == HFSB_DENIED) == denied);
    hfsb_buf_free(&key);
    if (!denied) return;
    T_CHECK(hfsb_file_open(place, at, &fd, NULL, &err) == HFSB_DENIED);
    T_CHECK(hfsb_file_write(place, at, HFSB_LIT("x"), NULL, NULL, &err) ==
            HFSB_DENIED);
    if (!strstr(path, "link")) /* it removes the link itself */
        T_CHECK(hfsb_file_remove(place, at, &err) == HFSB_DENIED);
}

static void denied_paths_are_refused_however_they_are_reached(void) {
    hfsb_root *place = open_roots("a", "b", 5);
    char       path[2 * PATH_MAX];
    size_t     i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_case(place, cases[i].path, cases[i].denied);
        check_case(place, beneath(a, cases[i].path, path), cases[i].denied);
    }
    check_case(place, beneath(b, ".env", path), true);
    check_case(place, beneath(b, "f", path), false);
    T_CHECK(!t_exists("a/secrets/none") && !t_exists("a/none"));
    T_FILE("a/.env", "a/.env");
    hfsb_root_close(place);
}

/* Without a root, patterns begin in the working directory. */
static void denied_paths_are_refused_without_a_root(void) {
    hfsb_root_opts opts;
    hfsb_root     *place = NULL;
    char           path[2 * PATH_MAX];
    size_t         i;
    memset(&opts, 0, sizeof opts);
    opts.deny = deny;
    opts.deny_count = 5;
    opts.work_dir = HFSB_LIT("a");
    T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_OK);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_case(place, cases[i].path, cases[i].denied);
        check_case(place, beneath(a, cases[i].path, path), cases[i].denied);
    }
    check_case(place, beneath(b, ".env", path), true);
    check_case(place, "../b/.env", true);
    check_case(place, "../b/f", false);
    hfsb_root_close(place);
    opts.work_dir = HFSB_LIT("");
    T_CHECK(chdir("a") == 0);
    T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_OK);
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(place, cases[i].path, cases[i].denied);
    hfsb_root_close(place);
    T_CHECK(chdir("..") == 0);
}

/* Patterns are relative to each root, whichever comes first. */
static void patterns_hold_in_a_root_inside_another(void) {
    static const char *const rules[] = {"/config/*.key", "sub/secrets-too"};
    static const char *const orders[2][2] = {{"a", "a/sub"}, {"a/sub", "a"}};
    hfsb_root_opts           opts;
    hfsb_root               *place = NULL;
    char                     path[2 * PATH_MAX];
    size_t                   i;
    for (i = 0; i < 2; i++) {
        memset(&opts, 0, sizeof opts);
        opts.root = hfsb_cstr(orders[i][0]);
        opts.more_roots = &orders[i][1];
        opts.more_root_count = 1;
        opts.deny = rules;
        opts.deny_count = 2;
        T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_OK);
        check_case(place, beneath(a, "config/x.key", path), true);
        check_case(place, beneath(a, "sub/config/x.key", path), true);
        check_case(place, beneath(a, "fine/config/x.key", path), true);
        check_case(place, beneath(a, "sub/secrets-too", path), true);
        check_case(place, beneath(a, "sub/.env", path), false);
        check_case(place, beneath(a, "config/key", path), false);
        hfsb_root_close(place);
    }
}

static void a_later_pattern_may_allow_again(void) {
    static const char *const list[] = {"*.key", "!public.key"};
    hfsb_root_opts           opts;
    hfsb_root               *place = NULL;
    memset(&opts, 0, sizeof opts);
    opts.root = HFSB_LIT("a");
    opts.deny = list;
    opts.deny_count = 2;
    T_CHECK(hfsb_root_open(&opts, &place, &err) == HFSB_OK);
    T_CHECK(read_at(place, "config/x.key", NULL) == HFSB_DENIED);
    T_CHECK(read_at(place, "public.key", NULL) == HFSB_NOT_FOUND);
    hfsb_root_close(place);
}

static void open_and_read(hfsb_alloc alloc, const t_heap *heap) {
    const char    *more = "b";
    hfsb_root_opts opts;
    hfsb_root     *place = NULL;
    hfsb_status    st;
    memset(&opts, 0, sizeof opts);
    opts.root = HFSB_LIT("a");
    opts.more_roots = &more;
    opts.more_root_count = 1;
    opts.deny = deny;
    opts.deny_count = 5;
    opts.alloc = alloc;
    st = hfsb_root_open(&opts, &place, &err);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at));
    if (st != HFSB_OK) return;
    st = read_at(place, "sub/link", NULL);
    T_CHECK(st == HFSB_DENIED || (st == HFSB_NOMEM && heap->fail_at));
    hfsb_root_close(place);
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(open_and_read);
}

int main(void) {
    t_begin_files();
    make_tree();
    T_RUN(an_absolute_path_finds_its_root);
    T_RUN(opening_reports_wrong_roots_and_patterns);
    T_RUN(denied_paths_are_refused_however_they_are_reached);
    T_RUN(denied_paths_are_refused_without_a_root);
    T_RUN(patterns_hold_in_a_root_inside_another);
    T_RUN(a_later_pattern_may_allow_again);
    T_RUN(each_allocation_fails_cleanly);
    return t_end_files(__FILE__);
}
