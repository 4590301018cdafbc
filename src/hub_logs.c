/* hub_logs.c - log streams of Spaces and jobs. Depends on: net (sse), json,
   hub_request. */
#include "hub_parts.h"

/* What is carried from one connection to the next. A reconnect gives the log
   from its start again, so what was told is counted. After ?tail=N the count
   says nothing, and the time of the last line told decides. */
typedef struct hfsbi_log_reader {
    hfsb_hub            *hub;
    const hfsb_log_opts *opts;
    hfsb_log_line_fn     fn;
    void                *user;
    hfsb_sse             sse;
    bool                 of_job;
    bool                 ended;    /* fn said so */
    bool                 by_time;  /* skip by time, not by count */
    bool                 new_ones; /* since the last look */
    size_t               told;     /* events, of all connections */
    size_t               at;       /* events of this connection */
    char                 time[64]; /* of the last event told */
    size_t               at_time;  /* events told with that time */
    size_t               seen;     /* ... skipped in this connection */
    hfsb_status          status;   /* of what went wrong in a callback */
} hfsbi_log_reader;

/* ---- events ---- */

/* Was it told before the connection broke? */
static bool hfsbi_log_old(hfsbi_log_reader *reader, hfsb_str time) {
    int order;
    if (!reader->by_time) return reader->at <= reader->told;
    if (!time.len || time.len >= sizeof reader->time) return false;
    order = strncmp(time.ptr, reader->time, time.len);
    if (order == 0 && reader->time[time.len]) order = -1;
    if (order != 0) return order < 0;
    return reader->seen++ < reader->at_time;
}

static void hfsbi_log_note(hfsbi_log_reader *reader, hfsb_str time) {
    if (!reader->by_time) reader->told = reader->at;
    if (!time.len || time.len >= sizeof reader->time) return;
    if (hfsb_str_equal(time, hfsb_cstr(reader->time))) {
        reader->at_time++;
        return;
    }
    memcpy(reader->time, time.ptr, time.len);
    reader->time[time.len] = '\0';
    reader->at_time = 1;
    reader->seen = 1; /* this one: the next of that time is new */
}

/* Tells text line by line. */
static bool hfsbi_log_tell(hfsbi_log_reader *reader, hfsb_str text,
                           hfsb_str time) {
    if (hfsb_str_ends(text, HFSB_LIT("\n"))) text.len--;
    do {
        size_t   end = hfsb_str_find_byte(text, '\n');
        hfsb_str line = hfsb_str_slice(text, 0, end);
        if (hfsb_str_ends(line, HFSB_LIT("\r"))) line.len--;
        if (!reader->fn(reader->user, line, time)) return false;
        if (end == HFSB_NPOS) break;
        text = hfsb_str_slice(text, end + 1, text.len);
    } while (true);
    return true;
}

/* One entry: {"data":"text\n","timestamp":"..."}. */
static bool hfsbi_log_entry(hfsbi_log_reader *reader, hfsb_str json) {
    const hfsb_str started = HFSB_LIT("===== Job started");
    const hfsb_str none = HFSB_LIT("");
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_str       text, time;
    doc.alloc = reader->hub->alloc;
    if (hfsb_json_parse(json, NULL, &doc, NULL) == HFSB_NOMEM) {
        reader->status = HFSB_NOMEM;
        return false;
    }
    text = hfsb_json_str(hfsb_json_get(doc.root, "data"), none);
    time = hfsb_json_str(hfsb_json_get(doc.root, "timestamp"), none);
    reader->at++;
    if (!hfsbi_log_old(reader, time)) {
        hfsbi_log_note(reader, time);
        reader->new_ones = true;
        if (hfsb_json_type_of(hfsb_json_get(doc.root, "data")) ==
                HFSB_JSON_STRING &&
            !(reader->of_job && hfsb_str_starts(text, started)))
            reader->ended = !hfsbi_log_tell(reader, text, time);
    }
    hfsb_json_free(&doc);
    return !reader->ended;
}

/* One event. Each line of its data that is an object is an entry, should an
   empty line be missing between two; anything else only keeps the connection
   alive. */
static bool hfsbi_log_event(void *user, hfsb_str name, hfsb_str data) {
    hfsbi_log_reader *reader = (hfsbi_log_reader *)user;
    bool              go = true;
    (void)name;
    while (data.len && go) {
        size_t   end = hfsb_str_find_byte(data, '\n');
        hfsb_str line = hfsb_str_slice(data, 0, end);
        if (hfsb_str_starts(line, HFSB_LIT("{")))
            go = hfsbi_log_entry(reader, line);
        data = hfsb_str_slice(data, end == HFSB_NPOS ? data.len : end + 1,
                              data.len);
    }
    return go;
}

static bool hfsbi_log_piece(void *user, hfsb_str piece) {
    hfsbi_log_reader *reader = (hfsbi_log_reader *)user;
    hfsb_status       status =
        hfsb_sse_feed(&reader->sse, piece, hfsbi_log_event, reader);
    if (status == HFSB_OK) return true;
    if (status != HFSB_CANCELLED) reader->status = status;
    return false;
}

/* ---- connections ---- */

static void hfsbi_log_connect(hfsbi_log_reader *reader) {
    hfsb_sse_free(&reader->sse);
    memset(&reader->sse, 0, sizeof reader->sse);
    reader->sse.line.alloc = reader->sse.event.alloc = reader->sse.data.alloc =
        reader->hub->alloc;
    reader->at = reader->seen = 0;
    reader->new_ones = false;
}

/* The stream until it ends, one way or the other. */
static hfsb_status hfsbi_log_once(hfsbi_log_reader  *reader,
                                  hfsbi_hub_request *request, hfsb_err *err) {
    hfsb_status status;
    hfsbi_log_connect(reader);
    status = hfsbi_hub_once(reader->hub, request, err);
    if (status == HFSB_OK) /* the last event may lack its empty line */
        (void)hfsbi_log_piece(reader, HFSB_LIT("\n\n"));
    if (reader->ended) return hfsbi_ok(err);
    if (reader->status != HFSB_OK)
        return hfsbi_fail_status(err, reader->status, request->what);
    if (status == HFSB_TIMEOUT && request->opened && !reader->opts->follow)
        return hfsbi_ok(err); /* silence: that is all there is now */
    return status;
}

/* ---- jobs end ---- */

static bool hfsbi_log_is_final(hfsb_str stage) {
    static const char *const final[] = {"COMPLETED", "CANCELED", "CANCELLED",
                                        "ERROR",     "DELETED",  "DELETING",
                                        "STOPPED",   "PAUSED"};
    size_t                   i;
    for (i = 0; i < sizeof final / sizeof *final; i++)
        if (hfsb_str_equal(stage, hfsb_cstr(final[i]))) return true;
    return false;
}

/* Has the job ended? One that waits to be run has not. */
static hfsb_status hfsbi_log_job_ended(hfsbi_log_reader *reader,
                                       hfsb_str space, hfsb_str id,
                                       bool *ended, hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   status;
    doc.alloc = reader->hub->alloc;
    status =
        hfsb_hub_job(reader->hub, space, id, reader->opts->cancel, &doc, err);
    if (status != HFSB_OK) return status;
    *ended = hfsbi_log_is_final(hfsb_json_str(
        hfsb_json_get(hfsb_json_get(doc.root, "status"), "stage"),
        hfsb_str_make("", 0)));
    hfsb_json_free(&doc);
    return HFSB_OK;
}

/* ---- all of it ---- */

/* Cuts "?tail=N" off and goes by time from here on. */
static void hfsbi_log_drop_tail(hfsbi_log_reader  *reader,
                                hfsbi_hub_request *request) {
    size_t at = hfsb_str_find_byte(hfsb_buf_str(&request->target), '?');
    if (at == HFSB_NPOS || !reader->told) return;
    hfsb_buf_truncate(&request->target, at);
    reader->by_time = true;
}

/* job empty: the log of a Space, which ends with its stream. */
static hfsb_status hfsbi_log_follow(hfsbi_log_reader  *reader,
                                    hfsbi_hub_request *request, hfsb_str space,
                                    hfsb_str job, hfsb_err *err) {
    size_t      failures = 0, quiet = 0;
    hfsb_status status;
    bool        ended = true;
    for (;;) {
        status = hfsbi_log_once(reader, request, err);
        if (reader->ended || reader->status != HFSB_OK) return status;
        if (reader->new_ones) failures = quiet = 0;
        if (status == HFSB_OK) {
            if (!job.len || !reader->opts->follow) return status;
            status = hfsbi_log_job_ended(reader, space, job, &ended, err);
            if (status != HFSB_OK) return status;
            if (ended) return hfsbi_ok(err);
        } else {
            /* a stream that broke is worth another try whatever was sent */
            bool broken = status == HFSB_LOST || status == HFSB_TIMEOUT;
            if (!request->again && !broken) return status;
            if (++failures >= reader->hub->tries) return status;
        }
        if (!hfsbi_hub_has_time(reader->hub, request, quiet + 1))
            return status;
        hfsbi_log_drop_tail(reader, request);
        if (!hfsbi_hub_wait(reader->hub, request, ++quiet, err))
            return HFSB_CANCELLED;
    }
}

static hfsb_status hfsbi_log_run(hfsb_hub *hub, hfsbi_hub_request *request,
                                 const hfsb_log_opts *opts, hfsb_str space,
                                 hfsb_str job, hfsb_log_line_fn fn, void *user,
                                 hfsb_err *err) {
    hfsbi_log_reader reader = HFSB_INIT;
    hfsb_status      status = HFSB_OK;
    reader.hub = hub;
    reader.opts = opts;
    reader.fn = fn;
    reader.user = user;
    reader.of_job = job.len != 0;
    request->repeat = true;
    request->on_body = hfsbi_log_piece;
    request->user = &reader;
    request->idle_ms = opts->idle_ms > 0 ? opts->idle_ms
                       : opts->follow    ? 120000
                                         : 5000;
    /* a stream that only keeps alive is never silent */
    if (!opts->follow && hub->timeout_ms < LLONG_MAX / 2)
        request->until = hfsb_clock_ms() + hub->timeout_ms;
    if (opts->tail)
        status = hfsb_buf_printf(&request->target, "?tail=%zu", opts->tail);
    if (status != HFSB_OK) hfsbi_fail_status(err, status, request->what);
    else status = hfsbi_log_follow(&reader, request, space, job, err);
    hfsb_sse_free(&reader.sse);
    return status;
}

hfsb_status hfsb_hub_space_logs(hfsb_hub *hub, hfsb_str id, const char *which,
                                const hfsb_log_opts *opts, hfsb_log_line_fn fn,
                                void *user, hfsb_err *err) {
    const hfsb_log_opts defaults = HFSB_INIT;
    const hfsb_str      none = HFSB_INIT;
    hfsbi_hub_request   request;
    hfsb_status         status = hfsb_space_check(id, err);
    if (status != HFSB_OK) return status;
    if (!which || (strcmp(which, "build") != 0 && strcmp(which, "run") != 0))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A Space has two logs, \"build\" and \"run\".");
    if (!opts) opts = &defaults;
    hfsbi_hub_begin(hub, &request, "GET", opts->cancel,
                    "read the %s log of %.*s", which, (int)id.len, id.ptr);
    status = hfsb_buf_printf(&request.target, "/api/spaces/%.*s/logs/%s",
                             (int)id.len, id.ptr, which);
    if (status != HFSB_OK) hfsbi_fail_status(err, status, request.what);
    else
        status = hfsbi_log_run(hub, &request, opts, none, none, fn, user, err);
    hfsbi_hub_end(&request);
    return status;
}

hfsb_status hfsb_hub_job_logs(hfsb_hub *hub, hfsb_str space, hfsb_str id,
                              const hfsb_log_opts *opts, hfsb_log_line_fn fn,
                              void *user, hfsb_err *err) {
    const hfsb_log_opts defaults = HFSB_INIT;
    hfsbi_hub_request   request;
    hfsb_status         status;
    if (!opts) opts = &defaults;
    hfsbi_hub_begin(hub, &request, "GET", opts->cancel, "read the log of job");
    status = hfsbi_hub_job_target(hub, &request, space, id, "/logs", err);
    if (status == HFSB_OK)
        status = hfsbi_log_run(hub, &request, opts, space, id, fn, user, err);
    hfsbi_hub_end(&request);
    return status;
}
