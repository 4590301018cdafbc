/* server.c - the static hfsb-server that `hfsb create --image` puts into jobs.

   Any image must be able to run it, so it may not need a dynamic linker: an
   ELF file without a program header of the type PT_INTERP. */
#define _XOPEN_SOURCE 700 /* readlink(); before any include */
#include "cli.h"

#include <string.h>
#include <unistd.h>

enum { MAX_SERVER = 64 << 20, PT_INTERPRETER = 3 };

/* A little-endian number of `size` bytes at an offset; 0 beyond the end. */
static unsigned long long number_at(hfsb_str file, unsigned long long at,
                                    size_t size) {
    unsigned long long value = 0;
    if (at > file.len || file.len - at < size) return 0;
    while (size--)
        value = value << 8 | (unsigned char)file.ptr[(size_t)at + size];
    return value;
}

/* True for a 64-bit little-endian ELF file that needs no other file. */
static bool is_static(hfsb_str file) {
    unsigned long long at = number_at(file, 32, 8);
    unsigned long long step = number_at(file, 54, 2);
    unsigned long long count = number_at(file, 56, 2);
    if (!hfsb_str_starts(file, HFSB_LIT("\177ELF\2\1")) || !count)
        return false;
    for (; count; count--, at += step)
        if (number_at(file, at, 4) == PT_INTERPRETER) return false;
    return true;
}

static hfsb_status read_file(const char *path, hfsb_buf *out, hfsb_err *err) {
    hfsb_status st =
        hfsb_file_read(NULL, hfsb_cstr(path), MAX_SERVER, out, NULL, err);
    if (st != HFSB_OK || is_static(hfsb_buf_str(out))) return st;
    hfsb_buf_truncate(out, 0);
    return fail(err, HFSB_ARG,
                "%s is not a static program for Linux (64 bits), which any "
                "image could run. Build one with `make static`, and name it: "
                "--server build/static/hfsb-server",
                path);
}

hfsb_status read_server(const char *path, hfsb_buf *out, hfsb_err *err) {
    static const char *const places[] = {"hfsb-server", "static/hfsb-server"};
    char                     self[4096];
    hfsb_err                 why;
    ssize_t                  n;
    size_t                   i, dir;
    if (path) return read_file(path, out, err);
    n = readlink("/proc/self/exe", self, sizeof self - 32);
    if (n > 0) {
        self[n] = '\0';
        dir = (size_t)(strrchr(self, '/') - self) + 1;
        for (i = 0; i < sizeof places / sizeof *places; i++) {
            strcpy(self + dir, places[i]);
            if (read_file(self, out, &why) == HFSB_OK) return HFSB_OK;
        }
    }
    return fail(err, HFSB_ARG,
                "There is no static hfsb-server next to this program. Build "
                "one with `make static`, and name it: --server "
                "build/static/hfsb-server");
}
