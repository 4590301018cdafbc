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
#define GROUP(title) {NULL, NULL, title, NULL, NO_TOOL, NULL}

static const cli_command commands[] = {
    GROUP("Here, or in a sandbox with --on"),
    {"bash", "[OPTIONS] COMMAND", "run a command and print its output",
     "Run COMMAND, a single word, with the shell, as the model's bash tool "
     "does: no terminal, no standard input, output without escape sequences, "
     "progress bars in their final state (on a terminal as they move). hfsb "
     "returns when the shell exits; processes left running are listed on "
     "stderr. Ctrl-C ends the command and all processes that it started; a "
     "second Ctrl-C ends only hfsb.\n"
     "Exit codes: that of the command, 128 + N after signal N, 124 after the "
     "timeout, 125 if the command could not be run, 2 wrong usage.",
     "bash", {"command", "description", "background"}, run_bash},
    {"exec", "[OPTIONS] -- COMMAND...",
     "run a program with raw input and output",
     "Run a program with these words as its arguments, without a shell, on "
     "this machine or, with --on, in a sandbox. It reads the standard input "
     "of hfsb, and its output is passed on as it is written, byte for byte: "
     "progress bars move, and pipes can carry binary data.\n"
     "    tar c src | hfsb exec --on alice/sandbox-1a2b3c4d -- tar x\n"
     "    hfsb exec --on . -- cat model.bin > model.bin\n"
     "Ctrl-C or a lost connection ends the program and all processes that it "
     "started. The sandbox must run hfsb-server; for other servers use `hfsb "
     "bash`.\n"
     "Exit codes: that of the program, 128 + N after signal N, 124 after the "
     "timeout, 127 if it was not found, 126 if it cannot be executed, 125 if "
     "it could not be run for another reason, 2 wrong usage.",
     NO_TOOL, run_exec},
    {"read", "[OPTIONS] FILE", "show a file with line numbers",
     "Print a text file as the model's read tool does: for each line its "
     "number, a tab and the line. Lines are cut after 4,000 characters.",
     "read", {"path"}, run_tool_command},
    {"write", "[OPTIONS] FILE", "write standard input to a file",
     "Write standard input, of any size and content, to FILE. FILE is "
     "replaced when the input ends, completely or not at all. Missing "
     "directories are created; mode, owner and symbolic links are kept. The "
     "content is not checked: `hfsb tool write` warns about syntax errors. "
     "With --on the sandbox's write tool is used, which takes only UTF-8 "
     "(`hfsb cp` copies any bytes).",
     NO_TOOL, run_write},
    {"edit", "[OPTIONS] FILE", "replace text in a file, show the change",
     "Replace text in FILE and show the change. The text may differ from FILE "
     "in blanks, indentation and quotes, but must match in only one place. "
     "Without --old and --new, standard input is a JSON object: either "
     "old_str and new_str, optionally with mode, replace_all, line and exact, "
     "or edits, an array of such objects, which are all applied or none.",
     "edit", {"path", "old_str", "new_str"}, run_edit},
    {"grep", "[OPTIONS] PATTERN [PATH]",
     "search files for a regular expression",
     "Search text files for lines that match a POSIX extended regular "
     "expression (\\w \\d \\s \\b work too). Skips .git, what .gitignore "
     "names, and binary files.\n"
     "Exit codes: 0 found, 1 no match or refused (with --json only refused), "
     "2 wrong usage.",
     "grep", {"pattern", "path"}, run_tool_command},
    {"glob", "[OPTIONS] PATTERN [PATH]", "find files by name, newest first",
     "Find files by a pattern, newest first. Quote it, or the shell replaces "
     "it by the names that match. A pattern without a slash is for names in "
     "any folder: '*.py'; with one it begins at PATH: 'src/**/*.{c,h}'. Skips "
     ".git and what .gitignore names.\n"
     "Exit codes: 0 found, 1 no match or refused (with --json only refused), "
     "2 wrong usage.",
     "glob", {"pattern", "path"}, run_tool_command},
    {"list", "[OPTIONS] [PATH]", "list a folder",
     NULL, "list", {"path"}, run_tool_command},
    {"undo", "[OPTIONS] [CHECKPOINT]", "restore an earlier state of the files",
     "Revert what an agent did through `hfsb mcp --root DIR`, by edits or by "
     "commands: restore CHECKPOINT, which is a number or name (in quotes) "
     "that `hfsb checkpoints` lists, or \"first\"; without it, the state "
     "before the last step. With --on, revert what was done through an "
     "`hfsb-server --checkpoints on`. An undo can itself be undone; it prints "
     "how. Files that only a person has changed are kept. If a tool may have "
     "changed such a file too, nothing is restored. --force overwrites them "
     "in both cases.",
     "undo", {"to"}, run_history},
    {"changes", "[OPTIONS] [CHECKPOINT]",
     "show what changed since a checkpoint",
     "List the files changed, created or deleted since CHECKPOINT, with "
     "diffs. Without CHECKPOINT: since the last session of `hfsb mcp` began.",
     "changes", {"since"}, run_history},
    {"checkpoints", "[OPTIONS]", "list the states that undo can restore",
     "List the checkpoints of the current directory, newest first, each with "
     "the tool or command that made it.",
     "checkpoints", {NULL}, run_history},
    {"tool", "TOOL [OPTIONS]", "call a tool: JSON in, JSON out",
     "Call one of the tools that `hfsb tools` lists. Its arguments are "
     "options, or a JSON object on standard input (empty input is an empty "
     "object). Its result is one line of JSON: success, output, error and the "
     "fields of the tool. Each call stands alone: a file need not be read "
     "before it is written, and on this machine no job outlives the call. "
     "`hfsb tool TOOL --help` lists the options of a tool.\n"
     "Exit codes: 0 success, 1 failure or wrong arguments (see the result), 2 "
     "wrong usage, 128 + N if signal N ended it.",
     NO_TOOL, run_tool},
    {"tools", "[OPTIONS]", "print the definitions of the tools",
     "Print the definitions of all tools as a JSON array, as a model receives "
     "them.",
     NO_TOOL, run_tools},
    {"mcp", "[OPTIONS]", "serve MCP to Claude Code, Cursor ...",
     "Serve the tools of this machine or, with --on, of a sandbox to an MCP "
     "host (Model Context Protocol), on standard input and output. The host "
     "starts it:\n"
     "    claude mcp add hfsb -- hfsb mcp --root .\n"
     "    codex mcp add hfsb -- hfsb mcp --root .\n"
     "    gemini mcp add hfsb hfsb mcp --root .\n"
     "    claude mcp add gpu1 -- hfsb mcp --on ssh:gpu1\n"
     "Relative paths start in the current directory, which hosts set to that "
     "of the project. At the end of input hfsb kills what its commands left "
     "running, and exits. It does not use $HFSB_SANDBOX, and if that is set "
     "refuses to start without --on or --sandbox-tools.\n"
     "Exit codes: 0 after the end of input or a signal, 1 if it could not "
     "serve, 2 wrong usage.",
     NO_TOOL, run_mcp},
    {"exec-server", "[OPTIONS]", "run commands for Codex",
     "Serve Codex as its exec-server, on standard input and output: its "
     "commands run, and its patches change files, on this machine or, with "
     "--on, in a sandbox. Codex starts it if $CODEX_HOME/environments.toml "
     "(~/.codex) contains:\n"
     "    default = \"hfsb\"\n"
     "    [[environments]]\n"
     "    id = \"hfsb\"\n"
     "    program = \"/usr/bin/hfsb\"\n"
     "    args = [\"exec-server\", \"--root\", \"/work\"]\n"
     "At the end of input hfsb kills what its commands left running, and "
     "exits. With --on, SANDBOX is ssh:HOST or the like, or a URL, Space or "
     "job whose hfsb-server was started with --api codex, as `hfsb create` "
     "does. A broken connection is reopened, and commands continue.\n"
     "Exit codes: 0 after the end of input or a signal, 1 if it could not "
     "serve, 2 wrong usage.",
     NO_TOOL, run_exec_server},
    GROUP("Sandboxes"),
    {"create", "[OPTIONS]", "create a sandbox on the Hugging Face Hub",
     "Create a private Space, or with --image a job, that runs hfsb-server; "
     "wait until it answers, and print its id. Its address and token are kept "
     "in $XDG_STATE_HOME/hfsb/sandboxes.json (~/.local/state), which only you "
     "can read, and it becomes the default sandbox (`hfsb use`). Its hardware "
     "is billed until it is paused, asleep or deleted. After a failure or "
     "Ctrl-C the Space is deleted or the job cancelled; the log of a failure "
     "is kept in $XDG_STATE_HOME/hfsb/logs, and with --keep so is the Space "
     "or job. A job starts in seconds and runs any image with /bin/sh; "
     "hfsb-server is kept in your private model OWNER/hfsb-server. A Hub "
     "token is needed: HF_TOKEN, or the file that `hf auth login` writes. "
     "Defaults for owner, hardware, template and sleep_time can be set in "
     "$XDG_CONFIG_HOME/hfsb/config.json (~/.config).",
     NO_TOOL, run_create},
    {"connect", "[OPTIONS] SANDBOX", "record an existing sandbox",
     "Check that the server of SANDBOX answers, and record it with its token "
     "for the other commands. SANDBOX is a Space OWNER/NAME, a job "
     "jobs/OWNER/ID, or a URL such as http://127.0.0.1:7860. The token is "
     "$SANDBOX_API_TOKEN, or else the recorded one; that of a job is derived "
     "from the Hub token that created the job. The address of a page, "
     "http://127.0.0.1:7860/#TOKEN, has the token in it; other users of this "
     "machine may see it among the arguments while hfsb runs.",
     NO_TOOL, run_connect},
    {"use", "[OPTIONS] [SANDBOX]", "set or show the default sandbox",
     "Make SANDBOX the default, as `hfsb create` does with a new one; without "
     "SANDBOX print the default. A SANDBOX that is not recorded must exist: "
     "the Hub is asked, or the URL must answer. Commands about sandboxes use "
     "the default if they name none: status, open, logs, events, shell, "
     "pause, restart, and cp with :PATH. Commands that also work on this "
     "machine, such as bash, edit and exec, use it only with --on . or "
     "HFSB_SANDBOX=.; delete always needs a name, or \".\" for the default.",
     NO_TOOL, run_use},
    {"shell", "[OPTIONS] [SANDBOX]", "open a shell in a sandbox",
     "Open the shell of a sandbox in this terminal. It follows changes of the "
     "window size, and all keys are sent there, Ctrl-C included. `exit` or "
     "Ctrl-D ends it, and hfsb exits with its exit code. If standard input is "
     "not a terminal, the shell reads its commands from it. Without SANDBOX: "
     "$HFSB_SANDBOX, or the default sandbox.",
     NO_TOOL, run_shell},
    {"ls", "[OPTIONS]", "list your sandboxes",
     "List the recorded sandboxes, and those on the Hub that hfsb created for "
     "an owner: name, stage, hardware, and whether it was created here, "
     "recorded by `hfsb connect`, or is not recorded here.",
     NO_TOOL, run_ls},
    {"status", "[OPTIONS] [SANDBOX]", "show the state of a sandbox",
     "Show the stage of a Space or job (RUNNING, BUILDING, PAUSED, SLEEPING "
     "...), its hardware and sleep time; for a URL whether it answers; for "
     "ssh:HOST and the like also whether commands are confined there. Without "
     "SANDBOX: $HFSB_SANDBOX, or the default sandbox.",
     NO_TOOL, run_status},
    {"open", "[OPTIONS] [SANDBOX]", "open the page of a sandbox in a browser",
     "Print the URL of the page where a person can watch and steer the "
     "sandbox, with its token after the #. On a terminal also open it in a "
     "browser, if there is one. Without SANDBOX: $HFSB_SANDBOX, or the "
     "default sandbox.",
     NO_TOOL, run_open},
    {"logs", "[OPTIONS] [SANDBOX]", "print the log of a sandbox",
     "Print what the server of a Space or job has written, or with --build "
     "the build log of a Space. Without SANDBOX: $HFSB_SANDBOX, or the "
     "default sandbox. For the log of other jobs see `hfsb job logs`.",
     NO_TOOL, run_logs},
    {"events", "[OPTIONS] [SANDBOX]", "print the journal of tool calls",
     "Print the journal of a sandbox: for each tool call its time, its "
     "caller, the command or path, and how it ended. Without SANDBOX: "
     "$HFSB_SANDBOX, else the file $HFSB_JOURNAL of this machine, else the "
     "default sandbox.",
     NO_TOOL, run_events},
    {"hardware", "[OPTIONS]", "list hardware and its prices",
     "List the values of --hardware for create, or with --jobs for job run: "
     "name, CPU, memory, accelerator, price.",
     NO_TOOL, run_hardware},
    {"pause", "[OPTIONS] [SANDBOX]", "stop a sandbox until it is restarted",
     "Stop a Space. It costs nothing until `hfsb restart`, but the content of "
     "its disk is lost. Without SANDBOX: $HFSB_SANDBOX, or the default "
     "sandbox.",
     NO_TOOL, run_pause},
    {"restart", "[OPTIONS] [SANDBOX]", "restart a sandbox",
     "Restart a Space, running or paused, and wait until its server answers. "
     "Without SANDBOX: $HFSB_SANDBOX, or the default sandbox.",
     NO_TOOL, run_restart},
    {"delete", "[OPTIONS] SANDBOX...", "delete sandboxes",
     "Delete a Space that `hfsb create` made here, or cancel a job that it "
     "made anywhere, and remove the record. For a URL only the record is "
     "removed. If one fails, hfsb continues with the next.",
     NO_TOOL, run_delete},
    {"sweep", "[OPTIONS]", "find sandboxes no longer in use",
     "List the Spaces of an owner that hfsb created and that have not changed "
     "for days, and the jobs that it started that long ago: what a crashed "
     "program left behind, for example. Only --delete deletes them.",
     NO_TOOL, run_sweep},
    {"forget", "[OPTIONS] [SANDBOX]", "remove hfsb-server from a machine",
     "Remove the copies of hfsb-server that --on ssh:HOST and the like left "
     "on another machine, in $XDG_DATA_HOME/hfsb (~/.local/share/hfsb) or "
     "$TMPDIR/hfsb-UID. SANDBOX is ssh:HOST, docker:CONTAINER, "
     "podman:CONTAINER, kubectl:NAMESPACE/POD, slurm:OPTIONS or "
     "exec:COMMAND.",
     NO_TOOL, run_forget},
    {"each", "[OPTIONS] COMMAND...", "run a command on many sandboxes",
     "Run COMMAND with the bash tool on every sandbox of --on and --from, "
     "several at a time, and print each line of output after the name of its "
     "sandbox. A single word is a command for the shell; several words are a "
     "program and its arguments, passed on unchanged.\n"
     "    hfsb each --on ssh:node1 --on ssh:node2 -- uptime\n"
     "    hfsb each --on ssh:node1 -- 'df -P / | tail -1'\n"
     "    hfsb each --on ssh:node1 -- grep 'two words' log.txt\n"
     "Exit codes: the highest of all commands, as with `hfsb bash`; 2 wrong "
     "usage; 128 + N if signal N ended hfsb.",
     NO_TOOL, run_each},
    {"cp", "[OPTIONS] FROM... TO", "copy files to or from a sandbox",
     "Copy files of any size, byte for byte, with their modes; with -r "
     "directories too. One side, FROM... or TO, is in a sandbox: "
     "SANDBOX:PATH, where SANDBOX is an id, a URL, or ssh:HOST and the like; "
     "or :PATH for the sandbox of --on or $HFSB_SANDBOX, or the default one. "
     "A relative PATH starts in the working directory of the sandbox. TO is a "
     "directory to copy into if it ends in \"/\", if there are several files, "
     "or if it is an existing directory and FROM a file. With -r and a "
     "directory FROM, an existing TO in a sandbox is merged with the content "
     "of FROM; if TO ends in \"/\", or exists on this machine, FROM itself is "
     "copied into it. \"-\" is standard input or output. A file appears whole "
     "or not at all; a lost connection is resumed. Symlinks in a directory "
     "are copied as links; from a sandbox only those that stay inside the "
     "directory. A terminal shows a progress bar.\n"
     "    hfsb cp data.csv alice/sandbox-1a2b3c4d:data.csv\n"
     "    hfsb cp http://127.0.0.1:7860:/tmp/log .\n"
     "    hfsb cp -r src tests :app/\n"
     "    pg_dump shop | hfsb cp - :shop.sql",
     NO_TOOL, run_cp},
    {"job", "SUBCOMMAND ...", "run and manage jobs on the Hub",
     "Run and manage jobs on the Hugging Face Hub. Options of a subcommand: "
     "hfsb job run --help",
     NO_TOOL, NULL},
    {"job run", "[OPTIONS] SCRIPT [ARGUMENT...]", "start a job",
     "Start a job on the Hub and print its log. Exits with 0 if the job "
     "completed, else with 1. Ctrl-C stops the printing, not the job. SCRIPT "
     "is a file (its text is sent), a URL, or Python code, and is run with "
     "uv; anything else is a command, with ARGUMENT... as its arguments "
     "(`hfsb classify` shows which of these SCRIPT is).",
     NO_TOOL, run_job_run},
    {"job ls", "[OPTIONS]", "list jobs",
     "List the jobs: id, stage, hardware, time of creation, command.",
     NO_TOOL, run_job_ls},
    {"job logs", "[OPTIONS] JOB", "print the log of a job",
     "Print the log of a job (ID, NAMESPACE/ID or jobs/NAMESPACE/ID).",
     NO_TOOL, run_job_logs},
    {"job inspect", "[OPTIONS] JOB", "show all details of a job",
     "Print the job (ID, or NAMESPACE/ID) as the Hub describes it.",
     NO_TOOL, run_job_inspect},
    {"job cancel", "[OPTIONS] JOB", "cancel a job",
     "Cancel the job (ID, or NAMESPACE/ID).",
     NO_TOOL, run_job_cancel},
    {"job schedule", "SUBCOMMAND ...", "manage scheduled jobs",
     "Jobs that the Hub starts repeatedly, created by `hfsb job run "
     "--schedule`. Every run costs money until the scheduled job is deleted "
     "or suspended.",
     NO_TOOL, NULL},
    {"job schedule ls", "[OPTIONS]", "list scheduled jobs",
     "List the scheduled jobs: id, schedule, active or suspended, hardware, "
     "command.",
     NO_TOOL, run_schedule_ls},
    {"job schedule inspect", "[OPTIONS] ID", "show a scheduled job in full",
     "Print the scheduled job (ID, or NAMESPACE/ID) as the Hub describes it.",
     NO_TOOL, run_schedule_inspect},
    {"job schedule suspend", "[OPTIONS] ID", "suspend a scheduled job",
     "Suspend the scheduled job (ID, or NAMESPACE/ID) until it is resumed.",
     NO_TOOL, run_schedule_suspend},
    {"job schedule resume", "[OPTIONS] ID", "resume a scheduled job",
     "Resume the suspended scheduled job (ID, or NAMESPACE/ID).",
     NO_TOOL, run_schedule_resume},
    {"job schedule run", "[OPTIONS] ID", "run a scheduled job now",
     "Start the scheduled job (ID, or NAMESPACE/ID) now, and print the id of "
     "the new job.",
     NO_TOOL, run_schedule_run},
    {"job schedule delete", "[OPTIONS] ID", "delete a scheduled job",
     "Delete the scheduled job (ID, or NAMESPACE/ID). Jobs that it has "
     "started continue.",
     NO_TOOL, run_schedule_delete},
    GROUP("Text, and hfsb itself"),
    {"patch", "[OPTIONS] [FILE]", "apply a patch or a diff",
     "Apply a patch from FILE or standard input: the *** Begin Patch format, "
     "a unified or git diff, or SEARCH/REPLACE blocks after their path. All "
     "changes are computed before the first file is written. Paths are "
     "relative to the current directory and must stay in it, unless --root "
     "names other directories; in a sandbox they are relative to its working "
     "directory.",
     NO_TOOL, run_patch},
    {"json", "[OPTIONS] [FILE]", "check and reformat JSON",
     "Check JSON from FILE or standard input and print it. If it is invalid, "
     "print the position of the error and exit with 1.",
     NO_TOOL, run_json},
    {"strip", "[OPTIONS]", "clean up terminal output",
     "Copy standard input to standard output without escape sequences. Lines "
     "that were rewritten (progress bars) appear as a terminal leaves them.",
     NO_TOOL, run_strip},
    {"truncate", "[OPTIONS]", "cut the middle out of a long text",
     "Copy standard input to standard output. Of a text longer than the "
     "limit, only the beginning, a quarter of the limit, and the end, three "
     "quarters of it, are printed.",
     NO_TOOL, run_truncate},
    {"classify", "[OPTIONS] STRING", "classify the script of a job",
     "Print what `hfsb job run` takes a SCRIPT for: path, url, inline or "
     "command. Put \"--\" before a STRING that may begin with \"-\".",
     NO_TOOL, run_classify},
    {"completion", "bash|zsh|fish", "print a shell completion script",
     "Print the completion script of a shell. In ~/.bashrc or ~/.zshrc:\n"
     "    source <(hfsb completion bash)\n"
     "For fish: hfsb completion fish > ~/.config/fish/completions/hfsb.fish",
     NO_TOOL, run_completion},
    {"man", "", "print the manual page hfsb(1)",
     "Print the manual page in mdoc, made from the same table as --help: hfsb "
     "man | mandoc | less. `make install` installs it.",
     NO_TOOL, run_man}};
/* clang-format on */

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

/* ---- finding ---- */

/* How many words the name has; 0 if `words` do not begin with them. */
static int match_name(const char *name, char **words, int count) {
    int n;
    for (n = 0; n < count; n++) {
        size_t len = strlen(words[n]);
        if (!len || strncmp(name, words[n], len) != 0) return 0;
        name += len;
        if (!*name) return n + 1;
        if (*name++ != ' ') return 0;
    }
    return 0;
}

/* Command names of hf, docker and gh with ours for them, by the command that
   they are a subcommand of. */
typedef struct alias {
    const char *family; /* NULL: none */
    char        word[12], name[12];
} alias;

static void replace_aliases(char **words, int count) {
    static alias list[] = {{NULL, "ps", "ls"},
                           {NULL, "rm", "delete"},
                           {NULL, "jobs", "job"},
                           {"job", "ps", "ls"},
                           {"job", "list", "ls"},
                           {"job", "stop", "cancel"},
                           {"job", "kill", "cancel"},
                           {"job", "scheduled", "schedule"},
                           {"schedule", "ps", "ls"},
                           {"schedule", "list", "ls"}};
    const char  *family = NULL;
    size_t       k;
    int          i;
    for (i = 0; i < count && i < 3; family = words[i++]) {
        if (i == 2 && strcmp(words[0], "job") != 0) return;
        for (k = 0; k < sizeof list / sizeof *list; k++)
            if (strcmp(words[i], list[k].word) == 0 &&
                (family && list[k].family
                     ? strcmp(family, list[k].family) == 0
                     : !family && !list[k].family))
                words[i] = list[k].name;
    }
}

const cli_command *find_command(char **words, int count, int *used) {
    const cli_command *found = NULL;
    size_t             i;
    *used = 0;
    replace_aliases(words, count);
    for (i = 0; i < COMMAND_COUNT; i++) {
        int n = commands[i].name ? match_name(commands[i].name, words, count)
                                 : 0;
        if (n > *used) {
            found = &commands[i];
            *used = n;
        }
    }
    return found;
}

/* The name to list for a subcommand of the family, or for a top-level command
   if family is NULL; else NULL. */
static const char *listed_name(const cli_command *c, const char *family) {
    size_t len = family ? strlen(family) : 0;
    if (!c->name) return NULL;
    if (!family) return strchr(c->name, ' ') ? NULL : c->name;
    if (strncmp(c->name, family, len) != 0 || c->name[len] != ' ' ||
        strchr(c->name + len + 1, ' '))
        return NULL;
    return c->name + len + 1;
}

void print_commands(const char *family) {
    size_t i;
    for (i = 0; i < COMMAND_COUNT; i++) {
        const char *name = listed_name(&commands[i], family);
        if (name) printf("%s\t%s\n", name, commands[i].summary);
    }
}

void each_command(void (*fn)(void *user, const cli_command *c), void *user) {
    size_t i;
    for (i = 0; i < COMMAND_COUNT; i++) fn(user, &commands[i]);
}

/* Prints the command closest to the word, or for what others call it, if there
   is one. */
static void print_nearest(const char *family, const char *word) {
    static const char *const others[][3] = {
        {"", "find", "glob"},         {"", "cat", "read"},
        {"", "search", "grep"},       {"", "version", "--version"},
        {"", "run", "exec"},          {"", "ssh", "shell"},
        {"", "attach", "shell"},      {"", "stop", "pause"},
        {"", "start", "restart"},     {"", "kill", "delete"},
        {"", "inspect", "status"},    {"", "upload", "cp"},
        {"", "download", "cp"},       {"job", "hardware", "hardware --jobs"}};
    suggestion s;
    size_t     i;
    for (i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(family ? family : "", others[i][0]) == 0 &&
            strcmp(word, others[i][1]) == 0) {
            fprintf(stderr, "Did you mean: hfsb %s\n", others[i][2]);
            return;
        }
    suggest_init(&s, word, strlen(word));
    for (i = 0; i < COMMAND_COUNT; i++)
        if (listed_name(&commands[i], family))
            suggest_try(&s, listed_name(&commands[i], family));
    if (s.name)
        fprintf(stderr, "Did you mean: hfsb %s%s%.*s\n", family ? family : "",
                family ? " " : "", (int)s.name_len, s.name);
}

/* ---- help ---- */

static void list_commands(const char *family) {
    int    used, width = family ? 49 : 40;
    size_t i;
    for (i = 0; i < COMMAND_COUNT; i++) {
        const cli_command *c = &commands[i];
        if (!c->name && !family) printf("\n%s:\n", c->summary);
        if (!listed_name(c, family)) continue;
        used = printf("    hfsb %s %s", c->name, c->words);
        printf("%*s%s\n", used < width ? width - used : 1, "", c->summary);
    }
}

static int print_overview(void) {
    printf("hfsb %s - a sandbox for LLM agents: run commands and edit files\n",
           HFSB_VERSION);
    list_commands(NULL);
    printf("\n--on SANDBOX, or $HFSB_SANDBOX: OWNER/NAME, jobs/OWNER/ID, "
           "a URL, ssh:HOST,\ndocker:NAME, podman:NAME, kubectl:POD, "
           "slurm:OPTIONS or exec:COMMAND.\n"
           "Options: hfsb COMMAND --help. Exit codes: 0 done, 1 refused, "
           "2 wrong usage;\nbash, exec and each: that of the command, 124 "
           "to 127 as in timeout(1), env(1).\n");
    return put_out(HFSB_LIT(""));
}

/* A command that has only subcommands. */
static int run_family(args *a) {
    const option none[] = {OPTIONS_END};
    if (a->next == a->count) return usage(a, "which subcommand?");
    if (a->list[a->next][0] != '-') {
        fprintf(stderr, "hfsb %s: unknown subcommand %s\n", a->command->name,
                a->list[a->next]);
        print_nearest(a->command->name, a->list[a->next]);
        fprintf(stderr, "Try: hfsb %s --help\n", a->command->name);
        return a->status = USAGE;
    }
    if (take_options(a, none) || a->status != DONE) return a->status;
    list_commands(a->command->name);
    return put_out(HFSB_LIT(""));
}

static int run_words(char **words, int count, bool help) {
    static char  help_word[] = "--help";
    static char *help_list[] = {help_word};
    args         a = HFSB_INIT;
    int          code;
    a.command = find_command(words, count, &a.next);
    if (!a.command) {
        fprintf(stderr, "hfsb: unknown command %s\n", words[0]);
        print_nearest(NULL, words[0]);
        fprintf(stderr, "Try: hfsb --help\n");
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
    if (argc > 0) note_program(argv[0]);
    if (!name) {
        fprintf(stderr, "hfsb: which command?\nTry: hfsb --help\n");
        return USAGE;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("hfsb %s\n", HFSB_VERSION);
        return put_out(HFSB_LIT(""));
    }
    help = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
           strcmp(name, "help") == 0;
    if (help && argc == 2) return print_overview();
    return run_words(argv + (help ? 2 : 1), argc - (help ? 2 : 1), help);
}
