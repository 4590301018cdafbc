/* test_session_sandbox.c - the session with its tools on a Space: preload,
   sandbox_create, the end; against the fake Hub. */
#define T_SERVER
#include "../support/t_session_hub.h"

/* ---- preload ---- */

static void the_preload_is_a_private_cpu_space_and_gone_at_the_end(void) {
    sh_world  w;
    tt_reply  r = HFSB_INIT;
    hfsb_err  err;
    sh_begin(&w, NULL);
    sh_open(&w);
    T_CHECK(hfsb_session_runtime(w.session) == HFSB_RUNTIME_SANDBOX);
    T_CHECK(hfsb_session_wait_ready(w.session, NULL, &err) == HFSB_OK);
    T_CHECK(fh_spaces(w.fh) == 1);
    T_CHECK(w.session->box && w.session->box->sandbox->owned);
    T_CHECK(fh_count(w.fh, "POST", DUPLICATE) == 1);
    T_CHECK(sh_sent(&w, 0, DUPLICATE, "\"visibility\":\"private\""));
    T_CHECK(sh_sent(&w, 0, DUPLICATE, "\"hardware\":\"cpu-basic\""));
    T_CHECK(!sh_sent(&w, 0, DUPLICATE, "sleepTimeSeconds"));
    T_CHECK(fh_count(w.fh, "POST", SECRETS) == 2);
    T_CHECK(sh_sent(&w, 0, SECRETS, "\"key\":\"HF_TOKEN\""));
    T_CHECK(sh_sent(&w, 0, SECRETS, "\"value\":\"" FH_TOKEN "\""));
    T_CHECK(sh_sent(&w, 1, SECRETS, "\"key\":\"SANDBOX_API_TOKEN\""));
    sn_call(&r, w.session, "bash", "command=s", "true");
    T_CHECK(r.st == HFSB_OK && r.res.success);
    T_CHECK(fh_count(w.fh, "POST", "edge:*/api/bash") == 1);
    tt_drop(&r);
    sh_close(&w);
    T_CHECK(fh_count(w.fh, "DELETE", NULL) == 1);
    T_CHECK(sn_heard("Creating sandbox: alice/sandbox-") == 1);
    T_CHECK(sn_heard(FH_TOKEN) == 0);
    sh_end(&w);
}

static void the_first_call_waits_for_it(void) {
    fh_opts  fake = HFSB_INIT;
    sh_world w;
    tt_reply r = HFSB_INIT;
    sh_begin(&w, &fake); /* all the stages of a new Space */
    sh_open(&w);
    sn_call(&r, w.session, "bash", "command=s", "true");
    T_CHECK(r.st == HFSB_OK && r.res.success);
    tt_drop(&r);
    sh_close(&w);
    sh_end(&w);
}

static void without_preload_the_first_call_creates_it(void) {
    sh_world w;
    tt_reply r = HFSB_INIT;
    hfsb_err err;
    int      how;
    for (how = 0; how < 2; how++) {
        sh_begin(&w, NULL);
        w.opts.no_preload = true;
        sh_open(&w);
        sn_call(&r, w.session, "plan_tool", "todos=j", "[]");
        T_CHECK(r.st == HFSB_OK);
        sn_call(&r, w.session, "no_such", "");
        TT_FAIL(&r, "Unknown tool: no_such");
        tt_sleep_ms(20);
        T_CHECK(fh_count(w.fh, NULL, NULL) == 0);
        T_CHECK(w.session->box == NULL);
        if (how == 0)
            T_CHECK(hfsb_session_wait_ready(w.session, NULL, &err) == HFSB_OK);
        sn_call(&r, w.session, "read", "path=s", "x");
        T_CHECK(r.st == HFSB_OK && r.res.success);
        T_CHECK(fh_count(w.fh, "POST", DUPLICATE) == 1);
        tt_drop(&r);
        sh_close(&w);
        sh_end(&w);
    }
}

static void failed_preload_is_reported_until_a_create_succeeds(void) {
    sh_world      w;
    tt_reply      r = HFSB_INIT;
    hfsb_err      err;
    fh_fault_spec fault = HFSB_INIT;
    int           i;
    sh_begin(&w, NULL);
    fault.path = DUPLICATE;
    fault.status = 402;
    fault.message = "needs a plan";
    fault.times = FH_ALWAYS;
    fh_fault(w.fh, &fault);
    sh_open(&w);
    T_CHECK(hfsb_session_wait_ready(w.session, NULL, &err) == HFSB_PAYMENT);
    T_CHECK(strstr(err.msg, "needs a plan") && strstr(err.msg, "402"));
    for (i = 0; i < 2; i++) {
        sn_call(&r, w.session, "bash", "command=s", "true");
        T_CHECK(r.st == HFSB_PAYMENT);
        TT_FAIL(&r, "There is no sandbox (sandbox_create tries again): ");
        T_CHECK(tt_says(&r.res.error, "needs a plan"));
    }
    T_CHECK(fh_count(w.fh, "POST", DUPLICATE) == 1);
    T_CHECK(sn_heard("No sandbox: ") == 1);
    sn_call(&r, w.session, "sandbox_create", "");
    T_CHECK(r.st == HFSB_PAYMENT && tt_says(&r.res.error, "needs a plan"));
    T_CHECK(fh_count(w.fh, "POST", DUPLICATE) == 2);
    fh_no_faults(w.fh);
    sn_call(&r, w.session, "sandbox_create", "");
    T_CHECK(r.st == HFSB_OK);
    TT_OK(&r, NULL);
    sn_call(&r, w.session, "bash", "command=s", "true");
    T_CHECK(r.st == HFSB_OK && r.res.success);
    T_CHECK(hfsb_session_wait_ready(w.session, NULL, &err) == HFSB_OK);
    tt_drop(&r);
    sh_close(&w);
    sh_end(&w);
}

static void a_failure_half_way_leaves_no_space(void) {
    sh_world      w;
    hfsb_err      err;
    fh_fault_spec fault = HFSB_INIT;
    sh_begin(&w, NULL);
    fault.path = "/api/spaces/*/commit/*";
    fault.status = 403;
    fault.times = FH_ALWAYS;
    fh_fault(w.fh, &fault);
    sh_open(&w);
    T_CHECK(hfsb_session_wait_ready(w.session, NULL, &err) == HFSB_DENIED);
    T_CHECK(fh_spaces(w.fh) == 0);
    sh_close(&w);
    sh_end(&w);
}

static void *set_soon(void *user) {
    tt_sleep_ms(500);
    hfsb_cancel_set((hfsb_cancel *)user);
    return NULL;
}

static void a_cancel_ends_only_the_waiting(void) {
    fh_opts      fake = HFSB_INIT;
    sh_world     w;
    tt_reply     r = HFSB_INIT;
    hfsb_err     err;
    hfsb_cancel *cancel = NULL;
    hfsb_alloc   alloc = HFSB_INIT;
    pthread_t    thread;
    fake.stages = "BUILDING";
    sh_begin(&w, &fake);
    sh_open(&w);
    T_CHECK(hfsb_cancel_open(&alloc, &cancel, NULL) == HFSB_OK);
    if (pthread_create(&thread, NULL, set_soon, cancel)) abort();
    sn_do(&r, w.session, "bash", HFSB_LIT("{\"command\":\"true\"}"), cancel);
    pthread_join(thread, NULL);
    T_CHECK(r.st == HFSB_CANCELLED);
    TT_FAIL(&r, "Cancelled while the sandbox was being created.");
    T_CHECK(hfsb_session_wait_ready(w.session, cancel, &err) ==
            HFSB_CANCELLED);
    fh_stages(w.fh, NULL, "RUNNING");
    T_CHECK(hfsb_session_wait_ready(w.session, NULL, &err) == HFSB_OK);
    T_CHECK(fh_count(w.fh, "POST", DUPLICATE) == 1);
    hfsb_cancel_close(cancel);
    tt_drop(&r);
    sh_close(&w);
    sh_end(&w);
}

/* ---- the end ---- */

/* Closed while each of these requests is on its way. */
static void a_close_in_mid_create_leaves_no_space(void) {
    static const struct {
        const char *method, *path;
    } steps[] = {
        {"GET", "/api/whoami-v2"},
        {"POST", DUPLICATE},
        {"POST", SECRETS},
        {"POST", "/api/spaces/*/preupload/*"},
        {"POST", "/api/spaces/*/commit/*"},
        {"GET", "/api/spaces/*/runtime"},
        {"GET", "edge:*/api/health"},
    };
    size_t i;
    for (i = 0; i < TT_COUNT(steps); i++) {
        fh_fault_spec fault = HFSB_INIT;
        sh_world      w;
        hfsb_err      err = HFSB_INIT;
        long long     begin;
        sh_begin(&w, NULL);
        fault.method = steps[i].method;
        fault.path = steps[i].path;
        fault.delay_ms = i == 1 ? 2000 : 15000;
        fault.times = FH_ALWAYS;
        fh_fault(w.fh, &fault);
        sh_open(&w);
        T_CHECK(sh_until(&w, steps[i].method, steps[i].path));
        begin = hfsb_clock_ms();
        T_CHECK(hfsb_session_close(w.session, &err) == HFSB_OK);
        if (err.msg[0]) printf("%s: %s\n", steps[i].path, err.msg);
        T_CHECK(hfsb_clock_ms() - begin < 15000);
        T_CHECK(sn_heard("No sandbox: Sandbox creation cancelled") == 1);
        tt_sleep_ms(i == 1 ? 2500 : 0); /* what was asked comes late */
        if (fh_spaces(w.fh)) printf("left after %s\n", steps[i].path);
        T_CHECK(fh_spaces(w.fh) == 0);
        sh_end(&w);
    }
}

static void silent_hub_does_not_delay_close(void) {
    fh_opts       fake = HFSB_INIT;
    fh_fault_spec fault = HFSB_INIT;
    sh_world      w;
    hfsb_err      err = HFSB_INIT;
    hfsb_buf      id = HFSB_INIT;
    long long     begin;
    fake.stages = "BUILDING";
    sh_begin(&w, &fake);
    fault.method = "DELETE";
    fault.path = NULL;
    fault.status = 500;
    fault.delay_ms = 60000;
    fault.times = FH_ALWAYS;
    fh_fault(w.fh, &fault);
    w.opts.close_ms = 200;
    sh_open(&w);
    T_CHECK(sh_until(&w, "GET", "/api/spaces/*/runtime"));
    T_CHECK(fh_space_id(w.fh, 0, &id));
    begin = hfsb_clock_ms();
    T_CHECK(hfsb_session_close(w.session, &err) == HFSB_TIMEOUT);
    T_CHECK(hfsb_clock_ms() - begin >= 200);
    T_CHECK(hfsb_clock_ms() - begin < 15000);
    T_CHECK(id.len && strstr(err.msg, id.ptr));
    T_CHECK(strstr(err.msg, "could not be deleted") != NULL);
    hfsb_buf_free(&id);
    sh_end(&w);
}

/* Two refusals, then it works; three, and the Space is named. */
static void deleting_is_tried_three_times(void) {
    int refusals;
    for (refusals = 2; refusals <= 3; refusals++) {
        fh_fault_spec fault = HFSB_INIT;
        sh_world      w;
        hfsb_err      err = HFSB_INIT;
        hfsb_buf      id = HFSB_INIT;
        hfsb_status   st;
        sh_begin(&w, NULL);
        sh_ready(&w);
        T_CHECK(fh_space_id(w.fh, 0, &id));
        fault.method = "DELETE";
        fault.status = 403;
        fault.times = (size_t)refusals;
        fh_fault(w.fh, &fault);
        st = hfsb_session_close(w.session, &err);
        T_CHECK(st == (refusals == 3 ? HFSB_DENIED : HFSB_OK));
        T_CHECK(fh_count(w.fh, "DELETE", NULL) == 3);
        T_CHECK(fh_spaces(w.fh) == (refusals == 3 ? 1u : 0u));
        T_CHECK((strstr(err.msg, id.ptr) != NULL) == (refusals == 3));
        T_CHECK(sn_heard(" failed (") == (size_t)refusals);
        T_CHECK(sn_heard("(2 of 3)") == 1);
        hfsb_buf_free(&id);
        sh_end(&w);
    }
}

/* A create that cannot delete what it made: close does. */
static void close_deletes_what_a_failed_create_left(void) {
    fh_fault_spec fault = HFSB_INIT;
    sh_world      w;
    hfsb_err      err;
    sh_begin(&w, NULL);
    fault.path = "/api/spaces/*/commit/*";
    fault.status = 403;
    fh_fault(w.fh, &fault);
    fault.method = "DELETE";
    fault.path = NULL;
    fault.times = FH_ALWAYS;
    fh_fault(w.fh, &fault);
    sh_open(&w);
    T_CHECK(hfsb_session_wait_ready(w.session, NULL, &err) == HFSB_DENIED);
    T_CHECK(fh_spaces(w.fh) == 1);
    fh_no_faults(w.fh);
    sh_close(&w);
    T_CHECK(fh_spaces(w.fh) == 0);
    sh_end(&w);
}

/* ---- sandbox_create ---- */

static void other_hardware_replaces_the_preloaded_sandbox(void) {
    sh_world w;
    tt_reply r = HFSB_INIT;
    hfsb_buf old = HFSB_INIT, id = HFSB_INIT;
    sh_begin(&w, NULL);
    sh_ready(&w);
    T_CHECK(fh_space_id(w.fh, 0, &old));
    sn_call(&r, w.session, "sandbox_create",
            "hardware=s trackio_space_id=s trackio_project=s", "t4-small",
            "alice/board", "demo");
    T_CHECK(r.st == HFSB_OK);
    TT_OK(&r, NULL);
    T_CHECK(fh_spaces(w.fh) == 1 && fh_space_id(w.fh, 0, &id));
    T_CHECK(!fh_has(w.fh, old.ptr));
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output),
                            HFSB_LIT("Sandbox created: ")));
    T_CHECK(tt_says(&r.res.output, id.ptr) && tt_says(&r.res.output, old.ptr));
    T_CHECK(hfsb_str_equal(tt_text(&r, "id"), hfsb_buf_str(&id)));
    T_CHECK(hfsb_str_equal(tt_text(&r, "hardware"), HFSB_LIT("t4-small")));
    T_CHECK(hfsb_str_equal(
        hfsb_sandbox_id(w.session->box->sandbox), hfsb_buf_str(&id)));
    T_CHECK(sh_sent(&w, 1, DUPLICATE, "\"hardware\":\"t4-small\""));
    T_CHECK(sh_sent(&w, 1, DUPLICATE, "\"sleepTimeSeconds\":2700"));
    T_CHECK(sh_sent(&w, 1, DUPLICATE, "\"visibility\":\"private\""));
    T_CHECK(fh_count(w.fh, "POST", SECRETS) == 6);
    T_CHECK(sh_sent(&w, 2, SECRETS, "\"HF_TOKEN\""));
    T_CHECK(sh_sent(&w, 3, SECRETS, "\"TRACKIO_SPACE_ID\""));
    T_CHECK(sh_sent(&w, 3, SECRETS, "\"alice/board\""));
    T_CHECK(sh_sent(&w, 4, SECRETS, "\"TRACKIO_PROJECT\""));
    T_CHECK(sh_sent(&w, 4, SECRETS, "\"demo\""));
    T_CHECK(sh_sent(&w, 5, SECRETS, "\"SANDBOX_API_TOKEN\""));
    /* one that was asked for stays */
    sn_call(&r, w.session, "sandbox_create", "hardware=s", "t4-small");
    T_CHECK(r.st == HFSB_OK && r.res.success);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output),
                            HFSB_LIT("A sandbox is active already: ")));
    sn_call(&r, w.session, "sandbox_create", "");
    T_CHECK(r.res.success && tt_says(&r.res.output, "t4-small"));
    sn_call(&r, w.session, "sandbox_create", "hardware=s", "a100-large");
    T_CHECK(r.st == HFSB_OK);
    TT_FAIL(&r, "A sandbox is active already: ");
    T_CHECK(tt_says(&r.res.error, id.ptr));
    T_CHECK(fh_count(w.fh, "POST", DUPLICATE) == 2);
    tt_drop(&r);
    hfsb_buf_free(&id);
    hfsb_buf_free(&old);
    sh_close(&w);
    sh_end(&w);
}

static void same_hardware_creates_nothing(void) {
    sh_world w;
    tt_reply r = HFSB_INIT;
    sh_begin(&w, NULL);
    sh_open(&w);
    sn_call(&r, w.session, "sandbox_create", ""); /* waits for the preload */
    T_CHECK(r.res.success && tt_says(&r.res.output, "active already"));
    sn_call(&r, w.session, "sandbox_create", "hardware=s", "cpu-basic");
    T_CHECK(r.res.success && tt_says(&r.res.output, "on cpu-basic"));
    T_CHECK(fh_count(w.fh, "POST", DUPLICATE) == 1);
    /* but not when it is to have other secrets */
    sn_call(&r, w.session, "sandbox_create", "trackio_project=s", "p");
    T_CHECK(r.res.success && tt_says(&r.res.output, "Sandbox created"));
    T_CHECK(!sh_sent(&w, 1, DUPLICATE, "sleepTimeSeconds"));
    T_CHECK(fh_count(w.fh, "POST", SECRETS) == 5);
    T_CHECK(fh_spaces(w.fh) == 1);
    sn_call(&r, w.session, "sandbox_create", "hardware=j", "7");
    T_CHECK(r.st == HFSB_ARG);
    TT_FAIL(&r, "\"hardware\": expected a string");
    tt_drop(&r);
    sh_close(&w);
    sh_end(&w);
}

static void the_spec_of_the_caller_holds_for_all(void) {
    hfsb_hub_pair secret = HFSB_INIT;
    char          value[] = "shh-shh-shh";
    sh_world      w;
    tt_reply      r = HFSB_INIT;
    hfsb_err      err;
    sh_begin(&w, NULL);
    secret.key = HFSB_LIT("WANDB_API_KEY");
    secret.value = hfsb_cstr(value);
    w.spec.secrets = &secret;
    w.spec.secret_count = 1;
    w.spec.owner = HFSB_LIT("acme");
    w.spec.hardware = HFSB_LIT("cpu-upgrade");
    w.spec.sleep_time = 61;
    sh_open(&w);
    memset(value, 'x', sizeof value - 1); /* it was copied */
    memset(&secret, 0, sizeof secret);
    T_CHECK(hfsb_session_wait_ready(w.session, NULL, &err) == HFSB_OK);
    T_CHECK(sh_sent(&w, 0, DUPLICATE, "acme/sandbox-"));
    T_CHECK(sh_sent(&w, 0, DUPLICATE, "\"cpu-upgrade\""));
    T_CHECK(sh_sent(&w, 0, DUPLICATE, "\"sleepTimeSeconds\":61"));
    T_CHECK(sh_sent(&w, 1, SECRETS, "shh-shh-shh"));
    sn_call(&r, w.session, "sandbox_create", ""); /* whatever there is */
    T_CHECK(r.res.success && tt_says(&r.res.output, "active already"));
    sn_call(&r, w.session, "sandbox_create", "hardware=s", "cpu-basic");
    T_CHECK(r.res.success && tt_says(&r.res.output, "Sandbox created"));
    T_CHECK(sh_sent(&w, 1, DUPLICATE, "acme/sandbox-"));
    T_CHECK(!sh_sent(&w, 1, DUPLICATE, "sleepTimeSeconds"));
    T_CHECK(sh_sent(&w, 4, SECRETS, "shh-shh-shh"));
    T_CHECK(fh_spaces(w.fh) == 1);
    tt_drop(&r);
    sh_close(&w);
    T_CHECK(sn_heard("shh-shh") == 0);
    sh_end(&w);
}

static void the_old_one_stays_when_the_new_one_fails(void) {
    sh_world      w;
    tt_reply      r = HFSB_INIT;
    fh_fault_spec fault = HFSB_INIT;
    hfsb_buf      id = HFSB_INIT;
    sh_begin(&w, NULL);
    sh_ready(&w);
    T_CHECK(fh_space_id(w.fh, 0, &id));
    fault.path = DUPLICATE;
    fault.status = 403;
    fault.message = "no payment method";
    fh_fault(w.fh, &fault);
    sn_call(&r, w.session, "sandbox_create", "hardware=s", "t4-small");
    T_CHECK(r.st == HFSB_DENIED);
    T_CHECK(tt_says(&r.res.error, "no payment method"));
    T_CHECK(fh_spaces(w.fh) == 1 && fh_has(w.fh, id.ptr));
    sn_call(&r, w.session, "bash", "command=s", "true");
    T_CHECK(r.st == HFSB_OK && r.res.success);
    tt_drop(&r);
    hfsb_buf_free(&id);
    sh_close(&w);
    sh_end(&w);
}

/* ---- several threads ---- */

/* The calls that waited for the preload get the new one, and hear nothing of
   the end of the other. */
static void create_cancels_a_preload_with_other_hardware(void) {
    fh_fault_spec fault = HFSB_INIT;
    sh_world      w;
    sh_job        jobs[4];
    tt_reply      r = HFSB_INIT;
    long long     start;
    size_t        i;
    sh_begin(&w, NULL);
    fault.path = SECRETS;
    fault.delay_ms = 60000;
    fh_fault(w.fh, &fault); /* the first only */
    sh_open(&w);
    T_CHECK(sh_until(&w, "POST", SECRETS));
    for (i = 0; i < TT_COUNT(jobs); i++)
        sh_start(&jobs[i], &w, "bash", "{\"command\":\"true\"}", NULL);
    tt_sleep_ms(20);
    start = hfsb_clock_ms();
    sn_call(&r, w.session, "sandbox_create", "hardware=s", "t4-small");
    T_CHECK(r.st == HFSB_OK && tt_says(&r.res.output, "t4-small"));
    T_CHECK(hfsb_clock_ms() - start < 15000);
    for (i = 0; i < TT_COUNT(jobs); i++) {
        sh_join(&jobs[i]);
        T_CHECK(jobs[i].reply.st == HFSB_OK && jobs[i].reply.res.success);
        tt_drop(&jobs[i].reply);
    }
    T_CHECK(fh_spaces(w.fh) == 1 && fh_count(w.fh, "POST", DUPLICATE) == 2);
    tt_drop(&r);
    sh_close(&w);
    sh_end(&w);
}

static void two_creates_at_once_make_one(void) {
    fh_fault_spec fault = HFSB_INIT;
    sh_world      w;
    sh_job        jobs[2];
    sh_begin(&w, NULL);
    sh_ready(&w);
    fh_forget(w.fh);
    fault.path = SECRETS;
    fault.delay_ms = 400;
    fh_fault(w.fh, &fault);
    sh_start(&jobs[0], &w, "sandbox_create", "{\"hardware\":\"t4-small\"}",
             NULL);
    T_CHECK(sh_until(&w, "POST", DUPLICATE));
    sh_start(&jobs[1], &w, "sandbox_create", "{\"hardware\":\"a10g-small\"}",
             NULL);
    sh_join(&jobs[0]);
    sh_join(&jobs[1]);
    T_CHECK(jobs[0].reply.st == HFSB_OK && jobs[1].reply.st == HFSB_OK);
    T_CHECK(jobs[0].reply.res.success);
    T_CHECK(tt_says(&jobs[0].reply.res.output, "Sandbox created"));
    TT_FAIL(&jobs[1].reply, "A sandbox is active already: ");
    T_CHECK(fh_count(w.fh, "POST", DUPLICATE) == 1);
    T_CHECK(fh_spaces(w.fh) == 1);
    tt_drop(&jobs[0].reply);
    tt_drop(&jobs[1].reply);
    sh_close(&w);
    sh_end(&w);
}

/* False if the call was done before another sandbox was made, though its
   answer took so many times as long. */
static bool the_old_one_is_kept_for_a_call(int times) {
    sh_world      w;
    sh_job        job;
    tt_reply      r = HFSB_INIT;
    fh_fault_spec fault = HFSB_INIT;
    hfsb_buf      old = HFSB_INIT;
    long long     begin;
    bool          late;
    sh_begin(&w, NULL);
    begin = hfsb_clock_ms();
    sh_ready(&w);
    T_CHECK(fh_space_id(w.fh, 0, &old));
    fault.path = "edge:*/api/bash"; /* longer than another creation */
    fault.delay_ms = times * (300 + 10 * (hfsb_clock_ms() - begin));
    begin = hfsb_clock_ms();
    fh_fault(w.fh, &fault);
    sh_start(&job, &w, "bash", "{\"command\":\"true\"}", NULL);
    T_CHECK(sh_until(&w, "POST", "edge:*/api/bash"));
    sn_call(&r, w.session, "sandbox_create", "hardware=s", "t4-small");
    T_CHECK(r.st == HFSB_OK && r.res.success);
    late = hfsb_clock_ms() - begin >= fault.delay_ms;
    T_CHECK(late || (fh_has(w.fh, old.ptr) && fh_spaces(w.fh) == 2));
    sh_join(&job);
    T_CHECK(job.reply.st == HFSB_OK && job.reply.res.success);
    T_CHECK(!fh_has(w.fh, old.ptr) && fh_spaces(w.fh) == 1);
    tt_drop(&job.reply);
    tt_drop(&r);
    hfsb_buf_free(&old);
    sh_close(&w);
    sh_end(&w);
    return !late;
}

static void the_old_one_is_deleted_when_its_last_call_is_done(void) {
    int times = 1;
    while (times < 64 && !the_old_one_is_kept_for_a_call(times)) times *= 4;
    T_CHECK(times < 64);
}

static void cancelled_create_keeps_the_old_sandbox(void) {
    sh_world     w;
    sh_job       job;
    tt_reply     r = HFSB_INIT;
    hfsb_cancel *cancel = NULL;
    hfsb_alloc   alloc = HFSB_INIT;
    hfsb_buf     id = HFSB_INIT;
    sh_begin(&w, NULL);
    sh_ready(&w);
    T_CHECK(fh_space_id(w.fh, 0, &id));
    fh_stages(w.fh, NULL, "BUILDING");
    T_CHECK(hfsb_cancel_open(&alloc, &cancel, NULL) == HFSB_OK);
    sh_start(&job, &w, "sandbox_create", "{\"hardware\":\"t4-small\"}",
             cancel);
    while (fh_spaces(w.fh) < 2) tt_sleep_ms(2);
    hfsb_cancel_set(cancel);
    sh_join(&job);
    T_CHECK(job.reply.st == HFSB_CANCELLED);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&job.reply.res.error),
                            HFSB_LIT("Sandbox creation cancelled: ")));
    T_CHECK(fh_spaces(w.fh) == 1 && fh_has(w.fh, id.ptr));
    /* it is still set: nothing is begun */
    sn_do(&r, w.session, "sandbox_create",
          HFSB_LIT("{\"hardware\":\"t4-small\"}"), cancel);
    T_CHECK(r.st == HFSB_CANCELLED);
    TT_FAIL(&r, "Cancelled before a sandbox was created.");
    T_CHECK(fh_count(w.fh, "POST", DUPLICATE) == 2);
    fh_stages(w.fh, NULL, "RUNNING");
    sn_call(&r, w.session, "bash", "command=s", "true");
    T_CHECK(r.st == HFSB_OK && r.res.success);
    hfsb_cancel_close(cancel);
    tt_drop(&job.reply);
    tt_drop(&r);
    hfsb_buf_free(&id);
    sh_close(&w);
    sh_end(&w);
}

/* ---- tools ---- */

static void files_there_are_read_before_they_change(void) {
    fh_opts  fake = HFSB_INIT;
    sh_world w;
    tt_reply r = HFSB_INIT;
    char     dir[80];
    snprintf(dir, sizeof dir, "%s/work", tt_dir);
    fake.mode = FH_EMBED;
    fake.prompt = true;
    fake.work_dir = dir;
    sh_begin(&w, &fake);
    w.sandbox.work_dir = hfsb_cstr(dir);
    sh_open(&w);
    tt_put("old.txt", HFSB_LIT("one\ntwo\n"));
    sn_call(&r, w.session, "bash", "command=s", "echo hi; pwd");
    T_CHECK(r.st == HFSB_OK && tt_says(&r.res.output, dir));
    sn_call(&r, w.session, "edit", "path=s old_str=s new_str=s", "old.txt",
            "two", "2");
    TT_FAIL(&r, "File old.txt has not been read this session.");
    sn_call(&r, w.session, "write", "path=s content=s", "old.txt", "new");
    TT_FAIL(&r, "File old.txt exists but has not been read this session.");
    TT_FILE("old.txt", "one\ntwo\n");
    sn_call(&r, w.session, "read", "path=s", "old.txt");
    TT_OK(&r, "1\tone\n2\ttwo");
    sn_call(&r, w.session, "edit", "path=s old_str=s new_str=s", "old.txt",
            "two", "2");
    TT_OK(&r, NULL);
    TT_FILE("old.txt", "one\n2\n");
    tt_drop(&r);
    sh_close(&w);
    sh_end(&w);
    unlink("old.txt");
}


static void definitions_of_the_sandbox_fit_it(void) {
    sh_world w;
    hfsb_buf out = HFSB_INIT;
    int      f;
    sh_begin(&w, NULL);
    w.opts.no_preload = true;
    sh_open(&w);
    for (f = 0; f < 4; f++) {
        hfsb_buf names = HFSB_INIT;
        sn_definitions(w.session, (hfsb_tools_format)f, &names);
        T_STR(names, "bash bash_output bash_input kill read write edit "
                     "multi_edit apply_patch glob grep list exists plan_tool "
                     "sandbox_create hf_jobs ");
        hfsb_buf_free(&names);
    }
    T_CHECK(hfsb_session_define(w.session, HFSB_TOOLS_FLAT, &out, NULL) ==
            HFSB_OK);
    T_CHECK(tt_says(&out, "in the sandbox") && !tt_says(&out, "no root"));
    T_CHECK(tt_says(&out, "trackio_space_id") && tt_says(&out, "a100-large"));
    hfsb_buf_free(&out);
    sh_close(&w);
    sh_end(&w);
}

/* ---- memory ---- */

/* Whatever fails: no Space is left, or it is named. */
static void failed_allocation_leaves_no_space(void) {
    size_t    fail_at, total = 1, step = t_quick() ? 7 : 1;
    sh_world  w;
    sh_begin(&w, NULL);
    w.opts.alloc = tt_alloc();
    for (fail_at = 0; fail_at <= total; fail_at += fail_at ? step : 1) {
        tt_reply    r = HFSB_INIT;
        hfsb_err    err = HFSB_INIT;
        hfsb_status st;
        size_t      before = fh_spaces(w.fh);
        T_CHECK(tt_memory.heap.live == 0 && !tt_memory.heap.wrong);
        memset(&tt_memory.heap, 0, sizeof tt_memory.heap);
        tt_memory.heap.fail_at = fail_at;
        st = hfsb_session_open(&w.opts, &w.session, &err);
        T_CHECK(st == HFSB_OK || (fail_at && st == HFSB_NOMEM && err.msg[0]));
        if (st != HFSB_OK) continue;
        sn_do(&r, w.session, "sandbox_create",
              HFSB_LIT("{\"hardware\":\"t4-small\"}"), NULL);
        T_CHECK(r.st == HFSB_OK || fail_at);
        sn_do(&r, w.session, "bash", HFSB_LIT("{\"command\":\"true\"}"), NULL);
        T_CHECK(r.st == HFSB_OK || fail_at);
        tt_drop(&r);
        st = hfsb_session_close(w.session, &err);
        T_CHECK(st == HFSB_OK);
        if (st != HFSB_OK) printf("%zu: %s\n", fail_at, err.msg);
        T_CHECK(fh_spaces(w.fh) == before);
        if (fail_at == 0) total = tt_memory.heap.calls;
    }
    tt_memory.heap.fail_at = 0;
    T_CHECK(tt_memory.heap.live == 0);
    sh_end(&w);
}

int main(void) {
    tt_begin();
    TT_RUN(the_preload_is_a_private_cpu_space_and_gone_at_the_end);
    TT_RUN(the_first_call_waits_for_it);
    TT_RUN(without_preload_the_first_call_creates_it);
    TT_RUN(failed_preload_is_reported_until_a_create_succeeds);
    TT_RUN(a_failure_half_way_leaves_no_space);
    TT_RUN(a_cancel_ends_only_the_waiting);
    TT_RUN(a_close_in_mid_create_leaves_no_space);
    TT_RUN(silent_hub_does_not_delay_close);
    TT_RUN(deleting_is_tried_three_times);
    TT_RUN(close_deletes_what_a_failed_create_left);
    TT_RUN(other_hardware_replaces_the_preloaded_sandbox);
    TT_RUN(same_hardware_creates_nothing);
    TT_RUN(the_spec_of_the_caller_holds_for_all);
    TT_RUN(the_old_one_stays_when_the_new_one_fails);
    TT_RUN(create_cancels_a_preload_with_other_hardware);
    TT_RUN(two_creates_at_once_make_one);
    TT_RUN(the_old_one_is_deleted_when_its_last_call_is_done);
    TT_RUN(cancelled_create_keeps_the_old_sandbox);
    TT_RUN(files_there_are_read_before_they_change);
    TT_RUN(definitions_of_the_sandbox_fit_it);
    TT_RUN(failed_allocation_leaves_no_space);
    return TT_END();
}
