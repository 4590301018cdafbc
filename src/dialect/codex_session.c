/* codex_session.c - sessions of codex.c: what a client keeps while its
   connection is lost.

   A session has the processes and the open files of one client:

       initialize --> ATTACHED <--resumeSessionId-- DETACHED
                         |    --connection lost-->      |
                         +----------- end <--60 s-------+ */
#include "dialect_private.h"

enum { HFSBI_CODEX_SESSIONS = 64, HFSBI_CODEX_DETACHED_MS = 60000 };

/* ---- the end ---- */

HFSBI_FN void hfsbi_codex_session_release(hfsbi_codex_session *s) {
    if (s->users || !s->ended) return;
    hfsbi_codex_handles_end(s);
    hfsbi_array_free(&s->codex->dialect.alloc, s, 1, sizeof *s);
}

HFSBI_FN void hfsbi_codex_session_end(hfsbi_codex_session *s) {
    hfsbi_codex_session **link = &s->codex->sessions;
    while (*link != s) link = &(*link)->next;
    *link = s->next;
    if (s->channel) s->channel->session = NULL;
    s->channel = NULL;
    s->ended = true;
    s->users++; /* calls that end here refer to it */
    hfsbi_loop_timer_clear(s->codex->dialect.loop, &s->timer);
    hfsbi_codex_reads_end(s);
    hfsbi_codex_processes_end(s);
    s->users--;
    hfsbi_codex_session_release(s);
}

static void hfsbi_codex_session_expire(hfsbi_timer *timer) {
    hfsbi_codex_session_end(
        (hfsbi_codex_session *)(void *)((char *)timer -
                                        offsetof(hfsbi_codex_session, timer)));
}

/* The connection of a session is lost. */
HFSBI_FN void hfsbi_codex_detach(hfsbi_codex_channel *c) {
    hfsbi_codex_session *s = c->session;
    if (!s) return;
    c->session = NULL;
    s->channel = NULL;
    s->users++;
    hfsbi_codex_reads_end(s);
    s->users--;
    hfsbi_loop_timer(c->codex->dialect.loop, &s->timer,
                     hfsb_clock_ms() + HFSBI_CODEX_DETACHED_MS);
}

/* ---- the beginning ---- */

/* Makes room for a session: the oldest one without a connection goes. */
static bool hfsbi_codex_session_room(hfsbi_codex *codex) {
    hfsbi_codex_session *s, *oldest = NULL;
    size_t               n = 0;
    for (s = codex->sessions; s; s = s->next, n++)
        if (!s->channel) oldest = s;
    if (n < HFSBI_CODEX_SESSIONS) return true;
    if (!oldest) return false;
    hfsbi_codex_session_end(oldest);
    return true;
}

static hfsbi_codex_session *hfsbi_codex_session_new(hfsbi_codex *codex) {
    hfsbi_codex_session *s;
    if (codex->ended || !hfsbi_codex_session_room(codex)) return NULL;
    s = (hfsbi_codex_session *)hfsbi_array(&codex->dialect.alloc, 1,
                                           sizeof *s);
    if (!s) return NULL;
    memset(s, 0, sizeof *s);
    s->codex = codex;
    s->timer.fn = hfsbi_codex_session_expire;
    (void)hfsbi_random_hex(s->id, sizeof s->id - 1);
    s->next = codex->sessions;
    codex->sessions = s;
    return s;
}

HFSBI_FN bool hfsbi_codex_may_send(const hfsbi_codex_session *s) {
    return s->channel && hfsbi_codex_waiting(s->channel) < HFSBI_CODEX_UNSENT;
}

HFSBI_FN void hfsbi_codex_notify(hfsbi_codex_session *s, hfsb_buf *message) {
    if (s->channel) hfsbi_codex_send(s->channel, message);
}

static hfsbi_codex_session *hfsbi_codex_find(hfsbi_codex *codex, hfsb_str id) {
    hfsbi_codex_session *s = codex->sessions;
    while (s && !hfsb_str_equal(hfsb_cstr(s->id), id)) s = s->next;
    return s;
}

/* Finds the session to resume or makes one; NULL after a failure. */
static hfsbi_codex_session *hfsbi_codex_choose(hfsbi_codex_call *call) {
    const hfsb_json_value *resume =
        hfsb_json_get(call->params, "resumeSessionId");
    hfsbi_codex_session *s;
    hfsb_str             id = hfsb_json_str(resume, HFSB_LIT(""));
    if (call->channel->session) {
        hfsbi_codex_fail(call, HFSBI_CODEX_INVALID,
                         "This connection has a session already.");
        return NULL;
    }
    if (hfsb_json_type_of(resume) == HFSB_JSON_NULL) {
        s = hfsbi_codex_session_new(call->codex);
        if (!s)
            hfsbi_codex_fail(call, HFSBI_CODEX_INTERNAL,
                             "No session can begin now.");
        return s;
    }
    s = hfsbi_codex_find(call->codex, id);
    if (!s)
        hfsbi_codex_fail(call, HFSBI_CODEX_INVALID, "unknown session id %.*s",
                         (int)hfsb_utf8_offset(id, 40), id.ptr);
    else if (s->channel)
        hfsbi_codex_fail(call, HFSBI_CODEX_ATTACHED,
                         "session %s is already attached to another "
                         "connection",
                         s->id);
    return s && !s->channel ? s : NULL;
}

HFSBI_FN void hfsbi_codex_initialize(hfsbi_codex_call *call) {
    hfsbi_codex_session *s = hfsbi_codex_choose(call);
    if (!s) {
        hfsbi_codex_answer(call);
        return;
    }
    hfsbi_loop_timer_clear(call->codex->dialect.loop, &s->timer);
    s->channel = call->channel;
    s->epoch++;
    call->channel->session = s;
    hfsb_buf_printf(hfsbi_codex_result(call), "{\"sessionId\":\"%s\"}", s->id);
    hfsbi_codex_answer(call);
    hfsbi_codex_push(s);
}
