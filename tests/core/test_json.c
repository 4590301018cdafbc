/* test_json.c - parse and read JSON. Strings are in test_json_string.c, the
   arguments of tools in test_json_args.c, writing in test_json_write.c, what
   others published as test data in test_json_data.c. */
#include "../support/t_json.h"

/* ---- errors ---- */

typedef struct error_case {
    const char *text;
    size_t      pos, line, column;
    const char *msg; /* after "line .., column ..: " */
} error_case;

#define CUT ", found the end of the text: was it cut short?"
#define PAIR                                                                 \
    "expected both halves of a surrogate pair, found one: the sender "       \
    "probably cut a string in the middle of a character"

static const error_case syntax_errors[] = {
    {"", 0, 1, 1, "expected a value" CUT},
    {" \n ", 3, 2, 2, "expected a value" CUT},
    {"\xEF\xBB\xBF{}", 0, 1, 1,
     "expected a value, found a byte order mark: remove it"},
    {"x", 0, 1, 1,
     "expected a value, found 'x': the only words are true, false and null"},
    {"None", 0, 1, 1,
     "expected a value, found 'N': the only words are true, false and null"},
    {"[NaN]", 1, 1, 2,
     "expected a value, found 'N': the only words are true, false and null"},
    {"-Infinity", 1, 1, 2, "expected a digit after '-', found 'I'"},
    {"tru", 3, 1, 4, "expected 'true', 'false' or 'null'" CUT},
    {"trux", 3, 1, 4, "expected 'true', 'false' or 'null', found 'x'"},
    {"[nul]", 4, 1, 5, "expected 'true', 'false' or 'null', found ']'"},
    {"{\"a\":fals}", 9, 1, 10,
     "expected 'true', 'false' or 'null', found '}'"},
    {"truex", 4, 1, 5,
     "expected the end of the text after the value, found 'x'"},
    {"[1] 2", 4, 1, 5,
     "expected the end of the text after the value, found '2'"},
    {"\"a\" \n \"b\"", 6, 2, 2,
     "expected the end of the text after the value, found '\"'"},
    {"{}}", 2, 1, 3,
     "expected the end of the text after the value, found '}'"},
    {"1 // one", 2, 1, 3,
     "expected the end of the text after the value, found '/': JSON has no "
     "comments"},
    {"[", 1, 1, 2, "expected a value" CUT},
    {"[1", 2, 1, 3, "expected ',' or ']' after an element" CUT},
    {"[1,", 3, 1, 4, "expected a value after ','" CUT},
    {"[[1]", 4, 1, 5, "expected ',' or ']' after an element" CUT},
    {"{\"a\":[]", 7, 1, 8, "expected ',' or '}' after a member" CUT},
    {"{", 1, 1, 2, "expected a key in double quotes or '}'" CUT},
    {"{\"a\"", 4, 1, 5, "expected ':' after a key" CUT},
    {"{\"a\":", 5, 1, 6, "expected a value" CUT},
    {"{\"a\":1", 6, 1, 7, "expected ',' or '}' after a member" CUT},
    {"{\"a\":1,", 7, 1, 8,
     "expected a key in double quotes after ','" CUT},
    {"[1 2]", 3, 1, 4, "expected ',' or ']' after an element, found '2'"},
    {"[1}", 2, 1, 3, "expected ',' or ']' after an element, found '}'"},
    {"{\n  \"a\": 1,\n  \"b\" x\n}", 18, 3, 7,
     "expected ':' after a key, found 'x'"},
    {"{\n  \"a\": 1 x\n}", 11, 2, 10,
     "expected ',' or '}' after a member, found 'x'"},
    {"{\"a\":1]", 6, 1, 7,
     "expected ',' or '}' after a member, found ']'"},
    {"[1,]", 3, 1, 4,
     "expected a value after ',', found ']': remove the comma before it"},
    {"[,1]", 1, 1, 2,
     "expected a value, found ',': remove it, or send null"},
    {"[1,,2]", 3, 1, 4,
     "expected a value after ',', found ',': remove it, or send null"},
    {"{\"a\":}", 5, 1, 6, "expected a value, found '}'"},
    {"{\"a\":1,}", 7, 1, 8,
     "expected a key in double quotes after ',', found '}': remove the comma "
     "before it"},
    {"{,}", 1, 1, 2, "expected a key in double quotes or '}', found ','"},
    {"{'a':1}", 1, 1, 2, "expected a key in double quotes or '}', found '''"},
    {"{a:1}", 1, 1, 2, "expected a key in double quotes or '}', found 'a'"},
    {"{\"a\":1,b:2}", 7, 1, 8,
     "expected a key in double quotes after ',', found 'b'"},
    {"{/**/}", 1, 1, 2,
     "expected a key in double quotes or '}', found '/': JSON has no "
     "comments"},
    {"['a']", 1, 1, 2,
     "expected a value, found ''': strings are written in double quotes"},
    {"[+1]", 1, 1, 2,
     "expected a value, found '+': a number starts with a digit or '-'"},
    {"[.5]", 1, 1, 2,
     "expected a value, found '.': a number starts with a digit or '-'"},
    {"[1,#]", 3, 1, 4,
     "expected a value after ',', found '#': JSON has no comments"},
    {"[01]", 2, 1, 3, "expected no digit after a leading 0, found '1'"},
    {"[1.]", 3, 1, 4, "expected a digit after the decimal point, found ']'"},
    {"[1e]", 3, 1, 4, "expected a digit in the exponent, found ']'"},
    {"-", 1, 1, 2, "expected a digit after '-'" CUT},
    {"1e+", 3, 1, 4, "expected a digit in the exponent" CUT},
    {"[0x10]", 2, 1, 3, "expected ',' or ']' after an element, found 'x'"},
    {"[1e999]", 1, 1, 2,
     "expected a number up to about 1.8e308, found a larger one: send it as a "
     "string"},
    {"\"", 1, 1, 2, "expected '\"' to end a string" CUT},
    {"\"abc", 4, 1, 5, "expected '\"' to end a string" CUT},
    {"[\"abc]", 6, 1, 7, "expected '\"' to end a string" CUT},
    {"[\"abcdefghijklmnopqrstuvwxyz]", 29, 1, 30,
     "expected '\"' to end a string" CUT},
    {"[\"a\nb\"]", 3, 1, 4,
     "expected no control character inside a string, found byte 0x0A: write "
     "it as \\n"},
    {"[\"a\tb\"]", 3, 1, 4,
     "expected no control character inside a string, found byte 0x09: write "
     "it as \\t"},
    {"[\"\r\"]", 2, 1, 3,
     "expected no control character inside a string, found byte 0x0D: write "
     "it as \\r"},
    {"[\"\x1F\"]", 2, 1, 3,
     "expected no control character inside a string, found byte 0x1F: write "
     "it as \\u and four hex digits"},
    {"[\"\\x\"]", 3, 1, 4,
     "expected one of \"\\/bfnrtu after a backslash, found 'x': write the "
     "backslash itself as \\\\"},
    {"\"\\", 2, 1, 3,
     "expected one of \"\\/bfnrtu after a backslash" CUT},
    {"[\"\\u12g4\"]", 6, 1, 7,
     "expected four hex digits after \\u, found 'g'"},
    {"\"\\u12", 5, 1, 6, "expected four hex digits after \\u" CUT},
    {"[\"\\ud83d\"]", 2, 1, 3, PAIR},
    {"[\"ab\\ude00\"]", 4, 1, 5, PAIR},
    {"[\"\\ud83d\\n\"]", 2, 1, 3, PAIR},
    {"[\"\\ud83d\\u0041\"]", 2, 1, 3, PAIR},
    {"[\"\\ud83d\\ud83d\"]", 2, 1, 3, PAIR},
    {"[\"\\ud83d\\ux\"]", 10, 1, 11,
     "expected four hex digits after \\u, found 'x'"},
    {"[\"\xC3\xA9\xE2\x82\xAC\", \xFF]", 10, 1, 8,
     "expected a value after ',', found byte 0xFF"},
    {"[\"\xC3\xA9\", \xC3\xA9]", 7, 1, 7,
     "expected a value after ',', found '\xC3\xA9'"},
    {"[\"a\xFF\"]", 3, 1, 4,
     "expected UTF-8, found byte 0xFF: the text must be encoded as UTF-8"},
    {"[\"a\xED\xA0\x80\"]", 3, 1, 4,
     "expected UTF-8, found byte 0xED: the text must be encoded as UTF-8"},
    {"\"a\xE2\x82\"", 2, 1, 3,
     "expected UTF-8, found byte 0xE2: the text must be encoded as UTF-8"},
    {"\"a\xE2\x82", 2, 1, 3,
     "expected UTF-8, found byte 0xE2: the text must be encoded as UTF-8"},
    {"[1\f]", 2, 1, 3,
     "expected ',' or ']' after an element, found byte 0x0C"},
};

static void json_errors_name_fault_place_and_remedy(void) {
    size_t i;
    for (i = 0; i < sizeof syntax_errors / sizeof syntax_errors[0]; i++) {
        const error_case *c = &syntax_errors[i];
        doc_t             doc = HFSB_INIT;
        hfsb_err          err;
        char              want[300];
        hfsb_status st = parse_with(hfsb_cstr(c->text), NULL, &doc, &err);
        snprintf(want, sizeof want, "line %d, column %d: %s", (int)c->line,
                 (int)c->column, c->msg);
        T_CHECK(st == HFSB_SYNTAX && err.code == HFSB_SYNTAX);
        T_CHECK(err.pos == c->pos);
        T_CHECK(err.line == c->line && err.column == c->column);
        T_CHECK(!strcmp(err.msg, want));
        if (strcmp(err.msg, want) || err.pos != c->pos)
            printf("  %s\n  is   %s (%d)\n  want %s\n", c->text, err.msg,
                   (int)err.pos, want);
        T_CHECK(!doc.root && !doc.block && !doc.size);
        T_CHECK(both_agree(hfsb_cstr(c->text), NULL));
    }
}

/* A NUL byte does not end the text. */
static void json_refuses_nul_bytes(void) {
    doc_t    doc = HFSB_INIT;
    hfsb_err err;
    T_CHECK(parse_with(HFSB_LIT("[1]\0"), NULL, &doc, &err) == HFSB_SYNTAX);
    T_CHECK(err.pos == 3);
    T_CHECK(parse_with(HFSB_LIT("1\0"), NULL, &doc, &err) == HFSB_SYNTAX);
    T_CHECK(err.pos == 1);
    T_CHECK(parse_with(HFSB_LIT("\0"), NULL, &doc, &err) == HFSB_SYNTAX);
    T_CHECK(err.pos == 0);
    T_CHECK(!strcmp(err.msg, "line 1, column 1: expected a value, found byte "
                             "0x00"));
    T_CHECK(parse_with(HFSB_LIT("[\"a\0b\"]"), NULL, &doc, &err) ==
            HFSB_SYNTAX);
    T_CHECK(err.pos == 3);
}

static void json_reports_depth_and_size_limits(void) {
    hfsb_json_parse_opts opts = HFSB_INIT;
    doc_t                doc = HFSB_INIT;
    hfsb_err             err;
    opts.max_depth = 2;
    T_CHECK(parse_with(HFSB_LIT("[[1],{}]"), &opts, &doc, &err) == HFSB_OK);
    hfsb_json_free(&doc);
    T_CHECK(parse_with(HFSB_LIT("[1,\n[[]]]"), &opts, &doc, &err) ==
            HFSB_LIMIT);
    T_CHECK(err.code == HFSB_LIMIT && err.pos == 5);
    T_CHECK(err.line == 2 && err.column == 2);
    T_CHECK(!strcmp(err.msg, "line 2, column 2: arrays and objects are nested "
                             "more than 2 deep"));
    opts.max_bytes = 8;
    T_CHECK(parse_with(HFSB_LIT("\"123456\""), &opts, &doc, &err) == HFSB_OK);
    hfsb_json_free(&doc);
    T_CHECK(parse_with(HFSB_LIT("\"1234567\""), &opts, &doc, &err) ==
            HFSB_LIMIT);
    T_CHECK(!strcmp(err.msg, "the text has 9 bytes, at most 8 are allowed"));
    T_CHECK(both_agree(HFSB_LIT("\"1234567\""), &opts));
}

/* ---- reading ---- */

static void json_reads_every_type(void) {
    doc_t    doc;
    hfsb_str none = HFSB_LIT("?");
    T_CHECK(parse(" {\"n\":null,\"t\":true,\"f\":false,\"i\":-7,"
                  "\"u\":18446744073709551615,\"d\":1.5,\"s\":\"a\\u0000b\","
                  "\"a\":[1,[2,3],{}],\"o\":{\"x\":1}} \n", &doc) == HFSB_OK);
    T_CHECK(hfsb_json_type_of(doc.root) == HFSB_JSON_OBJECT);
    T_CHECK(hfsb_json_count(doc.root) == 9);
    T_CHECK(get(&doc, "n") && !get(&doc, "zz"));
    T_CHECK(hfsb_json_type_of(get(&doc, "n")) == HFSB_JSON_NULL);
    T_CHECK(hfsb_json_bool(get(&doc, "t"), false));
    T_CHECK(!hfsb_json_bool(get(&doc, "f"), true));
    T_CHECK(hfsb_json_bool(get(&doc, "i"), true));
    T_CHECK(hfsb_json_int(get(&doc, "i"), 1) == -7);
    T_CHECK(hfsb_json_uint(get(&doc, "i"), 1) == 1);
    T_CHECK(hfsb_json_int(get(&doc, "u"), 1) == 1);
    T_CHECK(hfsb_json_uint(get(&doc, "u"), 1) == 18446744073709551615u);
    T_CHECK(hfsb_json_double(get(&doc, "u"), 1) == 18446744073709551616.0);
    T_CHECK(hfsb_json_double(get(&doc, "i"), 1) == -7.0);
    T_CHECK(hfsb_json_double(get(&doc, "d"), 1) == 1.5);
    T_CHECK(hfsb_json_double(get(&doc, "s"), 1) == 1.0);
    T_CHECK(hfsb_json_int(get(&doc, "d"), 3) == 3);
    T_STR(hfsb_json_str(get(&doc, "s"), none), "a\0b");
    T_CHECK(hfsb_json_str(get(&doc, "s"), none).ptr[3] == '\0');
    T_STR(hfsb_json_str(get(&doc, "i"), none), "?");
    T_CHECK(hfsb_json_count(get(&doc, "s")) == 0);
    T_CHECK(hfsb_json_int(hfsb_json_at(get(&doc, "a"), 0), 0) == 1);
    T_CHECK(hfsb_json_count(hfsb_json_at(get(&doc, "a"), 1)) == 2);
    T_CHECK(hfsb_json_type_of(hfsb_json_at(get(&doc, "a"), 2)) ==
            HFSB_JSON_OBJECT);
    T_CHECK(!hfsb_json_at(get(&doc, "a"), 3));
    T_CHECK(!hfsb_json_at(get(&doc, "o"), 0));
    T_CHECK(!hfsb_json_get(get(&doc, "a"), "x"));
    T_CHECK(hfsb_json_int(hfsb_json_get(get(&doc, "o"), "x"), 0) == 1);
    hfsb_json_free(&doc);
    T_CHECK(!doc.root && !doc.block);
}

static void json_paths_lead_through_objects_and_arrays(void) {
    static const struct {
        const char *path;
        int         value; /* 0: there is none */
    } list[] = {{"a.b.0.c", 1},
                {"a.b.1", 2},
                {"a.b.01", 2},
                {"a.0", 3},
                {"a.", 6}, /* its key is empty */
                {"x", 5},  /* the last one of two */
                {"x.", 0},
                {"a.b.2", 0},
                {"a.b.-1", 0},
                {"a.b.1x", 0},
                {"a.b.", 0},
                {"a.b.1.c", 0},
                {"a.b.18446744073709551617", 0},
                {"A.0", 0},
                {".x", 0}};
    doc_t  doc;
    size_t i;
    T_CHECK(parse("{\"a\":{\"b\":[{\"c\":1},2],\"0\":3,\"\":6},"
                  "\"x\":4,\"x\":5}",
                  &doc) == HFSB_OK);
    T_CHECK(hfsb_json_path(doc.root, "") == doc.root);
    T_CHECK(!hfsb_json_path(NULL, "a") && !hfsb_json_path(NULL, ""));
    for (i = 0; i < sizeof list / sizeof *list; i++)
        T_CHECK(hfsb_json_int(hfsb_json_path(doc.root, list[i].path), 0) ==
                list[i].value);
    hfsb_json_free(&doc);
}

static void json_absent_is_harmless(void) {
    hfsb_json_iter it = hfsb_json_begin(NULL);
    hfsb_buf       out = HFSB_INIT;
    T_CHECK(hfsb_json_type_of(NULL) == HFSB_JSON_NULL);
    T_CHECK(hfsb_json_bool(NULL, true) && hfsb_json_int(NULL, 5) == 5);
    T_CHECK(hfsb_json_uint(NULL, 5) == 5 && hfsb_json_double(NULL, 5) == 5);
    T_STR(hfsb_json_str(NULL, HFSB_LIT("x")), "x");
    T_CHECK(!hfsb_json_count(NULL) && !hfsb_json_at(NULL, 0));
    T_CHECK(!hfsb_json_get(NULL, "a") && !hfsb_json_next(&it));
    T_CHECK(hfsb_json_write(NULL, NULL, &out, NULL) == HFSB_OK);
    T_STR(out, "null");
    hfsb_buf_free(&out);
}

static void json_type_names_are_for_people(void) {
    static const char *const names[] = {"null",    "boolean", "integer",
                                        "integer", "number",  "string",
                                        "array",   "object"};
    int i;
    for (i = 0; i < 8; i++)
        T_CHECK(!strcmp(hfsb_json_type_name((hfsb_json_type)i), names[i]));
}

static void json_iterates_in_order(void) {
    doc_t          doc;
    hfsb_json_iter it;
    T_CHECK(parse("{\"b\":[1,{\"x\":[]}],\"a\":{},\"b\":3}", &doc) == HFSB_OK);
    it = hfsb_json_begin(doc.root);
    T_CHECK(hfsb_json_next(&it) && hfsb_json_count(it.value) == 2);
    T_STR(it.key, "b");
    T_CHECK(hfsb_json_next(&it) && !hfsb_json_count(it.value));
    T_STR(it.key, "a");
    T_CHECK(hfsb_json_next(&it) && hfsb_json_int(it.value, 0) == 3);
    T_CHECK(!hfsb_json_next(&it) && !hfsb_json_next(&it));
    it = hfsb_json_begin(hfsb_json_at(doc.root, 0));
    T_CHECK(!hfsb_json_next(&it));
    T_CHECK(hfsb_json_int(get(&doc, "b"), 0) == 3); /* the last one wins */
    hfsb_json_free(&doc);
}

static void json_accepts_any_root(void) {
    static const char *const cases[] = {
        "0", "-0.0", "1e5", "true", "false", "null", "\"\"", "\"a\"",
        "[]", "{}", " [ ] ", "\t{\r\n}", "123456789012345678901234567890"};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        doc_t doc;
        T_CHECK(parse(cases[i], &doc) == HFSB_OK && doc.root);
        T_CHECK(both_agree(hfsb_cstr(cases[i]), NULL));
        hfsb_json_free(&doc);
    }
}

/* ---- keys ---- */

static void json_refuses_a_key_given_twice(void) {
    static const error_case cases[] = {
        {"{\"a\":1,\"a\":2}", 7, 1, 8, "a"},
        {"{\"a\":1,\n \"b\":{\"x\":1,\"y\":[],\"x\":2}}", 27, 2, 20, "x"},
        {"[{\"\":[1,\"]{\\\"\"], \"b\" : -1.5e3 , \"\":2}]", 32, 1, 33, ""},
        {"{\"k1\":1,\"k2\":1,\"k3\":1,\"k4\":1,\"k5\":1,\"k6\":1,\"k7\":1,"
         "\"k8\":1,\"k9\":1,\"k10\":1,\"k11\":1,\"k12\":1,\"k13\":1,"
         "\"k14\":1,\"k15\":1,\"k16\":1,\"k17\":1,\"k9\":2,\"k1\":3}",
         128, 1, 129, "k9"},
    };
    hfsb_json_parse_opts opts = HFSB_INIT;
    size_t               i;
    opts.unique_keys = true;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        doc_t    doc = HFSB_INIT;
        hfsb_err err;
        char     want[200];
        snprintf(want, sizeof want,
                 "line %d, column %d: expected each key once in an object, "
                 "found \"%s\" again: remove one of the two",
                 (int)cases[i].line, (int)cases[i].column, cases[i].msg);
        T_CHECK(parse_with(hfsb_cstr(cases[i].text), &opts, &doc, &err) ==
                HFSB_SYNTAX);
        T_CHECK(err.pos == cases[i].pos && err.line == cases[i].line);
        T_CHECK(err.column == cases[i].column && !strcmp(err.msg, want));
        if (strcmp(err.msg, want)) printf("%s\n%s\n", err.msg, want);
        T_CHECK(both_agree(hfsb_cstr(cases[i].text), &opts));
        T_CHECK(!doc.root);
        T_CHECK(parse_with(hfsb_cstr(cases[i].text), NULL, &doc, &err) ==
                HFSB_OK);
        hfsb_json_free(&doc);
    }
}

static void json_compares_keys_decoded(void) {
    hfsb_json_parse_opts opts = HFSB_INIT;
    doc_t                doc = HFSB_INIT;
    hfsb_err             err;
    opts.unique_keys = true;
    T_CHECK(parse_with(HFSB_LIT("{\"\\u0061\":1,\"a\":\"\\n\"}"), &opts, &doc,
                       &err) == HFSB_SYNTAX);
    T_CHECK(err.pos == 12);
    T_CHECK(both_agree(HFSB_LIT("{\"\\u0061\":1,\"a\":\"\\n\"}"), &opts));
    T_CHECK(both_agree(HFSB_LIT("{\"\\u0061\":1,\"b\":\"\\n\"}"), &opts));
    T_CHECK(parse_with(HFSB_LIT("{\"a\":{\"a\":1},\"A\":[{\"a\":1}]}"), &opts,
                       &doc, &err) == HFSB_OK);
    hfsb_json_free(&doc);
}

static void json_checks_a_million_keys_in_time(void) {
    hfsb_json_parse_opts opts = HFSB_INIT;
    hfsb_buf             text = HFSB_INIT;
    doc_t                doc = HFSB_INIT;
    hfsb_err             err;
    long long            i, count = t_quick() ? 100000 : 1000000;
    bool                 ok = hfsb_buf_append_byte(&text, '{') == HFSB_OK;
    opts.unique_keys = true;
    for (i = 0; ok && i < count; i++)
        ok = hfsb_buf_printf(&text, "\"key%07lld\":%lld,", i * 7919 % count,
                             i) == HFSB_OK;
    ok = ok && hfsb_buf_append(&text, HFSB_LIT("\"last\":0}")) == HFSB_OK;
    T_CHECK(ok);
    T_CHECK(hfsb_json_parse(text_of(&text), &opts, &doc, &err) == HFSB_OK);
    T_CHECK(hfsb_json_count(doc.root) == (size_t)count + 1);
    T_CHECK(hfsb_json_int(get(&doc, "key0007919"), 0) == 1);
    hfsb_json_free(&doc);
    hfsb_buf_truncate(&text, text.len - 9);
    put(&text, "\"key0050000\":0}");
    T_CHECK(hfsb_json_parse(text_of(&text), &opts, &doc, &err) ==
            HFSB_SYNTAX);
    T_CHECK(err.pos == text.len - 15);
    hfsb_buf_free(&text);
}

/* ---- depth ---- */

static void json_nests_512_deep_and_no_deeper(void) {
    hfsb_json_parse_opts opts = HFSB_INIT;
    size_t               depth;
    for (depth = 511; depth <= 513; depth++) {
        hfsb_buf    text = HFSB_INIT;
        doc_t       doc = HFSB_INIT;
        hfsb_err    err;
        hfsb_status st;
        size_t      i;
        for (i = 0; i < depth; i++) put(&text, i % 2 ? "{\"a\":" : "[");
        put(&text, "1");
        for (i = depth; i-- > 0;) put(&text, i % 2 ? "}" : "]");
        st = parse_with(text_of(&text), NULL, &doc, &err);
        T_CHECK(st == (depth <= 512 ? HFSB_OK : HFSB_LIMIT));
        T_CHECK(st == HFSB_OK || err.pos == 256 + 256 * 5);
        hfsb_json_free(&doc);
        opts.max_depth = depth;
        T_CHECK(parse_with(text_of(&text), &opts, &doc, &err) == HFSB_OK);
        hfsb_json_free(&doc);
        hfsb_buf_free(&text);
    }
}

static void json_limits_the_number_of_values(void) {
    hfsb_json_parse_opts opts = HFSB_INIT;
    size_t               n, way, i;
    for (way = 0; way < 3; way++)
        for (n = 1; n < 3000; n = n < 40 ? n + 1 : n * 2) {
            hfsb_buf    text = HFSB_INIT;
            doc_t       doc = HFSB_INIT;
            hfsb_err    err;
            size_t      nodes = way == 1 ? 2 * n + 1 : n + 1;
            hfsb_status st;
            put(&text, way == 1 ? "{" : "[");
            for (i = 0; i < n; i++) {
                if (i) put(&text, ",");
                put(&text, way == 0 ? "1" : way == 1 ? "\"k\":1" : "[]");
            }
            put(&text, way == 1 ? "}" : "]");
            opts.max_values = nodes;
            T_CHECK(parse_with(text_of(&text), &opts, &doc, &err) == HFSB_OK);
            hfsb_json_free(&doc);
            opts.max_values = nodes - 1;
            st = parse_with(text_of(&text), &opts, &doc, &err);
            T_CHECK(st == HFSB_LIMIT && !doc.root);
            T_CHECK(strstr(err.msg, "values and keys are allowed"));
            hfsb_buf_free(&text);
        }
}

static void json_survives_any_allowed_depth(void) {
    const size_t         depth = 200000;
    hfsb_json_parse_opts opts = HFSB_INIT;
    hfsb_buf             text = HFSB_INIT, out = HFSB_INIT;
    doc_t                doc = HFSB_INIT;
    size_t               i;
    opts.max_depth = depth;
    for (i = 0; i < depth; i++) put(&text, "[");
    T_CHECK(hfsb_json_parse(text_of(&text), &opts, &doc, NULL) ==
            HFSB_SYNTAX);
    for (i = 0; i < depth; i++) put(&text, "]");
    T_CHECK(hfsb_json_parse(text_of(&text), NULL, &doc, NULL) == HFSB_LIMIT);
    T_CHECK(hfsb_json_parse(text_of(&text), &opts, &doc, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_write(doc.root, NULL, &out, NULL) == HFSB_OK);
    T_CHECK(hfsb_str_equal(text_of(&out), text_of(&text)));
    hfsb_json_free(&doc);
    hfsb_buf_free(&text);
    hfsb_buf_free(&out);
}

/* ---- memory ---- */

/* Big enough to grow, deep enough for the writer's stack, with keys to sort;
   every part of the module uses one allocator. */
static hfsb_buf oom_text;

static void make_oom_text(void) {
    int i;
    put(&oom_text, "{");
    for (i = 0; i < 400; i++) {
        char member[64];
        snprintf(member, sizeof member, "\"k%d\":[1,2,3,4,{\"a\\n\":\"b\"}],",
                 i);
        put(&oom_text, member);
    }
    put(&oom_text, "\"deep\":");
    for (i = 0; i < 100; i++) put(&oom_text, "[");
    for (i = 0; i < 100; i++) put(&oom_text, "]");
    put(&oom_text, "}");
}

static void oom_run(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_json_parse_opts opts = HFSB_INIT;
    doc_t                doc = HFSB_INIT;
    hfsb_buf             out = HFSB_INIT;
    hfsb_err             err;
    hfsb_json_writer     w;
    hfsb_str             exact = t_exact(oom_text.ptr, oom_text.len);
    hfsb_status          st;
    int                  in_place;
    bool                 faultless = heap->fail_at == 0;
    opts.unique_keys = true;
    doc.alloc = alloc;
    out.alloc = alloc;
    for (in_place = 0; in_place < 2; in_place++) {
        opts.unique_keys = in_place == 0;
        st = in_place ? hfsb_json_parse_in_place(
                            (char *)(uintptr_t)exact.ptr, exact.len, &opts,
                            &doc, &err)
                      : hfsb_json_parse(exact, &opts, &doc, &err);
        T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && !faultless));
        T_CHECK(st == HFSB_OK || (!doc.root && err.code == HFSB_NOMEM &&
                !strcmp(err.msg, "reading JSON: out of memory.")));
        if (st != HFSB_OK) continue;
        T_CHECK(hfsb_json_count(doc.root) == 401);
        st = hfsb_json_write(doc.root, NULL, &out, &err);
        T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && !faultless));
        T_CHECK(st == HFSB_OK ? hfsb_str_equal(text_of(&out),
                                               text_of(&oom_text))
                              : out.len == 0);
        hfsb_buf_truncate(&out, 0);
        hfsb_json_writer_init(&w, &out, NULL);
        hfsb_json_put_array(&w);
        hfsb_json_put_str(&w, exact);
        hfsb_json_put_value(&w, doc.root);
        hfsb_json_put_end(&w);
        st = hfsb_json_writer_finish(&w, &err);
        T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && !faultless));
        T_CHECK(st == HFSB_OK || out.len == 0);
        hfsb_buf_free(&out);
        hfsb_json_free(&doc);
    }
    t_drop(exact);
}

static void json_survives_each_failing_allocation(void) {
    make_oom_text();
    t_each_allocation_fails(oom_run);
    hfsb_buf_free(&oom_text);
}

static void scalar_oom_run(hfsb_alloc alloc, const t_heap *heap) {
    doc_t       doc = HFSB_INIT;
    hfsb_status st;
    doc.alloc = alloc;
    st = hfsb_json_parse(HFSB_LIT("12.5"), NULL, &doc, NULL);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at));
    T_CHECK(st != HFSB_OK || hfsb_json_double(doc.root, 0) == 12.5);
    hfsb_json_free(&doc);
    st = hfsb_json_parse(HFSB_LIT("[1"), NULL, &doc, NULL); /* fails anyway */
    T_CHECK(st == HFSB_SYNTAX || (st == HFSB_NOMEM && heap->fail_at));
}

static void json_scalars_and_errors_survive_failing_allocation(void) {
    t_each_allocation_fails(scalar_oom_run);
}

/* Every proper prefix of a document in brackets or quotes is refused. */
static void json_refuses_every_prefix(void) {
    static const char *const cases[] = {
        "{\"a\":[1,-2,18446744073709551615,1.5,0.0],\"e\":[],\"o\":{},"
        "\"s\":\"q\\\"b\\\\n\\n\\u0001\",\"k\":{\"t\":true,\"n\":null}}",
        "{\n  \"a\": [\n    1,\n    1.5e-7\n  ],\n  \"o\": {},\n  \"f\": "
        "false\n}",
        arguments, "[[[[[]]]],{}]",
        "\"\\ud83d\\ude00 \xF0\x9F\x98\x80 and some more text\""};
    size_t i, n;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (n = 0; n < strlen(cases[i]); n++) {
            hfsb_str part = hfsb_str_make(cases[i], n);
            doc_t    doc = HFSB_INIT;
            hfsb_err err;
            T_CHECK(parse_with(part, NULL, &doc, &err) == HFSB_SYNTAX);
            T_CHECK(err.pos <= n && !doc.root);
            T_CHECK(both_agree(part, NULL));
        }
}

/* Appends n blanks that begin a line: '\n', then tabs or spaces. */
static void put_blanks(hfsb_buf *text, size_t n, const char *blank) {
    if (n) put(text, "\n");
    t_repeat(text, blank, n ? n - 1 : 0);
}

/* Three numbers with runs of blanks before the second, the third and the
   bracket: like the run before, shorter, longer, of other blanks, or with a
   byte in the last one that is no blank. */
static void check_blanks(size_t first, size_t second, const char *blank) {
    hfsb_buf text = HFSB_INIT;
    doc_t    doc = HFSB_INIT;
    hfsb_err err;
    size_t   i, from;
    put(&text, "[1,");
    put_blanks(&text, first, " ");
    put(&text, "2,");
    from = text.len;
    put_blanks(&text, second, blank);
    put(&text, "3");
    put_blanks(&text, first, blank);
    put(&text, "]");
    T_CHECK(parse_with(text_of(&text), NULL, &doc, &err) == HFSB_OK);
    T_CHECK(hfsb_json_int(hfsb_json_at(doc.root, 2), 0) == 3);
    T_CHECK(both_agree(text_of(&text), NULL));
    hfsb_json_free(&doc);
    for (i = from; i < from + second; i++) {
        char was = text.ptr[i];
        text.ptr[i] = '\v';
        T_CHECK(parse_with(text_of(&text), NULL, &doc, &err) == HFSB_SYNTAX);
        T_CHECK(err.pos == i);
        text.ptr[i] = was;
    }
    hfsb_buf_free(&text);
}

static void json_skips_blanks_like_the_last_ones_or_not(void) {
    size_t first, second;
    for (first = 0; first < 40; first++)
        for (second = 0; second < 40; second++) {
            check_blanks(first, second, " ");
            check_blanks(first, second, "\t");
        }
    for (first = 254; first < 258; first++)
        for (second = 254; second < 258; second++)
            check_blanks(first, second, " ");
}

/* Only keys must be decoded to find one that is repeated: a long value with
   escapes is not copied. */
static void in_place_does_not_copy_values_with_escapes(void) {
    hfsb_json_parse_opts opts = HFSB_INIT;
    hfsb_json_doc        doc = HFSB_INIT;
    hfsb_buf             text = HFSB_INIT, want = HFSB_INIT;
    char                 twice[] = "{\"a\":\"1\\n2\",\n \"a\":3}";
    hfsb_err             err;
    opts.unique_keys = true;
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("{\"a\":\"")) == HFSB_OK);
    t_repeat(&text, "line\\n", 100000);
    t_repeat(&want, "line\n", 100000);
    T_CHECK(hfsb_buf_append(&text, HFSB_LIT("\"}")) == HFSB_OK);
    T_CHECK(hfsb_json_parse_in_place(text.ptr, text.len, &opts, &doc, &err) ==
            HFSB_OK);
    T_CHECK(hfsb_str_equal(
        hfsb_json_str(hfsb_json_get(doc.root, "a"), HFSB_LIT("")),
        hfsb_buf_str(&want)));
    T_CHECK(doc.size < 10000);
    hfsb_json_free(&doc);
    T_CHECK(hfsb_json_parse_in_place(twice, strlen(twice), &opts, &doc,
                                     &err) == HFSB_SYNTAX);
    T_CHECK(strstr(err.msg, "line 2") != NULL);
    hfsb_buf_free(&text);
    hfsb_buf_free(&want);
}

int main(void) {
    T_RUN(json_errors_name_fault_place_and_remedy);
    T_RUN(json_refuses_nul_bytes);
    T_RUN(json_reports_depth_and_size_limits);
    T_RUN(json_reads_every_type);
    T_RUN(json_paths_lead_through_objects_and_arrays);
    T_RUN(json_absent_is_harmless);
    T_RUN(json_type_names_are_for_people);
    T_RUN(json_iterates_in_order);
    T_RUN(json_accepts_any_root);
    T_RUN(json_refuses_a_key_given_twice);
    T_RUN(json_compares_keys_decoded);
    T_RUN(json_checks_a_million_keys_in_time);
    T_RUN(json_nests_512_deep_and_no_deeper);
    T_RUN(json_limits_the_number_of_values);
    T_RUN(json_survives_any_allowed_depth);
    T_RUN(json_survives_each_failing_allocation);
    T_RUN(json_scalars_and_errors_survive_failing_allocation);
    T_RUN(json_refuses_every_prefix);
    T_RUN(json_skips_blanks_like_the_last_ones_or_not);
    T_RUN(in_place_does_not_copy_values_with_escapes);
    return T_END();
}
