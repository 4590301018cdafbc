/* fuzz_json.c - JSON under libFuzzer. What is accepted must survive writing
   and reading, both parsers must agree, and no prefix of a document in
   brackets may be accepted.

   clang -g -O1 -DHFSBI_SPLIT -fsanitize=fuzzer,address,undefined \
     -fno-sanitize-recover=undefined tests/fuzz/fuzz_json.c src/base.c \
     src/find.c src/utf8.c src/number.c src/json_*.c -o fuzz_json
   ./fuzz_json -dict=tests/fuzz/json.dict corpus tests/fuzz/corpus/json   */
#ifdef HFSBI_SPLIT
#include "../../src/core/core_private.h"
#else
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"
#endif

#define MUST(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_both(const hfsb_json_value *value, hfsb_buf *flat,
                       hfsb_buf *pretty) {
    hfsb_json_write_opts opts = HFSB_INIT;
    MUST(hfsb_json_write(value, NULL, flat, NULL) == HFSB_OK);
    opts.pretty = true;
    MUST(hfsb_json_write(value, &opts, pretty, NULL) == HFSB_OK);
}

/* text parses and is written as want. */
static void check_same(hfsb_str text, hfsb_str want) {
    hfsb_json_parse_opts deep = HFSB_INIT;
    hfsb_json_doc        doc = HFSB_INIT;
    hfsb_buf             out = HFSB_INIT;
    deep.max_depth = 1000000;
    MUST(hfsb_json_parse(text, &deep, &doc, NULL) == HFSB_OK);
    MUST(hfsb_json_write(doc.root, NULL, &out, NULL) == HFSB_OK);
    MUST(hfsb_str_equal(hfsb_buf_str(&out), want));
    hfsb_json_free(&doc);
    hfsb_buf_free(&out);
}

static void check_prefix(hfsb_str text, size_t n) {
    hfsb_json_doc doc = HFSB_INIT;
    char         *part = (char *)malloc(n ? n : 1);
    MUST(part != NULL);
    if (n) memcpy(part, text.ptr, n);
    MUST(hfsb_json_parse(hfsb_str_make(part, n), NULL, &doc, NULL) !=
         HFSB_OK);
    MUST(!doc.root && !doc.block);
    free(part);
}

static void check_prefixes(hfsb_str text) {
    char last;
    while (text.len && strchr(" \t\r\n", text.ptr[text.len - 1])) text.len--;
    last = text.ptr[text.len - 1];
    if (last != '}' && last != ']' && last != '"') return;
    check_prefix(text, text.len - 1);
    check_prefix(text, text.len / 2);
    check_prefix(text, text.len / 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hfsb_str             text = hfsb_str_make((const char *)data, size);
    hfsb_json_parse_opts opts = HFSB_INIT;
    hfsb_json_doc        a = HFSB_INIT, b = HFSB_INIT;
    hfsb_err             ea, eb;
    hfsb_buf             flat = HFSB_INIT, pretty = HFSB_INIT;
    hfsb_buf             flat2 = HFSB_INIT, pretty2 = HFSB_INIT;
    hfsb_status          sa, sb;
    char                *copy = (char *)malloc(size ? size : 1);
    MUST(copy != NULL);
    if (size) memcpy(copy, data, size);
    opts.unique_keys = size % 3 == 0;
    opts.max_depth = size % 2 ? 0 : 8;
    sa = hfsb_json_parse(text, &opts, &a, &ea);
    sb = hfsb_json_parse_in_place(copy, size, &opts, &b, &eb);
    MUST(sa == sb && ea.code == sa && eb.code == sb && ea.pos == eb.pos);
    MUST(ea.line == eb.line && ea.column == eb.column);
    MUST(!strcmp(ea.msg, eb.msg));
    if (sa == HFSB_OK) {
        write_both(a.root, &flat, &pretty);
        write_both(b.root, &flat2, &pretty2);
        MUST(hfsb_str_equal(hfsb_buf_str(&flat), hfsb_buf_str(&flat2)));
        MUST(hfsb_str_equal(hfsb_buf_str(&pretty), hfsb_buf_str(&pretty2)));
        check_same(hfsb_buf_str(&flat), hfsb_buf_str(&flat));
        check_same(hfsb_buf_str(&pretty), hfsb_buf_str(&flat));
        check_prefixes(text);
    } else {
        MUST(ea.pos <= size && ea.line && ea.column && ea.msg[0]);
        MUST(!a.root && !b.root && (!size || !memcmp(copy, data, size)));
        MUST(hfsb_utf8_validate(hfsb_cstr(ea.msg)) == strlen(ea.msg));
    }
    hfsb_json_free(&a);
    hfsb_json_free(&b);
    hfsb_buf_free(&flat);
    hfsb_buf_free(&pretty);
    hfsb_buf_free(&flat2);
    hfsb_buf_free(&pretty2);
    free(copy);
    return 0;
}
