/* test_api_init.c - POST /init: a server that learns its token late. */
#include "../support/t_server.h"
#include "../support/t_file.h"

static ts_server   srv;
static const char *listen_on; /* NULL: loopback */
static hfsb_alloc  memory;    /* of the next server, unless it is zero */

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
    o.alloc = tools.alloc = memory.fn ? memory : tt_alloc();
    o.token = token;
    o.late_token = late;
    box.tools = &tools;
    if (hfsb_server_open(&o, &srv.server, &err) != HFSB_OK ||
        hfsb_server_listen(srv.server, listen_on, 0, &srv.port, &err) !=
            HFSB_OK ||
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

/* POST /init with these fields. */
static int init_with(const char *fields) {
    static const char body[] = "{\"token\":\"page\"}";
    ts_reply          r = HFSB_INIT;
    ts_conn           c = ts_connect(&srv);
    char              text[600];
    int               status;
    snprintf(text, sizeof text,
             "POST /init HTTP/1.1\r\n%s%sContent-Length: %zu\r\n\r\n%s",
             strstr(fields, "Host:") ? "" : "Host: localhost\r\n", fields,
             strlen(body), body);
    ts_send(&c, hfsb_cstr(text));
    T_CHECK(ts_read(&c, &r, false));
    status = r.status;
    ts_hang_up(&c);
    ts_drop(&r);
    return status;
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

/* A warm server that listens for everyone cannot know its names, so any page
   that reaches it would pass the checks of Host and Origin. */
static void a_web_page_cannot_be_the_first_caller(void) {
    static const struct {
        const char *fields;
        int         status;
    } list[] = {
        {"Origin: http://evil.example\r\n" TS_JSON, 403},
        {"Origin: null\r\n" TS_JSON, 403},
        {"Host: evil.example\r\nOrigin: http://evil.example\r\n" TS_JSON, 403},
        {"Origin: http://localhost\r\n" TS_JSON, 403},
        {"Sec-Fetch-Site: cross-site\r\n" TS_JSON, 403},
        {"", 415},
        {"Content-Type: text/plain\r\n", 415},
        {"Content-Type: application/x-www-form-urlencoded\r\n", 415},
        {"Content-Type: application/json, text/plain\r\n", 415},
        {"Host: any.example\r\n" TS_JSON, 200}};
    ts_reply r = HFSB_INIT;
    size_t   i;
    listen_on = "0.0.0.0";
    start();
    for (i = 0; i < TT_COUNT(list); i++) {
        int is = init_with(list[i].fields);
        if (is != list[i].status) printf("%s: %d\n", list[i].fields, is);
        T_CHECK(is == list[i].status);
        if (is == 200) break;
        post(&r, "page", "/api/bash", "{\"command\":\"echo hi\"}");
        T_CHECK(r.status == 503);
    }
    listen_on = NULL;
    ts_drop(&r);
    stop();
}

/* Hosts may give memory out again without clearing it. */
static bool  found; /* the token, in memory that was given back */
static char *seen_at;

static void *watch_memory(void *user, void *ptr, size_t old_size,
                          size_t new_size) {
    hfsb_alloc below = tt_alloc();
    void      *fresh = NULL;
    (void)user;
    if (new_size) {
        fresh = below.fn(below.user, NULL, 0, new_size);
        if (!fresh) return NULL;
        memset(fresh, 0, new_size);
        if (ptr)
            memcpy(fresh, ptr, old_size < new_size ? old_size : new_size);
    }
    if (ptr && hfsb_str_find(hfsb_str_make((char *)ptr, old_size),
                             hfsb_cstr(seen_at)) != HFSB_NPOS)
        found = true;
    if (ptr) (void)below.fn(below.user, ptr, old_size, 0);
    return fresh;
}

static void the_token_does_not_stay_in_memory(void) {
    static char token[] = "a-token-that-is-in-no-other-place";
    ts_reply    r = HFSB_INIT;
    ts_conn     c;
    size_t      i;
    char        text[400], body[120];
    seen_at = token;
    found = false;
    memory.fn = watch_memory;
    start();
    (void)snprintf(body, sizeof body,
                   "{\"env\":{\"A\":\"%40s\"},\"token\":\"%s\"}", "", token);
    for (i = 0; i < 2; i++) { /* a type that is refused, then in pieces */
        (void)snprintf(text, sizeof text,
                       "POST /init HTTP/1.1\r\nHost: localhost\r\nContent-Type:"
                       " %s\r\nContent-Length: %zu\r\n\r\n",
                       i ? "application/json" : "text/plain", strlen(body));
        c = ts_connect(&srv);
        T_CHECK(ts_send(&c, hfsb_cstr(text)));
        T_CHECK(ts_send(&c, hfsb_str_slice(hfsb_cstr(body), 0, 60)));
        if (i) tt_sleep_ms(50);
        T_CHECK(ts_send(&c, hfsb_str_slice(hfsb_cstr(body), 60, 120)));
        T_CHECK(ts_read(&c, &r, false) && r.status == (i ? 200 : 415));
        ts_hang_up(&c);
    }
    ts_drop(&r);
    memory.fn = NULL;
    stop();
    T_CHECK(!found);
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
                             "Authorization: Bearer t\r\n" TS_JSON
                             "Content-Length: 46\r\n\r\n{\"token\":\"t\",\"env\":{\"A\":\"1\"},"
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
    TT_RUN(a_web_page_cannot_be_the_first_caller);
    TT_RUN(the_token_does_not_stay_in_memory);
    TT_RUN(variables_and_the_folder_go_to_the_tools);
    TT_RUN(what_is_wrong_sets_nothing);
    TT_RUN(only_a_server_that_was_told_so_has_it);
    TT_RUN(each_allocation_fails_in_turn);
    return TT_END();
}
