/* server_stream.c - the output of a command as events, while it runs. Depends
   on: server_call. */
#include "server_sandbox.h"

/*  event: job          data: {"id":"..."}
    event: stdout       data: {"offset":0,"text":"..."}     id: 5
    event: stderr       data: {"offset":0,"text":"..."}
    event: gap          data: {"stream":"stdout","from":5,"to":70000}
    event: result       data: what POST /api/bash answers otherwise

    Offsets count the bytes of cleaned text of each stream; the id of a piece
    of stdout is where the next one begins, and where
    /api/jobs/{id}/output?offset= goes on. */

static const char *const hfsbi_stream_names[] = {"stdout", "stderr"};

/* ---- writing events ---- */

static void hfsbi_stream_piece(hfsbi_sink *sink, size_t which,
                               unsigned long long offset, hfsb_str text) {
    hfsb_json_writer w;
    if (sink->status != HFSB_OK) return;
    hfsbi_putf(sink, "event: %s\n", hfsbi_stream_names[which]);
    if (which == HFSB_PROC_STDOUT)
        hfsbi_putf(sink, "id: %llu\n", offset + text.len);
    hfsbi_put(sink, HFSB_LIT("data: "));
    hfsb_json_writer_init(&w, sink->buf, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_int(&w, "offset", (long long)offset);
    hfsbi_put_member_str(&w, "text", text);
    hfsb_json_put_end(&w);
    if (hfsb_json_writer_finish(&w, NULL) != HFSB_OK)
        sink->status = HFSB_NOMEM;
    hfsbi_put(sink, HFSB_LIT("\n\n"));
}

HFSBI_FN void hfsbi_stream_text(void *user, hfsb_proc_stream stream,
                                hfsb_str text) {
    hfsbi_events      *e = &((hfsbi_api_call *)user)->events;
    size_t             which = (size_t)stream;
    unsigned long long offset = e->total[which];
    hfsbi_sink         sink = hfsbi_sink_begin(&e->ready);
    e->total[which] += text.len;
    if (e->gap[which]) return; /* it has become longer */
    if (!e->choked && e->ready.len <= HFSBI_API_CHOKE) {
        hfsbi_stream_piece(&sink, which, offset, text);
        if (hfsbi_sink_end(&sink) == HFSB_OK) return;
    }
    e->gap[which] = true;
    e->from[which] = offset;
}

/* Says what was left out; without memory, the next time. */
static void hfsbi_stream_gaps(hfsbi_events *e) {
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

/* ---- sending them ---- */

static void hfsbi_stream_send(hfsbi_api_call *x) {
    hfsbi_events *e = &x->events;
    if (x->request && e->ready.len)
        (void)hfsb_reply_write(x->request, hfsb_buf_str(&e->ready));
    if (e->ready.len > HFSBI_API_SMALL) hfsb_buf_free(&e->ready);
    hfsb_buf_truncate(&e->ready, 0);
    if (x->request && hfsb_reply_waiting(x->request) > HFSBI_API_CHOKE)
        e->choked = true;
}

HFSBI_FN void hfsbi_stream_flush(hfsbi_api_call *x) {
    if (!x->events.choked) {
        hfsbi_stream_send(x);
        hfsbi_stream_gaps(&x->events);
    }
    hfsbi_stream_send(x);
}

/* The reader has caught up. */
static void hfsbi_stream_drained(void *user, hfsb_request *request) {
    hfsbi_api_call *x = (hfsbi_api_call *)user;
    (void)request;
    if (!x->events.choked) return;
    hfsbi_api_hold(x);
    x->events.choked = false;
    hfsbi_stream_flush(x);
    (void)hfsbi_api_release(x);
}

HFSBI_FN void hfsbi_stream_begin(hfsbi_api_call *x) {
    hfsb_buf         job = HFSB_INIT;
    hfsb_json_writer w;
    x->begun = x->streaming = true;
    (void)hfsb_reply_field(x->request, "X-Accel-Buffering", HFSB_LIT("no"));
    (void)hfsb_reply_field(x->request, "Cache-Control", HFSB_LIT("no-store"));
    hfsb_reply_begin(x->request, 200, "text/event-stream");
    if (!x->request) return;
    hfsb_reply_on_drained(x->request, hfsbi_stream_drained, x);
    job.alloc = x->box->alloc;
    if (hfsb_buf_printf(&job, "event: job\ndata: ") == HFSB_OK) {
        hfsb_json_writer_init(&w, &job, NULL);
        hfsb_json_put_object(&w);
        hfsbi_put_member_str(&w, "id", hfsb_cstr(hfsb_call_job(x->call)));
        hfsb_json_put_end(&w);
        if (hfsb_json_writer_finish(&w, NULL) == HFSB_OK &&
            hfsb_buf_append(&job, HFSB_LIT("\n\n")) == HFSB_OK)
            (void)hfsb_reply_write(x->request, hfsb_buf_str(&job));
    }
    hfsb_buf_free(&job);
    hfsbi_stream_flush(x);
}

HFSBI_FN void hfsbi_stream_end(hfsbi_api_call *x) {
    static const char none[] = "{\"success\":false,\"output\":\"\","
                               "\"error\":\"Out of memory.\"}";
    hfsb_str body = x->reply.len ? hfsb_buf_str(&x->reply) : hfsb_cstr(none);
    x->events.choked = false;
    hfsbi_stream_gaps(&x->events);
    hfsbi_stream_send(x);
    if (x->request)
        (void)hfsb_reply_write(x->request, HFSB_LIT("event: result\ndata: "));
    if (x->request) (void)hfsb_reply_write(x->request, body);
    if (x->request) (void)hfsb_reply_write(x->request, HFSB_LIT("\n\n"));
    if (x->request) hfsb_reply_end(x->request);
    x->request = NULL;
}
