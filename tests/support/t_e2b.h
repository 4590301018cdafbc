/* t_e2b.h - shared by the tests of E2B's protocol: a server with that dialect,
   its calls, and its streams byte by byte. */
#ifndef T_E2B_H
#define T_E2B_H
#include "t_server.h"
#ifdef HFSBI_SPLIT
#include "../../src/dialect/dialect_private.h"
#endif

static ts_server                   s; /* its port is that of the dialect */
HFSBI_UNUSED static const hfsb_str nothing = HFSB_INIT;

#define TOKEN  "an-access-token-of-e2b"
#define ACCESS "X-Access-Token: " TOKEN "\r\n"
#define STREAM "Content-Type: application/connect+json\r\n"

typedef struct how {
    bool        no_auth, no_token, rooted;
    const char *token; /* of the dialect; NULL: none of its own */
    long long   max_idle_ms;
} how;

HFSBI_UNUSED static void start(const how *h) {
    hfsb_server_opts         o = HFSB_INIT;
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    hfsb_dialect_opts        d = HFSB_INIT;
    hfsb_err                 err = HFSB_INIT;
    char                     work[128];
    snprintf(work, sizeof work, "%s/work", tt_dir);
    o.no_auth = h->no_auth;
    o.max_idle_ms = h->max_idle_ms;
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

HFSBI_UNUSED static const how open_how = {true, false, false, NULL, 0};
HFSBI_UNUSED static const how rooted_how = {true, false, true, NULL, 0};

HFSBI_UNUSED static void end(void) {
    ts_end(&s, false);
    T_CHECK(tt_memory.heap.live == 0 && !tt_memory.heap.wrong);
}

/* ---- calls without streams ---- */

HFSBI_UNUSED static void rpc(ts_reply *r, const char *method,
                             const char *json) {
    char target[128];
    snprintf(target, sizeof target, "/%s", method);
    ts_post(&s, r, target, json);
}

#define PROCESS(r, method, json) rpc(r, "process.Process/" method, json)
#define FILES(r, method, json)   rpc(r, "filesystem.Filesystem/" method, json)

/* Checks an error: status, code and a part of the message. */
HFSBI_UNUSED static void refused(int line, const ts_reply *r, int status,
                                 const char *code, const char *part) {
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

HFSBI_UNUSED static void envelope(hfsb_buf *out, unsigned flags,
                                  hfsb_str json) {
    char head[HFSBI_CONNECT_HEAD];
    T_CHECK(hfsbi_connect_write_head(flags, json.len, head));
    T_CHECK(hfsb_buf_append(out, hfsb_str_make(head, sizeof head)) == HFSB_OK);
    T_CHECK(hfsb_buf_append(out, json) == HFSB_OK);
}

HFSBI_UNUSED static void stream_open(stream *st, const char *method,
                                     const char *fields, const char *json) {
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

HFSBI_UNUSED static void stream_close(stream *st) {
    ts_hang_up(&st->c);
    hfsb_buf_free(&st->bytes);
    hfsb_json_free(&st->doc);
}

/* Adds a chunk to the bytes. */
HFSBI_UNUSED static bool stream_chunk(stream *st) {
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
HFSBI_UNUSED static bool stream_next(stream *st) {
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

HFSBI_UNUSED static const hfsb_json_value *event(const stream *st,
                                                 const char   *name) {
    return hfsb_json_get(hfsb_json_get(st->doc.root, "event"), name);
}

/* Reads the pid of the start. */
HFSBI_UNUSED static long started(stream *st) {
    T_CHECK(stream_next(st) && event(st, "start"));
    return (long)hfsb_json_int(hfsb_json_get(event(st, "start"), "pid"), 0);
}

/* Reads data to the end event; *out gets it, of all kinds. */
HFSBI_UNUSED static bool finish(stream *st, hfsb_buf *out) {
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

HFSBI_UNUSED static long long exit_code(const stream *st) {
    return hfsb_json_int(hfsb_json_get(event(st, "end"), "exitCode"), -99);
}

/* The end of the stream: code and a part of the message ("": no error). */
HFSBI_UNUSED static void ends(int line, stream *st, const char *code,
                              const char *part) {
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

HFSBI_UNUSED static void start_process(stream *st, const char *fields,
                                       const char *json) {
    stream_open(st, "process.Process/Start", fields, json);
}

/* ---- sandboxes ---- */

/* A request without any token but those in the fields. */
HFSBI_UNUSED static int status_of(const char *method, const char *target,
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

HFSBI_UNUSED static void create(ts_reply *r, const char *json, char id[40],
                                char fields[200]) {
    ts_post(&s, r, "/v2/sandboxes", json);
    TS_IS(r, 201, "\"envdVersion\":\"0.6.13\"");
    snprintf(id, 40, "%s", ts_text(r, "sandboxID").ptr);
    snprintf(fields, 200,
             TS_JSON "E2b-Sandbox-Id: %s\r\nX-Access-Token: %s\r\n", id,
             ts_text(r, "envdAccessToken").ptr);
}
#endif
