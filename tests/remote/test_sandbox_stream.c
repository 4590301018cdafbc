/* test_sandbox_stream.c - what a command on a sandbox prints, shown while it
   runs; also when the stream breaks. */
#include "../support/t_calls.h"

static ts_server server;
static tc_proxy  proxy;
static tc_box    box;
static tt_reply  r;

/* What was shown. */
typedef struct shown {
    hfsb_buf    text[2];
    size_t      pieces;
    const char *first; /* a file made when the first piece comes; NULL: none */
} shown;

static void show(void *user, hfsb_proc_stream stream, hfsb_str text) {
    shown *s = (shown *)user;
    if (!s->pieces++ && s->first) tt_put(s->first, HFSB_LIT(""));
    if (hfsb_buf_append(&s->text[stream], text) != HFSB_OK) abort();
}

static void drop(shown *s) {
    hfsb_buf_free(&s->text[0]);
    hfsb_buf_free(&s->text[1]);
    memset(s, 0, sizeof *s);
}

static void begin(bool raw, bool foreign) {
    ts_start(&server, NULL, NULL);
    tc_proxy_open(&proxy, server.port);
    proxy.raw = raw;
    proxy.foreign = foreign;
    tc_open(&box, proxy.port, NULL);
}

static void end(void) {
    tt_drop(&r);
    tc_close(&box);
    tc_proxy_close(&proxy);
    ts_end(&server, false);
}

/* The next reply, on a connection of its own, ends after so many bytes. */
static void break_after(size_t cut) {
    hfsb_net_opts net = HFSB_INIT;
    hfsb_transport_close(&box.transport);
    net.no_proxy = true;
    net.alloc = tt_alloc();
    T_CHECK(hfsb_net_open(&net, &box.transport, NULL) == HFSB_OK);
    box.sandbox->transport = box.transport;
    proxy.cuts[0] = cut;
    proxy.cut_at = 0;
    proxy.cut_count = 1;
}

static void run(shown *s, const char *json) {
    hfsb_call_opts opts = HFSB_INIT;
    opts.on_text = show;
    opts.user = s;
    tc_do(&r, &box, "bash", json, &opts, NULL);
    T_CHECK(r.sane);
}

static void text_is_shown_while_the_command_runs(void) {
    shown s = HFSB_INIT;
    begin(true, false);
    s.first = "shown";
    run(&s, "{\"command\":\"echo one; echo bad >&2; for i in $(seq 1000); do "
            "[ -e shown ] && break; sleep 0.02; done; sleep 0.1; "
            "[ -e shown ] && echo two; exit 3\"}");
    TT_ENDS(&r, "one\ntwo\nbad\n", "Exit code 3");
    T_CHECK(tt_int(&r, "exit_code") == 3);
    T_STR(s.text[0], "one\ntwo\n");
    T_STR(s.text[1], "bad\n");
    T_CHECK(s.pieces >= 3);
    drop(&s);
    end();
}

/* Lets the command go on once its line is there. */
static void show_line(void *user, hfsb_proc_stream stream, hfsb_str text) {
    hfsb_buf *line = (hfsb_buf *)user;
    if (stream != HFSB_PROC_STDOUT) abort();
    if (hfsb_buf_printf(line, "%.*s|", (int)text.len, text.ptr) != HFSB_OK)
        abort();
    if (hfsb_str_equal(text, HFSB_LIT("25 %")))
        tt_put("fifo", HFSB_LIT("go\n"));
}

static void ignore(void *user, hfsb_proc_stream stream, hfsb_str text) {
    (void)user;
    (void)stream;
    (void)text;
}

static void unfinished_line_is_shown_while_it_changes(void) {
    hfsb_buf       lines = HFSB_INIT;
    hfsb_call_opts opts = HFSB_INIT;
    begin(true, false);
    T_CHECK(mkfifo("fifo", 0600) == 0);
    opts.on_text = ignore;
    opts.on_line = show_line;
    opts.user = &lines;
    tc_do(&r, &box, "bash",
          "{\"command\":\"echo begin; printf '1 %%\\\\r25 %%'; "
          "read x < fifo; printf '\\\\r100 %%\\\\n'\"}",
          &opts, NULL);
    TT_OK(&r, "begin\n100 %\n");
    T_STR(lines, "25 %|");
    hfsb_buf_free(&lines);
    end();
}

static void stream_reports_a_refusal(void) {
    shown          s = HFSB_INIT;
    hfsb_call_opts opts = HFSB_INIT;
    begin(true, false);
    run(&s, "{\"command\":5}");
    T_CHECK(r.st == HFSB_ARG && s.pieces == 0);
    run(&s, "{\"command\":\"echo x\",\"work_dir\":\"/no/such\"}");
    TT_FAIL(&r, "Working directory not found: /no/such");
    T_CHECK(s.pieces == 0);
    /* of other tools nothing is shown */
    opts.on_text = show;
    opts.user = &s;
    tt_put("f", HFSB_LIT("text\n"));
    tc_do(&r, &box, "read", "{\"path\":\"f\"}", &opts, NULL);
    TT_OK(&r, "1\ttext");
    T_CHECK(s.pieces == 0);
    drop(&s);
    end();
}

static void shows_text_of_the_reference_server_at_the_end(void) {
    shown s = HFSB_INIT;
    begin(false, true);
    run(&s, "{\"command\":\"echo one; echo bad >&2\"}");
    TT_OK(&r, "one\nbad\n");
    T_STR(s.text[0], "one\nbad\n");
    T_CHECK(s.pieces == 1 && s.text[1].len == 0);
    T_STR(proxy.body, "{\"command\":\"echo one; echo bad "
                      ">&2\",\"timeout\":240}");
    drop(&s);
    end();
}

/* The connection ends after so many bytes of the reply, wherever that is; the
   command goes on, and everything is shown once. */
static void a_broken_stream_is_finished(void) {
    static const char command[] =
        "{\"command\":\"for i in 1 2 3 4 5 6 7 8; do echo out $i; echo err $i "
        ">&2; sleep 0.02; done; echo x >> ran\"}";
    static const char out[] = "out 1\nout 2\nout 3\nout 4\nout 5\nout 6\n"
                              "out 7\nout 8\n";
    static const char errors[] = "err 1\nerr 2\nerr 3\nerr 4\nerr 5\nerr 6\n"
                                 "err 7\nerr 8\n";
    shown             s = HFSB_INIT;
    hfsb_buf          want = HFSB_INIT;
    size_t            cut;
    long              n = 0;
    T_CHECK(hfsb_buf_printf(&want, "%s%s", out, errors) == HFSB_OK);
    for (cut = 10; cut < 1500; cut += t_quick() ? 490 : 210) {
        begin(true, false);
        break_after(cut);
        run(&s, command);
        TT_OK(&r, want.ptr);
        /* all of it, nothing twice; after the break the streams are no longer
           told apart when nothing of stderr had been shown */
        T_CHECK(s.text[0].len + s.text[1].len == want.len);
        T_CHECK(hfsb_str_starts(hfsb_buf_str(&s.text[0]), hfsb_cstr(out)));
        if (s.text[1].len)
            T_CHECK(
                hfsb_str_equal(hfsb_buf_str(&s.text[1]), hfsb_cstr(errors)));
        T_CHECK(tt_lines_in("ran") == ++n);
        drop(&s);
        end();
    }
    hfsb_buf_free(&want);
}

static void shows_much_text_after_a_break(void) {
    shown    s = HFSB_INIT;
    hfsb_buf want = HFSB_INIT;
    int      i;
    begin(true, false);
    for (i = 1; i <= 60000; i++)
        if (hfsb_buf_printf(&want, "%d\n", i) != HFSB_OK) abort();
    break_after(3000);
    run(&s, "{\"command\":\"seq 60000\"}");
    T_CHECK(r.res.success && tt_flag(&r, "truncated"));
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&s.text[0]), hfsb_buf_str(&want)));
    hfsb_buf_free(&want);
    drop(&s);
    end();
}

int main(void) {
    tt_begin();
    TT_RUN(text_is_shown_while_the_command_runs);
    TT_RUN(unfinished_line_is_shown_while_it_changes);
    TT_RUN(stream_reports_a_refusal);
    TT_RUN(shows_text_of_the_reference_server_at_the_end);
    TT_RUN(a_broken_stream_is_finished);
    TT_RUN(shows_much_text_after_a_break);
    return TT_END();
}
