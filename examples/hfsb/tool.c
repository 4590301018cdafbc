/* tool.c - hfsb tool, hfsb tools, and the commands that only call a tool.

   `hfsb read FILE`, grep, glob and list are rows of the table of commands:
   their words and options become the arguments of the tool, and its output is
   printed as it is. `hfsb tool NAME` calls any tool and prints its result as
   JSON; it is also the one that can create a Space for the call. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

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

/* Without this a long file would look as if it ended after 2000 lines. */
static void print_next_offset(const hfsb_tool_result *result) {
    long long next =
        hfsb_json_int(hfsb_json_get(result->fields.root, "next_offset"), 0);
    if (next > 0)
        fprintf(stderr, "hfsb: there is more: --offset %lld\n", next);
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

int run_tool_command(args *a) {
    const char      *words[MAX_FILLED + 1] = {NULL}, *on = NULL;
    texts            roots = HFSB_INIT;
    size_t           count = 0;
    bool             json = false;
    hfsb_tools_opts  where = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_json_doc    arguments = HFSB_INIT;
    int              code = REFUSED, interrupted = 0;

    const option options[] = {
        {"--ignore-case", OPTION_PARAM, NULL, "a and A are the same"},
        {"--all", OPTION_PARAM, NULL, "also what .gitignore names"},
        {"--limit", OPTION_PARAM, NULL, "print at most N"},
        {"--offset", OPTION_PARAM, NULL, "leave out the first N"},
        OPTION_ON(&on),
        OPTION_ROOT(&roots),
        {"--json", OPTION_FLAG, &json,
         "print the result of the tool as one line of JSON"},
        OPTIONS_END};
    while (a->command->filled[count]) count++;
    if (!take_words(a, options, words, count)) return a->status;
    if (missing_word(a, words))
        return usage(a, "%s is missing", missing_word(a, words));
    if (!set_roots(a, &roots, &where)) return a->status;
    on = named_sandbox(on);
    if (on && roots.count)
        return usage(a, "--root is for files of this machine");
    if (write_arguments(a, words, &arguments)) {
        interrupted = call_tool(on, &where, a->command->tool, arguments.root,
                                NULL, NULL, &result);
        code = show_result(&result, HFSB_LIT(""), json);
        if (!json) print_next_offset(&result);
    }
    hfsb_tool_result_free(&result);
    hfsb_json_free(&arguments);
    return interrupted && code != DONE ? 128 + interrupted : code;
}

/* ---- undo, changes, checkpoints ---- */

/* The checkpoints of a folder that `hfsb mcp --root` served. */
int run_history(args *a) {
    const char      *words[MAX_FILLED + 1] = {NULL}, *root = ".", *store = "";
    size_t           count = 0;
    bool             json = false;
    hfsb_tools_opts  where = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_json_doc    arguments = HFSB_INIT;
    int              code = REFUSED, interrupted = 0;

    const option options[] = {
        {"--root DIR", OPTION_TEXT, &root,
         "the root of the checkpoints (the current directory)"},
        {"--checkpoints DIR", OPTION_TEXT, &store,
         "where they are stored, as given to hfsb mcp"},
        {"--checkpoint-ignored", OPTION_FLAG, &where.checkpoints.ignored,
         "also what .gitignore names, and .git"},
        {"--json", OPTION_FLAG, &json,
         "print the result of the tool as one line of JSON"},
        OPTIONS_END};
    while (a->command->filled[count]) count++;
    if (!take_words(a, options, words, count)) return a->status;
    where.root = hfsb_cstr(root);
    where.checkpoints.dir = store;
    if (write_arguments(a, words, &arguments)) {
        interrupted = call_tool(NULL, &where, a->command->tool, arguments.root,
                                NULL, NULL, &result);
        code = show_result(&result, HFSB_LIT(""), json);
    }
    hfsb_tool_result_free(&result);
    hfsb_json_free(&arguments);
    return interrupted && code != DONE ? 128 + interrupted : code;
}

/* ---- tool ---- */

typedef struct tool_call {
    const char     *name, *on;
    hfsb_tools_opts where; /* work_dir, root, confinement */
    confinement     confine;
    bool            sandbox;
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

/* Calls the tool in a Space that exists only for this call. */
static int call_session(const tool_call *t, const hfsb_json_value *arguments,
                        hfsb_tool_result *result) {
    sandbox_session s = HFSB_INIT;
    hfsb_call_opts  opts = t->opts;
    hfsb_err        err = HFSB_INIT;
    hfsb_status     st = open_session(&s, t->where.work_dir, &err);
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

/* The arguments: of the options, of --args, or of standard input. */
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
    hfsb_status      st = read_arguments(a, given, &arguments, &err);
    if (st == HFSB_OK) interrupted = make_call(t, arguments.root, &result);
    else set_outcome(&result, st, &err);
    code = show_result(&result, HFSB_LIT(""), true);
    hfsb_tool_result_free(&result);
    hfsb_json_free(&arguments);
    return interrupted ? 128 + interrupted : code;
}

int run_tool(args *a) {
    tool_call   t;
    const char *given = NULL, *work_dir = NULL;
    texts       roots = HFSB_INIT;
    bool        json = false; /* accepted; the result is always JSON */

    const option options[] = {
        {"--args JSON", OPTION_TEXT, &given,
         "the arguments, instead of options or standard input"},
        {"--work-dir DIR", OPTION_TEXT, &work_dir,
         "where relative paths and commands begin"},
        {"--root DIR", OPTION_TEXTS, &roots,
         "confine the file tools to DIR; may be repeated"},
        OPTIONS_CONFINE(&t.confine, "Default: none"),
        {"--strict", OPTION_FLAG, &t.opts.strict,
         "an unknown key is an error, not a note"},
        OPTION_ON(&t.on),
        {"--sandbox-tools", OPTION_FLAG, &t.sandbox,
         "use a Space that is created for this call and deleted after it; "
         "also with \"tool_runtime\": \"sandbox\" in config.json"},
        {"--json", OPTION_FLAG, &json, "accepted; the result is always JSON"},
        OPTIONS_END};
    memset(&t, 0, sizeof t);
    if (a->next < a->count && a->list[a->next][0] != '-')
        load_params(a, a->list[a->next]);
    if (!take_all(a, options, &t.name)) return a->status;
    if (!t.name) return usage(a, "TOOL is missing");
    if (given && options_given(a))
        return usage(a, "give --args or options of the tool, not both");
    if (t.on && t.sandbox)
        return usage(a, "give --on or --sandbox-tools, not both");
    if (!t.sandbox) t.on = named_sandbox(t.on);
    if (!set_roots(a, &roots, &t.where)) return a->status;
    t.where.work_dir = hfsb_cstr(work_dir);
    if (!set_confinement(a, &t.confine, HFSB_CONFINE_NONE, &t.where))
        return a->status;
    if (t.confine.level && (t.on || t.sandbox))
        return usage(a, "--confine is for commands of this machine");
    if (roots.count && (t.on || t.sandbox))
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
         "the tools of a session on a Space; also with \"tool_runtime\": "
         "\"sandbox\" in config.json"},
        {"--json", OPTION_FLAG, &json, "accepted; it is always JSON"},
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
