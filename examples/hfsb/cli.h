/* cli.h - what the commands of hfsb share. */
#ifndef HFSB_CLI_H
#define HFSB_CLI_H

#include "../../hfsb.h"

/* Exit codes; `hfsb bash` passes on the command's own besides. */
enum { DONE = 0, REFUSED = 1, USAGE = 2 };

/* ---- commands: one object each, in the file named behind it ---- */

typedef struct args args;

typedef struct cli_command {
    const char *name;
    const char *words;   /* behind the name: "[OPTIONS] FILE" */
    const char *summary; /* for the list of all commands */
    const char *details; /* for `hfsb NAME --help`, indented, with its "\n" */
    int (*run)(args *a); /* gives the exit code */
} cli_command;

extern const cli_command command_tool, command_tools; /* tool.c */
extern const cli_command command_bash;                /* bash.c */
extern const cli_command command_read, command_write; /* file.c */
extern const cli_command command_edit;                /* edit.c */
extern const cli_command command_patch;               /* patch.c */
extern const cli_command command_json, command_strip; /* text.c */
extern const cli_command command_truncate, command_classify;

/* ---- args.c: the words of the command line ---- */

struct args {
    const cli_command *command;
    char             **list;
    int                count, next;
    bool               only_words; /* behind "--" */
    int                status;     /* for when parsing says false */
};

typedef enum option_kind {
    OPTION_FLAG,    /* target: bool */
    OPTION_TEXT,    /* const char * */
    OPTION_COUNT,   /* size_t, from 1 on */
    OPTION_INTEGER, /* long long */
    OPTION_SECONDS  /* double, above 0 */
} option_kind;

/* A list of them ends with a name that is NULL. */
typedef struct option {
    const char *name; /* "--limit" */
    option_kind kind;
    void       *target; /* left as it is when the option is not given */
} option;

/* Takes the options before the first word: `hfsb bash ls -l` has none. False
   when there is nothing left to do, since help was asked for or the line was
   not understood; either has been printed, and a->status is the exit code. */
bool take_options(args *a, const option *options);

/* Takes all there is: options, and at most one word (*word stays as it is when
   there is none; word NULL: not even one). False as above. */
bool take_all(args *a, const option *options, const char **word);

/* Says on stderr what was not understood; gives USAGE. */
int usage(args *a, const char *format, ...);

void print_help(const cli_command *c);

/* ---- io.c: input, output, results ---- */

/* Ends the program when there is no memory: st is HFSB_NOMEM or HFSB_OK. */
void must(hfsb_status st);

/* Fills *err; gives code. */
hfsb_status fail(hfsb_err *err, hfsb_status code, const char *format, ...);

/* Appends all of a text given by name, or with NULL or "-" by standard input.
   Not the library's way to read, which refuses pipes: this is for input, and
   `--old-file <(command)` is one. */
hfsb_status read_input(const char *path, hfsb_buf *out, hfsb_err *err);

/* To standard output; DONE, or REFUSED after saying so. */
int put_out(hfsb_str text);

/* The outcome of something: output when st is HFSB_OK, else the error. */
void set_outcome(hfsb_tool_result *result, hfsb_status st,
                 const hfsb_err *err);

/* A result as one line of JSON, or for people: its output and `more` behind
   it on stdout, its error on stderr. DONE when it is a success. */
int show_result(const hfsb_tool_result *result, hfsb_str more, bool json);

/* ---- signals.c: Ctrl-C ---- */

/* From now on the first SIGINT, SIGTERM or SIGHUP is noted and wakes tools
   (NULL: no one); a second one ends the program at once. One that was ignored
   when the program started stays so. */
void catch_signals(hfsb_tools *tools);
/* From now on they end the program again. */
void release_signals(void);
/* The number of the one that came, or 0. */
int caught_signal(void);

/* ---- call.c: one call of a tool ---- */

/* Calls a tool of an object made for this call alone. *stop (may be NULL) can
   be set to true by on_text. When that or a signal ends the call early, the
   commands it runs are killed with all they started, and the signal's number
   is returned (0 for *stop), with whatever result there is. *result is filled
   in any case. */
int call_tool(const hfsb_tools_opts *where, const char *name,
              hfsb_str arguments, const hfsb_call_opts *opts, const bool *stop,
              hfsb_tool_result *result);

/* Appends "key":"text" to a call's arguments, which are JSON; false, and said
   on stderr, when the text is not UTF-8. `what` names it there. */
bool put_text(hfsb_json_writer *w, const char *key, const char *what,
              hfsb_str text);

#endif
