#pragma once

/* ==== TOOLS: run tools on this machine, by name and JSON arguments ====== */

#include "../core/base.h"
#include "../core/json.h"
#include "../edit/edit.h"
#include "../os/file.h"
#include "../os/cancel.h"
#include "../proc/confine.h"
#include "../proc/proc.h"
#include "../check/check.h"
#include "../history/checkpoint.h"
#include "journal.h"

/* The tools are bash, bash_output, bash_input, kill, read, write, edit,
   multi_edit, apply_patch, glob, grep, list and exists; and edit_lines,
   checkpoint, checkpoints, undo and changes, which hfsb_tools_define() leaves
   out and hfsb_tools_define_one() describes. edit_lines needs the tag of a
   read, a field of its result: show it to the model. The last four need the
   option `checkpoints`. One object is one session: it remembers its commands
   and the files read through it.

   Any number of threads may call the same object. The library keeps no
   threads (a checkpoint of a large root starts some and waits for them):
   command output is read only while some thread is in a call or in
   hfsb_tools_poll(). A host with background commands and no calls should call
   hfsb_tools_poll(tools, 0) from time to time. In between, a pipe holds 64 kB
   to 1 MB, and a command blocks when its pipe is full. */
typedef struct hfsb_tools hfsb_tools;

typedef struct hfsb_tools_opts {
    hfsb_str work_dir; /* relative paths and commands begin here (empty: the
                          root, or the current directory) */
    hfsb_str root;     /* confines the file tools (empty: no limit); commands
                          only as `confine` says */
    const char *const *more_roots; /* as in hfsb_root_opts; so is `deny`, whose
                          patterns do not apply to commands either. glob, grep
                          and list leave out denied paths */
    size_t             more_root_count;
    const char *const *deny;
    size_t             deny_count;
    bool session; /* a file must be read before it is changed, and again
                          if others have changed it. The content of small files
                          is kept to show what changed, 4 MiB of it. Warnings
                          about a Python file that take longer than 50 ms come
                          with the next result; without a session the call
                          waits for them */
    const char *const *env;      /* of commands, "NAME=value", NULL-terminated
                               (NULL: a copy of this process's) */
    const char *const *hide_env; /* names of variables that commands do not
                                    get, in addition to SANDBOX_API_TOKEN */
    hfsb_confine_opts  confine; /* of commands (all-zero: none). They may write
                               beneath the roots and work_dir: `dirs` and
                               `alloc` are set by open. STRICT also hides
                               variables of this process's environment that
                               may contain secrets */
    const char        *shell;   /* (NULL: bash in /bin or /usr/bin, else
                                    /bin/sh) */
    double             timeout; /* seconds, for calls without one (0: 240);
                               background commands then have none */
    double             max_timeout; /* seconds (0: 1200) */
    long long   grace_ms;     /* between TERM and KILL (0: 2000; negative: KILL
                               at once) */
    size_t      max_running;  /* commands that run at once (0: 64) */
    size_t      max_waiting;  /* commands that wait their turn (0: 256) */
    size_t      max_finished; /* finished commands kept for bash_output, each
                               for an hour (0: 256) */
    const char *spill_dir;    /* for bash_output_*.txt (NULL: $TMPDIR, /tmp) */
    bool        no_spill;     /* long output is not saved */
    size_t      max_spill;    /* bytes of one spill file (0: 64 MiB) */
    size_t      max_spills;   /* spill files kept (0: 32), in all no more bytes
                               than eight of full size; as many of processes
                               that have ended, for an hour */
    size_t      spill_over;   /* bytes: longer output is saved even if a reply
                               shows all of it (0: only if a reply cuts it) */
    bool        drop_spills;  /* close() removes the spill files */
    size_t      max_page; /* bytes of output of read, glob, grep and list, in
                               a tenth as many lines; the rest comes in pages
                               (0: 8 MiB for read, 40,000 bytes for the others;
                               at least 1,000) */
    const hfsb_tools_check *checks; /* tried before the built-in ones */
    size_t                  check_count;
    bool                    no_checks; /* check nothing after a write */
    bool no_imports; /* check Python files for syntax only. Other checks import
                        modules, which runs code: set it where bash is not
                        offered */
    bool no_keeper;  /* see hfsb_tools_close() */
    hfsb_journal *journal; /* receives an event for each call; must outlive the
                              tools (NULL: none) */
    const char   *who;     /* name of the caller, for the journal; at most 79
                              bytes (NULL: "c") */
    hfsb_checkpoint_opts
               checkpoints; /* of the root, which this needs (all-zero:
                              none), before and after changes by tools and
                              commands; for the tools checkpoint, checkpoints,
                              undo and changes. Only the first of several roots
                              has them */
    hfsb_alloc alloc;       /* must be usable from the threads that call */
} hfsb_tools_opts;

/* Opens the tools. opts may be NULL; its strings and lists are copied, but not
   the `user` of a check. HFSB_OK; HFSB_NOT_FOUND or HFSB_IO when work_dir or
   root cannot be opened; HFSB_OUTSIDE when work_dir is not beneath root;
   HFSB_ARG for an invalid pattern; HFSB_NOMEM; and as hfsb_confine_open(). On
   failure *out is NULL. */
HFSB_API hfsb_status hfsb_tools_open(const hfsb_tools_opts *opts,
                                     hfsb_tools **out, hfsb_err *err);

/* How commands are confined; lives as long as the tools. */
HFSB_API const hfsb_confine *hfsb_tools_confine(const hfsb_tools *tools);

/* The folder of checkpoints if commands can delete it: when it is in a root,
   or where they may write, and they are not confined or the kernel gives them
   no mounts of their own. Otherwise NULL. A program should warn the person,
   who can choose another folder. Lives as long as the tools. */
HFSB_API const char *hfsb_tools_exposed(const hfsb_tools *tools);

/* Kills running commands with their process trees, and frees the tools. NULL
   is allowed. All calls must be closed, and no other thread may be in a call.
   Survivors of finished commands keep running: a small forked process reads
   their pipes, or with no_keeper the pipes are closed. Spill files stay unless
   drop_spills is set. */
HFSB_API void hfsb_tools_close(hfsb_tools *tools);

/* ---- calls ---- */

/* The result of a tool. */
typedef struct hfsb_tool_result {
    bool          success;
    hfsb_status   code; /* why the tool failed; HFSB_OK for success, and for
                             a command that ran and failed */
    char          key[HFSB_KEY_SIZE]; /* the invalid argument, or "" */
    hfsb_buf      output;
    hfsb_buf      error;  /* the reason for a failure; empty only when out of
                             memory */
    hfsb_json_doc fields; /* fields.root: an object with more fields, such as
                             exit_code; NULL when there are none */
} hfsb_tool_result;

/* Frees a result; it is empty afterwards. */
HFSB_API void hfsb_tool_result_free(hfsb_tool_result *result);

/* Appends {"success":...,"output":...,"error":...} and the members of `fields`
   as JSON. HFSB_OK, or the failure of the buffer with *err. */
HFSB_API hfsb_status hfsb_tool_result_write(const hfsb_tool_result *result,
                                            hfsb_buf *out, hfsb_err *err);

/* Appends the text for a model: the output or "(no output)"; for a failure the
   output, an empty line and "ERROR: {error}". HFSB_OK; on failure *out is as
   it was. */
HFSB_API hfsb_status hfsb_tool_result_text(const hfsb_tool_result *result,
                                           hfsb_buf               *out);

/* A field of the result: its number, or the fallback; its text, which lives as
   long as the result, or "". */
HFSB_API long long hfsb_tool_result_int(const hfsb_tool_result *result,
                                        const char *key, long long fallback);
HFSB_API hfsb_str  hfsb_tool_result_str(const hfsb_tool_result *result,
                                        const char             *key);

/* Receives the cleaned text of a command as it arrives, until the call is
   closed. Any thread that is in a call may run it, one at a time. It must not
   call the tools. */
typedef void (*hfsb_tools_text_fn)(void *user, hfsb_proc_stream stream,
                                   hfsb_str text);

typedef struct hfsb_call_opts {
    bool     strict; /* an unknown key is an error, not a note */
    hfsb_str key;    /* idempotency key, up to 255 bytes: the call runs once,
                        a repeat waits for its result or gets it again (empty:
                        none). For bash and the tools that change files.
                        The argument `id` of bash does the same */
    hfsb_str id;     /* replaces the argument `id` (ptr NULL: it does not) */
    bool     images; /* read returns a PNG, JPEG, GIF or WebP file in the
                        fields mime_type and data (base64), not an error */
    /* For a model, which pays for each answer: bash_output returns once there
       are `page` bytes of new output, the job asks a question or has ended, or
       wait_ms have passed (without wait_ms: output pauses, or 5 s pass).
       Without an offset it continues where the last page ended, and shows only
       the head and the tail of longer output. bash_input returns the output
       that follows. From 1,000 to 100,000 (0: bash_output returns with the
       first new line, from offset 0 on if none is given; bash_input does not
       wait) */
    size_t             page;
    hfsb_edit_names    names;   /* of arguments, in messages for the caller:
                                   of values out of range, and of edit, undo,
                                   changes, glob, grep, list */
    hfsb_tools_text_fn on_text; /* of bash: whole lines (NULL: none) */
    /* With on_text: the unfinished line of bash each time it changes, as a
       terminal shows it, at most 500 characters. It is not part of the text:
       the next on_text replaces it, "" clears it. For progress bars
       (NULL: none) */
    hfsb_tools_text_fn on_line;
    void              *user; /* of on_text, on_line */
    /* Ends long work (glob, grep, list, read, checks after a write) early,
       with the results so far; and the wait of hfsb_tools_call(), see there.
       (NULL: none) */
    const hfsb_cancel *cancel;
} hfsb_call_opts;

/* Calls a tool and waits for its result. arguments is a JSON object (NULL: an
   empty one). *result is always filled; the caller frees it.
   HFSB_OK         the tool ran; see result->success
   HFSB_ARG        invalid arguments
   HFSB_NOT_FOUND  there is no such tool; output lists the tools
   HFSB_LIMIT      too many commands already wait
   HFSB_REFUSED    the key belongs to another call, or its result is no longer
                   held
   HFSB_CANCELLED  opts->cancel was set before the call, and nothing was done;
                   or while bash waited, which kills its command and keeps the
                   output so far; or while another tool waited for a command,
                   which keeps running
   HFSB_NOMEM      out of memory; the command may have run */
HFSB_API hfsb_status hfsb_tools_call(hfsb_tools *tools, hfsb_str name,
                                     const hfsb_json_value *arguments,
                                     const hfsb_call_opts  *opts,
                                     hfsb_tool_result      *result);

/* The same with arguments as JSON text. */
HFSB_API hfsb_status hfsb_tools_call_text(hfsb_tools *tools, hfsb_str name,
                                          hfsb_str              arguments,
                                          const hfsb_call_opts *opts,
                                          hfsb_tool_result     *result);

/* A call that does not wait for commands: open() starts it, and done() becomes
   true while the tools are polled. The file tools finish inside open().
   Closing a call early does not end its command. */
typedef struct hfsb_call hfsb_call;

/* Starts a call; arguments need not exist afterwards. HFSB_OK, even if the
   tool failed or does not exist, which take() reports; or HFSB_NOMEM with *out
   NULL. The texts in opts must exist until open returns, `user` and `cancel`
   until close. Setting cancel ends neither the call nor its command. */
HFSB_API hfsb_status hfsb_call_open(hfsb_tools *tools, hfsb_str name,
                                    const hfsb_json_value *arguments,
                                    const hfsb_call_opts  *opts,
                                    hfsb_call            **out);
/* True when the result is complete. */
HFSB_API bool hfsb_call_done(hfsb_call *call);
/* Moves the result to *result and returns the status of hfsb_tools_call().
   HFSB_REFUSED, with an empty result, before done() and after the first
   take(). */
HFSB_API hfsb_status hfsb_call_take(hfsb_call *call, hfsb_tool_result *result);
/* Returns the job id of a call of bash or bash_output, or of bash_input that
   waits, else "". Valid until close. */
HFSB_API const char *hfsb_call_job(const hfsb_call *call);
/* Frees the call. NULL is allowed. */
HFSB_API void hfsb_call_close(hfsb_call *call);

/* ---- for an event loop ----

   Wait for the descriptors of watch() until deadline(), then call step(); or
   let poll() do all of it. */

/* Fills list with up to max descriptors to wait for. Returns how many there
   are, which may be more than max: then step every 20 ms or so. */
HFSB_API size_t hfsb_tools_watch(hfsb_tools *tools, hfsb_watch *list,
                                 size_t max);
/* Returns when to step without an event, on hfsb_clock_ms(); -1: never. */
HFSB_API long long hfsb_tools_deadline(hfsb_tools *tools);
/* Does all work that it can without waiting. */
HFSB_API void hfsb_tools_step(hfsb_tools *tools);
/* Waits up to wait_ms (negative: up to a minute) for work, and does it. */
HFSB_API void hfsb_tools_poll(hfsb_tools *tools, long long wait_ms);
/* Makes a poll in another thread return. Safe in any thread and in a signal
   handler. */
HFSB_API void hfsb_tools_wake(hfsb_tools *tools);

/* Returns the number of commands that run or wait. */
HFSB_API size_t hfsb_tools_busy(hfsb_tools *tools);

/* Appends the state of a job as a JSON object: id, state ("waiting",
   "running", "done"), who, description, command (its first 200 characters;
   command_cut when there are more), pid, background, age_ms, duration_ms,
   exit_code, signal, signal_name, timed_out, killed, output_bytes, and once it
   has ended cpu_ms and peak_bytes where they are known. id empty: an array of
   all jobs, the newest first. HFSB_OK; HFSB_NOT_FOUND, HFSB_NOMEM or
   HFSB_LIMIT with *out unchanged. */
HFSB_API hfsb_status hfsb_tools_jobs(hfsb_tools *tools, hfsb_str id,
                                     hfsb_buf *out, hfsb_err *err);

/* ---- definitions, for a model ---- */

typedef enum hfsb_tools_format {
    HFSB_TOOLS_FLAT,         /* {name, description, parameters} */
    HFSB_TOOLS_OPENAI,       /* {type:"function", function:{...}} */
    HFSB_TOOLS_ANTHROPIC,    /* {name, description, input_schema} */
    HFSB_TOOLS_MCP,          /* {name, title, description, inputSchema,
                             annotations, _meta}; without env of bash, which
                             some hosts cannot convert */
    HFSB_TOOLS_OPENAI_STRICT /* as OPENAI, with strict:true: every parameter is
                                required, and optional ones may be null;
                                without parameters that are objects */
} hfsb_tools_format;

/* Finds the format named "flat", "openai", "anthropic", "mcp" or
   "openai-strict". False for any other name, with *out unchanged. */
HFSB_API bool hfsb_tools_format_find(hfsb_str name, hfsb_tools_format *out);

/* Appends the definitions of all tools, except edit_lines and those of
   checkpoints, as a JSON array.
   HFSB_OK, or the failure of the buffer with *err. */
HFSB_API hfsb_status hfsb_tools_define(hfsb_tools_format format, hfsb_buf *out,
                                       hfsb_err *err);

/* Appends the definition of one tool, a JSON object: the item that
   hfsb_tools_define() writes for it. HFSB_OK; HFSB_NOT_FOUND when there is no
   such tool; or the failure of the buffer. On failure *out is unchanged. */
HFSB_API hfsb_status hfsb_tools_define_one(hfsb_str          name,
                                           hfsb_tools_format format,
                                           hfsb_buf *out, hfsb_err *err);

/* True when there is a tool of that name. */
HFSB_API bool hfsb_tools_has(hfsb_str name);
