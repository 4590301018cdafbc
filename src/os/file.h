#pragma once

/* ==== FILE: read, write whole or not at all, stay beneath a root ======== */

#include "../core/base.h"
#include "../core/hash.h"
#include "../edit/edit.h"

/* ---- the root ---- */

/* The root directory, which confines all paths, and the working directory,
   where relative paths begin. Any number of threads may use it at once. */
typedef struct hfsb_root hfsb_root;

typedef struct hfsb_root_opts {
    hfsb_str work_dir; /* where relative paths begin (empty: the root if
                            there is one, else the current directory at the
                            time of each call). With a root, a relative
                            work_dir is relative to the root */
    hfsb_str root;     /* every path must lie beneath this directory (empty:
                            anywhere). The kernel resolves each path from the
                            opened root, so no "..", symlink, magic link of
                            /proc or race leads outside; an absolute symlink
                            must name a place beneath the same root */
    const char *const *more_roots; /* other directories beneath which paths may
                            lie; needs `root`. An absolute path belongs to the
                            first root that contains it, a relative one to
                            `root`; no symlink leads to another root */
    size_t             more_root_count; /* at most 15 */
    const char *const
              *deny; /* patterns as in .gitignore, relative to each root
                            (without one, to the working directory): a path is
                            refused if it or a directory above it matches, as
                            given or after symlinks are resolved */
    size_t     deny_count;
    hfsb_alloc alloc; /* for the root and for all work through it */
} hfsb_root_opts;

/* HFSB_OK; HFSB_NOT_FOUND when a directory does not exist; HFSB_OUTSIDE when
   work_dir is not beneath the root; HFSB_REFUSED for a NUL byte; HFSB_ARG for
   an invalid pattern, more_roots without root, or too many roots; HFSB_IO;
   HFSB_NOMEM. opts may be NULL. */
HFSB_API hfsb_status hfsb_root_open(const hfsb_root_opts *opts,
                                    hfsb_root **out, hfsb_err *err);
HFSB_API void        hfsb_root_close(hfsb_root *root);

/* The working directory and the root as absolute paths, "" if there is none;
   valid until the root is closed. */
HFSB_API hfsb_str hfsb_root_work_dir(const hfsb_root *root);
HFSB_API hfsb_str hfsb_root_path(const hfsb_root *root);
/* The next root of several, for hfsb_root_path(); NULL after the last. */
HFSB_API const hfsb_root *hfsb_root_next(const hfsb_root *root);

/* In every function below `root` may be NULL: no root, current directory.
   Failures common to all paths:
   HFSB_NOT_FOUND   "File not found: {path}", with a reason added when the path
                    begins with "~", which is not expanded, or goes through a
                    file that is not a directory
   HFSB_OUTSIDE     "Path is outside the root {root}: {path}", whether or not
                    a file exists there; with several, "... the roots {root},
                    {root}: {path}"
   HFSB_IS_DIR      "Is a directory: {path}", where a file is needed
   HFSB_NOT_REGULAR a device, FIFO or socket where a file is needed
   HFSB_REFUSED     the path is empty or contains a NUL byte
   HFSB_ARG         too long, or too many symlinks
   HFSB_DENIED      no permission, or a read-only file system; or "Path is on
                    the deny list: {path}"
   HFSB_FULL        no space, quota or file size left to write
   HFSB_BUSY        too many open files, or in use: a retry may succeed
   HFSB_IO          any other failure of the system; the message gives it
   HFSB_NOMEM                                                              */

/* ---- metadata ---- */

typedef enum hfsb_file_type {
    HFSB_FILE_REGULAR,
    HFSB_FILE_DIRECTORY,
    HFSB_FILE_OTHER /* a device, FIFO or socket */
} hfsb_file_type;

typedef struct hfsb_file_info {
    unsigned long long size;
    unsigned long long links;         /* hard links */
    unsigned long long device, inode; /* identify the file */
    long long          changed;       /* content: seconds since 1970 */
    long               changed_nanos;
    long long          touched; /* content or metadata; cannot be set back */
    long               touched_nanos;
    unsigned           mode; /* permission bits, 07777 */
    hfsb_file_type     type;
} hfsb_file_info;

/* Metadata of the file at path; symlinks are followed. */
HFSB_API hfsb_status hfsb_file_stat(const hfsb_root *root, hfsb_str path,
                                    hfsb_file_info *info, hfsb_err *err);

/* Appends a key that identifies the file: equal for every path to it
   (relative, through symlinks), different for different files. The file need
   not exist. Hard links are different files. On failure *out is unchanged;
   HFSB_LIMIT past out->max. */
HFSB_API hfsb_status hfsb_file_key(const hfsb_root *root, hfsb_str path,
                                   hfsb_buf *out, hfsb_err *err);

/* ---- reading ---- */

/* Opens a regular file for reading. The caller closes *fd, which is 3 or
   above, close-on-exec, and O_NONBLOCK, since a few files of /proc block. A
   device, FIFO or socket is refused without opening it, since it might never
   answer. On failure *fd is -1. info may be NULL. */
HFSB_API hfsb_status hfsb_file_open(const hfsb_root *root, hfsb_str path,
                                    int *fd, hfsb_file_info *info,
                                    hfsb_err *err);

/* Appends the whole content to *out. HFSB_LIMIT past out->max, or past max
   bytes (0: 1 GiB). Works for files of /proc, whose size reads as 0. On
   failure *out is unchanged. *info (may be NULL) describes the file read. */
HFSB_API hfsb_status hfsb_file_read(const hfsb_root *root, hfsb_str path,
                                    size_t max, hfsb_buf *out,
                                    hfsb_file_info *info, hfsb_err *err);

/* sha256 of the content in hexadecimal, in bounded memory. */
HFSB_API hfsb_status hfsb_file_sha256(const hfsb_root *root, hfsb_str path,
                                      char      hex[HFSB_SHA256_HEX],
                                      hfsb_err *err);

/* ---- writing ---- */

typedef struct hfsb_file_write_opts {
    hfsb_str if_sha256; /* fail unless the file has this sha256 (hex; empty:
                           no condition) */
    const hfsb_file_info *if_same; /* fail unless the file still has this
                                      inode, size and change times (NULL: no
                                      condition). A change within one tick of
                                      the file system's clock may go unnoticed;
                                      if_sha256 and if_content are exact */
    hfsb_str if_content; /* fail unless the file has this content (ptr NULL: no
                            condition); must stay valid until the commit */
    unsigned mode;       /* permission bits of the file (0: those it had; for a
                            new file 0666 less the umask) */
    bool     create;     /* fail if the file exists */
    bool     no_parents; /* do not create missing directories */
    bool     no_sync;    /* do not wait for the disk: a crash of the machine,
                            not of the process, may lose the content */
} hfsb_file_write_opts;

typedef struct hfsb_file_written {
    unsigned long long bytes;
    bool               created;  /* the file did not exist */
    bool               in_place; /* rewritten, not renamed: see below */
    hfsb_file_info     info;     /* of the file after the write */
} hfsb_file_written;

/* Writes a file whole or not at all: the bytes go to a temporary next to it,
   ".{name}.hfsb-{pid}-{n}", which is synced and renamed over the file; then
   the directory is synced. Readers, and the disk after a crash, have the old
   content or the new one. A symlink is kept: the file it points to is written.
   Mode, owner and extended attributes are kept.

   Where a rename would break something (several hard links, an owner or
   attribute that cannot be copied, a mount point, a directory without write
   permission) the file is rewritten in place, after the new bytes were written
   and synced elsewhere and space for them was reserved. If that fails halfway,
   the old bytes are put back.

   Refuses a directory, a device, FIFO or socket, and a file without write
   permission. No temporary is left on failure. Temporaries of dead processes
   are removed from the directory first; a root lists a directory again only if
   it has changed since the root's last write there, or after 60 s.
   Directories that were created stay, even on failure; none is created for a
   path that begins with "~".

   The conditions are checked, and the file replaced, under an exclusive
   flock() of its directory (and of the file when it is rewritten in place), so
   no other write of any thread or process gets in between.

   HFSB_STALE      the file is not the one of if_sha256, if_same or if_content
   HFSB_NOT_FOUND  ... or does not exist
   HFSB_EXISTS     the file exists, and `create` was set
   HFSB_BUSY       another program held that lock for about 2 s
   HFSB_ARG        if_sha256 is not a sha256
   opts and written may be NULL. On failure the file is unchanged, or the
   message says that it could not be restored. */
HFSB_API hfsb_status hfsb_file_write(const hfsb_root *root, hfsb_str path,
                                     hfsb_str                    content,
                                     const hfsb_file_write_opts *opts,
                                     hfsb_file_written          *written,
                                     hfsb_err                   *err);

/* The same for content that arrives in pieces. The file changes at commit. The
   root must stay open; opts and the data it points to need not stay valid.
   After a failure append and commit return the same status, and close() leaves
   no trace. close() is always the last call, even after commit. */
typedef struct hfsb_file_writer hfsb_file_writer;

HFSB_API hfsb_status hfsb_file_writer_open(const hfsb_root            *root,
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

/* Removes a regular file, or a symlink itself; nothing else. Takes the same
   lock as a write. */
HFSB_API hfsb_status hfsb_file_remove(const hfsb_root *root, hfsb_str path,
                                      hfsb_err *err);

/* ---- editing ---- */

/* Reads a file, applies the edits as hfsb_edit_apply() does, and writes it as
   hfsb_file_write() does: all of them or none. If another program writes the
   file meanwhile, the edits are applied to its content, so nothing is lost.
   opts may be NULL; opts->path names the file in the diff (empty: path).
   result may be NULL; otherwise free it with hfsb_edit_result_free(). Its
   memory comes from the root.

   HFSB_OK; HFSB_NOT_FOUND, HFSB_AMBIGUOUS, HFSB_REFUSED, HFSB_ARG as
   hfsb_edit_apply(); HFSB_STALE when others keep writing the file for about
   2 s; HFSB_LIMIT above 1 GiB; the failures of any path and of a write. On
   failure the file is unchanged, and *result is empty. */
HFSB_API hfsb_status hfsb_edit_file(const hfsb_root *root, hfsb_str path,
                                    const hfsb_edit *edits, size_t count,
                                    const hfsb_edit_opts *opts,
                                    hfsb_edit_result *result, hfsb_err *err);
