/* call.c - one call of a tool, on this machine or on a sandbox.

   On this machine the tools are opened for the call. Ctrl-C, or the caller,
   ends it early: here by killing all commands of these tools, on a sandbox by
   cancelling the request and killing the command by its id. */
#define _XOPEN_SOURCE 700 /* getpid(); before any include */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- on this machine ---- */

/* Waits for the call. To end it early, kills its commands and waits for their
   end. */
static void finish_call(hfsb_tools *tools, hfsb_call *call, const bool *stop) {
    hfsb_tool_result killed;
    while (!hfsb_call_done(call)) {
        hfsb_tools_poll(tools, -1);
        if (!caught_signal() && !(stop && *stop)) continue;
        (void)hfsb_tools_call(tools, HFSB_LIT("kill"), NULL, NULL, &killed);
        hfsb_tool_result_free(&killed);
    }
}

/* A background job would be killed when the tools are closed after this call,
   before anyone could ask for its output. */
static hfsb_status refuse_background(const char            *name,
                                     const hfsb_json_value *arguments,
                                     const hfsb_call_opts  *opts,
                                     hfsb_err              *err) {
    bool flag = opts && opts->names == HFSB_EDIT_NAMES_FLAGS;
    bool background = false;
    if (!hfsb_str_equal(hfsb_cstr(name), HFSB_LIT("bash")) ||
        hfsb_json_arg_bool(arguments, "background", false, &background,
                           NULL) != HFSB_OK ||
        !background)
        return HFSB_OK;
    return fail(err, HFSB_ARG,
                "%sbackground needs a session, and this is a single call: let "
                "the command itself start it, as in \"server >log 2>&1 &\".",
                flag ? "--" : "");
}

static void run_call(hfsb_tools *tools, const char *name,
                     const hfsb_json_value *arguments,
                     const hfsb_call_opts *opts, const bool *stop,
                     hfsb_tool_result *result) {
    hfsb_call *call;
    must(hfsb_call_open(tools, hfsb_cstr(name), arguments, opts, &call));
    finish_call(tools, call, stop);
    if (hfsb_call_take(call, result) == HFSB_NOMEM) must(HFSB_NOMEM);
    hfsb_call_close(call); /* other failures are in the result */
}

void print_journal_failure(void *user, const char *message) {
    (void)user;
    fprintf(stderr, "hfsb: %s\n", message);
}

/* Opens the journal that $HFSB_JOURNAL names; *out is NULL without it. */
static hfsb_status open_journal(hfsb_journal **out, hfsb_err *err) {
    hfsb_journal_opts opts = HFSB_INIT;
    opts.path = getenv("HFSB_JOURNAL");
    *out = NULL;
    if (!opts.path || !*opts.path) return HFSB_OK;
    opts.max_events = 1;
    opts.on_failure = print_journal_failure;
    return hfsb_journal_open(&opts, out, err);
}

static void call_local(const hfsb_tools_opts *where, const char *name,
                       const hfsb_json_value *arguments,
                       const hfsb_call_opts *opts, const bool *stop,
                       hfsb_tool_result *result) {
    hfsb_tools_opts with = *where;
    hfsb_tools     *tools = NULL;
    hfsb_err        err;
    hfsb_status     st = refuse_background(name, arguments, opts, &err);
    if (st == HFSB_OK) st = open_journal(&with.journal, &err);
    with.who = "command line";
    if (st == HFSB_OK) st = hfsb_tools_open(&with, &tools, &err);
    if (st == HFSB_OK) {
        /* read leaves nothing to clean up: signals may end the program */
        if (strcmp(name, "read") != 0) catch_signals(tools, NULL);
        run_call(tools, name, arguments, opts, stop, result);
        release_signals();
    } else {
        set_outcome(result, st, &err);
    }
    hfsb_tools_close(tools);
    hfsb_journal_close(with.journal);
}

/* ---- on a sandbox ---- */

typedef struct remote_call {
    client                c;
    hfsb_sandbox         *sandbox;
    const hfsb_call_opts *opts;
    const bool           *stop;
    bool                  v1; /* the server speaks HF's /v1 */
} remote_call;

/* Passes the text on, and cancels the call when *stop is set. */
static void pass_text(void *user, hfsb_proc_stream stream, hfsb_str text) {
    remote_call *r = (remote_call *)user;
    r->opts->on_text(r->opts->user, stream, text);
    if (r->stop && *r->stop) hfsb_cancel_set(r->c.cancel);
}

static void pass_line(void *user, hfsb_proc_stream stream, hfsb_str text) {
    remote_call *r = (remote_call *)user;
    r->opts->on_line(r->opts->user, stream, text);
}

/* True when the server knows no such job: it ended with the server that ran
   it. A signal to our process group also ends a server at the other end of a
   pipe. */
static bool is_gone(remote_call *r, hfsb_str id) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_buf      path = HFSB_INIT;
    hfsb_status   st;
    must(hfsb_buf_printf(&path, "jobs/%.*s", (int)id.len, id.ptr));
    st = hfsb_sandbox_ask(r->sandbox, hfsb_buf_str(&path), r->c.cancel, &doc,
                          NULL);
    hfsb_json_free(&doc);
    hfsb_buf_free(&path);
    return st == HFSB_NOT_FOUND;
}

/* Kills the command, which continues after its request is cancelled. Its id is
   the one in its arguments, or else ours. A server that is not hfsb knows no
   ids, so all its commands are killed. */
static void kill_remote(remote_call *r, const hfsb_json_value *arguments,
                        hfsb_str id, hfsb_tool_result *result) {
    const hfsb_json_value *given = hfsb_json_get(arguments, "id");
    hfsb_tool_result       killed = HFSB_INIT;
    hfsb_json_doc          doc = HFSB_INIT;
    hfsb_json_writer       w;
    bool                   ended;
    begin_object(&w, &doc);
    if (hfsb_sandbox_ours(r->sandbox) || r->v1) {
        hfsb_json_put_key(&w, HFSB_LIT("id"));
        if (given) hfsb_json_put_value(&w, given);
        else hfsb_json_put_str(&w, id);
    }
    end_object(&w);
    hfsb_cancel_reset(r->c.cancel); /* a second Ctrl-C ends us at once */
    (void)hfsb_sandbox_call(r->sandbox, HFSB_LIT("kill"), doc.root, NULL, &killed);
    ended = killed.success || (!given && hfsb_sandbox_ours(r->sandbox) &&
                               is_gone(r, id));
    hfsb_buf_truncate(&result->error, 0);
    must(ended
             ? hfsb_buf_printf(&result->error, "The command was killed")
             : hfsb_buf_printf(&result->error,
                               "The command may still run on the sandbox: %s",
                               killed.error.ptr));
    if (!ended) print_log(NULL, hfsb_buf_str(&result->error));
    hfsb_tool_result_free(&killed);
    hfsb_json_free(&doc);
}

enum { READ_LINES = 2000 };

/* From an offset on, a client reads all lines unless it gives a limit; here
   `hfsb read` shows the same with and without --on. */
static const hfsb_json_value *add_limit(const char            *name,
                                        const hfsb_json_value *arguments,
                                        hfsb_json_doc         *doc) {
    hfsb_json_iter   it = hfsb_json_begin(arguments);
    hfsb_json_writer w;
    if (strcmp(name, "read") != 0 || hfsb_json_get(arguments, "limit"))
        return arguments;
    begin_object(&w, doc);
    while (hfsb_json_next(&it)) {
        hfsb_json_put_key(&w, it.key);
        hfsb_json_put_value(&w, it.value);
    }
    put_int(&w, "limit", READ_LINES);
    end_object(&w);
    return doc->root;
}

/* Calls the tool on the sandbox. A command gets an id to kill it by. */
static void call_remote(const char *on, const hfsb_tools_opts *where,
                        const char *name, const hfsb_json_value *arguments,
                        const hfsb_call_opts *opts, const bool *stop,
                        hfsb_tool_result *result) {
    hfsb_sandbox_opts how = HFSB_INIT;
    hfsb_call_opts    own = HFSB_INIT;
    remote_call       r = HFSB_INIT;
    hfsb_json_doc     with = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    hfsb_status       st;
    bool              is_bash = strcmp(name, "bash") == 0;
    char              id[64];
    snprintf(id, sizeof id, "hfsb-%lld-%lld-%ld", (long long)time(NULL),
             hfsb_clock_ms(), (long)getpid());
    r.opts = opts;
    r.stop = stop;
    if (opts) own = *opts;
    if (own.on_text) {
        own.on_text = pass_text;
        if (own.on_line) own.on_line = pass_line;
        own.user = &r;
    }
    if (is_bash && !hfsb_json_get(arguments, "id")) own.id = hfsb_cstr(id);
    how.work_dir = where->work_dir;
    how.timeout = where->timeout;
    st = open_named(&r.c, on, &how, &r.sandbox, &err);
    r.v1 = how.protocol != NULL;
    if (st != HFSB_OK) set_outcome(result, st, &err);
    else
        st = hfsb_sandbox_call(r.sandbox, hfsb_cstr(name),
                               add_limit(name, arguments, &with), &own,
                               result);
    if (st == HFSB_NOMEM) must(st);
    if (st == HFSB_CANCELLED && is_bash && r.sandbox)
        kill_remote(&r, arguments, hfsb_cstr(id), result);
    if (r.sandbox) (void)hfsb_sandbox_close(r.sandbox, false, NULL);
    close_client(&r.c);
    hfsb_json_free(&with);
}

/* ---- either ---- */

int call_tool(const char *on, const hfsb_tools_opts *where, const char *name,
              const hfsb_json_value *arguments, const hfsb_call_opts *opts,
              const bool *stop, hfsb_tool_result *result) {
    if (on) call_remote(on, where, name, arguments, opts, stop, result);
    else call_local(where, name, arguments, opts, stop, result);
    return caught_signal();
}
