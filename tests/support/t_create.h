/* t_create.h - what the tests of a sandbox's life share: the fake Hub, a
   client for it whose waits are milliseconds, a transport that can
   cancel at a request, and a log in which no secret may ever be. */
#ifndef T_CREATE_H
#define T_CREATE_H
#include "t_tools.h"
#include "fake_hub.h"
#ifdef HFSBI_SPLIT
#include "../../src/hub/hub_private.h"
#include "../../src/http/url.h"
#endif

#define TC_API_TOKEN "SBXTOKEN_abcdefghijklmnopqrstuvwxyz0123456"
#define TC_SECRET    "s3cr3t-of-the-user"

typedef struct tc_world {
    fh_hub           *fake;
    hfsb_transport    net, through; /* through: with what follows */
    hfsb_hub         *hub;
    hfsb_cancel      *cancel;
    hfsb_hub_opts     hub_opts;
    hfsb_sandbox_opts opts;
    hfsb_sandbox_spec spec;
    hfsb_hub_pair     secrets[2];
    hfsb_commit_file  files[2];
    hfsb_buf          log;   /* of hub and sandbox, lines */
    hfsb_buf          hosts; /* requested "https://...", lines */
    const char       *cancel_method, *cancel_path; /* NULL: never */
    bool              cancel_after; /* once it was answered */
} tc_world;

/* ---- the transport ---- */

/* A "*" in the pattern matches any text. */
static bool tc_like(const char *pattern, hfsb_str s) {
    for (; *pattern; pattern++, s = hfsb_str_slice(s, 1, s.len)) {
        if (*pattern == '*') {
            size_t i;
            for (i = 0; i <= s.len; i++)
                if (tc_like(pattern + 1, hfsb_str_slice(s, i, s.len)))
                    return true;
            return false;
        }
        if (!s.len || *s.ptr != *pattern) return false;
    }
    return !s.len;
}

static bool tc_is_at(const tc_world *w, const hfsb_http_call *call) {
    hfsb_url    url;
    const char *path = w->cancel_path;
    if (!path || !hfsb_str_equal(call->method, hfsb_cstr(w->cancel_method)))
        return false;
    if (!strncmp(path, "edge:", 5)) path += 5;
    return hfsb_url_parse(call->url, &url, NULL) == HFSB_OK &&
           tc_like(path, url.target);
}

static hfsb_status tc_perform(void *user, const hfsb_http_call *call,
                              bool *sent, hfsb_err *err) {
    tc_world      *w = (tc_world *)user;
    hfsb_http_call c = *call;
    hfsb_buf       url = HFSB_INIT;
    hfsb_url       parts;
    hfsb_status    st;
    bool           here = tc_is_at(w, call);
    /* every https://{name}.hf.space is the edge of the fake Hub */
    if (hfsb_url_parse(call->url, &parts, NULL) == HFSB_OK && parts.secure) {
        T_CHECK(hfsb_buf_printf(&w->hosts, "%.*s\n", (int)parts.host.len,
                                parts.host.ptr) == HFSB_OK);
        T_CHECK(hfsb_buf_printf(&url, "%s%.*s", fh_edge(w->fake),
                                (int)parts.target.len,
                                parts.target.ptr) == HFSB_OK);
        c.url = hfsb_buf_str(&url);
    }
    if (here && !w->cancel_after) hfsb_cancel_set(w->cancel);
    st = w->net.perform(w->net.user, &c, sent, err);
    if (here && w->cancel_after) hfsb_cancel_set(w->cancel);
    hfsb_buf_free(&url);
    return st;
}

/* ---- the log ---- */

static void tc_log(void *user, hfsb_str line) {
    tc_world *w = (tc_world *)user;
    T_CHECK(hfsb_buf_append(&w->log, line) == HFSB_OK);
    T_CHECK(hfsb_buf_append_byte(&w->log, '\n') == HFSB_OK);
}

static bool tc_has(hfsb_str text, const char *part) {
    return hfsb_str_find(text, hfsb_cstr(part)) != HFSB_NPOS;
}

HFSBI_UNUSED static bool tc_logged(const tc_world *w, const char *text) {
    return tc_has(hfsb_buf_str(&w->log), text);
}

static bool tc_is_secret(hfsb_str text) {
    return tc_has(text, FH_TOKEN) || tc_has(text, TC_API_TOKEN) ||
           tc_has(text, TC_SECRET);
}

/* Nothing secret in the log, the message, or the address of a request. */
static void tc_no_secret(tc_world *w, const hfsb_err *err) {
    const fh_record *r;
    size_t           n;
    T_CHECK(!tc_is_secret(hfsb_buf_str(&w->log)));
    T_CHECK(!err || !tc_is_secret(hfsb_cstr(err->msg)));
    for (n = 0; (r = fh_nth(w->fake, n, NULL, NULL)) != NULL; n++)
        T_CHECK(!tc_is_secret(hfsb_buf_str(&r->target)));
}

/* ---- begin and end ---- */

static void tc_hub(tc_world *w) {
    hfsb_err err = HFSB_INIT;
    hfsb_hub_close(w->hub);
    w->hub = NULL;
    T_CHECK(hfsb_hub_open(&w->hub_opts, &w->hub, &err) == HFSB_OK);
    w->opts.hub = w->hub;
}

/* With the hurry of tests: a second of create's patience is a millisecond. */
static void tc_open(tc_world *w, const fh_opts *opts) {
    hfsb_net_opts net = HFSB_INIT;
    hfsb_err      err = HFSB_INIT;
    memset(w, 0, sizeof *w);
    w->fake = fh_start(opts);
    net.no_proxy = true;
    T_CHECK(hfsb_net_open(&net, &w->net, &err) == HFSB_OK);
    w->through.perform = tc_perform;
    w->through.user = w;
    T_CHECK(hfsb_cancel_open(NULL, &w->cancel, &err) == HFSB_OK);
    w->hub_opts.endpoint = hfsb_cstr(fh_url(w->fake));
    w->hub_opts.token = HFSB_LIT(FH_TOKEN);
    w->hub_opts.transport = &w->through;
    w->hub_opts.timeout_ms = 20000;
    w->hub_opts.tries = 3;
    w->hub_opts.delay_ms = 1;
    w->hub_opts.log = tc_log;
    w->hub_opts.user = w;
    w->opts.space_url = hfsb_cstr(fh_edge(w->fake));
    w->opts.hub_token = HFSB_LIT(FH_TOKEN);
    w->opts.api_token = HFSB_LIT(TC_API_TOKEN);
    w->opts.times.poll_ms = 5;
    w->opts.times.wait_ms = 20000;
    w->opts.times.api_poll_ms = 1;
    w->opts.times.api_wait_ms = 20000;
    w->opts.log = tc_log;
    w->opts.user = w;
    w->opts.cancel = w->cancel;
    w->secrets[0].key = HFSB_LIT("HF_TOKEN");
    w->secrets[0].value = HFSB_LIT(FH_TOKEN);
    w->spec.secrets = w->secrets;
    w->spec.secret_count = 1;
    w->files[0].path = "Dockerfile";
    w->files[0].content = HFSB_LIT("FROM scratch\n");
    w->spec.files = w->files;
    w->spec.file_count = 1;
    tc_hub(w);
}

/* On a Hub whose Spaces run as soon as they are made. */
HFSBI_UNUSED static void tc_open_prompt(tc_world *w, fh_mode mode) {
    fh_opts opts = HFSB_INIT;
    opts.mode = mode;
    opts.prompt = true;
    tc_open(w, &opts);
}

static void tc_close(tc_world *w) {
    hfsb_hub_close(w->hub);
    hfsb_transport_close(&w->net);
    hfsb_cancel_close(w->cancel);
    fh_stop(w->fake);
    hfsb_buf_free(&w->log);
    hfsb_buf_free(&w->hosts);
}

/* As at the beginning, with another hub (which would remember whoami). */
HFSBI_UNUSED static void tc_again(tc_world *w) {
    fh_no_faults(w->fake);
    fh_forget(w->fake);
    hfsb_cancel_reset(w->cancel);
    hfsb_buf_truncate(&w->log, 0);
    w->cancel_path = NULL;
    tc_hub(w);
}

/* The handle, which must come; or NULL. */
static hfsb_sandbox *tc_create(tc_world *w) {
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    hfsb_status   st = hfsb_sandbox_create(&w->spec, &w->opts, &s, &err);
    T_CHECK(st == HFSB_OK);
    if (st != HFSB_OK) printf("  create: %s\n", err.msg);
    T_CHECK((st == HFSB_OK) == (s != NULL));
    tc_no_secret(w, &err);
    return s;
}

static void tc_delete(hfsb_sandbox *s) {
    hfsb_err err = HFSB_INIT;
    T_CHECK(hfsb_sandbox_close(s, true, &err) == HFSB_OK);
    if (err.msg[0]) printf("  delete: %s\n", err.msg);
}
#endif
