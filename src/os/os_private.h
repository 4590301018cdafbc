#pragma once

#include "../core/core_private.h"
#include "../pattern/pattern_private.h"
#include "confine.h"
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

#ifdef __linux__
#include <sys/vfs.h>
#endif
#if defined(__linux__) && !defined(HFSBI_PORTABLE)
#define HFSBI_LINUX 1
#include <sys/ioctl.h>
#include <sys/prctl.h>
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
HFSBI_FN int hfsbi_fd_above_2(int fd);

/* openat(), repeated after EINTR; close-on-exec and at 3 or above. */
HFSBI_FN int hfsbi_openat(int dir, const char *name, int flags, mode_t mode);

/* An exclusive flock(), tried once: false when another descriptor holds
   it. File systems without locks count as locked. */
HFSBI_FN bool hfsbi_try_lock(int fd);

/* fsync(); false with errno. True where the file system does not have it. */
HFSBI_FN bool hfsbi_sync(int fd);
/* The same, as far as possible, for a directory opened with HFSBI_O_SEARCH. */
HFSBI_FN void hfsbi_sync_dir(int dir);

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

/* ---- cancel ---- */

/* A flag, and a pipe that is opened when someone first waits for the flag.
   Public functions take it by pointer; a call may embed one, with init and
   free. Not to be copied. */
struct hfsb_cancel {
    int             flag;   /* atomic: os.c has the rules */
    int             fds[2]; /* hfsbi_wake_open(); fds[1], atomic, is -1 until
                               someone waits */
    pthread_mutex_t lock;   /* so that the pipe is opened once */
    hfsb_alloc      alloc;  /* of hfsb_cancel_open() */
};

HFSBI_FN void hfsbi_cancel_init(hfsb_cancel *cancel);
/* Closes the pipe. No call may use the cancel any more. */
HFSBI_FN void hfsbi_cancel_free(hfsb_cancel *cancel);

/* Fills *fd, so that a poll() also ends when the cancel (NULL: none) is set;
   returns the timeout for that poll(): ms (below 0: none), or at most 50 ms
   when there is no descriptor for a pipe. The caller looks at the flag after
   the poll(). */
HFSBI_FN int hfsbi_cancel_watch(const hfsb_cancel *cancel, struct pollfd *fd,
                                int ms);

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
HFSBI_FN long long hfsbi_earlier(long long a, long long b);

/* Fills the n entries of fds from a list of hfsb_watch. */
HFSBI_FN void hfsbi_poll_fill(const hfsb_watch *list, size_t n,
                              struct pollfd *fds);

/* ---- threads ---- */

/* Returns the time of day, in nanoseconds since 1970: it can be set, so no wait
   may depend on it. */
HFSBI_FN long long hfsbi_wall_ns(void);

/* pthread_mutex_init() for a lock that a thread may take several times. */
HFSBI_FN void hfsbi_mutex_init_recursive(pthread_mutex_t *lock);

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
HFSBI_FN char *hfsbi_cstr_copy(const hfsb_alloc *alloc, hfsb_str s);

/* An unlinked file for reading and writing, in dir (NULL: $TMPDIR or /tmp);
   -1 with errno. */
HFSBI_FN int hfsbi_unnamed_file(const char *dir);

/* ---- root.c: roots and targets ---- */

/* Longest name in a directory, on every file system of note. */
#define HFSBI_NAME_SIZE 256 /* with the NUL */

enum { HFSBI_SWEEPS = 16 };

/* The directories that temp.c found without stale temporaries: their
   stat after the last write, and when they were swept (0: unused entry). */
typedef struct hfsbi_sweeps {
    pthread_mutex_t lock;
    hfsb_file_info  dir[HFSBI_SWEEPS];
    long long       at[HFSBI_SWEEPS];
} hfsbi_sweeps;

/* The patterns of the deny list. Matching changes their state. */
typedef struct hfsbi_deny {
    pthread_mutex_t  lock;
    hfsbi_ignore    *rules; /* NULL: none */
    const hfsb_root *roots; /* the first of them */
} hfsbi_deny;

enum { HFSBI_ROOTS = 16 };

struct hfsb_root {
    hfsb_root    *next;      /* of several roots */
    int           root_fd;   /* -1: no root */
    hfsb_buf      root;      /* as given, made absolute */
    hfsb_buf      real_root; /* the same without symlinks; without a root, the
                                directory where patterns begin */
    hfsbi_deny   *deny;      /* of the first root */
    hfsb_buf      work_dir;  /* absolute; empty: the current directory */
    hfsb_buf      work_rest; /* work_dir as seen from the root */
    hfsbi_sweeps *sweeps;    /* all that changes after open; has its lock */
    hfsb_alloc    alloc;
};

/* Where a path leads: an open directory, and a name in it that may or may not
   exist. All work on a file uses these two, so whatever happens to the path
   meanwhile, nothing outside the root is reached. */
typedef struct hfsbi_target {
    const hfsb_root *root; /* the one of several that it belongs to */
    int              dir;  /* closed by hfsbi_target_close() */
    const char      *name; /* points into `path`; "." when the path names a
                         directory by a slash or dots at its end */
    hfsb_buf         path; /* as seen from the root or the current directory */
    bool             exists;
    struct stat      st; /* if it exists; of a symlink only with NO_FOLLOW */
} hfsbi_target;

enum {
    HFSBI_RESOLVE_NO_FOLLOW = 1, /* stop at a symlink, do not resolve it */
    HFSBI_RESOLVE_PARENTS = 2,   /* make missing directories, */
    HFSBI_RESOLVE_NO_SYNC = 4,   /* ... without waiting for the disk */
    HFSBI_RESOLVE_DEEPEST = 8    /* where directories are missing, `dir` is the
                                 deepest that exists, `name` the whole rest */
};

/* Resolves path to a target. `verb` is for the message: "Cannot {verb} ...".
   HFSB_OK also when the name does not exist; on failure there is nothing to
   close. Statuses as listed in file.h. */
HFSBI_FN hfsb_status hfsbi_resolve(const hfsb_root *root, hfsb_str path,
                                   unsigned how, const char *verb,
                                   hfsbi_target *target, hfsb_err *err);
HFSBI_FN void        hfsbi_target_close(hfsbi_target *target);

/* Appends the path of the target from its root, or where patterns begin:
   without symlinks, "." and ".."; "." for that directory itself. 0 or an
   errno. */
HFSBI_FN int hfsbi_target_place(const hfsbi_target *target, hfsb_buf *out);

/* True when the deny list names a path, as hfsbi_target_place() writes it, or
   a directory above it. */
HFSBI_FN bool hfsbi_root_denies(const hfsb_root *root, hfsb_str path,
                                bool is_dir);

/* Updates exists and st; 0 or an errno. */
HFSBI_FN int hfsbi_target_stat(hfsbi_target *target);

/* The allocator of a root, which may be NULL. */
HFSBI_FN hfsb_alloc hfsbi_root_alloc(const hfsb_root *root);

/* Fails with the message and status for errno `code`, met while resolving path
   or at it. */
HFSBI_FN hfsb_status hfsbi_file_fail_os(const hfsb_root *root, hfsb_str path,
                                        int code, const char *verb,
                                        hfsb_err *err);

/* Fails with "{what}: {path}". */
HFSBI_FN hfsb_status hfsbi_file_fail(hfsb_err *err, hfsb_status code,
                                     const char *what, hfsb_str path);

/* ---- file.c: looking and reading ---- */

/* Opens the regular file at target for reading and updates target->st. */
HFSBI_FN hfsb_status hfsbi_target_open(const hfsb_root *root, hfsb_str path,
                                       hfsbi_target *target, int *fd,
                                       hfsb_err *err);

/* HFSB_OK for a regular file; HFSB_IS_DIR or HFSB_NOT_REGULAR. */
HFSBI_FN hfsb_status hfsbi_check_regular(hfsb_str path, mode_t mode,
                                         hfsb_err *err);

HFSBI_FN void hfsbi_file_info_fill(hfsb_file_info    *info,
                                   const struct stat *st);

/* True when both describe one file that has not changed in between. */
HFSBI_FN bool hfsbi_same_info(const hfsb_file_info *a,
                              const hfsb_file_info *b);

/* sha256 of the bytes from the current position of fd to its end; false with
   errno. */
HFSBI_FN bool hfsbi_fd_sha256(int fd, char hex[HFSB_SHA256_HEX]);

/* ---- temp.c: temporaries of file_write.c ---- */

/* Makes a temporary for `name`, whose own name goes to temp; "" on failure. 0
   or an errno. */
HFSBI_FN int hfsbi_temp_open(int dir, const char *name, mode_t mode,
                             char temp[HFSBI_NAME_SIZE], int *fd);
/* Keeps errno. */
HFSBI_FN void hfsbi_temp_remove(int dir, const char *temp);
/* Returns the process id in the name of a temporary; 0 for any other name. */
HFSBI_FN long hfsbi_temp_pid(hfsb_str name);

/* Removes stale temporaries from a directory unless the root knows that it is
   clean. Returns when it was swept, for hfsbi_sweep_end(); 0: not clean. */
HFSBI_FN long long hfsbi_sweep_begin(const hfsb_root *root, int dir);
/* After our last change to the directory. */
HFSBI_FN void hfsbi_sweep_end(const hfsb_root *root, int dir, long long at);

/* ---- file_write.c ---- */

/* hfsb_file_remove() with conditions, checked under the same lock: HFSB_STALE
   unless the file has this sha256 and is the one that `same` describes, as
   if_sha256 and if_same of a write (NULL: no condition). */
HFSBI_FN hfsb_status hfsbi_file_remove_if(const hfsb_root *root, hfsb_str path,
                                          const char           *sha256,
                                          const hfsb_file_info *same,
                                          hfsb_err             *err);

/* Shared with file_put.c: functions that return int return 0 or an errno. */

/* Descriptors that hold a lock, or -1. */
typedef struct hfsbi_lock {
    int dir, file;
} hfsbi_lock;

/* Locks the directory and, with `file` or when the directory cannot be read,
   the file. Locks already held are kept. May update target->st. EWOULDBLOCK
   after about 2 s. The caller unlocks in any case. */
HFSBI_FN int hfsbi_lock_target(hfsbi_target *target, bool file,
                               hfsbi_lock *lock);
/* Keeps errno. */
HFSBI_FN void hfsbi_unlock(hfsbi_lock *lock);
/* The message for an errno of hfsbi_lock_target(). */
HFSBI_FN hfsb_status hfsbi_lock_fail(const hfsb_root *root, hfsb_str path,
                                     int code, const char *verb,
                                     hfsb_err *err);

/* ---- file_put.c: put a path back as it was ---- */

/* Copies all of one file, from its start, to an empty one, as a clone where
   the file system can, with holes for zeros. *digest gets the SHA-256 of the
   bytes, *bytes their number. EFBIG past max bytes. 0 or an errno. */
HFSBI_FN int hfsbi_fd_copy(int from, int to, unsigned long long max,
                           unsigned char       digest[HFSB_SHA256_SIZE],
                           unsigned long long *bytes);

/* What a path shall be: a regular file, a symlink, or another name of a
   file. */
typedef struct hfsbi_put {
    int                  content; /* the bytes of the file, with ... */
    const unsigned char *digest;  /* ... this SHA-256 */
    hfsb_str             symlink; /* else a symlink that contains this */
    hfsb_str             link_to; /* else a hard link to the file at this
                                     path */
    unsigned             mode;    /* permission bits of a file with content */
    uid_t                uid;     /* its owner, as far as we may set it */
    gid_t                gid;
} hfsbi_put;

/* Replaces what is at path, except a folder, by a rename: others see the old
   state or the new one. Folders on the way must exist; a symlink at path is
   not followed. Does not wait for the disk. HFSB_STALE when the content does
   not have that digest; else as listed in file.h. */
HFSBI_FN hfsb_status hfsbi_path_replace(const hfsb_root *root, hfsb_str path,
                                        const hfsbi_put *put, hfsb_err *err);
/* Renames a file to a path where nothing is. */
HFSBI_FN hfsb_status hfsbi_path_move(const hfsb_root *root, hfsb_str from,
                                     hfsb_str to, hfsb_err *err);
/* Makes a folder that only we may use, unless there is one. */
HFSBI_FN hfsb_status hfsbi_path_put_folder(const hfsb_root *root,
                                           hfsb_str path, hfsb_err *err);
/* Sets the permission bits of a file or folder, never through a symlink. */
HFSBI_FN hfsb_status hfsbi_path_set_mode(const hfsb_root *root, hfsb_str path,
                                         unsigned mode, hfsb_err *err);
/* Removes anything but a folder, or an empty folder. HFSB_OK also when it is
   gone; HFSB_EXISTS for a folder that is not empty. */
HFSBI_FN hfsb_status hfsbi_path_remove(const hfsb_root *root, hfsb_str path,
                                       bool folder, hfsb_err *err);
/* ---- walk.c: walks a folder tree ---- */

/* A finder walks everything beneath a folder. It reads nothing outside the
   root: each folder is opened from its parent, and symlinks are visited but
   never followed. */

enum {
    HFSBI_FINDER_DEPTH = 200, /* nested folders: one descriptor each */
    HFSBI_FINDER_NAMED = 3,   /* unreadable folders that notes name */
    HFSBI_FINDER_MS = 30000   /* timeout of a search */
};

typedef enum hfsbi_entry_type {
    HFSBI_ENTRY_FILE,
    HFSBI_ENTRY_FOLDER,
    HFSBI_ENTRY_LINK,
    HFSBI_ENTRY_OTHER, /* a device, FIFO or socket */
    HFSBI_ENTRY_UNKNOWN
} hfsbi_entry_type;

/* One entry of a folder; valid during the callback. */
typedef struct hfsbi_entry {
    int              dir; /* descriptor of the folder */
    const char      *name;
    hfsb_str         path; /* relative to the start of the search */
    hfsbi_entry_type type;
    bool             ignored;
} hfsbi_entry;

/* Why a walk ended. The first reason stays. */
typedef enum hfsbi_walk_end {
    HFSBI_WALK_COMPLETE, /* everything was visited, or the walk goes on */
    HFSBI_WALK_STOPPED,  /* a visitor needs no more entries */
    HFSBI_WALK_LATE,     /* the deadline passed */
    HFSBI_WALK_CANCELLED /* its cancel was set */
} hfsbi_walk_end;

/* How to walk. */
enum {
    HFSBI_FIND_ALL = 1,      /* include ignored entries and .git */
    HFSBI_FIND_IGNORED = 2,  /* visit ignored entries, but do not enter them */
    HFSBI_FIND_SORTED = 4,   /* visit the names of a folder in order */
    HFSBI_FIND_NO_FOLLOW = 8 /* do not follow a symlink as the start */
};

typedef struct hfsbi_finder_level hfsbi_finder_level;

/* How far a walk has come. */
typedef struct hfsbi_finder_at {
    hfsb_buf            path;   /* of the entry, as ignore rules see it */
    size_t              prefix; /* bytes of `path` up to the start */
    hfsb_buf            from;   /* the start, as the deny list sees it; empty
                                   at the root */
    hfsbi_ignore       *ignore; /* NULL: no rules so far */
    hfsbi_finder_level *levels; /* HFSBI_FINDER_DEPTH of them */
    size_t              depth;  /* levels in use */
    size_t              names;  /* bytes of names held */
} hfsbi_finder_at;

/* All zero at first, except for the fields that the caller sets. */
typedef struct hfsbi_finder {
    /* set by the caller */
    const hfsb_cancel *cancel; /* ends the walk (NULL: none) */
    const hfsb_root   *place;
    hfsb_alloc         alloc;
    unsigned           flags;     /* HFSBI_FIND_ */
    size_t             max_depth; /* nested folders, the start included (0: up
                                     to HFSBI_FINDER_DEPTH) */
    long long          until;     /* deadline on hfsb_clock_ms() (0: in
                                     HFSBI_FINDER_MS) */
    /* A quick filter: a folder that is not wanted is not entered, another
       entry not visited. NULL: everything is wanted. */
    bool (*wants)(void *user, const hfsbi_entry *entry);
    /* Called for a folder before its entries. A status other than HFSB_OK ends
       the walk. */
    hfsb_status (*visit)(void *user, const hfsbi_entry *entry);
    void *user;

    /* set by hfsbi_finder_open() */
    hfsbi_target spot;  /* the start */
    hfsb_buf     shown; /* prefix of entry paths in the output: "" or ends in a
                         slash */

    /* the outcome */
    size_t         files;   /* entries seen that are not folders */
    size_t         ignored; /* entries skipped by ignore rules */
    size_t         failed;  /* folders not read, or not completely */
    hfsb_buf       notes;   /* about some of these: LF and a line for each */
    hfsbi_walk_end end;     /* visit may set it to HFSBI_WALK_STOPPED */

    /* private */
    hfsbi_finder_at at;
    bool            at_root; /* the start is / */
} hfsbi_finder;

/* Resolves path ("": the working directory) into f->spot. HFSB_OK, or the
   failure with *err. Close the finder in either case. */
HFSBI_FN hfsb_status hfsbi_finder_open(hfsbi_finder *f, hfsb_str path,
                                       hfsb_err *err);
/* Visits everything beneath f->spot, which must be a folder. HFSB_OK, also
   when some folders could not be read; the status of visit; HFSB_NOMEM; or the
   reason why the first folder cannot be read. */
HFSBI_FN hfsb_status hfsbi_finder_run(hfsbi_finder *f, hfsb_err *err);
HFSBI_FN void        hfsbi_finder_close(hfsbi_finder *f);

/* True when the walk must end; sets f->end when the deadline has passed or
   its cancel is set. Visitors ask it too while one file takes long. */
HFSBI_FN bool hfsbi_finder_over(hfsbi_finder *f);

/* Opens a visited file and fills *st. Returns the descriptor, or -1 with
   errno: ENOENT when it is not a regular file any more. */
HFSBI_FN int hfsbi_entry_open(int dir, const char *name, struct stat *st);

/* Appends a path or name on one line: control characters and invalid UTF-8
   become \n, \t, \x1B. */
HFSBI_FN void hfsbi_put_shown(hfsb_buf *sink, hfsb_str path);
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
    HFSBI_PLACE_KEPT = 'k',        /* read-only, beneath one to write */
    HFSBI_PLACE_HIDDEN_FILE = 'f', /* empty, or refuses connections */
    HFSBI_PLACE_HIDDEN_DIR = 'e'   /* empty */
};

/* True when a path lies beneath a place that may be written. */
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
/* A ruleset for commands of a level; -1 with errno. */
HFSBI_FN int hfsbi_landlock_open(int abi, hfsb_confine_level level,
                                 const hfsb_buf    *places,
                                 const hfsbi_reach *net);
/* In the child, as all _enter() below; -1: none. False with errno. */
HFSBI_FN bool hfsbi_landlock_enter(int ruleset);

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

/* True when kernel and architecture have filters. */
HFSBI_FN bool hfsbi_seccomp_works(void);
/* Writes the filter into *s, which is all-zero; landlock: it is used too. */
HFSBI_FN bool hfsbi_seccomp_build(hfsbi_seccomp *s, const hfsbi_reach *net,
                                  bool landlock);
HFSBI_FN bool hfsbi_seccomp_enter(const hfsbi_seccomp *s);

/* ---- limits.c ---- */

typedef struct hfsbi_quota {
    unsigned long long memory, processes, file_size, cpu; /* 0: no limit */
    char               oom[24]; /* for oom_score_adj */
    int                join;    /* cgroup.procs; -1: no cgroup */
    hfsb_buf           cgroup;  /* its path */
} hfsbi_quota;

/* Resolves the options. Makes a cgroup if they ask for limits and the kernel
   allows it. HFSB_OK or HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_quota_open(hfsbi_quota             *l,
                                      const hfsb_confine_opts *opts);
HFSBI_FN void        hfsbi_quota_close(hfsbi_quota *l);
HFSBI_FN bool        hfsbi_quota_enter(const hfsbi_quota *l);
/* In the host, after the exec: what the child could not do because its host
   hides its memory (PR_SET_DUMPABLE), and with it /proc/self. */
HFSBI_FN void hfsbi_quota_follow(const hfsbi_quota *l, long pid);

/* ---- namespaces.c: namespaces ---- */

typedef struct hfsbi_namespaces {
    int user, mounts, net; /* -1: that of the host */
} hfsbi_namespaces;

/* Makes a mount namespace, where only places to write can be written, and if
   `network` a network namespace with loopback. False with errno; then all are
   -1. */
HFSBI_FN bool hfsbi_namespaces_open(hfsbi_namespaces *spaces,
                                    const hfsb_buf *places, bool network);
HFSBI_FN void hfsbi_namespaces_close(hfsbi_namespaces *spaces);
HFSBI_FN bool hfsbi_namespaces_enter(const hfsbi_namespaces *spaces);

/* ---- guard.c: files that later run as the person ---- */

/* The n-th name of such a file or folder, beneath a root or a home; NULL
   after the last. */
HFSBI_FN const char *hfsbi_guard_name(size_t n);

/* What of these there was when a command started. */
typedef struct hfsbi_guard hfsbi_guard;

/* NULL when there is nothing to guard, or no memory. */
HFSBI_FN hfsbi_guard *hfsbi_guard_open(const hfsb_confine *confine);
HFSBI_FN void         hfsbi_guard_close(hfsbi_guard *guard);
/* Renames those that have appeared or changed since, unless `known` says that
   they are the host's own work, and appends a line for each to *notes. */
HFSBI_FN void hfsbi_guard_check(const hfsbi_guard *guard,
                                bool (*known)(void *user, const char *path),
                                void *user, hfsb_buf *notes);

/* ---- confine.c ---- */

/* What the public options leave out. */
typedef struct hfsbi_confine_how {
    bool bare;      /* no place to write but /dev/null and the like, no
                       namespaces: for programs that only compute */
    bool no_spaces; /* for tests, as the next: as if the kernel had none */
    int  max_abi;   /* of Landlock (0: 7; below 0: as if there were none) */
} hfsbi_confine_how;

enum { HFSBI_BASES = 32 };

struct hfsb_confine {
    hfsb_alloc         alloc;
    hfsb_confine_level level;
    int                abi; /* of Landlock; 0: not used */
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
/* Prepares the mounts again when a file that they cover was replaced, which
   takes the cover off. To be called before a command is started, by one thread
   at a time. */
HFSBI_FN void hfsbi_confine_refresh(hfsb_confine *confine);
/* Confines the calling process, a child before its exec. False with errno. */
HFSBI_FN bool hfsbi_confine_enter(const hfsb_confine *confine);
/* Appends what commands may do, for a model: sentences, with a blank before
   each. */
HFSBI_FN void hfsbi_confine_describe(const hfsb_confine *confine,
                                     hfsb_buf           *out);
/* True for a variable of the environment that may hold a secret, by its name;
   STRICT hides these from commands. */
HFSBI_FN bool hfsbi_confine_is_secret(hfsb_str name);

/* ---- spawn.c: starts a program ---- */

/* fd, or a copy at `least` or above and fd is closed; -1 with errno. */
HFSBI_FN int hfsbi_raise(int fd, int least);

/* The host's ends of the command's standard input, output and error; -1: no
   pipe. */
typedef struct hfsbi_ends {
    int input, output[2];
} hfsbi_ends;

/* Starts the command that opts describe. HFSB_OK once the program runs, with
   its pid and the ends of its pipes, which the caller closes; else as
   hfsb_proc_open(), and nothing is left. */
HFSBI_FN hfsb_status hfsbi_spawn(const hfsb_proc_opts *opts, pid_t *pid,
                                 hfsbi_ends *ends, hfsb_err *err);

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

/* A process as /proc shows it. pid and start name it for good; a pid alone may
   be reused a moment later. */
typedef struct hfsbi_process {
    unsigned long long start;      /* clock ticks since boot */
    unsigned long long job, owner; /* private: hashes of its HFSB_JOB */
    long               pid, parent, group, session;
    char               state;
    bool               env_read;       /* private: job and owner are known */
    unsigned char      kin;            /* private: result of the last match */
    unsigned           child, sibling; /* private: indexes in the snapshot */
    unsigned           rest;           /* private: of a match */
} hfsbi_process;

/* When a process was started, in ticks since boot; 0: unknown, or it has
   ended. */
HFSBI_FN unsigned long long hfsbi_process_start(long pid);

/* A snapshot of /proc, to be matched with any number of trees. Has room for
   some processes in itself, so that a search works without memory. */
enum { HFSBI_SNAPSHOT_FEW = 128 };

typedef struct hfsbi_snapshot {
    unsigned long long since;   /* ticks: lists no process that is older */
    long long          at;      /* when it began, hfsb_clock_ms(); -1: never */
    long long          cost_ms; /* how long it took */
    bool               blind;   /* it may lack processes */
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
   that command's: a process of the session that was started then was born into
   it. */
typedef struct hfsbi_session_span {
    long               session; /* pid of the leader; 0: none */
    unsigned long long since, until;
    bool               running; /* the leader is a child of ours that was not
                                   waited for: the span lasts until now */
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
    const hfsbi_process *known; /* members that were found before */
    size_t               known_count;
} hfsbi_family;

/* Sends all members KILL; or, gently, TERM and CONT, except to those of spans
   that are running. Returns how many members run. Needs no memory. */
HFSBI_FN size_t hfsbi_snapshot_signal(hfsbi_snapshot     *snap,
                                      const hfsbi_family *family, bool gently);

/* The processes of one command. */
typedef struct hfsbi_tree {
    hfsbi_session_span span;
    int                pidfd;        /* of the leader; readable once it has
                                        exited; -1: none */
    unsigned long long leader_start; /* without pidfd: to recognise it */
    unsigned long long job;          /* hash of its HFSB_JOB; 0: none */
    bool               empty; /* the last find saw no process: none can come */
    hfsbi_process     *known; /* members that the last find found */
    size_t             known_count, known_cap;
    hfsb_alloc         alloc;
} hfsbi_tree;

/* To be called before the command is started; job is its HFSB_JOB (empty:
   none). */
HFSBI_FN void hfsbi_tree_init(hfsbi_tree *tree, const hfsb_alloc *alloc,
                              hfsb_str job);
HFSBI_FN void hfsbi_tree_free(hfsbi_tree *tree);

/* The command has been started: this is its process. */
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
   many of them run;
   zombies do not. When the snapshot is blind: 1 if the group may have members.
   */
HFSBI_FN size_t hfsbi_tree_find(hfsbi_tree *tree, hfsbi_snapshot *snap);

/* Signals the group, and the other members that the last find found. */
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

/* ---- sockets, and the kernel's ways to wait for many descriptors ---- */

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

/* ---- loop.c: the event loop ---- */

/* The lock of a loop is held while it calls. Only post, work and wake need no
   lock; whoever else uses the loop is the one thread that turns it, or holds
   the lock. What the loop calls may call every function of the loop but turn
   and close. */
typedef struct hfsbi_loop hfsbi_loop;

/* Opens a loop with up to max_threads threads for hfsbi_loop_work() (0: 8),
   which are started at need. HFSB_OK; HFSB_NOMEM; HFSB_BUSY: no descriptors;
   *out is NULL on failure. */
HFSBI_FN hfsb_status hfsbi_loop_open(const hfsb_alloc *alloc,
                                     size_t max_threads, bool no_threads,
                                     hfsbi_loop **out, hfsb_err *err);
/* Waits for the threads, calls done of all tasks, frees the loop (may be
   NULL). All descriptors must have been forgotten and timers cleared. */
HFSBI_FN void hfsbi_loop_close(hfsbi_loop *loop);

/* The lock, which may be taken several times by one thread. */
HFSBI_FN void hfsbi_loop_lock(hfsbi_loop *loop);
HFSBI_FN void hfsbi_loop_unlock(hfsbi_loop *loop);

/* One turn: waits up to wait_ms (below 0: without limit) until something
   happens, and calls the functions that it concerns. The lock must be held
   once, and is released during the wait. When another thread waits in a turn
   already, only waits for the end of that turn, up to a second. */
HFSBI_FN void hfsbi_loop_turn(hfsbi_loop *loop, long long wait_ms);

/* The time this turn began, on hfsb_clock_ms(). */
HFSBI_FN long long hfsbi_loop_now(const hfsbi_loop *loop);

/* io: calls fn while a descriptor is ready. */

enum {
    HFSBI_IO_READ = 1,
    HFSBI_IO_WRITE = 2,
    HFSBI_IO_EOF = 4, /* the peer has ended its side; only reported when asked
                         for, and while READ is not asked for */
    HFSBI_IO_GONE = 8 /* both sides are closed, or the connection is broken;
                         reported whether asked for or not, and once while
                         neither READ nor WRITE is asked for */
};

/* A descriptor, part of its owner; all-zero but fd and fn before its first
   use. */
typedef struct hfsbi_io {
    int           fd;
    unsigned char want;  /* private: events that are asked for */
    bool          known; /* private: it is in the kernel's set */
    bool          gone;  /* private: GONE was reported */
    size_t        place; /* private: in the list of poll(), or filters */
    void (*fn)(struct hfsbi_io *io, unsigned events);
} hfsbi_io;

/* Asks for events, level-triggered, instead of those asked for before. False
   without memory or kernel resources; then none are asked for. */
HFSBI_FN bool hfsbi_loop_io(hfsbi_loop *loop, hfsbi_io *io, unsigned want);
/* Ends that: fn is not called any more, not even for an event that this turn
   has found already. To be called before the descriptor is closed. */
HFSBI_FN void hfsbi_loop_io_forget(hfsbi_loop *loop, hfsbi_io *io);

/* timer: calls fn once at a time. No allocation, any number. */

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

/* task: work in a thread, with an answer later. Part of its owner. */

typedef struct hfsbi_task {
    struct hfsbi_task *next;               /* private */
    void (*run)(struct hfsbi_task *task);  /* in a thread; may block */
    void (*done)(struct hfsbi_task *task); /* then, in the loop */
    bool urgent; /* does not wait for threads that are busy: one is kept for
                    such tasks */
} hfsbi_task;

/* Calls task->run in a thread, then task->done in the loop. Without threads
   run is called at once, and done later all the same. Threads are started when
   all are busy, and stay. */
HFSBI_FN void hfsbi_loop_work(hfsbi_loop *loop, hfsbi_task *task);
/* Calls task->done in the next turn of the loop. From any thread. */
HFSBI_FN void hfsbi_loop_post(hfsbi_loop *loop, hfsbi_task *task);
/* False when the loop was opened without threads. */
HFSBI_FN bool hfsbi_loop_has_threads(const hfsbi_loop *loop);
/* Ends that: done of a task that was posted is not called any more. */
HFSBI_FN void hfsbi_loop_unpost(hfsbi_loop *loop, hfsbi_task *task);
/* The number of tasks whose done was not called yet. */
HFSBI_FN size_t hfsbi_loop_pending(hfsbi_loop *loop);

/* Ends the wait of a turn. From any thread or signal handler. */
HFSBI_FN void hfsbi_loop_wake(hfsbi_loop *loop);

/* The scan that the commands attached to this loop share, see below. */
struct hfsbi_scanner;
HFSBI_FN struct hfsbi_scanner *hfsbi_loop_scanner(hfsbi_loop *loop);

/* For a host that waits itself, as hfsb_server_watch() and _deadline(); then a
   turn with wait_ms 0. While a thread waits in a turn there is nothing to
   watch and no deadline: that thread does the work. */
HFSBI_FN size_t    hfsbi_loop_watch(hfsbi_loop *loop, hfsb_watch *list,
                                    size_t max);
HFSBI_FN long long hfsbi_loop_deadline(hfsbi_loop *loop);

/* ---- tree.c: snapshots that a thread of a loop takes ---- */

/* Somebody who waits for a snapshot. */
typedef struct hfsbi_look {
    struct hfsbi_look *next;  /* private */
    hfsbi_timer       *timer; /* due when there is a new snapshot */
    bool               waits;
} hfsbi_look;

/* All private. */
typedef struct hfsbi_scanner {
    hfsbi_task         task; /* first */
    hfsbi_loop        *loop;
    hfsbi_look        *looks;
    unsigned long long since; /* ticks: lists no process that is older */
    bool               busy;  /* a thread reads the other one of the pair */
    unsigned           last;  /* the newest of the pair that is complete */
    hfsbi_snapshot     pair[2];
} hfsbi_scanner;

HFSBI_FN void hfsbi_scanner_init(hfsbi_scanner *scan, hfsbi_loop *loop,
                                 const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_scanner_free(hfsbi_scanner *scan);

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
   opts->input, and leaves it empty; a failure leaves it as it was. */
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
/* Ends that, also before the command is done; quiet when not attached. */
HFSBI_FN void hfsbi_proc_detach(hfsb_proc *proc);

/* True when no process holds the other end of a pipe. */
HFSBI_FN bool hfsbi_pipe_ended(int fd);

/* ---- record.c: the output of a command, and spill files ---- */

typedef struct hfsbi_spill {
    char                      *path;
    const struct hfsbi_spills *owner; /* who may read it; NULL: is gone */
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
    bool               swept; /* what ended processes left was removed */
    hfsb_alloc         alloc;
} hfsbi_spill_store;

/* The spill files of one tools object. */
typedef struct hfsbi_spills {
    hfsbi_spill_store *store;
    size_t             max_bytes; /* of one file */
    size_t             over; /* bytes of a log that is saved in any case (0:
                                when a reply cuts it) */
    bool               none; /* make no files */
    bool               dropped; /* remove the files with the object */
    char              *dir;     /* absolute where possible */
    hfsb_alloc         alloc;
} hfsbi_spills;

/* dir NULL: $TMPDIR or /tmp; max 0: 32 files; max_bytes 0: 64 MiB. False
   without memory; then there is nothing to free. */
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
    void      *user;
    hfsb_alloc alloc;
} hfsbi_record;

/* spills must outlive the record. False without memory; then there is nothing
   to free. */
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
   *out is as it was. */
HFSBI_FN hfsb_status hfsbi_record_read(const hfsbi_record *r,
                                       unsigned long long from, size_t max,
                                       hfsb_buf *out, unsigned long long *next,
                                       unsigned long long *gone_from,
                                       unsigned long long *gone_to);
