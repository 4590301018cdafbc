/* test_http_limits.c - HTTP: every limit, reached and exceeded. */
#include "../support/t_http.h"

static t_http read_limited(const hfsb_buf *text, const char *method,
                           const hfsb_http_limits *limits) {
    return t_http_read_as(hfsb_buf_str(text), method, limits);
}

static void http_limits_the_head(void) {
    hfsb_http_limits limits = HFSB_INIT;
    size_t           n, i;
    limits.max_head = 200;
    for (n = 198; n <= 204; n++)
        for (i = 0; i < 3; i++) {
            hfsb_buf text = HFSB_INIT;
            t_http   t;
            t_repeat(
                &text,
                i == 2 ? "HTTP/1.1 204 x\r\nX: " : "GET / HTTP/1.0\r\nX: ", 1);
            t_repeat(&text, "v", n - text.len - 4);
            t_repeat(&text, i == 1 ? "" : "\r\n\r\n", 1);
            if (i == 1) t_repeat(&text, "v", 4);
            T_CHECK(text.len == n);
            t = read_limited(&text, i == 2 ? "GET" : NULL, &limits);
            if (i == 1) T_CHECK(t.status == (n < 200 ? 0 : 431));
            else T_CHECK(t.status == (n <= 200 ? 0 : 431));
            T_CHECK(!t.status || t.err.code == HFSB_LIMIT);
            T_CHECK(t.messages == (i != 1 && n <= 200));
            t_http_free(&t);
            hfsb_buf_free(&text);
        }
}

static void http_limits_the_head_to_16_kib(void) {
    hfsb_buf text = HFSB_INIT;
    t_http   t = HFSB_INIT;
    t_repeat(&text, "GET / HTTP/1.0\r\nX: ", 1);
    t_repeat(&text, "v", 16384 - text.len - 4);
    t_repeat(&text, "\r\n\r\n", 1);
    t_http_read(&t, hfsb_buf_str(&text));
    T_CHECK(t.messages == 1 && !t.status);
    t_http_free(&t);
    memset(&t, 0, sizeof t);
    text.len -= 4;
    t_repeat(&text, "v\r\n\r\n", 1);
    t_http_read(&t, hfsb_buf_str(&text));
    T_CHECK(!t.messages && t.status == 431);
    t_http_free(&t);
    hfsb_buf_free(&text);
}

static void http_limits_the_target(void) {
    hfsb_http_limits limits = HFSB_INIT;
    size_t           n;
    limits.max_target = 50;
    limits.max_head = 100;
    for (n = 49; n < 120; n++) {
        hfsb_buf text = HFSB_INIT;
        t_http   t;
        t_repeat(&text, "GET /", 1);
        t_repeat(&text, "x", n - 1);
        if (n != 119) t_repeat(&text, " HTTP/1.0\r\n\r\n", 1);
        t = read_limited(&text, NULL, &limits);
        T_CHECK(t.status == (n <= 50 ? 0 : 414));
        T_CHECK(!t.status || t.err.code == HFSB_LIMIT);
        t_http_free(&t);
        hfsb_buf_free(&text);
    }
}

static void http_limits_the_fields(void) {
    size_t n, room;
    for (n = 99; n <= 101; n++)
        for (room = 99; room <= 101; room++) {
            hfsb_http_parser parser;
            hfsb_http_field  fields[101];
            hfsb_http_head   head;
            hfsb_str         piece;
            size_t           used;
            hfsb_buf         text = HFSB_INIT;
            bool             ok = n <= 100 && n <= room;
            t_repeat(&text, "GET / HTTP/1.0\r\n", 1);
            t_repeat(&text, "a: b\r\n", n);
            t_repeat(&text, "\r\n", 1);
            hfsb_http_parser_init(&parser, NULL);
            T_CHECK(hfsb_http_next(&parser, hfsb_buf_str(&text), fields, room,
                                   &head, &piece, &used, NULL) ==
                    (ok ? HFSB_HTTP_HEAD : HFSB_HTTP_BAD));
            T_CHECK(hfsb_http_parser_status(&parser) == (ok ? 0 : 431));
            T_CHECK(!ok || (head.field_count == n && used == text.len));
            hfsb_buf_free(&text);
        }
}

static void http_limits_the_lines_of_chunks(void) {
    size_t n;
    for (n = 250; n < 262; n++) {
        hfsb_buf text = HFSB_INIT;
        t_http   t;
        t_repeat(&text, T_CHUNKED "1;", 1);
        t_repeat(&text, "x", n - 2);
        t_repeat(&text, "\r\na\r\n0\r\n\r\n", 1);
        t = t_http_requests(hfsb_buf_str(&text));
        T_CHECK(t.messages == (n <= 256));
        T_CHECK(t.status == (n <= 256 ? 0 : 400));
        t_http_free(&t);
        hfsb_buf_free(&text);
    }
}

static void http_limits_the_trailers(void) {
    hfsb_http_limits limits = HFSB_INIT;
    size_t           n;
    limits.max_head = 300;
    for (n = 99; n <= 101; n++) {
        hfsb_buf text = HFSB_INIT;
        t_http   t;
        t_repeat(&text, T_CHUNKED "0\r\n", 1);
        t_repeat(&text, "a: b\r\n", n);
        t_repeat(&text, "\r\n", 1);
        t = t_http_requests(hfsb_buf_str(&text));
        T_CHECK(t.status == (n <= 100 ? 0 : 431));
        t_http_free(&t);
        hfsb_buf_free(&text);
    }
    for (n = 290; n <= 310; n++) {
        hfsb_buf text = HFSB_INIT;
        t_http   t;
        t_repeat(&text, T_CHUNKED "0\r\nA: b\r\nX: ", 1);
        t_repeat(&text, "x", n - 6 - 3 - 4);
        t_repeat(&text, "\r\n\r\n", 1);
        t = read_limited(&text, NULL, &limits);
        T_CHECK(t.status == (n <= 300 ? 0 : 431));
        t_http_free(&t);
        hfsb_buf_free(&text);
    }
}

/* CVE-2024-22019: small chunks are accepted, but only a few that are smaller
   than their lines. */
static void http_limits_the_overhead_of_chunks(void) {
    hfsb_buf text = HFSB_INIT;
    t_http   t = HFSB_INIT;
    t_repeat(&text, T_CHUNKED, 1);
    t_repeat(&text, "1\r\na\r\n", 50000);
    t_repeat(&text, "0\r\n\r\n", 1);
    t_http_read(&t, hfsb_buf_str(&text));
    T_CHECK(t.messages == 1 && t.body.len == 50000);
    t_http_free(&t);
    memset(&t, 0, sizeof t);
    hfsb_buf_truncate(&text, 0);
    t_repeat(&text, T_CHUNKED, 1);
    t_repeat(&text, "1;abcdefghijklmnopqrstuvwxyz\r\na\r\n", 700);
    t_http_read(&t, hfsb_buf_str(&text));
    T_CHECK(!t.messages && t.status == 400);
    T_CHECK(t.body.len > 500 && t.body.len < 650);
    t_http_free(&t);
    memset(&t, 0, sizeof t);
    hfsb_buf_truncate(&text, 0); /* what large ones bring counts for them */
    t_repeat(&text, T_CHUNKED, 1);
    t_repeat(&text,
             "1e;abcdefghijklmnopqrstuvwxyz\r\n"
             "012345678901234567890123456789\r\n",
             3000);
    t_repeat(&text, "0\r\n\r\n", 1);
    t_http_read(&t, hfsb_buf_str(&text));
    T_CHECK(t.messages == 1 && t.body.len == 90000);
    t_http_free(&t);
    hfsb_buf_free(&text);
}

static void http_accepts_the_largest_sizes(void) {
    hfsb_http_head head =
        t_http_first("PUT / HTTP/1.0\r\nContent-Length: 9223372036854775807"
                     "\r\n\r\n");
    t_http t;
    T_CHECK(head.length == 9223372036854775807ull);
    t = t_http_requests(HFSB_LIT(T_CHUNKED "7fffffffffffffff\r\nabc"));
    T_CHECK(!t.status && !t.messages && !t.end && t.body.len == 3);
    t_http_free(&t);
    t = t_http_requests(HFSB_LIT(T_POST
                                 "Content-Length: 000000000000000000000000"
                                 "3\r\n\r\nabc"));
    T_CHECK(t.messages == 1 && t.body.len == 3);
    t_http_free(&t);
}

int main(void) {
    T_RUN(http_limits_the_head);
    T_RUN(http_limits_the_head_to_16_kib);
    T_RUN(http_limits_the_target);
    T_RUN(http_limits_the_fields);
    T_RUN(http_limits_the_lines_of_chunks);
    T_RUN(http_limits_the_trailers);
    T_RUN(http_limits_the_overhead_of_chunks);
    T_RUN(http_accepts_the_largest_sizes);
    return T_END();
}
