/* session_jobs.c - hf_jobs: jobs on the Hub, for a model. Depends on:
   hub_jobs, hub_logs, text, session_jobs_run. */
#include "hub_parts.h"
#include "session_parts.h"

enum {
    HFSBI_HF_JOBS_TEXT = 200,      /* bytes of what the Hub calls something */
    HFSBI_HF_JOBS_COMMAND = 300,   /* characters of a command that are shown */
    HFSBI_HF_JOBS_LISTED = 50,     /* by ps */
    HFSBI_HF_JOBS_LINES = 2000,    /* of a log that are asked for */
    HFSBI_HF_JOBS_CHARS = 40000,   /* of a log that are shown, */
    HFSBI_HF_JOBS_HEAD = 1000,     /* so many of them from its start */
    HFSBI_HF_JOBS_IDLE_MS = 3000,  /* of silence end a log that goes on */
    HFSBI_HF_JOBS_TOTAL_MS = 8000, /* and this does in any case */
    HFSBI_HF_JOBS_NAME = 80 /* characters of an operation that is none */
};

/* clang-format off */
#define HFSBI_TEXTS(name, words)                                          \
    "\"" name "\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},"   \
    "\"description\":\"" words "\"}"

static const hfsbi_tool hfsbi_hf_jobs_row =
    {"hf_jobs", "Run jobs on Hugging Face",
     "Jobs on machines of Hugging Face: run starts one from script or "
     "command, ps lists them, logs shows what one printed so far, inspect and "
     "cancel take its job_id. A job costs money by the minute, sees no file "
     "of the sandbox and loses its own at its end: let it push what it makes "
     "to the Hub. Before a job on GPU, or one that loads a model or uses "
     "CUDA, bf16, fp16, quantization, flash attention or torch.compile: "
     "smoke-test it on a GPU sandbox (sandbox_create, t4-small at least) with "
     "the same imports, loading path and entry point on tiny data, or say "
     "why you skip that. Then run one job first, more when its logs are good.",
     NULL,
     HFSBI_OBJECT(
         "\"operation\"",
         "\"operation\":{\"type\":\"string\",\"enum\":[\"run\",\"ps\","
         "\"logs\",\"inspect\",\"cancel\"]},"
         HFSBI_TYPE("script", "string",
                    "Python for uv run: source text; or a file of the "
                    "sandbox, which is sent (/app/train.py, ./train.py or "
                    "bare train.py); or a URL. Never a path of the host "
                    "(/home, /Users, /fsx)") ","
         HFSBI_TYPE("command", "string",
                    "Shell command, in place of script") ","
         HFSBI_TEXTS("dependencies", "Packages for the script") ","
         HFSBI_TEXTS("script_args", "Its arguments") ","
         HFSBI_TYPE("python", "string", "Version, such as 3.12") ","
         HFSBI_TYPE("image", "string",
                    "Docker image or page of a Space; default: uv for "
                    "script, python:3.12 for command") ","
         HFSBI_TYPE("hardware_flavor", "string",
                    "cpu-basic (default), cpu-upgrade, t4-small, t4-medium, "
                    "l4x1, a10g-small, a10g-large, a100-large, h200 or "
                    "another that the Hub has") ","
         HFSBI_TYPE("timeout", "string",
                    "Such as 90s, 30m (default) or 2h: set it well above "
                    "what you expect") ","
         HFSBI_TYPE("env", "object", "Variables to set, no secrets") ","
         HFSBI_TEXTS("secrets",
                     "Names of secrets it gets from the session; default "
                     "HF_TOKEN") ","
         HFSBI_PLAIN("job_id", "string") ","
         HFSBI_TYPE("namespace", "string",
                    "Organisation to run it for; default: you")),
     "{\"readOnlyHint\":false,\"destructiveHint\":true,"
     "\"idempotentHint\":false,\"openWorldHint\":true}",
     "operation script command dependencies script_args python image "
     "hardware_flavor timeout env secrets job_id namespace",
     false, NULL};
/* clang-format on */

HFSBI_FN const hfsbi_tool *hfsbi_hf_jobs_tool(void) {
    return &hfsbi_hf_jobs_row;
}

/* ---- what the Hub tells about a job ---- */

static hfsb_str hfsbi_hf_jobs_cut(hfsb_str text) {
    return hfsb_str_slice(text, 0, hfsb_utf8_offset(text, HFSBI_HF_JOBS_TEXT));
}

HFSBI_FN hfsb_str hfsbi_hf_jobs_text(const hfsb_json_value *job,
                                     const char            *key) {
    return hfsbi_hf_jobs_cut(
        hfsb_json_str(hfsb_json_get(job, key), HFSB_LIT("")));
}

HFSBI_FN hfsb_str hfsbi_hf_jobs_stage(const hfsb_json_value *job) {
    return hfsbi_hf_jobs_text(hfsb_json_get(job, "status"), "stage");
}

static bool hfsbi_hf_jobs_is_over(hfsb_str stage) {
    return !hfsb_str_equal(stage, HFSB_LIT("SCHEDULING")) &&
           !hfsb_str_equal(stage, HFSB_LIT("RUNNING")) &&
           !hfsb_str_equal(stage, HFSB_LIT("UPDATING"));
}

HFSBI_FN hfsb_status hfsbi_hf_jobs_extra(hfsbi_hf_jobs_call    *c,
                                         const hfsb_json_value *job,
                                         hfsb_err              *err) {
    hfsb_str id = hfsbi_hf_jobs_text(job, "id");
    hfsb_str stage = hfsbi_hf_jobs_stage(job);
    hfsb_str owner = hfsbi_hf_jobs_text(hfsb_json_get(job, "owner"), "name");
    hfsb_str endpoint = hfsb_hub_endpoint(c->session->opts.hub);
    hfsb_buf url = HFSB_INIT;
    hfsb_status      st;
    hfsb_json_writer w;
    if (!id.len || !stage.len)
        return hfsbi_fail(err, HFSB_REMOTE, 0,
                          "The Hub took the request, but what it answered "
                          "tells of no job.");
    url.alloc = c->session->alloc;
    st = hfsb_buf_printf(&url, "%.*s/jobs/%.*s/%.*s", (int)endpoint.len,
                         endpoint.ptr, (int)owner.len, owner.ptr, (int)id.len,
                         id.ptr);
    if (st == HFSB_OK) {
        hfsb_json_writer_init(&w, &c->result->extra, NULL);
        hfsb_json_put_object(&w);
        hfsbi_put_member_str(&w, "id", id);
        hfsbi_put_member_str(&w, "stage", stage);
        hfsbi_put_member_str(&w, "url", hfsb_buf_str(&url));
        hfsb_json_put_end(&w);
        st = hfsb_json_writer_finish(&w, NULL);
    }
    hfsb_buf_free(&url);
    return st;
}

/* Appends a text without what the session keeps secret, whoever printed it.
   What is to be cut is masked before that: no part of a secret is shown. */
static hfsb_status hfsbi_hf_jobs_mask(const hfsbi_hf_jobs_call *c,
                                      hfsb_str text, hfsb_buf *out) {
    hfsbi_hub_request mask;
    memset(&mask, 0, sizeof mask);
    mask.secrets = c->session->secrets;
    mask.secret_count = c->session->spec.secret_count;
    return hfsbi_hub_redact(c->session->opts.hub, &mask, text, out);
}

/* At most max characters of a text, on one line. */
static void hfsbi_hf_jobs_put_masked(const hfsbi_hf_jobs_call *c,
                                     hfsbi_sink *sink, hfsb_str text,
                                     size_t max) {
    hfsb_buf    masked = HFSB_INIT;
    hfsb_err    line = HFSB_INIT;
    hfsb_status st;
    masked.alloc = c->session->alloc;
    st = hfsbi_hf_jobs_mask(c, text, &masked);
    hfsbi_err_quote(&line, hfsb_buf_str(&masked), max);
    hfsb_buf_free(&masked);
    if (st == HFSB_OK) hfsbi_put(sink, hfsb_cstr(line.msg));
    else if (sink->status == HFSB_OK) sink->status = st;
}

/* The words of its command. */
static void hfsbi_hf_jobs_put_command(const hfsbi_hf_jobs_call *c,
                                      hfsbi_sink               *sink,
                                      const hfsb_json_value *job, size_t max) {
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(job, "command"));
    hfsb_buf       line = HFSB_INIT;
    hfsbi_sink     words;
    line.alloc = c->session->alloc;
    words = hfsbi_sink_begin(&line);
    while (hfsb_json_next(&it)) {
        if (line.len) hfsbi_put_byte(&words, ' ');
        hfsbi_put(&words, hfsb_json_str(it.value, HFSB_LIT("")));
    }
    if (hfsbi_sink_end(&words) == HFSB_OK)
        hfsbi_hf_jobs_put_masked(c, sink, hfsb_buf_str(&line), max);
    else sink->status = HFSB_NOMEM;
    hfsb_buf_free(&line);
}

/* What goes to the model. */
static hfsb_status hfsbi_hf_jobs_show(hfsbi_hf_jobs_call *c, hfsb_str text) {
    c->result->success = true;
    return hfsbi_hf_jobs_mask(c, text, &c->result->output);
}

/* ---- ps ---- */

typedef struct hfsbi_hf_jobs_list {
    const hfsbi_hf_jobs_call *call;
    hfsb_buf                  text;
    size_t                    count;
    hfsb_status               status;
} hfsbi_hf_jobs_list;

static bool hfsbi_hf_jobs_each(void *user, const hfsb_json_value *job) {
    hfsbi_hf_jobs_list *l = (hfsbi_hf_jobs_list *)user;
    hfsbi_sink          sink = hfsbi_sink_begin(&l->text);
    hfsb_str            id = hfsbi_hf_jobs_text(job, "id");
    hfsb_str            stage = hfsbi_hf_jobs_stage(job);
    hfsb_str            flavor = hfsbi_hf_jobs_text(job, "flavor");
    hfsb_str            made = hfsbi_hf_jobs_text(job, "createdAt");
    if (l->count++ == HFSBI_HF_JOBS_LISTED) {
        hfsbi_putf(&sink, "(and more)\n");
        l->status = hfsbi_sink_end(&sink);
        return false;
    }
    hfsbi_putf(&sink, "%-24.*s  %-10.*s  %-12.*s  %.*s  ", (int)id.len, id.ptr,
               (int)stage.len, stage.ptr, (int)flavor.len, flavor.ptr,
               made.len < 19 ? (int)made.len : 19, made.ptr);
    hfsbi_hf_jobs_put_command(l->call, &sink, job, 60);
    hfsbi_put_byte(&sink, '\n');
    l->status = hfsbi_sink_end(&sink);
    return l->status == HFSB_OK;
}

static hfsb_status hfsbi_hf_jobs_ps(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    hfsbi_hf_jobs_list l = HFSB_INIT;
    hfsb_status        st;
    l.call = c;
    l.text.alloc = c->session->alloc;
    st = hfsb_hub_jobs(c->session->opts.hub, c->space, hfsbi_hf_jobs_each, &l,
                       c->cancel, err);
    if (st == HFSB_OK) st = l.status;
    if (l.text.len) hfsb_buf_truncate(&l.text, l.text.len - 1);
    if (st == HFSB_OK)
        st =
            hfsbi_hf_jobs_show(c, l.text.len ? hfsb_buf_str(&l.text)
                                             : HFSB_LIT("There are no jobs."));
    hfsb_buf_free(&l.text);
    return st;
}

/* ---- inspect, cancel ---- */

static void hfsbi_hf_jobs_put_line(const hfsbi_hf_jobs_call *c,
                                   hfsbi_sink *sink, const char *name,
                                   hfsb_str text) {
    if (!text.len) return;
    hfsbi_putf(sink, "%s: ", name);
    hfsbi_hf_jobs_put_masked(c, sink, text, HFSBI_HF_JOBS_COMMAND);
    hfsbi_put_byte(sink, '\n');
}

/* The names of its secrets or variables. */
static void hfsbi_hf_jobs_put_names(const hfsbi_hf_jobs_call *c,
                                    hfsbi_sink *sink, const char *name,
                                    const hfsb_json_value *list) {
    hfsb_json_iter it = hfsb_json_begin(list);
    hfsb_err       line = HFSB_INIT;
    while (hfsb_json_next(&it)) {
        if (line.msg[0]) hfsbi_err_add(&line, ", ");
        hfsbi_err_quote(
            &line, it.key.len ? it.key : hfsb_json_str(it.value, HFSB_LIT("")),
            HFSBI_HF_JOBS_TEXT);
    }
    hfsbi_hf_jobs_put_line(c, sink, name, hfsb_cstr(line.msg));
}

static hfsb_status hfsbi_hf_jobs_describe(const hfsbi_hf_jobs_call *c,
                                          const hfsb_json_value    *job,
                                          hfsb_buf                 *out) {
    static const char *const keys[][2] = {
        {"createdAt", "created"},   {"startedAt", "started"},
        {"finishedAt", "finished"}, {"flavor", "hardware"},
        {"dockerImage", "image"},   {"spaceId", "image of the Space"}};
    hfsbi_sink sink = hfsbi_sink_begin(out);
    size_t     i;
    hfsbi_hf_jobs_put_line(c, &sink, "job", hfsbi_hf_jobs_text(job, "id"));
    hfsbi_hf_jobs_put_line(c, &sink, "stage", hfsbi_hf_jobs_stage(job));
    hfsbi_hf_jobs_put_line(
        c, &sink, "message",
        hfsb_json_str(hfsb_json_get(hfsb_json_get(job, "status"), "message"),
                      HFSB_LIT("")));
    for (i = 0; i < sizeof keys / sizeof *keys; i++)
        hfsbi_hf_jobs_put_line(c, &sink, keys[i][1],
                               hfsbi_hf_jobs_text(job, keys[i][0]));
    hfsbi_hf_jobs_put_names(c, &sink, "variables",
                            hfsb_json_get(job, "environment"));
    hfsbi_hf_jobs_put_names(c, &sink, "secrets",
                            hfsb_json_get(job, "secrets"));
    hfsbi_put(&sink, HFSB_LIT("command: "));
    hfsbi_hf_jobs_put_command(c, &sink, job, HFSBI_HF_JOBS_COMMAND);
    return hfsbi_sink_end(&sink);
}

static hfsb_status hfsbi_hf_jobs_inspect(hfsbi_hf_jobs_call *c,
                                         hfsb_err           *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_buf      text = HFSB_INIT;
    hfsb_status   st;
    doc.alloc = text.alloc = c->session->alloc;
    st = hfsb_hub_job(c->session->opts.hub, c->space, c->id, c->cancel, &doc,
                      err);
    if (st == HFSB_OK) st = hfsbi_hf_jobs_describe(c, doc.root, &text);
    if (st == HFSB_OK) st = hfsbi_hf_jobs_extra(c, doc.root, err);
    if (st == HFSB_OK) st = hfsbi_hf_jobs_show(c, hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    hfsb_json_free(&doc);
    return st;
}

static hfsb_status hfsbi_hf_jobs_cancel(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_str      stage;
    hfsb_status   st;
    doc.alloc = c->session->alloc;
    st = hfsb_hub_job_cancel(c->session->opts.hub, c->space, c->id, c->cancel,
                             &doc, err);
    if (st != HFSB_OK) return st;
    stage = hfsbi_hf_jobs_stage(doc.root);
    st = hfsbi_hf_jobs_extra(c, doc.root, err);
    if (st == HFSB_OK)
        st = hfsbi_result_ok(c->result, "Job %.*s was cancelled; it is %.*s.",
                             (int)c->id.len, c->id.ptr, (int)stage.len,
                             stage.ptr);
    hfsb_json_free(&doc);
    return st;
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

/* The log as it is now, at the end of *out. */
static hfsb_status hfsbi_hf_jobs_read_log(hfsbi_hf_jobs_call *c, hfsb_buf *out,
                                          hfsb_err *err) {
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
    if (st == HFSB_OK) st = hfsb_text_window_show(l.window, HFSB_LIT(""), out);
    hfsb_text_filter_close(l.filter);
    hfsb_text_window_close(l.window);
    hfsb_buf_free(&l.clean);
    hfsb_buf_free(&l.masked);
    return st;
}

/* What the log leaves open: whether there will be more of it. */
static hfsb_status hfsbi_hf_jobs_put_end(hfsbi_hf_jobs_call    *c,
                                         const hfsb_json_value *job,
                                         hfsb_buf              *out) {
    hfsbi_sink sink = hfsbi_sink_begin(out);
    hfsb_str   stage = hfsbi_hf_jobs_stage(job);
    if (!out->len) hfsbi_put(&sink, HFSB_LIT("(no output)\n"));
    hfsbi_putf(&sink, "(job %.*s is %.*s", (int)c->id.len, c->id.ptr,
               (int)stage.len, stage.ptr);
    if (!hfsbi_hf_jobs_is_over(stage))
        hfsbi_put(&sink, HFSB_LIT(": this is its log so far; look again in a "
                                  "while"));
    hfsbi_put_byte(&sink, ')');
    return hfsbi_sink_end(&sink);
}

static hfsb_status hfsbi_hf_jobs_logs(hfsbi_hf_jobs_call *c, hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_buf      text = HFSB_INIT;
    hfsb_status   st;
    doc.alloc = text.alloc = c->session->alloc;
    st = hfsbi_hf_jobs_read_log(c, &text, err);
    if (st == HFSB_OK)
        st = hfsb_hub_job(c->session->opts.hub, c->space, c->id, c->cancel,
                          &doc, err);
    if (st == HFSB_OK) st = hfsbi_hf_jobs_put_end(c, doc.root, &text);
    if (st == HFSB_OK) st = hfsbi_hf_jobs_extra(c, doc.root, err);
    if (st == HFSB_OK) st = hfsbi_hf_jobs_show(c, hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    hfsb_json_free(&doc);
    return st;
}

/* ---- the tool ---- */

typedef struct hfsbi_hf_jobs_operation {
    const char *name;
    hfsb_status (*fn)(hfsbi_hf_jobs_call *c, hfsb_err *err);
    bool of_job; /* it needs a job_id */
} hfsbi_hf_jobs_operation;

static const hfsbi_hf_jobs_operation hfsbi_hf_jobs_operations[] = {
    {"run", hfsbi_hf_jobs_run, false},
    {"ps", hfsbi_hf_jobs_ps, false},
    {"logs", hfsbi_hf_jobs_logs, true},
    {"inspect", hfsbi_hf_jobs_inspect, true},
    {"cancel", hfsbi_hf_jobs_cancel, true}};

static const hfsbi_hf_jobs_operation *hfsbi_hf_jobs_find(hfsb_str  name,
                                                         hfsb_err *err) {
    const hfsbi_hf_jobs_operation *op = hfsbi_hf_jobs_operations;
    const hfsbi_hf_jobs_operation *end =
        op +
        sizeof hfsbi_hf_jobs_operations / sizeof *hfsbi_hf_jobs_operations;
    while (op < end && !hfsb_str_equal(name, hfsb_cstr(op->name))) op++;
    if (op < end) return op;
    hfsbi_fail(err, HFSB_ARG, 0,
               "\"operation\": expected run, ps, logs, inspect or cancel, "
               "found \"");
    hfsbi_err_quote(err, name, HFSBI_HF_JOBS_NAME);
    hfsbi_err_add(err, "\"");
    return NULL;
}

/* The id alone, also when it was given as {namespace}/{id}. */
static void hfsbi_hf_jobs_split(hfsbi_hf_jobs_call *c) {
    size_t slash = hfsb_str_find_byte(c->id, '/');
    if (slash == HFSB_NPOS) return;
    if (!c->space.len) c->space = hfsb_str_slice(c->id, 0, slash);
    c->id = hfsb_str_slice(c->id, slash + 1, c->id.len);
}

HFSBI_FN hfsb_status hfsbi_session_jobs(hfsb_session          *session,
                                        const hfsb_json_value *arguments,
                                        const hfsb_cancel     *cancel,
                                        hfsb_tool_result      *result,
                                        hfsb_err              *err) {
    const hfsbi_hf_jobs_operation *op;
    hfsb_str                       name = HFSB_LIT("");
    hfsbi_hf_jobs_call             c;
    hfsb_status                    st;
    memset(&c, 0, sizeof c);
    c.session = session;
    c.arguments = arguments;
    c.cancel = cancel;
    c.result = result;
    st = hfsb_json_arg_str(arguments, "operation", true, &name, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(arguments, "job_id", false, &c.id, err);
    if (st == HFSB_OK)
        st = hfsb_json_arg_str(arguments, "namespace", false, &c.space, err);
    if (st != HFSB_OK) return st;
    op = hfsbi_hf_jobs_find(name, err);
    if (!op) return HFSB_ARG;
    hfsbi_hf_jobs_split(&c);
    if (op->of_job && !c.id.len)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "\"job_id\" is missing: operation %s needs it; ps "
                          "lists them.",
                          op->name);
    return op->fn(&c, err);
}
