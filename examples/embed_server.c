/* embed_server.c - a program with a route of its own, and the sandbox next to
   it.
       ./embed_server 8080
       curl http://127.0.0.1:8080/hello/world
       curl http://127.0.0.1:8080/api/bash \
           -H 'X-Sandbox-Authorization: Bearer secret' \
           -H 'Content-Type: application/json' -d '{"command":"date"}'     */
#define HFSB_IMPLEMENTATION
#include "../hfsb_server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static hfsb_server *server; /* for the signal handler */

static void stop(int number) {
    (void)number;
    hfsb_server_stop(server); /* the one call that a handler may make */
}

/* GET /hello/NAME. Runs in the thread that serves, so it must not block; one
   that may block is a route with `threaded` set. */
static void hello(void *user, hfsb_request *request) {
    hfsb_buf text = HFSB_INIT;
    hfsb_str name = hfsb_request_part(request, 0); /* what matches "*" */
    int     *calls = (int *)user;
    if (hfsb_buf_printf(&text, "Hello, ") == HFSB_OK &&
        hfsb_buf_append(&text, name) == HFSB_OK &&
        hfsb_buf_printf(&text, ", call %d\n", ++*calls) == HFSB_OK)
        hfsb_reply(request, 200, "text/plain; charset=utf-8",
                   hfsb_buf_str(&text));
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_buf_free(&text);
}

static int fail(const hfsb_err *err) {
    fprintf(stderr, "embed_server: %s\n", err->msg);
    if (server) hfsb_server_close(server);
    return 1;
}

int main(int argc, char **argv) {
    hfsb_server_opts opts = HFSB_INIT;
    hfsb_route       route = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;
    unsigned         port = argc > 1 ? (unsigned)atoi(argv[1]) : 8080;
    int              calls = 0;

    /* A real program reads the token from elsewhere and wipes it once the
       server is open, which keeps only a digest: see hfsb-server/secret.c. */
    opts.token = HFSB_LIT("secret");
    if (hfsb_server_open(&opts, &server, &err) != HFSB_OK) return fail(&err);

    route.method = "GET";
    route.path = "/hello/*";
    route.fn = hello;
    route.user = &calls;
    route.no_token = true; /* the sandbox still needs one */
    route.max_body = 1;    /* nobody can fill the memory with a body */
    st = hfsb_server_add(server, &route, &err);
    if (st == HFSB_OK) st = hfsb_server_add_sandbox(server, NULL, &err);
    if (st == HFSB_OK)
        st = hfsb_server_listen(server, "127.0.0.1", port, &port, &err);
    if (st != HFSB_OK) return fail(&err);

    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    printf("http://127.0.0.1:%u/hello/world\n", port);
    fflush(stdout);

    /* A program with its own event loop calls hfsb_server_poll() there, or
       waits for the descriptors of hfsb_server_watch(). */
    st = hfsb_server_run(server, &err);
    if (st != HFSB_OK) return fail(&err);
    signal(SIGINT, SIG_IGN); /* the handler must not use it any more */
    signal(SIGTERM, SIG_IGN);
    hfsb_server_close(server); /* kills the commands that still run */
    return 0;
}
