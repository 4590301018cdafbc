/* json_error.c - says what is wrong with a JSON text, where, and what to do.
   Depends on: base, utf8. */
#include "json_tree.h"

static const char *hfsbi_json_expected(const hfsbi_json_parser *p) {
    switch (p->fault) {
    case HFSBI_JSON_NO_VALUE: return "expected a value";
    case HFSBI_JSON_NO_ITEM: return "expected a value after ','";
    case HFSBI_JSON_NO_WORD: return "expected 'true', 'false' or 'null'";
    case HFSBI_JSON_NO_KEY: return "expected a key in double quotes or '}'";
    case HFSBI_JSON_NO_NEXT_KEY:
        return "expected a key in double quotes after ','";
    case HFSBI_JSON_NO_COLON: return "expected ':' after a key";
    case HFSBI_JSON_NO_ARRAY_END:
        return "expected ',' or ']' after an element";
    case HFSBI_JSON_NO_OBJECT_END:
        return "expected ',' or '}' after a member";
    case HFSBI_JSON_NO_TEXT_END:
        return "expected the end of the text after the value";
    case HFSBI_JSON_NO_STRING_END: return "expected '\"' to end a string";
    case HFSBI_JSON_CONTROL:
        return "expected no control character inside a string";
    case HFSBI_JSON_NO_ESCAPE:
        return "expected one of \"\\/bfnrtu after a backslash";
    case HFSBI_JSON_NO_HEX: return "expected four hex digits after \\u";
    case HFSBI_JSON_NO_UTF8: return "expected UTF-8";
    default: return p->expected;
    }
}

/* What to do, when more can be said than what was expected. */
static const char *hfsbi_json_value_advice(char c, bool listed) {
    switch (c) {
    case ']':
    case '}': return listed ? "remove the comma before it" : "";
    case ',': return "remove it, or send null";
    case '\'': return "strings are written in double quotes";
    case '+':
    case '.': return "a number starts with a digit or '-'";
    case '/':
    case '#': return "JSON has no comments";
    default: break;
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return "the only words are true, false and null";
    return "";
}

static const char *hfsbi_json_advice(const hfsbi_json_parser *p, char c) {
    switch (p->fault) {
    case HFSBI_JSON_NO_VALUE: return hfsbi_json_value_advice(c, false);
    case HFSBI_JSON_NO_ITEM: return hfsbi_json_value_advice(c, true);
    case HFSBI_JSON_NO_KEY:
    case HFSBI_JSON_NO_NEXT_KEY:
        if (c == '/' || c == '#') return "JSON has no comments";
        return c == '}' ? "remove the comma before it" : "";
    case HFSBI_JSON_NO_COLON:
    case HFSBI_JSON_NO_ARRAY_END:
    case HFSBI_JSON_NO_OBJECT_END:
    case HFSBI_JSON_NO_TEXT_END:
        return c == '/' || c == '#' ? "JSON has no comments" : "";
    case HFSBI_JSON_CONTROL:
        return c == '\n'   ? "write it as \\n"
               : c == '\t' ? "write it as \\t"
               : c == '\r' ? "write it as \\r"
                           : "write it as \\u and four hex digits";
    case HFSBI_JSON_NO_ESCAPE:
        return "write the backslash itself as \\\\";
    case HFSBI_JSON_NO_UTF8:
        return "the text must be encoded as UTF-8";
    default: return "";
    }
}

/* ", found ..." for the byte at err->pos. */
static void hfsbi_json_found(const hfsbi_json_parser *p, hfsb_str text,
                             hfsb_err *err) {
    const char   *advice;
    unsigned long code;
    bool          valid;
    size_t        n;
    char          c;
    if (err->pos >= text.len) {
        hfsbi_err_add(err, ", found the end of the text: was it cut short?");
        return;
    }
    c = text.ptr[err->pos];
    n = hfsb_utf8_step(text, err->pos, &code, &valid);
    if (code == 0xFEFF) {
        hfsbi_err_add(err, ", found a byte order mark: remove it");
        return;
    }
    if (valid && code >= 0x20 && code != 0x7F)
        hfsbi_err_add(err, ", found '%.*s'", (int)n, text.ptr + err->pos);
    else hfsbi_err_add(err, ", found byte 0x%02X", (unsigned)(unsigned char)c);
    advice = hfsbi_json_advice(p, c);
    if (*advice) hfsbi_err_add(err, ": %s", advice);
}

/* Faults that are not about one byte. */
static bool hfsbi_json_whole(const hfsbi_json_parser *p, hfsb_err *err) {
    hfsb_str key;
    switch (p->fault) {
    case HFSBI_JSON_SURROGATE:
        hfsbi_err_add(err, "expected both halves of a surrogate pair, found "
                           "one: the sender probably cut a string in the "
                           "middle of a character");
        return true;
    case HFSBI_JSON_RANGE:
        hfsbi_err_add(err, "expected a number up to about 1.8e308, found a "
                           "larger one: send it as a string");
        return true;
    case HFSBI_JSON_DEPTH:
        hfsbi_err_add(err, "arrays and objects are nested more than %zu deep",
                      p->max_depth);
        return true;
    case HFSBI_JSON_TWICE:
        key = hfsb_str_make(p->nodes[p->used].as.str,
                            (size_t)(p->nodes[p->used].tag >>
                                     HFSBI_JSON_COUNT));
        hfsbi_err_add(err, "expected each key once in an object, found \"");
        hfsbi_err_quote(err, key, 40);
        hfsbi_err_add(err, "\" again: remove one of the two");
        return true;
    default: return false;
    }
}

/* Line and column of pos, both from 1. */
static void hfsbi_json_place(hfsb_str text, size_t pos, hfsb_err *err) {
    hfsb_str before = hfsb_str_slice(text, 0, pos);
    size_t   start = pos;
    while (start > 0 && text.ptr[start - 1] != '\n') start--;
    err->line = hfsb_str_count_byte(before, '\n') + 1;
    err->column = hfsb_utf8_count(hfsb_str_slice(text, start, pos)) + 1;
}

HFSBI_FN hfsb_status hfsbi_json_report(const hfsbi_json_parser *p,
                                       hfsb_str text, hfsb_err *err) {
    hfsb_status code = p->fault == HFSBI_JSON_DEPTH ? HFSB_LIMIT
                                                    : HFSB_SYNTAX;
    if (p->fault == HFSBI_JSON_NOMEM)
        return hfsbi_fail_status(err, HFSB_NOMEM, "reading JSON");
    if (!err) return code;
    err->code = code;
    err->pos = (size_t)(p->at - p->text);
    hfsbi_json_place(text, err->pos, err);
    err->msg[0] = '\0';
    hfsbi_err_add(err, "line %zu, column %zu: ", err->line, err->column);
    if (hfsbi_json_whole(p, err)) return code;
    hfsbi_err_add(err, "%s", hfsbi_json_expected(p));
    hfsbi_json_found(p, text, err);
    return code;
}
