/* write.c - hfsb write: copy standard input to a file.

   On this machine the bytes go to the library's file writer piece by piece,
   so the input may be of any size and content. On a sandbox the tool write
   gets them as one JSON string, which must be UTF-8. */
#define _XOPEN_SOURCE 700 /* read(); before any include */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Copies standard input to the writer until its end or Ctrl-C. */
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

/* The output and the fields of the tool write. */
static void report_written(const char *file, const hfsb_file_written *written,
                           hfsb_tool_result *result) {
    hfsb_json_writer w;
    must(hfsb_buf_printf(&result->output, "Wrote %llu bytes to %s",
                         written->bytes, file));
    begin_object(&w, &result->fields);
    put_int(&w, "bytes", (long long)written->bytes);
    put_bool(&w, "created", written->created);
    put_bool(&w, "in_place", written->in_place);
    end_object(&w);
}

static int write_remote(const char *on, const char *file, bool json) {
    hfsb_tools_opts  where = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_buf         text = HFSB_INIT;
    hfsb_json_doc    arguments = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_err         err;
    int              code = REFUSED, interrupted = 0;
    bool             ok;
    if (read_input(NULL, &text, &err) != HFSB_OK) {
        set_outcome(&result, err.code, &err);
        return show_result(&result, HFSB_LIT(""), json);
    }
    begin_object(&w, &arguments);
    ok = put_text(&w, "path", "FILE", hfsb_cstr(file)) &&
         put_text(&w, "content", "Standard input", hfsb_buf_str(&text));
    end_object(&w);
    if (ok) {
        interrupted = call_tool(on, &where, "write", arguments.root, NULL,
                                NULL, &result);
        code = show_result(&result, HFSB_LIT(""), json);
    } else {
        fprintf(stderr, "hfsb: `hfsb cp` copies any bytes\n");
    }
    hfsb_tool_result_free(&result);
    hfsb_buf_free(&text);
    hfsb_json_free(&arguments);
    return interrupted && code != DONE ? 128 + interrupted : code;
}

static int write_local(const char *file, const hfsb_tools_opts *tools,
                       bool json) {
    hfsb_root_opts    where = HFSB_INIT;
    hfsb_root        *place = NULL;
    hfsb_file_written written;
    hfsb_tool_result  result = HFSB_INIT;
    hfsb_err          err;
    hfsb_status       st;
    int               code;
    catch_signals(NULL, NULL); /* to remove the temporary file */
    where.root = tools->root;
    where.more_roots = tools->more_roots;
    where.more_root_count = tools->more_root_count;
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

int run_write(args *a) {
    const char     *file = NULL, *on = NULL;
    texts           roots = HFSB_INIT;
    hfsb_tools_opts where = HFSB_INIT;
    bool            json = false;

    const option options[] = {OPTION_ON(&on), OPTION_ROOT(&roots),
                              OPTION_JSON(&json, ", bytes, created, in_place"),
                              OPTIONS_END};
    if (!take_all(a, options, &file)) return a->status;
    if (!file) return usage(a, "which FILE?");
    if (!set_roots(a, &roots, &where)) return a->status;
    on = named_sandbox(on);
    if (on && roots.count)
        return usage(a, "--root is for files of this machine");
    return on ? write_remote(on, file, json) : write_local(file, &where, json);
}
