/* t_session_hub.h - a session on the fake Hub, with waits of milliseconds; for
   tests that define T_SERVER. */
#ifndef T_SESSION_HUB_H
#define T_SESSION_HUB_H
#include "t_session.h"
#include "fake_hub.h"

#define DUPLICATE "/api/spaces/*/duplicate"
#define SECRETS   "/api/spaces/*/secrets"

typedef struct sh_world {
    fh_hub           *fh;
    hfsb_transport    net;
    hfsb_hub         *hub;
    hfsb_sandbox_opts sandbox;
    hfsb_sandbox_spec spec;
    hfsb_session_opts opts;
    hfsb_session     *session;
} sh_world;

static hfsb_commit_file sh_file; /* in place of the server's source */

/* fake NULL: Spaces that run at once. Options may be changed before sh_open()
   or sh_close(). */
HFSBI_UNUSED static void sh_begin(sh_world *w, const fh_opts *fake) {
    fh_opts       prompt = HFSB_INIT;
    hfsb_net_opts net = HFSB_INIT;
    hfsb_hub_opts hub = HFSB_INIT;
    memset(w, 0, sizeof *w);
    prompt.prompt = true;
    w->fh = fh_start(fake ? fake : &prompt);
    net.no_proxy = true;
    if (hfsb_net_open(&net, &w->net, NULL) != HFSB_OK) abort();
    hub.endpoint = hfsb_cstr(fh_url(w->fh));
    hub.token = HFSB_LIT(FH_TOKEN);
    hub.transport = &w->net;
    hub.tries = 2;
    hub.delay_ms = 1;
    hub.timeout_ms = 20000;
    if (hfsb_hub_open(&hub, &w->hub, NULL) != HFSB_OK) abort();
    w->sandbox.space_url = hfsb_cstr(fh_edge(w->fh));
    w->sandbox.times.delay_ms = 30;
    w->sandbox.times.poll_ms = 10;
    w->sandbox.times.wait_ms = 20000;
    w->sandbox.times.api_poll_ms = 5;
    w->sandbox.times.api_wait_ms = 20000;
    w->sandbox.times.health_ms = 10000;
    sh_file.path = "Dockerfile";
    sh_file.content = HFSB_LIT("FROM scratch\n");
    w->spec.files = &sh_file;
    w->spec.file_count = 1;
    w->opts.runtime = HFSB_RUNTIME_SANDBOX;
    w->opts.hub = w->hub;
    w->opts.hub_token = HFSB_LIT(FH_TOKEN);
    w->opts.sandbox = &w->sandbox;
    w->opts.spec = &w->spec;
    w->opts.log = sn_log;
    sn_forget();
}

HFSBI_UNUSED static void sh_open(sh_world *w) {
    hfsb_err err = HFSB_INIT;
    if (hfsb_session_open(&w->opts, &w->session, &err) != HFSB_OK) {
        printf("open: %s\n", err.msg);
        abort();
    }
}

/* Opened, and its sandbox can be used. */
HFSBI_UNUSED static void sh_ready(sh_world *w) {
    hfsb_err err = HFSB_INIT;
    sh_open(w);
    T_CHECK(hfsb_session_wait_ready(w->session, NULL, &err) == HFSB_OK);
}

/* Closed well, and nothing is left on the Hub. */
HFSBI_UNUSED static void sh_close(sh_world *w) {
    sn_close(w->session);
    T_CHECK(fh_spaces(w->fh) == 0);
}

HFSBI_UNUSED static void sh_end(sh_world *w) {
    hfsb_hub_close(w->hub);
    hfsb_transport_close(&w->net);
    fh_stop(w->fh);
    sn_forget();
}

/* The n-th POST to path had this in its body. */
HFSBI_UNUSED static bool sh_sent(const sh_world *w, size_t n, const char *path,
                                 const char *part) {
    const fh_record *record = fh_nth(w->fh, n, "POST", path);
    return record && tt_says(&record->body, part);
}

/* Waits for a request. */
HFSBI_UNUSED static bool sh_until(const sh_world *w, const char *method,
                                  const char *path) {
    long long end = hfsb_clock_ms() + 20000;
    while (!fh_count(w->fh, method, path)) {
        if (hfsb_clock_ms() > end) return false;
        tt_sleep_ms(2);
    }
    return true;
}

/* ---- a call in another thread ---- */

typedef struct sh_job {
    pthread_t     thread;
    hfsb_session *session;
    const char   *tool, *json;
    hfsb_cancel  *cancel;
    tt_reply      reply;
} sh_job;

static void *sh_run(void *user) {
    sh_job *job = (sh_job *)user;
    sn_do(&job->reply, job->session, job->tool, hfsb_cstr(job->json),
          job->cancel);
    return NULL;
}

HFSBI_UNUSED static void sh_start(sh_job *job, const sh_world *w,
                                  const char *tool, const char *json,
                                  hfsb_cancel *cancel) {
    memset(job, 0, sizeof *job);
    job->session = w->session;
    job->tool = tool;
    job->json = json;
    job->cancel = cancel;
    if (pthread_create(&job->thread, NULL, sh_run, job)) abort();
}

HFSBI_UNUSED static void sh_join(sh_job *job) {
    pthread_join(job->thread, NULL);
    T_CHECK(job->reply.sane);
}
#endif
