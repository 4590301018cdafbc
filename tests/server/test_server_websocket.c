/* test_server_websocket.c - WebSockets of a server. */
#include "../support/t_server.h"

static ts_server s;

/* What the owners of the sockets saw; atomic. */
static struct {
    int opened, closed, pieces, drained;
} seen;

static int look(int *n) {
    return __atomic_load_n(n, __ATOMIC_SEQ_CST);
}

static void note(int *n) {
    (void)__atomic_add_fetch(n, 1, __ATOMIC_SEQ_CST);
}

static bool comes(int *n, int want) {
    long long end = hfsb_clock_ms() + 20000;
    while (look(n) < want && hfsb_clock_ms() < end) (void)poll(NULL, 0, 2);
    return look(n) == want;
}

/* ---- /echo: sends each message back; "bye" closes ---- */

typedef struct echo {
    hfsb_buf message;
} echo;

static void echo_message(void *user, hfsbi_websocket *w, hfsb_str piece,
                         bool text, bool last) {
    echo *e = (echo *)user;
    note(&seen.pieces);
    if (hfsb_buf_append(&e->message, piece) != HFSB_OK) abort();
    if (!last) return;
    if (hfsb_str_equal(hfsb_buf_str(&e->message), HFSB_LIT("bye")))
        hfsbi_websocket_close(w, HFSBI_WS_NORMAL, HFSB_LIT("as you say"));
    else (void)hfsbi_websocket_send(w, text, hfsb_buf_str(&e->message));
    hfsb_buf_truncate(&e->message, 0);
}

static void echo_closed(void *user, hfsbi_websocket *w) {
    echo *e = (echo *)user;
    (void)w;
    note(&seen.closed);
    hfsb_buf_free(&e->message);
    free(e);
}

static void echo_drained(void *user, hfsbi_websocket *w) {
    (void)user, (void)w;
    note(&seen.drained);
}

static const hfsbi_websocket_fn echo_fn = {echo_message, echo_closed,
                                           echo_drained, 1 << 20, 60000,
                                           false};
static const hfsbi_websocket_fn quick_fn = {echo_message, echo_closed, NULL, 0,
                                            1000, false};
static const hfsbi_websocket_fn paused_fn = {echo_message, echo_closed, NULL,
                                             0, 60, false};
static const hfsbi_websocket_fn patient_fn = {echo_message, echo_closed, NULL,
                                              0, 60, true};

static void start_echo(void *user, hfsb_request *r) {
    static const char *const protocols[] = {"echo.v1", NULL};
    echo *e = (echo *)calloc(1, sizeof *e);
    if (!e) abort();
    if (hfsbi_websocket_open(r, protocols, (const hfsbi_websocket_fn *)user,
                             e))
        note(&seen.opened);
    else free(e);
}

/* An owner that does not read. */
static void start_paused(void *user, hfsb_request *r) {
    echo            *e = (echo *)calloc(1, sizeof *e);
    hfsbi_websocket *w;
    (void)user;
    if (!e) abort();
    w = hfsbi_websocket_open(r, NULL, &paused_fn, e);
    if (w) hfsbi_websocket_pause(w, true);
    else free(e);
}

enum { MUCH = 8 << 20 }; /* more than the buffers of sockets hold */

/* An owner that sends much. */
static void start_patient(void *user, hfsb_request *r) {
    echo            *e = (echo *)calloc(1, sizeof *e);
    char            *bytes = (char *)calloc(1, MUCH);
    hfsbi_websocket *w;
    (void)user;
    if (!e || !bytes) abort();
    w = hfsbi_websocket_open(r, NULL, &patient_fn, e);
    if (!w) free(e);
    else if (hfsbi_websocket_send(w, false, hfsb_str_make(bytes, MUCH)) !=
             HFSB_OK)
        abort();
    free(bytes);
}

static void open_server(const hfsb_server_opts *opts) {
    hfsb_route route = HFSB_INIT;
    memset(&seen, 0, sizeof seen);
    ts_open(&s, opts);
    route.method = "GET";
    route.path = "/echo";
    route.fn = start_echo;
    route.user = (void *)(uintptr_t)&echo_fn;
    route.no_token = true;
    if (hfsb_server_add(s.server, &route, NULL) != HFSB_OK) abort();
    route.path = "/quick";
    route.user = (void *)(uintptr_t)&quick_fn;
    if (hfsb_server_add(s.server, &route, NULL) != HFSB_OK) abort();
    route.path = "/paused";
    route.fn = start_paused;
    if (hfsb_server_add(s.server, &route, NULL) != HFSB_OK) abort();
    route.path = "/patient";
    route.fn = start_patient;
    if (hfsb_server_add(s.server, &route, NULL) != HFSB_OK) abort();
    ts_run(&s);
}

/* ---- a client ---- */

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define UPGRADE "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"

static ts_conn ask(const char *target, const char *fields) {
    ts_conn  c = ts_connect(&s);
    hfsb_buf head = HFSB_INIT;
    T_CHECK(hfsb_buf_printf(&head,
                            "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
                            target, fields) == HFSB_OK);
    T_CHECK(ts_send(&c, hfsb_buf_str(&head)));
    T_CHECK(ts_await(&c, "\r\n\r\n", 20000));
    hfsb_buf_free(&head);
    return c;
}

static ts_conn dial(const char *target) {
    ts_conn c = ask(target, KEY UPGRADE VERSION);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&c.in), HFSB_LIT("HTTP/1.1 101 ")));
    ts_shift(&c, hfsb_str_find(hfsb_buf_str(&c.in), HFSB_LIT("\r\n\r\n")) + 4);
    return c;
}

static void put_frame(hfsb_buf *out, hfsbi_ws_opcode opcode, bool fin,
                      hfsb_str data) {
    static const unsigned char mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    char   head[HFSBI_WS_HEAD];
    size_t n = hfsbi_ws_write_head(opcode, fin, data.len, mask, head), at;
    T_CHECK(hfsb_buf_append(out, hfsb_str_make(head, n)) == HFSB_OK);
    at = out->len;
    T_CHECK(hfsb_buf_append(out, data) == HFSB_OK);
    hfsbi_ws_mask(out->ptr + at, data.len, mask, 0);
}

static bool send_frame(ts_conn *c, hfsbi_ws_opcode opcode, bool fin,
                       const char *text) {
    hfsb_buf out = HFSB_INIT;
    bool     sent;
    put_frame(&out, opcode, fin, hfsb_cstr(text));
    sent = ts_send(c, hfsb_buf_str(&out));
    hfsb_buf_free(&out);
    return sent;
}

/* The next frame that comes is this one. */
static bool gets(ts_conn *c, hfsbi_ws_opcode opcode, hfsb_str want) {
    char   head[HFSBI_WS_HEAD];
    size_t n = hfsbi_ws_write_head(opcode, true, want.len, NULL, head);
    bool   same;
    while (c->in.len < n + want.len && ts_more(c, 20000)) continue;
    same = c->in.len >= n + want.len && !memcmp(c->in.ptr, head, n) &&
           (!want.len || !memcmp(c->in.ptr + n, want.ptr, want.len));
    if (same) ts_shift(c, n + want.len);
    return same;
}

#define GETS(c, opcode, text) T_CHECK(gets(c, opcode, HFSB_LIT(text)))

/* ---- the tests ---- */

static void the_handshake_is_that_of_the_rfc(void) {
    ts_conn c = ask("/echo", KEY UPGRADE VERSION
                    "Sec-WebSocket-Protocol: other, echo.v1\r\n");
    T_CHECK(strstr(c.in.ptr, "\r\nSec-WebSocket-Accept: "
                             "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n") != NULL);
    T_CHECK(strstr(c.in.ptr, "\r\nSec-WebSocket-Protocol: echo.v1\r\n") !=
            NULL);
    T_CHECK(strstr(c.in.ptr, "\r\nUpgrade: websocket\r\n") != NULL);
    ts_hang_up(&c);
    T_CHECK(comes(&seen.closed, 1));
}

static void other_requests_are_refused(void) {
    static const struct {
        const char *fields, *status, *more;
    } list[] = {
        {"", "HTTP/1.1 426 ", "\r\nUpgrade: websocket\r\n"},
        {UPGRADE VERSION, "HTTP/1.1 400 ", ""},
        {KEY UPGRADE "Sec-WebSocket-Version: 8\r\n", "HTTP/1.1 426 ",
         "\r\nSec-WebSocket-Version: 13\r\n"},
        {KEY KEY UPGRADE VERSION, "HTTP/1.1 400 ", ""}};
    size_t i;
    for (i = 0; i < TT_COUNT(list); i++) {
        ts_conn c = ask("/echo", list[i].fields);
        T_CHECK(hfsb_str_starts(hfsb_buf_str(&c.in),
                                hfsb_cstr(list[i].status)));
        T_CHECK(strstr(c.in.ptr, list[i].more) != NULL);
        ts_hang_up(&c);
    }
    T_CHECK(look(&seen.opened) == 0 && look(&seen.closed) == 0);
}

static void messages_come_back(void) {
    ts_conn c = dial("/echo");
    T_CHECK(send_frame(&c, HFSBI_WS_TEXT, true, "gr\xc3\xbc\xc3\x9f"));
    GETS(&c, HFSBI_WS_TEXT, "gr\xc3\xbc\xc3\x9f");
    T_CHECK(send_frame(&c, HFSBI_WS_BINARY, true, "\xff\xfe"));
    GETS(&c, HFSBI_WS_BINARY, "\xff\xfe");
    T_CHECK(send_frame(&c, HFSBI_WS_TEXT, false, "one \xe2\x82"));
    T_CHECK(send_frame(&c, HFSBI_WS_PING, true, "still there?"));
    GETS(&c, HFSBI_WS_PONG, "still there?");
    T_CHECK(send_frame(&c, HFSBI_WS_CONTINUE, true, "\xac two"));
    GETS(&c, HFSBI_WS_TEXT, "one \xe2\x82\xac two");
    T_CHECK(send_frame(&c, HFSBI_WS_TEXT, true, ""));
    GETS(&c, HFSBI_WS_TEXT, "");
    ts_hang_up(&c);
    T_CHECK(comes(&seen.closed, 1));
}

static void frames_may_be_cut_anywhere(void) {
    hfsb_buf out = HFSB_INIT;
    ts_conn  c = dial("/echo");
    size_t   i;
    put_frame(&out, HFSBI_WS_TEXT, true, HFSB_LIT("a message"));
    put_frame(&out, HFSBI_WS_PING, true, HFSB_LIT("p"));
    for (i = 0; i < out.len; i++) {
        T_CHECK(ts_send(&c, hfsb_str_make(out.ptr + i, 1)));
        (void)poll(NULL, 0, 1);
    }
    GETS(&c, HFSBI_WS_TEXT, "a message");
    GETS(&c, HFSBI_WS_PONG, "p");
    hfsb_buf_free(&out);
    ts_hang_up(&c);
    T_CHECK(comes(&seen.closed, 1));
}

static void a_close_is_answered_and_ends_it(void) {
    ts_conn c = dial("/echo");
    T_CHECK(send_frame(&c, HFSBI_WS_CLOSE, true, "\x03\xe9going"));
    GETS(&c, HFSBI_WS_CLOSE, "\x03\xe9");
    T_CHECK(ts_closes(&c, 20000) && comes(&seen.closed, 1));
    ts_hang_up(&c);
}

static void our_close_waits_for_the_answer(void) {
    ts_conn c = dial("/echo");
    T_CHECK(send_frame(&c, HFSBI_WS_TEXT, true, "bye"));
    GETS(&c, HFSBI_WS_CLOSE, "\x03\xe8" "as you say");
    T_CHECK(look(&seen.closed) == 0);
    T_CHECK(send_frame(&c, HFSBI_WS_TEXT, true, "not heard"));
    T_CHECK(send_frame(&c, HFSBI_WS_CLOSE, true, "\x03\xe8"));
    T_CHECK(ts_closes(&c, 20000) && comes(&seen.closed, 1));
    T_CHECK(c.in.len == 0);
    ts_hang_up(&c);
}

static void a_close_that_is_not_answered_ends_it_later(void) {
    ts_conn   c = dial("/echo");
    long long began = hfsb_clock_ms();
    T_CHECK(send_frame(&c, HFSBI_WS_TEXT, true, "bye"));
    T_CHECK(ts_closes(&c, 20000) && comes(&seen.closed, 1));
    T_CHECK(hfsb_clock_ms() - began >= 1900);
    ts_hang_up(&c);
}

static void errors_have_their_codes(void) {
    static const struct {
        hfsb_str bytes;
        unsigned code;
    } list[] = {{HFSB_LIT("\x81\x01x"), 1002},             /* no mask */
                {HFSB_LIT("\x83\x80" "abcd"), 1002},       /* opcode 3 */
                {HFSB_LIT("\x81\x81" "aaaa" "\x9e"), 1007}, /* 0xff */
                {HFSB_LIT("\x82\xff\0\0\0\0\0\x20\0\0" "abcd"), 1009}};
    size_t i;
    for (i = 0; i < TT_COUNT(list); i++) {
        ts_conn c = dial("/echo");
        char    code[2];
        code[0] = (char)(list[i].code >> 8);
        code[1] = (char)(list[i].code & 255);
        T_CHECK(ts_send(&c, list[i].bytes));
        T_CHECK(gets(&c, HFSBI_WS_CLOSE, hfsb_str_make(code, 2)));
        T_CHECK(ts_closes(&c, 20000));
        ts_hang_up(&c);
    }
    T_CHECK(comes(&seen.closed, (int)TT_COUNT(list)));
}

static void a_silent_peer_is_pinged_and_then_lost(void) {
    ts_conn   c = dial("/quick");
    long long began = hfsb_clock_ms();
    GETS(&c, HFSBI_WS_PING, "");
    T_CHECK(send_frame(&c, HFSBI_WS_PONG, true, ""));
    GETS(&c, HFSBI_WS_PING, "");
    T_CHECK(look(&seen.closed) == 0);
    T_CHECK(ts_closes(&c, 20000) && comes(&seen.closed, 1));
    T_CHECK(hfsb_clock_ms() - began >= 2000);
    ts_hang_up(&c);
}

/* A client would take the silence for a loss; its answers are not read. */
static void a_pause_is_no_silence(void) {
    ts_conn c = dial("/paused");
    int     i;
    for (i = 0; i < 5; i++) GETS(&c, HFSBI_WS_PING, "");
    T_CHECK(look(&seen.closed) == 0);
    ts_hang_up(&c);
}

/* It reads nothing for longer than body_ms, and answers no ping. */
static void a_patient_owner_waits_for_its_peer(void) {
    hfsb_server_opts o = HFSB_INIT;
    char            *bytes = (char *)calloc(1, MUCH);
    ts_conn          c;
    int              i;
    if (!bytes) abort();
    o.body_ms = 100;
    open_server(&o);
    c = dial("/patient");
    (void)poll(NULL, 0, 700);
    T_CHECK(look(&seen.closed) == 0);
    T_CHECK(gets(&c, HFSBI_WS_BINARY, hfsb_str_make(bytes, MUCH)));
    for (i = 0; i < 5; i++) GETS(&c, HFSBI_WS_PING, "");
    T_CHECK(look(&seen.closed) == 0);
    ts_hang_up(&c);
    T_CHECK(comes(&seen.closed, 1));
    ts_end(&s, true);
    free(bytes);
}

static void a_large_message_passes_in_pieces(void) {
    enum { SIZE = 1 << 20 };
    hfsb_buf out = HFSB_INIT;
    char    *bytes = (char *)malloc(SIZE);
    ts_conn  c = dial("/echo");
    size_t   i;
    if (!bytes) abort();
    for (i = 0; i < SIZE; i++) bytes[i] = (char)(i * 7 + i / 999);
    put_frame(&out, HFSBI_WS_BINARY, true, hfsb_str_make(bytes, SIZE));
    T_CHECK(ts_send(&c, hfsb_buf_str(&out)));
    T_CHECK(gets(&c, HFSBI_WS_BINARY, hfsb_str_make(bytes, SIZE)));
    T_CHECK(look(&seen.pieces) > 1);
    free(bytes);
    hfsb_buf_free(&out);
    ts_hang_up(&c);
    T_CHECK(comes(&seen.closed, 1));
}

static void a_stop_closes_sockets_at_its_end(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_conn          c;
    o.stop_ms = 300;
    open_server(&o);
    c = dial("/echo");
    ts_end(&s, false);
    T_CHECK(look(&seen.closed) == 1 && ts_closes(&c, 20000));
    ts_hang_up(&c);
}

/* With a server of its own. */
#define EACH(test) (open_server(NULL), TT_RUN(test), ts_end(&s, true))

int main(void) {
    tt_begin();
    EACH(the_handshake_is_that_of_the_rfc);
    EACH(other_requests_are_refused);
    EACH(messages_come_back);
    EACH(frames_may_be_cut_anywhere);
    EACH(a_close_is_answered_and_ends_it);
    EACH(our_close_waits_for_the_answer);
    EACH(a_close_that_is_not_answered_ends_it_later);
    EACH(errors_have_their_codes);
    EACH(a_silent_peer_is_pinged_and_then_lost);
    EACH(a_pause_is_no_silence);
    EACH(a_large_message_passes_in_pieces);
    TT_RUN(a_patient_owner_waits_for_its_peer);
    TT_RUN(a_stop_closes_sockets_at_its_end);
    return TT_END();
}
