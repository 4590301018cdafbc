/* bench_search.c - grep and glob beside GNU grep and find, in one run on a
   tree in memory: 20,000 files in 200 folders, and one large file. What it
   takes to start a program is taken off theirs. */
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"

#include "bench.h"
#include <sys/stat.h>

#define ROUNDS bench_rounds(9)
#define FILES  bench_part(20000, 10)
#define LINES  bench_part(3000000, 100)
#define AIM    2.0

static char        dir[64] = "/dev/shm/hfsb-bench-XXXXXX";
static hfsb_tools *tools;
static double      start_time; /* of a shell and a program */

static void fail(const char *what) {
    fprintf(stderr, "bench_search: %s\n", what);
    exit(1);
}

/* Seconds that a command takes; its output goes nowhere, but by a pipe: GNU
   grep stops at the first match when it sees /dev/null. */
static double command_time(const char *command) {
    char   line[512];
    double begin;
    snprintf(line, sizeof line, "cd %s && LC_ALL=C %s | cat > /dev/null", dir,
             command);
    begin = bench_now();
    (void)!system(line);
    return bench_now() - begin;
}

static double call_time(const char *tool, const char *json) {
    hfsb_tool_result r;
    double           begin = bench_now();
    if (hfsb_tools_call_text(tools, hfsb_cstr(tool), hfsb_cstr(json), NULL,
                             &r) != HFSB_OK ||
        !r.success)
        fail(r.error.ptr ? r.error.ptr : tool);
    begin = bench_now() - begin;
    hfsb_tool_result_free(&r);
    return begin;
}

/* In turns, so that both have the same machine; the best of each. */
static void compare(const char *what, const char *tool, const char *json,
                    const char *command) {
    double ours = 1e9, theirs = 1e9, took;
    int    i;
    for (i = 0; i < ROUNDS; i++) {
        took = call_time(tool, json);
        if (took < ours) ours = took;
        took = command_time(command) - start_time;
        if (took < theirs) theirs = took;
    }
    if (theirs < 1e-4) theirs = 1e-4;
    printf("  %-34s %7.1f ms, %.2f times %s (%.1f ms; aim %.0f)\n", what,
           ours * 1e3, ours / theirs, command[0] == 'f' ? "find" : "GNU grep",
           theirs * 1e3, AIM);
    bench_keep(what, ours * 1e3, command[0] == 'f' ? "find" : "GNU grep",
               theirs * 1e3, "ms");
}

static void write_file(const char *path, size_t lines, unsigned seed) {
    static const char *const words[] = {
        "static", "return", "struct", "buffer",  "length", "if (error)",
        "while",  "size_t", "= 0;",   "pointer", "/* of */", "value"};
    FILE  *f = fopen(path, "w");
    size_t i, k;
    if (!f) fail(path);
    for (i = 0; i < lines; i++) {
        for (k = 0; k < 8; k++) {
            seed = seed * 1103515245u + 12345u;
            fprintf(f, "%s ", words[(seed >> 16) % 12]);
        }
        fprintf(f, i % 1000 == 999 ? "rare_needle\n" : "\n");
    }
    fclose(f);
}

static void make_tree(void) {
    static const char *const ends[] = {"c", "h", "py", "txt", "md"};
    char                     path[256];
    int                      i;
    for (i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/tree/d%d", dir, i / 2000);
        if (i % 2000 == 0) mkdir(path, 0755);
        snprintf(path, sizeof path, "%s/tree/d%d/s%d", dir, i / 2000, i / 100);
        if (i % 100 == 0) mkdir(path, 0755);
        snprintf(path, sizeof path, "%s/tree/d%d/s%d/file%d.%s", dir, i / 2000,
                 i / 100, i, ends[i % 5]);
        write_file(path, (size_t)(20 + i % 60), (unsigned)i);
    }
    snprintf(path, sizeof path, "%s/big", dir);
    write_file(path, (size_t)LINES, 1);
}

static void open_tools(void) {
    hfsb_tools_opts opts = HFSB_INIT;
    hfsb_err        err;
    opts.work_dir = hfsb_cstr(dir);
    if (hfsb_tools_open(&opts, &tools, &err) != HFSB_OK) fail(err.msg);
}

int main(void) {
    char path[128];
    int  i;
    if (!mkdtemp(dir)) {
        snprintf(dir, sizeof dir, "/tmp/hfsb-bench-XXXXXX");
        if (!mkdtemp(dir)) fail("no directory");
    }
    snprintf(path, sizeof path, "%s/tree", dir);
    mkdir(path, 0755);
    make_tree();
    open_tools();
    start_time = 1e9;
    for (i = 0; i < 20; i++) {
        double took = command_time("/bin/true");
        if (took < start_time) start_time = took;
    }
    compare("grep, literal, tree", "grep",
            "{\"pattern\":\"no such text\",\"path\":\"tree\",\"literal\":"
            "true}",
            "grep -rnF 'no such text' tree");
    compare("grep, literal with matches, tree", "grep",
            "{\"pattern\":\"if (error) if (error) if (error) if\",\"path\":"
            "\"tree\",\"literal\":true}",
            "grep -rnF 'if (error) if (error) if (error) if' tree");
    compare("grep, literal, 170 MB file", "grep",
            "{\"pattern\":\"rare_needle\",\"path\":\"big\",\"literal\":true}",
            "grep -nF rare_needle big");
    compare("grep, expression, tree", "grep",
            "{\"pattern\":\"pointer [a-z]+ = 0; while\",\"path\":\"tree\"}",
            "grep -rnE 'pointer [a-z]+ = 0; while' tree");
    compare("grep, ignoring case, tree", "grep",
            "{\"pattern\":\"RARE_NEEDLE\",\"path\":\"tree\",\"ignore_case\":"
            "true,\"literal\":true}",
            "grep -rniF RARE_NEEDLE tree");
    compare("glob *97.py", "glob", "{\"pattern\":\"*97.py\"}",
            "find . -name '*97.py'");
    compare("glob tree/**/*.c", "glob", "{\"pattern\":\"tree/**/*.c\"}",
            "find tree -name '*.c'");
    compare("glob *.{c,h}", "glob", "{\"pattern\":\"*.{c,h}\"}",
            "find . -name '*.c' -o -name '*.h'");
    compare("glob, all 20,000 by age", "glob", "{\"pattern\":\"*\"}",
            "find . -type f -printf '%T@ %p\\n'");
    hfsb_tools_close(tools);
    snprintf(path, sizeof path, "rm -rf %s", dir);
    return system(path) != 0;
}
