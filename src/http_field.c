/* http_field.c - what bytes are; looking into a head. Depends on: base. */
#include "http_parts.h"

/* ---- bytes ---- */

/* 0: control bytes; 2: blanks; 6, 22 ...: the sums of HFSBI_HTTP_*. */
static const unsigned char hfsbi_http_classes[256] = {
    0,  0,  0,  0,  0,  0,  0,  0,  0,  2,  0,  0,  0,  0,  0,  0,  0,  0,  0,
    0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  2,  15, 6,  7,  15, 7,
    15, 15, 14, 14, 15, 15, 14, 31, 31, 6,  31, 31, 31, 31, 31, 31, 31, 31, 31,
    31, 6,  14, 6,  14, 6,  6,  6,  31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31,
    31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 6,  6,  6,  7,
    31, 7,  31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31, 31,
    31, 31, 31, 31, 31, 31, 31, 31, 31, 6,  7,  6,  31, 0,  6,  6,  6,  6,  6,
    6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,
    6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,
    6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,
    6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,
    6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,
    6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,  6,
    6,  6,  6,  6,  6,  6,  6,  6,  6};

HFSBI_FN unsigned hfsbi_http_class(char c) {
    return hfsbi_http_classes[(unsigned char)c];
}

HFSBI_FN bool hfsbi_http_all(hfsb_str s, unsigned bit) {
    size_t i;
    for (i = 0; i < s.len; i++)
        if (!(hfsbi_http_class(s.ptr[i]) & bit)) return false;
    return s.len > 0;
}

HFSBI_FN int hfsbi_http_hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = hfsbi_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

HFSBI_FN bool hfsbi_http_is(hfsb_str s, const char *lower) {
    size_t i;
    for (i = 0; i < s.len; i++)
        if (!lower[i] || hfsbi_lower(s.ptr[i]) != lower[i]) return false;
    return !lower[i];
}

/* ---- lists ---- */

static hfsb_str hfsbi_http_trim(hfsb_str s) {
    while (s.len && (*s.ptr == ' ' || *s.ptr == '\t')) s.ptr++, s.len--;
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

HFSBI_FN bool hfsbi_http_list_next(hfsb_str *rest, hfsb_str *item) {
    while (rest->len) {
        size_t i = 0;
        bool   quoted = false;
        for (; i < rest->len && (quoted || rest->ptr[i] != ','); i++) {
            if (rest->ptr[i] == '"') quoted = !quoted;
            else if (quoted && rest->ptr[i] == '\\' && i + 1 < rest->len) i++;
        }
        *item = hfsbi_http_trim(hfsb_str_make(rest->ptr, i));
        *rest = hfsb_str_slice(*rest, i + 1, rest->len);
        if (item->len) return true;
    }
    return false;
}

/* ---- looking into a head ---- */

bool hfsb_http_same(hfsb_str a, hfsb_str b) {
    size_t i;
    if (a.len != b.len) return false;
    for (i = 0; i < a.len; i++)
        if (a.ptr[i] != b.ptr[i] &&
            hfsbi_lower(a.ptr[i]) != hfsbi_lower(b.ptr[i]))
            return false;
    return true;
}

hfsb_str hfsb_http_field_find(const hfsb_http_head *head, const char *name) {
    hfsb_str want = hfsb_cstr(name);
    size_t   i;
    for (i = 0; i < head->field_count; i++)
        if (hfsb_http_same(head->fields[i].name, want))
            return head->fields[i].value;
    return hfsb_str_make(NULL, 0);
}

size_t hfsb_http_field_count(const hfsb_http_head *head, const char *name) {
    hfsb_str want = hfsb_cstr(name);
    size_t   i, n = 0;
    for (i = 0; i < head->field_count; i++)
        n += hfsb_http_same(head->fields[i].name, want);
    return n;
}

bool hfsb_http_field_lists(const hfsb_http_head *head, const char *name,
                           const char *item) {
    hfsb_str want_name = hfsb_cstr(name), want = hfsb_cstr(item), rest, found;
    size_t   i;
    for (i = 0; i < head->field_count; i++) {
        if (!hfsb_http_same(head->fields[i].name, want_name)) continue;
        rest = head->fields[i].value;
        while (hfsbi_http_list_next(&rest, &found)) {
            size_t end = hfsb_str_find_byte(found, ';');
            found = hfsbi_http_trim(hfsb_str_slice(found, 0, end));
            if (found.len && hfsb_http_same(found, want)) return true;
        }
    }
    return false;
}
