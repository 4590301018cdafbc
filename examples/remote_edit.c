/* remote_edit.c - edit a file on another machine that runs hfsb-server.

       SANDBOX_API_TOKEN=... ./remote_edit http://127.0.0.1:7860 FILE OLD NEW

   The file is read first: a handle with `session` set refuses to change files
   that were not read through it. If a reply gets lost, the call is sent again
   with the same idempotency key, and runs once. The local tools are not linked:
   with HFSB_STATIC or -Wl,--gc-sections the program stays small. */
#define HFSB_IMPLEMENTATION
#include "../hfsb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls a tool and shows the text for a model: of an edit, and of a failure. */
static bool call(hfsb_sandbox *sandbox, const char *tool,
                 const hfsb_buf *arguments) {
    hfsb_buf         text = HFSB_INIT;
    hfsb_tool_result result;
    bool             ok;

    hfsb_sandbox_call_text(sandbox, hfsb_cstr(tool), hfsb_buf_str(arguments),
                           NULL, &result);
    ok = result.success;
    hfsb_tool_result_text(&result, &text);
    if (!ok || strcmp(tool, "edit") == 0)
        fprintf(ok ? stdout : stderr, "%s\n", hfsb_buf_cstr(&text));
    hfsb_tool_result_free(&result);
    hfsb_buf_free(&text);
    return ok;
}

int main(int argc, char **argv) {
    hfsb_transport    transport = HFSB_INIT;
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_buf          read = HFSB_INIT, edit = HFSB_INIT;
    hfsb_err          err;
    bool              ok;

    if (argc != 5) {
        fprintf(stderr, "usage: remote_edit URL FILE OLD NEW\n");
        return 2;
    }
    hfsb_json_printf(&read, "{\"path\":\"%s\"}", argv[2]);
    hfsb_json_printf(&edit,
                     "{\"path\":\"%s\",\"old_str\":\"%s\",\"new_str\":\"%s\"}",
                     argv[2], argv[3], argv[4]);
    opts.transport = &transport;
    opts.api_token = hfsb_cstr(getenv("SANDBOX_API_TOKEN"));
    opts.session = true;

    ok = hfsb_net_open(NULL, &transport, &err) == HFSB_OK &&
         hfsb_sandbox_connect_url(hfsb_cstr(argv[1]), &opts, &sandbox, &err) ==
             HFSB_OK;
    if (!ok) fprintf(stderr, "%s\n", err.msg);
    ok = ok && call(sandbox, "read", &read) && call(sandbox, "edit", &edit);

    (void)hfsb_sandbox_close(sandbox, false, NULL);
    hfsb_transport_close(&transport);
    hfsb_buf_free(&read);
    hfsb_buf_free(&edit);
    return ok ? 0 : 1;
}
