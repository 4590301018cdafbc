/* t_transport_list.h - what every transport promises (see hfsb_transport), as
   one list: tt_conforms(). */
#ifndef T_TRANSPORT_LIST_H
#define T_TRANSPORT_LIST_H
#include "t_transport.h"

/* ---- replies, one a row ---- */

typedef struct tt_case {
    const char *name, *method;
    tt_step     script[6];
    hfsb_status st;
    int         status;
    const char *body;
} tt_case;

static const tt_case tt_cases[] = {
    {"a length", "GET", {TT_BEGIN, TT_SAY(TT_HI)}, HFSB_OK, 200, "hi"},
    {"chunks and a trailer", "POST",
     {TT_BEGIN, TT_SAY("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked"
                       "\r\n\r\n1;x=y\r\nh\r\n1\r\ni\r\n0\r\nX-T: 1\r\n\r\n")},
     HFSB_OK, 201, "hi"},
    {"until the end, of 1.0", "GET",
     {TT_BEGIN, TT_SAY("HTTP/1.0 200 OK\r\n\r\nhi"), TT_SHUT},
     HFSB_OK, 200, "hi"},
    {"none for HEAD", "HEAD",
     {TT_BEGIN, TT_SAY("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")},
     HFSB_OK, 200, ""},
    {"none with 204", "DELETE",
     {TT_BEGIN, TT_SAY("HTTP/1.1 204 No Content\r\n\r\n")}, HFSB_OK, 204, ""},
    {"none with 304", "GET",
     {TT_BEGIN, TT_SAY("HTTP/1.1 304 Not Modified\r\nContent-Length: 7"
                       "\r\n\r\n")}, HFSB_OK, 304, ""},
    {"interim replies", "POST",
     {TT_BEGIN, TT_SAY("HTTP/1.1 100 Continue\r\nX-I: 1\r\n\r\nHTTP/1.1 103 "
                       "Early Hints\r\n\r\n" TT_HI)}, HFSB_OK, 200, "hi"},
    {"a redirect is a reply", "GET",
     {TT_BEGIN, TT_SAY("HTTP/1.1 302 Found\r\nLocation: /c\r\n"
                       "Content-Length: 2\r\n\r\nhi")}, HFSB_OK, 302, "hi"},
    {"an error is a reply", "PUT",
     {TT_BEGIN, TT_SAY("HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nhi")},
     HFSB_OK, 500, "hi"},
    {"closed before a reply", "GET", {TT_BEGIN, TT_SHUT}, HFSB_LOST, 0, ""},
    {"closed before a reply", "POST", {TT_BEGIN, TT_SHUT}, HFSB_LOST, 0, ""},
    {"reset before a reply", "POST",
     {TT_BEGIN, {TT_RESET, NULL, 0}}, HFSB_LOST, 0, ""},
    {"closed in the head", "GET",
     {TT_BEGIN, TT_SAY("HTTP/1.1 200 OK\r\nContent-Le"), TT_SHUT},
     HFSB_LOST, 0, ""},
    {"closed in the body", "GET",
     {TT_BEGIN, TT_SAY("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"),
      TT_SHUT}, HFSB_LOST, 200, "hi"},
    {"closed between chunks", "GET",
     {TT_BEGIN, TT_SAY("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "2\r\nhi\r\n"), TT_SHUT}, HFSB_LOST, 200, "hi"},
    {"reset in the body", "GET",
     {TT_BEGIN, TT_SAY("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"),
      {TT_WAIT, NULL, 60}, {TT_RESET, NULL, 0}}, HFSB_LOST, 200, "hi"},
    {"not HTTP", "GET",
     {TT_BEGIN, TT_SAY("SSH-2.0-server\r\n\r\n"), TT_SHUT},
     HFSB_REMOTE, 0, ""},
    {"a line that is no field", "GET",
     {TT_BEGIN, TT_SAY("HTTP/1.1 200 OK\r\nnonsense\r\n"
                       "Content-Length: 2\r\n\r\nhi"), TT_SHUT},
     HFSB_REMOTE, 0, ""},
    {"an invalid chunk", "GET",
     {TT_BEGIN, TT_SAY("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "xyz\r\nhi\r\n"), TT_SHUT}, HFSB_REMOTE, 200, ""},
};

static void tt_replies(const hfsb_transport *t) {
    size_t i, failed = t_failed;
    for (i = 0; i < sizeof tt_cases / sizeof *tt_cases; i++) {
        const tt_case *c = &tt_cases[i];
        tt_peer        peer;
        tt_result      r = HFSB_INIT;
        tt_start(&peer, c->script);
        tt_perform(t, peer.port, tt_call(c->method), &r);
        tt_stop(&peer);
        T_CHECK(r.st == c->st && r.sent && r.status == c->status);
        T_CHECK(r.heads == (c->status ? 1 : 0));
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.body), hfsb_cstr(c->body)));
        T_CHECK(peer.requests == 1);
        if (failed != t_failed)
            printf("  in \"%s\", %s: %s, %d, \"%s\": %s\n", c->name,
                   c->method, hfsb_status_text(r.st), r.status,
                   r.body.ptr ? r.body.ptr : "", r.err.msg);
        failed = t_failed;
        tt_drop(&r);
        hfsb_buf_free(&peer.seen);
    }
}

/* ---- what is sent ---- */

/* Nothing that was not asked for. */
static void tt_sends_what_was_given(const hfsb_transport *t) {
    hfsb_http_field fields[3];
    hfsb_http_call  call = tt_call("PATCH");
    tt_peer         peer;
    tt_result       r = HFSB_INIT;
    hfsb_buf        host = HFSB_INIT;
    fields[0].name = HFSB_LIT("X-One");
    fields[0].value = HFSB_LIT("a b");
    fields[1].name = HFSB_LIT("X-Empty");
    fields[1].value = HFSB_LIT("");
    fields[2].name = HFSB_LIT("accept");
    fields[2].value = HFSB_LIT("text/event-stream");
    call.fields = fields;
    call.field_count = 3;
    call.body = HFSB_LIT("a\0b");
    tt_start(&peer, tt_answer);
    tt_perform(t, peer.port, call, &r);
    tt_stop(&peer);
    T_CHECK(r.st == HFSB_OK);
    T_STR(r.fields, "Content-Length=2\n");
    T_CHECK(hfsb_buf_printf(&host, "Host: 127.0.0.1:%u\r\n", peer.port) ==
            HFSB_OK);
    T_CHECK(tt_has(&peer.seen, host.ptr));
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&peer.seen),
                            HFSB_LIT("PATCH /a/../b?q=%20 HTTP/1.1\r\n")));
    T_CHECK(tt_has(&peer.seen, "\r\nX-One: a b\r\n"));
    T_CHECK(tt_has(&peer.seen, "\r\nX-Empty:"));
    T_CHECK(tt_has(&peer.seen, "\r\naccept: text/event-stream\r\n"));
    T_CHECK(tt_has(&peer.seen, "\r\nContent-Length: 3\r\n"));
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&peer.seen), HFSB_LIT("\r\n\r\na\0b")));
    T_CHECK(!tt_has(&peer.seen, "Accept:") && !tt_has(&peer.seen, "Expect") &&
            !tt_has(&peer.seen, "Content-Type") &&
            !tt_has(&peer.seen, "User-Agent") &&
            !tt_has(&peer.seen, "Cookie"));
    tt_drop(&r);
    hfsb_buf_free(&peer.seen);
    hfsb_buf_free(&host);
}

static void tt_a_post_without_body_says_so(const hfsb_transport *t) {
    tt_peer   peer;
    tt_result r = HFSB_INIT;
    tt_start(&peer, tt_answer);
    tt_perform(t, peer.port, tt_call("POST"), &r);
    tt_stop(&peer);
    T_CHECK(r.st == HFSB_OK);
    T_CHECK(tt_has(&peer.seen, "\r\nContent-Length: 0\r\n"));
    T_CHECK(!tt_has(&peer.seen, "Content-Type"));
    tt_drop(&r);
    hfsb_buf_free(&peer.seen);
    tt_start(&peer, tt_answer);
    tt_perform(t, peer.port, tt_call("GET"), &r);
    tt_stop(&peer);
    T_CHECK(!tt_has(&peer.seen, "Content-Length"));
    tt_drop(&r);
    hfsb_buf_free(&peer.seen);
}

static void tt_a_body_in_pieces(const hfsb_transport *t) {
    static const size_t gives[] = {1000000, 7, 1};
    size_t              i;
    for (i = 0; i < 3; i++) {
        hfsb_http_call call = tt_call("PUT");
        tt_peer        peer;
        tt_result      r = HFSB_INIT;
        r.give = gives[i];
        call.body_read = tt_body_read;
        call.body_length = i ? 5000 : 3000000;
        tt_start(&peer, tt_answer);
        tt_perform(t, peer.port, call, &r);
        tt_stop(&peer);
        T_CHECK(r.st == HFSB_OK && r.sent);
        T_CHECK(hfsb_str_count_byte(hfsb_buf_str(&peer.seen), 'b') ==
                (size_t)call.body_length + 1); /* and the one of the path */
        tt_drop(&r);
        hfsb_buf_free(&peer.seen);
    }
}

static void tt_a_body_that_fails(const hfsb_transport *t) {
    static const tt_step script[] = {{TT_ACCEPT, NULL, 0}, {TT_HEAD, NULL, 0},
                                     TT_DONE, {TT_END, NULL, 0}};
    hfsb_http_call       call = tt_call("PUT");
    tt_peer              peer;
    tt_result            r = HFSB_INIT;
    call.body_read = tt_body_read;
    call.body_length = 10;
    tt_start(&peer, script);
    tt_perform(t, peer.port, call, &r);
    tt_stop(&peer);
    T_CHECK(r.st == HFSB_FULL && !strcmp(r.err.msg, "no such disk"));
    tt_drop(&r);
    hfsb_buf_free(&peer.seen);
}

/* A peer that does not want the body says so and closes; its reply counts,
   not that the rest could not be sent. */
static void tt_an_early_reply(const hfsb_transport *t) {
    static const tt_step script[] = {
        {TT_ACCEPT, NULL, 0}, {TT_HEAD, NULL, 0},
        TT_SAY("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n"
               "Connection: close\r\n\r\nno"),
        {TT_WAIT, NULL, 100}, TT_SHUT, {TT_END, NULL, 0}};
    int pieces;
    for (pieces = 0; pieces < 2; pieces++) {
        hfsb_http_call call = tt_call("PUT");
        hfsb_buf       bytes = HFSB_INIT;
        tt_peer        peer;
        tt_result      r = HFSB_INIT;
        if (pieces) {
            r.give = 10000;
            call.body_read = tt_body_read;
            call.body_length = 30000000;
        } else {
            T_CHECK(hfsb_buf_reserve(&bytes, 10000000) == HFSB_OK);
            memset(bytes.ptr, 'a', bytes.len = 10000000);
            call.body = hfsb_buf_str(&bytes);
        }
        tt_start(&peer, script);
        tt_perform(t, peer.port, call, &r);
        tt_stop(&peer);
        T_CHECK(r.st == HFSB_OK && r.sent && r.status == 413);
        if (r.st) printf("  %s\n", r.err.msg);
        T_STR(r.body, "no");
        tt_drop(&r);
        hfsb_buf_free(&peer.seen);
        hfsb_buf_free(&bytes);
    }
}

static void tt_refuses_what_cannot_be_sent(const hfsb_transport *t) {
    static const char *const urls[] = {"ftp://127.0.0.1/", "http://",
                                       "127.0.0.1", "http://a b/",
                                       "file:///etc/hostname"};
    static const char *const names[] = {"X\r\nY", "", "a b", "a:b"};
    size_t                   i;
    hfsb_http_field          field;
    hfsb_http_call           call = tt_call("GET");
    tt_result                r = HFSB_INIT;
    for (i = 0; i < sizeof urls / sizeof *urls; i++) {
        call.url = hfsb_cstr(urls[i]);
        tt_perform(t, 1, call, &r);
        T_CHECK(r.st == HFSB_ARG && !r.sent);
    }
    call.url = hfsb_cstr("http://127.0.0.1:1/");
    call.fields = &field;
    call.field_count = 1;
    field.value = HFSB_LIT("v");
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        field.name = hfsb_cstr(names[i]);
        tt_perform(t, 1, call, &r);
        T_CHECK(r.st == HFSB_ARG && !r.sent);
    }
    field.name = HFSB_LIT("X-Token");
    field.value = HFSB_LIT("secret\r\nX: y");
    tt_perform(t, 1, call, &r);
    T_CHECK(r.st == HFSB_ARG && !r.sent && !strstr(r.err.msg, "secret"));
    call.field_count = 0;
    call.method = HFSB_LIT("GET /");
    tt_perform(t, 1, call, &r);
    T_CHECK(r.st == HFSB_ARG && !r.sent);
    tt_drop(&r);
}

/* ---- connections ---- */

static void tt_nobody_listens(const hfsb_transport *t) {
    unsigned  port;
    int       fd = tt_listen(&port, 1);
    tt_result r = HFSB_INIT;
    hfsbi_close(&fd);
    tt_perform(t, port, tt_call("POST"), &r);
    T_CHECK(r.st == HFSB_CONNECT && !r.sent);
    tt_drop(&r);
}

/* The kernel drops a SYN once the queue of a listener is full. */
static void tt_a_connection_has_its_time(const hfsb_transport *t) {
    unsigned           port;
    int                fd = tt_listen(&port, 0), fill[3] = {-1, -1, -1};
    size_t             i;
    struct sockaddr_in at = HFSB_INIT;
    hfsb_http_call     call = tt_call("GET");
    tt_result          r = HFSB_INIT;
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons((unsigned short)port);
    for (i = 0; i < 3; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                         0);
        (void)connect(fill[i], (struct sockaddr *)&at, sizeof at);
    }
    call.connect_ms = 150;
    tt_perform(t, port, call, &r);
    T_CHECK(r.st == HFSB_TIMEOUT && !r.sent && r.took >= 140 &&
            r.took < 15000);
    for (i = 0; i < 3; i++) hfsbi_close(&fill[i]);
    hfsbi_close(&fd);
    tt_drop(&r);
}

/* As many calls on one connection. */
static void tt_keeps_a_connection(const hfsb_transport *t) {
    static const tt_step script[] = {
        TT_BEGIN, TT_SAY(TT_HI), {TT_READ, NULL, 0}, TT_SAY(TT_HI),
        {TT_READ, NULL, 0}, TT_SAY(TT_HI), {TT_END, NULL, 0}};
    static const char *const methods[] = {"GET", "POST", "DELETE"};
    tt_peer                  peer;
    size_t                   i;
    tt_result                r = HFSB_INIT;
    tt_start(&peer, script);
    for (i = 0; i < 3; i++) {
        tt_perform(t, peer.port, tt_call(methods[i]), &r);
        T_CHECK(r.st == HFSB_OK && r.sent && r.status == 200);
        T_STR(r.body, "hi");
        tt_drop(&r);
    }
    tt_stop(&peer);
    T_CHECK(peer.requests == 3);
    hfsb_buf_free(&peer.seen);
}

/* Reads a second request on a kept connection and closes it: was it done or
   not? Nothing but a GET or HEAD may come again. */
static void tt_sends_nothing_twice(const hfsb_transport *t, const char *method,
                                   size_t body, bool pieces, bool reset) {
    tt_step script[] = {TT_BEGIN, TT_SAY(TT_HI), {TT_READ, NULL, 0},
                        {TT_CLOSE, NULL, 0}, {TT_WAIT, NULL, 50},
                        {TT_END, NULL, 0}};
    hfsb_http_call call = tt_call(method);
    hfsb_buf       bytes = HFSB_INIT;
    tt_peer        peer;
    tt_result      r = HFSB_INIT;
    if (reset) script[4].act = TT_RESET;
    tt_start(&peer, script);
    tt_perform(t, peer.port, tt_call("GET"), &r);
    T_CHECK(r.st == HFSB_OK);
    tt_drop(&r);
    if (body && pieces) {
        r.give = 1000;
        call.body_read = tt_body_read;
        call.body_length = body;
    } else if (body) {
        T_CHECK(hfsb_buf_reserve(&bytes, body) == HFSB_OK);
        memset(bytes.ptr, 'a', bytes.len = body);
        call.body = hfsb_buf_str(&bytes);
    }
    tt_perform(t, peer.port, call, &r);
    /* who tries again is in the listener's queue by now, or was refused */
    tt_stop(&peer);
    T_CHECK(r.st == HFSB_LOST && r.sent && r.status == 0);
    T_CHECK(peer.requests == 2);
    tt_drop(&r);
    hfsb_buf_free(&peer.seen);
    hfsb_buf_free(&bytes);
}

/* The same, with a peer that would answer a second time. */
static void tt_a_second_try(const hfsb_transport *t, const char *method,
                            bool may) {
    static const tt_step script[] = {
        TT_BEGIN, TT_SAY(TT_HI), {TT_READ, NULL, 0}, {TT_ACCEPT, NULL, 0},
        {TT_READ, NULL, 0}, TT_SAY(TT_HI), {TT_END, NULL, 0}};
    tt_peer   peer;
    int       hello;
    tt_result r = HFSB_INIT;
    struct sockaddr_in at = HFSB_INIT;
    tt_start(&peer, script);
    tt_perform(t, peer.port, tt_call("GET"), &r);
    tt_drop(&r);
    tt_perform(t, peer.port, tt_call(method), &r);
    if (r.st == HFSB_OK) {
        T_CHECK(may && r.sent && r.status == 200);
    } else {
        T_CHECK(r.st == HFSB_LOST && r.sent);
        /* so that the peer does not wait for a connection */
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        at.sin_port = htons((unsigned short)peer.port);
        hello = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)connect(hello, (struct sockaddr *)&at, sizeof at);
        hfsbi_close(&hello);
    }
    tt_stop(&peer);
    T_CHECK(peer.requests == (r.st == HFSB_OK ? 3 : 2));
    tt_drop(&r);
    hfsb_buf_free(&peer.seen);
}

/* A kept connection that the peer has closed meanwhile does no harm. */
static void tt_notices_a_closed_connection(const hfsb_transport *t) {
    static const tt_step script[] = {TT_BEGIN, TT_SAY(TT_HI), TT_SHUT,
                                     TT_BEGIN, TT_SAY(TT_HI),
                                     {TT_END, NULL, 0}};
    tt_peer              peer;
    tt_result            r = HFSB_INIT;
    tt_start(&peer, script);
    tt_perform(t, peer.port, tt_call("GET"), &r);
    tt_drop(&r);
    usleep(50000);
    tt_perform(t, peer.port, tt_call("POST"), &r);
    tt_stop(&peer);
    T_CHECK(r.st == HFSB_OK && r.status == 200 && peer.requests == 2);
    tt_drop(&r);
    hfsb_buf_free(&peer.seen);
}

/* ---- time ---- */

static void tt_silence_has_its_limit(const hfsb_transport *t) {
    static const tt_step script[] = {TT_BEGIN, TT_DONE, {TT_END, NULL, 0}};
    hfsb_http_call       call = tt_call("POST");
    tt_peer              peer;
    tt_result            r = HFSB_INIT;
    call.idle_ms = 150;
    tt_start(&peer, script);
    tt_perform(t, peer.port, call, &r);
    tt_stop(&peer);
    T_CHECK(r.st == HFSB_TIMEOUT && r.sent && peer.gone);
    T_CHECK(r.took >= 140 && r.took < 10000);
    tt_drop(&r);
    hfsb_buf_free(&peer.seen);
}

/* A byte now and then is no silence, but the whole has its limit too. */
static void tt_the_whole_has_its_limit(const hfsb_transport *t) {
    static const tt_step script[] = {
        TT_BEGIN, TT_SAY("HTTP/1.1 200 OK\r\n\r\n"), {TT_DRIP, "drip", 20},
        {TT_END, NULL, 0}};
    hfsb_http_call call = tt_call("GET");
    tt_peer        peer;
    tt_result      r = HFSB_INIT;
    call.idle_ms = 600;
    call.total_ms = 900;
    tt_start(&peer, script);
    tt_perform(t, peer.port, call, &r);
    tt_stop(&peer);
    T_CHECK(r.st == HFSB_TIMEOUT && r.sent && r.status == 200);
    T_CHECK(r.took >= 890 && r.took < 10000 && r.body.len > 2);
    tt_drop(&r);
    hfsb_buf_free(&peer.seen);
}

/* ---- cancel ---- */

static void tt_callbacks_may_end_it(const hfsb_transport *t) {
    static const tt_step script[] = {TT_BEGIN,
                                     TT_SAY("HTTP/1.1 200 OK\r\n"
                                            "Content-Length: 9\r\n\r\nhi"),
                                     TT_DONE, {TT_END, NULL, 0}};
    size_t               i;
    for (i = 0; i < 2; i++) {
        tt_peer   peer;
        tt_result r = HFSB_INIT;
        r.stop_at_head = i == 0;
        r.stop_at_body = i == 1;
        tt_start(&peer, script);
        tt_perform(t, peer.port, tt_call("GET"), &r);
        tt_stop(&peer);
        T_CHECK(r.st == HFSB_CANCELLED && r.sent && peer.gone);
        T_CHECK(r.took < 10000 && r.body.len == 2 * i);
        tt_drop(&r);
        hfsb_buf_free(&peer.seen);
    }
}

static void tt_another_thread_may_end_it(const hfsb_transport *t) {
    static const tt_step script[] = {TT_BEGIN, TT_DONE, {TT_END, NULL, 0}};
    hfsb_http_call       call = tt_call("POST");
    hfsb_cancel         *cancel = NULL;
    pthread_t            thread;
    tt_peer              peer;
    tt_result            r = HFSB_INIT;
    if (hfsb_cancel_open(NULL, &cancel, NULL) != HFSB_OK) abort();
    call.cancel = cancel;
    tt_start(&peer, script);
    if (pthread_create(&thread, NULL, tt_cancel_soon, cancel)) abort();
    tt_perform(t, peer.port, call, &r);
    (void)pthread_join(thread, NULL);
    tt_stop(&peer);
    T_CHECK(r.st == HFSB_CANCELLED && r.sent && peer.gone);
    T_CHECK(r.took >= 90 && r.took < 10000);
    tt_drop(&r);
    hfsb_buf_free(&peer.seen);
    tt_perform(t, 1, call, &r); /* set already: nothing is begun */
    T_CHECK(r.st == HFSB_CANCELLED && !r.sent);
    hfsb_cancel_reset(cancel);
    tt_start(&peer, tt_answer);
    tt_perform(t, peer.port, call, &r);
    tt_stop(&peer);
    T_CHECK(r.st == HFSB_OK);
    tt_drop(&r);
    hfsb_buf_free(&peer.seen);
    hfsb_cancel_close(cancel);
}

/* ---- all of it ---- */

HFSBI_UNUSED static void tt_conforms(const hfsb_transport *t) {
    tt_replies(t);
    tt_sends_what_was_given(t);
    tt_a_post_without_body_says_so(t);
    tt_a_body_in_pieces(t);
    tt_a_body_that_fails(t);
    tt_an_early_reply(t);
    tt_refuses_what_cannot_be_sent(t);
    tt_nobody_listens(t);
    tt_a_connection_has_its_time(t);
    tt_keeps_a_connection(t);
    tt_sends_nothing_twice(t, "POST", 0, false, false);
    tt_sends_nothing_twice(t, "POST", 100, false, false);
    tt_sends_nothing_twice(t, "POST", 100000, false, true);
    tt_sends_nothing_twice(t, "PUT", 100, true, false);
    tt_sends_nothing_twice(t, "PUT", 100000, true, true);
    tt_sends_nothing_twice(t, "DELETE", 0, false, true);
    tt_a_second_try(t, "GET", true);
    tt_a_second_try(t, "HEAD", true);
    tt_a_second_try(t, "POST", false);
    tt_a_second_try(t, "DELETE", false);
    tt_notices_a_closed_connection(t);
    tt_silence_has_its_limit(t);
    tt_the_whole_has_its_limit(t);
    tt_callbacks_may_end_it(t);
    tt_another_thread_may_end_it(t);
}
#endif
