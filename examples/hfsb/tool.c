/* tool.c - hfsb tool, hfsb tools: a model's tools by name and JSON. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* ---- a call in a sandbox made for it ---- */

/* What could not be deleted is told, behind what went wrong before: it may
   cost money. */
static void end_session(sandbox_session *s, hfsb_tool_result *result) {
    hfsb_err    err = HFSB_INIT;
    hfsb_status st = close_session(s, &err);
    if (st == HFSB_OK || !result) return;
    result->success = false;
    must(hfsb_buf_printf(&result->error, "%s%s", result->error.len ? "\n" : "",
                         err.msg[0] ? err.msg : hfsb_status_text(st)));
}

static int call_session(const char *work_dir, const char *name,
                        hfsb_str arguments, const hfsb_call_opts *opts,
                        hfsb_tool_result *result) {
    sandbox_session s = HFSB_INIT;
    hfsb_err        err = HFSB_INIT;
    hfsb_status     st = open_session(&s, work_dir, &err);
    if (st == HFSB_OK)
        st = hfsb_session_wait_ready(s.session, s.c.cancel, &err);
    if (st == HFSB_OK) {
        st = hfsb_session_call_text(s.session, hfsb_cstr(name), arguments,
                                    opts, s.c.cancel, result);
        if (st == HFSB_NOMEM) must(st);
    } else {
        set_outcome(result, st, &err);
    }
    end_session(&s, result);
    return caught_signal();
}

/* ---- tool ---- */

typedef struct tool_call {
    const char    *name, *work_dir, *root, *on;
    bool           sandbox;
    hfsb_call_opts opts;
} tool_call;

static int make_call(const tool_call *t, hfsb_str arguments,
                     hfsb_tool_result *result) {
    hfsb_tools_opts where = HFSB_INIT;
    hfsb_runtime    runtime = HFSB_RUNTIME_LOCAL;
    hfsb_err        err = HFSB_INIT;
    hfsb_status     st =
        t->on ? HFSB_OK : find_runtime(t->sandbox, &runtime, &err);
    where.work_dir = hfsb_cstr(t->work_dir);
    where.root = hfsb_cstr(t->root);
    if (st == HFSB_OK && runtime == HFSB_RUNTIME_SANDBOX)
        return call_session(t->work_dir, t->name, arguments, &t->opts, result);
    if (st == HFSB_OK)
        return call_tool(t->on, &where, t->name, arguments, &t->opts, NULL,
                         result);
    set_outcome(result, st, &err);
    return 0;
}

static int run_tool(args *a) {
    tool_call        t;
    const char      *given = NULL;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_buf         text = HFSB_INIT;
    hfsb_err         err;
    hfsb_status      st = HFSB_OK;
    int              code, interrupted = 0;
    bool             json = false; /* it is JSON in any case */
    const option     options[] = {{"--args", OPTION_TEXT, &given},
                                  {"--work-dir", OPTION_TEXT, &t.work_dir},
                                  {"--root", OPTION_TEXT, &t.root},
                                  {"--strict", OPTION_FLAG, &t.opts.strict},
                                  {"--on", OPTION_TEXT, &t.on},
                                  {"--sandbox-tools", OPTION_FLAG, &t.sandbox},
                                  {"--json", OPTION_FLAG, &json},
                                  {NULL, OPTION_FLAG, NULL}};
    memset(&t, 0, sizeof t);
    if (!take_all(a, options, &t.name)) return a->status;
    if (!t.name) return usage(a, "which tool?");
    if (t.on && t.sandbox)
        return usage(a, "--on names a sandbox, --sandbox-tools makes one: "
                        "give one of the two");
    if (!t.sandbox) t.on = named_sandbox(t.on);
    if (t.root && (t.on || t.sandbox))
        return usage(a, "--root is for files of this machine");
    if (!given) st = read_input(NULL, &text, &err);
    if (st == HFSB_OK)
        interrupted = make_call(
            &t, given ? hfsb_cstr(given) : hfsb_buf_str(&text), &result);
    else set_outcome(&result, st, &err);
    code = show_result(&result, HFSB_LIT(""), true);
    hfsb_tool_result_free(&result);
    hfsb_buf_free(&text);
    return interrupted ? 128 + interrupted : code;
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

static int run_tools(args *a) {
    const char          *name = "flat";
    bool                 there = false, json = false; /* it is in any case */
    hfsb_json_write_opts how = HFSB_INIT;
    hfsb_tools_format    format;
    hfsb_json_doc        doc = HFSB_INIT;
    hfsb_buf             list = HFSB_INIT, text = HFSB_INIT;
    hfsb_err             err = HFSB_INIT;
    int                  code;
    const option         options[] = {{"--format", OPTION_TEXT, &name},
                                      {"--pretty", OPTION_FLAG, &how.pretty},
                                      {"--sandbox-tools", OPTION_FLAG, &there},
                                      {"--json", OPTION_FLAG, &json},
                                      {NULL, OPTION_FLAG, NULL}};
    if (!take_all(a, options, NULL)) return a->status;
    if (!hfsb_tools_format_find(hfsb_cstr(name), &format))
        return usage(a, "--format is flat, openai, anthropic or mcp, not %s",
                     name);
    if (define(there, format, &list, &err) != HFSB_OK) {
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

const cli_command command_tool = {
    "tool", "NAME [OPTIONS]", "call a tool: JSON in, JSON out",
    "    Call the tool NAME of `hfsb tools` on this machine. Its arguments,\n"
    "    a JSON object, are read from standard input; its result is printed\n"
    "    as one line of JSON: success, output, error, what the tool adds.\n"
    "    Every call stands alone: a file need not be read before it is\n"
    "    written, and no job on this machine outlives the call.\n"
    "    --args JSON        the arguments, in place of standard input\n"
    "    --work-dir DIR     where relative paths and commands begin\n"
    "    --root DIR         file tools stay beneath it; commands do not\n"
    "    --strict           an unknown key is an error, not a note\n"
    "    --on SANDBOX       there and not here ($HFSB_SANDBOX)\n"
    "    --sandbox-tools    in a Space that is made for this call, and\n"
    "                       deleted behind it; so does \"tool_runtime\":\n"
    "                       \"sandbox\" in config.json\n"
    "    Exit codes: 0 success, 1 no success or wrong arguments (the result\n"
    "    says why), 2 not understood; 128 + N when signal N ended it.\n",
    run_tool};

const cli_command command_tools = {
    "tools", "[OPTIONS]", "the tools as a model is told of them",
    "    Print the definitions of all tools as a JSON array.\n"
    "    --format F         flat (name, description, parameters), openai,\n"
    "                       anthropic or mcp\n"
    "    --pretty           for people to read\n"
    "    --sandbox-tools    those of a session whose tools work on a Space;\n"
    "                       also with \"tool_runtime\": \"sandbox\" in\n"
    "                       config.json\n",
    run_tools};
