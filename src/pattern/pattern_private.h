#pragma once

#include "../core/core_private.h"
#include "regex.h"

/* What the files of the regex module share: a pattern is read into a tree,
   the tree becomes a program of states that read bytes (an NFA), and the
   program is run either state by state or through a table that is filled in
   as the text needs it (a DFA). Private. */

/* Longest pattern and deepest nesting that is read; most repeats in {n,m},
   as in GNU grep. */
#define HFSBI_REGEX_PATTERN 65536u
#define HFSBI_REGEX_DEPTH   200u
#define HFSBI_REGEX_REPEAT  32767u
#define HFSBI_REGEX_STATES  20000u
/* Bytes that the table of a DFA may take before it is begun anew. */
#define HFSBI_REGEX_CACHE (2u << 20)

/* ---- sets of characters ---- */

typedef struct hfsbi_regex_range {
    uint32_t low, high;
} hfsbi_regex_range;

typedef struct hfsbi_ranges {
    hfsbi_regex_range *items;
    size_t             count, cap;
    hfsb_alloc         alloc;
    bool               failed; /* no memory: the set is not complete */
} hfsbi_ranges;

HFSBI_FN void hfsbi_ranges_add(hfsbi_ranges *set, uint32_t low, uint32_t high);
/* In order and without overlaps. */
HFSBI_FN void hfsbi_ranges_sort(hfsbi_ranges *set);
/* All other scalar values. The set must be in order, and is again. */
HFSBI_FN void hfsbi_ranges_negate(hfsbi_ranges *set);
/* Takes [low, high] out of a set in order. */
HFSBI_FN void hfsbi_ranges_remove(hfsbi_ranges *set, uint32_t low,
                                  uint32_t high);
/* Adds to each character the one that differs from it in case only. */
HFSBI_FN void hfsbi_ranges_fold(hfsbi_ranges *set);
/* Adds the class of that name (alpha, digit ...); false: no such class. With
   fold, upper and lower are both. */
HFSBI_FN bool hfsbi_ranges_named(hfsbi_ranges *set, hfsb_str name, bool fold);
/* What \w \s \d stand for, and their opposites in capitals. */
HFSBI_FN void hfsbi_ranges_escape(hfsbi_ranges *set, char letter);
/* The other case of a character; itself when it has none. */
HFSBI_FN uint32_t hfsbi_other_case(uint32_t code);
/* Letters, digits and the underscore. */
HFSBI_FN bool hfsbi_regex_is_word(uint32_t code);

/* ---- the program ---- */

typedef enum hfsbi_op {
    HFSBI_OP_BYTE,   /* reads the byte `arg`, goes to out */
    HFSBI_OP_CLASS,  /* reads a byte as node `arg` says: out at its end */
    HFSBI_OP_SPLIT,  /* goes to out and to other */
    HFSBI_OP_ASSERT, /* goes to out where the border `arg` is */
    HFSBI_OP_MATCH
} hfsbi_op;

/* Borders between characters. */
typedef enum hfsbi_regex_border {
    HFSBI_LINE_BEGIN,
    HFSBI_LINE_END,
    HFSBI_WORD_BORDER,
    HFSBI_WORD_INSIDE, /* \B */
    HFSBI_WORD_BEGIN,
    HFSBI_WORD_END
} hfsbi_regex_border;

/* What is known about a place. */
#define HFSBI_AT_PREV_WORD 1u
#define HFSBI_AT_NEXT_WORD 2u
#define HFSBI_AT_BEGIN     4u
#define HFSBI_AT_END       8u

typedef struct hfsbi_state {
    uint32_t op; /* hfsbi_op */
    uint32_t arg, out, other;
} hfsbi_state;

/* A set of characters as an automaton over the bytes of UTF-8. Its nodes are
   kept once; each use of the set has as many states as the set has nodes, in
   the same order, so that a step within it is a step by the same distance. */
#define HFSBI_EDGE_END 0xFFFFFFFFu
typedef struct hfsbi_edge {
    unsigned char low, high;
    uint32_t      target; /* node, or HFSBI_EDGE_END */
} hfsbi_edge;

typedef struct hfsbi_node {
    uint32_t edge, edges; /* first, and how many */
} hfsbi_node;

typedef struct hfsbi_class {
    uint32_t node, nodes, root;
} hfsbi_class;

typedef struct hfsbi_program {
    hfsb_alloc    alloc;
    hfsbi_state  *states;
    hfsbi_edge   *edges;
    hfsbi_node   *nodes;
    hfsbi_class  *classes;
    size_t        state_count, state_cap, edge_count, edge_cap;
    size_t        node_count, node_cap, class_count, class_cap;
    size_t        max_states, steps;
    uint32_t      start;
    bool          whole;    /* the whole text must match, and is no line */
    bool          words;    /* it looks at the borders of words */
    unsigned char map[256]; /* bytes that no state tells apart have one kind */
    unsigned char sample[256]; /* a byte of each kind */
    uint32_t      kinds;
    hfsb_status   status;
} hfsbi_program;

/* Makes a class of a set in order; its number. */
HFSBI_FN uint32_t hfsbi_program_class(hfsbi_program      *program,
                                      const hfsbi_ranges *set);
/* The class of all bytes but one, whether they are UTF-8 or not. */
HFSBI_FN uint32_t hfsbi_program_bytes(hfsbi_program *program,
                                      unsigned char  but);
/* Where a byte leads from a node: false when nowhere. */
HFSBI_FN bool hfsbi_node_step(const hfsbi_program *program, uint32_t node,
                              unsigned char byte, uint32_t *target);
HFSBI_FN void hfsbi_program_free(hfsbi_program *program);

/* ---- the tree ---- */

typedef enum hfsbi_syntax_kind {
    HFSBI_SYNTAX_EMPTY,
    HFSBI_SYNTAX_BYTE,   /* value: one byte */
    HFSBI_SYNTAX_CHAR,   /* value: a character */
    HFSBI_SYNTAX_CLASS,  /* value: of the program */
    HFSBI_SYNTAX_BORDER, /* value: hfsbi_regex_border */
    HFSBI_SYNTAX_LIST,   /* children one after the other */
    HFSBI_SYNTAX_EITHER, /* any of the children */
    HFSBI_SYNTAX_REPEAT  /* the child, min to max times */
} hfsbi_syntax_kind;

#define HFSBI_SYNTAX_MANY 0xFFFFFFFFu /* as max: without end */

/* Children are linked from the last to the first: states are made from the
   end of the pattern to its beginning. */
typedef struct hfsbi_syntax_node {
    hfsbi_syntax_kind kind;
    uint32_t          value, min, max;
    uint32_t          child, sibling; /* 0: none */
} hfsbi_syntax_node;

typedef struct hfsbi_syntax {
    hfsbi_program     *program;
    hfsbi_syntax_node *nodes; /* 0 is never a child */
    size_t             count, cap;
    hfsbi_ranges       set; /* for one class at a time */
    bool               fold;
} hfsbi_syntax;

HFSBI_FN void hfsbi_syntax_init(hfsbi_syntax *tree, hfsbi_program *program);
HFSBI_FN void hfsbi_syntax_free(hfsbi_syntax *tree);
/* All give a node; 0, and program->status set, when there is no memory. */
HFSBI_FN uint32_t hfsbi_syntax_add(hfsbi_syntax *tree, hfsbi_syntax_kind kind,
                                   uint32_t value);
HFSBI_FN uint32_t hfsbi_syntax_repeat(hfsbi_syntax *tree, uint32_t child,
                                      uint32_t min, uint32_t max);
/* A character, or with fold the class of both its cases. */
HFSBI_FN uint32_t hfsbi_syntax_char(hfsbi_syntax *tree, uint32_t code);
/* The class of tree->set, which is emptied, or of all other characters; in
   neither case is `never` among them. */
HFSBI_FN uint32_t hfsbi_syntax_class(hfsbi_syntax *tree, bool negate,
                                     uint32_t never);
HFSBI_FN void     hfsbi_syntax_append(hfsbi_syntax *tree, uint32_t list,
                                      uint32_t child);

/* Reads a pattern into a tree: its root in *root. */
HFSBI_FN hfsb_status hfsbi_regex_parse(hfsbi_syntax *tree, hfsb_str pattern,
                                       uint32_t *root, hfsb_err *err);

typedef struct hfsbi_reader {
    hfsb_str      text;
    size_t        at;
    size_t        depth;
    hfsbi_syntax *tree;
    hfsb_err     *err;
    hfsb_status   status;
    bool          glob; /* a bracket of a glob: [!a] is [^a], no \w in it */
} hfsbi_reader;

/* Fails the reader, once. */
HFSBI_FN hfsb_status hfsbi_reader_fail(hfsbi_reader *r, hfsb_status code,
                                       size_t pos, const char *message);
/* A bracket expression; r->at is behind its "[". */
HFSBI_FN uint32_t hfsbi_read_bracket(hfsbi_reader *r);

/* Makes the states of a tree; program->status tells. */
HFSBI_FN void hfsbi_program_make(hfsbi_program      *program,
                                 const hfsbi_syntax *tree, uint32_t root);
/* The longest text that stands in every match, appended to out; *pure when
   it is all there is to match. */
HFSBI_FN hfsb_status hfsbi_syntax_literal(const hfsbi_syntax *tree,
                                          uint32_t root, hfsb_buf *out,
                                          bool *pure);

/* ---- running it ---- */

/* A set of states that knows the order in which they came, and where in the
   text the match that each would end has begun. */
typedef struct hfsbi_states {
    uint32_t *dense, *sparse;
    size_t   *begin;
    uint32_t  count;
} hfsbi_states;

typedef struct hfsbi_dfa_state {
    uint32_t key, len; /* its states: keys[key .. key+len) */
    uint32_t flags, hash;
    uint32_t chain; /* next with the same bucket, plus one; 0: none */
} hfsbi_dfa_state;

#define HFSBI_DFA_BUCKETS 1024u

typedef struct hfsbi_runner {
    const hfsbi_program *program;
    hfsb_alloc           alloc;
    hfsbi_states         now, then;
    uint32_t            *stack;
    /* the table: a row for each state, a column for each kind of byte and
       one for the end of the text */
    uint32_t        *next;
    hfsbi_dfa_state *states;
    uint32_t        *keys;
    uint32_t        *buckets;
    size_t           next_cap, state_cap, key_cap, state_count, key_count;
    size_t           max_bytes; /* of all four together */
    size_t           columns;
    size_t           since; /* bytes read since the table was begun anew */
    size_t   waste;   /* times that it was full too early, one after another */
    size_t   flushes; /* times that it was begun anew */
    size_t   without; /* bytes to be read without the table */
    uint32_t start;   /* row, or one of HFSBI_DFA_... */
    bool (*cancelled)(void *user); /* NULL: nobody asks */
    void  *user;
    size_t work;    /* states that were looked at since it was asked */
    bool   stopped; /* it said so: nothing is found any more */
} hfsbi_runner;

/* States between two questions whether to go on. */
#define HFSBI_REGEX_ASKS (1u << 20)
/* Counts states that are looked at; true when it is to stop. */
HFSBI_FN bool hfsbi_runner_stops(hfsbi_runner *runner, size_t work);

/* To be freed also when it fails. */
HFSBI_FN hfsb_status hfsbi_runner_init(hfsbi_runner        *runner,
                                       const hfsbi_program *program);
HFSBI_FN void        hfsbi_runner_free(hfsbi_runner *runner);

/* Leftmost-longest match by simulation: needs no memory. With `any` it stops
   at the first one it meets. */
HFSBI_FN bool hfsbi_nfa_find(hfsbi_runner *runner, hfsb_str text, size_t from,
                             bool any, size_t *begin, size_t *end);
/* Whether the text matches as a whole; with `beginning`, whether a longer one
   could that begins with it and a slash. */
HFSBI_FN bool hfsbi_nfa_whole(hfsbi_runner *runner, hfsb_str text,
                              bool beginning);

typedef enum hfsbi_scan {
    HFSBI_SCAN_NONE,
    HFSBI_SCAN_FOUND,
    HFSBI_SCAN_CANNOT /* the table is of no use here */
} hfsbi_scan;

/* As hfsbi_nfa_whole(). */
HFSBI_FN hfsbi_scan hfsbi_dfa_whole(hfsbi_runner *runner, hfsb_str text,
                                    bool beginning);

/* ---- the handles ---- */

struct hfsb_regex {
    hfsbi_program program;
    hfsbi_runner  runner;
    hfsb_buf      literal;  /* stands in every match */
    bool          pure;     /* and is all there is */
    bool          never;    /* it holds a line feed: no line does */
    size_t        crowd;    /* places of the literal that were close to each
                              other and of no use, one after another */
    size_t        straight; /* bytes to be read without looking for it */
};

struct hfsb_glob {
    hfsbi_program program;
    hfsbi_runner  runner;
    hfsb_buf      base;
};

/* ---- globs ---- */

/* hfsb_glob_open(); with `git` as in .gitignore: no braces, and "**" as in
   gitignore(5). */
HFSBI_FN hfsb_status hfsbi_glob_open(hfsb_str pattern, const hfsb_alloc *alloc,
                                     bool git, hfsb_glob **out, hfsb_err *err);

/* The rules of .gitignore files, for a walk from a folder downwards. Private;
   pure: the files are read by whoever walks. */

/* The rules of the folders from the top of the walk to where it is now, a
   stack: the last rule that fits decides, as in git. */
typedef struct hfsbi_ignore hfsbi_ignore;

HFSBI_FN hfsb_status hfsbi_ignore_open(const hfsb_alloc *alloc,
                                       hfsbi_ignore    **out);
HFSBI_FN void        hfsbi_ignore_close(hfsbi_ignore *ignore);

/* The walk enters a folder (path from the top, "" for the top itself) that has
   this text in its .gitignore; "" when it has none. A line that is no pattern
   is passed over. HFSB_OK or HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_ignore_push(hfsbi_ignore *ignore, hfsb_str folder,
                                       hfsb_str text);
/* It leaves the folder that it entered last. */
HFSBI_FN void hfsbi_ignore_pop(hfsbi_ignore *ignore);

/* Whether a file or folder at that path (from the top) is ignored. Its folder
   is the one entered last. */
HFSBI_FN bool hfsbi_ignore_has(hfsbi_ignore *ignore, hfsb_str path,
                               bool is_folder);
