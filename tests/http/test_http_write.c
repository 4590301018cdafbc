/* test_http_write.c - HTTP: percent-encoding, queries, writing. */
#include "../support/t_http.h"

/* ---- targets ---- */

static void http_decodes_once_or_not_at_all(void) {
    static const struct {
        const char *text, *want; /* NULL: refused at `at` */
        size_t      at;
    } cases[] = {
        {"", "", 0},
        {"abc", "abc", 0},
        {"a%20b+c", "a b+c", 0},
        {"%2525", "%25", 0},
        {"%c3%A9", "\xc3\xa9", 0},
        {"%2F..%2f", "/../", 0},
        {"%", NULL, 0},
        {"a%2", NULL, 1},
        {"ab%zz", NULL, 2},
        {"%2z", NULL, 0},
        {"%z2", NULL, 0},
        {"abc%00", NULL, 3},
        {"%41%", NULL, 3},
        {"%-1", NULL, 0},
        {"%+1", NULL, 0},
        {"% 1", NULL, 0},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hfsb_buf    out = HFSB_INIT;
        hfsb_err    err;
        hfsb_str    in = t_exact(cases[i].text, strlen(cases[i].text));
        hfsb_status st;
        T_CHECK(hfsb_buf_append(&out, HFSB_LIT("x")) == HFSB_OK);
        st = hfsb_http_decode(in, &out, &err);
        if (cases[i].want) {
            T_CHECK(st == HFSB_OK && err.code == HFSB_OK);
            T_CHECK(
                hfsb_str_equal(hfsb_str_slice(hfsb_buf_str(&out), 1, out.len),
                               hfsb_cstr(cases[i].want)));
            T_CHECK(out.ptr[out.len] == '\0');
        } else {
            T_CHECK(st == HFSB_SYNTAX && err.code == st);
            T_CHECK(err.pos == cases[i].at && err.msg[0]);
            T_STR(out, "x");
            T_CHECK(hfsb_http_decode(in, &out, NULL) == HFSB_SYNTAX);
        }
        t_drop(in);
        hfsb_buf_free(&out);
    }
}

static void http_encodes_reserved_bytes(void) {
    hfsb_buf out = HFSB_INIT, back = HFSB_INIT;
    char     all[256];
    int      i;
    T_CHECK(hfsb_http_encode(HFSB_LIT("/a b/\xc3\xa9~-._%+&"), true, &out) ==
            HFSB_OK);
    T_STR(out, "/a%20b/%C3%A9~-._%25%2B%26");
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsb_http_encode(HFSB_LIT("/"), false, &out) == HFSB_OK);
    T_STR(out, "%2F");
    hfsb_buf_truncate(&out, 0);
    for (i = 1; i < 256; i++) all[i] = (char)i;
    T_CHECK(hfsb_http_encode(hfsb_str_make(all + 1, 255), false, &out) ==
            HFSB_OK);
    T_CHECK(hfsb_http_decode(hfsb_buf_str(&out), &back, NULL) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&back), hfsb_str_make(all + 1, 255)));
    back.len = 0;
    back.max = 255; /* the decoded bytes count */
    T_CHECK(hfsb_http_decode(hfsb_buf_str(&out), &back, NULL) == HFSB_OK);
    back.len = 0;
    back.max = 254;
    T_CHECK(hfsb_http_decode(hfsb_buf_str(&out), &back, NULL) == HFSB_LIMIT);
    T_CHECK(back.len == 0);
    hfsb_buf_free(&out);
    hfsb_buf_free(&back);
}

static void http_finds_query_keys(void) {
    static const struct {
        const char *query, *key, *want;
        hfsb_status status;
        size_t      at;
    } cases[] = {
        {"a=b&c=d", "a", "b", HFSB_OK, 0},
        {"a=b&c=d", "c", "d", HFSB_OK, 0},
        {"a=1&a=2", "a", "1", HFSB_OK, 0},
        {"path=%2Fx+y%2B", "path", "/x y+", HFSB_OK, 0},
        {"a", "a", "", HFSB_OK, 0},
        {"a=", "a", "", HFSB_OK, 0},
        {"a==b=", "a", "=b=", HFSB_OK, 0},
        {"&&a=b&", "a", "b", HFSB_OK, 0},
        {"p%61th=x", "path", "x", HFSB_OK, 0},
        {"ab=x&a=y", "a", "y", HFSB_OK, 0},
        {"a=x&ab=y", "ab", "y", HFSB_OK, 0},
        {"%zz=x&a=y", "a", "y", HFSB_OK, 0},
        {"a%00=x", "a", "", HFSB_NOT_FOUND, 0},
        {"", "a", "", HFSB_NOT_FOUND, 0},
        {"b=a", "a", "", HFSB_NOT_FOUND, 0},
        {"A=b", "a", "", HFSB_NOT_FOUND, 0},
        {"x=1&a=b%", "a", "", HFSB_SYNTAX, 7},
        {"a=%0", "a", "", HFSB_SYNTAX, 2},
        {"a=%00", "a", "", HFSB_SYNTAX, 2},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hfsb_buf out = HFSB_INIT;
        hfsb_err err;
        hfsb_str in = t_exact(cases[i].query, strlen(cases[i].query));
        T_CHECK(hfsb_http_query_find(in, cases[i].key, &out, &err) ==
                cases[i].status);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&out), hfsb_cstr(cases[i].want)));
        T_CHECK(err.code == cases[i].status && err.pos == cases[i].at);
        t_drop(in);
        hfsb_buf_free(&out);
    }
}

/* ---- writing ---- */

static void http_writes_messages(void) {
    hfsb_buf out = HFSB_INIT;
    T_CHECK(hfsb_http_put_request(&out, HFSB_LIT("GET"), HFSB_LIT("/x?y")) ==
            HFSB_OK);
    T_CHECK(hfsb_http_put_field(&out, HFSB_LIT("Host"), HFSB_LIT("a")) ==
            HFSB_OK);
    T_CHECK(hfsb_http_put_field(&out, HFSB_LIT("X"), HFSB_LIT("")) == HFSB_OK);
    T_CHECK(hfsb_http_put_head_end(&out) == HFSB_OK);
    T_STR(out, "GET /x?y HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n");
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsb_http_put_reply(&out, 404) == HFSB_OK);
    T_CHECK(hfsb_http_put_reply(&out, 999) == HFSB_OK);
    T_CHECK(hfsb_http_put_chunk(&out, HFSB_LIT("0123456789abcdefg")) ==
            HFSB_OK);
    T_CHECK(hfsb_http_put_chunk(&out, HFSB_LIT("")) == HFSB_OK);
    T_STR(out, "HTTP/1.1 404 Not Found\r\nHTTP/1.1 999 \r\n"
               "11\r\n0123456789abcdefg\r\n0\r\n\r\n");
    T_CHECK(!strcmp(hfsb_http_reason(200), "OK"));
    T_CHECK(!strcmp(hfsb_http_reason(507), "Insufficient Storage"));
    T_CHECK(!strcmp(hfsb_http_reason(299), ""));
    hfsb_buf_free(&out);
}

/* CVE-2020-11709 and its kin: no byte that could start another line. */
static void http_refuses_to_write_line_breaks(void) {
    hfsb_buf out = HFSB_INIT;
    int      c;
    T_CHECK(hfsb_buf_append(&out, HFSB_LIT("x")) == HFSB_OK);
    for (c = 0; c < 256; c++) {
        char     text[3];
        hfsb_str s = hfsb_str_make(text, 3);
        bool     control = c < 0x20 || c == 0x7f;
        bool     token = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                     (c >= 'A' && c <= 'Z') ||
                     (c && c < 0x80 && strchr("!#$%&'*+-.^_`|~", c));
        text[0] = 'a';
        text[1] = (char)c;
        text[2] = 'b';
        T_CHECK(hfsb_http_put_field(&out, HFSB_LIT("X"), s) ==
                (control ? HFSB_ARG : HFSB_OK));
        T_CHECK(!control || out.len == 1);
        hfsb_buf_truncate(&out, 1);
        T_CHECK(hfsb_http_put_field(&out, s, HFSB_LIT("X")) ==
                (token ? HFSB_OK : HFSB_ARG));
        hfsb_buf_truncate(&out, 1);
        T_CHECK(hfsb_http_put_request(&out, s, HFSB_LIT("/")) ==
                (token ? HFSB_OK : HFSB_ARG));
        hfsb_buf_truncate(&out, 1);
        T_CHECK(hfsb_http_put_request(&out, HFSB_LIT("GET"), s) ==
                (control || c == ' ' ? HFSB_ARG : HFSB_OK));
        hfsb_buf_truncate(&out, 1);
    }
    T_CHECK(hfsb_http_put_field(&out, HFSB_LIT(""), HFSB_LIT("")) == HFSB_ARG);
    T_CHECK(hfsb_http_put_request(&out, HFSB_LIT(""), HFSB_LIT("/")) ==
            HFSB_ARG);
    T_CHECK(hfsb_http_put_request(&out, HFSB_LIT("GET"), HFSB_LIT("")) ==
            HFSB_ARG);
    T_CHECK(hfsb_http_put_reply(&out, 99) == HFSB_ARG);
    T_CHECK(hfsb_http_put_reply(&out, 1000) == HFSB_ARG);
    T_CHECK(hfsb_http_put_reply(&out, -200) == HFSB_ARG);
    T_STR(out, "x");
    hfsb_buf_free(&out);
}

/* All bytes of the first failing call are missing, none of an earlier one. */
static void write_all(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_buf    out = HFSB_INIT;
    hfsb_status st[7];
    size_t      i, len = 0, before;
    char        big[200];
    hfsb_str    bytes;
    out.alloc = alloc;
    memset(big, 'a', sizeof big);
    bytes = hfsb_str_make(big, sizeof big);
    for (i = 0; i < 7; i++) {
        before = out.len;
        switch (i) {
        case 0: st[i] = hfsb_http_put_request(&out, bytes, bytes); break;
        case 1: st[i] = hfsb_http_put_reply(&out, 200); break;
        case 2: st[i] = hfsb_http_put_field(&out, bytes, bytes); break;
        case 3: st[i] = hfsb_http_put_chunk(&out, bytes); break;
        case 4: st[i] = hfsb_http_encode(bytes, false, &out); break;
        case 5: st[i] = hfsb_http_decode(bytes, &out, NULL); break;
        default:
            big[1] = '=';
            st[i] = hfsb_http_query_find(bytes, "a", &out, NULL);
        }
        T_CHECK(st[i] == HFSB_OK || (st[i] == HFSB_NOMEM && heap->fail_at));
        T_CHECK((st[i] == HFSB_OK) == (out.len > before));
        len += out.len - before;
    }
    T_CHECK(out.len == len);
    hfsb_buf_free(&out);
}

static void http_survives_each_failing_allocation(void) {
    t_each_allocation_fails(write_all);
}

int main(void) {
    T_RUN(http_decodes_once_or_not_at_all);
    T_RUN(http_encodes_reserved_bytes);
    T_RUN(http_finds_query_keys);
    T_RUN(http_writes_messages);
    T_RUN(http_refuses_to_write_line_breaks);
    T_RUN(http_survives_each_failing_allocation);
    return T_END();
}
