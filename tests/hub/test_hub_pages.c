/* test_hub_pages.c - lists of several pages, redirects: where the token goes,
   and where it all ends. */
#include "../support/t_hub.h"

/* ---- pages ---- */

static bool t_count(void *user, const hfsb_json_value *item) {
    T_CHECK(hfsb_json_type_of(item) == HFSB_JSON_OBJECT);
    return ++*(size_t *)user != 3;
}

static hfsb_status t_spaces(t_hub *h, size_t *got) {
    *got = 0;
    return hfsb_hub_spaces(h->hub, NULL, t_count, got, h->cancel, &h->err);
}

static void pages_are_followed_and_the_token_stays_home(void) {
    static const t_reply script[] = {
        {"GET /api/spaces", 200,
         "Link: <http://x/>; rel=\"prev\", "
         "<https://huggingface.co/api/spaces?cursor=a%3D>; rel=\"next\"",
         "[{}]", HFSB_OK, false, 0},
        {"GET /api/spaces?cursor=a%3D", 200,
         "Link: </api/spaces?p=3>; rel=next", "[]", HFSB_OK, false, 0},
        {"GET /api/spaces?p=3", 503, NULL, NULL, HFSB_OK, false, 0},
        {"GET /api/spaces?p=3", 200,
         "Link: <http://other.test/api/spaces?p=4>; rel=\"next\"", "[{}]",
         HFSB_OK, false, 0},
        {"GET http://other.test/api/spaces?p=4", 200, NULL, "[]", HFSB_OK,
         false, 0}};
    static const t_reply enough[] = {{NULL, 200,
                                      "Link: </api/spaces?p=2>; rel=\"next\"",
                                      "[{},{},{},{}]", HFSB_OK, false, 0}};
    static const t_reply circle[] = {
        {NULL, 200, "Link: </a?p=2>; rel=\"next\"", "[]", HFSB_OK, false, 0},
        {NULL, 200, "Link: </a?p=2>; rel=\"next\"", "[]", HFSB_OK, false, 0}};
    static const t_reply odd[] = {
        {NULL, 200, NULL, "{\"error\":1}", HFSB_OK, false, 0}};
    static const t_reply bad[] = {{NULL, 200,
                                   "Link: <ftp://x y>; rel=\"next\"", "[]",
                                   HFSB_OK, false, 0}};
    static const t_reply broken[] = {
        {NULL, 200, "Link: <http://x; rel=\"next\"", "[]", HFSB_OK, false, 0}};
    size_t got;
    t_hub  h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(t_spaces(&h, &got) == HFSB_OK && got == 2 && h.sent_count == 5);
    T_CHECK(t_field(&h.sent[3], "authorization").ptr);
    T_CHECK(!t_field(&h.sent[4], "authorization").ptr);
    T_SCRIPT(&h, enough); /* each said so */
    T_CHECK(t_spaces(&h, &got) == HFSB_OK && got == 3 && h.sent_count == 1);
    T_SCRIPT(&h, circle);
    T_CHECK(t_spaces(&h, &got) == HFSB_REMOTE && h.sent_count == 2);
    T_CHECK(t_says(&h, "its pages go in a circle"));
    T_SCRIPT(&h, odd);
    T_CHECK(t_spaces(&h, &got) == HFSB_REMOTE);
    T_CHECK(t_says(&h, "is not a list"));
    T_SCRIPT(&h, bad);
    T_CHECK(t_spaces(&h, &got) == HFSB_REMOTE && h.sent_count == 1);
    T_SCRIPT(&h, broken);
    T_CHECK(t_spaces(&h, &got) == HFSB_OK && h.sent_count == 1);
    t_hub_close(&h);
}

/* From the last of the pages back to number `back` (0: on and on). */
static size_t t_back, t_pages;

static void t_page(t_hub *h, const t_request *request, t_reply *out) {
    static char link[80];
    const char *at = strchr(request->line.ptr, '=');
    size_t      page = at ? (size_t)strtoul(at + 1, NULL, 10) : 0, next;
    t_hub_forget(h); /* it keeps fewer than there are */
    next = t_back && page == t_pages ? t_back : page + 1;
    (void)snprintf(link, sizeof link, "Link: </a?p=%zu>; rel=\"next\"", next);
    out->status = 200;
    out->fields = link;
    out->body = "[{}]";
}

static void endless_pages_are_refused(void) {
    static const struct {
        size_t pages, back, most; /* requests before it is seen */
    } cases[] = {{1, 1, 2},  {2, 1, 4},  {3, 1, 8},
                 {9, 3, 24}, {9, 9, 20}, {0, 0, 1000}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t got = 0;
        t_hub  h;
        t_hub_init(&h);
        t_hub_open(&h);
        h.answer = t_page;
        t_pages = cases[i].pages;
        t_back = cases[i].back;
        T_CHECK(hfsb_hub_spaces(h.hub, NULL, t_each, &got, NULL, &h.err) ==
                HFSB_REMOTE);
        T_CHECK(t_says(&h, t_back ? "its pages go in a circle"
                                  : "its pages have no end"));
        T_CHECK(got >= cases[i].pages && got <= cases[i].most);
        t_hub_close(&h);
    }
}

static void a_redirect_keeps_the_token_at_home(void) {
    static const t_reply script[] = {
        {"GET /api/spaces/" T_BOX "/runtime", 307,
         "Location: /api/spaces/alice/new/runtime", NULL, HFSB_OK, false, 0},
        {"GET /api/spaces/alice/new/runtime", 307,
         "Location: http://other.test/x", NULL, HFSB_OK, false, 0},
        {"GET http://other.test/x", 200, NULL, "{\"stage\":\"RUNNING\"}",
         HFSB_OK, false, 0}};
    t_hub h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(t_runtime(&h) == HFSB_OK && h.sent_count == 3);
    T_CHECK(t_field(&h.sent[1], "authorization").ptr);
    T_CHECK(!t_field(&h.sent[2], "authorization").ptr);
    t_hub_close(&h);
}

int main(void) {
    T_RUN(pages_are_followed_and_the_token_stays_home);
    T_RUN(endless_pages_are_refused);
    T_RUN(a_redirect_keeps_the_token_at_home);
    return T_END();
}
