/* test_sse.c - server-sent events, whole and cut anywhere. */
#include "../support/t.h"
#ifdef HFSBI_SPLIT
#include "../../src/net/net.h"
#endif

/* Appends "name=data;" for each event that a piece completes. */
static hfsb_status receive(hfsb_sse *sse, hfsb_str piece, hfsb_buf *text) {
    while (hfsb_sse_next(sse, &piece)) {
        T_CHECK(sse->status == HFSB_OK);
        T_CHECK(hfsb_buf_append(text, hfsb_buf_str(&sse->event)) == HFSB_OK);
        T_CHECK(hfsb_buf_append_byte(text, '=') == HFSB_OK);
        T_CHECK(hfsb_buf_append(text, hfsb_buf_str(&sse->data)) == HFSB_OK);
        T_CHECK(hfsb_buf_append_byte(text, ';') == HFSB_OK);
    }
    T_CHECK(sse->status != HFSB_OK || piece.len == 0);
    return sse->status;
}

/* The stream in exact-size pieces of `step` bytes, the first of `first`. */
static hfsb_status feed(hfsb_buf *text, hfsb_str stream, size_t first,
                        size_t step) {
    hfsb_sse    sse = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    size_t      at = 0, n = first;
    while (at < stream.len && st == HFSB_OK) {
        hfsb_str piece = hfsb_str_slice(stream, at, at + n);
        piece = t_exact(piece.ptr, piece.len);
        st = receive(&sse, piece, text);
        at += piece.len;
        t_drop(piece);
        n = step;
    }
    T_CHECK(receive(&sse, hfsb_str_make(NULL, 0), text) == HFSB_OK);
    hfsb_sse_free(&sse);
    return st;
}

static void sse_splits_events(void) {
    static const struct {
        const char *stream, *want;
    } cases[] = {
        {"data: a\n\n", "=a;"},
        {"data: a\r\n\r\n", "=a;"},
        {"data: a\r\r", "=a;"},
        {"data:a\n\ndata:  b\n\n", "=a;= b;"},
        {"data: a\ndata: b\ndata:\n\n", "=a\nb\n;"},
        {"data\n\n", "=;"},
        {"data:\n\n", "=;"},
        {"event: x\ndata: a\n\ndata: b\n\n", "x=a;=b;"},
        {"event: x\nevent: y\ndata: a\n\n", "y=a;"},
        {"event: x\n\ndata: b\n\n", "=b;"},
        {"event\ndata: b\n\n", "=b;"},
        {": comment\ndata: a\n:\n\n: keep-alive\n\n", "=a;"},
        {"id: 1\nretry: 5\nother: x\ndata: a\n\n", "=a;"},
        {"data: a\n", ""},
        {"data: a", ""},
        {"data: a\r\n", ""},
        {"\n\n\r\n\r", ""},
        {"\xEF\xBB\xBF" "data: a\n\n", "=a;"},
        {"\xEF\xBB\xBF\xEF\xBB\xBF" "data: a\n\n", ""},
        {"data: a\n\n\xEF\xBB\xBF" "data: b\n\n", "=a;"},
        {"Data: a\n\n", ""},
        {"data : a\n\n", ""},
        {"data: {\"a\":\"b: c\"}\r\n\r\n", "={\"a\":\"b: c\"};"},
        {"data: a\r\ndata: b\rdata: c\n\r\n", "=a\nb\nc;"},
        {"event: end\rdata:\r\n\n", "end=;"},
    };
    size_t i, k;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str stream = hfsb_cstr(cases[i].stream);
        for (k = 0; k <= stream.len + 2; k++) {
            hfsb_buf text = HFSB_INIT;
            /* whole, in two at each place, in single bytes and pairs */
            hfsb_status st = feed(&text, stream, k < 2 ? 1 : k - 1,
                                  k < 1 ? 1 : k < 2 ? 2 : stream.len);
            bool ok = st == HFSB_OK &&
                      hfsb_str_equal(hfsb_buf_str(&text),
                                     hfsb_cstr(cases[i].want));
            T_CHECK(ok);
            if (!ok) printf("  case %zu cut %zu: %s\n", i, k, text.ptr);
            hfsb_buf_free(&text);
        }
    }
}

static void sse_passes_bytes_that_are_not_text(void) {
    hfsb_buf text = HFSB_INIT;
    T_CHECK(feed(&text, hfsb_str_make("data: \0\xff\x80\n\n", 11), 4, 3) ==
            HFSB_OK);
    T_CHECK(text.len == 5 && !memcmp(text.ptr, "=\0\xff\x80;", 5));
    hfsb_buf_free(&text);
}

static void sse_leaves_what_follows_an_event(void) {
    hfsb_sse sse = HFSB_INIT;
    hfsb_str piece = HFSB_LIT("event: x\ndata: a\n\ndata: b\r\n\r\ndata: c\n");
    T_CHECK(hfsb_sse_next(&sse, &piece));
    T_STR(sse.event, "x");
    T_STR(sse.data, "a");
    T_STR(piece, "data: b\r\n\r\ndata: c\n");
    T_CHECK(hfsb_sse_next(&sse, &piece));
    T_STR(sse.event, "");
    T_STR(sse.data, "b");
    T_CHECK(!hfsb_sse_next(&sse, &piece));
    T_CHECK(sse.status == HFSB_OK && !piece.len);
    hfsb_sse_free(&sse);
}

static void sse_limits_an_event(void) {
    static const struct {
        const char *stream;
        hfsb_status want;
    } cases[] = {
        {"data: 1234567890\n\n", HFSB_OK},
        {"data: 12345678901\n\n", HFSB_LIMIT},
        {"data: 12345\ndata: 1234\n\n", HFSB_OK},
        {"data: 12345\ndata: 12345\n\n", HFSB_LIMIT},
        {"event: 12345\ndata: 12345\n\n", HFSB_OK},
        {"event: 12345\ndata: 123456\n\n", HFSB_LIMIT},
        {"data: 1234567890\n\ndata: 1234567890\n\n", HFSB_OK},
        {": a comment of 26 bytes...\n\n", HFSB_OK},
        {": a comment of 27 bytes....\n\n", HFSB_LIMIT},
    };
    size_t      i, k;
    hfsb_status st;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_sse sse = HFSB_INIT;
        hfsb_buf text = HFSB_INIT;
        sse.max = 10;
        T_CHECK(receive(&sse, hfsb_cstr(cases[i].stream), &text) ==
                cases[i].want);
        hfsb_sse_free(&sse);
        st = HFSB_OK;
        for (k = 0; cases[i].stream[k] && st == HFSB_OK; k++)
            st = receive(&sse, hfsb_str_make(cases[i].stream + k, 1), &text);
        T_CHECK(st == cases[i].want); /* the same in single bytes */
        hfsb_sse_free(&sse);
        hfsb_buf_free(&text);
    }
    { /* a line that never ends, with the usual limit */
        hfsb_sse sse = HFSB_INIT;
        hfsb_buf text = HFSB_INIT, x = HFSB_INIT;
        size_t   n;
        st = HFSB_OK;
        t_repeat(&x, "x", 4096);
        for (n = 0; n < 1000 && st == HFSB_OK; n++)
            st = receive(&sse, hfsb_buf_str(&x), &text);
        T_CHECK(st == HFSB_LIMIT && n == 257);
        T_CHECK(receive(&sse, hfsb_buf_str(&x), &text) == HFSB_LIMIT);
        hfsb_sse_free(&sse);
        T_CHECK(receive(&sse, HFSB_LIT("data: a\n\n"), &text) == HFSB_OK);
        T_STR(text, "=a;");
        hfsb_sse_free(&sse);
        hfsb_buf_free(&x);
        hfsb_buf_free(&text);
    }
}

static void feed_once(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_sse    sse = HFSB_INIT;
    hfsb_buf    text = HFSB_INIT;
    hfsb_status st;
    sse.line.alloc = alloc; /* the others take the same */
    st = receive(&sse, HFSB_LIT("event: x\ndata: a\ndata"), &text);
    if (st == HFSB_OK)
        st = receive(&sse, HFSB_LIT(": long enough to grow the line\n"
                                    "data: and again\n\n"), &text);
    T_CHECK(st == (heap->fail_at ? HFSB_NOMEM : HFSB_OK));
    if (st == HFSB_OK)
        T_STR(text, "x=a\nlong enough to grow the line\nand again;");
    else T_CHECK(text.len == 0);
    hfsb_sse_free(&sse);
    hfsb_buf_free(&text);
}

static void sse_survives_each_failing_allocation(void) {
    t_each_allocation_fails(feed_once);
}

int main(void) {
    T_RUN(sse_splits_events);
    T_RUN(sse_passes_bytes_that_are_not_text);
    T_RUN(sse_leaves_what_follows_an_event);
    T_RUN(sse_limits_an_event);
    T_RUN(sse_survives_each_failing_allocation);
    return T_END();
}
