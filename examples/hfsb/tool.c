/* tool.c - hfsb tool, hfsb tools: a model's tools by name and JSON. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static int run_tool(args *a) {
    const char      *name = NULL, *given = NULL;
    const char      *work_dir = NULL, *root = NULL;
    hfsb_tools_opts  where = HFSB_INIT;
    hfsb_call_opts   opts = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_buf         text = HFSB_INIT;
    hfsb_err         err;
    hfsb_status      st = HFSB_OK;
    int              code, interrupted = 0;
    const option     options[] = {{"--args", OPTION_TEXT, &given},
                                  {"--work-dir", OPTION_TEXT, &work_dir},
                                  {"--root", OPTION_TEXT, &root},
                                  {"--strict", OPTION_FLAG, &opts.strict},
                                  {NULL, OPTION_FLAG, NULL}};
    if (!take_all(a, options, &name)) return a->status;
    if (!name) return usage(a, "which tool?");
    where.work_dir = hfsb_cstr(work_dir);
    where.root = hfsb_cstr(root);
    if (!given) st = read_input(NULL, &text, &err);
    if (st == HFSB_OK)
        interrupted = call_tool(&where, name,
                                given ? hfsb_cstr(given) : hfsb_buf_str(&text),
                                &opts, NULL, &result);
    else set_outcome(&result, st, &err);
    code = show_result(&result, HFSB_LIT(""), true);
    hfsb_tool_result_free(&result);
    hfsb_buf_free(&text);
    return interrupted ? 128 + interrupted : code;
}

static int run_tools(args *a) {
    const char          *name = "flat";
    hfsb_json_write_opts how = HFSB_INIT;
    hfsb_tools_format    format;
    hfsb_json_doc        doc = HFSB_INIT;
    hfsb_buf             list = HFSB_INIT, text = HFSB_INIT;
    int                  code;
    const option         options[] = {{"--format", OPTION_TEXT, &name},
                                      {"--pretty", OPTION_FLAG, &how.pretty},
                                      {NULL, OPTION_FLAG, NULL}};
    if (!take_all(a, options, NULL)) return a->status;
    if (!hfsb_tools_format_find(hfsb_cstr(name), &format))
        return usage(a, "--format is flat, openai, anthropic or mcp, not %s",
                     name);
    must(hfsb_tools_define(format, &list, NULL));
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
    "    written, and no job outlives the call.\n"
    "    --args JSON       the arguments, in place of standard input\n"
    "    --work-dir DIR    where relative paths and commands begin\n"
    "    --root DIR        file tools stay beneath it; commands do not\n"
    "    --strict          an unknown key is an error, not a note\n"
    "    Exit codes: 0 success, 1 no success or wrong arguments (the result\n"
    "    says why), 2 not understood; 128 + N when signal N ended it.\n",
    run_tool};

const cli_command command_tools = {
    "tools", "[OPTIONS]", "the tools as a model is told of them",
    "    Print the definitions of all tools as a JSON array.\n"
    "    --format F    flat (name, description, parameters), openai,\n"
    "                  anthropic or mcp\n"
    "    --pretty      for people to read\n",
    run_tools};
