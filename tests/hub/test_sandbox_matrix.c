/* test_sandbox_matrix.c - creating a sandbox while one step meets one fault,
   once or always. The result is the expected error, the Space is deleted or the
   message names it, and no secret leaks. The tables are printed. */
#define T_SERVER
#include "../support/t_create.h"

/* ---- the steps ---- */

enum {
    WHOAMI,
    DUPLICATE,
    SECRET_1,
    SECRET_2,
    INFO,
    PREUPLOAD,
    COMMIT,
    RUNTIME,
    HEALTH,
    DELETE, /* of a Space whose build has failed */
    STEPS
};

static const struct step {
    const char *name, *method, *path;
    size_t      nth;
} steps[STEPS] = {
    {"whoami", "GET", "/api/whoami-v2", 1},
    {"duplicate", "POST", "/api/spaces/burtenshaw/sandbox/duplicate", 1},
    {"secret 1", "POST", "/api/spaces/alice/*/secrets", 1},
    {"secret 2", "POST", "/api/spaces/alice/*/secrets", 2},
    {"info", "GET", "/api/spaces/alice/*", 1},
    {"preupload", "POST", "/api/spaces/alice/*/preupload/main", 1},
    {"commit", "POST", "/api/spaces/alice/*/commit/main", 1},
    {"runtime", "GET", "/api/spaces/alice/*/runtime", 1},
    {"health", "GET", "edge:/api/health", 1},
    {"delete", "DELETE", "/api/repos/delete", 1},
};

/* ---- the faults ---- */

enum {
    F401, F401_HIDDEN, F402, F403, F404, F409, F412, F429, F500, F502,
    TIMEOUT, CLOSED, RESET, RESET_DONE, CUT_DONE, LIE, CANCEL, CANCEL_AFTER,
    FAULTS
};

/* What a Hub that tells too much would say. */
#define LOUD "refused: " FH_TOKEN " " TC_API_TOKEN " " TC_SECRET

static const struct fault {
    const char *name;
    int         status;
    fh_shape    shape;
    const char *message, *code;
    long long   delay_ms;
    fh_cut      cut;
    bool        work;
    hfsb_status gives; /* as a rule */
} faults[FAULTS] = {
    {"401", 401, FH_ERROR, "Invalid credentials in Authorization header",
     NULL, 0, FH_WHOLE, false, HFSB_AUTH},
    {"401 hidden", 401, FH_ERROR, "Invalid username or password.", NULL, 0,
     FH_WHOLE, false, HFSB_NOT_FOUND},
    {"402", 402, FH_ERROR, LOUD, NULL, 0, FH_WHOLE, false, HFSB_PAYMENT},
    {"403", 403, FH_ERROR_LIST, LOUD, NULL, 0, FH_WHOLE, false, HFSB_DENIED},
    {"404", 404, FH_ERROR, "Repository not found", "RepoNotFound", 0, FH_WHOLE,
     false, HFSB_NOT_FOUND},
    {"409", 409, FH_ERROR, "You already created this space repo", NULL, 0,
     FH_WHOLE, false, HFSB_CONFLICT},
    {"412", 412, FH_ERRORS, LOUD, NULL, 0, FH_WHOLE, false, HFSB_STALE},
    {"429", 429, FH_ERROR, NULL, NULL, 0, FH_WHOLE, false, HFSB_RATE},
    {"500", 500, FH_TEXT, LOUD, NULL, 0, FH_WHOLE, false, HFSB_REMOTE},
    {"502 HTML", 502, FH_HTML, NULL, NULL, 0, FH_WHOLE, false, HFSB_REMOTE},
    {"timeout", 0, FH_ERROR, NULL, NULL, 800, FH_WHOLE, true, HFSB_TIMEOUT},
    {"closed", 0, FH_ERROR, NULL, NULL, 0, FH_CLOSE, false, HFSB_LOST},
    {"reset", 0, FH_ERROR, NULL, NULL, 0, FH_RESET, false, HFSB_LOST},
    {"reset, done", 0, FH_ERROR, NULL, NULL, 0, FH_RESET, true, HFSB_LOST},
    {"cut, done", 0, FH_ERROR, NULL, NULL, 0, FH_CUT_BODY, true, HFSB_LOST},
    {"200 HTML", 200, FH_HTML, NULL, NULL, 0, FH_WHOLE, false, HFSB_REMOTE},
    {"cancel", 0, FH_ERROR, NULL, NULL, 0, FH_WHOLE, false, HFSB_CANCELLED},
    {"cancel after", 0, FH_ERROR, NULL, NULL, 0, FH_WHOLE, false,
     HFSB_CANCELLED},
};

/* ---- what must come of it ---- */

static bool is_answer(int fault) {
    return fault <= F502;
}

/* The same for one fault and for many. */
static bool is_special(int step, int fault, hfsb_status *out) {
    if (fault >= CANCEL) {
        *out = step == DELETE ? HFSB_REMOTE : HFSB_CANCELLED;
    } else if (step == DELETE) {
        *out = HFSB_REMOTE; /* why it was to be deleted */
    } else if (step == INFO || step == HEALTH) {
        *out = HFSB_OK; /* one can do without these */
    } else if (step == WHOAMI && fault == F401_HIDDEN) {
        *out = HFSB_AUTH; /* nobody hides there */
    } else if (step == DUPLICATE && (fault == TIMEOUT ||
                                     fault == RESET_DONE ||
                                     fault == CUT_DONE)) {
        *out = HFSB_OK; /* one looks, and it is there */
    } else {
        return false;
    }
    return true;
}

static hfsb_status expected_always(int step, int fault) {
    hfsb_status st = HFSB_OK;
    if (is_special(step, fault, &st)) return st;
    if (step == COMMIT &&
        (fault == TIMEOUT || fault == RESET_DONE || fault == CUT_DONE))
        return HFSB_OK; /* the head tells */
    return faults[fault].gives;
}

static hfsb_status expected_once(int step, int fault) {
    hfsb_status st = HFSB_OK;
    if (is_special(step, fault, &st)) return st;
    if (fault == F429) return HFSB_OK;
    if (fault == F404 || fault == F401_HIDDEN) /* not visible yet */
        return step <= DUPLICATE ? faults[fault].gives : HFSB_OK;
    if (fault == F409 && step == DUPLICATE) return HFSB_OK; /* another name */
    if (is_answer(fault) && fault != F500 && fault != F502)
        return faults[fault].gives;
    return step == DUPLICATE ? faults[fault].gives : HFSB_OK; /* repeated */
}

/* ---- one cell ---- */

static void add_fault(tc_world *w, int step, int fault, bool always) {
    const struct fault *f = &faults[fault];
    fh_fault_spec       spec = HFSB_INIT;
    w->cancel_after = fault == CANCEL_AFTER;
    if (fault >= CANCEL) {
        w->cancel_method = steps[step].method;
        w->cancel_path = steps[step].path;
        return;
    }
    spec.method = steps[step].method;
    spec.path = steps[step].path;
    spec.nth = steps[step].nth;
    spec.times = !always ? 1 : FH_ALWAYS;
    if (step == INFO && always) /* later requests look the same */
        spec.times = fault == F401 || (fault >= F402 && fault <= F412 &&
                                       fault != F404)
                         ? 1
                         : w->hub_opts.tries;
    spec.status = f->status;
    spec.shape = f->shape;
    spec.message = f->message;
    spec.code = f->code;
    spec.delay_ms = f->delay_ms;
    spec.cut = f->cut;
    spec.work = f->work;
    fh_fault(w->fake, &spec);
}

/* Appends the id of the Space that is there; false: there is none. */
static bool left(tc_world *w, hfsb_buf *id) {
    T_CHECK(fh_spaces(w->fake) <= 1);
    return fh_space_id(w->fake, 0, id);
}

static void put_away(tc_world *w, const char *id) {
    tc_again(w);
    T_CHECK(hfsb_hub_delete(w->hub, hfsb_cstr(id), NULL, NULL) == HFSB_OK);
}

/* Its word in the table: the status, and what became of the Space. */
static void show(hfsb_status st, bool there, char out[24]) {
    static const char *const names[] = {
#define HFSBI_X(name, text) #name,
        HFSB_STATUS_LIST(HFSBI_X)
#undef HFSBI_X
    };
    snprintf(out, 24, "%s%s", names[st],
             st == HFSB_OK ? "" : there ? " left" : " gone");
}

static void cell(tc_world *w, int step, int fault, bool always,
                 char out[24]) {
    hfsb_status want =
        always ? expected_always(step, fault) : expected_once(step, fault);
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    hfsb_buf      id = HFSB_INIT;
    bool          there;
    hfsb_status   st;
    tc_again(w);
    fh_stages(w->fake, NULL, step == DELETE ? "BUILD_ERROR" : "RUNNING");
    add_fault(w, step, fault, always);
    st = hfsb_sandbox_create(&w->spec, &w->opts, &s, &err);
    there = left(w, &id);
    show(st, there, out);
    T_CHECK(st == want && err.code == want);
    T_CHECK((st == HFSB_OK) == (s != NULL) && (st != HFSB_OK || there));
    T_CHECK((st == HFSB_OK) == !err.msg[0]);
    if (st != HFSB_OK && there) {
        T_CHECK(step == DELETE);
        T_CHECK(tc_has(hfsb_cstr(err.msg), id.ptr));
        T_CHECK(tc_has(hfsb_cstr(err.msg), "is left, and may cost money"));
    }
    if (step == HEALTH && is_answer(fault) && always)
        T_CHECK(tc_logged(w, "Warning: API health check timed out"));
    tc_no_secret(w, &err);
    if (st != want) printf("  %s: %s\n", steps[step].name, err.msg);
    T_CHECK(hfsb_sandbox_close(s, st == HFSB_OK, NULL) == HFSB_OK);
    if (there && st != HFSB_OK) put_away(w, id.ptr);
    T_CHECK(fh_spaces(w->fake) == 0);
    hfsb_buf_free(&id);
}

/* ---- the tables ---- */

static void table(tc_world *w, bool always, int from, int to) {
    char text[24];
    int  step, fault;
    printf("%s:\n%-12s", always ? "each time" : "once", "");
    for (step = 0; step < STEPS; step++) printf("  %-14s", steps[step].name);
    printf("\n");
    for (fault = from; fault < to; fault++) {
        if (always && fault >= CANCEL) continue;
        printf("%-12s", faults[fault].name);
        for (step = 0; step < STEPS; step++) {
            cell(w, step, fault, always, text);
            printf("  %-14s", text);
        }
        printf("\n");
    }
}

static void each_step_with_each_fault(void) {
    tc_world  w;
    long long began, each;
    tc_open_prompt(&w, FH_STUB);
    w.secrets[1].key = HFSB_LIT("MINE");
    w.secrets[1].value = HFSB_LIT(TC_SECRET);
    w.spec.secret_count = 2;
    w.opts.times.api_wait_ms = 20;
    began = hfsb_clock_ms();
    table(&w, false, 0, TIMEOUT);
    each = (hfsb_clock_ms() - began) / (TIMEOUT * STEPS);
    table(&w, true, 0, TIMEOUT);
    table(&w, false, TIMEOUT + 1, FAULTS);
    table(&w, true, TIMEOUT + 1, FAULTS);
    /* for one request several times what a whole creation takes here, and
       less than the fault's 800 ms */
    each = 4 * each < 150 ? 150 : 4 * each < 500 ? 4 * each : 500;
    w.hub_opts.timeout_ms = w.opts.times.health_ms = t_quick() ? 500 : each;
    w.hub_opts.tries = 2;
    table(&w, false, TIMEOUT, TIMEOUT + 1);
    table(&w, true, TIMEOUT, TIMEOUT + 1);
    tc_close(&w);
}

/* ---- stages ---- */

static void each_stage_that_is_not_running(void) {
    static const struct {
        const char *stages;
        hfsb_status gives;
        const char *text;
    } rows[] = {
        {"BUILDING,BUILD_ERROR", HFSB_REMOTE,
         "Space failed to start: BUILD_ERROR. Check "},
        {"RUNTIME_ERROR", HFSB_REMOTE,
         "Space failed to start: RUNTIME_ERROR. Check "},
        {"CONFIG_ERROR", HFSB_REMOTE, "failed to start: CONFIG_ERROR."},
        {"NO_APP_FILE", HFSB_REMOTE, "failed to start: NO_APP_FILE."},
        {"PAUSED", HFSB_REMOTE, "failed to start: PAUSED."},
        {"STOPPED", HFSB_REMOTE, "failed to start: STOPPED."},
        {"SLEEPING", HFSB_REMOTE, "failed to start: SLEEPING."},
        {"DELETING", HFSB_REMOTE, "failed to start: DELETING."},
        {"BUILDING", HFSB_TIMEOUT,
         "Space did not start within 0.2s. Check "},
        {"SOMETHING_NEW", HFSB_TIMEOUT, "stage was SOMETHING_NEW"},
        {"RUNNING@old", HFSB_TIMEOUT, "Space did not start within"},
        {"RUNNING:t4-small", HFSB_TIMEOUT, "Space did not start within"},
        {"500,500,500,500,500,500,500,500,500,500", HFSB_REMOTE, "HTTP 500"},
        {"RUNNING@old,RUNNING_BUILDING,RUNNING", HFSB_OK, ""},
        {"500,RUNNING", HFSB_OK, ""},
        {"500,500,500,500,RUNNING", HFSB_OK, ""}, /* more than the hub tries */
        {"404,404,BUILDING,404,RUNNING", HFSB_OK, ""},
        {"RUNNING:t4-small,RUNNING", HFSB_OK, ""},
        {"RUNNING@none", HFSB_OK, ""},
    };
    tc_world      w;
    size_t        i;
    tc_open_prompt(&w, FH_STUB);
    for (i = 0; i < TT_COUNT(rows); i++) {
        hfsb_sandbox *s = NULL;
        hfsb_err      err = HFSB_INIT;
        hfsb_status   st;
        tc_again(&w);
        w.opts.times.wait_ms = rows[i].gives == HFSB_TIMEOUT ? 200 : 20000;
        fh_stages(w.fake, NULL, rows[i].stages);
        st = hfsb_sandbox_create(&w.spec, &w.opts, &s, &err);
        printf("%-56s %s\n", rows[i].stages, hfsb_status_text(st));
        T_CHECK(st == rows[i].gives);
        T_CHECK(tc_has(hfsb_cstr(err.msg), rows[i].text));
        T_CHECK(fh_spaces(w.fake) == (st == HFSB_OK ? 1u : 0u));
        T_CHECK(tc_has(hfsb_cstr(err.msg), "Its page is gone") ==
                (st != HFSB_OK));
        tc_no_secret(&w, &err);
        if (st != rows[i].gives) printf("  %s\n", err.msg);
        T_CHECK(hfsb_sandbox_close(s, st == HFSB_OK, NULL) == HFSB_OK);
    }
    tc_close(&w);
}

/* The build of the template may have failed before ours begins. */
static void failure_of_another_commit_is_not_ours(void) {
    fh_fault_spec old = HFSB_INIT;
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    tc_world      w;
    tc_open_prompt(&w, FH_STUB);
    old.path = "/api/spaces/alice/*/runtime";
    old.status = 200;
    old.shape = FH_RAW;
    old.message = "{\"stage\":\"BUILD_ERROR\",\"sha\":"
                  "\"00112233445566778899aabbccddeeff00112233\"}";
    old.times = 2;
    fh_fault(w.fake, &old);
    tc_delete(tc_create(&w));
    tc_again(&w);
    old.times = 3;
    fh_fault(w.fake, &old);
    T_CHECK(hfsb_sandbox_create(&w.spec, &w.opts, &s, &err) == HFSB_REMOTE);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "failed to start: BUILD_ERROR."));
    tc_close(&w);
}

int main(void) {
    tt_begin();
    TT_RUN(each_step_with_each_fault);
    TT_RUN(each_stage_that_is_not_running);
    TT_RUN(failure_of_another_commit_is_not_ours);
    return TT_END();
}
