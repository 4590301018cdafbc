#pragma once

/* What the files of PROC share: the start of a program, and the search for
   its processes. */

#include "os.h"

/* ---- proc_spawn.c: from fork to exec ---- */

/* Where the host holds the other end of the command's standard input, output
   and error; -1: there is no pipe. */
typedef struct hfsbi_ends {
    int input, output[2];
} hfsbi_ends;

/* Starts what opts say; on failure nothing is left. */
HFSBI_FN hfsb_status hfsbi_spawn(const hfsb_proc_opts *opts, pid_t *pid,
                                 hfsbi_ends *ends, hfsb_err *err);

/* No signal and no cancellation reaches this thread between begin and end, so
   that no handler of the host runs in a child. */
typedef struct hfsbi_fork_guard {
    sigset_t old_mask;
    int      old_cancel;
} hfsbi_fork_guard;

HFSBI_FN void hfsbi_fork_guard_begin(hfsbi_fork_guard *guard);
HFSBI_FN void hfsbi_fork_guard_end(const hfsbi_fork_guard *guard);

/* For a child after fork, where little else is safe: every signal as a fresh
   program has it; none blocked; every descriptor from `first` on closed. */
HFSBI_FN void hfsbi_child_signals(void);
HFSBI_FN void hfsbi_child_unblock(void);
HFSBI_FN void hfsbi_child_close(int first);

/* ---- proc_tree.c: the processes of a command ---- */

/* One process: a number alone may belong to another one a moment later. */
typedef struct hfsbi_process {
    long               pid, parent, group, session;
    unsigned long long start; /* clock ticks since boot */
    char               state;
    bool               seen; /* in the last search */
} hfsbi_process;

typedef struct hfsbi_tree {
    pid_t leader; /* of a session and group of its own */
    int   pidfd;  /* of it, readable once it has exited; -1: none */
    bool  held;   /* it is a child of ours that was not waited for, so that its
                     number is its own */
    bool  blind;  /* the last search could not look into /proc */
    bool  numbers_ours; /* group and session numbers can be trusted */
    unsigned long long leader_start; /* without pidfd: to know it again */
    unsigned long long since;        /* nothing older belongs to it */
    hfsb_str           marker;       /* "HFSB_JOB=..." (empty: none) */
    hfsbi_process     *known; /* members that a signal to the group misses */
    size_t             known_count, known_cap;
    hfsb_alloc         alloc;
} hfsbi_tree;

/* To be called before the leader is started. */
HFSBI_FN void hfsbi_tree_init(hfsbi_tree *tree, const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_tree_free(hfsbi_tree *tree);

/* The leader runs from now on. */
HFSBI_FN void hfsbi_tree_start(hfsbi_tree *tree, pid_t leader);

/* waitid() for the leader and no other child, without waiting: 0 or -1. */
HFSBI_FN int hfsbi_tree_wait(const hfsbi_tree *tree, siginfo_t *info,
                             int options);

/* True while the leader is held; notes when the host took it away. */
HFSBI_FN bool hfsbi_tree_holds(hfsbi_tree *tree);

/* How many processes of the tree run (zombies do not). Without a look into
   /proc: 1 when the group may have members. */
HFSBI_FN size_t hfsbi_tree_find(hfsbi_tree *tree);

/* A signal to the group, and to all others that the last search found. */
HFSBI_FN void hfsbi_tree_signal(hfsbi_tree *tree, int number);

/* The members that run, without the leader, at most max. ran_ms is how long
   ago the leader was started: the search is cheaper for young ones. */
HFSBI_FN size_t hfsbi_tree_list(hfsbi_tree *tree, long long ran_ms,
                                hfsb_proc_entry *list, size_t max);

/* ---- proc_tree.c: what commands left behind ---- */

/* The session that a command began, and the ticks between which its number
   was that command's and no one else's: a process born then that is in it now
   was born into it. */
typedef struct hfsbi_span {
    long               session; /* 0: none */
    unsigned long long since, until;
    bool               running; /* the leader is held: it lasts until now */
} hfsbi_span;

/* Those of a running command; without a leader that is held: none. */
HFSBI_FN hfsbi_span hfsbi_tree_span(hfsbi_tree *tree);
/* The same of a command (proc.c). */
HFSBI_FN hfsbi_span hfsbi_proc_span(hfsb_proc *proc);
/* A signal (0: none) to the whole tree of a command, here and now; gives how
   many were there (proc.c). */
HFSBI_FN size_t hfsbi_proc_signal(hfsb_proc *proc, int number);

/* The commands of one owner. */
typedef struct hfsbi_remains {
    hfsb_str           owner; /* HFSB_JOB ends in it, "-" and a number */
    unsigned long long since; /* nothing of it is older */
    hfsbi_span        *spans; /* those still in use are lengthened */
    size_t             count;
    bool               gently; /* TERM, and not to sessions that `running`
                                  says: they have got theirs. Else KILL */
} hfsbi_remains;

/* Signals what has the owner's marker, is in one of the sessions, or descends
   from such a process; gives how many those are, 0 where /proc cannot be
   looked into. Needs no memory. */
HFSBI_FN size_t hfsbi_remains_signal(const hfsbi_remains *remains);
