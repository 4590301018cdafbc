/* test_fake_hub.c - the fake Hub: that it does what it is asked for, keeps
   scripts, and misbehaves exactly as asked. */
#include "../support/t_fake_hub.h"

#define FILE_LINE(path, base64)                                       \
    "{\"key\":\"file\",\"value\":{\"path\":\"" path                   \
    "\",\"encoding\":\"base64\",\"content\":\"" base64 "\"}}\n"

/* ---- Spaces ---- */

static void a_space_is_made_changed_and_removed(void) {
    fh_hub  *hub = fh_start(NULL);
    ts_reply r = HFSB_INIT;
    hfsb_buf b = HFSB_INIT;
    T_CHECK(fh_spaces(hub) == 0 && fh_has(hub, FH_TEMPLATE));
    tf_duplicate(hub);
    T_CHECK(fh_spaces(hub) == 1 && fh_has(hub, TF_ID));
    T_CHECK(fh_space_id(hub, 0, &b) && !fh_space_id(hub, 1, &b));
    T_STR(b, TF_ID);
    hfsb_buf_truncate(&b, 0);
    T_CHECK(fh_secret(hub, TF_ID, "SANDBOX_API_TOKEN", &b));
    T_STR(b, "tok");
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/secrets", NULL) == 200);
    T_CHECK(ts_contains(&r, "SANDBOX_API_TOKEN") && !ts_contains(&r, "\"tok\""));
    T_CHECK(tf_ask(hub, &r, "POST", TF_AT "/variables",
                   "{\"key\":\"A\",\"value\":\"1\"}") == 200);
    hfsb_buf_truncate(&b, 0);
    T_CHECK(fh_variable(hub, TF_ID, "A", &b));
    T_STR(b, "1");
    T_CHECK(tf_ask(hub, &r, "POST", TF_AT "/secrets",
                   "{\"key\":\"1A\",\"value\":\"\"}") == 400);
    T_CHECK(tf_ask(hub, &r, "DELETE", "/api/repos/delete",
                   "{\"name\":\"sandbox-1a2b3c4d\",\"type\":\"space\"}") ==
            200);
    T_STR(r.body, "OK");
    T_CHECK(!fh_has(hub, TF_ID) && fh_spaces(hub) == 0);
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT, NULL) == 404);
    T_STR(ts_field(&r, "X-Error-Code"), "RepoNotFound");
    hfsb_buf_free(&b);
    ts_drop(&r);
    fh_stop(hub);
}

static void fake_hub_checks_tokens_and_permissions(void) {
    static const struct {
        const char *method, *target, *fields, *body;
        int         status;
    } list[] = {
        {"GET", "/api/whoami-v2", "", NULL, 401},
        {"GET", "/api/whoami-v2", "Authorization: Bearer x\r\n", NULL, 401},
        {"GET", "/api/spaces/" FH_TEMPLATE, "", NULL, 200},
        {"GET", TF_AT, "", NULL, 401},
        {"GET", TF_AT, TF_AUTH, NULL, 200},
        {"POST", "/api/spaces/" FH_TEMPLATE "/pause", TF_AUTH, "", 403},
        {"POST", "/api/repos/create", TF_AUTH,
         "{\"name\":\"bob/x\",\"type\":\"space\",\"sdk\":\"docker\"}", 403},
        {"POST", "/api/jobs/bob", TF_AUTH, "{}", 403},
        {"GET", "/api/spaces/hardware", "", NULL, 200},
        {"GET", "/api/nothing", TF_AUTH, NULL, 404},
    };
    fh_hub  *hub = fh_start(NULL);
    ts_reply r = HFSB_INIT;
    size_t   i;
    tf_duplicate(hub);
    for (i = 0; i < TT_COUNT(list); i++) {
        hfsb_str body = HFSB_INIT;
        if (list[i].body) body = hfsb_cstr(list[i].body);
        T_CHECK(tf_send(fh_url(hub), &r, list[i].method, list[i].target,
                        list[i].fields, body));
        TS_IS(&r, list[i].status, NULL);
    }
    ts_drop(&r);
    fh_stop(hub);
}

static void lists_come_in_pages(void) {
    fh_opts  o = HFSB_INIT;
    fh_hub  *hub;
    ts_reply r = HFSB_INIT;
    hfsb_str link;
    char     want[200];
    o.page = 3;
    hub = fh_start(&o);
    fh_add_space(hub, "alice/a", 9, true);
    fh_add_space(hub, "alice/b", 9, true);
    fh_add_space(hub, "bob/c", 9, false);
    fh_add_space(hub, "bob/hidden", 9, true);
    fh_add_space(hub, "alice/d", 9, false);
    fh_add_space(hub, "alice/e", 0, false);
    T_CHECK(tf_ask(hub, &r, "GET", "/api/spaces?author=alice&limit=9", NULL) ==
            200);
    T_CHECK(hfsb_json_count(r.json.root) == 3);
    link = ts_field(&r, "Link");
    snprintf(want, sizeof want,
             "<%s/api/spaces?author=alice&limit=9&cursor=Mw>; rel=\"next\"",
             fh_url(hub));
    T_CHECK(fh_same(link, want));
    T_CHECK(tf_ask(hub, &r, "GET",
                   "/api/spaces?author=alice&limit=9&cursor=Mw", NULL) == 200);
    T_CHECK(hfsb_json_count(r.json.root) == 1 && !ts_field(&r, "Link").len);
    T_CHECK(tf_ask(hub, &r, "GET", "/api/spaces?search=hidden", NULL) == 200);
    T_CHECK(hfsb_json_count(r.json.root) == 0);
    ts_drop(&r);
    fh_stop(hub);
}

static void stages_advance_with_every_request(void) {
    static const char *const want[] = {"BUILDING", "BUILDING", "APP_STARTING",
                                       "RUNNING", "RUNNING"};
    fh_hub  *hub = fh_start(NULL);
    ts_reply r = HFSB_INIT;
    hfsb_buf head = HFSB_INIT;
    size_t   i;
    tf_duplicate(hub);
    T_CHECK(tf_commit(hub, &r, FILE_LINE("a", "aGk=")) == 200);
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/runtime", NULL) == 404);
    for (i = 0; i < TT_COUNT(want); i++) {
        T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/runtime", NULL) == 200);
        TF_IS(&r, "stage", NULL, want[i]);
    }
    T_CHECK(fh_head(hub, TF_ID, &head));
    TF_IS(&r, "sha", NULL, head.ptr);
    TF_IS(&r, "hardware", "current", "cpu-basic");
    T_CHECK(tf_ask(hub, &r, "POST", TF_AT "/pause", "") == 200);
    TF_IS(&r, "stage", NULL, "PAUSED");
    T_CHECK(tf_ask(hub, &r, "POST", TF_AT "/restart", "") == 200);
    TF_IS(&r, "stage", NULL, "BUILDING");
    hfsb_buf_free(&head);
    ts_drop(&r);
    fh_stop(hub);
}

static void stages_follow_the_script(void) {
    fh_opts  o = HFSB_INIT;
    fh_hub  *hub;
    ts_reply r = HFSB_INIT;
    hfsb_buf old = HFSB_INIT;
    o.prompt = true;
    hub = fh_start(&o);
    tf_duplicate(hub);
    T_CHECK(fh_head(hub, TF_ID, &old));
    T_CHECK(tf_commit(hub, &r, FILE_LINE("a", "aGk=")) == 200);
    fh_stages(hub, TF_ID,
              "RUNNING@old,RUNNING:t4-small@none,500,404,BUILD_ERROR");
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/runtime", NULL) == 200);
    TF_IS(&r, "sha", NULL, old.ptr);
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/runtime", NULL) == 200);
    TF_IS(&r, "sha", NULL, "(none)");
    TF_IS(&r, "hardware", "current", "t4-small");
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/runtime", NULL) == 500);
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/runtime", NULL) == 404);
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/runtime", NULL) == 200);
    TF_IS(&r, "stage", NULL, "BUILD_ERROR");
    T_CHECK(tf_text(&r, "errorMessage", NULL).len > 10);
    fh_stages(hub, NULL, "CONFIG_ERROR"); /* also after the next commit */
    T_CHECK(tf_commit(hub, &r, FILE_LINE("b", "aGk=")) == 200);
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/runtime", NULL) == 200);
    TF_IS(&r, "stage", NULL, "CONFIG_ERROR");
    hfsb_buf_free(&old);
    ts_drop(&r);
    fh_stop(hub);
}

static void stages_can_take_their_time(void) {
    fh_opts   o = HFSB_INIT;
    fh_hub   *hub;
    ts_reply  r = HFSB_INIT;
    long long begin, ran = 0;
    o.prompt = true;
    o.stages = "BUILDING,RUNNING";
    o.stage_ms = 150;
    o.missing = 2; /* calls of a new Space that do not find it */
    hub = fh_start(&o);
    tf_duplicate(hub);
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT, NULL) == 404);
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT, NULL) == 404);
    begin = hfsb_clock_ms();
    T_CHECK(tf_commit(hub, &r, FILE_LINE("a", "aGk=")) == 200);
    while (!ran && hfsb_clock_ms() < begin + 20000) {
        T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/runtime", NULL) == 200);
        if (ts_contains(&r, "\"RUNNING\"")) ran = hfsb_clock_ms() - begin;
        tt_sleep_ms(10);
    }
    T_CHECK(ran >= 149);
    ts_drop(&r);
    fh_stop(hub);
}

/* ---- commits ---- */

static void commits_change_files(void) {
    fh_hub  *hub = fh_start(NULL);
    ts_reply r = HFSB_INIT;
    hfsb_buf b = HFSB_INIT;
    tf_duplicate(hub);
    T_CHECK(tf_commit(hub, &r,
                      FILE_LINE("d/a", "aGk=") FILE_LINE("d/b", "")
                      "{\"key\":\"file\",\"value\":{\"path\":\"t\","
                      "\"content\":\"plain\"}}\n"
                      "{\"key\":\"deletedFile\",\"value\":{\"path\":"
                      "\"sandbox_server.py\"}}\n") == 200);
    T_CHECK(fh_file(hub, TF_ID, "d/a", &b) && fh_file(hub, TF_ID, "t", &b));
    T_STR(b, "hiplain");
    T_CHECK(fh_file(hub, TF_ID, "README.md", &b)); /* of the template */
    T_CHECK(!fh_file(hub, TF_ID, "sandbox_server.py", &b));
    T_CHECK(tf_commit(hub, &r, "{\"key\":\"deletedFolder\",\"value\":{"
                               "\"path\":\"d/\"}}") == 200);
    T_CHECK(!fh_file(hub, TF_ID, "d/a", &b));
    T_CHECK(!fh_file(hub, TF_ID, "d/b", &b));
    T_CHECK(fh_commits(hub, TF_ID) == 2);
    hfsb_buf_free(&b);
    ts_drop(&r);
    fh_stop(hub);
}

static void bad_commits_change_nothing(void) {
    static const struct {
        const char *lines;
        int         status;
    } list[] = {
        {"{\"key\":\"header\",\"value\":{\"summary\":\"s\"}}\n", 400},
        {FILE_LINE("a", "aGk=") FILE_LINE("b", "!!"), 400},
        {FILE_LINE("a", "aGk=") "not json\n", 400},
        {FILE_LINE("", "aGk="), 400},
        {FILE_LINE("a", "aGk=") "{\"key\":\"what\",\"value\":{\"path\":"
                                "\"x\"}}", 400},
        {"{\"key\":\"lfsFile\",\"value\":{\"path\":\"a\",\"oid\":\"00\"}}",
         400},
    };
    static const char stale[] =
        "{\"key\":\"header\",\"value\":{\"summary\":\"s\",\"parentCommit\":"
        "\"0123456789012345678901234567890123456789\"}}\n" FILE_LINE("a", "");
    fh_hub  *hub = fh_start(NULL);
    ts_reply r = HFSB_INIT;
    hfsb_buf b = HFSB_INIT;
    size_t   i;
    tf_duplicate(hub);
    for (i = 0; i < TT_COUNT(list); i++)
        T_CHECK(tf_commit(hub, &r, list[i].lines) == list[i].status);
    T_CHECK(tf_send(fh_url(hub), &r, "POST", TF_AT "/commit/main",
                    TF_AUTH "Content-Type: application/x-ndjson\r\n",
                    hfsb_cstr(stale)));
    T_CHECK(r.status == 412);
    T_CHECK(tf_ask(hub, &r, "POST", TF_AT "/commit/other", "{}") == 404);
    T_STR(ts_field(&r, "X-Error-Code"), "RevisionNotFound");
    T_CHECK(fh_commits(hub, TF_ID) == 0 && !fh_file(hub, TF_ID, "a", &b));
    hfsb_buf_free(&b);
    ts_drop(&r);
    fh_stop(hub);
}

static void preupload_reports_existing_files(void) {
    fh_hub  *hub = fh_start(NULL);
    ts_reply r = HFSB_INIT;
    tf_duplicate(hub);
    T_CHECK(tf_commit(hub, &r, FILE_LINE("hi", "aGkK")) == 200);
    T_CHECK(tf_ask(hub, &r, "POST", TF_AT "/preupload/main",
                   "{\"files\":[{\"path\":\"hi\",\"size\":3,\"sample\":"
                   "\"aGkK\"},{\"path\":\"x.log\",\"size\":1,\"sample\":"
                   "\"aA==\"},{\"path\":\"b\",\"size\":3,\"sample\":"
                   "\"AGgA\"}],\"gitIgnore\":\"*.log\\n\"}") == 200);
    /* echo hi | git hash-object --stdin */
    TS_IS(&r, 200, "{\"path\":\"hi\",\"uploadMode\":\"regular\","
                   "\"shouldIgnore\":false,\"oid\":"
                   "\"45b983be36b73c0788dc9cbcb76cbb80fc7bb057\"}");
    TS_IS(&r, 200, "{\"path\":\"x.log\",\"uploadMode\":\"regular\","
                   "\"shouldIgnore\":true}");
    TS_IS(&r, 200, "{\"path\":\"b\",\"uploadMode\":\"lfs\"");
    T_CHECK(tf_ask(hub, &r, "POST", TF_AT "/preupload/main", "{}") == 422);
    ts_drop(&r);
    fh_stop(hub);
}

static void lfs_objects_are_stored_then_committed(void) {
    static const char batch[] = "{\"operation\":\"upload\",\"objects\":[{"
                                "\"oid\":\"0a0b\",\"size\":3}]}";
    static const char at[] =
        "/spaces/" TF_ID ".git/info/lfs/objects/batch";
    fh_hub  *hub = fh_start(NULL);
    ts_reply r = HFSB_INIT;
    hfsb_buf b = HFSB_INIT;
    tf_duplicate(hub);
    T_CHECK(tf_ask(hub, &r, "POST", at, batch) == 200);
    TS_IS(&r, 200, "/lfs-store/0a0b?X-Amz-Signature=fake\"");
    T_CHECK(tf_ask(hub, &r, "PUT", "/lfs-store/0a0b?X=1", "abc") == 400);
    T_CHECK(tf_send(fh_url(hub), &r, "PUT", "/lfs-store/0a0b?X=1", "",
                    HFSB_LIT("abc")) && r.status == 200);
    T_CHECK(tf_ask(hub, &r, "POST", at, batch) == 200);
    T_CHECK(!ts_contains(&r, "actions"));
    T_CHECK(tf_commit(hub, &r,
                      "{\"key\":\"lfsFile\",\"value\":{\"path\":\"w.bin\","
                      "\"algo\":\"sha256\",\"oid\":\"0a0b\",\"size\":3}}") ==
            200);
    T_CHECK(fh_file(hub, TF_ID, "w.bin", &b));
    T_STR(b, "abc");
    hfsb_buf_free(&b);
    ts_drop(&r);
    fh_stop(hub);
}

/* ---- logs and jobs ---- */

static void logs_are_event_streams(void) {
    fh_hub       *hub;
    fh_opts       o = HFSB_INIT;
    fh_fault_spec f = HFSB_INIT;
    ts_reply      r = HFSB_INIT;
    long long     begin;
    o.log_open_ms = 100;
    hub = fh_start(&o);
    tf_duplicate(hub);
    fh_log(hub, TF_ID, "build", "one");
    fh_log(hub, TF_ID, "build", "two \"quoted\"");
    begin = hfsb_clock_ms();
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/logs/build", NULL) == 200);
    T_CHECK(hfsb_clock_ms() - begin >= 100);
    T_STR(ts_field(&r, "Content-Type"), "text/event-stream");
    TS_IS(&r, 200, "data: {\"data\":\"one\\n\",\"timestamp\":\"2025-");
    TS_IS(&r, 200, "\"two \\\"quoted\\\"\\n\"");
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/logs/build?tail=1", NULL) == 200);
    T_CHECK(!ts_contains(&r, "one") && ts_contains(&r, "two"));
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/logs/run", NULL) == 200);
    T_CHECK(!ts_contains(&r, "one"));
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/logs/what", NULL) == 404);
    f.path = TF_AT "/logs/*";
    f.cut = FH_CUT_BODY;
    f.work = true;
    fh_fault(hub, &f);
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/logs/build", NULL) == 0);
    T_CHECK(r.chunked && ts_contains(&r, "one") && !ts_contains(&r, "quoted"));
    ts_drop(&r);
    fh_stop(hub);
}

#define JOB "/api/jobs/alice/68a5b3c00000000000000001"

static void jobs_run_to_their_end(void) {
    fh_hub  *hub = fh_start(NULL);
    ts_reply r = HFSB_INIT;
    T_CHECK(tf_ask(hub, &r, "POST", "/api/jobs/alice", "{}") == 400);
    T_CHECK(tf_ask(hub, &r, "POST", "/api/jobs/alice",
                   "{\"command\":[\"a\"],\"flavor\":\"cpu-basic\","
                   "\"dockerImage\":\"i\",\"secrets\":{\"K\":\"hush\"}}") ==
            200);
    TF_IS(&r, "id", NULL, "68a5b3c00000000000000001");
    TF_IS(&r, "owner", "name", "alice");
    TS_IS(&r, 200, "\"secrets\":[\"K\"]");
    T_CHECK(!ts_contains(&r, "hush"));
    T_CHECK(tf_ask(hub, &r, "GET", JOB "/logs", NULL) == 200);
    T_CHECK(!ts_contains(&r, "data:")); /* it waits for a machine */
    T_CHECK(tf_ask(hub, &r, "GET", JOB, NULL) == 200);
    TF_IS(&r, "status", "stage", "SCHEDULING");
    T_CHECK(tf_ask(hub, &r, "GET", JOB, NULL) == 200);
    TF_IS(&r, "status", "stage", "RUNNING");
    T_CHECK(tf_ask(hub, &r, "GET", JOB "/logs", NULL) == 200);
    T_CHECK(ts_contains(&r, "===== Job started") && ts_contains(&r, "\"done\\n\""));
    T_CHECK(tf_ask(hub, &r, "GET", "/api/jobs/alice?stage=COMPLETED", NULL) ==
            200);
    T_CHECK(hfsb_json_count(r.json.root) == 1);
    T_CHECK(tf_ask(hub, &r, "GET", JOB, NULL) == 200);
    TF_IS(&r, "status", "stage", "COMPLETED");
    T_CHECK(tf_ask(hub, &r, "POST", JOB "/cancel", "") == 200);
    TF_IS(&r, "status", "stage", "CANCELED");
    T_CHECK(tf_ask(hub, &r, "GET", "/api/jobs/alice?stage=CANCELED", NULL) ==
            200);
    T_CHECK(hfsb_json_count(r.json.root) == 1);
    T_CHECK(tf_ask(hub, &r, "GET", "/api/jobs/alice?stage=RUNNING", NULL) ==
            200);
    T_CHECK(hfsb_json_count(r.json.root) == 0);
    ts_drop(&r);
    fh_stop(hub);
}

static void scheduled_jobs_are_kept_apart(void) {
    fh_hub  *hub = fh_start(NULL);
    ts_reply r = HFSB_INIT;
#define SCHEDULED "/api/scheduled-jobs/alice/68a5b3c10000000000000001"
    T_CHECK(tf_ask(hub, &r, "POST", "/api/scheduled-jobs/alice",
                   "{\"jobSpec\":{\"flavor\":\"cpu-basic\",\"dockerImage\":"
                   "\"i\"},\"schedule\":\"@daily\"}") == 200);
    TF_IS(&r, "id", NULL, "68a5b3c10000000000000001");
    T_CHECK(tf_ask(hub, &r, "POST", SCHEDULED "/suspend", "") == 200);
    T_CHECK(ts_flag(&r, "suspend"));
    T_CHECK(tf_ask(hub, &r, "POST", SCHEDULED "/run", "") == 200);
    TF_IS(&r, "id", NULL, "68a5b3c00000000000000001");
    T_CHECK(tf_ask(hub, &r, "DELETE", SCHEDULED, NULL) == 200);
    T_CHECK(tf_ask(hub, &r, "GET", SCHEDULED, NULL) == 404);
    T_CHECK(tf_ask(hub, &r, "GET", JOB, NULL) == 200);
    ts_drop(&r);
    fh_stop(hub);
}

/* ---- records ---- */

static void requests_are_remembered(void) {
    fh_hub          *hub = fh_start(NULL);
    ts_reply         r = HFSB_INIT;
    const fh_record *one;
    tf_duplicate(hub);
    T_CHECK(tf_ask(hub, &r, "GET", TF_AT "/runtime?x=1", NULL) == 404);
    T_CHECK(tf_edge(hub, &r, "/api/health", NULL) == 503);
    T_CHECK(fh_count(hub, NULL, NULL) == 3);
    T_CHECK(fh_count(hub, "GET", "/api/*") == 1);
    T_CHECK(fh_count(hub, NULL, "*/runtime") == 1);
    T_CHECK(fh_count(hub, NULL, "edge:/api/*") == 1);
    one = fh_nth(hub, 0, "POST", "*/duplicate");
    T_CHECK(one && one->status == 200 && !one->edge);
    if (one) {
        T_STR(fh_field(one, "content-type"), "application/json");
        T_STR(fh_field(one, "AUTHORIZATION"), "Bearer " FH_TOKEN);
        T_STR(fh_field(one, "Nothing"), "");
        T_CHECK(hfsb_str_starts(hfsb_buf_str(&one->body),
                                HFSB_LIT("{\"repository\":")));
    }
    T_CHECK(!fh_nth(hub, 1, "POST", "*/duplicate"));
    T_CHECK(fh_saw(hub, "tok") && !fh_saw(hub, "a text that is not there"));
    fh_forget(hub);
    T_CHECK(fh_count(hub, NULL, NULL) == 0 && fh_saw(hub, "tok"));
    T_CHECK(tf_ask(hub, &r, "GET", "/api/whoami-v2", NULL) == 200);
    T_CHECK(fh_count(hub, NULL, NULL) == 1);
    ts_drop(&r);
    fh_stop(hub);
}

int main(void) {
    tt_begin();
    TT_RUN(a_space_is_made_changed_and_removed);
    TT_RUN(fake_hub_checks_tokens_and_permissions);
    TT_RUN(lists_come_in_pages);
    TT_RUN(stages_advance_with_every_request);
    TT_RUN(stages_follow_the_script);
    TT_RUN(stages_can_take_their_time);
    TT_RUN(commits_change_files);
    TT_RUN(bad_commits_change_nothing);
    TT_RUN(preupload_reports_existing_files);
    TT_RUN(lfs_objects_are_stored_then_committed);
    TT_RUN(logs_are_event_streams);
    TT_RUN(jobs_run_to_their_end);
    TT_RUN(scheduled_jobs_are_kept_apart);
    TT_RUN(requests_are_remembered);
    return tt_end(__FILE__);
}
