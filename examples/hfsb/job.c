/* job.c - hfsb job ls, logs, inspect, cancel: jobs on the Hub.

   A job is named by ID, NAMESPACE/ID or, as a sandbox, jobs/NAMESPACE/ID, and
   described by the JSON object that
   the Hub returns for it. Starting one is in job_run.c, scheduled ones are in
   job_schedule.c. */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

hfsb_str job_stage(const hfsb_json_value *job) {
    return get_str(hfsb_json_get(job, "status"), "stage");
}

void split_job(const char *word, const char *space, job_name *out) {
    const char *slash;
    if (is_job(hfsb_cstr(word))) word += strlen("jobs/");
    slash = strrchr(word, '/');
    out->id = hfsb_cstr(slash ? slash + 1 : word);
    out->space =
        slash ? hfsb_str_make(word, (size_t)(slash - word)) : hfsb_cstr(space);
}

void put_job(const hfsb_json_value *job, hfsb_tool_result *result) {
    hfsb_json_writer w;
    begin_object(&w, &result->fields);
    put_str(&w, "id", get_str(job, "id"));
    put_str(&w, "stage", job_stage(job));
    hfsb_json_put_key(&w, HFSB_LIT("job"));
    hfsb_json_put_value(&w, job);
    end_object(&w);
}

/* ---- ls ---- */

typedef struct job_list {
    table            rows;
    hfsb_json_writer w;
} job_list;

static const table_column job_columns[] = {{"JOB", 0, false},
                                           {"STAGE", 10, true},
                                           {"HARDWARE", 11, false},
                                           {"CREATED", 19, false},
                                           {"COMMAND", 0, false}};

/* What runs the script of `sh -lc 'echo "BASE64" | base64 -d | uv run -'`; ""
   for any other word. */
static hfsb_str script_runner(hfsb_str word) {
    const hfsb_str echo = HFSB_LIT("echo \""), mid = HFSB_LIT("\" | base64 -d | ");
    size_t         at = hfsb_str_find(word, mid);
    if (!hfsb_str_starts(word, echo) || at == HFSB_NPOS) return HFSB_LIT("");
    return hfsb_str_slice(word, at + mid.len, word.len);
}

void add_words(hfsb_buf *out, const hfsb_json_value *job) {
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(job, "command"));
    hfsb_str       name = get_str(hfsb_json_get(job, "labels"), "name");
    hfsb_buf       line = HFSB_INIT;
    size_t         i;
    while (hfsb_json_next(&it)) {
        hfsb_str word = hfsb_json_str(it.value, HFSB_LIT(""));
        hfsb_str runner = script_runner(word);
        if (runner.len) {
            hfsb_buf_truncate(&line, 0);
            must(hfsb_buf_append(&line,
                                 name.len ? name : HFSB_LIT("(a script)")));
            must(hfsb_buf_append(&line, HFSB_LIT(" | ")));
            word = runner;
        } else if (line.len) {
            must(hfsb_buf_append_byte(&line, ' '));
        }
        must(hfsb_buf_append(&line, word));
    }
    for (i = 0; i < line.len; i++)
        if ((unsigned char)line.ptr[i] < ' ') line.ptr[i] = ' ';
    must(hfsb_buf_append(
        out, hfsb_str_slice(hfsb_buf_str(&line), 0,
                            hfsb_utf8_offset(hfsb_buf_str(&line), 60))));
    hfsb_buf_free(&line);
}

static bool list_job(void *user, const hfsb_json_value *job) {
    job_list *l = (job_list *)user;
    hfsb_str  none = HFSB_LIT("-"), cells[5];
    hfsb_buf  words = HFSB_INIT;
    add_words(&words, job);
    cells[0] = hfsb_json_str(hfsb_json_get(job, "id"), none);
    cells[1] = job_stage(job);
    cells[2] = hfsb_json_str(hfsb_json_get(job, "flavor"), none);
    /* without the seconds on a terminal */
    cells[3] = hfsb_str_slice(
        hfsb_json_str(hfsb_json_get(job, "createdAt"), none), 0,
        can_rewrite(STDOUT_FILENO) ? 16 : 19);
    cells[4] = hfsb_buf_str(&words);
    table_add(&l->rows, cells);
    hfsb_buf_free(&words);
    hfsb_json_put_value(&l->w, job);
    return true;
}

int run_job_ls(args *a) {
    job_list         l;
    hfsb_job_filter  filter = HFSB_INIT;
    hfsb_hub_pair    labels[MAX_TEXTS];
    hfsb_str         stages[MAX_TEXTS];
    texts            label_words, stage_words;
    size_t           i;
    const char      *space = NULL;
    bool             json = false, all = false;
    client           c = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;

    const option options[] = {
        {"--label NAME=VALUE", OPTION_TEXTS, &label_words,
         "only jobs with this label; may be repeated"},
        {"--stage S", OPTION_TEXTS, &stage_words,
         "only jobs in this stage, such as RUNNING; may be repeated"},
        {"--namespace N", OPTION_TEXT, &space,
         "your user name, or one of your organisations"},
        {"--all", OPTION_FLAG, &all, "accepted; ended jobs are always listed"},
        {"-a", OPTION_ALIAS, NULL, "--all"},
        OPTION_JSON(&json, ", jobs"),
        OPTIONS_END};
    table_begin(&l.rows, job_columns, 5);
    l.rows.cut = true;
    memset(labels, 0, sizeof labels);
    label_words.count = stage_words.count = 0;
    if (!take_all(a, options, NULL)) return a->status;
    for (i = 0; i < stage_words.count; i++)
        stages[i] = hfsb_cstr(stage_words.list[i]);
    filter.space = hfsb_cstr(space);
    filter.labels = labels;
    filter.label_count = label_words.count;
    filter.stages = stages;
    filter.stage_count = stage_words.count;
    st = open_client(&c, true, &err);
    if (st == HFSB_OK) st = take_pairs("--label", &label_words, labels, &err);
    begin_object(&l.w, &result.fields);
    hfsb_json_put_key(&l.w, HFSB_LIT("jobs"));
    hfsb_json_put_array(&l.w);
    if (st == HFSB_OK)
        st = hfsb_hub_jobs(c.hub, &filter, list_job, &l, c.cancel, &err);
    hfsb_json_put_end(&l.w);
    end_object(&l.w);
    close_client(&c);
    return show_table(&result, st, &err, &l.rows, json);
}

/* ---- inspect, cancel ---- */

static bool has_ended(hfsb_str stage) {
    static const char *const ends[] = {"COMPLETED", "CANCELED", "ERROR",
                                       "DELETED"};
    size_t                   i;
    for (i = 0; i < sizeof ends / sizeof *ends; i++)
        if (hfsb_str_equal(stage, hfsb_cstr(ends[i]))) return true;
    return false;
}

typedef hfsb_status (*job_fn)(hfsb_hub *hub, hfsb_str space, hfsb_str id,
                              const hfsb_cancel *cancel, hfsb_json_doc *out,
                              hfsb_err *err);

/* Writes the output: the whole job, or its id and stage. */
static void describe_job(const hfsb_json_value *job, bool whole,
                         hfsb_tool_result *result) {
    hfsb_json_write_opts pretty = HFSB_INIT;
    hfsb_str             stage = job_stage(job);
    hfsb_str             id = get_str(job, "id");
    pretty.pretty = true;
    if (whole) must(hfsb_json_write(job, &pretty, &result->output, NULL));
    else
        must(hfsb_buf_printf(&result->output, "%.*s  %.*s", (int)id.len,
                             id.ptr, (int)stage.len, stage.ptr));
}

static int run_on_job(args *a, job_fn fn, bool whole) {
    const char      *space = NULL, *word = NULL;
    bool             json = false;
    client           c = HFSB_INIT;
    job_name         name;
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;

    const option options[] = {{"--namespace N", OPTION_TEXT, &space,
                               "your user name, or one of your organisations"},
                              OPTION_JSON(&json, ", id, stage, job"),
                              OPTIONS_END};
    if (!take_all(a, options, &word)) return a->status;
    if (!word) return usage(a, "JOB is missing; `hfsb job ls` lists them");
    split_job(word, space, &name);
    st = open_client(&c, true, &err);
    if (st == HFSB_OK)
        st = fn(c.hub, name.space, name.id, c.cancel, &doc, &err);
    if (st == HFSB_OK) {
        describe_job(doc.root, whole && !json, &result);
        put_job(doc.root, &result);
    }
    hfsb_json_free(&doc);
    close_client(&c);
    return show_outcome(&result, st, &err, json);
}

int run_job_inspect(args *a) {
    return run_on_job(a, hfsb_hub_job, true);
}

/* Cancels a job. The Hub refuses a job that has ended with various errors, so
   ask for its stage then. */
static hfsb_status cancel_job(hfsb_hub *hub, hfsb_str space, hfsb_str id,
                              const hfsb_cancel *cancel, hfsb_json_doc *out,
                              hfsb_err *err) {
    hfsb_json_doc job = HFSB_INIT;
    hfsb_status   st = hfsb_hub_job_cancel(hub, space, id, cancel, out, err);
    if (st != HFSB_ARG && st != HFSB_CONFLICT && st != HFSB_DENIED &&
        st != HFSB_REMOTE)
        return st;
    if (hfsb_hub_job(hub, space, id, cancel, &job, NULL) == HFSB_OK &&
        has_ended(job_stage(job.root)))
        st = fail(err, HFSB_REFUSED,
                  "Job %.*s has ended already (%.*s): nothing to cancel",
                  (int)id.len, id.ptr, (int)job_stage(job.root).len,
                  job_stage(job.root).ptr);
    hfsb_json_free(&job);
    return st;
}

int run_job_cancel(args *a) {
    return run_on_job(a, cancel_job, false);
}

/* ---- logs ---- */

bool print_log_line(void *user, hfsb_str line, hfsb_str timestamp) {
    job_follow      *f = (job_follow *)user;
    hfsb_buf         text = HFSB_INIT;
    hfsb_json_writer w;
    if (!f->json && isatty(STDOUT_FILENO)) { /* colours are left out, too */
        must(hfsb_text_clean(line, &text));
        blank_controls(&text);
    } else if (f->json) {
        hfsb_json_writer_init(&w, &text, NULL);
        hfsb_json_put_object(&w);
        hfsb_json_put_key(&w, HFSB_LIT("text"));
        hfsb_json_put_str(&w, line);
        put_str(&w, "timestamp", timestamp);
        end_object(&w);
    } else {
        must(hfsb_buf_append(&text, line));
    }
    must(hfsb_buf_append_byte(&text, '\n'));
    f->lines++;
    f->broken = put_out(hfsb_buf_str(&text)) != DONE;
    hfsb_buf_free(&text);
    return !f->broken;
}

hfsb_status follow_job(client *c, const job_name *name,
                       const hfsb_log_opts *opts, job_follow *f,
                       hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   st = hfsb_hub_job_logs(c->hub, name->space, name->id, opts,
                                         print_log_line, f, err);
    if (st == HFSB_OK && f->broken)
        st = fail(err, HFSB_IO, "The log could not be printed to its end");
    if (st == HFSB_OK)
        st = hfsb_hub_job(c->hub, name->space, name->id, c->cancel, &doc, err);
    if (st == HFSB_OK) {
        hfsb_str stage = job_stage(doc.root);
        snprintf(f->stage, sizeof f->stage, "%.*s", (int)stage.len, stage.ptr);
    }
    hfsb_json_free(&doc);
    return st;
}

int run_job_logs(args *a) {
    const char      *space = NULL, *word = NULL;
    client           c = HFSB_INIT;
    job_name         name;
    job_follow       f = HFSB_INIT;
    hfsb_log_opts    opts = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;

    const option options[] = {
        {"--follow", OPTION_FLAG, &opts.follow,
         "print new lines until the job ends"},
        {"--tail N", OPTION_COUNT, &opts.tail, "only the last N lines"},
        {"-f", OPTION_ALIAS, NULL, "--follow"},
        {"-n N", OPTION_ALIAS, NULL, "--tail"},
        {"--namespace N", OPTION_TEXT, &space,
         "your user name, or one of your organisations"},
        {"--json", OPTION_FLAG, &f.json,
         "print each line as {\"text\":...,\"timestamp\":...}, then "
         "success, output, error, stage"},
        OPTIONS_END};
    if (!take_all(a, options, &word)) return a->status;
    if (!word) return usage(a, "JOB is missing; `hfsb job ls` lists them");
    split_job(word, space, &name);
    st = open_client(&c, true, &err);
    opts.cancel = c.cancel;
    if (st == HFSB_OK) st = follow_job(&c, &name, &opts, &f, &err);
    begin_object(&w, &result.fields);
    put_str(&w, "stage", hfsb_cstr(f.stage));
    end_object(&w);
    close_client(&c);
    return show_outcome(&result, st, &err, f.json);
}
