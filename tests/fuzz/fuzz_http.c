/* fuzz_http.c - messages of HTTP under libFuzzer. The first byte says whether
   they are requests or replies, and with what limits; the second how they are
   cut. Whatever the cut, the events, the status and the place and words of a
   refusal must be the same; what was read must survive writing and reading.
   Targets and queries of requests are decoded and encoded again. */
#ifdef HFSBI_SPLIT
#include "../../src/core/core_private.h"
#include "../../src/http/http.h"
#else
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"
#endif
#include "must.h"

#define ROOM 64

typedef struct reading {
    const hfsb_http_limits *limits;
    const char             *method; /* NULL: requests */
    hfsb_buf                seen;
    hfsb_buf                heads; /* the first message, written again */
    int                     status;
    bool                    over; /* the first message is over */
} reading;

static void say(hfsb_buf *out, hfsb_str s) {
    MUST(hfsb_buf_append(out, s) == HFSB_OK);
    MUST(hfsb_buf_append_byte(out, '\n') == HFSB_OK);
}

/* A view shows bytes of the input, or one of ours. */
static void must_be_inside(hfsb_str s, hfsb_str in) {
    if (s.len == 1 && *s.ptr == '/') return;
    MUST(!s.len || (s.ptr >= in.ptr && s.ptr + s.len <= in.ptr + in.len));
}

static bool has_line_end(hfsb_str s) {
    return hfsb_str_find_byte(s, '\n') != HFSB_NPOS ||
           hfsb_str_find_byte(s, '\r') != HFSB_NPOS;
}

static void check_head(const hfsb_http_head *head, hfsb_str in, bool reply) {
    size_t i;
    must_be_inside(head->method, in);
    must_be_inside(head->target, in);
    must_be_inside(head->host, in);
    must_be_inside(head->path, in);
    must_be_inside(head->query, in);
    must_be_inside(head->reason, in);
    for (i = 0; i < head->field_count; i++) {
        must_be_inside(head->fields[i].name, in);
        must_be_inside(head->fields[i].value, in);
        MUST(head->fields[i].name.len > 0);
        MUST(reply || !has_line_end(head->fields[i].value));
        MUST(hfsb_http_field_find(head, "host").ptr ||
             !hfsb_http_field_count(head, "HOST"));
    }
    if (reply) return;
    MUST(head->path.len > 0);
    MUST(!head->minor || hfsb_http_field_count(head, "host") == 1);
    MUST(hfsb_http_field_count(head, "content-length") +
             hfsb_http_field_count(head, "transfer-encoding") <=
         1);
    MUST((head->body == HFSB_HTTP_LENGTH) ==
         (hfsb_http_field_count(head, "content-length") == 1));
    MUST((head->body == HFSB_HTTP_CHUNKED) ==
         hfsb_http_field_lists(head, "Transfer-Encoding", "chunked"));
}

static void check_target(const hfsb_http_head *head) {
    hfsb_buf plain = HFSB_INIT, coded = HFSB_INIT, again = HFSB_INIT;
    hfsb_err err;
    if (hfsb_http_decode(head->path, &plain, &err) == HFSB_OK) {
        MUST(plain.len <= head->path.len);
        MUST(hfsb_http_encode(hfsb_buf_str(&plain), true, &coded) == HFSB_OK);
        if (hfsb_str_find_byte(hfsb_buf_str(&plain), '\0') == HFSB_NPOS) {
            MUST(hfsb_http_decode(hfsb_buf_str(&coded), &again, NULL) ==
                 HFSB_OK);
            MUST(hfsb_str_equal(hfsb_buf_str(&plain), hfsb_buf_str(&again)));
        }
    } else {
        MUST(err.pos < head->path.len && head->path.ptr[err.pos] == '%');
    }
    hfsb_buf_truncate(&plain, 0);
    if (hfsb_http_query_find(head->query, "a", &plain, &err) == HFSB_SYNTAX)
        MUST(err.pos < head->query.len && !plain.len);
    hfsb_buf_free(&plain);
    hfsb_buf_free(&coded);
    hfsb_buf_free(&again);
}

static void tell_head(reading *r, const hfsb_http_head *head) {
    size_t i;
    say(&r->seen, head->method);
    say(&r->seen, head->target);
    say(&r->seen, head->host);
    say(&r->seen, head->path);
    say(&r->seen, head->query);
    say(&r->seen, head->reason);
    MUST(hfsb_buf_printf(&r->seen, "%d %d %d %d %d %llu\n", head->status,
                         head->minor, head->keep_alive, head->expect_continue,
                         (int)head->body, head->length) == HFSB_OK);
    for (i = 0; i < head->field_count; i++) {
        say(&r->seen, head->fields[i].name);
        say(&r->seen, head->fields[i].value);
    }
}

/* The writer takes all that was read; but not values that hold what it never
   writes (tabs, and the folds of replies). */
static void write_head(reading *r, const hfsb_http_head *head) {
    size_t i;
    bool   ok = true;
    if (r->method)
        ok = hfsb_http_put_reply(&r->heads, head->status) == HFSB_OK;
    else
        ok = hfsb_http_put_request(&r->heads, head->method, head->target) ==
             HFSB_OK;
    MUST(ok);
    for (i = 0; i < head->field_count; i++) {
        hfsb_str    value = head->fields[i].value;
        hfsb_status st =
            hfsb_http_put_field(&r->heads, head->fields[i].name, value);
        bool plain = !has_line_end(value) &&
                     hfsb_str_find_byte(value, '\t') == HFSB_NPOS;
        MUST((st == HFSB_OK) == plain);
    }
    MUST(hfsb_http_put_head_end(&r->heads) == HFSB_OK);
}

/* One call; false when there is nothing more to be had from [*at, got). */
static bool call(reading *r, hfsb_http_parser *parser, hfsb_str all,
                 size_t got, size_t *at) {
    hfsb_http_field fields[ROOM];
    hfsb_http_head  head;
    hfsb_str        piece = HFSB_INIT, in;
    hfsb_err        err;
    size_t          used, n = got - *at;
    hfsb_http_event event;
    char           *exact = (char *)malloc(n ? n : 1);
    bool            idle;
    MUST(exact != NULL);
    if (n) memcpy(exact, all.ptr + *at, n);
    in = hfsb_str_make(exact, n);
    event = hfsb_http_next(parser, in, fields, ROOM, &head, &piece, &used,
                           &err);
    MUST(used <= n);
    idle = hfsb_http_parser_idle(parser);
    if (event == HFSB_HTTP_HEAD) {
        MUST(used > 0 && head.field_count <= ROOM);
        check_head(&head, in, r->method != NULL);
        if (!r->method) check_target(&head);
        tell_head(r, &head);
        if (!r->heads.len) write_head(r, &head);
    } else if (event == HFSB_HTTP_BODY) {
        MUST(piece.len > 0);
        must_be_inside(piece, in);
        /* pieces depend on the cut, their bytes do not */
        if (r->seen.len && r->seen.ptr[r->seen.len - 1] == '\1')
            hfsb_buf_truncate(&r->seen, r->seen.len - 1);
        MUST(hfsb_buf_append(&r->seen, piece) == HFSB_OK);
        MUST(hfsb_buf_append_byte(&r->seen, '\1') == HFSB_OK);
    } else if (event == HFSB_HTTP_END) {
        MUST(idle);
        say(&r->seen, HFSB_LIT("end"));
        r->over = true;
    } else if (event == HFSB_HTTP_BAD) {
        r->status = hfsb_http_parser_status(parser);
        MUST(r->status == 400 || r->status == 414 || r->status == 431 ||
             r->status == 501 || r->status == 505);
        MUST(err.pos <= n && err.msg[0] && !idle);
        MUST(hfsb_utf8_validate(hfsb_cstr(err.msg)) == strlen(err.msg));
        MUST(hfsb_buf_printf(&r->seen, "bad %d %zu %s\n", r->status,
                             *at + err.pos, err.msg) == HFSB_OK);
    } else {
        MUST(event == HFSB_HTTP_MORE);
    }
    free(exact);
    *at += used;
    return event != HFSB_HTTP_MORE && event != HFSB_HTTP_BAD;
}

static void read_all(reading *r, hfsb_str all, size_t cut) {
    hfsb_http_parser parser;
    size_t           got = 0, at = 0;
    if (r->method) {
        hfsb_http_parser_init_reply(&parser, r->limits);
        hfsb_http_parser_begin_reply(&parser, hfsb_cstr(r->method));
    } else {
        hfsb_http_parser_init(&parser, r->limits);
    }
    do {
        size_t n = cut ? 1 + cut * (got + 7) % 13 % cut : all.len;
        got = all.len - got < n ? all.len : got + n;
        while (call(r, &parser, all, got, &at)) continue;
    } while (got < all.len && !r->status);
    say(&r->seen, hfsb_http_parser_end(&parser) ? HFSB_LIT("fine")
                                                : HFSB_LIT("cut"));
}

static void reading_free(reading *r) {
    hfsb_buf_free(&r->seen);
    hfsb_buf_free(&r->heads);
}

/* What was written of the first head is read again, as the same but for the
   version and what the writer refused; writing that gives the same bytes. */
static void check_again(const reading *first) {
    reading again = HFSB_INIT;
    again.method = first->method;
    read_all(&again, hfsb_buf_str(&first->heads), 0);
    if (!again.status)
        MUST(hfsb_str_equal(hfsb_buf_str(&again.heads),
                            hfsb_buf_str(&first->heads)));
    reading_free(&again);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    static const char *const methods[] = {NULL, "GET", "HEAD", "CONNECT"};
    hfsb_http_limits         small = HFSB_INIT;
    reading                  whole = HFSB_INIT, cut = HFSB_INIT;
    hfsb_str                 all;
    if (size < 2) return 0;
    small.max_head = 200;
    small.max_target = 30;
    small.max_fields = 5;
    small.max_chunk_line = 20;
    whole.limits = cut.limits = data[0] & 16 ? &small : NULL;
    whole.method = cut.method = methods[data[0] & 8 ? 1 + data[0] % 3 : 0];
    all = hfsb_str_make((const char *)data + 2, size - 2);
    read_all(&whole, all, 0);
    read_all(&cut, all, 1 + data[1] % 16);
    if (!hfsb_str_equal(hfsb_buf_str(&whole.seen), hfsb_buf_str(&cut.seen)))
        fprintf(stderr, "whole:\n%s\ncut:\n%s\n", whole.seen.ptr,
                cut.seen.ptr);
    MUST(hfsb_str_equal(hfsb_buf_str(&whole.seen), hfsb_buf_str(&cut.seen)));
    if (whole.heads.len) check_again(&whole);
    reading_free(&whole);
    reading_free(&cut);
    return 0;
}
