#pragma once

/* ==== CONFINE: what commands may touch ================================= */

#include "../core/base.h"

/* Confinement is prepared once and then applies to every command started with
   it, and to everything that the command starts. It needs no privileges. It
   uses what the kernel has (Linux only):

   Landlock     which files may be read and written, TCP ports, signals
   seccomp      system calls that no build or test needs are refused
   namespaces   a read-only view of everything that may not be written
   limits       memory, processes, size of files, CPU time

   hfsb_confine_text() says which of these are active. */
typedef struct hfsb_confine hfsb_confine;

typedef enum hfsb_confine_level {
    HFSB_CONFINE_NONE,  /* anything this user may do */
    HFSB_CONFINE_WRITE, /* reads everything; writes beneath `dirs`, $TMPDIR
                           (or /tmp), the caches of common tools (~/.cache,
                           ~/.npm, ~/.cargo, ~/.local/share/uv) and
                           allow_write, except files that later run as the
                           person: shell start-up files, .git/hooks, .envrc,
                           .mcp.json, .vscode and the like */
    HFSB_CONFINE_STRICT /* also reads only system folders, the places it may
                           write, and allow_read; no caches; no network
                           unless `net` allows it; .env files are hidden */
} hfsb_confine_level;

typedef struct hfsb_confine_opts {
    bool if_possible; /* without Landlock WRITE does what it can, and does not
                         fail; hfsb_confine_text() says so */
    hfsb_confine_level level;
    const char *const *dirs; /* where commands work: the roots and the working
                                directory. hfsb_tools_open() sets them */
    size_t             dir_count;
    const char *const *allow_write; /* more folders or files; must exist */
    size_t             allow_write_count;
    const char *const *allow_read; /* the same for STRICT */
    size_t             allow_read_count;
    const char *keep; /* a folder beneath these that commands cannot write,
                         if the kernel gives them mounts of their own.
                         hfsb_tools_open() sets it to that of checkpoints */
    bool no_temp;    /* $TMPDIR, /tmp and /dev/shm, which all commands of this
                        machine share, cannot be written, nor in STRICT be
                        read */
    bool other_users; /* for commands with a `uid` (hfsb_proc_opts): no user
                        namespace, which would map only this user */
    const char *net; /* "on", "off", "loopback" (a network of their own that
                        all commands share), or TCP ports to connect to and
                        listen on: "443,80"; with 53 also UDP, to any port.
                        (NULL: "on", in STRICT "off") */
    /* 0: no limit. Limits apply to each process; where the kernel lets this
       user make a cgroup, max_memory and max_processes apply to all commands
       together */
    unsigned long long max_memory;    /* bytes */
    unsigned long long max_processes; /* of the user; root only in a cgroup */
    unsigned long long max_file_size; /* bytes */
    unsigned long long max_cpu;       /* seconds of CPU time */
    hfsb_alloc         alloc;
} hfsb_confine_opts;

/* Prepares confinement; opts need not exist afterwards. At every level
   commands leave no core dumps, and are the first that the kernel kills when
   memory runs out.
   HFSB_OK
   HFSB_REFUSED    the system lacks what the level or `net` needs
   HFSB_NOT_FOUND  a folder of allow_write or allow_read does not exist
   HFSB_ARG        `net` is invalid
   HFSB_NOMEM, HFSB_IO, HFSB_BUSY; *out is NULL on failure */
HFSB_API hfsb_status hfsb_confine_open(const hfsb_confine_opts *opts,
                                       hfsb_confine **out, hfsb_err *err);
/* Frees it; NULL is allowed. Running commands stay confined. */
HFSB_API void hfsb_confine_close(hfsb_confine *confine);

/* The level in force: NONE also when no part of it was possible. */
HFSB_API hfsb_confine_level hfsb_confine_level_of(const hfsb_confine *confine);

/* What commands may do, and which mechanisms enforce it, in one line for
   people; "" when they are not confined. Lives as long as the object. */
HFSB_API const char *hfsb_confine_text(const hfsb_confine *confine);

/* Returns "none", "write" or "strict". */
HFSB_API const char *hfsb_confine_level_name(hfsb_confine_level level);

/* Finds the level named "none", "write" or "strict". False for any other
   name, with *out unchanged. */
HFSB_API bool hfsb_confine_level_find(hfsb_str name, hfsb_confine_level *out);
