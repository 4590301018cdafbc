/* test_ws_client.c - a client's WebSocket: handshakes that are wrong, frames
   cut anywhere, what is sent, proxies, deadlines. */
#include "../support/t_net.h"

enum { MAX = 100000 };

/* ---- a server that follows a plan ---- */

typedef struct plan {
    const char *status; /* first line of the reply */
    const char *fields; /* ACCEPT becomes the right value */
    hfsb_str    frames; /* after the head, */
    size_t      cut;    /* and a pause after so many bytes of all (0: none) */
    size_t      want;   /* bytes of frames to be read */
    bool        proxy;  /* a CONNECT comes before */
    hfsb_buf    got;    /* what the client has sent after its request */
} plan;

#define OK_STATUS "HTTP/1.1 101 Switching Protocols\r\n"
#define OK_FIELDS                                             \
    "Upgrade: websocket\r\nConnection: Upgrade\r\n" \
    "Sec-WebSocket-Accept: ACCEPT\r\n"

/* The value of a field of the last request. */
static hfsb_str asked(tn_peer *p, const char *name) {
    hfsb_str all = hfsb_buf_str(&p->log), value;
    size_t   at = hfsb_str_find(all, hfsb_cstr(name));
    if (at == HFSB_NPOS) return HFSB_LIT("");
    value = hfsb_str_slice(all, at + strlen(name), all.len);
    return hfsb_str_slice(value, 0, hfsb_str_find_byte(value, '\r'));
}

static void put_reply(tn_peer *p, const plan *to, hfsb_buf *out) {
    char        accept[HFSBI_WS_ACCEPT];
    const char *at = strstr(to->fields, "ACCEPT");
    hfsbi_ws_accept(asked(p, "Sec-WebSocket-Key: "), accept);
    TN_MUST(hfsb_buf_append(out, hfsb_cstr(to->status)) == HFSB_OK);
    if (at)
        TN_MUST(hfsb_buf_printf(out, "%.*s%s%s", (int)(at - to->fields),
                                to->fields, accept, at + 6) == HFSB_OK);
    else TN_MUST(hfsb_buf_append(out, hfsb_cstr(to->fields)) == HFSB_OK);
    TN_MUST(hfsb_buf_append(out, HFSB_LIT("\r\n")) == HFSB_OK);
    TN_MUST(hfsb_buf_append(out, to->frames) == HFSB_OK);
}

static void follow(tn_conn *c) {
    plan    *to = (plan *)c->peer->user;
    hfsb_buf out = HFSB_INIT;
    hfsb_str all;
    if (to->proxy &&
        (!tn_request(c) ||
         !tn_say(c, HFSB_LIT("HTTP/1.1 200 Connected\r\n\r\n"))))
        return;
    if (!tn_request(c)) return;
    put_reply(c->peer, to, &out);
    all = hfsb_buf_str(&out);
    if (to->cut && to->cut < all.len) {
        (void)tn_say(c, hfsb_str_slice(all, 0, to->cut));
        usleep(300);
        all = hfsb_str_slice(all, to->cut, all.len);
    }
    (void)tn_say(c, all);
    hfsb_buf_free(&out);
    while (c->in.len < to->want && tn_more(c)) continue;
    TN_MUST(hfsb_buf_append(&to->got, hfsb_buf_str(&c->in)) == HFSB_OK);
    if (!to->want) tn_until_closed(c);
}

/* ---- a client ---- */

static hfsb_status dial(const hfsb_transport *net, tn_peer *p,
                        const hfsb_cancel *cancel, long long ms,
                        hfsb_alloc alloc, hfsbi_ws_client **ws, int *status,
                        hfsb_err *err) {
    hfsb_http_field field;
    hfsb_http_call  call = HFSB_INIT;
    char            url[100];
    snprintf(url, sizeof url, "%s/codex", p->url);
    field.name = HFSB_LIT("X-Field");
    field.value = HFSB_LIT("v");
    call.url = hfsb_cstr(url);
    call.fields = &field;
    call.field_count = 1;
    call.connect_ms = ms;
    call.cancel = cancel;
    return hfsbi_ws_client_open(net, &call, MAX, &alloc, ws, status, err);
}

static void open_net(hfsb_transport *net) {
    hfsb_net_opts o = HFSB_INIT;
    o.no_proxy = true;
    T_CHECK(hfsb_net_open(&o, net, NULL) == HFSB_OK);
}

static void open_plan(tn_peer *p, plan *to) {
    memset(p, 0, sizeof *p);
    p->fn = follow;
    p->user = to;
    tn_open(p);
}

static void wait_for(hfsbi_ws_client *ws, short events) {
    short ready;
    T_CHECK(hfsbi_wait_fd(hfsbi_ws_client_fd(ws), events,
                          hfsb_clock_ms() + 10000, NULL, &ready) == HFSB_OK);
}

/* Reads until the end and writes down what came: text of messages, "." after
   each, "p" for a ping, "!" and the code for a close, "?" and the text for an error. */
static void listen_to(hfsbi_ws_client *ws, hfsb_buf *said) {
    hfsbi_ws_event event;
    hfsbi_ws_frame frame;
    hfsb_err       err = HFSB_INIT;
    hfsb_status    st;
    for (;;) {
        st = hfsbi_ws_client_next(ws, &event, &frame, &err);
        T_CHECK(hfsbi_ws_client_flush(ws, NULL) == HFSB_OK || st != HFSB_OK ||
                event == HFSBI_WS_EVENT_CLOSE);
        if (st != HFSB_OK) {
            hfsb_buf_printf(said, "?%s", err.msg);
            return;
        }
        if (event == HFSBI_WS_EVENT_CLOSE) {
            hfsb_buf_printf(said, "!%u", frame.code);
            return;
        }
        if (event == HFSBI_WS_EVENT_DATA) {
            hfsb_buf_append(said, frame.data);
            if (frame.last) hfsb_buf_append_byte(said, '.');
        }
        if (event == HFSBI_WS_EVENT_PING) hfsb_buf_append_byte(said, 'p');
        if (event == HFSBI_WS_EVENT_MORE) wait_for(ws, POLLIN);
    }
}

/* ---- tests ---- */

static void wrong_handshakes_are_refused(void) {
    static const struct {
        const char *status, *fields;
        hfsb_status st;
        int         http;
        const char *why;
    } cases[] = {
        {OK_STATUS, OK_FIELDS, HFSB_OK, 101, ""},
        {OK_STATUS,
         "upgrade: WebSocket\r\nconnection: keep-alive, upgrade\r\n"
         "sec-websocket-accept: ACCEPT\r\n",
         HFSB_OK, 101, ""},
        {"HTTP/1.1 103 Early Hints\r\n\r\n" OK_STATUS, OK_FIELDS, HFSB_OK,
         101, ""},
        {"HTTP/1.1 404 Not Found\r\n", "Content-Length: 0\r\n", HFSB_REMOTE,
         404, "status 404"},
        {"HTTP/1.1 200 OK\r\n", OK_FIELDS, HFSB_REMOTE, 200, "status 200"},
        {OK_STATUS, "Connection: Upgrade\r\nSec-WebSocket-Accept: ACCEPT\r\n",
         HFSB_REMOTE, 101, "another protocol"},
        {OK_STATUS,
         "Upgrade: h2c\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Accept: ACCEPT\r\n",
         HFSB_REMOTE, 101, "another protocol"},
        {OK_STATUS,
         "Upgrade: websocket\r\nSec-WebSocket-Accept: ACCEPT\r\n",
         HFSB_REMOTE, 101, "another protocol"},
        {OK_STATUS, "Upgrade: websocket\r\nConnection: Upgrade\r\n",
         HFSB_REMOTE, 101, "Sec-WebSocket-Accept"},
        {OK_STATUS,
         "Upgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
         HFSB_REMOTE, 101, "Sec-WebSocket-Accept"},
        {OK_STATUS, OK_FIELDS "Sec-WebSocket-Accept: x\r\n", HFSB_REMOTE, 101,
         "Sec-WebSocket-Accept"},
        {OK_STATUS, OK_FIELDS "Sec-WebSocket-Extensions: permessage-deflate\r\n",
         HFSB_REMOTE, 101, "not asked for"},
        {OK_STATUS, OK_FIELDS "Sec-WebSocket-Protocol: x\r\n", HFSB_REMOTE,
         101, "not asked for"},
        {"SSH-2.0-x\r\n", "", HFSB_REMOTE, 0, "Invalid reply"}};
    hfsb_transport net;
    size_t         i;
    open_net(&net);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan             to = HFSB_INIT;
        tn_peer          p;
        hfsbi_ws_client *ws = NULL;
        hfsb_alloc       alloc = HFSB_INIT;
        hfsb_err         err = HFSB_INIT;
        int              http = -1;
        to.status = cases[i].status;
        to.fields = cases[i].fields;
        open_plan(&p, &to);
        T_CHECK(dial(&net, &p, NULL, 10000, alloc, &ws, &http, &err) ==
                cases[i].st);
        T_CHECK(http == cases[i].http && err.code == cases[i].st);
        T_CHECK(strstr(err.msg, cases[i].why) != NULL);
        T_CHECK((ws != NULL) == (cases[i].st == HFSB_OK));
        hfsbi_ws_client_free(ws);
        tn_close(&p);
        hfsb_buf_free(&to.got);
    }
    hfsb_transport_close(&net);
}

static void the_request_is_a_handshake(void) {
    plan             to = HFSB_INIT;
    tn_peer          p;
    hfsb_transport   net;
    hfsbi_ws_client *ws = NULL;
    hfsb_alloc       alloc = HFSB_INIT;
    hfsb_str         key;
    size_t           size = 0;
    int              http;
    open_net(&net);
    to.status = OK_STATUS;
    to.fields = OK_FIELDS;
    open_plan(&p, &to);
    T_CHECK(dial(&net, &p, NULL, 10000, alloc, &ws, &http, NULL) == HFSB_OK);
    hfsbi_ws_client_free(ws);
    T_CHECK(tn_logged(&p, "GET /codex HTTP/1.1\r\nHost: 127.0.0.1:"));
    T_CHECK(tn_logged(&p, "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                          "Sec-WebSocket-Version: 13\r\n"));
    T_CHECK(tn_logged(&p, "X-Field: v\r\n\r\n"));
    key = asked(&p, "Sec-WebSocket-Key: ");
    T_CHECK(hfsbi_base64_check(key, &size, NULL) == HFSB_OK && size == 16);
    tn_close(&p);
    hfsb_buf_free(&to.got);
    hfsb_transport_close(&net);
}

/* Opens, listens to the end and compares; cut as in the plan. */
static void hears(const hfsb_transport *net, plan *to, const char *want) {
    tn_peer          p;
    hfsbi_ws_client *ws = NULL;
    hfsb_alloc       alloc = HFSB_INIT;
    hfsb_buf         said = HFSB_INIT;
    int              http;
    to->status = OK_STATUS;
    to->fields = OK_FIELDS;
    open_plan(&p, to);
    T_CHECK(dial(net, &p, NULL, 10000, alloc, &ws, &http, NULL) == HFSB_OK);
    if (ws) listen_to(ws, &said);
    t_str(__FILE__, __LINE__, said.ptr, said.len, want, strlen(want));
    hfsbi_ws_client_free(ws);
    tn_close(&p);
    hfsb_buf_free(&said);
}

/* Two messages, one in three pieces with a ping between, and a close. */
static const char talk[] = "\x81\x05"
                           "hello"
                           "\x01\x02"
                           "ab"
                           "\x89\x03"
                           "hey"
                           "\x00\x00"
                           "\x80\x01"
                           "c"
                           "\x8A\x00"
                           "\x88\x02\x03\xE8";

static void frames_are_read_wherever_they_are_cut(void) {
    hfsb_transport net;
    size_t         cut, n;
    open_net(&net);
    n = 129 + sizeof talk - 1; /* the head has 129 bytes */
    for (cut = 1; cut < n; cut += t_quick() ? 7 : 1) {
        plan to = HFSB_INIT;
        to.frames = hfsb_str_make(talk, sizeof talk - 1);
        to.cut = cut;
        to.want = 9; /* the pong */
        hears(&net, &to, "hello.abpc.!1000");
        T_CHECK(to.got.len == 9);
        if (to.got.len == 9) {
            T_CHECK(!memcmp(to.got.ptr, "\x8A\x83", 2));
            hfsbi_ws_mask(to.got.ptr + 6, 3,
                          (const unsigned char *)to.got.ptr + 2, 0);
            T_CHECK(!memcmp(to.got.ptr + 6, "hey", 3));
        }
        hfsb_buf_free(&to.got);
    }
    hfsb_transport_close(&net);
}

static void frames_that_break_the_rules_are_refused(void) {
    static const struct {
        const char *frames;
        size_t      n;
        const char *want;
    } cases[] = {
        {"\x81\x85\x01\x02\x03\x04hello", 11,
         "?A frame from a server is masked."},
        {"\x81\x7f\x00\x00\x00\x00\x00\x01\x86\xA1", 10,
         "?A message has more than 100000 bytes."},
        {"\x01\x01x\x80\x7f\x00\x00\x00\x00\x00\x01\x86\xA0", 13,
         "x?A message has more than 100000 bytes."},
        {"\xC1\x00", 2,
         "?A frame has reserved bits set, but no extension was agreed on."},
        {"\x81\x01\xff", 3, "?A text is not valid UTF-8."},
        {"\x80\x00", 2,
         "?A frame continues a message, but there is none to be continued."}};
    hfsb_transport net;
    size_t         i;
    open_net(&net);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan to = HFSB_INIT;
        to.frames = hfsb_str_make(cases[i].frames, cases[i].n);
        hears(&net, &to, cases[i].want);
        hfsb_buf_free(&to.got);
    }
    hfsb_transport_close(&net);
}

static void an_end_without_a_close_is_a_loss(void) {
    plan           to = HFSB_INIT;
    hfsb_transport net;
    open_net(&net);
    to.frames = HFSB_LIT("\x89\x00\x81\x05hel");
    to.want = 1; /* it closes after the pong */
    hears(&net, &to, "phel?The connection ended.");
    hfsb_buf_free(&to.got);
    hfsb_transport_close(&net);
}

/* Unpacks the frames of a client, and the keys of all that are not short. */
static void unpack(hfsb_buf *bytes, hfsb_buf *text, hfsb_buf *masks) {
    hfsbi_ws_reader reader = HFSB_INIT;
    size_t          at = 0, n = 0;
    const char     *p = bytes->ptr;
    while (at + 14 <= bytes->len) { /* the keys, before they are applied */
        size_t len = (unsigned char)p[at + 1] & 127u, head = 2;
        if (len == 126) {
            len = (size_t)(unsigned char)p[at + 2] << 8 |
                  (unsigned char)p[at + 3];
            head = 4;
        } else if (len == 127) {
            len = (size_t)(unsigned char)p[at + 7] << 16 |
                  (size_t)(unsigned char)p[at + 8] << 8 |
                  (unsigned char)p[at + 9];
            head = 10;
        }
        T_CHECK(hfsb_buf_append(masks, hfsb_str_make(p + at + head, 4)) ==
                HFSB_OK);
        at += head + 4 + len;
    }
    for (at = 0; at < bytes->len; at += n) {
        hfsbi_ws_frame frame;
        hfsbi_ws_event event = hfsbi_ws_next(
            &reader, bytes->ptr + at, bytes->len - at, &frame, &n, NULL);
        if (event == HFSBI_WS_EVENT_DATA) {
            T_CHECK(frame.text);
            T_CHECK(hfsb_buf_append(text, frame.data) == HFSB_OK);
            if (frame.last)
                T_CHECK(hfsb_buf_append_byte(text, '.') == HFSB_OK);
        } else {
            T_CHECK(event == HFSBI_WS_EVENT_CLOSE ||
                    event == HFSBI_WS_EVENT_MORE ||
                    event == HFSBI_WS_EVENT_PING);
            if (event == HFSBI_WS_EVENT_PING)
                T_CHECK(hfsb_buf_append_byte(text, 'p') == HFSB_OK);
            if (event == HFSBI_WS_EVENT_CLOSE)
                T_CHECK(hfsb_buf_append_byte(text, '!') == HFSB_OK);
            if (!n) break;
        }
    }
}

static void send_all(hfsbi_ws_client *ws, hfsb_str text) {
    size_t at = 0;
    bool   whole = false;
    while (!whole) {
        if (hfsbi_ws_client_send(ws, text, &at, &whole, NULL) != HFSB_OK) {
            T_CHECK(false);
            return;
        }
        if (!whole) wait_for(ws, POLLOUT);
    }
    T_CHECK(at == text.len && !hfsbi_ws_client_waits(ws));
}

static void messages_are_cut_and_masked(void) {
    plan             to = HFSB_INIT;
    tn_peer          p;
    hfsb_transport   net;
    hfsbi_ws_client *ws = NULL;
    hfsb_alloc       alloc = HFSB_INIT;
    hfsb_buf         text = HFSB_INIT, back = HFSB_INIT, masks = HFSB_INIT;
    int              http;
    t_repeat(&text, "0123456789", 15000); /* three fragments */
    open_net(&net);
    to.status = OK_STATUS;
    to.fields = OK_FIELDS;
    to.want = 7 + 2 * 14 + 8 + 150000 + 6 + 8;
    open_plan(&p, &to);
    T_CHECK(dial(&net, &p, NULL, 10000, alloc, &ws, &http, NULL) == HFSB_OK);
    send_all(ws, HFSB_LIT("x"));
    send_all(ws, hfsb_buf_str(&text));
    hfsbi_ws_client_ping(ws);
    T_CHECK(hfsbi_ws_client_flush(ws, NULL) == HFSB_OK);
    hfsbi_ws_client_close(ws, 1000);
    hfsbi_ws_client_close(ws, 1001); /* only one is sent */
    T_CHECK(hfsbi_ws_client_flush(ws, NULL) == HFSB_OK);
    hfsbi_ws_client_close(ws, 1001);
    T_CHECK(hfsbi_ws_client_flush(ws, NULL) == HFSB_OK);
    hfsbi_ws_client_free(ws);
    tn_close(&p);
    T_CHECK(to.got.len == to.want);
    unpack(&to.got, &back, &masks);
    T_CHECK(back.len == 150000 + 5);
    if (back.len == 150000 + 5) {
        T_CHECK(!memcmp(back.ptr, "x.", 2));
        T_CHECK(!memcmp(back.ptr + 2, text.ptr, text.len));
        T_CHECK(!strcmp(back.ptr + 150002, ".p!"));
    }
    T_CHECK(masks.len >= 16 && memcmp(masks.ptr, masks.ptr + 4, 4) &&
            memcmp(masks.ptr + 4, masks.ptr + 8, 4));
    hfsb_buf_free(&text);
    hfsb_buf_free(&back);
    hfsb_buf_free(&masks);
    hfsb_buf_free(&to.got);
    hfsb_transport_close(&net);
}

static void an_address_has_brackets_for_a_proxy(void) {
    static const tn_step deny[] = {
        {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", TN_CLOSE}};
    tn_peer          p, far;
    char             proxy[80];
    hfsb_transport   net;
    hfsbi_ws_client *ws = NULL;
    hfsb_alloc       alloc = HFSB_INIT;
    int              http;
    memset(&far, 0, sizeof far);
    snprintf(far.url, sizeof far.url, "http://[2001:db8::1]");
    tn_play_open(&p, deny, 1);
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%u", p.port);
    setenv("http_proxy", proxy, 1);
    T_CHECK(hfsb_net_open(NULL, &net, NULL) == HFSB_OK);
    T_CHECK(dial(&net, &far, NULL, 10000, alloc, &ws, &http, NULL) ==
            HFSB_CONNECT);
    T_CHECK(tn_logged(&p, "CONNECT [2001:db8::1]:80 HTTP/1.1\r\nHost: "
                          "[2001:db8::1]:80\r\n"));
    unsetenv("http_proxy");
    hfsb_transport_close(&net);
    tn_close(&p);
}

static void a_proxy_opens_a_tunnel(void) {
    static const tn_step deny[] = {
        {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", TN_CLOSE}};
    plan             to = HFSB_INIT;
    tn_peer          p, far;
    char             proxy[80];
    hfsb_transport   net;
    hfsbi_ws_client *ws = NULL;
    hfsb_alloc       alloc = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    int              http;
    memset(&far, 0, sizeof far); /* nobody asks it */
    snprintf(far.url, sizeof far.url, "http://sandbox.example:81");
    to.status = OK_STATUS;
    to.fields = OK_FIELDS;
    to.proxy = true;
    open_plan(&p, &to);
    snprintf(proxy, sizeof proxy, "http://u:p@127.0.0.1:%u", p.port);
    setenv("http_proxy", proxy, 1);
    T_CHECK(hfsb_net_open(NULL, &net, NULL) == HFSB_OK);
    T_CHECK(dial(&net, &far, NULL, 10000, alloc, &ws, &http, &err) ==
            HFSB_OK);
    hfsbi_ws_client_free(ws);
    T_CHECK(tn_logged(&p, "CONNECT sandbox.example:81 HTTP/1.1\r\nHost: "
                          "sandbox.example:81\r\nProxy-Authorization: Basic "
                          "dTpw\r\n\r\nGET /codex HTTP/1.1\r\n"));
    tn_close(&p);
    hfsb_buf_free(&to.got);
    hfsb_transport_close(&net);
    tn_play_open(&p, deny, 1);
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%u", p.port);
    setenv("http_proxy", proxy, 1);
    T_CHECK(hfsb_net_open(NULL, &net, NULL) == HFSB_OK);
    T_CHECK(dial(&net, &far, NULL, 10000, alloc, &ws, &http, &err) ==
            HFSB_CONNECT);
    T_CHECK(strstr(err.msg, "opens no tunnel to sandbox.example") &&
            strstr(err.msg, "403"));
    unsetenv("http_proxy");
    hfsb_transport_close(&net);
    tn_close(&p);
}

static void *set_soon(void *user) {
    usleep(30000);
    hfsb_cancel_set((hfsb_cancel *)user);
    return NULL;
}

static void waits_end(void) {
    static const tn_step silent[] = {{NULL, TN_HANG}};
    static const tn_step gone[] = {{NULL, TN_CLOSE}};
    tn_peer          p;
    pthread_t        thread;
    hfsb_transport   net, without;
    hfsbi_ws_client *ws = NULL;
    hfsb_alloc       alloc = HFSB_INIT;
    hfsb_cancel     *cancel;
    hfsb_err         err = HFSB_INIT;
    int              http;
    open_net(&net);
    without = net;
    without.connect = NULL;
    T_CHECK(hfsb_cancel_open(NULL, &cancel, NULL) == HFSB_OK);
    tn_play_open(&p, silent, 1);
    T_CHECK(dial(&net, &p, NULL, 60, alloc, &ws, &http, &err) ==
            HFSB_TIMEOUT);
    T_CHECK(pthread_create(&thread, NULL, set_soon, cancel) == 0);
    T_CHECK(dial(&net, &p, cancel, 10000, alloc, &ws, &http, &err) ==
            HFSB_CANCELLED);
    pthread_join(thread, NULL);
    T_CHECK(dial(&without, &p, NULL, 60, alloc, &ws, &http, &err) ==
            HFSB_REFUSED);
    T_CHECK(!ws);
    tn_close(&p);
    T_CHECK(dial(&net, &p, NULL, 1000, alloc, &ws, &http, &err) ==
            HFSB_CONNECT);
    tn_play_open(&p, gone, 1);
    T_CHECK(dial(&net, &p, NULL, 10000, alloc, &ws, &http, &err) ==
            HFSB_LOST);
    hfsb_cancel_close(cancel);
    hfsb_transport_close(&net);
    tn_close(&p);
}

static tn_peer memory_peer;

static void opens(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_net_opts    o = HFSB_INIT;
    hfsb_transport   net;
    hfsbi_ws_client *ws = NULL;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;
    int              http;
    o.no_proxy = true;
    o.alloc = alloc;
    st = hfsb_net_open(&o, &net, &err);
    if (st == HFSB_OK)
        st = dial(&net, &memory_peer, NULL, 10000, alloc, &ws, &http, &err);
    T_CHECK(st == (heap->fail_at ? HFSB_NOMEM : HFSB_OK));
    T_CHECK(err.code == st);
    hfsbi_ws_client_free(ws);
    if (net.close) hfsb_transport_close(&net);
}

static void each_allocation_may_fail(void) {
    plan to = HFSB_INIT;
    to.status = OK_STATUS;
    to.fields = OK_FIELDS;
    open_plan(&memory_peer, &to);
    t_each_allocation_fails(opens);
    tn_close(&memory_peer);
    hfsb_buf_free(&to.got);
}

int main(void) {
    unsetenv("http_proxy");
    T_RUN(wrong_handshakes_are_refused);
    T_RUN(the_request_is_a_handshake);
    T_RUN(frames_are_read_wherever_they_are_cut);
    T_RUN(frames_that_break_the_rules_are_refused);
    T_RUN(an_end_without_a_close_is_a_loss);
    T_RUN(messages_are_cut_and_masked);
    T_RUN(a_proxy_opens_a_tunnel);
    T_RUN(an_address_has_brackets_for_a_proxy);
    T_RUN(waits_end);
    T_RUN(each_allocation_may_fail);
    return T_END();
}
