/* scan_memory.c - looks for a text in what /proc shows of a process: its
   environment, its arguments and all of its memory that can be read.
       scan_memory PID PART PART
   The text is the two parts joined, so that a process that ran this very
   command does not contain it. Prints how often it was found, and whether the
   scan works at all: how many bytes there were. */
#define _FILE_OFFSET_BITS 64
#define _XOPEN_SOURCE     700
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

static char               needle[512];
static size_t             needle_len;
static unsigned long long found, seen;

/* From `at` for n bytes (or to the end), with an overlap between pieces. */
static void scan(int fd, unsigned long long at, unsigned long long n) {
    static char piece[PIECE];
    size_t      keep = 0;
    while (n > 0) {
        size_t  want = PIECE - keep;
        ssize_t k;
        size_t  i, len;
        if (want > n) want = (size_t)n;
        k = pread(fd, piece + keep, want, (off_t)at);
        if (k <= 0) return;
        at += (unsigned long long)k;
        n -= (unsigned long long)k;
        seen += (unsigned long long)k;
        len = keep + (size_t)k;
        for (i = 0; i + needle_len <= len; i++)
            found += memcmp(piece + i, needle, needle_len) == 0;
        keep = len < needle_len ? len : needle_len - 1;
        memmove(piece, piece + len - keep, keep);
    }
}

static int open_file(const char *pid, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/%s", pid, name);
    return open(path, O_RDONLY);
}

static void scan_file(const char *pid, const char *name) {
    int fd = open_file(pid, name);
    if (fd < 0) return;
    scan(fd, 0, 1 << 30);
    close(fd);
}

int main(int argc, char **argv) {
    char               line[4096], path[64];
    unsigned long long from, to;
    FILE              *maps;
    int                mem;
    if (argc != 4) return 2;
    snprintf(needle, sizeof needle, "%s%s", argv[2], argv[3]);
    needle_len = strlen(needle);
    scan_file(argv[1], "environ");
    scan_file(argv[1], "cmdline");
    snprintf(path, sizeof path, "/proc/%.20s/maps", argv[1]);
    maps = fopen(path, "r");
    mem = open_file(argv[1], "mem");
    while (maps && mem >= 0 && fgets(line, sizeof line, maps))
        if (sscanf(line, "%llx-%llx", &from, &to) == 2 && from < 1ull << 63)
            scan(mem, from, to - from);
    printf("found %llu times in %s\n", found,
           seen > 65536 ? "all of it" : "almost nothing");
    return 0;
}
