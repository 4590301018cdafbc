/* test_connect.c - envelopes of the Connect protocol, whole and cut anywhere,
   and its errors. */
#include "../support/t.h"
#ifdef HFSBI_SPLIT
#include "../../src/http/http_private.h"
#endif

static void errors_have_names_and_statuses(void) {
    static const struct {
        hfsbi_connect_code code;
        const char        *name;
        int                status;
    } cases[] = {
        {HFSBI_CONNECT_CANCELED, "canceled", 499},
        {HFSBI_CONNECT_UNKNOWN, "unknown", 500},
        {HFSBI_CONNECT_INVALID_ARGUMENT, "invalid_argument", 400},
        {HFSBI_CONNECT_DEADLINE_EXCEEDED, "deadline_exceeded", 504},
        {HFSBI_CONNECT_NOT_FOUND, "not_found", 404},
        {HFSBI_CONNECT_ALREADY_EXISTS, "already_exists", 409},
        {HFSBI_CONNECT_PERMISSION_DENIED, "permission_denied", 403},
        {HFSBI_CONNECT_RESOURCE_EXHAUSTED, "resource_exhausted", 429},
        {HFSBI_CONNECT_FAILED_PRECONDITION, "failed_precondition", 400},
        {HFSBI_CONNECT_UNIMPLEMENTED, "unimplemented", 501},
        {HFSBI_CONNECT_INTERNAL, "internal", 500},
        {HFSBI_CONNECT_UNAVAILABLE, "unavailable", 503},
        {HFSBI_CONNECT_UNAUTHENTICATED, "unauthenticated", 401},
    };
    size_t i;
    T_CHECK(sizeof cases / sizeof *cases == HFSBI_CONNECT_CODE_COUNT);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        T_CHECK(!strcmp(hfsbi_connect_name(cases[i].code), cases[i].name));
        T_CHECK(hfsbi_connect_status(cases[i].code) == cases[i].status);
    }
}

/* ---- reading ---- */

typedef struct reading {
    hfsbi_connect_reader reader;
    hfsb_buf             events, body;
    bool                 done, open;
} reading;

static void say(reading *r, const char *what) {
    T_CHECK(hfsb_buf_append(&r->events, hfsb_cstr(what)) == HFSB_OK);
    T_CHECK(hfsb_buf_append_byte(&r->events, '<') == HFSB_OK);
    T_CHECK(hfsb_buf_append(&r->events, hfsb_buf_str(&r->body)) == HFSB_OK);
    T_CHECK(hfsb_buf_append_byte(&r->events, '>') == HFSB_OK);
    hfsb_buf_truncate(&r->body, 0);
    r->open = false;
}

/* One call on the bytes from *at on; false after the last event. */
static bool call(reading *r, hfsb_str piece, size_t *at, bool last) {
    hfsbi_connect_piece p;
    hfsbi_connect_event event;
    hfsb_err            err;
    size_t              used;
    hfsb_str            in = hfsb_str_make(piece.ptr + *at, piece.len - *at);
    event = hfsbi_connect_next(&r->reader, in, last, &p, &used, &err);
    T_CHECK(used <= in.len);
    *at += used;
    switch (event) {
    case HFSBI_CONNECT_MORE:
        T_CHECK(!last && *at == piece.len);
        return false;
    case HFSBI_CONNECT_DATA:
        T_CHECK(p.data.len || p.over);
        T_CHECK(!p.data.len || p.data.ptr >= piece.ptr);
        T_CHECK(hfsb_buf_append(&r->body, p.data) == HFSB_OK);
        r->open = true;
        if (p.over) say(r, p.end_stream ? "end" : "message");
        return true;
    case HFSBI_CONNECT_END:
        T_CHECK(last);
        T_CHECK(hfsb_buf_append(&r->events, HFSB_LIT("over")) == HFSB_OK);
        break;
    default:
        if (r->open) say(r, "part");
        T_CHECK(err.code == (p.code == HFSBI_CONNECT_UNIMPLEMENTED
                                 ? HFSB_REFUSED
                             : p.code == HFSBI_CONNECT_RESOURCE_EXHAUSTED
                                 ? HFSB_LIMIT
                                 : HFSB_SYNTAX));
        T_CHECK(hfsb_buf_printf(&r->events, "%s at %zu: %s",
                                hfsbi_connect_name(p.code), err.pos,
                                err.msg) == HFSB_OK);
    }
    r->done = true;
    return false;
}

static void read_cut(reading *r, hfsb_str stream, size_t first, size_t step,
                     bool early) {
    size_t at = 0, n = first;
    while (!r->done) {
        hfsb_str piece = hfsb_str_slice(stream, at, at + n);
        size_t   used = 0;
        /* the end is known with the last piece, or after it */
        bool     last = early ? at + piece.len == stream.len : !piece.len;
        piece = t_exact(piece.ptr, piece.len);
        while (call(r, piece, &used, last)) continue;
        t_drop(piece);
        at += piece.len;
        n = step;
    }
}

static void check_final(reading *r) {
    hfsbi_connect_piece p;
    hfsb_err            err;
    size_t              used;
    bool over = hfsb_str_ends(hfsb_buf_str(&r->events), HFSB_LIT("over"));
    T_CHECK(hfsbi_connect_next(&r->reader, HFSB_LIT("x"), false, &p, &used,
                               &err) ==
            (over ? HFSBI_CONNECT_END : HFSBI_CONNECT_BAD));
    if (!over) T_CHECK(!strcmp(err.msg, "An earlier envelope was refused."));
    T_CHECK(hfsbi_connect_next(&r->reader, hfsb_str_make(NULL, 0), true, &p,
                               &used, NULL) ==
            (over ? HFSBI_CONNECT_END : HFSBI_CONNECT_BAD));
}

static void check_stream(hfsb_str stream, size_t max, hfsb_str want) {
    size_t k;
    for (k = 0; k < 2 * stream.len + 4; k++) {
        reading r = HFSB_INIT;
        size_t  cut = k / 2;
        bool    ok;
        r.reader.max = max;
        read_cut(&r, stream, cut < 2 ? 1 + 2 * cut : cut - 1,
                 cut < 2 ? 1 + 2 * cut : stream.len, k % 2);
        ok = hfsb_str_equal(hfsb_buf_str(&r.events), want);
        T_CHECK(ok);
        if (!ok)
            printf("  cut %zu: is   %s\n  want %.*s\n", k, r.events.ptr,
                   (int)want.len, want.ptr);
        check_final(&r);
        hfsb_buf_free(&r.events);
        hfsb_buf_free(&r.body);
    }
}

static void envelopes_give_their_events(void) {
#define BYTES(s) s, sizeof(s) - 1
    static const struct {
        const char *bytes;
        size_t      len;
        const char *want;
    } cases[] = {
        {BYTES(""), "over"},
        {BYTES("\0\0\0\0\2{}"), "message<{}>over"},
        {BYTES("\0\0\0\0\0"), "message<>over"},
        {BYTES("\0\0\0\0\1a\0\0\0\0\0\0\0\0\0\3bcd"),
         "message<a>message<>message<bcd>over"},
        {BYTES("\0\0\0\0\1a\2\0\0\0\2{}"), "message<a>end<{}>over"},
        {BYTES("\2\0\0\0\0"), "end<>over"},
        {BYTES("\0\0\0\0\12" "1234567890"), "message<1234567890>over"},
        {BYTES("\0\0\0\0\13" "12345678901"),
         "resource_exhausted at 1: A message has 11 bytes, more than the "
         "limit of 10."},
        {BYTES("\0\xff\xff\xff\xff"),
         "resource_exhausted at 1: A message has 4294967295 bytes, more than "
         "the limit of 10."},
        {BYTES("\1\0\0\0\2{}"),
         "unimplemented at 0: The message is compressed, which is not "
         "supported. Send it without Connect-Content-Encoding."},
        {BYTES("\0\0\0\0\1a\3"),
         "message<a>unimplemented at 6: The message is compressed, which is "
         "not supported. Send it without Connect-Content-Encoding."},
        {BYTES("\4\0\0\0\2{}"),
         "invalid_argument at 0: An envelope starts with the flags 0x04; "
         "expected 0x00 or 0x02."},
        {BYTES("{\"process\":{}}"), /* a message without an envelope */
         "unimplemented at 0: The message is compressed, which is not "
         "supported. Send it without Connect-Content-Encoding."},
        {BYTES("\x80"),
         "invalid_argument at 0: An envelope starts with the flags 0x80; "
         "expected 0x00 or 0x02."},
        {BYTES("\2\0\0\0\2{}\0"),
         "end<{}>invalid_argument at 7: Bytes follow the message that ends "
         "the stream."},
        {BYTES("\0\0\0"),
         "invalid_argument at 3: The stream ends in the head of an envelope, "
         "which has 5 bytes."},
        {BYTES("\0\0\0\0\5ab"),
         "part<ab>invalid_argument at 7: The stream ends in a message, 3 "
         "bytes too early."},
        {BYTES("\0\0\0\0\5"),
         "invalid_argument at 5: The stream ends in a message, 5 bytes too "
         "early."},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++)
        check_stream(hfsb_str_make(cases[i].bytes, cases[i].len), 10,
                     hfsb_cstr(cases[i].want));
}

static void usual_limit_is_4_mib(void) {
    check_stream(HFSB_LIT("\0\0\x40\0\1"), 0,
                 HFSB_LIT("resource_exhausted at 1: A message has 4194305 "
                          "bytes, more than the limit of 4194304."));
    check_stream(HFSB_LIT("\0\0\x40\0\0"), 0,
                 HFSB_LIT("invalid_argument at 5: The stream ends in a "
                          "message, 4194304 bytes too early."));
}

/* ---- writing ---- */

static void heads_are_big_endian(void) {
    char *out = (char *)malloc(HFSBI_CONNECT_HEAD);
    T_CHECK(hfsbi_connect_write_head(0, 0, out));
    T_CHECK(!memcmp(out, "\0\0\0\0\0", 5));
    T_CHECK(hfsbi_connect_write_head(HFSBI_CONNECT_END_STREAM, 0x01020304,
                                     out));
    T_CHECK(!memcmp(out, "\2\1\2\3\4", 5));
    T_CHECK(hfsbi_connect_write_head(0, 0xffffffffu, out));
    T_CHECK(!memcmp(out, "\0\xff\xff\xff\xff", 5));
    if (sizeof(size_t) > 4) {
        T_CHECK(!hfsbi_connect_write_head(0, (size_t)0xffffffffu + 1, out));
        T_CHECK(!memcmp(out, "\0\xff\xff\xff\xff", 5));
    }
    free(out);
}

static void what_is_written_is_read(void) {
    unsigned long long seed = 3;
    size_t             i, k;
    for (i = 0; i < 200; i++) {
        hfsb_buf stream = HFSB_INIT, want = HFSB_INIT;
        reading  r = HFSB_INIT;
        size_t   count = t_random(&seed) % 5;
        for (k = 0; k < count; k++) {
            char   head[HFSBI_CONNECT_HEAD];
            size_t n = t_random(&seed) % 300;
            bool   end = k + 1 == count;
            T_CHECK(hfsbi_connect_write_head(
                end ? (unsigned)HFSBI_CONNECT_END_STREAM : 0u, n, head));
            T_CHECK(hfsb_buf_append(&stream, hfsb_str_make(head, 5)) ==
                    HFSB_OK);
            t_repeat(&stream, "x", n);
            T_CHECK(hfsb_buf_printf(&want, "%s", end ? "end<" : "message<") ==
                    HFSB_OK);
            t_repeat(&want, "x", n);
            t_repeat(&want, ">", 1);
        }
        t_repeat(&want, "over", 1);
        read_cut(&r, hfsb_buf_str(&stream), 1 + t_random(&seed) % 99,
                 1 + t_random(&seed) % 99, i % 2);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&r.events), hfsb_buf_str(&want)));
        hfsb_buf_free(&r.events);
        hfsb_buf_free(&r.body);
        hfsb_buf_free(&stream);
        hfsb_buf_free(&want);
    }
}

int main(void) {
    T_RUN(errors_have_names_and_statuses);
    T_RUN(envelopes_give_their_events);
    T_RUN(usual_limit_is_4_mib);
    T_RUN(heads_are_big_endian);
    T_RUN(what_is_written_is_read);
    return T_END();
}
