/* The public part alone. */
#include "headers.h"

size_t hfsb_test_declarations(hfsb_str s);
size_t hfsb_test_declarations(hfsb_str s) {
    hfsb_buf    b = HFSB_INIT;
    hfsb_err    err = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    hfsb_str    lit = HFSB_LIT("text");
    return s.len + lit.len + b.len + err.pos + (size_t)st;
}
