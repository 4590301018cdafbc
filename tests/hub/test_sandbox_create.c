/* test_sandbox_create.c - making a sandbox: names, tokens, secrets, logs and
   messages; memory. */
#define T_SERVER
#include "../support/t_create.h"

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
    T_CHECK(s->owned);
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

static void a_space_that_never_appears_is_given_up(void) {
    fh_opts       never = HFSB_INIT;
    tc_world      w;
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    never.prompt = true;
    never.missing = 1000;
    tc_open(&w, &never);
    T_CHECK(hfsb_sandbox_create(&w.spec, &w.opts, &s, &err) ==
            HFSB_NOT_FOUND);
    /* after 1, 2, 4 and ten times 5 seconds */
    T_CHECK(fh_count(w.fake, "POST", "/api/spaces/alice/*/secrets") == 14);
    T_CHECK(fh_spaces(w.fake) == 0);
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

/* A secret at the place where the log is cut, and far too much of all. */
static void say_too_much(void *user, hfsb_str line) {
    static char long_line[sizeof TC_API_TOKEN + 680];
    tc_world   *w = (tc_world *)user;
    hfsb_buf    id = HFSB_INIT;
    tc_log(user, line);
    if (tc_has(line, "Space created:") && fh_space_id(w->fake, 0, &id)) {
        memset(long_line, 'y', sizeof long_line - 1);
        memcpy(long_line, TC_API_TOKEN, sizeof TC_API_TOKEN - 1);
        fh_log(w->fake, id.ptr, "build", long_line);
    }
    hfsb_buf_free(&id);
}

static void a_message_that_is_too_long_keeps_its_end(void) {
    char          body[400];
    fh_fault_spec stage = HFSB_INIT, stuck = HFSB_INIT;
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    tc_world      w;
    tc_open_prompt(&w, FH_STUB);
    w.opts.log = say_too_much;
    w.spec.name = HFSB_LIT("a-name-that-is-nearly-as-long-as-the-hub-takes-and-"
                           "that-nobody-would-type");
    snprintf(body, sizeof body,
             "{\"stage\":\"BUILD_ERROR\",\"errorMessage\":\"%0250d\"}", 0);
    stage.path = "/api/spaces/alice/*/runtime";
    stage.status = 200;
    stage.shape = FH_RAW;
    stage.message = body;
    fh_fault(w.fake, &stage);
    stuck.path = "/api/repos/delete";
    stuck.status = 500;
    stuck.times = FH_ALWAYS;
    fh_fault(w.fake, &stuck);
    T_CHECK(hfsb_sandbox_create(&w.spec, &w.opts, &s, &err) == HFSB_REMOTE);
    T_CHECK(strlen(err.msg) > HFSB_ERR_SIZE - 8);
    T_CHECK(hfsb_str_starts(hfsb_cstr(err.msg),
                            HFSB_LIT("Space failed to start: BUILD_ERROR.")));
    T_CHECK(hfsb_str_ends(hfsb_cstr(err.msg), HFSB_LIT("/settings")));
    T_CHECK(tc_has(hfsb_cstr(err.msg), "yyyyyyyy"));
    T_CHECK(!tc_has(hfsb_cstr(err.msg), "z0123456")); /* of the token */
    tc_close(&w);
}

static void delete_meanwhile(void *user, hfsb_str line) {
    tc_world *w = (tc_world *)user;
    hfsb_buf  id = HFSB_INIT;
    tc_log(user, line);
    if (tc_has(line, "rebuild triggered") && fh_space_id(w->fake, 0, &id))
        T_CHECK(hfsb_hub_delete(w->hub, hfsb_buf_str(&id), NULL, NULL) ==
                HFSB_OK);
    hfsb_buf_free(&id);
}

static void deleted_space_is_not_reported_as_left(void) {
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    tc_world      w;
    tc_open_prompt(&w, FH_STUB);
    w.opts.log = delete_meanwhile;
    T_CHECK(hfsb_sandbox_create(&w.spec, &w.opts, &s, &err) ==
            HFSB_NOT_FOUND);
    T_CHECK(!tc_has(hfsb_cstr(err.msg), "left"));
    T_CHECK(fh_spaces(w.fake) == 0);
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
    T_CHECK(err.msg[strlen("Sandbox creation cancelled: "
                           "alice/sandbox-01234567")] == '\n');
    T_CHECK(tc_has(hfsb_cstr(err.msg), " was deleted."));
    T_CHECK(tc_logged(&w, "Sandbox creation cancelled by user, cleaning "
                          "up...\nDeleted Space alice/sandbox-"));
    T_CHECK(fh_spaces(w.fake) == 0);
    tc_close(&w);
}

static void *cancel_soon(void *user) {
    tc_world *w = (tc_world *)user;
    while (!fh_count(w->fake, "POST", "/api/spaces/*/duplicate"))
        tt_sleep_ms(2);
    hfsb_cancel_set(w->cancel);
    return NULL;
}

/* The Hub may still be at it: that it is not there yet tells nothing. */
static void a_cancelled_duplication_may_have_left_a_space(void) {
    fh_fault_spec slow = HFSB_INIT;
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    pthread_t     thread;
    tc_world      w;
    tc_open_prompt(&w, FH_STUB);
    slow.path = "/api/spaces/*/duplicate";
    slow.status = 504; /* and it is not made before */
    slow.delay_ms = 30000;
    fh_fault(w.fake, &slow);
    if (pthread_create(&thread, NULL, cancel_soon, &w)) abort();
    T_CHECK(hfsb_sandbox_create(&w.spec, &w.opts, &s, &err) ==
            HFSB_CANCELLED);
    pthread_join(thread, NULL);
    T_CHECK(hfsb_str_starts(hfsb_cstr(err.msg),
                            HFSB_LIT("Sandbox creation cancelled: alice/")));
    T_CHECK(tc_has(hfsb_cstr(err.msg), " may be left, and may cost money"));
    T_CHECK(fh_count(w.fake, "DELETE", NULL) == 3);
    tc_again(&w); /* nothing was sent */
    w.cancel_method = "POST";
    w.cancel_path = slow.path;
    T_CHECK(hfsb_sandbox_create(&w.spec, &w.opts, &s, &err) ==
            HFSB_CANCELLED);
    T_CHECK(!tc_has(hfsb_cstr(err.msg), "left"));
    tc_close(&w);
}

/* A Hub that does not tell the stage does not hold it up for longer than it
   was to wait. */
static void waits_end_at_their_deadline(void) {
    fh_fault_spec slow = HFSB_INIT;
    hfsb_sandbox *s = NULL;
    hfsb_err      err = HFSB_INIT;
    long long     began;
    tc_world      w;
    tc_open_prompt(&w, FH_STUB);
    slow.path = "/api/spaces/alice/*/runtime";
    slow.delay_ms = 60000;
    slow.times = FH_ALWAYS;
    fh_fault(w.fake, &slow);
    w.opts.times.wait_ms = 300;
    began = hfsb_clock_ms();
    T_CHECK(hfsb_sandbox_create(&w.spec, &w.opts, &s, &err) == HFSB_TIMEOUT);
    T_CHECK(hfsb_clock_ms() - began < 15000);
    T_CHECK(tc_has(hfsb_cstr(err.msg), "Space did not start within 0.3s."));
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
    slow.delay_ms = 60000;
    slow.status = 500;
    fh_fault(w.fake, &slow);
    w.opts.give_up = w.cancel;
    w.cancel_method = "POST";
    w.cancel_path = "/api/spaces/alice/*/commit/main";
    began = hfsb_clock_ms();
    T_CHECK(hfsb_sandbox_create(&w.spec, &w.opts, &s, &err) ==
            HFSB_CANCELLED);
    T_CHECK(hfsb_clock_ms() - began < 15000);
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
    TT_RUN(the_space_has_what_was_asked_for);
    TT_RUN(the_token_is_random_and_urlsafe);
    TT_RUN(every_step_is_logged);
    TT_RUN(a_name_that_is_taken_gets_another_suffix);
    TT_RUN(a_space_that_is_not_visible_yet_is_waited_for);
    TT_RUN(a_space_that_never_appears_is_given_up);
    TT_RUN(names_are_made_of_owner_and_base);
    TT_RUN(without_a_new_commit_the_space_is_restarted);
    TT_RUN(arguments_are_refused_before_anything_is_sent);
    TT_RUN(a_failed_build_shows_the_end_of_its_log);
    TT_RUN(a_message_that_is_too_long_keeps_its_end);
    TT_RUN(deleted_space_is_not_reported_as_left);
    TT_RUN(a_cancelled_creation_says_so);
    TT_RUN(a_cancelled_duplication_may_have_left_a_space);
    TT_RUN(waits_end_at_their_deadline);
    TT_RUN(a_cleanup_can_be_given_up);
    TT_RUN(each_allocation_of_create_fails);
    return TT_END();
}
