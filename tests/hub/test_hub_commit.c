/* test_hub_commit.c - commits, with all that can be odd about their files and
   answers. */
#include "../support/t_hub.h"

#define BOX "alice/box"

static hfsb_status t_commit(t_hub *h, const hfsb_commit_file *files,
                            size_t count, hfsb_commit_done *done) {
    hfsb_commit commit = HFSB_INIT;
    commit.files = files;
    commit.file_count = count;
    commit.summary = t_s("x");
    return hfsb_hub_commit(h->hub, t_s(BOX), &commit, NULL, done, &h->err);
}

static void commit_refuses_invalid_paths(void) {
    static const char *const paths[] = {
        "",      "/",       "..",         "a/../b", "../a",     ".git/config",
        "a/.git", ".GIT/x", ".cache/x",   "a//b",   "a/./b",    "a\nb",
        "a\x7F", "a/",      "a/b/.cache", "./",     "./../etc"};
    hfsb_commit_file file;
    hfsb_commit_done done;
    hfsb_commit      none = HFSB_INIT;
    size_t           i;
    t_hub            h;
    t_hub_init(&h);
    t_hub_open(&h);
    file.content = t_s("x");
    for (i = 0; i < sizeof paths / sizeof *paths; i++) {
        file.path = paths[i];
        if (t_commit(&h, &file, 1, &done) != HFSB_ARG)
            printf("  taken: %s\n", paths[i]);
        T_CHECK(h.err.code == HFSB_ARG && t_says(&h, "Cannot commit \""));
    }
    T_CHECK(hfsb_hub_commit(h.hub, t_s(BOX), &none, NULL, &done, &h.err) ==
            HFSB_ARG);
    T_CHECK(t_says(&h, "files and a summary") && h.sent_count == 0);
    t_hub_close(&h);
}

static void answers_to_preupload_are_checked(void) {
    static const struct {
        const char *files;
        hfsb_status code;
        const char *says;
    } cases[] = {
        {"{\"files\":[]}", HFSB_REMOTE, "does not mention \"a.txt\""},
        {"{\"files\":null}", HFSB_REMOTE, "does not mention \"a.txt\""},
        {"[]", HFSB_REMOTE, "does not mention \"a.txt\""},
        {"{\"files\":[{\"path\":\"b.txt\",\"uploadMode\":\"regular\"}]}",
         HFSB_REMOTE, "does not mention \"a.txt\""},
        {"{\"files\":[{\"path\":\"a.txt\",\"uploadMode\":\"odd\"}]}",
         HFSB_REMOTE, "no known uploadMode"},
        {"{\"files\":[{\"path\":\"a.txt\"}]}", HFSB_REMOTE, "uploadMode"},
        {"{\"files\":[{\"path\":\"a.txt\",\"uploadMode\":\"lfs\"}]}",
         HFSB_REFUSED, "The Hub wants \"a.txt\" in LFS"},
        {"nothing", HFSB_REMOTE, "is not JSON"}};
    hfsb_commit_file file;
    hfsb_commit_done done;
    size_t           i;
    t_hub            h;
    file.path = "a.txt";
    file.content = t_s("x");
    t_hub_init(&h);
    h.opts.tries = 1;
    t_hub_open(&h);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_reply reply = HFSB_INIT;
        reply.status = 200;
        reply.body = cases[i].files;
        t_hub_script(&h, &reply, 1);
        T_CHECK(t_commit(&h, &file, 1, &done) == cases[i].code);
        T_CHECK(t_says(&h, cases[i].says) && h.sent_count == 1);
    }
    t_hub_close(&h);
}

static void commit_leaves_out_ignored_files(void) {
    static const t_reply script[] = {
        {NULL, 200, NULL,
         "{\"files\":[{\"path\":\"empty\",\"uploadMode\":\"lfs\"},"
         "{\"path\":\"a.log\",\"uploadMode\":\"lfs\",\"shouldIgnore\":true}],"
         "\"commitOid\":\"c0\"}",
         HFSB_OK, false, 0},
        {NULL, 200, NULL, "{}", HFSB_OK, false, 0},
        {"GET /api/spaces/" BOX "/revision/main", 200, NULL,
         "{\"sha\":\"c1\"}", HFSB_OK, false, 0}};
    static const t_reply failed[] = {
        {NULL, 200, NULL,
         "{\"files\":[{\"path\":\"empty\",\"uploadMode\":\"regular\"},"
         "{\"path\":\"a.log\",\"uploadMode\":\"regular\"}]}",
         HFSB_OK, false, 0},
        {"GET /api/spaces/" BOX "/revision/main", 200, NULL,
         "{\"sha\":\"c0\"}", HFSB_OK, false, 0},
        {NULL, 200, NULL, "{\"success\":false}", HFSB_OK, false, 0}};
    hfsb_commit_file files[2];
    hfsb_commit_done done;
    t_hub            h;
    files[0].path = "empty";
    files[0].content = t_s("");
    files[1].path = "a.log";
    files[1].content = t_s("x");
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(t_commit(&h, files, 2, &done) == HFSB_OK);
    T_STR(h.sent[1].body,
          "{\"key\": \"header\", \"value\": {\"summary\": \"x\", "
          "\"description\": \"\"}}\n{\"key\": \"file\", \"value\": "
          "{\"content\": \"\", \"path\": \"empty\", \"encoding\": "
          "\"base64\"}}\n");
    T_CHECK(!strcmp(done.oid, "c1")); /* no commitOid came: asked for */
    T_SCRIPT(&h, failed);
    T_CHECK(t_commit(&h, files, 2, &done) == HFSB_REMOTE);
    T_CHECK(t_says(&h, "it says that it failed"));
    t_hub_close(&h);
}

static void a_bad_readme_is_reported_before_the_commit(void) {
    static const t_reply bad[] = {
        {"POST /api/validate-yaml", 400, NULL,
         "{\"errors\":[{\"message\":\"\\\"sdk\\\" must be one of ...\"}]}",
         HFSB_OK, false, 0}};
    static const t_reply fair[] = {
        {"POST /api/validate-yaml", 200, NULL,
         "{\"errors\":[],\"warnings\":[{\"message\":\"empty title\"}]}",
         HFSB_OK, false, 0},
        {NULL, 403, NULL, NULL, HFSB_OK, false, 0}};
    hfsb_commit_file file;
    hfsb_commit_done done;
    t_hub            h;
    file.path = "README.md";
    file.content = t_s("---\nsdk: doker\n---\n");
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, bad);
    T_CHECK(t_commit(&h, &file, 1, &done) == HFSB_ARG && h.sent_count == 1);
    T_CHECK(t_says(&h, "the metadata of README.md checked: HTTP 400: \"sdk\" "
                       "must be one of"));
    T_SCRIPT(&h, fair);
    T_CHECK(t_commit(&h, &file, 1, &done) == HFSB_DENIED);
    T_STR(h.log, "README.md: empty title\n");
    t_hub_close(&h);
}

/* All files of the request are new; a commit is taken. */
static void t_take(t_hub *h, const t_request *r, t_reply *out) {
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    bool           first = true;
    out->status = 200;
    out->body = "{\"success\":true,\"commitOid\":\"c1\"}";
    if (hfsb_str_find(hfsb_buf_str(&r->line), t_s("/preupload/")) == HFSB_NPOS)
        return;
    hfsb_buf_truncate(&h->text, 0);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&r->body), NULL, &doc, NULL) ==
            HFSB_OK);
    it = hfsb_json_begin(hfsb_json_get(doc.root, "files"));
    T_CHECK(hfsb_buf_printf(&h->text, "{\"commitOid\":\"c0\",\"files\":[") ==
            HFSB_OK);
    while (hfsb_json_next(&it)) {
        hfsb_str path =
            hfsb_json_str(hfsb_json_get(it.value, "path"), t_s(""));
        T_CHECK(hfsb_buf_printf(
                    &h->text, "%s{\"path\":\"%s\",\"uploadMode\":\"regular\"}",
                    first ? "" : ",", path.ptr) == HFSB_OK);
        first = false;
    }
    T_CHECK(hfsb_buf_append(&h->text, t_s("]}")) == HFSB_OK);
    hfsb_json_free(&doc);
    out->body = h->text.ptr;
}

static size_t t_lines(const t_request *r) {
    return hfsb_str_count_byte(hfsb_buf_str(&r->body), '\n');
}

static void preupload_is_sent_in_batches(void) {
    static char      names[600][16];
    hfsb_commit_file files[600];
    hfsb_commit_done done;
    size_t           i;
    t_hub            h;
    for (i = 0; i < 600; i++) {
        (void)snprintf(names[i], sizeof names[i], "f%zu", i);
        files[i].path = names[i];
        files[i].content = hfsb_str_make(i % 7 == 3 ? NULL : "x",
                                         i % 7 == 3 ? 0 : 1); /* 86 deleted */
    }
    t_hub_init(&h);
    t_hub_open(&h);
    h.answer = t_take;
    T_CHECK(t_commit(&h, files, 600, &done) == HFSB_OK);
    T_CHECK(h.sent_count == 4); /* 256, 256 and 2 files, then the commit */
    T_CHECK(t_lines(&h.sent[3]) == 601 && !strcmp(done.oid, "c1"));
    t_hub_forget(&h); /* only deletions: nothing to ask about */
    files[0].content = hfsb_str_make(NULL, 0);
    T_CHECK(t_commit(&h, files, 1, &done) == HFSB_OK);
    T_CHECK(h.sent_count == 2 && t_lines(&h.sent[1]) == 2);
    T_STR(h.sent[0].line, "GET /api/spaces/" BOX "/revision/main");
    t_hub_close(&h);
}

/* ---- a lost answer ---- */

static hfsb_status t_commit_one(t_hub *h, hfsb_commit_done *done) {
    hfsb_commit_file file;
    file.path = "a.txt";
    file.content = t_s("hello\n");
    return t_commit(h, &file, 1, done);
}

#define PRE "POST /api/spaces/" BOX "/preupload/main"
#define COM "POST /api/spaces/" BOX "/commit/main"
/* before: head c0, no such file; after: head c1, the file is ours */
#define BEFORE                                                              \
    {                                                                       \
        PRE, 200, NULL,                                                     \
            "{\"files\":[{\"path\":\"a.txt\",\"uploadMode\":\"regular\"}]," \
            "\"commitOid\":\"c0\"}",                                        \
            HFSB_OK, false, 0                                               \
    }
#define AFTER                                                             \
    {                                                                     \
        PRE, 200, NULL,                                                   \
            "{\"files\":[{\"path\":\"a.txt\",\"uploadMode\":\"regular\"," \
            "\"oid\":\"ce013625030ba8dba906f756967f9e9ca394464a\"}],"     \
            "\"commitOid\":\"c1\"}",                                      \
            HFSB_OK, false, 0                                             \
    }
#define OTHERS                                                              \
    {                                                                       \
        PRE, 200, NULL,                                                     \
            "{\"files\":[{\"path\":\"a.txt\",\"uploadMode\":\"regular\"}]," \
            "\"commitOid\":\"c9\"}",                                        \
            HFSB_OK, false, 0                                               \
    }
#define FAULT(status, fate) \
    { COM, status, NULL, NULL, fate, false, 0 }
#define DONE                                                                \
    {                                                                       \
        COM, 200, NULL, "{\"success\":true,\"commitOid\":\"c1\"}", HFSB_OK, \
            false, 0                                                        \
    }

static void a_lost_commit_is_verified(void) {
    static const t_reply made[] = {BEFORE, FAULT(0, HFSB_LOST), AFTER};
    static const t_reply again[] = {BEFORE, FAULT(502, HFSB_OK), BEFORE, DONE};
    static const t_reply late[] = {BEFORE, FAULT(0, HFSB_TIMEOUT), BEFORE,
                                   FAULT(412, HFSB_OK), AFTER};
    static const t_reply others[] = {BEFORE, FAULT(0, HFSB_LOST), OTHERS};
    static const t_reply blind[] = {
        BEFORE, FAULT(0, HFSB_LOST), {PRE, 403, NULL, NULL, HFSB_OK, 0, 0}};
    static const t_reply never[] = {BEFORE, FAULT(500, HFSB_OK), BEFORE,
                                    FAULT(500, HFSB_OK), BEFORE};
    static const t_reply stale[] = {BEFORE, FAULT(412, HFSB_OK)};
    hfsb_commit_done     done;
    t_hub                h;
    t_hub_init(&h);
    h.opts.tries = 2;
    t_hub_open(&h);
    T_SCRIPT(&h, made);
    T_CHECK(t_commit_one(&h, &done) == HFSB_OK && h.err.code == HFSB_OK);
    T_CHECK(!strcmp(done.oid, "c1") && !done.unchanged && h.sent_count == 3);
    T_SCRIPT(&h,
             again); /* on the old head only, so that it is not made twice */
    T_CHECK(t_commit_one(&h, &done) == HFSB_OK && h.sent_count == 4);
    T_CHECK(!strcmp(done.oid, "c1"));
    T_CHECK(!strstr(h.sent[1].body.ptr, "parentCommit"));
    T_CHECK(strstr(h.sent[3].body.ptr, "\"parentCommit\": \"c0\"") != NULL);
    T_SCRIPT(&h, late); /* the first one came through after all */
    T_CHECK(t_commit_one(&h, &done) == HFSB_OK && h.sent_count == 5);
    T_CHECK(!strcmp(done.oid, "c1"));
    T_SCRIPT(&h, others);
    T_CHECK(t_commit_one(&h, &done) == HFSB_LOST && h.sent_count == 3);
    T_CHECK(t_says(&h, "The commit was not made.") && !done.oid[0]);
    T_SCRIPT(&h, blind);
    T_CHECK(t_commit_one(&h, &done) == HFSB_LOST && h.sent_count == 3);
    T_CHECK(t_says(&h, "Whether the commit was made is not known."));
    T_SCRIPT(&h, never);
    T_CHECK(t_commit_one(&h, &done) == HFSB_REMOTE && h.sent_count == 5);
    T_CHECK(t_says(&h, "HTTP 500") && t_says(&h, "was not made."));
    T_SCRIPT(&h, stale);
    T_CHECK(t_commit_one(&h, &done) == HFSB_STALE && h.sent_count == 2);
    t_hub_close(&h);
}

int main(void) {
    T_RUN(commit_refuses_invalid_paths);
    T_RUN(answers_to_preupload_are_checked);
    T_RUN(commit_leaves_out_ignored_files);
    T_RUN(a_bad_readme_is_reported_before_the_commit);
    T_RUN(preupload_is_sent_in_batches);
    T_RUN(a_lost_commit_is_verified);
    return T_END();
}
