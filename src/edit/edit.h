#pragma once

/* ==== EDIT: replace text where old_str can only mean one place ========== */

#include "../core/base.h"
#include "diff.h"
#include "../core/json.h"

typedef enum hfsb_edit_mode {
    HFSB_EDIT_REPLACE,       /* new_str replaces old_str */
    HFSB_EDIT_APPEND_AFTER,  /* new_str is inserted after old_str */
    HFSB_EDIT_PREPEND_BEFORE /* new_str is inserted before old_str */
} hfsb_edit_mode;

/* One edit. Usually only the two texts are set, the rest is zero. */
typedef struct hfsb_edit {
    hfsb_str       old_str;
    hfsb_str       new_str;
    hfsb_edit_mode mode;
    bool           replace_all; /* change every match, not only a single one */
    bool           exact;       /* match exactly except for line endings, and
                                   take new_str literally: do not check it for
                                   omissions ("...") or diffs, and keep nothing
                                   that it lacks */
    size_t         line;        /* of several exact matches, take the one that
                                   starts on this 1-based line, or the only
                                   one within 3 lines of it (0: unset) */
} hfsb_edit;

/* Sets the mode by its name: "replace", "append_after", "prepend_before", or
   "replace_all", which also sets edit->replace_all. HFSB_OK, or HFSB_ARG with
   *edit unchanged. */
HFSB_API hfsb_status hfsb_edit_set_mode(hfsb_edit *edit, hfsb_str name,
                                        hfsb_err *err);

/* Reads an edit from the arguments of a tool: old_str and new_str (required),
   mode, replace_all, exact, line; other keys are ignored. The mode
   "replace_all" overrides replace_all: false. An absent key leaves its field
   unchanged, so set defaults first. The texts are views of the document's
   bytes. HFSB_OK, or HFSB_ARG with *edit unchanged and a message that names
   the key. */
HFSB_API hfsb_status hfsb_edit_from_json(const hfsb_json_value *arguments,
                                         hfsb_edit *edit, hfsb_err *err);

/* How messages name the arguments of an edit: as the keys of a tool, or as the
   options of `hfsb edit`. hfsb_call_opts sets it for other tools, too. */
typedef enum hfsb_edit_names {
    HFSB_EDIT_NAMES_KEYS, /* old_str, replace_all=true, read with offset=3 */
    HFSB_EDIT_NAMES_FLAGS /* --old, --replace-all, hfsb read --offset 3 */
} hfsb_edit_names;

typedef struct hfsb_edit_opts {
    hfsb_str path;     /* of the file, for the diff; in .md and .txt files an
                          omission line is ordinary text */
    size_t   max_diff; /* bytes of diff (0: 64 KiB) */
    bool     no_diff;
    hfsb_edit_names names; /* in messages and in the note (0: keys) */
} hfsb_edit_opts;

/* The changes an edit made. */
typedef struct hfsb_edit_result {
    size_t     count;     /* number of replacements or insertions */
    hfsb_span *spans;     /* one for each, in order */
    char       note[256]; /* "" if every edit was applied literally, else the
                             difference that was ignored: "(matched after
                             ...)", "(kept the line end after new_str)" */
    hfsb_buf   diff;      /* unified */
    bool       diff_cut;
} hfsb_edit_result;

/* Applies `count` edits to content and appends the new content to *out. Each
   old_str is searched for in the original content, by a ladder of rungs from
   an exact match to one that ignores indentation and blank lines. The first
   rung that matches decides: it must match exactly one place unless
   replace_all is set. Two edits must not change the same lines. Either all
   edits are made or none.

   Bytes outside result->spans do not change; new text takes the line endings
   of the lines it replaces. Where old_str is exact but replacing it literally
   would join lines, double the end of a line, or double or drop indentation,
   new_str is inserted as it was meant, and the note reports that.

   result may be NULL; otherwise it is filled on success, with memory from
   out->alloc. Free it with hfsb_edit_result_free().

   HFSB_OK
   HFSB_NOT_FOUND  the message shows the closest lines and what differs
   HFSB_AMBIGUOUS  the message lists the places
   HFSB_REFUSED    nothing to change, an empty old_str, an omission or a diff
                   in new_str, an insertion that is already there, overlapping
                   edits ...
   HFSB_ARG        no edits, or an unknown mode
   HFSB_NOMEM, HFSB_LIMIT
   On failure *out is unchanged and *result is empty. Messages are written for
   the model that sent the edit. */
HFSB_API hfsb_status hfsb_edit_apply(hfsb_str content, const hfsb_edit *edits,
                                     size_t count, const hfsb_edit_opts *opts,
                                     hfsb_buf *out, hfsb_edit_result *result,
                                     hfsb_err *err);

/* Frees spans and diff; *result is all-zero afterwards. */
HFSB_API void hfsb_edit_result_free(hfsb_edit_result *result);
