/* t_mcp.h - for tests of MCP over descriptors: a server in a thread with a
   pair of pipes, lines to it, and answers found by their ids. */
#ifndef T_MCP_H
#define T_MCP_H
#define T_SERVER
#include "t_tools.h"
#ifdef HFSBI_SPLIT
#include "../../src/mcp/mcp.h"
#endif

#include <poll.h>

enum { TM_WAIT_MS = 60000 };

typedef struct tm_client {
    hfsb_server  *server;
    hfsb_mcp     *mcp;
    pthread_t     thread;
    bool          runs;
    hfsb_status   ended; /* status of hfsb_server_run() */
    int           to, from;
    int           theirs[2];
    hfsb_buf      got;  /* all bytes so far */
    hfsb_json_doc doc;  /* the last answer found */
    hfsb_buf      text; /* of the blocks of that answer */
} tm_client;

static void *tm_serve(void *user) {
    tm_client *c = (tm_client *)user;
    c->ended = hfsb_server_run(c->server, NULL);
    return NULL;
}

/* Opens a server with MCP that does not listen. */
HFSBI_UNUSED static void tm_open(tm_client *c, const hfsb_mcp_opts *opts) {
    hfsb_server_opts so = HFSB_INIT;
    hfsb_mcp_opts    o = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    memset(c, 0, sizeof *c);
    if (opts) o = *opts;
    o.path = "";
    so.alloc = tt_alloc();
    if (hfsb_server_open(&so, &c->server, &err) != HFSB_OK ||
        hfsb_server_add_mcp(c->server, &o, &c->mcp, &err) != HFSB_OK) {
        printf("no server: %s\n", err.msg);
        abort();
    }
}

/* Serves two descriptors of the caller in a thread. */
HFSBI_UNUSED static void tm_run_fds(tm_client *c, int in, int out) {
    hfsb_err err = HFSB_INIT;
    if (hfsb_mcp_stdio(c->mcp, in, out, &err) != HFSB_OK) {
        printf("no stdio: %s\n", err.msg);
        abort();
    }
    if (pthread_create(&c->thread, NULL, tm_serve, c)) abort();
    c->runs = true;
}

HFSBI_UNUSED static void tm_pipes(tm_client *c) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) abort();
    c->theirs[0] = in[0];
    c->theirs[1] = out[1];
    c->to = in[1];
    c->from = out[0];
}

HFSBI_UNUSED static void tm_start(tm_client *c, const hfsb_mcp_opts *opts) {
    tm_open(c, opts);
    tm_pipes(c);
    tm_run_fds(c, c->theirs[0], c->theirs[1]);
}

static void tm_shut(int *fd) {
    if (*fd > 0) close(*fd);
    *fd = 0;
}

/* Waits for the end of the server; returns how many ms that took. */
HFSBI_UNUSED static long long tm_join(tm_client *c) {
    long long began = hfsb_clock_ms();
    pthread_join(c->thread, NULL);
    c->runs = false;
    T_CHECK(c->ended == HFSB_OK);
    return hfsb_clock_ms() - began;
}

/* Ends the input, waits, frees all. */
HFSBI_UNUSED static void tm_end(tm_client *c) {
    tm_shut(&c->to);
    if (c->runs) (void)tm_join(c);
    hfsb_server_close(c->server);
    tm_shut(&c->from);
    tm_shut(&c->theirs[0]);
    tm_shut(&c->theirs[1]);
    hfsb_buf_free(&c->got);
    hfsb_buf_free(&c->text);
    hfsb_json_free(&c->doc);
    memset(c, 0, sizeof *c);
}

/* ---- lines ---- */

HFSBI_UNUSED static void tm_raw(tm_client *c, const char *bytes) {
    size_t  n = strlen(bytes);
    ssize_t sent;
    for (; n; bytes += sent, n -= (size_t)sent)
        if ((sent = write(c->to, bytes, n)) <= 0) abort();
}

/* A line, from a format. */
HFSBI_UNUSED static void tm_send(tm_client *c, const char *format, ...)
    HFSBI_PRINTF(2, 3);
HFSBI_UNUSED static void tm_send(tm_client *c, const char *format, ...) {
    char    line[8192];
    va_list ap;
    va_start(ap, format);
    if (vsnprintf(line, sizeof line - 1, format, ap) >= (int)sizeof line - 1)
        abort();
    va_end(ap);
    strcat(line, "\n");
    tm_raw(c, line);
}

/* Calls a tool: id and arguments are JSON, extra is appended to params. */
HFSBI_UNUSED static void tm_call_more(tm_client *c, const char *id,
                                      const char *tool, const char *arguments,
                                      const char *extra) {
    tm_send(c,
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/call\","
            "\"params\":{\"name\":\"%s\",\"arguments\":%s%s}}",
            id, tool, arguments, extra);
}
HFSBI_UNUSED static void tm_call(tm_client *c, const char *id,
                                 const char *tool, const char *arguments) {
    tm_call_more(c, id, tool, arguments, "");
}
/* The same with the id as progress token. */
HFSBI_UNUSED static void tm_watch(tm_client *c, const char *id,
                                  const char *tool, const char *arguments) {
    char extra[100];
    snprintf(extra, sizeof extra, ",\"_meta\":{\"progressToken\":%s}", id);
    tm_call_more(c, id, tool, arguments, extra);
}

HFSBI_UNUSED static void tm_initialize(tm_client *c, const char *version) {
    tm_send(c,
            "{\"jsonrpc\":\"2.0\",\"id\":\"init\",\"method\":\"initialize\","
            "\"params\":{\"protocolVersion\":\"%s\",\"capabilities\":{},"
            "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}",
            version);
}

HFSBI_UNUSED static void tm_ping(tm_client *c, const char *id) {
    tm_send(c, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}", id);
}

HFSBI_UNUSED static void tm_cancel(tm_client *c, const char *id) {
    tm_send(c,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
            "\"params\":{\"requestId\":%s}}",
            id);
}

/* ---- answers ---- */

/* Waits up to ms for bytes; false when none came, or at the end. */
HFSBI_UNUSED static bool tm_more(tm_client *c, int ms) {
    char          piece[65536];
    struct pollfd p;
    ssize_t       n;
    memset(&p, 0, sizeof p);
    p.fd = c->from;
    p.events = POLLIN;
    if (poll(&p, 1, ms) <= 0) return false;
    n = read(c->from, piece, sizeof piece);
    if (n > 0 &&
        hfsb_buf_append(&c->got, hfsb_str_make(piece, (size_t)n)) != HFSB_OK)
        abort();
    return n > 0;
}

/* Reads all that comes within ms. */
HFSBI_UNUSED static void tm_listen(tm_client *c, int ms) {
    long long until = hfsb_clock_ms() + ms;
    while (hfsb_clock_ms() < until)
        (void)tm_more(c, (int)(until - hfsb_clock_ms()));
}

/* Returns how many lines contain `part`. */
HFSBI_UNUSED static size_t tm_count(const tm_client *c, const char *part) {
    hfsb_str rest = hfsb_buf_str(&c->got);
    size_t   n = 0, end;
    while (rest.len) {
        end = hfsb_str_find_byte(rest, '\n');
        n += hfsb_str_find(hfsb_str_slice(rest, 0, end), hfsb_cstr(part)) !=
             HFSB_NPOS;
        rest = hfsb_str_slice(rest, end == HFSB_NPOS ? rest.len : end + 1,
                              rest.len);
    }
    return n;
}

/* Parses a line into c->doc; true when it is the answer with that id. */
static bool tm_is(tm_client *c, hfsb_str line, const char *id) {
    hfsb_buf text = HFSB_INIT;
    bool     same = false;
    hfsb_json_free(&c->doc);
    if (hfsb_json_parse(line, NULL, &c->doc, NULL) != HFSB_OK) {
        T_CHECK(!"a line that is not JSON");
        printf("%.*s\n", (int)(line.len > 300 ? 300 : line.len), line.ptr);
        return false;
    }
    if ((hfsb_json_get(c->doc.root, "result") ||
         hfsb_json_get(c->doc.root, "error")) &&
        hfsb_json_write(hfsb_json_get(c->doc.root, "id"), NULL, &text, NULL) ==
            HFSB_OK)
        same = hfsb_str_equal(hfsb_buf_str(&text), hfsb_cstr(id));
    hfsb_buf_free(&text);
    return same;
}

static bool tm_find(tm_client *c, const char *id) {
    hfsb_str rest = hfsb_buf_str(&c->got);
    size_t   end;
    while ((end = hfsb_str_find_byte(rest, '\n')) != HFSB_NPOS) {
        if (tm_is(c, hfsb_str_slice(rest, 0, end), id)) return true;
        rest = hfsb_str_slice(rest, end + 1, rest.len);
    }
    return false;
}

/* Waits for the answer with that id (JSON): into c->doc, the text of its
   result into c->text. False when none comes. */
HFSBI_UNUSED static bool tm_wait(tm_client *c, const char *id) {
    long long      until = hfsb_clock_ms() + TM_WAIT_MS;
    hfsb_json_iter it;
    hfsb_buf_truncate(&c->text, 0);
    while (!tm_find(c, id))
        if (hfsb_clock_ms() > until || (!tm_more(c, 1000) && !c->runs)) {
            printf("no answer to %s\n", id);
            return false;
        }
    it = hfsb_json_begin(
        hfsb_json_get(hfsb_json_get(c->doc.root, "result"), "content"));
    while (hfsb_json_next(&it))
        if (hfsb_buf_append(&c->text,
                            hfsb_json_str(hfsb_json_get(it.value, "text"),
                                          HFSB_LIT(""))) != HFSB_OK)
            abort();
    return true;
}

HFSBI_UNUSED static const hfsb_json_value *tm_result(const tm_client *c,
                                                     const char      *key) {
    return hfsb_json_get(hfsb_json_get(c->doc.root, "result"), key);
}

/* Returns the code of the error, 0 for a result. */
HFSBI_UNUSED static long long tm_code(const tm_client *c) {
    return hfsb_json_int(
        hfsb_json_get(hfsb_json_get(c->doc.root, "error"), "code"), 0);
}

HFSBI_UNUSED static bool tm_failed(const tm_client *c) {
    return hfsb_json_bool(tm_result(c, "isError"), false);
}

HFSBI_UNUSED static bool tm_says(const tm_client *c, const char *part) {
    bool says =
        hfsb_str_find(hfsb_buf_str(&c->text), hfsb_cstr(part)) != HFSB_NPOS;
    if (!says)
        printf("not in \"%.*s\": %s\n", (int)c->text.len,
               c->text.ptr ? c->text.ptr : "", part);
    return says;
}

/* ---- files and processes ---- */

/* Waits until a file exists, or does not. */
HFSBI_UNUSED static bool tm_file(const char *path, bool there) {
    long long until = hfsb_clock_ms() + TM_WAIT_MS;
    while ((access(path, F_OK) == 0) != there && hfsb_clock_ms() < until)
        tt_sleep_ms(5);
    return (access(path, F_OK) == 0) == there;
}

/* Returns the pid in a file; 0: none yet. */
HFSBI_UNUSED static long tm_pid_in(const char *path) {
    hfsb_buf b = HFSB_INIT;
    long     pid = 0;
    if (access(path, R_OK) == 0 && t_read_file(path, &b) && b.len)
        pid = atol(b.ptr);
    hfsb_buf_free(&b);
    return pid;
}

/* The same, but waits: a file exists before its content. */
HFSBI_UNUSED static long tm_pid(const char *path) {
    long long until = hfsb_clock_ms() + TM_WAIT_MS;
    long      pid;
    while ((pid = tm_pid_in(path)) == 0 && hfsb_clock_ms() < until)
        tt_sleep_ms(5);
    T_CHECK(pid > 0);
    return pid;
}

/* Waits up to ms for the end of a process; true when it has ended. */
HFSBI_UNUSED static bool tm_gone(long pid, int ms) {
    long long until = hfsb_clock_ms() + ms;
    while (pid > 0 && tt_alive(pid) && hfsb_clock_ms() < until) tt_sleep_ms(5);
    return pid > 0 && !tt_alive(pid);
}
#endif
