/* bash.c - hfsb bash: a command as the tool bash runs it, for people. */
#define _XOPEN_SOURCE 700 /* SIGPIPE; before any include */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As timeout(1) has them: the time was over; it could not be run at all. */
enum { TIMED_OUT = 124, NOT_RUN = 125 };

/* A person has Ctrl-C; a server ends every command some day. */
enum { LONG_HERE = 1000000000, LONG_THERE = 1200 };

typedef struct bash_call {
    const char *work_dir, *on;
    double      timeout;
    bool        merge, json, has_input;
    hfsb_buf    command, input;
    bool        broken; /* nobody reads what we print, or it cannot be kept */
    int         why;    /* errno of that */
} bash_call;

static void print_text(void *user, hfsb_proc_stream stream, hfsb_str text) {
    bash_call *c = (bash_call *)user;
    FILE      *to = stream == HFSB_PROC_STDERR ? stderr : stdout;
    if (c->broken) return;
    errno = 0;
    c->broken =
        fwrite(text.ptr, 1, text.len, to) != text.len || fflush(to) != 0;
    c->why = errno;
}

/* The arguments of the tool; false when a text cannot be one. */
static bool write_arguments(const bash_call *c, hfsb_buf *out) {
    hfsb_json_writer w;
    bool             ok;
    hfsb_json_writer_init(&w, out, NULL);
    hfsb_json_put_object(&w);
    ok = put_text(&w, "command", "COMMAND", hfsb_buf_str(&c->command));
    if (ok && c->has_input)
        ok = put_text(&w, "stdin", "Standard input", hfsb_buf_str(&c->input));
    hfsb_json_put_key(&w, HFSB_LIT("merge_stderr"));
    hfsb_json_put_bool(&w, c->merge);
    hfsb_json_put_end(&w);
    must(hfsb_json_writer_finish(&w, NULL));
    return ok;
}

static void name_survivors(const hfsb_json_value *added) {
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(added, "left_running"));
    hfsb_buf       line = HFSB_INIT;
    while (hfsb_json_next(&it)) {
        hfsb_buf_truncate(&line, 0);
        must(
            hfsb_buf_printf(&line, "still running: %lld ",
                            hfsb_json_int(hfsb_json_get(it.value, "pid"), 0)));
        must(hfsb_buf_append(
            &line,
            hfsb_json_str(hfsb_json_get(it.value, "command"), HFSB_LIT(""))));
        print_log(NULL, hfsb_buf_str(&line));
    }
    hfsb_buf_free(&line);
}

/* The exit code as a server tells it that adds no keys: in its words. */
static long long code_in_words(const hfsb_tool_result *result) {
    if (result->success) return 0;
    if (!result->error.ptr ||
        strncmp(result->error.ptr, "Exit code ", 10) != 0)
        return -1;
    return strtoll(result->error.ptr + 10, NULL, 10);
}

/* How the command ended, as a shell would put it. */
static int end_of(const hfsb_tool_result *result, bool quiet) {
    const hfsb_json_value *fields = result->fields.root;
    long long              code, number;
    bool                   timed_out;
    timed_out = hfsb_json_bool(hfsb_json_get(fields, "timed_out"), false);
    code = hfsb_json_int(hfsb_json_get(fields, "exit_code"), -1);
    number = hfsb_json_int(hfsb_json_get(fields, "signal"), 0);
    if (!hfsb_json_get(fields, "exit_code")) {
        code = code_in_words(result);
        if (code < -1) number = -code; /* "Exit code -9" */
        timed_out = result->error.ptr &&
                    strncmp(result->error.ptr, "Timeout after ", 14) == 0;
    }
    if (!quiet) name_survivors(fields);
    if (!quiet && (timed_out || (code < 0 && number == 0)))
        print_log(NULL, hfsb_buf_str(&result->error));
    if (timed_out) return TIMED_OUT;
    if (number > 0) return 128 + (int)number;
    return code < 0 ? NOT_RUN : (int)code;
}

/* Printing failed: as if the signal had come that tells of a closed pipe. */
static int end_of_printing(const bash_call *c) {
    if (c->why == EPIPE) return 128 + SIGPIPE;
    fprintf(stderr, "hfsb: cannot write to standard output\n");
    return NOT_RUN;
}

static int run_command(bash_call *c, hfsb_str arguments) {
    hfsb_tools_opts  where = HFSB_INIT;
    hfsb_call_opts   opts = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    int              code, interrupted;
    where.work_dir = hfsb_cstr(c->work_dir);
    where.timeout = where.max_timeout = c->timeout;
    if (!(c->timeout > 0))
        where.timeout = where.max_timeout = c->on ? LONG_THERE : LONG_HERE;
    if (!c->json) {
        opts.on_text = print_text;
        opts.user = c;
        where.no_spill = true; /* all of it is printed */
        (void)signal(SIGPIPE, SIG_IGN);
    }
    interrupted = call_tool(c->on, &where, "bash", arguments, &opts,
                            &c->broken, &result);
    code = end_of(&result, c->json || interrupted || c->broken);
    if (c->json && show_result(&result, HFSB_LIT(""), true) != DONE &&
        code == 0)
        code = NOT_RUN;
    hfsb_tool_result_free(&result);
    if (interrupted) return 128 + interrupted;
    return c->broken ? end_of_printing(c) : code;
}

static int run_bash(args *a) {
    bash_call    c = HFSB_INIT;
    hfsb_buf     arguments = HFSB_INIT;
    hfsb_err     err;
    int          code = NOT_RUN;
    const option options[] = {{"--timeout", OPTION_SECONDS, &c.timeout},
                              {"--work-dir", OPTION_TEXT, &c.work_dir},
                              {"--merge", OPTION_FLAG, &c.merge},
                              {"--stdin", OPTION_FLAG, &c.has_input},
                              {"--on", OPTION_TEXT, &c.on},
                              {"--json", OPTION_FLAG, &c.json},
                              {NULL, OPTION_FLAG, NULL}};
    if (!take_options(a, options)) return a->status;
    c.on = named_sandbox(c.on);
    if (a->next == a->count) return usage(a, "which COMMAND?");
    for (; a->next < a->count; a->next++)
        must(hfsb_buf_printf(&c.command, "%s%s", c.command.len ? " " : "",
                             a->list[a->next]));
    if (c.has_input && read_input(NULL, &c.input, &err) != HFSB_OK)
        fprintf(stderr, "hfsb: %s\n", err.msg);
    else if (write_arguments(&c, &arguments))
        code = run_command(&c, hfsb_buf_str(&arguments));
    hfsb_buf_free(&c.command);
    hfsb_buf_free(&c.input);
    hfsb_buf_free(&arguments);
    return code;
}

const cli_command command_bash = {
    "bash", "[OPTIONS] COMMAND...", "run a command, its output as it comes",
    "    Run COMMAND (its words joined by blanks) with /bin/sh as a model's\n"
    "    tool does: no terminal, nothing on standard input, output without\n"
    "    escape sequences and with progress bars as they end. It returns\n"
    "    when the shell has exited; what it left running is named on stderr\n"
    "    and lives on. Ctrl-C ends the command with all that it started, a\n"
    "    second one only hfsb.\n"
    "    --on SANDBOX      there and not here ($HFSB_SANDBOX)\n"
    "    --timeout S       end it after S seconds (on a sandbox: 1200, which\n"
    "                      is the most)\n"
    "    --work-dir DIR    where it runs\n"
    "    --merge           stdout and stderr as one, in the order written\n"
    "    --stdin           give it our standard input, which is read to its\n"
    "                      end before and must be UTF-8\n"
    "    --json            print the tool's result once it has ended\n"
    "    Exit codes: the command's; 128 + N when signal N ended it or hfsb;\n"
    "    124 after the timeout; 125 when it could not be run; 2 when the\n"
    "    options were not understood.\n",
    run_bash};
