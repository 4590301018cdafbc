/* test_url.c - URLs of http and https, and relative references. */
#include "../support/t.h"
#ifdef HFSBI_SPLIT
#include "../../src/http/http.h"
#include "../../src/http/url.h"
#endif

static void url_splits_valid_urls(void) {
    static const struct {
        const char *text, *user, *host, *authority, *target;
        unsigned    port;
        bool        secure;
    } cases[] = {
        {"http://a", "", "a", "a", "", 80, false},
        {"https://a", "", "a", "a", "", 443, true},
        {"HTTP://A.b/C", "", "A.b", "A.b", "/C", 80, false},
        {"hTTpS://a:8443/x?y#z", "", "a", "a:8443", "/x?y", 8443, true},
        {"http://a?q=/#f", "", "a", "a", "?q=/", 80, false},
        {"http://a#f", "", "a", "a", "", 80, false},
        {"http://a:/", "", "a", "a:", "/", 80, false},
        {"http://a:00080/", "", "a", "a:00080", "/", 80, false},
        {"http://a:65535/", "", "a", "a:65535", "/", 65535, false},
        {"http://[::1]:80/x", "", "::1", "[::1]:80", "/x", 80, false},
        {"http://[::ffff:1.2.3.4]", "", "::ffff:1.2.3.4", "[::ffff:1.2.3.4]",
         "", 80, false},
        {"http://u:p%40@a:1/", "u:p%40", "a", "a:1", "/", 1, false},
        {"http://@a/", "", "a", "a", "/", 80, false},
        {"http://a/x@y:z", "", "a", "a", "/x@y:z", 80, false},
        {"http://a/\"<>\\^`{|}", "", "a", "a", "/\"<>\\^`{|}", 80, false},
        {"http://a//b/../c", "", "a", "a", "//b/../c", 80, false},
        {"http://1.2.3.4:7860/api", "", "1.2.3.4", "1.2.3.4:7860", "/api",
         7860, false},
        {"https://o-n.hf.space/api/health", "", "o-n.hf.space",
         "o-n.hf.space", "/api/health", 443, true},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str text = t_exact(cases[i].text, strlen(cases[i].text));
        hfsb_url url;
        hfsb_err err;
        T_CHECK(hfsb_url_parse(text, &url, &err) == HFSB_OK && !err.msg[0]);
        T_CHECK(hfsb_str_equal(url.user, hfsb_cstr(cases[i].user)));
        T_CHECK(hfsb_str_equal(url.host, hfsb_cstr(cases[i].host)));
        T_CHECK(hfsb_str_equal(url.authority, hfsb_cstr(cases[i].authority)));
        T_CHECK(hfsb_str_equal(url.target, hfsb_cstr(cases[i].target)));
        T_CHECK(url.port == cases[i].port && url.secure == cases[i].secure);
        T_CHECK(hfsb_url_parse(text, &url, NULL) == HFSB_OK);
        t_drop(text);
    }
}

static void url_refuses_invalid_urls(void) {
    static const struct {
        const char *text;
        size_t      pos;
        const char *why;
    } cases[] = {
        {"", 0, "begin with"},
        {"a", 0, "begin with"},
        {"//a/", 0, "begin with"},
        {"ftp://a/", 0, "begin with"},
        {"file:///etc/passwd", 0, "begin with"},
        {"httpx://a/", 0, "begin with"},
        {"http", 0, "begin with"},
        {"http:", 5, "missing"},
        {"http:/a", 5, "missing"},
        {"http:a", 5, "missing"},
        {"http://", 7, "it has no host"},
        {"http:///x", 7, "it has no host"},
        {"http://:80/", 7, "it has no host"},
        {"http://u@/", 9, "it has no host"},
        {"http://a:0/", 8, "1 to 65535"},
        {"http://a:65536/", 8, "1 to 65535"},
        {"http://a:99999/", 8, "1 to 65535"},
        {"http://a:123456/", 7, "host or port"},
        {"http://a:b/", 7, "host or port"},
        {"http://a:-1/", 7, "host or port"},
        {"http://a:1:2/", 7, "host or port"},
        {"http://::1/", 7, "host or port"},
        {"http://[::1/", 7, "host or port"},
        {"http://[::1]x/", 7, "host or port"},
        {"http://[1.2.3.4]/", 7, "host or port"},
        {"http://a b/", 8, "blank"},
        {"http://a/ b", 9, "blank"},
        {" http://a/", 0, "blank"},
        {"http://a/\r\nX: y", 9, "blank"},
        {"http://a/\t", 9, "blank"},
        {"http://a/\x7f", 9, "blank"},
        {"http://a/\xc3\xa9", 9, "blank"},
        {"http://\xc3\xa9/", 7, "blank"},
        {"http://a%2eb/", 7, "\"%\""},
        {"http://a%zz/", 7, "host or port"},
        {"http://a\\b/", 7, "host or port"},
        {"http://evil\\@good/", 7, "before \"@\""},
        {"http://a@b@c/", 9, "host or port"},
        {"http://a[b@c/", 7, "before \"@\""},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str text = t_exact(cases[i].text, strlen(cases[i].text));
        hfsb_url url;
        hfsb_err err;
        bool     ok = hfsb_url_parse(text, &url, &err) == HFSB_ARG &&
                  err.code == HFSB_ARG && err.pos == cases[i].pos &&
                  strstr(err.msg, cases[i].why);
        T_CHECK(ok);
        if (!ok)
            printf("  %s: %zu %s\n", cases[i].text, err.pos, err.msg);
        T_CHECK(hfsb_url_parse(text, &url, NULL) == HFSB_ARG);
        T_CHECK(!url.scheme.ptr && !url.user.ptr && !url.host.ptr &&
                !url.authority.ptr && !url.target.ptr && !url.port &&
                !url.secure);
        t_drop(text);
    }
    {
        hfsb_url url;
        hfsb_err err;
        T_CHECK(hfsb_url_parse(hfsb_str_make(NULL, 0), &url, &err) ==
                HFSB_ARG);
        T_CHECK(hfsb_url_parse(hfsb_str_make("http://a/\0b", 11), &url,
                               &err) == HFSB_ARG &&
                err.pos == 9);
    }
}

static void url_limits_the_length_of_a_host(void) {
    hfsb_buf text = HFSB_INIT;
    hfsb_url url;
    hfsb_err err;
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("http://")) == HFSB_OK);
    t_repeat(&text, "a", 255);
    T_CHECK(hfsb_url_parse(hfsb_buf_str(&text), &url, &err) == HFSB_OK);
    t_repeat(&text, "a", 1);
    T_CHECK(hfsb_url_parse(hfsb_buf_str(&text), &url, &err) == HFSB_ARG &&
            strstr(err.msg, "too long"));
    hfsb_buf_free(&text);
}

/* RFC 3986 section 5.4, and more. */
static void url_resolves_references(void) {
    static const char base[] = "http://a/b/c/d;p?q";
    static const struct {
        const char *base; /* NULL: the one above */
        const char *reference, *want; /* NULL: refused */
    } cases[] = {
        {NULL, "g:h", NULL},
        {NULL, "g", "http://a/b/c/g"},
        {NULL, "./g", "http://a/b/c/g"},
        {NULL, "g/", "http://a/b/c/g/"},
        {NULL, "/g", "http://a/g"},
        {NULL, "//g", "http://g"},
        {NULL, "?y", "http://a/b/c/d;p?y"},
        {NULL, "g?y", "http://a/b/c/g?y"},
        {NULL, "#s", "http://a/b/c/d;p?q"},
        {NULL, "g#s", "http://a/b/c/g"},
        {NULL, "g?y#s", "http://a/b/c/g?y"},
        {NULL, ";x", "http://a/b/c/;x"},
        {NULL, "g;x", "http://a/b/c/g;x"},
        {NULL, "g;x?y#s", "http://a/b/c/g;x?y"},
        {NULL, "", "http://a/b/c/d;p?q"},
        {NULL, ".", "http://a/b/c/"},
        {NULL, "./", "http://a/b/c/"},
        {NULL, "..", "http://a/b/"},
        {NULL, "../", "http://a/b/"},
        {NULL, "../g", "http://a/b/g"},
        {NULL, "../..", "http://a/"},
        {NULL, "../../", "http://a/"},
        {NULL, "../../g", "http://a/g"},
        /* abnormal */
        {NULL, "../../../g", "http://a/g"},
        {NULL, "../../../../g", "http://a/g"},
        {NULL, "/./g", "http://a/g"},
        {NULL, "/../g", "http://a/g"},
        {NULL, "g.", "http://a/b/c/g."},
        {NULL, ".g", "http://a/b/c/.g"},
        {NULL, "g..", "http://a/b/c/g.."},
        {NULL, "..g", "http://a/b/c/..g"},
        {NULL, "./../g", "http://a/b/g"},
        {NULL, "./g/.", "http://a/b/c/g/"},
        {NULL, "g/./h", "http://a/b/c/g/h"},
        {NULL, "g/../h", "http://a/b/c/h"},
        {NULL, "g;x=1/./y", "http://a/b/c/g;x=1/y"},
        {NULL, "g;x=1/../y", "http://a/b/c/y"},
        {NULL, "g?y/./x", "http://a/b/c/g?y/./x"},
        {NULL, "g?y/../x", "http://a/b/c/g?y/../x"},
        {NULL, "g#s/./x", "http://a/b/c/g"},
        {NULL, "g#s/../x", "http://a/b/c/g"},
        {NULL, "http:g", NULL},
        /* beyond the RFC's own */
        {NULL, "https://h/../x/./y?z#f", "https://h/x/y?z"},
        {NULL, "HTTP://h", "HTTP://h"},
        {NULL, "//h:81/x", "http://h:81/x"},
        {NULL, "///x", NULL},
        {NULL, "/..//evil", "http://a//evil"},
        {NULL, "mailto:x@y", NULL},
        {NULL, "javascript:alert(1)", NULL},
        {NULL, "1:2", "http://a/b/c/1:2"},
        {NULL, "./x:y", "http://a/b/c/x:y"},
        {NULL, "?", "http://a/b/c/d;p?"},
        {NULL, "a b", NULL},
        {NULL, "a\r\nb", NULL},
        {NULL, "\xc3\xa9", NULL},
        {NULL, "//", NULL},
        {"http://a", "x", "http://a/x"},
        {"http://a", "", "http://a"},
        {"http://a", "?q", "http://a?q"},
        {"http://a?q", "x", "http://a/x"},
        {"http://a?q", "../x", "http://a/x"},
        {"http://a:8/x/y", "z", "http://a:8/x/z"},
        {"http://a/x/../y?b", "", "http://a/x/../y?b"},
        {"http://a/x#/y/z", "w", "http://a/w"},
        {"http://u:p@a/x", "w", "http://u:p@a/w"},
        {"ftp://a/x", "http://b/", NULL},
        {"", "http://b/", NULL},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *from = cases[i].base ? cases[i].base : base;
        hfsb_str    b = t_exact(from, strlen(from));
        hfsb_str r = t_exact(cases[i].reference, strlen(cases[i].reference));
        hfsb_buf out = HFSB_INIT;
        hfsb_err err;
        hfsb_status st;
        T_CHECK(hfsb_buf_append(&out, HFSB_LIT("/../kept ")) == HFSB_OK);
        st = hfsb_url_resolve(b, r, &out, &err);
        T_CHECK(st == (cases[i].want ? HFSB_OK : HFSB_ARG) && st == err.code);
        T_CHECK(hfsb_str_starts(hfsb_buf_str(&out), HFSB_LIT("/../kept ")));
        if (!hfsb_str_equal(hfsb_str_slice(hfsb_buf_str(&out), 9, out.len),
                            hfsb_cstr(cases[i].want))) {
            T_CHECK(!"resolved as it should be");
            printf("  %s at %s: %s\n", cases[i].reference, from, out.ptr);
        }
        hfsb_buf_free(&out);
        t_drop(b);
        t_drop(r);
    }
}

static void url_resolves_long_paths_quickly(void) {
    hfsb_buf r = HFSB_INIT, out = HFSB_INIT;
    t_repeat(&r, "a/../", 100000);
    T_CHECK(hfsb_url_resolve(HFSB_LIT("http://a/b/c"), hfsb_buf_str(&r), &out,
                             NULL) == HFSB_OK);
    T_STR(out, "http://a/b/");
    hfsb_buf_truncate(&out, 0);
    hfsb_buf_truncate(&r, 0);
    t_repeat(&r, "../", 100000);
    T_CHECK(hfsb_url_resolve(HFSB_LIT("http://a/b/c"), hfsb_buf_str(&r), &out,
                             NULL) == HFSB_OK);
    T_STR(out, "http://a/");
    hfsb_buf_free(&out);
    hfsb_buf_free(&r);
}

static void url_compares_origins(void) {
    static const struct {
        const char *a, *b;
        bool        same;
    } cases[] = {
        {"http://a/x", "http://a/y?z", true},
        {"http://a", "HTTP://A:80/", true},
        {"https://a:443", "https://a", true},
        {"http://[::1]/", "http://[::1]:80/", true},
        {"http://a", "https://a", false},
        {"http://a:443", "https://a:443", false},
        {"http://a", "http://a:81", false},
        {"http://a", "http://b", false},
        {"http://a", "http://a.b", false},
        {"http://a", "http://a.", false},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_url a, b;
        T_CHECK(!hfsb_url_parse(hfsb_cstr(cases[i].a), &a, NULL));
        T_CHECK(!hfsb_url_parse(hfsb_cstr(cases[i].b), &b, NULL));
        T_CHECK(hfsb_url_same_origin(&a, &b) == cases[i].same);
        T_CHECK(hfsb_url_same_origin(&b, &a) == cases[i].same);
    }
}

static void resolve_once(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_buf    out = HFSB_INIT;
    hfsb_err    err;
    hfsb_status st;
    out.alloc = alloc;
    st = hfsb_url_resolve(HFSB_LIT("http://a/b"),
                          HFSB_LIT("https://long.example.org/x/../y?z"), &out,
                          &err);
    T_CHECK(st == (heap->fail_at ? HFSB_NOMEM : HFSB_OK) && err.code == st);
    if (st == HFSB_OK) T_STR(out, "https://long.example.org/y?z");
    else T_CHECK(out.len == 0);
    hfsb_buf_free(&out);
}

static void url_survives_each_failing_allocation(void) {
    hfsb_buf out = HFSB_INIT;
    hfsb_err err;
    t_each_allocation_fails(resolve_once);
    out.max = 10;
    T_CHECK(hfsb_url_resolve(HFSB_LIT("http://a/b"), HFSB_LIT("/ccccccccc"),
                             &out, &err) == HFSB_LIMIT);
    T_CHECK(out.len == 0 && err.code == HFSB_LIMIT);
    hfsb_buf_free(&out);
}

int main(void) {
    T_RUN(url_splits_valid_urls);
    T_RUN(url_refuses_invalid_urls);
    T_RUN(url_limits_the_length_of_a_host);
    T_RUN(url_resolves_references);
    T_RUN(url_resolves_long_paths_quickly);
    T_RUN(url_compares_origins);
    T_RUN(url_survives_each_failing_allocation);
    return T_END();
}
