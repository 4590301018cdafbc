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

static void reset_needs_checkpoints_or_a_root(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    ts_post(&s, &r, "/reset", "");
    T_CHECK(r.status == 409);
    T_CHECK(ts_contains(&r, "--checkpoints on"));
    ts_post(&s, &r, "/reset", "{\"empty\":false}");
    T_CHECK(r.status == 409);
    ts_post(&s, &r, "/reset", "{\"empty\":true}");
    T_CHECK(r.status == 409);
    T_CHECK(ts_contains(&r, "--root DIR"));
    ts_post(&s, &r, "/reset", "{\"empty\":1}");
    T_CHECK(r.status == 422);
    ts_post(&s, &r, "/reset", "{\"all\":true}");
    T_CHECK(r.status == 422);
    ts_post(&s, &r, "/reset", "[");
    T_CHECK(r.status == 422);
    ts_call(&s, &r, "POST", "/reset", "Content-Type: text/plain\r\n",
            HFSB_LIT("{\"empty\":true}"));
    T_CHECK(r.status == 415); /* a form of another site could send that */
    ts_call(&s, &r, "POST", "/reset", "", HFSB_LIT("{\"empty\":true}"));
    T_CHECK(r.status == 415);
    ts_drop(&r);
    ts_end(&s, false);
}

/* A tree with what removing could stumble over, beside a file that is not in
   the root. */
static void fill_root(void) {
    tt_put("beside", HFSB_LIT("stays"));
    (void)mkdir("root/a", 0755);
    (void)mkdir("root/a/closed", 0755);
    tt_put("root/a/closed/file", HFSB_LIT("x"));
    (void)chmod("root/a/closed", 0);
    tt_put("root/.hidden", HFSB_LIT("x"));
    T_CHECK(symlink("../beside", "root/link") == 0);
    T_CHECK(symlink("..", "root/up") == 0);
}

static bool root_is_empty(void) {
    size_t         n = 0;
    struct dirent *entry;
    DIR           *dir = opendir("root");
    while (dir && (entry = readdir(dir)) != NULL)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..");
    if (dir) (void)closedir(dir);
    return dir && n == 0;
}

static void reset_empties_the_root(void) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    ts_server                s;
    ts_reply                 r = HFSB_INIT;
    (void)mkdir("root", 0755);
    tools.root = HFSB_LIT("root");
    box.tools = &tools;
    ts_start(&s, NULL, &box);
    fill_root();
    ts_post(&s, &r, "/api/bash", /* a daemon that keeps writing */
            "{\"command\":\"echo secret; (setsid sh -c 'while :; do echo > "
            "written; sleep 0.01; done' >/dev/null 2>&1 &)\"}");
    TS_OK(&r, NULL);
    ts_post(&s, &r, "/api/bash",
            "{\"command\":\"sleep 60\",\"background\":true}");
    TS_OK(&r, NULL);
    ts_post(&s, &r, "/reset", "{\"empty\":true}");
    TS_OK(&r, NULL);
    T_CHECK(root_is_empty());
    (void)poll(NULL, 0, 50); /* the daemon would have written again */
    T_CHECK(root_is_empty());
    TT_FILE("beside", "stays");
    ts_get(&s, &r, "/api/jobs"); /* with the output of the user before */
    T_CHECK(r.status == 200 && !ts_contains(&r, "secret"));
    T_CHECK(!ts_contains(&r, "sleep 60"));
    ts_post(&s, &r, "/api/write", "{\"path\":\"new\",\"content\":\"4\"}");
    TS_OK(&r, NULL);
    ts_post(&s, &r, "/api/bash", "{\"command\":\"cat new\"}");
    TS_OK(&r, "4");
    ts_drop(&r);
    ts_end(&s, false);
    tt_remove_all("root", NULL);
    tt_remove_all("beside", NULL);
}

/* A repeat of a call of the user before runs nothing. */
static void reset_keeps_what_must_run_once(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    start(&s, NULL);
    ts_post(&s, &r, "/api/bash",
            "{\"command\":\"echo x >> log; echo out\",\"id\":\"mine\"}");
    TS_OK(&r, "out\n");
    ts_post(&s, &r, "/reset", "{\"empty\":true}");
    TS_OK(&r, NULL);
    ts_post(&s, &r, "/api/bash",
            "{\"command\":\"echo x >> log; echo out\",\"id\":\"mine\"}");
    T_CHECK(access("root/log", F_OK) != 0);
    T_CHECK(!ts_contains(&r, "out\\n"));
    ts_drop(&r);
    finish(&s);
}

static void reset_needs_the_token(void) {
    ts_server s;
    ts_conn   c;
    start(&s, NULL);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT("POST /reset HTTP/1.1\r\nHost: localhost\r\n"
                                 "Content-Length: 0\r\n\r\n")));
    while (c.in.len < 12 && ts_more(&c, 20000)) continue;
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&c.in), HFSB_LIT("HTTP/1.1 401")));
    ts_hang_up(&c);
    finish(&s);
}

/* Starts a command that ends only after its grace. */
static void start_stubborn(ts_server *s, ts_reply *r) {
    long long until = hfsb_clock_ms() + 20000;
    ts_post(s, r, "/api/bash",
            "{\"command\":\"trap '' TERM; touch up; while :; do sleep 0.01; "
            "done\",\"background\":true}");
    TS_OK(r, NULL);
    while (access("root/up", F_OK) != 0 && hfsb_clock_ms() < until)
        tt_sleep_ms(5);
}

/* The next user must not find files of the last one. */
static void reset_goes_on_without_its_client(void) {
    long long until = hfsb_clock_ms() + 20000;
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_conn   c;
    start(&s, NULL);
    tt_put("root/file", HFSB_LIT("secret"));
    start_stubborn(&s, &r);
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/reset", TS_JSON, HFSB_LIT("{\"empty\":true}"));
    tt_sleep_ms(50);
    ts_reset(&c);
    while (!root_is_empty() && hfsb_clock_ms() < until) tt_sleep_ms(20);
    T_CHECK(root_is_empty());
    ts_get(&s, &r, "/api/health");
    T_CHECK(hfsb_json_int(hfsb_json_get(r.json.root, "running"), 9) == 0);
    ts_drop(&r);
    finish(&s);
}

/* A server that ends gives it up, and leaves nothing. */
static void a_server_stops_during_a_reset(void) {
    int i;
    for (i = 0; i < 2; i++) {
        ts_server s;
        ts_reply  r = HFSB_INIT;
        ts_conn   c;
        start(&s, NULL);
        ts_post(&s, &r, "/api/bash",
                "{\"command\":\"trap '' TERM; while :; do sleep 0.01; done\","
                "\"background\":true}");
        TS_OK(&r, NULL);
        c = ts_connect(&s);
        ts_ask(&c, "POST", "/reset", TS_JSON, HFSB_LIT("{\"empty\":true}"));
        tt_sleep_ms(30);
        if (i) ts_reset(&c);
        ts_end(&s, true);
        ts_hang_up(&c);
        ts_drop(&r);
        tt_remove_all("root", NULL);
        tt_remove_all("store", NULL);
    }
    T_CHECK(tt_memory.heap.live == 0);
}

/* What the last user leaves before a reset, or while it ends commands. */
static void reset_forgets_the_plan_and_addresses(void) {
    static const char plan[] =
        "{\"todos\":[{\"id\":\"1\",\"content\":\"secret\",\"status\":"
        "\"pending\"}]}";
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_conn   c;
    char      open[80];
    bool      meanwhile;
    start(&s, NULL);
    ts_post(&s, &r, "/api/plan_tool", plan);
    TS_OK(&r, NULL);
    start_stubborn(&s, &r);
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/reset", TS_JSON, HFSB_LIT("{\"empty\":true}"));
    do ts_get(&s, &r, "/api/plan"); /* until it has begun */
    while (!ts_contains(&r, "[]"));
    ts_post(&s, &r, "/api/plan_tool", plan);
    TS_OK(&r, NULL);
    ts_post(&s, &r, "/api/open", "{\"port\":9}");
    TS_IS(&r, 200, "{\"path\":\"/open/");
    snprintf(open, sizeof open, "%.*s", (int)ts_text(&r, "path").len,
             ts_text(&r, "path").ptr);
    meanwhile = !ts_more(&c, 0); /* else this machine is too slow */
    T_CHECK(ts_read(&c, &r, false));
    TS_OK(&r, NULL);
    ts_get(&s, &r, "/api/plan");
    if (meanwhile) TS_IS(&r, 200, "[]");
    ts_get(&s, &r, open);
    if (meanwhile) TS_IS(&r, 404, NULL);
    ts_hang_up(&c);
    ts_drop(&r);
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
    TT_RUN(reset_needs_checkpoints_or_a_root);
    TT_RUN(reset_empties_the_root);
    TT_RUN(reset_keeps_what_must_run_once);
    TT_RUN(reset_needs_the_token);
    TT_RUN(reset_goes_on_without_its_client);
    TT_RUN(a_server_stops_during_a_reset);
    TT_RUN(reset_forgets_the_plan_and_addresses);
    TT_RUN(a_background_command_is_started_when_its_reply_comes);
    TT_RUN(undo_takes_back_what_a_request_did);
    TT_RUN(a_server_stops_during_scans);
    return TT_END();
}
