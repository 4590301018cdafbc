/* pipe.c - sandboxes at the other end of a command: ssh:HOST, docker:CONTAINER
   and their relatives, and what is kept over there for them.

   hfsb_pipe_open() knows the commands. It sends hfsb-server through them, where
   it is missing, and serves the sandbox through them. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DELAY_MS = 100,      /* before a call is repeated */
    WAIT_MS = 10000,     /* for the server, once the pipe is there */
    LINGER_MS = 60000,   /* the server waits for us after a break ... */
    CONNECT_MS = 30000,  /* ... and we for it, but never less than this */
    START_MS = 60000,    /* for the first start of the command */
    MAX_SECONDS = 1000000 /* as hfsb-server takes them */
};

bool is_pipe(const char *name) {
    return hfsb_pipe_is_name(hfsb_cstr(name));
}

/* ---- the pipe ---- */

static hfsb_status find_server(void *user, const char *system,
                               const char *machine, hfsb_buf *out,
                               hfsb_err *err) {
    (void)user;
    return read_server_for(system, machine, out, err);
}

/* The seconds of a variable in milliseconds, or `usual`. */
static long long read_wait(const char *variable, long long usual) {
    const char *value = getenv(variable);
    long long   seconds = value ? strtoll(value, NULL, 10) : 0;
    return seconds > 0 && seconds < MAX_SECONDS ? 1000 * seconds : usual;
}

static void fill_pipe(const client *c, const char *name,
                      hfsb_pipe_opts *opts) {
    opts->name = name;
    opts->server = find_server;
    opts->cancel = c->cancel;
    opts->start_ms = read_wait("HFSB_START", START_MS);
    opts->linger_ms = read_wait("HFSB_LINGER", LINGER_MS);
}

/* Connecting includes starting the command again for as long as the server
   over there waits for that; so does the health check before a repeat. */
static void fill_times(const hfsb_pipe_opts *how, hfsb_sandbox_times *times) {
    long long ms = how->linger_ms > CONNECT_MS ? how->linger_ms : CONNECT_MS;
    if (!times->delay_ms) times->delay_ms = DELAY_MS;
    if (!times->connect_ms) times->connect_ms = ms;
    if (!times->health_ms) times->health_ms = ms;
    if (!times->api_wait_ms) times->api_wait_ms = WAIT_MS;
    if (!times->api_poll_ms) times->api_poll_ms = DELAY_MS;
}

hfsb_status connect_pipe(client *c, const char *name, hfsb_sandbox_opts *opts,
                      hfsb_err *err) {
    hfsb_pipe_opts how = HFSB_INIT;
    hfsb_net_opts  net = HFSB_INIT;
    progress      *shown;
    hfsb_status    st;
    fill_pipe(c, name, &how);
    if (opts->cancel) how.cancel = opts->cancel;
    if (c->through.perform) hfsb_transport_close(&c->through); /* failed */
    hfsb_pipe_close(c->pipe);
    c->pipe = NULL;
    shown = opts->session ? NULL : progress_wait(name);
    st = hfsb_pipe_open(&how, &c->pipe, err);
    progress_close(shown);
    if (st != HFSB_OK) return st;
    net.dial = hfsb_pipe_dial;
    net.user = c->pipe;
    st = hfsb_net_open(&net, &c->through, err);
    if (st != HFSB_OK) return st;
    opts->transport = &c->through;
    if (!opts->cancel) opts->cancel = c->cancel;
    opts->api_token = hfsb_pipe_token(c->pipe);
    fill_times(&how, &opts->times);
    return HFSB_OK;
}

/* ---- hfsb forget ---- */

int run_forget(args *a) {
    const char      *name = NULL, *on = NULL;
    client           c = HFSB_INIT;
    hfsb_pipe_opts   how = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;
    const option     options[] = {OPTION_ON(&on), OPTIONS_END};
    if (!take_all(a, options, &name)) return a->status;
    if (!name) name = named_sandbox(on);
    if (!name || !is_pipe(name))
        return usage(a, "SANDBOX is needed: ssh:HOST, docker:CONTAINER, "
                        "podman:CONTAINER, kubectl:POD, slurm:OPTIONS or "
                        "exec:COMMAND");
    st = hfsb_cancel_open(NULL, &c.cancel, &err);
    if (st == HFSB_OK) catch_signals(NULL, c.cancel);
    fill_pipe(&c, name, &how);
    if (st == HFSB_OK) st = hfsb_pipe_forget(&how, &err);
    close_client(&c);
    if (st == HFSB_OK)
        must(hfsb_buf_printf(&result.output, "No hfsb-server is left on %s",
                             name));
    return show_outcome(&result, st, &err, false);
}
