/* Linked with an implementation in another file; as C and as C++. */
#include "headers.h"

int main(void) {
    hfsb_buf      b = HFSB_INIT;
    hfsb_err      err;
    hfsb_json_doc doc = HFSB_INIT;
    bool          ok =
        hfsb_json_parse(HFSB_LIT("{\"a\": [1, 2]}"), NULL, &doc, &err) ==
            HFSB_OK &&
        hfsb_json_write(doc.root, NULL, &b, &err) == HFSB_OK &&
        hfsb_str_equal(hfsb_buf_str(&b), HFSB_LIT("{\"a\":[1,2]}"));
    hfsb_json_free(&doc);
    hfsb_buf_free(&b);
    return ok ? 0 : 1;
}
