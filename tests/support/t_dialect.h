/* t_dialect.h - shared by the tests that make things go wrong in the dialects:
   a server with one dialect, its client and an inner server for the proxy, all
   in one thread, so that the n-th allocation or system call of a request is
   the same one each time. t_dialect_calls.h lists the requests. */
#ifndef T_DIALECT_H
#define T_DIALECT_H
#include "t_server.h"
#include <sys/un.h>
#ifdef HFSBI_SPLIT
#include "../../src/dialect/dialect_private.h"
#endif

/* ---- requests ---- */

typedef enum td_form {
    TD_PLAIN,
    TD_ENVELOPE, /* the body is one message of Connect */
    TD_CHUNKS,   /* of them, cut into small chunks; several are split by \n */
    TD_MESSAGE   /* a message of Codex, on a WebSocket or a line */
} td_form;

/* In texts $DIR, $PORT, $ID, $TOKEN, $WATCH and $PATH are replaced: the work
   directory, the port of the inner server, and what the calls before were
   answered with. */
typedef struct td_call {
    const char *method, *target; /* of TD_MESSAGE: the method, and nothing */
    const char *fields; /* lines of the head (NULL: those of the kind) */
    const char *body;   /* NULL: none */
    td_form     form;
    unsigned    needs; /* calls that are made before: bits of kind->before */
    int         status; /* expected without faults (of TD_MESSAGE: 200) */
    const char *until;  /* a stream: read so far, then hang up (NULL: to its
                           end) */
} td_call;

typedef struct td_kind {
    const char        *name, *dialect; /* NULL: that of hfsb itself */
    const char *const *settings;
    bool               on_fds;
    const char        *fields;
    td_call            before[6]; /* method NULL: the last */
    td_call            alive;     /* answered as long as the server works */
    const td_call     *calls;     /* method NULL: the last */
} td_kind;

/* ---- a server with one dialect ---- */

typedef struct td_conn {
    int      fd;
    hfsb_buf in;
    bool     ended;
} td_conn;

typedef struct td_reply {
    int      status; /* 0: none; of a message 200, or 500 for an error */
    bool     whole;
    hfsb_buf body;
} td_reply;

typedef struct td {
    const td_kind     *kind;
    hfsb_server       *server;
    struct sockaddr_un address;
    socklen_t          address_len;
    td_conn            line;   /* of a kind that is on_fds: our end */
    int                theirs; /* and that of the server */
    int                inner, guests[4];
    unsigned           port;
    char               id[40], token[100], watch[40], path[64];
    bool               alive; /* the server has not stopped */
} td;

static bool td_no_keeper; /* of the tools */

/* Called around each turn of the server: what fails, fails there alone. */
static void (*td_arm)(bool on);

static void td_listen(td *t) {
    struct sockaddr_un *a = &t->address;
    hfsbi_dialect      *d = (hfsbi_dialect *)(void *)t->server->parts;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    t->address_len = sizeof *a;
    a->sun_family = AF_UNIX; /* a name that the kernel makes up */
    if (fd < 0 || bind(fd, (struct sockaddr *)a, sizeof a->sun_family) ||
        listen(fd, 8) ||
        getsockname(fd, (struct sockaddr *)a, &t->address_len) ||
        hfsb_server_listen_fd(t->server, fd, NULL) != HFSB_OK)
        abort();
    if (t->kind->dialect) t->server->accept.listeners->face = &d->face;
}

/* Listens where the proxy of hf connects to. */
static void td_listen_inner(td *t) {
    struct sockaddr_in a;
    socklen_t          n = sizeof a;
    size_t             i;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    t->inner = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (t->inner < 0 || bind(t->inner, (struct sockaddr *)&a, sizeof a) ||
        listen(t->inner, 8) || getsockname(t->inner, (struct sockaddr *)&a, &n))
        abort();
    t->port = ntohs(a.sin_port);
    for (i = 0; i < TT_COUNT(t->guests); i++) t->guests[i] = -1;
}

#define TD_INNER                                             \
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"         \
    "Transfer-Encoding: chunked\r\n\r\n5\r\ninner\r\n0\r\n\r\n"
static hfsb_str td_inner_reply = {TD_INNER, sizeof TD_INNER - 1};

/* Answers each connection once a head has come. */
static void td_serve_inner(td *t) {
    char   block[4096];
    size_t i;
    int    fd;
    if (t->inner < 0) return;
    fd = accept4(t->inner, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (i = 0; fd >= 0 && i < TT_COUNT(t->guests); i++)
        if (t->guests[i] < 0) {
            t->guests[i] = fd;
            fd = -1;
        }
    if (fd >= 0) close(fd);
    for (i = 0; i < TT_COUNT(t->guests); i++) {
        ssize_t n;
        if (t->guests[i] < 0) continue;
        n = recv(t->guests[i], block, sizeof block, 0);
        if (n < 0 && errno == EAGAIN) continue;
        if (n > 0)
            (void)send(t->guests[i], td_inner_reply.ptr, td_inner_reply.len,
                       MSG_NOSIGNAL);
        close(t->guests[i]);
        t->guests[i] = -1;
    }
}

/* Opens the server; false when the dialect could not be added. */
HFSBI_UNUSED static bool td_open(td *t, const td_kind *kind,
                                 const hfsb_alloc *alloc, hfsb_err *err) {
    hfsb_server_opts         o = HFSB_INIT;
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    hfsb_dialect_opts        d = HFSB_INIT;
    static const char *const env[] = {"PATH=/usr/bin:/bin", "SANDBOX_A=1",
                                      NULL};
    hfsb_status              st = HFSB_OK;
    char                     work[100];
    int                      pair[2];
    memset(t, 0, sizeof *t);
    t->kind = kind;
    t->inner = t->theirs = t->line.fd = -1;
    t->alive = true;
    snprintf(work, sizeof work, "%s/work", tt_dir);
    o.token = HFSB_LIT(TS_TOKEN);
    o.no_threads = true;
    o.alloc = *alloc;
    tools.root = tools.work_dir = hfsb_cstr(work);
    tools.no_keeper = td_no_keeper;
    tools.grace_ms = 50;
    tools.env = env;
    tools.alloc = *alloc;
    box.tools = &tools;
    d.name = kind->dialect;
    d.settings = kind->settings;
    d.own_port = false;
    if (kind->on_fds) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) abort();
        t->line.fd = pair[0];
        t->theirs = pair[1];
        d.on_fds = true;
        d.in = d.out = pair[1];
    }
    if (hfsb_server_open(&o, &t->server, err) != HFSB_OK ||
        hfsb_server_add_sandbox(t->server, &box, err) != HFSB_OK) {
        printf("no server: %s\n", err->msg);
        abort();
    }
    if (td_arm) td_arm(true);
    if (kind->dialect) st = hfsb_server_add_dialect(t->server, &d, NULL, err);
    if (td_arm) td_arm(false);
    if (st != HFSB_OK) return false;
    if (!kind->on_fds) td_listen(t);
    td_listen_inner(t);
    return true;
}

static void td_hang_up(td_conn *c) {
    if (c->fd >= 0) close(c->fd);
    hfsb_buf_free(&c->in);
    memset(c, 0, sizeof *c);
    c->fd = -1;
}

HFSBI_UNUSED static void td_close(td *t) {
    size_t i;
    hfsb_server_close(t->server);
    if (t->inner >= 0) {
        close(t->inner);
        for (i = 0; i < TT_COUNT(t->guests); i++)
            if (t->guests[i] >= 0) close(t->guests[i]);
    }
    td_hang_up(&t->line);
    if (t->theirs >= 0) close(t->theirs);
}

/* A turn of everybody. */
static void td_turn(td *t, td_conn *c, int ms) {
    char    block[65536];
    ssize_t n;
    if (td_arm) td_arm(true);
    if (t->alive) t->alive = hfsb_server_poll(t->server, ms);
    if (td_arm) td_arm(false);
    td_serve_inner(t);
    if (!c || c->ended || c->fd < 0) return;
    while ((n = recv(c->fd, block, sizeof block, MSG_DONTWAIT)) > 0)
        if (hfsb_buf_append(&c->in, hfsb_str_make(block, (size_t)n)) !=
            HFSB_OK)
            abort();
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        c->ended = true;
}

static td_conn td_connect(td *t) {
    td_conn c = HFSB_INIT;
    c.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c.fd < 0 ||
        connect(c.fd, (struct sockaddr *)&t->address, t->address_len))
        abort();
    return c;
}

/* ---- texts ---- */

/* Appends a text with its names replaced. */
static void td_put(const td *t, const char *text, hfsb_buf *out) {
    char        port[12], dir[100];
    const char *names[6], *values[6];
    size_t      i;
    snprintf(port, sizeof port, "%u", t->port);
    snprintf(dir, sizeof dir, "%s/work", tt_dir);
    names[0] = "$DIR", values[0] = dir;
    names[1] = "$PORT", values[1] = port;
    names[2] = "$ID", values[2] = t->id;
    names[3] = "$TOKEN", values[3] = t->token;
    names[4] = "$WATCH", values[4] = t->watch;
    names[5] = "$PATH", values[5] = t->path;
    while (*text) {
        size_t n = strcspn(text, "$");
        if (hfsb_buf_append(out, hfsb_str_make(text, n)) != HFSB_OK) abort();
        text += n;
        if (!*text) break;
        for (i = 0; i < 6 && strncmp(text, names[i], strlen(names[i])); i++)
            continue;
        if (hfsb_buf_append(out, i < 6 ? hfsb_cstr(values[i])
                                       : HFSB_LIT("$")) != HFSB_OK)
            abort();
        text += i < 6 ? strlen(names[i]) : 1;
    }
}

static void td_envelope(hfsb_buf *out, hfsb_str json) {
    char head[HFSBI_CONNECT_HEAD];
    if (!hfsbi_connect_write_head(0, json.len, head) ||
        hfsb_buf_append(out, hfsb_str_make(head, sizeof head)) != HFSB_OK ||
        hfsb_buf_append(out, json) != HFSB_OK)
        abort();
}

static void td_frame(hfsb_buf *out, hfsb_str text) {
    static const unsigned char mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    char   head[HFSBI_WS_HEAD];
    size_t n = hfsbi_ws_write_head(HFSBI_WS_TEXT, true, text.len, mask, head);
    size_t at = out->len + n;
    if (hfsb_buf_append(out, hfsb_str_make(head, n)) != HFSB_OK ||
        hfsb_buf_append(out, text) != HFSB_OK)
        abort();
    if (text.len) hfsbi_ws_mask(out->ptr + at, text.len, mask, 0);
}

/* Appends the body of a request. */
static void td_put_body(const td *t, const td_call *call, hfsb_buf *out) {
    hfsb_buf text = HFSB_INIT, whole = HFSB_INIT;
    hfsb_str rest, one;
    size_t   at;
    if (call->body) td_put(t, call->body, &text);
    rest = hfsb_buf_str(&text);
    if (call->form == TD_ENVELOPE) td_envelope(out, rest);
    else if (call->form != TD_CHUNKS) {
        if (hfsb_buf_append(out, rest) != HFSB_OK) abort();
    } else {
        while (hfsbi_list_next(&rest, '\n', &one)) td_envelope(&whole, one);
        rest = hfsb_buf_str(&whole);
        for (at = 0; at < rest.len; at += 13)
            if (hfsb_http_put_chunk(out, hfsb_str_slice(rest, at, at + 13)) !=
                HFSB_OK)
                abort();
        if (hfsb_buf_append(out, HFSB_LIT("0\r\n\r\n")) != HFSB_OK) abort();
    }
    hfsb_buf_free(&text);
    hfsb_buf_free(&whole);
}

/* Appends a whole request of HTTP. */
static void td_put_request(const td *t, const td_call *call, hfsb_buf *out) {
    hfsb_buf body = HFSB_INIT;
    td_put_body(t, call, &body);
    if (hfsb_buf_printf(out, "%s ", call->method) != HFSB_OK) abort();
    td_put(t, call->target, out);
    if (hfsb_buf_append(out, HFSB_LIT(" HTTP/1.1\r\nHost: localhost\r\n")) !=
        HFSB_OK)
        abort();
    td_put(t, call->fields ? call->fields : t->kind->fields, out);
    if (call->form == TD_CHUNKS)
        (void)hfsb_buf_append(out, HFSB_LIT("Transfer-Encoding: chunked\r\n"));
    else if (call->body)
        (void)hfsb_buf_printf(out, "Content-Length: %zu\r\n", body.len);
    (void)hfsb_buf_append(out, HFSB_LIT("\r\n"));
    if (hfsb_buf_append(out, hfsb_buf_str(&body)) != HFSB_OK) abort();
    hfsb_buf_free(&body);
}

/* ---- replies ---- */

static void td_drop(td_reply *r) {
    hfsb_buf_free(&r->body);
    memset(r, 0, sizeof *r);
}

/* Reads what there is of a reply. */
static void td_parse(const td_conn *c, bool head_only, td_reply *r) {
    static hfsb_http_field fields[64];
    hfsb_http_parser       parser;
    hfsb_str               in = hfsb_buf_str(&c->in), piece;
    hfsb_http_head         head;
    hfsb_http_event        e = HFSB_HTTP_HEAD;
    size_t                 used;
    td_drop(r);
    hfsb_http_parser_init_reply(&parser, NULL);
    hfsb_http_parser_begin_reply(&parser,
                                 head_only ? HFSB_LIT("HEAD") : HFSB_LIT("GET"));
    while (e != HFSB_HTTP_MORE && e != HFSB_HTTP_BAD && !r->whole) {
        e = hfsb_http_next(&parser, in, fields, 64, &head, &piece, &used, NULL);
        in = hfsb_str_slice(in, used, in.len);
        if (e == HFSB_HTTP_HEAD) r->status = head.status;
        if (e == HFSB_HTTP_HEAD && head.status == 101) r->whole = true;
        if (e == HFSB_HTTP_BODY && hfsb_buf_append(&r->body, piece) != HFSB_OK)
            abort();
        if (e == HFSB_HTTP_END && r->status != 100) r->whole = true;
        else if (e == HFSB_HTTP_END)
            hfsb_http_parser_begin_reply(&parser, HFSB_LIT("GET"));
    }
    if (e == HFSB_HTTP_MORE && c->ended && r->status &&
        hfsb_http_parser_end(&parser))
        r->whole = true;
}

/* Finds the answer to the message with that id among frames or lines. */
static void td_find_answer(const td *t, td_conn *c, long id, td_reply *r) {
    hfsb_str in = hfsb_buf_str(&c->in), one;
    char     begin[40];
    snprintf(begin, sizeof begin, "{\"id\":%ld,", id);
    td_drop(r);
    while (in.len && !r->whole) {
        const unsigned char *p = (const unsigned char *)in.ptr;
        size_t               n, head = 0, i;
        if (t->kind->on_fds) {
            n = hfsb_str_find_byte(in, '\n');
            if (n == HFSB_NPOS) return;
            n++;
        } else {
            if (in.len < 2) return;
            n = p[1];
            head = n == 126 ? 4 : n == 127 ? 10 : 2;
            if (in.len < head) return;
            if (head > 2)
                for (n = 0, i = 2; i < head; i++) n = n << 8 | p[i];
            if (in.len < head + n) return;
            if ((p[0] & 15) == HFSBI_WS_CLOSE) c->ended = true;
        }
        one = hfsb_str_slice(in, head, head + n);
        in = hfsb_str_slice(in, head + n, in.len);
        if (!hfsb_str_starts(one, hfsb_cstr(begin)) &&
            !hfsb_str_starts(one, HFSB_LIT("{\"id\":null,"))) /* not read */
            continue;
        r->whole = true;
        r->status = hfsb_str_find(one, HFSB_LIT("\"error\":{")) == HFSB_NPOS
                        ? 200
                        : 500;
        if (hfsb_buf_append(&r->body, one) != HFSB_OK) abort();
    }
}

enum { TD_PATIENCE_MS = 10000 };

/* Sends bytes and waits for the reply, or for the end of the connection. False
   when neither comes. id: of a message (0: a request of HTTP). */
static bool td_await(td *t, td_conn *c, const td_call *call, long id,
                     hfsb_str bytes, td_reply *r) {
    long long began = hfsb_clock_ms();
    while (bytes.len) {
        ssize_t n =
            send(c->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN) break;
        if (n > 0) bytes = hfsb_str_slice(bytes, (size_t)n, bytes.len);
        if (bytes.len) td_turn(t, c, 0);
    }
    for (;;) {
        long long spent = hfsb_clock_ms() - began;
        td_turn(t, c, 5);
        if (id) td_find_answer(t, c, id, r);
        else td_parse(c, !strcmp(call->method, "HEAD"), r);
        if (r->whole || c->ended || !t->alive) return true;
        if (call->until && r->status == call->status &&
            hfsb_str_find(hfsb_buf_str(&c->in), hfsb_cstr(call->until)) !=
                HFSB_NPOS)
            return true;
        if (spent > TD_PATIENCE_MS) return false;
    }
}

/* The text of the first member of that name, wherever it is. */
static void td_take(const hfsb_buf *body, const char *key, char *out,
                    size_t size) {
    char        part[40];
    const char *at;
    snprintf(part, sizeof part, "\"%s\":\"", key);
    at = body->len ? strstr(body->ptr, part) : NULL;
    if (!at) return;
    at += strlen(part);
    snprintf(out, size, "%.*s", (int)strcspn(at, "\""), at);
}

static void td_take_names(td *t, const td_reply *r) {
    td_take(&r->body, "id", t->id, sizeof t->id);
    td_take(&r->body, "sandboxID", t->id, sizeof t->id);
    td_take(&r->body, "sessionId", t->id, sizeof t->id);
    td_take(&r->body, "token", t->token, sizeof t->token);
    td_take(&r->body, "envdAccessToken", t->token, sizeof t->token);
    td_take(&r->body, "watcherId", t->watch, sizeof t->watch);
    td_take(&r->body, "path", t->path, sizeof t->path);
}

/* ---- one call ---- */

#define TD_UPGRADE                                                     \
    "Connection: Upgrade\r\nUpgrade: websocket\r\n"                    \
    "Sec-WebSocket-Version: 13\r\n"                                    \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

/* Opens a WebSocket; false when that fails. */
static bool td_upgrade(td *t, td_conn *c) {
    static const td_call hello = {"GET", "/codex", NULL, NULL, TD_PLAIN,
                                  0,     101,      NULL};
    hfsb_buf             out = HFSB_INIT;
    td_reply             r = HFSB_INIT;
    bool                 ok;
    size_t               end;
    td_put_request(t, &hello, &out);
    ok = td_await(t, c, &hello, 0, hfsb_buf_str(&out), &r) && r.status == 101;
    end = hfsb_str_find(hfsb_buf_str(&c->in), HFSB_LIT("\r\n\r\n"));
    if (ok) {
        memmove(c->in.ptr, c->in.ptr + end + 4, c->in.len - end - 4);
        hfsb_buf_truncate(&c->in, c->in.len - end - 4);
    }
    hfsb_buf_free(&out);
    td_drop(&r);
    return ok;
}

/* Sends one call on a connection and waits, as td_await(). */
static bool td_ask(td *t, td_conn *c, const td_call *call, long id,
                   td_reply *r) {
    hfsb_buf out = HFSB_INIT, text = HFSB_INIT;
    bool     ok;
    if (call->form != TD_MESSAGE) {
        td_put_request(t, call, &out);
        id = 0;
    } else {
        (void)hfsb_buf_printf(&text, "{\"id\":%ld,\"method\":\"%s\",\"params\":",
                              id, call->method);
        td_put(t, call->body, &text);
        (void)hfsb_buf_append(&text, HFSB_LIT("}"));
        if (!t->kind->on_fds) td_frame(&out, hfsb_buf_str(&text));
        else if (hfsb_buf_append(&out, hfsb_buf_str(&text)) != HFSB_OK ||
                 hfsb_buf_append_byte(&out, '\n') != HFSB_OK)
            abort();
    }
    ok = td_await(t, c, call, id, hfsb_buf_str(&out), r);
    hfsb_buf_free(&out);
    hfsb_buf_free(&text);
    return ok;
}

/* Makes the calls that a call needs; messages on c, others on connections of
   their own. False: one has failed. */
HFSBI_UNUSED static bool td_prepare(td *t, td_conn *c, const td_call *call) {
    td_reply r = HFSB_INIT;
    size_t   i;
    bool     ok = true;
    for (i = 0; ok && i < TT_COUNT(t->kind->before); i++) {
        const td_call *b = &t->kind->before[i];
        td_conn        own = HFSB_INIT;
        if (!(call->needs & 1u << i)) continue;
        if (b->form == TD_MESSAGE) {
            ok = td_ask(t, c, b, (long)i + 1, &r);
        } else {
            own = td_connect(t);
            ok = td_ask(t, &own, b, 0, &r);
            td_hang_up(&own);
        }
        if (r.status != b->status) {
            printf("%s: before: %s: %d %.*s\n", t->kind->name, b->target,
                   r.status, (int)r.body.len, r.body.ptr ? r.body.ptr : "");
            ok = false;
        }
        td_take_names(t, &r);
    }
    td_drop(&r);
    return ok;
}

/* Opens a connection for a call. */
HFSBI_UNUSED static bool td_reach(td *t, const td_call *call, td_conn *c) {
    memset(c, 0, sizeof *c);
    c->fd = -1;
    if (t->kind->on_fds) {
        *c = t->line;
        memset(&t->line, 0, sizeof t->line);
        t->line.fd = -1;
        return true;
    }
    *c = td_connect(t);
    return call->form != TD_MESSAGE || td_upgrade(t, c);
}

/* True if the server serves on; the only client of descriptors, if it is not
   lost, on the same ones. */
HFSBI_UNUSED static bool td_is_alive(td *t, td_conn *old) {
    const td_call *call = &t->kind->alive;
    td_conn        c;
    td_reply       r = HFSB_INIT;
    bool           ok;
    if (!t->alive) return t->kind->on_fds; /* it has lost its only client */
    if (t->kind->on_fds) {
        ok = old->ended || (td_ask(t, old, call, 77, &r) &&
                            (r.whole || old->ended || !t->alive));
        td_drop(&r);
        return ok;
    }
    ok = td_reach(t, call, &c) && td_ask(t, &c, call, 77, &r) &&
         (r.status == call->status ||
          (call->form == TD_MESSAGE && r.status == 500));
    td_hang_up(&c);
    td_drop(&r);
    return ok;
}

/* What the calls work on. */
HFSBI_UNUSED static void td_files(void) {
    (void)tt_remove_all("d", NULL);
    (void)tt_remove_all("sandboxes", NULL);
    (void)tt_remove_all("sbx", NULL);
    if (mkdir("d", 0755) || mkdir("d/e", 0755) || symlink("x", "d/l")) abort();
    tt_put("d/x", HFSB_LIT("some bytes of a file\n"));
    tt_put("d/e/y", HFSB_LIT("y"));
}

/* Replaces numbers, so that two replies can be compared; also the length of an
   envelope of Connect, which has as many digits of a pid as it has. */
HFSBI_UNUSED static void td_blot(hfsb_buf *text) {
    size_t i, n = 0;
    for (i = 0; i < text->len; i++) {
        char c = text->ptr[i];
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')) c = '#';
        if (c == '#' && n && text->ptr[n - 1] == '#') continue;
        if (c == '\0') c = '.';
        if (c == '{' && n > 3 && !memcmp(text->ptr + n - 4, "...", 3))
            text->ptr[n - 1] = '.';
        text->ptr[n++] = c;
    }
    if (text->ptr) hfsb_buf_truncate(text, n);
}
#endif
