/* bench_tools.c - the local tools beside what they replace, in one run:
   - bash capturing 1 GB, cleaned, against `cat` into a file on tmpfs;
   - read of 2,000 lines and edit of a 1 MB file on tmpfs against a program in
     Python that does what the reference server does (reference.py): call by
     call inside a running process, and as whole programs;
   - write of a Python file with its check against write of a text file;
   - small calls with a journal, in memory and in a file, against the same
     without one. */
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"

#include "bench.h"
#include <unistd.h>

#define ROUNDS bench_part(40, 20)

static char       dir[64] = "/dev/shm/hfsb-bench-XXXXXX";
static hfsb_tools *tools;

static void fail(const char *what) {
    fprintf(stderr, "bench_tools: %s\n", what);
    exit(1);
}

/* Runs a shell command; its standard output. */
static hfsb_buf shell(const char *command) {
    hfsb_proc_opts   opts = HFSB_INIT;
    hfsb_proc_result result;
    hfsb_buf         out = HFSB_INIT;
    opts.command = hfsb_cstr(command);
    if (hfsb_proc_run(&opts, &out, NULL, &result, NULL) != HFSB_OK) fail(command);
    return out;
}

static double best_of_shell(const char *command, int rounds) {
    double best = 1e9;
    int    i;
    for (i = 0; i < rounds; i++) {
        double   begin = bench_now(), took;
        hfsb_buf out = shell(command);
        took = bench_now() - begin;
        if (took < best) best = took;
        hfsb_buf_free(&out);
    }
    return best;
}

/* One call from a JSON body to a JSON body. */
static double call(const char *tool, const char *body) {
    hfsb_tool_result result;
    hfsb_buf         out = HFSB_INIT;
    double           begin = bench_now(), took;
    if (hfsb_tools_call_text(tools, hfsb_cstr(tool), hfsb_cstr(body), NULL,
                             &result) != HFSB_OK ||
        !result.success ||
        hfsb_tool_result_write(&result, &out, NULL) != HFSB_OK)
        fail(result.error.ptr ? result.error.ptr : tool);
    took = bench_now() - begin;
    hfsb_buf_free(&out);
    hfsb_tool_result_free(&result);
    return took;
}

static double best_of_calls(const char *tool, const char *body,
                            const char *other_body) {
    double best = 1e9;
    int    i;
    for (i = 0; i < ROUNDS; i++) {
        double took = call(tool, i % 2 ? other_body : body);
        if (took < best) best = took;
    }
    return best;
}

static void capture(void) {
    char   command[256];
    double cat, ours;
    snprintf(command, sizeof command, "cat %s/gigabyte > %s/copy", dir, dir);
    cat = best_of_shell(command, bench_rounds(3));
    snprintf(command, sizeof command, "{\"command\":\"cat %s/gigabyte\"}", dir);
    ours = call("bash", command);
    if (call("bash", command) < ours) ours = call("bash", command);
    printf("  bash, 1 GB of output: %.2f s, %.2f times cat into a file "
           "(%.2f s; aim 2)\n",
           ours, ours / cat, cat);
}

/* The interpreter itself, not a script that looks for it. */
static const char *python(void) {
    static char name[256];
    hfsb_buf    out;
    if (name[0]) return name;
    out = shell("python3 -c 'import sys; print(sys.executable, end=\"\")'");
    snprintf(name, sizeof name, "%s", out.len ? out.ptr : "none");
    hfsb_buf_free(&out);
    return name;
}

static double python_calls(const char *kind, const char *file) {
    char     command[512];
    hfsb_buf out;
    double   seconds = 0;
    snprintf(command, sizeof command,
             "%s tests/bench/reference.py %s %s/%s %d", python(), kind, dir,
             file, ROUNDS);
    out = shell(command);
    if (out.len) seconds = strtod(out.ptr, NULL);
    hfsb_buf_free(&out);
    return seconds;
}

/* The best of ten runs of a program that ends in a body. */
static double best_of_programs(const char *format, const char *name,
                               const char *body, const char *other_body) {
    char   command[1024];
    double best = 1e9, took;
    int    i;
    for (i = 0; i < bench_part(10, 5); i++) {
        snprintf(command, sizeof command, format, name,
                 i % 2 ? other_body : body);
        took = best_of_shell(command, 1);
        if (took < best) best = took;
    }
    return best;
}

static void compare(const char *tool, const char *file, const char *body,
                    const char *other_body) {
    double ours = best_of_calls(tool, body, other_body), theirs;
    char   figure[64];
    theirs = python_calls(tool, file);
    if (theirs <= 0) {
        printf("  %s: %.0f us a call (no python3 to compare with)\n", tool,
               ours * 1e6);
        return;
    }
    printf("  %s, in a running process: %.0f us, Python %.0f us: %.1f times "
           "as fast\n",
           tool, ours * 1e6, theirs * 1e6, theirs / ours);
    snprintf(figure, sizeof figure, "tool: %s", tool);
    bench_keep(figure, ours * 1e6, "the reference's Python", theirs * 1e6,
               "us");
    if (access("build/hfsb", X_OK) != 0) return;
    ours = best_of_programs("build/hfsb tool %s --args '%s'", tool, body,
                            other_body);
    theirs = best_of_programs("%s -S tests/bench/reference.py once '%s'",
                              python(), body, other_body);
    printf("  %s, as a program: %.1f ms, Python %.1f ms: %.1f times as "
           "fast (aim 20)\n",
           tool, ours * 1e3, theirs * 1e3, theirs / ours);
    snprintf(figure, sizeof figure, "tool: %s, as a program", tool);
    bench_keep(figure, ours * 1e3, "the reference's Python", theirs * 1e3,
               "ms");
}

/* Every content is new, so none is remembered. */
static double median_of_writes(const char *suffix) {
    double took[ROUNDS], swap;
    char   body[256];
    int    i, k;
    for (i = 0; i < ROUNDS; i++) {
        snprintf(body, sizeof body,
                 "{\"path\":\"%s/new%s\",\"content\":\"from textwrap import "
                 "dedent\\nx = %d\\nprint(dedent(text='x'))\\n\"}",
                 dir, suffix, i);
        took[i] = call("write", body);
        for (k = i; k > 0 && took[k] < took[k - 1]; k--) {
            swap = took[k];
            took[k] = took[k - 1];
            took[k - 1] = swap;
        }
    }
    return took[ROUNDS / 2];
}

static void check(void) {
    double plain = median_of_writes(".txt"), python_file;
    python_file = median_of_writes(".py");
    printf("  write of a Python file: %.1f ms, %.1f times a text file\n",
           python_file * 1e3, python_file / plain);
}

/* The journal: tools without one, with one in memory, with one in a file, call
   by call in turn, so that nothing else differs. */

enum { KINDS = 3 };

/* The median of `count` times, which it sorts. */
static double median(double *took, int count) {
    double swap;
    int    i, k;
    for (i = 1; i < count; i++)
        for (k = i; k > 0 && took[k] < took[k - 1]; k--) {
            swap = took[k];
            took[k] = took[k - 1];
            took[k - 1] = swap;
        }
    return took[count / 2];
}

static void compare_journals(hfsb_tools **list, const char *tool,
                             const char *body, int rounds) {
    double *took[KINDS], m[KINDS];
    int     i, k;
    for (k = 0; k < KINDS; k++) {
        took[k] = (double *)malloc((size_t)rounds * sizeof(double));
        if (!took[k]) fail("no memory");
    }
    for (i = 0; i < rounds; i++)
        for (k = 0; k < KINDS; k++) {
            tools = list[(k + i) % KINDS];
            took[(k + i) % KINDS][i] = call(tool, body);
        }
    for (k = 0; k < KINDS; k++) {
        m[k] = median(took[k], rounds);
        free(took[k]);
    }
    printf("  %s: %.1f us; a journal in memory adds %.1f us (%.1f %%), in a "
           "file %.1f us (%.1f %%)\n",
           tool, m[0] * 1e6, (m[1] - m[0]) * 1e6, (m[1] / m[0] - 1) * 100,
           (m[2] - m[0]) * 1e6, (m[2] / m[0] - 1) * 100);
}

static void journals(void) {
    hfsb_journal_opts memory = HFSB_INIT, file = HFSB_INIT;
    hfsb_tools_opts   o = HFSB_INIT;
    hfsb_journal     *in_memory, *in_file;
    hfsb_tools       *list[KINDS], *before = tools;
    char              path[128], body[256];
    int               k;
    snprintf(path, sizeof path, "%s/journal", dir);
    file.path = path;
    if (hfsb_journal_open(&memory, &in_memory, NULL) != HFSB_OK ||
        hfsb_journal_open(&file, &in_file, NULL) != HFSB_OK)
        fail("no journal");
    for (k = 0; k < KINDS; k++) {
        o.journal = k == 0 ? NULL : k == 1 ? in_memory : in_file;
        if (hfsb_tools_open(&o, &list[k], NULL) != HFSB_OK) fail("no tools");
    }
    compare_journals(list, "bash", "{\"command\":\"true\"}",
                     bench_part(300, 20));
    snprintf(body, sizeof body, "{\"path\":\"%s/lines.txt\"}", dir);
    compare_journals(list, "read", body, bench_part(1000, 20));
    snprintf(body, sizeof body, "{\"path\":\"%s/n\",\"content\":\"x\\n\"}",
             dir);
    compare_journals(list, "write", body, bench_part(1000, 20));
    snprintf(body, sizeof body, "{\"path\":\"%s/n\"}", dir);
    compare_journals(list, "exists", body, bench_part(1000, 20));
    for (k = 0; k < KINDS; k++) hfsb_tools_close(list[k]);
    hfsb_journal_close(in_memory);
    hfsb_journal_close(in_file);
    tools = before;
}

static void make_files(void) {
    char     command[1024];
    hfsb_buf out;
    snprintf(command, sizeof command,
             "cd %s && seq -f '    line %%.0f of a source file = 7'"
             " 2000 > lines.txt && "
             "seq -f '    value_%%.0f = old  # and a comment' 25000 | "
             "head -c 1000000 > big.txt && "
             "yes 'a line of output that a build might print, 64 bytes long."
             "..' | head -c %d > gigabyte",
             dir, bench_part(1000000000, 100));
    out = shell(command);
    hfsb_buf_free(&out);
}

int main(void) {
    char     body[256], other[256], command[128];
    hfsb_err err;
    hfsb_buf out;
    if (!mkdtemp(dir)) fail("no tmpfs at /dev/shm");
    if (hfsb_tools_open(NULL, &tools, &err) != HFSB_OK) fail(err.msg);
    make_files();
    capture();
    snprintf(body, sizeof body, "{\"path\":\"%s/lines.txt\"}", dir);
    compare("read", "lines.txt", body, body);
    snprintf(body, sizeof body,
             "{\"path\":\"%s/big.txt\",\"old_str\":\"value_10000 = old\","
             "\"new_str\":\"value_10000 = new\"}",
             dir);
    snprintf(other, sizeof other,
             "{\"path\":\"%s/big.txt\",\"old_str\":\"value_10000 = new\","
             "\"new_str\":\"value_10000 = old\"}",
             dir);
    compare("edit", "big.txt", body, other);
    check();
    journals();
    hfsb_tools_close(tools);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    out = shell(command);
    hfsb_buf_free(&out);
    return 0;
}
