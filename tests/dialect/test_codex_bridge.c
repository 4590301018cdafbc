/* test_codex_bridge.c - Codex's exec-server in a sandbox: connections that
   break anywhere, what is sent again and what is not, servers that misbehave,
   the end of input, memory. Every method is tried in test_codex.c. */
#include "../support/t_codex.h"
#include "../support/t_net.h"

/* ---- a server that loses its connections by a plan ---- */

typedef struct lie {
    const char *method; /* answers the message that contains this */
    const char *answer; /* with these messages, a line for each; ID becomes
                           that of the call; NULL: ends the connection */
    size_t      from, to; /* on connections of these numbers */
} lie;

static const lie *lies;

static bool tell(tn_conn *c, hfsb_str text) {
    char   head[HFSBI_WS_HEAD];
    size_t n =
        hfsbi_ws_write_head(HFSBI_WS_TEXT, true, text.len, NULL, head);
    return tn_say(c, hfsb_str_make(head, n)) && tn_say(c, text);
}

/* Answers a message; false: the connection ends. */
static bool react(tn_conn *c, hfsb_str text) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_buf      id = HFSB_INIT, out = HFSB_INIT;
    const lie    *l;
    bool          on = true;
    char          mark[16];
    snprintf(mark, sizeof mark, "#%zu ", c->number);
    tn_note(c->peer, hfsb_cstr(mark));
    tn_note(c->peer, text);
    tn_note(c->peer, HFSB_LIT("\n"));
    TN_MUST(hfsb_json_parse(text, NULL, &doc, NULL) == HFSB_OK);
    TN_MUST(hfsb_json_write(hfsb_json_get(doc.root, "id"), NULL, &id, NULL) ==
            HFSB_OK);
    for (l = lies; l->method; l++) {
        hfsb_str rest;
        if (c->number < l->from || c->number > l->to ||
            hfsb_str_find(text, hfsb_cstr(l->method)) == HFSB_NPOS)
            continue;
        on = l->answer != NULL;
        for (rest = hfsb_cstr(l->answer); rest.len;) {
            size_t   end = hfsb_str_find_byte(rest, '\n');
            hfsb_str line = hfsb_str_slice(rest, 0, end);
            size_t   at = hfsb_str_find(line, HFSB_LIT("ID"));
            hfsb_buf_truncate(&out, 0);
            TN_MUST(hfsb_buf_append(&out, hfsb_str_slice(line, 0, at)) ==
                    HFSB_OK);
            if (at != HFSB_NPOS) {
                TN_MUST(hfsb_buf_append(&out, hfsb_buf_str(&id)) == HFSB_OK);
                TN_MUST(hfsb_buf_append(&out, hfsb_str_slice(line, at + 2,
                                                             line.len)) ==
                        HFSB_OK);
            }
            on = tell(c, hfsb_buf_str(&out)) && on;
            if (end == HFSB_NPOS) break;
            rest = hfsb_str_slice(rest, end + 1, rest.len);
        }
        break;
    }
    hfsb_json_free(&doc);
    hfsb_buf_free(&id);
    hfsb_buf_free(&out);
    return on;
}

static void lie_to(tn_conn *c) {
    char            accept[HFSBI_WS_ACCEPT], reply[200];
    hfsbi_ws_reader reader = HFSB_INIT;
    hfsbi_ws_frame  frame;
    hfsb_buf        text = HFSB_INIT;
    hfsb_str        key, log;
    size_t          used, at;
    bool            on = true;
    if (!tn_request(c)) return;
    log = hfsb_buf_str(&c->peer->log);
    for (at = 0; at < log.len; at = (size_t)(key.ptr - log.ptr)) {
        size_t next = hfsb_str_find(hfsb_str_slice(log, at, log.len),
                                    HFSB_LIT("Sec-WebSocket-Key: "));
        if (next == HFSB_NPOS) break;
        key = hfsb_str_slice(log, at + next + 19, at + next + 19 + 24);
    }
    hfsbi_ws_accept(key, accept);
    snprintf(reply, sizeof reply,
             "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: "
             "Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
             accept);
    on = tn_say(c, hfsb_cstr(reply));
    while (on) {
        hfsbi_ws_event event = hfsbi_ws_next(&reader, c->in.ptr, c->in.len,
                                             &frame, &used, NULL);
        if (event == HFSBI_WS_EVENT_DATA) {
            TN_MUST(hfsb_buf_append(&text, frame.data) == HFSB_OK);
            if (frame.last) {
                on = react(c, hfsb_buf_str(&text));
                hfsb_buf_truncate(&text, 0);
            }
        }
        if (event == HFSBI_WS_EVENT_CLOSE || event == HFSBI_WS_EVENT_BAD)
            break;
        memmove(c->in.ptr, c->in.ptr + used, c->in.len - used);
        hfsb_buf_truncate(&c->in, c->in.len - used);
        if (event == HFSBI_WS_EVENT_MORE && !tn_more(c)) break;
    }
    hfsb_buf_free(&text);
}

typedef struct liar {
    tn_peer peer;
    client  c;
    bridge  b;
} liar;

static void open_liar(liar *l, const lie *plan) {
    hfsb_sandbox_opts o = tc_options();
    hfsb_net_opts     net = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    memset(l, 0, sizeof *l);
    lies = plan;
    l->peer.fn = lie_to;
    tn_open(&l->peer);
    net.no_proxy = true;
    net.alloc = tt_alloc();
    T_CHECK(hfsb_net_open(&net, &l->b.box.transport, NULL) == HFSB_OK);
    o.transport = &l->b.box.transport;
    T_CHECK(hfsbi_sandbox_open_url(hfsb_cstr(l->peer.url), &o,
                                   &l->b.box.sandbox, NULL) == HFSB_OK);
    if (try_bridge(&l->c, &l->b, &err) != HFSB_OK) {
        printf("no bridge: %s\n", err.msg);
        abort();
    }
    ts_run(&l->b.near);
}

static void close_liar(liar *l) {
    if (l->c.to >= 0) close(l->c.to);
    await_bridge(&l->b);
    hfsb_server_close(l->b.near.server);
    tc_close(&l->b.box);
    tn_close(&l->peer);
    drop_pipes(&l->c);
}

#define INIT   {"\"initialize\"", "{\"id\":ID,\"result\":{\"sessionId\":\"s\"}}", 0, 99}
#define LIES   {NULL, NULL, 0, 0}
#define RESUME "#1 {\"id\":\"hfsb-resume\",\"method\":\"initialize\",\"params\":" \
               "{\"clientName\":\"hfsb\",\"resumeSessionId\":\"s\"}}\n" \
               "#1 {\"method\":\"initialized\"}\n"

/* The answer to a call has this. */
static bool answers(client *c, long id, const char *part) {
    char mine[40];
    snprintf(mine, sizeof mine, "{\"id\":%ld,", id);
    return finds(c, mine, part, WAIT_MS);
}

static size_t count(const client *c, const char *part) {
    hfsb_str rest = hfsb_buf_str(&c->got);
    size_t   n = 0, at;
    while ((at = hfsb_str_find(rest, hfsb_cstr(part))) != HFSB_NPOS) {
        n++;
        rest = hfsb_str_slice(rest, at + 1, rest.len);
    }
    return n;
}

static void calls_are_repeated_only_when_that_is_safe(void) {
    static const lie plan[] = {
        INIT,
        {"process/signal", NULL, 0, 0},
        {"environment/status", "{\"id\":ID,\"result\":{\"again\":1}}", 1, 1},
        {"fs/readFile", "{\"id\":ID,\"result\":{\"again\":1}}", 1, 1},
        {"process/write", "{\"id\":ID,\"result\":{\"again\":1}}", 1, 1},
        {"process/start", "{\"id\":ID,\"result\":{\"again\":1}}", 1, 1},
        LIES};
    static const char *const said[] = {
        "{\"id\":2,\"method\":\"fs/readFile\",\"params\":{}}",
        "{\"id\":3,\"method\":\"fs/writeFile\",\"params\":{}}",
        "{\"id\":4,\"method\":\"process/write\",\"params\":{\"writeId\":"
        "\"w\"}}",
        "{\"id\":5,\"method\":\"process/write\",\"params\":{\"writeId\":\"\"}"
        "}",
        "{\"id\":\"six\",\"method\":\"process/start\",\"params\":"
        "{\"processId\":\"p\"}}",
        "{\"id\":7,\"method\":\"unknown\"}",
        "{\"id\":8,\"method\":\"process/signal\"}"};
    liar   l;
    size_t i;
    open_liar(&l, plan);
    T_CHECK(call(&l.c, "initialize", "{\"clientName\":\"t\"}") != NULL);
    for (i = 0; i < TT_COUNT(said); i++) say(&l.c, hfsb_cstr(said[i]));
    T_CHECK(answers(&l.c, 2, "again"));
    T_CHECK(answers(&l.c, 3, "\"error\":{\"code\":-32603") &&
            answers(&l.c, 3, "may have been carried out"));
    T_CHECK(answers(&l.c, 4, "again"));
    T_CHECK(answers(&l.c, 5, "may have been carried out"));
    T_CHECK(finds(&l.c, "{\"id\":\"six\",", "again", WAIT_MS));
    T_CHECK(answers(&l.c, 7, "may have been carried out"));
    T_CHECK(answers(&l.c, 8, "may have been carried out"));
    T_CHECK(tn_logged(
        &l.peer,
        RESUME "#1 {\"id\":2,\"method\":\"fs/readFile\",\"params\":{}}\n"
               "#1 {\"id\":4,\"method\":\"process/write\",\"params\":"
               "{\"writeId\":\"w\"}}\n"
               "#1 {\"id\":\"six\",\"method\":\"process/start\",\"params\":"
               "{\"processId\":\"p\"}}\n"));
    T_CHECK(count(&l.c, "\"id\"") == 8);
    close_liar(&l);
    T_CHECK(l.b.why.code == HFSB_OK);
}

#define OUT(seq)                                                    \
    "{\"method\":\"process/output\",\"params\":{\"processId\":" \
    "\"p\",\"seq\":" #seq ",\"stream\":\"stdout\",\"chunk\":\"YQ==\"}}\n"
#define EXITED(seq)                                                 \
    "{\"method\":\"process/exited\",\"params\":{\"processId\":" \
    "\"p\",\"seq\":" #seq ",\"exitCode\":0}}\n"
#define CLOSED(seq)                                                 \
    "{\"method\":\"process/closed\",\"params\":{\"processId\":" \
    "\"p\",\"seq\":" #seq "}}\n"

static void events_come_once_and_in_order(void) {
    static const lie plan[] = {
        {"resumeSessionId",
         "{\"id\":ID,\"result\":{\"sessionId\":\"s\"}}\n" OUT(4), 1, 1},
        INIT,
        {"process/start", "{\"id\":ID,\"result\":{\"first\":1}}\n" OUT(1)
                              OUT(2), 0, 0},
        {"process/start", "{\"id\":ID,\"result\":{\"second\":1}}\n" OUT(1)
                              OUT(2) OUT(3) OUT(4) EXITED(5) CLOSED(6), 1, 1},
        {"process/signal", NULL, 0, 0},
        LIES};
    hfsb_buf out = HFSB_INIT;
    liar     l;
    open_liar(&l, plan);
    T_CHECK(call(&l.c, "initialize", "{\"clientName\":\"t\"}") != NULL);
    T_CHECK(call(&l.c, "process/start", "{\"processId\":\"p\"}") != NULL);
    T_CHECK(finds(&l.c, "\"seq\":2", "", WAIT_MS));
    (void)ask(&l.c, "process/signal", "{}");
    T_CHECK(output_of(&l.c, "p", "stdout", &out) == 0);
    T_STR(hfsb_buf_str(&out), "aaaa");
    T_CHECK(count(&l.c, "second") == 0 && count(&l.c, "\"seq\"") == 6);
    T_CHECK(tn_logged(&l.peer,
                      RESUME "#1 {\"id\":2,\"method\":\"process/start\","
                             "\"params\":{\"processId\":\"p\"}}\n"));
    hfsb_buf_free(&out);
    close_liar(&l);
}

static void a_process_that_is_gone_has_an_end(void) {
    static const lie plan[] = {
        INIT,
        {"process/start", "{\"id\":ID,\"result\":{}}\n" OUT(1), 0, 0},
        {"process/start", "{\"id\":ID,\"error\":{\"code\":-1,\"message\":"
                          "\"no\"}}", 1, 1},
        {"process/signal", NULL, 0, 0},
        LIES};
    liar l;
    open_liar(&l, plan);
    T_CHECK(call(&l.c, "initialize", "{\"clientName\":\"t\"}") != NULL);
    T_CHECK(call(&l.c, "process/start", "{\"processId\":\"p\"}") != NULL);
    (void)ask(&l.c, "process/signal", "{}");
    T_CHECK(output_of(&l.c, "p", "stdout", NULL) == -1);
    close_liar(&l);
}

static void a_session_that_is_attached_is_awaited(void) {
    static const lie plan[] = {
        {"resumeSessionId", "{\"id\":ID,\"error\":{\"code\":-32010,"
                            "\"message\":\"attached\"}}", 1, 2},
        INIT,
        {"process/signal", NULL, 0, 0},
        {"environment/info", "{\"id\":ID,\"result\":{\"third\":1}}", 3, 3},
        LIES};
    liar l;
    long id;
    open_liar(&l, plan);
    T_CHECK(call(&l.c, "initialize", "{\"clientName\":\"t\"}") != NULL);
    id = ask(&l.c, "environment/info", "{}");
    (void)ask(&l.c, "process/signal", "{}");
    T_CHECK(answers(&l.c, id, "third"));
    close_liar(&l);
}

/* The bridge ends by itself. */
static void ends_with(liar *l, const char *why) {
    await_bridge(&l->b);
    T_CHECK(l->b.why.code != HFSB_OK);
    if (!strstr(l->b.why.msg, why)) printf("%s\n", l->b.why.msg);
    T_CHECK(strstr(l->b.why.msg, why) != NULL);
}

static void a_session_that_is_gone_ends_the_bridge(void) {
    static const lie plan[] = {
        {"resumeSessionId", "{\"id\":ID,\"error\":{\"code\":-32600,"
                            "\"message\":\"unknown session id s\"}}", 1, 1},
        INIT,
        {"process/signal", NULL, 0, 0},
        LIES};
    liar l;
    long id;
    open_liar(&l, plan);
    T_CHECK(call(&l.c, "initialize", "{\"clientName\":\"t\"}") != NULL);
    id = ask(&l.c, "environment/info", "{}");
    (void)ask(&l.c, "process/signal", "{}");
    T_CHECK(answers(&l.c, id, "cannot be resumed"));
    ends_with(&l, "unknown session id s");
    close_liar(&l);
}

static void nonsense_ends_the_bridge(void) {
    static const lie plans[][3] = {
        {INIT, {"environment/info", "{\"id\":ID", 0, 0}, LIES},
        {INIT, {"environment/info", "[1]", 0, 0}, LIES},
        {INIT, {"environment/info", "\xff", 0, 0}, LIES}};
    static const char *const why[] = {"is not JSON", "is not JSON",
                                      "not valid UTF-8"};
    size_t i;
    for (i = 0; i < TT_COUNT(plans); i++) {
        liar l;
        long id;
        open_liar(&l, plans[i]);
        T_CHECK(call(&l.c, "initialize", "{\"clientName\":\"t\"}") != NULL);
        id = ask(&l.c, "environment/info", "{}");
        T_CHECK(answers(&l.c, id, why[i]));
        ends_with(&l, why[i]);
        close_liar(&l);
    }
}

/* Line ends between values would be ends of messages. */
static void messages_become_lines(void) {
    static const lie plan[] = {
        INIT, {"environment/info", "{\"id\":ID,\r\"result\":{\"a\":1}\r}", 0, 0},
        LIES};
    liar l;
    open_liar(&l, plan);
    T_CHECK(call(&l.c, "initialize", "{\"clientName\":\"t\"}") != NULL);
    T_CHECK(call(&l.c, "environment/info", "{}") != NULL);
    T_CHECK(count(&l.c, "\r") == 0);
    say(&l.c, HFSB_LIT("{\"id\":"));
    T_CHECK(finds(&l.c, "{\"id\":null,", "-32700", WAIT_MS));
    close_liar(&l);
}

/* ---- the real server ---- */

static void refusals_say_what_to_do(void) {
    hfsb_sandbox_opts o = tc_options();
    hfsb_sandbox     *right, *box;
    hfsb_transport    without;
    bridge            b;
    client            c;
    hfsb_err          err = HFSB_INIT;
    char              url[64];
    memset(&b, 0, sizeof b);
    open_server(NULL);
    ts_run(&s);
    tc_open(&b.box, s.port, NULL);
    T_CHECK(try_bridge(&c, &b, &err) == HFSB_NOT_FOUND);
    T_CHECK(strstr(err.msg, "with --api codex") != NULL);
    hfsb_server_close(b.near.server);
    close(c.to);
    drop_pipes(&c);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", s.port);
    right = b.box.sandbox;
    ts_end(&s, true);

    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", s.port);
    o.transport = &b.box.transport;
    o.api_token = HFSB_LIT("wrong");
    T_CHECK(hfsbi_sandbox_open_url(hfsb_cstr(url), &o, &box, &err) == HFSB_OK);
    b.box.sandbox = box;
    T_CHECK(try_bridge(&c, &b, &err) == HFSB_AUTH);
    T_CHECK(strstr(err.msg, "does not accept this token") != NULL);
    hfsb_server_close(b.near.server);
    close(c.to);
    drop_pipes(&c);
    hfsb_sandbox_close(box, false, NULL);

    o.protocol = hfsb_protocol_v1();
    T_CHECK(hfsbi_sandbox_open_url(hfsb_cstr(url), &o, &box, &err) == HFSB_OK);
    b.box.sandbox = box;
    T_CHECK(try_bridge(&c, &b, &err) == HFSB_ARG);
    T_CHECK(strstr(err.msg, "without \"v1+\"") != NULL);
    hfsb_server_close(b.near.server);
    close(c.to);
    drop_pipes(&c);
    hfsb_sandbox_close(box, false, NULL);

    without = b.box.transport;
    without.connect = NULL;
    o.protocol = NULL;
    o.transport = &without;
    T_CHECK(hfsbi_sandbox_open_url(hfsb_cstr(url), &o, &box, &err) == HFSB_OK);
    b.box.sandbox = box;
    T_CHECK(try_bridge(&c, &b, &err) == HFSB_REFUSED);
    hfsb_server_close(b.near.server);
    close(c.to);
    drop_pipes(&c);
    hfsb_sandbox_close(box, false, NULL);
    b.box.sandbox = right;
    tc_close(&b.box);
    ts_end(&s, true);
}

static void breaks_are_not_noticed(void) {
    static const size_t cuts[] = {1,   60,  128, 129, 130, 150, 190, 196,
                                  230, 260, 300, 350, 420, 500, 700, 900};
    client c;
    bridge b;
    char   name[20], line[16];
    size_t i, k;
    int    up;
    open_bridge(&c, &b);
    initialize(&c, NULL, session);
    for (up = 0; up < 2; up++)
        for (i = 0; i < TT_COUNT(cuts); i += t_quick() ? 5 : 1) {
            hfsb_buf want = HFSB_INIT;
            long     id;
            snprintf(name, sizeof name, "p%d-%zu", up, i);
            T_CHECK(starts(&c, name,
                           "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "
                           "$i; sleep 0.02; done; exit 3",
                           ""));
            pthread_mutex_lock(&b.proxy.lock);
            b.proxy.cut_up = up;
            b.proxy.cut_at = 0;
            b.proxy.cuts[0] = cuts[i];
            b.proxy.cut_count = 1;
            pthread_mutex_unlock(&b.proxy.lock);
            cut(&b.proxy);
            id = ask(&c, "environment/info", "{}");
            for (k = 1; k <= 12; k++) {
                snprintf(line, sizeof line, "%zu\n", k);
                t_repeat(&want, line, 1);
            }
            is_output(&c, name, "stdout", want.ptr, 3);
            T_CHECK(answered(&c, id));
            hfsb_buf_free(&want);
        }
    close_bridge(&c, &b);
    T_CHECK(b.why.code == HFSB_OK);
    ts_end(&s, true);
}

/* A start whose answer is lost runs once. */
static void a_start_that_breaks_runs_once(void) {
    client c;
    bridge b;
    long   id;
    open_bridge(&c, &b);
    initialize(&c, NULL, session);
    id = ask(&c, "process/start",
             shell("p", "echo once >> ran; sleep 0.3", ""));
    tt_sleep_ms(5);
    cut(&b.proxy);
    T_CHECK(answered(&c, id));
    is_output(&c, "p", "stdout", "", 0);
    T_CHECK(ts_lines("ran", 1) && tt_lines_in("ran") == 1);
    T_CHECK(count(&c, "process/closed") == 1);
    (void)unlink("ran");
    close_bridge(&c, &b);
    ts_end(&s, true);
}

static void the_end_of_input_ends_far_processes(void) {
    client    c;
    bridge    b;
    long long began;
    int       i;
    open_bridge(&c, &b);
    initialize(&c, NULL, session);
    T_CHECK(starts_nap(&c, "one"));
    T_CHECK(starts_nap(&c, "two"));
    T_CHECK(comes_up(tt_nap()));
    (void)ask(&c, "environment/info", "{}");
    close(c.to);
    c.to = -1;
    began = hfsb_clock_ms();
    await_bridge(&b);
    T_CHECK(hfsb_clock_ms() - began < 15000);
    T_CHECK(finds(&c, "\"cwd\"", "", WAIT_MS)); /* it was still answered */
    for (i = 0; i < 1000 && tt_running(tt_nap()); i++) tt_sleep_ms(20);
    T_CHECK(tt_running(tt_nap()) == 0);
    close_bridge(&c, &b);
    ts_end(&s, true);
}

/* Without a connection it does not wait for one. */
static void the_end_of_input_ends_a_broken_bridge(void) {
    client    c;
    bridge    b;
    long long began;
    unsigned  nobody;
    int       fd = tc_listen(&nobody);
    close(fd);
    open_bridge(&c, &b);
    initialize(&c, NULL, session);
    pthread_mutex_lock(&b.proxy.lock);
    b.proxy.to = nobody;
    pthread_mutex_unlock(&b.proxy.lock);
    cut(&b.proxy);
    tt_sleep_ms(150);
    close(c.to);
    c.to = -1;
    began = hfsb_clock_ms();
    close_bridge(&c, &b);
    T_CHECK(hfsb_clock_ms() - began < 15000);
    ts_end(&s, true);
}

/* More than the sockets hold, which may be 40 MB each: a Codex that does not
   read holds the process. */
static void a_slow_codex_holds_the_process(void) {
    client   c;
    bridge   b;
    hfsb_buf out = HFSB_INIT;
    size_t   before;
    int      i;
    open_bridge(&c, &b);
    initialize(&c, NULL, session);
    before = tt_memory_held();
    T_CHECK(starts(&c, "slow", "seq 1 12000000; echo end >> slow", ""));
    for (i = 0; i < 50; i++) {
        tt_sleep_ms(20);
        T_CHECK(tt_memory_held() < before + (6u << 20));
    }
    T_CHECK(access("slow", F_OK) != 0); /* it waits */
    if (!t_quick()) {
        T_CHECK(output_of(&c, "slow", "stdout", &out) == 0);
        T_CHECK(out.len == 96888897);
        T_CHECK(access("slow", F_OK) == 0);
        (void)unlink("slow");
    }
    hfsb_buf_free(&out);
    close_bridge(&c, &b);
    ts_end(&s, true);
}

/* A message of 20 MB, in both directions. */
static void long_messages_pass(void) {
    client   c;
    bridge   b;
    hfsb_buf text = HFSB_INIT;
    open_bridge(&c, &b);
    initialize(&c, NULL, session);
    hfsb_buf_printf(&text,
                    "{\"id\":\"big\",\"method\":\"fs/writeFile\",\"params\":"
                    "{\"path\":\"file://%s/work/big\",\"dataBase64\":\"",
                    tt_dir);
    t_repeat(&text, "QUJD", 5000000);
    hfsb_buf_append(&text, HFSB_LIT("\"}}"));
    say(&c, hfsb_buf_str(&text));
    T_CHECK(finds(&c, "\"big\"", "{}", WAIT_MS));
    T_CHECK(callf(&c, "fs/readFile", "{\"path\":\"file://%s/work/big\"}",
                  tt_dir) != NULL);
    T_CHECK(text_of(hfsb_json_get(c.doc.root, "result"), "dataBase64").len ==
            20000000);
    (void)unlink("big");
    hfsb_buf_free(&text);
    close_bridge(&c, &b);
    ts_end(&s, true);
}

/* ---- no memory ---- */

/* A talk over a bridge in this thread, with breaks, while its allocations
   fail. It ends with an error or goes on; nothing is left. */
static void talks(hfsb_sandbox *box, tc_proxy *proxy, hfsb_alloc alloc,
                  t_heap *heap, size_t fail_at, bool forever) {
    static const char talk[] =
        "{\"id\":1,\"method\":\"initialize\",\"params\":{\"clientName\":"
        "\"t\"}}\n{\"id\":2,\"method\":\"environment/info\"}\n"
        "{\"id\":3,\"method\":\"process/start\",\"params\":{\"processId\":"
        "\"p\",\"argv\":[\"/bin/sh\",\"-c\",\"echo hi; sleep 0.1\"],"
        "\"cwd\":\"file:///\",\"env\":{\"PATH\":\"/bin:/usr/bin\"}}}\n";
    hfsb_codex_bridge_opts o = HFSB_INIT;
    hfsb_server_opts       opts = HFSB_INIT;
    hfsb_server           *server = NULL;
    hfsb_buf               all = HFSB_INIT;
    char                   block[4096];
    int                    in[2], out[2], turn;
    bool                   runs, broken = false;
    memset(heap, 0, sizeof *heap);
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC | O_NONBLOCK)) abort();
    T_CHECK(hfsbi_write_all(in[1], hfsb_str_make(talk, sizeof talk - 1)));
    opts.alloc = alloc;
    opts.no_auth = true;
    opts.no_threads = true;
    opts.stop_ms = 200;
    o.sandbox = box;
    o.in = in[0];
    o.out = out[1];
    if (hfsb_server_open(&opts, &server, NULL) != HFSB_OK) abort();
    heap->fail_at = fail_at ? heap->calls + fail_at : 0;
    heap->forever = forever;
    runs = hfsb_server_add_codex_bridge(server, &o, NULL) == HFSB_OK;
    for (turn = 0; runs && turn < (fail_at ? 300 : 2000); turn++) {
        ssize_t n = read(out[0], block, sizeof block);
        if (n > 0 &&
            hfsb_buf_append(&all, hfsb_str_make(block, (size_t)n)) != HFSB_OK)
            abort();
        if (!broken && all.len && strstr(all.ptr, "{\"id\":3,")) {
            cut(proxy);
            broken = true;
        }
        if (fail_at && turn > 60) heap->fail_at = 0;
        runs = hfsb_server_poll(server, 10);
        if (all.len && strstr(all.ptr, "process/closed")) break;
    }
    if (!fail_at) T_CHECK(all.len && strstr(all.ptr, "process/closed"));
    heap->fail_at = 0;
    hfsb_server_close(server);
    close(in[0]);
    close(in[1]);
    close(out[0]);
    close(out[1]);
    hfsb_buf_free(&all);
    T_CHECK(heap->live == 0 && !heap->wrong);
}

static void no_memory_at_any_moment(void) {
    t_heap     heap;
    hfsb_alloc alloc;
    tc_proxy   proxy;
    tc_box     box;
    size_t     k, total;
    int        mode;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    tc_proxy_open(&proxy, s.port);
    proxy.raw = true;
    tc_open(&box, proxy.port, NULL);
    alloc.fn = t_heap_fn;
    alloc.user = &heap;
    talks(box.sandbox, &proxy, alloc, &heap, 0, false);
    total = heap.calls < 400 ? heap.calls : 400;
    for (mode = 0; mode < 2; mode++)
        for (k = 1; k <= total; k += t_long() ? 1 : t_quick() ? 23 : 4)
            talks(box.sandbox, &proxy, alloc, &heap, k, mode == 1);
    tc_close(&box);
    tc_proxy_close(&proxy);
    ts_end(&s, true);
}

int main(void) {
    tt_begin();
    TT_RUN(calls_are_repeated_only_when_that_is_safe);
    TT_RUN(events_come_once_and_in_order);
    TT_RUN(a_process_that_is_gone_has_an_end);
    TT_RUN(a_session_that_is_attached_is_awaited);
    TT_RUN(a_session_that_is_gone_ends_the_bridge);
    TT_RUN(nonsense_ends_the_bridge);
    TT_RUN(messages_become_lines);
    TT_RUN(refusals_say_what_to_do);
    TT_RUN(breaks_are_not_noticed);
    TT_RUN(a_start_that_breaks_runs_once);
    TT_RUN(the_end_of_input_ends_far_processes);
    TT_RUN(the_end_of_input_ends_a_broken_bridge);
    TT_RUN(a_slow_codex_holds_the_process);
    TT_RUN(long_messages_pass);
    TT_RUN(no_memory_at_any_moment);
    return TT_END();
}
