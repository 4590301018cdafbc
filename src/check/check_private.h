#pragma once

/* check_private.h - warnings about a file that was just written.

       check.c    chooses the check, runs programs, remembers their answers
       python.c   the helper process for Python files */

#include "../proc/proc_private.h"
#include "check.h"

/* ==== check.c: warnings after a write ==================================== */

/* Built-in checks cover the syntax of Python, keyword arguments that a Python
   callable does not take, training scripts that push nothing to the Hub, JSON,
   and the syntax of sh, bash and dash scripts. The findings of other programs
   are cached by content. */

#define HFSBI_CHECK_MEMORY 64 /* contents in the cache */
#define HFSBI_CHECK_PROGRAM \
    ((size_t)1024 * 1024) /* longest content that a
                                                     program checks */

/* The cached warnings for one content. */
typedef struct hfsbi_check_seen {
    unsigned char      digest[HFSB_SHA256_SIZE];
    char              *text; /* the warnings, each line ends in LF */
    size_t             len;
    unsigned long long used; /* `clock` at the last use; 0: free */
} hfsbi_check_seen;

typedef struct hfsbi_py_check hfsbi_py_check; /* see python.c */

/* The helper process for Python files. */
typedef struct hfsbi_python {
    hfsbi_loop     *loop;  /* NULL until the first check; opened under the lock
                             of the checker; its own lock protects the rest */
    hfsb_proc      *proc;  /* NULL: none runs */
    hfsb_buf        piece; /* its output after the last line */
    size_t          taken; /* bytes of the answer that arrives */
    hfsbi_py_check *checks; /* oldest first */
} hfsbi_python;

typedef struct hfsbi_checker {
    hfsb_tools_check  *checks; /* the caller's */
    size_t             count;
    hfsb_buf           suffixes;    /* of `checks`, each ends in NUL */
    const char *const *env;         /* of the programs; not copied (NULL: that
                                      of this process) */
    const hfsb_root   *place;       /* where the tools write; not copied (NULL:
                                      the current directory) */
    bool               no_imports;  /* Python modules are not imported */
    long long          timeout_ms;  /* for one program */
    long long          patience_ms; /* that a call waits for a Python check,
                                      before the next call shows its warnings
                                      (0: until it ends) */
    bool               late_by_path; /* ... if it is about the same file */
    hfsbi_python       python;
    hfsb_alloc         alloc;
    pthread_mutex_t    lock;    /* protects what follows; held briefly */
    hfsb_confine      *confine; /* of the programs; opened on first use */
    unsigned long long clock;
    hfsbi_check_seen   seen[HFSBI_CHECK_MEMORY];
} hfsbi_checker;

/* Opens a checker with copies of the caller's checks. NULL when out of
   memory. */
HFSBI_FN hfsbi_checker *hfsbi_checker_open(const hfsb_tools_check *checks,
                                           size_t                  count,
                                           const hfsb_alloc       *alloc);
/* No run may be in progress. NULL is allowed. */
HFSBI_FN void hfsbi_checker_close(hfsbi_checker *checker);

/* Appends to *warnings one line, with LF, for each finding about content, the
   text of the file at path. Never fails: a check that cannot run reports
   nothing. Takes as long as the programs it runs, at most 10 s each, or until
   cancel (may be NULL) is set; for Python, at most patience_ms. Several
   threads may run it at once; working memory comes from warnings->alloc. */
HFSBI_FN void hfsbi_checker_run(hfsbi_checker     *checker,
                                const hfsb_cancel *cancel, hfsb_str path,
                                hfsb_str content, hfsb_buf *warnings);

/* True when that may run a program, or a function of the host. */
HFSBI_FN bool hfsbi_checker_runs_code(const hfsbi_checker *checker,
                                      hfsb_str path, hfsb_str content);

/* The file at path may be written soon. True when hfsbi_python_expect() should
   be called: the reply to that write will not wait for the helper to start. */
HFSBI_FN bool hfsbi_checker_expects(const hfsbi_checker *checker,
                                    hfsb_str             path);

/* Returns "sh", "bash" or "dash" when the first line of content makes it a
   script for that shell, else NULL. */
HFSBI_FN const char *hfsbi_check_shell_of(hfsb_str content);

/* Appends a heading and the lines of warnings to an output, or nothing when
   there are none or when out of memory. path names the file when the output is
   not that of its write (empty: it is). */
HFSBI_FN void hfsbi_check_put(hfsb_buf *out, hfsb_str path, hfsb_str lines);

/* Appends text to *lines as one line of valid UTF-8, ended by LF; false when
   out of memory. */
HFSBI_FN bool hfsbi_check_warn(hfsb_buf *lines, hfsb_str text);

/* The digest of a program's name and the content it checks. */
HFSBI_FN void hfsbi_check_digest(const char *program, hfsb_str content,
                                 unsigned char digest[HFSB_SHA256_SIZE]);
/* Appends the cached warnings to *lines; false if there is no entry. */
HFSBI_FN bool hfsbi_check_recall(hfsbi_checker      *checker,
                                 const unsigned char digest[HFSB_SHA256_SIZE],
                                 hfsb_buf           *lines);
/* Caches the warnings for a digest. */
HFSBI_FN void
hfsbi_check_remember(hfsbi_checker      *checker,
                     const unsigned char digest[HFSB_SHA256_SIZE],
                     hfsb_str            text);

enum { HFSBI_FENCE_DIRS = 2 * HFSBI_ROOTS + 1 };

/* The directories that the tools write to, before and after realpath(). Points
   into itself and into the root: do not copy. */
typedef struct hfsbi_fence {
    const char *dirs[HFSBI_FENCE_DIRS]; /* ends in NULL; only NULL: nothing is
                                           fenced */
    char        given[PATH_MAX], real[PATH_MAX]; /* without a root */
} hfsbi_fence;

/* A program outside the fence, and an environment that mentions nothing inside
   it. */
typedef struct hfsbi_outer_program {
    char         path[PATH_MAX];
    const char **env; /* ends in NULL */
    size_t       count;
    hfsb_buf     search; /* its PATH */
    hfsbi_fence  fence;
    hfsb_alloc   alloc;
} hfsbi_outer_program;

/* The confinement of the programs that check: nothing writable, no network.
   NULL where the system does not support it. */
HFSBI_FN const hfsb_confine *hfsbi_checker_confine(hfsbi_checker *checker);

/* Searches PATH for a program. False if it is not found, or when out of
   memory; then there is nothing to free. */
HFSBI_FN bool hfsbi_outer_find(const hfsbi_checker *checker, const char *name,
                               hfsbi_outer_program *program);
HFSBI_FN void hfsbi_outer_free(hfsbi_outer_program *program);

/* ==== python.c: the helper for Python files ============================== */

/* Appends the warnings about content to *lines, as hfsbi_checker_run() does.
   With patience_ms, later warnings are kept for hfsbi_python_late(). */
HFSBI_FN void hfsbi_python_check(hfsbi_checker     *checker,
                                 const hfsb_cancel *cancel, hfsb_str path,
                                 hfsb_str content, hfsb_buf *lines);
/* Starts the helper of a checker unless one runs. */
HFSBI_FN void hfsbi_python_expect(void *checker);
/* Appends the warnings that came late, as hfsbi_check_put() does, and forgets
   them; those about a file that has changed since are dropped. With
   late_by_path only those about the file at path. Does not wait. */
HFSBI_FN void hfsbi_python_late(hfsbi_checker *checker, hfsb_str path,
                                hfsb_buf *out);
/* Ends the helper. */
HFSBI_FN void hfsbi_python_close(hfsbi_checker *checker);
