/* test_fetch.c - calls with redirects and kept replies, against peers that
   speak bytes and transports that follow a script. */
#include "../support/t_net.h"

static hfsb_http_call call_of(const char *method, const char *url) {
    hfsb_http_call call = HFSB_INIT;
    call.method = hfsb_cstr(method);
    call.url = hfsb_cstr(url);
    call.total_ms = 20000;
    return call;
}

/* ---- a transport that plays a list of replies ---- */

typedef struct fake_reply {
    int         status;
    const char *location; /* NULL: none */
    const char *body;
} fake_reply;

typedef struct fake {
    const fake_reply *replies;
    size_t            count, at;
    hfsb_buf          log; /* "METHOD url name,name body=..." and LF each */
    bool              ask; /* reads a body given in pieces */
    hfsb_status       end; /* what the last gives */
    bool              unsent; /* ... and nothing of it went out */
    long long         total_ms;
} fake;

static hfsb_status fake_perform(void *user, const hfsb_http_call *call,
                                bool *sent, hfsb_err *err) {
    fake             *f = (fake *)user;
    const fake_reply *r = &f->replies[f->at < f->count ? f->at : f->count - 1];
    hfsb_http_field   fields[2];
    size_t            i;
    f->at++;
    *sent = true;
    f->total_ms = call->total_ms;
    T_CHECK(hfsb_buf_printf(&f->log, "%.*s %.*s", (int)call->method.len,
                            call->method.ptr, (int)call->url.len,
                            call->url.ptr) == HFSB_OK);
    for (i = 0; i < call->field_count; i++)
        T_CHECK(hfsb_buf_printf(&f->log, " %.*s",
                                (int)call->fields[i].name.len,
                                call->fields[i].name.ptr) == HFSB_OK);
    if (call->body.ptr)
        T_CHECK(hfsb_buf_printf(&f->log, " body=%.*s", (int)call->body.len,
                                call->body.ptr) == HFSB_OK);
    if (call->body_read) {
        char   room[100];
        size_t got = 0;
        if (f->ask)
            T_CHECK(call->body_read(call->user, room, sizeof room, &got,
                                    err) == HFSB_OK);
        T_CHECK(hfsb_buf_printf(&f->log, " read=%.*s", (int)got, room) ==
                HFSB_OK);
    }
    T_CHECK(hfsb_buf_append_byte(&f->log, '\n') == HFSB_OK);
    if (f->end != HFSB_OK && f->at == f->count) *sent = !f->unsent;
    if (f->end != HFSB_OK && f->at == f->count)
        return hfsbi_fail(err, f->end, 0, "the fake fails");
    fields[0].name = HFSB_LIT("X-Which");
    fields[0].value = hfsb_cstr(r->body);
    fields[1].name = HFSB_LIT("lOCATION");
    fields[1].value = hfsb_cstr(r->location);
    if (!call->on_head(call->user, r->status, fields, r->location ? 2 : 1))
        return hfsbi_fail(err, HFSB_CANCELLED, 0, "cancelled by the callback");
    if (r->body[0] && !call->on_body(call->user, hfsb_cstr(r->body)))
        return hfsbi_fail(err, HFSB_CANCELLED, 0, "cancelled by the callback");
    return hfsbi_ok(err);
}

static hfsb_transport fake_open(fake *f, const fake_reply *replies,
                                size_t count) {
    hfsb_transport t = HFSB_INIT;
    memset(f, 0, sizeof *f);
    f->replies = replies;
    f->count = count;
    t.perform = fake_perform;
    t.user = f;
    return t;
}

/* ---- whereto, and with what ---- */

static hfsb_status piece(void *user, char *ptr, size_t room, size_t *got,
                         hfsb_err *err) {
    (void)user, (void)room, (void)err;
    memcpy(ptr, "pieces", 6);
    *got = 6;
    return HFSB_OK;
}

static void fetch_follows_redirects_by_status(void) {
    static const struct {
        int         status;
        const char *method, *location;
        char        body; /* ' ': none, 'b': body, 'r': read, 'a': asked */
        const char *want; /* the second request; NULL: there is none */
        hfsb_status end;
    } cases[] = {
        {301, "GET", "/y", ' ', "GET http://a.test/y Content-Type Accept",
         HFSB_OK},
        {302, "GET", "y?z#f", ' ',
         "GET http://a.test/x/y?z Content-Type Accept", HFSB_OK},
        {303, "GET", "../y", ' ', "GET http://a.test/y Accept", HFSB_OK},
        {307, "GET", "", ' ', "GET http://a.test/x/1?q Content-Type Accept",
         HFSB_OK},
        {308, "GET", "?r", ' ', "GET http://a.test/x/1?r Content-Type Accept",
         HFSB_OK},
        {301, "POST", "/y", 'b', "GET http://a.test/y Accept", HFSB_OK},
        {302, "POST", "/y", 'b', "GET http://a.test/y Accept", HFSB_OK},
        {303, "POST", "/y", 'b', "GET http://a.test/y Accept", HFSB_OK},
        {303, "POST", "/y", 'a', "GET http://a.test/y Accept", HFSB_OK},
        {303, "PUT", "/y", 'b', "GET http://a.test/y Accept", HFSB_OK},
        {303, "HEAD", "/y", ' ', "HEAD http://a.test/y Content-Type Accept",
         HFSB_OK},
        {301, "PUT", "/y", 'b',
         "PUT http://a.test/y Content-Type Accept body=b", HFSB_OK},
        {302, "DELETE", "/y", ' ',
         "DELETE http://a.test/y Content-Type Accept", HFSB_OK},
        {307, "POST", "/y", 'b',
         "POST http://a.test/y Content-Type Accept body=b", HFSB_OK},
        {308, "POST", "/y", 'b',
         "POST http://a.test/y Content-Type Accept body=b", HFSB_OK},
        {307, "POST", "/y", 'r',
         "POST http://a.test/y Content-Type Accept read=", HFSB_OK},
        {307, "POST", "/y", 'a', NULL, HFSB_REMOTE},
        {308, "PUT", "/y", 'a', NULL, HFSB_REMOTE},
        {301, "PUT", "/y", 'a', NULL, HFSB_REMOTE},
        /* no redirect at all */
        {300, "GET", "/y", ' ', NULL, HFSB_OK},
        {304, "GET", "/y", ' ', NULL, HFSB_OK},
        {305, "GET", "/y", ' ', NULL, HFSB_OK},
        {200, "GET", "/y", ' ', NULL, HFSB_OK},
        {201, "POST", "/y", 'b', NULL, HFSB_OK},
        {302, "GET", NULL, ' ', NULL, HFSB_OK},
        /* no address */
        {302, "GET", "ftp://a.test/", ' ', NULL, HFSB_REMOTE},
        {302, "GET", "http://", ' ', NULL, HFSB_REMOTE},
        {302, "GET", "/a b", ' ', NULL, HFSB_REMOTE},
        {302, "GET", "http://u:secret@a.test/", ' ', NULL, HFSB_REMOTE},
        {302, "GET", "//b.test:99999/", ' ', NULL, HFSB_REMOTE},
    };
    size_t i;
    for (i = 0; i < TN_COUNT(cases); i++) {
        fake_reply      replies[2];
        fake            f;
        hfsb_transport  t;
        hfsb_http_call  call = call_of(cases[i].method,
                                       "http://a.test/x/1?q#frag");
        hfsb_http_reply reply = HFSB_INIT;
        hfsb_http_field fields[2];
        hfsb_str        second;
        hfsb_err        err;
        bool            ok;
        replies[0].status = cases[i].status;
        replies[0].location = cases[i].location;
        replies[0].body = "first";
        replies[1].status = 200;
        replies[1].location = NULL;
        replies[1].body = "last";
        t = fake_open(&f, replies, 2);
        f.ask = cases[i].body == 'a';
        fields[0].name = HFSB_LIT("Content-Type");
        fields[0].value = HFSB_LIT("text/plain");
        fields[1].name = HFSB_LIT("Accept");
        fields[1].value = HFSB_LIT("x");
        call.fields = fields;
        call.field_count = 2;
        if (cases[i].body == 'b') call.body = HFSB_LIT("b");
        if (strchr("ra", cases[i].body)) {
            call.body_read = piece;
            call.body_length = 6;
        }
        ok = hfsb_http_send(&t, &call, &reply, &err) == cases[i].end &&
             err.code == cases[i].end && !strstr(err.msg, "secret");
        second = hfsb_buf_str(&f.log);
        second = hfsb_str_slice(second, hfsb_str_find_byte(second, '\n') + 1,
                                second.len);
        if (second.len) second.len--;
        ok = ok && hfsb_str_equal(second, hfsb_cstr(cases[i].want));
        if (cases[i].want)
            ok = ok && reply.status == 200 &&
                 hfsb_str_equal(hfsb_buf_str(&reply.body), HFSB_LIT("last")) &&
                 hfsb_str_equal(hfsb_http_reply_field(&reply, "x-which", 0),
                                HFSB_LIT("last"));
        else if (cases[i].end == HFSB_OK)
            ok = ok && reply.status == cases[i].status &&
                 hfsb_str_equal(hfsb_buf_str(&reply.body), HFSB_LIT("first"));
        T_CHECK(ok);
        if (!ok)
            printf("  case %zu: %s\n%s", i, err.msg, f.log.ptr);
        hfsb_http_reply_free(&reply);
        hfsb_buf_free(&f.log);
    }
}

static void fetch_drops_secrets_on_another_host(void) {
    static const char *const names[] = {
        "authorization", "X-Sandbox-Authorization", "PROXY-Authorization",
        "Cookie",        "Idempotency-Key",         "X-Kept"};
    static const struct {
        const char *first, *second; /* Location; back home then */
        bool        kept;
    } cases[] = {
        {"/y", "/z", true},
        {"http://A.test:80/y", "/z", true},
        {"https://a.test/y", "https://a.test/z", false},
        {"http://a.test:81/y", "http://a.test/z", false},
        {"http://b.test/y", "http://a.test/z", false},
        {"//sub.a.test/y", "http://a.test/z", false},
        {"/y", "http://b.test/", false},
    };
    hfsb_http_field fields[TN_COUNT(names)];
    size_t          i, k;
    for (k = 0; k < TN_COUNT(names); k++) {
        fields[k].name = hfsb_cstr(names[k]);
        fields[k].value = HFSB_LIT("secret");
    }
    for (i = 0; i < TN_COUNT(cases); i++) {
        fake_reply      replies[3];
        fake            f;
        hfsb_transport  t = fake_open(&f, replies, 3);
        hfsb_http_call  call = call_of("GET", "http://a.test/x");
        hfsb_http_reply reply = HFSB_INIT;
        hfsb_str        last;
        size_t          spaces;
        memset(replies, 0, sizeof replies);
        replies[0].status = replies[1].status = 307;
        replies[2].status = 200;
        replies[0].location = cases[i].first;
        replies[1].location = cases[i].second;
        replies[0].body = replies[1].body = replies[2].body = "";
        call.fields = fields;
        call.field_count = TN_COUNT(names);
        T_CHECK(hfsb_http_send(&t, &call, &reply, NULL) == HFSB_OK);
        last = hfsb_buf_str(&f.log);
        for (k = 0; k < 2; k++)
            last = hfsb_str_slice(last, hfsb_str_find_byte(last, '\n') + 1,
                                  last.len);
        spaces = hfsb_str_count_byte(last, ' ');
        T_CHECK(spaces == (cases[i].kept ? 7 : 2));
        T_CHECK(hfsb_str_find(last, HFSB_LIT(" X-Kept")) != HFSB_NPOS);
        hfsb_http_reply_free(&reply);
        hfsb_buf_free(&f.log);
    }
}

static void fetch_never_goes_from_https_to_http(void) {
    static const fake_reply replies[] = {{302, "http://a.test/", "x"},
                                         {200, NULL, "y"}};
    fake                    f;
    hfsb_transport          t = fake_open(&f, replies, 2);
    hfsb_http_call          call = call_of("GET", "https://a.test/");
    hfsb_http_reply         reply = HFSB_INIT;
    hfsb_err                err;
    T_CHECK(hfsb_http_send(&t, &call, &reply, &err) == HFSB_REFUSED);
    T_CHECK(f.at == 1 && strstr(err.msg, "https to http"));
    T_CHECK(reply.status == 302 && reply.sent);
    T_STR(reply.url, "https://a.test/");
    hfsb_http_reply_free(&reply);
    hfsb_buf_free(&f.log);
}

static void fetch_stops_after_ten_redirects(void) {
    static const fake_reply loop[] = {{302, "/again", ""}};
    fake_reply              ten[11];
    fake                    f;
    hfsb_transport          t = fake_open(&f, loop, 1);
    hfsb_http_call          call = call_of("GET", "http://a.test/");
    hfsb_http_reply         reply = HFSB_INIT;
    hfsb_err                err;
    size_t                  i;
    T_CHECK(hfsb_http_send(&t, &call, &reply, &err) == HFSB_REMOTE);
    T_CHECK(f.at == 11 && strstr(err.msg, "without end"));
    hfsb_http_reply_free(&reply);
    hfsb_buf_free(&f.log);
    for (i = 0; i < 11; i++) {
        ten[i].status = i < 10 ? 302 : 200;
        ten[i].location = "x";
        ten[i].body = "";
    }
    t = fake_open(&f, ten, 11);
    T_CHECK(hfsb_http_send(&t, &call, &reply, &err) == HFSB_OK);
    T_CHECK(f.at == 11 && reply.status == 200);
    T_CHECK(f.total_ms <= 20000 && f.total_ms > 10000);
    hfsb_http_reply_free(&reply);
    hfsb_buf_free(&f.log);
}

static void fetch_returns_the_transports_error(void) {
    static const fake_reply replies[] = {{302, "/y", ""}, {200, NULL, ""}};
    fake                    f;
    hfsb_transport          t = fake_open(&f, replies, 2);
    hfsb_http_call          call = call_of("GET", "http://a.test/");
    hfsb_http_reply         reply = HFSB_INIT;
    hfsb_err                err;
    f.end = HFSB_LOST;
    T_CHECK(hfsb_http_send(&t, &call, &reply, &err) == HFSB_LOST);
    T_CHECK(!strcmp(err.msg, "the fake fails") && reply.sent);
    T_CHECK(!reply.status);
    T_CHECK(!hfsb_http_reply_field(&reply, "X-Which", 0).ptr);
    T_STR(reply.url, "http://a.test/y");
    hfsb_http_reply_free(&reply);
    hfsb_buf_free(&f.log);
}

/* ---- where the body goes ---- */

static void fetch_passes_only_2xx_bodies_to_on_body(void) {
    static const struct {
        int         status;
        const char *passed, *kept;
    } cases[] = {{200, "body", ""},
                 {206, "body", ""},
                 {404, "", "body"},
                 {503, "", "body"},
                 {304, "", "body"}};
    size_t i;
    for (i = 0; i < TN_COUNT(cases); i++) {
        fake_reply      replies[2] = {{302, "/y", "moved"}, {0, NULL, "body"}};
        fake            f;
        hfsb_transport  t = fake_open(&f, replies, 2);
        tn_call        *c = tn_new("GET", "http://a.test", "/x");
        hfsb_http_reply reply = HFSB_INIT;
        replies[1].status = cases[i].status;
        T_CHECK(hfsb_http_send(&t, &c->call, &reply, NULL) == HFSB_OK);
        T_CHECK(c->heads == 1 && c->reply == cases[i].status);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&c->body),
                               hfsb_cstr(cases[i].passed)));
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&reply.body),
                               hfsb_cstr(cases[i].kept)));
        hfsb_http_reply_free(&reply);
        c->stop_at_head = true;
        f.at = 0;
        T_CHECK(hfsb_http_send(&t, &c->call, &reply, NULL) == HFSB_CANCELLED);
        hfsb_http_reply_free(&reply);
        tn_drop(c);
        hfsb_buf_free(&f.log);
    }
}

static void fetch_limits_the_kept_body(void) {
    static const fake_reply replies[] = {{200, NULL, "12345"}};
    fake                    f;
    hfsb_transport          t = fake_open(&f, replies, 1);
    hfsb_http_call          call = call_of("GET", "http://a.test/");
    hfsb_http_reply         reply = HFSB_INIT;
    hfsb_err                err;
    reply.body.max = 5;
    T_CHECK(hfsb_http_send(&t, &call, &reply, &err) == HFSB_OK);
    T_STR(reply.body, "12345");
    hfsb_http_reply_free(&reply);
    reply.body.max = 4;
    T_CHECK(hfsb_http_send(&t, &call, &reply, &err) == HFSB_LIMIT);
    T_CHECK(strstr(err.msg, "4 bytes") && reply.status == 200);
    hfsb_http_reply_free(&reply);
    T_CHECK(!reply.status && !reply.sent && !reply.body.ptr);
    hfsb_buf_free(&f.log);
}

static void fetch_finds_fields(void) {
    static const tn_step step = {
        "HTTP/1.1 200 OK\r\nLink: a\r\nX: \r\nlink: b\r\nFolded: c\r\n  d\r\n"
        "Content-Length: 0\r\n\r\n",
        TN_KEEP};
    hfsb_transport  net = tn_net();
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_http_call  call;
    tn_peer         peer;
    tn_play_open(&peer, &step, 1);
    call = call_of("GET", peer.url);
    T_CHECK(!hfsb_http_reply_field(&reply, "Link", 0).ptr);
    T_CHECK(hfsb_http_send(&net, &call, &reply, NULL) == HFSB_OK);
    T_STR(hfsb_http_reply_field(&reply, "LINK", 0), "a");
    T_STR(hfsb_http_reply_field(&reply, "link", 1), "b");
    T_CHECK(!hfsb_http_reply_field(&reply, "Link", 2).ptr);
    T_CHECK(hfsb_http_reply_field(&reply, "x", 0).ptr &&
            !hfsb_http_reply_field(&reply, "x", 0).len);
    T_STR(hfsb_http_reply_field(&reply, "folded", 0), "c    d");
    T_CHECK(!hfsb_http_reply_field(&reply, "", 0).ptr);
    T_CHECK(!hfsb_http_reply_field(&reply, "Lin", 0).ptr);
    hfsb_http_reply_free(&reply);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* ---- over sockets ---- */

static void fetch_reuses_the_connection_of_a_redirect(void) {
    static const tn_step steps[] = {
        {"HTTP/1.1 302 Go\r\nLocation: /y\r\nContent-Length: 4\r\n\r\nmove",
         TN_KEEP},
        {TN_OK, TN_KEEP}};
    hfsb_transport  net = tn_net();
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_http_call  call;
    tn_peer         peer;
    tn_play_open(&peer, steps, 2);
    call = call_of("POST", peer.url);
    call.body = HFSB_LIT("b");
    T_CHECK(hfsb_http_send(&net, &call, &reply, NULL) == HFSB_OK);
    T_CHECK(reply.status == 200 && reply.sent && peer.connections == 1);
    T_STR(reply.body, "ok");
    T_CHECK(tn_logged(&peer, "GET /y HTTP/1.1\r\n"));
    hfsb_http_reply_free(&reply);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* A redirect whose own body never ends is followed all the same. */
static void redirect_without_end(tn_conn *c) {
    char block[65536];
    memset(block, 'x', sizeof block);
    if (!tn_request(c)) return;
    if (c->number) {
        (void)tn_say(c, HFSB_LIT(TN_OK));
        return;
    }
    (void)tn_say(c, HFSB_LIT("HTTP/1.1 302 Go\r\nLocation: /y\r\n\r\n"));
    while (tn_say(c, hfsb_str_make(block, sizeof block))) continue;
}

static void fetch_does_not_read_long_redirect_bodies(void) {
    hfsb_transport  net = tn_net();
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_http_call  call;
    tn_peer         peer = HFSB_INIT;
    peer.fn = redirect_without_end;
    tn_open(&peer);
    call = call_of("GET", peer.url);
    T_CHECK(hfsb_http_send(&net, &call, &reply, NULL) == HFSB_OK);
    T_CHECK(reply.status == 200);
    T_STR(reply.body, "ok");
    hfsb_http_reply_free(&reply);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* total_ms is for all of it: each hop takes a part. */
static void slow_redirect(tn_conn *c) {
    while (tn_request(c)) {
        usleep(30000);
        if (!tn_say(c, HFSB_LIT("HTTP/1.1 302 Go\r\nLocation: /y\r\n"
                                "Content-Length: 0\r\n\r\n")))
            return;
    }
}

static void fetch_applies_total_ms_to_all_redirects(void) {
    hfsb_transport  net = tn_net();
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_http_call  call;
    hfsb_err        err;
    tn_peer         peer = HFSB_INIT;
    peer.fn = slow_redirect;
    tn_open(&peer);
    call = call_of("GET", peer.url);
    call.total_ms = 100;
    T_CHECK(hfsb_http_send(&net, &call, &reply, &err) == HFSB_TIMEOUT);
    call.total_ms = LLONG_MAX;
    T_CHECK(hfsb_http_send(&net, &call, &reply, &err) == HFSB_REMOTE);
    hfsb_http_reply_free(&reply);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* ---- memory ---- */

static void send_once(hfsb_alloc alloc, const t_heap *heap) {
    static const fake_reply replies[] = {{302, "https://b.test/yy", "moved"},
                                         {307, "/z", ""},
                                         {200, NULL, "the body"}};
    fake                    f;
    hfsb_transport          t = fake_open(&f, replies, 3);
    hfsb_http_call          call = call_of("POST", "http://a.test/x");
    hfsb_http_reply         reply = HFSB_INIT;
    hfsb_http_field         field;
    hfsb_err                err;
    hfsb_status             st;
    field.name = HFSB_LIT("Cookie");
    field.value = HFSB_LIT("c");
    call.fields = &field;
    call.field_count = 1;
    reply.body.alloc = alloc;
    st = hfsb_http_send(&t, &call, &reply, &err);
    T_CHECK(st == (heap->fail_at ? HFSB_NOMEM : HFSB_OK) && err.code == st);
    if (st == HFSB_OK) T_STR(reply.body, "the body");
    hfsb_http_reply_free(&reply);
    hfsb_buf_free(&f.log);
}

/* The answer to a POST is elsewhere, and there is no way to it: it was sent,
   and may be done. */
static void fetch_reports_sent_after_a_redirected_post(void) {
    static const struct {
        int         status;
        const char *method;
        hfsb_status end, want;
        bool        sent;
    } cases[] = {{303, "POST", HFSB_CONNECT, HFSB_LOST, true},
                 {302, "POST", HFSB_CONNECT, HFSB_LOST, true},
                 {303, "PUT", HFSB_CONNECT, HFSB_LOST, true},
                 {303, "POST", HFSB_TIMEOUT, HFSB_TIMEOUT, true},
                 {307, "POST", HFSB_CONNECT, HFSB_CONNECT, false},
                 {303, "GET", HFSB_CONNECT, HFSB_CONNECT, false},
                 {303, "HEAD", HFSB_CONNECT, HFSB_CONNECT, false}};
    size_t i;
    for (i = 0; i < TN_COUNT(cases); i++) {
        fake_reply      replies[2] = {{0, "/y", ""}, {200, NULL, ""}};
        hfsb_http_call  call = call_of(cases[i].method, "http://a.test/x");
        hfsb_http_reply reply = HFSB_INIT;
        hfsb_transport  t;
        hfsb_err        err;
        fake            f;
        replies[0].status = cases[i].status;
        t = fake_open(&f, replies, 2);
        f.end = cases[i].end;
        f.unsent = true;
        T_CHECK(hfsb_http_send(&t, &call, &reply, &err) == cases[i].want);
        T_CHECK(err.code == cases[i].want && reply.sent == cases[i].sent);
        hfsb_http_reply_free(&reply);
        hfsb_buf_free(&f.log);
    }
}

static void fetch_survives_allocation_failures(void) {
    t_each_allocation_fails(send_once);
}

int main(void) {
    T_RUN(fetch_follows_redirects_by_status);
    T_RUN(fetch_drops_secrets_on_another_host);
    T_RUN(fetch_never_goes_from_https_to_http);
    T_RUN(fetch_stops_after_ten_redirects);
    T_RUN(fetch_returns_the_transports_error);
    T_RUN(fetch_passes_only_2xx_bodies_to_on_body);
    T_RUN(fetch_limits_the_kept_body);
    T_RUN(fetch_finds_fields);
    T_RUN(fetch_reuses_the_connection_of_a_redirect);
    T_RUN(fetch_does_not_read_long_redirect_bodies);
    T_RUN(fetch_applies_total_ms_to_all_redirects);
    T_RUN(fetch_reports_sent_after_a_redirected_post);
    T_RUN(fetch_survives_allocation_failures);
    return T_END();
}
