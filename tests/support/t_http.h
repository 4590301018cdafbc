/* t_http.h - reads a stream of HTTP messages, cut in any way, and records the
   events as text, so that two cuts can be compared. */
#ifndef T_HTTP_H
#define T_HTTP_H
#include "t.h"
#ifdef HFSBI_SPLIT
#include "../../src/http/http.h"
#endif

typedef struct t_http {
    const hfsb_http_limits *limits;
    const char *method; /* NULL: requests; else replies to that method */
    size_t      step;   /* bytes at a time (0: all) */
    unsigned long long random; /* not 0: pieces of random sizes up to step */
    bool all; /* continue after a message that closes, or a reply */
    /* results */
    hfsb_buf events;   /* every event, without regard to the cut */
    hfsb_buf list;     /* "GET /target 5" and LF for each message */
    hfsb_buf body;     /* of the last message */
    size_t   messages; /* that are over, interim replies not counted */
    int      status;   /* of the refusal; 0: none */
    int      reply;    /* status of the first final reply */
    bool     end;      /* hfsb_http_parser_end() after the last byte */
    bool     closed;   /* the last message closes the connection */
    bool     until_close;
    hfsb_err err;
    size_t   err_at; /* in the stream */
} t_http;

#define T_HTTP_ROOM 8192

HFSBI_UNUSED static void t_http_free(t_http *t) {
    hfsb_buf_free(&t->events);
    hfsb_buf_free(&t->list);
    hfsb_buf_free(&t->body);
}

HFSBI_UNUSED static void t_http_say(t_http *t, const char *what, hfsb_str s) {
    T_CHECK(hfsb_buf_printf(&t->events, "%s<", what) == HFSB_OK);
    T_CHECK(hfsb_buf_append(&t->events, s) == HFSB_OK);
    T_CHECK(hfsb_buf_append(&t->events, HFSB_LIT(">\n")) == HFSB_OK);
}

HFSBI_UNUSED static void t_http_say_head(t_http *t, const hfsb_http_head *h) {
    size_t i;
    t_http_say(t, "method", h->method);
    t_http_say(t, "target", h->target);
    t_http_say(t, "host", h->host);
    t_http_say(t, "path", h->path);
    t_http_say(t, "query", h->query);
    t_http_say(t, "reason", h->reason);
    T_CHECK(hfsb_buf_printf(&t->events, "%d %d %d %d %d %llu\n", h->status,
                            h->minor, h->keep_alive, h->expect_continue,
                            (int)h->body, h->length) == HFSB_OK);
    for (i = 0; i < h->field_count; i++) {
        t_http_say(t, "name", h->fields[i].name);
        t_http_say(t, "value", h->fields[i].value);
    }
}

/* One call on the bytes [at, got) of the stream, in an exact-size block;
   false when more must come or nothing is to follow. */
HFSBI_UNUSED static bool t_http_call(t_http *t, hfsb_http_parser *parser,
                                     hfsb_str stream, size_t got, size_t *at,
                                     bool *closing) {
    static hfsb_http_field fields[T_HTTP_ROOM];
    hfsb_http_head         head;
    hfsb_str               piece, in = t_exact(stream.ptr + *at, got - *at);
    size_t                 used;
    hfsb_http_event event = hfsb_http_next(parser, in, fields, T_HTTP_ROOM,
                                           &head, &piece, &used, &t->err);
    T_CHECK(used <= in.len);
    if (event == HFSB_HTTP_HEAD) {
        hfsb_buf_truncate(&t->body, 0);
        t_http_say_head(t, &head);
        *closing = !head.keep_alive || t->method;
        if (t->method && head.status < 200 && head.status != 101)
            *closing = false;
        t->until_close = head.body == HFSB_HTTP_UNTIL_CLOSE;
        if (!t->reply && (head.status >= 200 || head.status == 101))
            t->reply = head.status;
        T_CHECK(hfsb_buf_append(&t->list, head.method) == HFSB_OK);
        T_CHECK(hfsb_buf_append_byte(&t->list, ' ') == HFSB_OK);
        T_CHECK(hfsb_buf_append(&t->list, head.target) == HFSB_OK);
    } else if (event == HFSB_HTTP_BODY) {
        T_CHECK(piece.len > 0);
        T_CHECK(hfsb_buf_append(&t->body, piece) == HFSB_OK);
    } else if (event == HFSB_HTTP_END) {
        t_http_say(t, "end", hfsb_buf_str(&t->body));
        T_CHECK(hfsb_buf_printf(&t->list, " %zu\n", t->body.len) == HFSB_OK);
        t->closed = *closing;
        t->messages += !t->method || t->reply;
    } else if (event == HFSB_HTTP_BAD) {
        t->status = hfsb_http_parser_status(parser);
        t->err_at = *at + t->err.pos;
        T_CHECK(t->err.pos <= in.len && t->err.msg[0]);
        T_CHECK(hfsb_buf_printf(&t->events, "bad %d at %zu: %s\n", t->status,
                                t->err_at, t->err.msg) == HFSB_OK);
    }
    t_drop(in);
    *at += used;
    if (event == HFSB_HTTP_END && t->closed && !t->all) return false;
    return event != HFSB_HTTP_MORE && event != HFSB_HTTP_BAD;
}

/* Reads the stream with the settings in *t and fills its results. */
HFSBI_UNUSED static void t_http_read(t_http *t, hfsb_str stream) {
    hfsb_http_parser parser;
    size_t           got = 0, at = 0;
    bool             closing = false, go = true;
    if (t->method) {
        hfsb_http_parser_init_reply(&parser, t->limits);
        hfsb_http_parser_begin_reply(&parser, hfsb_cstr(t->method));
    } else {
        hfsb_http_parser_init(&parser, t->limits);
    }
    while (go) {
        size_t n = t->step ? t->step : stream.len;
        if (t->random) n = 1 + (size_t)t_random(&t->random) % n;
        got = stream.len - got < n ? stream.len : got + n;
        while (t_http_call(t, &parser, stream, got, &at, &closing)) continue;
        go = got < stream.len && !t->status &&
             !(t->closed && t->messages && !t->all);
    }
    t->end = hfsb_http_parser_end(&parser);
    T_CHECK(!t->status == (parser.status == 0));
    if (!t->end) t_http_say(t, "unfinished", HFSB_LIT(""));
    if (t->until_close && t->end)
        t_http_say(t, "closed", hfsb_buf_str(&t->body));
}

/* True when another cut of the same stream gives the same events. */
HFSBI_UNUSED static bool t_http_same_in_cut(const t_http *whole,
                                            hfsb_str stream, size_t step,
                                            unsigned long long random) {
    t_http t = HFSB_INIT;
    bool   same;
    t.limits = whole->limits;
    t.method = whole->method;
    t.all = whole->all;
    t.step = step;
    t.random = random;
    t_http_read(&t, stream);
    same = hfsb_str_equal(hfsb_buf_str(&t.events), hfsb_buf_str(&whole->events));
    if (!same)
        printf("in pieces of %zu:\n%.2000s\nas a whole:\n%.2000s\n", step,
               t.events.ptr ? t.events.ptr : "",
               whole->events.ptr ? whole->events.ptr : "");
    t_http_free(&t);
    return same;
}

/* Beginnings of requests. */
#define T_HOST    "Host: a\r\n"
#define T_POST    "POST / HTTP/1.1\r\n" T_HOST
#define T_CHUNKED T_POST "Transfer-Encoding: chunked\r\n\r\n"

/* The results of a stream, which must be the same in other cuts. */
HFSBI_UNUSED static t_http t_http_read_as(hfsb_str stream, const char *method,
                                          const hfsb_http_limits *limits) {
    t_http t = HFSB_INIT;
    t.method = method;
    t.limits = limits;
    t_http_read(&t, stream);
    T_CHECK(t_http_same_in_cut(&t, stream, 1, 0));
    T_CHECK(t_http_same_in_cut(&t, stream, 7, stream.len + 3));
    return t;
}

HFSBI_UNUSED static t_http t_http_requests(hfsb_str stream) {
    return t_http_read_as(stream, NULL, NULL);
}

/* The first head of a stream, which must be there. */
static hfsb_http_field             t_http_fields[128];
HFSBI_UNUSED static hfsb_http_head t_http_first(const char *stream) {
    hfsb_http_parser parser;
    hfsb_http_head   head;
    hfsb_str         piece;
    size_t           used;
    bool             reply = !strncmp(stream, "HTTP/", 5);
    if (reply) hfsb_http_parser_init_reply(&parser, NULL);
    else hfsb_http_parser_init(&parser, NULL);
    T_CHECK(hfsb_http_next(&parser, hfsb_cstr(stream), t_http_fields, 128,
                           &head, &piece, &used, NULL) == HFSB_HTTP_HEAD);
    return head;
}
#endif
