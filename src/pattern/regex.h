#pragma once

/* ==== REGEX: patterns for lines and for paths, in linear time =========== */

#include "../core/base.h"

/* POSIX extended regular expressions over UTF-8, matched by an automaton in
   time proportional to the text, whatever the pattern. `.` and brackets match
   whole characters, never a byte that is not UTF-8. What POSIX leaves open
   works as in GNU grep -E. Additions: \w \W \s \S \d \D \t \b \B \< \>,
   (?:...), (?i) at the very beginning, and *? +? ?? {n,m}?, which select the
   same lines as * + ? {n,m}. In brackets a backslash is an escape too: [\w\]]
   is a letter, digit, _ or ]. Beyond ASCII, whole blocks of scripts count as
   letters. Back-references and look-around are refused. */
typedef struct hfsb_regex hfsb_regex;

typedef struct hfsb_regex_opts {
    bool   literal;     /* the pattern is plain text */
    bool   ignore_case; /* of ASCII letters, and of letters with one simple
                           counterpart in Latin-1, Greek and Cyrillic */
    size_t max_states;  /* of the automaton (0: 20,000) */
    /* Called every few milliseconds of a slow search. Return true to end it;
       from then on this regex finds nothing. (NULL: never) */
    bool (*cancelled)(void *user);
    void      *user;
    hfsb_alloc alloc;
} hfsb_regex_opts;

/* Compiles a pattern. HFSB_OK with *out, which the caller closes; HFSB_ARG
   with the reason and its position (err->pos); HFSB_LIMIT when the pattern is
   too large once its {n,m} are written out; HFSB_NOMEM. opts may be NULL. The
   pattern is copied. A line feed in a pattern never matches, since lines are
   searched one at a time. */
HFSB_API hfsb_status hfsb_regex_open(hfsb_str               pattern,
                                     const hfsb_regex_opts *opts,
                                     hfsb_regex **out, hfsb_err *err);
HFSB_API void        hfsb_regex_close(hfsb_regex *regex);

/* Finds the leftmost-longest match in text, which is one line, from `from` on
   (`^` matches only at 0): [*begin, *end). False if there is none. One thread
   at a time. */
HFSB_API bool hfsb_regex_find(hfsb_regex *regex, hfsb_str text, size_t from,
                              size_t *begin, size_t *end);

/* Finds the first line from `from` (the start of a line) on in which the
   pattern matches: [*begin, *end), without its line feed and a CR before it.
   False if there is none. */
HFSB_API bool hfsb_regex_line(hfsb_regex *regex, hfsb_str text, size_t from,
                              size_t *begin, size_t *end);

/* Patterns for paths with "/" between names: `*` and `?` stay within a name;
   `**` as a whole name matches any number of names, even none (at the end of
   the pattern at least one); [a-z], [!a] and {one,two} work as in a shell, and
   nest; `\` makes the next character literal. `*` also matches a leading dot,
   and bytes that are not UTF-8; `?` and brackets match only UTF-8. Never
   backtracks. */
typedef struct hfsb_glob hfsb_glob;

/* As hfsb_regex_open(); alloc may be NULL. */
HFSB_API hfsb_status hfsb_glob_open(hfsb_str pattern, const hfsb_alloc *alloc,
                                    hfsb_glob **out, hfsb_err *err);
HFSB_API void        hfsb_glob_close(hfsb_glob *glob);
/* The whole of path must match. One thread at a time. */
HFSB_API bool hfsb_glob_match(hfsb_glob *glob, hfsb_str path);
/* The folder that contains every match: "src/main" of "src/main/" "*.c"; or
   "". Valid until close. */
HFSB_API hfsb_str hfsb_glob_base(const hfsb_glob *glob);
/* False when no path beneath that folder can match. */
HFSB_API bool hfsb_glob_enters(hfsb_glob *glob, hfsb_str folder);
