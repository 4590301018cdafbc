/* test_session_jobs.c - hf_jobs: the requests to the Hub for the arguments of a
   model, the output about jobs, and the errors. */
#define T_SERVER
#include "../support/t_session_hub.h"

#define JOBS "/api/jobs/alice"
#define JOB  "68a5b3c00000000000000001"

static struct {
    sh_world world;
    char     dir[80];
} here;

/* A session whose sandbox has the current directory for its files; it is made
   when it is needed. */
static void begin(const char *stages, const char *log) {
    fh_opts fake = HFSB_INIT;
    snprintf(here.dir, sizeof here.dir, "%s/work", tt_dir);
    fake.mode = FH_EMBED;
    fake.prompt = true;
    fake.work_dir = here.dir;
    fake.job_stages = stages;
    fake.job_log = log;
    sh_begin(&here.world, &fake);
    here.world.sandbox.work_dir = hfsb_cstr(here.dir);
    here.world.opts.no_preload = true;
    here.world.opts.alloc = tt_alloc();
}

static void end(void) {
    sh_close(&here.world);
    sh_end(&here.world);
}

static void call(tt_reply *r, const char *json) {
    sn_do(r, here.world.session, "hf_jobs", hfsb_cstr(json), NULL);
    T_CHECK(r->sane);
}

/* A member of the body of the n-th job that was run (from 0), as JSON. */
static bool sent_is(size_t n, const char *key, const char *want) {
    const fh_record *record = fh_nth(here.world.fh, n, "POST", JOBS);
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_buf         text = HFSB_INIT;
    bool             ok;
    if (!record ||
        hfsb_json_parse(hfsb_buf_str(&record->body), NULL, &doc, NULL))
        return false;
    ok = hfsb_json_write(hfsb_json_get(doc.root, key), NULL, &text, NULL) ==
             HFSB_OK &&
         hfsb_str_equal(hfsb_buf_str(&text), hfsb_cstr(want));
    if (!ok) printf("  %s is %s\n", key, text.ptr ? text.ptr : "");
    hfsb_buf_free(&text);
    hfsb_json_free(&doc);
    return ok;
}

#define CALM                                                             \
    "\"PYTHONUNBUFFERED\":\"1\",\"UV_NO_PROGRESS\":\"1\","               \
    "\"HF_HUB_DISABLE_PROGRESS_BARS\":\"1\",\"TQDM_DISABLE\":\"1\""

/* ---- run ---- */

static const struct {
    const char *json; /* next to the operation */
    const char *key, *sent;
} run_cases[] = {
    /* scripts */
    {"\"script\":\"import os\\nprint(1)\\n\"", "command",
     "[\"/bin/sh\",\"-lc\",\"echo \\\"aW1wb3J0IG9zCnByaW50KDEpCg==\\\" | "
     "base64 -d | uv run -\"]"},
    {"\"script\":\"train.py\"", "command",
     "[\"/bin/sh\",\"-lc\",\"echo \\\"cHJpbnQoJ2hpJykK\\\" | base64 -d | uv "
     "run -\"]"},
    {"\"script\":\"./train.py\"", "command",
     "[\"/bin/sh\",\"-lc\",\"echo \\\"cHJpbnQoJ2hpJykK\\\" | base64 -d | uv "
     "run -\"]"},
    {"\"script\":\"https://x.test/a.py\"", "command",
     "[\"uv\",\"run\",\"https://x.test/a.py\"]"},
    {"\"script\":\"https://x.test/a.py\",\"dependencies\":[\"trl\","
     "\"torch>=2\"],\"python\":\"3.11\",\"script_args\":[\"--n\",3,true]",
     "command",
     "[\"uv\",\"run\",\"--with\",\"trl\",\"--with\",\"torch>=2\","
     "\"--python\",\"3.11\",\"https://x.test/a.py\",\"--n\",\"3\",\"true\"]"},
    {"\"script\":\"train.py\",\"dependencies\":[\"trl\"],\"script_args\":"
     "[\"it's\"]",
     "command",
     "[\"/bin/sh\",\"-lc\",\"echo \\\"cHJpbnQoJ2hpJykK\\\" | base64 -d | uv "
     "run --with trl - 'it'\\\"'\\\"'s'\"]"},
    /* lists that come as strings */
    {"\"script\":\"https://x.test/a.py\",\"dependencies\":\"[\\\"trl\\\"]\","
     "\"script_args\":\" [1, \\\"b\\\"] \"",
     "command",
     "[\"uv\",\"run\",\"--with\",\"trl\",\"https://x.test/a.py\",\"1\","
     "\"b\"]"},
    {"\"script\":\"https://x.test/a.py\",\"dependencies\":[],"
     "\"script_args\":null",
     "command", "[\"uv\",\"run\",\"https://x.test/a.py\"]"},
    /* commands */
    {"\"command\":\"nvidia-smi && ls\"", "command",
     "[\"/bin/sh\",\"-lc\",\"nvidia-smi && ls\"]"},
    {"\"command\":[\"python\",\"-c\",\"print('hi')\"]", "command",
     "[\"python\",\"-c\",\"print('hi')\"]"},
    {"\"command\":\"[\\\"ls\\\", \\\"-l\\\"]\"", "command",
     "[\"ls\",\"-l\"]"},
    {"\"command\":\"[ -f x ] && ls\"", "command",
     "[\"/bin/sh\",\"-lc\",\"[ -f x ] && ls\"]"},
    {"\"command\":\"ls\",\"labels\":{\"a\":\"b\",\"n\":3},\"name\":\"x\","
     "\"env\":{\"AB\":\"1\"},\"script_args\":[],\"dependencies\":[],"
     "\"ports\":[8080,\"81\"],\"volumes\":[\"model:a/b:/m:ro\"]",
     "labels", "{\"a\":\"b\",\"n\":\"3\",\"name\":\"x\"}"},
    {"\"command\":\"ls\",\"volumes\":[\"model:a/b:/m:ro\","
     "\"dataset:c@v2:/d\"]",
     "volumes",
     "[{\"type\":\"model\",\"source\":\"a/b\",\"mountPath\":\"/m\","
     "\"readOnly\":true},{\"type\":\"dataset\",\"source\":\"c\","
     "\"mountPath\":\"/d\",\"revision\":\"v2\"}]"},
    {"\"command\":\"ls\",\"ports\":\"[8080]\"", "expose",
     "{\"ports\":[8080],\"portsPublic\":[]}"},
    {"\"command\":\"ls\",\"script\":\"\"", "command",
     "[\"/bin/sh\",\"-lc\",\"ls\"]"},
    {"\"script\":\"https://x.test/a.py\",\"command\":null", "command",
     "[\"uv\",\"run\",\"https://x.test/a.py\"]"},
    /* images and hardware */
    {"\"command\":\"ls\"", "dockerImage", "\"python:3.12\""},
    {"\"script\":\"print(1)\\n\"", "dockerImage",
     "\"ghcr.io/astral-sh/uv:python3.12-bookworm\""},
    {"\"command\":\"ls\",\"image\":\"ubuntu\"", "dockerImage", "\"ubuntu\""},
    {"\"command\":\"ls\",\"image\":\"https://hf.co/spaces/a/b\"", "spaceId",
     "\"a/b\""},
    {"\"command\":\"ls\"", "flavor", "\"cpu-basic\""},
    {"\"command\":\"ls\",\"hardware_flavor\":\"new-one\"", "flavor",
     "\"new-one\""},
    /* times */
    {"\"command\":\"ls\"", "timeoutSeconds", "null"},
    {"\"command\":\"ls\",\"timeout\":\"30m\"", "timeoutSeconds", "1800"},
    {"\"command\":\"ls\",\"timeout\":\"1.5h\"", "timeoutSeconds", "5400"},
    {"\"command\":\"ls\",\"timeout\":\"90\"", "timeoutSeconds", "90"},
    {"\"command\":\"ls\",\"timeout\":90", "timeoutSeconds", "90"},
    {"\"command\":\"ls\",\"timeout\":90.0", "timeoutSeconds", "90"},
    /* variables */
    {"\"command\":\"ls\"", "environment", "{" CALM "}"},
    {"\"command\":\"ls\",\"env\":{\"AB\":\"x\",\"CD\":2}", "environment",
     "{" CALM ",\"AB\":\"x\",\"CD\":\"2\"}"},
    {"\"command\":\"ls\",\"env\":\"{\\\"AB\\\": true}\"", "environment",
     "{" CALM ",\"AB\":\"true\"}"},
    {"\"command\":\"ls\",\"env\":{\"TQDM_DISABLE\":\"0\"}", "environment",
     "{\"PYTHONUNBUFFERED\":\"1\",\"UV_NO_PROGRESS\":\"1\","
     "\"HF_HUB_DISABLE_PROGRESS_BARS\":\"1\",\"TQDM_DISABLE\":\"0\"}"},
    {"\"command\":\"ls\",\"trackio_space_id\":\"alice/ml-intern-1\"",
     "environment", "{" CALM ",\"TRACKIO_SPACE_ID\":\"alice/ml-intern-1\"}"},
    {"\"command\":\"ls\",\"trackio_project\":\"p\",\"trackio_space_id\":"
     "\"a/b\",\"env\":{\"TRACKIO_SPACE_ID\":\"x/y\",\"AB\":\"1\"}",
     "environment",
     "{" CALM ",\"AB\":\"1\",\"TRACKIO_SPACE_ID\":\"a/b\","
     "\"TRACKIO_PROJECT\":\"p\"}"},
    {"\"command\":\"ls\",\"trackio_project\":\"p\"", "secrets",
     "{\"HF_TOKEN\":\"" FH_TOKEN "\"}"},
    /* secrets */
    {"\"command\":\"ls\"", "secrets", "{\"HF_TOKEN\":\"" FH_TOKEN "\"}"},
    {"\"command\":\"ls\",\"secrets\":[]", "secrets", "null"},
    {"\"command\":\"ls\",\"secrets\":[\"WANDB\",\"HF_TOKEN\"]", "secrets",
     "{\"WANDB\":\"wandb-key\",\"HF_TOKEN\":\"" FH_TOKEN "\"}"},
    {"\"command\":\"ls\",\"secrets\":\"[\\\"WANDB\\\"]\"", "secrets",
     "{\"WANDB\":\"wandb-key\"}"},
    {"\"command\":\"ls\",\"secrets\":{\"HF_TOKEN\":\"$HF_TOKEN\","
     "\"WANDB\":\"\",\"OTHER\":\"own\"}",
     "secrets",
     "{\"HF_TOKEN\":\"" FH_TOKEN "\",\"WANDB\":\"wandb-key\",\"OTHER\":"
     "\"own\"}"},
};

static void run_sends_what_was_asked_for(void) {
    hfsb_hub_pair wandb = HFSB_INIT;
    tt_reply      r = HFSB_INIT;
    hfsb_buf      text = HFSB_INIT;
    size_t        i;
    begin(NULL, NULL);
    wandb.key = HFSB_LIT("WANDB");
    wandb.value = HFSB_LIT("wandb-key");
    here.world.spec.secrets = &wandb;
    here.world.spec.secret_count = 1;
    sh_open(&here.world);
    tt_put("train.py", HFSB_LIT("print('hi')\n"));
    for (i = 0; i < TT_COUNT(run_cases); i++) {
        char json[600], want[120];
        snprintf(json, sizeof json, "{\"operation\":\"run\",%s}",
                 run_cases[i].json);
        call(&r, json);
        T_CHECK(r.st == HFSB_OK && r.res.success);
        if (!r.res.success) printf("%s: %s\n", json, r.res.error.ptr);
        T_CHECK(sent_is(i, run_cases[i].key, run_cases[i].sent));
        snprintf(want, sizeof want, "Job 68a5b3c0%016zx was started on ",
                 i + 1);
        T_CHECK(tt_says(&r.res.output, want));
        T_CHECK(!tt_says(&r.res.output, FH_TOKEN));
        hfsb_buf_truncate(&text, 0);
        T_CHECK(hfsb_json_write(r.res.fields.root, NULL, &text, NULL) ==
                HFSB_OK);
        T_CHECK(!tt_says(&text, FH_TOKEN));
    }
    hfsb_buf_free(&text);
    T_CHECK(tt_text(&r, "id").len == 24);
    T_STR(hfsb_buf_str(&r.res.output).ptr ? r.res.output : r.res.error,
          "Job 68a5b3c00000000000000029 was started on cpu-basic "
          "(SCHEDULING). Its logs and inspect take this job_id.");
    T_CHECK(sn_heard("Started job " JOB " on cpu-basic") == 1);
    T_CHECK(sn_heard(FH_TOKEN) == 0 && sn_heard("wandb-key") == 0);
    unlink("train.py");
    tt_drop(&r);
    end();
}

/* What the Hub's own client was seen to send. */
static const hfsb_json_value *golden(const hfsb_json_value *list,
                                     const char            *tag) {
    hfsb_json_iter it = hfsb_json_begin(list);
    while (hfsb_json_next(&it))
        if (hfsb_str_equal(
                hfsb_json_str(hfsb_json_get(it.value, "tag"), HFSB_LIT("")),
                hfsb_cstr(tag)))
            return hfsb_json_get(it.value, "json");
    return NULL;
}

static void run_sends_what_the_hubs_own_client_does(void) {
    static const struct {
        const char *tag, *json;
    } cases[] = {
        {"run_job",
         "{\"operation\":\"run\",\"command\":[\"python\",\"-c\",\"print('hi')"
         "\"],\"hardware_flavor\":\"t4-small\",\"timeout\":\"30m\"}"},
        {"run_uv_job[url]",
         "{\"operation\":\"run\",\"script\":\"https://example.com/sft.py\","
         "\"dependencies\":[\"trl\",\"torch>=2\"],\"python\":\"3.12\","
         "\"script_args\":[\"--epochs\",\"3\"],\"hardware_flavor\":"
         "\"a10g-small\",\"timeout\":\"2h\",\"namespace\":\"alice\"}"}};
    static const char *const keys[] = {"command", "arguments",     "flavor",
                                       "secrets", "timeoutSeconds",
                                       "dockerImage"};
    hfsb_buf      text = HFSB_INIT;
    hfsb_json_doc doc = HFSB_INIT;
    tt_reply      r = HFSB_INIT;
    size_t        i, k;
    if (!t_data_file("data/hub/golden.json", &text)) return;
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&text), NULL, &doc, NULL) ==
            HFSB_OK);
    begin(NULL, NULL);
    sh_open(&here.world);
    for (i = 0; i < TT_COUNT(cases); i++) {
        const hfsb_json_value *want =
            golden(hfsb_json_get(doc.root, "1.12.0"), cases[i].tag);
        T_CHECK(want != NULL);
        call(&r, cases[i].json);
        T_CHECK(r.res.success);
        for (k = 0; k < TT_COUNT(keys); k++) {
            hfsb_buf value = HFSB_INIT;
            T_CHECK(hfsb_json_write(hfsb_json_get(want, keys[k]), NULL, &value,
                                    NULL) == HFSB_OK);
            T_CHECK(sent_is(i, keys[k], value.ptr));
            hfsb_buf_free(&value);
        }
    }
    tt_drop(&r);
    end();
    hfsb_json_free(&doc);
    hfsb_buf_free(&text);
}

/* ---- what is wrong is said ---- */

static const struct {
    const char *json, *error;
} wrong_cases[] = {
    {"{}", "\"operation\" is missing"},
    {"{\"operation\":\"start\"}",
     "\"operation\": expected run, ps, logs, inspect or cancel, or "
     "scheduled_ps, _inspect, _delete, _suspend, _resume or _run, found "
     "\"start\""},
    {"{\"operation\":\"run\"}", "\"script\" is missing"},
    {"{\"operation\":\"run\",\"script\":\"\"}", "\"script\" is missing"},
    {"{\"operation\":\"run\",\"script\":\" \\n\"}", "The script is empty."},
    {"{\"operation\":\"run\",\"command\":\" \\t\"}",
     "\"script\" is missing"},
    {"{\"operation\":\"run\",\"script\":\"x.py\",\"command\":\"ls\"}",
     "\"script\" and \"command\" are both given"},
    {"{\"operation\":\"run\",\"command\":[]}", "\"command\" has no words"},
    {"{\"operation\":\"run\",\"command\":[[]]}",
     "\"command\": expected strings in it, found array"},
    {"{\"operation\":\"run\",\"command\":3}",
     "\"command\": expected an array, found 3"},
    {"{\"operation\":\"run\",\"command\":\"ls\",\"dependencies\":[\"a\"]}",
     "\"dependencies\", \"script_args\" and \"python\" go with script"},
    {"{\"operation\":\"run\",\"command\":\"ls\",\"timeout\":\"soon\"}",
     "\"soon\" is not a valid timeout of a job"},
    {"{\"operation\":\"run\",\"command\":\"ls\",\"timeout\":-1}",
     "\"-1\" is not a valid timeout of a job"},
    {"{\"operation\":\"run\",\"command\":\"ls\",\"schedule\":\"often\"}",
     "\"often\" is not a valid schedule of a job: expected @hourly"},
    {"{\"operation\":\"run\",\"command\":\"ls\",\"schedule\":\"* * * *\"}",
     "\"* * * *\" is not a valid schedule"},
    {"{\"operation\":\"run\",\"command\":\"ls\",\"schedule\":"
     "\"@daily now\"}",
     "\"@daily now\" is not a valid schedule"},
    {"{\"operation\":\"run\",\"command\":\"ls\",\"timeout\":[]}",
     "\"timeout\": expected a string"},
    {"{\"operation\":\"run\",\"script\":\"a\\nb\",\"dependencies\":\"trl\"}",
     "\"dependencies\": expected an array, found the string \"trl\""},
    {"{\"operation\":\"run\",\"script\":\"a\\nb\",\"dependencies\":"
     "\"[\\\"trl\\\"\"}",
     "\"dependencies\": expected an array, found the string \"[\"trl\"\", "
     "which is not JSON: "},
    {"{\"operation\":\"run\",\"script\":\"a\\nb\",\"env\":{\"AB\":null}}",
     "\"env\": expected strings in it, found null"},
    {"{\"operation\":\"run\",\"command\":\"ls\",\"secrets\":[\"NONE\"]}",
     "\"secrets\": there is no \"NONE\" in this session; it has HF_TOKEN."},
    {"{\"operation\":\"run\",\"script\":\"none.py\"}",
     "The script none.py cannot be read from the sandbox"},
    {"{\"operation\":\"logs\"}", "\"job_id\" is missing: operation logs"},
    {"{\"operation\":\"cancel\",\"job_id\":\"\"}",
     "\"job_id\" is missing: operation cancel"},
    {"{\"operation\":\"inspect\",\"job_id\":\"a b\"}",
     "\"a b\" is not a valid job id"},
    {"{\"operation\":\"run\",\"command\":\"ls\",\"ports\":[0]}",
     "0 is not a port"},
    {"{\"operation\":\"run\",\"command\":\"ls\",\"ports\":[\"x\"]}",
     "\"ports\": expected numbers"},
    {"{\"operation\":\"run\",\"command\":\"ls\",\"volumes\":[\"a/b:/m\"]}",
     "A job's volume is TYPE:OWNER/NAME"},
    {"{\"operation\":\"run\",\"command\":\"ls\",\"labels\":{\"a\":\"b c\"}}",
     "The label \"a\" = \"b c\" is invalid"},
    {"{\"operation\":\"ps\",\"namespace\":\"?\"}",
     "\"?\" is not a valid user or organisation"},
};

static void bad_arguments_are_refused_before_a_job_starts(void) {
    tt_reply r = HFSB_INIT;
    size_t   i;
    begin(NULL, NULL);
    sh_open(&here.world);
    for (i = 0; i < TT_COUNT(wrong_cases); i++) {
        call(&r, wrong_cases[i].json);
        TT_FAIL(&r, wrong_cases[i].error);
        T_CHECK(r.st != HFSB_OK);
    }
    call(&r, "{\"operation\":\"run\",\"script\":\"/fsx/me/train.py\"}");
    TT_FAIL(&r, "The script /fsx/me/train.py cannot be read");
    T_CHECK(tt_says(&r.res.error, "train.py (It looks like a path of the "));
    call(&r, "{\"operation\":\"inspect\",\"job_id\":\"nope\"}");
    T_CHECK(r.st == HFSB_NOT_FOUND && tt_says(&r.res.error, "nope"));
    T_CHECK(fh_count(here.world.fh, "POST", JOBS) == 0);
    tt_drop(&r);
    end();
}

static void a_refusal_names_the_hardware_there_is(void) {
    fh_fault_spec no = HFSB_INIT;
    tt_reply      r = HFSB_INIT;
    begin(NULL, NULL);
    sh_open(&here.world);
    no.method = "POST";
    no.path = JOBS;
    no.status = 400;
    no.times = FH_ALWAYS;
    no.message = "Invalid flavor for " FH_TOKEN;
    fh_fault(here.world.fh, &no);
    call(&r, "{\"operation\":\"run\",\"command\":\"ls\",\"hardware_flavor\":"
             "\"t5-tiny\"}");
    T_CHECK(!r.res.success && tt_says(&r.res.error, "Invalid flavor"));
    T_CHECK(tt_says(&r.res.error, "no hardware \"t5-tiny\"; known are: "
                                  "cpu-basic "));
    T_CHECK(!tt_says(&r.res.error, FH_TOKEN));
    call(&r, "{\"operation\":\"run\",\"command\":\"ls\",\"hardware_flavor\":"
             "\"t4-small\"}");
    T_CHECK(!r.res.success && !tt_says(&r.res.error, "known are"));
    tt_drop(&r);
    end();
}

static void a_reply_without_a_job_id_is_an_error(void) {
    static const char *const cases[][2] = {
        {JOBS, "{\"operation\":\"run\",\"command\":\"ls\"}"},
        {JOBS "/" JOB, "{\"operation\":\"inspect\",\"job_id\":\"" JOB "\"}"},
        {JOBS "/" JOB "/cancel",
         "{\"operation\":\"cancel\",\"job_id\":\"" JOB "\"}"}};
    tt_reply r = HFSB_INIT;
    size_t   i;
    begin("RUNNING", NULL);
    sh_open(&here.world);
    for (i = 0; i < TT_COUNT(cases); i++) {
        fh_fault_spec odd = HFSB_INIT;
        odd.path = cases[i][0];
        odd.status = 200;
        odd.shape = FH_RAW;
        odd.message = "{\"id\":\"x\",\"status\":{}}";
        fh_fault(here.world.fh, &odd);
        call(&r, cases[i][1]);
        TT_FAIL(&r, "The Hub accepted the request but returned no job id.");
        T_CHECK(tt_says(&r.res.error, "before you run it again") == (i == 0));
    }
    tt_drop(&r);
    end();
}

/* ---- scheduled jobs ---- */

#define LATER "/api/scheduled-jobs/alice"

static void a_job_is_scheduled_and_managed(void) {
    static const char id[] = "68a5b3c10000000000000001";
    char              json[160];
    const fh_record  *record;
    hfsb_json_doc     doc = HFSB_INIT;
    hfsb_str          body;
    tt_reply          r = HFSB_INIT;
    begin(NULL, NULL);
    sh_open(&here.world);
    call(&r, "{\"operation\":\"scheduled_ps\"}");
    T_STR(r.res.output, "There are no scheduled jobs.");
    call(&r, "{\"operation\":\"run\",\"command\":[\"date\"],\"schedule\":"
             "\"@daily\"}");
    T_STR(r.res.output, "Scheduled job 68a5b3c10000000000000001 was made (@daily). It "
             "costs money at every run until scheduled_delete.");
    record = fh_nth(here.world.fh, 0, "POST", LATER);
    T_CHECK(record && !fh_nth(here.world.fh, 0, "POST", JOBS));
    body = record ? hfsb_buf_str(&record->body) : HFSB_LIT("");
    T_CHECK(hfsb_str_starts(body,
                            HFSB_LIT("{\"jobSpec\":{\"command\":[\"date\"],"
                                     "\"arguments\":[],")));
    T_CHECK(hfsb_str_ends(body, HFSB_LIT("\"dockerImage\":\"python:3.12\"},"
                                         "\"schedule\":\"@daily\"}")));
    T_CHECK(hfsb_json_parse(body, NULL, &doc, NULL) == HFSB_OK);
    hfsb_json_free(&doc);
    call(&r, "{\"operation\":\"scheduled_ps\"}");
    T_STR(r.res.output, "68a5b3c10000000000000001  @daily        active     cpu-basic     "
             "date");
    snprintf(json, sizeof json,
             "{\"operation\":\"scheduled_suspend\",\"job_id\":\"%s\"}", id);
    call(&r, json);
    T_STR(r.res.output, "68a5b3c10000000000000001  @daily        suspended  cpu-basic     "
             "date");
    snprintf(json, sizeof json,
             "{\"operation\":\"scheduled_resume\",\"job_id\":\"%s\"}", id);
    call(&r, json);
    T_STR(r.res.output, "68a5b3c10000000000000001  @daily        active     cpu-basic     "
             "date");
    snprintf(json, sizeof json,
             "{\"operation\":\"scheduled_run\",\"job_id\":\"%s\"}", id);
    call(&r, json);
    T_CHECK(r.st == HFSB_OK &&
            hfsb_str_starts(hfsb_buf_str(&r.res.output),
                            HFSB_LIT("68a5b3c00000000000000001  SCHEDULING")));
    snprintf(json, sizeof json,
             "{\"operation\":\"scheduled_delete\",\"job_id\":\"%s\"}", id);
    call(&r, json);
    T_STR(r.res.output, "Scheduled job 68a5b3c10000000000000001 was deleted.");
    snprintf(json, sizeof json,
             "{\"operation\":\"scheduled_inspect\",\"job_id\":\"%s\"}", id);
    call(&r, json);
    T_CHECK(r.st == HFSB_NOT_FOUND);
    tt_drop(&r);
    end();
}

/* Operations and ids as ml-intern's tool names them. */
static void names_of_the_reference_are_understood(void) {
    static const char *const other[] = {
        "{\"operation\":\"scheduled inspect\",\"scheduled_job_id\":"
        "\"68a5b3c10000000000000001\"}",
        "{\"operation\":\"scheduled ps\"}"};
    tt_reply r = HFSB_INIT;
    size_t   i;
    begin(NULL, NULL);
    sh_open(&here.world);
    call(&r, "{\"operation\":\"scheduled run\",\"command\":[\"date\"],"
             "\"schedule\":\"@hourly\"}");
    T_CHECK(r.res.success &&
            tt_says(&r.res.output, "Scheduled job 68a5b3c10000000000000001"));
    T_CHECK(fh_nth(here.world.fh, 0, "POST", LATER) != NULL);
    for (i = 0; i < TT_COUNT(other); i++) {
        call(&r, other[i]);
        T_CHECK(r.res.success && tt_says(&r.res.output, "@hourly"));
    }
    call(&r, "{\"operation\":\"scheduled run\"}");
    T_CHECK(r.st == HFSB_ARG && tt_says(&r.res.error, "\"job_id\" is missing"));
    call(&r, "{\"operation\":\"scheduled-ps\"}");
    T_CHECK(r.st == HFSB_ARG && tt_says(&r.res.error, "\"operation\": expected"));
    tt_drop(&r);
    end();
}

static void a_job_with_trackio_names_its_dashboard(void) {
    tt_reply r = HFSB_INIT;
    begin(NULL, NULL);
    sh_open(&here.world);
    call(&r, "{\"operation\":\"run\",\"command\":\"ls\","
             "\"trackio_space_id\":\"alice/ml-intern-1a2b3c4d\"}");
    T_CHECK(r.res.success);
    T_CHECK(tt_says(&r.res.output, " Its dashboard will be http://"));
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.res.output),
                          HFSB_LIT("/spaces/alice/ml-intern-1a2b3c4d")));
    call(&r, "{\"operation\":\"run\",\"command\":\"ls\","
             "\"trackio_space_id\":\"trackio\"}"); /* the token's owner */
    T_CHECK(r.res.success && !tt_says(&r.res.output, "dashboard"));
    tt_drop(&r);
    end();
}

/* ---- ps, logs, inspect, cancel ---- */

static void jobs_are_listed_shown_and_cancelled(void) {
    tt_reply r = HFSB_INIT;
    int      i;
    begin("RUNNING", NULL);
    sh_open(&here.world);
    call(&r, "{\"operation\":\"ps\"}");
    TT_OK(&r, "There are no jobs.");
    for (i = 0; i < 3; i++)
        call(&r, "{\"operation\":\"run\",\"command\":[\"echo\",\"a\\nb\"],"
                 "\"env\":{\"AB\":\"1\"},\"hardware_flavor\":\"t4-small\"}");
    call(&r, "{\"operation\":\"ps\"}");
    T_CHECK(r.res.success &&
            hfsb_str_count_byte(hfsb_buf_str(&r.res.output), '\n') == 2);
    T_CHECK(tt_says(&r.res.output, JOB "  RUNNING     t4-small      20"));
    T_CHECK(tt_says(&r.res.output, "  echo a"));
    call(&r, "{\"operation\":\"inspect\",\"job_id\":\"" JOB "\"}");
    T_CHECK(r.res.success);
    T_CHECK(hfsb_str_starts(hfsb_buf_str(&r.res.output),
                            HFSB_LIT("job: " JOB "\nstage: RUNNING\n"
                                     "created: ")));
    T_CHECK(tt_says(&r.res.output, "hardware: t4-small\nimage: python:3.12\n"
                                   "variables: PYTHONUNBUFFERED, "));
    T_CHECK(tt_says(&r.res.output, ", AB\nsecrets: HF_TOKEN\ncommand: echo "));
    T_CHECK(hfsb_str_equal(tt_text(&r, "stage"), HFSB_LIT("RUNNING")));
    T_CHECK(hfsb_str_ends(tt_text(&r, "url"), HFSB_LIT("/jobs/alice/" JOB)));
    call(&r, "{\"operation\":\"cancel\",\"job_id\":\"alice/" JOB "\"}");
    TT_OK(&r, "Job " JOB " was cancelled; it is CANCELED.");
    T_CHECK(hfsb_str_equal(tt_text(&r, "stage"), HFSB_LIT("CANCELED")));
    tt_drop(&r);
    end();
}

/* Whatever the Hub answers: a job that has ended is the reason. */
static void cancel_of_a_job_that_has_ended_says_so(void) {
    static const int statuses[] = {400, 409, 500};
    fh_fault_spec    no = HFSB_INIT;
    tt_reply         r = HFSB_INIT;
    size_t           i;
    begin("COMPLETED", NULL);
    sh_open(&here.world);
    call(&r, "{\"operation\":\"run\",\"command\":\"true\"}");
    no.path = JOBS "/" JOB "/cancel";
    no.times = FH_ALWAYS;
    for (i = 0; i < TT_COUNT(statuses); i++) {
        fh_no_faults(here.world.fh);
        no.status = statuses[i];
        fh_fault(here.world.fh, &no);
        call(&r, "{\"operation\":\"cancel\",\"job_id\":\"" JOB "\"}");
        TT_FAIL(&r, "Job " JOB " has ended already (COMPLETED): nothing to "
                    "cancel.");
        T_CHECK(r.st == HFSB_REFUSED);
    }
    tt_drop(&r);
    end();
}

/* Not where a text is cut in the middle of one either. */
static void no_part_of_a_secret_is_shown(void) {
    tt_reply r = HFSB_INIT;
    char     json[400]; /* what it shows ends in the middle of the token */
    snprintf(json, sizeof json, "{\"operation\":\"run\",\"command\":[\"%054d"
             FH_TOKEN "\",\"%0227d" FH_TOKEN "\"]}", 0, 0);
    begin("RUNNING", NULL);
    sh_open(&here.world);
    call(&r, json);
    call(&r, "{\"operation\":\"ps\"}");
    T_CHECK(tt_says(&r.res.output, "0***") &&
            !tt_says(&r.res.output, "hf_g"));
    call(&r, "{\"operation\":\"inspect\",\"job_id\":\"" JOB "\"}");
    T_CHECK(tt_says(&r.res.output, "0*** 0") &&
            !tt_says(&r.res.output, "hf_g"));
    tt_drop(&r);
    end();
}

static void a_list_of_jobs_ends(void) {
    tt_reply r = HFSB_INIT;
    int      i;
    begin("RUNNING", NULL);
    sh_open(&here.world);
    for (i = 0; i < 52; i++)
        call(&r, "{\"operation\":\"run\",\"command\":[\"ls\"]}");
    call(&r, "{\"operation\":\"run\",\"command\":\"ls\",\"namespace\":"
             "\"alice\"}"); /* whose job it is must be said again */
    T_CHECK(tt_says(&r.res.output, "take this job_id and namespace."));
    call(&r, "{\"operation\":\"ps\",\"namespace\":\"alice\"}");
    T_CHECK(hfsb_str_count_byte(hfsb_buf_str(&r.res.output), '\n') == 50);
    T_CHECK(hfsb_str_ends(hfsb_buf_str(&r.res.output),
                          HFSB_LIT("\n(and more)")));
    tt_drop(&r);
    end();
}

static void logs_are_clean_and_say_what_follows(void) {
    tt_reply r = HFSB_INIT;
    begin("RUNNING", "===== Job started at x =====\n\x1B[31mred\x1B[0m\n"
                     "10%\r100%\ntoken " FH_TOKEN "\n");
    sh_open(&here.world);
    call(&r, "{\"operation\":\"run\",\"command\":\"ls\"}");
    call(&r, "{\"operation\":\"logs\",\"job_id\":\"" JOB "\"}");
    TT_OK(&r, "red\n100%\ntoken ***\n(job " JOB " is RUNNING: this is "
              "its log so far; look again in a while)");
    T_CHECK(fh_count(here.world.fh, "GET", JOBS "/" JOB "/logs") == 1);
    tt_drop(&r);
    end();
    begin("COMPLETED", "");
    sh_open(&here.world);
    call(&r, "{\"operation\":\"run\",\"command\":\"ls\"}");
    call(&r, "{\"operation\":\"logs\",\"job_id\":\"" JOB "\"}");
    TT_OK(&r, "(no output)\n(job " JOB " is COMPLETED)");
    tt_drop(&r);
    end();
}

static void a_long_log_is_cut(void) {
    tt_reply r = HFSB_INIT;
    hfsb_buf log = HFSB_INIT;
    size_t   i;
    if (hfsb_buf_printf(&log, "first %0984d" FH_TOKEN "\n", 0)) abort();
    for (i = 0; i < 1500; i++)
        if (hfsb_buf_printf(&log, "line %05zu with a good deal of text that "
                                  "fills it\n", i))
            abort();
    begin("COMPLETED", log.ptr);
    sh_open(&here.world);
    call(&r, "{\"operation\":\"run\",\"command\":\"ls\"}");
    call(&r, "{\"operation\":\"logs\",\"job_id\":\"" JOB "\"}");
    T_CHECK(r.res.success && r.res.output.len > 39000);
    T_CHECK(r.res.output.len < 40300);
    T_CHECK(tt_says(&r.res.output, "chars omitted"));
    T_CHECK(tt_says(&r.res.output, "first 0") &&
            !tt_says(&r.res.output, "hf_g") &&
            tt_says(&r.res.output, "line 01499 ") &&
            !tt_says(&r.res.output, "line 00500 "));
    hfsb_buf_free(&log);
    tt_drop(&r);
    end();
}

/* One whose answer does not come. */
static void a_cancel_ends_the_reading_of_a_log(void) {
    fh_fault_spec slow = HFSB_INIT;
    hfsb_cancel  *cancel;
    sh_job        job;
    begin("RUNNING", NULL);
    sh_open(&here.world);
    slow.path = JOBS "/" JOB "/logs";
    slow.delay_ms = 60000;
    fh_fault(here.world.fh, &slow);
    T_CHECK(hfsb_cancel_open(NULL, &cancel, NULL) == HFSB_OK);
    sh_start(&job, &here.world, "hf_jobs",
             "{\"operation\":\"logs\",\"job_id\":\"" JOB "\",\"namespace\":"
             "\"alice\"}",
             cancel);
    T_CHECK(sh_until(&here.world, "GET", JOBS "/" JOB "/logs"));
    hfsb_cancel_set(cancel);
    sh_join(&job);
    T_CHECK(job.reply.st == HFSB_CANCELLED);
    tt_drop(&job.reply);
    hfsb_cancel_close(cancel);
    end();
}

/* ---- the definition ---- */

static void the_local_runtime_has_no_jobs(void) {
    hfsb_session *s = sn_open_local();
    tt_reply      r = HFSB_INIT;
    sn_call(&r, s, "hf_jobs", "operation=s", "ps");
    T_CHECK(r.st == HFSB_NOT_FOUND);
    TT_FAIL(&r, "Unknown tool: hf_jobs");
    tt_drop(&r);
    sn_close(s);
}

static void description_tells_the_model_about_cost_and_files(void) {
    static const char *const parts[] = {
        "\"name\":\"hf_jobs\"", "/app/train.py", "./train.py",
        "bare train.py",        "a URL",         "source text",
        "/home, /Users, /fsx",  "smoke-test",    "t4-small at least",
        "same imports",         "entry point",   "tiny data",
        "bf16, fp16",           "quantization",  "flash attention",
        "torch.compile",        "loads a model", "CUDA",
        "why you skip",         "one job first", "30m",
        "TRACKIO_SPACE_ID",     "ml-intern-",    "TRACKIO_PROJECT"};
    hfsb_buf out = HFSB_INIT;
    hfsb_str own;
    size_t   i;
    begin(NULL, NULL);
    sh_open(&here.world);
    T_CHECK(hfsb_session_define(here.world.session, HFSB_TOOLS_MCP, &out,
                                NULL) == HFSB_OK);
    own = hfsb_buf_str(&out);
    T_CHECK(hfsb_str_find(own, HFSB_LIT("is not replaced again")) !=
            HFSB_NPOS); /* of sandbox_create */
    i = hfsb_str_find(own, HFSB_LIT("{\"name\":\"hf_jobs\""));
    T_CHECK(i != HFSB_NPOS);
    own = hfsb_str_slice(own, i, own.len);
    for (i = 0; i < TT_COUNT(parts); i++) {
        bool there = hfsb_str_find(own, hfsb_cstr(parts[i])) != HFSB_NPOS;
        if (!there) printf("  not said: %s\n", parts[i]);
        T_CHECK(there);
    }
    T_CHECK(own.len < 2800);
    if (getenv("HFSB_TEST_TIMES")) printf("hf_jobs: %zu bytes\n", own.len);
    hfsb_buf_free(&out);
    end();
}

/* ---- memory ---- */

static void reports_each_failed_allocation(void) {
    static const char *const calls[] = {
        "{\"operation\":\"run\",\"script\":\"https://x.test/a.py\","
        "\"dependencies\":\"[\\\"a\\\"]\",\"script_args\":[1],\"timeout\":90,"
        "\"env\":{\"AB\":2},\"secrets\":{\"HF_TOKEN\":\"\"}}",
        "{\"operation\":\"run\",\"command\":\"[\\\"ls\\\"]\"}",
        "{\"operation\":\"ps\"}",
        "{\"operation\":\"logs\",\"job_id\":\"" JOB "\"}",
        "{\"operation\":\"inspect\",\"job_id\":\"" JOB "\"}",
        "{\"operation\":\"cancel\",\"job_id\":\"" JOB "\"}"};
    tt_reply r = HFSB_INIT;
    size_t   i, n;
    begin("RUNNING", NULL);
    sh_open(&here.world);
    for (i = 0; i < TT_COUNT(calls); i++) {
        bool done = false;
        for (n = 1; !done && n < 200; n++) {
            tt_drop(&r);
            tt_memory.heap.fail_at = tt_memory.heap.calls + n;
            sn_do(&r, here.world.session, "hf_jobs", hfsb_cstr(calls[i]),
                  NULL);
            done = tt_memory.heap.calls < tt_memory.heap.fail_at;
            tt_memory.heap.fail_at = 0;
            T_CHECK(done ? r.st == HFSB_OK && r.res.success
                         : r.st == HFSB_NOMEM && !r.res.success);
            if (!done && r.st != HFSB_NOMEM)
                printf("%zu.%zu: %d %s\n", i, n, (int)r.st, r.res.error.ptr);
        }
        T_CHECK(done && n > 3);
    }
    tt_drop(&r);
    end();
}

int main(void) {
    tt_begin();
    TT_RUN(run_sends_what_was_asked_for);
    TT_RUN(run_sends_what_the_hubs_own_client_does);
    TT_RUN(bad_arguments_are_refused_before_a_job_starts);
    TT_RUN(a_refusal_names_the_hardware_there_is);
    TT_RUN(a_reply_without_a_job_id_is_an_error);
    TT_RUN(a_job_is_scheduled_and_managed);
    TT_RUN(names_of_the_reference_are_understood);
    TT_RUN(a_job_with_trackio_names_its_dashboard);
    TT_RUN(jobs_are_listed_shown_and_cancelled);
    TT_RUN(cancel_of_a_job_that_has_ended_says_so);
    TT_RUN(no_part_of_a_secret_is_shown);
    TT_RUN(a_list_of_jobs_ends);
    TT_RUN(logs_are_clean_and_say_what_follows);
    TT_RUN(a_long_log_is_cut);
    TT_RUN(a_cancel_ends_the_reading_of_a_log);
    TT_RUN(the_local_runtime_has_no_jobs);
    TT_RUN(description_tells_the_model_about_cost_and_files);
    TT_RUN(reports_each_failed_allocation);
    return TT_END();
}
