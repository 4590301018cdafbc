/* remote_edit.c - edit a file on another machine that runs hfsb-server.

       SANDBOX_API_TOKEN=... ./remote_edit http://127.0.0.1:7860 FILE OLD NEW

   The file is read first: a handle with `session` set refuses to change files
   that were not read through it. If a reply gets lost, the call is sent again
   with the same idempotency key, and runs once. */
#define HFSB_IMPLEMENTATION
#include "../hfsb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls a tool with string arguments, given as key, value, ..., NULL. */
static bool call(hfsb_sandbox *sandbox, const char *tool, const char **pairs) {
    hfsb_buf         json = HFSB_INIT, text = HFSB_INIT;
    hfsb_json_doc    arguments = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_tool_result result = HFSB_INIT;
    bool             ok;

    hfsb_json_writer_init(&w, &json, NULL);
    hfsb_json_put_object(&w);
    for (; *pairs; pairs += 2) {
        hfsb_json_put_key(&w, hfsb_cstr(pairs[0]));
        hfsb_json_put_str(&w, hfsb_cstr(pairs[1]));
    }
    hfsb_json_put_end(&w);
    ok = hfsb_json_writer_finish(&w, NULL) == HFSB_OK &&
         hfsb_json_parse(hfsb_buf_str(&json), NULL, &arguments, NULL) ==
             HFSB_OK &&
         hfsb_sandbox_call(sandbox, hfsb_cstr(tool), arguments.root, NULL, &result) == HFSB_OK;
    ok = ok && result.success;
    if (!ok || strcmp(tool, "edit") == 0) { /* the text for a model */
        if (hfsb_tool_result_text(&result, &text) == HFSB_OK)
            fprintf(ok ? stdout : stderr, "%s\n", text.ptr);
    }
    hfsb_tool_result_free(&result);
    hfsb_json_free(&arguments);
    hfsb_buf_free(&json);
    hfsb_buf_free(&text);
    return ok;
}

int main(int argc, char **argv) {
    hfsb_transport    transport = HFSB_INIT;
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    const char       *read[] = {"path", NULL, NULL};
    const char       *edit[] = {"path",    NULL, "old_str", NULL,
                                "new_str", NULL, NULL};
    hfsb_err          err;
    bool              ok;

    if (argc != 5) {
        fprintf(stderr, "usage: remote_edit URL FILE OLD NEW\n");
        return 2;
    }
    read[1] = edit[1] = argv[2];
    edit[3] = argv[3];
    edit[5] = argv[4];
    opts.transport = &transport;
    opts.api_token = hfsb_cstr(getenv("SANDBOX_API_TOKEN"));
    opts.session = true;

    ok = hfsb_net_open(NULL, &transport, &err) == HFSB_OK &&
         hfsb_sandbox_connect_url(hfsb_cstr(argv[1]), &opts, &sandbox, &err) ==
             HFSB_OK;
    if (!ok) fprintf(stderr, "%s\n", err.msg);
    ok = ok && call(sandbox, "read", read) && call(sandbox, "edit", edit);

    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    if (transport.perform) hfsb_transport_close(&transport);
    return ok ? 0 : 1;
}
