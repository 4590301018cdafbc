#pragma once

/* CHECK: what to tell about a file that was just written. Private.

   Built in: the syntax of Python, its calls with keywords that the callable
   does not take, training scripts that push nothing to the Hub, JSON, and the
   syntax of sh, bash and dash scripts. What other programs find is remembered
   by content, so that writing the same text again costs nothing. */

#include "os.h"
#include "tools.h"

#define HFSBI_CHECK_MEMORY 64 /* contents whose warnings are remembered */

/* What came out for one content. */
typedef struct hfsbi_check_seen {
    unsigned char      digest[HFSB_SHA256_SIZE];
    char              *text; /* the warnings, each line ended by LF */
    size_t             len;
    unsigned long long used; /* when it was asked for last; 0: free */
} hfsbi_check_seen;

typedef struct hfsbi_checker {
    hfsb_tools_check  *checks; /* the caller's */
    size_t             count;
    hfsb_buf           suffixes; /* theirs, each ended by NUL */
    const char *const *env; /* of the programs it runs; not copied (NULL: that
                               of this process) */
    const hfsb_place  *place; /* where the tools write; not copied (NULL: the
                                 current directory) */
    bool               no_imports; /* Python modules are not imported */
    long long          timeout_ms; /* for one program */
    hfsb_alloc         alloc;
    pthread_mutex_t    lock; /* for what is below; never held for long */
    unsigned long long clock;
    hfsbi_check_seen   seen[HFSBI_CHECK_MEMORY];
} hfsbi_checker;

/* A checker with the caller's checks, which are copied. NULL without memory.
   No run may be under way when it is closed; NULL is fine. */
HFSBI_FN hfsbi_checker *hfsbi_checker_open(const hfsb_tools_check *checks,
                                           size_t                  count,
                                           const hfsb_alloc       *alloc);
HFSBI_FN void           hfsbi_checker_close(hfsbi_checker *checker);

/* Appends to *warnings a line, ended by LF, for each thing to tell about
   content, the text of the file at path. Never fails: what cannot be checked
   is not told. Takes as long as the programs it runs, 10 s each at most, or
   until `how` (NULL: nobody) says that it is cancelled. May run in several
   threads at once; working memory is that of *warnings. */
HFSBI_FN void hfsbi_checker_run(hfsbi_checker        *checker,
                                const hfsb_call_opts *how, hfsb_str path,
                                hfsb_str content, hfsb_buf *warnings);

/* ---- between the files of this module ---- */

/* Appends text to *lines as one line of valid UTF-8, ended by LF; false
   without memory. */
HFSBI_FN bool hfsbi_check_tell(hfsb_buf *lines, hfsb_str text);

/* The directory that the tools write to, as it was given and as it resolves:
   no program or module from there is run. */
typedef struct hfsbi_fence {
    char        given[PATH_MAX], real[PATH_MAX];
    const char *dirs[3]; /* both, then NULL; none when nothing is fenced */
} hfsbi_fence;

/* Of a place (NULL: the current directory). False when it cannot be
   resolved. *fence points into itself: not to be copied. */
HFSBI_FN bool hfsbi_fence_init(hfsbi_fence *fence, const hfsb_place *place);

/* Runs argv with content on its standard input and appends what it writes to
   one of its streams, the first 64 KiB, to *out. argv[0] is a name, searched
   for in PATH outside the fence, and not kept. True when the program exited by
   itself and that is all; else *out holds the start of it. */
HFSBI_FN bool hfsbi_check_program(const hfsbi_checker  *checker,
                                  const hfsbi_fence    *fence,
                                  const hfsb_call_opts *how, const char **argv,
                                  hfsb_str content, hfsb_proc_stream stream,
                                  hfsb_buf *out);

/* Appends to *lines what python3, or the shell called name, says of content.
   True when that is all there is to say, and can be remembered. */
HFSBI_FN bool hfsbi_check_python(const hfsbi_checker  *checker,
                                 const hfsb_call_opts *how, hfsb_str content,
                                 hfsb_buf *lines);
HFSBI_FN bool hfsbi_check_shell(const hfsbi_checker  *checker,
                                const hfsb_call_opts *how, const char *name,
                                hfsb_str content, hfsb_buf *lines);

/* "sh", "bash" or "dash" when the first line of content says that it is a
   script for that shell, else NULL. */
HFSBI_FN const char *hfsbi_check_shell_of(hfsb_str content);
