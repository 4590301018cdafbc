/* patch.c - hfsb patch: apply a patch, a diff or SEARCH/REPLACE blocks.

   As in edit.c the changes are computed and written here, not by the tool
   apply_patch, unless the files are on a sandbox. A dry run for a sandbox
   reads the files from there and computes the changes here.

   A patch is not trusted: its paths must not leave the roots, by default the
   current directory. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* Where the files are: in a sandbox, or beneath a root. */
typedef struct patch_place {
    hfsb_sandbox *sandbox;
    hfsb_root    *root;
} patch_place;

/* Reads the patch. */
static hfsb_status read_patch(const char *file, hfsb_buf *out, hfsb_err *err) {
    hfsb_status st = read_input(file, out, err);
    if (st == HFSB_OK && is_blank(hfsb_buf_str(out)))
        return fail(err, HFSB_ARG, "The patch is empty");
    return st;
}

static hfsb_status read_file(void *user, hfsb_str path, hfsb_buf *out,
                             hfsb_err *err) {
    const patch_place *at = (const patch_place *)user;
    if (at->sandbox)
        return hfsb_sandbox_get(at->sandbox, path, 0, NULL, out, err);
    return hfsb_file_read(at->root, path, 0, out, NULL, err);
}

/* Writes one change. A file that moves keeps its mode. */
static hfsb_status write_change(const hfsb_root         *root,
                                const hfsb_patch_change *change,
                                hfsb_err                *err) {
    hfsb_file_write_opts opts = HFSB_INIT;
    hfsb_file_info       info;
    hfsb_str    to = change->new_path.len ? change->new_path : change->path;
    hfsb_status st = HFSB_OK;
    if (change->new_path.len) {
        st = hfsb_file_stat(root, change->path, &info, err);
        if (st == HFSB_OK) opts.mode = info.mode;
    }
    if (st == HFSB_OK && change->kind != HFSB_PATCH_DELETE)
        st = hfsb_file_write(root, to, hfsb_buf_str(&change->content), &opts,
                             NULL, err);
    if (st == HFSB_OK &&
        (change->kind == HFSB_PATCH_DELETE || change->new_path.len))
        st = hfsb_file_remove(root, change->path, err);
    return st;
}

static hfsb_status write_changes(const hfsb_root         *root,
                                 const hfsb_patch_result *patch,
                                 hfsb_err                *err) {
    hfsb_status st = HFSB_OK;
    size_t      i, n;
    for (i = 0; i < patch->count; i++) {
        st = write_change(root, patch->changes + i, err);
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

/* Prints the changes, or why there are none. */
static int show_patch(const hfsb_patch_result *patch, hfsb_status st,
                      const hfsb_err *err, bool json) {
    hfsb_tool_result result = HFSB_INIT;
    hfsb_buf         diff = HFSB_INIT;
    const char      *note = "";
    size_t           i, count = st == HFSB_OK ? patch->count : 0;
    int              code;
    set_outcome(&result, st, err);
    for (i = 0; i < count; i++) {
        describe(patch->changes + i, &result.output);
        must(hfsb_buf_append(&diff, hfsb_buf_str(&patch->changes[i].diff)));
        if (!*note) note = patch->changes[i].note;
    }
    write_edit_fields(count, note, NULL, hfsb_buf_str(&diff), &result);
    code = show_with_diff(&result, hfsb_buf_str(&diff), json);
    hfsb_tool_result_free(&result);
    hfsb_buf_free(&diff);
    return code;
}

/* Applies the patch here, or computes it for files of a sandbox. */
static int apply_patch(const char *on, const hfsb_root_opts *roots,
                       const char *file, bool dry_run, bool json) {
    hfsb_sandbox_opts opts = HFSB_INIT;
    client            via = HFSB_INIT;
    patch_place       at = HFSB_INIT;
    hfsb_patch_files  files = HFSB_INIT;
    hfsb_patch_result patch = HFSB_INIT;
    hfsb_buf          text = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    int               code;
    hfsb_status       st = read_patch(file, &text, &err);
    if (st == HFSB_OK && on)
        st = open_named(&via, on, &opts, &at.sandbox, &err);
    else if (st == HFSB_OK) st = hfsb_root_open(roots, &at.root, &err);
    files.read = read_file;
    files.user = &at;
    files.names = HFSB_EDIT_NAMES_FLAGS;
    if (st == HFSB_OK)
        st = hfsb_patch_apply(hfsb_buf_str(&text), &files, &patch, &err);
    if (st == HFSB_OK && !dry_run) st = write_changes(at.root, &patch, &err);
    if (st == HFSB_OUTSIDE && at.root) {
        size_t n = strlen(err.msg);
        snprintf(err.msg + n, sizeof err.msg - n,
                 ". --root DIR allows other folders.");
    }
    code = show_patch(&patch, st, &err, json);
    if (at.sandbox) (void)hfsb_sandbox_close(at.sandbox, false, NULL);
    if (on) close_client(&via);
    hfsb_root_close(at.root);
    hfsb_patch_free(&patch);
    hfsb_buf_free(&text);
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
    hfsb_status      st = read_patch(file, &text, &err);
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
    if (good) code = show_with_diff(&result, HFSB_LIT(""), json);
    hfsb_tool_result_free(&result);
    hfsb_json_free(&arguments);
    hfsb_buf_free(&text);
    return signal ? 128 + signal : code;
}

int run_patch(args *a) {
    const char     *file = NULL, *on = NULL;
    texts           roots = HFSB_INIT;
    hfsb_tools_opts where = HFSB_INIT;
    hfsb_root_opts  at = HFSB_INIT;
    bool            dry_run = false, json = false;

    const option options[] = {
        OPTION_ON(&on),
        {"--root DIR", OPTION_TEXTS, &roots,
         "refuse paths outside DIR instead of the current directory; relative "
         "paths start there; may be repeated"},
        {"--dry-run", OPTION_FLAG, &dry_run,
         "show the changes without writing the files"},
        OPTION_JSON(&json, ", count, note, lines, diff; on a sandbox the "
                           "fields of its tool apply_patch"),
        OPTIONS_END};
    if (!take_all(a, options, &file)) return a->status;
    if (!set_roots(a, &roots, &where)) return a->status;
    on = named_sandbox(on);
    if (on && roots.count)
        return usage(a, "--root is for files of this machine");
    at.root = roots.count ? where.root : HFSB_LIT(".");
    at.more_roots = where.more_roots;
    at.more_root_count = where.more_root_count;
    if (on && !dry_run) return send_patch(on, file, json);
    return apply_patch(on, &at, file, dry_run, json);
}
