/* mcp_tool.c - a tool of your own for Claude Code, Codex, Cursor and others,
   next to the built-in ones:
       claude mcp add words -- ./mcp_tool                                  */
#define HFSB_IMPLEMENTATION
#include "../hfsb_server.h"

#include <stdio.h>

/* Runs in a thread of the server, so it may block. */
static void count_words(void *user, hfsb_mcp_call *call,
                        const hfsb_json_value *arguments) {
    hfsb_str text = HFSB_INIT;
    hfsb_err err;
    size_t   words = 0, i;
    bool     inside = false;
    (void)user;
    /* nothing else checks the arguments: the schema is for the model */
    if (hfsb_json_arg_str(arguments, "text", true, &text, &err) != HFSB_OK) {
        hfsb_mcp_fail(call, "%s", err.msg);
        return;
    }
    for (i = 0; i < text.len; i++) {
        bool letter = (unsigned char)text.ptr[i] > ' ';
        words += letter && !inside;
        inside = letter;
    }
    hfsb_mcp_text(call, "%lu words", (unsigned long)words);
}

int main(void) {
    hfsb_server  *server = NULL;
    hfsb_mcp     *mcp = NULL;
    hfsb_mcp_tool tool = HFSB_INIT;
    hfsb_err      err = HFSB_INIT;
    bool          ok;

    tool.name = "count_words";
    tool.title = "Count words";
    tool.description = "Count the words of a text.";
    tool.schema = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":"
                  "\"string\"}},\"required\":[\"text\"]}";
    tool.annotations = "{\"readOnlyHint\":true}";
    tool.fn = count_words;

    ok = hfsb_server_open(NULL, &server, &err) == HFSB_OK &&
         hfsb_server_add_mcp(server, NULL, &mcp, &err) == HFSB_OK &&
         hfsb_mcp_add_tool(mcp, &tool, &err) == HFSB_OK &&
         hfsb_mcp_stdio(mcp, 0, 1, &err) == HFSB_OK &&
         hfsb_server_run(server, &err) == HFSB_OK; /* to the end of input */
    if (!ok) fprintf(stderr, "mcp_tool: %s\n", err.msg);
    hfsb_server_close(server);
    return !ok;
}
