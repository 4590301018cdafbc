/* test_http_reply.c - replies, read less strictly than requests because of how
   real servers write them. */
#include "../support/t_http.h"

static void http_reads_replies(void) {
    static const struct {
        const char *method, *stream;
        int         reply; /* 0: refused */
        bool        over;  /* its end is there without the connection's */
        size_t      body;
    } cases[] = {
        {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", 200, true,
         2},
        {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", 200, true,
         0},
        {"CONNECT", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", 200,
         true, 0},
        {"CONNECT", "HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nabc", 404,
         true, 2},
        {"GET", "HTTP/1.1 204 \r\nContent-Length: 2\r\n\r\nabc", 204, true, 0},
        {"GET", "HTTP/1.1 304\r\nTransfer-Encoding: chunked\r\n\r\nabc", 304,
         true, 0},
        {"GET", "HTTP/1.1 200 OK\r\n\r\nabc", 200, false, 3},
        {"GET", "HTTP/1.1 200 OK\r\n\r\n", 200, false, 0},
        {"GET",
         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\nA: b\n\nHTTP/1.1 201 "
         "OK\nContent-Length: 1\n\nabc",
         201, true, 1},
        {"GET", "HTTP/1.1 101 Switch\r\nUpgrade: x\r\n\r\nabc", 101, true, 0},
        {"GET",
         "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: "
         "chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
         200, true, 1},
        {"GET",
         "HTTP/1.1 200 OK\r\nContent-Length: 1,01\r\ncontent-length: "
         "1\r\n\r\na",
         200, true, 1},
        {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\na", 0, false,
         0},
        {"GET",
         "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: "
         "2\r\n\r\na",
         0, false, 0},
        {"GET", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\na", 0, false, 0},
        {"GET", "HTTP/1.1 200 OK\r\nContent-Length: ,\r\n\r\na", 0, false, 0},
        {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", 200,
         false, 3},
        {"GET",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nabc", 0,
         false, 0},
        {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, x\r\n\r\nabc",
         0, false, 0},
        {"GET", "HTTP/1.1 200 OK\r\nA: b\r\n  c\r\n\r\n", 200, false, 0},
        {"GET", "HTTP/1.1 200 OK\r\n A: b\r\n\r\n", 0, false, 0},
        {"GET", "HTTP/1.1 200 OK\r\nA: b\r\n  \x01\r\n\r\n", 0, false, 0},
        {"GET", "HTTP/1.1   200   OK\r\n\r\n", 200, false, 0},
        {"GET", "HTTP/1.1 200OK\r\n\r\n", 0, false, 0},
        {"GET", "HTTP/1.1 2000\r\n\r\n", 0, false, 0},
        {"GET", "HTTP/1.1 20\r\n\r\n", 0, false, 0},
        {"GET", "HTTP/1.1 099 x\r\n\r\n", 0, false, 0},
        {"GET", "HTTP/1.2 200 OK\r\n\r\n", 0, false, 0},
        {"GET", "HTTP/1.9 200 OK\r\n\r\n", 0, false, 0},
        {"GET", "HTTP/0.8 200 OK\r\n\r\n", 0, false, 0},
        {"GET", "HTTP/0.9 200 OK\r\n\r\n", 200, false, 0},
        {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\n\r\nabc", 200,
         false, 3},
        {"GET", "HTTP/2.0 200 OK\r\n\r\n", 0, false, 0},
        {"GET", "HTTP/1.1 200 O\x01\r\n\r\n", 0, false, 0},
        {"GET", "HTTP/1.1\t200 OK\r\n\r\n", 0, false, 0},
        {"GET", "\r\nHTTP/1.1 200 OK\r\n\r\n", 0, false, 0},
        {"GET", "<html>", 0, false, 0},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        t_http t =
            t_http_read_as(hfsb_cstr(cases[i].stream), cases[i].method, NULL);
        bool ok = cases[i].reply ? !t.status && t.reply == cases[i].reply &&
                                       (t.messages == 1) == cases[i].over &&
                                       t.end && t.body.len == cases[i].body
                                 : t.status && !t.messages;
        T_CHECK(ok);
        if (!ok) printf("  %s\n%s\n", cases[i].stream, t.events.ptr);
        t_http_free(&t);
    }
}

static void http_splits_replies(void) {
    hfsb_http_head head = t_http_first("HTTP/1.0 404  Not  Found \nA: b\n"
                                       "C:\n \n d\n\te \nF: g\n\n");
    T_CHECK(head.status == 404 && head.minor == 0 && head.field_count == 3);
    T_STR(head.reason, "Not  Found ");
    T_STR(hfsb_http_field_find(&head, "A"), "b");
    T_STR(hfsb_http_field_find(&head, "C"), "d\n\te");
    T_STR(hfsb_http_field_find(&head, "F"), "g");
    T_CHECK(!head.method.len && !head.host.len && !head.path.len);
}

int main(void) {
    T_RUN(http_reads_replies);
    T_RUN(http_splits_replies);
    return T_END();
}
