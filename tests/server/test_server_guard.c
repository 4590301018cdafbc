/* test_server_guard.c - who may call a server: Host, Origin, token, and where
   a server without a token may listen. */
#include "../support/t_conn.h"

/* ---- Host and Origin ---- */

typedef struct place {
    const char *name;
    const char *host;       /* listened on; NULL: a Unix socket */
    const char *const *allow;
    bool        no_auth, open_to_all;
} place;

/* Connects to the server by TCP or by the Unix socket path. */
static ts_conn reach(const ts_server *s, const char *path) {
    struct sockaddr_un a;
    ts_conn            c = HFSB_INIT;
    if (!path) return ts_connect(s);
    memset(&a, 0, sizeof a);
    a.sun_family = AF_UNIX;
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    c.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    T_CHECK(!connect(c.fd, (struct sockaddr *)&a, sizeof a));
    return c;
}

static int status_of(const ts_server *s, const char *path, const char *fields,
                     const char *target) {
    hfsb_buf raw = HFSB_INIT;
    ts_conn  c = reach(s, path);
    ts_reply r = HFSB_INIT;
    int      status;
    T_CHECK(hfsb_buf_printf(&raw, "GET %s HTTP/1.1\r\n%s\r\n", target,
                            fields) == HFSB_OK);
    T_CHECK(ts_send(&c, hfsb_buf_str(&raw)) && ts_read(&c, &r, false));
    T_CHECK(hfsb_str_find(hfsb_buf_str(&r.head), HFSB_LIT("Access-Control")) ==
            HFSB_NPOS);
    status = r.status;
    ts_hang_up(&c);
    ts_drop(&r);
    hfsb_buf_free(&raw);
    return status;
}

static void open_at(ts_server *s, const place *p) {
    hfsb_server_opts o = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    memset(s, 0, sizeof *s);
    if (!p->no_auth) o.token = HFSB_LIT(TS_TOKEN);
    o.no_auth = p->no_auth;
    o.open_to_all = p->open_to_all;
    o.allow_hosts = p->allow;
    o.alloc = tt_alloc();
    T_CHECK(hfsb_server_open(&o, &s->server, &err) == HFSB_OK);
    if (p->host)
        T_CHECK(hfsb_server_listen(s->server, p->host, 0, &s->port, &err) ==
                HFSB_OK);
    else T_CHECK(hfsb_server_listen_unix(s->server, "guard", &err) == HFSB_OK);
    T_CHECK(tc_try_routes(s->server));
    ts_run(s);
}

static const char *const mine[] = {"box.example", "Other.Example", NULL};
static const char *const any[] = {"*", NULL};
static const place       places[] = {
    {"loopback", "127.0.0.1", NULL, false, false},
    {"by name", "localhost", NULL, false, false},
    {"loopback, open", "127.0.0.1", NULL, true, false},
    {"loopback, names", "127.0.0.1", mine, false, false},
    {"loopback, any", "127.0.0.1", any, false, false},
    {"all", "0.0.0.0", NULL, false, false},
    {"all, names", "0.0.0.0", mine, false, false},
    {"all, public", "0.0.0.0", NULL, true, true},
    {"unix", NULL, NULL, false, false},
};

/* For each place: '1' if the Host is accepted there, '0' if not. */
static void host_must_name_the_listener(void) {
    static const struct {
        const char *host, *taken;
    } list[] = {
        {"localhost", "111111111"},
        {"LocalHost:7860", "111111111"},
        {"127.0.0.1", "111111111"},
        {"127.0.0.1:1", "111111111"},
        {"127.8.9.10", "111111111"},
        {"[::1]", "111111111"},
        {"[::1]:80", "111111111"},
        {"0.0.0.0", "000011111"},
        {"evil.example", "000011001"},
        {"evil.example:8080", "000011001"},
        {"127.0.0.1.evil.example", "000011001"},
        {"127.0.0.1.", "000011001"},
        {"localhost.evil.example", "000011001"},
        {"localhost6", "000011001"},
        {"localhos", "000011001"},
        {"127.0.0.256", "000011001"},
        {"128.0.0.1", "000011001"},
        {"127.1", "000011001"},
        {"2130706433", "000011001"},
        {"[::2]", "000011001"},
        {"box.example", "000111101"},
        {"BOX.example:443", "000111101"},
        {"other.example", "000111101"},
        {"box.example.evil", "000011001"},
        {"xbox.example", "000011001"},
        {"*", "000011001"},
        {"", "000011001"},
    };
    size_t p, i;
    for (p = 0; p < TT_COUNT(places); p++) {
        const char *path = places[p].host ? NULL : "guard";
        ts_server   s;
        open_at(&s, &places[p]);
        for (i = 0; i < TT_COUNT(list); i++) {
            bool want = list[i].taken[p] == '1';
            char field[128];
            int  is;
            snprintf(field, sizeof field, "Host: %s\r\n", list[i].host);
            is = status_of(&s, path, field, "/hello");
            t_checks++;
            if (is == (want ? 200 : 421)) continue;
            t_failed++;
            printf("%s: Host %s: %d\n", places[p].name, list[i].host, is);
        }
        ts_end(&s, false);
    }
}

static void origin_must_name_the_listener(void) {
    static const struct {
        const char *origin, *taken;
    } list[] = {
        {"http://localhost", "111111111"},
        {"https://localhost:3000", "110111101"},
        {"http://127.0.0.1:7860", "110111101"},
        {"http://[::1]:7860", "110111101"},
        {"http://box.example", "000111100"},
        {"http://evil.example", "000011000"},
        {"http://localhost.evil.example", "000011000"},
        {"http://localhost:1@evil.example", "000011000"},
        {"http://localhost@evil.example", "000011000"},
        {"http://[::1]evil.example", "000011000"},
        {"http://[::1", "000011000"},
        {"http://evil.example/localhost", "000011000"},
        {"http://evil.example#localhost", "000011000"},
        {"http://localhost/", "000011000"},
        {"null", "000000000"},
        {"", "000000000"},
        {"localhost", "000000000"},
        {"http:localhost", "000000000"},
        {"http://localhost\r\nOrigin: http://localhost", "000000000"},
        {"http://localhost\r\nOrigin: http://evil.example", "000000000"},
    };
    size_t p, i;
    for (p = 0; p < TT_COUNT(places); p++) {
        const char *path = places[p].host ? NULL : "guard";
        ts_server   s;
        open_at(&s, &places[p]);
        for (i = 0; i < TT_COUNT(list); i++) {
            bool want = list[i].taken[p] == '1';
            char field[160];
            int  is;
            snprintf(field, sizeof field, "Host: localhost\r\nOrigin: %s\r\n",
                     list[i].origin);
            is = status_of(&s, path, field, "/hello");
            t_checks++;
            if (is == (want ? 200 : 403)) continue;
            t_failed++;
            printf("%s: Origin %s: %d\n", places[p].name, list[i].origin, is);
        }
        /* the Host of an absolute target counts, not the field */
        if (p == 0) {
            T_CHECK(status_of(&s, path, "Host: localhost\r\n",
                              "http://evil.example/hello") == 421);
            T_CHECK(status_of(&s, path, "Host: evil.example\r\n",
                              "http://localhost/hello") == 200);
            T_CHECK(status_of(&s, path, "Host: localhost\r\n",
                              "http://localhost@evil.example/hello") == 421);
        }
        ts_end(&s, false);
    }
}

/* Another port of this machine is somebody else's page, which could run
   commands where no token is needed. */
static void without_a_token_the_origin_is_the_host(void) {
    static const struct {
        const char *host, *origin;
        bool        plain, named, any; /* accepted, by the names allowed */
    } list[] = {
        {"localhost:7860", "http://localhost:7860", true, true, true},
        {"LocalHost:7860", "http://localhost:7860", true, true, true},
        {"localhost", "http://localhost", true, true, true},
        {"[::1]:7860", "http://[::1]:7860", true, true, true},
        {"localhost:7860", "http://localhost:3000", false, false, false},
        {"localhost:7860", "http://localhost", false, false, false},
        {"localhost:7860", "http://127.0.0.1:7860", false, false, false},
        {"localhost:7860", "http://localhost:78600", false, false, false},
        {"localhost:7860", "null", false, false, false},
        {"localhost:7860", "https://box.example", false, true, false},
        {"localhost:7860", "https://box.example:1", false, true, false},
        {"localhost:7860", "https://evil.example", false, false, false},
        {"localhost:7860", "http://*", false, false, false},
    };
    place  p = places[2];
    size_t i, names;
    for (names = 0; names < 3; names++) {
        ts_server s;
        p.allow = names == 0 ? NULL : names == 1 ? mine : any;
        open_at(&s, &p);
        for (i = 0; i < TT_COUNT(list); i++) {
            bool want = names == 0   ? list[i].plain
                        : names == 1 ? list[i].named
                                     : list[i].any;
            char field[160];
            int  is;
            snprintf(field, sizeof field, "Host: %s\r\nOrigin: %s\r\n",
                     list[i].host, list[i].origin);
            is = status_of(&s, NULL, field, "/secret");
            if (is != (want ? 200 : 403)) printf("%s%d\n", field, is);
            T_CHECK(is == (want ? 200 : 403));
        }
        ts_end(&s, false);
    }
}

/* DNS rebinding: a name of the page's own leads here, so Host and Origin are
   the same; a GET has no Origin. What "*" allows is Host alone. */
static void without_a_token_a_rebound_name_gets_nothing(void) {
    static const struct {
        place at;
        int   get, post, named, own; /* status of each request below */
    } list[] = {
        {{"loopback", "127.0.0.1", NULL, true, false}, 421, 421, 421, 200},
        {{"unix", NULL, NULL, true, false}, 421, 421, 421, 200},
        {{"unix, names", NULL, mine, true, false}, 421, 421, 200, 200},
        {{"any", "127.0.0.1", any, true, false}, 200, 403, 403, 200},
        {{"all", "0.0.0.0", any, true, true}, 200, 403, 403, 200},
    };
    static const char *const fields[] = {
        "Host: evil.example:7860\r\n",
        "Host: evil.example:7860\r\nOrigin: http://evil.example:7860\r\n",
        "Host: box.example\r\nOrigin: http://box.example\r\n",
        "Host: localhost:7860\r\nOrigin: http://localhost:7860\r\n"};
    size_t i, k;
    for (i = 0; i < TT_COUNT(list); i++) {
        const char *path = list[i].at.host ? NULL : "guard";
        int         want[4];
        ts_server   s;
        want[0] = list[i].get;
        want[1] = list[i].post;
        want[2] = list[i].named;
        want[3] = list[i].own;
        open_at(&s, &list[i].at);
        for (k = 0; k < 4; k++) {
            int is = status_of(&s, path, fields[k], "/secret");
            if (is != want[k])
                printf("%s: %s%d\n", list[i].at.name, fields[k], is);
            T_CHECK(is == want[k]);
        }
        ts_end(&s, false);
    }
}

/* A page of another site that asks for an image or a script sends no
   Origin. */
static void pages_of_other_sites_are_refused(void) {
    static const struct {
        const char *site, *taken;
    } list[] = {
        {"none", "111111111"},       {"same-origin", "111111111"},
        {"same-site", "111111111"},  {"cross-site", "000011000"},
        {"Cross-Site", "000011000"}, {"", "111111111"},
    };
    size_t p, i;
    for (p = 0; p < TT_COUNT(places); p++) {
        const char *path = places[p].host ? NULL : "guard";
        ts_server   s;
        open_at(&s, &places[p]);
        for (i = 0; i < TT_COUNT(list); i++) {
            int  want = list[i].taken[p] == '0' ? 403
                        : places[p].no_auth     ? 200
                                                : 401;
            char field[128];
            snprintf(field, sizeof field,
                     "Host: localhost\r\nSec-Fetch-Site: %s\r\n",
                     list[i].site);
            T_CHECK(status_of(&s, path, field, "/hello") == 200);
            T_CHECK(status_of(&s, path, field, "/secret") == want);
        }
        ts_end(&s, false);
    }
}

static void every_reply_keeps_other_sites_out(void) {
    static const char *const targets[] = {"/hello", "/none", "/secret"};
    ts_server s;
    ts_reply  r = HFSB_INIT;
    size_t    i;
    tc_start(&s, NULL);
    for (i = 0; i < TT_COUNT(targets); i++) {
        ts_get(&s, &r, targets[i]);
        T_STR(ts_field(&r, "X-Content-Type-Options"), "nosniff");
        T_STR(ts_field(&r, "Cross-Origin-Resource-Policy"), "same-origin");
    }
    ts_drop(&r);
    ts_end(&s, false);
}

/* A stranger must not learn which routes exist. */
static void host_and_origin_are_checked_before_route_and_token(void) {
    ts_server s;
    tc_start(&s, NULL);
    T_CHECK(status_of(&s, NULL, "Host: evil\r\n", "/none") == 421);
    T_CHECK(status_of(&s, NULL, "Host: evil\r\n", "/secret") == 421);
    T_CHECK(status_of(&s, NULL, "Host: localhost\r\nOrigin: http://evil\r\n",
                      "/secret") == 403);
    ts_end(&s, false);
}

/* ---- the token ---- */

static void only_the_whole_token_is_accepted(void) {
    static const struct {
        const char *fields;
        int         status;
        const char *detail;
    } list[] = {
#define A "X-Sandbox-Authorization: "
        {A "Bearer " TS_TOKEN "\r\n", 200, NULL},
        {A "bearer " TS_TOKEN "\r\n", 200, NULL},
        {A "BEARER    " TS_TOKEN "  \r\n", 200, NULL},
        {"x-sandbox-AUTHORIZATION:Bearer " TS_TOKEN "\r\n", 200, NULL},
        {"", 401, "Missing"},
        {A "\r\n", 401, "Missing"},
        {A "Bearer\r\n", 401, "Missing"},
        {A "Bearer \r\n", 401, "Missing"},
        {A TS_TOKEN "\r\n", 401, "Missing"},
        {A "Basic " TS_TOKEN "\r\n", 401, "Missing"},
        {A "Bearer" TS_TOKEN "\r\n", 401, "Missing"},
        {"Authorization: Bearer " TS_TOKEN "\r\n", 200, NULL},
        {"Authorization: Bearer x\r\n", 401, "Invalid"},
        {A "Bearer x\r\nAuthorization: Bearer " TS_TOKEN "\r\n", 401,
         "Invalid"},
        {A "Bearer a-token-of-the-test\r\n", 401, "Invalid"},
        {A "Bearer -token-of-the-tests\r\n", 401, "Invalid"},
        {A "Bearer " TS_TOKEN "s\r\n", 401, "Invalid"},
        {A "Bearer x" TS_TOKEN "\r\n", 401, "Invalid"},
        {A "Bearer A-Token-Of-The-Tests\r\n", 401, "Invalid"},
        {A "Bearer " TS_TOKEN " " TS_TOKEN "\r\n", 401, "Invalid"},
        {A "Bearer \"" TS_TOKEN "\"\r\n", 401, "Invalid"},
        {A "Bearer " TS_TOKEN "\r\n" A "Bearer " TS_TOKEN "\r\n", 401,
         "Invalid"},
        {A "Bearer x\r\n" A "Bearer " TS_TOKEN "\r\n", 401, "Invalid"},
        {A "Bearer " TS_TOKEN "\r\n" A "Bearer x\r\n", 401, "Invalid"},
    };
    ts_server s;
    size_t    i;
    tc_start(&s, NULL);
    for (i = 0; i < TT_COUNT(list); i++) {
        hfsb_buf raw = HFSB_INIT;
        ts_reply r = HFSB_INIT;
        ts_conn  c;
        T_CHECK(hfsb_buf_printf(&raw,
                                "GET /secret HTTP/1.1\r\n" TC_HEAD "%s\r\n",
                                list[i].fields) == HFSB_OK);
        c = tc_ask(&s, &r, raw.ptr);
        ts_expect((int)i, &r, list[i].status, list[i].detail);
        if (r.status == 401) {
            char want[80];
            snprintf(want, sizeof want,
                     "{\"detail\":\"%s bearer token\",\"error\":",
                     list[i].detail);
            T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.body), hfsb_cstr(want)));
            T_CHECK(hfsb_str_find(ts_text(&r, "error"),
                                  HFSB_LIT("X-Sandbox-Authorization: "
                                           "Bearer ")) != HFSB_NPOS);
        }
        T_CHECK(tc_lives(&c));
        ts_hang_up(&c);
        ts_drop(&r);
        hfsb_buf_free(&raw);
    }
    ts_end(&s, false);
}

/* Replies with the values of the two fields that may carry a token. */
static void reply_fields(void *user, hfsb_request *r) {
    const hfsb_http_head *head = hfsb_request_head(r);
    hfsb_buf              text = HFSB_INIT;
    (void)user;
    T_CHECK(hfsb_buf_printf(&text, "<") == HFSB_OK);
    T_CHECK(hfsb_buf_append(&text, hfsb_http_field_find(
                                       head, "Authorization")) == HFSB_OK);
    T_CHECK(hfsb_buf_append(&text,
                            hfsb_http_field_find(
                                head, "X-Sandbox-Authorization")) == HFSB_OK);
    T_CHECK(hfsb_buf_append_byte(&text, '>') == HFSB_OK);
    hfsb_reply(r, 200, "text/plain", hfsb_buf_str(&text));
    hfsb_buf_free(&text);
}

static void open_routes(ts_server *s, const hfsb_server_opts *o) {
    hfsb_route route = HFSB_INIT;
    ts_open(s, o);
    route.method = "GET";
    route.path = "/own";
    route.fn = reply_fields;
    T_CHECK(hfsb_server_add(s->server, &route, NULL) == HFSB_OK);
    route.path = "/other"; /* has an authorization of its own */
    route.no_token = true;
    T_CHECK(hfsb_server_add(s->server, &route, NULL) == HFSB_OK);
    ts_run(s);
}

static void authorization_may_carry_the_token(void) {
    static const struct {
        const char *fields;
        int         status;
        const char *body;
    } list[] = {
#define B "Authorization: "
        {B "Bearer " TS_TOKEN "\r\n", 200, "<>"},
        {"authorization:bEARER  " TS_TOKEN "\r\n", 200, "<>"},
        {A "Bearer " TS_TOKEN "\r\n", 200, "<>"},
        {A "Bearer " TS_TOKEN "\r\n" B "Bearer " TS_TOKEN "\r\n", 200, "<>"},
        {A "Bearer " TS_TOKEN "\r\n" B "Basic eDp5\r\n", 200, "<>"},
        {B "Bearer hub\r\n" A "Bearer " TS_TOKEN "\r\n", 200, "<>"},
        {A "Bearer " TS_TOKEN "\r\n" B "Bearer hub\r\n", 200, "<>"},
        {B "Basic eDp5\r\n", 401, "Missing"},
        {B TS_TOKEN "\r\n", 401, "Missing"},
        {"", 401, "Missing"},
        {B "Bearer x\r\n", 401, "Invalid"},
        {A "Basic eDp5\r\n" B "Bearer " TS_TOKEN "\r\n", 401, "Missing"},
        {A "Bearer x\r\n" B "Bearer " TS_TOKEN "\r\n", 401, "Invalid"},
        {B "Bearer " TS_TOKEN "\r\n" B "Bearer " TS_TOKEN "\r\n", 401,
         "Invalid"},
    };
    hfsb_server_opts open = HFSB_INIT;
    ts_server        s;
    size_t           i;
    open_routes(&s, NULL);
    for (i = 0; i < TT_COUNT(list); i++) {
        hfsb_buf raw = HFSB_INIT;
        ts_reply r = HFSB_INIT;
        ts_conn  c;
        T_CHECK(hfsb_buf_printf(&raw,
                                "GET /own HTTP/1.1\r\n" TC_HEAD "%s\r\n",
                                list[i].fields) == HFSB_OK);
        c = tc_ask(&s, &r, raw.ptr);
        ts_expect((int)i, &r, list[i].status, list[i].body);
        if (r.status == 401)
            T_STR(ts_field(&r, "WWW-Authenticate"), "Bearer");
        ts_hang_up(&c);
        ts_drop(&r);
        hfsb_buf_free(&raw);
    }
    T_CHECK(status_of(&s, NULL, TC_HEAD B "Bearer x\r\n", "/other") == 200);
    ts_end(&s, false);
    open.no_auth = true; /* then Authorization is not looked at */
    open_routes(&s, &open);
    T_CHECK(status_of(&s, NULL, TC_HEAD, "/own") == 200);
    {
        ts_reply r = HFSB_INIT;
        ts_conn  c = tc_ask(&s, &r, "GET /own HTTP/1.1\r\n" TC_HEAD B
                                    "Bearer x\r\n\r\n");
        TS_IS(&r, 200, "<Bearer x>");
        ts_hang_up(&c);
        ts_drop(&r);
    }
    ts_end(&s, false);
#undef B
}

/* A route without a token may use Authorization for itself; only a value that
   holds the server's token is wiped. */
static void routes_without_token_find_authorization_as_sent(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_conn   c;
    open_routes(&s, NULL);
    c = tc_ask(&s, &r, "GET /other HTTP/1.1\r\n" TC_HEAD
                       "Authorization: Basic eDp5\r\n" A "Bearer " TS_TOKEN
                       "\r\n\r\n");
    TS_IS(&r, 200, "<Basic eDp5>");
    ts_hang_up(&c);
    c = tc_ask(&s, &r, "GET /other HTTP/1.1\r\n" TC_HEAD
                       "Authorization: Bearer of-its-own\r\n\r\n");
    TS_IS(&r, 200, "<Bearer of-its-own>");
    ts_hang_up(&c);
    c = tc_ask(&s, &r, "GET /other HTTP/1.1\r\n" TC_HEAD
                       "Authorization: Bearer " TS_TOKEN "\r\n\r\n");
    TS_IS(&r, 200, "<>");
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

static void a_nul_in_a_token_is_refused(void) {
    static const char raw[] =
        "GET /secret HTTP/1.1\r\n" TC_HEAD A "Bearer " TS_TOKEN "\0\r\n\r\n";
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    tc_start(&s, NULL);
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, hfsb_str_make(raw, sizeof raw - 1)));
    T_CHECK(ts_read(&c, &r, false));
    T_CHECK(r.status == 400 && !ts_contains(&r, TS_TOKEN));
    T_CHECK(ts_closes(&c, 9000));
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

static void server_without_a_token_answers_503(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_server        s = HFSB_INIT;
    ts_reply         r = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    o.alloc = tt_alloc();
    T_CHECK(hfsb_server_open(&o, &s.server, &err) == HFSB_OK);
    T_CHECK(hfsb_server_listen(s.server, NULL, 0, &s.port, &err) == HFSB_OK);
    T_CHECK(tc_try_routes(s.server));
    ts_run(&s);
    ts_get(&s, &r, "/secret");
    TS_REFUSED(&r, 503, "{\"detail\":\"Sandbox API token not configured\"");
    ts_get(&s, &r, "/hello");
    TS_IS(&r, 200, "hello");
    ts_drop(&r);
    ts_end(&s, false);
    o.no_auth = true;
    ts_open(&s, &o);
    T_CHECK(tc_try_routes(s.server));
    ts_run(&s);
    T_CHECK(status_of(&s, NULL, TC_HEAD, "/secret") == 200);
    T_CHECK(status_of(&s, NULL, "Host: evil\r\n", "/secret") == 421);
    ts_end(&s, false);
}

static void open_refuses_tokens_no_header_can_carry(void) {
    static const char *const list[] = {" ", "a b", "a\r\nb", "a\tb", "\x7f",
                                       "t\xc3\xb6ken"};
    size_t i;
    for (i = 0; i < TT_COUNT(list); i++) {
        hfsb_server_opts o = HFSB_INIT;
        hfsb_server     *server = NULL;
        hfsb_err         err = HFSB_INIT;
        o.token = hfsb_cstr(list[i]);
        o.alloc = tt_alloc();
        T_CHECK(hfsb_server_open(&o, &server, &err) == HFSB_ARG);
        T_CHECK(!server && strstr(err.msg, "token"));
        T_CHECK(!strstr(err.msg, list[i]) || !i);
    }
}

static void no_auth_listens_on_loopback_only(void) {
    hfsb_server_opts o = HFSB_INIT;
    hfsb_server     *server = NULL;
    hfsb_err         err = HFSB_INIT;
    o.no_auth = true;
    o.alloc = tt_alloc();
    T_CHECK(hfsb_server_open(&o, &server, &err) == HFSB_OK);
    T_CHECK(hfsb_server_listen(server, "0.0.0.0", 0, NULL, &err) ==
            HFSB_REFUSED);
    T_CHECK(strstr(err.msg, "loopback") && strstr(err.msg, "token"));
    T_CHECK(hfsb_server_run(server, &err) == HFSB_ARG);
    T_CHECK(strstr(err.msg, "hfsb_server_listen"));
    T_CHECK(hfsb_server_listen(server, "127.0.0.2", 0, NULL, &err) == HFSB_OK);
    hfsb_server_close(server);
    o.open_to_all = true;
    T_CHECK(hfsb_server_open(&o, &server, &err) == HFSB_OK);
    T_CHECK(hfsb_server_listen(server, "0.0.0.0", 0, NULL, &err) == HFSB_OK);
    hfsb_server_close(server);
}

/* Searches the server's memory for the token: after a whole head, half a head,
   an invalid one, and many small pieces. */
static void find_token(void *user, const void *ptr, size_t len) {
    size_t i, n = sizeof TS_TOKEN - 1;
    for (i = 0; ptr && i + n <= len; i++)
        if (!memcmp((const char *)ptr + i, TS_TOKEN, n)) *(size_t *)user += 1;
}

/* True if the token is nowhere in the memory of the server's connection. */
static bool token_is_hidden(const ts_server *s) {
    const hfsbi_conn *conn = s->server->conns;
    size_t            found = 0;
    find_token(&found, s->server->block, HFSBI_BLOCK);
    if (conn) find_token(&found, conn->in.ptr, conn->in.cap);
    if (conn && conn->request)
        find_token(&found, conn->request, conn->request->size);
    return found == 0;
}

static void take_turns(const ts_server *s) {
    size_t turn;
    for (turn = 0; turn < 4; turn++)
        (void)hfsb_server_poll(s->server, turn < 2 ? 50 : 0);
}

static const char *const with_token[] = {
    "GET /secret HTTP/1.1\r\n" TC_HEAD A "Bearer " TS_TOKEN "\r\n\r\n",
    "GET /hold HTTP/1.1\r\n" TC_HEAD "Authorization: Bearer " TS_TOKEN
    "\r\n\r\n",
    "GET /secret HTTP/1.1\r\n" TC_HEAD A "Bearer " TS_TOKEN "\r\n"
    "X: \x01\r\n\r\n",
    "GET /none HTTP/1.1\r\n" TC_HEAD A "Bearer " TS_TOKEN "\r\n\r\n",
    "POST /hello HTTP/1.1\r\n" TC_HEAD A "Bearer " TS_TOKEN "\r\n"
    "Content-Length: 100\r\n\r\nhalf",
    "GET /hold HTTP/1.1\r\n" TC_HEAD "\r\n"
    "GET /secret HTTP/1.1\r\n" TC_HEAD A "Bearer " TS_TOKEN "\r\n\r\n",
};

/* Also while half of the head has come. */
static void tokens_are_wiped_from_memory(void) {
    size_t i, cut;
    for (i = 0; i < TT_COUNT(with_token); i++)
        for (cut = 1; cut < strlen(with_token[i]); cut += 7) {
            ts_server s;
            ts_conn   c;
            ts_open(&s, NULL);
            T_CHECK(tc_try_routes(s.server));
            c = ts_connect(&s);
            T_CHECK(ts_send(&c, hfsb_str_make(with_token[i], cut)));
            take_turns(&s);
            T_CHECK(token_is_hidden(&s));
            T_CHECK(ts_send(&c, hfsb_str_slice(hfsb_cstr(with_token[i]), cut,
                                               HFSB_NPOS)));
            take_turns(&s);
            T_CHECK(token_is_hidden(&s));
            ts_hang_up(&c);
            ts_end(&s, true);
        }
}

/* The server must not look at it again and again. */
static void half_a_head_waits_in_the_kernel(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    ts_open(&s, NULL);
    T_CHECK(tc_try_routes(s.server));
    c = ts_connect(&s);
    T_CHECK(ts_send(&c, HFSB_LIT("GET /hello HTTP/1.1\r\nX: ")));
    take_turns(&s);
    T_CHECK(s.server->conns->state == HFSBI_CONN_HEAD);
    T_CHECK(s.server->conns->held == 24 && !s.server->conns->in.len);
    s.server->conns->moved = 0; /* set by the next read */
    take_turns(&s);
    T_CHECK(s.server->conns->moved == 0);
    T_CHECK(ts_send(&c, HFSB_LIT("y\r\n" TC_HEAD "\r\nGET /he")));
    take_turns(&s);
    T_CHECK(s.server->conns->held == 7);
    T_CHECK(ts_read(&c, &r, false) && r.status == 200);
    T_CHECK(ts_send(&c, HFSB_LIT("llo HTTP/1.1\r\n" TC_HEAD)));
    T_CHECK(!shutdown(c.fd, SHUT_WR)); /* the end is noticed as well */
    take_turns(&s);
    T_CHECK(ts_read(&c, &r, false) && r.status == 400);
    ts_drop(&r);
    ts_hang_up(&c);
    ts_end(&s, true);
}

int main(void) {
    tt_begin();
    TT_RUN(host_must_name_the_listener);
    TT_RUN(origin_must_name_the_listener);
    TT_RUN(without_a_token_the_origin_is_the_host);
    TT_RUN(without_a_token_a_rebound_name_gets_nothing);
    TT_RUN(pages_of_other_sites_are_refused);
    TT_RUN(every_reply_keeps_other_sites_out);
    TT_RUN(host_and_origin_are_checked_before_route_and_token);
    TT_RUN(only_the_whole_token_is_accepted);
    TT_RUN(authorization_may_carry_the_token);
    TT_RUN(routes_without_token_find_authorization_as_sent);
    TT_RUN(a_nul_in_a_token_is_refused);
    TT_RUN(server_without_a_token_answers_503);
    TT_RUN(open_refuses_tokens_no_header_can_carry);
    TT_RUN(no_auth_listens_on_loopback_only);
    TT_RUN(tokens_are_wiped_from_memory);
    TT_RUN(half_a_head_waits_in_the_kernel);
    return TT_END();
}
