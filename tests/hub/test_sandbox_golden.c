/* test_sandbox_golden.c - what a sandbox's life sends to the Hub is what the
   real client sends, as it was recorded: method, target, body, the fields that
   matter, in that order. */
#define T_SERVER
#include "../support/t_create.h"

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

int main(void) {
    tt_begin();
    TT_RUN(create_sends_what_the_real_client_sends);
    TT_RUN(the_space_is_asked_what_the_real_client_asks);
    return TT_END();
}
