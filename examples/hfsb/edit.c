/* edit.c - hfsb edit: replace text in a file.

   On this machine not through the tool edit: this one takes any bytes, where
   JSON takes UTF-8 only, and can leave the file alone (--dry-run). */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct edit_call {
    const char   *file, *on;
    const char   *old_text, *new_text, *old_file, *new_file;
    hfsb_edit     base; /* mode, replace_all, exact, line of the options */
    bool          dry_run;
    hfsb_buf      old_buf, new_buf, input; /* that the edits show */
    hfsb_buf      ignored;                 /* notes on unknown keys */
    hfsb_json_doc doc;
    hfsb_edit    *edits;
    size_t        count;
} edit_call;

static const char *const edit_keys[] = {"old_str",     "new_str", "mode",
                                        "replace_all", "line",    "exact"};

static bool is_edit_key(hfsb_str key) {
    size_t i;
    for (i = 0; i < sizeof edit_keys / sizeof *edit_keys; i++)
        if (hfsb_str_equal(key, hfsb_cstr(edit_keys[i]))) return true;
    return false;
}

/* Says which keys were not looked at. Beside `edits` no other counts. */
static void note_unknown(edit_call *c, const hfsb_json_value *object,
                         bool top) {
    bool           many = top && hfsb_json_get(object, "edits");
    hfsb_json_iter it = hfsb_json_begin(object);
    while (hfsb_json_next(&it)) {
        if ((!many && is_edit_key(it.key)) ||
            (top && hfsb_str_equal(it.key, HFSB_LIT("path"))) ||
            (top && hfsb_str_equal(it.key, HFSB_LIT("edits"))))
            continue;
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

/* The edits of a JSON object on standard input. */
static hfsb_status read_object(edit_call *c, hfsb_err *err) {
    hfsb_json_parse_opts   opts = HFSB_INIT;
    const hfsb_json_value *root, *list = NULL;
    hfsb_json_iter         it;
    hfsb_status            st;
    opts.unique_keys = true;
    st = read_input(NULL, &c->input, err);
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

/* The edit of the options. */
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

/* The file as it is on the sandbox. */
static hfsb_status get_there(const edit_call *c, hfsb_buf *out,
                             hfsb_err *err) {
    hfsb_sandbox_opts opts = HFSB_INIT;
    client            via = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_status       st = open_client(&via, false, err);
    if (st == HFSB_OK) st = open_named(&via, c->on, &opts, &sandbox, err);
    if (st == HFSB_OK)
        st = hfsb_sandbox_get(sandbox, hfsb_cstr(c->file), 0, NULL, out, err);
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    close_client(&via);
    return st;
}

static hfsb_status edit_file(const edit_call *c, hfsb_edit_result *edit,
                             hfsb_err *err) {
    hfsb_buf             before = HFSB_INIT, after = HFSB_INIT;
    hfsb_edit_opts       opts = HFSB_INIT;
    hfsb_file_write_opts how = HFSB_INIT;
    hfsb_file_info       was;
    hfsb_str             path = hfsb_cstr(c->file);
    hfsb_status          st;
    if (c->on) st = get_there(c, &before, err);
    else st = hfsb_file_read(NULL, path, 0, &before, &was, err);
    opts.path = path;
    how.if_same = &was;
    if (st == HFSB_OK)
        st = hfsb_edit_apply(hfsb_buf_str(&before), c->edits, c->count, &opts,
                             &after, edit, err);
    if (st == HFSB_OK && !c->dry_run) {
        st =
            hfsb_file_write(NULL, path, hfsb_buf_str(&after), &how, NULL, err);
        if (st != HFSB_OK) hfsb_edit_result_free(edit);
    }
    hfsb_buf_free(&before);
    hfsb_buf_free(&after);
    return st;
}

/* count, note, lines and diff, also of an edit that was not made. */
static void write_added(const hfsb_edit_result *edit,
                        hfsb_tool_result       *result) {
    hfsb_json_writer w;
    size_t           i;
    begin_added(&w, result);
    hfsb_json_put_key(&w, HFSB_LIT("count"));
    hfsb_json_put_uint(&w, edit->count);
    hfsb_json_put_key(&w, HFSB_LIT("note"));
    if (edit->note[0]) hfsb_json_put_str(&w, hfsb_cstr(edit->note));
    else hfsb_json_put_null(&w);
    hfsb_json_put_key(&w, HFSB_LIT("lines"));
    hfsb_json_put_array(&w);
    for (i = 0; i < edit->count; i++) {
        hfsb_json_put_array(&w);
        hfsb_json_put_uint(&w, edit->spans[i].first_line);
        hfsb_json_put_uint(&w, edit->spans[i].last_line);
        hfsb_json_put_end(&w);
    }
    hfsb_json_put_end(&w);
    hfsb_json_put_key(&w, HFSB_LIT("diff"));
    hfsb_json_put_str(&w, hfsb_buf_str(&edit->diff));
    end_added(&w);
}

/* ---- on a sandbox ---- */

static bool put_edit(hfsb_json_writer *w, const hfsb_edit *e) {
    static const char *const modes[] = {"replace", "append_after",
                                        "prepend_before"};
    if (!put_text(w, "old_str", "The old text", e->old_str) ||
        !put_text(w, "new_str", "The new text", e->new_str))
        return false;
    put_str(w, "mode", hfsb_cstr(modes[e->mode]));
    put_bool(w, "replace_all", e->replace_all);
    if (e->exact) put_bool(w, "exact", true);
    if (e->line) put_int(w, "line", (long long)e->line);
    return true;
}

/* One edit is the tool edit's, several are multi_edit's. */
static bool write_arguments(const edit_call *c, hfsb_buf *out) {
    hfsb_json_writer w;
    size_t           i;
    bool             ok;
    hfsb_json_writer_init(&w, out, NULL);
    hfsb_json_put_object(&w);
    ok = put_text(&w, "path", "FILE", hfsb_cstr(c->file));
    if (ok && c->count == 1) ok = put_edit(&w, c->edits);
    if (c->count != 1) {
        hfsb_json_put_key(&w, HFSB_LIT("edits"));
        hfsb_json_put_array(&w);
        for (i = 0; i < c->count && ok; i++) {
            hfsb_json_put_object(&w);
            ok = put_edit(&w, &c->edits[i]);
            hfsb_json_put_end(&w);
        }
        hfsb_json_put_end(&w);
    }
    if (!ok) return false;
    end_added(&w);
    return true;
}

static int show_there(const hfsb_tool_result *result, bool json) {
    const hfsb_json_value *diff = hfsb_json_get(result->fields.root, "diff");
    return show_result(result, hfsb_json_str(diff, HFSB_LIT("")), json);
}

static int edit_there(edit_call *c, bool json) {
    hfsb_tools_opts  where = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_buf         arguments = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_edit_result none = HFSB_INIT;
    bool             given = c->old_text || c->old_file;
    int              code = REFUSED, interrupted = 0;
    hfsb_status      st = given ? read_texts(c, &err) : read_object(c, &err);
    if (st != HFSB_OK) {
        set_outcome(&result, st, &err);
        code = show_result(&result, HFSB_LIT(""), json);
    } else if (write_arguments(c, &arguments)) {
        interrupted =
            call_tool(c->on, &where, c->count == 1 ? "edit" : "multi_edit",
                      hfsb_buf_str(&arguments), NULL, NULL, &result);
        must(hfsb_buf_append(&result.output, hfsb_buf_str(&c->ignored)));
        if (!result.fields.root) write_added(&none, &result);
        code = show_there(&result, json);
    }
    hfsb_tool_result_free(&result);
    hfsb_buf_free(&arguments);
    return interrupted && code != DONE ? 128 + interrupted : code;
}

/* ---- on this machine, or not at all ---- */

static int make_edit(edit_call *c, bool json) {
    hfsb_edit_result edit = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    bool             given = c->old_text || c->old_file;
    int              code;
    hfsb_status      st = given ? read_texts(c, &err) : read_object(c, &err);
    if (st == HFSB_OK) st = edit_file(c, &edit, &err);
    set_outcome(&result, st, &err);
    if (result.success)
        must(hfsb_buf_printf(&result.output, "%s %s (%zu replacement%s)%s%s%s",
                             c->dry_run ? "Would edit" : "Edited", c->file,
                             edit.count, edit.count > 1 ? "s" : "",
                             edit.note[0] ? " " : "", edit.note,
                             c->ignored.len ? c->ignored.ptr : ""));
    write_added(&edit, &result);
    code = show_result(&result, hfsb_buf_str(&edit.diff), json);
    hfsb_tool_result_free(&result);
    hfsb_edit_result_free(&edit);
    return code;
}

static void free_call(edit_call *c) {
    hfsb_json_free(&c->doc);
    hfsb_buf_free(&c->input);
    hfsb_buf_free(&c->ignored);
    hfsb_buf_free(&c->old_buf);
    hfsb_buf_free(&c->new_buf);
    free(c->edits);
}

static int run_edit(args *a) {
    edit_call    c;
    const char  *mode = NULL;
    bool         json = false;
    hfsb_err     err;
    int          code;
    const option options[] = {
        {"--old", OPTION_TEXT, &c.old_text},
        {"--new", OPTION_TEXT, &c.new_text},
        {"--old-file", OPTION_TEXT, &c.old_file},
        {"--new-file", OPTION_TEXT, &c.new_file},
        {"--mode", OPTION_TEXT, &mode},
        {"--replace-all", OPTION_FLAG, &c.base.replace_all},
        {"--line", OPTION_COUNT, &c.base.line},
        {"--exact", OPTION_FLAG, &c.base.exact},
        {"--dry-run", OPTION_FLAG, &c.dry_run},
        {"--on", OPTION_TEXT, &c.on},
        {"--json", OPTION_FLAG, &json},
        {NULL, OPTION_FLAG, NULL}};
    memset(&c, 0, sizeof c);
    if (!take_all(a, options, &c.file)) return a->status;
    if (!c.file) return usage(a, "which FILE?");
    if (mode && hfsb_edit_set_mode(&c.base, hfsb_cstr(mode), &err) != HFSB_OK)
        return usage(a, "%s", err.msg);
    if ((c.old_text || c.old_file) != (c.new_text || c.new_file))
        return usage(a, "give both the old and the new text");
    if ((c.old_text && c.old_file) || (c.new_text && c.new_file))
        return usage(a, "give a text or a file with it, not both");
    c.on = named_sandbox(c.on);
    code = c.on && !c.dry_run ? edit_there(&c, json) : make_edit(&c, json);
    free_call(&c);
    return code;
}

const cli_command command_edit = {
    "edit", "[OPTIONS] FILE", "replace text in a file, show what changed",
    "    Replace text in FILE and show what changed. The text need not be\n"
    "    exact in blanks, indentation and quotes, but must mean one place.\n"
    "    --old TEXT, --old-file F    the text to find\n"
    "    --new TEXT, --new-file F    the text to put in its place\n"
    "    without these: a JSON object on standard input with old_str,\n"
    "    new_str and, if wanted, mode, replace_all, line, exact; or edits,\n"
    "    an array of such objects, which are made all or not at all\n"
    "    --mode M         replace, append_after or prepend_before\n"
    "    --replace-all    every place\n"
    "    --line N         of several exact places, the one at line N\n"
    "    --exact          to the letter, line endings aside\n"
    "    --dry-run        show the change, do not write\n"
    "    --on SANDBOX     a file there ($HFSB_SANDBOX)\n"
    "    --json           print success, output, error, count, note, lines,\n"
    "                     diff\n",
    run_edit};
