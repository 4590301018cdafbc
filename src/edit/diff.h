#pragma once

/* ==== DIFF: unified diffs of known changes ============================== */

#include "../core/base.h"

/* A change between two texts: bytes [old_start, old_start + old_len) of the
   old text became [new_start, new_start + new_len) of the new one. */
typedef struct hfsb_span {
    size_t old_start, old_len;
    size_t new_start, new_len;
    size_t first_line, last_line; /* of the new text, 1-based; first_line 0:
                                     unknown, counted when needed */
} hfsb_span;

typedef struct hfsb_diff_opts {
    hfsb_str path;      /* for the header lines: "/f" as a//f (none: "file") */
    hfsb_str old_path;  /* of the old text (empty: the same) */
    size_t   context;   /* unchanged lines around a change (0: 3) */
    size_t   max_bytes; /* stop after about this many (0: 64 KiB) */
} hfsb_diff_opts;

/* Appends a unified diff from old_text to new_text, given the changes in order
   and not overlapping. Appends nothing if the texts are equal. `patch` and,
   for a relative path, `git apply` accept the diff unless it was cut at
   max_bytes: then it ends with a line "... (diff cut)" and *cut (may be NULL)
   is true. HFSB_OK;
   HFSB_NOMEM or HFSB_LIMIT with *out unchanged. */
HFSB_API hfsb_status hfsb_diff_unified(hfsb_str old_text, hfsb_str new_text,
                                       const hfsb_span *spans, size_t count,
                                       const hfsb_diff_opts *opts,
                                       hfsb_buf *out, bool *cut);
