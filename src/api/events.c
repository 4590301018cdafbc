/* events.c - /api/events: the journal as a long poll or a stream.

     GET /api/events?since=N&wait_ms=M&limit=L
         {"events":[...],"next":N,"lost":N}, at once if there are events after
         number N, else when the next one comes or M ms have passed
     the same with Accept: text/event-stream
         every event after N, or after Last-Event-ID, as it comes:
             id: 12
             data: {"seq":12,...}
         and where the ring has dropped some: event: lost, data: {"lost":5}

   A request that waits is a watcher: no thread, a timer and a place in a list.

       request --> WHOLE ---- events, or the deadline ----> reply, freed
                     |  beat
                     +-----> PIECES - the same -----------> end, freed
       request --> EVENTS --- the client goes, or a stop -> end, freed

   While there are watchers, the journal posts to the loop once for any number
   of new events. A slow reader of a stream leaves them in the ring and gets
   them, or the number of those it missed, when it has caught up. */
#include "api_private.h"

enum {
    HFSBI_EVENTS_WAIT = 60000, /* longest wait_ms */
    HFSBI_EVENTS_LIMIT = 1000,
    HFSBI_EVENTS_PRESET = 100
};

struct hfsbi_watcher {
    hfsbi_timer           timer; /* first: its function casts it back */
    struct hfsbi_watcher *next, *prev;
    hfsbi_api            *api;
    hfsb_request         *request;
    hfsbi_api_form        form;
    unsigned long long    since;
    size_t                limit;
    long long             until; /* deadline of a poll */
};

/* ---- the list ---- */

HFSBI_FN void hfsbi_news_stop(hfsbi_api *api) {
    hfsbi_journal_unlisten(api->journal, &api->news.ear);
    hfsbi_loop_unpost(api->loop, &api->news.task);
}

static void hfsbi_watcher_free(hfsbi_watcher *w) {
    hfsbi_api *api = w->api;
    hfsbi_loop_timer_clear(api->loop, &w->timer);
    if (w->prev) w->prev->next = w->next;
    else api->news.watchers = w->next;
    if (w->next) w->next->prev = w->prev;
    hfsbi_array_free(&api->alloc, w, 1, sizeof *w);
    if (!api->news.watchers) hfsbi_news_stop(api);
}

/* The client is gone. */
static void hfsbi_watcher_gone(void *user, hfsb_request *request) {
    (void)request;
    hfsbi_watcher_free((hfsbi_watcher *)user);
}

static void hfsbi_watcher_set_timer(hfsbi_watcher *w) {
    long long beat =
        w->api->beat_ms ? w->api->beat_ms : (long long)HFSBI_API_BEAT_MS;
    long long at = hfsb_clock_ms() + beat;
    if (w->form != HFSBI_FORM_EVENTS && w->until < at) at = w->until;
    hfsbi_loop_timer(w->api->loop, &w->timer, at);
}

static void hfsbi_watcher_begin(hfsbi_watcher *w, hfsbi_api_form form,
                                const char *type) {
    w->form = form;
    (void)hfsb_reply_field(w->request, "X-Accel-Buffering", HFSB_LIT("no"));
    (void)hfsb_reply_field(w->request, "Cache-Control", HFSB_LIT("no-store"));
    hfsb_reply_begin(w->request, 200, type);
}

/* ---- a poll ---- */

/* Ends a poll with a body, and frees it. */
static void hfsbi_poll_reply(hfsbi_watcher *w, hfsb_buf *body) {
    if (w->form == HFSBI_FORM_PIECES && body->len) {
        (void)hfsb_reply_write(w->request, hfsb_buf_str(body));
        hfsb_reply_end(w->request);
    } else if (w->form == HFSBI_FORM_PIECES) {
        hfsb_reply_abort(w->request); /* no memory: the client asks again */
    } else if (body->len) {
        (void)hfsb_reply_field(w->request, "Cache-Control",
                               HFSB_LIT("no-store"));
        hfsbi_reply_take(w->request, 200, "application/json", body);
    } else {
        hfsb_reply_error(w->request, 503, "Out of memory.");
    }
    hfsbi_watcher_free(w);
}

/* Answers a poll that has events, or with `now` in any case. True when it was
   answered and freed. */
static bool hfsbi_poll_look(hfsbi_watcher *w, bool now) {
    hfsb_journal_page page;
    hfsb_buf          body = HFSB_INIT;
    bool              ready = now;
    body.alloc = w->api->alloc;
    hfsb_buf_append(&body, HFSB_LIT("{\"events\":"));
    if (hfsb_journal_read(w->api->journal, w->since, w->limit, &body, &page,
                          NULL) != HFSB_OK)
        ready = true;
    else if (page.next != w->since) ready = true;
    if (ready)
        hfsb_buf_printf(&body, ",\"next\":%llu,\"lost\":%llu}", page.next,
                        page.lost);
    if (hfsb_buf_finish(&body, 0) != HFSB_OK) hfsb_buf_free(&body);
    if (ready) hfsbi_poll_reply(w, &body);
    hfsb_buf_free(&body);
    return ready;
}

/* ---- a stream ---- */

/* Adds an event to the text that is sent, up to its limit. */
static bool hfsbi_stream_put_event(void *user, unsigned long long seq,
                                   hfsb_str line) {
    hfsb_buf *out = (hfsb_buf *)user;
    size_t    mark = out->len;
    if (out->len > HFSBI_API_SMALL) return false;
    hfsb_buf_printf(out, "id: %llu\ndata: ", seq);
    hfsb_buf_append(out, line);
    hfsb_buf_append(out, HFSB_LIT("\n\n"));
    if (hfsb_buf_finish(out, mark) == HFSB_OK) return true;
    hfsb_buf_truncate(out, mark); /* the next look sends it */
    return false;
}

/* Sends new events, until the client has enough to read; none if it has
   already. */
static void hfsbi_stream_look(hfsbi_watcher *w) {
    hfsb_journal_page page;
    char              lost[80];
    hfsb_buf          out = HFSB_INIT;
    size_t            n = 1; /* bytes of events that the last look found */
    out.alloc = w->api->alloc;
    while (n && hfsb_reply_waiting(w->request) <= HFSBI_API_BACKLOG) {
        hfsb_buf_truncate(&out, 0);
        hfsbi_journal_visit(w->api->journal, w->since, hfsbi_stream_put_event,
                            &out, &page);
        w->since = page.next;
        n = out.len;
        (void)snprintf(lost, sizeof lost,
                       "event: lost\ndata: {\"lost\":%llu}\n\n", page.lost);
        if (page.lost) (void)hfsb_reply_write(w->request, hfsb_cstr(lost));
        if (n) (void)hfsb_reply_write(w->request, hfsb_buf_str(&out));
    }
    hfsb_buf_free(&out);
}

/* The client has read everything that was sent. */
static void hfsbi_stream_caught_up(void *user, hfsb_request *request) {
    (void)request;
    hfsbi_stream_look((hfsbi_watcher *)user);
}

/* ---- news ---- */

static void hfsbi_watcher_beat(hfsbi_timer *timer) {
    hfsbi_watcher *w = (hfsbi_watcher *)(void *)timer;
    bool           stream = w->form == HFSBI_FORM_EVENTS;
    if (!stream && hfsbi_poll_look(w, hfsb_clock_ms() >= w->until)) return;
    if (stream) hfsbi_stream_look(w);
    else if (w->form == HFSBI_FORM_WHOLE)
        hfsbi_watcher_begin(w, HFSBI_FORM_PIECES, "application/json");
    if (!hfsb_reply_waiting(w->request))
        (void)hfsb_reply_write(w->request,
                               stream ? HFSB_LIT(": \n\n") : HFSB_LIT(" "));
    hfsbi_watcher_set_timer(w);
}

/* In the loop, after new events. */
static void hfsbi_news_come(hfsbi_task *task) {
    hfsbi_news *news =
        (hfsbi_news *)(void *)((char *)task - offsetof(hfsbi_news, task));
    hfsbi_watcher *w = news->watchers, *next;
    if (w) hfsbi_journal_listen(w->api->journal, &news->ear);
    for (; w; w = next) {
        next = w->next;
        if (w->form != HFSBI_FORM_EVENTS) (void)hfsbi_poll_look(w, false);
        else hfsbi_stream_look(w);
    }
}

/* In any thread, under the lock of the journal. */
static void hfsbi_news_hear(hfsbi_journal_ear *ear) {
    hfsbi_news *news = (hfsbi_news *)(void *)ear;
    hfsbi_loop_post(news->loop, &news->task);
}

HFSBI_FN void hfsbi_news_init(hfsbi_api *api) {
    api->news.ear.fn = hfsbi_news_hear;
    api->news.task.done = hfsbi_news_come;
    api->news.loop = api->loop;
}

HFSBI_FN void hfsbi_news_end(hfsbi_api *api) {
    hfsbi_watcher *w;
    while ((w = api->news.watchers) != NULL) {
        if (w->form == HFSBI_FORM_EVENTS) {
            hfsbi_stream_look(w);
            hfsb_reply_end(w->request);
            hfsbi_watcher_free(w);
        } else {
            (void)hfsbi_poll_look(w, true);
        }
    }
}

/* ---- events of the API itself ---- */

/* The page names itself, so that a person who looks at files is not taken for
   the agent. */
HFSBI_FN const char *hfsbi_request_who(const hfsb_request *request) {
    hfsb_str who =
        hfsb_http_field_find(hfsb_request_head(request), "X-Hfsb-Who");
    return hfsb_str_equal(who, HFSB_LIT("page")) ? "page" : NULL;
}

HFSBI_FN void hfsbi_api_report(const hfsb_tools *tools, const char *tool,
                               hfsb_str path, const char *job, hfsb_str error,
                               long long began, unsigned long long bytes) {
    hfsbi_api_report_request(NULL, tools, tool, path, job, error, began,
                             bytes);
}

HFSBI_FN void hfsbi_api_report_request(const hfsb_request *request,
                                       const hfsb_tools   *tools,
                                       const char *tool, hfsb_str path,
                                       const char *job, hfsb_str error,
                                       long long          began,
                                       unsigned long long bytes) {
    hfsbi_brief      brief = HFSB_INIT;
    hfsb_tool_result result;
    hfsbi_event      e = HFSB_INIT;
    if (!tools->journal) return;
    brief.text.alloc = tools->alloc;
    hfsbi_brief_path(tools->journal, &brief, path);
    hfsbi_result_init(&result, &tools->alloc);
    result.success = !error.len;
    hfsb_buf_append(&result.error, error);
    e.who = request ? hfsbi_request_who(request) : NULL;
    if (!e.who) e.who = tools->who;
    e.tool = tool;
    e.brief = &brief;
    e.result = &result;
    e.job_id = job;
    e.duration_ms = hfsb_clock_ms() - began;
    e.output_bytes = bytes;
    (void)hfsbi_journal_add(tools->journal, &e);
    hfsb_tool_result_free(&result);
    hfsb_buf_free(&brief.text);
}

/* ---- the request ---- */

typedef struct hfsbi_events_args {
    long long since, wait_ms, limit;
} hfsbi_events_args;

static const hfsbi_param hfsbi_events_params[] = {
    HFSBI_PARAM_RANGE("since", HFSBI_ARG_INT, 0, hfsbi_events_args, since,
                      NULL, 0, LLONG_MAX, 0, "0 or more"),
    HFSBI_PARAM_RANGE("wait_ms", HFSBI_ARG_INT, HFSBI_CLAMPED,
                      hfsbi_events_args, wait_ms, NULL, 0, HFSBI_EVENTS_WAIT,
                      0, "0 or more"),
    HFSBI_PARAM_RANGE("limit", HFSBI_ARG_INT, HFSBI_CLAMPED, hfsbi_events_args,
                      limit, NULL, 1, HFSBI_EVENTS_LIMIT, HFSBI_EVENTS_PRESET,
                      "1 or more"),
    HFSBI_PARAM_END};

HFSBI_FN const hfsbi_param *hfsbi_events_query_params(void) {
    return hfsbi_events_params;
}

/* Builds the arguments from the query, as texts: numbers are accepted as such.
   Last-Event-ID, which a stream sends when it reconnects, overrides `since`.
   HFSB_OK; HFSB_SYNTAX, HFSB_NOMEM. */
static hfsb_status hfsbi_events_query(hfsb_request  *request,
                                      hfsb_json_doc *doc, hfsb_err *err) {
    hfsb_str last =
        hfsb_http_field_find(hfsb_request_head(request), "Last-Event-ID");
    const hfsbi_param *p;
    hfsb_buf           value = HFSB_INIT;
    hfsbi_build        b;
    hfsb_status        st = HFSB_OK;
    value.alloc = doc->alloc;
    hfsbi_build_init(&b, &doc->alloc);
    hfsbi_build_object(&b, NULL);
    if (last.len) hfsbi_build_str(&b, "since", last);
    for (p = hfsbi_events_params; p->name; p++) {
        if (last.len && strcmp(p->name, "since") == 0) continue;
        hfsb_buf_truncate(&value, 0);
        st = hfsb_request_query(request, p->name, &value, err);
        if (st == HFSB_OK) hfsbi_build_str(&b, p->name, hfsb_buf_str(&value));
        else if (st != HFSB_NOT_FOUND) break;
        st = HFSB_OK;
    }
    hfsbi_build_end(&b);
    if (st == HFSB_OK) st = hfsbi_build_finish(&b, doc);
    hfsbi_build_free(&b);
    hfsb_buf_free(&value);
    return st;
}

/* Replies to a request whose query is invalid. */
static void hfsbi_events_refuse(hfsb_request *request, hfsb_status st,
                                const hfsb_err *err) {
    hfsb_buf detail = HFSB_INIT;
    detail.alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    if (st == HFSB_SYNTAX) hfsb_reply_error(request, 400, "%s", err->msg);
    else if (st == HFSB_ARG && hfsbi_fields_detail_item(
                                   "query", hfsb_cstr(err->key), "value_error",
                                   err->msg, NULL, &detail) == HFSB_OK)
        hfsbi_reply_detail(request, 422, hfsb_buf_str(&detail),
                           hfsb_cstr(err->msg));
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_buf_free(&detail);
}

/* Adds a watcher and answers it, or lets it wait. */
static void hfsbi_events_watch(hfsbi_api *api, hfsb_request *request,
                               const hfsbi_events_args *a) {
    const hfsb_http_head *head = hfsb_request_head(request);
    bool once = hfsb_str_equal(head->method, HFSB_LIT("HEAD")) ||
                hfsbi_server_is_closing(api->server);
    hfsbi_watcher *w = (hfsbi_watcher *)hfsbi_array(&api->alloc, 1, sizeof *w);
    if (!w) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return;
    }
    memset(w, 0, sizeof *w);
    w->timer.fn = hfsbi_watcher_beat;
    w->api = api;
    w->request = request;
    w->since = (unsigned long long)a->since;
    w->limit = (size_t)a->limit;
    w->until = hfsb_clock_ms() + a->wait_ms;
    w->next = api->news.watchers;
    if (w->next) w->next->prev = w;
    api->news.watchers = w;
    if (!w->next) hfsbi_journal_listen(api->journal, &api->news.ear);
    hfsb_request_on_gone(request, hfsbi_watcher_gone, w);
    if (!once && hfsb_http_field_lists(head, "Accept", "text/event-stream")) {
        hfsbi_watcher_begin(w, HFSBI_FORM_EVENTS, "text/event-stream");
        hfsb_reply_on_drained(request, hfsbi_stream_caught_up, w);
        hfsbi_stream_look(w);
    } else if (hfsbi_poll_look(w, once || !a->wait_ms)) {
        return;
    }
    hfsbi_watcher_set_timer(w);
}

HFSBI_FN void hfsbi_events_get(void *user, hfsb_request *request) {
    hfsbi_api        *api = (hfsbi_api *)user;
    hfsb_json_doc     doc = HFSB_INIT;
    hfsbi_args_how    how = HFSB_INIT;
    hfsbi_events_args a = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    hfsb_status       st;
    doc.alloc = api->alloc;
    st = hfsbi_events_query(request, &doc, &err);
    if (st == HFSB_OK)
        st = hfsbi_args_read(hfsbi_events_params, doc.root, &how, &a, &err);
    if (st == HFSB_OK) hfsbi_events_watch(api, request, &a);
    else hfsbi_events_refuse(request, st, &err);
    hfsb_json_free(&doc);
}
