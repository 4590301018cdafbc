/* server_mcp_session.c - the sessions of MCP's clients and their tools.
   Depends on: server_mcp_call, tools, plan. */
#include "server_mcp.h"

/* ---- the options of their tools ---- */

static hfsb_status hfsbi_mcp_keep_text(hfsb_mcp *mcp, hfsb_str text) {
    hfsb_status st = hfsb_buf_append(&mcp->texts, text);
    return st == HFSB_OK ? hfsb_buf_append_byte(&mcp->texts, '\0') : st;
}

static size_t hfsbi_mcp_list_length(const char *const *list) {
    size_t n = 0;
    while (list && list[n]) n++;
    return n;
}

/* The next of the texts that were kept. */
static const char *hfsbi_mcp_kept(const char **at) {
    const char *text = *at;
    *at += strlen(text) + 1;
    return text;
}

static const char *const *hfsbi_mcp_kept_list(const char **list, size_t count,
                                              const char **at) {
    size_t i;
    for (i = 0; i < count; i++) list[i] = hfsbi_mcp_kept(at);
    list[count] = NULL;
    return list;
}

/* All texts one behind the other, in the order in which they are found
   again. */
static hfsb_status hfsbi_mcp_keep_texts(hfsb_mcp              *mcp,
                                        const hfsb_tools_opts *o) {
    const char *const *list;
    size_t             i;
    hfsb_status        st = hfsbi_mcp_keep_text(mcp, o->work_dir);
    if (st == HFSB_OK) st = hfsbi_mcp_keep_text(mcp, o->root);
    if (st == HFSB_OK) st = hfsbi_mcp_keep_text(mcp, hfsb_cstr(o->shell));
    if (st == HFSB_OK) st = hfsbi_mcp_keep_text(mcp, hfsb_cstr(o->spill_dir));
    for (list = o->env; st == HFSB_OK && list && *list; list++)
        st = hfsbi_mcp_keep_text(mcp, hfsb_cstr(*list));
    for (list = o->hide_env; st == HFSB_OK && list && *list; list++)
        st = hfsbi_mcp_keep_text(mcp, hfsb_cstr(*list));
    for (i = 0; st == HFSB_OK && i < o->check_count; i++)
        st = hfsbi_mcp_keep_text(mcp, hfsb_cstr(o->checks[i].suffix));
    return st;
}

HFSBI_FN hfsb_status hfsbi_mcp_keep_opts(hfsb_mcp              *mcp,
                                         const hfsb_tools_opts *opts) {
    hfsb_tools_opts *o = &mcp->tools_opts;
    size_t           env = hfsbi_mcp_list_length(opts->env);
    size_t           hidden = hfsbi_mcp_list_length(opts->hide_env), i;
    const char      *at;
    hfsb_status      st = hfsbi_mcp_keep_texts(mcp, opts);
    *o = *opts;
    o->checks = NULL;
    mcp->list_count = env + hidden + 2;
    mcp->lists = (const char **)hfsbi_array(&mcp->alloc, mcp->list_count,
                                            sizeof(char *));
    mcp->checks = (hfsb_tools_check *)hfsbi_array(&mcp->alloc, o->check_count,
                                                  sizeof *mcp->checks);
    if (st != HFSB_OK || !mcp->lists || !mcp->checks) return HFSB_NOMEM;
    at = mcp->texts.ptr;
    o->work_dir = hfsb_cstr(hfsbi_mcp_kept(&at));
    o->root = hfsb_cstr(hfsbi_mcp_kept(&at));
    o->shell = hfsbi_mcp_kept(&at);
    o->spill_dir = hfsbi_mcp_kept(&at);
    if (!opts->shell) o->shell = NULL;
    if (!opts->spill_dir) o->spill_dir = NULL;
    o->env = hfsbi_mcp_kept_list(mcp->lists, env, &at);
    if (!opts->env) o->env = NULL;
    o->hide_env = hfsbi_mcp_kept_list(mcp->lists + env + 1, hidden, &at);
    for (i = 0; i < o->check_count; i++) {
        mcp->checks[i] = opts->checks[i];
        mcp->checks[i].suffix = hfsbi_mcp_kept(&at);
    }
    o->checks = mcp->checks;
    return HFSB_OK;
}

HFSBI_FN void hfsbi_mcp_drop_opts(hfsb_mcp *mcp) {
    if (mcp->lists)
        hfsbi_array_free(&mcp->alloc, (void *)mcp->lists, mcp->list_count,
                         sizeof(char *));
    if (mcp->checks)
        hfsbi_array_free(&mcp->alloc, mcp->checks, mcp->tools_opts.check_count,
                         sizeof *mcp->checks);
    hfsb_buf_free(&mcp->texts);
}

/* ---- the loop drives the tools ---- */

static size_t hfsbi_mcp_session_watch(void *user, hfsb_watch *list,
                                      size_t max) {
    return hfsb_tools_watch(((hfsbi_mcp_session *)user)->tools, list, max);
}

static long long hfsbi_mcp_session_deadline(void *user) {
    return hfsb_tools_deadline(((hfsbi_mcp_session *)user)->tools);
}

/* Answers may bring the next request, and that may need the room. */
static void hfsbi_mcp_session_step(void *user) {
    hfsbi_mcp_session *session = (hfsbi_mcp_session *)user;
    session->users++;
    hfsb_tools_step(session->tools);
    hfsbi_mcp_calls_step(session);
    session->users--;
}

HFSBI_FN hfsb_tools *hfsbi_mcp_session_tools(hfsbi_mcp_session *session,
                                             hfsb_err          *err) {
    hfsb_mcp *mcp = session->mcp;
    if (session->tools) return session->tools;
    session->tools = mcp->spare;
    mcp->spare = NULL;
    if (!session->tools &&
        hfsb_tools_open(&mcp->tools_opts, &session->tools, err) != HFSB_OK)
        return NULL;
    memset(&session->source, 0, sizeof session->source);
    session->source.watch = hfsbi_mcp_session_watch;
    session->source.deadline = hfsbi_mcp_session_deadline;
    session->source.step = hfsbi_mcp_session_step;
    session->source.user = session;
    hfsbi_loop_source(mcp->loop, &session->source);
    return session->tools;
}

/* ---- the sessions ---- */

static void hfsbi_mcp_session_free(hfsbi_mcp_session *session, bool at_once) {
    hfsb_mcp *mcp = session->mcp;
    if (session->tools) {
        hfsbi_loop_source_remove(mcp->loop, &session->source);
        if (at_once) hfsbi_tools_free(session->tools);
        else hfsb_tools_close(session->tools);
    }
    hfsbi_plan_free(&session->plan);
    hfsb_buf_free(&session->id);
    hfsbi_array_free(&mcp->alloc, session, 1, sizeof *session);
}

/* Nobody is in it, and nothing would end with it. */
static bool hfsbi_mcp_session_idle(const hfsbi_mcp_session *session) {
    return !session->users &&
           !(session->tools && hfsb_tools_busy(session->tools));
}

/* Which of two goes first: one that holds nothing (a host that only asks what
   there is opens one each time), then the one that was used longest ago. */
static bool hfsbi_mcp_session_before(const hfsbi_mcp_session *a,
                                     const hfsbi_mcp_session *b) {
    bool a_bare = !a->tools && !a->plan.doc.root;
    bool b_bare = !b->tools && !b->plan.doc.root;
    return a_bare != b_bare ? a_bare : a->used <= b->used;
}

/* Lets go of those that were not used for long, and when the table is full of
   the one that is missed least. False when it stays full. */
static bool hfsbi_mcp_sessions_room(hfsb_mcp *mcp) {
    hfsbi_mcp_session **link = &mcp->sessions, **oldest = NULL, *session;
    long long           now = hfsb_clock_ms();
    size_t              count = 0;
    while ((session = *link) != NULL) {
        bool idle = hfsbi_mcp_session_idle(session);
        if (idle && now - session->used > HFSBI_MCP_SESSION_MS) {
            *link = session->next;
            hfsbi_mcp_session_free(session, false);
            continue;
        }
        if (idle && (!oldest || hfsbi_mcp_session_before(session, *oldest)))
            oldest = link;
        count++;
        link = &session->next;
    }
    if (count < HFSBI_MCP_SESSIONS) return true;
    if (!oldest) return false;
    session = *oldest;
    *oldest = session->next;
    hfsbi_mcp_session_free(session, false);
    return true;
}

static hfsbi_mcp_session *hfsbi_mcp_session_make(hfsb_mcp *mcp, hfsb_str id) {
    hfsbi_mcp_session *session;
    if (!hfsbi_mcp_sessions_room(mcp)) return NULL;
    session =
        (hfsbi_mcp_session *)hfsbi_array(&mcp->alloc, 1, sizeof *session);
    if (!session) return NULL;
    memset(session, 0, sizeof *session);
    session->mcp = mcp;
    session->id.alloc = session->plan.doc.alloc = mcp->alloc;
    session->log_level = mcp->about.logging ? hfsbi_mcp_level(HFSB_LIT("info"))
                                            : HFSBI_MCP_SILENT;
    if (hfsb_buf_append(&session->id, id) != HFSB_OK) {
        hfsbi_mcp_session_free(session, true);
        return NULL;
    }
    session->users = 1;
    session->next = mcp->sessions;
    mcp->sessions = session;
    return session;
}

HFSBI_FN hfsbi_mcp_session *hfsbi_mcp_session_new(hfsb_mcp *mcp) {
    hfsbi_mcp_session *session = hfsbi_mcp_session_make(mcp, HFSB_LIT(""));
    if (session) session->unnamed = true;
    return session;
}

HFSBI_FN hfsbi_mcp_session *hfsbi_mcp_session_hold(hfsb_mcp *mcp,
                                                   hfsb_str  id) {
    hfsbi_mcp_session *session = mcp->sessions;
    while (session && (session->unnamed ||
                       !hfsb_str_equal(hfsb_buf_str(&session->id), id)))
        session = session->next;
    if (!session) return hfsbi_mcp_session_make(mcp, id);
    session->users++;
    return session;
}

HFSBI_FN void hfsbi_mcp_session_release(hfsbi_mcp_session *session) {
    session->users--;
    session->used = hfsb_clock_ms();
}

/* ---- all of them ---- */

HFSBI_FN size_t hfsbi_mcp_sessions_busy(const hfsb_mcp *mcp) {
    const hfsbi_mcp_session *session = mcp->sessions;
    size_t                   n = 0;
    for (; session; session = session->next)
        if (session->tools) n += hfsb_tools_busy(session->tools);
    return n;
}

HFSBI_FN void hfsbi_mcp_sessions_end(hfsb_mcp *mcp) {
    hfsbi_mcp_session *session = mcp->sessions;
    for (; session; session = session->next)
        if (session->tools) hfsbi_jobs_end(session->tools, HFSB_LIT(""));
}

HFSBI_FN size_t hfsbi_mcp_sessions_sweep(hfsb_mcp *mcp, bool hard) {
    hfsbi_mcp_session *session = mcp->sessions;
    size_t             n = 0;
    for (; session; session = session->next)
        if (session->tools) n += hfsbi_tools_sweep(session->tools, hard);
    return n;
}

HFSBI_FN void hfsbi_mcp_sessions_free(hfsb_mcp *mcp, bool at_once) {
    hfsbi_mcp_session *session;
    while ((session = mcp->sessions) != NULL) {
        mcp->sessions = session->next;
        hfsbi_mcp_session_free(session, at_once);
    }
}
