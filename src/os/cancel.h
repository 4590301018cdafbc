#pragma once

/* ==== CANCEL: end a call early, from another thread ===================== */

#include "../core/base.h"

/* A flag that also wakes calls that wait for a command, the network or the end
   of a delay. Any number of calls may share one. It uses no descriptors until
   a call waits with it, and two from then on; when none are left, that call
   checks the flag every 50 ms. */
typedef struct hfsb_cancel hfsb_cancel;

/* HFSB_OK; HFSB_NOMEM. alloc may be NULL. */
HFSB_API hfsb_status hfsb_cancel_open(const hfsb_alloc *alloc,
                                      hfsb_cancel **out, hfsb_err *err);
/* From any thread and from a signal handler. Stays set until reset. */
HFSB_API void hfsb_cancel_set(hfsb_cancel *cancel);
/* From any thread. */
HFSB_API void hfsb_cancel_reset(hfsb_cancel *cancel);
/* False for NULL. */
HFSB_API bool hfsb_cancel_is_set(const hfsb_cancel *cancel);
/* A descriptor that is readable while the flag is set, for the caller's own
   poll(); do not read from it. It stays the same until close. -1 for NULL, and
   when no descriptors are left: then call hfsb_cancel_is_set() every 50 ms or
   so. */
HFSB_API int  hfsb_cancel_fd(const hfsb_cancel *cancel);
HFSB_API void hfsb_cancel_close(hfsb_cancel *cancel);

/* Sleeps ms milliseconds; false as soon as the flag is set. */
HFSB_API bool hfsb_cancel_wait(const hfsb_cancel *cancel, long long ms);

/* ---- waiting in the host's own loop ---- */

/* A descriptor to wait for. */
typedef struct hfsb_watch {
    int  fd;
    bool readable, writable;
} hfsb_watch;

/* Fills the n entries of fds, for poll(), from a list of watch(). */
struct pollfd;
HFSB_API void hfsb_poll_fill(const hfsb_watch *list, size_t n,
                             struct pollfd *fds);
/* The timeout for poll() until a deadline on hfsb_clock_ms(): milliseconds, 0
   when it has passed, -1 (no limit) when the deadline is negative. */
HFSB_API int hfsb_wait_ms(long long deadline);

/* Milliseconds on the monotonic clock (CLOCK_MONOTONIC). */
HFSB_API long long hfsb_clock_ms(void);
