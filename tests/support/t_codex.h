/* t_codex.h - what the tests of Codex's exec-server share: a client over a
   WebSocket, over pipes, or over pipes through a bridge, with a proxy between
   the bridge and the server that can be cut. */
#ifndef T_CODEX_H
#define T_CODEX_H
#include "t_calls.h"
#ifdef HFSBI_SPLIT
#include "../../src/dialect/dialect_private.h"
#endif

enum { WAIT_MS = 60000 };

static ts_server s;

/* ---- clients ---- */

typedef struct client {
    bool          socket;
    ts_conn       conn; /* of a WebSocket */
    int           to, from, theirs[2];
    hfsb_buf      got; /* the messages so far, a line for each */
    hfsb_json_doc doc; /* the last that was looked at */
    long          ids;
    unsigned      port; /* of a server with pipes */
} client;

HFSBI_UNUSED static void add_codex(ts_server *server, bool fds, int in, int out,
                      bool alone, unsigned *port) {
    hfsb_dialect_opts o = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    o.name = "codex";
    o.on_fds = fds;
    o.in = in;
    o.out = out;
    o.own_port = alone;
    if (hfsb_server_add_dialect(server->server, &o, port, &err) != HFSB_OK) {
        printf("no codex: %s\n", err.msg);
        abort();
    }
}

HFSBI_UNUSED static void open_server(const hfsb_tools_opts *tools) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    ts_open(&s, NULL);
    box.tools = tools;
    if (hfsb_server_add_sandbox(s.server, &box, NULL) != HFSB_OK) abort();
}

HFSBI_UNUSED static void put_frame(hfsb_buf *out, hfsbi_ws_opcode opcode, hfsb_str data) {
    static const unsigned char mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    char   head[HFSBI_WS_HEAD];
    size_t n = hfsbi_ws_write_head(opcode, true, data.len, mask, head), at;
    T_CHECK(hfsb_buf_append(out, hfsb_str_make(head, n)) == HFSB_OK);
    at = out->len;
    T_CHECK(hfsb_buf_append(out, data) == HFSB_OK);
    if (data.len) hfsbi_ws_mask(out->ptr + at, data.len, mask, 0);
}

/* Sends the upgrade; false when it is refused. */
HFSBI_UNUSED static bool upgrade(ts_conn *c, const char *path, const char *token) {
    hfsb_buf head = HFSB_INIT;
    bool     ok;
    T_CHECK(hfsb_buf_printf(&head,
                            "GET %s HTTP/1.1\r\nHost: sandbox.example\r\n"
                            "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                            "Sec-WebSocket-Version: 13\r\n"
                            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                            "%s%s%s\r\n",
                            path, token ? "Authorization: Bearer " : "",
                            token ? token : "", token ? "\r\n" : "") ==
            HFSB_OK);
    T_CHECK(ts_send(c, hfsb_buf_str(&head)));
    hfsb_buf_free(&head);
    T_CHECK(ts_await(c, "\r\n\r\n", WAIT_MS));
    ok = hfsb_str_starts(hfsb_buf_str(&c->in), HFSB_LIT("HTTP/1.1 101 "));
    if (ok)
        ts_shift(c, hfsb_str_find(hfsb_buf_str(&c->in),
                                  HFSB_LIT("\r\n\r\n")) + 4);
    return ok;
}

HFSBI_UNUSED static void dial(client *c) {
    memset(c, 0, sizeof *c);
    c->socket = true;
    c->conn = ts_connect(&s);
    T_CHECK(upgrade(&c->conn, "/codex", TS_TOKEN));
}

HFSBI_UNUSED static void hang_up(client *c) {
    if (c->socket) ts_hang_up(&c->conn);
    hfsb_buf_free(&c->got);
    hfsb_json_free(&c->doc);
    memset(&c->doc, 0, sizeof c->doc);
}

/* Moves the frames that came to the messages. */
HFSBI_UNUSED static void unpack(client *c) {
    for (;;) {
        const unsigned char *p = (const unsigned char *)c->conn.in.ptr;
        size_t               have = c->conn.in.len, n, head = 2, i;
        if (have < 2) return;
        n = p[1];
        if (n == 126) head = 4;
        if (n == 127) head = 10;
        if (have < head) return;
        if (head > 2)
            for (n = 0, i = 2; i < head; i++) n = n << 8 | p[i];
        if (have < head + n) return;
        if ((p[0] & 15) == HFSBI_WS_TEXT) {
            T_CHECK(hfsb_buf_append(
                        &c->got, hfsb_str_make((const char *)p + head, n)) ==
                    HFSB_OK);
            T_CHECK(hfsb_buf_append_byte(&c->got, '\n') == HFSB_OK);
        }
        ts_shift(&c->conn, head + n);
    }
}

/* Waits a moment for more; false at the end. */
HFSBI_UNUSED static bool more(client *c, int ms) {
    struct pollfd p;
    char          block[65536];
    ssize_t       n;
    if (c->socket) {
        if (ts_more(&c->conn, ms)) unpack(c);
        return !c->conn.ended;
    }
    memset(&p, 0, sizeof p);
    p.fd = c->from;
    p.events = POLLIN;
    if (poll(&p, 1, ms) <= 0) return true;
    n = read(c->from, block, sizeof block);
    if (n <= 0) return false;
    T_CHECK(hfsb_buf_append(&c->got, hfsb_str_make(block, (size_t)n)) ==
            HFSB_OK);
    return true;
}

HFSBI_UNUSED static void say(client *c, hfsb_str text) {
    hfsb_buf out = HFSB_INIT;
    if (c->socket) {
        put_frame(&out, HFSBI_WS_TEXT, text);
        T_CHECK(ts_send(&c->conn, hfsb_buf_str(&out)));
    } else {
        T_CHECK(hfsb_buf_append(&out, text) == HFSB_OK);
        T_CHECK(hfsb_buf_append_byte(&out, '\n') == HFSB_OK);
        T_CHECK(hfsbi_write_all(c->to, hfsb_buf_str(&out)));
    }
    hfsb_buf_free(&out);
}

/* The first message that contains both parts, in c->doc; false after that time
   without a byte. */
HFSBI_UNUSED static bool finds(client *c, const char *one, const char *two, int ms) {
    long long end = hfsb_clock_ms() + ms;
    size_t    from = 0; /* the lines before were looked at */
    size_t    had = 0;
    for (;;) {
        hfsb_str rest = hfsb_buf_str(&c->got), line;
        rest = hfsb_str_slice(rest, from, rest.len);
        while (hfsb_str_find_byte(rest, '\n') != HFSB_NPOS) {
            line = hfsb_str_slice(rest, 0, hfsb_str_find_byte(rest, '\n'));
            rest = hfsb_str_slice(rest, line.len + 1, rest.len);
            from += line.len + 1;
            if (hfsb_str_find(line, hfsb_cstr(one)) == HFSB_NPOS ||
                hfsb_str_find(line, hfsb_cstr(two)) == HFSB_NPOS)
                continue;
            hfsb_json_free(&c->doc);
            memset(&c->doc, 0, sizeof c->doc);
            T_CHECK(hfsb_json_parse(line, NULL, &c->doc, NULL) == HFSB_OK);
            return true;
        }
        if (hfsb_clock_ms() > end || !more(c, 20)) return false;
        if (ms && c->got.len + c->conn.in.len != had)
            end = hfsb_clock_ms() + ms;
        had = c->got.len + c->conn.in.len;
    }
}

/* Asks without waiting; returns the id. */
HFSBI_UNUSED static long ask(client *c, const char *method, const char *params) {
    hfsb_buf out = HFSB_INIT;
    T_CHECK(hfsb_buf_printf(&out,
                            "{\"id\":%ld,\"method\":\"%s\",\"params\":%s}",
                            ++c->ids, method, params) == HFSB_OK);
    say(c, hfsb_buf_str(&out));
    hfsb_buf_free(&out);
    return c->ids;
}

HFSBI_UNUSED static bool answered(client *c, long id) {
    char part[40];
    snprintf(part, sizeof part, "{\"id\":%ld,", id);
    return finds(c, part, "", WAIT_MS);
}

/* Asks and waits; the result, or NULL after an error. */
HFSBI_UNUSED static const hfsb_json_value *call(client *c, const char *method,
                                   const char *params) {
    T_CHECK(answered(c, ask(c, method, params)));
    return hfsb_json_get(c->doc.root, "result");
}

HFSBI_UNUSED static const hfsb_json_value *callf(client *c, const char *method,
                                    const char *format, ...)
    HFSBI_PRINTF(3, 4);
HFSBI_UNUSED static const hfsb_json_value *callf(client *c, const char *method,
                                    const char *format, ...) {
    char    params[4096];
    va_list ap;
    va_start(ap, format);
    vsnprintf(params, sizeof params, format, ap);
    va_end(ap);
    return call(c, method, params);
}

HFSBI_UNUSED static long long error_code(const client *c) {
    return hfsb_json_int(
        hfsb_json_get(hfsb_json_get(c->doc.root, "error"), "code"), 0);
}

HFSBI_UNUSED static hfsb_str text_of(const hfsb_json_value *object, const char *key) {
    return hfsb_json_str(hfsb_json_get(object, key), HFSB_LIT(""));
}
HFSBI_UNUSED static bool flag_of(const hfsb_json_value *object, const char *key) {
    return hfsb_json_bool(hfsb_json_get(object, key), false);
}
HFSBI_UNUSED static long long int_of(const hfsb_json_value *object, const char *key) {
    return hfsb_json_int(hfsb_json_get(object, key), -999);
}

HFSBI_UNUSED static void initialize(client *c, const char *resume, char id[40]) {
    char params[120];
    snprintf(params, sizeof params,
             resume ? "{\"clientName\":\"t\",\"resumeSessionId\":\"%s\"}"
                    : "{\"clientName\":\"t\",\"resumeSessionId\":null}",
             resume ? resume : "");
    snprintf(id, 40, "%s",
             text_of(call(c, "initialize", params), "sessionId").ptr);
    say(c, HFSB_LIT("{\"method\":\"initialized\",\"params\":{}}"));
}

static char session[40];

/* ---- processes ---- */

/* The parameters of a start; the command must need no escapes. */
HFSBI_UNUSED static const char *shell(const char *id, const char *command,
                         const char *extra) {
    static char text[4096];
    snprintf(text, sizeof text,
             "{\"processId\":\"%s\",\"argv\":[\"/bin/sh\",\"-c\",\"%s\"],"
             "\"cwd\":\"file://%s/work\",\"env\":{\"PATH\":\"/usr/bin:/bin\"},"
             "\"tty\":false,\"arg0\":null%s}",
             id, command, tt_dir, extra);
    return text;
}

HFSBI_UNUSED static bool starts(client *c, const char *id, const char *command,
                   const char *extra) {
    return call(c, "process/start", shell(id, command, extra)) != NULL;
}

/* Starts a sleep that no other program has: the same test may run beside this
   one. */
HFSBI_UNUSED static bool starts_nap(client *c, const char *id) {
    char command[64];
    snprintf(command, sizeof command, "sleep %s", tt_nap());
    return starts(c, id, command, "");
}

/* Adds up the output of a process and checks that all numbers come once, in
   order. Returns the exit code; -1000: it did not end. */
HFSBI_UNUSED static int output_of(client *c, const char *id, const char *stream,
                     hfsb_buf *out) {
    char      mine[80];
    long long next = 1, code = -1000;
    hfsb_str  rest, line;
    snprintf(mine, sizeof mine, "{\"processId\":\"%s\",", id);
    if (!finds(c, "\"process/closed\"", mine, WAIT_MS)) return -1000;
    for (rest = hfsb_buf_str(&c->got); rest.len;
         rest = hfsb_str_slice(rest, line.len + 1, rest.len)) {
        hfsb_json_doc          doc = HFSB_INIT;
        const hfsb_json_value *p;
        line = hfsb_str_slice(rest, 0, hfsb_str_find_byte(rest, '\n'));
        if (!hfsb_str_starts(line, HFSB_LIT("{\"method\"")) ||
            hfsb_str_find(line, hfsb_cstr(mine)) == HFSB_NPOS)
            continue;
        T_CHECK(hfsb_json_parse(line, NULL, &doc, NULL) == HFSB_OK);
        p = hfsb_json_get(doc.root, "params");
        T_CHECK(int_of(p, "seq") == next++);
        if (hfsb_json_get(p, "exitCode")) code = int_of(p, "exitCode");
        if (out && hfsb_str_equal(text_of(p, "stream"), hfsb_cstr(stream)))
            T_CHECK(hfsb_base64_decode(text_of(p, "chunk"), out, NULL) ==
                    HFSB_OK);
        hfsb_json_free(&doc);
    }
    return (int)code;
}

HFSBI_UNUSED static void is_output(client *c, const char *id, const char *stream,
                      const char *want, int code) {
    hfsb_buf out = HFSB_INIT;
    T_CHECK(output_of(c, id, stream, &out) == code);
    t_str(__FILE__, __LINE__, out.ptr, out.len, want, strlen(want));
    hfsb_buf_free(&out);
}

/* Waits until a process with that argument runs. */
HFSBI_UNUSED static bool comes_up(const char *argument) {
    int i;
    for (i = 0; i < 1000 && !tt_running(argument); i++) tt_sleep_ms(20);
    return tt_running(argument) > 0;
}

/* ---- pipes ---- */

/* Two pipes; the client has the ends in to and from. */
HFSBI_UNUSED static void make_pipes(client *c) {
    int in[2], out[2];
    memset(c, 0, sizeof *c);
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) abort();
    c->theirs[0] = in[0];
    c->theirs[1] = out[1];
    c->to = in[1];
    c->from = out[0];
}

HFSBI_UNUSED static void open_pipes(client *c) {
    make_pipes(c);
    open_server(NULL);
    add_codex(&s, true, c->theirs[0], c->theirs[1], false, NULL);
    ts_run(&s);
}

HFSBI_UNUSED static void drop_pipes(client *c) {
    close(c->from);
    close(c->theirs[0]);
    close(c->theirs[1]);
    hang_up(c);
}

/* Waits for the end of a server whose input has ended. */
HFSBI_UNUSED static void close_pipes(client *c) {
    pthread_join(s.thread, NULL);
    T_CHECK(s.ended == HFSB_OK);
    s.started = false;
    ts_end(&s, true);
    drop_pipes(c);
}

/* ---- a bridge ---- */

typedef struct bridge {
    tc_proxy  proxy;
    tc_box    box;
    ts_server near; /* has the bridge */
    hfsb_err  why;  /* it ended early */
} bridge;

/* A bridge over pipes to a sandbox. */
HFSBI_UNUSED static hfsb_status try_bridge(client *c, bridge *b,
                                           hfsb_err *err) {
    hfsb_codex_bridge_opts o = HFSB_INIT;
    hfsb_server_opts       opts = HFSB_INIT;
    hfsb_status            st;
    make_pipes(c);
    opts.no_auth = true;
    opts.alloc = tt_alloc();
    o.sandbox = b->box.sandbox;
    o.in = c->theirs[0];
    o.out = c->theirs[1];
    o.why = &b->why;
    st = hfsb_server_open(&opts, &b->near.server, err);
    return st == HFSB_OK
               ? hfsb_server_add_codex_bridge(b->near.server, &o, err)
               : st;
}

/* A server with codex, a proxy that passes bytes, and a bridge to both. */
HFSBI_UNUSED static void open_bridge(client *c, bridge *b) {
    hfsb_err err = HFSB_INIT;
    memset(b, 0, sizeof *b);
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    tc_proxy_open(&b->proxy, s.port);
    b->proxy.raw = true;
    tc_open(&b->box, b->proxy.port, NULL);
    if (try_bridge(c, b, &err) != HFSB_OK) {
        printf("no bridge: %s\n", err.msg);
        abort();
    }
    ts_run(&b->near);
}

/* Cuts all connections of a proxy. */
HFSBI_UNUSED static void cut(tc_proxy *p) {
    size_t i;
    pthread_mutex_lock(&p->lock);
    for (i = 0; i < TC_CONNS; i++)
        if (p->fds[i] >= 0) shutdown(p->fds[i], SHUT_RDWR);
    pthread_mutex_unlock(&p->lock);
}

/* Waits until the bridge has ended. */
HFSBI_UNUSED static void await_bridge(bridge *b) {
    if (!b->near.started) return;
    pthread_join(b->near.thread, NULL);
    T_CHECK(b->near.ended == HFSB_OK);
    b->near.started = false;
}

/* Ends the input, and waits for the end of the bridge. */
HFSBI_UNUSED static void close_bridge(client *c, bridge *b) {
    if (c->to >= 0) close(c->to);
    await_bridge(b);
    hfsb_server_close(b->near.server);
    tc_close(&b->box);
    tc_proxy_close(&b->proxy);
    drop_pipes(c);
}

#endif
