/* test_json_write.c - JSON text from a tree and call by call. */
#include "../support/t.h"

typedef hfsb_json_doc   doc_t;
typedef hfsb_json_value value_t;

static hfsb_str text_of(const hfsb_buf *b) { return hfsb_buf_str(b); }

/* Parses a literal from an exact-size block, which is gone afterwards. */
static hfsb_status parse_with(hfsb_str text, const hfsb_json_parse_opts *opts,
                              doc_t *doc, hfsb_err *err) {
    hfsb_str    exact = t_exact(text.ptr, text.len);
    hfsb_status st = hfsb_json_parse(exact, opts, doc, err);
    t_drop(exact);
    return st;
}

static hfsb_status parse(const char *text, doc_t *doc) {
    memset(doc, 0, sizeof *doc);
    return parse_with(hfsb_cstr(text), NULL, doc, NULL);
}

static void put(hfsb_buf *b, const char *s) {
    T_CHECK(hfsb_buf_append(b, hfsb_cstr(s)) == HFSB_OK);
}

static const char compact[] =
    "{\"a\":[1,-2,18446744073709551615,1.5,0.0],\"e\":[],\"o\":{},"
    "\"s\":\"q\\\"b\\\\n\\nt\\tr\\rb\\bf\\f\\u0001\\u001f\x7F\xE2\x80\xA8/\","
    "\"k\":{\"t\":true,\"f\":false,\"n\":null,\"a\":[[]]}}";
static const char pretty[] =
    "{\n  \"a\": [\n    1,\n    -2,\n    18446744073709551615,\n    1.5,\n"
    "    0.0\n  ],\n  \"e\": [],\n  \"o\": {},\n  \"s\": "
    "\"q\\\"b\\\\n\\nt\\tr\\rb\\bf\\f\\u0001\\u001f\x7F\xE2\x80\xA8/\",\n"
    "  \"k\": {\n    \"t\": true,\n    \"f\": false,\n    \"n\": null,\n"
    "    \"a\": [\n      []\n    ]\n  }\n}";

static void write_sample(hfsb_json_writer *w) {
    hfsb_json_put_object(w);
    hfsb_json_put_key(w, HFSB_LIT("a"));
    hfsb_json_put_array(w);
    hfsb_json_put_int(w, 1);
    hfsb_json_put_int(w, -2);
    hfsb_json_put_uint(w, 18446744073709551615u);
    hfsb_json_put_double(w, 1.5);
    hfsb_json_put_double(w, 0);
    hfsb_json_put_end(w);
    hfsb_json_put_key(w, HFSB_LIT("e"));
    hfsb_json_put_array(w);
    hfsb_json_put_end(w);
    hfsb_json_put_key(w, HFSB_LIT("o"));
    hfsb_json_put_object(w);
    hfsb_json_put_end(w);
    hfsb_json_put_key(w, HFSB_LIT("s"));
    hfsb_json_put_str(w, HFSB_LIT("q\"b\\n\nt\tr\rb\bf\f\x01\x1F\x7F"
                                  "\xE2\x80\xA8/"));
    hfsb_json_put_key(w, HFSB_LIT("k"));
    hfsb_json_put_object(w);
    hfsb_json_put_key(w, HFSB_LIT("t"));
    hfsb_json_put_bool(w, true);
    hfsb_json_put_key(w, HFSB_LIT("f"));
    hfsb_json_put_bool(w, false);
    hfsb_json_put_key(w, HFSB_LIT("n"));
    hfsb_json_put_null(w);
    hfsb_json_put_key(w, HFSB_LIT("a"));
    hfsb_json_put_array(w);
    hfsb_json_put_array(w);
    hfsb_json_put_end(w);
    hfsb_json_put_end(w);
    hfsb_json_put_end(w);
    hfsb_json_put_end(w);
}

static void json_writes_compact_and_pretty(void) {
    hfsb_json_write_opts opts = HFSB_INIT;
    int                  i;
    for (i = 0; i < 2; i++) {
        hfsb_buf         out = HFSB_INIT, again = HFSB_INIT, third = HFSB_INIT;
        hfsb_json_writer w;
        hfsb_err         err;
        doc_t            doc = HFSB_INIT;
        hfsb_str         want = hfsb_cstr(i ? pretty : compact);
        opts.pretty = i == 1;
        put(&out, "before ");
        hfsb_json_writer_init(&w, &out, &opts);
        write_sample(&w);
        T_CHECK(hfsb_json_writer_finish(&w, &err) == HFSB_OK && !err.msg[0]);
        T_CHECK(hfsb_str_equal(
            hfsb_str_slice(text_of(&out), 7, out.len), want));
        T_CHECK(out.ptr[out.len] == '\0');
        /* the same from a tree, and from a tree inside the writer */
        T_CHECK(parse_with(want, NULL, &doc, &err) == HFSB_OK);
        T_CHECK(hfsb_json_write(doc.root, &opts, &again, &err) == HFSB_OK);
        T_CHECK(hfsb_str_equal(text_of(&again), want));
        hfsb_json_writer_init(&w, &third, &opts);
        hfsb_json_put_value(&w, doc.root);
        T_CHECK(hfsb_json_writer_finish(&w, &err) == HFSB_OK);
        T_CHECK(hfsb_str_equal(text_of(&third), want));
        hfsb_json_free(&doc);
        hfsb_buf_free(&out);
        hfsb_buf_free(&again);
        hfsb_buf_free(&third);
    }
}

static void json_indents_a_tree_inside(void) {
    hfsb_json_write_opts opts = HFSB_INIT;
    hfsb_json_writer     w;
    hfsb_buf             out = HFSB_INIT;
    doc_t                doc;
    opts.pretty = true;
    T_CHECK(parse("{\"x\":[1,2]}", &doc) == HFSB_OK);
    hfsb_json_writer_init(&w, &out, &opts);
    hfsb_json_put_array(&w);
    hfsb_json_put_value(&w, NULL);
    hfsb_json_put_value(&w, doc.root);
    hfsb_json_put_end(&w);
    T_CHECK(hfsb_json_writer_finish(&w, NULL) == HFSB_OK);
    T_STR(out, "[\n  null,\n  {\n    \"x\": [\n      1,\n      2\n    ]\n  }\n"
               "]");
    hfsb_buf_free(&out);
    hfsb_json_free(&doc);
}

/* Letters are calls: { [ } (an end) k(ey) v(alue) d(ouble NaN) i(nfinity). */
static void json_writer_refuses_misuse(void) {
    static const struct {
        const char *calls, *problem;
    } cases[] = {
        {"", "no value at all"},
        {"[", "an array or object without its end"},
        {"{", "an array or object without its end"},
        {"{kv", "an array or object without its end"},
        {"vv", "a second value after the first was complete"},
        {"[}v", "a second value after the first was complete"},
        {"[}[}", "a second value after the first was complete"},
        {"}", "an end without a beginning"},
        {"v}", "an end without a beginning"},
        {"[}}", "an end without a beginning"},
        {"k", "a key outside an object"},
        {"[k", "a key outside an object"},
        {"{v", "a value in an object without a key"},
        {"{[", "a value in an object without a key"},
        {"{kvv", "a value in an object without a key"},
        {"{kk", "a key where a value belongs"},
        {"{k}", "an end where a value belongs"},
        {"[d}", "NaN or infinity, which JSON does not have"},
        {"{ki}", "NaN or infinity, which JSON does not have"},
        {"d", "NaN or infinity, which JSON does not have"},
    };
    size_t i, n;
    double zero = 0;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hfsb_json_writer w;
        hfsb_buf         out = HFSB_INIT;
        hfsb_err         err;
        char             want[100];
        put(&out, "kept");
        hfsb_json_writer_init(&w, &out, NULL);
        for (n = 0; cases[i].calls[n]; n++) switch (cases[i].calls[n]) {
            case '{': hfsb_json_put_object(&w); break;
            case '[': hfsb_json_put_array(&w); break;
            case '}': hfsb_json_put_end(&w); break;
            case 'k': hfsb_json_put_key(&w, HFSB_LIT("k")); break;
            case 'v': hfsb_json_put_str(&w, HFSB_LIT("v")); break;
            case 'd': hfsb_json_put_double(&w, zero / zero); break;
            default: hfsb_json_put_double(&w, -1 / zero); break;
            }
        snprintf(want, sizeof want, "writing JSON: %s", cases[i].problem);
        T_CHECK(hfsb_json_writer_finish(&w, &err) == HFSB_ARG);
        T_CHECK(err.code == HFSB_ARG && !strcmp(err.msg, want));
        if (strcmp(err.msg, want)) printf("%s\n", err.msg);
        T_STR(out, "kept");
        hfsb_buf_free(&out);
    }
}

static void json_writer_stops_at_512_levels(void) {
    size_t levels, i;
    for (levels = 512; levels <= 513; levels++) {
        hfsb_json_writer w;
        hfsb_buf         out = HFSB_INIT;
        hfsb_err         err;
        hfsb_json_writer_init(&w, &out, NULL);
        for (i = 0; i < levels; i++) {
            if (i % 2) hfsb_json_put_key(&w, HFSB_LIT("k"));
            if (i % 2 == 0) hfsb_json_put_object(&w);
            else hfsb_json_put_array(&w);
        }
        for (i = 0; i < levels; i++) hfsb_json_put_end(&w);
        T_CHECK(hfsb_json_writer_finish(&w, &err) ==
                (levels == 512 ? HFSB_OK : HFSB_ARG));
        T_CHECK(levels == 512 ||
                !strcmp(err.msg, "writing JSON: more than 512 levels"));
        hfsb_buf_free(&out);
    }
}

static void json_writer_repairs_utf8(void) {
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"a\xFFz", "a\xEF\xBF\xBDz"},
        {"\xC3", "\xEF\xBF\xBD"},
        {"\xE2\x82", "\xEF\xBF\xBD"},
        {"\xE2\x82\xE2\x82\xAC", "\xEF\xBF\xBD\xE2\x82\xAC"},
        {"\xF0\x9F\x98x", "\xEF\xBF\xBDx"},
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xC0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"0123456789abcdefg\x80hijklmnopqrstuvwx",
         "0123456789abcdefg\xEF\xBF\xBDhijklmnopqrstuvwx"},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hfsb_json_writer w;
        hfsb_buf         out = HFSB_INIT;
        hfsb_str         in = t_exact(cases[i].in, strlen(cases[i].in));
        hfsb_json_writer_init(&w, &out, NULL);
        hfsb_json_put_object(&w);
        hfsb_json_put_key(&w, in);
        hfsb_json_put_str(&w, in);
        hfsb_json_put_end(&w);
        T_CHECK(hfsb_json_writer_finish(&w, NULL) == HFSB_OK);
        hfsb_buf_truncate(&out, out.len - 2);
        T_CHECK(hfsb_str_ends(text_of(&out), hfsb_cstr(cases[i].out)));
        T_CHECK(out.len == 2 * strlen(cases[i].out) + 5);
        t_drop(in);
        hfsb_buf_free(&out);
    }
}

/* A string of any bytes, valid UTF-8 or not, reads back as it was written. */
static void json_reads_back_what_it_writes(void) {
    unsigned long long state = 4;
    int                round;
    for (round = 0; round < 3000; round++) {
        size_t           len = t_random(&state) % 100, i;
        char             bytes[100];
        hfsb_str         in;
        hfsb_buf         out = HFSB_INIT, want = HFSB_INIT;
        hfsb_json_writer w;
        doc_t            doc = HFSB_INIT;
        for (i = 0; i < len; i++)
            bytes[i] = (char)(unsigned char)(round % 3 == 0
                                                 ? t_random(&state)
                                             : round % 3 == 1
                                                 ? t_random(&state) & 0x3F
                                                 : 'a' + i % 26);
        in = t_exact(bytes, len);
        hfsb_json_writer_init(&w, &out, NULL);
        hfsb_json_put_str(&w, in);
        T_CHECK(hfsb_json_writer_finish(&w, NULL) == HFSB_OK);
        T_CHECK(parse_with(text_of(&out), NULL, &doc, NULL) == HFSB_OK);
        T_CHECK(hfsb_utf8_repair(in, &want) == HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_json_str(doc.root, HFSB_LIT("?")),
                               text_of(&want)));
        hfsb_json_free(&doc);
        hfsb_buf_free(&out);
        hfsb_buf_free(&want);
        t_drop(in);
    }
}

static void json_writes_members_with_their_keys(void) {
    hfsb_json_writer w;
    hfsb_buf         out = HFSB_INIT;
    hfsb_json_writer_init(&w, &out, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_member_str(&w, "s\"", HFSB_LIT("t"));
    hfsb_json_put_member_int(&w, "i", -1);
    hfsb_json_put_member_double(&w, "d", 0.5);
    hfsb_json_put_member_bool(&w, "b", true);
    hfsb_json_put_end(&w);
    T_CHECK(hfsb_json_writer_finish(&w, NULL) == HFSB_OK);
    T_STR(out, "{\"s\\\"\":\"t\",\"i\":-1,\"d\":0.5,\"b\":true}");
    hfsb_buf_free(&out);
}

/* At every limit: exactly enough succeeds, less leaves the buffer unchanged. */
static void json_respects_the_buffers_limit(void) {
    hfsb_json_write_opts opts = HFSB_INIT;
    doc_t                doc;
    size_t               full, max;
    int                  mode;
    T_CHECK(parse(compact, &doc) == HFSB_OK);
    for (mode = 0; mode < 3; mode++) {
        full = 3 + strlen(mode == 1 ? pretty : compact);
        opts.pretty = mode == 1;
        for (max = 3; max <= full + 1; max++) {
            hfsb_buf         out = HFSB_INIT;
            hfsb_err         err;
            hfsb_status      st;
            hfsb_json_writer w;
            put(&out, "abc");
            out.max = max;
            hfsb_json_writer_init(&w, &out, NULL);
            if (mode == 2) write_sample(&w);
            st = mode == 2 ? hfsb_json_writer_finish(&w, &err)
                           : hfsb_json_write(doc.root, &opts, &out, &err);
            T_CHECK(st == (max < full ? HFSB_LIMIT : HFSB_OK));
            T_CHECK(out.len == (max < full ? 3 : full));
            T_CHECK(err.code == st && out.ptr[out.len] == '\0');
            T_CHECK(st == HFSB_OK ||
                    !strcmp(err.msg, "writing JSON: size limit exceeded."));
            hfsb_buf_free(&out);
        }
    }
    hfsb_json_free(&doc);
}

/* ---- into a document ---- */

static void a_writer_makes_a_document_as_well(void) {
    hfsb_json_writer w;
    doc_t            doc = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT;
    hfsb_json_writer_init_doc(&w, &doc);
    write_sample(&w);
    T_CHECK(hfsb_json_writer_finish(&w, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_write(doc.root, NULL, &out, NULL) == HFSB_OK);
    T_CHECK(hfsb_str_equal(text_of(&out), hfsb_cstr(compact)));
    T_CHECK(hfsb_json_int(hfsb_json_at(hfsb_json_get(doc.root, "a"), 1), 0) ==
            -2);
    T_CHECK(hfsb_json_uint(hfsb_json_at(hfsb_json_get(doc.root, "a"), 2), 0) ==
            18446744073709551615ull);
    hfsb_json_free(&doc);
    hfsb_json_writer_init_doc(&w, &doc);
    hfsb_json_put_object(&w);
    hfsb_json_put_int(&w, 1); /* no key */
    hfsb_json_put_end(&w);
    T_CHECK(hfsb_json_writer_finish(&w, NULL) == HFSB_ARG && !doc.root);
    hfsb_json_writer_init_doc(&w, &doc);
    hfsb_json_put_str(&w, HFSB_LIT("a\xFF" "b"));
    T_CHECK(hfsb_json_writer_finish(&w, NULL) == HFSB_OK);
    T_STR(hfsb_json_str(doc.root, HFSB_LIT("")), "a\xEF\xBF\xBD" "b");
    hfsb_json_free(&doc);
    hfsb_buf_free(&out);
}

static void document_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_json_writer w;
    doc_t            doc = HFSB_INIT;
    hfsb_status      st;
    doc.alloc = alloc;
    hfsb_json_writer_init_doc(&w, &doc);
    write_sample(&w);
    st = hfsb_json_writer_finish(&w, NULL);
    T_CHECK(st == HFSB_OK ? doc.root != NULL
                          : st == HFSB_NOMEM && !doc.root && heap->fail_at);
    hfsb_json_free(&doc);
}

static void a_document_is_made_or_not_at_all(void) {
    t_each_allocation_fails(document_without_memory);
}

/* ---- a format ---- */

/* As a compiler does not check it. */
static hfsb_status format_with(hfsb_buf *out, const char *format, ...) {
    va_list     ap;
    hfsb_status st;
    va_start(ap, format);
    st = hfsbi_json_vprintf(out, format, ap);
    va_end(ap);
    return st;
}

static void format_inserts_values(void) {
    hfsb_buf out = HFSB_INIT;
    hfsb_str name = HFSB_LIT("a\"b\\\n\0c"), none = HFSB_INIT;
    T_CHECK(hfsb_json_printf(&out, "{\"name\":\"" HFSB_F "\",\"n\":%d}",
                             HFSB_V(name), -7) == HFSB_OK);
    T_STR(out, "{\"name\":\"a\\\"b\\\\\\n\\u0000c\",\"n\":-7}");
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsb_json_printf(&out, "[%u,%ld,%lu,%lld,%llu,%zu,%g,%g,%g]", 7u,
                             -1L, 2UL, -9000000000000000000LL,
                             18000000000000000000ULL, (size_t)5, 0.1, 3.0,
                             1e308 * 10.0) == HFSB_OK);
    T_STR(out, "[7,-1,2,-9000000000000000000,18000000000000000000,5,0.1,3.0,"
               "null]");
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsb_json_printf(&out, "[%s,%s,\"%s%%\",\"" HFSB_F "\"," HFSB_F
                                   "]",
                             "true", (const char *)NULL, "50", HFSB_V(none),
                             HFSB_V(HFSB_LIT("{}"))) == HFSB_OK);
    T_STR(out, "[true,null,\"50%\",\"\",{}]");
    hfsb_buf_truncate(&out, 0);
    /* an escaped quote of the format does not end its string */
    T_CHECK(hfsb_json_printf(&out, "{\"a\\\"%s\":%s}", "\"", "1") ==
            HFSB_OK);
    T_STR(out, "{\"a\\\"\\\"\":1}");
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsb_json_printf(&out, "\"%s\"", "\xFF") == HFSB_OK);
    T_STR(out, "\"\xEF\xBF\xBD\"");
    hfsb_buf_free(&out);
}

static void format_refuses_other_conversions(void) {
    static const char *const wrong[] = {"[%x]", "[%", "[%l", "[%zd]", "[%.3s]",
                                        "[%lllu]"};
    size_t                   i;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hfsb_buf    out = HFSB_INIT;
        const char *format = wrong[i];
        T_CHECK(hfsb_buf_append(&out, HFSB_LIT("kept")) == HFSB_OK);
        T_CHECK(format_with(&out, format, 1) == HFSB_ARG);
        T_STR(out, "kept");
        T_CHECK(out.status == HFSB_ARG);
        hfsb_buf_free(&out);
    }
}

static void format_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_buf    out = HFSB_INIT;
    hfsb_status st;
    out.alloc = alloc;
    st = hfsb_json_printf(&out, "{\"%s\":[%d,%g]}",
                          "a text that is longer than a first block", 1, 2.5);
    T_CHECK(st == HFSB_OK ? out.len > 0
                          : st == HFSB_NOMEM && !out.len && heap->fail_at);
    hfsb_buf_free(&out);
}

static void a_format_is_written_or_not_at_all(void) {
    t_each_allocation_fails(format_without_memory);
}

int main(void) {
    T_RUN(format_inserts_values);
    T_RUN(format_refuses_other_conversions);
    T_RUN(a_format_is_written_or_not_at_all);
    T_RUN(json_writes_compact_and_pretty);
    T_RUN(json_indents_a_tree_inside);
    T_RUN(json_writer_refuses_misuse);
    T_RUN(json_writer_stops_at_512_levels);
    T_RUN(json_writer_repairs_utf8);
    T_RUN(json_reads_back_what_it_writes);
    T_RUN(json_writes_members_with_their_keys);
    T_RUN(json_respects_the_buffers_limit);
    T_RUN(a_writer_makes_a_document_as_well);
    T_RUN(a_document_is_made_or_not_at_all);
    return T_END();
}
