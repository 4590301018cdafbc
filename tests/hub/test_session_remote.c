/* test_session_remote.c - a session in a sandbox of the caller's: it connects
   at its first use, tries again after a failure, and at its end kills its own
   commands there and no others. */
#define T_SERVER
#include "../support/t_server.h"
#include "../support/t_session.h"

typedef struct sr_world {
    ts_server         server;
    hfsb_transport    net;
    hfsb_session_opts opts;
    hfsb_session     *session;
    char              url[64];
    size_t            asked; /* how often it connected */
    size_t            fail;  /* the first times do */
    bool              hang;  /* until it is cancelled */
} sr_world;

static hfsb_status sr_connect(void *user, const hfsb_cancel *cancel,
                              hfsb_sandbox **out, hfsb_err *err) {
    sr_world         *w = (sr_world *)user;
    hfsb_sandbox_opts opts = HFSB_INIT;
    w->asked++;
    while (w->hang && !hfsb_cancel_is_set(cancel)) tt_sleep_ms(2);
    if (w->asked <= w->fail || w->hang) {
        (void)snprintf(err->msg, sizeof err->msg, "no route, try %u",
                       (unsigned)w->asked);
        return err->code = w->hang ? HFSB_CANCELLED : HFSB_CONNECT;
    }
    opts.transport = &w->net;
    opts.api_token = HFSB_LIT(TS_TOKEN);
    opts.session = true;
    opts.cancel = cancel;
    opts.times.delay_ms = 10;
    return hfsb_sandbox_connect_url(hfsb_cstr(w->url), &opts, out, err);
}

static void sr_begin(sr_world *w) {
    hfsb_net_opts net = HFSB_INIT;
    memset(w, 0, sizeof *w);
    ts_start(&w->server, NULL, NULL);
    (void)snprintf(w->url, sizeof w->url, "http://127.0.0.1:%u",
                   w->server.port);
    net.no_proxy = true;
    if (hfsb_net_open(&net, &w->net, NULL) != HFSB_OK) abort();
    w->opts.runtime = HFSB_RUNTIME_REMOTE;
    w->opts.model_local = true;
    w->opts.connect = sr_connect;
    w->opts.user = w;
    w->opts.no_preload = true;
}

static void sr_open(sr_world *w) {
    hfsb_err err = HFSB_INIT;
    if (hfsb_session_open(&w->opts, &w->session, &err) != HFSB_OK) {
        printf("open: %s\n", err.msg);
        abort();
    }
}

static void sr_end(sr_world *w) {
    if (w->session) sn_close(w->session);
    hfsb_transport_close(&w->net);
    if (w->server.server) ts_end(&w->server, true);
}

/* The state of a job as another client sees it: bash_output of it. */
static bool sr_runs(sr_world *w, const char *id) {
    hfsb_sandbox    *other;
    hfsb_err         err = HFSB_INIT;
    hfsb_tool_result r;
    char             json[100];
    bool             running;
    (void)snprintf(json, sizeof json, "{\"id\":\"%s\",\"wait_ms\":0}", id);
    if (sr_connect(w, NULL, &other, &err) != HFSB_OK) abort();
    T_CHECK(hfsb_sandbox_call_text(other, HFSB_LIT("bash_output"),
                                   hfsb_cstr(json), NULL, &r) == HFSB_OK);
    T_CHECK(r.success);
    running = hfsb_json_bool(hfsb_json_get(r.fields.root, "running"), false);
    hfsb_tool_result_free(&r);
    (void)hfsb_sandbox_close(other, false, NULL);
    return running;
}

static void tools_work_there(void) {
    sr_world w;
    tt_reply r = HFSB_INIT;
    hfsb_buf names = HFSB_INIT;
    sr_begin(&w);
    sr_open(&w);
    T_CHECK(w.asked == 0);
    sn_definitions(w.session, HFSB_TOOLS_FLAT, &names);
    T_CHECK(tt_says(&names, "plan_tool ") && tt_says(&names, "bash "));
    T_CHECK(!tt_says(&names, "sandbox_create") && !tt_says(&names, "hf_jobs"));
    sn_do(&r, w.session, "bash", HFSB_LIT("{\"command\":\"echo $((6*7))\"}"),
          NULL);
    T_CHECK(r.st == HFSB_OK && tt_says(&r.res.output, "42"));
    T_CHECK(w.asked == 1);
    sn_do(&r, w.session, "sandbox_create", HFSB_LIT("{}"), NULL);
    T_CHECK(r.st == HFSB_NOT_FOUND);
    T_CHECK(hfsb_session_runtime(w.session) == HFSB_RUNTIME_REMOTE);
    tt_drop(&r);
    hfsb_buf_free(&names);
    sr_end(&w);
}

static void a_failure_is_reported_and_the_next_call_tries_again(void) {
    sr_world w;
    tt_reply r = HFSB_INIT;
    sr_begin(&w);
    w.fail = 2;
    sr_open(&w);
    sn_do(&r, w.session, "bash", HFSB_LIT("{\"command\":\"true\"}"), NULL);
    T_CHECK(r.st == HFSB_CONNECT);
    T_CHECK(tt_says(&r.res.error, "the next call tries again"));
    T_CHECK(tt_says(&r.res.error, "no route, try 1"));
    sn_do(&r, w.session, "bash", HFSB_LIT("{\"command\":\"true\"}"), NULL);
    T_CHECK(r.st == HFSB_CONNECT && w.asked == 2);
    sn_do(&r, w.session, "bash", HFSB_LIT("{\"command\":\"true\"}"), NULL);
    T_CHECK(r.st == HFSB_OK && r.res.success && w.asked == 3);
    tt_drop(&r);
    sr_end(&w);
}

static char sr_left[64]; /* a file that says that it runs */

static void *sr_set_later(void *cancel) {
    (void)tt_pid_in(sr_left);
    hfsb_cancel_set((hfsb_cancel *)cancel);
    return NULL;
}

static void close_kills_its_commands_and_no_others(void) {
    sr_world     w;
    tt_reply     r = HFSB_INIT;
    hfsb_cancel *soon;
    pthread_t    thread;
    sr_world     other;
    char         json[150];
    sr_begin(&w);
    sr_open(&w);
    other = w;
    sr_open(&other);
    sn_do(&r, other.session, "bash",
          HFSB_LIT("{\"command\":\"sleep 60\",\"background\":true,\"id\":"
                   "\"theirs\"}"),
          NULL);
    T_CHECK(r.st == HFSB_OK && r.res.success);
    /* an id that is taken: not ours, and not killed by us */
    sn_do(&r, w.session, "bash",
          HFSB_LIT("{\"command\":\"sleep 61\",\"background\":true,\"id\":"
                   "\"theirs\"}"),
          NULL);
    T_CHECK(!r.res.success);
    sn_do(&r, w.session, "bash",
          HFSB_LIT("{\"command\":\"sleep 62\",\"background\":true,\"id\":"
                   "\"ours\"}"),
          NULL);
    T_CHECK(r.st == HFSB_OK && r.res.success);
    /* one whose caller has stopped waiting */
    snprintf(sr_left, sizeof sr_left, "/tmp/hfsb-left-%ld", (long)getpid());
    snprintf(json, sizeof json,
             "{\"command\":\"echo $$ > %s; sleep 63\",\"id\":\"left\"}",
             sr_left);
    T_CHECK(hfsb_cancel_open(NULL, &soon, NULL) == HFSB_OK);
    if (pthread_create(&thread, NULL, sr_set_later, soon)) abort();
    sn_do(&r, w.session, "bash", hfsb_cstr(json), soon);
    T_CHECK(r.st == HFSB_CANCELLED);
    pthread_join(thread, NULL);
    unlink(sr_left);
    hfsb_cancel_close(soon);
    sn_do(&r, w.session, "bash",
          HFSB_LIT("{\"command\":\"sleep 64\",\"background\":\"true\",\"id\":"
                   "\"words\"}"),
          NULL);
    T_CHECK(r.st == HFSB_OK && r.res.success);
    T_CHECK(sr_runs(&w, "ours") && sr_runs(&w, "left") &&
            sr_runs(&w, "words"));
    sn_close(w.session);
    w.session = NULL;
    T_CHECK(!sr_runs(&w, "ours") && !sr_runs(&w, "left") &&
            !sr_runs(&w, "words"));
    T_CHECK(sr_runs(&w, "theirs"));
    sn_close(other.session);
    T_CHECK(!sr_runs(&w, "theirs"));
    tt_drop(&r);
    sr_end(&w);
}

static void close_reports_a_sandbox_that_is_gone(void) {
    sr_world  w;
    tt_reply  r = HFSB_INIT;
    hfsb_err  err = HFSB_INIT;
    long long began;
    sr_begin(&w);
    w.opts.close_ms = 1500;
    sr_open(&w);
    sn_do(&r, w.session, "bash",
          HFSB_LIT("{\"command\":\"sleep 60\",\"background\":true}"), NULL);
    T_CHECK(r.st == HFSB_OK && r.res.success);
    ts_end(&w.server, true);
    began = hfsb_clock_ms();
    T_CHECK(hfsb_session_close(w.session, &err) != HFSB_OK);
    T_CHECK(hfsb_clock_ms() - began < 15000);
    T_CHECK(strstr(err.msg, "may still run") != NULL);
    w.session = NULL;
    tt_drop(&r);
    sr_end(&w);
}

static void close_ends_a_connection_under_way(void) {
    sr_world  w;
    long long began = hfsb_clock_ms();
    sr_begin(&w);
    w.hang = true;
    w.opts.no_preload = false;
    sr_open(&w);
    sr_end(&w);
    T_CHECK(hfsb_clock_ms() - began < 15000);
}

static void a_file_is_read_before_it_is_changed(void) {
    sr_world w;
    tt_reply r = HFSB_INIT;
    char     path[64], json[200];
    (void)snprintf(path, sizeof path, "/tmp/hfsb-remote-%ld.txt",
                   (long)getpid());
    tt_put(path, HFSB_LIT("one\n"));
    (void)snprintf(json, sizeof json,
                   "{\"path\":\"%s\",\"old_str\":\"one\",\"new_str\":\"two\"}",
                   path);
    sr_begin(&w);
    sr_open(&w);
    sn_do(&r, w.session, "edit", hfsb_cstr(json), NULL);
    T_CHECK(!r.res.success && tt_says(&r.res.error, "read"));
    sn_call(&r, w.session, "read", "path=s", path);
    sn_do(&r, w.session, "edit", hfsb_cstr(json), NULL);
    T_CHECK(r.st == HFSB_OK && r.res.success);
    tt_drop(&r);
    unlink(path);
    sr_end(&w);
}

static void connect_is_required(void) {
    hfsb_session_opts opts = HFSB_INIT;
    hfsb_session     *session;
    hfsb_err          err = HFSB_INIT;
    opts.runtime = HFSB_RUNTIME_REMOTE;
    opts.model_local = true;
    T_CHECK(hfsb_session_open(&opts, &session, &err) == HFSB_ARG);
    T_CHECK(strstr(err.msg, "connect") != NULL);
    T_CHECK(!strcmp(hfsb_runtime_text(HFSB_RUNTIME_REMOTE), "remote sandbox"));
    T_CHECK(!hfsb_session_needs_token(HFSB_RUNTIME_REMOTE, true));
    T_CHECK(hfsb_session_needs_token(HFSB_RUNTIME_REMOTE, false));
}

int main(void) {
    T_RUN(tools_work_there);
    T_RUN(a_failure_is_reported_and_the_next_call_tries_again);
    T_RUN(close_kills_its_commands_and_no_others);
    T_RUN(close_reports_a_sandbox_that_is_gone);
    T_RUN(close_ends_a_connection_under_way);
    T_RUN(a_file_is_read_before_it_is_changed);
    T_RUN(connect_is_required);
    return T_END();
}
