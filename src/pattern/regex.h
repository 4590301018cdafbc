#pragma once

/* ==== REGEX: patterns for lines and for paths, in linear time =========== */

#include "../core/base.h"

/* POSIX extended regular expressions over UTF-8, matched by an automaton: the
   time is proportional to the text, whatever the pattern. `.` and brackets
   stand for whole characters; a byte that is not UTF-8 is matched by none of
   them. What POSIX leaves open is read as GNU grep -E reads it. Besides POSIX:
   \w \W \s \S \d \D \t \b \B \< \>, (?:...), (?i) at the very beginning, and
   *? +? ?? {n,m}? which select the same lines as * + ? {n,m}. In brackets a
   backslash is an escape as well: [\w\]] is a letter, digit, _ or ]. Letters
   beyond ASCII count as such, by blocks of scripts. Back-references and
   look-around are refused. */
typedef struct hfsb_regex hfsb_regex;

typedef struct hfsb_regex_opts {
    bool   literal;     /* the pattern is a text to be found as it is */
    bool   ignore_case; /* of ASCII letters, and of others as far as they have
                         one simple counterpart in Latin-1, Greek, Cyrillic */
    size_t max_states;  /* of the automaton (0: 20,000) */
    /* Asked every few milliseconds of a slow search: true ends it, and from
       then on nothing is found. (NULL: nobody does) */
    bool (*cancelled)(void *user);
    void      *user;
    hfsb_alloc alloc;
} hfsb_regex_opts;

/* HFSB_OK; HFSB_ARG with what is wrong and where (err->pos); HFSB_LIMIT when
   the pattern is too large once its {n,m} are written out; HFSB_NOMEM. opts
   may be NULL. The pattern is copied. A pattern with line feeds never matches
   them: lines are what is searched. */
HFSB_API hfsb_status hfsb_regex_open(hfsb_str               pattern,
                                     const hfsb_regex_opts *opts,
                                     hfsb_regex **out, hfsb_err *err);
HFSB_API void        hfsb_regex_close(hfsb_regex *regex);

/* The leftmost-longest match in text, which is one line, from `from` on
   (`^` is only at 0). False when there is none. One thread at a time. */
HFSB_API bool hfsb_regex_find(hfsb_regex *regex, hfsb_str text, size_t from,
                              size_t *begin, size_t *end);

/* The first line of text, from `from` (the beginning of a line) on, in which
   the pattern occurs: [*begin, *end) without its line feed and without a CR
   before it. False when there is none. */
HFSB_API bool hfsb_regex_line(hfsb_regex *regex, hfsb_str text, size_t from,
                              size_t *begin, size_t *end);

/* Patterns for paths with "/" between names: `*` and `?` stay within a name,
   `**` as a whole name stands for any number of names, also none (at the end
   of the pattern for one at least); [a-z], [!a] and {one,two} as in a shell,
   nested; `\` takes the next one as it is. A leading dot needs no dot in the
   pattern; `*` takes bytes that are not UTF-8, `?` and brackets do not. Never
   backtracks. */
typedef struct hfsb_glob hfsb_glob;

/* As hfsb_regex_open(). */
HFSB_API hfsb_status hfsb_glob_open(hfsb_str pattern, const hfsb_alloc *alloc,
                                    hfsb_glob **out, hfsb_err *err);
HFSB_API void        hfsb_glob_close(hfsb_glob *glob);
/* The whole of path must match. One thread at a time. */
HFSB_API bool hfsb_glob_match(hfsb_glob *glob, hfsb_str path);
/* The folders that every match lies in: "src/main" of "src/main/" "*.c"; ""
   when there is none. Good until close. */
HFSB_API hfsb_str hfsb_glob_base(const hfsb_glob *glob);
/* False when nothing beneath the folder at that path can match. */
HFSB_API bool hfsb_glob_enters(hfsb_glob *glob, hfsb_str folder);
