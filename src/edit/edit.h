#pragma once

/* ==== EDIT: replace text in a file the way a careful engineer would ===== */

#include "../core/base.h"
#include "diff.h"
#include "../core/json.h"

typedef enum hfsb_edit_mode {
    HFSB_EDIT_REPLACE,       /* new_str takes the place of old_str */
    HFSB_EDIT_APPEND_AFTER,  /* new_str is put behind old_str */
    HFSB_EDIT_PREPEND_BEFORE /* new_str is put before old_str */
} hfsb_edit_mode;

/* One edit. All-zero but for the two texts is what is usually wanted. */
typedef struct hfsb_edit {
    hfsb_str       old_str;
    hfsb_str       new_str;
    hfsb_edit_mode mode;
    bool           replace_all; /* every place, not the only one */
    bool           exact;       /* to the letter, line endings aside; nor is
                                   new_str checked for omissions ("...") */
    size_t         line;        /* of several exact matches, the one that
                                   starts on this 1-based line, or the only
                                   one within 3 lines of it (0: no hint) */
} hfsb_edit;

/* Reads the name of a mode as tools use it: "replace", "append_after",
   "prepend_before" and "replace_all", which also sets edit->replace_all.
   HFSB_OK, or HFSB_ARG and *edit as it was. */
HFSB_API hfsb_status hfsb_edit_set_mode(hfsb_edit *edit, hfsb_str name,
                                        hfsb_err *err);

/* Reads an edit from a tool's arguments: old_str and new_str (required), mode,
   replace_all, exact, line; other keys are not looked at. The mode
   "replace_all" wins over replace_all: false. Keys that are absent leave
   *edit as it was, so set defaults first. HFSB_OK, or HFSB_ARG with a message
   that names the key; the texts show the document's bytes. */
HFSB_API hfsb_status hfsb_edit_from_json(const hfsb_json_value *arguments,
                                         hfsb_edit *edit, hfsb_err *err);

typedef struct hfsb_edit_opts {
    hfsb_str path;     /* of the file, for messages and the diff; in .md and
                          .txt an omission line is ordinary text */
    size_t   max_diff; /* bytes of diff (0: 64 KiB) */
    bool     no_diff;
} hfsb_edit_opts;

/* What an edit did. */
typedef struct hfsb_edit_result {
    size_t     count;     /* replacements or insertions made */
    hfsb_span *spans;     /* where, in order, one for each of them */
    char       note[256]; /* "" when every match was exact, else what was
                             relaxed: "(matched after ...)" */
    hfsb_buf   diff;      /* unified */
    bool       diff_cut;
} hfsb_edit_result;

/* Applies `count` edits to content and appends the new content to *out. Each
   old_str is looked for in the content as given, by a ladder of nine rungs
   from exact to "the indentation differs"; the first rung that matches must
   match one place only, or all places are meant (replace_all). The places of
   several edits must not overlap. All edits are made or none.

   Bytes outside the places in result->spans do not change; new text takes the
   line endings of the lines it replaces.

   result may be NULL; otherwise it is filled on success, with memory of
   out->alloc: give it back with hfsb_edit_result_free().

   HFSB_OK
   HFSB_NOT_FOUND  the message shows the closest lines and what differs
   HFSB_AMBIGUOUS  the message lists the places
   HFSB_REFUSED    nothing to change, an empty old_str, an omission in new_str,
                   an insertion that is there already, overlapping edits ...
   HFSB_ARG        no edits, or a mode that does not exist
   HFSB_NOMEM, HFSB_LIMIT
   On failure *out is as it was and *result is empty. Messages are meant for
   the model that sent the edit. */
HFSB_API hfsb_status hfsb_edit_apply(hfsb_str content, const hfsb_edit *edits,
                                     size_t count, const hfsb_edit_opts *opts,
                                     hfsb_buf *out, hfsb_edit_result *result,
                                     hfsb_err *err);

HFSB_API void hfsb_edit_result_free(hfsb_edit_result *result);
