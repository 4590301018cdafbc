/* test_codex.c - the exec-server of Codex: every method over a WebSocket and
   over pipes, lost connections, slow readers. */
#include "../support/t_server.h"
#ifdef HFSBI_SPLIT
#include "../../src/dialect/dialect_private.h"
#endif

enum { WAIT_MS = 20000 };

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

static void add_codex(ts_server *server, bool fds, int in, int out,
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

static void open_server(const hfsb_tools_opts *tools) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    ts_open(&s, NULL);
    box.tools = tools;
    if (hfsb_server_add_sandbox(s.server, &box, NULL) != HFSB_OK) abort();
}

static void put_frame(hfsb_buf *out, hfsbi_ws_opcode opcode, hfsb_str data) {
    static const unsigned char mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    char   head[HFSBI_WS_HEAD];
    size_t n = hfsbi_ws_write_head(opcode, true, data.len, mask, head), at;
    T_CHECK(hfsb_buf_append(out, hfsb_str_make(head, n)) == HFSB_OK);
    at = out->len;
    T_CHECK(hfsb_buf_append(out, data) == HFSB_OK);
    if (data.len) hfsbi_ws_mask(out->ptr + at, data.len, mask, 0);
}

/* Sends the upgrade; false when it is refused. */
static bool upgrade(ts_conn *c, const char *path, const char *token) {
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

static void dial(client *c) {
    memset(c, 0, sizeof *c);
    c->socket = true;
    c->conn = ts_connect(&s);
    T_CHECK(upgrade(&c->conn, "/codex", TS_TOKEN));
}

static void hang_up(client *c) {
    if (c->socket) ts_hang_up(&c->conn);
    hfsb_buf_free(&c->got);
    hfsb_json_free(&c->doc);
    memset(&c->doc, 0, sizeof c->doc);
}

/* Moves the frames that came to the messages. */
static void unpack(client *c) {
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
static bool more(client *c, int ms) {
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

static void say(client *c, hfsb_str text) {
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

/* The first message that contains both parts, in c->doc; false after a
   while. */
static bool finds(client *c, const char *one, const char *two, int ms) {
    long long end = hfsb_clock_ms() + ms;
    size_t    from = 0; /* the lines before were looked at */
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
    }
}

/* Asks without waiting; returns the id. */
static long ask(client *c, const char *method, const char *params) {
    hfsb_buf out = HFSB_INIT;
    T_CHECK(hfsb_buf_printf(&out,
                            "{\"id\":%ld,\"method\":\"%s\",\"params\":%s}",
                            ++c->ids, method, params) == HFSB_OK);
    say(c, hfsb_buf_str(&out));
    hfsb_buf_free(&out);
    return c->ids;
}

static bool answered(client *c, long id) {
    char part[40];
    snprintf(part, sizeof part, "{\"id\":%ld,", id);
    return finds(c, part, "", WAIT_MS);
}

/* Asks and waits; the result, or NULL after an error. */
static const hfsb_json_value *call(client *c, const char *method,
                                   const char *params) {
    T_CHECK(answered(c, ask(c, method, params)));
    return hfsb_json_get(c->doc.root, "result");
}

static const hfsb_json_value *callf(client *c, const char *method,
                                    const char *format, ...)
    HFSBI_PRINTF(3, 4);
static const hfsb_json_value *callf(client *c, const char *method,
                                    const char *format, ...) {
    char    params[4096];
    va_list ap;
    va_start(ap, format);
    vsnprintf(params, sizeof params, format, ap);
    va_end(ap);
    return call(c, method, params);
}

static long long error_code(const client *c) {
    return hfsb_json_int(
        hfsb_json_get(hfsb_json_get(c->doc.root, "error"), "code"), 0);
}

static hfsb_str text_of(const hfsb_json_value *object, const char *key) {
    return hfsb_json_str(hfsb_json_get(object, key), HFSB_LIT(""));
}
static bool flag_of(const hfsb_json_value *object, const char *key) {
    return hfsb_json_bool(hfsb_json_get(object, key), false);
}
static long long int_of(const hfsb_json_value *object, const char *key) {
    return hfsb_json_int(hfsb_json_get(object, key), -999);
}

static void initialize(client *c, const char *resume, char id[40]) {
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
static const char *shell(const char *id, const char *command,
                         const char *extra) {
    static char text[4096];
    snprintf(text, sizeof text,
             "{\"processId\":\"%s\",\"argv\":[\"/bin/sh\",\"-c\",\"%s\"],"
             "\"cwd\":\"file://%s/work\",\"env\":{\"PATH\":\"/usr/bin:/bin\"},"
             "\"tty\":false,\"arg0\":null%s}",
             id, command, tt_dir, extra);
    return text;
}

static bool starts(client *c, const char *id, const char *command,
                   const char *extra) {
    return call(c, "process/start", shell(id, command, extra)) != NULL;
}

/* Adds up the output of a process and checks that all numbers come once, in
   order. Returns the exit code; -1000: it did not end. */
static int output_of(client *c, const char *id, const char *stream,
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

static void is_output(client *c, const char *id, const char *stream,
                      const char *want, int code) {
    hfsb_buf out = HFSB_INIT;
    T_CHECK(output_of(c, id, stream, &out) == code);
    t_str(__FILE__, __LINE__, out.ptr, out.len, want, strlen(want));
    hfsb_buf_free(&out);
}

/* Waits until a process with that argument runs. */
static bool comes_up(const char *argument) {
    int i;
    for (i = 0; i < 200 && !tt_running(argument); i++) tt_sleep_ms(20);
    return tt_running(argument) > 0;
}

/* ---- tests that both channels pass ---- */

static client *who;

static void the_environment_is_told(void) {
    const hfsb_json_value *r = call(who, "environment/info", "null");
    hfsb_buf               want = HFSB_INIT;
    T_CHECK(text_of(hfsb_json_get(r, "shell"), "path").ptr[0] == '/');
    T_CHECK(hfsb_json_get(r, "capabilities") != NULL);
    T_CHECK(hfsb_str_starts(text_of(r, "cwd"), HFSB_LIT("file:///")));
    r = call(who, "environment/status", "{}");
    T_STR(text_of(r, "status"), "ready");
    hfsb_buf_free(&want);
}

static void errors_have_codes(void) {
    static const struct {
        const char *text;
        long long   code;
    } list[] = {
        {"\"method\":\"http/request\",\"params\":{}", -32601},
        {"\"method\":\"fs/readFile\",\"params\":[]", -32602},
        {"\"method\":\"fs/readFile\",\"params\":{}", -32602},
        {"\"method\":\"fs/readFile\",\"params\":{\"path\":\"/etc/passwd\"}",
         -32602},
        {"\"method\":\"fs/readFile\",\"params\":{\"path\":"
         "\"file:///a%00b\"}",
         -32602},
        {"\"method\":\"fs/readFile\",\"params\":{\"path\":"
         "\"file://host/a\"}",
         -32602},
        {"\"method\":\"fs/readFile\",\"params\":{\"path\":"
         "\"file:///no/such\"}",
         -32004},
        {"\"method\":\"fs/readBlock\",\"params\":{\"handleId\":\"x\"}",
         -32004},
        {"\"method\":\"process/read\",\"params\":{\"processId\":\"x\"}",
         -32600},
        {"\"method\":\"process/signal\",\"params\":{\"processId\":\"x\","
         "\"signal\":\"interrupt\"}",
         -32600},
        {"\"method\":\"process/start\",\"params\":{\"processId\":\"e\","
         "\"argv\":[],\"cwd\":\"file:///\",\"env\":{}}",
         -32602},
        {"\"method\":\"process/start\",\"params\":{\"processId\":\"e\","
         "\"argv\":[\"a\\u0000b\"],\"cwd\":\"file:///\",\"env\":{}}",
         -32602},
        {"\"method\":\"process/start\",\"params\":{\"processId\":\"e\","
         "\"argv\":[\"/no/such\"],\"cwd\":\"file:///\",\"env\":{}}",
         -32603},
        {"\"method\":\"process/start\",\"params\":{\"processId\":\"e\","
         "\"argv\":[\"/bin/true\"],\"cwd\":\"file:///\",\"env\":{\"a=b\":"
         "\"c\"}}",
         -32602},
        {"\"method\":\"process/start\",\"params\":{\"processId\":\"e\","
         "\"argv\":[\"/bin/true\"],\"cwd\":\"file:///\",\"env\":{},"
         "\"enforceManagedNetwork\":true}",
         -32600},
        {"\"method\":\"process/start\",\"params\":{\"processId\":\"e\","
         "\"argv\":[\"/bin/true\"],\"cwd\":\"file:///\",\"env\":{},"
         "\"arg0\":\"sh\"}",
         -32600},
        {"\"method\":\"initialize\",\"params\":{}", -32600}};
    char   text[600];
    size_t i;
    for (i = 0; i < TT_COUNT(list); i++) {
        snprintf(text, sizeof text, "{\"id\":%ld,%s}", ++who->ids,
                 list[i].text);
        say(who, hfsb_cstr(text));
        T_CHECK(answered(who, who->ids));
        if (error_code(who) != list[i].code)
            printf("%s: %lld\n", list[i].text, error_code(who));
        T_CHECK(error_code(who) == list[i].code);
    }
    say(who, HFSB_LIT("{\"id\":"));
    T_CHECK(finds(who, "{\"id\":null,", "-32700", WAIT_MS));
    say(who, HFSB_LIT("{\"id\":true,\"method\":\"initialize\"}"));
    T_CHECK(finds(who, "{\"id\":null,", "-32600", WAIT_MS));
    say(who, HFSB_LIT("{\"id\":77777,\"result\":{}}")); /* not answered */
    say(who, HFSB_LIT("{\"method\":\"no/such\"}"));
    T_CHECK(call(who, "environment/status", "{}") != NULL);
    T_CHECK(!finds(who, "{\"id\":77777", "", 0));
    /* ids may be texts */
    say(who, HFSB_LIT("{\"id\":\"a b\",\"method\":\"environment/status\"}"));
    T_CHECK(finds(who, "{\"id\":\"a b\",\"result\"", "ready", WAIT_MS));
}

static void a_command_has_streams_and_a_code(void) {
    T_CHECK(starts(who, "one", "echo out; echo err >&2; exit 7", ""));
    is_output(who, "one", "stdout", "out\n", 7);
    is_output(who, "one", "stderr", "err\n", 7);
    T_CHECK(starts(who, "sig", "kill -9 $$", ""));
    is_output(who, "sig", "stdout", "", 137);
    T_CHECK(!flag_of(callf(who, "process/terminate",
                           "{\"processId\":\"one\"}"),
                     "running"));
    T_CHECK(!flag_of(callf(who, "process/terminate",
                           "{\"processId\":\"none\"}"),
                     "running"));
    T_CHECK(!starts(who, "one", "echo again", ""));
    T_CHECK(error_code(who) == -32600);
}

static void input_is_written_once(void) {
    T_CHECK(starts(who, "in", "read a; echo $a; read b; echo $b",
                   ",\"pipeStdin\":true"));
    T_STR(text_of(callf(who, "process/write",
                        "{\"processId\":\"in\",\"chunk\":\"eHkK\","
                        "\"writeId\":\"w1\"}"),
                  "status"),
          "accepted");
    T_STR(text_of(callf(who, "process/write",
                        "{\"processId\":\"in\",\"chunk\":\"eHkK\","
                        "\"writeId\":\"w1\"}"),
                  "status"),
          "accepted");
    T_CHECK(callf(who, "process/write",
                  "{\"processId\":\"in\",\"chunk\":\"e\","
                  "\"writeId\":\"w3\"}") == NULL);
    T_CHECK(error_code(who) == -32602);
    T_STR(text_of(callf(who, "process/write",
                        "{\"processId\":\"in\",\"chunk\":\"ego=\","
                        "\"writeId\":\"w2\"}"),
                  "status"),
          "accepted");
    is_output(who, "in", "stdout", "xy\nz\n", 0);
    T_STR(text_of(callf(who, "process/write",
                        "{\"processId\":\"in\",\"chunk\":\"ego=\","
                        "\"writeId\":\"w9\"}"),
                  "status"),
          "stdinClosed");
    T_STR(text_of(callf(who, "process/write",
                        "{\"processId\":\"other\",\"chunk\":\"\"}"),
                  "status"),
          "unknownProcess");
    T_CHECK(starts(who, "noin", "cat; sleep 0.2", ""));
    T_STR(text_of(callf(who, "process/write",
                        "{\"processId\":\"noin\",\"chunk\":\"ego=\"}"),
                  "status"),
          "stdinClosed");
    is_output(who, "noin", "stdout", "", 0);
}

static void a_terminal_is_one_stream(void) {
    T_CHECK(call(who, "process/start",
                 "{\"processId\":\"tty\",\"argv\":[\"/bin/sh\",\"-c\","
                 "\"test -t 0 && test -t 2 && stty size\"],"
                 "\"cwd\":\"file:///\",\"env\":{\"PATH\":\"/bin:/usr/bin\"},"
                 "\"tty\":true,\"arg0\":null}") != NULL);
    is_output(who, "tty", "pty", "24 80\r\n", 0);
}

static void signals_reach_commands(void) {
    T_CHECK(starts(who, "int",
                   "trap 'echo got; exit 3' INT; echo ready; "
                   "while :; do sleep 0.05; done",
                   ""));
    T_CHECK(finds(who, "\"process/output\"", "\"int\"", WAIT_MS));
    T_CHECK(callf(who, "process/signal",
                  "{\"processId\":\"int\",\"signal\":\"hangup\"}") == NULL);
    T_CHECK(error_code(who) == -32602);
    T_CHECK(callf(who, "process/signal",
                  "{\"processId\":\"int\",\"signal\":\"interrupt\"}") != NULL);
    is_output(who, "int", "stdout", "ready\ngot\n", 3);
    T_CHECK(starts(who, "term", "sleep 60", ""));
    T_CHECK(flag_of(callf(who, "process/terminate",
                          "{\"processId\":\"term\"}"),
                    "running"));
    is_output(who, "term", "stdout", "", 143);
}

static void reads_wait_for_output(void) {
    const hfsb_json_value *r, *chunk;
    long                   id;
    T_CHECK(starts(who, "rd", "read a; echo one; read a; echo two >&2",
                   ",\"pipeStdin\":true"));
    r = callf(who, "process/read",
              "{\"processId\":\"rd\",\"afterSeq\":null,\"maxBytes\":10,"
              "\"waitMs\":1}");
    T_CHECK(hfsb_json_count(hfsb_json_get(r, "chunks")) == 0);
    T_CHECK(int_of(r, "nextSeq") == 1 && !flag_of(r, "exited"));
    id = ask(who, "process/read",
             "{\"processId\":\"rd\",\"afterSeq\":0,\"waitMs\":20000}");
    (void)callf(who, "process/write",
                "{\"processId\":\"rd\",\"chunk\":\"Cg==\"}");
    T_CHECK(answered(who, id));
    r = hfsb_json_get(who->doc.root, "result");
    chunk = hfsb_json_at(hfsb_json_get(r, "chunks"), 0);
    T_STR(text_of(chunk, "chunk"), "b25lCg==");
    T_STR(text_of(chunk, "stream"), "stdout");
    T_CHECK(int_of(chunk, "seq") == 1 && int_of(r, "nextSeq") == 2);
    (void)callf(who, "process/write",
                "{\"processId\":\"rd\",\"chunk\":\"Cg==\"}");
    is_output(who, "rd", "stderr", "two\n", 0);
    r = callf(who, "process/read",
              "{\"processId\":\"rd\",\"afterSeq\":0,\"maxBytes\":1,"
              "\"waitMs\":9999}");
    T_CHECK(hfsb_json_count(hfsb_json_get(r, "chunks")) == 1);
    T_CHECK(int_of(r, "nextSeq") == 2 && !flag_of(r, "closed"));
    r = callf(who, "process/read",
              "{\"processId\":\"rd\",\"afterSeq\":1,\"maxBytes\":99,"
              "\"waitMs\":9999}");
    T_CHECK(hfsb_json_count(hfsb_json_get(r, "chunks")) == 1);
    T_CHECK(int_of(r, "nextSeq") == 5 && flag_of(r, "closed"));
    T_CHECK(flag_of(r, "exited") && int_of(r, "exitCode") == 0);
    r = callf(who, "process/read",
              "{\"processId\":\"rd\",\"afterSeq\":4,\"waitMs\":9999}");
    T_CHECK(int_of(r, "nextSeq") == 5 && flag_of(r, "closed"));
}

static void the_environment_follows_the_policy(void) {
    static const struct {
        const char *policy, *env, *want;
    } list[] = {
        {"null", "{\"A\":\"1\"}", "A=1\n"},
        {"{\"inherit\":\"none\",\"ignoreDefaultExcludes\":true,"
         "\"exclude\":[],\"set\":{\"B\":\"2\",\"A\":\"0\"},"
         "\"includeOnly\":[]}",
         "{\"A\":\"1\"}", "A=1\nB=2\n"},
        {"{\"inherit\":\"all\",\"ignoreDefaultExcludes\":false,"
         "\"exclude\":[\"x_DROP?\"],\"set\":{\"X_SET\":\"s\"},"
         "\"includeOnly\":[\"X_*\"]}",
         "{\"A\":\"1\"}", "A=1\nX_KEEP=k\nX_SET=s\n"},
        {"{\"inherit\":\"all\",\"ignoreDefaultExcludes\":true,"
         "\"exclude\":[],\"set\":{},\"includeOnly\":[\"X_*n\"]}",
         "{}", "X_Token=t\n"},
        {"{\"inherit\":\"core\",\"ignoreDefaultExcludes\":true,"
         "\"exclude\":[\"PATH\",\"*[A-Z]*\"],\"set\":{},"
         "\"includeOnly\":[\"HOME\",\"X_*\",\"PATH\"]}",
         "{}", "HOME=/h\n"}};
    char   id[20];
    size_t i;
    for (i = 0; i < TT_COUNT(list); i++) {
        snprintf(id, sizeof id, "env%zu", i);
        T_CHECK(callf(who, "process/start",
                      "{\"processId\":\"%s\",\"argv\":[\"/bin/sh\",\"-c\","
                      "\"/usr/bin/env | /usr/bin/sort | /bin/grep -v "
                      "-e ^PWD= -e ^HFSB_JOB= -e ^_= -e ^SHLVL= -e ^OLDPWD=\"]"
                      ",\"cwd\":\"file:///\",\"envPolicy\":%s,\"env\":%s,"
                      "\"tty\":false,\"arg0\":null}",
                      id, list[i].policy, list[i].env) != NULL);
        is_output(who, id, "stdout", list[i].want, 0);
    }
}

static void files_are_read_and_written(void) {
    const hfsb_json_value *r;
    T_CHECK(callf(who, "fs/writeFile",
                  "{\"path\":\"file://%s/work/a%%20b.txt\","
                  "\"dataBase64\":\"aGVsbG8=\",\"sandbox\":null}",
                  tt_dir) != NULL);
    T_CHECK(tt_file_is("a b.txt", HFSB_LIT("hello")));
    r = callf(who, "fs/readFile", "{\"path\":\"file://%s/work/a%%20b.txt\"}",
              tt_dir);
    T_STR(text_of(r, "dataBase64"), "aGVsbG8=");
    r = callf(who, "fs/getMetadata",
              "{\"path\":\"file://%s/work/a%%20b.txt\"}", tt_dir);
    T_CHECK(flag_of(r, "isFile") && !flag_of(r, "isDirectory"));
    T_CHECK(!flag_of(r, "isSymlink") && int_of(r, "size") == 5);
    T_CHECK(int_of(r, "modifiedAtMs") > 1600000000000ll);
    T_CHECK(symlink("a b.txt", "link") == 0);
    r = callf(who, "fs/getMetadata", "{\"path\":\"file://%s/work/link\"}",
              tt_dir);
    T_CHECK(flag_of(r, "isFile") && flag_of(r, "isSymlink"));
    r = callf(who, "fs/getMetadata",
              "{\"path\":\"file://%s/work/link\",\"followSymlinks\":false}",
              tt_dir);
    T_CHECK(!flag_of(r, "isFile") && flag_of(r, "isSymlink"));
    r = callf(who, "fs/canonicalize", "{\"path\":\"file://%s/work/link\"}",
              tt_dir);
    T_CHECK(hfsb_str_ends(text_of(r, "path"), HFSB_LIT("work/a%20b.txt")));
    T_CHECK(!callf(who, "fs/writeFile",
                   "{\"path\":\"file://%s/work/no/x\",\"dataBase64\":\"\"}",
                   tt_dir));
    T_CHECK(error_code(who) == -32004);
    T_CHECK(!callf(who, "fs/writeFile",
                   "{\"path\":\"file://%s/work/x\",\"dataBase64\":\"a\"}",
                   tt_dir));
    T_CHECK(error_code(who) == -32600);
    T_CHECK(!callf(who, "fs/readFile", "{\"path\":\"file://%s/work\"}",
                   tt_dir));
    T_CHECK(error_code(who) == -32600);
}

static void folders_are_made_copied_and_removed(void) {
    const hfsb_json_value *r, *e;
    T_CHECK(!callf(who, "fs/createDirectory",
                   "{\"path\":\"file://%s/work/d/e\",\"recursive\":false}",
                   tt_dir));
    T_CHECK(callf(who, "fs/createDirectory",
                  "{\"path\":\"file://%s/work/d/e\",\"recursive\":true}",
                  tt_dir) != NULL);
    T_CHECK(callf(who, "fs/createDirectory",
                  "{\"path\":\"file://%s/work/d/.h\"}", tt_dir) != NULL);
    tt_put("d/z", HFSB_LIT("zz"));
    tt_put("d/e/f", HFSB_LIT("f"));
    tt_put("d/.h/i", HFSB_LIT("i"));
    r = callf(who, "fs/readDirectory", "{\"path\":\"file://%s/work/d\"}",
              tt_dir);
    e = hfsb_json_get(r, "entries");
    T_CHECK(hfsb_json_count(e) == 3);
    T_STR(text_of(hfsb_json_at(e, 0), "fileName"), ".h");
    T_CHECK(flag_of(hfsb_json_at(e, 1), "isDirectory"));
    T_CHECK(flag_of(hfsb_json_at(e, 2), "isFile"));
    r = callf(who, "fs/walk",
              "{\"path\":\"file://%s/work/d\",\"options\":{\"maxDepth\":4,"
              "\"maxDirectories\":10,\"maxEntries\":10,"
              "\"followDirectorySymlinks\":false,"
              "\"pruneHiddenDirectories\":true}}",
              tt_dir);
    e = hfsb_json_get(r, "entries");
    T_CHECK(hfsb_json_count(e) == 4 && !flag_of(r, "truncated"));
    T_STR(text_of(hfsb_json_at(e, 0), "kind"), "directory");
    T_CHECK(hfsb_str_ends(text_of(hfsb_json_at(e, 1), "path"),
                          HFSB_LIT("/d/e")));
    T_CHECK(hfsb_str_ends(text_of(hfsb_json_at(e, 2), "path"),
                          HFSB_LIT("/d/z")));
    T_CHECK(hfsb_str_ends(text_of(hfsb_json_at(e, 3), "path"),
                          HFSB_LIT("/d/e/f")));
    T_STR(text_of(hfsb_json_at(e, 3), "kind"), "file");
    r = callf(who, "fs/walk",
              "{\"path\":\"file://%s/work/d\",\"options\":{\"maxDepth\":0,"
              "\"maxDirectories\":10,\"maxEntries\":2}}",
              tt_dir);
    T_CHECK(hfsb_json_count(hfsb_json_get(r, "entries")) == 2);
    T_CHECK(flag_of(r, "truncated"));
    T_CHECK(!callf(who, "fs/copy",
                   "{\"sourcePath\":\"file://%s/work/d\",\"destinationPath\":"
                   "\"file://%s/work/d2\",\"recursive\":false}",
                   tt_dir, tt_dir));
    T_CHECK(callf(who, "fs/copy",
                  "{\"sourcePath\":\"file://%s/work/d\",\"destinationPath\":"
                  "\"file://%s/work/d2\",\"recursive\":true}",
                  tt_dir, tt_dir) != NULL);
    T_CHECK(tt_file_is("d2/e/f", HFSB_LIT("f")));
    T_CHECK(!callf(who, "fs/remove",
                   "{\"path\":\"file://%s/work/d2\",\"recursive\":false}",
                   tt_dir));
    T_CHECK(callf(who, "fs/remove", "{\"path\":\"file://%s/work/d2\"}",
                  tt_dir) != NULL);
    T_CHECK(callf(who, "fs/remove", "{\"path\":\"file://%s/work/d2\"}",
                  tt_dir) != NULL);
    T_CHECK(!callf(who, "fs/remove",
                   "{\"path\":\"file://%s/work/d2\",\"force\":false}",
                   tt_dir));
    T_CHECK(error_code(who) == -32004);
    T_CHECK(access("d2", F_OK) != 0 && access("d/z", F_OK) == 0);
}

static void open_files_are_read_in_blocks(void) {
    const hfsb_json_value *r;
    tt_put("blocks", HFSB_LIT("0123456789"));
    r = callf(who, "fs/open",
              "{\"handleId\":\"h\",\"path\":\"file://%s/work/blocks\"}",
              tt_dir);
    T_STR(text_of(r, "handleId"), "h");
    T_CHECK(!callf(who, "fs/open",
                   "{\"handleId\":\"h\",\"path\":\"file://%s/work/blocks\"}",
                   tt_dir));
    T_CHECK(error_code(who) == -32600);
    r = call(who, "fs/readBlock",
             "{\"handleId\":\"h\",\"offset\":2,\"len\":3}");
    T_STR(text_of(r, "chunk"), "MjM0");
    T_CHECK(!flag_of(r, "eof"));
    r = call(who, "fs/readBlock",
             "{\"handleId\":\"h\",\"offset\":8,\"len\":30}");
    T_STR(text_of(r, "chunk"), "ODk=");
    T_CHECK(flag_of(r, "eof"));
    T_CHECK(!call(who, "fs/readBlock",
                  "{\"handleId\":\"h\",\"offset\":-1,\"len\":30}"));
    T_CHECK(call(who, "fs/close", "{\"handleId\":\"h\"}") != NULL);
    T_CHECK(call(who, "fs/close", "{\"handleId\":\"h\"}") != NULL);
    T_CHECK(!call(who, "fs/readBlock",
                  "{\"handleId\":\"h\",\"offset\":2,\"len\":3}"));
    T_CHECK(!callf(who, "fs/open",
                   "{\"handleId\":\"n\",\"path\":\"file://%s/work/none\"}",
                   tt_dir));
    T_CHECK(error_code(who) == -32004);
    /* left open: the end of the session closes it */
    T_CHECK(callf(who, "fs/open",
                  "{\"handleId\":\"n\",\"path\":\"file://%s/work/blocks\"}",
                  tt_dir) != NULL);
}

static void long_output_arrives_whole(void) {
    hfsb_buf out = HFSB_INIT;
    T_CHECK(starts(who, "long", "seq 1 300000", ""));
    T_CHECK(output_of(who, "long", "stdout", &out) == 0);
    T_CHECK(out.len == 1988895);
    T_CHECK(out.len > 14 && !strcmp(out.ptr + out.len - 14, "299999\n300000\n"));
    hfsb_buf_free(&out);
}

static void all_methods(client *c) {
    who = c;
    initialize(c, NULL, session);
    T_CHECK(strlen(session) == 32);
    TT_RUN(the_environment_is_told);
    TT_RUN(errors_have_codes);
    TT_RUN(a_command_has_streams_and_a_code);
    TT_RUN(input_is_written_once);
    TT_RUN(a_terminal_is_one_stream);
    TT_RUN(signals_reach_commands);
    TT_RUN(reads_wait_for_output);
    TT_RUN(the_environment_follows_the_policy);
    TT_RUN(files_are_read_and_written);
    TT_RUN(folders_are_made_copied_and_removed);
    TT_RUN(open_files_are_read_in_blocks);
    TT_RUN(long_output_arrives_whole);
    (void)!system("rm -rf d link 'a b.txt' blocks");
}

/* ---- the channels ---- */

static void open_pipes(client *c) {
    int in[2], out[2];
    memset(c, 0, sizeof *c);
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) abort();
    c->theirs[0] = in[0];
    c->theirs[1] = out[1];
    c->to = in[1];
    c->from = out[0];
    open_server(NULL);
    add_codex(&s, true, in[0], out[1], false, NULL);
    ts_run(&s);
}

/* Waits for the end of a server whose input has ended. */
static void close_pipes(client *c) {
    pthread_join(s.thread, NULL);
    T_CHECK(s.ended == HFSB_OK);
    s.started = false;
    ts_end(&s, true);
    close(c->from);
    close(c->theirs[0]);
    close(c->theirs[1]);
    hang_up(c);
}

static void pipes_serve_every_method(void) {
    client    c;
    long long began;
    open_pipes(&c);
    all_methods(&c);
    T_CHECK(starts(&c, "left", "sleep 61.5", ""));
    T_CHECK(comes_up("61.5"));
    close(c.to);
    began = hfsb_clock_ms();
    close_pipes(&c);
    T_CHECK(hfsb_clock_ms() - began < 3000);
    T_CHECK(tt_running("61.5") == 0);
}

static void sockets_serve_every_method(void) {
    client c;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    all_methods(&c);
    hang_up(&c);
    ts_end(&s, true);
}

static void tokens_are_needed(void) {
    ts_conn   c;
    ts_server alone;
    unsigned  port = 0;
    open_server(NULL);
    add_codex(&s, false, 0, 0, true, &port);
    ts_run(&s);
    alone = s;
    alone.port = port;
    c = ts_connect(&alone);
    T_CHECK(!upgrade(&c, "/codex", NULL));
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&c.in), HFSB_LIT("HTTP/1.1 401 ")));
    ts_hang_up(&c);
    c = ts_connect(&alone);
    T_CHECK(!upgrade(&c, "/", "wrong"));
    ts_hang_up(&c);
    c = ts_connect(&alone);
    T_CHECK(upgrade(&c, "/", TS_TOKEN));
    ts_hang_up(&c);
    c = ts_connect(&alone);
    T_CHECK(upgrade(&c, "/codex", TS_TOKEN));
    ts_hang_up(&c);
    c = ts_connect(&s); /* it is not shown at the other port */
    T_CHECK(!upgrade(&c, "/codex", TS_TOKEN));
    ts_hang_up(&c);
    ts_end(&s, true);
}

static void nothing_works_before_initialize(void) {
    client c;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    T_CHECK(!call(&c, "environment/info", "null"));
    T_CHECK(error_code(&c) == -32600);
    T_CHECK(!call(&c, "initialize", "{\"resumeSessionId\":\"unknown\"}"));
    T_CHECK(error_code(&c) == -32600);
    hang_up(&c);
    ts_end(&s, true);
}

static void the_root_holds(void) {
    hfsb_tools_opts tools = HFSB_INIT;
    char            root[80];
    client          c;
    snprintf(root, sizeof root, "%s/work/in", tt_dir);
    T_CHECK(mkdir("in", 0777) == 0);
    tt_put("secret", HFSB_LIT("s"));
    T_CHECK(symlink("../secret", "in/out") == 0);
    tools.root = hfsb_cstr(root);
    open_server(&tools);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    initialize(&c, NULL, session);
    T_CHECK(!callf(&c, "fs/readFile", "{\"path\":\"file://%s/out\"}", root));
    T_CHECK(error_code(&c) == -32600);
    T_CHECK(!callf(&c, "fs/readFile", "{\"path\":\"file://%s/%%2e%%2e/"
                                      "secret\"}", root));
    T_CHECK(error_code(&c) == -32600);
    /* what is outside does not exist, for a client that searches upwards */
    T_CHECK(!callf(&c, "fs/getMetadata", "{\"path\":\"file://%s/work/.git\"}",
                   tt_dir));
    T_CHECK(error_code(&c) == -32004);
    T_CHECK(callf(&c, "fs/writeFile", "{\"path\":\"file://%s/new\","
                                      "\"dataBase64\":\"\"}", root) != NULL);
    hang_up(&c);
    ts_end(&s, true);
    (void)!system("rm -rf in secret");
}

/* ---- lost connections ---- */

static void sessions_are_resumed(void) {
    client                 c, d;
    char                   id[40], again[40];
    const hfsb_json_value *r;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    initialize(&c, NULL, id);
    T_CHECK(starts(&c, "p", "echo a; while [ ! -f go ]; do sleep 0.02; done; "
                            "echo b; exit 5", ""));
    T_CHECK(finds(&c, "\"process/output\"", "\"YQo=\"", WAIT_MS));
    dial(&d); /* two connections cannot have it */
    T_CHECK(!callf(&d, "initialize", "{\"resumeSessionId\":\"%s\"}", id));
    T_CHECK(error_code(&d) == -32010);
    (void)ask(&c, "process/read", "{\"processId\":\"p\",\"afterSeq\":1,"
                                  "\"waitMs\":60000}"); /* it waits */
    T_CHECK(call(&c, "environment/status", "{}") != NULL);
    ts_reset(&c.conn);
    hang_up(&c);
    tt_put("go", HFSB_LIT(""));
    do {
        tt_sleep_ms(20);
        r = callf(&d, "initialize", "{\"resumeSessionId\":\"%s\"}", id);
    } while (!r && error_code(&d) == -32010);
    snprintf(again, sizeof again, "%s", text_of(r, "sessionId").ptr);
    T_CHECK(!strcmp(id, again));
    r = callf(&d, "process/read", "{\"processId\":\"p\",\"afterSeq\":1,"
                                  "\"waitMs\":10000}");
    T_STR(text_of(hfsb_json_at(hfsb_json_get(r, "chunks"), 0), "chunk"),
          "Ygo=");
    T_CHECK(finds(&d, "\"process/output\"", "\"seq\":2,", WAIT_MS));
    T_CHECK(finds(&d, "\"process/exited\"", "\"exitCode\":5", WAIT_MS));
    T_CHECK(finds(&d, "\"process/closed\"", "\"seq\":4", WAIT_MS));
    T_CHECK(!finds(&d, "\"process/output\"", "\"seq\":1,", 0));
    hang_up(&d);
    ts_end(&s, true);
    (void)unlink("go");
}

/* Resumes a session as soon as its old connection is known to be lost. */
static void resume(client *c, const char *id) {
    const hfsb_json_value *r = NULL;
    long long              end = hfsb_clock_ms() + WAIT_MS;
    dial(c);
    while (!r && hfsb_clock_ms() < end) {
        r = callf(c, "initialize", "{\"resumeSessionId\":\"%s\"}", id);
        if (!r) tt_sleep_ms(2);
    }
    T_CHECK(r != NULL);
}

/* The connection is cut after each byte of a start, which is then repeated:
   the command runs once. */
static void a_cut_start_runs_once(void) {
    client   c, d;
    char     id[40], pid[20], command[80], text[5000];
    hfsb_buf out = HFSB_INIT;
    size_t   n, all, step;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    initialize(&c, NULL, id);
    put_frame(&out, HFSBI_WS_TEXT, HFSB_LIT(""));
    step = t_quick() ? 37 : 1;
    for (n = 0, all = 1; n <= all; n += step) {
        snprintf(pid, sizeof pid, "cut%zu", n);
        snprintf(command, sizeof command, "echo %zu >> runs; echo done", n);
        snprintf(text, sizeof text,
                 "{\"id\":9,\"method\":\"process/start\",\"params\":%s}",
                 shell(pid, command, ""));
        hfsb_buf_truncate(&out, 0);
        put_frame(&out, HFSBI_WS_TEXT, hfsb_cstr(text));
        all = out.len;
        T_CHECK(ts_send(&c.conn, hfsb_str_make(out.ptr, n < all ? n : all)));
        hang_up(&c);
        resume(&d, id);
        T_CHECK(starts(&d, pid, command, ""));
        is_output(&d, pid, "stdout", "done\n", 0);
        T_CHECK(!starts(&d, pid, command, "")); /* not after a resume */
        c = d;
    }
    T_CHECK(tt_lines_in("runs") == (long)(all / step + 1));
    /* another command with the same id is not the same start */
    hang_up(&c);
    resume(&d, id);
    T_CHECK(!starts(&d, pid, "echo other >> runs", ""));
    T_CHECK(error_code(&d) == -32600);
    T_CHECK(tt_lines_in("runs") == (long)(all / step + 1));
    hang_up(&d);
    hfsb_buf_free(&out);
    ts_end(&s, true);
    (void)unlink("runs");
}

static size_t memory_held(void) {
    size_t n;
    pthread_mutex_lock(&tt_memory.lock);
    n = tt_memory.heap.live;
    pthread_mutex_unlock(&tt_memory.lock);
    return n;
}

/* A client that does not read costs little, and loses nothing. */
static void reads_slowly(client *c) {
    hfsb_buf out = HFSB_INIT;
    size_t   before;
    int      i;
    initialize(c, NULL, session);
    before = memory_held();
    T_CHECK(starts(c, "slow", "seq 1 1000000; echo end >> slow", ""));
    for (i = 0; i < 50; i++) {
        tt_sleep_ms(20);
        T_CHECK(memory_held() < before + (4u << 20));
    }
    T_CHECK(access("slow", F_OK) != 0); /* it waits */
    T_CHECK(output_of(c, "slow", "stdout", &out) == 0);
    T_CHECK(out.len == 6888896);
    T_CHECK(access("slow", F_OK) == 0);
    hfsb_buf_free(&out);
    (void)unlink("slow");
}

static void a_slow_reader_holds_the_process(void) {
    client c;
    int    size = 65536;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    (void)setsockopt(c.conn.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    reads_slowly(&c);
    hang_up(&c);
    ts_end(&s, true);
}

static void a_slow_pipe_holds_the_process(void) {
    client c;
    open_pipes(&c);
    reads_slowly(&c);
    close(c.to);
    close_pipes(&c);
}

static void old_sessions_make_room(void) {
    client c;
    char   first[40], id[40];
    int    i;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    initialize(&c, NULL, first);
    T_CHECK(starts(&c, "nap", "sleep 62.5", ""));
    T_CHECK(comes_up("62.5"));
    hang_up(&c);
    for (i = 0; i < 64; i++) {
        dial(&c);
        initialize(&c, NULL, id);
        hang_up(&c);
    }
    for (i = 0; i < 100 && tt_running("62.5"); i++) tt_sleep_ms(50);
    T_CHECK(tt_running("62.5") == 0);
    dial(&c);
    T_CHECK(!callf(&c, "initialize", "{\"resumeSessionId\":\"%s\"}", first));
    T_CHECK(error_code(&c) == -32600);
    hang_up(&c);
    ts_end(&s, true);
}

static void a_lost_client_ends_its_processes_later(void) {
    client c;
    int    i;
    if (!t_long()) return;
    open_server(NULL);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    initialize(&c, NULL, session);
    T_CHECK(starts(&c, "nap", "sleep 163.5", ""));
    hang_up(&c);
    tt_sleep_ms(55000);
    T_CHECK(tt_running("163.5") == 1);
    for (i = 0; i < 200 && tt_running("163.5"); i++) tt_sleep_ms(50);
    T_CHECK(tt_running("163.5") == 0);
    ts_end(&s, true);
}

/* Many commands at once: more than run at a time. */
static void starts_wait_for_a_place(void) {
    hfsb_tools_opts tools = HFSB_INIT;
    client          c;
    long            id;
    tools.max_running = 1;
    open_server(&tools);
    add_codex(&s, false, 0, 0, false, NULL);
    ts_run(&s);
    dial(&c);
    initialize(&c, NULL, session);
    T_CHECK(starts(&c, "a", "read x; echo a", ",\"pipeStdin\":true"));
    id = ask(&c, "process/start", shell("b", "echo b", ""));
    T_CHECK(!call(&c, "process/read", "{\"processId\":\"b\"}"));
    T_STR(text_of(call(&c, "process/write",
                       "{\"processId\":\"b\",\"chunk\":\"\"}"),
                  "status"),
          "starting");
    (void)ask(&c, "process/start", shell("d", "echo d >> never", ""));
    T_CHECK(flag_of(call(&c, "process/terminate", "{\"processId\":\"d\"}"),
                    "running"));
    (void)call(&c, "process/write",
               "{\"processId\":\"a\",\"chunk\":\"Cg==\"}");
    T_CHECK(answered(&c, id) && hfsb_json_get(c.doc.root, "result"));
    is_output(&c, "a", "stdout", "a\n", 0);
    is_output(&c, "b", "stdout", "b\n", 0);
    T_CHECK(access("never", F_OK) != 0);
    /* one that waits when the server ends */
    T_CHECK(starts(&c, "e", "sleep 64.5", ""));
    (void)ask(&c, "process/start", shell("f", "echo f", ""));
    (void)call(&c, "environment/status", "{}");
    ts_end(&s, true);
    hang_up(&c);
    T_CHECK(tt_running("64.5") == 0);
}

/* ---- no memory ---- */

static const char *const talk[] = {
    "{\"id\":1,\"method\":\"initialize\",\"params\":{\"clientName\":\"t\"}}",
    "{\"id\":2,\"method\":\"environment/info\"}",
    "{\"id\":3,\"method\":\"fs/writeFile\",\"params\":{\"path\":"
    "\"file://DIR/work/m\",\"dataBase64\":\"aGVsbG8=\"}}",
    "{\"id\":4,\"method\":\"fs/readFile\",\"params\":{\"path\":"
    "\"file://DIR/work/m\"}}",
    "{\"id\":5,\"method\":\"fs/walk\",\"params\":{\"path\":"
    "\"file://DIR/work\",\"options\":{\"maxDepth\":2}}}",
    "{\"id\":6,\"method\":\"fs/open\",\"params\":{\"path\":"
    "\"file://DIR/work/m\",\"handleId\":\"h\"}}",
    "{\"id\":7,\"method\":\"process/start\",\"params\":{\"processId\":\"p\","
    "\"argv\":[\"/bin/echo\",\"hi\"],\"cwd\":\"file://DIR/work\",\"env\":{},"
    "\"envPolicy\":{\"inherit\":\"core\"}}}",
    "{\"id\":8,\"method\":\"process/read\",\"params\":{\"processId\":\"p\","
    "\"waitMs\":50}}"};

/* Replaces DIR. */
static void put_talk(hfsb_buf *out) {
    size_t i;
    for (i = 0; i < TT_COUNT(talk); i++) {
        const char *at = talk[i], *dir;
        while ((dir = strstr(at, "DIR")) != NULL) {
            T_CHECK(hfsb_buf_append(out, hfsb_str_make(at, (size_t)(dir - at)))
                    == HFSB_OK);
            T_CHECK(hfsb_buf_append(out, hfsb_cstr(tt_dir)) == HFSB_OK);
            at = dir + 3;
        }
        T_CHECK(hfsb_buf_printf(out, "%s\n", at) == HFSB_OK);
    }
}

/* Serves the talk in this thread until its process has ended. */
static void talks(hfsb_alloc alloc, t_heap *heap, size_t fail_at,
                  bool forever) {
    hfsb_server_opts  o = HFSB_INIT;
    hfsb_dialect_opts d = HFSB_INIT;
    hfsb_server      *server = NULL;
    hfsb_buf          all = HFSB_INIT;
    int               in[2], out[2], turn;
    char              block[4096];
    bool              runs;
    memset(heap, 0, sizeof *heap);
    put_talk(&all);
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC | O_NONBLOCK)) abort();
    T_CHECK(hfsbi_write_all(in[1], hfsb_buf_str(&all)));
    o.alloc = alloc;
    o.no_threads = true;
    o.no_auth = true;
    d.name = "codex";
    d.on_fds = true;
    d.in = in[0];
    d.out = out[1];
    if (hfsb_server_open(&o, &server, NULL) != HFSB_OK ||
        hfsb_server_add_sandbox(server, NULL, NULL) != HFSB_OK)
        abort();
    heap->fail_at = fail_at ? heap->calls + fail_at : 0;
    heap->forever = forever;
    runs = hfsb_server_add_dialect(server, &d, NULL, NULL) == HFSB_OK;
    hfsb_buf_truncate(&all, 0);
    for (turn = 0; runs && turn < 400; turn++) {
        ssize_t n = read(out[0], block, sizeof block);
        if (n > 0 && hfsb_buf_append(&all, hfsb_str_make(block, (size_t)n)) !=
                         HFSB_OK)
            abort();
        runs = hfsb_server_poll(server, 5);
        if (fail_at && turn > 40) heap->fail_at = 0;
        if (all.len && strstr(all.ptr, "process/closed") &&
            strstr(all.ptr, "{\"id\":8,"))
            break;
        if (fail_at && turn > 60) break;
    }
    if (!fail_at) {
        T_CHECK(all.len && strstr(all.ptr, "process/closed"));
        T_CHECK(all.len && strstr(all.ptr, "aGkK"));
    }
    heap->fail_at = 0;
    hfsb_server_close(server);
    close(in[0]);
    close(in[1]);
    close(out[0]);
    close(out[1]);
    hfsb_buf_free(&all);
    T_CHECK(heap->live == 0 && !heap->wrong);
}

static void no_memory_at_any_moment(void) {
    t_heap     heap;
    hfsb_alloc alloc;
    size_t     k, total;
    int        mode;
    alloc.fn = t_heap_fn;
    alloc.user = &heap;
    talks(alloc, &heap, 0, false);
    total = heap.calls < 260 ? heap.calls : 260;
    for (mode = 0; mode < 2; mode++)
        for (k = 1; k <= total; k += t_long() ? 1 : t_quick() ? 29 : 5)
            talks(alloc, &heap, k, mode == 1);
    (void)unlink("m");
}

int main(void) {
    tt_begin();
    setenv("X_KEEP", "k", 1);
    setenv("X_DROP1", "d", 1);
    setenv("X_Token", "t", 1);
    setenv("HOME", "/h", 1);
    pipes_serve_every_method();
    sockets_serve_every_method();
    TT_RUN(tokens_are_needed);
    TT_RUN(nothing_works_before_initialize);
    TT_RUN(the_root_holds);
    TT_RUN(sessions_are_resumed);
    TT_RUN(a_cut_start_runs_once);
    TT_RUN(a_slow_reader_holds_the_process);
    TT_RUN(a_slow_pipe_holds_the_process);
    TT_RUN(old_sessions_make_room);
    TT_RUN(starts_wait_for_a_place);
    TT_RUN(a_lost_client_ends_its_processes_later);
    TT_RUN(no_memory_at_any_moment);
    return TT_END();
}
