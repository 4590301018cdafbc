/* job_schedule.c - hfsb job schedule ls, inspect, suspend, resume, run,
   delete: scheduled jobs on the Hub.

   `hfsb job run --schedule` makes one: a schedule, and what each of its jobs
   runs. It is named by ID or NAMESPACE/ID, and described by the JSON object
   that the Hub returns for it. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static bool is_suspended(const hfsb_json_value *job) {
    return hfsb_json_bool(hfsb_json_get(job, "suspend"), false);
}

void put_scheduled(const hfsb_json_value *job, hfsb_tool_result *result) {
    hfsb_json_writer w;
    begin_object(&w, &result->fields);
    put_str(&w, "id", get_str(job, "id"));
    put_str(&w, "schedule", get_str(job, "schedule"));
    put_bool(&w, "suspended", is_suspended(job));
    hfsb_json_put_key(&w, HFSB_LIT("job"));
    hfsb_json_put_value(&w, job);
    end_object(&w);
}

static const table_column columns[] = {{"ID", 0, false},
                                       {"SCHEDULE", 12, false},
                                       {"STATE", 9, true},
                                       {"HARDWARE", 11, false},
                                       {"COMMAND", 0, false}};

static void add_row(table *rows, const hfsb_json_value *job) {
    const hfsb_json_value *spec = hfsb_json_get(job, "jobSpec");
    hfsb_buf               words = HFSB_INIT;
    hfsb_str               cells[5];
    add_words(&words, spec);
    cells[0] = get_str(job, "id");
    cells[1] = get_str(job, "schedule");
    cells[2] = is_suspended(job) ? HFSB_LIT("suspended") : HFSB_LIT("active");
    cells[3] = get_str(spec, "flavor");
    cells[4] = hfsb_buf_str(&words);
    table_add(rows, cells);
    hfsb_buf_free(&words);
}

/* ---- ls ---- */

typedef struct schedule_list {
    table            rows;
    hfsb_json_writer w;
} schedule_list;

static bool list_scheduled(void *user, const hfsb_json_value *job) {
    schedule_list *l = (schedule_list *)user;
    add_row(&l->rows, job);
    hfsb_json_put_value(&l->w, job);
    return true;
}

int run_schedule_ls(args *a) {
    schedule_list    l;
    const char      *space = NULL;
    bool             json = false;
    client           c = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;

    const option options[] = {{"--namespace N", OPTION_TEXT, &space,
                               "your user name, or one of your organisations"},
                              OPTION_JSON(&json, ", jobs"),
                              OPTIONS_END};
    table_begin(&l.rows, columns, 5);
    l.rows.cut = true;
    if (!take_all(a, options, NULL)) return a->status;
    st = open_client(&c, true, &err);
    begin_object(&l.w, &result.fields);
    hfsb_json_put_key(&l.w, HFSB_LIT("jobs"));
    hfsb_json_put_array(&l.w);
    if (st == HFSB_OK)
        st = hfsb_hub_scheduled_jobs(c.hub, hfsb_cstr(space), list_scheduled,
                                     &l, c.cancel, &err);
    hfsb_json_put_end(&l.w);
    end_object(&l.w);
    close_client(&c);
    return show_table(&result, st, &err, &l.rows, json);
}

/* ---- one of them ---- */

/* Does it; *out is the scheduled job as it is afterwards, or the job that was
   started, or empty after a deletion. */
static hfsb_status act(const client *c, hfsb_scheduled what,
                       const job_name *name, hfsb_json_doc *out,
                       hfsb_err *err) {
    hfsb_status st = hfsb_hub_scheduled(c->hub, what, name->space, name->id,
                                        c->cancel, out, err);
    if (st != HFSB_OK ||
        (what != HFSB_SCHEDULED_SUSPEND && what != HFSB_SCHEDULED_RESUME))
        return st;
    hfsb_json_free(out);
    memset(out, 0, sizeof *out);
    return hfsb_hub_scheduled(c->hub, HFSB_SCHEDULED_GET, name->space,
                              name->id, c->cancel, out, err);
}

/* A row without heads and colours, as in a pipe. */
static void put_line(hfsb_buf *out, const hfsb_json_value *job) {
    const hfsb_json_value *spec = hfsb_json_get(job, "jobSpec");
    hfsb_str               id = get_str(job, "id");
    hfsb_str               when = get_str(job, "schedule");
    hfsb_str               flavor = get_str(spec, "flavor");
    must(hfsb_buf_printf(out, "%.*s  %-12.*s  %-9s  %-11.*s  ", (int)id.len,
                         id.ptr, (int)when.len, when.ptr,
                         is_suspended(job) ? "suspended" : "active",
                         (int)flavor.len, flavor.ptr));
    add_words(out, spec);
}

static void describe(hfsb_scheduled what, const job_name *name,
                     const hfsb_json_value *job, bool json,
                     hfsb_tool_result *result) {
    hfsb_json_write_opts pretty = HFSB_INIT;
    hfsb_json_writer     w;
    pretty.pretty = true;
    if (what == HFSB_SCHEDULED_DELETE) {
        must(hfsb_buf_printf(&result->output, "Deleted %.*s",
                             (int)name->id.len, name->id.ptr));
        begin_object(&w, &result->fields);
        put_str(&w, "id", name->id);
        end_object(&w);
    } else if (what == HFSB_SCHEDULED_RUN) {
        must(hfsb_buf_append(&result->output, get_str(job, "id")));
        put_job(job, result);
    } else {
        if (what == HFSB_SCHEDULED_GET && !json)
            must(hfsb_json_write(job, &pretty, &result->output, NULL));
        else put_line(&result->output, job);
        put_scheduled(job, result);
    }
}

static int run_on_scheduled(args *a, hfsb_scheduled what) {
    const char      *space = NULL, *word = NULL;
    bool             json = false;
    client           c = HFSB_INIT;
    job_name         name;
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st;

    const option options[] = {
        {"--namespace N", OPTION_TEXT, &space,
         "your user name, or one of your organisations"},
        OPTION_JSON(&json, ", id; schedule, suspended and job (run: stage and "
                           "job; delete: none)"),
        OPTIONS_END};
    if (!take_all(a, options, &word)) return a->status;
    if (!word)
        return usage(a, "ID is missing; `hfsb job schedule ls` lists them");
    split_job(word, space, &name);
    st = open_client(&c, true, &err);
    if (st == HFSB_OK) st = act(&c, what, &name, &doc, &err);
    if (st == HFSB_OK) describe(what, &name, doc.root, json, &result);
    hfsb_json_free(&doc);
    close_client(&c);
    return show_outcome(&result, st, &err, json);
}

int run_schedule_inspect(args *a) {
    return run_on_scheduled(a, HFSB_SCHEDULED_GET);
}

int run_schedule_suspend(args *a) {
    return run_on_scheduled(a, HFSB_SCHEDULED_SUSPEND);
}

int run_schedule_resume(args *a) {
    return run_on_scheduled(a, HFSB_SCHEDULED_RESUME);
}

int run_schedule_run(args *a) {
    return run_on_scheduled(a, HFSB_SCHEDULED_RUN);
}

int run_schedule_delete(args *a) {
    return run_on_scheduled(a, HFSB_SCHEDULED_DELETE);
}
