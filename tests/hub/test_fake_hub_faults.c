/* test_fake_hub_faults.c - the fake Hub misbehaves exactly as asked; the
   edge in front of the Spaces, and the servers after it. */
#include "../support/t_fake_hub.h"

#define WHOAMI "/api/whoami-v2"

/* ---- faults ---- */

static void every_shape_of_an_error_is_sent(void) {
    static const struct {
        fh_shape    shape;
        int         status;
        const char *message, *type, *part;
    } list[] = {
        {FH_ERROR, 401, NULL, FH_JSON,
         "{\"error\":\"Invalid credentials in Authorization header\"}"},
        {FH_ERROR_LIST, 400, "a", FH_JSON, "{\"error\":[\"a\",\""},
        {FH_ERRORS, 402, "a", FH_JSON, "{\"errors\":[{\"message\":\"a\"}]}"},
        {FH_DESCRIPTION, 403, "a", FH_JSON,
         "{\"error\":\"a_code\",\"error_description\":\"a\"}"},
        {FH_TEXT, 500, "a", "text/plain", "a"},
        {FH_HTML, 502, "a", "text/html; charset=utf-8", "<h1>a</h1>"},
        {FH_EMPTY, 503, NULL, "", ""},
        {FH_RAW, 200, "{\"cut", FH_JSON, "{\"cut"},
        {FH_ERROR, 429, NULL, FH_JSON, "rate limit"},
    };
    fh_hub       *hub = fh_start(NULL);
    ts_reply      r = HFSB_INIT;
    fh_fault_spec f = HFSB_INIT;
    size_t        i;
    f.method = "GET";
    f.path = WHOAMI;
    f.code = "ACode";
    f.fields = "Retry-After: 7\r\nRateLimit: \"api\";r=0;t=3";
    for (i = 0; i < TT_COUNT(list); i++) {
        f.shape = list[i].shape;
        f.status = list[i].status;
        f.message = list[i].message;
        fh_fault(hub, &f);
        T_CHECK(tf_ask(hub, &r, "GET", WHOAMI, NULL) == list[i].status);
        TS_IS(&r, list[i].status, list[i].part);
        T_CHECK(fh_same(ts_field(&r, "Content-Type"), list[i].type));
        T_STR(ts_field(&r, "X-Error-Code"), "ACode");
        T_STR(ts_field(&r, "Retry-After"), "7");
        T_STR(ts_field(&r, "RateLimit"), "\"api\";r=0;t=3");
        T_CHECK(tf_ask(hub, &r, "GET", WHOAMI, NULL) == 200);
    }
    ts_drop(&r);
    fh_stop(hub);
}

static void a_fault_hits_the_nth_request_that_matches(void) {
    fh_hub       *hub = fh_start(NULL);
    ts_reply      r = HFSB_INIT;
    fh_fault_spec f = HFSB_INIT;
    int           i, hit = 0;
    f.path = "/api/who*";
    f.status = 500;
    f.nth = 2;
    f.times = 2;
    fh_fault(hub, &f);
    T_CHECK(tf_ask(hub, &r, "GET", "/api/spaces", NULL) == 200);
    T_CHECK(tf_ask(hub, &r, "GET", WHOAMI, NULL) == 200);
    T_CHECK(tf_ask(hub, &r, "GET", WHOAMI, NULL) == 500);
    T_CHECK(tf_ask(hub, &r, "GET", WHOAMI, NULL) == 500);
    T_CHECK(tf_ask(hub, &r, "GET", WHOAMI, NULL) == 200);
    f.nth = 2;
    f.times = FH_ALWAYS;
    fh_fault(hub, &f);
    T_CHECK(tf_ask(hub, &r, "GET", WHOAMI, NULL) == 200);
    for (i = 0; i < 5; i++)
        T_CHECK(tf_ask(hub, &r, "GET", WHOAMI, NULL) == 500);
    fh_no_faults(hub);
    f.percent = 50;
    fh_fault(hub, &f);
    for (i = 0; i < 40; i++)
        hit += tf_ask(hub, &r, "GET", WHOAMI, NULL) == 500;
    T_CHECK(hit > 8 && hit < 32);
    fh_no_faults(hub);
    T_CHECK(tf_ask(hub, &r, "GET", WHOAMI, NULL) == 200);
    ts_drop(&r);
    fh_stop(hub);
}

/* What a connection saw before it ended. */
typedef struct ending {
    char   text[4096];
    size_t len;
    bool   reset;
} ending;

static void read_to_the_end(const char *url, const char *head, ending *e) {
    ts_server at = HFSB_INIT;
    ts_conn   c;
    ssize_t   n;
    memset(e, 0, sizeof *e);
    at.port = (unsigned)atoi(strrchr(url, ':') + 1);
    c = ts_connect(&at);
    T_CHECK(ts_send(&c, hfsb_cstr(head)));
    while ((n = recv(c.fd, e->text + e->len, sizeof e->text - 1 - e->len,
                     0)) > 0)
        e->len += (size_t)n;
    e->reset = n < 0 && errno == ECONNRESET;
    ts_hang_up(&c);
}

static void replies_are_cut_at_the_given_place(void) {
    static const char ask[] = "GET %s HTTP/1.1\r\nHost: x\r\n" TF_AUTH "\r\n";
    static const fh_cut cuts[] = {FH_CLOSE, FH_RESET, FH_CUT_HEAD,
                                  FH_CUT_BODY, FH_RESET_BODY};
    fh_hub *hub = fh_start(NULL);
    size_t  i, edge;
    char    head[512];
    tf_duplicate(hub);
    fh_stages(hub, NULL, "RUNNING");
    for (edge = 0; edge < 2; edge++) {
        snprintf(head, sizeof head, ask, edge ? "/api/health" : WHOAMI);
        for (i = 0; i < TT_COUNT(cuts); i++) {
            fh_fault_spec f = HFSB_INIT;
            ending        e;
            const char   *body;
            f.path = edge ? "edge:/api/health" : WHOAMI;
            f.cut = cuts[i];
            f.work = true;
            fh_fault(hub, &f);
            read_to_the_end(edge ? fh_edge(hub) : fh_url(hub), head, &e);
            body = strstr(e.text, "\r\n\r\n");
            if (cuts[i] == FH_CLOSE || cuts[i] == FH_RESET) {
                T_CHECK(e.len == 0);
            } else if (cuts[i] == FH_CUT_HEAD) {
                T_CHECK(e.len > 20 && !body);
            } else if (!e.reset) { /* a reset may overtake what was sent */
                T_CHECK(body && body[4] && strstr(e.text, "Content-Length"));
                T_CHECK(body && (int)strlen(body + 4) <
                                    atoi(strstr(e.text, "Length: ") + 8));
            }
            T_CHECK(e.reset == (cuts[i] == FH_RESET ||
                                cuts[i] == FH_RESET_BODY));
        }
    }
    fh_stop(hub);
}

static void a_lost_answer_still_takes_effect(void) {
    static const char make[] = "{\"name\":\"x\",\"type\":\"space\","
                               "\"sdk\":\"docker\"}";
    fh_hub       *hub = fh_start(NULL);
    ts_reply      r = HFSB_INIT;
    fh_fault_spec f = HFSB_INIT;
    f.path = "/api/repos/create";
    f.cut = FH_CLOSE;
    fh_fault(hub, &f);
    T_CHECK(tf_ask(hub, &r, "POST", f.path, make) == 0);
    T_CHECK(!fh_has(hub, "alice/x")); /* not done */
    T_CHECK(fh_nth(hub, 0, "POST", f.path)->status == 0);
    f.work = true;
    f.nth = 1;
    fh_fault(hub, &f);
    T_CHECK(tf_ask(hub, &r, "POST", f.path, make) == 0);
    T_CHECK(fh_has(hub, "alice/x")); /* done */
    f.cut = FH_WHOLE;
    f.status = 500;
    f.path = "/api/repos/delete";
    fh_fault(hub, &f);
    T_CHECK(tf_ask(hub, &r, "DELETE", f.path,
                   "{\"name\":\"x\",\"type\":\"space\"}") == 500);
    T_CHECK(!fh_has(hub, "alice/x")); /* a lie */
    ts_drop(&r);
    fh_stop(hub);
}

static void delays_hold_one_answer_only(void) {
    fh_hub       *hub = fh_start(NULL);
    ts_reply      r = HFSB_INIT;
    fh_fault_spec f = HFSB_INIT;
    ts_server     at = HFSB_INIT;
    ts_conn       c;
    long long     begin = hfsb_clock_ms();
    f.path = WHOAMI;
    f.delay_ms = 200;
    fh_fault(hub, &f);
    T_CHECK(tf_ask(hub, &r, "GET", WHOAMI, NULL) == 200);
    T_CHECK(hfsb_clock_ms() - begin >= 200);
    f.delay_ms = 60000; /* stopping the fake Hub releases this one */
    fh_fault(hub, &f);
    at.port = (unsigned)atoi(strrchr(fh_url(hub), ':') + 1);
    c = ts_connect(&at);
    T_CHECK(ts_send(&c, HFSB_LIT("GET " WHOAMI " HTTP/1.1\r\nHost: x\r\n"
                                 TF_AUTH "\r\n")));
    while (fh_count(hub, NULL, WHOAMI) < 2) tt_sleep_ms(2);
    T_CHECK(tf_ask(hub, &r, "GET", "/api/spaces", NULL) == 200);
    fh_stop(hub);
    T_CHECK(ts_closes(&c, 10000) && c.in.len == 0);
    T_CHECK(hfsb_clock_ms() - begin < 40000);
    ts_hang_up(&c);
    ts_drop(&r);
}

/* ---- the edge ---- */

static void the_edge_finds_the_space_by_host(void) {
    static const struct {
        const char *target, *fields;
        int         status;
    } list[] = {
        /* by Host, by path, by token, the newest */
        {"/api/health", "Host: alice-one.hf.space\r\n" TF_AUTH, 200},
        {"/api/health", "Host: alice-two.hf.space\r\n" TF_AUTH, 503},
        {"/api/health", "Host: alice-three.hf.space\r\n" TF_AUTH, 404},
        {"/alice/one/api/health", TF_AUTH, 200},
        {"/alice/two/api/health", TF_AUTH, 503},
        {"/alice/two/api/health",
         TF_AUTH "X-Sandbox-Authorization: Bearer t1\r\n", 503},
        {"/api/health", TF_AUTH "X-Sandbox-Authorization: Bearer t1\r\n",
         200},
        {"/api/health", TF_AUTH, 503},
        /* its door is shut without a token of the Hub */
        {"/alice/one/api/health", "", 404},
        {"/alice/one/api/health", "Authorization: Bearer no\r\n", 404},
        /* and its server asks for its own */
        {"/alice/one/api/bash", TF_AUTH, 401},
        {"/alice/one/api/bash",
         TF_AUTH "X-Sandbox-Authorization: Bearer no\r\n", 401},
        {"/alice/one/api/bash",
         TF_AUTH "X-Sandbox-Authorization: Bearer t1\r\n", 200},
    };
    fh_hub  *hub = fh_start(NULL);
    ts_reply r = HFSB_INIT;
    hfsb_str none = HFSB_INIT;
    size_t   i;
    fh_add_space(hub, "alice/one", 1, true);
    fh_add_space(hub, "alice/two", 1, true);
    T_CHECK(tf_ask(hub, &r, "POST", "/api/spaces/alice/one/secrets",
                   "{\"key\":\"SANDBOX_API_TOKEN\",\"value\":\"t1\"}") ==
            200);
    fh_stages(hub, "alice/two", "PAUSED");
    for (i = 0; i < TT_COUNT(list); i++) {
        T_CHECK(tf_send(fh_edge(hub), &r, "GET", list[i].target,
                        list[i].fields, none));
        TS_IS(&r, list[i].status, NULL);
    }
    ts_drop(&r);
    fh_stop(hub);
}

static void a_starting_space_answers_with_a_page(void) {
    fh_hub  *hub = fh_start(NULL);
    ts_reply r = HFSB_INIT;
    int      n = 0;
    tf_duplicate(hub);
    T_CHECK(tf_commit(hub, &r, "{\"key\":\"file\",\"value\":{\"path\":\"a\","
                               "\"content\":\"\"}}") == 200);
    while (tf_edge(hub, &r, "/api/health", NULL) == 503 && n < 20) {
        n++;
        TS_IS(&r, 503, "<!DOCTYPE html>");
    }
    TS_IS(&r, 200, "{\"status\":\"ok\"}");
    T_CHECK(n == 4); /* BUILDING twice, APP_STARTING, once more */
    T_CHECK(tf_edge(hub, &r, "/api/bash", "{}") == 200);
    T_STR(r.body, "{\"success\":true,\"output\":\"\",\"error\":\"\"}");
    ts_drop(&r);
    fh_stop(hub);
}

/* A Space with the true endpoints, in this process. */
static fh_hub *embedded(ts_reply *r) {
    fh_opts o = HFSB_INIT;
    fh_hub *hub;
    o.mode = FH_EMBED;
    o.prompt = true;
    hub = fh_start(&o);
    tf_duplicate(hub);
    T_CHECK(tf_commit(hub, r, "{\"key\":\"file\",\"value\":{\"path\":\"a\","
                              "\"content\":\"\"}}") == 200);
    return hub;
}

#define BASH(command) "{\"command\":\"" command "\"}"

static void an_embedded_space_runs_commands(void) {
    ts_reply r = HFSB_INIT;
    fh_hub  *hub = embedded(&r);
    hfsb_buf dir = HFSB_INIT, direct = HFSB_INIT;
    const fh_record *one;
    T_CHECK(fh_work_dir(hub, TF_ID, &dir) && fh_direct(hub, TF_ID, &direct));
    T_CHECK(tf_edge(hub, &r, "/api/bash", BASH("pwd")) == 200);
    T_CHECK(ts_flag(&r, "success") && ts_contains(&r, dir.ptr));
    T_CHECK(ts_field(&r, "X-Hfsb").len > 0);
    one = fh_nth(hub, 0, "POST", "edge:*");
    while (one && !fh_status(hub, one)) tt_sleep_ms(2);
    T_CHECK(fh_status(hub, one) == 200);
    T_CHECK(tf_edge(hub, &r, "/api/write",
                    "{\"path\":\"f\",\"content\":\"hi\"}") == 200);
    T_CHECK(tf_edge(hub, &r, "/api/read", "{\"path\":\"f\"}") == 200);
    TS_IS(&r, 200, "1\\thi");
    T_CHECK(tf_ask(hub, &r, "POST", TF_AT "/pause", "") == 200);
    T_CHECK(tf_edge(hub, &r, "/api/health", NULL) == 503);
    T_CHECK(tf_ask(hub, &r, "POST", TF_AT "/restart", "") == 200);
    T_CHECK(tf_edge(hub, &r, "/api/read", "{\"path\":\"f\"}") == 200);
    T_CHECK(!ts_flag(&r, "success")); /* a new machine */
    hfsb_buf_free(&dir);
    hfsb_buf_free(&direct);
    ts_drop(&r);
    fh_stop(hub);
}

static void faults_apply_in_front_of_a_real_server(void) {
    static const struct {
        fh_cut cut;
        int    status;
        bool   work;
        int    gets, lines; /* what the client gets, the file has then */
    } list[] = {
        {FH_CLOSE, 0, false, 0, 0},     {FH_CLOSE, 0, true, 0, 1},
        {FH_RESET, 0, true, 0, 2},      {FH_CUT_HEAD, 0, true, 0, 3},
        {FH_CUT_BODY, 0, true, 0, 4},   {FH_RESET_BODY, 0, false, 0, 4},
        {FH_WHOLE, 502, true, 502, 5},  {FH_WHOLE, 502, false, 502, 5},
        {FH_WHOLE, 0, false, 200, 6},
    };
    ts_reply r = HFSB_INIT;
    fh_hub  *hub = embedded(&r);
    hfsb_buf file = HFSB_INIT;
    size_t   i;
    T_CHECK(fh_work_dir(hub, TF_ID, &file));
    fh_put(&file, "/f");
    for (i = 0; i < TT_COUNT(list); i++) {
        fh_fault_spec f = HFSB_INIT;
        f.path = "edge:/api/bash";
        f.cut = list[i].cut;
        f.status = list[i].status;
        f.shape = FH_HTML;
        f.work = list[i].work;
        f.delay_ms = i == 8 ? 50 : 0;
        fh_fault(hub, &f);
        T_CHECK(tf_edge(hub, &r, "/api/bash", BASH("echo x >> f")) ==
                list[i].gets);
        if (list[i].lines) T_CHECK(ts_lines(file.ptr, list[i].lines));
        T_CHECK(tt_lines_in(file.ptr) == list[i].lines ||
                (!list[i].lines && tt_lines_in(file.ptr) <= 0));
    }
    T_CHECK(fh_count(hub, "POST", "edge:/api/bash") == TT_COUNT(list));
    hfsb_buf_free(&file);
    ts_drop(&r);
    fh_stop(hub);
}

static void a_delayed_command_has_run_already(void) {
    ts_reply      r = HFSB_INIT;
    fh_hub       *hub = embedded(&r);
    fh_fault_spec f = HFSB_INIT;
    ts_server     at = HFSB_INIT;
    hfsb_buf      file = HFSB_INIT;
    ts_conn       c;
    T_CHECK(fh_work_dir(hub, TF_ID, &file));
    fh_put(&file, "/f");
    f.path = "edge:/api/bash";
    f.delay_ms = 60000;
    fh_fault(hub, &f);
    at.port = (unsigned)atoi(strrchr(fh_edge(hub), ':') + 1);
    c = ts_connect(&at);
    T_CHECK(ts_send(&c, HFSB_LIT("POST /api/bash HTTP/1.1\r\nHost: x\r\n"
                                 TF_AUTH "X-Sandbox-Authorization: Bearer "
                                 "tok\r\nContent-Type: application/json"
                                 "\r\nContent-Length: 25\r\n\r\n"
                                 BASH("echo x >> f"))));
    T_CHECK(ts_lines(file.ptr, 1) && !ts_more(&c, 20));
    T_CHECK(tf_edge(hub, &r, "/api/health", NULL) == 200);
    hfsb_buf_free(&file);
    ts_drop(&r);
    fh_stop(hub);
    ts_hang_up(&c);
}

static void streams_and_large_bodies_pass_the_edge(void) {
    ts_reply r = HFSB_INIT;
    fh_hub  *hub = embedded(&r);
    hfsb_buf big = HFSB_INIT;
    hfsb_str none = HFSB_INIT;
    t_repeat(&big, "0123456789abcdef", 50);
    while (big.len < 3000000)
        FH_MUST(hfsb_buf_append(&big, hfsb_buf_str(&big)));
    T_CHECK(tf_send(fh_edge(hub), &r, "PUT", "/api/files?path=big",
                    TF_AUTH "X-Sandbox-Authorization: Bearer tok\r\n",
                    hfsb_buf_str(&big)));
    T_CHECK(r.status == 200 || r.status == 201);
    T_CHECK(tf_send(fh_edge(hub), &r, "GET", "/api/files?path=big",
                    TF_AUTH "X-Sandbox-Authorization: Bearer tok\r\n", none));
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.body), hfsb_buf_str(&big)));
    T_CHECK(fh_nth(hub, 0, "PUT", "edge:*")->body.len == FH_EDGE_KEPT);
    hfsb_buf_free(&big);
    ts_drop(&r);
    fh_stop(hub);
}

/* ---- real builds ---- */

/* A server in a few lines: prints its port, then its environment. */
#define PROGRAM                                                            \
    "#include <arpa/inet.h>\n#include <stdio.h>\n#include <stdlib.h>\n"    \
    "#include <string.h>\n#include <unistd.h>\n"                           \
    "int main(int n, char **a) {\n"                                        \
    "    struct sockaddr_in s = {0};\n    socklen_t len = sizeof s;\n"     \
    "    char b[4096];\n    int c, l = socket(AF_INET, SOCK_STREAM, 0);\n" \
    "    s.sin_family = AF_INET;\n    s.sin_addr.s_addr = inet_addr(a[2]);"\
    "\n    if (n != 7 || atoi(a[4]) || chdir(a[6])) return 3;\n"           \
    "    if (bind(l, (void *)&s, len) || listen(l, 9)) return 4;\n"        \
    "    getsockname(l, (void *)&s, &len);\n"                              \
    "    printf(\"listens on http://127.0.0.1:%d, it does\\n\","           \
    " ntohs(s.sin_port));\n    fflush(stdout);\n"                          \
    "    while ((c = accept(l, 0, 0)) >= 0) {\n"                           \
    "        (void)!read(c, b, sizeof b);\n"                               \
    "        dprintf(c, \"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n"    \
    "\\r\\n%s %s\", getenv(\"SANDBOX_API_TOKEN\"), getenv(\"V\"));\n"      \
    "        close(c);\n    }\n    return 0;\n}\n"

#define DOCKERFILE                                                         \
    "# a comment\nFROM x AS build\nRUN apt-get update && \\\n"             \
    "    apt-get install gcc\nWORKDIR /src\nCOPY a.c ./\n"                 \
    "RUN cc -o \\\n  out/app a.c\nFROM x\nRUN false\n"                     \
    "COPY --from=build /src/out/app /usr/local/bin/server\n"               \
    "CMD [\"server\", \"--host\", \"0.0.0.0\", \"--port\", \"7860\", "     \
    "\"--work-dir\", \"/app\"]\n"

static void commit_file(fh_hub *hub, ts_reply *r, const char *dockerfile,
                        const char *source) {
    hfsb_buf         lines = HFSB_INIT;
    hfsb_json_writer w;
    int              i;
    for (i = 0; i < 3; i++) {
        hfsb_json_writer_init(&w, &lines, NULL);
        hfsb_json_put_object(&w);
        fh_text(&w, "key", "file");
        fh_key(&w, "value");
        hfsb_json_put_object(&w);
        fh_text(&w, "path", i == 0 ? "Dockerfile" : i == 1 ? "a.c" : "out/x");
        fh_text(&w, "content", i == 0 ? dockerfile : i == 1 ? source : "");
        hfsb_json_put_end(&w);
        hfsb_json_put_end(&w);
        FH_MUST(hfsb_json_writer_finish(&w, NULL));
        fh_put(&lines, "\n");
    }
    T_CHECK(tf_commit(hub, r, lines.ptr) == 200);
    hfsb_buf_free(&lines);
}

static void await_stage(fh_hub *hub, ts_reply *r, const char *stage) {
    long long end = hfsb_clock_ms() + 60000;
    bool      so = false;
    while (!so && hfsb_clock_ms() < end) {
        (void)tf_ask(hub, r, "GET", TF_AT "/runtime", NULL);
        so = fh_same(tf_text(r, "stage", NULL), stage);
        if (!so) tt_sleep_ms(10);
    }
    TF_IS(r, "stage", NULL, stage);
}

static void a_commit_is_built_and_run(void) {
    fh_opts  o = HFSB_INIT;
    fh_hub  *hub;
    ts_reply r = HFSB_INIT;
    hfsb_buf head = HFSB_INIT, first = HFSB_INIT, second = HFSB_INIT;
    o.mode = FH_BUILD;
    o.prompt = true;
    hub = fh_start(&o);
    tf_duplicate(hub);
    T_CHECK(tf_ask(hub, &r, "POST", TF_AT "/variables",
                   "{\"key\":\"V\",\"value\":\"a variable\"}") == 200);
    commit_file(hub, &r, DOCKERFILE, PROGRAM);
    await_stage(hub, &r, "RUNNING");
    T_CHECK(fh_head(hub, TF_ID, &head));
    TF_IS(&r, "sha", NULL, head.ptr);
    T_CHECK(tf_edge(hub, &r, "/api/any", NULL) == 200);
    T_STR(r.body, "tok a variable");
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/logs/build", NULL) == 200);
    TS_IS(&r, 200, "RUN cc -o out/app a.c");
    T_CHECK(!ts_contains(&r, "apt-get") && !ts_contains(&r, "false"));
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/logs/run", NULL) == 200);
    TS_IS(&r, 200, "it does");
    T_CHECK(fh_direct(hub, TF_ID, &first));
    T_CHECK(tf_ask(hub, &r, "POST", TF_AT "/restart", "") == 200);
    await_stage(hub, &r, "RUNNING");
    T_CHECK(fh_direct(hub, TF_ID, &second) && strcmp(first.ptr, second.ptr));
    T_CHECK(tf_ask(hub, &r, "DELETE", "/api/repos/delete",
                   "{\"name\":\"sandbox-1a2b3c4d\",\"type\":\"space\"}") ==
            200);
    T_CHECK(tf_edge(hub, &r, "/api/any", NULL) == 404);
    hfsb_buf_free(&head);
    hfsb_buf_free(&first);
    hfsb_buf_free(&second);
    ts_drop(&r);
    fh_stop(hub);
}

static void builds_and_programs_fail_as_real_ones(void) {
    fh_opts  o = HFSB_INIT;
    fh_hub  *hub;
    ts_reply r = HFSB_INIT;
    o.mode = FH_BUILD;
    o.prompt = true;
    hub = fh_start(&o);
    tf_duplicate(hub);
    commit_file(hub, &r, DOCKERFILE, "int main(void) { return mistake; }\n");
    await_stage(hub, &r, "BUILD_ERROR");
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/logs/build", NULL) == 200);
    TS_IS(&r, 200, "mistake");
    T_CHECK(tf_edge(hub, &r, "/api/health", NULL) == 503);
    commit_file(hub, &r, DOCKERFILE, "int main(void) { return 1; }\n");
    await_stage(hub, &r, "RUNTIME_ERROR");
    ts_drop(&r);
    fh_stop(hub);
}

/* ---- from outside ---- */

static void the_control_endpoints_do_the_same(void) {
    fh_hub  *hub = fh_start(NULL);
    ts_reply r = HFSB_INIT;
    T_CHECK(tf_ask(hub, &r, "POST", "/_fake/fault",
                   "{\"path\":\"" WHOAMI "\",\"status\":503,\"shape\":"
                   "\"html\",\"times\":-1}") == 200);
    T_CHECK(tf_ask(hub, &r, "GET", WHOAMI, NULL) == 503);
    TS_IS(&r, 503, "<h1>");
    T_CHECK(tf_ask(hub, &r, "DELETE", "/_fake/fault", NULL) == 200);
    T_CHECK(tf_ask(hub, &r, "GET", WHOAMI, NULL) == 200);
    T_CHECK(tf_ask(hub, &r, "POST", "/_fake/space",
                   "{\"id\":\"alice/old\",\"days\":9,\"hidden\":true}") ==
            200);
    T_CHECK(tf_ask(hub, &r, "GET", "/_fake/spaces", NULL) == 200);
    T_STR(r.body, "[\"alice/old\"]");
    T_CHECK(tf_ask(hub, &r, "POST", "/_fake/stages",
                   "{\"stages\":\"SLEEPING\"}") == 200);
    T_CHECK(tf_ask(hub, &r, "GET", "/api/spaces/alice/old/runtime", NULL) ==
            200);
    TF_IS(&r, "stage", NULL, "SLEEPING");
    T_CHECK(tf_ask(hub, &r, "POST", "/_fake/log",
                   "{\"id\":\"alice/old\",\"which\":\"run\",\"line\":"
                   "\"a line\"}") == 200);
    T_CHECK(tf_ask(hub, &r, "GET", "/api/spaces/alice/old/logs/run", NULL) ==
            200);
    TS_IS(&r, 200, "a line");
    T_CHECK(tf_ask(hub, &r, "GET", "/_fake/space/alice/old", NULL) == 200);
    T_CHECK(ts_flag(&r, "hidden"));
    T_CHECK(tf_ask(hub, &r, "GET", "/_fake/requests", NULL) == 200);
    T_CHECK(hfsb_json_count(r.json.root) == 4); /* its own not counted */
    T_CHECK(tf_ask(hub, &r, "DELETE", "/_fake/requests", NULL) == 200);
    T_CHECK(tf_ask(hub, &r, "GET", "/_fake/requests", NULL) == 200);
    T_STR(r.body, "[]");
    T_CHECK(tf_ask(hub, &r, "GET", "/_fake/other", NULL) == 404);
    ts_drop(&r);
    fh_stop(hub);
}

int main(void) {
    tt_begin();
    TT_RUN(every_shape_of_an_error_is_sent);
    TT_RUN(a_fault_hits_the_nth_request_that_matches);
    TT_RUN(replies_are_cut_at_the_given_place);
    TT_RUN(a_lost_answer_still_takes_effect);
    TT_RUN(delays_hold_one_answer_only);
    TT_RUN(the_edge_finds_the_space_by_host);
    TT_RUN(a_starting_space_answers_with_a_page);
    TT_RUN(an_embedded_space_runs_commands);
    TT_RUN(faults_apply_in_front_of_a_real_server);
    TT_RUN(a_delayed_command_has_run_already);
    TT_RUN(streams_and_large_bodies_pass_the_edge);
    TT_RUN(a_commit_is_built_and_run);
    TT_RUN(builds_and_programs_fail_as_real_ones);
    TT_RUN(the_control_endpoints_do_the_same);
    return tt_end(__FILE__);
}
