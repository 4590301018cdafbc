/* test_e2b.c - E2B's envd and control plane, spoken byte by byte. */
#include "../support/t_server.h"
#ifdef HFSBI_SPLIT
#include "../../src/dialect/dialect_private.h"
#endif

static ts_server      s; /* its port is that of the dialect */
static const hfsb_str nothing = HFSB_INIT;

#define TOKEN  "an-access-token-of-e2b"
#define ACCESS "X-Access-Token: " TOKEN "\r\n"
#define STREAM "Content-Type: application/connect+json\r\n"

typedef struct how {
    bool        no_auth, no_token, rooted;
    const char *token; /* of the dialect; NULL: none of its own */
} how;

static void start(const how *h) {
    hfsb_server_opts         o = HFSB_INIT;
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    hfsb_dialect_opts        d = HFSB_INIT;
    hfsb_err                 err = HFSB_INIT;
    char                     work[128];
    snprintf(work, sizeof work, "%s/work", tt_dir);
    o.no_auth = h->no_auth;
    o.alloc = tt_alloc();
    tools.work_dir = hfsb_cstr(work);
    if (h->rooted) tools.root = tools.work_dir;
    tools.grace_ms = 200;
    tools.alloc = tt_alloc();
    box.tools = &tools;
    if (h->no_token) { /* ts_open() gives it one otherwise */
        memset(&s, 0, sizeof s);
        T_CHECK(hfsb_server_open(&o, &s.server, &err) == HFSB_OK);
    } else ts_open(&s, &o);
    T_CHECK(hfsb_server_add_sandbox(s.server, &box, &err) == HFSB_OK);
    d.name = "e2b";
    d.own_port = true;
    d.token = hfsb_cstr(h->token);
    T_CHECK(hfsb_server_add_dialect(s.server, &d, &s.port, &err) == HFSB_OK);
    ts_run(&s);
}

static const how open_how = {true, false, false, NULL};
static const how rooted_how = {true, false, true, NULL};

static void end(void) {
    ts_end(&s, false);
    T_CHECK(tt_memory.heap.live == 0 && !tt_memory.heap.wrong);
}

/* ---- calls without streams ---- */

static void rpc(ts_reply *r, const char *method, const char *json) {
    char target[128];
    snprintf(target, sizeof target, "/%s", method);
    ts_post(&s, r, target, json);
}

#define PROCESS(r, method, json) rpc(r, "process.Process/" method, json)
#define FILES(r, method, json)   rpc(r, "filesystem.Filesystem/" method, json)

/* Checks an error: status, code and a part of the message. */
static void refused(int line, const ts_reply *r, int status, const char *code,
                    const char *part) {
    bool ok =
        r->whole && r->status == status &&
        hfsb_str_equal(ts_text(r, "code"), hfsb_cstr(code)) &&
        hfsb_str_find(ts_text(r, "message"), hfsb_cstr(part)) != HFSB_NPOS;
    t_checks++;
    if (ok) return;
    t_failed++;
    printf("line %d: %s: %d %.*s\n  want %d %s %s\n", line, t_name, r->status,
           (int)r->body.len, r->body.ptr ? r->body.ptr : "", status, code,
           part);
}
#define REFUSED(r, status, code, part) refused(__LINE__, r, status, code, part)

/* ---- streams ---- */

typedef struct stream {
    ts_conn       c;
    hfsb_buf      bytes; /* of the body, not taken yet */
    bool          began, over;
    hfsb_json_doc doc; /* the last message */
    unsigned      flags;
} stream;

static void envelope(hfsb_buf *out, unsigned flags, hfsb_str json) {
    char head[HFSBI_CONNECT_HEAD];
    T_CHECK(hfsbi_connect_write_head(flags, json.len, head));
    T_CHECK(hfsb_buf_append(out, hfsb_str_make(head, sizeof head)) == HFSB_OK);
    T_CHECK(hfsb_buf_append(out, json) == HFSB_OK);
}

static void stream_open(stream *st, const char *method, const char *fields,
                        const char *json) {
    hfsb_buf body = HFSB_INIT;
    char     target[128], all[512];
    memset(st, 0, sizeof *st);
    envelope(&body, 0, hfsb_cstr(json));
    snprintf(target, sizeof target, "/%s", method);
    snprintf(all, sizeof all, STREAM "%s", fields);
    st->c = ts_connect(&s);
    ts_ask(&st->c, "POST", target, all, hfsb_buf_str(&body));
    hfsb_buf_free(&body);
}

static void stream_close(stream *st) {
    ts_hang_up(&st->c);
    hfsb_buf_free(&st->bytes);
    hfsb_json_free(&st->doc);
}

/* Adds a chunk to the bytes. */
static bool stream_chunk(stream *st) {
    size_t n, size;
    if (!st->began) {
        n = ts_upto(&st->c, "\r\n\r\n");
        if (!n || strncmp(st->c.in.ptr, "HTTP/1.1 200", 12)) return false;
        ts_shift(&st->c, n);
        st->began = true;
    }
    n = ts_upto(&st->c, "\r\n");
    if (!n) return false;
    size = (size_t)strtoul(st->c.in.ptr, NULL, 16);
    ts_shift(&st->c, n);
    if (!ts_take(&st->c, size, &st->bytes) || !ts_take(&st->c, 2, NULL))
        return false;
    if (!size) st->over = true;
    return size > 0;
}

/* Reads the next message; false at the end. */
static bool stream_next(stream *st) {
    const unsigned char *b;
    size_t               n;
    while (st->bytes.len < 5)
        if (!stream_chunk(st)) return false;
    b = (const unsigned char *)st->bytes.ptr;
    n = (size_t)b[1] << 24 | (size_t)b[2] << 16 | (size_t)b[3] << 8 | b[4];
    while (st->bytes.len < 5 + n)
        if (!stream_chunk(st)) return false;
    st->flags = (unsigned char)st->bytes.ptr[0];
    hfsb_json_free(&st->doc);
    T_CHECK(hfsb_json_parse(hfsb_str_make(st->bytes.ptr + 5, n), NULL,
                            &st->doc, NULL) == HFSB_OK);
    memmove(st->bytes.ptr, st->bytes.ptr + 5 + n, st->bytes.len - 5 - n);
    hfsb_buf_truncate(&st->bytes, st->bytes.len - 5 - n);
    return true;
}

static const hfsb_json_value *event(const stream *st, const char *name) {
    return hfsb_json_get(hfsb_json_get(st->doc.root, "event"), name);
}

/* Reads the pid of the start. */
static long started(stream *st) {
    T_CHECK(stream_next(st) && event(st, "start"));
    return (long)hfsb_json_int(hfsb_json_get(event(st, "start"), "pid"), 0);
}

/* Reads data to the end event; *out gets it, of all kinds. */
static bool finish(stream *st, hfsb_buf *out) {
    static const char *const kinds[] = {"stdout", "stderr", "pty"};
    size_t                   i;
    while (stream_next(st) && !st->flags) {
        const hfsb_json_value *data = event(st, "data");
        if (event(st, "end")) return true;
        for (i = 0; data && i < 3; i++)
            if (hfsb_json_get(data, kinds[i]))
                T_CHECK(hfsb_base64_decode(hfsbi_json_get_str(data, kinds[i]),
                                           out, NULL) == HFSB_OK);
    }
    return false;
}

static long long exit_code(const stream *st) {
    return hfsb_json_int(hfsb_json_get(event(st, "end"), "exitCode"), -99);
}

/* The end of the stream: code and a part of the message ("": no error). */
static void ends(int line, stream *st, const char *code, const char *part) {
    const hfsb_json_value *error;
    while (stream_next(st) && !st->flags) continue;
    error = hfsb_json_get(st->doc.root, "error");
    t_checks++;
    if (st->flags == 2 && !stream_next(st) && st->over &&
        hfsb_str_equal(hfsbi_json_get_str(error, "code"), hfsb_cstr(code)) &&
        hfsb_str_find(hfsbi_json_get_str(error, "message"), hfsb_cstr(part)) !=
            HFSB_NPOS)
        return;
    t_failed++;
    printf("line %d: %s: flags %u, over %d, code %s, message %s\n", line,
           t_name, st->flags, st->over, hfsbi_json_get_str(error, "code").ptr,
           hfsbi_json_get_str(error, "message").ptr);
}
#define ENDS(st, code, part) ends(__LINE__, st, code, part)

#define SH(script) \
    "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"" script "\"]"

static void start_process(stream *st, const char *fields, const char *json) {
    stream_open(st, "process.Process/Start", fields, json);
}

static void a_command_streams_its_output(void) {
    stream                 st;
    hfsb_buf               out = HFSB_INIT;
    const hfsb_json_value *e;
    start(&open_how);
    start_process(
        &st, "",
        SH("echo $A; echo err >&2; pwd; exit 3") ",\"envs\""
                                                 ":{\"A\":\"1\"},\"cwd\":\"/"
                                                 "\"},\"stdin\":false}");
    T_CHECK(started(&st) > 1 && finish(&st, &out));
    e = event(&st, "end");
    T_CHECK(exit_code(&st) == 3);
    T_CHECK(hfsb_json_bool(hfsb_json_get(e, "exited"), false));
    T_STR(hfsbi_json_get_str(e, "status"), "exit status 3");
    T_STR(hfsbi_json_get_str(e, "error"), "exit status 3");
    ENDS(&st, "", "");
    T_CHECK(out.len == 8 && strstr(out.ptr, "1\n") && strstr(out.ptr, "/\n") &&
            strstr(out.ptr, "err\n"));
    stream_close(&st);
    start_process(&st, "", SH("kill -9 $$") "}}");
    T_CHECK(started(&st) && finish(&st, &out) && exit_code(&st) == -1);
    T_STR(hfsbi_json_get_str(event(&st, "end"), "status"), "signal: killed");
    stream_close(&st);
    hfsb_buf_free(&out);
    end();
}

static void a_command_that_cannot_start_is_refused(void) {
    static const struct {
        const char *json, *code, *part;
    } cases[] = {
        {"{\"process\":{\"cmd\":\"/no/such/program\"}}", "invalid_argument",
         "/no/such/program"},
        {SH("true") ",\"cwd\":\"/no/such\"}}", "invalid_argument", "/no/such"},
        {"{\"process\":{}}", "invalid_argument", "cmd"},
        {"{\"process\":{\"cmd\":\"a\\u0000b\"}}", "invalid_argument", "NUL"},
        {SH("true") ",\"envs\":{\"A=B\":\"\"}}}", "invalid_argument",
         "environment"},
        {SH("true") ",\"envs\":{\"A\":1}}}", "invalid_argument",
         "environment"},
        {"[]", "invalid_argument", "object"},
        {"{", "invalid_argument", ""}};
    stream st;
    size_t i;
    start(&open_how);
    for (i = 0; i < TT_COUNT(cases); i++) {
        start_process(&st, "", cases[i].json);
        ENDS(&st, cases[i].code, cases[i].part);
        stream_close(&st);
    }
    end();
}

static void a_client_that_goes_leaves_its_command(void) {
    stream   st, again;
    hfsb_buf out = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    long     pid;
    char     ask[64];
    start(&open_how);
    start_process(
        &st, "",
        SH("echo early; read x; echo late; exit 4") "},\"tag\":\"mine\","
                                                    "\"stdin\":true}");
    pid = started(&st);
    T_CHECK(stream_next(&st) && event(&st, "data"));
    stream_close(&st);
    tt_sleep_ms(50);
    T_CHECK(tt_alive(pid));
    stream_open(&st, "process.Process/Connect", "",
                "{\"process\":{\"tag\":\"mine\"}}");
    T_CHECK(started(&st) == pid);
    snprintf(ask, sizeof ask, "{\"process\":{\"pid\":%ld},\"replay\":true}",
             pid);
    stream_open(&again, "process.Process/Connect", "", ask);
    T_CHECK(started(&again) == pid);
    PROCESS(&r, "List", "{}");
    TS_IS(&r, 200, "\"tag\":\"mine\"");
    TS_IS(&r, 200,
          "\"args\":[\"-c\",\"echo early; read x; echo late; exit 4\"]");
    PROCESS(&r, "SendInput",
            "{\"process\":{\"tag\":\"mine\"},\"input\":{\"stdin\":\"Cg==\"}}");
    TS_IS(&r, 200, "{}");
    T_CHECK(finish(&st, &out) && exit_code(&st) == 4);
    T_STR(hfsb_buf_str(&out), "late\n");
    ENDS(&st, "", "");
    hfsb_buf_truncate(&out, 0);
    T_CHECK(finish(&again, &out) && exit_code(&again) == 4);
    T_STR(hfsb_buf_str(&out), "early\nlate\n");
    stream_close(&st);
    stream_close(&again);
    /* its exit stays known */
    stream_open(&st, "process.Process/Connect", "",
                "{\"process\":{\"tag\":\"mine\"}}");
    T_CHECK(started(&st) == pid && finish(&st, &out) && exit_code(&st) == 4);
    stream_close(&st);
    PROCESS(&r, "List", "{}");
    T_STR(hfsb_buf_str(&r.body), "{\"processes\":[]}");
    PROCESS(&r, "SendSignal",
            "{\"process\":{\"tag\":\"mine\"},\"signal\":\"SIGNAL_SIGKILL\"}");
    REFUSED(&r, 404, "not_found", "has ended");
    ts_drop(&r);
    hfsb_buf_free(&out);
    end();
}

static void a_deadline_ends_the_command(void) {
    stream    st;
    long      pid;
    long long began;
    start(&open_how);
    began = hfsb_clock_ms();
    start_process(&st, "Connect-Timeout-Ms: 300\r\n", SH("sleep 60") "}}");
    pid = started(&st);
    ENDS(&st, "deadline_exceeded", "timeout");
    T_CHECK(hfsb_clock_ms() - began >= 300 && tt_gone(pid));
    stream_close(&st);
    /* of a Connect it ends the stream alone */
    start_process(&st, "", SH("sleep 60") "},\"tag\":\"t\"}");
    pid = started(&st);
    stream_close(&st);
    stream_open(&st, "process.Process/Connect", "Connect-Timeout-Ms: 200\r\n",
                "{\"process\":{\"tag\":\"t\"}}");
    T_CHECK(started(&st) == pid);
    ENDS(&st, "deadline_exceeded", "timeout");
    T_CHECK(tt_alive(pid));
    stream_close(&st);
    end();
    T_CHECK(tt_gone(pid));
}

static void silence_is_broken_by_keepalives(void) {
    stream   st;
    hfsb_buf out = HFSB_INIT;
    start(&open_how);
    start_process(&st, "Keepalive-Ping-Interval: 1\r\n",
                  SH("sleep 2.5; echo x") "}}");
    T_CHECK(started(&st) > 0);
    T_CHECK(stream_next(&st) && event(&st, "keepalive"));
    T_CHECK(stream_next(&st) && event(&st, "keepalive"));
    T_CHECK(finish(&st, &out) && exit_code(&st) == 0);
    T_STR(hfsb_buf_str(&out), "x\n");
    stream_close(&st);
    hfsb_buf_free(&out);
    end();
}

static size_t live_bytes(void) {
    size_t n;
    pthread_mutex_lock(&tt_memory.lock);
    n = tt_memory.heap.live;
    pthread_mutex_unlock(&tt_memory.lock);
    return n;
}

static void a_slow_reader_costs_little_memory(void) {
    stream   st;
    hfsb_buf out = HFSB_INIT;
    start(&open_how);
    start_process(&st, "", SH("head -c 30000000 /dev/zero; echo end") "}}");
    T_CHECK(started(&st) > 0);
    tt_sleep_ms(700);
    T_CHECK(live_bytes() < 4000000);
    T_CHECK(finish(&st, &out) && exit_code(&st) == 0);
    T_CHECK(out.len == 30000004 && !strcmp(out.ptr + out.len - 4, "end\n"));
    stream_close(&st);
    hfsb_buf_free(&out);
    end();
}

/* ---- input ---- */

static void input_reaches_the_command(void) {
    stream   st;
    hfsb_buf out = HFSB_INIT, big = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    size_t   i;
    start(&open_how);
    start_process(&st, "", SH("sleep 0.3; cat") "},\"tag\":\"c\"}");
    T_CHECK(started(&st) > 0);
    T_CHECK(hfsb_buf_append(&big, HFSB_LIT("{\"process\":{\"tag\":\"c\"},"
                                           "\"input\":{\"stdin\":\"")) ==
            HFSB_OK);
    for (i = 0; i < 400000; i++)
        T_CHECK(hfsb_buf_append(&big, HFSB_LIT("YWJjZGVm")) == HFSB_OK);
    T_CHECK(hfsb_buf_append(&big, HFSB_LIT("\"}}")) == HFSB_OK);
    PROCESS(&r, "SendInput", big.ptr); /* more than the command reads now */
    TS_IS(&r, 200, "{}");
    PROCESS(&r, "SendInput",
            "{\"process\":{\"tag\":\"c\"},\"input\":{"
            "\"stdin\":\"_-8\"}}"); /* url-safe, unpadded */
    TS_IS(&r, 200, "{}");
    PROCESS(&r, "SendInput",
            "{\"process\":{\"tag\":\"c\"},\"input\":{"
            "\"stdin\":\"***\"}}");
    T_CHECK(r.status == 400);
    PROCESS(&r, "SendInput",
            "{\"process\":{\"tag\":\"c\"},\"input\":{"
            "\"pty\":\"Cg==\"}}");
    REFUSED(&r, 400, "failed_precondition", "no terminal");
    PROCESS(&r, "Update",
            "{\"process\":{\"tag\":\"c\"},\"pty\":{\"size\":{"
            "\"cols\":1,\"rows\":1}}}");
    REFUSED(&r, 400, "failed_precondition", "terminal");
    PROCESS(&r, "SendSignal", "{\"process\":{\"tag\":\"c\"},\"signal\":5}");
    REFUSED(&r, 400, "invalid_argument", "SIGNAL_SIGKILL");
    PROCESS(&r, "CloseStdin", "{\"process\":{\"tag\":\"c\"}}");
    TS_IS(&r, 200, "{}");
    T_CHECK(finish(&st, &out) && exit_code(&st) == 0);
    T_CHECK(out.len == 2400002 && !memcmp(out.ptr + 2400000, "\xff\xef", 2));
    PROCESS(&r, "CloseStdin", "{\"process\":{\"tag\":\"c\"}}");
    REFUSED(&r, 404, "not_found", "has ended");
    PROCESS(&r, "CloseStdin", "{\"process\":{\"pid\":999999999}}");
    REFUSED(&r, 404, "not_found", "999999999");
    PROCESS(&r, "CloseStdin", "{}");
    REFUSED(&r, 400, "invalid_argument", "pid or a tag");
    stream_close(&st);
    ts_drop(&r);
    hfsb_buf_free(&out);
    hfsb_buf_free(&big);
    end();
}

/* Sends bytes as the body of StreamInput, in pieces of `step`. */
static void put_stream(ts_conn *c, hfsb_str body, size_t step) {
    hfsb_buf out = HFSB_INIT;
    size_t   at;
    T_CHECK(hfsb_buf_append(
                &out, HFSB_LIT("POST /process.Process/StreamInput HTTP/1.1\r\n"
                               "Host: localhost\r\n" STREAM
                               "Transfer-Encoding: chunked\r\n\r\n")) ==
            HFSB_OK);
    for (at = 0; at < body.len; at += step) {
        hfsb_str piece = hfsb_str_slice(body, at, at + step);
        T_CHECK(hfsb_http_put_chunk(&out, piece) == HFSB_OK);
    }
    T_CHECK(hfsb_buf_append(&out, HFSB_LIT("0\r\n\r\n")) == HFSB_OK);
    T_CHECK(ts_send(c, hfsb_buf_str(&out)));
    hfsb_buf_free(&out);
}

static void a_stream_of_input_may_be_cut_anywhere(void) {
    static const size_t steps[] = {1, 2, 7, 1000, 5000000};
    static const char small[] = "{\"data\":{\"input\":{\"stdin\":\"eAo=\"}}}";
    stream            st;
    hfsb_buf          body = HFSB_INIT, out = HFSB_INIT, one = HFSB_INIT;
    ts_reply          r = HFSB_INIT;
    size_t            i, k;
    start(&open_how);
    for (i = 0; i < TT_COUNT(steps); i++) {
        ts_conn c = ts_connect(&s);
        start_process(&st, "", SH("sleep 0.2; wc -c") "},\"tag\":\"c\"}");
        T_CHECK(started(&st) > 0);
        hfsb_buf_truncate(&body, 0);
        hfsb_buf_truncate(&out, 0);
        envelope(&body, 0,
                 HFSB_LIT("{\"start\":{\"process\":{\"tag\":\"c\"}}}"));
        envelope(&body, 0, HFSB_LIT("{\"keepalive\":{}}"));
        for (k = 0; k < 3; k++) envelope(&body, 0, hfsb_cstr(small));
        if (steps[i] > 100) { /* more than the command takes at once */
            hfsb_buf_truncate(&one, 0);
            hfsb_buf_append(&one,
                            HFSB_LIT("{\"data\":{\"input\":{\"stdin\":\""));
            for (k = 0; k < 250000; k++)
                hfsb_buf_append(&one, HFSB_LIT("YWJj"));
            hfsb_buf_append(&one, HFSB_LIT("\"}}}"));
            for (k = 0; k < 4; k++) envelope(&body, 0, hfsb_buf_str(&one));
        }
        put_stream(&c, hfsb_buf_str(&body), steps[i]);
        T_CHECK(ts_read(&c, &r, false) && r.status == 200);
        T_CHECK(r.body.len == 14 && !memcmp(r.body.ptr + 5, "{}\2", 3));
        PROCESS(&r, "CloseStdin", "{\"process\":{\"tag\":\"c\"}}");
        TS_IS(&r, 200, "{}");
        T_CHECK(finish(&st, &out) && exit_code(&st) == 0);
        T_CHECK(atol(out.ptr) == (steps[i] > 100 ? 3000006 : 6));
        stream_close(&st);
        ts_hang_up(&c);
    }
    hfsb_buf_free(&one);
    hfsb_buf_free(&body);
    hfsb_buf_free(&out);
    ts_drop(&r);
    end();
}

static void a_bad_stream_of_input_is_refused(void) {
    static const struct {
        unsigned    flags;
        const char *json, *part;
    } cases[] = {
        {0, "{\"data\":{\"input\":{\"stdin\":\"eAo=\"}}}", "first message"},
        {0, "{\"start\":{\"process\":{\"tag\":\"none\"}}}", "not_found"},
        {0, "{", "invalid_argument"},
        {1, "{}", "unimplemented"},
        {8, "{}", "invalid_argument"}};
    ts_reply r = HFSB_INIT;
    size_t   i;
    start(&open_how);
    for (i = 0; i < TT_COUNT(cases); i++) {
        ts_conn  c = ts_connect(&s);
        hfsb_buf body = HFSB_INIT;
        envelope(&body, cases[i].flags, hfsb_cstr(cases[i].json));
        put_stream(&c, hfsb_buf_str(&body), 3);
        T_CHECK(ts_read(&c, &r, false));
        TS_IS(&r, 200, cases[i].part);
        ts_hang_up(&c);
        hfsb_buf_free(&body);
    }
    ts_drop(&r);
    end();
}

static void a_terminal_is_typed_into(void) {
    stream   st;
    hfsb_buf out = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    start(&open_how);
    start_process(&st, "",
                  "{\"process\":{\"cmd\":\"/bin/sh\"},\"tag\":\"t\","
                  "\"pty\":{\"size\":{\"cols\":91,\"rows\":31}}}");
    T_CHECK(started(&st) > 0);
    PROCESS(&r, "Update",
            "{\"process\":{\"tag\":\"t\"},\"pty\":{\"size\":{"
            "\"cols\":101,\"rows\":41}}}");
    TS_IS(&r, 200, "{}");
    /* "stty size; exit 6\n" */
    PROCESS(&r, "SendInput",
            "{\"process\":{\"tag\":\"t\"},\"input\":{\"pty\":"
            "\"c3R0eSBzaXplOyBleGl0IDYK\"}}");
    TS_IS(&r, 200, "{}");
    PROCESS(&r, "SendInput",
            "{\"process\":{\"tag\":\"t\"},\"input\":{\"stdin\":\"Cg==\"}}");
    T_CHECK(r.status >= 400);
    T_CHECK(finish(&st, &out) && exit_code(&st) == 6);
    T_CHECK(strstr(out.ptr, "41 101\r\n") != NULL);
    stream_close(&st);
    hfsb_buf_free(&out);
    ts_drop(&r);
    end();
}

/* ---- files ---- */

static void files_are_looked_at_and_changed(void) {
    ts_reply r = HFSB_INIT;
    start(&open_how);
    tt_put("f", HFSB_LIT("abc"));
    T_CHECK(symlink("f", "link") == 0 && symlink("nowhere", "broken") == 0);
    FILES(&r, "Stat", "{\"path\":\"f\"}");
    TS_IS(&r, 200, "\"name\":\"f\",\"type\":\"FILE_TYPE_FILE\"");
    TS_IS(&r, 200,
          "work/f\",\"size\":\"3\",\"mode\":420,\"permissions\":"
          "\"-rw-r--r--\"");
    FILES(&r, "Stat", "{\"path\":\"link\"}");
    TS_IS(&r, 200, "\"type\":\"FILE_TYPE_FILE\"");
    TS_IS(&r, 200, "work/f\"}}");
    FILES(&r, "Stat", "{\"path\":\"broken\"}");
    TS_IS(&r, 200, "\"type\":\"FILE_TYPE_SYMLINK\"");
    FILES(&r, "Stat", "{\"path\":\"none\"}");
    REFUSED(&r, 404, "not_found", "none");
    FILES(&r, "MakeDir", "{\"path\":\"a/b/c\"}");
    TS_IS(&r, 200, "\"type\":\"FILE_TYPE_DIRECTORY\"");
    FILES(&r, "MakeDir", "{\"path\":\"a/b/c\"}");
    REFUSED(&r, 409, "already_exists", "");
    FILES(&r, "MakeDir", "{\"path\":\"f\"}");
    REFUSED(&r, 400, "invalid_argument", "Is not a folder");
    FILES(&r, "ListDir", "{\"path\":\"a\"}");
    T_CHECK(ts_contains(&r, "\"name\":\"b\"") &&
            !ts_contains(&r, "\"name\":\"c\""));
    FILES(&r, "ListDir", "{\"path\":\"a\",\"depth\":2}");
    TS_IS(&r, 200, "work/a/b/c\"");
    FILES(&r, "ListDir", "{\"path\":\"f\"}");
    REFUSED(&r, 400, "invalid_argument", "Is not a folder");
    FILES(&r, "ListDir", "{\"path\":\"none\"}");
    REFUSED(&r, 404, "not_found", "");
    FILES(&r, "Move", "{\"source\":\"f\",\"destination\":\"n/g\"}");
    TS_IS(&r, 200, "work/n/g\"");
    T_CHECK(tt_file_is("n/g", HFSB_LIT("abc")));
    FILES(&r, "Move", "{\"source\":\"f\",\"destination\":\"h\"}");
    REFUSED(&r, 404, "not_found", "");
    FILES(&r, "Move", "{\"source\":\"n/g\"}");
    REFUSED(&r, 400, "invalid_argument", "path");
    FILES(&r, "Remove", "{\"path\":\"n\"}");
    T_STR(hfsb_buf_str(&r.body), "{}");
    FILES(&r, "Remove", "{\"path\":\"n\"}");
    TS_IS(&r, 200, "{}");
    FILES(&r, "Remove", "{\"path\":\"a\"}");
    TS_IS(&r, 200, "{}");
    T_CHECK(unlink("link") == 0 && unlink("broken") == 0);
    ts_drop(&r);
    end();
}

static void nothing_leads_out_of_the_root(void) {
    static const char *const asks[] = {"Stat", "MakeDir", "ListDir", "Remove",
                                       "CreateWatcher"};
    ts_reply                 r = HFSB_INIT;
    size_t                   i;
    char                     target[64];
    start(&rooted_how);
    T_CHECK(symlink("/tmp", "out") == 0);
    for (i = 0; i < TT_COUNT(asks); i++) {
        snprintf(target, sizeof target, "/filesystem.Filesystem/%s", asks[i]);
        ts_post(&s, &r, target, "{\"path\":\"../x\"}");
        REFUSED(&r, 403, "permission_denied", "outside");
        ts_post(&s, &r, target, "{\"path\":\"out/x\"}");
        REFUSED(&r, 403, "permission_denied", "outside");
    }
    ts_get(&s, &r, "/files?path=/etc/passwd");
    TS_IS(&r, 403, "\"code\":403");
    ts_call(&s, &r, "POST", "/files?path=out/x", "", HFSB_LIT("x"));
    TS_IS(&r, 403, "outside");
    FILES(&r, "Stat", "{\"path\":\"out\"}");
    TS_IS(&r, 200, "\"type\":\"FILE_TYPE_SYMLINK\"");
    T_CHECK(unlink("out") == 0);
    ts_drop(&r);
    end();
}

#define FORM "Content-Type: multipart/form-data; boundary=cut\r\n"
#define PART(name, file)                                    \
    "--cut\r\nContent-Disposition: form-data; name=\"" name \
    "\"; filename=\"" file "\"\r\n\r\n"

/* Extended attributes, where the file system has them. */
static void metadata_is_kept(void) {
    ts_reply r = HFSB_INIT;
    ts_call(&s, &r, "POST", "/files?path=d/m",
            "X-Metadata-Kind: a b\r\nX-Metadata-n: 1\r\n", HFSB_LIT("x"));
    if (r.status == 400 && ts_contains(&r, "no extended attributes")) {
        t_skipped++;
        ts_drop(&r);
        return;
    }
    TS_IS(&r, 200, "\"metadata\":{\"kind\":\"a b\",\"n\":\"1\"}");
    FILES(&r, "Stat", "{\"path\":\"d/m\"}");
    TS_IS(&r, 200, "\"kind\":\"a b\"");
    ts_call(&s, &r, "POST", "/files?path=d/m", "X-Metadata-Other: 2\r\n",
            HFSB_LIT("y"));
    FILES(&r, "Stat", "{\"path\":\"d/m\"}");
    TS_IS(&r, 200, "\"metadata\":{\"other\":\"2\"}");
    ts_drop(&r);
}

static void files_are_sent_and_received(void) {
    ts_reply r = HFSB_INIT;
    start(&open_how);
    ts_call(&s, &r, "POST", "/files?path=d/a&username=user",
            "Content-Type: application/octet-stream\r\n", HFSB_LIT("hello"));
    TS_IS(&r, 200, "work/d/a\",\"name\":\"a\",\"type\":\"file\"}]");
    T_CHECK(tt_file_is("d/a", HFSB_LIT("hello")));
    ts_call(
        &s, &r, "POST", "/files", FORM,
        HFSB_LIT(PART("file", "d/b") "1\r\n" PART("other", "d/x") "2\r\n" PART(
            "file", "d/c") "3\r\n--cut--\r\n"));
    TS_IS(&r, 200, "\"name\":\"b\"");
    TS_IS(&r, 200, "\"name\":\"c\"");
    T_CHECK(tt_file_is("d/b", HFSB_LIT("1")) &&
            tt_file_is("d/c", HFSB_LIT("3")) && access("d/x", F_OK));
    ts_call(&s, &r, "POST", "/files?path=d/e", FORM,
            HFSB_LIT(PART("file", "name") "4\r\n--cut--\r\n"));
    T_CHECK(r.status == 200 && tt_file_is("d/e", HFSB_LIT("4")));
    ts_call(&s, &r, "POST", "/files", "", HFSB_LIT("x"));
    TS_IS(&r, 400, "\"code\":400");
    metadata_is_kept();
    ts_call(&s, &r, "POST", "/files?path=d/z", "Content-Encoding: gzip\r\n",
            HFSB_LIT("x"));
    TS_IS(&r, 415, "compressed");
    ts_call(&s, &r, "POST", "/files?path=d", "", HFSB_LIT("x"));
    TS_IS(&r, 400, NULL);
    ts_get(&s, &r, "/files?path=d/a");
    TS_IS(&r, 200, "hello");
    T_STR(ts_field(&r, "Content-Type"), "application/octet-stream");
    ts_call(&s, &r, "GET", "/files?path=d/a", "Range: bytes=1-2\r\n", nothing);
    TS_IS(&r, 206, "el");
    ts_get(&s, &r, "/files?path=d");
    TS_IS(&r, 400, "\"code\":400");
    ts_get(&s, &r, "/files?path=none");
    TS_IS(&r, 404, "\"code\":404");
    ts_get(&s, &r, "/files?path=d/a&username=nobody-at-all");
    TS_IS(&r, 401, "\"code\":401");
    ts_post(&s, &r, "/files/compose",
            "{\"source_paths\":[\"d/a\",\"d/b\",\"d/c\"],"
            "\"destination\":\"d/all\"}");
    TS_IS(&r, 200, "\"name\":\"all\"");
    T_CHECK(tt_file_is("d/all", HFSB_LIT("hello13")) && access("d/a", F_OK) &&
            access("d/c", F_OK));
    ts_post(&s, &r, "/files/compose",
            "{\"source_paths\":[\"d/e\",\"d/none\"],\"destination\":\"d/x\"}");
    TS_IS(&r, 404, "none");
    T_CHECK(access("d/x", F_OK) && !access("d/e", F_OK));
    ts_post(&s, &r, "/files/compose", "{\"source_paths\":[]}");
    TS_IS(&r, 400, NULL);
    FILES(&r, "Remove", "{\"path\":\"d\"}");
    ts_drop(&r);
    end();
}

/* ---- tokens and users ---- */

static void sign(const char *path, const char *operation, const char *user,
                 const char *until, char out[64]) {
    unsigned char digest[HFSB_SHA256_SIZE];
    hfsb_sha256   sha;
    hfsb_buf      text = HFSB_INIT;
    T_CHECK(hfsb_buf_printf(&text, "%s:%s:%s:" TOKEN "%s%s", path, operation,
                            user, *until ? ":" : "", until) == HFSB_OK);
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, hfsb_buf_str(&text));
    hfsb_sha256_finish(&sha, digest);
    hfsb_buf_truncate(&text, 0);
    T_CHECK(hfsb_base64_encode(hfsb_str_make((char *)digest, sizeof digest),
                               &text) == HFSB_OK);
    snprintf(out, 64, "%.43s", text.ptr);
    hfsb_buf_free(&text);
}

/* A request without any token but those in the fields. */
static int status_of(const char *method, const char *target,
                     const char *fields, const char *body) {
    ts_conn  c = ts_connect(&s);
    ts_reply r = HFSB_INIT;
    hfsb_buf out = HFSB_INIT;
    int      status;
    T_CHECK(hfsb_buf_printf(&out,
                            "%s %s HTTP/1.1\r\nHost: localhost\r\n%s"
                            "Content-Length: %zu\r\n\r\n%s",
                            method, target, fields, strlen(body),
                            body) == HFSB_OK);
    T_CHECK(ts_send(&c, hfsb_buf_str(&out)) && ts_read(&c, &r, false));
    status = r.status;
    ts_hang_up(&c);
    ts_drop(&r);
    hfsb_buf_free(&out);
    return status;
}

/* A target with a signature, "+" and "/" encoded. */
static const char *signed_target(const char *path, const char *operation,
                                 const char *user, const char *until) {
    static char target[400];
    char        mark[64];
    hfsb_buf    coded = HFSB_INIT;
    sign(path, operation, user, until, mark);
    T_CHECK(hfsb_http_encode(hfsb_cstr(mark), false, &coded) == HFSB_OK);
    snprintf(target, sizeof target, "/files?path=%s&signature=v1_%s%s%s%s%s",
             path, coded.ptr, *user ? "&username=" : "", user,
             *until ? "&signature_expiration=" : "", until);
    hfsb_buf_free(&coded);
    return target;
}

static void the_token_is_needed(void) {
    static const how         with = {false, false, false, TOKEN};
    static const char *const open[] = {"/envs", "/metrics", "/files?path=f"};
    size_t                   i;
    char                     until[32];
    start(&with);
    tt_put("f", HFSB_LIT("abc"));
    T_CHECK(status_of("GET", "/health", "", "") == 204);
    for (i = 0; i < TT_COUNT(open); i++) {
        T_CHECK(status_of("GET", open[i], "", "") == 401);
        T_CHECK(status_of("GET", open[i], ACCESS, "") == 200);
        T_CHECK(status_of("GET", open[i], "X-Access-Token: x\r\n", "") == 401);
        T_CHECK(status_of("GET", open[i], ACCESS ACCESS, "") == 401);
        T_CHECK(status_of("GET", open[i],
                          "X-Sandbox-Authorization: Bearer " TS_TOKEN "\r\n",
                          "") == 401);
    }
    T_CHECK(status_of("POST", "/process.Process/List", TS_JSON, "{}") == 401);
    T_CHECK(status_of("POST", "/process.Process/List", TS_JSON ACCESS, "{}") ==
            200);
    T_CHECK(status_of("POST", "/process.Process/Start", STREAM, "") == 401);
    T_CHECK(status_of("POST", "/init", TS_JSON, "{}") == 401);
    T_CHECK(status_of("GET", "/v2/sandboxes", ACCESS, "") == 401);
    T_CHECK(status_of("GET", "/v2/sandboxes", "X-API-Key: " TOKEN "\r\n",
                      "") == 200);
    T_CHECK(status_of("GET", signed_target("f", "read", "", ""), "", "") ==
            200);
    T_CHECK(status_of("GET", signed_target("f", "read", "root", ""), "", "") ==
            200);
    T_CHECK(status_of("GET", signed_target("f", "write", "", ""), "", "") ==
            401);
    T_CHECK(status_of("GET", signed_target("f", "read", "", ""),
                      "X-Access-Token: x\r\n", "") == 401);
    snprintf(until, sizeof until, "%lld", hfsbi_time_ns() / 1000000000 + 60);
    T_CHECK(status_of("GET", signed_target("f", "read", "", until), "", "") ==
            200);
    T_CHECK(status_of("GET", signed_target("f", "read", "", "1000"), "", "") ==
            401);
    T_CHECK(status_of("GET", signed_target("f", "read", "", "-5"), "", "") ==
            401);
    T_CHECK(status_of("POST", signed_target("g", "write", "", ""), "",
                      "new") == 200);
    T_CHECK(tt_file_is("g", HFSB_LIT("new")));
    T_CHECK(status_of("POST", signed_target("g", "read", "", ""), "", "no") ==
            401);
    T_CHECK(tt_file_is("g", HFSB_LIT("new")));
    T_CHECK(unlink("f") == 0 && unlink("g") == 0);
    end();
}

static void the_first_init_sets_the_token(void) {
    static const how bare = {false, true, false, NULL};
    ts_reply         r = HFSB_INIT;
    start(&bare);
    T_CHECK(status_of("GET", "/envs", "", "") == 401);
    T_CHECK(status_of("POST", "/init", TS_JSON, "[") == 400);
    T_CHECK(status_of("POST", "/init", TS_JSON,
                      "{\"accessToken\":\"" TOKEN "\",\"envVars\":{\"A\":"
                      "\"1\",\"B\":\"2\"},\"defaultWorkdir\":\"/tmp\"}") ==
            204);
    T_CHECK(status_of("GET", "/envs", "", "") == 401);
    T_CHECK(status_of("POST", "/init", TS_JSON,
                      "{\"accessToken\":\"mine\"}") == 401);
    ts_call(&s, &r, "GET", "/envs", ACCESS, nothing);
    T_STR(hfsb_buf_str(&r.body), "{\"A\":\"1\",\"B\":\"2\"}");
    T_CHECK(status_of("POST", "/init", TS_JSON ACCESS,
                      "{\"envVars\":{\"A\":\"3\"}}") == 204);
    ts_call(&s, &r, "GET", "/envs", ACCESS, nothing);
    T_STR(hfsb_buf_str(&r.body), "{\"B\":\"2\",\"A\":\"3\"}");
    ts_call(&s, &r, "POST", "/filesystem.Filesystem/Stat", TS_JSON ACCESS,
            HFSB_LIT("{\"path\":\"\"}"));
    TS_IS(&r, 200, "\"path\":\"/tmp\"");
    ts_call(&s, &r, "GET", "/metrics", ACCESS, nothing);
    TS_IS(&r, 200, "\"cpu_count\":");
    T_CHECK(ts_int(&r, "mem_total") > 0 && ts_int(&r, "disk_total") > 0);
    ts_drop(&r);
    end();
}

static void the_one_user_has_several_names(void) {
    static const struct {
        const char *field;
        int         status;
    } cases[] = {{"Basic dXNlcjo=", 200}, /* user: */
                 {"Basic cm9vdDo=", 200}, /* root: */
                 {"basic cm9vdA==", 200},
                 {"Basic bm9ib2R5Og==", 401}, /* nobody: */
                 {"Basic ***", 401}};
    char   fields[128];
    size_t i;
    start(&open_how);
    for (i = 0; i < TT_COUNT(cases); i++) {
        snprintf(fields, sizeof fields, TS_JSON "Authorization: %s\r\n",
                 cases[i].field);
        T_CHECK(status_of("POST", "/process.Process/List", fields, "{}") ==
                cases[i].status);
    }
    end();
}

static void requests_that_are_wrong_are_refused(void) {
    ts_reply r = HFSB_INIT;
    hfsb_buf two = HFSB_INIT;
    stream   st;
    start(&open_how);
    ts_call(&s, &r, "POST", "/process.Process/List",
            "Content-Type: application/proto\r\n", HFSB_LIT(""));
    T_CHECK(r.status == 415);
    ts_post(&s, &r, "/process.Process/Start", "{}");
    T_CHECK(r.status == 415);
    PROCESS(&r, "None", "{}");
    REFUSED(&r, 404, "unimplemented", "");
    PROCESS(&r, "List", "{");
    REFUSED(&r, 400, "invalid_argument", "");
    ts_get(&s, &r, "/process.Process/List");
    T_CHECK(r.status == 405);
    ts_get(&s, &r, "/none");
    TS_IS(&r, 404, "\"code\":404");
    envelope(&two, 0, HFSB_LIT("{}"));
    envelope(&two, 0, HFSB_LIT("{}"));
    ts_call(&s, &r, "POST", "/process.Process/Start", STREAM,
            hfsb_buf_str(&two));
    TS_IS(&r, 200, "one message");
    ts_call(&s, &r, "POST", "/process.Process/Start", STREAM,
            hfsb_str_slice(hfsb_buf_str(&two), 0, 6));
    TS_IS(&r, 200, "invalid_argument");
    ts_call(&s, &r, "POST", "/process.Process/Start", STREAM, HFSB_LIT(""));
    TS_IS(&r, 200, "invalid_argument");
    stream_open(&st, "process.Process/Connect", "", "{}");
    ENDS(&st, "invalid_argument", "pid or a tag");
    stream_close(&st);
    hfsb_buf_free(&two);
    ts_drop(&r);
    end();
}

/* ---- watching ---- */

static void a_watch_reports_changes(void) {
    stream   st;
    ts_reply r = HFSB_INIT;
    bool     seen = false;
    char     id[40], ask[80];
    start(&open_how);
    T_CHECK(mkdir("w", 0755) == 0);
    stream_open(&st, "filesystem.Filesystem/WatchDir",
                "Keepalive-Ping-Interval: 1\r\n",
                "{\"path\":\"w\",\"include_entry\":true}");
    T_CHECK(stream_next(&st) && hfsb_json_get(st.doc.root, "start"));
    T_CHECK(stream_next(&st) && hfsb_json_get(st.doc.root, "keepalive"));
    tt_put("w/f", HFSB_LIT("x"));
    while (!seen && stream_next(&st)) {
        const hfsb_json_value *e = hfsb_json_get(st.doc.root, "filesystem");
        seen = hfsb_str_equal(hfsbi_json_get_str(e, "type"),
                              HFSB_LIT("EVENT_TYPE_WRITE")) &&
               hfsb_str_equal(hfsbi_json_get_str(e, "name"), HFSB_LIT("f")) &&
               hfsb_str_equal(
                   hfsbi_json_get_str(hfsb_json_get(e, "entry"), "size"),
                   HFSB_LIT("1"));
    }
    T_CHECK(seen);
    FILES(&r, "CreateWatcher", "{\"path\":\"w\"}");
    snprintf(id, sizeof id, "%s", ts_text(&r, "watcherId").ptr);
    snprintf(ask, sizeof ask, "{\"watcherId\":\"%s\"}", id);
    T_CHECK(unlink("w/f") == 0);
    for (seen = false; !seen; tt_sleep_ms(20)) {
        FILES(&r, "GetWatcherEvents", ask);
        if (!r.whole || r.status != 200) break;
        seen = ts_contains(&r, "{\"name\":\"f\",\"type\":"
                               "\"EVENT_TYPE_REMOVE\"}");
    }
    T_CHECK(seen);
    FILES(&r, "RemoveWatcher", ask);
    T_STR(hfsb_buf_str(&r.body), "{}");
    FILES(&r, "GetWatcherEvents", ask);
    REFUSED(&r, 404, "not_found", "watcher");
    T_CHECK(rmdir("w") == 0);
    ENDS(&st, "", "");
    stream_close(&st);
    stream_open(&st, "filesystem.Filesystem/WatchDir", "",
                "{\"path\":\"none\"}");
    ENDS(&st, "not_found", "none");
    stream_close(&st);
    ts_drop(&r);
    end();
}

static void streams_end_when_the_server_stops(void) {
    stream   watch, command;
    ts_reply r = HFSB_INIT;
    start(&open_how);
    stream_open(&watch, "filesystem.Filesystem/WatchDir", "",
                "{\"path\":\"\"}");
    T_CHECK(stream_next(&watch));
    FILES(&r, "CreateWatcher", "{\"path\":\"\"}");
    TS_IS(&r, 200, "watcherId");
    start_process(&command, "", SH("sleep 60") "}}");
    T_CHECK(started(&command) > 0);
    hfsb_server_stop(s.server);
    ENDS(&watch, "unavailable", "ended");
    T_CHECK(finish(&command, NULL) && exit_code(&command) == -1);
    stream_close(&watch);
    stream_close(&command);
    ts_drop(&r);
    end();
}

/* ---- the control plane ---- */

static void create(ts_reply *r, const char *json, char id[40],
                   char fields[200]) {
    ts_post(&s, r, "/v2/sandboxes", json);
    TS_IS(r, 201, "\"envdVersion\":\"0.6.13\"");
    snprintf(id, 40, "%s", ts_text(r, "sandboxID").ptr);
    snprintf(fields, 200,
             TS_JSON "E2b-Sandbox-Id: %s\r\nX-Access-Token: %s\r\n", id,
             ts_text(r, "envdAccessToken").ptr);
}

static void sandboxes_are_made_and_ended(void) {
    ts_reply r = HFSB_INIT;
    char     a[40], b[40], fa[200], fb[200], mixed[300], path[200];
    int      i;
    start(&rooted_how);
    T_CHECK(status_of("GET", "/health", "E2b-Sandbox-Id: any\r\n", "") == 204);
    create(&r,
           "{\"templateID\":\"t\",\"metadata\":{\"k\":\"v w\"},\"envVars\""
           ":{\"A\":\"1\"},\"timeout\":60}",
           a, fa);
    create(&r, "{}", b, fb);
    T_CHECK(status_of("GET", "/health", "E2b-Sandbox-Id: any\r\n", "") == 502);
    T_CHECK(status_of("GET", "/envs", "E2b-Sandbox-Id: any\r\n", "") == 502);
    T_CHECK(status_of("GET", "/envs", fa, "") == 200);
    snprintf(mixed, sizeof mixed, "E2b-Sandbox-Id: %s\r\n%s", b,
             strstr(fa, "X-Access"));
    T_CHECK(status_of("GET", "/envs", mixed, "") == 401);
    T_CHECK(status_of("POST", "/files?path=f", fa, "of a") == 200);
    T_CHECK(status_of("GET", "/files?path=f", fb, "") == 404);
    snprintf(path, sizeof path, "/files?path=../%s/f", a);
    T_CHECK(status_of("GET", path, fb, "") == 403);
    snprintf(path, sizeof path, "sandboxes/%s/f", a);
    T_CHECK(tt_file_is(path, HFSB_LIT("of a")));
    ts_get(&s, &r, "/v2/sandboxes");
    T_CHECK(hfsb_json_count(r.json.root) == 2);
    ts_get(&s, &r, "/v2/sandboxes?metadata=k%3Dv%2520w&state=running");
    T_CHECK(hfsb_json_count(r.json.root) == 1 && ts_contains(&r, a));
    ts_get(&s, &r, "/v2/sandboxes?state=paused");
    T_STR(hfsb_buf_str(&r.body), "[]");
    snprintf(path, sizeof path, "/sandboxes/%s", a);
    ts_get(&s, &r, path);
    TS_IS(&r, 200, "\"metadata\":{\"k\":\"v w\"}");
    snprintf(path, sizeof path, "/v2/sandboxes/%s/connect", a);
    ts_post(&s, &r, path, "{\"timeout\":120}");
    TS_IS(&r, 200, "\"envdAccessToken\":\"");
    snprintf(path, sizeof path, "/sandboxes/%s/pause", a);
    ts_post(&s, &r, path, "{}");
    TS_IS(&r, 501, "cannot pause");
    snprintf(path, sizeof path, "/sandboxes/%s/timeout", a);
    ts_post(&s, &r, path, "{\"timeout\":0}");
    TS_IS(&r, 204, NULL);
    snprintf(path, sizeof path, "/sandboxes/%s", b);
    ts_call(&s, &r, "DELETE", path, "", nothing);
    TS_IS(&r, 204, NULL);
    ts_call(&s, &r, "DELETE", path, "", nothing);
    TS_IS(&r, 404, "\"code\":404");
    for (i = 0; i < 200 && tt_entries("sandboxes", "i"); i++) tt_sleep_ms(50);
    T_CHECK(tt_entries("sandboxes", "i") == 0);
    create(&r, "{}", a, fa); /* ends with the server */
    ts_drop(&r);
    end();
    T_CHECK(tt_entries("sandboxes", "i") == 0 && rmdir("sandboxes") == 0);
}

static void a_killed_sandbox_takes_its_processes(void) {
    ts_reply r = HFSB_INIT;
    stream   st, watch;
    char     a[40], fa[200], path[100], text[400];
    long     pid;
    start(&open_how);
    create(&r, "{}", a, fa);
    snprintf(text, sizeof text, "%s", strchr(fa, '\n') + 1);
    start_process(&st, text, SH("sleep 60 & sleep 61; true") "}}");
    pid = started(&st);
    stream_open(&watch, "filesystem.Filesystem/WatchDir", text,
                "{\"path\":\"\"}");
    T_CHECK(stream_next(&watch));
    snprintf(path, sizeof path, "/sandboxes/%s", a);
    ts_call(&s, &r, "DELETE", path, "", nothing);
    TS_IS(&r, 204, NULL);
    T_CHECK(finish(&st, NULL) && exit_code(&st) == -1);
    ENDS(&watch, "unavailable", "ended");
    T_CHECK(tt_gone(pid));
    stream_close(&st);
    stream_close(&watch);
    ts_drop(&r);
    end();
    (void)rmdir("sandboxes");
}

/* ---- faults ---- */

typedef struct one_call {
    const char *method, *target, *fields, *body;
    bool        wrapped;
} one_call;

static const one_call calls[] = {
    {"POST", "/process.Process/Start", STREAM,
     SH("cat") "},\"tag\":\"x\",\"stdin\":false}", true},
    {"POST", "/process.Process/List", TS_JSON, "{}", false},
    {"POST", "/process.Process/SendInput", TS_JSON,
     "{\"process\":{\"tag\":\"c\"},\"input\":{\"stdin\":\"eAo=\"}}", false},
    {"POST", "/process.Process/StreamInput", STREAM,
     "{\"start\":{\"process\":{\"tag\":\"c\"}}}", true},
    {"POST", "/filesystem.Filesystem/ListDir", TS_JSON,
     "{\"path\":\"d\",\"depth\":2}", false},
    {"POST", "/filesystem.Filesystem/CreateWatcher", TS_JSON,
     "{\"path\":\"d\",\"recursive\":true}", false},
    {"POST", "/files?path=d/x", "X-Metadata-a: b\r\n", "bytes", false},
    {"POST", "/files/compose", TS_JSON,
     "{\"source_paths\":[\"d/x\"],\"destination\":\"d/y\"}", false},
    {"GET", "/metrics", "", "", false},
    {"POST", "/init", TS_JSON,
     "{\"envVars\":{\"A\":\"1\"},\"defaultWorkdir\":\"\"}", false},
    {"POST", "/v2/sandboxes", TS_JSON, "{\"metadata\":{\"k\":\"v\"}}", false}};

/* Writes the body of a call. */
static void put_body(const one_call *call, hfsb_buf *out) {
    if (call->wrapped) envelope(out, 0, hfsb_cstr(call->body));
    else T_CHECK(hfsb_buf_append(out, hfsb_cstr(call->body)) == HFSB_OK);
}

/* What the calls work on. */
static void prepare(stream *st) {
    T_CHECK(mkdir("d", 0755) == 0 && mkdir("d/e", 0755) == 0);
    start_process(st, "", SH("cat > /dev/null") "},\"tag\":\"c\"}");
    T_CHECK(started(st) > 0);
}

static void put_away(stream *st) {
    stream_close(st);
    end();
    T_CHECK(tt_remove_all("d", NULL));
    (void)tt_remove_all("sandboxes", NULL);
}

static void a_connection_may_be_cut_at_every_byte(void) {
    stream st;
    size_t i, n;
    start(&open_how);
    prepare(&st);
    for (i = 0; i < TT_COUNT(calls); i++) {
        hfsb_buf all = HFSB_INIT, body = HFSB_INIT;
        put_body(&calls[i], &body);
        T_CHECK(hfsb_buf_printf(&all,
                                "%s %s HTTP/1.1\r\nHost: localhost\r\n%s"
                                "Content-Length: %zu\r\n\r\n",
                                calls[i].method, calls[i].target,
                                calls[i].fields, body.len) == HFSB_OK);
        T_CHECK(hfsb_buf_append(&all, hfsb_buf_str(&body)) == HFSB_OK);
        tt_put("d/x", HFSB_LIT("old"));
        for (n = 0; n < all.len; n++) { /* the request */
            ts_conn c = ts_connect(&s);
            T_CHECK(ts_send(&c, hfsb_str_slice(hfsb_buf_str(&all), 0, n)));
            if (n % 2) ts_reset(&c);
            else ts_hang_up(&c);
        }
        for (n = 0; n < 12; n++) { /* the reply, at any time */
            ts_conn c = ts_connect(&s);
            char    drop[64];
            T_CHECK(ts_send(&c, hfsb_buf_str(&all)));
            if (n) T_CHECK(recv(c.fd, drop, n * 5, 0) > 0);
            ts_reset(&c);
        }
        hfsb_buf_free(&all);
        hfsb_buf_free(&body);
    }
    T_CHECK(status_of("GET", "/health", "", "") == 204);
    put_away(&st);
}

static void each_allocation_fails_in_turn(void) {
    stream st;
    size_t i, k, total;
    start(&open_how);
    prepare(&st);
    for (i = 0; i < TT_COUNT(calls); i++)
        for (k = total = 0; k <= total && k < 400; k++) {
            ts_reply r = HFSB_INIT;
            ts_conn  c;
            hfsb_buf body = HFSB_INIT;
            tt_put("d/x", HFSB_LIT("old"));
            put_body(&calls[i], &body);
            tt_faults(k, false);
            c = ts_connect(&s);
            ts_ask(&c, calls[i].method, calls[i].target, calls[i].fields,
                   hfsb_buf_str(&body));
            if (ts_read(&c, &r, false))
                T_CHECK(r.status >= 200 && r.status < 600);
            if (k == 0) {
                total = tt_allocations() + 3;
                T_CHECK(r.status < 300);
            }
            tt_faults(0, false);
            ts_hang_up(&c);
            ts_drop(&r);
            hfsb_buf_free(&body);
        }
    put_away(&st);
}

int main(void) {
    tt_begin();
    (void)umask(022);
    TT_RUN(a_command_streams_its_output);
    TT_RUN(a_command_that_cannot_start_is_refused);
    TT_RUN(a_client_that_goes_leaves_its_command);
    TT_RUN(a_deadline_ends_the_command);
    TT_RUN(silence_is_broken_by_keepalives);
    TT_RUN(a_slow_reader_costs_little_memory);
    TT_RUN(input_reaches_the_command);
    TT_RUN(a_stream_of_input_may_be_cut_anywhere);
    TT_RUN(a_bad_stream_of_input_is_refused);
    TT_RUN(a_terminal_is_typed_into);
    TT_RUN(files_are_looked_at_and_changed);
    TT_RUN(nothing_leads_out_of_the_root);
    TT_RUN(files_are_sent_and_received);
    TT_RUN(the_token_is_needed);
    TT_RUN(the_first_init_sets_the_token);
    TT_RUN(the_one_user_has_several_names);
    TT_RUN(requests_that_are_wrong_are_refused);
    TT_RUN(a_watch_reports_changes);
    TT_RUN(streams_end_when_the_server_stops);
    TT_RUN(sandboxes_are_made_and_ended);
    TT_RUN(a_killed_sandbox_takes_its_processes);
    TT_RUN(a_connection_may_be_cut_at_every_byte);
    TT_RUN(each_allocation_fails_in_turn);
    return TT_END();
}
