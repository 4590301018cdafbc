#pragma once

#include "../core/core_private.h"
#include "../pattern/pattern_private.h"
#include "file.h"
#include "cancel.h"

/* os_private.h - the operating system: its headers, the differences between
   systems, and the calls that several rooms need. Never part of the public
   header.

   Linux features are used if the kernel has them, and replaced if not.
   HFSBI_PORTABLE leaves them out at compile time, so that the tests cover the
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
#include <termios.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/vfs.h>
#elif defined(__APPLE__)
#include <crt_externs.h>
#else
extern char **environ; /* no POSIX header declares it */
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
   block until an event, it returns 0, as at the end. */
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

/* mkdirat() and unlinkat(), repeated after EINTR; 0 or an errno. */
HFSBI_FN int hfsbi_mkdirat(int dir, const char *name, mode_t mode);
HFSBI_FN int hfsbi_unlinkat(int dir, const char *name, int flags);

/* Tries once to take a flock(), exclusive or shared: false when another
   descriptor holds it. File systems without locks count as locked. */
HFSBI_FN bool hfsbi_try_lock(int fd, bool shared);

/* fsync(); false with errno. True where the file system does not support
   it. */
HFSBI_FN bool hfsbi_sync(int fd);
/* The same, as far as possible, for a directory opened with HFSBI_O_SEARCH. */
HFSBI_FN void hfsbi_sync_dir(int dir);

HFSBI_FN bool hfsbi_set_nonblocking(int fd);

/* The environment of this process. */
HFSBI_FN char **hfsbi_environ(void);

/* A pipe that wakes a poll() of end 0; neither end blocks. False with errno;
   the caller closes the ends that are not -1. */
HFSBI_FN bool hfsbi_wake_open(int fds[2]);
/* Empties end 0. */
HFSBI_FN void hfsbi_wake_drain(int fd);
/* Makes end 0 readable; fd is end 1. Safe in a signal handler. */
HFSBI_FN void hfsbi_wake_write(int fd);

/* ---- signals that a write may raise ---- */

/* Between begin and end, a SIGPIPE or SIGXFSZ that this thread's own writes
   raise is discarded: the write fails with EPIPE or EFBIG. The host's handlers
   are not touched. Both keep errno. */
typedef struct hfsbi_signal_guard {
    sigset_t old_mask;
    bool     pipe_pending, size_pending; /* before begin */
} hfsbi_signal_guard;

HFSBI_FN void hfsbi_signal_guard_begin(hfsbi_signal_guard *guard);
HFSBI_FN void hfsbi_signal_guard_end(const hfsbi_signal_guard *guard);

/* ---- random bytes ---- */

/* Fills out with n bytes. True: from the system's generator, unguessable,
   suitable for keys. False: the system has none; the bytes come from the clock
   and differ from call to call, so they are suitable for names and ids, never
   for keys. */
HFSBI_FN bool hfsbi_random(void *out, size_t n);

/* The same as hexadecimal digits and a NUL: out has room for digits + 1. */
HFSBI_FN bool hfsbi_random_hex(char *out, size_t digits);

/* ---- cancel ---- */

/* A flag, and a pipe that is opened when a thread first waits for the flag.
   Public functions take it by pointer; a call may embed one, with init and
   free. Not to be copied. */
struct hfsb_cancel {
    int             flag;   /* atomic: os.c has the rules */
    int             fds[2]; /* hfsbi_wake_open(); fds[1], atomic, is -1 until a
                               thread waits */
    pthread_mutex_t lock;   /* so that the pipe is opened once */
    hfsb_alloc      alloc;  /* of hfsb_cancel_open() */
};

HFSBI_FN void hfsbi_cancel_init(hfsb_cancel *cancel);
/* Closes the pipe. No call may use the cancel afterwards. */
HFSBI_FN void hfsbi_cancel_free(hfsb_cancel *cancel);

/* Fills *fd, so that a poll() also ends when the cancel (NULL: none) is set;
   returns the timeout for that poll(): ms (below 0: none), or at most 50 ms
   when there is no descriptor for a pipe. The caller checks the flag after the
   poll(). */
HFSBI_FN int hfsbi_cancel_watch(const hfsb_cancel *cancel, struct pollfd *fd,
                                int ms);

/* ---- waiting ---- */

/* A time on hfsb_clock_ms() that never comes. */
#define HFSBI_FOREVER 0x3FFFFFFFFFFFFFFFll

/* Waits for POLLIN or POLLOUT on fd (-1: only for the others); *ready gets
   poll()'s revents, which may be POLLERR or POLLHUP. HFSB_OK; HFSB_CANCELLED;
   HFSB_TIMEOUT at `until` on hfsb_clock_ms(); HFSB_IO. cancel may be NULL. */
HFSBI_FN hfsb_status hfsbi_wait_fd(int fd, short events, long long until,
                                   const hfsb_cancel *cancel, short *ready);

/* Sleeps before attempt tries + 1 at something that another thread or process
   holds: 1, 2 ... 20, 20 ms. HFSBI_TRIES of these take about 2 s. */
#define HFSBI_TRIES 110
HFSBI_FN void hfsbi_pause(unsigned tries);

/* Makes this thread alone access files with the rights of another user, whose
   gid is the same number; 0: with those of this process again. Needs root.
   False when this failed. */
HFSBI_FN bool hfsbi_thread_set_uid(unsigned uid);
/* Drops the supplementary groups of this thread alone; false with errno. */
HFSBI_FN bool hfsbi_thread_drop_groups(void);

/* The earlier of two deadlines; below 0 means never. */
HFSBI_FN long long hfsbi_earlier(long long a, long long b);

/* ---- threads ---- */

/* Returns the time of day, in nanoseconds since 1970: it can be changed, so no
   wait may depend on it. */
HFSBI_FN long long hfsbi_time_ns(void);

/* pthread_mutex_init() for a lock that a thread may take several times. */
HFSBI_FN void hfsbi_mutex_init_recursive(pthread_mutex_t *lock);

/* pthread_cond_init() for a condition that hfsbi_cond_wait_ms() waits on,
   which must be initialised by this function: on the monotonic clock where the
   system supports that. 0 or an errno. */
HFSBI_FN int hfsbi_cond_init(pthread_cond_t *cond);

/* Waits for cond, at most ms milliseconds; may return earlier. Where the
   system lacks conditions on the monotonic clock (macOS), setting the clock
   makes the wait longer or shorter: keep ms small. */
HFSBI_FN void hfsbi_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock,
                                 long long ms);

/* Starts a thread with all signals blocked; 0 or an errno. */
HFSBI_FN int hfsbi_thread_start(pthread_t *thread, size_t      stack,
                                void *(*fn)(void *user), void *user);

/* ---- memory and files without a name ---- */

/* A NUL-terminated copy in memory of alloc, freed with
   hfsbi_array_free(alloc, copy, s.len + 1, 1). NULL when out of memory. */
HFSBI_FN char *hfsbi_cstr_copy(const hfsb_alloc *alloc, hfsb_str s);

/* An unlinked file for reading and writing, in dir (NULL: $TMPDIR or /tmp);
   -1 with errno. */
HFSBI_FN int hfsbi_unnamed_file(const char *dir);

/* ---- root.c: roots and targets ---- */

/* Longest name in a directory, on every common file system. */
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

/* The files of another machine, as functions; all paths are texts for it. A
   root that has them reaches no file of this machine: hfsb_file_stat(),
   _key(), _open(), _read(), _sha256(), _write(), _remove() and the writer
   work, with the statuses of file.h or those of the connection, and everything
   else is refused. Any thread may call them. */
typedef struct hfsbi_far {
    hfsb_status (*stat)(void *user, hfsb_str path, hfsb_file_info *info,
                        hfsb_err *err);
    /* Opens a copy of the file: unlinked, at its first byte. */
    hfsb_status (*open)(void *user, hfsb_str path, int *fd,
                        hfsb_file_info *info, hfsb_err *err);
    /* Writes the bytes of fd, from its first on. The conditions of opts are
       checked just before; written may be NULL. */
    hfsb_status (*write)(void *user, hfsb_str path, int fd,
                         unsigned long long          bytes,
                         const hfsb_file_write_opts *opts,
                         hfsb_file_written *written, hfsb_err *err);
    /* sha256 NULL: with any content. */
    hfsb_status (*remove)(void *user, hfsb_str path, const char *sha256,
                          hfsb_err *err);
    void *user;
} hfsbi_far;

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
    const hfsbi_far *far;    /* its files are elsewhere (NULL: here) */
    hfsb_root       *outer;  /* see hfsbi_root_nest(); NULL: none */
    hfsb_root       *nested; /* the first root that lies in this one, */
    hfsb_root       *nested_next; /* and the next of the same outer root;
                                     the lock of the outer's sweeps */
};

/* The root inner lies somewhere in outer, which outlives it: trees that are
   removed through outer keep it, until inner is closed or nested in NULL. Any
   thread. */
HFSBI_FN void hfsbi_root_nest(hfsb_root *outer, hfsb_root *inner);
/* True if st is the top of a root nested in root (may be NULL). */
HFSBI_FN bool hfsbi_root_has_nested(const hfsb_root   *root,
                                    const struct stat *st);

/* Opens the root of the files behind far, which must outlive it. work_dir:
   where relative paths begin there (empty: the other machine decides).
   HFSB_OK; HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_root_open_far(const hfsbi_far  *far,
                                         hfsb_str          work_dir,
                                         const hfsb_alloc *alloc,
                                         hfsb_root **out, hfsb_err *err);

/* Where a path leads: an open directory, and a name in it that may or may not
   exist. All work on a file uses these two, so nothing outside the root is
   reached, whatever happens to the path meanwhile. */
typedef struct hfsbi_target {
    const hfsb_root *root; /* the one, of several, that contains it */
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
    HFSBI_RESOLVE_DEEPEST = 8,   /* where directories are missing, `dir` is the
                                 deepest that exists, `name` the whole rest */
    HFSBI_RESOLVE_DIRECT = 16    /* no symlink on the way: ENOTDIR */
};

/* HFSB_OK, or HFSB_REFUSED for a path that is empty or contains a NUL. */
HFSBI_FN hfsb_status hfsbi_check_path(hfsb_str path, hfsb_err *err);

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

/* Appends the absolute path of the target without symlinks; 0 or an errno. */
HFSBI_FN int hfsbi_target_real(const hfsbi_target *target, hfsb_buf *out);

/* True when st describes the top of one of the roots. */
HFSBI_FN bool hfsbi_root_is_top(const hfsb_root *root, const struct stat *st);

/* Opens the folder `name` in dir for reading, never through a symlink; a
   descriptor or -1 with errno. same_mount: EXDEV at a mount point; without
   openat2() only at another file system. */
HFSBI_FN int hfsbi_open_folder(int dir, const char *name, bool same_mount);

/* Updates exists and st; 0 or an errno. */
HFSBI_FN int hfsbi_target_stat(hfsbi_target *target);

/* The allocator of a root, which may be NULL. */
HFSBI_FN hfsb_alloc hfsbi_root_alloc(const hfsb_root *root);
/* True if the root, which may be NULL, has a deny list. */
HFSBI_FN bool hfsbi_root_has_deny(const hfsb_root *root);
/* True when an absolute path without symlinks lies beneath a root. */
HFSBI_FN bool hfsbi_root_contains(const hfsb_root *root, hfsb_str real);
/* Adds such a path to the deny list if a root contains it. HFSB_OK or
   HFSB_NOMEM. No thread may use the root meanwhile. */
HFSBI_FN hfsb_status hfsbi_root_hide(hfsb_root *root, hfsb_str real);
/* Changes the working directory, which a failure leaves unchanged; statuses of
   hfsb_root_open(). No thread may use the root meanwhile. */
HFSBI_FN hfsb_status hfsbi_root_move(hfsb_root *root, hfsb_str work_dir,
                                     hfsb_err *err);

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

/* True when both describe the same file, unchanged in between. */
HFSBI_FN bool hfsbi_same_info(const hfsb_file_info *a,
                              const hfsb_file_info *b);

/* sha256 of the bytes from the current position of fd to its end; false with
   errno. */
HFSBI_FN bool hfsbi_fd_sha256(int fd, char hex[HFSB_SHA256_HEX]);

/* A part of a file that is open for reading. */
typedef struct hfsbi_file_range {
    int                fd; /* O_NONBLOCK as of hfsb_file_open(); -1: `content`
                              has the bytes */
    unsigned long long first, length; /* in bytes: the part that exists now */
    hfsb_buf           content; /* of a file of /proc, whose size reads as 0:
                                   the part itself */
    hfsb_file_info     info; /* with the true size of a file of /proc */
    unsigned long long done; /* private: bytes read of the part */
} hfsbi_file_range;

enum { HFSBI_SIZELESS_MAX = 16 << 20 }; /* bytes of a file of /proc */

/* Opens a regular file, as hfsb_file_open() does, to read up to `length` bytes
   from `offset` on; the length is limited to what the file has, 0 past its
   end. HFSB_LIMIT for a file of /proc above HFSBI_SIZELESS_MAX. On failure
   there is nothing to close. */
HFSBI_FN hfsb_status hfsbi_file_range_open(const hfsb_root   *root,
                                           hfsb_str           path,
                                           unsigned long long offset,
                                           unsigned long long length,
                                           hfsbi_file_range  *range,
                                           hfsb_err          *err);
/* Reads the next bytes of the part, up to n; *got is 0 at its end, and earlier
   when the file has shrunk. HFSB_OK or HFSB_IO. */
HFSBI_FN hfsb_status hfsbi_file_range_read(hfsbi_file_range *range, char *to,
                                           size_t n, size_t *got,
                                           hfsb_err *err);
HFSBI_FN void        hfsbi_file_range_close(hfsbi_file_range *range);

/* ---- temp.c: temporaries of file_write.c ---- */

/* Makes a temporary for `name` and stores its own name in temp; "" on failure.
   0 or an errno. */
HFSBI_FN int hfsbi_temp_open(int dir, const char *name, mode_t mode,
                             char temp[HFSBI_NAME_SIZE], int *fd);
/* Keeps errno. */
HFSBI_FN void hfsbi_temp_remove(int dir, const char *temp);
/* Returns the process id in the name of a temporary; 0 for any other name. */
HFSBI_FN long hfsbi_temp_pid(hfsb_str name);

/* Removes stale temporaries from a directory unless the root knows that it is
   clean. Returns the time of the sweep, for hfsbi_sweep_end(); 0: not
   clean. */
HFSBI_FN long long hfsbi_sweep_begin(const hfsb_root *root, int dir);
/* Call this after our last change to the directory. */
HFSBI_FN void hfsbi_sweep_end(const hfsb_root *root, int dir, long long at);

/* ---- file_write.c ---- */

/* HFSB_STALE: "File has changed since it was read: {path} (read it again)". */
HFSBI_FN hfsb_status hfsbi_fail_changed(hfsb_str path, hfsb_err *err);

/* hfsb_file_remove() with conditions, checked under the same lock: HFSB_STALE
   unless the file has this sha256 and is the one that `same` describes, as
   if_sha256 and if_same of a write (NULL: no condition). */
HFSBI_FN hfsb_status hfsbi_file_remove_if(const hfsb_root *root, hfsb_str path,
                                          const char           *sha256,
                                          const hfsb_file_info *same,
                                          hfsb_err             *err);

/* Shared with other files: functions that return int return 0 or an errno;
   those that return bool, false with errno. */

/* Waits for a flock(), exclusive or shared; EWOULDBLOCK after about 2 s. */
HFSBI_FN int hfsbi_lock_wait(int fd, bool shared);

/* Renames anything without replacing; EEXIST when the name is taken. Where
   neither renameat2() nor a hard link works, as for a folder, the name is only
   checked first. */
HFSBI_FN int hfsbi_rename_new(int from_dir, const char *from, int to_dir,
                              const char *to);

#ifdef HFSBI_LINUX
/* Fills *out with the value of an extended attribute; or with the names of all,
   each followed by a NUL: none where the file system has no attributes. */
HFSBI_FN int hfsbi_attribute_get(int fd, const char *name, hfsb_buf *out);
HFSBI_FN int hfsbi_attribute_list(int fd, hfsb_buf *out);
#endif

/* Writes all of s at a position; the caller has a signal guard. */
HFSBI_FN bool hfsbi_pwrite_all(int fd, hfsb_str s, off_t at);
HFSBI_FN bool hfsbi_set_size(int fd, off_t size);
/* Gives the file these permission bits unless it has them. */
HFSBI_FN bool hfsbi_set_mode(int fd, mode_t mode);

/* Descriptors that hold a lock, or -1. */
typedef struct hfsbi_lock {
    int dir, file;
} hfsbi_lock;

/* Locks the directory and, with `file` or when the directory cannot be read,
   the file. Locks already held are kept. May update target->st. EWOULDBLOCK
   after about 2 s. The caller must unlock in any case. */
HFSBI_FN int hfsbi_lock_target(hfsbi_target *target, bool file,
                               hfsbi_lock *lock);
/* Keeps errno. */
HFSBI_FN void hfsbi_unlock(hfsbi_lock *lock);
/* The message for an errno of hfsbi_lock_target(). */
HFSBI_FN hfsb_status hfsbi_lock_fail(const hfsb_root *root, hfsb_str path,
                                     int code, const char *verb,
                                     hfsb_err *err);

/* ---- file_put.c: restore a path ---- */

/* Copies all of one file, from its start, to an empty one, as a clone where
   the file system can, with holes for zeros. *digest gets the SHA-256 of the
   bytes, *bytes their number. EFBIG past max bytes. 0 or an errno. */
HFSBI_FN int hfsbi_fd_copy(int from, int to, unsigned long long max,
                           unsigned char       digest[HFSB_SHA256_SIZE],
                           unsigned long long *bytes);

/* Decides whether a path is still what the caller saw there, right before it
   changes. NULL: nothing is there. */
typedef struct hfsbi_expect {
    bool (*fn)(const void *user, const struct stat *st); /* NULL: anything */
    const void *user;
} hfsbi_expect;

/* What to put at a path: a regular file, a symlink, or a hard link to a
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
    hfsbi_expect         expect; /* what it replaces */
} hfsbi_put;

/* Replaces what is at path, except a folder, by a rename: others see the old
   state or the new one. Here and below, folders on the way must exist and not
   be symlinks; a symlink at path is not followed. Does not wait for the disk.
   HFSB_STALE when the content does not have that digest, or something
   unexpected is at path; else as listed in file.h. */
HFSBI_FN hfsb_status hfsbi_path_replace(const hfsb_root *root, hfsb_str path,
                                        const hfsbi_put *put, hfsb_err *err);
/* Makes a folder that only we may use, unless there is one. */
HFSBI_FN hfsb_status hfsbi_path_put_folder(const hfsb_root *root,
                                           hfsb_str path, hfsb_err *err);
/* Sets the permission bits of a file or folder: never through a symlink, or
   with `follow` of what path leads to beneath the root. */
HFSBI_FN hfsb_status hfsbi_path_set_mode(const hfsb_root *root, hfsb_str path,
                                         unsigned mode, bool follow,
                                         hfsb_err *err);
/* Removes anything but a folder, or an empty folder. HFSB_OK also when it is
   gone; HFSB_EXISTS for a folder that is not empty; HFSB_STALE as above. */
HFSBI_FN hfsb_status hfsbi_path_remove(const hfsb_root *root, hfsb_str path,
                                       bool folder, hfsbi_expect expect,
                                       hfsb_err *err);
/* The same for a target, under the lock of its directory; 0 or an errno:
   ENOENT, ESTALE, ENOTEMPTY ... */
HFSBI_FN int hfsbi_target_remove(hfsbi_target *target, bool folder,
                                 hfsbi_expect expect);
/* The message for such an errno. */
HFSBI_FN hfsb_status hfsbi_remove_fail(const hfsb_root *root, hfsb_str path,
                                       int code, hfsb_err *err);

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

/* Why a walk ended. The first reason is kept. */
typedef enum hfsbi_walk_end {
    HFSBI_WALK_COMPLETE, /* everything was visited, or the walk is not over */
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

/* The position of a walk. */
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
    size_t         denied;  /* entries skipped by the deny list */
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
/* The same for an open folder. path, as seen from the root, is for messages,
   and for the deny list where /proc does not have it. False when out of
   memory. fd is closed by hfsbi_finder_close() in either case. */
HFSBI_FN bool hfsbi_finder_open_at(hfsbi_finder *f, const hfsb_root *root,
                                   hfsb_str path, int fd);
/* Visits everything beneath f->spot, which must be a folder. HFSB_OK, even
   when some folders could not be read; the status of visit; HFSB_NOMEM; or the
   reason why the first folder cannot be read. */
HFSBI_FN hfsb_status hfsbi_finder_run(hfsbi_finder *f, hfsb_err *err);
HFSBI_FN void        hfsbi_finder_close(hfsbi_finder *f);

/* True when the walk must end; sets f->end when the deadline has passed or
   its cancel is set. Visitors call it too while a file takes long. */
HFSBI_FN bool hfsbi_finder_over(hfsbi_finder *f);

/* Opens a visited file and fills *st. Returns the descriptor, or -1 with
   errno: ENOENT when it is no longer a regular file. */
HFSBI_FN int hfsbi_entry_open(int dir, const char *name, struct stat *st);

/* Appends a path or name on one line: control characters and invalid UTF-8
   become \n, \t, \x1B. */
HFSBI_FN void hfsbi_put_shown(hfsb_buf *sink, hfsb_str path);

HFSBI_FN hfsbi_entry_type hfsbi_entry_type_of(mode_t mode);
/* The type from readdir(); unknown on some file systems. */
HFSBI_FN hfsbi_entry_type hfsbi_dirent_type(const struct dirent *e);
/* True for "." and "..". */
HFSBI_FN bool hfsbi_is_dots(const char *name);
/* The order of a sorted walk: "/" sorts before every other byte. */
HFSBI_FN int hfsbi_compare_paths(hfsb_str a, hfsb_str b);

/* ---- entry.c: entries by path ---- */

/* All paths here are resolved beneath the root as hfsb_file_stat() does, and
   slashes at their end are ignored: "a/" is the entry "a". Statuses as listed
   in file.h, and
   HFSB_ARG  "Is not a folder: {path}", where one is needed */

/* What is at a path. */
typedef struct hfsbi_path_info {
    hfsbi_entry_type type; /* FILE, FOLDER, LINK or OTHER */
    hfsb_file_info   file; /* size, mode, time of change, identity */
    unsigned long    uid, gid;
} hfsbi_path_info;

/* Looks at a path; with `follow` at what a symlink leads to. Appends the text
   of a symlink, which may lead anywhere, to *link (NULL: not wanted). */
HFSBI_FN hfsb_status hfsbi_path_stat(const hfsb_root *root, hfsb_str path,
                                     bool follow, hfsbi_path_info *info,
                                     hfsb_buf *link, hfsb_err *err);

/* Appends the absolute path without symlinks of something that exists. */
HFSBI_FN hfsb_status hfsbi_path_canonical(const hfsb_root *root, hfsb_str path,
                                          hfsb_buf *out, hfsb_err *err);

/* Appends the text of the symlink `name` in dir; 0 or an errno, EINVAL when it
   is something else. */
HFSBI_FN int hfsbi_read_link(int dir, const char *name, hfsb_buf *out);

/* One entry of a list; valid during the callback. */
typedef struct hfsbi_list_entry {
    hfsb_str        path; /* from the folder that is listed */
    hfsb_str        name; /* the last part of it */
    hfsbi_path_info info; /* symlinks are not followed */
    hfsb_str        link; /* the text of a symlink */
} hfsbi_list_entry;

typedef struct hfsbi_list_opts {
    size_t   depth; /* levels of folders: 1 lists the entries of the folder
                       itself (0: 1; at most HFSBI_FINDER_DEPTH) */
    size_t   limit; /* entries (0: no limit) */
    hfsb_str after; /* begin after this path, which may no longer exist: that
                       of the last entry of the previous page (empty: at the
                       first) */
    const hfsb_cancel *cancel;
    long long          until; /* deadline on hfsb_clock_ms() (0: in
                                 HFSBI_FINDER_MS) */
    /* Called for each entry, a folder before those in it. A status other than
       HFSB_OK ends the list and is returned, with *err as set by fn. */
    hfsb_status (*fn)(void *user, const hfsbi_list_entry *entry);
    void *user;
} hfsbi_list_opts;

typedef struct hfsbi_listed {
    size_t entries;
    bool   more;   /* there are more: the limit, deadline or cancel ended it */
    size_t failed; /* entries left out because they could not be read, and
                      folders not read, or not completely */
} hfsbi_listed;

/* Lists all entries of a folder except those on the deny list, in byte order
   of their names; holds the names of one folder per level at a time. Kernel
   file systems such as /proc are listed only by their own path. listed may be
   NULL. */
HFSBI_FN hfsb_status hfsbi_path_list(const hfsb_root *root, hfsb_str path,
                                     const hfsbi_list_opts *opts,
                                     hfsbi_listed *listed, hfsb_err *err);

enum {
    HFSBI_MAKE_PARENTS = 1, /* make missing folders on the way */
    HFSBI_MAKE_NEW = 2      /* HFSB_EXISTS if the folder exists */
};

/* Makes a folder with these permission bits (0: 0777) less the umask. It may
   exist, or be made by another process meanwhile. *made (may be NULL): by
   us. */
HFSBI_FN hfsb_status hfsbi_path_make_folder(const hfsb_root *root,
                                            hfsb_str path, unsigned mode,
                                            unsigned how, bool *made,
                                            hfsb_err *err);

enum {
    HFSBI_MOVE_REPLACE = 1, /* a file replaces a file, a folder an empty one */
    HFSBI_MOVE_PARENTS = 2, /* make missing folders of the new path */
    HFSBI_MOVE_DIRECT = 4   /* no symlink on the way, as for file_put.c */
};

/* Renames a file, folder or symlink (itself, not what it leads to) atomically,
   under the locks of both directories. A folder with entries on the deny list
   is not renamed, since they could lose their protection.
   HFSB_EXISTS   something is there, or a folder that is not empty
   HFSB_REFUSED  a root, a path that ends in dots, or another file system */
HFSBI_FN hfsb_status hfsbi_path_move(const hfsb_root *root, hfsb_str from,
                                     hfsb_str to, unsigned how, hfsb_err *err);

/* Extended attributes of a regular file, which a symlink may lead to, whose
   names begin with `prefix`: appends the rest of the name, a NUL, the value
   and a NUL for each; those with a NUL in their value are left out. */
HFSBI_FN hfsb_status hfsbi_path_marks(const hfsb_root *root, hfsb_str path,
                                      const char *prefix, hfsb_buf *out,
                                      hfsb_err *err);
/* Replaces all of these by those of such a list. HFSB_REFUSED where the file
   system has none. */
HFSBI_FN hfsb_status hfsbi_path_set_marks(const hfsb_root *root, hfsb_str path,
                                          const char *prefix, hfsb_str list,
                                          hfsb_err *err);

/* Removes slashes at the end of a path, and "/." too. */
HFSBI_FN hfsb_str hfsbi_path_trim(hfsb_str path);
/* Fails with HFSB_ARG "Not a folder". */
HFSBI_FN hfsb_status hfsbi_fail_not_folder(hfsb_str path, hfsb_err *err);

/* ---- tree.c: remove and copy whole trees ---- */

typedef struct hfsbi_remove_opts {
    bool tree;  /* also a folder that is not empty, with all that is in it; of
                   a root everything but the root itself */
    bool force; /* gives us permission in folders of the tree that are ours */
    const hfsb_cancel *cancel;
    long long          until; /* deadline on hfsb_clock_ms() (0: none) */
} hfsbi_remove_opts;

/* Removes what is at path: a symlink itself, an empty folder, anything else
   that is not a folder; or a tree. A tree is removed as far as possible, never
   through a symlink or a mount point, and except what the deny list names; the
   first failure is returned, with its path. Takes the lock of a write for the
   path, but none within a tree: a write there fails, or keeps its folder.
   Folders below a depth of 64 are first moved up to the top of the tree, so
   that descriptors and memory are bounded whatever the depth.
   HFSB_NOT_FOUND  nothing is there
   HFSB_EXISTS     a folder is not empty, or others keep filling it
   HFSB_REFUSED    a root without `tree`, or a path that ends in dots
   HFSB_BUSY       also a mount point, or a root nested in this one
   HFSB_CANCELLED, HFSB_TIMEOUT
   removed (may be NULL) counts the entries. opts may be NULL. */
HFSBI_FN hfsb_status hfsbi_path_remove_all(const hfsb_root *root,
                                           hfsb_str         path,
                                           const hfsbi_remove_opts *opts,
                                           unsigned long long *removed,
                                           hfsb_err           *err);

typedef struct hfsbi_copy_opts {
    bool tree;       /* also a folder, with all that is in it */
    bool create;     /* HFSB_EXISTS if something is there */
    bool no_parents; /* do not make missing folders */
    size_t             max_entries; /* of a tree (0: 100000) */
    unsigned long long max_bytes;   /* of all files (0: 4 GiB) */
    const hfsb_cancel *cancel;
    long long          until; /* deadline (0: in HFSBI_FINDER_MS) */
} hfsbi_copy_opts;

typedef struct hfsbi_copied {
    unsigned long long entries, bytes;
} hfsbi_copied;

/* Copies a file, which a symlink may lead to, completely or not at all; or a
   tree into a new or existing folder: its symlinks are copied with the same
   text, its devices, FIFOs and sockets are refused, what the deny list names
   is left out. New files and folders get the permission bits of the old ones,
   without setuid and setgid, files exactly and folders less the umask. The
   first failure ends the copy, and leaves what was copied.
   HFSB_IS_DIR  a folder without `tree`
   HFSB_ARG     a folder into itself
   HFSB_LIMIT   max_entries or max_bytes
   HFSB_CANCELLED, HFSB_TIMEOUT
   opts and copied may be NULL. */
HFSBI_FN hfsb_status hfsbi_path_copy(const hfsb_root *root, hfsb_str from,
                                     hfsb_str               to,
                                     const hfsbi_copy_opts *opts,
                                     hfsbi_copied *copied, hfsb_err *err);

/* ---- file_range.c: write a part of a file ---- */

typedef struct hfsbi_range_opts {
    unsigned long long offset;      /* of the first byte */
    bool               truncate;    /* cut or extend the file ... */
    unsigned long long truncate_to; /* ... to this size, at commit */
    unsigned mode;       /* permission bits, set at commit (0: not changed; a
                            new file has 0666 less the umask) */
    bool     no_parents; /* do not make missing folders */
    bool     sync;       /* commit waits for the disk */
} hfsbi_range_opts;

/* Writes bytes into a file from an offset on, in place: the rest is kept, and
   what lies between the end and the offset reads as zeros. The file is made if
   it does not exist. Any number of such writers may work on one file, in any
   order.

   Each piece is written under a shared flock() of the directory and of the
   file, the locks that hfsb_file_write() takes exclusively to check its
   conditions and to replace or rewrite the file: so a piece is written before
   or after such a change, never during it. A file that was replaced is no
   longer written: append and commit return HFSB_STALE. Between two pieces
   nothing is locked; a reader may see some of them.

   The root must stay open. After a failure append and commit keep returning
   it; bytes written before it stay. close() is always the last call. */
typedef struct hfsbi_range_writer hfsbi_range_writer;

HFSBI_FN hfsb_status hfsbi_range_writer_open(const hfsb_root        *root,
                                             hfsb_str                path,
                                             const hfsbi_range_opts *opts,
                                             hfsbi_range_writer    **out,
                                             hfsb_err               *err);
HFSBI_FN hfsb_status hfsbi_range_writer_append(hfsbi_range_writer *w,
                                               hfsb_str            piece,
                                               hfsb_err           *err);
/* written (may be NULL): the bytes of this writer, and the file now. */
HFSBI_FN hfsb_status hfsbi_range_writer_commit(hfsbi_range_writer *w,
                                               hfsb_file_written  *written,
                                               hfsb_err           *err);
HFSBI_FN void        hfsbi_range_writer_close(hfsbi_range_writer *w);

/* ---- sockets, and the kernel's ways to wait for many descriptors ---- */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#ifdef HFSBI_LINUX
#include <sys/inotify.h>
#include <sys/sendfile.h>
#endif
/* HFSBI_KQUEUE may be defined from outside, so that its code can be tested on
   Linux with a stand-in for <sys/event.h>. */
#if defined(HFSBI_LINUX) && !defined(HFSBI_KQUEUE)
#define HFSBI_EPOLL 1
#include <sys/epoll.h>
#elif !defined(HFSBI_PORTABLE) && !defined(HFSBI_KQUEUE) &&               \
    (defined(__APPLE__) || defined(__FreeBSD__) || defined(__NetBSD__) || \
     defined(__OpenBSD__) || defined(__DragonFly__))
#define HFSBI_KQUEUE 1
#endif
#ifdef HFSBI_KQUEUE
#include <sys/event.h>
#endif

/* A flag of send(): a closed peer is an error, not a SIGPIPE. Where it is
   missing, the socket has SO_NOSIGPIPE, or hfsbi_signal_guard protects the
   send. */
#ifdef MSG_NOSIGNAL
#define HFSBI_MSG_NOSIGNAL MSG_NOSIGNAL
#else
#define HFSBI_MSG_NOSIGNAL 0
#endif

/* ---- loop.c: the event loop ---- */

/* A loop holds its lock during callbacks. Only post, work and wake need no
   lock; any other function must be called by the one thread that turns the
   loop, or under the lock. Callbacks may call every function of the loop
   except turn and close. */
typedef struct hfsbi_loop hfsbi_loop;

/* Opens a loop with up to max_threads threads for hfsbi_loop_work() (0: 8),
   started as needed. HFSB_OK; HFSB_NOMEM; HFSB_BUSY: no descriptors; *out is
   NULL on failure. */
HFSBI_FN hfsb_status hfsbi_loop_open(const hfsb_alloc *alloc,
                                     size_t max_threads, bool no_threads,
                                     hfsbi_loop **out, hfsb_err *err);
/* Waits for the threads, calls done of all tasks and frees the loop (may be
   NULL). All descriptors must have been forgotten and all timers cleared. */
HFSBI_FN void hfsbi_loop_close(hfsbi_loop *loop);

/* The lock, which may be taken several times by one thread. */
HFSBI_FN void hfsbi_loop_lock(hfsbi_loop *loop);
HFSBI_FN void hfsbi_loop_unlock(hfsbi_loop *loop);

/* One turn: waits up to wait_ms (below 0: without limit) until something
   happens, and calls the functions concerned. The lock must be held once, and
   is released during the wait. When another thread already waits in a turn,
   only waits for the end of that turn, up to a second. */
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

/* A descriptor, part of its owner; all-zero except fd and fn before its first
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
   when out of memory or kernel resources; then none are asked for. */
HFSBI_FN bool hfsbi_loop_io(hfsbi_loop *loop, hfsbi_io *io, unsigned want);
/* Ends that: fn is no longer called, not even for an event that this turn has
   already found. Call it before the descriptor is closed. */
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

/* task: work in a thread, followed by a callback in the loop. Part of its
   owner. */

/* The rights with which a task accesses files. */
typedef struct hfsbi_rights {
    bool     walled; /* in a thread that has entered the wall of the loop, if
                        it has one */
    unsigned uid; /* those of this user, whose gid is the same number; new
                     files belong to it (0: those of this process). Linux */
} hfsbi_rights;

typedef struct hfsbi_task {
    struct hfsbi_task *next;               /* private */
    void (*run)(struct hfsbi_task *task);  /* in a thread; may block */
    void (*done)(struct hfsbi_task *task); /* then, in the loop */
    bool urgent; /* does not wait for busy threads: one is reserved */
    hfsbi_rights rights;
} hfsbi_task;

/* Calls task->run in a thread, then task->done in the loop. Without threads,
   run is called at once, but done still later. Threads are started when all
   are busy, and stay. */
HFSBI_FN void hfsbi_loop_work(hfsbi_loop *loop, hfsbi_task *task);
/* Calls fn(user) in a thread that has not entered the wall, which may be this
   one, and waits until it returns. Not under the lock of the loop. When out of
   memory, fn is not called. */
HFSBI_FN void hfsbi_loop_outside(hfsbi_loop *loop, void (*fn)(void *user),
                                 void       *user);
/* Calls task->done in the next turn of the loop. From any thread. */
HFSBI_FN void hfsbi_loop_post(hfsbi_loop *loop, hfsbi_task *task);
/* False when the loop was opened without threads. */
HFSBI_FN bool hfsbi_loop_has_threads(const hfsbi_loop *loop);
/* Undoes a post: done of the task is not called. */
HFSBI_FN void hfsbi_loop_unpost(hfsbi_loop *loop, hfsbi_task *task);
/* The number of tasks whose done was not yet called. */
HFSBI_FN size_t hfsbi_loop_pending(hfsbi_loop *loop);

/* For pool.c: expect counts a task as pending; deliver makes its done due.
   From any thread. */
HFSBI_FN void hfsbi_loop_expect(hfsbi_loop *loop);
HFSBI_FN void hfsbi_loop_deliver(hfsbi_loop *loop, hfsbi_task *task);

/* Ends the wait of a turn. From any thread or signal handler. */
HFSBI_FN void hfsbi_loop_wake(hfsbi_loop *loop);

/* A confinement that the threads of `walled` tasks enter; part of its owner's
   object. Neither such a thread nor what it starts can leave it. */
typedef struct hfsbi_wall {
    void (*enter)(const struct hfsbi_wall *wall);
    void (*free)(struct hfsbi_wall *wall);
} hfsbi_wall;

/* Gives the loop, which has none, a wall, and frees it at the end. False when
   out of memory or threads; then the wall is still the caller's. Under the
   lock, before a task is walled. */
HFSBI_FN bool hfsbi_loop_set_wall(hfsbi_loop *loop, hfsbi_wall *wall);
/* Returns the wall of the loop, or NULL. */
HFSBI_FN const hfsbi_wall *hfsbi_loop_wall(const hfsbi_loop *loop);

/* An object that another room keeps with a loop, which frees it. */
typedef struct hfsbi_companion {
    void (*free)(struct hfsbi_companion *companion);
} hfsbi_companion;

/* The loop's pointer to it; NULL until the other room sets it. */
HFSBI_FN hfsbi_companion **hfsbi_loop_companion(hfsbi_loop *loop);
HFSBI_FN hfsb_alloc        hfsbi_loop_alloc(const hfsbi_loop *loop);

/* For a host that waits itself, as hfsb_server_watch() and _deadline(); then a
   turn with wait_ms 0. While a thread waits in a turn, there is nothing to
   watch and no deadline: that thread does the work. */
HFSBI_FN size_t    hfsbi_loop_watch(hfsbi_loop *loop, hfsb_watch *list,
                                    size_t max);
HFSBI_FN long long hfsbi_loop_deadline(hfsbi_loop *loop);

/* ---- pool.c: threads ---- */

/* Tasks in the order they came. */
typedef struct hfsbi_queue {
    hfsbi_task *first, **last; /* last: where the next one is linked */
} hfsbi_queue;

HFSBI_FN void hfsbi_queue_init(hfsbi_queue *queue);
HFSBI_FN void hfsbi_queue_add(hfsbi_queue *queue, hfsbi_task *task);
/* Takes the first task, or NULL. */
HFSBI_FN hfsbi_task *hfsbi_queue_take(hfsbi_queue *queue);

/* Threads whose tasks are delivered to a loop. The loop has such a pool for
   hfsbi_loop_work(). */
typedef struct hfsbi_pool hfsbi_pool;

/* Opens a pool of up to max threads, started as needed; 0: tasks are run at
   once. Each thread enters the wall (NULL: none) first. NULL when out of
   memory. */
HFSBI_FN hfsbi_pool *hfsbi_pool_open(hfsbi_loop *loop, size_t max,
                                     const hfsbi_wall *wall);
/* Waits for the threads, which first finish all tasks; later ones are run at
   once. */
HFSBI_FN void hfsbi_pool_end(hfsbi_pool *pool);
/* Ends and frees the pool (may be NULL); its loop is closed later. */
HFSBI_FN void   hfsbi_pool_close(hfsbi_pool *pool);
HFSBI_FN size_t hfsbi_pool_max(const hfsbi_pool *pool);
/* Starts a thread unless there is one; false when that fails. */
HFSBI_FN bool hfsbi_pool_start(hfsbi_pool *pool);
/* True in a thread of this pool. */
HFSBI_FN bool hfsbi_pool_is_here(hfsbi_pool *pool);
/* Like hfsbi_loop_work(), in the threads of this pool. may_grow: more of them
   may be started here; else the loop starts them. */
HFSBI_FN void hfsbi_pool_add(hfsbi_pool *pool, hfsbi_task *task,
                             bool may_grow);

/* ---- watch.c: watch a folder ---- */

typedef enum hfsbi_change_kind {
    HFSBI_CHANGE_CREATE,
    HFSBI_CHANGE_WRITE, /* content; consecutive ones are one */
    HFSBI_CHANGE_REMOVE,
    HFSBI_CHANGE_RENAME,   /* from `path` to `to` */
    HFSBI_CHANGE_CHMOD,    /* mode, owner, times or other metadata */
    HFSBI_CHANGE_OVERFLOW, /* changes were lost: look at the folder again */
    HFSBI_CHANGE_END       /* the folder is gone; the last one */
} hfsbi_change_kind;

/* A change beneath a folder that is watched. */
typedef struct hfsbi_change {
    hfsbi_change_kind kind;
    bool              folder; /* what has changed is one */
    hfsb_str          path;   /* from the watched folder; "" for OVERFLOW and
                                 END. Valid until the next call */
    hfsb_str to; /* of a RENAME; "" when it has left what is watched */
} hfsbi_change;

typedef struct hfsbi_folder_watch hfsbi_folder_watch;

typedef struct hfsbi_folder_watch_opts {
    bool   recursive;   /* also folders in it, including those made later; to a
                           depth of HFSBI_FINDER_DEPTH */
    hfsbi_rights rights; /* of the threads that read */
    size_t max_folders; /* watched at a time (0: 8192) */
    size_t max_changes; /* held until they are taken (0: 4096), with at most
                           4 MiB of paths */
    /* Called in the loop when there are changes to take; may close the
       watch. */
    void (*fn)(void *user);
    /* Called once after close, by close itself or later in the loop (NULL: not
       called): no thread uses the root any more. */
    void (*gone)(void *user);
    void *user;
} hfsbi_folder_watch_opts;

/* Begins to watch a folder, which a symlink may lead to beneath the root. The
   root must stay open until opts.gone is called, or the loop has no tasks. May
   block: call it in a thread.

   Entries on the deny list are not reported, nor temporaries of file_write.c:
   a file that such a temporary is renamed to is reported as CREATE and WRITE,
   since the kernel does not report whether it existed. With `recursive`, what
   a new folder contains when its own watch begins is reported as created.
   Symlinks are never followed, and a folder that leaves the watched one is no
   longer watched, so nothing outside the root is reported. The watch ends when
   the folder is removed (if a process has it open, when that closes it), moved
   or unmounted.

   HFSB_LIMIT    more folders than max_folders, or than the system watches
   HFSB_BUSY     no descriptor, or too many watches of this user
   HFSB_TIMEOUT  looking at all folders takes longer than HFSBI_FINDER_MS
   HFSB_REFUSED  the system has no inotify
   HFSB_ARG      "Not a folder"; else as listed in file.h */
HFSBI_FN hfsb_status
hfsbi_folder_watch_open(const hfsb_root *root, hfsb_str path,
                        const hfsbi_folder_watch_opts *opts,
                        hfsbi_folder_watch **out, hfsb_err *err);
/* Calls opts.fn in the loop from now on; changes are read in its threads.
   Under its lock. False when out of memory. */
HFSBI_FN bool hfsbi_folder_watch_start(hfsbi_folder_watch *w,
                                       hfsbi_loop         *loop);
/* Takes the oldest change; false when there is none. From any thread, but one
   at a time. */
HFSBI_FN bool hfsbi_folder_watch_next(hfsbi_folder_watch *w,
                                      hfsbi_change       *change);
/* Ends the watch (may be NULL), under the lock of the loop: fn is no longer
   called. A thread may still read: see opts.gone. */
HFSBI_FN void hfsbi_folder_watch_close(hfsbi_folder_watch *w);
