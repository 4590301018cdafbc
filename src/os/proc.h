#pragma once

/* ==== PROC: run a command, lose none of its output, never hang on it ==== */

#include "../core/base.h"

/* A command that runs in a session and process group of its own, with the
   signal state of a fresh program and no descriptor but 0, 1 and 2. Nothing
   of the host program is touched: no signal handler, no waitpid() for other
   children, no thread.

   One object, one thread at a time; different objects, different threads. */
typedef struct hfsb_proc hfsb_proc;

typedef enum hfsb_proc_stream {
    HFSB_PROC_STDOUT,
    HFSB_PROC_STDERR
} hfsb_proc_stream;

/* Bytes that the command wrote, as they came. Called from open, step, run and
   close of the same object; must not call those. */
typedef void (*hfsb_proc_output_fn)(void *user, hfsb_proc_stream stream,
                                    hfsb_str bytes);

typedef struct hfsb_proc_opts {
    hfsb_str           command; /* for the shell: `shell -c command` */
    const char *const *argv;  /* or, without a shell, NULL-terminated; $PATH of
                                `env` is searched when argv[0] has no slash */
    const char        *shell; /* (NULL: "/bin/sh") */
    const char        *work_dir; /* (NULL: the current directory) */
    const char *const *env;   /* "NAME=value", NULL-terminated (NULL: that of
                                this process) */
    hfsb_str           job;   /* id put into the environment as HFSB_JOB, by
                                which processes that left the session are
                                found again (empty: none) */
    hfsb_str           input; /* for standard input, then its end; copied */
    bool               keep_input;   /* standard input stays open for
                                hfsb_proc_input(). Without input and this it is
                                /dev/null */
    bool               merge_stderr; /* one stream, in the order written */
    bool      any_length;   /* a command too long for an argument (120 kB) is
                                run from an unlinked file: the shell must
                                speak sh */
    long long timeout_ms;   /* from the start (0: none) */
    long long grace_ms;     /* between TERM and KILL (0: 2000; below 0: KILL
                                at once) */
    long long quiet_ms;     /* after the exit, wait until the pipes were
                                quiet for so long (0: 100; below 0: do not
                                wait) */
    long long quiet_max_ms; /* ... but no longer than this (0: 2000, or
                                quiet_ms when that is more) */
    bool      no_keeper;    /* see hfsb_proc_close() */
    hfsb_proc_output_fn on_output; /* (NULL: the bytes are only counted) */
    /* Of hfsb_proc_run(): asked every 50 ms or so; true kills it. (NULL:
       nobody does) */
    bool (*cancelled)(void *user);
    void      *user; /* of both */
    hfsb_alloc alloc;
} hfsb_proc_opts;

typedef enum hfsb_proc_end {
    HFSB_PROC_RUNNING,  /* also of one that could not be killed */
    HFSB_PROC_EXITED,   /* exit_code */
    HFSB_PROC_SIGNALED, /* signal */
    HFSB_PROC_UNKNOWN   /* the host program took the status away (it ignores
                           SIGCHLD, or waits for every child) */
} hfsb_proc_end;

typedef struct hfsb_proc_result {
    int                exit_code;
    int                signal;
    hfsb_proc_end      end;
    bool               timed_out;  /* the timeout passed, whatever the end */
    bool               killed;     /* hfsb_proc_kill() was called */
    bool               incomplete; /* a process that outlived the command still
                                      holds an output pipe, or one could not
                                      be killed */
    unsigned long long stdout_bytes, stderr_bytes;
    long long          duration_ms;
    long               pid;
} hfsb_proc_result;

/* Starts a command. HFSB_OK once the program runs; else nothing is left:
   HFSB_NOT_FOUND  no such program, or no such work_dir ("Working directory
                   not found: {path}")
   HFSB_LIMIT      command, arguments and environment are too long
   HFSB_ARG        neither or both of command and argv, a NUL inside, a
                   variable without "=" or without a name
   HFSB_BUSY       no descriptors or processes are left at the moment
   HFSB_DENIED, HFSB_FULL, HFSB_IO, HFSB_NOMEM                             */
HFSB_API hfsb_status hfsb_proc_open(const hfsb_proc_opts *opts,
                                    hfsb_proc **out, hfsb_err *err);

/* ---- to drive it from a loop ---- */

/* A descriptor to wait for. */
typedef struct hfsb_watch {
    int  fd;
    bool readable, writable;
} hfsb_watch;

#define HFSB_PROC_WATCHES 4

/* Milliseconds of a clock that no one sets. */
HFSB_API long long hfsb_clock_ms(void);

/* Fills list with what to wait for and gives their number, at most
   HFSB_PROC_WATCHES. Changes with every step. */
HFSB_API size_t hfsb_proc_watch(const hfsb_proc *proc,
                                hfsb_watch       list[HFSB_PROC_WATCHES]);

/* When, on hfsb_clock_ms(), step wants to be called even if no descriptor is
   ready; -1: never. */
HFSB_API long long hfsb_proc_deadline(const hfsb_proc *proc);

/* Does all that can be done without waiting: takes output (a bounded amount a
   call), feeds input, notes the exit, sends signals that are due. True once
   the command is done: it has exited and its pipes are closed or quiet. After
   a kill or a timeout: the whole tree is gone, or cannot be killed. */
HFSB_API bool hfsb_proc_step(hfsb_proc *proc);

/* How it stands; final once step said true. */
HFSB_API hfsb_proc_result hfsb_proc_status(const hfsb_proc *proc);

/* Ends it: TERM to the whole tree, and KILL after the grace. Returns at once;
   step does the rest. The tree is the process group, the session, all
   descendants, and whatever carries the job's id in its environment. */
HFSB_API void hfsb_proc_kill(hfsb_proc *proc);

/* Queues bytes for standard input (with keep_input), and ends it with `end`.
   HFSB_OK; HFSB_REFUSED when it is closed already, by us or by the command;
   HFSB_LIMIT when more than 1 MiB waits already; HFSB_NOMEM. On failure
   nothing was queued. */
HFSB_API hfsb_status hfsb_proc_input(hfsb_proc *proc, hfsb_str bytes, bool end,
                                     hfsb_err *err);

/* ---- what outlives it ---- */

typedef struct hfsb_proc_entry {
    long pid;
    char command[128]; /* its arguments, blanks between, cut to fit; UTF-8 */
} hfsb_proc_entry;

/* The processes of its tree that run still, at most max; for after the end.
   Empty on systems without /proc. */
HFSB_API size_t hfsb_proc_survivors(const hfsb_proc *proc,
                                    hfsb_proc_entry *list, size_t max);

/* Takes over the output pipes that survivors hold: their descriptors (the
   caller reads and closes them), and their number, 0 to 2. */
HFSB_API size_t hfsb_proc_take_pipes(hfsb_proc *proc, int fds[2]);

/* Has a small forked process read those pipes to their end and discard what
   comes, so that their writers get no SIGPIPE; closes them here. */
HFSB_API void hfsb_proc_keep_pipes(const int *fds, size_t count);

/* Lists the children of this process, at most max: those that have ended and
   were not waited for, or those that run. For a host that adopts orphans
   (PR_SET_CHILD_SUBREAPER); commands that run are among them. Empty on systems
   without /proc. */
HFSB_API size_t hfsb_proc_children(bool ended, long *list, size_t max);

/* Frees it; proc may be NULL. A command that still runs is killed at once,
   with its tree, which may take a second when it resists. Pipes that survivors
   hold are given to hfsb_proc_keep_pipes(), or closed with no_keeper.

   Until then the command is a zombie, so that its number is not used again. */
HFSB_API void hfsb_proc_close(hfsb_proc *proc);

/* ---- all in one call ---- */

/* Runs a command to its end and waits. Output is appended to *out and *err_out
   when these are not NULL, and given to on_output. The buffers get the start:
   what does not fit below a buffer's max is only counted, and so is all from
   where memory ran out, which result->incomplete tells. keep_input has no
   effect. result may be NULL. HFSB_OK whatever the command's end was; else as
   open. */
HFSB_API hfsb_status hfsb_proc_run(const hfsb_proc_opts *opts, hfsb_buf *out,
                                   hfsb_buf *err_out, hfsb_proc_result *result,
                                   hfsb_err *err);
