/* crash.c - writes a file; tests/checks/crash.sh kills it at every call
     crash write FILE LETTER    with hfsb_file_write()
     crash edit FILE LETTER     with the tool edit: every "o" becomes LETTER
     crash tear FILE LETTER     the wrong way: truncate, then fill
     crash bash ROOT STORE      with checkpoints: $CRASH_COMMAND
     crash undo ROOT STORE      takes back what that did */
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"

#define SIZE 100000

static bool tear(const char *path, const char *text) {
    size_t at;
    int    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    for (at = 0; fd >= 0 && at < SIZE; at += SIZE / 4)
        if (write(fd, text + at, SIZE / 4) != SIZE / 4) return false;
    return fd >= 0 && fsync(fd) == 0 && close(fd) == 0;
}

static bool edit(const char *path, char letter) {
    hfsb_tools      *tools;
    hfsb_tool_result result;
    char             arguments[512];
    bool             ok;
    snprintf(arguments, sizeof arguments,
             "{\"path\":\"%s\",\"old_str\":\"o\",\"new_str\":\"%c\","
             "\"replace_all\":true}",
             path, letter);
    if (hfsb_tools_open(NULL, &tools, NULL) != HFSB_OK) return false;
    ok = hfsb_tools_call_text(tools, HFSB_LIT("edit"), hfsb_cstr(arguments),
                              NULL, &result) == HFSB_OK &&
         result.success;
    if (!ok && result.error.ptr) printf("%s\n", result.error.ptr);
    hfsb_tool_result_free(&result);
    hfsb_tools_close(tools);
    return ok;
}

/* Calls a tool with checkpoints; no rest is left to do afterwards. */
static bool with_checkpoints(const char *root, const char *store,
                             const char *tool, const char *arguments) {
    hfsb_tools_opts  opts = HFSB_INIT;
    hfsb_tools      *tools;
    hfsb_tool_result result;
    bool             ok;
    opts.root = hfsb_cstr(root);
    opts.checkpoints.dir = store;
    if (hfsb_tools_open(&opts, &tools, NULL) != HFSB_OK) return false;
    ok = hfsb_tools_call_text(tools, hfsb_cstr(tool), hfsb_cstr(arguments),
                              NULL, &result) == HFSB_OK &&
         result.success;
    if (result.output.ptr) printf("%s\n", result.output.ptr);
    if (!ok && result.error.ptr) printf("%s\n", result.error.ptr);
    hfsb_tool_result_free(&result);
    hfsb_tools_close(tools);
    return ok;
}

static bool run_command(const char *root, const char *store) {
    const char      *command = getenv("CRASH_COMMAND");
    hfsb_buf         text = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_json_writer_init(&w, &text, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_key(&w, HFSB_LIT("command"));
    hfsb_json_put_str(&w, hfsb_cstr(command ? command : "true"));
    hfsb_json_put_end(&w);
    if (hfsb_json_writer_finish(&w, NULL) != HFSB_OK) return false;
    return with_checkpoints(root, store, "bash", text.ptr);
}

int main(int argc, char **argv) {
    static char text[SIZE];
    hfsb_err    err;
    if (argc != 4) return 2;
    if (strcmp(argv[1], "bash") == 0) return !run_command(argv[2], argv[3]);
    if (strcmp(argv[1], "undo") == 0)
        return !with_checkpoints(argv[2], argv[3], "undo", "{}");
    memset(text, argv[3][0], sizeof text);
    if (strcmp(argv[1], "edit") == 0) return !edit(argv[2], argv[3][0]);
    if (strcmp(argv[1], "tear") == 0) return !tear(argv[2], text);
    if (hfsb_file_write(NULL, hfsb_cstr(argv[2]),
                        hfsb_str_make(text, sizeof text), NULL, NULL,
                        &err) == HFSB_OK)
        return 0;
    printf("%s\n", err.msg);
    return 1;
}
