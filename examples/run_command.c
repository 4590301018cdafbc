/* run_command.c - run a command, get its output and how it ended.

       cc -o run_command run_command.c && ./run_command SECONDS COMMAND

   Shows hfsb_proc_run(): the output in two buffers with a maximum, a timeout
   that ends the command and all processes it started, and no waiting for
   processes that it leaves running. Try
       ./run_command 5 'echo out; echo err >&2; exit 3'
       ./run_command 1 'echo begun; sleep 100'
       ./run_command 5 'sleep 100 & echo done'                             */
#define HFSB_IMPLEMENTATION
#include "../hfsb.h"

#include <stdio.h>
#include <stdlib.h>

static void show(const char *name, const hfsb_buf *text,
                 unsigned long long total) {
    printf("---- %s: %llu bytes", name, total);
    if (text->len < total) printf(", the first %zu of them", text->len);
    printf("\n%s\n", text->len ? text->ptr : "");
}

static void show_end(const hfsb_proc_result *r) {
    printf("---- process %ld, after %lld ms: ", r->pid, r->duration_ms);
    if (r->timed_out) printf("timed out; ");
    switch (r->end) {
    case HFSB_PROC_EXITED: printf("exit code %d\n", r->exit_code); break;
    case HFSB_PROC_SIGNALED: printf("ended by signal %d\n", r->signal); break;
    case HFSB_PROC_RUNNING: printf("it could not be killed\n"); break;
    case HFSB_PROC_UNKNOWN: printf("end unknown\n"); break;
    }
    if (r->incomplete) printf("A process that it started still runs.\n");
}

int main(int argc, char **argv) {
    hfsb_proc_opts   opts = HFSB_INIT;
    hfsb_proc_result result;
    hfsb_buf         out = HFSB_INIT, err_out = HFSB_INIT;
    hfsb_err         err;
    int              ok;

    if (argc != 3) {
        fprintf(stderr, "usage: run_command SECONDS COMMAND\n");
        return 2;
    }
    opts.timeout_ms = (long long)(atof(argv[1]) * 1000.0);
    opts.command = hfsb_cstr(argv[2]);
    opts.job = HFSB_LIT("run_command"); /* marks its processes */
    out.max = err_out.max = 65536;

    ok = hfsb_proc_run(&opts, &out, &err_out, &result, &err) == HFSB_OK;
    if (ok) {
        show("stdout", &out, result.stdout_bytes);
        show("stderr", &err_out, result.stderr_bytes);
        show_end(&result);
    } else {
        fprintf(stderr, "%s\n", err.msg); /* it did not start */
    }
    hfsb_buf_free(&out);
    hfsb_buf_free(&err_out);
    return ok && result.end == HFSB_PROC_EXITED && result.exit_code == 0 ? 0
                                                                         : 1;
}
