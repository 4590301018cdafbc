#pragma once

/* pattern_private.h - shared by the files of pattern.

   A pattern is read into a tree, the tree becomes a program of states that
   read bytes (an NFA), and the program is run either state by state or
   through a table that is filled as the text needs it (a DFA):

       pattern --regex_compile.c--> tree --> program --regex.c--> match
                  glob.c -----------^          ^
                                    regex_class.c: sets of characters */

#include "../core/core_private.h"
#include "regex.h"

/* Longest pattern and deepest nesting accepted; most states by default. */
#define HFSBI_REGEX_PATTERN 65536u
#define HFSBI_REGEX_DEPTH   200u
#define HFSBI_REGEX_STATES  20000u
/* Bytes that the table of a DFA may take before it is flushed. */
#define HFSBI_REGEX_CACHE (2u << 20)

/* ---- the program ---- */

typedef enum hfsbi_op {
    HFSBI_OP_BYTE,   /* reads the byte `arg`, continues at out */
    HFSBI_OP_CLASS,  /* reads a byte by node `arg`; out after the last one */
    HFSBI_OP_SPLIT,  /* continues at out and at other */
    HFSBI_OP_ASSERT, /* continues at out where the border `arg` is */
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

typedef struct hfsbi_state {
    uint32_t op; /* hfsbi_op */
    uint32_t arg, out, other;
} hfsbi_state;

/* A set of characters is an automaton over the bytes of UTF-8. Its nodes are
   stored once; each use of the set has one state per node, in the same order,
   so that a step between nodes is a step between states by the same
   distance. */
#define HFSBI_EDGE_END 0xFFFFFFFFu
typedef struct hfsbi_edge {
    unsigned char low, high;
    uint32_t      target; /* node, or HFSBI_EDGE_END after the last byte */
} hfsbi_edge;

typedef struct hfsbi_node {
    uint32_t edge, edges; /* first, and number */
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
    bool          whole;    /* the whole text must match, and is not a line */
    bool          words;    /* it asserts borders of words */
    bool          raw;      /* bytes that are not UTF-8: a match may begin
                               inside a character */
    unsigned char map[256]; /* the kind of each byte: bytes that no state
                               distinguishes share a kind */
    unsigned char sample[256]; /* a byte of each kind */
    uint32_t      kinds;
    hfsb_status   status; /* the first failure while it was made */
} hfsbi_program;

/* ---- regex_class.c: sets of characters ---- */

typedef struct hfsbi_regex_range {
    uint32_t low, high;
} hfsbi_regex_range;

typedef struct hfsbi_ranges {
    hfsbi_regex_range *items;
    size_t             count, cap;
    hfsb_alloc         alloc;
    bool               failed; /* out of memory: the set is incomplete */
} hfsbi_ranges;

/* True for a letter, a digit or an underscore. */
HFSBI_FN bool hfsbi_regex_is_word(uint32_t code);
/* The other case of a character; itself when it has none. */
HFSBI_FN uint32_t hfsbi_other_case(uint32_t code);

HFSBI_FN void hfsbi_ranges_add(hfsbi_ranges *set, uint32_t low, uint32_t high);
/* Adds the class of that name (alpha, digit ...); false when it does not
   exist. With fold, upper and lower are the same. */
HFSBI_FN bool hfsbi_ranges_named(hfsbi_ranges *set, hfsb_str name, bool fold);
/* Adds the class of \w \s \d, or the complement for a capital. */
HFSBI_FN void hfsbi_ranges_escape(hfsbi_ranges *set, char letter);

/* Adds the class of the set to the program and empties the set; returns its
   number. fold: with the other case of each character; negate: all other
   characters. `never` is not in the class. A failure is in
   program->status. */
HFSBI_FN uint32_t hfsbi_program_class(hfsbi_program *program,
                                      hfsbi_ranges *set, bool fold,
                                      bool negate, uint32_t never);
/* Adds the class of all bytes but one, including bytes that are not UTF-8. */
HFSBI_FN uint32_t hfsbi_program_bytes(hfsbi_program *program,
                                      unsigned char  but);
/* The target of a byte from a node; false when there is none. */
HFSBI_FN bool hfsbi_node_step(const hfsbi_program *program, uint32_t node,
                              unsigned char byte, uint32_t *target);

/* ---- regex_compile.c: from pattern to tree ---- */

typedef enum hfsbi_syntax_kind {
    HFSBI_SYNTAX_EMPTY,
    HFSBI_SYNTAX_BYTE,   /* value: one byte */
    HFSBI_SYNTAX_CHAR,   /* value: a character */
    HFSBI_SYNTAX_CLASS,  /* value: number of the class in the program */
    HFSBI_SYNTAX_BORDER, /* value: hfsbi_regex_border */
    HFSBI_SYNTAX_LIST,   /* the children in order */
    HFSBI_SYNTAX_EITHER, /* any of the children */
    HFSBI_SYNTAX_REPEAT  /* the child, min to max times */
} hfsbi_syntax_kind;

#define HFSBI_SYNTAX_MANY 0xFFFFFFFFu /* as max: unlimited */

/* Children are linked from last to first, since states are made from the end
   of the pattern to its beginning. */
typedef struct hfsbi_syntax_node {
    hfsbi_syntax_kind kind;
    uint32_t          value, min, max;
    uint32_t          child, sibling; /* 0: none */
} hfsbi_syntax_node;

typedef struct hfsbi_syntax {
    hfsbi_program     *program;
    hfsbi_syntax_node *nodes; /* number 0 is never a child */
    size_t             count, cap;
    hfsbi_ranges       set; /* of the class that is being read */
    bool               fold;
} hfsbi_syntax;

HFSBI_FN void hfsbi_syntax_init(hfsbi_syntax *tree, hfsbi_program *program);
HFSBI_FN void hfsbi_syntax_free(hfsbi_syntax *tree);

/* These return a node; 0, with program->status set, when out of memory. */
HFSBI_FN uint32_t hfsbi_syntax_add(hfsbi_syntax *tree, hfsbi_syntax_kind kind,
                                   uint32_t value);
HFSBI_FN uint32_t hfsbi_syntax_repeat(hfsbi_syntax *tree, uint32_t child,
                                      uint32_t min, uint32_t max);
/* The class of tree->set, as hfsbi_program_class(). */
HFSBI_FN uint32_t hfsbi_syntax_class(hfsbi_syntax *tree, bool negate,
                                     uint32_t never);

HFSBI_FN void hfsbi_syntax_append(hfsbi_syntax *tree, uint32_t list,
                                  uint32_t child);

typedef struct hfsbi_reader {
    hfsb_str      text;
    size_t        at;
    size_t        depth;
    hfsbi_syntax *tree;
    hfsb_err     *err;
    hfsb_status   status; /* the first failure */
    bool          glob;   /* brackets of a glob: [!a] is [^a], \w is a "w" */
} hfsbi_reader;

/* The byte `ahead` of r->at; NUL past the end. */
HFSBI_FN char hfsbi_reader_peek(const hfsbi_reader *r, size_t ahead);
/* Fails the reader, unless it has failed before. Returns r->status. */
HFSBI_FN hfsb_status hfsbi_reader_fail(hfsbi_reader *r, hfsb_status code,
                                       size_t pos, const char *message);
/* Reads a bracket expression, after its "[". */
HFSBI_FN uint32_t hfsbi_read_bracket(hfsbi_reader *r);

/* Reads a pattern into the tree; literal: as plain text. The root is in
   *root. HFSB_OK; HFSB_ARG or HFSB_LIMIT with *err. When out of memory:
   HFSB_OK with program->status set. */
HFSBI_FN hfsb_status hfsbi_regex_parse(hfsbi_syntax *tree, hfsb_str pattern,
                                       bool literal, uint32_t *root,
                                       hfsb_err *err);

/* ---- regex_compile.c: from tree to program ---- */

/* Appends to out the longest text that every match contains; *pure: there is
   nothing else to match. */
HFSBI_FN hfsb_status hfsbi_syntax_literal(const hfsbi_syntax *tree,
                                          uint32_t root, hfsb_buf *out,
                                          bool *pure);
/* Makes the states of a tree. A failure is in program->status. */
HFSBI_FN void hfsbi_program_make(hfsbi_program      *program,
                                 const hfsbi_syntax *tree, uint32_t root);
HFSBI_FN void hfsbi_program_free(hfsbi_program *program);

/* ---- regex.c: running a program ---- */

/* A set of states in the order they were added, each with the start of the
   match that it belongs to. */
typedef struct hfsbi_states {
    uint32_t *dense, *sparse;
    size_t   *begin;
    uint32_t  count;
} hfsbi_states;

/* The table of a DFA: a row for each set of states that has occurred, a column
   for each kind of byte and one for the end of the text. */
typedef struct hfsbi_table {
    uint32_t               *next; /* rows of columns */
    struct hfsbi_table_row *rows;
    uint32_t               *keys;
    uint32_t               *buckets;
    size_t                  next_cap, row_cap, key_cap, row_count, key_count;
    size_t                  max_bytes; /* of all four together */
    size_t                  columns;
    uint32_t                start;   /* row, or one of HFSBI_DFA_... */
    size_t                  read;    /* bytes read since the last flush */
    size_t                  early;   /* consecutive early flushes */
    size_t                  flushes; /* in all */
    size_t                  bypass; /* bytes still to read without the table */
} hfsbi_table;

typedef struct hfsbi_runner {
    const hfsbi_program *program;
    hfsb_alloc           alloc;
    void                *block; /* of the sets and the stack */
    hfsbi_states         now, then;
    uint32_t            *stack;
    hfsbi_table          table;
    bool (*cancelled)(void *user); /* NULL: never */
    void  *user;
    size_t work;    /* states visited since `cancelled` was last called */
    bool   stopped; /* cancelled: nothing more is found */
} hfsbi_runner;

/* Free the runner even when init fails. */
HFSBI_FN hfsb_status hfsbi_runner_init(hfsbi_runner        *runner,
                                       const hfsbi_program *program);
HFSBI_FN void        hfsbi_runner_free(hfsbi_runner *runner);

/* True when the program matches the whole text; with `beginning`, when it
   could match a longer text that starts with this one and a slash. */
HFSBI_FN bool hfsbi_runner_whole(hfsbi_runner *runner, hfsb_str text,
                                 bool beginning);

/* The same, and the leftmost-longest match, without the table: slower, but
   they allocate nothing. With `any` the first match found is returned. */
HFSBI_FN bool hfsbi_nfa_whole(hfsbi_runner *runner, hfsb_str text,
                              bool beginning);
HFSBI_FN bool hfsbi_nfa_find(hfsbi_runner *runner, hfsb_str text, size_t from,
                             bool any, size_t *begin, size_t *end);

struct hfsb_regex {
    hfsbi_program program;
    hfsbi_runner  runner;
    hfsb_buf      literal; /* in every match */
    bool          pure;    /* the literal is the whole pattern */
    bool          never;   /* it contains a line feed, which no line does */
    size_t        misses;  /* consecutive useless occurrences of the literal,
                              each close to the one before */
    size_t        direct;  /* bytes still to scan without the literal */
};

/* ---- glob.c ---- */

struct hfsb_glob {
    hfsbi_program program;
    hfsbi_runner  runner;
    hfsb_buf      base;
};

/* hfsb_glob_open(); with `git` as in .gitignore: no braces, and "**" as in
   gitignore(5). */
HFSBI_FN hfsb_status hfsbi_glob_open(hfsb_str pattern, const hfsb_alloc *alloc,
                                     bool git, hfsb_glob **out, hfsb_err *err);

/* The rules of the .gitignore files from the top of a directory walk down to
   the current folder: a stack in which the last matching rule decides, as in
   git. Pure: the caller reads the files. */
typedef struct hfsbi_ignore hfsbi_ignore;

/* HFSB_OK or HFSB_NOMEM. close() accepts NULL. */
HFSBI_FN hfsb_status hfsbi_ignore_open(const hfsb_alloc *alloc,
                                       hfsbi_ignore    **out);
HFSBI_FN void        hfsbi_ignore_close(hfsbi_ignore *ignore);

/* Enters a folder (path from the top, "" for the top itself) whose .gitignore
   contains text, "" without one. Invalid lines are ignored. HFSB_OK or
   HFSB_NOMEM. */
HFSBI_FN hfsb_status hfsbi_ignore_push(hfsbi_ignore *ignore, hfsb_str folder,
                                       hfsb_str text);
/* Returns the number of rules in use. */
HFSBI_FN size_t hfsbi_ignore_count(const hfsbi_ignore *ignore);
/* Leaves the folder entered last. */
HFSBI_FN void hfsbi_ignore_pop(hfsbi_ignore *ignore);

/* True when a file or folder at that path (from the top), in the folder
   entered last, is ignored. */
HFSBI_FN bool hfsbi_ignore_has(hfsbi_ignore *ignore, hfsb_str path,
                               bool is_folder);
