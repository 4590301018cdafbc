/* server_sandbox.c - the sandbox on a server: its tools, routes and end.
   Depends on: server_call, server_jobs, server_metrics, server_files. */
#include "server_sandbox.h"

/* Over HTTP a command has this long unless it says otherwise. */
#define HFSBI_API_TIMEOUT 120.0

static const struct {
    const char *name, *path;
    bool        on_disk;
} hfsbi_api_tools[HFSBI_API_TOOLS] = {
    {"bash", "/api/bash", false},
    {"kill", "/api/kill", false},
    {"read", "/api/read", true},
    {"write", "/api/write", true},
    {"edit", "/api/edit", true},
    {"exists", "/api/exists", true},
    {"multi_edit", "/api/multi_edit", true},
    {"apply_patch", "/api/apply_patch", true},
    {"glob", "/api/glob", true},
    {"grep", "/api/grep", true},
    {"list", "/api/list", true},
    {"bash_output", "/api/bash_output", false},
    {"bash_input", "/api/bash_input", false},
};

/* ---- the loop drives the tools ---- */

static size_t hfsbi_sandbox_watch(void *user, hfsb_watch *list, size_t max) {
    return hfsb_tools_watch(((hfsbi_sandbox *)user)->tools, list, max);
}

static long long hfsbi_sandbox_deadline(void *user) {
    return hfsb_tools_deadline(((hfsbi_sandbox *)user)->tools);
}

static void hfsbi_sandbox_step(void *user) {
    hfsbi_sandbox *box = (hfsbi_sandbox *)user;
    hfsb_tools_step(box->tools);
    hfsbi_api_calls_step(box);
}

/* ---- its end ---- */

static void hfsbi_sandbox_end(hfsbi_server_part *part) {
    hfsbi_sandbox *box = (hfsbi_sandbox *)(void *)part;
    box->ended = true;
    hfsbi_api_calls_end(box);
    hfsbi_jobs_end(box->tools, HFSB_LIT(""));
}

static bool hfsbi_sandbox_busy(hfsbi_server_part *part) {
    hfsbi_sandbox *box = (hfsbi_sandbox *)(void *)part;
    return box->working > 0 || hfsb_tools_busy(box->tools) > 0;
}

static void hfsbi_endpoints_free(hfsbi_server_part *part) {
    hfsbi_sandbox *box = (hfsbi_sandbox *)(void *)part;
    hfsb_alloc     alloc = box->alloc;
    hfsbi_loop_source_remove(box->loop, &box->source);
    if (hfsbi_server_hurries(box->server)) hfsbi_tools_free(box->tools);
    else hfsb_tools_close(box->tools);
    hfsbi_array_free(&alloc, box, 1, sizeof *box);
}

/* ---- its beginning ---- */

HFSBI_FN hfsb_status hfsbi_sandbox_route(hfsbi_sandbox *box,
                                         const char *method, const char *path,
                                         hfsb_route_fn fn, void *user,
                                         hfsb_err *err) {
    hfsb_route route = HFSB_INIT;
    route.method = method;
    route.path = path;
    route.fn = fn;
    route.user = user;
    return hfsb_server_add(box->server, &route, err);
}

static hfsb_status hfsbi_sandbox_routes(hfsbi_sandbox *box, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; st == HFSB_OK && i < HFSBI_API_TOOLS; i++) {
        hfsbi_endpoint *at = &box->endpoints[i];
        at->box = box;
        at->tool = hfsbi_tool_find(hfsb_cstr(hfsbi_api_tools[i].name));
        at->on_disk = hfsbi_api_tools[i].on_disk;
        st = hfsbi_sandbox_route(box, "POST", hfsbi_api_tools[i].path,
                                 hfsbi_api_tool, at, err);
    }
    if (st == HFSB_OK) st = hfsbi_metrics_add(box, err);
    if (st == HFSB_OK) st = hfsbi_jobs_add(box, err);
    if (st == HFSB_OK) st = hfsbi_files_add(box->server, box->tools, err);
    return st;
}

/* Without routes; NULL with *err. */
static hfsbi_sandbox *hfsbi_endpoints_new(hfsb_server *server,
                                          const hfsb_server_sandbox_opts *opts,
                                          hfsb_err *err) {
    const hfsb_alloc *alloc = hfsbi_server_alloc(server);
    hfsb_tools_opts   o = HFSB_INIT;
    hfsbi_sandbox *box = (hfsbi_sandbox *)hfsbi_array(alloc, 1, sizeof *box);
    if (!box) {
        hfsbi_fail_status(err, HFSB_NOMEM, "Adding the sandbox");
        return NULL;
    }
    memset(box, 0, sizeof *box);
    if (opts->tools) o = *opts->tools;
    if (!(o.timeout > 0)) o.timeout = HFSBI_API_TIMEOUT;
    if (!o.alloc.fn) o.alloc = *alloc;
    o.session = false; /* requests belong to no session */
    if (hfsb_tools_open(&o, &box->tools, err) != HFSB_OK) {
        hfsbi_array_free(alloc, box, 1, sizeof *box);
        return NULL;
    }
    box->alloc = *alloc;
    box->server = server;
    box->loop = hfsbi_server_loop(server);
    box->kill_on_disconnect = opts->kill_on_disconnect;
    box->beat_ms = opts->beat_ms > 0 ? opts->beat_ms : 0;
    box->began = hfsb_clock_ms();
    box->part.end = hfsbi_sandbox_end;
    box->part.busy = hfsbi_sandbox_busy;
    box->part.free = hfsbi_endpoints_free;
    box->source.watch = hfsbi_sandbox_watch;
    box->source.deadline = hfsbi_sandbox_deadline;
    box->source.step = hfsbi_sandbox_step;
    box->source.user = box;
    return box;
}

hfsb_status hfsb_server_add_sandbox(hfsb_server                    *server,
                                    const hfsb_server_sandbox_opts *opts,
                                    hfsb_err                       *err) {
    hfsb_server_sandbox_opts none = HFSB_INIT;
    hfsb_err                 why = HFSB_INIT;
    hfsbi_sandbox           *box;
    hfsb_status              st;
    if (!err) err = &why;
    box = hfsbi_endpoints_new(server, opts ? opts : &none, err);
    if (!box) return err->code;
    st = hfsbi_health_add(box, err);
    if (st != HFSB_OK) { /* no route knows of it: there is one already */
        hfsb_tools_close(box->tools);
        hfsbi_array_free(hfsbi_server_alloc(server), box, 1, sizeof *box);
        return st;
    }
    /* from here on it lives as long as the server, whatever fails */
    hfsbi_loop_source(box->loop, &box->source);
    hfsbi_server_part_add(server, &box->part);
    return hfsbi_sandbox_routes(box, err);
}
