/* call.c - a call of a tool by a request, from its body to its reply.

     new -> start -> parse, prepare -> run -> wait -> finish -> reply -> free
              |        ^                |               ^
              |        |                +----at once----+
              +--- pool thread: work on disk, up to its end;
                   a long body, up to run

   While a call waits, beats keep the connection alive, and the output of a
   streamed command is sent as events. status is 0 until the reply is known.

   The client may go away in any state: request becomes NULL, and the call is
   freed once no pool thread uses it and no function holds it. Work in a thread
   is cancelled if it can be and has no idempotency key. A command continues as
   a job, unless on_disconnect, streaming or kill_on_disconnect ends it. */
#include "api_private.h"

/* ---- the end of a call ---- */

static void hfsbi_api_call_drop_arguments(hfsbi_api_call *x) {
    hfsb_json_free(&x->doc);
    hfsb_buf_free(&x->body);
}

static bool hfsbi_api_call_is_on_disk(const hfsbi_api_call *x) {
    return (x->tool->flags & HFSBI_TOOL_ON_DISK) != 0;
}

static bool hfsbi_api_call_is_bash(const hfsbi_api_call *x) {
    return strcmp(x->tool->name, "bash") == 0;
}

/* True if the command is killed when its client goes away. */
static bool hfsbi_api_call_kills_on_gone(const hfsbi_api_call *x) {
    if (!hfsbi_api_call_is_bash(x)) return false;
    if (x->disconnect != HFSBI_DISCONNECT_DEFAULT)
        return x->disconnect == HFSBI_DISCONNECT_KILL;
    return x->stream || x->api->kill_on_disconnect;
}

/* True if another request, a repeat with the same key, waits for the same
   job. */
static bool hfsbi_api_call_shares_job(const hfsbi_api_call *x) {
    const hfsbi_api_call *other = x->api->calls;
    for (; other; other = other->next)
        if (other != x && !other->in_thread && other->ran && !other->status &&
            hfsbi_api_call_is_bash(other) &&
            strcmp(hfsb_call_job(other->call), hfsb_call_job(x->call)) == 0)
            return true;
    return false;
}

/* Frees the call. Kills its command if that still runs for this client
   alone. */
static void hfsbi_api_call_free(hfsbi_api_call *x) {
    hfsbi_api *api = x->api;
    hfsbi_loop_timer_clear(api->loop, &x->beat.timer);
    if (x->prev) x->prev->next = x->next;
    else api->calls = x->next;
    if (x->next) x->next->prev = x->prev;
    if (x->ran && !x->status && hfsbi_api_call_kills_on_gone(x) &&
        !hfsbi_api_call_shares_job(x))
        hfsbi_jobs_end(api->tools, hfsb_cstr(hfsb_call_job(x->call)));
    hfsb_call_close(x->call);
    hfsbi_api_call_drop_arguments(x);
    hfsb_buf_free(&x->id);
    hfsb_buf_free(&x->reply);
    hfsb_buf_free(&x->events.ready);
    hfsbi_cancel_free(&x->cancel);
    hfsbi_array_free(&api->alloc, x, 1, sizeof *x);
}

/* Keeps the call from being freed until the matching release. */
static void hfsbi_api_call_hold(hfsbi_api_call *x) {
    x->held++;
}

/* Frees the call if this was the last hold, the request is answered or gone,
   and no thread uses it. False if it was freed or has no request. */
static bool hfsbi_api_call_release(hfsbi_api_call *x) {
    if (--x->held || x->in_thread || x->request) return x->request != NULL;
    hfsbi_api_call_free(x);
    return false;
}

/* ---- the output of a command as events ---- */

/*  event: job          data: {"id":"..."}
    event: stdout       data: {"offset":0,"text":"..."}     id: 5
    event: stderr       data: {"offset":0,"text":"..."}
    event: line         data: {"stream":"stdout","text":"..."}
    event: gap          data: {"stream":"stdout","from":5,"to":70000}
    event: result       data: the reply without streaming

    Offsets count the bytes of cleaned text of each stream. The id of a stdout
    event is the offset of the next one, and the value with which
    /api/jobs/ID/output?offset= continues. A gap is text that was dropped
    because the reader was too slow or memory ran out. A line, for a client
    that asks with X-Hfsb-Lines, is the present text of an unfinished line: it
    has no offset, and is dropped when there is more to send. */

static const char *const hfsbi_stream_names[] = {"stdout", "stderr"};

static void hfsbi_stream_put_text(hfsb_buf *sink, size_t which,
                                  unsigned long long offset, hfsb_str text) {
    hfsb_json_writer w;
    if (sink->status != HFSB_OK) return;
    hfsb_buf_printf(sink, "event: %s\n", hfsbi_stream_names[which]);
    if (which == HFSB_PROC_STDOUT)
        hfsb_buf_printf(sink, "id: %llu\n", offset + text.len);
    hfsb_buf_append(sink, HFSB_LIT("data: "));
    hfsb_json_writer_init(&w, sink, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_member_int(&w, "offset", (long long)offset);
    hfsb_json_put_member_str(&w, "text", text);
    hfsb_json_put_end(&w);
    if (hfsb_json_writer_finish(&w, NULL) != HFSB_OK)
        sink->status = HFSB_NOMEM;
    hfsb_buf_append(sink, HFSB_LIT("\n\n"));
}

/* Appends new text of the command to the events, or starts or extends a gap.
   user is the call. Called with the lock of the tools held. */
static void hfsbi_stream_on_text(void *user, hfsb_proc_stream stream,
                                 hfsb_str text) {
    hfsbi_events      *e = &((hfsbi_api_call *)user)->events;
    size_t             which = (size_t)stream;
    unsigned long long offset = e->total[which];
    size_t             mark = e->ready.len;
    e->total[which] += text.len;
    if (e->gap[which]) return; /* the gap grows */
    if (!e->stalled && e->ready.len <= HFSBI_API_BACKLOG) {
        hfsbi_stream_put_text(&e->ready, which, offset, text);
        if (hfsb_buf_finish(&e->ready, mark) == HFSB_OK) return;
    }
    e->gap[which] = true;
    e->from[which] = offset;
}

/* The same for an unfinished line. */
static void hfsbi_stream_on_line(void *user, hfsb_proc_stream stream,
                                 hfsb_str text) {
    hfsbi_events    *e = &((hfsbi_api_call *)user)->events;
    size_t           mark = e->ready.len;
    hfsb_json_writer w;
    if (e->stalled || e->gap[stream] || mark > HFSBI_API_SMALL) return;
    hfsb_buf_append(&e->ready, HFSB_LIT("event: line\ndata: "));
    hfsb_json_writer_init(&w, &e->ready, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_member_str(&w, "stream",
                             hfsb_cstr(hfsbi_stream_names[stream]));
    hfsb_json_put_member_str(&w, "text", text);
    hfsb_json_put_end(&w);
    if (hfsb_json_writer_finish(&w, NULL) != HFSB_OK)
        e->ready.status = HFSB_NOMEM;
    hfsb_buf_append(&e->ready, HFSB_LIT("\n\n"));
    if (hfsb_buf_finish(&e->ready, mark) != HFSB_OK) return; /* left out */
}

/* Reports gaps; if memory runs out, the next call reports them. */
static void hfsbi_stream_put_gaps(hfsbi_events *e) {
    size_t i;
    for (i = 0; i < 2; i++)
        if (e->gap[i] &&
            hfsb_buf_printf(&e->ready,
                            "event: gap\ndata: {\"stream\":\"%s\","
                            "\"from\":%llu,\"to\":%llu}\n\n",
                            hfsbi_stream_names[i], e->from[i],
                            e->total[i]) == HFSB_OK)
            e->gap[i] = false;
}

/* Sends the events. Drops them if the client is gone. */
static void hfsbi_stream_send(hfsbi_api_call *x) {
    hfsbi_events *e = &x->events;
    if (x->request && e->ready.len)
        (void)hfsb_reply_write(x->request, hfsb_buf_str(&e->ready));
    if (e->ready.len > HFSBI_API_SMALL) hfsb_buf_free(&e->ready);
    hfsb_buf_truncate(&e->ready, 0);
    if (x->request && hfsb_reply_waiting(x->request) > HFSBI_API_BACKLOG)
        e->stalled = true;
}

/* Sends text that precedes a gap, then the gap. A stalled stream reports its
   gaps only after the reader catches up, so that each is one event. */
static void hfsbi_stream_flush(hfsbi_api_call *x) {
    if (!x->events.stalled) {
        hfsbi_stream_send(x);
        hfsbi_stream_put_gaps(&x->events);
    }
    hfsbi_stream_send(x);
}

/* The reader has caught up: everything queued is sent. */
static void hfsbi_stream_on_drained(void *user, hfsb_request *request) {
    hfsbi_api_call *x = (hfsbi_api_call *)user;
    (void)request;
    if (!x->events.stalled) return;
    hfsbi_api_call_hold(x);
    x->events.stalled = false;
    hfsbi_stream_flush(x);
    (void)hfsbi_api_call_release(x);
}

/* Sends the head of the reply and the event with the job's id. */
static void hfsbi_stream_begin(hfsbi_api_call *x) {
    hfsb_buf         job = HFSB_INIT;
    hfsb_json_writer w;
    x->form = HFSBI_FORM_EVENTS;
    (void)hfsb_reply_field(x->request, "X-Accel-Buffering", HFSB_LIT("no"));
    (void)hfsb_reply_field(x->request, "Cache-Control", HFSB_LIT("no-store"));
    hfsb_reply_begin(x->request, 200, "text/event-stream");
    if (!x->request) return;
    hfsb_reply_on_drained(x->request, hfsbi_stream_on_drained, x);
    job.alloc = x->api->alloc;
    if (hfsb_buf_printf(&job, "event: job\ndata: ") == HFSB_OK) {
        hfsb_json_writer_init(&w, &job, NULL);
        hfsb_json_put_object(&w);
        hfsb_json_put_member_str(&w, "id", hfsb_cstr(hfsb_call_job(x->call)));
        hfsb_json_put_end(&w);
        if (hfsb_json_writer_finish(&w, NULL) == HFSB_OK &&
            hfsb_buf_append(&job, HFSB_LIT("\n\n")) == HFSB_OK)
            (void)hfsb_reply_write(x->request, hfsb_buf_str(&job));
    }
    hfsb_buf_free(&job);
    hfsbi_stream_flush(x);
}

/* Sends all remaining events and the result, even to a stalled reader. */
static void hfsbi_stream_end(hfsbi_api_call *x) {
    static const char none[] = "{\"success\":false,\"output\":\"\","
                               "\"error\":\"Out of memory.\"}";
    hfsb_str  body = x->reply.len ? hfsb_buf_str(&x->reply) : hfsb_cstr(none);
    hfsb_buf *ready = &x->events.ready;
    size_t    mark;
    x->events.stalled = false;
    hfsbi_stream_put_gaps(&x->events);
    mark = ready->len;
    hfsb_buf_append(ready, HFSB_LIT("event: result\ndata: "));
    hfsb_buf_append(ready, body);
    hfsb_buf_append(ready, HFSB_LIT("\n\n"));
    if (hfsb_buf_finish(ready, mark) != HFSB_OK) { /* in pieces, then */
        hfsbi_stream_send(x);
        if (x->request)
            (void)hfsb_reply_write(x->request,
                                   HFSB_LIT("event: result\ndata: "));
        if (x->request) (void)hfsb_reply_write(x->request, body);
        if (x->request) (void)hfsb_reply_write(x->request, HFSB_LIT("\n\n"));
    }
    hfsbi_stream_send(x);
    if (x->request) hfsb_reply_end(x->request);
    x->request = NULL;
}

/* ---- cancelling ---- */

HFSBI_FN void hfsbi_api_calls_end(hfsbi_api *api) {
    hfsbi_api_call *x = api->calls;
    for (; x; x = x->next) hfsb_cancel_set(&x->cancel);
}

/* The client is gone. Work with an idempotency key is not cancelled: a repeat
   may ask for its result. */
static void hfsbi_api_call_on_gone(void *user, hfsb_request *request) {
    hfsbi_api_call *x = (hfsbi_api_call *)user;
    (void)request;
    hfsbi_api_call_hold(x);
    x->request = NULL;
    if (!x->key_len) hfsb_cancel_set(&x->cancel);
    hfsbi_loop_timer_clear(x->api->loop, &x->beat.timer);
    (void)hfsbi_api_call_release(x);
}

/* ---- the reply ---- */

/* The HTTP status for the status of a call. */
static int hfsbi_api_http_status(hfsb_status st) {
    switch (st) {
    case HFSB_OK: return 200;
    case HFSB_ARG: return 422;
    case HFSB_NOT_FOUND: return 404;
    case HFSB_LIMIT: return 429;
    case HFSB_REFUSED: return 409;
    default: return 503;
    }
}

/* Turns the result of a call that is done into status and reply. In any
   thread. */
static void hfsbi_api_call_finish(hfsbi_api_call *x) {
    hfsb_tool_result result;
    hfsb_status      st = hfsb_call_take(x->call, &result);
    hfsb_str         error = hfsb_buf_str(&result.error);
    hfsb_buf         detail = HFSB_INIT;
    detail.alloc = x->api->alloc;
    x->status = hfsbi_api_http_status(st);
    if (st == HFSB_OK) st = hfsb_tool_result_write(&result, &x->reply, NULL);
    else if (st == HFSB_ARG)
        st = hfsbi_fields_detail(x, result.key, error, &detail);
    else if (st != HFSB_NOMEM) st = HFSB_OK;
    if (st != HFSB_OK) x->status = 503;
    else if (x->status != 200)
        hfsbi_api_call_fail(x, x->status, hfsb_buf_str(&detail), error);
    hfsb_buf_free(&detail);
    hfsb_tool_result_free(&result);
}

/* Sends x->reply: as a whole, or as the rest of a reply that has begun. */
static void hfsbi_api_call_reply(hfsbi_api_call *x) {
    hfsb_request *request = x->request;
    if (!request) return;
    if (!x->reply.len) /* no memory for the text of the error */
        hfsbi_api_call_fail(x, 503, HFSB_LIT(""),
                            HFSB_LIT("Out of memory: the call may have run."));
    if (x->form == HFSBI_FORM_EVENTS) {
        hfsbi_stream_end(x);
        return;
    }
    if (x->form == HFSBI_FORM_PIECES) {
        hfsb_str body = x->reply.len ? hfsb_buf_str(&x->reply)
                                     : HFSB_LIT("{\"success\":false,"
                                                "\"output\":\"\",\"error\":"
                                                "\"Out of memory.\"}");
        (void)hfsb_reply_write(request, body);
        if (x->request) hfsb_reply_end(request);
        x->request = NULL;
        return;
    }
    x->request = NULL; /* hfsbi_api_call_on_gone() has nothing to do now */
    if (x->status == 429)
        (void)hfsb_reply_field(request, "Retry-After", HFSB_LIT("1"));
    if (x->reply.len)
        hfsbi_reply_take(request, x->status, "application/json", &x->reply);
    else hfsb_reply_error(request, 503, "Out of memory.");
}

/* ---- beats ---- */

static void hfsbi_api_call_set_beat(hfsbi_api_call *x) {
    hfsbi_loop_timer(x->api->loop, &x->beat.timer,
                     hfsb_clock_ms() + x->interval);
}

/* Sends a blank, which JSON allows, or a comment of an event stream, so that
   no proxy closes an idle connection. Begins the reply if necessary. */
static void hfsbi_api_call_beat(hfsbi_timer *timer) {
    hfsbi_api_call *x = ((hfsbi_beat *)timer)->owner;
    hfsbi_api_call_hold(x);
    if (x->form == HFSBI_FORM_WHOLE) {
        x->form = HFSBI_FORM_PIECES;
        (void)hfsb_reply_field(x->request, "X-Accel-Buffering",
                               HFSB_LIT("no"));
        hfsb_reply_begin(x->request, 200, "application/json");
    }
    if (x->request && !hfsb_reply_waiting(x->request))
        (void)hfsb_reply_write(x->request, x->form == HFSBI_FORM_EVENTS
                                               ? HFSB_LIT(": \n\n")
                                               : HFSB_LIT(" "));
    if (hfsbi_api_call_release(x)) hfsbi_api_call_set_beat(x);
}

/* After end of input the peer may be gone, or may still read. A beat finds
   out: a peer that is gone replies with a reset. Needed only for a command
   that is killed when its client goes away. */
static void hfsbi_api_call_probe(hfsbi_api_call *x) {
    if (x->eof && x->request && !x->in_thread && x->ran && !x->status &&
        hfsbi_api_call_kills_on_gone(x))
        hfsbi_api_call_beat(&x->beat.timer);
}

static void hfsbi_api_call_on_eof(void *user, hfsb_request *request) {
    hfsbi_api_call *x = (hfsbi_api_call *)user;
    (void)request;
    x->eof = true;
    hfsbi_api_call_probe(x);
}

/* Starts the beats, at most half the command's timeout apart, so that a client
   that waits no longer than the timeout gets one. */
static void hfsbi_api_call_start_beats(hfsbi_api_call *x) {
    long long half = (long long)(x->timeout * 500.0);
    x->interval =
        x->api->beat_ms ? x->api->beat_ms : (long long)HFSBI_API_BEAT_MS;
    if (x->timeout > 0 && half < x->interval)
        x->interval = half < 50 ? 50 : half;
    hfsbi_api_call_set_beat(x);
}

/* ---- running the call ---- */

/* Takes the options of bash that concern its reply. Its other arguments are
   copied: those of the request need no longer exist. */
static void hfsbi_api_call_prepare_bash(hfsbi_api_call *x) {
    hfsbi_delivery d = hfsbi_call_delivery(x->call);
    double         most = x->api->tools->limits.max_timeout;
    if (hfsb_json_get(x->doc.root, "stream")) x->stream = d.stream;
    if (hfsb_str_equal(d.on_disconnect, HFSB_LIT("kill")))
        x->disconnect = HFSBI_DISCONNECT_KILL;
    else if (hfsb_str_equal(d.on_disconnect, HFSB_LIT("continue")))
        x->disconnect = HFSBI_DISCONNECT_CONTINUE;
    x->timeout = d.timeout > 0 ? d.timeout : x->api->tools->limits.timeout;
    if (x->timeout > most) x->timeout = most;
    hfsbi_api_call_drop_arguments(x);
}

/* Reads and checks the arguments of the tool. In any thread. */
static void hfsbi_api_call_prepare(hfsbi_api_call *x) {
    hfsb_call_opts opts = HFSB_INIT;
    opts.key = hfsb_str_make(x->key, x->key_len);
    if (x->id.len) opts.id = hfsb_buf_str(&x->id);
    opts.names = x->names;
    opts.cancel = &x->cancel;
    opts.user = x;
    if (hfsbi_call_prepare(x->api->tools, x->tool, x->doc.root, &opts,
                           &x->call) != HFSB_OK)
        x->status = 503;
    else if (x->who) hfsbi_call_name(x->call, x->who);
    if (!x->status && hfsbi_api_call_is_bash(x) && !hfsb_call_done(x->call))
        hfsbi_api_call_prepare_bash(x);
}

/* Runs the tool, and finishes the call if it is done at once. Tools on disk
   may run in any thread. */
static void hfsbi_api_call_run(hfsbi_api_call *x) {
    x->ran = true;
    if (x->stream)
        hfsbi_call_on_text(x->call, hfsbi_stream_on_text,
                           x->lines ? hfsbi_stream_on_line : NULL);
    hfsbi_call_start(x->call);
    if (hfsb_call_done(x->call)) hfsbi_api_call_finish(x);
    else hfsbi_api_call_drop_arguments(x);
}

/* There is new output, or the result. */
static void hfsbi_api_call_on_progress(void *user) {
    hfsbi_api_call *x = (hfsbi_api_call *)user;
    hfsbi_api_call_hold(x);
    if (x->form == HFSBI_FORM_EVENTS) hfsbi_stream_flush(x);
    if (x->request && hfsb_call_done(x->call)) {
        hfsbi_api_call_finish(x);
        hfsbi_api_call_reply(x);
    }
    (void)hfsbi_api_call_release(x);
}

/* Runs the call unless a thread did, then replies or waits. In the loop, once
   the arguments are parsed. */
static void hfsbi_api_call_continue(hfsbi_api_call *x) {
    if (x->form == HFSBI_FORM_PIECES)
        x->stream = false; /* a beat began the reply as JSON */
    if (!x->status && !x->ran && x->api->ended)
        hfsbi_api_call_fail(x, 503, HFSB_LIT(""),
                            HFSB_LIT("The server is stopping."));
    if (!x->status && !x->call) hfsbi_api_call_prepare(x);
    if (!x->status && !x->ran) hfsbi_api_call_run(x);
    if (!x->status) hfsbi_call_listen(x->call, hfsbi_api_call_on_progress, x);
    if (x->request && !x->status) hfsbi_api_call_start_beats(x);
    if (x->request && x->stream && (!x->status || x->status == 200))
        hfsbi_stream_begin(x);
    if (x->status) hfsbi_api_call_reply(x);
    hfsbi_api_call_probe(x);
}

/* In a pool thread. */
static void hfsbi_api_call_work(void *user) {
    hfsbi_api_call *x = (hfsbi_api_call *)user;
    hfsbi_api_call_read_arguments(x);
    if (!x->status) hfsbi_api_call_prepare(x);
    if (!x->status && hfsbi_api_call_is_on_disk(x)) hfsbi_api_call_run(x);
}

/* Back in the loop. */
static void hfsbi_api_call_worked(void *user, hfsb_request *request) {
    hfsbi_api_call *x = (hfsbi_api_call *)user;
    (void)request; /* x->request is NULL if it is gone */
    x->in_thread = false;
    hfsbi_api_call_hold(x);
    /* it may have finished since, when nobody listened yet */
    if (x->ran && !x->status && hfsb_call_done(x->call))
        hfsbi_api_call_finish(x);
    /* a call whose client is gone continues, unless its command would be
       killed at once */
    if (x->request || !hfsbi_api_call_kills_on_gone(x))
        hfsbi_api_call_continue(x);
    (void)hfsbi_api_call_release(x);
}

HFSBI_FN void hfsbi_api_call_start(hfsbi_api_call *x) {
    if (!x->status &&
        (hfsbi_api_call_is_on_disk(x) || x->body.len > HFSBI_API_SMALL)) {
        x->in_thread = true;
        hfsbi_api_call_start_beats(x);
        hfsbi_request_work(
            x->request,
            hfsbi_api_call_is_on_disk(x) ? &x->api->tools->rights : NULL,
            hfsbi_api_call_work, hfsbi_api_call_worked, x);
    } else {
        if (!x->status) hfsbi_api_call_read_arguments(x);
        hfsbi_api_call_continue(x);
    }
    (void)hfsbi_api_call_release(x);
}

/* ---- a call from a request ---- */

/* Copies the idempotency key, if there is one. False if it is invalid: the
   request is answered. */
static bool hfsbi_api_call_read_key(hfsbi_api_call *x, hfsb_request *request) {
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_str              key = hfsb_http_field_find(head, "Idempotency-Key");
    if (hfsb_http_field_count(head, "Idempotency-Key") > 1 ||
        (key.ptr && (!key.len || key.len > HFSBI_API_KEY))) {
        hfsb_reply_error(request, 400,
                         "Idempotency-Key must be given once and have 1 to %d "
                         "bytes.",
                         HFSBI_API_KEY);
        return false;
    }
    if (key.len) memcpy(x->key, key.ptr, key.len);
    x->key_len = key.len;
    return true;
}

/* A repeat names the instance that received the first call. Another instance
   does not have that key and would run the call again: it replies 409 and
   returns false. */
static bool hfsbi_api_check_instance(const hfsbi_api *api,
                                     hfsb_request    *request) {
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_str              id = hfsb_http_field_find(head, "X-Hfsb-Instance");
    size_t                n = hfsb_http_field_count(head, "X-Hfsb-Instance");
    if (!n ||
        (n == 1 &&
         hfsb_str_equal(id, hfsb_cstr(hfsbi_server_instance(api->server)))))
        return true;
    hfsb_reply_error(request, 409,
                     "This is another instance of the server; the call was "
                     "not run.");
    return false;
}

/* A command line asks for messages with the names of its options. */
static hfsb_edit_names hfsbi_api_read_names(const hfsb_request *request) {
    hfsb_str names =
        hfsb_http_field_find(hfsb_request_head(request), "X-Hfsb-Names");
    return hfsb_str_equal(names, HFSB_LIT("flags")) ? HFSB_EDIT_NAMES_FLAGS
                                                    : HFSB_EDIT_NAMES_KEYS;
}

HFSBI_FN hfsbi_api_call *hfsbi_api_call_new(hfsbi_api        *api,
                                            hfsb_request     *request,
                                            const hfsbi_tool *tool) {
    hfsbi_api_call *x =
        (hfsbi_api_call *)hfsbi_array(&api->alloc, 1, sizeof *x);
    if (!x) {
        hfsb_reply_error(request, 503, "Out of memory; nothing was done.");
        return NULL;
    }
    memset(x, 0, sizeof *x);
    if (!hfsbi_api_check_instance(api, request) ||
        !hfsbi_api_call_read_key(x, request)) {
        hfsbi_array_free(&api->alloc, x, 1, sizeof *x);
        return NULL;
    }
    hfsbi_cancel_init(&x->cancel);
    x->api = api;
    x->tool = tool;
    x->request = request;
    x->held = 1;
    x->where = "body";
    x->who = hfsbi_request_who(request);
    x->names = hfsbi_api_read_names(request);
    x->lines = hfsb_str_equal(
        hfsb_http_field_find(hfsb_request_head(request), "X-Hfsb-Lines"),
        HFSB_LIT("unfinished"));
    x->beat.timer.fn = hfsbi_api_call_beat;
    x->beat.owner = x;
    x->body.alloc = x->id.alloc = x->reply.alloc = api->alloc;
    x->events.ready.alloc = api->alloc;
    hfsbi_request_take_body(request, &x->body);
    hfsb_request_on_gone(request, hfsbi_api_call_on_gone, x);
    hfsbi_request_on_eof(request, hfsbi_api_call_on_eof, x);
    x->next = api->calls;
    if (x->next) x->next->prev = x;
    api->calls = x;
    return x;
}

HFSBI_FN void hfsbi_api_tool(void *user, hfsb_request *request) {
    const hfsbi_endpoint *at = (const hfsbi_endpoint *)user;
    hfsbi_api_call       *x;
    if (hfsb_request_body(request).len && !hfsbi_request_is_json(request)) {
        hfsb_reply_error(request, 415,
                         "The body must be JSON, with Content-Type: "
                         "application/json.");
        return;
    }
    x = hfsbi_api_call_new(at->api, request, at->tool);
    if (!x) return;
    x->stream = hfsbi_api_call_is_bash(x) &&
                hfsb_http_field_lists(hfsb_request_head(request), "Accept",
                                      "text/event-stream");
    hfsbi_api_call_start(x);
}
