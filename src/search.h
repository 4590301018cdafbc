#pragma once

/* What glob, grep and list share: a walk over all that lies beneath a folder,
   and how paths and results are shown. Private. Nothing outside the root of
   the place is read: each folder is opened from the one before, and symbolic
   links are seen but never followed. */

#include "file_place.h"
#include "ignore.h"
#include "tool.h"

enum {
    HFSBI_FINDER_DEPTH = 200, /* folders in each other: one descriptor each */
    HFSBI_FINDER_NAMES = 64 << 20, /* bytes of names held at a time */
    HFSBI_FINDER_RULES = 1 << 20,  /* bytes of a .gitignore */
    HFSBI_FINDER_TOLD = 3,        /* folders that could not be read, by name */
    HFSBI_FINDER_MS = 30000,      /* a search is cut off then */
    HFSBI_FINDER_CHARS = 40000,   /* bytes of output */
    HFSBI_FINDER_OFFSET = 1000000 /* results that may be left out */
};

typedef enum hfsbi_entry_type {
    HFSBI_ENTRY_FILE,
    HFSBI_ENTRY_FOLDER,
    HFSBI_ENTRY_LINK,
    HFSBI_ENTRY_OTHER, /* a device, FIFO or socket */
    HFSBI_ENTRY_UNKNOWN
} hfsbi_entry_type;

/* Something in a folder; good during the call it is handed to. */
typedef struct hfsbi_entry {
    int              dir; /* the folder, opened */
    const char      *name;
    hfsb_str         path; /* from where the search began */
    hfsbi_entry_type type;
    bool             ignored;
} hfsbi_entry;

typedef struct hfsbi_finder_level hfsbi_finder_level;

/* All zero at first, but for what the caller sets. */
typedef struct hfsbi_finder {
    /* set by the caller */
    const hfsb_call  *call; /* that may be cancelled (NULL: none) */
    const hfsb_place *place;
    hfsb_alloc        alloc;
    bool              all;    /* also what is ignored, and .git */
    bool              sorted; /* names of a folder in order */
    bool      no_follow;      /* of where it begins, a link is not followed */
    bool      shows_ignored;  /* ignored ones are visited, not entered */
    size_t    offset;         /* results to leave out at the beginning */
    size_t    max_depth;      /* folders in each other, the first one counted
                                 (0: as many as it may) */
    long long until;          /* on hfsb_clock_ms(); 0: HFSBI_FINDER_MS */
    /* Quick, before anything else is looked at: a folder that is not wanted
       is not entered, anything else not visited. NULL: all are. */
    bool (*wants)(void *user, const hfsbi_entry *entry);
    /* Folders come before what is in them. Other than HFSB_OK ends it. */
    hfsb_status (*visit)(void *user, const hfsbi_entry *entry);
    void *user;
    bool  stop; /* set by visit to end it without an error */

    /* where it begins: from hfsbi_finder_open() on */
    hfsbi_spot spot;
    hfsb_buf   shown; /* what to put before the path of an entry, to read it
                         by: "" or ends in a slash */

    /* what became of it */
    size_t   files;     /* seen, links and all that is no folder counted */
    size_t   ignored;   /* entries */
    size_t   failed;    /* folders that could not be read, or not wholly */
    hfsb_buf notes;     /* about some of them: a line each, with LF before */
    bool     late;      /* it took too long, */
    bool     cancelled; /* or was not wanted any more: late as well */

    /* private */
    hfsb_buf            path;    /* of the entry, as the rules see it */
    size_t              prefix;  /* bytes of it up to where it begins */
    hfsbi_ignore       *ignore;  /* NULL: no rules at all so far */
    bool                at_root; /* it begins at / */
    size_t              names;   /* bytes of names that are held */
    hfsbi_finder_level *levels;  /* HFSBI_FINDER_DEPTH of them */
    size_t              depth;   /* of them in use */
} hfsbi_finder;

/* ---- search_walk.c ---- */

/* Finds what is at path ("": the work directory). HFSB_OK with f->spot; or why
   not. close() in any case. */
HFSBI_FN hfsb_status hfsbi_finder_open(hfsbi_finder *f, hfsb_str path,
                                       hfsb_err *err);
/* Visits all beneath f->spot, which must be a folder. HFSB_OK also when some
   could not be read; else what visit returned, HFSB_NOMEM, or why the first
   folder cannot be read. */
HFSBI_FN hfsb_status hfsbi_finder_run(hfsbi_finder *f, hfsb_err *err);
HFSBI_FN void        hfsbi_finder_close(hfsbi_finder *f);

/* Whether the time is over, or the call cancelled: f->late. To be asked also
   while one file takes long. */
HFSBI_FN bool hfsbi_finder_over(hfsbi_finder *f);

/* Opens a file that was visited; -1 when it is none any more, or with errno
   cannot be read. st is that of the file. */
HFSBI_FN int hfsbi_entry_open(int dir, const char *name, struct stat *st);

/* ---- search_rules.c ---- */

/* A .gitignore in the folder, or a .git/info/exclude, adds its rules, and
   takes them away again at the pop. folder is its path from the top of the
   rules. *pushed tells whether there is something to pop. HFSB_OK or
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_finder_push(hfsbi_finder *f, int dir,
                                       hfsb_str folder, bool has_rules,
                                       bool *pushed);
HFSBI_FN void        hfsbi_finder_pop(hfsbi_finder *f);
/* The rules of the folders above f->spot, from the top of its repository (or
   the root) on; sets f->path, f->prefix and f->at_root. */
HFSBI_FN hfsb_status hfsbi_finder_above(hfsbi_finder *f);

/* ---- the tools ---- */

HFSBI_FN hfsb_status hfsbi_tool_glob(hfsb_call *call, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_tool_grep(hfsb_call *call, hfsb_err *err);
HFSBI_FN hfsb_status hfsbi_tool_list(hfsb_call *call, hfsb_err *err);

/* ---- search_show.c ---- */

/* `path`, `all`, `limit` and `offset` of a call; limit is *limit when it is
   not given, and at most max. Opens f. HFSB_OK; else as a tool's function. */
HFSBI_FN hfsb_status hfsbi_finder_arguments(hfsb_call *call, hfsbi_finder *f,
                                            hfsb_str path, size_t *limit,
                                            size_t max, hfsb_err *err);

/* A path or a name on one line: control characters and bytes that are not
   UTF-8 as \n, \t, \x1B. */
HFSBI_FN void hfsbi_put_shown(hfsbi_sink *sink, hfsb_str path);

/* A line for the end of the output. */
HFSBI_FN hfsb_status hfsbi_finder_note(hfsb_call *call, const char *format,
                                       ...) HFSBI_PRINTF(2, 3);

/* What part of the results is shown, and how to read on: a note, unless it is
   all of them. "[201-400 of 5321 files; read on with offset=400]"; what is
   " files". at_least: there may be more than total. */
HFSBI_FN hfsb_status hfsbi_finder_page(hfsb_call *call, const hfsbi_finder *f,
                                       unsigned long long shown,
                                       unsigned long long total, bool at_least,
                                       const char *what);

/* The call went well: notes about the walk, and the keys count, truncated and
   next_offset, the offset to read on with (0: there is no more). */
HFSBI_FN hfsb_status hfsbi_finder_result(hfsb_call *call, hfsbi_finder *f,
                                         unsigned long long count,
                                         unsigned long long next_offset);
