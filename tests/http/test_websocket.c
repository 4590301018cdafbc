/* test_websocket.c - the handshake of WebSocket, and its frames, whole and cut
   anywhere. */
#include "../support/t_http.h"
#ifdef HFSBI_SPLIT
#include "../../src/http/http_private.h"
#endif

/* ---- the handshake ---- */

static void accept_matches_rfc_6455(void) {
    static const struct {
        const char *key, *accept;
    } cases[] = {
        /* section 1.3 */
        {"dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="},
        {"x3JJHMbDL1EzLkh9GBhXDw==", "HSmrc0sMlYUkAGmm5OPpG2HaGWk="},
        {"", "Kfh9QIsMVZcl6xEPYxPHzW8SZ8w="},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str key = t_exact(cases[i].key, strlen(cases[i].key));
        char    *out = (char *)malloc(HFSBI_WS_ACCEPT);
        hfsbi_ws_accept(key, out);
        T_CHECK(!strcmp(out, cases[i].accept));
        free(out);
        t_drop(key);
    }
}

#define GET     "GET /x HTTP/1.1\r\nHost: a\r\n"
#define UP      "Upgrade: websocket\r\n"
#define CONN    "Connection: Upgrade\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define KEY     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

static void upgrade_judges_heads(void) {
    static const struct {
        const char *head;
        int         status;
        const char *key, *why; /* of the error */
    } cases[] = {
        {GET UP CONN VERSION KEY "\r\n", 101, "", ""},
        {GET "upgrade: WebSocket\r\nCONNECTION: keep-alive, upgrade\r\n"
             VERSION KEY "\r\n", 101, "", ""},
        {GET "Upgrade: h2c, websocket\r\n" CONN VERSION KEY "\r\n", 101, "",
         ""},
        {GET UP CONN VERSION KEY "Content-Length: 0\r\n\r\n", 101, "", ""},
        {GET UP CONN VERSION KEY
         "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", 101, "", ""},
        {"POST /x HTTP/1.1\r\nHost: a\r\n" UP CONN VERSION KEY "\r\n", 405,
         "", "The method for a WebSocket is GET."},
        {"HEAD /x HTTP/1.1\r\nHost: a\r\n" UP CONN VERSION KEY "\r\n", 405,
         "", "The method for a WebSocket is GET."},
        {"GET /x HTTP/1.0\r\nHost: a\r\n" UP CONN VERSION KEY "\r\n", 400,
         "", "A WebSocket needs HTTP/1.1."},
        {GET "\r\n", 426, "Upgrade",
         "This is a WebSocket: the request needs the field \"Upgrade: "
         "websocket\"."},
        {GET "Upgrade: websockets\r\n" CONN VERSION KEY "\r\n", 426,
         "Upgrade",
         "This is a WebSocket: the request needs the field \"Upgrade: "
         "websocket\"."},
        {GET UP VERSION KEY "\r\n", 400, "Connection",
         "The request needs the field \"Connection: Upgrade\"."},
        {GET UP "Connection: close\r\n" VERSION KEY "\r\n", 400,
         "Connection", "The request needs the field \"Connection: Upgrade\"."},
        {GET UP CONN VERSION KEY "Content-Length: 1\r\n\r\n", 400, "",
         "A request for a WebSocket has no body."},
        {GET UP CONN VERSION KEY "Transfer-Encoding: chunked\r\n\r\n", 400,
         "", "A request for a WebSocket has no body."},
        {GET UP CONN KEY "\r\n", 426, "Sec-WebSocket-Version",
         "The request needs the field \"Sec-WebSocket-Version: 13\", once."},
        {GET UP CONN KEY "Sec-WebSocket-Version: 8\r\n\r\n", 426,
         "Sec-WebSocket-Version",
         "The request needs the field \"Sec-WebSocket-Version: 13\", once."},
        {GET UP CONN KEY "Sec-WebSocket-Version: 13, 8\r\n\r\n", 426,
         "Sec-WebSocket-Version",
         "The request needs the field \"Sec-WebSocket-Version: 13\", once."},
        {GET UP CONN KEY VERSION VERSION "\r\n", 426,
         "Sec-WebSocket-Version",
         "The request needs the field \"Sec-WebSocket-Version: 13\", once."},
#define NO_KEY                                                               \
    400, "Sec-WebSocket-Key",                                                \
        "The request needs one Sec-WebSocket-Key: 16 bytes in base64."
        {GET UP CONN VERSION "\r\n", NO_KEY},
        {GET UP CONN VERSION KEY KEY "\r\n", NO_KEY},
        {GET UP CONN VERSION "Sec-WebSocket-Key:\r\n\r\n", NO_KEY},
        {GET UP CONN VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j\r\n\r\n",
         NO_KEY}, /* 15 bytes */
        {GET UP CONN VERSION
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZWU=\r\n\r\n", NO_KEY},
        {GET UP CONN VERSION
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR==\r\n\r\n", NO_KEY},
        {GET UP CONN VERSION
         "Sec-WebSocket-Key: dGhlIHNhbXBs!SBub25jZQ==\r\n\r\n", NO_KEY},
        {GET UP CONN VERSION KEY "Sec-WebSocket-Protocol: a b\r\n\r\n", 400,
         "Sec-WebSocket-Protocol",
         "A Sec-WebSocket-Protocol is not a list of names."},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_http_head   head = t_http_first(cases[i].head);
        hfsbi_ws_upgrade up;
        hfsb_err         err;
        int status = hfsbi_ws_upgrade_read(&head, NULL, &up, &err);
        bool ok = status == cases[i].status &&
                  !strcmp(err.msg, cases[i].why) &&
                  !strcmp(err.key, cases[i].key) && !err.pos &&
                  err.code == (status == 101 ? HFSB_OK : HFSB_SYNTAX);
        T_CHECK(ok);
        if (!ok) printf("  case %zu: %d %s\n", i, status, err.msg);
        T_CHECK(hfsbi_ws_upgrade_read(&head, NULL, &up, NULL) == status);
        T_CHECK(up.protocol.len == 0);
        if (status == 101) T_STR(up.key, "dGhlIHNhbXBsZSBub25jZQ==");
    }
}

static void upgrade_chooses_a_subprotocol(void) {
    static const char *const ours[] = {"chat", "v4.channel.k8s.io", NULL};
    static const struct {
        const char *fields, *want;
    } cases[] = {
        {"", ""},
        {"Sec-WebSocket-Protocol: chat\r\n", "chat"},
        {"Sec-WebSocket-Protocol: other, v4.channel.k8s.io, chat\r\n",
         "v4.channel.k8s.io"},
        {"Sec-WebSocket-Protocol: other\r\n"
         "sec-websocket-protocol: chat\r\n", "chat"},
        {"Sec-WebSocket-Protocol: Chat\r\n", ""}, /* case counts */
        {"Sec-WebSocket-Protocol: other\r\n", ""},
        {"Sec-WebSocket-Protocol:\r\n", ""},
        {"Sec-WebSocket-Protocol: ,chat,\r\n", "chat"},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_buf         text = HFSB_INIT;
        hfsb_http_head   head;
        hfsbi_ws_upgrade up;
        T_CHECK(hfsb_buf_printf(&text, "%s%s\r\n", GET UP CONN VERSION KEY,
                                cases[i].fields) == HFSB_OK);
        head = t_http_first(text.ptr);
        T_CHECK(hfsbi_ws_upgrade_read(&head, ours, &up, NULL) == 101);
        T_CHECK(hfsb_str_equal(up.protocol, hfsb_cstr(cases[i].want)));
        hfsb_buf_free(&text);
    }
}

/* ---- reading ---- */

typedef struct reading {
    bool     client;
    size_t   max;
    hfsb_buf events, body;
    bool     bad, in_message;
} reading;

static void say(reading *r, const char *what, hfsb_str s) {
    T_CHECK(hfsb_buf_printf(&r->events, "%s<", what) == HFSB_OK);
    T_CHECK(hfsb_buf_append(&r->events, s) == HFSB_OK);
    T_CHECK(hfsb_buf_append(&r->events, HFSB_LIT(">")) == HFSB_OK);
}

static void say_event(reading *r, hfsbi_ws_event event,
                      const hfsbi_ws_frame *f, const hfsb_err *err) {
    switch (event) {
    case HFSBI_WS_EVENT_MORE: return;
    case HFSBI_WS_EVENT_DATA:
        T_CHECK(f->data.len || f->last);
        T_CHECK(hfsb_buf_append(&r->body, f->data) == HFSB_OK);
        r->in_message = !f->last;
        if (!f->last) return;
        say(r, f->text ? "text" : "binary", hfsb_buf_str(&r->body));
        hfsb_buf_truncate(&r->body, 0);
        return;
    case HFSBI_WS_EVENT_PING: say(r, "ping", f->data); return;
    case HFSBI_WS_EVENT_PONG: say(r, "pong", f->data); return;
    case HFSBI_WS_EVENT_CLOSE:
        T_CHECK(hfsb_buf_printf(&r->events, "%u ", f->code) == HFSB_OK);
        say(r, "close", f->data);
        return;
    default:
        if (r->in_message) say(r, "part", hfsb_buf_str(&r->body));
        T_CHECK(err->code == (f->code == HFSBI_WS_TOO_BIG ? HFSB_LIMIT
                                                          : HFSB_SYNTAX));
        T_CHECK(hfsb_buf_printf(&r->events, "bad %u at %zu: %s", f->code,
                                err->pos, err->msg) == HFSB_OK);
        r->bad = true;
    }
}

/* Gives a piece in an exact-size block, until all of it is used. */
static void give(reading *r, hfsbi_ws_reader *reader, hfsb_str piece) {
    hfsb_str       copy = t_exact(piece.ptr, piece.len);
    char          *p = (char *)(uintptr_t)copy.ptr;
    size_t         used, at = 0;
    hfsbi_ws_frame frame;
    hfsbi_ws_event event;
    hfsb_err       err;
    do {
        event = hfsbi_ws_next(reader, p + at, piece.len - at, &frame, &used,
                              &err);
        at += used;
        T_CHECK(at <= piece.len);
        say_event(r, event, &frame, &err);
    } while (event != HFSBI_WS_EVENT_MORE && event != HFSBI_WS_EVENT_BAD);
    T_CHECK(event == HFSBI_WS_EVENT_BAD || at == piece.len);
    t_drop(copy);
}

/* The stream with a first piece of `first` bytes, then pieces of `step`. */
static void read_cut(reading *r, hfsb_str stream, size_t first, size_t step) {
    hfsbi_ws_reader reader = HFSB_INIT;
    size_t          at = 0, n = first;
    reader.client = r->client;
    reader.max = r->max;
    while (at < stream.len && !r->bad) {
        hfsb_str piece = hfsb_str_slice(stream, at, at + n);
        give(r, &reader, piece);
        at += piece.len;
        n = step;
    }
    if (!r->bad) give(r, &reader, hfsb_str_make(NULL, 0));
    if (!r->bad && r->in_message) say(r, "open", hfsb_buf_str(&r->body));
    if (r->bad) { /* it stays so */
        hfsbi_ws_frame frame;
        hfsb_err       err;
        size_t         used;
        char           byte = 0;
        T_CHECK(hfsbi_ws_next(&reader, &byte, 1, &frame, &used, &err) ==
                HFSBI_WS_EVENT_BAD);
        T_CHECK(frame.code == HFSBI_WS_PROTOCOL_ERROR && !used &&
                !strcmp(err.msg, "An earlier frame was refused."));
        T_CHECK(hfsbi_ws_next(&reader, NULL, 0, &frame, &used, NULL) ==
                HFSBI_WS_EVENT_BAD);
    }
}

static void reading_free(reading *r) {
    hfsb_buf_free(&r->events);
    hfsb_buf_free(&r->body);
}

/* The events of the stream must be `want` as a whole, in single bytes, in
   pieces of 3, and in two pieces cut at each place. */
static void check_stream(hfsb_str stream, bool client, size_t max,
                         hfsb_str want) {
    size_t k, cuts = t_quick() && stream.len > 300 ? 300 : stream.len;
    for (k = 0; k < cuts + 2; k++) {
        reading r = HFSB_INIT;
        bool    ok;
        r.client = client;
        r.max = max;
        read_cut(&r, stream, k < 2 ? 1 + 2 * k : k - 1,
                 k < 2 ? 1 + 2 * k : stream.len);
        ok = hfsb_str_equal(hfsb_buf_str(&r.events), want);
        T_CHECK(ok);
        if (!ok) {
            printf("  cut %zu: is   %.300s\n", k, r.events.ptr);
            printf("          want %.*s\n", (int)want.len, want.ptr);
        }
        reading_free(&r);
    }
}

/* Appends a frame in its shortest form, masked unless `client` reads it. */
static void put(hfsb_buf *out, unsigned first, hfsb_str payload,
                bool client) {
    static const unsigned char mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    unsigned long long         n = payload.len;
    unsigned                   bit = client ? 0 : 0x80;
    size_t                     i;
    T_CHECK(hfsb_buf_append_byte(out, (char)first) == HFSB_OK);
    if (n < 126) {
        hfsb_buf_append_byte(out, (char)(bit | n));
    } else {
        size_t size = n < 65536 ? 2 : 8;
        hfsb_buf_append_byte(out, (char)(bit | (size == 2 ? 126 : 127)));
        while (size-- > 0) hfsb_buf_append_byte(out, (char)(n >> 8 * size));
    }
    for (i = 0; i < 4 && !client; i++)
        hfsb_buf_append_byte(out, (char)mask[i]);
    for (i = 0; i < payload.len; i++)
        hfsb_buf_append_byte(
            out, (char)(payload.ptr[i] ^ (client ? 0 : mask[i % 4])));
    T_CHECK(out->status == HFSB_OK);
}

#define BYTES(s) s, sizeof(s) - 1

static void frames_of_rfc_6455_section_5_7(void) {
    check_stream(HFSB_LIT("\x81\x05Hello"), true, 0, HFSB_LIT("text<Hello>"));
    check_stream(HFSB_LIT("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"),
                 false, 0, HFSB_LIT("text<Hello>"));
    check_stream(HFSB_LIT("\x01\x03Hel\x80\x02lo"), true, 0,
                 HFSB_LIT("text<Hello>"));
    check_stream(HFSB_LIT("\x89\x05Hello"), true, 0, HFSB_LIT("ping<Hello>"));
    check_stream(HFSB_LIT("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"),
                 false, 0, HFSB_LIT("pong<Hello>"));
}

static void lengths_of_each_form_are_read(void) {
    static const size_t sizes[] = {0,   1,   2,   3,   4,   7,    8,    9,
                                   31,  32,  33,  63,  64,  65,   124,  125,
                                   126, 127, 255, 256, 257, 1000, 65535, 65536,
                                   65537, 70000};
    size_t i, k;
    int    client;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (client = 0; client < 2; client++) {
            hfsb_buf stream = HFSB_INIT, want = HFSB_INIT, body = HFSB_INIT;
            for (k = 0; k < sizes[i]; k++)
                T_CHECK(hfsb_buf_append_byte(&body, (char)(k * 7 + k / 256)) ==
                        HFSB_OK);
            put(&stream, 0x82, hfsb_buf_str(&body), client != 0);
            T_CHECK(hfsb_buf_append(&want, HFSB_LIT("binary<")) == HFSB_OK);
            T_CHECK(hfsb_buf_append(&want, hfsb_buf_str(&body)) == HFSB_OK);
            T_CHECK(hfsb_buf_append(&want, HFSB_LIT(">")) == HFSB_OK);
            if (sizes[i] <= 1000) {
                check_stream(hfsb_buf_str(&stream), client != 0, 0,
                             hfsb_buf_str(&want));
            } else { /* every cut would take long */
                for (k = 1; k < 17; k++) {
                    reading r = HFSB_INIT;
                    r.client = client != 0;
                    read_cut(&r, hfsb_buf_str(&stream), k, k * 1021);
                    T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.events),
                                           hfsb_buf_str(&want)));
                    reading_free(&r);
                }
            }
            hfsb_buf_free(&stream);
            hfsb_buf_free(&want);
            hfsb_buf_free(&body);
        }
}

typedef struct part {
    unsigned    first;
    const char *payload;
} part;

/* Streams of frames for a server, and what they give. */
static void sequences_give_their_events(void) {
    static const struct {
        part        frames[6]; /* until payload is NULL */
        const char *want;
    } cases[] = {
        {{{0x81, ""}}, "text<>"},
        {{{0x82, ""}}, "binary<>"},
        {{{0x89, ""}, {0x8a, ""}}, "ping<>pong<>"},
        {{{0x81, "a"}, {0x82, "b"}, {0x81, "c"}},
         "text<a>binary<b>text<c>"},
        {{{0x01, "a"}, {0x00, "b"}, {0x80, "c"}}, "text<abc>"},
        {{{0x02, "a"}, {0x89, "p"}, {0x00, ""}, {0x8a, "q"}, {0x80, "b"}},
         "ping<p>pong<q>binary<ab>"},
        {{{0x01, ""}, {0x00, ""}, {0x80, ""}}, "text<>"},
        {{{0x01, "a"}, {0x80, ""}}, "text<a>"},
        {{{0x01, "a"}}, "open<a>"},
        {{{0x88, ""}}, "1005 close<>"},
        {{{0x88, "\x03\xe8"}}, "1000 close<>"},
        {{{0x88, "\x03\xe9" "bye \xe2\x82\xac"}},
         "1001 close<bye \xe2\x82\xac>"},
        {{{0x01, "a"}, {0x88, "\x03\xe8"}}, "1000 close<>open<a>"},
        /* what follows a close is dropped, even what is malformed */
        {{{0x88, ""}, {0x81, "x"}, {0xff, "y"}}, "1005 close<>"},
        /* a character cut by the end of a frame */
        {{{0x01, "\xe2"}, {0x00, "\x82"}, {0x80, "\xac"}},
         "text<\xe2\x82\xac>"},
        {{{0x01, "\xf0\x9f"}, {0x89, "\xff"}, {0x80, "\x98\x80!"}},
         "ping<\xff>text<\xf0\x9f\x98\x80!>"},
        {{{0x82, "\xff\xfe"}}, "binary<\xff\xfe>"},
        {{{0x81, "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"}},
         "text<\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5>"},
        /* invalid UTF-8: all that is valid is passed on first */
        {{{0x81, "ab\xff" "cd"}},
         "part<ab>bad 1007 at 8: A text is not valid UTF-8."},
        {{{0x81, "\xff"}}, "bad 1007 at 6: A text is not valid UTF-8."},
        {{{0x81, "a\xe2\x28\xa1"}},
         "part<a\xe2>bad 1007 at 8: A text is not valid UTF-8."},
        {{{0x81, "\xed\xa0\x80"}}, /* a surrogate */
         "part<\xed>bad 1007 at 7: A text is not valid UTF-8."},
        {{{0x81, "\xc0\x80"}}, /* overlong */
         "bad 1007 at 6: A text is not valid UTF-8."},
        {{{0x81, "\xf4\x90\x80\x80"}}, /* beyond U+10FFFF */
         "part<\xf4>bad 1007 at 7: A text is not valid UTF-8."},
        {{{0x01, "a\xe2"}, {0x80, "b"}},
         "part<a\xe2>bad 1007 at 14: A text is not valid UTF-8."},
        {{{0x81, "a\xe2\x82"}},
         "part<a\xe2\x82>bad 1007 at 9: A text ends inside a character."},
        {{{0x01, "a\xe2\x82"}, {0x80, ""}},
         "part<a\xe2\x82>bad 1007 at 15: A text ends inside a character."},
        {{{0x81, "\xe2"}, {0x81, "x"}},
         "part<\xe2>bad 1007 at 7: A text ends inside a character."},
        /* the order of frames */
        {{{0x80, "a"}},
         "bad 1002 at 0: A frame continues a message, but there is none to "
         "be continued."},
        {{{0x00, "a"}},
         "bad 1002 at 0: A frame continues a message, but there is none to "
         "be continued."},
        {{{0x81, "a"}, {0x80, "b"}},
         "text<a>bad 1002 at 7: A frame continues a message, but there is "
         "none to be continued."},
        {{{0x01, "a"}, {0x81, "b"}},
         "part<a>bad 1002 at 7: A message begins before the one before it "
         "has ended."},
        {{{0x01, "a"}, {0x02, "b"}},
         "part<a>bad 1002 at 7: A message begins before the one before it "
         "has ended."},
        /* closes */
        {{{0x88, "x"}},
         "bad 1002 at 6: A close has one byte; expected none, or a code of "
         "two bytes and a reason."},
        {{{0x88, "\x03\xe8" "a\xff"}},
         "bad 1007 at 9: The reason of a close is not valid UTF-8."},
        {{{0x88, "\x03\xe8\xe2\x82"}},
         "bad 1007 at 8: The reason of a close is not valid UTF-8."},
    };
    size_t i, k;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_buf stream = HFSB_INIT;
        for (k = 0; k < 6 && cases[i].frames[k].payload; k++)
            put(&stream, cases[i].frames[k].first,
                hfsb_cstr(cases[i].frames[k].payload), false);
        check_stream(hfsb_buf_str(&stream), false, 0,
                     hfsb_cstr(cases[i].want));
        hfsb_buf_free(&stream);
    }
}

/* Bytes as they come, for a server or a client. */
static void malformed_frames_are_refused(void) {
#define MIN "The length of a frame is not in its shortest form."
#define RSV                                                               \
    "bad 1002 at 0: A frame has reserved bits set, but no extension was " \
    "agreed on."
#define LONG                                                           \
    "bad 1002 at 1: A ping, pong or close has more than 125 bytes."
#define CUT "bad 1002 at 0: A ping, pong or close is fragmented."
    static const struct {
        const char *bytes;
        size_t      len;
        bool        client;
        const char *want;
    } cases[] = {
        {BYTES("\xc1\x80"), false, RSV},
        {BYTES("\xa1"), false, RSV},
        {BYTES("\x91"), true, RSV},
        {BYTES("\x83\x80"), false,
         "bad 1002 at 0: A frame has the unknown opcode 3."},
        {BYTES("\x87"), true,
         "bad 1002 at 0: A frame has the unknown opcode 7."},
        {BYTES("\x8b\x80"), false,
         "bad 1002 at 0: A frame has the unknown opcode 11."},
        {BYTES("\x8f\x80"), false,
         "bad 1002 at 0: A frame has the unknown opcode 15."},
        {BYTES("\x08\x80"), false, CUT},
        {BYTES("\x09\x80"), false, CUT},
        {BYTES("\x0a\x00"), true, CUT},
        {BYTES("\x88\xfe\x00\x7e"), false, LONG},
        {BYTES("\x89\xfe\x00\x7e"), false, LONG},
        {BYTES("\x8a\x7e\x00\x7e"), true, LONG},
        {BYTES("\x89\xff"), false, LONG},
        {BYTES("\x81\x05Hello"), false,
         "bad 1002 at 1: A frame from a client is not masked."},
        {BYTES("\x89\x00"), false,
         "bad 1002 at 1: A frame from a client is not masked."},
        {BYTES("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), true,
         "bad 1002 at 1: A frame from a server is masked."},
        {BYTES("\x82\xfe\x00\x00"), false, "bad 1002 at 3: " MIN},
        {BYTES("\x82\x7e\x00\x7d"), true, "bad 1002 at 3: " MIN},
        {BYTES("\x82\xff\0\0\0\0\0\0\xff\xff"), false, "bad 1002 at 9: " MIN},
        {BYTES("\x82\x7f\0\0\0\0\0\0\0\x05"), true, "bad 1002 at 9: " MIN},
        {BYTES("\x82\xff\x80\0\0\0\0\0\0\0"), false,
         "bad 1002 at 9: The length of a frame has its highest bit set."},
        {BYTES("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff"), false,
         "bad 1002 at 9: The length of a frame has its highest bit set."},
        {BYTES("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff"), false,
         "bad 1009 at 9: A message has more than 16777216 bytes."},
        {BYTES("\x82\x7f\0\0\0\0\x01\0\0\x01"), true,
         "bad 1009 at 9: A message has more than 16777216 bytes."},
        {BYTES("\x82\x7f\0\0\0\0\x01\0\0\0"), true, ""}, /* more to come */
        {BYTES("\x81"), false, ""},
        {BYTES("\x81\xfe\x01"), false, ""},
        {BYTES("\x89\x85\x37\xfa\x21\x3d\x7f"), false, ""},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        check_stream(hfsb_str_make(cases[i].bytes, cases[i].len),
                     cases[i].client, 0, hfsb_cstr(cases[i].want));
}

static void close_codes_are_judged(void) {
    unsigned code;
    for (code = 0; code < 65536; code++) {
        bool ok = (code >= 1000 && code <= 1003) ||
                  (code >= 1007 && code <= 1014) ||
                  (code >= 3000 && code <= 4999);
        char     bytes[4], want[64];
        reading  r = HFSB_INIT;
        bytes[0] = '\x88';
        bytes[1] = 2;
        bytes[2] = (char)(code >> 8);
        bytes[3] = (char)code;
        (void)snprintf(want, sizeof want,
                       ok ? "%u close<>"
                          : "bad 1002 at 2: A close has the invalid code %u.",
                       code);
        r.client = true;
        read_cut(&r, hfsb_str_make(bytes, 4), 4, 4);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.events), hfsb_cstr(want)));
        reading_free(&r);
    }
}

static void messages_are_limited(void) {
    static const struct {
        part        frames[6];
        const char *want;
    } cases[] = {
        {{{0x81, "1234567890"}, {0x81, "1234567890"}},
         "text<1234567890>text<1234567890>"},
        {{{0x81, "12345678901"}},
         "bad 1009 at 1: A message has more than 10 bytes."},
        {{{0x02, "123456"}, {0x80, "7890"}}, "binary<1234567890>"},
        {{{0x02, "123456"}, {0x00, "7890"}, {0x80, "1"}},
         "part<1234567890>bad 1009 at 23: A message has more than 10 bytes."},
        {{{0x02, "123456"}, {0x89, "a ping does not count"}, {0x80, "7890"}},
         "ping<a ping does not count>binary<1234567890>"},
    };
    size_t i, k;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_buf stream = HFSB_INIT;
        for (k = 0; k < 6 && cases[i].frames[k].payload; k++)
            put(&stream, cases[i].frames[k].first,
                hfsb_cstr(cases[i].frames[k].payload), false);
        check_stream(hfsb_buf_str(&stream), false, 10,
                     hfsb_cstr(cases[i].want));
        hfsb_buf_free(&stream);
    }
}

static void control_frames_may_have_125_bytes(void) {
    hfsb_buf body = HFSB_INIT, stream = HFSB_INIT, want = HFSB_INIT;
    t_repeat(&body, "12345", 25);
    put(&stream, 0x89, hfsb_buf_str(&body), false);
    put(&stream, 0x8a, hfsb_buf_str(&body), false);
    T_CHECK(hfsb_buf_printf(&want, "ping<%s>pong<%s>", body.ptr, body.ptr) ==
            HFSB_OK);
    check_stream(hfsb_buf_str(&stream), false, 0, hfsb_buf_str(&want));
    hfsb_buf_free(&body);
    hfsb_buf_free(&stream);
    hfsb_buf_free(&want);
}

/* Random texts, valid or not, in random frames and pieces, against the
   validation of the whole. */
static void texts_are_judged_as_a_whole(void) {
    static const char *const bits[] = {
        "a", "hello ", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
        "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf", "\xe0\xa0\x80", "\xff", "\xe2",
        "\x80", "0123456789abcdef0123456789abcdef"};
    unsigned long long seed = 7;
    size_t             i, k, times = t_quick() ? 200 : 3000;
    for (i = 0; i < times; i++) {
        hfsb_buf text = HFSB_INIT, stream = HFSB_INIT;
        reading  r = HFSB_INIT;
        size_t   count = t_random(&seed) % 12, at = 0, kinds = 12;
        bool     valid;
        if (t_random(&seed) % 2) kinds = 8;
        for (k = 0; k < count; k++)
            t_repeat(&text, bits[t_random(&seed) % kinds], 1);
        valid = hfsb_utf8_validate(hfsb_buf_str(&text)) == text.len;
        do {
            size_t   n = t_random(&seed) % 9;
            hfsb_str s = hfsb_str_slice(hfsb_buf_str(&text), at, at + n);
            unsigned first = at || stream.len ? 0 : 1;
            at += s.len;
            if (at == text.len) first |= 0x80;
            put(&stream, first, s, i % 2);
        } while (at < text.len);
        r.client = i % 2;
        read_cut(&r, hfsb_buf_str(&stream), 1 + t_random(&seed) % 9,
                 1 + t_random(&seed) % 40);
        T_CHECK(r.bad == !valid);
        if (valid) {
            hfsb_str got = hfsb_buf_str(&r.events);
            T_CHECK(hfsb_str_equal(hfsb_str_slice(got, 5, got.len - 1),
                                   hfsb_buf_str(&text)));
        }
        reading_free(&r);
        hfsb_buf_free(&text);
        hfsb_buf_free(&stream);
    }
}

/* ---- masking and writing ---- */

static void mask_agrees_with_one_byte_at_a_time(void) {
    static const unsigned char mask[4] = {0x01, 0x80, 0xff, 0x5a};
    size_t                     len, offset, i;
    for (len = 0; len < 150; len++)
        for (offset = 0; offset < 9; offset++) {
            char *p = (char *)malloc(len + 1);
            for (i = 0; i < len; i++) p[i] = (char)(i * 11);
            hfsbi_ws_mask(p, len, mask, offset);
            for (i = 0; i < len; i++)
                if ((unsigned char)p[i] !=
                    (((i * 11) & 0xff) ^ mask[(offset + i) & 3]))
                    break;
            T_CHECK(i == len);
            hfsbi_ws_mask(p, len, mask, offset);
            for (i = 0; i < len && p[i] == (char)(i * 11); i++) continue;
            T_CHECK(i == len);
            free(p);
        }
}

static void heads_are_written_in_their_shortest_form(void) {
    static const unsigned char mask[4] = {1, 2, 3, 4};
    static const struct {
        hfsbi_ws_opcode    opcode;
        bool               fin, masked;
        unsigned long long length;
        const char        *want;
        size_t             len;
    } cases[] = {
        {HFSBI_WS_TEXT, true, false, 5, BYTES("\x81\x05")},
        {HFSBI_WS_TEXT, true, true, 5, BYTES("\x81\x85\1\2\3\4")},
        {HFSBI_WS_BINARY, false, false, 0, BYTES("\x02\x00")},
        {HFSBI_WS_CONTINUE, true, false, 125, BYTES("\x80\x7d")},
        {HFSBI_WS_CONTINUE, false, false, 126, BYTES("\x00\x7e\x00\x7e")},
        {HFSBI_WS_BINARY, true, true, 256, BYTES("\x82\xfe\x01\x00\1\2\3\4")},
        {HFSBI_WS_BINARY, true, false, 65535, BYTES("\x82\x7e\xff\xff")},
        {HFSBI_WS_BINARY, true, false, 65536,
         BYTES("\x82\x7f\0\0\0\0\0\x01\0\0")},
        {HFSBI_WS_BINARY, true, true, 0x7fffffffffffffffull,
         BYTES("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\1\2\3\4")},
        {HFSBI_WS_PING, true, false, 3, BYTES("\x89\x03")},
        {HFSBI_WS_PONG, true, true, 0, BYTES("\x8a\x80\1\2\3\4")},
        {HFSBI_WS_CLOSE, true, false, 2, BYTES("\x88\x02")},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        char  *out = (char *)malloc(HFSBI_WS_HEAD);
        size_t n = hfsbi_ws_write_head(cases[i].opcode, cases[i].fin,
                                       cases[i].length,
                                       cases[i].masked ? mask : NULL, out);
        T_CHECK(n == cases[i].len && !memcmp(out, cases[i].want, n));
        free(out);
    }
}

static void closes_are_written_whole_or_cut_between_characters(void) {
    char    *out = (char *)malloc(HFSBI_WS_MAX_CONTROL);
    hfsb_buf reason = HFSB_INIT;
    hfsb_str s;
    T_CHECK(hfsbi_ws_write_close(HFSBI_WS_NO_CODE, HFSB_LIT("x"), out) == 0);
    s = hfsb_str_make(out, hfsbi_ws_write_close(HFSBI_WS_GOING_AWAY,
                                                hfsb_str_make(NULL, 0), out));
    T_STR(s, "\x03\xe9");
    s = hfsb_str_make(
        out, hfsbi_ws_write_close(HFSBI_WS_NORMAL, HFSB_LIT("done"), out));
    T_STR(s, "\x03\xe8" "done");
    t_repeat(&reason, "\xe2\x82\xac", 41); /* 123 bytes */
    T_CHECK(hfsbi_ws_write_close(1011, hfsb_buf_str(&reason), out) == 125);
    hfsb_buf_truncate(&reason, 0);
    t_repeat(&reason, "a", 1);
    t_repeat(&reason, "\xe2\x82\xac", 41);
    T_CHECK(hfsbi_ws_write_close(1011, hfsb_buf_str(&reason), out) == 123);
    T_CHECK(!memcmp(out, "\x03\xf3" "a\xe2\x82\xac", 6));
    hfsb_buf_free(&reason);
    free(out);
}

int main(void) {
    T_RUN(accept_matches_rfc_6455);
    T_RUN(upgrade_judges_heads);
    T_RUN(upgrade_chooses_a_subprotocol);
    T_RUN(frames_of_rfc_6455_section_5_7);
    T_RUN(lengths_of_each_form_are_read);
    T_RUN(sequences_give_their_events);
    T_RUN(malformed_frames_are_refused);
    T_RUN(close_codes_are_judged);
    T_RUN(messages_are_limited);
    T_RUN(control_frames_may_have_125_bytes);
    T_RUN(texts_are_judged_as_a_whole);
    T_RUN(mask_agrees_with_one_byte_at_a_time);
    T_RUN(heads_are_written_in_their_shortest_form);
    T_RUN(closes_are_written_whole_or_cut_between_characters);
    return T_END();
}
