/* hf_jobs.c - hf_jobs: jobs on the Hub, for a model.

   run starts a job from a script or a command, or with a schedule makes a
   scheduled job (hf_jobs_run.c). ps lists jobs, logs shows what one printed so
   far, inspect and cancel take a job_id. scheduled_... do the same for
   scheduled jobs.

   Text that the Hub or a job printed is shown without the session's secrets.
   It is masked before it is cut, so that no part of a secret remains. */
#include "hub_private.h"

enum {
    HFSBI_HF_JOBS_TEXT = 200,      /* characters of a name on the Hub */
    HFSBI_HF_JOBS_COMMAND = 300,   /* characters of a command */
    HFSBI_HF_JOBS_LISTED = 50,     /* jobs by ps */
    HFSBI_HF_JOBS_LABELS = 16,     /* by which ps selects */
    HFSBI_HF_JOBS_LINES = 2000,    /* of a log that are read */
    HFSBI_HF_JOBS_CHARS = 40000,   /* of a log that are shown, */
    HFSBI_HF_JOBS_HEAD = 1000,     /* this many of them from its start */
    HFSBI_HF_JOBS_IDLE_MS = 3000,  /* of silence end the reading of a log, */
    HFSBI_HF_JOBS_TOTAL_MS = 8000, /* and this in any case */
    HFSBI_HF_JOBS_NAME = 80        /* characters of an unknown operation */
};

/* ---- a job as the Hub describes it ---- */

/* A text member of a job, cut to a reasonable length; "" if there is none. */
static hfsb_str hfsbi_hf_jobs_text(const hfsb_json_value *job,
                                   const char            *key) {
    hfsb_str text = hfsbi_json_get_str(job, key);
    return hfsb_str_slice(text, 0, hfsb_utf8_offset(text, HFSBI_HF_JOBS_TEXT));
}

static hfsb_str hfsbi_hf_jobs_stage(const hfsb_json_value *job) {
    return hfsbi_hf_jobs_text(hfsb_json_get(job, "status"), "stage");
}

static bool hfsbi_hf_jobs_is_over(hfsb_str stage) {
    return !hfsb_str_equal(stage, HFSB_LIT("SCHEDULING")) &&
           !hfsb_str_equal(stage, HFSB_LIT("RUNNING")) &&
           !hfsb_str_equal(stage, HFSB_LIT("UPDATING"));
}

/* Adds id, stage and url of the job to the result. */
static hfsb_status hfsbi_hf_jobs_fields(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    const hfsb_json_value *job = c->job.root;
    hfsb_str               id = hfsbi_hf_jobs_text(job, "id");
    hfsb_str               stage = hfsbi_hf_jobs_stage(job);
    hfsb_str owner = hfsbi_hf_jobs_text(hfsb_json_get(job, "owner"), "name");
    hfsb_str endpoint = hfsb_hub_endpoint(c->session->opts.hub);
    hfsb_buf url = HFSB_INIT;
    hfsb_status st;
    hfsbi_build fields;
    if (!id.len || !stage.len)
        return hfsbi_fail(err, HFSB_REMOTE, 0,
                          "The Hub accepted the request but returned no job "
                          "id.");
    url.alloc = c->session->alloc;
    st = hfsb_buf_printf(&url, "%.*s/jobs/%.*s/%.*s", (int)endpoint.len,
                         endpoint.ptr, (int)owner.len, owner.ptr, (int)id.len,
                         id.ptr);
    if (st == HFSB_OK) {
        hfsbi_build_init(&fields, &c->session->alloc);
        hfsbi_build_object(&fields, NULL);
        hfsbi_build_str(&fields, "id", id);
        hfsbi_build_str(&fields, "stage", stage);
        hfsbi_build_str(&fields, "url", hfsb_buf_str(&url));
        hfsbi_build_end(&fields);
        hfsb_json_free(&c->result->fields);
        st = hfsbi_build_finish(&fields, &c->result->fields);
    }
    hfsb_buf_free(&url);
    return st;
}

/* Appends a text without the session's secrets. */
static hfsb_status hfsbi_hf_jobs_mask(const hfsbi_hf_jobs_call *c,
                                      hfsb_str text, hfsb_buf *out) {
    return hfsbi_hub_redact(c->session->opts.hub, c->session->secrets,
                            c->session->spec.secret_count, text, out);
}

/* Adds at most max characters of a text, masked before it is cut, on one
   line. */
static void hfsbi_hf_jobs_put(hfsbi_hf_jobs_call *c, hfsb_str text,
                              size_t max) {
    hfsb_buf    masked = HFSB_INIT;
    hfsb_err    line = HFSB_INIT;
    hfsb_status st;
    masked.alloc = c->session->alloc;
    st = hfsbi_hf_jobs_mask(c, text, &masked);
    hfsbi_err_quote(&line, hfsb_buf_str(&masked), max);
    hfsb_buf_free(&masked);
    if (st == HFSB_OK) hfsb_buf_append(&c->text, hfsb_cstr(line.msg));
    else if (c->text.status == HFSB_OK) c->text.status = st;
}

/* Adds the words of a job's command. */
static void hfsbi_hf_jobs_put_command(hfsbi_hf_jobs_call    *c,
                                      const hfsb_json_value *job, size_t max) {
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(job, "command"));
    hfsb_buf       line = HFSB_INIT;
    line.alloc = c->session->alloc;
    while (hfsb_json_next(&it)) {
        if (line.len) hfsb_buf_append_byte(&line, ' ');
        hfsb_buf_append(&line, hfsb_json_str(it.value, HFSB_LIT("")));
    }
    if (line.status == HFSB_OK) hfsbi_hf_jobs_put(c, hfsb_buf_str(&line), max);
    else c->text.status = line.status;
    hfsb_buf_free(&line);
}

/* ---- run ---- */

/* Adds id, schedule and suspended of a scheduled job to the result. */
static hfsb_status hfsbi_hf_jobs_schedule_fields(hfsbi_hf_jobs_call *c,
                                                 hfsb_err           *err) {
    const hfsb_json_value *job = c->job.root;
    hfsb_str               id = hfsbi_hf_jobs_text(job, "id");
    hfsbi_build            fields;
    if (!id.len)
        return hfsbi_fail(err, HFSB_REMOTE, 0,
                          "The Hub accepted the request but returned no id of "
                          "a scheduled job: look with scheduled_ps.");
    hfsbi_build_init(&fields, &c->session->alloc);
    hfsbi_build_object(&fields, NULL);
    hfsbi_build_str(&fields, "id", id);
    hfsbi_build_str(&fields, "schedule", hfsbi_hf_jobs_text(job, "schedule"));
    hfsbi_build_bool(&fields, "suspended",
                     hfsb_json_bool(hfsb_json_get(job, "suspend"), false));
    hfsbi_build_end(&fields);
    hfsb_json_free(&c->result->fields);
    return hfsbi_build_finish(&fields, &c->result->fields);
}

/* Adds the address of trackio's dashboard, if the arguments name its Space. */
static void hfsbi_hf_jobs_put_dashboard(hfsbi_hf_jobs_call *c) {
    hfsb_str endpoint = hfsb_hub_endpoint(c->session->opts.hub);
    hfsb_str space = c->args->trackio;
    if (hfsb_space_check(space, NULL) != HFSB_OK) return;
    hfsb_buf_printf(&c->text, " Its dashboard will be %.*s/spaces/%.*s",
                    (int)endpoint.len, endpoint.ptr, (int)space.len,
                    space.ptr);
}

/* Starts a job, or makes a scheduled one, and describes it. */
static hfsb_status hfsbi_hf_jobs_run(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    hfsb_str    flavor = c->flavor, id, stage;
    hfsb_status st = hfsbi_hf_jobs_start(c, err);
    if (st != HFSB_OK) return st;
    id = hfsbi_hf_jobs_text(c->job.root, "id");
    stage = hfsbi_hf_jobs_stage(c->job.root);
    if (c->args->schedule.len) {
        st = hfsbi_hf_jobs_schedule_fields(c, err);
        if (st != HFSB_OK) return st;
        hfsb_buf_printf(&c->text, "Scheduled job %.*s was made (", (int)id.len,
                        id.ptr);
        hfsbi_hf_jobs_put(c, c->args->schedule, HFSBI_HF_JOBS_NAME);
        return hfsb_buf_printf(&c->text,
                               "). It costs money at every run until "
                               "scheduled_delete.");
    }
    st = hfsbi_hf_jobs_fields(c, err);
    if (st == HFSB_REMOTE)
        hfsbi_err_add(err, " It may run all the same: look with ps before "
                           "you run it again.");
    if (st != HFSB_OK) return st;
    hfsbi_session_log(c->session, "Started job %.*s on %.*s", (int)id.len,
                      id.ptr, (int)flavor.len, flavor.ptr);
    hfsb_buf_printf(
        &c->text,
        "Job %.*s was started on %.*s (%.*s). Its logs and inspect take this "
        "job_id%s.",
        (int)id.len, id.ptr, (int)flavor.len, flavor.ptr, (int)stage.len,
        stage.ptr, c->space.len ? " and namespace" : "");
    hfsbi_hf_jobs_put_dashboard(c);
    return HFSB_OK;
}

/* ---- ps ---- */

typedef struct hfsbi_hf_jobs_list {
    hfsbi_hf_jobs_call *call;
    size_t              count;
} hfsbi_hf_jobs_list;

static bool hfsbi_hf_jobs_each(void *user, const hfsb_json_value *job) {
    hfsbi_hf_jobs_list *l = (hfsbi_hf_jobs_list *)user;
    hfsb_buf           *text = &l->call->text;
    hfsb_str            id = hfsbi_hf_jobs_text(job, "id");
    hfsb_str            stage = hfsbi_hf_jobs_stage(job);
    hfsb_str            flavor = hfsbi_hf_jobs_text(job, "flavor");
    hfsb_str            made = hfsbi_hf_jobs_text(job, "createdAt");
    if (l->count) hfsb_buf_append_byte(text, '\n');
    if (l->count++ == HFSBI_HF_JOBS_LISTED) {
        hfsb_buf_printf(text, "(and more)");
        return false;
    }
    hfsb_buf_printf(text, "%-24.*s  %-10.*s  %-12.*s  %.*s  ", (int)id.len,
                    id.ptr, (int)stage.len, stage.ptr, (int)flavor.len,
                    flavor.ptr, made.len < 19 ? (int)made.len : 19, made.ptr);
    hfsbi_hf_jobs_put_command(l->call, job, 60);
    return text->status == HFSB_OK;
}

static hfsb_status hfsbi_hf_jobs_ps(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    hfsb_job_filter    filter = HFSB_INIT;
    hfsbi_hf_jobs_list l = HFSB_INIT;
    hfsb_hub_pair      labels[HFSBI_HF_JOBS_LABELS];
    hfsb_json_iter     it = hfsb_json_begin(c->args->labels);
    hfsb_status        st;
    memset(labels, 0, sizeof labels);
    l.call = c;
    while (filter.label_count < HFSBI_HF_JOBS_LABELS && hfsb_json_next(&it)) {
        labels[filter.label_count].key = it.key;
        labels[filter.label_count++].value =
            hfsb_json_str(it.value, HFSB_LIT(""));
    }
    filter.labels = labels;
    filter.stages = &c->args->stage;
    filter.stage_count = c->args->stage.len ? 1 : 0;
    filter.space = c->space;
    st = hfsb_hub_jobs(c->session->opts.hub, &filter, hfsbi_hf_jobs_each, &l,
                       c->cancel, err);
    if (!l.count) hfsb_buf_printf(&c->text, "There are no jobs.");
    return st;
}

/* ---- scheduled jobs ---- */

static bool hfsbi_hf_jobs_each_scheduled(void                  *user,
                                         const hfsb_json_value *job) {
    hfsbi_hf_jobs_list    *l = (hfsbi_hf_jobs_list *)user;
    const hfsb_json_value *spec = hfsb_json_get(job, "jobSpec");
    hfsb_buf              *text = &l->call->text;
    hfsb_str               id = hfsbi_hf_jobs_text(job, "id");
    hfsb_str               when = hfsbi_hf_jobs_text(job, "schedule");
    hfsb_str               flavor = hfsbi_hf_jobs_text(spec, "flavor");
    bool off = hfsb_json_bool(hfsb_json_get(job, "suspend"), false);
    if (l->count) hfsb_buf_append_byte(text, '\n');
    if (l->count++ == HFSBI_HF_JOBS_LISTED) {
        hfsb_buf_printf(text, "(and more)");
        return false;
    }
    hfsb_buf_printf(text, "%-24.*s  %-12.*s  %-9s  %-12.*s  ", (int)id.len,
                    id.ptr, (int)when.len, when.ptr,
                    off ? "suspended" : "active", (int)flavor.len, flavor.ptr);
    hfsbi_hf_jobs_put_command(l->call, spec, 60);
    return text->status == HFSB_OK;
}

static hfsb_status hfsbi_hf_jobs_scheduled_ps(hfsbi_hf_jobs_call *c,
                                              hfsb_err           *err) {
    hfsbi_hf_jobs_list l = HFSB_INIT;
    hfsb_status        st;
    l.call = c;
    st = hfsb_hub_scheduled_jobs(c->session->opts.hub, c->space,
                                 hfsbi_hf_jobs_each_scheduled, &l, c->cancel,
                                 err);
    if (!l.count) hfsb_buf_printf(&c->text, "There are no scheduled jobs.");
    return st;
}

/* Does c->what, then shows the scheduled job, or the job that was run. */
static hfsb_status hfsbi_hf_jobs_scheduled(hfsbi_hf_jobs_call *c,
                                           hfsb_err           *err) {
    hfsb_hub          *hub = c->session->opts.hub;
    hfsbi_hf_jobs_list l = HFSB_INIT;
    hfsb_status        st = hfsb_hub_scheduled(hub, c->what, c->space, c->id,
                                               c->cancel, &c->job, err);
    if (st != HFSB_OK) return st;
    if (c->what == HFSB_SCHEDULED_DELETE)
        return hfsb_buf_printf(&c->text, "Scheduled job %.*s was deleted.",
                               (int)c->id.len, c->id.ptr);
    l.call = c;
    if (c->what == HFSB_SCHEDULED_RUN) {
        (void)hfsbi_hf_jobs_each(&l, c->job.root);
        return hfsbi_hf_jobs_fields(c, err);
    }
    if (c->what != HFSB_SCHEDULED_GET) { /* as it is now */
        hfsb_json_free(&c->job);
        c->job.alloc = c->session->alloc;
        st = hfsb_hub_scheduled(hub, HFSB_SCHEDULED_GET, c->space, c->id,
                                c->cancel, &c->job, err);
        if (st != HFSB_OK) return st;
    }
    (void)hfsbi_hf_jobs_each_scheduled(&l, c->job.root);
    return hfsbi_hf_jobs_schedule_fields(c, err);
}

/* ---- inspect, cancel ---- */

/* Asks the Hub for the job. */
static hfsb_status hfsbi_hf_jobs_get(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    return hfsb_hub_job(c->session->opts.hub, c->space, c->id, c->cancel,
                        &c->job, err);
}

static void hfsbi_hf_jobs_put_line(hfsbi_hf_jobs_call *c, const char *name,
                                   hfsb_str text) {
    if (!text.len) return;
    hfsb_buf_printf(&c->text, "%s: ", name);
    hfsbi_hf_jobs_put(c, text, HFSBI_HF_JOBS_COMMAND);
    hfsb_buf_append_byte(&c->text, '\n');
}

/* Adds the names of the job's secrets or variables. */
static void hfsbi_hf_jobs_put_names(hfsbi_hf_jobs_call *c, const char *name,
                                    const hfsb_json_value *list) {
    hfsb_json_iter it = hfsb_json_begin(list);
    hfsb_err       line = HFSB_INIT;
    while (hfsb_json_next(&it)) {
        if (line.msg[0]) hfsbi_err_add(&line, ", ");
        hfsbi_err_quote(
            &line, it.key.len ? it.key : hfsb_json_str(it.value, HFSB_LIT("")),
            HFSBI_HF_JOBS_TEXT);
    }
    hfsbi_hf_jobs_put_line(c, name, hfsb_cstr(line.msg));
}

static hfsb_status hfsbi_hf_jobs_inspect(hfsbi_hf_jobs_call *c,
                                         hfsb_err           *err) {
    static const char *const keys[][2] = {
        {"createdAt", "created"},   {"startedAt", "started"},
        {"finishedAt", "finished"}, {"flavor", "hardware"},
        {"dockerImage", "image"},   {"spaceId", "image of the Space"}};
    const hfsb_json_value *job, *message;
    size_t                 i;
    hfsb_status            st = hfsbi_hf_jobs_get(c, err);
    if (st != HFSB_OK) return st;
    job = c->job.root;
    message = hfsb_json_get(hfsb_json_get(job, "status"), "message");
    hfsbi_hf_jobs_put_line(c, "job", hfsbi_hf_jobs_text(job, "id"));
    hfsbi_hf_jobs_put_line(c, "stage", hfsbi_hf_jobs_stage(job));
    hfsbi_hf_jobs_put_line(c, "message", hfsb_json_str(message, HFSB_LIT("")));
    for (i = 0; i < sizeof keys / sizeof *keys; i++)
        hfsbi_hf_jobs_put_line(c, keys[i][1],
                               hfsbi_hf_jobs_text(job, keys[i][0]));
    hfsbi_hf_jobs_put_names(c, "variables", hfsb_json_get(job, "environment"));
    hfsbi_hf_jobs_put_names(c, "secrets", hfsb_json_get(job, "secrets"));
    hfsb_buf_append(&c->text, HFSB_LIT("command: "));
    hfsbi_hf_jobs_put_command(c, job, HFSBI_HF_JOBS_COMMAND);
    return hfsbi_hf_jobs_fields(c, err);
}

/* The Hub refused to cancel a job. If the job has ended, that is why, whatever
   the Hub said. */
static hfsb_status hfsbi_hf_jobs_explain(hfsbi_hf_jobs_call *c, hfsb_status st,
                                         hfsb_err *err) {
    hfsb_str stage;
    if (st != HFSB_ARG && st != HFSB_CONFLICT && st != HFSB_DENIED &&
        st != HFSB_REMOTE)
        return st;
    if (hfsbi_hf_jobs_get(c, NULL) != HFSB_OK) return st;
    stage = hfsbi_hf_jobs_stage(c->job.root);
    if (!stage.len || !hfsbi_hf_jobs_is_over(stage)) return st;
    return hfsbi_fail(err, HFSB_REFUSED, 0,
                      "Job %.*s has ended already (%.*s): nothing to cancel.",
                      (int)c->id.len, c->id.ptr, (int)stage.len, stage.ptr);
}

static hfsb_status hfsbi_hf_jobs_cancel(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    hfsb_str    stage;
    hfsb_status st = hfsb_hub_job_cancel(c->session->opts.hub, c->space, c->id,
                                         c->cancel, &c->job, err);
    if (st != HFSB_OK) return hfsbi_hf_jobs_explain(c, st, err);
    stage = hfsbi_hf_jobs_stage(c->job.root);
    hfsb_buf_printf(&c->text, "Job %.*s was cancelled; it is %.*s.",
                    (int)c->id.len, c->id.ptr, (int)stage.len, stage.ptr);
    return hfsbi_hf_jobs_fields(c, err);
}

/* ---- logs ---- */

typedef struct hfsbi_hf_jobs_log {
    const hfsbi_hf_jobs_call *call;
    hfsb_text_filter         *filter;
    hfsb_text_window         *window;
    hfsb_buf                  clean, masked;
    long long                 until;
    hfsb_status               status;
} hfsbi_hf_jobs_log;

static bool hfsbi_hf_jobs_line(void *user, hfsb_str line, hfsb_str timestamp) {
    hfsbi_hf_jobs_log *l = (hfsbi_hf_jobs_log *)user;
    (void)timestamp;
    l->status = hfsb_text_filter_write(l->filter, line, &l->clean);
    if (l->status == HFSB_OK)
        l->status =
            hfsb_text_filter_write(l->filter, HFSB_LIT("\n"), &l->clean);
    if (l->status == HFSB_OK)
        l->status =
            hfsbi_hf_jobs_mask(l->call, hfsb_buf_str(&l->clean), &l->masked);
    if (l->status == HFSB_OK)
        l->status =
            hfsb_text_window_write(l->window, hfsb_buf_str(&l->masked));
    hfsb_buf_truncate(&l->clean, 0);
    hfsb_buf_truncate(&l->masked, 0);
    return l->status == HFSB_OK && hfsb_clock_ms() < l->until;
}

/* Adds the log so far. */
static hfsb_status hfsbi_hf_jobs_read_log(hfsbi_hf_jobs_call *c,
                                          hfsb_err           *err) {
    hfsb_text_limit   limit = HFSB_INIT;
    hfsb_log_opts     opts = HFSB_INIT;
    hfsbi_hf_jobs_log l = HFSB_INIT;
    hfsb_status       st = HFSB_NOMEM;
    limit.chars = HFSBI_HF_JOBS_CHARS;
    limit.head = HFSBI_HF_JOBS_HEAD;
    opts.tail = HFSBI_HF_JOBS_LINES;
    opts.idle_ms = HFSBI_HF_JOBS_IDLE_MS;
    opts.cancel = c->cancel;
    l.call = c;
    l.clean.alloc = l.masked.alloc = c->session->alloc;
    l.until = hfsb_clock_ms() + HFSBI_HF_JOBS_TOTAL_MS;
    l.filter = hfsb_text_filter_open(&c->session->alloc);
    l.window = hfsb_text_window_open(&limit, &c->session->alloc);
    if (l.filter && l.window)
        st = hfsb_hub_job_logs(c->session->opts.hub, c->space, c->id, &opts,
                               hfsbi_hf_jobs_line, &l, err);
    if (st == HFSB_OK) st = l.status;
    if (st == HFSB_OK)
        st = hfsb_text_window_show(l.window, HFSB_LIT(""), &c->text);
    hfsb_text_filter_close(l.filter);
    hfsb_text_window_close(l.window);
    hfsb_buf_free(&l.clean);
    hfsb_buf_free(&l.masked);
    return st;
}

/* The log, the job's stage, and whether there will be more. */
static hfsb_status hfsbi_hf_jobs_logs(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    hfsb_str    stage;
    hfsb_status st = hfsbi_hf_jobs_read_log(c, err);
    if (st == HFSB_OK) st = hfsbi_hf_jobs_get(c, err);
    if (st != HFSB_OK) return st;
    stage = hfsbi_hf_jobs_stage(c->job.root);
    if (!c->text.len) hfsb_buf_printf(&c->text, "(no output)\n");
    hfsb_buf_printf(&c->text, "(job %.*s is %.*s%s)", (int)c->id.len,
                    c->id.ptr, (int)stage.len, stage.ptr,
                    hfsbi_hf_jobs_is_over(stage)
                        ? ""
                        : ": this is its log so far; look again in a while");
    return hfsbi_hf_jobs_fields(c, err);
}

/* ---- the tool ---- */

#define HFSBI_HF_JOBS_STR(name, field, words) \
    HFSBI_PARAM(name, HFSBI_ARG_STR, 0, hfsbi_hf_jobs_args, field, words)
#define HFSBI_HF_JOBS_LIST(name, field, words) \
    HFSBI_PARAM(name, HFSBI_ARG_LIST, 0, hfsbi_hf_jobs_args, field, words)

static const hfsbi_param hfsbi_hf_jobs_params[] = {
    HFSBI_PARAM_CHOICE("operation", HFSBI_REQUIRED, hfsbi_hf_jobs_args,
                       operation,
                       "run ps logs inspect cancel scheduled_ps "
                       "scheduled_inspect scheduled_delete scheduled_suspend "
                       "scheduled_resume scheduled_run"),
    HFSBI_HF_JOBS_STR("script", script,
                      "Python for uv run: source text; or a file of the "
                      "sandbox, which is sent (/app/train.py, ./train.py or "
                      "bare train.py); or a URL. Never a path of the host "
                      "(/home, /Users, /fsx)"),
    HFSBI_PARAM("command", HFSBI_ARG_STR, HFSBI_BY_TOOL, hfsbi_hf_jobs_args,
                script, "Shell command, in place of script"),
    HFSBI_HF_JOBS_LIST("dependencies", with, "Packages for the script"),
    HFSBI_HF_JOBS_LIST("script_args", args, "Its arguments"),
    HFSBI_HF_JOBS_STR("python", python, "Version, such as 3.12"),
    HFSBI_HF_JOBS_STR("image", image,
                      "Docker image or page of a Space; default: uv for "
                      "script, python:3.12 for command"),
    HFSBI_HF_JOBS_STR("hardware_flavor", flavor,
                      "cpu-basic (default), cpu-upgrade, t4-small, t4-medium, "
                      "l4x1, a10g-small, a10g-large, a100-large, h200 or "
                      "another that the Hub has"),
    HFSBI_PARAM("timeout", HFSBI_ARG_STR, HFSBI_OR_NUMBER, hfsbi_hf_jobs_args,
                timeout,
                "Such as 90s, 30m (default) or 2h: set it well above what you "
                "expect"),
    HFSBI_PARAM("env", HFSBI_ARG_OBJECT, 0, hfsbi_hf_jobs_args, env,
                "Variables to set, no secrets"),
    HFSBI_PARAM("secrets", HFSBI_ARG_LIST, HFSBI_BY_TOOL, hfsbi_hf_jobs_args,
                with,
                "Names of secrets it gets from the session; default "
                "HF_TOKEN"),
    HFSBI_HF_JOBS_STR("schedule", schedule,
                      "For run, to repeat it: @daily or cron; its id is the "
                      "job_id of scheduled_..."),
    HFSBI_HF_JOBS_STR("trackio_space_id", trackio,
                      "With report_to=trackio: Space of its dashboard, "
                      "you/ml-intern-1a2b3c4d, which trackio makes; set as "
                      "TRACKIO_SPACE_ID"),
    HFSBI_HF_JOBS_STR("trackio_project", project, "Set as TRACKIO_PROJECT"),
    /* for programs: the model would read each additional one in every call */
    HFSBI_PARAM("name", HFSBI_ARG_STR, HFSBI_UNLISTED, hfsbi_hf_jobs_args,
                name, NULL),
    HFSBI_PARAM("labels", HFSBI_ARG_OBJECT, HFSBI_UNLISTED, hfsbi_hf_jobs_args,
                labels, NULL),
    HFSBI_PARAM("volumes", HFSBI_ARG_LIST, HFSBI_UNLISTED, hfsbi_hf_jobs_args,
                volumes, NULL),
    HFSBI_PARAM("ports", HFSBI_ARG_LIST, HFSBI_UNLISTED, hfsbi_hf_jobs_args,
                ports, NULL),
    HFSBI_PARAM("stage", HFSBI_ARG_STR, HFSBI_UNLISTED, hfsbi_hf_jobs_args,
                stage, NULL),
    HFSBI_PARAM("scheduled_job_id", HFSBI_ARG_STR,
                HFSBI_UNLISTED | HFSBI_BY_TOOL, hfsbi_hf_jobs_args, id, NULL),
    HFSBI_HF_JOBS_STR("job_id", id, NULL),
    HFSBI_HF_JOBS_STR("namespace", space,
                      "Organisation to run it for; default: you"),
    HFSBI_PARAM_END};

HFSBI_FN const hfsbi_tool *hfsbi_hf_jobs_tool(void) {
    static const hfsbi_tool row = {
        "hf_jobs",
        "Run jobs on Hugging Face",
        "Jobs on machines of Hugging Face: run starts one from script or "
        "command, ps lists them, logs shows what one printed so far, inspect "
        "and cancel take its job_id. A job costs money by the minute, sees no "
        "file of the sandbox and loses its own at its end: let it push what "
        "it makes to the Hub. Before a job on GPU, or one that loads a model "
        "or uses CUDA, bf16, fp16, quantization, flash attention or "
        "torch.compile: smoke-test it on a GPU sandbox (sandbox_create, "
        "t4-small at least) with the same imports, loading path and entry "
        "point on tiny data, or say why you skip that. Then run one job "
        "first, more when its logs are good.",
        NULL,
        HFSBI_TOOL_RUNS,
        0,
        hfsbi_hf_jobs_params};
    return &row;
}

typedef struct hfsbi_hf_jobs_operation {
    const char *name;
    hfsb_status (*fn)(hfsbi_hf_jobs_call *c, hfsb_err *err);
    bool           of_job; /* it needs a job_id */
    hfsb_scheduled what;   /* of a scheduled job */
} hfsbi_hf_jobs_operation;

static const hfsbi_hf_jobs_operation hfsbi_hf_jobs_operations[] = {
    {"run", hfsbi_hf_jobs_run, false, HFSB_SCHEDULED_GET},
    {"ps", hfsbi_hf_jobs_ps, false, HFSB_SCHEDULED_GET},
    {"logs", hfsbi_hf_jobs_logs, true, HFSB_SCHEDULED_GET},
    {"inspect", hfsbi_hf_jobs_inspect, true, HFSB_SCHEDULED_GET},
    {"cancel", hfsbi_hf_jobs_cancel, true, HFSB_SCHEDULED_GET},
    {"scheduled_ps", hfsbi_hf_jobs_scheduled_ps, false, HFSB_SCHEDULED_GET},
    {"scheduled_inspect", hfsbi_hf_jobs_scheduled, true, HFSB_SCHEDULED_GET},
    {"scheduled_delete", hfsbi_hf_jobs_scheduled, true, HFSB_SCHEDULED_DELETE},
    {"scheduled_suspend", hfsbi_hf_jobs_scheduled, true,
     HFSB_SCHEDULED_SUSPEND},
    {"scheduled_resume", hfsbi_hf_jobs_scheduled, true, HFSB_SCHEDULED_RESUME},
    {"scheduled_run", hfsbi_hf_jobs_scheduled, true, HFSB_SCHEDULED_RUN}};

/* True for the name, also with a blank in it: "scheduled ps". */
static bool hfsbi_hf_jobs_is(hfsb_str name, const char *wanted) {
    size_t i;
    if (name.len != strlen(wanted)) return false;
    for (i = 0; i < name.len; i++)
        if (name.ptr[i] != wanted[i] &&
            !(name.ptr[i] == ' ' && wanted[i] == '_'))
            return false;
    return true;
}

/* scheduled_run with a schedule makes a scheduled job, as run does. */
static const hfsbi_hf_jobs_operation *
hfsbi_hf_jobs_find(const hfsbi_hf_jobs_args *args, hfsb_err *err) {
    const hfsbi_hf_jobs_operation *op = hfsbi_hf_jobs_operations;
    const hfsbi_hf_jobs_operation *end =
        op +
        sizeof hfsbi_hf_jobs_operations / sizeof *hfsbi_hf_jobs_operations;
    while (op < end && !hfsbi_hf_jobs_is(args->operation, op->name)) op++;
    if (op < end)
        return op->what == HFSB_SCHEDULED_RUN && args->schedule.len
                   ? hfsbi_hf_jobs_operations
                   : op;
    hfsbi_fail(err, HFSB_ARG, 0,
               "\"operation\": expected run, ps, logs, inspect or cancel, "
               "or scheduled_ps, _inspect, _delete, _suspend, _resume or "
               "_run, found \"");
    hfsbi_err_quote(err, args->operation, HFSBI_HF_JOBS_NAME);
    hfsbi_err_add(err, "\"");
    return NULL;
}

/* Splits a job_id that was given as {namespace}/{id}. */
static void hfsbi_hf_jobs_split(hfsbi_hf_jobs_call *c) {
    size_t slash = hfsb_str_find_byte(c->id, '/');
    if (slash == HFSB_NPOS) return;
    if (!c->space.len) c->space = hfsb_str_slice(c->id, 0, slash);
    c->id = hfsb_str_slice(c->id, slash + 1, c->id.len);
}

HFSBI_FN hfsb_status hfsbi_session_jobs(const hfsbi_own_call *call,
                                        const void           *args,
                                        hfsb_tool_result     *result,
                                        hfsb_err             *err) {
    const hfsbi_hf_jobs_operation *op;
    hfsbi_hf_jobs_call             c;
    hfsb_status                    st;
    memset(&c, 0, sizeof c);
    c.session = call->session;
    c.arguments = call->arguments;
    c.args = (const hfsbi_hf_jobs_args *)args;
    c.cancel = call->cancel;
    c.result = result;
    c.id = c.args->id;
    if (!c.id.len)
        c.id = hfsbi_json_get_str(call->arguments, "scheduled_job_id");
    c.space = c.args->space;
    c.flavor = c.args->flavor.len ? c.args->flavor : HFSB_LIT("cpu-basic");
    op = hfsbi_hf_jobs_find(c.args, err);
    if (!op) return HFSB_ARG;
    c.what = op->what;
    hfsbi_hf_jobs_split(&c);
    if (op->of_job && !c.id.len)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "\"job_id\" is missing: operation %s needs it; %s "
                          "lists them.",
                          op->name,
                          op->fn == hfsbi_hf_jobs_scheduled ? "scheduled_ps"
                                                            : "ps");
    c.job.alloc = c.text.alloc = c.session->alloc;
    st = op->fn(&c, err);
    if (st == HFSB_OK) st = c.text.status;
    if (st == HFSB_OK) {
        result->success = true;
        st = hfsbi_hf_jobs_mask(&c, hfsb_buf_str(&c.text), &result->output);
    }
    hfsb_json_free(&c.job);
    hfsb_buf_free(&c.text);
    return st;
}
