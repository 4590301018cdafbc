/* test_api_init.c - POST /init: a server that learns its token late. */
#include "../support/t_server.h"
#include "../support/t_file.h"

static ts_server srv;

static void start_with(bool late, hfsb_str token) {
    hfsb_tools_opts          tools = HFSB_INIT;
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_server_opts         o = HFSB_INIT;
    hfsb_err                 err = HFSB_INIT;
    memset(&srv, 0, sizeof srv);
    (void)mkdir("box", 0755);
    (void)mkdir("box/sub", 0755);
    t_put("box/name", "top");
    t_put("box/sub/name", "below");
    tools.root = HFSB_LIT("box");
    o.alloc = tools.alloc = tt_alloc();
    o.token = token;
    o.late_token = late;
    box.tools = &tools;
    if (hfsb_server_open(&o, &srv.server, &err) != HFSB_OK ||
        hfsb_server_listen(srv.server, NULL, 0, &srv.port, &err) != HFSB_OK ||
        hfsb_server_add_sandbox(srv.server, &box, &err) != HFSB_OK)
        abort();
    ts_run(&srv);
}

static void start(void) {
    start_with(true, HFSB_LIT(""));
}

static void stop(void) {
    ts_end(&srv, false);
    T_CHECK(tt_memory.heap.live == 0);
    t_remove_tree("box");
}

/* POST without a token, or with that one in its head. */
static void post(ts_reply *r, const char *token, const char *target,
                 const char *body) {
    ts_conn c = ts_connect(&srv);
    char    text[1200];
    snprintf(text, sizeof text,
             "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
             "application/json\r\nContent-Length: %zu\r\n%s%s%s\r\n%s",
             target, strlen(body), token ? "Authorization: Bearer " : "",
             token ? token : "", token ? "\r\n" : "", body);
    ts_send(&c, hfsb_cstr(text));
    T_CHECK(ts_read(&c, r, false));
    ts_hang_up(&c);
}

static void the_first_caller_wins(void) {
    ts_reply r = HFSB_INIT;
    start();
    post(&r, NULL, "/api/bash", "{\"command\":\"echo hi\"}");
    T_CHECK(r.status == 503);
    post(&r, "", "/api/bash", "{\"command\":\"echo hi\"}");
    T_CHECK(r.status == 503);
    post(&r, NULL, "/init", "{\"token\":\"first\"}");
    T_CHECK(r.status == 200);
    T_STR(hfsb_buf_str(&r.body), "{\"status\":\"ok\"}");
    post(&r, NULL, "/init", "{\"token\":\"second\"}");
    T_CHECK(r.status == 401);
    post(&r, "second", "/init", "{\"token\":\"second\"}");
    T_CHECK(r.status == 401);
    post(&r, "second", "/api/bash", "{\"command\":\"echo hi\"}");
    T_CHECK(r.status == 401);
    post(&r, "first", "/api/bash", "{\"command\":\"echo hi\"}");
    T_CHECK(r.status == 200 && ts_contains(&r, "hi"));
    /* the reply was lost: the first caller asks again */
    post(&r, NULL, "/init", "{\"token\":\"first\"}");
    T_CHECK(r.status == 200);
    /* who has the token may change it */
    post(&r, "first", "/init", "{\"token\":\"third\"}");
    T_CHECK(r.status == 200);
    post(&r, "first", "/api/bash", "{\"command\":\"echo hi\"}");
    T_CHECK(r.status == 401);
    post(&r, "third", "/api/bash", "{\"command\":\"echo hi\"}");
    T_CHECK(r.status == 200);
    ts_drop(&r);
    stop();
}

static void variables_and_the_folder_go_to_the_tools(void) {
    ts_reply r = HFSB_INIT;
    start();
    post(&r, NULL, "/init",
         "{\"token\":\"t\",\"env\":{\"A\":\"1 2\",\"B\":\"b\",\"HOME\":null},"
         "\"work_dir\":\"sub\"}");
    T_CHECK(r.status == 200);
    post(&r, "t", "/api/bash",
         "{\"command\":\"echo $A/$B/${HOME-unset}; cat name\"}");
    T_CHECK(r.status == 200 && ts_contains(&r, "1 2/b/unset\\nbelow"));
    post(&r, "t", "/api/bash",
         "{\"command\":\"echo $A/$B\",\"env\":{\"B\":\"own\"}}");
    T_CHECK(ts_contains(&r, "1 2/own"));
    post(&r, "t", "/api/read", "{\"path\":\"name\"}");
    T_CHECK(ts_contains(&r, "below"));
    post(&r, "t", "/init", "{\"env\":{\"C\":\"c\"},\"work_dir\":\".\"}");
    T_CHECK(r.status == 200);
    post(&r, "t", "/api/bash", "{\"command\":\"echo [$A$B$C]; cat name\"}");
    T_CHECK(ts_contains(&r, "[c]\\ntop"));
    ts_drop(&r);
    stop();
}

static void what_is_wrong_sets_nothing(void) {
    static const char *const bad[] = {
        "",
        "[]",
        "{",
        "{}",
        "{\"env\":{}}",
        "{\"token\":\"\"}",
        "{\"token\":1}",
        "{\"token\":\"a b\"}",
        "{\"token\":\"x\\u00e9\"}",
        "{\"token\":\"x\",\"other\":1}",
        "{\"token\":\"x\",\"env\":[]}",
        "{\"token\":\"x\",\"env\":{\"A=B\":\"1\"}}",
        "{\"token\":\"x\",\"env\":{\"A\":\"\\u0000\"}}",
        "{\"token\":\"x\",\"work_dir\":\"none\"}",
        "{\"token\":\"x\",\"work_dir\":\"..\"}",
        "{\"token\":\"x\",\"work_dir\":\"/\"}",
        "{\"token\":\"x\",\"work_dir\":\"a\\u0000\"}"};
    ts_reply r = HFSB_INIT;
    size_t   i;
    start();
    for (i = 0; i < TT_COUNT(bad); i++) {
        post(&r, NULL, "/init", bad[i]);
        if (r.status != 400) printf("%s: %d\n", bad[i], r.status);
        T_CHECK(r.status == 400);
        post(&r, "x", "/api/bash", "{\"command\":\"echo hi\"}");
        T_CHECK(r.status == 503);
    }
    post(&r, NULL, "/init", "{\"token\":\"x\"}");
    T_CHECK(r.status == 200);
    ts_drop(&r);
    stop();
}

static void only_a_server_that_was_told_so_has_it(void) {
    ts_reply r = HFSB_INIT;
    start_with(false, HFSB_LIT(""));
    post(&r, NULL, "/init", "{\"token\":\"x\"}");
    T_CHECK(r.status == 404);
    stop();
    start_with(true, HFSB_LIT("given"));
    post(&r, NULL, "/init", "{\"token\":\"x\"}");
    T_CHECK(r.status == 401);
    post(&r, "given", "/init", "{\"env\":{\"A\":\"1\"}}");
    T_CHECK(r.status == 200);
    ts_drop(&r);
    stop();
}

static void each_allocation_fails_in_turn(void) {
    ts_reply r = HFSB_INIT;
    size_t   k, total = 0;
    start();
    post(&r, NULL, "/init", "{\"token\":\"t\"}");
    for (k = 0; k == 0 || k <= total; k++) {
        ts_conn c = HFSB_INIT;
        tt_faults(k, false);
        c = ts_connect(&srv);
        ts_send(&c, HFSB_LIT("POST /init HTTP/1.1\r\nHost: localhost\r\n"
                             "Authorization: Bearer t\r\nContent-Length: 46"
                             "\r\n\r\n{\"token\":\"t\",\"env\":{\"A\":\"1\"},"
                             "\"work_dir\":\"sub\"}"));
        if (ts_read(&c, &r, false))
            T_CHECK(r.status == 200 || r.status == 503);
        if (k == 0) total = tt_allocations() + 2;
        tt_faults(0, false);
        ts_hang_up(&c);
    }
    T_CHECK(total > 5);
    post(&r, "t", "/api/bash", "{\"command\":\"echo $A; cat name\"}");
    T_CHECK(r.status == 200 && ts_contains(&r, "1\\nbelow"));
    ts_drop(&r);
    stop();
}

int main(void) {
    tt_begin();
    TT_RUN(the_first_caller_wins);
    TT_RUN(variables_and_the_folder_go_to_the_tools);
    TT_RUN(what_is_wrong_sets_nothing);
    TT_RUN(only_a_server_that_was_told_so_has_it);
    TT_RUN(each_allocation_fails_in_turn);
    return TT_END();
}
