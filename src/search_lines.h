#pragma once

/* One file on its way through grep: lines that match, and those around them.
   Private to grep. */

#include "search.h"

enum {
    HFSBI_GREP_BLOCK = 256 * 1024,     /* read at a time */
    HFSBI_GREP_LINE = 8 * 1024 * 1024, /* a longer one is searched in parts */
    HFSBI_GREP_PROBE = 8192,           /* where a NUL means binary */
    HFSBI_GREP_CHARS = 400,            /* shown of a line */
    HFSBI_GREP_LEAD = 100              /* of these, before the match */
};

typedef enum hfsbi_grep_mode {
    HFSBI_GREP_CONTENT,
    HFSBI_GREP_FILES,
    HFSBI_GREP_COUNT
} hfsbi_grep_mode;

/* All offsets are into `window`, which is moved along the file. */
typedef struct hfsbi_hits {
    hfsb_regex        *regex;
    hfsbi_finder      *finder; /* asked whether to go on */
    hfsbi_grep_mode    mode;
    size_t             context;
    unsigned long long skip; /* matching lines to leave out, before */
    unsigned long long left; /* those that may still be shown */
    hfsb_buf          *out;
    hfsb_str           folder, path; /* shown before a line, one behind the
                                        other */
    bool               no_path;      /* only the number */
    hfsb_buf           window;

    size_t             searched; /* lines up to here are done */
    bool               parted;   /* the text to search ends within a line */
    bool               told;     /* a part of that line has matched */
    size_t             shown;    /* behind the last line that was shown */
    bool               any;      /* one of this file was */
    bool               gap;      /* more lies between it and the window */
    size_t             after;    /* lines to be shown behind it */
    size_t             counted;  /* the line that begins here ... */
    unsigned long long line;     /* ... has this number */

    unsigned long long matches; /* in this file */
    unsigned long long printed; /* matching lines, in all files */
    bool               full;    /* something was not shown */
    bool               binary, bad_utf8;
} hfsbi_hits;

/* Searches an open file to its end, or as far as the mode needs, or until the
   finder is over. HFSB_OK;
   HFSB_IO with errno when it cannot be read; HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_hits_run(hfsbi_hits *l, int fd,
                                    unsigned long long size);
