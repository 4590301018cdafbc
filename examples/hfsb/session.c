/* session.c - a session of the sandbox runtime, for tool, tools and mcp; and
   of the remote runtime, for mcp.

   The tools of the sandbox runtime work on a Space, or with an image in a job,
   which the session creates at first use and deletes when it is closed; those
   of the remote runtime work in any named sandbox. */
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

bool check_home(args *a, const session_home *home, hfsb_runtime runtime) {
    const char *given = home->hardware       ? "--hardware"
                        : home->idle_timeout ? "--idle-timeout"
                        : home->server       ? "--server"
                                             : NULL;
    if (given && !home->image)
        return usage(a, "%s needs --image", given) == DONE;
    if (home->image && runtime != HFSB_RUNTIME_SANDBOX)
        return usage(a, "--image needs --sandbox-tools") == DONE;
    return true;
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
    if (st == HFSB_OK && s->home.image)
        st = read_server(s->home.server, &s->bytes, err);
    memset(&opts, 0, sizeof opts);
    sandbox.transport = &s->c.transport;
    sandbox.work_dir = work_dir;
    spec.owner = s->c.set.owner;
    spec.from = s->c.set.from;
    set_space_files(&spec);
    spec.image = hfsb_cstr(s->home.image);
    spec.hardware = hfsb_cstr(s->home.hardware);
    spec.idle_timeout = hfsb_cstr(s->home.idle_timeout);
    spec.server = hfsb_buf_str(&s->bytes);
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

/* hfsb_session_opts.connect */
static hfsb_status connect_session(void *user, const hfsb_cancel *cancel,
                                   hfsb_sandbox **out, hfsb_err *err) {
    sandbox_session  *s = (sandbox_session *)user;
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_status       st;
    opts.session = true;
    opts.cancel = cancel;
    st = open_target(&s->c, &s->t, &opts, out, err);
    if (st != HFSB_OK && st != HFSB_CANCELLED)
        print_log(NULL, hfsb_cstr(err->msg));
    return st;
}

hfsb_status open_session_on(sandbox_session *s, const char *name,
                            hfsb_err *err) {
    hfsb_session_opts opts;
    hfsb_status       st = find_target(name, &s->t, err);
    memset(&opts, 0, sizeof opts);
    s->c.quiet = s->quiet;
    if (st == HFSB_OK) st = open_client_for(&s->c, &s->t, err);
    opts.runtime = HFSB_RUNTIME_REMOTE;
    opts.model_local = true; /* there is none */
    opts.connect = connect_session;
    opts.user = s;
    opts.no_preload = s->no_preload;
    if (st == HFSB_OK) st = hfsb_session_open(&opts, &s->session, err);
    return st;
}

hfsb_status close_session(sandbox_session *s, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    if (s->session) st = hfsb_session_close(s->session, err);
    s->session = NULL;
    hfsb_buf_free(&s->bytes);
    close_client(&s->c);
    free_target(&s->t);
    return st;
}
