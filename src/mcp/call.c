/* call.c - sessions of clients, and one call of a tool.

   A session has tools of its own, opened at its first call: commands and the
   set of files read belong to it. They live in the server's loop. Sessions
   are kept in a list of bounded length; when it is full, one that no request
   uses is dropped: one that holds nothing, else one without commands, else the
   least recently used. Most clients just go away, so a session whose commands
   run must not keep new clients out for ever: its commands are ended with it,
   in the loop, and its memory is freed when they are gone.

   A call lives from its message to its answer:

       start --+--> runs in the loop:   bash, bash_output, bash_input, kill --+
               +--> runs in a thread:   file tools, tools of the program,     |
               |                        remote tools -------------------------+
               +--> is done at once:    plan_tool, refusals ------------------+
                                                                              |
                                freed <-- answered, or nobody listens <-------+

   While it runs it sends progress at intervals (beats), if the client asked
   for it. At its deadline it is answered with the output so far: a command
   goes on as a job, a thread is asked to return early. A call that is
   cancelled, or whose channel is gone, is not answered. A call in a thread is
   freed only when the thread is done with it.

   Sending an answer may bring the next message, and that may end other calls:
   a loop over calls starts again after each answer. */
#include "mcp_private.h"

/* ---- sessions ---- */

static void hfsbi_mcp_session_free(hfsbi_mcp_session *session, bool at_once) {
    hfsb_mcp *mcp = session->mcp;
    if (session->tools && at_once) hfsbi_tools_free(session->tools);
    else hfsb_tools_close(session->tools);
    hfsb_buf_free(&session->id);
    hfsbi_array_free(&mcp->alloc, session, 1, sizeof *session);
}

/* True when a command of the session runs or waits, or is being requested. */
static bool hfsbi_mcp_session_works(const hfsbi_mcp_session *session) {
    return session->tools && hfsbi_tools_in_use(session->tools);
}

/* How much is lost with a session: nothing (some hosts open one only to list
   the tools), what it remembers, or its commands. */
static int hfsbi_mcp_session_worth(const hfsbi_mcp_session *session) {
    if (!session->tools) return 0;
    return hfsbi_mcp_session_works(session) ? 2 : 1;
}

/* True when a is dropped before b. */
static bool hfsbi_mcp_session_before(const hfsbi_mcp_session *a,
                                     const hfsbi_mcp_session *b) {
    int a_worth = hfsbi_mcp_session_worth(a);
    int b_worth = hfsbi_mcp_session_worth(b);
    return a_worth != b_worth ? a_worth < b_worth : a->used <= b->used;
}

/* Ends a session: it is no longer found by an id, and its commands are asked
   to end. */
static void hfsbi_mcp_session_close(hfsbi_mcp_session *session) {
    session->ended = true;
    if (session->tools) hfsbi_jobs_end(session->tools, HFSB_LIT(""));
}

/* Frees the sessions that have ended or were idle for long, unless they are
   used or their commands run. */
static void hfsbi_mcp_sessions_drop_old(hfsb_mcp *mcp) {
    hfsbi_mcp_session **link = &mcp->sessions, *session;
    long long           now = hfsb_clock_ms();
    while ((session = *link) != NULL) {
        bool old =
            session->ended || now - session->used > HFSBI_MCP_SESSION_MS;
        if (old && !session->users && !hfsbi_mcp_session_works(session)) {
            *link = session->next;
            hfsbi_mcp_session_free(session, false);
        } else {
            link = &session->next;
        }
    }
}

/* Makes room for one more session; false when requests use all of them. */
static bool hfsbi_mcp_sessions_make_room(hfsb_mcp *mcp) {
    hfsbi_mcp_session *session, *first = NULL;
    size_t             count = 0;
    hfsbi_mcp_sessions_drop_old(mcp);
    for (session = mcp->sessions; session; session = session->next) {
        if (session->ended) continue;
        count++;
        if (!session->users &&
            (!first || hfsbi_mcp_session_before(session, first)))
            first = session;
    }
    if (count < HFSBI_MCP_SESSIONS) return true;
    if (!first) return false;
    hfsbi_mcp_session_close(first);
    hfsbi_mcp_sessions_drop_old(mcp);
    return true;
}

static hfsbi_mcp_session *hfsbi_mcp_session_add(hfsb_mcp *mcp, hfsb_str id,
                                                bool unnamed) {
    hfsbi_mcp_session *session;
    if (!hfsbi_mcp_sessions_make_room(mcp)) return NULL;
    session =
        (hfsbi_mcp_session *)hfsbi_array(&mcp->alloc, 1, sizeof *session);
    if (!session) return NULL;
    memset(session, 0, sizeof *session);
    session->mcp = mcp;
    session->unnamed = unnamed;
    session->id.alloc = mcp->alloc;
    session->log_level = hfsbi_mcp_level(HFSB_LIT("info"));
    if (hfsb_buf_append(&session->id, id) != HFSB_OK) {
        hfsbi_mcp_session_free(session, true);
        return NULL;
    }
    session->users = 1;
    session->next = mcp->sessions;
    mcp->sessions = session;
    return session;
}

/* Returns the session with that id, or NULL. */
static hfsbi_mcp_session *hfsbi_mcp_session_find(hfsb_mcp *mcp, hfsb_str id) {
    hfsbi_mcp_session *session = mcp->sessions;
    while (session && (session->unnamed || session->ended ||
                       !hfsb_str_equal(hfsb_buf_str(&session->id), id)))
        session = session->next;
    return session;
}

HFSBI_FN hfsbi_mcp_session *hfsbi_mcp_session_hold(hfsb_mcp *mcp,
                                                   hfsb_str  id) {
    hfsbi_mcp_session *session = hfsbi_mcp_session_find(mcp, id);
    if (!session) return hfsbi_mcp_session_add(mcp, id, false);
    session->users++;
    return session;
}

HFSBI_FN hfsbi_mcp_session *hfsbi_mcp_session_new(hfsb_mcp *mcp) {
    return hfsbi_mcp_session_add(mcp, HFSB_LIT(""), true);
}

HFSBI_FN void hfsbi_mcp_session_release(hfsbi_mcp_session *session) {
    session->users--;
    session->used = hfsb_clock_ms();
}

HFSBI_FN size_t hfsbi_mcp_sessions_busy(const hfsb_mcp *mcp) {
    const hfsbi_mcp_session *session = mcp->sessions;
    size_t                   n = 0;
    for (; session; session = session->next)
        if (session->tools) n += hfsb_tools_busy(session->tools);
    return n;
}

HFSBI_FN void hfsbi_mcp_sessions_step(hfsb_mcp *mcp) {
    hfsbi_mcp_session *session = mcp->sessions;
    for (; session; session = session->next)
        if (session->tools) hfsbi_jobs_step(session->tools);
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

/* ---- the answer ---- */

HFSBI_FN void hfsbi_mcp_input_release(hfsb_mcp *mcp, hfsbi_mcp_input *input) {
    if (--input->users) return;
    hfsb_json_free(&input->doc);
    hfsb_buf_free(&input->text);
    hfsbi_array_free(&mcp->alloc, input, 1, sizeof *input);
}

static void hfsbi_mcp_call_free(hfsb_mcp_call *call) {
    hfsb_mcp *mcp = call->mcp;
    hfsbi_loop_timer_clear(mcp->loop, &call->timer);
    if (call->prev) call->prev->next = call->next;
    else mcp->calls = call->next;
    if (call->next) call->next->prev = call->prev;
    mcp->call_count--;
    hfsb_call_close(call->command);
    hfsbi_cancel_free(&call->cancel);
    hfsbi_mcp_session_release(call->session);
    if (call->input) hfsbi_mcp_input_release(mcp, call->input);
    hfsb_json_free(&call->ask.kept);
    hfsb_buf_free(&call->blocks.json);
    hfsb_buf_free(&call->shared.outbox);
    hfsb_buf_free(&call->shared.tail);
    (void)pthread_mutex_destroy(&call->shared.lock);
    hfsbi_array_free(&mcp->alloc, call, 1, sizeof *call);
}

/* Writes the answer; *out stays empty when there is no memory at all. */
static void hfsbi_mcp_call_write(const hfsb_mcp_call *call,
                                 hfsbi_mcp_blocks *blocks, hfsb_buf *out) {
    const hfsbi_mcp_ask *ask = &call->ask;
    out->alloc = call->mcp->alloc;
    if (!blocks->json.len && blocks->status == HFSB_OK)
        hfsbi_mcp_add_text(blocks, HFSB_LIT("(no output)"));
    if (blocks->status == HFSB_OK &&
        hfsbi_mcp_put_result(&call->mcp->about, ask->id, ask->modern,
                             hfsb_buf_str(&blocks->json), blocks->is_error,
                             out) == HFSB_OK)
        return;
    hfsb_buf_truncate(out, 0); /* forgets the failure */
    (void)hfsbi_mcp_put_error(ask->id, HFSBI_MCP_INTERNAL,
                              HFSB_LIT("Out of memory: the call may have "
                                       "run."),
                              out);
}

/* Answers with *blocks, and frees the call unless its thread still needs
   it. */
static void hfsbi_mcp_call_answer(hfsb_mcp_call    *call,
                                  hfsbi_mcp_blocks *blocks) {
    hfsbi_mcp_channel *channel = call->channel;
    hfsb_buf           message = HFSB_INIT;
    call->channel = NULL;
    if (channel) hfsbi_mcp_call_write(call, blocks, &message);
    if (!call->in_thread) hfsbi_mcp_call_free(call);
    if (channel) channel->reply(channel, message.len ? 200 : 503, &message);
    hfsb_buf_free(&message);
}

static void hfsbi_mcp_call_finish(hfsb_mcp_call *call) {
    hfsbi_mcp_call_answer(call, &call->blocks);
}

static void hfsbi_mcp_call_fail(hfsb_mcp_call *call, const char *sentence) {
    hfsbi_mcp_add_text(&call->blocks, hfsb_cstr(sentence));
    call->blocks.is_error = true;
    hfsbi_mcp_call_finish(call);
}

/* Adds a result to the blocks and frees it. In any thread. */
static void hfsbi_mcp_call_show(hfsb_mcp_call    *call,
                                hfsb_tool_result *result) {
    if (!result->success && !result->error.len)
        call->blocks.status = HFSB_NOMEM; /* not even for the error's text */
    else hfsbi_mcp_show(call->ask.tool, result, &call->blocks);
    hfsb_tool_result_free(result);
}

/* ---- progress and logs ---- */

HFSBI_FN void hfsbi_mcp_call_printed(void *user, hfsb_proc_stream stream,
                                     hfsb_str text) {
    hfsb_mcp_call *call = (hfsb_mcp_call *)user;
    hfsb_buf      *tail = &call->shared.tail;
    size_t         drop;
    (void)stream;
    if (text.len > HFSBI_MCP_TAIL)
        text = hfsb_str_slice(text, text.len - HFSBI_MCP_TAIL, text.len);
    pthread_mutex_lock(&call->shared.lock);
    if (tail->len + text.len > HFSBI_MCP_TAIL) {
        drop = tail->len + text.len - HFSBI_MCP_TAIL;
        memmove(tail->ptr, tail->ptr + drop, tail->len - drop);
        hfsb_buf_truncate(tail, tail->len - drop);
    }
    if (hfsb_buf_append(tail, text) != HFSB_OK)
        hfsb_buf_truncate(tail, 0); /* the next message is empty */
    pthread_mutex_unlock(&call->shared.lock);
}

/* Puts a notification into the outbox, or drops it. Under the lock. */
static void hfsbi_mcp_outbox_add(hfsb_mcp_call *call, hfsb_str message) {
    hfsb_buf *outbox = &call->shared.outbox;
    size_t    mark = outbox->len;
    hfsb_buf_append(outbox, message);
    hfsb_buf_append_byte(outbox, '\n');
    if (outbox->status != HFSB_OK) hfsb_buf_truncate(outbox, mark);
}

/* Sends the outbox. Each notification may end the call, unless a thread keeps
   it: then the rest is dropped. */
static void hfsbi_mcp_outbox_send(hfsb_mcp_call *call) {
    hfsbi_mcp_channel *channel = call->channel;
    bool               kept = call->in_thread;
    hfsb_buf          *outbox = &call->shared.outbox, lines;
    hfsb_str           rest;
    pthread_mutex_lock(&call->shared.lock);
    lines = *outbox;
    memset(outbox, 0, sizeof *outbox);
    outbox->alloc = lines.alloc;
    outbox->max = lines.max;
    pthread_mutex_unlock(&call->shared.lock);
    rest = hfsb_buf_str(&lines);
    while (channel && rest.len) {
        size_t end = hfsb_str_find_byte(rest, '\n');
        channel->notify(channel, hfsb_str_slice(rest, 0, end));
        rest = hfsb_str_slice(rest, end + 1, rest.len);
        channel = kept ? call->channel : NULL;
    }
    hfsb_buf_free(&lines);
}

static void hfsbi_mcp_call_posted(hfsbi_task *task) {
    hfsb_mcp_call *call =
        (hfsb_mcp_call *)(void *)((char *)task -
                                  offsetof(hfsb_mcp_call, shared.post));
    pthread_mutex_lock(&call->shared.lock);
    call->shared.posted = false;
    pthread_mutex_unlock(&call->shared.lock);
    hfsbi_mcp_outbox_send(call);
}

/* Hands a notification from the call's thread to the loop. The post arrives
   there before the end of the thread does. Under the lock. */
static void hfsbi_mcp_outbox_post(hfsb_mcp_call *call, hfsb_str message) {
    hfsbi_mcp_outbox_add(call, message);
    if (call->shared.posted || !call->shared.outbox.len) return;
    call->shared.posted = true;
    hfsbi_loop_post(call->mcp->loop, &call->shared.post);
}

static bool hfsbi_mcp_call_beats(const hfsb_mcp_call *call) {
    return call->ask.detail != HFSBI_MCP_NO_PROGRESS && call->channel;
}

/* Sends progress by the clock: seconds, or once the tool has reported numbers
   of its own, a little more than its last one, so that its next is larger. */
static void hfsbi_mcp_call_beat(hfsb_mcp_call *call, long long now) {
    hfsbi_mcp_shared *s = &call->shared;
    double            value = (double)(now - call->started) / 1000.0;
    hfsb_buf          message = HFSB_INIT;
    hfsb_str          line = HFSB_LIT("");
    message.alloc = call->mcp->alloc;
    pthread_mutex_lock(&s->lock);
    if (s->source == HFSBI_MCP_BY_TOOL ||
        (s->source == HFSBI_MCP_BY_CLOCK && value <= s->progress))
        value = s->progress + 0.001;
    if (call->ask.detail == HFSBI_MCP_MESSAGES)
        line = hfsbi_mcp_last_line(hfsb_buf_str(&s->tail));
    if (hfsbi_mcp_put_progress(call->ask.token, value, s->total, line,
                               &message) == HFSB_OK) {
        s->progress = value;
        if (s->source == HFSBI_MCP_BY_NOBODY) s->source = HFSBI_MCP_BY_CLOCK;
        hfsbi_mcp_outbox_add(call, hfsb_buf_str(&message));
    }
    pthread_mutex_unlock(&s->lock);
    hfsb_buf_free(&message);
    hfsbi_mcp_outbox_send(call);
}

/* ---- stopping ---- */

HFSBI_FN hfsbi_mcp_stop hfsbi_mcp_call_stop(hfsb_mcp_call *call) {
    hfsbi_mcp_stop stop;
    pthread_mutex_lock(&call->shared.lock);
    stop = call->shared.stop;
    pthread_mutex_unlock(&call->shared.lock);
    return stop;
}

/* Asks the call's thread to return. */
static void hfsbi_mcp_call_stop_thread(hfsb_mcp_call *call,
                                       hfsbi_mcp_stop why) {
    pthread_mutex_lock(&call->shared.lock);
    if (why > call->shared.stop) call->shared.stop = why;
    pthread_mutex_unlock(&call->shared.lock);
    hfsb_cancel_set(&call->cancel);
}

/* Leaves the call without an answer: freed now, or when its thread is done. */
static void hfsbi_mcp_call_leave(hfsb_mcp_call *call, hfsbi_mcp_stop why) {
    call->channel = NULL;
    if (!call->in_thread) {
        hfsbi_mcp_call_free(call);
        return;
    }
    hfsbi_loop_timer_clear(call->mcp->loop, &call->timer);
    if (why != HFSBI_MCP_CALL_RUNS) hfsbi_mcp_call_stop_thread(call, why);
}

HFSBI_FN bool hfsbi_mcp_call_is(const hfsb_mcp_call *call, const char *tool) {
    return hfsb_str_equal(call->ask.tool, hfsb_cstr(tool));
}

/* True when another call waits for the same command, by its id. */
static bool hfsbi_mcp_call_shared(const hfsb_mcp_call *call) {
    const hfsb_mcp_call *other = call->mcp->calls;
    for (; other; other = other->next)
        if (other != call && other->command &&
            other->session == call->session &&
            hfsbi_mcp_call_is(other, "bash") &&
            strcmp(hfsb_call_job(other->command),
                   hfsb_call_job(call->command)) == 0)
            return true;
    return false;
}

/* Leaves the call and kills its command. */
static void hfsbi_mcp_call_drop(hfsb_mcp_call *call) {
    if (call->command && hfsbi_mcp_call_is(call, "bash") &&
        !hfsbi_mcp_call_shared(call))
        hfsbi_jobs_end(call->session->tools,
                       hfsb_cstr(hfsb_call_job(call->command)));
    hfsbi_mcp_call_leave(call, call->mcp->stopping ? HFSBI_MCP_CALL_STOPPED
                                                   : HFSBI_MCP_CALL_CANCELLED);
}

/* The same, and tells the channel that there will be no answer. */
static void hfsbi_mcp_call_abandon(hfsb_mcp_call *call) {
    hfsbi_mcp_channel *channel = call->channel;
    hfsb_buf           nothing = HFSB_INIT;
    hfsbi_mcp_call_drop(call);
    if (channel) channel->reply(channel, 0, &nothing);
}

HFSBI_FN void hfsbi_mcp_call_cancel(hfsbi_mcp_session     *session,
                                    const hfsb_json_value *id) {
    hfsb_mcp_call *call = session->mcp->calls;
    while (call) {
        if (call->session != session || !call->channel ||
            !hfsbi_mcp_same_id(id, call->ask.id)) {
            call = call->next;
            continue;
        }
        hfsbi_mcp_call_abandon(call);
        call = session->mcp->calls;
    }
}

HFSBI_FN void hfsbi_mcp_calls_detach(hfsbi_mcp_channel *channel, bool cancel) {
    hfsb_mcp_call *call, *next;
    for (call = channel->mcp->calls; call; call = next) {
        next = call->next;
        if (call->channel != channel) continue;
        if (cancel) hfsbi_mcp_call_drop(call);
        else hfsbi_mcp_call_leave(call, HFSBI_MCP_CALL_RUNS);
    }
}

HFSBI_FN void hfsbi_mcp_calls_stop(hfsb_mcp *mcp, bool all) {
    hfsb_mcp_call *call = mcp->calls;
    while (all && call) {
        bool drop = call->channel || !call->in_thread;
        if (drop) hfsbi_mcp_call_abandon(call);
        call = drop ? mcp->calls : call->next;
    }
    for (call = mcp->calls; call; call = call->next)
        if (call->in_thread)
            hfsbi_mcp_call_stop_thread(call, HFSBI_MCP_CALL_STOPPED);
}

HFSBI_FN bool hfsbi_mcp_session_end(hfsb_mcp *mcp, hfsb_str id) {
    hfsbi_mcp_session *session = hfsbi_mcp_session_find(mcp, id);
    hfsb_mcp_call     *call;
    if (!session) return false;
    mcp->ended.ids[mcp->ended.count++ % HFSBI_MCP_ENDED] = hfsb_fnv(id);
    session->users++;
    hfsbi_mcp_session_close(session);
    call = mcp->calls;
    while (call) {
        bool drop = call->session == session && call->channel;
        if (drop) hfsbi_mcp_call_abandon(call);
        call = drop ? mcp->calls : call->next;
    }
    hfsbi_mcp_session_release(session);
    hfsbi_mcp_sessions_drop_old(mcp);
    return true;
}

HFSBI_FN bool hfsbi_mcp_session_has_ended(const hfsb_mcp *mcp, hfsb_str id) {
    unsigned long long hash = hfsb_fnv(id);
    size_t             i;
    for (i = 0; i < HFSBI_MCP_ENDED && i < mcp->ended.count; i++)
        if (mcp->ended.ids[i] == hash) return true;
    return false;
}

/* ---- the deadline ---- */

static void hfsbi_mcp_call_arm(hfsb_mcp_call *call) {
    long long at = call->deadline;
    if (hfsbi_mcp_call_beats(call)) at = hfsbi_earlier(at, call->next_beat);
    if (at >= 0) hfsbi_loop_timer(call->mcp->loop, &call->timer, at);
    else hfsbi_loop_timer_clear(call->mcp->loop, &call->timer);
}

/* Answers for a command that continues as a job. */
static void hfsbi_mcp_call_running(hfsb_mcp_call *call, long long now) {
    hfsb_buf         arguments = HFSB_INIT;
    hfsb_str         job = hfsb_cstr(hfsb_call_job(call->command));
    hfsb_tool_result so_far = HFSB_INIT;
    hfsb_call_opts   opts = HFSB_INIT;
    arguments.alloc = call->mcp->alloc;
    opts.page = call->mcp->limits.page;
    hfsb_buf_append(&arguments, HFSB_LIT("{\"wait_ms\":0,\"id\":"));
    hfsbi_json_put_quoted(&arguments, job);
    hfsb_buf_append_byte(&arguments, '}');
    if (arguments.status != HFSB_OK ||
        hfsb_tools_call_text(call->session->tools, HFSB_LIT("bash_output"),
                             hfsb_buf_str(&arguments), &opts,
                             &so_far) == HFSB_NOMEM)
        call->blocks.status = HFSB_NOMEM;
    else
        hfsbi_mcp_show_running(job, (now - call->started) / 1000, &so_far,
                               &call->blocks);
    hfsb_tool_result_free(&so_far);
    hfsb_buf_free(&arguments);
    hfsbi_mcp_call_finish(call);
}

/* Answers with the result of a command that is done. */
static void hfsbi_mcp_call_take(hfsb_mcp_call *call) {
    hfsb_tool_result result;
    (void)hfsb_call_take(call->command, &result);
    hfsbi_mcp_call_show(call, &result);
    hfsbi_mcp_call_finish(call);
}

/* The deadline of a call that runs in the loop. */
static void hfsbi_mcp_call_expire(hfsb_mcp_call *call, long long now) {
    hfsbi_call_hurry(call->command);
    if (hfsb_call_done(call->command)) hfsbi_mcp_call_take(call);
    else if (hfsbi_mcp_call_is(call, "bash"))
        hfsbi_mcp_call_running(call, now);
    else
        hfsbi_mcp_call_fail(call, "The processes got SIGTERM but have not all "
                                  "ended yet: call kill again later.");
}

/* The deadline of a call in a thread. The thread is asked to return, again
   after each beat, because it may wait for several things in turn. */
static void hfsbi_mcp_call_expire_thread(hfsb_mcp_call *call, long long now) {
    hfsb_mcp        *mcp = call->mcp;
    hfsbi_mcp_blocks blocks = HFSB_INIT;
    blocks.json.alloc = mcp->alloc;
    if (mcp->remote.on_deadline &&
        hfsbi_mcp_call_stop(call) == HFSBI_MCP_CALL_RUNS &&
        mcp->remote.on_deadline(call, &blocks)) {
        call->deadline = -1;
        hfsbi_loop_timer_clear(mcp->loop, &call->timer);
        hfsbi_mcp_call_answer(call, &blocks);
    } else {
        hfsbi_mcp_call_stop_thread(call, HFSBI_MCP_CALL_TIMED_OUT);
        call->deadline = now + mcp->limits.beat_ms;
        hfsbi_mcp_call_arm(call);
    }
    hfsb_buf_free(&blocks.json);
}

static void hfsbi_mcp_call_tick(hfsbi_timer *timer) {
    hfsb_mcp_call *call =
        (hfsb_mcp_call *)(void *)((char *)timer -
                                  offsetof(hfsb_mcp_call, timer));
    long long now = hfsb_clock_ms();
    bool      beat = hfsbi_mcp_call_beats(call) && now >= call->next_beat;
    if (call->deadline >= 0 && now >= call->deadline) {
        if (call->in_thread) hfsbi_mcp_call_expire_thread(call, now);
        else hfsbi_mcp_call_expire(call, now);
        return;
    }
    if (beat) call->next_beat = now + call->mcp->limits.beat_ms;
    hfsbi_mcp_call_arm(call);
    if (beat) hfsbi_mcp_call_beat(call, now);
}

/* ---- the journal ---- */

/* Adds the event of a call with a result; e has who called it, and the brief.
   Any thread. */
static void hfsbi_mcp_report(hfsb_journal *journal, hfsbi_event *e,
                             hfsb_str name, const hfsb_tool_result *result) {
    char tool[80];
    (void)snprintf(tool, sizeof tool, "%.*s", (int)hfsb_utf8_offset(name, 64),
                   name.ptr);
    e->tool = tool;
    e->result = result;
    (void)hfsbi_journal_add(journal, e);
}

/* Adds the event of a call that is not one of the session's tools, which add
   theirs. In any thread. */
static void hfsbi_mcp_call_report(const hfsb_mcp_call *call,
                                  const hfsbi_brief   *brief) {
    hfsb_tool_result result = HFSB_INIT;
    hfsbi_event      e = HFSB_INIT;
    if (!call->mcp->journal) return;
    result.success = !call->blocks.is_error && call->blocks.status == HFSB_OK;
    e.who = call->who;
    e.brief = brief;
    e.duration_ms = hfsb_clock_ms() - call->started;
    e.output_bytes = call->blocks.json.len;
    hfsbi_mcp_report(call->mcp->journal, &e, call->ask.tool, &result);
}

/* Fills the brief of such a call. */
static hfsbi_brief hfsbi_mcp_brief(hfsb_mcp *mcp, hfsb_str name,
                                   const hfsb_json_value *arguments) {
    const hfsbi_tool *tool = hfsbi_tool_find(name);
    hfsb_str          none = HFSB_INIT;
    hfsbi_brief       brief = HFSB_INIT;
    brief.text.alloc = mcp->alloc;
    hfsbi_brief_fill(mcp->journal, &brief, tool ? tool->params : NULL,
                     arguments, none);
    return brief;
}

static hfsbi_brief hfsbi_mcp_call_brief(const hfsb_mcp_call *call) {
    return hfsbi_mcp_brief(call->mcp, call->ask.tool, call->ask.arguments);
}

static const char *hfsbi_mcp_session_who(const hfsbi_mcp_session *session) {
    return session->who[0] ? session->who : "mcp";
}

HFSBI_FN void hfsbi_mcp_report_refused(const hfsbi_mcp_session *session,
                                       hfsb_str                 tool,
                                       const hfsb_json_value   *arguments,
                                       const char              *sentence) {
    hfsb_mcp        *mcp = session->mcp;
    hfsb_tool_result result;
    hfsbi_event      e = HFSB_INIT;
    hfsbi_brief      brief;
    if (!mcp->journal) return;
    brief = hfsbi_mcp_brief(mcp, tool, arguments);
    hfsbi_result_init(&result, &mcp->alloc);
    hfsb_buf_append(&result.error, hfsb_cstr(sentence));
    e.who = hfsbi_mcp_session_who(session);
    e.brief = &brief;
    hfsbi_mcp_report(mcp->journal, &e, tool, &result);
    hfsb_tool_result_free(&result);
    hfsb_buf_free(&brief.text);
}

/* Answers such a call. */
static void hfsbi_mcp_call_refuse(hfsb_mcp_call *call, const char *sentence) {
    hfsbi_mcp_report_refused(call->session, call->ask.tool,
                             call->ask.arguments, sentence);
    hfsbi_mcp_call_fail(call, sentence);
}

/* ---- calls in a thread ---- */

static void hfsbi_mcp_call_run(hfsbi_task *task) {
    hfsb_mcp_call       *call = (hfsb_mcp_call *)(void *)task;
    const hfsbi_mcp_ask *ask = &call->ask;
    bool stopped = hfsbi_mcp_call_stop(call) > HFSBI_MCP_CALL_TIMED_OUT;
    hfsb_tool_result result;
    hfsbi_brief      brief;
    if (stopped) { /* while it waited for a thread */
        hfsbi_mcp_add_text(&call->blocks,
                           HFSB_LIT("The server is stopping; nothing was "
                                    "done."));
        call->blocks.is_error = true;
    } else if (call->command) {
        hfsbi_call_start(call->command);
        (void)hfsb_call_take(call->command, &result);
        hfsbi_mcp_call_show(call, &result);
    }
    if (call->command) return; /* it adds its event */
    brief = hfsbi_mcp_call_brief(call);
    if (!stopped && ask->own)
        ask->own->fn(ask->own->user, call, ask->arguments);
    else if (!stopped) call->mcp->remote.run(call);
    hfsbi_mcp_call_report(call, &brief);
    hfsb_buf_free(&brief.text);
}

/* In the loop, after every post of the thread. */
static void hfsbi_mcp_call_ran(hfsbi_task *task) {
    hfsb_mcp_call *call = (hfsb_mcp_call *)(void *)task;
    hfsbi_mcp_outbox_send(call);
    call->in_thread = false;
    call->mcp->working--;
    hfsbi_mcp_call_finish(call);
}

/* A tool of the program has no deadline: there is no job to ask later. */
static void hfsbi_mcp_call_work(hfsb_mcp_call *call) {
    call->task.run = hfsbi_mcp_call_run;
    call->task.done = hfsbi_mcp_call_ran;
    if (call->command) call->task.rights = call->session->tools->rights;
    call->shared.post.done = hfsbi_mcp_call_posted;
    call->in_thread = true;
    call->mcp->working++;
    if (!call->ask.own)
        call->deadline = call->started + call->mcp->limits.answer_ms;
    hfsbi_mcp_call_arm(call);
    hfsbi_loop_work(call->mcp->loop, &call->task);
}

/* ---- calls in the loop: commands ---- */

/* Holds the session: an answer may bring the next request, which may need room
   for another session. */
static void hfsbi_mcp_call_progressed(void *user) {
    hfsb_mcp_call     *call = (hfsb_mcp_call *)user;
    hfsbi_mcp_session *session = call->session;
    session->users++;
    if (hfsb_call_done(call->command)) hfsbi_mcp_call_take(call);
    session->users--;
}

/* Opens the tools of a session unless they are open; false with *err. */
static bool hfsbi_mcp_session_open(hfsbi_mcp_session *session, hfsb_err *err) {
    hfsb_mcp *mcp = session->mcp;
    if (session->tools) return true;
    return hfsbi_tools_open_like(mcp->tools,
                                 session->who[0] ? session->who : NULL,
                                 &session->tools, err) == HFSB_OK;
}

/* The arguments of a command are copied: the message may be long, and the
   command may take long. */
static void hfsbi_mcp_call_command(hfsb_mcp_call *call) {
    hfsbi_call_start(call->command);
    hfsbi_mcp_input_release(call->mcp, call->input);
    call->input = NULL;
    call->ask.arguments = NULL;
    if (hfsb_call_done(call->command)) {
        hfsbi_mcp_call_take(call);
        return;
    }
    hfsbi_call_listen(call->command, hfsbi_mcp_call_progressed, call);
    call->deadline = call->started + call->mcp->limits.answer_ms;
    hfsbi_mcp_call_arm(call);
}

/* Prepares a call of the session's tools. HFSB_OK, HFSB_NOMEM. */
static hfsb_status hfsbi_mcp_call_prepare(hfsb_mcp_call    *call,
                                          const hfsbi_tool *tool) {
    hfsb_call_opts opts = HFSB_INIT;
    hfsb_status    st;
    opts.strict = opts.images = true;
    opts.page = call->mcp->limits.page;
    opts.cancel = &call->cancel;
    opts.user = call;
    if (hfsbi_mcp_call_beats(call)) opts.on_text = hfsbi_mcp_call_printed;
    st = hfsbi_call_prepare(call->session->tools, tool, call->ask.arguments,
                            &opts, &call->command);
    if (st == HFSB_OK) hfsbi_call_own(call->command, call->channel->owner);
    return st;
}

/* ---- starting ---- */

static hfsb_mcp_call *hfsbi_mcp_call_new(hfsbi_mcp_channel *channel,
                                         hfsbi_mcp_input   *input) {
    hfsb_mcp      *mcp = channel->mcp;
    hfsb_mcp_call *call =
        (hfsb_mcp_call *)hfsbi_array(&mcp->alloc, 1, sizeof *call);
    if (!call) return NULL;
    memset(call, 0, sizeof *call);
    (void)pthread_mutex_init(&call->shared.lock, NULL);
    hfsbi_cancel_init(&call->cancel);
    call->mcp = mcp;
    call->ask.kept.alloc = call->blocks.json.alloc = mcp->alloc;
    call->blocks.max = mcp->limits.max_result;
    call->blocks.tags =
        hfsbi_mcp_list_find(&mcp->list, HFSB_LIT("edit_lines"), NULL);
    call->shared.outbox.alloc = call->shared.tail.alloc = mcp->alloc;
    call->shared.outbox.max = HFSBI_MCP_OUTBOX;
    call->channel = channel;
    call->session = channel->session;
    call->session->users++;
    (void)snprintf(call->who, sizeof call->who, "%s",
                   hfsbi_mcp_session_who(call->session));
    call->input = input;
    input->users++;
    call->timer.fn = hfsbi_mcp_call_tick;
    call->started = hfsb_clock_ms();
    call->next_beat =
        call->started + (mcp->limits.beat_ms < HFSBI_MCP_FIRST_BEAT_MS
                             ? mcp->limits.beat_ms
                             : (long long)HFSBI_MCP_FIRST_BEAT_MS);
    call->deadline = -1;
    call->next = mcp->calls;
    if (call->next) call->next->prev = call;
    mcp->calls = call;
    mcp->call_count++;
    return call;
}

/* Keeps copies of id and token, which outlive the message. HFSB_OK,
   HFSB_NOMEM. */
static hfsb_status hfsbi_mcp_keep_ids(const hfsbi_mcp_message *m,
                                      hfsbi_mcp_ask           *ask) {
    hfsbi_build b;
    hfsbi_build_init(&b, &ask->kept.alloc);
    hfsbi_build_array(&b, NULL);
    hfsbi_build_value(&b, NULL, m->id);
    hfsbi_build_value(&b, NULL, m->token);
    hfsbi_build_end(&b);
    if (hfsbi_build_finish(&b, &ask->kept) != HFSB_OK) return HFSB_NOMEM;
    ask->id = hfsb_json_at(ask->kept.root, 0);
    if (m->token) ask->token = hfsb_json_at(ask->kept.root, 1);
    return HFSB_OK;
}

/* Fills call->ask. HFSB_OK; HFSB_NOMEM. */
static hfsb_status hfsbi_mcp_call_fill(hfsb_mcp_call           *call,
                                       const hfsbi_mcp_message *m,
                                       const hfsbi_mcp_tool    *own) {
    hfsb_mcp      *mcp = call->mcp;
    hfsbi_mcp_ask *ask = &call->ask;
    hfsb_str       version = m->version;
    bool           notify = call->channel->can_notify;
    if (!version.len) version = hfsb_cstr(call->session->version);
    ask->modern = m->modern;
    ask->own = own;
    ask->tool = m->tool;
    ask->arguments = m->arguments ? m->arguments : mcp->no_arguments.root;
    if (m->token && notify)
        ask->detail = hfsb_str_equal(version, HFSB_LIT("2024-11-05"))
                          ? HFSBI_MCP_NUMBERS
                          : HFSBI_MCP_MESSAGES;
    ask->log_level = m->modern ? m->level : call->session->log_level;
    if (!notify || !mcp->about.logging) ask->log_level = HFSBI_MCP_SILENT;
    return hfsbi_mcp_keep_ids(m, ask);
}

/* Runs a tool of this machine. */
static hfsb_status hfsbi_mcp_call_local(hfsb_mcp_call *call) {
    const hfsbi_tool *tool = hfsbi_tool_find(call->ask.tool);
    hfsb_err          err = HFSB_INIT;
    hfsb_tool_result  result = HFSB_INIT;
    hfsbi_brief       brief;
    if (hfsbi_mcp_call_is(call, hfsbi_plan_tool()->name)) {
        (void)hfsbi_plan_call(&hfsbi_server_group(call->mcp->server)->plan,
                              call->ask.arguments, true, &result);
        hfsbi_mcp_call_show(call, &result);
        brief = hfsbi_mcp_call_brief(call);
        hfsbi_mcp_call_report(call, &brief);
        hfsb_buf_free(&brief.text);
        hfsbi_mcp_call_finish(call);
        return HFSB_OK;
    }
    call->ask.tool = hfsb_cstr(tool->name); /* outlives the message */
    if (!hfsbi_mcp_session_open(call->session, &err)) {
        hfsbi_mcp_call_refuse(call, err.msg);
        return HFSB_OK;
    }
    if (hfsbi_mcp_call_prepare(call, tool) != HFSB_OK) return HFSB_NOMEM;
    if (tool->flags & HFSBI_TOOL_ON_DISK) hfsbi_mcp_call_work(call);
    else hfsbi_mcp_call_command(call);
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_mcp_call_start(hfsbi_mcp_channel       *channel,
                                          const hfsbi_mcp_message *m,
                                          const hfsbi_mcp_tool    *own,
                                          hfsbi_mcp_input         *input) {
    hfsb_mcp_call *call = hfsbi_mcp_call_new(channel, input);
    hfsb_status    st;
    if (!call) return HFSB_NOMEM;
    st = hfsbi_mcp_call_fill(call, m, own);
    if (st == HFSB_OK && m->bad_arguments)
        hfsbi_mcp_call_refuse(call, "`arguments` must be a JSON object with "
                                    "the keys that the tool takes.");
    else if (st == HFSB_OK && (own || call->mcp->remote.run))
        hfsbi_mcp_call_work(call);
    else if (st == HFSB_OK) st = hfsbi_mcp_call_local(call);
    if (st != HFSB_OK) hfsbi_mcp_call_free(call);
    return st;
}

/* ---- for the functions of the program's tools ---- */

static void hfsbi_mcp_add_format(hfsb_mcp_call *call, const char *format,
                                 va_list ap) {
    hfsb_buf text = HFSB_INIT;
    text.alloc = call->mcp->alloc;
    if (hfsbi_buf_vprintf(&text, format, ap) == HFSB_OK)
        hfsbi_mcp_add_text(&call->blocks, hfsb_buf_str(&text));
    else call->blocks.status = HFSB_NOMEM;
    hfsb_buf_free(&text);
}

static void hfsbi_mcp_add_bytes(hfsb_mcp_call *call, const char *type,
                                const char *mime_type, hfsb_str data) {
    hfsb_buf text = HFSB_INIT;
    text.alloc = call->mcp->alloc;
    if (hfsb_base64_encode(data, &text) == HFSB_OK)
        hfsbi_mcp_add_data(&call->blocks, type, hfsb_cstr(mime_type),
                           hfsb_buf_str(&text));
    else call->blocks.status = HFSB_NOMEM;
    hfsb_buf_free(&text);
}

void hfsb_mcp_text(hfsb_mcp_call *call, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    hfsbi_mcp_add_format(call, format, ap);
    va_end(ap);
}

void hfsb_mcp_str(hfsb_mcp_call *call, hfsb_str text) {
    hfsbi_mcp_add_text(&call->blocks, text);
}

void hfsb_mcp_image(hfsb_mcp_call *call, const char *mime_type,
                    hfsb_str data) {
    hfsbi_mcp_add_bytes(call, "image", mime_type, data);
}

void hfsb_mcp_audio(hfsb_mcp_call *call, const char *mime_type,
                    hfsb_str data) {
    hfsbi_mcp_add_bytes(call, "audio", mime_type, data);
}

void hfsb_mcp_resource(hfsb_mcp_call *call, hfsb_str uri,
                       const char *mime_type, hfsb_str text) {
    hfsbi_mcp_add_resource(&call->blocks, uri, hfsb_cstr(mime_type), text);
}

void hfsb_mcp_fail(hfsb_mcp_call *call, const char *format, ...) {
    va_list ap;
    call->blocks.is_error = true;
    va_start(ap, format);
    hfsbi_mcp_add_format(call, format, ap);
    va_end(ap);
}

void hfsb_mcp_progress(hfsb_mcp_call *call, double progress, double total,
                       const char *message) {
    hfsbi_mcp_shared *s = &call->shared;
    hfsb_buf          text = HFSB_INIT;
    if (call->ask.detail == HFSBI_MCP_NO_PROGRESS) return;
    if (call->ask.detail == HFSBI_MCP_NUMBERS) message = "";
    text.alloc = call->mcp->alloc;
    pthread_mutex_lock(&s->lock);
    if ((s->source == HFSBI_MCP_BY_NOBODY || progress > s->progress) &&
        hfsbi_mcp_put_progress(call->ask.token, progress, total,
                               hfsb_cstr(message), &text) == HFSB_OK) {
        s->source = HFSBI_MCP_BY_TOOL;
        s->progress = progress;
        s->total = total;
        hfsbi_mcp_outbox_post(call, hfsb_buf_str(&text));
    }
    pthread_mutex_unlock(&s->lock);
    hfsb_buf_free(&text);
}

void hfsb_mcp_log(hfsb_mcp_call *call, const char *level, hfsb_str text) {
    hfsb_buf message = HFSB_INIT;
    if (hfsbi_mcp_level(hfsb_cstr(level)) < call->ask.log_level) return;
    message.alloc = call->mcp->alloc;
    if (hfsbi_mcp_put_log(level, text, &message) == HFSB_OK) {
        pthread_mutex_lock(&call->shared.lock);
        hfsbi_mcp_outbox_post(call, hfsb_buf_str(&message));
        pthread_mutex_unlock(&call->shared.lock);
    }
    hfsb_buf_free(&message);
}

const hfsb_cancel *hfsb_mcp_cancel(const hfsb_mcp_call *call) {
    return &call->cancel;
}
