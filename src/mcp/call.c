/* call.c - one call of a tool over MCP, from its message to its
   answer. */
#include "mcp_private.h"

static void hfsbi_mcp_calls_step(hfsbi_mcp_session *session);

/* ==== server mcp session ==== */

/* the sessions of MCP's clients and their tools. */

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

/* Its tools, opened if need be; NULL with *err. */
static hfsb_tools *hfsbi_mcp_session_tools(hfsbi_mcp_session *session,
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

/*  start -> in the loop:   commands         -+-> answer -> freed
          -> in a thread:   files, tools of  -+
             the program, a session's
          -> at once:       the plan, and what cannot be begun

    Meanwhile it beats. When patience ends it is answered with what there is;
    when it is cancelled, or its client is gone, it is not answered at all. A
    thread goes on with what it does, and the call with it. */

/* ---- the end of it ---- */

static void hfsbi_mcp_call_free(hfsb_mcp_call *call) {
    hfsb_mcp *mcp = call->mcp;
    hfsbi_loop_timer_clear(mcp->loop, &call->timer);
    if (call->prev) call->prev->next = call->next;
    else mcp->calls = call->next;
    if (call->next) call->next->prev = call->prev;
    mcp->call_count--;
    hfsb_call_close(call->call);
    hfsb_cancel_close(call->cancel);
    hfsbi_mcp_session_release(call->session);
    if (call->input) hfsbi_mcp_input_release(mcp, call->input);
    hfsb_buf_free(&call->id);
    hfsb_buf_free(&call->token);
    hfsb_buf_free(&call->blocks.json);
    hfsb_buf_free(&call->said);
    hfsb_buf_free(&call->tail);
    (void)pthread_mutex_destroy(&call->lock);
    hfsbi_array_free(&mcp->alloc, call, 1, sizeof *call);
}

static void hfsbi_mcp_call_write(const hfsb_mcp_call *call,
                                 hfsbi_mcp_blocks *blocks, hfsb_buf *out) {
    hfsb_str    id = hfsb_buf_str(&call->id);
    hfsb_status st;
    out->alloc = call->mcp->alloc;
    if (blocks->status == HFSB_OK && !blocks->json.len)
        hfsbi_mcp_add_text(blocks, HFSB_LIT("(no output)"));
    st = blocks->status;
    if (st == HFSB_OK)
        st = hfsbi_mcp_put_result(&call->mcp->about, id, call->modern,
                                  hfsb_buf_str(&blocks->json),
                                  blocks->is_error, out);
    if (st != HFSB_OK)
        (void)hfsbi_mcp_put_error(
            id, HFSBI_MCP_INTERNAL,
            HFSB_LIT("Out of memory: the call may have run."), out);
}

/* Sends what is in blocks, which is the result, or what there is of it. */
static void hfsbi_mcp_call_answer(hfsb_mcp_call    *call,
                                  hfsbi_mcp_blocks *blocks, bool stays) {
    hfsbi_mcp_channel *channel = call->channel;
    hfsb_buf           message = HFSB_INIT;
    call->channel = NULL;
    if (channel) hfsbi_mcp_call_write(call, blocks, &message);
    if (!stays) hfsbi_mcp_call_free(call);
    if (channel) channel->reply(channel, message.len ? 200 : 503, &message);
    hfsb_buf_free(&message);
}

static void hfsbi_mcp_call_end(hfsb_mcp_call *call) {
    hfsbi_mcp_call_answer(call, &call->blocks, false);
}

static void hfsbi_mcp_call_fail(hfsb_mcp_call *call, const char *sentence) {
    hfsbi_mcp_add_text(&call->blocks, hfsb_cstr(sentence));
    call->blocks.is_error = true;
    hfsbi_mcp_call_end(call);
}

/* Shows a result, and frees it. In any thread. */
static void hfsbi_mcp_call_show(hfsb_mcp_call    *call,
                                hfsb_tool_result *result) {
    if (!result->success && !result->error.len)
        call->blocks.status = HFSB_NOMEM; /* not even for the sentence */
    else hfsbi_mcp_show(call->tool, result, &call->blocks);
    hfsb_tool_result_free(result);
}

/* ---- notifications ---- */

HFSBI_FN void hfsbi_mcp_call_text(hfsb_mcp_call *call, hfsb_str text) {
    size_t drop;
    if (text.len > HFSBI_MCP_TAIL)
        text = hfsb_str_slice(text, text.len - HFSBI_MCP_TAIL, text.len);
    pthread_mutex_lock(&call->lock);
    if (call->tail.len + text.len > HFSBI_MCP_TAIL) {
        drop = call->tail.len + text.len - HFSBI_MCP_TAIL;
        memmove(call->tail.ptr, call->tail.ptr + drop, call->tail.len - drop);
        hfsb_buf_truncate(&call->tail, call->tail.len - drop);
    }
    if (hfsb_buf_append(&call->tail, text) != HFSB_OK)
        hfsb_buf_truncate(&call->tail, 0); /* a message less */
    pthread_mutex_unlock(&call->lock);
}

static void hfsbi_mcp_call_printed(void *user, hfsb_proc_stream stream,
                                   hfsb_str text) {
    (void)stream;
    hfsbi_mcp_call_text((hfsb_mcp_call *)user, text);
}

/* Under the lock: to be sent by the next flush; false when it is dropped. */
static bool hfsbi_mcp_call_note(hfsb_mcp_call *call, hfsb_str message) {
    size_t mark = call->said.len;
    if (hfsb_buf_append(&call->said, message) == HFSB_OK &&
        hfsb_buf_append_byte(&call->said, '\n') == HFSB_OK)
        return true;
    hfsb_buf_truncate(&call->said, mark);
    return false;
}

/* The thread has not ended yet: what it posts comes to the loop before that
   end does. */
HFSBI_FN void hfsbi_mcp_call_say(hfsb_mcp_call *call, hfsb_str message) {
    if (!hfsbi_mcp_call_note(call, message) || call->speaking) return;
    call->speaking = true;
    hfsbi_loop_post(call->mcp->loop, &call->speak);
}

/* Sends what was said. The call may be gone afterwards, unless it is in a
   thread. */
static void hfsbi_mcp_call_flush(hfsb_mcp_call *call) {
    hfsbi_mcp_channel *channel = call->channel;
    hfsb_buf           said;
    hfsb_str           rest;
    bool               held = call->in_thread;
    pthread_mutex_lock(&call->lock);
    said = call->said;
    memset(&call->said, 0, sizeof call->said);
    call->said.alloc = said.alloc;
    call->said.max = said.max;
    pthread_mutex_unlock(&call->lock);
    rest = hfsb_buf_str(&said);
    while (channel && rest.len) {
        size_t end = hfsb_str_find_byte(rest, '\n');
        channel->notify(channel, hfsb_str_slice(rest, 0, end));
        rest = hfsb_str_slice(rest, end + 1, rest.len);
        channel = held ? call->channel : NULL; /* it may be gone by now */
    }
    hfsb_buf_free(&said);
}

static void hfsbi_mcp_call_spoken(hfsbi_task *task) {
    hfsb_mcp_call *call =
        (hfsb_mcp_call *)(void *)((char *)task -
                                  offsetof(hfsb_mcp_call, speak));
    pthread_mutex_lock(&call->lock);
    call->speaking = false;
    pthread_mutex_unlock(&call->lock);
    hfsbi_mcp_call_flush(call);
}

/* ---- beats and patience ---- */

static bool hfsbi_mcp_call_beats(const hfsb_mcp_call *call) {
    return call->token.len && call->notifies && call->channel;
}

static void hfsbi_mcp_call_arm(hfsb_mcp_call *call) {
    long long at = call->until;
    if (hfsbi_mcp_call_beats(call)) at = hfsbi_sooner(at, call->next_beat);
    if (at >= 0) hfsbi_loop_timer(call->mcp->loop, &call->timer, at);
    else hfsbi_loop_timer_clear(call->mcp->loop, &call->timer);
}

/* Seconds, until a tool has said something of its own: then hardly more than
   that, so that its next word is not less. */
static void hfsbi_mcp_call_beat(hfsb_mcp_call *call, long long now) {
    double   seconds = (double)(now - call->began) / 1000.0;
    hfsb_buf message = HFSB_INIT;
    hfsb_str line = HFSB_LIT("");
    message.alloc = call->mcp->alloc;
    pthread_mutex_lock(&call->lock);
    if (call->spoke || (call->told && seconds <= call->progress))
        seconds = call->progress + 0.001;
    if (!call->bare) line = hfsbi_mcp_last_line(hfsb_buf_str(&call->tail));
    if (hfsbi_mcp_put_progress(hfsb_buf_str(&call->token), seconds,
                               call->total, line, &message) == HFSB_OK) {
        call->progress = seconds;
        call->told = true;
        (void)hfsbi_mcp_call_note(call, hfsb_buf_str(&message));
    }
    pthread_mutex_unlock(&call->lock);
    hfsb_buf_free(&message);
    hfsbi_mcp_call_flush(call);
}

/* A command goes on as a job. */
static void hfsbi_mcp_call_running(hfsb_mcp_call *call, long long now) {
    hfsb_buf         arguments = HFSB_INIT;
    hfsb_str         job = hfsb_cstr(hfsb_call_job(call->call));
    hfsb_tool_result so_far = HFSB_INIT;
    hfsb_json_writer w;
    arguments.alloc = call->mcp->alloc;
    hfsb_json_writer_init(&w, &arguments, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_str(&w, "id", job);
    hfsb_json_put_end(&w);
    if (hfsb_json_writer_finish(&w, NULL) != HFSB_OK ||
        hfsb_tools_call_text(call->session->tools, HFSB_LIT("bash_output"),
                             hfsb_buf_str(&arguments), NULL,
                             &so_far) == HFSB_NOMEM)
        call->blocks.status = HFSB_NOMEM;
    else
        hfsbi_mcp_show_running(job, (now - call->began) / 1000, &so_far,
                               &call->blocks);
    hfsb_tool_result_free(&so_far);
    hfsb_buf_free(&arguments);
    hfsbi_mcp_call_end(call);
}

static bool hfsbi_mcp_call_is(const hfsb_mcp_call *call, const char *tool) {
    return hfsb_str_equal(call->tool, hfsb_cstr(tool));
}

/* The command's result, or what there is. */
static void hfsbi_mcp_call_taken(hfsb_mcp_call *call) {
    hfsb_tool_result result;
    (void)hfsb_call_take(call->call, &result);
    hfsbi_mcp_call_show(call, &result);
    hfsbi_mcp_call_end(call);
}

/* Patience is at its end, with something that runs in the loop. */
static void hfsbi_mcp_call_late(hfsb_mcp_call *call, long long now) {
    hfsb_tools *tools = call->session->tools;
    if (hfsbi_mcp_call_is(call, "bash_output")) {
        pthread_mutex_lock(&tools->lock);
        call->call->until = now; /* it waits no longer */
        pthread_mutex_unlock(&tools->lock);
    }
    if (hfsb_call_done(call->call)) hfsbi_mcp_call_taken(call);
    else if (hfsbi_mcp_call_is(call, "bash"))
        hfsbi_mcp_call_running(call, now);
    else
        hfsbi_mcp_call_fail(call, "The processes were told to end, and have "
                                  "not all ended yet: call kill again later.");
}

/* Its thread is told to come back with what it has, unless the call is to be
   answered now and to go on by itself. */
static void hfsbi_mcp_call_hurry(hfsb_mcp_call *call, long long now) {
    hfsb_mcp        *mcp = call->mcp;
    hfsbi_mcp_blocks blocks = HFSB_INIT;
    bool             first;
    pthread_mutex_lock(&call->lock);
    first = call->end == HFSBI_MCP_GOES_ON;
    pthread_mutex_unlock(&call->lock);
    blocks.json.alloc = mcp->alloc;
    if (first && mcp->late_remote && mcp->late_remote(call, &blocks)) {
        call->until = -1;
        hfsbi_loop_timer_clear(mcp->loop, &call->timer);
        hfsbi_mcp_call_answer(call, &blocks, true);
    } else {
        pthread_mutex_lock(&call->lock);
        if (first) call->end = HFSBI_MCP_PATIENCE;
        pthread_mutex_unlock(&call->lock);
        hfsb_cancel_set(call->cancel);
        call->until = now + mcp->beat_ms;
        hfsbi_mcp_call_arm(call);
    }
    hfsb_buf_free(&blocks.json);
}

static void hfsbi_mcp_call_tick(hfsbi_timer *timer) {
    hfsb_mcp_call *call =
        (hfsb_mcp_call *)(void *)((char *)timer -
                                  offsetof(hfsb_mcp_call, timer));
    long long now = hfsb_clock_ms();
    if (call->until >= 0 && now >= call->until) {
        if (call->in_thread) hfsbi_mcp_call_hurry(call, now);
        else hfsbi_mcp_call_late(call, now);
        return;
    }
    if (!hfsbi_mcp_call_beats(call) || now < call->next_beat) {
        hfsbi_mcp_call_arm(call);
        return;
    }
    call->next_beat = now + call->mcp->beat_ms;
    hfsbi_mcp_call_arm(call);
    hfsbi_mcp_call_beat(call, now);
}

/* ---- in the loop: commands ---- */

static bool hfsbi_mcp_is_command(hfsb_str tool) {
    static const char *const names[] = {"bash", "bash_output", "bash_input",
                                        "kill"};
    size_t                   i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (hfsb_str_equal(tool, hfsb_cstr(names[i]))) return true;
    return false;
}

static hfsb_status hfsbi_mcp_call_command(hfsb_mcp_call *call) {
    hfsb_call_opts opts = HFSB_INIT;
    opts.strict = opts.images = true;
    if (hfsbi_mcp_call_beats(call)) {
        opts.on_text = hfsbi_mcp_call_printed;
        opts.user = call;
    }
    if (hfsb_call_open(call->session->tools, call->tool, call->arguments,
                       &opts, &call->call) != HFSB_OK)
        return HFSB_NOMEM;
    /* the message may be long, and the command may take long */
    hfsbi_mcp_input_release(call->mcp, call->input);
    call->input = NULL;
    call->arguments = NULL;
    if (hfsb_call_done(call->call)) {
        hfsbi_mcp_call_taken(call);
        return HFSB_OK;
    }
    call->until = call->began + call->mcp->answer_ms;
    hfsbi_mcp_call_arm(call);
    return HFSB_OK;
}

/* An answer may bring the next message, and that may end others: after each
   the list is looked at anew. */
static void hfsbi_mcp_calls_step(hfsbi_mcp_session *session) {
    hfsb_mcp_call *call = session->mcp->calls;
    while (call) {
        if (call->session != session || !call->call ||
            !hfsb_call_done(call->call)) {
            call = call->next;
            continue;
        }
        hfsbi_mcp_call_taken(call);
        call = session->mcp->calls;
    }
}

/* ---- in a thread ---- */

/* In the thread: with what it has it is to come back. */
static bool hfsbi_mcp_call_cancelled(void *user) {
    hfsb_mcp_call *call = (hfsb_mcp_call *)user;
    bool           ends;
    pthread_mutex_lock(&call->lock);
    ends = call->end != HFSBI_MCP_GOES_ON;
    pthread_mutex_unlock(&call->lock);
    return ends;
}

static void hfsbi_mcp_call_run(hfsbi_task *task) {
    hfsb_mcp_call   *call = (hfsb_mcp_call *)(void *)task;
    hfsb_call_opts   opts = HFSB_INIT;
    hfsb_tool_result result;
    bool             wanted;
    pthread_mutex_lock(&call->lock);
    wanted = call->end == HFSBI_MCP_GOES_ON || call->end == HFSBI_MCP_PATIENCE;
    pthread_mutex_unlock(&call->lock);
    if (!wanted) { /* any more: it had to wait for a thread */
        hfsbi_mcp_add_text(&call->blocks,
                           HFSB_LIT("The server is stopping; nothing was "
                                    "done."));
        call->blocks.is_error = true;
    } else if (call->own) {
        call->own->fn(call->own->user, call, call->arguments);
    } else if (call->mcp->run_remote) {
        call->mcp->run_remote(call);
    } else {
        opts.strict = opts.images = true;
        opts.cancelled = hfsbi_mcp_call_cancelled;
        opts.user = call;
        (void)hfsb_tools_call(call->session->tools, call->tool,
                              call->arguments, &opts, &result);
        hfsbi_mcp_call_show(call, &result);
    }
}

/* What it said is in the loop before it: both come in the order in which they
   were given. */
static void hfsbi_mcp_call_ran(hfsbi_task *task) {
    hfsb_mcp_call *call = (hfsb_mcp_call *)(void *)task;
    hfsbi_mcp_call_flush(call);
    call->in_thread = false;
    call->mcp->working--;
    hfsbi_mcp_call_end(call);
}

static void hfsbi_mcp_call_work(hfsb_mcp_call *call) {
    call->task.run = hfsbi_mcp_call_run;
    call->task.done = hfsbi_mcp_call_ran;
    call->speak.done = hfsbi_mcp_call_spoken;
    call->in_thread = true;
    call->mcp->working++;
    if (!call->own) call->until = call->began + call->mcp->answer_ms;
    hfsbi_mcp_call_arm(call);
    hfsbi_loop_work(call->mcp->loop, &call->task);
}

/* ---- the beginning ---- */

static hfsb_mcp_call *hfsbi_mcp_call_new(hfsbi_mcp_channel *channel,
                                         hfsbi_mcp_input   *input) {
    hfsb_mcp      *mcp = channel->mcp;
    hfsb_mcp_call *call =
        (hfsb_mcp_call *)hfsbi_array(&mcp->alloc, 1, sizeof *call);
    if (!call) return NULL;
    memset(call, 0, sizeof *call);
    (void)pthread_mutex_init(&call->lock, NULL);
    call->mcp = mcp;
    call->id.alloc = call->token.alloc = call->blocks.json.alloc = mcp->alloc;
    call->said.alloc = call->tail.alloc = mcp->alloc;
    call->said.max = HFSBI_MCP_SAID;
    call->channel = channel;
    call->notifies = channel->can_notify;
    call->session = channel->session;
    call->session->users++;
    call->input = input;
    input->users++;
    call->timer.fn = hfsbi_mcp_call_tick;
    call->began = hfsb_clock_ms();
    call->next_beat = call->began + (mcp->beat_ms < HFSBI_MCP_FIRST_BEAT_MS
                                         ? mcp->beat_ms
                                         : (long long)HFSBI_MCP_FIRST_BEAT_MS);
    call->until = -1;
    call->next = mcp->calls;
    if (call->next) call->next->prev = call;
    mcp->calls = call;
    mcp->call_count++;
    return call;
}

/* False without memory or descriptors. */
static bool hfsbi_mcp_call_fill(hfsb_mcp_call           *call,
                                const hfsbi_mcp_message *m) {
    hfsb_mcp *mcp = call->mcp;
    hfsb_str  version = m->version;
    call->modern = m->modern;
    if (!version.len) version = hfsb_cstr(call->session->version);
    call->bare = hfsb_str_equal(version, HFSB_LIT("2024-11-05"));
    call->log_level = !m->modern         ? call->session->log_level
                      : m->log_level.len ? hfsbi_mcp_level(m->log_level)
                                         : (int)HFSBI_MCP_SILENT;
    call->tool = m->tool;
    call->arguments = m->arguments ? m->arguments : mcp->nothing.root;
    call->own = hfsbi_mcp_own(mcp, m->tool);
    if (hfsbi_mcp_id_text(m->id, &call->id) != HFSB_OK) return false;
    if (m->token && hfsbi_mcp_id_text(m->token, &call->token) != HFSB_OK)
        return false;
    return (!call->own && !mcp->run_remote) ||
           hfsb_cancel_open(&mcp->alloc, &call->cancel, NULL) == HFSB_OK;
}

/* Tools of this machine. */
static hfsb_status hfsbi_mcp_call_here(hfsb_mcp_call *call) {
    const hfsbi_tool *tool = hfsbi_tool_find(call->tool);
    hfsb_err          err = HFSB_INIT;
    hfsb_tool_result  result = HFSB_INIT;
    if (hfsbi_mcp_call_is(call, hfsbi_plan_tool()->name)) {
        (void)hfsbi_plan_call(&call->session->plan, call->arguments, true,
                              &result);
        hfsbi_mcp_call_show(call, &result);
        hfsbi_mcp_call_end(call);
        return HFSB_OK;
    }
    if (tool) call->tool = hfsb_cstr(tool->name); /* not of the message */
    if (!hfsbi_mcp_session_tools(call->session, &err))
        hfsbi_mcp_call_fail(call, err.msg);
    else if (hfsbi_mcp_is_command(call->tool))
        return hfsbi_mcp_call_command(call);
    else hfsbi_mcp_call_work(call);
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_mcp_call_start(hfsbi_mcp_channel       *channel,
                                          const hfsbi_mcp_message *m,
                                          hfsbi_mcp_input         *input) {
    hfsb_mcp_call *call = hfsbi_mcp_call_new(channel, input);
    hfsb_status    st = HFSB_OK;
    if (!call) return HFSB_NOMEM;
    if (!hfsbi_mcp_call_fill(call, m)) st = HFSB_NOMEM;
    else if (m->bad_arguments)
        hfsbi_mcp_call_fail(call, "`arguments` must be a JSON object with the "
                                  "keys that the tool takes.");
    else if (call->own || call->mcp->run_remote) hfsbi_mcp_call_work(call);
    else st = hfsbi_mcp_call_here(call);
    if (st != HFSB_OK) hfsbi_mcp_call_free(call);
    return st;
}

/* ---- its early end ---- */

/* Another call waits for the same command: it was given the same id. */
static bool hfsbi_mcp_call_shared(const hfsb_mcp_call *call) {
    const hfsb_mcp_call *other = call->mcp->calls;
    for (; other; other = other->next)
        if (other != call && other->call && other->session == call->session &&
            hfsbi_mcp_call_is(other, "bash") &&
            strcmp(hfsb_call_job(other->call), hfsb_call_job(call->call)) == 0)
            return true;
    return false;
}

/* It is not answered; what is in a thread is told, and freed later. */
static void hfsbi_mcp_call_leave(hfsb_mcp_call *call, hfsbi_mcp_end why) {
    call->channel = NULL;
    if (!call->in_thread) {
        hfsbi_mcp_call_free(call);
        return;
    }
    hfsbi_loop_timer_clear(call->mcp->loop, &call->timer);
    if (why == HFSBI_MCP_GOES_ON) return;
    pthread_mutex_lock(&call->lock);
    call->end = why;
    pthread_mutex_unlock(&call->lock);
    hfsb_cancel_set(call->cancel);
}

/* Kills its command, too. */
static void hfsbi_mcp_call_drop(hfsb_mcp_call *call) {
    if (call->call && hfsbi_mcp_call_is(call, "bash") &&
        !hfsbi_mcp_call_shared(call))
        hfsbi_jobs_end(call->session->tools,
                       hfsb_cstr(hfsb_call_job(call->call)));
    hfsbi_mcp_call_leave(call, call->mcp->ended ? HFSBI_MCP_ENDED
                                                : HFSBI_MCP_ABANDONED);
}

/* Ends it without an answer, and kills its command. */
static void hfsbi_mcp_call_abandon(hfsb_mcp_call *call) {
    hfsbi_mcp_channel *channel = call->channel;
    hfsb_buf           nothing = HFSB_INIT;
    hfsbi_mcp_call_drop(call);
    if (channel) channel->reply(channel, 0, &nothing);
}

/* The channel may do anything when it is told: the list is looked at anew. */
HFSBI_FN void hfsbi_mcp_call_cancel(hfsbi_mcp_session     *session,
                                    const hfsb_json_value *id) {
    hfsb_mcp_call *call = session->mcp->calls;
    while (call) {
        if (call->session != session || !call->channel ||
            !hfsbi_mcp_same_id(id, hfsb_buf_str(&call->id))) {
            call = call->next;
            continue;
        }
        hfsbi_mcp_call_abandon(call);
        call = session->mcp->calls;
    }
}

HFSBI_FN void hfsbi_mcp_gone(hfsbi_mcp_channel *channel, bool cancel) {
    hfsb_mcp_call *call, *next;
    for (call = channel->mcp->calls; call; call = next) {
        next = call->next;
        if (call->channel != channel) continue;
        if (cancel) hfsbi_mcp_call_drop(call);
        else hfsbi_mcp_call_leave(call, HFSBI_MCP_GOES_ON);
    }
}

HFSBI_FN void hfsbi_mcp_calls_end(hfsb_mcp *mcp, bool all) {
    hfsb_mcp_call *call = mcp->calls;
    while (all && call) {
        bool left = call->channel || !call->in_thread;
        if (left) hfsbi_mcp_call_abandon(call);
        call = left ? mcp->calls : call->next;
    }
    for (call = mcp->calls; call; call = call->next) {
        if (!call->in_thread) continue;
        pthread_mutex_lock(&call->lock);
        call->end = HFSBI_MCP_ENDED;
        pthread_mutex_unlock(&call->lock);
        hfsb_cancel_set(call->cancel);
    }
}

HFSBI_FN bool hfsbi_mcp_calls_wait(const hfsbi_mcp_channel *channel) {
    const hfsb_mcp_call *call = channel->mcp->calls;
    while (call && call->channel != channel) call = call->next;
    return call != NULL;
}
