/* bench_proc.c - what it costs to run a command: `sh -c true` beside a bare
   posix_spawn() and waitpid(); confined, beside bubblewrap; and a gigabyte of
   output beside cat. */
#define _GNU_SOURCE /* environ, pipe2 */
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"

#include "bench.h"
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS   bench_part(400, 20)
#define ROUNDS bench_rounds(9)

static char *const bare_argv[] = {(char *)"sh", (char *)"-c", (char *)"true",
                                  NULL};

/* What a program would do that wants no output and no safety. */
static void run_bare(void) {
    pid_t pid;
    if (posix_spawn(&pid, "/bin/sh", NULL, NULL, bare_argv, environ) != 0 ||
        waitpid(pid, NULL, 0) != pid)
        abort();
}

/* The least that also gets the output: two pipes, read to their ends. */
static void run_pipes(void) {
    posix_spawn_file_actions_t actions;
    char                       block[4096];
    int                        out[2], err[2];
    pid_t                      pid;
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) abort();
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    if (posix_spawn(&pid, "/bin/sh", &actions, NULL, bare_argv, environ) != 0)
        abort();
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    close(err[1]);
    while (read(out[0], block, sizeof block) > 0) continue;
    while (read(err[0], block, sizeof block) > 0) continue;
    close(out[0]);
    close(err[0]);
    if (waitpid(pid, NULL, 0) != pid) abort();
}

static void run_ours(void) {
    hfsb_proc_opts   opts = HFSB_INIT;
    hfsb_proc_result result;
    opts.command = HFSB_LIT("true");
    if (hfsb_proc_run(&opts, NULL, NULL, &result, NULL) != HFSB_OK ||
        result.end != HFSB_PROC_EXITED || result.exit_code != 0)
        abort();
}

static double time_runs(void (*fn)(void)) {
    double start = bench_now();
    int    i;
    for (i = 0; i < RUNS; i++) fn();
    return (bench_now() - start) / RUNS;
}

/* The three in turn, so that a change of the machine's load hits all. */
static void measure_start(void) {
    double best[3] = {1e9, 1e9, 1e9};
    int    round, k;
    for (round = 0; round < ROUNDS; round++)
        for (k = 0; k < 3; k++) {
            double t = time_runs(k == 0   ? run_bare
                                 : k == 1 ? run_pipes
                                          : run_ours);
            if (t < best[k]) best[k] = t;
        }
    printf("  %-40s %8.1f us\n", "sh -c true, posix_spawn + waitpid",
           best[0] * 1e6);
    printf("  %-40s %8.1f us  %5.2f\n", "... with two pipes read to the end",
           best[1] * 1e6, best[1] / best[0]);
    printf("  %-40s %8.1f us  %5.2f, %5.2f\n", "... hfsb_proc_run",
           best[2] * 1e6, best[2] / best[0], best[2] / best[1]);
    bench_keep("command: sh -c true, its output read", best[2] * 1e6,
               "posix_spawn, two pipes", best[1] * 1e6, "us");
}

/* ---- confined ---- */

static hfsb_tools *confined[3]; /* by level */
static int         level;

/* The tool, which also looks for what a command has planted. */
static void run_confined(void) {
    hfsb_tool_result result;
    if (hfsb_tools_call_text(confined[level], HFSB_LIT("bash"),
                             HFSB_LIT("{\"command\":\"true\"}"), NULL,
                             &result) != HFSB_OK ||
        !result.success)
        abort();
    hfsb_tool_result_free(&result);
}

/* What others do for much the same: mounts of its own, a user namespace. */
static void run_bubblewrap(void) {
    static const char *const argv[] = {
        "bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/",
        "--bind", "/tmp", "/tmp", "--dev", "/dev", "--proc", "/proc",
        "--die-with-parent", "sh", "-c", "true", NULL};
    hfsb_proc_opts   opts = HFSB_INIT;
    hfsb_proc_result result;
    opts.argv = argv;
    if (hfsb_proc_run(&opts, NULL, NULL, &result, NULL) != HFSB_OK ||
        result.exit_code != 0)
        abort();
}

/* The time, what confinement has added to it, and how many times as much
   bubblewrap (0: not installed) adds. */
static void print_added(const char *text, double t, double base, double wrap) {
    printf("  %-40s %8.1f us  %+5.0f us (aim 300)", text, t * 1e6,
           (t - base) * 1e6);
    if (wrap > 0 && t > base)
        printf(", bwrap %.1f times that", (wrap - base) / (t - base));
    printf("\n");
}

static void measure_confined(void) {
    double best[4] = {1e9, 1e9, 1e9, 1e9};
    bool   wrap = access("/usr/bin/bwrap", X_OK) == 0 &&
                system("bwrap --unshare-user --ro-bind / / true") == 0;
    int    round, i;
    for (i = 0; i < 3; i++) {
        hfsb_tools_opts opts = HFSB_INIT;
        opts.confine.level = (hfsb_confine_level)i;
        opts.work_dir = HFSB_LIT("/tmp");
        if (hfsb_tools_open(&opts, &confined[i], NULL) == HFSB_OK) continue;
        printf("  commands cannot be confined here\n");
        return;
    }
    for (round = 0; round < ROUNDS; round++)
        for (i = 0; i < (wrap ? 4 : 3); i++) {
            double t;
            level = i;
            t = time_runs(i < 3 ? run_confined : run_bubblewrap);
            if (t < best[i]) best[i] = t;
        }
    if (!wrap) best[3] = 0;
    printf("  %-40s %8.1f us\n", "bash tool, confined: none", best[0] * 1e6);
    print_added("... write", best[1], best[0], best[3]);
    print_added("... strict", best[2], best[0], best[3]);
    if (wrap) {
        printf("  %-40s %8.1f us  %+5.0f us\n", "hfsb_proc_run of bwrap",
               best[3] * 1e6, (best[3] - best[0]) * 1e6);
        bench_keep("command: confined (write)", best[1] * 1e6, "bubblewrap",
                   best[3] * 1e6, "us");
        bench_keep("command: confined (strict)", best[2] * 1e6, "bubblewrap",
                   best[3] * 1e6, "us");
    }
    for (i = 0; i < 3; i++) hfsb_tools_close(confined[i]);
}

static double time_command(const char *command, unsigned long long bytes) {
    hfsb_proc_opts   opts = HFSB_INIT;
    hfsb_proc_result result;
    double           start = bench_now();
    opts.command = hfsb_cstr(command);
    if (hfsb_proc_run(&opts, NULL, NULL, &result, NULL) != HFSB_OK ||
        result.stdout_bytes != bytes)
        abort();
    return bench_now() - start;
}

static void measure_flood(unsigned long long bytes) {
    char   make[128], text[128], copy[128];
    double best[3] = {1e9, 1e9, 1e9}, t;
    int    round;
    snprintf(make, sizeof make, "head -c %llu /dev/zero > /dev/shm/hfsb-bench",
             bytes);
    snprintf(text, sizeof text, "exec cat /dev/shm/hfsb-bench");
    snprintf(copy, sizeof copy,
             "exec cat /dev/shm/hfsb-bench > /dev/shm/hfsb-bench2");
    time_command(make, 0);
    for (round = 0; round < 3; round++) {
        if ((t = time_command(copy, 0)) < best[0]) best[0] = t;
        time_command("rm /dev/shm/hfsb-bench2", 0);
        if ((t = time_command(text, bytes)) < best[1]) best[1] = t;
        t = time_command("exec cat /dev/shm/hfsb-bench | cat > /dev/null", 0);
        if (t < best[2]) best[2] = t;
    }
    time_command("rm /dev/shm/hfsb-bench", 0);
    printf("  %-40s %8.1f ms\n", "cat of the bytes into a file",
           best[0] * 1e3);
    printf("  %-40s %8.1f ms  %5.2f\n", "cat | cat > /dev/null",
           best[2] * 1e3, best[2] / best[0]);
    printf("  %-40s %8.1f ms  %5.2f\n", "hfsb_proc_run of cat, counted",
           best[1] * 1e3, best[1] / best[0]);
    bench_keep("command: 1 GB of output", best[1] * 1e3, "cat > file",
               best[0] * 1e3, "ms");
}

int main(void) {
    printf("  %-40s %11s  ratio\n", "", "time");
    measure_start();
    measure_confined();
    measure_flood(access("/dev/shm", W_OK) == 0 ? (unsigned long long)bench_part(1000000000, 100)
                      : 0);
    return 0;
}
