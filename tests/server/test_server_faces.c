/* test_server_faces.c - several protocols in one server: routes, ports, tokens
   and errors of their own. */
#include "../support/t_server.h"

static ts_server s;

/* A protocol with the field X-Key and errors in brackets. */
typedef struct odd_face {
    hfsbi_face    face; /* first */
    unsigned char digest[HFSB_SHA256_SIZE];
    unsigned      port;
} odd_face;

static odd_face      beside, apart;
static unsigned char other_key[HFSB_SHA256_SIZE];

static bool odd_trusts(hfsbi_face *face, hfsb_request *r) {
    const unsigned char *digests[3]; /* either will do */
    digests[0] = ((odd_face *)(void *)face)->digest;
    digests[1] = other_key;
    digests[2] = NULL;
    return hfsbi_request_proves_any(r, "X-Key", NULL, digests);
}

static void odd_refuse(hfsbi_face *face, hfsb_request *r, int status,
                       hfsb_str message) {
    char text[300];
    (void)face;
    (void)snprintf(text, sizeof text, "[%d %.*s]", status, (int)message.len,
                   message.ptr);
    hfsb_reply(r, status, "text/odd", hfsb_cstr(text));
}

/* Replies with the parts, and with what is left of the key. */
static void show(void *user, hfsb_request *r) {
    hfsb_str a = hfsb_request_part(r, 0), b = hfsb_request_part(r, 1);
    hfsb_str key = hfsb_http_field_find(hfsb_request_head(r), "X-Key");
    char     text[300];
    (void)snprintf(text, sizeof text, "%s(%.*s)(%.*s)%s", (const char *)user,
                   (int)a.len, a.ptr ? a.ptr : "", (int)b.len,
                   b.ptr ? b.ptr : "", key.len ? " key" : "");
    hfsb_reply(r, 200, "text/plain", hfsb_cstr(text));
}

static void fail_late(void *user, hfsb_request *r) {
    (void)user;
    hfsb_reply_error(r, 409, "%s", "late");
}

static void add(hfsbi_face *face, const char *path, hfsb_route_fn fn,
                const char *name, bool no_token) {
    hfsb_route route = HFSB_INIT;
    route.method = "GET";
    route.path = path;
    route.fn = fn;
    route.user = (void *)(uintptr_t)name;
    route.no_token = no_token;
    T_CHECK(hfsbi_face_add(s.server, face, &route, NULL) == HFSB_OK);
}

static void open_face(odd_face *f, const char *key, bool alone) {
    hfsb_sha256 sha;
    memset(f, 0, sizeof *f);
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, hfsb_cstr(key));
    hfsb_sha256_finish(&sha, f->digest);
    f->face.alone = alone;
    f->face.guard = alone ? HFSBI_FACE_TOKEN : HFSBI_FACE_SERVER;
    f->face.denied = 418;
    f->face.trusts = odd_trusts;
    f->face.refuse = odd_refuse;
}

static void start(void) {
    hfsb_route twice = HFSB_INIT;
    ts_open(&s, NULL);
    open_face(&beside, "other", false);
    memcpy(other_key, beside.digest, sizeof other_key);
    open_face(&beside, "first", false);
    open_face(&apart, "second", true);
    add(NULL, "/own", show, "own", true);
    add(NULL, "/both", show, "own", true);
    add(&beside.face, "/odd/open", show, "open", true);
    add(&beside.face, "/odd/rest/*/**", show, "rest", true);
    add(&beside.face, "/odd/late", fail_late, "", true);
    add(&beside.face, "/odd/*", show, "beside", false);
    add(&apart.face, "/both", show, "apart", false);
    twice.method = "GET";
    twice.path = "/own";
    twice.fn = show;
    twice.user = (void *)(uintptr_t)"";
    T_CHECK(hfsbi_face_add(s.server, &beside.face, &twice, NULL) == HFSB_ARG);
    T_CHECK(hfsbi_face_add(s.server, &apart.face, &twice, NULL) == HFSB_OK);
    T_CHECK(hfsbi_face_listen(s.server, &apart.face, "127.0.0.1", 0,
                              &apart.port, NULL) == HFSB_OK);
    ts_run(&s);
}

typedef struct face_case {
    bool        apart; /* at its port */
    const char *target, *fields;
    int         status;
    const char *body; /* NULL: any */
} face_case;

static const face_case cases[] = {
    {false, "/own", "", 200, "own()()"},
    {false, "/both", "", 200, "own()()"},
    {false, "/odd/x", "X-Key: first\r\n", 200, "beside(x)()"},
    {false, "/odd/a%20b", "x-key: first\r\n", 200, "beside(a b)()"},
    {false, "/odd/x", "", 418, "[418 Missing or invalid token]"},
    {false, "/odd/x", "X-Key: other\r\n", 200, "beside(x)()"},
    {false, "/odd/x", "X-Key: second\r\n", 418, NULL},
    {false, "/odd/x", "X-Key: firs\r\n", 418, NULL},
    {false, "/odd/x", "X-Key: \r\n", 418, NULL},
    {false, "/odd/x", "X-Key: first\r\nX-Key: first\r\n", 418, NULL},
    {false, "/odd/x", "Authorization: Bearer " TS_TOKEN "\r\n", 418, NULL},
    {false, "/odd/open", "", 200, NULL},
    {false, "/odd/late", "", 409, "[409 late]"},
    {false, "/odd/rest/1", "", 200, "rest(1)()"},
    {false, "/odd/rest/1/", "", 200, "rest(1)()"},
    {false, "/odd/rest/1/a/b%2Fc/", "", 200, "rest(1)(a/b/c/)"},
    {false, "/odd/rest", "X-Key: first\r\n", 200, "beside(rest)()"},
    {false, "/odd", "", 404, "{\"detail\":\"Not Found\",\"error\":\"Not Found\"}"},
    {true, "/both", "X-Key: second\r\n", 200, "apart()()"},
    {true, "/both", "X-Key: first\r\n", 418, NULL},
    {true, "/both", "", 418, NULL},
    {true, "/odd/x", "X-Key: first\r\n", 404, "[404 Not Found]"},
    {true, "/none", "", 404, "[404 Not Found]"},
    {true, "/own", "X-Key: second\r\n", 200, "()()"}};

static void check(const face_case *c, const char *host) {
    ts_server at = s;
    ts_conn   conn;
    ts_reply  r = HFSB_INIT;
    hfsb_buf  head = HFSB_INIT;
    if (c->apart) at.port = apart.port;
    conn = ts_connect(&at);
    T_CHECK(hfsb_buf_printf(&head, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n",
                            c->target, host, c->fields) == HFSB_OK);
    T_CHECK(ts_send(&conn, hfsb_buf_str(&head)));
    T_CHECK(ts_read(&conn, &r, false) && r.status == c->status);
    T_CHECK(!c->body ||
            hfsb_str_equal(hfsb_buf_str(&r.body), hfsb_cstr(c->body)));
    ts_hang_up(&conn);
    hfsb_buf_free(&head);
    ts_drop(&r);
}

static void each_face_has_its_routes_tokens_and_errors(void) {
    size_t i;
    for (i = 0; i < TT_COUNT(cases); i++) check(&cases[i], "localhost");
}

static void a_face_may_have_any_host(void) {
    static const face_case there = {true, "/both", "X-Key: second\r\n", 200,
                                    "apart()()"};
    static const face_case here = {false, "/odd/x", "X-Key: first\r\n", 421,
                                   NULL};
    check(&there, "job--49983.example");
    check(&here, "job--49983.example");
}

/* Also those of a request that has no route, because it is none. */
static void invalid_requests_are_refused_by_the_face(void) {
    ts_server at = s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    at.port = apart.port;
    c = ts_connect(&at);
    T_CHECK(ts_send(&c, HFSB_LIT("GET / HTTP/1.1\r\nBad Field: x\r\n\r\n")));
    T_CHECK(ts_read(&c, &r, false) && r.status == 400);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.body), HFSB_LIT("[400 ")));
    ts_hang_up(&c);
    ts_drop(&r);
}

int main(void) {
    tt_begin();
    start();
    TT_RUN(each_face_has_its_routes_tokens_and_errors);
    TT_RUN(a_face_may_have_any_host);
    TT_RUN(invalid_requests_are_refused_by_the_face);
    ts_end(&s, false);
    return TT_END();
}
