/* test_sandbox_lost.c - a proxy that drops, delays, truncates or answers HTML
   at random between client and server: with hfsb's server every command runs
   exactly once, with the reference's none runs twice. */
#include "../support/t_calls.h"

static ts_server server;
static tc_proxy  proxy;
static tc_box    box;

static void begin(bool foreign) {
    hfsb_sandbox_opts o = tc_options();
    o.tries = 20;
    ts_start(&server, NULL, NULL);
    tc_proxy_open(&proxy, server.port);
    proxy.foreign = foreign;
    tc_open(&box, proxy.port, &o);
    proxy.seed = 20260;
}

static void end(void) {
    tc_close(&box);
    tc_proxy_close(&proxy);
    ts_end(&server, false);
}

static size_t commands(void) {
    return t_quick() ? 150 : 1000;
}

/* Line n of the file is n: none is missing, none is there twice. */
static void each_line_is_there_once(const char *path, size_t n) {
    hfsb_buf text = HFSB_INIT, want = HFSB_INIT;
    size_t   i;
    for (i = 0; i < n; i++)
        if (hfsb_buf_printf(&want, "%zu\n", i) != HFSB_OK) abort();
    T_CHECK(t_read_file(path, &text));
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&text), hfsb_buf_str(&want)));
    hfsb_buf_free(&text);
    hfsb_buf_free(&want);
}

static void commands_run_exactly_once(void) {
    tt_reply r = HFSB_INIT;
    char     json[128], want[32];
    size_t   i, failed = 0;
    begin(false);
    for (i = 0; i < commands(); i++) {
        snprintf(json, sizeof json,
                 "{\"command\":\"echo %zu >> once; echo did %zu\"}", i, i);
        snprintf(want, sizeof want, "did %zu\n", i);
        tc_call(&r, &box, "bash", json);
        if (r.st == HFSB_OK && r.res.success &&
            hfsb_str_equal(hfsb_buf_str(&r.res.output), hfsb_cstr(want)))
            continue;
        if (!failed++) printf("%zu: %s\n", i, r.res.error.ptr);
    }
    T_CHECK(failed == 0);
    each_line_is_there_once("once", commands());
    T_CHECK(proxy.repeats > commands() / 20); /* there was something to lose */
    tt_drop(&r);
    end();
}

/* What failed may have run or not; what worked has; nothing has twice. */
static void calls_that_may_have_run_are_not_sent_twice(void) {
    tt_reply r = HFSB_INIT;
    char     json[128];
    size_t   i, worked = 0, n = commands() / 4;
    begin(true);
    for (i = 0; i < n; i++) {
        snprintf(json, sizeof json, "{\"command\":\"echo %zu >> few\"}", i);
        tc_call(&r, &box, "bash", json);
        if (r.st == HFSB_OK && r.res.success) worked++;
        else T_CHECK(r.st == HFSB_LOST || r.st == HFSB_REMOTE);
    }
    T_CHECK(proxy.repeats == 0);
    T_CHECK(worked > n / 3 && worked < n);
    T_CHECK(ts_commands(&server, 0, 0));
    T_CHECK(tt_lines_in("few") == (long)proxy.reached);
    tt_drop(&r);
    end();
}

typedef struct worker {
    size_t from, to, failed;
} worker;

static void *work(void *user) {
    worker          *w = (worker *)user;
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_tool_result result;
    char             json[128];
    size_t           i;
    for (i = w->from; i < w->to; i++) {
        snprintf(json, sizeof json, "{\"command\":\"echo %zu >> many\"}", i);
        if (hfsb_json_parse(hfsb_cstr(json), NULL, &doc, NULL) != HFSB_OK)
            abort();
        if (hfsb_sandbox_call(box.sandbox, HFSB_LIT("bash"), doc.root, NULL, &result) != HFSB_OK ||
            !result.success)
            w->failed++;
        hfsb_tool_result_free(&result);
        hfsb_json_free(&doc);
    }
    return NULL;
}

static void four_threads_on_one_handle_run_each_command_once(void) {
    pthread_t threads[4];
    worker    workers[4];
    size_t    i, n = commands() / 8;
    begin(false);
    for (i = 0; i < 4; i++) {
        workers[i].from = i * n / 4;
        workers[i].to = (i + 1) * n / 4;
        workers[i].failed = 0;
        if (pthread_create(&threads[i], NULL, work, &workers[i])) abort();
    }
    for (i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        T_CHECK(workers[i].failed == 0);
    }
    T_CHECK(tt_lines_in("many") == (long)n);
    T_CHECK(!system("sort -n many > sorted"));
    each_line_is_there_once("sorted", n);
    end();
}

int main(void) {
    tt_begin();
    TT_RUN(commands_run_exactly_once);
    TT_RUN(calls_that_may_have_run_are_not_sent_twice);
    TT_RUN(four_threads_on_one_handle_run_each_command_once);
    return TT_END();
}
