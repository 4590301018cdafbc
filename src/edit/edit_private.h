#pragma once

#include "../core/core_private.h"
#include "diff.h"
#include "edit.h"
#include "patch.h"

/* Private to the edit engine: folded views, line diffs, the search for a
   place, indentation, hints. For the files from diff.c to patch.c. */

/* ---- diff: lines ---- */

/* The lines of a text, without their LF. Behind the last LF there is a line
   only if something stands there: "a\n" is one line, "" is none. */
typedef struct hfsbi_lines {
    hfsb_str *items;
    size_t    count, cap;
} hfsbi_lines;

HFSBI_FN hfsb_status hfsbi_lines_split(const hfsb_alloc *alloc, hfsb_str text,
                                       hfsbi_lines *out);
HFSBI_FN void hfsbi_lines_free(const hfsb_alloc *alloc, hfsbi_lines *lines);

/* For each new line, in same[], the index of the old line that it is, or
   HFSB_NPOS when it is new. Indexes rise. Beyond 4 million cells between the
   common head and tail everything counts as changed. */
HFSBI_FN hfsb_status hfsbi_lines_diff(const hfsb_alloc *alloc,
                                      const hfsb_str   *old_lines,
                                      size_t            old_count,
                                      const hfsb_str   *new_lines,
                                      size_t new_count, size_t *same);

/* ---- view: a text as a rung sees it, with the way back ---- */

enum {
    HFSBI_FOLD_CR = 1,     /* a lone CR is a line's end too */
    HFSBI_FOLD_TRAIL = 2,  /* blanks before a line's end do not count */
    HFSBI_FOLD_LOOKS = 4,  /* Unicode look-alikes */
    HFSBI_FOLD_DASHES = 8, /* U+2014 is "--" (with LOOKS) */
    HFSBI_FOLD_RUNS = 16   /* a run of blanks inside a line is one */
};

/* Walks a text in folded units. CRLF is always one LF. */
typedef struct hfsbi_folder {
    hfsb_str text;
    size_t   pos; /* where the next unit starts */
    unsigned flags;
    bool     indent;  /* only blanks so far on this line */
    size_t   run_end; /* blanks up to here are known to stay one by one */
} hfsbi_folder;

typedef struct hfsbi_unit {
    size_t   start, len; /* the text's bytes */
    hfsb_str out;        /* what they are folded to; may be empty */
    char     bytes[4];   /* private */
} hfsbi_unit;

HFSBI_FN hfsbi_folder hfsbi_folder_make(hfsb_str text, unsigned flags);
HFSBI_FN bool hfsbi_folder_next(hfsbi_folder *folder, hfsbi_unit *unit);

/* True for space, tab and, with LOOKS, the look-alikes of a space; *len is
   the character's length. */
HFSBI_FN bool hfsbi_is_blank(hfsb_str text, size_t pos, unsigned flags,
                             size_t *len);

/* Length of the blanks that text begins with. */
HFSBI_FN size_t hfsbi_indent_len(hfsb_str text, unsigned flags);

/* True when text holds nothing but blanks and newlines. */
HFSBI_FN bool hfsbi_is_all_blank(hfsb_str text, unsigned flags);

/* text without up to *head blank lines at its start and *tail at its end; both
   become how many went. */
HFSBI_FN hfsb_str hfsbi_drop_edges(hfsb_str text, unsigned flags, size_t *head,
                                   size_t *tail);

/* Hash of a line without its indentation, and whether two such lines are the
   same, as the folds see them. */
HFSBI_FN unsigned long long hfsbi_fold_hash(hfsb_str line, unsigned flags);
HFSBI_FN bool hfsbi_fold_equal(hfsb_str a, hfsb_str b, unsigned flags);

/* Where folded text differs in length or bytes from the original. */
typedef struct hfsbi_piece {
    size_t view_pos, view_len;
    size_t text_pos, text_len;
} hfsbi_piece;

typedef struct hfsbi_view {
    hfsb_buf     text;
    hfsbi_piece *pieces;
    size_t       count, cap;
    bool         trimmed; /* blanks were dropped at the very end */
} hfsbi_view;

HFSBI_FN hfsb_status hfsbi_view_build(hfsbi_view *view, hfsb_str text,
                                      unsigned flags);
HFSBI_FN void        hfsbi_view_free(hfsbi_view *view);

/* The original offset of a match that starts (ends) at a view offset; false
   when that would split a character. `whole_line` takes the dropped blanks
   behind the end along. */
HFSBI_FN bool hfsbi_view_start(const hfsbi_view *view, size_t view_pos,
                               size_t *text_pos);
HFSBI_FN bool hfsbi_view_end(const hfsbi_view *view, size_t view_pos,
                             bool whole_line, size_t *text_pos);

/* ---- lines: of a file, and a sequence among them ---- */

/* The last line end that was looked up: many places on one long line ask for
   the same. */
typedef struct hfsbi_line_cache {
    size_t from, at, len;
    bool   filled;
} hfsbi_line_cache;

/* The text that is searched, and how its lines end. */
typedef struct hfsbi_file {
    hfsb_str text;   /* without a byte order mark */
    size_t   offset; /* of text in the file: 3 behind a mark, else 0 */
    bool     has_cr;
    bool     lone_cr;        /* lines end at CR: there is no LF */
    hfsbi_line_cache *cache; /* two, for the start and elsewhere, or NULL */
} hfsbi_file;

/* make() leaves the line ends unlooked at, as if all were LF: that is enough
   for text within a line. scan() looks. */
HFSBI_FN hfsbi_file hfsbi_file_make(hfsb_str content, bool keep_mark);
HFSBI_FN void       hfsbi_file_scan(hfsbi_file *file);

/* The line's end at or behind pos: its offset and length; len 0 at the end
   of the file. */
HFSBI_FN size_t hfsbi_file_line_end(const hfsbi_file *file, size_t pos,
                                    size_t *len);

/* The newline for text put in the place of what starts at pos: the first one
   at or behind pos, else the file's first, else empty. */
HFSBI_FN hfsb_str hfsbi_file_newline(const hfsbi_file *file, size_t pos);

/* Lines of a file, hashed behind their indentation as the folds see them. */
typedef struct hfsbi_row {
    size_t             start, text_end, end; /* end: behind the line end */
    unsigned long long hash;
} hfsbi_row;

typedef struct hfsbi_rows {
    hfsbi_row *items;
    size_t     count, cap;
} hfsbi_rows;

/* The lines of file->text [from, to), which begins a line. */
HFSBI_FN hfsb_status hfsbi_rows_of(const hfsb_alloc *alloc,
                                   const hfsbi_file *file, size_t from,
                                   size_t to, unsigned flags,
                                   hfsbi_rows *rows);
HFSBI_FN void hfsbi_rows_free(const hfsb_alloc *alloc, hfsbi_rows *rows);

/* The places, overlapping ones too, where the hashes of olds stand among rows
   (Knuth-Morris-Pratt). All-zero is the start; begin() can be called again
   and again. */
typedef struct hfsbi_row_search {
    const hfsbi_rows *olds, *rows;
    size_t           *fail; /* by old row: where to go on after it */
    size_t            cap;
    size_t            next, to; /* rows still to be looked at */
    size_t            matched;  /* old rows that fit so far */
} hfsbi_row_search;

/* Looks at rows [from, to). HFSB_OK or HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_row_search_begin(const hfsb_alloc *alloc,
                                            hfsbi_row_search *search,
                                            const hfsbi_rows *olds,
                                            const hfsbi_rows *rows,
                                            size_t from, size_t to);
HFSBI_FN bool hfsbi_row_search_next(hfsbi_row_search *search, size_t *at);
HFSBI_FN void hfsbi_row_search_free(const hfsb_alloc *alloc,
                                    hfsbi_row_search *search);

/* ---- match: the ladder ---- */

/* In the order they are tried. */
typedef enum hfsbi_rung {
    HFSBI_RUNG_NONE,
    HFSBI_RUNG_EXACT,  /* 1: line endings aside */
    HFSBI_RUNG_EOF,    /* 2: the last newline is missing in the file */
    HFSBI_RUNG_TRAIL,  /* 4 */
    HFSBI_RUNG_LOOKS,  /* 5 */
    HFSBI_RUNG_RUNS,   /* 6 */
    HFSBI_RUNG_INDENT, /* 7 */
    HFSBI_RUNG_EDGES,  /* 8 */
    HFSBI_RUNG_TOKENS  /* 9 */
} hfsbi_rung;

typedef struct hfsbi_match {
    size_t start, end;   /* in file->text */
    bool   drop_newline; /* old and new lose their last LF: the file ends */
    bool   overlaps;     /* another match begins inside it */
} hfsbi_match;

/* Where old text was found. */
typedef struct hfsbi_found {
    hfsbi_rung   rung;
    unsigned     flags; /* folds of that rung */
    hfsbi_match *items; /* not overlapping, in order */
    size_t       count, cap;
    bool         overlapping;          /* some match overlaps another */
    size_t       drop_head, drop_tail; /* blank lines dropped by rung 8 */
} hfsbi_found;

/* Searches for the bytes alone, rung 1 of a text within a line. */
HFSBI_FN hfsb_status hfsbi_match_bytes(const hfsb_alloc *alloc,
                                       const hfsbi_file *file,
                                       hfsb_str old_text, hfsbi_found *found);

/* Searches rung by rung; found->rung is HFSBI_RUNG_NONE when none matches.
   old_text has LF only and is not empty. HFSB_OK or HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_match_find(const hfsb_alloc *alloc,
                                      const hfsbi_file *file,
                                      hfsb_str old_text, bool exact,
                                      hfsbi_found *found);
HFSBI_FN void hfsbi_found_free(const hfsb_alloc *alloc, hfsbi_found *found);

/* ---- indent: from the caller's indentation to the file's ---- */

#define HFSBI_INDENT_DISTINCT 64

/* ---- compose: what is put in the place of a match ---- */

/* An old and a new text, LF only, line by line; made once for all places. */
typedef struct hfsbi_script {
    hfsb_str    old_text, new_text;
    hfsb_str    raw_new; /* as it was sent, for a file without newlines */
    hfsbi_lines olds, news;
    size_t     *same; /* of each new line: the old line that it is */
} hfsbi_script;

HFSBI_FN hfsb_status hfsbi_script_make(const hfsb_alloc *alloc,
                                       hfsb_str old_text, hfsb_str new_text,
                                       hfsb_str raw_new, hfsbi_script *script);
HFSBI_FN void hfsbi_script_free(const hfsb_alloc *alloc, hfsbi_script *script);

/* Appends to sink what replaces match (which grows when lines are deleted
   whole). *reindented is set when indentation was changed. HFSB_OK;
   HFSB_REFUSED when the indentation of a new line cannot be told: *line is
   that line of new_text (0-based); HFSB_NOMEM. sink->status is separate. */
HFSBI_FN hfsb_status hfsbi_compose_replace(const hfsb_alloc   *alloc,
                                           const hfsbi_file   *file,
                                           const hfsbi_found  *found,
                                           const hfsbi_script *script,
                                           hfsbi_match *match, hfsb_buf *sink,
                                           bool *reindented, size_t *line);

/* The same for text put behind (or before) match. */
HFSBI_FN hfsb_status hfsbi_compose_insert(
    const hfsb_alloc *alloc, const hfsbi_file *file, const hfsbi_found *found,
    const hfsbi_script *script, hfsbi_match match, bool before, hfsb_buf *sink,
    bool *reindented, size_t *line);

/* text with each LF replaced by newline (empty: left as it is). */
HFSBI_FN void hfsbi_put_newlines(hfsb_buf *sink, hfsb_str text,
                                 hfsb_str newline);

/* ---- screen: an edit before the search ---- */

/* text with CRLF (and, for a file of lone CRs, CR) as LF: a view of text
   itself, or of *copy when there was something to do. HFSB_OK or what the
   buffer says. */
HFSBI_FN hfsb_status hfsbi_fold_newlines(hfsb_str text, bool lone_cr,
                                         hfsb_buf *copy, hfsb_str *out);

/* How many lines of text begin as a numbered listing does ("12\t", "12|",
   "12 | ", "12: ", "12" and an arrow), and how many there are. */
typedef struct hfsbi_numbered {
    size_t lines, prefixed;
    bool   consecutive; /* all prefixed, alike, and counting up by one */
} hfsbi_numbered;

HFSBI_FN hfsbi_numbered hfsbi_numbered_scan(hfsb_str text);

/* Appends text without those prefixes. */
HFSBI_FN hfsb_status hfsbi_numbered_strip(hfsb_str text, hfsb_buf *out);

/* The first line of new_text that stands for code left out ("// ... existing
   code ...") and is neither in old_text nor in the file; empty for none. */
HFSBI_FN hfsb_str hfsbi_find_omission(hfsb_str new_text, hfsb_str old_text,
                                      hfsb_str file_text);

/* ---- hint: what a refusal says ---- */

typedef struct hfsbi_hint {
    const hfsb_alloc *alloc;
    const hfsbi_file *file;
    hfsb_str          old_text, new_text; /* LF only */
} hfsbi_hint;

/* Append to the message why old_text was not found, or where it was. Without
   memory they say less. */
HFSBI_FN void hfsbi_hint_not_found(const hfsbi_hint *hint, hfsb_err *err);
HFSBI_FN void hfsbi_hint_ambiguous(const hfsbi_hint  *hint,
                                   const hfsbi_found *found, hfsb_err *err);

/* ---- patch: its sections and hunks ---- */

/* The lines of a patch without their ends, CR included. */
typedef struct hfsbi_patch_text {
    hfsbi_lines lines;
    size_t      first; /* first line behind *** Begin Patch */
    size_t      last;  /* the line of *** End Patch */
} hfsbi_patch_text;

typedef struct hfsbi_section {
    hfsb_patch_kind kind;
    hfsb_str        path, new_path;
    size_t          from, to; /* its lines behind the head lines */
} hfsbi_section;

/* Lines of the patch: [anchors, body) begin with @@, [body, end) are the
   hunk; next is where the next one begins. */
typedef struct hfsbi_chunk {
    size_t anchors, body, end, next;
    bool   at_eof;
} hfsbi_chunk;

HFSBI_FN hfsb_status hfsbi_patch_open(const hfsb_alloc *alloc, hfsb_str patch,
                                      hfsbi_patch_text *text, hfsb_err *err);

/* The section that begins at *line, which moves behind it. Its hunks have been
   checked. */
HFSBI_FN hfsb_status hfsbi_patch_section(const hfsbi_patch_text *text,
                                         size_t *line, hfsbi_section *section,
                                         hfsb_err *err);

/* The hunk that begins at line `from` of an Update section. */
HFSBI_FN hfsb_status hfsbi_patch_chunk(const hfsbi_patch_text *text,
                                       const hfsbi_section    *section,
                                       size_t from, hfsbi_chunk *chunk,
                                       hfsb_err *err);
