#pragma once

#include "../core/core_private.h"
#include "file.h"
#include "proc.h"
#include "cancel.h"

/* os_private.h - the operating system: its headers, the differences between
   systems, and the calls that several rooms need. Never part of the public
   header.

   Linux features are used when the kernel has them and replaced when not.
   HFSBI_PORTABLE leaves them out at compile time, so that the tests reach the
   replacements on Linux too. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__) && !defined(HFSBI_PORTABLE)
#define HFSBI_LINUX 1
#include <sys/syscall.h>
#include <sys/xattr.h>
#endif

/* Flags to open a directory only to resolve names in it. */
#if defined(O_PATH) && !defined(HFSBI_PORTABLE)
#define HFSBI_O_SEARCH (O_PATH | O_DIRECTORY | O_CLOEXEC)
#else
#define HFSBI_O_SEARCH (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#endif

/* ---- errors ---- */

/* The text for an errno, in English whatever the locale. Never NULL; "system
   error" for a code that is not in the table. */
HFSBI_FN const char *hfsbi_os_text(int code);

/* The status for an errno: NOT_FOUND, NOMEM, LIMIT (E2BIG), DENIED, FULL (no
   space, quota or size left), BUSY (no descriptor or process left, in use),
   else HFSB_IO. */
HFSBI_FN hfsb_status hfsbi_os_status(int code);

/* Fills *err with `format`, ": " and the text for errno `code`; returns the
   status for that errno. */
HFSBI_FN hfsb_status hfsbi_fail_os(hfsb_err *err, int code, const char *format,
                                   ...) HFSBI_PRINTF(3, 4);

/* ---- descriptors; all are close-on-exec ---- */

/* Closes *fd unless it is -1, and sets it to -1. Keeps errno. */
HFSBI_FN void hfsbi_close(int *fd);

/* read() and write(), repeated after EINTR. */
HFSBI_FN ssize_t hfsbi_read(int fd, void *ptr, size_t n);
HFSBI_FN ssize_t hfsbi_write(int fd, const void *ptr, size_t n);

/* hfsbi_read() of a file opened with O_NONBLOCK: where a file of /proc would
   block until an event comes, it returns 0, as at the end. */
HFSBI_FN ssize_t hfsbi_read_file(int fd, void *ptr, size_t n);

/* Writes all of s; false with errno. A closed pipe or a file at its size limit
   is an error, not a signal. */
HFSBI_FN bool hfsbi_write_all(int fd, hfsb_str s);

/* A pipe, its ends at 3 or above; false with errno and both -1. */
HFSBI_FN bool hfsbi_pipe(int fds[2]);

/* fd; or when it is 0, 1 or 2 (the host closed those) a copy at 3 or above,
   and fd is closed. -1 with errno. */
HFSBI_FN int hfsbi_above_standard(int fd);

HFSBI_FN bool hfsbi_set_nonblocking(int fd);

/* A pipe that wakes a poll() of end 0; neither end blocks. False with errno;
   the caller closes the ends that are not -1. */
HFSBI_FN bool hfsbi_wake_open(int fds[2]);
/* Empties end 0. */
HFSBI_FN void hfsbi_wake_drain(int fd);
/* Makes end 0 readable; fd is end 1. Safe in a signal handler. */
HFSBI_FN void hfsbi_wake_write(int fd);

/* ---- signals that a write may raise ---- */

/* Between begin and end, a SIGPIPE or SIGXFSZ that this thread's own writes
   raise is discarded: the write fails with EPIPE or EFBIG. Handlers of the
   host are not touched. Both keep errno. */
typedef struct hfsbi_signal_guard {
    sigset_t old_mask;
    bool     pipe_pending, size_pending; /* before begin */
} hfsbi_signal_guard;

HFSBI_FN void hfsbi_signal_guard_begin(hfsbi_signal_guard *guard);
HFSBI_FN void hfsbi_signal_guard_end(const hfsbi_signal_guard *guard);

/* ---- random bytes and secrets ---- */

/* Fills out with n bytes. True: from the system's generator, unguessable, fit
   for keys. False: the system has none; the bytes come from the clock and
   differ from call to call, so they are fit for names and ids, never for keys.
   */
HFSBI_FN bool hfsbi_random(void *out, size_t n);

/* The same as hexadecimal digits and a NUL: out has room for digits + 1. */
HFSBI_FN bool hfsbi_random_hex(char *out, size_t digits);

/* Overwrites memory; the compiler does not remove it. */
HFSBI_FN void hfsbi_wipe(void *ptr, size_t n);

/* ---- waiting ---- */

/* A time on hfsb_clock_ms() that never comes. */
#define HFSBI_FOREVER 0x3FFFFFFFFFFFFFFFll

/* Waits for POLLIN or POLLOUT on fd (-1: for the rest alone); *ready gets
   poll()'s revents, which may be POLLERR or POLLHUP. HFSB_OK; HFSB_CANCELLED;
   HFSB_TIMEOUT at `until` on hfsb_clock_ms(); HFSB_IO. cancel may be NULL. */
HFSBI_FN hfsb_status hfsbi_wait_fd(int fd, short events, long long until,
                                   const hfsb_cancel *cancel, short *ready);

/* Sleeps before attempt tries + 1 at something that another thread or process
   holds: 1, 2 ... 20, 20 ms. HFSBI_TRIES of these take about 2 s. */
#define HFSBI_TRIES 110
HFSBI_FN void hfsbi_pause(unsigned tries);

/* The earlier of two deadlines; below 0 means never. */
HFSBI_FN long long hfsbi_sooner(long long a, long long b);

/* Fills the n entries of fds from a list of hfsb_watch. */
HFSBI_FN void hfsbi_poll_fill(const hfsb_watch *list, size_t n,
                              struct pollfd *fds);

/* ---- threads ---- */

/* pthread_cond_init() for a condition that hfsbi_cond_wait_ms() waits on, which
   must be initialised by this: on the monotonic clock where the system has it.
   0 or an errno. */
HFSBI_FN int hfsbi_cond_init(pthread_cond_t *cond);

/* Waits for cond, ms milliseconds at most; may return earlier. Where the
   system lacks conditions on the monotonic clock (macOS), setting the clock
   makes the wait longer or shorter: keep ms small. */
HFSBI_FN void hfsbi_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock,
                                 long long ms);

/* Starts a thread with all signals blocked; 0 or an errno. */
HFSBI_FN int hfsbi_thread_start(pthread_t *thread, size_t      stack,
                                void *(*fn)(void *user), void *user);

/* ---- memory and files without a name ---- */

/* A NUL-terminated copy in memory of alloc, freed with
   hfsbi_array_free(alloc, copy, s.len + 1, 1). NULL without memory. */
HFSBI_FN char *hfsbi_terminated(const hfsb_alloc *alloc, hfsb_str s);

/* An unlinked file for reading and writing, in dir (NULL: $TMPDIR or /tmp);
   -1 with errno. */
HFSBI_FN int hfsbi_unnamed_file(const char *dir);

/* ---- file.c: roots and targets ---- */

/* Longest name in a directory, on every file system of note. */
#define HFSBI_NAME_SIZE 256 /* with the NUL */

/* As many symlinks as Linux follows in one path. */
#define HFSBI_LINKS_MAX 40

enum { HFSBI_SWEEPS = 16 };

/* The directories that file_write.c found without stale temporaries: their
   stat after the last write, and when they were swept (0: unused entry). */
typedef struct hfsbi_sweeps {
    pthread_mutex_t lock;
    hfsb_file_info  dir[HFSBI_SWEEPS];
    long long       at[HFSBI_SWEEPS];
} hfsbi_sweeps;

struct hfsb_place {
    int           root_fd;   /* -1: no root */
    hfsb_buf      root;      /* as given, made absolute */
    hfsb_buf      real_root; /* the same without symlinks */
    hfsb_buf      work_dir;  /* absolute; empty: the current directory */
    hfsb_buf      work_rest; /* work_dir as seen from the root */
    hfsbi_sweeps *sweeps;    /* all that changes after open; has its lock */
    hfsb_alloc    alloc;
};

/* Where a path leads: an open directory, and a name in it that may or may not
   exist. All work on a file uses these two, so whatever happens to the path
   meanwhile, nothing outside the root is reached. */
typedef struct hfsbi_spot {
    int         dir;  /* closed by hfsbi_spot_close() */
    const char *name; /* points into `path`; "." when the path names a
                         directory by a slash or dots at its end */
    hfsb_buf    path; /* as seen from the root or the current directory */
    bool        exists;
    struct stat st; /* if it exists; of a symlink only with NO_FOLLOW */
} hfsbi_spot;

enum {
    HFSBI_SPOT_NO_FOLLOW = 1, /* stop at a symlink, do not resolve it */
    HFSBI_SPOT_PARENTS = 2,   /* make missing directories, */
    HFSBI_SPOT_NO_SYNC = 4,   /* ... without waiting for the disk */
    HFSBI_SPOT_DEEPEST = 8    /* where directories are missing, `dir` is the
                                 deepest that exists, `name` the whole rest */
};

/* Resolves path to a target. `verb` is for the message: "Cannot {verb} ...".
   HFSB_OK also when the name does not exist; on failure there is nothing to
   close. Statuses as listed in file.h. */
HFSBI_FN hfsb_status hfsbi_spot_find(const hfsb_place *root, hfsb_str path,
                                     unsigned how, const char *verb,
                                     hfsbi_spot *target, hfsb_err *err);
HFSBI_FN void        hfsbi_spot_close(hfsbi_spot *target);

/* Updates exists and st; 0 or an errno. */
HFSBI_FN int hfsbi_target_stat(hfsbi_spot *target);

/* Opens the regular file at target for reading and updates target->st. */
HFSBI_FN hfsb_status hfsbi_spot_open(const hfsb_place *root, hfsb_str path,
                                     hfsbi_spot *target, int *fd,
                                     hfsb_err *err);

/* Fails with the message and status for errno `code`, met while resolving path
   or at it. */
HFSBI_FN hfsb_status hfsbi_path_fail(const hfsb_place *root, hfsb_str path,
                                     int code, const char *verb,
                                     hfsb_err *err);

/* Fails with "{what}: {path}". */
HFSBI_FN hfsb_status hfsbi_path_say(hfsb_err *err, hfsb_status code,
                                    const char *what, hfsb_str path);

/* HFSB_OK for a regular file; HFSB_IS_DIR or HFSB_NOT_REGULAR. */
HFSBI_FN hfsb_status hfsbi_check_regular(hfsb_str path, mode_t mode,
                                         hfsb_err *err);

/* The allocator of a root, which may be NULL. */
HFSBI_FN hfsb_alloc hfsbi_root_alloc(const hfsb_place *root);

/* openat(), repeated after EINTR; close-on-exec and at 3 or above. */
HFSBI_FN int hfsbi_openat(int dir, const char *name, int flags, mode_t mode);

/* fsync(); false with errno. True where the file system does not have it. */
HFSBI_FN bool hfsbi_sync(int fd);
/* The same, as far as possible, for a directory opened with HFSBI_O_SEARCH. */
HFSBI_FN void hfsbi_sync_dir(int dir);

HFSBI_FN void hfsbi_file_info_fill(hfsb_file_info    *info,
                                   const struct stat *st);

/* sha256 of the bytes from the current position of fd to its end; false with
   errno. */
HFSBI_FN bool hfsbi_fd_sha256(int fd, char hex[HFSB_SHA256_HEX]);

/* ---- file_write.c ---- */

/* hfsb_file_remove() with conditions, checked under the same lock: HFSB_STALE
   unless the file has this sha256 and is the one that `same` describes, as
   if_sha256 and if_same of a write (NULL: no condition). */
HFSBI_FN hfsb_status hfsbi_file_remove_if(const hfsb_place *root,
                                          hfsb_str path, const char *sha256,
                                          const hfsb_file_info *same,
                                          hfsb_err             *err);

/* What the files of PROC share: the start of a program, and the search for
   its processes. */

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

/* The operating system as the server sees it, beyond os.h: sockets, and the
   kernel's ways to wait for many descriptors. Never part of the public
   header. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#ifdef HFSBI_LINUX
#define HFSBI_EPOLL 1
#include <sys/epoll.h>
#include <sys/sendfile.h>
#elif !defined(HFSBI_PORTABLE) &&                                         \
    (defined(__APPLE__) || defined(__FreeBSD__) || defined(__NetBSD__) || \
     defined(__OpenBSD__) || defined(__DragonFly__))
#define HFSBI_KQUEUE 1
#include <sys/event.h>
#endif

/* The event loop of a server: descriptors, timers, sources that drive
   themselves, work for threads. Private to the server. One thread runs a
   loop; post and wake may come from any. */

typedef struct hfsbi_loop hfsbi_loop;

/* ---- descriptors ---- */

enum {
    HFSBI_IO_READ = 1,
    HFSBI_IO_WRITE = 2,
    HFSBI_IO_EOF = 4, /* the peer has ended its side; only told when asked for,
                         and while READ is not asked for */
    HFSBI_IO_GONE = 8 /* told whether asked for or not: both sides are closed,
                         or the connection is broken; told once while neither
                         READ nor WRITE is asked for */
};

/* A descriptor of interest, part of its owner; all-zero but fd and fn before
   its first set. */
typedef struct hfsbi_io {
    int           fd;
    unsigned char want;  /* private: what is asked for */
    bool          known; /* private: the kernel's set has it */
    bool          gone;  /* private: it was told so */
    size_t        place; /* private: in the list of the poll() way */
    void (*fn)(struct hfsbi_io *io, unsigned events);
} hfsbi_io;

/* Asks for events, level-triggered; replaces what was asked for before. False
   without memory or kernel resources; then nothing is asked for. */
HFSBI_FN bool hfsbi_loop_io(hfsbi_loop *loop, hfsbi_io *io, unsigned want);
/* Forgets it: its fn is not called any more, also not for an event that the
   current turn has found already. Before its descriptor is closed. May be
   called at any time, also from its own fn or that of another. */
HFSBI_FN void hfsbi_loop_io_forget(hfsbi_loop *loop, hfsbi_io *io);

/* ---- timers: no allocation, any number ---- */

typedef struct hfsbi_timer {
    struct hfsbi_timer *child, *next, *prev; /* private: a pairing heap */
    long long           at;                  /* private */
    bool                set;
    void (*fn)(struct hfsbi_timer *timer);
} hfsbi_timer;

/* Calls fn once when hfsb_clock_ms() has reached `at`; replaces an earlier
   setting. */
HFSBI_FN void hfsbi_loop_timer(hfsbi_loop *loop, hfsbi_timer *timer,
                               long long at);
HFSBI_FN void hfsbi_loop_timer_clear(hfsbi_loop *loop, hfsbi_timer *timer);

/* The time this turn began. */
HFSBI_FN long long hfsbi_loop_now(const hfsbi_loop *loop);

/* ---- objects that say themselves what they wait for (tools) ---- */

/* All-zero but for its functions and user. The first descriptor it tells of
   is its own: it is there, and the same, while the source is in the loop. The
   others may be closed and replaced at any time. */
typedef struct hfsbi_source {
    hfsbi_io             first; /* private, as all up to `ready` */
    struct hfsbi_source *next;
    size_t               from, count; /* in the list of this turn */
    long long            at;
    bool                 ready;
    size_t (*watch)(void *user, hfsb_watch *list, size_t max);
    long long (*deadline)(void *user);
    void (*step)(void *user); /* called every turn in which one of its
                                 descriptors is ready or its deadline passed */
    void *user;
} hfsbi_source;

HFSBI_FN void hfsbi_loop_source(hfsbi_loop *loop, hfsbi_source *source);
HFSBI_FN void hfsbi_loop_source_remove(hfsbi_loop *loop, hfsbi_source *source);

/* ---- tasks: part of their owner, no allocation ---- */

typedef struct hfsbi_task {
    struct hfsbi_task *next;               /* private */
    void (*run)(struct hfsbi_task *task);  /* in a thread; may block */
    void (*done)(struct hfsbi_task *task); /* then, in the loop */
} hfsbi_task;

/* Calls task->done in the loop, soon. From any thread. */
HFSBI_FN void hfsbi_loop_post(hfsbi_loop *loop, hfsbi_task *task);
/* Calls task->run in a thread, then task->done in the loop. Where no thread
   can be had (or with no_threads) run is called at once, done later all the
   same. Threads are started when all that there are are busy, up to
   max_threads, and stay. */
HFSBI_FN void hfsbi_loop_work(hfsbi_loop *loop, hfsbi_task *task);
/* Tasks given to work or post whose done was not called yet. */
HFSBI_FN size_t hfsbi_loop_pending(hfsbi_loop *loop);

/* Ends the wait of a turn. From any thread or signal handler. */
HFSBI_FN void hfsbi_loop_wake(hfsbi_loop *loop);

/* ---- the loop ---- */

HFSBI_FN hfsb_status hfsbi_loop_open(const hfsb_alloc *alloc,
                                     size_t max_threads, bool no_threads,
                                     hfsbi_loop **out, hfsb_err *err);
/* Waits for the threads, calls what done is due, frees it. All descriptors
   must have been forgotten and timers cleared. */
HFSBI_FN void hfsbi_loop_close(hfsbi_loop *loop);

/* One turn: waits up to wait_ms (below 0: until something happens) and calls
   whoever is concerned. */
HFSBI_FN void hfsbi_loop_turn(hfsbi_loop *loop, long long wait_ms);

/* For a host's own loop, as in hfsb_server_watch(). */
HFSBI_FN size_t    hfsbi_loop_watch(hfsbi_loop *loop, hfsb_watch *list,
                                    size_t max);
HFSBI_FN long long hfsbi_loop_deadline(hfsbi_loop *loop);

/* What the event loop is made of: the kernel's set of descriptors and the
   threads. Private to the loop. */

/* ---- the kernel's set: epoll, kqueue, or a list for poll() ---- */

enum {
    HFSBI_POLLER_BATCH = 256, /* events found by one wait */
    HFSBI_POLLER_GUESTS = 512 /* descriptors that are not in the set */
};

/* Events are found by wait and told by tell. In between, and while they are
   told, the entries of what is forgotten are emptied: from `at` on. */
typedef struct hfsbi_poller {
#if defined(HFSBI_EPOLL)
    int                fd;
    size_t             at, count;
    struct epoll_event batch[HFSBI_POLLER_BATCH];
#elif defined(HFSBI_KQUEUE)
    int           fd;
    size_t        at, count;
    struct kevent batch[HFSBI_POLLER_BATCH];
#else
    hfsb_alloc     alloc;
    struct pollfd *fds; /* room for the guests behind `count` */
    hfsbi_io     **ios; /* NULL: forgotten since the last wait */
    size_t         count, fds_cap, ios_cap;
#endif
} hfsbi_poller;

/* ---- threads ---- */
