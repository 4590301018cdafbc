/* text.c - lines of a text. Depends on: base. */
#include "internal.h"

bool hfsb_text_line(hfsb_str *rest, hfsb_str *line, hfsb_str *ending) {
    hfsb_str s = *rest;
    size_t   lf = hfsb_str_find_byte(s, '\n');
    size_t   next = lf == HFSB_NPOS ? s.len : lf + 1;
    size_t   end = lf == HFSB_NPOS ? s.len : lf;
    if (s.len == 0) return false;
    if (end < next && end > 0 && s.ptr[end - 1] == '\r') end--;
    *line = hfsb_str_slice(s, 0, end);
    if (ending) *ending = hfsb_str_slice(s, end, next);
    *rest = hfsb_str_slice(s, next, s.len);
    return true;
}

size_t hfsb_text_line_number(hfsb_str text, size_t pos) {
    return 1 + hfsb_str_count_byte(hfsb_str_slice(text, 0, pos), '\n');
}
