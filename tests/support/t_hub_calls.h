/* t_hub_calls.h - every call as the Hub's own Python client was seen to make
   it (golden.json), do_...(), and a Hub that has an answer to each of them. */
#ifndef T_HUB_CALLS_H
#define T_HUB_CALLS_H
#include "t_hub.h"

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
    else if (hfsb_str_starts(line, t_s("GET /api/spaces?"))) t_list(h, r, out);
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

/* ---- Spaces ---- */

static hfsb_status do_duplicate_small(t_hub *h) {
    hfsb_space_spec spec = HFSB_INIT;
    spec.id = t_s(T_BOX);
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

static hfsb_status do_delete_fresh(t_hub *h) {
    return hfsb_hub_delete(h->hub, t_s("alice/fresh"), NULL, &h->err);
}

static hfsb_status do_secret(t_hub *h) {
    hfsb_hub_pair pair = t_pair("GH_TOKEN",
                                "s\xC3\xA9"
                                "cret \"q\"\n2",
                                "gh");
    return hfsb_hub_set(h->hub, t_s(T_BOX), HFSB_HUB_SECRETS, &pair, NULL,
                        &h->err);
}

static hfsb_status do_variable(t_hub *h) {
    hfsb_hub_pair pair = t_pair("MODEL", "a/b", "");
    return hfsb_hub_set(h->hub, t_s(T_BOX), HFSB_HUB_VARIABLES, &pair, NULL,
                        &h->err);
}

static hfsb_status do_restart(t_hub *h) {
    return hfsb_hub_restart(h->hub, t_s(T_BOX), false, NULL, NULL, &h->err);
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

/* ---- lists and logs ---- */

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

static hfsb_status do_logs_run(t_hub *h) {
    return hfsb_hub_space_logs(h->hub, t_s(T_BOX), "run", NULL, t_any_line,
                               NULL, &h->err);
}

static hfsb_status do_logs_build(t_hub *h) {
    return hfsb_hub_space_logs(h->hub, t_s(T_BOX), "build", NULL, t_any_line,
                               NULL, &h->err);
}

/* ---- commits ---- */

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
    return hfsb_hub_commit(h->hub, t_s(T_BOX), &commit, NULL, &done, &h->err);
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

static hfsb_status t_job_of(t_hub *h, const hfsb_job_spec *spec, bool script) {
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
    return t_job_of(h, &spec, false);
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
    return t_job_of(h, &spec, false);
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
    return t_job_of(h, &spec, true);
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
    return t_job_of(h, &spec, true);
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
    hfsb_job_filter filter = HFSB_INIT;
    size_t          got = 0;
    hfsb_status     status;
    filter.space = t_s("alice");
    status =
        hfsb_hub_jobs(h->hub, &filter, t_each, &got, NULL, &h->err);
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

static hfsb_status do_job_run_label(t_hub *h) {
    return t_job_named(h, "python-3-12-5c1fcc4a");
}

static hfsb_status do_job_url_label(t_hub *h) {
    return t_job_url(h, "sft-138386fb");
}
#endif
