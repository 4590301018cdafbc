/* test_server_once.c - one call, once: keys, repeats, replies that stay alive,
   and clients that go away. */
#include "../support/t_server.h"

static const hfsb_str no_body = HFSB_INIT;

#define KEY(k) TS_JSON "Idempotency-Key: " k "\r\n"

/* ---- keys ---- */

static void a_repeat_joins_the_command_that_runs(void) {
    ts_server s;
    ts_conn   c[3];
    ts_reply  r = HFSB_INIT;
    size_t    i;
    ts_start(&s, NULL, NULL);
    for (i = 0; i < 3; i++) {
        c[i] = ts_connect(&s);
        ts_ask(&c[i], "POST", "/api/bash", KEY("one"),
               HFSB_LIT("{\"command\":\"echo x >> ran; sleep 0.7; echo "
                        "$$\"}"));
        tt_sleep_ms(100);
    }
    for (i = 0; i < 3; i++) {
        T_CHECK(ts_read(&c[i], &r, false));
        TS_OK(&r, NULL);
        T_CHECK(ts_text(&r, "output").len > 1);
        ts_hang_up(&c[i]);
    }
    T_CHECK(tt_lines_in("ran") == 1);
    ts_call(&s, &r, "POST", "/api/bash", KEY("one"),
            HFSB_LIT("{\"command\":\"echo x >> ran; sleep 0.7; echo $$\"}"));
    TS_OK(&r, NULL); /* after it has finished */
    T_CHECK(tt_lines_in("ran") == 1);
    ts_call(&s, &r, "POST", "/api/bash", KEY("one"),
            HFSB_LIT("{\"command\":\"echo y >> ran\"}"));
    TS_REFUSED(&r, 409, "another command");
    T_CHECK(tt_lines_in("ran") == 1);
    ts_drop(&r);
    ts_end(&s, false);
}

static void a_repeat_after_a_reset_runs_once(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    hfsb_str  body =
        HFSB_LIT("{\"command\":\"echo x >> once; sleep 0.5; echo end\"}");
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/bash", KEY("r"), body);
    T_CHECK(ts_lines("once", 1));
    ts_reset(&c); /* before a byte of the reply */
    ts_call(&s, &r, "POST", "/api/bash", KEY("r"), body);
    TS_OK(&r, "end\n");
    T_CHECK(tt_lines_in("once") == 1);
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/bash", KEY("q"), body);
    T_CHECK(ts_lines("once", 2));
    ts_reset(&c);
    T_CHECK(ts_commands(&s, 0, 0)); /* it goes on without its client */
    ts_call(&s, &r, "POST", "/api/bash", KEY("q"), body);
    TS_OK(&r, "end\n");
    T_CHECK(tt_lines_in("once") == 2);
    ts_drop(&r);
    ts_end(&s, false);
}

static void a_call_for_another_instance_is_not_run(void) {
    static const char *const tools[][2] = {
        {"bash", "{\"command\":\"echo x >> meant\"}"},
        {"write", "{\"path\":\"meant\",\"content\":\"x\"}"},
        {"edit", "{\"path\":\"a\",\"old_str\":\"a\",\"new_str\":\"b\"}"},
        {"multi_edit", "{\"path\":\"a\",\"edits\":[{\"old_str\":\"a\","
                       "\"new_str\":\"b\"}]}"},
        {"apply_patch", "{\"patch\":\"*** Begin Patch\\n*** Delete File: "
                        "a\\n*** End Patch\"}"},
        {"read", "{\"path\":\"a\"}"},
        {"kill", "{}"}};
    ts_server s;
    ts_reply  r = HFSB_INIT;
    char      target[64], fields[256];
    hfsb_str  said;
    size_t    i;
    ts_start(&s, NULL, NULL);
    tt_put("a", HFSB_LIT("a\n"));
    for (i = 0; i < TT_COUNT(tools); i++) {
        snprintf(target, sizeof target, "/api/%s", tools[i][0]);
        ts_call(&s, &r, "POST", target,
                KEY("m") "X-Hfsb-Instance: someone-else\r\n",
                hfsb_cstr(tools[i][1]));
        TS_REFUSED(&r, 409, "This is another instance of the server; the call "
                            "was not run.");
    }
    T_CHECK(access("meant", F_OK) != 0);
    TT_FILE("a", "a\n");
    /* one that names this instance runs, and the key is still free */
    said = ts_field(&r, "X-Hfsb");
    said = hfsb_str_slice(said, hfsb_str_find_byte(said, '=') + 1, said.len);
    snprintf(fields, sizeof fields, KEY("m") "X-Hfsb-Instance: %.*s\r\n",
             (int)said.len, said.ptr);
    ts_call(&s, &r, "POST", "/api/bash", fields, hfsb_cstr(tools[0][1]));
    TS_OK(&r, "");
    T_CHECK(tt_lines_in("meant") == 1);
    ts_call(&s, &r, "POST", "/api/bash", fields, hfsb_cstr(tools[0][1]));
    TS_OK(&r, ""); /* the repeat it is for */
    strcat(fields, "X-Hfsb-Instance: someone-else\r\n");
    ts_call(&s, &r, "POST", "/api/bash", fields, hfsb_cstr(tools[0][1]));
    TS_REFUSED(&r, 409, "another instance");
    T_CHECK(tt_lines_in("meant") == 1);
    ts_drop(&r);
    ts_end(&s, false);
}

static void writes_and_edits_are_made_once(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    hfsb_str  edit = HFSB_LIT("{\"path\":\"e\",\"old_str\":\"a\","
                              "\"new_str\":\"aa\"}");
    ts_start(&s, NULL, NULL);
    tt_put("e", HFSB_LIT("a\n"));
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/edit", KEY("e1"), edit);
    ts_reset(&c); /* whether it was read or not: a repeat is safe */
    ts_call(&s, &r, "POST", "/api/edit", KEY("e1"), edit);
    TS_OK(&r, "Edited e (1 replacement)");
    ts_call(&s, &r, "POST", "/api/edit", KEY("e1"), edit);
    TS_OK(&r, "Edited e (1 replacement)");
    TT_FILE("e", "aa\n");
    ts_call(&s, &r, "POST", "/api/write", KEY("w1"),
            HFSB_LIT("{\"path\":\"w\",\"content\":\"1\"}"));
    TS_OK(&r, "Wrote 1 bytes to w");
    tt_put("w", HFSB_LIT("changed"));
    ts_call(&s, &r, "POST", "/api/write", KEY("w1"),
            HFSB_LIT("{\"path\":\"w\",\"content\":\"1\"}"));
    TS_OK(&r, "Wrote 1 bytes to w");
    TT_FILE("w", "changed");
    ts_call(&s, &r, "POST", "/api/write", KEY("w1"),
            HFSB_LIT("{\"path\":\"w\",\"content\":\"2\"}"));
    TS_REFUSED(&r, 409, "another call");
    ts_call(&s, &r, "POST", "/api/bash", KEY("w1"),
            HFSB_LIT("{\"command\":\"echo no\"}"));
    TS_REFUSED(&r, 409, "another call");
    TT_FILE("w", "changed");
    ts_drop(&r);
    ts_end(&s, false);
}

static int checks; /* begun */
static int holds;  /* a check ends when that is 0, or after a while */

/* The first writes slowly, by a check of the host's: the repeat waits. */
static hfsb_status slow_check(void *user, hfsb_str path, hfsb_str content,
                              hfsb_buf *warnings) {
    (void)user;
    (void)path;
    (void)content;
    int i;
    __atomic_add_fetch(&checks, 1, __ATOMIC_SEQ_CST);
    tt_sleep_ms(700);
    for (i = 0; i < 3000 && __atomic_load_n(&holds, __ATOMIC_SEQ_CST); i++)
        tt_sleep_ms(10);
    return hfsb_buf_append(warnings, HFSB_LIT("seen"));
}

static void a_repeat_joins_a_write_under_way(void) {
    hfsb_tools_check  check = HFSB_INIT;
    hfsb_tools_opts   tools = HFSB_INIT;
    hfsb_server_sandbox_opts box = HFSB_INIT;
    ts_server         s;
    ts_conn           c[2];
    ts_reply          r = HFSB_INIT;
    size_t            i;
    int               before;
    check.fn = slow_check;
    tools.checks = &check;
    tools.check_count = 1;
    box.tools = &tools;
    box.beat_ms = 200;
    ts_start(&s, NULL, &box);
    __atomic_store_n(&holds, 1, __ATOMIC_SEQ_CST);
    for (i = 0; i < 2; i++) {
        c[i] = ts_connect(&s);
        ts_ask(&c[i], "POST", "/api/write", KEY("slow"),
               HFSB_LIT("{\"path\":\"s\",\"content\":\"1\"}"));
        tt_sleep_ms(100);
    }
    for (i = 0; i < 2; i++) T_CHECK(ts_more(&c[i], 20000)); /* a beat */
    __atomic_store_n(&holds, 0, __ATOMIC_SEQ_CST);
    for (i = 0; i < 2; i++) {
        T_CHECK(ts_read(&c[i], &r, false));
        TS_OK(&r, NULL);
        T_CHECK(ts_contains(&r, "seen"));
        /* work on disk beats too */
        T_CHECK(r.chunked && r.body.ptr[0] == ' ');
        ts_hang_up(&c[i]);
    }
    c[0] = ts_connect(&s); /* gone while a thread works for it */
    ts_ask(&c[0], "POST", "/api/write", KEY("gone"),
           HFSB_LIT("{\"path\":\"g\",\"content\":\"1\"}"));
    tt_sleep_ms(100);
    ts_reset(&c[0]);
    ts_call(&s, &r, "POST", "/api/write", KEY("gone"),
            HFSB_LIT("{\"path\":\"g\",\"content\":\"1\"}"));
    TS_OK(&r, NULL);
    c[0] = ts_connect(&s); /* the server ends while one works */
    before = __atomic_load_n(&checks, __ATOMIC_SEQ_CST);
    ts_ask(&c[0], "POST", "/api/write", TS_JSON,
           HFSB_LIT("{\"path\":\"last\",\"content\":\"1\"}"));
    for (i = 0; i < 2000 &&
                __atomic_load_n(&checks, __ATOMIC_SEQ_CST) == before; i++)
        tt_sleep_ms(10);
    ts_end(&s, true);
    TT_FILE("last", "1");
    ts_hang_up(&c[0]);
    ts_drop(&r);
}

/* ---- replies that stay alive ---- */

static void a_long_command_beats(void) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    ts_server         s;
    ts_conn           c;
    ts_reply          r = HFSB_INIT;
    size_t            blanks;
    long long         began = hfsb_clock_ms();
    box.beat_ms = 100;
    ts_start(&s, NULL, &box);
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/bash", TS_JSON,
           HFSB_LIT("{\"command\":\"sleep 2; echo x; exit 2\"}"));
    T_CHECK(ts_read(&c, &r, false));
    TS_FAIL(&r, "Exit code 2");
    T_CHECK(r.chunked);
    blanks = r.body.ptr ? strspn(r.body.ptr, " ") : 0;
    T_CHECK(blanks >= 3);
    T_CHECK((long long)blanks <= (hfsb_clock_ms() - began) / 100 + 1);
    T_STR(ts_field(&r, "X-Accel-Buffering"), "no");
    T_STR(ts_field(&r, "Content-Type"), "application/json");
    ts_ask(&c, "POST", "/api/bash", TS_JSON,
           HFSB_LIT("{\"command\":\"echo next\"}"));
    T_CHECK(ts_read(&c, &r, false));
    TS_OK(&r, "next\n"); /* the connection is kept */
    T_CHECK(!r.chunked);
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

/* False if a busy machine printed nothing in time. */
static bool beats_after_half(int seconds) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    long long begin, first;
    char      body[120], error[40];
    bool      printed;
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    snprintf(body, sizeof body,
             "{\"command\":\"echo part; trap '' TERM; sleep 60 & wait; "
             "wait\",\"timeout\":%d}",
             seconds);
    snprintf(error, sizeof error, "Timeout after %ds", seconds);
    begin = hfsb_clock_ms();
    ts_ask(&c, "POST", "/api/bash", TS_JSON, hfsb_cstr(body));
    T_CHECK(ts_more(&c, 30000));
    first = hfsb_clock_ms() - begin;
    T_CHECK(first > seconds * 400);
    T_CHECK(ts_read(&c, &r, false));
    T_CHECK(r.chunked && r.body.ptr[0] == ' '); /* not with the result */
    TS_FAIL(&r, error);
    printed = ts_text(&r, "output").len > 0;
    T_CHECK(!printed ||
            hfsb_str_equal(ts_text(&r, "output"), HFSB_LIT("part\n")));
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
    return printed;
}

static void a_timeout_of_two_seconds_beats_after_one(void) {
    T_CHECK(beats_after_half(2) || beats_after_half(6) ||
            beats_after_half(18));
}

static void a_late_reply_to_http_1_0_ends_with_the_connection(void) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    ts_server         s;
    ts_conn           c;
    ts_reply          r = HFSB_INIT;
    static const char body[] = "{\"command\":\"until [ -e beaten ]; do sleep "
                               "0.05; done; echo slow\"}";
    char              text[400];
    box.beat_ms = 100;
    ts_start(&s, NULL, &box);
    c = ts_connect(&s);
    snprintf(text, sizeof text,
             "POST /api/bash HTTP/1.0\r\nHost: localhost\r\n"
             "X-Sandbox-Authorization: bearer " TS_TOKEN "\r\n"
             "Content-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             sizeof body - 1, body);
    T_CHECK(ts_send(&c, hfsb_cstr(text)));
    T_CHECK(ts_more(&c, 20000)); /* a beat, and the head before it */
    tt_put("beaten", HFSB_LIT(""));
    T_CHECK(ts_read(&c, &r, false));
    TS_OK(&r, "slow\n");
    T_CHECK(!r.chunked && !ts_field(&r, "Content-Length").ptr);
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- a client that goes away ---- */

/* Starts a command that lives for a while, and leaves: by a reset or by an
   end. True when the command is ended by that within ms. */
static bool dies_with_its_client(const ts_server *s, const char *more,
                                 bool reset, long long ms) {
    char     body[300];
    ts_conn  c = ts_connect(s);
    ts_reply r = HFSB_INIT;
    bool     dies;
    unlink("alive");
    unlink("over");
    unlink("go");
    snprintf(body, sizeof body,
             "{\"command\":\"echo x >> alive; until [ -e go ]; do sleep 0.05; "
             "done; echo x >> over\"%s}",
             more);
    ts_ask(&c, "POST", "/api/bash", TS_JSON, hfsb_cstr(body));
    T_CHECK(ts_lines("alive", 1));
    if (reset) ts_reset(&c);
    else ts_hang_up(&c);
    for (dies = false, ms += hfsb_clock_ms(); !dies && hfsb_clock_ms() < ms;) {
        tt_sleep_ms(20);
        ts_get(s, &r, "/api/health");
        dies = ts_int(&r, "running") == 0;
    }
    tt_put("go", HFSB_LIT(""));
    T_CHECK(ts_commands(s, 0, 0));
    T_CHECK(tt_lines_in("over") == (dies ? -1 : 1));
    ts_drop(&r);
    return dies;
}

static void command_outlives_its_client_unless_asked_to_end(void) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    ts_server         s;
    ts_start(&s, NULL, NULL);
    T_CHECK(!dies_with_its_client(&s, "", true, 1000));
    T_CHECK(dies_with_its_client(&s, ",\"on_disconnect\":\"kill\"", true,
                                 30000));
    T_CHECK(dies_with_its_client(&s, ",\"on_disconnect\":\"kill\"", false,
                                 30000));
    T_CHECK(dies_with_its_client(&s, ",\"stream\":true", true, 30000));
    T_CHECK(dies_with_its_client(&s, ",\"stream\":true", false, 30000));
    T_CHECK(!dies_with_its_client(
        &s, ",\"stream\":true,\"on_disconnect\":\"continue\"", true, 1000));
    ts_end(&s, false);
    box.kill_on_disconnect = true;
    ts_start(&s, NULL, &box);
    T_CHECK(dies_with_its_client(&s, "", false, 30000));
    T_CHECK(!dies_with_its_client(&s, ",\"on_disconnect\":\"continue\"", true,
                                  1000));
    ts_end(&s, false);
}

static void a_client_that_has_sent_all_may_end_its_side(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/bash", TS_JSON,
           HFSB_LIT("{\"command\":\"sleep 0.5; echo half\","
                    "\"on_disconnect\":\"kill\"}"));
    T_CHECK(shutdown(c.fd, SHUT_WR) == 0);
    T_CHECK(ts_read(&c, &r, false));
    TS_OK(&r, "half\n");
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

/* One of two that wait for the same command leaves: it is the other's too. */
static void a_repeat_keeps_the_command_alive(void) {
    ts_server s;
    ts_conn   c[2];
    ts_reply  r = HFSB_INIT;
    size_t    i;
    ts_start(&s, NULL, NULL);
    for (i = 0; i < 2; i++) {
        c[i] = ts_connect(&s);
        ts_ask(&c[i], "POST", "/api/bash", KEY("two"),
               HFSB_LIT("{\"command\":\"sleep 1.5; echo both\","
                        "\"on_disconnect\":\"kill\"}"));
        tt_sleep_ms(400);
        ts_get(&s, &r, "/api/health"); /* it has been read before this */
    }
    ts_reset(&c[0]);
    T_CHECK(ts_read(&c[1], &r, false));
    TS_OK(&r, "both\n");
    ts_hang_up(&c[1]);
    ts_call(&s, &r, "POST", "/api/bash", KEY("two"),
            HFSB_LIT("{\"command\":\"sleep 1.5; echo both\"}"));
    TS_OK(&r, "both\n"); /* how it is answered is no part of what it is */
    ts_call(&s, &r, "POST", "/api/kill", "", no_body);
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- without memory ---- */

static void a_call(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_server_opts  o = HFSB_INIT;
    hfsb_tools_opts   tools = HFSB_INIT;
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_server      *server = NULL;
    unsigned          port = 0;
    (void)heap;
    o.alloc = tools.alloc = alloc;
    o.no_auth = o.no_threads = true;
    box.tools = &tools;
    if (hfsb_server_open(&o, &server, NULL) != HFSB_OK) return;
    if (hfsb_server_add_sandbox(server, &box, NULL) == HFSB_OK &&
        hfsb_server_listen(server, "127.0.0.1", 0, &port, NULL) == HFSB_OK) {
        static const char *const asks[] = {
            "POST /api/write HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            "application/json\r\nContent-Length: 28\r\n\r\n"
            "{\"path\":\"n\",\"content\":\"mem\"}\n",
            "POST /api/read HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            "application/json\r\nContent-Length: 10\r\n\r\n{\"path\":3}",
            "GET /api/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "POST /api/bash HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            "application/json\r\nContent-Length: 33\r\n\r\n"
            "{\"command\":\":\",\"stream\":\"true\"}  ",
        };
        size_t i;
        for (i = 0; i < TT_COUNT(asks); i++) {
            ts_server at = HFSB_INIT;
            ts_conn   c;
            long long end = hfsb_clock_ms() + 30000;
            at.port = port;
            c = ts_connect(&at);
            T_CHECK(ts_send(&c, hfsb_cstr(asks[i])));
            while (!c.ended && hfsb_clock_ms() < end) {
                (void)hfsb_server_poll(server, 5);
                (void)ts_more(&c, 0);
                if (c.in.len > 4 && (strstr(c.in.ptr, "}") ||
                                     strstr(c.in.ptr, "event: result")))
                    if (i != 3 || strstr(c.in.ptr, "0\r\n\r\n") ||
                        strstr(c.in.ptr, "\"detail\""))
                        break;
            }
            T_CHECK(hfsb_clock_ms() < end); /* answered, or ended */
            T_CHECK(!c.in.len || !strncmp(c.in.ptr, "HTTP/1.1 ", 9));
            ts_hang_up(&c);
        }
    }
    hfsb_server_close(server);
}

static void each_allocation_may_fail(void) {
    t_each_allocation_fails(a_call);
}

int main(void) {
    tt_begin();
    TT_RUN(a_repeat_joins_the_command_that_runs);
    TT_RUN(a_repeat_after_a_reset_runs_once);
    TT_RUN(a_call_for_another_instance_is_not_run);
    TT_RUN(writes_and_edits_are_made_once);
    TT_RUN(a_repeat_joins_a_write_under_way);
    TT_RUN(a_long_command_beats);
    TT_RUN(a_timeout_of_two_seconds_beats_after_one);
    TT_RUN(a_late_reply_to_http_1_0_ends_with_the_connection);
    TT_RUN(command_outlives_its_client_unless_asked_to_end);
    TT_RUN(a_client_that_has_sent_all_may_end_its_side);
    TT_RUN(a_repeat_keeps_the_command_alive);
    TT_RUN(each_allocation_may_fail);
    return TT_END();
}
