/* t_conn.h - shared by the tests of connections: routes that reply in every
   possible way, and conversations as bytes. */
#ifndef T_CONN_H
#define T_CONN_H
#include "t_server.h"

#include <sys/un.h>

#ifdef HFSBI_SPLIT
#include "../../src/server/server_private.h"
#endif

/* ---- counters that the routes keep for the tests ---- */

enum { TC_HELD = 64 };

typedef struct tc_state {
    pthread_mutex_t lock;
    hfsb_request   *held[TC_HELD]; /* by /hold, until tc_release() */
    size_t          holding, held_ever, gone, eof, ran;
    size_t          events, refused; /* of the log; accept failures */
    int             last_status;
    char            last_path[64], last_peer[64], last_detail[64];
    char            file[128]; /* that /file sends */
} tc_state;

static tc_state tc = {PTHREAD_MUTEX_INITIALIZER, {NULL}, 0, 0, 0, 0, 0, 0,
                      0, 0, "", "", "", ""};

HFSBI_UNUSED static size_t tc_get(const size_t *value) {
    size_t n;
    pthread_mutex_lock(&tc.lock);
    n = *value;
    pthread_mutex_unlock(&tc.lock);
    return n;
}

static void tc_add(size_t *value, size_t n) {
    pthread_mutex_lock(&tc.lock);
    *value += n;
    pthread_mutex_unlock(&tc.lock);
}

/* Waits until *value is n; false after some seconds. */
HFSBI_UNUSED static bool tc_becomes(const size_t *value, size_t n) {
    long long end = hfsb_clock_ms() + 20000;
    while (tc_get(value) != n && hfsb_clock_ms() < end) usleep(500);
    return tc_get(value) == n;
}

HFSBI_UNUSED static void tc_log(void *user, const hfsb_server_event *e) {
    (void)user;
    pthread_mutex_lock(&tc.lock);
    tc.events++;
    if (strcmp(e->what, "request")) tc.refused++;
    tc.last_status = e->status;
    snprintf(tc.last_path, sizeof tc.last_path, "%.*s",
             e->path.len < 60 ? (int)e->path.len : 60,
             e->path.ptr ? e->path.ptr : "");
    snprintf(tc.last_peer, sizeof tc.last_peer, "%.*s", (int)e->peer.len,
             e->peer.ptr ? e->peer.ptr : "");
    snprintf(tc.last_detail, sizeof tc.last_detail, "%.*s",
             e->detail.len < 60 ? (int)e->detail.len : 60,
             e->detail.ptr ? e->detail.ptr : "");
    pthread_mutex_unlock(&tc.lock);
}

/* ---- routes ---- */

static void tc_hello(void *user, hfsb_request *r) {
    (void)user;
    hfsb_reply(r, 200, "text/plain", HFSB_LIT("hello"));
}

static void tc_echo(void *user, hfsb_request *r) {
    (void)user;
    hfsb_reply(r, 200, "application/octet-stream", hfsb_request_body(r));
}

static void tc_part(void *user, hfsb_request *r) {
    (void)user;
    hfsb_reply(r, 200, "text/plain", hfsb_request_part(r, 0));
}

static size_t tc_most = (size_t)-1; /* upper limit for query numbers */

/* A number from the query; 0 if absent. */
static size_t tc_number(hfsb_request *r, const char *key) {
    hfsb_buf text = HFSB_INIT;
    size_t   n = 0;
    if (hfsb_request_query(r, key, &text, NULL) == HFSB_OK)
        n = text.len ? (size_t)strtoul(text.ptr, NULL, 10) : 0;
    hfsb_buf_free(&text);
    return n < tc_most ? n : tc_most;
}

/* -- /late: replies with the body from a posted function -- */

typedef struct tc_later {
    hfsb_request *request; /* NULL: gone */
} tc_later;

static void tc_later_gone(void *user, hfsb_request *r) {
    (void)r;
    ((tc_later *)user)->request = NULL;
    tc_add(&tc.gone, 1);
}

static void tc_later_reply(void *user) {
    tc_later *later = (tc_later *)user;
    if (later->request)
        hfsb_reply(later->request, 200, "text/plain",
                   hfsb_request_body(later->request));
    free(later);
}

static void tc_late(void *user, hfsb_request *r) {
    tc_later *later = (tc_later *)malloc(sizeof *later);
    (void)user;
    if (!later) abort();
    later->request = r;
    hfsb_request_on_gone(r, tc_later_gone, later);
    if (hfsb_server_post(hfsb_request_server(r), tc_later_reply, later) !=
        HFSB_OK) {
        hfsb_request_on_gone(r, NULL, NULL);
        free(later);
        hfsb_reply_error(r, 503, "no memory");
    }
}

/* -- /hold: waits for tc_release(); with ?pieces it begins a reply -- */

static void tc_hold_gone(void *user, hfsb_request *r) {
    size_t i;
    (void)user;
    pthread_mutex_lock(&tc.lock);
    for (i = 0; i < TC_HELD; i++)
        if (tc.held[i] == r) {
            tc.held[i] = NULL;
            tc.holding--;
            tc.gone++;
        }
    pthread_mutex_unlock(&tc.lock);
}

static void tc_hold_eof(void *user, hfsb_request *r) {
    (void)user;
    (void)r;
    tc_add(&tc.eof, 1);
}

static void tc_hold(void *user, hfsb_request *r) {
    size_t i = 0;
    (void)user;
    hfsb_request_on_gone(r, tc_hold_gone, NULL);
    hfsbi_request_on_eof(r, tc_hold_eof, NULL);
    if (hfsb_request_head(r)->query.len) {
        hfsb_reply_begin(r, 200, "text/plain");
        (void)hfsb_reply_write(r, HFSB_LIT("begun "));
    }
    pthread_mutex_lock(&tc.lock);
    while (i < TC_HELD && tc.held[i]) i++;
    if (i == TC_HELD) abort();
    tc.held[i] = r;
    tc.holding++;
    tc.held_ever++;
    pthread_mutex_unlock(&tc.lock);
}

static void tc_let_go(void *user) {
    size_t i;
    (void)user;
    for (i = 0; i < TC_HELD; i++) {
        hfsb_request *r;
        pthread_mutex_lock(&tc.lock);
        r = tc.held[i];
        tc.held[i] = NULL;
        if (r) tc.holding--;
        pthread_mutex_unlock(&tc.lock);
        if (!r) continue;
        if (!hfsb_request_head(r)->query.len) {
            hfsb_reply(r, 200, "text/plain", HFSB_LIT("held"));
        } else {
            (void)hfsb_reply_write(r, HFSB_LIT("ended"));
            hfsb_reply_end(r);
        }
    }
}

HFSBI_UNUSED static void tc_release(hfsb_server *server) {
    if (hfsb_server_post(server, tc_let_go, NULL) != HFSB_OK) abort();
}

/* -- /pieces?count=&size=: as fast as the peer reads -- */

typedef struct tc_pieces {
    size_t left, size;
} tc_pieces;

static void tc_pieces_gone(void *user, hfsb_request *r) {
    (void)r;
    free(user);
    tc_add(&tc.gone, 1);
}

static void tc_pieces_more(void *user, hfsb_request *r) {
    static char bytes[65536];
    tc_pieces  *p = (tc_pieces *)user;
    while (p->left && hfsb_reply_waiting(r) < 262144) {
        p->left--;
        if (hfsb_reply_write(r, hfsb_str_make(bytes, p->size)) != HFSB_OK)
            return; /* `gone` will be called */
    }
    if (p->left) return;
    free(p);
    hfsb_reply_end(r);
}

static void tc_in_pieces(void *user, hfsb_request *r) {
    tc_pieces *p = (tc_pieces *)malloc(sizeof *p);
    (void)user;
    if (!p) abort();
    p->left = tc_number(r, "count");
    p->size = tc_number(r, "size");
    if (p->size > 65536) abort();
    hfsb_request_on_gone(r, tc_pieces_gone, p);
    hfsb_reply_on_drained(r, tc_pieces_more, p);
    hfsb_reply_begin(r, 200, "application/octet-stream");
    tc_pieces_more(p, r);
}

/* -- /file: tc.file, or with ?more bytes more than it has -- */

static void tc_send_file(void *user, hfsb_request *r) {
    struct stat st;
    int         fd = open(tc.file, O_RDONLY | O_CLOEXEC);
    (void)user;
    if (fd < 0 || fstat(fd, &st)) {
        hfsb_reply_error(r, 404, "no file");
        return;
    }
    hfsb_reply_file(r, 200, "application/octet-stream", fd, 0,
                    (unsigned long long)st.st_size + tc_number(r, "more"));
}

/* -- /threaded?ms=, /silent -- */

static void tc_threaded(void *user, hfsb_request *r) {
    (void)user;
    usleep((useconds_t)(1000 * tc_number(r, "ms")));
    tc_add(&tc.ran, 1);
    if (hfsb_reply_field(r, "X-Thread", HFSB_LIT("yes")) == HFSB_OK)
        hfsb_reply(r, 201, "text/plain", hfsb_request_body(r));
}

static void tc_silent(void *user, hfsb_request *r) {
    (void)user;
    (void)r;
}

/* -- /stream: takes the body in pieces and pauses after each -- */

typedef struct tc_stream {
    hfsb_request      *request;
    unsigned long long bytes;
    unsigned long      sum;
    bool               posted;
} tc_stream;

static void tc_stream_gone(void *user, hfsb_request *r) {
    tc_stream *s = (tc_stream *)user;
    (void)r;
    tc_add(&tc.gone, 1);
    s->request = NULL;
    if (!s->posted) free(s);
}

static void tc_stream_begin(void *user, hfsb_request *r) {
    tc_stream *s = (tc_stream *)calloc(1, sizeof *s);
    (void)user;
    if (!s) abort();
    s->request = r;
    hfsb_request_set(r, s);
    hfsb_request_on_gone(r, tc_stream_gone, s);
    if (hfsb_http_field_find(hfsb_request_head(r), "x-refuse").ptr) {
        free(s);
        hfsb_reply_error(r, 409, "refused at the beginning");
    }
}

static void tc_stream_resume(void *user) {
    tc_stream *s = (tc_stream *)user;
    s->posted = false;
    if (s->request) hfsb_request_resume(s->request);
    else free(s);
}

static void tc_stream_body(void *user, hfsb_request *r, hfsb_str piece) {
    tc_stream *s = (tc_stream *)hfsb_request_get(r);
    size_t     i;
    (void)user;
    for (i = 0; i < piece.len; i++)
        s->sum = (s->sum * 31 + (unsigned char)piece.ptr[i]) & 0xffffff;
    s->bytes += piece.len;
    if (memchr(piece.ptr, '!', piece.len)) {
        free(s);
        hfsb_reply_error(r, 409, "refused in the middle");
        return;
    }
    if (hfsb_server_post(hfsb_request_server(r), tc_stream_resume, s) !=
        HFSB_OK)
        return;
    s->posted = true;
    hfsb_request_pause(r);
}

static void tc_stream_end(void *user, hfsb_request *r) {
    tc_stream *s = (tc_stream *)hfsb_request_get(r);
    char       text[80];
    (void)user;
    snprintf(text, sizeof text, "%llu %lu", s->bytes, s->sum);
    free(s);
    hfsb_reply(r, 200, "text/plain", hfsb_cstr(text));
}

/* -- /fields: adds invalid fields, all of which must be refused -- */

static void tc_fields(void *user, hfsb_request *r) {
    static const struct {
        const char *name, *value;
        size_t      len;
    } bad[] = {{"X-A", "a\r\nX-Evil: 1", 12}, {"X-A", "a\nb", 3},
               {"X-A", "a\rb", 3},            {"X-A", "a\0b", 3},
               {"X-A\r\nX-Evil", "1", 1},     {"X A", "1", 1},
               {"X:A", "1", 1},               {"", "1", 1}};
    size_t i, wrong = 0;
    (void)user;
    for (i = 0; i < TT_COUNT(bad); i++)
        if (hfsb_reply_field(r, bad[i].name,
                             hfsb_str_make(bad[i].value, bad[i].len)) !=
            HFSB_ARG)
            wrong++;
    if (hfsb_reply_field(r, "X-Good", HFSB_LIT("yes")) != HFSB_OK) wrong++;
    hfsb_reply(r, wrong ? 500 : 200, "text/plain", HFSB_LIT("fields"));
}

static void tc_nothing(void *user, hfsb_request *r) {
    (void)user;
    if (!hfsb_request_head(r)->query.len) {
        hfsb_reply(r, 204, "", HFSB_LIT("not to be sent"));
        return;
    }
    hfsb_reply_begin(r, 204, "");
    (void)hfsb_reply_write(r, HFSB_LIT("not to be sent"));
    hfsb_reply_end(r);
}

static void tc_abort(void *user, hfsb_request *r) {
    (void)user;
    hfsb_reply_begin(r, 200, "text/plain");
    (void)hfsb_reply_write(r, HFSB_LIT("cut"));
    hfsb_reply_abort(r);
}

/* Adds all routes; only /secret needs the token. False without memory. */
static bool tc_try_routes(hfsb_server *server) {
    static const struct {
        const char   *method, *path;
        hfsb_route_fn fn;
        bool          token, threaded;
        size_t        max_body;
    } list[] = {{"GET", "/hello", tc_hello, false, false, 0},
                {"POST", "/hello", tc_echo, false, false, 0},
                {"POST", "/echo", tc_echo, false, false, 0},
                {"POST", "/small", tc_echo, false, false, 10},
                {"GET", "/secret", tc_hello, true, false, 0},
                {"POST", "/secret", tc_echo, true, false, 0},
                {"GET", "/part/*/end", tc_part, false, false, 0},
                {"POST", "/late", tc_late, false, false, 0},
                {"GET", "/hold", tc_hold, false, false, 0},
                {"GET", "/pieces", tc_in_pieces, false, false, 0},
                {"GET", "/file", tc_send_file, false, false, 0},
                {"POST", "/threaded", tc_threaded, false, true, 0},
                {"GET", "/silent", tc_silent, false, true, 0},
                {"GET", "/fields", tc_fields, false, false, 0},
                {"GET", "/nothing", tc_nothing, false, false, 0},
                {"GET", "/abort", tc_abort, false, false, 0},
                {"GET", "/", tc_hello, false, false, 0}};
    hfsb_route  route = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; st == HFSB_OK && i < TT_COUNT(list); i++) {
        memset(&route, 0, sizeof route);
        route.method = list[i].method;
        route.path = list[i].path;
        route.fn = list[i].fn;
        route.no_token = !list[i].token;
        route.threaded = list[i].threaded;
        route.max_body = list[i].max_body;
        st = hfsb_server_add(server, &route, NULL);
    }
    memset(&route, 0, sizeof route);
    route.method = "PUT";
    route.path = "/stream";
    route.fn = tc_stream_end;
    route.begin = tc_stream_begin;
    route.body = tc_stream_body;
    route.no_token = true;
    if (st == HFSB_OK) st = hfsb_server_add(server, &route, NULL);
    return st == HFSB_OK;
}

/* Resets the counters. */
HFSBI_UNUSED static void tc_reset(void) {
    pthread_mutex_lock(&tc.lock);
    memset(tc.held, 0, sizeof tc.held);
    tc.holding = tc.held_ever = tc.gone = tc.eof = tc.ran = 0;
    tc.events = tc.refused = 0;
    pthread_mutex_unlock(&tc.lock);
}

/* Starts a server with all routes in a thread. */
HFSBI_UNUSED static void tc_start(ts_server *s, const hfsb_server_opts *opts) {
    tc_reset();
    ts_open(s, opts);
    if (!tc_try_routes(s->server)) abort();
    ts_run(s);
}

/* ---- conversations ---- */

#define TC_HEAD "Host: localhost\r\n"
#define TC_GET(path) "GET " path " HTTP/1.1\r\n" TC_HEAD "\r\n"
#define TC_LAST(path) \
    "GET " path " HTTP/1.1\r\n" TC_HEAD "Connection: close\r\n\r\n"

/* Reads to the end of the connection into *all; replaces Date and the
   instance, which differ, by "#". */
HFSBI_UNUSED static void tc_rest(ts_conn *c, hfsb_buf *all) {
    static const char *const names[] = {"\r\nDate: ", "instance="};
    size_t                   i, at, from;
    while (ts_more(c, 20000)) continue;
    T_CHECK(c->ended);
    if (hfsb_buf_append(all, hfsb_buf_str(&c->in)) != HFSB_OK) abort();
    for (i = 0; i < TT_COUNT(names); i++)
        for (from = 0; from < all->len;) {
            at = hfsb_str_find(hfsb_str_slice(hfsb_buf_str(all), from,
                                              all->len),
                               hfsb_cstr(names[i]));
            if (at == HFSB_NPOS) break;
            from += at + strlen(names[i]);
            while (from < all->len && all->ptr[from] != '\r')
                all->ptr[from++] = '#';
        }
}

/* Sends raw bytes on a new connection and reads one reply. */
HFSBI_UNUSED static ts_conn tc_ask(const ts_server *s, ts_reply *r,
                                   const char *raw) {
    ts_conn c = ts_connect(s);
    (void)ts_send(&c, hfsb_cstr(raw));
    T_CHECK(ts_read(&c, r, !strncmp(raw, "HEAD", 4)));
    return c;
}

/* True if the connection serves another request. */
HFSBI_UNUSED static bool tc_lives(ts_conn *c) {
    ts_reply r = HFSB_INIT;
    bool     ok = ts_send(c, HFSB_LIT(TC_GET("/hello"))) &&
              ts_read(c, &r, false) && r.status == 200 &&
              ts_contains(&r, "hello");
    ts_drop(&r);
    return ok;
}

/* Counts the occurrences of part. */
HFSBI_UNUSED static size_t tc_count(hfsb_str all, const char *part) {
    size_t n = 0, at;
    while ((at = hfsb_str_find(all, hfsb_cstr(part))) != HFSB_NPOS) {
        all = hfsb_str_slice(all, at + strlen(part), all.len);
        n++;
    }
    return n;
}
#endif
