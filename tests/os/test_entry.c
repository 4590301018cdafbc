/* test_entry.c - entries by path: stat, list, canonical paths, folders, moves

   in/     the root, with links of all kinds     out/     must stay as it is */
#include "../support/t_file.h"

static hfsb_err   err;
static hfsb_root *in; /* the root "in" */

static hfsb_root *open_root(const char *deny, const hfsb_alloc *alloc) {
    hfsb_root_opts opts;
    hfsb_root     *root = NULL;
    memset(&opts, 0, sizeof opts);
    opts.root = HFSB_LIT("in");
    if (deny) {
        opts.deny = &deny;
        opts.deny_count = 1;
    }
    if (alloc) opts.alloc = *alloc;
    (void)hfsb_root_open(&opts, &root, &err);
    return root;
}

static void begin(void) {
    t_remove_tree("in");
    t_remove_tree("out");
    T_CHECK(mkdir("in", 0755) == 0 && mkdir("out", 0755) == 0);
    T_CHECK(mkdir("in/d", 0755) == 0 && mkdir("in/d/e", 0755) == 0);
    t_put("in/f", "inside");
    t_put("in/d/g", "deeper");
    t_put("out/secret", "secret");
    T_CHECK(symlink("f", "in/link") == 0 && symlink("d", "in/dlink") == 0);
    T_CHECK(symlink("../out", "in/olink") == 0);
    T_CHECK(symlink("nowhere", "in/dangling") == 0);
    in = open_root(NULL, NULL);
    if (!in) abort();
}

static void end(void) {
    T_FILE("out/secret", "secret");
    T_CHECK(t_entries("out", "") == 1);
    hfsb_root_close(in);
}

/* ---- stat ---- */

static hfsb_status look(const char *path, bool follow, hfsbi_path_info *info,
                        hfsb_buf *link) {
    return hfsbi_path_stat(in, hfsb_cstr(path), follow, info, link, &err);
}

static void stat_sees_what_lstat_sees(void) {
    hfsbi_path_info info;
    struct stat     st;
    hfsb_buf        link = HFSB_INIT;
    begin();
    T_CHECK(chmod("in/f", 04751) == 0);
    T_CHECK(look("f", false, &info, &link) == HFSB_OK && link.len == 0);
    T_CHECK(stat("in/f", &st) == 0 && info.type == HFSBI_ENTRY_FILE);
    T_CHECK(info.file.size == 6 && info.file.mode == 04751);
    T_CHECK(info.uid == st.st_uid && info.gid == st.st_gid);
    T_CHECK(info.file.inode == st.st_ino && info.file.device == st.st_dev);
    T_CHECK(info.file.changed == st.st_mtime);
    T_CHECK(look("link", false, &info, &link) == HFSB_OK);
    T_CHECK(info.type == HFSBI_ENTRY_LINK);
    T_STR(link, "f");
    link.len = 0;
    T_CHECK(look("link", true, &info, &link) == HFSB_OK && link.len == 0);
    T_CHECK(info.type == HFSBI_ENTRY_FILE && info.file.size == 6);
    T_CHECK(look("d/", false, &info, NULL) == HFSB_OK);
    T_CHECK(info.type == HFSBI_ENTRY_FOLDER);
    T_CHECK(look(".", false, &info, NULL) == HFSB_OK);
    T_CHECK(info.type == HFSBI_ENTRY_FOLDER);
    T_CHECK(mkfifo("in/fifo", 0600) == 0);
    T_CHECK(look("fifo", true, &info, NULL) == HFSB_OK);
    T_CHECK(info.type == HFSBI_ENTRY_OTHER);
    hfsb_buf_free(&link);
    end();
}

static void stat_shows_links_to_the_outside_but_does_not_follow(void) {
    hfsbi_path_info info;
    hfsb_buf        link = HFSB_INIT;
    begin();
    T_CHECK(look("olink", false, &info, &link) == HFSB_OK);
    T_STR(link, "../out");
    T_CHECK(look("olink", true, &info, NULL) == HFSB_OUTSIDE);
    T_CHECK(look("olink/secret", false, &info, NULL) == HFSB_OUTSIDE);
    T_CHECK(look("dangling", false, &info, NULL) == HFSB_OK);
    T_CHECK(look("dangling", true, &info, NULL) == HFSB_NOT_FOUND);
    T_CHECK(look("f/below", false, &info, NULL) == HFSB_NOT_FOUND);
    T_CHECK(look("none", false, &info, NULL) == HFSB_NOT_FOUND);
    T_ERR(HFSB_NOT_FOUND, "File not found: none");
    hfsb_buf_free(&link);
    end();
}

static void canonical_paths_have_no_links(void) {
    hfsb_buf out = HFSB_INIT;
    char     want[PATH_MAX + 16];
    begin();
    T_CHECK(hfsbi_path_canonical(in, HFSB_LIT("dlink/../dlink/./g"), &out,
                                 &err) == HFSB_OK);
    (void)snprintf(want, sizeof want, "%s/in/d/g", t_top);
    T_CHECK(strcmp(out.ptr, want) == 0);
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsbi_path_canonical(in, HFSB_LIT("."), &out, &err) == HFSB_OK);
    (void)snprintf(want, sizeof want, "%s/in", t_top);
    T_CHECK(strcmp(out.ptr, want) == 0);
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsbi_path_canonical(NULL, HFSB_LIT("in/dlink"), &out, &err) ==
            HFSB_OK);
    (void)snprintf(want, sizeof want, "%s/in/d", t_top);
    T_CHECK(strcmp(out.ptr, want) == 0);
    T_CHECK(hfsbi_path_canonical(in, HFSB_LIT("none"), &out, &err) ==
            HFSB_NOT_FOUND);
    T_CHECK(hfsbi_path_canonical(in, HFSB_LIT("olink"), &out, &err) ==
            HFSB_OUTSIDE);
    hfsb_buf_free(&out);
    end();
}

/* ---- list ---- */

static hfsb_status list_one(void *user, const hfsbi_list_entry *e) {
    hfsb_buf *out = (hfsb_buf *)user;
    hfsb_buf_printf(out, "%.*s", (int)e->path.len, e->path.ptr);
    if (e->link.len)
        hfsb_buf_printf(out, "@%.*s", (int)e->link.len, e->link.ptr);
    if (e->info.type == HFSBI_ENTRY_FOLDER) hfsb_buf_printf(out, "/");
    T_CHECK(hfsb_str_ends(e->path, e->name));
    return hfsb_buf_printf(out, " ");
}

static hfsb_status list(const hfsb_root *root, const char *path, size_t depth,
                        size_t limit, const char *after, hfsb_buf *out,
                        hfsbi_listed *listed) {
    hfsbi_list_opts opts = HFSB_INIT;
    hfsb_buf_truncate(out, 0);
    opts.depth = depth;
    opts.limit = limit;
    opts.after = hfsb_cstr(after);
    opts.fn = list_one;
    opts.user = out;
    return hfsbi_path_list(root, hfsb_cstr(path), &opts, listed, &err);
}

static void list_sorts_by_bytes_and_stops_at_its_depth(void) {
    hfsb_buf     out = HFSB_INIT;
    hfsbi_listed listed;
    begin();
    t_put("in/d.x", "");
    t_put("in/.hidden", "");
    t_put("in/\xc3\xa4", "");
    T_CHECK(list(in, ".", 0, 0, "", &out, &listed) == HFSB_OK);
    T_STR(out, ".hidden d/ d.x dangling@nowhere dlink@d f link@f "
               "olink@../out \xc3\xa4 ");
    T_CHECK(listed.entries == 9 && !listed.more && !listed.failed);
    T_CHECK(list(in, ".", 0, 2, "", &out, NULL) == HFSB_OK);
    T_STR(out, ".hidden d/ ");
    T_CHECK(list(in, "", 2, 0, "", &out, &listed) == HFSB_OK);
    T_STR(out, ".hidden d/ d/e/ d/g d.x dangling@nowhere dlink@d f link@f "
               "olink@../out \xc3\xa4 ");
    T_CHECK(list(in, "dlink", 1, 0, "", &out, &listed) == HFSB_OK);
    T_STR(out, "e/ g ");
    T_CHECK(list(in, "f", 1, 0, "", &out, &listed) == HFSB_ARG);
    T_ERR(HFSB_ARG, "Not a folder: f");
    T_CHECK(list(in, "olink", 1, 0, "", &out, &listed) == HFSB_OUTSIDE);
    T_CHECK(list(in, "none", 1, 0, "", &out, &listed) == HFSB_NOT_FOUND);
    hfsb_buf_free(&out);
    end();
}

/* Pages of every size give what one list gives. */
static void pages_join_to_the_whole_list(void) {
    hfsb_buf     all = HFSB_INIT, page = HFSB_INIT, joined = HFSB_INIT;
    hfsbi_listed listed;
    size_t       limit;
    char         after[256];
    begin();
    T_CHECK(mkdir("in/d/e/x", 0755) == 0 && mkdir("in/d-", 0755) == 0);
    t_put("in/d/e/x/y", "");
    t_put("in/d-/z", "");
    T_CHECK(list(in, ".", 9, 0, "", &all, &listed) == HFSB_OK);
    for (limit = 1; limit < 13; limit++) {
        after[0] = '\0';
        hfsb_buf_truncate(&joined, 0);
        do {
            char *last;
            T_CHECK(list(in, ".", 9, limit, after, &page, &listed) ==
                    HFSB_OK);
            T_CHECK(hfsb_buf_append(&joined, hfsb_buf_str(&page)) == HFSB_OK);
            if (!page.len) break;
            page.ptr[page.len - 1] = '\0';
            last = strrchr(page.ptr, ' ');
            (void)snprintf(after, sizeof after, "%s",
                           last ? last + 1 : page.ptr);
            after[strcspn(after, "@")] = '\0';
            if (after[0] && after[strlen(after) - 1] == '/')
                after[strlen(after) - 1] = '\0';
        } while (listed.more);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&joined), hfsb_buf_str(&all)));
    }
    /* one that is gone by now */
    T_CHECK(list(in, ".", 9, 1, "d/f-was-here", &page, &listed) == HFSB_OK);
    T_STR(page, "d/g ");
    T_CHECK(listed.more);
    hfsb_buf_free(&all);
    hfsb_buf_free(&page);
    hfsb_buf_free(&joined);
    end();
}

static void list_and_stat_know_the_deny_list(void) {
    hfsb_root      *root;
    hfsb_buf        out = HFSB_INIT;
    hfsbi_listed    listed;
    hfsbi_path_info info;
    begin();
    root = open_root("g", NULL);
    T_CHECK(list(root, "d", 1, 0, "", &out, &listed) == HFSB_OK);
    T_STR(out, "e/ ");
    T_CHECK(hfsbi_path_stat(root, HFSB_LIT("d/g"), false, &info, NULL,
                            &err) == HFSB_DENIED);
    T_CHECK(hfsbi_path_make_folder(root, HFSB_LIT("x/g/y"), 0,
                                   HFSBI_MAKE_PARENTS, NULL, &err) ==
            HFSB_DENIED);
    T_CHECK(!t_exists("in/x"));
    T_CHECK(hfsbi_path_set_mode(root, HFSB_LIT("d/g"), 0600, true, &err) ==
            HFSB_DENIED);
    hfsb_buf_free(&out);
    hfsb_root_close(root);
    end();
}

/* ---- folders ---- */

static hfsb_status make(const char *path, unsigned how, bool *made) {
    return hfsbi_path_make_folder(in, hfsb_cstr(path), 0, how, made, &err);
}

static void make_folder_with_and_without_parents(void) {
    bool made;
    begin();
    T_CHECK(make("new", 0, &made) == HFSB_OK && made);
    T_CHECK(make("new/", 0, &made) == HFSB_OK && !made);
    T_CHECK(make("new", HFSBI_MAKE_NEW, &made) == HFSB_EXISTS && !made);
    T_ERR(HFSB_EXISTS, "Folder exists already: new");
    T_CHECK(make("a/b/c", 0, &made) == HFSB_NOT_FOUND && !t_exists("in/a"));
    T_CHECK(make("a/b/c//.", HFSBI_MAKE_PARENTS, &made) == HFSB_OK && made);
    T_CHECK(t_mode("in/a/b/c") == 0755);
    T_CHECK(make("f", 0, &made) == HFSB_ARG);
    T_ERR(HFSB_ARG, "Not a folder: f");
    T_CHECK(make("f/x", HFSBI_MAKE_PARENTS, &made) == HFSB_NOT_FOUND);
    T_CHECK(make("dlink", 0, &made) == HFSB_OK && !made);
    T_CHECK(make("dlink/n", 0, &made) == HFSB_OK && made);
    T_CHECK(t_exists("in/d/n"));
    T_CHECK(make("olink/n", HFSBI_MAKE_PARENTS, &made) == HFSB_OUTSIDE);
    T_CHECK(make("../out/n", HFSBI_MAKE_PARENTS, &made) == HFSB_OUTSIDE);
    T_CHECK(make(".", 0, &made) == HFSB_OK && !made);
    T_CHECK(make(".", HFSBI_MAKE_NEW, &made) == HFSB_EXISTS);
    T_CHECK(hfsbi_path_make_folder(in, HFSB_LIT("private"), 0700, 0, NULL,
                                   &err) == HFSB_OK);
    T_CHECK(t_mode("in/private") == 0700);
    end();
}

static void *make_many(void *user) {
    hfsb_err   mine;
    char       path[64];
    int        i;
    uintptr_t  failed = 0;
    hfsb_root *root = (hfsb_root *)user;
    for (i = 0; i < 100; i++) {
        (void)snprintf(path, sizeof path, "m/%d/%d/x", i % 7, i);
        if (hfsbi_path_make_folder(root, hfsb_cstr(path), 0,
                                   HFSBI_MAKE_PARENTS, NULL,
                                   &mine) != HFSB_OK)
            failed++;
    }
    return (void *)failed;
}

static void many_threads_make_the_same_folders(void) {
    pthread_t thread[4];
    int       i;
    begin();
    for (i = 0; i < 4; i++)
        T_CHECK(pthread_create(&thread[i], NULL, make_many, in) == 0);
    for (i = 0; i < 4; i++) {
        void *failed;
        T_CHECK(pthread_join(thread[i], &failed) == 0 && !failed);
    }
    end();
}

static void set_mode_follows_only_when_asked(void) {
    begin();
    T_CHECK(hfsbi_path_set_mode(in, HFSB_LIT("link"), 0640, true, &err) ==
            HFSB_OK);
    T_CHECK(t_mode("in/f") == 0640);
    T_CHECK(hfsbi_path_set_mode(in, HFSB_LIT("link"), 0600, false, &err) ==
            HFSB_ARG);
    T_CHECK(hfsbi_path_set_mode(in, HFSB_LIT("dlink/g"), 0604, true, &err) ==
            HFSB_OK);
    T_CHECK(t_mode("in/d/g") == 0604 && t_mode("in/f") == 0640);
    T_CHECK(hfsbi_path_set_mode(in, HFSB_LIT("olink/secret"), 0, true,
                                &err) == HFSB_OUTSIDE);
    T_CHECK(t_mode("out/secret") == 0644);
    end();
}

/* ---- moves ---- */

static hfsb_status move(const char *from, const char *to, unsigned how) {
    return hfsbi_path_move(in, hfsb_cstr(from), hfsb_cstr(to), how, &err);
}

static void move_files_folders_and_links(void) {
    char text[16];
    begin();
    T_CHECK(move("f", "d/e/f2", 0) == HFSB_OK);
    T_FILE("in/d/e/f2", "inside");
    T_CHECK(!t_exists("in/f"));
    T_CHECK(move("d/", "dd/", 0) == HFSB_OK);
    T_FILE("in/dd/e/f2", "inside");
    T_CHECK(move("olink", "dd/o", 0) == HFSB_OK);
    T_CHECK(readlink("in/dd/o", text, sizeof text) == 6);
    T_CHECK(move("dd/g", "x/y/g", 0) == HFSB_NOT_FOUND);
    T_CHECK(move("none", "x/y/g", HFSBI_MOVE_PARENTS) == HFSB_NOT_FOUND);
    T_CHECK(!t_exists("in/x"));
    T_CHECK(move("dd/g", "x/y/g", HFSBI_MOVE_PARENTS) == HFSB_OK);
    T_FILE("in/x/y/g", "deeper");
    end();
}

static void move_replaces_only_when_asked(void) {
    begin();
    t_put("in/h", "other");
    T_CHECK(move("f", "h", 0) == HFSB_EXISTS);
    T_ERR(HFSB_EXISTS, "File exists already: h");
    T_FILE("in/h", "other");
    T_CHECK(move("d", "h", HFSBI_MOVE_REPLACE) == HFSB_ARG);
    T_CHECK(move("f", "d", HFSBI_MOVE_REPLACE) == HFSB_IS_DIR);
    T_CHECK(move("f", "link", HFSBI_MOVE_REPLACE) == HFSB_OK);
    T_FILE("in/link", "inside"); /* the link is replaced, not followed */
    T_CHECK(!t_exists("in/f"));
    T_CHECK(move("link", "h", HFSBI_MOVE_REPLACE) == HFSB_OK);
    T_FILE("in/h", "inside");
    T_CHECK(mkdir("in/k", 0755) == 0);
    T_CHECK(move("k", "d", HFSBI_MOVE_REPLACE) == HFSB_EXISTS);
    T_CHECK(move("d", "k", 0) == HFSB_EXISTS);
    T_CHECK(move("d", "k", HFSBI_MOVE_REPLACE) == HFSB_OK);
    T_FILE("in/k/g", "deeper");
    end();
}

static void move_between_two_names_of_one_file(void) {
    begin();
    T_CHECK(link("in/f", "in/f2") == 0 && link("in/f", "in/d/f") == 0);
    T_CHECK(move("f", "f2", 0) == HFSB_EXISTS);
    T_CHECK(move("f", "f2", HFSBI_MOVE_REPLACE) == HFSB_OK);
    T_CHECK(!t_exists("in/f"));
    T_FILE("in/f2", "inside");
    T_CHECK(move("f2", "d/f", HFSBI_MOVE_REPLACE) == HFSB_OK);
    T_CHECK(!t_exists("in/f2"));
    T_FILE("in/d/f", "inside");
    T_CHECK(move("d/f", "d/f", HFSBI_MOVE_REPLACE) == HFSB_OK);
    T_FILE("in/d/f", "inside");
    end();
}

static void move_refuses_roots_and_itself(void) {
    char path[PATH_MAX + 16];
    begin();
    T_CHECK(move("d", "d/e/d", 0) == HFSB_ARG);
    T_CHECK(move(".", "x", 0) == HFSB_REFUSED);
    (void)snprintf(path, sizeof path, "%s/in", t_top);
    T_CHECK(move(path, "x", 0) == HFSB_REFUSED);
    T_CHECK(move("d", path, HFSBI_MOVE_REPLACE) == HFSB_REFUSED);
    T_CHECK(move("d/e/..", "x", 0) == HFSB_REFUSED);
    T_CHECK(move("f", "../out/f", 0) == HFSB_OUTSIDE);
    T_CHECK(move("f", "olink/f", 0) == HFSB_OUTSIDE);
    T_CHECK(move("olink/secret", "s", 0) == HFSB_OUTSIDE);
    T_FILE("in/f", "inside");
    end();
}

static void move_keeps_denied_entries_in_their_place(void) {
    hfsb_root *root;
    begin();
    root = open_root("/d/g", NULL);
    T_CHECK(hfsbi_path_move(root, HFSB_LIT("d"), HFSB_LIT("x"), 0, &err) ==
            HFSB_DENIED);
    T_ERR(HFSB_DENIED, "Contains entries on the deny list: d");
    T_CHECK(hfsbi_path_move(root, HFSB_LIT("f"), HFSB_LIT("d/g"),
                            HFSBI_MOVE_REPLACE, &err) == HFSB_DENIED);
    T_CHECK(hfsbi_path_move(root, HFSB_LIT("d/e"), HFSB_LIT("x"), 0, &err) ==
            HFSB_OK);
    T_FILE("in/d/g", "deeper");
    hfsb_root_close(root);
    end();
}

/* ---- faults and races ---- */

static void entries_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_root      *root = open_root("secret", &alloc);
    hfsbi_path_info info;
    hfsbi_listed    listed;
    hfsbi_list_opts opts = HFSB_INIT;
    hfsb_buf        out = HFSB_INIT;
    hfsb_status     st[5];
    size_t          i;
    if (!root) return;
    out.alloc = alloc;
    opts.depth = 5;
    opts.fn = list_one;
    opts.user = &out;
    (void)mkdir("in/m", 0755);
    st[0] = hfsbi_path_stat(root, HFSB_LIT("link"), false, &info, &out, &err);
    hfsb_buf_truncate(&out, 0);
    st[1] = hfsbi_path_list(root, HFSB_LIT("."), &opts, &listed, &err);
    hfsb_buf_truncate(&out, 0);
    st[2] = hfsbi_path_canonical(root, HFSB_LIT("dlink/g"), &out, &err);
    st[3] = hfsbi_path_move(root, HFSB_LIT("m"), HFSB_LIT("m2"), 0, &err);
    st[4] = hfsbi_path_make_folder(root, HFSB_LIT("n/o"), 0,
                                   HFSBI_MAKE_PARENTS, NULL, &err);
    for (i = 0; i < 5; i++)
        T_CHECK(st[i] == HFSB_OK ||
                (heap->fail_at &&
                 (st[i] == HFSB_NOMEM || st[i] == HFSB_DENIED)));
    (void)rmdir("in/m");
    (void)rmdir("in/m2");
    (void)rmdir("in/n/o");
    (void)rmdir("in/n");
    hfsb_buf_free(&out);
    hfsb_root_close(root);
}

static void every_allocation_of_an_entry_fails(void) {
    begin();
    t_each_allocation_fails(entries_without_memory);
    end();
}

static int swapping;

/* A folder becomes a link to the outside and a folder again, all the time. */
static void *swap_folder(void *user) {
    (void)user;
    while (__atomic_load_n(&swapping, __ATOMIC_SEQ_CST)) {
        (void)rename("in/d", "in/d2");
        (void)symlink("../out", "in/d");
        (void)unlink("in/d");
        (void)rename("in/d2", "in/d");
    }
    return NULL;
}

static hfsb_status never_secret(void *user, const hfsbi_list_entry *e) {
    (void)user;
    T_CHECK(!hfsb_str_equal(e->name, HFSB_LIT("secret")));
    return HFSB_OK;
}

static void swapped_links_lead_nowhere(void) {
    hfsbi_list_opts opts = HFSB_INIT;
    hfsbi_listed    listed;
    hfsbi_path_info info;
    pthread_t       thread;
    int             i, n = t_quick() ? 100 : 2000;
    begin();
    opts.depth = 3;
    opts.fn = never_secret;
    __atomic_store_n(&swapping, 1, __ATOMIC_SEQ_CST);
    T_CHECK(pthread_create(&thread, NULL, swap_folder, NULL) == 0);
    for (i = 0; i < n; i++) {
        (void)hfsbi_path_list(in, HFSB_LIT("d"), &opts, &listed, &err);
        (void)hfsbi_path_list(in, HFSB_LIT("."), &opts, &listed, &err);
        T_CHECK(hfsbi_path_stat(in, HFSB_LIT("d/secret"), true, &info, NULL,
                                &err) != HFSB_OK);
        (void)hfsbi_path_make_folder(in, HFSB_LIT("d/p/q"), 0,
                                     HFSBI_MAKE_PARENTS, NULL, &err);
        (void)move("f", "d/f", 0);
        (void)move("d/f", "f", 0);
        T_CHECK(move("d/secret", "s", 0) != HFSB_OK);
        T_CHECK(hfsbi_path_set_mode(in, HFSB_LIT("d/secret"), 0600, true,
                                    &err) != HFSB_OK);
    }
    __atomic_store_n(&swapping, 0, __ATOMIC_SEQ_CST);
    T_CHECK(pthread_join(thread, NULL) == 0);
    T_CHECK(t_mode("out/secret") == 0644);
    end();
}

int main(void) {
    int fds;
    t_begin_files();
    fds = t_descriptors();
    T_RUN(stat_sees_what_lstat_sees);
    T_RUN(stat_shows_links_to_the_outside_but_does_not_follow);
    T_RUN(canonical_paths_have_no_links);
    T_RUN(list_sorts_by_bytes_and_stops_at_its_depth);
    T_RUN(pages_join_to_the_whole_list);
    T_RUN(list_and_stat_know_the_deny_list);
    T_RUN(make_folder_with_and_without_parents);
    T_RUN(many_threads_make_the_same_folders);
    T_RUN(set_mode_follows_only_when_asked);
    T_RUN(move_files_folders_and_links);
    T_RUN(move_replaces_only_when_asked);
    T_RUN(move_between_two_names_of_one_file);
    T_RUN(move_refuses_roots_and_itself);
    T_RUN(move_keeps_denied_entries_in_their_place);
    T_RUN(every_allocation_of_an_entry_fails);
    T_RUN(swapped_links_lead_nowhere);
    T_CHECK(t_descriptors() == fds);
    return t_end_files(__FILE__);
}
