/* server.c - the static hfsb-server that `hfsb create --image` puts into jobs,
   and `--on ssh:HOST` and the like on other machines.

   It must run in any image, so it must not need a dynamic linker: an ELF file
   without a program header of the type PT_INTERP. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    /* the last one is where `make static install` puts it; jobs run on x86 */
    static const char *const places[] = {"hfsb-server", "static/hfsb-server",
                                         "../lib/hfsb/hfsb-server-x86_64"};
    char                     self[4096];
    hfsb_err                 why;
    size_t                   i, dir;
    if (path) return read_file(path, out, err);
    dir = own_folder(self, sizeof self - 32);
    for (i = 0; dir && i < sizeof places / sizeof *places; i++) {
        strcpy(self + dir, places[i]);
        if (read_file(self, out, &why) == HFSB_OK) return HFSB_OK;
    }
    return fail(err, HFSB_ARG,
                "There is no static hfsb-server next to this program. Build "
                "one with `make static`, and name it: --server "
                "build/static/hfsb-server");
}

/* ---- for another machine ---- */

/* Machines by uname -m, with the number in an ELF file. */
static const struct {
    const char        *name, *also;
    unsigned long long number;
} machines[] = {{"x86_64", "amd64", 62},      {"aarch64", "arm64", 183},
                {"riscv64", "riscv64", 243},  {"ppc64le", "ppc64le", 21},
                {"loongarch64", "loong64", 258}};

enum { MACHINES = sizeof machines / sizeof *machines };

/* Reads the file if it is a static program for that machine. */
static bool try_server(const char *dir, size_t len, const char *name,
                       const char *machine, unsigned long long number,
                       hfsb_buf *out) {
    char     path[4096];
    hfsb_err why;
    if (snprintf(path, sizeof path, "%.*s%s%s", (int)len, dir, name,
                 machine) >= (int)sizeof path)
        return false;
    if (read_file(path, out, &why) != HFSB_OK) return false;
    if (number_at(hfsb_buf_str(out), 18, 2) == number) return true;
    hfsb_buf_truncate(out, 0);
    return false;
}

hfsb_status read_server_for(const char *system, const char *machine,
                            hfsb_buf *out, hfsb_err *err) {
    const char *given = getenv("HFSB_SERVERS");
    char        self[2048];
    size_t      i = 0, dir = own_folder(self, sizeof self);
    while (i < MACHINES && strcmp(machine, machines[i].name) != 0 &&
           strcmp(machine, machines[i].also) != 0)
        i++;
    if (strcmp(system, "Linux") != 0 || i == MACHINES)
        return fail(err, HFSB_REFUSED,
                    "hfsb cannot send a server to %s %s. Install hfsb-server "
                    "there, and use --on exec:'COMMAND hfsb-server --stdio'.",
                    system, machine);
    machine = machines[i].name;
    if ((given && *given &&
         try_server(given, strlen(given), "/hfsb-server-", machine,
                    machines[i].number, out)) ||
        (dir && (try_server(self, dir, "hfsb-server-", machine,
                            machines[i].number, out) ||
                 try_server(self, dir, "../lib/hfsb/hfsb-server-", machine,
                            machines[i].number, out) ||
                 try_server(self, dir, "hfsb-server", "", machines[i].number,
                            out) ||
                 try_server(self, dir, "static/hfsb-server", "",
                            machines[i].number, out))))
        return HFSB_OK;
    return fail(err, HFSB_NOT_FOUND,
                "There is no static hfsb-server for %s here. One that was "
                "sent before may be over there, but nothing runs that cannot "
                "be compared with the one here. Build one with `make static` "
                "on such a machine; `make static install` puts it where hfsb "
                "finds it. Or put it into a folder as hfsb-server-%s: "
                "HFSB_SERVERS=FOLDER",
                machine, machine);
}
