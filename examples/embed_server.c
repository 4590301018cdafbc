/* embed_server.c - a program with routes of its own, and the sandbox next to
   them. The token comes from the environment: nothing runs commands without.
       APP_TOKEN=my-secret ./embed_server 8080
       curl http://127.0.0.1:8080/hello/world
       curl -N http://127.0.0.1:8080/clock -H 'Authorization: Bearer my-secret'
       curl http://127.0.0.1:8080/api/bash -d '{"command":"date"}' \
           -H 'Authorization: Bearer my-secret' \
           -H 'Content-Type: application/json'                             */
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
    int *calls = (int *)user;
    hfsb_reply_json(request, 200, "{\"hello\":\"" HFSB_F "\",\"call\":%d}\n",
                    HFSB_V(hfsb_request_part(request, 0)), /* matches "*" */
                    ++*calls);
}

/* GET /clock: a line each second, until the client goes away. */
static void tick(void *user) {
    hfsb_request *request = (hfsb_request *)user;
    char          line[32];
    int           n = snprintf(line, sizeof line, "%lld\n", hfsb_clock_ms());
    if (hfsb_reply_write(request, hfsb_str_make(line, (size_t)n)) == HFSB_OK)
        hfsb_timer_set((hfsb_timer *)hfsb_request_get(request), 1000);
}

static void clock_gone(void *user, hfsb_request *request) {
    (void)user;
    hfsb_timer_close((hfsb_timer *)hfsb_request_get(request));
}

static void clock_begin(void *user, hfsb_request *request) {
    hfsb_timer *timer;
    hfsb_err    err;
    (void)user;
    if (hfsb_timer_open(server, tick, request, &timer, &err) != HFSB_OK) {
        hfsb_reply_error(request, 503, "%s", err.msg);
        return;
    }
    hfsb_request_set(request, timer);
    hfsb_request_on_gone(request, clock_gone, NULL);
    hfsb_reply_begin(request, 200, "text/plain; charset=utf-8");
    hfsb_timer_set(timer, 0);
}

static hfsb_status add(const char *path, hfsb_route_fn fn, void *user,
                       bool no_token, hfsb_err *err) {
    hfsb_route route = HFSB_INIT;
    route.method = "GET";
    route.path = path;
    route.fn = fn;
    route.user = user;
    route.no_token = no_token;
    route.max_body = 1; /* nobody can fill the memory with a body */
    return hfsb_server_add(server, &route, err);
}

int main(int argc, char **argv) {
    hfsb_server_opts opts = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    unsigned         port = argc > 1 ? (unsigned)atoi(argv[1]) : 8080;
    int              calls = 0;

    /* Without a token the routes that need one answer 503. The server keeps
       only a digest of it; `authorize` of the options adds a way of your own. */
    opts.token = hfsb_cstr(getenv("APP_TOKEN"));
    if (hfsb_server_open(&opts, &server, &err) != HFSB_OK ||
        add("/hello/*", hello, &calls, true, &err) != HFSB_OK ||
        add("/clock", clock_begin, NULL, false, &err) != HFSB_OK ||
        hfsb_server_add_sandbox(server, NULL, &err) != HFSB_OK ||
        hfsb_server_listen(server, "127.0.0.1", port, &port, &err) !=
            HFSB_OK) {
        fprintf(stderr, "embed_server: %s\n", err.msg);
        hfsb_server_close(server);
        return 1;
    }
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    printf("http://127.0.0.1:%u/hello/world\n", port);
    fflush(stdout);

    /* A program with its own event loop calls hfsb_server_poll() there, or
       waits for the descriptors of hfsb_server_watch(). */
    (void)hfsb_server_run(server, &err);
    signal(SIGINT, SIG_IGN); /* the handler must not use it any more */
    signal(SIGTERM, SIG_IGN);
    hfsb_server_close(server); /* kills the commands that still run */
    return 0;
}
