/* file.c - hfsb read, hfsb write: one file, for people. */
#define _XOPEN_SOURCE 700 /* read(); before any include */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- read ---- */

static bool write_arguments(const char *path, long long offset,
                            long long limit, hfsb_buf *out) {
    hfsb_json_writer w;
    bool             ok;
    hfsb_json_writer_init(&w, out, NULL);
    hfsb_json_put_object(&w);
    ok = put_text(&w, "path", "FILE", hfsb_cstr(path));
    hfsb_json_put_key(&w, HFSB_LIT("offset"));
    hfsb_json_put_int(&w, offset);
    hfsb_json_put_key(&w, HFSB_LIT("limit"));
    hfsb_json_put_int(&w, limit);
    hfsb_json_put_end(&w);
    must(hfsb_json_writer_finish(&w, NULL));
    return ok;
}

/* A person would take 2000 lines for the whole file. */
static void tell_of_more(const hfsb_tool_result *result) {
    long long next = hfsb_json_int(
        hfsb_json_get(result->fields.root, "next_offset"), 0);
    if (next > 0)
        fprintf(stderr, "hfsb: there is more: --offset %lld\n", next);
}

static int run_read(args *a) {
    const char      *file = NULL, *root = NULL, *on = NULL;
    long long        offset = 1, limit = 2000;
    bool             json = false;
    hfsb_tools_opts  where = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_buf         arguments = HFSB_INIT;
    int              code = REFUSED;
    const option     options[] = {{"--offset", OPTION_INTEGER, &offset},
                                  {"--limit", OPTION_INTEGER, &limit},
                                  {"--root", OPTION_TEXT, &root},
                                  {"--on", OPTION_TEXT, &on},
                                  {"--json", OPTION_FLAG, &json},
                                  {NULL, OPTION_FLAG, NULL}};
    if (!take_all(a, options, &file)) return a->status;
    if (!file) return usage(a, "which FILE?");
    on = named_sandbox(on);
    if (on && root) return usage(a, "--root is for files of this machine");
    where.root = hfsb_cstr(root);
    if (write_arguments(file, offset, limit, &arguments)) {
        (void)call_tool(on, &where, "read", hfsb_buf_str(&arguments), NULL,
                        NULL, &result);
        code = show_result(&result, HFSB_LIT(""), json);
        if (!json) tell_of_more(&result);
    }
    hfsb_tool_result_free(&result);
    hfsb_buf_free(&arguments);
    return code;
}

/* ---- write ---- */

/* Standard input to the writer, piece by piece; Ctrl-C stops it. */
static hfsb_status copy_input(hfsb_file_writer *writer, hfsb_err *err) {
    static char piece[65536];
    hfsb_status st = HFSB_OK;
    ssize_t     n;
    while (st == HFSB_OK && (n = read(0, piece, sizeof piece)) != 0) {
        if (n > 0)
            st = hfsb_file_writer_append(writer,
                                         hfsb_str_make(piece, (size_t)n), err);
        else if (errno != EINTR)
            st = fail(err, HFSB_IO, "Standard input cannot be read: %s",
                      strerror(errno));
        if (caught_signal())
            st = fail(err, HFSB_REFUSED, "Interrupted: nothing was written");
    }
    return st;
}

static hfsb_status write_file(const hfsb_root *place, const char *file,
                              hfsb_file_written *written, hfsb_err *err) {
    hfsb_file_writer *writer = NULL;
    hfsb_status       st =
        hfsb_file_writer_open(place, hfsb_cstr(file), NULL, &writer, err);
    if (st != HFSB_OK) return st;
    st = copy_input(writer, err);
    if (st == HFSB_OK) st = hfsb_file_writer_commit(writer, written, err);
    hfsb_file_writer_close(writer);
    return st;
}

/* What the tool write says. */
static void report_written(const char *file, const hfsb_file_written *written,
                           hfsb_tool_result *result) {
    hfsb_json_writer w;
    must(hfsb_buf_printf(&result->output, "Wrote %llu bytes to %s",
                         written->bytes, file));
    begin_added(&w, result);
    put_int(&w, "bytes", (long long)written->bytes);
    put_bool(&w, "created", written->created);
    put_bool(&w, "in_place", written->in_place);
    end_added(&w);
}

/* To a sandbox it goes through the tool, which takes text only. */
static int write_there(const char *on, const char *file, bool json) {
    hfsb_tools_opts  where = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_buf         text = HFSB_INIT, arguments = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_err         err;
    int              code = REFUSED, interrupted = 0;
    if (read_input(NULL, &text, &err) != HFSB_OK) {
        set_outcome(&result, err.code, &err);
        return show_result(&result, HFSB_LIT(""), json);
    }
    hfsb_json_writer_init(&w, &arguments, NULL);
    hfsb_json_put_object(&w);
    if (put_text(&w, "path", "FILE", hfsb_cstr(file)) &&
        put_text(&w, "content", "Standard input", hfsb_buf_str(&text))) {
        hfsb_json_put_end(&w);
        must(hfsb_json_writer_finish(&w, NULL));
        interrupted = call_tool(on, &where, "write", hfsb_buf_str(&arguments),
                                NULL, NULL, &result);
        code = show_result(&result, HFSB_LIT(""), json);
    } else {
        fprintf(stderr, "hfsb: any bytes go with `hfsb cp`\n");
    }
    hfsb_tool_result_free(&result);
    hfsb_buf_free(&text);
    hfsb_buf_free(&arguments);
    return interrupted && code != DONE ? 128 + interrupted : code;
}

static int write_here(const char *file, const char *root, bool json) {
    hfsb_root_opts   where = HFSB_INIT;
    hfsb_root       *place = NULL;
    hfsb_file_written written;
    hfsb_tool_result  result = HFSB_INIT;
    hfsb_err          err;
    hfsb_status       st;
    int               code;
    catch_signals(NULL, NULL); /* so that no temporary file stays */
    where.root = hfsb_cstr(root);
    st = hfsb_root_open(&where, &place, &err);
    if (st == HFSB_OK) st = write_file(place, file, &written, &err);
    hfsb_root_close(place);
    release_signals();
    set_outcome(&result, st, &err);
    if (result.success) report_written(file, &written, &result);
    code = show_result(&result, HFSB_LIT(""), json);
    hfsb_tool_result_free(&result);
    return caught_signal() && st != HFSB_OK ? 128 + caught_signal() : code;
}

static int run_write(args *a) {
    const char  *file = NULL, *root = NULL, *on = NULL;
    bool         json = false;
    const option options[] = {{"--root", OPTION_TEXT, &root},
                              {"--on", OPTION_TEXT, &on},
                              {"--json", OPTION_FLAG, &json},
                              {NULL, OPTION_FLAG, NULL}};
    if (!take_all(a, options, &file)) return a->status;
    if (!file) return usage(a, "which FILE?");
    on = named_sandbox(on);
    if (on && root) return usage(a, "--root is for files of this machine");
    return on ? write_there(on, file, json) : write_here(file, root, json);
}

const cli_command command_read = {
    "read", "[OPTIONS] FILE", "show lines of a file with their numbers",
    "    Show a text file as a model's tool does: the number of each line, a\n"
    "    tab, the line; what is longer than 4,000 characters is cut.\n"
    "    --offset N    first line; below 0: counted from the end (1)\n"
    "    --limit N     so many lines; 0: all of them (2000)\n"
    "    --on S        of the sandbox S ($HFSB_SANDBOX)\n"
    "    --root DIR    refuse what is not beneath DIR; relative paths begin\n"
    "                  there\n"
    "    --json        print the tool's result\n",
    run_read};

const cli_command command_write = {
    "write", "[OPTIONS] FILE", "write standard input to a file",
    "    Write standard input, any bytes of any length, to FILE: whole or\n"
    "    not at all, and not before its end has come. Missing directories\n"
    "    are made; mode, owner and symbolic link of a file that is there\n"
    "    stay. The content is not looked at: `hfsb tool write` also warns of\n"
    "    syntax errors.\n"
    "    --on S        of the sandbox S ($HFSB_SANDBOX), through its tool\n"
    "                  write: UTF-8 only (hfsb cp takes any bytes)\n"
    "    --root DIR    refuse what is not beneath DIR; relative paths begin\n"
    "                  there\n"
    "    --json        print success, output, error, bytes, created and\n"
    "                  in_place\n",
    run_write};
