/* test_sandbox_create.c - making a sandbox: what is sent, to the letter of the
   recordings of the real client; names, tokens, secrets, logs and messages;
   memory. */
#define T_SERVER
#include "t_create.h"

/* ---- the recordings ---- */

typedef struct golden {
    hfsb_buf      text;
    hfsb_json_doc doc;
} golden;

static bool golden_open(golden *g) {
    memset(g, 0, sizeof *g);
    if (!t_data_file("data/hub/golden.json", &g->text)) return false;
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&g->text), NULL, &g->doc, NULL) ==
            HFSB_OK);
    return true;
}

static void golden_close(golden *g) {
    hfsb_json_free(&g->doc);
    hfsb_buf_free(&g->text);
}

static hfsb_str member(const hfsb_json_value *object, const char *key) {
    return hfsb_json_str(hfsb_json_get(object, key), hfsb_str_make("", 0));
}

/* The text with "sandbox-1a2b3c4d" or "sandbox-deadbeef" as it is called here,
   from `name` on. */
static bool same_text(hfsb_str want, hfsb_str is, hfsb_str name) {
    static const char *const theirs[] = {"sandbox-1a2b3c4d",
                                         "sandbox-deadbeef"};
    size_t i;
    for (i = 0; i < 2; i++) {
        size_t at = hfsb_str_find(want, hfsb_cstr(theirs[i]));
        if (at == HFSB_NPOS) continue;
        return is.len == want.len &&
               hfsb_str_equal(hfsb_str_slice(want, 0, at),
                              hfsb_str_slice(is, 0, at)) &&
               hfsb_str_equal(hfsb_str_slice(is, at, at + name.len), name) &&
               hfsb_str_equal(hfsb_str_slice(want, at + name.len, want.len),
                              hfsb_str_slice(is, at + name.len, is.len));
    }
    return hfsb_str_equal(want, is);
}

/* Long base64 is recorded as its length alone. */
static bool same_base64(const hfsb_json_value *want,
                        const hfsb_json_value *is) {
    hfsb_buf  bytes = HFSB_INIT;
    long long n = hfsb_json_int(hfsb_json_get(want, "_b64_of_bytes"), -1);
    bool      same = hfsb_base64_decode(
                    hfsb_json_str(is, hfsb_str_make("?", 1)), &bytes, NULL) ==
                    HFSB_OK &&
                (long long)bytes.len == n;
    hfsb_buf_free(&bytes);
    return same;
}

static bool same_json(const hfsb_json_value *want, const hfsb_json_value *is,
                      hfsb_str name) {
    hfsb_json_type type = hfsb_json_type_of(want);
    hfsb_json_iter a, b;
    if (hfsb_json_get(want, "_b64_of_bytes")) return same_base64(want, is);
    if (type != hfsb_json_type_of(is) ||
        hfsb_json_count(want) != hfsb_json_count(is))
        return false;
    if (type == HFSB_JSON_STRING)
        return same_text(hfsb_json_str(want, name), hfsb_json_str(is, name),
                         name);
    if (type == HFSB_JSON_INT)
        return hfsb_json_int(want, 0) == hfsb_json_int(is, 1);
    a = hfsb_json_begin(want);
    b = hfsb_json_begin(is);
    while (hfsb_json_next(&a) && hfsb_json_next(&b)) {
        const hfsb_json_value *other = b.value;
        char                   key[64];
        if (type == HFSB_JSON_OBJECT) {
            snprintf(key, sizeof key, "%.*s", (int)a.key.len, a.key.ptr);
            other = hfsb_json_get(is, key);
        }
        if (!other || !same_json(a.value, other, name)) return false;
    }
    return true;
}

/* Each line of a body is the item of the array at that place. */
static bool same_lines(const hfsb_json_value *want, hfsb_str body,
                       hfsb_str name) {
    hfsb_json_iter it = hfsb_json_begin(want);
    hfsb_str       line;
    bool           same = hfsb_str_ends(body, HFSB_LIT("\n"));
    while (same && hfsb_json_next(&it)) {
        hfsb_json_doc doc = HFSB_INIT;
        same = hfsb_text_line(&body, &line, NULL) &&
               hfsb_json_parse(line, NULL, &doc, NULL) == HFSB_OK &&
               same_json(it.value, doc.root, name);
        hfsb_json_free(&doc);
    }
    return same && !body.len;
}

static bool same_body(const hfsb_json_value *want, const fh_record *r,
                      hfsb_str name) {
    const hfsb_json_value *json = hfsb_json_get(want, "json");
    const hfsb_json_value *lines = hfsb_json_get(want, "ndjson");
    hfsb_json_doc          doc = HFSB_INIT;
    bool                   same;
    if (lines) return same_lines(lines, hfsb_buf_str(&r->body), name);
    if (!json) return r->body.len == 0;
    same = hfsb_json_parse(hfsb_buf_str(&r->body), NULL, &doc, NULL) ==
               HFSB_OK &&
           same_json(json, doc.root, name);
    hfsb_json_free(&doc);
    return same;
}

/* The fields that matter: all but the agent's name and the trace's number. */
static bool same_fields(const hfsb_json_value *want, const fh_record *r) {
    static const char *const names[] = {
        "authorization", "content-type", "content-length", "accept",
        "x-sandbox-authorization"};
    const hfsb_json_value *fields = hfsb_json_get(want, "headers");
    bool                   same = true;
    size_t                 i;
    for (i = 0; i < TT_COUNT(names); i++) {
        hfsb_str is = fh_field(r, names[i]), must = member(fields, names[i]);
        if (r->edge && !strcmp(names[i], "accept")) continue;
        if (hfsb_str_equal(is, must)) continue;
        printf("  %s: \"%.*s\", recorded \"%.*s\"\n", names[i], (int)is.len,
               is.ptr, (int)must.len, must.ptr);
        same = false;
    }
    if (!r->edge && fh_field(r, "x-amzn-trace-id").len != 36) same = false;
    return same;
}

static bool same_request(const hfsb_json_value *want, const fh_record *r,
                         hfsb_str name) {
    bool same =
        hfsb_str_equal(member(want, "method"), hfsb_buf_str(&r->method)) &&
        same_text(member(want, "target"), hfsb_buf_str(&r->target), name) &&
        hfsb_json_int(hfsb_json_get(want, "fake_status"), 0) == r->status &&
        same_body(want, r, name);
    if (!same)
        printf("  %s %s gave %d: %.*s\n", r->method.ptr, r->target.ptr,
               r->status, (int)(r->body.len < 300 ? r->body.len : 300),
               r->body.len ? r->body.ptr : "");
    return same_fields(want, r) && same;
}

/* The requests from the first on are those that are recorded with this tag,
   in both versions of the client; gives how many. */
static size_t same_requests(tc_world *w, const golden *g, const char *tag,
                            size_t first, hfsb_str id) {
    hfsb_json_iter version = hfsb_json_begin(g->doc.root);
    hfsb_str       name;
    size_t         n = 0;
    name = hfsb_str_slice(id, hfsb_str_find_byte(id, '/') + 1, id.len);
    while (hfsb_json_next(&version)) {
        hfsb_json_iter it = hfsb_json_begin(version.value);
        n = first;
        while (hfsb_json_next(&it)) {
            const fh_record *r;
            if (!hfsb_str_equal(member(it.value, "tag"), hfsb_cstr(tag)))
                continue;
            r = fh_nth(w->fake, n++, NULL, NULL);
            T_CHECK(r && same_request(it.value, r, name));
        }
    }
    T_CHECK(n > first);
    return n;
}

static void create_sends_what_the_real_client_sends(void) {
    static char   server[14535], docker[662]; /* as large as theirs */
    golden        g;
    tc_world      w;
    hfsb_sandbox *s;
    size_t        n;
    if (!golden_open(&g)) return;
    tc_open(&w, NULL);
    memset(server, 'x', sizeof server);
    memset(docker, 'y', sizeof docker);
    w.files[0].path = "sandbox_server.py";
    w.files[0].content = hfsb_str_make(server, sizeof server);
    w.files[1].path = "Dockerfile";
    w.files[1].content = hfsb_str_make(docker, sizeof docker);
    w.spec.file_count = 2;
    s = tc_create(&w);
    n = same_requests(&w, &g, "whoami", 0, hfsb_sandbox_id(s));
    n = same_requests(&w, &g, "Sandbox.create[cpu-basic]", n,
                      hfsb_sandbox_id(s));
    T_CHECK(n == fh_count(w.fake, NULL, NULL));
    tc_delete(s);
    fh_forget(w.fake); /* the owner is known now, and not asked for again */
    w.spec.hardware = HFSB_LIT("t4-small");
    w.spec.sleep_time = 2700;
    s = tc_create(&w);
    n = same_requests(&w, &g, "Sandbox.create[t4-small]", 0,
                      hfsb_sandbox_id(s));
    T_CHECK(n == fh_count(w.fake, NULL, NULL));
    tc_delete(s);
    tc_close(&w);
    golden_close(&g);
}

static void the_space_is_asked_what_the_real_client_asks(void) {
    golden             g;
    tc_world           w;
    hfsb_sandbox      *s;
    hfsb_space_runtime runtime;
    hfsb_str           id;
    size_t             n = 0;
    if (!golden_open(&g)) return;
    tc_open_prompt(&w, FH_STUB);
    s = tc_create(&w);
    id = hfsb_sandbox_id(s);
    fh_forget(w.fake);
    T_CHECK(hfsb_sandbox_status(s, &runtime, NULL) == HFSB_OK);
    T_CHECK(!strcmp(runtime.stage, "RUNNING"));
    n = same_requests(&w, &g, "Sandbox.status", n, id);
    T_CHECK(hfsb_sandbox_pause(s, NULL) == HFSB_OK);
    n = same_requests(&w, &g, "pause_space", n, id);
    T_CHECK(hfsb_sandbox_restart(s, false, NULL) == HFSB_OK);
    n = same_requests(&w, &g, "restart_space", n, id) + 1; /* its health */
    T_CHECK(hfsb_sandbox_restart(s, true, NULL) == HFSB_OK);
    n = same_requests(&w, &g, "restart_space[factory]", n, id) + 1;
    T_CHECK(hfsb_sandbox_delete(s, NULL) == HFSB_OK);
    n = same_requests(&w, &g, "Sandbox.delete", n, id);
    T_CHECK(n == fh_count(w.fake, NULL, NULL));
    T_CHECK(hfsb_sandbox_close(s, true, NULL) == HFSB_OK);
    T_CHECK(n == fh_count(w.fake, NULL, NULL)); /* deleted only once */
    tc_close(&w);
    golden_close(&g);
}

/* ---- what it makes ---- */

static void the_space_has_what_was_asked_for(void) {
    tc_world      w;
    hfsb_sandbox *s;
    hfsb_buf      id = HFSB_INIT, text = HFSB_INIT;
    hfsb_str      is;
    tc_open_prompt(&w, FH_STUB);
    w.secrets[1].key = HFSB_LIT("MINE");
    w.secrets[1].value = HFSB_LIT(TC_SECRET);
    w.spec.secret_count = 2;
    s = tc_create(&w);
    is = hfsb_sandbox_id(s);
    T_CHECK(fh_space_id(w.fake, 0, &id) &&
            hfsb_str_equal(is, hfsb_buf_str(&id)));
    T_CHECK(is.len == strlen("alice/sandbox-01234567") &&
            hfsb_str_starts(is, HFSB_LIT("alice/sandbox-")));
    T_CHECK(hfsb_str_ends(hfsb_sandbox_page(s), is) &&
            hfsb_str_starts(hfsb_sandbox_page(s), hfsb_cstr(fh_url(w.fake))));
    T_CHECK(hfsb_str_ends(hfsb_sandbox_api(s), HFSB_LIT("/api/")));
    T_CHECK(hfsb_sandbox_owned(s));
    T_STR(hfsb_sandbox_token(s), TC_API_TOKEN);
    T_CHECK(fh_secret(w.fake, id.ptr, "HF_TOKEN", &text));
    T_CHECK(fh_secret(w.fake, id.ptr, "MINE", &text));
    T_CHECK(fh_secret(w.fake, id.ptr, "SANDBOX_API_TOKEN", &text));
    T_STR(text, FH_TOKEN TC_SECRET TC_API_TOKEN);
    T_CHECK(fh_commits(w.fake, id.ptr) == 1);
    hfsb_buf_truncate(&text, 0);
    T_CHECK(fh_file(w.fake, id.ptr, "Dockerfile", &text));
    T_STR(text, "FROM scratch\n");
    /* the template's own server is not what runs there any more */
    T_CHECK(!fh_file(w.fake, id.ptr, "sandbox_server.py", &text));
    tc_delete(s);
    hfsb_buf_free(&id);
    hfsb_buf_free(&text);
    tc_close(&w);
}

static void the_token_is_random_and_urlsafe(void) {
    tc_world      w;
    hfsb_sandbox *s[2];
    size_t        i, k;
    tc_open_prompt(&w, FH_STUB);
    w.opts.api_token = HFSB_LIT("");
    for (i = 0; i < 2; i++) {
        hfsb_buf secret = HFSB_INIT;
        hfsb_str token;
        s[i] = tc_create(&w);
        token = hfsb_sandbox_token(s[i]);
        T_CHECK(token.len == 43);
        for (k = 0; k < token.len; k++) {
            char c = token.ptr[k];
            T_CHECK((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                    (c >= '0' && c <= '9') || c == '-' || c == '_');
        }
        T_CHECK(fh_secret(w.fake, hfsb_sandbox_id(s[i]).ptr,
                          "SANDBOX_API_TOKEN", &secret));
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&secret), token));
        T_CHECK(!tc_logged(&w, secret.ptr));
        hfsb_buf_free(&secret);
    }
    T_CHECK(!hfsb_str_equal(hfsb_sandbox_token(s[0]),
                            hfsb_sandbox_token(s[1])));
    T_CHECK(!hfsb_str_equal(hfsb_sandbox_id(s[0]), hfsb_sandbox_id(s[1])));
    tc_delete(s[0]);
    tc_delete(s[1]);
    tc_close(&w);
}

static void every_step_is_logged(void) {
    tc_world      w;
    hfsb_sandbox *s;
    hfsb_buf      want = HFSB_INIT;
    const char   *id;
    tc_open(&w, NULL);
    w.hub_opts.log = NULL;
    tc_hub(&w);
    s = tc_create(&w);
    id = hfsb_sandbox_id(s).ptr;
    T_CHECK(hfsb_buf_printf(
                &want,
                "Creating sandbox: %s (from burtenshaw/sandbox)...\n"
                "Space created: %s/spaces/%s\n"
                "Uploading sandbox server to %s...\n"
                "Server files uploaded, rebuild triggered.\n"
                "Waiting for Space to start (timeout: 20s)...\n"
                "  BUILDING...\n  BUILDING...\n  APP_STARTING...\n"
                "Space is running (hardware: cpu-basic)\n"
                "API is responsive at %s/api/\n"
                "Deleting sandbox: %s...\nDeleted.\n",
                id, fh_url(w.fake), id, id, fh_edge(w.fake), id) == HFSB_OK);
    tc_delete(s);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&w.log), hfsb_buf_str(&want)));
    if (!hfsb_str_equal(hfsb_buf_str(&w.log), hfsb_buf_str(&want)))
        printf("is:\n%swant:\n%s", w.log.ptr, want.ptr);
    hfsb_buf_free(&want);
    tc_close(&w);
}

/* ---- names and conflicts ---- */

static void a_name_that_is_taken_gets_another_suffix(void) {
    const char      *path = "/api/spaces/burtenshaw/sandbox/duplicate";
    fh_fault_spec    taken = HFSB_INIT;
    const fh_record *a, *b;
    tc_world         w;
    tc_open_prompt(&w, FH_STUB);
    taken.path = path;
    taken.status = 409;
    fh_fault(w.fake, &taken);
    tc_delete(tc_create(&w));
    T_CHECK(fh_count(w.fake, "POST", path) == 2);
    a = fh_nth(w.fake, 0, "POST", path);
    b = fh_nth(w.fake, 1, "POST", path);
    T_CHECK(a && b && !hfsb_str_equal(hfsb_buf_str(&a->body),
                                      hfsb_buf_str(&b->body)));
    tc_again(&w);
    taken.message = "Cannot create repo: another conflicting operation is in "
                    "progress";
    taken.times = 5; /* more than the hub itself tries */
    fh_fault(w.fake, &taken);
    tc_delete(tc_create(&w));
    T_CHECK(fh_count(w.fake, "POST", path) == 6);
    a = fh_nth(w.fake, 0, "POST", path);
    b = fh_nth(w.fake, 5, "POST", path);
    T_CHECK(a && b && hfsb_str_equal(hfsb_buf_str(&a->body),
                                     hfsb_buf_str(&b->body)));
    tc_close(&w);
}

static void a_space_that_is_not_visible_yet_is_waited_for(void) {
    fh_opts  slow = HFSB_INIT;
    tc_world w;
    slow.prompt = true;
    slow.missing = 5; /* every call of it */
    tc_open(&w, &slow);
    tc_delete(tc_create(&w));
    T_CHECK(fh_count(w.fake, NULL, "/api/spaces/alice/*") > 5);
    T_CHECK(tc_logged(&w, "not visible yet"));
    tc_close(&w);
}

static void names_are_made_of_owner_and_base(void) {
    tc_world      w;
    hfsb_sandbox *s;
    tc_open_prompt(&w, FH_STUB);
    w.spec.owner = HFSB_LIT("acme");
    w.spec.name = HFSB_LIT("my_box");
    w.opts.space_url = HFSB_LIT("");
    s = tc_create(&w);
    T_CHECK(hfsb_str_starts(hfsb_sandbox_id(s), HFSB_LIT("acme/my_box-")));
    T_CHECK(fh_count(w.fake, "GET", "/api/whoami-v2") == 0);
    /* with "_" in it, the Hub says what it is called */
    T_CHECK(tc_has(hfsb_buf_str(&w.hosts), "acme-my-box-"));
    T_CHECK(hfsb_str_starts(hfsb_sandbox_api(s),
                            HFSB_LIT("https://acme-my-box-")));
    T_CHECK(hfsb_str_ends(hfsb_sandbox_api(s), HFSB_LIT(".hf.space/api/")));
    tc_delete(s);
    tc_close(&w);
}

/* ---- secrets are in what runs ---- */

static void without_a_new_commit_the_space_is_restarted(void) {
    const char   *restart = "/api/spaces/alice/*/restart";
    tc_world      w;
    hfsb_buf      old = HFSB_INIT;
    tc_open_prompt(&w, FH_STUB);
    w.spec.files = NULL;
    tc_delete(tc_create(&w));
    T_CHECK(fh_count(w.fake, "POST", restart) == 1);
    T_CHECK(fh_count(w.fake, NULL, "*/commit/main") == 0);
    tc_again(&w);
    T_CHECK(fh_file(w.fake, FH_TEMPLATE, "Dockerfile", &old));
    w.spec.files = w.files;
    w.files[0].content = hfsb_buf_str(&old);
    w.files[1].path = "sandbox_server.py"; /* and it is not to be removed */
    w.spec.file_count = 2;
    hfsb_buf_free(&old);
    T_CHECK(fh_file(w.fake, FH_TEMPLATE, "Dockerfile", &old));
    w.files[0].content = hfsb_buf_str(&old);
    {
        hfsb_buf server = HFSB_INIT;
        T_CHECK(fh_file(w.fake, FH_TEMPLATE, "sandbox_server.py", &server));
        w.files[1].content = hfsb_buf_str(&server);
        tc_delete(tc_create(&w));
        hfsb_buf_free(&server);
    }
    T_CHECK(fh_count(w.fake, NULL, "*/commit/main") == 0);
    T_CHECK(fh_count(w.fake, "POST", restart) == 1);
    T_CHECK(tc_logged(&w, "No file changed, restart triggered."));
    hfsb_buf_free(&old);
    tc_close(&w);
}

/* ---- what goes wrong ---- */

static void arguments_are_refused_before_anything_is_sent(void) {
    static const struct {
        const char *owner, *name, *from, *key;
        const char *api_token, *hub_token;
        hfsb_status gives;
        const char *text;
    } rows[] = {
        {"alice", "", "nonsense", "K", "", "", HFSB_ARG, "owner/name"},
        {"alice", "a b", "", "K", "", "", HFSB_ARG, ""},
        {"al ice", "", "", "K", "", "", HFSB_ARG, ""},
        {"alice", "", "", "9K", "", "", HFSB_ARG, "\"9K\""},
        {"alice", "", "", "A-B", "", "", HFSB_ARG, "\"A-B\""},
        {"alice", "", "", "SANDBOX_API_TOKEN", "", "", HFSB_ARG,
         "api_token"},
        {"alice", "", "", "K", "two words", "", HFSB_ARG, "api_token"},
        {"alice", "", "", "K", "", "x\ny", HFSB_ARG, "hub_token"},
    };
    tc_world w;
    size_t   i;
    tc_open(&w, NULL);
    for (i = 0; i < TT_COUNT(rows); i++) {
        hfsb_sandbox *s = NULL;
        hfsb_err      err = HFSB_INIT;
        w.spec.owner = hfsb_cstr(rows[i].owner);
        w.spec.name = hfsb_cstr(rows[i].name);
        w.spec.from = hfsb_cstr(rows[i].from);
        w.secrets[0].key = hfsb_cstr(rows[i].key);
        w.opts.api_token = hfsb_cstr(rows[i].api_token);
        w.opts.hub_token = hfsb_cstr(rows[i].hub_token);
        T_CHECK(hfsb_sandbox_create(&w.spec, &w.opts, &s, &err) ==
                rows[i].gives);
        T_CHECK(!s && tc_has(hfsb_cstr(err.msg), rows[i].text));
        T_CHECK(!tc_has(hfsb_cstr(err.msg), "two words"));
    }
    T_CHECK(fh_count(w.fake, NULL, NULL) == 0);
    w.hub_opts.token = HFSB_LIT("");
    tc_hub(&w);
    {
        hfsb_sandbox *s = NULL;
        hfsb_err      err = HFSB_INIT;
        T_CHECK(hfsb_sandbox_create(NULL, &w.opts, &s, &err) == HFSB_AUTH);
        T_CHECK(tc_has(hfsb_cstr(err.msg), "HF_TOKEN"));
        T_CHECK(hfsb_sandbox_create(NULL, NULL, &s, &err) == HFSB_ARG);
    }
    T_CHECK(fh_count(w.fake, NULL, NULL) == 0);
    tc_close(&w);
}

/* The fake Hub says it when a stage is asked for; what is in its logs we say
   when the Space is there. */
static bool say_secret_in_log(tc_world *w, const char *which) {
    hfsb_buf id = HFSB_INIT;
    bool     there = fh_space_id(w->fake, 0, &id);
    if (there) {
        char line[64];
        int  i;
        for (i = 0; i < 200; i++) {
            snprintf(line, sizeof line, "\033[1mstep %d\033[0m", i);
            fh_log(w->fake, id.ptr, which, line);
        }
        fh_log(w->fake, id.ptr, which, "token " TC_API_TOKEN " " TC_SECRET);
        fh_log(w->fake, id.ptr, which, "cc: not found");
    }
    hfsb_buf_free(&id);
    return there;
}

static void watch_log(void *user, hfsb_str line) {
    tc_world *w = (tc_world *)user;
    tc_log(user, line);
    if (tc_has(line, "Space created:"))
        T_CHECK(say_secret_in_log(w, "build") && say_secret_in_log(w, "run"));
}

static void a_failed_build_shows_the_end_of_its_log(void) {
    static const char *const stages[] = {"BUILD_ERROR", "RUNTIME_ERROR"};
    tc_world                 w;
    size_t                   i;
    tc_open_prompt(&w, FH_STUB);
    w.opts.log = watch_log;
    w.secrets[1].key = HFSB_LIT("MINE");
    w.secrets[1].value = HFSB_LIT(TC_SECRET);
    w.spec.secret_count = 2;
    for (i = 0; i < 2; i++) {
        hfsb_sandbox *s = NULL;
        hfsb_err      err = HFSB_INIT;
        hfsb_str      msg;
        tc_again(&w);
        fh_stages(w.fake, NULL, stages[i]);
        T_CHECK(hfsb_sandbox_create(&w.spec, &w.opts, &s, &err) ==
                HFSB_REMOTE);
        msg = hfsb_cstr(err.msg);
        if (!i) printf("%s\n", err.msg);
        T_CHECK(tc_has(msg, i ? "The end of its run log:\n"
                              : "The end of its build log:\n"));
        T_CHECK(tc_has(msg, "\nstep 199\ntoken *** ***\ncc: not found\n"));
        T_CHECK(tc_has(msg, "was deleted.") && !tc_has(msg, "\033"));
        tc_no_secret(&w, &err);
        T_CHECK(fh_spaces(w.fake) == 0);
    }
    tc_close(&w);
}

static void a_cancelled_creation_says_so(void) {
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    tc_world      w;
    tc_open_prompt(&w, FH_STUB);
    w.cancel_method = "POST";
    w.cancel_path = "/api/spaces/alice/*/commit/main";
    w.cancel_after = true;
    T_CHECK(hfsb_sandbox_create(&w.spec, &w.opts, &s, &err) ==
            HFSB_CANCELLED);
    T_CHECK(hfsb_str_starts(
        hfsb_cstr(err.msg),
        HFSB_LIT("Sandbox creation cancelled: alice/sandbox-")));
    T_CHECK(strlen(err.msg) ==
            strlen("Sandbox creation cancelled: alice/sandbox-01234567"));
    T_CHECK(tc_logged(&w, "Sandbox creation cancelled by user, cleaning "
                          "up...\nDeleted Space alice/sandbox-"));
    T_CHECK(fh_spaces(w.fake) == 0);
    tc_close(&w);
}

static void a_cleanup_can_be_given_up(void) {
    fh_fault_spec slow = HFSB_INIT;
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    long long     began;
    tc_world      w;
    tc_open_prompt(&w, FH_STUB);
    slow.path = "/api/repos/delete";
    slow.delay_ms = 5000;
    slow.status = 500;
    fh_fault(w.fake, &slow);
    w.opts.give_up = w.cancel;
    w.cancel_method = "POST";
    w.cancel_path = "/api/spaces/alice/*/commit/main";
    began = hfsb_clock_ms();
    T_CHECK(hfsb_sandbox_create(&w.spec, &w.opts, &s, &err) ==
            HFSB_CANCELLED);
    T_CHECK(hfsb_clock_ms() - began < 3000);
    T_CHECK(tc_has(hfsb_cstr(err.msg), " is left, and may cost money"));
    T_CHECK(fh_spaces(w.fake) == 1);
    tc_close(&w);
}

/* ---- memory ---- */

static tc_world memory_world;

static void create_with(hfsb_alloc alloc, const t_heap *heap) {
    tc_world     *w = &memory_world;
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    hfsb_status   st, closed;
    w->hub_opts.alloc = w->opts.alloc = alloc;
    if (t_quick() && heap->fail_at % 7 > 1) return;
    hfsb_hub_close(w->hub);
    w->hub = w->opts.hub = NULL;
    fh_forget(w->fake);
    hfsb_buf_truncate(&w->log, 0);
    st = hfsb_hub_open(&w->hub_opts, &w->hub, &err);
    if (st == HFSB_OK) {
        w->opts.hub = w->hub;
        st = hfsb_sandbox_create(&w->spec, &w->opts, &s, &err);
    }
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && err.code == HFSB_NOMEM));
    T_CHECK(st == HFSB_OK || heap->fail_at);
    if (st != HFSB_OK && st != HFSB_NOMEM) printf("  %s\n", err.msg);
    tc_no_secret(w, &err);
    closed = hfsb_sandbox_close(s, true, NULL);
    T_CHECK(closed == HFSB_OK || (closed == HFSB_NOMEM && st == HFSB_OK));
    hfsb_hub_close(w->hub);
    w->hub = NULL;
    if (fh_spaces(w->fake)) { /* no memory even to delete it */
        hfsb_buf   id = HFSB_INIT;
        hfsb_alloc none = HFSB_INIT;
        T_CHECK(fh_spaces(w->fake) == 1 &&
                (heap->forever || closed == HFSB_NOMEM));
        T_CHECK(fh_space_id(w->fake, 0, &id));
        T_CHECK(st == HFSB_OK ||
                (tc_has(hfsb_cstr(err.msg), id.ptr) &&
                 tc_has(hfsb_cstr(err.msg), " left, and may cost money")));
        w->hub_opts.alloc = none;
        T_CHECK(hfsb_hub_open(&w->hub_opts, &w->hub, NULL) == HFSB_OK);
        T_CHECK(hfsb_hub_delete(w->hub, hfsb_buf_str(&id), NULL, NULL) ==
                HFSB_OK);
        hfsb_hub_close(w->hub);
        w->hub = NULL;
        hfsb_buf_free(&id);
    }
}

static void each_allocation_of_create_fails(void) {
    tc_open_prompt(&memory_world, FH_STUB);
    t_each_allocation_fails(create_with);
    tc_close(&memory_world);
}

int main(void) {
    tt_begin();
    TT_RUN(create_sends_what_the_real_client_sends);
    TT_RUN(the_space_is_asked_what_the_real_client_asks);
    TT_RUN(the_space_has_what_was_asked_for);
    TT_RUN(the_token_is_random_and_urlsafe);
    TT_RUN(every_step_is_logged);
    TT_RUN(a_name_that_is_taken_gets_another_suffix);
    TT_RUN(a_space_that_is_not_visible_yet_is_waited_for);
    TT_RUN(names_are_made_of_owner_and_base);
    TT_RUN(without_a_new_commit_the_space_is_restarted);
    TT_RUN(arguments_are_refused_before_anything_is_sent);
    TT_RUN(a_failed_build_shows_the_end_of_its_log);
    TT_RUN(a_cancelled_creation_says_so);
    TT_RUN(a_cleanup_can_be_given_up);
    TT_RUN(each_allocation_of_create_fails);
    return TT_END();
}
