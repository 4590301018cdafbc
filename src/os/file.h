#pragma once

/* ==== FILE: read, write whole or not at all, stay beneath a root ======== */

#include "../core/base.h"
#include "../core/hash.h"

/* ---- where paths lead ---- */

/* Where relative paths begin, and how far any path may lead. Does not change
   once open: any number of threads may use it. */
typedef struct hfsb_place hfsb_place;

typedef struct hfsb_place_opts {
    hfsb_str   work_dir; /* relative paths begin here (empty: the root when
                            there is one, else the current directory at the
                            time of each call). With a root, a relative one
                            begins there */
    hfsb_str   root;     /* every path lies beneath this directory (empty:
                            anywhere). The kernel resolves each path from the
                            opened root, so that no "..", symbolic link,
                            magic link of /proc or race leads out of it;
                            absolute symbolic links are refused */
    hfsb_alloc alloc;    /* for the place and for all work through it */
} hfsb_place_opts;

/* HFSB_OK; HFSB_NOT_FOUND when a directory is not there, HFSB_REFUSED when
   work_dir is not beneath the root, HFSB_IO, HFSB_NOMEM. opts may be NULL. */
HFSB_API hfsb_status hfsb_place_open(const hfsb_place_opts *opts,
                                     hfsb_place **out, hfsb_err *err);
HFSB_API void        hfsb_place_close(hfsb_place *place);

/* The work directory and the root as absolute paths, "" when there is none;
   good until the place is closed. */
HFSB_API hfsb_str hfsb_place_work_dir(const hfsb_place *place);
HFSB_API hfsb_str hfsb_place_root(const hfsb_place *place);

/* In every function below `place` may be NULL (no root, current directory).
   What can go wrong with any path:
   HFSB_NOT_FOUND  "File not found: {path}", and more behind it when the path
                   begins with "~", which is not expanded, or goes through
                   something that is no directory
   HFSB_REFUSED    it leads outside the root ("Path is outside the root
                   {root}: {path}", whether or not something is there), is
                   empty, holds a NUL, or is no regular file where there must
                   be one ("Is a directory: {path}")
   HFSB_ARG        too long, or goes through too many symbolic links
   HFSB_DENIED     no permission, or the file system is read-only
   HFSB_FULL       no space, quota or size is left to write it
   HFSB_BUSY       too many open files, or it is in use: later it may work
   HFSB_IO         the system says no; the message says what and why
   HFSB_NOMEM                                                              */

/* ---- looking ---- */

typedef enum hfsb_file_type {
    HFSB_FILE_REGULAR,
    HFSB_FILE_DIRECTORY,
    HFSB_FILE_OTHER /* a device, FIFO or socket */
} hfsb_file_type;

typedef struct hfsb_file_info {
    unsigned long long size;
    unsigned long long links;         /* hard links */
    unsigned long long device, inode; /* which file it is */
    long long          changed;       /* content: seconds since 1970 */
    long               changed_nanos;
    unsigned           mode; /* permission bits, 07777 */
    hfsb_file_type     type;
} hfsb_file_info;

/* What path is, links followed. */
HFSB_API hfsb_status hfsb_file_stat(const hfsb_place *place, hfsb_str path,
                                    hfsb_file_info *info, hfsb_err *err);

/* Appends a short text that is the same for all spellings of a path to one
   file (relative, through links), there or not, and differs for different
   ones. Hard links are different files. */
HFSB_API hfsb_status hfsb_file_key(const hfsb_place *place, hfsb_str path,
                                   hfsb_buf *out, hfsb_err *err);

/* ---- reading ---- */

/* Opens a regular file: a descriptor for reading (close-on-exec, at 3 or
   above, O_NONBLOCK for the few files of /proc that wait), which the caller
   closes. A device, FIFO or socket is refused without
   opening it, since it might never answer. info may be NULL. */
HFSB_API hfsb_status hfsb_file_open(const hfsb_place *place, hfsb_str path,
                                    int *fd, hfsb_file_info *info,
                                    hfsb_err *err);

/* Appends the whole content to *out. HFSB_LIMIT past out->max, or past max
   bytes (0: 1 GiB). Files of /proc, whose size reads as 0, work. On failure
   *out is as it was. info (may be NULL) is that of the file that was read. */
HFSB_API hfsb_status hfsb_file_read(const hfsb_place *place, hfsb_str path,
                                    size_t max, hfsb_buf *out,
                                    hfsb_file_info *info, hfsb_err *err);

/* sha256 of the content in hexadecimal, in bounded memory. */
HFSB_API hfsb_status hfsb_file_sha256(const hfsb_place *place, hfsb_str path,
                                      char      hex[HFSB_SHA256_HEX],
                                      hfsb_err *err);

/* ---- writing ---- */

typedef struct hfsb_file_write_opts {
    hfsb_str if_sha256; /* fail unless the file has this sha256 (hex; empty:
                           no matter) */
    const hfsb_file_info *if_same; /* fail when the file is not this one any
                                      more: another inode, size or time of
                                      change (NULL: no matter). A change
                                      within one tick of the file system's
                                      clock may go unnoticed; if_sha256 is
                                      exact */
    unsigned mode;       /* permission bits of the file (0: those it had; a
                            new file 0666 less the umask) */
    bool     create;     /* refuse when there is a file already */
    bool     no_parents; /* do not make missing directories */
    bool     no_sync;    /* do not wait for the disk: a crash of the machine,
                            not of the process, may lose the content */
} hfsb_file_write_opts;

typedef struct hfsb_file_written {
    unsigned long long bytes;
    bool               created;  /* there was no file */
    bool               in_place; /* not renamed into place, see below */
    hfsb_file_info     info;     /* of the file as it is now */
} hfsb_file_written;

/* Writes a file whole or not at all: the bytes go to a temporary file beside
   it, ".{name}.hfsb-{pid}-{n}", which is synced and then renamed over it, and
   the directory is synced. A reader, or whoever looks after a crash, sees the
   old content or the new one. A symbolic link stays one: what it points to is
   written. Mode, owner and extended attributes stay.

   Only where a rename would break something (several hard links, an owner or
   attribute that cannot be restored, a mount point, a directory that cannot be
   written) the file is rewritten in place, after the new bytes were written
   and synced elsewhere and room for them was made sure of; should that fail
   half-way the old bytes are put back.

   Refuses a directory, a device, FIFO or socket, and a file without write
   permission. No temporary is left on failure; those of processes that died
   are removed from that directory. Directories that were made stay, also on
   failure; none is made for a path that begins with "~".

   The conditions are checked, and the file replaced, under an exclusive
   flock() of its directory (of the file too when it is rewritten in place), so
   no other write of any thread or process gets in between.

   HFSB_STALE      the file is not as if_sha256 or if_same want it
   HFSB_BUSY       another program held that lock for about 2 s
   HFSB_REFUSED    there is a file already, and `create` was set
   HFSB_ARG        if_sha256 is not a sha256
   opts and written may be NULL. On failure the file is as it was, or the
   message says that it could not be put back. */
HFSB_API hfsb_status hfsb_file_write(const hfsb_place *place, hfsb_str path,
                                     hfsb_str                    content,
                                     const hfsb_file_write_opts *opts,
                                     hfsb_file_written          *written,
                                     hfsb_err                   *err);

/* The same for content that arrives in pieces. Nothing is at path until
   commit. The place must stay open; opts and what they point to need not.
   append and commit fail for good: then, or to give up, close() leaves no
   trace. close() is always the last call, also after commit. */
typedef struct hfsb_file_writer hfsb_file_writer;

HFSB_API hfsb_status hfsb_file_writer_open(const hfsb_place           *place,
                                           hfsb_str                    path,
                                           const hfsb_file_write_opts *opts,
                                           hfsb_file_writer          **out,
                                           hfsb_err                   *err);
HFSB_API hfsb_status hfsb_file_writer_append(hfsb_file_writer *writer,
                                             hfsb_str piece, hfsb_err *err);
HFSB_API hfsb_status hfsb_file_writer_commit(hfsb_file_writer  *writer,
                                             hfsb_file_written *written,
                                             hfsb_err          *err);
HFSB_API void        hfsb_file_writer_close(hfsb_file_writer *writer);

/* Removes a regular file, or a symbolic link itself; nothing else. Takes the
   same lock as a write. */
HFSB_API hfsb_status hfsb_file_remove(const hfsb_place *place, hfsb_str path,
                                      hfsb_err *err);
