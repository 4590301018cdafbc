/* edit_file.c - the smallest complete use of hfsb.h: replace text in a file.

       cc -o edit_file edit_file.c && ./edit_file FILE OLD NEW

   The file is read, edited in memory, and written only if the edit succeeded.
   An error message says what a model can do about it. */
#define HFSB_IMPLEMENTATION
#include "../hfsb.h"

#include <stdio.h>

static int read_file(const char *path, hfsb_buf *out) {
    FILE  *f = fopen(path, "rb");
    char   piece[4096];
    size_t n;
    int    ok = f != NULL;
    while (ok && (n = fread(piece, 1, sizeof piece, f)) > 0)
        ok = hfsb_buf_append(out, hfsb_str_make(piece, n)) == HFSB_OK;
    if (f && ferror(f)) ok = 0;
    if (f) fclose(f);
    return ok;
}

static int write_file(const char *path, hfsb_str text) {
    FILE *f = fopen(path, "wb");
    int   ok = f && fwrite(text.ptr, 1, text.len, f) == text.len;
    if (f && fclose(f) != 0) ok = 0;
    return ok;
}

int main(int argc, char **argv) {
    hfsb_edit        edit = HFSB_INIT;
    hfsb_edit_result result = HFSB_INIT;
    hfsb_buf         before = HFSB_INIT, after = HFSB_INIT;
    hfsb_err         err;
    int              ok = 0;

    if (argc != 4) {
        fprintf(stderr, "usage: edit_file FILE OLD NEW\n");
        return 2;
    }
    edit.old_str = hfsb_cstr(argv[2]);
    edit.new_str = hfsb_cstr(argv[3]);
    if (!read_file(argv[1], &before))
        fprintf(stderr, "cannot read %s\n", argv[1]);
    else if (hfsb_edit_apply(hfsb_buf_str(&before), &edit, 1, NULL, &after,
                             &result, &err) != HFSB_OK)
        fprintf(stderr, "%s\n", err.msg);
    else if (!write_file(argv[1], hfsb_buf_str(&after)))
        fprintf(stderr, "cannot write %s\n", argv[1]);
    else
        ok = printf("%s%s\n", hfsb_buf_str(&result.diff).ptr, result.note) > 0;

    hfsb_edit_result_free(&result);
    hfsb_buf_free(&before);
    hfsb_buf_free(&after);
    return ok ? 0 : 1;
}
