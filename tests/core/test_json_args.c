/* test_json_args.c - the arguments of a tool, read leniently. */
#include "../support/t_json.h"

/* kind: b i d s a o; got: the result, or "!" and the message. */
static const struct {
    char        kind;
    const char *key;
    bool        required;
    const char *got;
} argument_cases[] = {
    {'b', "t", true, "1"},
    {'b', "f", true, "0"},
    {'b', "ts", true, "1"},
    {'b', "Fs", true, "0"},
    {'b', "n", false, "default"},
    {'b', "zz", false, "default"},
    {'b', "zz", true, "!\"zz\" is missing: a boolean is required"},
    {'b', "n", true, "!\"n\" is null: a boolean is required"},
    {'b', "i", false, "!\"i\": expected true or false, found 120"},
    {'b', "e", false, "!\"e\": expected true or false, found the string \"\""},
    {'b', "a", false, "!\"a\": expected true or false, found an array"},
    {'i', "i", true, "120"},
    {'i', "is", true, "120"},
    {'i', "ib", true, "-7"},
    {'i', "id", true, "120"},
    {'i', "ids", true, "120"},
    {'i', "min", true, "-9223372036854775808"},
    {'i', "n", false, "default"},
    {'i', "zz", true, "!\"zz\" is missing: an integer is required"},
    {'i', "d", false, "!\"d\": expected an integer of 64 bits, found 0.5"},
    {'i', "ds", false,
     "!\"ds\": expected an integer of 64 bits, found the string \"0.25\""},
    {'i', "u", false,
     "!\"u\": expected an integer of 64 bits, found 18446744073709551615"},
    {'i', "max", false,
     "!\"max\": expected an integer of 64 bits, found 9223372036854776000.0"},
    {'i', "big", false,
     "!\"big\": expected an integer of 64 bits, found 1e300"},
    {'i', "h", false,
     "!\"h\": expected an integer of 64 bits, found the string \"12x\""},
    {'i', "e", false,
     "!\"e\": expected an integer of 64 bits, found the string \"\""},
    {'i', "t", false,
     "!\"t\": expected an integer of 64 bits, found a boolean"},
    {'d', "d", true, "0.5"},
    {'d', "ds", true, "0.25"},
    {'d', "i", true, "120"},
    {'d', "u", true, "1.84467e+19"},
    {'d', "is", true, "120"},
    {'d', "n", false, "default"},
    {'d', "r", false, "!\"r\": expected a number, found the string \"1e999\""},
    {'d', "s", false, "!\"s\": expected a number, found the string \"text\""},
    {'d', "o", true, "!\"o\": expected a number, found an object"},
    {'d', "zz", true, "!\"zz\" is missing: a number is required"},
    {'d', "long", true,
     "!\"long\": expected a number, found the string "
     "\"0123456789012345678901234567890123456789...\""},
    {'s', "s", true, "text"},
    {'s', "e", true, ""},
    {'s', "n", false, "default"},
    {'s', "zz", true, "!\"zz\" is missing: a string is required"},
    {'s', "i", true, "!\"i\": expected a string, found 120"},
    {'s', "t", false, "!\"t\": expected a string, found a boolean"},
    {'a', "a", true, "1 items"},
    {'a', "zz", false, "default"},
    {'a', "o", true, "!\"o\": expected an array, found an object"},
    {'a', "zz", true, "!\"zz\" is missing: an array is required"},
    {'o', "o", true, "0 items"},
    {'o', "s", true, "!\"s\": expected an object, found the string \"text\""},
};

/* The result of reading one argument as text, like the table's `got`. */
static void read_argument(const value_t *object, char kind, const char *key,
                          bool required, char *got, size_t room) {
    hfsb_err       err;
    hfsb_status    st = HFSB_OK;
    bool           b = true;
    long long      i = 424242;
    double         d = 424242;
    hfsb_str       s = HFSB_LIT("default");
    const value_t *v = NULL;
    snprintf(got, room, "default");
    switch (kind) {
    case 'b': {
        bool other = false;
        st = hfsb_json_arg_bool(object, key, required, &b, &err);
        T_CHECK(hfsb_json_arg_bool(object, key, required, &other, NULL) ==
                st);
        if (b == other) snprintf(got, room, "%d", b);
        break;
    }
    case 'i':
        st = hfsb_json_arg_int(object, key, required, &i, &err);
        if (i != 424242) snprintf(got, room, "%lld", i);
        break;
    case 'd':
        st = hfsb_json_arg_double(object, key, required, &d, &err);
        if (d < 424242 || d > 424242) snprintf(got, room, "%g", d);
        break;
    case 's':
        st = hfsb_json_arg_str(object, key, required, &s, &err);
        snprintf(got, room, "%.*s", (int)s.len, s.ptr);
        break;
    default:
        st = hfsb_json_arg_value(
            object, key, required,
            kind == 'a' ? HFSB_JSON_ARRAY : HFSB_JSON_OBJECT, &v, &err);
        if (v) snprintf(got, room, "%d items", (int)hfsb_json_count(v));
    }
    if (st == HFSB_OK) return;
    T_CHECK(st == HFSB_ARG && err.code == HFSB_ARG);
    T_CHECK(!strcmp(err.key, key));
    T_CHECK(!strcmp(got, "default")); /* untouched */
    snprintf(got, room, "!%s", err.msg);
}

static void json_arguments_are_read_leniently(void) {
    doc_t  doc;
    char   got[200];
    size_t i;
    T_CHECK(parse(arguments, &doc) == HFSB_OK);
    for (i = 0; i < sizeof argument_cases / sizeof argument_cases[0]; i++) {
        const char *want = argument_cases[i].got;
        read_argument(doc.root, argument_cases[i].kind, argument_cases[i].key,
                      argument_cases[i].required, got, sizeof got);
        T_CHECK(!strcmp(got, want));
        if (strcmp(got, want)) printf("  is   %s\n  want %s\n", got, want);
    }
    hfsb_json_free(&doc);
}

static void json_arguments_must_be_an_object(void) {
    doc_t doc;
    char  got[200];
    T_CHECK(parse("[1]", &doc) == HFSB_OK);
    read_argument(doc.root, 'i', "timeout", false, got, sizeof got);
    T_CHECK(!strcmp(got, "!the arguments must be an object with \"timeout\", "
                         "not an array"));
    read_argument(NULL, 'i', "timeout", false, got, sizeof got);
    T_CHECK(!strcmp(got, "default"));
    read_argument(NULL, 's', "path", true, got, sizeof got);
    T_CHECK(!strcmp(got, "!\"path\" is missing: a string is required"));
    hfsb_json_free(&doc);
}

/* ---- arrays and objects sent as strings ---- */

static const struct {
    const char *json; /* {"k": this} */
    bool        array, required;
    const char *got; /* as JSON, or the message */
} parsed_cases[] = {
    {"[1,2]", true, true, "[1,2]"},
    {"\"[1, 2]\"", true, true, "[1,2]"},
    {"\" \\n[\\\"a\\\"] \"", true, true, "[\"a\"]"},
    {"\"[]\"", true, true, "[]"},
    {"{\"a\":\"[1]\"}", false, true, "{\"a\":\"[1]\"}"},
    {"\"{\\\"a\\\":{}}\"", false, true, "{\"a\":{}}"},
    {"null", true, false, "default"},
    {"null", true, true, "!\"k\" is null: an array is required"},
    {"5", true, false, "!\"k\": expected an array, found 5"},
    {"{}", true, false, "!\"k\": expected an array, found an object"},
    {"\"\"", true, false, "!\"k\": expected an array, found the string \"\""},
    {"\"a\"", true, false,
     "!\"k\": expected an array, found the string \"a\""},
    {"\"{}\"", true, false,
     "!\"k\": expected an array, found the string \"{}\""},
    {"\"[]\"", false, false,
     "!\"k\": expected an object, found the string \"[]\""},
    {"\"[1\"", true, false,
     "!\"k\": expected an array, found the string \"[1\", which is not "
     "JSON: "},
    {"\"{\\\"a\\\":1,\\\"a\\\":2}\"", false, false,
     "!\"k\": expected an object, found the string \"{\"a\":1,\"a\":2}\", "
     "which is not JSON: "},
};

/* The result of case i, with the document on alloc. */
static hfsb_status read_parsed(size_t i, hfsb_alloc alloc, hfsb_buf *got) {
    hfsb_json_doc  outer = HFSB_INIT, doc = HFSB_INIT;
    hfsb_err       err = HFSB_INIT;
    const value_t *value = NULL;
    char           json[200];
    hfsb_status    st;
    snprintf(json, sizeof json, "{\"k\":%s}", parsed_cases[i].json);
    T_CHECK(hfsb_json_parse(hfsb_cstr(json), NULL, &outer, NULL) == HFSB_OK);
    doc.alloc = alloc;
    st = hfsb_json_arg_parsed(
        outer.root, "k", parsed_cases[i].required,
        parsed_cases[i].array ? HFSB_JSON_ARRAY : HFSB_JSON_OBJECT, &doc,
        &value, &err);
    if (st != HFSB_OK)
        T_CHECK(!value && err.code == st &&
                !strcmp(err.key, st == HFSB_ARG ? "k" : "") &&
                hfsb_buf_printf(got, "!%s", err.msg) == HFSB_OK);
    else if (value) T_CHECK(!hfsb_json_write(value, NULL, got, NULL));
    else T_CHECK(!hfsb_buf_append(got, HFSB_LIT("default")));
    hfsb_json_free(&doc);
    hfsb_json_free(&outer);
    return st;
}

static void arrays_and_objects_may_come_as_strings(void) {
    size_t i;
    for (i = 0; i < sizeof parsed_cases / sizeof *parsed_cases; i++) {
        hfsb_alloc alloc = HFSB_INIT;
        hfsb_buf   got = HFSB_INIT;
        hfsb_str   want = hfsb_cstr(parsed_cases[i].got);
        (void)read_parsed(i, alloc, &got);
        if (hfsb_str_ends(want, HFSB_LIT("JSON: ")))
            hfsb_buf_truncate(&got, want.len); /* and the parser's words */
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&got), want));
        if (!hfsb_str_equal(hfsb_buf_str(&got), want))
            printf("  is   %s\n  want %s\n", got.ptr, want.ptr);
        hfsb_buf_free(&got);
    }
}

static void parse_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_buf    got = HFSB_INIT;
    hfsb_status st = read_parsed(1, alloc, &got);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at));
    hfsb_buf_free(&got);
}

static void parsing_a_string_reports_lack_of_memory(void) {
    t_each_allocation_fails(parse_without_memory);
}

int main(void) {
    T_RUN(arrays_and_objects_may_come_as_strings);
    T_RUN(parsing_a_string_reports_lack_of_memory);
    T_RUN(json_arguments_are_read_leniently);
    T_RUN(json_arguments_must_be_an_object);
    return T_END();
}
