/* bash.c - hfsb bash: run a command with the tool bash.

   The output is printed while the command runs, unless --json is given. The
   exit code is that of the command, with the conventions of timeout(1). When
   standard output breaks, the command is killed, as in a pipeline. */
#define _XOPEN_SOURCE 700 /* SIGPIPE; before any include */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TIMED_OUT = 124, NOT_RUN = 125 }; /* as in timeout(1) */

/* Default timeouts in seconds: none here, where a user has Ctrl-C; on a
   sandbox the maximum of the server. */
enum { LOCAL_TIMEOUT = 1000000000, REMOTE_TIMEOUT = 1200 };

typedef struct bash_call {
    const char     *work_dir, *on, *shell;
    confinement     confine;
    hfsb_tools_opts where; /* made of it */
    double          timeout;
    bool            json, has_input, background, raw;
    const char     *command;
    hfsb_buf        input;
    bool            broken; /* writing to stdout or stderr failed ... */
    int             why;    /* ... with this errno */
    bool            in_line; /* the text so far ends within a line */
    bool            lined;   /* print_line() has printed over an empty one */
} bash_call;

static void print_text(void *user, hfsb_proc_stream stream, hfsb_str text) {
    bash_call *c = (bash_call *)user;
    FILE      *to = stream == HFSB_PROC_STDERR ? stderr : stdout;
    if (c->broken) return;
    if (c->lined) fprintf(to, "\r\033[K");
    c->lined = false;
    c->in_line = text.len && text.ptr[text.len - 1] != '\n';
    errno = 0;
    c->broken = !put_shown(to, text);
    c->why = errno;
}

/* On a terminal an unfinished line, such as a progress bar, is shown as it
   changes. */
static void print_line(void *user, hfsb_proc_stream stream, hfsb_str text) {
    bash_call *c = (bash_call *)user;
    hfsb_buf   line = HFSB_INIT;
    size_t     end = hfsb_utf8_offset(text, terminal_width() - 1);
    if (c->broken || c->in_line) return;
    must(hfsb_buf_append(&line, hfsb_str_slice(text, 0, end)));
    blank_controls(&line);
    fprintf(stream == HFSB_PROC_STDERR ? stderr : stdout, "\r%s\033[K",
            line.len ? line.ptr : "");
    fflush(stdout);
    c->lined = line.len > 0;
    hfsb_buf_free(&line);
}

/* The arguments of the tool; false, after a message, when a text is not
   UTF-8. */
static bool write_arguments(const args *a, const bash_call *c,
                            hfsb_json_doc *out) {
    hfsb_json_writer w;
    bool             ok;
    begin_object(&w, out);
    ok = put_text(&w, "command", "COMMAND", hfsb_cstr(c->command));
    if (c->background) put_bool(&w, "background", true);
    if (ok && c->has_input)
        ok = put_text(&w, "stdin", "Standard input", hfsb_buf_str(&c->input));
    ok = ok && put_options(a, &w);
    end_object(&w);
    return ok;
}

/* On a terminal, messages begin on a line of their own. */
static void end_line(bash_call *c) {
    if (c->in_line && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO))
        fputc('\n', stderr);
    c->in_line = false;
}

/* A sandbox at the other end of a pipe ends with this call. */
static void list_survivors(const hfsb_json_value *fields, bool ends) {
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(fields, "left_running"));
    hfsb_buf       line = HFSB_INIT;
    while (hfsb_json_next(&it)) {
        hfsb_buf_truncate(&line, 0);
        must(
            hfsb_buf_printf(&line, "%s: %lld ",
                            ends ? "ended with the sandbox" : "still running",
                            hfsb_json_int(hfsb_json_get(it.value, "pid"), 0)));
        must(hfsb_buf_append(&line, get_str(it.value, "command")));
        print_log(NULL, hfsb_buf_str(&line));
    }
    hfsb_buf_free(&line);
}

/* The exit code of a server that sends no fields: it is in the message. */
static long long code_in_message(const hfsb_tool_result *result) {
    if (result->success) return 0;
    if (!result->error.ptr ||
        strncmp(result->error.ptr, "Exit code ", 10) != 0)
        return -1;
    return strtoll(result->error.ptr + 10, NULL, 10);
}

/* As a shell does; an exit code alone is easily missed. */
static void print_signal(hfsb_str name, long long number) {
    hfsb_buf line = HFSB_INIT;
    if (name.len)
        must(hfsb_buf_printf(&line, "ended by %.*s", (int)name.len, name.ptr));
    else must(hfsb_buf_printf(&line, "ended by signal %lld", number));
    print_log(NULL, hfsb_buf_str(&line));
    hfsb_buf_free(&line);
}

/* The exit code that a shell would report. */
static int exit_code(bash_call *c, const hfsb_tool_result *result,
                     bool quiet) {
    const hfsb_json_value *fields = result->fields.root;
    hfsb_str               notes = get_str(fields, "notes");
    long long              code, number;
    bool                   timed_out;
    timed_out = hfsb_json_bool(hfsb_json_get(fields, "timed_out"), false);
    code = hfsb_json_int(hfsb_json_get(fields, "exit_code"), -1);
    number = hfsb_json_int(hfsb_json_get(fields, "signal"), 0);
    if (!hfsb_json_get(fields, "exit_code")) {
        code = code_in_message(result);
        if (code < -1 && code > -128) number = -code; /* "Exit code -9" */
        timed_out = result->error.ptr &&
                    strncmp(result->error.ptr, "Timeout after ", 14) == 0;
    }
    /* its output was printed as it came */
    if (!quiet && (notes.len || timed_out || code < 0 || number > 0 ||
                   hfsb_json_count(hfsb_json_get(fields, "left_running"))))
        end_line(c);
    if (!quiet) print_notes(notes);
    if (!quiet) list_survivors(fields, c->on && is_pipe(c->on));
    if (!quiet && (timed_out || (code < 0 && number <= 0)))
        print_log(NULL, hfsb_buf_str(&result->error));
    if (!quiet && !timed_out && number > 0)
        print_signal(get_str(fields, "signal_name"), number);
    if (timed_out) return TIMED_OUT;
    if (number > 0 && number < 128) return 128 + (int)number;
    return code < 0 ? NOT_RUN : (int)code;
}

/* Writing failed; for a closed pipe, the exit code of a SIGPIPE. */
static int exit_code_broken(const bash_call *c) {
    if (c->why == EPIPE) return 128 + SIGPIPE;
    fprintf(stderr, "hfsb: cannot write to standard output\n");
    return NOT_RUN;
}

/* `echo x | hfsb bash cat`: somebody expects it to be read. */
static void note_unread_input(bash_call *c) {
    struct stat st;
    int         bytes = 0;
    if (fstat(STDIN_FILENO, &st) != 0 || !S_ISFIFO(st.st_mode) ||
        ioctl(STDIN_FILENO, FIONREAD, &bytes) != 0 || bytes <= 0)
        return;
    end_line(c);
    fprintf(stderr, "hfsb: standard input was not passed on; --stdin does "
                    "that\n");
}

/* True for an id that may be pasted into a shell; the server chooses it. */
static bool is_plain(hfsb_str id) {
    size_t i;
    for (i = 0; i < id.len; i++)
        if (!id.ptr[i] || !strchr("abcdefghijklmnopqrstuvwxyz0123456789"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ-._",
                                  id.ptr[i]))
            return false;
    return id.len && *id.ptr != '-';
}

/* The output becomes the id, for $(hfsb bash -d ...); stderr gets the rest. */
static void show_started(const bash_call *c, hfsb_tool_result *result) {
    const hfsb_json_value *fields = result->fields.root;
    hfsb_str               id = get_str(fields, "id");
    hfsb_buf               line = HFSB_INIT;
    if (!result->success || !is_plain(id) || !c->on) return;
    must(hfsb_buf_printf(
        &line, "%s; its output: hfsb tool bash_output --on '%s' --id %.*s",
        hfsb_json_int(hfsb_json_get(fields, "pid"), 1)
            ? "it runs in the background"
            : "it waits for other commands to end",
        c->on, (int)id.len, id.ptr));
    print_log(NULL, hfsb_buf_str(&line));
    hfsb_buf_free(&line);
    hfsb_buf_truncate(&result->output, 0);
    must(hfsb_buf_append(&result->output, id));
}

static int run_command(bash_call *c, const hfsb_json_value *arguments) {
    hfsb_tools_opts  where = c->where;
    hfsb_call_opts   opts = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    int              code, interrupted;
    opts.names = HFSB_EDIT_NAMES_FLAGS;
    where.max_timeout = c->timeout;
    if (!(c->timeout > 0))
        where.timeout = where.max_timeout =
            c->on ? REMOTE_TIMEOUT : LOCAL_TIMEOUT;
    if (!c->json && !c->background) {
        opts.on_text = print_text;
        if (can_rewrite(STDOUT_FILENO) && can_rewrite(STDERR_FILENO))
            opts.on_line = print_line;
        opts.user = c;
        where.no_spill = true; /* the whole output is printed */
        (void)signal(SIGPIPE, SIG_IGN);
    }
    interrupted = call_tool(c->on, &where, "bash", arguments, &opts,
                            &c->broken, &result);
    if (c->lined) fputc('\n', stderr); /* it was cut off there */
    if (c->background) {
        if (!c->json) show_started(c, &result);
        code = show_result(&result, HFSB_LIT(""), c->json);
        hfsb_tool_result_free(&result);
        return interrupted ? 128 + interrupted : code;
    }
    code = exit_code(c, &result, c->json || interrupted || c->broken);
    if (!c->json && !c->has_input) note_unread_input(c);
    if (c->json && show_result(&result, HFSB_LIT(""), true) != DONE &&
        code == 0)
        code = NOT_RUN;
    hfsb_tool_result_free(&result);
    if (interrupted) return 128 + interrupted;
    return c->broken ? exit_code_broken(c) : code;
}

/* Refuses options that contradict each other; false after a message. */
static bool check_call(args *a, const bash_call *c) {
    const char *more = a->count - a->next > 2 ? " ..." : "";
    if (c->background && c->on && is_pipe(c->on))
        return usage(a, "--background needs a sandbox that stays; one at the "
                        "end of a pipe ends with this call") == DONE;
    if ((c->raw || (c->shell && c->on)) &&
        (c->json || c->background || options_given(a)))
        return usage(a, "%s runs the command as `hfsb exec` does, without the "
                        "options of the tool",
                     c->raw ? "--raw" : "--shell with --on") == DONE;
    if (a->next == a->count) return usage(a, "COMMAND is missing") == DONE;
    if (a->count - a->next == 1) return true;
    if (a->list[a->next + 1][0] == '-' && strchr(a->list[a->next], ' '))
        return usage(a, "options come before COMMAND: hfsb bash %s ... '%s'",
                     a->list[a->next + 1], a->list[a->next]) == DONE;
    return usage(a,
                 "COMMAND is one word, for the shell. Quote it: hfsb bash "
                 "'%s %s%s'; or keep the words apart: hfsb exec -- %s %s%s%s",
                 a->list[a->next], a->list[a->next + 1], more,
                 a->list[a->next], a->list[a->next + 1], more,
                 a->list[a->next + 1][0] == '-'
                     ? ". Options of hfsb come before COMMAND"
                     : "") == DONE;
}

int run_bash(args *a) {
    bash_call     c = HFSB_INIT;
    hfsb_json_doc arguments = HFSB_INIT;
    hfsb_err      err;
    int           code = NOT_RUN;

    const option options[] = {
        {"--env", OPTION_PARAM, NULL,
         "set an environment variable; may be repeated"},
        {"-e NAME=VALUE", OPTION_ALIAS, NULL, "--env"},
        {"--shell PATH", OPTION_TEXT, &c.shell,
         "shell that runs COMMAND (bash, or else sh)"},
        {"--background", OPTION_FLAG, &c.background,
         "in a sandbox: print the id of the job and return; `hfsb tool "
         "bash_output` reads its output"},
        {"-d", OPTION_ALIAS, NULL, "--background"},
        {"--raw", OPTION_FLAG, &c.raw,
         "pass input and output on byte for byte, as `hfsb exec` does"},
        {"--merge", OPTION_ALIAS, NULL, "--merge-stderr"},
        {"--timeout S", OPTION_SECONDS, &c.timeout,
         "end it after S seconds (never; in a sandbox 1200, the maximum)"},
        {"--work-dir DIR", OPTION_TEXT, &c.work_dir, "run it in DIR"},
        {"-w DIR", OPTION_ALIAS, NULL, "--work-dir"},
        {"--stdin", OPTION_FLAG, &c.has_input,
         "pass standard input on: it is first read to its end, and must be "
         "UTF-8"},
        OPTION_ON(&c.on),
        OPTIONS_CONFINE(&c.confine, "Default: none"),
        {"--json", OPTION_FLAG, &c.json,
         "print the result of the tool as one line of JSON"},
        OPTIONS_END};
    follow_parent();
    if (!take_options(a, options)) return a->status;
    c.on = named_sandbox(c.on);
    if (!check_confinement(a, &c.confine, c.on != NULL) ||
        !set_confinement(a, &c.confine, HFSB_CONFINE_NONE, &c.where) ||
        !check_call(a, &c))
        return a->status;
    c.command = a->list[a->next];
    c.where.work_dir = hfsb_cstr(c.work_dir);
    c.where.timeout = c.timeout;
    c.where.shell = c.shell;
    if (c.raw || (c.shell && c.on))
        return run_raw_command(c.on, &c.where, c.command,
                               !c.raw && !c.has_input);
    if (c.has_input && read_input(NULL, &c.input, &err) != HFSB_OK)
        fprintf(stderr, "hfsb: %s\n", err.msg);
    else if (write_arguments(a, &c, &arguments))
        code = run_command(&c, arguments.root);
    hfsb_buf_free(&c.input);
    hfsb_json_free(&arguments);
    return code;
}
