#pragma once

/* What a command printed: cleaned while it arrives, in bounded memory, with
   all of it in a spill file once it is long. Private to the tools. */

#include "os.h"

/* The spill files of one tools object: at most `max` are kept, the oldest
   goes first; only those made here are ever removed. */
typedef struct hfsbi_spills {
    char     **paths; /* a ring, oldest at `first` */
    size_t     first, count, max;
    size_t     max_bytes;
    bool       none;    /* make no file at all */
    bool       dropped; /* with the object that has them */
    char      *dir;
    hfsb_alloc alloc;
} hfsbi_spills;

HFSBI_FN bool hfsbi_spills_init(hfsbi_spills *spills, const char *dir,
                                size_t max, size_t max_bytes,
                                const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_spills_free(hfsbi_spills *spills);
/* True when path is one of ours. */
HFSBI_FN bool hfsbi_spills_has(const hfsbi_spills *spills, hfsb_str path);

/*  stdout --> filter --> window, log
    stderr --> filter --> window, stash        ... at the end: stash --> log

    The log is what bash_output shows and the spill file holds: bytes 0 to
    `total` of cleaned text. All of it is in `memory` until the text is longer
    than what a reply shows; then it goes to the spill file, up to a cap, and
    `memory` keeps its end.

        0              saved            memory_start          total
        [ spill file )  ... dropped ...  [ memory             )            */
typedef struct hfsbi_record {
    hfsb_text_filter  *filter[2];
    hfsb_text_window  *window[2];
    hfsb_buf           piece; /* cleaned text on its way */
    hfsb_buf           memory;
    unsigned long long memory_start, total;
    int                spill;   /* descriptor, -1 none */
    hfsb_buf           path;    /* of the spill file, or empty */
    unsigned long long saved;   /* bytes in it */
    bool               full;    /* no more goes into it */
    bool               tried;   /* to make one */
    int                stash;   /* descriptor, -1 none */
    unsigned long long stashed; /* bytes in it */
    bool               stash_full, stash_tried;
    unsigned long long stderr_total;
    bool               merged;  /* stderr comes with stdout */
    bool               lost;    /* there was no memory for some of it */
    unsigned long long taken;   /* bytes of both streams, as they came, */
    unsigned long long bytes;   /* of stdout, */
    long long          last_at; /* and when the last of them did */
    hfsbi_spills      *spills;
    void (*on_text)(void *user, hfsb_proc_stream stream, hfsb_str text);
    void      *user;
    hfsb_alloc alloc;
} hfsbi_record;

/* False without memory; then there is nothing to free. */
HFSBI_FN bool hfsbi_record_init(hfsbi_record *r, hfsbi_spills *spills,
                                bool merged, const hfsb_alloc *alloc);
HFSBI_FN void hfsbi_record_free(hfsbi_record *r);

/* Takes bytes as the command wrote them. */
HFSBI_FN void hfsbi_record_write(hfsbi_record *r, hfsb_proc_stream stream,
                                 hfsb_str bytes);
/* The command is over: unfinished lines are taken as they are, stderr is put
   behind stdout. */
HFSBI_FN void hfsbi_record_finish(hfsbi_record *r);

/* Characters in all, and whether a reply leaves some out. */
HFSBI_FN size_t hfsbi_record_chars(const hfsbi_record *r);
HFSBI_FN bool   hfsbi_record_truncated(const hfsbi_record *r);

/* True while there is an unfinished line to show. */
HFSBI_FN bool hfsbi_record_pending(const hfsbi_record *r);

/* Appends what a reply shows. After finish. */
HFSBI_FN hfsb_status hfsbi_record_show(const hfsbi_record *r, hfsb_buf *out);

/* Nothing more will come or be shown: only what read() needs is kept. */
HFSBI_FN void hfsbi_record_settle(hfsbi_record *r);
/* Bytes that are held in memory then, and to let go of them. */
HFSBI_FN size_t hfsbi_record_held(const hfsbi_record *r);
HFSBI_FN void   hfsbi_record_forget(hfsbi_record *r);

/* Appends the log from byte `from` on, at most max bytes, cut between
   characters; *next is where it goes on. What is not held any more is left
   out, as [*gone_from, *gone_to) (both 0: nothing). When the log's end was
   reached the unfinished line is appended too. */
HFSBI_FN hfsb_status hfsbi_record_read(const hfsbi_record *r,
                                       unsigned long long from, size_t max,
                                       hfsb_buf *out, unsigned long long *next,
                                       unsigned long long *gone_from,
                                       unsigned long long *gone_to);
