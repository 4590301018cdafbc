/* test_job_home.c - sandboxes that are jobs: what the job is made of, who can
   connect to it, and that no failure leaves one behind. */
#define T_SERVER
#include "../support/t_create.h"

#define TJ_SERVER "\177ELF: not really, but not text either \001\002\003"

static void tj_open(tc_world *w, const fh_opts *opts) {
    tc_open(w, opts);
    w->spec.files = NULL;
    w->spec.file_count = 0;
    w->spec.image = HFSB_LIT("python:3.12");
    w->spec.server = hfsb_str_make(TJ_SERVER, sizeof TJ_SERVER - 1);
    w->opts.api_token = HFSB_LIT("");
    w->opts.space_url = HFSB_LIT("");
}

static void tj_open_mode(tc_world *w, fh_mode mode) {
    fh_opts opts = HFSB_INIT;
    opts.mode = mode;
    opts.prompt = true;
    tj_open(w, &opts);
}

/* The body of the n-th request that ran a job. */
static hfsb_json_doc tj_body(tc_world *w, size_t n) {
    const fh_record *r = fh_nth(w->fake, n, "POST", "/api/jobs/*");
    hfsb_json_doc    doc = HFSB_INIT;
    T_CHECK(r && hfsb_json_parse(hfsb_buf_str(&r->body), NULL, &doc, NULL) ==
                     HFSB_OK);
    return doc;
}

static hfsb_str tj_text(const hfsb_json_value *root, const char *a,
                        const char *b) {
    return hfsb_json_str(hfsb_json_get(hfsb_json_get(root, a), b),
                         HFSB_LIT("(none)"));
}

/* One creation that must fail, and leave no job that runs. */
static hfsb_status tj_fail(tc_world *w, hfsb_err *err) {
    hfsb_sandbox *s = NULL;
    hfsb_status   st = hfsb_sandbox_create(&w->spec, &w->opts, &s, err);
    T_CHECK(st != HFSB_OK && !s);
    T_CHECK(fh_live_jobs(w->fake) == 0);
    tc_no_secret(w, err);
    return st;
}

/* ---- what it makes ---- */

static void the_job_has_what_was_asked_for(void) {
    const char      *volume = "[{\"type\":\"dataset\",\"source\":\"a/b\","
                              "\"mountPath\":\"/data\"},{\"type\":\"model\","
                              "\"source\":\"alice/hfsb-server\",\"mountPath\":"
                              "\"/.hfsb-server\",\"readOnly\":true}]";
    hfsb_job_volume  data = HFSB_INIT;
    hfsb_json_doc    doc;
    hfsb_buf         text = HFSB_INIT;
    hfsb_str         token;
    hfsb_sandbox    *s;
    tc_world         w;
    tj_open_mode(&w, FH_STUB);
    T_CHECK(hfsb_job_volume_parse(HFSB_LIT("dataset:a/b:/data"), &data,
                                  NULL) == HFSB_OK);
    w.spec.volumes = &data;
    w.spec.volume_count = 1;
    w.spec.hardware = HFSB_LIT("t4-small");
    w.spec.idle_timeout = HFSB_LIT("10m");
    w.spec.name = HFSB_LIT("mine");
    w.secrets[0].key = HFSB_LIT("MINE");
    w.secrets[0].value = HFSB_LIT(TC_SECRET);
    s = tc_create(&w);
    doc = tj_body(&w, 0);
    token = hfsb_sandbox_token(s);
    T_CHECK(token.len == 64);
    T_CHECK(hfsb_str_starts(hfsb_sandbox_id(s), HFSB_LIT("jobs/alice/68a5")));
    T_CHECK(hfsb_str_ends(hfsb_sandbox_page(s), hfsb_sandbox_id(s)));
    T_CHECK(tc_has(hfsb_sandbox_api(s), "--49983.localhost"));
    T_STR(hfsbi_json_get_str(doc.root, "dockerImage"), "python:3.12");
    T_STR(hfsbi_json_get_str(doc.root, "flavor"), "t4-small");
    T_CHECK(hfsb_json_int(hfsb_json_get(doc.root, "timeoutSeconds"), 0) ==
            86400);
    T_STR(tj_text(doc.root, "environment", "SBX_IDLE_TIMEOUT"), "600");
    T_STR(tj_text(doc.root, "environment", "SBX_PORT"), "49983");
    T_STR(tj_text(doc.root, "labels", "hfsb-sandbox"), "1");
    T_STR(tj_text(doc.root, "labels", "hf-sandbox"), "(none)");
    T_CHECK(tj_text(doc.root, "labels", "hf-sandbox-nonce").len == 32);
    T_CHECK(hfsb_str_starts(tj_text(doc.root, "labels", "name"),
                            HFSB_LIT("mine-")));
    T_CHECK(hfsb_str_equal(tj_text(doc.root, "secrets", "SANDBOX_API_TOKEN"),
                           token));
    T_STR(tj_text(doc.root, "secrets", "MINE"), TC_SECRET);
    T_STR(tj_text(doc.root, "secrets", "HFSB_DOWNLOAD_TOKEN"), "(none)");
    T_CHECK(hfsb_json_write(hfsb_json_get(doc.root, "volumes"), NULL, &text,
                            NULL) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&text), hfsb_cstr(volume)));
    hfsb_buf_truncate(&text, 0);
    T_CHECK(hfsb_json_write(hfsb_json_get(doc.root, "expose"), NULL, &text,
                            NULL) == HFSB_OK);
    T_STR(text, "{\"ports\":[49983],\"portsPublic\":[]}");
    hfsb_json_free(&doc);
    hfsb_buf_free(&text);
    tc_delete(s);
    T_CHECK(fh_live_jobs(w.fake) == 0);
    tc_close(&w);
}

static void the_download_brings_the_token_along(void) {
    hfsb_json_doc doc;
    tc_world      w;
    tj_open_mode(&w, FH_STUB);
    w.spec.download = true;
    w.spec.api = HFSB_LIT("hf");
    tc_delete(tc_create(&w));
    doc = tj_body(&w, 0);
    T_CHECK(!hfsb_json_get(doc.root, "volumes"));
    T_STR(tj_text(doc.root, "secrets", "HFSB_DOWNLOAD_TOKEN"), FH_TOKEN);
    T_CHECK(tc_has(tj_text(doc.root, "environment", "HFSB_SERVER_URL"),
                   "/alice/hfsb-server/resolve/main/hfsb-server-"));
    T_STR(tj_text(doc.root, "environment", "HFSB_API"), "hf");
    T_CHECK(hfsb_str_equal(tj_text(doc.root, "secrets", "SBX_TOKEN"),
                           tj_text(doc.root, "secrets",
                                   "SANDBOX_API_TOKEN")));
    T_STR(tj_text(doc.root, "labels", "hf-sandbox"), "1");
    T_STR(tj_text(doc.root, "labels", "hf-sandbox-mode"), "dedicated");
    hfsb_json_free(&doc);
    tc_close(&w);
}

static void the_server_is_committed_once(void) {
    const char *commit = "/api/models/alice/hfsb-server/commit/main";
    hfsb_buf    path = HFSB_INIT, text = HFSB_INIT, bytes = HFSB_INIT;
    char        sha[HFSB_SHA256_HEX];
    tc_world    w;
    tj_open_mode(&w, FH_STUB);
    tc_delete(tc_create(&w));
    tc_delete(tc_create(&w));
    T_CHECK(fh_count(w.fake, "POST", "/api/repos/create") == 1);
    T_CHECK(fh_count(w.fake, "POST", commit) == 1);
    T_CHECK(tc_has(hfsb_buf_str(&fh_nth(w.fake, 0, "POST",
                                        "/api/repos/create")->body),
                   "\"type\":\"model\",\"visibility\":\"private\""));
    hfsb_sha256_hex(w.spec.server, sha);
    T_CHECK(hfsb_buf_printf(&path, "hfsb-server-%s-%s.b64", HFSB_VERSION,
                            sha) == HFSB_OK);
    T_CHECK(fh_file(w.fake, "alice/hfsb-server", path.ptr, &text));
    T_CHECK(text.len && text.ptr[text.len - 1] == '\n');
    hfsb_buf_truncate(&text, text.len - 1); /* one line */
    T_CHECK(hfsb_base64_decode(hfsb_buf_str(&text), &bytes, NULL) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&bytes), w.spec.server));
    w.spec.server = HFSB_LIT("another");
    tc_delete(tc_create(&w));
    T_CHECK(fh_count(w.fake, "POST", commit) == 2);
    T_CHECK(fh_spaces(w.fake) == 0); /* a model is not a Space */
    hfsb_buf_free(&path);
    hfsb_buf_free(&text);
    hfsb_buf_free(&bytes);
    tc_close(&w);
}

/* ---- who can use it ---- */

static void tj_bash(hfsb_sandbox *s) {
    hfsb_json_doc    args = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    T_CHECK(hfsb_json_parse(HFSB_LIT("{\"command\":\"echo here\"}"), NULL,
                            &args, NULL) == HFSB_OK);
    T_CHECK(hfsb_sandbox_call(s, HFSB_LIT("bash"), args.root, NULL,
                              &result) == HFSB_OK);
    T_STR(result.output, "here\n");
    hfsb_tool_result_free(&result);
    hfsb_json_free(&args);
}

static void any_machine_with_the_token_connects(void) {
    hfsb_space_runtime is;
    hfsb_sandbox      *s;
    hfsb_buf           id = HFSB_INIT;
    hfsb_err           err = HFSB_INIT;
    tc_world           w;
    tj_open_mode(&w, FH_EMBED);
    s = tc_create(&w);
    tj_bash(s);
    T_CHECK(hfsb_sandbox_status(s, &is, &err) == HFSB_OK);
    T_STR(hfsb_cstr(is.stage), "RUNNING");
    T_STR(hfsb_cstr(is.hardware), "cpu-basic");
    T_CHECK(hfsb_sandbox_pause(s, &err) == HFSB_ARG);
    T_CHECK(hfsb_sandbox_restart(s, false, &err) == HFSB_ARG);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "is a job"));
    T_CHECK(hfsb_buf_append(&id, hfsb_sandbox_id(s)) == HFSB_OK);
    T_CHECK(hfsb_sandbox_close(s, false, NULL) == HFSB_OK);
    tc_again(&w);
    T_CHECK(hfsb_sandbox_connect(hfsb_buf_str(&id), false, &w.opts, &s,
                                 &err) == HFSB_OK);
    tj_bash(s);
    T_CHECK(hfsb_sandbox_delete(s, &err) == HFSB_REFUSED);
    T_CHECK(hfsb_sandbox_close(s, false, NULL) == HFSB_OK);
    w.opts.api_token = HFSB_LIT("wrong");
    T_CHECK(hfsb_sandbox_connect(hfsb_buf_str(&id), false, &w.opts, &s,
                                 &err) == HFSB_AUTH);
    w.opts.api_token = HFSB_LIT("");
    T_CHECK(hfsb_sandbox_open(hfsb_buf_str(&id), true, &w.opts, &s, &err) ==
            HFSB_OK);
    T_CHECK(hfsb_sandbox_delete(s, &err) == HFSB_OK);
    T_CHECK(hfsb_sandbox_delete(s, &err) == HFSB_OK);
    T_CHECK(fh_count(w.fake, "POST", "/api/jobs/alice/*/cancel") == 1);
    T_CHECK(hfsb_sandbox_close(s, true, NULL) == HFSB_OK);
    T_CHECK(hfsb_sandbox_connect(hfsb_buf_str(&id), false, &w.opts, &s,
                                 &err) == HFSB_REMOTE);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "is CANCELED"));
    T_CHECK(hfsb_sandbox_connect(HFSB_LIT("jobs/alice/none"), false, &w.opts,
                                 &s, &err) == HFSB_NOT_FOUND);
    T_CHECK(hfsb_sandbox_connect(HFSB_LIT("jobs/alice/a/b"), false, &w.opts,
                                 &s, &err) == HFSB_ARG);
    hfsb_buf_free(&id);
    tc_close(&w);
}

/* The vector of huggingface_hub: it and we derive the same token. */
static void the_token_is_that_of_huggingface_hub(void) {
    static const char token[] = "a7363b49bea4acc16b5e6e290390988be2e081e1f52a3"
                                "1bb78ef153f287f8a34";
    fh_opts       opts = HFSB_INIT;
    hfsb_job_spec spec = HFSB_INIT;
    hfsb_hub_pair label = HFSB_INIT, secret = HFSB_INIT;
    hfsb_str      command = HFSB_LIT("true");
    unsigned      port = 49983;
    hfsb_json_doc job = HFSB_INIT;
    hfsb_buf      id = HFSB_INIT;
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    tc_world      w;
    opts.token = "hf_test";
    opts.mode = FH_EMBED;
    tj_open(&w, &opts);
    w.hub_opts.token = w.opts.hub_token = HFSB_LIT("hf_test");
    tc_hub(&w);
    label.key = HFSB_LIT("hf-sandbox-nonce");
    label.value = HFSB_LIT("0123456789abcdef0123456789abcdef");
    secret.key = HFSB_LIT("SANDBOX_API_TOKEN");
    secret.value = hfsb_cstr(token);
    spec.command = &command;
    spec.command_count = 1;
    spec.labels = &label;
    spec.label_count = 1;
    spec.secrets = &secret;
    spec.secret_count = 1;
    spec.ports = &port;
    spec.port_count = 1;
    T_CHECK(hfsb_hub_job_run(w.hub, &spec, NULL, &job, &err) == HFSB_OK);
    T_CHECK(hfsb_buf_printf(&id, "jobs/alice/%s",
                            hfsbi_json_get_str(job.root, "id").ptr) ==
            HFSB_OK);
    T_CHECK(hfsb_sandbox_connect(hfsb_buf_str(&id), true, &w.opts, &s,
                                 &err) == HFSB_OK);
    T_CHECK(s && hfsb_str_equal(hfsb_sandbox_token(s), hfsb_cstr(token)));
    tc_delete(s);
    hfsb_json_free(&job);
    hfsb_buf_free(&id);
    tc_close(&w);
}

typedef struct tj_list {
    hfsb_buf ids;
    size_t   removed;
} tj_list;

static bool tj_listed(void *user, hfsb_str id, hfsb_str modified) {
    tj_list *l = (tj_list *)user;
    T_CHECK(modified.len > 0);
    T_CHECK(hfsb_buf_append(&l->ids, id) == HFSB_OK);
    return hfsb_buf_append_byte(&l->ids, '\n') == HFSB_OK;
}

static bool tj_swept(void *user, const hfsb_sweep_item *item) {
    tj_list *l = (tj_list *)user;
    l->removed += item->removed;
    return tj_listed(user, item->id, item->modified);
}

static void lists_and_sweeps_find_it(void) {
    hfsb_job_spec   other = HFSB_INIT;
    hfsb_str        command = HFSB_LIT("true");
    hfsb_sweep_opts sweep = HFSB_INIT;
    hfsb_json_doc   job = HFSB_INIT;
    tj_list         l = HFSB_INIT;
    hfsb_sandbox   *s[3];
    hfsb_buf        want = HFSB_INIT;
    size_t          i;
    tc_world        w;
    tj_open_mode(&w, FH_STUB);
    other.command = &command;
    other.command_count = 1;
    T_CHECK(hfsb_hub_job_run(w.hub, &other, NULL, &job, NULL) == HFSB_OK);
    for (i = 0; i < 3; i++) s[i] = tc_create(&w);
    tc_delete(s[1]);
    fh_add_space(w.fake, "alice/sandbox-00000001", 30, true);
    T_CHECK(hfsb_buf_printf(&want, "alice/sandbox-00000001\n%s\n%s\n",
                            hfsb_sandbox_id(s[0]).ptr,
                            hfsb_sandbox_id(s[2]).ptr) == HFSB_OK);
    T_CHECK(hfsb_sandbox_list(w.hub, HFSB_LIT(""), tj_listed, &l, NULL,
                              NULL) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&l.ids), hfsb_buf_str(&want)));
    hfsb_buf_truncate(&l.ids, 0);
    T_CHECK(hfsb_sandbox_sweep(w.hub, NULL, tj_swept, &l, NULL) == HFSB_OK);
    T_STR(l.ids, "alice/sandbox-00000001\n"); /* the jobs are young */
    hfsb_buf_truncate(&l.ids, 0);
    sweep.days = 1e-9;
    sweep.remove = true;
    T_CHECK(hfsb_sandbox_sweep(w.hub, &sweep, tj_swept, &l, NULL) == HFSB_OK);
    T_CHECK(l.removed == 3 && fh_spaces(w.fake) == 0);
    T_CHECK(fh_live_jobs(w.fake) == 1); /* the one that is no sandbox */
    (void)hfsb_sandbox_close(s[0], false, NULL);
    (void)hfsb_sandbox_close(s[2], false, NULL);
    hfsb_json_free(&job);
    hfsb_buf_free(&l.ids);
    hfsb_buf_free(&want);
    tc_close(&w);
}

/* A session whose sandboxes are jobs. */
static hfsb_session *tj_session(tc_world *w) {
    hfsb_session_opts opts;
    hfsb_session     *session = NULL;
    memset(&opts, 0, sizeof opts);
    opts.runtime = HFSB_RUNTIME_SANDBOX;
    opts.hub = w->hub;
    opts.hub_token = HFSB_LIT(FH_TOKEN);
    w->spec.secret_count = 0; /* it gives the token itself */
    w->opts.cancel = NULL;
    opts.sandbox = &w->opts;
    opts.spec = &w->spec;
    T_CHECK(hfsb_session_open(&opts, &session, NULL) == HFSB_OK);
    return session;
}

static void a_session_may_use_jobs(void) {
    hfsb_session    *session;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_json_doc    doc;
    tc_world         w;
    tj_open_mode(&w, FH_EMBED);
    session = tj_session(&w);
    T_CHECK(hfsb_session_call_text(session, HFSB_LIT("bash"),
                                   HFSB_LIT("{\"command\":\"echo $HF_TOKEN\"}"),
                                   NULL, &result) == HFSB_OK);
    T_CHECK(result.success);
    hfsb_tool_result_free(&result);
    T_CHECK(hfsb_session_call_text(session, HFSB_LIT("sandbox_create"),
                                   HFSB_LIT("{\"hardware\":\"t4-small\"}"),
                                   NULL, &result) == HFSB_OK);
    T_CHECK(tc_has(hfsb_buf_str(&result.output), "jobs/alice/"));
    hfsb_tool_result_free(&result);
    T_CHECK(fh_live_jobs(w.fake) == 1);
    T_CHECK(hfsb_session_close(session, &err) == HFSB_OK);
    T_CHECK(fh_live_jobs(w.fake) == 0 && fh_spaces(w.fake) == 0);
    doc = tj_body(&w, 0); /* one that is forgotten costs little */
    T_STR(tj_text(doc.root, "environment", "SBX_IDLE_TIMEOUT"), "2700");
    hfsb_json_free(&doc);
    tc_close(&w);
}

/* Calls sandbox_create; the id of the sandbox in use, in `id`. */
static void tj_wish(hfsb_session *session, const char *arguments, char *id,
                    size_t size) {
    hfsb_tool_result result = HFSB_INIT;
    hfsb_str         text;
    T_CHECK(hfsb_session_call_text(session, HFSB_LIT("sandbox_create"),
                                   hfsb_cstr(arguments), NULL,
                                   &result) == HFSB_OK);
    T_CHECK(result.success);
    text = hfsb_json_str(hfsb_json_get(result.fields.root, "id"),
                         HFSB_LIT(""));
    snprintf(id, size, "%.*s", (int)text.len, text.ptr);
    hfsb_tool_result_free(&result);
}

static void a_session_replaces_a_job_that_has_ended(void) {
    char             first[100], second[100], third[100];
    hfsb_session    *session;
    hfsb_json_doc    job = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    tc_world         w;
    tj_open_mode(&w, FH_EMBED);
    w.spec.idle_timeout = HFSB_LIT("10m");
    session = tj_session(&w);
    tj_wish(session, "{\"hardware\":\"t4-small\"}", first, sizeof first);
    tj_wish(session, "{}", second, sizeof second); /* it is active already */
    T_CHECK(strcmp(first, second) == 0);
    T_CHECK(hfsb_str_starts(hfsb_cstr(first), HFSB_LIT("jobs/alice/")));
    T_CHECK(hfsb_hub_job_cancel(w.hub, HFSB_LIT("alice"),
                                hfsb_cstr(first + 11), NULL, &job,
                                NULL) == HFSB_OK);
    hfsb_json_free(&job);
    T_CHECK(fh_live_jobs(w.fake) == 0);
    tj_wish(session, "{}", third, sizeof third);
    T_CHECK(strcmp(first, third) != 0);
    T_CHECK(hfsb_session_call_text(session, HFSB_LIT("bash"),
                                   HFSB_LIT("{\"command\":\"echo on\"}"),
                                   NULL, &result) == HFSB_OK);
    T_CHECK(result.success && tc_has(hfsb_buf_str(&result.output), "on"));
    hfsb_tool_result_free(&result);
    T_CHECK(fh_live_jobs(w.fake) == 1);
    T_CHECK(hfsb_session_close(session, NULL) == HFSB_OK);
    T_CHECK(fh_live_jobs(w.fake) == 0);
    job = tj_body(&w, 0);
    T_STR(tj_text(job.root, "environment", "SBX_IDLE_TIMEOUT"), "600");
    hfsb_json_free(&job);
    tc_close(&w);
}

/* ---- what goes wrong ---- */

static void a_job_that_fails_shows_its_log(void) {
    static const char *const stages[] = {"ERROR", "SCHEDULING,ERROR",
                                         "COMPLETED", "SCHEDULING,CANCELED"};
    hfsb_err err = HFSB_INIT;
    size_t   i;
    for (i = 0; i < TT_COUNT(stages); i++) {
        fh_opts  opts = HFSB_INIT;
        tc_world w;
        opts.box_stages = stages[i];
        opts.job_log = "===== Job started at x =====\nexec: no such file\n"
                       "secret " TC_SECRET "\n";
        tj_open(&w, &opts);
        w.secrets[0].value = HFSB_LIT(TC_SECRET);
        T_CHECK(tj_fail(&w, &err) == HFSB_REMOTE);
        if (!i) printf("%s\n", err.msg);
        T_CHECK(tc_has(hfsb_cstr(err.msg), "exec: no such file\n"));
        T_CHECK(tc_has(hfsb_cstr(err.msg), "The job jobs/alice/68a5"));
        T_CHECK(tc_has(hfsb_cstr(err.msg), " was cancelled."));
        tc_close(&w);
    }
}

static void a_url_may_be_late_but_not_missing(void) {
    fh_opts  opts = HFSB_INIT;
    hfsb_err err = HFSB_INIT;
    tc_world w;
    opts.late_urls = 2;
    tj_open(&w, &opts);
    tc_delete(tc_create(&w));
    tc_close(&w);
    opts.late_urls = 1000;
    tj_open(&w, &opts);
    T_CHECK(tj_fail(&w, &err) == HFSB_REMOTE);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "no URL for port 49983 of the job"));
    tc_close(&w);
}

static void a_server_that_stays_silent_is_a_failure(void) {
    fh_fault_spec silent = HFSB_INIT;
    hfsb_err      err = HFSB_INIT;
    tc_world      w;
    tj_open_mode(&w, FH_STUB);
    silent.path = "edge:/api/health";
    silent.status = 502;
    silent.shape = FH_HTML;
    silent.times = FH_ALWAYS;
    fh_fault(w.fake, &silent);
    w.opts.times.wait_ms = 2500;
    T_CHECK(tj_fail(&w, &err) == HFSB_TIMEOUT);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "not responding"));
    T_CHECK(tc_has(hfsb_cstr(err.msg), "The end of its job log:\nhi\ndone"));
    tc_close(&w);
}

static void a_lost_reply_is_found_by_its_nonce(void) {
    fh_fault_spec lost = HFSB_INIT;
    hfsb_err      err = HFSB_INIT;
    tc_world      w;
    tj_open_mode(&w, FH_STUB);
    lost.method = "POST";
    lost.path = "/api/jobs/alice";
    lost.cut = FH_CLOSE;
    lost.work = true;
    fh_fault(w.fake, &lost);
    tc_delete(tc_create(&w));
    T_CHECK(fh_count(w.fake, "POST", lost.path) == 1);
    T_CHECK(tc_logged(&w, "The Hub's answer was lost, but jobs/alice/"));
    T_CHECK(fh_live_jobs(w.fake) == 0);
    tc_again(&w);
    lost.work = false; /* it never got there */
    fh_fault(w.fake, &lost);
    T_CHECK(tj_fail(&w, &err) == HFSB_LOST);
    T_CHECK(!tc_has(hfsb_cstr(err.msg), "may be left"));
    tc_again(&w);
    fh_fault(w.fake, &lost);
    lost.method = "GET"; /* and nobody can say */
    lost.times = FH_ALWAYS;
    fh_fault(w.fake, &lost);
    T_CHECK(tj_fail(&w, &err) == HFSB_LOST);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "A job of alice may be left"));
    tc_close(&w);
}

static void refusals_leave_nothing(void) {
    static const struct {
        const char *method, *path;
        int         status;
        hfsb_status gives;
    } rows[] = {
        {"POST", "/api/jobs/alice", 402, HFSB_PAYMENT},
        {"POST", "/api/jobs/alice", 400, HFSB_ARG},
        {"POST", "/api/repos/create", 403, HFSB_DENIED},
        {"POST", "/api/models/*/preupload/main", 403, HFSB_DENIED},
        {"POST", "/api/models/*/commit/main", 403, HFSB_DENIED},
        {"GET", "/api/whoami-v2", 401, HFSB_AUTH},
    };
    size_t i;
    for (i = 0; i < TT_COUNT(rows); i++) {
        fh_fault_spec no = HFSB_INIT;
        hfsb_err      err = HFSB_INIT;
        tc_world      w;
        tj_open_mode(&w, FH_STUB);
        no.method = rows[i].method;
        no.path = rows[i].path;
        no.status = rows[i].status;
        no.times = FH_ALWAYS;
        fh_fault(w.fake, &no);
        T_CHECK(tj_fail(&w, &err) == rows[i].gives);
        T_CHECK(fh_count(w.fake, "POST", "/api/jobs/alice/*/cancel") == 0);
        tc_close(&w);
    }
}

static void a_model_that_is_not_visible_yet_is_waited_for(void) {
    fh_opts  opts = HFSB_INIT;
    tc_world w;
    opts.missing = 3;
    tj_open(&w, &opts);
    tc_delete(tc_create(&w));
    T_CHECK(fh_count(w.fake, "POST", "/api/repos/create") == 1);
    tc_close(&w);
}

static void cancelled_anywhere_no_job_is_left(void) {
    static const struct {
        const char *method, *path;
    } at[] = {
        {"GET", "/api/whoami-v2"},
        {"POST", "/api/models/alice/hfsb-server/preupload/main"},
        {"POST", "/api/repos/create"},
        {"POST", "/api/models/alice/hfsb-server/commit/main"},
        {"POST", "/api/jobs/alice"},
        {"GET", "/api/jobs/alice/*"},
        {"GET", "/api/health"},
    };
    hfsb_err err = HFSB_INIT;
    size_t   i;
    for (i = 0; i < 2 * TT_COUNT(at); i++) {
        tc_world w;
        tj_open_mode(&w, FH_STUB);
        w.cancel_method = at[i / 2].method;
        w.cancel_path = at[i / 2].path;
        w.cancel_after = i % 2;
        T_CHECK(tj_fail(&w, &err) == HFSB_CANCELLED);
        T_CHECK(hfsb_str_starts(hfsb_cstr(err.msg),
                                HFSB_LIT("Sandbox creation cancelled")));
        T_CHECK(!tc_has(hfsb_cstr(err.msg), "left"));
        tc_close(&w);
    }
}

static void a_job_that_cannot_be_cancelled_is_named(void) {
    fh_fault_spec no = HFSB_INIT;
    fh_opts       opts = HFSB_INIT;
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    tc_world      w;
    opts.late_urls = 1000;
    tj_open(&w, &opts);
    no.method = "POST";
    no.path = "/api/jobs/alice/*/cancel";
    no.status = 500;
    no.times = FH_ALWAYS;
    fh_fault(w.fake, &no);
    T_CHECK(hfsb_sandbox_create(&w.spec, &w.opts, &s, &err) == HFSB_REMOTE);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "The job jobs/alice/68a5"));
    T_CHECK(tc_has(hfsb_cstr(err.msg), " is left, and may cost money"));
    tc_close(&w);
    opts.box_stages = "ERROR"; /* it has ended: nothing to cancel */
    no.status = 409;
    tj_open(&w, &opts);
    fh_fault(w.fake, &no);
    T_CHECK(tj_fail(&w, &err) == HFSB_REMOTE);
    T_CHECK(!tc_has(hfsb_cstr(err.msg), "is left"));
    tc_close(&w);
}

static void arguments_are_checked_first(void) {
    hfsb_err err = HFSB_INIT;
    tc_world w;
    tj_open_mode(&w, FH_STUB);
    w.spec.server = HFSB_LIT("");
    T_CHECK(tj_fail(&w, &err) == HFSB_ARG);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "make static"));
    w.spec.server = HFSB_LIT("x");
    w.spec.idle_timeout = HFSB_LIT("soon");
    T_CHECK(tj_fail(&w, &err) == HFSB_ARG);
    w.spec.idle_timeout = HFSB_LIT("");
    w.secrets[0].key = HFSB_LIT("SANDBOX_API_TOKEN");
    T_CHECK(tj_fail(&w, &err) == HFSB_ARG);
    w.secrets[0].key = HFSB_LIT("K");
    w.spec.owner = HFSB_LIT("al ice");
    T_CHECK(tj_fail(&w, &err) == HFSB_ARG);
    T_CHECK(fh_count(w.fake, NULL, NULL) == 0);
    tc_close(&w);
}

/* ---- memory ---- */

static tc_world memory_world;

static void create_with(hfsb_alloc alloc, const t_heap *heap) {
    tc_world     *w = &memory_world;
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    hfsb_status   st, closed;
    w->hub_opts.alloc = w->opts.alloc = alloc;
    if (t_quick() && heap->fail_at % 7 > 1) return;
    hfsb_hub_close(w->hub);
    w->hub = w->opts.hub = NULL;
    fh_forget(w->fake);
    hfsb_buf_truncate(&w->log, 0);
    st = hfsb_hub_open(&w->hub_opts, &w->hub, &err);
    if (st == HFSB_OK) {
        w->opts.hub = w->hub;
        st = hfsb_sandbox_create(&w->spec, &w->opts, &s, &err);
    }
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && err.code == HFSB_NOMEM));
    T_CHECK(st == HFSB_OK || heap->fail_at);
    if (st != HFSB_OK && st != HFSB_NOMEM) printf("  %s\n", err.msg);
    tc_no_secret(w, &err);
    closed = hfsb_sandbox_close(s, true, NULL);
    T_CHECK(closed == HFSB_OK || (closed == HFSB_NOMEM && st == HFSB_OK));
    if (fh_live_jobs(w->fake)) { /* no memory even to cancel it */
        fh_job *j;
        T_CHECK(heap->forever || closed == HFSB_NOMEM);
        T_CHECK(st == HFSB_OK || tc_has(hfsb_cstr(err.msg), " left"));
        fh_lock(w->fake);
        for (j = w->fake->jobs; j; j = j->next) j->cancelled = true;
        fh_unlock(w->fake);
    }
    hfsb_hub_close(w->hub);
    w->hub = NULL;
}

static void each_allocation_of_create_fails(void) {
    tj_open_mode(&memory_world, FH_STUB);
    t_each_allocation_fails(create_with);
    tc_close(&memory_world);
}

int main(void) {
    tt_begin();
    TT_RUN(the_job_has_what_was_asked_for);
    TT_RUN(the_download_brings_the_token_along);
    TT_RUN(the_server_is_committed_once);
    TT_RUN(any_machine_with_the_token_connects);
    TT_RUN(the_token_is_that_of_huggingface_hub);
    TT_RUN(lists_and_sweeps_find_it);
    TT_RUN(a_session_may_use_jobs);
    TT_RUN(a_session_replaces_a_job_that_has_ended);
    TT_RUN(a_job_that_fails_shows_its_log);
    TT_RUN(a_url_may_be_late_but_not_missing);
    TT_RUN(a_server_that_stays_silent_is_a_failure);
    TT_RUN(a_lost_reply_is_found_by_its_nonce);
    TT_RUN(refusals_leave_nothing);
    TT_RUN(a_model_that_is_not_visible_yet_is_waited_for);
    TT_RUN(cancelled_anywhere_no_job_is_left);
    TT_RUN(a_job_that_cannot_be_cancelled_is_named);
    TT_RUN(arguments_are_checked_first);
    TT_RUN(each_allocation_of_create_fails);
    return TT_END();
}
