/* test_mcp_session.c - sessions of MCP clients: found by id, limited in
   number, separate from each other. */
#include "../support/t_mcp.h"
#ifdef HFSBI_SPLIT
#include "../../src/mcp/mcp_private.h"
#endif

/* A client without a wire. */
typedef struct client {
    hfsbi_mcp_channel channel; /* first */
    size_t            answers, cancelled;
    hfsb_buf          last;
} client;

static void on_reply(hfsbi_mcp_channel *channel, int status,
                     hfsb_buf *message) {
    client *c = (client *)(void *)channel;
    channel->owed--;
    if (!status) {
        c->cancelled++;
        return;
    }
    c->answers++;
    hfsb_buf_truncate(&c->last, 0);
    T_CHECK(hfsb_buf_append(&c->last, hfsb_buf_str(message)) == HFSB_OK);
}

static void on_notify(hfsbi_mcp_channel *channel, hfsb_str message) {
    (void)channel;
    (void)message;
}

static void client_open(client *c, hfsb_mcp *mcp, const char *id) {
    memset(c, 0, sizeof *c);
    c->channel.mcp = mcp;
    c->channel.reply = on_reply;
    c->channel.notify = on_notify;
    c->channel.session = hfsbi_mcp_session_hold(mcp, hfsb_cstr(id));
    if (!c->channel.session) abort();
}

static void client_close(client *c) {
    hfsbi_mcp_calls_detach(&c->channel, false);
    hfsbi_mcp_session_release(c->channel.session);
    hfsb_buf_free(&c->last);
}

/* Returns the number of answers that came or are still to come. */
static size_t receive(client *c, const char *line) {
    hfsb_buf       text = HFSB_INIT;
    hfsbi_mcp_head head = HFSB_INIT;
    size_t         before = c->channel.owed + c->answers + c->cancelled;
    T_CHECK(hfsb_buf_append(&text, hfsb_cstr(line)) == HFSB_OK);
    hfsbi_mcp_receive(&c->channel, &text, &head);
    hfsb_buf_free(&text);
    return c->channel.owed + c->answers + c->cancelled - before;
}

static size_t run(client *c, const char *command) {
    char line[400];
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
             "\"params\":{\"name\":\"bash\",\"arguments\":{\"command\":"
             "\"%s\"}}}",
             command);
    return receive(c, line);
}

static bool served(tm_client *s, const size_t *count, size_t want) {
    long long until = hfsb_clock_ms() + TM_WAIT_MS;
    while (*count < want && hfsb_clock_ms() < until)
        (void)hfsb_server_poll(s->server, 20);
    return *count == want;
}

static void sessions_are_found_by_id(void) {
    tm_client          s;
    hfsbi_mcp_session *a, *b, *again;
    tm_open(&s, NULL);
    a = hfsbi_mcp_session_hold(s.mcp, HFSB_LIT("a"));
    b = hfsbi_mcp_session_hold(s.mcp, HFSB_LIT(""));
    again = hfsbi_mcp_session_hold(s.mcp, HFSB_LIT("a"));
    T_CHECK(a && b && a != b && again == a);
    hfsbi_mcp_session_release(again);
    again = hfsbi_mcp_session_new(s.mcp);
    T_CHECK(again && again != b); /* it is not found by any id */
    T_CHECK(hfsbi_mcp_session_hold(s.mcp, HFSB_LIT("")) == b);
    tm_end(&s);
}

static void the_oldest_idle_session_makes_room(void) {
    tm_client          s;
    hfsbi_mcp_session *list[HFSBI_MCP_SESSIONS];
    client             c;
    char               id[16];
    size_t             i;
    tm_open(&s, NULL);
    for (i = 0; i < HFSBI_MCP_SESSIONS; i++) {
        snprintf(id, sizeof id, "s%zu", i);
        list[i] = hfsbi_mcp_session_hold(s.mcp, hfsb_cstr(id));
        T_CHECK(list[i] != NULL);
    }
    T_CHECK(!hfsbi_mcp_session_hold(s.mcp, HFSB_LIT("more")));
    hfsbi_mcp_session_release(list[7]);
    list[7]->used -= 10;
    hfsbi_mcp_session_release(list[3]);
    list[3]->used -= 20;
    /* a session with a running command stays, however old */
    client_open(&c, s.mcp, "s9");
    T_CHECK(receive(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
                        "\"tools/call\",\"params\":{\"name\":\"bash\","
                        "\"arguments\":{\"command\":\"sleep 60\","
                        "\"background\":true}}}") == 1);
    T_CHECK(c.answers == 1);
    client_close(&c);
    hfsbi_mcp_session_release(list[9]);
    list[9]->used -= HFSBI_MCP_SESSION_MS + 30;
    T_CHECK(hfsbi_mcp_session_hold(s.mcp, HFSB_LIT("more")) != NULL);
    T_CHECK(hfsbi_mcp_session_hold(s.mcp, HFSB_LIT("s7")) == list[7]);
    T_CHECK(hfsbi_mcp_session_hold(s.mcp, HFSB_LIT("s9")) == list[9]);
    T_CHECK(!hfsbi_mcp_session_hold(s.mcp, HFSB_LIT("s3")));
    tm_end(&s);
}

/* Some hosts open a session only to list the tools. */
static void an_empty_session_makes_room_first(void) {
    tm_client          s;
    hfsbi_mcp_session *used;
    client             c;
    char               id[16];
    size_t             i;
    tm_open(&s, NULL);
    client_open(&c, s.mcp, "used");
    used = c.channel.session;
    T_CHECK(run(&c, "echo x") == 1 && served(&s, &c.answers, 1));
    client_close(&c);
    used->used -= 1000;
    for (i = 0; i < 3 * HFSBI_MCP_SESSIONS; i++) {
        hfsbi_mcp_session *one;
        snprintf(id, sizeof id, "s%zu", i);
        one = hfsbi_mcp_session_hold(s.mcp, hfsb_cstr(id));
        T_CHECK(one != NULL);
        if (one) hfsbi_mcp_session_release(one);
    }
    T_CHECK(hfsbi_mcp_session_hold(s.mcp, HFSB_LIT("used")) == used);
    T_CHECK(used->tools != NULL);
    tm_end(&s);
}

static void spill_files_end_with_their_session(void) {
    hfsb_tools_opts to = HFSB_INIT;
    hfsb_mcp_opts   o = HFSB_INIT;
    tm_client       s;
    client          c;
    char            dir[128];
    snprintf(dir, sizeof dir, "%s/work/spills", tt_dir);
    T_CHECK(!mkdir(dir, 0700));
    to.spill_dir = dir;
    o.tools = &to;
    tm_open(&s, &o);
    client_open(&c, s.mcp, "a");
    T_CHECK(run(&c, "seq 1 20000") == 1 && served(&s, &c.answers, 1));
    T_CHECK(tt_entries(dir, "bash_output_") == 1);
    client_close(&c);
    tm_end(&s);
    T_CHECK(tt_entries(dir, "bash_output_") == 0);
}

static void a_message_with_too_many_values_is_not_parsed(void) {
    tm_client s;
    client    c;
    hfsb_buf  text = HFSB_INIT;
    size_t    i;
    tm_open(&s, NULL);
    client_open(&c, s.mcp, "a");
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("[1")) == HFSB_OK);
    for (i = 0; i < 600000; i++)
        if (hfsb_buf_append(&text, HFSB_LIT(",1")) != HFSB_OK) abort();
    T_CHECK(hfsb_buf_append_byte(&text, ']') == HFSB_OK);
    T_CHECK(receive(&c, text.ptr) == 1);
    T_CHECK(c.answers == 1 && strstr(c.last.ptr, "at most 200000 values"));
    hfsb_buf_truncate(&text, 0); /* one long string is parsed */
    T_CHECK(hfsb_buf_append(&text,
                            HFSB_LIT("{\"jsonrpc\":\"2.0\",\"id\":1,"
                                     "\"method\":\"ping\",\"params\":{\"x\":"
                                     "\"\\\"")) == HFSB_OK);
    for (i = 0; i < 600000; i++)
        if (hfsb_buf_append(&text, HFSB_LIT(",[")) != HFSB_OK) abort();
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("\"}}")) == HFSB_OK);
    T_CHECK(receive(&c, text.ptr) == 1);
    T_CHECK(c.answers == 2 && strstr(c.last.ptr, "\"result\""));
    hfsb_buf_free(&text);
    client_close(&c);
    tm_end(&s);
}

/* The options are those given at the start, and gone by now. */
static void each_session_has_tools_with_the_same_options(void) {
    char            root[128], shell[128], hidden[] = "SECRET";
    char            word[] = "WORD=kept", secret[] = "SECRET=no";
    const char     *env[] = {word, secret, "PATH=/bin:/usr/bin", NULL};
    const char     *hide[] = {hidden, NULL};
    hfsb_tools_opts to = HFSB_INIT;
    hfsb_mcp_opts   o = HFSB_INIT;
    tm_client       s;
    client          c;
    char            id[2] = "a";
    snprintf(root, sizeof root, "%s/work/same", tt_dir);
    snprintf(shell, sizeof shell, "%s/work/my_shell", tt_dir);
    T_CHECK(!mkdir(root, 0700) && !symlink("/bin/sh", shell));
    to.root = hfsb_cstr(root);
    to.env = env;
    to.hide_env = hide;
    to.shell = shell;
    o.tools = &to;
    tm_open(&s, &o);
    memset(root, 'x', strlen(root));
    memset(shell, 'x', strlen(shell));
    memset(hidden, 'x', strlen(hidden));
    memset(word, 'x', strlen(word));
    for (; id[0] < 'd'; id[0]++) {
        client_open(&c, s.mcp, id);
        T_CHECK(run(&c, "echo ${0##*/} ${PWD##*/} $WORD.$SECRET.") == 1);
        T_CHECK(served(&s, &c.answers, 1));
        T_CHECK(c.last.ptr && strstr(c.last.ptr, "my_shell same kept.."));
        T_CHECK(c.channel.session->tools->env.list == s.mcp->tools->env.list);
        T_CHECK(receive(&c, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":"
                            "\"tools/call\",\"params\":{\"name\":\"read\","
                            "\"arguments\":{\"path\":\"/etc/passwd\"}}}") ==
                1);
        T_CHECK(served(&s, &c.answers, 2));
        T_CHECK(strstr(c.last.ptr, "\"isError\":true") != NULL);
        client_close(&c);
    }
    tm_end(&s);
}

static void sessions_are_separate(void) {
    static const char *const env[] = {"WORD=kept", "PATH=/bin:/usr/bin", NULL};
    hfsb_tools_opts          to = HFSB_INIT;
    hfsb_mcp_opts            o = HFSB_INIT;
    tm_client                s;
    client                   a, b;
    const char              *copy[3];
    memcpy(copy, env, sizeof copy);
    to.env = copy;
    to.grace_ms = -1;
    o.tools = &to;
    tm_open(&s, &o);
    copy[0] = "WORD=lost";
    client_open(&a, s.mcp, "a");
    client_open(&b, s.mcp, "b");
    T_CHECK(run(&a, "sleep 60") == 1);
    T_CHECK(run(&b, "sleep 0.1; echo $WORD") == 1);
    T_CHECK(a.answers == 0 && b.answers == 0);
    /* both have the same id: only one is cancelled */
    T_CHECK(receive(&a, "{\"jsonrpc\":\"2.0\",\"method\":"
                        "\"notifications/cancelled\",\"params\":"
                        "{\"requestId\":1}}") == 0);
    T_CHECK(a.cancelled == 1);
    T_CHECK(served(&s, &b.answers, 1) && b.cancelled == 0);
    T_CHECK(b.last.ptr && strstr(b.last.ptr, "kept"));
    T_CHECK(a.answers == 0);
    client_close(&a);
    client_close(&b);
    tm_end(&s);
}

static void a_call_outlives_its_client_unless_cancelled(void) {
    tm_client s;
    client    a;
    long long until;
    long      pid;
    tm_open(&s, NULL);
    client_open(&a, s.mcp, "a");
    T_CHECK(run(&a, "sleep 0.1; touch went.on") == 1);
    client_close(&a);
    until = hfsb_clock_ms() + TM_WAIT_MS;
    while (access("went.on", F_OK) && hfsb_clock_ms() < until)
        (void)hfsb_server_poll(s.server, 20);
    T_CHECK(access("went.on", F_OK) == 0 && a.answers == 0);
    client_open(&a, s.mcp, "a");
    T_CHECK(run(&a, "echo $$ > gone.pid; exec sleep 60") == 1);
    while ((pid = tm_pid_in("gone.pid")) == 0 && hfsb_clock_ms() < until)
        (void)hfsb_server_poll(s.server, 5);
    hfsbi_mcp_calls_detach(&a.channel, true);
    while (tt_alive(pid) && hfsb_clock_ms() < until)
        (void)hfsb_server_poll(s.server, 5);
    T_CHECK(pid > 0 && !tt_alive(pid) && a.answers == 0 && !a.cancelled);
    client_close(&a);
    tm_end(&s);
}

int main(void) {
    tt_begin();
    TT_RUN(sessions_are_found_by_id);
    TT_RUN(the_oldest_idle_session_makes_room);
    TT_RUN(an_empty_session_makes_room_first);
    TT_RUN(spill_files_end_with_their_session);
    TT_RUN(a_message_with_too_many_values_is_not_parsed);
    TT_RUN(each_session_has_tools_with_the_same_options);
    TT_RUN(sessions_are_separate);
    TT_RUN(a_call_outlives_its_client_unless_cancelled);
    return TT_END();
}
