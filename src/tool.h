#pragma once

/* The inside of the tools object: its commands ("jobs") and calls. Private to
   the tools. Whatever is not marked otherwise belongs to the lock. */

#include "record.h"
#include "check.h"
#include "proc_parts.h"
#include "tools.h"

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
    hfsb_place    *place;
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
    hfsbi_span      spans[HFSBI_JOB_SPANS]; /* the sessions of commands that
                         run, or that left something running */
    size_t          span_next; /* to be overwritten when all are in use */
    unsigned long long since;  /* no process of ours is older; 0: none */
    hfsbi_digest      *seen; /* keys of files read or written: a hash table, */
    size_t             seen_count, seen_cap; /* its size a power of two or 0 */
};

/* ---- job.c ---- */

HFSBI_FN void hfsbi_job_spec_init(hfsbi_job_spec   *spec,
                                  const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_job_spec_free(hfsbi_job_spec *spec);

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

/* A job was started; is over, before its leader is let go of. */
HFSBI_FN void hfsbi_span_begin(hfsb_tools *tools, hfsbi_job *job);
HFSBI_FN void hfsbi_span_end(hfsb_tools *tools, hfsbi_job *job);

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

struct hfsb_call {
    hfsb_tools            *tools;
    const hfsb_json_value *arguments; /* only during open */
    hfsb_call_opts         opts;
    hfsb_buf               notes; /* lines for the end of the output */
    hfsb_tool_result       result;
    hfsb_status            status;
    hfsbi_wait             wait;
    hfsb_call             *next_waiting;
    hfsbi_job             *job;    /* of bash, bash_output */
    hfsbi_job            **killed; /* of kill */
    size_t                 killed_count, killed_cap;
    unsigned long long     offset; /* of bash_output */
    long long              until;
    bool                   streams;         /* its on_text is the job's */
    bool                   taken;           /* the result was moved out */
    unsigned char digest[HFSB_SHA256_SIZE]; /* of tool and arguments, when
                                               there is an id or a key */
    hfsbi_once   *once;                     /* that is waited for, or filled */
    char          job_id[HFSBI_JOB_ID];
};

/* A tool: fills call->result, or leaves it waiting. What it returns but
   HFSB_OK is the status of the call, with the sentence in *err. */
typedef hfsb_status (*hfsbi_tool_fn)(hfsb_call *call, hfsb_err *err);

HFSBI_FN hfsb_status hfsbi_tool_bash(hfsb_call *call, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_tool_bash_output(hfsb_call *call, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_tool_bash_input(hfsb_call *call, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_tool_kill(hfsb_call *call, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_tool_read(hfsb_call *call, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_tool_write(hfsb_call *call, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_tool_edit(hfsb_call *call, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_tool_multi_edit(hfsb_call *call, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_tool_apply_patch(hfsb_call *call, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_tool_exists(hfsb_call *call, hfsb_err *err);

/* Writes the reply to bash into job->result; err is why it did not start, or
   NULL. */
HFSBI_FN hfsb_status hfsbi_bash_result(hfsbi_job *job, const hfsb_err *err);

/* The keys that tell how a command ended. */
HFSBI_FN void hfsbi_put_ending(hfsb_json_writer *w, const hfsbi_job *job);

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

/* hfsb_tools_close() without grace: what runs is killed at once. */
HFSBI_FN void hfsbi_tools_free(hfsb_tools *tools);

/* Does what can be done without waiting, whoever drives. Under the lock. */
HFSBI_FN void hfsbi_tools_touch(hfsb_tools *tools);

/* object must be one, or absent; each of its keys must be one of `known`
   (blanks between) and come once; one that is not known becomes a note, or
   with opts.strict an error. Of call only opts and notes are looked at. */
HFSBI_FN hfsb_status hfsbi_check_keys(hfsb_call             *call,
                                      const hfsb_json_value *object,
                                      const char *known, hfsb_err *err);

/* The call of another tool than bash that had this key, or NULL. Under the
   lock. */
HFSBI_FN hfsbi_once *hfsbi_once_find(hfsb_tools *tools, hfsb_str key);

/* The keys of one edit. */
#define HFSBI_EDIT_NAMES "old_str new_str mode replace_all line exact"

/* The caller wants no more of it. In the thread that runs it. */
HFSBI_FN bool hfsbi_call_cancelled(const hfsb_call *call);

/* One row of the table of tools. */
typedef struct hfsbi_tool {
    const char   *name, *title, *description;
    const char   *elsewhere;   /* description of the same tool on another
                                  machine (NULL: as it is) */
    const char   *schema;      /* JSON text */
    const char   *annotations; /* of MCP, JSON text */
    const char   *keys;        /* all that are known, blanks between */
    bool          keyed;       /* a key makes it run once */
    hfsbi_tool_fn fn;
} hfsbi_tool;

/* The tool of that name, or NULL. */
HFSBI_FN const hfsbi_tool *hfsbi_tool_find(hfsb_str name);

/* Words of schemas and hints; all is JSON as it stands. */
#define HFSBI_OBJECT(required, properties)             \
    "{\"type\":\"object\",\"properties\":{" properties \
    "},\"required\":[" required "],\"additionalProperties\":false}"
#define HFSBI_TYPE(name, type, words) \
    "\"" name "\":{\"type\":\"" type "\",\"description\":\"" words "\"}"
#define HFSBI_PLAIN(name, type) "\"" name "\":{\"type\":\"" type "\"}"

/* Appends the definitions of all tools, on this machine or another, and of
   those in `more`, as a JSON array. */
HFSBI_FN hfsb_status hfsbi_tools_define(bool elsewhere, const hfsbi_tool *more,
                                        size_t count, hfsb_tools_format format,
                                        hfsb_buf *out, hfsb_err *err);

/* ---- results ---- */

/* The result of a call that went well, or failed: the sentence, with no lock
   needed. Both give HFSB_OK, or HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_result_ok(hfsb_tool_result *result,
                                     const char       *format, ...)
    HFSBI_PRINTF(2, 3);
HFSBI_FN hfsb_status hfsbi_result_fail(hfsb_tool_result *result,
                                       const char       *format, ...)
    HFSBI_PRINTF(2, 3);
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
