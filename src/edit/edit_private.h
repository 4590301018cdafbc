#pragma once

#include "../core/core_private.h"
#include "diff.h"
#include "edit.h"
#include "patch.h"

/* Private to the edit engine: folds and views, the search for a place, the
   new text, refusals, line diffs, the sections of a patch. */

/* ---- diff.c: lines ---- */

/* The lines of a text, without their LF. Text after the last LF is a line of
   its own: "a\n" has one line, "" has none. */
typedef struct hfsbi_lines {
    hfsb_str *items;
    size_t    count, cap;
} hfsbi_lines;

/* HFSB_OK or HFSB_NOMEM. The lines show the bytes of text. */
HFSBI_FN hfsb_status hfsbi_lines_split(const hfsb_alloc *alloc, hfsb_str text,
                                       hfsbi_lines *out);
HFSBI_FN void hfsbi_lines_free(const hfsb_alloc *alloc, hfsbi_lines *lines);

/* Sets same[j], for each new line j, to the index of the equal old line it is
   paired with, or to HFSB_NPOS for a new line. Indexes ascend. If more than
   4 million pairs lie between the common head and tail, every line there
   counts as changed. HFSB_OK or HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_lines_diff(const hfsb_alloc *alloc,
                                      const hfsb_str   *old_lines,
                                      size_t            old_count,
                                      const hfsb_str   *new_lines,
                                      size_t new_count, size_t *same);

/* hfsb_diff_unified() for two texts whose changes are not known. */
HFSBI_FN hfsb_status hfsbi_diff_texts(hfsb_str old_text, hfsb_str new_text,
                                      const hfsb_diff_opts *opts,
                                      hfsb_buf *out, bool *cut);

/* ---- fold.c: folds ---- */

/* A fold is a kind of difference that matching ignores. CRLF is
   always folded to LF. */
enum {
    HFSBI_FOLD_CR = 1,      /* a lone CR ends a line, like LF */
    HFSBI_FOLD_TRAIL = 2,   /* blanks before a line's end vanish */
    HFSBI_FOLD_LOOKS = 4,   /* Unicode look-alikes become ASCII */
    HFSBI_FOLD_DASHES = 8,  /* U+2014 becomes "--", not "-" (with LOOKS) */
    HFSBI_FOLD_RUNS = 16,   /* a run of blanks inside a line becomes a space */
    HFSBI_FOLD_INDENT = 32, /* blanks at a line's start vanish */
    HFSBI_FOLD_LINES = 64,  /* blank lines vanish (with INDENT and TRAIL) */
    HFSBI_FOLD_JOINERS = 128 /* joiners, marks and soft hyphens vanish */
};

/* Walks a text one folded character at a time. */
typedef struct hfsbi_folder {
    hfsb_str text;
    size_t   pos; /* start of the next character */
    unsigned folds;
    size_t   line;    /* start of the current line */
    bool     indent;  /* nothing visible on this line so far */
    size_t   run_end; /* blanks before this offset stay as they are */
} hfsbi_folder;

/* One step of a folder: bytes of the text, and what they become. */
typedef struct hfsbi_folded {
    size_t   start, len;
    hfsb_str out;      /* may be empty: the bytes vanish */
    char     bytes[4]; /* private */
} hfsbi_folded;

HFSBI_FN hfsbi_folder hfsbi_folder_make(hfsb_str text, unsigned folds);

/* False at the end of the text. */
HFSBI_FN bool hfsbi_folder_next(hfsbi_folder *folder, hfsbi_folded *step);

/* Appends the folded text; the caller checks out->status. */
HFSBI_FN void hfsbi_fold(hfsb_str text, unsigned folds, hfsb_buf *out);

/* True for a space, a tab and, with LOOKS, the look-alikes of a space; *len is
   the length of that character. */
HFSBI_FN bool hfsbi_blank_at(hfsb_str text, size_t pos, unsigned folds,
                             size_t *len);

/* Length of the blanks at the start of text. */
HFSBI_FN size_t hfsbi_indent_len(hfsb_str text, unsigned folds);

/* True when text contains a character that LOOKS or JOINERS drop. */
HFSBI_FN bool hfsbi_has_invisible(hfsb_str text);

/* True when text contains only blanks and line ends. */
HFSBI_FN bool hfsbi_is_all_blank(hfsb_str text, unsigned folds);

/* Removes up to *head blank lines from the start of text and *tail from its
   end; sets both to the number removed. */
HFSBI_FN hfsb_str hfsbi_drop_edges(hfsb_str text, unsigned folds, size_t *head,
                                   size_t *tail);

/* ---- fold.c: views ---- */

/* A part of a text that the view changed. */
typedef struct hfsbi_view_change {
    size_t view_pos, view_len;
    size_t text_pos, text_len;
} hfsbi_view_change;

/* A folded text that maps back to the bytes of the original. The view adds LFs
   of its own, so that every line starts after a LF and ends at one:

       original     |  if x: \r\n|    go|
       TRAIL        \n|  if x:\n|    go|\n
       TRAIL+INDENT \n|if x:\n|go|\n
       ... +LINES   the same, without the blank lines

   With INDENT, which is for whole lines, the LF at the end is only added to a
   text that lacks it. All-zero except for text.alloc is ready to use. */
typedef struct hfsbi_view {
    hfsb_buf           text;
    hfsbi_view_change *changes;
    size_t             count, cap;
    bool               trimmed; /* blanks vanished at the very end */
    bool               closed;  /* the LF at the end was added */
} hfsbi_view;

/* HFSB_OK, HFSB_NOMEM or HFSB_LIMIT. Can be called again for another text. */
HFSBI_FN hfsb_status hfsbi_view_build(hfsbi_view *view, hfsb_str text,
                                      unsigned folds);
HFSBI_FN void        hfsbi_view_free(hfsbi_view *view);

/* The original offset of a view offset, before or after the characters that
   vanished there. False when the offset is inside a changed character. */
HFSBI_FN bool hfsbi_view_before(const hfsbi_view *view, size_t view_pos,
                                size_t *text_pos);
HFSBI_FN bool hfsbi_view_after(const hfsbi_view *view, size_t view_pos,
                               size_t *text_pos);

/* ---- fold.c: all places of a pattern ---- */

/* All places of a pattern, including overlapping ones, found in linear time
   overall. Set text and pattern, which is not empty; leave the rest 0. */
typedef struct hfsbi_occurrences {
    hfsb_str     text, pattern;
    size_t       at, gap; /* private: the last place, and its distance to the
                             one before (0: unknown) */
    hfsbi_needle needle;  /* private: the pattern */
} hfsbi_occurrences;

/* The first place at or after `from`, or HFSB_NPOS. `from` is 0 in the first
   call and after the last place in the others. */
HFSBI_FN size_t hfsbi_occurrence_next(hfsbi_occurrences *occurrences,
                                      size_t             from);

/* ---- fold.c: the edited file ---- */

/* The text that is searched, and how its lines end. */
typedef struct hfsbi_edit_text {
    hfsb_str text;   /* without a byte order mark */
    size_t   offset; /* of text in the file: 3 after a mark, else 0 */
    bool     has_cr;
    bool     lone_cr;  /* lines end at CR: there is no LF */
    bool     mixed_cr; /* lines end at LF, CRLF or CR; scan() never sets it */
} hfsbi_edit_text;

/* make() assumes that every line ends in LF, which is enough for edits within
   a line; scan() detects the line ends. */
HFSBI_FN hfsbi_edit_text hfsbi_edit_text_make(hfsb_str content,
                                              bool     keep_mark);
HFSBI_FN void            hfsbi_edit_text_scan(hfsbi_edit_text *file);

/* Offset and length of the first line end at or after pos; len 0 at the end
   of the file. */
HFSBI_FN size_t hfsbi_edit_line_end(const hfsbi_edit_text *file, size_t pos,
                                    size_t *len);

/* True when a line starts at pos, or, in the second, when nothing but blanks
   precedes pos on its line. */
HFSBI_FN bool hfsbi_starts_line(const hfsbi_edit_text *file, size_t pos);
HFSBI_FN bool hfsbi_starts_text(const hfsbi_edit_text *file, size_t pos);

/* The line end for text inserted at pos: the first at or after pos, else the
   first of the file, else empty. */
HFSBI_FN hfsb_str hfsbi_newline_at(const hfsbi_edit_text *file, size_t pos);

/* text with LF for every line end of the file: text itself, or a copy that is
   appended to *copy; the caller checks copy->status. */
HFSBI_FN hfsb_str hfsbi_fold_newlines(const hfsbi_edit_text *file,
                                      hfsb_str text, hfsb_buf *copy);

/* Number of lines that end in text. */
HFSBI_FN size_t hfsbi_count_lines(const hfsbi_edit_text *file, hfsb_str text);

/* ---- match.c: the ladder ---- */

/* In the order they are tried; the numbers are those of the table in edit.c,
   where 3 is the removal of line numbers. match.c has the folds and the words
   of each; rewrite.c compares rungs by their order. */
typedef enum hfsbi_rung {
    HFSBI_RUNG_NONE,
    HFSBI_RUNG_EXACT,  /* 1 */
    HFSBI_RUNG_EOF,    /* 2 */
    HFSBI_RUNG_TRAIL,  /* 4 */
    HFSBI_RUNG_LOOKS,  /* 5 */
    HFSBI_RUNG_RUNS,   /* 6 */
    HFSBI_RUNG_INDENT, /* 7 */
    HFSBI_RUNG_EDGES,  /* 8 */
    HFSBI_RUNG_BLANKS, /* 9 */
    HFSBI_RUNG_LINES,  /* 10 */
    HFSBI_RUNGS        /* their number */
} hfsbi_rung;

/* What a rung is called in messages. */
typedef struct hfsbi_rung_words {
    const char *note; /* in the report of an edit; NULL: none */
    const char *how;  /* in a refusal: "It matches {how} at:" */
} hfsbi_rung_words;

HFSBI_FN const hfsbi_rung_words *hfsbi_rung_words_of(hfsbi_rung rung);

typedef struct hfsbi_match {
    size_t start, end;         /* in file->text */
    bool   lacks_newline;      /* the last LF of old_text is not in the file */
    bool   lacks_blank;        /* nor the blank line that ends old_text */
    bool   overlaps;           /* another match starts inside this one */
    size_t text_pos, text_len; /* of the text that replaces it */
} hfsbi_match;

/* The places of an old text, all found by the same rung. */
typedef struct hfsbi_matches {
    hfsbi_rung   rung;
    unsigned     folds; /* of that rung */
    hfsbi_match *items; /* in order, not overlapping */
    size_t       count, cap;
    bool         overlapping;          /* some match overlaps another */
    size_t       drop_head, drop_tail; /* blank lines dropped by 8 and 10 */
} hfsbi_matches;

HFSBI_FN void hfsbi_matches_free(const hfsb_alloc *alloc,
                                 hfsbi_matches    *matches);

enum {
    HFSBI_MATCH_EXACT = 1,
    HFSBI_MATCH_LOOSE = 2,
    HFSBI_MATCH_HIDDEN = 4,
    HFSBI_MATCH_LINES = 8, /* only where a line starts */
    HFSBI_MATCH_TWO = 16   /* stop at the second match */
};

/* Climbs rungs 1 and 2 (EXACT), the others (LOOSE), or all of them. With
   HIDDEN a place that only a joiner, a mark or a soft hyphen keeps from
   matching counts as a loose match: it may be the one that is meant. old_text
   has LF only and is not empty; with LINES it ends in LF. matches->count is 0
   when no rung matches. HFSB_OK, HFSB_NOMEM or HFSB_LIMIT; free *matches in
   each case. */
HFSBI_FN hfsb_status hfsbi_match_find(const hfsb_alloc      *alloc,
                                      const hfsbi_edit_text *file,
                                      hfsb_str old_text, unsigned rungs,
                                      hfsbi_matches *matches);

/* ---- indent.c: the indentation of new lines ---- */

/* A line of the old text as the match shows it. */
typedef struct hfsbi_old_line {
    hfsb_str text, end;   /* the file's line and line end; empty at the last */
    hfsb_str indent;      /* of the old text; ptr NULL for a blank line */
    hfsb_str file_indent; /* of the file */
} hfsbi_old_line;

/* How the indentation of the old text became that of the file. */
typedef enum hfsbi_indent_rule {
    HFSBI_INDENT_NONE,
    HFSBI_INDENT_SAME,
    HFSBI_INDENT_ADD,    /* the file has one more prefix everywhere */
    HFSBI_INDENT_REMOVE, /* the old text has one more prefix everywhere */
    HFSBI_INDENT_UNITS,  /* levels of one unit became levels of another */
    HFSBI_INDENT_TABLE,  /* no rule, but each maps to one other: look it up */
    HFSBI_INDENT_MIXED   /* the same, or tabs for spaces, except one line */
} hfsbi_indent_rule;

/* UNITS: one unit for the levels of each side; 0: a tab, else spaces. */
typedef struct hfsbi_indent_unit_map {
    size_t old_unit, file_unit; /* of MIXED, too */
    long   shift;               /* levels added */
    bool   varied;              /* not all lines are on one level */
    size_t support;             /* indented lines that show the units */
} hfsbi_indent_unit_map;

/* MIXED: how many lines are converted, and how many kept. */
typedef struct hfsbi_indent_mix {
    size_t converted; /* lines with tabs for spaces */
    size_t kept, kept_tabs, kept_spaces;
    long   deepest;   /* level of those converted */
    bool   level_off; /* one line is off by a step of the file */
} hfsbi_indent_mix;

#define HFSBI_INDENT_DISTINCT 64

/* The distinct indentations of the old text, each by a line that has it. */
typedef struct hfsbi_indent_table {
    size_t line[HFSBI_INDENT_DISTINCT];
    bool   torn[HFSBI_INDENT_DISTINCT]; /* it became two or more */
    size_t count;
} hfsbi_indent_table;

typedef struct hfsbi_indent_map {
    const hfsbi_old_line *lines;
    size_t                count;
    unsigned long long    steps; /* bit n: the file's lines step by n */
    hfsbi_indent_rule     rule;
    bool                  may_derive; /* also for indents not in old_text */
    bool                  flat;       /* no line of old_text is indented */
    hfsb_str              prefix;     /* of ADD and REMOVE */
    hfsbi_indent_unit_map units;
    hfsbi_indent_mix      mix;
    hfsbi_indent_table    table;
} hfsbi_indent_map;

/* The indentation of a line; ptr NULL for a blank line. */
HFSBI_FN hfsb_str hfsbi_indent_of(hfsb_str line, unsigned folds);

/* True when one consists of tabs and the other of spaces. */
HFSBI_FN bool hfsbi_indent_mixes(hfsb_str a, hfsb_str b);

/* Finds the rule that explains all lines; news are the lines of new_text.
   *steps, 0 at first, caches those of the file for the next match. */
HFSBI_FN void hfsbi_indent_map_make(hfsbi_indent_map     *map,
                                    const hfsbi_old_line *lines, size_t count,
                                    const hfsbi_lines *news, unsigned folds,
                                    const hfsbi_edit_text *file,
                                    unsigned long long    *steps);

/* Appends the file's indentation for `indent`; false, and nothing appended,
   when that is not clear. near_off: an unchanged line next to this one has the
   same indentation, but a different one in the file. */
HFSBI_FN bool hfsbi_indent_put(const hfsbi_indent_map *map, hfsb_str indent,
                               bool near_off, hfsb_buf *out);

/* True when the file indents a line by a level more or less: by a tab, or by a
   step that its lines take. False for a slip of a blank or two. */
HFSBI_FN bool hfsbi_is_level_off(unsigned long long    steps,
                                 const hfsbi_old_line *line);

/* Sets *line to the first line of news that differs from a line of olds only
   in indentation, with nothing before it that explains the shift: the two
   texts are then indented differently. HFSB_NPOS if not found. HFSB_OK or
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_indent_shifted(const hfsb_alloc  *alloc,
                                          const hfsbi_lines *olds,
                                          const hfsbi_lines *news,
                                          unsigned folds, size_t *line);

/* ---- mend.c: blank lines ---- */

/* Which lines of new_text are lines of old_text, as in hfsbi_lines_diff(). */
typedef struct hfsbi_line_pairs {
    const size_t *same;
    size_t        old_count, new_count;
} hfsbi_line_pairs;

/* The texts of an edit. */
typedef struct hfsbi_edit_texts {
    hfsb_edit_mode          mode;
    hfsb_str                old_text, new_text; /* LF only */
    hfsb_str                raw_new; /* as sent, for a file without newlines */
    const hfsbi_line_pairs *pairs;   /* NULL: found by a line diff */
    bool verbatim; /* look-alikes of a changed line are meant as sent */
} hfsbi_edit_texts;

/* Gives both texts the blank lines of the match, where theirs differ and
   new_text did not change them. copies then holds the texts. HFSB_OK;
   HFSB_REFUSED when it is not clear how many blank lines belong before *line
   of new_text; HFSB_NOMEM, HFSB_LIMIT. */
HFSBI_FN hfsb_status hfsbi_mend_blank_lines(const hfsb_alloc      *alloc,
                                            const hfsbi_edit_text *file,
                                            const hfsbi_match     *match,
                                            unsigned               folds,
                                            hfsbi_edit_texts      *texts,
                                            hfsb_buf *copies, size_t *line);

/* ---- rewrite.c: the text that replaces a match ---- */

typedef struct hfsbi_rewritten {
    bool   reindented;  /* the indentation of a new line was changed */
    size_t match;       /* that was refused */
    size_t line;        /* of new_text, 0-based: why it was refused */
    bool   blank_lines; /* not its indentation, but those before it */
} hfsbi_rewritten;

/* Appends the texts that replace the matches to *out and records in each match
   where its text is. A match shrinks to a point for an insertion and grows
   where whole lines are deleted. HFSB_OK; HFSB_REFUSED when the indentation of
   a new line, or the blank lines before it, cannot be derived; HFSB_NOMEM,
   HFSB_LIMIT. */
HFSBI_FN hfsb_status hfsbi_rewrite_matches(const hfsb_alloc       *alloc,
                                           const hfsbi_edit_text  *file,
                                           const hfsbi_edit_texts *texts,
                                           hfsbi_matches          *matches,
                                           hfsb_buf               *out,
                                           hfsbi_rewritten        *result);

/* Appends text with each LF replaced by newline (empty: left as it is). */
HFSBI_FN void hfsbi_put_newlines(hfsb_buf *out, hfsb_str text,
                                 hfsb_str newline);

/* ---- edit.c: checks that hunks of a patch need too ---- */

/* True for .md and .txt files, where an omission line is ordinary text. */
HFSBI_FN bool hfsbi_is_prose(hfsb_str path);

/* Number of characters that are not blank. */
HFSBI_FN size_t hfsbi_count_visible(hfsb_str s);

/* Sets *pos to the offset of new_text in the file if an exact match shows that
   the change was made before, else to HFSB_NPOS. HFSB_OK or HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_find_applied(const hfsb_alloc       *alloc,
                                        const hfsbi_edit_text  *file,
                                        const hfsbi_edit_texts *texts,
                                        const hfsbi_match *match, size_t *pos);

/* ---- intent.c: texts that are not meant literally ---- */

/* The first line of new_text that is a placeholder for omitted code ("// ...
   existing code ...") and is neither in old_text nor in the file; empty if
   none. */
HFSBI_FN hfsb_str hfsbi_find_omission(hfsb_str new_text, hfsb_str old_text,
                                      hfsb_str file_text);

/* True when new_text is a diff: every line begins with a blank, + or -, both
   marks occur, and a line of old_text is among those removed. */
HFSBI_FN bool hfsbi_is_diff(hfsb_str new_text, hfsb_str old_text);

/* What is kept although new_str lacks it. */
enum {
    HFSBI_MEANT_LINE_END = 1,  /* the line end after new_str */
    HFSBI_MEANT_LAST_LINE = 2, /* the rest of old_str's last line, once */
    HFSBI_MEANT_INDENT = 4,    /* the indentation of the first line */
    HFSBI_MEANT_REINDENT = 8   /* the indentation of all lines */
};

/* Changes texts->new_text, which is to replace an exact match, to what it
   means. The new text is in *copy, which is empty before; the caller checks
   copy->status. Returns the HFSBI_MEANT_ bits, 0 if it is meant literally. */
HFSBI_FN unsigned hfsbi_read_intent(const hfsbi_edit_text *file,
                                    const hfsbi_match     *match,
                                    hfsbi_edit_texts *texts, hfsb_buf *copy);

/* ---- strip.c: what a model copied around the text ---- */

/* How many lines of text begin like a numbered listing ("12\t", "12|",
   "12 | ", "12: ", "12" and an arrow; a number alone for an empty line, if
   all other lines do). */
typedef struct hfsbi_numbered {
    size_t lines, prefixed;
    bool   consecutive; /* all prefixed, alike, and counting up by one */
} hfsbi_numbered;

HFSBI_FN hfsbi_numbered hfsbi_numbered_scan(hfsb_str text);

/* Appends text without those prefixes; the caller checks out->status. */
HFSBI_FN void hfsbi_numbered_strip(hfsb_str text, hfsb_buf *out);

/* True for a line that begins with ``` or ~~~. */
HFSBI_FN bool hfsbi_is_fence(hfsb_str line);

/* Reduces both texts to the lines inside their code fences. False, with both
   unchanged, unless both are fenced, alike, and old_text has lines inside. */
HFSBI_FN bool hfsbi_unfence_both(hfsb_str *old_text, hfsb_str *new_text);

/* ---- reading.c: a text read another way ---- */

/* Length of the escape such as \u2019, or of the entity such as &amp;, at the
   start of s, and the character it encodes; 0 if not found. */
HFSBI_FN size_t hfsbi_unicode_escape(hfsb_str s, unsigned long *code);
HFSBI_FN size_t hfsbi_entity_at(hfsb_str s, char *c);

/* Appends s with one habit of models undone; the caller checks out->status. */
typedef void hfsbi_reading(hfsb_buf *out, hfsb_str s);

/* The text that a reading was applied to. */
enum { HFSBI_READ_OLD, HFSBI_READ_FILE, HFSBI_READ_BOTH };

/* A habit, and the sentence that reports it: with the name of the old text
   between `before` and `after`, unless `after` is NULL. */
typedef struct hfsbi_misread {
    hfsbi_reading *reading;
    int            of;
    const char    *before, *after;
} hfsbi_misread;

/* Finds a difference that is the same everywhere: old_text is the text of the
   file read another way, or the other way round. NULL if there is none. */
HFSBI_FN const hfsbi_misread *hfsbi_reading_of(const hfsb_alloc *alloc,
                                               hfsb_str          old_text,
                                               hfsb_str          file_text);

/* ---- closest.c: the place that was meant ---- */

/* Two texts side by side. HFSB_NPOS: the line has no counterpart. */
typedef struct hfsbi_row {
    size_t old_line, file_line; /* in olds and lines */
    bool   same;                /* to the byte */
} hfsbi_row;

/* Lines of the file, next to the lines of the old text that they resemble. */
typedef struct hfsbi_closest {
    hfsbi_lines olds, lines;
    size_t      old_first;  /* index of the first of olds in the old text */
    size_t      first_line; /* number of the first of lines in the file */
    size_t      before;     /* characters of that line that were left out */
    hfsbi_row  *rows;       /* count is 0 when nothing was found */
    size_t      count, cap;
    hfsb_str    old_core, core; /* equal but for blanks, quotes, escapes and
                                   case; empty when there is no such text */
    hfsb_str    old_around, around; /* the whole lines of these */
    hfsb_buf    copy;               /* private: holds lines */
} hfsbi_closest;

/* When out of memory, nothing is found. The lines show the bytes of the file
   or of c->copy; free *c when done. */
HFSBI_FN void hfsbi_closest_find(const hfsb_alloc      *alloc,
                                 const hfsbi_edit_text *file,
                                 hfsb_str old_text, hfsbi_closest *c);
HFSBI_FN void hfsbi_closest_free(hfsbi_closest *c);

/* The start of the line of pos; in an overlong line a place before pos. */
HFSBI_FN size_t hfsbi_line_back(const hfsbi_edit_text *file, size_t pos);

/* True for "..." alone or in a comment. */
HFSBI_FN bool hfsbi_is_elision(hfsb_str line);

/* ---- explain.c: reasons to refuse ---- */

/* The arguments of an edit, as their sender knows them. */
typedef struct hfsbi_edit_words {
    const char *old_text, *new_text, *all, *exact, *line, *after;
    const char *patch, *write;            /* the ways to do something else */
    const char *see, *see_lines;          /* "{see} 3{see_lines} 5" */
    const char *kept_line_end, *indented; /* notes */
} hfsbi_edit_words;

HFSBI_FN const hfsbi_edit_words *hfsbi_edit_words_of(hfsb_edit_names names);

/* A text that was looked for, LF only, and the file. */
typedef struct hfsbi_hint {
    const hfsb_alloc      *alloc;
    const hfsbi_edit_text *file;
    hfsb_str               old_text, new_text;
    hfsb_err              *err;  /* may be NULL */
    bool                   hunk; /* of a patch: there is no old_str */
    hfsb_edit_names        names;
} hfsbi_hint;

/* Append to the message why old_text was not found, or where it was found.
   When out of memory, the message is shorter. */
HFSBI_FN void hfsbi_hint_not_found(const hfsbi_hint *hint);
HFSBI_FN void hfsbi_hint_ambiguous(const hfsbi_hint    *hint,
                                   const hfsbi_matches *matches);

/* Append how the lines of the match [start, end) are indented, the lines, and
   that nothing was changed. */
HFSBI_FN void hfsbi_hint_indent(const hfsbi_hint *hint, size_t start,
                                size_t end);

/* ---- patch_parse.c: a patch as sections and hunks ---- */

/* A line of a hunk, without its mark and its line end. */
typedef struct hfsbi_hunk_line {
    char     mark; /* '@' an anchor, ' ' context, '-' removed, '+' added */
    hfsb_str text;
} hfsbi_hunk_line;

typedef struct hfsbi_hunk {
    size_t   line;               /* of the patch, 0-based, where it starts */
    size_t   anchors, body, end; /* in patch->lines: first the anchors */
    size_t   number;             /* of its first line in the file, 1-based */
    bool     numbered;           /* the patch gives that number */
    hfsb_str heading;            /* git's: a line above it, or empty */
    bool     at_eof;             /* its lines end the file ... */
    bool     open_end;           /* ... and the last one has no line end */
    bool     block;              /* of SEARCH/REPLACE: lines that stay are
                                    not marked; in any order */
} hfsbi_hunk;

/* All changes to one file. A new file has one hunk, or none if it is empty;
   the hunks of a deleted file, if any, remove all of its lines. */
typedef struct hfsbi_section {
    hfsb_patch_kind kind;
    hfsb_str        path, new_path;
    size_t          hunk, hunk_end; /* in patch->hunks */
} hfsbi_section;

typedef struct hfsbi_patch {
    hfsb_alloc       alloc;
    hfsb_edit_names  names;       /* as in hfsb_patch_files */
    hfsbi_lines      text;        /* the lines of the patch */
    size_t           first, last; /* private: the part that is parsed */
    hfsbi_hunk_line *lines;
    size_t           line_count, line_cap;
    hfsbi_hunk      *hunks;
    size_t           hunk_count, hunk_cap;
    hfsbi_section   *sections;
    size_t           section_count, section_cap;
} hfsbi_patch;

/* Parses a patch in any format. HFSB_OK; HFSB_SYNTAX; HFSB_REFUSED for an
   empty patch; HFSB_NOMEM. Call free() in each case. */
HFSBI_FN hfsb_status hfsbi_patch_parse(const hfsb_alloc *alloc, hfsb_str text,
                                       hfsbi_patch *patch, hfsb_err *err);
HFSBI_FN void        hfsbi_patch_free(hfsbi_patch *patch);

/* ---- patch_indent.c: hunks that agree about indentation ---- */

/* The hunks of a file by how their new lines were indented: moved, or kept
   without a sign that this is right. The last two are about text at the
   margin. NULL: no such hunk. */
typedef struct hfsbi_indents {
    const hfsbi_hunk *moved, *kept, *margin_moved, *margin_kept;
} hfsbi_indents;

/* Records a hunk that replaces `was`, a part of the file. */
HFSBI_FN void hfsbi_indents_add(hfsbi_indents *in, const hfsbi_patch *patch,
                                const hfsbi_hunk *hunk, hfsb_str was,
                                bool reindented);

/* False with two hunks that cannot both be right. */
HFSBI_FN bool hfsbi_indents_agree(const hfsbi_indents *in,
                                  const hfsbi_hunk   **kept,
                                  const hfsbi_hunk   **moved);

/* New lines may be indented like the file, next to a single old line that is
   not: it is then unclear whether they move with that line. Returns the first
   of these lines, ptr NULL if not found. */
HFSBI_FN hfsb_str hfsbi_hunk_torn(const hfsbi_patch *patch,
                                  const hfsbi_hunk *hunk, hfsb_str was);

/* ---- patch_update.c: the hunks of one file ---- */

/* The changed parts of a file, in order. */
typedef struct hfsbi_updated {
    hfsb_span *spans;
    size_t     count, cap;
} hfsbi_updated;

/* Applies the hunks of a section, at least one, to the content of its file and
   fills content, note and proven of *change. HFSB_OK, or as
   hfsb_patch_apply(); free done->spans in each case. */
HFSBI_FN hfsb_status hfsbi_update_file(const hfsbi_patch   *patch,
                                       const hfsbi_section *section,
                                       hfsb_str             content,
                                       hfsb_patch_change   *change,
                                       hfsbi_updated *done, hfsb_err *err);
