/* test_mcp_remote.c - MCP with the tools of a session in a sandbox, on the
   fake Hub: long and cancelled commands, a sandbox that is slow to
   start. */
#define T_SERVER
#include "../support/t_session_hub.h"
#ifdef HFSBI_SPLIT
#include "../../src/mcp/mcp.h"
#endif

/* ---- a client of one server ---- */

typedef struct mr_world {
    sh_world     hub;
    hfsb_server *server;
    hfsb_mcp    *mcp;
    int          in[2], out[2]; /* pipes: to the server, and from it */
    pthread_t    thread;
    hfsb_buf     got;   /* all lines so far */
    size_t       kills; /* at the end: how often kill was sent */
} mr_world;

static void *mr_serve(void *user) {
    hfsb_server *server = (hfsb_server *)user;
    while (hfsb_server_poll(server, -1)) continue;
    return NULL;
}

/* fake NULL: Spaces whose commands run in this process. */
static void mr_begin(mr_world *w, const fh_opts *fake, long long answer_ms) {
    fh_opts          embed = HFSB_INIT;
    hfsb_server_opts opts = HFSB_INIT;
    hfsb_mcp_opts    mcp = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    memset(w, 0, sizeof *w);
    embed.mode = FH_EMBED;
    embed.prompt = true;
    sh_begin(&w->hub, fake ? fake : &embed);
    w->hub.sandbox.work_dir = HFSB_LIT("/tmp");
    sh_open(&w->hub);
    T_CHECK(hfsb_server_open(&opts, &w->server, NULL) == HFSB_OK);
    mcp.no_tools = true;
    mcp.path = "";
    mcp.answer_ms = answer_ms;
    mcp.beat_ms = 100;
    mcp.grace_ms = 100;
    T_CHECK(hfsb_server_add_mcp(w->server, &mcp, &w->mcp, &err) == HFSB_OK);
    T_CHECK(hfsb_mcp_use_session(w->mcp, w->hub.session, &err) == HFSB_OK);
    if (pipe(w->in) || pipe(w->out)) abort();
    T_CHECK(hfsb_mcp_stdio(w->mcp, w->in[0], w->out[1], &err) == HFSB_OK);
    if (err.msg[0]) printf("%s\n", err.msg);
    if (pthread_create(&w->thread, NULL, mr_serve, w->server)) abort();
}

/* Ends the input; the server ends within a second or so, and does not wait for
   calls. */
static void mr_end(mr_world *w) {
    long long began = hfsb_clock_ms();
    int       i;
    close(w->in[1]);
    pthread_join(w->thread, NULL);
    hfsb_server_close(w->server);
    T_CHECK(hfsb_clock_ms() - began < 15000);
    w->kills = fh_count(w->hub.fh, "POST", "edge:*/api/kill");
    sh_close(&w->hub);
    close(w->in[0]);
    for (i = 0; i < 2; i++) close(w->out[i]);
    hfsb_buf_free(&w->got);
    sh_end(&w->hub);
}

static void mr_say(mr_world *w, const char *format, ...) HFSBI_PRINTF(2, 3);
static void mr_say(mr_world *w, const char *format, ...) {
    char    line[1024];
    va_list ap;
    int     n;
    va_start(ap, format);
    n = vsnprintf(line, sizeof line - 1, format, ap);
    va_end(ap);
    line[n++] = '\n';
    if (write(w->in[1], line, (size_t)n) != n) abort();
}

static void mr_call(mr_world *w, int id, const char *tool,
                    const char *arguments) {
    mr_say(w,
           "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\","
           "\"params\":{\"name\":\"%s\",\"arguments\":%s}}",
           id, tool, arguments);
}

/* Reads until an answer with that id comes, or for some time; appends its line
   to *out. */
static bool mr_answer(mr_world *w, int id, long long ms, hfsb_buf *out) {
    long long     end = hfsb_clock_ms() + ms;
    char          mark[32], piece[4096];
    struct pollfd fd;
    size_t        at, from, n;
    ssize_t       got;
    (void)snprintf(mark, sizeof mark, "\"id\":%d,", id);
    hfsb_buf_truncate(out, 0);
    for (;;) {
        hfsb_str all = hfsb_buf_str(&w->got);
        for (from = 0; from < all.len; from += n + 1) {
            hfsb_str line = hfsb_str_slice(all, from, all.len);
            n = hfsb_str_find_byte(line, '\n');
            if (n == HFSB_NPOS) break;
            line = hfsb_str_slice(line, 0, n);
            at = hfsb_str_find(line, hfsb_cstr(mark));
            if (at == HFSB_NPOS) continue;
            T_CHECK(hfsb_buf_append(out, line) == HFSB_OK);
            return true;
        }
        fd.fd = w->out[0];
        fd.events = POLLIN;
        if (hfsb_clock_ms() >= end ||
            poll(&fd, 1, (int)(end - hfsb_clock_ms())) <= 0)
            return false;
        got = read(w->out[0], piece, sizeof piece);
        if (got <= 0) return false;
        T_CHECK(hfsb_buf_append(&w->got, hfsb_str_make(piece, (size_t)got)) ==
                HFSB_OK);
    }
}

/* Checks that the answer comes in time and contains both texts. */
static void mr_says(mr_world *w, int id, const char *a, const char *b) {
    hfsb_buf line = HFSB_INIT;
    bool     there = mr_answer(w, id, 45000, &line);
    bool     good = there && tt_says(&line, a) && tt_says(&line, b);
    T_CHECK(there);
    T_CHECK(good);
    if (!good) printf("%s\n", line.len ? line.ptr : "(no answer)");
    hfsb_buf_free(&line);
}

static bool mr_file(const char *path, long long ms) {
    long long end = hfsb_clock_ms() + ms;
    while (access(path, F_OK) != 0) {
        if (hfsb_clock_ms() > end) return false;
        tt_sleep_ms(5);
    }
    return true;
}

/* ---- calls ---- */

static void tools_work_in_the_sandbox(void) {
    mr_world w;
    hfsb_buf line = HFSB_INIT;
    mr_begin(&w, NULL, 0);
    mr_say(&w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    mr_says(&w, 1, "\"name\":\"sandbox_create\"", "\"name\":\"bash\"");
    T_CHECK(mr_answer(&w, 1, 1000, &line) &&
            !tt_says(&line, "\"name\":\"exists\""));
    mr_call(&w, 2, "bash", "{\"command\":\"echo $((6 * 7)); exit 3\"}");
    mr_says(&w, 2, "42", "Exit code 3");
    mr_call(&w, 3, "bash", "{\"command\":\"true\",\"nonsense\":1}");
    mr_says(&w, 3, "nonsense", "\"isError\":true");
    mr_call(&w, 4, "bash", "{\"command\":\"true\",\"id\":7}");
    mr_says(&w, 4, "id", "\"content\"");
    mr_call(&w, 5, "nowhere", "{}");
    mr_says(&w, 5, "-32602", "nowhere");
    T_CHECK(fh_count(w.hub.fh, "POST", "edge:*/api/bash") == 2);
    hfsb_buf_free(&line);
    mr_end(&w);
}

static void a_long_command_goes_on_as_a_job(void) {
    mr_world w;
    char     go[64], arguments[300];
    (void)snprintf(go, sizeof go, "/tmp/hfsb-remote-%ld.go", (long)getpid());
    (void)snprintf(arguments, sizeof arguments,
                   "{\"command\":\"echo begun; until [ -e %s ]; do sleep "
                   "0.01; done; echo ended\",\"id\":\"mine\"}",
                   go);
    mr_begin(&w, NULL, 3000); /* the time to print that */
    mr_call(&w, 1, "bash", arguments);
    mr_says(&w, 1, "begun", "mine");
    /* that was shown */
    mr_call(&w, 2, "bash_output", "{\"id\":\"mine\",\"wait_ms\":200}");
    mr_says(&w, 2, "(no output)", "running; next_offset=6");
    tt_put(go, HFSB_LIT(""));
    mr_call(&w, 3, "bash_output",
            "{\"id\":\"mine\",\"offset\":6,\"wait_ms\":20000}");
    mr_says(&w, 3, "ended", "\"text\"");
    unlink(go);
    /* a command without output, and without an id from the model */
    mr_call(&w, 4, "bash", "{\"command\":\"sleep 60\"}");
    mr_says(&w, 4, "bash_output", "\"text\"");
    mr_call(&w, 5, "kill", "{}");
    mr_says(&w, 5, "Killed 1 process", "\"text\"");
    mr_end(&w);
}

static void input_is_answered_from_the_sandbox(void) {
    mr_world w;
    mr_begin(&w, NULL, 15000);
    mr_call(&w, 1, "bash",
            "{\"command\":\"read x; echo got $x; exit 6\",\"background\":"
            "true,\"id\":\"in\"}");
    mr_says(&w, 1, "background", "\"text\"");
    mr_call(&w, 2, "bash_input", "{\"id\":\"in\",\"text\":\"it\\n\"}");
    mr_says(&w, 2, "got it", "ended, exit code 6");
    mr_call(&w, 3, "bash_output", "{}");
    mr_says(&w, 3, "in: exit code 6", "\"text\"");
    mr_end(&w);
}

static void bash_output_stops_waiting_at_the_deadline(void) {
    mr_world  w;
    long long began;
    mr_begin(&w, NULL, 1500);
    mr_call(&w, 1, "bash",
            "{\"command\":\"echo first; sleep 30\",\"background\":true,"
            "\"id\":\"bg\"}");
    mr_says(&w, 1, "bg", "background");
    tt_sleep_ms(100);
    began = hfsb_clock_ms();
    mr_call(&w, 2, "bash_output",
            "{\"id\":\"bg\",\"offset\":6,\"wait_ms\":20000}");
    mr_says(&w, 2, "running", "\"text\"");
    T_CHECK(hfsb_clock_ms() - began < 18000);
    mr_call(&w, 3, "kill", "{\"id\":\"bg\"}");
    mr_says(&w, 3, "Killed 1 process", "\"text\"");
    mr_end(&w);
}

static void a_cancelled_command_is_killed_remotely(void) {
    mr_world w;
    hfsb_buf line = HFSB_INIT;
    char     name[64], begun[96], ended[96], arguments[400];
    (void)snprintf(name, sizeof name, "/tmp/hfsb-remote-%ld", (long)getpid());
    (void)snprintf(begun, sizeof begun, "%s.begun", name);
    (void)snprintf(ended, sizeof ended, "%s.ended", name);
    (void)snprintf(arguments, sizeof arguments,
                   "{\"command\":\"trap 'echo > %s; exit' TERM; echo > %s; "
                   "sleep 30 & wait\"}",
                   ended, begun);
    mr_begin(&w, NULL, 20000);
    mr_call(&w, 1, "bash", arguments);
    T_CHECK(mr_file(begun, 18000));
    mr_say(&w, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
               "\"params\":{\"requestId\":1}}");
    T_CHECK(mr_file(ended, 18000));
    T_CHECK(!mr_answer(&w, 1, 100, &line));
    mr_call(&w, 2, "bash", "{\"command\":\"echo next\"}");
    mr_says(&w, 2, "next", "\"text\"");
    unlink(begun);
    unlink(ended);
    hfsb_buf_free(&line);
    mr_end(&w);
}

static void nothing_is_sent_after_the_end_of_input(void) {
    mr_world w;
    mr_begin(&w, NULL, 20000);
    mr_call(&w, 1, "bash", "{\"command\":\"sleep 20\"}");
    T_CHECK(sh_until(&w.hub, "POST", "edge:*/api/bash"));
    mr_end(&w);
    T_CHECK(w.kills == 0);
}

/* ---- a sandbox that is slow ---- */

static void calls_report_a_sandbox_that_is_starting(void) {
    fh_opts  slow = HFSB_INIT;
    mr_world w;
    slow.mode = FH_EMBED;
    slow.stages = "BUILDING";
    mr_begin(&w, &slow, 500);
    mr_call(&w, 1, "bash", "{\"command\":\"echo early\"}");
    mr_call(&w, 2, "read", "{\"path\":\"x\"}");
    mr_call(&w, 3, "plan_tool", "{\"todos\":[]}");
    mr_says(&w, 3, "\"text\"", "\"content\"");
    mr_says(&w, 1, "still starting", "\"isError\":true");
    mr_says(&w, 2, "still starting", "\"isError\":true");
    while (fh_spaces(w.hub.fh) < 1) tt_sleep_ms(2);
    fh_stages(w.hub.fh, NULL, "RUNNING");
    T_CHECK(hfsb_session_wait_ready(w.hub.session, NULL, NULL) == HFSB_OK);
    mr_call(&w, 4, "bash", "{\"command\":\"echo late\"}");
    mr_says(&w, 4, "late", "\"text\"");
    T_CHECK(fh_count(w.hub.fh, "POST", "edge:*/api/bash") == 1);
    mr_end(&w);
}

static void sandbox_create_goes_on_after_the_deadline(void) {
    fh_fault_spec f = HFSB_INIT;
    mr_world      w;
    mr_begin(&w, NULL, 300);
    T_CHECK(hfsb_session_wait_ready(w.hub.session, NULL, NULL) == HFSB_OK);
    f.method = "POST";
    f.path = DUPLICATE;
    f.delay_ms = 5000;
    f.work = true;
    fh_fault(w.hub.fh, &f);
    mr_call(&w, 1, "sandbox_create", "{\"hardware\":\"t4-small\"}");
    mr_says(&w, 1, "still being made", "sandbox_create again");
    mr_call(&w, 2, "sandbox_create", "{\"hardware\":\"t4-small\"}");
    mr_says(&w, 2, "still being made", "\"text\"");
    T_CHECK(hfsb_session_wait_ready(w.hub.session, NULL, NULL) == HFSB_OK);
    mr_call(&w, 3, "sandbox_create", "{\"hardware\":\"t4-small\"}");
    mr_says(&w, 3, "active already", "t4-small");
    T_CHECK(fh_count(w.hub.fh, "POST", DUPLICATE) == 2);
    mr_end(&w);
}

/* A job that may have started must not be started again. */
static void a_silent_hub_is_reported(void) {
    fh_fault_spec f = HFSB_INIT;
    mr_world      w;
    mr_begin(&w, NULL, 300);
    T_CHECK(hfsb_session_wait_ready(w.hub.session, NULL, NULL) == HFSB_OK);
    f.path = "/api/jobs/alice";
    f.delay_ms = 60000;
    f.times = 2;
    fh_fault(w.hub.fh, &f);
    mr_call(&w, 1, "hf_jobs",
            "{\"operation\":\"run\",\"namespace\":\"alice\",\"command\":"
            "[\"true\"]}");
    mr_says(&w, 1, "Hub did not answer", "operation ps before you repeat");
    mr_call(&w, 2, "hf_jobs",
            "{\"operation\":\"ps\",\"namespace\":\"alice\"}");
    mr_says(&w, 2, "Hub did not answer within ", " s.\"}],\"isError\":true");
    mr_end(&w);
}

static void a_cancelled_sandbox_is_deleted(void) {
    mr_world w;
    mr_begin(&w, NULL, 20000);
    T_CHECK(hfsb_session_wait_ready(w.hub.session, NULL, NULL) == HFSB_OK);
    fh_stages(w.hub.fh, NULL, "BUILDING");
    mr_call(&w, 1, "sandbox_create", "{\"hardware\":\"t4-small\"}");
    while (fh_spaces(w.hub.fh) < 2) tt_sleep_ms(2);
    mr_say(&w, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
               "\"params\":{\"requestId\":1}}");
    T_CHECK(sh_until(&w.hub, "DELETE", NULL));
    T_CHECK(hfsb_session_wait_ready(w.hub.session, NULL, NULL) == HFSB_OK);
    T_CHECK(fh_spaces(w.hub.fh) == 1);
    mr_end(&w);
}

static void a_failed_sandbox_is_reported(void) {
    fh_opts  broken = HFSB_INIT;
    mr_world w;
    broken.stages = "BUILD_ERROR";
    mr_begin(&w, &broken, 5000);
    mr_call(&w, 1, "bash", "{\"command\":\"true\"}");
    mr_says(&w, 1, "sandbox_create tries again", "\"isError\":true");
    mr_end(&w);
}

/* ---- setup ---- */

static void a_local_session_is_refused(void) {
    hfsb_session *session = sn_open_local();
    hfsb_server  *server;
    hfsb_mcp     *mcp;
    hfsb_err      err = HFSB_INIT;
    T_CHECK(hfsb_server_open(NULL, &server, NULL) == HFSB_OK);
    T_CHECK(hfsb_server_add_mcp(server, NULL, &mcp, &err) == HFSB_OK);
    T_CHECK(hfsb_mcp_use_session(mcp, session, &err) == HFSB_ARG);
    T_CHECK(strstr(err.msg, "local runtime") != NULL);
    hfsb_server_close(server);
    sn_close(session);
}

static hfsb_session *mr_session; /* for the tests below */

static void mr_set_up(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_server_opts opts = HFSB_INIT;
    hfsb_mcp_opts    mcp_opts = HFSB_INIT;
    hfsb_server     *server;
    hfsb_mcp        *mcp;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;
    opts.alloc = alloc;
    mcp_opts.no_tools = true;
    mcp_opts.only = HFSB_LIT("bash,sandbox_create");
    st = hfsb_server_open(&opts, &server, &err);
    if (st == HFSB_OK) {
        st = hfsb_server_add_mcp(server, &mcp_opts, &mcp, &err);
        if (st == HFSB_OK) st = hfsb_mcp_use_session(mcp, mr_session, &err);
        hfsb_server_close(server);
    }
    T_CHECK(st == (heap->fail_at ? HFSB_NOMEM : HFSB_OK));
    T_CHECK((st == HFSB_OK) == !err.msg[0]);
}

static void each_allocation_of_the_setup_may_fail(void) {
    sh_world w;
    sh_begin(&w, NULL);
    w.opts.no_preload = true;
    sh_open(&w);
    mr_session = w.session;
    t_each_allocation_fails(mr_set_up);
    sh_close(&w);
    sh_end(&w);
}

static void an_unknown_tool_cannot_be_chosen(void) {
    sh_world      w;
    hfsb_mcp_opts opts = HFSB_INIT;
    hfsb_server  *server;
    hfsb_mcp     *mcp;
    hfsb_err      err = HFSB_INIT;
    sh_begin(&w, NULL);
    w.opts.no_preload = true;
    sh_open(&w);
    opts.no_tools = true;
    opts.only = HFSB_LIT("bash,nonsense");
    T_CHECK(hfsb_server_open(NULL, &server, NULL) == HFSB_OK);
    T_CHECK(hfsb_server_add_mcp(server, &opts, &mcp, &err) == HFSB_OK);
    T_CHECK(hfsb_mcp_use_session(mcp, w.session, &err) == HFSB_ARG);
    T_CHECK(strstr(err.msg, "nonsense") != NULL);
    hfsb_server_close(server);
    sh_close(&w);
    sh_end(&w);
}

int main(void) {
    T_RUN(tools_work_in_the_sandbox);
    T_RUN(a_long_command_goes_on_as_a_job);
    T_RUN(input_is_answered_from_the_sandbox);
    T_RUN(bash_output_stops_waiting_at_the_deadline);
    T_RUN(a_cancelled_command_is_killed_remotely);
    T_RUN(nothing_is_sent_after_the_end_of_input);
    T_RUN(calls_report_a_sandbox_that_is_starting);
    T_RUN(sandbox_create_goes_on_after_the_deadline);
    T_RUN(a_silent_hub_is_reported);
    T_RUN(a_cancelled_sandbox_is_deleted);
    T_RUN(a_failed_sandbox_is_reported);
    T_RUN(a_local_session_is_refused);
    T_RUN(each_allocation_of_the_setup_may_fail);
    T_RUN(an_unknown_tool_cannot_be_chosen);
    return T_END();
}
