/* session.c - a session of the sandbox runtime, for tool, tools and mcp.

   Its tools work on a Space that the session creates at first use and deletes
   when it is closed. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

hfsb_status find_runtime(bool asked, hfsb_runtime *out, hfsb_err *err) {
    config      c = HFSB_INIT;
    hfsb_status st = asked ? HFSB_OK : read_config(&c, err);
    *out = asked ? HFSB_RUNTIME_SANDBOX : c.runtime;
    free_config(&c);
    return st;
}

hfsb_status open_for_definitions(sandbox_session *s, hfsb_err *err) {
    hfsb_session_opts opts;
    hfsb_hub_opts     hub = HFSB_INIT;
    hfsb_status       st = open_transport(&s->c.transport, err);
    memset(&opts, 0, sizeof opts);
    hub.transport = &s->c.transport;
    hub.token = HFSB_LIT("none");
    hub.offline = true;
    if (st == HFSB_OK) st = hfsb_hub_open(&hub, &s->c.hub, err);
    opts.runtime = HFSB_RUNTIME_SANDBOX;
    opts.hub = s->c.hub;
    opts.hub_token = hub.token;
    opts.no_preload = true;
    if (st == HFSB_OK) st = hfsb_session_open(&opts, &s->session, err);
    return st;
}

hfsb_status open_session(sandbox_session *s, hfsb_str work_dir,
                         hfsb_err *err) {
    hfsb_session_opts opts;
    hfsb_sandbox_opts sandbox = HFSB_INIT;
    hfsb_sandbox_spec spec = HFSB_INIT;
    hfsb_status       st;
    s->c.quiet = s->quiet;
    st = open_client(&s->c, true, err);
    memset(&opts, 0, sizeof opts);
    sandbox.transport = &s->c.transport;
    sandbox.work_dir = work_dir.len ? work_dir : s->c.set.work_dir;
    spec.owner = s->c.set.owner;
    spec.from = s->c.set.from;
    set_space_files(&spec);
    opts.runtime = HFSB_RUNTIME_SANDBOX;
    opts.hub = s->c.hub;
    opts.hub_token = hfsb_buf_str(&s->c.env.token);
    opts.sandbox = &sandbox;
    opts.spec = &spec;
    opts.no_preload = s->no_preload;
    if (!s->quiet) opts.log = print_log;
    if (st == HFSB_OK && !s->quiet)
        fprintf(stderr, "hfsb: tools: %s\n",
                hfsb_runtime_text(HFSB_RUNTIME_SANDBOX));
    if (st == HFSB_OK) st = hfsb_session_open(&opts, &s->session, err);
    return st;
}

hfsb_status close_session(sandbox_session *s, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    if (s->session) st = hfsb_session_close(s->session, err);
    s->session = NULL;
    close_client(&s->c);
    return st;
}
