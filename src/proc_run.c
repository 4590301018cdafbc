/* proc_run.c - a command in one call; readers for pipes that nobody reads any
   more. Depends on: base, os, proc, proc_spawn. */
#include "proc_parts.h"

/* ---- the keeper ---- */

#define HFSBI_KEEPER_PIPES 64 /* of one keeper */

/* Reads n pipes, at 0 and up, to their ends. */
static void hfsbi_keeper_read(size_t n) {
    struct pollfd list[HFSBI_KEEPER_PIPES];
    char          block[16384];
    size_t        i, open = n;
    for (i = 0; i < n; i++) {
        list[i].fd = (int)i;
        list[i].events = POLLIN;
    }
    while (open > 0) {
        if (poll(list, (nfds_t)n, -1) < 0 && errno != EINTR) return;
        for (i = 0; i < n; i++) {
            ssize_t got;
            if (list[i].fd < 0 || list[i].revents == 0) continue;
            list[i].revents = 0;
            got = read(list[i].fd, block, sizeof block);
            if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
                continue;
            list[i].fd = -1; /* poll() passes over it */
            open--;
        }
    }
}

/* In the process that stays. No call here takes a lock. */
static void hfsbi_keeper_main(const int *fds, size_t n) {
    int    high[HFSBI_KEEPER_PIPES], rc;
    size_t i;
    (void)setsid();
    hfsbi_child_signals();
    for (i = 0; i < n; i++) high[i] = fcntl(fds[i], F_DUPFD, (int)n);
    for (i = 0; i < n; i++)
        if (dup2(high[i], (int)i) < 0) (void)close((int)i);
    hfsbi_child_close((int)n);
    hfsbi_child_unblock();
    rc = chdir("/"); /* or a file system would be in use */
    (void)rc;
    hfsbi_keeper_read(n);
    _exit(0);
}

/* Two forks, so that it is not a child of the host. */
static void hfsbi_keeper_start(const int *fds, size_t n) {
    hfsbi_fork_guard guard;
    pid_t            pid;
    hfsbi_fork_guard_begin(&guard);
    pid = fork();
    if (pid == 0) {
        pid = fork();
        if (pid == 0) hfsbi_keeper_main(fds, n);
        _exit(0);
    }
    hfsbi_fork_guard_end(&guard);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
}

void hfsb_proc_keep_pipes(const int *fds, size_t count) {
    size_t i, n;
    for (; count > 0; fds += n, count -= n) {
        n = count < HFSBI_KEEPER_PIPES ? count : HFSBI_KEEPER_PIPES;
        hfsbi_keeper_start(fds, n);
        for (i = 0; i < n; i++) {
            int fd = fds[i];
            hfsbi_close(&fd);
        }
    }
}

/* ---- a command in one call ---- */

typedef struct hfsbi_capture {
    const hfsb_proc_opts *opts;
    hfsb_buf             *to[2];
    bool                  full[2]; /* what is kept is the start, with no gap */
    bool                  no_memory;
} hfsbi_capture;

static void hfsbi_capture_output(void *user, hfsb_proc_stream stream,
                                 hfsb_str bytes) {
    hfsbi_capture *c = (hfsbi_capture *)user;
    hfsb_buf      *to = c->to[stream];
    if (to && !c->full[stream]) {
        hfsb_str part = bytes;
        size_t   room = to->max > to->len ? to->max - to->len : 0;
        if (to->max && part.len > room) {
            part.len = room;
            c->full[stream] = true;
        }
        if (hfsb_buf_append(to, part) != HFSB_OK)
            c->full[stream] = c->no_memory = true;
    }
    if (c->opts->on_output) c->opts->on_output(c->opts->user, stream, bytes);
}

#define HFSBI_RUN_ASKS_MS 50 /* whether it was cancelled */

/* Waits for what the command waits for, at most until its deadline. */
static void hfsbi_proc_wait(const hfsb_proc *proc, bool asks) {
    hfsb_watch    watch[HFSB_PROC_WATCHES];
    struct pollfd list[HFSB_PROC_WATCHES];
    size_t        n = hfsb_proc_watch(proc, watch);
    long long     left = hfsb_proc_deadline(proc);
    hfsbi_poll_fill(watch, n, list);
    if (left >= 0) {
        left -= hfsb_clock_ms();
        if (left < 0) left = 0;
        if (left > INT_MAX) left = INT_MAX;
    }
    if (asks && (left < 0 || left > HFSBI_RUN_ASKS_MS))
        left = HFSBI_RUN_ASKS_MS;
    (void)poll(list, (nfds_t)n, (int)left);
}

hfsb_status hfsb_proc_run(const hfsb_proc_opts *opts, hfsb_buf *out,
                          hfsb_buf *err_out, hfsb_proc_result *result,
                          hfsb_err *err) {
    hfsb_proc_opts inner = *opts;
    hfsbi_capture  capture = HFSB_INIT;
    hfsb_proc     *proc;
    bool           asks = opts->cancelled != NULL;
    hfsb_status    st;
    capture.opts = opts;
    capture.to[HFSB_PROC_STDOUT] = out;
    capture.to[HFSB_PROC_STDERR] = err_out;
    inner.on_output = hfsbi_capture_output;
    inner.user = &capture;
    inner.keep_input = false; /* nobody could write to it */
    st = hfsb_proc_open(&inner, &proc, err);
    if (st != HFSB_OK) return st;
    do {
        hfsbi_proc_wait(proc, asks);
        if (asks && opts->cancelled(opts->user)) {
            hfsb_proc_kill(proc);
            asks = false;
        }
    } while (!hfsb_proc_step(proc));
    if (result) {
        *result = hfsb_proc_status(proc);
        if (capture.no_memory) result->incomplete = true;
    }
    hfsb_proc_close(proc);
    return HFSB_OK;
}
