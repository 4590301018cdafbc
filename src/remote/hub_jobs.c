/* hub_jobs.c - jobs: run, looked at, listed, cancelled. */
#include "remote_private.h"

static hfsb_status hfsbi_hub_job_target(hfsb_hub          *hub,
                                        hfsbi_hub_request *request,
                                        hfsb_str space, hfsb_str id,
                                        const char *rest, hfsb_err *err);

/* ==== hub logs ==== */

/* log streams of Spaces and jobs. */

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

/* Waits before the log of a job that has not ended is read again. Nothing
   went wrong, so nothing is logged. */
static hfsb_status hfsbi_log_pause(const hfsbi_log_reader  *reader,
                                   const hfsbi_hub_request *request, size_t n,
                                   hfsb_err *err) {
    long long ms = hfsbi_hub_delay(reader->hub, n);
    if (hfsb_cancel_wait(reader->opts->cancel, ms)) return HFSB_OK;
    return hfsbi_fail(err, HFSB_CANCELLED, 0, "Cancelled: could not %s.",
                      request->what);
}

/* Reads a stream again until the log is complete. job empty: the log of a
   Space, which ends with its stream. A followed job that prints nothing for
   idle_ms, or whose stream ends early, is asked about: while it has not
   ended, the stream is opened again as often as it takes. */
static hfsb_status hfsbi_log_follow(hfsbi_log_reader  *reader,
                                    hfsbi_hub_request *request, hfsb_str space,
                                    hfsb_str job, hfsb_err *err) {
    bool        follow = job.len && reader->opts->follow;
    size_t      failures = 0, quiet = 0;
    hfsb_status status;
    bool        ended = true;
    for (;;) {
        status = hfsbi_log_once(reader, request, err);
        if (reader->ended || reader->status != HFSB_OK) return status;
        if (reader->new_ones) failures = quiet = 0;
        if (status == HFSB_OK && !follow) return status;
        quiet++;
        if (status == HFSB_OK ||
            (follow && status == HFSB_TIMEOUT && request->opened)) {
            status = hfsbi_log_job_ended(reader, space, job, &ended, err);
            if (status != HFSB_OK) return status;
            if (ended) return hfsbi_ok(err);
            hfsbi_log_drop_tail(reader, request);
            status = hfsbi_log_pause(reader, request, quiet, err);
            if (status != HFSB_OK) return status;
            continue;
        }
        /* a stream that broke is worth another try whatever was sent */
        if (!request->again && status != HFSB_LOST && status != HFSB_TIMEOUT)
            return status;
        if (++failures >= reader->hub->tries ||
            !hfsbi_hub_has_time(reader->hub, request, quiet))
            return status;
        hfsbi_log_drop_tail(reader, request);
        if (!hfsbi_hub_wait(reader->hub, request, quiet, err))
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

/* ---- names ---- */

/* Ids and namespaces stand in a target as they are. */
static hfsb_status hfsbi_job_check_name(hfsb_str name, const char *what,
                                        hfsb_err *err) {
    size_t i;
    bool   ok = name.len > 0 && name.len <= 96 && name.ptr[0] != '.';
    for (i = 0; ok && i < name.len; i++) {
        char l = hfsbi_lower(name.ptr[i]);
        ok = (l >= 'a' && l <= 'z') || (l >= '0' && l <= '9') || l == '-' ||
             l == '_' || l == '.';
    }
    if (ok) return HFSB_OK;
    (void)hfsbi_fail(err, HFSB_ARG, 0, "\"");
    hfsbi_err_quote(err, name, 100);
    hfsbi_err_add(err, "\" is not the %s.", what);
    return HFSB_ARG;
}

/* Appends /api/jobs/{space}; whose jobs they are is asked for when space is
   empty. */
static hfsb_status hfsbi_job_space(hfsb_hub *hub, hfsbi_hub_request *request,
                                   hfsb_str space, hfsb_err *err) {
    hfsb_status status;
    if (space.len) {
        status =
            hfsbi_job_check_name(space, "name of a user or organisation", err);
        if (status != HFSB_OK) return status;
    }
    status = hfsb_buf_append(&request->target, HFSB_LIT("/api/jobs/"));
    if (status == HFSB_OK && space.len)
        status = hfsb_buf_append(&request->target, space);
    if (status != HFSB_OK)
        return hfsbi_fail_status(err, status, request->what);
    if (space.len) return HFSB_OK;
    return hfsb_hub_user(hub, request->cancel, &request->target, err);
}

/* Makes the target of a request about a job, which is {rest} of it, and adds
   its id to what. */
static hfsb_status hfsbi_hub_job_target(hfsb_hub          *hub,
                                        hfsbi_hub_request *request,
                                        hfsb_str space, hfsb_str id,
                                        const char *rest, hfsb_err *err) {
    hfsb_status status = hfsbi_job_check_name(id, "id of a job", err);
    size_t      n = strlen(request->what);
    if (status != HFSB_OK) return status;
    (void)snprintf(request->what + n, sizeof request->what - n, " %.*s",
                   (int)id.len, id.ptr);
    status = hfsbi_job_space(hub, request, space, err);
    if (status != HFSB_OK) return status;
    status = hfsb_buf_printf(&request->target, "/%.*s%s", (int)id.len, id.ptr,
                             rest);
    if (status != HFSB_OK) hfsbi_fail_status(err, status, request->what);
    return status;
}

/* ---- what a job is to do ---- */

/* "30m" and the like. int(float * factor), as the Hub's own client has it. */
long long hfsb_hub_seconds(hfsb_str text) {
    double value = 0, unit = 1, place = 1;
    bool   point = false, digits = false;
    size_t i;
    if (text.len) switch (text.ptr[text.len - 1]) {
        case 'd': unit = 86400; break;
        case 'h': unit = 3600; break;
        case 'm': unit = 60; break;
        case 's': break;
        default: text.len++; /* a number alone */
        }
    else return 0;
    text.len--;
    for (i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '.' && !point) point = true;
        else if (c >= '0' && c <= '9' && i < 16) {
            value = value * 10 + (c - '0');
            place *= point ? 10 : 1;
            digits = true;
        } else return 0;
    }
    value = value / place * unit;
    return digits && value < 1e12 ? (long long)value : 0;
}

static hfsb_status hfsbi_job_check_spec(const hfsb_job_spec *spec,
                                        hfsb_err            *err) {
    hfsb_status status =
        hfsbi_hub_check_keys(spec->env, spec->env_count, 2, err);
    size_t i;
    if (status == HFSB_OK)
        status =
            hfsbi_hub_check_keys(spec->secrets, spec->secret_count, 1, err);
    for (i = 0; i < spec->label_count && status == HFSB_OK; i++)
        if (!spec->labels[i].key.len || spec->labels[i].key.len > 100 ||
            spec->labels[i].value.len > 100)
            status = hfsbi_fail(err, HFSB_ARG, 0,
                                "A job's label has a name, and name and "
                                "value are 100 characters at most.");
    if (status == HFSB_OK && spec->timeout.len &&
        hfsb_hub_seconds(spec->timeout) <= 0) {
        status = hfsbi_fail(err, HFSB_ARG, 0, "\"");
        hfsbi_err_quote(err, spec->timeout, 40);
        hfsbi_err_add(err, "\" is not a time for a job: give seconds, or a "
                           "number with s, m, h or d behind it (\"30m\").");
    }
    return status;
}

static void hfsbi_job_put_map(hfsb_json_writer *w, const char *key,
                              const hfsb_hub_pair *pairs, size_t count) {
    size_t i;
    hfsb_json_put_key(w, hfsb_cstr(key));
    hfsb_json_put_object(w);
    for (i = 0; i < count; i++) {
        hfsb_json_put_key(w, pairs[i].key);
        hfsb_json_put_str(w, pairs[i].value);
    }
    hfsb_json_put_end(w);
}

/* The page of a Space stands for the Space. */
static void hfsbi_job_put_image(hfsb_json_writer *w, hfsb_str image) {
    static const char *const pages[] = {
        "https://huggingface.co/spaces/", "https://hf.co/spaces/",
        "huggingface.co/spaces/", "hf.co/spaces/"};
    size_t i;
    for (i = 0; i < sizeof pages / sizeof *pages; i++) {
        hfsb_str page = hfsb_cstr(pages[i]);
        if (!hfsb_str_starts(image, page)) continue;
        hfsbi_hub_put(w, "spaceId",
                      hfsb_str_slice(image, page.len, image.len));
        return;
    }
    hfsbi_hub_put(w, "dockerImage", image);
}

/* Everything behind the command. */
static void hfsbi_job_put_rest(hfsb_json_writer *w, const hfsb_job_spec *spec,
                               hfsb_str image) {
    hfsb_json_put_key(w, HFSB_LIT("arguments"));
    hfsb_json_put_array(w);
    hfsb_json_put_end(w);
    hfsbi_job_put_map(w, "environment", spec->env, spec->env_count);
    hfsbi_hub_put(w, "flavor",
                  spec->flavor.len ? spec->flavor : HFSB_LIT("cpu-basic"));
    if (spec->secret_count)
        hfsbi_job_put_map(w, "secrets", spec->secrets, spec->secret_count);
    if (spec->timeout.len) {
        hfsb_json_put_key(w, HFSB_LIT("timeoutSeconds"));
        hfsb_json_put_int(w, hfsb_hub_seconds(spec->timeout));
    }
    if (spec->label_count)
        hfsbi_job_put_map(w, "labels", spec->labels, spec->label_count);
    hfsbi_job_put_image(w, spec->image.len ? spec->image : image);
    hfsb_json_put_end(w);
}

/* ---- running ---- */

/* Begins a request to run a job, its body up to the command's first word. */
static hfsb_status hfsbi_job_begin(hfsb_hub *hub, hfsbi_hub_request *request,
                                   const hfsb_job_spec *spec,
                                   const hfsb_cancel   *cancel,
                                   hfsb_json_writer *w, hfsb_err *err) {
    hfsb_status status = hfsbi_job_check_spec(spec, err);
    hfsbi_hub_begin(hub, request, "POST", cancel, "run a job");
    if (status == HFSB_OK)
        status = hfsbi_job_space(hub, request, spec->space, err);
    if (status != HFSB_OK) return status;
    request->secrets = spec->secrets;
    request->secret_count = spec->secret_count;
    hfsb_json_writer_init(w, &request->body, NULL);
    hfsb_json_put_object(w);
    hfsb_json_put_key(w, HFSB_LIT("command"));
    hfsb_json_put_array(w);
    return HFSB_OK;
}

/* Sends it, once: a second time would be a second job. */
static hfsb_status hfsbi_job_send(hfsb_hub *hub, hfsbi_hub_request *request,
                                  hfsb_json_writer *w, hfsb_json_doc *out,
                                  hfsb_err *err) {
    hfsb_status status;
    request->out = out;
    status = hfsbi_hub_send_json(hub, request, w, err);
    if (status != HFSB_OK && request->unclear)
        hfsbi_err_add(err, " The job may run all the same: look at the list "
                           "of jobs before you run it again.");
    return status;
}

hfsb_status hfsb_hub_job_run(hfsb_hub *hub, const hfsb_job_spec *spec,
                             const hfsb_cancel *cancel, hfsb_json_doc *out,
                             hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_json_writer  w;
    hfsb_status       status;
    size_t            i;
    if (!spec->command_count)
        return hfsbi_fail(err, HFSB_ARG, 0, "A job needs a command.");
    status = hfsbi_job_begin(hub, &request, spec, cancel, &w, err);
    if (status == HFSB_OK) {
        for (i = 0; i < spec->command_count; i++)
            hfsb_json_put_str(&w, spec->command[i]);
        hfsb_json_put_end(&w);
        hfsbi_job_put_rest(&w, spec, HFSB_LIT("python:3.12"));
        status = hfsbi_job_send(hub, &request, &w, out, err);
    }
    hfsbi_hub_end(&request);
    return status;
}

/* ---- scripts ---- */

/* " word", quoted for a shell where it must be. */
static void hfsbi_job_quote(hfsb_buf *sink, hfsb_str word) {
    size_t i;
    bool   plain = word.len > 0;
    for (i = 0; plain && i < word.len; i++) {
        char l = hfsbi_lower(word.ptr[i]);
        plain = (l >= 'a' && l <= 'z') || (l >= '0' && l <= '9') ||
                (l && strchr("@%+=:,./-_", l));
    }
    hfsb_buf_append_byte(sink, ' ');
    if (plain) {
        hfsb_buf_append(sink, word);
        return;
    }
    hfsb_buf_append_byte(sink, '\'');
    for (i = 0; i < word.len; i++)
        if (word.ptr[i] == '\'') hfsb_buf_append(sink, HFSB_LIT("'\"'\"'"));
        else hfsb_buf_append_byte(sink, word.ptr[i]);
    hfsb_buf_append_byte(sink, '\'');
}

/* "uv run --with a -p 3.12 {script} args" for a shell; script is put as it is.
 */
static void hfsbi_job_put_line(hfsb_buf *sink, const hfsb_job_spec *spec,
                               hfsb_str script) {
    size_t i;
    hfsb_buf_append(sink, HFSB_LIT("uv run"));
    for (i = 0; i < spec->with_count; i++) {
        hfsb_buf_append(sink, HFSB_LIT(" --with"));
        hfsbi_job_quote(sink, spec->with[i]);
    }
    if (spec->python.len) {
        hfsb_buf_append(sink, HFSB_LIT(" -p"));
        hfsbi_job_quote(sink, spec->python);
    }
    hfsb_buf_append_byte(sink, ' ');
    hfsb_buf_append(sink, script);
    for (i = 0; i < spec->arg_count; i++) hfsbi_job_quote(sink, spec->args[i]);
}

/* What a shell must do: the text decoded into uv, or a line of command. */
static hfsb_status hfsbi_job_shell(const hfsb_job_spec *spec, hfsb_buf *line) {
    size_t mark = line->len;
    if (!spec->is_source) {
        hfsbi_job_put_line(line, spec, spec->script);
        return hfsb_buf_finish(line, mark);
    }
    hfsb_buf_append(line, HFSB_LIT("echo \""));
    if (line->status == HFSB_OK)
        line->status = hfsb_base64_encode(spec->script, line);
    hfsb_buf_append(line, HFSB_LIT("\" | base64 -d | "));
    hfsbi_job_put_line(line, spec, HFSB_LIT("-"));
    return hfsb_buf_finish(line, mark);
}

/* A command of several words needs a shell to take it apart; what is one word
   (a URL, a path, a program) does not. */
static bool hfsbi_job_is_line(hfsb_str script) {
    size_t i;
    if (hfsb_script_classify(script) != HFSB_SCRIPT_COMMAND) return false;
    for (i = 0; i < script.len; i++)
        if (script.ptr[i] == ' ' || script.ptr[i] == '\t') return true;
    return false;
}

static hfsb_status hfsbi_job_put_script(hfsb_json_writer    *w,
                                        const hfsb_job_spec *spec,
                                        const hfsb_alloc    *alloc) {
    hfsb_buf    line = HFSB_INIT;
    hfsb_status status = HFSB_OK;
    size_t      i;
    if (spec->is_source || hfsbi_job_is_line(spec->script)) {
        line.alloc = *alloc;
        status = hfsbi_job_shell(spec, &line);
        hfsb_json_put_str(w, HFSB_LIT("/bin/sh"));
        hfsb_json_put_str(w, HFSB_LIT("-lc"));
        hfsb_json_put_str(w, hfsb_buf_str(&line));
        hfsb_buf_free(&line);
        return status;
    }
    hfsb_json_put_str(w, HFSB_LIT("uv"));
    hfsb_json_put_str(w, HFSB_LIT("run"));
    for (i = 0; i < spec->with_count; i++) {
        hfsb_json_put_str(w, HFSB_LIT("--with"));
        hfsb_json_put_str(w, spec->with[i]);
    }
    if (spec->python.len) {
        hfsb_json_put_str(w, HFSB_LIT("--python"));
        hfsb_json_put_str(w, spec->python);
    }
    hfsb_json_put_str(w, spec->script);
    for (i = 0; i < spec->arg_count; i++) hfsb_json_put_str(w, spec->args[i]);
    return HFSB_OK;
}

enum { HFSBI_JOB_SOURCE = 90000 };

hfsb_status hfsb_hub_job_script(hfsb_hub *hub, const hfsb_job_spec *spec,
                                const hfsb_cancel *cancel, hfsb_json_doc *out,
                                hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_json_writer  w;
    hfsb_status       status;
    if (!spec->script.len)
        return hfsbi_fail(err, HFSB_ARG, 0, "A job needs a script.");
    if (spec->is_source && spec->script.len > HFSBI_JOB_SOURCE)
        return hfsbi_fail(
            err, HFSB_LIMIT, 0,
            "The script has %zu bytes; %d is what fits into the arguments of "
            "a job. Put it into a file of a repository on the Hub (a Space "
            "will do) and give its URL "
            "(https://huggingface.co/.../resolve/main/script.py), or have a "
            "short script fetch the rest.",
            spec->script.len, (int)HFSBI_JOB_SOURCE);
    status = hfsbi_job_begin(hub, &request, spec, cancel, &w, err);
    if (status == HFSB_OK) {
        status = hfsbi_job_put_script(&w, spec, &hub->alloc);
        if (status != HFSB_OK) hfsbi_fail_status(err, status, request.what);
    }
    if (status == HFSB_OK) {
        hfsb_json_put_end(&w);
        hfsbi_job_put_rest(
            &w, spec, HFSB_LIT("ghcr.io/astral-sh/uv:python3.12-bookworm"));
        status = hfsbi_job_send(hub, &request, &w, out, err);
    }
    hfsbi_hub_end(&request);
    return status;
}

/* ---- the others ---- */

static hfsb_status hfsbi_job_call(hfsb_hub *hub, const char *method,
                                  const char *what, hfsb_str space,
                                  hfsb_str id, const char *rest,
                                  const hfsb_cancel *cancel,
                                  hfsb_json_doc *out, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_status       status;
    hfsbi_hub_begin(hub, &request, method, cancel, "%s", what);
    request.repeat = true;
    request.out = out;
    status = hfsbi_hub_job_target(hub, &request, space, id, rest, err);
    if (status == HFSB_OK) status = hfsbi_hub_send(hub, &request, err);
    hfsbi_hub_end(&request);
    return status;
}

hfsb_status hfsb_hub_job(hfsb_hub *hub, hfsb_str space, hfsb_str id,
                         const hfsb_cancel *cancel, hfsb_json_doc *out,
                         hfsb_err *err) {
    return hfsbi_job_call(hub, "GET", "look at job", space, id, "", cancel,
                          out, err);
}

hfsb_status hfsb_hub_job_cancel(hfsb_hub *hub, hfsb_str space, hfsb_str id,
                                const hfsb_cancel *cancel, hfsb_json_doc *out,
                                hfsb_err *err) {
    return hfsbi_job_call(hub, "POST", "cancel job", space, id, "/cancel",
                          cancel, out, err);
}

hfsb_status hfsb_hub_jobs(hfsb_hub *hub, hfsb_str space,
                          bool (*each)(void *user, const hfsb_json_value *job),
                          void *user, const hfsb_cancel *cancel,
                          hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_status       status;
    hfsbi_hub_begin(hub, &request, "GET", cancel, "list jobs");
    status = hfsbi_job_space(hub, &request, space, err);
    if (status == HFSB_OK)
        status = hfsbi_hub_pages(hub, &request, 0, each, user, err);
    hfsbi_hub_end(&request);
    return status;
}
