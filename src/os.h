#pragma once

/* The operating system, for the modules that touch it: its headers, what
   differs between systems, and the few calls everyone needs. Never part of
   the public header.

   Linux features are used when the kernel has them and replaced when not.
   HFSBI_PORTABLE leaves them out at compile time, so that the tests reach the
   replacements on Linux too. */

#include "internal.h"
#include "file.h"
#include "proc.h"

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

/* Open a directory only to look things up in it. */
#if defined(O_PATH) && !defined(HFSBI_PORTABLE)
#define HFSBI_O_SEARCH (O_PATH | O_DIRECTORY | O_CLOEXEC)
#else
#define HFSBI_O_SEARCH (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#endif

/* ---- errors ---- */

/* The words for an errno, in English whatever the locale. Never NULL; codes
   that are not known are "system error". */
HFSBI_FN const char *hfsbi_os_text(int code);

/* The status for an errno: NOT_FOUND, NOMEM, LIMIT (E2BIG), DENIED, FULL (no
   space, quota or size left), BUSY (no descriptor or process left, in use),
   else HFSB_IO. */
HFSBI_FN hfsb_status hfsbi_os_status(int code);

/* Fills *err with `format`, ": " and the words for errno `code`; gives the
   status of that. */
HFSBI_FN hfsb_status hfsbi_fail_os(hfsb_err *err, int code, const char *format,
                                   ...) HFSBI_PRINTF(3, 4);

/* ---- descriptors; all are close-on-exec ---- */

/* Closes *fd unless it is -1, sets it to -1, and keeps errno. */
HFSBI_FN void hfsbi_close(int *fd);

/* read() and write() that go on after an interruption. */
HFSBI_FN ssize_t hfsbi_read(int fd, void *ptr, size_t n);
HFSBI_FN ssize_t hfsbi_write(int fd, const void *ptr, size_t n);

/* read() of a file opened with O_NONBLOCK: where one of /proc would wait for
   more to come, it is at its end. */
HFSBI_FN ssize_t hfsbi_read_file(int fd, void *ptr, size_t n);

/* All of s, in as many writes as it takes; false with errno. A full pipe or a
   file at its size limit fails, it does not kill the host with a signal. */
HFSBI_FN bool hfsbi_write_all(int fd, hfsb_str s);

/* A pipe, its ends at 3 or above; false with errno and both -1. */
HFSBI_FN bool hfsbi_pipe(int fds[2]);

/* fd, or when it is 0, 1 or 2 (the host closed those) a copy at 3 or above and
   fd is closed. -1 with errno. */
HFSBI_FN int hfsbi_above_standard(int fd);

HFSBI_FN bool hfsbi_set_nonblocking(int fd);

/* A pipe to wake whoever waits for its end 0: neither end ever blocks. False
   with errno; what was opened is closed by the caller (hfsbi_close). */
HFSBI_FN bool hfsbi_wake_open(int fds[2]);
/* Empties end 0. */
HFSBI_FN void hfsbi_wake_drain(int fd);
/* Makes end 0 readable. May be called from a signal handler. */
HFSBI_FN void hfsbi_wake_write(int fd);

/* ---- signals that a write may raise ---- */

/* Between begin and end, SIGPIPE and SIGXFSZ that this thread's own writes
   raise are errors of the write and nothing else. The host's handlers are not
   touched. Keeps errno. */
typedef struct hfsbi_signal_guard {
    sigset_t old_mask;
    bool     pipe_pending, size_pending; /* before we began */
} hfsbi_signal_guard;

HFSBI_FN void hfsbi_signal_guard_begin(hfsbi_signal_guard *guard);
HFSBI_FN void hfsbi_signal_guard_end(const hfsbi_signal_guard *guard);

/* ---- the rest ---- */

/* Fills out with n random bytes; without a source of them, with what changes
   from call to call. For names and ids, not for keys. */
HFSBI_FN void hfsbi_random(void *out, size_t n);

/* Letters and digits for the name of a file that is not there yet. */
#define HFSBI_RANDOM_NAME 17 /* with the NUL */
HFSBI_FN void hfsbi_random_name(char name[HFSBI_RANDOM_NAME]);

/* Sleeps before the next try for something that another thread or process
   holds: 1, 2 ... 20, 20 ms. HFSBI_TRIES of these pauses take about 2 s. */
#define HFSBI_TRIES 110
HFSBI_FN void hfsbi_pause(unsigned tries);

/* The sooner of two times; one below 0 is never. */
HFSBI_FN long long hfsbi_sooner(long long a, long long b);

/* What poll() wants to know, from what our objects say. */
HFSBI_FN void hfsbi_poll_fill(const hfsb_watch *list, size_t n,
                              struct pollfd *fds);

/* A NUL-terminated copy in memory of alloc; give it back with
   hfsbi_array_free(alloc, copy, s.len + 1, 1). NULL without memory. */
HFSBI_FN char *hfsbi_terminated(const hfsb_alloc *alloc, hfsb_str s);

/* An unlinked file for reading and writing, in dir (NULL: $TMPDIR or /tmp);
   -1 with errno. */
HFSBI_FN int hfsbi_unnamed_file(const char *dir);

/* ---- secrets ---- */

/* Overwrites memory in a way the compiler keeps. */
HFSBI_FN void hfsbi_wipe(void *ptr, size_t n);

/* Fills out with n random bytes that nobody can guess, for keys; false when
   the system has no source of them. */
HFSBI_FN bool hfsbi_random_key(void *out, size_t n);

/* ---- threads ---- */

/* Waits for cond, ms milliseconds at most; may return earlier. A clock that is
   set meanwhile can make it longer or shorter: keep ms small. */
HFSBI_FN void hfsbi_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock,
                                 long long ms);

/* Starts a thread that no signal is delivered to; 0 or an errno. */
HFSBI_FN int hfsbi_thread_start(pthread_t *thread, size_t stack,
                                void *(*fn)(void *user), void *user);
