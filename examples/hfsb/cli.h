/* cli.h - what the commands of hfsb share. */
#ifndef HFSB_CLI_H
#define HFSB_CLI_H

#ifndef HFSB_HUB
#define HFSB_HUB
#endif
#include "../../hfsb.h"
#include "../hfsb-server/suggest.h"

#include <stdio.h>

/* Exit codes. `hfsb bash` exits with the code of its command. */
enum { DONE = 0, REFUSED = 1, USAGE = 2 };

/* ---- ../hfsb.c: the table of commands ---- */

typedef struct args args;
typedef int         command_fn(args *a); /* returns the exit code */

enum { MAX_FILLED = 3 };

typedef struct cli_command {
    const char *name;  /* "job run" is a subcommand of "job", and may have
                          subcommands itself */
    const char *words; /* what follows the name: "[OPTIONS] FILE" */
    const char *summary;
    const char *details; /* paragraphs (NULL: the tool's description) */
    const char *tool;    /* whose parameters are options (NULL: none) */
    /* Parameters of the tool that are not options, because the command takes
       them in another way; for run_tool_command(), as its words. */
    const char *filled[MAX_FILLED + 1];
    command_fn *run; /* NULL: it has only subcommands */
} cli_command;

/* Finds the command at the start of `words`; *used is how many of them are its
   name. NULL when there is none. */
const cli_command *find_command(char **words, int count, int *used);

/* Prints names and summaries for completion: of all commands, or with a family
   ("job") of its subcommands. */
void print_commands(const char *family);

command_fn run_bash, run_write, run_edit, run_patch, run_cp, run_mcp;
command_fn run_exec_server;
command_fn run_tool, run_tools, run_tool_command, run_history; /* tool.c */
command_fn run_create, run_connect;               /* create.c */
command_fn run_delete, run_sweep;                 /* delete.c */
command_fn run_ls, run_status;                    /* status.c */
command_fn run_pause, run_restart;                /* restart.c */
command_fn run_open;                              /* open.c */
command_fn run_job_run;                           /* job_run.c */
command_fn run_job_ls, run_job_logs, run_job_inspect, run_job_cancel;
command_fn run_schedule_ls, run_schedule_inspect, run_schedule_suspend;
command_fn run_schedule_resume, run_schedule_run, run_schedule_delete;
command_fn run_json, run_strip, run_truncate, run_classify; /* text.c */
command_fn run_completion, run_man;
command_fn run_use;                        /* status.c */
command_fn run_logs, run_events;           /* logs.c */
command_fn run_hardware;                   /* hardware.c */
command_fn run_exec, run_shell;            /* exec.c */
command_fn run_forget;                     /* pipe.c */
command_fn run_each;

/* Calls fn for each row of the table, in order; a row without a name separates
   groups. */
void each_command(void (*fn)(void *user, const cli_command *c), void *user);

/* What the overview and the manual say before the commands. */
#define ABOUT_HFSB \
    "is a sandbox for LLM agents: it runs commands, and reads, writes, " \
    "searches and edits files, on this machine or another one."
#define ABOUT_ON \
    "Commands that take --on SANDBOX work on this machine, unless --on or " \
    "$HFSB_SANDBOX names a sandbox: OWNER/NAME (a Space), jobs/OWNER/ID (a " \
    "job), a URL, ssh:HOST, docker:CONTAINER, podman:CONTAINER, " \
    "kubectl:NAMESPACE/POD, slurm:OPTIONS, exec:COMMAND, or \".\" for the " \
    "default sandbox (`hfsb use`). Calls of tools on this machine, all but " \
    "exec, write and patch, are appended to the file $HFSB_JOURNAL, if set."
#define ABOUT_OPTIONS \
    "The value of an option is the next word, or follows \"=\". " \
    "--no-NAME turns a flag off; \"--\" ends the options."

/* ---- options.c: options and words of the command line ---- */

typedef enum option_kind {
    OPTION_FLAG,    /* target: bool; --no-NAME sets it to false */
    OPTION_TEXT,    /* const char * */
    OPTION_TEXTS,   /* texts: may be repeated */
    OPTION_COUNT,   /* size_t, from 1 on */
    OPTION_INTEGER, /* long long */
    OPTION_NUMBER,  /* double */
    OPTION_PAIRS,   /* NAME=VALUE, may be repeated; only of a tool */
    OPTION_SECONDS, /* double, above 0 */
    OPTION_DAYS,    /* double, above 0 */
    OPTION_SIZE,    /* unsigned long long: bytes, or 64K, 16M, 1G; from 1 on */
    OPTION_PARAM,   /* an option of the tool; in a command's own list (NULL)
                       words for one that the tool does not describe */
    OPTION_ALIAS    /* another name for the option that `words` names */
} option_kind;

/* The values of an option that may be repeated. */
enum { MAX_TEXTS = 64 };
typedef struct texts {
    const char *list[MAX_TEXTS];
    size_t      count;
} texts;

/* A row; the last one of a list has the name NULL. */
typedef struct option {
    const char *name; /* "--limit N": the option and a name for its value */
    option_kind kind;
    void       *target; /* unchanged when the option is not given */
    const char *words;  /* for --help */
} option;

/* clang-format off */
#define OPTIONS_END {NULL, OPTION_FLAG, NULL, NULL}
/* The rows that many commands have. */
#define OPTION_ON(target) \
    {"--on SANDBOX", OPTION_TEXT, target, \
     "use this sandbox instead of this machine ($HFSB_SANDBOX)"}
#define OPTION_ROOT(target) \
    {"--root DIR", OPTION_TEXTS, target, \
     "refuse paths outside DIR; relative paths start there; may be repeated"}
/* What commands on this machine may touch; `c` is a confinement, `more` words
   about the default. */
#define OPTIONS_CONFINE(c, more) \
    {"--confine LEVEL", OPTION_TEXT, &(c)->level, \
     "none; write: commands can write only beneath the roots, the working " \
     "directory, $TMPDIR and the caches of common tools; strict: they can " \
     "also read only there and in system folders, and have no network. " \
     more}, \
    {"--allow-write DIR", OPTION_TEXTS, &(c)->write, \
     "commands can also write in DIR; may be repeated"}, \
    {"--allow-read DIR", OPTION_TEXTS, &(c)->read, \
     "with --confine strict: commands can also read DIR; may be repeated"}, \
    {"--net WHAT", OPTION_TEXT, &(c)->net, \
     "network of confined commands: on, off, loopback, or TCP ports such as " \
     "443,80 (53 includes UDP)"}, \
    {"--max-memory SIZE", OPTION_SIZE, &(c)->max_memory, \
     "limit the memory of each process of a command, such as 2G"}, \
    {"--max-processes N", OPTION_COUNT, &(c)->max_processes, \
     "limit this user's processes while a command runs (not for root)"}, \
    {"--max-file-size SIZE", OPTION_SIZE, &(c)->max_file_size, \
     "limit the size of each file that a command writes"}, \
    {"--max-cpu SECONDS", OPTION_COUNT, &(c)->max_cpu, \
     "limit the CPU time of each process of a command"}
/* What the sandboxes of --sandbox-tools are; `h` is a session_home. */
#define OPTIONS_HOME(h) \
    {"--image I", OPTION_TEXT, &(h)->image, \
     "with --sandbox-tools: instead of a Space, a job with this Docker " \
     "image (python:3.12), which starts in seconds"}, \
    {"--hardware H", OPTION_TEXT, &(h)->hardware, \
     "hardware of the job, such as t4-small (cpu-basic)"}, \
    {"--flavor H", OPTION_ALIAS, NULL, "--hardware"}, \
    {"--idle-timeout T", OPTION_TEXT, &(h)->idle_timeout, \
     "end the job after this time without a call and without a running " \
     "command (45m)"}, \
    {"--server FILE", OPTION_TEXT, &(h)->server, \
     "the static hfsb-server that the job runs (the one next to hfsb)"}
#define OPTION_JSON(target, more) \
    {"--json", OPTION_FLAG, target, \
     "print one line of JSON: success, output, error" more}
/* clang-format on */

/* The options of OPTIONS_CONFINE. */
typedef struct confinement {
    const char        *level, *net;
    texts              write, read;
    unsigned long long max_memory, max_file_size;
    size_t             max_processes, max_cpu;
} confinement;

/* The options of OPTIONS_HOME. */
typedef struct session_home {
    const char *image, *hardware, *idle_timeout, *server;
} session_home;

/* A parameter of a tool, read from its JSON Schema. */
typedef struct param {
    hfsb_str               key;      /* "ignore_case" */
    char                   name[48]; /* "--ignore-case" */
    char                   words[160];
    option_kind            kind;
    bool                   required;
    const hfsb_json_value *choices; /* an array of strings, or NULL */
    texts                  given;   /* for a flag "true" or "false" */
} param;

enum { MAX_PARAMS = 24 };

struct args {
    const cli_command *command;
    char             **list;
    int                count, next;
    bool               only_words;  /* "--" has been seen */
    int                status;      /* exit code, after take_*() was false */
    /* Called with all options of the command, which then does nothing else:
       for completion and the manual (NULL: run it) */
    void (*on_rows)(args *a, const option *rows);
    const char        *completed;   /* the word before the completed one */
    hfsb_json_doc      definition;  /* of the tool; `params` point into it */
    param              params[MAX_PARAMS];
    size_t             param_count;
    const char        *about; /* the description of that tool, or NULL */
};

/* Sets the roots of *where. False, after an error, when one is empty. */
bool set_roots(args *a, const texts *roots, hfsb_tools_opts *where);
/* Sets the working directory of *where, after set_roots(). A relative one
   begins at the current directory, also with a root, beneath which the library
   would look for it. False, after an error, when it cannot be resolved. */
bool set_work_dir(args *a, const char *dir, hfsb_tools_opts *where);
/* Sets the folder of checkpoints of *where: that of all roots if `store` is
   NULL or "on". False after a message for one without a "/", which may be a
   misspelt "on". */
bool set_store(args *a, const char *store, hfsb_tools_opts *where);

/* Where to give an option of this machine for another one. */
#define TAKEN_AFAR "--on exec:'ssh HOST hfsb-server --stdio %s ...'"

/* The first option of OPTIONS_CONFINE that was given, or NULL. */
const char *confine_option(const confinement *c);
/* False, after an error, for one of them when the commands run in a sandbox:
   its server decides what they may touch. */
bool check_confinement(args *a, const confinement *c, bool afar);
/* Sets the confinement of *where. Without --confine its level is `by_default`,
   as far as the system can enforce that. False after an error. */
bool set_confinement(args *a, const confinement *c,
                     hfsb_confine_level by_default, hfsb_tools_opts *where);

/* Takes the options before the first word: `hfsb bash ls -l` has none. False
   when the command is over, since --help was given or an option is wrong;
   a->status is the exit code then. A command calls one of these functions
   before it does anything else. */
bool take_options(args *a, const option *own);

/* Takes all options and at most one word (word NULL: none). *word is unchanged
   when there is none. False as above. */
bool take_all(args *a, const option *own, const char **word);

/* The same for up to max words; the missing ones are NULL. */
bool take_words(args *a, const option *own, const char **words, size_t max);

/* Prints a text, wrapped. */
void print_about(const char *text);

/* Prints what is wrong with the command line on stderr; returns USAGE. */
int usage(args *a, const char *format, ...);

/* Adds the parameters of a tool, if there is one of that name, for the option
   lists that follow. */
void   load_params(args *a, const char *tool);
param *find_param(args *a, hfsb_str key);

/* True when an option of the tool was given. */
bool options_given(const args *a);
/* Writes them as members of an open object; false, after a message, when one
   is not UTF-8. */
bool put_options(const args *a, hfsb_json_writer *w);

/* The row called `word` (len bytes), or the one it is an alias of; or NULL. */
const option *find_row(const option *rows, const char *word, size_t len);
bool          takes_value(const option *o);
/* True for an option that the manual and --help describe under another
   name. */
bool is_alias(const option *o);


/* ---- io.c: input, output, results ---- */

/* Ends the program when memory has run out: st is HFSB_NOMEM or HFSB_OK. */
void must(hfsb_status st);

/* Fills *err; returns code. */
hfsb_status fail(hfsb_err *err, hfsb_status code, const char *format, ...);

/* Appends all of a file, or with NULL or "-" of standard input. Unlike
   hfsb_file_read() it also reads pipes, for `--old-file <(command)`. */
hfsb_status read_input(const char *path, hfsb_buf *out, hfsb_err *err);

/* Writes to standard output; DONE, or REFUSED after a message, also when what
   was printed before did not get there. */
int put_out(hfsb_str text);

/* Sets success, or the error when st is not HFSB_OK. */
void set_outcome(hfsb_tool_result *result, hfsb_status st,
                 const hfsb_err *err);

/* Prints a result: as one line of JSON, or its output and `more` on stdout and
   its error on stderr. Returns DONE for a success. */
int show_result(const hfsb_tool_result *result, hfsb_str more, bool json);

/* set_outcome(), show_result() and hfsb_tool_result_free(). Returns the exit
   code: 128 + N for a failure after signal N. */
int show_outcome(hfsb_tool_result *result, hfsb_status st, const hfsb_err *err,
                 bool json);

/* True when the text has only blanks and line ends. */
bool is_blank(hfsb_str text);

/* The string `key` of an object; "" when there is none. */
hfsb_str get_str(const hfsb_json_value *object, const char *key);

/* Write "key":"text" (null for an empty text) and "key":value. */
void put_str(hfsb_json_writer *w, const char *key, hfsb_str text);
void put_int(hfsb_json_writer *w, const char *key, long long value);
void put_bool(hfsb_json_writer *w, const char *key, bool value);

/* Writes "key":"text"; false, after a message that calls it `what`, when the
   text is not UTF-8. */
bool put_text(hfsb_json_writer *w, const char *key, const char *what,
              hfsb_str text);
/* Only the check. */
bool check_text(const char *what, hfsb_str text);

/* The members of an object, such as the fields of a result or the arguments
   of a tool, are written between these two; *doc is complete afterwards. */
void begin_object(hfsb_json_writer *w, hfsb_json_doc *doc);
void end_object(hfsb_json_writer *w);

/* Replaces control characters, which a terminal would obey, with blanks. */
void blank_controls(hfsb_buf *text);

/* Writes text that a server may have chosen: to a terminal without control
   characters, else as it is. False, with errno, when that fails. */
bool put_shown(FILE *to, hfsb_str text);

/* Prints a line of a log on stderr without control characters; an
   hfsb_log_fn. */
void print_log(void *user, hfsb_str line);
/* The same for each line of a text. */
void print_notes(hfsb_str notes);

/* The same for cells of a table, which are one line and end with NUL. */
void blank_controls_of_cells(hfsb_buf *text);

/* As show_result(), for a result whose output, and `more`, may be a diff: on a
   terminal it is coloured. */
int show_with_diff(const hfsb_tool_result *result, hfsb_str more, bool json);

/* ---- term.c: colours and tables ---- */

/* True for a terminal whose lines can be rewritten. */
bool can_rewrite(int fd);
/* NO_COLOR, CLICOLOR_FORCE, and else can_rewrite(). */
bool has_colours(int fd);

typedef enum paint {
    PAINT_NONE,
    PAINT_HEAD, /* bold */
    PAINT_GOOD, /* green */
    PAINT_BAD,  /* red */
    PAINT_WAIT, /* yellow */
    PAINT_PLACE /* cyan */
} paint;

void  put_painted(hfsb_buf *out, paint p, hfsb_str text);
paint stage_paint(hfsb_str stage);
/* Colours the lines of unified diffs in a text. */
void colour_diffs(hfsb_buf *text);

typedef struct table_column {
    const char *head;
    size_t      width; /* at least, where it is no terminal */
    bool        stage; /* coloured by stage_paint() */
} table_column;

enum { MAX_COLUMNS = 8 };

/* Rows are collected, since the widths follow from all of them. */
typedef struct table {
    const table_column *columns;
    size_t              count, rows;
    size_t              width[MAX_COLUMNS];
    hfsb_buf            cells; /* each followed by NUL */
    bool                cut;   /* the last column, at the edge of a terminal */
} table;

void table_begin(table *t, const table_column *columns, size_t count);
void table_add(table *t, const hfsb_str *cells);
/* Appends the table, on a terminal with its heads, without a last newline;
   frees it. */
void table_write(table *t, hfsb_buf *out);
/* show_outcome(), after the table unless the result is printed as JSON. */
int show_table(hfsb_tool_result *result, hfsb_status st, const hfsb_err *err,
               table *t, bool json);

/* ---- progress.c: a line that is rewritten ---- */

typedef struct progress progress;

/* NULL when quiet, or when stderr is no terminal: then progress_log() prints
   lines and the others do nothing. One at a time. */
progress *progress_open(hfsb_hub *hub, const char *stage, bool quiet);
/* For a sandbox that has to be waited for, if that takes some seconds. */
progress *progress_wait(const char *sandbox);
void      progress_log(void *user, hfsb_str line); /* an hfsb_log_fn */
void      progress_stage(progress *p, hfsb_str id, const char *stage);
void      progress_close(progress *p);

size_t terminal_width(void);
/* Prints a line of stderr over the last one. */
void rewrite_line(hfsb_str text);

/* ---- signals.c: Ctrl-C ---- */

/* From now on the first SIGINT, SIGTERM or SIGHUP is recorded, wakes tools and
   sets cancel (either may be NULL); a second one ends the program at once.
   Signals that were ignored at the start stay ignored. */
void catch_signals(hfsb_tools *tools, hfsb_cancel *cancel);
/* From now on signals end the program again. */
void release_signals(void);
/* Has fn called before a second signal ends the program: in the handler. */
void call_at_exit(void (*fn)(void));
/* The number of the signal that came, or 0. */
int caught_signal(void);
/* name_parent(): children that call follow_parent() get SIGTERM when this
   process dies, if the system has that. */
void name_parent(void);
void follow_parent(void);

/* ---- call.c: one call of a tool ---- */

/* Calls a tool, on this machine with tools opened for this call, or on a
   sandbox (on, from named_sandbox(); only work_dir and timeout of `where`
   count then). opts may be NULL. on_text may set *stop (may be NULL) to end
   the call. When that or a signal ends the call, its commands and their
   children are killed. Returns the signal's number, or 0. *result is always
   filled. */
int call_tool(const char *on, const hfsb_tools_opts *where, const char *name,
              const hfsb_json_value *arguments, const hfsb_call_opts *opts,
              const bool *stop, hfsb_tool_result *result);

/* For hfsb_journal_opts.on_failure. */
void print_journal_failure(void *user, const char *message);

/* ---- exec.c: what bash.c uses of it ---- */

/* Runs a command with a shell (NULL: /bin/sh, or the one of the sandbox) as
   `hfsb exec` does, with the work_dir, shell, timeout (0: none) and, here, the
   confinement of `where`; returns the exit code. */
int run_raw_command(const char *on, const hfsb_tools_opts *where,
                    const char *command, bool no_stdin);

/* ---- edit.c: what it shares with patch.c ---- */

/* Writes count, note, lines (those of the spans, may be NULL) and diff. */
void write_edit_fields(size_t count, const char *note, const hfsb_span *spans,
                       hfsb_str diff, hfsb_tool_result *result);

/* ---- config.c: the paths of our files, and config.json ---- */

/* Notes argv[0], for systems without /proc. */
void note_program(const char *name);
/* This program, to be started again: a path, or a name to find in PATH. */
const char *own_program(void);
/* Writes its path; returns how long the part up to its last slash is, 0 when
   it is not known. */
size_t own_folder(char *out, size_t size);

/* Appends $variable/hfsb/name, or $HOME/fallback/hfsb/name. */
hfsb_status xdg_path(const char *variable, const char *fallback,
                     const char *name, hfsb_buf *out, hfsb_err *err);

typedef struct config {
    hfsb_str      owner, hardware, from; /* from: "template" */
    long long     sleep_time;            /* seconds */
    hfsb_runtime  runtime;               /* "tool_runtime" */
    hfsb_json_doc doc;                   /* private */
} config;

/* Reads config.json; all zero when there is no such file. Warns about unknown
   keys. HFSB_ARG with the file and the key for an invalid value. */
hfsb_status read_config(config *c, hfsb_err *err);
void        free_config(config *c);

/* ---- state.c: the recorded sandboxes and their tokens ---- */

typedef struct known {
    hfsb_str id;      /* "owner/name"; "" when there is only a URL */
    hfsb_str url;     /* of its server, without "/api" */
    hfsb_str token;   /* secret */
    bool     created; /* by `hfsb create`, so `hfsb delete` may delete it */
    bool     is_own;  /* it was private when `hfsb connect` recorded it, and
                         gets the Hub's token */
} known;

typedef struct known_list {
    known        *list;
    size_t        count;
    hfsb_str      chosen; /* the default sandbox, or "" */
    hfsb_json_doc doc;    /* private: owns the texts */
} known_list;

/* HFSB_OK, also when there is no file. */
hfsb_status read_known(known_list *out, hfsb_err *err);
void        free_known(known_list *l);
/* The sandbox with that id or URL, or NULL. */
const known *find_known(const known_list *l, hfsb_str name);

/* Adds a sandbox or replaces the one of the same name; removes one. Safe in
   several processes at once. */
hfsb_status record_sandbox(const known *k, hfsb_err *err);
hfsb_status forget_sandbox(hfsb_str name, hfsb_err *err);
/* HFSB_OK when a sandbox could be recorded; call it before creating one. */
hfsb_status check_state(hfsb_err *err);

/* Sets the default sandbox; "": there is none. */
hfsb_status set_default(hfsb_str name, hfsb_err *err);
/* Its name, or NULL; "." when the record cannot be read, as find_target() then
   reports. Valid until the next call. */
const char *default_sandbox(void);
/* Opens a file for a log, such as logs/NAME.log in the folder of the state,
   and appends its path. -1 after *err was set. */
int open_log(const char *name, hfsb_buf *path, hfsb_err *err);

/* ---- transport.c, space.c ---- */

/* Uses libcurl when the program was built with it, else sockets. */
hfsb_status open_transport(hfsb_transport *out, hfsb_err *err);

/* Adds the server's source and its Dockerfile to a spec, unless it has a
   template of the user's: that one has a server, and stays as it is. */
void set_space_files(hfsb_sandbox_spec *spec);

/* ---- server.c: the server that a job runs ---- */

/* Appends the bytes of a static hfsb-server: the file `path`, or with NULL the
   one next to this program. HFSB_ARG, with what to do, when there is none. */
hfsb_status read_server(const char *path, hfsb_buf *out, hfsb_err *err);
/* Appends the bytes of one for a machine as uname -s and -m name it: from the
   folder $HFSB_SERVERS, next to this program, or from ../lib/hfsb. */
hfsb_status read_server_for(const char *system, const char *machine,
                            hfsb_buf *out, hfsb_err *err);

/* ---- client.c: the Hub, and sandboxes by name ---- */

typedef struct client {
    bool           quiet; /* do not log retries on stderr */
    hfsb_hub_env   env;
    config         set; /* from config.json */
    hfsb_transport transport;
    hfsb_pipe     *pipe;   /* of pipe.c, or NULL ... */
    hfsb_transport through; /* ... and a transport through it */
    hfsb_cancel   *cancel; /* set by Ctrl-C */
    hfsb_hub      *hub;
} client;

/* Opens everything that a call to the Hub needs. Until close_client(), signals
   only set c->cancel. HFSB_AUTH, with what to do, when a token is needed and
   missing. *c is all zero before, except quiet; close it in any case. */
hfsb_status open_client(client *c, bool needs_token, hfsb_err *err);
void        close_client(client *c);

/* Returns `on`, else $HFSB_SANDBOX, else NULL. "." is the default sandbox. */
const char *named_sandbox(const char *on);
/* For commands about sandboxes: the same, and else the default one. */
const char *chosen_sandbox(const char *name);
/* When there is none either: usage(). */
int no_sandbox(args *a);

/* True for the id of a sandbox that is a job, "jobs/OWNER/ID". */
bool is_job(hfsb_str id);

/* A sandbox that a user has named by id, URL, or the part of a recorded id
   after the last slash. */
typedef struct target {
    hfsb_buf    id, url, token; /* id "" when there is only a URL */
    const char *token_from;     /* NULL: from the record, if there is a token */
    bool        recorded, created;
    bool        is_space; /* a Space or job, by its id or URL */
    bool        is_own;   /* gets the Hub's token; others: see client.c */
    bool        is_pipe;  /* its URL is no URL, see pipe.c */
} target;

/* The token in the address of a page, "URL/#TOKEN", percent-encoded. NULL
   for any other name. */
const char *page_token(const char *name);

/* *out is all zero before. "." is the default sandbox. HFSB_NOT_FOUND when the
   name is no id and no recorded sandbox has it; HFSB_ARG for a URL with a
   token, which would be printed and passed on with the name. */
hfsb_status find_target(const char *name, target *out, hfsb_err *err);
/* Takes the token of SANDBOX_API_TOKEN, if it is set, also for a sandbox that
   has a recorded one. */
void        take_env_token(target *t);
void        free_target(target *t);
/* Its id, or its URL. */
hfsb_str target_name(const target *t);

/* Adds advice to the message of an error, where there is some. */
void add_advice(const target *t, hfsb_status st, hfsb_err *err);

/* Opens what the sandbox needs, unless *c is open. */
hfsb_status open_client_for(client *c, const target *t, hfsb_err *err);
/* Connects to the sandbox. The caller sets what is special in opts; address
   and tokens are filled in, and the cancel of *c unless there is one. *c is
   open, or all zero: then it is opened as the sandbox needs it, with the Hub
   only for a Space. Close it in any case. */
hfsb_status open_target(client *c, const target *t, hfsb_sandbox_opts *opts,
                        hfsb_sandbox **out, hfsb_err *err);
/* find_target(), open_client(), and a handle of the Space without waiting for
   its server. HFSB_ARG for a URL. *c and *t are all zero before; close and
   free them in any case. */
hfsb_status open_space(client *c, const char *name, target *t,
                       hfsb_sandbox_opts *opts, hfsb_sandbox **out,
                       hfsb_err *err);
/* find_target() and open_target(). */
hfsb_status open_named(client *c, const char *name, hfsb_sandbox_opts *opts,
                       hfsb_sandbox **out, hfsb_err *err);

/* ---- pipe.c: sandboxes at the other end of a command ---- */

/* True for "ssh:HOST", "docker:CONTAINER" ... */
bool is_pipe(const char *name);
/* Starts the command, opens c->transport on it, and fills in the options. */
hfsb_status connect_pipe(client *c, const char *name, hfsb_sandbox_opts *opts,
                      hfsb_err *err);

/* ---- session.c: a session of the sandbox runtime, or the remote one ---- */

/* The sandbox runtime when asked for, else the configured one. */
hfsb_status find_runtime(bool asked, hfsb_runtime *out, hfsb_err *err);
/* False, after a message, for options of a job without --image, or without
   the sandbox runtime. */
bool check_home(args *a, const session_home *home, hfsb_runtime runtime);

typedef struct sandbox_session {
    bool          quiet;      /* only warnings on stderr */
    bool          no_preload; /* as in hfsb_session_opts */
    session_home  home;
    client        c;
    hfsb_session *session;
    hfsb_buf      bytes; /* of the server that its jobs run */
    target        t;     /* of the remote runtime */
} sandbox_session;

/* *s is all zero before, except its first three members; close it in any
   case. */
hfsb_status open_session(sandbox_session *s, hfsb_str work_dir,
                         hfsb_err *err);
/* The same with the sandbox called `name`, to which the first call connects.
   Failures to connect are also printed on stderr. */
hfsb_status open_session_on(sandbox_session *s, const char *name,
                            hfsb_err *err);
/* Opens a session for its definitions only: needs no token, sends nothing. */
hfsb_status open_for_definitions(sandbox_session *s, hfsb_err *err);
/* Deletes its Spaces and jobs; *err names those that could not be deleted. */
hfsb_status close_session(sandbox_session *s, hfsb_err *err);

/* ---- job.c: what it shares with job_run.c and job_schedule.c ---- */

typedef struct job_name {
    hfsb_str space, id; /* space: the namespace ("": that of the token) */
} job_name;

/* Splits ID or NAMESPACE/ID; space: from the option, or NULL. */
void split_job(const char *word, const char *space, job_name *out);

typedef struct job_follow {
    bool   json;
    bool   broken;    /* writing to standard output failed */
    size_t lines;     /* printed */
    char   stage[32]; /* of the job, at the end */
} job_follow;

/* Prints a line of a log as it is, or as {"text":...,"timestamp":...}; user is
   a job_follow. An hfsb_log_line_fn. */
bool print_log_line(void *user, hfsb_str line, hfsb_str timestamp);

/* Prints the log, then asks for the stage. */
hfsb_status follow_job(client *c, const job_name *name,
                       const hfsb_log_opts *opts, job_follow *f,
                       hfsb_err *err);

/* Adds id, stage and the job itself to a result. */
void     put_job(const hfsb_json_value *job, hfsb_tool_result *result);
hfsb_str job_stage(const hfsb_json_value *job);
/* Appends the start of the command of a job, or of the jobSpec of a scheduled
   one, on one line; instead of the text of a script its name, if the job has
   one. */
void add_words(hfsb_buf *out, const hfsb_json_value *job);

/* ---- job_schedule.c ---- */

/* Adds id, schedule, suspended and the scheduled job itself to a result. */
void put_scheduled(const hfsb_json_value *job, hfsb_tool_result *result);

/* ---- secrets.c ---- */

/* The pairs of --secret NAME (from the environment variable) and --secret-file
   NAME=FILE (from the file). The command line never contains a value, because
   every user of the machine can read it. */
typedef struct secrets {
    hfsb_hub_pair pairs[2 * MAX_TEXTS];
    hfsb_buf      files[MAX_TEXTS];
    size_t        count;
} secrets;

/* Fills `out`, which has room for MAX_TEXTS, from words of the form
   TYPE:OWNER/NAME:/MOUNT. */
hfsb_status take_volumes(const texts *words, hfsb_job_volume *out,
                         hfsb_err *err);
/* Fills `out` from words NAME=VALUE; `what` names them in a message. */
hfsb_status take_pairs(const char *what, const texts *words,
                       hfsb_hub_pair *out, hfsb_err *err);

/* HF_TOKEN, when it is not in the environment, is the token in use. */
hfsb_status take_secrets(const client *c, const texts *names,
                         const texts *files, secrets *out, hfsb_err *err);
void        free_secrets(secrets *s);

#endif
