#pragma once

/* ==== CANCEL: end a call early, from another thread ===================== */

#include "../core/base.h"

/* A flag that also wakes whoever waits on the network. */
typedef struct hfsb_cancel hfsb_cancel;

HFSB_API hfsb_status hfsb_cancel_open(const hfsb_alloc *alloc,
                                      hfsb_cancel **out, hfsb_err *err);
/* From any thread, and from a signal handler. Stays set until reset. */
HFSB_API void hfsb_cancel_set(hfsb_cancel *cancel);
HFSB_API void hfsb_cancel_reset(hfsb_cancel *cancel);
/* NULL is never set. */
HFSB_API bool hfsb_cancel_is_set(const hfsb_cancel *cancel);
/* A descriptor that is readable once it is set, for a transport's own poll(),
   which must not read from it; -1 for NULL. */
HFSB_API int  hfsb_cancel_fd(const hfsb_cancel *cancel);
HFSB_API void hfsb_cancel_close(hfsb_cancel *cancel);

/* Waits ms milliseconds; false when it was cancelled before. */
HFSB_API bool hfsb_cancel_wait(const hfsb_cancel *cancel, long long ms);
