/* hfsb.c - the command line: what the library does, for people and scripts.

   The commands are in hfsb/, a family a file. Exit codes: 0 done, 1 refused or
   invalid (the reason is on stderr, or in "error" with --json), 2 the command
   was not understood; `hfsb bash` passes on the command's own. To build it
   compile this file with all of hfsb/, which `make` does. */
#define HFSB_IMPLEMENTATION
#ifdef HFSB_WITH_CURL /* see hfsb/transport.c */
#include "../hfsb_http_curl.h"
#endif
#include "../hfsb_server.h" /* for hfsb/mcp.c */
#include "hfsb/cli.h"

#include <stdio.h>
#include <string.h>

/* NULL parts the groups. */
/* clang-format off */
static const cli_command *const commands[] = {
    &command_bash, &command_read, &command_write, &command_edit,
    &command_tool, &command_tools, &command_mcp,
    NULL,
    &command_create, &command_connect, &command_ls, &command_status,
    &command_pause, &command_restart, &command_delete, &command_sweep,
    &command_cp, &command_job,
    NULL,
    &command_patch, &command_json, &command_strip, &command_truncate,
    &command_classify};
/* clang-format on */

static const cli_command *find_command(const char *name) {
    size_t i;
    for (i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i] && strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static void list_commands(void) {
    size_t i;
    printf("hfsb %s - run commands, read, write and edit files the way an "
           "agent needs it\n\n",
           HFSB_VERSION);
    for (i = 0; i < sizeof commands / sizeof *commands; i++) {
        const cli_command *c = commands[i];
        int used = c ? printf("    hfsb %s %s", c->name, c->words) : 0;
        if (!c) printf("\n");
        else printf("%*s%s\n", used < 37 ? 37 - used : 1, "", c->summary);
    }
    printf(
        "\nbash, read, write, edit, patch and tool work on this machine, or "
        "with --on\nSANDBOX or $HFSB_SANDBOX on a sandbox: OWNER/NAME of a "
        "Space, or a URL.\n"
        "Options and details of one: hfsb COMMAND --help\n"
        "Exit codes: 0 done, 1 refused or invalid, 2 not understood.\n");
}

static int help(const char *name) {
    const cli_command *c = name ? find_command(name) : NULL;
    if (name && !c) {
        fprintf(stderr, "hfsb: unknown command %s\nTry: hfsb --help\n", name);
        return USAGE;
    }
    if (c) print_help(c);
    else list_commands();
    return fflush(stdout) == 0 ? DONE : REFUSED;
}

int main(int argc, char **argv) {
    args        a = HFSB_INIT;
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        fprintf(stderr, "hfsb: which command?\nTry: hfsb --help\n");
        return USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
        strcmp(name, "help") == 0)
        return help(argc > 2 ? argv[2] : NULL);
    if (strcmp(name, "--version") == 0) {
        printf("hfsb %s\n", HFSB_VERSION);
        return fflush(stdout) == 0 ? DONE : REFUSED;
    }
    a.command = find_command(name);
    if (!a.command) return help(name);
    a.count = argc;
    a.list = argv;
    a.next = 2;
    return a.command->run(&a);
}
