/* test_hub_requests.c - what each call sends, beside what the Hub's own
   Python client sends (golden.json), and how real answers are understood
   (prod_answers.jsonl). */
#include "t_hub.h"

#define BOX "alice/sandbox-1a2b3c4d"

/* ---- a Hub that has an answer to everything ---- */

/* Every file is taken; sandbox_server.py is there already. */
static void t_preupload(t_hub *h, const t_request *r) {
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    char           oid[HFSBI_SHA1_HEX];
    bool           first = true;
    hfsbi_git_blob(t_s("the server"), oid);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&r->body), NULL, &doc, NULL) ==
            HFSB_OK);
    T_CHECK(hfsb_buf_append(&h->text, t_s("{\"files\":[")) == HFSB_OK);
    it = hfsb_json_begin(hfsb_json_get(doc.root, "files"));
    while (hfsb_json_next(&it)) {
        hfsb_str path =
            hfsb_json_str(hfsb_json_get(it.value, "path"), t_s(""));
        T_CHECK(hfsb_buf_printf(&h->text,
                                "%s{\"path\":\"%.*s\",\"uploadMode\":"
                                "\"regular\",\"shouldIgnore\":false",
                                first ? "" : ",", (int)path.len,
                                path.ptr) == HFSB_OK);
        if (hfsb_str_equal(path, t_s("sandbox_server.py")))
            T_CHECK(hfsb_buf_printf(&h->text, ",\"oid\":\"%s\"", oid) ==
                    HFSB_OK);
        T_CHECK(hfsb_buf_append(&h->text, t_s("}")) == HFSB_OK);
        first = false;
    }
    T_CHECK(hfsb_buf_append(&h->text, t_s("],\"commitOid\":\"c0\"}")) ==
            HFSB_OK);
    hfsb_json_free(&doc);
}

/* Two Spaces a page, h->pages of them. */
static void t_list(t_hub *h, const t_request *r, t_reply *out) {
    static char link[300];
    size_t      cursor = hfsb_str_find(hfsb_buf_str(&r->line), t_s("cursor="));
    const char *next = h->sent_count == 1 ? "Mg" : "NA";
    char        query[200];
    (void)snprintf(query, sizeof query, "%s", r->line.ptr + 4);
    if (cursor != HFSB_NPOS) query[cursor - 5] = '\0';
    out->body = "[{\"id\":\"alice/a\"},{\"id\":\"alice/b\"}]";
    if (h->sent_count >= h->pages) return;
    (void)snprintf(link, sizeof link,
                   "Link: <https://huggingface.co%s&cursor=%s>; "
                   "rel=\"next\"",
                   query, next);
    out->fields = link;
}

static void t_answer(t_hub *h, const t_request *r, t_reply *out) {
    hfsb_str line = hfsb_buf_str(&r->line);
    out->status = 200;
    hfsb_buf_truncate(&h->text, 0);
    if (hfsb_str_ends(line, t_s("/whoami-v2")))
        out->body = "{\"name\":\"alice\"}";
    else if (hfsb_str_find(line, t_s("/preupload/")) != HFSB_NPOS) {
        t_preupload(h, r);
        out->body = h->text.ptr;
    } else if (hfsb_str_find(line, t_s("/commit/")) != HFSB_NPOS)
        out->body = "{\"success\":true,\"commitOid\":\"c1\"}";
    else if (hfsb_str_starts(line, t_s("GET /api/spaces?")))
        t_list(h, r, out);
    else if (hfsb_str_ends(line, t_s("/api/jobs/alice")) &&
             hfsb_str_starts(line, t_s("GET")))
        out->body = "[{\"id\":\"1\"}]";
    else if (hfsb_str_ends(line, t_s("/repos/delete"))) {
        out->fields = "Content-Type: text/plain; charset=utf-8";
        out->body = "OK";
    } else if (hfsb_str_find(line, t_s("/logs")) != HFSB_NPOS) {
        out->fields = "Content-Type: text/event-stream";
        out->body = "data: {\"data\":\"x\\n\",\"timestamp\":\"t\"}\n\n";
    } else
        out->body = "{\"stage\":\"RUNNING\",\"sha\":\"c0\","
                    "\"status\":{\"stage\":\"COMPLETED\"}}";
}

/* ---- each call as the Python client makes it ---- */

static bool t_each(void *user, const hfsb_json_value *item) {
    (void)item;
    ++*(size_t *)user;
    return true;
}

static hfsb_hub_pair t_pair(const char *key, const char *value,
                            const char *description) {
    hfsb_hub_pair pair;
    pair.key = t_s(key);
    pair.value = t_s(value);
    pair.description = t_s(description);
    return pair;
}

static hfsb_status do_whoami(t_hub *h) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   status = hfsb_hub_whoami(h->hub, NULL, &doc, &h->err);
    hfsb_json_free(&doc);
    return status;
}

static hfsb_status do_duplicate_small(t_hub *h) {
    hfsb_space_spec spec = HFSB_INIT;
    spec.id = t_s(BOX);
    spec.hardware = t_s("cpu-basic");
    return hfsb_hub_duplicate(h->hub, t_s("burtenshaw/sandbox"), &spec, NULL,
                              &h->err);
}

static hfsb_status do_duplicate_sleep(t_hub *h) {
    hfsb_space_spec spec = HFSB_INIT;
    spec.id = t_s("alice/sandbox-deadbeef");
    spec.hardware = t_s("t4-small");
    spec.sleep_time = 2700;
    return hfsb_hub_duplicate(h->hub, t_s("burtenshaw/sandbox"), &spec, NULL,
                              &h->err);
}

static hfsb_status do_duplicate_plain(t_hub *h) {
    hfsb_space_spec spec = HFSB_INIT;
    spec.id = t_s("alice/dup2");
    return hfsb_hub_duplicate(h->hub, t_s("burtenshaw/sandbox"), &spec, NULL,
                              &h->err);
}

static hfsb_status do_create(t_hub *h) {
    hfsb_space_spec spec = HFSB_INIT;
    hfsb_hub_pair   secret = t_pair("A", "b", "");
    spec.id = t_s("alice/fresh");
    spec.hardware = t_s("cpu-basic");
    spec.secrets = &secret;
    spec.secret_count = 1;
    return hfsb_hub_create(h->hub, &spec, NULL, &h->err);
}

static hfsb_status do_delete(t_hub *h) {
    return hfsb_hub_delete(h->hub, t_s(BOX), NULL, &h->err);
}

static hfsb_status do_delete_fresh(t_hub *h) {
    return hfsb_hub_delete(h->hub, t_s("alice/fresh"), NULL, &h->err);
}

static hfsb_status do_secret(t_hub *h) {
    hfsb_hub_pair pair =
        t_pair("GH_TOKEN", "s\xC3\xA9"
                           "cret \"q\"\n2",
               "gh");
    return hfsb_hub_set(h->hub, t_s(BOX), HFSB_HUB_SECRETS, &pair, NULL,
                        &h->err);
}

static hfsb_status do_secret_unset(t_hub *h) {
    return hfsb_hub_unset(h->hub, t_s(BOX), HFSB_HUB_SECRETS, t_s("GH_TOKEN"),
                          NULL, &h->err);
}

static hfsb_status do_secrets(t_hub *h) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   status = hfsb_hub_stored(
        h->hub, t_s(BOX), HFSB_HUB_SECRETS, NULL, &doc, &h->err);
    hfsb_json_free(&doc);
    return status;
}

static hfsb_status do_variable(t_hub *h) {
    hfsb_hub_pair pair = t_pair("MODEL", "a/b", "");
    return hfsb_hub_set(h->hub, t_s(BOX), HFSB_HUB_VARIABLES, &pair, NULL,
                        &h->err);
}

static hfsb_status do_variable_unset(t_hub *h) {
    return hfsb_hub_unset(h->hub, t_s(BOX), HFSB_HUB_VARIABLES, t_s("MODEL"),
                          NULL, &h->err);
}

static hfsb_status do_variables(t_hub *h) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   status = hfsb_hub_stored(
        h->hub, t_s(BOX), HFSB_HUB_VARIABLES, NULL, &doc, &h->err);
    hfsb_json_free(&doc);
    return status;
}

static hfsb_status do_runtime(t_hub *h) {
    hfsb_space_runtime runtime;
    return hfsb_hub_runtime(h->hub, t_s(BOX), NULL, &runtime, &h->err);
}

static hfsb_status do_hardware(t_hub *h) {
    return hfsb_hub_hardware(h->hub, t_s(BOX), t_s("t4-small"), 600, NULL,
                             NULL, &h->err);
}

static hfsb_status do_sleep_time(t_hub *h) {
    hfsb_space_runtime runtime;
    return hfsb_hub_sleep_time(h->hub, t_s(BOX), 900, NULL, &runtime, &h->err);
}

static hfsb_status do_pause(t_hub *h) {
    return hfsb_hub_pause(h->hub, t_s(BOX), NULL, NULL, &h->err);
}

static hfsb_status do_restart(t_hub *h) {
    return hfsb_hub_restart(h->hub, t_s(BOX), false, NULL, NULL, &h->err);
}

static hfsb_status do_restart_factory(t_hub *h) {
    return hfsb_hub_restart(h->hub, t_s(BOX), true, NULL, NULL, &h->err);
}

static hfsb_status t_info(t_hub *h, const char *revision, const char *expand) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   status = hfsb_hub_space(h->hub, t_s(BOX), t_s(revision),
                                          t_s(expand), NULL, &doc, &h->err);
    hfsb_json_free(&doc);
    return status;
}

static hfsb_status do_info(t_hub *h) {
    return t_info(h, "", "");
}

static hfsb_status do_info_expand(t_hub *h) {
    return t_info(h, "", "runtime, subdomain");
}

static hfsb_status do_info_revision(t_hub *h) {
    return t_info(h, "main", "");
}

static hfsb_status t_spaces(t_hub *h, const hfsb_space_filter *filter,
                            size_t pages, size_t want) {
    size_t      got = 0;
    hfsb_status status;
    h->pages = pages;
    status = hfsb_hub_spaces(h->hub, filter, t_each, &got, NULL, &h->err);
    T_CHECK(status != HFSB_OK || got == want);
    return status;
}

static hfsb_status do_list(t_hub *h) {
    hfsb_space_filter filter = HFSB_INIT;
    filter.author = t_s("alice");
    return t_spaces(h, &filter, 3, 6);
}

static hfsb_status do_list_limit(t_hub *h) {
    hfsb_space_filter filter = HFSB_INIT;
    filter.author = t_s("alice");
    filter.full = true;
    filter.limit = 3;
    return t_spaces(h, &filter, 3, 3);
}

static hfsb_status do_list_search(t_hub *h) {
    hfsb_space_filter filter = HFSB_INIT;
    filter.search = t_s("sandbox");
    filter.full = true;
    filter.limit = 10000;
    return t_spaces(h, &filter, 2, 4);
}

static hfsb_status do_list_expand(t_hub *h) {
    hfsb_space_filter filter = HFSB_INIT;
    filter.author = t_s("alice");
    filter.sort = t_s("lastModified");
    filter.expand = t_s("lastModified,runtime");
    filter.limit = 2;
    return t_spaces(h, &filter, 3, 2);
}

static bool t_any_line(void *user, hfsb_str line, hfsb_str time) {
    (void)user, (void)line, (void)time;
    return true;
}

static hfsb_status do_logs_run(t_hub *h) {
    return hfsb_hub_space_logs(h->hub, t_s(BOX), "run", NULL, t_any_line, NULL,
                               &h->err);
}

static hfsb_status do_logs_build(t_hub *h) {
    return hfsb_hub_space_logs(h->hub, t_s(BOX), "build", NULL, t_any_line,
                               NULL, &h->err);
}

static hfsb_status t_commit(t_hub *h, const hfsb_commit_file *files,
                            size_t count, const char *summary,
                            const char *description, const char *parent) {
    hfsb_commit      commit = HFSB_INIT;
    hfsb_commit_done done;
    commit.files = files;
    commit.file_count = count;
    commit.summary = t_s(summary);
    commit.description = t_s(description);
    commit.parent = t_s(parent);
    return hfsb_hub_commit(h->hub, t_s(BOX), &commit, NULL, &done, &h->err);
}

static hfsb_commit_file t_file(const char *path, const char *content) {
    hfsb_commit_file file;
    file.path = path;
    file.content = hfsb_str_make(content, content ? strlen(content) : 0);
    return file;
}

static hfsb_status do_commit_changes(t_hub *h) {
    hfsb_commit_file files[4];
    files[0] = t_file("./sandbox_server.py", "the server");
    files[1] = t_file("/dir/a b.txt", "h\xC3\xA9llo\n");
    files[2] = t_file("old.txt", NULL);
    files[3] = t_file("olddir/", NULL);
    return t_commit(h, files, 4, "msg with \xC3\xA9 and \"quotes\"", "body",
                    "");
}

static hfsb_status do_commit_nothing(t_hub *h) {
    hfsb_commit_file file = t_file("sandbox_server.py", "the server");
    return t_commit(h, &file, 1, "x", "", "");
}

static hfsb_status do_commit_readme(t_hub *h) {
    hfsb_commit_file file = t_file("README.md", "---\nsdk: docker\n---\n");
    return t_commit(h, &file, 1, "readme", "",
                    "b1bf757571b0ded95143dc8e213274c5691dbb79");
}

static hfsb_status do_commit_empty(t_hub *h) {
    hfsb_commit_file files[2];
    files[0] = t_file("empty.txt", "");
    files[1] = t_file(".gitignore", "*.log\n");
    return t_commit(h, files, 2, "x", "", "");
}

/* ---- jobs ---- */

static hfsb_status t_job(t_hub *h, const hfsb_job_spec *spec, bool script) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   status =
        script ? hfsb_hub_job_script(h->hub, spec, NULL, &doc, &h->err)
               : hfsb_hub_job_run(h->hub, spec, NULL, &doc, &h->err);
    hfsb_json_free(&doc);
    return status;
}

static hfsb_status t_job_named(t_hub *h, const char *name) {
    hfsb_str      command[3];
    hfsb_hub_pair env = t_pair("A", "1", "");
    hfsb_hub_pair secret = t_pair("HF_TOKEN", T_TOKEN, "");
    hfsb_hub_pair label = t_pair("name", name ? name : "", "");
    hfsb_job_spec spec = HFSB_INIT;
    command[0] = t_s("python");
    command[1] = t_s("-c");
    command[2] = t_s("print('hi')");
    spec.space = t_s("alice");
    spec.command = command;
    spec.command_count = 3;
    spec.env = &env;
    spec.env_count = 0; /* "A" is too short a name for the Hub */
    spec.secrets = &secret;
    spec.secret_count = 1;
    spec.labels = &label;
    spec.label_count = name ? 1 : 0;
    spec.flavor = t_s("t4-small");
    spec.timeout = t_s("30m");
    return t_job(h, &spec, false);
}

static hfsb_status do_job_space(t_hub *h) {
    hfsb_str      command[3];
    hfsb_job_spec spec = HFSB_INIT;
    command[0] = t_s("sh");
    command[1] = t_s("-c");
    command[2] = t_s("true");
    spec.command = command;
    spec.command_count = 3;
    spec.image = t_s("https://huggingface.co/spaces/alice/fresh");
    return t_job(h, &spec, false);
}

static hfsb_status t_job_url(t_hub *h, const char *name) {
    hfsb_str      args[2], with[2];
    hfsb_hub_pair secret = t_pair("HF_TOKEN", T_TOKEN, "");
    hfsb_hub_pair label = t_pair("name", name ? name : "", "");
    hfsb_job_spec spec = HFSB_INIT;
    args[0] = t_s("--epochs");
    args[1] = t_s("3");
    with[0] = t_s("trl");
    with[1] = t_s("torch>=2");
    spec.space = t_s("alice");
    spec.script = t_s("https://example.com/sft.py");
    spec.args = args;
    spec.arg_count = 2;
    spec.with = with;
    spec.with_count = 2;
    spec.python = t_s("3.12");
    spec.flavor = t_s("a10g-small");
    spec.timeout = t_s("2h");
    spec.secrets = &secret;
    spec.secret_count = 1;
    spec.labels = &label;
    spec.label_count = name ? 1 : 0;
    return t_job(h, &spec, true);
}

static hfsb_status do_job_command(t_hub *h) {
    hfsb_str      args[2];
    hfsb_job_spec spec = HFSB_INIT;
    args[0] = t_s("-c");
    args[1] = t_s("import sys; print(sys.version)");
    spec.space = t_s("alice");
    spec.script = t_s("python");
    spec.args = args;
    spec.arg_count = 2;
    return t_job(h, &spec, true);
}

static hfsb_status do_job(t_hub *h) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   status =
        hfsb_hub_job(h->hub, t_s("alice"), t_s("68a5b3c00000000000000001"),
                     NULL, &doc, &h->err);
    hfsb_json_free(&doc);
    return status;
}

static hfsb_status do_job_cancel(t_hub *h) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   status = hfsb_hub_job_cancel(h->hub, t_s("alice"),
                                               t_s("68a5b3c00000000000000002"),
                                               NULL, &doc, &h->err);
    hfsb_json_free(&doc);
    return status;
}

static hfsb_status do_jobs(t_hub *h) {
    size_t      got = 0;
    hfsb_status status =
        hfsb_hub_jobs(h->hub, t_s("alice"), t_each, &got, NULL, &h->err);
    T_CHECK(status != HFSB_OK || got == 1);
    return status;
}

static hfsb_status do_job_logs(t_hub *h) {
    return hfsb_hub_job_logs(h->hub, t_s("alice"),
                             t_s("68a5b3c00000000000000001"), NULL, t_any_line,
                             NULL, &h->err);
}

static hfsb_status do_job_logs_tail(t_hub *h) {
    hfsb_log_opts opts = HFSB_INIT;
    opts.tail = 1;
    return hfsb_hub_job_logs(h->hub, t_s("alice"),
                             t_s("68a5b3c00000000000000001"), &opts,
                             t_any_line, NULL, &h->err);
}

static hfsb_status do_job_run(t_hub *h) {
    return t_job_named(h, NULL);
}

static hfsb_status do_job_url(t_hub *h) {
    return t_job_url(h, NULL);
}

/* ---- beside the Python client ---- */

static const struct {
    const char *tag;
    size_t      from, count; /* of the requests with that tag */
    hfsb_status (*fn)(t_hub *h);
    bool newer; /* 1.29 only */
    bool same;  /* the body's length, too */
} GOLDEN[] = {
    {"whoami", 0, 1, do_whoami, false, true},
    {"Sandbox.create[cpu-basic]", 0, 1, do_duplicate_small, false, true},
    {"Sandbox.create[t4-small]", 0, 1, do_duplicate_sleep, false, true},
    {"duplicate_space[deprecated alias]", 0, 1, do_duplicate_plain, false,
     true},
    {"create_repo[space,docker]", 0, 1, do_create, false, true},
    {"Sandbox.delete", 0, 1, do_delete, false, true},
    {"delete_repo[space]", 0, 1, do_delete_fresh, false, true},
    {"add_space_secret", 0, 1, do_secret, false, true},
    {"delete_space_secret", 0, 1, do_secret_unset, false, true},
    {"get_space_secrets", 0, 1, do_secrets, true, true},
    {"add_space_variable", 0, 1, do_variable, false, true},
    {"delete_space_variable", 0, 1, do_variable_unset, false, true},
    {"get_space_variables", 0, 1, do_variables, false, true},
    {"get_space_runtime", 0, 1, do_runtime, false, true},
    {"request_space_hardware", 0, 1, do_hardware, false, true},
    {"set_space_sleep_time", 0, 1, do_sleep_time, false, true},
    {"pause_space", 0, 1, do_pause, false, true},
    {"restart_space", 0, 1, do_restart, false, true},
    {"restart_space[factory]", 0, 1, do_restart_factory, false, true},
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
    {"run_job[no namespace, defaults, space image]", 0, 2, do_job_space,
     false, true},
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
    const hfsb_json_value *fields = hfsb_json_get(want, "headers");
    const hfsb_json_value *json = hfsb_json_get(want, "json");
    const hfsb_json_value *lines = hfsb_json_get(want, "ndjson");
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

static hfsb_status do_job_run_label(t_hub *h) {
    return t_job_named(h, "python-3-12-5c1fcc4a");
}

static hfsb_status do_job_url_label(t_hub *h) {
    return t_job_url(h, "sft-138386fb");
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

static void requests_are_those_of_the_python_client(void) {
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
            t_beside(&h, older, GOLDEN[i].tag, GOLDEN[i].from,
                     GOLDEN[i].count, GOLDEN[i].fn, GOLDEN[i].same);
        t_hub_close(&h);
        t_hub_init(&h); /* asks for its owner again */
        t_hub_open(&h);
        h.answer = t_answer;
        if (!label) /* 1.29 adds labels.name, which may be left out */
            t_beside(&h, newer, GOLDEN[i].tag, GOLDEN[i].from,
                     GOLDEN[i].count, GOLDEN[i].fn, GOLDEN[i].same);
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
     "{\"repository\":\"" BOX "\",\"visibility\":\"private\","
     "\"hardware\":\"cpu-basic\"}"},
    {do_duplicate_sleep, 0, "POST /api/spaces/burtenshaw/sandbox/duplicate",
     "{\"repository\":\"alice/sandbox-deadbeef\",\"visibility\":\"private\","
     "\"hardware\":\"t4-small\",\"sleepTimeSeconds\":2700}"},
    {do_create, 0, "POST /api/repos/create",
     "{\"name\":\"fresh\",\"organization\":\"alice\","
     "\"visibility\":\"private\",\"type\":\"space\",\"sdk\":\"docker\","
     "\"hardware\":\"cpu-basic\",\"secrets\":[{\"key\":\"A\","
     "\"value\":\"b\"}]}"},
    {do_delete, 0, "DELETE /api/repos/delete",
     "{\"name\":\"sandbox-1a2b3c4d\",\"organization\":\"alice\","
     "\"type\":\"space\"}"},
    {do_secret, 0, "POST /api/spaces/" BOX "/secrets",
     "{\"key\":\"GH_TOKEN\",\"value\":\"s\xC3\xA9"
     "cret \\\"q\\\"\\n2\","
     "\"description\":\"gh\"}"},
    {do_secret_unset, 0, "DELETE /api/spaces/" BOX "/secrets",
     "{\"key\":\"GH_TOKEN\"}"},
    {do_secrets, 0, "GET /api/spaces/" BOX "/secrets", NULL},
    {do_variable, 0, "POST /api/spaces/" BOX "/variables",
     "{\"key\":\"MODEL\",\"value\":\"a/b\"}"},
    {do_variables, 0, "GET /api/spaces/" BOX "/variables", NULL},
    {do_variable_unset, 0, "DELETE /api/spaces/" BOX "/variables",
     "{\"key\":\"MODEL\"}"},
    {do_runtime, 0, "GET /api/spaces/" BOX "/runtime", NULL},
    {do_hardware, 0, "POST /api/spaces/" BOX "/hardware",
     "{\"flavor\":\"t4-small\",\"sleepTimeSeconds\":600}"},
    {do_sleep_time, 0, "POST /api/spaces/" BOX "/sleeptime",
     "{\"seconds\":900}"},
    {do_pause, 0, "POST /api/spaces/" BOX "/pause", NULL},
    {do_restart, 0, "POST /api/spaces/" BOX "/restart", NULL},
    {do_restart_factory, 0, "POST /api/spaces/" BOX "/restart?factory=true",
     NULL},
    {do_info_expand, 0,
     "GET /api/spaces/" BOX "?expand=runtime&expand=subdomain", NULL},
    {do_info_revision, 0, "GET /api/spaces/" BOX "/revision/main", NULL},
    {do_list_limit, 1,
     "GET /api/spaces?author=alice&limit=3&full=true&cursor=Mg", NULL},
    {do_list_expand, 0,
     "GET /api/spaces?author=alice&sort=lastModified&limit=2"
     "&expand=lastModified&expand=runtime",
     NULL},
    {do_commit_changes, 0, "POST /api/spaces/" BOX "/preupload/main",
     "{\"files\":[{\"path\":\"sandbox_server.py\",\"sample\":"
     "\"dGhlIHNlcnZlcg==\",\"size\":10},{\"path\":\"dir/a b.txt\","
     "\"sample\":\"aMOpbGxvCg==\",\"size\":7}]}"},
    {do_commit_changes, 1, "POST /api/spaces/" BOX "/commit/main",
     "{\"key\": \"header\", \"value\": {\"summary\": \"msg with \xC3\xA9 and "
     "\\\"quotes\\\"\", \"description\": \"body\"}}\n"
     "{\"key\": \"file\", \"value\": {\"content\": \"aMOpbGxvCg==\", "
     "\"path\": \"dir/a b.txt\", \"encoding\": \"base64\"}}\n"
     "{\"key\": \"deletedFile\", \"value\": {\"path\": \"old.txt\"}}\n"
     "{\"key\": \"deletedFolder\", \"value\": {\"path\": \"olddir/\"}}\n"},
    {do_commit_readme, 0, "POST /api/validate-yaml",
     "{\"content\":\"---\\nsdk: docker\\n---\\n\",\"repoType\":\"space\"}"},
    {do_commit_readme, 2, "POST /api/spaces/" BOX "/commit/main",
     "{\"key\": \"header\", \"value\": {\"summary\": \"readme\", "
     "\"description\": \"\", \"parentCommit\": "
     "\"b1bf757571b0ded95143dc8e213274c5691dbb79\"}}\n"
     "{\"key\": \"file\", \"value\": {\"content\": "
     "\"LS0tCnNkazogZG9ja2VyCi0tLQo=\", \"path\": \"README.md\", "
     "\"encoding\": \"base64\"}}\n"},
    {do_commit_empty, 0, "POST /api/spaces/" BOX "/preupload/main",
     "{\"files\":[{\"path\":\"empty.txt\",\"sample\":\"\",\"size\":0},"
     "{\"path\":\".gitignore\",\"sample\":\"Ki5sb2cK\",\"size\":6}],"
     "\"gitIgnore\":\"*.log\\n\"}"},
    {do_job_logs_tail, 0,
     "GET /api/jobs/alice/68a5b3c00000000000000001/logs?tail=1", NULL},
};

static void requests_are_as_written_here(void) {
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
        T_CHECK(hfsb_str_equal(
            t_field(r, "content-type"),
            t_s(!LITERAL[i].body ? NULL
                : strstr(LITERAL[i].line, "/commit/")
                    ? "application/x-ndjson"
                    : "application/json")));
        t_hub_close(&h);
    }
}

static void a_public_space_and_all_there_is_to_send(void) {
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
    T_STR(h.sent[1].line, "GET /api/spaces/" BOX "/revision/refs%2Fpr%2F1");
    t_hub_close(&h);
}

/* ---- arguments that cannot be right are told before a request ---- */

static void bad_arguments_send_nothing(void) {
    static const char *const ids[] = {"",       "box",       "a/b/c",
                                      "alice/", "/box",      "alice/b b",
                                      "a b/c",  "alice/x.git", "alice/a..b",
                                      "../../x", "alice/a--b", "alice/?x"};
    hfsb_space_spec     spec = HFSB_INIT;
    hfsb_space_runtime  runtime;
    hfsb_hub_pair       pair = t_pair("1A", "value-of-it", "");
    hfsb_commit         commit = HFSB_INIT;
    hfsb_commit_done    done;
    hfsb_json_doc       doc = HFSB_INIT;
    hfsb_buf            url = HFSB_INIT;
    hfsb_str            id;
    size_t              i;
    t_hub               h;
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
        T_CHECK(hfsb_hub_create(h.hub, &spec, NULL, NULL) == HFSB_ARG);
        T_CHECK(hfsb_hub_delete(h.hub, id, NULL, NULL) == HFSB_ARG);
        T_CHECK(hfsb_hub_space_url(h.hub, id, NULL, &url, NULL) == HFSB_ARG);
        T_CHECK(hfsb_hub_commit(h.hub, id, &commit, NULL, &done, NULL) ==
                HFSB_ARG);
        T_CHECK(hfsb_hub_space_logs(h.hub, id, "run", NULL, t_any_line, NULL,
                                    NULL) == HFSB_ARG);
        t_drop(id);
    }
    T_CHECK(!url.len);
    T_CHECK(hfsb_hub_set(h.hub, t_s(BOX), HFSB_HUB_SECRETS, &pair, NULL,
                         &h.err) == HFSB_ARG);
    T_CHECK(t_says(&h, "\"1A\" is not a name") &&
            !strstr(h.err.msg, "value-of-it"));
    T_CHECK(hfsb_hub_unset(h.hub, t_s(BOX), HFSB_HUB_SECRETS, t_s("A-B"),
                           NULL, NULL) == HFSB_ARG);
    spec.id = t_s(BOX);
    spec.secrets = &pair;
    spec.secret_count = 1;
    T_CHECK(hfsb_hub_create(h.hub, &spec, NULL, NULL) == HFSB_ARG);
    T_CHECK(hfsb_hub_sleep_time(h.hub, t_s(BOX), 0, NULL, NULL, NULL) ==
            HFSB_ARG);
    T_CHECK(hfsb_hub_sleep_time(h.hub, t_s(BOX), -2, NULL, NULL, NULL) ==
            HFSB_ARG);
    T_CHECK(hfsb_hub_space_logs(h.hub, t_s(BOX), "all", NULL, t_any_line,
                                NULL, &h.err) == HFSB_ARG);
    T_CHECK(hfsb_hub_job(h.hub, t_s("alice"), t_s("../x"), NULL, &doc,
                         &h.err) == HFSB_ARG);
    T_CHECK(t_says(&h, "\"../x\" is not the id of a job"));
    T_CHECK(hfsb_hub_job(h.hub, t_s("a/b"), t_s("1"), NULL, &doc, NULL) ==
            HFSB_ARG);
    T_CHECK(h.sent_count == 0);
    t_hub_close(&h);
}

/* ---- answers ---- */

static void runtime_takes_what_is_there(void) {
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
        {"{\"stage\":\"SLEEPING\",\"hardware\":\"odd\",\"sha\":1}",
         "SLEEPING", "", "", "", "", 0},
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
        T_CHECK(hfsb_hub_runtime(h.hub, t_s(BOX), NULL, &runtime, &h.err) ==
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
    T_CHECK(hfsb_hub_runtime(h.hub, t_s(BOX), NULL, &runtime, &h.err) ==
            HFSB_REMOTE);
    T_CHECK(t_says(&h, "no stage"));
    t_hub_close(&h);
}

static void space_url_is_the_hubs_or_by_its_rule(void) {
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

/* Makes the call that was answered so; false: none of ours. */
static bool t_again(t_hub *h, hfsb_str method, hfsb_str uri,
                    hfsb_status *status) {
    hfsb_hub_pair      pair = t_pair("foo", "123", "");
    hfsb_space_runtime runtime;
    hfsb_space_spec    spec = HFSB_INIT;
    hfsb_commit_file   file = t_file("app.py", "changed");
    bool               post = hfsb_str_equal(method, t_s("POST"));
    bool               get = hfsb_str_equal(method, t_s("GET"));
    hfsb_hub_store     store = hfsb_str_ends(uri, t_s("/secrets"))
                                   ? HFSB_HUB_SECRETS
                                   : HFSB_HUB_VARIABLES;
    spec.id = t_s("user/tmp_test_space");
    if (hfsb_str_ends(uri, t_s("/repos/create")))
        *status = hfsb_hub_create(h->hub, &spec, NULL, &h->err);
    else if (hfsb_str_ends(uri, t_s("/repos/delete")))
        *status = hfsb_hub_delete(h->hub, spec.id, NULL, &h->err);
    else if (hfsb_str_ends(uri, t_s("/secrets")) ||
             hfsb_str_ends(uri, t_s("/variables"))) {
        if (get) *status = do_variables(h);
        else
            *status = post ? hfsb_hub_set(h->hub, spec.id, store, &pair, NULL,
                                          &h->err)
                           : hfsb_hub_unset(h->hub, spec.id, store, pair.key,
                                            NULL, &h->err);
    } else if (hfsb_str_ends(uri, t_s("/runtime"))) {
        *status =
            hfsb_hub_runtime(h->hub, spec.id, NULL, &runtime, &h->err);
        T_CHECK(!strcmp(runtime.stage, "BUILDING") ||
                !strcmp(runtime.stage, "RUNNING"));
    } else if (hfsb_str_ends(uri, t_s("/pause"))) {
        *status = hfsb_hub_pause(h->hub, spec.id, NULL, &runtime, &h->err);
        T_CHECK(!strcmp(runtime.stage, "PAUSED"));
    } else if (hfsb_str_ends(uri, t_s("/restart")))
        *status =
            hfsb_hub_restart(h->hub, spec.id, false, NULL, &runtime, &h->err);
    else if (hfsb_str_ends(uri, t_s("/preupload/main")))
        *status = t_commit(h, &file, 1, "x", "", "");
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
        answer = hfsb_json_str(hfsb_json_get(doc.root, "response_body"),
                               t_s(""));
        body = hfsbi_terminated(&h.opts.alloc, answer);
        script[0].status =
            (int)hfsb_json_int(hfsb_json_get(doc.root, "status"), 0);
        script[0].body = body;
        script[1].status = 200;
        script[1].body = "{\"success\":true,\"commitOid\":\"855efb95\"}";
        t_hub_script(&h, script, 2);
        if (t_again(&h, hfsb_json_str(hfsb_json_get(doc.root, "method"),
                                      t_s("")),
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
    T_RUN(requests_are_those_of_the_python_client);
    T_RUN(requests_are_as_written_here);
    T_RUN(a_public_space_and_all_there_is_to_send);
    T_RUN(bad_arguments_send_nothing);
    T_RUN(runtime_takes_what_is_there);
    T_RUN(space_url_is_the_hubs_or_by_its_rule);
    T_RUN(answers_of_the_real_hub_are_understood);
    T_RUN(calls_fail_cleanly_without_memory);
    return T_END();
}
