/* bench.h - what the benchmarks share. BENCH_BRIEF=1 makes each of them run
   once on little data: its figures say nothing, but it is known to work. */
#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Seconds of the given clock. */
static double bench_clock(clockid_t clock) {
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline double bench_now(void) { return bench_clock(CLOCK_MONOTONIC); }

/* n, or a small part of it in a brief run; at least 1. */
static inline int bench_part(int n, int part) {
    const char *brief = getenv("BENCH_BRIEF");
    if (!brief || !*brief) return n;
    return n < part ? 1 : n / part;
}

static inline int bench_rounds(int n) { return bench_part(n, n); }

/* Keeps a figure and that of a peer in the same run for page.py, as a line of
   $BENCH_RESULTS. The unit decides which is better: more of "MB/s" or "/s",
   less of anything else. */
static inline void bench_keep(const char *figure, double ours, const char *peer,
                              double theirs, const char *unit) {
    const char *path = getenv("BENCH_RESULTS");
    FILE       *f = path && *path ? fopen(path, "a") : NULL;
    if (!f) return;
    fprintf(f, "%s\t%.6g\t%s\t%.6g\t%s\n", figure, ours, peer, theirs, unit);
    fclose(f);
}

#endif
