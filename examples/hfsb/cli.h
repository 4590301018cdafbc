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
extern const cli_command command_mcp;                 /* mcp.c */
extern const cli_command command_bash;                /* bash.c */
extern const cli_command command_read, command_write; /* file.c */
extern const cli_command command_edit;                /* edit.c */
extern const cli_command command_patch;               /* patch.c */
extern const cli_command command_json, command_strip; /* text.c */
extern const cli_command command_truncate, command_classify;
extern const cli_command command_create, command_connect; /* create.c */
extern const cli_command command_delete;                  /* delete.c */
extern const cli_command command_sweep;
extern const cli_command command_ls, command_status;     /* status.c */
extern const cli_command command_pause, command_restart; /* restart.c */
extern const cli_command command_cp;                     /* cp.c */
extern const cli_command command_job;                    /* job.c */
/* These are words behind `hfsb job`. */
extern const cli_command command_job_run; /* job_run.c */

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
    OPTION_TEXTS,   /* texts: may be given several times */
    OPTION_COUNT,   /* size_t, from 1 on */
    OPTION_INTEGER, /* long long */
    OPTION_SECONDS, /* double, above 0 */
    OPTION_DAYS     /* the same in days */
} option_kind;

/* What an option that may be given several times was given. */
enum { MAX_TEXTS = 64 };
typedef struct texts {
    const char *list[MAX_TEXTS];
    size_t      count;
} texts;

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

/* The same for up to max words; the others become NULL. */
bool take_words(args *a, const option *options, const char **words,
                size_t max);

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

/* set_outcome(), show_result(), and frees it. Gives the exit code: of what
   failed because a signal came 128 and its number. */
int show_outcome(hfsb_tool_result *result, hfsb_status st, const hfsb_err *err,
                 bool json);

/* Appends "key":"text" (null for an empty one), "key":value. */
void put_str(hfsb_json_writer *w, const char *key, hfsb_str text);
void put_int(hfsb_json_writer *w, const char *key, long long value);
void put_bool(hfsb_json_writer *w, const char *key, bool value);

/* The keys that a result adds are written between these two. */
void begin_added(hfsb_json_writer *w, hfsb_tool_result *result);
void end_added(hfsb_json_writer *w);

/* Puts blanks in the place of what a terminal obeys. */
void make_harmless(hfsb_buf *text);

/* A line of a log, on stderr, made harmless; an hfsb_log_fn. */
void print_log(void *user, hfsb_str line);

/* ---- signals.c: Ctrl-C ---- */

/* From now on the first SIGINT, SIGTERM or SIGHUP is noted, wakes tools and
   sets cancel (either may be NULL); a second one ends the program at once. One
   that was ignored when the program started stays so. */
void catch_signals(hfsb_tools *tools, hfsb_cancel *cancel);
/* From now on they end the program again. */
void release_signals(void);
/* The number of the one that came, or 0. */
int caught_signal(void);

/* ---- call.c: one call of a tool ---- */

/* Calls a tool of an object made for this call alone, or on a sandbox (on, as
   named_sandbox() gives it; of where only work_dir and timeout count then).
   *stop (may be NULL) can be set to true by on_text. When that or a signal
   ends the call early, the commands it runs are killed with all they started,
   and the signal's number is returned (0 for *stop), with whatever result
   there is. *result is filled in any case. */
int call_tool(const char *on, const hfsb_tools_opts *where, const char *name,
              hfsb_str arguments, const hfsb_call_opts *opts, const bool *stop,
              hfsb_tool_result *result);

/* Appends "key":"text" to a call's arguments, which are JSON; false, and said
   on stderr, when the text is not UTF-8. `what` names it there. */
bool put_text(hfsb_json_writer *w, const char *key, const char *what,
              hfsb_str text);

/* ---- config.c: where our files are, and what config.json says ---- */

/* Appends $variable/hfsb/name, or $HOME/fallback/hfsb/name. */
hfsb_status xdg_path(const char *variable, const char *fallback,
                     const char *name, hfsb_buf *out, hfsb_err *err);

typedef struct config {
    hfsb_str      owner, hardware, from; /* from: "template" */
    hfsb_str      work_dir;              /* of commands in a Space */
    long long     sleep_time;            /* seconds */
    hfsb_runtime  runtime;               /* "tool_runtime" */
    hfsb_json_doc doc;                   /* private */
} config;

/* All zero when there is no such file. An unknown key is warned of; a value
   that cannot be is HFSB_ARG with the file and the key. */
hfsb_status read_config(config *c, hfsb_err *err);
void        free_config(config *c);

/* ---- state.c: the sandboxes that are known here, with their tokens ---- */

typedef struct known {
    hfsb_str id;      /* "owner/name"; "" of one that is only a URL */
    hfsb_str url;     /* of its server, without "/api" */
    hfsb_str token;   /* secret */
    bool     created; /* by `hfsb create`, so that we may delete it */
} known;

typedef struct known_list {
    known        *list;
    size_t        count;
    hfsb_json_doc doc; /* private: what the texts are in */
} known_list;

/* HFSB_OK, also when there is no file. */
hfsb_status read_known(known_list *out, hfsb_err *err);
void        free_known(known_list *l);
/* The one of that id or URL, or NULL. */
const known *find_known(const known_list *l, hfsb_str name);

/* Adds one, or takes the place of the one with the same name; removes the one
   of that name. Several processes may do so at once. */
hfsb_status record_sandbox(const known *k, hfsb_err *err);
hfsb_status forget_sandbox(hfsb_str name, hfsb_err *err);
/* HFSB_OK when a sandbox could be recorded: asked before one is made. */
hfsb_status check_state(hfsb_err *err);

/* ---- transport.c, space.c ---- */

/* With libcurl when the program was built with it, else over sockets. */
hfsb_status open_transport(hfsb_transport *out, hfsb_err *err);

/* The server's source and its Dockerfile, for a Space. */
void set_space_files(hfsb_sandbox_spec *spec);

/* ---- client.c: the Hub, and sandboxes by name ---- */

typedef struct client {
    bool           quiet; /* no word on stderr of what is tried again */
    hfsb_hub_env   env;
    config         set; /* what config.json says */
    hfsb_transport transport;
    hfsb_cancel   *cancel; /* set by Ctrl-C */
    hfsb_hub      *hub;
} client;

/* All that a call to the Hub or to a sandbox needs; from here to
   close_client() signals only set c->cancel. HFSB_AUTH with what to do when a
   token is needed and there is none. *c is all zero before, but for quiet;
   close it in any case. */
hfsb_status open_client(client *c, bool needs_token, hfsb_err *err);
void        close_client(client *c);

/* What names a sandbox: on (may be NULL), else $HFSB_SANDBOX; NULL: none. */
const char *named_sandbox(const char *on);

/* Where a sandbox is, by the name a person gives it: an id, a URL, or the name
   behind the id's slash when one that is recorded has it. */
typedef struct target {
    hfsb_buf id, url, token; /* id "" when the URL is all there is */
    bool     recorded, created;
} target;

/* *out is all zero before. HFSB_NOT_FOUND when it is no id and nothing is
   recorded that fits. */
hfsb_status find_target(const char *name, target *out, hfsb_err *err);
void        free_target(target *t);
/* What it is called: its id, or its URL. */
hfsb_str target_name(const target *t);

/* Adds to the message what to do about it, where that is known. */
void add_advice(const target *t, hfsb_status st, hfsb_err *err);

/* A handle of it whose server answers. opts: what is to be special about it;
   who it is and how it is reached is filled in. */
hfsb_status open_target(client *c, const target *t, hfsb_sandbox_opts *opts,
                        hfsb_sandbox **out, hfsb_err *err);
/* find_target(), open_client() and a handle of the Space, without waiting for
   its server. HFSB_ARG for a URL. *c and *t are all zero before; close and
   free them in any case. */
hfsb_status open_space(client *c, const char *name, target *t,
                       hfsb_sandbox_opts *opts, hfsb_sandbox **out,
                       hfsb_err *err);
/* find_target() and open_target(). */
hfsb_status open_named(client *c, const char *name, hfsb_sandbox_opts *opts,
                       hfsb_sandbox **out, hfsb_err *err);

/* ---- session.c: a session of the sandbox runtime ---- */

/* By an option, else by what is configured. */
hfsb_status find_runtime(bool asked, hfsb_runtime *out, hfsb_err *err);

typedef struct sandbox_session {
    bool          quiet;      /* nothing but warnings on stderr */
    bool          no_preload; /* as in hfsb_session_opts */
    client        c;
    hfsb_session *session;
} sandbox_session;

/* *s is all zero before, but for its first two; close it in any case. */
hfsb_status open_session(sandbox_session *s, const char *work_dir,
                         hfsb_err *err);
/* Only to be asked for its definitions: no token is needed, nothing sent. */
hfsb_status open_for_definitions(sandbox_session *s, hfsb_err *err);
/* Deletes its Spaces; what could not be deleted is in *err. */
hfsb_status close_session(sandbox_session *s, hfsb_err *err);

/* ---- job.c: what it shares with job_run.c ---- */

typedef struct job_name {
    hfsb_str space, id; /* namespace ("": that of the token) */
} job_name;

/* A job by ID or NAMESPACE/ID; space is that of an option, or NULL. */
void split_job(const char *word, const char *space, job_name *out);

typedef struct job_follow {
    bool json;
    bool broken;    /* standard output is */
    char stage[32]; /* of the job, at the end */
} job_follow;

/* Prints the log, and asks for the stage behind it. */
hfsb_status follow_job(client *c, const job_name *name,
                       const hfsb_log_opts *opts, job_follow *f,
                       hfsb_err *err);

/* Adds id, stage and the job itself to a result. */
void     put_job(const hfsb_json_value *job, hfsb_tool_result *result);
hfsb_str job_stage(const hfsb_json_value *job);

/* ---- secrets.c ---- */

/* The pairs of --secret NAME (the value is that of the environment variable)
   and --secret-file NAME=FILE (the file's content). A value never stands on a
   command line, where everyone can see it. */
typedef struct secrets {
    hfsb_hub_pair pairs[2 * MAX_TEXTS];
    hfsb_buf      files[MAX_TEXTS];
    size_t        count;
} secrets;

/* HF_TOKEN, when the environment does not have it, is the token in use. */
hfsb_status take_secrets(const client *c, const texts *names,
                         const texts *files, secrets *out, hfsb_err *err);
void        free_secrets(secrets *s);

#endif
