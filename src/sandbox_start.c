/* sandbox_start.c - a Space that was just made, until it runs. Depends on:
   text, net, hub, sandbox_handle. */
#include "hub_parts.h"
#include "sandbox_parts.h"

/* ---- patience with the Hub ---- */

HFSBI_FN hfsb_status hfsbi_sandbox_patience(const hfsb_sandbox *s,
                                            hfsbi_patience     *p) {
    static const int steps[] = {1, 2, 4, 5};
    const long long  second = (s->o.poll_ms + 4) / 5;
    int              step = steps[p->waits < 4 ? p->waits : 3];
    if (p->seconds + step > 60) return HFSB_LIMIT;
    p->seconds += step;
    p->waits++;
    return hfsb_cancel_wait(s->o.cancel, second * step) ? HFSB_OK
                                                        : HFSB_CANCELLED;
}

/* ---- secrets stay secret ---- */

/* Values this short are switches and numbers, which are in every text. */
#define HFSBI_SCRUB_MIN 6

static void hfsbi_scrub_one(char *text, hfsb_str secret) {
    const hfsb_str stars = HFSB_LIT("***");
    size_t         at, n;
    if (secret.len < HFSBI_SCRUB_MIN) return;
    while ((at = hfsb_str_find(hfsb_cstr(text), secret)) != HFSB_NPOS) {
        n = strlen(text);
        memcpy(text + at, stars.ptr, stars.len);
        memmove(text + at + stars.len, text + at + secret.len,
                n - at - secret.len + 1);
        text += at + stars.len;
    }
}

HFSBI_FN void hfsbi_sandbox_scrub(const hfsb_sandbox_opts *opts,
                                  const hfsb_sandbox_spec *spec, char *text) {
    size_t i;
    hfsbi_scrub_one(text, opts->api_token);
    hfsbi_scrub_one(text, opts->hub_token);
    for (i = 0; i < spec->secret_count; i++)
        hfsbi_scrub_one(text, spec->secrets[i].value);
}

HFSBI_FN void hfsbi_sandbox_hide(const hfsb_sandbox *s, char *text) {
    hfsbi_scrub_one(text, hfsb_buf_str(&s->api_token));
    hfsbi_scrub_one(text, hfsb_buf_str(&s->hub_token));
}

/* ---- the end of a log ---- */

#define HFSBI_LOG_KEPT  8192 /* bytes, of which the end is shown */
#define HFSBI_LOG_SHOWN 700

typedef struct hfsbi_log_end {
    hfsb_buf          text;
    hfsb_text_filter *filter;
    long long         until; /* on hfsb_clock_ms(): enough of it */
} hfsbi_log_end;

static bool hfsbi_log_end_line(void *user, hfsb_str line, hfsb_str timestamp) {
    hfsbi_log_end *e = (hfsbi_log_end *)user;
    size_t         over;
    (void)timestamp;
    /* of a line longer than all we keep only the end matters */
    if (line.len > HFSBI_LOG_KEPT)
        line = hfsb_str_slice(line, line.len - HFSBI_LOG_KEPT, line.len);
    if (hfsb_text_filter_write(e->filter, line, &e->text) != HFSB_OK ||
        hfsb_text_filter_write(e->filter, HFSB_LIT("\n"), &e->text) != HFSB_OK)
        return false;
    if (e->text.len > 2 * HFSBI_LOG_KEPT) {
        over = e->text.len - HFSBI_LOG_KEPT;
        memmove(e->text.ptr, e->text.ptr + over, e->text.len - over);
        hfsb_buf_truncate(&e->text, e->text.len - over);
    }
    return hfsb_clock_ms() < e->until;
}

/* The last lines of text, as many as fit. */
static hfsb_str hfsbi_log_end_show(hfsb_str text) {
    size_t at;
    while (text.len && text.ptr[text.len - 1] == '\n') text.len--;
    if (text.len <= HFSBI_LOG_SHOWN) return text;
    text = hfsb_str_slice(text, text.len - HFSBI_LOG_SHOWN, text.len);
    at = hfsb_str_find_byte(text, '\n');
    if (at != HFSB_NPOS) return hfsb_str_slice(text, at + 1, text.len);
    while (text.len && ((unsigned char)*text.ptr & 0xC0) == 0x80)
        text = hfsb_str_slice(text, 1, text.len);
    return text;
}

/* Appends the end of the Space's log to *err, when there is one to be had. */
static void hfsbi_log_end_add(const hfsb_sandbox      *s,
                              const hfsb_sandbox_spec *spec, const char *which,
                              hfsb_err *err) {
    hfsbi_log_end e = HFSB_INIT;
    hfsb_log_opts opts = HFSB_INIT;
    hfsb_str      shown;
    e.text.alloc = s->o.alloc;
    e.until = hfsb_clock_ms() + 30000;
    e.filter = hfsb_text_filter_open(&s->o.alloc);
    opts.cancel = s->o.cancel;
    opts.idle_ms = s->o.poll_ms < 5000 ? 1000 : 5000;
    if (e.filter)
        (void)hfsb_hub_space_logs(s->o.hub, hfsb_buf_str(&s->id), which, &opts,
                                  hfsbi_log_end_line, &e, NULL);
    hfsb_text_filter_close(e.filter);
    if (e.text.len) {
        hfsbi_sandbox_scrub(&s->o, spec, e.text.ptr);
        shown = hfsbi_log_end_show(hfsb_cstr(e.text.ptr));
        hfsbi_err_add(err, "\nThe end of its %s log:\n%.*s", which,
                      (int)shown.len, shown.ptr);
    }
    hfsb_buf_free(&e.text);
}

/* ---- stages ---- */

typedef struct hfsbi_start {
    hfsb_sandbox            *s;
    const hfsb_sandbox_spec *spec;
    const char              *sha;
    hfsb_str                 hardware;
    long long                until; /* on hfsb_clock_ms(): given up then */
    hfsbi_patience           patience;
    int                      failures; /* asks in a row that brought nothing */
    int                      stale;    /* errors in a row of another commit */
    hfsb_space_runtime       runtime;
} hfsbi_start;

/* What a Space does not come out of by itself. */
static bool hfsbi_stage_is_final(const char *stage) {
    static const char *const final[] = {
        "BUILD_ERROR", "RUNTIME_ERROR", "CONFIG_ERROR", "NO_APP_FILE",
        "PAUSED",      "STOPPED",       "SLEEPING",     "DELETING"};
    size_t i;
    for (i = 0; i < sizeof final / sizeof *final; i++)
        if (!strcmp(stage, final[i])) return true;
    return false;
}

static hfsb_status hfsbi_start_failed(hfsbi_start *w, hfsb_err *err) {
    const hfsb_space_runtime *r = &w->runtime;
    (void)hfsbi_fail(err, HFSB_REMOTE, 0,
                     "Space failed to start: %s. Check %s", r->stage,
                     w->s->page.ptr);
    if (r->error[0]) hfsbi_err_add(err, "\n%s", r->error);
    if (strstr(r->stage, "_ERROR"))
        hfsbi_log_end_add(w->s, w->spec,
                          strcmp(r->stage, "RUNTIME_ERROR") ? "build" : "run",
                          err);
    return HFSB_REMOTE;
}

/* HFSB_OK: it runs; HFSB_BUSY: not yet. The template's own build may still
   run, or show how it ended, when ours has not begun. */
static hfsb_status hfsbi_start_look(hfsbi_start *w, hfsb_err *err) {
    const hfsb_space_runtime *r = &w->runtime;
    bool other = *w->sha && r->sha[0] && strcmp(w->sha, r->sha) != 0;
    /* while it moves only what was asked for may be told */
    const char *hardware = r->hardware[0] ? r->hardware : r->requested;
    bool        elsewhere =
        *hardware && !hfsb_str_equal(hfsb_cstr(hardware), w->hardware);
    bool final = hfsbi_stage_is_final(r->stage);
    if (!strcmp(r->stage, "RUNNING") && !other && !elsewhere) {
        hfsbi_sandbox_log(w->s, "Space is running (hardware: %s)",
                          r->hardware[0] ? r->hardware : "None");
        return HFSB_OK;
    }
    w->stale = final && other ? w->stale + 1 : 0;
    if (final && (!other || w->stale >= 3)) return hfsbi_start_failed(w, err);
    hfsbi_sandbox_log(w->s, "  %s%s...", r->stage,
                      strcmp(r->stage, "RUNNING") ? ""
                      : other                     ? " (not our commit yet)"
                              : " (not on our hardware yet)");
    return HFSB_BUSY;
}

/* One ask. What the Hub does not answer for a moment is no reason to give up a
   build that takes minutes. */
static hfsb_status hfsbi_start_ask(hfsbi_start *w, bool *seen, hfsb_err *err) {
    hfsb_status st =
        hfsbi_hub_runtime_until(w->s->o.hub, hfsb_buf_str(&w->s->id), w->until,
                                w->s->o.cancel, &w->runtime, err);
    switch (st) {
    case HFSB_OK:
        *seen = true;
        w->failures = 0;
        memset(&w->patience, 0, sizeof w->patience);
        return hfsbi_start_look(w, err);
    case HFSB_REMOTE:
    case HFSB_RATE:
    case HFSB_CONNECT:
    case HFSB_LOST:
    case HFSB_TIMEOUT:
        if (++w->failures >= 3) return st;
        hfsbi_sandbox_log(w->s, "  the Hub did not tell the stage...");
        return HFSB_BUSY;
    default: return st;
    }
}

static hfsb_status hfsbi_start_late(hfsbi_start *w, hfsb_err *err) {
    char seconds[HFSBI_SECONDS];
    hfsbi_seconds_text(w->s->o.wait_ms, seconds);
    (void)hfsbi_fail(err, HFSB_TIMEOUT, 0,
                     "Space did not start within %ss. Check %s", seconds,
                     w->s->page.ptr);
    if (w->runtime.stage[0])
        hfsbi_err_add(err, "\nIts last stage was %s.", w->runtime.stage);
    return HFSB_TIMEOUT;
}

HFSBI_FN hfsb_status hfsbi_sandbox_start(hfsb_sandbox            *s,
                                         const hfsb_sandbox_spec *spec,
                                         const char *sha, bool *seen,
                                         hfsb_err *err) {
    hfsbi_start w = HFSB_INIT;
    long long   left;
    char        seconds[HFSBI_SECONDS];
    hfsb_status st;
    w.s = s;
    w.spec = spec;
    w.sha = sha;
    w.until = hfsb_clock_ms() + s->o.wait_ms;
    w.hardware = spec->hardware.len ? spec->hardware : HFSB_LIT("cpu-basic");
    hfsbi_seconds_text(s->o.wait_ms, seconds);
    hfsbi_sandbox_log(s, "Waiting for Space to start (timeout: %ss)...",
                      seconds);
    for (;;) {
        st = hfsbi_start_ask(&w, seen, err);
        if (st != HFSB_BUSY && st != HFSB_NOT_FOUND) return st;
        left = w.until - hfsb_clock_ms();
        if (left <= 0) return hfsbi_start_late(&w, err);
        if (st == HFSB_NOT_FOUND) st = hfsbi_sandbox_patience(s, &w.patience);
        else if (!hfsb_cancel_wait(s->o.cancel,
                                   left < s->o.poll_ms ? left : s->o.poll_ms))
            st = HFSB_CANCELLED;
        if (st == HFSB_LIMIT) return HFSB_NOT_FOUND; /* *err tells */
        if (st == HFSB_CANCELLED) return st;
    }
}
