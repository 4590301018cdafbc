/* Everything private to one file, hardly any of it used. */
#define HFSB_STATIC
#define HFSB_IMPLEMENTATION
#include "headers.h"

int main(void) {
    hfsb_buf b = HFSB_INIT;
    bool     ok = hfsb_buf_append(&b, HFSB_LIT("abc")) == HFSB_OK &&
              hfsb_str_equal(hfsb_buf_str(&b), HFSB_LIT("abc"));
    hfsb_buf_free(&b);
    return ok ? 0 : 1;
}
