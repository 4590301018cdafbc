#pragma once

/* The event loop of a server: descriptors, timers, sources that drive
   themselves, work for threads. Private to the server. One thread runs a
   loop; post and wake may come from any. */

#include "os.h"

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
    long long           at; /* private */
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
    struct hfsbi_task *next; /* private */
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
