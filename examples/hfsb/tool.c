/* tool.c - hfsb tool, hfsb tools, and the commands that only call a tool.

   `hfsb read FILE`, grep, glob and list are rows of the table of commands:
   their words and options become the arguments of the tool, and its output is
   printed as it is. `hfsb tool NAME` calls any tool and prints its result as
   JSON; it is also the one that can create a Space for the call. */
#define _XOPEN_SOURCE 700 /* isatty; before any include */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- read, grep, glob, list ---- */

/* The words are those of command->filled, in order. */
static bool write_arguments(const args *a, const char *const *words,
                            hfsb_json_doc *out) {
    hfsb_json_writer w;
    bool             ok = true;
    size_t           i;
    begin_object(&w, out);
    for (i = 0; i < MAX_FILLED && words[i] && ok; i++) {
        const char *key = a->command->filled[i];
        ok = put_text(&w, key, key, hfsb_cstr(words[i]));
    }
    ok = ok && put_options(a, &w);
    end_object(&w);
    return ok;
}

/* Without this a long file would look as if it ended after 2000 lines, and one
   that is shorter than --offset as if it were empty. */
static void print_rest(const hfsb_tool_result *result) {
    const hfsb_json_value *fields = result->fields.root;
    long long next = hfsb_json_int(hfsb_json_get(fields, "next_offset"), 0);
    long long lines = hfsb_json_int(hfsb_json_get(fields, "total_lines"), 0);
    if (next > 0)
        fprintf(stderr, "hfsb: there is more: --offset %lld\n", next);
    else if (lines > 0 && !hfsb_json_get(fields, "first_line"))
        fprintf(stderr, "hfsb: past the end: the file has %lld line%s\n",
                lines, lines == 1 ? "" : "s");
}

/* As of the program grep: without matches the exit code is 1. */
static bool has_no_match(const args *a, const hfsb_tool_result *result) {
    return (strcmp(a->command->tool, "grep") == 0 ||
            strcmp(a->command->tool, "glob") == 0) &&
           result->success &&
           hfsb_json_int(hfsb_json_get(result->fields.root, "count"), 1) == 0;
}

/* Where the notes begin: before the last `note_lines` lines of the output. An
   older server does not count them; without a match there is nothing else. */
static size_t notes_start(const args *a, const hfsb_tool_result *result) {
    size_t    at = result->output.len;
    long long lines = hfsb_json_int(
        hfsb_json_get(result->fields.root, "note_lines"), 0);
    if (has_no_match(a, result)) return 0;
    for (; lines > 0 && at > 0; lines--)
        while (at > 0 && result->output.ptr[--at] != '\n') continue;
    return at;
}

/* Appends a name on one line, as `list` does: a newline in it would begin
   another row. */
static void put_shown_name(hfsb_buf *out, hfsb_str name) {
    size_t i;
    for (i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (c == '\n') must(hfsb_buf_append(out, HFSB_LIT("\\n")));
        else if (c == '\t') must(hfsb_buf_append(out, HFSB_LIT("\\t")));
        else if (c < ' ' || c == 0x7f)
            must(hfsb_buf_printf(out, "\\x%02X", (unsigned)c));
        else must(hfsb_buf_append_byte(out, (char)c));
    }
}

/* Appends a name as `list` shows it. */
static void put_name(hfsb_buf *out, const hfsb_json_value *entry) {
    hfsb_str to = get_str(entry, "target");
    put_shown_name(out, get_str(entry, "name"));
    if (hfsb_str_equal(get_str(entry, "type"), HFSB_LIT("dir")))
        must(hfsb_buf_append_byte(out, '/'));
    if (to.len) must(hfsb_buf_append(out, HFSB_LIT(" -> ")));
    put_shown_name(out, to);
    if (hfsb_json_bool(hfsb_json_get(entry, "ignored"), false))
        must(hfsb_buf_append(out, HFSB_LIT(" (ignored)")));
}

static void add_entry(table *rows, const hfsb_json_value *entry) {
    long long  size = hfsb_json_int(hfsb_json_get(entry, "size"), -1);
    time_t     time = (time_t)hfsb_json_int(hfsb_json_get(entry, "time"), 0);
    struct tm *local = localtime(&time);
    hfsb_buf   name = HFSB_INIT;
    char       bytes[32] = "-", changed[32] = "";
    hfsb_str   cells[4];
    if (size >= 0) snprintf(bytes, sizeof bytes, "%lld", size);
    if (local) strftime(changed, sizeof changed, "%Y-%m-%d %H:%M", local);
    put_name(&name, entry);
    cells[0] = get_str(entry, "type");
    cells[1] = hfsb_cstr(bytes);
    cells[2] = hfsb_cstr(changed);
    cells[3] = hfsb_buf_str(&name);
    table_add(rows, cells);
    hfsb_buf_free(&name);
}

/* On a terminal `list --details` is a table. */
static int show_details(hfsb_tool_result *result) {
    static const table_column columns[] = {{"TYPE", 0, false},
                                           {"SIZE", 0, false},
                                           {"CHANGED", 0, false},
                                           {"NAME", 0, false}};
    hfsb_json_iter it =
        hfsb_json_begin(hfsb_json_get(result->fields.root, "entries"));
    table rows;
    table_begin(&rows, columns, 4);
    while (hfsb_json_next(&it)) add_entry(&rows, it.value);
    hfsb_buf_truncate(&result->output, 0);
    return show_table(result, HFSB_OK, NULL, &rows, false);
}

/* Notes are no results: they must not get into a pipe. */
static int show_output(const args *a, hfsb_tool_result *result, bool json) {
    hfsb_buf notes = HFSB_INIT;
    hfsb_str all = hfsb_buf_str(&result->output);
    size_t   at;
    int      code;
    if (json) return show_result(result, HFSB_LIT(""), true);
    at = notes_start(a, result);
    must(hfsb_buf_append(
        &notes, hfsb_str_slice(all, at + (at < all.len && all.ptr[at] == '\n'),
                               all.len)));
    hfsb_buf_truncate(&result->output, at);
    if (hfsb_json_get(result->fields.root, "entries") &&
        can_rewrite(STDOUT_FILENO))
        code = show_details(result);
    else code = show_result(result, HFSB_LIT(""), false);
    if (notes.len) print_notes(hfsb_buf_str(&notes));
    else if (strcmp(a->command->tool, "read") == 0 || !isatty(STDOUT_FILENO))
        print_rest(result); /* an older server says it in the output, too */
    hfsb_buf_free(&notes);
    return has_no_match(a, result) ? REFUSED : code;
}

static const char *missing_word(args *a, const char *const *words) {
    size_t i;
    for (i = 0; a->command->filled[i]; i++) {
        const char  *key = a->command->filled[i];
        const param *p = find_param(a, hfsb_cstr(key));
        if (!words[i] && p && p->required) return key;
    }
    return NULL;
}

/* `hfsb glob *.py` in a folder with two such files. */
static void hint_at_quotes(const args *a, const char *const *words) {
    if (strcmp(a->command->tool, "glob") == 0 && words[1] &&
        !strpbrk(words[0], "*?[{"))
        fprintf(stderr, "hfsb: quote a pattern, or the shell replaces it: "
                        "hfsb glob '*.py'\n");
}

int run_tool_command(args *a) {
    const char      *words[MAX_FILLED + 1] = {NULL}, *on = NULL;
    texts            roots = HFSB_INIT;
    size_t           count = 0;
    bool             json = false, ignored = false;
    bool             is_grep = strcmp(a->command->tool, "grep") == 0;
    hfsb_tools_opts  where = HFSB_INIT;
    hfsb_call_opts   opts = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_json_doc    arguments = HFSB_INIT;
    int              code = REFUSED, interrupted = 0;

    const option options[] = {
        {"--ignore-case", OPTION_PARAM, NULL, "ignore the case of letters"},
        {"-i", OPTION_ALIAS, NULL, "--ignore-case"},
        {"--all", OPTION_PARAM, NULL, "include what .gitignore names"},
        {"--limit", OPTION_PARAM, NULL, "print at most N (0: 200, list 500)"},
        {"--offset", OPTION_PARAM, NULL, "skip the first N"},
        OPTION_ON(&on),
        OPTION_ROOT(&roots),
        {"--json", OPTION_FLAG, &json,
         "print the result of the tool as one line of JSON"},
        {is_grep ? "-n" : NULL, OPTION_FLAG, &ignored,
         "accepted; lines always have numbers"}, /* NULL ends the list */
        {"-r", OPTION_FLAG, &ignored, "accepted; folders are searched"},
        {"-E", OPTION_FLAG, &ignored, "accepted; patterns are extended"},
        OPTIONS_END};
    while (a->command->filled[count]) count++;
    if (!take_words(a, options, words, count)) return a->status;
    if (missing_word(a, words))
        return usage(a, "%s is missing", missing_word(a, words));
    if (!set_roots(a, &roots, &where)) return a->status;
    on = named_sandbox(on);
    if (on && roots.count)
        return usage(a, "--root is for files of this machine");
    opts.names = HFSB_EDIT_NAMES_FLAGS;
    if (write_arguments(a, words, &arguments)) {
        interrupted = call_tool(on, &where, a->command->tool, arguments.root,
                                &opts, NULL, &result);
        code = show_output(a, &result, json);
        if (!result.success) hint_at_quotes(a, words);
    }
    hfsb_tool_result_free(&result);
    hfsb_json_free(&arguments);
    return interrupted && code != DONE ? 128 + interrupted : code;
}

/* ---- undo, changes, checkpoints ---- */

/* "5 min" */
static void put_age(hfsb_buf *out, long long since) {
    static const struct {
        long long   from, seconds;
        const char *name;
    } units[] = {{172800, 86400, "days"}, {7200, 3600, "h"}, {120, 60, "min"}};
    long long age = (long long)time(NULL) - since;
    size_t    i = 0;
    while (i < 3 && age < units[i].from) i++;
    if (i < 3)
        must(hfsb_buf_printf(out, "%lld %s", age / units[i].seconds,
                             units[i].name));
    else must(hfsb_buf_printf(out, "%lld s", age < 0 ? 0 : age));
}

static void add_checkpoint(table *t, const hfsb_json_value *one) {
    hfsb_buf number = HFSB_INIT, age = HFSB_INIT, files = HFSB_INIT;
    hfsb_str cells[5], name = get_str(one, "name");
    put_age(&age, hfsb_json_int(hfsb_json_get(one, "time"), 0));
    must(hfsb_buf_printf(&number, "%lld",
                         hfsb_json_int(hfsb_json_get(one, "number"), 0)));
    if (hfsb_json_int(hfsb_json_get(one, "parent"), 0))
        must(hfsb_buf_printf(
            &files, "%lld changed, %lld created, %lld deleted  ",
            hfsb_json_int(hfsb_json_get(one, "changed"), 0),
            hfsb_json_int(hfsb_json_get(one, "created"), 0),
            hfsb_json_int(hfsb_json_get(one, "deleted"), 0)));
    if (hfsb_json_bool(hfsb_json_get(one, "here"), false))
        must(hfsb_buf_printf(&files, "<- last seen state"));
    cells[0] = hfsb_buf_str(&number);
    cells[1] = hfsb_buf_str(&age);
    cells[2] = get_str(one, "by");
    cells[3] = name.len ? name : HFSB_LIT("-");
    cells[4] = hfsb_buf_str(&files);
    table_add(t, cells);
    hfsb_buf_free(&number);
    hfsb_buf_free(&age);
    hfsb_buf_free(&files);
}

/* On a terminal checkpoints are a table with heads. */
static int show_history(hfsb_tool_result *result, bool json) {
    static const table_column columns[] = {{"NUMBER", 0, false},
                                           {"AGE", 0, false},
                                           {"MADE BY", 0, false},
                                           {"NAME", 0, false},
                                           {"FILES", 0, false}};
    hfsb_json_iter it =
        hfsb_json_begin(hfsb_json_get(result->fields.root, "checkpoints"));
    table rows;
    table_begin(&rows, columns, 5);
    if (!json && can_rewrite(STDOUT_FILENO))
        while (hfsb_json_next(&it)) add_checkpoint(&rows, it.value);
    if (!rows.rows) return show_with_diff(result, HFSB_LIT(""), json);
    hfsb_buf_truncate(&result->output, 0);
    return show_table(result, HFSB_OK, NULL, &rows, json);
}

static int call_history(const args *a, const char *on,
                        const hfsb_tools_opts *where, const char *const *words,
                        bool json) {
    hfsb_call_opts   opts = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_json_doc    arguments = HFSB_INIT;
    int              code = REFUSED, interrupted = 0;
    opts.names = HFSB_EDIT_NAMES_FLAGS;
    if (write_arguments(a, words, &arguments)) {
        interrupted = call_tool(on, where, a->command->tool, arguments.root,
                                &opts, NULL, &result);
        code = show_history(&result, json);
    }
    hfsb_tool_result_free(&result);
    hfsb_json_free(&arguments);
    return interrupted && code != DONE ? 128 + interrupted : code;
}

/* The checkpoints of a folder that `hfsb mcp --root` served, or of a sandbox
   whose server takes some. */
int run_history(args *a) {
    const char     *words[MAX_FILLED + 1] = {NULL}, *root = NULL;
    const char     *store = NULL, *on = NULL;
    size_t          count = 0;
    bool            json = false, here;
    hfsb_tools_opts where = HFSB_INIT;

    const option options[] = {
        {"--root DIR", OPTION_TEXT, &root,
         "the root of the checkpoints (the current directory)"},
        {"--checkpoints DIR", OPTION_TEXT, &store,
         "where they are stored, as given to hfsb mcp"},
        {"--checkpoint-ignored", OPTION_FLAG, &where.checkpoints.ignored,
         "include .git and what .gitignore names"},
        OPTION_ON(&on),
        {"--json", OPTION_FLAG, &json,
         "print the result of the tool as one line of JSON"},
        OPTIONS_END};
    while (a->command->filled[count]) count++;
    if (!take_words(a, options, words, count)) return a->status;
    here = root || store || where.checkpoints.ignored;
    if (on && here)
        return usage(a, "--root, --checkpoints and --checkpoint-ignored are "
                        "for this machine; on a sandbox its server has them");
    if (!here) on = named_sandbox(on);
    where.root = hfsb_cstr(on ? NULL : root ? root : ".");
    where.checkpoints.no_create = true;
    if (!set_store(a, store, &where)) return a->status;
    return call_history(a, on, &where, words, json);
}

/* ---- tool ---- */

typedef struct tool_call {
    const char     *name, *on;
    hfsb_tools_opts where; /* work_dir, root, confinement */
    confinement     confine;
    bool            sandbox;
    session_home    home; /* with sandbox */
    hfsb_call_opts  opts;
} tool_call;

/* Adds to the error which Spaces could not be deleted: they may cost money. */
static void end_session(sandbox_session *s, hfsb_tool_result *result) {
    hfsb_err    err = HFSB_INIT;
    hfsb_status st = close_session(s, &err);
    if (st == HFSB_OK || !result) return;
    result->success = false;
    must(hfsb_buf_printf(&result->error, "%s%s", result->error.len ? "\n" : "",
                         err.msg[0] ? err.msg : hfsb_status_text(st)));
}

/* Calls the tool in a sandbox that exists only for this call. */
static int call_session(const tool_call *t, const hfsb_json_value *arguments,
                        hfsb_tool_result *result) {
    sandbox_session s = HFSB_INIT;
    hfsb_call_opts  opts = t->opts;
    hfsb_err        err = HFSB_INIT;
    hfsb_status     st;
    s.home = t->home;
    st = open_session(&s, t->where.work_dir, &err);
    opts.cancel = s.c.cancel;
    if (st == HFSB_OK)
        st = hfsb_session_wait_ready(s.session, s.c.cancel, &err);
    if (st == HFSB_OK) {
        st = hfsb_session_call(s.session, hfsb_cstr(t->name), arguments,
                               &opts, result);
        if (st == HFSB_NOMEM) must(st);
    } else {
        set_outcome(result, st, &err);
    }
    end_session(&s, result);
    return caught_signal();
}

static int make_call(const tool_call *t, const hfsb_json_value *arguments,
                     hfsb_tool_result *result) {
    hfsb_runtime runtime = HFSB_RUNTIME_LOCAL;
    hfsb_err     err = HFSB_INIT;
    hfsb_status  st =
        t->on ? HFSB_OK : find_runtime(t->sandbox, &runtime, &err);
    if (st == HFSB_OK && runtime == HFSB_RUNTIME_SANDBOX)
        return call_session(t, arguments, result);
    if (st == HFSB_OK)
        return call_tool(t->on, &t->where, t->name, arguments, &t->opts, NULL,
                         result);
    set_outcome(result, st, &err);
    return 0;
}

/* Adds the tool that the name is nearest to, if there is one. */
static void add_nearest(const char *name, hfsb_err *err) {
    hfsb_buf       text = HFSB_INIT;
    hfsb_json_doc  list = HFSB_INIT;
    hfsb_json_iter it;
    suggestion     s;
    size_t         n = strlen(err->msg);
    must(hfsb_tools_define(HFSB_TOOLS_FLAT, &text, NULL));
    must(hfsb_json_parse(hfsb_buf_str(&text), NULL, &list, NULL));
    suggest_init(&s, name, strlen(name));
    it = hfsb_json_begin(list.root);
    while (hfsb_json_next(&it)) suggest_try(&s, get_str(it.value, "name").ptr);
    if (s.name)
        snprintf(err->msg + n, sizeof err->msg - n, "; did you mean %.*s?",
                 (int)s.name_len, s.name);
    hfsb_json_free(&list);
    hfsb_buf_free(&text);
}

/* Before the input is read, which may be a terminal. A sandbox knows its own
   tools. */
static hfsb_status check_tool(const tool_call *t, hfsb_err *err) {
    hfsb_runtime runtime = HFSB_RUNTIME_LOCAL;
    hfsb_buf     text = HFSB_INIT;
    hfsb_status  st;
    if (t->on || find_runtime(t->sandbox, &runtime, err) != HFSB_OK ||
        runtime != HFSB_RUNTIME_LOCAL)
        return HFSB_OK; /* make_call() reports what is wrong */
    st = hfsb_tools_define_one(hfsb_cstr(t->name), HFSB_TOOLS_FLAT, &text,
                               err);
    hfsb_buf_free(&text);
    if (st == HFSB_NOT_FOUND) add_nearest(t->name, err);
    return st;
}

/* The arguments: of the options, of --args, or of standard input. No input is
   an empty object. */
static hfsb_status read_arguments(const args *a, const char *given,
                                  hfsb_json_doc *out, hfsb_err *err) {
    hfsb_json_parse_opts how = HFSB_INIT;
    hfsb_buf             text = HFSB_INIT;
    hfsb_json_writer     w;
    hfsb_status          st = HFSB_OK;
    bool                 ok;
    if (!given && options_given(a)) {
        begin_object(&w, out);
        ok = put_options(a, &w);
        end_object(&w);
        return ok ? st : fail(err, HFSB_ARG, "An option is not UTF-8");
    }
    how.unique_keys = true;
    if (!given) st = read_input(NULL, &text, err);
    if (st == HFSB_OK && !given && is_blank(hfsb_buf_str(&text))) given = "{}";
    if (st == HFSB_OK)
        st = hfsb_json_parse(given ? hfsb_cstr(given) : hfsb_buf_str(&text),
                             &how, out, err);
    hfsb_buf_free(&text);
    return st;
}

/* Calls the tool and prints its result. */
static int call_and_show(const args *a, const tool_call *t,
                         const char *given) {
    hfsb_tool_result result = HFSB_INIT;
    hfsb_json_doc    arguments = HFSB_INIT;
    hfsb_err         err;
    int              code, interrupted = 0;
    hfsb_status      st = check_tool(t, &err);
    if (st == HFSB_OK) st = read_arguments(a, given, &arguments, &err);
    if (st == HFSB_OK) interrupted = make_call(t, arguments.root, &result);
    else set_outcome(&result, st, &err);
    code = show_result(&result, HFSB_LIT(""), true);
    hfsb_tool_result_free(&result);
    hfsb_json_free(&arguments);
    return interrupted ? 128 + interrupted : code;
}

int run_tool(args *a) {
    tool_call    t;
    const char  *given = NULL, *work_dir = NULL;
    texts        roots = HFSB_INIT;
    bool         json = false; /* accepted; the result is always JSON */
    bool         afar;
    hfsb_runtime runtime = HFSB_RUNTIME_LOCAL;
    hfsb_err     err;

    const option options[] = {
        {"--args JSON", OPTION_TEXT, &given,
         "the arguments, instead of options or standard input"},
        {"--work-dir DIR", OPTION_TEXT, &work_dir,
         "where relative paths and commands start"},
        {"--root DIR", OPTION_TEXTS, &roots,
         "confine the file tools to DIR; may be repeated"},
        OPTIONS_CONFINE(&t.confine, "Default: none"),
        {"--strict", OPTION_FLAG, &t.opts.strict,
         "an unknown key is an error, not a note"},
        OPTION_ON(&t.on),
        {"--sandbox-tools", OPTION_FLAG, &t.sandbox,
         "use a Space that is created for this call and deleted afterwards; "
         "also set by \"tool_runtime\": \"sandbox\" in config.json"},
        OPTIONS_HOME(&t.home),
        {"--json", OPTION_FLAG, &json, "accepted; the result is always JSON"},
        OPTIONS_END};
    memset(&t, 0, sizeof t);
    /* options before TOOL; for completion they are those of the tool, too */
    if (a->next < a->count && a->list[a->next][0] == '-' && !a->on_rows &&
        !take_options(a, options))
        return a->status;
    if (a->next < a->count) load_params(a, a->list[a->next]);
    if (!take_all(a, options, &t.name)) return a->status;
    if (!t.name) return usage(a, "TOOL is missing");
    if (given && options_given(a))
        return usage(a, "give --args or options of the tool, not both");
    if (t.on && t.sandbox)
        return usage(a, "give --on or --sandbox-tools, not both");
    if (!t.sandbox) t.on = named_sandbox(t.on);
    if (!t.on) (void)find_runtime(t.sandbox, &runtime, &err);
    afar = t.on || runtime != HFSB_RUNTIME_LOCAL;
    if (!check_home(a, &t.home, runtime)) return a->status;
    if (!check_confinement(a, &t.confine, afar)) return a->status;
    if (!set_roots(a, &roots, &t.where)) return a->status;
    if (!set_work_dir(a, work_dir, &t.where)) return a->status;
    if (!set_confinement(a, &t.confine, HFSB_CONFINE_NONE, &t.where))
        return a->status;
    if (roots.count && afar)
        return usage(a, "--root is for files of this machine");
    return call_and_show(a, &t, given);
}

/* ---- tools ---- */

static hfsb_status define(bool sandbox, hfsb_tools_format format,
                          hfsb_buf *out, hfsb_err *err) {
    sandbox_session s = HFSB_INIT;
    hfsb_runtime    runtime;
    hfsb_status     st = find_runtime(sandbox, &runtime, err);
    if (st != HFSB_OK) return st;
    if (runtime == HFSB_RUNTIME_LOCAL)
        return hfsb_tools_define(format, out, err);
    st = open_for_definitions(&s, err);
    if (st == HFSB_OK) st = hfsb_session_define(s.session, format, out, err);
    end_session(&s, NULL);
    return st;
}

int run_tools(args *a) {
    const char          *name = "flat";
    bool                 sandbox = false, json = false;
    hfsb_json_write_opts how = HFSB_INIT;
    hfsb_tools_format    format;
    hfsb_json_doc        doc = HFSB_INIT;
    hfsb_buf             list = HFSB_INIT, text = HFSB_INIT;
    hfsb_err             err = HFSB_INIT;
    int                  code;

    const option options[] = {
        {"--format F", OPTION_TEXT, &name,
         "flat (name, description, parameters; the default), openai, "
         "openai-strict, anthropic or mcp"},
        {"--pretty", OPTION_FLAG, &how.pretty, "indent it for reading"},
        {"--sandbox-tools", OPTION_FLAG, &sandbox,
         "the tools of a session on a Space; also set by \"tool_runtime\": "
         "\"sandbox\" in config.json"},
        {"--json", OPTION_FLAG, &json, "accepted; the output is always JSON"},
        OPTIONS_END};
    if (!take_all(a, options, NULL)) return a->status;
    if (!hfsb_tools_format_find(hfsb_cstr(name), &format))
        return usage(a,
                     "--format is flat, openai, openai-strict, anthropic or "
                     "mcp, not %s",
                     name);
    if (define(sandbox, format, &list, &err) != HFSB_OK) {
        fprintf(stderr, "hfsb: %s\n", err.msg);
        hfsb_buf_free(&list);
        return REFUSED;
    }
    must(hfsb_json_parse(hfsb_buf_str(&list), NULL, &doc, NULL));
    must(hfsb_json_write(doc.root, &how, &text, NULL));
    must(hfsb_buf_append_byte(&text, '\n'));
    code = put_out(hfsb_buf_str(&text));
    hfsb_json_free(&doc);
    hfsb_buf_free(&list);
    hfsb_buf_free(&text);
    return code;
}
