/* sandbox_create.c - a new sandbox on the Hub: duplicated, furnished, waited
   for, and taken away again when any of that fails. Depends on: hash, text,
   net, hub, sandbox_handle. */
#include "hub_parts.h"
#include "sandbox_parts.h"

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
    if (!hfsbi_random_key(key, sizeof key))
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
