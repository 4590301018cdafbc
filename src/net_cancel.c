/* net_cancel.c - to end what waits, from another thread. Depends on: os. */
#include "net_parts.h"

/* The flag is the pipe itself: what waits polls it, and asking is a poll()
   that does not wait. So there is nothing to keep in step, and set() is fit
   for a signal handler. */

hfsb_status hfsb_cancel_open(const hfsb_alloc *alloc, hfsb_cancel **out,
                             hfsb_err *err) {
    hfsb_alloc   hook = HFSB_INIT;
    hfsb_cancel *cancel;
    *out = NULL;
    if (alloc) hook = *alloc;
    cancel = (hfsb_cancel *)hfsbi_array(&hook, 1, sizeof *cancel);
    if (!cancel) return hfsbi_fail_status(err, HFSB_NOMEM, "cancel flag");
    cancel->alloc = hook;
    cancel->fds[0] = cancel->fds[1] = -1;
    if (!hfsbi_wake_open(cancel->fds)) {
        int code = errno;
        hfsb_cancel_close(cancel);
        return hfsbi_fail_os(err, code, "Cannot make a cancel flag");
    }
    *out = cancel;
    return hfsbi_ok(err);
}

void hfsb_cancel_set(hfsb_cancel *cancel) {
    if (cancel) hfsbi_wake_write(cancel->fds[1]);
}

void hfsb_cancel_reset(hfsb_cancel *cancel) {
    if (cancel) hfsbi_wake_drain(cancel->fds[0]);
}

bool hfsb_cancel_is_set(const hfsb_cancel *cancel) {
    return !hfsb_cancel_wait(cancel, 0);
}

int hfsb_cancel_fd(const hfsb_cancel *cancel) {
    return cancel ? cancel->fds[0] : -1;
}

void hfsb_cancel_close(hfsb_cancel *cancel) {
    hfsb_alloc hook;
    if (!cancel) return;
    hook = cancel->alloc;
    hfsbi_close(&cancel->fds[0]);
    hfsbi_close(&cancel->fds[1]);
    hfsbi_array_free(&hook, cancel, 1, sizeof *cancel);
}

bool hfsb_cancel_wait(const hfsb_cancel *cancel, long long ms) {
    long long     now = hfsb_clock_ms(), until;
    struct pollfd fd;
    int           n;
    if (!cancel && ms <= 0) return true;
    if (ms < 0) ms = 0;
    until = ms < HFSBI_NET_FOREVER - now ? now + ms : HFSBI_NET_FOREVER;
    fd.fd = hfsb_cancel_fd(cancel);
    fd.events = POLLIN;
    do {
        fd.revents = 0;
        n = poll(&fd, 1, hfsbi_net_poll_ms(until));
        if (n > 0) return false;
    } while ((n < 0 && errno == EINTR) || hfsb_clock_ms() < until);
    return true;
}
