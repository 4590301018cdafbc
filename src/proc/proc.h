#pragma once

/* ==== PROC: run a command, lose none of its output, never hang on it ==== */

#include "../core/base.h"
#include "../os/cancel.h"
#include "confine.h"

/* A command runs in a session and process group of its own, with default
   signals and no descriptors but 0, 1 and 2. The host program is not affected:
   no signal handler is installed, no other child is waited for, no thread is
   started.

   With cols and rows the command has a pseudo-terminal as descriptors 0, 1 and
   2 and as the controlling terminal of its session. All output is then
   HFSB_PROC_STDOUT, with "\r\n" for "\n" unless the command changes that. Keys
   that are typed there, even Ctrl-C (3), are input. The environment is the
   caller's: set TERM. When the command exits, the foreground group gets
   SIGHUP, as in any terminal.

   One thread at a time may use an object; different threads may use different
   objects. */
typedef struct hfsb_proc hfsb_proc;

typedef enum hfsb_proc_stream {
    HFSB_PROC_STDOUT,
    HFSB_PROC_STDERR
} hfsb_proc_stream;

/* Receives the bytes that the command wrote, as they arrive. Called from step,
   run and close of the same object; must not call those. */
typedef void (*hfsb_proc_output_fn)(void *user, hfsb_proc_stream stream,
                                    hfsb_str bytes);

typedef struct hfsb_proc_opts {
    hfsb_str           command; /* run as `shell -c command` */
    const char *const *argv;  /* or, without a shell, NULL-terminated; searched
                                in $PATH of `env` unless argv[0] has a slash */
    const char        *shell; /* (NULL: "/bin/sh") */
    const char        *work_dir; /* (NULL: the current directory) */
    const char *const *env;   /* "NAME=value", NULL-terminated (NULL: that of
                                this process) */
    hfsb_str           job;   /* id, set in the environment as HFSB_JOB to find
                                processes that left the session (empty:
                                none) */
    hfsb_str           input; /* for standard input, which then ends; copied */
    bool               keep_input;   /* standard input stays open for
                                hfsb_proc_input(). Without input and keep_input
                                it is /dev/null, or a terminal whose input ends
                                at once */
    bool               merge_stderr; /* one stream, in the order written */
    unsigned  cols, rows;   /* run in a terminal of this size, see above (0: no
                                terminal); at most 65535 */
    bool      any_length;   /* run a command that is too long for an argument
                                (120 kB) from an unlinked file; the shell must
                                understand sh */
    long long timeout_ms;   /* from the start (0: none) */
    long long grace_ms;     /* between TERM and KILL (0: 2000; below 0: KILL
                                at once) */
    long long quiet_ms;     /* after the exit, wait until no output has come
                                for this long (0: 100; below 0: do not wait) */
    long long quiet_max_ms; /* ... but no longer than this (0: 2000, or
                                quiet_ms when that is more) */
    bool      no_keeper;    /* see hfsb_proc_close() */
    const hfsb_confine *confine; /* what the command may touch; must exist
                                until hfsb_proc_open() returns (NULL: anything
                                this user may do) */
    unsigned uid; /* run as this user, with the same number as the only group
                                and no way to gain privileges; needs root, on
                                Linux (0: as this process) */
    hfsb_proc_output_fn on_output; /* (NULL: the bytes are only counted) */
    void               *user;      /* of on_output */
    const hfsb_cancel  *cancel;    /* for hfsb_proc_run(): kills the command */
    hfsb_alloc          alloc;
} hfsb_proc_opts;

typedef enum hfsb_proc_end {
    HFSB_PROC_RUNNING,  /* or could not be killed */
    HFSB_PROC_EXITED,   /* exit_code */
    HFSB_PROC_SIGNALED, /* signal */
    HFSB_PROC_UNKNOWN   /* the host program took the status: it ignores
                           SIGCHLD, or waits for every child */
} hfsb_proc_end;

typedef struct hfsb_proc_result {
    int                exit_code;
    int                signal;
    hfsb_proc_end      end;
    bool               timed_out;  /* the timeout passed, whatever the end */
    bool               killed;     /* hfsb_proc_kill() was called */
    bool               incomplete; /* a process that outlived the command still
                                      holds an output pipe, or a process could
                                      not be killed */
    unsigned long long stdout_bytes, stderr_bytes;
    long long          duration_ms;
    /* Of the command and all children that were waited for; on Linux, once
       the command has exited. */
    long long          cpu_ms;
    unsigned long long peak_bytes; /* memory of one process; at least what this
                                      process had when it started the command
                                      (0: unknown, as is cpu_ms) */
    long               pid;
} hfsb_proc_result;

/* Starts a command. HFSB_OK once the program runs; on failure *out is NULL:
   HFSB_NOT_FOUND  no such program, or no such work_dir ("Working directory
                   not found: {path}")
   HFSB_LIMIT      command, arguments and environment are too long
   HFSB_ARG        neither or both of command and argv, a NUL inside, a
                   variable without "=" or without a name
   HFSB_BUSY       no descriptors, processes or terminals are available now
   HFSB_DENIED, HFSB_FULL, HFSB_IO, HFSB_NOMEM                             */
HFSB_API hfsb_status hfsb_proc_open(const hfsb_proc_opts *opts,
                                    hfsb_proc **out, hfsb_err *err);

/* ---- driving a command from the host's loop ---- */

#define HFSB_PROC_WATCHES 4

/* Fills list with the descriptors to wait for; returns their number, at most
   HFSB_PROC_WATCHES. They change with every step. */
HFSB_API size_t hfsb_proc_watch(const hfsb_proc *proc,
                                hfsb_watch       list[HFSB_PROC_WATCHES]);

/* The time, on hfsb_clock_ms(), at which step must be called even if no
   descriptor is ready; -1: never. */
HFSB_API long long hfsb_proc_deadline(const hfsb_proc *proc);

/* Does all that it can without waiting: reads output (a bounded amount per
   call), writes input, records the exit, sends signals that are due. True once
   the command is done: it has exited and its pipes are closed or quiet; after
   a kill or a timeout, its whole tree is gone or cannot be killed. */
HFSB_API bool hfsb_proc_step(hfsb_proc *proc);

/* The result so far; final once step has returned true. */
HFSB_API hfsb_proc_result hfsb_proc_status(const hfsb_proc *proc);

/* Ends the command: sends TERM to its whole tree; step sends KILL after
   grace_ms. The tree is the session, all descendants, and every process with
   the job's id in its environment. In a terminal it gets HUP too, because
   interactive shells ignore TERM. Does not wait. No effect on a command that
   is done. */
HFSB_API void hfsb_proc_kill(hfsb_proc *proc);

typedef enum hfsb_proc_target {
    HFSB_PROC_TREE, /* all processes of the command, as for a kill */
    HFSB_PROC_GROUP /* the foreground group of its terminal, as for Ctrl-C;
                       without one, the process group of the command */
} hfsb_proc_target;

/* Sends a signal once: a command that ignores it goes on, and `killed` stays
   false. HFSB_OK, even if its processes must be found first, and step or the
   loop sends it a moment later; HFSB_REFUSED when the command has ended, with
   all its processes or as step reports it; HFSB_ARG: number is not from 1 to
   64. */
HFSB_API hfsb_status hfsb_proc_signal(hfsb_proc *proc, int number,
                                      hfsb_proc_target target, hfsb_err *err);

/* Changes the size of the terminal; the foreground group gets SIGWINCH.
   HFSB_OK; HFSB_REFUSED: the command has no terminal, or has ended; HFSB_ARG:
   not from 1 to 65535; HFSB_IO. */
HFSB_API hfsb_status hfsb_proc_resize(hfsb_proc *proc, unsigned cols,
                                      unsigned rows, hfsb_err *err);

/* Queues bytes for standard input (with keep_input); `end` closes it after
   them. In a terminal `end` sends the end-of-file character (Ctrl-D), which
   ends one read of a program that reads lines, and is an ordinary byte to one
   that reads keys. HFSB_OK; HFSB_REFUSED when it is closed already, by an
   earlier call or by the command; HFSB_LIMIT when more than 1 MiB waits to be
   read; HFSB_NOMEM. On failure nothing is queued. */
HFSB_API hfsb_status hfsb_proc_input(hfsb_proc *proc, hfsb_str bytes, bool end,
                                     hfsb_err *err);

/* ---- survivors: processes that outlive the command ---- */

typedef struct hfsb_proc_entry {
    long pid;
    char command[128]; /* its arguments, separated by blanks, cut to fit;
                          valid UTF-8 */
} hfsb_proc_entry;

/* Lists at most max running processes of the command's tree, without the
   command itself; returns their number. Empty on systems without /proc. */
HFSB_API size_t hfsb_proc_survivors(const hfsb_proc *proc,
                                    hfsb_proc_entry *list, size_t max);

/* Takes over the output pipes that survivors hold: fills in their descriptors,
   which the caller reads and closes, and returns their number, 0 to 2. 0 until
   the command is done. */
HFSB_API size_t hfsb_proc_take_pipes(hfsb_proc *proc, int fds[2]);

/* Forks a small process that reads these pipes to their end and discards the
   bytes, so that their writers get no SIGPIPE; closes them here. */
HFSB_API void hfsb_proc_keep_pipes(const int *fds, size_t count);

/* Lists at most max children of this process: with `ended` those that have
   ended and were not waited for, else those that run. For a host that adopts
   orphans (PR_SET_CHILD_SUBREAPER); running commands are among them. Empty on
   systems without /proc. */
HFSB_API size_t hfsb_proc_children(bool ended, long *list, size_t max);

/* For a program whose commands all end with it: orphans among its descendants
   become its children (Linux; elsewhere those of process 1), and SIGCHLD is
   reset. Process-wide, and not inherited: call it in each process that serves.
   */
HFSB_API void hfsb_orphans_adopt(void);

enum { HFSB_ORPHANS_LIST = 1024 };

/* The state of hfsb_orphans_reap(): private, all zero at first. */
typedef struct hfsb_orphans {
    long      list[HFSB_ORPHANS_LIST];
    size_t    count;
    long long since;
} hfsb_orphans;

/* Reaps orphans that have ended, but no command of the library; the program
   must have no other children. Returns the ms until the next call is due;
   below 0: not before the next command. */
HFSB_API long long hfsb_orphans_reap(hfsb_orphans *orphans);

/* Ends all children of this process, and those it adopts meanwhile: TERM, then
   KILL after grace_ms (0: at once), until none is left or limit_ms more have
   passed. For the end of the program: open commands lose their status. */
HFSB_API void hfsb_orphans_kill(long long grace_ms, long long limit_ms);

/* Frees the object; proc may be NULL. A command that still runs is killed at
   once, with its tree; this may wait some seconds for its end. Pipes that
   survivors hold are given to hfsb_proc_keep_pipes(), or closed with
   no_keeper.

   Until then the command is a zombie, so that its pid is not reused. */
HFSB_API void hfsb_proc_close(hfsb_proc *proc);

/* ---- all in one call ---- */

/* Runs a command and waits for its end. Output is appended to *out and
   *err_out when these are not NULL, and passed to on_output. The buffers get
   the start of the output: bytes beyond a buffer's max are only counted, and
   so are all bytes after memory ran out, in which case result->incomplete is
   true. keep_input has no effect. result may be NULL; after a failure it is
   all zero. HFSB_OK however the command ended, even if `cancel` killed it
   (result->killed); HFSB_CANCELLED when cancel was set before, and nothing was
   started; else as hfsb_proc_open(). */
HFSB_API hfsb_status hfsb_proc_run(const hfsb_proc_opts *opts, hfsb_buf *out,
                                   hfsb_buf *err_out, hfsb_proc_result *result,
                                   hfsb_err *err);
