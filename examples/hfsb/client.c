/* client.c - the Hub, and sandboxes by the names people give them.

   open_client() collects what a request to the Hub needs: config.json, a
   transport, a cancel for Ctrl-C, the environment, the Hub. find_target()
   turns the name of a sandbox (OWNER/NAME, jobs/OWNER/ID, a URL, or the last
   part of a recorded id) into its address and token; open_target() connects to it. For a server that
   is not a Space neither the Hub is opened nor its token read. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Only a Space may need time to wake up; a server at a URL does not. */
enum { URL_WAIT_MS = 3000, URL_POLL_MS = 250 };

enum { TRIES = 3 }; /* of a request */

/* ---- the Hub ---- */

static hfsb_status open_hub(client *c, hfsb_err *err) {
    hfsb_hub_opts opts = HFSB_INIT;
    opts.endpoint = hfsb_buf_str(&c->env.endpoint);
    opts.token = hfsb_buf_str(&c->env.token);
    opts.transport = &c->transport;
    opts.user_agent = hfsb_buf_str(&c->env.origin);
    opts.offline = c->env.offline;
    opts.tries = TRIES;
    if (!c->quiet) opts.log = print_log;
    return hfsb_hub_open(&opts, &c->hub, err);
}

static hfsb_status check_token(const client *c, hfsb_err *err) {
    if (c->env.offline)
        return fail(err, HFSB_REFUSED,
                    "HF_HUB_OFFLINE is set, and this needs the Hub: unset it "
                    "(and TRANSFORMERS_OFFLINE)");
    if (c->env.token.len) return HFSB_OK;
    return fail(err, HFSB_AUTH,
                "There is no Hugging Face token. Create one with write access "
                "at https://huggingface.co/settings/tokens, then set HF_TOKEN "
                "to it, or let `hf auth login` store it.");
}

/* What a request to any server needs. */
static hfsb_status open_plain(client *c, hfsb_err *err) {
    hfsb_status st = read_config(&c->set, err);
    if (st == HFSB_OK) st = open_transport(&c->transport, err);
    if (st == HFSB_OK) st = hfsb_cancel_open(NULL, &c->cancel, err);
    if (st == HFSB_OK) catch_signals(NULL, c->cancel);
    return st;
}

hfsb_status open_client(client *c, bool needs_token, hfsb_err *err) {
    hfsb_status st = open_plain(c, err);
    if (st == HFSB_OK) st = hfsb_hub_env_read(&c->env, err);
    if (st == HFSB_OK && needs_token) st = check_token(c, err);
    if (st == HFSB_OK) st = open_hub(c, err);
    return st;
}

void close_client(client *c) {
    release_signals(); /* before the cancel that they set is closed */
    if (c->hub) hfsb_hub_close(c->hub);
    if (c->transport.perform) hfsb_transport_close(&c->transport);
    if (c->cancel) hfsb_cancel_close(c->cancel);
    hfsb_hub_env_free(&c->env);
    free_config(&c->set);
    memset(c, 0, sizeof *c);
}

/* ---- names ---- */

const char *named_sandbox(const char *on) {
    if (!on) on = getenv("HFSB_SANDBOX");
    return on && *on ? on : NULL;
}

hfsb_str target_name(const target *t) {
    return t->id.len ? hfsb_buf_str(&t->id) : hfsb_buf_str(&t->url);
}

void free_target(target *t) {
    hfsb_buf_free(&t->id);
    hfsb_buf_free(&t->url);
    hfsb_buf_free(&t->token);
}

/* Makes the spellings of a URL equal: "http://host", "http://host/api/". */
static hfsb_str trim_url(hfsb_str url) {
    while (hfsb_str_ends(url, HFSB_LIT("/"))) url.len--;
    if (hfsb_str_ends(url, HFSB_LIT("/api"))) url.len -= 4;
    while (hfsb_str_ends(url, HFSB_LIT("/"))) url.len--;
    return url;
}

static hfsb_status ambiguous(const char *name, const known *a, const known *b,
                             hfsb_err *err) {
    return fail(err, HFSB_AMBIGUOUS,
                "%s is ambiguous: %.*s or %.*s. Give it with its owner.", name,
                (int)a->id.len, a->id.ptr, (int)b->id.len, b->id.ptr);
}

bool is_job(hfsb_str id) {
    return hfsb_str_starts(id, HFSB_LIT("jobs/")) &&
           hfsb_str_count_byte(id, '/') == 2;
}

/* The part of an id after its last slash. */
static hfsb_str last_part(hfsb_str id) {
    size_t slash;
    while ((slash = hfsb_str_find_byte(id, '/')) != HFSB_NPOS)
        id = hfsb_str_slice(id, slash + 1, id.len);
    return id;
}

/* Finds a sandbox by the part of its id after the last slash. */
static hfsb_status find_short(const known_list *l, const char *name,
                              const known **out, hfsb_err *err) {
    size_t i;
    for (i = 0; i < l->count; i++) {
        hfsb_str id = l->list[i].id;
        if (!id.len || !hfsb_str_equal(last_part(id), hfsb_cstr(name)))
            continue;
        if (*out) return ambiguous(name, *out, &l->list[i], err);
        *out = &l->list[i];
    }
    if (*out) return HFSB_OK;
    return fail(
        err, HFSB_NOT_FOUND,
        "No sandbox called %s is recorded. `hfsb ls` lists yours; give "
        "others as OWNER/NAME, jobs/OWNER/ID or a URL.",
        name);
}

static void take_known(const known *k, target *out) {
    const char *token = getenv("SANDBOX_API_TOKEN");
    if (k) {
        hfsb_buf_truncate(&out->id, 0);
        hfsb_buf_truncate(&out->url, 0);
        must(hfsb_buf_append(&out->id, k->id));
        must(hfsb_buf_append(&out->url, k->url));
        out->recorded = true;
        out->created = k->created;
    }
    if (out->id.len) out->is_space = true;
    must(hfsb_buf_append(&out->token, token && *token ? hfsb_cstr(token)
                                      : k             ? k->token
                                                      : HFSB_LIT("")));
}

/* Removes the "v1+" of a server that speaks HF's /v1. */
static hfsb_str plain_url(hfsb_str url, bool *v1) {
    const hfsb_str mark = HFSB_LIT("v1+");
    *v1 = hfsb_str_starts(url, mark);
    return *v1 ? hfsb_str_slice(url, mark.len, url.len) : url;
}

static bool is_space_url(const hfsb_url *url) {
    return url->secure && (hfsb_str_ends(url->host, HFSB_LIT(".hf.space")) ||
                           hfsb_str_ends(url->host, HFSB_LIT(".hf.jobs")));
}

hfsb_status find_target(const char *name, target *out, hfsb_err *err) {
    known_list   l = HFSB_INIT;
    const known *k = NULL;
    hfsb_url     url;
    bool         v1;
    hfsb_status  st = read_known(&l, err);
    if (st == HFSB_OK && strstr(name, "://")) {
        must(hfsb_buf_append(&out->url, trim_url(hfsb_cstr(name))));
        st = hfsb_url_parse(plain_url(hfsb_buf_str(&out->url), &v1), &url,
                            err);
        out->is_space = st == HFSB_OK && is_space_url(&url);
        k = find_known(&l, hfsb_buf_str(&out->url));
    } else if (st == HFSB_OK && strchr(name, '/')) {
        must(hfsb_buf_append(&out->id, hfsb_cstr(name)));
        if (!is_job(hfsb_cstr(name)))
            st = hfsb_space_check(hfsb_cstr(name), err);
        k = find_known(&l, hfsb_cstr(name));
    } else if (st == HFSB_OK) {
        st = find_short(&l, name, &k, err);
    }
    if (st == HFSB_OK) take_known(k, out);
    free_known(&l);
    return st;
}

/* ---- handles ---- */

void add_advice(const target *t, hfsb_status st, hfsb_err *err) {
    size_t n = strlen(err->msg);
    if (st == HFSB_AUTH && !t->token.len)
        snprintf(err->msg + n, sizeof err->msg - n,
                 "\nNo token is recorded for this sandbox: set "
                 "SANDBOX_API_TOKEN.");
    else if (st == HFSB_AUTH)
        snprintf(err->msg + n, sizeof err->msg - n,
                 "\nThe token was taken from %s.",
                 getenv("SANDBOX_API_TOKEN") ? "SANDBOX_API_TOKEN"
                                             : "the record of `hfsb connect`");
    else if (st == HFSB_NOT_FOUND)
        snprintf(err->msg + n, sizeof err->msg - n,
                 "\n`hfsb ls` lists your sandboxes.");
}

static void fill_opts(client *c, const target *t, hfsb_sandbox_opts *opts) {
    const char *instead = getenv("HFSB_SPACE_URL");
    opts->hub = c->hub;
    opts->transport = &c->transport;
    opts->cancel = c->cancel;
    opts->api_token = hfsb_buf_str(&t->token);
    if (t->is_space) opts->hub_token = hfsb_buf_str(&c->env.token);
    if (!t->id.len) return;
    if (is_job(hfsb_buf_str(&t->id))) {
        opts->space_url = hfsb_buf_str(&t->url);
        return;
    }
    if (!instead || !*instead) opts->space_url = hfsb_buf_str(&t->url);
    if (!opts->work_dir.len) opts->work_dir = c->set.work_dir;
}

hfsb_status open_space(client *c, const char *name, target *t,
                       hfsb_sandbox_opts *opts, hfsb_sandbox **out,
                       hfsb_err *err) {
    hfsb_status st = find_target(name, t, err);
    if (st == HFSB_OK && !t->id.len)
        st = fail(err, HFSB_ARG,
                  "%s is a URL: only a Space can be paused and restarted",
                  name);
    if (st == HFSB_OK) st = open_client(c, true, err);
    if (st != HFSB_OK) return st;
    fill_opts(c, t, opts);
    return hfsb_sandbox_open(hfsb_buf_str(&t->id), t->created, opts, out, err);
}

hfsb_status open_target(client *c, const target *t, hfsb_sandbox_opts *opts,
                        hfsb_sandbox **out, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    if (!c->cancel)
        st = t->is_space ? open_client(c, false, err) : open_plain(c, err);
    if (st != HFSB_OK) return st;
    fill_opts(c, t, opts);
    if (t->id.len) {
        st = hfsb_sandbox_connect(hfsb_buf_str(&t->id), t->created, opts, out,
                                  err);
    } else {
        if (!opts->times.api_wait_ms) opts->times.api_wait_ms = URL_WAIT_MS;
        if (!opts->times.api_poll_ms) opts->times.api_poll_ms = URL_POLL_MS;
        st = hfsb_sandbox_connect_url(
            plain_url(hfsb_buf_str(&t->url), &opts->v1), opts, out, err);
    }
    if (st != HFSB_OK) add_advice(t, st, err);
    return st;
}

hfsb_status open_named(client *c, const char *name, hfsb_sandbox_opts *opts,
                       hfsb_sandbox **out, hfsb_err *err) {
    target      t = HFSB_INIT;
    hfsb_status st = find_target(name, &t, err);
    if (st == HFSB_OK) st = open_target(c, &t, opts, out, err);
    free_target(&t);
    return st;
}
