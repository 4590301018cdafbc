/* progress.c - a progress line on a terminal.

   While a sandbox starts, the line has a spinner, the stage, the seconds and
   the last line of the log; it is rewritten ten times a second by a thread of
   its own, because the library blocks meanwhile:

       \ BUILDING  41 s  #9 RUN apt-get install -y python3

   The same line names the sandbox that a command connects to, after SILENT_MS.
   Another thread reads the build log of a Space, from the first stage on.
   Without a terminal no line is rewritten and no thread is started: each
   message is printed as a line. */
#define _XOPEN_SOURCE 700 /* sigset_t, nanosleep; before any include */
#include "cli.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 100, SILENT_MS = 2000, DEFAULT_WIDTH = 80 };

struct progress {
    pthread_mutex_t lock;
    pthread_cond_t  ended;
    pthread_t       ticker, reader;
    bool            ticks, reads; /* the threads run */
    bool            over;
    bool            drawn;
    long long       began, silent_ms;
    size_t          step;
    char            stage[160];
    char            line[400];
    char            id[256];
    hfsb_hub       *hub;
    hfsb_cancel    *cancel; /* ends the reader */
};

size_t terminal_width(void) {
#ifdef TIOCGWINSZ
    struct winsize size;
    memset(&size, 0, sizeof size);
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20)
        return size.ws_col;
#endif
    return DEFAULT_WIDTH;
}

/* Prints text over the line that is there, at most the terminal's width. */
void rewrite_line(hfsb_str text) {
    hfsb_buf line = HFSB_INIT;
    must(hfsb_buf_append(
        &line,
        hfsb_str_slice(text, 0, hfsb_utf8_offset(text, terminal_width() - 1))));
    blank_controls(&line);
    fprintf(stderr, "\r%s\033[K", line.len ? line.ptr : "");
    fflush(stderr);
    hfsb_buf_free(&line);
}

static void draw(progress *p) {
    static const char spinner[] = "|/-\\";
    hfsb_buf          text = HFSB_INIT;
    must(hfsb_buf_printf(&text, "%c %s  %lld s  %s", spinner[p->step++ % 4],
                         p->stage, (hfsb_clock_ms() - p->began) / 1000,
                         p->line));
    rewrite_line(hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    p->drawn = true;
}

/* Waits for the next drawing, or for the end: nobody waits for this thread. */
static void wait_step(progress *p) {
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += STEP_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    (void)pthread_cond_timedwait(&p->ended, &p->lock, &until);
}

static void *tick(void *user) {
    progress *p = (progress *)user;
    pthread_mutex_lock(&p->lock);
    while (!p->over) {
        if (hfsb_clock_ms() - p->began >= p->silent_ms) draw(p);
        wait_step(p);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void set_line(progress *p, hfsb_str line) {
    size_t n = hfsb_utf8_offset(line, 99); /* of up to 4 bytes */
    if (!n) return;
    pthread_mutex_lock(&p->lock);
    memcpy(p->line, line.ptr, n);
    p->line[n] = '\0';
    pthread_mutex_unlock(&p->lock);
}

static bool take_line(void *user, hfsb_str line, hfsb_str timestamp) {
    progress *p = (progress *)user;
    bool      over;
    (void)timestamp;
    set_line(p, line);
    pthread_mutex_lock(&p->lock);
    over = p->over;
    pthread_mutex_unlock(&p->lock);
    return !over;
}

static void *read_log(void *user) {
    progress     *p = (progress *)user;
    hfsb_log_opts opts = HFSB_INIT;
    opts.follow = true;
    opts.tail = 1;
    opts.cancel = p->cancel;
    (void)hfsb_hub_space_logs(p->hub, hfsb_cstr(p->id), "build", &opts,
                              take_line, p, NULL);
    return NULL;
}

/* Starts a thread that gets no signal: those are for the main one. */
static bool start(pthread_t *thread, void *(*fn)(void *), void *user) {
    sigset_t all, old;
    bool     ok;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &old) != 0) return false;
    ok = pthread_create(thread, NULL, fn, user) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

static progress *open_after(long long silent_ms, hfsb_hub *hub,
                            const char *doing, const char *what) {
    static progress p;
    if (!can_rewrite(STDERR_FILENO)) return NULL;
    memset(&p, 0, sizeof p);
    p.began = hfsb_clock_ms();
    p.silent_ms = silent_ms;
    p.hub = hub;
    snprintf(p.stage, sizeof p.stage, "%s%s", doing, what);
    if (pthread_mutex_init(&p.lock, NULL) != 0) return NULL;
    if (pthread_cond_init(&p.ended, NULL) == 0) {
        p.ticks = start(&p.ticker, tick, &p);
        if (p.ticks) return &p;
        pthread_cond_destroy(&p.ended);
    }
    pthread_mutex_destroy(&p.lock);
    return NULL;
}

progress *progress_open(hfsb_hub *hub, const char *stage, bool quiet) {
    return quiet ? NULL : open_after(0, hub, stage, "");
}

progress *progress_wait(const char *sandbox) {
    return open_after(SILENT_MS, NULL, "waiting for ", sandbox);
}

/* "  BUILDING...": the line begins with the stage anyway. */
static bool is_stage(progress *p, hfsb_str line) {
    char stage[sizeof p->stage + 8];
    snprintf(stage, sizeof stage, "  %s...", p->stage);
    return hfsb_str_equal(line, hfsb_cstr(stage));
}

void progress_log(void *user, hfsb_str line) {
    progress *p = (progress *)user;
    if (!p) print_log(NULL, line);
    else if (!is_stage(p, line)) set_line(p, line);
}

void progress_stage(progress *p, hfsb_str id, const char *stage) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    snprintf(p->stage, sizeof p->stage, "%s", stage);
    pthread_mutex_unlock(&p->lock);
    if (p->reads || is_job(id) || id.len >= sizeof p->id) return;
    memcpy(p->id, id.ptr, id.len);
    p->id[id.len] = '\0';
    if (hfsb_cancel_open(NULL, &p->cancel, NULL) != HFSB_OK) return;
    p->reads = start(&p->reader, read_log, p);
}

void progress_close(progress *p) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->over = true;
    pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->lock);
    if (p->cancel) hfsb_cancel_set(p->cancel);
    if (p->reads) pthread_join(p->reader, NULL);
    pthread_join(p->ticker, NULL);
    if (p->cancel) hfsb_cancel_close(p->cancel);
    pthread_cond_destroy(&p->ended);
    pthread_mutex_destroy(&p->lock);
    if (p->drawn) fprintf(stderr, "\r\033[K");
}
