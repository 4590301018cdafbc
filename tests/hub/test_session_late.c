/* test_session_late.c - the session and a Hub at the worst moment: a cancel
   that comes too late, deletes that fail. */
#define T_SERVER
#include "../support/t_session_hub.h"
#ifdef HFSBI_SPLIT
#include "../../src/hub/hub_private.h"
#endif

/* ---- a cancel that comes when the sandbox is there ---- */

typedef struct late {
    hfsb_session *session;
    pthread_t     caller;
    bool          came;
} late;

/* Something is given back in the thread that makes the sandbox after its last
   look at the cancel: now it is set. */
static void *late_heap(void *user, void *ptr, size_t old_size,
                       size_t new_size) {
    late *l = (late *)user;
    (void)old_size;
    if (!new_size && !pthread_equal(pthread_self(), l->caller) && !l->came &&
        l->session->making && l->session->making->sandbox) {
        l->came = true;
        hfsb_cancel_set(l->session->making->cancel);
    }
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static void cancel_after_the_creation_is_ignored(void) {
    sh_world w;
    tt_reply r = HFSB_INIT;
    hfsb_err err;
    late     l = HFSB_INIT;
    l.caller = pthread_self();
    sh_begin(&w, NULL);
    w.opts.no_preload = true;
    w.opts.alloc.fn = w.sandbox.alloc.fn = late_heap;
    w.opts.alloc.user = w.sandbox.alloc.user = &l;
    sh_open(&w);
    l.session = w.session;
    T_CHECK(hfsb_session_wait_ready(w.session, NULL, &err) == HFSB_OK);
    T_CHECK(l.came);
    sn_call(&r, w.session, "bash", "command=s", "true");
    T_CHECK(r.st == HFSB_OK && r.res.success);
    tt_drop(&r);
    sh_close(&w);
    sh_end(&w);
}

/* ---- deletes ---- */

/* However often the Hub's own client would repeat it. */
static void a_delete_is_one_request(void) {
    static const int statuses[] = {500, 503, 403};
    size_t           i;
    for (i = 0; i < TT_COUNT(statuses); i++) {
        fh_fault_spec fault = HFSB_INIT;
        sh_world      w;
        hfsb_err      err = HFSB_INIT;
        sh_begin(&w, NULL);
        sh_ready(&w);
        fault.method = "DELETE";
        fault.status = statuses[i];
        fault.times = FH_ALWAYS;
        fh_fault(w.fh, &fault);
        T_CHECK(hfsb_session_close(w.session, &err) != HFSB_OK);
        T_CHECK(fh_count(w.fh, "DELETE", NULL) == 3);
        T_CHECK(strstr(err.msg, "could not be deleted") != NULL);
        sh_end(&w);
    }
}

static void a_create_deletes_in_three_requests(void) {
    fh_fault_spec fault = HFSB_INIT;
    sh_world      w;
    hfsb_err      err;
    sh_begin(&w, NULL);
    fault.path = "/api/spaces/*/commit/*";
    fault.status = 403;
    fh_fault(w.fh, &fault);
    fault.method = "DELETE";
    fault.path = NULL;
    fault.status = 500;
    fault.times = FH_ALWAYS;
    fh_fault(w.fh, &fault);
    sh_open(&w);
    T_CHECK(hfsb_session_wait_ready(w.session, NULL, &err) == HFSB_DENIED);
    T_CHECK(fh_count(w.fh, "DELETE", NULL) == 3);
    fh_no_faults(w.fh);
    sh_close(&w);
    sh_end(&w);
}

/* The Hub has done it, and its answer is lost: 404 is no failure then. */
static void a_delete_whose_answer_is_lost_is_done(void) {
    fh_fault_spec fault = HFSB_INIT;
    sh_world      w;
    sh_begin(&w, NULL);
    sh_ready(&w);
    fault.method = "DELETE";
    fault.path = NULL;
    fault.cut = FH_CLOSE;
    fault.work = true;
    fh_fault(w.fh, &fault);
    sh_close(&w);
    T_CHECK(fh_count(w.fh, "DELETE", NULL) == 2);
    sh_end(&w);
}

/* A sandbox that is ready is deleted in the time that close has. */
static void silent_hub_does_not_delay_the_deletion(void) {
    fh_fault_spec fault = HFSB_INIT;
    sh_world      w;
    hfsb_err      err = HFSB_INIT;
    long long     begin;
    sh_begin(&w, NULL);
    fault.method = "DELETE";
    fault.status = 500;
    fault.delay_ms = 60000;
    fault.times = FH_ALWAYS;
    fh_fault(w.fh, &fault);
    w.opts.close_ms = 900;
    sh_ready(&w);
    begin = hfsb_clock_ms();
    T_CHECK(hfsb_session_close(w.session, &err) == HFSB_TIMEOUT);
    T_CHECK(hfsb_clock_ms() - begin < 15000);
    T_CHECK(fh_count(w.fh, "DELETE", NULL) == 3);
    T_CHECK(strstr(err.msg, "could not be deleted") != NULL);
    sh_end(&w);
}

int main(void) {
    tt_begin();
    TT_RUN(cancel_after_the_creation_is_ignored);
    TT_RUN(a_delete_is_one_request);
    TT_RUN(a_create_deletes_in_three_requests);
    TT_RUN(a_delete_whose_answer_is_lost_is_done);
    TT_RUN(silent_hub_does_not_delay_the_deletion);
    return TT_END();
}
