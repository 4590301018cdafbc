/* test_hub.c - the handle of the Hub, what is sent with every request, and
   what the environment says. */
#include "../support/t_hub.h"

/* ---- opening ---- */

static void open_refuses_invalid_options(void) {
    static const struct {
        const char *endpoint, *token, *agent, *part;
    } cases[] = {
        {"ftp://x", "", "", "HF_ENDPOINT"},
        {"huggingface.co", "", "", "HF_ENDPOINT"},
        {"http://", "", "", "HF_ENDPOINT"},
        {"http://a b", "", "", "HF_ENDPOINT"},
        {"http://u:p@host", "", "", "without user"},
        {"http://host/?a=b", "", "", "without user"},
        {"http://host", "hf_a b", "", "token"},
        {"http://host", "hf_a\nX: y", "", "token"},
        {"http://host", "hf_\xC3\xA9", "", "token"},
        {"http://host", "hf_a\x7F", "", "token"},
        {"http://host", "hf_a", "me\r\nX: y", "user_agent"},
    };
    size_t i;
    t_hub  h;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        t_hub_init(&h);
        h.opts.endpoint = t_s(cases[i].endpoint);
        h.opts.token = t_s(cases[i].token);
        h.opts.user_agent = t_s(cases[i].agent);
        T_CHECK(hfsb_hub_open(&h.opts, &h.hub, &h.err) == HFSB_ARG);
        T_CHECK(!h.hub && t_says(&h, cases[i].part));
        T_CHECK(!cases[i].token[0] || !strstr(h.err.msg, cases[i].token));
    }
    t_hub_init(&h);
    h.opts.transport = NULL;
    T_CHECK(hfsb_hub_open(&h.opts, &h.hub, &h.err) == HFSB_ARG);
    T_CHECK(t_says(&h, "hfsb_http_curl.h"));
    T_CHECK(hfsb_hub_open(NULL, &h.hub, NULL) == HFSB_ARG);
    hfsb_hub_close(NULL);
}

static void endpoint_has_a_default_and_no_slash_at_its_end(void) {
    t_hub h;
    t_hub_init(&h);
    h.opts.endpoint = t_s("");
    h.opts.token = t_s("");
    t_hub_open(&h);
    T_STR(hfsb_hub_endpoint(h.hub), "https://huggingface.co");
    T_CHECK(!hfsb_hub_has_token(h.hub));
    T_CHECK(hfsbi_hub_transport(h.hub) == &h.transport);
    t_hub_close(&h);
    t_hub_init(&h);
    h.opts.endpoint = t_s("http://127.0.0.1:8080/hub//");
    t_hub_open(&h);
    T_STR(hfsb_hub_endpoint(h.hub), "http://127.0.0.1:8080/hub");
    T_CHECK(hfsb_hub_has_token(h.hub));
    t_hub_close(&h);
}

/* ---- what every request has ---- */

static const t_reply WHOAMI[] = {
    {"GET /api/whoami-v2", 200, NULL,
     "{\"type\":\"user\",\"name\":\"alice\"}", HFSB_OK, false, 0},
    {"GET /api/whoami-v2", 200, NULL, "{\"name\":\"alice\"}", HFSB_OK, false,
     0}};

static void every_request_has_its_fields(void) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_str      first, id;
    t_hub         h;
    size_t        i;
    t_hub_init(&h);
    h.opts.user_agent = t_s("tester/2");
    h.opts.timeout_ms = 1234;
    t_hub_open(&h);
    T_SCRIPT(&h, WHOAMI);
    T_CHECK(hfsb_hub_whoami(h.hub, NULL, &doc, &h.err) == HFSB_OK);
    T_CHECK(h.err.code == HFSB_OK && !h.err.msg[0]);
    T_STR(hfsb_json_str(hfsb_json_get(doc.root, "type"), t_s("")), "user");
    hfsb_json_free(&doc);
    T_CHECK(hfsb_hub_whoami(h.hub, NULL, &doc, &h.err) == HFSB_OK);
    hfsb_json_free(&doc);
    T_CHECK(h.sent_count == 2 && !h.sent[0].has_body);
    T_STR(t_field(&h.sent[0], "accept"), "*/*");
    T_STR(t_field(&h.sent[0], "authorization"), "Bearer " T_TOKEN);
    T_STR(t_field(&h.sent[0], "user-agent"), "tester/2; hfsb/" HFSB_VERSION);
    T_CHECK(!t_field(&h.sent[0], "content-type").ptr);
    T_CHECK(h.total_ms == 1234 && h.idle_ms == 0);
    first = t_field(&h.sent[0], "x-amzn-trace-id");
    id = t_field(&h.sent[1], "x-amzn-trace-id");
    T_CHECK(id.len == 36 && !hfsb_str_equal(id, first));
    for (i = 0; i < id.len; i++)
        T_CHECK(i == 8 || i == 13 || i == 18 || i == 23
                    ? id.ptr[i] == '-'
                    : strchr("0123456789abcdef", id.ptr[i]) != NULL);
    T_CHECK(id.ptr[14] == '4' && strchr("89ab", id.ptr[19]));
    t_hub_close(&h);
}

static void no_token_is_sent_without_one(void) {
    static const t_reply script[] = {{NULL, 200, NULL, "[]", HFSB_OK, 0, 0}};
    hfsb_buf             name = HFSB_INIT;
    t_hub                h;
    t_hub_init(&h);
    h.opts.token = t_s("");
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(hfsb_hub_spaces(h.hub, NULL, NULL, NULL, NULL, &h.err) ==
            HFSB_OK);
    T_CHECK(!t_field(&h.sent[0], "authorization").ptr);
    T_STR(h.sent[0].line, "GET /api/spaces");
    /* there is no owner to ask for: no request */
    T_CHECK(hfsb_hub_user(h.hub, NULL, &name, &h.err) == HFSB_AUTH);
    T_CHECK(t_says(&h, "HF_TOKEN") && h.sent_count == 1 && !name.len);
    t_hub_close(&h);
}

static void owner_is_asked_for_once(void) {
    static const t_reply nameless[] = {
        {NULL, 200, NULL, "{\"type\":\"app\"}", HFSB_OK, false, 0}};
    hfsb_buf name = HFSB_INIT;
    t_hub    h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, nameless);
    T_CHECK(hfsb_hub_user(h.hub, NULL, &name, &h.err) == HFSB_REMOTE);
    T_CHECK(t_says(&h, "no name") && !name.len);
    T_SCRIPT(&h, WHOAMI);
    T_CHECK(hfsb_hub_user(h.hub, NULL, &name, &h.err) == HFSB_OK);
    T_CHECK(hfsb_hub_user(h.hub, NULL, &name, &h.err) == HFSB_OK);
    T_STR(name, "alicealice");
    T_CHECK(h.sent_count == 1);
    hfsb_buf_free(&name);
    t_hub_close(&h);
}

static void offline_refuses_every_call(void) {
    hfsb_space_runtime runtime;
    t_hub              h;
    t_hub_init(&h);
    h.opts.offline = true;
    t_hub_open(&h);
    T_CHECK(hfsb_hub_runtime(h.hub, t_s("alice/box"), NULL, &runtime,
                             &h.err) == HFSB_REFUSED);
    T_CHECK(t_says(&h, "HF_HUB_OFFLINE") && h.sent_count == 0);
    t_hub_close(&h);
}

static void a_cancelled_call_sends_nothing_more(void) {
    static const t_reply script[] = {
        {NULL, 503, NULL, NULL, HFSB_OK, false, 0}};
    hfsb_space_runtime runtime;
    t_hub              h;
    t_hub_init(&h);
    h.opts.delay_ms = 60000;
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    h.stop = true; /* in the wait for the second try */
    T_CHECK(hfsb_hub_runtime(h.hub, t_s("alice/box"), h.cancel, &runtime,
                             &h.err) == HFSB_CANCELLED);
    T_CHECK(h.sent_count == 1 && t_says(&h, "see the state of alice/box"));
    T_SCRIPT(&h, script);
    hfsb_cancel_set(h.cancel);
    T_CHECK(hfsb_hub_runtime(h.hub, t_s("alice/box"), h.cancel, &runtime,
                             &h.err) == HFSB_CANCELLED);
    T_CHECK(h.sent_count == 1);
    t_hub_close(&h);
}

static void a_token_in_an_id_is_not_shown(void) {
    static const t_reply script[] = {
        {NULL, 403, "X-Request-Id: is-" T_TOKEN "-it", NULL, HFSB_OK, false,
         0},
        {NULL, 200, "X-Request-Id: is-" T_TOKEN "-it", "[]", HFSB_OK, false,
         0}};
    hfsb_space_runtime runtime;
    size_t             i;
    t_hub              h;
    t_hub_init(&h);
    h.opts.tries = 1;
    t_hub_open(&h);
    for (i = 0; i < 2; i++) {
        t_hub_script(&h, &script[i], 1);
        T_CHECK(hfsb_hub_runtime(h.hub, t_s("alice/b"), NULL, &runtime,
                                 &h.err) != HFSB_OK);
        T_CHECK(!strstr(h.err.msg, T_TOKEN) && t_says(&h, "(request is-"));
    }
    t_hub_close(&h);
}

#define BOX "alice/box"

/* ---- limits of a caller who counts for himself ---- */

/* The caller counts the tries; *tried carries the doubt from one to the
   next. */
static void delete_once_sends_one_request(void) {
    static const t_reply down[] = {
        {"DELETE /api/repos/delete", 500, NULL, NULL, HFSB_OK, false, 0},
        {"DELETE /api/repos/delete", 404, NULL, NULL, HFSB_OK, false, 0}};
    static const t_reply busy[] = {
        {NULL, 429, "Retry-After: 7", NULL, HFSB_OK, false, 0}};
    hfsbi_hub_tried tried = HFSB_INIT;
    long long       until = hfsb_clock_ms() + 5000;
    t_hub           h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, down);
    T_CHECK(hfsbi_hub_delete_once(h.hub, t_s(BOX), until, NULL, &tried,
                                  &h.err) == HFSB_REMOTE);
    T_CHECK(h.sent_count == 1 && tried.unclear);
    T_CHECK(h.total_ms > 0 && h.total_ms <= 5000);
    T_CHECK(hfsbi_hub_delete_once(h.hub, t_s(BOX), 0, NULL, &tried, &h.err) ==
            HFSB_OK);
    T_CHECK(h.sent_count == 2 && h.total_ms == 60000);
    memset(&tried, 0, sizeof tried);
    T_SCRIPT(&h, busy);
    T_CHECK(hfsbi_hub_delete_once(h.hub, t_s(BOX), 0, NULL, &tried, &h.err) ==
            HFSB_RATE);
    T_CHECK(h.sent_count == 1 && !tried.unclear && tried.asked_ms >= 7000);
    t_hub_close(&h);
}

/* Neither a try nor a wait goes past the deadline. */
static void runtime_until_keeps_its_deadline(void) {
    static const t_reply busy[] = {
        {NULL, 429, "Retry-After: 30", NULL, HFSB_OK, false, 0}};
    static const t_reply down[] = {
        {NULL, 0, NULL, NULL, HFSB_TIMEOUT, false, 0},
        {NULL, 200, NULL, "{\"stage\":\"RUNNING\"}", HFSB_OK, false, 0}};
    hfsb_space_runtime runtime;
    long long          begin = hfsb_clock_ms();
    t_hub              h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, busy);
    T_CHECK(hfsbi_hub_runtime_until(h.hub, t_s(BOX), begin + 20000, NULL,
                                    &runtime, &h.err) == HFSB_RATE);
    T_CHECK(h.total_ms > 0 && h.total_ms <= 20000);
    T_SCRIPT(&h, down);
    T_CHECK(hfsbi_hub_runtime_until(h.hub, t_s(BOX), begin + 20000, NULL,
                                    &runtime, &h.err) == HFSB_OK);
    T_CHECK(hfsb_clock_ms() - begin < 15000);
    t_hub_close(&h);
}

static void warnings_are_logged_once_per_topic(void) {
    static const t_reply script[] = {
        {NULL, 200, "X-HF-Warning: old; use the new one\n"
                    "X-HF-Warning: other; token " T_TOKEN " seen\n",
         "[]", HFSB_OK, false, 0},
        {NULL, 200, "X-HF-Warning: old; again\nX-HF-Warning: bare\n", "[]",
         HFSB_OK, false, 0}};
    t_hub h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(hfsb_hub_spaces(h.hub, NULL, NULL, NULL, NULL, NULL) == HFSB_OK);
    T_CHECK(hfsb_hub_spaces(h.hub, NULL, NULL, NULL, NULL, NULL) == HFSB_OK);
    T_STR(h.log, "The Hub warns: use the new one\n"
                 "The Hub warns: token *** seen\n"
                 "The Hub warns: bare\n");
    t_hub_close(&h);
}

/* ---- the environment ---- */

typedef struct t_env {
    const char *name, *value;
} t_env;

static void t_set(const t_env *env, size_t count) {
    static const char *const all[] = {"HF_ENDPOINT",
                                      "HUGGINGFACE_CO_STAGING",
                                      "HF_TOKEN",
                                      "HUGGING_FACE_HUB_TOKEN",
                                      "HF_TOKEN_PATH",
                                      "HF_HOME",
                                      "XDG_CACHE_HOME",
                                      "HF_HUB_DISABLE_IMPLICIT_TOKEN",
                                      "HF_HUB_OFFLINE",
                                      "TRANSFORMERS_OFFLINE",
                                      "HF_HUB_USER_AGENT_ORIGIN",
                                      "T_VAR"};
    size_t                   i;
    for (i = 0; i < sizeof all / sizeof *all; i++) unsetenv(all[i]);
    for (i = 0; i < count; i++) setenv(env[i].name, env[i].value, 1);
}
#define T_SET(env) t_set(env, sizeof(env) / sizeof *(env))

static void t_token_is(const char *want) {
    hfsb_hub_env env = HFSB_INIT;
    hfsb_err     err;
    T_CHECK(hfsb_hub_env_read(&env, &err) == HFSB_OK);
    t_str(__FILE__, __LINE__, env.token.ptr, env.token.len, want,
          strlen(want));
    hfsb_hub_env_free(&env);
    T_CHECK(!env.token.ptr && !env.endpoint.ptr && !env.origin.ptr);
}

static void t_write(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    T_CHECK(f != NULL);
    if (!f) return;
    T_CHECK(fwrite(text, 1, strlen(text), f) == strlen(text));
    fclose(f);
}

static void environment_sets_endpoint_and_switches(void) {
    static const struct {
        t_env       env[2];
        const char *endpoint;
        bool        offline;
    } cases[] = {
        {{{"HF_ENDPOINT", ""}, {"T_VAR", ""}}, "", false},
        {{{"HF_ENDPOINT", "http://hub:1//"}, {"T_VAR", ""}}, "http://hub:1",
         false},
        {{{"HUGGINGFACE_CO_STAGING", "1"}, {"HF_HUB_OFFLINE", "yes"}},
         "https://hub-ci.huggingface.co", true},
        {{{"HUGGINGFACE_CO_STAGING", "TRUE"}, {"HF_ENDPOINT", "http://x"}},
         "http://x", false},
        {{{"HUGGINGFACE_CO_STAGING", "0"}, {"TRANSFORMERS_OFFLINE", "On"}},
         "", true},
        {{{"HF_HUB_OFFLINE", "0"}, {"TRANSFORMERS_OFFLINE", "no"}}, "",
         false}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_hub_env env = HFSB_INIT;
        t_set(cases[i].env, 2);
        setenv("HF_HUB_USER_AGENT_ORIGIN", "me", 1);
        setenv("HF_TOKEN", "hf_t", 1);
        T_CHECK(hfsb_hub_env_read(&env, NULL) == HFSB_OK);
        t_str(__FILE__, __LINE__, env.endpoint.ptr, env.endpoint.len,
              cases[i].endpoint, strlen(cases[i].endpoint));
        T_CHECK(env.offline == cases[i].offline);
        T_STR(env.origin, "me");
        hfsb_hub_env_free(&env);
    }
}

static void token_is_found_in_its_order(const char *dir) {
    char  file[256], home[256], cache[256];
    t_env env[5];
    (void)snprintf(file, sizeof file, "%s/file", dir);
    (void)snprintf(home, sizeof home, "%s", dir);
    (void)snprintf(cache, sizeof cache, "%s/huggingface", dir);
    t_write(file, " hf_file\r\n\n");
    env[0].name = "HF_TOKEN", env[0].value = "\thf_first \n";
    env[1].name = "HUGGING_FACE_HUB_TOKEN", env[1].value = "hf_le\r\ngacy";
    env[2].name = "HF_TOKEN_PATH", env[2].value = file;
    t_set(env, 3);
    t_token_is("hf_first");
    env[0].value = ""; /* counts as unset */
    t_set(env, 3);
    t_token_is("hf_legacy");
    env[0].value = " \r\n";
    env[1].value = "";
    t_set(env, 3);
    t_token_is("hf_file");
    /* $HF_HOME/token, $XDG_CACHE_HOME/huggingface/token, ~/.cache/... */
    t_set(env, 2);
    setenv("HF_HOME", home, 1);
    t_token_is("");
    (void)snprintf(file, sizeof file, "%s/token", dir);
    t_write(file, "hf_home");
    t_token_is("hf_home");
    T_CHECK(mkdir(cache, 0700) == 0);
    (void)snprintf(file, sizeof file, "%s/huggingface/token", dir);
    t_write(file, "\n hf_cache");
    unsetenv("HF_HOME");
    setenv("XDG_CACHE_HOME", dir, 1);
    t_token_is("hf_cache");
    setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1", 1);
    t_token_is("");
    setenv("HF_TOKEN", "hf_explicit", 1);
    t_token_is("");
}

static void token_paths_are_expanded(const char *dir) {
    char        text[300], keep[300];
    const char *home = getenv("HOME");
    (void)snprintf(keep, sizeof keep, "%s", home ? home : "");
    (void)snprintf(text, sizeof text, "%s/.cache", dir);
    T_CHECK(mkdir(text, 0700) == 0);
    (void)snprintf(text, sizeof text, "%s/.cache/huggingface", dir);
    T_CHECK(mkdir(text, 0700) == 0);
    (void)snprintf(text, sizeof text, "%s/.cache/huggingface/token", dir);
    t_write(text, "hf_default");
    (void)snprintf(text, sizeof text, "%s/a$b", dir);
    t_write(text, "hf_dollar");
    t_set(NULL, 0);
    setenv("HOME", dir, 1);
    t_token_is("hf_default");
    setenv("HF_TOKEN_PATH", "~/token", 1);
    t_token_is("hf_home");
    setenv("T_VAR", dir, 1);
    setenv("HF_TOKEN_PATH", "$T_VAR/file", 1);
    t_token_is("hf_file");
    setenv("HF_TOKEN_PATH", "${T_VAR}/token", 1);
    t_token_is("hf_home");
    setenv("HF_TOKEN_PATH", "$T_VAR/a$b", 1); /* no such variable: stays */
    t_token_is("hf_dollar");
    setenv("HF_TOKEN_PATH", "~nobody/token", 1);
    t_token_is("");
    unsetenv("HOME");
    unsetenv("HF_TOKEN_PATH");
    t_token_is("");
    if (home) setenv("HOME", keep, 1);
}

static void a_token_file_that_cannot_be_read_is_an_error(const char *dir) {
    hfsb_hub_env env = HFSB_INIT;
    hfsb_err     err;
    t_set(NULL, 0);
    setenv("HF_TOKEN_PATH", dir, 1);
    T_CHECK(hfsb_hub_env_read(&env, &err) == HFSB_IO);
    T_CHECK(strstr(err.msg, "token cannot be read: Is a directory") != NULL);
    T_CHECK(!env.endpoint.ptr && !env.token.ptr);
    T_CHECK(hfsb_hub_env_read(&env, NULL) == HFSB_IO);
}

static void reading_the_environment_fails_cleanly(hfsb_alloc    alloc,
                                                  const t_heap *heap) {
    hfsb_hub_env env = HFSB_INIT;
    hfsb_status  status;
    env.endpoint.alloc = env.token.alloc = env.origin.alloc = alloc;
    status = hfsb_hub_env_read(&env, NULL);
    T_CHECK(status == (heap->fail_at ? HFSB_NOMEM : HFSB_OK));
    if (status == HFSB_OK) T_STR(env.token, "hf_file");
    hfsb_hub_env_free(&env);
}

static void environment_is_read(void) {
    char dir[] = "/tmp/hfsb-test-XXXXXX", command[64], file[64];
    bool made = mkdtemp(dir) != NULL;
    T_CHECK(made);
    if (!made) return;
    environment_sets_endpoint_and_switches();
    token_is_found_in_its_order(dir);
    token_paths_are_expanded(dir);
    a_token_file_that_cannot_be_read_is_an_error(dir);
    t_set(NULL, 0);
    (void)snprintf(file, sizeof file, "%s/file", dir);
    setenv("HF_TOKEN_PATH", file, 1);
    setenv("HF_ENDPOINT", "http://hub.test", 1);
    setenv("HF_HUB_USER_AGENT_ORIGIN", "me", 1);
    t_each_allocation_fails(reading_the_environment_fails_cleanly);
    t_set(NULL, 0);
    (void)snprintf(command, sizeof command, "rm -r %s", dir);
    T_CHECK(system(command) == 0);
}

/* ---- small things ---- */

static void blobs_are_named_as_git_does(void) {
    char hex[HFSBI_SHA1_HEX];
    hfsbi_git_blob(t_s(""), hex); /* as `git hash-object` says */
    T_CHECK(!strcmp(hex, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"));
    hfsbi_git_blob(t_s("hello\n"), hex);
    T_CHECK(!strcmp(hex, "ce013625030ba8dba906f756967f9e9ca394464a"));
}

static void opening_fails_cleanly(hfsb_alloc alloc, const t_heap *heap) {
    t_hub h;
    t_hub_init(&h);
    h.opts.alloc = alloc;
    h.opts.user_agent = t_s("a/1");
    T_CHECK(hfsb_hub_open(&h.opts, &h.hub, &h.err) ==
            (heap->fail_at ? HFSB_NOMEM : HFSB_OK));
    T_CHECK((h.hub != NULL) == !heap->fail_at);
    hfsb_hub_close(h.hub);
}

int main(void) {
    T_RUN(open_refuses_invalid_options);
    T_RUN(endpoint_has_a_default_and_no_slash_at_its_end);
    T_RUN(every_request_has_its_fields);
    T_RUN(no_token_is_sent_without_one);
    T_RUN(owner_is_asked_for_once);
    T_RUN(offline_refuses_every_call);
    T_RUN(a_cancelled_call_sends_nothing_more);
    T_RUN(a_token_in_an_id_is_not_shown);
    T_RUN(delete_once_sends_one_request);
    T_RUN(runtime_until_keeps_its_deadline);
    T_RUN(warnings_are_logged_once_per_topic);
    T_RUN(environment_is_read);
    T_RUN(blobs_are_named_as_git_does);
    t_name = "opening_fails_cleanly";
    t_each_allocation_fails(opening_fails_cleanly);
    return T_END();
}
