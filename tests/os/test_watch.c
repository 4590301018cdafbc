/* test_watch.c - a folder is watched

   in/     the root                    out/     never reported
   A change is written as one word: +f created, ~f written, -f removed, a>b
   renamed, !f chmod, % overflow, . the end; a folder ends in a slash.      */
#include "../support/t_loop.h"
#include "../support/t_file.h"

static hfsb_err   err;
static hfsb_root *in;

static hfsb_root *open_root(const hfsb_alloc *alloc) {
    static const char *const deny[] = {"denied", "/w/anchored"};
    hfsb_root_opts           opts;
    hfsb_root               *root = NULL;
    memset(&opts, 0, sizeof opts);
    opts.root = HFSB_LIT("in");
    opts.deny = deny;
    opts.deny_count = 2;
    if (alloc) opts.alloc = *alloc;
    (void)hfsb_root_open(&opts, &root, &err);
    return root;
}

#ifdef HFSBI_LINUX

typedef struct seen {
    hfsbi_loop         *loop;
    hfsbi_folder_watch *watch;
    hfsb_buf            text; /* the changes, with a space after each */
    size_t              calls;
    bool                keep;   /* does not take changes */
    bool                closes; /* closes the watch in its fn */
    int                 gone;
} seen;

static void put_change(hfsb_buf *out, const hfsbi_change *c) {
    static const char marks[] = "+~->!%.";
    const char       *slash = c->folder ? "/" : "";
    if (c->kind == HFSBI_CHANGE_RENAME)
        hfsb_buf_printf(out, "%.*s%s>%.*s%s ", (int)c->path.len, c->path.ptr,
                        slash, (int)c->to.len, c->to.ptr, slash);
    else
        hfsb_buf_printf(out, "%c%.*s%s ", marks[c->kind], (int)c->path.len,
                        c->path.ptr, slash);
}

static void take(seen *s) {
    hfsbi_change change;
    while (hfsbi_folder_watch_next(s->watch, &change))
        put_change(&s->text, &change);
}

static void on_change(void *user) {
    seen *s = (seen *)user;
    s->calls++;
    if (!s->keep) take(s);
    if (s->closes) {
        hfsbi_folder_watch_close(s->watch);
        s->watch = NULL;
    }
}

static void begin_tree(void) {
    t_remove_tree("in");
    t_remove_tree("out");
    T_CHECK(mkdir("in", 0755) == 0 && mkdir("out", 0755) == 0);
    T_CHECK(mkdir("in/w", 0755) == 0 && mkdir("in/w/d", 0755) == 0);
    T_CHECK(mkdir("in/other", 0755) == 0);
    t_put("in/w/f", "f");
    t_put("in/w/d/g", "g");
    T_CHECK(symlink("../../out", "in/w/olink") == 0);
    T_CHECK(symlink("w", "in/wlink") == 0);
    in = open_root(NULL);
    if (!in) abort();
}

static hfsb_status begin(seen *s, const char *path,
                         hfsbi_folder_watch_opts *opts, size_t threads) {
    hfsbi_folder_watch_opts none = HFSB_INIT;
    hfsb_status             st;
    memset(s, 0, sizeof *s);
    if (!in) begin_tree();
    if (!opts) opts = &none;
    opts->fn = on_change;
    opts->user = s;
    s->loop = loop_open(threads);
    st = hfsbi_folder_watch_open(in, hfsb_cstr(path), opts, &s->watch, &err);
    if (st == HFSB_OK) {
        hfsbi_loop_lock(s->loop);
        T_CHECK(hfsbi_folder_watch_start(s->watch, s->loop));
        hfsbi_loop_unlock(s->loop);
    }
    return st;
}

static void begin_recursive(seen *s, size_t threads) {
    hfsbi_folder_watch_opts opts = HFSB_INIT;
    opts.recursive = true;
    T_CHECK(begin(s, "w", &opts, threads) == HFSB_OK);
    if (!s->watch) abort();
}

static void end(seen *s) {
    hfsbi_loop_lock(s->loop);
    hfsbi_folder_watch_close(s->watch);
    hfsbi_loop_unlock(s->loop);
    hfsbi_loop_close(s->loop);
    hfsb_buf_free(&s->text);
    hfsb_root_close(in);
    in = NULL;
}

/* Turns the loop until the text ends in `last`, or 30 s have passed. */
static void wait_for(seen *s, const char *last) {
    long long until = hfsb_clock_ms() + 30000;
    while (!hfsb_str_ends(hfsb_buf_str(&s->text), hfsb_cstr(last)) &&
           hfsb_clock_ms() < until)
        loop_turn(s->loop, 100);
}

/* Turns the loop until nothing is under way and nothing has changed for a
   while. */
static void settle(seen *s) {
    long long last = hfsb_clock_ms(), end = last + 30000;
    int       quiet = 0;
    while ((quiet < 6 || hfsb_clock_ms() - last < 300) &&
           hfsb_clock_ms() < end) {
        size_t calls = s->calls, pending;
        loop_turn(s->loop, 50);
        hfsbi_loop_lock(s->loop);
        pending = hfsbi_loop_pending(s->loop);
        hfsbi_loop_unlock(s->loop);
        quiet++;
        if (calls == s->calls && !pending) continue;
        quiet = 0;
        last = hfsb_clock_ms();
    }
}

/* Makes a file to mark the end of what was done, and expects these changes
   before it. */
#define EXPECT(s, want) expect(__LINE__, s, want)

static void expect(int line, seen *s, const char *want) {
    static int count;
    char       path[64], last[64], all[1024];
    (void)snprintf(path, sizeof path, "in/w/mark%d", ++count);
    (void)snprintf(last, sizeof last, "+mark%d ", count);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    wait_for(s, last);
    (void)snprintf(all, sizeof all, "%s%s", want, last);
    t_checks++;
    if (!s->text.ptr || strcmp(s->text.ptr, all) != 0) {
        t_failed++;
        printf("line %d: %s:\n  is   \"%s\"\n  want \"%s\"\n", line, t_name,
               s->text.ptr ? s->text.ptr : "", all);
    }
    hfsb_buf_truncate(&s->text, 0);
}

/* ---- what is reported ---- */

static void changes_of_entries_are_reported(void) {
    seen s;
    int  fd;
    T_CHECK(begin(&s, "wlink", NULL, 2) == HFSB_OK);
    fd = open("in/w/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    EXPECT(&s, "+new ");
    T_CHECK(write(fd, "a", 1) == 1 && write(fd, "b", 1) == 1);
    close(fd);
    EXPECT(&s, "~new ");
    T_CHECK(chmod("in/w/new", 0644) == 0);
    EXPECT(&s, "!new ");
    T_CHECK(rename("in/w/new", "in/w/n2") == 0);
    EXPECT(&s, "new>n2 ");
    T_CHECK(rename("in/w/n2", "in/other/n2") == 0);
    EXPECT(&s, "n2> ");
    T_CHECK(rename("in/other/n2", "in/w/n3") == 0);
    EXPECT(&s, "+n3 ");
    T_CHECK(unlink("in/w/n3") == 0);
    EXPECT(&s, "-n3 ");
    T_CHECK(mkdir("in/w/x", 0755) == 0 && rmdir("in/w/x") == 0);
    EXPECT(&s, "+x/ -x/ ");
    t_put("in/w/d/deep", "not recursive");
    T_CHECK(symlink("../../out", "in/w/sym") == 0);
    EXPECT(&s, "+sym ");
    end(&s);
}

static void writes_of_the_library_show_no_temporaries(void) {
    seen s;
    T_CHECK(begin(&s, "w", NULL, 2) == HFSB_OK);
    T_CHECK(hfsb_file_write(in, HFSB_LIT("w/f"), HFSB_LIT("new"), NULL, NULL,
                            &err) == HFSB_OK);
    EXPECT(&s, "+f ~f ");
    end(&s);
}

static void denied_entries_are_not_reported(void) {
    seen s;
    begin_recursive(&s, 2);
    t_put("in/w/denied", "x");
    T_CHECK(mkdir("in/w/anchored", 0755) == 0);
    t_put("in/w/anchored/x", "x");
    t_put("in/w/d/denied", "x");
    T_CHECK(rename("in/w/denied", "in/w/shown") == 0);
    T_CHECK(rename("in/w/f", "in/w/denied") == 0);
    EXPECT(&s, "+shown ~shown f> ");
    /* moved to where the pattern does not match any more */
    T_CHECK(rename("in/w/anchored", "in/w/free") == 0);
    EXPECT(&s, "+free/ +free/x ");
    t_put("in/w/free/y", "");
    EXPECT(&s, "+free/y ");
    T_CHECK(rename("in/w/free", "in/w/anchored") == 0);
    EXPECT(&s, "free/>/ ");
    t_put("in/w/anchored/z", "");
    EXPECT(&s, "");
    end(&s);
}

static void folders_are_watched_as_they_come_and_go(void) {
    seen s;
    begin_recursive(&s, 2);
    t_put("in/w/d/h", "");
    EXPECT(&s, "+d/h ");
    T_CHECK(mkdir("in/w/d/e", 0755) == 0);
    EXPECT(&s, "+d/e/ ");
    close(open("in/w/d/e/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT(&s, "+d/e/x ");
    T_CHECK(rename("in/w/d", "in/w/r") == 0);
    close(open("in/w/r/e/y", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT(&s, "d/>r/ +r/e/y ");
    T_CHECK(rename("in/w/r/e", "in/w/e") == 0);
    close(open("in/w/e/z", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT(&s, "r/e/>e/ +e/z ");
    T_CHECK(rename("in/w/e", "in/other/e") == 0);
    EXPECT(&s, "e/>/ ");
    t_put("in/other/e/unseen", "");
    EXPECT(&s, "");
    t_remove_tree("in/w/r");
    wait_for(&s, "-r/ ");
    hfsb_buf_truncate(&s.text, 0);
    T_CHECK(mkdir("in/w/r", 0755) == 0);
    EXPECT(&s, "+r/ ");
    close(open("in/w/r/again", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT(&s, "+r/again ");
    end(&s);
}

/* Nothing that a new folder has is missed or reported twice, whether it was
   made before its watch or after. */
static void what_a_new_folder_has_is_reported_once(void) {
    seen      s;
    int       i, found, n = t_quick() ? 5 : 40;
    char      path[64], want[64];
    begin_recursive(&s, 2);
    for (i = 0; i < n; i++) {
        (void)snprintf(path, sizeof path, "in/w/n%d", i);
        T_CHECK(mkdir(path, 0755) == 0);
        (void)snprintf(path, sizeof path, "in/w/n%d/a", i);
        T_CHECK(mkdir(path, 0755) == 0);
        if (i % 3 == 0) loop_turn(s.loop, 0);
        (void)snprintf(path, sizeof path, "in/w/n%d/a/x", i);
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        if (i % 3 == 1) loop_turn(s.loop, 0);
        (void)snprintf(path, sizeof path, "in/w/n%d/b", i);
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
    settle(&s);
    T_CHECK(s.text.ptr != NULL);
    for (i = 0; s.text.ptr && i < n; i++) {
        static const char *const names[] = {"/ ", "/a/ ", "/a/x ", "/b "};
        size_t                   k;
        for (k = 0; k < 4; k++) {
            const char *at = s.text.ptr;
            (void)snprintf(want, sizeof want, "+n%d%s", i, names[k]);
            for (found = 0; (at = strstr(at, want)) != NULL; at++) found++;
            T_CHECK(found == 1);
            if (found != 1) printf("  %s %d times\n", want, found);
        }
    }
    end(&s);
}

static void a_tree_that_is_moved_in_is_reported_and_watched(void) {
    seen s;
    begin_recursive(&s, 2);
    T_CHECK(mkdir("in/other/t", 0755) == 0);
    T_CHECK(mkdir("in/other/t/u", 0755) == 0);
    t_put("in/other/t/u/v", "");
    T_CHECK(symlink("../../../out", "in/other/t/olink") == 0);
    T_CHECK(rename("in/other/t", "in/w/t") == 0);
    EXPECT(&s, "+t/ +t/olink +t/u/ +t/u/v ");
    close(open("in/w/t/u/w", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    t_put("out/secret", "");
    EXPECT(&s, "+t/u/w ");
    end(&s);
}

/* ---- the end ---- */

static void the_end_comes_when_the_folder_is_removed(void) {
    seen s;
    begin_recursive(&s, 2);
    t_remove_tree("in/w");
    wait_for(&s, ". ");
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&s.text), HFSB_LIT("-d/ . ")) ||
            hfsb_str_ends(hfsb_buf_str(&s.text), HFSB_LIT(". ")));
    loop_turn(s.loop, 0);
    end(&s);
}

static void the_end_comes_when_the_folder_is_moved(void) {
    seen s;
    begin_recursive(&s, 0);
    T_CHECK(rename("in/w", "out/w") == 0);
    t_put("out/w/not-reported", "");
    wait_for(&s, ". ");
    T_STR(s.text, ". ");
    end(&s);
}

/* The path leads to another folder by the time a new folder is watched. */
static void the_end_comes_when_the_way_to_the_folder_changes(void) {
    hfsbi_folder_watch_opts opts = HFSB_INIT;
    seen                    s;
    begin_tree();
    T_CHECK(mkdir("in/w/d/e", 0755) == 0);
    opts.recursive = true;
    T_CHECK(begin(&s, "w/d/e", &opts, 2) == HFSB_OK);
    T_CHECK(rename("in/w/d", "in/w/d2") == 0);
    T_CHECK(mkdir("in/w/d2/e/new", 0755) == 0);
    wait_for(&s, ". ");
    T_STR(s.text, "+new/ . ");
    end(&s);
}

static void a_watch_may_be_closed_in_its_callback(void) {
    seen s;
    begin_recursive(&s, 2);
    s.closes = true;
    t_put("in/w/x", "");
    wait_for(&s, "+x ");
    T_CHECK(s.watch == NULL && s.calls == 1);
    end(&s);
}

static void a_watch_may_be_closed_while_a_thread_reads(void) {
    seen s;
    int  i;
    for (i = 0; i < 20; i++) {
        begin_recursive(&s, 2);
        t_put("in/w/x", "");
        t_put("in/w/y", "");
        loop_turn(s.loop, 100);
        end(&s);
    }
}

/* From then on the root may be closed. */
static void on_gone(void *user) {
    ((seen *)user)->gone++;
    hfsb_root_close(in);
    in = NULL;
}

static void the_root_is_free_when_a_watch_is_gone(void) {
    int i;
    for (i = 0; i < 20; i++) {
        hfsbi_folder_watch_opts opts = HFSB_INIT;
        seen                    s;
        opts.recursive = true;
        opts.gone = on_gone;
        T_CHECK(begin(&s, "w", &opts, 2) == HFSB_OK);
        T_CHECK(mkdir("in/w/new", 0755) == 0);
        if (i % 2) loop_turn(s.loop, 100); /* a thread looks at it */
        T_CHECK(s.gone == 0);
        hfsbi_loop_lock(s.loop);
        hfsbi_folder_watch_close(s.watch);
        hfsbi_loop_unlock(s.loop);
        T_CHECK(i % 2 || s.gone == 1);
        while (hfsbi_loop_pending(s.loop)) loop_turn(s.loop, 100);
        T_CHECK(s.gone == 1 && !in);
        s.watch = NULL;
        end(&s);
    }
}

/* ---- limits ---- */

static void a_full_queue_is_one_overflow(void) {
    hfsbi_folder_watch_opts opts = HFSB_INIT;
    seen                    s;
    int                     i;
    char                    path[64];
    opts.max_changes = 3;
    opts.recursive = true;
    T_CHECK(begin(&s, "w", &opts, 2) == HFSB_OK);
    s.keep = true;
    for (i = 0; i < 50; i++) {
        (void)snprintf(path, sizeof path, "in/w/n%d", i);
        T_CHECK(mkdir(path, 0755) == 0);
    }
    settle(&s);
    take(&s);
    T_STR(s.text, "+n0/ +n1/ +n2/ % ");
    hfsb_buf_truncate(&s.text, 0);
    s.keep = false;
    /* those that were dropped are watched all the same */
    close(open("in/w/n49/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    wait_for(&s, "+n49/x ");
    T_STR(s.text, "+n49/x ");
    end(&s);
}

static void events_the_kernel_has_lost_are_one_overflow(void) {
    seen      s;
    long long until;
    int       i, max = 16384;
    FILE     *f = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
    if (!f || fscanf(f, "%d", &max) != 1 || max > 50000 || t_quick()) {
        if (f) fclose(f);
        t_skipped++;
        return;
    }
    fclose(f);
    begin_recursive(&s, 2);
    for (i = 0; i < max; i++) {
        close(open("in/w/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        (void)unlink("in/w/x");
    }
    T_CHECK(mkdir("in/w/lost", 0755) == 0);
    until = hfsb_clock_ms() + 30000;
    while (hfsb_clock_ms() < until &&
           (!s.text.ptr || !strchr(s.text.ptr, '%')))
        loop_turn(s.loop, 50);
    settle(&s);
    T_CHECK(s.text.ptr && strchr(s.text.ptr, '%') != NULL);
    hfsb_buf_truncate(&s.text, 0);
    close(open("in/w/lost/y", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT(&s, "+lost/y ");
    end(&s);
}

/* A scan sees folders where they are in the end, then older events of the
   kernel arrive: "b" moves into "a", which is known to be in "b". */
static void renames_that_contradict_a_scan_are_an_overflow(void) {
    seen s;
    begin_tree();
    T_CHECK(mkdir("in/w/a", 0755) == 0 && mkdir("in/w/b", 0755) == 0);
    begin_recursive(&s, 2);
    T_CHECK(mkdir("in/w/b/c", 0755) == 0);
    T_CHECK(rename("in/w/b", "in/w/a/b") == 0);
    T_CHECK(rename("in/w/a/b", "in/w/b") == 0);
    T_CHECK(rename("in/w/a", "in/w/b/c/a") == 0);
    wait_for(&s, "% ");
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&s.text), HFSB_LIT("% ")));
    hfsb_buf_truncate(&s.text, 0);
    close(open("in/w/b/c/a/z", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT(&s, "+b/c/a/z ");
    end(&s);
}

static void too_many_folders_are_an_error_or_an_overflow(void) {
    hfsbi_folder_watch_opts opts = HFSB_INIT;
    seen                    s;
    opts.recursive = true;
    opts.max_folders = 1;
    T_CHECK(begin(&s, "w", &opts, 2) == HFSB_LIMIT && !s.watch);
    T_ERR(HFSB_LIMIT, "Has too many folders to watch: w (the limit is 1)");
    end(&s);
    opts.max_folders = 2;
    T_CHECK(begin(&s, "w", &opts, 2) == HFSB_OK);
    T_CHECK(mkdir("in/w/more", 0755) == 0);
    wait_for(&s, "% ");
    T_STR(s.text, "+more/ % ");
    end(&s);
}

/* Each event costs as much as its folder is deep, and so does its path. */
static void folders_that_lie_too_deep_are_an_overflow(void) {
    enum { DEPTH = 600 };
    seen s;
    int  i, at, fd;
    begin_recursive(&s, 2);
    at = open("in/w/d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (i = 0; i < DEPTH && at >= 0; i++) {
        T_CHECK(mkdirat(at, "e", 0755) == 0);
        fd = openat(at, "e", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = fd;
        if (i % 10 == 9) loop_turn(s.loop, 10);
    }
    T_CHECK(at >= 0);
    close(at);
    wait_for(&s, "% ");
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&s.text), HFSB_LIT("% ")));
    /* what lies above is watched still */
    hfsb_buf_truncate(&s.text, 0);
    EXPECT(&s, "");
    end(&s);
}

static void what_cannot_be_watched_is_refused(void) {
    static const struct {
        const char *path;
        hfsb_status st;
    } cases[] = {{"w/f", HFSB_ARG},         {"none", HFSB_NOT_FOUND},
                 {"w/olink", HFSB_OUTSIDE}, {"../out", HFSB_OUTSIDE},
                 {"denied", HFSB_DENIED},   {"", HFSB_REFUSED}};
    seen   s;
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        T_CHECK(begin(&s, cases[i].path, NULL, 0) == cases[i].st && !s.watch);
        end(&s);
    }
}

static const char *too_many_instances(void) {
    hfsbi_folder_watch_opts opts = HFSB_INIT;
    hfsbi_folder_watch     *w[300];
    size_t                  n = 0;
    hfsb_status             st = HFSB_OK;
    for (; n < 300 && st == HFSB_OK; n++)
        st = hfsbi_folder_watch_open(in, HFSB_LIT("w"), &opts, &w[n], &err);
    if (st == HFSB_OK) return "no limit here";
    T_CHECK(st == HFSB_BUSY && strstr(err.msg, "max_user_instances"));
    while (--n > 0) hfsbi_folder_watch_close(w[n - 1]);
    return NULL;
}

static void too_many_watches_of_a_user_are_an_error(void) {
    begin_tree();
    t_in_child(too_many_instances);
    hfsb_root_close(in);
    in = NULL;
}

/* ---- faults and races ---- */

static void watch_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsbi_folder_watch_opts opts = HFSB_INIT;
    hfsbi_folder_watch     *w;
    hfsbi_change            change;
    hfsbi_loop             *loop;
    hfsb_root              *root = open_root(&alloc);
    bool                    any = false;
    hfsb_status             st;
    if (!root) return;
    opts.recursive = true;
    st = hfsbi_folder_watch_open(root, HFSB_LIT("w"), &opts, &w, &err);
    T_CHECK(st == HFSB_OK || heap->fail_at);
    if (st == HFSB_OK) {
        loop = loop_open(0);
        hfsbi_loop_lock(loop);
        T_CHECK(hfsbi_folder_watch_start(w, loop));
        hfsbi_loop_unlock(loop);
        (void)mkdir("in/w/m", 0755);
        (void)mkdir("in/w/m/n", 0755);
        (void)rename("in/w/m", "in/w/o");
        turns(loop, 6);
        while (hfsbi_folder_watch_next(w, &change)) any = true;
        T_CHECK(any); /* the changes, or that they were lost */
        hfsbi_loop_lock(loop);
        hfsbi_folder_watch_close(w);
        hfsbi_loop_unlock(loop);
        hfsbi_loop_close(loop);
    } else {
        T_CHECK(err.code == st && !w);
    }
    hfsb_root_close(root);
    t_remove_tree("in/w/m");
    t_remove_tree("in/w/o");
}

static void every_allocation_of_a_watch_fails(void) {
    begin_tree();
    t_each_allocation_fails(watch_without_memory);
    hfsb_root_close(in);
    in = NULL;
}

static int busy;

static void *swap_folders(void *user) {
    unsigned long long seed = 11;
    (void)user;
    while (__atomic_load_n(&busy, __ATOMIC_SEQ_CST)) {
        switch (t_random(&seed) % 9) {
        case 0: (void)mkdir("in/w/a", 0755); break;
        case 1: (void)mkdir("in/w/a/b", 0755); break;
        case 2: (void)rename("in/w/a", "in/w/d/a"); break;
        case 3: (void)rename("in/w/d/a", "in/w/b"); break;
        case 4: (void)rename("in/w/d", "in/w/b/d"); break;
        case 5: (void)rename("in/w/b/d", "in/w/d"); break;
        case 6: (void)symlink("../../out", "in/w/a"); break;
        case 7: (void)unlink("in/w/a"); break;
        default: (void)rename("in/w/b", "in/w/a/b"); break;
        }
    }
    return NULL;
}

/* Folders turn into links and into each other: the outside is not watched,
   and in the end everything that is there is. */
static void folders_are_swapped_meanwhile(void) {
    seen      s;
    pthread_t thread;
    long long until = hfsb_clock_ms() + (t_quick() ? 300 : 2000);
    begin_recursive(&s, 2);
    __atomic_store_n(&busy, 1, __ATOMIC_SEQ_CST);
    T_CHECK(pthread_create(&thread, NULL, swap_folders, NULL) == 0);
    while (hfsb_clock_ms() < until) {
        close(open("out/secret", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        (void)unlink("out/secret");
        loop_turn(s.loop, 10);
        T_CHECK(!s.text.ptr || !strstr(s.text.ptr, "secret"));
        hfsb_buf_truncate(&s.text, 0);
    }
    __atomic_store_n(&busy, 0, __ATOMIC_SEQ_CST);
    T_CHECK(pthread_join(thread, NULL) == 0);
    settle(&s);
    hfsb_buf_truncate(&s.text, 0);
    t_remove_tree("in/w/a");
    t_remove_tree("in/w/b");
    t_remove_tree("in/w/d");
    T_CHECK(mkdir("in/w/z", 0755) == 0);
    wait_for(&s, "+z/ ");
    hfsb_buf_truncate(&s.text, 0);
    close(open("in/w/z/y", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT(&s, "+z/y ");
    end(&s);
}

int main(void) {
    int fds;
    t_begin_files();
    fds = t_descriptors();
    T_RUN(changes_of_entries_are_reported);
    T_RUN(writes_of_the_library_show_no_temporaries);
    T_RUN(denied_entries_are_not_reported);
    T_RUN(folders_are_watched_as_they_come_and_go);
    T_RUN(what_a_new_folder_has_is_reported_once);
    T_RUN(a_tree_that_is_moved_in_is_reported_and_watched);
    T_RUN(the_end_comes_when_the_folder_is_removed);
    T_RUN(the_end_comes_when_the_folder_is_moved);
    T_RUN(the_end_comes_when_the_way_to_the_folder_changes);
    T_RUN(a_watch_may_be_closed_in_its_callback);
    T_RUN(a_watch_may_be_closed_while_a_thread_reads);
    T_RUN(the_root_is_free_when_a_watch_is_gone);
    T_RUN(a_full_queue_is_one_overflow);
    T_RUN(events_the_kernel_has_lost_are_one_overflow);
    T_RUN(renames_that_contradict_a_scan_are_an_overflow);
    T_RUN(too_many_folders_are_an_error_or_an_overflow);
    T_RUN(folders_that_lie_too_deep_are_an_overflow);
    T_RUN(what_cannot_be_watched_is_refused);
    T_RUN(too_many_watches_of_a_user_are_an_error);
    T_RUN(every_allocation_of_a_watch_fails);
    T_RUN(folders_are_swapped_meanwhile);
    T_CHECK(t_descriptors() == fds);
    return t_end_files(__FILE__);
}

#else

/* Other systems refuse, with words. */
int main(void) {
    hfsbi_folder_watch_opts opts = HFSB_INIT;
    hfsbi_folder_watch     *w;
    hfsbi_change            change;
    t_begin_files();
    T_CHECK(mkdir("in", 0755) == 0);
    in = open_root(NULL);
    T_CHECK(hfsbi_folder_watch_open(in, HFSB_LIT("."), &opts, &w, &err) ==
            HFSB_REFUSED);
    T_ERR(HFSB_REFUSED, "Watching a folder needs inotify, which this system "
                        "does not have.");
    T_CHECK(!w && !hfsbi_folder_watch_start(w, NULL));
    T_CHECK(!hfsbi_folder_watch_next(w, &change));
    hfsbi_folder_watch_close(w);
    hfsb_root_close(in);
    return t_end_files(__FILE__);
}
#endif
