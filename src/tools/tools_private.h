#pragma once

#include "../core/core_private.h"
#include "../edit/edit.h"
#include "../edit/patch.h"
#include "../pattern/pattern_private.h"
#include "../os/os_private.h"
#include "tools.h"

/* What a command printed: cleaned while it arrives, in bounded memory, with
   all of it in a spill file once it is long. Private to the tools. */

/* The spill files of one tools object: at most `max` are kept, the oldest
   goes first; only those made here are ever removed. */
typedef struct hfsbi_spills {
    char     **paths; /* a ring, oldest at `first` */
    size_t     first, count, max;
    size_t     max_bytes;
    bool       none;    /* make no file at all */
    bool       dropped; /* with the object that has them */
    char      *dir;
    hfsb_alloc alloc;
} hfsbi_spills;

HFSBI_FN bool hfsbi_spills_init(hfsbi_spills *spills, const char *dir,
                                size_t max, size_t max_bytes,
                                const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_spills_free(hfsbi_spills *spills);
/* True when path is one of ours. */
HFSBI_FN bool hfsbi_spills_has(const hfsbi_spills *spills, hfsb_str path);

/*  stdout --> filter --> window, log
    stderr --> filter --> window, stash        ... at the end: stash --> log

    The log is what bash_output shows and the spill file holds: bytes 0 to
    `total` of cleaned text. All of it is in `memory` until the text is longer
    than what a reply shows; then it goes to the spill file, up to a cap, and
    `memory` keeps its end.

        0              saved            memory_start          total
        [ spill file )  ... dropped ...  [ memory             )            */
typedef struct hfsbi_record {
    hfsb_text_filter  *filter[2];
    hfsb_text_window  *window[2];
    hfsb_buf           piece; /* cleaned text on its way */
    hfsb_buf           memory;
    unsigned long long memory_start, total;
    int                spill;   /* descriptor, -1 none */
    hfsb_buf           path;    /* of the spill file, or empty */
    unsigned long long saved;   /* bytes in it */
    bool               full;    /* no more goes into it */
    bool               tried;   /* to make one */
    int                stash;   /* descriptor, -1 none */
    unsigned long long stashed; /* bytes in it */
    bool               stash_full, stash_tried;
    unsigned long long stderr_total;
    bool               merged;  /* stderr comes with stdout */
    bool               lost;    /* there was no memory for some of it */
    unsigned long long taken;   /* bytes of both streams, as they came, */
    unsigned long long bytes;   /* of stdout, */
    long long          last_at; /* and when the last of them did */
    hfsbi_spills      *spills;
    void (*on_text)(void *user, hfsb_proc_stream stream, hfsb_str text);
    void      *user;
    hfsb_alloc alloc;
} hfsbi_record;

/* False without memory; then there is nothing to free. */
HFSBI_FN bool hfsbi_record_init(hfsbi_record *r, hfsbi_spills *spills,
                                bool merged, const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_record_free(hfsbi_record *r);

/* Takes bytes as the command wrote them. */
HFSBI_FN void hfsbi_record_write(hfsbi_record *r, hfsb_proc_stream stream,
                                 hfsb_str bytes);
/* The command is over: unfinished lines are taken as they are, stderr is put
   behind stdout. */
HFSBI_FN void hfsbi_record_finish(hfsbi_record *r);

/* Characters in all, and whether a reply leaves some out. */
HFSBI_FN size_t hfsbi_record_chars(const hfsbi_record *r);
HFSBI_FN bool   hfsbi_record_truncated(const hfsbi_record *r);

/* True while there is an unfinished line to show. */
HFSBI_FN bool hfsbi_record_pending(const hfsbi_record *r);

/* Appends what a reply shows. After finish. */
HFSBI_FN hfsb_status hfsbi_record_show(const hfsbi_record *r, hfsb_buf *out);

/* Nothing more will come or be shown: only what read() needs is kept. */
HFSBI_FN void hfsbi_record_settle(hfsbi_record *r);
/* Bytes that are held in memory then, and to let go of them. */
HFSBI_FN size_t hfsbi_record_held(const hfsbi_record *r);
HFSBI_FN void   hfsbi_record_forget(hfsbi_record *r);

/* Appends the log from byte `from` on, at most max bytes, cut between
   characters; *next is where it goes on. What is not held any more is left
   out, as [*gone_from, *gone_to) (both 0: nothing). When the log's end was
   reached the unfinished line is appended too. */
HFSBI_FN hfsb_status hfsbi_record_read(const hfsbi_record *r,
                                       unsigned long long from, size_t max,
                                       hfsb_buf *out, unsigned long long *next,
                                       unsigned long long *gone_from,
                                       unsigned long long *gone_to);

/* CHECK: what to tell about a file that was just written. Private.

   Built in: the syntax of Python, its calls with keywords that the callable
   does not take, training scripts that push nothing to the Hub, JSON, and the
   syntax of sh, bash and dash scripts. What other programs find is remembered
   by content, so that writing the same text again costs nothing. */

#define HFSBI_CHECK_MEMORY 64 /* contents whose warnings are remembered */

/* What came out for one content. */
typedef struct hfsbi_check_seen {
    unsigned char      digest[HFSB_SHA256_SIZE];
    char              *text; /* the warnings, each line ended by LF */
    size_t             len;
    unsigned long long used; /* when it was asked for last; 0: free */
} hfsbi_check_seen;

typedef struct hfsbi_checker {
    hfsb_tools_check  *checks; /* the caller's */
    size_t             count;
    hfsb_buf           suffixes; /* theirs, each ended by NUL */
    const char *const *env; /* of the programs it runs; not copied (NULL: that
                               of this process) */
    const hfsb_root   *place; /* where the tools write; not copied (NULL: the
                                 current directory) */
    bool               no_imports; /* Python modules are not imported */
    long long          timeout_ms; /* for one program */
    hfsb_alloc         alloc;
    pthread_mutex_t    lock; /* for what is below; never held for long */
    unsigned long long clock;
    hfsbi_check_seen   seen[HFSBI_CHECK_MEMORY];
} hfsbi_checker;

/* A checker with the caller's checks, which are copied. NULL without memory.
   No run may be under way when it is closed; NULL is fine. */
HFSBI_FN hfsbi_checker *hfsbi_checker_open(const hfsb_tools_check *checks,
                                           size_t                  count,
                                           const hfsb_alloc       *alloc);
HFSBI_FN void           hfsbi_checker_close(hfsbi_checker *checker);

/* Appends to *warnings a line, ended by LF, for each thing to tell about
   content, the text of the file at path. Never fails: what cannot be checked
   is not told. Takes as long as the programs it runs, 10 s each at most, or
   until `how` (NULL: nobody) says that it is cancelled. May run in several
   threads at once; working memory is that of *warnings. */
HFSBI_FN void hfsbi_checker_run(hfsbi_checker        *checker,
                                const hfsb_call_opts *how, hfsb_str path,
                                hfsb_str content, hfsb_buf *warnings);

/* ---- between the files of this module ---- */

/* "sh", "bash" or "dash" when the first line of content says that it is a
   script for that shell, else NULL. */
HFSBI_FN const char *hfsbi_check_shell_of(hfsb_str content);

/* What the first bytes of a file say of a picture. Private; pure. */

/* The inside of the tools object: its commands ("jobs") and calls. Private to
   the tools. Whatever is not marked otherwise belongs to the lock. */

/* ---- jobs ---- */

typedef enum hfsbi_job_state {
    HFSBI_JOB_WAITING, /* for a place among those that run */
    HFSBI_JOB_RUNNING,
    HFSBI_JOB_DONE
} hfsbi_job_state;

enum { HFSBI_JOB_LEFT = 16, HFSBI_JOB_ID = 160, HFSBI_JOB_SPANS = 128 };

/* What bash was asked for; owns its texts. */
typedef struct hfsbi_job_spec {
    hfsb_buf command, description;
    hfsb_buf work_dir; /* where it runs, and as the caller wrote it */
    hfsb_buf work_dir_given;
    hfsb_buf shell;
    hfsb_buf input;
    hfsb_buf env; /* "NAME=value" or, to unset, "NAME"; a NUL behind each */
    bool     has_input, background, merge_stderr;
    double   timeout; /* seconds */
} hfsbi_job_spec;

typedef struct hfsbi_job {
    struct hfsbi_job  *next;
    char               id[HFSBI_JOB_ID]; /* unique, or as the caller chose */
    char               marker[HFSBI_JOB_ID + 48]; /* HFSB_JOB: the id; behind
                                  one that the caller chose, what makes it
                                  unique on this machine */
    hfsb_buf           key;    /* of the call that started it, or empty */
    bool               chosen; /* the caller chose id or key: not run again */
    unsigned char      digest[HFSB_SHA256_SIZE]; /* of the call */
    hfsbi_job_state    state;
    hfsbi_job_spec     spec;
    long long          created, ended; /* hfsb_clock_ms() */
    long               pid;            /* 0 until it runs */
    hfsb_proc         *proc;
    hfsb_proc_result   end;
    hfsbi_record       record;
    hfsb_proc_entry    left[HFSBI_JOB_LEFT]; /* what outlived it */
    size_t             left_count;
    hfsb_tool_result   result; /* once done; bash's reply */
    hfsb_status        status; /* of that reply */
    bool               result_held;
    bool               killed; /* asked to end */
    unsigned long long shown;  /* bytes it had printed at the last look */
    size_t             users;  /* calls that look at it: not freed meanwhile */
} hfsbi_job;

/* ---- a call that was made with a key ---- */

typedef struct hfsbi_once {
    struct hfsbi_once *next;
    hfsb_buf           key;
    unsigned char      digest[HFSB_SHA256_SIZE];
    bool               running;
    bool               dropped; /* the result is no longer held */
    long long          when;    /* it ended */
    hfsb_tool_result   result;
    hfsb_status        status;
    size_t             users;
} hfsbi_once;

/* ---- the object ---- */

typedef struct hfsbi_digest {
    unsigned char bytes[HFSB_SHA256_SIZE];
} hfsbi_digest;

struct hfsb_tools {
    /* what does not change after open */
    hfsb_alloc     alloc;
    hfsb_root     *place;
    hfsbi_checker *checker; /* NULL: none; has a lock of its own */
    bool           session, no_keeper;
    hfsb_buf       shell;
    hfsb_buf       env_text; /* of commands: "NAME=value", each with NUL */
    const char   **env;      /* the same as a list, NULL at its end */
    size_t         env_count;
    double         timeout, max_timeout;
    long long      grace_ms;
    size_t         max_running, max_waiting, max_finished;
    char           prefix[16]; /* of job ids */
    int            wake[2];    /* a byte makes the driver look again, */
    int            host[2];    /* or the host's own loop */

    pthread_mutex_t lock;
    pthread_cond_t  changed;   /* something is done, or no one drives */
    bool            driving;   /* a thread waits in poll() for all of us */
    bool            watched;   /* the host's loop waits for what it was told */
    bool            stirred;   /* something was done since its last step */
    hfsbi_job      *jobs;      /* newest first */
    unsigned long   job_count; /* ever */
    hfsb_call      *waiting;   /* calls that wait for a time to come */
    hfsbi_once     *onces;
    hfsbi_spills    spills;
    int            *drains; /* pipes that survivors hold */
    size_t          drain_count, drain_cap;
    hfsbi_session_span spans[HFSBI_JOB_SPANS]; /* the sessions of commands that
                         run, or that left something running */
    size_t             span_next; /* to be overwritten when all are in use */
    unsigned long long since;     /* no process of ours is older; 0: none */
    hfsbi_snapshot     snapshot; /* of all processes, shared by the commands */
    hfsbi_digest      *seen; /* keys of files read or written: a hash table, */
    size_t             seen_count, seen_cap; /* its size a power of two or 0 */
};

/* ---- job.c ---- */

HFSBI_FN void hfsbi_job_spec_init(hfsbi_job_spec   *spec,
                                  const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_job_spec_free(hfsbi_job_spec *spec);
/* The first failure of an append to one of its texts, or HFSB_OK. */
HFSBI_FN hfsb_status hfsbi_job_spec_status(const hfsbi_job_spec *spec);

/* The name of "NAME=value", or all of "NAME". */
HFSBI_FN hfsb_str hfsbi_env_name(const char *entry);

/* The job of that id, or NULL. */
HFSBI_FN hfsbi_job *hfsbi_job_find(hfsb_tools *tools, hfsb_str id);

/* The job that was started with that id or that key, or NULL. */
HFSBI_FN hfsbi_job *hfsbi_job_again(hfsb_tools *tools, hfsb_str id,
                                    hfsb_str key);

/* A new job that takes over *spec; it runs at once when there is a place.
   id empty: one is made. NULL without memory. */
HFSBI_FN hfsbi_job *hfsbi_job_add(hfsb_tools *tools, hfsbi_job_spec *spec,
                                  hfsb_str id, const unsigned char *digest,
                                  const hfsb_call_opts *opts);

/* Asks it to end; false when it is over. */
HFSBI_FN bool hfsbi_job_kill(hfsb_tools *tools, hfsbi_job *job);

/* How many are in that state. */
HFSBI_FN size_t hfsbi_jobs_count(const hfsb_tools *tools,
                                 hfsbi_job_state   state);

/* Does what can be done without waiting for all jobs, and forgets what is too
   old. */
HFSBI_FN void hfsbi_jobs_step(hfsb_tools *tools);
/* Kills and frees all. */
HFSBI_FN void hfsbi_jobs_free(hfsb_tools *tools);

HFSBI_FN size_t    hfsbi_jobs_watch(hfsb_tools *tools, hfsb_watch *list,
                                    size_t max);
HFSBI_FN long long hfsbi_jobs_deadline(const hfsb_tools *tools);

/* A number that changes when there is something new: output, a start, an end,
   or other descriptors to wait for. */
HFSBI_FN unsigned long long hfsbi_jobs_mark(hfsb_tools *tools);

/* ---- job_sweep.c ---- */

/* For the end of a program: signals (TERM, or with `hard` KILL) all that was
   ever started here, commands that run with their trees and also what finished
   ones left behind; commands that wait do not start any more. Without waiting,
   and without memory; takes the lock itself. Gives how many processes were
   there: what they start meanwhile is found the next time. Without /proc: the
   groups of commands that run. */
HFSBI_FN size_t hfsbi_tools_sweep(hfsb_tools *tools, bool hard);

/* ---- job_list.c; these take the lock themselves ---- */

HFSBI_FN bool hfsbi_job_exists(hfsb_tools *tools, hfsb_str id);
/* Asks a job to end, or all of them (id empty): without waiting, and without
   memory. */
HFSBI_FN void hfsbi_jobs_end(hfsb_tools *tools, hfsb_str id);

typedef struct hfsbi_jobs_figures {
    size_t        running, waiting;
    unsigned long ever;
} hfsbi_jobs_figures;

HFSBI_FN hfsbi_jobs_figures hfsbi_jobs_count_all(hfsb_tools *tools);

/* ---- calls ---- */

typedef enum hfsbi_wait {
    HFSBI_WAIT_NOTHING, /* the result is there */
    HFSBI_WAIT_JOB,     /* for bash's command */
    HFSBI_WAIT_ENDS,    /* for those that kill asked to end */
    HFSBI_WAIT_OUTPUT,  /* for more of a command's output */
    HFSBI_WAIT_ONCE     /* for the first call with this key */
} hfsbi_wait;

/* ---- arguments (args.c) ---- */

typedef enum hfsbi_arg_type {
    HFSBI_ARG_STR,    /* hfsb_str; ptr is NULL when it was not given */
    HFSBI_ARG_INT,    /* long long */
    HFSBI_ARG_NUMBER, /* double */
    HFSBI_ARG_BOOL,   /* bool */
    HFSBI_ARG_SWITCH, /* int: 1, 0, or -1 when it was not given */
    HFSBI_ARG_OBJECT, /* const hfsb_json_value *, NULL when not given */
    HFSBI_ARG_LIST    /* the same, an array */
} hfsbi_arg_type;

enum {
    HFSBI_REQUIRED = 1,
    HFSBI_UNLISTED = 2,  /* accepted, but left out of schemas */
    HFSBI_CLAMPED = 4,   /* above max it is taken as max */
    HFSBI_NULL_IS_0 = 8, /* null is 0, not the default */
    HFSBI_NO_NUL = 16,   /* a path: it has no NUL byte */
    HFSBI_ONE_OF = 32,   /* another text than `choices` is an error */
    HFSBI_BRIEF = 128,   /* a list whose items are described elsewhere */
    HFSBI_DELIVERY = 64  /* how the reply is delivered: no part of what makes
                            two calls the same */
};

/* One parameter of a tool. From a list of these come the JSON Schema, the
   check of keys, the reading into a struct, defaults and limits, the details
   of a 422 and what a client sends. */
typedef struct hfsbi_param {
    const char    *name; /* NULL ends a list */
    hfsbi_arg_type type;
    unsigned       flags;
    size_t         field; /* offset in the tool's struct of arguments */
    const char    *words; /* description in the schema (NULL: none) */
    const char    *must;  /* "a number of lines from 0 to 20": says what min
                             and max allow (NULL: no limits) */
    long long      min, max, preset;
    const char    *choices;          /* blanks between; aliases after a "|" */
    const struct hfsbi_param *items; /* of each object in a list (NULL: its
                                        items are strings) */
} hfsbi_param;

/* Rows of a list of parameters: plain, with limits, with choices. */
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

/* How arguments are read. */
typedef struct hfsbi_args_how {
    bool           strict; /* an unknown key is an error, not a note */
    hfsb_buf      *notes;  /* where such notes go */
    hfsb_str       id;     /* replaces the argument `id` (ptr NULL: none) */
    hfsb_json_doc *parsed; /* an object or array sent as a string of JSON is
                              parsed into it; the caller frees it */
} hfsbi_args_how;

/* Reads object (NULL: an empty one) into the struct *out, whose layout params
   describe. Texts show the document's bytes. HFSB_OK; HFSB_ARG with the
   message, and err->key; HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_args_read(const hfsbi_param     *params,
                                     const hfsb_json_value *object,
                                     const hfsbi_args_how *how, void *out,
                                     hfsb_err *err);

/* The two parts of that. check: object must be one, each of its keys be known
   and come once; fill reads the values. */
HFSBI_FN hfsb_status hfsbi_args_check(const hfsbi_param     *params,
                                      const hfsb_json_value *object,
                                      const hfsbi_args_how  *how,
                                      hfsb_err              *err);

HFSBI_FN hfsb_status hfsbi_args_fill(const hfsbi_param     *params,
                                     const hfsb_json_value *object,
                                     const hfsbi_args_how *how, void *out,
                                     hfsb_err *err);

/* The parameter of that name, or NULL. */
HFSBI_FN const hfsbi_param *hfsbi_param_find(const hfsbi_param *params,
                                             hfsb_str           name);

/* True when the member of object that p names is absent or can be read. */
HFSBI_FN bool hfsbi_param_fits(const hfsbi_param     *p,
                               const hfsb_json_value *object,
                               const hfsb_alloc      *alloc);

/* The word for its type in a schema: "string", "integer" ... */
HFSBI_FN const char *hfsbi_param_type(const hfsbi_param *p);

/* Takes the next of its choices off *rest, aliases last; false at the end. */
HFSBI_FN bool hfsbi_param_choice(hfsb_str *rest, hfsb_str *choice);

/* Appends the JSON Schema of an object with these parameters. */
HFSBI_FN void hfsbi_params_schema(const hfsbi_param *params, hfsb_buf *out);

/* ---- a call ---- */

/* Room for the arguments of any tool, as its parameters describe them. */
typedef union hfsbi_args {
    long long   align_int;
    double      align_double;
    const void *align_pointer;
    char        bytes[256];
} hfsbi_args;

struct hfsb_call {
    hfsb_tools              *tools;
    const struct hfsbi_tool *tool;
    hfsbi_args               args; /* valid during open */
    hfsb_call_opts           opts;
    hfsb_buf                 notes;       /* lines for the end of the output */
    bool                     notes_apart; /* they go into a field instead */
    hfsbi_build              fields;      /* of the result, the root is open */
    hfsb_tool_result         result;
    hfsb_status              status;
    hfsbi_wait               wait;
    hfsb_call               *next_waiting;
    hfsbi_job               *job;    /* of bash, bash_output */
    hfsbi_job              **killed; /* of kill */
    size_t                   killed_count, killed_cap;
    unsigned long long       offset; /* of bash_output */
    long long                until;
    bool                     streams;       /* its on_text is the job's */
    bool                     taken;         /* the result was moved out */
    unsigned char digest[HFSB_SHA256_SIZE]; /* of tool and arguments, when
                                               there is an id or a key */
    hfsbi_once   *once;                     /* waited for, or to be filled */
    char          job_id[HFSBI_JOB_ID];
};

/* Runs a tool with arguments that were read into its struct: fills
   call->result and call->fields, or leaves the call waiting. Returns HFSB_OK,
   or the status of the call with the message in *err. */
typedef hfsb_status (*hfsbi_tool_fn)(hfsb_call *call, const void *args,
                                     hfsb_err *err);

/* What a tool does, as MCP's annotations say it. */
typedef enum hfsbi_tool_kind {
    HFSBI_TOOL_READS,   /* changes nothing */
    HFSBI_TOOL_CHANGES, /* changes files */
    HFSBI_TOOL_REPEATS, /* ... and doing it twice is doing it once */
    HFSBI_TOOL_RUNS     /* may do anything */
} hfsbi_tool_kind;

/* A tool: one row with all that is known of it. */
typedef struct hfsbi_tool {
    const char        *name, *title;
    const char        *description; /* "{shell}" becomes the shell in use */
    const char        *remote; /* ... on another machine (NULL: the same) */
    hfsbi_tool_kind    kind;
    bool               once; /* an idempotency key makes it run once */
    const hfsbi_param *params;
    hfsbi_tool_fn      fn;
} hfsbi_tool;

/* The rows, each in the file of its tool. */
HFSBI_FN const hfsbi_tool *hfsbi_tool_bash(void);
HFSBI_FN const hfsbi_tool *hfsbi_tool_bash_output(void);
HFSBI_FN const hfsbi_tool *hfsbi_tool_bash_input(void);
HFSBI_FN const hfsbi_tool *hfsbi_tool_kill(void);
HFSBI_FN const hfsbi_tool *hfsbi_tool_read(void);
HFSBI_FN const hfsbi_tool *hfsbi_tool_write(void);
HFSBI_FN const hfsbi_tool *hfsbi_tool_edit(void);
HFSBI_FN const hfsbi_tool *hfsbi_tool_multi_edit(void);
HFSBI_FN const hfsbi_tool *hfsbi_tool_apply_patch(void);
HFSBI_FN const hfsbi_tool *hfsbi_tool_glob(void);
HFSBI_FN const hfsbi_tool *hfsbi_tool_grep(void);
HFSBI_FN const hfsbi_tool *hfsbi_tool_list(void);
HFSBI_FN const hfsbi_tool *hfsbi_tool_exists(void);

/* The tool of that name, or NULL. */
HFSBI_FN const hfsbi_tool *hfsbi_tool_find(hfsb_str name);

/* Appends the definitions of all tools, on this machine (with that shell) or,
   shell NULL, on another one, and of those in `more`, as a JSON array. */
HFSBI_FN hfsb_status hfsbi_tools_define(const char              *shell,
                                        const hfsbi_tool *const *more,
                                        size_t count, hfsb_tools_format format,
                                        hfsb_buf *out, hfsb_err *err);

/* Writes the reply to bash into job->result; err is why it did not start, or
   NULL. */
HFSBI_FN hfsb_status hfsbi_bash_result(hfsbi_job *job, const hfsb_err *err);

/* What bash was asked about the delivery of its reply, as far as it can be
   read: for a server, which needs it before the call begins. */
typedef struct hfsbi_delivery {
    bool     stream;
    double   timeout;       /* seconds; 0: not given */
    hfsb_str on_disconnect; /* "kill", "continue" or "" */
} hfsbi_delivery;

HFSBI_FN hfsbi_delivery hfsbi_bash_delivery(const hfsb_json_value *arguments);

/* The fields that report how a command ended. */
HFSBI_FN void hfsbi_put_ending(hfsbi_build *fields, const hfsbi_job *job);

/* Gives bytes to the standard input of a job, then its end with eof; fills
   *result. Takes the lock itself. HFSB_OK or HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_job_input(hfsb_tools *tools, hfsb_str id,
                                     hfsb_str bytes, bool eof,
                                     hfsb_tool_result *result);

/* What bash_output and kill answer once they need not wait any more. Under
   the lock. */
HFSBI_FN bool hfsbi_output_ready(const hfsb_call *call);
/* When to look again whether it is. */
HFSBI_FN long long   hfsbi_output_at(const hfsb_call *call);
HFSBI_FN hfsb_status hfsbi_output_result(hfsb_call *call);
HFSBI_FN hfsb_status hfsbi_kill_result(hfsb_call *call);

/* Frees what is remembered of calls with keys. */
HFSBI_FN void hfsbi_onces_free(hfsb_tools *tools);

/* Waits for something to happen, or until `until` (-1: for ever); may return
   earlier. Under the lock, which is let go of meanwhile. */
HFSBI_FN void hfsbi_tools_wait(hfsb_tools *tools, long long until);

/* Opens another object with the options of `like`, from the copies that it
   owns: what its caller passed need not exist any more. The new object shares
   nothing with it. Returns as hfsb_tools_open(). */
HFSBI_FN hfsb_status hfsbi_tools_open_like(const hfsb_tools *like,
                                           hfsb_tools **out, hfsb_err *err);

/* hfsb_tools_close() without grace: what runs is killed at once. */
HFSBI_FN void hfsbi_tools_free(hfsb_tools *tools);

/* The shell of commands where no option names one: bash where there is one,
   because models write bash for a tool of that name, else /bin/sh. */
HFSBI_FN const char *hfsbi_default_shell(void);

/* Does what can be done without waiting, whoever drives. Under the lock. */
HFSBI_FN void hfsbi_tools_touch(hfsb_tools *tools);

/* The call of another tool than bash that had this key, or NULL. Under the
   lock. */
HFSBI_FN hfsbi_once *hfsbi_once_find(hfsb_tools *tools, hfsb_str key);

/* The caller wants no more of it. In the thread that runs it. */
HFSBI_FN bool hfsbi_call_cancelled(const hfsb_call *call);

/* ---- results ---- */

/* Makes *result all zero, with alloc for its memory. */
HFSBI_FN void hfsbi_result_init(hfsb_tool_result *result,
                                const hfsb_alloc *alloc);

/* The result of a call that went well, or failed: the sentence, with no lock
   needed. Both give HFSB_OK, or HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_result_ok(hfsb_tool_result *result,
                                     const char       *format, ...)
    HFSBI_PRINTF(2, 3);
HFSBI_FN hfsb_status hfsbi_result_fail(hfsb_tool_result *result,
                                       hfsb_status code, const char *format,
                                       ...) HFSBI_PRINTF(3, 4);
/* A failure with the message of *err; HFSB_NOMEM goes through. */
HFSBI_FN hfsb_status hfsbi_result_err(hfsb_tool_result *result,
                                      const hfsb_err   *err);

/* A result for a call that could not be made: the sentence of *err (may be
   NULL), or the words for the status. */
HFSBI_FN void hfsbi_result_status(hfsb_tool_result *result, hfsb_status st,
                                  const hfsb_err *err);

/* Makes *result all zero, on alloc, and parses the text of a call's arguments;
   what is wrong with it is in the result. HFSB_OK, HFSB_ARG, HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_arguments_parse(hfsb_str          text,
                                           const hfsb_alloc *alloc,
                                           hfsb_json_doc    *doc,
                                           hfsb_tool_result *result);

/* A tool's name that is none: HFSB_NOT_FOUND "Unknown tool: {name}". */
HFSBI_FN hfsb_status hfsbi_tool_unknown(hfsb_str name, hfsb_err *err);

/* Members of the added keys. */
HFSBI_FN void hfsbi_put_member_str(hfsb_json_writer *w, const char *key,
                                   hfsb_str value);
HFSBI_FN void hfsbi_put_member_int(hfsb_json_writer *w, const char *key,
                                   long long value);
HFSBI_FN void hfsbi_put_member_bool(hfsb_json_writer *w, const char *key,
                                    bool value);

/* ---- what the tools that write share ---- */

/* A session refuses to change a file that it has not read. True when it may;
   else the failure is in the result, or *st says why not even that. */
HFSBI_FN bool hfsbi_may_change(hfsb_call *call, hfsb_str path, bool edit,
                               hfsb_status *st);

/* Appends to the output what the checks have to say about a file. */
HFSBI_FN hfsb_status hfsbi_add_warnings(hfsb_call *call, hfsb_str path,
                                        hfsb_str content);

/* ---- files that a session has read; these take the lock themselves ---- */

HFSBI_FN void hfsbi_seen_add(hfsb_tools *tools, hfsb_str path);
HFSBI_FN bool hfsbi_seen_has(hfsb_tools *tools, hfsb_str path);

/* What glob, grep and list share: a walk over all that lies beneath a folder,
   and how paths and results are shown. Private. Nothing outside the root of
   the place is read: each folder is opened from the one before, and symbolic
   links are seen but never followed. */

enum {
    HFSBI_FINDER_DEPTH = 200, /* folders in each other: one descriptor each */
    HFSBI_FINDER_NAMES = 64 << 20, /* bytes of names held at a time */
    HFSBI_FINDER_RULES = 1 << 20,  /* bytes of a .gitignore */
    HFSBI_FINDER_TOLD = 3,     /* folders that could not be read, by name */
    HFSBI_FINDER_MS = 30000,   /* a search is cut off then */
    HFSBI_FINDER_CHARS = 40000 /* bytes of output */
};

typedef enum hfsbi_entry_type {
    HFSBI_ENTRY_FILE,
    HFSBI_ENTRY_FOLDER,
    HFSBI_ENTRY_LINK,
    HFSBI_ENTRY_OTHER, /* a device, FIFO or socket */
    HFSBI_ENTRY_UNKNOWN
} hfsbi_entry_type;

/* Something in a folder; good during the call it is handed to. */
typedef struct hfsbi_entry {
    int              dir; /* the folder, opened */
    const char      *name;
    hfsb_str         path; /* from where the search began */
    hfsbi_entry_type type;
    bool             ignored;
} hfsbi_entry;

typedef struct hfsbi_finder_level hfsbi_finder_level;

/* All zero at first, but for what the caller sets. */
typedef struct hfsbi_finder {
    /* set by the caller */
    const hfsb_call *call; /* that may be cancelled (NULL: none) */
    const hfsb_root *place;
    hfsb_alloc       alloc;
    bool             all;    /* also what is ignored, and .git */
    bool             sorted; /* names of a folder in order */
    bool      no_follow;     /* of where it begins, a link is not followed */
    bool      shows_ignored; /* ignored ones are visited, not entered */
    size_t    offset;        /* results to leave out at the beginning */
    size_t    max_depth;     /* folders in each other, the first one counted
                                 (0: as many as it may) */
    long long until;         /* on hfsb_clock_ms(); 0: HFSBI_FINDER_MS */
    /* Quick, before anything else is looked at: a folder that is not wanted
       is not entered, anything else not visited. NULL: all are. */
    bool (*wants)(void *user, const hfsbi_entry *entry);
    /* Folders come before what is in them. Other than HFSB_OK ends it. */
    hfsb_status (*visit)(void *user, const hfsbi_entry *entry);
    void *user;
    bool  stop; /* set by visit to end it without an error */

    /* where it begins: from hfsbi_finder_open() on */
    hfsbi_target spot;
    hfsb_buf     shown; /* what to put before the path of an entry, to read it
                         by: "" or ends in a slash */

    /* what became of it */
    size_t   files;     /* seen, links and all that is no folder counted */
    size_t   ignored;   /* entries */
    size_t   failed;    /* folders that could not be read, or not wholly */
    hfsb_buf notes;     /* about some of them: a line each, with LF before */
    bool     late;      /* it took too long, */
    bool     cancelled; /* or was not wanted any more: late as well */

    /* private */
    hfsb_buf            path;    /* of the entry, as the rules see it */
    size_t              prefix;  /* bytes of it up to where it begins */
    hfsbi_ignore       *ignore;  /* NULL: no rules at all so far */
    bool                at_root; /* it begins at / */
    size_t              names;   /* bytes of names that are held */
    hfsbi_finder_level *levels;  /* HFSBI_FINDER_DEPTH of them */
    size_t              depth;   /* of them in use */
} hfsbi_finder;

/* ---- search_walk.c ---- */

/* Finds what is at path ("": the work directory). HFSB_OK with f->spot; or why
   not. close() in any case. */
HFSBI_FN hfsb_status hfsbi_finder_open(hfsbi_finder *f, hfsb_str path,
                                       hfsb_err *err);
/* Visits all beneath f->spot, which must be a folder. HFSB_OK also when some
   could not be read; else what visit returned, HFSB_NOMEM, or why the first
   folder cannot be read. */
HFSBI_FN hfsb_status hfsbi_finder_run(hfsbi_finder *f, hfsb_err *err);
HFSBI_FN void        hfsbi_finder_close(hfsbi_finder *f);

/* Whether the time is over, or the call cancelled: f->late. To be asked also
   while one file takes long. */
HFSBI_FN bool hfsbi_finder_over(hfsbi_finder *f);

/* Opens a file that was visited; -1 when it is none any more, or with errno
   cannot be read. st is that of the file. */
HFSBI_FN int hfsbi_entry_open(int dir, const char *name, struct stat *st);

/* ---- the tools ---- */

/* ---- search_show.c ---- */

/* Makes *f ready to walk from path on. HFSB_OK; or the error of opening it. */
HFSBI_FN hfsb_status hfsbi_finder_begin(hfsb_call *call, hfsbi_finder *f,
                                        hfsb_str path, bool all,
                                        long long offset, hfsb_err *err);

/* The parameters that glob, grep and list share, for a struct of arguments
   with the members all, limit and offset. limit 0 is the default. */
#define HFSBI_FINDER_PARAMS(args, words, most, few)                           \
    HFSBI_PARAM("all", HFSBI_ARG_BOOL, 0, args, all, words),                  \
        HFSBI_PARAM_RANGE("limit", HFSBI_ARG_INT, HFSBI_CLAMPED, args, limit, \
                          NULL, 0, most, 0,                                   \
                          "a number from 1 to " #most " (0: " #few ")"),      \
        HFSBI_PARAM_RANGE("offset", HFSBI_ARG_INT, 0, args, offset, NULL, 0,  \
                          1000000, 0, "a number from 0 to 1000000")

/* A path or a name on one line: control characters and bytes that are not
   UTF-8 as \n, \t, \x1B. */
HFSBI_FN void hfsbi_put_shown(hfsb_buf *sink, hfsb_str path);

/* A line for the end of the output. */
HFSBI_FN hfsb_status hfsbi_finder_note(hfsb_call *call, const char *format,
                                       ...) HFSBI_PRINTF(2, 3);

/* What part of the results is shown, and how to read on: a note, unless it is
   all of them. "[201-400 of 5321 files; read on with offset=400]"; what is
   " files". at_least: there may be more than total. */
HFSBI_FN hfsb_status hfsbi_finder_page(hfsb_call *call, const hfsbi_finder *f,
                                       unsigned long long shown,
                                       unsigned long long total, bool at_least,
                                       const char *what);

/* The call went well: notes about the walk, and the keys count, truncated and
   next_offset, the offset to read on with (0: there is no more). */
HFSBI_FN hfsb_status hfsbi_finder_result(hfsb_call *call, hfsbi_finder *f,
                                         unsigned long long count,
                                         unsigned long long next_offset);

/* One file on its way through grep: lines that match, and those around them.
   Private to grep. */

typedef enum hfsbi_grep_mode {
    HFSBI_GREP_CONTENT,
    HFSBI_GREP_FILES,
    HFSBI_GREP_COUNT
} hfsbi_grep_mode;

/* All offsets are into `window`, which is moved along the file. */
typedef struct hfsbi_hits {
    hfsb_regex        *regex;
    hfsbi_finder      *finder; /* asked whether to go on */
    hfsbi_grep_mode    mode;
    size_t             context;
    unsigned long long skip; /* matching lines to leave out, before */
    unsigned long long left; /* those that may still be shown */
    hfsb_buf          *out;
    hfsb_str           folder, path; /* shown before a line, one behind the
                                        other */
    bool               no_path;      /* only the number */
    hfsb_buf           window;

    size_t             searched; /* lines up to here are done */
    bool               parted;   /* the text to search ends within a line */
    bool               told;     /* a part of that line has matched */
    size_t             shown;    /* behind the last line that was shown */
    bool               any;      /* one of this file was */
    bool               gap;      /* more lies between it and the window */
    size_t             after;    /* lines to be shown behind it */
    size_t             counted;  /* the line that begins here ... */
    unsigned long long line;     /* ... has this number */

    unsigned long long matches; /* in this file */
    unsigned long long printed; /* matching lines, in all files */
    bool               full;    /* something was not shown */
    bool               binary, bad_utf8;
} hfsbi_hits;

/* Searches an open file to its end, or as far as the mode needs, or until the
   finder is over. HFSB_OK;
   HFSB_IO with errno when it cannot be read; HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_hits_run(hfsbi_hits *l, int fd,
                                    unsigned long long size);
