/* t_fake_hub.h - what the tests of the fake Hub share: requests in one line.
 */
#ifndef T_FAKE_HUB_H
#define T_FAKE_HUB_H
#define T_SERVER
#include "t_server.h"

#include "fake_hub.h"

#define TF_AUTH "Authorization: Bearer " FH_TOKEN "\r\n"
#define TF_ID   "alice/sandbox-1a2b3c4d"
#define TF_AT   "/api/spaces/" TF_ID

/* One request on a connection of its own; false when its answer is not whole.
   fields: lines with CRLF, Host among them or not; body.ptr NULL: none. */
static bool tf_send(const char *url, ts_reply *r, const char *method,
                    const char *target, const char *fields, hfsb_str body) {
    ts_server at = HFSB_INIT;
    ts_conn   c;
    hfsb_buf  out = HFSB_INIT;
    bool      whole;
    at.port = (unsigned)atoi(strrchr(url, ':') + 1);
    FH_MUST(hfsb_buf_printf(&out, "%s %s HTTP/1.1\r\n%s%s", method, target,
                            strstr(fields, "Host:") ? "" : "Host: x\r\n",
                            fields));
    if (body.ptr)
        FH_MUST(hfsb_buf_printf(&out, "Content-Length: %zu\r\n", body.len));
    FH_MUST(hfsb_buf_append(&out, HFSB_LIT("\r\n")));
    FH_MUST(hfsb_buf_append(&out, body));
    c = ts_connect(&at);
    (void)ts_send(&c, hfsb_buf_str(&out));
    whole = ts_read(&c, r, false);
    ts_hang_up(&c);
    hfsb_buf_free(&out);
    return whole;
}

/* The same to the Hub with its token; json NULL: no body. The status, or 0. */
HFSBI_UNUSED static int tf_ask(fh_hub *hub, ts_reply *r, const char *method,
                               const char *target, const char *json) {
    hfsb_str none = HFSB_INIT;
    bool     whole =
        tf_send(fh_url(hub), r, method, target,
                json ? TF_AUTH "Content-Type: application/json\r\n" : TF_AUTH,
                json ? hfsb_cstr(json) : none);
    return whole ? r->status : 0;
}

/* A commit: the lines after the header. */
HFSBI_UNUSED static int tf_commit(fh_hub *hub, ts_reply *r,
                                  const char *lines) {
    hfsb_buf body = HFSB_INIT;
    FH_MUST(hfsb_buf_printf(
        &body, "{\"key\":\"header\",\"value\":{\"summary\":\"s\"}}\n%s",
        lines));
    (void)tf_send(fh_url(hub), r, "POST", TF_AT "/commit/main",
                  TF_AUTH "Content-Type: application/x-ndjson\r\n",
                  hfsb_buf_str(&body));
    hfsb_buf_free(&body);
    return r->status;
}

/* The private Space TF_ID, with the secret SANDBOX_API_TOKEN = "tok". */
HFSBI_UNUSED static void tf_duplicate(fh_hub *hub) {
    ts_reply r = HFSB_INIT;
    T_CHECK(tf_ask(hub, &r, "POST", "/api/spaces/" FH_TEMPLATE "/duplicate",
                   "{\"repository\":\"" TF_ID "\",\"visibility\":\"private\","
                   "\"secrets\":[{\"key\":\"SANDBOX_API_TOKEN\",\"value\":"
                   "\"tok\"}]}") == 200);
    ts_drop(&r);
}

/* A call of a Space through the edge, with both tokens. */
HFSBI_UNUSED static int tf_edge(fh_hub *hub, ts_reply *r, const char *target,
                                const char *json) {
    hfsb_str none = HFSB_INIT;
    bool     whole =
        tf_send(fh_edge(hub), r, json ? "POST" : "GET", target,
                TF_AUTH "X-Sandbox-Authorization: Bearer tok\r\n"
                        "Content-Type: application/json\r\n",
                json ? hfsb_cstr(json) : none);
    return whole ? r->status : 0;
}

/* The text of a value of the answer, by up to two keys. */
HFSBI_UNUSED static hfsb_str tf_text(const ts_reply *r, const char *a,
                                     const char *b) {
    const hfsb_json_value *v = hfsb_json_get(r->json.root, a);
    if (b) v = hfsb_json_get(v, b);
    return hfsb_json_str(v, HFSB_LIT("(none)"));
}

#define TF_IS(r, a, b, want)                                       \
    t_str(__FILE__, __LINE__, tf_text(r, a, b).ptr,                \
          tf_text(r, a, b).len, want, strlen(want))
#endif
