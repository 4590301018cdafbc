/* patch.c - hfsb patch: apply a patch, a diff or SEARCH/REPLACE blocks.

   As in edit.c the changes are computed and written here, not by the tool
   apply_patch, unless the files are on a sandbox. A dry run for a sandbox
   reads the files from there and computes the changes here. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static hfsb_status read_file(void *user, hfsb_str path, hfsb_buf *out,
                             hfsb_err *err) {
    hfsb_sandbox *sandbox = (hfsb_sandbox *)user;
    if (sandbox) return hfsb_sandbox_get(sandbox, path, 0, NULL, out, err);
    return hfsb_file_read(NULL, path, 0, out, NULL, err);
}

/* Writes one change. A file that moves keeps its mode. */
static hfsb_status write_change(const hfsb_patch_change *change,
                                hfsb_err                *err) {
    hfsb_file_write_opts opts = HFSB_INIT;
    hfsb_file_info       info;
    hfsb_str    to = change->new_path.len ? change->new_path : change->path;
    hfsb_status st = HFSB_OK;
    if (change->new_path.len) {
        st = hfsb_file_stat(NULL, change->path, &info, err);
        if (st == HFSB_OK) opts.mode = info.mode;
    }
    if (st == HFSB_OK && change->kind != HFSB_PATCH_DELETE)
        st = hfsb_file_write(NULL, to, hfsb_buf_str(&change->content), &opts,
                             NULL, err);
    if (st == HFSB_OK &&
        (change->kind == HFSB_PATCH_DELETE || change->new_path.len))
        st = hfsb_file_remove(NULL, change->path, err);
    return st;
}

static hfsb_status write_changes(const hfsb_patch_result *patch,
                                 hfsb_err                *err) {
    hfsb_status st = HFSB_OK;
    size_t      i, n;
    for (i = 0; i < patch->count; i++) {
        st = write_change(patch->changes + i, err);
        if (st != HFSB_OK) break;
    }
    if (st == HFSB_OK || i == 0) return st;
    n = strlen(err->msg);
    snprintf(err->msg + n, sizeof err->msg - n,
             ". Changes written before that: %zu of %zu", i, patch->count);
    return st;
}

static void describe(const hfsb_patch_change *change, hfsb_buf *out) {
    static const char *const words[] = {"Added", "Deleted", "Updated"};
    must(hfsb_buf_printf(out, "%s%s %.*s", out->len ? "\n" : "",
                         words[change->kind], (int)change->path.len,
                         change->path.ptr));
    if (change->new_path.len)
        must(hfsb_buf_printf(out, ", moved to %.*s", (int)change->new_path.len,
                             change->new_path.ptr));
}

/* Applies the patch here, or computes it for files of a sandbox. */
static int apply_patch(const char *on, const char *file, bool dry_run,
                       bool json) {
    hfsb_sandbox_opts opts = HFSB_INIT;
    client            via = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_patch_files  files = HFSB_INIT;
    hfsb_patch_result patch = HFSB_INIT;
    hfsb_tool_result  result = HFSB_INIT;
    hfsb_buf          text = HFSB_INIT, diff = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    const char       *note = "";
    size_t            i, count = 0;
    int               code;
    hfsb_status       st = read_input(file, &text, &err);
    if (st == HFSB_OK && on) st = open_named(&via, on, &opts, &sandbox, &err);
    files.read = read_file;
    files.user = sandbox;
    if (st == HFSB_OK)
        st = hfsb_patch_apply(hfsb_buf_str(&text), &files, &patch, &err);
    if (st == HFSB_OK && !dry_run) st = write_changes(&patch, &err);
    set_outcome(&result, st, &err);
    if (result.success) count = patch.count;
    for (i = 0; i < count; i++) {
        describe(patch.changes + i, &result.output);
        must(hfsb_buf_append(&diff, hfsb_buf_str(&patch.changes[i].diff)));
        if (!*note) note = patch.changes[i].note;
    }
    write_edit_fields(count, note, NULL, hfsb_buf_str(&diff), &result);
    code = show_result(&result, hfsb_buf_str(&diff), json);
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    if (on) close_client(&via);
    hfsb_tool_result_free(&result);
    hfsb_patch_free(&patch);
    hfsb_buf_free(&text);
    hfsb_buf_free(&diff);
    return code;
}

/* Sends the patch to the tool of the sandbox. */
static int send_patch(const char *on, const char *file, bool json) {
    hfsb_tools_opts  where = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_json_doc    arguments = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_buf         text = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st = read_input(file, &text, &err);
    int              code = REFUSED, signal = 0;
    bool             good = true;
    if (st == HFSB_OK) {
        begin_object(&w, &arguments);
        good = put_text(&w, "patch", "the patch", hfsb_buf_str(&text));
        end_object(&w);
        if (good)
            signal = call_tool(on, &where, "apply_patch", arguments.root, NULL,
                               NULL, &result);
    } else {
        set_outcome(&result, st, &err);
    }
    if (good) code = show_result(&result, HFSB_LIT(""), json);
    hfsb_tool_result_free(&result);
    hfsb_json_free(&arguments);
    hfsb_buf_free(&text);
    return signal ? 128 + signal : code;
}

int run_patch(args *a) {
    const char *file = NULL, *on = NULL;
    bool        dry_run = false, json = false;

    const option options[] = {
        OPTION_ON(&on),
        {"--dry-run", OPTION_FLAG, &dry_run,
         "show the changes, do not write the files"},
        OPTION_JSON(&json, ", count, note, lines, diff; on a sandbox the "
                           "fields of its tool apply_patch"),
        OPTIONS_END};
    if (!take_all(a, options, &file)) return a->status;
    on = named_sandbox(on);
    if (on && !dry_run) return send_patch(on, file, json);
    return apply_patch(on, file, dry_run, json);
}
