#pragma once

/* ==== TEXT: lines, clean command output, truncation ===================== */

#include "base.h"

/* ---- lines ---- */

/* Removes the next line from *rest: *line is its text, *ending (may be NULL)
   "\n", "\r\n", or "" on a last line without one. Lines end at LF or CRLF
   only. False when *rest is empty. Both are views of the bytes of *rest. */
HFSB_API bool hfsb_text_line(hfsb_str *rest, hfsb_str *line, hfsb_str *ending);

/* 1-based number of the line at byte offset pos (pos <= text.len). */
HFSB_API size_t hfsb_text_line_number(hfsb_str text, size_t pos);

/* ---- cleaning of command output ---- */

/* Turns the output of a command into text for a model, piece by piece:
   - ill-formed UTF-8 becomes U+FFFD (one for each maximal subpart);
   - escape sequences of ECMA-48 are removed: CSI, OSC, DCS, APC, PM and SOS
     ended by BEL or ST, two-character escapes, charset selection; an
     unterminated string sequence stops at the end of the line;
   - CRLF becomes LF; a line rewritten with carriage returns, backspaces or
     "erase in line" is shown as a terminal would leave it. An erase at the end
     of the line counts only if the line is rewritten after it.
   The result does not depend on how the input was cut. Memory is bounded: the
   beginning of a line longer than 16,384 characters is written early and can
   no longer be rewritten.

   8-bit control characters (U+0080 to U+009F) are kept: in UTF-8 output they
   are far more often damaged text than escapes. */
typedef struct hfsb_text_filter hfsb_text_filter;

/* A new filter, or NULL when out of memory. alloc may be NULL. */
HFSB_API hfsb_text_filter *hfsb_text_filter_open(const hfsb_alloc *alloc);
HFSB_API void              hfsb_text_filter_close(hfsb_text_filter *filter);

/* Appends the finished lines to *out. HFSB_OK; HFSB_NOMEM or HFSB_LIMIT with
   *out and the filter unchanged, so that the call can be repeated. */
HFSB_API hfsb_status hfsb_text_filter_write(hfsb_text_filter *filter,
                                            hfsb_str piece, hfsb_buf *out)
    HFSBI_CHECKED;

/* Ends the input: appends the unfinished last line and resets the filter.
   HFSB_OK; HFSB_NOMEM or HFSB_LIMIT as above. */
HFSB_API hfsb_status hfsb_text_filter_finish(hfsb_text_filter *filter,
                                             hfsb_buf *out) HFSBI_CHECKED;

/* Appends the unfinished last line as it looks now, without an incomplete
   character; the filter is unchanged. */
HFSB_API hfsb_status hfsb_text_filter_peek(const hfsb_text_filter *filter,
                                           hfsb_buf *out) HFSBI_CHECKED;

/* All of this in one call: appends text as a filter would show it. HFSB_OK;
   HFSB_NOMEM or HFSB_LIMIT with *out unchanged. */
HFSB_API hfsb_status hfsb_text_clean(hfsb_str text, hfsb_buf *out)
    HFSBI_CHECKED;

/* ---- head and tail ---- */

typedef struct hfsb_text_limit {
    size_t chars; /* longest text shown in full, in characters (0: 25,000) */
    size_t head;  /* of these, kept from the start (0: a quarter) */
} hfsb_text_limit;

/* Appends text to *out; when it has more than limit->chars characters, its
   head, a marker and its tail:
       HEAD\n\n... (1,000 of 26,000 chars omitted, showing first 6,250 +
       last 18,750) ...\nTAIL                  (one line, no break)
   spill_path (may be empty) adds a line with the path of the full text.
   *truncated (may be NULL): whether anything was omitted.
   HFSB_OK; HFSB_ARG when head is above chars; HFSB_NOMEM or HFSB_LIMIT. On
   failure *out is unchanged. */
HFSB_API hfsb_status hfsb_text_truncate(hfsb_str               text,
                                        const hfsb_text_limit *limit,
                                        hfsb_str spill_path, hfsb_buf *out,
                                        bool *truncated, hfsb_err *err);

/* The same for a text that arrives in pieces, in memory bounded by the limit
   (four bytes per character). The pieces must be UTF-8 and may be cut
   anywhere; for other bytes the bound holds, but the result is unspecified. */
typedef struct hfsb_text_window hfsb_text_window;

/* A new window; NULL when out of memory, or when head is above chars. Both
   arguments may be NULL. */
HFSB_API hfsb_text_window *hfsb_text_window_open(const hfsb_text_limit *limit,
                                                 const hfsb_alloc      *alloc);
HFSB_API void              hfsb_text_window_close(hfsb_text_window *window);

/* Adds a piece. HFSB_OK, or HFSB_NOMEM with the window unchanged. */
HFSB_API hfsb_status hfsb_text_window_write(hfsb_text_window *window,
                                            hfsb_str piece) HFSBI_CHECKED;

/* Characters seen so far, and whether they exceed the limit. */
HFSB_API size_t hfsb_text_window_total(const hfsb_text_window *window);
HFSB_API bool   hfsb_text_window_truncated(const hfsb_text_window *window);

/* Appends what hfsb_text_truncate() would write for the text so far. HFSB_OK;
   HFSB_NOMEM or HFSB_LIMIT with *out unchanged. */
HFSB_API hfsb_status hfsb_text_window_show(const hfsb_text_window *window,
                                           hfsb_str spill_path, hfsb_buf *out)
    HFSBI_CHECKED;
