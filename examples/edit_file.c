/* edit_file.c - the smallest complete use of hfsb.h: replace text in a file.

       cc -o edit_file edit_file.c && ./edit_file FILE OLD NEW

   HFSB_STATIC makes every function static, so that the compiler drops those
   that are not called: right for a program of one file. An error message says
   what a model can do about it. */
#define HFSB_IMPLEMENTATION
#ifndef HFSB_IMPLEMENTATION_DONE /* make links the implementation */
#define HFSB_STATIC
#endif
#include "../hfsb.h"

#include <stdio.h>

int main(int argc, char **argv) {
    hfsb_edit        edit = HFSB_INIT;
    hfsb_edit_result result;
    hfsb_err         err;

    if (argc != 4) {
        fprintf(stderr, "usage: edit_file FILE OLD NEW\n");
        return 2;
    }
    edit.old_str = hfsb_cstr(argv[2]);
    edit.new_str = hfsb_cstr(argv[3]);
    if (hfsb_edit_file(NULL, hfsb_cstr(argv[1]), &edit, 1, NULL, &result,
                       &err) != HFSB_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    printf("%s%s\n", hfsb_buf_cstr(&result.diff), result.note);
    hfsb_edit_result_free(&result);
    return 0;
}
