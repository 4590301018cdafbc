/* test_agent_sandbox.c - the routes of Kubernetes' agent-sandbox: what its
   clients send, and what they must never get. */
#include "../support/t_server.h"
#include "../support/t_file.h"
#ifdef HFSBI_SPLIT
#include "../../src/dialect/dialect_private.h"
#endif

static const hfsb_str nothing = HFSB_INIT;
static ts_server      srv;      /* its port is that of the dialect */
static unsigned       main_port;
static bool           rooted = true; /* the server has a root */
static bool           inline_work;   /* and no threads */

/* ---- a server ---- */

/* Beneath the root "box"; with `own_port` on a loopback port of its own. */
static void start_with(bool own_port, const hfsb_server_opts *opts,
                       const char *const *env) {
    hfsb_tools_opts          tools = HFSB_INIT;
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_dialect_opts        d = HFSB_INIT;
    hfsb_err                 err = HFSB_INIT;
    (void)mkdir("box", 0755);
    if (rooted) tools.root = HFSB_LIT("box");
    else tools.work_dir = HFSB_LIT("box");
    tools.alloc = tt_alloc();
    tools.env = env;
    box.tools = &tools;
    d.name = "agent-sandbox";
    d.own_port = own_port;
    ts_open(&srv, opts);
    main_port = srv.port;
    if (hfsb_server_add_sandbox(srv.server, &box, &err) != HFSB_OK ||
        hfsb_server_add_dialect(srv.server, &d, own_port ? &srv.port : NULL,
                                &err) != HFSB_OK) {
        printf("no dialect: %s\n", err.msg);
        abort();
    }
    ts_run(&srv);
}

static void start(void) {
    hfsb_server_opts o = HFSB_INIT;
    o.no_threads = inline_work;
    start_with(true, &o, NULL);
}

static void stop(void) {
    ts_end(&srv, false);
    T_CHECK(tt_memory.heap.live == 0);
    t_remove_tree("box");
}

static void get(ts_reply *r, const char *target) {
    ts_call(&srv, r, "GET", target, "", nothing);
}

static void execute(ts_reply *r, const char *fields, const char *command) {
    hfsb_buf body = HFSB_INIT;
    char     all[300];
    if (hfsb_buf_append(&body, HFSB_LIT("{\"command\":")) != HFSB_OK) abort();
    hfsbi_json_put_quoted(&body, hfsb_cstr(command));
    if (hfsb_buf_append(&body, HFSB_LIT("}")) != HFSB_OK) abort();
    snprintf(all, sizeof all, "%s%s", TS_JSON, fields);
    ts_call(&srv, r, "POST", "/execute", all, hfsb_buf_str(&body));
    hfsb_buf_free(&body);
}

/* The reply is exactly this. */
#define IS(r, code, text)                                  \
    (T_CHECK((r)->status == (code)), T_STR(hfsb_buf_str(&(r)->body), text))

/* ---- words ---- */

typedef struct split_case {
    const char *command, *words; /* words: joined by "|", or "!" and why not */
} split_case;

static const split_case splits[] = {
    {"a b", "a|b"},
    {"  a\t\n b  ", "a|b"},
    {"echo 'a b' \"c d\"", "echo|a b|c d"},
    {"a''b\"\"c", "abc"},
    {"'' \"\"", "|"},
    {"a\\ b \\'", "a b|'"},
    {"'a\\b' \"a\\b\" \"a\\\"b\" \"a\\\\b\"", "a\\b|a\\b|a\"b|a\\b"},
    {"'it'\\''s'", "it's"},
    {"\"$HOME `x`\" *?;&|", "$HOME `x`|*?;&|"},
    {"a # b", "a|#|b"},
    {"\xC3\xA9 '\xE2\x82\xAC'", "\xC3\xA9|\xE2\x82\xAC"},
    {"", "!the command is empty"},
    {" \n", "!the command is empty"},
    {"a 'b", "!No closing quotation"},
    {"a \"b", "!No closing quotation"},
    {"a \"b\\\"", "!No closing quotation"},
    {"a \\", "!No escaped character"}};

static void a_command_is_split_as_a_shell_does(void) {
    size_t i, j;
    for (i = 0; i < TT_COUNT(splits); i++) {
        hfsb_buf    out = HFSB_INIT;
        const char *why =
            hfsbi_kube_split(hfsb_cstr(splits[i].command), &out);
        if (why) {
            T_CHECK(splits[i].words[0] == '!' &&
                    strcmp(why, splits[i].words + 1) == 0);
        } else {
            T_CHECK(out.len > 0);
            for (j = 0; j + 1 < out.len; j++)
                if (!out.ptr[j]) out.ptr[j] = '|';
            T_CHECK(hfsb_str_equal(hfsb_str_make(out.ptr, out.len - 1),
                                   hfsb_cstr(splits[i].words)));
        }
        hfsb_buf_free(&out);
    }
}

/* ---- execute ---- */

static void a_command_runs_without_a_shell(void) {
    ts_reply r = HFSB_INIT;
    char     top[PATH_MAX], want[PATH_MAX + 80];
    start();
    execute(&r, "", "printf '%s|' 'a b' \\$HOME *");
    IS(&r, 200, "{\"stdout\":\"a b|$HOME|*|\",\"stderr\":\"\","
                "\"exit_code\":0}");
    execute(&r, "", "sh -c 'echo out; echo err >&2; exit 7'");
    IS(&r, 200, "{\"stdout\":\"out\\n\",\"stderr\":\"err\\n\","
                "\"exit_code\":7}");
    execute(&r, "", "pwd");
    T_CHECK(getcwd(top, sizeof top) != NULL);
    snprintf(want, sizeof want,
             "{\"stdout\":\"%s/box\\n\",\"stderr\":\"\",\"exit_code\":0}",
             top);
    T_CHECK(strcmp(r.body.ptr, want) == 0);
    execute(&r, "", "sh -c 'kill -9 $$'");
    T_CHECK(r.status == 200 && ts_int(&r, "exit_code") == -9);
    execute(&r, "", "printf '\\303\\251\\377x'");
    T_STR(ts_text(&r, "stdout"), "\xC3\xA9\xEF\xBF\xBDx");
    execute(&r, "", "cat"); /* standard input is empty */
    IS(&r, 200, "{\"stdout\":\"\",\"stderr\":\"\",\"exit_code\":0}");
    ts_drop(&r);
    stop();
}

static void a_command_that_cannot_run_has_exit_code_1(void) {
    ts_reply r = HFSB_INIT;
    start();
    execute(&r, "", "no-such-program-here x");
    T_CHECK(r.status == 200 && ts_int(&r, "exit_code") == 1);
    T_CHECK(ts_contains(&r, "\"stderr\":\"Failed to execute command: "));
    execute(&r, "", "echo 'x");
    IS(&r, 200, "{\"stdout\":\"\",\"stderr\":\"Failed to execute command: No "
                "closing quotation\",\"exit_code\":1}");
    execute(&r, "", "");
    T_CHECK(r.status == 200 && ts_int(&r, "exit_code") == 1);
    ts_post(&srv, &r, "/execute", "{}");
    T_CHECK(r.status == 422);
    T_CHECK(ts_contains(&r, "{\"detail\":[{\"type\":\"missing\",\"loc\":["
                            "\"body\",\"command\"]"));
    ts_post(&srv, &r, "/execute", "{\"command\":3}");
    T_CHECK(r.status == 422 && ts_contains(&r, "string_type"));
    ts_post(&srv, &r, "/execute", "[1]");
    T_CHECK(r.status == 422 && ts_contains(&r, "json_invalid"));
    ts_post(&srv, &r, "/execute", "{\"command\":");
    T_CHECK(r.status == 422 && ts_contains(&r, "json_invalid"));
    ts_drop(&r);
    stop();
}

static void an_unknown_dialect_is_refused_with_the_names(void) {
    hfsb_dialect_opts o = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    o.name = "foo";
    ts_open(&srv, NULL);
    T_CHECK(hfsb_server_add_dialect(srv.server, &o, NULL, &err) == HFSB_ARG);
    T_CHECK(strstr(err.msg, "There is no dialect \"foo\". There are: ") &&
            strstr(err.msg, "agent-sandbox") && strstr(err.msg, "e2b") &&
            err.msg[strlen(err.msg) - 1] == '.');
    o.name = NULL;
    T_CHECK(hfsb_server_add_dialect(srv.server, &o, NULL, &err) == HFSB_ARG);
    hfsb_server_close(srv.server);
}

static void an_invalid_timeout_is_refused(void) {
    static const char *const env[] = {"SANDBOX_EXEC_TIMEOUT_SECONDS=5m", NULL};
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    hfsb_dialect_opts        o = HFSB_INIT;
    hfsb_err                 err = HFSB_INIT;
    tools.env = env;
    box.tools = &tools;
    o.name = "agent-sandbox";
    ts_open(&srv, NULL);
    T_CHECK(hfsb_server_add_sandbox(srv.server, &box, NULL) == HFSB_OK);
    T_CHECK(hfsb_server_add_dialect(srv.server, &o, NULL, &err) == HFSB_ARG);
    T_CHECK(strstr(err.msg, "SANDBOX_EXEC_TIMEOUT_SECONDS must be") != NULL);
    hfsb_server_close(srv.server);
}

static void a_timeout_returns_what_was_printed(void) {
    static const char *env[] = {"PATH=/usr/bin:/bin", NULL, NULL};
    ts_reply  r = HFSB_INIT;
    long long began;
    char      seconds[40];
    int       n; /* more, if a busy machine printed nothing by then */
    for (n = 1; n < 20; n *= 4) {
        snprintf(seconds, sizeof seconds, "SANDBOX_EXEC_TIMEOUT_SECONDS=%d", n);
        env[1] = seconds;
        began = hfsb_clock_ms();
        start_with(true, NULL, env);
        execute(&r, "", "sh -c 'echo before; sleep 60'");
        T_CHECK(hfsb_clock_ms() - began < 45000);
        stop();
        if (ts_text(&r, "stdout").len) break;
    }
    IS(&r, 200, "{\"stdout\":\"before\\n\",\"stderr\":\"Failed to execute "
                "command: the command timed out\",\"exit_code\":1}");
    ts_drop(&r);
}

/* A reply has the whole output, or its head and tail. */
static void long_output_is_bounded(void) {
    ts_reply r = HFSB_INIT;
    hfsb_str out;
    start();
    execute(&r, "", "sh -c 'head -c 4000000 /dev/zero | tr \"\\\\0\" x'");
    T_CHECK(ts_text(&r, "stdout").len == 4000000);
    execute(&r, "",
            "sh -c 'echo first; head -c 30000000 /dev/zero | tr \"\\\\0\" x; "
            "echo; echo last; echo err >&2'");
    out = ts_text(&r, "stdout");
    T_CHECK(r.status == 200 && out.len < 7 << 20 && out.len > 6 << 20);
    T_CHECK(hfsb_str_starts(out, HFSB_LIT("first\nxxx")));
    T_CHECK(out.len > 6 && !memcmp(out.ptr + out.len - 6, "\nlast\n", 6));
    T_CHECK(hfsb_str_find(out, HFSB_LIT(" bytes omitted] ...\n")) !=
            HFSB_NPOS);
    T_STR(ts_text(&r, "stderr"), "err\n");
    /* NULs and line feeds take more bytes in JSON than they are */
    execute(&r, "",
            "sh -c 'echo first; head -c 9000000 /dev/zero; echo; echo last; "
            "yes \"\" | head -c 9000000 >&2'");
    T_CHECK(r.status == 200 && r.body.len < 16 << 20);
    out = ts_text(&r, "stdout");
    T_CHECK(hfsb_str_starts(out, HFSB_LIT("first\n")));
    T_CHECK(out.len > 6 && !memcmp(out.ptr + out.len - 6, "\nlast\n", 6));
    ts_drop(&r);
    stop();
}

/* Neither before nor after what is left out. */
static void long_output_is_not_cut_inside_a_character(void) {
    static const char *const before[] = {"", "x", "xx"};
    ts_reply r = HFSB_INIT;
    char     command[200];
    size_t   i;
    start();
    for (i = 0; i < TT_COUNT(before); i++) {
        (void)snprintf(command, sizeof command,
                       "sh -c 'printf \"%s\"; yes \"\342\202\254\" | tr -d "
                       "\"\\n\" | head -c 9000000'",
                       before[i]);
        execute(&r, "", command);
        T_CHECK(r.status == 200 && ts_contains(&r, "omitted"));
        T_CHECK(!ts_contains(&r, "\357\277\275")); /* U+FFFD */
    }
    ts_drop(&r);
    stop();
}

static void a_request_id_runs_a_command_once(void) {
    ts_reply r = HFSB_INIT;
    ts_conn  c;
    int      i;
    start();
    for (i = 0; i < 3; i++) {
        execute(&r, "X-Request-ID: one\r\n",
                "sh -c 'echo ran >>count; echo done'");
        IS(&r, 200, "{\"stdout\":\"done\\n\",\"stderr\":\"\","
                    "\"exit_code\":0}");
    }
    T_FILE("box/count", "ran\n");
    execute(&r, "X-Request-ID: one\r\n", "echo another");
    T_CHECK(r.status == 409 && ts_contains(&r, "{\"message\":\""));
    execute(&r, "X-Request-ID: two\r\n",
            "sh -c 'echo ran >>count; echo done'");
    T_FILE("box/count", "ran\nran\n");
    /* the client goes while it runs; its repeat waits for the same run */
    c = ts_connect(&srv);
    ts_ask(&c, "POST", "/execute", TS_JSON "X-Request-ID: three\r\n",
           HFSB_LIT("{\"command\":\"sh -c 'echo a; echo x >>once; while [ ! "
                    "-e go ]; do sleep 0.05; done; echo b'\"}"));
    for (i = 0; i < 20000 && !t_exists("box/once"); i++) usleep(1000);
    ts_reset(&c);
    c = ts_connect(&srv);
    ts_ask(&c, "POST", "/execute", TS_JSON "X-Request-ID: three\r\n",
           HFSB_LIT("{\"command\":\"sh -c 'echo a; echo x >>once; while [ ! "
                    "-e go ]; do sleep 0.05; done; echo b'\"}"));
    usleep(100000);
    t_put("box/go", "");
    T_CHECK(ts_read(&c, &r, false));
    IS(&r, 200, "{\"stdout\":\"a\\nb\\n\",\"stderr\":\"\",\"exit_code\":0}");
    ts_hang_up(&c);
    T_FILE("box/once", "x\n");
    ts_drop(&r);
    stop();
}

/* Whatever allocation fails: a command that has run is never reported by a
   5xx, which its client would take as leave to run it again. */
static void no_5xx_after_a_start(void) {
    ts_reply r = HFSB_INIT;
    size_t   i, k, total = 0, ran = 0;
    start();
    execute(&r, "", "true"); /* what is made once */
    for (i = 0; i == 0 || i <= 2 * total; i++) {
        ts_conn c;
        k = i > total ? i - total : i; /* it alone, then all after it */
        unlink("box/ran");
        tt_faults(k, i > total);
        c = ts_connect(&srv);
        ts_ask(&c, "POST", "/execute", TS_JSON,
               HFSB_LIT("{\"command\":\"sh -c 'echo x >ran; echo y'\"}"));
        if (ts_read(&c, &r, false)) {
            T_CHECK(r.status == 200 || r.status == 503);
            T_CHECK(r.status != 503 || !t_exists("box/ran"));
            ran += r.status == 200;
        }
        ts_hang_up(&c);
        if (i == 0) total = tt_allocations() + 2;
        tt_faults(0, false);
        execute(&r, "", "true");
    }
    T_CHECK(total > 10 && ran > 2);
    ts_drop(&r);
    stop();
}

/* ---- files of the runtime ---- */

#define CUT "Content-Type: multipart/form-data; boundary=cut\r\n"
#define PART(name, file)                                            \
    "--cut\r\nContent-Disposition: form-data; name=\"" name "\"; " \
    "filename=\"" file "\"\r\nContent-Type: text/plain\r\n\r\n"

static void upload(ts_reply *r, const char *body) {
    ts_call(&srv, r, "POST", "/upload", CUT, hfsb_cstr(body));
}

static void files_are_uploaded(void) {
    ts_reply r = HFSB_INIT;
    start();
    upload(&r, PART("file", "a/b.txt") "content\r\n--cut--\r\n");
    IS(&r, 200, "{\"message\":\"File 'a/b.txt' uploaded successfully.\"}");
    T_FILE("box/a/b.txt", "content");
    upload(&r, PART("file", "/abs.txt") "x\r\n--cut--\r\n");
    IS(&r, 200, "{\"message\":\"File '/abs.txt' uploaded successfully.\"}");
    T_FILE("box/abs.txt", "x");
    upload(&r, PART("file", "../out.txt") "x\r\n--cut--\r\n");
    IS(&r, 403, "{\"message\":\"Access denied\"}");
    T_CHECK(!t_exists("out.txt"));
    T_CHECK(symlink("..", "box/up") == 0);
    upload(&r, PART("file", "up/out.txt") "x\r\n--cut--\r\n");
    IS(&r, 403, "{\"message\":\"Access denied\"}");
    T_CHECK(!t_exists("out.txt"));
    upload(&r, PART("other", "a") "x\r\n--cut--\r\n");
    T_CHECK(r.status == 422 && !t_exists("box/a/a"));
    upload(&r, PART("file", "") "x\r\n--cut--\r\n");
    T_CHECK(r.status == 400);
    upload(&r, PART("file", "1") "x\r\n" PART("file", "2") "y\r\n--cut--\r\n");
    T_CHECK(r.status == 400 && !t_exists("box/2"));
    upload(&r, PART("file", "cut-off") "x");
    T_CHECK(r.status == 400 && !t_exists("box/cut-off"));
    ts_post(&srv, &r, "/upload", "{}");
    T_CHECK(r.status == 415);
    T_CLEAN("box");
    ts_drop(&r);
    stop();
}

static void files_are_downloaded(void) {
    ts_reply r = HFSB_INIT;
    start();
    t_put("outside", "secret");
    (void)mkdir("box/a", 0755);
    t_put("box/a/b c.txt", "content");
    T_CHECK(symlink("../outside", "box/link") == 0);
    get(&r, "/download/a%2Fb%20c.txt");
    IS(&r, 200, "content");
    T_STR(ts_field(&r, "Content-Type"), "application/octet-stream");
    T_STR(ts_field(&r, "Content-Disposition"),
          "attachment; filename*=utf-8''b%20c.txt");
    get(&r, "/download/a/b%20c.txt");
    IS(&r, 200, "content");
    get(&r, "/download/%2Fa%2Fb%20c.txt");
    IS(&r, 200, "content");
    get(&r, "/download/none");
    IS(&r, 404, "{\"message\":\"File not found\"}");
    get(&r, "/download/a");
    IS(&r, 404, "{\"message\":\"File not found\"}");
    get(&r, "/download/..%2Foutside");
    IS(&r, 403, "{\"message\":\"Access denied\"}");
    get(&r, "/download/link");
    IS(&r, 403, "{\"message\":\"Access denied\"}");
    get(&r, "/download/%00");
    T_CHECK(r.status == 400);
    unlink("outside");
    ts_drop(&r);
    stop();
}

static void folders_are_listed(void) {
    ts_reply r = HFSB_INIT;
    start();
    (void)mkdir("box/a", 0755);
    (void)mkdir("box/a/sub", 0755);
    t_put("box/a/f", "12345");
    T_CHECK(symlink("f", "box/a/inner") == 0);
    T_CHECK(symlink("/etc/passwd", "box/a/outer") == 0);
    get(&r, "/list/a");
    T_CHECK(r.status == 200 &&
            hfsb_json_type_of(r.json.root) == HFSB_JSON_ARRAY &&
            hfsb_json_count(r.json.root) == 3);
    T_CHECK(ts_contains(&r, "{\"name\":\"f\",\"size\":5,\"type\":\"file\","
                            "\"mod_time\":"));
    T_CHECK(ts_contains(&r, "{\"name\":\"inner\",\"size\":5,"));
    T_CHECK(ts_contains(&r, "\"name\":\"sub\",") &&
            ts_contains(&r, "\"type\":\"directory\""));
    get(&r, "/list/");
    T_CHECK(r.status == 200 && hfsb_json_count(r.json.root) == 1);
    get(&r, "/list/a%2Fsub");
    IS(&r, 200, "[]");
    get(&r, "/list/a%2Ff");
    IS(&r, 404, "{\"message\":\"Path is not a directory\"}");
    get(&r, "/list/none");
    IS(&r, 404, "{\"message\":\"Path is not a directory\"}");
    get(&r, "/list/..");
    T_CHECK(r.status >= 400 && r.status < 500);
    get(&r, "/list/%2E%2E%2F");
    IS(&r, 403, "{\"message\":\"Access denied\"}");
    get(&r, "/exists/a%2Ff");
    IS(&r, 200, "{\"path\":\"a/f\",\"exists\":true}");
    get(&r, "/exists/a");
    IS(&r, 200, "{\"path\":\"a\",\"exists\":true}");
    get(&r, "/exists/a%2Fnone");
    IS(&r, 200, "{\"path\":\"a/none\",\"exists\":false}");
    get(&r, "/exists/..%2F..%2Fetc");
    IS(&r, 403, "{\"message\":\"Access denied\"}");
    ts_drop(&r);
    stop();
}

/* ---- sandboxd ---- */

static void put(ts_reply *r, const char *target, const char *fields,
                const char *body) {
    ts_call(&srv, r, "PUT", target, fields, hfsb_cstr(body));
}

static void sandboxd_writes_and_reads(void) {
    ts_reply r = HFSB_INIT;
    start();
    put(&r, "/v1/files/d/e/f.txt", "", "hello");
    T_CHECK(r.status == 204);
    T_FILE("box/d/e/f.txt", "hello");
    put(&r, "/v1/files/x.sh?mode=0755", "", "x");
    T_CHECK(r.status == 204 && t_mode("box/x.sh") == 0755);
    put(&r, "/v1/files/m", CUT, PART("file", "ignored") "m\r\n--cut--");
    T_CHECK(r.status == 204 && !t_exists("box/ignored"));
    T_FILE("box/m", "m");
    put(&r, "/v1/files/m?mode=755", "", "x");
    T_CHECK(r.status == 400 && ts_contains(&r, "\"INVALID_ARGUMENT\""));
    put(&r, "/v1/files/d", "", "x");
    T_CHECK(r.status == 400 && ts_contains(&r, "\"INVALID_ARGUMENT\""));
    put(&r, "/v1/files/..%2Fout", "", "x");
    T_CHECK(r.status == 403 && ts_contains(&r, "\"PERMISSION_DENIED\""));
    get(&r, "/v1/files/d/e/f.txt");
    IS(&r, 200, "hello");
    ts_call(&srv, &r, "GET", "/v1/files/d/e/f.txt", "Range: bytes=1-2\r\n",
            nothing);
    IS(&r, 206, "el");
    ts_call(&srv, &r, "HEAD", "/v1/files/d/e/f.txt", "", nothing);
    T_CHECK(r.status == 200);
    ts_call(&srv, &r, "HEAD", "/v1/files/none", "", nothing);
    T_CHECK(r.status == 404);
    get(&r, "/v1/files/none");
    T_CHECK(r.status == 404);
    T_STR(ts_text(&r, "code"), "NOT_FOUND");
    get(&r, "/v1/files/d");
    T_CHECK(r.status == 200);
    T_STR(ts_text(&r, "path"), "/d");
    T_CHECK(ts_contains(&r, "\"entries\":[{\"name\":\"e\",\"size\":"));
    T_CHECK(ts_contains(&r, "\"type\":\"directory\",\"modified_at\":\"2") &&
            ts_contains(&r, "Z\",\"mode\":\"0755\"}]}"));
    ts_call(&srv, &r, "HEAD", "/v1/files/d", "", nothing);
    T_CHECK(r.status == 200);
    ts_drop(&r);
    stop();
}

static void remove_at(ts_reply *r, const char *target) {
    ts_call(&srv, r, "DELETE", target, "", nothing);
}

static void sandboxd_removes(void) {
    ts_reply r = HFSB_INIT;
    start();
    (void)mkdir("box/d", 0755);
    t_put("box/d/f", "x");
    t_put("box/g", "x");
    remove_at(&r, "/v1/files/g");
    T_CHECK(r.status == 204 && !t_exists("box/g"));
    remove_at(&r, "/v1/files/g");
    T_CHECK(r.status == 404);
    remove_at(&r, "/v1/files/d");
    T_CHECK(r.status == 409 && t_exists("box/d/f"));
    T_STR(ts_text(&r, "code"), "CONFLICT");
    remove_at(&r, "/v1/files/d?recursive=true");
    T_CHECK(r.status == 204 && !t_exists("box/d"));
    (void)mkdir("box/d", 0755);
    t_put("box/d/f", "x");
    remove_at(&r, "/v1/files/");
    T_CHECK(r.status >= 400 && r.status < 500 && t_exists("box/d/f"));
    remove_at(&r, "/v1/files/?recursive=true");
    T_CHECK(r.status == 204 && t_exists("box") && !t_exists("box/d"));
    ts_drop(&r);
    stop();
}

static void health_and_metadata(void) {
    static const char *const env[] = {"PATH=/usr/bin:/bin", "SANDBOX_A=1",
                                      "SANDBOX_TOKEN=2", "SANDBOX_MY_KEY=3",
                                      "OTHER=4", NULL};
    ts_reply r = HFSB_INIT;
    start_with(true, NULL, env);
    get(&r, "/");
    IS(&r, 200, "{\"status\":\"ok\",\"message\":\"Sandbox Runtime is "
                "active.\"}");
    get(&r, "/v1/health");
    IS(&r, 200, "{\"status\":\"ok\",\"uptime_seconds\":0}");
    get(&r, "/v1/metadata");
    IS(&r, 200, "{\"env\":{\"SANDBOX_A\":\"1\"}}");
    get(&r, "/none");
    IS(&r, 404, "{\"message\":\"Not Found\"}");
    ts_drop(&r);
    stop();
}

/* Work that is done before the function that starts it returns. */
static void files_work_without_threads(void) {
    inline_work = true;
    files_are_uploaded();
    files_are_downloaded();
    folders_are_listed();
    sandboxd_writes_and_reads();
    sandboxd_removes();
    inline_work = false;
}

/* Without a root of the server the working directory is one. */
static void a_server_without_a_root_has_one_here(void) {
    ts_reply r = HFSB_INIT;
    rooted = false;
    start();
    t_put("outside", "secret");
    t_put("box/f", "inside");
    get(&r, "/download/f");
    IS(&r, 200, "inside");
    get(&r, "/download/..%2Foutside");
    IS(&r, 403, "{\"message\":\"Access denied\"}");
    upload(&r, PART("file", "../x") "x\r\n--cut--\r\n");
    IS(&r, 403, "{\"message\":\"Access denied\"}");
    execute(&r, "", "ls");
    T_STR(ts_text(&r, "stdout"), "f\n");
    unlink("outside");
    ts_drop(&r);
    stop();
    rooted = true;
}

/* ---- the end of the server ---- */

/* A stop with drain_ms: health is 503 at once, on new connections too, and
   all else goes on. */
static void health_turns_to_503_when_a_drain_begins(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_reply         r = HFSB_INIT;
    int              i;
    o.drain_ms = 30000; /* the second stop ends it */
    start_with(true, &o, NULL);
    get(&r, "/v1/health");
    T_CHECK(r.status == 200);
    hfsb_server_stop(srv.server);
    for (i = 0; i < 1000; i++) {
        get(&r, "/v1/health");
        if (r.status == 503) break;
        usleep(1000);
    }
    T_CHECK(r.status == 503);
    T_STR(ts_text(&r, "code"), "UNAVAILABLE");
    get(&r, "/");
    IS(&r, 503, "{\"message\":\"The server is stopping.\"}");
    execute(&r, "", "echo still");
    T_CHECK(r.status == 200);
    ts_drop(&r);
    stop();
}

/* Without drain_ms connections that are open get 503 while a command runs. */
static void open_connections_get_503_when_a_stop_begins(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_reply         r = HFSB_INIT;
    ts_conn          busy, idle[2];
    int              i;
    o.no_threads = inline_work;
    o.stop_ms = 60000;
    start_with(true, &o, NULL);
    for (i = 0; i < 2; i++) {
        idle[i] = ts_connect(&srv);
        ts_ask(&idle[i], "GET", "/", "", nothing);
        T_CHECK(ts_read(&idle[i], &r, false) && r.status == 200);
    }
    busy = ts_connect(&srv);
    ts_ask(&busy, "POST", "/execute", TS_JSON,
           HFSB_LIT("{\"command\":\"sh -c 'echo >begun; while [ ! -e "
                    "go ]; do sleep 0.05; done; echo end'\"}"));
    for (i = 0; i < 20000 && !t_exists("box/begun"); i++) usleep(1000);
    hfsb_server_stop(srv.server);
    usleep(50000);
    ts_ask(&idle[0], "GET", "/", "", nothing);
    T_CHECK(ts_read(&idle[0], &r, false));
    IS(&r, 503, "{\"message\":\"The server is stopping.\"}");
    T_CHECK(ts_closes(&idle[0], 20000));
    t_put("box/go", "");
    T_CHECK(ts_read(&busy, &r, false));
    IS(&r, 200, "{\"stdout\":\"end\\n\",\"stderr\":\"\",\"exit_code\":0}");
    T_CHECK(ts_closes(&idle[1], 20000));
    ts_hang_up(&idle[0]), ts_hang_up(&idle[1]), ts_hang_up(&busy);
    ts_drop(&r);
    stop();
}

/* ---- who may ---- */

/* A request without the token, with that Host; returns the status. */
static int stranger(unsigned port, const char *target, const char *host) {
    ts_reply r = HFSB_INIT;
    ts_conn  c;
    char     text[300];
    int      status;
    ts_server at = srv;
    at.port = port;
    c = ts_connect(&at);
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", target,
             host);
    ts_send(&c, hfsb_cstr(text));
    T_CHECK(ts_read(&c, &r, false));
    status = r.status;
    ts_hang_up(&c);
    ts_drop(&r);
    return status;
}

static void a_token_is_needed_but_on_a_local_port(void) {
    hfsb_server_opts open_to_all = HFSB_INIT;
    start();
    T_CHECK(stranger(srv.port, "/", "127.0.0.1") == 200);
    T_CHECK(stranger(srv.port, "/list/", "127.0.0.1") == 200);
    T_CHECK(stranger(srv.port, "/list/", "evil.example") == 421);
    /* a page of another server here must not use it */
    T_CHECK(stranger(srv.port, "/list/",
                     "127.0.0.1\r\nOrigin: http://127.0.0.1:3000") == 403);
    T_CHECK(stranger(srv.port, "/list/",
                     "127.0.0.1:1\r\nOrigin: http://127.0.0.1:1") == 200);
    T_CHECK(stranger(srv.port, "/api/jobs", "127.0.0.1") == 404);
    T_CHECK(stranger(main_port, "/list/", "127.0.0.1") == 404);
    T_CHECK(stranger(main_port, "/api/jobs", "127.0.0.1") == 401);
    stop();
    start_with(false, NULL, NULL); /* beside /api */
    T_CHECK(stranger(srv.port, "/", "127.0.0.1") == 200);
    T_CHECK(stranger(srv.port, "/v1/health", "127.0.0.1") == 200);
    T_CHECK(stranger(srv.port, "/list/", "127.0.0.1") == 401);
    T_CHECK(stranger(srv.port, "/v1/metadata", "127.0.0.1") == 401);
    T_CHECK(stranger(srv.port, "/execute", "127.0.0.1") == 405);
    stop();
    open_to_all.no_auth = true;
    start_with(false, &open_to_all, NULL);
    T_CHECK(stranger(srv.port, "/list/", "127.0.0.1") == 200);
    T_CHECK(stranger(srv.port, "/list/", "evil.example") == 421);
    stop();
}

/* Also a loopback port of its own waits for the token. */
static void with_a_late_token_nothing_is_open(void) {
    static const char *const env[] = {"SANDBOX_A=1", "SANDBOX_B=1", NULL};
    hfsb_server_opts         o = HFSB_INIT;
    ts_reply                 r = HFSB_INIT;
    unsigned                 own;
    o.late_token = true;
    start_with(true, &o, env);
    execute(&r, "", "touch mark");
    T_CHECK(r.status >= 400);
    T_CHECK(access("box/mark", F_OK) != 0);
    get(&r, "/v1/health");
    T_CHECK(r.status == 200);
    own = srv.port;
    srv.port = main_port;
    ts_call(&srv, &r, "POST", "/init", TS_JSON,
            HFSB_LIT("{\"token\":\"" TS_TOKEN "\",\"env\":{\"SANDBOX_A\":\"2\"}}"));
    TS_IS(&r, 200, NULL);
    srv.port = own;
    T_CHECK(stranger(srv.port, "/v1/metadata", "127.0.0.1") == 401);
    execute(&r, "", "sh -c 'echo $SANDBOX_A'");
    T_STR(ts_text(&r, "stdout"), "2\n");
    get(&r, "/v1/metadata");
    T_STR(hfsb_buf_str(&r.body),
          "{\"env\":{\"SANDBOX_B\":\"1\",\"SANDBOX_A\":\"2\"}}");
    ts_drop(&r);
    stop();
}

int main(void) {
    tt_begin();
    (void)umask(022);
    TT_RUN(a_command_is_split_as_a_shell_does);
    TT_RUN(a_command_runs_without_a_shell);
    TT_RUN(a_command_that_cannot_run_has_exit_code_1);
    TT_RUN(an_unknown_dialect_is_refused_with_the_names);
    TT_RUN(an_invalid_timeout_is_refused);
    TT_RUN(a_timeout_returns_what_was_printed);
    TT_RUN(long_output_is_bounded);
    TT_RUN(long_output_is_not_cut_inside_a_character);
    TT_RUN(a_request_id_runs_a_command_once);
    TT_RUN(no_5xx_after_a_start);
    TT_RUN(files_are_uploaded);
    TT_RUN(files_are_downloaded);
    TT_RUN(folders_are_listed);
    TT_RUN(sandboxd_writes_and_reads);
    TT_RUN(sandboxd_removes);
    TT_RUN(health_and_metadata);
    TT_RUN(files_work_without_threads);
    TT_RUN(a_server_without_a_root_has_one_here);
    TT_RUN(health_turns_to_503_when_a_drain_begins);
    TT_RUN(open_connections_get_503_when_a_stop_begins);
    TT_RUN(a_token_is_needed_but_on_a_local_port);
    TT_RUN(with_a_late_token_nothing_is_open);
    return TT_END();
}
