/* test_v1.c - a sandbox whose server speaks HF's /v1: results as those of
   local tools, changes by others, lost connections, its weaknesses. */
#include "../support/t_v1.h"

#define URL "http://box.test:1"

static tv_server     server;
static hfsb_sandbox *box;

static void begin(hfsb_sandbox_opts o) {
    hfsb_err err = HFSB_INIT;
    tv_init(&server);
    if (tv_open(&server, URL, o, &box, &err) != HFSB_OK) {
        printf("%s\n", err.msg);
        abort();
    }
}

static void end(void) {
    T_CHECK(hfsb_sandbox_close(box, false, NULL) == HFSB_OK);
    tv_free(&server);
}

/* ---- the same results as those of local tools ---- */

static void put_files(void) {
    hfsb_buf text = HFSB_INIT;
    tt_put("a.py", HFSB_LIT("def f():\n    return 1\n\nprint(f())\n"));
    tt_put("crlf.txt", HFSB_LIT("one\r\ntwo\r\nthree\r\n"));
    tt_put("sp ace+%&\303\251.txt", HFSB_LIT("odd name\n"));
    tt_put("empty", HFSB_LIT(""));
    tt_put("binary", HFSB_LIT("\0\1\2\3\n"));
    tt_fill(&text, "some words and \303\251\n", 5000);
    tt_put("long.txt", hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    (void)mkdir("dir", 0777);
    (void)symlink("a.py", "link");
    (void)symlink("nowhere", "dangling");
}

static const char *const alike[][2] = {
    {"read", "{\"path\":\"a.py\"}"},
    {"read", "{\"path\":\"a.py\",\"offset\":2,\"limit\":1}"},
    {"read", "{\"path\":\"a.py\",\"offset\":-1,\"limit\":0}"},
    {"read", "{\"path\":\"crlf.txt\"}"},
    {"read", "{\"path\":\"sp ace+%&\303\251.txt\"}"},
    {"read", "{\"path\":\"empty\"}"},
    {"read", "{\"path\":\"binary\"}"},
    {"read", "{\"path\":\"link\"}"},
    {"read", "{\"path\":\"dangling\"}"},
    {"read", "{\"path\":\"dir\"}"},
    {"read", "{\"path\":\"none\"}"},
    {"read", "{\"path\":\"a.py/below\"}"},
    {"read", "{\"path\":\"\"}"},
    {"read", "{\"path\":\"a\\u0000b\"}"},
    {"read", "{\"path\":\"long.txt\",\"limit\":5}"},
    {"read", "{\"path\":\"long.txt\"}"},
    {"read", "{\"path\":\"long.txt\",\"offset\":-3,\"limit\":0}"},
    {"exists", "{\"path\":\"a.py\"}"},
    {"exists", "{\"path\":\"dir\"}"},
    {"exists", "{\"path\":\"none\"}"},
    {"exists", "{\"path\":\"a.py/below\"}"},
    {"exists", "{\"path\":\"dangling\"}"},
    {"edit", "{\"path\":\"a.py\",\"old_str\":\"return 1\",\"new_str\":"
             "\"return 2\"}"},
    {"edit", "{\"path\":\"a.py\",\"old_str\":\"return 3\",\"new_str\":"
             "\"return 2\"}"},
    {"edit", "{\"path\":\"a.py\",\"old_str\":\"f()\",\"new_str\":\"g()\"}"},
    {"edit", "{\"path\":\"a.py\",\"old_str\":\"f()\",\"new_str\":\"g()\","
             "\"replace_all\":true}"},
    {"edit", "{\"path\":\"crlf.txt\",\"old_str\":\"two\\nthree\",\"new_str\":"
             "\"2\\n3\"}"},
    {"edit", "{\"path\":\"none\",\"old_str\":\"a\",\"new_str\":\"b\"}"},
    {"edit", "{\"path\":\"dir\",\"old_str\":\"a\",\"new_str\":\"b\"}"},
    {"multi_edit",
     "{\"path\":\"a.py\",\"edits\":[{\"old_str\":\"def g\",\"new_str\":\"def "
     "h\"},{\"old_str\":\"print(g\",\"new_str\":\"print(h\"}]}"},
    {"write", "{\"path\":\"new/deep/x.txt\",\"content\":\"x\\n\"}"},
    {"write", "{\"path\":\"dir\",\"content\":\"x\\n\"}"},
    {"write", "{\"path\":\"empty\",\"content\":\"h\303\251\",\"if_sha256\":"
              "\"0000000000000000000000000000000000000000000000000000000000"
              "000000\"}"},
    {"write", "{\"path\":\"a.py/x\",\"content\":\"x\\n\"}"},
    {"apply_patch",
     "{\"patch\":\"*** Begin Patch\\n*** Add File: p/q.txt\\n+new\\n*** "
     "Update File: a.py\\n@@\\n-    return 2\\n+    return 3\\n*** Delete "
     "File: empty\\n*** Update File: crlf.txt\\n*** Move to: "
     "moved.txt\\n@@\\n-one\\n+1\\n*** End Patch\\n\"}"},
    {"apply_patch",
     "{\"patch\":\"*** Begin Patch\\n*** Update File: a.py\\n@@\\n-no such "
     "line\\n+x\\n*** End Patch\\n\"}"},
    {"write", "{\"path\":\"a.py\"}"},
    {"read", "{\"path\":\"a.py\",\"colour\":1}"}};

/* All but how the file was replaced is the same. */
static void same_fields(const tt_reply *a, const tt_reply *b) {
    hfsb_json_iter it = hfsb_json_begin(a->extra.root);
    hfsb_buf       x = HFSB_INIT, y = HFSB_INIT;
    T_CHECK(hfsb_json_count(a->extra.root) == hfsb_json_count(b->extra.root));
    while (hfsb_json_next(&it)) {
        if (hfsb_str_equal(it.key, HFSB_LIT("in_place"))) continue;
        hfsb_buf_truncate(&x, 0);
        hfsb_buf_truncate(&y, 0);
        (void)hfsb_json_write(it.value, NULL, &x, NULL);
        (void)hfsb_json_write(hfsb_json_get(b->extra.root, it.key.ptr), NULL,
                              &y, NULL);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&x), hfsb_buf_str(&y)));
    }
    hfsb_buf_free(&x);
    hfsb_buf_free(&y);
}

static void same_files(void) {
    static const char *const names[] = {
        "a.py", "crlf.txt", "new/deep/x.txt", "p/q.txt", "moved.txt", "empty"};
    size_t i;
    for (i = 0; i < TT_COUNT(names); i++) {
        hfsb_buf x = HFSB_INIT, y = HFSB_INIT;
        char     other[64];
        snprintf(other, sizeof other, "../local/%s", names[i]);
        T_CHECK(t_read_file(names[i], &x) == t_read_file(other, &y));
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&x), hfsb_buf_str(&y)));
        hfsb_buf_free(&x);
        hfsb_buf_free(&y);
    }
}

static void file_tools_say_what_local_ones_say(void) {
    hfsb_tools_opts o = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        here = HFSB_INIT, there = HFSB_INIT;
    size_t          i;
    if (mkdir("../local", 0777) || chdir("../local")) abort();
    put_files();
    o.work_dir = HFSB_LIT(".");
    o.no_checks = true;
    tools = tt_open(&o);
    if (chdir("../work")) abort();
    put_files();
    begin(tv_options());
    for (i = 0; i < TT_COUNT(alike); i++) {
        tt_do(&here, tools, alike[i][0], hfsb_cstr(alike[i][1]), NULL);
        tv_do(&there, box, alike[i][0], hfsb_cstr(alike[i][1]), NULL);
        T_CHECK(there.sane);
        if (here.st != there.st || here.res.success != there.res.success)
            printf("%s %s: %d, %d\n", alike[i][0], alike[i][1], here.st,
                   there.st);
        T_CHECK(here.st == there.st);
        T_CHECK(here.res.code == there.res.code);
        tt_expect(__LINE__, &there, here.res.success,
                  here.res.output.len ? here.res.output.ptr : "",
                  here.res.error.len ? here.res.error.ptr : "");
        same_fields(&here, &there);
    }
    same_files();
    tt_drop(&here);
    tt_drop(&there);
    end();
    hfsb_tools_close(tools);
}

static const char *const commands[] = {
    "{\"command\":\"echo hi\"}",
    "{\"command\":\"echo out; echo err >&2; exit 3\"}",
    "{\"command\":\"printf 'a\\\\rb\\\\n\\\\033[31mred\\\\033[0m\\\\n'\"}",
    "{\"command\":\"printf '\\\\377\\\\n'\"}",
    "{\"command\":\"seq 1 20000\"}",
    "{\"command\":\"kill -9 $$\"}",
    "{\"command\":\"cat\",\"stdin\":\"from stdin\\n\"}",
    "{\"command\":\"echo a; echo b >&2; echo c\",\"merge_stderr\":true}",
    "{\"command\":\"echo $A ${PAGER-unset} ${TERM-unset}\",\"env\":{\"A\":\"x "
    "y\",\"PAGER\":null}}",
    "{\"command\":\"pwd | sed 's,.*/,,'\",\"work_dir\":\"dir\"}",
    "{\"command\":\"pwd\",\"work_dir\":\"no/such\"}",
    "{\"command\":\"[[ a == a ]] && echo bash\"}",
    "{\"command\":\"echo $0\",\"shell\":\"/bin/sh\"}",
    "{\"command\":\"grep x /dev/null\"}",
    "{\"command\":\"sleep 5\",\"timeout\":0.3}",
    "{\"command\":\"true\",\"timeout\":5000}",
    "{\"command\":7}",
    "{}"};

static void bash_says_what_the_local_one_says(void) {
    hfsb_tools_opts o = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        here = HFSB_INIT, there = HFSB_INIT;
    size_t          i;
    o.no_spill = true;
    tools = tt_open(&o);
    begin(tv_options());
    for (i = 0; i < TT_COUNT(commands); i++) {
        tt_do(&here, tools, "bash", hfsb_cstr(commands[i]), NULL);
        tv_do(&there, box, "bash", hfsb_cstr(commands[i]), NULL);
        T_CHECK(there.sane);
        T_CHECK(here.st == there.st);
        tt_expect(__LINE__, &there, here.res.success,
                  here.res.output.len ? here.res.output.ptr : "",
                  here.res.error.len ? here.res.error.ptr : "");
        T_CHECK(tt_int(&here, "exit_code") == tt_int(&there, "exit_code"));
        T_CHECK(tt_int(&here, "total_chars") == tt_int(&there, "total_chars"));
        T_CHECK(tt_flag(&here, "timed_out") == tt_flag(&there, "timed_out"));
        T_CHECK(tt_flag(&here, "truncated") == tt_flag(&there, "truncated"));
        T_CHECK(hfsb_str_equal(tt_text(&here, "exit_meaning"),
                               tt_text(&there, "exit_meaning")));
    }
    T_STR(hfsb_str_make(server.token, strlen(server.token)), TV_TOKEN);
    T_CHECK(!server.authorization[0]); /* the Hub's token is not for it */
    tv_call(&there, box, "grep", "pattern=s", "x");
    TT_FAIL(&there, "This sandbox's server has no tool grep; use bash.");
    T_CHECK(there.st == HFSB_NOT_FOUND);
    tt_drop(&here);
    tt_drop(&there);
    end();
    hfsb_tools_close(tools);
}

/* ---- changes by others ---- */

static size_t      changes; /* to be made by others before the next PUTs */
static const char *changed; /* the content that they write */

/* Others write the file between the first and the second time that it is
   fetched. */
static void others_write(tv_server *s, hfsb_str method, hfsb_str route) {
    if (!hfsb_str_equal(route, HFSB_LIT("v1/files/stat"))) return;
    (void)method;
    if (++s->asked % 2 == 0 && changes && changes--)
        tt_put("c.txt", hfsb_cstr(changed));
}

static void an_edit_keeps_what_others_wrote_meanwhile(void) {
    tt_reply r = HFSB_INIT;
    begin(tv_options());
    tt_put("c.txt", HFSB_LIT("one\ntwo\n"));
    server.before = others_write;
    changes = 1;
    changed = "zero\none\ntwo\n";
    tv_call(&r, box, "edit", "path=s old_str=s new_str=s", "c.txt", "two",
            "2");
    TT_OK(&r, "Edited c.txt (1 replacement)");
    TT_FILE("c.txt", "zero\none\n2\n");
    T_CHECK(changes == 0);
    /* the text to replace is gone */
    changes = 1;
    changed = "all new\n";
    server.asked = 0;
    tv_call(&r, box, "edit", "path=s old_str=s new_str=s", "c.txt", "zero",
            "0");
    TT_FAIL(&r, NULL);
    T_CHECK(r.st == HFSB_OK && r.res.code == HFSB_NOT_FOUND);
    TT_FILE("c.txt", "all new\n");
    tt_drop(&r);
    end();
}

static void a_session_reads_before_it_writes(void) {
    hfsb_sandbox_opts o = tv_options();
    tt_reply          r = HFSB_INIT;
    o.session = true;
    begin(o);
    tt_put("s.txt", HFSB_LIT("one\ntwo\n"));
    tv_call(&r, box, "edit", "path=s old_str=s new_str=s", "s.txt", "two",
            "2");
    TT_FAIL(&r, "File s.txt has not been read this session. Read it first.");
    tv_call(&r, box, "write", "path=s content=s", "s.txt", "x");
    TT_FAIL(&r, "File s.txt exists but has not been read this session.");
    tv_call(&r, box, "apply_patch", "patch=s",
            "*** Begin Patch\n*** Update File: s.txt\n@@\n-two\n+2\n*** End "
            "Patch\n");
    TT_FAIL(&r, "File s.txt has not been read this session. Read it first.");
    T_CHECK(server.puts == 0);
    tv_call(&r, box, "write", "path=s content=s", "fresh.txt", "x");
    TT_OK(&r, "Wrote 1 bytes to fresh.txt");
    tv_call(&r, box, "read", "path=s", "s.txt");
    TT_OK(&r, "1\tone\n2\ttwo");
    tv_call(&r, box, "edit", "path=s old_str=s new_str=s", "s.txt", "two",
            "2");
    TT_OK(&r, "Edited s.txt (1 replacement)");
    /* others change it: an exact edit is made, a write is refused */
    tt_put("s.txt", HFSB_LIT("zero\none\n2\n"));
    tv_call(&r, box, "write", "path=s content=s", "s.txt", "x");
    TT_FAIL(&r, NULL);
    T_CHECK(r.res.code == HFSB_STALE);
    TT_FILE("s.txt", "zero\none\n2\n");
    tv_call(&r, box, "read", "path=s", "s.txt");
    tt_put("s.txt", HFSB_LIT("0\nzero\none\n2\n"));
    tv_call(&r, box, "edit", "path=s old_str=s new_str=s", "s.txt", "one",
            "1");
    T_CHECK(r.res.success && tt_flag(&r, "had_changed"));
    TT_FILE("s.txt", "0\nzero\n1\n2\n");
    tt_drop(&r);
    end();
}

/* ---- streams ---- */

static const char stream[] =
    "{\"event\":\"start\",\"pid\":7}\n"
    "{\"data\":\"h\303\251\\n\",\"event\":\"stdout\"}\n"
    "{\"event\":\"ping\"}\n"
    "\r\n"
    "{\"data\":\"oops\342\200\250\\n\",\"event\":\"stderr\"}\n"
    "{\"event\":\"later\",\"data\":5}\n"
    "{\"event\":\"exit\",\"exit_code\":3,\"signal\":null}\n";

static void a_stream_may_be_cut_into_any_pieces(void) {
    tt_reply r = HFSB_INIT;
    begin(tv_options());
    server.events = stream;
    for (server.piece = 1; server.piece < sizeof stream; server.piece++) {
        tv_call(&r, box, "bash", "command=s", "x");
        TT_ENDS(&r, "h\303\251\noops\342\200\250\n", "Exit code 3");
        T_CHECK(r.st == HFSB_OK && tt_int(&r, "pid") == 7);
    }
    tt_drop(&r);
    end();
}

static void a_lost_stream_says_that_the_command_may_run(void) {
    tt_reply r = HFSB_INIT;
    size_t   whole = strlen(stream), k;
    begin(tv_options());
    server.events = stream;
    server.cut_method = "POST";
    for (k = 0; k <= whole; k++) {
        server.cut = k;
        server.cut_times = 1;
        server.posts = 0;
        tv_call(&r, box, "bash", "command=s", "x");
        T_CHECK(server.posts == 1); /* never sent again */
        T_CHECK(!r.res.success);
        if (k == whole) {
            T_CHECK(r.st == HFSB_OK && tt_int(&r, "exit_code") == 3);
            continue;
        }
        T_CHECK(r.st == HFSB_LOST && r.res.code == HFSB_LOST);
        T_CHECK(tt_says(&r.res.error, "The command may still run"));
        if (k >= 80) T_CHECK(tt_says(&r.res.output, "h\303\251"));
    }
    /* a stream that ends without an event exit */
    server.cut_times = 0;
    server.events = "{\"event\":\"start\",\"pid\":7}\n";
    tv_call(&r, box, "bash", "command=s", "x");
    T_CHECK(r.st == HFSB_LOST);
    T_CHECK(tt_says(&r.res.error, "the stream ended early"));
    tt_drop(&r);
    end();
}

static void hostile_streams_are_errors(void) {
    tt_reply r = HFSB_INIT;
    hfsb_buf large = HFSB_INIT;
    begin(tv_options());
    server.events = "{\"event\":\"start\",\"pid\":7}\nno json\n";
    tv_call(&r, box, "bash", "command=s", "x");
    TT_FAIL(&r, "Sandbox sent an event that is not JSON. The command may");
    T_CHECK(r.st == HFSB_REMOTE);
    server.events = "[1]\n5\n{\"event\":7}\n{\"event\":\"exit\"}\n";
    tv_call(&r, box, "bash", "command=s", "x");
    TT_FAIL(&r, "Exit code -9");
    server.events = "{\"event\":\"exit\",\"exit_code\":1e99,\"signal\":\"x\"}"
                    "\n";
    tv_call(&r, box, "bash", "command=s", "x");
    T_CHECK(!r.res.success);
    tt_fill(&large, "0123456789abcdef", (9 << 20) / 16);
    server.events = large.ptr;
    server.piece = 60000;
    tv_call(&r, box, "bash", "command=s", "x");
    T_CHECK(r.st == HFSB_LIMIT);
    T_CHECK(tt_says(&r.res.error, "The command may still run"));
    hfsb_buf_free(&large);
    tt_drop(&r);
    end();
}

/* Shows what arrives, and cancels. */
typedef struct watcher {
    hfsb_buf     text;
    hfsb_cancel *cancel;
} watcher;

static void watch(void *user, hfsb_proc_stream kind, hfsb_str text) {
    watcher *w = (watcher *)user;
    (void)hfsb_buf_printf(&w->text, "%d", (int)kind);
    (void)hfsb_buf_append(&w->text, text);
    if (w->cancel) hfsb_cancel_set(w->cancel);
}

static void output_is_shown_and_can_be_cancelled(void) {
    hfsb_call_opts opts = HFSB_INIT;
    tt_reply       r = HFSB_INIT;
    watcher        w = HFSB_INIT;
    begin(tv_options());
    server.events = stream;
    server.piece = 40;
    opts.on_text = watch;
    opts.user = &w;
    tv_do(&r, box, "bash", HFSB_LIT("{\"command\":\"x\"}"), &opts);
    T_STR(w.text, "0h\303\251\n1oops\342\200\250\n");
    if (hfsb_cancel_open(NULL, &w.cancel, NULL) != HFSB_OK) abort();
    opts.cancel = w.cancel;
    tv_do(&r, box, "bash", HFSB_LIT("{\"command\":\"x\"}"), &opts);
    T_CHECK(r.st == HFSB_CANCELLED);
    TT_ENDS(&r, "h\303\251\n", "Cancelled. What was begun there goes on.");
    server.posts = 0;
    tv_do(&r, box, "bash", HFSB_LIT("{\"command\":\"x\"}"), &opts);
    T_CHECK(r.st == HFSB_CANCELLED && server.posts == 0);
    hfsb_cancel_close(w.cancel);
    hfsb_buf_free(&w.text);
    tt_drop(&r);
    end();
}

static void a_repeat_with_the_same_key_joins_the_first(void) {
    hfsb_call_opts opts = HFSB_INIT;
    tt_reply       r = HFSB_INIT;
    begin(tv_options());
    opts.key = HFSB_LIT("k1");
    tv_do(&r, box, "bash", HFSB_LIT("{\"command\":\"echo x >>o; echo y\"}"),
          &opts);
    TT_OK(&r, "y\n");
    tv_do(&r, box, "bash", HFSB_LIT("{\"command\":\"echo x >>o; echo y\"}"),
          &opts);
    TT_OK(&r, "y\n");
    TT_FILE("o", "x\n");
    memset(&opts, 0, sizeof opts);
    opts.id = HFSB_LIT("mine");
    tv_do(&r, box, "bash", HFSB_LIT("{\"command\":\"echo $HFSB_V1_JOB\"}"),
          &opts);
    TT_OK(&r, "mine\n");
    T_STR(tt_text(&r, "id"), "mine");
    server.posts = 0;
    tv_do(&r, box, "bash", HFSB_LIT("{\"command\":\"echo other\"}"), &opts);
    T_CHECK(r.st == HFSB_REFUSED && server.posts == 0);
    tt_drop(&r);
    end();
}

/* ---- connections ---- */

static void only_reads_are_sent_again(void) {
    tt_reply r = HFSB_INIT;
    begin(tv_options());
    tt_put("w.txt", HFSB_LIT("old\n"));
    server.cut_method = "GET";
    server.cut = 2;
    server.cut_times = 2;
    tv_call(&r, box, "read", "path=s", "w.txt");
    TT_OK(&r, "1\told");
    server.cut_times = 100;
    tv_call(&r, box, "read", "path=s", "w.txt");
    T_CHECK(r.st == HFSB_LOST && !r.res.success);
    server.cut_times = 1;
    server.cut_method = "PUT";
    server.puts = 0;
    tv_call(&r, box, "write", "path=s content=s", "w.txt", "new\n");
    T_CHECK(r.st == HFSB_LOST && server.puts == 1);
    TT_FAIL(&r, "The writing of a file broke off: w.txt (connection reset). "
                "It may be incomplete: read it before you change it again.");
    server.no_connection = true;
    server.posts = 0;
    tv_call(&r, box, "bash", "command=s", "x");
    T_CHECK(r.st == HFSB_CONNECT);
    TT_FAIL(&r, "Cannot connect to sandbox. Is " URL " running? Status: ");
    tv_call(&r, box, "read", "path=s", "w.txt");
    T_CHECK(r.st == HFSB_CONNECT);
    server.no_connection = false;
    tt_drop(&r);
    end();
}

static void a_page_is_not_taken_for_an_answer(void) {
    hfsb_sandbox_opts o = tv_options();
    tt_reply          r = HFSB_INIT;
    o.session = true;
    begin(o);
    tt_put("g.txt", HFSB_LIT("old\n"));
    server.page = "<html>404 no such job</html>";
    tv_call(&r, box, "exists", "path=s", "g.txt");
    T_CHECK(r.st == HFSB_REMOTE && !r.res.success);
    tv_call(&r, box, "write", "path=s content=s", "g.txt", "new\n");
    T_CHECK(r.st == HFSB_REMOTE && !r.res.success);
    tv_call(&r, box, "bash", "command=s", "x");
    T_CHECK(r.st == HFSB_REMOTE && !r.res.success);
    TT_FILE("g.txt", "old\n");
    tt_drop(&r);
    end();
}

static void the_token_is_checked_at_the_start(void) {
    hfsb_sandbox_opts o = tv_options();
    hfsb_err          err = HFSB_INIT;
    hfsb_sandbox     *none = NULL;
    tv_init(&server);
    o.api_token = HFSB_LIT("wrong");
    T_CHECK(tv_open(&server, URL, o, &none, &err) == HFSB_AUTH);
    T_STR(hfsb_cstr(err.msg),
          "Sandbox API at " URL " answers, but does not accept this token");
    o.api_token = HFSB_LIT("");
    T_CHECK(tv_open(&server, URL, o, &none, &err) == HFSB_AUTH);
    o = tv_options();
    server.no_connection = true;
    T_CHECK(tv_open(&server, URL, o, &none, &err) == HFSB_TIMEOUT);
    server.no_connection = false;
    T_CHECK(tv_open(&server, "ftp://x", o, &none, &err) == HFSB_ARG);
    T_CHECK(tv_open(&server, URL "/?a", o, &none, &err) == HFSB_ARG);
    T_CHECK(none == NULL);
    tv_free(&server);
}

static void addresses_may_name_one_of_many_sandboxes(void) {
    static const char *const urls[][3] = {
        {"https://x--49983.hf.jobs", "https://x--49983.hf.jobs", "v1/"},
        {"https://x--49983.hf.jobs/v1/", "https://x--49983.hf.jobs", "v1/"},
        {"https://x--49983.hf.jobs/v1/sandboxes/ab12/",
         "https://x--49983.hf.jobs/v1/sandboxes/ab12", "v1/sandboxes/ab12/"}};
    tt_reply r = HFSB_INIT;
    hfsb_err err = HFSB_INIT;
    size_t   i;
    tt_put("h.txt", HFSB_LIT("h\n"));
    for (i = 0; i < TT_COUNT(urls); i++) {
        tv_init(&server);
        server.prefix = urls[i][2];
        T_CHECK(tv_open(&server, urls[i][0], tv_options(), &box, &err) ==
                HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_sandbox_page(box), hfsb_cstr(urls[i][1])));
        tv_call(&r, box, "read", "path=s", "h.txt");
        TT_OK(&r, "1\th");
        /* the edge of Jobs wants the Hub's token */
        T_STR(hfsb_cstr(server.authorization), "Bearer hf_edge");
        end();
    }
    tt_drop(&r);
}

static void output_survives_the_race_of_protocol_1(void) {
    hfsb_err err = HFSB_INIT;
    tt_reply r = HFSB_INIT;
    tv_init(&server);
    server.protocol = 1;
    server.races = true;
    T_CHECK(tv_open(&server, URL, tv_options(), &box, &err) == HFSB_OK);
    tv_call(&r, box, "bash", "command=s", "printf hello; exit 4");
    TT_ENDS(&r, "hello", "Exit code 4");
    tt_drop(&r);
    end();
}

static void a_work_dir_is_where_paths_and_commands_begin(void) {
    hfsb_sandbox_opts o = tv_options();
    tt_reply          r = HFSB_INIT;
    char              here[4096];
    if (!getcwd(here, sizeof here)) abort();
    (void)mkdir("sub", 0777);
    tt_put("sub/in", HFSB_LIT("in sub\n"));
    tt_put("in", HFSB_LIT("above\n"));
    o.work_dir = HFSB_LIT("sub"); /* of commands alone */
    begin(o);
    tv_call(&r, box, "bash", "command=s", "cat in");
    TT_OK(&r, "in sub\n");
    tv_call(&r, box, "read", "path=s", "in");
    TT_OK(&r, "1\tabove");
    end();
    strcat(here, "/sub");
    o.work_dir = hfsb_cstr(here);
    begin(o);
    tv_call(&r, box, "bash", "command=s", "cat in");
    TT_OK(&r, "in sub\n");
    tv_call(&r, box, "read", "path=s", "in");
    TT_OK(&r, "1\tin sub");
    tv_call(&r, box, "bash", "command=s work_dir=s", "cat in", "..");
    TT_OK(&r, "above\n");
    tt_drop(&r);
    end();
}

/* ---- background, kill ---- */

static bool is_gone(long pid) {
    long long until = hfsb_clock_ms() + 20000;
    while (hfsb_clock_ms() < until) {
        if (waitpid((pid_t)pid, NULL, WNOHANG) != 0) return true;
        usleep(2000);
    }
    return false;
}

static void kill_finds_what_was_started(void) {
    tt_reply    r = HFSB_INIT;
    const char *first, *log, *other;
    long        one, two;
    int         i;
    begin(tv_options());
    tv_call(&r, box, "bash", "command=s background=j", "echo bg; sleep 60",
            "true");
    T_CHECK(r.res.success && tt_says(&r.res.output, "as job "));
    first = tt_keep(tt_text(&r, "id"));
    log = tt_keep(tt_text(&r, "output_path"));
    one = (long)tt_int(&r, "pid");
    tv_call(&r, box, "bash", "command=s background=j", "exec setsid sleep 60",
            "true");
    two = (long)tt_int(&r, "pid");
    other = tt_keep(tt_text(&r, "output_path"));
    for (i = 0; i < 2000 && tt_lines_in(log) < 1; i++) usleep(10000);
    tv_call(&r, box, "read", "path=s", log);
    TT_OK(&r, "1\tbg");
    tv_call(&r, box, "kill", "id=s", first);
    T_CHECK(r.res.success && tt_says(&r.res.output, "Killed "));
    T_CHECK(is_gone(one));
    T_CHECK(kill((pid_t)two, 0) == 0);
    tt_drop(&r);
    r.st = hfsb_sandbox_kill_all(box, &r.res);
    T_CHECK(r.st == HFSB_OK && r.res.success);
    T_CHECK(!tt_says(&r.res.output, "Killed 0"));
    T_CHECK(is_gone(two));
    tv_call(&r, box, "kill", "id=s", first);
    TT_OK(&r, "Killed 0 process(es): []");
    tv_call(&r, box, "kill", "id=s", "x\"; rm -rf /");
    TT_FAIL(&r, "No such job");
    (void)unlink(log);
    (void)unlink(other);
    tt_drop(&r);
    end();
}

/* ---- copies ---- */

static void files_are_copied_byte_for_byte(void) {
    hfsb_buf    big = HFSB_INIT, got = HFSB_INIT;
    hfsb_err    err = HFSB_INIT;
    struct stat st;
    size_t      i;
    begin(tv_options());
    for (i = 0; i < (5 << 20); i++)
        (void)hfsb_buf_append_byte(&big, (char)(i * 7 + i / 1000));
    tt_put("up", hfsb_buf_str(&big));
    T_CHECK(chmod("up", 0755) == 0);
    tt_put("there", HFSB_LIT("old"));
    T_CHECK(hfsb_sandbox_upload(box, NULL, HFSB_LIT("up"), HFSB_LIT("there"),
                                NULL, &err) == HFSB_OK);
    T_CHECK(server.puts == 2); /* in parts */
    T_CHECK(tt_file_is("there", hfsb_buf_str(&big)));
    T_CHECK(stat("there", &st) == 0 && (st.st_mode & 0777) == 0755);
    T_CHECK(hfsb_sandbox_download(box, HFSB_LIT("there"), NULL,
                                  HFSB_LIT("down"), NULL, &err) == HFSB_OK);
    T_CHECK(tt_file_is("down", hfsb_buf_str(&big)));
    got.alloc = tt_alloc();
    T_CHECK(hfsb_sandbox_get(box, HFSB_LIT("there"), 1000, NULL, &got, &err) ==
            HFSB_LIMIT);
    T_CHECK(hfsb_sandbox_get(box, HFSB_LIT("there"), 0, NULL, &got, &err) ==
            HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&got), hfsb_buf_str(&big)));
    hfsb_buf_free(&got);
    T_CHECK(hfsb_sandbox_get(box, HFSB_LIT("none"), 0, NULL, &got, &err) ==
            HFSB_NOT_FOUND);
    hfsb_buf_free(&got);
    hfsb_buf_free(&big);
    end();
}

/* ---- memory ---- */

static void calls_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    static const char *const calls[][2] = {
        {"read", "{\"path\":\"m\"}"},
        {"write", "{\"path\":\"m\",\"content\":\"1\\n\"}"},
        {"edit", "{\"path\":\"m\",\"old_str\":\"1\",\"new_str\":\"2\"}"},
        {"apply_patch", "{\"patch\":\"*** Begin Patch\\n*** Update File: "
                        "m\\n@@\\n-2\\n+3\\n*** End Patch\\n\"}"},
        {"bash", "{\"command\":\"x\"}"},
        {"kill", "{}"},
        {"exists", "{\"path\":\"m\"}"}};
    hfsb_sandbox_opts o = tv_options();
    tv_server         s;
    hfsb_sandbox     *sandbox = NULL;
    tt_reply          r = HFSB_INIT;
    size_t            i;
    tv_init(&s);
    s.events = "{\"event\":\"start\",\"pid\":7}\n{\"event\":\"stdout\","
               "\"data\":\"hi\\n\"}\n{\"event\":\"exit\",\"exit_code\":0}\n";
    o.alloc = alloc;
    o.session = true;
    tt_put("m", HFSB_LIT("0\n"));
    (void)tv_open(&s, URL, o, &sandbox, NULL);
    for (i = 0; sandbox && i < TT_COUNT(calls); i++) {
        tv_do(&r, sandbox, calls[i][0], hfsb_cstr(calls[i][1]), NULL);
        if (!heap->fail_at) T_CHECK(r.st == HFSB_OK && r.res.success);
        T_CHECK(!r.res.success || r.st == HFSB_OK);
        tt_drop(&r);
    }
    if (sandbox) T_CHECK(hfsb_sandbox_close(sandbox, false, NULL) == HFSB_OK);
    else T_CHECK(heap->fail_at);
    tv_free(&s);
}

static void calls_survive_each_failed_allocation(void) {
    t_each_allocation_fails(calls_without_memory);
}

int main(void) {
    tt_begin();
    TT_RUN(file_tools_say_what_local_ones_say);
    TT_RUN(bash_says_what_the_local_one_says);
    TT_RUN(an_edit_keeps_what_others_wrote_meanwhile);
    TT_RUN(a_session_reads_before_it_writes);
    TT_RUN(a_stream_may_be_cut_into_any_pieces);
    TT_RUN(a_lost_stream_says_that_the_command_may_run);
    TT_RUN(hostile_streams_are_errors);
    TT_RUN(output_is_shown_and_can_be_cancelled);
    TT_RUN(a_repeat_with_the_same_key_joins_the_first);
    TT_RUN(only_reads_are_sent_again);
    TT_RUN(a_page_is_not_taken_for_an_answer);
    TT_RUN(the_token_is_checked_at_the_start);
    TT_RUN(addresses_may_name_one_of_many_sandboxes);
    TT_RUN(output_survives_the_race_of_protocol_1);
    TT_RUN(a_work_dir_is_where_paths_and_commands_begin);
    TT_RUN(kill_finds_what_was_started);
    TT_RUN(files_are_copied_byte_for_byte);
    TT_RUN(calls_survive_each_failed_allocation);
    return TT_END();
}
