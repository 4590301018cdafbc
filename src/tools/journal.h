#pragma once

/* ==== JOURNAL: a record of every call of the tools ====================== */

#include "../core/base.h"

/* One object may serve any number of tools objects, servers and threads: the
   sessions of an MCP server and its HTTP API share one. It keeps the last
   events in memory, and appends each to a file if it has one.

   A call is one event, written when it ends. A command is two: one when it is
   started, or has to wait for its turn, and one when it has ended; both have
   the same "call". An event is a JSON object on one line:

     seq, call      its number, from 1 on; the seq of its call's first event
     run            8 digits that only events of this object have: others may
                    append to the same file
     time           when it was written: "2026-01-31T12:00:00.000Z"
     who            "api", "mcp:NAME" ...: hfsb_tools_opts.who
     tool, state    "bash"; "running", "waiting" or "done"
     path, command  of the arguments: at most 1,000 and 2,000 bytes
     arguments      the others, shortened; of long texts, standard input and
                    environments only the number of bytes or the names
     success, error (300 bytes), repeat (of a call with the same key)
     exit_code, signal, timed_out, killed   of a command
     duration_ms, output_bytes
     cpu_ms, peak_bytes   of a command and the children it waited for
     left_running   [{pid, command}]: processes that outlived the command
     job, pid       of a command
     added, removed, diff   lines changed; the diff if it has at most 4,000
                    bytes
     diff_hidden    true: the diff shows *** for a secret, so that neither it
                    nor its reverse can be applied

   Members that do not apply are left out. Secrets are hidden as "***": the
   values of variables such as HF_TOKEN in the environment of the tools, and
   anything that looks like a secret. */
typedef struct hfsb_journal hfsb_journal;

/* An event as data, for a log. Views are valid during the callback. */
typedef struct hfsb_journal_event {
    unsigned long long seq, call;
    const char        *who, *tool;
    bool               running;       /* or waiting: its end follows */
    hfsb_str           path, command; /* cut, secrets hidden; or empty */
    bool               success;
    bool               exited; /* exit_code is valid */
    int                exit_code;
    int                signal; /* that ended the command; 0: none */
    long long          duration_ms;
    hfsb_str           line; /* the whole event as JSON, without LF */
} hfsb_journal_event;

typedef struct hfsb_journal_opts {
    const char        *path; /* the file, created with mode 0600 (NULL: only
                                memory). Each event is one write(), so a killed
                                process loses at most its last line; an
                                unfinished line of an earlier run is ended */
    unsigned long long max_size;   /* bytes: a file that would grow larger is
                                    renamed to PATH.1 (0: 64 MiB) */
    bool               sync;       /* wait for the disk after each line */
    size_t             max_events; /* kept in memory (0: 1,000) */
    size_t             max_bytes;  /* of these (0: 4 MiB) */
    void (*on_event)(void *user, const hfsb_journal_event *event);
    /* Called when a line cannot be written, for the first one only. Calls go
       on; the number of lost lines is written before the next line. */
    void (*on_failure)(void *user, const char *message);
    void      *user;  /* of both, which must not use the journal; any thread
                        that calls a tool may call them, one at a time. In a
                        server with a root such a thread may be unable to open
                        files outside it: write to files already open */
    hfsb_alloc alloc; /* must be usable from all these threads */
} hfsb_journal_opts;

/* Opens a journal. opts may be NULL; the path is copied. HFSB_OK;
   HFSB_NOT_REGULAR for anything but a regular file; HFSB_NOMEM; or the status
   of opening the file. On failure *out is NULL. */
HFSB_API hfsb_status hfsb_journal_open(const hfsb_journal_opts *opts,
                                       hfsb_journal **out, hfsb_err *err);
/* Frees a journal (NULL is allowed), after all objects that use it. */
HFSB_API void hfsb_journal_close(hfsb_journal *journal);

typedef struct hfsb_journal_page {
    size_t             count; /* events */
    unsigned long long next;  /* `since` of the page that follows */
    unsigned long long lost;  /* events before `next` that are no longer
                                 held */
} hfsb_journal_page;

/* Appends the events after number `since` as a JSON array, oldest first, at
   most `limit` (0: all that are held). A number that no event has reached is
   from an earlier run, and counts as 0. HFSB_OK; HFSB_NOMEM or HFSB_LIMIT with
   *out unchanged. Any thread. */
HFSB_API hfsb_status hfsb_journal_read(hfsb_journal      *journal,
                                       unsigned long long since, size_t limit,
                                       hfsb_buf *out, hfsb_journal_page *page,
                                       hfsb_err *err);
