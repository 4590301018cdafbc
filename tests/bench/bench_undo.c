/* bench_undo.c - checkpoints beside git, in one run on a tree in memory:
   20,000 files in 500 folders. The first checkpoint copies all of it; then
   nothing or one file has changed. A bare walk, with readdir and fstatat alone,
   is the least that a scan in one thread can take; hfsb and git use several.
   The time to start a program is taken off git's. Each round runs all of them
   in turn and the best of all rounds counts, so that a busy machine slows down
   all alike. The ratios are of the bare walk and of git to hfsb: above 1 hfsb
   is faster. */
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"

#include "bench.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDS  bench_rounds(15)
#define FOLDERS bench_part(500, 10)
#define FILES   40 /* in each */

static char        dir[64] = "/dev/shm/hfsb-bench-XXXXXX";
static hfsb_tools *tools;
static double      start_time; /* of a shell and a program */
static int         turn;

static void fail(const char *what) {
    fprintf(stderr, "bench_undo: %s\n", what);
    exit(1);
}

static double command_time(const char *command) {
    char   line[512];
    double begin;
    snprintf(line, sizeof line,
             "cd %s/root && (%s) > /dev/null 2>&1", dir, command);
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

static void write_file(int folder, int file, int text) {
    char  path[160];
    FILE *f;
    int   i;
    snprintf(path, sizeof path, "%s/root/d%d/file%d.c", dir, folder, file);
    f = fopen(path, "w");
    if (!f) fail(path);
    for (i = 0; i < 40; i++)
        fprintf(f, "int value_%d_%d_%d = %d;\n", folder, file, i, text);
    fclose(f);
}

static void make_tree(void) {
    char path[160];
    int  i, k;
    if (!mkdtemp(dir)) fail("no directory in memory");
    snprintf(path, sizeof path, "%s/root", dir);
    (void)mkdir(path, 0755);
    for (i = 0; i < FOLDERS; i++) {
        snprintf(path, sizeof path, "%s/root/d%d", dir, i);
        (void)mkdir(path, 0755);
        for (k = 0; k < FILES; k++) write_file(i, k, 0);
    }
}

static void open_tools(void) {
    static char     root[96], store[96];
    hfsb_tools_opts opts = HFSB_INIT;
    snprintf(root, sizeof root, "%s/root", dir);
    snprintf(store, sizeof store, "%s/store", dir);
    opts.root = hfsb_cstr(root);
    opts.checkpoints.dir = store;
    if (hfsb_tools_open(&opts, &tools, NULL) != HFSB_OK) fail("no tools");
}

static void walk(int fd) {
    DIR           *d = fdopendir(fd);
    struct dirent *e;
    struct stat    st;
    while (d && (e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.') continue;
        if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(st.st_mode))
            walk(openat(fd, e->d_name, O_RDONLY | O_DIRECTORY));
    }
    if (d) closedir(d);
}

static double walk_time(void) {
    double begin = bench_now();
    char   root[96];
    snprintf(root, sizeof root, "%s/root", dir);
    walk(open(root, O_RDONLY | O_DIRECTORY));
    return bench_now() - begin;
}

static void compare(const char *what, bool change, const char *tool,
                    const char *json, const char *command, double aim_ms) {
    double ours = 1e9, bare = 1e9, theirs = 1e9, took;
    char   aim[16] = "", figure[64];
    int    i;
    for (i = 0; i < ROUNDS; i++) {
        if ((took = walk_time()) < bare) bare = took;
        if (change) write_file(7, 7, ++turn);
        if ((took = call_time(tool, json)) < ours) ours = took;
        took = command_time(command) - start_time;
        if (took < theirs) theirs = took;
    }
    if (aim_ms > 0) snprintf(aim, sizeof aim, "%.0f", aim_ms);
    printf("  %-22s %7.1f ms %4s %8.1f ms %5.2f %8.1f ms %5.2f  %s\n", what,
           ours * 1e3, aim, bare * 1e3, bare / ours, theirs * 1e3,
           theirs / ours, command);
    snprintf(figure, sizeof figure, "undo: %s", what);
    bench_keep(figure, ours * 1e3, command, theirs * 1e3, "ms");
}

int main(void) {
    struct rusage use;
    long          before;
    double        first, git;
    char          line[128];
    int           i;
    make_tree();
    start_time = 1e9;
    for (i = 0; i < 5; i++) {
        double took = command_time("git --version");
        if (took < start_time) start_time = took;
    }
    command_time("git init -q; git config user.name a; git config user.email "
                 "a@b; git config gc.auto 0");
    open_tools();
    getrusage(RUSAGE_SELF, &use);
    before = use.ru_maxrss;
    first = call_time("checkpoint", "{}");
    git = command_time("git add -A; git commit -qm x") - start_time;
    printf("  %-22s %10s %4s %11s %5s %11s %5s\n", "", "hfsb", "aim",
           "bare walk", "ratio", "git", "ratio");
    printf("  %-22s %7.1f ms %4s %11s %5s %8.1f ms %5.2f  %s\n",
           "first checkpoint", first * 1e3, "", "", "", git * 1e3, git / first,
           "git add, commit");
    bench_keep("undo: first checkpoint", first * 1e3, "git add, commit",
               git * 1e3, "ms");
    (void)poll(NULL, 0, 100); /* until no file is racy */
    (void)call_time("checkpoint", "{}");
    compare("nothing has changed", false, "checkpoint", "{}",
            "git stash create", 30);
    compare("one file has changed", true, "checkpoint", "{}",
            "git commit -qam x", 35);
    compare("undo of one file", true, "undo", "{\"to\":1,\"force\":true}",
            "git checkout -q .", 0);
    getrusage(RUSAGE_SELF, &use);
    printf("  %-22s %7.1f MiB for %d files\n", "memory",
           (double)(use.ru_maxrss - before) / 1024, FOLDERS * FILES);
    hfsb_tools_close(tools);
    snprintf(line, sizeof line, "rm -rf %s", dir);
    return system(line) != 0;
}
