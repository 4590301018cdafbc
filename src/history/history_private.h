#pragma once

/* history_private.h - checkpoints of a root.

       store.c    the folder that holds the checkpoints of a root
       scan.c     the state of a root: scanned, compared, stored
       restore.c  brings a root from one state to another
       history.c  when checkpoints are taken, and which are kept */

#include "../os/os_private.h"
#include "../pattern/pattern_private.h"
#include "checkpoint.h"

/* ==== store.c: the folder of checkpoints ================================= */

/* The state that outlives a process, in the file "state". */
typedef struct hfsbi_store_state {
    uint64_t at;       /* the checkpoint that the root was last equal to */
    uint64_t baseline; /* ... when the last session began */
    uint64_t undo_to;  /* target of an undo that has not ended; 0: none */
    char     undo_path[PATH_MAX]; /* ... of this path alone, or "" */
} hfsbi_store_state;

/* The store of one root. Functions that return int return 0 or an errno. */
typedef struct hfsbi_store {
    int                dir, lock; /* descriptors; -1: not open */
    hfsb_buf           path;      /* of the folder */
    unsigned long long bytes;     /* of all files in it, once counted */
    bool               counted;
    unsigned long      temps; /* made so far */
    hfsb_buf           block; /* a small file being stored */
    hfsb_alloc         alloc;
} hfsbi_store;

/* Opens, or makes, the store of a root: a folder in `base`, or if that is
   empty in $XDG_STATE_HOME/hfsb/undo or ~/.local/state/hfsb/undo. Without
   `create` ENOENT when there is none. Close it in any case. */
HFSBI_FN int  hfsbi_store_open(hfsbi_store *store, const char *base,
                               hfsb_str root, bool create,
                               const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_store_close(hfsbi_store *store);

/* Lets one process or object at a time work in the store. EWOULDBLOCK when
   another one holds it for long. */
HFSBI_FN int  hfsbi_store_lock(hfsbi_store *store);
HFSBI_FN void hfsbi_store_unlock(hfsbi_store *store);

/* Stores the content of an open file unless it is there. EFBIG past max
   bytes. */
HFSBI_FN int hfsbi_store_put(hfsbi_store *store, int fd,
                             unsigned long long max,
                             unsigned char      digest[HFSB_SHA256_SIZE]);
/* A descriptor of that content, or -1 with errno. */
HFSBI_FN int hfsbi_store_get(const hfsbi_store  *store,
                             const unsigned char digest[HFSB_SHA256_SIZE]);

/* Replaces a file of the store. */
HFSBI_FN int hfsbi_store_write(hfsbi_store *store, const char *name,
                               const hfsb_str *parts, size_t count);
/* Appends a file of the store. */
HFSBI_FN int hfsbi_store_read(const hfsbi_store *store, const char *name,
                              hfsb_buf *out);
HFSBI_FN int hfsbi_store_remove(hfsbi_store *store, const char *name);

/* A missing or invalid file reads as all zero. */
HFSBI_FN int hfsbi_store_read_state(const hfsbi_store *store,
                                    hfsbi_store_state *state);
HFSBI_FN int hfsbi_store_write_state(hfsbi_store             *store,
                                     const hfsbi_store_state *state);

/* The numbers of all checkpoints, in order; free the array with
   hfsbi_array_free(alloc, *list, *cap, sizeof **list). */
HFSBI_FN int hfsbi_store_list(const hfsbi_store *store, uint64_t **list,
                              size_t *count, size_t *cap);
/* Counts the bytes of the store, unless that is known. */
HFSBI_FN int hfsbi_store_count(hfsbi_store *store);
/* Removes the objects that keep() does not want, and files of processes that
   died. */
HFSBI_FN int hfsbi_store_sweep(hfsbi_store *store,
                               bool (*keep)(void                *user,
                                            const unsigned char *digest),
                               void *user);

/* ==== scan.c: the state of a root ======================================== */

typedef enum hfsbi_item_kind {
    HFSBI_ITEM_GONE, /* in a checkpoint's file: only its base has it */
    HFSBI_ITEM_FILE,
    HFSBI_ITEM_FOLDER,
    HFSBI_ITEM_LINK,
    HFSBI_ITEM_OTHER,  /* a device, FIFO or socket: never touched */
    HFSBI_ITEM_IGNORED /* left out, with all beneath it */
} hfsbi_item_kind;

enum {
    HFSBI_ITEM_STORED = 1, /* a file whose content is in the store */
    HFSBI_ITEM_RACY = 2,   /* it may have changed since without a trace */
    HFSBI_ITEM_OPAQUE = 4, /* a folder that could not be read */
    HFSBI_ITEM_LINKED = 8  /* a file with several hard links */
};

/* One path. The files of the store contain this struct: they are only for this
   machine. */
typedef struct hfsbi_item {
    uint64_t      identity; /* of device and inode */
    uint64_t      size;
    int64_t       changed, touched;   /* mtime and ctime, ns since 1970 */
    uint32_t      path, path_len;     /* in the names of its scan */
    uint32_t      target, target_len; /* of a symlink; the same */
    uint32_t      uid, gid;
    uint32_t      first; /* the first item that is the same file */
    uint16_t      mode;  /* permission bits */
    unsigned char kind, flags;
    unsigned char digest[HFSB_SHA256_SIZE];
} hfsbi_item;

/* All paths beneath a root, each folder before what is in it. */
typedef struct hfsbi_root_scan {
    hfsbi_item *items;
    size_t      count, cap;
    hfsb_buf    names; /* each followed by NUL */
    hfsb_alloc  alloc;
} hfsbi_root_scan;

HFSBI_FN void hfsbi_scan_init(hfsbi_root_scan *scan, const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_scan_free(hfsbi_root_scan *scan);
HFSBI_FN hfsb_str hfsbi_item_path(const hfsbi_root_scan *scan,
                                  const hfsbi_item      *item);
HFSBI_FN hfsb_str hfsbi_item_target(const hfsbi_root_scan *scan,
                                    const hfsbi_item      *item);
/* Returns the item of a path, or NULL. */
HFSBI_FN const hfsbi_item *hfsbi_scan_find(const hfsbi_root_scan *scan,
                                           hfsb_str               path);

/* True when both items, each of its scan, have the same content, mode, target
   and hard links; or are NULL. */
HFSBI_FN bool hfsbi_item_same(const hfsbi_root_scan *x, const hfsbi_item *a,
                              const hfsbi_root_scan *y, const hfsbi_item *b);

/* True when a path with these metadata still matches the item, whose number of
   hard links may have changed. */
HFSBI_FN bool hfsbi_item_is(const hfsbi_item *item, const struct stat *st);

/* How to scan. */
typedef struct hfsbi_scan_how {
    const hfsb_root       *place;
    hfsbi_store           *store;
    const hfsbi_root_scan *last;  /* what is unchanged since is not read */
    bool               ignored;   /* include what .gitignore names, and .git */
    size_t             max_files; /* paths */
    unsigned long long max_bytes; /* of the store */
} hfsbi_scan_how;

/* Scans the root, and stores the content of files that have changed. HFSB_OK;
   HFSB_LIMIT with *err when the root is too large; or the failure. */
HFSBI_FN hfsb_status hfsbi_scan_run(const hfsbi_scan_how *how,
                                    hfsbi_root_scan *out, hfsb_err *err);

/* Calls fn for each path that differs, in order; `was` or `is` is NULL for a
   path that does not exist there. What one scan leaves out is not a
   difference. The first status other than HFSB_OK ends the comparison. */
typedef hfsb_status (*hfsbi_diff_fn)(void *user, const hfsbi_item *was,
                                     const hfsbi_item *is);
HFSBI_FN hfsb_status hfsbi_scan_diff(const hfsbi_root_scan *before,
                                     const hfsbi_root_scan *after,
                                     hfsbi_diff_fn fn, void *user);

typedef struct hfsbi_diff_count {
    uint32_t created, changed, deleted;
} hfsbi_diff_count;
HFSBI_FN hfsbi_diff_count hfsbi_scan_count(const hfsbi_root_scan *before,
                                           const hfsbi_root_scan *after);

enum { HFSBI_CHECKPOINT_NAME = 64, HFSBI_CHECKPOINT_BY = 120 };

/* Who made the differences between a checkpoint and its parent. */
typedef enum hfsbi_author {
    HFSBI_AUTHOR_TOOL,   /* a tool or its command; or there are none */
    HFSBI_AUTHOR_OTHER,  /* others: a person, another program */
    HFSBI_AUTHOR_UNKNOWN /* others, or a command that still ran */
} hfsbi_author;

/* The head of a checkpoint's file; the items and the names follow. */
typedef struct hfsbi_checkpoint {
    char             magic[16];
    uint64_t         number;
    uint64_t         parent; /* the state before it; 0: none */
    uint64_t         base;   /* the items are the differences from this
                                checkpoint; 0: all items */
    int64_t          when;   /* seconds since 1970 */
    uint64_t         count, names;
    hfsbi_diff_count diff; /* from the parent */
    uint32_t         author; /* of that: hfsbi_author */
    char             name[HFSBI_CHECKPOINT_NAME]; /* the caller's, or "" */
    char             by[HFSBI_CHECKPOINT_BY];     /* what made the state */
} hfsbi_checkpoint;

/* Writes a checkpoint. base NULL: with all items. */
HFSBI_FN int hfsbi_checkpoint_write(hfsbi_store *store, hfsbi_checkpoint *head,
                                    const hfsbi_root_scan *scan,
                                    const hfsbi_root_scan *base);
/* Reads one; scan (NULL: the head alone) is empty. EINVAL when its file is
   damaged. */
HFSBI_FN int hfsbi_checkpoint_read(const hfsbi_store *store, uint64_t number,
                                   hfsbi_checkpoint *head,
                                   hfsbi_root_scan  *scan);

/* Appends the digests of all objects that the file of a checkpoint refers
   to. */
HFSBI_FN int hfsbi_checkpoint_digests(const hfsbi_store *store,
                                      uint64_t number, hfsbi_checkpoint *head,
                                      hfsb_buf *out);
HFSBI_FN int hfsbi_checkpoint_remove(hfsbi_store *store, uint64_t number);

/* ==== restore.c: from one state to another =============================== */

typedef enum hfsbi_repair_state {
    HFSBI_REPAIR_TODO,
    HFSBI_REPAIR_DONE,
    HFSBI_REPAIR_LEFT /* unchanged */
} hfsbi_repair_state;

/* One path that differs. */
typedef struct hfsbi_repair {
    const hfsbi_item  *now, *goal; /* NULL: not there */
    const hfsbi_item  *from;       /* its file has this path now (NULL: it
                                      must be made) */
    hfsbi_repair_state state;
    hfsbi_author       author; /* of changes between goal and `known` */
    uint64_t           before; /* fingerprint: the state before the oldest
                                  change by others that was traced */
} hfsbi_repair;

typedef struct hfsbi_restore {
    const hfsb_root       *place;
    const hfsbi_store     *store;
    const hfsbi_root_scan *now, *goal;
    const hfsbi_root_scan *known; /* what differs in `now` was changed by
                                     others, and is kept (NULL: nothing is) */
    bool                   force; /* even if content that is not stored is
                                     lost */
    bool                   resumed; /* an earlier one was interrupted */
    hfsb_str               path;    /* only this and what is beneath it (empty:
                                 all) */
    hfsb_alloc             alloc;
    /* the plan */
    hfsbi_repair *repairs; /* in the order of their paths */
    size_t        count, cap;
    hfsb_buf      conflicts; /* what others have changed and would be lost: a
                                line for each path */
    size_t        conflict_count, kept;
    /* the outcome */
    hfsbi_diff_count done;
    size_t           held; /* folders that are not empty, and stay */
    size_t           failed;
    hfsb_buf         notes;    /* on failures: a line for each */
    hfsb_buf         loosened; /* folders given permissions for the work, each
                                  path ends in NUL */
} hfsbi_restore;

/* Makes the plan and changes nothing. The members above it are set, the others
   zero. HFSB_OK or HFSB_NOMEM; free it in either case. */
HFSBI_FN hfsb_status hfsbi_restore_plan(hfsbi_restore *r);
/* Adds to the plan what others did between the goal and `known`, one step per
   call, newest first. */
HFSBI_FN void hfsbi_restore_trace(void *user, const hfsbi_root_scan *before,
                                  const hfsbi_root_scan *after,
                                  hfsbi_author           author);
/* Removes from the plan what others have changed, or records the conflict.
   HFSB_OK or HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_restore_spare(hfsbi_restore *r);
/* True for a path that the scan `now` does not cover: it was ignored, or in a
   folder that we could not read. */
HFSBI_FN bool hfsbi_restore_missed(const hfsbi_restore *r, hfsb_str path);
/* Carries out the plan as far as possible, and notes what fails. */
HFSBI_FN void hfsbi_restore_run(hfsbi_restore *r);
HFSBI_FN void hfsbi_restore_free(hfsbi_restore *r);

/* ==== history.c: when checkpoints are taken ============================== */

/* The checkpoints of a root. Several tools objects and threads may share
   one. */
typedef struct hfsbi_history {
    const hfsb_root   *place;
    bool               ignored; /* include what .gitignore names, and .git */
    bool               no_create; /* take no first checkpoint */
    size_t             max_files;
    unsigned long long max_bytes;
    hfsb_alloc         alloc;

    pthread_mutex_t   lock; /* held during a scan; protects: */
    hfsbi_store       store;
    hfsbi_store_state state; /* as in the store, while its lock is held */
    hfsbi_root_scan   last;  /* the last scan; equal to ... */
    uint64_t          at;    /* ... this checkpoint; 0: empty */
    uint64_t          base;  /* of it; 0: itself */
    bool              began; /* the first checkpoint here was taken */
    uint64_t          baseline; /* its number; state has that of the last
                                   session in the store, which may be
                                   another's */
    uint64_t          before;   /* reverts the last undo; 0: none */

    pthread_mutex_t brief; /* held for a moment; protects: */
    bool            owed; /* a change was made and no checkpoint taken since */
    size_t          busy; /* tools and commands that change files now */
    char            by[HFSBI_CHECKPOINT_BY]; /* what made the change */
    long long       scanned;                 /* hfsb_clock_ms() after the last
                                                checkpoint */
    bool            noted;                   /* the reason was shown */
    char            stopped[256]; /* why no more are taken; "": they are */
} hfsbi_history;

/* Opens the checkpoints of the first root, as opts say, and hides their store
   from it. After a failure that is not the caller's fault they are stopped.
   HFSB_OK, where *out is NULL if there are none and opts->no_create; HFSB_ARG,
   HFSB_IO, HFSB_NOMEM with *err. */
HFSBI_FN hfsb_status hfsbi_history_open(const hfsb_checkpoint_opts *opts,
                                        hfsb_root                  *place,
                                        const hfsb_alloc           *alloc,
                                        hfsbi_history **out, hfsb_err *err);
HFSBI_FN void        hfsbi_history_close(hfsbi_history *history);

/* Before a change by a tool or a command: takes a checkpoint, unless one was
   taken a moment ago. May block. Never fails. */
HFSBI_FN void hfsbi_history_before(hfsbi_history *h);
/* A tool or a command has begun to change files, or has ended. Does not
   block. */
HFSBI_FN void hfsbi_history_busy(hfsbi_history *h, bool begins);
/* After the change: what is found changed was done by `tool`, with this path
   or command. Does not block. */
HFSBI_FN void hfsbi_history_changed(hfsbi_history *h, const char *tool,
                                    hfsb_str what);
/* Takes the checkpoint that is owed after a change. May block. */
HFSBI_FN void hfsbi_history_after(hfsbi_history *h);
/* The same in a thread of the loop, or here if it has none. */
HFSBI_FN void hfsbi_history_after_in(hfsbi_history *h, hfsbi_loop *loop);
/* Appends a note, once, when checkpoints have stopped. */
HFSBI_FN void hfsbi_history_note(hfsbi_history *h, hfsb_buf *notes);

/* For the tools: enter locks the history and its store and brings `state` and
   `last` up to date; leave follows in either case. HFSB_OK; or the failure,
   also HFSB_REFUSED when checkpoints have stopped. */
HFSBI_FN hfsb_status hfsbi_history_enter(hfsbi_history *h, hfsb_err *err);
HFSBI_FN void        hfsbi_history_leave(hfsbi_history *h);
/* Scans the root, from `last` on. Between enter and leave. */
HFSBI_FN hfsb_status hfsbi_history_scan(hfsbi_history *h, hfsbi_root_scan *now,
                                        hfsb_err *err);
/* Where a checkpoint comes from. */
typedef struct hfsbi_origin {
    hfsb_str        name;   /* or "" */
    const char     *by;     /* what made the state */
    const uint64_t *parent; /* NULL: the last one */
    hfsbi_author    author;
} hfsbi_origin;

/* Makes the scan, which is emptied, the last one, and a checkpoint if it
   differs from the last, or has a name or a parent. Between enter and
   leave. */
HFSBI_FN hfsb_status hfsbi_history_add(hfsbi_history *h, hfsbi_root_scan *now,
                                       const hfsbi_origin *from,
                                       hfsb_err           *err);
/* Returns who makes changes that no tool has reported. */
HFSBI_FN hfsbi_author hfsbi_history_stranger(hfsbi_history *h);
/* Scans, and adds the scan. */
HFSBI_FN hfsb_status hfsbi_history_take(hfsbi_history *h, hfsb_str name,
                                        hfsb_err *err);
/* The same if a checkpoint is owed, or none was taken yet. */
HFSBI_FN hfsb_status hfsbi_history_pay(hfsbi_history *h, hfsb_err *err);
/* Writes h->state. */
HFSBI_FN hfsb_status hfsbi_history_save(hfsbi_history *h, hfsb_err *err);
/* The largest number, at most `number`, of a checkpoint that is kept, or 0. */
HFSBI_FN uint64_t hfsbi_history_floor(hfsbi_history *h, uint64_t number);
/* The state before the last step that a tool made, or 0; *step is then what
   that step made. */
HFSBI_FN uint64_t hfsbi_history_back(hfsbi_history    *h,
                                     hfsbi_checkpoint *step);
/* Calls fn for each step that no tool made, newest first, from `at` back to
   the checkpoint `to`, or to where both branch off. 0 or an errno. */
typedef void (*hfsbi_trace_fn)(void *user, const hfsbi_root_scan *before,
                               const hfsbi_root_scan *after,
                               hfsbi_author           author);
HFSBI_FN int hfsbi_history_trace(hfsbi_history *h, uint64_t to,
                                 hfsbi_trace_fn fn, void *user);
