/* test_e2b_control.c - E2B's control plane: sandboxes of one server. */
#include "../support/t_e2b.h"

/* ---- the control plane ---- */

static void sandboxes_are_made_and_ended(void) {
    ts_reply r = HFSB_INIT;
    char     a[40], b[40], fa[200], fb[200], mixed[300], path[200];
    int      i;
    start(&rooted_how);
    T_CHECK(status_of("GET", "/health", "E2b-Sandbox-Id: any\r\n", "") == 204);
    create(&r,
           "{\"templateID\":\"t\",\"metadata\":{\"k\":\"v w\"},\"envVars\""
           ":{\"A\":\"1\"},\"timeout\":60}",
           a, fa);
    create(&r, "{}", b, fb);
    T_CHECK(status_of("GET", "/health", "E2b-Sandbox-Id: any\r\n", "") == 502);
    T_CHECK(status_of("GET", "/envs", "E2b-Sandbox-Id: any\r\n", "") == 502);
    T_CHECK(status_of("GET", "/envs", fa, "") == 200);
    snprintf(mixed, sizeof mixed, "E2b-Sandbox-Id: %s\r\n%s", b,
             strstr(fa, "X-Access"));
    T_CHECK(status_of("GET", "/envs", mixed, "") == 401);
    T_CHECK(status_of("POST", "/files?path=f", fa, "of a") == 200);
    T_CHECK(status_of("GET", "/files?path=f", fb, "") == 404);
    snprintf(path, sizeof path, "/files?path=../%s/f", a);
    T_CHECK(status_of("GET", path, fb, "") == 403);
    snprintf(path, sizeof path, "sandboxes/%s/f", a);
    T_CHECK(tt_file_is(path, HFSB_LIT("of a")));
    ts_get(&s, &r, "/v2/sandboxes");
    T_CHECK(hfsb_json_count(r.json.root) == 2);
    ts_get(&s, &r, "/v2/sandboxes?metadata=k%3Dv%2520w&state=running");
    T_CHECK(hfsb_json_count(r.json.root) == 1 && ts_contains(&r, a));
    ts_get(&s, &r, "/v2/sandboxes?state=paused");
    T_STR(hfsb_buf_str(&r.body), "[]");
    snprintf(path, sizeof path, "/sandboxes/%s", a);
    ts_get(&s, &r, path);
    TS_IS(&r, 200, "\"metadata\":{\"k\":\"v w\"}");
    snprintf(path, sizeof path, "/v2/sandboxes/%s/connect", a);
    ts_post(&s, &r, path, "{\"timeout\":120}");
    TS_IS(&r, 200, "\"envdAccessToken\":\"");
    snprintf(path, sizeof path, "/sandboxes/%s/pause", a);
    ts_post(&s, &r, path, "{}");
    TS_IS(&r, 501, "cannot pause");
    snprintf(path, sizeof path, "/sandboxes/%s/timeout", a);
    ts_post(&s, &r, path, "{\"timeout\":0}");
    TS_IS(&r, 204, NULL);
    snprintf(path, sizeof path, "/sandboxes/%s", b);
    ts_call(&s, &r, "DELETE", path, "", nothing);
    TS_IS(&r, 204, NULL);
    ts_call(&s, &r, "DELETE", path, "", nothing);
    TS_IS(&r, 404, "\"code\":404");
    for (i = 0; i < 400 && tt_entries("sandboxes", "i"); i++) tt_sleep_ms(50);
    T_CHECK(tt_entries("sandboxes", "i") == 0);
    create(&r, "{}", a, fa); /* ends with the server */
    ts_drop(&r);
    end();
    T_CHECK(tt_entries("sandboxes", "i") == 0 && rmdir("sandboxes") == 0);
}

/* A wrong call changes nothing. */
static void paths_and_seconds_are_checked(void) {
    static const char *const huge[] = {"9223372036854775807",
                                       "18446744073709551615", "1e300"};
    ts_reply                 r = HFSB_INIT;
    char                     a[40], fa[200], path[200], body[200];
    size_t                   i;
    start(&open_how);
    create(&r, "{}", a, fa);
    T_CHECK(status_of("POST", "/files?path=f", fa, "of a") == 200);
    ts_call(&s, &r, "POST", "/filesystem.Filesystem/Remove", fa,
            HFSB_LIT("{}"));
    T_CHECK(r.status == 400);
    ts_call(&s, &r, "POST", "/filesystem.Filesystem/MakeDir", fa,
            HFSB_LIT("{\"path\":\"\"}"));
    T_CHECK(r.status == 400);
    T_CHECK(status_of("GET", "/files?path=f", fa, "") == 200);
    snprintf(path, sizeof path, "/sandboxes/%s/timeout", a);
    ts_call(&s, &r, "POST", path, TS_JSON, HFSB_LIT("{\"timeout\":\"x\"}"));
    TS_IS(&r, 400, "must be a number");
    ts_call(&s, &r, "POST", "/sandboxes", TS_JSON,
            HFSB_LIT("{\"timeout\":[]}"));
    TS_IS(&r, 400, "must be a number");
    for (i = 0; i < TT_COUNT(huge); i++) { /* 30 days, whatever the number */
        snprintf(body, sizeof body, "{\"timeout\":%s,\"duration\":%s}",
                 huge[i], huge[i]);
        snprintf(path, sizeof path, "/sandboxes/%s/connect", a);
        ts_post(&s, &r, path, body);
        TS_IS(&r, 200, NULL);
        snprintf(path, sizeof path, "/sandboxes/%s/refreshes", a);
        ts_post(&s, &r, path, body);
        TS_IS(&r, 204, NULL);
        T_CHECK(status_of("GET", "/files?path=f", fa, "") == 200);
    }
    ts_drop(&r);
    end();
    (void)rmdir("sandboxes");
}

static void metadata_has_a_limit_that_is_named(void) {
    ts_reply r = HFSB_INIT;
    hfsb_buf body = HFSB_INIT;
    start(&open_how);
    T_CHECK(hfsb_buf_append(&body, HFSB_LIT("{\"metadata\":{\"k\":\"")) ==
            HFSB_OK);
    t_repeat(&body, "0123456789", 6554);
    T_CHECK(hfsb_buf_append(&body, HFSB_LIT("\"}}")) == HFSB_OK);
    ts_call(&s, &r, "POST", "/sandboxes", TS_JSON, hfsb_buf_str(&body));
    TS_IS(&r, 400, "at most 65536 bytes");
    hfsb_buf_free(&body);
    ts_drop(&r);
    end();
    (void)rmdir("sandboxes");
}

/* A sandbox lies in the root of the server. */
static void the_files_of_a_sandbox_are_not_removed_from_outside(void) {
    ts_reply r = HFSB_INIT;
    char     a[40], fa[200], path[200];
    int      i;
    start(&rooted_how);
    create(&r, "{}", a, fa);
    T_CHECK(status_of("POST", "/files?path=f", fa, "of a") == 200);
    FILES(&r, "Remove", "{\"path\":\"sandboxes\"}");
    REFUSED(&r, 503, "unavailable", "the root of a running sandbox");
    T_CHECK(status_of("GET", "/files?path=f", fa, "") == 200);
    snprintf(path, sizeof path, "/sandboxes/%s", a);
    ts_call(&s, &r, "DELETE", path, "", nothing);
    TS_IS(&r, 204, NULL);
    for (i = 0; i < 400 && tt_entries("sandboxes", "i"); i++) tt_sleep_ms(50);
    FILES(&r, "Remove", "{\"path\":\"sandboxes\"}");
    T_CHECK(r.status == 200 && access("sandboxes", F_OK) != 0);
    ts_drop(&r);
    end();
}

static void an_unused_server_waits_for_its_sandboxes(void) {
    static const how short_how = {true, false, true, NULL, 1500};
    ts_reply         r = HFSB_INIT;
    char             a[40], fa[200];
    long long        began;
    start(&short_how);
    began = hfsb_clock_ms();
    create(&r, "{\"timeout\":3}", a, fa);
    pthread_join(s.thread, NULL);
    T_CHECK(hfsb_clock_ms() - began >= 3000);
    s.started = false;
    ts_drop(&r);
    end();
    T_CHECK(tt_entries("sandboxes", "i") == 0 && rmdir("sandboxes") == 0);
}

/* Gets a page; *got is which of the sandboxes it has, as letters from a on.
   Leaves the token of the next page in *next. */
static void get_page(const char *query, char ids[][40], size_t count,
                     char got[16], char next[32]) {
    ts_reply r = HFSB_INIT;
    char     target[200];
    size_t   i, k, n = 0;
    snprintf(target, sizeof target, "/v2/sandboxes?%s%s%s", query,
             *next ? "&nextToken=" : "", next);
    ts_get(&s, &r, target);
    TS_IS(&r, 200, NULL);
    for (i = 0; i < hfsb_json_count(r.json.root) && n < 15; i++)
        for (k = 0; k < count; k++)
            if (hfsb_str_equal(hfsbi_json_get_str(hfsb_json_at(r.json.root, i),
                                                  "sandboxID"),
                               hfsb_cstr(ids[k])))
                got[n++] = (char)('a' + k);
    got[n] = '\0';
    snprintf(next, 32, "%.*s", (int)ts_field(&r, "X-Next-Token").len,
             ts_field(&r, "X-Next-Token").len
                 ? ts_field(&r, "X-Next-Token").ptr
                 : "");
    ts_drop(&r);
}

static void sandboxes_are_listed_in_pages(void) {
    static const char *const bad[] = {"limit=0", "limit=101", "limit=x",
                                      "nextToken=x", "startedAfter=today"};
    ts_reply                 r = HFSB_INIT;
    char   ids[5][40], fields[200], got[16], next[32] = "", path[200];
    size_t i;
    start(&open_how);
    for (i = 0; i < 5; i++)
        create(&r, i == 3 ? "{\"templateID\":\"t\"}" : "{}", ids[i], fields);
    get_page("", ids, 5, got, next);
    T_CHECK(strcmp(got, "edcba") == 0 && !*next);
    get_page("limit=2", ids, 5, got, next);
    T_CHECK(strcmp(got, "ed") == 0 && *next);
    snprintf(path, sizeof path, "/sandboxes/%s", ids[3]);
    ts_call(&s, &r, "DELETE", path, "", nothing); /* the last one shown */
    get_page("limit=2", ids, 5, got, next);
    T_CHECK(strcmp(got, "cb") == 0 && *next);
    get_page("limit=2", ids, 5, got, next);
    T_CHECK(strcmp(got, "a") == 0 && !*next);
    get_page("limit=4&order=asc", ids, 5, got, next);
    T_CHECK(strcmp(got, "abce") == 0 && !*next);
    get_page("limit=3&order=asc", ids, 5, got, next);
    T_CHECK(strcmp(got, "abc") == 0 && *next);
    get_page("limit=3&order=asc", ids, 5, got, next);
    T_CHECK(strcmp(got, "e") == 0 && !*next);
    get_page("template=t", ids, 5, got, next);
    T_CHECK(!*got && !*next);
    get_page("template=base&startedAfter=2020-01-01T00%3A00%3A00.000Z", ids, 5,
             got, next);
    T_CHECK(strcmp(got, "ecba") == 0);
    get_page("startedAfter=2200-01-01T00%3A00%3A00.000Z", ids, 5, got, next);
    T_CHECK(!*got);
    for (i = 0; i < TT_COUNT(bad); i++) {
        snprintf(path, sizeof path, "/v2/sandboxes?%s", bad[i]);
        ts_get(&s, &r, path);
        TS_IS(&r, 400, "must be");
    }
    ts_drop(&r);
    end();
    (void)rmdir("sandboxes");
}

/* Runs a script in the sandbox of these fields; returns its exit code. */
static int run_in(const char *fields, const char *json, hfsb_buf *out) {
    stream st;
    int    code;
    hfsb_buf_truncate(out, 0);
    start_process(&st, strchr(fields, '\n') + 1, json);
    T_CHECK(started(&st) > 0 && finish(&st, out));
    code = exit_code(&st);
    stream_close(&st);
    return code;
}

static void each_sandbox_is_a_user(void) {
    ts_reply    r = HFSB_INIT;
    stream      st;
    hfsb_buf    out = HFSB_INIT, text = HFSB_INIT;
    char        a[40], b[40], fa[200], fb[200], path[200], body[400];
    struct stat sa = HFSB_INIT, f = HFSB_INIT;
    long        pid;
    int         i;
    start(&open_how);
    create(&r, "{}", a, fa);
    create(&r, "{}", b, fb);
    T_CHECK(status_of("POST", "/files?path=d/f", fa, "of a") == 200);
    snprintf(path, sizeof path, "sandboxes/%s", a);
    T_CHECK(stat(path, &sa) == 0 && (sa.st_mode & 07777) == 0700);
    snprintf(path, sizeof path, "sandboxes/%s/d/f", a);
    T_CHECK(stat(path, &f) == 0 && f.st_uid == sa.st_uid);
    snprintf(body, sizeof body, "%ld\n", (long)sa.st_uid);
    T_CHECK(run_in(fa, SH("id -u") "}}", &out) == 0);
    T_CHECK(strcmp(out.ptr, body) == 0);
    T_CHECK(run_in(fa,
                   SH("id -u") "},\"pty\":{\"size\":{\"cols\":80,"
                               "\"rows\":24}}}",
                   &out) == 0);
    T_CHECK(strtol(out.ptr, NULL, 10) == (long)sa.st_uid);
    if (sa.st_uid == getuid()) {
        printf("skipped: not root, or not with the rights of root\n");
        t_skipped++;
    } else {
        start_process(&st, strchr(fa, '\n') + 1, SH("exec sleep 60") "}}");
        pid = started(&st);
        snprintf(body, sizeof body,
                 SH("cat ../%s/d/f; ls ../%s; kill -9 %ld; kill -0 %ld") "}}",
                 a, a, pid, pid);
        T_CHECK(run_in(fb, body, &out) != 0);
        T_CHECK(strstr(out.ptr, "of a") == NULL && tt_running("60"));
        T_CHECK(run_in(fb, SH("id -u") "}}", &out) == 0);
        T_CHECK(strtol(out.ptr, NULL, 10) != (long)sa.st_uid);
        tt_with_nap(
            SH("(setsid env -i sleep @ >/dev/null 2>&1 &); sleep 0.1") "}}",
            &text);
        T_CHECK(run_in(fa, text.ptr, &out) == 0);
        for (i = 0; i < 800 && !tt_running(tt_nap()); i++) tt_sleep_ms(25);
        T_CHECK(tt_running(tt_nap()) == 1);
        snprintf(path, sizeof path, "/sandboxes/%s", a);
        ts_call(&s, &r, "DELETE", path, "", nothing);
        TS_IS(&r, 204, NULL);
        for (i = 0; i < 400 && tt_running(tt_nap()); i++) tt_sleep_ms(25);
        T_CHECK(tt_running(tt_nap()) == 0);
        stream_close(&st);
    }
    hfsb_buf_free(&out);
    hfsb_buf_free(&text);
    ts_drop(&r);
    end();
    (void)rmdir("sandboxes");
}

static void a_killed_sandbox_takes_its_processes(void) {
    ts_reply r = HFSB_INIT;
    stream   st, watch;
    char     a[40], fa[200], path[100], text[400];
    long     pid;
    int      i;
    start(&open_how);
    create(&r, "{}", a, fa);
    snprintf(text, sizeof text, "%s", strchr(fa, '\n') + 1);
    start_process(&st, text, SH("sleep 60 & sleep 61; true") "}}");
    pid = started(&st);
    stream_open(&watch, "filesystem.Filesystem/WatchDir", text,
                "{\"path\":\"\"}");
    T_CHECK(stream_next(&watch));
    snprintf(path, sizeof path, "/sandboxes/%s", a);
    ts_call(&s, &r, "DELETE", path, "", nothing);
    TS_IS(&r, 204, NULL);
    T_CHECK(finish(&st, NULL) && exit_code(&st) == -1);
    ENDS(&watch, "unavailable", "ended");
    T_CHECK(tt_gone(pid));
    for (i = 0; i < 400 && tt_entries("sandboxes", "i"); i++) tt_sleep_ms(25);
    T_CHECK(tt_entries("sandboxes", "i") == 0);
    stream_close(&st);
    stream_close(&watch);
    ts_drop(&r);
    end();
    (void)rmdir("sandboxes");
}

/* Requests that arrive together share the room that is left. */
static void sandboxes_that_are_being_made_count(void) {
    enum { MOST = 256, LEFT = 3, TOGETHER = 20 };
    ts_reply r = HFSB_INIT;
    ts_conn  c[TOGETHER];
    int      i, made = 0, refused = 0;
    char     a[40], fa[200];
    start(&open_how);
    for (i = 0; i < MOST - LEFT; i++) create(&r, "{}", a, fa);
    for (i = 0; i < TOGETHER; i++) {
        c[i] = ts_connect(&s);
        ts_ask(&c[i], "POST", "/v2/sandboxes", TS_JSON, HFSB_LIT("{}"));
    }
    for (i = 0; i < TOGETHER; i++) {
        T_CHECK(ts_read(&c[i], &r, false));
        made += r.status == 201;
        refused += r.status == 429 && ts_contains(&r, "There are 256");
        ts_hang_up(&c[i]);
    }
    T_CHECK(made == LEFT && refused == TOGETHER - LEFT);
    T_CHECK(tt_entries("sandboxes", "i") == MOST);
    ts_drop(&r);
    end();
    T_CHECK(tt_entries("sandboxes", "i") == 0 && rmdir("sandboxes") == 0);
}

int main(void) {
    tt_begin();
    (void)umask(022);
    TT_RUN(sandboxes_are_made_and_ended);
    TT_RUN(paths_and_seconds_are_checked);
    TT_RUN(metadata_has_a_limit_that_is_named);
    TT_RUN(the_files_of_a_sandbox_are_not_removed_from_outside);
    TT_RUN(an_unused_server_waits_for_its_sandboxes);
    TT_RUN(sandboxes_are_listed_in_pages);
    TT_RUN(each_sandbox_is_a_user);
    TT_RUN(a_killed_sandbox_takes_its_processes);
    TT_RUN(sandboxes_that_are_being_made_count);
    return TT_END();
}
