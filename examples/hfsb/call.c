/* call.c - one call of a tool, which Ctrl-C ends. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

/* Waits for the call; when it is to end early, until all it runs is gone. */
static void finish_call(hfsb_tools *tools, hfsb_call *call, const bool *stop) {
    hfsb_tool_result killed;
    while (!hfsb_call_done(call)) {
        hfsb_tools_poll(tools, -1);
        if (!caught_signal() && !(stop && *stop)) continue;
        (void)hfsb_tools_call(tools, HFSB_LIT("kill"), NULL, NULL, &killed);
        hfsb_tool_result_free(&killed);
    }
}

/* A job lives no longer than the tools, and these no longer than this call:
   nobody could ask for its output, and it would be killed. */
static hfsb_status refuse_background(const char            *name,
                                     const hfsb_json_value *arguments,
                                     hfsb_err              *err) {
    bool background = false;
    if (!hfsb_str_equal(hfsb_cstr(name), HFSB_LIT("bash")) ||
        hfsb_json_arg_bool(arguments, "background", false, &background,
                           NULL) != HFSB_OK ||
        !background)
        return HFSB_OK;
    return fail(err, HFSB_ARG,
                "background needs a session, and this is a single call: let "
                "the command itself start it, as in \"server >log 2>&1 &\".");
}

static void run_call(hfsb_tools *tools, const char *name,
                     const hfsb_json_value *arguments,
                     const hfsb_call_opts *opts, const bool *stop,
                     hfsb_tool_result *result) {
    hfsb_call *call;
    must(hfsb_call_open(tools, hfsb_cstr(name), arguments, opts, &call));
    finish_call(tools, call, stop);
    if (hfsb_call_take(call, result) == HFSB_NOMEM) must(HFSB_NOMEM);
    hfsb_call_close(call); /* what else went wrong is in the result */
}

int call_tool(const hfsb_tools_opts *where, const char *name,
              hfsb_str arguments, const hfsb_call_opts *opts, const bool *stop,
              hfsb_tool_result *result) {
    hfsb_json_parse_opts how = HFSB_INIT;
    hfsb_json_doc        doc = HFSB_INIT;
    hfsb_tools          *tools = NULL;
    hfsb_err             err;
    hfsb_status          st;
    how.unique_keys = true;
    st = hfsb_json_parse(arguments, &how, &doc, &err);
    if (st == HFSB_OK) st = refuse_background(name, doc.root, &err);
    if (st == HFSB_OK) st = hfsb_tools_open(where, &tools, &err);
    if (st == HFSB_OK) {
        /* reading may take long and leaves nothing behind: it may just die */
        if (strcmp(name, "read") != 0) catch_signals(tools);
        run_call(tools, name, doc.root, opts, stop, result);
        release_signals();
    } else {
        set_outcome(result, st, &err);
    }
    hfsb_tools_close(tools);
    hfsb_json_free(&doc);
    return caught_signal();
}

bool put_text(hfsb_json_writer *w, const char *key, const char *what,
              hfsb_str text) {
    size_t good = hfsb_utf8_validate(text);
    hfsb_json_put_key(w, hfsb_cstr(key));
    hfsb_json_put_str(w, text);
    if (good == text.len) return true;
    fprintf(stderr, "hfsb: %s is not UTF-8, from byte %zu on\n", what, good);
    return false;
}
