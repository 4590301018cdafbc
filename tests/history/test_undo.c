/* test_undo.c - checkpoints, undo and changes. */
#include "../support/t_undo.h"

/* ---- what undo takes back ---- */

static void undo_takes_back_a_command(void) {
    hfsb_tools *tools = tu_open();
    char       *before;
    tu_bash(tools, "mkdir -p d/empty; echo one > a; echo two > d/b; "
                   "chmod 750 d/b; ln -s a link; echo gone > c");
    before = tu_photo();
    tu_bash(tools, "echo more >> a; rm c; chmod 600 d/b; ln -sfn d link; "
                   "rmdir d/empty; mkdir new; echo x > new/x");
    T_CHECK(tu_undo(tools, 0));
    T_CHECK(tu_same(before, tu_photo()));
    free(before);
    tu_close(tools);
}

static void undo_joins_hard_links_again(void) {
    hfsb_tools *tools = tu_open();
    char       *joined, *apart;
    tu_bash(tools, "mkdir d; echo 1 > a; ln a b; ln a d/c; echo 1 > x; "
                   "ln -s a s; ln -s b t");
    joined = tu_photo();
    tu_bash(tools, "rm b; cp a b; echo 2 > d/c; mv x y; ln y z; "
                   "ln -sfn b s; ln -fP s t; ln -P s u");
    apart = tu_photo();
    T_CHECK(tu_undo(tools, 2));
    T_CHECK(tu_same(joined, tu_photo()));
    T_CHECK(tu_undo(tools, 3));
    T_CHECK(tu_same(apart, tu_photo()));
    tu_bash(tools, "rm -r a d"); /* the first name of three */
    T_CHECK(tu_undo(tools, 2));
    T_CHECK(tu_same(joined, tu_photo()));
    free(joined);
    free(apart);
    tu_close(tools);
}

static void change_closed_folders(void) {
    hfsb_tools *tools = tu_open();
    char       *before;
    tu_bash(tools, "mkdir -p d/e; echo 1 > d/e/f; echo 1 > d/e/g; "
                   "chmod 444 d/e/f; chmod 555 d/e d");
    before = tu_photo();
    tu_bash(tools, "chmod 755 d d/e; rm -f d/e/f; echo 2 > d/e/g; "
                   "echo new > d/e/new; chmod 555 d/e d");
    T_CHECK(tu_undo(tools, 0));
    T_CHECK(tu_same(before, tu_photo()));
    free(before);
    if (system("chmod -R u+w " TU_ROOT)) abort();
    tu_close(tools);
}

static void undo_opens_closed_folders_for_the_work(void) {
    tu_as_nobody(change_closed_folders);
}

static void undo_takes_back_edits_one_by_one(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tu_bash(tools, "printf 'a\\n' > f");
    tt_call(&r, tools, "write", "path=s content=s", "f", "b\n");
    TT_OK(&r, "Wrote 2 bytes to f");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "f", "b", "c");
    TT_OK(&r, "Edited f (1 replacement)");
    T_CHECK(tu_undo(tools, 0));
    TT_FILE(TU_ROOT "/f", "b\n");
    T_CHECK(tu_undo(tools, 0));
    TT_FILE(TU_ROOT "/f", "a\n");
    T_CHECK(tu_undo(tools, 0));
    T_CHECK(access(TU_ROOT "/f", F_OK) != 0);
    tt_call(&r, tools, "undo", "");
    TT_FAIL(&r, "Nothing to undo: no tool or command has changed files before "
                "checkpoint 1, the present one. The tool checkpoints lists "
                "all.");
    tt_drop(&r);
    tu_close(tools);
}

static void undo_names_what_it_took_back(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tu_bash(tools, "echo 1 > f");
    tu_bash(tools, "echo 2 > f");
    tt_call(&r, tools, "undo", "");
    TT_OK(&r, "Took back \"bash echo 2 > f\", restored checkpoint 2: 1 "
              "changed, 0 created, 0 deleted. To take this back: undo with "
              "to=3.");
    tt_call(&r, tools, "undo", "to=s", "3");
    TT_OK(&r, "Restored checkpoint 3 (after: bash echo 2 > f): 1 changed, 0 "
              "created, 0 deleted. To take this back: undo with to=2.");
    tt_drop(&r);
    tu_close(tools);
}

static void an_undo_can_be_undone(void) {
    hfsb_tools *tools = tu_open();
    long long   first, last;
    tu_bash(tools, "echo 1 > f");
    first = tu_checkpoint(tools);
    tu_bash(tools, "echo 2 > f; echo new > g");
    last = tu_checkpoint(tools);
    T_CHECK(tu_undo(tools, first));
    TT_FILE(TU_ROOT "/f", "1\n");
    T_CHECK(access(TU_ROOT "/g", F_OK) != 0);
    T_CHECK(tu_undo(tools, last));
    TT_FILE(TU_ROOT "/f", "2\n");
    TT_FILE(TU_ROOT "/g", "new\n");
    tu_close(tools);
}

static void undo_restores_one_path(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tu_bash(tools, "mkdir d; echo 1 > d/f; echo 1 > g; echo 1 > d.txt");
    tu_bash(tools, "rm -r d; echo 2 > g; echo 2 > d.txt");
    tt_call(&r, tools, "undo", "path=s", "d");
    TT_OK(&r, "Restored checkpoint 2 (after: bash mkdir d; echo 1 > d/f; echo "
              "1 > g; echo 1 > d.txt) in d: 0 changed, 2 created, 0 deleted. "
              "To take this back: undo with to=3.");
    TT_FILE(TU_ROOT "/d/f", "1\n");
    TT_FILE(TU_ROOT "/g", "2\n");
    TT_FILE(TU_ROOT "/d.txt", "2\n");
    T_CHECK(tu_undo(tools, 0)); /* the undo itself is one step */
    T_CHECK(access(TU_ROOT "/d", F_OK) != 0);
    tt_drop(&r);
    tu_close(tools);
}

static void undo_restores_a_path_with_its_folders(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tu_bash(tools, "mkdir -p d/e; chmod 750 d; echo 1 > d/e/f; echo 1 > d/g");
    tu_bash(tools, "rm -r d");
    tt_call(&r, tools, "undo", "path=s", "d/e/f");
    T_CHECK(r.res.success);
    TT_FILE(TU_ROOT "/d/e/f", "1\n");
    T_CHECK(access(TU_ROOT "/d/g", F_OK) != 0);
    T_CHECK(system("test $(stat -c %a " TU_ROOT "/d) = 750") == 0);
    tt_call(&r, tools, "undo", "path=s to=s", "d/typo", "2");
    TT_FAIL(&r, "Nothing to restore: d/typo is not in checkpoint 2. It did "
                "not exist, or it is ignored (.gitignore, .git).");
    tt_call(&r, tools, "undo", "path=s to=s", "d/e/f", "2");
    TT_OK(&r, "All files are already as in checkpoint 2 (after: bash mkdir -p "
              "d/e; chmod 750 d; echo 1 > d/e/f; echo 1 > d/g) in d/e/f.");
    tt_drop(&r);
    tu_close(tools);
}

static void a_checkpoint_has_a_name(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tu_bash(tools, "echo 1 > f");
    tt_call(&r, tools, "checkpoint", "name=s", "it works");
    TT_OK(&r, "Checkpoint 3. To come back to it: undo with to=3.");
    tu_bash(tools, "echo 2 > f");
    tu_bash(tools, "echo 3 > f");
    tt_call(&r, tools, "undo", "to=s", "it works");
    T_CHECK(r.res.success);
    TT_FILE(TU_ROOT "/f", "1\n");
    tt_call(&r, tools, "undo", "to=s", "first");
    T_CHECK(r.res.success && access(TU_ROOT "/f", F_OK) != 0);
    tt_call(&r, tools, "undo", "to=s", "unheard of");
    TT_FAIL(&r, "There is no checkpoint \"unheard of\"");
    tt_call(&r, tools, "undo", "to=s", "99");
    TT_FAIL(&r, "There is no checkpoint \"99\"");
    tt_drop(&r);
    tu_close(tools);
}

/* ---- what others do ---- */

static void undo_refuses_to_overwrite_what_a_person_changed(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tu_bash(tools, "echo 1 > f; echo 1 > other");
    tu_bash(tools, "echo 2 > f");
    tt_put(TU_ROOT "/f", HFSB_LIT("theirs\n"));
    tt_call(&r, tools, "undo", "");
    TT_FAIL(&r, "Nothing was restored. 1 path has changed since then, by a "
                "person or by a command that still ran:\n"
                "f\nTo overwrite it, repeat it with force=true; restore "
                "other files alone with path.");
    T_CHECK(r.res.code == HFSB_STALE);
    TT_FILE(TU_ROOT "/f", "theirs\n");
    tt_call(&r, tools, "undo", ""); /* asking twice does not help */
    TT_FAIL(&r, "Nothing was restored.");
    tt_call(&r, tools, "undo", "force=j", "true");
    T_CHECK(r.res.success);
    TT_FILE(TU_ROOT "/f", "1\n");
    tt_call(&r, tools, "undo", "to=s", "4"); /* which the reply names */
    T_CHECK(r.res.success);
    TT_FILE(TU_ROOT "/f", "theirs\n");
    tt_drop(&r);
    tu_close(tools);
}

static void undo_keeps_other_files_of_a_person(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tu_bash(tools, "echo 1 > f; echo 1 > other");
    tu_bash(tools, "echo 2 > f");
    tt_put(TU_ROOT "/other", HFSB_LIT("theirs\n"));
    tt_put(TU_ROOT "/new", HFSB_LIT("theirs\n"));
    tt_call(&r, tools, "undo", "");
    TT_OK(&r, "Took back \"bash echo 2 > f\", restored checkpoint 2: 1 "
              "changed, 0 created, 0 deleted. To take this back: undo with "
              "to=4. Kept 2 paths that somebody else has changed since.");
    TT_FILE(TU_ROOT "/f", "1\n");
    TT_FILE(TU_ROOT "/other", "theirs\n");
    TT_FILE(TU_ROOT "/new", "theirs\n");
    tt_drop(&r);
    tu_close(tools);
}

/* A file that appears between two commands is in the checkpoint before the
   second, and is still a person's. */
static void undo_takes_back_no_step_of_a_person(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tt_put(TU_ROOT "/f", HFSB_LIT("1\n"));
    tu_bash(tools, "echo 2 > f");
    tt_put(TU_ROOT "/notes", HFSB_LIT("theirs\n"));
    T_CHECK(tu_checkpoint(tools) == 3);
    tt_call(&r, tools, "undo", "");
    TT_OK(&r, "Took back \"bash echo 2 > f\", restored checkpoint 1: 1 "
              "changed, 0 created, 0 deleted. To take this back: undo with to=3. Kept 1 path that "
              "somebody else has changed since.");
    TT_FILE(TU_ROOT "/f", "1\n");
    TT_FILE(TU_ROOT "/notes", "theirs\n");
    tt_call(&r, tools, "undo", "");
    TT_FAIL(&r, "Nothing to undo");
    T_CHECK(tu_undo(tools, 3)); /* takes the undo back */
    TT_FILE(TU_ROOT "/f", "2\n");
    tt_call(&r, tools, "undo", "to=s force=j", "first", "true");
    T_CHECK(r.res.success && access(TU_ROOT "/notes", F_OK) != 0);
    tt_drop(&r);
    tu_close(tools);
}

static void undo_keeps_a_person_s_files_again_and_again(void) {
    hfsb_tools *tools = tu_open();
    tu_bash(tools, "echo 1 > f; echo 1 > other");
    tu_bash(tools, "echo 2 > f");
    tu_bash(tools, "echo 3 > f");
    tt_put(TU_ROOT "/other", HFSB_LIT("theirs\n"));
    if (symlink("f", TU_ROOT "/link")) abort();
    T_CHECK(tu_undo(tools, 0));
    TT_FILE(TU_ROOT "/f", "2\n");
    T_CHECK(tu_undo(tools, 0));
    TT_FILE(TU_ROOT "/f", "1\n");
    TT_FILE(TU_ROOT "/other", "theirs\n");
    TT_FILE(TU_ROOT "/link", "1\n");
    tu_close(tools);
}

/* A person and a tool have changed the same file, in either order. */
static void undo_refuses_a_file_that_both_have_changed(void) {
    static const char *const orders[] = {"ptp", "pt", "tp", "tpt"};
    size_t                   i;
    for (i = 0; i < TT_COUNT(orders); i++) {
        hfsb_tools *tools = tu_open();
        tt_reply    r = HFSB_INIT;
        const char *who;
        int         n = 0;
        tt_put(TU_ROOT "/f", HFSB_LIT("first\n"));
        T_CHECK(tu_checkpoint(tools) == 1);
        for (who = orders[i]; *who; who++) {
            char line[40];
            snprintf(line, sizeof line, "echo %c%d > f", *who, ++n);
            if (*who == 't') tu_bash(tools, line);
            else if (system("cd " TU_ROOT "; date +%s%N > f")) abort();
            T_CHECK(tu_checkpoint(tools) == n + 1);
        }
        tt_call(&r, tools, "undo", "to=s", "first");
        TT_FAIL(&r, "Nothing was restored. 1 path has changed since");
        tt_call(&r, tools, "undo", "to=s force=j", "first", "true");
        T_CHECK(r.res.success);
        TT_FILE(TU_ROOT "/f", "first\n");
        tt_drop(&r);
        tu_close(tools);
    }
}

/* While a command runs nobody knows who makes a change. */
static void undo_asks_about_changes_while_a_command_ran(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tu_bash(tools, "echo 1 > f");
    tt_call(&r, tools, "bash", "command=s background=j id=s", "sleep 100",
            "true", "j");
    tt_put(TU_ROOT "/new", HFSB_LIT("theirs?\n"));
    T_CHECK(tu_checkpoint(tools) == 3);
    tt_call(&r, tools, "kill", "");
    tt_call(&r, tools, "undo", "to=s", "first");
    TT_FAIL(&r, "Nothing was restored. 1 path has changed since");
    TT_FILE(TU_ROOT "/new", "theirs?\n");
    tt_put(TU_ROOT "/own", HFSB_LIT("theirs\n")); /* nothing runs now */
    T_CHECK(tu_checkpoint(tools) == 4);
    tt_call(&r, tools, "undo", "to=s", "3");
    T_CHECK(r.res.success);
    TT_FILE(TU_ROOT "/own", "theirs\n");
    tt_drop(&r);
    tu_close(tools);
}

/* The heap of a tools object: at one of its allocations a person saves their
   file, as editors do. */
typedef struct saver {
    size_t      calls, at;
    const char *path;
} saver;

static void *save_at(void *user, void *ptr, size_t old_size, size_t size) {
    saver *s = (saver *)user;
    (void)old_size;
    if (++s->calls == s->at) {
        tt_put(TU_ROOT "/.editor", HFSB_LIT("theirs\n"));
        if (rename(TU_ROOT "/.editor", s->path)) abort();
    }
    if (size) return realloc(ptr, size);
    free(ptr);
    return NULL;
}

/* One undo during which the path is saved; false when that comes after it. The
   file is there afterwards, or in the checkpoint that takes the undo back. */
static bool save_during_undo(saver *s) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools = tu_open();
    tt_reply        r = HFSB_INIT;
    char            text[32];
    bool            saved;
    tu_bash(tools, "mkdir d; echo 1 > f; echo 1 > d/l; ln -s f s");
    tu_bash(tools, "echo 2 > f; echo 2 > g; rm d/l; ln -sf g s");
    hfsb_tools_close(tools);
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = TU_STORE;
    opts.no_checks = true;
    opts.alloc.fn = save_at;
    opts.alloc.user = s;
    s->calls = 0;
    if (hfsb_tools_open(&opts, &tools, NULL) != HFSB_OK) abort();
    tt_call(&r, tools, "undo", "");
    saved = s->calls >= s->at;
    s->at += getenv("HFSB_TEST_LONG") ? 1 : 4;
    snprintf(text, sizeof text, "%lld",
             hfsb_json_int(hfsb_json_get(r.extra.root, "before"), 0));
    if (saved && system("grep -qr theirs " TU_ROOT)) {
        tt_call(&r, tools, "undo", "to=s force=j", text, "true");
        TT_FILE(s->path, "theirs\n");
    }
    tt_drop(&r);
    tu_close(tools);
    return saved;
}

static void what_is_saved_during_an_undo_is_not_lost(void) {
    static const char *const paths[] = {TU_ROOT "/f", TU_ROOT "/g",
                                        TU_ROOT "/d/l", TU_ROOT "/s"};
    size_t                   i;
    for (i = 0; i < TT_COUNT(paths); i++) {
        saver s = HFSB_INIT;
        s.at = 1;
        s.path = paths[i];
        while (save_during_undo(&s)) continue;
        T_CHECK(s.at > 50);
    }
}

/* A person has put a symlink where a folder was: what is restored in the
   folder must not land in another. */
static void undo_follows_no_symlink_on_the_way(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tu_bash(tools, "mkdir d e; echo d > d/f; echo e > e/f");
    tu_bash(tools, "rm d/f");
    T_CHECK(system("cd " TU_ROOT "; rmdir d; ln -s e d") == 0);
    T_CHECK(tu_checkpoint(tools) == 4);
    tt_call(&r, tools, "undo", "to=s", "2");
    T_CHECK(!r.res.success &&
            strstr(r.res.error.ptr, "/d/f (a part of the path is not a "));
    TT_FILE(TU_ROOT "/e/f", "e\n");
    tt_call(&r, tools, "undo", "to=s force=j", "2", "true");
    T_CHECK(r.res.success);
    TT_FILE(TU_ROOT "/d/f", "d\n");
    TT_FILE(TU_ROOT "/e/f", "e\n");
    tt_drop(&r);
    tu_close(tools);
}

/* ---- what is left out ---- */

static void ignored_files_stay_as_they_are(void) {
    hfsb_tools *tools = tu_open();
    tu_bash(tools, "mkdir -p .git build; echo build/ > .gitignore; "
                   "echo 1 > .git/x; echo 1 > build/x; echo 1 > f");
    tu_bash(tools, "echo 2 > .git/x; echo 2 > build/x; echo 2 > f");
    T_CHECK(tu_undo(tools, 0));
    TT_FILE(TU_ROOT "/f", "1\n");
    TT_FILE(TU_ROOT "/.git/x", "2\n");
    TT_FILE(TU_ROOT "/build/x", "2\n");
    /* no longer ignored, but it was when the checkpoint was taken */
    tu_bash(tools, "echo > .gitignore");
    T_CHECK(tu_undo(tools, 0));
    TT_FILE(TU_ROOT "/build/x", "2\n");
    tu_close(tools);
}

static void a_new_folder_with_ignored_files_stays(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tu_bash(tools, "echo '*.pyc' > .gitignore");
    tu_bash(tools, "mkdir p; echo 1 > p/x.py; echo 1 > p/x.pyc");
    tt_call(&r, tools, "undo", "");
    TT_OK(&r, "Took back \"bash mkdir p; echo 1 > p/x.py; echo 1 > "
              "p/x.pyc\", restored checkpoint 2: 0 changed, 0 created, 1 deleted. To take this back: undo with "
              "to=3. Kept 1 folder with other files in it.");
    T_CHECK(access(TU_ROOT "/p/x.pyc", F_OK) == 0);
    T_CHECK(access(TU_ROOT "/p/x.py", F_OK) != 0);
    tt_drop(&r);
    tu_close(tools);
}

/* Ignored by the command whose changes are undone, or closed by it. */
static void hide_changes(const char *command) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    char       *before;
    tu_bash(tools, "mkdir d; echo 1 > d/f; echo 1 > d/g");
    before = tu_photo();
    tu_bash(tools, command);
    tt_call(&r, tools, "undo", "");
    TT_ENDS(&r, NULL,
            "3 paths still differ, in folders that were ignored or could not "
            "be read. To restore them too, repeat it with to=2 and "
            "force=true.");
    tu_bash(tools, command);
    tt_call(&r, tools, "undo", "to=s force=j", "2", "true");
    T_CHECK(r.res.success);
    T_CHECK(tu_same(before, tu_photo()));
    tt_drop(&r);
    free(before);
    tu_close(tools);
}

static void hide_changes_by_a_mode(void) {
    hide_changes("rm -f d/f; echo 2 > d/g; echo 2 > d/new; chmod 0 d");
}

static void undo_by_force_restores_what_was_hidden(void) {
    hide_changes("rm -f d/f; echo 2 > d/g; echo 2 > d/new; echo d > "
                 ".gitignore");
    tu_as_nobody(hide_changes_by_a_mode);
}

static void ignored_files_are_included_on_request(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    (void)mkdir(TU_ROOT, 0755);
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = TU_STORE;
    opts.checkpoints.ignored = true;
    tools = tt_open(&opts);
    tu_bash(tools, "mkdir -p .git build; echo build/ > .gitignore; "
                   "echo 1 > .git/x; echo 1 > build/x");
    tu_bash(tools, "echo 2 > .git/x; rm -r build");
    T_CHECK(tu_undo(tools, 0));
    TT_FILE(TU_ROOT "/.git/x", "1\n");
    TT_FILE(TU_ROOT "/build/x", "1\n");
    tu_close(tools);
}

static void a_store_in_the_root_is_left_out(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    (void)mkdir(TU_ROOT, 0755);
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = TU_ROOT "/s";
    tools = tt_open(&opts);
    tu_bash(tools, "echo 1 > f");
    tu_bash(tools, "echo 2 > f");
    T_CHECK(tu_undo(tools, 0));
    TT_FILE(TU_ROOT "/f", "1\n");
    tt_call(&r, tools, "changes", "since=s", "first");
    T_CHECK(strstr(r.res.output.ptr, ": 0 changed, 1 created, 0 deleted"));
    tt_drop(&r);
    tu_close(tools);
}

/* The tools find one file with the text; a read of that path is refused. */
static void stay_out(hfsb_tools *tools, const char *store) {
    tt_reply r = HFSB_INIT;
    tt_call(&r, tools, "grep", "pattern=s all=j", "word", "true");
    TT_OK(&r, "f:1:word 1");
    tt_call(&r, tools, "glob", "pattern=s all=j", "**/state", "true");
    T_CHECK(tt_says(&r.res.output, "(no files match **/state; 1 files"));
    tt_call(&r, tools, "read", "path=s", store);
    TT_FAIL(&r, "Path is on the deny list");
    tt_call(&r, tools, "write", "path=s content=s", store, "x");
    TT_FAIL(&r, "Path is on the deny list");
    tt_drop(&r);
}

static void the_tools_stay_out_of_a_store_in_the_root(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    char            state[PATH_MAX];
    const char     *dir;
    (void)mkdir(TU_ROOT, 0755);
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = TU_ROOT "/[s] *";
    opts.checkpoints.ignored = true;
    tools = tt_open(&opts);
    tu_bash(tools, "echo word 1 > f");
    dir = hfsb_tools_exposed(tools); /* commands are not confined */
    T_CHECK(dir && strstr(dir, TU_ROOT "/[s] */"));
    snprintf(state, sizeof state, "%s/state", dir ? dir : "");
    T_CHECK(access(state, F_OK) == 0);
    stay_out(tools, state);
    T_CHECK(tu_undo(tools, 0) && access(TU_ROOT "/f", F_OK) != 0);
    tu_close(tools);
}

/* The root is the home. The stores of other roots are there too. */
static void the_tools_stay_out_of_the_stores_of_a_home(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    const char     *was = getenv("HOME");
    char            home[PATH_MAX], *old = strdup(was ? was : "/");
    (void)mkdir(TU_ROOT, 0755);
    T_CHECK(realpath(TU_ROOT, home) && setenv("HOME", home, 1) == 0 &&
            unsetenv("XDG_STATE_HOME") == 0);
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = "";
    tools = tt_open(&opts);
    T_CHECK(hfsb_tools_exposed(tools) != NULL);
    T_CHECK(system("mkdir -p \"$HOME/.local/state/hfsb/undo/other\" && echo "
                   "word > \"$HOME/.local/state/hfsb/undo/other/x\"") == 0);
    tu_bash(tools, "echo word 1 > f");
    stay_out(tools, ".local/state/hfsb/undo/other/x");
    T_CHECK(setenv("HOME", old, 1) == 0);
    free(old);
    tu_close(tools);
}

/* A search without checkpoints leaves it out as well. */
static void a_store_is_ignored_by_git(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    (void)mkdir(TU_ROOT, 0755);
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = TU_ROOT "/s";
    tools = tt_open(&opts);
    tu_bash(tools, "echo word 1 > f");
    hfsb_tools_close(tools);
    opts.checkpoints.dir = NULL;
    tools = tt_open(&opts);
    tt_call(&r, tools, "grep", "pattern=s", "word");
    TT_OK(&r, "f:1:word 1");
    tt_drop(&r);
    tu_close(tools);
}

static void looking_for_checkpoints_writes_nothing(void) {
    static const char *const names[] = {"checkpoints", "undo", "changes"};
    hfsb_tools_opts          opts = HFSB_INIT;
    hfsb_call_opts           call = HFSB_INIT;
    hfsb_tools              *tools;
    tt_reply                 r = HFSB_INIT;
    size_t                   i, round;
    call.names = HFSB_EDIT_NAMES_FLAGS;
    (void)mkdir(TU_ROOT, 0755);
    tt_put(TU_ROOT "/f", HFSB_LIT("1\n"));
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = TU_STORE;
    for (round = 0; round < 2; round++) { /* no store, an empty store */
        opts.checkpoints.no_create = true;
        tools = tt_open(&opts);
        for (i = 0; i < TT_COUNT(names); i++) {
            tt_do(&r, tools, names[i], HFSB_LIT("{}"), &call);
            TT_FAIL(&r, "There are no checkpoints of ");
        }
        hfsb_tools_close(tools);
        T_CHECK((access(TU_STORE, F_OK) != 0) == (round == 0));
        T_CHECK(system("test -z \"$(find " TU_STORE " -path '*/objects/*' "
                       "2>&1 | grep -v 'No such')\"") == 0);
        opts.checkpoints.no_create = false;
        hfsb_tools_close(tt_open(&opts));
    }
    tools = tt_open(&opts);
    tu_bash(tools, "echo 2 > f");
    hfsb_tools_close(tools);
    opts.checkpoints.no_create = true;
    tools = tt_open(&opts);
    T_CHECK(tu_undo(tools, 0));
    TT_FILE(TU_ROOT "/f", "1\n");
    tt_drop(&r);
    tu_close(tools);
}

/* ---- limits ---- */

static void too_many_files_stop_checkpoints_with_one_note(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    (void)mkdir(TU_ROOT, 0755);
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = TU_STORE;
    opts.checkpoints.max_files = 3;
    tools = tt_open(&opts);
    tt_call(&r, tools, "bash", "command=s", "touch a b c d; echo hello");
    TT_OK(&r, "hello\n\n(no more checkpoints, undo ends here: there are more "
              "than 3 files beneath the root)");
    tt_call(&r, tools, "bash", "command=s", "echo hello");
    TT_OK(&r, "hello\n");
    tt_call(&r, tools, "undo", "");
    TT_FAIL(&r, "Checkpoints have stopped: there are more than 3 files");
    tt_drop(&r);
    tu_close(tools);
}

static void a_root_that_is_too_large_costs_no_disk(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    (void)mkdir(TU_ROOT, 0755);
    T_CHECK(system("head -c 3000000 /dev/urandom > " TU_ROOT "/big") == 0);
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = TU_STORE;
    opts.checkpoints.max_bytes = 1 << 20;
    tools = tt_open(&opts);
    tt_call(&r, tools, "bash", "command=s", "echo hello");
    TT_OK(&r, "hello\n\n(no more checkpoints, undo ends here: the files "
              "beneath the root have more than 1 MiB)");
    T_CHECK(system("test $(ls -lR " TU_STORE " | "
                   "awk '{ n += $5 } END { print int(n / 1024) }') -lt 100") ==
            0);
    tt_drop(&r);
    tu_close(tools);
}

static void old_checkpoints_are_dropped_but_not_the_first(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    int             i;
    (void)mkdir(TU_ROOT, 0755);
    tt_put(TU_ROOT "/first", HFSB_LIT("first\n"));
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = TU_STORE;
    opts.checkpoints.max_bytes = 1 << 20;
    tools = tt_open(&opts);
    for (i = 0; i < 30; i++) {
        tu_bash(tools, "head -c 100000 /dev/urandom > f; rm -f first");
        if (i != 3) continue;
        hfsb_tools_close(tools); /* a session begins at another one */
        tools = tt_open(&opts);
    }
    T_CHECK(system("test $(ls -lR " TU_STORE " | "
                   "awk '{ n += $5 } END { print int(n / 1024) }') -lt 2000") ==
            0);
    T_CHECK(tu_undo(tools, 0)); /* the last step is there */
    tt_call(&r, tools, "undo", "to=s", "3");
    TT_FAIL(&r, "There is no checkpoint \"3\"");
    tt_call(&r, tools, "undo", "to=s", "first");
    T_CHECK(r.res.success);
    TT_FILE(TU_ROOT "/first", "first\n");
    tt_drop(&r);
    tu_close(tools);
}

/* The checkpoint that an undo takes first drops others, but not its goal, nor
   what takes it back. */
static void an_undo_drops_neither_end_of_itself(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    int             i;
    (void)mkdir(TU_ROOT, 0755);
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = TU_STORE;
    opts.checkpoints.max_bytes = 1 << 20;
    tools = tt_open(&opts);
    tu_bash(tools, "echo one > one");
    for (i = 0; i < 8; i++)
        tu_bash(tools, "head -c 100000 /dev/urandom > f; rm -f one");
    tt_put(TU_ROOT "/theirs", HFSB_LIT("theirs\n"));
    T_CHECK(system("head -c 300000 /dev/urandom > " TU_ROOT "/f") == 0);
    tt_call(&r, tools, "undo", "to=s force=j", "2", "true");
    T_CHECK(r.res.success);
    TT_FILE(TU_ROOT "/one", "one\n");
    T_CHECK(tu_undo(tools, 11));
    TT_FILE(TU_ROOT "/theirs", "theirs\n");
    tt_drop(&r);
    tu_close(tools);
}

static void the_size_of_a_store_is_known(void) {
    hfsb_tools        *tools = tu_open();
    hfsbi_store       *store = &tools->history->store;
    unsigned long long bytes;
    int                i;
    for (i = 0; i < 5; i++) {
        tu_bash(tools, "date +%s%N > f");
        T_CHECK(tu_undo(tools, 1));
    }
    bytes = store->bytes;
    store->counted = false;
    T_CHECK(hfsbi_store_count(store) == 0 && store->bytes == bytes);
    tu_close(tools);
}

static void a_scan_that_finds_nothing_changed_writes_nothing(void) {
    hfsb_tools *tools = tu_open();
    long long   n;
    tu_bash(tools, "echo 1 > f");
    n = tu_checkpoint(tools);
    tu_bash(tools, "cat f; touch f; cp f g; mv g f");
    T_CHECK(tu_checkpoint(tools) == n);
    tu_close(tools);
}

/* ---- roots that are scanned in parts, by several threads ---- */

/* 1,573 paths in three parts, which meet at the ends of d03 and d07. */
static const char large_root[] =
    "mkdir top; cd top; for d in 0{0..9} 10 11; do mkdir d$d; "
    "(cd d$d; seq 130 | split -l 1 -a 3 - x); done";

/* Without a hook for memory, which threads of the library would have to
   share: with one, a scan has one part. */
static hfsb_tools *open_large(size_t max_files) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools = NULL;
    (void)mkdir(TU_ROOT, 0755);
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = TU_STORE;
    opts.checkpoints.max_files = max_files;
    if (hfsb_tools_open(&opts, &tools, NULL) != HFSB_OK) abort();
    return tools;
}

static void undo_restores_a_large_root(void) {
    static const char *const changes[] = {
        "echo new > top/d10/xabc; echo new > top/d00/xabd; mkdir a zz; "
        "echo a > a/a; echo z > zz/z",
        "rm -r top/d03; rm top/d07/xae[x-z]; mv top/d08 top/d04/d08; "
        "ln -s d09 top/d08",
        "rm -r top/d07; echo file > top/d07; mkdir top/d03; touch top/d03-",
        "for d in top/d*; do rm $d/x*a; echo $d > $d/xaaa-; done",
        "ln top/d00/xaab zz/link; ln top/d00/xaab top/d10/link; "
        "echo both >> zz/link",
        "mv top TOP; mkdir top; mv TOP/d0* top",
        "rm -rf top; echo file > top"};
    enum { STEPS = sizeof changes / sizeof *changes };
    hfsb_tools *tools = open_large(0);
    char       *photos[STEPS + 1];
    long long   numbers[STEPS + 1];
    size_t      i;
    tu_bash(tools, large_root);
    for (i = 0; i <= STEPS; i++) {
        if (i) tu_bash(tools, changes[i - 1]);
        numbers[i] = tu_checkpoint(tools);
        T_CHECK(i == 0 || numbers[i] > numbers[i - 1]);
        T_CHECK(tu_checkpoint(tools) == numbers[i]);
        photos[i] = tu_photo();
    }
    for (i = 0; i <= STEPS; i++) {
        size_t to = (i * 3 + 2) % (STEPS + 1);
        T_CHECK(tu_undo(tools, numbers[to]));
        T_CHECK(tu_same(photos[to], tu_photo()));
    }
    for (i = 0; i <= STEPS; i++) free(photos[i]);
    tu_close(tools);
}

static void close_folders_of_a_large_root(void) {
    static const char *const closed[] = {"top/d03", "top/d04", "top/d07",
                                         "top"};
    hfsb_tools *tools = open_large(0);
    char       *before, text[80];
    size_t      i;
    tu_bash(tools, large_root);
    before = tu_photo();
    for (i = 0; i < sizeof closed / sizeof *closed; i++) {
        long long n = tu_checkpoint(tools), m;
        snprintf(text, sizeof text, "echo new > new; chmod %d %s",
                 i % 2 ? 0 : 444, closed[i]);
        tu_bash(tools, text);
        m = tu_checkpoint(tools);
        T_CHECK(m > n && tu_checkpoint(tools) == m);
        T_CHECK(tu_undo(tools, n));
        T_CHECK(tu_same(before, tu_photo()));
    }
    free(before);
    tu_close(tools);
}

static void undo_opens_closed_folders_of_a_large_root(void) {
    tu_as_nobody(close_folders_of_a_large_root);
}

static void a_large_root_may_become_too_large(void) {
    hfsb_tools *tools = open_large(1574);
    tt_reply    r = HFSB_INIT;
    tu_bash(tools, large_root);
    tt_call(&r, tools, "bash", "command=s", "touch top/d07/b");
    TT_OK(&r, "");
    tt_call(&r, tools, "bash", "command=s", "touch top/d07/c");
    TT_OK(&r, "\n(no more checkpoints, undo ends here: there are more than "
              "1574 files beneath the root)");
    tt_drop(&r);
    tu_close(tools);
}

/* ---- what the tools show ---- */

static void changes_shows_what_edits_and_commands_did(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tt_put(TU_ROOT "/f", HFSB_LIT("one\ntwo\n"));
    tt_put(TU_ROOT "/gone", HFSB_LIT("x\n"));
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "f", "two",
            "three");
    tu_bash(tools, "rm gone; mkdir d; echo new > d/n; chmod 755 f");
    tt_call(&r, tools, "changes", "");
    T_CHECK(r.res.success);
    T_CHECK(strstr(r.res.output.ptr,
                   "): 1 changed, 2 created, 1 deleted\ncreated d/\n"
                   "created d/n\nchanged f (mode 0755, was 0644)\n"
                   "deleted gone\n\n"));
    T_CHECK(strstr(r.res.output.ptr, "-two\n+three\n"));
    T_CHECK(strstr(r.res.output.ptr, "+new\n"));
    T_CHECK(hfsb_json_count(hfsb_json_get(r.extra.root, "files")) == 4);
    tt_call(&r, tools, "changes", "path=s", "d");
    T_CHECK(strstr(r.res.output.ptr, "): 0 changed, 2 created, 0 deleted\n"));
    tt_call(&r, tools, "changes", "since=j", "2");
    T_CHECK(strstr(r.res.output.ptr, "): 1 changed, 2 created, 1 deleted\n") &&
            !strstr(r.res.output.ptr, "-two"));
    tt_drop(&r);
    tu_close(tools);
}

static void changes_has_paths_that_undo_takes(void) {
    hfsb_tools    *tools = tu_open();
    tt_reply       r = HFSB_INIT;
    hfsb_json_iter it;
    hfsb_buf       path = HFSB_INIT;
    tu_bash(tools, "echo x > \"$(printf 'two\\nlines\\tx')\"");
    tt_call(&r, tools, "changes", "");
    T_CHECK(strstr(r.res.output.ptr, "\ncreated two\\nlines\\tx\n"));
    it = hfsb_json_begin(hfsb_json_get(r.extra.root, "files"));
    T_CHECK(hfsb_json_next(&it));
    T_CHECK(hfsb_buf_append(&path, hfsbi_json_get_str(it.value, "path")) ==
            HFSB_OK);
    T_STR(path, "two\nlines\tx");
    tt_call(&r, tools, "undo", "to=s path=s", "first", hfsb_buf_cstr(&path));
    T_CHECK(r.res.success);
    T_CHECK(access(TU_ROOT "/two\nlines\tx", F_OK) != 0);
    hfsb_buf_free(&path);
    tt_drop(&r);
    tu_close(tools);
}

static void checkpoints_lists_them_with_their_makers(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "checkpoints", "");
    TT_OK(&r, "(no checkpoints yet)");
    tt_call(&r, tools, "write", "path=s content=s", "f", "x");
    tu_bash(tools, "echo y > f");
    tt_call(&r, tools, "checkpoints", "");
    T_CHECK(strstr(r.res.output.ptr, "ago  bash echo y > f  (1 changed, 0 "
                                     "created, 0 deleted)  <- last seen"));
    T_CHECK(strstr(r.res.output.ptr, "ago  write f  (0 changed, 1 created"));
    T_CHECK(strstr(r.res.output.ptr, "ago  start"));
    T_CHECK(hfsb_json_count(hfsb_json_get(r.extra.root, "checkpoints")) == 3);
    tt_drop(&r);
    tu_close(tools);
}

static void the_tools_say_when_checkpoints_are_off(void) {
    static const char *const names[] = {"checkpoint", "checkpoints", "undo",
                                        "changes"};
    hfsb_tools    *tools = tt_open(NULL);
    hfsb_call_opts person = HFSB_INIT;
    tt_reply       r = HFSB_INIT;
    size_t         i;
    person.names = HFSB_EDIT_NAMES_FLAGS;
    for (i = 0; i < TT_COUNT(names); i++) {
        tt_call(&r, tools, names[i], "");
        TT_FAIL(&r, "There are no checkpoints: they are off. A person can "
                    "start hfsb-server --root DIR --checkpoints on,");
        tt_do(&r, tools, names[i], HFSB_LIT("{}"), &person);
        TT_FAIL(&r, "There are no checkpoints. `hfsb edit` and ");
    }
    tt_drop(&r);
    hfsb_tools_close(tools);
}

static void checkpoints_outlive_the_process(void) {
    hfsb_tools *tools = tu_open();
    tu_bash(tools, "echo 1 > f");
    tu_bash(tools, "echo 2 > f");
    hfsb_tools_close(tools);
    tools = tu_open();
    T_CHECK(tu_undo(tools, 0));
    TT_FILE(TU_ROOT "/f", "1\n");
    tu_close(tools);
}

/* Each session has its own start, though the store has one. */
static void changes_begins_with_its_own_session(void) {
    hfsb_tools *one = tu_open(), *two;
    tt_reply    r = HFSB_INIT;
    tu_bash(one, "echo 1 > f");
    two = tu_open();
    tu_bash(two, "echo 1 > g");
    tt_call(&r, one, "changes", "");
    T_CHECK(strstr(r.res.output.ptr, "Since checkpoint 1 (start, "));
    tt_call(&r, two, "changes", "");
    T_CHECK(strstr(r.res.output.ptr, "Since checkpoint 2 (bash "));
    tt_drop(&r);
    hfsb_tools_close(two);
    tu_close(one);
}

/* Whoever works on after a killed undo does not want it completed later. */
static void an_interrupted_undo_is_forgotten_after_a_command(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tu_bash(tools, "echo 1 > f; echo 1 > g");
    tu_bash(tools, "echo 2 > f; echo 2 > g");
    T_CHECK(hfsbi_history_enter(tools->history, NULL) == HFSB_OK);
    tools->history->state.undo_to = 2; /* and it died after one file */
    T_CHECK(hfsbi_history_save(tools->history, NULL) == HFSB_OK);
    hfsbi_history_leave(tools->history);
    tt_put(TU_ROOT "/f", HFSB_LIT("1\n"));
    hfsb_tools_close(tools);
    tools = tu_open();
    tu_bash(tools, "echo 3 > f; echo 3 > g");
    T_CHECK(tu_undo(tools, 0)); /* takes the command back */
    TT_FILE(TU_ROOT "/f", "1\n");
    TT_FILE(TU_ROOT "/g", "2\n");
    tt_call(&r, tools, "checkpoints", "");
    T_CHECK(strstr(r.res.output.ptr, "  interrupted undo to 2  (1 changed"));
    T_CHECK(tu_undo(tools, 0)); /* and the undo */
    TT_FILE(TU_ROOT "/f", "2\n");
    tt_drop(&r);
    tu_close(tools);
}

/* A crash of the machine may leave the newest checkpoint empty. */
static void a_lost_checkpoint_does_not_end_the_history(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tu_bash(tools, "echo 1 > f");
    tu_bash(tools, "echo 2 > f");
    hfsb_tools_close(tools);
    T_CHECK(system("> $(ls " TU_STORE "/*/checkpoints/00000003)") == 0);
    tools = tu_open();
    tu_bash(tools, "echo 3 > f");
    T_CHECK(tu_undo(tools, 0));
    TT_FILE(TU_ROOT "/f", "2\n");
    tools->history->max_bytes = 1; /* drop what may be dropped */
    tu_bash(tools, "echo 4 > f");
    tools->history->max_bytes = 1 << 20;
    tools->history->stopped[0] = '\0';
    tt_call(&r, tools, "undo", "to=s force=j", "first", "true");
    T_CHECK(r.res.success && access(TU_ROOT "/f", F_OK) != 0);
    tt_drop(&r);
    tu_close(tools);
}

static void make_foreign_setuid_file(void) {
    if (mkdir(TU_ROOT, 0755) || chown(TU_ROOT, 65534, 65534)) abort();
    tt_put(TU_ROOT "/s", HFSB_LIT("s\n"));
    if (chown(TU_ROOT "/s", 1, 1) || chmod(TU_ROOT "/s", 06755)) abort();
}

static void remove_foreign_setuid_file(void) {
    hfsb_tools *tools = tu_open();
    T_CHECK(tu_checkpoint(tools) == 1);
    tu_bash(tools, "rm -f s");
    T_CHECK(tu_undo(tools, 0));
    T_CHECK(system("test $(stat -c %a " TU_ROOT "/s) = 755") == 0);
    tu_close(tools);
}

static void a_file_of_another_owner_is_no_longer_setuid(void) {
    if (geteuid() != 0) return;
    tu_as_root = make_foreign_setuid_file;
    tu_as_nobody(remove_foreign_setuid_file);
    tu_as_root = NULL;
}

static void checkpoints_need_a_root(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_tools     *tools;
    hfsb_err        err;
    opts.checkpoints.dir = TU_STORE;
    T_CHECK(hfsb_tools_open(&opts, &tools, &err) == HFSB_ARG);
    T_CHECK(!strcmp(err.msg, "Checkpoints need a root directory."));
    opts.root = HFSB_LIT(".");
    opts.checkpoints.dir = "/proc/none";
    T_CHECK(hfsb_tools_open(&opts, &tools, &err) != HFSB_OK);
    T_CHECK(strstr(err.msg, "Checkpoints cannot be stored in /proc/none"));
}

static void a_store_that_others_may_change_is_refused(void) {
    hfsb_tools     *tools = tu_open();
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_err        err;
    T_CHECK(system("test $(stat -c %a " TU_STORE "/*) = 700") == 0);
    hfsb_tools_close(tools);
    T_CHECK(system("chmod 777 " TU_STORE "/*") == 0);
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = TU_STORE;
    T_CHECK(hfsb_tools_open(&opts, &tools, &err) != HFSB_OK);
    tu_close(tools);
}

static void a_damaged_object_is_not_restored(void) {
    hfsb_tools *tools = tu_open();
    tt_reply    r = HFSB_INIT;
    tu_bash(tools, "echo 1 > f");
    tu_bash(tools, "echo 2 > f");
    T_CHECK(system("for o in " TU_STORE "/*/objects/*/*; do chmod u+w $o; "
                   "echo X > $o; done") == 0);
    tt_call(&r, tools, "undo", "");
    TT_ENDS(&r, NULL, "1 path was not restored:\nThe stored copy is damaged");
    TT_FILE(TU_ROOT "/f", "2\n");
    tt_drop(&r);
    tu_close(tools);
}

static void a_change_within_one_tick_is_noticed(void) {
    hfsb_tools *tools = tu_open();
    long long   n;
    int         i;
    for (i = 0; i < 50; i++) { /* the same size, perhaps the same times */
        char text[16];
        int  k = i;
        snprintf(text, sizeof text, "%04d\n", i);
        tt_put(TU_ROOT "/f", hfsb_cstr(text));
        n = tu_checkpoint(tools);
        snprintf(text, sizeof text, "%04d\n", k + 1000);
        tt_put(TU_ROOT "/f", hfsb_cstr(text));
        T_CHECK(tu_checkpoint(tools) == n + 1);
    }
    tu_close(tools);
}

/* ---- no memory, damaged files ---- */

/* Whatever lacked memory, a whole undo follows. */
static void undo_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    static const char *const calls[] = {"checkpoint", "changes", "undo",
                                        "checkpoints"};
    hfsb_tools_opts          opts = HFSB_INIT;
    hfsb_tools              *tools = NULL;
    hfsb_tool_result         r;
    hfsb_status              st;
    size_t                   i;
    (void)mkdir(TU_ROOT, 0755);
    tt_put(TU_ROOT "/f", HFSB_LIT("1\n"));
    tt_put(TU_ROOT "/g", HFSB_LIT("1\n"));
    tools = tu_open();
    T_CHECK(tu_checkpoint(tools) == 1);
    tt_put(TU_ROOT "/f", HFSB_LIT("2\n"));
    if (unlink(TU_ROOT "/g") || symlink("f", TU_ROOT "/l")) abort();
    hfsbi_history_changed(tools->history, "bash", HFSB_LIT("a change"));
    T_CHECK(tu_checkpoint(tools) == 2);
    hfsb_tools_close(tools);
    opts.root = HFSB_LIT(TU_ROOT);
    opts.checkpoints.dir = TU_STORE;
    opts.no_checks = true;
    opts.alloc = alloc;
    st = hfsb_tools_open(&opts, &tools, NULL);
    T_CHECK(st == HFSB_OK || (heap->fail_at && !tools));
    for (i = 0; tools && i < TT_COUNT(calls); i++) {
        st = hfsb_tools_call_text(tools, hfsb_cstr(calls[i]), HFSB_LIT("{}"),
                                  NULL, &r);
        T_CHECK((st == HFSB_OK && r.success) || heap->fail_at);
        T_CHECK(r.success || r.error.len > 0 || st == HFSB_NOMEM);
        hfsb_tool_result_free(&r);
    }
    hfsb_tools_close(tools);
    tools = tu_open();
    T_CHECK(tu_undo(tools, 1));
    TT_FILE(TU_ROOT "/f", "1\n");
    TT_FILE(TU_ROOT "/g", "1\n");
    T_CHECK(access(TU_ROOT "/l", F_OK) != 0);
    tu_close(tools);
}

static void each_allocation_of_an_undo_fails(void) {
    t_each_allocation_fails(undo_without_memory);
}

/* Bytes of the files of the store are changed at random: an undo restores the
   state or fails in words, and nothing outside the root is touched. */
static void a_damaged_store_does_no_harm(void) {
    unsigned long long seed = 5;
    int                i;
    tt_put("outside", HFSB_LIT("outside\n"));
    for (i = 0; i < 60; i++) {
        hfsb_tools *tools = tu_open();
        tt_reply    r = HFSB_INIT;
        char        line[400];
        tu_bash(tools, "echo 1 > f; mkdir d; ln -s f l; echo 1 > d/g");
        tu_bash(tools, "echo 2 > f; rm -r d; rm l");
        hfsb_tools_close(tools);
        snprintf(line, sizeof line,
                 "f=$(ls " TU_STORE "/*/checkpoints/* " TU_STORE
                 "/*/state | sed -n %dp); printf '\\%03o' | dd of=$f "
                 "conv=notrunc bs=1 seek=%lu status=none",
                 1 + (int)(t_random(&seed) % 3),
                 (unsigned)(t_random(&seed) % 256), t_random(&seed) % 900);
        if (system(line)) abort();
        tools = tu_open();
        tt_call(&r, tools, "undo", "to=s", "2");
        T_CHECK(r.res.success || r.res.error.len);
        tt_call(&r, tools, "checkpoints", "");
        tt_call(&r, tools, "changes", "");
        TT_FILE("outside", "outside\n");
        tt_drop(&r);
        tu_close(tools);
    }
    unlink("outside");
}

int main(void) {
    tt_begin();
    TT_RUN(undo_takes_back_a_command);
    TT_RUN(undo_joins_hard_links_again);
    TT_RUN(undo_opens_closed_folders_for_the_work);
    TT_RUN(undo_takes_back_edits_one_by_one);
    TT_RUN(undo_names_what_it_took_back);
    TT_RUN(an_undo_can_be_undone);
    TT_RUN(undo_restores_one_path);
    TT_RUN(undo_restores_a_path_with_its_folders);
    TT_RUN(a_checkpoint_has_a_name);
    TT_RUN(undo_refuses_to_overwrite_what_a_person_changed);
    TT_RUN(undo_keeps_other_files_of_a_person);
    TT_RUN(undo_takes_back_no_step_of_a_person);
    TT_RUN(undo_keeps_a_person_s_files_again_and_again);
    TT_RUN(undo_refuses_a_file_that_both_have_changed);
    TT_RUN(undo_asks_about_changes_while_a_command_ran);
    TT_RUN(what_is_saved_during_an_undo_is_not_lost);
    TT_RUN(undo_follows_no_symlink_on_the_way);
    TT_RUN(ignored_files_stay_as_they_are);
    TT_RUN(a_new_folder_with_ignored_files_stays);
    TT_RUN(undo_by_force_restores_what_was_hidden);
    TT_RUN(ignored_files_are_included_on_request);
    TT_RUN(a_store_in_the_root_is_left_out);
    TT_RUN(the_tools_stay_out_of_a_store_in_the_root);
    TT_RUN(the_tools_stay_out_of_the_stores_of_a_home);
    TT_RUN(a_store_is_ignored_by_git);
    TT_RUN(looking_for_checkpoints_writes_nothing);
    TT_RUN(too_many_files_stop_checkpoints_with_one_note);
    TT_RUN(a_root_that_is_too_large_costs_no_disk);
    TT_RUN(old_checkpoints_are_dropped_but_not_the_first);
    TT_RUN(an_undo_drops_neither_end_of_itself);
    TT_RUN(the_size_of_a_store_is_known);
    TT_RUN(a_scan_that_finds_nothing_changed_writes_nothing);
    TT_RUN(undo_restores_a_large_root);
    TT_RUN(undo_opens_closed_folders_of_a_large_root);
    TT_RUN(a_large_root_may_become_too_large);
    TT_RUN(changes_shows_what_edits_and_commands_did);
    TT_RUN(changes_has_paths_that_undo_takes);
    TT_RUN(checkpoints_lists_them_with_their_makers);
    TT_RUN(the_tools_say_when_checkpoints_are_off);
    TT_RUN(checkpoints_outlive_the_process);
    TT_RUN(changes_begins_with_its_own_session);
    TT_RUN(an_interrupted_undo_is_forgotten_after_a_command);
    TT_RUN(a_lost_checkpoint_does_not_end_the_history);
    TT_RUN(a_file_of_another_owner_is_no_longer_setuid);
    TT_RUN(checkpoints_need_a_root);
    TT_RUN(a_store_that_others_may_change_is_refused);
    TT_RUN(a_damaged_object_is_not_restored);
    TT_RUN(a_change_within_one_tick_is_noticed);
    TT_RUN(each_allocation_of_an_undo_fails);
    TT_RUN(a_damaged_store_does_no_harm);
    return TT_END();
}
