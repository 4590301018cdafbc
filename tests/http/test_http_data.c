/* test_http_data.c - requests and replies with verdicts, distilled from the
   suites of others, found below $HFSB_TEST_DATA; without it everything is
   skipped. Each in several cuts, with the same result. */
#include "../support/t_http.h"

/* These cases are not about the limits of the parser; some replies are about
   those of a client. */
static hfsb_http_limits lifted(void) {
    hfsb_http_limits limits = HFSB_INIT;
    limits.max_head = limits.max_target = (size_t)1 << 20;
    limits.max_fields = T_HTTP_ROOM;
    limits.max_chunk_line = 4096;
    return limits;
}

static hfsb_str text_of(const hfsb_json_value *c, const char *key) {
    return hfsb_json_str(hfsb_json_get(c, key), HFSB_LIT(""));
}

static long long number_of(const hfsb_json_value *c, const char *key) {
    return hfsb_json_int(hfsb_json_get(c, key), -1);
}

static bool same_in_all_cuts(const t_http *whole, hfsb_str stream) {
    bool same = t_http_same_in_cut(whole, stream, 64, stream.len * 2 + 1) &&
                t_http_same_in_cut(whole, stream, 5, stream.len * 2 + 7);
    if (stream.len < 6000)
        same = t_http_same_in_cut(whole, stream, 1, 0) && same;
    return same;
}

typedef bool case_fn(const hfsb_json_value *c, hfsb_str stream);

/* Calls fn for each line of a file; returns the number of lines. */
static size_t each_case(const char *name, case_fn *fn) {
    hfsb_buf file = HFSB_INIT;
    size_t   at = 0, n = 0;
    if (!t_data_file(name, &file)) return 0;
    while (at < file.len) {
        hfsb_str      rest = hfsb_str_slice(hfsb_buf_str(&file), at, file.len);
        size_t        end = hfsb_str_find_byte(rest, '\n');
        hfsb_str      line = hfsb_str_slice(rest, 0, end);
        hfsb_json_doc doc = HFSB_INIT;
        hfsb_buf      raw = HFSB_INIT;
        bool          ok;
        T_CHECK(hfsb_json_parse(line, NULL, &doc, NULL) == HFSB_OK);
        T_CHECK(hfsb_base64_decode(text_of(doc.root, "raw_b64"), &raw, NULL) ==
                HFSB_OK);
        ok = fn(doc.root, hfsb_buf_str(&raw));
        T_CHECK(ok);
        if (!ok)
            printf("  %.*s\n", (int)text_of(doc.root, "id").len,
                   text_of(doc.root, "id").ptr);
        hfsb_buf_free(&raw);
        hfsb_json_free(&doc);
        at += line.len + 1;
        n++;
    }
    hfsb_buf_free(&file);
    return n;
}

/* ---- requests ---- */

/* Appends bytes that the case gives as characters up to U+00FF. */
static void append_bytes(hfsb_buf *out, hfsb_str text) {
    size_t i;
    for (i = 0; i < text.len; i++) {
        unsigned c = (unsigned char)text.ptr[i];
        if (c >= 0xC0 && i + 1 < text.len)
            c = (c & 3) << 6 | ((unsigned char)text.ptr[++i] & 0x3Fu);
        T_CHECK(hfsb_buf_append_byte(out, (char)c) == HFSB_OK);
    }
}

/* True when the messages are the first ones of the case. */
static bool same_requests(const t_http *t, const hfsb_json_value *c) {
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(c, "requests"));
    hfsb_buf       want = HFSB_INIT;
    hfsb_str       rest = hfsb_buf_str(&t->list);
    size_t         i;
    bool           same = true;
    for (i = 0; i < t->messages && hfsb_json_next(&it); i++) {
        hfsb_str line =
            hfsb_str_slice(rest, 0, hfsb_str_find_byte(rest, '\n'));
        hfsb_buf_truncate(&want, 0);
        append_bytes(&want, text_of(it.value, "method"));
        append_bytes(&want, HFSB_LIT(" "));
        append_bytes(&want, text_of(it.value, "target"));
        /* long ones are cut in the case */
        if (hfsb_str_ends(hfsb_buf_str(&want), HFSB_LIT("...")) &&
            want.len < line.len)
            hfsb_buf_truncate(&want, want.len - 3);
        same = same && hfsb_str_starts(line, hfsb_buf_str(&want));
        hfsb_buf_truncate(&want, 0);
        T_CHECK(hfsb_buf_printf(&want, " %lld",
                                number_of(it.value, "body_len")) == HFSB_OK);
        same = same && hfsb_str_ends(line, hfsb_buf_str(&want));
        rest = hfsb_str_slice(rest, line.len + 1, rest.len);
    }
    hfsb_buf_free(&want);
    return same && i == t->messages;
}

static bool request_case(const hfsb_json_value *c, hfsb_str stream) {
    hfsb_http_limits limits = lifted();
    t_http           t = HFSB_INIT;
    bool ok, accept = hfsb_str_equal(text_of(c, "strict"), HFSB_LIT("accept"));
    bool incomplete =
        hfsb_str_equal(text_of(c, "rule"), HFSB_LIT("valid-then-incomplete"));
    t.limits = &limits;
    t_http_read(&t, stream);
    ok = (long long)t.messages == number_of(c, "n_strict");
    if (accept) ok = ok && !t.status && (incomplete || t.end || t.closed);
    else ok = ok && (t.status || !t.end);
    if (accept && !incomplete)
        ok =
            ok && t.closed == hfsb_json_bool(hfsb_json_get(c, "close"), false);
    if (t.status) { /* one of those that are right */
        hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(c, "statuses"));
        bool           found = false;
        while (hfsb_json_next(&it))
            found = found || hfsb_json_int(it.value, 0) == t.status;
        ok = ok && found;
    }
    ok = ok && same_requests(&t, c) && same_in_all_cuts(&t, stream);
    if (!ok)
        printf("  %.2000s%zu messages, end %d, closed %d\n",
               t.events.ptr ? t.events.ptr : "", t.messages, t.end, t.closed);
    t_http_free(&t);
    return ok;
}

static void http_reads_recorded_requests(void) {
    size_t n = each_case("data/http/requests.jsonl", request_case);
    T_CHECK(!n || n == 839);
}

/* ---- replies ---- */

/* After 101 comes another protocol; the case treats it as a body. */
static bool not_our_body(hfsb_str id) {
    return hfsb_str_starts(id, HFSB_LIT("llhttp-resp-connection-09-"));
}

static bool reply_case(const hfsb_json_value *c, hfsb_str stream) {
    hfsb_http_limits limits = lifted();
    t_http           t = HFSB_INIT;
    hfsb_str         verdict = text_of(c, "verdict");
    char             method[16];
    bool             ok = true, got;
    limits.max_head = 65536;
    snprintf(method, sizeof method, "%.*s", (int)text_of(c, "method").len,
             text_of(c, "method").ptr);
    t.limits = &limits;
    t.method = method;
    t_http_read(&t, stream);
    got = !t.status && t.reply && (t.messages || (t.until_close && t.end));
    if (hfsb_str_equal(verdict, HFSB_LIT("accept")))
        ok = got && t.reply == number_of(c, "expect_status") &&
             ((long long)t.body.len == number_of(c, "expect_body_len") ||
              not_our_body(text_of(c, "id")));
    else if (hfsb_str_equal(verdict, HFSB_LIT("reject"))) ok = !got;
    ok = same_in_all_cuts(&t, stream) && ok;
    if (!ok)
        printf("  %.2000s%zu messages, end %d\n", t.events.ptr ? t.events.ptr : "",
               t.messages, t.end);
    t_http_free(&t);
    return ok;
}

static void http_reads_recorded_replies(void) {
    size_t n = each_case("data/http/responses.jsonl", reply_case);
    T_CHECK(!n || n == 135);
}

int main(void) {
    T_RUN(http_reads_recorded_requests);
    T_RUN(http_reads_recorded_replies);
    return T_END();
}
