/* test_hub_jobs.c - the body of a job, and its limits. */
#include "../support/t_hub.h"

static const t_reply RUN[] = {
    {"POST /api/jobs/alice", 200, NULL, "{\"id\":\"1\"}", HFSB_OK, false, 0}};

static hfsb_status t_script(t_hub *h, const hfsb_job_spec *spec) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   status;
    T_SCRIPT(h, RUN);
    status = hfsb_hub_job_script(h->hub, spec, NULL, &doc, &h->err);
    if (status == HFSB_OK)
        T_STR(hfsb_json_str(hfsb_json_get(doc.root, "id"), t_s("")), "1");
    hfsb_json_free(&doc);
    return status;
}

static void timeouts_are_parsed_like_the_hubs_client(void) {
    static const struct {
        const char *text;
        long long   seconds;
    } cases[] = {{"30m", 1800},  {"2h", 7200},    {"90", 90},
                 {"90s", 90},    {"1d", 86400},   {"1.5h", 5400},
                 {"0.1m", 6},    {"1.1m", 66},    {".5m", 30},
                 {"2.", 2},      {"1.9s", 1},     {"0", 0},
                 {"0.1s", 0},    {"", 0},         {"m", 0},
                 {".", 0},       {".m", 0},       {"-5m", 0},
                 {"+5m", 0},     {"5 m", 0},      {" 5m", 0},
                 {"1.2.3", 0},   {"5M", 0},       {"5w", 0},
                 {"1e3", 0},     {"5mm", 0},      {"infd", 0},
                 {"99999999999999999999", 0},     {"999999999999d", 0},
                 {"0x10", 0}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str text = t_exact(cases[i].text, strlen(cases[i].text));
        if (hfsbi_hub_seconds(text) != cases[i].seconds)
            printf("  %s is %lld\n", cases[i].text, hfsbi_hub_seconds(text));
        T_CHECK(hfsbi_hub_seconds(text) == cases[i].seconds);
        t_drop(text);
    }
}

static void source_goes_through_a_shell_byte_for_byte(void) {
    hfsb_job_spec spec = HFSB_INIT;
    hfsb_str      with[2], args[4];
    t_hub         h;
    with[0] = t_s("hf-transfer");
    with[1] = t_s("torch>=2");
    args[0] = t_s("--name");
    args[1] = t_s("it's > x");
    args[2] = t_s("");
    args[3] = t_s("h\xC3\xA9");
    spec.space = t_s("alice");
    spec.script = t_s("print('a')\r\n\tx = \"$HOME\"");
    spec.is_source = true;
    spec.with = with;
    spec.with_count = 2;
    spec.python = t_s("3.12");
    spec.args = args;
    spec.arg_count = 4;
    t_hub_init(&h);
    t_hub_open(&h);
    T_CHECK(t_script(&h, &spec) == HFSB_OK);
    T_STR(h.sent[0].body,
          "{\"command\":[\"/bin/sh\",\"-lc\",\"echo "
          "\\\"cHJpbnQoJ2EnKQ0KCXggPSAiJEhPTUUi\\\" | base64 -d | uv run "
          "--with hf-transfer --with 'torch>=2' -p 3.12 - --name "
          "'it'\\\"'\\\"'s > x' '' 'h\xC3\xA9'\"],\"arguments\":[],"
          "\"environment\":{},\"flavor\":\"cpu-basic\",\"dockerImage\":"
          "\"ghcr.io/astral-sh/uv:python3.12-bookworm\"}");
    t_hub_close(&h);
}

/* What a shell makes of it is what was meant. */
static void a_shell_decodes_the_source(void) {
    static const char source[] = "a\tb\r\n$x `y` \\ \"z\" 'q'\xFF\x01\n\nend";
    hfsb_job_spec     spec = HFSB_INIT;
    hfsb_str          args[2], line;
    hfsb_json_doc     doc = HFSB_INIT;
    char              out[256] = "";
    size_t            n;
    FILE             *f;
    t_hub             h;
    hfsb_buf          command = HFSB_INIT;
    args[0] = t_s("it's $HOME; \"x\"\n`y`");
    args[1] = t_s("*");
    spec.space = t_s("alice");
    spec.script = hfsb_str_make(source, sizeof source - 1);
    spec.is_source = true;
    spec.args = args;
    spec.arg_count = 2;
    t_hub_init(&h);
    t_hub_open(&h);
    T_CHECK(t_script(&h, &spec) == HFSB_OK);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&h.sent[0].body), NULL, &doc, NULL) ==
            HFSB_OK);
    line = hfsb_json_str(
        hfsb_json_at(hfsb_json_get(doc.root, "command"), 2), t_s(""));
    T_CHECK(hfsb_buf_append(&command,
                            t_s("uv() { shift 2; printf '[%s]' \"$@\"; cat; "
                                "}; ")) == HFSB_OK);
    T_CHECK(hfsb_buf_append(&command, line) == HFSB_OK);
    f = popen(command.ptr, "r");
    T_CHECK(f != NULL);
    n = f ? fread(out, 1, sizeof out, f) : 0;
    if (f) T_CHECK(pclose(f) == 0);
    {
        static const char want[] =
            "[it's $HOME; \"x\"\n`y`][*]"
            "a\tb\r\n$x `y` \\ \"z\" 'q'\xFF\x01\n\nend";
        t_str(__FILE__, __LINE__, out, n, want, sizeof want - 1);
    }
    hfsb_buf_free(&command);
    hfsb_json_free(&doc);
    t_hub_close(&h);
}

static void only_a_command_of_several_words_needs_a_shell(void) {
    static const struct {
        const char *script, *command;
    } cases[] = {
        {"python", "[\"uv\",\"run\",\"--with\",\"a b\",\"python\",\"x y\"]"},
        {"https://x.test/a.py",
         "[\"uv\",\"run\",\"--with\",\"a b\",\"https://x.test/a.py\","
         "\"x y\"]"},
        {"/data/my script.py",
         "[\"uv\",\"run\",\"--with\",\"a b\",\"/data/my script.py\","
         "\"x y\"]"},
        {"python -m pytest -k 'a or b'",
         "[\"/bin/sh\",\"-lc\",\"uv run --with 'a b' python -m pytest -k 'a "
         "or b' 'x y'\"]"}};
    hfsb_str with = t_s("a b"), arg = t_s("x y");
    size_t   i;
    t_hub    h;
    t_hub_init(&h);
    t_hub_open(&h);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_job_spec spec = HFSB_INIT;
        hfsb_buf      want = HFSB_INIT;
        spec.space = t_s("alice");
        spec.script = t_s(cases[i].script);
        spec.with = &with;
        spec.with_count = 1;
        spec.args = &arg;
        spec.arg_count = 1;
        T_CHECK(t_script(&h, &spec) == HFSB_OK);
        T_CHECK(hfsb_buf_printf(&want, "{\"command\":%s,\"arguments\":",
                                cases[i].command) == HFSB_OK);
        t_str(__FILE__, __LINE__, h.sent[0].body.ptr,
              want.len < h.sent[0].body.len ? want.len : h.sent[0].body.len,
              want.ptr, want.len);
        hfsb_buf_free(&want);
    }
    t_hub_close(&h);
}

static void source_that_is_too_long_is_refused_with_advice(void) {
    hfsb_job_spec spec = HFSB_INIT;
    hfsb_buf      text = HFSB_INIT;
    t_hub         h;
    t_repeat(&text, "0123456789", 9000);
    spec.space = t_s("alice");
    spec.is_source = true;
    spec.script = hfsb_buf_str(&text);
    t_hub_init(&h);
    t_hub_open(&h);
    T_CHECK(t_script(&h, &spec) == HFSB_OK);
    t_repeat(&text, "x", 1);
    spec.script = hfsb_buf_str(&text);
    T_CHECK(t_script(&h, &spec) == HFSB_LIMIT && h.sent_count == 0);
    T_CHECK(t_says(&h, "The script has 90001 bytes, but only 90000 fit"));
    T_CHECK(t_says(&h, "pass its URL"));
    hfsb_buf_free(&text);
    t_hub_close(&h);
}

static void a_jobs_settings_are_sent(void) {
    static const char *const images[][2] = {
        {"", "\"dockerImage\":\"python:3.12\""},
        {"ubuntu", "\"dockerImage\":\"ubuntu\""},
        {"https://huggingface.co/spaces/a/b", "\"spaceId\":\"a/b\""},
        {"https://hf.co/spaces/a/b", "\"spaceId\":\"a/b\""},
        {"huggingface.co/spaces/a/b", "\"spaceId\":\"a/b\""},
        {"hf.co/spaces/a/b", "\"spaceId\":\"a/b\""}};
    hfsb_job_spec spec = HFSB_INIT;
    hfsb_str      word = t_s("true");
    hfsb_hub_pair env[2], label = HFSB_INIT;
    hfsb_json_doc doc = HFSB_INIT;
    size_t        i;
    t_hub         h;
    memset(env, 0, sizeof env);
    env[0].key = t_s("AA");
    env[0].value = t_s("1");
    env[1].key = t_s("B_2");
    env[1].value = t_s("");
    label.key = t_s("foo");
    label.value = t_s("bar");
    spec.space = t_s("alice");
    spec.command = &word;
    spec.command_count = 1;
    spec.env = env;
    spec.env_count = 2;
    spec.labels = &label;
    spec.label_count = 1;
    spec.timeout = t_s("90");
    t_hub_init(&h);
    t_hub_open(&h);
    for (i = 0; i < sizeof images / sizeof *images; i++) {
        hfsb_buf want = HFSB_INIT;
        spec.image = t_s(images[i][0]);
        T_SCRIPT(&h, RUN);
        T_CHECK(hfsb_hub_job_run(h.hub, &spec, NULL, &doc, &h.err) ==
                HFSB_OK);
        hfsb_json_free(&doc);
        T_CHECK(hfsb_buf_printf(
                    &want,
                    "{\"command\":[\"true\"],\"arguments\":[],"
                    "\"environment\":{\"AA\":\"1\",\"B_2\":\"\"},"
                    "\"flavor\":\"cpu-basic\",\"timeoutSeconds\":90,"
                    "\"labels\":{\"foo\":\"bar\"},%s}",
                    images[i][1]) == HFSB_OK);
        t_str(__FILE__, __LINE__, h.sent[0].body.ptr, h.sent[0].body.len,
              want.ptr, want.len);
        hfsb_buf_free(&want);
    }
    t_hub_close(&h);
}

static void invalid_jobs_are_not_sent(void) {
    hfsb_job_spec spec = HFSB_INIT, bad;
    hfsb_str      word = t_s("true");
    hfsb_hub_pair pair = HFSB_INIT;
    hfsb_json_doc doc = HFSB_INIT;
    t_hub         h;
    spec.space = t_s("alice");
    spec.command = &word;
    spec.command_count = 1;
    pair.key = t_s("A");
    pair.value = t_s("b");
    t_hub_init(&h);
    t_hub_open(&h);
    bad = spec;
    bad.command_count = 0;
    T_CHECK(hfsb_hub_job_run(h.hub, &bad, NULL, &doc, &h.err) == HFSB_ARG);
    T_CHECK(t_says(&h, "needs a command"));
    T_CHECK(hfsb_hub_job_script(h.hub, &spec, NULL, &doc, &h.err) ==
            HFSB_ARG);
    T_CHECK(t_says(&h, "needs a script"));
    bad = spec;
    bad.env = &pair;
    bad.env_count = 1;
    T_CHECK(hfsb_hub_job_run(h.hub, &bad, NULL, &doc, &h.err) == HFSB_ARG);
    T_CHECK(t_says(&h, "\"A\"") && t_says(&h, "at least two"));
    bad = spec;
    bad.timeout = t_s("soon");
    T_CHECK(hfsb_hub_job_run(h.hub, &bad, NULL, &doc, &h.err) == HFSB_ARG);
    T_CHECK(t_says(&h, "\"soon\" is not a valid timeout of a job"));
    bad = spec;
    bad.labels = &pair;
    bad.label_count = 1;
    pair.key = t_s("");
    T_CHECK(hfsb_hub_job_run(h.hub, &bad, NULL, &doc, &h.err) == HFSB_ARG);
    bad = spec;
    bad.space = t_s("../api");
    T_CHECK(hfsb_hub_job_run(h.hub, &bad, NULL, &doc, &h.err) == HFSB_ARG);
    T_CHECK(t_says(&h, "is not a valid user or organisation"));
    T_CHECK(h.sent_count == 0);
    t_hub_close(&h);
}

int main(void) {
    T_RUN(timeouts_are_parsed_like_the_hubs_client);
    T_RUN(source_goes_through_a_shell_byte_for_byte);
    T_RUN(a_shell_decodes_the_source);
    T_RUN(only_a_command_of_several_words_needs_a_shell);
    T_RUN(source_that_is_too_long_is_refused_with_advice);
    T_RUN(a_jobs_settings_are_sent);
    T_RUN(invalid_jobs_are_not_sent);
    return T_END();
}
