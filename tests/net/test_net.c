/* test_net.c - the built-in transport against peers that speak bytes: framing,
   kept connections, refusals, proxies, threads. Bodies: test_net_body.c. */
#include "../support/t_net.h"

/* ---- framing ---- */

static void net_reads_every_framing(void) {
    static const struct {
        const char *method, *reply;
        int         then, status;
        const char *body;
        bool        kept;
    } cases[] = {
        {"GET", TN_OK, TN_KEEP, 200, "ok", true},
        {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", TN_KEEP, 200,
         "", true},
        {"GET",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"
         "1;x=y\r\n!\r\n0\r\nT: u\r\n\r\n",
         TN_KEEP, 200, "ok!", true},
        {"GET", "HTTP/1.1 200 OK\r\n\r\nuntil the end", TN_CLOSE, 200,
         "until the end", false},
        {"GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", TN_KEEP,
         200, "ok", false},
        {"GET",
         "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: "
         "2\r\n\r\nok",
         TN_KEEP, 200, "ok", true},
        {"GET",
         "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: "
         "2\r\n\r\nok",
         TN_KEEP, 200, "ok", false},
        {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n", TN_KEEP, 200,
         "", true},
        {"HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
         TN_KEEP, 200, "", true},
        {"GET", "HTTP/1.1 204 No\r\nContent-Length: 9\r\n\r\n", TN_KEEP, 204,
         "", true},
        {"GET", "HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", TN_KEEP, 304,
         "", true},
        {"GET",
         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n"
         "HTTP/1.1 201 Made\r\nContent-Length: 1\r\n\r\na",
         TN_KEEP, 201, "a", true},
        /* bytes that belong to nobody: it is not to be trusted */
        {"GET", TN_OK "more", TN_KEEP, 200, "ok", false},
        {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", TN_KEEP,
         200, "", false},
        {"GET", TN_OK TN_OK, TN_KEEP, 200, "ok", false},
        /* both framings: read, not kept */
        {"GET",
         "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: "
         "chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
         TN_KEEP, 200, "a", false},
        {"GET",
         "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: "
         "2\r\n\r\nok",
         TN_KEEP, 200, "ok", false},
        {"GET",
         "HTTP/1.1 200 OK\r\nKeep-Alive: max=9, timeout=15\r\nContent-Length: "
         "2\r\n\r\nok",
         TN_KEEP, 200, "ok", true},
    };
    size_t i;
    for (i = 0; i < TN_COUNT(cases); i++) {
        hfsb_transport net = tn_net();
        tn_step        steps[2];
        tn_peer        peer;
        tn_call       *t;
        bool           ok;
        steps[0].reply = cases[i].reply;
        steps[0].then = cases[i].then;
        steps[1].reply = TN_OK;
        steps[1].then = TN_KEEP;
        tn_play_open(&peer, steps, 2);
        peer.parallel = true;
        t = tn_new(cases[i].method, peer.url, "/x");
        ok = tn_do(&net, t) == HFSB_OK && t->sent && t->heads == 1 &&
             t->reply == cases[i].status &&
             hfsb_str_equal(hfsb_buf_str(&t->body), hfsb_cstr(cases[i].body));
        tn_drop(t);
        ok = ok && tn_once(&net, "GET", peer.url, "") == HFSB_OK;
        ok = ok && tn_get(&peer, &peer.connections) ==
                       (cases[i].kept ? (size_t)1 : (size_t)2);
        T_CHECK(ok);
        if (!ok)
            printf("  case %zu: %zu connections\n", i, peer.connections);
        hfsb_transport_close(&net);
        tn_close(&peer);
    }
}

static void net_refuses_invalid_replies(void) {
    static const tn_step cases[] = {
        {"<html>", TN_HANG},
        {"SSH-2.0-x\r\n", TN_HANG},
        {"HTTP/2 200\r\n\r\n", TN_HANG},
        {"HTTP/1.1 20\r\n\r\n", TN_HANG},
        {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", TN_HANG},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: "
         "2\r\n\r\nab",
         TN_HANG},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
         TN_HANG},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
         TN_HANG},
        {"HTTP/1.1 200 OK\r\nA\x01: b\r\n\r\n", TN_HANG},
        {"HTTP/1.1 101 Switch\r\nUpgrade: x\r\n\r\nnot http", TN_HANG},
        {"HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 101 Switch\r\n\r\n",
         TN_HANG},
    };
    hfsb_transport net = tn_net();
    tn_peer        peer;
    size_t         i;
    tn_play_open(&peer, cases, TN_COUNT(cases));
    for (i = 0; i < TN_COUNT(cases); i++) {
        tn_call *t = tn_new("GET", peer.url, "/");
        T_CHECK(tn_do(&net, t) == HFSB_REMOTE && t->sent);
        T_CHECK(strstr(t->err.msg, "127.0.0.1") != NULL);
        tn_drop(t);
    }
    T_CHECK(peer.connections == TN_COUNT(cases));
    hfsb_transport_close(&net);
    tn_close(&peer);
}

static void say_without_end(tn_conn *c) {
    if (!tn_request(c)) return;
    if (!c->number) (void)tn_say(c, HFSB_LIT("HTTP/1.1 200 OK\r\n"));
    while (tn_say(c, c->number ? HFSB_LIT("HTTP/1.1 100 Go on\r\n\r\n")
                               : HFSB_LIT("A: bcdefghijklmnopqrstuvwxyz\r\n")))
        continue;
}

static void net_limits_heads_and_interim_replies(void) {
    hfsb_transport net = tn_net();
    tn_peer        peer = HFSB_INIT;
    peer.fn = say_without_end;
    tn_open(&peer);
    T_CHECK(tn_once(&net, "GET", peer.url, "/") == HFSB_REMOTE);
    T_CHECK(tn_once(&net, "GET", peer.url, "/") == HFSB_REMOTE);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

static void long_head(tn_conn *c) {
    static char line[300000];
    while (tn_request(c)) {
        size_t n = tn_get(c->peer, (const size_t *)c->peer->user);
        memset(line, 'a', n);
        memcpy(line, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: ", 39);
        memcpy(line + n - 4, "\r\n\r\n", 4);
        (void)tn_say(c, hfsb_str_make(line, n));
    }
}

static void net_accepts_heads_up_to_max_head(void) {
    static const size_t limits[] = {0, 1000, 200000};
    size_t              i, n;
    for (i = 0; i < TN_COUNT(limits); i++) {
        hfsb_net_opts  o = HFSB_INIT;
        hfsb_transport net;
        tn_peer        peer = HFSB_INIT;
        o.no_proxy = true;
        o.max_head = limits[i];
        n = limits[i] ? limits[i] : 65536;
        T_CHECK(hfsb_net_open(&o, &net, NULL) == HFSB_OK);
        peer.fn = long_head;
        peer.user = &n;
        tn_open(&peer);
        T_CHECK(tn_once(&net, "GET", peer.url, "/") == HFSB_OK);
        pthread_mutex_lock(&peer.lock);
        n++;
        pthread_mutex_unlock(&peer.lock);
        T_CHECK(tn_once(&net, "GET", peer.url, "/") == HFSB_REMOTE);
        hfsb_transport_close(&net);
        tn_close(&peer);
    }
}

/* ---- requests ---- */

static void net_writes_the_expected_bytes(void) {
    static const struct {
        const char *method, *path, *body, *want; /* without Host */
    } cases[] = {
        {"GET", "", NULL, "GET / HTTP/1.1\r\n\r\n"},
        {"GET", "?a=b", NULL, "GET /?a=b HTTP/1.1\r\n\r\n"},
        {"GET", "/x/../y?z#f", NULL, "GET /x/../y?z HTTP/1.1\r\n\r\n"},
        {"POST", "/", NULL, "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"},
        {"PUT", "/", NULL, "PUT / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"},
        {"DELETE", "/", NULL, "DELETE / HTTP/1.1\r\n\r\n"},
        {"DELETE", "/", "", "DELETE / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"},
        {"POST", "/x", "{}",
         "POST /x HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"},
        {"GET", "/x", "b", "GET /x HTTP/1.1\r\nContent-Length: 1\r\n\r\nb"},
    };
    static const tn_step step = {TN_OK, TN_KEEP};
    hfsb_transport       net = tn_net();
    tn_peer              peer;
    size_t               i;
    tn_play_open(&peer, &step, 1);
    for (i = 0; i < TN_COUNT(cases); i++) {
        tn_call *t = tn_new(cases[i].method, peer.url, cases[i].path);
        char     want[512], host[64];
        hfsb_str line = hfsb_cstr(cases[i].want);
        size_t   at = hfsb_str_find(line, HFSB_LIT("\r\n")) + 2;
        if (cases[i].body) t->call.body = hfsb_cstr(cases[i].body);
        snprintf(host, sizeof host, "Host: 127.0.0.1:%u\r\n", peer.port);
        snprintf(want, sizeof want, "%.*s%s%s", (int)at, line.ptr, host,
                 line.ptr + at);
        hfsb_buf_truncate(&peer.log, 0);
        if (!strcmp(cases[i].method, "HEAD")) continue;
        T_CHECK(tn_do(&net, t) == HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&peer.log), hfsb_cstr(want)));
        tn_drop(t);
    }
    T_CHECK(peer.connections == 1);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

static void net_sends_the_fields_given(void) {
    static const tn_step step = {TN_OK, TN_KEEP};
    hfsb_http_field      fields[2];
    hfsb_transport       net = tn_net();
    tn_peer              peer;
    tn_call             *t;
    tn_play_open(&peer, &step, 1);
    t = tn_new("GET", peer.url, "/");
    fields[0].name = HFSB_LIT("Accept");
    fields[0].value = HFSB_LIT("*/*");
    fields[1].name = HFSB_LIT("X-Empty");
    fields[1].value = HFSB_LIT("");
    t->call.fields = fields;
    t->call.field_count = 2;
    T_CHECK(tn_do(&net, t) == HFSB_OK);
    T_CHECK(tn_logged(&peer, "\r\nAccept: */*\r\nX-Empty: \r\n\r\n"));
    T_STR(t->fields, "Content-Length: 2\n");
    tn_drop(t);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

static void net_refuses_calls_that_cannot_be_made(void) {
    static const struct {
        const char *method, *url, *name, *value;
        hfsb_status want;
        const char *why;
    } cases[] = {
        {"GET", "http://u:secret@127.0.0.1:1/", NULL, NULL, HFSB_ARG, "user"},
        {"GET", "http://@127.0.0.1:1/", NULL, NULL, HFSB_ARG, "user"},
        {"GET", "x", NULL, NULL, HFSB_ARG, "begin with"},
        {"GET", "http://127.0.0.1:1/a b", NULL, NULL, HFSB_ARG, "blank"},
        {"GET", "https://127.0.0.1:1/", NULL, NULL, HFSB_REFUSED,
         "hfsb_http_curl.h"},
        {"", "http://127.0.0.1:1/", NULL, NULL, HFSB_ARG, "method"},
        {"G T", "http://127.0.0.1:1/", NULL, NULL, HFSB_ARG, "method"},
        {"CONNECT", "http://127.0.0.1:1/", NULL, NULL, HFSB_ARG, "CONNECT"},
        {"GET", "http://127.0.0.1:1/", "A", "x\r\nB: secret", HFSB_ARG,
         "field A cannot"},
        {"GET", "http://127.0.0.1:1/", "A b", "x", HFSB_ARG, "cannot be sent"},
        {"GET", "http://127.0.0.1:1/", "host", "x", HFSB_ARG, "transport"},
        {"GET", "http://127.0.0.1:1/", "Content-Length", "5", HFSB_ARG,
         "transport"},
        {"GET", "http://127.0.0.1:1/", "connection", "close", HFSB_ARG,
         "transport"},
        {"GET", "http://127.0.0.1:1/", "Transfer-encoding", "chunked",
         HFSB_ARG, "transport"},
    };
    hfsb_transport net = tn_net();
    size_t         i;
    for (i = 0; i < TN_COUNT(cases); i++) {
        tn_call        *t = tn_new(cases[i].method, cases[i].url, "");
        hfsb_http_field field;
        bool            ok;
        field.name = hfsb_cstr(cases[i].name);
        field.value = hfsb_cstr(cases[i].value);
        t->call.fields = &field;
        t->call.field_count = cases[i].name ? 1 : 0;
        ok = tn_do(&net, t) == cases[i].want && !t->sent &&
             strstr(t->err.msg, cases[i].why) && !strstr(t->err.msg, "secret");
        T_CHECK(ok);
        if (!ok) printf("  %zu: %d %s\n", i, t->status, t->err.msg);
        tn_drop(t);
    }
    hfsb_transport_close(&net);
}

static void net_stops_when_a_callback_returns_false(void) {
    static const tn_step step = {TN_OK, TN_KEEP};
    hfsb_transport       net = tn_net();
    tn_peer              peer;
    tn_call             *t;
    tn_play_open(&peer, &step, 1);
    t = tn_new("GET", peer.url, "/");
    t->stop_at_head = true;
    T_CHECK(tn_do(&net, t) == HFSB_CANCELLED && t->sent && !t->pieces);
    t->stop_at_head = false;
    t->stop_at = 1;
    T_CHECK(tn_do(&net, t) == HFSB_CANCELLED && t->pieces == 1);
    t->call.on_head = NULL;
    t->call.on_body = NULL;
    T_CHECK(tn_do(&net, t) == HFSB_OK && !t->heads);
    T_CHECK(peer.connections == 3);
    tn_drop(t);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* ---- kept connections ---- */

static void net_limits_number_and_age_of_idle_connections(void) {
    static const tn_step step = {TN_OK, TN_KEEP};
    hfsb_net_opts        o = HFSB_INIT;
    hfsb_transport       net, brief;
    tn_peer              peers[3];
    size_t               i, before = tn_open_files();
    for (i = 0; i < 3; i++) {
        memset(&peers[i], 0, sizeof peers[i]);
        peers[i].script = &step;
        peers[i].steps = 1;
        peers[i].parallel = true;
        tn_open(&peers[i]);
    }
    o.no_proxy = true;
    o.max_kept = 2;
    o.kept_ms = 60000;
    T_CHECK(hfsb_net_open(&o, &net, NULL) == HFSB_OK);
    o.kept_ms = 100;
    T_CHECK(hfsb_net_open(&o, &brief, NULL) == HFSB_OK);
    for (i = 0; i < 3; i++)
        T_CHECK(tn_once(&net, "GET", peers[i].url, "/") == HFSB_OK);
    /* the first made room for the third */
    T_CHECK(tn_once(&net, "GET", peers[2].url, "/") == HFSB_OK);
    T_CHECK(tn_once(&net, "GET", peers[1].url, "/") == HFSB_OK);
    T_CHECK(tn_once(&net, "GET", peers[0].url, "/") == HFSB_OK);
    T_CHECK(tn_get(&peers[0], &peers[0].connections) == 2);
    T_CHECK(tn_get(&peers[1], &peers[1].connections) == 1);
    T_CHECK(tn_get(&peers[2], &peers[2].connections) == 1);
    T_CHECK(tn_once(&brief, "GET", peers[0].url, "/") == HFSB_OK);
    T_CHECK(tn_get(&peers[0], &peers[0].connections) == 3);
    usleep(200000);
    T_CHECK(tn_once(&brief, "GET", peers[0].url, "/") == HFSB_OK);
    T_CHECK(tn_get(&peers[0], &peers[0].connections) == 4);
    hfsb_transport_close(&brief);
    hfsb_transport_close(&net);
    T_CHECK(!net.perform && !net.close && !net.user);
    hfsb_transport_close(&net); /* all zero: nothing */
    for (i = 0; i < 3; i++) tn_close(&peers[i]);
    T_CHECK(tn_open_files() == before);
}

static void net_reuses_connections_by_host_and_port(void) {
    static const tn_step step = {TN_OK, TN_KEEP};
    hfsb_transport       net = tn_net();
    tn_peer              peer;
    char                 url[64];
    memset(&peer, 0, sizeof peer);
    peer.script = &step;
    peer.steps = 1;
    peer.parallel = true;
    tn_open(&peer);
    snprintf(url, sizeof url, "http://LocalHost:%u", peer.port);
    T_CHECK(tn_once(&net, "GET", url, "/") == HFSB_OK);
    snprintf(url, sizeof url, "http://localhost:%u", peer.port);
    T_CHECK(tn_once(&net, "GET", url, "/") == HFSB_OK);
    T_CHECK(tn_get(&peer, &peer.connections) == 1);
    T_CHECK(tn_once(&net, "GET", peer.url, "/") == HFSB_OK);
    T_CHECK(tn_get(&peer, &peer.connections) == 2);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* A child that was forked with kept connections must not share them. */
static void net_does_not_share_connections_with_a_child(void) {
    static const tn_step step = {TN_OK, TN_KEEP};
    hfsb_transport       net = tn_net();
    tn_peer              peer;
    pid_t                child;
    int                  status = -1;
    if (t_quick()) return; /* valgrind finds all of the parent's lost in it */
    memset(&peer, 0, sizeof peer);
    peer.script = &step;
    peer.steps = 1;
    peer.parallel = true;
    tn_open(&peer);
    T_CHECK(tn_once(&net, "GET", peer.url, "/") == HFSB_OK);
    child = fork();
    if (child == 0) {
        _exit(tn_once(&net, "GET", peer.url, "/") == HFSB_OK ? 0 : 1);
    }
    T_CHECK(waitpid(child, &status, 0) == child && status == 0);
    T_CHECK(tn_get(&peer, &peer.connections) == 2);
    T_CHECK(tn_once(&net, "GET", peer.url, "/") == HFSB_OK);
    T_CHECK(tn_get(&peer, &peer.connections) == 2);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* ---- many at once ---- */

static hfsb_transport shared;
static tn_peer       *shared_peer;

static void *call_often(void *user) {
    int i;
    (void)user;
    for (i = 0; i < 30; i++) {
        tn_call *t = tn_new("POST", shared_peer->url, "/");
        bool     ok;
        t->call.body = HFSB_LIT("{\"some\":\"body\"}");
        ok = tn_do(&shared, t) == HFSB_OK && t->reply == 200 &&
             t->body.len == 2;
        if (!ok) printf("  %s\n", t->err.msg);
        tn_drop(t);
        if (!ok) return &shared;
    }
    return NULL;
}

static void net_serves_many_threads(void) {
    static const tn_step steps[] = {
        {TN_OK, TN_KEEP},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0"
         "\r\n\r\n",
         TN_KEEP},
        {"HTTP/1.1 200 OK\r\n\r\nok", TN_CLOSE},
        {TN_OK, TN_KEEP},
    };
    pthread_t threads[12];
    tn_peer   peer;
    size_t    i;
    void     *bad;
    memset(&peer, 0, sizeof peer);
    peer.script = steps;
    peer.steps = TN_COUNT(steps);
    peer.parallel = true;
    tn_open(&peer);
    shared = tn_net();
    shared_peer = &peer;
    for (i = 0; i < TN_COUNT(threads); i++)
        T_CHECK(!pthread_create(&threads[i], NULL, call_often, NULL));
    for (i = 0; i < TN_COUNT(threads); i++) {
        T_CHECK(!pthread_join(threads[i], &bad));
        T_CHECK(!bad);
    }
    T_CHECK(tn_get(&peer, &peer.requests) == 30 * TN_COUNT(threads));
    hfsb_transport_close(&shared);
    tn_close(&peer);
}

/* ---- proxies ---- */

static void clear_environment(void) {
    static const char *const names[] = {"http_proxy", "HTTP_PROXY",
                                        "all_proxy",  "ALL_PROXY",
                                        "no_proxy",   "NO_PROXY"};
    size_t                   i;
    for (i = 0; i < TN_COUNT(names); i++) unsetenv(names[i]);
}

static void net_uses_the_proxy_of_the_environment(void) {
    static const struct {
        const char *name, *scheme, *user, *no_proxy, *url, *want;
        hfsb_status status;
    } cases[] = {
        {"http_proxy", "http://", "", NULL, "http://far.test/x?y",
         "GET http://far.test/x?y HTTP/1.1\r\nHost: far.test\r\n\r\n",
         HFSB_OK},
        {"http_proxy", "", "", NULL, "http://far.test:81",
         "GET http://far.test:81/ HTTP/1.1\r\nHost: far.test:81\r\n\r\n",
         HFSB_OK},
        {"http_proxy", "http://", "me:p%40ss@", "a.test", "http://far.test?q",
         "GET http://far.test/?q HTTP/1.1\r\nHost: far.test\r\n"
         "Proxy-Authorization: Basic bWU6cEBzcw==\r\n\r\n",
         HFSB_OK},
        {"all_proxy", "http://", "me@", NULL, "http://far.test/",
         "Proxy-Authorization: Basic bWU6\r\n\r\n", HFSB_OK},
        {"ALL_PROXY", "http://", "", NULL, "http://far.test/",
         "GET http://far.test/ HTTP/1.1\r\n", HFSB_OK},
        /* in a CGI program anyone can set this one */
        {"HTTP_PROXY", "http://", "", NULL, "http://far.invalid/", NULL,
         HFSB_CONNECT},
        {"http_proxy", "http://", "", "far.invalid", "http://far.invalid/",
         NULL, HFSB_CONNECT},
        {"http_proxy", "socks5://", "me:secret@", NULL, "http://far.test/",
         NULL, HFSB_REFUSED},
        {"http_proxy", "https://", "me:secret@", NULL, "http://far.test/",
         NULL, HFSB_REFUSED},
        {"http_proxy", "http://", "me:secret%zz@", NULL, "http://far.test/",
         NULL, HFSB_REFUSED},
    };
    static const tn_step step = {TN_OK, TN_KEEP};
    size_t               i;
    for (i = 0; i < TN_COUNT(cases); i++) {
        hfsb_transport net;
        tn_peer        peer;
        tn_call       *t;
        char           value[128];
        bool           ok;
        tn_play_open(&peer, &step, 1);
        clear_environment();
        snprintf(value, sizeof value, "%s%s127.0.0.1:%u", cases[i].scheme,
                 cases[i].user, peer.port);
        setenv(cases[i].name, value, 1);
        if (cases[i].no_proxy)
            setenv(i % 2 ? "no_proxy" : "NO_PROXY", cases[i].no_proxy, 1);
        T_CHECK(hfsb_net_open(NULL, &net, NULL) == HFSB_OK);
        clear_environment(); /* it was read then */
        t = tn_new("GET", cases[i].url, "");
        ok = tn_do(&net, t) == cases[i].status &&
             t->sent == (cases[i].status == HFSB_OK);
        if (cases[i].want) ok = ok && tn_logged(&peer, cases[i].want);
        else ok = ok && !peer.connections;
        ok = ok && !strstr(t->err.msg, "secret");
        T_CHECK(ok);
        if (!ok)
            printf("  case %zu: %d %s\n%s\n", i, t->status, t->err.msg,
                   peer.log.ptr ? peer.log.ptr : "");
        tn_drop(t);
        hfsb_transport_close(&net);
        tn_close(&peer);
    }
}

static void net_reads_no_proxy(void) {
    static const struct {
        const char *list, *host;
        unsigned    port;
        bool        excepted;
    } cases[] = {
        {"", "a.test", 80, false},
        {"*", "a.test", 80, true},
        {"a.test", "a.test", 80, true},
        {"a.test", "A.Test", 80, true},
        {"a.test", "b.a.test", 80, true},
        {"a.test", "ba.test", 80, false},
        {"a.test", "test", 80, false},
        {".a.test", "b.a.test", 80, true},
        {".a.test", "a.test", 80, true},
        {"*.a.test", "b.a.test", 80, true},
        {"a.test.", "a.test", 80, true},
        {"a.test", "a.test.", 80, true},
        {"x, y,a.test", "a.test", 80, true},
        {"x  a.test\ty", "a.test", 80, true},
        {",,", "a.test", 80, false},
        {"a.test:80", "a.test", 80, true},
        {"a.test:81", "a.test", 80, false},
        {"a.test:8", "a.test", 80, false},
        {"127.0.0.1", "127.0.0.1", 80, true},
        {"127.0.0.1:80", "127.0.0.1", 80, true},
        {"0.0.1", "127.0.0.1", 80, true},
        {"::1", "::1", 80, true},
        {"[::1]", "::1", 80, true},
        {"[::1]:80", "::1", 80, true},
        {"[::1]:81", "::1", 80, false},
        {":80", "a.test", 80, false},
        {".", "a.test", 80, false},
        {"99999999999999:1", "a.test", 80, false},
    };
    size_t i;
    for (i = 0; i < TN_COUNT(cases); i++) {
        hfsb_str list = t_exact(cases[i].list, strlen(cases[i].list));
        hfsb_str host = t_exact(cases[i].host, strlen(cases[i].host));
        bool     ok = hfsbi_proxy_excepts(list, host, cases[i].port) ==
                  cases[i].excepted;
        T_CHECK(ok);
        if (!ok) printf("  %s: %s\n", cases[i].list, cases[i].host);
        t_drop(list);
        t_drop(host);
    }
}

int main(void) {
    T_RUN(net_reads_every_framing);
    T_RUN(net_refuses_invalid_replies);
    T_RUN(net_limits_heads_and_interim_replies);
    T_RUN(net_accepts_heads_up_to_max_head);
    T_RUN(net_writes_the_expected_bytes);
    T_RUN(net_sends_the_fields_given);
    T_RUN(net_refuses_calls_that_cannot_be_made);
    T_RUN(net_stops_when_a_callback_returns_false);
    T_RUN(net_limits_number_and_age_of_idle_connections);
    T_RUN(net_reuses_connections_by_host_and_port);
    T_RUN(net_does_not_share_connections_with_a_child);
    T_RUN(net_serves_many_threads);
    T_RUN(net_uses_the_proxy_of_the_environment);
    T_RUN(net_reads_no_proxy);
    return T_END();
}
