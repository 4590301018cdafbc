/* test_hub_spaces.c - a Space with all that can be said about it, arguments
   that cannot be right, and how answers are understood, real ones too
   (prod_answers.jsonl). */
#include "../support/t_hub.h"

static void duplicate_sends_every_option(void) {
    static const t_reply script[] = {{NULL, 200, NULL, "{}", HFSB_OK, 0, 0},
                                     {NULL, 200, NULL, "{}", HFSB_OK, 0, 0}};
    hfsb_space_spec      spec = HFSB_INIT;
    hfsb_hub_pair        secret = t_pair("K1", "v1", "d");
    hfsb_hub_pair        variable = t_pair("V1", "x", "");
    t_hub                h;
    spec.id = t_s("alice/My_Space.v2");
    spec.visible = true;
    spec.sleep_time = -1;
    spec.secrets = &secret;
    spec.secret_count = 1;
    spec.variables = &variable;
    spec.variable_count = 1;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(hfsb_hub_duplicate(h.hub, t_s("a1/b"), &spec, NULL, &h.err) ==
            HFSB_OK);
    T_STR(h.sent[0].body,
          "{\"repository\":\"alice/My_Space.v2\",\"visibility\":\"public\","
          "\"sleepTimeSeconds\":-1,\"secrets\":[{\"key\":\"K1\","
          "\"value\":\"v1\",\"description\":\"d\"}],\"variables\":"
          "[{\"key\":\"V1\",\"value\":\"x\"}]}");
    T_CHECK(t_info(&h, "refs/pr/1", "") == HFSB_OK);
    T_STR(h.sent[1].line, "GET /api/spaces/" T_BOX "/revision/refs%2Fpr%2F1");
    t_hub_close(&h);
}

/* ---- invalid arguments ---- */

static void bad_arguments_send_nothing(void) {
    static const char *const ids[] = {"",        "box",         "a/b/c",
                                      "alice/",  "/box",        "alice/b b",
                                      "a b/c",   "alice/x.git", "alice/a..b",
                                      "../../x", "alice/a--b",  "alice/?x"};
    hfsb_space_spec          spec = HFSB_INIT;
    hfsb_space_runtime       runtime;
    hfsb_hub_pair            pair = t_pair("1A", "value-of-it", "");
    hfsb_commit              commit = HFSB_INIT;
    hfsb_commit_done         done;
    hfsb_json_doc            doc = HFSB_INIT;
    hfsb_buf                 url = HFSB_INIT;
    hfsb_str                 id;
    size_t                   i;
    t_hub                    h;
    t_hub_init(&h);
    t_hub_open(&h);
    for (i = 0; i < sizeof ids / sizeof *ids; i++) {
        id = t_exact(ids[i], strlen(ids[i]));
        spec.id = id;
        T_CHECK(hfsb_hub_runtime(h.hub, id, NULL, &runtime, &h.err) ==
                HFSB_ARG);
        T_CHECK(h.err.msg[0]);
        T_CHECK(hfsb_hub_duplicate(h.hub, id, &spec, NULL, NULL) == HFSB_ARG);
        T_CHECK(hfsb_hub_duplicate(h.hub, t_s("alice/box"), &spec, NULL,
                                   NULL) == HFSB_ARG);
        T_CHECK(hfsb_hub_delete(h.hub, id, NULL, NULL) == HFSB_ARG);
        T_CHECK(hfsb_hub_space_url(h.hub, id, NULL, &url, NULL) == HFSB_ARG);
        T_CHECK(hfsb_hub_commit(h.hub, id, &commit, NULL, &done, NULL) ==
                HFSB_ARG);
        T_CHECK(hfsb_hub_space_logs(h.hub, id, "run", NULL, t_any_line, NULL,
                                    NULL) == HFSB_ARG);
        t_drop(id);
    }
    T_CHECK(!url.len);
    T_CHECK(hfsb_hub_set(h.hub, t_s(T_BOX), HFSB_HUB_SECRETS, &pair, NULL,
                         &h.err) == HFSB_ARG);
    T_CHECK(t_says(&h, "\"1A\" is not a name") &&
            !strstr(h.err.msg, "value-of-it"));
    {
        hfsb_hub_pair two[2];
        two[0] = t_pair("GOOD_1", "", "");
        two[1] = pair;
        T_CHECK(hfsbi_hub_check_keys(two, 2, 1, &h.err) == HFSB_ARG &&
                h.err.pos == 1);
    }
    pair.key = t_s("A-B");
    T_CHECK(hfsb_hub_set(h.hub, t_s(T_BOX), HFSB_HUB_VARIABLES, &pair, NULL,
                         NULL) == HFSB_ARG);
    spec.id = t_s(T_BOX);
    spec.secrets = &pair;
    spec.secret_count = 1;
    T_CHECK(hfsb_hub_duplicate(h.hub, t_s("alice/box"), &spec, NULL, NULL) ==
            HFSB_ARG);
    T_CHECK(hfsb_hub_space_logs(h.hub, t_s(T_BOX), "all", NULL, t_any_line,
                                NULL, &h.err) == HFSB_ARG);
    T_CHECK(hfsb_hub_job(h.hub, t_s("alice"), t_s("../x"), NULL, &doc,
                         &h.err) == HFSB_ARG);
    T_CHECK(t_says(&h, "\"../x\" is not a valid job id"));
    T_CHECK(hfsb_hub_job(h.hub, t_s("a/b"), t_s("1"), NULL, &doc, NULL) ==
            HFSB_ARG);
    T_CHECK(h.sent_count == 0);
    t_hub_close(&h);
}

/* ---- answers ---- */

static void runtime_reads_partial_answers(void) {
    static const struct {
        const char *body, *stage, *hardware, *requested, *sha, *error;
        long long   sleep_time;
    } cases[] = {
        {"{\"stage\":\"BUILDING\",\"hardware\":{\"current\":null,"
         "\"requested\":\"cpu-basic\"},\"storage\":null,\"gcTimeout\":172800,"
         "\"replicas\":{\"requested\":1},\"devMode\":false}",
         "BUILDING", "", "cpu-basic", "", "", 172800},
        {"{\"stage\":\"RUNNING\",\"hardware\":{\"current\":\"t4-small\","
         "\"requested\":\"t4-small\"},\"gcTimeout\":null,\"sha\":\"0123\"}",
         "RUNNING", "t4-small", "t4-small", "0123", "", 0},
        {"{\"stage\":\"BUILD_ERROR\",\"hardware\":null,"
         "\"errorMessage\":\"exit 1\"}",
         "BUILD_ERROR", "", "", "", "exit 1", 0},
        {"{\"stage\":\"SLEEPING\",\"hardware\":\"odd\",\"sha\":1}", "SLEEPING",
         "", "", "", "", 0},
        {"{\"stage\":\"PAUSED\",\"replicas\":{\"requested\":\"auto\"}}",
         "PAUSED", "", "", "", "", 0},
        {"{\"stage\":\"A_STAGE_THAT_IS_LONGER_THAN_ITS_PL\xC3\xA9\"}",
         "A_STAGE_THAT_IS_LONGER_THAN_ITS", "", "", "", "", 0}};
    hfsb_space_runtime runtime;
    t_reply            reply = HFSB_INIT;
    t_hub              h;
    size_t             i;
    t_hub_init(&h);
    h.opts.tries = 1;
    t_hub_open(&h);
    reply.status = 200;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        reply.body = cases[i].body;
        t_hub_script(&h, &reply, 1);
        T_CHECK(hfsb_hub_runtime(h.hub, t_s(T_BOX), NULL, &runtime, &h.err) ==
                HFSB_OK);
        T_CHECK(!strcmp(runtime.stage, cases[i].stage));
        T_CHECK(!strcmp(runtime.hardware, cases[i].hardware));
        T_CHECK(!strcmp(runtime.requested, cases[i].requested));
        T_CHECK(!strcmp(runtime.sha, cases[i].sha));
        T_CHECK(!strcmp(runtime.error, cases[i].error));
        T_CHECK(runtime.sleep_time == cases[i].sleep_time);
    }
    reply.body = "{\"hardware\":{}}";
    t_hub_script(&h, &reply, 1);
    T_CHECK(hfsb_hub_runtime(h.hub, t_s(T_BOX), NULL, &runtime, &h.err) ==
            HFSB_REMOTE);
    T_CHECK(t_says(&h, "no stage"));
    t_hub_close(&h);
}

static void look_tells_states_apart_in_one_request(void) {
    static const struct {
        int               status;
        const char       *body;
        hfsbi_space_state state;
    } cases[] = {
        {200, "{\"stage\":\"RUNNING\"}", HFSBI_SPACE_RUNNING},
        {200, "{\"stage\":\"RUNNING_BUILDING\"}", HFSBI_SPACE_RUNNING},
        {200, "{\"stage\":\"BUILDING\"}", HFSBI_SPACE_STARTING},
        {200, "{\"stage\":\"APP_STARTING\"}", HFSBI_SPACE_STARTING},
        {200, "{\"stage\":\"SLEEPING\"}", HFSBI_SPACE_ASLEEP},
        {200, "{\"stage\":\"STOPPED\"}", HFSBI_SPACE_ASLEEP},
        {200, "{\"stage\":\"PAUSED\"}", HFSBI_SPACE_PAUSED},
        {200, "{\"stage\":\"BUILD_ERROR\"}", HFSBI_SPACE_FAILED},
        {200, "{\"stage\":\"RUNTIME_ERROR\",\"errorMessage\":\"exit 1\"}",
         HFSBI_SPACE_FAILED},
        {200, "{\"stage\":\"CONFIG_ERROR\"}", HFSBI_SPACE_FAILED},
        {200, "{\"stage\":\"NO_APP_FILE\"}", HFSBI_SPACE_FAILED},
        {200, "{\"stage\":\"DELETING\"}", HFSBI_SPACE_GONE},
        {200, "{\"stage\":\"SOMETHING_NEW\"}", HFSBI_SPACE_UNKNOWN},
        {200, "{}", HFSBI_SPACE_UNKNOWN},
        {404, "{\"error\":\"Repository not found\"}", HFSBI_SPACE_GONE},
        {401, "{\"error\":\"Invalid username or password.\"}",
         HFSBI_SPACE_GONE},
        {503, "oh", HFSBI_SPACE_UNKNOWN}};
    hfsb_space_runtime runtime;
    t_reply            reply = HFSB_INIT;
    t_hub              h;
    size_t             i;
    t_hub_init(&h);
    t_hub_open(&h);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        reply.request = "GET /api/spaces/" T_BOX "/runtime";
        reply.status = cases[i].status;
        reply.body = cases[i].body;
        t_hub_script(&h, &reply, 1);
        T_CHECK(hfsbi_hub_look(h.hub, t_s(T_BOX), 5000, NULL, &runtime,
                               &h.err) == cases[i].state);
        T_CHECK(h.sent_count == 1 && h.total_ms > 0 && h.total_ms <= 5000);
        T_CHECK(cases[i].status == 200 || !runtime.stage[0]);
    }
    T_CHECK(hfsbi_hub_look(h.hub, t_s("misspelt"), 5000, NULL, &runtime,
                           &h.err) == HFSBI_SPACE_UNKNOWN);
    T_CHECK(h.err.code == HFSB_ARG);
    t_hub_close(&h);
}

static void space_url_comes_from_the_hub_or_its_rule(void) {
    static const struct {
        int         status;
        const char *body, *url;
    } cases[] = {
        {200, "{\"subdomain\":\"alice-odd-one\"}",
         "https://alice-odd-one.hf.space"},
        {200, "{}", "https://alice-my-space-v2.hf.space"},
        {200, "{\"subdomain\":null}", "https://alice-my-space-v2.hf.space"},
        {200, "{\"subdomain\":\"evil.example/\"}",
         "https://alice-my-space-v2.hf.space"},
        {404, "{\"error\":\"Repository not found\"}",
         "https://alice-my-space-v2.hf.space"},
        {500, "oh", "https://alice-my-space-v2.hf.space"}};
    t_reply reply = HFSB_INIT;
    t_hub   h;
    size_t  i;
    t_hub_init(&h);
    h.opts.tries = 1;
    t_hub_open(&h);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_buf url = HFSB_INIT;
        reply.request = "GET /api/spaces/alice/My_Space.v2?expand=subdomain";
        reply.status = cases[i].status;
        reply.body = cases[i].body;
        t_hub_script(&h, &reply, 1);
        T_CHECK(hfsb_hub_space_url(h.hub, t_s("alice/My_Space.v2"), NULL, &url,
                                   &h.err) == HFSB_OK);
        T_CHECK(h.err.code == HFSB_OK);
        t_str(__FILE__, __LINE__, url.ptr, url.len, cases[i].url,
              strlen(cases[i].url));
        hfsb_buf_free(&url);
    }
    t_hub_close(&h);
}

/* ---- real answers ---- */

static hfsb_status t_commit_file(t_hub *h, const char *path,
                                 const char *content) {
    hfsb_commit_file file;
    hfsb_commit      commit = HFSB_INIT;
    hfsb_commit_done done;
    file.path = path;
    file.content = t_s(content);
    commit.files = &file;
    commit.file_count = 1;
    commit.summary = t_s("x");
    return hfsb_hub_commit(h->hub, t_s(T_BOX), &commit, NULL, &done, &h->err);
}

/* Makes the call that was answered so; false: none of ours. */
static bool t_again(t_hub *h, hfsb_str method, hfsb_str uri,
                    hfsb_status *status) {
    hfsb_hub_pair      pair = t_pair("foo", "123", "");
    hfsb_space_runtime runtime;
    hfsb_space_spec    spec = HFSB_INIT;
    bool               post = hfsb_str_equal(method, t_s("POST"));
    hfsb_hub_store     store = hfsb_str_ends(uri, t_s("/secrets"))
                                   ? HFSB_HUB_SECRETS
                                   : HFSB_HUB_VARIABLES;
    spec.id = t_s("user/tmp_test_space");
    if (hfsb_str_ends(uri, t_s("/repos/create"))) /* answered alike */
        *status = hfsb_hub_duplicate(h->hub, t_s("alice/box"), &spec, NULL,
                                     &h->err);
    else if (hfsb_str_ends(uri, t_s("/repos/delete")))
        *status = hfsb_hub_delete(h->hub, spec.id, NULL, &h->err);
    else if (hfsb_str_ends(uri, t_s("/secrets")) ||
             hfsb_str_ends(uri, t_s("/variables"))) {
        if (!post) return false;
        *status = hfsb_hub_set(h->hub, spec.id, store, &pair, NULL, &h->err);
    } else if (hfsb_str_ends(uri, t_s("/runtime"))) {
        *status = hfsb_hub_runtime(h->hub, spec.id, NULL, &runtime, &h->err);
        T_CHECK(!strcmp(runtime.stage, "BUILDING") ||
                !strcmp(runtime.stage, "RUNNING"));
    } else if (hfsb_str_ends(uri, t_s("/pause"))) {
        *status = hfsb_hub_pause(h->hub, spec.id, NULL, &runtime, &h->err);
        T_CHECK(!strcmp(runtime.stage, "PAUSED"));
    } else if (hfsb_str_ends(uri, t_s("/restart")))
        *status =
            hfsb_hub_restart(h->hub, spec.id, false, NULL, &runtime, &h->err);
    else if (hfsb_str_ends(uri, t_s("/preupload/main")))
        *status = t_commit_file(h, "app.py", "changed");
    else return false;
    return true;
}

static void answers_of_the_real_hub_are_understood(void) {
    hfsb_buf text = HFSB_INIT;
    hfsb_str rest;
    size_t   done = 0;
    t_hub    h;
    if (!t_data_file("data/hub/prod_answers.jsonl", &text)) return;
    t_hub_init(&h);
    t_hub_open(&h);
    rest = hfsb_buf_str(&text);
    while (rest.len) {
        size_t        end = hfsb_str_find_byte(rest, '\n');
        hfsb_json_doc doc = HFSB_INIT;
        t_reply       script[2] = {HFSB_INIT, HFSB_INIT};
        hfsb_status   status = HFSB_OK;
        char         *body;
        hfsb_str      answer;
        T_CHECK(hfsb_json_parse(hfsb_str_slice(rest, 0, end), NULL, &doc,
                                NULL) == HFSB_OK);
        answer =
            hfsb_json_str(hfsb_json_get(doc.root, "response_body"), t_s(""));
        body = hfsbi_cstr_copy(&h.opts.alloc, answer);
        script[0].status =
            (int)hfsb_json_int(hfsb_json_get(doc.root, "status"), 0);
        script[0].body = body;
        script[1].status = 200;
        script[1].body = "{\"success\":true,\"commitOid\":\"855efb95\"}";
        t_hub_script(&h, script, 2);
        if (t_again(&h,
                    hfsb_json_str(hfsb_json_get(doc.root, "method"), t_s("")),
                    hfsb_json_str(hfsb_json_get(doc.root, "uri"), t_s("")),
                    &status)) {
            done++;
            T_CHECK(status ==
                    (script[0].status == 409 ? HFSB_CONFLICT : HFSB_OK));
            T_CHECK(script[0].status != 409 ||
                    t_says(&h, "HTTP 409: You already created this space "
                               "repo."));
        }
        hfsbi_array_free(&h.opts.alloc, body, answer.len + 1, 1);
        hfsb_json_free(&doc);
        rest = hfsb_str_slice(rest, end == HFSB_NPOS ? rest.len : end + 1,
                              rest.len);
    }
    T_CHECK(done > 30);
    t_hub_close(&h);
    hfsb_buf_free(&text);
}

int main(void) {
    T_RUN(duplicate_sends_every_option);
    T_RUN(bad_arguments_send_nothing);
    T_RUN(runtime_reads_partial_answers);
    T_RUN(look_tells_states_apart_in_one_request);
    T_RUN(space_url_comes_from_the_hub_or_its_rule);
    T_RUN(answers_of_the_real_hub_are_understood);
    return T_END();
}
