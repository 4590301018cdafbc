/* restart.c - hfsb pause, hfsb restart: stop and start a Space. */
#include "cli.h"

/* Asks for the stage, prints it, and frees everything. */
static int finish(client *c, target *t, hfsb_sandbox *sandbox, hfsb_status st,
                  hfsb_err *err, bool json) {
    hfsb_space_runtime is = HFSB_INIT;
    hfsb_tool_result   result = HFSB_INIT;
    hfsb_json_writer   w;
    if (st == HFSB_OK) st = hfsb_sandbox_status(sandbox, &is, err);
    if (st == HFSB_NOT_FOUND && t->id.len) add_advice(t, st, err);
    if (st == HFSB_OK) {
        must(hfsb_buf_printf(&result.output, "%s  %s", t->id.ptr, is.stage));
        begin_object(&w, &result.fields);
        put_str(&w, "id", hfsb_buf_str(&t->id));
        put_str(&w, "stage", hfsb_cstr(is.stage));
        end_object(&w);
    }
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    free_target(t);
    close_client(c);
    return show_outcome(&result, st, err, json);
}

int run_pause(args *a) {
    const char       *name = NULL;
    bool              json = false;
    client            c = HFSB_INIT;
    target            t = HFSB_INIT;
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_err          err = HFSB_INIT;
    hfsb_status       st;

    const option options[] = {OPTION_JSON(&json, ", id, stage"), OPTIONS_END};
    if (!take_all(a, options, &name)) return a->status;
    name = chosen_sandbox(name);
    if (!name) return no_sandbox(a);
    st = open_space(&c, name, &t, &opts, &sandbox, &err);
    if (st == HFSB_OK) st = hfsb_sandbox_pause(sandbox, &err);
    return finish(&c, &t, sandbox, st, &err, json);
}

int run_restart(args *a) {
    const char       *name = NULL;
    bool              json = false, factory = false, no_wait = false;
    double            wait = 600, poll = 5;
    client            c = HFSB_INIT;
    target            t = HFSB_INIT;
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_err          err = HFSB_INIT;
    hfsb_status       st;

    const option options[] = {
        {"--factory", OPTION_FLAG, &factory, "rebuild it first"},
        {"--no-wait", OPTION_FLAG, &no_wait, "return immediately"},
        {"--wait S", OPTION_SECONDS, &wait,
         "how long to wait for its server (600)"},
        {"--poll S", OPTION_SECONDS, &poll,
         "ask for its state every S seconds (5)"},
        OPTION_JSON(&json, ", id, stage"),
        OPTIONS_END};
    if (!take_all(a, options, &name)) return a->status;
    name = chosen_sandbox(name);
    if (!name) return no_sandbox(a);
    opts.log = print_log;
    opts.times.api_wait_ms = (long long)(wait * 1000);
    opts.times.poll_ms = (long long)(poll * 1000);
    if (poll < 3) opts.times.api_poll_ms = opts.times.poll_ms;
    st = open_space(&c, name, &t, &opts, &sandbox, &err);
    if (st == HFSB_OK && no_wait) /* hfsb_sandbox_restart() waits */
        st = hfsb_hub_restart(c.hub, hfsb_buf_str(&t.id), factory, c.cancel,
                              NULL, &err);
    else if (st == HFSB_OK) st = hfsb_sandbox_restart(sandbox, factory, &err);
    if (st == HFSB_CANCELLED)
        st = fail(&err, st, "No longer waiting; %s continues to start",
                  t.id.ptr);
    return finish(&c, &t, sandbox, st, &err, json);
}
