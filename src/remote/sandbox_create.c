/* sandbox_create.c - a new sandbox on the Hub: duplicated, furnished, waited
   for, and taken away again when any of that fails. */
#include "remote_private.h"

/* How long is waited for a Space that was just duplicated and is not visible
   everywhere yet. All zero at first. */
typedef struct hfsbi_patience {
    int    seconds; /* waited so far */
    size_t waits;
} hfsbi_patience;

/* ==== sandbox start ==== */

/* a Space that was just made, until it runs. */

/* ---- patience with the Hub ---- */

/* Waits for 1, 2, 4, 5, 5 ... seconds (in fifths of poll_ms); HFSB_LIMIT when
   it has been a minute, HFSB_CANCELLED. */
static hfsb_status hfsbi_sandbox_patience(const hfsb_sandbox *s,
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

/* Takes the tokens and what was given as a secret out of a text. */
static void hfsbi_sandbox_scrub(const hfsb_sandbox_opts *opts,
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

typedef struct hfsbi_create {
    const hfsb_sandbox_spec *spec;
    hfsb_sandbox_opts        opts; /* with the token that was made */
    hfsb_hub                *hub;
    const hfsb_cancel       *cancel;
    hfsb_str                 from, hardware;
    hfsb_buf                 owner, token;
    hfsb_sandbox            *box;     /* NULL: has no name yet */
    bool                     made;    /* there is a Space ... */
    bool                     maybe;   /* ... or there may be one */
    bool                     unheard; /* ... which nobody looked for */
    bool                     seen;    /* the Hub has answered for it */
    bool                     left;    /* ... and it could not be deleted */
    char                     sha[48]; /* of the commit to wait for, or "" */
    hfsb_err                 err;
} hfsbi_create;

/* ---- before anything is asked ---- */

static bool hfsbi_create_key_is_good(hfsb_str key) {
    size_t i;
    for (i = 0; i < key.len; i++) {
        char c = hfsbi_lower(key.ptr[i]);
        if (c >= 'a' && c <= 'z') continue;
        if (!i || !((c >= '0' && c <= '9') || c == '_')) return false;
    }
    return key.len > 0;
}

static hfsb_status hfsbi_create_check_secrets(hfsbi_create *c) {
    size_t i;
    for (i = 0; i < c->spec->secret_count; i++) {
        hfsb_str key = c->spec->secrets[i].key;
        if (!hfsbi_create_key_is_good(key)) {
            (void)hfsbi_fail(&c->err, HFSB_ARG, i,
                             "the name of a secret is letters, digits and "
                             "\"_\" and begins with a letter, not \"");
            hfsbi_err_quote(&c->err, key, 60);
            hfsbi_err_add(&c->err, "\"");
            return HFSB_ARG;
        }
        if (hfsb_str_equal(key, HFSB_LIT("SANDBOX_API_TOKEN")))
            return hfsbi_fail(&c->err, HFSB_ARG, i,
                              "the secret SANDBOX_API_TOKEN is set by create "
                              "itself: give it as the option api_token");
    }
    return HFSB_OK;
}

/* 32 random bytes, as Python's token_urlsafe() writes them: 43 characters. */
static hfsb_status hfsbi_create_token(hfsbi_create *c) {
    unsigned char key[32];
    hfsb_status   st;
    size_t        i;
    if (c->opts.api_token.len) return HFSB_OK;
    if (!hfsbi_random(key, sizeof key))
        return hfsbi_fail(&c->err, HFSB_BUSY, 0,
                          "the system gives no random bytes to make a token "
                          "of: give one as the option api_token");
    st = hfsb_base64_encode(hfsb_str_make((const char *)key, sizeof key),
                            &c->token);
    hfsbi_wipe(key, sizeof key);
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
                                      const hfsb_sandbox_spec *spec,
                                      const hfsb_sandbox_opts *opts) {
    hfsb_status st;
    c->spec = spec;
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
                          "a token of the Hugging Face Hub is needed to make "
                          "a Space: set HF_TOKEN, or log in with \"hf auth "
                          "login\"");
    st = hfsbi_create_check_secrets(c);
    if (st == HFSB_OK) st = hfsb_space_check(c->from, &c->err);
    if (st == HFSB_OK) st = hfsbi_create_token(c);
    if (st != HFSB_OK) return st;
    if (spec->owner.len) st = hfsb_buf_append(&c->owner, spec->owner);
    else st = hfsb_hub_user(c->hub, c->cancel, &c->owner, &c->err);
    if (st == HFSB_NOMEM) (void)hfsbi_fail_status(&c->err, st, "Owner");
    return st;
}

/* ---- patience with the Hub ---- */

/* True when a call on the new Space is to be made again. */
static bool hfsbi_create_again(hfsbi_create *c, hfsbi_patience *p,
                               hfsb_status *st) {
    hfsb_status waited;
    if (*st == HFSB_OK) c->seen = true;
    if (*st != HFSB_NOT_FOUND) return false;
    if (!p->waits) hfsbi_sandbox_log(c->box, "  not visible yet...");
    waited = hfsbi_sandbox_patience(c->box, p);
    if (waited == HFSB_CANCELLED) *st = waited;
    return waited == HFSB_OK;
}

/* ---- the Space ---- */

/* owner/base- and 8 hexadecimal digits, with a handle for it. */
static hfsb_status hfsbi_create_name(hfsbi_create *c) {
    hfsb_str      base = c->spec->name;
    hfsb_buf      id = HFSB_INIT;
    unsigned char bytes[4];
    hfsb_status   st;
    if (!base.len) base = HFSB_LIT("sandbox");
    hfsbi_random(bytes, sizeof bytes);
    id.alloc = c->opts.alloc;
    st = hfsb_buf_printf(&id, "%s/%.*s-%02x%02x%02x%02x",
                         c->owner.ptr ? c->owner.ptr : "", (int)base.len,
                         base.ptr, (unsigned)bytes[0], (unsigned)bytes[1],
                         (unsigned)bytes[2], (unsigned)bytes[3]);
    hfsbi_sandbox_free(c->box);
    c->box = NULL;
    if (st == HFSB_OK)
        st = hfsbi_sandbox_new(&c->opts, hfsb_buf_str(&id), HFSB_LIT(""), true,
                               &c->box, &c->err);
    else (void)hfsbi_fail_status(&c->err, st, "Name");
    hfsb_buf_free(&id);
    return st;
}

/* False when the Hub has told that nothing was made, or was never asked. */
static bool hfsbi_create_may_have_run(hfsb_status st) {
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

/* A name that is taken gets another suffix; "another conflicting operation is
   in progress" is waited for. */
static hfsb_status hfsbi_create_duplicate(hfsbi_create *c) {
    hfsb_space_spec space = HFSB_INIT;
    hfsbi_patience  patience = HFSB_INIT;
    hfsb_status     st = hfsbi_create_name(c);
    int             names = 1;
    space.visible = c->spec->visible;
    space.hardware = c->hardware;
    space.sleep_time = c->spec->sleep_time;
    while (st == HFSB_OK) {
        if (hfsb_cancel_is_set(c->cancel)) return HFSB_CANCELLED;
        space.id = hfsb_buf_str(&c->box->id);
        if (!patience.waits)
            hfsbi_sandbox_log(c->box, "Creating sandbox: %s (from %.*s)...",
                              c->box->id.ptr, (int)c->from.len, c->from.ptr);
        st = hfsb_hub_duplicate(c->hub, c->from, &space, c->cancel, &c->err);
        if (st != HFSB_CONFLICT) break;
        if (strstr(c->err.msg, "conflicting operation")) {
            hfsb_status waited = hfsbi_sandbox_patience(c->box, &patience);
            if (waited == HFSB_OK) st = HFSB_OK;
            if (waited == HFSB_CANCELLED) return waited;
        } else if (names++ < 5) {
            patience.waits = 0;
            st = hfsbi_create_name(c);
        }
    }
    c->made = st == HFSB_OK;
    c->maybe = !c->made && c->box && hfsbi_create_may_have_run(st);
    c->unheard =
        c->maybe && st == HFSB_CANCELLED && strstr(c->err.msg, "is not known");
    if (c->made)
        hfsbi_sandbox_log(c->box, "Space created: %s", c->box->page.ptr);
    return st;
}

/* ---- what goes into it ---- */

static hfsb_status hfsbi_create_secret(hfsbi_create        *c,
                                       const hfsb_hub_pair *pair) {
    hfsbi_patience patience = HFSB_INIT;
    hfsb_status    st;
    do
        st = hfsb_hub_set(c->hub, hfsb_buf_str(&c->box->id), HFSB_HUB_SECRETS,
                          pair, c->cancel, &c->err);
    while (hfsbi_create_again(c, &patience, &st));
    return st;
}

/* Before the commit: its build then starts with them. */
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

#define HFSBI_CREATE_OLD_SERVER "sandbox_server.py"

/* Whether the template brought its own server, which is in the way of nobody
   but no longer what runs there: a file that is not there cannot be removed,
   and the Hub would refuse the whole commit. */
static hfsb_status hfsbi_create_has_old(hfsbi_create *c, bool *has) {
    const hfsb_str name = HFSB_LIT(HFSBI_CREATE_OLD_SERVER);
    hfsbi_patience patience = HFSB_INIT;
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    hfsb_status    st;
    size_t         i;
    *has = false;
    for (i = 0; i < c->spec->file_count; i++)
        if (!strcmp(c->spec->files[i].path, HFSBI_CREATE_OLD_SERVER))
            return HFSB_OK; /* the caller's own business */
    doc.alloc = c->opts.alloc;
    do
        st = hfsb_hub_space(c->hub, hfsb_buf_str(&c->box->id), HFSB_LIT(""),
                            HFSB_LIT(""), c->cancel, &doc, &c->err);
    while (hfsbi_create_again(c, &patience, &st));
    if (st == HFSB_CANCELLED || st == HFSB_NOMEM || st == HFSB_NOT_FOUND)
        return st;
    if (st != HFSB_OK) return HFSB_OK; /* what matters comes next */
    it = hfsb_json_begin(hfsb_json_get(doc.root, "siblings"));
    while (hfsb_json_next(&it))
        if (hfsb_str_equal(hfsb_json_str(hfsb_json_get(it.value, "rfilename"),
                                         HFSB_LIT("")),
                           name))
            *has = true;
    hfsb_json_free(&doc);
    return HFSB_OK;
}

static hfsb_status hfsbi_create_commit(hfsbi_create     *c,
                                       hfsb_commit_done *done) {
    hfsb_commit       commit = HFSB_INIT;
    hfsbi_patience    patience = HFSB_INIT;
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
    files[n].path = HFSBI_CREATE_OLD_SERVER; /* no content: deleted */
    commit.files = files;
    commit.file_count = n + (has ? 1 : 0);
    commit.summary = HFSB_LIT("Setup sandbox server");
    do
        st = hfsb_hub_commit(c->hub, hfsb_buf_str(&c->box->id), &commit,
                             c->cancel, done, &c->err);
    while (hfsbi_create_again(c, &patience, &st));
    hfsbi_array_free(&c->opts.alloc, files, n + 1, sizeof *files);
    return st;
}

/* The server's source; or, where it is there already, a restart, without which
   the secrets would not be in what runs. */
static hfsb_status hfsbi_create_server(hfsbi_create *c) {
    hfsb_commit_done done = HFSB_INIT;
    hfsbi_patience   patience = HFSB_INIT;
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
        st = hfsb_hub_restart(c->hub, hfsb_buf_str(&c->box->id), false,
                              c->cancel, NULL, &c->err);
    while (hfsbi_create_again(c, &patience, &st));
    return st;
}

/* ---- the way back ---- */

/* True when the Hub's "not found" at deleting means that it is gone. */
static bool hfsbi_create_is_gone(hfsbi_create *c) {
    hfsb_space_runtime runtime;
    return c->seen &&
           hfsbi_hub_runtime_until(c->hub, hfsb_buf_str(&c->box->id),
                                   hfsb_clock_ms() + 30000, c->opts.give_up,
                                   &runtime, NULL) == HFSB_NOT_FOUND;
}

/* Deletes the Space, in three requests at most: true when it is gone. Right
   after the duplication it may not be visible, which does not mean that it is
   not there; nor does it when the duplication was broken off, which the Hub
   may still be at. */
static bool hfsbi_create_delete(hfsbi_create *c, hfsb_err *why) {
    const long long second = (c->box->o.poll_ms + 4) / 5;
    hfsbi_hub_tried tried = HFSB_INIT;
    hfsb_status     st;
    long long       ms;
    int             tries;
    for (tries = 1;; tries++) {
        st = hfsbi_hub_delete_once(c->hub, hfsb_buf_str(&c->box->id), 0,
                                   c->opts.give_up, &tried, why);
        if (st == HFSB_NOT_FOUND && hfsbi_create_is_gone(c)) return true;
        ms = second * tries;
        if (ms < tried.asked_ms) ms = tried.asked_ms;
        if (st == HFSB_OK || st == HFSB_AUTH || st == HFSB_DENIED ||
            st == HFSB_CANCELLED || tries == 3 ||
            !hfsb_cancel_wait(c->opts.give_up, ms))
            break;
    }
    if (st == HFSB_OK)
        hfsbi_sandbox_log(c->box, "Deleted Space %s", c->box->id.ptr);
    return st == HFSB_OK ||
           (st == HFSB_NOT_FOUND && c->maybe && !c->seen && !c->unheard);
}

/* Appends `end` as a whole, if need be at the cost of what it is added to. */
static void hfsbi_create_tell(hfsb_err *err, const char *end) {
    size_t room = sizeof err->msg - 1, n = strlen(err->msg);
    size_t len = strlen(end);
    room -= len < room ? len : room;
    if (n > room) {
        n = room;
        while (n && ((unsigned char)err->msg[n] & 0xC0) == 0x80) n--;
        err->msg[n] = '\0';
    }
    hfsbi_err_add(err, "%s", end);
}

/* Takes back what was made, and says in c->err what became of it. Needs no
   memory but what the request takes. */
static void hfsbi_create_take_back(hfsbi_create *c, hfsb_status st) {
    hfsb_err    why = HFSB_INIT;
    char        end[HFSB_ERR_SIZE / 2];
    const char *id = c->box->id.ptr;
    end[0] = '\0';
    c->left = !hfsbi_create_delete(c, &why);
    if (c->left) {
        hfsbi_sandbox_scrub(&c->opts, c->spec, why.msg);
        (void)snprintf(end, sizeof end,
                       "\nThe Space %s %s left, and may cost money: it could "
                       "not be deleted (%.160s). Delete it at %.300s/settings",
                       id, c->made ? "is" : "may be", why.msg,
                       c->box->page.ptr);
        hfsbi_sandbox_log(c->box, "Warning: %s", end + 1);
    } else if (c->made && st != HFSB_CANCELLED) {
        (void)snprintf(end, sizeof end, "\nThe Space %s was deleted.", id);
    }
    hfsbi_create_tell(&c->err, end);
}

static void hfsbi_create_undo(hfsbi_create *c, hfsb_status st) {
    bool there = c->made || c->maybe;
    if (st == HFSB_CANCELLED)
        (void)hfsbi_fail(&c->err, st, 0, "Sandbox creation cancelled%s%s",
                         c->box ? ": " : "", c->box ? c->box->id.ptr : "");
    if (st == HFSB_CANCELLED && there)
        hfsbi_sandbox_log(c->box, "Sandbox creation cancelled by user, "
                                  "cleaning up...");
    hfsbi_sandbox_scrub(&c->opts, c->spec, c->err.msg);
    if (there) hfsbi_create_take_back(c, st);
}

/* ---- all of it ---- */

static hfsb_status hfsbi_create_answer(hfsbi_create *c) {
    hfsb_status st = hfsbi_sandbox_locate(c->box, &c->err);
    if (st == HFSB_CANCELLED || st == HFSB_NOMEM) return st;
    if (c->box->api.len)
        st =
            hfsbi_sandbox_wait_new(c->box, c->box->o.api_wait_ms, "", &c->err);
    if (st != HFSB_TIMEOUT) return st;
    hfsbi_sandbox_scrub(&c->opts, c->spec, c->err.msg);
    hfsbi_sandbox_log(c->box,
                      "Warning: API health check timed out (%s), but Space is "
                      "RUNNING. Continuing.",
                      c->err.msg);
    return hfsbi_ok(&c->err);
}

static hfsb_status hfsbi_create_run(hfsbi_create            *c,
                                    const hfsb_sandbox_spec *spec,
                                    const hfsb_sandbox_opts *opts) {
    hfsb_status st = hfsbi_create_begin(c, spec, opts);
    if (st == HFSB_OK) st = hfsbi_create_duplicate(c);
    if (st == HFSB_OK) st = hfsbi_create_secrets(c);
    if (st == HFSB_OK) st = hfsbi_create_server(c);
    if (st == HFSB_OK)
        st = hfsbi_sandbox_start(c->box, spec, c->sha, &c->seen, &c->err);
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
    st = hfsbi_create_run(&c, spec ? spec : &plain, opts);
    *out = NULL;
    if (st != HFSB_OK) {
        hfsbi_create_undo(&c, st);
        if (left && c.left &&
            hfsb_buf_append(left, hfsb_buf_str(&c.box->id)) != HFSB_OK)
            hfsb_buf_truncate(left, 0); /* the message has it */
        hfsbi_sandbox_free(c.box);
        if (err) *err = c.err;
    } else {
        *out = c.box;
        (void)hfsbi_ok(err);
    }
    if (c.token.ptr) hfsbi_wipe(c.token.ptr, c.token.len);
    hfsb_buf_free(&c.token);
    hfsb_buf_free(&c.owner);
    return st;
}

hfsb_status hfsb_sandbox_create(const hfsb_sandbox_spec *spec,
                                const hfsb_sandbox_opts *opts,
                                hfsb_sandbox **out, hfsb_err *err) {
    return hfsbi_sandbox_make(spec, opts, NULL, out, err);
}

/* ==== sandbox sweep ==== */

/* Spaces of ours that were left behind: found by name and
   age. */

/* ---- dates ---- */

/* n digits at *at of text as a number; false when there is something else. */
static bool hfsbi_date_digits(hfsb_str text, size_t *at, size_t n,
                              long long *out) {
    long long value = 0;
    for (; n; n--, ++*at) {
        if (*at >= text.len || text.ptr[*at] < '0' || text.ptr[*at] > '9')
            return false;
        value = value * 10 + (text.ptr[*at] - '0');
    }
    *out = value;
    return true;
}

static bool hfsbi_date_byte(hfsb_str text, size_t *at, char c) {
    if (*at >= text.len || text.ptr[*at] != c) return false;
    ++*at;
    return true;
}

/* Days from 1970-01-01 to a date of the Gregorian calendar: the year is taken
   to begin in March, so that the leap day is its last. */
static long long hfsbi_date_days(long long y, long long m, long long d) {
    long long in_year;
    y -= m <= 2;
    in_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return y * 365 + y / 4 - y / 100 + y / 400 + in_year - 719468;
}

/* "Z", "+02:00" or "-0530" in seconds; false when it is none. */
static bool hfsbi_date_zone(hfsb_str text, size_t at, long long *out) {
    bool      west;
    long long h, m;
    *out = 0;
    if (hfsbi_date_byte(text, &at, 'Z')) return at == text.len;
    west = hfsbi_date_byte(text, &at, '-');
    if (!west && !hfsbi_date_byte(text, &at, '+')) return false;
    if (!hfsbi_date_digits(text, &at, 2, &h)) return false;
    (void)hfsbi_date_byte(text, &at, ':');
    if (!hfsbi_date_digits(text, &at, 2, &m) || h > 23 || m > 59) return false;
    *out = (h * 60 + m) * (west ? -60 : 60);
    return at == text.len;
}

HFSBI_FN bool hfsbi_date_parse(hfsb_str text, double *out) {
    static const char marks[] = "--T::";
    long long         part[6], zone;
    size_t            at = 0, i;
    double            fraction = 0, scale = 0.1;
    for (i = 0; i < 6; i++) {
        if (!hfsbi_date_digits(text, &at, i ? 2 : 4, &part[i])) return false;
        if (i < 5 && !hfsbi_date_byte(text, &at, marks[i])) return false;
    }
    if (hfsbi_date_byte(text, &at, '.')) {
        size_t first = at;
        for (; at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9';
             at++, scale /= 10)
            fraction += scale * (text.ptr[at] - '0');
        if (at - first > 9) return false;
    }
    if (part[1] < 1 || part[1] > 12 || part[2] < 1 || part[2] > 31 ||
        part[3] > 23 || part[4] > 59 || part[5] > 60 ||
        !hfsbi_date_zone(text, at, &zone))
        return false;
    *out = (double)(hfsbi_date_days(part[0], part[1], part[2]) * 86400 +
                    part[3] * 3600 + part[4] * 60 + part[5] - zone) +
           fraction;
    return true;
}

/* ---- what is ours ---- */

typedef struct hfsbi_sweep {
    const hfsb_sweep_opts *opts;
    hfsb_str               owner;
    double                 now, days;
    size_t                 max;
    hfsb_buf               found; /* id, NUL, date, NUL of each */
    hfsb_status            status;
} hfsbi_sweep;

/* "owner/sandbox-0123abcd" */
static bool hfsbi_sweep_is_ours(hfsb_str id, hfsb_str owner) {
    const hfsb_str base = HFSB_LIT("/sandbox-");
    size_t         i;
    if (id.len != owner.len + base.len + 8 ||
        !hfsb_http_same(hfsb_str_slice(id, 0, owner.len), owner) ||
        !hfsb_str_starts(hfsb_str_slice(id, owner.len, id.len), base))
        return false;
    for (i = id.len - 8; i < id.len; i++) {
        char c = id.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
    }
    return true;
}

static double hfsbi_sweep_age(const hfsbi_sweep *w, hfsb_str modified) {
    double then;
    if (!hfsbi_date_parse(modified, &then)) return -1;
    return (w->now - then) / 86400;
}

/* They are collected first: deleting one while the pages are read could move
   another to a page that was read already. */
static bool hfsbi_sweep_space(void *user, const hfsb_json_value *space) {
    const hfsb_str none = HFSB_LIT("");
    hfsbi_sweep   *w = (hfsbi_sweep *)user;
    hfsb_str       id = hfsb_json_str(hfsb_json_get(space, "id"), none);
    hfsb_str date = hfsb_json_str(hfsb_json_get(space, "lastModified"), none);
    size_t   mark;
    if (!hfsbi_sweep_is_ours(id, w->owner) ||
        !(hfsbi_sweep_age(w, date) >= w->days))
        return true; /* without a date it is not known to be old */
    mark = w->found.len;
    hfsb_buf_append(&w->found, id);
    hfsb_buf_append_byte(&w->found, '\0');
    hfsb_buf_append(&w->found, date);
    hfsb_buf_append_byte(&w->found, '\0');
    w->status = hfsb_buf_finish(&w->found, mark);
    return w->status == HFSB_OK;
}

/* ---- what becomes of them ---- */

/* Deletes it, unless it is only to be told. */
static void hfsbi_sweep_remove(hfsb_hub *hub, hfsbi_sweep *w,
                               hfsb_sweep_item *item, hfsb_err *err) {
    (void)hfsbi_ok(err);
    if (!w->opts->remove) return;
    if (!w->max) {
        item->status = hfsbi_fail(err, HFSB_LIMIT, 0,
                                  "not deleted: as many as were allowed at "
                                  "once are");
        return;
    }
    w->max--;
    item->status = hfsb_hub_delete(hub, item->id, w->opts->cancel, err);
    if (item->status == HFSB_NOT_FOUND) item->status = hfsbi_ok(err);
    item->removed = item->status == HFSB_OK;
}

/* Takes the next text, up to its NUL. */
static hfsb_str hfsbi_sweep_next(hfsb_str *rest) {
    size_t   at = hfsb_str_find_byte(*rest, '\0');
    hfsb_str text = hfsb_str_slice(*rest, 0, at);
    *rest = hfsb_str_slice(*rest, at == HFSB_NPOS ? at : at + 1, rest->len);
    return text;
}

static hfsb_status hfsbi_sweep_tell(hfsb_hub *hub, hfsbi_sweep *w,
                                    bool (*each)(void                  *user,
                                                 const hfsb_sweep_item *item),
                                    void *user, hfsb_err *err) {
    hfsb_str rest = hfsb_buf_str(&w->found);
    hfsb_err why = HFSB_INIT;
    while (rest.len) {
        hfsb_sweep_item item = HFSB_INIT;
        item.id = hfsbi_sweep_next(&rest);
        item.modified = hfsbi_sweep_next(&rest);
        item.days = hfsbi_sweep_age(w, item.modified);
        item.message = why.msg;
        hfsbi_sweep_remove(hub, w, &item, &why);
        if (each && !each(user, &item)) break;
        if (item.status == HFSB_CANCELLED || item.status == HFSB_NOMEM) {
            if (err) *err = why;
            return item.status;
        }
    }
    return hfsbi_ok(err);
}

hfsb_status hfsb_sandbox_sweep(hfsb_hub *hub, const hfsb_sweep_opts *opts,
                               bool (*each)(void                  *user,
                                            const hfsb_sweep_item *item),
                               void *user, hfsb_err *err) {
    const hfsb_sweep_opts plain = HFSB_INIT;
    hfsbi_sweep           w = HFSB_INIT;
    hfsb_space_filter     filter = HFSB_INIT;
    struct timespec       now = HFSB_INIT;
    hfsb_buf              owner = HFSB_INIT;
    hfsb_status           st;
    w.opts = opts ? opts : &plain;
    w.days = w.opts->days == 0 ? 7 : w.opts->days;
    w.max = w.opts->max ? w.opts->max : 20;
    if (!(w.days > 0))
        return hfsbi_fail(err, HFSB_ARG, 0, "the age in days is above 0");
    (void)clock_gettime(CLOCK_REALTIME, &now);
    w.now = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    if (w.opts->owner.len) st = hfsb_buf_append(&owner, w.opts->owner);
    else st = hfsb_hub_user(hub, w.opts->cancel, &owner, err);
    w.owner = filter.author = hfsb_buf_str(&owner);
    filter.full = true;
    if (st == HFSB_OK)
        st = hfsb_hub_spaces(hub, &filter, hfsbi_sweep_space, &w,
                             w.opts->cancel, err);
    if (st == HFSB_OK) st = w.status;
    if (st == HFSB_OK) st = hfsbi_sweep_tell(hub, &w, each, user, err);
    else if (st == HFSB_NOMEM) (void)hfsbi_fail_status(err, st, "Sweep");
    hfsb_buf_free(&w.found);
    hfsb_buf_free(&owner);
    return st;
}
