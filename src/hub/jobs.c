/* jobs.c - logs of Spaces and jobs, and jobs: run, inspect, list, cancel.

   A log is a stream of server-sent events without ids. When it breaks while it
   is followed, it is opened again and starts from the beginning, so the reader
   skips the events that it has already delivered: by their number, or, after
   ?tail=N, by the time of the last one. The log of a job is followed until the
   job has ended; one that still waits to be scheduled has an empty log that
   ends at once.

       connect --> events --> end of stream --> job ended? --yes--> done
          ^                     | broken            | no
          +------- wait <-------+-------------------+

   A job is never started twice: after a lost answer the caller must check. */
#include "hub_private.h"

/* A log, across its connections. */
typedef struct hfsbi_log_reader {
    hfsb_hub            *hub;
    const hfsb_log_opts *opts;
    hfsb_log_line_fn     fn;
    void                *user;
    hfsb_sse             sse;
    bool                 of_job;
    bool                 ended;    /* fn returned false */
    bool                 by_time;  /* skip by time, not by count */
    bool                 progress; /* this connection brought new events */
    size_t               count;    /* events delivered, of all connections */
    size_t               at;       /* events of this connection */
    char                 time[64]; /* of the last event delivered */
    size_t               at_time;  /* events delivered with that time */
    size_t               seen;     /* ... skipped in this connection */
    hfsb_status          status;   /* of a failure in a callback */
} hfsbi_log_reader;

/* ---- events ---- */

/* True when the event was delivered before the connection broke. */
static bool hfsbi_log_is_old(hfsbi_log_reader *reader, hfsb_str time) {
    int order;
    if (!reader->by_time) return reader->at <= reader->count;
    if (!time.len || time.len >= sizeof reader->time) return false;
    order = strncmp(time.ptr, reader->time, time.len);
    if (order == 0 && reader->time[time.len]) order = -1;
    if (order != 0) return order < 0;
    return reader->seen++ < reader->at_time;
}

/* Records an event as delivered. */
static void hfsbi_log_note(hfsbi_log_reader *reader, hfsb_str time) {
    if (!reader->by_time) reader->count = reader->at;
    if (!time.len || time.len >= sizeof reader->time) return;
    if (hfsb_str_equal(time, hfsb_cstr(reader->time))) {
        reader->at_time++;
        return;
    }
    memcpy(reader->time, time.ptr, time.len);
    reader->time[time.len] = '\0';
    reader->at_time = 1;
    reader->seen = 1; /* the next event of that time is new */
}

/* Delivers text line by line; false when fn ends it. */
static bool hfsbi_log_deliver(hfsbi_log_reader *reader, hfsb_str text,
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
    if (!hfsbi_log_is_old(reader, time)) {
        hfsbi_log_note(reader, time);
        reader->progress = true;
        if (hfsb_json_type_of(hfsb_json_get(doc.root, "data")) ==
                HFSB_JSON_STRING &&
            !(reader->of_job && hfsb_str_starts(text, started)))
            reader->ended = !hfsbi_log_deliver(reader, text, time);
    }
    hfsb_json_free(&doc);
    return !reader->ended;
}

/* One event. Each line of its data that is an object is an entry, in case an
   empty line between two events is missing; anything else only keeps the
   connection alive. */
static bool hfsbi_log_event(hfsbi_log_reader *reader, hfsb_str data) {
    hfsb_str line;
    bool     go = true;
    while (go && hfsbi_list_next(&data, '\n', &line))
        if (hfsb_str_starts(line, HFSB_LIT("{")))
            go = hfsbi_log_entry(reader, line);
    return go;
}

static bool hfsbi_log_piece(void *user, hfsb_str piece) {
    hfsbi_log_reader *reader = (hfsbi_log_reader *)user;
    hfsb_sse         *sse = &reader->sse;
    while (hfsb_sse_next(sse, &piece))
        if (!hfsbi_log_event(reader, hfsb_buf_str(&sse->data))) return false;
    if (sse->status != HFSB_OK) reader->status = sse->status;
    return sse->status == HFSB_OK;
}

/* ---- connections ---- */

static void hfsbi_log_connect(hfsbi_log_reader *reader) {
    hfsb_sse_free(&reader->sse);
    memset(&reader->sse, 0, sizeof reader->sse);
    reader->sse.line.alloc = reader->sse.event.alloc = reader->sse.data.alloc =
        reader->hub->alloc;
    reader->at = reader->seen = 0;
    reader->progress = false;
}

/* Reads the stream until it ends or breaks. */
static hfsb_status hfsbi_log_once(hfsbi_log_reader  *reader,
                                  hfsbi_hub_request *request, hfsb_err *err) {
    hfsb_status status;
    hfsbi_log_connect(reader);
    status = hfsbi_hub_once(request, err);
    if (status == HFSB_OK) /* the last event may lack its empty line */
        (void)hfsbi_log_piece(reader, HFSB_LIT("\n\n"));
    if (reader->ended) return hfsbi_ok(err);
    if (reader->status != HFSB_OK)
        return hfsbi_fail_status(err, reader->status, request->what);
    if (status == HFSB_TIMEOUT && request->opened && !reader->opts->follow)
        return hfsbi_ok(err); /* silence: this is all there is now */
    return status;
}

HFSBI_FN bool hfsbi_job_is_final(hfsb_str stage) {
    static const char *const final[] = {"COMPLETED", "CANCELED", "CANCELLED",
                                        "ERROR",     "DELETED",  "DELETING",
                                        "STOPPED",   "PAUSED"};
    size_t                   i;
    for (i = 0; i < sizeof final / sizeof *final; i++)
        if (hfsb_str_equal(stage, hfsb_cstr(final[i]))) return true;
    return false;
}

HFSBI_FN hfsb_str hfsbi_job_stage(const hfsb_json_value *job) {
    return hfsbi_json_get_str(hfsb_json_get(job, "status"), "stage");
}

/* *ended: whether the job has ended; one that waits to be run has not. */
static hfsb_status hfsbi_log_job_ended(hfsbi_log_reader *reader,
                                       hfsb_str space, hfsb_str id,
                                       bool *ended, hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   status;
    doc.alloc = reader->hub->alloc;
    status =
        hfsb_hub_job(reader->hub, space, id, reader->opts->cancel, &doc, err);
    if (status != HFSB_OK) return status;
    *ended = hfsbi_job_is_final(hfsbi_job_stage(doc.root));
    hfsb_json_free(&doc);
    return HFSB_OK;
}

/* ---- following ---- */

/* Drops "?tail=N" for the next connection, and skips by time from there on. */
static void hfsbi_log_drop_tail(hfsbi_log_reader  *reader,
                                hfsbi_hub_request *request) {
    size_t at = hfsb_str_find_byte(hfsb_buf_str(&request->target), '?');
    if (at == HFSB_NPOS || !reader->count) return;
    hfsb_buf_truncate(&request->target, at);
    reader->by_time = true;
}

/* Waits before the log of a job that has not ended is read again. Nothing
   failed, so nothing is logged and no deadline applies. */
static hfsb_status hfsbi_log_pause(const hfsbi_retry *policy) {
    hfsbi_retry quiet = *policy;
    quiet.on_wait = NULL;
    quiet.deadline = 0;
    return hfsbi_retry_wait(&quiet);
}

/* Reads the log to its end. job empty: the log of a Space, which ends with its
   stream. A followed job that prints nothing for idle_ms, or whose stream ends
   early, is asked about; while it has not ended, the stream is opened again as
   often as it takes. */
static hfsb_status hfsbi_log_follow(hfsbi_log_reader  *reader,
                                    hfsbi_hub_request *request, hfsb_str owner,
                                    hfsb_str job, hfsb_err *err) {
    hfsbi_retry *retry = &request->retry;
    bool         follow = job.len && reader->opts->follow, ended = true;
    hfsb_status  status, wait;
    for (;;) {
        status = hfsbi_log_once(reader, request, err);
        if (reader->ended || reader->status != HFSB_OK) return status;
        if (reader->progress) hfsbi_retry_reset(retry);
        if (status == HFSB_OK && !follow) return status;
        if (status == HFSB_OK ||
            (follow && status == HFSB_TIMEOUT && request->opened)) {
            status = hfsbi_log_job_ended(reader, owner, job, &ended, err);
            if (status != HFSB_OK) return status;
            if (ended) return hfsbi_ok(err);
            wait = hfsbi_log_pause(retry);
            if (retry->waits < 16) retry->waits++;
        } else {
            /* a broken stream is worth another try whatever was sent */
            bool broken = status == HFSB_LOST || status == HFSB_TIMEOUT;
            if (!request->again && !broken) return status;
            wait = hfsbi_retry_again(retry);
        }
        if (wait == HFSB_LIMIT) return status;
        if (wait == HFSB_CANCELLED)
            return hfsbi_fail(err, wait, 0, "Cancelled: could not %s.",
                              request->what);
        hfsbi_log_drop_tail(reader, request);
    }
}

/* Reads the log of a request that has begun. */
static hfsb_status hfsbi_log_run(hfsbi_hub_request   *request,
                                 const hfsb_log_opts *opts, hfsb_str owner,
                                 hfsb_str job, hfsb_log_line_fn fn, void *user,
                                 hfsb_err *err) {
    hfsb_hub        *hub = request->hub;
    hfsbi_log_reader reader = HFSB_INIT;
    hfsb_status      status = HFSB_OK;
    reader.hub = hub;
    reader.opts = opts;
    reader.fn = fn;
    reader.user = user;
    reader.of_job = job.len != 0;
    request->on_body = hfsbi_log_piece;
    request->user = &reader;
    request->idle_ms = opts->idle_ms > 0 ? opts->idle_ms
                       : opts->follow    ? 120000
                                         : 5000;
    /* a stream of nothing but keep-alives is never silent */
    if (!opts->follow && hub->timeout_ms < LLONG_MAX / 2)
        request->retry.deadline = hfsb_clock_ms() + hub->timeout_ms;
    if (opts->tail)
        status = hfsb_buf_printf(&request->target, "?tail=%zu", opts->tail);
    if (status != HFSB_OK) hfsbi_fail_status(err, status, request->what);
    else status = hfsbi_log_follow(&reader, request, owner, job, err);
    hfsb_sse_free(&reader.sse);
    return status;
}

hfsb_status hfsb_hub_space_logs(hfsb_hub *hub, hfsb_str id, const char *which,
                                const hfsb_log_opts *opts, hfsb_log_line_fn fn,
                                void *user, hfsb_err *err) {
    const hfsb_log_opts defaults = HFSB_INIT;
    const hfsb_str      none = HFSB_INIT;
    hfsbi_hub_request   request;
    hfsb_status         status;
    if (!which || (strcmp(which, "build") != 0 && strcmp(which, "run") != 0))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A Space has two logs, \"build\" and \"run\".");
    if (!opts) opts = &defaults;
    status = hfsbi_hub_begin(hub, &request, HFSBI_HUB_SPACE_LOGS, id,
                             hfsb_cstr(which), opts->cancel, err);
    if (status == HFSB_OK)
        status = hfsbi_log_run(&request, opts, none, none, fn, user, err);
    hfsbi_hub_end(&request);
    return status;
}

/* ---- the body of a job ---- */

/* int(float * factor), as in the Hub's own client. */
HFSBI_FN long long hfsbi_hub_seconds(hfsb_str text) {
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
        else if (hfsbi_is_digit(c) && i < 16) {
            value = value * 10 + (c - '0');
            place *= point ? 10 : 1;
            digits = true;
        } else return 0;
    }
    value = value / place * unit;
    return digits && value < 1e12 ? (long long)value : 0;
}

static bool hfsbi_job_is_label(hfsb_str text) {
    size_t i;
    for (i = 0; i < text.len; i++)
        if (!hfsbi_is_word_char(text.ptr[i]) && text.ptr[i] != '-' &&
            text.ptr[i] != '.')
            return false;
    return text.len <= 100;
}

static hfsb_status hfsbi_job_check_label(hfsb_str key, hfsb_str value,
                                         hfsb_err *err) {
    if (key.len && hfsbi_job_is_label(key) && hfsbi_job_is_label(value))
        return HFSB_OK;
    (void)hfsbi_fail(err, HFSB_ARG, 0, "The label \"");
    hfsbi_err_quote(err, key, 60);
    hfsbi_err_add(err, "\" = \"");
    hfsbi_err_quote(err, value, 60);
    hfsbi_err_add(err, "\" is invalid: a job's label needs a name, and name "
                       "and value must have at most 100 characters, letters, "
                       "digits, \".\", \"_\" and \"-\".");
    return HFSB_ARG;
}

static hfsb_status hfsbi_job_check_volume(const hfsb_job_volume *volume,
                                          hfsb_err              *err) {
    static const char types[] = "model dataset space bucket";
    if (hfsbi_list_has(hfsb_cstr(types), ' ', volume->type) &&
        volume->source.len && hfsb_str_starts(volume->mount, HFSB_LIT("/")))
        return HFSB_OK;
    return hfsbi_fail(err, HFSB_ARG, 0,
                      "A job's volume is TYPE:OWNER/NAME[@REVISION]:/MOUNT "
                      "with \":ro\" or \":rw\" at its end, or nothing; TYPE "
                      "is model, dataset, space or bucket.");
}

hfsb_status hfsb_job_volume_parse(hfsb_str text, hfsb_job_volume *out,
                                  hfsb_err *err) {
    size_t      colon = hfsb_str_find_byte(text, ':'), at;
    hfsb_status status;
    memset(out, 0, sizeof *out);
    out->read_only = hfsb_str_ends(text, HFSB_LIT(":ro"));
    if (out->read_only || hfsb_str_ends(text, HFSB_LIT(":rw"))) text.len -= 3;
    if (colon != HFSB_NPOS && colon < text.len) {
        out->type = hfsb_str_slice(text, 0, colon);
        text = hfsb_str_slice(text, colon + 1, text.len);
        colon = hfsb_str_find_byte(text, ':');
        out->source = hfsb_str_slice(text, 0, colon);
        if (colon != HFSB_NPOS)
            out->mount = hfsb_str_slice(text, colon + 1, text.len);
        at = hfsb_str_find_byte(out->source, '@');
        if (at != HFSB_NPOS) {
            out->revision =
                hfsb_str_slice(out->source, at + 1, out->source.len);
            out->source.len = at;
        }
    }
    status = hfsbi_job_check_volume(out, err);
    if (status != HFSB_OK) memset(out, 0, sizeof *out);
    return status == HFSB_OK ? hfsbi_ok(err) : status;
}

/* A name such as "@daily", or the 5 to 7 fields of cron; the Hub knows which
   of them are valid. */
static hfsb_status hfsbi_job_check_schedule(hfsb_str text, hfsb_err *err) {
    size_t i, fields = 0;
    for (i = 0; i < text.len; i++)
        fields += text.ptr[i] != ' ' && (!i || text.ptr[i - 1] == ' ');
    if (!text.len || (text.ptr[0] == '@' && fields == 1) ||
        (fields >= 5 && fields <= 7))
        return HFSB_OK;
    (void)hfsbi_fail(err, HFSB_ARG, 0, "\"");
    hfsbi_err_quote(err, text, 40);
    hfsbi_err_add(err, "\" is not a valid schedule of a job: expected "
                       "@hourly, @daily, @weekly, @monthly or @yearly, or "
                       "the 5 to 7 fields of cron (\"0 9 * * 1\").");
    return HFSB_ARG;
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
        status = hfsbi_job_check_label(spec->labels[i].key,
                                       spec->labels[i].value, err);
    if (status == HFSB_OK && spec->name.len)
        status = hfsbi_job_check_label(HFSB_LIT("name"), spec->name, err);
    for (i = 0; i < spec->volume_count && status == HFSB_OK; i++)
        status = hfsbi_job_check_volume(&spec->volumes[i], err);
    for (i = 0; i < spec->port_count && status == HFSB_OK; i++)
        if (!spec->ports[i] || spec->ports[i] > 65535)
            status = hfsbi_fail(err, HFSB_ARG, 0,
                                "%u is not a port: expected 1 to 65535.",
                                spec->ports[i]);
    if (status == HFSB_OK && spec->timeout.len &&
        hfsbi_hub_seconds(spec->timeout) <= 0) {
        status = hfsbi_fail(err, HFSB_ARG, 0, "\"");
        hfsbi_err_quote(err, spec->timeout, 40);
        hfsbi_err_add(err, "\" is not a valid timeout of a job: expected "
                           "seconds, or a number followed by s, m, h or d "
                           "(\"30m\").");
    }
    if (status == HFSB_OK)
        status = hfsbi_job_check_schedule(spec->schedule, err);
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

/* Puts the labels, and the name as one more. */
static void hfsbi_job_put_labels(hfsb_json_writer    *w,
                                 const hfsb_job_spec *spec) {
    size_t i;
    if (!spec->label_count && !spec->name.len) return;
    hfsb_json_put_key(w, HFSB_LIT("labels"));
    hfsb_json_put_object(w);
    for (i = 0; i < spec->label_count; i++)
        if (!spec->name.len ||
            !hfsb_str_equal(spec->labels[i].key, HFSB_LIT("name"))) {
            hfsb_json_put_key(w, spec->labels[i].key);
            hfsb_json_put_str(w, spec->labels[i].value);
        }
    if (spec->name.len) hfsbi_hub_put(w, "name", spec->name);
    hfsb_json_put_end(w);
}

static void hfsbi_job_put_volumes(hfsb_json_writer    *w,
                                  const hfsb_job_spec *spec) {
    size_t i;
    if (!spec->volume_count) return;
    hfsb_json_put_key(w, HFSB_LIT("volumes"));
    hfsb_json_put_array(w);
    for (i = 0; i < spec->volume_count; i++) {
        const hfsb_job_volume *volume = &spec->volumes[i];
        hfsb_json_put_object(w);
        hfsbi_hub_put(w, "type", volume->type);
        hfsbi_hub_put(w, "source", volume->source);
        hfsbi_hub_put(w, "mountPath", volume->mount);
        if (volume->revision.len)
            hfsbi_hub_put(w, "revision", volume->revision);
        if (volume->read_only) {
            hfsb_json_put_key(w, HFSB_LIT("readOnly"));
            hfsb_json_put_bool(w, true);
        }
        hfsb_json_put_end(w);
    }
    hfsb_json_put_end(w);
}

/* No port is reachable without the owner's token. */
static void hfsbi_job_put_ports(hfsb_json_writer    *w,
                                const hfsb_job_spec *spec) {
    size_t i;
    if (!spec->port_count) return;
    hfsb_json_put_key(w, HFSB_LIT("expose"));
    hfsb_json_put_object(w);
    hfsb_json_put_key(w, HFSB_LIT("ports"));
    hfsb_json_put_array(w);
    for (i = 0; i < spec->port_count; i++)
        hfsb_json_put_int(w, (long long)spec->ports[i]);
    hfsb_json_put_end(w);
    hfsb_json_put_key(w, HFSB_LIT("portsPublic"));
    hfsb_json_put_array(w);
    hfsb_json_put_end(w);
    hfsb_json_put_end(w);
}

/* A Space's page as the image means the Space itself. */
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

/* Puts all members after the command, and ends the object. */
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
        hfsb_json_put_int(w, hfsbi_hub_seconds(spec->timeout));
    }
    hfsbi_job_put_labels(w, spec);
    hfsbi_job_put_volumes(w, spec);
    hfsbi_job_put_ports(w, spec);
    hfsbi_job_put_image(w, spec->image.len ? spec->image : image);
    hfsb_json_put_end(w);
}

/* ---- scripts ---- */

/* Appends a blank and a word, quoted for a shell where necessary. */
static void hfsbi_job_quote(hfsb_buf *out, hfsb_str word) {
    size_t i;
    bool   plain = word.len > 0;
    for (i = 0; plain && i < word.len; i++)
        plain = hfsbi_is_word_char(word.ptr[i]) ||
                (word.ptr[i] && strchr("@%+=:,./-", word.ptr[i]));
    hfsb_buf_append_byte(out, ' ');
    if (plain) {
        hfsb_buf_append(out, word);
        return;
    }
    hfsb_buf_append_byte(out, '\'');
    for (i = 0; i < word.len; i++)
        if (word.ptr[i] == '\'') hfsb_buf_append(out, HFSB_LIT("'\"'\"'"));
        else hfsb_buf_append_byte(out, word.ptr[i]);
    hfsb_buf_append_byte(out, '\'');
}

/* Appends "uv run --with a -p 3.12 {script} args" for a shell; script is not
   quoted. */
static void hfsbi_job_put_line(hfsb_buf *out, const hfsb_job_spec *spec,
                               hfsb_str script) {
    size_t i;
    hfsb_buf_append(out, HFSB_LIT("uv run"));
    for (i = 0; i < spec->with_count; i++) {
        hfsb_buf_append(out, HFSB_LIT(" --with"));
        hfsbi_job_quote(out, spec->with[i]);
    }
    if (spec->python.len) {
        hfsb_buf_append(out, HFSB_LIT(" -p"));
        hfsbi_job_quote(out, spec->python);
    }
    hfsb_buf_append_byte(out, ' ');
    hfsb_buf_append(out, script);
    for (i = 0; i < spec->arg_count; i++) hfsbi_job_quote(out, spec->args[i]);
}

/* Appends the shell's command line: source text is decoded into uv's input. */
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

/* True for a command of several words, which needs a shell to split it; a URL,
   a path or a program does not. */
static bool hfsbi_job_is_line(hfsb_str script) {
    size_t i;
    if (hfsb_script_classify(script) != HFSB_SCRIPT_COMMAND) return false;
    for (i = 0; i < script.len; i++)
        if (script.ptr[i] == ' ' || script.ptr[i] == '\t') return true;
    return false;
}

/* Puts the words of the command that runs the script. */
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

/* ---- running a job ---- */

/* Begins a request to run a job, and its body up to the command's first
   word. */
static hfsb_status hfsbi_job_begin(hfsb_hub *hub, hfsbi_hub_request *request,
                                   const hfsb_job_spec *spec,
                                   const hfsb_cancel *cancel, hfsb_err *err) {
    const hfsb_str    none = HFSB_INIT;
    hfsb_json_writer *w;
    hfsb_status       status = hfsbi_hub_begin(
              hub, request,
        spec->schedule.len ? HFSBI_HUB_SCHEDULE : HFSBI_HUB_JOB_RUN,
              spec->space, none, cancel, err);
    if (status != HFSB_OK) return status;
    request->secrets = spec->secrets;
    request->secret_count = spec->secret_count;
    w = hfsbi_hub_object(request);
    if (spec->schedule.len) {
        hfsb_json_put_key(w, HFSB_LIT("jobSpec"));
        hfsb_json_put_object(w);
    }
    hfsb_json_put_key(w, HFSB_LIT("command"));
    hfsb_json_put_array(w);
    return HFSB_OK;
}

/* Ends the command, completes the body, and sends it once: a second request
   would be a second job. */
static hfsb_status hfsbi_job_send(hfsbi_hub_request   *request,
                                  const hfsb_job_spec *spec, hfsb_str image,
                                  hfsb_json_doc *out, hfsb_err *err) {
    hfsb_status status;
    hfsb_json_put_end(&request->json);
    hfsbi_job_put_rest(&request->json, spec, image);
    if (spec->schedule.len) {
        hfsbi_hub_put(&request->json, "schedule", spec->schedule);
        if (spec->suspend) {
            hfsb_json_put_key(&request->json, HFSB_LIT("suspend"));
            hfsb_json_put_bool(&request->json, true);
        }
        hfsb_json_put_end(&request->json);
    }
    request->out = out;
    status = hfsbi_hub_send(request, err);
    if (status != HFSB_OK && request->unclear)
        hfsbi_err_add(err, " The job may run all the same: look at the list "
                           "of jobs before you run it again.");
    return status;
}

hfsb_status hfsb_hub_job_run(hfsb_hub *hub, const hfsb_job_spec *spec,
                             const hfsb_cancel *cancel, hfsb_json_doc *out,
                             hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_status       status = hfsbi_job_check_spec(spec, err);
    size_t            i;
    if (!spec->command_count)
        return hfsbi_fail(err, HFSB_ARG, 0, "A job needs a command.");
    if (status != HFSB_OK) return status;
    status = hfsbi_job_begin(hub, &request, spec, cancel, err);
    if (status == HFSB_OK) {
        for (i = 0; i < spec->command_count; i++)
            hfsb_json_put_str(&request.json, spec->command[i]);
        status =
            hfsbi_job_send(&request, spec, HFSB_LIT("python:3.12"), out, err);
    }
    hfsbi_hub_end(&request);
    return status;
}

enum { HFSBI_JOB_SOURCE = 90000 }; /* bytes that fit into the arguments */

hfsb_status hfsb_hub_job_script(hfsb_hub *hub, const hfsb_job_spec *spec,
                                const hfsb_cancel *cancel, hfsb_json_doc *out,
                                hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_status       status = hfsbi_job_check_spec(spec, err);
    if (!spec->script.len)
        return hfsbi_fail(err, HFSB_ARG, 0, "A job needs a script.");
    if (spec->is_source && spec->script.len > HFSBI_JOB_SOURCE)
        return hfsbi_fail(
            err, HFSB_LIMIT, 0,
            "The script has %zu bytes, but only %d fit into the arguments of "
            "a job. Put it into a file of a repository on the Hub (a Space "
            "will do) and pass its URL "
            "(https://huggingface.co/.../resolve/main/script.py), or let a "
            "short script fetch the rest.",
            spec->script.len, (int)HFSBI_JOB_SOURCE);
    if (status != HFSB_OK) return status;
    status = hfsbi_job_begin(hub, &request, spec, cancel, err);
    if (status == HFSB_OK) {
        status = hfsbi_job_put_script(&request.json, spec, &hub->alloc);
        if (status != HFSB_OK) hfsbi_fail_status(err, status, request.what);
    }
    if (status == HFSB_OK)
        status = hfsbi_job_send(
            &request, spec,
            HFSB_LIT("ghcr.io/astral-sh/uv:python3.12-bookworm"), out, err);
    hfsbi_hub_end(&request);
    return status;
}

/* ---- other calls ---- */

static hfsb_status hfsbi_job_call(hfsb_hub *hub, hfsbi_hub_endpoint endpoint,
                                  hfsb_str owner, hfsb_str id,
                                  const hfsb_cancel *cancel,
                                  hfsb_json_doc *out, hfsb_err *err) {
    hfsbi_hub_request request;
    hfsb_status       status =
        hfsbi_hub_begin(hub, &request, endpoint, owner, id, cancel, err);
    request.out = out;
    if (status == HFSB_OK) status = hfsbi_hub_send(&request, err);
    hfsbi_hub_end(&request);
    return status;
}

hfsb_status hfsb_hub_job(hfsb_hub *hub, hfsb_str space, hfsb_str id,
                         const hfsb_cancel *cancel, hfsb_json_doc *out,
                         hfsb_err *err) {
    return hfsbi_job_call(hub, HFSBI_HUB_JOB, space, id, cancel, out, err);
}

hfsb_status hfsb_hub_job_cancel(hfsb_hub *hub, hfsb_str space, hfsb_str id,
                                const hfsb_cancel *cancel, hfsb_json_doc *out,
                                hfsb_err *err) {
    return hfsbi_job_call(hub, HFSBI_HUB_JOB_CANCEL, space, id, cancel, out,
                          err);
}

/* Appends ?label=k=v&stage=S, percent-encoded. */
static hfsb_status hfsbi_job_put_filter(const hfsb_job_filter *filter,
                                        hfsb_buf *target, hfsb_err *err) {
    hfsb_status status = HFSB_OK;
    char        mark = '?';
    size_t      i;
    for (i = 0; i < filter->label_count && status == HFSB_OK; i++) {
        const hfsb_hub_pair *label = &filter->labels[i];
        status = hfsbi_job_check_label(label->key, label->value, err);
        if (status != HFSB_OK) return status;
        hfsb_buf_printf(target, "%clabel=", mark);
        hfsbi_hub_put_encoded(target, label->key);
        hfsb_buf_append_byte(target, '=');
        hfsbi_hub_put_encoded(target, label->value);
        mark = '&';
    }
    for (i = 0; i < filter->stage_count; i++) {
        hfsb_buf_printf(target, "%cstage=", mark);
        hfsbi_hub_put_encoded(target, filter->stages[i]);
        mark = '&';
    }
    if (target->status == HFSB_OK) return HFSB_OK;
    return hfsbi_fail_status(err, target->status, "list jobs");
}

hfsb_status hfsb_hub_jobs(hfsb_hub *hub, const hfsb_job_filter *filter,
                          bool (*each)(void *user, const hfsb_json_value *job),
                          void *user, const hfsb_cancel *cancel,
                          hfsb_err *err) {
    const hfsb_job_filter all = HFSB_INIT;
    const hfsb_str        none = HFSB_INIT;
    hfsbi_hub_request     request;
    hfsb_status           status;
    if (!filter) filter = &all;
    status = hfsbi_hub_begin(hub, &request, HFSBI_HUB_JOBS, filter->space,
                             none, cancel, err);
    if (status == HFSB_OK)
        status = hfsbi_job_put_filter(filter, &request.target, err);
    if (status == HFSB_OK)
        status = hfsbi_hub_pages(&request, 0, each, user, err);
    hfsbi_hub_end(&request);
    return status;
}

hfsb_status hfsb_hub_job_wait(hfsb_hub *hub, hfsb_str space, hfsb_str id,
                              long long poll_ms, const hfsb_cancel *cancel,
                              hfsb_json_doc *out, hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   status;
    if (poll_ms <= 0) poll_ms = 5000;
    for (;;) {
        doc.alloc = out->alloc;
        status = hfsb_hub_job(hub, space, id, cancel, &doc, err);
        if (status != HFSB_OK) return status;
        if (hfsbi_job_is_final(hfsbi_job_stage(doc.root))) break;
        hfsb_json_free(&doc);
        memset(&doc, 0, sizeof doc);
        if (!hfsb_cancel_wait(cancel, poll_ms))
            return hfsbi_fail(err, HFSB_CANCELLED, 0,
                              "Cancelled: no longer waiting for job %.*s, "
                              "which goes on.",
                              (int)id.len, id.ptr);
    }
    *out = doc;
    return hfsbi_ok(err);
}

hfsb_status hfsb_hub_scheduled(hfsb_hub *hub, hfsb_scheduled what,
                               hfsb_str space, hfsb_str id,
                               const hfsb_cancel *cancel, hfsb_json_doc *out,
                               hfsb_err *err) {
    static const hfsbi_hub_endpoint endpoints[] = {
        HFSBI_HUB_SCHEDULED_GET, HFSBI_HUB_SCHEDULED_DELETE,
        HFSBI_HUB_SCHEDULED_SUSPEND, HFSBI_HUB_SCHEDULED_RESUME,
        HFSBI_HUB_SCHEDULED_RUN};
    bool needed = what == HFSB_SCHEDULED_GET || what == HFSB_SCHEDULED_RUN;
    hfsbi_hub_request request;
    hfsb_status status = hfsbi_hub_begin(hub, &request, endpoints[what], space,
                                         id, cancel, err);
    if (needed) request.out = out;
    if (status == HFSB_OK) status = hfsbi_hub_send(&request, err);
    if (status == HFSB_OK && !needed && what != HFSB_SCHEDULED_DELETE)
        (void)hfsb_json_parse(hfsb_buf_str(&request.reply.body), NULL, out,
                              NULL);
    hfsbi_hub_end(&request);
    return status;
}

hfsb_status
hfsb_hub_scheduled_jobs(hfsb_hub *hub, hfsb_str space,
                        bool (*each)(void *user, const hfsb_json_value *job),
                        void *user, const hfsb_cancel *cancel, hfsb_err *err) {
    const hfsb_str    none = HFSB_INIT;
    hfsbi_hub_request request;
    hfsb_status       status =
        hfsbi_hub_begin(hub, &request, HFSBI_HUB_SCHEDULED_JOBS, space, none,
                        cancel, err);
    if (status == HFSB_OK)
        status = hfsbi_hub_pages(&request, 0, each, user, err);
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
    status = hfsbi_hub_begin(hub, &request, HFSBI_HUB_JOB_LOGS, space, id,
                             opts->cancel, err);
    if (status == HFSB_OK)
        status = hfsbi_log_run(&request, opts, space, id, fn, user, err);
    hfsbi_hub_end(&request);
    return status;
}
