/* test_sandbox_call.c - calls to a sandbox: what is sent, what comes of each
   reply; redirects, cancels. */
#include "../support/t_calls.h"

/* ---- requests ---- */

typedef struct request_case {
    const char *tool, *arguments, *body;
} request_case;

static const request_case requests[] = {
    {"bash", "{\"command\":\"echo hi\"}",
     "{\"command\":\"echo hi\",\"work_dir\":\"/app\",\"timeout\":240}"},
    {"bash", "{\"timeout\":\"9\",\"env\":{\"A\":1},\"command\":\"c\"}",
     "{\"command\":\"c\",\"work_dir\":\"/app\",\"timeout\":\"9\",\"env\":{"
     "\"A\":1}}"},
    {"bash",
     "{\"command\":\"c\",\"timeout\":0,\"work_dir\":\"\",\"stream\":true}",
     "{\"command\":\"c\",\"work_dir\":\"/app\",\"timeout\":240}"},
    {"bash",
     "{\"command\":\"c\",\"timeout\":null,\"work_dir\":\"/x\",\"id\":\"7\"}",
     "{\"command\":\"c\",\"work_dir\":\"/x\",\"timeout\":240,\"id\":\"7\"}"},
    {"bash", "{\"command\":\"c\",\"background\":true}",
     "{\"command\":\"c\",\"work_dir\":\"/app\",\"background\":true}"},
    {"bash", "{\"command\":\"c\",\"background\":true,\"timeout\":5}",
     "{\"command\":\"c\",\"work_dir\":\"/app\",\"timeout\":5,\"background\":"
     "true}"},
    {"bash", "{\"command\":\"c\",\"timeout\":5000}",
     "{\"command\":\"c\",\"work_dir\":\"/app\",\"timeout\":5000}"},
    {"bash", "{\"timeout\":0.25}", "{\"work_dir\":\"/app\",\"timeout\":0.25}"},
    {"read", "{\"path\":\"/app/train.py\"}",
     "{\"path\":\"/app/train.py\",\"offset\":null,\"limit\":2000}"},
    {"read", "{\"offset\":5,\"path\":\"p\"}",
     "{\"path\":\"p\",\"offset\":5,\"limit\":null}"},
    {"read", "{\"path\":\"p\",\"limit\":null}",
     "{\"path\":\"p\",\"offset\":null,\"limit\":null}"},
    {"read", "{\"path\":\"p\",\"offset\":2,\"limit\":3}",
     "{\"path\":\"p\",\"offset\":2,\"limit\":3}"},
    {"exists", "{\"path\":\"/app/new.py\"}", "{\"path\":\"/app/new.py\"}"},
    {"write", "{\"content\":\"print('h\303\251')\\n\",\"path\":\"new.py\"}",
     "{\"path\":\"new.py\",\"content\":\"print('h\303\251')\\n\"}"},
    {"edit", "{\"path\":\"t\",\"old_str\":\"a\",\"new_str\":\"b\"}",
     "{\"path\":\"t\",\"old_str\":\"a\",\"new_str\":\"b\",\"replace_all\":"
     "false,\"mode\":\"replace\"}"},
    {"edit",
     "{\"line\":3,\"mode\":null,\"path\":\"t\",\"new_str\":\"b\",\"old_str\":"
     "\"a\",\"replace_all\":true}",
     "{\"path\":\"t\",\"old_str\":\"a\",\"new_str\":\"b\",\"replace_all\":"
     "true,\"mode\":\"replace\",\"line\":3}"},
    {"multi_edit", "{\"path\":\"t\",\"edits\":[]}",
     "{\"path\":\"t\",\"edits\":[]}"},
    {"glob", "{\"pattern\":\"*.c\"}", "{\"pattern\":\"*.c\"}"},
    {"grep", "{\"pattern\":\"a\",\"limit\":3,\"mode\":\"files\"}",
     "{\"pattern\":\"a\",\"limit\":3,\"mode\":\"files\"}"},
    {"list", NULL, "{}"},
    {"kill", NULL, "{}"},
    {"kill", "{\"id\":\"x\"}", "{\"id\":\"x\"}"}};

static void sends_the_bodies_of_the_reference_client(void) {
    hfsb_sandbox_opts o = tc_options();
    tc_all            a;
    tt_reply          r = HFSB_INIT;
    size_t            i;
    o.work_dir = HFSB_LIT("/app");
    tc_begin(&a, &o, false);
    for (i = 0; i < TT_COUNT(requests); i++) {
        tc_can(&a.proxy, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 1);
        tc_call(&r, &a.box, requests[i].tool, requests[i].arguments);
        TT_OK(&r, "");
        T_CHECK(r.st == HFSB_OK);
        if (!hfsb_str_equal(hfsb_buf_str(&a.proxy.body),
                            hfsb_cstr(requests[i].body)))
            printf("%s\n", a.proxy.body.ptr);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&a.proxy.body),
                               hfsb_cstr(requests[i].body)));
    }
    T_STR(tc_field(&a.proxy, "Content-Type"), "application/json");
    T_STR(tc_field(&a.proxy, "X-Sandbox-Authorization"), "Bearer " TS_TOKEN);
    T_CHECK(!tc_field(&a.proxy, "Idempotency-Key").ptr); /* kill has none */
    /* the Hub's token is not for any server */
    T_CHECK(!tc_field(&a.proxy, "Authorization").ptr);
    tt_drop(&r);
    tc_end(&a);
}

/* What the recordings of the real client hold. */
static void sends_the_recorded_bodies(void) {
    static const char *const targets[] = {"/api/bash",   "/api/read",
                                          "/api/exists", "/api/write",
                                          "/api/edit",   "/api/kill"};
    hfsb_sandbox_opts        o = tc_options();
    hfsb_buf                 text = HFSB_INIT, want = HFSB_INIT;
    hfsb_json_doc            doc = HFSB_INIT;
    hfsb_json_iter           version, it;
    tc_all                   a;
    tt_reply                 r = HFSB_INIT;
    size_t                   i, found = 0;
    if (!t_data_file("data/hub/golden.json", &text)) return;
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&text), NULL, &doc, NULL) == HFSB_OK);
    o.work_dir = HFSB_LIT("/app");
    tc_begin(&a, &o, true);
    version = hfsb_json_begin(doc.root);
    while (hfsb_json_next(&version))
        for (it = hfsb_json_begin(version.value); hfsb_json_next(&it);) {
            hfsb_str target =
                hfsb_json_str(hfsb_json_get(it.value, "target"), HFSB_LIT(""));
            const hfsb_json_value *json = hfsb_json_get(it.value, "json");
            for (i = 0; i < TT_COUNT(targets); i++) {
                if (!hfsb_str_equal(target, hfsb_cstr(targets[i]))) continue;
                found++;
                hfsb_buf_truncate(&want, 0);
                T_CHECK(hfsb_json_write(json, NULL, &want, NULL) == HFSB_OK);
                tc_can(&a.proxy,
                       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 1);
                tc_call(&r, &a.box, targets[i] + 5, want.ptr);
                TT_OK(&r, "");
                T_CHECK(hfsb_str_equal(hfsb_buf_str(&a.proxy.body),
                                       hfsb_buf_str(&want)));
            }
        }
    T_CHECK(found >= 10);
    tt_drop(&r);
    tc_end(&a);
    hfsb_json_free(&doc);
    hfsb_buf_free(&text);
    hfsb_buf_free(&want);
}

static void the_id_of_the_options_replaces_the_argument(void) {
    static const request_case cases[] = {
        {"bash", "{\"command\":\"c\",\"timeout\":1}",
         "{\"command\":\"c\",\"timeout\":1,\"id\":\"mine\"}"},
        {"bash", "{\"id\":\"x\",\"command\":\"c\",\"timeout\":1}",
         "{\"command\":\"c\",\"timeout\":1,\"id\":\"mine\"}"},
        {"bash_input", "{\"id\":\"x\",\"text\":\"t\"}",
         "{\"text\":\"t\",\"id\":\"mine\"}"},
        {"kill", NULL, "{\"id\":\"mine\"}"},
        {"list", NULL, "{}"}}; /* it has no such parameter */
    hfsb_call_opts opts = HFSB_INIT;
    tc_all         a;
    tt_reply       r = HFSB_INIT;
    size_t         i;
    tc_begin(&a, NULL, false);
    opts.id = HFSB_LIT("mine");
    for (i = 0; i < TT_COUNT(cases); i++) {
        tc_can(&a.proxy, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 1);
        tc_do(&r, &a.box, cases[i].tool, cases[i].arguments, &opts, NULL);
        TT_OK(&r, "");
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&a.proxy.body),
                               hfsb_cstr(cases[i].body)));
    }
    tt_drop(&r);
    tc_end(&a);
}

static void no_more_than_the_longest_timeout_goes_to_a_foreign_server(void) {
    tc_all   a;
    tt_reply r = HFSB_INIT;
    tc_begin(&a, NULL, true);
    tc_can(&a.proxy, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 1);
    tc_call(&r, &a.box, "bash", "{\"command\":\"c\",\"timeout\":5000}");
    T_STR(a.proxy.body, "{\"command\":\"c\",\"timeout\":1200}");
    tt_drop(&r);
    tc_end(&a);
}

/* ---- replies ---- */

typedef struct reply_case {
    const char *reply; /* status and body */
    hfsb_status st;
    bool        success;
    const char *output, *error, *extra;
    size_t      asked;
} reply_case;

static const reply_case replies[] = {
    {"200 {}", HFSB_OK, true, "", "", "", 1},
    {"200  \n {\"output\":\"x\"}", HFSB_OK, true, "x", "", "", 1},
    {"200 {\"success\":true,\"output\":\"o\",\"error\":\"\",\"exit_code\":0,"
     "\"a\":[1]}",
     HFSB_OK, true, "o", "", "{\"exit_code\":0,\"a\":[1]}", 1},
    {"200 {\"success\":false,\"output\":\"o\",\"error\":\"Exit code 3\"}",
     HFSB_OK, false, "o", "Exit code 3", "", 1},
    {"200 {\"success\":false}", HFSB_OK, false, "", "Unknown error", "", 1},
    {"200 {\"success\":null,\"error\":null}", HFSB_OK, false, "",
     "Unknown error", "", 1},
    {"200 {\"output\":5}", HFSB_OK, true, "5", "", "", 1},
    {"200 [1]", HFSB_REMOTE, false, "",
     "Sandbox returned JSON that is no object (HTTP 200): array.", "", 1},
    {"404 {\"detail\":\"Not Found\"}", HFSB_NOT_FOUND, false, "", "HTTP 404",
     "", 1},
    {"401 {\"detail\":\"x\",\"error\":\"Invalid bearer token\"}", HFSB_AUTH,
     false, "", "Invalid bearer token", "", 1},
    {"403 []", HFSB_AUTH, false, "", "HTTP 403", "", 1},
    {"422 {\"detail\":[],\"error\":\"path is missing\"}", HFSB_ARG, false, "",
     "path is missing", "", 1},
    {"409 {\"error\":\"used\"}", HFSB_REFUSED, false, "", "used", "", 1},
    {"429 {\"error\":\"Too many\"}", HFSB_LIMIT, false, "", "Too many", "", 1},
    {"500 {\"detail\":\"x\"}", HFSB_REMOTE, false, "", "HTTP 500", "", 1},
    {"503 {\"error\":\"stopping\"}", HFSB_BUSY, false, "", "stopping", "", 1},
    {"503 ", HFSB_BUSY, false, "",
     "Sandbox returned non-JSON response (HTTP 503): (empty)", "", 3},
    {"200 <html>\n<b>", HFSB_BUSY, false, "",
     "Sandbox returned non-JSON response (HTTP 200): <html>\n<b>", "", 3},
    {"404 nope", HFSB_BUSY, false, "",
     "Sandbox returned non-JSON response (HTTP 404): nope", "", 3},
    {"401 <html>", HFSB_AUTH, false, "",
     "Sandbox returned non-JSON response (HTTP 401): <html>", "", 1},
    {"413 <html>", HFSB_REMOTE, false, "",
     "Sandbox returned non-JSON response (HTTP 413): <html>", "", 1},
    /* a server or gateway that failed may have run it */
    {"500 Internal Server Error", HFSB_REMOTE, false, "",
     "Sandbox returned non-JSON response (HTTP 500): Internal Server Error",
     "", 1},
    {"502 <html>", HFSB_REMOTE, false, "",
     "Sandbox returned non-JSON response (HTTP 502): <html>", "", 1},
    {"504 <html>", HFSB_REMOTE, false, "",
     "Sandbox returned non-JSON response (HTTP 504): <html>", "", 1}};

static void each_reply_becomes_a_result(void) {
    tc_all   a;
    tt_reply r = HFSB_INIT;
    size_t   i;
    tc_begin(&a, NULL, true);
    for (i = 0; i < TT_COUNT(replies); i++) {
        const reply_case *c = &replies[i];
        char              text[512];
        snprintf(text, sizeof text,
                 "HTTP/1.1 %.3s X\r\nContent-Length: %zu\r\n\r\n%s", c->reply,
                 strlen(c->reply) - 4, c->reply + 4);
        tc_can(&a.proxy, text, 3);
        tc_call(&r, &a.box, "bash", "{\"command\":\"c\"}");
        if (r.st != c->st || a.proxy.asked != c->asked)
            printf("%s: status %d, asked %zu\n", c->reply, (int)r.st,
                   a.proxy.asked);
        T_CHECK(r.st == c->st && a.proxy.asked == c->asked);
        tt_expect(__LINE__, &r, c->success, c->output, NULL);
        T_CHECK(
            hfsb_str_equal(hfsb_buf_str(&r.res.error), hfsb_cstr(c->error)));
        T_CHECK(tt_added_is(&r, c->extra));
    }
    tt_drop(&r);
    tc_end(&a);
}

/* The reference's server has six tools; ours says so for what it lacks. */
static void a_tool_that_the_server_lacks_is_named(void) {
    static const char *const replies_of[] = {
        "HTTP/1.1 404 X\r\nContent-Type: application/json\r\n"
        "Content-Length: 22\r\n\r\n{\"detail\":\"Not Found\"}",
        "HTTP/1.1 405 X\r\nContent-Type: application/json\r\n"
        "Content-Length: 31\r\n\r\n{\"detail\":\"Method Not Allowed\"}"};
    tc_all   a;
    tt_reply r = HFSB_INIT;
    size_t   i;
    tc_begin(&a, NULL, true);
    for (i = 0; i < TT_COUNT(replies_of); i++) {
        tc_can(&a.proxy, replies_of[i], 1);
        tc_call(&r, &a.box, "grep", "{\"pattern\":\"a\"}");
        T_CHECK(r.st == HFSB_NOT_FOUND && !r.res.success);
        T_STR(r.res.error,
              "This sandbox's server has no tool grep; use bash.");
    }
    tt_drop(&r);
    tc_end(&a);
}

static void a_page_is_quoted_up_to_200_characters(void) {
    char     text[1024], want[1024];
    tc_all   a;
    tt_reply r = HFSB_INIT;
    size_t   i, n;
    tc_begin(&a, NULL, false);
    n = (size_t)snprintf(text, sizeof text,
                         "HTTP/1.1 503 X\r\nContent-Length: 402\r\n\r\n");
    for (i = 0; i < 201; i++) n += (size_t)snprintf(text + n, 8, "\303\251");
    tc_can(&a.proxy, text, 3);
    tc_call(&r, &a.box, "read", "{\"path\":\"p\"}");
    n = (size_t)snprintf(want, sizeof want,
                         "Sandbox returned non-JSON response (HTTP 503): ");
    for (i = 0; i < 200; i++) n += (size_t)snprintf(want + n, 8, "\303\251");
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.res.error), hfsb_cstr(want)));
    tt_drop(&r);
    tc_end(&a);
}

static void refuses_bad_calls_without_a_server(void) {
    hfsb_call_opts strict = HFSB_INIT;
    char           key[300];
    tc_all         a;
    tt_reply       r = HFSB_INIT;
    tc_begin(&a, NULL, false);
    tc_plan(&a.proxy, NULL, 0);
    tc_call(&r, &a.box, "rm", "{}");
    T_CHECK(r.st == HFSB_NOT_FOUND);
    T_STR(r.res.error, "Unknown tool: rm");
    T_CHECK(tt_says(&r.res.output, "The tools are: bash, "));
    tc_call(&r, &a.box, "edit",
            "{\"path\":\"x\",\"old_str\":\"a\",\"new_str\":\"a\"}");
    T_CHECK(r.st == HFSB_OK);
    T_STR(r.res.error, "old_str and new_str are identical.");
    tc_call(&r, &a.box, "read", "[]");
    T_CHECK(r.st == HFSB_ARG);
    T_STR(r.res.error, "The arguments must be a JSON object, not array.");
    strict.strict = true;
    tc_do(&r, &a.box, "read", "{\"path\":\"x\",\"y\":1}", &strict, NULL);
    T_CHECK(r.st == HFSB_ARG && tt_says(&r.res.error, "Unknown key: y"));
    tc_call(&r, &a.box, "read", "{\"path\":\"x\",\"path\":\"y\"}");
    T_CHECK(r.st == HFSB_ARG && tt_says(&r.res.error, "given twice"));
    memset(key, 'k', sizeof key);
    strict.key = hfsb_str_make(key, 256);
    tc_do(&r, &a.box, "bash", "{\"command\":\"true\"}", &strict, NULL);
    T_CHECK(r.st == HFSB_ARG && tt_says(&r.res.error, "at most 255 bytes"));
    T_CHECK(a.proxy.asked == 0);
    /* text beside itself is no slip */
    tt_put("dup", HFSB_LIT("a\n"));
    tc_call(&r, &a.box, "edit",
            "{\"path\":\"dup\",\"old_str\":\"a\\n\",\"new_str\":\"a\\n\","
            "\"mode\":\"append_after\"}");
    TT_OK(&r, NULL);
    TT_FILE("dup", "a\na\n");
    tt_drop(&r);
    tc_end(&a);
}

/* ---- redirects ---- */

static void tokens_are_dropped_by_a_redirect_to_another_origin(void) {
    tc_all   a;
    tc_proxy other;
    tt_reply r = HFSB_INIT;
    char     text[256];
    tc_begin(&a, NULL, false);
    tc_proxy_open(&other, a.server.port);
    a.box.sandbox->at_edge = true; /* as of a Space: the Hub's token goes */
    snprintf(text, sizeof text,
             "HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:%u/api/bash\r\n"
             "Content-Length: 0\r\n\r\n",
             other.port);
    tc_can(&a.proxy, text, 1);
    tc_can(&other,
           "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n"
           "{\"output\":\"42\"}",
           1);
    tc_call(&r, &a.box, "bash", "{\"command\":\"x\"}");
    TT_OK(&r, "42");
    T_STR(tc_field(&a.proxy, "Authorization"), "Bearer " TC_HUB_TOKEN);
    T_STR(tc_field(&a.proxy, "X-Sandbox-Authorization"), "Bearer " TS_TOKEN);
    T_STR(tc_field(&other, "Content-Type"), "application/json");
    T_CHECK(!tc_field(&other, "Authorization").ptr);
    T_CHECK(!tc_field(&other, "X-Sandbox-Authorization").ptr);
    T_CHECK(!tc_field(&other, "Idempotency-Key").ptr);
    /* it got no key: nothing is sent again when its reply is lost */
    tc_can(&a.proxy, text, 3);
    tc_plan_one(&other, TC_DROP_AFTER, 1);
    tc_call(&r, &a.box, "bash", "{\"command\":\"x\"}");
    T_CHECK(r.st == HFSB_LOST && other.asked == 1);
    /* within one place they stay */
    tc_can(&a.proxy,
           "HTTP/1.1 308 X\r\nLocation: /api/read\r\nContent-Length: "
           "0\r\n\r\n",
           1);
    tt_put("here", HFSB_LIT("z\n"));
    tc_call(&r, &a.box, "read", "{\"path\":\"here\"}");
    TT_OK(&r, "1\tz");
    T_STR(tc_field(&a.proxy, "X-Sandbox-Authorization"), "Bearer " TS_TOKEN);
    a.box.sandbox->at_edge = false;
    tt_drop(&r);
    tc_end(&a);
    tc_proxy_close(&other);
}

/* ---- cancel ---- */

typedef struct canceller {
    hfsb_cancel *cancel;
    const char  *when; /* once this file is there */
} canceller;

static void *cancel_soon(void *user) {
    canceller *c = (canceller *)user;
    long long  until = hfsb_clock_ms() + 30000;
    while (access(c->when, F_OK) && hfsb_clock_ms() < until) tt_sleep_ms(5);
    hfsb_cancel_set(c->cancel);
    return NULL;
}

static void another_thread_can_cancel_a_call(void) {
    hfsb_sandbox_opts o = tc_options();
    hfsb_call_opts    how = HFSB_INIT;
    hfsb_cancel      *cancel, *own;
    canceller         c;
    pthread_t         thread;
    tc_all            a;
    tt_reply          r = HFSB_INIT;
    hfsb_tool_result  killed;
    long long         before = hfsb_clock_ms();
    T_CHECK(hfsb_cancel_open(NULL, &cancel, NULL) == HFSB_OK);
    T_CHECK(hfsb_cancel_open(NULL, &own, NULL) == HFSB_OK);
    hfsb_cancel_set(own);
    o.cancel = cancel;
    o.times.delay_ms = 60000;
    tc_begin(&a, &o, false);
    c.cancel = cancel;
    c.when = "begun";
    T_CHECK(!pthread_create(&thread, NULL, cancel_soon, &c));
    tc_call(&r, &a.box, "bash", "{\"command\":\"touch begun; sleep 60\"}");
    pthread_join(thread, NULL);
    T_CHECK(r.st == HFSB_CANCELLED);
    T_STR(r.res.error, "Cancelled. What was begun there goes on.");
    /* the command runs; what is set does not keep us from ending it */
    T_CHECK(hfsb_sandbox_kill_all(a.box.sandbox, &killed) == HFSB_OK);
    T_CHECK(killed.success &&
            hfsb_str_starts(hfsb_buf_str(&killed.output),
                            HFSB_LIT("Killed 1 process(es): [")));
    hfsb_tool_result_free(&killed);
    tc_call(&r, &a.box, "bash", "{\"command\":\"true\"}");
    T_CHECK(r.st == HFSB_CANCELLED);
    hfsb_cancel_reset(cancel);
    tc_call(&r, &a.box, "bash", "{\"command\":\"true\"}");
    T_CHECK(r.st == HFSB_OK);
    how.cancel = own; /* counts for this call, not that of the handle */
    tc_do(&r, &a.box, "bash", "{\"command\":\"true\"}", &how, NULL);
    T_CHECK(r.st == HFSB_CANCELLED);
    /* also between two tries */
    unlink("begun");
    T_CHECK(!pthread_create(&thread, NULL, cancel_soon, &c));
    a.proxy.only_posts = true;
    tc_plan_one(&a.proxy, TC_DROP_AFTER, 1);
    tc_call(&r, &a.box, "bash", "{\"command\":\"touch begun\"}");
    pthread_join(thread, NULL);
    T_CHECK(r.st == HFSB_CANCELLED);
    T_CHECK(hfsb_clock_ms() - before < 50000);
    tt_drop(&r);
    tc_end(&a);
    hfsb_cancel_close(own);
    hfsb_cancel_close(cancel);
}

/* ---- memory ---- */

static ts_server *memory_server;

static void a_call_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    static const char *const calls[][2] = {
        {"write", "{\"path\":\"m\",\"content\":\"1\"}"},
        {"read", "{\"path\":\"m\"}"},
        {"bash", "{\"command\":\"echo hi\"}"}};
    hfsb_sandbox_opts o = tc_options();
    hfsb_net_opts     net = HFSB_INIT;
    hfsb_transport    transport = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_json_doc     doc = HFSB_INIT;
    hfsb_tool_result  result;
    char              url[64];
    size_t            i;
    hfsb_status       st;
    net.no_proxy = true;
    net.alloc = o.alloc = alloc;
    o.session = true;
    snprintf(url, sizeof url, "http://127.0.0.1:%u", memory_server->port);
    if (hfsb_net_open(&net, &transport, NULL) != HFSB_OK) return;
    o.transport = &transport;
    st = hfsb_sandbox_connect_url(hfsb_cstr(url), &o, &sandbox, NULL);
    for (i = 0; st == HFSB_OK && i < TT_COUNT(calls); i++) {
        T_CHECK(hfsb_json_parse(hfsb_cstr(calls[i][1]), NULL, &doc, NULL) ==
                HFSB_OK);
        st = hfsb_sandbox_call(sandbox, hfsb_cstr(calls[i][0]), doc.root, NULL, &result);
        if (!heap->fail_at) T_CHECK(st == HFSB_OK && result.success);
        T_CHECK(!result.success || st == HFSB_OK);
        hfsb_tool_result_free(&result);
        hfsb_json_free(&doc);
        if (heap->fail_at) st = HFSB_OK; /* the next may work */
    }
    if (sandbox) T_CHECK(hfsb_sandbox_close(sandbox, false, NULL) == HFSB_OK);
    hfsb_transport_close(&transport);
}

static void call_survives_each_failed_allocation(void) {
    ts_server s;
    ts_start(&s, NULL, NULL);
    memory_server = &s;
    t_each_allocation_fails(a_call_without_memory);
    ts_end(&s, false);
}

int main(void) {
    tt_begin();
    TT_RUN(sends_the_bodies_of_the_reference_client);
    TT_RUN(sends_the_recorded_bodies);
    TT_RUN(the_id_of_the_options_replaces_the_argument);
    TT_RUN(no_more_than_the_longest_timeout_goes_to_a_foreign_server);
    TT_RUN(each_reply_becomes_a_result);
    TT_RUN(a_tool_that_the_server_lacks_is_named);
    TT_RUN(a_page_is_quoted_up_to_200_characters);
    TT_RUN(refuses_bad_calls_without_a_server);
    TT_RUN(tokens_are_dropped_by_a_redirect_to_another_origin);
    TT_RUN(another_thread_can_cancel_a_call);
    TT_RUN(call_survives_each_failed_allocation);
    return TT_END();
}
