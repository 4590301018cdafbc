/* preload.c - the sandboxes of a session: made by a thread, held by
   calls, deleted at the end. */
#include "remote_private.h"

enum {
    HFSBI_SPACE_ID = 160, /* longer than any */
    HFSBI_MAKER_STACK = 1024 * 1024,
    HFSBI_DELETE_TRIES = 3,
    HFSBI_CANCEL_LOOK_MS = 50 /* a cancel wakes no condition */
};

/* ---- one of them ---- */

static void hfsbi_box_free(hfsb_session *session, hfsbi_box *box) {
    if (box->sandbox) (void)hfsb_sandbox_close(box->sandbox, false, NULL);
    hfsb_cancel_close(box->cancel);
    hfsb_buf_free(&box->hardware);
    hfsb_buf_free(&box->left);
    hfsbi_array_free(&session->alloc, box, 1, sizeof *box);
}

static hfsb_status hfsbi_box_new(hfsb_session *session, hfsb_str hardware,
                                 hfsbi_box **out, hfsb_err *err) {
    hfsbi_box *box = (hfsbi_box *)hfsbi_array(&session->alloc, 1, sizeof *box);
    hfsb_status st;
    *out = box;
    if (!box) return hfsbi_fail_status(err, HFSB_NOMEM, "Making a sandbox");
    memset(box, 0, sizeof *box);
    box->hardware.alloc = box->left.alloc = session->alloc;
    st = hfsb_buf_append(&box->hardware, hardware);
    if (st == HFSB_OK) st = hfsb_buf_reserve(&box->left, HFSBI_SPACE_ID);
    if (st != HFSB_OK) hfsbi_fail_status(err, st, "Making a sandbox");
    else st = hfsb_cancel_open(&session->alloc, &box->cancel, err);
    if (st != HFSB_OK) hfsbi_box_free(session, box);
    return st;
}

/* Under the lock. */
static void hfsbi_box_unlink(hfsb_session *session, hfsbi_box *box) {
    hfsbi_box **link = &session->boxes;
    while (*link && *link != box) link = &(*link)->next;
    if (*link) *link = box->next;
}

static void hfsbi_box_link(hfsb_session *session, hfsbi_box *box) {
    box->next = session->boxes;
    session->boxes = box;
}

/* Waits before try n + 1 of deleting: false when there is no time for it. */
static bool hfsbi_box_wait(const hfsb_session *session, int n,
                           const hfsbi_hub_tried *tried, long long until) {
    long long unit = session->opts.delay_ms, ms;
    ms = n * (unit > 0 ? (unit + 2) / 3 : 1000);
    if (ms < tried->asked_ms) ms = tried->asked_ms;
    return ms < until - hfsb_clock_ms() &&
           hfsb_cancel_wait(session->give_up, ms);
}

/* Deletes its Space: three tries, that are over at `until`, each with its
   share of the time that is left. */
static hfsb_status hfsbi_box_delete(hfsb_session *session, hfsbi_box *box,
                                    long long until, hfsb_err *err) {
    hfsb_str        id = box->sandbox ? hfsb_sandbox_id(box->sandbox)
                                      : hfsb_buf_str(&box->left);
    hfsbi_hub_tried tried = HFSB_INIT;
    hfsb_err        why = HFSB_INIT;
    hfsb_status     st = HFSB_OK;
    long long       now;
    int             n;
    hfsbi_session_log(session, "Deleting sandbox: %.*s...", (int)id.len,
                      id.ptr);
    for (n = 1; n <= HFSBI_DELETE_TRIES; n++) {
        now = hfsb_clock_ms();
        st = hfsbi_hub_delete_once(session->opts.hub, id,
                                   now + (until - now) /
                                             (HFSBI_DELETE_TRIES + 1 - n),
                                   session->give_up, &tried, &why);
        if (st == HFSB_OK || st == HFSB_NOT_FOUND) {
            hfsbi_session_log(session, "Deleted.");
            return hfsbi_ok(err);
        }
        hfsbi_session_log(session, "Deleting %.*s failed (%d of %d): %s",
                          (int)id.len, id.ptr, n, HFSBI_DELETE_TRIES, why.msg);
        if (n < HFSBI_DELETE_TRIES &&
            !hfsbi_box_wait(session, n, &tried, until))
            break;
    }
    return hfsbi_fail(err, st, 0,
                      "The Space %.*s could not be deleted, so delete it by "
                      "hand: %s",
                      (int)id.len, id.ptr, why.msg);
}

/* ---- the thread that makes them, one at a time ---- */

/* What was made is in use from now on. Under the lock. */
static void hfsbi_session_use(hfsb_session *session, hfsbi_box *box) {
    if (session->box) session->box->retired = true;
    session->box = box;
    hfsbi_box_link(session, box);
}

static void *hfsbi_session_maker(void *user) {
    hfsb_session     *session = (hfsb_session *)user;
    hfsbi_box        *box = session->making;
    hfsb_sandbox_opts opts = session->opts;
    hfsb_err          err = HFSB_INIT;
    hfsb_status       st;
    bool              left;
    opts.cancel = box->cancel;
    st = hfsbi_sandbox_make(&session->make, &opts, &box->left, &box->sandbox,
                            &err);
    left = box->left.len > 0;
    if (st != HFSB_OK) hfsbi_session_log(session, "No sandbox: %s", err.msg);
    pthread_mutex_lock(&session->lock);
    session->made = st;
    session->made_err = err;
    if (st == HFSB_OK) {
        hfsb_cancel_reset(box->cancel); /* it came too late */
        hfsbi_session_use(session, box);
    } else if (left) hfsbi_box_link(session, box); /* for close to try again */
    session->making = NULL;
    (void)pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
    if (st != HFSB_OK && !left) hfsbi_box_free(session, box);
    return NULL;
}

/* The last one has nothing to do any more but to end. */
static void hfsbi_session_join(hfsb_session *session) {
    if (session->thread_there) (void)pthread_join(session->thread, NULL);
    session->thread_there = false;
}

HFSBI_FN hfsb_status hfsbi_session_start(hfsb_session            *session,
                                         const hfsb_sandbox_spec *spec,
                                         bool automatic, hfsb_err *err) {
    hfsbi_box  *box;
    hfsb_status st = hfsbi_box_new(session, spec->hardware, &box, err);
    int         rc;
    if (st != HFSB_OK) return st;
    hfsbi_session_join(session);
    box->automatic = automatic;
    session->make = *spec;
    session->making = box;
    rc = hfsbi_thread_start(&session->thread, HFSBI_MAKER_STACK,
                            hfsbi_session_maker, session);
    session->thread_there = rc == 0;
    if (rc == 0) return HFSB_OK;
    session->making = NULL;
    hfsbi_box_free(session, box);
    return hfsbi_fail_os(err, rc,
                         "The thread that makes a sandbox cannot be "
                         "started");
}

HFSBI_FN bool hfsbi_session_wait(hfsb_session      *session,
                                 const hfsb_cancel *cancel) {
    if (hfsb_cancel_is_set(cancel)) return false;
    if (cancel)
        hfsbi_cond_wait_ms(&session->changed, &session->lock,
                           HFSBI_CANCEL_LOOK_MS);
    else (void)pthread_cond_wait(&session->changed, &session->lock);
    return true;
}

/* ---- for calls ---- */

/* The failure of the last one is kept, and told each time: another try takes
   minutes, and is the model's to decide. */
static hfsb_status hfsbi_session_failed(const hfsb_session *session,
                                        hfsb_err           *err) {
    return hfsbi_fail(err, session->made, 0,
                      "There is no sandbox (sandbox_create tries again): %s",
                      session->made_err.msg);
}

HFSBI_FN hfsb_status hfsbi_session_hold(hfsb_session      *session,
                                        const hfsb_cancel *cancel,
                                        hfsbi_box **out, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    *out = NULL;
    pthread_mutex_lock(&session->lock);
    while (st == HFSB_OK && !*out) {
        bool busy = session->making || session->claimed;
        if (!busy && session->box) {
            *out = session->box;
            (*out)->users++;
        } else if (!busy && session->made != HFSB_OK) {
            st = hfsbi_session_failed(session, err);
        } else if (!busy) {
            st = hfsbi_session_start(session, &session->spec, true, err);
        } else if (!hfsbi_session_wait(session, cancel)) {
            st = hfsbi_fail(err, HFSB_CANCELLED, 0,
                            "Cancelled while the sandbox was being made.");
        }
    }
    pthread_mutex_unlock(&session->lock);
    return st;
}

HFSBI_FN hfsb_status hfsbi_session_release(hfsb_session *session,
                                           hfsbi_box *box, hfsb_err *err) {
    hfsb_status st;
    bool        last;
    pthread_mutex_lock(&session->lock);
    box->users--;
    last = box->retired && !box->users;
    if (last) hfsbi_box_unlink(session, box);
    pthread_mutex_unlock(&session->lock);
    if (!last) return hfsbi_ok(err);
    st = hfsbi_box_delete(session, box, hfsb_clock_ms() + session->close_ms,
                          err);
    if (st == HFSB_OK) {
        hfsbi_box_free(session, box);
        return st;
    }
    pthread_mutex_lock(&session->lock); /* close tries again */
    hfsbi_box_link(session, box);
    pthread_mutex_unlock(&session->lock);
    return st;
}

/* ---- the end ---- */

/* Cancels what is being made. False when it had to be broken off; then
   nothing more is asked of the Hub, which does not answer. */
static bool hfsbi_session_stop(hfsb_session *session, long long until) {
    long long left;
    bool      ended;
    pthread_mutex_lock(&session->lock);
    if (session->making) hfsb_cancel_set(session->making->cancel);
    while (session->making && (left = until - hfsb_clock_ms()) > 0)
        hfsbi_cond_wait_ms(&session->changed, &session->lock,
                           left < 1000 ? left : 1000);
    ended = !session->making;
    if (!ended) hfsb_cancel_set(session->give_up);
    pthread_mutex_unlock(&session->lock);
    hfsbi_session_join(session);
    return ended;
}

HFSBI_FN hfsb_status hfsbi_session_end(hfsb_session *session, hfsb_err *err) {
    hfsb_status st = HFSB_OK, one;
    hfsb_err    why;
    hfsbi_box  *box;
    long long   until = hfsb_clock_ms() + session->close_ms;
    bool        ended;
    hfsbi_ok(err);
    if (session->runtime == HFSB_RUNTIME_LOCAL) return HFSB_OK;
    ended = hfsbi_session_stop(session, until);
    session->box = NULL;
    while ((box = session->boxes) != NULL) {
        session->boxes = box->next;
        one = hfsbi_box_delete(session, box, until, &why);
        if (one != HFSB_OK && st == HFSB_OK)
            st = hfsbi_fail(err, ended ? one : HFSB_TIMEOUT, 0, "%s", why.msg);
        else if (one != HFSB_OK) hfsbi_err_add(err, "\n%s", why.msg);
        hfsbi_box_free(session, box);
    }
    return st;
}
