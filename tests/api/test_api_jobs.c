/* test_server_jobs.c - commands by their ids: /api/jobs, and the list of jobs
   that the tools give. */
#include "../support/t_server.h"

static const hfsb_str no_body = HFSB_INIT;

/* Starts a command in the background: "/api/jobs/{id}" and what follows. */
static const char *launch(const ts_server *s, const char *command) {
    static char path[200];
    char        body[300];
    ts_reply    r = HFSB_INIT;
    snprintf(body, sizeof body, "{\"command\":\"%s\",\"background\":true}",
             command);
    ts_post(s, &r, "/api/bash", body);
    TS_OK(&r, NULL);
    snprintf(path, sizeof path, "/api/jobs/%.*s", (int)ts_text(&r, "id").len,
             ts_text(&r, "id").ptr);
    ts_drop(&r);
    return path;
}

/* One of the last four of these. */
static const char *at(const char *path, const char *more) {
    static char text[4][300];
    static int  n;
    n = (n + 1) % 4;
    snprintf(text[n], sizeof text[n], "%s%s", path, more);
    return text[n];
}

static void jobs_are_listed_and_shown(void) {
    ts_server              s;
    ts_reply               r = HFSB_INIT;
    const char            *job;
    const hfsb_json_value *list, *first;
    ts_start(&s, NULL, NULL);
    ts_get(&s, &r, "/api/jobs");
    TS_IS(&r, 200, "{\"jobs\":[]}");
    ts_post(&s, &r, "/api/bash",
            "{\"command\":\"exit 7\",\"description\":\"fails\"}");
    TS_FAIL(&r, "Exit code 7");
    job = launch(&s, "echo out; sleep 60");
    ts_get(&s, &r, "/api/jobs");
    list = hfsb_json_get(r.json.root, "jobs");
    T_CHECK(r.status == 200 && hfsb_json_count(list) == 2);
    first = hfsb_json_at(list, 0); /* the newest */
    T_STR(hfsb_json_str(hfsb_json_get(first, "state"), HFSB_LIT("")),
          "running");
    T_STR(hfsb_json_str(hfsb_json_get(first, "command"), HFSB_LIT("")),
          "echo out; sleep 60");
    first = hfsb_json_at(list, 1);
    T_STR(hfsb_json_str(hfsb_json_get(first, "state"), HFSB_LIT("")), "done");
    T_STR(hfsb_json_str(hfsb_json_get(first, "description"), HFSB_LIT("")),
          "fails");
    T_CHECK(hfsb_json_int(hfsb_json_get(first, "exit_code"), 0) == 7);
    ts_get(&s, &r, job);
    T_CHECK(r.status == 200);
    T_STR(ts_text(&r, "state"), "running");
    T_CHECK(hfsb_str_ends(hfsb_cstr(job), ts_text(&r, "id")));
    T_CHECK(ts_flag(&r, "background") && !ts_flag(&r, "timed_out"));
    T_CHECK(tt_alive((long)ts_int(&r, "pid")) && ts_int(&r, "age_ms") >= 0);
    T_CHECK(hfsb_json_type_of(hfsb_json_get(r.json.root, "exit_code")) ==
            HFSB_JSON_NULL);
    ts_get(&s, &r, "/api/jobs/none%20such");
    TS_REFUSED(&r, 404, "No such job: none such");
    ts_drop(&r);
    ts_end(&s, true);
}

static void output_is_given_from_an_offset_and_waited_for(void) {
    ts_server   s;
    ts_reply    r = HFSB_INIT;
    const char *job;
    long long   begin;
    ts_start(&s, NULL, NULL);
    job = launch(&s, "echo one; until [ -e go ]; do sleep 0.05; done; "
                     "sleep 0.2; echo two; sleep 60");
    begin = hfsb_clock_ms();
    ts_get(&s, &r, at(job, "/output?wait_ms=20000"));
    TS_OK(&r, "one\n");
    T_CHECK(ts_int(&r, "next_offset") == 4 && ts_flag(&r, "running"));
    ts_get(&s, &r, at(job, "/output?offset=4"));
    TS_OK(&r, "");
    tt_put("go", HFSB_LIT(""));
    ts_get(&s, &r, at(job, "/output?offset=4&wait_ms=60000"));
    TS_OK(&r, "two\n");
    T_CHECK(hfsb_clock_ms() - begin < 20000);
    begin = hfsb_clock_ms();
    ts_get(&s, &r, at(job, "/output?offset=8&wait_ms=300"));
    TS_OK(&r, "");
    T_CHECK(hfsb_clock_ms() - begin >= 250);
    ts_get(&s, &r, at(job, "/output?offset=x"));
    TS_REFUSED(&r, 422, "\"loc\":[\"query\",\"offset\"]");
    ts_get(&s, &r, at(job, "/output?offset=-1"));
    TS_REFUSED(&r, 422, "offset must be 0 or more");
    ts_get(&s, &r, at(job, "/output?offset=%zz"));
    TS_REFUSED(&r, 400, NULL);
    ts_get(&s, &r, "/api/jobs/none/output");
    TS_REFUSED(&r, 404, "No such job: none");
    ts_post(&s, &r, at(job, "/output"), "{}");
    TS_REFUSED(&r, 405, "Method Not Allowed");
    ts_drop(&r);
    ts_end(&s, true);
}

static void a_reader_of_output_may_leave(void) {
    ts_server   s;
    ts_conn     c;
    ts_reply    r = HFSB_INIT;
    const char *job;
    ts_start(&s, NULL, NULL);
    job = launch(&s, "sleep 60");
    c = ts_connect(&s);
    ts_ask(&c, "GET", at(job, "/output?wait_ms=60000"), "", no_body);
    tt_sleep_ms(100);
    ts_reset(&c);
    tt_sleep_ms(100);
    ts_get(&s, &r, job);
    T_STR(ts_text(&r, "state"), "running");
    ts_drop(&r);
    ts_end(&s, true);
}

static void input_is_text_or_bytes(void) {
    ts_server   s;
    ts_reply    r = HFSB_INIT;
    const char *job;
    ts_start(&s, NULL, NULL);
    job = launch(&s, "cat > got");
    ts_post(&s, &r, at(job, "/input"), "{\"text\":\"one\\n\"}");
    T_CHECK(ts_flag(&r, "success") && ts_contains(&r, "Sent 4 bytes"));
    ts_call(&s, &r, "POST", at(job, "/input"),
            "Content-Type: application/octet-stream\r\n",
            HFSB_LIT("\xff\x00\xfe"));
    T_CHECK(ts_flag(&r, "success") && ts_contains(&r, "Sent 3 bytes"));
    ts_call(&s, &r, "POST", at(job, "/input?eof=1"),
            "Content-Type: text/plain; charset=utf-8\r\n", HFSB_LIT("end"));
    T_CHECK(ts_flag(&r, "success") && ts_contains(&r, "the end of input"));
    ts_get(&s, &r, at(job, "/output?wait_ms=20000"));
    T_CHECK(!ts_flag(&r, "running"));
    T_CHECK(tt_file_is("got", HFSB_LIT("one\n\xff\x00\xfe"
                                       "end")));
    ts_post(&s, &r, at(job, "/input"), "{\"text\":\"late\"}");
    TS_FAIL(&r, "Job ");
    ts_post(&s, &r, at(job, "/input"), "{}");
    TS_REFUSED(&r, 422, "Give \\\"text\\\"");
    ts_post(&s, &r, at(job, "/input"), "{\"text\":5}");
    TS_REFUSED(&r, 422, "\"loc\":[\"body\",\"text\"]");
    ts_post(&s, &r, at(job, "/input"), "");
    TS_REFUSED(&r, 422, "\"missing\"");
    ts_call(&s, &r, "POST", at(job, "/input"), "Content-Type: a/b\r\n",
            HFSB_LIT("x"));
    TS_REFUSED(&r, 415, "application/octet-stream");
    ts_call(&s, &r, "POST", "/api/jobs/none/input",
            "Content-Type: text/plain\r\n", HFSB_LIT("x"));
    TS_REFUSED(&r, 404, "No such job: none");
    ts_post(&s, &r, "/api/jobs/none/input", "{\"eof\":true}");
    TS_REFUSED(&r, 404, "No such job: none");
    ts_drop(&r);
    ts_end(&s, false);
}

static void delete_ends_a_job(void) {
    ts_server   s;
    ts_reply    r = HFSB_INIT;
    const char *job;
    long        pid;
    long long   lasted;
    char        want[80];
    ts_start(&s, NULL, NULL);
    job = launch(&s, "sleep 60 & sleep 60; :");
    ts_get(&s, &r, job);
    pid = (long)ts_int(&r, "pid");
    T_CHECK(tt_alive(pid));
    ts_call(&s, &r, "DELETE", job, "", no_body);
    snprintf(want, sizeof want, "Killed 1 process(es): [%ld]", pid);
    TS_OK(&r, want);
    T_CHECK(!tt_alive(pid));
    ts_get(&s, &r, job);
    T_STR(ts_text(&r, "state"), "done");
    T_CHECK(ts_flag(&r, "killed") && ts_int(&r, "signal") == 15);
    lasted = ts_int(&r, "duration_ms");
    tt_sleep_ms(50);
    ts_get(&s, &r, job);
    T_CHECK(ts_int(&r, "duration_ms") == lasted);
    T_CHECK(ts_int(&r, "age_ms") >= lasted + 50);
    ts_call(&s, &r, "DELETE", job, TS_JSON, HFSB_LIT("not looked at"));
    TS_OK(&r, "Killed 0 process(es): []");
    ts_call(&s, &r, "DELETE", "/api/jobs/none", "", no_body);
    TS_REFUSED(&r, 404, "No such job: none");
    ts_post(&s, &r, "/api/bash_output", "{\"id\":\"none\"}");
    TS_FAIL(&r, "No such job: none"); /* the tool itself answers as a tool */
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- the list, in process ---- */

static void the_tools_list_their_jobs(void) {
    hfsb_tools_opts o = HFSB_INIT;
    hfsb_tools     *tools;
    tt_reply        r = HFSB_INIT;
    hfsb_buf        out = HFSB_INIT, command = HFSB_INIT;
    hfsb_json_doc   doc = HFSB_INIT;
    hfsb_err        err = HFSB_INIT;
    const char     *id;
    o.max_running = 1;
    tools = tt_open(&o);
    T_CHECK(hfsb_tools_jobs(tools, HFSB_LIT(""), &out, &err) == HFSB_OK);
    T_STR(out, "[]");
    T_CHECK(hfsb_tools_jobs(tools, HFSB_LIT("no\n"), &out, &err) ==
            HFSB_NOT_FOUND);
    T_STR(out, "[]");
    T_CHECK(hfsb_str_starts(hfsb_cstr(err.msg), HFSB_LIT("No such job: no")));
    tt_fill(&command, "sleep 60; : ", 1);
    tt_fill(&command, "\xC3\xA9", 300);
    tt_call(&r, tools, "bash", "command=v background=j id=s",
            hfsb_buf_str(&command), "true", "mine");
    T_CHECK(r.res.success);
    tt_call(&r, tools, "bash", "command=s background=j", "sleep 60", "true");
    id = tt_keep(tt_text(&r, "id"));
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsb_tools_jobs(tools, HFSB_LIT("mine"), &out, &err) == HFSB_OK);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&out), NULL, &doc, NULL) == HFSB_OK);
    T_CHECK(hfsb_utf8_count(hfsb_json_str(hfsb_json_get(doc.root, "command"),
                                          HFSB_LIT(""))) == 200);
    T_CHECK(hfsb_json_bool(hfsb_json_get(doc.root, "command_cut"), false));
    hfsb_json_free(&doc);
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsb_tools_jobs(tools, hfsb_cstr(id), &out, NULL) == HFSB_OK);
    T_CHECK(tt_says(&out, "\"state\":\"waiting\"") &&
            tt_says(&out, "\"pid\":0,") &&
            tt_says(&out, "\"command\":\"sleep 60\",\"command_cut\":false"));
    tt_call(&r, tools, "kill", "");
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsb_tools_jobs(tools, HFSB_LIT(""), &out, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&out), NULL, &doc, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_count(doc.root) == 2);
    T_CHECK(!tt_says(&out, "waiting") && !tt_says(&out, "running"));
    hfsb_json_free(&doc);
    out.max = out.len + 10; /* a failed call leaves it as it was */
    T_CHECK(hfsb_tools_jobs(tools, HFSB_LIT(""), &out, NULL) == HFSB_LIMIT);
    T_CHECK(out.len + 10 == out.max);
    hfsb_buf_free(&out);
    hfsb_buf_free(&command);
    tt_drop(&r);
    hfsb_tools_close(tools);
}

int main(void) {
    tt_begin();
    TT_RUN(jobs_are_listed_and_shown);
    TT_RUN(output_is_given_from_an_offset_and_waited_for);
    TT_RUN(a_reader_of_output_may_leave);
    TT_RUN(input_is_text_or_bytes);
    TT_RUN(delete_ends_a_job);
    TT_RUN(the_tools_list_their_jobs);
    return TT_END();
}
