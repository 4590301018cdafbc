/* client.c - the Hub, and sandboxes by the names people give them.

   open_client() collects what a request to the Hub needs: config.json, a
   transport, a cancel for Ctrl-C, the environment, the Hub. find_target()
   turns the name of a sandbox (OWNER/NAME, jobs/OWNER/ID, a URL, a pipe such
   as ssh:HOST, or the last part of a recorded id) into its address and token;
   open_target() connects to it. For a server that is not a Space, the Hub is
   not opened and its token is not read. A Space gets that token only if it is
   private. */
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

/* What a request to any server needs; without a transport for a pipe. */
static hfsb_status open_plain(client *c, bool transport, hfsb_err *err) {
    hfsb_status st = read_config(&c->set, err);
    if (st == HFSB_OK && transport) st = open_transport(&c->transport, err);
    if (st == HFSB_OK) st = hfsb_cancel_open(NULL, &c->cancel, err);
    if (st == HFSB_OK) catch_signals(NULL, c->cancel);
    return st;
}

hfsb_status open_client(client *c, bool needs_token, hfsb_err *err) {
    hfsb_status st = open_plain(c, true, err);
    if (st == HFSB_OK) st = hfsb_hub_env_read(&c->env, err);
    if (st == HFSB_OK && needs_token) st = check_token(c, err);
    if (st == HFSB_OK) st = open_hub(c, err);
    return st;
}

void close_client(client *c) {
    release_signals(); /* before the cancel that they set is closed */
    if (c->hub) hfsb_hub_close(c->hub);
    if (c->transport.perform) hfsb_transport_close(&c->transport);
    if (c->through.perform) hfsb_transport_close(&c->through);
    hfsb_pipe_close(c->pipe);
    if (c->cancel) hfsb_cancel_close(c->cancel);
    hfsb_hub_env_free(&c->env);
    free_config(&c->set);
    memset(c, 0, sizeof *c);
}

/* ---- names ---- */

const char *named_sandbox(const char *on) {
    const char *chosen;
    if (!on) on = getenv("HFSB_SANDBOX");
    if (!on || strcmp(on, ".") != 0) return on && *on ? on : NULL;
    chosen = default_sandbox();
    return chosen ? chosen : on; /* find_target() reports it */
}

const char *chosen_sandbox(const char *name) {
    name = named_sandbox(name);
    return name ? name : default_sandbox();
}

int no_sandbox(args *a) {
    return usage(a, "SANDBOX is missing; `hfsb use NAME` sets the default "
                    "one");
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
    bool   is_host = !strpbrk(name, ": \t");
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
        "No sandbox called %s is recorded%s%s. `hfsb ls` lists yours; give "
        "others as OWNER/NAME, jobs/OWNER/ID, a URL, ssh:HOST, "
        "docker:CONTAINER, podman:CONTAINER, kubectl:NAMESPACE/POD, "
        "slurm:OPTIONS or exec:COMMAND.",
        name, is_host ? "; a host that ssh reaches is ssh:" : "",
        is_host ? name : "");
}

void take_env_token(target *t) {
    const char *token = getenv("SANDBOX_API_TOKEN");
    if (!token || !*token) return;
    hfsb_buf_truncate(&t->token, 0);
    must(hfsb_buf_append(&t->token, hfsb_cstr(token)));
    t->token_from = "SANDBOX_API_TOKEN";
}

/* The recorded token is that of this sandbox, the variable's may be that of
   any other. */
static void take_known(const known *k, target *out) {
    if (k) {
        hfsb_buf_truncate(&out->id, 0);
        hfsb_buf_truncate(&out->url, 0);
        must(hfsb_buf_append(&out->id, k->id));
        must(hfsb_buf_append(&out->url, k->url));
        must(hfsb_buf_append(&out->token, k->token));
        out->recorded = true;
        out->created = k->created;
        out->is_own = k->created || k->is_own;
    }
    if (out->id.len) out->is_space = true;
    if (!out->token.len) take_env_token(out);
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

const char *page_token(const char *name) {
    const char *mark = strstr(name, "://") ? strchr(name, '#') : NULL;
    return mark && !is_pipe(name) ? mark + 1 : NULL;
}

hfsb_status find_target(const char *name, target *out, hfsb_err *err) {
    known_list   l = HFSB_INIT;
    const known *k = NULL;
    hfsb_url     url;
    bool         v1;
    hfsb_status  st;
    if (strcmp(name, ".") == 0) name = default_sandbox();
    if (!name)
        return fail(err, HFSB_NOT_FOUND,
                    "There is no default sandbox: `hfsb use NAME` sets it, "
                    "and so does `hfsb create`.");
    if (is_pipe(name)) {
        out->is_pipe = true;
        must(hfsb_buf_append(&out->url, hfsb_cstr(name)));
        return HFSB_OK;
    }
    if (page_token(name))
        return fail(err, HFSB_ARG,
                    "%.*s comes with a token: let `hfsb connect` record it, "
                    "then give the URL alone.",
                    (int)(page_token(name) - 1 - name), name);
    st = read_known(&l, err);
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

/* ---- the token of the Hub ----

   The server of a Space or job gets the token with each request, and with it
   all that it allows. The edge of the Hub lets nobody else through to a
   private Space or to a job, but a public Space needs no token, and anyone may
   have made it. */

/* *why gets the Hub's error if it did not answer that. */
static bool is_private(client *c, hfsb_str id, hfsb_err *why) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   st = hfsb_hub_space(c->hub, id, HFSB_LIT(""),
                                      HFSB_LIT("private"), c->cancel, &doc,
                                      why);
    bool          yes = st == HFSB_OK &&
               hfsb_json_bool(hfsb_json_get(doc.root, "private"), false);
    if (st == HFSB_OK || st == HFSB_NOT_FOUND) why->msg[0] = '\0';
    hfsb_json_free(&doc);
    return yes;
}

static bool has_job(client *c, hfsb_str owner, hfsb_str id) {
    hfsb_json_doc doc = HFSB_INIT;
    bool          yes = owner.len && hfsb_hub_job(c->hub, owner, id, c->cancel,
                                                  &doc, NULL) == HFSB_OK;
    hfsb_json_free(&doc);
    return yes;
}

/* True for https://ID--PORT.hf.jobs of a job of the user, or of one of the
   user's organisations. */
static bool is_own_job(client *c, hfsb_str text) {
    hfsb_json_doc  who = HFSB_INIT;
    hfsb_json_iter it;
    hfsb_url       url;
    hfsb_str       id;
    bool           v1, yes;
    if (hfsb_url_parse(plain_url(text, &v1), &url, NULL) != HFSB_OK ||
        !hfsb_str_ends(url.host, HFSB_LIT(".hf.jobs")))
        return false;
    id = hfsb_str_slice(url.host, 0, hfsb_str_find(url.host, HFSB_LIT("--")));
    if (hfsb_hub_whoami(c->hub, c->cancel, &who, NULL) != HFSB_OK)
        return false;
    yes = has_job(c, get_str(who.root, "name"), id);
    it = hfsb_json_begin(hfsb_json_get(who.root, "orgs"));
    while (!yes && hfsb_json_next(&it))
        yes = has_job(c, get_str(it.value, "name"), id);
    hfsb_json_free(&who);
    return yes;
}

static bool gets_hub_token(client *c, const target *t, hfsb_err *why) {
    hfsb_str id = hfsb_buf_str(&t->id);
    if (!t->is_space || !c->env.token.len) return false;
    if (t->is_own || is_job(id)) return true; /* the Hub finds a job's URL */
    return id.len ? is_private(c, id, why)
                  : is_own_job(c, hfsb_buf_str(&t->url));
}

/* Adds that the token was not sent, which may be why there is no answer. why:
   the Hub's error when it was asked whether the Space is private, or "". */
static void add_kept_back(const client *c, const target *t,
                          const hfsb_sandbox_opts *opts, const hfsb_err *why,
                          hfsb_err *err) {
    size_t n = strlen(err->msg);
    if (!t->is_space || opts->hub_token.len || !c->env.token.len) return;
    if (why->msg[0])
        snprintf(err->msg + n, sizeof err->msg - n,
                 "\nThe token of the Hub was not sent, because the Hub did not "
                 "answer whether this Space is private: %s",
                 why->msg);
    else if (!t->id.len)
        snprintf(err->msg + n, sizeof err->msg - n,
                 "\nThe token of the Hub was not sent, because this URL may be "
                 "anyone's: name your own as OWNER/NAME or jobs/OWNER/ID.");
}

/* ---- handles ---- */

void add_advice(const target *t, hfsb_status st, hfsb_err *err) {
    size_t n = strlen(err->msg);
    if (st == HFSB_AUTH && strcmp(err->key, "hub_token") == 0)
        return; /* the message says how to get one */
    if (st == HFSB_AUTH && !t->token.len)
        snprintf(err->msg + n, sizeof err->msg - n,
                 "\nNo token is recorded for this sandbox: set "
                 "SANDBOX_API_TOKEN, or give the address of its page, with "
                 "the # and the token, to `hfsb connect`.");
    else if (st == HFSB_AUTH)
        snprintf(err->msg + n, sizeof err->msg - n,
                 "\nThe token was taken from %s.",
                 t->token_from ? t->token_from
                               : "the record of `hfsb connect`, which takes a "
                                 "new one from SANDBOX_API_TOKEN");
    else if (st == HFSB_NOT_FOUND)
        snprintf(err->msg + n, sizeof err->msg - n,
                 "\n`hfsb ls` lists your sandboxes.");
}

static void fill_opts(client *c, const target *t, hfsb_sandbox_opts *opts,
                      hfsb_err *why) {
    const char *instead = getenv("HFSB_SPACE_URL");
    opts->hub = c->hub;
    opts->transport = &c->transport;
    if (!opts->cancel) opts->cancel = c->cancel;
    opts->api_token = hfsb_buf_str(&t->token);
    if (gets_hub_token(c, t, why))
        opts->hub_token = hfsb_buf_str(&c->env.token);
    if (!t->id.len) return;
    if (is_job(hfsb_buf_str(&t->id))) {
        opts->space_url = hfsb_buf_str(&t->url);
        return;
    }
    if (!instead || !*instead) opts->space_url = hfsb_buf_str(&t->url);
}

hfsb_status open_space(client *c, const char *name, target *t,
                       hfsb_sandbox_opts *opts, hfsb_sandbox **out,
                       hfsb_err *err) {
    hfsb_err    why = HFSB_INIT; /* the Hub itself is asked next */
    hfsb_status st = find_target(name, t, err);
    if (st == HFSB_OK && !t->id.len)
        st = fail(err, HFSB_ARG,
                  "%s is %s: only a Space can be paused and restarted", name,
                  t->is_pipe ? "at the end of a pipe" : "a URL");
    if (st == HFSB_OK) st = open_client(c, true, err);
    if (st != HFSB_OK) return st;
    fill_opts(c, t, opts, &why);
    return hfsb_sandbox_open(hfsb_buf_str(&t->id), t->created, opts, out, err);
}

hfsb_status open_client_for(client *c, const target *t, hfsb_err *err) {
    if (c->cancel) return HFSB_OK;
    return t->is_space ? open_client(c, false, err)
                       : open_plain(c, !t->is_pipe, err);
}

hfsb_status open_target(client *c, const target *t, hfsb_sandbox_opts *opts,
                        hfsb_sandbox **out, hfsb_err *err) {
    hfsb_err    why = HFSB_INIT;
    hfsb_status st = open_client_for(c, t, err);
    if (st == HFSB_OK && t->is_pipe) st = connect_pipe(c, t->url.ptr, opts, err);
    if (st != HFSB_OK) return st;
    if (!t->is_pipe) fill_opts(c, t, opts, &why);
    if (t->is_pipe) {
        st = hfsb_sandbox_connect_url(HFSB_LIT("http://localhost"), opts, out,
                                      err);
    } else if (t->id.len) {
        st = hfsb_sandbox_connect(hfsb_buf_str(&t->id), t->created, opts, out,
                                  err);
    } else {
        bool     v1;
        hfsb_str url = plain_url(hfsb_buf_str(&t->url), &v1);
        if (v1) opts->protocol = hfsb_protocol_v1();
        if (!opts->times.api_wait_ms) opts->times.api_wait_ms = URL_WAIT_MS;
        if (!opts->times.api_poll_ms) opts->times.api_poll_ms = URL_POLL_MS;
        st = hfsb_sandbox_connect_url(url, opts, out, err);
    }
    if (st != HFSB_OK) add_advice(t, st, err);
    if (st != HFSB_OK) add_kept_back(c, t, opts, &why, err);
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
