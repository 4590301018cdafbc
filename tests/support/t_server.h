/* t_server.h - shared by the tests of the server: a server in its own thread
   on a port that the kernel picks, connections as bytes, and a small reply
   parser that is independent of the library. */
#ifndef T_SERVER_H
#define T_SERVER_H
#include "t_tools.h"
#ifdef HFSBI_SPLIT
#include "../../src/server/server_private.h"
#else
#include "../../hfsb_server.h"
#endif

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define TS_TOKEN "a-token-of-the-tests"

/* ---- a server ---- */

typedef struct ts_server {
    hfsb_server *server;
    pthread_t    thread;
    unsigned     port;
    hfsb_status  ended; /* result of run */
    bool         started;
} ts_server;

static void *ts_serve(void *user) {
    ts_server *s = (ts_server *)user;
    s->ended = hfsb_server_run(s->server, NULL);
    return NULL;
}

/* Opens a server that listens, ready for routes. opts may be NULL; without a
   token or no_auth it gets TS_TOKEN; memory is counted. */
HFSBI_UNUSED static void ts_open(ts_server *s, const hfsb_server_opts *opts) {
    hfsb_server_opts o = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    memset(s, 0, sizeof *s);
    if (opts) o = *opts;
    if (!o.token.len && !o.no_auth && !o.late_token)
        o.token = HFSB_LIT(TS_TOKEN);
    if (!o.alloc.fn) o.alloc = tt_alloc();
    if (hfsb_server_open(&o, &s->server, &err) != HFSB_OK ||
        hfsb_server_listen(s->server, "127.0.0.1", 0, &s->port, &err) !=
            HFSB_OK) {
        printf("no server: %s\n", err.msg);
        abort();
    }
}

/* Runs the server in a thread. */
HFSBI_UNUSED static void ts_run(ts_server *s) {
    if (pthread_create(&s->thread, NULL, ts_serve, s)) abort();
    s->started = true;
}

/* Opens and runs a server with the endpoints of the sandbox. */
HFSBI_UNUSED static void ts_start(ts_server *s, const hfsb_server_opts *opts,
                                  const hfsb_server_sandbox_opts *box) {
    hfsb_err err = HFSB_INIT;
    ts_open(s, opts);
    if (hfsb_server_add_sandbox(s->server, box, &err) != HFSB_OK) {
        printf("no sandbox: %s\n", err.msg);
        abort();
    }
    ts_run(s);
}

/* Stops the server and frees it; at_once: without waiting for requests. */
HFSBI_UNUSED static void ts_end(ts_server *s, bool at_once) {
    if (s->started) {
        hfsb_server_stop(s->server);
        if (at_once) hfsb_server_stop(s->server);
        pthread_join(s->thread, NULL);
        T_CHECK(s->ended == HFSB_OK);
    }
    hfsb_server_close(s->server);
    memset(s, 0, sizeof *s);
}

/* ---- connections: bytes out, bytes in ---- */

typedef struct ts_conn {
    int      fd;
    hfsb_buf in; /* received, not parsed as a reply yet */
    bool     ended;
} ts_conn;

HFSBI_UNUSED static ts_conn ts_connect(const ts_server *s) {
    struct sockaddr_in a;
    ts_conn            c = HFSB_INIT;
    int                on = 1;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons((unsigned short)s->port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c.fd < 0 || connect(c.fd, (struct sockaddr *)&a, sizeof a)) {
        printf("no connection to port %u\n", s->port);
        abort();
    }
    (void)setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return c;
}

HFSBI_UNUSED static void ts_hang_up(ts_conn *c) {
    if (c->fd >= 0) close(c->fd);
    hfsb_buf_free(&c->in);
    c->fd = -1;
    c->ended = false;
}

/* Closes with a reset instead of an end of file. */
HFSBI_UNUSED static void ts_reset(ts_conn *c) {
    struct linger now;
    now.l_onoff = 1;
    now.l_linger = 0;
    (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ts_hang_up(c);
}

/* False if the peer does not accept the bytes. */
HFSBI_UNUSED static bool ts_send(ts_conn *c, hfsb_str bytes) {
    while (bytes.len) {
        ssize_t n = send(c->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (n <= 0) return false;
        bytes = hfsb_str_slice(bytes, (size_t)n, bytes.len);
    }
    return true;
}

/* Waits up to ms for more bytes; false if none came. */
HFSBI_UNUSED static bool ts_more(ts_conn *c, int ms) {
    char          piece[65536];
    struct pollfd p;
    ssize_t       n;
    memset(&p, 0, sizeof p);
    p.fd = c->fd;
    p.events = POLLIN;
    if (c->ended || poll(&p, 1, ms) <= 0) return false;
    n = recv(c->fd, piece, sizeof piece, 0);
    if (n <= 0) c->ended = true;
    if (n > 0 && hfsb_buf_append(&c->in, hfsb_str_make(piece, (size_t)n)) !=
                     HFSB_OK)
        abort();
    return n > 0;
}

/* Drops the first n received bytes. */
static void ts_shift(ts_conn *c, size_t n) {
    memmove(c->in.ptr, c->in.ptr + n, c->in.len - n + 1);
    c->in.len -= n;
}

/* True if the peer closes within ms; bytes received meanwhile are kept. */
HFSBI_UNUSED static bool ts_closes(ts_conn *c, int ms) {
    long long end = hfsb_clock_ms() + ms;
    while (!c->ended && hfsb_clock_ms() < end) (void)ts_more(c, 50);
    return c->ended;
}

/* Waits until the received bytes contain `part`; false after ms. */
HFSBI_UNUSED static bool ts_await(ts_conn *c, const char *part, int ms) {
    long long end = hfsb_clock_ms() + ms;
    while (hfsb_str_find(hfsb_buf_str(&c->in), hfsb_cstr(part)) == HFSB_NPOS) {
        if (c->ended || hfsb_clock_ms() > end) return false;
        (void)ts_more(c, 50);
    }
    return true;
}

/* ---- replies ---- */

enum { TS_WAIT_MS = 60000 };

typedef struct ts_reply {
    bool          whole; /* it came to its end */
    int           status;
    bool          chunked;
    size_t        chunks;
    hfsb_buf      head; /* with the empty line */
    hfsb_buf      body;
    hfsb_json_doc json; /* of the body, when it is JSON */
} ts_reply;

HFSBI_UNUSED static void ts_drop(ts_reply *r) {
    hfsb_buf_free(&r->head);
    hfsb_buf_free(&r->body);
    hfsb_json_free(&r->json);
    memset(r, 0, sizeof *r);
}

/* Value of the first field of that name (any case); ptr NULL: none. */
HFSBI_UNUSED static hfsb_str ts_field(const ts_reply *r, const char *name) {
    hfsb_str none = HFSB_INIT;
    char    *at = r->head.ptr, *end;
    size_t   n = strlen(name);
    while (at && (at = strstr(at, "\r\n")) != NULL) {
        at += 2;
        if (strncasecmp(at, name, n) || at[n] != ':') continue;
        for (at += n + 1; *at == ' '; at++) continue;
        end = strstr(at, "\r\n");
        return hfsb_str_make(at, end ? (size_t)(end - at) : 0);
    }
    return none;
}

/* Moves the next n bytes to *out (NULL: drops them). */
static bool ts_take(ts_conn *c, size_t n, hfsb_buf *out) {
    while (c->in.len < n)
        if (!ts_more(c, TS_WAIT_MS)) return false;
    if (out && hfsb_buf_append(out, hfsb_str_make(c->in.ptr, n)) != HFSB_OK)
        abort();
    if (n) ts_shift(c, n);
    return true;
}

/* The number of bytes up to and including `mark`; 0 if it does not come. */
static size_t ts_upto(ts_conn *c, const char *mark) {
    size_t at;
    for (;;) {
        at = hfsb_str_find(hfsb_buf_str(&c->in), hfsb_cstr(mark));
        if (at != HFSB_NPOS) return at + strlen(mark);
        if (!ts_more(c, TS_WAIT_MS)) return 0;
    }
}

static bool ts_chunked_body(ts_conn *c, ts_reply *r) {
    for (;;) {
        size_t n = ts_upto(c, "\r\n"), size;
        if (!n) return false;
        size = (size_t)strtoul(c->in.ptr, NULL, 16);
        if (!ts_take(c, n, NULL) || !ts_take(c, size, &r->body) ||
            !ts_take(c, 2, NULL))
            return false;
        if (!size) return true;
        r->chunks++;
    }
}

/* Reads one reply; head: to a HEAD request. False if it is incomplete; *r then
   holds the part that came. */
HFSBI_UNUSED static bool ts_read(ts_conn *c, ts_reply *r, bool head) {
    size_t   n = ts_upto(c, "\r\n\r\n");
    hfsb_str length;
    ts_drop(r);
    if (!n || !ts_take(c, n, &r->head)) return false;
    if (r->head.len > 12) r->status = atoi(r->head.ptr + 9);
    if (r->status == 100) return ts_read(c, r, head);
    length = ts_field(r, "Content-Length");
    r->chunked = ts_field(r, "Transfer-Encoding").len > 0;
    if (head || r->status == 204 || r->status == 304) {
        r->whole = true;
    } else if (r->chunked) {
        r->whole = ts_chunked_body(c, r);
    } else if (length.ptr) {
        r->whole = ts_take(c, (size_t)strtoul(length.ptr, NULL, 10), &r->body);
    } else {
        while (ts_more(c, TS_WAIT_MS)) continue;
        r->whole = c->ended && ts_take(c, c->in.len, &r->body);
    }
    if (r->whole)
        (void)hfsb_json_parse(hfsb_buf_str(&r->body), NULL, &r->json, NULL);
    return r->whole;
}

/* ---- requests ---- */

/* Sends a request with the token. fields: more lines, each with its CRLF ("":
   none); body.ptr NULL: no body. */
HFSBI_UNUSED static void ts_ask(ts_conn *c, const char *method,
                                const char *target, const char *fields,
                                hfsb_str body) {
    hfsb_buf out = HFSB_INIT;
    if (hfsb_buf_printf(&out,
                        "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                        "X-Sandbox-Authorization: Bearer " TS_TOKEN
                        "\r\n%s",
                        method, target, fields) != HFSB_OK ||
        (body.ptr && hfsb_buf_printf(&out, "Content-Length: %zu\r\n",
                                     body.len) != HFSB_OK) ||
        hfsb_buf_append(&out, HFSB_LIT("\r\n")) != HFSB_OK ||
        hfsb_buf_append(&out, body) != HFSB_OK)
        abort();
    (void)ts_send(c, hfsb_buf_str(&out)); /* may be refused before the end */
    hfsb_buf_free(&out);
}

#define TS_JSON "Content-Type: application/json\r\n"

/* Sends a request on a new connection and reads the reply. */
HFSBI_UNUSED static void ts_call(const ts_server *s, ts_reply *r,
                                 const char *method, const char *target,
                                 const char *fields, hfsb_str body) {
    ts_conn c = ts_connect(s);
    ts_ask(&c, method, target, fields, body);
    T_CHECK(ts_read(&c, r, !strcmp(method, "HEAD")));
    ts_hang_up(&c);
}

/* POST of JSON text. */
HFSBI_UNUSED static void ts_post(const ts_server *s, ts_reply *r,
                                 const char *target, const char *json) {
    ts_call(s, r, "POST", target, TS_JSON, hfsb_cstr(json));
}

HFSBI_UNUSED static void ts_get(const ts_server *s, ts_reply *r,
                                const char *target) {
    hfsb_str none = HFSB_INIT;
    ts_call(s, r, "GET", target, "", none);
}

/* ---- looking at a reply ---- */

HFSBI_UNUSED static hfsb_str ts_text(const ts_reply *r, const char *key) {
    return hfsb_json_str(hfsb_json_get(r->json.root, key), HFSB_LIT(""));
}
HFSBI_UNUSED static long long ts_int(const ts_reply *r, const char *key) {
    return hfsb_json_int(hfsb_json_get(r->json.root, key), -12345);
}
HFSBI_UNUSED static bool ts_flag(const ts_reply *r, const char *key) {
    return hfsb_json_bool(hfsb_json_get(r->json.root, key), false);
}
HFSBI_UNUSED static bool ts_contains(const ts_reply *r, const char *part) {
    return hfsb_str_find(hfsb_buf_str(&r->body), hfsb_cstr(part)) != HFSB_NPOS;
}

/* Waits until that many commands run and wait; false after a timeout. */
HFSBI_UNUSED static bool ts_commands(const ts_server *s, long long running,
                                     long long waiting) {
    ts_reply  r = HFSB_INIT;
    long long end = hfsb_clock_ms() + 30000;
    bool      so = false;
    while (!so && hfsb_clock_ms() < end) {
        ts_get(s, &r, "/api/health");
        so = ts_int(&r, "running") == running &&
             ts_int(&r, "waiting") == waiting;
        if (!so) tt_sleep_ms(20);
    }
    ts_drop(&r);
    return so;
}

/* Waits until a file has n lines. */
HFSBI_UNUSED static bool ts_lines(const char *path, long n) {
    long long end = hfsb_clock_ms() + 30000;
    while (tt_lines_in(path) < n && hfsb_clock_ms() < end) tt_sleep_ms(20);
    return tt_lines_in(path) >= n;
}

/* Checks the status and a part of the body (NULL: any); prints the reply on
   failure. */
HFSBI_UNUSED static void ts_expect(int line, const ts_reply *r, int status,
                                   const char *part) {
    t_checks++;
    if (r->whole && r->status == status && (!part || ts_contains(r, part))) return;
    t_failed++;
    printf("line %d: %s: %s%d, body \"%.*s\"\n", line, t_name,
           r->whole ? "" : "not whole, ", r->status, (int)r->body.len,
           r->body.ptr ? r->body.ptr : "");
    printf("  want %d%s%s\n", status, part ? ", " : "", part ? part : "");
}
#define TS_IS(r, status, part) ts_expect(__LINE__, r, status, part)

/* Checks a refusal: its status, and a body with detail and error. */
#define TS_REFUSED(r, status, part)                               \
    (ts_expect(__LINE__, r, status, part),                        \
     T_CHECK(hfsb_json_get((r)->json.root, "detail") != NULL),    \
     T_CHECK(ts_text(r, "error").len > 0))

/* Checks the reply of a tool: 200, success, output and error. */
HFSBI_UNUSED static void ts_tool(int line, const ts_reply *r, bool success,
                                 const char *output, const char *error) {
    bool ok =
        r->whole && r->status == 200 && ts_flag(r, "success") == success &&
        hfsb_json_get(r->json.root, "error") != NULL &&
        (!output ||
         hfsb_str_equal(ts_text(r, "output"), hfsb_cstr(output))) &&
        (!error || hfsb_str_starts(ts_text(r, "error"), hfsb_cstr(error)));
    t_checks++;
    if (ok) return;
    t_failed++;
    printf("line %d: %s: %d \"%.*s\"\n  want success %d, %s, %s\n", line,
           t_name, r->status, (int)r->body.len, r->body.ptr ? r->body.ptr : "",
           success, output ? output : "(any)", error ? error : "(any)");
}
#define TS_OK(r, output)   ts_tool(__LINE__, r, true, output, "")
#define TS_FAIL(r, error)  ts_tool(__LINE__, r, false, NULL, error)
#endif
