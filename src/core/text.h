#pragma once

/* ==== TEXT: lines, clean command output, truncation ===================== */

#include "base.h"

/* ---- lines ---- */

/* Takes the next line off *rest: *line is its text, *ending "\n", "\r\n" or,
   on the last line of a text that does not end in one, "". Lines end at LF
   or CRLF only. False when *rest is empty. Both views show the same bytes as
   *rest did. ending may be NULL. */
HFSB_API bool hfsb_text_line(hfsb_str *rest, hfsb_str *line, hfsb_str *ending);

/* 1-based number of the line that holds byte offset pos (pos <= text.len). */
HFSB_API size_t hfsb_text_line_number(hfsb_str text, size_t pos);

/* ---- cleaning of command output ---- */

/* Bytes of a command's output in, text for a model out, piece by piece:
   - bytes that are not UTF-8 become U+FFFD (one for each maximal part);
   - escape sequences of ECMA-48 vanish: CSI, OSC, DCS, APC, PM and SOS ended
     by BEL or ST, two-character escapes, charset selection; a string sequence
     that is not ended stops at the line's end;
   - CRLF becomes LF; a line rewritten with carriage returns, backspaces or
     "erase in line" is shown as a terminal would leave it. An erase at the
     line's end counts only if the line is rewritten after it.
   The result does not depend on how the input was cut. Memory is bounded: of
   a line longer than 16,384 characters the beginning is let go and can not be
   rewritten any more.

   8-bit control characters (U+0080 to U+009F) are kept: in UTF-8 output they
   are far more often damaged text than escapes. */
typedef struct hfsb_text_filter hfsb_text_filter;

/* A new filter, or NULL without memory. alloc may be NULL. */
HFSB_API hfsb_text_filter *hfsb_text_filter_open(const hfsb_alloc *alloc);
HFSB_API void              hfsb_text_filter_close(hfsb_text_filter *filter);

/* Appends to *out what has become final. HFSB_OK; HFSB_NOMEM or HFSB_LIMIT:
   then neither *out nor the filter has changed, and the call can be made
   again. */
HFSB_API hfsb_status hfsb_text_filter_write(hfsb_text_filter *filter,
                                            hfsb_str piece, hfsb_buf *out)
    HFSBI_CHECKED;

/* The end of the input: appends the unfinished last line. HFSB_OK, and the
   filter is as new; HFSB_NOMEM or HFSB_LIMIT as above. */
HFSB_API hfsb_status hfsb_text_filter_finish(hfsb_text_filter *filter,
                                             hfsb_buf *out) HFSBI_CHECKED;

/* Appends the unfinished last line as it looks now, less a character that is
   not complete, and leaves the filter alone. */
HFSB_API hfsb_status hfsb_text_filter_peek(const hfsb_text_filter *filter,
                                           hfsb_buf *out) HFSBI_CHECKED;

/* ---- head and tail ---- */

typedef struct hfsb_text_limit {
    size_t chars; /* longest text shown whole, in characters (0: 25,000) */
    size_t head;  /* of these, kept from the start (0: a quarter) */
} hfsb_text_limit;

/* Appends text to *out; when it has more than limit->chars characters, its
   head, a marker and its tail:
       HEAD\n\n... (1,000 of 26,000 chars omitted, showing first 6,250 +
       last 18,750) ...\nTAIL                  (one line, no break)
   spill_path (may be empty) adds the line that says where all of it is.
   *truncated (may be NULL) tells whether anything was left out.
   HFSB_OK; HFSB_ARG when head is above chars; HFSB_NOMEM or HFSB_LIMIT. On
   failure *out is as it was. */
HFSB_API hfsb_status hfsb_text_truncate(hfsb_str               text,
                                        const hfsb_text_limit *limit,
                                        hfsb_str spill_path, hfsb_buf *out,
                                        bool *truncated, hfsb_err *err);

/* The same for a text that arrives in pieces, in memory bounded by the limit
   (four bytes a character). The pieces must be UTF-8 and may be cut anywhere;
   of other bytes no more is kept, but what is shown is not specified. */
typedef struct hfsb_text_window hfsb_text_window;

/* A new window; NULL without memory, or when head is above chars. Both may be
   NULL. */
HFSB_API hfsb_text_window *hfsb_text_window_open(const hfsb_text_limit *limit,
                                                 const hfsb_alloc      *alloc);
HFSB_API void              hfsb_text_window_close(hfsb_text_window *window);

/* Takes a piece. HFSB_OK, or HFSB_NOMEM with the window as it was. */
HFSB_API hfsb_status hfsb_text_window_write(hfsb_text_window *window,
                                            hfsb_str piece) HFSBI_CHECKED;

/* Characters seen so far, and whether they are more than the limit. */
HFSB_API size_t hfsb_text_window_total(const hfsb_text_window *window);
HFSB_API bool   hfsb_text_window_truncated(const hfsb_text_window *window);

/* Appends what hfsb_text_truncate() would give for all of it so far. HFSB_OK;
   HFSB_NOMEM or HFSB_LIMIT with *out as it was. */
HFSB_API hfsb_status hfsb_text_window_show(const hfsb_text_window *window,
                                           hfsb_str spill_path, hfsb_buf *out)
    HFSBI_CHECKED;
