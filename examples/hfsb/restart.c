/* restart.c - hfsb pause, hfsb restart. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static hfsb_status find_space(const char *name, target *t, hfsb_err *err) {
    hfsb_status st = find_target(name, t, err);
    if (st == HFSB_OK && !t->id.len)
        st = fail(err, HFSB_ARG,
                  "%s is a URL: only a Space can be paused and restarted",
                  name);
    return st;
}

static void describe(const target *t, const hfsb_space_runtime *is,
                     hfsb_tool_result *result) {
    hfsb_json_writer w;
    must(hfsb_buf_printf(&result->output, "%s  %s", t->id.ptr, is->stage));
    begin_added(&w, result);
    put_str(&w, "id", hfsb_buf_str(&t->id));
    put_str(&w, "stage", hfsb_cstr(is->stage));
    end_added(&w);
}

static int run_pause(args *a) {
    const char        *name = NULL;
    bool               json = false;
    client             c = HFSB_INIT;
    target             t = HFSB_INIT;
    hfsb_space_runtime is = HFSB_INIT;
    hfsb_tool_result   result = HFSB_INIT;
    hfsb_err           err = HFSB_INIT;
    hfsb_status        st;
    const option       options[] = {{"--json", OPTION_FLAG, &json},
                                    {NULL, OPTION_FLAG, NULL}};
    if (!take_all(a, options, &name)) return a->status;
    if (!name) return usage(a, "which SANDBOX?");
    st = find_space(name, &t, &err);
    if (st == HFSB_OK) st = open_client(&c, true, &err);
    if (st == HFSB_OK)
        st = hfsb_hub_pause(c.hub, hfsb_buf_str(&t.id), c.cancel, &is, &err);
    if (st == HFSB_NOT_FOUND && t.id.len) add_advice(&t, st, &err);
    if (st == HFSB_OK) describe(&t, &is, &result);
    free_target(&t);
    close_client(&c);
    return show_outcome(&result, st, &err, json);
}

/* ---- restart ---- */

/* What it does not come out of by itself. Stages that are not known here are
   on the way to somewhere. */
static bool has_failed(const hfsb_space_runtime *is) {
    static const char *const failed[] = {"BUILD_ERROR", "RUNTIME_ERROR",
                                         "CONFIG_ERROR", "NO_APP_FILE",
                                         "DELETING"};
    size_t                   i;
    for (i = 0; i < sizeof failed / sizeof *failed; i++)
        if (strcmp(is->stage, failed[i]) == 0) return true;
    return false;
}

/* Until the Hub says that it runs, asked no sooner than after a while: at
   first it may tell, and the server, how it was before. */
static hfsb_status wait_running(client *c, const target *t, double wait,
                                double poll, hfsb_space_runtime *is,
                                hfsb_err *err) {
    long long   until = hfsb_clock_ms() + (long long)(wait * 1000);
    hfsb_status st = HFSB_OK;
    bool        asked = false;
    while (st == HFSB_OK && !(asked && strcmp(is->stage, "RUNNING") == 0)) {
        if (asked && has_failed(is))
            return fail(err, HFSB_REMOTE, "%s failed to start: %s %s",
                        t->id.ptr, is->stage, is->error);
        if (hfsb_clock_ms() >= until)
            return fail(err, HFSB_TIMEOUT, "%s did not start within %gs: %s",
                        t->id.ptr, wait, is->stage);
        if (!hfsb_cancel_wait(c->cancel, (long long)(poll * 1000)))
            return fail(err, HFSB_CANCELLED,
                        "No longer waiting; %s goes on starting", t->id.ptr);
        st =
            hfsb_hub_runtime(c->hub, hfsb_buf_str(&t->id), c->cancel, is, err);
        asked = true;
    }
    return st;
}

static hfsb_status wait_ready(client *c, const target *t, double wait,
                              double poll, hfsb_space_runtime *is,
                              hfsb_err *err) {
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_status       st = wait_running(c, t, wait, poll, is, err);
    opts.log = print_log;
    opts.times.api_wait_ms = 180000;
    if (poll < 3) opts.times.api_poll_ms = (long long)(poll * 1000);
    if (st == HFSB_OK) st = open_target(c, t, &opts, &sandbox, err);
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    return st;
}

static int run_restart(args *a) {
    const char        *name = NULL;
    bool               json = false, factory = false, no_wait = false;
    double             wait = 600, poll = 5;
    client             c = HFSB_INIT;
    target             t = HFSB_INIT;
    hfsb_space_runtime is = HFSB_INIT;
    hfsb_tool_result   result = HFSB_INIT;
    hfsb_err           err = HFSB_INIT;
    hfsb_status        st;
    const option       options[] = {{"--factory", OPTION_FLAG, &factory},
                                    {"--no-wait", OPTION_FLAG, &no_wait},
                                    {"--wait", OPTION_SECONDS, &wait},
                                    {"--poll", OPTION_SECONDS, &poll},
                                    {"--json", OPTION_FLAG, &json},
                                    {NULL, OPTION_FLAG, NULL}};
    if (!take_all(a, options, &name)) return a->status;
    if (!name) return usage(a, "which SANDBOX?");
    st = find_space(name, &t, &err);
    if (st == HFSB_OK) st = open_client(&c, true, &err);
    if (st == HFSB_OK)
        st = hfsb_hub_restart(c.hub, hfsb_buf_str(&t.id), factory, c.cancel,
                              &is, &err);
    if (st == HFSB_NOT_FOUND && t.id.len) add_advice(&t, st, &err);
    if (st == HFSB_OK && !no_wait)
        st = wait_ready(&c, &t, wait, poll, &is, &err);
    if (st == HFSB_OK) describe(&t, &is, &result);
    free_target(&t);
    close_client(&c);
    return show_outcome(&result, st, &err, json);
}

const cli_command command_pause = {
    "pause", "[OPTIONS] SANDBOX", "stop a sandbox, to go on later",
    "    Stop the Space: it costs nothing until `hfsb restart`, and forgets\n"
    "    what is on its disk.\n"
    "    --json    print success, output, error, id and stage\n",
    run_pause};

const cli_command command_restart = {
    "restart", "[OPTIONS] SANDBOX", "start a sandbox anew",
    "    Start the Space anew, also one that is paused, and wait until its\n"
    "    server answers.\n"
    "    --factory    build it anew as well\n"
    "    --no-wait    return at once\n"
    "    --wait S     for it to start (600)\n"
    "    --poll S     ask every S seconds (5)\n"
    "    --json       print success, output, error, id and stage\n",
    run_restart};
