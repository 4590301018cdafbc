#pragma once

/* tools_private.h - what the files of the tools share.

       args.c     reads the arguments of a call into a tool's struct
       table.c    lists the tools and writes their definitions
       job.c      runs commands: waiting, running, finished
       program.c  the same for other protocols: raw output
       far.c      commands and files of another machine
       call.c     carries one call from its arguments to its result
       result.c   fills and prints a result
       journal.c  records every call, in memory and in a file
       seen.c     remembers the files that a session has read or written,
                  and their content
       tools.c    the object itself: open, close, wait
       bash.c     bash: runs a command
       exit.c     exit codes that are answers, not failures
       control.c  bash_output, bash_input, kill
       write.c    write, edit, multi_edit, exists
       search.c   what glob, grep and list share: pages, notes
       grep.c     grep: searches the lines of files
       plan.c     the todo plan of an agent: plan_tool, reminders
       undo.c     checkpoint, checkpoints, undo, changes

   read.c, edit_lines.c, patch.c, glob.c and list.c offer a tool and nothing
   else.

   The lock of the loop protects jobs, calls that wait and idempotency records.
   A comment reads "Takes the lock." where a function locks it, and "Under the
   lock." where the caller must hold it. When the loop is a server's, only its
   thread starts, steps and closes calls of commands; other threads may prepare
   them, and run the tools that work on files. */

#include "../core/core_private.h"
#include "../edit/edit.h"
#include "../edit/patch.h"
#include "../pattern/pattern_private.h"
#include "../check/check_private.h"
#include "../history/history_private.h"
#include "tools.h"

/* ==== args.c: arguments ================================================== */

/* Maximum of JSON values and keys in the arguments of a client's call. Honest
   long arguments are one long string; millions of values would take many times
   their bytes in memory. */
enum { HFSBI_ARGUMENT_VALUES = 200000 };

typedef enum hfsbi_arg_type {
    HFSBI_ARG_STR,    /* hfsb_str; ptr is NULL when absent */
    HFSBI_ARG_INT,    /* long long */
    HFSBI_ARG_NUMBER, /* double */
    HFSBI_ARG_BOOL,   /* bool */
    HFSBI_ARG_SWITCH, /* int: 1, 0, or -1 when absent */
    HFSBI_ARG_OBJECT, /* const hfsb_json_value *; NULL when absent */
    HFSBI_ARG_LIST    /* the same, an array */
} hfsbi_arg_type;

enum {
    HFSBI_REQUIRED = 1,
    HFSBI_UNLISTED = 2,  /* accepted, but left out of schemas */
    HFSBI_CLAMPED = 4,   /* a value above max counts as max */
    HFSBI_NULL_IS_0 = 8, /* null is 0, not the default */
    HFSBI_NO_NUL = 16,   /* a path: a NUL byte is an error */
    HFSBI_ONE_OF = 32,   /* a text that is not in `choices` is an error */
    HFSBI_DELIVERY = 64, /* how the reply is delivered: repeats of a call may
                            differ in it */
    HFSBI_BRIEF = 128,   /* a list whose items are described elsewhere */
    HFSBI_SENT = 256,    /* a client sends its default when it is not given */
    HFSBI_OR_NUMBER =
        512,              /* a text that may come as a number; or one text, for
                             a list */
    HFSBI_BY_TOOL = 1024, /* has several types: the tool reads it itself */
    HFSBI_FLAT_ONLY = 2048, /* listed for people and programs, not for hosts of
                              models */
    HFSBI_UNTOLD = 4096 /* a long text, or one that may be secret: the journal
                           gets only its size, or the keys of an object */
};

/* Kinds of schemas. */
typedef enum hfsbi_schema {
    HFSBI_SCHEMA_FULL,
    HFSBI_SCHEMA_PLAIN, /* without what some hosts cannot convert */
    HFSBI_SCHEMA_STRICT /* of OpenAI's strict mode: every parameter is
                           required, and null where it need not be given */
} hfsbi_schema;

/* One parameter of a tool. A list of parameters serves the JSON Schema, the
   check of keys, the reading into a struct with defaults and limits, the
   details of a 422 reply, and the requests of a client: required parameters
   and those that are SENT come first, in the order of the list, which is that
   of the reference's client. */
typedef struct hfsbi_param {
    const char    *name; /* NULL ends a list */
    hfsbi_arg_type type;
    unsigned       flags;
    size_t         field; /* offset in the tool's struct of arguments */
    const char    *words; /* description in the schema (NULL: none) */
    const char    *must;  /* describes min and max in an error: "a number of
                             lines from 0 to 20" (NULL: no limits) */
    long long      min, max, preset;
    const char    *choices;          /* separated by blanks; aliases after
                                        "|" */
    const struct hfsbi_param *items; /* of each object in a list (NULL: its
                                        items are strings) */
} hfsbi_param;

/* Rows of a list of parameters: plain, with limits, with choices, a list. */
#define HFSBI_PARAM(name, type, flags, args, field, words)                    \
    {                                                                         \
        name, type, flags, offsetof(args, field), words, NULL, 0, 0, 0, NULL, \
            NULL                                                              \
    }
#define HFSBI_PARAM_RANGE(name, type, flags, args, field, words, min, max, \
                          preset, must)                                    \
    {                                                                      \
        name, type, flags, offsetof(args, field), words, must, min, max,   \
            preset, NULL, NULL                                             \
    }
#define HFSBI_PARAM_CHOICE(name, flags, args, field, choices)                \
    {                                                                        \
        name, HFSBI_ARG_STR, flags, offsetof(args, field), NULL, NULL, 0, 0, \
            0, choices, NULL                                                 \
    }
#define HFSBI_PARAM_LIST(name, flags, args, field, items)                     \
    {                                                                         \
        name, HFSBI_ARG_LIST, flags, offsetof(args, field), NULL, NULL, 0, 0, \
            0, NULL, items                                                    \
    }
#define HFSBI_PARAM_END \
    { NULL, HFSBI_ARG_STR, 0, 0, NULL, NULL, 0, 0, 0, NULL, NULL }

/* How to read arguments. */
typedef struct hfsbi_args_how {
    bool           strict; /* an unknown key is an error, not a note */
    hfsb_buf      *notes;  /* receives notes about unknown keys */
    hfsb_str       id;     /* replaces the argument `id` (ptr NULL: none) */
    hfsb_json_doc *parsed; /* documents that receive objects and lists which
                              came as a string of JSON, one for each such
                              parameter; the caller frees them (NULL: none) */
    size_t         parsed_count; /* how many there are */
    hfsb_buf      *number; /* receives a number that is taken as a text (NULL:
                              an error); the caller frees it */
    hfsb_edit_names names; /* of arguments, in messages about values */
} hfsbi_args_how;

/* Checks and reads object (NULL: an empty one) into the struct *out, whose
   layout params describe. Texts in *out are views of the document. HFSB_OK;
   HFSB_ARG with the message and err->key; HFSB_NOMEM; HFSB_LIMIT: params have
   more objects and lists than there are documents. */
HFSBI_FN hfsb_status hfsbi_args_read(const hfsbi_param     *params,
                                     const hfsb_json_value *object,
                                     const hfsbi_args_how *how, void *out,
                                     hfsb_err *err);

/* The first part of hfsbi_args_read(): object must be a JSON object whose keys
   are known and unique. Returns as hfsbi_args_read(). */
HFSBI_FN hfsb_status hfsbi_args_check(const hfsbi_param     *params,
                                      const hfsb_json_value *object,
                                      const hfsbi_args_how  *how,
                                      hfsb_err              *err);

/* The second part: reads the values of a checked object. */
HFSBI_FN hfsb_status hfsbi_args_fill(const hfsbi_param     *params,
                                     const hfsb_json_value *object,
                                     const hfsbi_args_how *how, void *out,
                                     hfsb_err *err);

/* Returns the parameter of that name, or NULL. */
HFSBI_FN const hfsbi_param *hfsbi_param_find(const hfsbi_param *params,
                                             hfsb_str           name);

/* True when object has no member for p, or one that p can read. */
HFSBI_FN bool hfsbi_param_fits(const hfsbi_param     *p,
                               const hfsb_json_value *object,
                               const hfsb_alloc      *alloc);

/* Moves the next choice from *rest, a view of `choices`, to *choice; aliases
   come last. False at the end. */
HFSBI_FN bool hfsbi_param_choice(hfsb_str *rest, hfsb_str *choice);

/* Appends the JSON Schema of an object with these parameters. A failure stays
   in out->status. */
HFSBI_FN void hfsbi_params_schema(const hfsbi_param *params, hfsbi_schema kind,
                                  hfsb_buf *out);

/* ==== table.c: the list of tools ========================================= */

/* The effect of a tool, for the annotations of MCP. */
typedef enum hfsbi_tool_kind {
    HFSBI_TOOL_READS,   /* changes nothing */
    HFSBI_TOOL_CHANGES, /* changes files */
    HFSBI_TOOL_REPEATS, /* changes something, and is idempotent */
    HFSBI_TOOL_RUNS     /* may do anything */
} hfsbi_tool_kind;

/* How a tool is run. */
enum {
    HFSBI_TOOL_ONCE = 1,    /* call.c makes it run once for a key */
    HFSBI_TOOL_ON_DISK = 2, /* it is done when its function returns, which may
                               block: a server runs it in a thread */
    HFSBI_TOOL_CORE = 4, /* every task needs it: hosts should not defer it */
    HFSBI_TOOL_ON_REQUEST = 8, /* offered to a model only when it is named */
    HFSBI_TOOL_HISTORY = 16    /* works on checkpoints: offered with them */
};

/* What a tool is, as a row of constants. The row does not name the functions
   of the tool: a program that only describes tools, or calls them on another
   machine, need not link them. */
typedef struct hfsbi_tool {
    const char        *name, *title;
    const char        *description; /* "{shell}" becomes the shell in use,
                                       "{confined}" what it may touch */
    const char        *remote;      /* description on another machine (NULL:
                                       the same) */
    hfsbi_tool_kind    kind;
    unsigned           flags;
    const hfsbi_param *params;
} hfsbi_tool;

/* The tools in the order of their definitions: X(name, prepare). Each has in
   its own file a row, hfsbi_tool_NAME(), and a function, hfsbi_run_NAME(),
   which runs it on the struct that its parameters describe. The function fills
   call->result and call->fields, or sets call->wait. It returns HFSB_OK even
   when the tool failed and the result contains the reason; else the status of
   the call with the message in *err. `prepare` copies what the function needs
   of long arguments, in any thread (NULL: nothing). */
#define HFSBI_TOOL_LIST(X)      \
    X(bash, hfsbi_prepare_bash) \
    X(bash_output, NULL)        \
    X(bash_input, NULL)         \
    X(kill, NULL)               \
    X(read, NULL)               \
    X(write, NULL)              \
    X(edit, NULL)               \
    X(multi_edit, NULL)         \
    X(apply_patch, NULL)        \
    X(glob, NULL)               \
    X(grep, NULL)               \
    X(list, NULL)               \
    X(exists, NULL)             \
    X(edit_lines, NULL)         \
    X(checkpoint, NULL)         \
    X(checkpoints, NULL)        \
    X(undo, NULL)               \
    X(changes, NULL)

#define HFSBI_X(name, prepare)                                               \
    HFSBI_FN const hfsbi_tool *hfsbi_tool_##name(void);                      \
    HFSBI_FN hfsb_status hfsbi_run_##name(hfsb_call *call, const void *args, \
                                          hfsb_err *err);
HFSBI_TOOL_LIST(HFSBI_X)
#undef HFSBI_X
HFSBI_FN hfsb_status hfsbi_prepare_bash(hfsb_call *call, const void *args,
                                        hfsb_err *err);

enum {
#define HFSBI_X(name, prepare) HFSBI_TOOL_AT_##name,
    HFSBI_TOOL_LIST(HFSBI_X)
#undef HFSBI_X
        HFSBI_TOOLS
};

/* Returns the tool with number i of HFSBI_TOOLS. */
HFSBI_FN const hfsbi_tool *hfsbi_tool_at(size_t i);
/* Returns the tool of that name, or NULL. */
HFSBI_FN const hfsbi_tool *hfsbi_tool_find(hfsb_str name);

/* Appends the description as a JSON string, with "{shell}" and "{confined}"
   replaced as for hfsbi_tools_define(). A failure stays in out->status. */
HFSBI_FN void hfsbi_tool_put_description(const hfsbi_tool  *t,
                                         const char        *shell,
                                         hfsb_confine_level level,
                                         hfsb_buf          *out);

/* Appends the definitions of all tools but those on request, and of the
   `count` tools in `more`, as a JSON array. shell runs the commands on this
   machine, confined to that level; NULL describes the tools of another
   machine. HFSB_OK, or the failure with *err. */
HFSBI_FN hfsb_status hfsbi_tools_define(const char              *shell,
                                        hfsb_confine_level       level,
                                        const hfsbi_tool *const *more,
                                        size_t count, hfsb_tools_format format,
                                        hfsb_buf *out, hfsb_err *err);

/* ==== result.c: results ================================================== */

/* Initialises an empty result, with alloc for its memory. */
HFSBI_FN void hfsbi_result_init(hfsb_tool_result *result,
                                const hfsb_alloc *alloc);

/* Marks the result as a success and appends to its output. HFSB_OK or
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_result_ok(hfsb_tool_result *result,
                                     const char       *format, ...)
    HFSBI_PRINTF(2, 3);
/* Appends the hunks of a unified diff of one file to the output, shortened,
   for a model that must see what was written. With `head` also the two lines
   before them, for people. HFSB_OK, HFSB_NOMEM or HFSB_LIMIT. */
HFSBI_FN hfsb_status hfsbi_result_add_diff(hfsb_tool_result *result,
                                           hfsb_str diff, bool head);
/* Marks the result as a failure and appends to its error. HFSB_OK or
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_result_fail(hfsb_tool_result *result,
                                       hfsb_status code, const char *format,
                                       ...) HFSBI_PRINTF(3, 4);
/* The same with code, key and message of *err. HFSB_OK; HFSB_NOMEM also when
   that is err->code, with the result as it was. */
HFSBI_FN hfsb_status hfsbi_result_err(hfsb_tool_result *result,
                                      const hfsb_err   *err);

/* Fills the result of a call that was not carried out, with the message of
   *err (may be NULL) or the text of the status. Without memory the error stays
   empty. */
HFSBI_FN void hfsbi_result_status(hfsb_tool_result *result, hfsb_status st,
                                  const hfsb_err *err);

/* Appends a text of a file, as UTF-8. A failure stays in out->status. */
HFSBI_FN void hfsbi_append_repaired(hfsb_buf *out, hfsb_str text);

/* ==== journal.c: events ================================================== */

/* The arguments of a call in short, secrets hidden. All zero except text.alloc
   is empty. */
typedef struct hfsbi_brief {
    hfsb_buf text; /* path, command, then the others as a JSON object */
    size_t   path, command; /* where each of the two ends */
} hfsbi_brief;

/* Fills an empty brief for the journal (may be NULL: then it stays empty).
   params may be NULL: nothing is known of the arguments. id (ptr NULL: none)
   replaces the argument `id`. Without memory the brief stays empty. */
HFSBI_FN void hfsbi_brief_fill(hfsb_journal *journal, hfsbi_brief *brief,
                               const hfsbi_param     *params,
                               const hfsb_json_value *arguments, hfsb_str id);

/* Fills an empty brief with a path alone. */
HFSBI_FN void hfsbi_brief_path(hfsb_journal *journal, hfsbi_brief *brief,
                               hfsb_str path);

/* What is recorded, in addition to time and numbers. */
typedef struct hfsbi_event {
    const char             *who, *tool;
    const hfsbi_brief      *brief;
    unsigned long long      call;   /* (0: that of this event) */
    const hfsb_tool_result *result; /* NULL: the command runs or waits */
    const struct hfsbi_job *job;    /* bash: the command (NULL: none) */
    const char             *job_id; /* of another call (NULL or "": none) */
    bool                    repeat;
    long long               duration_ms;
    unsigned long long      output_bytes;
} hfsbi_event;

/* Adds an event and returns its number. */
HFSBI_FN unsigned long long hfsbi_journal_add(hfsb_journal      *journal,
                                              const hfsbi_event *event);

/* Hides the values of the secret variables of an environment, "NAME=value". */
HFSBI_FN void hfsbi_journal_hide_env(hfsb_journal      *journal,
                                     const char *const *env);

/* Appends the folder of the journal's file, if it has one, to a list of
   places. */
HFSBI_FN void hfsbi_journal_place(const hfsb_journal *journal,
                                  hfsb_buf           *places);

/* A listener for new events; part of its owner. fn is called in any thread,
   under the lock of the journal, once after each hfsbi_journal_listen(). */
typedef struct hfsbi_journal_ear {
    struct hfsbi_journal_ear *next;   /* private */
    bool                      called; /* private */
    void (*fn)(struct hfsbi_journal_ear *ear);
} hfsbi_journal_ear;

HFSBI_FN void hfsbi_journal_listen(hfsb_journal      *journal,
                                   hfsbi_journal_ear *ear);
HFSBI_FN void hfsbi_journal_unlisten(hfsb_journal      *journal,
                                     hfsbi_journal_ear *ear);

typedef struct hfsbi_journal_figures {
    unsigned long long events; /* ever */
    unsigned long long failed; /* lines that could not be written */
    size_t             held;   /* events in memory, */
    size_t             bytes;  /* ... and their size */
    bool               file;   /* there is one */
} hfsbi_journal_figures;

HFSBI_FN hfsbi_journal_figures hfsbi_journal_count(hfsb_journal *journal);

/* Calls fn with the line of each event after `since`, oldest first, while it
   returns true. Sets *page. fn must not use the journal. */
HFSBI_FN void hfsbi_journal_visit(
    hfsb_journal *journal, unsigned long long                            since,
    bool (*fn)(void *user, unsigned long long seq, hfsb_str line), void *user,
    hfsb_journal_page *page);

/* ==== job.c: commands ==================================================== */

/*             a slot is free            the command ends
      WAITING ----------------> RUNNING ------------------> DONE
         |                                                    ^
         +---- killed, timed out, or could not be started ----+            */
typedef enum hfsbi_job_state {
    HFSBI_JOB_WAITING,
    HFSBI_JOB_RUNNING,
    HFSBI_JOB_DONE
} hfsbi_job_state;

enum {
    HFSBI_JOB_LEFT = 16,  /* survivors listed in a reply */
    HFSBI_JOB_ID = 160,   /* size of an id, with NUL */
    HFSBI_JOB_SPANS = 128 /* sessions of commands remembered */
};

/* The todo plan of an agent, see plan.c. All zero at first, except for
   doc.alloc. */
typedef struct hfsbi_plan {
    hfsb_json_doc doc;      /* the items, an array */
    unsigned      reminded; /* reminders in a row */
} hfsbi_plan;

/* Tools objects in one loop: those of a server, or one alone. The limits on
   commands count together all objects that share a root. One of them may
   oversee the group: its calls reach the jobs of all. Protected by the lock of
   the loop. */
typedef struct hfsbi_tools_group {
    hfsbi_loop   *loop;
    hfsb_tools   *first;                    /* newest first */
    hfsb_tools   *overseer;                 /* or NULL */
    size_t        jobs[HFSBI_JOB_DONE + 1]; /* by state */
    unsigned long ever;                     /* jobs added */
    size_t        input;     /* bytes of standard input that jobs hold */
    size_t        max_input; /* (0: any number) */
    size_t        tap; /* bytes of output that the tap of a command keeps (0:
                          commands have none) */
    hfsb_buf      env; /* set late: "NAME=value" or, to unset, "NAME", for all
                          commands; each ends in NUL. Freed by the owner */
    hfsbi_plan    plan; /* that any client sent last. Freed by the owner */
} hfsbi_tools_group;

/* What a command of another protocol has beyond those of bash: raw output as a
   feed, see program.c. Owns its texts. */
typedef struct hfsbi_raw_spec {
    bool     on;
    hfsb_buf argv; /* each ends in NUL; empty: `command`, for the shell */
    hfsb_buf tag;  /* the caller's, or empty */
    unsigned cols, rows; /* of a terminal (0: none) */
    bool     keep_input; /* standard input stays open */
    bool     bare_env;   /* `env` is the whole environment */
    size_t   keep;       /* bytes of output that are kept (0: 1 MiB) */
} hfsbi_raw_spec;

/* The request for a command; owns its texts. */
typedef struct hfsbi_job_spec {
    hfsb_buf id; /* the caller's, or empty */
    hfsb_buf command, description;
    hfsb_buf work_dir;       /* where the command runs */
    hfsb_buf work_dir_given; /* the same as the caller wrote it */
    hfsb_buf shell;
    hfsb_buf input;
    hfsb_buf env; /* "NAME=value" or, to unset, "NAME"; each ends in NUL */
    bool     has_input, background, merge_stderr;
    double   timeout; /* seconds; 0: none */
    const char *who;  /* asks for it; constant (NULL: hfsb_tools.who) */
    hfsbi_raw_spec raw;
} hfsbi_job_spec;

typedef struct hfsbi_job_scan hfsbi_job_scan; /* see job.c */

/* A callback for the start of a program, see hfsbi_program_on_start(). */
typedef struct hfsbi_job_waiter {
    struct hfsbi_job_waiter *next;
    void (*fn)(void *user, struct hfsbi_job *job);
    void *user;
} hfsbi_job_waiter;

/* Waits until a program takes more input, see hfsbi_program_await_room(); part
   of its owner, which sets the first two members. */
typedef struct hfsbi_job_writer {
    void (*on_room)(void *user);
    void                    *user;
    struct hfsbi_job        *job;  /* private; NULL: does not wait */
    struct hfsbi_job_writer *next; /* private */
} hfsbi_job_writer;

typedef struct hfsbi_job {
    struct hfsbi_job  *next;
    hfsb_tools        *tools;
    hfsbi_timer        timer;            /* ends a wait for a slot */
    char               id[HFSBI_JOB_ID]; /* generated, or the caller's */
    char               marker[HFSBI_JOB_ID + 48]; /* value of HFSB_JOB in the
                                  environment: the id; a caller's id is
                                  followed by a part that makes it unique on
                                  this machine */
    struct hfsbi_once *once; /* its idempotency record; NULL: it had neither
                                a caller's id nor a key, or has expired */
    hfsbi_job_state    state;
    hfsbi_job_scan    *scan;    /* a checkpoint is being taken before it
                                   starts; NULL: none is */
    bool               scanned; /* it was taken */
    hfsbi_job_spec     spec;
    long long          created, ended; /* hfsb_clock_ms() */
    long               pid;            /* 0 until it runs */
    hfsb_proc         *proc;           /* NULL unless it runs */
    hfsb_proc_result   end;
    hfsbi_record       record;
    hfsbi_feed        *feed; /* of a raw command; NULL: it has a record */
    hfsbi_feed        *tap;  /* of another: its newest output as it came, for
                                people who watch; NULL: not kept */
    hfsbi_job_waiter  *waiters; /* the first is called first */
    hfsbi_job_writer  *writers; /* the same */
    bool               loose; /* its output is read, whether there is room in
                                 the feed or not */
    hfsb_proc_entry    left[HFSBI_JOB_LEFT]; /* survivors */
    size_t             left_count;
    hfsbi_session_span span;        /* of its session, for survivors */
    hfsb_tool_result   result;      /* bash's result, once done */
    hfsb_status        status;      /* of that result */
    bool               result_held; /* the result was not dropped */
    bool               killed;      /* someone asked to end it */
    hfsbi_guard       *guard;       /* what the command must not plant; NULL:
                                       none */
    hfsb_buf           notes;       /* of the guard and of confinement; each
                                       begins with a line feed */
    unsigned long long kills;       /* hfsbi_confine_kills() at the start */
    unsigned long long shown;   /* record.bytes when bash_output last looked */
    unsigned long long read_to; /* offset after the last page shown */
    unsigned long long owner;   /* of the call that added it */
    hfsbi_brief        brief;   /* of its arguments, for the journal */
    unsigned long long event;   /* number of its first event; 0: none */
    size_t             users; /* calls that refer to it: not freed meanwhile */
    size_t             input; /* bytes that its group counts */
} hfsbi_job;

/* Initialises an empty spec, with alloc for its texts. */
HFSBI_FN void hfsbi_job_spec_init(hfsbi_job_spec   *spec,
                                  const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_job_spec_free(hfsbi_job_spec *spec);
/* Returns the first failure of an append to one of the texts, or HFSB_OK. */
HFSBI_FN hfsb_status hfsbi_job_spec_status(const hfsbi_job_spec *spec);

/* Returns the environment of a command that sets or unsets variables, or NULL
   without memory. *size: its entries, with the NULL at its end. */
HFSBI_FN const char **hfsbi_env_merge(const hfsb_tools     *tools,
                                      const hfsbi_job_spec *spec,
                                      size_t               *size);
/* Appends an object of variables as "NAME=value" or, for null, "NAME", each
   with a NUL. HFSB_OK, or HFSB_ARG with *err; out->status keeps other
   failures. */
HFSBI_FN hfsb_status hfsbi_env_read(const hfsb_json_value *object,
                                    hfsb_buf *out, hfsb_err *err);
/* Returns the name in "NAME=value" or "NAME", as a view of entry. */
HFSBI_FN hfsb_str hfsbi_env_name(const char *entry);

/* The functions from here to hfsbi_jobs_free() run under the lock. */

/* Returns the job of this object with that id, or NULL. */
HFSBI_FN hfsbi_job *hfsbi_job_find(hfsb_tools *tools, hfsb_str id);

/* Iterate over the jobs that calls of this object may name, NULL at the end:
   its own, newest first, and if it oversees its group those of all others. */
HFSBI_FN hfsbi_job *hfsbi_jobs_first(const hfsb_tools *tools);
HFSBI_FN hfsbi_job *hfsbi_jobs_next(const hfsb_tools *tools,
                                    const hfsbi_job  *job);
/* Returns the one with that id, or NULL. */
HFSBI_FN hfsbi_job *hfsbi_jobs_find(const hfsb_tools *tools, hfsb_str id);

/* The call that asks for a job. */
typedef struct hfsbi_job_asked {
    hfsb_str             key;     /* of its idempotency record, or empty */
    const unsigned char *digest;  /* of tool and arguments, for that record */
    hfsb_tools_text_fn   on_text; /* (NULL: none) */
    hfsb_tools_text_fn   on_line; /* (NULL: none) */
    void                *user;    /* of both */
    unsigned long long   owner;   /* see hfsbi_call_own() */
    hfsbi_brief         *brief;   /* moved into the job */
} hfsbi_job_asked;

/* Adds a job and starts it when a slot is free. Moves the texts out of *spec
   and leaves it empty. An empty id is replaced by a generated one. A job that
   cannot be started is DONE, and its result contains the reason. NULL without
   memory, with *spec as it was. */
HFSBI_FN hfsbi_job *hfsbi_job_add(hfsb_tools *tools, hfsbi_job_spec *spec,
                                  const hfsbi_job_asked *asked);
/* HFSB_OK if a job with that much standard input may be added, else HFSB_LIMIT
   with *err. */
HFSBI_FN hfsb_status hfsbi_job_admit(const hfsb_tools *tools, size_t input,
                                     hfsb_err *err);

/* Asks a job to end, without waiting. False when it is done already. */
HFSBI_FN bool hfsbi_job_kill(hfsb_tools *tools, hfsbi_job *job);
/* Sends KILL to the survivors of a finished job that the snapshot shows, and
   lists their pids. Returns their number, which may be more than max. */
HFSBI_FN size_t hfsbi_job_kill_left(hfsbi_job *job, hfsbi_snapshot *snap,
                                    long *list, size_t max);

/* Returns the number of jobs in that state. */
HFSBI_FN size_t hfsbi_jobs_count(const hfsb_tools *tools,
                                 hfsbi_job_state   state);

/* Starts waiting jobs of the group, the oldest first, while slots are free. */
HFSBI_FN void hfsbi_jobs_start(hfsbi_tools_group *group);
/* Frees finished jobs that are too old or too many, and drops the text of
   others when there is too much of it. The idempotency record of a job is kept
   after its text is dropped. */
HFSBI_FN void hfsbi_jobs_drop_old(hfsb_tools *tools);
/* Kills and frees all jobs. */
HFSBI_FN void hfsbi_jobs_free(hfsb_tools *tools);

/* Takes exits and output of all commands, without waiting. Takes the lock. */
HFSBI_FN void hfsbi_jobs_step(hfsb_tools *tools);

/* Signals every process that this object ever started, for the end of a
   program: TERM, or KILL with `hard`. This includes the process trees of
   running commands and the survivors of finished ones; waiting commands no
   longer start. Does not wait. Returns the number of processes found; call it
   again for processes started meanwhile. Without /proc it reaches only the
   process groups of running commands. Takes the lock. */
HFSBI_FN size_t hfsbi_tools_sweep(hfsb_tools *tools, bool hard);
/* Does this, with KILL, for all objects of the group, and drops finished jobs
   with their output; the record of one that must not run twice is kept. In the
   thread of the loop. */
HFSBI_FN size_t hfsbi_tools_end_all(hfsb_tools *tools);

/* True when there is a job with that id, see hfsbi_jobs_find(). Takes the
   lock. */
HFSBI_FN bool hfsbi_job_exists(hfsb_tools *tools, hfsb_str id);
/* Asks one job, or with an empty id all jobs, to end; does not wait. Takes the
   lock. */
HFSBI_FN void hfsbi_jobs_end(hfsb_tools *tools, hfsb_str id);

typedef struct hfsbi_jobs_figures {
    size_t        running, waiting; /* now */
    unsigned long ever;             /* jobs added so far */
} hfsbi_jobs_figures;

/* Of the whole group. Takes the lock. */
HFSBI_FN hfsbi_jobs_figures hfsbi_jobs_count_all(hfsb_tools *tools);

/* ==== program.c: programs of other protocols ============================= */

/* Starts a program, or joins the one with the same id that the object has
   started with the same arguments. Its texts are moved out of the spec; only
   those of hfsbi_raw_spec and id, work_dir, env, input, timeout are used, and
   `command` without argv. A relative or empty work_dir is relative to that of
   the tools. The program may wait for a slot, and may have failed to start:
   see the next functions. The caller holds it until hfsbi_program_release().
   HFSB_OK; HFSB_REFUSED: the id was used for another command, or its program
   is forgotten; HFSB_ARG: the id has a NUL or more than 159 bytes; HFSB_LIMIT:
   too many wait; HFSB_NOMEM. Takes the lock; callers of the functions below
   that are not in the thread of the loop must take it too. */
HFSBI_FN hfsb_status hfsbi_program_start(hfsb_tools        *tools,
                                         hfsbi_job_spec    *spec,
                                         unsigned long long owner,
                                         hfsbi_job **out, hfsb_err *err);
/* Calls fn(user) once the program runs or has failed to start; several users
   may wait for one program. False when that is known already, and fn is not
   called; without memory the program ends before it has started. fn NULL: this
   user (NULL: no user) is no longer called. */
HFSBI_FN bool hfsbi_program_on_start(hfsbi_job *job,
                                     void (*fn)(void *user, hfsbi_job *job),
                                     void *user);
/* Returns why it could not be started; NULL: it runs, has run or waits. The
   status is job->result.code: of hfsb_proc_open(), or HFSB_CANCELLED,
   HFSB_TIMEOUT when that came before a slot was free. */
HFSBI_FN const char *hfsbi_program_failure(const hfsbi_job *job);
/* Finds the newest program of the object with that id, pid or tag ("" or 0:
   not by this), which the caller then holds; NULL: none. */
HFSBI_FN hfsbi_job *hfsbi_program_find(hfsb_tools *tools, hfsb_str id,
                                       long pid, hfsb_str tag);
HFSBI_FN void       hfsbi_program_release(hfsbi_job *job);
/* As hfsb_proc_input(), _signal() and _resize(); HFSB_REFUSED unless it
   runs. */
HFSBI_FN hfsb_status hfsbi_program_input(hfsbi_job *job, hfsb_str bytes,
                                         bool end, hfsb_err *err);
/* Calls on_room of the writer once, in the loop, when a program that has
   refused input with HFSB_LIMIT may take some, or has ended. The caller holds
   the program, and forgets the writer before it goes. */
HFSBI_FN void hfsbi_program_await_room(hfsbi_job        *job,
                                       hfsbi_job_writer *writer);
/* Ends that wait; does nothing for a writer that does not wait. */
HFSBI_FN void hfsbi_program_forget_room(hfsbi_job_writer *writer);
HFSBI_FN hfsb_status hfsbi_program_signal(hfsbi_job *job, int number,
                                          hfsb_proc_target target,
                                          hfsb_err        *err);
HFSBI_FN hfsb_status hfsbi_program_resize(hfsbi_job *job, unsigned cols,
                                          unsigned rows, hfsb_err *err);

/* ==== far.c: commands of another machine ================================= */

/* Where the commands and files of a tools object are, when they are not on
   this machine. A command is one of its jobs; the thread that has called bash
   runs it, from hfsbi_far_run() until it returns. */
typedef struct hfsbi_far_machine {
    hfsbi_far files;
    /* Starts the command of job->spec and, unless it is for the background,
       waits for its end. Output goes to hfsbi_far_output(). Fills job->pid and
       job->end. HFSB_OK; else the status of the call with *err, unless
       *refused: then it was not started, as *err says. */
    hfsb_status (*run)(void *user, hfsbi_job *job, const hfsb_cancel *cancel,
                       bool *refused, hfsb_err *err);
    /* Ends the job of that id (ptr NULL: all) and writes the result of kill.
       HFSB_OK, or the status of the call with *err. */
    hfsb_status (*kill)(void *user, hfsb_str id, const hfsb_cancel *cancel,
                        hfsb_tool_result *result, hfsb_err *err);
    void *user;      /* of both; that of files is its own */
    bool  only_home; /* commands can write only to their home, the base of
                        relative paths */
} hfsbi_far_machine;

/* hfsb_tools_open() for another machine; far must outlive the tools. Uses only
   session, timeout, max_timeout, alloc and work_dir of opts; work_dir is the
   base of relative paths there. */
HFSBI_FN hfsb_status hfsbi_tools_open_far(const hfsbi_far_machine *far,
                                          const hfsb_tools_opts   *opts,
                                          hfsb_tools **out, hfsb_err *err);
/* Runs the job of a call of bash that was added. Without the lock. */
HFSBI_FN void hfsbi_far_run(hfsb_call *call);
/* Adds output of a job that runs. Takes the lock. */
HFSBI_FN void hfsbi_far_output(hfsbi_job *job, hfsb_proc_stream stream,
                               hfsb_str bytes);
/* Writes the result of bash for a command in the background. HFSB_OK or
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_far_background(hfsbi_job *job);
/* The file there that such a command writes to. */
enum { HFSBI_FAR_LOG = 80 };
HFSBI_FN void hfsbi_far_log(const hfsbi_job *job, char out[HFSBI_FAR_LOG]);

/* Of job.c, under the lock: output has come; the job has ended. st is the
   status of the call, err as for hfsbi_bash_result(). */
HFSBI_FN void hfsbi_job_far_output(hfsbi_job *job, hfsb_proc_stream stream,
                                   hfsb_str bytes);
HFSBI_FN void hfsbi_job_far_end(hfsbi_job *job, hfsb_status st,
                                const hfsb_err *err);

/* ==== call.c: calls ====================================================== */

/* The idempotency record of a call. That of bash refers to the job, which has
   the result. */
typedef struct hfsbi_once {
    struct hfsbi_once *next;
    hfsb_buf           key; /* empty: bash with an id of its caller */
    hfsbi_job         *job; /* NULL: of another tool */
    unsigned char      digest[HFSB_SHA256_SIZE]; /* of tool and arguments */
    bool               running;
    bool               dropped; /* the result is no longer held */
    long long          when;    /* hfsb_clock_ms() at its end */
    hfsb_tool_result   result;
    hfsb_status        status;
    size_t             users; /* calls that wait for it: not freed meanwhile */
} hfsbi_once;

/* What is left of records that were dropped because there were too many: a
   hash table that refuses a second run. It stores parts of SHA-256 digests,
   since callers choose the keys. */
typedef struct hfsbi_spent_key {
    unsigned char key[16];   /* all zero: a free slot */
    unsigned char digest[8]; /* of tool and arguments */
} hfsbi_spent_key;

typedef struct hfsbi_spent {
    hfsbi_spent_key *slots;
    size_t           count, cap; /* cap: a power of two, or 0 */
    long long        since;      /* hfsb_clock_ms() at its first key */
} hfsbi_spent;

/* The event that a call waits for. */
typedef enum hfsbi_wait {
    HFSBI_WAIT_NOTHING, /* the result is complete, or the tool runs */
    HFSBI_WAIT_START,   /* it is prepared: hfsbi_call_start() */
    HFSBI_WAIT_JOB,     /* bash: the end of its command */
    HFSBI_WAIT_SCAN,    /* bash in the background: the checkpoint before it */
    HFSBI_WAIT_ENDS,    /* kill: the ends of all jobs in `killed` */
    HFSBI_WAIT_OUTPUT,  /* bash_output, bash_input: more output, or a time */
    HFSBI_WAIT_ONCE     /* the first call with the same key */
} hfsbi_wait;

/* Storage for the arguments of any tool, in the layout of its parameters. */
typedef union hfsbi_args {
    long long   align_int;
    double      align_double;
    const void *align_pointer;
    char        bytes[256];
} hfsbi_args;

/* A listener for the progress of a call, see hfsbi_call_listen(). */
typedef struct hfsbi_call_listener {
    void (*fn)(void *user); /* NULL: nobody */
    void *user;
    bool  heard;    /* on_text was called since */
    bool  notified; /* of the end */
} hfsbi_call_listener;

/* What bash_output and bash_input wait for. */
typedef struct hfsbi_output_wait {
    unsigned long long offset;  /* bytes */
    size_t             page;    /* bytes (0: one line ends the wait) */
    bool               follows; /* no offset was given: long output is shown by
                                   head and tail */
    bool               pauses;  /* a pause after new output ends the wait */
    unsigned long long heard;   /* record.bytes that are not new */
    long long          until;   /* a deadline on hfsb_clock_ms() */
    hfsbi_timer        timer;   /* looks again */
} hfsbi_output_wait;

/* The jobs that kill waits for. */
typedef struct hfsbi_killed {
    hfsbi_job **list;
    size_t      count, cap;
    bool        one; /* by its id */
    long        left[HFSBI_JOB_LEFT]; /* survivors that were killed */
    size_t      left_count;           /* may be more than are listed */
} hfsbi_killed;

struct hfsb_call {
    hfsb_tools              *tools;
    const struct hfsbi_tool *tool; /* NULL: unknown name */
    hfsb_call_opts           opts;
    unsigned long long       owner; /* see hfsbi_call_own() */
    hfsbi_brief              brief; /* of its arguments, for the journal */
    long long                began; /* hfsb_clock_ms() */
    /* from prepare to start */
    hfsbi_args     args;
    hfsb_json_doc  parsed;                   /* that an argument refers to */
    hfsb_buf       number;                   /* the same, as a text */
    hfsbi_job_spec spec;                     /* of bash */
    unsigned char  digest[HFSB_SHA256_SIZE]; /* of tool and arguments, when the
                                                call has an id or a key */
    /* while it waits */
    hfsbi_wait          wait;
    hfsb_call          *next_waiting; /* in hfsb_tools.waiting */
    hfsbi_call_listener listener;
    hfsbi_io            cancelled; /* its cancel, while a thread is blocked in
                                    the call */
    hfsbi_once         *once;      /* record to fill, or waited for */
    hfsbi_job          *job;       /* of bash, bash_output, bash_input */
    char                job_id[HFSBI_JOB_ID];
    bool                added;   /* the job is this call's own */
    bool                streams; /* its on_text is the job's */
    hfsbi_killed        killed;
    hfsbi_output_wait   output;
    /* the result */
    hfsb_buf         notes;       /* lines that follow the output */
    bool             notes_apart; /* notes go into a field instead */
    bool   notes_counted; /* a field says how many lines of the output ... */
    size_t note_lines;    /* ... are notes: these and those of `notes` */
    hfsbi_build      fields;      /* of the result; the root is open */
    hfsb_tool_result result;
    hfsb_status      status;
    bool             taken;    /* the result was moved out */
    bool             changing; /* it has locked hfsbi_seen.changing */
};

/* These run under the lock: */

/* Returns the idempotency record of that key, or NULL. */
HFSBI_FN hfsbi_once *hfsbi_once_find(hfsb_tools *tools, hfsb_str key);
/* Returns a record for a call that runs now, or NULL without memory. */
HFSBI_FN hfsbi_once *hfsbi_once_add(hfsb_tools *tools, hfsb_str key,
                                    const unsigned char *digest);
/* Frees records that are too old or too many, and drops results when there is
   too much of them. */
HFSBI_FN void hfsbi_onces_drop_old(hfsb_tools *tools);
/* HFSB_REFUSED with *err when a call with this id of a job or this key (either
   may be empty) was made and its record is gone, else HFSB_OK. digest is that
   of the new call. */
HFSBI_FN hfsb_status hfsbi_spent_check(const hfsb_tools    *tools,
                                       const unsigned char *digest,
                                       hfsb_str id, hfsb_str key,
                                       hfsb_err *err);
/* Frees all idempotency records. */
HFSBI_FN void hfsbi_onces_free(hfsb_tools *tools);

/* hfsb_call_open() in two steps. prepare checks and reads the arguments and
   finds out whether the call is a repeat: in any thread. start runs the tool.
   The arguments must exist until then, but not those of bash. */
HFSBI_FN hfsb_status hfsbi_call_prepare(hfsb_tools            *tools,
                                        const hfsbi_tool      *tool,
                                        const hfsb_json_value *arguments,
                                        const hfsb_call_opts  *opts,
                                        hfsb_call            **out);
HFSBI_FN void        hfsbi_call_start(hfsb_call *call);

/* Names the client of a call that is prepared, where several share the tools:
   kill without an id ends only jobs of the same owner. 0: there is one. */
HFSBI_FN void hfsbi_call_own(hfsb_call *call, unsigned long long owner);

/* Names who makes a call that is prepared, for the journal; constant. */
HFSBI_FN void hfsbi_call_name(hfsb_call *call, const char *who);

/* Sets on_text and on_line of a call that is prepared; `user` is that of its
   options. */
HFSBI_FN void hfsbi_call_on_text(hfsb_call *call, hfsb_tools_text_fn on_text,
                                 hfsb_tools_text_fn on_line);

/* The call waits for that event. Under the lock. */
HFSBI_FN void hfsbi_call_wait(hfsb_call *call, hfsbi_wait wait);

/* Calls fn in the loop, with the lock, after on_text was called, and once when
   the result is complete. fn may close the call. For a call that waits. */
HFSBI_FN void hfsbi_call_listen(hfsb_call *call, void (*fn)(void *user),
                                void      *user);
/* Ends the wait of bash_output and bash_input now. */
HFSBI_FN void hfsbi_call_hurry(hfsb_call *call);
/* Calls the listener of each call that has news. Under the lock. */
HFSBI_FN void hfsbi_calls_notify(hfsb_tools *tools);

/* Initialises *result and parses the arguments of a call into *doc, which the
   caller frees. HFSB_OK; HFSB_ARG or HFSB_NOMEM with the failure in
   *result. */
HFSBI_FN hfsb_status hfsbi_arguments_parse(hfsb_str          text,
                                           const hfsb_alloc *alloc,
                                           hfsb_json_doc    *doc,
                                           hfsb_tool_result *result);

/* Runs a tool on the struct that its parameters describe. Any status but
   HFSB_OK is that of the call, with the message in *err. */
typedef hfsb_status (*hfsbi_run_fn)(void *user, const void *args,
                                    hfsb_tool_result *result, hfsb_err *err);
/* Calls a tool that is not in the list of tools, such as plan_tool: reads the
   arguments, runs fn and adds notes about unknown keys. strict as in
   hfsb_call_opts. *result must be initialised; it is always complete
   afterwards. */
HFSBI_FN hfsb_status hfsbi_tool_run(const hfsbi_param     *params,
                                    const hfsb_json_value *arguments,
                                    bool strict, hfsbi_run_fn fn, void *user,
                                    hfsb_tool_result *result);

/* Returns HFSB_NOT_FOUND with the message "Unknown tool: {name}". */
HFSBI_FN hfsb_status hfsbi_tool_unknown(hfsb_str name, hfsb_err *err);
/* Appends the names of the tools that hfsbi_tools_define() defines, for the
   model that has called another one. A failure stays in out->status. */
HFSBI_FN void hfsbi_tools_list(const hfsbi_tool *const *more, size_t count,
                               hfsb_buf *out);

/* ==== seen.c: the files of a session ===================================== */

enum {
    HFSBI_SNAPSHOT_MAX = 512 * 1024, /* bytes of a file that is kept */
    HFSBI_TAG = 8                    /* digits of a tag */
};

typedef struct hfsbi_digest {
    unsigned char bytes[HFSB_SHA256_SIZE];
} hfsbi_digest;

/* The version of a file: the SHA-256 of its content in hexadecimal, or for a
   file that is too large to be hashed when it is read, that of its metadata,
   which begins with "i". "": not known. */
typedef struct hfsbi_version {
    char hex[HFSB_SHA256_HEX];
} hfsbi_version;

HFSBI_FN void hfsbi_version_of(hfsb_str content, hfsbi_version *out);
HFSBI_FN void hfsbi_version_of_info(const hfsb_file_info *info,
                                    hfsbi_version        *out);
HFSBI_FN bool hfsbi_version_is_info(const hfsbi_version *version);
/* Reads a version that a caller gives (empty: ""). HFSB_OK, or HFSB_ARG with
   *err when text is not a SHA-256. */
HFSBI_FN hfsb_status hfsbi_version_read(hfsb_str text, hfsbi_version *out,
                                        hfsb_err *err);
/* The tag of a version, for edit_lines: the first digits of its SHA-256. */
HFSBI_FN hfsb_str hfsbi_version_tag(const hfsbi_version *version);

/* A file that was read or written. */
typedef struct hfsbi_seen_file {
    hfsbi_digest  key;     /* all zero: a free slot */
    hfsbi_version version; /* the one that the session knows */
    unsigned long written; /* hfsbi_seen.writes after its last write */
    bool          lost;    /* it has changed: it must be read again */
} hfsbi_seen_file;

/* A snapshot: the content of a version of a file. */
typedef struct hfsbi_saved {
    struct hfsbi_saved *next; /* the next less recently used */
    hfsbi_digest        key;
    hfsbi_version       version;
    hfsb_buf            content;
    hfsb_buf            shown; /* a byte for each line: 1 if the model was
                                     shown it */
} hfsbi_saved;

/* A set of files by their keys, texts that name a file in one way only. Any
   number of threads may use one. */
typedef struct hfsbi_seen {
    hfsbi_seen_file *table;
    size_t           count, cap; /* cap: a power of two, or 0 */
    hfsbi_saved     *snapshots;  /* most recently used first */
    unsigned long    writes;     /* of the session */
    hfsb_alloc       alloc;
    pthread_mutex_t  lock;     /* protects the members above */
    pthread_mutex_t  changing; /* one change at a time, see
                                  hfsbi_change_lock(); taken before `lock` */
} hfsbi_seen;

HFSBI_FN void hfsbi_seen_init(hfsbi_seen *seen, const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_seen_free(hfsbi_seen *seen);
/* Adds a file, or its new version. Without memory it is not added. */
HFSBI_FN void hfsbi_seen_add(hfsbi_seen *seen, hfsb_str key,
                             const hfsbi_version *version);
/* Returns whether the file was added, and its version. */
HFSBI_FN bool hfsbi_seen_has(hfsbi_seen *seen, hfsb_str key,
                             hfsbi_version *version);
/* The same for a file that the session has written. */
HFSBI_FN bool hfsbi_seen_wrote(hfsbi_seen *seen, hfsb_str key,
                               hfsbi_version *version);
/* Makes the file count as not added until it is added again. */
HFSBI_FN void hfsbi_seen_lose(hfsbi_seen *seen, hfsb_str key);

/* What a session has read or written. */
typedef struct hfsbi_sight {
    hfsbi_version      version;
    hfsb_str           content; /* of the whole file (ptr NULL: not known) */
    unsigned long long first, last; /* lines that were shown (last 0: none) */
    size_t             longest; /* lines of at most so many bytes were surely
                                   shown whole; 0: all were */
    bool               wrote;   /* it is the session's own content */
    unsigned long      since;   /* hfsbi_tools_writes() before the file was
                                       read; a later write takes precedence */
} hfsbi_sight;

/* Returns the number of writes of the session so far. */
HFSBI_FN unsigned long hfsbi_tools_writes(hfsb_tools *tools);
/* Adds a file that the session has read or written. Does nothing without a
   session, or when the file has no key. */
HFSBI_FN void hfsbi_tools_saw(hfsb_tools *tools, hfsb_str path,
                              const hfsbi_sight *sight);
/* True when the session has read or written the file, or without a session. */
HFSBI_FN bool hfsbi_tools_has_seen(hfsb_tools *tools, hfsb_str path);
/* The version that the session knows; false when it has not seen the file. */
HFSBI_FN bool hfsbi_tools_version(hfsb_tools *tools, hfsb_str path,
                                  hfsbi_version *out);
/* Appends the content of the version with that tag, and a byte for each of its
   lines: 1 if it was shown. HFSB_OK; HFSB_NOT_FOUND when it is not kept;
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_tools_snapshot(hfsb_tools *tools, hfsb_str path,
                                          hfsb_str tag, hfsb_buf *content,
                                          hfsb_buf *shown);
/* The lines of that content were shown; it need not be the version that the
   session knows. */
HFSBI_FN void hfsbi_tools_showed(hfsb_tools *tools, hfsb_str path,
                                 hfsb_str content, size_t first, size_t last);

/* The calls of a session change files one after the other: otherwise a call
   could mistake the work of another one for a change by somebody else. Nothing
   is locked without a session. Unlocked before the checks of a file run, and
   when the tool returns. */
HFSBI_FN void hfsbi_change_lock(hfsb_call *call);
HFSBI_FN void hfsbi_change_unlock(hfsb_call *call);

/* A file that a call is about to change. */
typedef struct hfsbi_file_change {
    bool          tracked; /* in a session */
    hfsbi_digest  key;
    hfsbi_version known;   /* to the caller, or else to the session */
    hfsbi_version before;  /* of the content that is about to be changed */
    bool          changed; /* that is not the one known */
    hfsb_buf      diff;    /* what changed, bounded; empty: not known */
    bool          shown;   /* diff shows all of it */
} hfsbi_file_change;

/* Compares the content of a file with the version that the caller gives (NULL
   or "": with the one that the session knows). Without memory the change is
   noticed, but not shown; so is a change from a version that is not kept. */
HFSBI_FN void hfsbi_file_change_open(hfsb_call *call, hfsb_str path,
                                     const hfsbi_version  *given,
                                     hfsb_str              content,
                                     const hfsb_file_info *info,
                                     hfsbi_file_change    *c);
/* Fills the result with the refusal to change a file that has changed, after
   the message of *why (may be NULL). If it shows all that changed, the session
   knows the file from now on. HFSB_OK or HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_file_change_refuse(hfsb_call *call, hfsb_str path,
                                              const hfsbi_file_change *c,
                                              const hfsb_err          *why);
/* The file was written with this content. A note reports what had changed
   before. */
HFSBI_FN void hfsbi_file_change_done(hfsb_call *call, hfsb_str path,
                                     hfsb_str                 content,
                                     const hfsbi_file_change *c);
HFSBI_FN void hfsbi_file_change_free(hfsbi_file_change *c);

/* ==== tools.c: the object ================================================ */
typedef struct hfsbi_drain hfsbi_drain; /* see job.c */

/* The environment of commands. */
typedef struct hfsbi_tools_env {
    hfsb_buf     text; /* "NAME=value", each ends in NUL */
    const char **list; /* the same as a list that ends in NULL */
    size_t       count;
} hfsbi_tools_env;

enum {
    HFSBI_PAGE_LEAST = 1000, /* bytes of a page */
    HFSBI_PAGE_LINE = 10     /* bytes of a page for each of its lines */
};

typedef struct hfsbi_tools_limits {
    double    timeout, max_timeout; /* seconds */
    long long grace_ms;
    size_t    running, waiting, finished; /* jobs */
    size_t    page; /* bytes of output of tools that page (0: their own) */
} hfsbi_tools_limits;

/* A host that waits in its own loop. */
typedef struct hfsbi_tools_host {
    int  pipe[2]; /* wakes it; -1 in a server's loop */
    bool watched; /* it has watched, and not stepped since */
    bool news;    /* others turned the loop since its step */
} hfsbi_tools_host;

/* Processes and pipes that ended commands have left. */
typedef struct hfsbi_tools_left {
    hfsbi_drain       *drains; /* pipes that survivors hold open */
    size_t             drain_count;
    hfsbi_session_span spans[HFSBI_JOB_SPANS]; /* sessions of commands that
                         run, or that have survivors */
    size_t             next;  /* span to overwrite when all are in use */
    unsigned long long since; /* start of the oldest process; 0: none */
} hfsbi_tools_left;

struct hfsb_tools {
    /* constant after open */
    hfsb_alloc         alloc;
    hfsb_root         *place;   /* root and working directory */
    hfsbi_checker     *checker; /* NULL: no checks; has a lock of its own */
    bool               session, no_keeper;
    hfsbi_seen         seen; /* files read or written; has a lock of its own */
    hfsbi_history     *history; /* NULL: no checkpoints; has locks of its
                                   own */
    hfsb_buf           shell;
    hfsbi_tools_env    env;
    hfsb_confine      *confine; /* of commands */
    bool               borrows; /* place, history, env and confine belong to
                                   another object */
    hfsbi_tools_limits limits;
    char               prefix[16]; /* of job ids */
    hfsb_journal      *journal;    /* NULL: none; has a lock of its own */
    char               who[80];    /* the caller, for the journal */
    const hfsbi_far_machine *far;  /* NULL: files and commands are here */
    hfsbi_loop              *loop;
    bool                     own_loop; /* else that of a server */
    hfsbi_rights       rights; /* of its work on files; `uid` is that of its
                                    commands, too */
    hfsbi_tools_group *group;
    hfsbi_tools_group  alone; /* the group of an object with its own loop */

    /* protected by the lock of the loop */
    hfsb_tools      *group_next;
    hfsbi_tools_host host;
    hfsbi_task       look;      /* posted when calls may have news */
    bool             looks;     /* it is posted */
    bool             job_ended; /* ... also to start waiting jobs */
    hfsbi_job       *jobs;      /* newest first */
    unsigned long    job_count; /* ever added */
    hfsb_call       *waiting;   /* all calls that wait */
    hfsbi_once      *onces;     /* newest first */
    hfsbi_spent      spent[2];  /* keys without a record: newer, older */
    hfsbi_spills     spills;
    hfsbi_tools_left left;
    void (*on_idle)(void *user); /* see hfsbi_tools_on_idle(); NULL: nobody */
    void            *idle_user;
};

/* hfsb_tools_open() in the group of a server, whose loop drives the object;
   the group must outlive it. NULL: a loop of its own. like: see
   hfsbi_tools_open_like(), NULL: none. */
HFSBI_FN hfsb_status hfsbi_tools_open_in(hfsbi_tools_group     *group,
                                         const hfsb_tools      *like,
                                         const hfsb_tools_opts *opts,
                                         hfsb_tools **out, hfsb_err *err);

/* Makes the object oversee its group. */
HFSBI_FN void hfsbi_tools_oversee(hfsb_tools *tools);

/* True while a command runs or waits, or a call refers to a job: then the
   object must not be freed. Takes the lock. */
HFSBI_FN bool hfsbi_tools_in_use(hfsb_tools *tools);
/* Calls fn(user) in the loop whenever a command has ended or was released and
   the object is no longer in use. fn must not free the object. (NULL: nobody
   is called) */
HFSBI_FN void hfsbi_tools_on_idle(hfsb_tools *tools, void (*fn)(void *user),
                                  void       *user);

/* Opens another object with the options of `like`, except who (may be NULL),
   in the same group. `like` must outlive it: environment and root are shared.
   The options of its caller need no longer exist. Returns as
   hfsb_tools_open(). */
HFSBI_FN hfsb_status hfsbi_tools_open_like(const hfsb_tools *like,
                                           const char *who, hfsb_tools **out,
                                           hfsb_err *err);

/* For a host that offers fewer tools than there are: nothing is checked where
   nothing can be written, and no module is imported where no command can run.
   Call it before the first call. */
HFSBI_FN void hfsbi_tools_check_less(hfsb_tools *tools, bool writes,
                                     bool runs);

/* Gives an object of hfsbi_tools_open_like() a root of its own, beneath that
   of the other one, before its first call. The root must outlive it. */
HFSBI_FN void hfsbi_tools_set_place(hfsb_tools *tools, hfsb_root *root);
/* Runs the commands of an object, and the tasks that work on its files with
   its rights, as another user. Call it before the first call. For objects
   whose tools nobody calls. */
HFSBI_FN void hfsbi_tools_set_uid(hfsb_tools *tools, unsigned uid);

/* Calls fn(user), in a thread that is not walled: for what is not bound to the
   roots, such as programs and functions of the host. Waits for it. */
HFSBI_FN void hfsbi_tools_outside(hfsb_tools *tools, void (*fn)(void *user),
                                  void       *user);

/* hfsb_tools_close() without grace: running commands are killed at once. */
HFSBI_FN void hfsbi_tools_free(hfsb_tools *tools);

/* Returns the shell when no option names one: bash if installed, because
   models write bash for a tool of that name, else /bin/sh. */
HFSBI_FN const char *hfsbi_default_shell(void);

/* One turn of the object's own loop, see hfsbi_loop_turn(). Under the lock. */
HFSBI_FN void hfsbi_tools_turn(hfsb_tools *tools, long long wait_ms);
/* Lets the loop start waiting jobs and notify calls. Under the lock. */
HFSBI_FN void hfsbi_tools_stir(hfsb_tools *tools);

/* ==== bash.c: bash ======================================================= */

/* Writes the result of bash into job->result. err is the reason why the
   command did not start, or NULL. Returns the status of the call. */
HFSBI_FN hfsb_status hfsbi_bash_result(hfsbi_job *job, const hfsb_err *err);

/* Writes the reply of a call in the background, once its command has started.
   HFSB_OK or HFSB_NOMEM. Under the lock. */
HFSBI_FN hfsb_status hfsbi_bash_reply_background(hfsb_call *call);

/* The arguments of bash about the delivery of its reply, which a server needs
   before the call starts. */
typedef struct hfsbi_delivery {
    bool     stream;
    double   timeout;       /* seconds; 0: not given */
    hfsb_str on_disconnect; /* "kill", "continue" or "" */
} hfsbi_delivery;

/* Returns those of a call of bash that is prepared; texts are views of its
   arguments. */
HFSBI_FN hfsbi_delivery hfsbi_call_delivery(const hfsb_call *call);

/* Returns "SIGTERM" and the like, or "" for a signal without a name. */
HFSBI_FN const char *hfsbi_signal_name(int number);

/* Adds the fields that report how a command ended. */
HFSBI_FN void hfsbi_put_ending(hfsbi_build *fields, const hfsbi_job *job);

/* ==== control.c: bash_output, bash_input, kill =========================== */

/* Writes bytes to the standard input of a job, and with eof closes it. Fills
   *result. HFSB_OK or HFSB_NOMEM. Takes the lock. */
HFSBI_FN hfsb_status hfsbi_job_input(hfsb_tools *tools, hfsb_str id,
                                     hfsb_str bytes, bool eof,
                                     hfsb_tool_result *result);

/* True when bash_output or bash_input need no longer wait. Under the lock. */
HFSBI_FN bool hfsbi_output_ready(hfsb_call *call);
/* Returns when to ask hfsbi_output_ready() again without new output. Under the
   lock. */
HFSBI_FN long long hfsbi_output_at(const hfsb_call *call);
/* Write the results of bash_output and kill once they need not wait. HFSB_OK
   or the failure of a buffer. Under the lock. */
HFSBI_FN hfsb_status hfsbi_output_result(hfsb_call *call);
HFSBI_FN hfsb_status hfsbi_kill_result(hfsb_call *call);

/* ==== exit.c: exit codes ================================================= */

/* Returns what the exit code of a command line means when that is an answer,
   such as "no match" for 1 of grep, or NULL for a failure. quiet: the command
   wrote nothing to stderr. */
HFSBI_FN const char *hfsbi_exit_meaning(hfsb_str command, int code,
                                        bool quiet);

/* ==== write.c: shared by the tools that write ============================ */

/* A session refuses to change a file that it has not read. Returns true when
   the change is allowed. Otherwise call->result contains the refusal and *st
   is HFSB_OK, or *st is HFSB_NOMEM. `edit` selects the wording. */
HFSBI_FN bool hfsbi_may_change(hfsb_call *call, hfsb_str path, bool edit,
                               hfsb_status *st);

/* Appends the warnings of the checks about a file to the output. HFSB_OK or
   the failure of the buffer. */
HFSBI_FN hfsb_status hfsbi_add_warnings(hfsb_call *call, hfsb_str path,
                                        hfsb_str content);

/* ==== patch.c: read before write ========================================= */

/* True when a file was not read. */
typedef bool hfsbi_unread_fn(void *user, hfsb_str path);

/* Refuses a patch that changes files which were not read: *refused is true
   and the result names all of them. A file whose change in `applied` (may be
   NULL) is proven is not named: its hunks show that their author knows the
   lines they change, and that is what reading is for. An invalid patch is not
   refused here. HFSB_OK or HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_refuse_unread(
    const hfsb_alloc *alloc, hfsb_str text, hfsbi_unread_fn *is_unread,
    void *user, const hfsb_patch_result *applied, hfsb_tool_result *result,
    bool *refused);

/* ==== search.c: shared by glob, grep and list ============================ */

/* The part of the results that a call shows. */
typedef struct hfsbi_results_page {
    size_t offset; /* results to skip */
    size_t limit;  /* results to show */
    size_t bytes;  /* of output */
} hfsbi_results_page;

/* The page that the arguments ask for: limit 0 is `preset`; at most as many
   results as a page has lines. */
HFSBI_FN hfsbi_results_page hfsbi_results_page_make(const hfsb_call *call,
                                                    long long        offset,
                                                    long long        limit,
                                                    size_t           preset);

/* Sets up *f for a call and opens it at path. Returns as
   hfsbi_finder_open(). */
HFSBI_FN hfsb_status hfsbi_finder_begin(hfsb_call *call, hfsbi_finder *f,
                                        hfsb_str path, bool all,
                                        hfsb_err *err);

/* The parameters that glob, grep and list share, for a struct of arguments
   with the members all, limit and offset. limit 0 is the default. */
#define HFSBI_FINDER_PARAMS(args, words, most, few)                           \
    HFSBI_PARAM("all", HFSBI_ARG_BOOL, 0, args, all, words),                  \
        HFSBI_PARAM_RANGE("limit", HFSBI_ARG_INT, HFSBI_CLAMPED, args, limit, \
                          NULL, 0, most, 0,                                   \
                          "a number from 1 to " #most " (0: " #few ")"),      \
        HFSBI_PARAM_RANGE("offset", HFSBI_ARG_INT, 0, args, offset, NULL, 0,  \
                          1000000, 0, "a number from 0 to 1000000")

/* Adds a note, which follows the output. HFSB_OK or the failure of the
   buffer. */
HFSBI_FN hfsb_status hfsbi_finder_note(hfsb_call *call, const char *format,
                                       ...) HFSBI_PRINTF(2, 3);

/* The argument that includes ignored files, as the caller names it. */
HFSBI_FN const char *hfsbi_finder_all(const hfsb_call *call);

/* Adds a note about the range of results shown, unless all are:
   "[201-400 of 5321 files; read on with offset=400]". `what` is " files".
   "at least" precedes the total when the walk ended early. Returns as
   hfsbi_finder_note(). */
HFSBI_FN hfsb_status hfsbi_finder_page(hfsb_call *call, const hfsbi_finder *f,
                                       const hfsbi_results_page *page,
                                       unsigned long long        shown,
                                       unsigned long long        total,
                                       const char               *what);

/* Marks the call as a success: adds notes about the walk and the fields count,
   truncated and, unless it is 0 (no more), next_offset. Returns as
   hfsbi_finder_note(). */
HFSBI_FN hfsb_status hfsbi_finder_result(hfsb_call *call, hfsbi_finder *f,
                                         unsigned long long count,
                                         unsigned long long next_offset);

/* ==== grep.c: one file =================================================== */

typedef enum hfsbi_grep_mode {
    HFSBI_GREP_CONTENT,
    HFSBI_GREP_FILES,
    HFSBI_GREP_COUNT
} hfsbi_grep_mode;

/* How far the search of one file has come. Offsets are into the window. */
typedef struct hfsbi_hits_file {
    size_t             searched; /* lines before this offset are done */
    bool               parted;   /* the text to search ends within a line */
    bool               matched;  /* a part of that line has matched */
    size_t             shown;    /* end of the last line shown */
    bool               joined;   /* ... with no dropped text after it */
    size_t             after;    /* context lines still to show after it */
    size_t             counted;  /* the line that begins here ... */
    unsigned long long line;     /* ... has this number */
    unsigned long long matches;
    bool               binary;
} hfsbi_hits_file;

/* The search for matching lines and their context, one file after the other,
   through a window that moves along the file. */
typedef struct hfsbi_hits {
    hfsb_regex        *regex;
    hfsbi_finder      *finder; /* its deadline and cancellation apply */
    hfsbi_grep_mode    mode;
    size_t             context; /* lines before and after a match */
    unsigned long long skip;    /* matching lines still to skip */
    unsigned long long left;    /* matching lines still to show */
    hfsb_buf          *out;
    size_t             page;         /* bytes of output */
    hfsb_str           folder, path; /* both precede a shown line */
    hfsb_buf           window;
    hfsbi_hits_file    file;    /* the one being searched, or the last one */
    unsigned long long printed; /* matching lines shown, in all files */
    bool               full;    /* something was not shown */
    bool               bad_utf8;
} hfsbi_hits;

/* Searches an open file to its end, as far as the mode needs, or until the
   finder is over. HFSB_OK; HFSB_IO with errno when the file cannot be read;
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_hits_run(hfsbi_hits *l, int fd,
                                    unsigned long long size);

/* ==== plan.c: the todo plan of an agent; its owner locks it ============== */

enum {
    HFSBI_REMIND_ITEMS = 4, /* that a reminder lists */
    HFSBI_REMIND_TIMES = 2  /* reminders in a row */
};

/* The row of plan_tool; its fn is NULL. */
HFSBI_FN const hfsbi_tool *hfsbi_plan_tool(void);

HFSBI_FN void hfsbi_plan_free(hfsbi_plan *plan);
/* Executes plan_tool: a hfsbi_run_fn for its parameters. */
HFSBI_FN hfsb_status hfsbi_plan_set(void *plan, const void *args,
                                    hfsb_tool_result *result, hfsb_err *err);
/* Carries out the whole call, for callers without a session. strict as in
   hfsb_call_opts. Always fills *result, which must be freed. */
HFSBI_FN hfsb_status hfsbi_plan_call(hfsbi_plan            *plan,
                                     const hfsb_json_value *arguments,
                                     bool strict, hfsb_tool_result *result);
/* Appends the plan as JSON. */
HFSBI_FN hfsb_status hfsbi_plan_write(const hfsbi_plan *plan, hfsb_buf *out,
                                      hfsb_err *err);
/* The number of items that are not completed. */
HFSBI_FN size_t hfsbi_plan_open(const hfsbi_plan *plan);
/* As hfsb_session_remind(). */
HFSBI_FN bool hfsbi_plan_remind(hfsbi_plan *plan, bool called_tools,
                                hfsb_buf *out);
