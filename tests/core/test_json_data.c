/* test_json_data.c - the published collections of JSON texts, found below
   $HFSB_TEST_DATA; without it everything is skipped. */
#include "../support/t.h"

#include <dirent.h>

typedef void file_fn(const char *name, hfsb_str text);

static size_t files_seen;

/* Calls fn for each file of a directory, the bytes in an exact-size block. */
static void each_file(const char *dir, file_fn *fn) {
    const char    *root = getenv("HFSB_TEST_DATA");
    hfsb_buf       path = HFSB_INIT;
    DIR           *d;
    struct dirent *entry;
    files_seen = 0;
    if (!root || !*root) {
        t_skipped++;
        return;
    }
    T_CHECK(hfsb_buf_printf(&path, "%s/%s", root, dir) == HFSB_OK);
    d = opendir(path.ptr);
    T_CHECK(d != NULL);
    while (d && (entry = readdir(d)) != NULL) {
        hfsb_buf text = HFSB_INIT, name = HFSB_INIT;
        hfsb_str exact;
        if (entry->d_name[0] == '.') continue;
        T_CHECK(hfsb_buf_printf(&name, "%s/%s", dir, entry->d_name) ==
                HFSB_OK);
        if (t_data_file(name.ptr, &text)) {
            files_seen++;
            exact = t_exact(text.ptr, text.len);
            fn(entry->d_name, exact);
            t_drop(exact);
        }
        hfsb_buf_free(&text);
        hfsb_buf_free(&name);
    }
    if (d) closedir(d);
    hfsb_buf_free(&path);
}

static bool same_value(const hfsb_json_value *a, const hfsb_json_value *b) {
    hfsb_json_iter x = hfsb_json_begin(a), y = hfsb_json_begin(b);
    hfsb_json_type type = hfsb_json_type_of(a);
    double         p = hfsb_json_double(a, 0), q = hfsb_json_double(b, 0);
    if (type != hfsb_json_type_of(b) ||
        hfsb_json_count(a) != hfsb_json_count(b) ||
        hfsb_json_bool(a, false) != hfsb_json_bool(b, false) ||
        hfsb_json_int(a, 0) != hfsb_json_int(b, 0) ||
        hfsb_json_uint(a, 0) != hfsb_json_uint(b, 0) ||
        memcmp(&p, &q, sizeof p) != 0 ||
        !hfsb_str_equal(hfsb_json_str(a, HFSB_LIT("")),
                        hfsb_json_str(b, HFSB_LIT(""))))
        return false;
    while (hfsb_json_next(&x) && hfsb_json_next(&y))
        if (!hfsb_str_equal(x.key, y.key) || !same_value(x.value, y.value))
            return false;
    return true;
}

/* Every proper prefix of a text in brackets or quotes is refused; a sample of
   them for a large text. */
static bool refuses_prefixes(hfsb_str text) {
    size_t n = 0, step = 1 + text.len / 4000 * (text.len / 40000 + 1);
    char   last;
    while (text.len && strchr(" \t\r\n", text.ptr[text.len - 1])) text.len--;
    last = text.len ? text.ptr[text.len - 1] : ' ';
    if (last != '}' && last != ']' && last != '"') return true;
    while (n < text.len) {
        hfsb_json_doc doc = HFSB_INIT;
        hfsb_str      part = t_exact(text.ptr, n);
        hfsb_status   st = hfsb_json_parse(part, NULL, &doc, NULL);
        t_drop(part);
        hfsb_json_free(&doc);
        if (st == HFSB_OK) return false;
        n += n + 1 == text.len || text.len - n > step ? step
                                                      : text.len - n - 1;
    }
    return true;
}

/* A written tree reads back equal, and is written the same again. */
static bool round_trips(const hfsb_json_value *root, bool pretty) {
    hfsb_json_write_opts opts = HFSB_INIT;
    hfsb_json_parse_opts deep = HFSB_INIT;
    hfsb_buf             once = HFSB_INIT, twice = HFSB_INIT;
    hfsb_json_doc        doc = HFSB_INIT;
    bool                 ok;
    opts.pretty = pretty;
    deep.max_depth = 1000000;
    ok = hfsb_json_write(root, &opts, &once, NULL) == HFSB_OK &&
         hfsb_json_parse(hfsb_buf_str(&once), &deep, &doc, NULL) == HFSB_OK &&
         same_value(root, doc.root) &&
         hfsb_json_write(doc.root, &opts, &twice, NULL) == HFSB_OK &&
         hfsb_str_equal(hfsb_buf_str(&once), hfsb_buf_str(&twice));
    hfsb_json_free(&doc);
    hfsb_buf_free(&once);
    hfsb_buf_free(&twice);
    return ok;
}

/* The verdict on text, by both parsers; an accepted one must have all the
   properties above. */
static bool accepted(const char *name, hfsb_str text) {
    hfsb_json_doc a = HFSB_INIT, b = HFSB_INIT;
    hfsb_str      copy = t_exact(text.ptr, text.len);
    hfsb_err      ea, eb;
    hfsb_status   sa = hfsb_json_parse(text, NULL, &a, &ea);
    hfsb_status   sb = hfsb_json_parse_in_place((char *)(uintptr_t)copy.ptr,
                                                copy.len, NULL, &b, &eb);
    bool          ok = sa == sb && ea.pos == eb.pos && !strcmp(ea.msg, eb.msg);
    T_CHECK(ok);
    if (sa == HFSB_OK && sb == HFSB_OK) {
        ok = same_value(a.root, b.root) && round_trips(a.root, false) &&
             round_trips(a.root, true) && refuses_prefixes(text);
        T_CHECK(ok);
    } else {
        T_CHECK(ea.pos <= text.len && ea.line && ea.column && ea.msg[0]);
        T_CHECK(hfsb_str_equal(copy, text));
    }
    if (!ok) printf("  %s\n", name);
    hfsb_json_free(&a);
    hfsb_json_free(&b);
    t_drop(copy);
    return sa == HFSB_OK;
}

/* ---- JSONTestSuite ---- */

/* The i_ files (either answer is allowed) that we accept. */
static bool we_accept(const char *name) {
    static const char *const names[] = {
        "i_number_double_huge_neg_exp.json",   "i_number_real_underflow.json",
        "i_number_too_big_neg_int.json",       "i_number_too_big_pos_int.json",
        "i_number_very_big_negative_int.json",
        "i_structure_500_nested_arrays.json"};
    size_t i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

static void check_suite_file(const char *name, hfsb_str text) {
    bool want = name[0] == 'y' || (name[0] == 'i' && we_accept(name));
    if (name[1] != '_') return; /* its licence */
    T_CHECK(accepted(name, text) == want);
    if (accepted(name, text) != want) printf("  %s\n", name);
}

static void json_passes_jsontestsuite(void) {
    each_file("data/jsontestsuite", check_suite_file);
    T_CHECK(!files_seen || files_seen == 319);
}

/* ---- the others ---- */

static void check_jsonchecker_file(const char *name, hfsb_str text) {
    bool want = name[0] == 'p' || strstr(name, "EXCLUDE") != NULL;
    if (!strstr(name, ".json")) return;
    T_CHECK(accepted(name, text) == want);
    if (accepted(name, text) != want) printf("  %s\n", name);
}

static void json_passes_jsonchecker(void) {
    each_file("data/json/jsonchecker", check_jsonchecker_file);
}

static void check_round_trip_file(const char *name, hfsb_str text) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_buf      out = HFSB_INIT;
    T_CHECK(accepted(name, text));
    T_CHECK(hfsb_json_parse(text, NULL, &doc, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_write(doc.root, NULL, &out, NULL) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&out), text));
    if (!hfsb_str_equal(hfsb_buf_str(&out), text))
        printf("  %s: %s\n", name, out.ptr);
    hfsb_buf_free(&out);
    hfsb_json_free(&doc);
}

static void json_writes_the_bytes_it_read(void) {
    each_file("data/json/roundtrip", check_round_trip_file);
    T_CHECK(!files_seen || files_seen == 27);
}

/* Undefined cases: the file, and the text that we write for it. */
static const struct {
    const char *name, *written; /* NULL: refused */
} transforms[] = {
    {"number_-9223372036854775808.json", "[-9223372036854775808]"},
    {"number_-9223372036854775809.json", "[-9223372036854776000.0]"},
    {"number_1.0.json", "[1.0]"},
    {"number_1.000000000000000005.json", "[1.0]"},
    {"number_1000000000000000.json", "[1000000000000000]"},
    {"number_10000000000000000999.json", "[10000000000000000999]"},
    {"number_1e-999.json", "[0.0]"},
    {"number_1e6.json", "[1000000.0]"},
    {"number_9223372036854775807.json", "[9223372036854775807]"},
    {"number_9223372036854775808.json", "[9223372036854775808]"},
    {"object_key_nfc_nfd.json",
     "{\"\xC3\xA9\":\"NFC\",\"e\xCC\x81\":\"NFD\"}"},
    {"object_key_nfd_nfc.json",
     "{\"e\xCC\x81\":\"NFD\",\"\xC3\xA9\":\"NFC\"}"},
    {"object_same_key_different_values.json", "{\"a\":1,\"a\":2}"},
    {"object_same_key_same_value.json", "{\"a\":1,\"a\":1}"},
    {"object_same_key_unclear_values.json", "{\"a\":0,\"a\":-0.0}"},
    {"string_with_escaped_NULL.json", "[\"A\\u0000B\"]"},
    {"string_1_escaped_invalid_codepoint.json", NULL},
    {"string_1_invalid_codepoint.json", NULL},
    {"string_2_escaped_invalid_codepoints.json", NULL},
    {"string_2_invalid_codepoints.json", NULL},
    {"string_3_escaped_invalid_codepoints.json", NULL},
    {"string_3_invalid_codepoints.json", NULL},
};

static void check_transform_file(const char *name, hfsb_str text) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_buf      out = HFSB_INIT;
    const char   *want = "not in the table";
    size_t        i;
    for (i = 0; i < sizeof transforms / sizeof transforms[0]; i++)
        if (!strcmp(transforms[i].name, name)) want = transforms[i].written;
    T_CHECK(accepted(name, text) == (want != NULL));
    if (want && hfsb_json_parse(text, NULL, &doc, NULL) == HFSB_OK) {
        T_CHECK(hfsb_json_write(doc.root, NULL, &out, NULL) == HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&out), hfsb_cstr(want)));
        if (!hfsb_str_equal(hfsb_buf_str(&out), hfsb_cstr(want)))
            printf("  %s: %s\n", name, out.ptr);
    }
    hfsb_json_free(&doc);
    hfsb_buf_free(&out);
}

static void json_handles_undefined_cases_as_documented(void) {
    each_file("data/json/transform", check_transform_file);
    T_CHECK(!files_seen || files_seen == 22);
}

static void check_good_file(const char *name, hfsb_str text) {
    if (strstr(name, ".json")) T_CHECK(accepted(name, text));
}

static void json_reads_real_documents(void) {
    each_file("data/json/blns", check_good_file);
    each_file("data/json/bench", check_good_file);
}

/* Each line of the UTF-8 stress file as a string: accepted as JSON exactly when
   it is UTF-8; written, it reads back repaired. */
static void check_line(hfsb_str line) {
    hfsb_buf         text = HFSB_INIT, want = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_json_doc    doc = HFSB_INIT;
    bool             valid = hfsb_utf8_validate(line) == line.len;
    bool             quoted = !memchr(line.ptr, '"', line.len) &&
                  !memchr(line.ptr, '\\', line.len);
    hfsb_json_writer_init(&w, &text, NULL);
    hfsb_json_put_str(&w, line);
    T_CHECK(hfsb_json_writer_finish(&w, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&text), NULL, &doc, NULL) ==
            HFSB_OK);
    T_CHECK(hfsb_utf8_repair(line, &want) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_json_str(doc.root, HFSB_LIT("?")),
                           hfsb_buf_str(&want)));
    hfsb_json_free(&doc);
    hfsb_buf_truncate(&text, 0);
    T_CHECK(hfsb_buf_append_byte(&text, '"') == HFSB_OK);
    T_CHECK(hfsb_buf_append(&text, line) == HFSB_OK);
    T_CHECK(hfsb_buf_append_byte(&text, '"') == HFSB_OK);
    if (quoted)
        T_CHECK(accepted("a line", hfsb_buf_str(&text)) == valid);
    hfsb_buf_free(&text);
    hfsb_buf_free(&want);
}

static void json_agrees_with_utf8_on_the_stress_test(void) {
    hfsb_buf file = HFSB_INIT;
    size_t   at = 0, lines = 0;
    if (!t_data_file("data/json/utf8/UTF-8-test.txt", &file)) return;
    while (at < file.len) {
        hfsb_str rest = hfsb_str_slice(hfsb_buf_str(&file), at, file.len);
        size_t   end = hfsb_str_find_byte(rest, '\n');
        hfsb_str line = t_exact(rest.ptr, end < rest.len ? end : rest.len);
        check_line(hfsb_str_slice(line, 0, end));
        at += line.len + 1;
        t_drop(line);
        lines++;
    }
    T_CHECK(lines > 290);
    hfsb_buf_free(&file);
}

/* Each allocation fails in turn, on a real document. */
static hfsb_str oom_document;

static void oom_run(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_json_parse_opts opts = HFSB_INIT;
    hfsb_json_doc        doc = HFSB_INIT;
    hfsb_buf             out = HFSB_INIT;
    hfsb_status          st;
    doc.alloc = out.alloc = alloc;
    opts.unique_keys = true;
    st = hfsb_json_parse(oom_document, &opts, &doc, NULL);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at));
    if (st == HFSB_OK) {
        st = hfsb_json_write(doc.root, NULL, &out, NULL);
        T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at));
    }
    hfsb_buf_free(&out);
    hfsb_json_free(&doc);
}

static void json_survives_each_failing_allocation(void) {
    hfsb_buf file = HFSB_INIT;
    if (!t_data_file("data/json/bench/github_events.json", &file)) return;
    oom_document = t_exact(file.ptr, file.len);
    t_each_allocation_fails(oom_run);
    t_drop(oom_document);
    hfsb_buf_free(&file);
}

int main(void) {
    T_RUN(json_passes_jsontestsuite);
    T_RUN(json_passes_jsonchecker);
    T_RUN(json_writes_the_bytes_it_read);
    T_RUN(json_handles_undefined_cases_as_documented);
    T_RUN(json_reads_real_documents);
    T_RUN(json_agrees_with_utf8_on_the_stress_test);
    T_RUN(json_survives_each_failing_allocation);
    return T_END();
}
