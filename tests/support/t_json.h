/* t_json.h - what the tests of JSON share: parsing, both ways. */
#ifndef T_JSON_H
#define T_JSON_H
#include "t.h"

typedef hfsb_json_doc   doc_t;
typedef hfsb_json_value value_t;

HFSBI_UNUSED static hfsb_str text_of(const hfsb_buf *b) { return hfsb_buf_str(b); }

HFSBI_UNUSED static const value_t *get(const doc_t *d, const char *key) {
    return hfsb_json_get(d->root, key);
}

HFSBI_UNUSED static void put(hfsb_buf *b, const char *s) {
    T_CHECK(hfsb_buf_append(b, hfsb_cstr(s)) == HFSB_OK);
}

/* Parses a literal from an exact-size block, which is gone afterwards. */
static hfsb_status parse_with(hfsb_str text, const hfsb_json_parse_opts *opts,
                              doc_t *doc, hfsb_err *err) {
    hfsb_str    exact = t_exact(text.ptr, text.len);
    hfsb_status st = hfsb_json_parse(exact, opts, doc, err);
    t_drop(exact);
    return st;
}

HFSBI_UNUSED static hfsb_status parse(const char *text, doc_t *doc) {
    memset(doc, 0, sizeof *doc);
    return parse_with(hfsb_cstr(text), NULL, doc, NULL);
}

/* Both ways of parsing: same verdict, same error, same tree; a text refused
   in place is as it was. */
HFSBI_UNUSED static bool both_agree(hfsb_str                    text,
                                    const hfsb_json_parse_opts *opts) {
    doc_t       a = HFSB_INIT, b = HFSB_INIT;
    hfsb_err    ea, eb;
    hfsb_buf    wa = HFSB_INIT, wb = HFSB_INIT;
    hfsb_str    exact = t_exact(text.ptr, text.len);
    hfsb_status sa = parse_with(text, opts, &a, &ea);
    hfsb_status sb = hfsb_json_parse_in_place((char *)(uintptr_t)exact.ptr,
                                              exact.len, opts, &b, &eb);
    bool        ok = sa == sb && ea.pos == eb.pos && ea.line == eb.line &&
              ea.column == eb.column && !strcmp(ea.msg, eb.msg) &&
              ea.code == sa;
    if (sb != HFSB_OK) ok = ok && hfsb_str_equal(exact, text) && !b.root;
    if (sa == HFSB_OK && sb == HFSB_OK) {
        ok = ok && hfsb_json_write(a.root, NULL, &wa, NULL) == HFSB_OK &&
             hfsb_json_write(b.root, NULL, &wb, NULL) == HFSB_OK &&
             hfsb_str_equal(text_of(&wa), text_of(&wb));
    }
    hfsb_json_free(&a);
    hfsb_json_free(&b);
    hfsb_buf_free(&wa);
    hfsb_buf_free(&wb);
    t_drop(exact);
    return ok;
}

/* Values of all kinds, as a model may send them. */
HFSBI_UNUSED static const char arguments[] =
    "{\"t\":true,\"f\":false,\"ts\":\"true\",\"Fs\":\"False\",\"i\":120,"
    "\"is\":\"120\",\"ib\":\" -7\\n\",\"id\":120.0,\"ids\":\"1.2e2\","
    "\"d\":0.5,\"ds\":\"0.25\",\"u\":18446744073709551615,\"big\":1e300,"
    "\"s\":\"text\",\"e\":\"\",\"n\":null,\"a\":[1],\"o\":{},\"h\":\"12x\","
    "\"r\":\"1e999\",\"min\":-9223372036854775808.0,"
    "\"max\":9223372036854775808.0,"
    "\"long\":\"0123456789012345678901234567890123456789 and more\"}";

#endif
