/* test_server_contract.c - what holds for every endpoint of the sandbox: the
   token, the methods, the shape of what is refused, odd requests by the
   thousand; and what a client that was cut off or refused can rely on. */
#include "../support/t_server.h"

static const hfsb_str no_body = HFSB_INIT;

static const struct {
    const char *path;
    const char *methods; /* as in Allow, each with a blank before it */
} endpoints[] = {
    {"/api/bash", " POST"},
    {"/api/kill", " POST"},
    {"/api/read", " POST"},
    {"/api/write", " POST"},
    {"/api/edit", " POST"},
    {"/api/exists", " POST"},
    {"/api/multi_edit", " POST"},
    {"/api/apply_patch", " POST"},
    {"/api/glob", " POST"},
    {"/api/grep", " POST"},
    {"/api/list", " POST"},
    {"/api/bash_output", " POST"},
    {"/api/bash_input", " POST"},
    {"/api/health", " GET HEAD"},
    {"/api/metrics", " GET HEAD"},
    {"/api/jobs", " GET HEAD"},
    {"/api/jobs/x", " GET HEAD DELETE"},
    {"/api/jobs/x/output", " GET HEAD"},
    {"/api/jobs/x/input", " POST"},
    {"/api/files?path=made", " GET HEAD PUT DELETE"},
};
enum { ENDPOINTS = 20, TOOLS = 13 /* the first of them */ };

static const char *const methods[] = {"GET", "HEAD",  "POST",    "PUT",
                                      "DELETE", "PATCH", "OPTIONS", "TRACE"};

static bool has_method(size_t endpoint, const char *method) {
    char word[16];
    snprintf(word, sizeof word, " %s", method);
    return strstr(endpoints[endpoint].methods, word) != NULL;
}

/* What every reply has, and none: who serves, and no door for other sites. */
static void check_reply(const ts_reply *r) {
    T_CHECK(hfsb_str_starts(ts_field(r, "X-Hfsb"),
                            HFSB_LIT(HFSB_VERSION "; instance=")));
    T_CHECK(!r->head.ptr || !strstr(r->head.ptr, "Access-Control"));
}

static void check_refusal(const ts_reply *r, int status, bool head) {
    check_reply(r);
    if (!head) TS_REFUSED(r, status, NULL);
    T_CHECK(r->status == status && (!head || r->body.len == 0));
    T_STR(ts_field(r, "Content-Type"), "application/json");
}

/* ---- every endpoint ---- */

static void every_endpoint_asks_for_the_token(void) {
    static const char *const fields[] = {
        "", "X-Sandbox-Authorization: Bearer wrong\r\n",
        "X-Sandbox-Authorization: Bearer wrong\r\n"
        "Authorization: Bearer " TS_TOKEN "\r\n",
        "Authorization: Bearer wrong\r\n"};
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    size_t    e, m, f;
    char      text[400];
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    for (e = 0; e < ENDPOINTS; e++)
        for (m = 0; m < TT_COUNT(methods); m++)
            for (f = 0; f < TT_COUNT(fields); f++) {
                bool head = !strcmp(methods[m], "HEAD");
                if (!has_method(e, methods[m]) ||
                    !strcmp(endpoints[e].path, "/api/health"))
                    continue;
                snprintf(text, sizeof text,
                         "%s %s HTTP/1.1\r\nHost: localhost\r\n%s" TS_JSON
                         "Content-Length: 2\r\n\r\n{}",
                         methods[m], endpoints[e].path, fields[f]);
                T_CHECK(ts_send(&c, hfsb_cstr(text)));
                T_CHECK(ts_read(&c, &r, head));
                check_refusal(&r, 401, head);
                T_CHECK(head || ts_contains(&r, f ? "Invalid bearer token"
                                              : "Missing bearer token"));
            }
    T_CHECK(tt_entries(".", "") == 0);
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

/* As a reverse proxy or an ordinary HTTP client sends it. */
static void every_endpoint_takes_the_token_in_authorization(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    size_t    e, m;
    char      text[400];
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    for (e = 0; e < ENDPOINTS; e++)
        for (m = 0; m < TT_COUNT(methods); m++) {
            if (!has_method(e, methods[m])) continue;
            snprintf(text, sizeof text,
                     "%s %s HTTP/1.1\r\nHost: localhost\r\n"
                     "Authorization: Bearer " TS_TOKEN "\r\n" TS_JSON
                     "Content-Length: 2\r\n\r\n{}",
                     methods[m], endpoints[e].path);
            T_CHECK(ts_send(&c, hfsb_cstr(text)));
            T_CHECK(ts_read(&c, &r, !strcmp(methods[m], "HEAD")));
            check_reply(&r);
            T_CHECK(r.status && r.status != 401);
        }
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

/* The methods of Allow, each with a blank before it and the commas gone. */
static bool same_methods(hfsb_str allow, size_t endpoint) {
    size_t i, n = 0;
    for (i = 0; i < TT_COUNT(methods); i++) {
        bool is = hfsb_str_find(allow, hfsb_cstr(methods[i])) != HFSB_NPOS;
        if (is != has_method(endpoint, methods[i])) return false;
        n += is ? strlen(methods[i]) + 2 : 0;
    }
    return allow.len + 2 == n; /* and nothing else is in it */
}

static void every_path_lists_its_methods(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    size_t    e, m;
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    for (e = 0; e < ENDPOINTS; e++)
        for (m = 0; m < TT_COUNT(methods); m++) {
            bool head = !strcmp(methods[m], "HEAD");
            if (has_method(e, methods[m])) continue;
            ts_ask(&c, methods[m], endpoints[e].path, "", no_body);
            T_CHECK(ts_read(&c, &r, head));
            check_refusal(&r, 405, head);
            T_CHECK(head || ts_contains(&r, "\"detail\":\"Method Not Allowed\""));
            T_CHECK(same_methods(ts_field(&r, "Allow"), e));
        }
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- every tool ---- */

static void no_tool_takes_what_is_no_object(void) {
    static const struct {
        const char *body;
        int         status;
    } bodies[] = {
        {"[]", 422},
        {"\"x\"", 422},
        {"null", 422},
        {"true", 422},
        {"-1.5", 422},
        {"[[[[[[[[]]]]]]]]", 422},
        {"{", 400},
        {"{} {}", 400},
        {"{,}", 400},
        {"{'a':1}", 400},
        {"// x\n{}", 400},
        {" ", 400},
        {"{\"path\":\"\xff\"}", 400},
        {"{\"path\":\"\xed\xa0\x80\"}", 400},
        {"{\"path\":\"\\ud800\"}", 400},
        {"{\"path\":\"\\udc00\\ud800\"}", 400},
        {"{\"zzz\":1,\"zzz\":1}", 422},
        {NULL, 400}, /* deep: filled in below */
    };
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    hfsb_buf  deep = HFSB_INIT;
    size_t    e, b;
    tt_fill(&deep, "[", 100000);
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    for (e = 0; e < TOOLS; e++)
        for (b = 0; b < TT_COUNT(bodies); b++) {
            hfsb_str body = bodies[b].body ? hfsb_cstr(bodies[b].body)
                                           : hfsb_buf_str(&deep);
            ts_ask(&c, "POST", endpoints[e].path, TS_JSON, body);
            T_CHECK(ts_read(&c, &r, false));
            if (r.status != bodies[b].status)
                printf("%s, body %zu\n", endpoints[e].path, b);
            check_refusal(&r, bodies[b].status, false);
        }
    hfsb_buf_free(&deep);
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

/* A value of another type, or one that cannot be, is 422 and its key is
   named; it never reaches a shell or a file. */
static void each_wrong_argument_is_named(void) {
    static const struct {
        const char *path, *key, *others; /* others: what must be there too */
        const char *values[4];           /* that are refused */
    } list[] = {
#define COMMAND ",\"command\":\"touch ran\""
#define PLACE   ",\"path\":\"ran\""
        {"/api/bash", "command", "", {"5", "[]", "{}", "null"}},
        {"/api/bash", "timeout", COMMAND, {"-1", "\"x\"", "[]", "{}"}},
        {"/api/bash", "work_dir", COMMAND, {"5", "[]", "\"a\\u0000b\"", 0}},
        {"/api/bash", "env", COMMAND, {"5", "\"A=b\"", "[\"A=b\"]", "true"}},
        {"/api/bash", "env", COMMAND,
         {"{\"A=B\":\"x\"}", "{\"\":\"x\"}", "{\"A\":\"x\\u0000\"}",
          "{\"A\":{}}"}},
        {"/api/bash", "stdin", COMMAND, {"5", "[]", "{}", 0}},
        {"/api/bash", "background", COMMAND, {"\"x\"", "[]", "{}", "7"}},
        {"/api/bash", "merge_stderr", COMMAND, {"\"x\"", "[]", "{}", "7"}},
        {"/api/bash", "shell", COMMAND, {"5", "[]", "{}", 0}},
        {"/api/bash", "id", COMMAND, {"5", "[]", "{}", "\"a\\u0000b\""}},
        {"/api/bash", "stream", COMMAND, {"\"x\"", "[]", "{}", "7"}},
        {"/api/bash", "on_disconnect", COMMAND, {"5", "[]", "\"x\"", "true"}},
        {"/api/kill", "id", "", {"5", "[]", "{}", "true"}},
        {"/api/read", "path", "", {"5", "[]", "{}", "null"}},
        {"/api/read", "offset", PLACE, {"\"x\"", "[]", "1.5", "{}"}},
        {"/api/read", "limit", PLACE, {"\"x\"", "[]", "1.5", "{}"}},
        {"/api/write", "path", ",\"content\":\"\"", {"5", "[]", "{}", "null"}},
        {"/api/write", "content", PLACE, {"5", "[]", "{}", "null"}},
        {"/api/edit", "old_str", PLACE ",\"new_str\":\"b\"",
         {"5", "[]", "{}", "null"}},
        {"/api/edit", "new_str", PLACE ",\"old_str\":\"b\"",
         {"5", "[]", "{}", "null"}},
        {"/api/exists", "path", "", {"5", "[]", "{}", "null"}},
        {"/api/multi_edit", "edits", PLACE, {"5", "\"x\"", "{}", "null"}},
        {"/api/apply_patch", "patch", "", {"5", "[]", "{}", "null"}},
        {"/api/glob", "pattern", "", {"5", "[]", "{}", "null"}},
        {"/api/grep", "pattern", "", {"5", "[]", "{}", "null"}},
        {"/api/list", "depth", "", {"\"x\"", "[]", "1.5", "{}"}},
        {"/api/bash_output", "id", "", {"5", "[]", "{}", "true"}},
        {"/api/bash_input", "id", ",\"text\":\"x\"",
         {"5", "[]", "{}", "null"}},
    };
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    size_t    i, v;
    char      text[200], loc[80];
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    for (i = 0; i < TT_COUNT(list); i++)
        for (v = 0; v < 4 && list[i].values[v]; v++) {
            snprintf(text, sizeof text, "{\"%s\":%s%s}", list[i].key,
                     list[i].values[v], list[i].others);
            snprintf(loc, sizeof loc, "\"loc\":[\"body\",\"%s\"", list[i].key);
            ts_ask(&c, "POST", list[i].path, TS_JSON, hfsb_cstr(text));
            T_CHECK(ts_read(&c, &r, false));
            if (r.status != 422) printf("%s %s\n", list[i].path, text);
            TS_REFUSED(&r, 422, loc);
        }
    T_CHECK(access("ran", F_OK) != 0);
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- odd requests ---- */

typedef struct dice {
    unsigned long long state;
} dice;

static size_t roll(dice *d, size_t n) {
    d->state = d->state * 6364136223846793005ull + 1442695040888963407ull;
    return (size_t)(d->state >> 33) % n;
}
#define ONE_OF(d, list) list[roll(d, TT_COUNT(list))]

static void odd_body(dice *d, hfsb_buf *out) {
    static const char *const keys[] = {
        "command", "timeout", "work_dir", "env",    "stdin",   "background",
        "shell",   "id",      "path",     "offset", "limit",   "content",
        "old_str", "new_str", "mode",     "line",   "edits",   "patch",
        "wait_ms", "text",    "eof",      "stream", "replace_all", "zzz"};
    static const char *const values[] = {
        "null", "true", "0", "-1", "1e300", "9223372036854775808", "\"\"",
        "\"x\"", "\"..\"", "\"/\"", "\"a\\u0000b\"", "\"\\ud83d\\ude00\"",
        "[]", "{}", "[1]", "{\"a\":\"b\"}", "\"true\"", "\"120\"", "\"file\"",
        "[{\"old_str\":\"a\",\"new_str\":\"b\"}]", "\"true\"", "0.2",
        "\"*** Begin Patch\\n*** Add File: new\\n+x\\n*** End Patch\""};
    size_t n = roll(d, 6), i;
    t_repeat(out, "{\"timeout\":0.2", 1);
    if (roll(d, 2)) t_repeat(out, ",\"command\":\"true\"", 1);
    if (roll(d, 2)) t_repeat(out, ",\"path\":\"file\"", 1);
    for (i = 0; i < n; i++)
        T_CHECK(hfsb_buf_printf(out, ",\"%s\":%s", ONE_OF(d, keys),
                                ONE_OF(d, values)) == HFSB_OK);
    t_repeat(out, "}", 1);
    for (i = roll(d, 4) ? 0 : 1 + roll(d, 3); i > 0; i--)
        out->ptr[roll(d, out->len)] = (char)(unsigned char)roll(d, 256);
    if (!roll(d, 20)) hfsb_buf_truncate(out, roll(d, out->len));
}

static void odd_target(dice *d, char *out, size_t size) {
    static const char *const queries[] = {
        "",         "?path=file",  "?path=",        "?path=..",  "?path=%zz",
        "?path=%00", "?offset=-1", "?offset=x",     "?wait_ms=5", "?mode=9",
        "?eof=1",   "?&&=&",       "?path=%ff&mode=0644", "?path=dir/",
        "?path=file/x", "?path=~", "?path=a&path=b"};
    snprintf(out, size, "%s%s", endpoints[roll(d, ENDPOINTS)].path,
             ONE_OF(d, queries));
    /* the last endpoint has a query already: cut it off */
    if (strstr(out, "made?"))
        memmove(strstr(out, "?path=made"), strstr(out, "made?") + 4,
                strlen(strstr(out, "made?") + 4) + 1);
}

static const char *const odd_fields[] = {
    "", "", "", "Range: bytes=0-\r\n", "Range: bytes=-9999999999999999999\r\n",
    "Range: x\r\n", "If-Match: *\r\n", "If-None-Match: W/\"\r\n",
    "If-Modified-Since: \t\r\n", "Idempotency-Key: one\r\n",
    "Accept: text/event-stream\r\n", "Content-Encoding: gzip\r\n",
    "Content-Range: bytes 0-1/2\r\n", "Connection: ,,keep-alive,,\r\n",
    "Cookie: \x80\xff\r\n", "Authorization: Basic \xff\r\n"};

/* No request, however odd, is answered by 500 or not at all; what is refused
   has its words; what is done has its result. */
static void odd_requests_never_give_500(void) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_tools_opts   tools = HFSB_INIT;
    ts_server         s;
    ts_reply          r = HFSB_INIT;
    dice              d = {20240611};
    int               i, rounds = getenv("HFSB_TEST_QUICK") ? 400 : 2000;
    char              target[120];
    ts_conn           c = HFSB_INIT;
    c.fd = -1;
    T_CHECK(!mkdir("odd", 0755) && !mkdir("odd/dir", 0755));
    tt_put("odd/file", HFSB_LIT("a\nb\n"));
    tools.root = HFSB_LIT("odd"); /* a name made by chance stays here */
    box.tools = &tools;
    ts_start(&s, NULL, &box);
    for (i = 0; i < rounds; i++) {
        const char *method = ONE_OF(&d, methods);
        const char *type = roll(&d, 8) ? TS_JSON : "Content-Type: x\r\n";
        char        fields[200];
        hfsb_buf    body = HFSB_INIT;
        bool        head;
        if (roll(&d, 2)) method = "POST";
        if (c.fd < 0) c = ts_connect(&s);
        head = !strcmp(method, "HEAD");
        odd_target(&d, target, sizeof target);
        snprintf(fields, sizeof fields, "%s%s", type, ONE_OF(&d, odd_fields));
        if (roll(&d, 10)) odd_body(&d, &body);
        ts_ask(&c, method, target, fields, hfsb_buf_str(&body));
        T_CHECK(ts_read(&c, &r, head));
        if (r.status < 200 || r.status >= 500)
            printf("round %d: %s %s, %d\n%s%s\n", i, method, target, r.status,
                   fields, body.ptr ? body.ptr : "");
        T_CHECK(r.status >= 200 && r.status < 500);
        if (r.status >= 400) check_refusal(&r, r.status, head);
        check_reply(&r);
        if (ts_field(&r, "Connection").len) ts_hang_up(&c);
        hfsb_buf_free(&body);
    }
    if (c.fd >= 0) ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&s, true);
}

/* ---- cut off ---- */

/* Appends the text of each whole event of stdout; *next is where the last one
   ends. */
static void collect(hfsb_str events, hfsb_buf *out, long long *next) {
    hfsb_json_doc doc = HFSB_INIT;
    size_t        at, end;
    while ((at = hfsb_str_find(events, HFSB_LIT("event: "))) != HFSB_NPOS) {
        events = hfsb_str_slice(events, at + 7, events.len);
        end = hfsb_str_find(events, HFSB_LIT("\n\n"));
        if (end == HFSB_NPOS) return;
        at = hfsb_str_find(events, HFSB_LIT("data: "));
        if (!hfsb_str_starts(events, HFSB_LIT("stdout")) || at > end) continue;
        T_CHECK(hfsb_json_parse(hfsb_str_slice(events, at + 6, end), NULL,
                                &doc, NULL) == HFSB_OK);
        T_CHECK(hfsb_json_int(hfsb_json_get(doc.root, "offset"), -1) ==
                (long long)out->len);
        T_CHECK(hfsb_buf_append(out, hfsb_json_str(hfsb_json_get(doc.root,
                                                                 "text"),
                                                   HFSB_LIT(""))) == HFSB_OK);
        *next = atoll(events.ptr +
                      hfsb_str_find(events, HFSB_LIT("id: ")) + 4);
        T_CHECK(*next == (long long)out->len);
        hfsb_json_free(&doc);
    }
}

/* A reader of events is gone in the middle; what it has, and what it asks for
   from there on, is all there was: no byte twice, none missing. */
static void a_reader_that_was_cut_off_goes_on(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    hfsb_buf  got = HFSB_INIT, whole = HFSB_INIT, chunks = HFSB_INIT;
    long long next = 0, before;
    bool      running = true;
    char      target[120];
    int       i;
    for (i = 1; i <= 300; i++)
        T_CHECK(hfsb_buf_printf(&whole, "line %d \xC3\xA9\n", i) == HFSB_OK);
    T_CHECK(!mkfifo("on", 0600));
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/bash", TS_JSON,
           HFSB_LIT("{\"stream\":true,\"on_disconnect\":\"continue\",\"id\":"
                    "\"cut\",\"command\":\"i=0; while [ $i -lt 300 ]; do "
                    "i=$((i+1)); echo line $i \\u00e9; [ $i != 100 ] || "
                    "read x < on; done\"}"));
    T_CHECK(ts_await(&c, "line 100 ", 20000));
    T_CHECK(hfsb_buf_append(&chunks, hfsb_buf_str(&c.in)) == HFSB_OK);
    ts_reset(&c);
    collect(hfsb_buf_str(&chunks), &got, &next); /* an event is in one chunk */
    T_CHECK(got.len > 0 && got.len < whole.len);
    tt_put("on", HFSB_LIT("\n"));
    for (i = 0; running && i < 5000; i++) {
        before = next;
        snprintf(target, sizeof target,
                 "/api/jobs/cut/output?wait_ms=5000&offset=%lld", next);
        ts_get(&s, &r, target);
        TS_IS(&r, 200, "\"success\":true");
        next = ts_int(&r, "next_offset");
        running = ts_flag(&r, "running");
        /* an unfinished line is shown, and comes again */
        T_CHECK(hfsb_buf_append(&got,
                                hfsb_str_slice(ts_text(&r, "output"), 0,
                                               (size_t)(next - before))) ==
                HFSB_OK);
    }
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&got), hfsb_buf_str(&whole)));
    hfsb_buf_free(&got);
    hfsb_buf_free(&whole);
    hfsb_buf_free(&chunks);
    ts_drop(&r);
    ts_end(&s, false);
}

/* Nothing was done, so the key is free for what comes then. */
static void a_refused_call_does_not_use_up_its_key(void) {
    static const char *const full[] = {"full0", "full1"};
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_tools_opts   tools = HFSB_INIT;
    ts_server         s;
    ts_conn           c[2];
    ts_reply          r = HFSB_INIT;
    const char       *fields = TS_JSON "Idempotency-Key: again\r\n";
    size_t            i;
    tools.max_running = tools.max_waiting = 1;
    box.tools = &tools;
    ts_start(&s, NULL, &box);
    for (i = 0; i < 2; i++) { /* each has its own: the second must not see the
                                 end of what was meant for the first */
        T_CHECK(!mkfifo(full[i], 0600));
        c[i] = ts_connect(&s);
        ts_ask(&c[i], "POST", "/api/bash", TS_JSON,
               i ? HFSB_LIT("{\"command\":\"read x < full1\"}")
                 : HFSB_LIT("{\"command\":\"read x < full0\"}"));
        T_CHECK(ts_commands(&s, 1, (long long)i));
    }
    ts_call(&s, &r, "POST", "/api/bash", fields,
            HFSB_LIT("{\"comand\":\"echo once >> once\"}"));
    TS_REFUSED(&r, 422, NULL);
    ts_call(&s, &r, "POST", "/api/bash", fields,
            HFSB_LIT("{\"command\":\"echo once >> once\"}"));
    TS_REFUSED(&r, 429, NULL);
    T_CHECK(ts_field(&r, "Retry-After").len > 0);
    for (i = 0; i < 2; i++) {
        tt_put(full[i], HFSB_LIT("\n"));
        T_CHECK(ts_read(&c[i], &r, false));
        TS_OK(&r, "");
        ts_hang_up(&c[i]);
    }
    for (i = 0; i < 3; i++) {
        ts_call(&s, &r, "POST", "/api/bash", fields,
                HFSB_LIT("{\"command\":\"echo once >> once\"}"));
        TS_OK(&r, "");
    }
    T_CHECK(tt_lines_in("once") == 1);
    ts_drop(&r);
    ts_end(&s, false);
}

/* ---- metrics ---- */

static size_t name_length(const char *text) {
    return strspn(text, "abcdefghijklmnopqrstuvwxyz_");
}

/* One line of the text format 0.0.4: HELP, TYPE, or a sample of what TYPE has
   just named. */
static bool is_metric_line(const char *line, char *named, size_t size) {
    size_t n;
    if (!strncmp(line, "# HELP ", 7))
        return (n = name_length(line + 7)) > 0 && line[7 + n] == ' ';
    if (!strncmp(line, "# TYPE ", 7)) {
        n = name_length(line + 7);
        snprintf(named, size, "%.*s", (int)n, line + 7);
        if (!strcmp(line + 7 + n, " gauge")) return true;
        return !strcmp(line + 7 + n, " counter") && n > 6 &&
               !strncmp(line + 7 + n - 6, "_total", 6);
    }
    n = name_length(line);
    if (n != strlen(named) || strncmp(line, named, n) != 0) return false;
    if (line[n] == '{') {
        const char *end = strstr(line, "\"} ");
        if (!end || !strstr(line, "=\"")) return false;
        n = (size_t)(end - line) + 2;
    }
    return line[n] == ' ' && line[n + 1] &&
           strspn(line + n + 1, "0123456789") == strlen(line + n + 1);
}

static void metrics_can_be_read_by_a_parser(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    char      named[80] = "", *line;
    size_t    n = 0;
    ts_start(&s, NULL, NULL);
    ts_get(&s, &r, "/api/metrics");
    TS_IS(&r, 200, NULL);
    T_STR(ts_field(&r, "Content-Type"), "text/plain; version=0.0.4");
    T_CHECK(r.body.len && r.body.ptr[r.body.len - 1] == '\n');
    for (line = strtok(r.body.ptr, "\n"); line; line = strtok(NULL, "\n")) {
        n++;
        if (!is_metric_line(line, named, sizeof named)) printf("%s\n", line);
        T_CHECK(is_metric_line(line, named, sizeof named));
    }
    T_CHECK(n > 30);
    ts_drop(&r);
    ts_end(&s, false);
}

int main(void) {
    tt_begin();
    TT_RUN(every_endpoint_asks_for_the_token);
    TT_RUN(every_endpoint_takes_the_token_in_authorization);
    TT_RUN(every_path_lists_its_methods);
    TT_RUN(no_tool_takes_what_is_no_object);
    TT_RUN(each_wrong_argument_is_named);
    TT_RUN(odd_requests_never_give_500);
    TT_RUN(a_reader_that_was_cut_off_goes_on);
    TT_RUN(a_refused_call_does_not_use_up_its_key);
    TT_RUN(metrics_can_be_read_by_a_parser);
    return TT_END();
}
