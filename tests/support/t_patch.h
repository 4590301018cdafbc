/* t_patch.h - helpers for the tests of patches: files in memory. */
#ifndef T_PATCH_H
#define T_PATCH_H
#include "t_edit.h"

typedef struct one_file {
    const char *path, *text; /* text NULL: reading it fails */
} one_file;

typedef struct disk {
    const one_file *files;
    size_t          count, reads;
} disk;

static hfsb_status read_file(void *user, hfsb_str path, hfsb_buf *out,
                             hfsb_err *err) {
    disk  *d = (disk *)user;
    size_t i;
    d->reads++;
    for (i = 0; i < d->count; i++)
        if (hfsb_str_equal(path, hfsb_cstr(d->files[i].path))) {
            if (d->files[i].text)
                return hfsb_buf_append(out, hfsb_cstr(d->files[i].text));
            if (err) {
                memset(err, 0, sizeof *err);
                err->code = HFSB_IO;
                strcpy(err->msg, "is a device");
            }
            return HFSB_IO;
        }
    return HFSB_NOT_FOUND;
}

#endif
