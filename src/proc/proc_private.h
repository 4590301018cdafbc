#pragma once

/* proc_private.h - commands: how they are confined, started, followed and
   ended, and what becomes of their output.

       confine.c     what commands may touch; the mechanisms are landlock.c,
                     seccomp.c, limits.c, namespaces.c and guard.c
       wall.c        keeps the threads of the file tools beneath the roots
       tree.c        finds the processes of commands in /proc
       terminal.c    the pseudo-terminal of a command
       spawn.c       starts a program
       proc.c        a command: its pipes, its exit, its end
       orphans.c     reaps what commands leave to a subreaper
       record.c      keeps the output of a command within bounds
       feed.c        the raw output of a command as numbered events */

#include "../os/os_private.h"
#include "confine.h"
#include "proc.h"

/* ---- confinement: places and network, shared by its mechanisms ---- */

/* Descriptors of a confinement have this number or a higher one: those below
   are overwritten in the child. */
enum { HFSBI_CONFINE_FD = 8 };

/* What a place is for. A list of places is one buffer of entries, each the
   letter, an absolute path without symlinks, and a NUL. */
enum {
    HFSBI_PLACE_READ = 'r',
    HFSBI_PLACE_WRITE = 'w',
    HFSBI_PLACE_DEVICE = 'd',      /* read, write, ioctl; nothing is created */
    HFSBI_PLACE_PINNED = 'p',      /* may be written, not renamed or removed */
    HFSBI_PLACE_KEPT = 'k',        /* read-only, beneath a writable one */
    HFSBI_PLACE_HIDDEN_FILE = 'f', /* empty, or refuses connections */
    HFSBI_PLACE_HIDDEN_DIR = 'e'   /* empty */
};

/* Adds the real path of a place, unless the list has it. False with errno when
   path (may be NULL) is not absolute or does not exist. Running out of memory
   is recorded in places->status. */
HFSBI_FN bool hfsbi_place_add(hfsb_buf *places, char use, const char *path);
/* True when a path lies beneath a writable place. */
HFSBI_FN bool hfsbi_place_is_inner(const hfsb_buf *places, const char *path);

typedef enum hfsbi_reach_mode {
    HFSBI_REACH_ON,
    HFSBI_REACH_OFF,
    HFSBI_REACH_LOOPBACK,
    HFSBI_REACH_PORTS
} hfsbi_reach_mode;

enum { HFSBI_REACH_PORTS_MAX = 32 };

typedef struct hfsbi_reach {
    hfsbi_reach_mode mode;
    bool             datagrams; /* of PORTS: UDP is allowed */
    unsigned short   ports[HFSBI_REACH_PORTS_MAX];
    size_t           port_count;
} hfsbi_reach;

/* ---- landlock.c ---- */

/* The version of Landlock that the kernel has, at most 7; 0: none. */
HFSBI_FN int hfsbi_landlock_abi(void);
/* A ruleset for commands of a level; -1 with errno. net NULL: it restricts
   only files. */
HFSBI_FN int hfsbi_landlock_open(int abi, hfsb_confine_level level,
                                 const hfsb_buf    *places,
                                 const hfsbi_reach *net);
/* In the child, like all _enter() below; -1: none. False with errno. */
HFSBI_FN bool hfsbi_landlock_enter(int ruleset);

/* ---- wall.c: threads that stay beneath the roots ---- */

/* Gives the loop a wall with these places, unless it has one. True when tasks
   that need nothing but these places may be `walled`. */
HFSBI_FN bool hfsbi_wall_raise(hfsbi_loop *loop, const hfsb_buf *places);

/* ---- seccomp.c ---- */

enum { HFSBI_SECCOMP_STEPS = 200 };

typedef struct hfsbi_bpf_step { /* as the kernel's sock_filter */
    unsigned short code;
    unsigned char  jump_true, jump_false;
    unsigned int   value;
} hfsbi_bpf_step;

typedef struct hfsbi_seccomp {
    hfsbi_bpf_step steps[HFSBI_SECCOMP_STEPS];
    size_t         count; /* 0: no filter */
    bool           full;
} hfsbi_seccomp;

/* True when the kernel and the architecture support filters. */
HFSBI_FN bool hfsbi_seccomp_works(void);
/* Writes the filter into *s, which is all-zero; landlock: Landlock is used
   too. */
HFSBI_FN bool hfsbi_seccomp_build(hfsbi_seccomp *s, const hfsbi_reach *net,
                                  bool landlock);
HFSBI_FN bool hfsbi_seccomp_enter(const hfsbi_seccomp *s);

/* ---- limits.c ---- */

typedef struct hfsbi_quota {
    unsigned long long memory, processes, file_size, cpu; /* 0: no limit */
    char               oom[24];    /* for oom_score_adj */
    int                join;       /* cgroup.procs; -1: no cgroup */
    int                above;      /* the folder that the cgroup is in; -1 */
    char               cgroup[40]; /* its name; "": none */
} hfsbi_quota;

/* Resolves the options into *l, whose descriptors are -1. If they ask for
   limits, makes a cgroup where the kernel allows it; also without limits,
   unless `bare`, where the cgroup above is certainly ours to divide. */
HFSBI_FN void hfsbi_quota_open(hfsbi_quota *l, const hfsb_confine_opts *opts,
                               bool bare);
/* How many processes the kernel has killed because commands used up the memory
   of their cgroup; 0 without one. */
HFSBI_FN unsigned long long hfsbi_quota_kills(const hfsbi_quota *l);
HFSBI_FN void               hfsbi_quota_close(hfsbi_quota *l);
/* See hfsbi_confine_enter(). */
HFSBI_FN bool hfsbi_quota_enter(const hfsbi_quota *l, int leaf, bool inside);
/* In the host, after the exec: does what the child could not because its host
   is not dumpable (PR_SET_DUMPABLE), which makes /proc/self inaccessible. */
HFSBI_FN void hfsbi_quota_follow(const hfsbi_quota *l, long pid);

/* The cgroup of one command. May outlive the confinement. */
typedef struct hfsbi_leaf {
    int  dir;      /* -1: none */
    char name[20]; /* "": one that is kept for later commands */
} hfsbi_leaf;

/* Takes an empty cgroup beneath that of the limits; without one, or on
   failure, the command has none. */
HFSBI_FN void hfsbi_leaf_open(hfsbi_leaf *leaf, const hfsbi_quota *l);
/* Kills all processes in it; false where the kernel cannot (before 5.14). */
HFSBI_FN bool hfsbi_leaf_kill(const hfsbi_leaf *leaf);
/* Returns it for reuse, or removes it and those that earlier commands left,
   unless a process is in them: what a command left running is not killed. */
HFSBI_FN void hfsbi_leaf_close(hfsbi_leaf *leaf);

/* ---- namespaces.c: namespaces ---- */

typedef struct hfsbi_namespaces {
    int user, mounts, net; /* -1: that of the host */
} hfsbi_namespaces;

/* Makes a mount namespace in which only writable places can be written and,
   with `network`, a network namespace with loopback; unless `no_user`, in a
   user namespace if one is needed. False with errno; then all are -1. */
HFSBI_FN bool hfsbi_namespaces_open(hfsbi_namespaces *spaces,
                                    const hfsb_buf *places, bool network,
                                    bool no_user);
HFSBI_FN void hfsbi_namespaces_close(hfsbi_namespaces *spaces);
HFSBI_FN bool hfsbi_namespaces_enter(const hfsbi_namespaces *spaces);

/* ---- guard.c: files that later run with the user's rights ---- */

/* The n-th name of such a file or folder, beneath a root or a home; NULL
   after the last. */
HFSBI_FN const char *hfsbi_guard_name(size_t n);

/* Which of these existed when a command started. */
typedef struct hfsbi_guard hfsbi_guard;

/* NULL when there is nothing to guard, or when out of memory. */
HFSBI_FN hfsbi_guard *hfsbi_guard_open(const hfsb_confine *confine);
HFSBI_FN void         hfsbi_guard_close(hfsbi_guard *guard);
/* Renames those that have appeared or changed since, unless `known` reports
   that the host itself made them, and appends a line for each to *notes. */
HFSBI_FN void hfsbi_guard_check(const hfsbi_guard *guard,
                                bool (*known)(void *user, const char *path),
                                void *user, hfsb_buf *notes);

/* ---- confine.c ---- */

/* What the public options leave out. */
typedef struct hfsbi_confine_how {
    bool bare;      /* nothing writable but /dev/null and the like, no
                       namespaces: for programs that only compute */
    bool no_spaces; /* for tests, like the next: as if the kernel had none */
    int  max_abi;   /* of Landlock (0: 7; below 0: as if there were none) */
} hfsbi_confine_how;

enum { HFSBI_BASES = 32 };

struct hfsb_confine {
    hfsb_alloc         alloc;
    hfsb_confine_level level;
    bool               if_possible, other_users; /* as in the options */
    hfsb_buf           options; /* see hfsbi_confine_is_like() */
    size_t             users;   /* hfsb_confine_close() counts them down */
    int                abi;     /* of Landlock; 0: not used */
    hfsb_buf           places;
    hfsb_buf           bases; /* where the guard looks; each ends in NUL */
    int                base_fds[HFSBI_BASES]; /* the same folders, open */
    size_t             base_count;
    hfsbi_reach        net;
    int                ruleset; /* -1: none */
    hfsbi_seccomp      filter;
    hfsbi_namespaces   spaces;
    hfsbi_quota        limits;
    hfsb_buf           text;
    unsigned long long covered; /* changes when a covered file is replaced */
};

HFSBI_FN hfsb_status hfsbi_confine_open(const hfsb_confine_opts *opts,
                                        const hfsbi_confine_how *how,
                                        hfsb_confine **out, hfsb_err *err);
/* True when confined commands, not those of level NONE, cannot write a path,
   which is absolute and without symlinks. */
HFSBI_FN bool hfsbi_confine_keeps(const hfsb_confine *confine,
                                  const char         *path);
/* True when commands share the network of this machine and may connect to that
   port of it. NULL: they are not confined. */
HFSBI_FN bool hfsbi_confine_reaches(const hfsb_confine *confine,
                                    unsigned            port);
/* True when a confinement was opened with the same options. A host that uses
   it instead of another one, so that limits count the commands of both, adds
   itself to `users`. */
HFSBI_FN bool hfsbi_confine_is_like(const hfsb_confine      *confine,
                                    const hfsb_confine_opts *opts);
/* Prepares the mounts again when a file that they cover was replaced, which
   removes the cover. To be called before a command is started, by one thread
   at a time. On failure the mounts are unchanged and the command must not run;
   HFSB_OK if `if_possible` lets it run. confine may be NULL. */
HFSBI_FN hfsb_status hfsbi_confine_refresh(hfsb_confine *confine,
                                           hfsb_err     *err);
/* Confines the calling process, a child before its exec. leaf is the folder of
   its cgroup, -1: none; inside: it was created there; uid as in
   hfsb_proc_opts. False with errno. */
HFSBI_FN bool hfsbi_confine_enter(const hfsb_confine *confine, int leaf,
                                  bool inside, unsigned uid);
/* Appends what commands may do, for a model: sentences, with a blank before
   each. */
HFSBI_FN void hfsbi_confine_describe(const hfsb_confine *confine,
                                     hfsb_buf           *out);
/* A bound that a command may run into. */
typedef enum hfsbi_bound {
    HFSBI_BOUND_FILES, /* and privileges: any confinement */
    HFSBI_BOUND_NET,
    HFSBI_BOUND_MEMORY,
    HFSBI_BOUND_PROCESSES,
    HFSBI_BOUND_FILE_SIZE,
    HFSBI_BOUND_CPU
} hfsbi_bound;

/* True when this bound is set. */
HFSBI_FN bool hfsbi_confine_binds(const hfsb_confine *confine,
                                  hfsbi_bound         bound);
/* How many processes the kernel has killed because of the memory limit of
   their cgroup; 0 without one. */
HFSBI_FN unsigned long long hfsbi_confine_kills(const hfsb_confine *confine);
/* True for a variable of the environment that may hold a secret, by its name;
   STRICT hides these from commands. */
HFSBI_FN bool hfsbi_confine_is_secret(hfsb_str name);

/* ---- terminal.c ---- */

#define HFSBI_TERMINAL_MAX 65535u /* columns, rows */

/* Opens a terminal of this size; the master does not block. False with errno,
   and both are -1. */
HFSBI_FN bool hfsbi_terminal_open(unsigned cols, unsigned rows, int *master,
                                  int *slave);
/* In a child that leads a session: the slave becomes its controlling terminal.
   False with errno. */
HFSBI_FN bool hfsbi_terminal_enter(int fd);
/* Sets the size; the foreground group gets SIGWINCH if it changes. False with
   errno. */
HFSBI_FN bool hfsbi_terminal_resize(int master, unsigned cols, unsigned rows);
/* The character that ends the input. */
HFSBI_FN char hfsbi_terminal_eof(int master);
/* The number of the foreground group, or below 0. It may be out of date: the
   group may have ended. */
HFSBI_FN long hfsbi_terminal_group(int master);
/* Signals the foreground group; false where the kernel does not do that for
   this signal. */
HFSBI_FN bool hfsbi_terminal_signal(int master, int number);

/* ---- uids.c: a uid of its own for each sandbox of a host ---- */

enum { HFSBI_UID_FIRST = 20000, HFSBI_UID_COUNT = 45000 };

/* The table from which sandboxes get their uids; all hosts of the machine
   share it. */
typedef struct hfsbi_uids {
    bool       on;          /* false: sandboxes run with our own uid */
    char       table[4200]; /* its path */
    hfsb_alloc alloc;       /* usable from threads */
} hfsbi_uids;

/* Checks whether sandboxes beneath `dir`, which must exist, can have uids. A
   uid that owns something there is not given to others. Setting "0": they do
   not get uids; "1": it is an error if they cannot; "": they do where they
   can. HFSB_OK; HFSB_REFUSED, HFSB_ARG, HFSB_BUSY with *err. */
HFSBI_FN hfsb_status hfsbi_uids_open(hfsbi_uids *uids, const char *dir,
                                     hfsb_str          setting,
                                     const hfsb_alloc *alloc, hfsb_err *err);
/* Takes a uid that no sandbox, process or account has; for threads outside of
   walls, like hfsbi_uid_end() and hfsbi_uids_put(). With uids->on false *uid
   is 0. HFSB_OK; HFSB_LIMIT: none is left; HFSB_NOMEM, HFSB_IO and others of
   the system. */
HFSBI_FN hfsb_status hfsbi_uids_take(const hfsbi_uids *uids, unsigned *uid,
                                     hfsb_err *err);
/* Gives a folder to the user; 0: does nothing. HFSB_OK, or why it fails. */
HFSBI_FN hfsb_status hfsbi_uid_give(const char *dir, unsigned uid,
                                    hfsb_err *err);
/* Kills all processes of a uid, whatever group or session they left. True when
   none remains. May take two seconds. */
HFSBI_FN bool hfsbi_uid_end(unsigned uid);
/* Returns a uid of which no process and no file is left; 0: does nothing. */
HFSBI_FN void hfsbi_uids_put(const hfsbi_uids *uids, unsigned uid);
/* In a child: becomes that user for good; false with errno. Uses only system
   calls. */
HFSBI_FN bool hfsbi_uid_enter(unsigned uid);

/* ---- spawn.c: starts a program ---- */

/* fd, or a copy at `least` or above and fd is closed; -1 with errno. */
HFSBI_FN int hfsbi_raise(int fd, int least);

/* The host's ends of the command's standard input, output and error; -1: no
   pipe. With a terminal the first two are its master. */
typedef struct hfsbi_ends {
    int input, output[2];
    int slave; /* of the terminal; -1: none */
} hfsbi_ends;

/* Starts the command that opts describe, in the cgroup `leaf` (-1: in that of
   the confinement). HFSB_OK once the program runs, with its pid and the ends
   of its pipes, which the caller closes; else as hfsb_proc_open(), and nothing
   is left. */
HFSBI_FN hfsb_status hfsbi_spawn(const hfsb_proc_opts *opts, int leaf,
                                 pid_t *pid, hfsbi_ends *ends, hfsb_err *err);
/* fork() into a cgroup, given by its folder; with `wait` it returns in the
   parent once the child has called exec or exited. -1 with errno where the
   kernel cannot (before 5.7) or refuses it. The child may only use system
   calls. */
HFSBI_FN pid_t hfsbi_fork_into(int cgroup, bool wait);

/* HFSB_ARG for a terminal of this size. */
HFSBI_FN hfsb_status hfsbi_fail_size(hfsb_err *err, unsigned cols,
                                     unsigned rows);

/* Between begin and end no signal and no cancellation reaches this thread, so
   that no handler of the host runs in a child. */
typedef struct hfsbi_fork_guard {
    sigset_t old_mask;
    int      old_cancel;
} hfsbi_fork_guard;

HFSBI_FN void hfsbi_fork_guard_begin(hfsbi_fork_guard *guard);
HFSBI_FN void hfsbi_fork_guard_end(const hfsbi_fork_guard *guard);

/* For a child after fork, where little else is safe: reset every signal to its
   default; unblock all signals; close every descriptor from `first` on. */
HFSBI_FN void hfsbi_child_signals(void);
HFSBI_FN void hfsbi_child_unblock(void);
HFSBI_FN void hfsbi_child_close(int first);

/* ---- tree.c: the processes of commands ---- */

/* A process as /proc shows it. pid and start identify it for good; a pid alone
   may be reused a moment later. */
typedef struct hfsbi_process {
    unsigned long long start;      /* clock ticks since boot */
    unsigned long long job, owner; /* private: hashes of its HFSB_JOB */
    long               pid, parent, group, session;
    char               state;
    bool               headless;       /* its first thread has ended */
    bool               env_read;       /* private: job and owner are known */
    unsigned char      kin;            /* private: result of the last match */
    unsigned           child, sibling; /* private: indexes in the snapshot */
    unsigned           rest;           /* private: of a match */
} hfsbi_process;

/* When a process was started, in ticks since boot; 0: unknown, or it has
   ended. */
HFSBI_FN unsigned long long hfsbi_process_start(long pid);

/* A snapshot of /proc, to be matched with any number of trees. Has built-in
   room for some processes, so that a search works when out of memory. */
enum { HFSBI_SNAPSHOT_FEW = 128 };

typedef struct hfsbi_snapshot {
    unsigned long long since;   /* ticks: lists no process that is older */
    long long          at;      /* when it began, hfsb_clock_ms(); -1: never */
    long long          cost_ms; /* how long it took */
    bool               blind;   /* it may lack processes */
    int                patience; /* private: ms that are left to wait */
    hfsb_alloc         alloc;
    hfsbi_process     *list; /* private, as all below; sorted by pid */
    size_t             count, cap;
    hfsbi_process      few[HFSBI_SNAPSHOT_FEW];
} hfsbi_snapshot;

/* An empty snapshot; hfsbi_snapshot_free() empties it again. Not to be copied.
   */
HFSBI_FN void hfsbi_snapshot_init(hfsbi_snapshot   *snap,
                                  const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_snapshot_free(hfsbi_snapshot *snap);

/* Reads /proc, in this thread. */
HFSBI_FN void hfsbi_snapshot_take(hfsbi_snapshot *snap);

/* A command's session, and the ticks between which its number was certainly
   that command's: a process of the session started in that time was born into
   it. */
typedef struct hfsbi_session_span {
    long               session; /* pid of the leader; 0: none */
    unsigned long long since, until;
    bool               running; /* the leader is our child and not yet waited
                                   for: the span lasts until now */
} hfsbi_session_span;

/* The processes to look for: those of one command, or of all commands of a
   tools object. */
typedef struct hfsbi_family {
    unsigned long long   since; /* ticks: no member is older */
    unsigned long long   job;   /* hfsb_fnv() of HFSB_JOB; 0: any */
    unsigned long long   owner; /* hfsb_fnv() of its owner, as job.c names
                                   jobs; 0: any */
    hfsbi_session_span  *spans; /* extended while a member lives in them */
    size_t               span_count;
    const hfsbi_process *known; /* members found earlier */
    size_t               known_count;
} hfsbi_family;

/* Sends all members KILL; or, gently, TERM and CONT, except to those of spans
   that are running. Returns how many members run. Allocates nothing. */
HFSBI_FN size_t hfsbi_snapshot_signal(hfsbi_snapshot     *snap,
                                      const hfsbi_family *family, bool gently);
/* Lists the pids of the members that ran when it was last matched; returns how
   many there are, which may be more than max. */
HFSBI_FN size_t hfsbi_snapshot_members(const hfsbi_snapshot *snap, long *list,
                                       size_t max);

/* The processes of one command. */
typedef struct hfsbi_tree {
    hfsbi_session_span span;
    int                pidfd;        /* of the leader; readable once it has
                                        exited; -1: none */
    unsigned long long leader_start; /* without pidfd: to recognise it */
    unsigned long long job;          /* hash of its HFSB_JOB; 0: none */
    bool               empty; /* the last find saw none: none can appear */
    hfsbi_process     *known; /* members that the last find found */
    size_t             known_count, known_cap;
    hfsbi_leaf         leaf; /* its cgroup */
    hfsb_alloc         alloc;
} hfsbi_tree;

/* To be called before the command is started; job is its HFSB_JOB (empty:
   none), confine may be NULL. */
HFSBI_FN void hfsbi_tree_init(hfsbi_tree *tree, const hfsb_alloc *alloc,
                              hfsb_str job, const hfsb_confine *confine);
HFSBI_FN void hfsbi_tree_free(hfsbi_tree *tree);

/* Records the process of the started command. */
HFSBI_FN void hfsbi_tree_start(hfsbi_tree *tree, pid_t leader);

/* waitid() for the leader and no other child, without waiting: 0 or -1. */
HFSBI_FN int hfsbi_tree_wait(const hfsbi_tree *tree, siginfo_t *info,
                             int options);

/* CPU time and peak memory of a leader that has exited and is still held.
   False where the system does not report them. */
HFSBI_FN bool hfsbi_tree_usage(const hfsbi_tree *tree, long long *cpu_ms,
                               unsigned long long *peak_bytes);

/* The span of a tree whose leader is still held; else an empty one. */
HFSBI_FN hfsbi_session_span hfsbi_tree_span(hfsbi_tree *tree);

/* Matches the tree with a snapshot, remembers its processes and returns how
   many of them run; zombies do not. When the snapshot is blind: 1 if the group
   may have members. */
HFSBI_FN size_t hfsbi_tree_find(hfsbi_tree *tree, hfsbi_snapshot *snap);

/* Signals the group, and the other members that the last find found. KILL goes
   to the cgroup as well. */
HFSBI_FN void hfsbi_tree_signal(hfsbi_tree *tree, int number);

/* Lists the members that run, except the leader, at most max. ran_ms is the
   time since the leader was started: the search is cheaper for young ones. */
HFSBI_FN size_t hfsbi_tree_list(const hfsbi_tree *tree, long long ran_ms,
                                hfsb_proc_entry *list, size_t max);
/* True when that would read more than a few files of /proc. */
HFSBI_FN bool hfsbi_tree_list_takes_long(hfsbi_tree *tree, long long ran_ms);
/* The same list, of the members that the last find found. */
HFSBI_FN size_t hfsbi_tree_list_known(const hfsbi_tree *tree,
                                      hfsb_proc_entry *list, size_t max);

/* ---- tree.c: snapshots that a thread of a loop takes ---- */

/* A wait for a snapshot. */
typedef struct hfsbi_look {
    struct hfsbi_look *next;  /* private */
    hfsbi_timer       *timer; /* due when there is a new snapshot */
    bool               waits;
} hfsbi_look;

/* All private. */
typedef struct hfsbi_scanner {
    hfsbi_companion    companion; /* first */
    hfsbi_task         task;
    hfsbi_loop        *loop;
    hfsbi_look        *looks;
    unsigned long long since; /* ticks: lists no process that is older */
    bool               busy;  /* a thread reads the other one of the pair */
    unsigned           last;  /* the newest of the pair that is complete */
    hfsbi_snapshot     pair[2];
} hfsbi_scanner;

/* The scanner that the commands attached to a loop share; it is freed with the
   loop. NULL when out of memory. */
HFSBI_FN hfsbi_scanner *hfsbi_scanner_of(hfsbi_loop *loop);

/* Lists processes from these ticks on, or from earlier ones when an earlier
   call asked for that. */
HFSBI_FN void hfsbi_scanner_cover(hfsbi_scanner     *scan,
                                  unsigned long long since);

/* The newest snapshot, if it began at `need`, on hfsb_clock_ms(), or later;
   valid in this turn. Else NULL: a thread takes another one, and the look's
   timer is due when it is there. A loop without threads takes it at once. */
HFSBI_FN hfsbi_snapshot *hfsbi_scanner_get(hfsbi_scanner *scan,
                                           hfsbi_look *look, long long need);
/* How long the newest snapshot took, in ms. */
HFSBI_FN long long hfsbi_scanner_cost(const hfsbi_scanner *scan);
/* Ends that wait, if there is one. */
HFSBI_FN void hfsbi_scanner_leave(hfsbi_scanner *scan, hfsbi_look *look);

/* ---- proc.c: a command for the rooms below ---- */

/* The span of a running command, for the sweep of a tools object. */
HFSBI_FN hfsbi_session_span hfsbi_proc_span(hfsb_proc *proc);

/* Signals (0: does not) the whole tree as the snapshot shows it; returns how
   many processes it had. */
HFSBI_FN size_t hfsbi_proc_signal(hfsb_proc *proc, hfsbi_snapshot *snap,
                                  int number);

/* hfsb_proc_open() that takes over the bytes of *input, whose view is
   opts->input, and leaves it empty; a failure leaves it unchanged. */
HFSBI_FN hfsb_status hfsbi_proc_open(const hfsb_proc_opts *opts,
                                     hfsb_buf *input, hfsb_proc **out,
                                     hfsb_err *err);

/* Lets a loop drive the command: its pipes, its exit and its deadlines become
   events of the loop, which steps it. on_change is called in the loop after a
   step that took output or input or changed the command's state; with `done`
   once, at the end, when the command is no longer attached. It may call any
   function of the command, hfsb_proc_close() included.

   hfsb_proc_watch(), _deadline() and _step() are not needed meanwhile. The
   loop must outlive the command or its detach. All under the loop's lock, or
   in its thread. */
HFSBI_FN void hfsbi_proc_attach(hfsb_proc *proc, hfsbi_loop *loop,
                                void (*on_change)(void *user, hfsb_proc *proc,
                                                  bool done),
                                void *user);
/* Steps an attached command now, as the loop does. */
HFSBI_FN void hfsbi_proc_drive(hfsb_proc *proc);
/* Ends that, even before the command is done; does nothing if not attached. */
HFSBI_FN void hfsbi_proc_detach(hfsb_proc *proc);

/* False while hfsb_proc_input() returns HFSB_LIMIT. It becomes true before a
   call of on_change. */
HFSBI_FN bool hfsbi_proc_has_room(const hfsb_proc *proc);

/* Stops or resumes reading output. Meanwhile a command that prints more than
   its pipes hold waits. Its exit is still noticed, timeouts and kills work,
   but it is not done until its output was read. May be called in on_output. */
HFSBI_FN void hfsbi_proc_hold(hfsb_proc *proc, bool hold);

/* True when no process holds the other end of a pipe. */
HFSBI_FN bool hfsbi_pipe_ended(int fd);

/* ---- record.c: the output of a command, and spill files ---- */

typedef struct hfsbi_spill {
    char                      *path;
    const struct hfsbi_spills *owner; /* who may read it; NULL: gone */
    unsigned long long         bytes;
} hfsbi_spill;

/* The spill files of a tools object and of those opened like it. At most `max`
   exist, with max_bytes in all; a new one removes the oldest. */
typedef struct hfsbi_spill_store {
    pthread_mutex_t    lock; /* protects all below but max and max_bytes */
    size_t             users;
    hfsbi_spill       *list; /* oldest first */
    size_t             count, max;
    unsigned long long bytes, max_bytes;
    bool               swept; /* files of ended processes were removed */
    hfsb_alloc         alloc;
} hfsbi_spill_store;

/* The spill files of one tools object. */
typedef struct hfsbi_spills {
    hfsbi_spill_store *store;
    size_t             max_bytes; /* of one file */
    size_t             over;    /* a log of more bytes is always saved (0: only
                                   one that a reply truncates) */
    bool               none;    /* make no files */
    bool               dropped; /* remove the files with the object */
    char              *dir;     /* absolute where possible */
    hfsb_alloc         alloc;
} hfsbi_spills;

/* dir NULL: $TMPDIR or /tmp; max 0: 32 files; max_bytes 0: 64 MiB. False when
   out of memory; then there is nothing to free. */
HFSBI_FN bool hfsbi_spills_init(hfsbi_spills *spills, const char *dir,
                                size_t max, size_t max_bytes,
                                const hfsb_alloc *alloc);
/* Counts the files with those of another object from now on; `spills` is new.
   */
HFSBI_FN void hfsbi_spills_share(hfsbi_spills       *spills,
                                 const hfsbi_spills *with);
/* Frees the memory, and with `dropped` removes the files. */
HFSBI_FN void hfsbi_spills_free(hfsbi_spills *spills);
/* True when path is a spill file that still counts among these. */
HFSBI_FN bool hfsbi_spills_has(hfsbi_spills *spills, hfsb_str path);

/* A file that keeps what does not fit into memory. */
typedef struct hfsbi_kept_file {
    int                fd;    /* -1: none */
    unsigned long long bytes; /* in it */
    bool               full;  /* it takes no more */
    bool               tried; /* to make one */
} hfsbi_kept_file;

/*  stdout --> filter --> window, log
    stderr --> filter --> window, stash        ... at the end: stash --> log

    The filter cleans text as it arrives. The windows keep the parts that a
    reply shows. The log is the cleaned text, bytes 0 to `total`: bash_output
    shows it, the spill file holds it. `memory` holds the whole log until the
    text is too long for a reply. From then on the spill file holds the log, up
    to a limit, and `memory` keeps the end.

        0           spill.bytes         memory_start          total
        [ spill file )  ... dropped ...  [ memory             )            */
typedef struct hfsbi_record {
    hfsb_text_filter  *filter[2]; /* of stdout, stderr */
    hfsb_text_window  *window[2];
    hfsb_buf           piece; /* cleaned text on its way */
    hfsb_buf           memory;
    unsigned long long memory_start, total;
    hfsbi_kept_file    spill;
    hfsb_buf           path; /* of the spill file, or empty */
    hfsbi_kept_file    stash;
    unsigned long long stderr_total; /* bytes of cleaned stderr */
    bool               merged;       /* stderr arrives with stdout */
    bool               lost;         /* some text was lost: out of memory */
    unsigned long long taken;        /* raw bytes of both streams */
    unsigned long long bytes;        /* raw bytes of stdout */
    long long          last_at;      /* hfsb_clock_ms() of the last stdout */
    hfsbi_spills      *spills;
    void (*on_text)(void *user, hfsb_proc_stream stream, hfsb_str text);
    void (*on_line)(void *user, hfsb_proc_stream stream, hfsb_str text);
    bool       lined[2]; /* on_line has text that is not in on_text yet */
    void      *user;
    hfsb_alloc alloc;
} hfsbi_record;

/* spills must outlive the record. False when out of memory; then there is
   nothing to free. */
HFSBI_FN bool hfsbi_record_init(hfsbi_record *r, hfsbi_spills *spills,
                                bool merged, const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_record_free(hfsbi_record *r);

/* Adds bytes as the command wrote them. Failures set r->lost. */
HFSBI_FN void hfsbi_record_write(hfsbi_record *r, hfsb_proc_stream stream,
                                 hfsb_str bytes);
/* Ends the record: unfinished lines count as lines, stderr follows stdout in
   the log, descriptors are closed. */
HFSBI_FN void hfsbi_record_finish(hfsbi_record *r);

/* Returns the number of characters in both streams. */
HFSBI_FN size_t hfsbi_record_chars(const hfsbi_record *r);
/* True when a reply leaves out some of the text. */
HFSBI_FN bool hfsbi_record_truncated(const hfsbi_record *r);

/* True while stdout ends in an unfinished line. */
HFSBI_FN bool hfsbi_record_pending(const hfsbi_record *r);

/* Appends the end of stderr so far, at most max bytes, in whole lines if there
   are several. Nothing for a merged or settled record. HFSB_OK or the failure
   of the buffer. */
HFSBI_FN hfsb_status hfsbi_record_show_stderr(const hfsbi_record *r,
                                              size_t max, hfsb_buf *out);

/* Appends the text of a reply. Call it after finish and before settle. HFSB_OK
   or the failure of the buffer. */
HFSBI_FN hfsb_status hfsbi_record_show(const hfsbi_record *r, hfsb_buf *out);

/* Frees everything that hfsbi_record_read() does not need. Call it after
   finish. */
HFSBI_FN void hfsbi_record_settle(hfsbi_record *r);
/* Returns the bytes of the log in memory. */
HFSBI_FN size_t hfsbi_record_held(const hfsbi_record *r);
/* Frees the log in memory; a spill file stays readable. */
HFSBI_FN void hfsbi_record_forget(hfsbi_record *r);

/* Appends at most max bytes of the log from byte `from` on, without a partial
   character at the end. *next is the offset that follows. Bytes that are no
   longer held are skipped: [*gone_from, *gone_to), both 0 when none are. At
   the end of the log the unfinished line is appended too. HFSB_OK; on failure
   *out is unchanged. */
HFSBI_FN hfsb_status hfsbi_record_read(const hfsbi_record *r,
                                       unsigned long long from, size_t max,
                                       hfsb_buf *out, unsigned long long *next,
                                       unsigned long long *gone_from,
                                       unsigned long long *gone_to);

/* ---- feed.c: the raw output of a command as numbered events ---- */

typedef enum hfsbi_feed_kind {
    HFSBI_FEED_NONE, /* nothing yet, or nothing more */
    HFSBI_FEED_STDOUT,
    HFSBI_FEED_STDERR,
    HFSBI_FEED_PTY,
    HFSBI_FEED_GAP,    /* events that are no longer kept */
    HFSBI_FEED_EXITED, /* all output was read */
    HFSBI_FEED_CLOSED  /* the last event */
} hfsbi_feed_kind;

enum {
    HFSBI_FEED_EVENT = 32768, /* bytes of one event at most */
    HFSBI_FEED_TAKE = 4       /* bytes that one call takes at least */
};

/* The position for a reader that wants no earlier events. */
#define HFSBI_FEED_NOW (~0ull)

/* As in hfsb_proc_result. */
typedef struct hfsbi_feed_exit {
    hfsb_proc_end end;
    int           exit_code, signal;
} hfsbi_feed_exit;

typedef struct hfsbi_feed_event {
    hfsbi_feed_kind    kind;
    unsigned long long seq;   /* from 1, one for each event of any kind; of a
                                 GAP, that of the event which follows it */
    hfsb_str           bytes; /* of output, in the caller's memory */
    bool               more;  /* the next call takes more of this event */
    unsigned long long gone_events; /* of a GAP */
    unsigned long long gone_bytes;  /* the same; an upper bound for a reader
                                       that attached in the middle */
    hfsbi_feed_exit    exit;        /* of EXITED and CLOSED */
} hfsbi_feed_event;

/* An incomplete character; private. */
typedef struct hfsbi_feed_tail {
    char   bytes[3];
    size_t len;
} hfsbi_feed_tail;

/* Part of its owner; all-zero except the first fields before it is attached.
   Detach it, or free its feed, before it is freed. */
typedef struct hfsbi_feed_reader {
    bool text; /* no piece ends inside a UTF-8 character; its first bytes wait
                  for the others, or for the end. Other bytes are passed
                  unchanged */
    void (*on_news)(void *user); /* (NULL: none) there are new events: called
                  once, and again only after a take. May call any function of
                  readers */
    void                     *user;
    struct hfsbi_feed        *feed; /* private, as all below; NULL: detached */
    struct hfsbi_feed_reader *next;
    unsigned long long        seq;  /* of the event that is next */
    unsigned long long        at;   /* its offset */
    size_t                    done; /* bytes of it that were taken */
    unsigned long long        gone_events, gone_bytes; /* to be reported */
    bool                      told, news;
    hfsbi_feed_tail           tail[3]; /* of each kind of output */
} hfsbi_feed_reader;

/* All private. Offsets count the bytes of all events, headers included. */
typedef struct hfsbi_feed {
    hfsb_alloc         alloc;
    size_t             max;
    char              *ring;
    size_t             cap, head;   /* head: index of `start` in the ring */
    unsigned long long start, end;  /* offsets of what is kept */
    unsigned long long first, next; /* numbers of the oldest event, and of the
                                       one that will be written */
    unsigned long long dropped;     /* bytes of events that are gone */
    bool               held, ended;
    hfsbi_feed_exit    exit;
    hfsbi_feed_reader *readers;
    void (*on_hold)(void *user, bool hold);
    void *user;
} hfsbi_feed;

/* A feed that keeps the newest events, up to max bytes (0: 1 MiB; at least
   256), four of them for each event. on_hold (NULL: none) asks the owner to
   stop or resume writing; what is still written after that, up to 128 KiB, is
   kept as well. */
HFSBI_FN void hfsbi_feed_init(hfsbi_feed *feed, size_t max,
                              void (*on_hold)(void *user, bool hold),
                              void *user, const hfsb_alloc *alloc);
/* Detaches all readers; on_hold is not called. */
HFSBI_FN void hfsbi_feed_free(hfsbi_feed *feed);

/* Adds output, as one event or several; when out of memory the oldest events
   are dropped, or the new ones. Ignored after the end. */
HFSBI_FN void hfsbi_feed_write(hfsbi_feed *feed, hfsbi_feed_kind kind,
                               hfsb_str bytes);
/* Adds the last two events: EXITED and CLOSED. */
HFSBI_FN void hfsbi_feed_end(hfsbi_feed *feed, hfsb_proc_end end,
                             int exit_code, int signal);

/* Attaches a reader, whose first event is number `from` (0: the first of all;
   HFSBI_FEED_NOW, or a future number: the next one; after the end that is
   EXITED). A reader of text gets the first bytes of a character that began
   before that. While it is attached it loses nothing, if the owner obeys
   on_hold. */
HFSBI_FN void hfsbi_feed_attach(hfsbi_feed *feed, hfsbi_feed_reader *reader,
                                unsigned long long from);
/* Does nothing if it is not attached. */
HFSBI_FN void hfsbi_feed_detach(hfsbi_feed_reader *reader);

/* Takes the next event, or as much of it as fits n bytes; n is HFSBI_FEED_TAKE
   or more, and with HFSBI_FEED_EVENT + 3 each event is whole. False: there is
   none. */
HFSBI_FN bool hfsbi_feed_take(hfsbi_feed_reader *reader, char *out, size_t n,
                              hfsbi_feed_event *event);
