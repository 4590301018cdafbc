/* edit.c - hfsb edit: replace text in a file.

   The edits come from --old and --new, or from JSON on standard input. The tool
   edit or multi_edit applies them, here or on a sandbox, and checks the new
   file. A dry run, and texts that are not UTF-8, on this machine, are applied
   by hfsb_edit_apply().

       options    --> c->base, c->options
       old, new   --+
       JSON       --+--> c->edits --> {"path":..., "old_str":...}
                                  --> or hfsb_edit_apply() */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct edit_call {
    args         *a;
    const char   *file, *on;
    const char   *old_text, *new_text, *old_file, *new_file;
    bool          dry_run, json;
    hfsb_json_doc options; /* mode, replace_all, line ... as given */
    hfsb_edit     base;    /* the same, as defaults for each edit */
    hfsb_json_doc doc;     /* of standard input */
    hfsb_buf      old_buf, new_buf, input; /* the edits point into these */
    hfsb_buf      ignored;                 /* notes on unknown keys */
    hfsb_edit    *edits;
    size_t        count;
} edit_call;

/* Notes the keys that are ignored: those that are not parameters of the tool
   edit, and next to "edits" all others. */
static void note_unknown(edit_call *c, const hfsb_json_value *object,
                         bool top) {
    bool           many = top && hfsb_json_get(object, "edits");
    hfsb_json_iter it = hfsb_json_begin(object);
    while (hfsb_json_next(&it)) {
        bool is_path = hfsb_str_equal(it.key, HFSB_LIT("path"));
        if (is_path ? top : !many && find_param(c->a, it.key)) continue;
        if (many && hfsb_str_equal(it.key, HFSB_LIT("edits"))) continue;
        must(hfsb_buf_printf(&c->ignored, "\n(unknown key ignored: %.*s)",
                             (int)hfsb_utf8_offset(it.key, 80), it.key.ptr));
    }
}

static void make_edits(edit_call *c, size_t count) {
    c->edits = (hfsb_edit *)calloc(count ? count : 1, sizeof *c->edits);
    must(c->edits ? HFSB_OK : HFSB_NOMEM);
}

static hfsb_status add_edit(edit_call *c, const hfsb_json_value *object,
                            hfsb_err *err) {
    c->edits[c->count] = c->base;
    return hfsb_edit_from_json(object, c->edits + c->count++, err);
}

/* Reads the edits from a JSON object on standard input. */
static hfsb_status read_object(edit_call *c, hfsb_err *err) {
    hfsb_json_parse_opts   opts = HFSB_INIT;
    const hfsb_json_value *root, *list = NULL;
    hfsb_json_iter         it;
    hfsb_status            st;
    opts.unique_keys = true;
    st = read_input(NULL, &c->input, err);
    if (st == HFSB_OK && is_blank(hfsb_buf_str(&c->input)))
        st = fail(err, HFSB_ARG,
                  "There is nothing to do: give --old and --new, or JSON on "
                  "standard input.");
    if (st == HFSB_OK)
        st = hfsb_json_parse(hfsb_buf_str(&c->input), &opts, &c->doc, err);
    root = c->doc.root;
    if (st == HFSB_OK)
        st = hfsb_json_arg_value(root, "edits", false, HFSB_JSON_ARRAY, &list,
                                 err);
    if (st != HFSB_OK) return st;
    if (list &&
        (hfsb_json_get(root, "old_str") || hfsb_json_get(root, "new_str")))
        return fail(err, HFSB_ARG,
                    "Give old_str and new_str, or edits, not both");
    make_edits(c, list ? hfsb_json_count(list) : 1);
    if (!list) st = add_edit(c, root, err);
    it = hfsb_json_begin(list);
    while (st == HFSB_OK && hfsb_json_next(&it)) {
        st = add_edit(c, it.value, err);
        note_unknown(c, it.value, false);
    }
    note_unknown(c, root, true);
    return st;
}

/* Makes one edit of --old, --new and the files. */
static hfsb_status read_texts(edit_call *c, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    make_edits(c, 1);
    c->count = 1;
    *c->edits = c->base;
    if (c->old_file) st = read_input(c->old_file, &c->old_buf, err);
    if (st == HFSB_OK && c->new_file)
        st = read_input(c->new_file, &c->new_buf, err);
    c->edits->old_str =
        c->old_file ? hfsb_buf_str(&c->old_buf) : hfsb_cstr(c->old_text);
    c->edits->new_str =
        c->new_file ? hfsb_buf_str(&c->new_buf) : hfsb_cstr(c->new_text);
    return st;
}

/* Gets the file from the sandbox. */
static hfsb_status get_remote(const edit_call *c, hfsb_buf *out,
                              hfsb_err *err) {
    hfsb_sandbox_opts opts = HFSB_INIT;
    client            via = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_status       st = open_named(&via, c->on, &opts, &sandbox, err);
    if (st == HFSB_OK)
        st = hfsb_sandbox_get(sandbox, hfsb_cstr(c->file), 0, NULL, out, err);
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    close_client(&via);
    return st;
}

/* How refusals name the arguments: as they were given. */
static hfsb_edit_names edit_names(const edit_call *c) {
    return c->old_text || c->old_file ? HFSB_EDIT_NAMES_FLAGS
                                      : HFSB_EDIT_NAMES_KEYS;
}

static hfsb_status read_edits(edit_call *c, hfsb_err *err) {
    return edit_names(c) == HFSB_EDIT_NAMES_FLAGS ? read_texts(c, err)
                                                  : read_object(c, err);
}

static hfsb_status edit_file(const edit_call *c, hfsb_edit_result *edit,
                             hfsb_err *err) {
    hfsb_buf       before = HFSB_INIT, after = HFSB_INIT;
    hfsb_edit_opts opts = HFSB_INIT;
    hfsb_str       path = hfsb_cstr(c->file);
    hfsb_status    st;
    opts.path = path;
    opts.names = edit_names(c);
    if (!c->dry_run)
        return hfsb_edit_file(NULL, path, c->edits, c->count, &opts, edit,
                              err);
    if (c->on) st = get_remote(c, &before, err);
    else st = hfsb_file_read(NULL, path, 0, &before, NULL, err);
    if (st == HFSB_OK)
        st = hfsb_edit_apply(hfsb_buf_str(&before), c->edits, c->count, &opts,
                             &after, edit, err);
    hfsb_buf_free(&before);
    hfsb_buf_free(&after);
    return st;
}

void write_edit_fields(size_t count, const char *note, const hfsb_span *spans,
                       hfsb_str diff, hfsb_tool_result *result) {
    hfsb_json_writer w;
    size_t           i;
    begin_object(&w, &result->fields);
    put_int(&w, "count", (long long)count);
    put_str(&w, "note", hfsb_cstr(note));
    hfsb_json_put_key(&w, HFSB_LIT("lines"));
    hfsb_json_put_array(&w);
    for (i = 0; spans && i < count; i++) {
        hfsb_json_put_array(&w);
        hfsb_json_put_uint(&w, spans[i].first_line);
        hfsb_json_put_uint(&w, spans[i].last_line);
        hfsb_json_put_end(&w);
    }
    hfsb_json_put_end(&w);
    hfsb_json_put_key(&w, HFSB_LIT("diff"));
    hfsb_json_put_str(&w, diff);
    end_object(&w);
}

/* ---- by the tool ---- */

/* Writes the edit at an index: its texts, and each other parameter that it
   has in the JSON or that was an option. */
static bool put_edit(const edit_call *c, size_t index, hfsb_json_writer *w) {
    const hfsb_json_value *list = hfsb_json_get(c->doc.root, "edits");
    const hfsb_json_value *item =
        list ? hfsb_json_at(list, index) : c->doc.root;
    size_t i;
    if (!put_text(w, "old_str", "The old text", c->edits[index].old_str) ||
        !put_text(w, "new_str", "The new text", c->edits[index].new_str))
        return false;
    for (i = 0; i < c->a->param_count; i++) {
        hfsb_str               key = c->a->params[i].key;
        const hfsb_json_value *value = hfsb_json_get(item, key.ptr);
        if (!value) value = hfsb_json_get(c->options.root, key.ptr);
        if (!value || hfsb_str_equal(key, HFSB_LIT("path")) ||
            hfsb_str_equal(key, HFSB_LIT("old_str")) ||
            hfsb_str_equal(key, HFSB_LIT("new_str")))
            continue;
        hfsb_json_put_key(w, key);
        hfsb_json_put_value(w, value);
    }
    return true;
}

/* The arguments of edit, or of multi_edit unless there is one edit. */
static bool write_arguments(const edit_call *c, hfsb_json_doc *out) {
    hfsb_json_writer w;
    size_t           i;
    bool             ok;
    begin_object(&w, out);
    ok = put_text(&w, "path", "FILE", hfsb_cstr(c->file));
    if (ok && c->count == 1) ok = put_edit(c, 0, &w);
    if (c->count != 1) {
        hfsb_json_put_key(&w, HFSB_LIT("edits"));
        hfsb_json_put_array(&w);
        for (i = 0; i < c->count && ok; i++) {
            hfsb_json_put_object(&w);
            ok = put_edit(c, i, &w);
            hfsb_json_put_end(&w);
        }
        hfsb_json_put_end(&w);
    }
    end_object(&w);
    return ok;
}

static int edit_by_tool(edit_call *c) {
    hfsb_tools_opts  where = HFSB_INIT;
    hfsb_call_opts   opts = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_json_doc    arguments = HFSB_INIT;
    int              code = REFUSED, interrupted = 0;
    if (write_arguments(c, &arguments)) {
        hfsb_str diff;
        opts.names = edit_names(c);
        interrupted =
            call_tool(c->on, &where, c->count == 1 ? "edit" : "multi_edit",
                      arguments.root, &opts, NULL, &result);
        must(hfsb_buf_append(&result.output, hfsb_buf_str(&c->ignored)));
        if (!result.fields.root)
            write_edit_fields(0, "", NULL, HFSB_LIT(""), &result);
        diff = get_str(result.fields.root, "diff");
        /* With a note the output shows it already. */
        if (get_str(result.fields.root, "note").len) diff = HFSB_LIT("");
        code = show_with_diff(&result, diff, c->json);
    }
    hfsb_tool_result_free(&result);
    hfsb_json_free(&arguments);
    return interrupted && code != DONE ? 128 + interrupted : code;
}

/* ---- by the engine ---- */

static int edit_here(edit_call *c) {
    hfsb_edit_result edit = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    int              code;
    set_outcome(&result, edit_file(c, &edit, &err), &err);
    if (result.success)
        must(hfsb_buf_printf(&result.output, "%s %s (%zu replacement%s)%s%s%s",
                             c->dry_run ? "Would edit" : "Edited", c->file,
                             edit.count, edit.count > 1 ? "s" : "",
                             edit.note[0] ? " " : "", edit.note,
                             c->ignored.len ? c->ignored.ptr : ""));
    write_edit_fields(edit.count, edit.note, edit.spans,
                      hfsb_buf_str(&edit.diff), &result);
    code = show_with_diff(&result, hfsb_buf_str(&edit.diff), c->json);
    hfsb_tool_result_free(&result);
    hfsb_edit_result_free(&edit);
    return code;
}

/* ---- the command ---- */

static bool is_utf8(hfsb_str text) {
    return hfsb_utf8_validate(text) == text.len;
}

/* JSON can hold the texts and the path. */
static bool fits_json(const edit_call *c) {
    size_t i;
    for (i = 0; i < c->count; i++)
        if (!is_utf8(c->edits[i].old_str) || !is_utf8(c->edits[i].new_str))
            return false;
    return is_utf8(hfsb_cstr(c->file));
}

/* Reads the edits and applies them; returns the exit code. */
static int apply_edits(edit_call *c) {
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st = read_edits(c, &err);
    int              code;
    if (st == HFSB_OK)
        return c->dry_run || (!c->on && !fits_json(c)) ? edit_here(c)
                                                       : edit_by_tool(c);
    set_outcome(&result, st, &err);
    write_edit_fields(0, "", NULL, HFSB_LIT(""), &result);
    code = show_result(&result, HFSB_LIT(""), c->json);
    hfsb_tool_result_free(&result);
    return code;
}

/* Makes c->options and c->base of the options; returns the exit code. */
static int read_options(edit_call *c) {
    hfsb_json_writer w;
    hfsb_err         err;
    bool             ok;
    begin_object(&w, &c->options);
    ok = put_options(c->a, &w) &&
         put_text(&w, "old_str", "", HFSB_LIT("")) && /* both are required */
         put_text(&w, "new_str", "", HFSB_LIT(""));
    end_object(&w);
    if (!ok) return REFUSED;
    if (hfsb_edit_from_json(c->options.root, &c->base, &err) != HFSB_OK)
        return usage(c->a, "%s", err.msg);
    return DONE;
}

static void free_call(edit_call *c) {
    hfsb_json_free(&c->options);
    hfsb_json_free(&c->doc);
    hfsb_buf_free(&c->input);
    hfsb_buf_free(&c->ignored);
    hfsb_buf_free(&c->old_buf);
    hfsb_buf_free(&c->new_buf);
    free(c->edits);
}

int run_edit(args *a) {
    edit_call c;
    int       code;

    const option options[] = {
        {"--replace-all", OPTION_PARAM, NULL, "change every match"},
        {"--all", OPTION_ALIAS, NULL, "--replace-all"},
        {"--old TEXT", OPTION_TEXT, &c.old_text, "the text to find"},
        {"--old-str", OPTION_ALIAS, NULL, "--old"},
        {"--old-file FILE", OPTION_TEXT, &c.old_file, "read it from FILE"},
        {"--new TEXT", OPTION_TEXT, &c.new_text,
         "the text to replace it with"},
        {"--new-str", OPTION_ALIAS, NULL, "--new"},
        {"--new-file FILE", OPTION_TEXT, &c.new_file, "read it from FILE"},
        {"--dry-run", OPTION_FLAG, &c.dry_run,
         "show the change without writing the file"},
        OPTION_ON(&c.on),
        OPTION_JSON(&c.json, ", count, note, lines, diff"),
        OPTIONS_END};
    memset(&c, 0, sizeof c);
    c.a = a;
    if (!take_all(a, options, &c.file)) return a->status;
    if (!c.file) return usage(a, "FILE is missing");
    if ((c.old_text || c.old_file) != (c.new_text || c.new_file))
        return usage(a, "give both the old and the new text");
    if ((c.old_text && c.old_file) || (c.new_text && c.new_file))
        return usage(a, "give a text or a file with it, not both");
    c.on = named_sandbox(c.on);
    code = read_options(&c);
    if (code == DONE) code = apply_edits(&c);
    free_call(&c);
    return code;
}
