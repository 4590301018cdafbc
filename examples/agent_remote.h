/* agent_remote.h - what agent.c does over the network, to copy from: requests
   to an endpoint that may be starting, and a sandbox by its name: a URL, or a
   command that leads to another machine, as ssh:HOST, docker:CONTAINER and
   exec:COMMAND do; or a Space of the Hub.

   hfsb-server listens at a URL already. A command needs nothing over there but
   a shell: where hfsb-server is missing it is sent through the pipe, and it
   ends with the pipe. The file to send is $HFSB_SERVERS/hfsb-server-MACHINE, or
   for a machine like this one static/hfsb-server or build/static/hfsb-server in
   the folder of the program: `make static` builds the latter.

   A Space gets hfsb-server, too, if the program is compiled with its sources
   (HFSB_WITH_SPACE, with the header of `make build/hfsb_space.h`: 15 MB). Else
   it keeps the server of the template that it duplicates, which has fewer
   tools. https, and so the Hub, needs libcurl (HFSB_WITH_CURL). */
#ifndef AGENT_REMOTE_H
#define AGENT_REMOTE_H

#include "../hfsb.h"
#ifdef HFSB_WITH_CURL
#include "../hfsb_http_curl.h"
#endif
#ifdef HFSB_WITH_SPACE
#include "../build/hfsb_space.h"
#endif

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { MAX_SERVER = 64 << 20 };

typedef struct remote {
    const char       *name, *self; /* name: NULL for none; self: argv[0] */
    hfsb_transport   *http;        /* for a URL, and for the Hub */
    hfsb_pipe        *pipe;        /* to the sandbox of ssh:HOST ... */
    hfsb_transport    through;     /* ... and its transport */
    hfsb_sandbox_spec spec;        /* of a Space */
} remote;

/* Has fn called by each signal that would end the program, so that it can
   close its session: a Space that is left behind costs money. Ignored signals
   (nohup) stay ignored. A read() of an answer ends, too. */
static void remote_catch_signals(void (*fn)(int number)) {
    static const int list[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct sigaction caught = HFSB_INIT, old;
    size_t           i;
    caught.sa_handler = fn;
    for (i = 0; i < sizeof list / sizeof *list; i++)
        if (sigaction(list[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)sigaction(list[i], &caught, NULL);
}

/* Appends the folder of this program, with a slash; nothing where it is not
   known. The working directory never takes its place: the files there may be
   those of somebody else. */
static void remote_folder(const char *self, hfsb_buf *out) {
    char        path[4096];
    ssize_t     n = readlink("/proc/self/exe", path, sizeof path - 1);
    const char *end;
    path[n > 0 ? n : 0] = '\0';
    if (n > 0) self = path;
    end = strrchr(self, '/');
    if (end) hfsb_buf_append(out, hfsb_str_make(self, (size_t)(end + 1 - self)));
}

static hfsb_status remote_read_server(const char *folder, const char *name,
                                      const char *machine, hfsb_buf *out) {
    hfsb_buf    path = HFSB_INIT;
    hfsb_status st = hfsb_buf_printf(&path, "%s%s%s", folder, name, machine);
    if (st == HFSB_OK)
        st = hfsb_file_read(NULL, hfsb_buf_str(&path), MAX_SERVER, out, NULL,
                            NULL);
    hfsb_buf_free(&path);
    return st;
}

/* hfsb_pipe_opts.server */
static hfsb_status remote_find_server(void *user, const char *system,
                                      const char *machine, hfsb_buf *out,
                                      hfsb_err *err) {
    const char    *given = getenv("HFSB_SERVERS"), *own;
    struct utsname here;
    hfsb_buf       folder = HFSB_INIT, where = HFSB_INIT; /* searched */
    hfsb_status    st = HFSB_NOT_FOUND;
    remote_folder(((remote *)user)->self, &folder);
    own = hfsb_buf_cstr(&folder);
    if (strcmp(system, "Linux") != 0) {
        /* there is no server for others */
    } else if (given && *given) {
        st = remote_read_server(given, "/hfsb-server-", machine, out);
        hfsb_buf_printf(&where, " in %s", given);
    } else if (*own && uname(&here) >= 0 && !strcmp(here.machine, machine)) {
        st = remote_read_server(own, "static/hfsb-server", "", out);
        if (st != HFSB_OK)
            st = remote_read_server(own, "build/static/hfsb-server", "", out);
        hfsb_buf_printf(&where, " in %sstatic or %sbuild/static", own, own);
    }
    if (st != HFSB_OK)
        hfsb_err_set(err, st,
                     "There is no static hfsb-server for %s %s%s: `make "
                     "static` builds one for this machine; others are found "
                     "as HFSB_SERVERS=FOLDER, FOLDER/hfsb-server-%s",
                     system, machine, hfsb_buf_cstr(&where), machine);
    hfsb_buf_free(&where);
    hfsb_buf_free(&folder);
    return st;
}

static void remote_close(remote *r) {
    if (r->through.perform) hfsb_transport_close(&r->through);
    hfsb_pipe_close(r->pipe);
    memset(&r->through, 0, sizeof r->through);
    r->pipe = NULL;
}

/* hfsb_session_opts.connect; user is a remote. Close it after the session. */
static hfsb_status remote_connect(void *user, const hfsb_cancel *cancel,
                                  hfsb_sandbox **out, hfsb_err *err) {
    remote           *r = (remote *)user;
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_pipe_opts    how = HFSB_INIT;
    hfsb_net_opts     net = HFSB_INIT;
    hfsb_status       st;
    opts.session = true;
    opts.cancel = how.cancel = cancel;
    opts.transport = r->http;
    opts.api_token = hfsb_cstr(getenv("SANDBOX_API_TOKEN"));
    if (!hfsb_pipe_is_name(hfsb_cstr(r->name)))
        return hfsb_sandbox_connect_url(hfsb_cstr(r->name), &opts, out, err);
    remote_close(r); /* of a connection that failed */
    how.name = r->name;
    how.server = remote_find_server;
    how.user = r;
    st = hfsb_pipe_open(&how, &r->pipe, err);
    net.dial = hfsb_pipe_dial;
    net.user = r->pipe;
    if (st == HFSB_OK) st = hfsb_net_open(&net, &r->through, err);
    if (st != HFSB_OK) return st;
    opts.transport = &r->through;
    opts.api_token = hfsb_pipe_token(r->pipe);
    return hfsb_sandbox_connect_url(HFSB_LIT("http://localhost"), &opts, out,
                                    err);
}

/* hfsb_session_opts.log */
static void remote_log(void *user, hfsb_str line) {
    (void)user;
    if (hfsb_str_starts(line, HFSB_LIT("No sandbox: "))) return; /* an error */
    fprintf(stderr, "[" HFSB_F "]\n", HFSB_V(line));
}

/* Sets what a session needs to work elsewhere. */
static hfsb_status remote_prepare(remote *r, const hfsb_hub_env *env,
                                  hfsb_session_opts *opts, hfsb_err *err) {
    hfsb_hub_opts hub = HFSB_INIT;
    opts->connect = remote_connect;
    opts->user = r;
    opts->log = remote_log;
    hub.token = opts->hub_token = hfsb_buf_str(&env->token);
    if (opts->runtime != HFSB_RUNTIME_SANDBOX) return HFSB_OK;
#ifdef HFSB_WITH_SPACE
    r->spec.files = hfsb_space_files;
    r->spec.file_count = hfsb_space_file_count;
#endif
    opts->spec = &r->spec;
    hub.endpoint = hfsb_buf_str(&env->endpoint);
    hub.transport = r->http;
    return hfsb_hub_open(&hub, &opts->hub, err);
}

/* An environment variable, or the fallback where it is not set. */
static const char *remote_setting(const char *name, const char *fallback) {
    const char *value = getenv(name);
    return value ? value : fallback;
}

/* Sets the Authorization for the endpoint: "Bearer KEY", or empty. */
static hfsb_status remote_key(const char *url, const hfsb_hub_env *env,
                              hfsb_buf *out) {
    const char *secret = getenv("OPENAI_API_KEY");
    if (!secret && !strncmp(url, "https://router.huggingface.co/", 30))
        secret = hfsb_buf_cstr(&env->token);
    if (secret && *secret) hfsb_buf_printf(out, "Bearer %s", secret);
    return out->status;
}

/* Without libcurl, or with one that is too old, http still works. */
static hfsb_status remote_open_transport(hfsb_transport *out, hfsb_err *err) {
#ifdef HFSB_WITH_CURL
    hfsb_status st = hfsb_curl_open(NULL, out, err);
    if (st != HFSB_NOT_FOUND && st != HFSB_REFUSED) return st;
#endif
    return hfsb_net_open(NULL, out, err);
}

/* hfsb_http_send(). A server that starts refuses the connection, or replies
   503 while it loads a model: it is tried again for up to that many seconds. */
static hfsb_status remote_send(const hfsb_transport *http,
                               const hfsb_http_call *call, int seconds,
                               hfsb_http_reply *reply, hfsb_err *err) {
    long long end = hfsb_clock_ms() + 1000LL * seconds;
    bool      told = false;
    for (;; told = true) {
        hfsb_status st = hfsb_http_send(http, call, reply, err);
        bool        loads = st == HFSB_OK && reply->status == 503;
        if ((st != HFSB_CONNECT && !loads) || hfsb_clock_ms() >= end)
            return st;
        if (!told)
            fprintf(stderr, "[" HFSB_F " %s; waiting up to %d s]\n",
                    HFSB_V(call->url),
                    loads ? "is not ready (503)" : "cannot be reached",
                    seconds);
        if (!hfsb_cancel_wait(call->cancel, 500)) return st;
    }
}

#endif
