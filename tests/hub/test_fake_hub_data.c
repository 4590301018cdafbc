/* test_fake_hub_data.c - the fake Hub answers what the real client sent with
   the status that was recorded, and as the real Hub did. */
#include "../support/t_fake_hub.h"

/* ---- what the real client sent ---- */

/* Recordings hold long base64 as {"_b64_of_bytes":n,"_sha256":...}: n bytes
   are made up here, the same for the same digest. */
static void made_up(const hfsb_json_value *v, hfsb_json_writer *w) {
    hfsb_str  sha = hfsb_json_str(hfsb_json_get(v, "_sha256"), HFSB_LIT("?"));
    long long n = hfsb_json_int(hfsb_json_get(v, "_b64_of_bytes"), 0), i;
    hfsb_buf  bytes = HFSB_INIT, text = HFSB_INIT;
    for (i = 0; i < n; i++)
        FH_MUST(hfsb_buf_append_byte(&bytes,
                                     sha.ptr[(size_t)i % sha.len]));
    FH_MUST(hfsb_base64_encode(hfsb_buf_str(&bytes), &text));
    hfsb_json_put_str(w, hfsb_buf_str(&text));
    hfsb_buf_free(&bytes);
    hfsb_buf_free(&text);
}

/* As it is, but for what was left out and the oids of a Hub. */
static void put_again(const hfsb_json_value *v, hfsb_json_writer *w,
                      const char *head) {
    hfsb_json_type type = hfsb_json_type_of(v);
    hfsb_json_iter it = hfsb_json_begin(v);
    if (hfsb_json_get(v, "_b64_of_bytes")) {
        made_up(v, w);
        return;
    }
    if (type != HFSB_JSON_OBJECT && type != HFSB_JSON_ARRAY) {
        hfsb_json_put_value(w, v);
        return;
    }
    if (type == HFSB_JSON_OBJECT) hfsb_json_put_object(w);
    else hfsb_json_put_array(w);
    while (hfsb_json_next(&it)) {
        if (type == HFSB_JSON_OBJECT) hfsb_json_put_key(w, it.key);
        if (fh_same(it.key, "parentCommit"))
            hfsb_json_put_str(w, hfsb_cstr(head));
        else put_again(it.value, w, head);
    }
    hfsb_json_put_end(w);
}

static void write_again(const hfsb_json_value *v, const char *head,
                        hfsb_buf *out) {
    hfsb_json_writer w;
    hfsb_json_writer_init(&w, out, NULL);
    put_again(v, &w, head);
    FH_MUST(hfsb_json_writer_finish(&w, NULL));
}

/* False: it has no body. */
static bool golden_body(const hfsb_json_value *one, const char *head,
                        hfsb_buf *out) {
    const hfsb_json_value *json = hfsb_json_get(one, "json");
    const hfsb_json_value *lines = hfsb_json_get(one, "ndjson");
    long long              raw =
        hfsb_json_int(hfsb_json_get(one, "raw_body_bytes"), 0);
    hfsb_json_iter it = hfsb_json_begin(lines);
    if (json) write_again(json, head, out);
    while (hfsb_json_next(&it)) {
        write_again(it.value, head, out);
        FH_MUST(hfsb_buf_append_byte(out, '\n'));
    }
    for (; raw > 0; raw--) FH_MUST(hfsb_buf_append_byte(out, 'b'));
    return out->len > 0;
}

static void golden_fields(const hfsb_json_value *one, hfsb_buf *out) {
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(one, "headers"));
    hfsb_str host = hfsb_json_str(hfsb_json_get(one, "host"), HFSB_LIT("x"));
    FH_MUST(hfsb_buf_printf(out, "Host: %s\r\n", host.ptr));
    while (hfsb_json_next(&it))
        if (!fh_same(it.key, "content-length"))
            FH_MUST(hfsb_buf_printf(
                out, "%s: %s\r\n", it.key.ptr,
                hfsb_json_str(it.value, HFSB_LIT("")).ptr));
}

static void golden_one(fh_hub *hub, const hfsb_json_value *one) {
    hfsb_str  none = HFSB_INIT;
    hfsb_buf  body = HFSB_INIT, fields = HFSB_INIT, head = HFSB_INIT;
    ts_reply  r = HFSB_INIT;
    bool      edge = hfsb_json_get(one, "host") != NULL;
    int       want = (int)hfsb_json_int(hfsb_json_get(one, "fake_status"), 0);
    hfsb_str  tag = hfsb_json_str(hfsb_json_get(one, "tag"), none);
    hfsb_str  method = hfsb_json_str(hfsb_json_get(one, "method"), none);
    hfsb_str  target = hfsb_json_str(hfsb_json_get(one, "target"), none);
    (void)fh_head(hub, TF_ID, &head);
    golden_fields(one, &fields);
    if (!golden_body(one, head.len ? head.ptr : "", &body) &&
        !fh_same(method, "POST"))
        body.ptr = NULL;
    else if (!body.ptr) FH_MUST(hfsb_buf_reserve(&body, 1));
    T_CHECK(tf_send(edge ? fh_edge(hub) : fh_url(hub), &r, method.ptr,
                    target.ptr, fields.ptr, hfsb_buf_str(&body)));
    T_CHECK(want != 0 && r.status == want);
    if (r.status != want)
        printf("%s: %s %s: %d, want %d\n%.*s\n", tag.ptr, method.ptr,
               target.ptr, r.status, want, (int)r.body.len, r.body.ptr);
    ts_drop(&r);
    hfsb_buf_free(&body);
    hfsb_buf_free(&fields);
    hfsb_buf_free(&head);
}

static void what_the_real_client_sent_gets_the_recorded_status(void) {
    hfsb_buf       text = HFSB_INIT;
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter version, it;
    size_t         versions = 0;
    if (!t_data_file("data/hub/golden.json", &text)) return;
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&text), NULL, &doc, NULL) ==
            HFSB_OK);
    version = hfsb_json_begin(doc.root);
    while (hfsb_json_next(&version)) {
        fh_hub *hub = fh_start(NULL);
        versions++;
        it = hfsb_json_begin(version.value);
        while (hfsb_json_next(&it)) golden_one(hub, it.value);
        T_CHECK(hfsb_json_count(version.value) > 100);
        T_CHECK(fh_count(hub, NULL, "*") + fh_count(hub, NULL, "edge:*") ==
                hfsb_json_count(version.value));
        fh_stop(hub);
    }
    T_CHECK(versions == 2);
    hfsb_json_free(&doc);
    hfsb_buf_free(&text);
}

/* ---- what the real Hub answered ---- */

/* The same keys in the same order, and values of the same type; ids, dates
   and oids are not the same. */
static bool same_shape(const hfsb_json_value *a, const hfsb_json_value *b) {
    hfsb_json_iter i = hfsb_json_begin(a), k = hfsb_json_begin(b);
    if (hfsb_json_type_of(a) != hfsb_json_type_of(b) ||
        hfsb_json_count(a) != hfsb_json_count(b))
        return false;
    while (hfsb_json_next(&i) && hfsb_json_next(&k))
        if (!hfsb_str_equal(i.key, k.key) || !same_shape(i.value, k.value))
            return false;
    return true;
}

static bool same_body(const ts_reply *r, hfsb_str want) {
    hfsb_json_doc doc = HFSB_INIT;
    bool          same;
    if (hfsb_json_parse(want, NULL, &doc, NULL) != HFSB_OK)
        return hfsb_str_equal(hfsb_buf_str(&r->body), want);
    same = r->json.root && same_shape(r->json.root, doc.root);
    hfsb_json_free(&doc);
    return same;
}

/* These fields of an answer, the ids of requests by their form alone. */
static bool same_fields(const ts_reply *r, const hfsb_json_value *answer) {
    hfsb_str none = HFSB_INIT;
    const hfsb_json_value *f = hfsb_json_get(answer, "response_headers");
    const hfsb_json_value *asked = hfsb_json_get(answer, "request_headers");
    hfsb_str trace = hfsb_json_str(hfsb_json_get(asked, "X-Amzn-Trace-Id"),
                                   none);
    return hfsb_str_equal(
               ts_field(r, "Content-Type"),
               hfsb_json_str(hfsb_json_get(f, "Content-Type"), none)) &&
           hfsb_str_starts(ts_field(r, "X-Request-Id"),
                           HFSB_LIT("Root=1-67cae5")) &&
           hfsb_str_ends(ts_field(r, "X-Request-Id"), trace);
}

static void prod_one(fh_hub *hub, const hfsb_json_value *answer) {
    hfsb_str none = HFSB_INIT;
    hfsb_str uri = hfsb_json_str(hfsb_json_get(answer, "uri"), none);
    hfsb_str method = hfsb_json_str(hfsb_json_get(answer, "method"), none);
    hfsb_str body = hfsb_json_str(hfsb_json_get(answer, "request_body"),
                                  none);
    hfsb_str want = hfsb_json_str(hfsb_json_get(answer, "response_body"),
                                  none);
    const hfsb_json_value *asked = hfsb_json_get(answer, "request_headers");
    hfsb_buf               fields = HFSB_INIT;
    hfsb_str trace = hfsb_json_str(hfsb_json_get(asked, "X-Amzn-Trace-Id"),
                                   HFSB_LIT("?"));
    ts_reply r = HFSB_INIT;
    bool     ok;
    FH_MUST(hfsb_buf_printf(
        &fields,
        TF_AUTH "X-Amzn-Trace-Id: %s\r\nContent-Type: %s\r\n",
        trace.ptr,
        hfsb_json_str(hfsb_json_get(asked, "Content-Type"),
                      HFSB_LIT("application/json")).ptr));
    T_CHECK(hfsb_str_starts(uri, HFSB_LIT("https://huggingface.co/")));
    ok = tf_send(fh_url(hub), &r, method.ptr,
                 uri.ptr + strlen("https://huggingface.co"), fields.ptr,
                 body) &&
         r.status == hfsb_json_int(hfsb_json_get(answer, "status"), 0) &&
         same_fields(&r, answer) && same_body(&r, want);
    T_CHECK(ok);
    if (!ok)
        printf("%s %s: %d\n%.*s\n  want %.*s\n", method.ptr, uri.ptr,
               r.status, (int)r.body.len, r.body.ptr, (int)want.len,
               want.ptr);
    hfsb_buf_free(&fields);
    ts_drop(&r);
}

static void set_static(fh_hub *hub, const char *id) {
    fh_lock(hub);
    strcpy(fh_find(hub, hfsb_cstr(id))->sdk, "static");
    fh_unlock(hub);
}

static void answers_have_the_shape_of_the_real_ones(void) {
    hfsb_buf      text = HFSB_INIT;
    hfsb_json_doc doc = HFSB_INIT;
    fh_opts       o = HFSB_INIT;
    fh_hub       *hub;
    hfsb_str      left;
    size_t        n = 0;
    if (!t_data_file("data/hub/prod_answers.jsonl", &text)) return;
    o.user = "user";
    o.prompt = true;
    o.stages = "BUILDING";
    hub = fh_start(&o);
    fh_add_space(hub, "user/tmp_test_space", 1, true); /* left from before */
    fh_add_space(hub, "victor/static-space", 1, false);
    set_static(hub, "victor/static-space");
    left = hfsb_buf_str(&text);
    while (left.len) {
        size_t   end = hfsb_str_find_byte(left, '\n');
        hfsb_str line = hfsb_str_slice(left, 0, end);
        left = hfsb_str_slice(left, end == HFSB_NPOS ? left.len : end + 1,
                              left.len);
        T_CHECK(hfsb_json_parse(line, NULL, &doc, NULL) == HFSB_OK);
        prod_one(hub, doc.root);
        hfsb_json_free(&doc);
        n++;
    }
    T_CHECK(n > 40);
    fh_stop(hub);
    hfsb_buf_free(&text);
}

int main(void) {
    tt_begin();
    TT_RUN(what_the_real_client_sent_gets_the_recorded_status);
    TT_RUN(answers_have_the_shape_of_the_real_ones);
    return tt_end(__FILE__);
}
