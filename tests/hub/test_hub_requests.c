/* test_hub_requests.c - what each call sends, beside what the Hub's own
   Python client sends (golden.json). */
#include "../support/t_hub_calls.h"

/* ---- beside the Python client ---- */

static const struct {
    const char *tag;
    size_t      from, count; /* of the requests with that tag */
    hfsb_status (*fn)(t_hub *h);
    bool newer; /* 1.29 only */
    bool same;  /* the body's length, too */
} GOLDEN[] = {
    {"whoami", 0, 1, t_whoami, false, true},
    {"Sandbox.create[cpu-basic]", 0, 1, do_duplicate_small, false, true},
    {"Sandbox.create[t4-small]", 0, 1, do_duplicate_sleep, false, true},
    {"duplicate_space[deprecated alias]", 0, 1, do_duplicate_plain, false,
     true},
    {"Sandbox.delete", 0, 1, t_delete, false, true},
    {"delete_repo[space]", 0, 1, do_delete_fresh, false, true},
    {"add_space_secret", 0, 1, do_secret, false, true},
    {"add_space_variable", 0, 1, do_variable, false, true},
    {"get_space_runtime", 0, 1, t_runtime, false, true},
    {"pause_space", 0, 1, t_pause, false, true},
    {"restart_space", 0, 1, do_restart, false, true},
    {"restart_space[factory]", 0, 1, t_restart_factory, false, true},
    {"space_info", 0, 1, do_info, false, true},
    {"space_info[expand]", 0, 1, do_info_expand, false, true},
    {"space_info[revision]", 0, 1, do_info_revision, false, true},
    {"list_spaces[author]", 0, 3, do_list, false, true},
    {"list_spaces[author,full,limit=3]", 0, 2, do_list_limit, false, true},
    {"list_spaces[search=sandbox,full]", 0, 2, do_list_search, false, true},
    {"list_spaces[author,expand]", 0, 1, do_list_expand, false, true},
    {"fetch_space_logs[run]", 0, 1, do_logs_run, false, true},
    {"fetch_space_logs[build]", 0, 1, do_logs_build, false, true},
    /* theirs escapes what is not ASCII in a commit, and 1.12 sends what has
       not changed */
    {"create_commit[2 regular files, unchanged one dropped]", 1, 1,
     do_commit_changes, true, false},
    {"create_commit[nothing changed]", 1, 1, do_commit_nothing, false, true},
    {"create_commit[README + parent_commit]", 0, 3, do_commit_readme, false,
     true},
    {"create_commit[empty file, .gitignore]", 0, 2, do_commit_empty, false,
     true},
    {"run_job[no namespace, defaults, space image]", 0, 2, do_job_space, false,
     true},
    {"run_uv_job[command/inline]", 0, 1, do_job_command, false, true},
    {"inspect_job", 0, 1, do_job, false, true},
    {"cancel_job", 0, 1, do_job_cancel, false, true},
    {"list_jobs", 0, 1, do_jobs, false, true},
    {"fetch_job_logs", 0, 1, do_job_logs, false, true},
    {"fetch_job_logs[tail=1]", 0, 1, do_job_logs_tail, true, true},
};

static const hfsb_json_value *t_golden(const hfsb_json_value *list,
                                       const char *tag, size_t n) {
    hfsb_json_iter it = hfsb_json_begin(list);
    while (hfsb_json_next(&it))
        if (hfsb_str_equal(
                hfsb_json_str(hfsb_json_get(it.value, "tag"), t_s("")),
                t_s(tag)) &&
            n-- == 0)
            return it.value;
    return NULL;
}

static void t_same_json(const hfsb_json_value *want, hfsb_str have) {
    hfsb_buf      text = HFSB_INIT, own = HFSB_INIT;
    hfsb_json_doc doc = HFSB_INIT;
    T_CHECK(hfsb_json_write(want, NULL, &text, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_parse(have, NULL, &doc, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_write(doc.root, NULL, &own, NULL) == HFSB_OK);
    t_str(__FILE__, __LINE__, own.ptr, own.len, text.ptr, text.len);
    hfsb_json_free(&doc);
    hfsb_buf_free(&text);
    hfsb_buf_free(&own);
}

static void t_same_lines(const hfsb_json_value *want, hfsb_str have) {
    hfsb_json_iter it = hfsb_json_begin(want);
    while (hfsb_json_next(&it)) {
        size_t end = hfsb_str_find_byte(have, '\n');
        T_CHECK(end != HFSB_NPOS);
        t_same_json(it.value, hfsb_str_slice(have, 0, end));
        have = hfsb_str_slice(have, end + 1, have.len);
    }
    T_CHECK(!have.len);
}

static void t_same_request(const hfsb_json_value *want, const t_request *have,
                           bool length) {
    const hfsb_json_value   *fields = hfsb_json_get(want, "headers");
    const hfsb_json_value   *json = hfsb_json_get(want, "json");
    const hfsb_json_value   *lines = hfsb_json_get(want, "ndjson");
    static const char *const same[] = {"accept", "authorization",
                                       "content-type"};
    hfsb_str method = hfsb_json_str(hfsb_json_get(want, "method"), t_s("?"));
    hfsb_str target = hfsb_json_str(hfsb_json_get(want, "target"), t_s("?"));
    hfsb_str content =
        hfsb_json_str(hfsb_json_get(fields, "content-length"), t_s("0"));
    hfsb_buf line = HFSB_INIT;
    size_t   i;
    T_CHECK(hfsb_buf_printf(&line, "%.*s %.*s", (int)method.len, method.ptr,
                            (int)target.len, target.ptr) == HFSB_OK);
    t_str(__FILE__, __LINE__, have->line.ptr, have->line.len, line.ptr,
          line.len);
    hfsb_buf_free(&line);
    for (i = 0; i < sizeof same / sizeof *same; i++)
        T_CHECK(hfsb_str_equal(
            hfsb_json_str(hfsb_json_get(fields, same[i]), t_s("")),
            t_field(have, same[i])));
    T_CHECK(have->has_body == (json || lines));
    if (json) t_same_json(json, hfsb_buf_str(&have->body));
    if (lines) t_same_lines(lines, hfsb_buf_str(&have->body));
    if (length) T_CHECK(strtoul(content.ptr, NULL, 10) == have->body.len);
}

static void t_beside(t_hub *h, const hfsb_json_value *list, const char *tag,
                     size_t from, size_t count, hfsb_status (*fn)(t_hub *h),
                     bool length) {
    size_t before = t_failed, n;
    t_hub_forget(h);
    T_CHECK(fn(h) == HFSB_OK);
    T_CHECK(h->sent_count == from + count);
    for (n = from; n < h->sent_count && n < from + count; n++) {
        const hfsb_json_value *want = t_golden(list, tag, n);
        T_CHECK(want != NULL);
        if (want) t_same_request(want, &h->sent[n], length);
    }
    if (t_failed != before) printf("  (%s: %s)\n", tag, h->err.msg);
}

/* Their environment variables have one letter here, which the Hub's own
   description forbids: compared without. */
static void t_job_body(t_hub *h, const hfsb_json_value *want,
                       hfsb_status (*fn)(t_hub *h)) {
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter a, b;
    t_hub_forget(h);
    T_CHECK(fn(h) == HFSB_OK && h->sent_count == 1);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&h->sent[0].body), NULL, &doc,
                            NULL) == HFSB_OK);
    want = hfsb_json_get(want, "json");
    T_CHECK(hfsb_json_count(want) == hfsb_json_count(doc.root));
    a = hfsb_json_begin(want);
    b = hfsb_json_begin(doc.root);
    while (hfsb_json_next(&a) && hfsb_json_next(&b)) {
        hfsb_buf text = HFSB_INIT;
        T_CHECK(hfsb_str_equal(a.key, b.key));
        if (hfsb_str_equal(a.key, t_s("environment"))) continue;
        T_CHECK(hfsb_json_write(b.value, NULL, &text, NULL) == HFSB_OK);
        t_same_json(a.value, hfsb_buf_str(&text));
        hfsb_buf_free(&text);
    }
    hfsb_json_free(&doc);
}

static void requests_equal_those_of_the_python_client(void) {
    hfsb_buf               text = HFSB_INIT;
    hfsb_json_doc          doc = HFSB_INIT;
    const hfsb_json_value *older, *newer;
    t_hub                  h;
    size_t                 i;
    if (!t_data_file("data/hub/golden.json", &text)) return;
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&text), NULL, &doc, NULL) == HFSB_OK);
    older = hfsb_json_get(doc.root, "1.12.0");
    newer = hfsb_json_get(doc.root, "1.29.0.dev0");
    for (i = 0; i < sizeof GOLDEN / sizeof *GOLDEN; i++) {
        bool label = strstr(GOLDEN[i].tag, "run_") != NULL;
        t_hub_init(&h);
        t_hub_open(&h);
        h.answer = t_answer;
        if (!GOLDEN[i].newer)
            t_beside(&h, older, GOLDEN[i].tag, GOLDEN[i].from, GOLDEN[i].count,
                     GOLDEN[i].fn, GOLDEN[i].same);
        t_hub_close(&h);
        t_hub_init(&h); /* asks for its owner again */
        t_hub_open(&h);
        h.answer = t_answer;
        if (!label) /* 1.29 adds labels.name, which may be left out */
            t_beside(&h, newer, GOLDEN[i].tag, GOLDEN[i].from, GOLDEN[i].count,
                     GOLDEN[i].fn, GOLDEN[i].same);
        t_hub_close(&h);
    }
    t_hub_init(&h);
    t_hub_open(&h);
    h.answer = t_answer;
    t_job_body(&h, t_golden(older, "run_job", 0), do_job_run);
    t_job_body(&h, t_golden(newer, "run_job", 0), do_job_run_label);
    t_job_body(&h, t_golden(older, "run_uv_job[url]", 0), do_job_url);
    t_job_body(&h, t_golden(newer, "run_uv_job[url]", 0), do_job_url_label);
    t_hub_close(&h);
    hfsb_json_free(&doc);
    hfsb_buf_free(&text);
}

/* ---- the same without their data ---- */

static const struct {
    hfsb_status (*fn)(t_hub *h);
    size_t      n; /* which of the requests */
    const char *line, *body;
} LITERAL[] = {
    {do_duplicate_small, 0, "POST /api/spaces/burtenshaw/sandbox/duplicate",
     "{\"repository\":\"" T_BOX "\",\"visibility\":\"private\","
     "\"hardware\":\"cpu-basic\"}"},
    {do_duplicate_sleep, 0, "POST /api/spaces/burtenshaw/sandbox/duplicate",
     "{\"repository\":\"alice/sandbox-deadbeef\",\"visibility\":\"private\","
     "\"hardware\":\"t4-small\",\"sleepTimeSeconds\":2700}"},
    {t_delete, 0, "DELETE /api/repos/delete",
     "{\"name\":\"sandbox-1a2b3c4d\",\"organization\":\"alice\","
     "\"type\":\"space\"}"},
    {do_secret, 0, "POST /api/spaces/" T_BOX "/secrets",
     "{\"key\":\"GH_TOKEN\",\"value\":\"s\xC3\xA9"
     "cret \\\"q\\\"\\n2\","
     "\"description\":\"gh\"}"},
    {do_variable, 0, "POST /api/spaces/" T_BOX "/variables",
     "{\"key\":\"MODEL\",\"value\":\"a/b\"}"},
    {t_runtime, 0, "GET /api/spaces/" T_BOX "/runtime", NULL},
    {t_pause, 0, "POST /api/spaces/" T_BOX "/pause", NULL},
    {do_restart, 0, "POST /api/spaces/" T_BOX "/restart", NULL},
    {t_restart_factory, 0, "POST /api/spaces/" T_BOX "/restart?factory=true",
     NULL},
    {do_info_expand, 0,
     "GET /api/spaces/" T_BOX "?expand=runtime&expand=subdomain", NULL},
    {do_info_revision, 0, "GET /api/spaces/" T_BOX "/revision/main", NULL},
    {do_list_limit, 1,
     "GET /api/spaces?author=alice&limit=3&full=true&cursor=Mg", NULL},
    {do_list_expand, 0,
     "GET /api/spaces?author=alice&sort=lastModified&limit=2"
     "&expand=lastModified&expand=runtime",
     NULL},
    {do_commit_changes, 0, "POST /api/spaces/" T_BOX "/preupload/main",
     "{\"files\":[{\"path\":\"sandbox_server.py\",\"sample\":"
     "\"dGhlIHNlcnZlcg==\",\"size\":10},{\"path\":\"dir/a b.txt\","
     "\"sample\":\"aMOpbGxvCg==\",\"size\":7}]}"},
    {do_commit_changes, 1, "POST /api/spaces/" T_BOX "/commit/main",
     "{\"key\": \"header\", \"value\": {\"summary\": \"msg with \xC3\xA9 and "
     "\\\"quotes\\\"\", \"description\": \"body\"}}\n"
     "{\"key\": \"file\", \"value\": {\"content\": \"aMOpbGxvCg==\", "
     "\"path\": \"dir/a b.txt\", \"encoding\": \"base64\"}}\n"
     "{\"key\": \"deletedFile\", \"value\": {\"path\": \"old.txt\"}}\n"
     "{\"key\": \"deletedFolder\", \"value\": {\"path\": \"olddir/\"}}\n"},
    {do_commit_readme, 0, "POST /api/validate-yaml",
     "{\"content\":\"---\\nsdk: docker\\n---\\n\",\"repoType\":\"space\"}"},
    {do_commit_readme, 2, "POST /api/spaces/" T_BOX "/commit/main",
     "{\"key\": \"header\", \"value\": {\"summary\": \"readme\", "
     "\"description\": \"\", \"parentCommit\": "
     "\"b1bf757571b0ded95143dc8e213274c5691dbb79\"}}\n"
     "{\"key\": \"file\", \"value\": {\"content\": "
     "\"LS0tCnNkazogZG9ja2VyCi0tLQo=\", \"path\": \"README.md\", "
     "\"encoding\": \"base64\"}}\n"},
    {do_commit_empty, 0, "POST /api/spaces/" T_BOX "/preupload/main",
     "{\"files\":[{\"path\":\"empty.txt\",\"sample\":\"\",\"size\":0},"
     "{\"path\":\".gitignore\",\"sample\":\"Ki5sb2cK\",\"size\":6}],"
     "\"gitIgnore\":\"*.log\\n\"}"},
    {do_job_logs_tail, 0,
     "GET /api/jobs/alice/68a5b3c00000000000000001/logs?tail=1", NULL},
};

static void requests_have_the_expected_text(void) {
    t_hub  h;
    size_t i;
    for (i = 0; i < sizeof LITERAL / sizeof *LITERAL; i++) {
        const t_request *r;
        t_hub_init(&h);
        t_hub_open(&h);
        h.answer = t_answer;
        T_CHECK(LITERAL[i].fn(&h) == HFSB_OK);
        T_CHECK(h.sent_count > LITERAL[i].n);
        r = &h.sent[LITERAL[i].n];
        t_str(__FILE__, __LINE__, r->line.ptr, r->line.len, LITERAL[i].line,
              strlen(LITERAL[i].line));
        T_CHECK(r->has_body == (LITERAL[i].body != NULL));
        if (LITERAL[i].body)
            t_str(__FILE__, __LINE__, r->body.ptr, r->body.len,
                  LITERAL[i].body, strlen(LITERAL[i].body));
        T_CHECK(hfsb_str_equal(t_field(r, "content-type"),
                               t_s(!LITERAL[i].body ? NULL
                                   : strstr(LITERAL[i].line, "/commit/")
                                       ? "application/x-ndjson"
                                       : "application/json")));
        t_hub_close(&h);
    }
}

/* ---- memory ---- */

static size_t t_now; /* which of GOLDEN */

static void each_call_fails_cleanly_without_memory(hfsb_alloc    alloc,
                                                   const t_heap *heap) {
    hfsb_status status;
    t_hub       h;
    t_hub_init(&h);
    h.opts.alloc = alloc;
    if (hfsb_hub_open(&h.opts, &h.hub, &h.err) == HFSB_OK) {
        h.answer = t_answer;
        status = GOLDEN[t_now].fn(&h);
        T_CHECK(status == HFSB_OK || (heap->fail_at && status == HFSB_NOMEM));
        T_CHECK(h.err.code == status && (status == HFSB_OK || h.err.msg[0]));
    } else T_CHECK(heap->fail_at && h.err.code == HFSB_NOMEM);
    t_hub_close(&h);
}

static void calls_fail_cleanly_without_memory(void) {
    for (t_now = 0; t_now < sizeof GOLDEN / sizeof *GOLDEN; t_now++)
        t_each_allocation_fails(each_call_fails_cleanly_without_memory);
}

int main(void) {
    T_RUN(requests_equal_those_of_the_python_client);
    T_RUN(requests_have_the_expected_text);
    T_RUN(calls_fail_cleanly_without_memory);
    return T_END();
}
