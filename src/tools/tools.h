#pragma once

/* ==== TOOLS: what an agent does on this machine, by name and JSON ======= */

#include "../core/base.h"
#include "../os/file.h"
#include "../core/json.h"
#include "../os/proc.h"

/* bash, bash_output, bash_input, kill, read, write, edit, multi_edit,
   apply_patch, glob, grep, list and exists, on this machine. One object is one
   session: it knows its commands and the files that were read in it.

   Any number of threads may call the same object. No thread is started: what
   commands print is taken whenever some thread is inside a call or
   hfsb_tools_poll(). A host that leaves background commands alone for long
   calls hfsb_tools_poll(tools, 0) now and then; a pipe holds some 64 kB to
   1 MB until then, and the command waits when it is full. */
typedef struct hfsb_tools hfsb_tools;

/* A check of the caller's own: looks at a file that was just written and
   appends to *warnings a line for each thing to tell. The first one whose
   suffix fits takes the place of all that is built in for that file. When it
   does not return HFSB_OK nothing is told: a check never fails a write. */
typedef struct hfsb_tools_check {
    const char *suffix; /* of the files it is for: ".py" (NULL or "": all) */
    hfsb_status (*fn)(void *user, hfsb_str path, hfsb_str content,
                      hfsb_buf *warnings); /* NULL: no check at all */
    void *user;
} hfsb_tools_check;

typedef struct hfsb_tools_opts {
    hfsb_str work_dir; /* relative paths and commands begin here (empty: the
                          root, or the current directory) */
    hfsb_str root;     /* the file tools stay beneath it; commands do not
                          (empty: anywhere) */
    bool     session;  /* a file must be read before it is changed */
    const char *const *env;      /* of commands, "NAME=value", NULL-terminated
                               (NULL: that of this process as it is now) */
    const char *const *hide_env; /* names of variables commands do not get,
                                    besides SANDBOX_API_TOKEN */
    const char        *shell;    /* (NULL: bash where there is one, in /bin
                                    or /usr/bin, else /bin/sh) */
    double             timeout;  /* seconds, when a call gives none (0: 240; in
                               the background there is none then) */
    double             max_timeout; /* (0: 1200) */
    long long   grace_ms;     /* between TERM and KILL (0: 2000; below 0: KILL
                               at once) */
    size_t      max_running;  /* commands at once (0: 64) */
    size_t      max_waiting;  /* commands that wait for a place (0: 256) */
    size_t      max_finished; /* finished commands kept for bash_output, each
                               for an hour (0: 256) */
    const char *spill_dir;    /* for bash_output_*.txt (NULL: $TMPDIR, /tmp) */
    bool        no_spill;     /* long output is not saved anywhere */
    size_t      max_spill;    /* bytes of one (0: 64 MiB) */
    size_t      max_spills;   /* how many are kept (0: 32) */
    bool        drop_spills;  /* they are removed with the object */
    const hfsb_tools_check *checks; /* looked at before the built-in ones */
    size_t                  check_count;
    bool                    no_checks; /* none after writing */
    bool no_imports; /* the check of a Python file looks at its syntax only and
                        imports no module, which would run the module's code:
                        where bash is not offered */
    bool no_keeper;  /* see hfsb_tools_close() */
    hfsb_alloc alloc; /* must be usable from the threads that call */
} hfsb_tools_opts;

/* HFSB_OK; HFSB_NOT_FOUND or HFSB_IO when work_dir or root cannot be opened;
   HFSB_OUTSIDE when work_dir is not beneath root; HFSB_NOMEM. opts may be
   NULL; strings and lists in it are copied, but for checks' user. */
HFSB_API hfsb_status hfsb_tools_open(const hfsb_tools_opts *opts,
                                     hfsb_tools **out, hfsb_err *err);

/* Frees it: kills the commands that run, with their trees. What finished
   commands left behind lives on; a small forked process takes over the pipes
   it may still write to, or with no_keeper they are closed. Files with long
   output stay, for whoever was told of them, unless drop_spills is set. Calls
   must be closed before, and no other thread may be in one. */
HFSB_API void hfsb_tools_close(hfsb_tools *tools);

/* ---- calls ---- */

/* The result of a tool. */
typedef struct hfsb_tool_result {
    bool          success;
    hfsb_status   code; /* why it failed; HFSB_OK for success, and for a
                             command that ran and failed */
    char          key[HFSB_KEY_SIZE]; /* the argument at fault, or "" */
    hfsb_buf      output;
    hfsb_buf      error;  /* never empty when success is false */
    hfsb_json_doc fields; /* fields.root: an object with the added keys, such
                             as exit_code; NULL when there are none */
} hfsb_tool_result;

HFSB_API void hfsb_tool_result_free(hfsb_tool_result *result);

/* Appends {"success":...,"output":...,"error":...} with the added keys. */
HFSB_API hfsb_status hfsb_tool_result_write(const hfsb_tool_result *result,
                                            hfsb_buf *out, hfsb_err *err);

/* Appends what a model is shown: the output or "(no output)"; for a failure
   the output, an empty line and "ERROR: {error}". */
HFSB_API hfsb_status hfsb_tool_result_text(const hfsb_tool_result *result,
                                           hfsb_buf               *out);

/* Cleaned text of a command as it arrives; called by whatever thread is in a
   call, one at a time, until its own call is closed. Must not call the
   tools. */
typedef void (*hfsb_tools_text_fn)(void *user, hfsb_proc_stream stream,
                                   hfsb_str text);

typedef struct hfsb_call_opts {
    bool     strict; /* an unknown key is an error, not a note */
    hfsb_str key;    /* the same call with the same key runs once: a repeat
                        waits for its result or gets it again (empty: none).
                        For bash, write, edit, multi_edit and apply_patch; up
                        to 255 bytes. bash's `id` does the same */
    hfsb_str id;     /* replaces the argument `id`, for callers that have it
                        from elsewhere (ptr NULL: as given) */
    bool     images; /* read gives a PNG, JPEG, GIF or WebP file as added keys
                        mime_type and data (base64), not as an error */
    hfsb_tools_text_fn on_text; /* of bash */
    /* Asked now and then by what may take long (glob, grep, list, read, the
       checks after a write), in the thread of the call: true ends that early,
       with what there is. (NULL: nobody does) */
    bool (*cancelled)(void *user);
    void *user; /* of both */
} hfsb_call_opts;

/* Calls a tool and waits for its result. arguments is a JSON object (NULL: an
   empty one). *result is filled in any case and must be freed.
   HFSB_OK         the tool ran; result->success tells how
   HFSB_ARG        the arguments are wrong
   HFSB_NOT_FOUND  there is no such tool
   HFSB_LIMIT      too many commands wait already
   HFSB_REFUSED    the key was used for another call, or its result is no
                   longer held
   HFSB_NOMEM      the command may have run */
HFSB_API hfsb_status hfsb_tools_call(hfsb_tools *tools, hfsb_str name,
                                     const hfsb_json_value *arguments,
                                     const hfsb_call_opts  *opts,
                                     hfsb_tool_result      *result);

/* The same with arguments as JSON text. */
HFSB_API hfsb_status hfsb_tools_call_text(hfsb_tools *tools, hfsb_str name,
                                          hfsb_str              arguments,
                                          const hfsb_call_opts *opts,
                                          hfsb_tool_result     *result);

/* The same without waiting for commands: open() starts it, and done() becomes
   true while the tools are polled. The file tools do their work inside
   open(). Commands go on when the call is closed early. */
typedef struct hfsb_call hfsb_call;

/* HFSB_OK, also when the tool failed or there is none of that name: take()
   tells; or HFSB_NOMEM and *out NULL. arguments are not needed afterwards. */

HFSB_API hfsb_status hfsb_call_open(hfsb_tools *tools, hfsb_str name,
                                    const hfsb_json_value *arguments,
                                    const hfsb_call_opts  *opts,
                                    hfsb_call            **out);
HFSB_API bool        hfsb_call_done(hfsb_call *call);
/* Moves the result out, once; the status is that of hfsb_tools_call().
   HFSB_REFUSED, and an empty result, while it is not done. */
HFSB_API hfsb_status hfsb_call_take(hfsb_call *call, hfsb_tool_result *result);
/* Id of the command of a bash call, else "". Good until close. */
HFSB_API const char *hfsb_call_job(const hfsb_call *call);
HFSB_API void        hfsb_call_close(hfsb_call *call);

/* ---- to drive it from a loop ---- */

/* Fills list, of max items, with what to wait for; gives how many there are,
   which may be more than max: look at the rest every 20 ms or so. */
HFSB_API size_t hfsb_tools_watch(hfsb_tools *tools, hfsb_watch *list,
                                 size_t max);
/* When, on hfsb_clock_ms(), to step even so; -1: never. */
HFSB_API long long hfsb_tools_deadline(hfsb_tools *tools);
/* Does all that can be done without waiting. */
HFSB_API void hfsb_tools_step(hfsb_tools *tools);
/* Waits up to wait_ms (below 0: as long as it likes, a minute at most) for
   something to do, and does it. */
HFSB_API void hfsb_tools_poll(hfsb_tools *tools, long long wait_ms);
/* Makes a poll in another thread return. May be called from any thread, and
   from a signal handler. */
HFSB_API void hfsb_tools_wake(hfsb_tools *tools);

/* How many commands run or wait for their turn. */
HFSB_API size_t hfsb_tools_busy(hfsb_tools *tools);

/* Appends what is known of a command as a JSON object: id, state ("waiting",
   "running", "done"), description, command (its first 200 characters;
   command_cut when that is not all), pid, background, age_ms, duration_ms,
   exit_code, signal, timed_out, killed, output_bytes. id empty: an array of
   all, the newest first. HFSB_OK; HFSB_NOT_FOUND; HFSB_NOMEM or HFSB_LIMIT
   with *out as it was. */
HFSB_API hfsb_status hfsb_tools_jobs(hfsb_tools *tools, hfsb_str id,
                                     hfsb_buf *out, hfsb_err *err);

/* ---- definitions, for a model ---- */

typedef enum hfsb_tools_format {
    HFSB_TOOLS_FLAT,      /* {name, description, parameters} */
    HFSB_TOOLS_OPENAI,    /* {type:"function", function:{...}} */
    HFSB_TOOLS_ANTHROPIC, /* {name, description, input_schema} */
    HFSB_TOOLS_MCP        /* {name, title, description, inputSchema,
                             annotations} */
} hfsb_tools_format;

/* "flat", "openai", "anthropic", "mcp"; false when it is none of them. */
HFSB_API bool hfsb_tools_format_find(hfsb_str name, hfsb_tools_format *out);

/* Appends the definitions of all tools as a JSON array. */
HFSB_API hfsb_status hfsb_tools_define(hfsb_tools_format format, hfsb_buf *out,
                                       hfsb_err *err);

/* True when there is a tool of that name. */
HFSB_API bool hfsb_tools_has(hfsb_str name);
