/* hfsb-server.c - the sandbox over HTTP: a program for a container, a Space,
   or this machine. `hfsb-server --help` prints its options.

   The parts are in hfsb-server/: options.c, secret.c (the token), keeper.c (the
   process that the server is a child of), stdio.c (a client at the other end
   of a pipe), systemd.c, confine.c, signals.c, log.c, greeting.c, probe.c
   (--check), manual.c (--man, --completion). `make` compiles this file with all
   of them; `make static` builds
   a small binary without dependencies. To serve from a program of your own see
   embed_server.c. */
#define HFSB_IMPLEMENTATION
#include "hfsb-server/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PLACES = 3 * MAX_TEXTS };

/* The names that Host may have. The Space's own name is added, unless any name
   is allowed anyway: with a token, on all addresses, and no name listed. */
static void fill_allowed(const options *o, texts *out) {
    const char *space = getenv("SPACE_HOST");
    *out = o->allow_hosts;
    if (!space || !*space || out->count == MAX_TEXTS) return;
    if (o->has_token && out->count == 0 && !only_loopback(o)) return;
    out->list[out->count++] = space;
}

/* Limits n to what size_t can hold on this machine. */
static size_t size_of(long long n) {
    const size_t most = ~(size_t)0 / 2;
    return (unsigned long long)n > most ? most : (size_t)n;
}

static hfsb_status open_server(options *o, const secret *token,
                               hfsb_server **out, hfsb_err *err) {
    hfsb_server_opts opts = HFSB_INIT;
    texts            allowed;
    fill_allowed(o, &allowed);
    opts.token = hfsb_str_make(token->bytes, token->len);
    opts.no_auth = o->no_auth;
    opts.late_token = o->init;
    opts.open_to_all = o->is_public;
    opts.allow_hosts = allowed.count ? allowed.list : NULL;
    opts.max_head = size_of(o->max_head);
    opts.max_body = size_of(o->max_body);
    opts.max_bodies = size_of(o->max_bodies);
    opts.max_connections = size_of(o->max_connections);
    opts.max_per_peer = size_of(o->max_per_peer);
    opts.head_ms = o->head_ms;
    opts.body_ms = o->body_ms;
    opts.min_rate = size_of(o->min_rate);
    opts.idle_ms = o->idle_ms;
    opts.stop_ms = 9000; /* the program itself ends within 10 s */
    opts.drain_ms = o->drain_ms;
    opts.max_idle_ms = o->max_idle_ms;
    opts.no_threads = o->threads == 0;
    opts.max_threads = o->threads > 0 ? size_of(o->threads) : 0;
    opts.on_event = log_event;
    opts.user = o;
    return hfsb_server_open(&opts, out, err);
}

/* Opens the journal of all calls: a file if the options name one, else only
   what /api/events shows. */
static hfsb_status open_journal(options *o, hfsb_journal **out,
                                hfsb_err *err) {
    hfsb_journal_opts opts = HFSB_INIT;
    opts.path = o->journal;
    opts.max_size = (unsigned long long)o->journal_size;
    opts.sync = o->journal_sync;
    if (o->log) opts.on_event = log_call;
    opts.on_failure = log_journal_failure;
    opts.user = o;
    return hfsb_journal_open(&opts, out, err);
}

/* The same tools at both places: /api has no sessions, /mcp one per client. */
static hfsb_status add_services(const options *o, hfsb_journal *journal,
                                hfsb_server *server, const char **confined,
                                hfsb_err *err) {
    hfsb_server_sandbox_opts opts = HFSB_INIT;
    hfsb_mcp_opts            mcp = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    hfsb_mcp                *made = NULL;
    hfsb_status              st;
    tools.work_dir = hfsb_cstr(o->work_dir);
    tools.root = hfsb_cstr(o->roots.list[0]); /* or NULL */
    tools.more_roots = o->roots.list + 1;
    tools.more_root_count = o->roots.count > 1 ? o->roots.count - 1 : 0;
    tools.deny = o->deny.list;
    tools.deny_count = o->deny.count;
    if (o->checkpoints && strcmp(o->checkpoints, "off") != 0)
        tools.checkpoints.dir =
            strcmp(o->checkpoints, "on") == 0 ? "" : o->checkpoints;
    tools.checkpoints.ignored = o->checkpoint_ignored;
    tools.timeout = (double)o->timeout_ms / 1000;
    tools.max_timeout = (double)o->max_timeout_ms / 1000;
    tools.max_running = size_of(o->max_running);
    tools.max_waiting = size_of(o->max_waiting);
    tools.journal = journal;
    fill_confinement(o, &tools.confine);
    tools.drop_spills = true; /* only this server's clients know of them */
    opts.tools = mcp.tools = &tools;
    opts.kill_on_disconnect = o->kill_on_disconnect;
    opts.beat_ms = o->beat_ms;
    opts.no_page = o->no_page;
    st = hfsb_server_add_sandbox(server, &opts, err);
    if (st != HFSB_OK) return st;
    *confined =
        hfsb_confine_text(hfsb_tools_confine(hfsb_server_tools(server)));
    if (o->no_mcp) return st;
    mcp.max_message = size_of(o->max_body);
    mcp.max_result = size_of(o->max_result);
    return hfsb_server_add_mcp(server, &mcp, &made, err);
}

/* ---- listening ---- */

/* What the environment says about --api hf: its token, and where it listens
   unless the option names a port. */
static void fill_hf(const options *o, const secret *sbx,
                    hfsb_dialect_opts *opts) {
    const char *port = getenv("SBX_PORT");
    long long   n;
    opts->token = hfsb_str_make(sbx->bytes, sbx->len);
    if (opts->own_port || !port || !*port) return;
    if (!read_number(port, &n) || n > 65535) return; /* adding it fails */
    opts->own_port = true;
    opts->port = (unsigned)n;
    if (o->hosts.count == 0) opts->host = "0.0.0.0";
}

/* Adds the dialect of --api NAME[:PORT]. The dialect of E2B signs with the
   token, of which the server itself keeps only a digest. */
static hfsb_status add_dialect(const options *o, const char *text,
                               const secret *token, const secret *sbx,
                               hfsb_server *server, hfsb_err *err) {
    const char       *colon = strchr(text, ':');
    hfsb_dialect_opts opts = HFSB_INIT;
    char              name[32];
    long long         port = 0;
    unsigned          bound = 0;
    hfsb_status       st;
    snprintf(name, sizeof name, "%.*s",
             (int)(colon ? (size_t)(colon - text) : strlen(text)), text);
    if (colon && (!read_number(colon + 1, &port) || port > 65535)) {
        snprintf(err->msg, sizeof err->msg,
                 "--api %s: the port must be a number from 0 to 65535.", text);
        return HFSB_ARG;
    }
    opts.name = name;
    opts.own_port = colon != NULL;
    opts.host = tcp_host(o, 0);
    opts.port = (unsigned)port;
    opts.settings = environment();
    if (strcmp(name, "hf") == 0) fill_hf(o, sbx, &opts);
    if (strcmp(name, "e2b") == 0 && !o->no_auth)
        opts.token = hfsb_str_make(token->bytes, token->len);
    st = hfsb_server_add_dialect(server, &opts, &bound, err);
    if (st == HFSB_OK && opts.own_port && !o->quiet)
        fprintf(stderr, "hfsb-server: %s on port %u\n", name, bound);
    return st;
}

static hfsb_status add_dialects(const options *o, const secret *token,
                                const secret *sbx, hfsb_server *server,
                                hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; i < o->apis.count && st == HFSB_OK; i++)
        st = add_dialect(o, o->apis.list[i], token, sbx, server, err);
    return st;
}

static hfsb_status listen_tcp(const options *o, hfsb_server *server,
                              place *places, size_t *count, hfsb_err *err) {
    unsigned    port = o->port >= 0 ? (unsigned)o->port
                                   : (unsigned)DEFAULT_PORT;
    const char *host;
    size_t      i;
    for (i = 0; (host = tcp_host(o, i)) != NULL; i++) {
        place      *p = &places[(*count)++];
        hfsb_status st = hfsb_server_listen(server, host, port, &p->port, err);
        if (st != HFSB_OK) return st;
        snprintf(p->text, sizeof p->text, "%s", host);
        if (port == 0) port = p->port; /* the same one everywhere */
    }
    return HFSB_OK;
}

static hfsb_status listen_elsewhere(const options *o, hfsb_server *server,
                                    place *places, size_t *count,
                                    hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; i < o->unix_paths.count && st == HFSB_OK; i++) {
        place *p = &places[(*count)++];
        p->is_unix = true;
        snprintf(p->text, sizeof p->text, "%s", o->unix_paths.list[i]);
        st = hfsb_server_listen_unix(server, o->unix_paths.list[i], err);
    }
    for (i = 0; i < o->listen_fds.count && st == HFSB_OK; i++) {
        int fd = atoi(o->listen_fds.list[i]);
        describe_socket(fd, &places[(*count)++]);
        st = hfsb_server_listen_fd(server, fd, err);
    }
    return st;
}

/* Returns DONE, or the exit code after printing an error. */
static int start(const options *o, hfsb_journal *journal, hfsb_server *server,
                 const secret *token, const secret *sbx) {
    static place places[MAX_PLACES];
    size_t       count = 0;
    const char  *confined = "", *exposed;
    hfsb_err     err = HFSB_INIT;
    hfsb_status  st = add_services(o, journal, server, &confined, &err);
    if (st == HFSB_OK) st = add_dialects(o, token, sbx, server, &err);
    if (st == HFSB_OK) st = add_pipe(o, server, &err);
    if (st == HFSB_OK) st = listen_tcp(o, server, places, &count, &err);
    if (st == HFSB_OK) st = listen_elsewhere(o, server, places, &count, &err);
    if (st == HFSB_REFUSED && o->no_auth && !only_loopback(o))
        return complain(USAGE,
                        "%s\nOmit --host, or set SANDBOX_API_TOKEN instead "
                        "of --no-auth, or add --public if something else "
                        "protects the server.",
                        err.msg);
    if (st != HFSB_OK)
        return complain(FAILED, "%s%s",
                        st == HFSB_OUTSIDE ? "--work-dir: " : "",
                        err.msg[0] ? err.msg : hfsb_status_text(st));
    if (!o->quiet) greet(o, places, count, confined, token);
    exposed = hfsb_tools_exposed(hfsb_server_tools(server));
    if (exposed)
        complain(DONE,
                 "commands can delete the checkpoints, which lie where they "
                 "may write: %s. Choose another folder with --checkpoints "
                 "DIR.",
                 exposed);
    if (!o->has_token && !o->no_auth && !o->init)
        complain(DONE, "no token set: every endpoint except /api/health "
                       "returns 503. Set SANDBOX_API_TOKEN, or use "
                       "--token-file, --token-fd or --no-auth (see --help).");
    return DONE;
}

static int serve(options *o) {
    static secret token, sbx;
    hfsb_server  *server = NULL;
    hfsb_journal *journal = NULL;
    hfsb_err      err = HFSB_INIT;
    hfsb_status   st;
    int           code = find_token(o, &token, &sbx);
    if (code != DONE) return code;
    take_pipe_token(o, &token);
    raise_descriptor_limit(o);
    st = open_journal(o, &journal, &err);
    if (st == HFSB_OK) st = open_server(o, &token, &server, &err);
    if (st == HFSB_OK) stop_on_signals(server, o->drain_ms);
    if (st == HFSB_OK) code = start(o, journal, server, &token, &sbx);
    wipe(&token, sizeof token);
    wipe(&sbx, sizeof sbx);
    wipe_stack();
    if (st == HFSB_OK && code == DONE) {
        report_ready();
        report_pipe(o);
        if (o->stdio) run_pipe(o, server);
        else st = hfsb_server_run(server, &err);
    }
    if (st != HFSB_OK)
        code = complain(FAILED, "%s",
                        err.msg[0] ? err.msg : hfsb_status_text(st));
    if (server) hfsb_server_close(server);
    hfsb_journal_close(journal);
    return code;
}

/* Opens descriptors 0, 1 and 2 if missing, so that no socket gets their
   numbers. */
static void open_standard(void) {
    int fd;
    do fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= 2);
    if (fd > 2) close(fd);
}

int main(int argc, char **argv) {
    options o;
    int     code = DONE;
    hide_memory();
    open_standard();
    if (!take_options(argc, argv, &o, &code)) return code;
    if (o.stdio && !serve_pipe(&o, &code)) return code;
    continue_in_child();
    code = serve(&o);
    if (!has_keeper()) end_pipe();
    return code;
}
