/* Without HFSB_HUB: a server in a thread, and the client of a sandbox that
   finds it by its URL. */
#define HFSB_IMPLEMENTATION
#include "headers.h"
#ifdef HFSB_HUB_H
#error "this program is about a build without the Hub"
#endif

static void *serve(void *user) {
    (void)hfsb_server_run((hfsb_server *)user, NULL);
    return NULL;
}

static bool calls_bash(hfsb_sandbox *sandbox) {
    hfsb_json_doc    arguments = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    bool             ok =
        hfsb_json_parse(HFSB_LIT("{\"command\":\"echo $((6 * 7))\"}"), NULL,
                        &arguments, NULL) == HFSB_OK &&
        hfsb_sandbox_call(sandbox, HFSB_LIT("bash"), arguments.root, NULL, &result) == HFSB_OK &&
        result.success &&
        hfsb_str_equal(hfsb_buf_str(&result.output), HFSB_LIT("42\n"));
    hfsb_tool_result_free(&result);
    hfsb_json_free(&arguments);
    return ok;
}

static bool connects(unsigned port) {
    hfsb_transport    transport = HFSB_INIT;
    hfsb_net_opts     net = HFSB_INIT;
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    char              url[64];
    bool              ok;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
    net.no_proxy = true;
    opts.transport = &transport;
    opts.api_token = HFSB_LIT("secret");
    ok = hfsb_net_open(&net, &transport, NULL) == HFSB_OK &&
         hfsb_sandbox_connect_url(hfsb_cstr(url), &opts, &sandbox, NULL) ==
             HFSB_OK &&
         hfsb_sandbox_ours(sandbox) && calls_bash(sandbox);
    (void)hfsb_sandbox_close(sandbox, true, NULL);
    if (transport.perform) hfsb_transport_close(&transport);
    return ok;
}

int main(void) {
    hfsb_server_opts opts = HFSB_INIT;
    hfsb_server     *server = NULL;
    pthread_t        thread;
    unsigned         port = 0;
    bool             ok;
    opts.token = HFSB_LIT("secret");
    if (hfsb_server_open(&opts, &server, NULL) != HFSB_OK ||
        hfsb_server_add_sandbox(server, NULL, NULL) != HFSB_OK ||
        hfsb_server_listen(server, NULL, 0, &port, NULL) != HFSB_OK ||
        pthread_create(&thread, NULL, serve, server) != 0)
        return 2;
    ok = connects(port);
    hfsb_server_stop(server);
    (void)pthread_join(thread, NULL);
    hfsb_server_close(server);
    return ok ? 0 : 1;
}
