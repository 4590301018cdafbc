/* job_run.c - hfsb job run: start a job on the Hub and follow its log.

   The words are a script (a file whose text is sent, a URL, Python code) or a
   command. Ctrl-C stops following; the job goes on. With a schedule a scheduled
   job is made, and nothing runs yet. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 1024, MAX_SCRIPT = 8 << 20, POLL_MS = 2000 };

typedef struct run_call {
    const char     *image, *hardware, *timeout, *python, *space, *on, *name;
    const char     *schedule;
    bool            suspend; /* the scheduled job */
    texts           with, env, names, files, marks, mounts, exposed;
    bool            detach, json, wait;
    hfsb_str        words[MAX_WORDS];
    size_t          word_count;
    hfsb_str        packages[MAX_TEXTS];
    hfsb_hub_pair   variables[MAX_TEXTS], labels[MAX_TEXTS];
    secrets         kept;
    hfsb_job_volume volumes[MAX_TEXTS];
    unsigned        ports[MAX_TEXTS];
    hfsb_buf        source;
} run_call;

/* ---- the request ---- */

static hfsb_status take_lists(run_call *c, hfsb_err *err) {
    hfsb_status st = take_pairs("--env", &c->env, c->variables, err);
    size_t      i;
    if (st == HFSB_OK) st = take_pairs("--label", &c->marks, c->labels, err);
    if (st == HFSB_OK) st = take_volumes(&c->mounts, c->volumes, err);
    for (i = 0; i < c->exposed.count && st == HFSB_OK; i++) {
        char         *end;
        unsigned long port = strtoul(c->exposed.list[i], &end, 10);
        if (*end || !port || port > 65535)
            return fail(err, HFSB_ARG, "--expose needs a port, not %s",
                        c->exposed.list[i]);
        c->ports[i] = (unsigned)port;
    }
    return st;
}

static hfsb_status read_script(client *via, run_call *c, hfsb_err *err) {
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_sandbox     *sandbox = NULL;
    hfsb_status       st;
    if (!c->on)
        return hfsb_file_read(NULL, c->words[0], MAX_SCRIPT, &c->source, NULL,
                              err);
    st = open_named(via, c->on, &opts, &sandbox, err);
    if (st == HFSB_OK)
        st = hfsb_sandbox_get(sandbox, c->words[0], MAX_SCRIPT, NULL,
                              &c->source, err);
    if (sandbox) (void)hfsb_sandbox_close(sandbox, false, NULL);
    return st;
}

static void fill_spec(run_call *c, hfsb_job_spec *spec) {
    size_t i;
    spec->space = hfsb_cstr(c->space);
    spec->image = hfsb_cstr(c->image);
    spec->flavor = hfsb_cstr(c->hardware);
    spec->timeout = hfsb_cstr(c->timeout);
    spec->python = hfsb_cstr(c->python);
    spec->env = c->variables;
    spec->env_count = c->env.count;
    spec->secrets = c->kept.pairs;
    spec->secret_count = c->kept.count;
    spec->labels = c->labels;
    spec->label_count = c->marks.count;
    spec->name = hfsb_cstr(c->name);
    spec->schedule = hfsb_cstr(c->schedule);
    spec->suspend = c->suspend;
    spec->volumes = c->volumes;
    spec->volume_count = c->mounts.count;
    spec->ports = c->ports;
    spec->port_count = c->exposed.count;
    for (i = 0; i < c->with.count; i++)
        c->packages[i] = hfsb_cstr(c->with.list[i]);
    spec->with = c->packages;
    spec->with_count = c->with.count;
}

/* The default name of a job: that of its script, if a label can hold it. `job
   ls` shows it, because the command contains only the text. */
static hfsb_str script_name(const run_call *c) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ-._";
    hfsb_str          name = hfsb_path_base(c->words[0]);
    size_t            i;
    for (i = 0; i < c->marks.count; i++)
        if (hfsb_str_equal(c->labels[i].key, HFSB_LIT("name")))
            return HFSB_LIT("");
    if (name.len > 100 || strspn(name.ptr, plain) < name.len)
        return HFSB_LIT("");
    return name;
}

/* Starts the job. Scripts, and commands that need packages, run with uv; other
   commands run directly. */
static hfsb_status start_job(client *via, run_call *c, hfsb_json_doc *out,
                             hfsb_err *err) {
    hfsb_script_kind kind = hfsb_script_classify(c->words[0]);
    hfsb_job_spec    spec = HFSB_INIT;
    hfsb_status      st = HFSB_OK;
    fill_spec(c, &spec);
    if (kind == HFSB_SCRIPT_COMMAND && !c->with.count && !c->python) {
        spec.command = c->words;
        spec.command_count = c->word_count;
        return hfsb_hub_job_run(via->hub, &spec, via->cancel, out, err);
    }
    if (kind == HFSB_SCRIPT_PATH) st = read_script(via, c, err);
    if (st != HFSB_OK) return st;
    if (kind == HFSB_SCRIPT_PATH && !c->name) spec.name = script_name(c);
    spec.script =
        kind == HFSB_SCRIPT_PATH ? hfsb_buf_str(&c->source) : c->words[0];
    spec.is_source = kind == HFSB_SCRIPT_PATH || kind == HFSB_SCRIPT_INLINE;
    spec.args = c->words + 1;
    spec.arg_count = c->word_count - 1;
    return hfsb_hub_job_script(via->hub, &spec, via->cancel, out, err);
}

/* ---- following ---- */

static void print_page(const client *via, const hfsb_json_value *job) {
    hfsb_str end = hfsb_hub_endpoint(via->hub);
    hfsb_str id = get_str(job, "id");
    hfsb_str owner = get_str(hfsb_json_get(job, "owner"), "name");
    fprintf(stderr, "hfsb: job %.*s: %.*s/jobs/%.*s/%.*s\n", (int)id.len,
            id.ptr, (int)end.len, end.ptr, (int)owner.len, owner.ptr,
            (int)id.len, id.ptr);
}

/* Follows the log to its end. A job that did not complete is a failure. */
static hfsb_status follow(client *via, const run_call *c,
                          const hfsb_json_value *job, hfsb_err *err) {
    hfsb_log_opts opts = HFSB_INIT;
    job_follow    f = HFSB_INIT;
    job_name      name;
    hfsb_status   st;
    name.space = hfsb_cstr(c->space);
    name.id = get_str(job, "id");
    opts.follow = true;
    opts.cancel = via->cancel;
    st = follow_job(via, &name, &opts, &f, err);
    if (st == HFSB_CANCELLED)
        return fail(err, st,
                    "No longer following; the job goes on. See hfsb job logs "
                    "--follow %s, or end it: hfsb job cancel %s",
                    name.id.ptr, name.id.ptr);
    if (st == HFSB_OK && strcmp(f.stage, "COMPLETED") != 0)
        return fail(err, HFSB_REMOTE,
                    "Job %s ended: %s. See hfsb job inspect "
                    "%s",
                    name.id.ptr, f.stage, name.id.ptr);
    return st;
}

/* Waits for the end without its log; *doc becomes the job as it is then. */
static hfsb_status wait_for(client *via, run_call *c, hfsb_json_doc *doc,
                            hfsb_err *err) {
    hfsb_json_doc ended = HFSB_INIT;
    hfsb_str      id = get_str(doc->root, "id"), stage;
    hfsb_status   st = hfsb_hub_job_wait(via->hub, hfsb_cstr(c->space), id,
                                         POLL_MS, via->cancel, &ended, err);
    if (st != HFSB_OK) return st;
    hfsb_json_free(doc);
    *doc = ended;
    id = get_str(doc->root, "id");
    stage = job_stage(doc->root);
    if (hfsb_str_equal(stage, HFSB_LIT("COMPLETED"))) return HFSB_OK;
    return fail(err, HFSB_REMOTE,
                "Job %.*s ended: %.*s. See hfsb job logs "
                "%.*s",
                (int)id.len, id.ptr, (int)stage.len, stage.ptr, (int)id.len,
                id.ptr);
}

/* Describes the job that was started, and follows it unless --detach. */
static hfsb_status report(client *via, run_call *c, hfsb_json_doc *doc,
                          hfsb_tool_result *result, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    if (!c->json) print_page(via, doc->root);
    if (c->wait && (c->detach || c->json)) st = wait_for(via, c, doc, err);
    put_job(doc->root, result);
    if (c->detach || c->json)
        must(hfsb_buf_append(&result->output, get_str(doc->root, "id")));
    else st = follow(via, c, doc->root, err);
    return st;
}

/* Describes the scheduled job that was made. */
static void report_schedule(const run_call *c, const hfsb_json_value *job,
                            hfsb_tool_result *result) {
    hfsb_str id = get_str(job, "id");
    must(hfsb_buf_append(&result->output, id));
    put_scheduled(job, result);
    if (c->json) return;
    fprintf(stderr,
            "hfsb: scheduled job %.*s, which costs money at every run; end "
            "it with: hfsb job schedule delete %.*s\n",
            (int)id.len, id.ptr, (int)id.len, id.ptr);
}

static int run(run_call *c) {
    client           via = HFSB_INIT;
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_tool_result result = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st = open_client(&via, true, &err);
    if (st == HFSB_OK) st = take_lists(c, &err);
    if (st == HFSB_OK)
        st = take_secrets(&via, &c->names, &c->files, &c->kept, &err);
    if (st == HFSB_OK) st = start_job(&via, c, &doc, &err);
    if (st == HFSB_OK && c->schedule)
        report_schedule(c, doc.root, &result);
    else if (st == HFSB_OK) st = report(&via, c, &doc, &result, &err);
    hfsb_json_free(&doc);
    close_client(&via);
    return show_outcome(&result, st, &err, c->json);
}

int run_job_run(args *a) {
    static run_call c; /* large */

    const option options[] = {
        {"--hardware H", OPTION_TEXT, &c.hardware,
         "such as t4-small; see `hfsb hardware --jobs` (cpu-basic)"},
        {"--flavor H", OPTION_ALIAS, NULL, "--hardware"},
        {"--image I", OPTION_TEXT, &c.image,
         "Docker image, or the page of a Space"},
        {"--timeout T", OPTION_TEXT, &c.timeout,
         "end the job after T: 30m, 2h, 90 (seconds); the Hub's default is "
         "30m"},
        {"--with PACKAGE", OPTION_TEXTS, &c.with,
         "a Python package that the script needs; may be repeated"},
        {"--python V", OPTION_TEXT, &c.python,
         "Python version, such as 3.12"},
        {"--env NAME=VALUE", OPTION_TEXTS, &c.env,
         "an environment variable, not for secrets; may be repeated"},
        {"-e NAME=VALUE", OPTION_ALIAS, NULL, "--env"},
        {"--secret NAME", OPTION_TEXTS, &c.names,
         "pass the environment variable NAME as a secret; may be repeated"},
        {"--secrets NAME", OPTION_ALIAS, NULL, "--secret"},
        {"-s NAME", OPTION_ALIAS, NULL, "--secret"},
        {"--secret-file NAME=FILE", OPTION_TEXTS, &c.files,
         "pass the content of FILE as the secret NAME"},
        {"--label NAME=VALUE", OPTION_TEXTS, &c.marks,
         "a label, for `job ls --label`; may be repeated"},
        {"--name N", OPTION_TEXT, &c.name,
         "value of the label \"name\" (the file name of SCRIPT)"},
        {"--volume V", OPTION_TEXTS, &c.mounts,
         "TYPE:OWNER/NAME[@REVISION]:/MOUNT[:ro], TYPE is model, dataset, "
         "space or bucket; may be repeated"},
        {"--expose PORT", OPTION_TEXTS, &c.exposed,
         "give this port a URL that requires your token; may be repeated"},
        {"--on SANDBOX", OPTION_TEXT, &c.on,
         "read the file SCRIPT from this sandbox"},
        {"--namespace N", OPTION_TEXT, &c.space,
         "your user name, or one of your organisations"},
        {"--schedule WHEN", OPTION_TEXT, &c.schedule,
         "run it repeatedly instead of now: @hourly, @daily, @weekly, "
         "@monthly, @yearly, or a cron expression: '0 9 * * 1'; see hfsb job "
         "schedule"},
        {"--suspend", OPTION_FLAG, &c.suspend,
         "with --schedule: start nothing until it is resumed"},
        {"--detach", OPTION_FLAG, &c.detach,
         "print the id of the job without following it"},
        {"-d", OPTION_ALIAS, NULL, "--detach"},
        {"--wait", OPTION_FLAG, &c.wait,
         "with --detach or --json: return when the job has ended"},
        OPTION_JSON(&c.json, ", id, stage, job; do not follow the job"),
        OPTIONS_END};
    int code;
    if (!take_options(a, options)) return a->status;
    if (a->next == a->count) return usage(a, "SCRIPT is missing");
    if (c.suspend && !c.schedule)
        return usage(a, "--suspend needs --schedule");
    if (c.wait && c.schedule)
        return usage(a, "--wait is for a job that runs now, not for one with "
                        "--schedule");
    if (a->count - a->next > MAX_WORDS)
        return usage(a, "more than %d words", (int)MAX_WORDS);
    for (; a->next < a->count; a->next++)
        c.words[c.word_count++] = hfsb_cstr(a->list[a->next]);
    code = run(&c);
    free_secrets(&c.kept);
    hfsb_buf_free(&c.source);
    return code;
}
