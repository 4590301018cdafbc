/* The program's own memory functions and assertion. A header of libc comes
   first, so the program asks for what hfsb.h needs of it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <stdlib.h>

static size_t my_live;

static void *my_realloc(void *ptr, size_t size) {
    if (!ptr) my_live++;
    return realloc(ptr, size);
}

static void my_free(void *ptr) {
    if (ptr) my_live--;
    free(ptr);
}

#define HFSB_REALLOC(ptr, size) my_realloc(ptr, size)
#define HFSB_FREE(ptr)          my_free(ptr)
#define HFSB_ASSERT(x)          ((x) ? (void)0 : abort())
#define HFSB_IMPLEMENTATION
#include "headers.h"

int main(void) {
    hfsb_buf      b = HFSB_INIT;
    hfsb_json_doc doc = HFSB_INIT;
    bool          ok = hfsb_buf_append(&b, HFSB_LIT("[1]")) == HFSB_OK &&
              hfsb_json_parse(hfsb_buf_str(&b), NULL, &doc, NULL) == HFSB_OK;
    ok = ok && my_live == 2;
    hfsb_json_free(&doc);
    hfsb_buf_free(&b);
    return ok && my_live == 0 ? 0 : 1;
}
