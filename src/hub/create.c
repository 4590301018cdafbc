/* create.c - a sandbox on a new Space.

   create duplicates a template, sets the secrets, commits the server's files,
   waits until the Hub runs that commit on the requested hardware, and until
   the server answers. A Space that was just duplicated may not be visible
   everywhere for up to a minute, so "not found" is retried in every step.

   Whatever fails, no Space may be left behind unnoticed, since it costs money.
   What create knows about the Space:

       NONE --duplicated--------------------> MADE --the Hub shows it--> SEEN
        |---reply lost, Hub shows no Space---> DOUBTFUL
        \---cancelled before anyone looked---> UNKNOWN

   Everything but NONE is deleted on failure. "Not found" then means: gone, if
   the Space was SEEN and the Hub no longer shows it; never there, if it is
   DOUBTFUL; not visible yet, if it is MADE or UNKNOWN. A Space that could not
   be deleted is named in the message. */
#include "hub_private.h"

typedef enum hfsbi_made_state {
    HFSBI_MADE_NONE,
    HFSBI_MADE_DOUBTFUL,
    HFSBI_MADE_UNKNOWN,
    HFSBI_MADE_SURELY,
    HFSBI_MADE_SEEN
} hfsbi_made_state;

enum {
    HFSBI_CREATE_TRIES = 14, /* with 1, 2, 4, 5, 5 ... s between: one minute */
    HFSBI_CREATE_NAMES = 5,  /* that are tried while the Hub says "taken" */
    HFSBI_CREATE_DELETES = 3
};

#define HFSBI_CREATE_OLD_SERVER "sandbox_server.py"

/* Tests shorten all waits by poll_ms, which is 5 s by default. */
static long long hfsbi_create_second(const hfsb_sandbox *s) {
    return (s->o.times.poll_ms + 4) / 5;
}

/* The retries of a request about a Space that is not visible yet. */
static hfsbi_retry hfsbi_create_retry(const hfsb_sandbox *s) {
    hfsbi_retry retry = HFSB_INIT;
    retry.tries = HFSBI_CREATE_TRIES;
    retry.delay_ms = hfsbi_create_second(s);
    retry.max_delay_ms = 5 * retry.delay_ms;
    retry.cancel = s->o.cancel;
    return retry;
}

typedef struct hfsbi_create_texts {
    const hfsb_sandbox_opts *opts;
    const hfsb_sandbox_spec *spec;
} hfsbi_create_texts;

static hfsb_str hfsbi_create_secret_at(const void *owner, size_t i) {
    const hfsbi_create_texts *s = (const hfsbi_create_texts *)owner;
    if (i < 2) return i ? s->opts->hub_token : s->opts->api_token;
    return s->spec->secrets[i - 2].value;
}

HFSBI_FN void hfsbi_create_scrub(const hfsb_sandbox_opts *opts,
                                 const hfsb_sandbox_spec *spec, char *text) {
    hfsbi_create_texts owner;
    owner.opts = opts;
    owner.spec = spec;
    (void)hfsbi_redact(hfsbi_create_secret_at, &owner, 2 + spec->secret_count,
                       text, strlen(text));
}

/* ---- the end of a log ---- */

enum {
    HFSBI_LOG_KEPT = 8192, /* bytes, of which the end is shown */
    HFSBI_LOG_SHOWN = 700,
    HFSBI_LOG_MS = 30000 /* for reading it */
};

typedef struct hfsbi_log_end {
    hfsb_buf          text;
    hfsb_text_filter *filter;
    long long         deadline; /* on hfsb_clock_ms() */
} hfsbi_log_end;

static bool hfsbi_log_end_line(void *user, hfsb_str line, hfsb_str timestamp) {
    hfsbi_log_end *e = (hfsbi_log_end *)user;
    size_t         over;
    (void)timestamp;
    /* only the end of an overlong line matters */
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
    return hfsb_clock_ms() < e->deadline;
}

/* The last lines of text, as many as are shown. */
static hfsb_str hfsbi_log_end_show(hfsb_str text) {
    size_t at;
    while (text.len && text.ptr[text.len - 1] == '\n') text.len--;
    if (text.len <= HFSBI_LOG_SHOWN) return text;
    text = hfsb_str_slice(text, text.len - HFSBI_LOG_SHOWN, text.len);
    at = hfsb_str_find_byte(text, '\n');
    if (at != HFSB_NPOS) return hfsb_str_slice(text, at + 1, text.len);
    return hfsb_str_slice(text, hfsbi_utf8_ceil(text, 0), text.len);
}

HFSBI_FN void hfsbi_log_end_add(const hfsb_sandbox      *s,
                                const hfsb_sandbox_spec *spec,
                                const char *which, hfsb_err *err) {
    hfsbi_log_end e = HFSB_INIT;
    hfsb_log_opts opts = HFSB_INIT;
    hfsb_str      shown, owner, job;
    e.text.alloc = s->o.alloc;
    e.deadline = hfsb_clock_ms() + HFSBI_LOG_MS;
    e.filter = hfsb_text_filter_open(&s->o.alloc);
    opts.cancel = s->o.cancel;
    opts.idle_ms = s->o.times.poll_ms < 5000 ? 1000 : 5000;
    if (e.filter && hfsbi_hubjob_split(s->id, &owner, &job))
        (void)hfsb_hub_job_logs(s->o.hub, owner, job, &opts,
                                hfsbi_log_end_line, &e, NULL);
    else if (e.filter)
        (void)hfsb_hub_space_logs(s->o.hub, s->id, which, &opts,
                                  hfsbi_log_end_line, &e, NULL);
    hfsb_text_filter_close(e.filter);
    if (e.text.len) {
        hfsbi_create_scrub(&s->o, spec, e.text.ptr);
        shown = hfsbi_log_end_show(hfsb_cstr(e.text.ptr));
        hfsbi_err_add(err, "\nThe end of its %s log:\n%.*s", which,
                      (int)shown.len, shown.ptr);
    }
    hfsb_buf_free(&e.text);
}

/* ---- until the Space runs ---- */

typedef struct hfsbi_start {
    hfsb_sandbox            *s;
    const hfsb_sandbox_spec *spec;
    const char              *sha; /* commit to wait for, or "" */
    hfsb_str                 hardware;
    long long                deadline; /* on hfsb_clock_ms() */
    hfsbi_retry              hidden;   /* while the Space is not visible */
    int                      failures; /* looks in a row without an answer */
    int                      stale; /* failures of another commit in a row */
    hfsb_space_runtime       runtime;
} hfsbi_start;

static hfsb_status hfsbi_start_failed(hfsbi_start *w, hfsb_err *err) {
    const hfsb_space_runtime *r = &w->runtime;
    (void)hfsbi_fail(err, HFSB_REMOTE, 0,
                     "Space failed to start: %s. Check %s", r->stage,
                     w->s->page.ptr);
    if (r->error[0]) hfsbi_err_add(err, "\nThe Hub's message: %s", r->error);
    if (strstr(r->stage, "_ERROR"))
        hfsbi_log_end_add(w->s, w->spec,
                          strcmp(r->stage, "RUNTIME_ERROR") ? "build" : "run",
                          err);
    return HFSB_REMOTE;
}

/* HFSB_OK: it runs; HFSB_BUSY: not yet. The template's own build may still
   run, or show how it ended, before ours has begun. */
static hfsb_status hfsbi_start_judge(hfsbi_start *w, hfsb_err *err) {
    const hfsb_space_runtime *r = &w->runtime;
    bool other = *w->sha && r->sha[0] && strcmp(w->sha, r->sha) != 0;
    /* during a move the Hub may show the requested hardware only */
    const char *hardware = r->hardware[0] ? r->hardware : r->requested;
    bool        elsewhere =
        *hardware && !hfsb_str_equal(hfsb_cstr(hardware), w->hardware);
    bool halted = hfsbi_space_state_of(r->stage) >= HFSBI_SPACE_ASLEEP;
    bool running = !strcmp(r->stage, "RUNNING");
    if (w->spec->on_stage)
        w->spec->on_stage(w->spec->user, w->s->id, r->stage);
    if (running && !other && !elsewhere) {
        hfsbi_sandbox_log(w->s, "Space is running (hardware: %s)",
                          r->hardware[0] ? r->hardware : "None");
        return HFSB_OK;
    }
    w->stale = halted && other ? w->stale + 1 : 0;
    if (halted && (!other || w->stale >= 3)) return hfsbi_start_failed(w, err);
    hfsbi_sandbox_log(w->s, "  %s%s...", r->stage,
                      !running ? ""
                      : other  ? " (not our commit yet)"
                               : " (not on our hardware yet)");
    return HFSB_BUSY;
}

/* Looks once. A Hub that does not answer for a moment is no reason to give up
   a build that takes minutes. */
static hfsb_status hfsbi_start_look(hfsbi_start *w, bool *seen,
                                    hfsb_err *err) {
    hfsb_status st = hfsbi_hub_runtime_until(
        w->s->o.hub, w->s->id, w->deadline, w->s->o.cancel, &w->runtime, err);
    switch (st) {
    case HFSB_OK:
        *seen = true;
        w->failures = 0;
        hfsbi_retry_reset(&w->hidden);
        return hfsbi_start_judge(w, err);
    case HFSB_REMOTE:
    case HFSB_RATE:
    case HFSB_CONNECT:
    case HFSB_LOST:
    case HFSB_TIMEOUT:
        if (++w->failures >= 3) return st;
        hfsbi_sandbox_log(w->s, "  the Hub did not report the stage...");
        return HFSB_BUSY;
    default: return st;
    }
}

static hfsb_status hfsbi_start_timeout(hfsbi_start *w, hfsb_err *err) {
    char seconds[HFSBI_SECONDS];
    hfsbi_seconds_text(w->s->o.times.wait_ms, seconds);
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
    char        seconds[HFSBI_SECONDS];
    hfsb_status st, wait;
    w.s = s;
    w.spec = spec;
    w.sha = sha;
    w.deadline = hfsb_clock_ms() + s->o.times.wait_ms;
    w.hidden = hfsbi_create_retry(s);
    w.hardware = spec->hardware.len ? spec->hardware : HFSB_LIT("cpu-basic");
    hfsbi_seconds_text(s->o.times.wait_ms, seconds);
    hfsbi_sandbox_log(s, "Waiting for Space to start (timeout: %ss)...",
                      seconds);
    for (;;) {
        st = hfsbi_start_look(&w, seen, err);
        if (st != HFSB_BUSY && st != HFSB_NOT_FOUND) return st;
        if (hfsb_clock_ms() >= w.deadline) return hfsbi_start_timeout(&w, err);
        wait =
            st == HFSB_NOT_FOUND
                ? hfsbi_retry_again(&w.hidden)
                : hfsbi_poll_wait(s->o.cancel, s->o.times.poll_ms, w.deadline);
        if (wait == HFSB_CANCELLED) return wait;
        if (wait == HFSB_LIMIT && st == HFSB_NOT_FOUND) return st;
    }
}

/* ---- one creation ---- */

typedef struct hfsbi_create {
    const hfsb_sandbox_spec *spec;
    hfsb_sandbox_opts        opts; /* with the token that was generated */
    hfsb_hub                *hub;
    const hfsb_cancel       *cancel;
    hfsb_str                 from, hardware;
    hfsb_buf                 owner, token;
    hfsb_sandbox            *box; /* NULL until it has a name */
    hfsbi_made_state         state;
    bool                     left;       /* the Space could not be deleted */
    bool                     names_page; /* err advises to look at it */
    char                     sha[48];    /* of the commit to wait for, or "" */
    hfsb_err                 err;
} hfsbi_create;

HFSBI_FN hfsb_status hfsbi_create_check_secrets(const hfsb_sandbox_spec *spec,
                                                hfsb_err                *err) {
    size_t i;
    for (i = 0; i < spec->secret_count; i++) {
        hfsb_str    key = spec->secrets[i].key;
        hfsb_status st = hfsbi_hub_check_keys(&spec->secrets[i], 1, 1, err);
        if (st != HFSB_OK) return st;
        if (hfsb_str_equal(key, HFSB_LIT("SANDBOX_API_TOKEN")))
            return hfsbi_fail(err, HFSB_ARG, i,
                              "the secret SANDBOX_API_TOKEN is set by create "
                              "itself: give it as the option api_token");
    }
    return HFSB_OK;
}

/* 32 random bytes as Python's token_urlsafe() writes them: 43 characters. */
static hfsb_status hfsbi_create_token(hfsbi_create *c) {
    unsigned char key[32];
    hfsb_status   st;
    size_t        i;
    if (c->opts.api_token.len) return HFSB_OK;
    if (!hfsbi_random(key, sizeof key))
        return hfsbi_fail(&c->err, HFSB_BUSY, 0,
                          "the system has no random bytes for a token: give "
                          "one as the option api_token");
    st = hfsb_base64_encode(hfsb_str_make((const char *)key, sizeof key),
                            &c->token);
    hfsb_secret_wipe(key, sizeof key);
    if (st != HFSB_OK) return hfsbi_fail_status(&c->err, st, "Token");
    while (c->token.ptr[c->token.len - 1] == '=')
        hfsb_buf_truncate(&c->token, c->token.len - 1);
    for (i = 0; i < c->token.len; i++) {
        if (c->token.ptr[i] == '+') c->token.ptr[i] = '-';
        if (c->token.ptr[i] == '/') c->token.ptr[i] = '_';
    }
    c->opts.api_token = hfsb_buf_str(&c->token);
    return HFSB_OK;
}

static hfsb_status hfsbi_create_begin(hfsbi_create            *c,
                                      const hfsb_sandbox_opts *opts) {
    const hfsb_sandbox_spec *spec = c->spec;
    hfsb_status              st;
    if (!opts || !opts->hub)
        return hfsbi_fail(&c->err, HFSB_ARG, 0,
                          "a sandbox on a Space needs the option hub");
    c->opts = *opts;
    c->hub = opts->hub;
    c->cancel = opts->cancel;
    c->owner.alloc = c->token.alloc = opts->alloc;
    c->from = spec->from.len ? spec->from : HFSB_LIT("burtenshaw/sandbox");
    c->hardware = spec->hardware.len ? spec->hardware : HFSB_LIT("cpu-basic");
    if (!hfsb_hub_has_token(c->hub))
        return hfsbi_fail(&c->err, HFSB_AUTH, 0,
                          "creating a Space needs a token of the Hugging Face "
                          "Hub: set HF_TOKEN, or log in with \"hf auth "
                          "login\"");
    st = hfsbi_create_check_secrets(spec, &c->err);
    if (st == HFSB_OK) st = hfsb_space_check(c->from, &c->err);
    if (st == HFSB_OK) st = hfsbi_create_token(c);
    if (st != HFSB_OK) return st;
    if (spec->owner.len) st = hfsb_buf_append(&c->owner, spec->owner);
    else st = hfsb_hub_user(c->hub, c->cancel, &c->owner, &c->err);
    if (st == HFSB_NOMEM) (void)hfsbi_fail_status(&c->err, st, "Owner");
    return st;
}

/* After a request about the new Space: true when it must be sent again. */
static bool hfsbi_create_again(hfsbi_create *c, hfsbi_retry *retry,
                               hfsb_status *st) {
    hfsb_status wait;
    if (*st == HFSB_OK) c->state = HFSBI_MADE_SEEN;
    if (*st != HFSB_NOT_FOUND) return false;
    if (!retry->waits) hfsbi_sandbox_log(c->box, "  not visible yet...");
    wait = hfsbi_retry_again(retry);
    if (wait == HFSB_CANCELLED) *st = wait;
    return wait == HFSB_OK;
}

/* ---- duplicating the template ---- */

static bool hfsbi_create_is_named(const hfsbi_create *c) {
    return c->spec->name.len &&
           !hfsb_str_equal(c->spec->name, HFSB_LIT("sandbox"));
}

/* Makes a handle for owner/name- and random digits. */
static hfsb_status hfsbi_create_name(hfsbi_create *c) {
    hfsb_str    base = c->spec->name.len ? c->spec->name : HFSB_LIT("sandbox");
    hfsb_buf    id = HFSB_INIT;
    char        suffix[HFSBI_SUFFIX + 1];
    hfsb_status st;
    hfsbi_random_hex(suffix, HFSBI_SUFFIX);
    id.alloc = c->opts.alloc;
    st = hfsb_buf_printf(&id, "%s/%.*s-%s", c->owner.ptr ? c->owner.ptr : "",
                         (int)base.len, base.ptr, suffix);
    hfsbi_sandbox_free(c->box);
    c->box = NULL;
    if (st == HFSB_OK)
        st = hfsbi_space_new(&c->opts, hfsb_buf_str(&id), true, &c->box,
                             &c->err);
    else (void)hfsbi_fail_status(&c->err, st, "Name");
    hfsb_buf_free(&id);
    return st;
}

HFSBI_FN bool hfsbi_create_may_have_run(hfsb_status st) {
    switch (st) {
    case HFSB_ARG:
    case HFSB_AUTH:
    case HFSB_PAYMENT:
    case HFSB_DENIED:
    case HFSB_NOT_FOUND:
    case HFSB_CONFLICT:
    case HFSB_RATE:
    case HFSB_REFUSED:
    case HFSB_CONNECT:
    case HFSB_BUSY: return false;
    default: return true;
    }
}

/* Sends the duplication until the name is free and nothing else is in
   progress. HFSB_CANCELLED: *fate is whether the request was sent. */
static hfsb_status hfsbi_create_request(hfsbi_create    *c,
                                        hfsb_space_spec *space,
                                        hfsbi_hub_fate  *fate) {
    hfsbi_retry retry = hfsbi_create_retry(c->box);
    int         names = 1;
    hfsb_status st, wait;
    for (;;) {
        space->id = c->box->id;
        if (!retry.waits)
            hfsbi_sandbox_log(c->box, "Creating sandbox: %s (from %.*s)...",
                              c->box->id.ptr, (int)c->from.len, c->from.ptr);
        st = hfsbi_hub_duplicate(c->hub, c->from, space, c->cancel, fate,
                                 &c->err);
        if (st != HFSB_CONFLICT) return st;
        if (fate->later) {
            wait = hfsbi_retry_again(&retry);
            if (wait != HFSB_OK) return wait == HFSB_CANCELLED ? wait : st;
            continue;
        }
        if (names++ == HFSBI_CREATE_NAMES) return st;
        hfsbi_retry_reset(&retry);
        st = hfsbi_create_name(c);
        if (st != HFSB_OK) return st;
        if (hfsb_cancel_is_set(c->cancel)) return HFSB_CANCELLED;
    }
}

static hfsb_status hfsbi_create_duplicate(hfsbi_create *c) {
    hfsb_space_spec space = HFSB_INIT;
    hfsb_hub_pair   mark = HFSB_INIT;
    hfsbi_hub_fate  fate = HFSB_INIT;
    hfsb_status     st = hfsbi_create_name(c);
    if (st != HFSB_OK) return st;
    if (hfsb_cancel_is_set(c->cancel)) return HFSB_CANCELLED;
    space.visible = c->spec->visible;
    space.hardware = c->hardware;
    space.sleep_time = c->spec->sleep_time;
    mark.key = HFSB_LIT(HFSBI_CREATE_MARK);
    mark.value = HFSB_LIT("1");
    if (hfsbi_create_is_named(c)) {
        space.variables = &mark;
        space.variable_count = 1;
    }
    st = hfsbi_create_request(c, &space, &fate);
    if (st == HFSB_OK) {
        c->state = HFSBI_MADE_SURELY;
        hfsbi_sandbox_log(c->box, "Space created: %s", c->box->page.ptr);
    } else if (c->box && hfsbi_create_may_have_run(st)) {
        c->state = fate.unknown ? HFSBI_MADE_UNKNOWN : HFSBI_MADE_DOUBTFUL;
    }
    return st;
}

/* ---- secrets and files ---- */

static hfsb_status hfsbi_create_secret(hfsbi_create        *c,
                                       const hfsb_hub_pair *pair) {
    hfsbi_retry retry = hfsbi_create_retry(c->box);
    hfsb_status st;
    do
        st = hfsb_hub_set(c->hub, c->box->id, HFSB_HUB_SECRETS, pair,
                          c->cancel, &c->err);
    while (hfsbi_create_again(c, &retry, &st));
    return st;
}

/* Sets the secrets before the commit, whose build then starts with them. */
static hfsb_status hfsbi_create_secrets(hfsbi_create *c) {
    hfsb_hub_pair token = HFSB_INIT;
    hfsb_status   st = HFSB_OK;
    size_t        i;
    for (i = 0; st == HFSB_OK && i < c->spec->secret_count; i++)
        st = hfsbi_create_secret(c, &c->spec->secrets[i]);
    token.key = HFSB_LIT("SANDBOX_API_TOKEN");
    token.value = c->opts.api_token;
    return st == HFSB_OK ? hfsbi_create_secret(c, &token) : st;
}

/* Sets *has if the template brought its own server, which the commit removes.
   Removing a file that does not exist would fail the whole commit. */
static hfsb_status hfsbi_create_has_old(hfsbi_create *c, bool *has) {
    const hfsb_str name = HFSB_LIT(HFSBI_CREATE_OLD_SERVER);
    hfsbi_retry    retry = hfsbi_create_retry(c->box);
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    hfsb_status    st;
    size_t         i;
    *has = false;
    for (i = 0; i < c->spec->file_count; i++)
        if (!strcmp(c->spec->files[i].path, HFSBI_CREATE_OLD_SERVER))
            return HFSB_OK; /* the caller decides */
    doc.alloc = c->opts.alloc;
    do
        st = hfsb_hub_space(c->hub, c->box->id, HFSB_LIT(""), HFSB_LIT(""),
                            c->cancel, &doc, &c->err);
    while (hfsbi_create_again(c, &retry, &st));
    if (st == HFSB_CANCELLED || st == HFSB_NOMEM || st == HFSB_NOT_FOUND)
        return st;
    if (st != HFSB_OK) return HFSB_OK; /* the commit is what matters */
    it = hfsb_json_begin(hfsb_json_get(doc.root, "siblings"));
    while (hfsb_json_next(&it))
        if (hfsb_str_equal(hfsbi_json_get_str(it.value, "rfilename"), name))
            *has = true;
    hfsb_json_free(&doc);
    return HFSB_OK;
}

static hfsb_status hfsbi_create_commit(hfsbi_create     *c,
                                       hfsb_commit_done *done) {
    hfsb_commit       commit = HFSB_INIT;
    hfsbi_retry       retry = hfsbi_create_retry(c->box);
    size_t            n = c->spec->file_count;
    hfsb_commit_file *files;
    bool              has = false;
    hfsb_status       st;
    hfsbi_sandbox_log(c->box, "Uploading sandbox server to %s...",
                      c->box->id.ptr);
    st = hfsbi_create_has_old(c, &has);
    if (st != HFSB_OK) return st;
    files =
        (hfsb_commit_file *)hfsbi_array(&c->opts.alloc, n + 1, sizeof *files);
    if (!files) return hfsbi_fail_status(&c->err, HFSB_NOMEM, "Commit");
    memcpy(files, c->spec->files, n * sizeof *files);
    memset(files + n, 0, sizeof *files);
    files[n].path = HFSBI_CREATE_OLD_SERVER; /* without content: deleted */
    commit.files = files;
    commit.file_count = n + (has ? 1 : 0);
    commit.summary = HFSB_LIT("Setup sandbox server");
    do
        st = hfsb_hub_commit(c->hub, c->box->id, &commit, c->cancel, done,
                             &c->err);
    while (hfsbi_create_again(c, &retry, &st));
    hfsbi_array_free(&c->opts.alloc, files, n + 1, sizeof *files);
    return st;
}

/* Commits the server's files. If nothing changed, a restart passes the secrets
   to the running server. */
static hfsb_status hfsbi_create_server(hfsbi_create *c) {
    hfsb_commit_done done = HFSB_INIT;
    hfsbi_retry      retry = hfsbi_create_retry(c->box);
    hfsb_status      st = HFSB_OK;
    done.unchanged = true;
    if (c->spec->files && c->spec->file_count)
        st = hfsbi_create_commit(c, &done);
    if (st != HFSB_OK) return st;
    memcpy(c->sha, done.oid, sizeof c->sha);
    if (!done.unchanged) {
        hfsbi_sandbox_log(c->box, "Server files uploaded, rebuild triggered.");
        return st;
    }
    hfsbi_sandbox_log(c->box, "No file changed, restart triggered.");
    do
        st = hfsb_hub_restart(c->hub, c->box->id, false, c->cancel, NULL,
                              &c->err);
    while (hfsbi_create_again(c, &retry, &st));
    return st;
}

/* ---- undo ---- */

/* True when the Hub's "not found" for the deletion means that it is gone. */
static bool hfsbi_create_is_gone(hfsbi_create *c) {
    hfsb_space_runtime runtime;
    return c->state == HFSBI_MADE_SEEN &&
           hfsbi_hub_runtime_until(c->hub, c->box->id, hfsb_clock_ms() + 30000,
                                   c->opts.give_up, &runtime,
                                   NULL) == HFSB_NOT_FOUND;
}

/* Deletes the Space: true when it is gone. See the states at the top for the
   meaning of "not found". */
static bool hfsbi_create_delete(hfsbi_create *c, hfsb_err *why) {
    hfsbi_hub_tried tried = HFSB_INIT;
    hfsbi_retry     retry = HFSB_INIT;
    hfsb_status     st;
    retry.tries = HFSBI_CREATE_DELETES;
    retry.delay_ms = hfsbi_create_second(c->box);
    retry.max_delay_ms = 5 * retry.delay_ms;
    retry.linear = true;
    retry.cancel = c->opts.give_up;
    do {
        st = hfsbi_hub_delete_once(c->hub, c->box->id, 0, c->opts.give_up,
                                   &tried, why);
        if (st == HFSB_NOT_FOUND && hfsbi_create_is_gone(c)) return true;
        if (st == HFSB_OK || st == HFSB_AUTH || st == HFSB_DENIED ||
            st == HFSB_CANCELLED)
            break;
        retry.asked_ms = tried.asked_ms;
    } while (hfsbi_retry_again(&retry) == HFSB_OK);
    if (st == HFSB_OK)
        hfsbi_sandbox_log(c->box, "Deleted Space %s", c->box->id.ptr);
    return st == HFSB_OK ||
           (st == HFSB_NOT_FOUND && c->state == HFSBI_MADE_DOUBTFUL);
}

HFSBI_FN void hfsbi_create_append(hfsb_err *err, const char *end) {
    size_t room = sizeof err->msg - 1, len = strlen(end);
    room -= len < room ? len : room;
    if (strlen(err->msg) > room)
        err->msg[hfsbi_utf8_floor(hfsb_cstr(err->msg), room)] = '\0';
    hfsbi_err_add(err, "%s", end);
}

HFSBI_FN bool hfsbi_create_keep(const hfsb_sandbox_spec *spec,
                                const hfsb_sandbox *s, hfsb_status st,
                                hfsb_err *err) {
    char end[400];
    if (st == HFSB_CANCELLED || !spec->on_failure ||
        !spec->on_failure(spec->user, s->id))
        return false;
    (void)snprintf(end, sizeof end,
                   "\n%.160s was kept, and may cost money: %.200s", s->id.ptr,
                   s->page.ptr);
    hfsbi_create_append(err, end);
    return true;
}

/* Deletes the Space, and adds the outcome to c->err. Needs no memory except
   for the request. */
static void hfsbi_create_remove(hfsbi_create *c, hfsb_status st) {
    bool        made = c->state >= HFSBI_MADE_SURELY;
    hfsb_err    why = HFSB_INIT;
    char        end[HFSB_ERR_SIZE / 2];
    const char *id = c->box->id.ptr;
    end[0] = '\0';
    if (made && hfsbi_create_keep(c->spec, c->box, st, &c->err)) return;
    c->left = !hfsbi_create_delete(c, &why);
    if (c->left) {
        hfsbi_create_scrub(&c->opts, c->spec, why.msg);
        (void)snprintf(end, sizeof end,
                       "\nThe Space %s %s left, and may cost money: it could "
                       "not be deleted (%.160s). Delete it at %.300s/settings",
                       id, made ? "is" : "may be", why.msg, c->box->page.ptr);
        hfsbi_sandbox_log(c->box, "Warning: %s", end + 1);
    } else if (made) {
        (void)snprintf(end, sizeof end, "\nThe Space %s was deleted.%s", id,
                       c->names_page ? " Its page is gone, too." : "");
    }
    hfsbi_create_append(&c->err, end);
}

static void hfsbi_create_undo(hfsbi_create *c, hfsb_status st) {
    if (st == HFSB_CANCELLED)
        (void)hfsbi_fail(&c->err, st, 0, "Sandbox creation cancelled%s%s",
                         c->box ? ": " : "", c->box ? c->box->id.ptr : "");
    hfsbi_create_scrub(&c->opts, c->spec, c->err.msg);
    if (c->state == HFSBI_MADE_NONE) return;
    if (st == HFSB_CANCELLED)
        hfsbi_sandbox_log(c->box, "Sandbox creation cancelled by user, "
                                  "cleaning up...");
    hfsbi_create_remove(c, st);
}

/* ---- create ---- */

static hfsb_status hfsbi_create_start(hfsbi_create *c) {
    bool        seen = false;
    hfsb_status st =
        hfsbi_sandbox_start(c->box, c->spec, c->sha, &seen, &c->err);
    if (seen) c->state = HFSBI_MADE_SEEN;
    c->names_page = st == HFSB_REMOTE || st == HFSB_TIMEOUT;
    return st;
}

/* Waits for the server. Its silence alone is not a failure. A server that
   refuses the token is the template's, which is about to end. */
static hfsb_status hfsbi_create_answer(hfsbi_create *c) {
    hfsbi_probe p = HFSB_INIT;
    hfsb_status st = hfsbi_space_locate(c->box, &c->err);
    if (st == HFSB_CANCELLED || st == HFSB_NOMEM) return st;
    p.before = "";
    p.fresh = true;
    if (c->box->api.len)
        st = hfsbi_probe_run(c->box, &p, c->box->o.times.api_wait_ms, &c->err);
    if (st != HFSB_TIMEOUT) return st;
    hfsbi_create_scrub(&c->opts, c->spec, c->err.msg);
    hfsbi_sandbox_log(c->box,
                      "Warning: API health check timed out (%s), but Space is "
                      "RUNNING. Continuing.",
                      c->err.msg);
    return hfsbi_ok(&c->err);
}

static hfsb_status hfsbi_create_run(hfsbi_create            *c,
                                    const hfsb_sandbox_opts *opts) {
    hfsb_status st = hfsbi_create_begin(c, opts);
    if (st == HFSB_OK) st = hfsbi_create_duplicate(c);
    if (st == HFSB_OK) st = hfsbi_create_secrets(c);
    if (st == HFSB_OK) st = hfsbi_create_server(c);
    if (st == HFSB_OK) st = hfsbi_create_start(c);
    if (st == HFSB_OK) st = hfsbi_create_answer(c);
    if (st == HFSB_OK && hfsb_cancel_is_set(c->cancel)) st = HFSB_CANCELLED;
    return st;
}

HFSBI_FN hfsb_status hfsbi_sandbox_make(const hfsb_sandbox_spec *spec,
                                        const hfsb_sandbox_opts *opts,
                                        hfsb_buf *left, hfsb_sandbox **out,
                                        hfsb_err *err) {
    const hfsb_sandbox_spec plain = HFSB_INIT;
    hfsbi_create            c = HFSB_INIT;
    hfsb_status             st;
    if (spec && spec->image.len)
        return hfsbi_hubjob_make(spec, opts, left, out, err);
    c.spec = spec ? spec : &plain;
    st = hfsbi_create_run(&c, opts);
    *out = NULL;
    if (st != HFSB_OK) {
        hfsbi_create_undo(&c, st);
        if (left && c.left && hfsb_buf_append(left, c.box->id) != HFSB_OK)
            hfsb_buf_truncate(left, 0); /* the message names it */
        hfsbi_sandbox_free(c.box);
        if (err) *err = c.err;
    } else {
        *out = c.box;
        (void)hfsbi_ok(err);
    }
    if (c.token.ptr) hfsb_secret_wipe(c.token.ptr, c.token.len);
    hfsb_buf_free(&c.token);
    hfsb_buf_free(&c.owner);
    return st;
}

hfsb_status hfsb_sandbox_create(const hfsb_sandbox_spec *spec,
                                const hfsb_sandbox_opts *opts,
                                hfsb_sandbox **out, hfsb_err *err) {
    return hfsbi_sandbox_make(spec, opts, NULL, out, err);
}
