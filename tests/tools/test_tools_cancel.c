/* test_tools_cancel.c - calls that are cancelled: before, while they wait for
   a command or for another call, from a thread and from a signal handler. */
#include "../support/t_cancel.h"
#include "../support/t_tools.h"

/* ---- one call ---- */

static void do_with(tt_reply *r, hfsb_tools *tools, const char *tool,
                    const char *json, const hfsb_cancel *cancel) {
    hfsb_call_opts opts = HFSB_INIT;
    opts.cancel = cancel;
    tt_do(r, tools, tool, hfsb_cstr(json), &opts);
}

static void a_call_that_is_cancelled_before_does_nothing(void) {
    static const char *const calls[][2] = {
        {"bash", "{\"command\":\"echo x > made\"}"},
        {"write", "{\"path\":\"made\",\"content\":\"x\"}"},
        {"read", "{\"path\":\"missing\"}"},
        {"no_such_tool", "{}"}};
    hfsb_tools *tools = tt_open(NULL);
    hfsb_cancel cancel;
    tt_reply    r = HFSB_INIT;
    size_t      i;
    hfsbi_cancel_init(&cancel);
    hfsb_cancel_set(&cancel);
    for (i = 0; i < TT_COUNT(calls); i++) {
        do_with(&r, tools, calls[i][0], calls[i][1], &cancel);
        T_CHECK(r.st == HFSB_CANCELLED && r.res.code == HFSB_CANCELLED);
        TT_ENDS(&r, "", "cancelled");
    }
    T_CHECK(access("made", F_OK) != 0 && !hfsb_tools_busy(tools));
    hfsb_cancel_reset(&cancel);
    do_with(&r, tools, "bash", "{\"command\":\"echo fine\"}", &cancel);
    T_CHECK(r.st == HFSB_OK);
    TT_OK(&r, "fine\n");
    tt_drop(&r);
    hfsbi_cancel_free(&cancel);
    hfsb_tools_close(tools);
}

static void set_by_text(void *user, hfsb_proc_stream stream, hfsb_str text) {
    (void)stream;
    (void)text;
    hfsb_cancel_set((hfsb_cancel *)user);
}

static void a_cancelled_command_is_killed_and_its_output_kept(void) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsb_call_opts opts = HFSB_INIT;
    hfsb_cancel    cancel;
    tt_reply       r = HFSB_INIT;
    long           pid;
    unlink("pid");
    hfsbi_cancel_init(&cancel);
    opts.cancel = &cancel;
    opts.on_text = set_by_text;
    opts.user = &cancel;
    tt_do(&r, tools, "bash",
          HFSB_LIT("{\"command\":\"echo $$ > pid; echo begun; sleep 60; "
                   "echo not\"}"),
          &opts);
    T_CHECK(r.st == HFSB_CANCELLED && r.res.code == HFSB_CANCELLED);
    TT_ENDS(&r, "begun\n", "cancelled");
    T_CHECK(tt_flag(&r, "killed"));
    pid = tt_pid_in("pid");
    T_CHECK(pid > 0 && tt_gone(pid) && !hfsb_tools_busy(tools));
    tt_drop(&r);
    hfsbi_cancel_free(&cancel);
    hfsb_tools_close(tools);
}

static void a_signal_handler_cancels_a_call(void) {
    hfsb_tools *tools = tt_open(NULL);
    hfsb_cancel cancel;
    tt_reply    r = HFSB_INIT;
    hfsbi_cancel_init(&cancel);
    tk_set_by_alarm(&cancel);
    tk_alarm(50000, 0);
    do_with(&r, tools, "bash", "{\"command\":\"sleep 60\"}", &cancel);
    tk_set_by_alarm(NULL);
    T_CHECK(r.st == HFSB_CANCELLED);
    tt_drop(&r);
    hfsbi_cancel_free(&cancel);
    hfsb_tools_close(tools);
}

/* Commands of other calls go on. */
static void a_cancel_ends_the_wait_for_others_commands(void) {
    hfsb_tools *tools = tt_open(NULL);
    hfsb_cancel cancel;
    tt_reply    r = HFSB_INIT;
    pthread_t   thread;
    hfsbi_cancel_init(&cancel);
    unlink("pid");
    tt_call(&r, tools, "bash", "command=s id=s background=j",
            "echo line; trap '' TERM; echo $$ > pid; sleep 60; sleep 60", "bg",
            "true");
    TT_OK(&r, NULL);
    T_CHECK(tt_pid_in("pid") > 0);
    thread = tk_start(tk_set_soon, &cancel);
    do_with(&r, tools, "bash_output",
            "{\"id\":\"bg\",\"offset\":5,\"wait_ms\":60000}", &cancel);
    T_CHECK(pthread_join(thread, NULL) == 0);
    T_CHECK(r.st == HFSB_CANCELLED);
    TT_ENDS(&r, "", "cancelled");
    T_CHECK(tt_flag(&r, "running"));
    hfsb_cancel_reset(&cancel);
    thread = tk_start(tk_set_soon, &cancel);
    do_with(&r, tools, "kill", "{\"id\":\"bg\"}", &cancel); /* 2 s of grace */
    T_CHECK(pthread_join(thread, NULL) == 0);
    T_CHECK(r.st == HFSB_CANCELLED && hfsb_tools_busy(tools) == 1);
    TT_ENDS(&r, "", "cancelled");
    tt_drop(&r);
    hfsbi_cancel_free(&cancel);
    hfsb_tools_close(tools);
}

/* Only hfsb_tools_call() waits, so only it is ended. */
static void a_cancel_leaves_a_call_alone_that_is_polled(void) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsb_call_opts opts = HFSB_INIT;
    hfsb_cancel    cancel;
    tt_reply       r = HFSB_INIT;
    hfsb_call     *call;
    hfsbi_cancel_init(&cancel);
    hfsb_cancel_set(&cancel);
    opts.cancel = &cancel;
    call = tt_start(tools, "bash", &opts, "command=s", "sleep 0.1; echo end");
    tt_finish(&r, tools, call);
    T_CHECK(r.st == HFSB_OK);
    TT_OK(&r, "end\n");
    tt_drop(&r);
    hfsbi_cancel_free(&cancel);
    hfsb_tools_close(tools);
}

/* ---- several calls ---- */

typedef struct blocked {
    hfsb_tools        *tools;
    const hfsb_cancel *cancel;
    const char        *json;
    const char        *key;
    tt_reply           r;
    pthread_t          thread;
} blocked;

static void *block(void *user) {
    blocked       *b = (blocked *)user;
    hfsb_call_opts opts = HFSB_INIT;
    opts.cancel = b->cancel;
    if (b->key) opts.key = hfsb_cstr(b->key);
    tt_do(&b->r, b->tools, b->key ? "write" : "bash", hfsb_cstr(b->json),
          &opts);
    return NULL;
}

static void start(blocked *b, hfsb_tools *tools, const hfsb_cancel *cancel,
                  const char *json, const char *key) {
    memset(b, 0, sizeof *b);
    b->tools = tools;
    b->cancel = cancel;
    b->json = json;
    b->key = key;
    b->thread = tk_start(block, b);
}

static void wait_until_busy(hfsb_tools *tools, size_t n) {
    while (hfsb_tools_busy(tools) != n) tt_sleep_ms(5);
    tt_sleep_ms(50); /* and they wait */
}

/* One thread waits for all: for the cancels of the others as for its own. */
static void each_thread_hears_of_its_own_cancel(void) {
    static const char sleeps[] =
        "{\"command\":\"echo begun; echo x >> ready; sleep 60\"}";
    int first, k;
    for (first = 0; first < 2; first++) {
        hfsb_tools *tools = tt_open(NULL);
        hfsb_cancel cancel[2];
        blocked     b[2];
        int         i;
        unlink("ready");
        for (i = 0; i < 2; i++) {
            hfsbi_cancel_init(&cancel[i]);
            start(&b[i], tools, &cancel[i], sleeps, NULL);
            wait_until_busy(tools, (size_t)i + 1);
            for (k = 0; k < 2000 && tt_lines_in("ready") < i + 1; k++)
                tt_sleep_ms(10);
        }
        for (i = 0; i < 2; i++) { /* first the driver, or the follower */
            int which = first ? 1 - i : i;
            hfsb_cancel_set(&cancel[which]);
            T_CHECK(pthread_join(b[which].thread, NULL) == 0);
            T_CHECK(b[which].r.st == HFSB_CANCELLED);
            TT_ENDS(&b[which].r, "begun\n", "cancelled");
            T_CHECK(hfsb_tools_busy(tools) == (size_t)(1 - i));
        }
        for (i = 0; i < 2; i++) {
            tt_drop(&b[i].r);
            hfsbi_cancel_free(&cancel[i]);
        }
        hfsb_tools_close(tools);
    }
}

static void calls_may_share_a_cancel(void) {
    enum { CALLS = 4 };
    hfsb_tools *tools = tt_open(NULL);
    hfsb_cancel cancel;
    blocked     b[CALLS];
    int         i;
    hfsbi_cancel_init(&cancel);
    for (i = 0; i < CALLS; i++)
        start(&b[i], tools, &cancel, "{\"command\":\"sleep 60\"}", NULL);
    wait_until_busy(tools, CALLS);
    hfsb_cancel_set(&cancel);
    for (i = 0; i < CALLS; i++) {
        T_CHECK(pthread_join(b[i].thread, NULL) == 0);
        T_CHECK(b[i].r.st == HFSB_CANCELLED);
        tt_drop(&b[i].r);
    }
    hfsbi_cancel_free(&cancel);
    hfsb_tools_close(tools);
}

static hfsb_status check_slowly(void *user, hfsb_str path, hfsb_str content,
                                hfsb_buf *warnings) {
    (void)path;
    (void)content;
    (void)warnings;
    tt_put("checking", HFSB_LIT(""));
    (void)hfsb_cancel_wait((const hfsb_cancel *)user, 60000);
    return HFSB_OK;
}

/* The repeat gives up; the first call is not disturbed. */
static void a_repeat_that_waits_can_be_cancelled(void) {
    static const char json[] = "{\"path\":\"once\",\"content\":\"x\"}";
    hfsb_tools_opts   o = HFSB_INIT;
    hfsb_tools_check  check = HFSB_INIT;
    hfsb_tools       *tools;
    hfsb_cancel       cancel, enough;
    blocked           first, repeat;
    hfsbi_cancel_init(&cancel);
    hfsbi_cancel_init(&enough);
    check.fn = check_slowly;
    check.user = &enough;
    o.checks = &check;
    o.check_count = 1;
    tools = tt_open(&o);
    unlink("checking");
    start(&first, tools, NULL, json, "key");
    while (access("checking", F_OK) != 0) tt_sleep_ms(5);
    start(&repeat, tools, &cancel, json, "key");
    tt_sleep_ms(50);
    hfsb_cancel_set(&cancel);
    T_CHECK(pthread_join(repeat.thread, NULL) == 0);
    T_CHECK(repeat.r.st == HFSB_CANCELLED);
    TT_ENDS(&repeat.r, "", "cancelled");
    hfsb_cancel_set(&enough);
    T_CHECK(pthread_join(first.thread, NULL) == 0);
    TT_OK(&first.r, NULL);
    tt_drop(&first.r);
    tt_drop(&repeat.r);
    hfsbi_cancel_free(&cancel);
    hfsbi_cancel_free(&enough);
    hfsb_tools_close(tools);
}

/* ---- what a cancel costs ---- */

static void a_thousand_calls_with_a_cancel_open_no_descriptor(void) {
    hfsb_tools *tools = tt_open(NULL);
    tt_reply    r = HFSB_INIT;
    hfsb_cancel cancel[1000];
    size_t      before, i;
    tt_put("small", HFSB_LIT("one\n"));
    do_with(&r, tools, "grep", "{\"pattern\":\"one\"}", NULL);
    before = tk_open_fds();
    for (i = 0; i < TT_COUNT(cancel); i++) {
        hfsbi_cancel_init(&cancel[i]);
        if (i % 2)
            do_with(&r, tools, "grep",
                    "{\"pattern\":\"one\",\"path\":\"small\"}", &cancel[i]);
        else
            do_with(&r, tools, "write",
                    "{\"path\":\"small\",\"content\":\"one\\n\"}", &cancel[i]);
        T_CHECK(r.st == HFSB_OK && r.res.success);
    }
    T_CHECK(tk_open_fds() == before);
    for (i = 0; i < TT_COUNT(cancel); i++) hfsbi_cancel_free(&cancel[i]);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

/* It waits for the command or the cancel, not for the clock; and once the
   cancel is set, for the command alone. */
static void a_call_with_a_cancel_is_not_polled(void) {
    hfsb_tools    *tools = tt_open(NULL);
    hfsb_call_opts opts = HFSB_INIT;
    tt_reply       r = HFSB_INIT;
    hfsb_cancel    cancel;
    unsigned       without, with;
    hfsbi_cancel_init(&cancel);
    (void)tk_take_polls();
    do_with(&r, tools, "bash", "{\"command\":\"sleep 1\"}", NULL);
    without = tk_take_polls();
    do_with(&r, tools, "bash", "{\"command\":\"sleep 1\"}", &cancel);
    with = tk_take_polls();
    T_CHECK(with < without + 8 && (!TK_COUNTS || without > 0));
    opts.cancel = &cancel;
    opts.on_text = set_by_text;
    opts.user = &cancel;
    tt_do(&r, tools, "bash",
          HFSB_LIT("{\"command\":\"trap '' TERM; echo; sleep 60; sleep 60\"}"),
          &opts);
    T_CHECK(r.st == HFSB_CANCELLED && tk_take_polls() < 500);
    tt_drop(&r);
    hfsbi_cancel_free(&cancel);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(a_call_that_is_cancelled_before_does_nothing);
    TT_RUN(a_cancelled_command_is_killed_and_its_output_kept);
    TT_RUN(a_signal_handler_cancels_a_call);
    TT_RUN(a_cancel_ends_the_wait_for_others_commands);
    TT_RUN(a_cancel_leaves_a_call_alone_that_is_polled);
    TT_RUN(each_thread_hears_of_its_own_cancel);
    TT_RUN(calls_may_share_a_cancel);
    TT_RUN(a_repeat_that_waits_can_be_cancelled);
    TT_RUN(a_thousand_calls_with_a_cancel_open_no_descriptor);
    TT_RUN(a_call_with_a_cancel_is_not_polled);
    return TT_END();
}
