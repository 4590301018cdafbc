/* page.c - the page at "/", where a person watches and steers what happens
   here, and the plan that it shows.

   The page is one file, src/api/page.html, which amalgamate.sh turns into the
   lines of page_html.c. It holds no data: everyone may read it, and all that
   it shows comes from the endpoints, with the token that its reader has. What
   it shows is hostile, so the page may do little: its policy allows only the
   script and the style whose digests are computed here, requests to this
   server, and no markup made from text (Trusted Types).

   Browsers ask for text/html, clients of the API do not: for them there is
   nothing at "/", or what another protocol has there.

   With HFSB_PAGE_GZIP, the name of a header that the build made with gzip, the
   page is sent compressed to clients that accept that. */
#include "api_private.h"

#ifdef HFSB_PAGE_GZIP
#include HFSB_PAGE_GZIP
#endif

/* ---- the page ---- */

/* The text between two marks; empty when it lacks them. */
static hfsb_str hfsbi_webpage_between(hfsb_str text, const char *from,
                                      const char *to) {
    size_t at = hfsb_str_find(text, hfsb_cstr(from)), end;
    if (at == HFSB_NPOS) return hfsb_str_make("", 0);
    text = hfsb_str_slice(text, at + strlen(from), text.len);
    end = hfsb_str_find(text, hfsb_cstr(to));
    return hfsb_str_slice(text, 0, end == HFSB_NPOS ? 0 : end);
}

/* Appends "'sha256-...'" for an element of the page. */
static void hfsbi_webpage_put_digest(hfsb_buf *out, hfsb_str text) {
    unsigned char digest[HFSB_SHA256_SIZE];
    char          text64[(HFSB_SHA256_SIZE + 2) / 3 * 4 + 1];
    hfsb_sha256   sha;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, text);
    hfsb_sha256_finish(&sha, digest);
    (void)hfsbi_base64_write(
        hfsb_str_make((const char *)digest, sizeof digest), text64);
    hfsb_buf_append(out, HFSB_LIT("'sha256-"));
    hfsb_buf_append(out, hfsb_cstr(text64));
    hfsb_buf_append(out, HFSB_LIT("'; "));
}

static void hfsbi_webpage_put_policy(hfsb_buf *out, hfsb_str text) {
    hfsb_buf_append(out, HFSB_LIT("default-src 'none'; script-src "));
    hfsbi_webpage_put_digest(
        out, hfsbi_webpage_between(text, "<script>", "</script>"));
    hfsb_buf_append(out, HFSB_LIT("style-src "));
    hfsbi_webpage_put_digest(
        out, hfsbi_webpage_between(text, "<style>", "</style>"));
    hfsb_buf_append(
        out, HFSB_LIT("connect-src 'self'; img-src blob: data:; base-uri "
                      "'none'; form-action 'none'; frame-ancestors 'self' "
                      "https://huggingface.co https://*.huggingface.co; "
                      "require-trusted-types-for 'script'; trusted-types "
                      "'none'"));
}

HFSBI_FN void hfsbi_webpage_close(hfsbi_webpage *page) {
    hfsb_buf_free(&page->text);
    hfsb_buf_free(&page->policy);
}

/* Joins the lines at the first request: most servers have nobody who watches.
   False without memory. */
static bool hfsbi_webpage_make(hfsbi_webpage *page, const hfsb_alloc *alloc) {
    const char *const *line = hfsbi_webpage_lines();
    char               hex[HFSB_SHA256_HEX];
    if (page->etag[0]) return true;
    page->text.alloc = page->policy.alloc = *alloc;
    for (; *line; line++) {
        hfsb_buf_append(&page->text, hfsb_cstr(*line));
        hfsb_buf_append_byte(&page->text, '\n');
    }
    hfsbi_webpage_put_policy(&page->policy, hfsb_buf_str(&page->text));
    if (page->text.status != HFSB_OK || page->policy.status != HFSB_OK) {
        hfsbi_webpage_close(page);
        return false;
    }
    hfsb_sha256_hex(hfsb_buf_str(&page->text), hex);
    (void)snprintf(page->etag, sizeof page->etag, "W/\"%.32s\"", hex);
    return true;
}

/* The compressed page; empty when there is none, or one of another version:
   its last four bytes are the length of the text. */
static hfsb_str hfsbi_webpage_compressed(const hfsbi_webpage *page) {
#ifdef HFSB_PAGE_GZIP
    const unsigned char *end = hfsbi_webpage_gzip + sizeof hfsbi_webpage_gzip;
    if ((end[-4] | (unsigned)end[-3] << 8 | (unsigned)end[-2] << 16 |
         (unsigned)end[-1] << 24) == page->text.len)
        return hfsb_str_make((const char *)hfsbi_webpage_gzip,
                             sizeof hfsbi_webpage_gzip);
#else
    (void)page;
#endif
    return hfsb_str_make("", 0);
}

static void hfsbi_webpage_get(void *user, hfsb_request *request) {
    static const char *const fields[][2] = {
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cache-Control", "no-cache"},
        {"Vary", "Accept, Accept-Encoding"}};
    hfsbi_api            *api = (hfsbi_api *)user;
    const hfsbi_webpage  *page = &api->page;
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_str              body, small = HFSB_LIT("");
    size_t                i;
    if (!hfsbi_webpage_make(&api->page, &api->alloc)) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return;
    }
    body = hfsb_buf_str(&page->text);
    for (i = 0; i < sizeof fields / sizeof *fields; i++)
        (void)hfsb_reply_field(request, fields[i][0], hfsb_cstr(fields[i][1]));
    /* without its policy the page is not sent */
    if (hfsb_reply_field(request, "Content-Security-Policy",
                         hfsb_buf_str(&page->policy)) != HFSB_OK) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return;
    }
    (void)hfsb_reply_field(request, "ETag", hfsb_cstr(page->etag));
    if (hfsb_str_equal(hfsb_http_field_find(head, "If-None-Match"),
                       hfsb_cstr(page->etag))) {
        hfsb_reply(request, 304, "", HFSB_LIT(""));
        return;
    }
    if (hfsb_http_field_lists(head, "Accept-Encoding", "gzip"))
        small = hfsbi_webpage_compressed(page);
    if (small.len && hfsb_reply_field(request, "Content-Encoding",
                                      HFSB_LIT("gzip")) == HFSB_OK)
        body = small;
    hfsb_reply(request, 200, "text/html; charset=utf-8", body);
}

HFSBI_FN hfsb_status hfsbi_webpage_add(hfsbi_api *api, hfsb_err *err) {
    hfsb_route route = HFSB_INIT;
    route.method = "GET";
    route.path = "/";
    route.fn = hfsbi_webpage_get;
    route.user = api;
    route.no_token = true;
    route.max_body = 1; /* keep no bytes of strangers in memory */
    route.accept = "text/html";
    return hfsb_server_add(api->server, &route, err);
}

/* ---- the plan ---- */

/* The last plan of any agent: of one that uses MCP, or that sends it here, or
   whose program does. */
HFSBI_FN void hfsbi_plan_post(void *user, hfsb_request *request) {
    hfsbi_api       *api = (hfsbi_api *)user;
    hfsb_tool_result result;
    hfsb_json_doc    doc = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT;
    long long        began = hfsb_clock_ms();
    hfsb_status      st;
    if (!hfsbi_request_is_json(request)) {
        hfsb_reply_error(request, 415,
                         "The body must be JSON (application/json).");
        return;
    }
    out.alloc = doc.alloc = api->alloc;
    st = hfsbi_arguments_parse(hfsb_request_body(request), &api->alloc, &doc,
                               &result);
    if (st == HFSB_OK)
        st = hfsbi_plan_call(&hfsbi_server_group(api->server)->plan, doc.root,
                             false, &result);
    hfsbi_api_report(api->tools, "plan_tool", HFSB_LIT(""), "",
                     hfsb_buf_str(&result.error), began, result.output.len);
    if (st != HFSB_NOMEM &&
        hfsb_tool_result_write(&result, &out, NULL) == HFSB_OK)
        hfsbi_reply_take(request, st == HFSB_OK ? 200 : 422,
                         "application/json", &out);
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_tool_result_free(&result);
    hfsb_json_free(&doc);
    hfsb_buf_free(&out);
}

HFSBI_FN void hfsbi_plan_get(void *user, hfsb_request *request) {
    hfsbi_api *api = (hfsbi_api *)user;
    hfsb_buf   out = HFSB_INIT;
    out.alloc = api->alloc;
    (void)hfsb_reply_field(request, "Cache-Control", HFSB_LIT("no-store"));
    if (hfsbi_plan_write(&hfsbi_server_group(api->server)->plan, &out, NULL) ==
        HFSB_OK)
        hfsbi_reply_take(request, 200, "application/json", &out);
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_buf_free(&out);
}
