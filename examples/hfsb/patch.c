/* patch.c - hfsb patch: apply a patch in the *** Begin Patch format.

   Not through the tool apply_patch, for the reasons of edit.c. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static hfsb_status read_file(void *user, hfsb_str path, hfsb_buf *out,
                             hfsb_err *err) {
    (void)user;
    return hfsb_file_read(NULL, path, 0, out, NULL, err);
}

/* Carries one change out. A file that moves keeps its mode. */
static hfsb_status carry_out(const hfsb_patch_change *change, hfsb_err *err) {
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

static hfsb_status carry_out_all(const hfsb_patch_result *patch,
                                 hfsb_err                *err) {
    hfsb_status st = HFSB_OK;
    size_t      i, n;
    for (i = 0; i < patch->count; i++) {
        st = carry_out(patch->changes + i, err);
        if (st != HFSB_OK) break;
    }
    if (st == HFSB_OK || i == 0) return st;
    n = strlen(err->msg);
    snprintf(err->msg + n, sizeof err->msg - n,
             ". Changes carried out before it: %zu of %zu", i, patch->count);
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

/* The keys of `hfsb edit`; lines is always empty. */
static void write_added(size_t count, bool fuzzy, hfsb_str diff,
                        hfsb_tool_result *result) {
    hfsb_json_writer w;
    begin_added(&w, result);
    hfsb_json_put_key(&w, HFSB_LIT("count"));
    hfsb_json_put_uint(&w, count);
    hfsb_json_put_key(&w, HFSB_LIT("note"));
    if (fuzzy)
        hfsb_json_put_str(&w, HFSB_LIT("(context matched after trimming)"));
    else hfsb_json_put_null(&w);
    hfsb_json_put_key(&w, HFSB_LIT("lines"));
    hfsb_json_put_array(&w);
    hfsb_json_put_end(&w);
    hfsb_json_put_key(&w, HFSB_LIT("diff"));
    hfsb_json_put_str(&w, diff);
    end_added(&w);
}

static int apply_patch(const char *file, bool dry_run, bool json) {
    hfsb_patch_files  files = HFSB_INIT;
    hfsb_patch_result patch = HFSB_INIT;
    hfsb_tool_result  result = HFSB_INIT;
    hfsb_buf          text = HFSB_INIT, diff = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    size_t            i, count = 0;
    int               code;
    hfsb_status       st = read_input(file, &text, &err);
    files.read = read_file;
    if (st == HFSB_OK)
        st = hfsb_patch_apply(hfsb_buf_str(&text), &files, &patch, &err);
    if (st == HFSB_OK && !dry_run) st = carry_out_all(&patch, &err);
    set_outcome(&result, st, &err);
    if (result.success) count = patch.count;
    for (i = 0; i < count; i++) {
        describe(patch.changes + i, &result.output);
        must(hfsb_buf_append(&diff, hfsb_buf_str(&patch.changes[i].diff)));
    }
    write_added(count, patch.fuzzy, hfsb_buf_str(&diff), &result);
    code = show_result(&result, hfsb_buf_str(&diff), json);
    hfsb_tool_result_free(&result);
    hfsb_patch_free(&patch);
    hfsb_buf_free(&text);
    hfsb_buf_free(&diff);
    return code;
}

static int run_patch(args *a) {
    const char  *file = NULL;
    bool         dry_run = false, json = false;
    const option options[] = {{"--dry-run", OPTION_FLAG, &dry_run},
                              {"--json", OPTION_FLAG, &json},
                              {NULL, OPTION_FLAG, NULL}};
    if (!take_all(a, options, &file)) return a->status;
    return apply_patch(file, dry_run, json);
}

const cli_command command_patch = {
    "patch", "[OPTIONS] [FILE]", "apply a patch of the *** Begin Patch format",
    "    Apply a patch in the *** Begin Patch format, from FILE or standard\n"
    "    input. All changes are worked out before the first file is written;\n"
    "    paths are taken from the current directory.\n"
    "    --dry-run    show the changes, do not write\n"
    "    --json       print success, output, error, count, note, lines and\n"
    "                 diff\n",
    run_patch};
