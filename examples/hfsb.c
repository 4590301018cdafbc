/* hfsb.c - the command line of the library: its table of commands.

   Each command is one row here and one function in hfsb/. The options of a
   command are rows in its function; those of a tool come from the tool itself
   (hfsb/options.c), so a command that only calls a tool is a row with
   run_tool_command(). Help and completion are made from the same rows.

   Exit codes: 0 done, 1 refused or invalid (the reason is on stderr, or in
   "error" with --json), 2 wrong usage; `hfsb bash` exits as its command did.
   To build it compile this file with all of hfsb/, as `make` does. */
#define HFSB_IMPLEMENTATION
#define HFSB_HUB
#ifdef HFSB_WITH_CURL /* see hfsb/transport.c */
#include "../hfsb_http_curl.h"
#endif
#include "../hfsb_server.h" /* for hfsb/mcp.c */
#include "hfsb/cli.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define NO_TOOL NULL, {NULL}
#define GROUP_END {NULL, NULL, NULL, NULL, NO_TOOL, NULL}

static const cli_command commands[] = {
    {"bash", "[OPTIONS] COMMAND...", "run a command and print its output",
     "Run COMMAND (its words joined by blanks) with the shell, as the tool "
     "of a model does: no terminal, no standard input, output without escape "
     "sequences, progress bars in their last state. It returns when the "
     "shell exits; processes that it left running are listed on stderr. "
     "Ctrl-C ends the command and all processes it started, a second Ctrl-C "
     "only hfsb.\n"
     "Exit codes: that of the command, 128 + N after signal N, 124 after the "
     "timeout, 125 when the command could not run, 2 wrong usage.",
     "bash", {"command", "description", "background"}, run_bash},
    {"read", "[OPTIONS] FILE", "show lines of a file with their numbers",
     "Show a text file as the tool of a model does: the number of each line, "
     "a tab, the line. Lines are cut after 4,000 characters.",
     "read", {"path"}, run_tool_command},
    {"write", "[OPTIONS] FILE", "write standard input to a file",
     "Write standard input, any bytes of any length, to FILE. The file is "
     "replaced at the end of the input, whole or not at all. Missing "
     "directories are created; mode, owner and symbolic links stay. The "
     "content is not checked: `hfsb tool write` warns about syntax errors. "
     "With --on the tool of the sandbox writes: UTF-8 only (`hfsb cp` copies "
     "any bytes).",
     NO_TOOL, run_write},
    {"edit", "[OPTIONS] FILE", "replace text in a file, show the change",
     "Replace text in FILE and show the change. The text may differ in "
     "blanks, indentation and quotes, but must match only one place. Without "
     "--old and --new standard input is a JSON object with old_str, new_str "
     "and optionally mode, replace_all, line, exact; or with edits, an array "
     "of such objects, of which all or none are applied.",
     "edit", {"path", "old_str", "new_str"}, run_edit},
    {"grep", "[OPTIONS] PATTERN [PATH]", "search the lines of files",
     NULL, "grep", {"pattern", "path"}, run_tool_command},
    {"glob", "[OPTIONS] PATTERN [PATH]", "find files by name, newest first",
     NULL, "glob", {"pattern", "path"}, run_tool_command},
    {"list", "[OPTIONS] [PATH]", "list a folder",
     NULL, "list", {"path"}, run_tool_command},
    {"undo", "[OPTIONS] [CHECKPOINT]", "restore an earlier state of the files",
     "Take back what an agent did through `hfsb mcp --root DIR`, edits and "
     "commands alike: restore CHECKPOINT, a number or name that `hfsb "
     "checkpoints` lists, or without it the state before the last step. It "
     "can itself be undone: it prints how. Files that a person has changed "
     "are kept, or the undo is refused; --force restores them too.",
     "undo", {"to"}, run_history},
    {"changes", "[OPTIONS] [CHECKPOINT]", "show what has changed",
     "List the files that were changed, created or deleted since CHECKPOINT, "
     "or since the last session of `hfsb mcp` began, with diffs.",
     "changes", {"since"}, run_history},
    {"checkpoints", "[OPTIONS]", "list the states that undo can restore",
     "List the checkpoints of the current directory, newest first, with the "
     "tool or command that made each.",
     "checkpoints", {NULL}, run_history},
    {"tool", "TOOL [OPTIONS]", "call a tool: JSON in, JSON out",
     "Call a tool of `hfsb tools`. Its arguments are options, or a JSON "
     "object on standard input; its result is one line of JSON: success, "
     "output, error and the fields of the tool. Each call is on its own: a "
     "file need not be read before it is written, and no job outlives the "
     "call on this machine. `hfsb tool TOOL --help` lists the options of a "
     "tool.\n"
     "Exit codes: 0 success, 1 failure or wrong arguments (see the result), "
     "2 wrong usage, 128 + N when signal N ended it.",
     NO_TOOL, run_tool},
    {"tools", "[OPTIONS]", "print the definitions of the tools",
     "Print the definitions of all tools, as a model gets them, as a JSON "
     "array.",
     NO_TOOL, run_tools},
    {"mcp", "[OPTIONS]", "serve MCP to Claude Code, Cursor ...",
     "Serve the tools of this machine to a host of the Model Context "
     "Protocol, on standard input and output. The host starts it:\n"
     "    claude mcp add hfsb -- hfsb mcp --root .\n"
     "    codex mcp add hfsb -- hfsb mcp --root .\n"
     "    gemini mcp add hfsb hfsb mcp --root .\n"
     "Relative paths begin in the current directory, which hosts set to that "
     "of the project. At the end of its input it kills what its commands "
     "left running, and exits. It does not use the sandbox of $HFSB_SANDBOX, "
     "and refuses to start when that is set, except with --sandbox-tools.\n"
     "Exit codes: 0 after the end of input or a signal, 1 when it could not "
     "serve, 2 wrong usage.",
     NO_TOOL, run_mcp},
    {"exec-server", "[OPTIONS]", "run the commands of Codex",
     "Serve Codex as its exec-server, on standard input and output: its "
     "commands run here, and its patches change files here. Codex starts it, "
     "when $CODEX_HOME/environments.toml (~/.codex) says so:\n"
     "    default = \"hfsb\"\n"
     "    [[environments]]\n"
     "    id = \"hfsb\"\n"
     "    program = \"/usr/bin/hfsb\"\n"
     "    args = [\"exec-server\", \"--root\", \"/work\"]\n"
     "At the end of its input it kills what its commands left running, and "
     "exits. hfsb-server --api codex does the same over a network.\n"
     "Exit codes: 0 after the end of input or a signal, 1 when it could not "
     "serve, 2 wrong usage.",
     NO_TOOL, run_exec_server},
    GROUP_END,
    {"create", "[OPTIONS]", "create a sandbox on the Hugging Face Hub",
     "Create a private Space that runs hfsb-server, or with --image a job "
     "that does, wait until it answers, and print its id. Its address and token are kept in "
     "$XDG_STATE_HOME/hfsb/sandboxes.json (~/.local/state), which only you "
     "can read. Its hardware is billed until it is paused, asleep or "
     "deleted. If anything fails, or Ctrl-C ends it, the Space is deleted "
     "or the job cancelled. A job starts in seconds and runs any image with "
     "/bin/sh; hfsb-server is kept in your private model OWNER/hfsb-server. "
     "It needs a token of the Hub: HF_TOKEN, or the file that `hf auth "
     "login` writes. owner, hardware, template and sleep_time can also be "
     "set in $XDG_CONFIG_HOME/hfsb/config.json (~/.config).",
     NO_TOOL, run_create},
    {"connect", "[OPTIONS] SANDBOX", "record a sandbox that exists",
     "Check that the server of SANDBOX, a Space OWNER/NAME, a job "
     "jobs/OWNER/ID or a URL such as http://127.0.0.1:7860, answers, and "
     "record it with its token for the other commands. The token is that of "
     "SANDBOX_API_TOKEN, or the one recorded before; that of a job follows "
     "from the Hub's token with which it was created.",
     NO_TOOL, run_connect},
    {"ls", "[OPTIONS]", "list your sandboxes",
     "List the recorded sandboxes, and those on the Hub that hfsb created "
     "for an owner: name, stage, hardware, and whether `hfsb create` made it "
     "here or `hfsb connect` recorded it.",
     NO_TOOL, run_ls},
    {"status", "[OPTIONS] [SANDBOX]", "show the state of a sandbox",
     "Show the stage of a Space (RUNNING, BUILDING, PAUSED, SLEEPING ...) or "
     "job, its hardware and sleep time; for a URL, whether it answers. Without "
     "SANDBOX it is $HFSB_SANDBOX.",
     NO_TOOL, run_status},
    {"pause", "[OPTIONS] SANDBOX", "stop a sandbox for a while",
     "Stop the Space. It costs nothing until `hfsb restart`, and loses the "
     "content of its disk.",
     NO_TOOL, run_pause},
    {"restart", "[OPTIONS] SANDBOX", "restart a sandbox",
     "Restart a Space, running or paused, and wait until its server answers.",
     NO_TOOL, run_restart},
    {"delete", "[OPTIONS] SANDBOX", "delete a sandbox",
     "Delete a Space that `hfsb create` made here, or cancel a job that it "
     "made anywhere, and remove the record. For a URL only the record is "
     "removed.",
     NO_TOOL, run_delete},
    {"sweep", "[OPTIONS]", "find sandboxes that are no longer used",
     "List the Spaces of an owner that hfsb created and that have not "
     "changed for days, and the jobs that it started as long ago, for "
     "example because a program crashed. Deletes them only with --delete.",
     NO_TOOL, run_sweep},
    {"cp", "[OPTIONS] FROM TO", "copy a file to a sandbox, or from it",
     "Copy one file of any size, byte for byte, with its mode. One of FROM "
     "and TO is on a sandbox: SANDBOX:PATH, where SANDBOX is an id or a URL, "
     "or :PATH with --on or $HFSB_SANDBOX. Relative paths there begin in its "
     "work directory. A TO that ends in \"/\" is a directory. The copy "
     "appears whole or not at all; a lost connection is resumed. On a "
     "terminal a progress bar is shown.\n"
     "    hfsb cp data.csv alice/sandbox-1a2b3c4d:data.csv\n"
     "    hfsb cp http://127.0.0.1:7860:/tmp/log .",
     NO_TOOL, run_cp},
    {"job", "SUBCOMMAND ...", "run and manage jobs on the Hub",
     "Jobs on the Hugging Face Hub. Options of a subcommand: hfsb job run "
     "--help",
     NO_TOOL, NULL},
    {"job run", "[OPTIONS] SCRIPT [ARGUMENT...]", "start a job",
     "Start a job on the Hub and print its log. Exits with 0 when the job "
     "completed, with 1 when it did not. Ctrl-C ends the printing, not the "
     "job. SCRIPT is a file (its text is sent), a URL, or Python code, run "
     "with uv; anything else is a command with the words ARGUMENT... (`hfsb "
     "classify` shows which of these a text is.)",
     NO_TOOL, run_job_run},
    {"job ls", "[OPTIONS]", "list jobs",
     "List the jobs: id, stage, hardware, time of creation, command.",
     NO_TOOL, run_job_ls},
    {"job logs", "[OPTIONS] JOB", "print the log of a job",
     "Print the log of a job (ID, or NAMESPACE/ID).",
     NO_TOOL, run_job_logs},
    {"job inspect", "[OPTIONS] JOB", "show all details of a job",
     "Print the job (ID, or NAMESPACE/ID) as the Hub describes it.",
     NO_TOOL, run_job_inspect},
    {"job cancel", "[OPTIONS] JOB", "cancel a job",
     "Cancel the job (ID, or NAMESPACE/ID).",
     NO_TOOL, run_job_cancel},
    GROUP_END,
    {"patch", "[OPTIONS] [FILE]", "apply a patch or a diff",
     "Apply a patch from FILE or standard input: the *** Begin Patch format, "
     "a unified or git diff, or SEARCH/REPLACE blocks after their path. All "
     "changes are computed before the first file is written. "
     "Paths are relative to the current directory, in a sandbox to its work "
     "directory.",
     NO_TOOL, run_patch},
    {"json", "[OPTIONS] [FILE]", "check and reformat JSON",
     "Check JSON from FILE or standard input and print it again. Exits with "
     "1 and the position of the error when it is invalid.",
     NO_TOOL, run_json},
    {"strip", "[OPTIONS]", "clean the output of a command",
     "Copy standard input to standard output without escape sequences, with "
     "rewritten lines (progress bars) as a terminal leaves them.",
     NO_TOOL, run_strip},
    {"truncate", "[OPTIONS]", "cut the middle out of a long text",
     "Copy standard input to standard output. Of a text that is too long the "
     "first quarter and the last three quarters of the limit are printed.",
     NO_TOOL, run_truncate},
    {"classify", "[OPTIONS] STRING", "classify the script of a job",
     "Print what the script of a job is: path, url, inline or command. Put "
     "\"--\" before a STRING that may begin with \"-\".",
     NO_TOOL, run_classify},
    {"completion", "bash|zsh|fish", "print a script for tab completion",
     "Print the completion script of a shell. In ~/.bashrc or ~/.zshrc:\n"
     "    source <(hfsb completion bash)\n"
     "For fish: hfsb completion fish > ~/.config/fish/completions/hfsb.fish",
     NO_TOOL, run_completion}};
/* clang-format on */

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

/* ---- finding ---- */

const cli_command *find_command(char **words, int count, int *used) {
    const cli_command *found = NULL;
    size_t             i;
    *used = 0;
    for (i = 0; count > 0 && i < COMMAND_COUNT; i++) {
        const char *name = commands[i].name;
        size_t      len = strlen(words[0]);
        if (!name || strncmp(name, words[0], len) != 0) continue;
        if (!name[len] || (name[len] == ' ' && count > 1 &&
                           strcmp(name + len + 1, words[1]) == 0)) {
            found = &commands[i];
            *used = name[len] ? 2 : 1;
        }
    }
    return found;
}

/* The name to list for a subcommand of the family, or with NULL for a command
   at the top; else NULL. */
static const char *listed_name(const cli_command *c, const char *family) {
    size_t len = family ? strlen(family) : 0;
    if (!c->name) return NULL;
    if (!family) return strchr(c->name, ' ') ? NULL : c->name;
    if (strncmp(c->name, family, len) != 0 || c->name[len] != ' ') return NULL;
    return c->name + len + 1;
}

void print_commands(const char *family) {
    size_t i;
    for (i = 0; i < COMMAND_COUNT; i++) {
        const char *name = listed_name(&commands[i], family);
        if (name) printf("%s\t%s\n", name, commands[i].summary);
    }
}

/* ---- help ---- */

static void list_commands(const char *family) {
    int    used, width = family ? 49 : 40;
    size_t i;
    for (i = 0; i < COMMAND_COUNT; i++) {
        const cli_command *c = &commands[i];
        if (!c->name && !family) printf("\n");
        if (!listed_name(c, family)) continue;
        used = printf("    hfsb %s %s", c->name, c->words);
        printf("%*s%s\n", used < width ? width - used : 1, "", c->summary);
    }
}

static int print_overview(void) {
    printf("hfsb %s - run commands, read, write and edit files the way an "
           "agent needs it\n\n",
           HFSB_VERSION);
    list_commands(NULL);
    printf("\nCommands with --on SANDBOX work on this machine, or with it or "
           "$HFSB_SANDBOX on\na sandbox: OWNER/NAME of a Space, "
           "jobs/OWNER/ID of a job, or a URL.\n"
           "What they do on this machine is added to the file "
           "$HFSB_JOURNAL, if set.\n"
           "Options: hfsb COMMAND --help. Exit codes: 0 done, 1 refused, "
           "2 wrong usage.\n");
    return fflush(stdout) == 0 ? DONE : REFUSED;
}

/* A command that has only subcommands. */
static int run_family(args *a) {
    const option none[] = {OPTIONS_END};
    if (a->next == a->count) return usage(a, "which subcommand?");
    if (a->list[a->next][0] != '-')
        return usage(a, "unknown subcommand %s", a->list[a->next]);
    if (!take_options(a, none) && a->status == DONE)
        list_commands(a->command->name);
    return a->status;
}

static int run_words(char **words, int count, bool help) {
    static char  help_word[] = "--help";
    static char *help_list[] = {help_word};
    args         a = HFSB_INIT;
    int          code;
    a.command = find_command(words, count, &a.next);
    if (!a.command) {
        fprintf(stderr, "hfsb: unknown command %s\nTry: hfsb --help\n",
                words[0]);
        return USAGE;
    }
    a.list = help ? help_list : words;
    a.count = help ? 1 : count;
    if (help) a.next = 0;
    code = a.command->run ? a.command->run(&a) : run_family(&a);
    hfsb_json_free(&a.definition);
    return code;
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : NULL;
    bool        help;
    if (!name) {
        fprintf(stderr, "hfsb: which command?\nTry: hfsb --help\n");
        return USAGE;
    }
    if (strcmp(name, "--version") == 0) {
        printf("hfsb %s\n", HFSB_VERSION);
        return fflush(stdout) == 0 ? DONE : REFUSED;
    }
    help = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
           strcmp(name, "help") == 0;
    if (help && argc == 2) return print_overview();
    return run_words(argv + (help ? 2 : 1), argc - (help ? 2 : 1), help);
}
