/* preload.c - the sandboxes of a session: created by a thread, held by calls,
   deleted at the end.

   One maker thread at a time creates a sandbox: the first when the session
   opens or is first used, later ones for sandbox_create. A box is one of them:

       MAKING --created--> READY --another is READY--> RETIRED --no call
          |                  |                            |    holds it-->
          |                  \--the session closes--------\--> deleted
          |--failed, its Space was deleted--> freed
          \--failed, its Space is still there--> LEFT --session closes-->
                                                        deleted

   session->box is the READY one, session->boxes has all but MAKING. A Space
   that cannot be deleted stays in the list, for close to try again. The last
   failure is kept and reported to every call, because another creation takes
   minutes and is for the model to decide.

   In the remote runtime the maker connects to a sandbox of the caller, and a
   call after a failure tries again. Nothing is deleted: close kills the
   commands that the session left running there, in another thread, because
   the sandbox may not answer. */
#include "hub_private.h"

enum {
    HFSBI_SPACE_ID = 160, /* longer than any id */
    HFSBI_MAKER_STACK = 1024 * 1024,
    HFSBI_DELETE_TRIES = 3
};

/* ---- boxes ---- */

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
    if (!box) return hfsbi_fail_status(err, HFSB_NOMEM, "Creating a sandbox");
    memset(box, 0, sizeof *box);
    box->hardware.alloc = box->left.alloc = session->alloc;
    st = hfsb_buf_append(&box->hardware, hardware);
    if (st == HFSB_OK) st = hfsb_buf_reserve(&box->left, HFSBI_SPACE_ID);
    if (st != HFSB_OK) hfsbi_fail_status(err, st, "Creating a sandbox");
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

static hfsbi_retry hfsbi_box_retry(const hfsb_session *session,
                                   long long           deadline) {
    long long   unit = session->opts.times.delay_ms;
    hfsbi_retry retry = HFSB_INIT;
    retry.tries = HFSBI_DELETE_TRIES;
    retry.delay_ms = unit > 0 ? (unit + 2) / 3 : 1000;
    retry.max_delay_ms = LLONG_MAX / 2;
    retry.linear = true;
    retry.deadline = deadline;
    retry.cancel = session->give_up;
    return retry;
}

/* Deletes the Space of a box in up to three tries before the deadline; each
   may use its share of the time that is left. */
static hfsb_status hfsbi_box_delete(hfsb_session *session, hfsbi_box *box,
                                    long long deadline, hfsb_err *err) {
    hfsb_str        id = box->sandbox ? hfsb_sandbox_id(box->sandbox)
                                      : hfsb_buf_str(&box->left);
    hfsbi_retry     retry = hfsbi_box_retry(session, deadline);
    hfsbi_hub_tried tried = HFSB_INIT;
    hfsb_err        why = HFSB_INIT;
    hfsb_status     st;
    hfsb_str        owner, job;
    long long       now, until;
    int             n = 0;
    hfsbi_session_log(session, "Deleting sandbox: %.*s...", (int)id.len,
                      id.ptr);
    do {
        now = hfsb_clock_ms();
        until = now + (deadline - now) / (HFSBI_DELETE_TRIES - n);
        if (hfsbi_hubjob_split(id, &owner, &job))
            st = hfsbi_hubjob_end(session->opts.hub, id, until,
                                  session->give_up, &tried, &why);
        else
            st = hfsbi_hub_delete_once(session->opts.hub, id, until,
                                       session->give_up, &tried, &why);
        if (st == HFSB_OK || st == HFSB_NOT_FOUND) {
            hfsbi_session_log(session, "Deleted.");
            return hfsbi_ok(err);
        }
        hfsbi_session_log(session, "Deleting %.*s failed (%d of %d): %s",
                          (int)id.len, id.ptr, ++n, HFSBI_DELETE_TRIES,
                          why.msg);
        retry.asked_ms = tried.asked_ms;
    } while (hfsbi_retry_again(&retry) == HFSB_OK);
    return hfsbi_fail(err, st, 0,
                      "The %s %.*s could not be deleted, so delete it by "
                      "hand: %s",
                      hfsbi_hubjob_split(id, &owner, &job) ? "job" : "Space",
                      (int)id.len, id.ptr, why.msg);
}

/* ---- waiting for a change ---- */

/* A thread that waits with a cancel. A condition cannot be waited for together
   with a descriptor, so each such thread has an event that is set on a
   change. */
struct hfsbi_waiter {
    hfsbi_waiter *next;
    hfsb_cancel   event;
};

/* Wakes all waiting threads. Under the lock. */
static void hfsbi_session_change(hfsb_session *session) {
    hfsbi_waiter *w;
    (void)pthread_cond_broadcast(&session->changed);
    for (w = session->waiters; w; w = w->next) hfsb_cancel_set(&w->event);
}

HFSBI_FN void hfsbi_session_unclaim(hfsb_session *session) {
    session->claimed = false;
    hfsbi_session_change(session);
}

HFSBI_FN bool hfsbi_session_wait(hfsb_session      *session,
                                 const hfsb_cancel *cancel) {
    hfsbi_waiter   waiter;
    hfsbi_waiter **link = &session->waiters;
    long long      until = HFSBI_FOREVER;
    short          ready;
    int            fd;
    if (hfsb_cancel_is_set(cancel)) return false;
    if (!cancel) {
        (void)pthread_cond_wait(&session->changed, &session->lock);
        return true;
    }
    hfsbi_cancel_init(&waiter.event);
    waiter.next = session->waiters;
    session->waiters = &waiter;
    pthread_mutex_unlock(&session->lock);
    fd = hfsb_cancel_fd(&waiter.event);
    if (fd < 0) until = hfsb_clock_ms() + 100; /* no descriptors are left */
    (void)hfsbi_wait_fd(fd, POLLIN, until, cancel, &ready);
    pthread_mutex_lock(&session->lock);
    while (*link != &waiter) link = &(*link)->next;
    *link = waiter.next;
    hfsbi_cancel_free(&waiter.event);
    return true;
}

/* ---- the maker thread ---- */

/* Makes a new box the one in use. Under the lock. */
static void hfsbi_session_use(hfsb_session *session, hfsbi_box *box) {
    if (session->box) session->box->state = HFSBI_BOX_RETIRED;
    box->state = HFSBI_BOX_READY;
    session->box = box;
    hfsbi_box_link(session, box);
}

static void *hfsbi_session_maker(void *user) {
    hfsb_session     *session = (hfsb_session *)user;
    hfsbi_box        *box = session->making;
    hfsb_sandbox_opts opts = session->opts;
    hfsb_err          err = HFSB_INIT;
    hfsb_status       st;
    opts.cancel = box->cancel;
    st =
        session->runtime == HFSB_RUNTIME_REMOTE
            ? session->connect(session->user, box->cancel, &box->sandbox, &err)
            : hfsbi_sandbox_make(&session->make, &opts, &box->left,
                                 &box->sandbox, &err);
    if (box->left.len) box->state = HFSBI_BOX_LEFT;
    if (st != HFSB_OK) hfsbi_session_log(session, "No sandbox: %s", err.msg);
    pthread_mutex_lock(&session->lock);
    session->made = st;
    session->made_err = err;
    if (st == HFSB_OK) {
        hfsb_cancel_reset(box->cancel); /* it came too late */
        hfsbi_session_use(session, box);
    } else if (box->state == HFSBI_BOX_LEFT) {
        hfsbi_box_link(session, box);
    } else {
        hfsbi_box_free(session, box);
    }
    session->making = NULL;
    hfsbi_session_change(session);
    pthread_mutex_unlock(&session->lock);
    return NULL;
}

/* Joins the last maker, which has nothing left to do but to end. */
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
                         "The thread that creates a sandbox cannot be "
                         "started");
}

/* ---- for calls ---- */

static hfsb_status hfsbi_session_failed(const hfsb_session *session,
                                        hfsb_err           *err) {
    return hfsbi_fail(
        err, session->made, 0, "There is no sandbox (%s tries again): %s",
        session->runtime == HFSB_RUNTIME_REMOTE ? "the next call"
                                                : "sandbox_create",
        session->made_err.msg);
}

HFSBI_FN hfsb_status hfsbi_session_hold(hfsb_session      *session,
                                        const hfsb_cancel *cancel,
                                        hfsbi_box **out, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    bool        again = session->runtime == HFSB_RUNTIME_REMOTE;
    *out = NULL;
    pthread_mutex_lock(&session->lock);
    while (st == HFSB_OK && !*out) {
        bool busy = session->making || session->claimed;
        if (!busy && session->box) {
            *out = session->box;
            (*out)->users++;
        } else if (!busy && session->made != HFSB_OK && !again) {
            st = hfsbi_session_failed(session, err);
        } else if (!busy) {
            st = hfsbi_session_start(session, &session->spec, true, err);
        } else if (!hfsbi_session_wait(session, cancel)) {
            st = hfsbi_fail(err, HFSB_CANCELLED, 0,
                            "Cancelled while the sandbox was being created.");
        } else {
            again = false; /* its outcome counts for this call */
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
    last = box->state == HFSBI_BOX_RETIRED && !box->users;
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

/* ---- jobs in a sandbox that outlives the session ---- */

HFSBI_FN hfsb_status hfsbi_session_note_job(hfsb_session *session,
                                            const char   *id) {
    hfsb_status st;
    pthread_mutex_lock(&session->lock);
    st = hfsb_buf_append(&session->jobs, hfsb_str_make(id, strlen(id) + 1));
    pthread_mutex_unlock(&session->lock);
    return st;
}

HFSBI_FN void hfsbi_session_forget_job(hfsb_session *session, const char *id) {
    hfsb_buf *jobs = &session->jobs;
    size_t    at = 0, n, end;
    pthread_mutex_lock(&session->lock);
    while (at < jobs->len && strcmp(jobs->ptr + at, id) != 0)
        at += strlen(jobs->ptr + at) + 1;
    if (at < jobs->len) {
        n = strlen(id) + 1;
        end = jobs->len - n;
        memmove(jobs->ptr + at, jobs->ptr + at + n, end - at);
        hfsb_buf_truncate(jobs, end);
    }
    pthread_mutex_unlock(&session->lock);
}

/* Kills one job. HFSB_OK even when it has ended before. */
static hfsb_status hfsbi_session_kill(hfsb_session *session, const char *id,
                                      hfsb_err *err) {
    hfsb_call_opts   opts = HFSB_INIT;
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsbi_build      arguments;
    hfsb_status      st;
    opts.cancel = session->give_up;
    hfsbi_build_init(&arguments, &session->alloc);
    hfsbi_build_object(&arguments, NULL);
    hfsbi_build_str(&arguments, "id", hfsb_cstr(id));
    hfsbi_build_end(&arguments);
    doc.alloc = session->alloc;
    st = hfsbi_build_finish(&arguments, &doc);
    hfsbi_build_free(&arguments);
    if (st == HFSB_OK)
        st = hfsb_sandbox_call(session->box->sandbox, HFSB_LIT("kill"),
                               doc.root, &opts, &result);
    if (st == HFSB_ARG || st == HFSB_NOT_FOUND) st = HFSB_OK;
    if (st != HFSB_OK)
        hfsbi_fail(err, st, 0,
                   "Commands may still run in the sandbox: they could not be "
                   "killed. %s",
                   result.error.len ? result.error.ptr : hfsb_status_text(st));
    hfsb_tool_result_free(&result);
    hfsb_json_free(&doc);
    return st;
}

/* Kills the jobs until the sandbox does not answer. No call is under way. */
static void *hfsbi_session_killer(void *user) {
    hfsb_session *session = (hfsb_session *)user;
    hfsb_err      err = HFSB_INIT;
    hfsb_status   st = HFSB_OK;
    size_t        at = 0;
    while (st == HFSB_OK && at < session->jobs.len) {
        st = hfsbi_session_kill(session, session->jobs.ptr + at, &err);
        at += strlen(session->jobs.ptr + at) + 1;
    }
    pthread_mutex_lock(&session->lock);
    session->made = st;
    session->made_err = err;
    session->making = NULL;
    hfsbi_session_change(session);
    pthread_mutex_unlock(&session->lock);
    return NULL;
}

/* ---- close ---- */

/* Cancels the creation under way. False when it did not end before the
   deadline: the Hub does not answer, and is not asked anything more. */
static bool hfsbi_session_stop(hfsb_session *session, long long deadline) {
    long long left;
    bool      ended;
    pthread_mutex_lock(&session->lock);
    if (session->making) hfsb_cancel_set(session->making->cancel);
    while (session->making && (left = deadline - hfsb_clock_ms()) > 0)
        hfsbi_cond_wait_ms(&session->changed, &session->lock,
                           left < 1000 ? left : 1000); /* the wall clock that
                                                          it uses may jump */
    ended = !session->making;
    if (!ended) hfsb_cancel_set(session->give_up);
    pthread_mutex_unlock(&session->lock);
    hfsbi_session_join(session);
    return ended;
}

/* Kills the jobs of the remote runtime, in a thread: stopping it, as the maker
   is stopped, keeps the deadline. */
static hfsb_status hfsbi_session_leave(hfsb_session *session,
                                       long long deadline, hfsb_err *err) {
    int rc;
    if (!session->box || !session->jobs.len) return HFSB_OK;
    session->making = session->box;
    rc = hfsbi_thread_start(&session->thread, HFSBI_MAKER_STACK,
                            hfsbi_session_killer, session);
    if (rc != 0) {
        session->making = NULL;
        return hfsbi_fail_os(err, rc,
                             "The thread that kills commands cannot be "
                             "started");
    }
    session->thread_there = true;
    (void)hfsbi_session_stop(session, deadline);
    if (session->made != HFSB_OK && err) *err = session->made_err;
    return session->made;
}

HFSBI_FN hfsb_status hfsbi_session_end(hfsb_session *session, hfsb_err *err) {
    hfsb_status st = HFSB_OK, one;
    hfsb_err    why;
    hfsbi_box  *box;
    long long   deadline = hfsb_clock_ms() + session->close_ms;
    bool        ended;
    hfsbi_ok(err);
    if (session->runtime == HFSB_RUNTIME_LOCAL) return HFSB_OK;
    ended = hfsbi_session_stop(session, deadline);
    if (session->runtime == HFSB_RUNTIME_REMOTE)
        st = hfsbi_session_leave(session, deadline, err);
    session->box = NULL;
    while ((box = session->boxes) != NULL) {
        session->boxes = box->next;
        one = session->runtime == HFSB_RUNTIME_REMOTE
                  ? HFSB_OK
                  : hfsbi_box_delete(session, box, deadline, &why);
        if (one != HFSB_OK && st == HFSB_OK)
            st = hfsbi_fail(err, ended ? one : HFSB_TIMEOUT, 0, "%s", why.msg);
        else if (one != HFSB_OK) hfsbi_err_add(err, "\n%s", why.msg);
        hfsbi_box_free(session, box);
    }
    return st;
}
