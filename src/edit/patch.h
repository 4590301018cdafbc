#pragma once

/* ==== PATCH: parse and apply patches in three formats =================== */

#include "../core/base.h"
#include "edit.h"

/*     *** Begin Patch
       *** Add File: path            lines that all begin with "+"
       *** Delete File: path
       *** Update File: path
       *** Move to: other/path       (optional)
       @@ class Base:                (optional; several narrow the place)
        context
       -removed
       +added
       *** End of File               (optional: the lines end the file)
       *** End Patch

       --- a/path                    unified diffs, git's too; /dev/null adds
       +++ b/path                    or deletes; line numbers only choose
       @@ -7,3 +7,4 @@               among several matches
        context, -removed, +added

       path                          SEARCH/REPLACE blocks
       <<<<<<< SEARCH
       old lines                     (none: a new file)
       =======
       new lines
       >>>>>>> REPLACE

   Each may be wrapped in a ``` fence or a heredoc.                        */

typedef enum hfsb_patch_kind {
    HFSB_PATCH_ADD,
    HFSB_PATCH_DELETE,
    HFSB_PATCH_UPDATE
} hfsb_patch_kind;

/* One section of a patch and its result. */
typedef struct hfsb_patch_change {
    hfsb_patch_kind kind;
    hfsb_str        path;      /* a view of the patch */
    hfsb_str        new_path;  /* of a move, else empty; a view of the patch. A
                                 move onto itself is dropped */
    hfsb_buf        content;   /* of the new or updated file */
    hfsb_buf        diff;      /* unified, up to 64 KiB */
    char            note[256]; /* "" if every hunk matched exactly, else the
                                  difference that was ignored, as in
                                  hfsb_edit_result */
    bool            proven;    /* the old lines of each hunk, 8 visible
                               characters or more, or all lines of a deleted
                               file, matched exactly and only once: the author
                               knows what the patch changes */
    hfsb_buf        from, to;  /* private: both clean paths */
} hfsb_patch_change;

/* The changes of a patch, to be carried out in order. */
typedef struct hfsb_patch_result {
    hfsb_patch_change *changes;
    size_t             count;
    size_t             cap;   /* private */
    bool               fuzzy; /* some hunk did not match exactly */
    hfsb_alloc         alloc; /* set it before the call, or leave it zero */
} hfsb_patch_result;

/* How the patch reads files. read() appends the content of path to *out and
   returns HFSB_OK, HFSB_NOT_FOUND if the file does not exist, or any other
   status, with *err, if it cannot be read. */
typedef struct hfsb_patch_files {
    hfsb_status (*read)(void *user, hfsb_str path, hfsb_buf *out,
                        hfsb_err *err);
    void           *user;
    hfsb_edit_names names; /* in messages (0: keys) */
} hfsb_patch_files;

/* Computes all changes of a patch in memory; nothing is written. Later
   sections see the files as earlier ones leave them. The old lines of a hunk
   are found as by hfsb_edit_apply(), as whole lines after the preceding hunk;
   context lines keep the file's bytes, added lines take its line endings and,
   where the hunk is indented differently, its indentation.

   HFSB_OK
   HFSB_SYNTAX     the patch is malformed; err->line is the line in it
   HFSB_IO         a file to update or delete does not exist
   HFSB_NOT_FOUND  a hunk does not match its file
   HFSB_AMBIGUOUS  a hunk matches more than one place
   HFSB_REFUSED    an empty patch; a hunk that changes nothing, is already
                   applied, contains a placeholder for omitted code or cannot
                   be indented; an Add or Move onto a file that exists
   HFSB_NOMEM, HFSB_LIMIT, or the status of read()
   On failure *result is empty. `patch` must live as long as *result; free that
   with hfsb_patch_free(). */
HFSB_API hfsb_status hfsb_patch_apply(hfsb_str                patch,
                                      const hfsb_patch_files *files,
                                      hfsb_patch_result      *result,
                                      hfsb_err               *err);

/* Frees the changes; *result is then empty and keeps its alloc. */
HFSB_API void hfsb_patch_free(hfsb_patch_result *result);
