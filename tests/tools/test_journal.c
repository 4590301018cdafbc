/* test_journal.c - the journal: what an event says, the ring, the file, and
   what happens when either has no room. */
#include "../support/t_tools.h"

#ifdef __linux__
#include <sys/syscall.h>
#endif

/* ---- reading what was recorded ---- */

typedef struct book {
    hfsb_journal     *journal;
    hfsb_buf          text;
    hfsb_json_doc     doc; /* the events of the last look */
    hfsb_journal_page page;
} book;

static book open_book(const hfsb_journal_opts *opts) {
    hfsb_journal_opts o = HFSB_INIT;
    book              b = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    if (opts) o = *opts;
    o.alloc = tt_alloc();
    T_CHECK(hfsb_journal_open(&o, &b.journal, &err) == HFSB_OK);
    if (!b.journal) {
        printf("%s\n", err.msg);
        abort();
    }
    return b;
}

static void look(book *b, unsigned long long since, size_t limit) {
    hfsb_json_free(&b->doc);
    hfsb_buf_free(&b->text);
    T_CHECK(hfsb_journal_read(b->journal, since, limit, &b->text, &b->page,
                              NULL) == HFSB_OK);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&b->text), NULL, &b->doc, NULL) ==
            HFSB_OK);
    T_CHECK(hfsb_json_count(b->doc.root) == b->page.count);
}

static void close_book(book *b) {
    hfsb_json_free(&b->doc);
    hfsb_buf_free(&b->text);
    hfsb_journal_close(b->journal);
    memset(b, 0, sizeof *b);
}

static const hfsb_json_value *at(const book *b, size_t i, const char *key) {
    return hfsb_json_get(hfsb_json_at(b->doc.root, i), key);
}
static long long int_at(const book *b, size_t i, const char *key) {
    return hfsb_json_int(at(b, i, key), -12345);
}
static hfsb_str text_at(const book *b, size_t i, const char *key) {
    return hfsb_json_str(at(b, i, key), HFSB_LIT("none"));
}
static long long arg_at(const book *b, size_t i, const char *key) {
    return hfsb_json_int(hfsb_json_get(at(b, i, "arguments"), key), -12345);
}

static hfsb_tools *open_with(book *b, const char *who) {
    hfsb_tools_opts o = HFSB_INIT;
    o.journal = b->journal;
    o.who = who;
    o.grace_ms = 200;
    return tt_open(&o);
}

/* ---- events ---- */

static void a_file_tool_leaves_one_event(void) {
    book        b = open_book(NULL);
    hfsb_tools *tools = open_with(&b, "api");
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "write", "path=s content=s", "a.txt", "one\ntwo\n");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "a.txt", "two",
            "2\n3");
    tt_call(&r, tools, "read", "path=s limit=j", "none.txt", "10");
    look(&b, 0, 0);
    T_CHECK(b.page.count == 3 && b.page.next == 3 && b.page.lost == 0);
    T_STR(text_at(&b, 0, "tool"), "write");
    T_STR(text_at(&b, 0, "who"), "api");
    T_STR(text_at(&b, 0, "state"), "done");
    T_STR(text_at(&b, 0, "path"), "a.txt");
    T_CHECK(arg_at(&b, 0, "content_bytes") == 8);
    T_CHECK(int_at(&b, 0, "seq") == 1 && int_at(&b, 0, "call") == 1);
    T_CHECK(hfsb_json_bool(at(&b, 0, "success"), false));
    T_CHECK(text_at(&b, 0, "time").len == 24 && text_at(&b, 0, "run").len == 8);
    T_STR(text_at(&b, 1, "tool"), "edit");
    T_CHECK(int_at(&b, 1, "added") == 2 && int_at(&b, 1, "removed") == 1);
    T_CHECK(hfsb_str_find(text_at(&b, 1, "diff"), HFSB_LIT("\n-two\n+2\n")) !=
            HFSB_NPOS);
    T_CHECK(arg_at(&b, 1, "old_str_bytes") == 3);
    T_STR(text_at(&b, 2, "path"), "none.txt");
    T_CHECK(!hfsb_json_bool(at(&b, 2, "success"), true));
    T_CHECK(arg_at(&b, 2, "limit") == 10 && text_at(&b, 2, "error").len > 4);
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
}

static void a_command_has_a_start_and_an_end(void) {
    book        b = open_book(NULL);
    hfsb_tools *tools = open_with(&b, NULL);
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "bash", "command=s timeout=j", "echo hello; exit 3",
            "30");
    look(&b, 0, 0);
    T_CHECK(b.page.count == 2);
    T_STR(text_at(&b, 0, "state"), "running");
    T_STR(text_at(&b, 0, "who"), "c");
    T_STR(text_at(&b, 0, "command"), "echo hello; exit 3");
    T_CHECK(arg_at(&b, 0, "timeout") == 30);
    T_CHECK(!at(&b, 0, "success") && !at(&b, 0, "exit_code"));
    T_STR(text_at(&b, 1, "state"), "done");
    T_CHECK(int_at(&b, 1, "call") == 1 && int_at(&b, 1, "seq") == 2);
    T_STR(text_at(&b, 1, "command"), "echo hello; exit 3");
    T_CHECK(int_at(&b, 1, "exit_code") == 3);
    T_CHECK(int_at(&b, 1, "output_bytes") == 6);
    T_CHECK(int_at(&b, 1, "duration_ms") >= 0);
    T_CHECK(hfsb_str_equal(text_at(&b, 1, "job"), text_at(&b, 0, "job")));
    T_CHECK(int_at(&b, 1, "pid") == int_at(&b, 0, "pid"));
#ifdef __linux__
    T_CHECK(int_at(&b, 1, "cpu_ms") >= 0 && int_at(&b, 1, "peak_bytes") > 0);
#endif
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
}

static void a_background_command_ends_in_the_journal(void) {
    book        b = open_book(NULL);
    hfsb_tools *tools = open_with(&b, NULL);
    tt_reply    r = HFSB_INIT;
    const char *id;
    size_t      i = 0;
    tt_call(&r, tools, "bash", "command=s background=j",
            "sleep 0.2; sleep 60 & kill -9 $$", "true");
    id = tt_keep(tt_text(&r, "id"));
    look(&b, 0, 0);
    T_CHECK(b.page.count == 1);
    tt_await(&r, tools, id, "0", NULL);
    look(&b, 1, 0);
    T_CHECK(b.page.count >= 2 && b.page.lost == 0);
    while (i + 1 < b.page.count && int_at(&b, i, "call") != 1) i++;
    T_STR(text_at(&b, i, "state"), "done");
    T_CHECK(int_at(&b, i, "call") == 1 && int_at(&b, i, "signal") == 9);
    T_CHECK(hfsb_str_starts(
        hfsb_json_str(hfsb_json_get(hfsb_json_at(at(&b, i, "left_running"), 0),
                                    "command"),
                      HFSB_LIT("")),
        HFSB_LIT("sleep 60")));
    i = b.page.count - 1;
    T_STR(text_at(&b, i, "tool"), "bash_output");
    T_CHECK(hfsb_str_equal(text_at(&b, i, "job"), hfsb_cstr(id)));
    (void)hfsbi_tools_sweep(tools, true);
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
}

static void a_killed_and_a_timed_out_command_say_so(void) {
    book        b = open_book(NULL);
    hfsb_tools *tools = open_with(&b, NULL);
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "bash", "command=s timeout=j", "sleep 60", "0.2");
    look(&b, 1, 0);
    T_CHECK(hfsb_json_bool(at(&b, 0, "timed_out"), false));
    tt_call(&r, tools, "bash", "command=s background=j", "sleep 60", "true");
    tt_call(&r, tools, "kill", "");
    look(&b, 3, 0);
    T_STR(text_at(&b, 0, "tool"), "bash");
    T_CHECK(hfsb_json_bool(at(&b, 0, "killed"), false));
    T_STR(text_at(&b, 1, "tool"), "kill");
    /* one that closing kills */
    tt_call(&r, tools, "bash", "command=s background=j", "trap '' TERM; "
                                                         "sleep 60",
            "true");
    hfsbi_tools_free(tools);
    look(&b, 6, 0);
    T_CHECK(b.page.count == 1 && int_at(&b, 0, "call") == 6);
    T_CHECK(hfsb_json_bool(at(&b, 0, "killed"), false));
    tt_drop(&r);
    close_book(&b);
}

static void a_call_that_fails_early_is_an_event(void) {
    book           b = open_book(NULL);
    hfsb_tools    *tools = open_with(&b, NULL);
    tt_reply       r = HFSB_INIT;
    hfsb_call_opts o = HFSB_INIT;
    tt_call(&r, tools, "bash", "command=j", "[1,2]");
    tt_call(&r, tools, "bash", "command=s work_dir=s", "true", "/none/here");
    look(&b, 0, 0);
    T_CHECK(b.page.count == 2);
    T_CHECK(arg_at(&b, 0, "command_count") == 2);
    T_STR(text_at(&b, 1, "state"), "done"); /* it was never started */
    T_CHECK(int_at(&b, 1, "call") == 2);
    /* the same key again */
    o.key = HFSB_LIT("once");
    tt_do(&r, tools, "bash", HFSB_LIT("{\"command\":\"true\"}"), &o);
    tt_do(&r, tools, "bash", HFSB_LIT("{\"command\":\"true\"}"), &o);
    look(&b, 4, 0);
    T_CHECK(b.page.count == 1 && hfsb_json_bool(at(&b, 0, "repeat"), false));
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
}

/* Lines of SQL and of diffs look like the head of a file. */
static void all_changed_lines_are_counted(void) {
    book        b = open_book(NULL);
    hfsb_tools *tools = open_with(&b, "api");
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "write", "path=s content=s", "a.sql",
            "-- one\n-- two\nx");
    tt_call(&r, tools, "write", "path=s content=s", "b.txt", "p\nq\n");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "a.sql",
            "-- one\n-- two\nx", "++ 1\n@@ -1 +1 @@\n++ 2\ny");
    tt_call(&r, tools, "apply_patch", "patch=s",
            "*** Begin Patch\n*** Update File: a.sql\n@@\n-++ 1\n+-- 1\n"
            "*** Update File: b.txt\n@@\n-p\n+-- p\n+-- p\n"
            "*** End Patch\n");
    look(&b, 0, 0);
    T_CHECK(int_at(&b, 2, "added") == 4 && int_at(&b, 2, "removed") == 3);
    T_CHECK(int_at(&b, 3, "added") == 3 && int_at(&b, 3, "removed") == 2);
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
}

/* ---- secrets ---- */

static void secrets_are_hidden(void) {
    static const char *const env[] = {"PATH=/bin:/usr/bin",
                                      "MY_TOKEN=correct-horse-battery", NULL};
    hfsb_tools_opts          o = HFSB_INIT;
    book                     b = open_book(NULL);
    tt_reply                 r = HFSB_INIT;
    hfsb_tools              *tools;
    o.journal = b.journal;
    o.env = env;
    tools = tt_open(&o);
    tt_call(&r, tools, "bash", "command=s stdin=s env=j",
            "echo correct-horse-battery; curl -H 'Authorization: Bearer abcd' "
            "http://u:pass1234@x/; false",
            "stdin-secret", "{\"A_KEY\":\"env-secret\",\"B\":\"x\"}");
    tt_call(&r, tools, "write", "path=s content=s", "correct-horse-battery",
            "content-secret");
    tt_call(&r, tools, "write", "path=s content=s", "k.txt",
            "a\nHF_TOKEN=diff-secret\n");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "k.txt", "a\n",
            "b correct-horse-battery\n");
    tt_call(&r, tools, "read", "path=s hf_token=s", "k.txt", "other-secret");
    look(&b, 0, 0);
    T_CHECK(hfsb_str_find(hfsb_buf_str(&b.text), HFSB_LIT("secret")) ==
            HFSB_NPOS);
    T_CHECK(hfsb_str_find(hfsb_buf_str(&b.text), HFSB_LIT("horse")) ==
            HFSB_NPOS);
    T_CHECK(hfsb_str_find(hfsb_buf_str(&b.text), HFSB_LIT("abcd")) ==
            HFSB_NPOS);
    T_CHECK(hfsb_str_find(hfsb_buf_str(&b.text), HFSB_LIT("pass1234")) ==
            HFSB_NPOS);
    T_CHECK(arg_at(&b, 0, "stdin_bytes") == 12);
    T_STR(hfsb_json_str(
              hfsb_json_at(hfsb_json_get(at(&b, 0, "arguments"), "env"), 0),
              HFSB_LIT("")),
          "A_KEY");
    T_STR(text_at(&b, 2, "path"), "***");
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
}

/* Its reverse would write *** into the file. */
static void a_diff_with_a_hidden_secret_says_so(void) {
    book        b = open_book(NULL);
    hfsb_tools *tools = open_with(&b, "api");
    tt_reply    r = HFSB_INIT;
    tt_call(&r, tools, "write", "path=s content=s", "k.txt",
            "a\nb\nc\nd\nHF_TOKEN=diff-secret\n");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "k.txt", "a\n",
            "1\n");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "k.txt", "d\n",
            "4\n");
    tt_call(&r, tools, "edit", "path=s old_str=s new_str=s", "k.txt",
            "HF_TOKEN=diff-secret", "key: ***");
    look(&b, 0, 0);
    T_CHECK(text_at(&b, 1, "diff").len && !at(&b, 1, "diff_hidden"));
    T_CHECK(hfsb_str_find(text_at(&b, 2, "diff"), HFSB_LIT("TOKEN=***")) !=
            HFSB_NPOS);
    T_CHECK(hfsb_json_bool(at(&b, 2, "diff_hidden"), false));
    T_CHECK(hfsb_json_bool(at(&b, 3, "diff_hidden"), false));
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
}

/* A secret where the text is cut must not show its first half. */
static void a_cut_does_not_show_half_a_secret(void) {
    static const char *const env[] = {"MY_TOKEN=correct-horse-battery-staple",
                                      NULL};
    hfsb_tools_opts          o = HFSB_INIT;
    book                     b = open_book(NULL);
    tt_reply                 r = HFSB_INIT;
    hfsb_buf                 command = HFSB_INIT;
    hfsb_tools              *tools;
    size_t                   n;
    o.journal = b.journal;
    o.env = env;
    tools = tt_open(&o);
    for (n = 1980; n < 2004; n += 4) {
        hfsb_buf_free(&command);
        tt_fill(&command, ":", 1);
        tt_fill(&command, " ", n - 1);
        tt_fill(&command, "correct-horse-battery-staple\xC3\xA9", 1);
        tt_fill(&command, "x", 3000);
        tt_call(&r, tools, "bash", "command=v", hfsb_buf_str(&command));
    }
    look(&b, 0, 0);
    T_CHECK(hfsb_str_find(hfsb_buf_str(&b.text), HFSB_LIT("cor")) ==
            HFSB_NPOS);
    T_CHECK(text_at(&b, 0, "command").len <= 2003);
    T_CHECK(hfsb_str_find(text_at(&b, 0, "command"), HFSB_LIT("...")) !=
            HFSB_NPOS);
    hfsb_buf_free(&command);
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
}

/* ---- the ring ---- */

static void the_ring_keeps_the_newest(void) {
    hfsb_journal_opts o = HFSB_INIT;
    book              b;
    hfsb_tools       *tools;
    tt_reply          r = HFSB_INIT;
    int               i;
    o.max_events = 10;
    b = open_book(&o);
    tools = open_with(&b, NULL);
    for (i = 0; i < 25; i++) tt_call(&r, tools, "exists", "path=s", "a");
    look(&b, 0, 0);
    T_CHECK(b.page.count == 10 && b.page.lost == 15 && b.page.next == 25);
    T_CHECK(int_at(&b, 0, "seq") == 16);
    look(&b, 12, 4);
    T_CHECK(b.page.count == 4 && b.page.lost == 3 && b.page.next == 19);
    look(&b, 19, 4);
    T_CHECK(b.page.count == 4 && b.page.lost == 0 && b.page.next == 23);
    look(&b, 25, 0);
    T_CHECK(b.page.count == 0 && b.page.lost == 0 && b.page.next == 25);
    look(&b, 9999, 0); /* of a run before this one */
    T_CHECK(b.page.count == 10 && b.page.lost == 15);
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
}

static void the_ring_is_bounded_in_bytes(void) {
    hfsb_journal_opts o = HFSB_INIT;
    book              b;
    hfsb_tools       *tools;
    tt_reply          r = HFSB_INIT;
    hfsb_buf          path = HFSB_INIT;
    int               i;
    o.max_bytes = 5000;
    b = open_book(&o);
    tools = open_with(&b, NULL);
    tt_fill(&path, "p", 900);
    for (i = 0; i < 50; i++)
        tt_call(&r, tools, "exists", "path=v", hfsb_buf_str(&path));
    T_CHECK(hfsbi_journal_count(b.journal).bytes <= 5000);
    look(&b, 0, 0);
    T_CHECK(b.page.count >= 3 && b.page.count <= 5 && b.page.next == 50);
    T_CHECK(b.page.lost == 50 - b.page.count);
    /* one that does not fit at all is lost, and counted */
    hfsb_buf_free(&path);
    tt_fill(&path, "\x01", 990);
    tt_call(&r, tools, "exists", "path=v", hfsb_buf_str(&path));
    look(&b, 50, 0);
    T_CHECK(b.page.count == 0 && b.page.lost == 1 && b.page.next == 51);
    hfsb_buf_free(&path);
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
}

/* ---- the file ---- */

/* The lines of a file; each must be JSON unless it may be torn. Returns their
   number, and how many are not JSON. */
static size_t read_lines(const char *path, size_t *torn) {
    hfsb_buf file = HFSB_INIT;
    hfsb_str rest, line;
    size_t   n = 0;
    *torn = 0;
    if (!t_read_file(path, &file)) return 0;
    rest = hfsb_buf_str(&file);
    while (hfsb_text_line(&rest, &line, NULL)) {
        hfsb_json_doc doc = HFSB_INIT;
        n++;
        if (hfsb_json_parse(line, NULL, &doc, NULL) != HFSB_OK) ++*torn;
        hfsb_json_free(&doc);
    }
    hfsb_buf_free(&file);
    return n;
}

static void the_file_is_private_and_appended_to(void) {
    hfsb_journal_opts o = HFSB_INIT;
    hfsb_tools       *tools;
    tt_reply          r = HFSB_INIT;
    struct stat       st;
    size_t            torn;
    int               i;
    o.path = "j.log";
    for (i = 0; i < 2; i++) {
        book b = open_book(&o);
        tools = open_with(&b, NULL);
        tt_call(&r, tools, "exists", "path=s", "a");
        tt_call(&r, tools, "bash", "command=s", "true");
        hfsb_tools_close(tools);
        close_book(&b);
    }
    T_CHECK(!stat("j.log", &st) && (st.st_mode & 0777) == 0600);
    T_CHECK(read_lines("j.log", &torn) == 6 && torn == 0);
    tt_drop(&r);
    unlink("j.log");
}

static void an_unfinished_line_is_ended(void) {
    hfsb_journal_opts o = HFSB_INIT;
    book              b;
    hfsb_tools       *tools;
    tt_reply          r = HFSB_INIT;
    size_t            torn;
    tt_put("j.log", HFSB_LIT("{\"seq\":1}\n{\"seq\":2,\"to"));
    o.path = "j.log";
    b = open_book(&o);
    tools = open_with(&b, NULL);
    tt_call(&r, tools, "exists", "path=s", "a");
    T_CHECK(read_lines("j.log", &torn) == 3 && torn == 1);
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
    unlink("j.log");
}

static void a_full_file_is_renamed(void) {
    hfsb_journal_opts o = HFSB_INIT;
    book              b;
    hfsb_tools       *tools;
    tt_reply          r = HFSB_INIT;
    struct stat       now, old;
    size_t            torn;
    int               i;
    o.path = "j.log";
    o.max_size = 4000;
    b = open_book(&o);
    tools = open_with(&b, NULL);
    for (i = 0; i < 60; i++) tt_call(&r, tools, "exists", "path=s", "a");
    T_CHECK(!stat("j.log", &now) && !stat("j.log.1", &old));
    T_CHECK(now.st_size <= 4000 && old.st_size <= 4000);
    T_CHECK(old.st_size > 3000 && (old.st_mode & 0777) == 0600);
    T_CHECK(read_lines("j.log.1", &torn) > 5 && torn == 0);
    T_CHECK(read_lines("j.log", &torn) > 0 && torn == 0);
    /* someone else moves the file away */
    T_CHECK(!rename("j.log", "moved"));
    usleep(1100 * 1000);
    tt_call(&r, tools, "exists", "path=s", "a");
    T_CHECK(read_lines("j.log", &torn) == 1);
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
    unlink("j.log");
    unlink("j.log.1");
    unlink("moved");
}

#ifdef __linux__
static size_t synced_files, synced_folders;

int fsync(int fd) {
    struct stat st;
    bool        folder = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    synced_files += !folder;
    synced_folders += folder;
    return (int)syscall(SYS_fsync, fd);
}

/* Also the names of new files: the first one, and those after a full one. */
static void sync_waits_for_the_disk(void) {
    hfsb_journal_opts o = HFSB_INIT;
    book              b;
    hfsb_tools       *tools;
    tt_reply          r = HFSB_INIT;
    size_t            torn;
    int               i;
    T_CHECK(!mkdir("sub", 0700));
    synced_files = synced_folders = 0;
    o.path = "sub/j.log";
    o.sync = true;
    o.max_size = 1000;
    b = open_book(&o);
    T_CHECK(synced_folders == 1);
    tools = open_with(&b, NULL);
    for (i = 0; i < 3; i++) tt_call(&r, tools, "exists", "path=s", "a");
    T_CHECK(synced_files == 3 && synced_folders == 1);
    for (i = 0; i < 7; i++) tt_call(&r, tools, "exists", "path=s", "a");
    T_CHECK(synced_files == 10 && synced_folders == 2);
    T_CHECK(read_lines("sub/j.log.1", &torn) + read_lines(o.path, &torn) ==
            10);
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
    o.path = "j.log"; /* in the current directory; no sync, no wait */
    o.sync = false;
    b = open_book(&o);
    T_CHECK(synced_folders == 2);
    close_book(&b);
    unlink("j.log");
    unlink("sub/j.log");
    unlink("sub/j.log.1");
    rmdir("sub");
}
#endif

static void other_files_are_refused(void) {
    static const struct {
        const char *path;
        hfsb_status st;
    } cases[] = {{"fifo", HFSB_NOT_REGULAR},
                 {"dir", HFSB_IS_DIR},
                 {"link", HFSB_IO},
                 {"/dev/null", HFSB_NOT_REGULAR},
                 {"none/j.log", HFSB_NOT_FOUND}};
    size_t i;
    T_CHECK(!mkfifo("fifo", 0600) && !mkdir("dir", 0700) &&
            !symlink("a", "link"));
    for (i = 0; i < TT_COUNT(cases); i++) {
        hfsb_journal_opts o = HFSB_INIT;
        hfsb_journal     *j = NULL;
        hfsb_err          err = HFSB_INIT;
        hfsb_status       st;
        o.path = cases[i].path;
        o.alloc = tt_alloc();
        st = hfsb_journal_open(&o, &j, &err);
        if (cases[i].st == HFSB_IS_DIR) T_CHECK(st != HFSB_OK);
        else T_CHECK(st == cases[i].st);
        T_CHECK(!j && err.code == st && strstr(err.msg, cases[i].path));
    }
    unlink("fifo");
    unlink("link");
    rmdir("dir");
}

typedef struct failures {
    int  count;
    char last[256];
} failures;

static void note_failure(void *user, const char *message) {
    failures *f = (failures *)user;
    f->count++;
    snprintf(f->last, sizeof f->last, "%s", message);
}

/* The limit on the size of files stands for a full disk: a line is cut. */
static void a_full_disk_fails_no_call(void) {
    hfsb_journal_opts o = HFSB_INIT;
    failures          f = HFSB_INIT;
    struct rlimit     before, small;
    book              b;
    hfsb_tools       *tools;
    tt_reply          r = HFSB_INIT;
    size_t            torn, n;
    int               i;
    o.path = "j.log";
    o.on_failure = note_failure;
    o.user = &f;
    b = open_book(&o);
    tools = open_with(&b, NULL);
    T_CHECK(!getrlimit(RLIMIT_FSIZE, &before));
    small = before;
    small.rlim_cur = 1000;
    T_CHECK(!setrlimit(RLIMIT_FSIZE, &small));
    for (i = 0; i < 20; i++) {
        tt_call(&r, tools, "exists", "path=s", "a");
        T_CHECK(r.res.success);
    }
    T_CHECK(!setrlimit(RLIMIT_FSIZE, &before));
    T_CHECK(f.count == 1 && strstr(f.last, "j.log"));
    n = (size_t)hfsbi_journal_count(b.journal).failed;
    T_CHECK(n > 10 && n < 20);
    tt_call(&r, tools, "exists", "path=s", "a");
    /* 20 - n whole ones, a torn one, the count of lost ones, the last */
    T_CHECK(read_lines("j.log", &torn) == 20 - n + 3 && torn == 1);
    t_read_file("j.log", &b.text);
    T_CHECK(tt_says(&b.text, "\"lines_lost\":"));
    look(&b, 0, 0);
    T_CHECK(b.page.count == 21); /* memory has them all */
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
    unlink("j.log");
}

/* ---- a writer that is killed ---- */

static void write_until_killed(void) {
    hfsb_journal_opts o = HFSB_INIT;
    hfsb_tools_opts   t = HFSB_INIT;
    hfsb_journal     *j = NULL;
    hfsb_tools       *tools = NULL;
    hfsb_tool_result  result;
    unsigned          n = 0;
    o.path = "j.log";
    o.max_size = 1ull << 40;
    if (hfsb_journal_open(&o, &j, NULL) != HFSB_OK) _exit(1);
    t.journal = j;
    if (hfsb_tools_open(&t, &tools, NULL) != HFSB_OK) _exit(1);
    for (;;) {
        (void)hfsb_tools_call_text(tools, HFSB_LIT("exists"),
                                   HFSB_LIT("{\"path\":\"a\"}"), NULL,
                                   &result);
        hfsb_tool_result_free(&result);
        if (write(1, n++ % 2 ? "+" : "-", 1) != 1) _exit(1);
    }
}

/* Counts the calls that were acknowledged on a pipe: all are in the file. */
static void a_kill_loses_at_most_the_last_line(void) {
    int round;
    for (round = 0; round < 12; round++) {
        hfsb_buf got = HFSB_INIT;
        int      fds[2];
        char     piece[4096];
        ssize_t  n;
        size_t   torn, lines;
        pid_t    child;
        unlink("j.log");
        if (pipe(fds)) abort();
        child = fork();
        if (child == 0) {
            (void)dup2(fds[1], 1);
            close(fds[0]);
            close(fds[1]);
            write_until_killed();
        }
        close(fds[1]);
        while (got.len < 20 + 37 * (size_t)round &&
               (n = read(fds[0], piece, sizeof piece)) > 0)
            (void)!hfsb_buf_append(&got, hfsb_str_make(piece, (size_t)n));
        kill(child, SIGKILL);
        while ((n = read(fds[0], piece, sizeof piece)) > 0)
            (void)!hfsb_buf_append(&got, hfsb_str_make(piece, (size_t)n));
        waitpid(child, NULL, 0);
        close(fds[0]);
        lines = read_lines("j.log", &torn);
        T_CHECK(torn <= 1 && lines - torn >= got.len &&
                lines <= got.len + 1);
        hfsb_buf_free(&got);
    }
    unlink("j.log");
}

/* ---- several threads and objects ---- */

typedef struct worker {
    hfsb_tools *tools;
    size_t      calls;
} worker;

static void *work(void *user) {
    worker *w = (worker *)user;
    size_t  i;
    for (i = 0; i < w->calls; i++) {
        hfsb_tool_result result;
        (void)hfsb_tools_call_text(
            w->tools, i % 50 ? HFSB_LIT("exists") : HFSB_LIT("bash"),
            i % 50 ? HFSB_LIT("{\"path\":\"a\"}")
                   : HFSB_LIT("{\"command\":\"true\"}"),
            NULL, &result);
        hfsb_tool_result_free(&result);
    }
    return NULL;
}

static void *read_on(void *user) {
    hfsb_journal     *journal = (hfsb_journal *)user;
    hfsb_journal_page page = HFSB_INIT;
    size_t            seen = 0;
    while (page.next < 816) {
        hfsb_buf out = HFSB_INIT;
        (void)hfsb_journal_read(journal, page.next, 7, &out, &page, NULL);
        seen += page.count + (size_t)page.lost;
        hfsb_buf_free(&out);
    }
    return (void *)(size_t)(seen == 816 ? 1 : 0);
}

static void threads_share_a_journal(void) {
    hfsb_journal_opts o = HFSB_INIT;
    pthread_t         threads[4], reader;
    worker            workers[4];
    book              b;
    size_t            torn, i;
    void             *well = NULL;
    o.path = "j.log";
    b = open_book(&o);
    if (pthread_create(&reader, NULL, read_on, b.journal)) abort();
    for (i = 0; i < 4; i++) {
        workers[i].tools =
            i % 2 ? workers[i - 1].tools : open_with(&b, i ? "two" : "one");
        workers[i].calls = 200;
        if (pthread_create(&threads[i], NULL, work, &workers[i])) abort();
    }
    for (i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    pthread_join(reader, &well);
    T_CHECK(well != NULL);
    hfsb_tools_close(workers[0].tools);
    hfsb_tools_close(workers[2].tools);
    T_CHECK(read_lines("j.log", &torn) == 816 && torn == 0);
    close_book(&b);
    unlink("j.log");
}

/* ---- without memory ---- */

static void without_memory_calls_go_on(hfsb_alloc    alloc,
                                       const t_heap *heap) {
    hfsb_journal_opts o = HFSB_INIT;
    hfsb_tools_opts   t = HFSB_INIT;
    hfsb_journal     *j = NULL;
    hfsb_tools       *tools = NULL;
    hfsb_tool_result  result;
    hfsb_buf          out = HFSB_INIT;
    hfsb_journal_page page;
    hfsb_err          err = HFSB_INIT;
    hfsb_status       st;
    o.path = "j.log";
    o.max_events = 4;
    o.alloc = alloc;
    st = hfsb_journal_open(&o, &j, &err);
    T_CHECK(st == HFSB_OK ? j != NULL : !j && heap->fail_at);
    if (!j) return;
    t.journal = j;
    T_CHECK(hfsb_tools_open(&t, &tools, NULL) == HFSB_OK); /* other memory */
    st = hfsb_tools_call_text(tools, HFSB_LIT("exists"),
                              HFSB_LIT("{\"path\":\"a\"}"), NULL, &result);
    T_CHECK(st == HFSB_OK && result.success);
    hfsb_tool_result_free(&result);
    st = hfsb_tools_call_text(tools, HFSB_LIT("bash"),
                              HFSB_LIT("{\"command\":\"true\"}"), NULL,
                              &result);
    T_CHECK(st == HFSB_OK && result.success);
    hfsb_tool_result_free(&result);
    out.alloc = alloc;
    st = hfsb_journal_read(j, 0, 0, &out, &page, &err);
    T_CHECK(st == HFSB_OK ? page.next == 3 : heap->fail_at && !out.len);
    hfsb_buf_free(&out);
    hfsb_tools_close(tools);
    hfsb_journal_close(j);
}

static void every_allocation_may_fail(void) {
    t_each_allocation_fails(without_memory_calls_go_on);
    unlink("j.log");
}

/* ---- for a log ---- */

typedef struct heard {
    int  running, done;
    int  exit_code;
    char command[64], path[64];
} heard;

static void hear(void *user, const hfsb_journal_event *e) {
    heard *h = (heard *)user;
    if (e->running) h->running++;
    else h->done++;
    if (e->exited) h->exit_code = e->exit_code;
    if (e->command.len)
        snprintf(h->command, sizeof h->command, "%.*s", (int)e->command.len,
                 e->command.ptr);
    if (e->path.len)
        snprintf(h->path, sizeof h->path, "%.*s", (int)e->path.len,
                 e->path.ptr);
}

static void a_host_hears_of_events(void) {
    hfsb_journal_opts o = HFSB_INIT;
    heard             h = HFSB_INIT;
    book              b;
    hfsb_tools       *tools;
    tt_reply          r = HFSB_INIT;
    o.on_event = hear;
    o.user = &h;
    b = open_book(&o);
    tools = open_with(&b, NULL);
    tt_call(&r, tools, "bash", "command=s", "A_TOKEN=abcdefg true; exit 7");
    tt_call(&r, tools, "exists", "path=s", "some/file");
    T_CHECK(h.running == 1 && h.done == 2 && h.exit_code == 7);
    T_CHECK(!strcmp(h.command, "A_TOKEN=*** true; exit 7"));
    T_CHECK(!strcmp(h.path, "some/file"));
    tt_drop(&r);
    hfsb_tools_close(tools);
    close_book(&b);
}

int main(void) {
    tt_begin();
    TT_RUN(a_file_tool_leaves_one_event);
    TT_RUN(a_command_has_a_start_and_an_end);
    TT_RUN(a_background_command_ends_in_the_journal);
    TT_RUN(a_killed_and_a_timed_out_command_say_so);
    TT_RUN(a_call_that_fails_early_is_an_event);
    TT_RUN(all_changed_lines_are_counted);
    TT_RUN(secrets_are_hidden);
    TT_RUN(a_diff_with_a_hidden_secret_says_so);
    TT_RUN(a_cut_does_not_show_half_a_secret);
    TT_RUN(the_ring_keeps_the_newest);
    TT_RUN(the_ring_is_bounded_in_bytes);
    TT_RUN(the_file_is_private_and_appended_to);
    TT_RUN(an_unfinished_line_is_ended);
    TT_RUN(a_full_file_is_renamed);
#ifdef __linux__
    TT_RUN(sync_waits_for_the_disk);
#endif
    TT_RUN(other_files_are_refused);
    TT_RUN(a_full_disk_fails_no_call);
    TT_RUN(a_kill_loses_at_most_the_last_line);
    TT_RUN(threads_share_a_journal);
    TT_RUN(every_allocation_may_fail);
    TT_RUN(a_host_hears_of_events);
    return TT_END();
}
