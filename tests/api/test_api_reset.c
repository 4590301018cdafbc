/* test_api_reset.c - checkpoints in a server: the scans run in its threads,
   commands wait for them, and POST /reset restores the first one. */
#include "../support/t_server.h"

static void start(ts_server *s, hfsb_server_opts *opts) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    (void)mkdir("root", 0755);
    tools.root = HFSB_LIT("root");
    tools.checkpoints.dir = "store";
    tools.no_checks = true;
    box.tools = &tools;
    ts_start(s, opts, &box);
}

static void finish(ts_server *s) {
    ts_end(s, false);
    tt_remove_all("root", NULL);
    tt_remove_all("store", NULL);
}

static void reset_restores_the_first_state_and_ends_commands(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    start(&s, NULL);
    tt_put("root/kept", HFSB_LIT("first\n"));
    ts_post(&s, &r, "/api/bash",
            "{\"command\":\"echo 2 > kept; echo new > new\"}");
    TS_OK(&r, "");
    ts_post(&s, &r, "/api/bash",
            "{\"command\":\"while :; do echo 3 > kept; sleep 0.01; done\","
            "\"background\":true}");
    TS_OK(&r, NULL);
    ts_post(&s, &r, "/reset", "");
    TS_OK(&r, NULL);
    TT_FILE("root/kept", "first\n");
    T_CHECK(access("root/new", F_OK) != 0);
    (void)poll(NULL, 0, 50); /* the command would have written again */
    TT_FILE("root/kept", "first\n");
    ts_get(&s, &r, "/api/health");
    T_CHECK(hfsb_json_int(hfsb_json_get(r.json.root, "running"), 9) == 0);
    ts_post(&s, &r, "/api/write", "{\"path\":\"kept\",\"content\":\"4\"}");
    TS_OK(&r, NULL);
    ts_post(&s, &r, "/reset", ""); /* again */
    TS_OK(&r, NULL);
    TT_FILE("root/kept", "first\n");
    ts_drop(&r);
    finish(&s);
}

static void reset_needs_checkpoints(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    ts_post(&s, &r, "/reset", "");
    T_CHECK(r.status == 409);
    ts_drop(&r);
    ts_end(&s, false);
}

static void reset_needs_the_token(void) {
    ts_server s;
    ts_conn   c;
    start(&s, NULL);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT("POST /reset HTTP/1.1\r\nHost: localhost\r\n"
                                 "Content-Length: 0\r\n\r\n")));
    while (c.in.len < 12 && ts_more(&c, 5000)) continue;
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&c.in), HFSB_LIT("HTTP/1.1 401")));
    ts_hang_up(&c);
    finish(&s);
}

/* Its pid is known when the reply comes, though a scan came first. */
static void a_background_command_is_started_when_its_reply_comes(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    int       i;
    start(&s, NULL);
    for (i = 0; i < 5; i++) {
        ts_post(&s, &r, "/api/bash",
                "{\"command\":\"sleep 60\",\"background\":true}");
        TS_OK(&r, NULL);
        T_CHECK(hfsb_json_int(hfsb_json_get(r.json.root, "pid"), 0) > 0);
        T_CHECK(ts_flag(&r, "running"));
        ts_post(&s, &r, "/api/bash",
                "{\"command\":\"sleep 60\",\"background\":true,"
                "\"work_dir\":\"none\"}");
        TS_FAIL(&r, "Working directory not found: none");
        ts_post(&s, &r, "/api/kill", "{}");
        TS_OK(&r, NULL);
    }
    ts_drop(&r);
    finish(&s);
}

static void undo_takes_back_what_a_request_did(void) {
    hfsb_server_opts opts = HFSB_INIT;
    ts_server        s;
    ts_reply         r = HFSB_INIT;
    int              i;
    for (i = 0; i < 2; i++) {
        opts.no_threads = i == 1;
        start(&s, &opts);
        ts_post(&s, &r, "/api/bash", "{\"command\":\"echo 1 > f\"}");
        TS_OK(&r, "");
        ts_post(&s, &r, "/api/bash", "{\"command\":\"rm f; mkdir f\"}");
        TS_OK(&r, "");
        ts_post(&s, &r, "/api/changes", "{}");
        TS_OK(&r, NULL);
        ts_post(&s, &r, "/api/undo", "{}");
        TS_OK(&r, NULL);
        TT_FILE("root/f", "1\n");
        finish(&s);
    }
    ts_drop(&r);
}

/* A server that stops while commands wait for their checkpoints. */
static void a_server_stops_during_scans(void) {
    ts_server s;
    int       i, k;
    for (i = 0; i < 10; i++) {
        ts_conn c[4];
        start(&s, NULL);
        for (k = 0; k < 4; k++) {
            static const char body[] = "{\"command\":\"sleep 60\"}";
            char              head[300];
            c[k] = ts_connect(&s);
            snprintf(head, sizeof head,
                     "POST /api/bash HTTP/1.1\r\nHost: localhost\r\n"
                     "X-Sandbox-Authorization: Bearer " TS_TOKEN "\r\n"
                     "Content-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     strlen(body), body);
            T_CHECK(ts_send(&c[k], hfsb_cstr(head)));
        }
        (void)poll(NULL, 0, i);
        for (k = 0; k < 4; k++) ts_hang_up(&c[k]);
        ts_end(&s, true);
        tt_remove_all("root", NULL);
        tt_remove_all("store", NULL);
    }
}

int main(void) {
    tt_begin();
    TT_RUN(reset_restores_the_first_state_and_ends_commands);
    TT_RUN(reset_needs_checkpoints);
    TT_RUN(reset_needs_the_token);
    TT_RUN(a_background_command_is_started_when_its_reply_comes);
    TT_RUN(undo_takes_back_what_a_request_did);
    TT_RUN(a_server_stops_during_scans);
    return TT_END();
}
