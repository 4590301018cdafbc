/* test_page.c - the page at "/", and what only it needs: raw output, a
   terminal, figures and ports, the plan, who asks. */
#include "../support/t_server.h"
#ifdef HFSBI_SPLIT
#include "../../src/api/api_private.h"
#endif

static const hfsb_str no_body = HFSB_INIT;

#define HTML "Accept: text/html,application/xhtml+xml\r\n"

/* Sends a request without the token. */
static void stranger(const ts_server *s, ts_reply *r, const char *method,
                     const char *target, const char *fields) {
    ts_conn  c = ts_connect(s);
    hfsb_buf out = HFSB_INIT;
    T_CHECK(hfsb_buf_printf(&out, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
                            method, target, fields) == HFSB_OK);
    T_CHECK(ts_send(&c, hfsb_buf_str(&out)));
    T_CHECK(ts_read(&c, r, !strcmp(method, "HEAD")));
    hfsb_buf_free(&out);
    ts_hang_up(&c);
}

static bool field_has(const ts_reply *r, const char *name, const char *part) {
    return hfsb_str_find(ts_field(r, name), hfsb_cstr(part)) != HFSB_NPOS;
}

/* True if the policy has the digest of the element's text. */
static bool is_allowed(const ts_reply *r, const char *from, const char *to) {
    unsigned char digest[HFSB_SHA256_SIZE];
    hfsb_sha256   sha;
    hfsb_buf      text = HFSB_INIT;
    const char   *at = strstr(r->body.ptr, from), *end;
    bool          found;
    at = at ? at + strlen(from) : NULL;
    end = at ? strstr(at, to) : NULL;
    if (!end || end == at) return false;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, hfsb_str_make(at, (size_t)(end - at)));
    hfsb_sha256_finish(&sha, digest);
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("'sha256-")) == HFSB_OK);
    T_CHECK(hfsb_base64_encode(
                hfsb_str_make((const char *)digest, sizeof digest), &text) ==
            HFSB_OK);
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("'")) == HFSB_OK);
    found = field_has(r, "Content-Security-Policy", text.ptr);
    hfsb_buf_free(&text);
    return found;
}

/* ---- the page ---- */

static void a_browser_gets_the_page_without_a_token(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    hfsb_str  length;
    char      etag[100];
    ts_start(&s, NULL, NULL);
    stranger(&s, &r, "GET", "/", HTML);
    T_CHECK(r.status == 200 && r.body.len > 1000 && r.body.len < 40000);
    T_STR(ts_field(&r, "Content-Type"), "text/html; charset=utf-8");
    T_CHECK(!ts_field(&r, "Content-Encoding").ptr);
    T_CHECK(is_allowed(&r, "<script>", "</script>"));
    T_CHECK(is_allowed(&r, "<style>", "</style>"));
    T_CHECK(field_has(&r, "Content-Security-Policy", "default-src 'none'"));
    T_CHECK(field_has(&r, "Content-Security-Policy",
                      "frame-ancestors 'self' https://huggingface.co "
                      "https://*.huggingface.co;"));
    T_CHECK(field_has(&r, "Content-Security-Policy",
                      "require-trusted-types-for 'script'"));
    T_CHECK(!field_has(&r, "Content-Security-Policy", "unsafe"));
    T_STR(ts_field(&r, "X-Content-Type-Options"), "nosniff");
    T_STR(ts_field(&r, "Referrer-Policy"), "no-referrer");
    T_CHECK(field_has(&r, "Vary", "Accept"));
    T_CHECK(!ts_contains(&r, TS_TOKEN));
    /* HEAD has the same length, and a browser that has the page keeps it */
    length = ts_field(&r, "Content-Length");
    snprintf(etag, sizeof etag, HTML "If-None-Match: %.*s\r\n",
             (int)ts_field(&r, "ETag").len, ts_field(&r, "ETag").ptr);
    T_CHECK(strtoul(length.ptr, NULL, 10) == r.body.len);
    stranger(&s, &r, "GET", "/", etag);
    T_CHECK(r.status == 304 && !r.body.len);
    stranger(&s, &r, "HEAD", "/", HTML);
    T_CHECK(r.status == 200 && ts_field(&r, "Content-Length").len == 5);
    ts_drop(&r);
    ts_end(&s, true);
}

static void other_clients_find_nothing_at_the_root(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    stranger(&s, &r, "GET", "/", "");
    TS_REFUSED(&r, 404, "Not Found");
    stranger(&s, &r, "GET", "/", "Accept: */*\r\n");
    TS_REFUSED(&r, 404, "Not Found");
    stranger(&s, &r, "POST", "/", "Content-Length: 0\r\n");
    TS_REFUSED(&r, 404, "Not Found");
    stranger(&s, &r, "POST", "/", HTML "Content-Length: 0\r\n");
    TS_REFUSED(&r, 405, "Method Not Allowed");
    ts_drop(&r);
    ts_end(&s, true);
}

static void hello(void *user, hfsb_request *request) {
    hfsb_reply(request, 200, "text/plain", hfsb_cstr((const char *)user));
}

static void a_route_may_be_for_one_type_only(void) {
    static char              plain[] = "plain", html[] = "html";
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_route               route = HFSB_INIT;
    ts_server                s;
    ts_reply                 r = HFSB_INIT;
    ts_open(&s, NULL);
    box.no_page = true;
    T_CHECK(hfsb_server_add_sandbox(s.server, &box, NULL) == HFSB_OK);
    route.method = "GET";
    route.path = "/";
    route.fn = hello;
    route.accept = "text/html";
    route.user = html;
    T_CHECK(hfsb_server_add(s.server, &route, NULL) == HFSB_OK);
    T_CHECK(hfsb_server_add(s.server, &route, NULL) == HFSB_ARG);
    route.accept = NULL;
    route.user = plain;
    T_CHECK(hfsb_server_add(s.server, &route, NULL) == HFSB_OK);
    T_CHECK(hfsb_server_add(s.server, &route, NULL) == HFSB_ARG);
    ts_run(&s);
    ts_call(&s, &r, "GET", "/", HTML, no_body);
    TS_IS(&r, 200, "html");
    ts_get(&s, &r, "/");
    TS_IS(&r, 200, "plain");
    ts_drop(&r);
    ts_end(&s, true);
}

static void without_the_page_no_raw_output_is_kept(void) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    ts_server                s;
    ts_reply                 r = HFSB_INIT;
    char                     path[200];
    box.no_page = true;
    ts_start(&s, NULL, &box);
    stranger(&s, &r, "GET", "/", HTML);
    TS_REFUSED(&r, 404, "Not Found");
    ts_post(&s, &r, "/api/bash", "{\"command\":\"echo x\"}");
    snprintf(path, sizeof path, "/api/jobs/%.*s/raw",
             (int)ts_text(&r, "id").len, ts_text(&r, "id").ptr);
    ts_get(&s, &r, path);
    TS_REFUSED(&r, 404, "kept as text only");
    ts_drop(&r);
    ts_end(&s, true);
}

/* ---- raw output ---- */

/* Runs a command; the path of its raw output. */
static const char *run(const ts_server *s, const char *json) {
    static char path[200];
    ts_reply    r = HFSB_INIT;
    ts_post(s, &r, "/api/bash", json);
    T_CHECK(r.status == 200);
    snprintf(path, sizeof path, "/api/jobs/%.*s/raw",
             (int)ts_text(&r, "id").len, ts_text(&r, "id").ptr);
    ts_drop(&r);
    return path;
}

static void raw_output_has_its_escapes(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    ts_get(&s, &r,
           run(&s, "{\"command\":\"printf '\\\\033[31mred\\\\033[0m\\\\r\\\\n'; "
                   "printf '\\\\377' >&2\",\"merge_stderr\":true}"));
    T_CHECK(r.status == 200 && r.chunked);
    T_STR(hfsb_buf_str(&r.body), "\033[31mred\033[0m\r\n\377");
    T_STR(ts_field(&r, "Content-Type"), "application/octet-stream");
    T_STR(ts_field(&r, "Cache-Control"), "no-store");
    ts_get(&s, &r, "/api/jobs/none/raw");
    TS_REFUSED(&r, 404, "No such job");
    stranger(&s, &r, "GET", "/api/jobs/none/raw", "");
    TS_REFUSED(&r, 401, NULL);
    ts_call(&s, &r, "HEAD", run(&s, "{\"command\":\"true\"}"), "", no_body);
    T_CHECK(r.status == 200);
    ts_drop(&r);
    ts_end(&s, true);
}

static void raw_output_comes_while_the_command_runs(void) {
    ts_server   s;
    ts_conn     c;
    ts_reply    r = HFSB_INIT;
    const char *path;
    char        input[220];
    ts_start(&s, NULL, NULL);
    path = run(&s, "{\"command\":\"echo one; read x; echo two-$x\","
                   "\"background\":true}");
    c = ts_connect(&s);
    ts_ask(&c, "GET", path, "", no_body);
    T_CHECK(ts_await(&c, "one\n", 20000));
    snprintf(input, sizeof input, "%.*s/input", (int)strlen(path) - 4, path);
    ts_post(&s, &r, input, "{\"text\":\"yes\\n\"}");
    T_CHECK(ts_await(&c, "two-yes\n", 20000));
    T_CHECK(ts_await(&c, "\r\n0\r\n\r\n", 20000)); /* the end */
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, true);
}

/* A client that does not read neither holds the command nor loses the end. */
static void a_command_does_not_wait_for_those_who_watch(void) {
    ts_server   s;
    ts_conn     c;
    ts_reply    r = HFSB_INIT;
    const char *path;
    ts_start(&s, NULL, NULL);
    path = run(&s, "{\"command\":\"sleep 0.3; head -c 30000000 /dev/zero | "
                   "tr '\\\\0' x; echo; echo the-end\",\"background\":true}");
    c = ts_connect(&s);
    ts_ask(&c, "GET", path, "", no_body);
    T_CHECK(ts_commands(&s, 0, 0));
    T_CHECK(ts_read(&c, &r, false));
    T_CHECK(r.status == 200 && ts_contains(&r, " bytes skipped]"));
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.body), HFSB_LIT("\nthe-end\n")));
    ts_get(&s, &r, path);
    T_CHECK(ts_contains(&r, " bytes skipped]") &&
            hfsb_str_ends(hfsb_buf_str(&r.body), HFSB_LIT("\nthe-end\n")));
    T_CHECK(r.body.len < 500000);
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, true);
}

/* ... also while the command goes on, but says nothing more. */
static void a_slow_watcher_sees_what_came_last(void) {
    long long   until = hfsb_clock_ms() + 60000;
    ts_server   s;
    ts_conn     c;
    const char *path;
    ts_start(&s, NULL, NULL);
    path = run(&s, "{\"command\":\"sleep 0.3; head -c 30000000 /dev/zero | "
                   "tr '\\\\0' x; echo; echo the-end; touch said; sleep "
                   "1000\",\"background\":true}");
    c = ts_connect(&s);
    ts_ask(&c, "GET", path, "", no_body);
    while (access("said", F_OK) != 0 && hfsb_clock_ms() < until)
        tt_sleep_ms(20);
    tt_sleep_ms(200); /* it has been read, too */
    T_CHECK(ts_await(&c, "\nthe-end\n", 20000));
    T_CHECK(hfsb_str_find(hfsb_buf_str(&c.in),
                          HFSB_LIT(" bytes skipped]\n")) != HFSB_NPOS);
    T_CHECK(unlink("said") == 0);
    ts_end(&s, true);
    ts_hang_up(&c);
}

static void one_who_watches_may_leave(void) {
    ts_server   s;
    ts_conn     c;
    const char *path;
    ts_start(&s, NULL, NULL);
    path = run(&s, "{\"command\":\"while :; do echo x; done\","
                   "\"background\":true}");
    c = ts_connect(&s);
    ts_ask(&c, "GET", path, "", no_body);
    T_CHECK(ts_await(&c, "x\nx\n", 20000));
    ts_reset(&c);
    c = ts_connect(&s);
    ts_ask(&c, "GET", path, "", no_body);
    T_CHECK(ts_await(&c, "x\nx\n", 20000));
    T_CHECK(ts_commands(&s, 1, 0));
    ts_end(&s, true); /* while somebody reads */
    ts_hang_up(&c);
}

/* ---- a terminal ---- */

#define SOCKET                                                        \
    "Connection: Upgrade\r\nUpgrade: websocket\r\n"                   \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "                \
    "dGhlIHNhbXBsZSBub25jZQ==\r\n"
/* TS_TOKEN in hexadecimal */
#define HEX "612d746f6b656e2d6f662d7468652d7465737473"

/* Starts a server whose shell reads no file of the user's. */
static void start_plain(ts_server *s, size_t max_running) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    tools.shell = "/bin/sh";
    tools.max_running = max_running;
    box.tools = &tools;
    ts_start(s, NULL, &box);
}

static ts_conn dial(const ts_server *s, const char *target,
                    const char *fields) {
    ts_conn  c = ts_connect(s);
    hfsb_buf out = HFSB_INIT;
    T_CHECK(hfsb_buf_printf(&out,
                            "GET %s HTTP/1.1\r\nHost: localhost\r\n" SOCKET
                            "%s\r\n",
                            target, fields) == HFSB_OK);
    T_CHECK(ts_send(&c, hfsb_buf_str(&out)));
    T_CHECK(ts_await(&c, "\r\n\r\n", 20000));
    hfsb_buf_free(&out);
    return c;
}

static bool is_open(const ts_conn *c) {
    return hfsb_str_starts(hfsb_buf_str(&c->in), HFSB_LIT("HTTP/1.1 101 "));
}

static void put_message(hfsb_buf *out, hfsbi_ws_opcode opcode,
                        const char *text) {
    static const unsigned char mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    char                       head[HFSBI_WS_HEAD];
    size_t n = hfsbi_ws_write_head(opcode, true, strlen(text), mask, head), at;
    T_CHECK(hfsb_buf_append(out, hfsb_str_make(head, n)) == HFSB_OK);
    at = out->len;
    T_CHECK(hfsb_buf_append(out, hfsb_cstr(text)) == HFSB_OK);
    hfsbi_ws_mask(out->ptr + at, strlen(text), mask, 0);
}

static void send_message(ts_conn *c, hfsbi_ws_opcode opcode,
                         const char *text) {
    hfsb_buf out = HFSB_INIT;
    put_message(&out, opcode, text);
    T_CHECK(ts_send(c, hfsb_buf_str(&out)));
    hfsb_buf_free(&out);
}

/* A connection with a shell on a terminal. */
static ts_conn dial_shell(const ts_server *s) {
    ts_conn c = dial(s, "/api/exec",
                     "X-Sandbox-Authorization: Bearer " TS_TOKEN "\r\n");
    send_message(&c, HFSBI_WS_TEXT, "{\"cols\":80,\"rows\":24}");
    return c;
}

/* Waits until the payloads of the frames, joined, contain `part`. */
static bool prints(ts_conn *c, hfsb_buf *screen, const char *part) {
    long long end = hfsb_clock_ms() + 20000;
    for (;;) {
        const unsigned char *p = (const unsigned char *)c->in.ptr;
        size_t               head = 2, n = c->in.len > 1 ? p[1] : 0;
        if (n == 126) head = 4;
        if (n == 126 && c->in.len >= 4) n = (size_t)p[2] << 8 | p[3];
        if (c->in.len >= head && c->in.len >= head + n) {
            T_CHECK(hfsb_buf_append(screen, hfsb_str_make(c->in.ptr + head,
                                                          n)) == HFSB_OK);
            ts_shift(c, head + n);
            continue;
        }
        if (hfsb_str_find(hfsb_buf_str(screen), hfsb_cstr(part)) != HFSB_NPOS)
            return true;
        if (c->ended || hfsb_clock_ms() > end) return false;
        (void)ts_more(c, 50);
    }
}

/* Drops the head of the reply. */
static void begin_frames(ts_conn *c) {
    ts_shift(c, hfsb_str_find(hfsb_buf_str(&c->in), HFSB_LIT("\r\n\r\n")) + 4);
}

static void a_terminal_takes_keys_and_sizes(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    hfsb_buf  screen = HFSB_INIT;
    ts_conn   c;
    start_plain(&s, 0);
    c = dial(&s, "/api/exec",
             "Sec-WebSocket-Protocol: hfsb-exec, hfsb.bearer." HEX "\r\n");
    T_CHECK(is_open(&c));
    T_CHECK(ts_await(&c, "\r\nSec-WebSocket-Protocol: hfsb-exec\r\n", 20000));
    begin_frames(&c);
    send_message(&c, HFSBI_WS_TEXT,
                 "{\"cols\":91,\"rows\":31,\"who\":\"page\"}");
    send_message(&c, HFSBI_WS_BINARY, "stty size; echo $TERM:$NO_COLOR.\r");
    T_CHECK(prints(&c, &screen, "31 91\r\n"));
    T_CHECK(prints(&c, &screen, "xterm-256color:.\r\n"));
    send_message(&c, HFSBI_WS_TEXT, "{\"cols\":0,\"rows\":9}");
    send_message(&c, HFSBI_WS_TEXT, "{\"cols\":101,\"rows\":41}");
    send_message(&c, HFSBI_WS_BINARY, "stty size\r");
    T_CHECK(prints(&c, &screen, "41 101\r\n"));
    ts_get(&s, &r, "/api/jobs");
    T_CHECK(ts_contains(&r, "\"who\":\"page\""));
    send_message(&c, HFSBI_WS_BINARY, "exit 5\r");
    T_CHECK(prints(&c, &screen, "exit 5\r\n"));
    T_CHECK(prints(&c, &screen, "{\"exit_code\":5,"));
    T_CHECK(ts_closes(&c, 20000));
    T_CHECK(ts_commands(&s, 0, 0));
    ts_hang_up(&c);
    hfsb_buf_free(&screen);
    ts_drop(&r);
    ts_end(&s, true);
}

/* There is one place for commands, which another one has. */
static void keys_wait_for_a_shell_that_has_not_started(void) {
    ts_server s;
    hfsb_buf  screen = HFSB_INIT;
    ts_conn   c;
    start_plain(&s, 1);
    (void)run(&s, "{\"command\":\"until [ -e go ]; do sleep 0.05; done\","
                  "\"background\":true}");
    c = dial_shell(&s);
    T_CHECK(is_open(&c) && ts_commands(&s, 1, 1));
    begin_frames(&c);
    send_message(&c, HFSBI_WS_TEXT, "{\"cols\":77,\"rows\":17}");
    send_message(&c, HFSBI_WS_BINARY, "stty size; echo early-$((1 + 1))\r");
    tt_put("go", HFSB_LIT(""));
    T_CHECK(prints(&c, &screen, "17 77\r\n"));
    T_CHECK(prints(&c, &screen, "early-2\r\n"));
    ts_hang_up(&c);
    hfsb_buf_free(&screen);
    T_CHECK(unlink("go") == 0);
    ts_end(&s, true);
}

/* Messages that come together with the first one. */
static void sizes_and_signals_wait_for_the_program(void) {
    static const char *const first[] = {"{\"cols\":80,\"rows\":24}",
                                        "{\"argv\":[\"sleep\",\"60\"]}"};
    static const char *const next[] = {"{\"cols\":77,\"rows\":17}",
                                       "{\"signal\":15}"};
    static const char *const shown[] = {"17 77\r\n", "\"signal\":15"};
    ts_server                s;
    ts_conn                  c;
    size_t                   i;
    start_plain(&s, 1);
    for (i = 0; i < 2; i++) {
        hfsb_buf screen = HFSB_INIT, out = HFSB_INIT;
        (void)run(&s, "{\"command\":\"until [ -e go ]; do sleep 0.05; done; "
                      "rm go\",\"background\":true}");
        c = dial(&s, "/api/exec",
                 "X-Sandbox-Authorization: Bearer " TS_TOKEN "\r\n");
        T_CHECK(is_open(&c));
        begin_frames(&c);
        put_message(&out, HFSBI_WS_TEXT, first[i]);
        put_message(&out, HFSBI_WS_TEXT, next[i]);
        T_CHECK(ts_send(&c, hfsb_buf_str(&out)) && ts_commands(&s, 1, 1));
        if (i == 0) send_message(&c, HFSBI_WS_BINARY, "stty size\r");
        tt_put("go", HFSB_LIT(""));
        T_CHECK(prints(&c, &screen, shown[i]));
        ts_hang_up(&c);
        T_CHECK(ts_commands(&s, 0, 0));
        hfsb_buf_free(&screen);
        hfsb_buf_free(&out);
    }
    ts_end(&s, true);
}

static void a_terminal_ends_with_its_client(void) {
    ts_server s;
    ts_conn   c;
    start_plain(&s, 0);
    c = dial_shell(&s);
    T_CHECK(is_open(&c) && ts_commands(&s, 1, 0));
    send_message(&c, HFSBI_WS_BINARY, "sleep 60\r");
    tt_sleep_ms(200);
    ts_reset(&c);
    T_CHECK(ts_commands(&s, 0, 0));
    c = dial_shell(&s);
    T_CHECK(is_open(&c) && ts_commands(&s, 1, 0));
    ts_end(&s, false); /* with its shell */
    ts_hang_up(&c);
}

static void a_terminal_needs_the_token(void) {
    static const struct {
        const char *fields, *status;
    } cases[] = {
        {"", "401"},
        {"Sec-WebSocket-Protocol: hfsb-exec\r\n", "401"},
        {"Sec-WebSocket-Protocol: hfsb-exec, hfsb.bearer.\r\n", "401"},
        {"Sec-WebSocket-Protocol: hfsb-exec, hfsb.bearer.61\r\n", "401"},
        {"Sec-WebSocket-Protocol: hfsb-exec, hfsb.bearer.zz\r\n", "401"},
        {"Sec-WebSocket-Protocol: hfsb-exec, hfsb.bearer." HEX "0\r\n", "401"},
        {"Sec-WebSocket-Protocol: hfsb-exec, hfsb.bearer." HEX "61\r\n", "401"},
        {"Sec-WebSocket-Protocol: hfsb.bearer." HEX
         "\r\nSec-WebSocket-Protocol: hfsb.bearer." HEX "\r\n",
         "401"},
        {"X-Sandbox-Authorization: Bearer wrong\r\nSec-WebSocket-Protocol: "
         "hfsb-exec, hfsb.bearer." HEX "\r\n",
         "401"},
        {"Origin: https://evil.example\r\nSec-WebSocket-Protocol: hfsb-exec, "
         "hfsb.bearer." HEX "\r\n",
         "403"},
        /* before a private Space the Hub's token is here */
        {"Authorization: Bearer hub\r\nSec-WebSocket-Protocol: hfsb-exec, "
         "hfsb.bearer." HEX "\r\n",
         "101"},
        {"Origin: http://localhost:1\r\nSec-WebSocket-Protocol: hfsb-exec, "
         "hfsb.bearer." HEX "\r\n",
         "101"}};
    ts_server s;
    size_t    i;
    start_plain(&s, 0);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        ts_conn c = dial(&s, "/api/exec", cases[i].fields);
        if (strncmp(c.in.ptr + 9, cases[i].status, 3) != 0)
            printf("%s%s\n", cases[i].fields, c.in.ptr);
        T_CHECK(strncmp(c.in.ptr + 9, cases[i].status, 3) == 0);
        ts_hang_up(&c);
    }
    ts_end(&s, true);
}

/* No preflight comes before a WebSocket: the page of any other server on this
   machine would get a shell. */
static void without_a_token_only_our_page_gets_a_shell(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s;
    ts_conn          c;
    o.no_auth = true;
    ts_start(&s, &o, NULL);
    c = dial(&s, "/api/exec", "Origin: http://localhost:3000\r\n");
    T_CHECK(strncmp(c.in.ptr, "HTTP/1.1 403 ", 13) == 0);
    ts_hang_up(&c);
    c = dial(&s, "/api/exec", "Origin: http://localhost\r\n");
    T_CHECK(is_open(&c));
    ts_hang_up(&c);
    c = dial(&s, "/api/exec", "");
    T_CHECK(is_open(&c));
    ts_hang_up(&c);
    ts_end(&s, true);
}

static void a_terminal_is_a_websocket(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    start_plain(&s, 0);
    ts_get(&s, &r, "/api/exec");
    TS_REFUSED(&r, 426, NULL);
    T_CHECK(ts_commands(&s, 0, 0));
    ts_drop(&r);
    ts_end(&s, true);
}

/* ---- figures and ports ---- */

static void processors_are_those_of_the_cgroup(void) {
    static const struct {
        const char *max;
        long        cpus;
    } list[] = {{"200000 100000\n", 2}, {"150000 100000\n", 2},
                {"50000 100000\n", 1},  {"0 100000\n", 1},
                {"max 100000\n", 8},    {"1600000 100000\n", 8},
                {"", 8},                {"200000", 8},
                {"200000 0\n", 8},      {"9223372036854775807 1\n", 8},
                {"nonsense", 8}};
    size_t i;
    for (i = 0; i < sizeof list / sizeof *list; i++)
        T_CHECK(hfsbi_stats_cpus(hfsb_cstr(list[i].max), 8) == list[i].cpus);
}

static void stats_have_figures_of_the_machine(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    ts_get(&s, &r, "/api/stats");
    T_CHECK(r.status == 200 && ts_int(&r, "cpus") >= 1);
#ifdef __linux__
    T_CHECK(ts_int(&r, "cpu_ms") > 0 && ts_int(&r, "memory") > 0);
    T_CHECK(ts_int(&r, "memory_max") >= ts_int(&r, "memory"));
    T_CHECK(ts_int(&r, "disk_max") >= ts_int(&r, "disk"));
#endif
    T_CHECK(hfsb_json_type_of(hfsb_json_get(r.json.root, "ports")) ==
            HFSB_JSON_ARRAY);
    stranger(&s, &r, "GET", "/api/stats", "");
    TS_REFUSED(&r, 401, NULL);
    ts_drop(&r);
    ts_end(&s, true);
}

#ifdef __linux__
static int listen_here(unsigned *port) {
    struct sockaddr_in a;
    socklen_t          len = sizeof a;
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) ||
        listen(fd, 1) || getsockname(fd, (struct sockaddr *)&a, &len))
        abort();
    *port = ntohs(a.sin_port);
    return fd;
}

/* A process that listens until its input ends; *port receives where. */
static pid_t listen_elsewhere(bool marked, unsigned *port, int *hold) {
    int   fd = listen_here(port), pipes[2];
    char *argv[4], *env[2];
    char  shell[] = "sh", option[] = "-c", script[] = "read x";
    char  marker[] = "HFSB_JOB=x";
    pid_t pid;
    if (pipe(pipes)) abort();
    argv[0] = shell, argv[1] = option, argv[2] = script, argv[3] = NULL;
    env[0] = marked ? marker : NULL, env[1] = NULL;
    pid = fork();
    if (pid == 0) {
        (void)fcntl(fd, F_SETFD, 0); /* this one only */
        dup2(pipes[0], 0);
        close(pipes[1]);
        execve("/bin/sh", argv, env);
        _exit(127);
    }
    close(fd);
    close(pipes[0]);
    *hold = pipes[1];
    return pid;
}

static bool lists_port(const ts_server *s, unsigned port) {
    ts_reply r = HFSB_INIT;
    char     text[40];
    bool     found;
    snprintf(text, sizeof text, "{\"port\":%u,\"pid\":", port);
    ts_get(s, &r, "/api/stats");
    found = ts_contains(&r, text);
    if (found) T_CHECK(ts_contains(&r, "\"command\":\"sh -c read x\""));
    ts_drop(&r);
    return found;
}

/* Many others listen, too. */
static void ports_of_commands_are_listed_and_no_others(void) {
    ts_server s;
    unsigned  ours, theirs, other, i;
    int       hold[2], many[200];
    pid_t     pid[2];
    long long end = hfsb_clock_ms() + 20000;
    pid[0] = listen_elsewhere(true, &ours, &hold[0]);
    pid[1] = listen_elsewhere(false, &theirs, &hold[1]);
    for (i = 0; i < 200; i++) many[i] = listen_here(&other); /* after fork */
    ts_start(&s, NULL, NULL);
    while (!lists_port(&s, ours) && hfsb_clock_ms() < end) tt_sleep_ms(20);
    T_CHECK(lists_port(&s, ours));
    T_CHECK(!lists_port(&s, theirs));
    T_CHECK(!lists_port(&s, s.port));
    for (i = 0; i < 200; i++) close(many[i]);
    close(hold[0]);
    close(hold[1]);
    (void)waitpid(pid[0], NULL, 0);
    (void)waitpid(pid[1], NULL, 0);
    T_CHECK(!lists_port(&s, ours));
    ts_end(&s, true);
}
#endif

/* ---- the plan, and who asks ---- */

static void a_plan_is_kept_and_shown(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    ts_get(&s, &r, "/api/plan");
    TS_IS(&r, 200, "[]");
    ts_post(&s, &r, "/api/plan_tool",
            "{\"todos\":[{\"id\":\"1\",\"content\":\"x\",\"status\":"
            "\"pending\"}]}");
    TS_OK(&r, "Plan updated: 1 pending, 0 in progress, 0 completed.");
    ts_get(&s, &r, "/api/plan");
    TS_IS(&r, 200,
          "[{\"id\":\"1\",\"content\":\"x\",\"status\":\"pending\"}]");
    ts_post(&s, &r, "/api/plan_tool", "{\"todos\":[{\"id\":\"1\"}]}");
    T_CHECK(r.status == 422 && !ts_flag(&r, "success"));
    ts_post(&s, &r, "/api/plan_tool", "{");
    T_CHECK(r.status == 422);
    ts_call(&s, &r, "POST", "/api/plan_tool", "", HFSB_LIT("{}"));
    TS_REFUSED(&r, 415, NULL);
    ts_get(&s, &r, "/api/plan"); /* as it was */
    T_CHECK(ts_contains(&r, "\"pending\""));
    ts_get(&s, &r, "/api/events");
    T_CHECK(ts_contains(&r, "\"tool\":\"plan_tool\""));
    ts_drop(&r);
    ts_end(&s, true);
}

#define PAGE "X-Hfsb-Who: page\r\n"

static void calls_of_the_page_have_its_name(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    ts_call(&s, &r, "POST", "/api/bash", TS_JSON PAGE,
            HFSB_LIT("{\"command\":\"echo by-page\"}"));
    ts_call(&s, &r, "POST", "/api/exists", TS_JSON PAGE,
            HFSB_LIT("{\"path\":\"none\"}"));
    ts_call(&s, &r, "GET", "/api/files?path=none", PAGE, no_body);
    ts_call(&s, &r, "POST", "/api/exists",
            TS_JSON "X-Hfsb-Who: somebody\r\n",
            HFSB_LIT("{\"path\":\"other\"}"));
    ts_get(&s, &r, "/api/events");
    T_CHECK(ts_contains(&r, "\"who\":\"page\",\"tool\":\"bash\",\"state\":"
                            "\"done\",\"command\":\"echo by-page\""));
    T_CHECK(ts_contains(&r, "\"who\":\"page\",\"tool\":\"exists\",\"state\":"
                            "\"done\",\"path\":\"none\""));
    T_CHECK(ts_contains(&r, "\"who\":\"page\",\"tool\":\"download\""));
    T_CHECK(ts_contains(&r, "\"who\":\"api\",\"tool\":\"exists\",\"state\":"
                            "\"done\",\"path\":\"other\""));
    ts_get(&s, &r, "/api/jobs");
    T_CHECK(ts_contains(&r, "\"who\":\"page\""));
    ts_drop(&r);
    ts_end(&s, true);
}

int main(void) {
    tt_begin();
    TT_RUN(a_browser_gets_the_page_without_a_token);
    TT_RUN(other_clients_find_nothing_at_the_root);
    TT_RUN(a_route_may_be_for_one_type_only);
    TT_RUN(without_the_page_no_raw_output_is_kept);
    TT_RUN(raw_output_has_its_escapes);
    TT_RUN(raw_output_comes_while_the_command_runs);
    TT_RUN(a_command_does_not_wait_for_those_who_watch);
    TT_RUN(a_slow_watcher_sees_what_came_last);
    TT_RUN(one_who_watches_may_leave);
    TT_RUN(a_terminal_takes_keys_and_sizes);
    TT_RUN(keys_wait_for_a_shell_that_has_not_started);
    TT_RUN(sizes_and_signals_wait_for_the_program);
    TT_RUN(a_terminal_ends_with_its_client);
    TT_RUN(a_terminal_needs_the_token);
    TT_RUN(without_a_token_only_our_page_gets_a_shell);
    TT_RUN(a_terminal_is_a_websocket);
    TT_RUN(processors_are_those_of_the_cgroup);
    TT_RUN(stats_have_figures_of_the_machine);
#ifdef __linux__
    TT_RUN(ports_of_commands_are_listed_and_no_others);
#endif
    TT_RUN(a_plan_is_kept_and_shown);
    TT_RUN(calls_of_the_page_have_its_name);
    return TT_END();
}
