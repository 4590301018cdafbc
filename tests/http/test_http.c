/* test_http.c - HTTP: heads, framing, refusals. */
#include "../support/t_http.h"

/* ---- requests ---- */

static void http_parser_is_small(void) {
    T_CHECK(sizeof(hfsb_http_parser) <= 64);
}

static void http_splits_targets(void) {
    static const struct {
        const char *line, *host, *path, *query;
    } cases[] = {
        {"GET / HTTP/1.1", "a", "/", ""},
        {"GET /p?q HTTP/1.1", "a", "/p", "q"},
        {"GET /p? HTTP/1.1", "a", "/p", ""},
        {"GET /p?a=b?c#d?e HTTP/1.1", "a", "/p", "a=b?c"},
        {"GET /p#d?e HTTP/1.1", "a", "/p", ""},
        {"GET //p/../%2e HTTP/1.1", "a", "//p/../%2e", ""},
        {"GET http://b HTTP/1.1", "b", "/", ""},
        {"GET HTTPS://b:1/x?y HTTP/1.1", "b:1", "/x", "y"},
        {"GET http://b?y HTTP/1.1", "b", "/", "y"},
        {"GET http://u:p@b/x HTTP/1.1", "b", "/x", ""},
        {"GET http://[::1]:80/x HTTP/1.1", "[::1]:80", "/x", ""},
        {"OPTIONS * HTTP/1.1", "a", "*", ""},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hfsb_buf       text = HFSB_INIT;
        hfsb_http_head head;
        T_CHECK(hfsb_buf_printf(&text, "%s\r\nHost: a\r\n\r\n",
                                cases[i].line) == HFSB_OK);
        head = t_http_first(text.ptr);
        T_CHECK(hfsb_str_equal(head.host, hfsb_cstr(cases[i].host)));
        T_CHECK(hfsb_str_equal(head.path, hfsb_cstr(cases[i].path)));
        T_CHECK(hfsb_str_equal(head.query, hfsb_cstr(cases[i].query)));
        hfsb_buf_free(&text);
    }
}

static void http_keeps_fields_unchanged(void) {
    hfsb_http_head head = t_http_first(
        "POST /api/bash HTTP/1.1\r\nhOST:localhost:7860\r\nX-Empty:\r\n"
        "X-Blank: \t \r\nX-Value: \t a \tb\xc3\xa9 \t\r\nX-Value:c\r\n"
        "Expect: 100-Continue\r\nContent-Length: 007\r\n\r\n");
    T_CHECK(head.field_count == 7 && head.fields == t_http_fields);
    T_STR(head.method, "POST");
    T_STR(head.target, "/api/bash");
    T_STR(head.fields[0].name, "hOST");
    T_STR(head.host, "localhost:7860");
    T_STR(head.fields[1].value, "");
    T_STR(head.fields[2].value, "");
    T_STR(head.fields[3].value, "a \tb\xc3\xa9");
    T_STR(hfsb_http_field_find(&head, "x-value"), "a \tb\xc3\xa9");
    T_CHECK(hfsb_http_field_count(&head, "x-value") == 2);
    T_CHECK(hfsb_http_field_count(&head, "x-valu") == 0);
    T_CHECK(hfsb_http_field_find(&head, "x-empty").ptr != NULL);
    T_CHECK(hfsb_http_field_find(&head, "x-none").ptr == NULL);
    T_CHECK(head.minor == 1 && head.keep_alive && head.expect_continue);
    T_CHECK(head.body == HFSB_HTTP_LENGTH && head.length == 7);
    T_CHECK(head.status == 0);
}

static void http_knows_when_to_keep_a_connection(void) {
    static const struct {
        const char *text;
        bool        keep;
    } cases[] = {
        {"GET / HTTP/1.1\r\n" T_HOST "\r\n", true},
        {"GET / HTTP/1.1\r\n" T_HOST "Connection: close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\n" T_HOST "Connection: x, ,CLOSE ,\r\n\r\n", false},
        {"GET / HTTP/1.1\r\n" T_HOST "Connection: closed\r\n\r\n", true},
        {"GET / HTTP/1.1\r\n" T_HOST
         "Connection: keep-alive\r\nConnection: close\r\n\r\n",
         false},
        {"GET / HTTP/1.0\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
        {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false},
        {"GET / HTTP/1.2\r\n" T_HOST "\r\n", true},
        {"HTTP/1.1 204 No Content\r\n\r\n", true},
        {"HTTP/1.1 200 OK\r\n\r\n", false},
        {"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: "
         "chunked\r\n\r\n",
         false},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        T_CHECK(t_http_first(cases[i].text).keep_alive == cases[i].keep);
}

static void http_waits_for_100_only_where_a_body_comes(void) {
#define EXPECT "Expect: 100-continue\r\n"
    T_CHECK(t_http_first("PUT / HTTP/1.1\r\n" T_HOST EXPECT
                         "Content-Length: 1\r\n\r\n")
                .expect_continue);
    T_CHECK(t_http_first("PUT / HTTP/1.1\r\n" T_HOST EXPECT
                         "Transfer-Encoding: chunked\r\n\r\n")
                .expect_continue);
    T_CHECK(!t_http_first("PUT / HTTP/1.1\r\n" T_HOST EXPECT "\r\n")
                 .expect_continue);
    T_CHECK(
        !t_http_first("PUT / HTTP/1.0\r\n" EXPECT "Content-Length: 1\r\n\r\n")
             .expect_continue);
    T_CHECK(!t_http_first("PUT / HTTP/1.1\r\n" T_HOST "Expect: x\r\n"
                          "Content-Length: 1\r\n\r\n")
                 .expect_continue);
#undef EXPECT
}

static void http_reads_pipelined_requests(void) {
    t_http t = t_http_requests(HFSB_LIT(
        "\r\nPOST /1 HTTP/1.1\r\n" T_HOST "Content-Length: 5\r\n\r\nhello"
        "\r\n\r\nGET /2 HTTP/1.1\r\n" T_HOST "\r\n"
        "PUT /3 HTTP/1.1\r\n" T_HOST "Transfer-Encoding: Chunked\r\n\r\n"
        "4\r\nabcd\r\n00A;x=y; z=\"\\\"\r\"\r\n"));
    T_STR(t.list, "POST /1 5\nGET /2 0\nPUT /3");
    T_CHECK(t.status == 400 && t.messages == 2);
    t_http_free(&t);
    t = t_http_requests(HFSB_LIT(
        "PUT /3 HTTP/1.1\r\n" T_HOST "Transfer-Encoding: Chunked\r\n\r\n"
        "4\r\nabcd\r\n00A;x=y ;\tz = \"\\\"\t\" ; w\r\n0123456789\r\n"
        "0;last\r\nX-Trailer: 1\r\nContent-Length: 9\r\n\r\n"
        "GET /4 HTTP/1.1\r\n" T_HOST "Connection: close\r\n\r\n\x16rest"));
    T_STR(t.list, "PUT /3 14\nGET /4 0\n");
    T_CHECK(!t.status && t.messages == 2 && t.closed);
    t_http_free(&t);
}

static void http_never_accepts_a_prefix(void) {
    static const char *const whole[] = {
        "GET / HTTP/1.0\r\n\r\n",
        "\r\nGET /x?y=z HTTP/1.1\r\n" T_HOST "Accept: */*\r\n\r\n",
        "POST / HTTP/1.1\r\n" T_HOST "Content-Length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\n" T_HOST "Transfer-Encoding: chunked\r\n\r\n"
        "3;a=\"b\"\r\nabc\r\n0\r\nT: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    };
    size_t i, n;
    for (i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        hfsb_str text = hfsb_cstr(whole[i]);
        bool     reply = hfsb_str_starts(text, HFSB_LIT("HTTP/"));
        for (n = 0; n <= text.len; n++) {
            t_http t = t_http_read_as(hfsb_str_slice(text, 0, n),
                                      reply ? "GET" : NULL, NULL);
            T_CHECK(!t.status && (t.messages == 1) == (n == text.len));
            T_CHECK(t.end == (n == text.len || n == 0 ||
                              (text.ptr[0] == '\r' && n <= 2) ||
                              (reply && text.ptr[9] == '1' && n == 25)));
            t_http_free(&t);
        }
    }
}

/* The empty view gives HFSB_HTTP_MORE in every state. */
static void http_accepts_the_empty_view(void) {
    static const char stream[] = T_CHUNKED
        "3\r\nabc\r\n0\r\nT: 1\r\n\r\n" T_POST "Content-Length: 1\r\n\r\nx";
    hfsb_http_parser parser;
    hfsb_http_head   head;
    hfsb_str         piece, none = HFSB_INIT;
    size_t           at = 0, got, used, ends = 0;
    hfsb_http_parser_init(&parser, NULL);
    for (got = 0; got < sizeof stream; got++) {
        hfsb_http_event event;
        while ((event = hfsb_http_next(&parser,
                                       hfsb_str_make(stream + at, got - at),
                                       t_http_fields, 128, &head, &piece,
                                       &used, NULL)) != HFSB_HTTP_MORE) {
            T_CHECK(event != HFSB_HTTP_BAD);
            at += used;
            ends += event == HFSB_HTTP_END;
        }
        at += used;
        if (at == got)
            T_CHECK(hfsb_http_next(&parser, none, NULL, 0, &head, &piece,
                                   &used, NULL) == HFSB_HTTP_MORE &&
                    used == 0);
    }
    T_CHECK(ends == 2 && hfsb_http_parser_idle(&parser));
}

static void http_refuses_other_protocols_at_their_first_byte(void) {
    static const char firsts[] = {0x16, 0,   ' ',        '\n',       '\t',
                                  '(',  '"', (char)0x80, (char)0xff, 0x7f,
                                  '/',  ':', '\r'};
    size_t            i;
    for (i = 0; i < sizeof firsts; i++) {
        hfsb_http_parser parser;
        hfsb_http_head   head;
        hfsb_str         piece;
        size_t           used;
        hfsb_err         err;
        hfsb_str         in = t_exact(&firsts[i], 1);
        bool             cr = firsts[i] == '\r';
        hfsb_http_parser_init(&parser, NULL);
        T_CHECK(hfsb_http_next(&parser, in, NULL, 0, &head, &piece, &used,
                               &err) == (cr ? HFSB_HTTP_MORE : HFSB_HTTP_BAD));
        T_CHECK(cr || (hfsb_http_parser_status(&parser) == 400 &&
                       err.code == HFSB_SYNTAX && err.pos == 0));
        hfsb_http_parser_init_reply(&parser, NULL);
        T_CHECK(hfsb_http_next(&parser, in, NULL, 0, &head, &piece, &used,
                               NULL) == HFSB_HTTP_BAD);
        t_drop(in);
    }
}

static void http_stays_refused(void) {
    hfsb_http_parser parser;
    hfsb_http_head   head;
    hfsb_str         piece;
    size_t           used;
    hfsb_err         err;
    hfsb_http_parser_init(&parser, NULL);
    T_CHECK(hfsb_http_parser_idle(&parser) && hfsb_http_parser_end(&parser));
    T_CHECK(hfsb_http_next(&parser, HFSB_LIT("G"), NULL, 0, &head, &piece,
                           &used, &err) == HFSB_HTTP_MORE);
    T_CHECK(used == 0 && !hfsb_http_parser_idle(&parser));
    T_CHECK(!hfsb_http_parser_end(&parser));
    T_CHECK(hfsb_http_next(&parser, HFSB_LIT("GET /\r\n"), NULL, 0, &head,
                           &piece, &used, &err) == HFSB_HTTP_BAD);
    T_CHECK(hfsb_http_next(&parser, HFSB_LIT("GET / HTTP/1.0\r\n\r\n"), NULL,
                           0, &head, &piece, &used, &err) == HFSB_HTTP_BAD);
    T_CHECK(used == 0 && err.msg[0] && !hfsb_http_parser_idle(&parser));
    T_CHECK(!hfsb_http_parser_end(&parser));
    T_CHECK(hfsb_http_parser_status(&parser) == 400);
}

/* ---- refusals ---- */

typedef struct refusal {
    const char *what, *stream;
    int         status;
    size_t      at;      /* where; a message of more than one line counts */
    const char *message; /* begins so; NULL: not looked at */
} refusal;

static void check_refusals(const refusal *cases, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) {
        const refusal *c = &cases[i];
        t_http         t = t_http_requests(hfsb_cstr(c->stream));
        bool           ok = t.status == c->status && !t.messages;
        if (c->message)
            ok = ok && t.err_at == c->at &&
                 hfsb_str_starts(hfsb_cstr(t.err.msg), hfsb_cstr(c->message));
        T_CHECK(ok);
        if (!ok)
            printf("  %s: %zu messages, status %d at %zu: %s\n", c->what,
                   t.messages, t.status, t.err_at, t.err.msg);
        t_http_free(&t);
    }
}

#define REFUSALS(cases) check_refusals(cases, sizeof cases / sizeof cases[0])

static void http_errors_name_fault_and_place(void) {
    static const refusal cases[] = {
        {"method", "G(T / HTTP/1.1\r\n", 400, 1,
         "\"(\" is not allowed in the method of a request."},
        {"method byte", "G\x01 / HTTP/1.1\r\n", 400, 1,
         "The byte 0x01 is not allowed in the method"},
        {"two blanks", "GET  / HTTP/1.1\r\n", 400, 4,
         "The byte 0x20 is not allowed in the target of the request"},
        {"no version", "GET /\r\n", 400, 5, "The request line does not end"},
        {"version", "GET / HTTP/11\r\n", 400, 6, "A request line is"},
        {"colon", "GET / HTTP/1:1\r\n", 400, 6, "A request line is"},
        {"major letter", "GET / HTTP/a.1\r\n", 400, 6, "A request line is"},
        {"minor letter", "GET / HTTP/1.a\r\n", 400, 6, "A request line is"},
        {"three empty lines", "\r\n\r\n\r", 400, 4, "This is not the start"},
        {"trailing blank", "GET / HTTP/1.1 \r\n", 400, 14, "A request line is"},
        {"line feed", "GET / HTTP/1.1\n", 400, 14, "A request line is"},
        {"tab", "GET /\tHTTP/1.1\r\n", 400, 5, "The byte 0x09"},
        {"major", "GET / HTTP/2.0\r\n", 505, 6, "Only HTTP/1.1 and HTTP/1.0"},
        {"relative", "GET x HTTP/1.1\r\n", 400, 4, "The target of the "},
        {"scheme", "GET ftp://x/ HTTP/1.1\r\n", 400, 4, "The target of the"},
        {"no host in URL", "GET http:///x HTTP/1.1\r\n", 400, 11,
         "The URL in the request line has no valid host"},
        {"star", "GET * HTTP/1.1\r\n", 400, 4, "Only OPTIONS"},
        {"connect", "CONNECT /x HTTP/1.1\r\n", 400, 8, "The target of CONN"},
        {"no colon", "GET / HTTP/1.1\r\nabc\r\n", 400, 16,
         "A line of the head has no colon."},
        {"blank before colon", "GET / HTTP/1.1\r\na : b\r\n", 400, 17,
         "A blank in the name of a field"},
        {"no name", "GET / HTTP/1.1\r\n: b\r\n", 400, 16, "A field without"},
        {"fold", "GET / HTTP/1.1\r\na: b\r\n c\r\n", 400, 22,
         "A line of the head begins with a blank"},
        {"value", "GET / HTTP/1.1\r\na: b\x02\r\n", 400, 20,
         "The byte 0x02 is not allowed in the value of a field."},
        {"bare CR", "GET / HTTP/1.1\r\na: b\rc\r\n", 400, 20,
         "A carriage return without a line feed"},
        {"bare LF", "GET / HTTP/1.1\r\na: b\n", 400, 20,
         "A line feed without a carriage return"},
        {"end CR", "GET / HTTP/1.1\r\na: b\r\n\rX", 400, 22,
         "A carriage return without a line feed"},
        {"no Host", "GET / HTTP/1.1\r\n\r\n", 400, 0, "The request has no Ho"},
        {"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, 16,
         "The request has more than one Host"},
        {"bad Host", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, 22,
         "The request's Host is not"},
        {"length", "GET / HTTP/1.1\r\n" T_HOST "Content-Length: 1x\r\n\r\n",
         400, 42, "\"x\" is not allowed in Content-Length."},
        {"no length", T_POST "Content-Length:\r\n\r\n", 400, 41,
         "Content-Length is empty."},
        {"lengths",
         "GET / HTTP/1.1\r\n" T_HOST
         "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
         400, 44, "Content-Length occurs more than once."},
        {"unknown coding",
         "GET / HTTP/1.1\r\n" T_HOST "Transfer-Encoding: br\r\n\r\n", 501, 25,
         "Unsupported Transfer-Encoding"},
        {"unknown method", "BREW / HTTP/1.1\r\n" T_HOST "\r\n", 501, 0,
         "Unknown request method"},
        {"connect", "CONNECT a:1 HTTP/1.1\r\n" T_HOST "\r\n", 501, 0,
         "Unknown request method"},
        {"twice",
         "GET / HTTP/1.1\r\n" T_HOST "Content-Type: a\r\ncontent-type: "
         "b\r\n\r\n",
         400, 42, "A field that may occur only once"},
        {"twice", T_POST "Authorization: a\r\nAUTHORIZATION: b\r\n\r\n", 400,
         44, "A field that may occur only once"},
        {"twice",
         T_POST "If-Modified-Since: a\r\nIf-modified-since: b\r\n\r\n", 400,
         48, "A field that may occur only once"},
        {"twice",
         T_POST "If-Unmodified-Since: a\r\nIf-Unmodified-Since: b\r\n\r\n",
         400, 50, "A field that may occur only once"},
        {"chunk size",
         "PUT / HTTP/1.1\r\n" T_HOST "Transfer-Encoding: chunked\r\n\r\nx\r\n",
         400, 55, "\"x\" is not allowed in the size of a chunk"},
        {"chunk end",
         "PUT / HTTP/1.1\r\n" T_HOST
         "Transfer-Encoding: chunked\r\n\r\n1\r\nab",
         400, 59, "CRLF is missing after a chunk"},
        {"chunk extension",
         "PUT / HTTP/1.1\r\n" T_HOST
         "Transfer-Encoding: chunked\r\n\r\n1;\r\nab",
         400, 57, "The line ends in the middle of the line before a chunk."},
        {"trailer",
         "PUT / HTTP/1.1\r\n" T_HOST
         "Transfer-Encoding: chunked\r\n\r\n0\r\na b: c\r\n",
         400, 59, "A blank in the name of a field"},
        {"trailer line feed",
         "PUT / HTTP/1.1\r\n" T_HOST
         "Transfer-Encoding: chunked\r\n\r\n0\r\na: c\n",
         400, 62, "A line feed without a carriage return"},
    };
    REFUSALS(cases);
}

/* Known faults of other parsers, by name. */
static void http_does_not_repeat_known_faults(void) {
#define EVIL "GET /evil HTTP/1.1\r\n" T_HOST "\r\n"
    static const refusal cases[] = {
        {"CVE-2023-34188 negative length",
         T_POST "Content-Length: -5\r\n\r\nhello", 400, 0, NULL},
        {"CVE-2013-2028 chunk size of 64 bits",
         T_CHUNKED "ffffffffffffffff\r\nhello", 400, 0, NULL},
        {"CVE-2002-0392 negative chunk size", T_CHUNKED "-1\r\nhello", 400, 0,
         NULL},
        {"CVE-2021-32714 chunk size wraps",
         T_CHUNKED "10000000000000005\r\nhello\r\n0\r\n\r\n", 400, 0, NULL},
        {"CVE-2026-42580 chunk size of 63 bits and one",
         T_CHUNKED "8000000000000000\r\nhello", 400, 0, NULL},
        {"CVE-2026-45352 sign", T_CHUNKED "+5\r\nhello", 400, 0, NULL},
        {"CVE-2026-45352 0x", T_CHUNKED "0x5\r\nhello", 400, 0, NULL},
        {"CVE-2021-32715 +5", T_POST "Content-Length: +5\r\n\r\nhello", 400, 0,
         NULL},
        {"CVE-2026-28497 length wraps",
         T_POST "Content-Length: 18446744073709551621\r\n\r\nhello", 400, 0,
         NULL},
        {"CVE-2026-28497 length of 63 bits and one",
         T_POST "Content-Length: 9223372036854775808\r\n\r\nhello", 400, 0,
         NULL},
        {"CVE-2015-5740 two lengths",
         T_POST "Content-Length: 5\r\nContent-Length: 0\r\n\r\nhello" EVIL,
         400, 0, NULL},
        {"CVE-2019-16792 list of lengths",
         T_POST "Content-Length: 5, 5\r\n\r\nhello", 400, 0, NULL},
        {"CVE-2015-5741 length and coding",
         T_POST "Content-Length: 5\r\nTransfer-Encoding: "
                "chunked\r\n\r\n0\r\n\r\n" EVIL,
         400, 0, NULL},
        {"CVE-2024-47220 coding and length",
         T_POST "Transfer-Encoding: chunked\r\nContent-Length: "
                "5\r\n\r\n0\r\n\r\n" EVIL,
         400, 0, NULL},
        {"CVE-2020-8287 two codings",
         T_POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: "
                "eee\r\n\r\n0\r\n\r\n" EVIL,
         400, 0, NULL},
        {"CVE-2020-8287 the other way round",
         T_POST "Transfer-Encoding: eee\r\nTransfer-Encoding: "
                "chunked\r\n\r\n0\r\n\r\n" EVIL,
         501, 0, NULL},
        {"CVE-2019-15605 vertical tab",
         T_POST "Transfer-Encoding: \x0b"
                "chunked\r\n\r\n0\r\n\r\n",
         400, 0, NULL},
        {"CVE-2022-1705 invalid coding",
         T_POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 400, 0,
         NULL},
        {"CVE-2024-1135 empty coding",
         T_POST "Transfer-Encoding:\r\n\r\n0\r\n\r\n", 400, 0, NULL},
        {"CVE-2020-35884 comma",
         T_POST "Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n", 400, 0, NULL},
        {"CVE-2019-18277 not chunked at the end",
         T_POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400,
         0, NULL},
        {"CVE-2021-22959 blank before colon",
         T_POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400, 0, NULL},
        {"CVE-2024-27982 blank before the name",
         T_POST " Content-Length: 5\r\n\r\nhello", 400, 0, NULL},
        {"CVE-2015-5739 blank in the name",
         T_POST "Content Length: 5\r\n\r\nhello", 400, 0, NULL},
        {"CVE-2022-32214 line feed alone",
         T_POST "X: y\nContent-Length: 5\r\n\r\nhello", 400, 0, NULL},
        {"CVE-2023-30589 carriage return alone",
         T_POST "X: y\rContent-Length: 5\r\n\r\nhello", 400, 0, NULL},
        {"CVE-2025-23167 end of head with CR alone",
         "GET / HTTP/1.1\r\n" T_HOST "\rX\r\n" EVIL, 400, 0, NULL},
        {"CVE-2021-22960 CR in an extension",
         T_CHUNKED "2;\rxx\r\nab\r\n0\r\n\r\n", 400, 0, NULL},
        {"CVE-2024-52304 LF in an extension",
         T_CHUNKED "2;a\nb\r\nab\r\n0\r\n\r\n", 400, 0, NULL},
        {"CVE-2026-33870 line end in a quoted extension",
         T_CHUNKED "2;a=\"\r\nab\r\n\"\r\n0\r\n\r\n", 400, 0, NULL},
        {"CVE-2025-22871 LF after a size", T_CHUNKED "2\nab\r\n0\r\n\r\n",
         400, 0, NULL},
        {"CVE-2025-43859 anything after the data",
         T_CHUNKED "2\r\nabXX0\r\n\r\n", 400, 0, NULL},
        {"CVE-2025-12642 fold in a trailer",
         T_CHUNKED "0\r\nA: b\r\n c\r\n\r\n", 400, 0, NULL},
        {"CVE-2016-8743 form feed", "GET\x0c/ HTTP/1.1\r\n" T_HOST "\r\n", 400,
         0, NULL},
        {"CVE-2023-47627 underscore", T_POST "Content-Length: 1_0\r\n\r\n",
         400, 0, NULL},
        {"CVE-2023-47627 0x", T_POST "Content-Length: 0x5\r\n\r\n", 400, 0,
         NULL},
        {"CVE-2019-12822 only a colon", T_POST ":\r\n\r\n", 400, 0, NULL},
        {"CVE-2017-5674 no slash", "GET system.ini HTTP/1.1\r\n" T_HOST "\r\n",
         400, 0, NULL},
    };
    t_http t;
    REFUSALS(cases);
    /* CVE-2025-9648: a NUL in a value */
    t = t_http_requests(HFSB_LIT(T_POST "Content-Type: a\0b\r\n\r\n"));
    T_CHECK(t.status == 400 && !t.messages);
    t_http_free(&t);
    /* CVE-2025-12642: a trailer changes nothing */
    t = t_http_requests(HFSB_LIT(T_CHUNKED
                                 "0\r\nContent-Length: 99\r\nHost: "
                                 "evil\r\n\r\nGET /2 HTTP/1.0\r\n\r\n"));
    T_CHECK(!t.status && t.messages == 2);
    t_http_free(&t);
}

/* ---- fields of any content ---- */

static void http_accepts_equal_repeated_fields(void) {
    hfsb_http_head head = t_http_first(
        "GET / HTTP/1.1\r\n" T_HOST "Content-Type: a\r\nContent-Type: a\r\n"
        "If-Modified-Since: b\r\nIf-Modified-Since: b\r\n"
        "Range: a\r\nRange: b\r\nAccept: a\r\nAccept: b\r\n\r\n");
    T_CHECK(head.field_count == 9);
}

static void http_accepts_odd_lists(void) {
    static const char *const lists[] = {
        ",,,", ", ,a,,", "TE,,Keep-Alive", "", "\t", "\"", "\"a", "a;",
        ";",   "\"\\"};
    size_t i;
    for (i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        hfsb_buf       text = HFSB_INIT;
        hfsb_http_head head;
        T_CHECK(hfsb_buf_printf(&text,
                                "GET / HTTP/1.1\r\n" T_HOST
                                "Connection: %s\r\nAccept: %s\r\n"
                                "If-Modified-Since: %s\r\nRange: %s\r\n\r\n",
                                lists[i], lists[i], lists[i],
                                lists[i]) == HFSB_OK);
        head = t_http_first(text.ptr);
        T_CHECK(head.keep_alive && head.field_count == 5);
        T_CHECK(!hfsb_http_field_lists(&head, "Accept", "x"));
        T_CHECK(!hfsb_http_field_lists(&head, "Accept", ""));
        hfsb_buf_free(&text);
    }
}

static void http_finds_items_of_lists(void) {
    hfsb_http_head head = t_http_first(
        "GET / HTTP/1.1\r\n" T_HOST
        "Accept: application/json;q=0.1 , text/event-stream ; q=1\r\n"
        "Accept: a;b=\"c, d\", Last\r\n\r\n");
    T_CHECK(hfsb_http_field_lists(&head, "accept", "application/json"));
    T_CHECK(hfsb_http_field_lists(&head, "ACCEPT", "Text/Event-Stream"));
    T_CHECK(hfsb_http_field_lists(&head, "accept", "last"));
    T_CHECK(hfsb_http_field_lists(&head, "accept", "a"));
    T_CHECK(!hfsb_http_field_lists(&head, "accept", "d\""));
    T_CHECK(!hfsb_http_field_lists(&head, "accept", "text"));
    T_CHECK(!hfsb_http_field_lists(&head, "accepts", "a"));
    T_CHECK(hfsb_http_same(HFSB_LIT("aZ[_"), HFSB_LIT("Az[_")));
    T_CHECK(!hfsb_http_same(HFSB_LIT("@"), HFSB_LIT("`")));
    T_CHECK(!hfsb_http_same(HFSB_LIT("a"), HFSB_LIT("ab")));
}

static void http_checks_hosts(void) {
    static const struct {
        const char *host;
        bool        ok;
    } cases[] = {
        {"", true},
        {"a", true},
        {"a:", true},
        {"a:0", true},
        {"a:65535", true},
        {":80", true},
        {"A-b_c.d~", true},
        {"127.0.0.1", true},
        {"a%20b", true},
        {"[::]", true},
        {"[::1]", true},
        {"[1:2:3:4:5:6:7:8]", true},
        {"[1::8]:1", true},
        {"[1::]", true},
        {"[::ffff:1.2.3.4]", true},
        {"[1:2:3:4:5:6:1.2.3.4]", true},
        {"a:b", false},
        {"a:1:2", false},
        {"a:123456", false},
        {"a:-1", false},
        {"a b", false},
        {"a/b", false},
        {"a@b", false},
        {"a?", false},
        {"a#", false},
        {"a\\b", false},
        {"a,b", true},
        {"a%2", false},
        {"a%zz", false},
        {"a%", false},
        {"\xc3\xa9", false},
        {"[", false},
        {"[]", false},
        {"[:]", false},
        {"[:::]", false},
        {"[1]", false},
        {"[1::2::3]", false},
        {"[12345::]", false},
        {"[1:2:3:4:5:6:7:8:9]", false},
        {"[1:2:3:4:5:6:7]", false},
        {"[1:2:3:4:5:6:7::8]", false},
        {"[::1", false},
        {"[::1]a", false},
        {"[::1%25eth0]", false},
        {"[::1.2.3]", false},
        {"[::1.2.3.256]", false},
        {"[::1.2.3.4.5]", false},
        {"[1:2:3:4:5:6:7:1.2.3.4]", false},
        {"[::g]", false},
        {"[::1:]", false},
        {"[1:]", false},
        {"[:1]", false},
        {"a\"", false},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hfsb_buf text = HFSB_INIT;
        t_http   t;
        T_CHECK(hfsb_buf_printf(&text, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n",
                                cases[i].host) == HFSB_OK);
        t = t_http_requests(hfsb_buf_str(&text));
        T_CHECK(t.status == (cases[i].ok ? 0 : 400));
        if (t.status != (cases[i].ok ? 0 : 400))
            printf("  %s\n", cases[i].host);
        t_http_free(&t);
        hfsb_buf_free(&text);
    }
}

/* Hosts, cookies and values of many sizes are kept whole. */
static void http_accepts_fields_of_any_size(void) {
    static const size_t sizes[] = {0, 1, 15, 16, 17, 255, 256, 8191, 16000};
    size_t              i;
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        hfsb_buf       text = HFSB_INIT;
        hfsb_http_head head;
        T_CHECK(hfsb_buf_printf(&text, "GET / HTTP/1.1\r\nHost: ") == HFSB_OK);
        t_repeat(&text, "h", sizes[i]);
        t_repeat(&text, "\r\nX: \xff", 1);
        t_repeat(&text, "\x80", 16000 - sizes[i]);
        t_repeat(&text, "\r\n\r\n", 1);
        head = t_http_first(text.ptr);
        T_CHECK(head.host.len == sizes[i]);
        T_CHECK(hfsb_http_field_find(&head, "x").len == 16001 - sizes[i]);
        hfsb_buf_free(&text);
    }
}

int main(void) {
    T_RUN(http_parser_is_small);
    T_RUN(http_splits_targets);
    T_RUN(http_keeps_fields_unchanged);
    T_RUN(http_knows_when_to_keep_a_connection);
    T_RUN(http_waits_for_100_only_where_a_body_comes);
    T_RUN(http_reads_pipelined_requests);
    T_RUN(http_never_accepts_a_prefix);
    T_RUN(http_accepts_the_empty_view);
    T_RUN(http_refuses_other_protocols_at_their_first_byte);
    T_RUN(http_stays_refused);
    T_RUN(http_errors_name_fault_and_place);
    T_RUN(http_does_not_repeat_known_faults);
    T_RUN(http_accepts_equal_repeated_fields);
    T_RUN(http_accepts_odd_lists);
    T_RUN(http_finds_items_of_lists);
    T_RUN(http_checks_hosts);
    T_RUN(http_accepts_fields_of_any_size);
    return T_END();
}
