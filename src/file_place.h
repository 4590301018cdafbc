#pragma once

/* Private to FILE: from a path to an opened directory and a name in it. All
   work is done with those two, so that whatever happens to the path in the
   meantime, nothing outside the root is reached. */

#include "os.h"

/* Longest name in a directory, on every file system of note. */
#define HFSBI_NAME_SIZE 256 /* with the NUL */

/* As many symbolic links as Linux follows in one path. */
#define HFSBI_LINKS_MAX 40

struct hfsb_place {
    int        root_fd;   /* -1: no root */
    hfsb_buf   root;      /* as given, made absolute */
    hfsb_buf   real_root; /* the same without symbolic links */
    hfsb_buf   work_dir;  /* absolute; empty: the current directory */
    hfsb_buf   work_rest; /* work_dir as seen from the root */
    hfsb_alloc alloc;
};

/* Where a path leads: what is, or could be, at `name` in the directory. */
typedef struct hfsbi_spot {
    int         dir;  /* to be closed */
    const char *name; /* into `path`; "." when that names a directory by a
                           slash or a dot at its end */
    hfsb_buf    path; /* from the root, or where the process sees it */
    bool        exists;
    struct stat st; /* of what exists; a link only with NO_FOLLOW */
} hfsbi_spot;

enum {
    HFSBI_SPOT_NO_FOLLOW = 1, /* a link itself, not what it leads to */
    HFSBI_SPOT_PARENTS = 2,   /* make missing directories */
    HFSBI_SPOT_NO_SYNC = 4,   /* ... without waiting for the disk */
    HFSBI_SPOT_DEEPEST = 8    /* where directories are missing, `dir` is the
                                 last one there is and `name` all the rest */
};

/* `verb` is what the caller wants to do, for the message. On failure there is
   nothing to close. */
HFSBI_FN hfsb_status hfsbi_spot_find(const hfsb_place *place, hfsb_str path,
                                     unsigned how, const char *verb,
                                     hfsbi_spot *spot, hfsb_err *err);
HFSBI_FN void        hfsbi_spot_close(hfsbi_spot *spot);

/* Looks anew at what is at the spot; 0 or an errno. */
HFSBI_FN int hfsbi_spot_look(hfsbi_spot *spot);

/* Opens the regular file at spot for reading and takes its stat anew. */
HFSBI_FN hfsb_status hfsbi_spot_open(const hfsb_place *place, hfsb_str path,
                                     hfsbi_spot *spot, int *fd, hfsb_err *err);

/* Opens the file at spot for reading, or when that is not allowed for writing;
   -1 with errno. Only for its attributes and locks. */
HFSBI_FN int hfsbi_spot_open_any(const hfsbi_spot *spot);

/* HFSB_STALE unless the regular file at spot has this sha256. */
HFSBI_FN hfsb_status hfsbi_spot_check_sha256(const hfsb_place *place,
                                             hfsb_str path, hfsbi_spot *spot,
                                             const char *hex, hfsb_err *err);

/* The words for errno `code` on the way to or at path. */
HFSBI_FN hfsb_status hfsbi_path_fail(const hfsb_place *place, hfsb_str path,
                                     int code, const char *verb,
                                     hfsb_err *err);

/* "{what}: {path}" */
HFSBI_FN hfsb_status hfsbi_path_say(hfsb_err *err, hfsb_status code,
                                    const char *what, hfsb_str path);

/* HFSB_STALE: the file has changed since it was read. */
HFSBI_FN hfsb_status hfsbi_path_changed(hfsb_str path, hfsb_err *err);

/* HFSB_OK for a regular file; else the refusal. */
HFSBI_FN hfsb_status hfsbi_path_regular(hfsb_str path, mode_t mode,
                                        hfsb_err *err);

HFSBI_FN hfsb_alloc hfsbi_place_alloc(const hfsb_place *place);

/* The directory at path, which the kernel or, where it cannot, a walk by hand
   resolves without leaving root; -1 with errno, EXDEV for a path that leads
   out. */
HFSBI_FN int hfsbi_open_beneath(int root, const char *path,
                                const hfsb_alloc *alloc);

/* openat() and unlinkat() of a file that go on after an interruption; what is
   opened is close-on-exec and at 3 or above. */
HFSBI_FN int hfsbi_openat(int dir, const char *name, int flags, mode_t mode);
HFSBI_FN int hfsbi_unlinkat(int dir, const char *name);

/* fsync(), as far as the file system has it; false with errno. The second is
   for a directory opened with HFSBI_O_SEARCH; the best it can. */
HFSBI_FN bool hfsbi_sync(int fd);
HFSBI_FN void hfsbi_sync_dir(int dir);

HFSBI_FN void hfsbi_file_info_fill(hfsb_file_info    *info,
                                   const struct stat *st);

/* sha256 of what can still be read from fd; false with errno. */
HFSBI_FN bool hfsbi_fd_sha256(int fd, char hex[HFSB_SHA256_HEX]);

/* ---- locks ---- */

/* Locks that a writer holds, or -1. */
typedef struct hfsbi_lock {
    int dir, file;
} hfsbi_lock;

/* Keeps other writers of the file at spot out, in this process or another,
   until hfsbi_unlock(): locks the directory, and with `file`, or when the
   directory cannot be read, the file. Locks already held are kept. May look at
   the spot again. 0, EWOULDBLOCK after 2 s, or another errno; the caller
   unlocks in any case. File systems without locks count as locked. */
HFSBI_FN int  hfsbi_spot_lock(hfsbi_spot *spot, bool file, hfsbi_lock *lock);
HFSBI_FN void hfsbi_unlock(hfsbi_lock *lock);

/* hfsbi_path_fail() for an errno of hfsbi_spot_lock(). */
HFSBI_FN hfsb_status hfsbi_lock_fail(const hfsb_place *place, hfsb_str path,
                                     int code, const char *verb,
                                     hfsb_err *err);

/* One try: false when another descriptor holds the lock on the file of fd. */
HFSBI_FN bool hfsbi_try_lock(int fd);

/* hfsb_file_remove(); HFSB_STALE unless the file has this sha256 (NULL: no
   matter). */
HFSBI_FN hfsb_status hfsbi_file_remove_if(const hfsb_place *place,
                                          hfsb_str path, const char *sha256,
                                          hfsb_err *err);

/* ---- temporary files ---- */

/* Makes one beside `name`, with a lock on it as a sign of life; its name goes
   to temp. 0 or an errno. */
HFSBI_FN int  hfsbi_temp_open(int dir, const char *name, mode_t mode,
                              char temp[HFSBI_NAME_SIZE], int *fd);
HFSBI_FN void hfsbi_temp_remove(int dir, const char *temp);

/* Removes those of processes that died. */
HFSBI_FN void hfsbi_temp_sweep(int dir);

/* ---- in place ---- */

/* Gives the file these permission bits unless it has them; false with
   errno. */
HFSBI_FN bool hfsbi_set_mode(int fd, mode_t mode);

/* Extended attributes of one file to another, so that both have the same.
   0 or an errno. */
HFSBI_FN int hfsbi_copy_attributes(int from, int to, const hfsb_alloc *alloc);

typedef struct hfsbi_rewriting {
    int                fd;    /* the file, for reading and writing */
    int                spool; /* the new content */
    unsigned long long bytes; /* ... and its length */
    mode_t             mode;  /* permission bits it shall have */
    bool               no_sync;
    bool               begun;  /* out: it failed on the way ... */
    bool               spoilt; /* ... and the old content is not back */
} hfsbi_rewriting;

/* 0, or an errno with the old content put back unless `spoilt`. */
HFSBI_FN int hfsbi_rewrite(hfsbi_rewriting *r);
